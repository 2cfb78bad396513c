/* SPDX-License-Identifier: MIT */
/*
 * Bulk calls on hash maps of 4 and 8 byte keys and values, against a serial model.
 */
#include "hashmap_words.h"

#define KEYS 1200

struct model {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	enum cua_type key_type, value_type;
	uint64_t slots;
	uint64_t size;
	uint8_t present[KEYS];
	uint64_t value[KEYS];
};

enum { INSERT, ASSIGN, ADD, MIN, MAX, AND, OR, XOR, WRITES };

static enum cua_status write_n(struct cua_hashmap *map, int op, size_t n, const void *keys,
			       const void *values, uint8_t *results)
{
	switch (op) {
	case INSERT: return cua_hashmap_insert_n(map, n, keys, values, results);
	case ASSIGN: return cua_hashmap_assign_n(map, n, keys, values, results);
	case ADD: return cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, values, results);
	case MIN: return cua_hashmap_update_n(map, CUA_UPDATE_MIN, n, keys, values, results);
	case MAX: return cua_hashmap_update_n(map, CUA_UPDATE_MAX, n, keys, values, results);
	case AND: return cua_hashmap_update_n(map, CUA_UPDATE_AND, n, keys, values, results);
	case OR: return cua_hashmap_update_n(map, CUA_UPDATE_OR, n, keys, values, results);
	default: return cua_hashmap_update_n(map, CUA_UPDATE_XOR, n, keys, values, results);
	}
}

/* One operand for all keys, at an unaligned host address. */
static enum cua_status write_value_n(struct cua_hashmap *map, int op, size_t n, const void *keys,
				     uint64_t value, enum cua_type type, uint8_t *results)
{
	static const enum cua_update ops[] = {
		[ADD] = CUA_UPDATE_ADD, [MIN] = CUA_UPDATE_MIN, [MAX] = CUA_UPDATE_MAX,
		[AND] = CUA_UPDATE_AND, [OR] = CUA_UPDATE_OR,   [XOR] = CUA_UPDATE_XOR};
	const uint32_t narrow = (uint32_t)value;
	enum cua_status status;
	char bytes[9];

	if (type == CUA_U32)
		memcpy(bytes + 1, &narrow, sizeof(narrow));
	else
		memcpy(bytes + 1, &value, sizeof(value));
	status = cua_hashmap_update_value_n(map, ops[op], n, keys, bytes + 1, results);
	/* the call must not read the operand after it returns */
	memset(bytes, 0x5a, sizeof(bytes));
	return status;
}

static uint64_t write_one(uint64_t old, uint64_t v, int op, enum cua_type type)
{
	switch (op) {
	case INSERT: return old;
	case ASSIGN: return v;
	case ADD: return truncate_word(old + v, type);
	case MIN: return v < old ? v : old;
	case MAX: return v > old ? v : old;
	case AND: return old & v;
	case OR: return old | v;
	default: return old ^ v;
	}
}

/* n distinct key numbers in random order. */
static void choose(uint64_t *seed, size_t n, uint64_t *numbers)
{
	static uint64_t all[KEYS];

	for (size_t i = 0; i < KEYS; i++)
		all[i] = i;
	for (size_t i = 0; i < n; i++) {
		size_t j = i + test_random(seed) % (KEYS - i);
		uint64_t t = all[i];

		all[i] = all[j];
		all[j] = t;
		numbers[i] = all[i];
	}
}

