/* SPDX-License-Identifier: MIT */
/* The hash map's slots with a state word, used by a single host thread and by several. */
#include "common.h"

#include <pthread.h>

#include <cuatomic/hashmap.h>

/* Positions in a bucket, as the header documents them. */
static const struct layout {
	uint32_t ks, vs, bytes, slots, first, key, value;
} layouts[] = {
	{4, 0, 16, 7, 16, 4, 8},   {4, 4, 16, 7, 16, 4, 8},   {4, 8, 16, 7, 16, 4, 8},
	{8, 0, 16, 7, 16, 8, 4},   {8, 4, 16, 7, 16, 8, 4},   {8, 8, 24, 5, 8, 8, 16},
	{4, 16, 24, 5, 8, 4, 8},   {16, 0, 24, 5, 8, 8, 4},   {16, 4, 24, 5, 8, 8, 4},
	{16, 8, 32, 3, 32, 8, 24}, {8, 16, 32, 3, 32, 8, 16}, {16, 16, 40, 3, 8, 8, 24},
};
#define LAYOUTS ((int)(sizeof(layouts) / sizeof(layouts[0])))

static const struct cua_u128 nothing;

struct map {
	struct cua_hashmap_view view;
	uint32_t ks, vs;
	uint64_t slots;
};

static struct map new_map(const struct layout *l, uint64_t n_buckets, uint64_t seed)
{
	struct map m;

	memset(&m, 0, sizeof(m));
	m.view.buckets = test_malloc(n_buckets * 128);
	m.view.counts = test_malloc(CUA_HASHMAP_STRIPES * sizeof(*m.view.counts));
	memset(m.view.buckets, 0, n_buckets * 128);
	memset(m.view.counts, 0, CUA_HASHMAP_STRIPES * sizeof(*m.view.counts));
	m.view.n_buckets = n_buckets;
	m.view.seed = seed;
	m.view.key_size = m.ks = l->ks;
	m.view.value_size = m.vs = l->vs;
	m.slots = n_buckets * cua__hashmap_state_slots(l->ks, l->vs);
	return m;
}

static void free_map(struct map *m)
{
	free(m->view.buckets);
	free(m->view.counts);
}

/* ---- keys and values, by numbers ---- */

static uint64_t mix(uint64_t n)
{
	return n == 0 ? 0 : n == 1 ? ~(uint64_t)0 : n * 0x9e3779b97f4a7c15u;
}

/* Distinct for n below 2^16. Long keys share halves: halves of two keys make a third key. */
static struct cua_u128 key_of(const struct map *m, uint64_t n)
{
	struct cua_u128 key = {0, 0};

	if (m->ks == 4)
		key.lo = n < 2 ? (uint32_t)mix(n) : (uint32_t)(n * 2654435761u);
	else if (m->ks == 8)
		key.lo = mix(n);
	else {
		key.lo = mix(n & 3);
		key.hi = mix(n >> 2);
	}
	return key;
}

static uint64_t hash_of(const struct map *m, struct cua_u128 key)
{
	return cua_hash_u64(key.lo ^ cua_hash_u64(key.hi, 1), m->view.seed);
}

/* A number below 2^32; nothing in a set. */
static struct cua_u128 value_of(const struct map *m, uint64_t n)
{
	struct cua_u128 value = {0, 0};

	if (m->vs)
		value.lo = m->vs == 8 ? n << 32 | (uint32_t)~n : n;
	if (m->vs == 16)
		value.hi = ~n;
	return value;
}

/* The number of a value; counts in *wrong if no number has this value. */
static uint64_t number_of(const struct map *m, struct cua_u128 value, uint64_t *wrong)
{
	uint64_t n = m->vs == 8 ? value.lo >> 32 : value.lo;
	struct cua_u128 right = value_of(m, n);

	*wrong += value.lo != right.lo || value.hi != right.hi || n >> 32;
	return n;
}

/* ---- calls, by numbers ---- */

#define KEY                                                                                        \
	CUA__HASHMAP_KIND(m->ks, m->vs),                                                           \
		cua__hashmap_key_of(hash_of(m, key_of(m, key)), key_of(m, key)), NULL

static int enter(const struct map *m, uint64_t key, uint64_t n, struct cua__hashmap_spot *spot)
{
	return cua__hashmap_state_enter(&m->view, KEY, value_of(m, n), spot);
}

