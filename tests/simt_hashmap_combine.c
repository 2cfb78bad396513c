/* SPDX-License-Identifier: MIT */
/*
 * The kernels of bulk updates that combine equal keys first, in sequence: the same functions as on a
 * GPU, over a small map and with small tables. Updates that are sent have two owners, and the map is
 * the table of both.
 */
#define CUA__HASHMAP_REGION_LOG 4u
/* the checker needs words of 4 bytes */
#define CUA__REGIONS_INDEX uint32_t
/* a fourth of all hashes; some samples are full */
#define SAMPLE_LIMIT (1u << 30)
#define CUA__COMBINE_MOST_SAMPLED 64u

#include <string.h>

#include "lib/kernels/hashmap_combine.h"
#include "simt_suites.h"

enum { BUCKETS = 32, MOST = 600, MOST_BLOCKS = 2, TILE = 128, REGIONS = 5, GUESS_ROOM = 128 };
enum { OWNERS = 2, PER_OWNER = 2 };

enum data { DISTINCT, FEW_KEYS, HALF_ARE_ONE, ONE_AND_DISTINCT, GREATEST, ONE_HOME, RESERVED };
/* The way to the update: as the guess and the sample say, or combined in any case. */
enum route { DECIDED, COMBINED };

static uint32_t ks, vs, lanes, room; /* lanes: per block; room: entries of a table */
static enum route way;
static int op, one_value, erases, sends;
static struct cua__regions_pass pass;

static char buckets[BUCKETS * CUA__HASHMAP_WORD_BYTES] __attribute__((aligned(64)));
static struct {
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	uint64_t reserved[4];
} state __attribute__((aligned(64)));
static unsigned char keys[MOST * 8] __attribute__((aligned(16)));
static unsigned char values[MOST * 8] __attribute__((aligned(16)));
static char words[MOST * 16] __attribute__((aligned(16)));
static char combined[MOST * 16] __attribute__((aligned(16)));
static uint32_t starts[REGIONS], ends[REGIONS];
static uint64_t n_combined, arrived;
static uint32_t guess_repeats, sampled, direct;
static uint64_t guess[GUESS_ROOM];
static uint64_t sample[CUA__COMBINE_MOST_SAMPLED];
/* combined words, split into pairs */
static unsigned char keys_split[MOST * 8] __attribute__((aligned(16)));
static unsigned char values_split[MOST * 8] __attribute__((aligned(16)));
static uint64_t n_split;
/* of updates that are sent */
static uint64_t list_room;
static char lists[OWNERS][MOST * 16] __attribute__((aligned(16)));
static uint64_t filled[OWNERS], told[OWNERS];
static struct cua__shard_late late;

/* The keys that are in the map before, and their values. */
static struct {
	struct cua_u128 key, value;
} there[BUCKETS];
static uint32_t n_there;

/* Per block. */
static struct {
	char stage[TILE * 16] __attribute__((aligned(16)));
	uint64_t table_keys[TILE], table_sums[TILE + 1], sample_keys[1024];
	char list[TILE * 16] __attribute__((aligned(16)));
	uint32_t region_of[TILE], number[REGIONS], offset[REGIONS];
	struct cua__regions_shared sh;
} block[MOST_BLOCKS];

static uint64_t rng;
static uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 20;
}

static uint64_t ones(uint32_t size)
{
	return size == 4 ? 0xffffffffu : ~(uint64_t)0;
}

static struct cua__hashmap_key key_of(struct cua_u128 key)
{
	return cua__hashmap_key_of(cua__hashmap_hash(&pass.view, ks, key), key);
}

static uint64_t hash_of_number(uint64_t number)
{
	const struct cua_u128 key = {number, 0};

	return key_of(key).hash;
}