static void check_all(struct model *m)
{
	uint64_t keys[KEYS], values[KEYS], n = 0, present = 0, *seen = calloc(KEYS, sizeof(*seen));
	void *k = test_alloc(m->ctx, KEYS * 8), *v = test_alloc(m->ctx, KEYS * 8);

	ck_assert_ptr_nonnull(seen);
	ck_assert_uint_eq(map_size(m->map), m->size);
	ck_assert_cua(cua_hashmap_retrieve(m->map, CUA_HASHMAP_ANY, KEYS, k, v, &n));
	ck_assert_uint_eq(n, m->size);
	download_words(m->ctx, m->key_type, n, k, keys);
	download_words(m->ctx, m->value_type, n, v, values);
	for (size_t i = 0; i < n; i++) {
		size_t j;

		for (j = 0; j < KEYS && word_key(j, m->key_type) != keys[i]; j++)
			;
		ck_assert_uint_lt(j, KEYS);
		ck_assert(m->present[j] && !seen[j]);
		ck_assert_uint_eq(m->value[j], values[i]);
		seen[j] = 1;
		present++;
	}
	ck_assert_uint_eq(present, m->size);
	free(seen);
	test_free(m->ctx, k);
	test_free(m->ctx, v);
}

static void random_step(struct model *m, uint64_t *seed)
{
	size_t n = test_random(seed) % 400, op = test_random(seed) % (WRITES + 4);
	uint64_t numbers[400], keys[400], values[400];
	uint8_t flags[400];
	int full = 0, report = test_random(seed) % 4 != 0,
	    one = op >= ADD && op < WRITES && test_random(seed) % 2;
	void *k, *v, *f = test_alloc(m->ctx, 400);

	choose(seed, n, numbers);
	for (size_t i = 0; i < n; i++) {
		keys[i] = word_key(numbers[i], m->key_type);
		values[i] =
			truncate_word(test_random(seed) >> (test_random(seed) % 64), m->value_type);
		if (test_random(seed) % 16 == 0)
			values[i] = truncate_word(~(uint64_t)0, m->value_type);
		if (one)
			values[i] = values[0];
	}
	k = upload_words(m->ctx, m->key_type, n, keys);
	v = upload_words(m->ctx, m->value_type, n, values);
	if (op < WRITES) {
		if (one)
			ck_assert_cua(write_value_n(m->map, (int)op, n, k, n ? values[0] : 0,
						    m->value_type, f));
		else
			ck_assert_cua(write_n(m->map, (int)op, n, k, v, f));
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++) {
			uint64_t at = numbers[i];

			if (flags[i] == CUA_HASHMAP_EXISTS) {
				ck_assert(m->present[at]);
				m->value[at] =
					write_one(m->value[at], values[i], (int)op, m->value_type);
			} else if (flags[i] == CUA_HASHMAP_INSERTED) {
				ck_assert(!m->present[at]);
				m->present[at] = 1;
				m->value[at] = values[i];
				m->size++;
			} else {
				ck_assert_uint_eq(flags[i], CUA_HASHMAP_FULL);
				ck_assert(!m->present[at]);
				full = 1;
			}
		}
		if (full) {
			ck_assert_uint_ge(m->size, m->slots);
			ck_assert_uint_le(m->size, m->slots + reserved_slots(m->map, m->key_type,
									     m->value_type));
			ck_assert_status(cua_hashmap_status(m->map), CUA_ERROR_FULL);
		}
	} else if (op == WRITES) {
		ck_assert_cua(cua_hashmap_erase_n(m->map, n, k, f));
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++) {
			ck_assert_uint_eq(flags[i], m->present[numbers[i]]);
			m->size -= flags[i];
			m->present[numbers[i]] = 0;
		}
	} else if (op == WRITES + 1) {
		ck_assert_cua(cua_hashmap_contains_n(m->map, n, k, f));
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_eq(flags[i], m->present[numbers[i]]);
	} else {
		uint64_t got[400];

		ck_assert_cua(cua_hashmap_find_n(m->map, n, k, v, report ? f : NULL));
		download_words(m->ctx, m->value_type, n, v, got);
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++) {
			if (report)
				ck_assert_uint_eq(flags[i], m->present[numbers[i]]);
			ck_assert_uint_eq(got[i], m->present[numbers[i]] ? m->value[numbers[i]]
									 : values[i]);
		}
	}
	test_free(m->ctx, k);
	test_free(m->ctx, v);
	test_free(m->ctx, f);
}

