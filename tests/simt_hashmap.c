/* SPDX-License-Identifier: MIT */
/* The hash map in the word layout, by lanes and by quads. */
#include <string.h>

#include <cuatomic/hashmap_quad.h>

#include "simt_suites.h"

static inline uint64_t step(uint64_t old)
{
	if (!old)
		simt_fail("an operation was asked about a value that the key never had");
	return old;
}

CUA_DEFINE_HASHMAP(slim, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_QUAD(slim, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_UPDATE(slim_step, slim, step(old) * 3 + operand)
CUA_DEFINE_HASHMAP_UPDATE_OP(slim_add, slim, CUA_UPDATE_ADD)
CUA_DEFINE_HASHMAP(broad, uint64_t, uint64_t)
CUA_DEFINE_HASHMAP_QUAD(broad, uint64_t, uint64_t)
CUA_DEFINE_HASHMAP_UPDATE(broad_step, broad, step(old) * 3 + operand)
CUA_DEFINE_HASHMAP_UPDATE_OP(broad_add, broad, CUA_UPDATE_ADD)

#define MOST_BUCKETS 32u

/* In front of the reserved slots, as in a map. */
static struct {
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	uint64_t reserved[4];
} at_counts __attribute__((aligned(64)));
static uint64_t buckets[MOST_BUCKETS * 8] __attribute__((aligned(64)));
static struct cua_hashmap_view map_view = {buckets, at_counts.counts,  NULL, 1, 0, 4,
					   4,       CUA_HASHMAP_WORDS, 0,    0, 0, 0};
static int is_broad;
static uint64_t won, lost;

/* ---- common names for maps of both widths ---- */

/* Whether finds, inserts and erases are made by execute, in which lanes of all three meet. */
static int executes;

static __attribute__((noinline)) int map_execute(enum cua_hashmap_operation operation, uint64_t key,
						 uint64_t *value)
{
	uint32_t narrow = (uint32_t)*value;
	int result;

	if (is_broad)
		return broad_execute(&map_view, operation, key, value);
	result = slim_execute(&map_view, operation, (uint32_t)key, &narrow);
	*value = narrow;
	return result;
}

static int map_insert(uint64_t key, uint64_t value)
{
	if (executes)
		return map_execute(CUA_HASHMAP_INSERT, key, &value);
	return is_broad ? broad_insert(&map_view, key, value)
			: slim_insert(&map_view, (uint32_t)key, (uint32_t)value);
}

static int map_assign(uint64_t key, uint64_t value)
{
	return is_broad ? broad_assign(&map_view, key, value)
			: slim_assign(&map_view, (uint32_t)key, (uint32_t)value);
}

static int map_find(uint64_t key, uint64_t *value)
{
	uint32_t narrow = 0;
	int there;

	if (executes)
		return map_execute(CUA_HASHMAP_FIND, key, value) == CUA_HASHMAP_EXISTS;
	there = is_broad ? broad_find(&map_view, key, value)
			 : slim_find(&map_view, (uint32_t)key, &narrow);

	if (!is_broad && there)
		*value = narrow;
	return there;
}

static int map_erase(uint64_t key)
{
	uint64_t value = 0;

	if (executes)
		return map_execute(CUA_HASHMAP_ERASE, key, &value) == CUA_HASHMAP_EXISTS;
	return is_broad ? broad_erase(&map_view, key) : slim_erase(&map_view, (uint32_t)key);
}

static int map_update(uint64_t key, uint64_t value)
{
	return cua_hashmap_update(&map_view, key, value, CUA_UPDATE_ADD);
}

static int map_exchange(uint64_t key, uint64_t value, uint64_t *old)
{
	uint32_t narrow = 0;
	int result = is_broad ? broad_exchange(&map_view, key, value, old)
			      : slim_exchange(&map_view, (uint32_t)key, (uint32_t)value, &narrow);

	if (!is_broad)
		*old = narrow;
	return result;
}

static int quad_exchange(uint32_t mask, int active, uint64_t key, uint64_t value, uint64_t *old)
{
	uint32_t narrow = 0;
	int result = is_broad ? broad_exchange_quad(&map_view, mask, active, key, value, old)
			      : slim_exchange_quad(&map_view, mask, active, (uint32_t)key,
						   (uint32_t)value, &narrow);

	if (!is_broad)
		*old = narrow;
	return result;
}

static int quad_insert(uint32_t mask, int active, uint64_t key, uint64_t value)
{
	return is_broad ? broad_insert_quad(&map_view, mask, active, key, value)
			: slim_insert_quad(&map_view, mask, active, (uint32_t)key, (uint32_t)value);
}

static int quad_find(uint32_t mask, int active, uint64_t key, uint64_t *value)
{
	uint32_t narrow = 0;
	int there = is_broad ? broad_find_quad(&map_view, mask, active, key, value)
			     : slim_find_quad(&map_view, mask, active, (uint32_t)key, &narrow);

	if (!is_broad && there)
		*value = narrow;
	return there;
}

static int quad_erase(uint32_t mask, int active, uint64_t key)
{
	return is_broad ? broad_erase_quad(&map_view, mask, active, key)
			: slim_erase_quad(&map_view, mask, active, (uint32_t)key);
}

/* ---- the documented layout ---- */

static unsigned slots(void)
{
	return is_broad ? 3 : 7;
}

static void set_slot(unsigned bucket, unsigned slot, uint64_t key, uint64_t value)
{
	uint64_t *at = buckets + 8 * bucket + (slot + 1) * (is_broad ? 2 : 1);

	at[0] = is_broad ? key : key | value << 32;
	if (is_broad)
		at[1] = value;
}

/* Whether a slot holds a pair. */
static int get_slot(unsigned bucket, unsigned slot, uint64_t *key, uint64_t *value)
{
	const uint64_t *at = buckets + 8 * bucket + (slot + 1) * (is_broad ? 2 : 1);

	*key = is_broad ? at[0] : (uint32_t)at[0];
	*value = is_broad ? at[1] : at[0] >> 32;
	return *key > (is_broad ? 1 : 0);
}

static void map_setup(void)
{
	map_view.key_size = map_view.value_size = is_broad ? 8 : 4;
	memset(buckets, 0, sizeof(buckets));
	memset(&at_counts, 0, sizeof(at_counts));
	won = lost = 0;
}

/* The key with number i, from 0, of the keys with bucket 0 as home. */
static uint64_t key_at_home(unsigned i)
{
	for (uint64_t key = is_broad ? 2 : 1;; key++)
		if (cua_hash_to_index(cua_hash_u64(key, map_view.seed), map_view.n_buckets) == 0 &&
		    i-- == 0)
			return key;
}

/*
 * Key i of a list that an attacker would choose: home 0, and the same probe sequence in 4 buckets.
 */
static uint64_t key_of_sequence(unsigned i)
{
	for (uint64_t key = is_broad ? 2 : 1;; key++) {
		const uint64_t hash = cua_hash_u64(key, map_view.seed);

		if (cua_hash_to_index(hash, 4) == 0 && (hash >> 4 & 2) == 0 && i-- == 0)
			return key;
	}
}

#define STANDS 50u /* the index of the first key that fills slots */

/* Fills n slots of bucket 0 with keys of this home. */
static void fill_home(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		set_slot(0, i, key_at_home(STANDS + i), 5);
	at_counts.counts[0].inserted = n;
}

static const char *map_check(void)
{
	uint64_t keys[MOST_BUCKETS * 7], value, size = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < CUA_HASHMAP_STRIPES; i++)
		size += at_counts.counts[i].inserted - at_counts.counts[i].erased;
	for (unsigned b = 0; b < map_view.n_buckets; b++) {
		if (buckets[8 * b] & 1)
			return "a bucket is locked for ever";
		for (unsigned i = 0; i < slots(); i++) {
			if (!get_slot(b, i, &keys[n], &value))
				continue;
			for (unsigned k = 0; k < n; k++)
				if (keys[k] == keys[n])
					return "a key is there twice";
			n++;
		}
	}
	return n == size ? NULL : "the size is wrong";
}

/* ---- lanes ---- */

/* A value names its key: value = key * 1000 + a number below 1000. Key 0 has a reserved slot. */
static void map_mixed(void)
{
	uint64_t key = simt_lane() % 3, value;

	map_insert(key, key * 1000 + simt_lane());
	if (map_find(key, &value) && value / 1000 != key)
		simt_fail("find gave another key's value");
	if (simt_lane() % 4 == 0)
		map_erase(key);
	else
		map_assign(key, key * 1000 + 500);
	if (map_find(2 - key, &value) && value / 1000 != 2 - key)
		simt_fail("find gave another key's value");
}

/* All lanes add 1 to the same key: the sum must be exact. */
static void map_add(void)
{
	map_update(7, 1);
}

static const char *map_add_check(void)
{
	const char *wrong = map_check();
	uint64_t key, value, sum = 0;

	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < slots(); i++)
			if (get_slot(b, i, &key, &value))
				sum += value;
	if (wrong)
		return wrong;
	return sum == (uint64_t)simt_blocks() * simt_block_lanes() ? NULL : "an update was lost";
}