static void make(enum data data, uint64_t n, uint32_t repeat_limit)
{
	uint64_t candidate = 2, frequent = 1000;

	memset(&pass, 0, sizeof(pass));
	pass.view.buckets = buckets;
	pass.view.counts = state.counts;
	pass.view.n_buckets = BUCKETS;
	pass.view.seed = next_random();
	pass.view.key_size = ks;
	pass.view.value_size = vs;
	pass.view.layout = CUA_HASHMAP_WORDS;
	pass.view.no_erase = !erases && ks + vs == 8 && next_random() % 2;
	/* a key that the sample does not see */
	while (hash_of_number(frequent) >> 32 < SAMPLE_LIMIT)
		frequent++;
	for (uint64_t i = 0; i < n; i++) {
		struct cua_u128 key = {0, 0}, value = {next_random(), 0};

		switch (data) {
		case FEW_KEYS: key.lo = 2 + next_random() % (n / 8 + 1); break;
		case HALF_ARE_ONE: key.lo = next_random() % 2 ? 99 : 100 + i / 4; break;
		case ONE_AND_DISTINCT: key.lo = next_random() % 2 ? frequent : 100 + i; break;
		case GREATEST: key.lo = next_random() % 3 ? ones(ks) : 2 + i / 8; break;
		case ONE_HOME:
			if (i >= 12) {
				key = cua__hashmap_get(keys, ks, next_random() % i);
				break;
			}
			do
				key.lo = candidate++;
			while (cua__hashmap_word_home(&pass.view, key_of(key).hash) != 3);
			break;
		case RESERVED: key.lo = next_random() % 5; break;
		default: key.lo = 2 + i * 77;
		}
		if (vs == 8)
			value.lo |= next_random() << 44;
		value.lo &= ones(vs);
		cua__hashmap_set(keys, ks, i, key);
		cua__hashmap_set(values, vs, i, value);
	}
	n_there = 0;
	for (uint64_t i = 0; i < n && n_there < BUCKETS; i += 1 + next_random() % 40) {
		struct cua_u128 value = {next_random() & ones(vs), 0};

		there[n_there].key = cua__hashmap_get(keys, ks, i);
		there[n_there++].value = value;
	}
	pass.keys = keys;
	pass.values = one_value ? NULL : values;
	pass.value.lo = next_random() & ones(vs);
	pass.n = n;
	pass.op = op;
	pass.to = words;
	pass.regions = REGIONS;
	pass.starts = starts;
	pass.ends = ends;
	pass.repeat_limit = repeat_limit;
	pass.guess = guess;
	pass.guess_room = GUESS_ROOM;
	pass.guessed = n < 40 ? (uint32_t)n : 40;
	pass.guess_repeats = &guess_repeats;
	pass.sample = sample;
	pass.sample_limit = SAMPLE_LIMIT;
	pass.sampled = &sampled;
	pass.direct = &direct;
	pass.combined = combined;
	pass.n_combined = &n_combined;
	if (!sends)
		return;
	pass.regions = OWNERS * PER_OWNER;
	pass.owners = OWNERS;
	pass.per_owner = PER_OWNER;
	pass.owner_seed = next_random();
	pass.room = list_room;
	pass.filled = filled;
	pass.late = &late;
	for (uint32_t r = 0; r < OWNERS; r++)
		pass.to_of[r] = lists[r];
}