START_TEST(random_sequences)
{
	uint64_t seed = test_seed("random_sequences");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	static const uint64_t capacities[] = {7, 300, 2 * KEYS};
	int steps = test_quick() ? 12 : 60;

	for (int t = 0; t < 4; t++)
		for (int c = 0; c < 3; c++) {
			struct model *m = calloc(1, sizeof(*m));
			struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;

			ck_assert_ptr_nonnull(m);
			m->ctx = ctx;
			m->key_type = word_types[t & 1];
			m->value_type = word_types[t >> 1];
			options.seed = test_random(&seed);
			ck_assert_cua(cua_hashmap_create(ctx, &options, m->key_type, m->value_type,
							 capacities[c], &m->map));
			ck_assert_cua(cua_hashmap_capacity(m->map, &m->slots));
			ck_assert_uint_ge(m->slots, capacities[c]);
			ck_assert_uint_lt(m->slots, 2 * capacities[c] + 7);
			for (int i = 0; i < steps; i++) {
				random_step(m, &seed);
				if (i % 8 == 7)
					check_all(m);
			}
			ck_assert_cua(cua_hashmap_clear(m->map));
			memset(m->present, 0, sizeof(m->present));
			m->size = 0;
			check_all(m);
			ck_assert_cua(cua_hashmap_status(m->map));
			for (int i = 0; i < 3; i++)
				random_step(m, &seed);
			check_all(m);
			ck_assert_cua(cua_hashmap_destroy(m->map));
			free(m);
		}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- equal keys in one call ---- */

START_TEST(equal_keys)
{
	uint64_t seed = test_seed("equal_keys");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	size_t n = test_quick() ? 3001 : 100003;
	uint64_t *keys = test_malloc(n * 8), *values = test_malloc(n * 8);
	uint8_t *flags = test_malloc(n);
	static const uint64_t distinct[] = {1, 2, 33, 1000};

	for (int t = 0; t < 4; t++)
		for (int d = 0; d < 4; d++)
			for (int op = 0; op < WRITES; op++) {
				enum cua_type kt = word_types[t & 1], vt = word_types[t >> 1];
				struct cua_hashmap *map = new_word_map(ctx, kt, vt, 1000);
				uint64_t expected[1000] = {0}, inserted[1000] = {0};
				uint64_t number[1000], got[1000];
				uint8_t seen[1000] = {0};
				void *k, *v, *f = test_alloc(ctx, n), *some;

				for (size_t i = 0; i < n; i++) {
					keys[i] = test_random(&seed) % distinct[d];
					values[i] = truncate_word(test_random(&seed), vt);
					if (seen[keys[i]] || op == INSERT || op == ASSIGN)
						expected[keys[i]] = write_one(expected[keys[i]],
									      values[i], op, vt);
					else
						expected[keys[i]] = values[i];
					seen[keys[i]] = 1;
				}
				for (size_t i = 0; i < n; i++)
					keys[i] = word_key(keys[i], kt);
				for (size_t i = 0; i < distinct[d]; i++)
					number[i] = word_key(i, kt);
				k = upload_words(ctx, kt, n, keys);
				v = upload_words(ctx, vt, n, values);
				some = upload_words(ctx, kt, distinct[d], number);
				ck_assert_cua(write_n(map, op, n, k, v, f));
				test_download(ctx, flags, f, n);
				ck_assert_cua(cua_hashmap_find_n(map, distinct[d], some, v, f));
				download_words(ctx, vt, distinct[d], v, got);
				for (size_t i = 0; i < n; i++)
					for (size_t j = 0; j < distinct[d] && distinct[d] < 50; j++)
						if (keys[i] == number[j]) {
							inserted[j] +=
								flags[i] == CUA_HASHMAP_INSERTED;
							ck_assert_uint_ne(flags[i],
									  CUA_HASHMAP_FULL);
							if (op <= ASSIGN && values[i] == got[j])
								expected[j] = got[j];
						}
				for (size_t j = 0; j < distinct[d]; j++) {
					if (!seen[j] || (op <= ASSIGN && distinct[d] >= 50))
						continue;
					ck_assert_uint_eq(got[j], expected[j]);
					if (distinct[d] < 50)
						ck_assert_uint_eq(inserted[j], 1);
				}
				/* each key is there many times and may be erased once */
				ck_assert_cua(cua_hashmap_erase_n(map, n, k, f));
				test_download(ctx, flags, f, n);
				for (size_t i = 0, m = 0; i <= n; i++) {
					if (i == n) {
						for (size_t j = 0; j < distinct[d]; j++)
							m -= seen[j];
						ck_assert_uint_eq(m, 0);
					} else {
						m += flags[i];
					}
				}
				ck_assert_uint_eq(map_size(map), 0);
				test_free(ctx, k);
				test_free(ctx, v);
				test_free(ctx, f);
				test_free(ctx, some);
				ck_assert_cua(cua_hashmap_destroy(map));
			}
	free(keys);
	free(values);
	free(flags);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Batches so large that a block processes many tiles, with few keys and with many. The map has
 * slots for all keys or for half of them. No key is erased, so a rejected key stays absent.
 */
START_TEST(large_batches)
{
	enum { MANY = 6000 };
	struct per_key {
		uint64_t items, inserted, full, combined, first, got, others;
	};
	uint64_t seed = test_seed("large_batches");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	/* several tiles for each block of a GPU with 200 multiprocessors */
	size_t n = TEST_BACKEND == CUA_BACKEND_CPU || test_quick() ? 20011 : 600011;
	uint32_t *which = test_malloc(n * sizeof(*which));
	uint64_t *keys = test_malloc(n * 8), *values = test_malloc(n * 8),
		 *got = test_malloc(MANY * 8);
	struct per_key *of = test_malloc(MANY * sizeof(*of));
	uint8_t *flags = test_malloc(n), *found = test_malloc(MANY);
	static const uint64_t distinct[] = {3, 700, 1400, MANY};

	for (int run = 0; run < 4 * WRITES * 2; run++) {
		uint64_t d = distinct[run % 4];
		int op = run / 4 % WRITES, half = run / 4 / WRITES;
		enum cua_type kt = word_types[(run + op) & 1],
			      vt = word_types[(run / 2 + half) & 1];
		struct cua_hashmap *map = new_word_map(ctx, kt, vt, half ? d / 2 : d);
		uint64_t slots = 0, present = 0;
		void *k, *v, *f = test_alloc(ctx, n), *some;

		memset(of, 0, MANY * sizeof(*of));
		for (size_t i = 0; i < n; i++) {
			struct per_key *p;

			which[i] = (uint32_t)(test_random(&seed) % d);
			p = &of[which[i]];
			keys[i] = word_key(which[i], kt);
			values[i] = truncate_word(test_random(&seed), vt);
			p->combined =
				p->items++ ? write_one(p->combined, values[i], op, vt) : values[i];
		}
		k = upload_words(ctx, kt, n, keys);
		v = upload_words(ctx, vt, n, values);
		for (size_t i = 0; i < d; i++)
			got[i] = word_key(i, kt);
		some = upload_words(ctx, kt, d, got);
		ck_assert_cua(write_n(map, op, n, k, v, f));
		test_download(ctx, flags, f, n);
		test_free(ctx, f);
		f = test_alloc(ctx, MANY);
		ck_assert_cua(cua_hashmap_capacity(map, &slots));
		for (int again = 0; again < 2; again++) {
			void *out = test_alloc(ctx, MANY * 8);

			ck_assert_cua(cua_hashmap_find_n(map, d, some, out, f));
			test_download(ctx, found, f, d);
			download_words(ctx, vt, d, out, got);
			test_free(ctx, out);
			for (size_t i = 0; i < n && !again; i++) {
				struct per_key *p = &of[which[i]];

				p->got = got[which[i]];
				if (flags[i] == CUA_HASHMAP_INSERTED) {
					p->inserted++;
					p->first = values[i];
				} else if (flags[i] == CUA_HASHMAP_FULL) {
					p->full++;
				} else {
					ck_assert_uint_eq(flags[i], CUA_HASHMAP_EXISTS);
					p->others += values[i] == p->got;
				}
			}
			present = 0;
			for (uint64_t i = 0; i < d; i++) {
				const struct per_key *p = &of[i];

				present += found[i];
				if (!again) {
					ck_assert_uint_eq(p->inserted, found[i]);
					ck_assert_uint_eq(p->full, found[i] ? 0 : p->items);
				}
				if (!found[i])
					continue;
				if (op > ASSIGN)
					ck_assert_uint_eq(got[i], p->combined);
				else if (!again && op == INSERT)
					ck_assert_uint_eq(got[i], p->first);
				else if (!again && p->items > 1)
					ck_assert_uint_ne(p->others, 0);
			}
			ck_assert_uint_eq(map_size(map), present);
			if (d > slots + reserved_slots(map, kt, vt))
				ck_assert(present >= slots &&
					  present <= slots + reserved_slots(map, kt, vt));
			ck_assert_status(cua_hashmap_status(map),
					 present >= slots && present < d ? CUA_ERROR_FULL : CUA_OK);
			/* again, without an array of results */
			ck_assert_cua(cua_hashmap_clear(map));
			ck_assert_cua(write_n(map, op, n, k, v, NULL));
		}
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, f);
		test_free(ctx, some);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	free(which);
	free(keys);
	free(values);
	free(got);
	free(of);
	free(flags);
	free(found);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(full)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t capacity = test_quick() ? 701 : 20003, slots = 0, n, got = 0, rejected = 0;
	uint64_t *keys, *values;
	uint8_t *flags, *again;
	void *k, *v, *f;

	for (int t = 0; t < 4; t++) {
		enum cua_type kt = word_types[t & 1], vt = word_types[t >> 1];
		struct cua_hashmap *map = new_word_map(ctx, kt, vt, capacity);

		ck_assert_cua(cua_hashmap_capacity(map, &slots));
		slots += reserved_slots(map, kt, vt);
		n = slots + 1000;
		keys = test_malloc(n * 8);
		values = test_malloc(n * 8);
		flags = test_malloc(n);
		again = test_malloc(n);
		for (uint64_t i = 0; i < n; i++) {
			keys[i] = word_key(i, kt);
			values[i] = truncate_word(keys[i] * 3 + 1, vt);
		}
		k = upload_words(ctx, kt, n, keys);
		v = upload_words(ctx, vt, n, values);
		f = test_alloc(ctx, n);
		/* `capacity` distinct keys always fit */
		ck_assert_cua(cua_hashmap_insert_n(map, capacity, k, v, f));
		ck_assert_uint_eq(map_size(map), capacity);
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_cua(cua_hashmap_insert_n(map, n, k, v, f));
		test_download(ctx, flags, f, n);
		ck_assert_uint_eq(map_size(map), slots);
		ck_assert_status(cua_hashmap_status(map), CUA_ERROR_FULL);
		rejected = 0;
		for (uint64_t i = 0; i < n; i++) {
			rejected += flags[i] == CUA_HASHMAP_FULL;
			if (i < capacity)
				ck_assert_uint_eq(flags[i], CUA_HASHMAP_EXISTS);
		}
		ck_assert_uint_eq(rejected, 1000);
		/* inserted pairs have their values, rejected keys are absent */
		ck_assert_cua(cua_hashmap_find_n(map, n, k, v, f));
		test_download(ctx, again, f, n);
		for (uint64_t i = 0; i < n; i++)
			ck_assert_uint_eq(again[i], flags[i] != CUA_HASHMAP_FULL);
		download_words(ctx, vt, n, v, values);
		for (uint64_t i = 0; i < n; i++)
			ck_assert_uint_eq(values[i], truncate_word(keys[i] * 3 + 1, vt));
		/*
		 * a full map accepts writes of present keys, and reuses the slot of an erased key
		 */
		ck_assert_cua(cua_hashmap_assign_n(map, capacity, k, v, f));
		test_download(ctx, again, f, capacity);
		for (uint64_t i = 0; i < capacity; i++)
			ck_assert_uint_eq(again[i], CUA_HASHMAP_EXISTS);
		ck_assert_cua(cua_hashmap_erase_n(map, 1, k, NULL));
		ck_assert_cua(cua_hashmap_insert_n(map, n, k, v, f));
		test_download(ctx, again, f, n);
		got = 0;
		for (uint64_t i = 0; i < n; i++)
			got += again[i] == CUA_HASHMAP_INSERTED;
		ck_assert_uint_eq(got, 1);
		ck_assert_uint_eq(map_size(map), slots);
		/* FULL stays until clear */
		ck_assert_cua(cua_hashmap_erase_n(map, n, k, NULL));
		ck_assert_uint_eq(map_size(map), 0);
		ck_assert_status(cua_hashmap_status(map), CUA_ERROR_FULL);
		ck_assert_cua(cua_hashmap_clear(map));
		ck_assert_cua(cua_hashmap_status(map));
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, f);
		free(keys);
		free(values);
		free(flags);
		free(again);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/*
 * New keys replace old keys at a load of one half. The map never fills, and its probes stay short.
 */
START_TEST(churn)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t batch = 1000;
	int rounds = test_quick() ? 20 : 400;
	struct cua_hashmap *map = new_word_map(ctx, CUA_U64, CUA_U64, 10 * batch);
	uint64_t *keys = test_malloc(batch * 8);
	uint8_t *flags = test_malloc(batch);
	uint64_t *old[5] = {NULL};
	uint8_t *f = test_alloc(ctx, batch);

	for (int round = 0; round < rounds; round++) {
		uint64_t **k = &old[round % 5];

		if (*k) {
			ck_assert_cua(cua_hashmap_erase_n(map, batch, *k, f));
			test_download(ctx, flags, f, batch);
			for (uint64_t i = 0; i < batch; i++)
				ck_assert_uint_eq(flags[i], 1);
			test_free(ctx, *k);
		}
		for (uint64_t i = 0; i < batch; i++)
			keys[i] = (uint64_t)round * batch + i;
		*k = upload_words(ctx, CUA_U64, batch, keys);
		ck_assert_cua(cua_hashmap_insert_n(map, batch, *k, *k, f));
		test_download(ctx, flags, f, batch);
		for (uint64_t i = 0; i < batch; i++)
			ck_assert_uint_eq(flags[i], CUA_HASHMAP_INSERTED);
	}
	ck_assert_uint_eq(map_size(map), 5 * batch);
	ck_assert_cua(cua_hashmap_status(map));
#if !TEST_CUDA
	ck_assert_uint_lt(longest_probe(map), 32);
#endif
	for (int i = 0; i < 5; i++)
		test_free(ctx, old[i]);
	test_free(ctx, f);
	free(keys);
	free(flags);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- counts in backend memory, unaligned arrays, many sizes ---- */

START_TEST(sizes_and_offsets)
{
	static const size_t sizes[] = {1, 2, 31, 33, 255, 257, 1023, 1025, 4099};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t numbers[4100], *result = test_alloc(ctx, 16), host = 0;
	uint8_t flags[4100];
	void *k, *v, *k2, *v2;
	uint8_t *f = test_alloc(ctx, 4100);

	for (size_t i = 0; i < 4100; i++)
		numbers[i] = word_key(i, CUA_U64);
	for (int t = 0; t < 4; t++) {
		enum cua_type kt = word_types[t & 1], vt = word_types[t >> 1];
		size_t ks = cua_type_size(kt), vs = cua_type_size(vt);

		for (size_t i = 0; i < 4100; i++)
			numbers[i] = word_key(i, kt);
		k = upload_words(ctx, kt, 4100, numbers);
		v = upload_words(ctx, vt, 4100, numbers);
		k2 = test_alloc(ctx, 4100 * 8);
		v2 = test_alloc(ctx, 4100 * 8);
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			size_t n = sizes[s];
			struct cua_hashmap *map = new_word_map(ctx, kt, vt, n);
			uint64_t got[4100], read = 0;

			/* arrays that begin at their second element */
			ck_assert_cua(cua_hashmap_insert_n(map, n, (char *)k + ks, (char *)v + vs,
							   f + 1));
			ck_assert_cua(cua_hashmap_size(map, result));
			test_download(ctx, &host, result, 8);
			ck_assert_uint_eq(host, n);
			ck_assert_cua(
				cua_hashmap_find_n(map, n, (char *)k + ks, (char *)v2 + vs, f + 1));
			download_words(ctx, vt, n, (char *)v2 + vs, got);
			test_download(ctx, flags, f + 1, n);
			for (size_t i = 0; i < n; i++) {
				ck_assert_uint_eq(flags[i], 1);
				ck_assert_uint_eq(got[i], truncate_word(numbers[i + 1], vt));
			}
			/* room for fewer pairs than the map holds, and for more */
			ck_assert_cua(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, n / 2,
							   n / 2 ? k2 : NULL, n / 2 ? v2 : NULL,
							   result + 1));
			test_download(ctx, &host, result + 1, 8);
			ck_assert_uint_eq(host, n);
			ck_assert_cua(
				cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 4100, k2, v2, &read));
			ck_assert_uint_eq(read, n);
			ck_assert_cua(cua_hashmap_contains_n(map, n, k2, f));
			test_download(ctx, flags, f, n);
			for (size_t i = 0; i < n; i++)
				ck_assert_uint_eq(flags[i], 1);
			ck_assert_cua(cua_hashmap_destroy(map));
		}
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, k2);
		test_free(ctx, v2);
	}
	test_free(ctx, result);
	test_free(ctx, f);
	cua_context_destroy(ctx);
}
END_TEST