/*
 * In a map that never erases: each of at most 32 lanes adds a bit of its own to the value of one of
 * two keys, and finds it there.
 */
static void map_bits(void)
{
	const uint64_t key = simt_lane() % 3 == 1 ? 7 : 0, bit = (uint64_t)1 << simt_lane() % 32;
	uint64_t value = 0;

	if (is_broad)
		broad_add(&map_view, key, bit);
	else
		slim_add(&map_view, (uint32_t)key, (uint32_t)bit);
	if (!map_find(key, &value) || !(value & bit))
		simt_fail("find did not find the lane's own update");
	if (map_erase(key))
		simt_fail("a key was erased from a map that never erases");
}

static const char *map_bits_check(void)
{
	uint64_t expected[2] = {0, 0}, key, value, values[2];

	for (unsigned i = 0; i < simt_blocks() * simt_block_lanes(); i++)
		expected[i % 3 == 1] |= (uint64_t)1 << i;
	values[0] = is_broad ? at_counts.reserved[1] : at_counts.reserved[0] >> 32;
	values[1] = 0;
	for (unsigned i = 0; i < slots(); i++)
		if (get_slot(0, i, &key, &value)) {
			if (key != 7)
				return "a key is there that no lane inserted";
			values[1] = value;
		}
	if (values[0] != expected[0] || values[1] != expected[1])
		return "an update was lost, or came twice";
	return map_check();
}

/*
 * The same with keys of one home, more than its bucket has slots: some of them are in the other bucket.
 */
static unsigned far_keys;

static uint64_t bits_key(unsigned lane)
{
	return key_at_home(lane % far_keys);
}

static void map_far_bits(void)
{
	const uint64_t key = bits_key(simt_lane()), bit = (uint64_t)1 << simt_lane() % 32;
	uint64_t value = 0;

	map_update(key, bit);
	if (!map_find(key, &value) || !(value & bit))
		simt_fail("find did not find the lane's own update");
}

static const char *map_far_bits_check(void)
{
	const unsigned lanes = simt_blocks() * simt_block_lanes();
	uint64_t key, value;

	for (unsigned j = 0; j < far_keys && j < lanes; j++) {
		uint64_t expected = 0, got = 0;

		for (unsigned i = j; i < lanes; i += far_keys)
			expected |= (uint64_t)1 << i;
		for (unsigned b = 0; b < map_view.n_buckets; b++)
			for (unsigned i = 0; i < slots(); i++)
				if (get_slot(b, i, &key, &value) && key == key_at_home(j))
					got += value;
		if (got != expected)
			return "an update was lost, came twice, or went to another key";
	}
	return map_check();
}

/*
 * The lanes of block 0 each write a message, then all add to the same key. A lane of another block
 * that finds the whole sum reads all messages.
 */
static uint64_t messages[8];
static uint64_t sum_key = 7; /* 7, in a slot, or 0, in a reserved slot; its value is 0 */

static void map_sum_setup(void)
{
	map_setup();
	memset(messages, 0, sizeof(messages));
	if (sum_key) {
		set_slot(0, 0, sum_key, 0);
		at_counts.counts[0].inserted = 1;
	} else {
		at_counts.reserved[0] = 2;
		at_counts.reserved[1] = 0;
	}
}

static void map_sum(void)
{
	const unsigned lane = simt_lane_in_block(), lanes = simt_block_lanes();
	uint64_t value;

	if (simt_block() == 0) {
		CUA_WRITE(messages[lane], 1);
		map_update(sum_key, 1);
		return;
	}
	if (map_find(sum_key, &value) && value == lanes)
		for (unsigned i = 0; i < lanes; i++)
			if (CUA_READ(messages[i]) != 1)
				simt_fail("the sum came before a message");
}

#define MOST_IN_TURN 48u

static struct {
	int by_quads;
	unsigned wrote[MOST_IN_TURN];
	uint64_t followed[MOST_IN_TURN]; /* the number of exchanges directly after this lane's */
} turn;

static void turn_setup(void)
{
	int by_quads = turn.by_quads;

	map_setup();
	memset(&turn, 0, sizeof(turn));
	turn.by_quads = by_quads;
}

/* The first key has a slot, the second a reserved slot. */
static uint64_t turn_key(unsigned lane)
{
	return lane % 3 == 1 ? 7 : 0;
}

/*
 * Two keys hold the last lane that exchanged. The next lane reads that lane's earlier plain write.
 */
static void map_turn(void)
{
	const unsigned lane = simt_lane();
	const uint64_t key = turn_key(lane);
	uint64_t old = 0;
	int result;

	CUA_WRITE(turn.wrote[lane], lane + 1);
	result = turn.by_quads ? quad_exchange(whole_warp(), 1, key, lane + 1, &old)
			       : map_exchange(key, lane + 1, &old);
	if (result == CUA_HASHMAP_INSERTED)
		return;
	if (result != CUA_HASHMAP_EXISTS || old < 1 || old > MOST_IN_TURN ||
	    turn_key((unsigned)old - 1) != key)
		simt_fail("an exchange gave what nobody has stored there");
	if (CUA_READ(turn.wrote[old - 1]) != old)
		simt_fail("what was done before an exchange is not there after the next one");
	cua_port_add_u64(&turn.followed[old - 1], 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
			 CUA_SPACE_GLOBAL);
}

static const char *map_turn_check(void)
{
	unsigned n = simt_blocks() * simt_block_lanes(), last = 0;

	for (unsigned i = 0; i < n; i++) {
		if (turn.followed[i] > 1)
			return "an exchange was lost";
		last += !turn.followed[i];
	}
	return last == (n > 1 ? 2u : 1u) ? map_check() : "an exchange took effect twice";
}

/* Key 7 in a slot and key 0 in its reserved slot, both with the value 1. */
static void step_setup(void)
{
	map_setup();
	set_slot(0, 0, 7, 1);
	at_counts.counts[0].inserted = 1;
	at_counts.reserved[0] = is_broad ? 2 : 2 | (uint64_t)1 << 32;
	at_counts.reserved[1] = is_broad;
}