static void setup(void)
{
	uint32_t added = 0;

	memset(buckets, 0, sizeof(buckets));
	memset(&state, 0, sizeof(state));
	memset(starts, 0xdd, sizeof(starts));
	memset(ends, 0, sizeof(ends));
	memset(guess, 0xff, sizeof(guess));
	memset(block, 0xdd, sizeof(block));
	n_combined = arrived = 0;
	sampled = direct = 0;
	guess_repeats = 0;
	memset(lists, 0xdd, sizeof(lists));
	memset(filled, 0, sizeof(filled));
	memset(told, 0xdd, sizeof(told));
	memset(&late, 0, sizeof(late));
	/* at home, as any insert would; no lane runs yet */
	for (uint32_t i = 0; i < n_there; i++) {
		const struct cua__hashmap_key key = key_of(there[i].key);
		const struct cua_u128 word = cua__hashmap_word_of(ks, vs, key.bits, there[i].value);
		char *reserved = cua__hashmap_reserved_slot(&pass.view, ks, vs, key.bits, NULL);
		char *bucket = buckets + cua__hashmap_word_home(&pass.view, key.hash) *
						 CUA__HASHMAP_WORD_BYTES;
		const uint32_t size = cua__hashmap_is_wide(ks, vs) ? 16 : 8;
		uint32_t slot = 1;

		if (reserved) {
			const struct cua_u128 two = {2, 0};
			const struct cua_u128 w = cua__hashmap_word_of(ks, vs, two, there[i].value);

			memcpy(reserved, &w, size);
			continue;
		}
		for (; slot <= cua__hashmap_word_slots(ks, vs); slot++) {
			struct cua_u128 w = {0, 0};

			memcpy(&w, bucket + slot * size, size);
			if (cua__hashmap_word_empty(w) ||
			    cua__hashmap_word_has(ks, vs, w, key.bits, NULL)) {
				added += cua__hashmap_word_empty(w);
				memcpy(bucket + slot * size, &word, size);
				break;
			}
		}
		/* the home is full: the key stays absent */
		if (slot > cua__hashmap_word_slots(ks, vs)) {
			memmove(&there[i], &there[i + 1], (n_there - i - 1) * sizeof(there[0]));
			n_there--;
			i--;
		}
	}
	state.counts[0].inserted = added;
}

/* Gets the value that a key has after the updates. Returns 0 if it is absent. */
static int expected_of(struct cua_u128 key, struct cua_u128 *value)
{
	int has = 0;

	for (uint32_t i = n_there; i-- > 0 && !has;)
		if (cua__hashmap_same(there[i].key, key)) {
			*value = there[i].value;
			has = 1;
		}
	for (uint64_t i = 0; i < pass.n && !direct && !late.spilled; i++) {
		const struct cua_u128 operand =
			one_value ? pass.value : cua__hashmap_get(values, vs, i);

		if (memcmp(keys + i * ks, &key.lo, ks) != 0)
			continue;
		*value = has ? cua__hashmap_combine(*value, operand, vs, (enum cua_update)op)
			     : operand;
		has = 1;
	}
	return has;
}

static void check_map(void)
{
	uint64_t found = 0;

	for (uint64_t i = 0; i < pass.n && !erases; i++) {
		const struct cua_u128 key = cua__hashmap_get(keys, ks, i);
		struct cua_u128 value = {0, 0}, expected = {0, 0};
		const int is_there = cua__hashmap_word_find(&pass.view, CUA__HASHMAP_KIND(ks, vs),
							    key_of(key), NULL, CUA_ACQUIRE, &value);

		if (is_there != expected_of(key, &expected))
			simt_fail("a key is lost, or there though no update was to be");
		else if (!cua__hashmap_same(value, expected))
			simt_fail("a key has the wrong value");
	}
	for (uint64_t slot = 0; slot < cua__hashmap_all_slots(&pass.view, ks, vs); slot++) {
		struct cua_u128 key, value;

		if (!cua__hashmap_at(&pass.view, ks, vs, slot, &key, &value))
			continue;
		found++;
		for (uint64_t other = 0; other < slot; other++) {
			struct cua_u128 again;

			if (cua__hashmap_at(&pass.view, ks, vs, other, &again, &value) &&
			    cua__hashmap_same(again, key))
				simt_fail("a key is there twice");
		}
	}
	if (cua__hashmap_count(&pass.view) != found)
		simt_fail("the counts are wrong");
}

/* Erases keys of the pairs during the updates. */
static void erase_some(void)
{
	for (uint64_t i = cua_port_thread(); i < pass.n; i += lanes) {
		const struct cua_u128 key = cua__hashmap_get(keys, ks, i);
		struct cua_u128 old;

		(void)cua__hashmap_word_erase(&pass.view, CUA__HASHMAP_KIND(ks, vs), key_of(key),
					      NULL, &old);
	}
}