/* More than 2^31 elements in one call, all with the same key. */
START_TEST(many)
{
	const size_t n = ((size_t)1 << 31) + 7;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t free_bytes = 0, total_bytes = 0;
	struct cua_hashmap *map;
	uint32_t seven = 7, one = 1, value = 0;
	uint32_t *keys, *values, *out;

	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total_bytes));
	if (test_quick() || TEST_BACKEND == CUA_BACKEND_CPU || free_bytes < 8 * n + 8 * (n / 4)) {
		printf("many: skipped\n");
		cua_context_destroy(ctx);
		return;
	}
	keys = test_alloc(ctx, 4 * n);
	values = test_alloc(ctx, 4 * n);
	out = test_alloc(ctx, 4);
	ck_assert_cua(cua_fill(ctx, keys, n, 4, &seven));
	ck_assert_cua(cua_fill(ctx, values, n, 4, &one));
	map = new_word_map(ctx, CUA_U32, CUA_U32, 100);
	ck_assert_cua(cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, values, NULL));
	ck_assert_cua(cua_hashmap_find_n(map, 1, keys, out, NULL));
	test_download(ctx, &value, out, 4);
	ck_assert_uint_eq(value, (uint32_t)n);
	ck_assert_uint_eq(map_size(map), 1);
	ck_assert_cua(cua_hashmap_destroy(map));
	test_free(ctx, keys);
	test_free(ctx, values);
	test_free(ctx, out);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * More than 2^32 keys in less and in more than 64 GiB: size, hits, misses and erases. Skipped if
 * there is too little memory.
 */