static int find(const struct map *m, uint64_t key, struct cua_u128 *value)
{
	return cua__hashmap_state_find(&m->view, KEY, value);
}

static int locate(const struct map *m, uint64_t key, struct cua__hashmap_spot *spot)
{
	return cua__hashmap_state_locate(&m->view, KEY, spot);
}

static int change(const struct map *m, uint64_t key, struct cua__hashmap_spot *spot, uint64_t n)
{
	return cua__hashmap_state_change(&m->view, KEY, spot, value_of(m, n));
}

static int erase(const struct map *m, uint64_t key, struct cua_u128 *old)
{
	return cua__hashmap_state_erase(&m->view, KEY, old);
}

static struct cua_u128 take_operand(struct cua_u128 old, struct cua_u128 operand,
				    enum cua_update op)
{
	(void)op;
	(void)old;
	return operand;
}

static int assign(const struct map *m, uint64_t key, uint64_t n, struct cua_u128 *old)
{
	return cua__hashmap_state_update(&m->view, KEY, value_of(m, n), take_operand,
					 CUA__HASHMAP_NO_OP, old);
}

static uint64_t size_of(const struct map *m)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CUA_HASHMAP_STRIPES; i++)
		n += m->view.counts[i].inserted - m->view.counts[i].erased;
	return n;
}

/* ---- a single thread ---- */

START_TEST(layout)
{
	const struct layout *l = &layouts[_i];
	struct map m = new_map(l, 2, 0);
	struct cua_u128 key, value;
	uint64_t found = 0;

	ck_assert_uint_eq(cua__hashmap_state_slots(l->ks, l->vs), l->slots);
	ck_assert_uint_le(l->first + l->slots * l->bytes, 128);
	/* the functions see a bucket that the test filled */
	for (uint32_t i = 0; i < l->slots; i++) {
		char *slot = (char *)m.view.buckets + 128 + l->first + i * l->bytes;
		uint32_t state = 8 | 2;

		key = key_of(&m, i);
		value = value_of(&m, 100 + i);
		memcpy(slot + l->key, &key, l->ks);
		memcpy(slot + l->value, &value, l->vs);
		memcpy(slot, &state, sizeof(state));
	}
	for (uint64_t index = 0; index < m.slots; index++) {
		struct cua_u128 is_key, is_value;
		int there = cua__hashmap_state_at(&m.view, l->ks, l->vs, index, &is_key, &is_value);

		ck_assert_int_eq(there, index >= l->slots);
		if (!there)
			continue;
		key = key_of(&m, found);
		value = value_of(&m, 100 + found++);
		ck_assert(is_key.lo == key.lo && is_key.hi == key.hi);
		ck_assert(is_value.lo == value.lo && is_value.hi == value.hi);
	}
	free_map(&m);
}
END_TEST

#define MODEL 64

/*
 * Checks that the map has exactly the model's pairs: there[k] is 0, or the value's number plus 1.
 */
static void expect_model(const struct map *m, const uint64_t *there, uint64_t n_keys)
{
	uint64_t left = 0, wrong = 0;
	struct cua_u128 key, value;

	for (uint64_t k = 0; k < n_keys; k++)
		left += there[k] != 0;
	ck_assert_uint_eq(size_of(m), left);
	for (uint64_t index = 0; index < m->slots; index++) {
		uint64_t k = 0;

		if (!cua__hashmap_state_at(&m->view, m->ks, m->vs, index, &key, &value))
			continue;
		while (k < n_keys && (key_of(m, k).lo != key.lo || key_of(m, k).hi != key.hi))
			k++;
		ck_assert_uint_lt(k, n_keys);
		ck_assert_uint_ne(there[k], 0);
		ck_assert_uint_eq(number_of(m, value, &wrong), m->vs ? there[k] - 1 : 0);
		left--;
	}
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_eq(wrong, 0);
}