/* An operation that is not associative. No value is 0. */
static void map_step(void)
{
	const uint64_t key = simt_lane() % 3 == 1 ? 7 : 0;

	if (is_broad)
		broad_step(&map_view, key, 1);
	else
		slim_step(&map_view, (uint32_t)key, 1);
}

static const char *map_step_check(void)
{
	uint64_t expected[2] = {1, 1}, key, values[2];

	for (unsigned i = 0; i < simt_blocks() * simt_block_lanes(); i++)
		expected[i % 3 == 1] = expected[i % 3 == 1] * 3 + 1;
	if (!get_slot(0, 0, &key, &values[1]) || key != 7)
		return "the key is not there";
	values[0] = is_broad ? at_counts.reserved[1] : at_counts.reserved[0] >> 32;
	for (unsigned i = 0; i < 2; i++)
		if (values[i] != (is_broad ? expected[i] : (uint32_t)expected[i]))
			return "a step was lost, or came twice";
	return map_check();
}

/*
 * Every other lane has an outdated word: another key has claimed the slot, or the key is in the
 * next slot, and the other lanes know it.
 */
static int has_moved;

static void stale_setup(void)
{
	map_setup();
	if (has_moved)
		set_slot(0, 0, is_broad, !is_broad); /* ERASED */
	set_slot(0, has_moved, 7, 0);
	at_counts.counts[0].inserted = 1;
}

static void map_stale(void)
{
	const uint32_t size = is_broad ? 8 : 4;
	const int stale = simt_lane() % 2 != (unsigned)has_moved;
	const struct cua_u128 key = {stale && !has_moved ? 5 : 7, 0}, one = {1, 0};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

	spot.at = (char *)buckets + 2 * size * (1 + (has_moved && !stale));
	spot.word = cua__hashmap_word_of(size, size, key, one);
	if (cua__hashmap_word_change_together(size, size, one, cua__hashmap_next_combined,
					      CUA_UPDATE_ADD, &spot) != !stale)
		simt_fail("an update of a key that is not there, or none of one that is");
}

static const char *map_stale_check(void)
{
	uint64_t key, value;

	if (!get_slot(0, has_moved, &key, &value) || key != 7)
		return "the key is not there";
	return value == simt_blocks() * simt_block_lanes() / 2 ? map_check() : "the sum is wrong";
}