#define LARGE_LOG 32
#define LARGE_PART_LOG 27

START_TEST(large)
{
	const size_t part = (size_t)1 << LARGE_PART_LOG, n = ((size_t)1 << LARGE_LOG) + part;
	const enum cua_type value_type = _i ? CUA_U64 : CUA_NONE;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t free_bytes = 0, total_bytes = 0, capacity;
	uint64_t *keys, *values, *host, *host_values;
	struct cua_hashmap *map;
	uint8_t *found, *host_found;

	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total_bytes));
	/* 64 bytes hold 7 keys or 3 pairs; a ninth of the slots stays free */
	if (test_quick() || test_traced() ||
	    free_bytes / 64 < (n + n / 8) / (_i ? 3 : 7) + 5 * part / 8) {
		printf("large, %d: skipped\n", _i);
		cua_context_destroy(ctx);
		return;
	}
	map = new_word_map(ctx, CUA_U64, value_type, n + n / 8);
	ck_assert_cua(cua_hashmap_capacity(map, &capacity));
	ck_assert_uint_ge(capacity, n + n / 8);
	keys = test_alloc(ctx, 8 * part);
	values = test_alloc(ctx, 8 * part);
	found = test_alloc(ctx, part);
	host = test_malloc(8 * part);
	host_values = test_malloc(8 * part);
	host_found = test_malloc(part);
	/*
	 * Pass 0 inserts, pass 1 finds every 16th part, pass 2 erases these parts, pass 3 finds
	 * them again. The keys of the part after the last are never inserted.
	 */
	for (int pass = 0; pass < 4; pass++) {
		for (size_t p = 0; p <= n / part; p++) {
			const int there = p < n / part && (pass < 3 || p % 16 != 0);
			const int looks = pass == 1 || pass == 3;

			if (pass == 0 ? p == n / part : p % 16 != 0 && p + 2 < n / part)
				continue;
			for (size_t i = 0; i < part; i++) {
				host[i] = word_key(p * part + i, CUA_U64);
				host_values[i] = ~host[i];
			}
			ck_assert_cua(cua_copy(ctx, keys, host, 8 * part));
			ck_assert_cua(cua_copy(ctx, values, host_values, 8 * part));
			if (pass == 0)
				ck_assert_cua(cua_hashmap_insert_n(map, part, keys,
								   _i ? values : NULL, found));
			else if (pass == 2 && p % 16 == 0)
				ck_assert_cua(cua_hashmap_erase_n(map, part, keys, found));
			else if (_i)
				ck_assert_cua(cua_hashmap_find_n(map, part, keys, values, found));
			else
				ck_assert_cua(cua_hashmap_contains_n(map, part, keys, found));
			test_download(ctx, host_found, found, part);
			for (size_t i = 0; i < part; i++)
				if (host_found[i] != (pass == 0 ? CUA_HASHMAP_INSERTED : there))
					ck_abort_msg("pass %d, key %zu: %u", pass, p * part + i,
						     host_found[i]);
			if (!_i || !looks || !there)
				continue;
			test_download(ctx, host_values, values, 8 * part);
			for (size_t i = 0; i < part; i++)
				if (host_values[i] != ~host[i])
					ck_abort_msg("pass %d, value of key %zu", pass,
						     p * part + i);
		}
		ck_assert_uint_eq(map_size(map), pass < 2 ? n : n - (n / part + 15) / 16 * part);
	}
	ck_assert_cua(cua_hashmap_destroy(map));
	test_free(ctx, keys);
	test_free(ctx, values);
	test_free(ctx, found);
	free(host);
	free(host_values);
	free(host_found);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap");
	TCase *tcase = tcase_create("hashmap");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, random_sequences);
	tcase_add_test(tcase, equal_keys);
	tcase_add_test(tcase, large_batches);
	tcase_add_test(tcase, full);
	tcase_add_test(tcase, churn);
	tcase_add_test(tcase, sizes_and_offsets);
	tcase_add_test(tcase, many);
	tcase_add_loop_test(tcase, large, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