/* The words of a list have their owner, and nothing lies after its room. */
static void check_list(uint32_t r)
{
	const uint32_t size = cua__hashmap_is_wide(ks, vs) ? 16 : 8;

	for (uint64_t i = 0; i < told[r]; i++) {
		struct cua_u128 word = {0, 0};

		memcpy(&word, lists[r] + i * size, size);
		if (cua__owner(cua__hashmap_word_key(ks, word), ks, pass.owner_seed, OWNERS) != r)
			simt_fail("a word is in the list of another owner");
	}
	for (uint64_t i = list_room * size; i < sizeof(lists[r]); i++)
		if ((unsigned char)lists[r][i] != 0xdd)
			simt_fail("a word is after the room of a list");
}

/* Sends the combined words, and updates the map by the lists of the owners. */
static void send_and_update(const struct cua__regions_kind one)
{
	uint64_t *const number_of[OWNERS] = {&told[0], &told[1]};

	if (simt_block() == 0 && cua_port_thread() < 32)
		cua__combine_tell(&pass, number_of);
	for (uint32_t r = 0; r < OWNERS; r++) {
		struct cua__regions_pass own = pass;

		simt_next_kernel(&arrived);
		own.combined = lists[r];
		own.n_combined = &told[r];
		cua__combine_update(one, &own, block[simt_block()].list);
	}
	simt_next_kernel(&arrived);
	if (simt_lane() != 0)
		return;
	for (uint32_t r = 0; r < OWNERS; r++)
		check_list(r);
	if (late.spilled != (direct || filled[0] > list_room || filled[1] > list_room))
		simt_fail("spilled updates are not reported");
}

/* The pairs are the combined words in their order. */
static void check_pairs(void)
{
	const uint32_t size = cua__hashmap_is_wide(ks, vs) ? 16 : 8;

	if (n_split != (direct ? ~(uint64_t)0 : n_combined))
		simt_fail("the number of combined pairs is wrong");
	for (uint64_t i = 0; i < n_combined; i++) {
		struct cua_u128 word = {0, 0};

		memcpy(&word, combined + i * size, size);
		if (!cua__hashmap_same(cua__hashmap_word_key(ks, word),
				       cua__hashmap_get(keys_split, ks, i)) ||
		    !cua__hashmap_same(cua__hashmap_word_value(ks, vs, word),
				       cua__hashmap_get(values_split, vs, i)))
			simt_fail("a combined pair is wrong");
	}
}