START_TEST(random_sequences)
{
	static const uint64_t n_buckets[] = {1, 2, 5, 70};
	uint64_t seed = test_seed("random_sequences");
	int steps = test_quick() ? 3000 : 30000;

	for (int b = 0; b < 4; b++) {
		struct map map = new_map(&layouts[_i], n_buckets[b], test_random(&seed)), *m = &map;
		/* more keys than slots in small maps */
		uint64_t n_keys = b < 3 ? 40 : MODEL, there[MODEL] = {0}, size = 0, full = 0,
			 wrong = 0;

		for (int i = 0; i < steps; i++) {
			uint64_t r = test_random(&seed), key = (r >> 8) % n_keys, n = r >> 40;
			uint64_t had = there[key];
			struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
			struct cua_u128 value = nothing;
			int expected = had               ? CUA_HASHMAP_EXISTS
				       : size < m->slots ? CUA_HASHMAP_INSERTED
							 : CUA_HASHMAP_FULL;
			int is_there = 0;

			switch (r % 8) {
			case 0:
			case 1:
				ck_assert_int_eq(enter(m, key, n, r & 8 ? &spot : NULL), expected);
				if (!had && expected == CUA_HASHMAP_INSERTED)
					there[key] = n + 1;
				value = spot.value;
				is_there = had && r & 8;
				break;
			case 2:
				ck_assert_int_eq(assign(m, key, n, r & 8 ? &value : NULL),
						 expected);
				if (expected != CUA_HASHMAP_FULL)
					there[key] = n + 1;
				is_there = had && r & 8;
				break;
			case 3:
				is_there = erase(m, key, &value);
				ck_assert_int_eq(is_there, had != 0);
				there[key] = 0;
				break;
			case 4:
			case 5:
				is_there = locate(m, key, &spot);
				ck_assert_int_eq(is_there, had != 0);
				value = spot.value;
				if (!is_there)
					break;
				/* in a set all values are equal */
				if (m->vs && r & 8) {
					spot.value = value_of(m, had);
					ck_assert_int_eq(change(m, key, &spot, n), 0);
					value = spot.value;
				} else {
					ck_assert_int_eq(change(m, key, &spot, n), 1);
					there[key] = n + 1;
				}
				break;
			default:
				is_there = find(m, key, &value);
				ck_assert_int_eq(is_there, had != 0);
				ck_assert_int_eq(find(m, key, NULL), is_there);
			}
			if (is_there)
				ck_assert_uint_eq(number_of(m, value, &wrong), m->vs ? had - 1 : 0);
			size += (there[key] != 0) - (uint64_t)(had != 0);
			full += r % 8 < 3 && expected == CUA_HASHMAP_FULL;
			if (i % 100 == 0)
				expect_model(m, there, n_keys);
		}
		expect_model(m, there, n_keys);
		ck_assert_uint_eq(wrong, 0);
		ck_assert(b >= 2 || full);
		free_map(m);
	}
}
END_TEST