static void count_result(int is_won)
{
	cua_port_add_u64(is_won ? &won : &lost, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* A single slot is free: exactly one lane claims it. */
static void map_last_slot_setup(void)
{
	map_setup();
	fill_home(slots() - 1);
}

static void map_last_slot(void)
{
	int result = map_insert(key_at_home(simt_lane()), 1);

	count_result(result == CUA_HASHMAP_INSERTED);
	if (result == CUA_HASHMAP_EXISTS)
		simt_fail("a key exists that nobody inserted");
}

static const char *map_last_slot_check(void)
{
	const char *wrong = map_check();

	if (wrong)
		return wrong;
	return won == 1 && won + lost == (uint64_t)simt_blocks() * simt_block_lanes()
		       ? NULL
		       : "not exactly one lane got the last slot";
}

/*
 * Two lanes insert the same key while a third frees a slot and a fourth claims a slot;
 * the key is inserted once.
 */
static unsigned filled_before;

static void map_once_setup(void)
{
	map_setup();
	fill_home(slots() - 1 + filled_before);
}

static void map_once(void)
{
	uint64_t value;

	if (simt_lane() < 2) {
		count_result(map_insert(key_at_home(0), 1000) == CUA_HASHMAP_INSERTED);
		if (!map_find(key_at_home(0), &value))
			simt_fail("find did not find an inserted key");
	} else if (simt_lane() == 2) {
		if (!map_erase(key_at_home(STANDS)))
			simt_fail("erase did not find a key");
	} else {
		map_insert(key_at_home(1), 1);
	}
}

static const char *map_once_check(void)
{
	const char *wrong = map_check();

	if (wrong)
		return wrong;
	return won == 1 ? NULL : "not exactly one lane inserted the key";
}

/* If several lanes erase the same key, a single lane erases it. */
static void map_erase_setup(void)
{
	map_setup();
	fill_home(2);
}

static void map_erase_one(void)
{
	if (simt_lane() == 2)
		map_assign(key_at_home(STANDS), 6);
	else
		count_result(map_erase(key_at_home(STANDS)));
}

static const char *map_erase_check(void)
{
	const char *wrong = map_check();

	if (wrong)
		return wrong;
	return won == 1 || (won == 2 && simt_blocks() * simt_block_lanes() > 2)
		       ? NULL
		       : "a key was erased twice";
}

/*
 * A writer erases and inserts a key, with another key in the slot in between, while lanes look it
 * up. The word `phase` is the writer's progress: 0 present, 1 erasing, 2 absent, 3 inserting,
 * 4 present.
 */
static uint64_t hot, cold;
static uint32_t phase;

static uint32_t phase_now(void)
{
	/* a read-modify-write, because a load may return an older phase */
	return cua_port_fetch_or_b32(&phase, 0, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static void phase_set(uint32_t value)
{
	cua_port_store_b32(&phase, value, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Its home is full, so slots are reused. */
static void map_history_setup(void)
{
	map_setup();
	fill_home(slots());
	phase = 0;
	hot = key_at_home(STANDS);
	cold = key_at_home(0);
	set_slot(0, 0, hot, hot * 1000);
}

static void map_history(void)
{
	uint32_t before, after;
	uint64_t value = 0;
	int there;

	if (simt_lane() == 0) {
		phase_set(1);
		if (!map_erase(hot))
			simt_fail("erase did not find the key");
		phase_set(2);
		map_insert(cold, cold * 1000);
		map_erase(cold);
		phase_set(3);
		if (map_insert(hot, hot * 1000 + 1) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		phase_set(4);
		return;
	}
	before = phase_now();
	there = map_find(hot, &value);
	after = phase_now();
	if (there && value / 1000 != hot)
		simt_fail("find gave another key's value");
	if (there && before >= 2 && value % 1000 != 1)
		simt_fail("find gave a value from before the erase");
	if (before == 2 && after == 2 && there)
		simt_fail("find found an absent key");
	if (((before == 0 && after == 0) || before == 4) && !there)
		simt_fail("find did not find a present key");
}

/*
 * More keys of the same home than it has slots. Each key has a single writer, so the writer knows
 * the result of each of its lookups.
 */
static void map_own(void)
{
	uint64_t key = key_at_home(simt_lane()), value = 0;

	for (int again = 0; again < 2; again++) {
		if (map_insert(key, key * 1000) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		if (!map_find(key, &value) || value != key * 1000)
			simt_fail("find did not find the lane's own key");
		if (map_update(key, 5) != CUA_HASHMAP_EXISTS || !map_find(key, &value) ||
		    value != key * 1000 + 5)
			simt_fail("the update of the lane's own key is not there");
		if (!map_erase(key) || map_find(key, &value))
			simt_fail("erase did not remove the lane's own key");
		if (again == 0 && map_insert(key, 1) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an erased key did not insert it");
		if (again == 0 && !map_erase(key))
			simt_fail("erase did not remove the lane's own key");
	}
}

/*
 * Two buckets with a single free slot. Block 0 inserts a key behind its full home. If block 1 finds
 * the map full for a key of the other home, the key of block 0 is there.
 */
static uint64_t key_of_home(unsigned bucket, unsigned i)
{
	for (uint64_t key = is_broad ? 2 : 1;; key++)
		if (cua_hash_to_index(cua_hash_u64(key, map_view.seed), map_view.n_buckets) ==
			    bucket &&
		    i-- == 0)
			return key;
}

static void map_counted_setup(void)
{
	map_setup();
	for (unsigned i = 0; i < 2 * slots() - 1; i++)
		set_slot(i / slots(), i % slots(), key_of_home(i / slots(), i % slots()), 5);
	at_counts.counts[0].inserted = 2 * slots() - 1;
}

static void map_counted(void)
{
	const uint64_t last = key_of_home(0, slots());
	uint64_t value;

	if (simt_lane() == 0)
		map_insert(last, 1);
	else if (map_insert(key_of_home(1, slots()), 1) == CUA_HASHMAP_FULL &&
		 !map_find(last, &value))
		simt_fail("a map is full without the last key");
}

/* Lanes with an odd number call for another map, which has the second half of the buckets. */
static struct cua_hashmap_view maps[2];
static struct cua_hashmap_counts other_counts[CUA_HASHMAP_STRIPES];

static void map_two_setup(void)
{
	map_setup();
	memset(other_counts, 0, sizeof(other_counts));
	map_view.n_buckets = MOST_BUCKETS / 2;
	maps[0] = maps[1] = map_view;
	maps[1].buckets = buckets + MOST_BUCKETS / 2 * 8;
	maps[1].counts = other_counts;
}

static __attribute__((noinline)) int two_execute(const struct cua_hashmap_view *map,
						 enum cua_hashmap_operation operation, uint64_t key,
						 uint64_t value)
{
	if (executes)
		return cua_hashmap_execute(map, operation, key, &value);
	return operation == CUA_HASHMAP_INSERT ? cua_hashmap_insert(map, key, value)
					       : cua_hashmap_erase(map, key);
}

static void map_two(void)
{
	const struct cua_hashmap_view *map = &maps[simt_lane() % 2];
	const uint64_t key = 10 + simt_lane() / 4;
	uint64_t value = 0;

	two_execute(map, CUA_HASHMAP_INSERT, key, key * 7 + simt_lane() % 2);
	if (!cua_hashmap_find(map, key, &value) || value != key * 7 + simt_lane() % 2)
		simt_fail("a key of the lane's map is not there, or has the other map's value");
	two_execute(map, CUA_HASHMAP_INSERT, 100 + simt_lane(), 1);
	if (two_execute(map, CUA_HASHMAP_ERASE, 100 + simt_lane(), 0) != 1 + executes)
		simt_fail("the lane's own key was not in its map");
}

static const char *map_two_check(void)
{
	const uint64_t keys = (simt_blocks() * simt_block_lanes() + 3) / 4;

	for (unsigned m = 0; m < 2; m++) {
		uint64_t size = 0;

		for (unsigned i = 0; i < CUA_HASHMAP_STRIPES; i++)
			size += maps[m].counts[i].inserted - maps[m].counts[i].erased;
		if (size != keys)
			return "the size of one of two maps is wrong";
	}
	return NULL;
}

/*
 * In maps that never erase: each lane adds 1 twice to the value of a key, most often the key of its
 * whole warp. The first addition may insert the key.
 */
enum same_way {
	SAME_KEY,      /* the same key */
	SAME_BUT_ONE,  /* a lane has another key */
	SAME_TWO_MAPS, /* the same key in two maps in turn */
	SAME_RESERVED, /* the key 0 */
	SAME_FAR,      /* the same key; its home is full */
	N_SAME
};
static enum same_way same_way;

static uint64_t same_key(unsigned lane)
{
	if (same_way == SAME_RESERVED)
		return 0;
	return key_of_home(0, same_way == SAME_BUT_ONE && lane == 1 ? slots() + 1 : slots());
}

static void map_same_setup(void)
{
	map_two_setup();
	/* the key gets another slot in the second map */
	set_slot(MOST_BUCKETS / 2, 0, key_of_home(0, 0), 0);
	other_counts[0].inserted = 1;
	if (same_way != SAME_FAR)
		return;
	for (unsigned i = 0; i < slots(); i++)
		set_slot(0, i, key_of_home(0, i), 0);
	at_counts.counts[0].inserted = slots();
}

static void map_same(void)
{
	const struct cua_hashmap_view *map = &maps[same_way == SAME_TWO_MAPS ? simt_lane() % 2 : 0];
	const uint64_t key = same_key(simt_lane());

	for (unsigned i = 1; i <= 2; i++) {
		uint64_t value = 0;

		cua_hashmap_update(map, key, 1, CUA_UPDATE_ADD);
		if (!cua_hashmap_find(map, key, &value) || value < i)
			simt_fail("find did not find the lane's own update");
	}
}

static const char *map_same_check(void)
{
	const unsigned lanes = simt_blocks() * simt_block_lanes();
	const unsigned other = same_way == SAME_TWO_MAPS ? lanes / 2 : same_way == SAME_BUT_ONE;
	uint64_t sums[2], key, value;

	sums[0] = is_broad ? at_counts.reserved[1] : at_counts.reserved[0] >> 32;
	sums[1] = 0;
	for (unsigned b = 0; b < MOST_BUCKETS; b++)
		for (unsigned i = 0; i < slots(); i++) {
			if (!get_slot(b, i, &key, &value) || !value)
				continue;
			if (key != same_key(0) && key != same_key(1))
				return "an update went to another key";
			sums[b >= MOST_BUCKETS / 2 || key != same_key(0)] += value;
		}
	if (sums[0] != 2 * (lanes - other) || sums[1] != 2 * other)
		return "an update was lost, came twice, or went to another map";
	return NULL;
}

/*
 * Each lane executes several operations on a few keys, some lanes skip, and some come late because
 * they make a call of their own before. Every erase returns the value of the key.
 */
static int64_t balance[5]; /* inserts minus erases of each key */

static uint64_t balance_key(unsigned i)
{
	/* key 0 is reserved, and key 1 in a broad map */
	return i < 2 ? i : key_at_home(i);
}

static void executed_setup(void)
{
	map_setup();
	if (filled_before)
		fill_home(slots());
	memset(balance, 0, sizeof(balance));
}

static void map_executed(void)
{
	const unsigned lane = simt_lane();

	for (unsigned i = 0; i < 4; i++) {
		const enum cua_hashmap_operation op =
			lane % 9 == 8 ? CUA_HASHMAP_SKIP
				      : (enum cua_hashmap_operation)(1 + (lane + i / 2) % 3);
		const unsigned k = (lane / 3 + i) % 5;
		const uint64_t key = balance_key(k);
		uint64_t value = key * 1000 + lane;
		int result;

		if (lane % 5 == 4)
			(void)cua_hashmap_contains(&map_view, key);
		result = map_execute(op, key, &value);
		if (result == CUA_HASHMAP_EXISTS && value / 1000 != key)
			simt_fail("an operation gave another key's value");
		if (op == CUA_HASHMAP_SKIP && result != CUA_HASHMAP_ABSENT)
			simt_fail("an operation that does nothing has a result");
		if (op == CUA_HASHMAP_INSERT
			    ? result != CUA_HASHMAP_EXISTS && result != CUA_HASHMAP_INSERTED &&
				      (result != CUA_HASHMAP_FULL || k <= (unsigned)is_broad)
			    : result != CUA_HASHMAP_EXISTS && result != CUA_HASHMAP_ABSENT)
			simt_fail("an operation gave what it cannot give");
		if (result == CUA_HASHMAP_INSERTED)
			cua_port_add_u64((uint64_t *)&balance[k], 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GLOBAL);
		else if (op == CUA_HASHMAP_ERASE && result == CUA_HASHMAP_EXISTS)
			cua_port_add_u64((uint64_t *)&balance[k], ~(uint64_t)0, CUA_RELAXED,
					 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
}

static const char *executed_check(void)
{
	int64_t present[5] = {0};
	uint64_t key, value;

	for (unsigned i = 0; i < 2; i++)
		present[i] = at_counts.reserved[2 * i] || at_counts.reserved[2 * i + 1];
	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < slots(); i++)
			for (unsigned k = 0; k < 5 && get_slot(b, i, &key, &value); k++)
				present[k] += key == balance_key(k);
	for (unsigned k = 0; k < 5; k++)
		if (present[k] != balance[k])
			return "a key is there that was erased, or is not that was inserted";
	return map_check();
}

/* A plain message, published by a value or by a key. */
static uint64_t message[2];

static void map_message_setup(void)
{
	map_setup();
	fill_home(filled_before ? slots() : 1);
	hot = key_at_home(STANDS);
	cold = key_at_home(0);
	message[0] = message[1] = 0;
	if (filled_before == 2) {
		/* the hot key is behind its home */
		struct cua__hashmap_head head = {0, 0};

		hot = key_at_home(1);
		set_slot(1, 0, hot, 5);
		at_counts.counts[0].inserted++;
		head = cua__hashmap_word_raise(is_broad, head, cua_hash_u64(hot, map_view.seed), 1);
		buckets[0] = head.lo;
		if (is_broad)
			buckets[1] = head.hi;
	}
}

static void map_message_write(void)
{
	CUA_WRITE(message[0], 1);
	map_assign(hot, 1);
	CUA_WRITE(message[1], 1);
	map_insert(cold, 1);
}

static void map_message(void)
{
	uint64_t value;

	if (simt_lane() == 0) {
		map_message_write();
		return;
	}
	if (map_find(hot, &value) && value == 1 && CUA_READ(message[0]) != 1)
		simt_fail("the value came before the message");
	if (map_find(cold, &value) && CUA_READ(message[1]) != 1)
		simt_fail("the key came before the message");
}

/* ---- quads ---- */

/* The lanes that call together: the warp, or in every second block a quad. */
static uint32_t callers(void)
{
	uint32_t base = simt_lane_in_block() % 32 / 4 * 4;

	return simt_block() % 2 ? (uint32_t)15 << base : whole_warp();
}

static void quad_mixed(void)
{
	const uint32_t mask = callers();
	uint64_t key = simt_lane() % 6, other = (simt_lane() / 2) % 6, value;
	int active = simt_lane() % 5 != 3;

	if (!quad_insert(mask, active, key, key * 1000 + simt_lane()) != !active)
		simt_fail("a lane got what it did not ask for");
	if (quad_find(mask, 1, key, &value) && value / 1000 != key)
		simt_fail("find gave another key's value");
	if (quad_erase(mask, simt_lane() % 4 == 0, key) && simt_lane() % 4)
		simt_fail("a lane erased what it did not ask for");
	if (simt_lane() % 2)
		map_assign(other, other * 1000 + 500);
	if (quad_find(mask, active, other, &value) && value / 1000 != other)
		simt_fail("find gave another key's value");
}

static void quad_own(void)
{
	const uint32_t mask = callers();
	uint64_t key = key_at_home(simt_lane()), value = 0;
	int active = simt_lane() % 4 != 2;

	for (int again = 0; again < 2; again++) {
		if (quad_insert(mask, active, key, key * 1000) !=
		    (active ? CUA_HASHMAP_INSERTED : 0))
			simt_fail("insert of an absent key did not insert it");
		if (quad_find(mask, 1, key, &value) != active || (active && value != key * 1000))
			simt_fail("find did not find the lane's own key");
		if (quad_insert(mask, active, key, 1) != (active ? CUA_HASHMAP_EXISTS : 0))
			simt_fail("insert of a present key did not find it");
		/* resembles a head with keys at distance 1 */
		if (!is_broad && quad_find(mask, 1, (uint64_t)1 << 24, &value))
			simt_fail("a head was taken for a pair");
		if (quad_erase(mask, 1, key) != active || quad_find(mask, 1, key, &value))
			simt_fail("erase did not remove the lane's own key");
	}
}

/* As many keys of the same home as there are slots; some are at large distances. */
static void quad_far(void)
{
	const uint32_t mask = callers();
	uint64_t value = 0;

	for (unsigned i = simt_lane(); i < map_view.n_buckets * slots();
	     i += simt_blocks() * simt_block_lanes())
		if (map_insert(key_at_home(i), i) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
	for (unsigned i = 0; i < map_view.n_buckets * slots(); i += simt_block_lanes()) {
		unsigned k = i + simt_lane_in_block();
		int active = k < map_view.n_buckets * slots() &&
			     k % (simt_blocks() * simt_block_lanes()) == simt_lane();

		if (quad_find(mask, active, key_at_home(k), &value) != active ||
		    (active && value != k))
			simt_fail("find did not find a key that is far from its home");
	}
	if (quad_find(mask, 1, key_at_home(60 + simt_lane()), &value))
		simt_fail("find found an absent key");
}

/* Whether the retry is by an octet. */
static int in_groups;

static int second_try(uint32_t mask, int active, uint64_t key, const struct cua_u128 value)
{
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	const uint32_t part = cua_port_lane() % CUA__OCTET_LANES;
	struct cua_u128 bits = {key, 0}, there = {0, 0};
	uint64_t hash = cua_hash_u64(key, map_view.seed);
	int result = 0;

	if (!in_groups)
		return is_broad ? cua__quad_enter_full(&map_view, CUA__HASHMAP_KIND(8, 8),
						       cua__quad_lanes_of(mask, active),
						       cua__hashmap_key_of(hash, bits), NULL, value,
						       &seen)
				: cua__quad_enter_full(&map_view, CUA__HASHMAP_KIND(4, 4),
						       cua__quad_lanes_of(mask, active),
						       cua__hashmap_key_of(hash, bits), NULL, value,
						       &seen);
	for (uint32_t i = 0; i < CUA__OCTET_LANES; i++) {
		const uint32_t lane = cua_port_lane() - part + i;
		const int has = (int)cua_port_shuffle_u32(mask, (uint32_t)active, lane);
		int now;

		bits.lo = cua_port_shuffle_u64(mask, key, lane);
		hash = cua_hash_u64(bits.lo, map_view.seed);
		now = is_broad ? cua__octet_enter_full(&map_view, CUA__HASHMAP_KIND(8, 8),
						       cua__quad_lanes_of(mask, has),
						       cua__hashmap_key_of(hash, bits), value,
						       &there)
			       : cua__octet_enter_full(&map_view, CUA__HASHMAP_KIND(4, 4),
						       cua__quad_lanes_of(mask, has),
						       cua__hashmap_key_of(hash, bits), value,
						       &there);
		if (has && now == CUA_HASHMAP_EXISTS && there.lo != 1)
			simt_fail("a group found a value that nobody inserted");
		result = part == i ? now : result;
	}
	return result;
}

/*
 * As bulk calls insert: inserts are counted at the end, and a full home defers the key to the
 * retry.
 */
static int bulk_insert(uint32_t mask, uint64_t key, uint32_t *added)
{
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	const struct cua_u128 bits = {key, 0}, value = {1, 0};
	const uint64_t hash = cua_hash_u64(key, map_view.seed);
	int again, result;

	result = is_broad ? cua__quad_enter_home(&map_view, CUA__HASHMAP_KIND(8, 8),
						 cua__quad_lanes_of(mask, 1),
						 cua__hashmap_key_of(hash, bits), NULL, value,
						 CUA_RELAXED, &seen)
			  : cua__quad_enter_home(&map_view, CUA__HASHMAP_KIND(4, 4),
						 cua__quad_lanes_of(mask, 1),
						 cua__hashmap_key_of(hash, bits), NULL, value,
						 CUA_RELAXED, &seen);
	again = second_try(mask, !result, key, value);
	if (!result)
		result = again;
	*added += cua_port_popc_u32(cua_port_ballot(mask, result == CUA_HASHMAP_INSERTED));
	if (cua_port_ballot(mask, result <= 0))
		cua__quad_count(&map_view, mask, CUA_RELAXED, added);
	return result > 0 ? result : map_insert(key, 1);
}

/* More keys than slots. */
static void quad_full(void)
{
	const uint32_t mask = whole_warp();
	uint32_t added = 0;

	for (unsigned again = 0; again < 2; again++) {
		int result = bulk_insert(mask, key_at_home(2 * simt_lane() + again), &added);

		count_result(result == CUA_HASHMAP_INSERTED);
		if (result == CUA_HASHMAP_EXISTS)
			simt_fail("a key exists that nobody inserted");
		cua_port_sync_warp(mask);
	}
	cua__quad_count(&map_view, mask, CUA_RELAXED, &added);
}

/* Each block inserts a key fewer than there are slots; some keys are erased and inserted again. */
static void quad_bulk(void)
{
	const uint32_t mask = whole_warp();
	const unsigned keys = map_view.n_buckets * slots() - 1;
	uint32_t added = 0;
	uint64_t value;

	for (unsigned i = 0; i < keys; i += simt_block_lanes()) {
		const unsigned k = (i + simt_lane_in_block()) % keys;
		int result = bulk_insert(mask, key_at_home(k), &added);

		if (k)
			count_result(result == CUA_HASHMAP_INSERTED);
		if (result == CUA_HASHMAP_FULL)
			simt_fail("a map with room is full");
		if (quad_find(mask, 1, key_at_home(k), &value) != 1 && k)
			simt_fail("find did not find an inserted key");
		/* frees slots before other keys */
		if (simt_lane_in_block() == 0)
			map_erase(key_at_home(0));
	}
	cua__quad_count(&map_view, mask, CUA_RELAXED, &added);
}

static void quad_visible_setup(void)
{
	map_setup();
	fill_home(slots());
}

/* A lane inserts a key beyond its full home. A quad that has seen the result finds the key. */
static void quad_visible(void)
{
	const uint32_t mask = whole_warp();
	uint32_t added = 0;
	uint64_t value;

	if (simt_block() == 0) {
		if (simt_lane() == 0)
			map_insert(key_at_home(0), 1);
		return;
	}
	while (!cua_port_load_b64(buckets + 8 + (is_broad ? 2 : 1), CUA_RELAXED, CUA__HASHMAP_AT))
		;
	bulk_insert(mask, key_at_home(0), &added);
	if (quad_find(mask, 1, key_at_home(0), &value) != 1)
		simt_fail("find did not find an inserted key");
	cua__quad_count(&map_view, mask, CUA_RELAXED, &added);
}

static const char *quad_bulk_check(void)
{
	const char *wrong = map_check();

	if (wrong)
		return wrong;
	return won == map_view.n_buckets * slots() - 2 ? NULL : "a key was inserted twice";
}

static const char *quad_full_check(void)
{
	const char *wrong = map_check();

	if (wrong)
		return wrong;
	return won == map_view.n_buckets * slots() ? NULL : "not all slots were used";
}

static void quad_message(void)
{
	const uint32_t mask = whole_warp();
	uint64_t value;

	if (simt_block() == 0) {
		if (simt_lane() == 0)
			map_message_write();
		return;
	}
	if (quad_find(mask, 1, hot, &value) && value == 1 && CUA_READ(message[0]) != 1)
		simt_fail("the value came before the message");
	if (quad_find(mask, 1, cold, &value) && CUA_READ(message[1]) != 1)
		simt_fail("the key came before the message");
	if (quad_insert(mask, simt_lane_in_block() == 1, cold, 2) == CUA_HASHMAP_EXISTS &&
	    CUA_READ(message[1]) != 1)
		simt_fail("the key came before the message");
	/* the slot may hold this block's own key */
	if (quad_find(mask, 1, cold, &value) && value == 1 && CUA_READ(message[1]) != 1)
		simt_fail("the key came before the message");
}

/*
 * Two keys of the same home and class, each with a free slot: behind the home, and beyond a class's
 * range.
 */
static uint64_t near_key, far_key;

static void farther_setup(void)
{
	const uint64_t seed = map_view.seed;
	uint64_t near_bucket, far_bucket;
	unsigned i = 0;

	map_setup();
	near_key = key_at_home(0);
	near_bucket = cua__hashmap_word_probe(&map_view, 0, cua_hash_u64(near_key, seed), 1);
	do {
		far_key = key_at_home(++i);
		far_bucket = cua__hashmap_word_probe(&map_view, 0, cua_hash_u64(far_key, seed), 15);
	} while (far_bucket == near_bucket ||
		 cua__hashmap_class(cua_hash_u64(far_key, seed)) !=
			 cua__hashmap_class(cua_hash_u64(near_key, seed)));
	/* the other slots hold keys that no lane looks up */
	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (i = 0; i < slots() - (b == near_bucket || b == far_bucket); i++) {
			set_slot(b, i, 1000000 + b * slots() + i, 5);
			at_counts.counts[0].inserted++;
		}
}

/*
 * After a find has found a key, the next find must find it too, while the class changes to
 * "farther".
 */
static void map_farther(void)
{
	uint64_t value;

	if (simt_block() == 0) {
		map_insert(near_key, 1);
		map_insert(far_key, 1);
	} else if (map_find(near_key, &value) && !map_find(near_key, &value)) {
		simt_fail("find did not find a key that it had found");
	}
}

/* A free slot that is nearer to the home than a present key. */
static void quad_farther(void)
{
	const uint32_t mask = whole_warp();
	const struct cua_u128 value = {1, 0};
	const int active = simt_lane_in_block() == 0;

	if (active) {
		map_insert(near_key, 1);
		map_insert(far_key, 1);
		map_erase(near_key);
	}
	cua_port_sync_warp(mask);
	if (second_try(mask, active, far_key, value) != (active ? CUA_HASHMAP_EXISTS : 0))
		simt_fail("a second try did not find a key behind a free slot");
}

/*
 * 20 keys of the same probe sequence, bounded to two buckets: as many are inserted as there are
 * slots.
 */
static void map_bounded(void)
{
	for (unsigned i = simt_lane(); i < 20; i += simt_blocks() * simt_block_lanes()) {
		const uint64_t key = key_of_sequence(i);
		uint64_t value;
		int result = i % 2 ? map_insert(key, i) : map_update(key, i);

		count_result(result == CUA_HASHMAP_INSERTED);
		if (result != CUA_HASHMAP_INSERTED && result != CUA_HASHMAP_FULL)
			simt_fail("a key exists that nobody inserted");
		if (map_find(key, &value) != (result == CUA_HASHMAP_INSERTED))
			simt_fail("find does not say what the insert did");
	}
}

static const char *map_bounded_check(void)
{
	if (won != 2 * slots())
		return "the keys got more slots than the bound allows, or fewer";
	return map_check();
}

/* The last slot of a sequence is free; it held a key before, and each lane inserts that key. */
static void bounded_once_setup(void)
{
	const unsigned last = 2 * slots() - 1;
	struct cua__hashmap_head head = {0, 0};

	map_setup();
	for (unsigned i = 0; i < last; i++)
		set_slot(i / slots(), i % slots(), key_of_sequence(i), 5);
	for (unsigned i = slots(); i <= last; i++)
		head = cua__hashmap_word_raise(is_broad, head,
					       cua_hash_u64(key_of_sequence(i), map_view.seed), 1);
	buckets[0] = head.lo;
	if (is_broad)
		buckets[1] = head.hi;
	at_counts.counts[0].inserted = last;
}

static void map_bounded_once(void)
{
	int result = map_insert(key_of_sequence(2 * slots() - 1), 1);

	count_result(result == CUA_HASHMAP_INSERTED);
	if (result == CUA_HASHMAP_FULL)
		simt_fail("a map is full for a key that another lane has inserted");
}

/* The cases of operations by lanes. */
static const struct {
	struct simt_case bounded_once, bounded, farther, mixed, add, in_turn, stale, step, last,
		once, erase, history, own, messages, two, same, counted, bits, far_bits, sum,
		executed;
} lanes = {
	.bounded_once = {.name = "map, bounded, one key",
			 .setup = bounded_once_setup,
			 .body = map_bounded_once,
			 .check = map_check},
	.bounded = {.name = "map, bounded",
		    .setup = map_setup,
		    .body = map_bounded,
		    .check = map_bounded_check},
	.farther = {.name = "map, farther",
		    .setup = farther_setup,
		    .body = map_farther,
		    .check = map_check},
	.mixed = {.name = "map, mixed", .setup = map_setup, .body = map_mixed, .check = map_check},
	.add = {.name = "map, add", .setup = map_setup, .body = map_add, .check = map_add_check},
	.bits = {.name = "map, bits",
		 .setup = map_setup,
		 .body = map_bits,
		 .check = map_bits_check},
	.far_bits = {.name = "map, far bits",
		     .setup = map_setup,
		     .body = map_far_bits,
		     .check = map_far_bits_check},
	.sum = {.name = "map, sum", .setup = map_sum_setup, .body = map_sum, .check = map_check},
	.in_turn = {.name = "map, in turn",
		    .setup = turn_setup,
		    .body = map_turn,
		    .check = map_turn_check},
	.stale = {.name = "map, stale",
		  .setup = stale_setup,
		  .body = map_stale,
		  .check = map_stale_check},
	.step = {.name = "map, step",
		 .setup = step_setup,
		 .body = map_step,
		 .check = map_step_check},
	.last = {.name = "map, last slot",
		 .setup = map_last_slot_setup,
		 .body = map_last_slot,
		 .check = map_last_slot_check},
	.once = {.name = "map, once",
		 .setup = map_once_setup,
		 .body = map_once,
		 .check = map_once_check},
	.erase = {.name = "map, erase",
		  .setup = map_erase_setup,
		  .body = map_erase_one,
		  .check = map_erase_check},
	.history = {.name = "map, history",
		    .setup = map_history_setup,
		    .body = map_history,
		    .check = map_check},
	.own = {.name = "map, own keys", .setup = map_setup, .body = map_own, .check = map_check},
	.two = {.name = "two maps",
		.setup = map_two_setup,
		.body = map_two,
		.check = map_two_check},
	.same = {.name = "one key for a warp",
		 .setup = map_same_setup,
		 .body = map_same,
		 .check = map_same_check},
	.counted = {.name = "map, counted",
		    .setup = map_counted_setup,
		    .body = map_counted,
		    .check = map_check},
	.executed = {.name = "map, executed",
		     .setup = executed_setup,
		     .body = map_executed,
		     .check = executed_check},
	.messages = {.name = "map, messages",
		     .setup = map_message_setup,
		     .body = map_message,
		     .check = map_check},
};

static void lanes_of_width(void)
{
	map_view.n_buckets = 1;
	explore_shape(lanes.mixed, 2, 1, 2);
	explore_shape(lanes.add, 3, 1, 2);
	explore_shape(lanes.last, 2, 1, 2);
	explore_shape(lanes.erase, 2, 1, 3);
	explore_shape(lanes.history, 2, 1, 2);
	try_shape(lanes.history, 1, 8, 20);
	try_shape(lanes.history, 3, 3, 20);
	try_shape(lanes.last, 2, 16, 10);
	map_view.n_buckets = 2;
	for (filled_before = 0; filled_before < 2; filled_before++) {
		explore_shape(lanes.once, 3, 1, 2);
		try_shape(lanes.once, 4, 1, 200);
		explore_shape(lanes.messages, 2, 1, 2);
		try_shape(lanes.messages, 2, 20, 5);
	}
	explore_shape(lanes.counted, 2, 1, 3);
	explore_shape(lanes.own, 2, 1, 1);
	try_shape(lanes.own, 1, slots() + 2, 20);
	map_view.n_buckets = MOST_BUCKETS;
	explore_shape(lanes.farther, 2, 1, 2);
	for (map_view.n_buckets = 1; map_view.n_buckets <= 2; map_view.n_buckets++) {
		try_shape(lanes.mixed, 1, 32, 10);
		try_shape(lanes.mixed, 3, 20, 10);
		try_shape(lanes.add, 2, 40, 5);
	}
	map_view.n_buckets = 4;
	map_view.max_probes = 2;
	explore_shape(lanes.bounded, 2, 1, 1);
	try_shape(lanes.bounded, 2, 5, 10);
	try_shape(lanes.bounded, 3, 4, 10);
	explore_shape(lanes.bounded_once, 2, 1, 2);
	try_shape(lanes.bounded_once, 2, 3, 20);
	map_view.max_probes = 0;
	for (turn.by_quads = 0; turn.by_quads < 2; turn.by_quads++) {
		map_view.n_buckets = 1;
		try_shape(lanes.in_turn, 1, 8, 100);
		try_shape(lanes.in_turn, 2, 20, 20);
	}
	turn.by_quads = 0;
	explore_shape(lanes.in_turn, 1, 4, 3);
	explore_shape(lanes.step, 1, 4, 3);
	try_shape(lanes.step, 2, 12, 20);
	for (has_moved = 0; has_moved < 2; has_moved++) {
		explore_shape(lanes.stale, 1, 2, 2);
		try_shape(lanes.stale, 2, 8, 20);
	}
}

/* A map that never erases. */
static void no_erase_of_width(void)
{
	map_view.no_erase = 1;
	map_view.n_buckets = 1;
	for (unsigned reserved = 0; reserved < 2; reserved++) {
		sum_key = reserved ? 0 : 7;
		explore_shape(lanes.sum, 2, 1, 3);
		try_shape(lanes.sum, 2, 2, 100);
		try_shape(lanes.sum, 2, 4, 100);
		try_shape(lanes.sum, 2, 8, 50);
	}
	sum_key = 7;
	explore_shape(lanes.bits, 2, 1, 3);
	try_shape(lanes.bits, 1, 32, 10);
	try_shape(lanes.bits, 4, 8, 20);
	for (map_view.n_buckets = 1; map_view.n_buckets <= 2; map_view.n_buckets++)
		try_shape(lanes.add, 2, 40, 5);
	map_view.n_buckets = 2;
	far_keys = slots() + 2;
	try_shape(lanes.far_bits, 1, 32, 20);
	try_shape(lanes.far_bits, 2, 16, 20);
	for (same_way = 0; same_way < N_SAME; same_way++) {
		try_shape(lanes.same, 1, 4, 10);
		try_shape(lanes.same, 2, 8, 10);
	}
	map_view.no_erase = 0;
}

/* The lanes of a whole warp read their homes together; see simt_together. */
static void together_of_width(void)
{
	simt_together = 1;
	for (map_view.n_buckets = 1; map_view.n_buckets <= 2; map_view.n_buckets++) {
		try_shape(lanes.mixed, 1, 8, 20);
		try_shape(lanes.mixed, 2, 12, 10);
		try_shape(lanes.mixed, 1, 40, 3);
		try_shape(lanes.add, 2, 8, 10);
	}
	map_view.n_buckets = 1;
	try_shape(lanes.history, 1, 4, 50);
	try_shape(lanes.history, 2, 4, 20);
	try_shape(lanes.last, 2, 16, 5);
	try_shape(lanes.erase, 2, 4, 50);
	map_view.n_buckets = 2;
	for (filled_before = 0; filled_before < 2; filled_before++) {
		try_shape(lanes.once, 1, 4, 50);
		try_shape(lanes.once, 2, 4, 50);
		try_shape(lanes.messages, 2, 4, 50);
		try_shape(lanes.messages, 2, 8, 20);
	}
	try_shape(lanes.own, 1, is_broad ? 6 : 12, 10);
	try_shape(lanes.two, 1, 8, 50);
	try_shape(lanes.two, 2, 16, 10);
	map_view.n_buckets = MOST_BUCKETS;
	try_shape(lanes.farther, 2, 4, 5);
	map_view.n_buckets = 4;
	map_view.max_probes = 2;
	try_shape(lanes.bounded, 3, 4, 10);
	try_shape(lanes.bounded_once, 2, 4, 20);
	map_view.max_probes = 0;
	simt_together = 0;
}

/* Finds, inserts and erases that the lanes of a warp execute together. */
static void executed_of_width(void)
{
	executes = 1;
	map_view.n_buckets = 1;
	filled_before = 0;
	explore_shape(lanes.executed, 1, 2, 1);
	explore_shape(lanes.last, 2, 1, 2);
	explore_shape(lanes.erase, 2, 1, 3);
	explore_shape(lanes.history, 2, 1, 2);
	try_shape(lanes.history, 1, 4, 50);
	try_shape(lanes.history, 2, 4, 20);
	try_shape(lanes.last, 2, 16, 5);
	try_shape(lanes.erase, 2, 4, 50);
	for (map_view.n_buckets = 1; map_view.n_buckets <= 2; map_view.n_buckets++) {
		for (filled_before = 0; filled_before < 2; filled_before++) {
			try_shape(lanes.executed, 1, 8, 20);
			try_shape(lanes.executed, 2, 12, 10);
			try_shape(lanes.executed, 3, 4, 20);
		}
		try_shape(lanes.executed, 1, 40, 3);
		try_shape(lanes.mixed, 2, 12, 10);
	}
	map_view.n_buckets = 2;
	for (filled_before = 0; filled_before < 2; filled_before++) {
		explore_shape(lanes.once, 3, 1, 1);
		try_shape(lanes.once, 1, 4, 50);
		try_shape(lanes.once, 2, 4, 50);
	}
	for (filled_before = 0; filled_before < 3; filled_before++) {
		explore_shape(lanes.messages, 2, 1, 2);
		try_shape(lanes.messages, 2, 4, 50);
		try_shape(lanes.messages, 2, 8, 20);
	}
	filled_before = 0;
	explore_shape(lanes.counted, 2, 1, 3);
	try_shape(lanes.counted, 2, 4, 50);
	try_shape(lanes.own, 1, is_broad ? 6 : 12, 10);
	try_shape(lanes.two, 1, 8, 50);
	try_shape(lanes.two, 2, 16, 10);
	map_view.n_buckets = MOST_BUCKETS;
	explore_shape(lanes.farther, 2, 1, 2);
	try_shape(lanes.farther, 2, 4, 5);
	map_view.n_buckets = 4;
	map_view.max_probes = 2;
	try_shape(lanes.bounded, 3, 4, 10);
	explore_shape(lanes.bounded_once, 2, 1, 2);
	try_shape(lanes.bounded_once, 2, 4, 20);
	map_view.max_probes = 0;
	executes = 0;
}

static void quads_of_width(void)
{
	struct simt_case mixed = {.name = "map, quads, mixed",
				  .setup = map_setup,
				  .body = quad_mixed,
				  .check = map_check};
	struct simt_case own = {.name = "map, quads, own keys",
				.setup = map_setup,
				.body = quad_own,
				.check = map_check};
	struct simt_case far = {.name = "map, quads, far keys",
				.setup = map_setup,
				.body = quad_far,
				.check = map_check};
	struct simt_case full = {.name = "map, quads, full",
				 .setup = map_setup,
				 .body = quad_full,
				 .check = quad_full_check};
	struct simt_case bulk = {.name = "map, quads, bulk",
				 .setup = map_setup,
				 .body = quad_bulk,
				 .check = quad_bulk_check};
	struct simt_case messages = {.name = "map, quads, messages",
				     .setup = map_message_setup,
				     .body = quad_message,
				     .check = map_check};
	struct simt_case visible = {.name = "map, quads, visible",
				    .setup = quad_visible_setup,
				    .body = quad_visible,
				    .check = map_check};
	struct simt_case farther = {.name = "map, quads, farther",
				    .setup = farther_setup,
				    .body = quad_farther,
				    .check = map_check};

	map_view.n_buckets = 2;
	try_shape(visible, 2, 4, 20);
	try_shape(mixed, 1, 32, 5);
	try_shape(mixed, 3, 8, 10);
	try_shape(own, 1, 8, 20);
	try_shape(own, 2, 4, 20);
	for (filled_before = 0; filled_before < 2; filled_before++) {
		try_shape(messages, 2, 4, 50);
		try_shape(messages, 2, 8, 20);
	}
	try_shape(full, 1, 8, 20);
	try_shape(full, 2, 12, 10);
	try_shape(bulk, 2, 4, 50);
	try_shape(bulk, 3, 8, 20);
	in_groups = 1;
	try_shape(visible, 2, 8, 20);
	try_shape(full, 2, 8, 10);
	try_shape(bulk, 2, 16, 10);
	try_shape(bulk, 3, 8, 20);
	map_view.n_buckets = 4;
	try_shape(bulk, 2, 8, 5);
	map_view.n_buckets = MOST_BUCKETS;
	try_shape(farther, 1, 8, 2);
	in_groups = 0;
	try_shape(farther, 1, 8, 2);
	map_view.n_buckets = 8;
	try_shape(far, 1, 4, 3);
	try_shape(far, 2, 8, 3);
}

START_TEST(hashmap)
{
	is_broad = _i;
	lanes_of_width();
}
END_TEST

START_TEST(hashmap_no_erase)
{
	is_broad = _i;
	no_erase_of_width();
	simt_together = 1;
	no_erase_of_width();
	simt_together = 0;
}
END_TEST

START_TEST(hashmap_together)
{
	is_broad = _i;
	together_of_width();
}
END_TEST

START_TEST(hashmap_executed)
{
	is_broad = _i % 2;
	simt_together = _i / 2;
	executed_of_width();
	simt_together = 0;
}
END_TEST

START_TEST(hashmap_quads)
{
	is_broad = _i;
	quads_of_width();
}
END_TEST

TCase *simt_hashmap_cases(void)
{
	TCase *tc = simt_tcase("hashmap");

	tcase_add_loop_test(tc, hashmap, 0, 2);
	tcase_add_loop_test(tc, hashmap_no_erase, 0, 2);
	tcase_add_loop_test(tc, hashmap_together, 0, 2);
	tcase_add_loop_test(tc, hashmap_executed, 0, 4);
	tcase_add_loop_test(tc, hashmap_quads, 0, 2);
	return tc;
}