static void body(void)
{
	const struct cua__regions_kind kind = {ks, vs, lanes, TILE / lanes, 0, 0, 1, sends};
	const struct cua__regions_kind one = {ks, vs, lanes, 1, 0, 0, 1, sends};
	const uint64_t blocks = simt_blocks(), b = simt_block();
	const struct cua__sums table = {block[b].table_keys, block[b].table_sums,
					&block[b].sh.has_greatest, room};
	const struct cua__sums of_sample = {block[b].sample_keys, NULL, &block[b].sh.has_greatest,
					    1024};
	uint64_t i;

	cua__combine_guess(one, &pass);
	simt_next_kernel(&arrived);
	if (way == COMBINED && b == 0 && cua_port_thread() == 0)
		CUA_WRITE(guess_repeats, pass.guessed);
	simt_next_kernel(&arrived);
	cua__combine_count(kind, &pass, block[b].number, room);
	simt_next_kernel(&arrived);
	if (b == 0)
		cua__combine_starts(one, &pass, &block[b].sh, &of_sample, room);
	simt_next_kernel(&arrived);
	if (way == COMBINED && b == 0 && cua_port_thread() == 0)
		CUA_WRITE(direct, 0);
	simt_next_kernel(&arrived);
	for (i = b; i * TILE < pass.n && !CUA_READ(direct); i += blocks) {
		cua__regions_scatter(kind, &pass, i, &block[b].sh, block[b].stage,
				     block[b].region_of, block[b].number, block[b].offset);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	for (i = b; i < pass.regions; i += blocks) {
		cua__combine_region(kind, &pass, i, &block[b].sh, &table);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	if (!sends)
		cua__combine_split(one, &pass, keys_split, values_split, &n_split);
	simt_next_kernel(&arrived);
	if (!sends && simt_lane() == 0)
		check_pairs();
	if (sends)
		send_and_update(one);
	else if (erases && b == 0)
		erase_some();
	else
		cua__combine_update(one, &pass, block[b].list);
	simt_next_kernel(&arrived);
	if (simt_lane() == 0)
		check_map();
}

static const char *check_decision(void)
{
	return way == COMBINED && direct ? "combined updates were direct" : NULL;
}

static const struct {
	uint32_t ks, vs;
} sizes[] = {{4, 4}, {8, 8}, {8, 4}, {4, 8}};

static void try_data(enum data data, uint64_t n, uint32_t repeat_limit)
{
	const struct simt_case c = {.name = "combine",
				    .setup = setup,
				    .body = body,
				    .check = check_decision,
				    .max_steps = 20000000};

	op = (int)(next_random() % 6);
	one_value = next_random() % 4 == 0;
	make(data, n, repeat_limit);
	try_shape(c, erases ? 2 : 1 + (unsigned)(n % 2), lanes, 1);
}

/* The routes of updates that the guess and the sample decide. */
static void try_decisions(void)
{
	way = DECIDED;
	room = 64;
	try_data(DISTINCT, 150, TILE);
	ck_assert_msg(direct, "distinct keys were combined");
	try_data(FEW_KEYS, 401, TILE);
	ck_assert_msg(!direct, "equal keys were not combined");
	try_data(GREATEST, 201, TILE);
	ck_assert_msg(!direct, "a frequent key was not combined");
	/* the guess sees the frequent key, the sample sees the others */
	room = 32;
	try_data(ONE_AND_DISTINCT, 590, TILE);
	ck_assert_msg(direct, "a frequent key among distinct keys was combined");
}

START_TEST(hashmap_combine)
{
	ks = sizes[_i].ks;
	vs = sizes[_i].vs;
	rng = simt_seed() + (unsigned)_i;
	lanes = 32;
	erases = 0;
	try_decisions();
	way = COMBINED;
	/* tables that hold the keys of a region, and tables that do not */
	for (room = 64; room >= 8; room /= 8) {
		try_data(DISTINCT, 70, TILE);
		try_data(FEW_KEYS, 301, TILE);
		try_data(FEW_KEYS, 250, 10);
		try_data(HALF_ARE_ONE, 257, 30);
		try_data(GREATEST, 200, 30);
		try_data(GREATEST, 201, TILE);
		try_data(ONE_HOME, 131, TILE);
		try_data(RESERVED, 90, 20);
	}
	lanes = 64;
	room = 16;
	try_data(FEW_KEYS, 300, 20);
	try_data(HALF_ARE_ONE, 261, TILE);
	lanes = 32;
	erases = 1;
	try_data(FEW_KEYS, 200, TILE);
	try_data(HALF_ARE_ONE, 150, 20);
	erases = 0;
}
END_TEST

/* Updates of two owners, with room for all words, and without. */
START_TEST(sent_updates)
{
	ks = sizes[_i].ks;
	vs = sizes[_i].vs;
	rng = simt_seed() + (unsigned)_i;
	lanes = 32;
	erases = 0;
	sends = 1;
	list_room = MOST;
	try_decisions();
	way = COMBINED;
	for (room = 64; room >= 8; room /= 8) {
		try_data(FEW_KEYS, 301, TILE);
		try_data(FEW_KEYS, 250, 10);
		ck_assert(!late.spilled);
		try_data(GREATEST, 201, TILE);
		try_data(RESERVED, 90, 20);
		try_data(ONE_HOME, 131, TILE);
		ck_assert(!late.spilled);
	}
	list_room = 30;
	try_data(DISTINCT, 101, TILE);
	ck_assert(late.spilled);
	try_data(DISTINCT, 70, TILE);
	list_room = 1;
	try_data(FEW_KEYS, 100, TILE);
	ck_assert(late.spilled);
	sends = 0;
}
END_TEST

TCase *simt_hashmap_combine_cases(void)
{
	TCase *tc = simt_tcase("hashmap_combine");

	tcase_add_loop_test(tc, hashmap_combine, 0, sizeof(sizes) / sizeof(sizes[0]));
	tcase_add_loop_test(tc, sent_updates, 0, sizeof(sizes) / sizeof(sizes[0]));
	return tc;
}