/* A spot whose key was erased, or whose slot holds another key. */
START_TEST(change_of_absent_keys)
{
	struct map map = new_map(&layouts[_i], 1, 5), *m = &map;
	struct cua__hashmap_spot spot;
	struct cua_u128 value = nothing;
	uint64_t wrong = 0;

	ck_assert_int_eq(enter(m, 7, 1, &spot), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(enter(m, 7, 2, &spot), CUA_HASHMAP_EXISTS);
	ck_assert_int_eq(erase(m, 7, NULL), 1);
	ck_assert_int_eq(change(m, 7, &spot, 3), -1);
	for (uint64_t key = 20; key < 20 + m->slots; key++)
		ck_assert_int_eq(enter(m, key, key, NULL), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(change(m, 7, &spot, 3), -1);
	ck_assert_int_eq(enter(m, 7, 3, NULL), CUA_HASHMAP_FULL);
	for (uint64_t key = 20; key < 20 + m->slots; key++) {
		ck_assert_int_eq(find(m, key, &value), 1);
		ck_assert_uint_eq(number_of(m, value, &wrong), m->vs ? key : 0);
	}
	ck_assert_uint_eq(wrong, 0);
	free_map(m);
}
END_TEST

/* Keys that differ only in their lowest bit. */
static int equal_half(struct cua_u128 a, struct cua_u128 b)
{
	return a.lo >> 1 == b.lo >> 1 && a.hi == b.hi;
}

START_TEST(own_equality)
{
	struct map map = new_map(&layouts[_i], 3, 5), *m = &map;
	struct cua__hashmap_spot spot;

	for (uint64_t i = 0; i < 10; i++) {
		struct cua_u128 key = {i, 0}, value = value_of(m, i), old = nothing;
		uint64_t hash = cua_hash_u64(i >> 1, 0), wrong = 0;

		ck_assert_int_eq(cua__hashmap_state_enter(&m->view, CUA__HASHMAP_KIND(m->ks, m->vs),
							  cua__hashmap_key_of(hash, key),
							  equal_half, value, &spot),
				 i & 1 ? CUA_HASHMAP_EXISTS : CUA_HASHMAP_INSERTED);
		ck_assert_int_eq(
			cua__hashmap_state_update(&m->view, CUA__HASHMAP_KIND(m->ks, m->vs),
						  cua__hashmap_key_of(hash, key), equal_half, value,
						  take_operand, CUA__HASHMAP_NO_OP, &old),
			CUA_HASHMAP_EXISTS);
		ck_assert_int_eq(cua__hashmap_state_locate(
					 &m->view, CUA__HASHMAP_KIND(m->ks, m->vs),
					 cua__hashmap_key_of(hash, key), equal_half, &spot),
				 1);
		ck_assert_int_eq(cua__hashmap_state_change(
					 &m->view, CUA__HASHMAP_KIND(m->ks, m->vs),
					 cua__hashmap_key_of(hash, key), equal_half, &spot, value),
				 1);
		ck_assert_int_eq(cua__hashmap_state_find(&m->view, CUA__HASHMAP_KIND(m->ks, m->vs),
							 cua__hashmap_key_of(hash, key), equal_half,
							 &old),
				 1);
		ck_assert_uint_eq(number_of(m, old, &wrong), m->vs ? i : 0);
		ck_assert_uint_eq(wrong, 0);
	}
	ck_assert_uint_eq(size_of(m), 5);
	for (uint64_t i = 0; i < 10; i++) {
		struct cua_u128 key = {i ^ 1, 0};

		ck_assert_int_eq(
			cua__hashmap_state_erase(&m->view, CUA__HASHMAP_KIND(m->ks, m->vs),
						 cua__hashmap_key_of(cua_hash_u64(i >> 1, 0), key),
						 equal_half, NULL),
			!(i & 1));
	}
	ck_assert_uint_eq(size_of(m), 0);
	free_map(m);
}
END_TEST

/* ---- several threads ---- */

#define THREADS 4
#define HOT 10
#define COUNT 0xfffffu /* bits of a value's number that have the sum; the bits above name the key */

struct thread {
	pthread_t id;
	const struct map *m;
	uint64_t seed, number, n_keys;
	int rounds;
	/* its changes of each key, and the impossible results that it saw */
	uint64_t inserted[HOT], erased[HOT], added[HOT], taken[HOT], full, wrong;
};

static pthread_barrier_t barrier;

static void run_threads(struct thread *t, const struct map *m, uint64_t n_keys, int rounds,
			uint64_t *seed, void *(*body)(void *))
{
	memset(t, 0, THREADS * sizeof(*t));
	ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (uint64_t i = 0; i < THREADS; i++) {
		t[i].m = m;
		t[i].n_keys = n_keys;
		t[i].seed = test_random(seed);
		t[i].number = i;
		t[i].rounds = rounds;
		ck_assert_int_eq(pthread_create(&t[i].id, NULL, body, &t[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(t[i].id, NULL), 0);
	pthread_barrier_destroy(&barrier);
	for (int i = 0; i < THREADS; i++)
		ck_assert_uint_eq(t[i].wrong, 0);
}

/* The sum that a key's value has. */
static uint64_t count_of(struct thread *t, uint64_t key, struct cua_u128 value)
{
	uint64_t n = number_of(t->m, value, &t->wrong);

	if (!t->m->vs)
		return 0;
	t->wrong += n >> 20 != key;
	return n & COUNT;
}

static struct cua_u128 next_number(struct cua_u128 old, struct cua_u128 operand, enum cua_update op)
{
	(void)op;
	/* the operand selects the form of value_of */
	if (operand.hi) {
		old.lo++;
		old.hi--;
	} else if (operand.lo >> 32) {
		old.lo += ((uint64_t)1 << 32) - 1;
	} else {
		old.lo += operand.lo != 0;
	}
	return old;
}

static int add(struct thread *t, uint64_t key, int by_change)
{
	const struct map *m = t->m;
	struct cua__hashmap_spot spot;
	int changed, result;

	if (!by_change)
		return cua__hashmap_state_update(&m->view, KEY, value_of(m, key << 20 | 1),
						 next_number, CUA__HASHMAP_NO_OP, NULL);
	do {
		result = enter(m, key, key << 20 | 1, &spot);
		if (result != CUA_HASHMAP_EXISTS)
			return result;
		do {
			changed = change(m, key, &spot,
					 key << 20 | (count_of(t, key, spot.value) + 1));
		} while (changed == 0);
	} while (changed < 0);
	return CUA_HASHMAP_EXISTS;
}

static void *mix_main(void *arg)
{
	struct thread *t = arg;
	const struct map *m = t->m;

	/* all threads start together: otherwise a thread may end before the next begins */
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < t->rounds; i++) {
		uint64_t r = test_random(&t->seed), key = (r >> 32) % t->n_keys;
		struct cua_u128 value, there;
		struct cua__hashmap_spot spot;
		int result;

		switch (r % 8) {
		case 0:
		case 1:
		case 2:
			result = add(t, key, r & 8 ? 1 : 0);
			t->inserted[key] += result == CUA_HASHMAP_INSERTED;
			t->added[key] += result != CUA_HASHMAP_FULL;
			t->full += result == CUA_HASHMAP_FULL;
			break;
		case 3:
			result = enter(m, key, key << 20, &spot);
			t->inserted[key] += result == CUA_HASHMAP_INSERTED;
			t->full += result == CUA_HASHMAP_FULL;
			if (result == CUA_HASHMAP_EXISTS)
				count_of(t, key, spot.value);
			break;
		case 4:
			if (!erase(m, key, &value))
				break;
			t->erased[key]++;
			t->taken[key] += count_of(t, key, value);
			break;
		case 5:
			if (!cua__hashmap_state_at(&m->view, m->ks, m->vs, r % m->slots, &there,
						   &value))
				break;
			for (key = 0; key < HOT; key++)
				if (key_of(m, key).lo == there.lo && key_of(m, key).hi == there.hi)
					break;
			t->wrong += key == HOT;
			count_of(t, key, value);
			break;
		default:
			if (find(m, key, &value))
				count_of(t, key, value);
		}
	}
	return NULL;
}

/* For each key, the erased values and the present value have the sum of all additions. */
START_TEST(threads_mix)
{
	uint64_t seed = test_seed("threads_mix");
	/* two keys; more keys than slots, so that the map is often full; and room for all */
	static const struct {
		uint64_t buckets, keys;
	} shapes[] = {{1, 2}, {1, HOT}, {9, HOT}};
	int rounds = test_quick() ? 3000 : 100000;

	for (int shape = 0; shape < 3; shape++) {
		struct map map = new_map(&layouts[_i], shapes[shape].buckets, test_random(&seed)),
			   *m = &map;
		struct thread threads[THREADS];
		uint64_t full = 0, size = 0;

		run_threads(threads, m, shapes[shape].keys, rounds, &seed, mix_main);
		for (uint64_t key = 0; key < HOT; key++) {
			uint64_t balance = 0, added = 0;
			struct cua_u128 value = nothing;
			int there = find(m, key, &value);

			for (int i = 0; i < THREADS; i++) {
				balance += threads[i].inserted[key] - threads[i].erased[key];
				added += threads[i].added[key] - threads[i].taken[key];
			}
			ck_assert_uint_eq(balance, (uint64_t)there);
			if (m->vs)
				ck_assert_uint_eq(added, there ? count_of(threads, key, value) : 0);
			size += balance;
		}
		for (int i = 0; i < THREADS; i++)
			full += threads[i].full;
		ck_assert_uint_eq(size_of(m), size);
		ck_assert(m->slots < shapes[shape].keys || !full);
		ck_assert_uint_eq(threads[0].wrong, 0);
		free_map(m);
	}
}
END_TEST

/* A thread has its own keys and knows all of them. Values name the thread that owns the key. */
static void *own_main(void *arg)
{
	struct thread *t = arg;
	const struct map *m = t->m;
	uint64_t there[MODEL] = {0};

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < t->rounds; i++) {
		uint64_t r = test_random(&t->seed), other = (r >> 8) % m->slots;
		uint64_t own = other - other % THREADS + t->number,
			 key = own < m->slots ? own : t->number;
		uint64_t n = (r >> 40 & COUNT) | key << 20, had = there[key];
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
		struct cua_u128 value = nothing;
		int expected = had ? CUA_HASHMAP_EXISTS : CUA_HASHMAP_INSERTED;

		switch (r % 8) {
		case 0:
		case 1:
			t->wrong += enter(m, key, n, &spot) != expected;
			t->wrong += had && count_of(t, key, spot.value) != ((had - 1) & COUNT);
			if (!had)
				there[key] = m->vs ? n + 1 : 1;
			break;
		case 2:
			t->wrong += assign(m, key, n, NULL) != expected;
			there[key] = m->vs ? n + 1 : 1;
			break;
		case 3:
			t->wrong += locate(m, key, &spot) != (had != 0);
			if (!had)
				break;
			t->wrong += change(m, key, &spot, n) != 1;
			there[key] = m->vs ? n + 1 : 1;
			break;
		case 4:
			t->wrong += erase(m, key, &value) != (had != 0);
			t->wrong += had && count_of(t, key, value) != ((had - 1) & COUNT);
			there[key] = 0;
			break;
		case 5:
			if (find(m, other, &value))
				count_of(t, other, value);
			break;
		default:
			t->wrong += find(m, key, &value) != (had != 0);
			t->wrong += had && count_of(t, key, value) != ((had - 1) & COUNT);
		}
	}
	return NULL;
}

/* As many keys as slots, so that FULL would be wrong. */
START_TEST(threads_own_keys)
{
	uint64_t seed = test_seed("threads_own_keys");
	int rounds = test_quick() ? 3000 : 40000;

	for (uint64_t buckets = 2; buckets <= 9; buckets += 7) {
		struct map map = new_map(&layouts[_i], buckets, test_random(&seed)), *m = &map;
		struct thread threads[THREADS];

		ck_assert_uint_le(m->slots, MODEL);
		run_threads(threads, m, 0, rounds, &seed, own_main);
		free_map(m);
	}
}
END_TEST

static void *last_slot_main(void *arg)
{
	struct thread *t = arg;
	uint64_t key = 1000 + t->number;

	for (int i = 0; i < t->rounds; i++) {
		int result;

		pthread_barrier_wait(&barrier);
		result = enter(t->m, key, 1, NULL);
		t->full += result == CUA_HASHMAP_FULL;
		pthread_barrier_wait(&barrier);
		if (result == CUA_HASHMAP_INSERTED) {
			t->inserted[0]++;
			t->wrong += !erase(t->m, key, NULL);
		}
	}
	return NULL;
}

/* A single free slot and many threads: exactly one thread claims it each time. */
START_TEST(threads_last_slot)
{
	uint64_t seed = 2, won = 0, full = 0;
	int rounds = test_quick() ? 200 : 1500;
	struct map map = new_map(&layouts[_i], 20, 0), *m = &map;
	struct thread threads[THREADS];

	for (uint64_t key = 0; key < m->slots - 1; key++)
		ck_assert_int_eq(enter(m, key, 0, NULL), CUA_HASHMAP_INSERTED);
	run_threads(threads, m, 0, rounds, &seed, last_slot_main);
	for (int i = 0; i < THREADS; i++) {
		won += threads[i].inserted[0];
		full += threads[i].full;
	}
	ck_assert_uint_eq(won, (uint64_t)rounds);
	ck_assert_uint_eq(full, (uint64_t)rounds * (THREADS - 1));
	ck_assert_uint_eq(size_of(m), m->slots - 1);
	free_map(m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hashmap_state");
	TCase *tcase = tcase_create("hashmap_state");

	tcase_set_timeout(tcase, 240);
	tcase_add_loop_test(tcase, layout, 0, LAYOUTS);
	tcase_add_loop_test(tcase, random_sequences, 0, LAYOUTS);
	tcase_add_loop_test(tcase, change_of_absent_keys, 0, LAYOUTS);
	tcase_add_loop_test(tcase, own_equality, 0, LAYOUTS);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("threads");
	tcase_set_timeout(tcase, 240);
	tcase_add_loop_test(tcase, threads_mix, 0, LAYOUTS);
	tcase_add_loop_test(tcase, threads_own_keys, 0, LAYOUTS);
	tcase_add_loop_test(tcase, threads_last_slot, 0, LAYOUTS);
	suite_add_tcase(suite, tcase);
	return test_run(suite, TEST_BACKEND);
}
