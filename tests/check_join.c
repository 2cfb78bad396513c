/* SPDX-License-Identifier: MIT */
/* Joins and cua_is_in on either backend, compared with a serial model. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <math.h>

#include "key_arrays.h"
/* ---- calls and the model ---- */

/* A call; the arrays are in host memory. */
struct join_call {
	enum cua_type key_type;
	enum cua_join_kind kind;
	enum cua_type index_type;
	size_t n[2]; /* left, right */
	char *keys[2];
	uint64_t capacity;
};

/* A row with its key as a number. Equal keys have equal numbers. */
struct model_row {
	uint64_t hi, lo;
	size_t row;
};

static struct model_row model_row(enum cua_type type, const char *keys, size_t i)
{
	struct model_row r = {.row = i};
	double v = 0;
	float f;

	switch (type) {
	case CUA_F32: memcpy(&f, keys + 4 * i, 4), v = f; break;
	case CUA_F64: memcpy(&v, keys + 8 * i, 8); break;
	case CUA_U128:
		memcpy(&r.lo, keys + 16 * i, 8);
		memcpy(&r.hi, keys + 16 * i + 8, 8);
		return r;
	default: memcpy(&r.lo, keys + cua_type_size(type) * i, cua_type_size(type)); return r;
	}
	if (isnan(v)) {
		r.hi = 1;
	} else {
		v = v == 0 ? 0 : v;
		memcpy(&r.lo, &v, 8);
	}
	return r;
}

static int by_key(const void *a, const void *b)
{
	const struct model_row *x = a, *y = b;

	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static int by_key_and_row(const void *a, const void *b)
{
	const struct model_row *x = a, *y = b;
	const int order = by_key(a, b);

	return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

/* The right rows by key and row. */
static struct model_row *sorted_rows(const struct join_call *c)
{
	struct model_row *rows = test_malloc((c->n[1] + 1) * sizeof(*rows));

	for (size_t i = 0; i < c->n[1]; i++)
		rows[i] = model_row(c->key_type, c->keys[1], i);
	qsort(rows, c->n[1], sizeof(*rows), by_key_and_row);
	return rows;
}

/* The first of the n sorted rows with this key, or n. *matches becomes their number. */
static size_t matches_of(const struct model_row *rows, size_t n, const struct model_row *key,
			 size_t *matches)
{
	size_t low = 0, high = n, end;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (by_key(&rows[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < n && !by_key(&rows[end], key);)
		end++;
	*matches = end - low;
	return low;
}

struct model_pairs {
	uint64_t pairs, stored;
	uint64_t *left, *right;
};

/* The first pairs of the demand, at most `most` of them. */
static struct model_pairs pairs_of(const struct join_call *c, uint64_t most)
{
	struct model_row *rows = sorted_rows(c);
	struct model_pairs m = {0};
	size_t room = 1024;

	m.left = test_malloc(room * 8);
	m.right = test_malloc(room * 8);
	for (size_t i = 0; i < c->n[0]; i++) {
		const struct model_row key = model_row(c->key_type, c->keys[0], i);
		size_t matches, at = matches_of(rows, c->n[1], &key, &matches);
		const size_t more = matches || c->kind != CUA_JOIN_LEFT ? matches : 1;

		m.pairs += more;
		for (size_t k = 0; k < more && m.stored < most; k++) {
			if (m.stored == room) {
				room *= 2;
				m.left = realloc(m.left, room * 8);
				m.right = realloc(m.right, room * 8);
				ck_assert(m.left && m.right);
			}
			m.left[m.stored] = i;
			m.right[m.stored++] = matches ? rows[at + k].row : UINT64_MAX;
		}
	}
	free(rows);
	return m;
}

static void free_pairs(struct model_pairs *m)
{
	free(m->left);
	free(m->right);
}

/* ---- input ---- */

enum spread {
	ONE, /* a single key on both sides */
	FEW,
	SOME,   /* several rows a key */
	UNIQUE, /* right keys differ */
	DISJOINT,
	HEAVY,   /* a key has half of the rows of both sides */
	HALF,    /* half of the left keys occur in the right array, once or twice */
	SPECIAL, /* extreme keys, zeros and NaN */
	SPREADS
};
static const char *const spread_names[] = {"one",      "few",   "some", "unique",
					   "disjoint", "heavy", "half", "special"};

static uint64_t random_number(enum spread spread, int side, size_t i, size_t n, uint64_t *seed)
{
	const uint64_t r = test_random(seed);

	switch (spread) {
	case ONE: return 5;
	case FEW: return r % 40;
	case SOME: return r % (n / 4 + 1);
	case UNIQUE: return side ? i : r % (2 * n + 1);
	case DISJOINT: return 2 * (r % (n + 1)) + (uint64_t)side;
	case HEAVY: return r & 1 ? 1 : (r >> 1) % (n + 1);
	default: return side ? i / 2 * 2 : r % (2 * n + 1);
	}
}

static void make_keys(struct join_call *c, enum spread spread, uint64_t *seed)
{
	const uint64_t mix = test_random(seed) | 1;

	for (int side = 0; side < 2; side++) {
		c->keys[side] = test_malloc(c->n[side] * 16 + 16);
		for (size_t i = 0; i < c->n[side]; i++) {
			const uint64_t number = random_number(spread, side, i, c->n[1], seed);

			store_key(c->key_type, c->keys[side], i, number,
				  spread == SPECIAL ? special_key(c->key_type, test_random(seed))
						    : number * mix);
		}
	}
}

static void free_call(struct join_call *c)
{
	free(c->keys[0]);
	free(c->keys[1]);
}

static void describe(const struct join_call *c, const char *what, char text[256])
{
	snprintf(text, 256, "%s: keys %s, %s, index %s, %zu x %zu rows, capacity %llu", what,
		 cua_type_name(c->key_type), c->kind == CUA_JOIN_LEFT ? "left" : "inner",
		 c->index_type ? cua_type_name(c->index_type) : "default", c->n[0], c->n[1],
		 (unsigned long long)c->capacity);
}

/* ---- results ---- */

static size_t index_size(const struct join_call *c)
{
	return c->index_type == CUA_U32 ? 4 : 8;
}

/* A row number of the output; the number of no row is UINT64_MAX. */
static uint64_t index_at(const struct join_call *c, const char *array, size_t i)
{
	uint64_t wide;
	uint32_t narrow;

	if (index_size(c) == 8) {
		memcpy(&wide, array + 8 * i, 8);
		return wide;
	}
	memcpy(&narrow, array + 4 * i, 4);
	return narrow == UINT32_MAX ? UINT64_MAX : narrow;
}

static void compare(const struct join_call *c, const struct model_pairs *m, const char *what,
		    uint64_t pairs, const char *left, const char *right)
{
	char text[256];

	describe(c, what, text);
	EXPECT(pairs == m->pairs, "%s: %llu pairs, not %llu", text, (unsigned long long)pairs,
	       (unsigned long long)m->pairs);
	for (size_t i = 0; i < m->stored; i++) {
		const uint64_t l = left ? index_at(c, left, i) : m->left[i];
		const uint64_t r = right ? index_at(c, right, i) : m->right[i];

		EXPECT(l == m->left[i] && r == m->right[i],
		       "%s: pair %zu is %llu, %llu and not %llu, %llu", text, i,
		       (unsigned long long)l, (unsigned long long)r, (unsigned long long)m->left[i],
		       (unsigned long long)m->right[i]);
	}
}

static struct cua_join_options options_of(const struct join_call *c)
{
	struct cua_join_options o = CUA_JOIN_OPTIONS_INIT;

	o.kind = c->kind;
	o.index_type = c->index_type;
	return o;
}

/* Runs the call with outputs that have room for the stored pairs only. */
static void check(struct cua_context *ctx, const struct join_call *c, const char *what)
{
	static unsigned turn;
	const struct cua_join_options o = options_of(c);
	const size_t key_size = cua_type_size(c->key_type);
	struct model_pairs m = pairs_of(c, c->capacity);
	const size_t bytes = (size_t)m.stored * index_size(c);
	uint64_t pairs = 77, *at = test_alloc(ctx, 8);
	char *keys[2], *left, *right;

	ck_assert_cua(cua_context_set_threads(ctx, 1 + turn * 5 % 7));
	for (int side = 0; side < 2; side++)
		keys[side] = uploaded(ctx, c->keys[side], c->n[side] * key_size);
	left = turn % 9 == 7 ? NULL : poisoned(ctx, bytes);
	right = turn % 9 == 8 ? NULL : poisoned(ctx, bytes);
	/* a capacity above the memory is allowed only if all pairs fit */
	ck_assert_cua(cua_join(ctx, &o, c->key_type, c->n[0], keys[0], c->n[1], keys[1],
			       m.stored < c->capacity ? m.stored : c->capacity, left, right,
			       turn % 2 ? at : &pairs));
	if (turn++ % 2)
		test_download(ctx, &pairs, at, 8);
	left = left ? downloaded(ctx, left, bytes) : NULL;
	right = right ? downloaded(ctx, right, bytes) : NULL;
	compare(c, &m, what, pairs, left, right);
	for (int side = 0; side < 2; side++)
		test_free(ctx, keys[side]);
	test_free(ctx, at);
	free(left);
	free(right);
	free_pairs(&m);
}

static void check_is_in(struct cua_context *ctx, const struct join_call *c, const char *what)
{
	static unsigned turn;
	struct cua_is_in_options o = CUA_IS_IN_OPTIONS_INIT;
	const size_t key_size = cua_type_size(c->key_type);
	struct model_row *rows = sorted_rows(c);
	char *keys[2], *out = poisoned(ctx, c->n[0]);
	char text[256];

	describe(c, what, text);
	ck_assert_cua(cua_context_set_threads(ctx, 1 + turn * 3 % 5));
	o.invert = (int)(turn % 3 / 2) * 77;
	for (int side = 0; side < 2; side++)
		keys[side] = uploaded(ctx, c->keys[side], c->n[side] * key_size);
	ck_assert_cua(cua_is_in(ctx, turn % 3 ? &o : NULL, c->key_type, c->n[0], keys[0], c->n[1],
				keys[1], (uint8_t *)out));
	out = downloaded(ctx, out, c->n[0]);
	for (size_t i = 0; i < c->n[0]; i++) {
		const struct model_row key = model_row(c->key_type, c->keys[0], i);
		size_t matches;

		matches_of(rows, c->n[1], &key, &matches);
		EXPECT(out[i] == ((matches != 0) != (turn % 3 == 2)), "%s: is_in %zu is %d", text,
		       i, out[i]);
	}
	turn++;
	for (int side = 0; side < 2; side++)
		test_free(ctx, keys[side]);
	free(out);
	free(rows);
}

/* ---- random calls ---- */

static enum cua_type any_index(uint64_t r)
{
	return r % 3 == 0 ? CUA_NONE : r % 3 == 1 ? CUA_U32 : CUA_U64;
}

static void make_call(struct join_call *c, enum spread spread, uint64_t r, uint64_t *seed)
{
	struct model_pairs m;

	c->kind = (enum cua_join_kind)(r % 3);
	c->index_type = any_index(r >> 8);
	c->capacity = UINT64_MAX;
	make_keys(c, spread, seed);
	if (r >> 16 & 3)
		return;
	m = pairs_of(c, 0);
	c->capacity = r >> 18 & 1 ? (r >> 20) % (m.pairs + 1) : (r >> 20) % 3 + m.pairs;
	free_pairs(&m);
}

/* Every spread with a type of keys. */
START_TEST(test_types)
{
	static const size_t sizes[] = {0, 1, 2, 31, 33, 300, 900};
	const int turns = test_traced() ? 1 : test_scale(2, 8, 60);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_types");

	for (int k = 0; k < SPREADS * turns; k++) {
		const uint64_t r = test_random(&seed);
		struct join_call c = {.key_type = key_types[_i]};
		const enum spread spread = (enum spread)(k % SPREADS);

		c.n[0] = sizes[(r >> 40) % COUNT(sizes)];
		c.n[1] = sizes[(r >> 48) % COUNT(sizes)];
		make_call(&c, spread, r, &seed);
		check(ctx, &c, spread_names[spread]);
		check_is_in(ctx, &c, spread_names[spread]);
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Many rows, for several threads and blocks. */
START_TEST(test_large)
{
	static const enum spread spreads[] = {SOME, UNIQUE, DISJOINT, HALF};
	const size_t n = test_traced() ? 3000 : (size_t)test_scale(20000, 150000, 2000000);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_large");

	for (int k = 0; k < (test_traced() ? 2 : 6); k++) {
		const uint64_t r = test_random(&seed);
		struct join_call c = {.key_type = key_types[(r >> 32) % COUNT(key_types)]};

		c.n[0] = k % 3 == 1 ? n / 50 : n + (size_t)k;
		c.n[1] = k % 3 == 2 ? n / 50 : n + (size_t)k * 3;
		make_call(&c, spreads[_i], r, &seed);
		check(ctx, &c, spread_names[spreads[_i]]);
		check_is_in(ctx, &c, spread_names[spreads[_i]]);
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Few rows with many pairs: all by all, and a key with half of the rows. */
START_TEST(test_heavy)
{
	const size_t n = test_traced() ? 60 : (size_t)test_scale(200, 1000, 3000);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_heavy");

	for (int k = 0; k < 12; k++) {
		const uint64_t r = test_random(&seed);
		struct join_call c = {.key_type = key_types[k % (int)COUNT(key_types)]};
		const enum spread spread = k % 2 ? HEAVY : ONE;

		c.n[0] = k % 3 == 0 ? 3 : n;
		c.n[1] = k % 3 == 1 ? 3 : n + 7;
		make_call(&c, spread, r, &seed);
		check(ctx, &c, spread_names[spread]);
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* More than 2^32 pairs from few rows; the first pairs are stored. */
START_TEST(test_many_pairs)
{
	const size_t n = test_traced() ? 3000 : 70000, stored = 80000;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_join_options o = CUA_JOIN_OPTIONS_INIT;
	uint32_t *host = test_malloc(n * 4), *keys, *left = test_alloc(ctx, stored * 4);
	uint32_t *got = test_malloc(stored * 4), *right = test_alloc(ctx, stored * 4);
	uint64_t pairs = 77;

	for (size_t i = 0; i < n; i++)
		host[i] = 9;
	/* the first row has no pair, and the last has one with itself */
	host[0] = 1;
	host[n - 1] = 2;
	keys = test_upload(ctx, host, n * 4);
	o.index_type = CUA_U32;
	ck_assert_cua(cua_join(ctx, &o, CUA_U32, n - 1, keys + 1, n - 1, keys + 1, stored, left,
			       right, &pairs));
	ck_assert_uint_eq(pairs, (uint64_t)(n - 2) * (n - 2) + 1);
	test_download(ctx, got, left, stored * 4);
	for (size_t i = 0; i < stored; i++)
		EXPECT(got[i] == i / (n - 2), "left %zu is %u", i, got[i]);
	test_download(ctx, got, right, stored * 4);
	for (size_t i = 0; i < stored; i++)
		EXPECT(got[i] == i % (n - 2), "right %zu is %u", i, got[i]);
	o.kind = CUA_JOIN_LEFT;
	ck_assert_cua(cua_join(ctx, &o, CUA_U32, n, keys, n - 1, keys + 1, 1, left, right, &pairs));
	ck_assert_uint_eq(pairs, (uint64_t)(n - 2) * (n - 2) + 2);
	test_download(ctx, got, left, 4);
	ck_assert_uint_eq(got[0], 0);
	test_download(ctx, got, right, 4);
	ck_assert_uint_eq(got[0], UINT32_MAX);
	test_free(ctx, keys);
	test_free(ctx, left);
	test_free(ctx, right);
	free(host);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
/* Stored pairs beyond 2^32, on a device that has the memory for a row number of each. */
START_TEST(test_stored_pairs)
{
	const uint64_t each = 66000, pairs_expected = each * each;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_join_options o = CUA_JOIN_OPTIONS_INIT;
	uint32_t *host, *keys, *out, got[3];
	size_t free_bytes = 0, total = 0;
	uint64_t pairs = 77;

	ck_assert_cuda(cudaMemGetInfo(&free_bytes, &total));
	if (test_quick() || test_traced() || free_bytes < pairs_expected * 4 + ((size_t)1 << 30)) {
		cua_context_destroy(ctx);
		return;
	}
	host = test_malloc(each * 4);
	for (size_t i = 0; i < each; i++)
		host[i] = 9;
	keys = test_upload(ctx, host, each * 4);
	out = test_alloc(ctx, pairs_expected * 4);
	o.index_type = CUA_U32;
	for (int side = 0; side < 2; side++) {
		ck_assert_cua(cua_join(ctx, &o, CUA_U32, each, keys, each, keys, pairs_expected,
				       side ? NULL : out, side ? out : NULL, &pairs));
		ck_assert_uint_eq(pairs, pairs_expected);
		for (uint64_t i = 0; i < pairs; i += pairs / 1009) {
			test_download(ctx, got, out + i, 4);
			ck_assert_uint_eq(got[0], side ? i % each : i / each);
		}
		test_download(ctx, got, out + pairs - 3, 12);
		for (uint64_t i = 0; i < 3; i++)
			ck_assert_uint_eq(got[i], each - 1 - (side ? 2 - i : 0));
	}
	test_free(ctx, keys);
	test_free(ctx, out);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* Every capacity around the demand. */
START_TEST(test_capacity)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_capacity");

	for (int turn = 0; turn < 2 * CAPACITIES; turn++) {
		struct join_call c = {.key_type = CUA_I32, .n = {500, 700}};
		struct model_pairs m;

		c.kind = turn % 2 ? CUA_JOIN_LEFT : CUA_JOIN_INNER;
		make_keys(&c, turn < 7 ? SOME : HALF, &seed);
		m = pairs_of(&c, 0);
		c.capacity = capacity_near(turn / 2, m.pairs, m.pairs / 2);
		free_pairs(&m);
		check(ctx, &c, "capacity");
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* The capacity may exceed the pairs. Elements behind the last pair may have any value. */
START_TEST(test_room)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_room"), *left, *right, pairs = 77;
	struct join_call c = {.key_type = CUA_U64, .n = {300, 200}, .capacity = UINT64_MAX};
	const size_t most = c.n[0] * c.n[1];
	struct model_pairs m;
	char *host[2];
	void *keys[2];

	make_keys(&c, SOME, &seed);
	m = pairs_of(&c, UINT64_MAX);
	for (int side = 0; side < 2; side++)
		keys[side] = uploaded(ctx, c.keys[side], c.n[side] * 8);
	left = poisoned(ctx, most * 8);
	right = poisoned(ctx, most * 8);
	/* no call has more pairs than the product of the rows */
	ck_assert_cua(cua_join(ctx, NULL, CUA_U64, c.n[0], keys[0], c.n[1], keys[1], UINT64_MAX,
			       left, right, &pairs));
	host[0] = downloaded(ctx, left, most * 8);
	host[1] = downloaded(ctx, right, most * 8);
	compare(&c, &m, "room", pairs, host[0], host[1]);
	for (int side = 0; side < 2; side++) {
		test_free(ctx, keys[side]);
		free(host[side]);
	}
	free_pairs(&m);
	free_call(&c);
	cua_context_destroy(ctx);
}
END_TEST

/* Joins of permuted arrays have the same pairs of keys. An array may be joined with itself. */
START_TEST(test_permutation)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_permutation"), first = 77;
	struct join_call c = {.key_type = CUA_U64, .n = {3000, 3000}, .capacity = UINT64_MAX};
	void *keys;

	make_keys(&c, FEW, &seed);
	c.n[0] = c.n[1] = 500;
	check(ctx, &c, "before the permutation");
	keys = uploaded(ctx, c.keys[1], 500 * 8);
	ck_assert_cua(cua_join(ctx, NULL, CUA_U64, 500, keys, 500, keys, 0, NULL, NULL, &first));
	for (int turn = 0; turn < 3; turn++) {
		uint64_t pairs = 77;

		for (size_t i = 500; i > 1; i--) {
			const size_t k = test_random(&seed) % i;
			char kept[8];

			memcpy(kept, c.keys[1] + 8 * (i - 1), 8);
			memcpy(c.keys[1] + 8 * (i - 1), c.keys[1] + 8 * k, 8);
			memcpy(c.keys[1] + 8 * k, kept, 8);
		}
		check(ctx, &c, "permutation");
		ck_assert_cua(cua_copy(ctx, keys, c.keys[1], 500 * 8));
		ck_assert_cua(
			cua_join(ctx, NULL, CUA_U64, 500, keys, 500, keys, 0, NULL, NULL, &pairs));
		ck_assert_uint_eq(pairs, first);
	}
	test_free(ctx, keys);
	free_call(&c);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- arguments ---- */

START_TEST(test_empty)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_join_options o = CUA_JOIN_OPTIONS_INIT;
	struct cua_is_in_options inverted = CUA_IS_IN_OPTIONS_INIT;
	uint64_t *at = test_alloc(ctx, 8), pairs = 77, key[3] = {9, 8, 7}, got[3];
	void *keys = test_upload(ctx, key, sizeof(key));
	uint64_t *left = test_alloc(ctx, 24), *right = test_alloc(ctx, 24);
	uint8_t *out = test_alloc(ctx, 3), found[3];

	ck_assert_cua(cua_join(ctx, NULL, CUA_U64, 0, NULL, 0, NULL, 0, NULL, NULL, &pairs));
	ck_assert_uint_eq(pairs, 0);
	pairs = 77;
	ck_assert_cua(cua_join(ctx, NULL, CUA_U64, 0, NULL, 3, keys, 9, NULL, NULL, &pairs));
	ck_assert_uint_eq(pairs, 0);
	ck_assert_cua(cua_join(ctx, NULL, CUA_U64, 3, keys, 0, NULL, 9, left, right, at));
	test_download(ctx, &pairs, at, 8);
	ck_assert_uint_eq(pairs, 0);
	o.kind = CUA_JOIN_LEFT;
	ck_assert_cua(cua_join(ctx, &o, CUA_U64, 0, NULL, 3, keys, 9, left, right, at));
	test_download(ctx, &pairs, at, 8);
	ck_assert_uint_eq(pairs, 0);
	ck_assert_cua(cua_join(ctx, &o, CUA_U64, 3, keys, 0, NULL, 9, left, right, &pairs));
	ck_assert_uint_eq(pairs, 3);
	test_download(ctx, got, left, 24);
	ck_assert(got[0] == 0 && got[1] == 1 && got[2] == 2);
	test_download(ctx, got, right, 24);
	ck_assert(got[0] == UINT64_MAX && got[1] == UINT64_MAX && got[2] == UINT64_MAX);

	ck_assert_cua(cua_is_in(ctx, NULL, CUA_F64, 0, NULL, 0, NULL, NULL));
	ck_assert_cua(cua_is_in(ctx, NULL, CUA_U64, 0, NULL, 3, keys, NULL));
	ck_assert_cua(cua_is_in(ctx, NULL, CUA_U64, 3, keys, 0, NULL, out));
	test_download(ctx, found, out, 3);
	ck_assert(!found[0] && !found[1] && !found[2]);
	inverted.invert = -1;
	ck_assert_cua(cua_is_in(ctx, &inverted, CUA_U64, 3, keys, 0, NULL, out));
	test_download(ctx, found, out, 3);
	ck_assert(found[0] == 1 && found[1] == 1 && found[2] == 1);
	test_free(ctx, keys);
	test_free(ctx, at);
	test_free(ctx, left);
	test_free(ctx, right);
	test_free(ctx, out);
	cua_context_destroy(ctx);
}
END_TEST

/* Good arguments, of which each refused call has a bad copy. */
struct arguments {
	struct cua_context *ctx;
	struct cua_join_options o;
	struct cua_is_in_options s;
	enum cua_type key_type;
	size_t n, m;
	char *left, *right, *out_left, *out_right;
	uint64_t capacity;
	uint64_t *pairs;
};

static enum cua_status join_with(const struct arguments *a)
{
	return cua_join(a->ctx, &a->o, a->key_type, a->n, a->left, a->m, a->right, a->capacity,
			a->out_left, a->out_right, a->pairs);
}

static enum cua_status is_in_with(const struct arguments *a)
{
	return cua_is_in(a->ctx, &a->s, a->key_type, a->n, a->left, a->m, a->right,
			 (uint8_t *)a->out_left);
}

static void refused_joins(const struct arguments *good)
{
	REFUSED(join_with, CUA_ERROR_NULL, ctx, NULL);
	REFUSED(join_with, CUA_ERROR_NULL, left, NULL);
	REFUSED(join_with, CUA_ERROR_NULL, right, NULL);
	REFUSED(join_with, CUA_ERROR_NULL, pairs, NULL);
	REFUSED(join_with, CUA_ERROR_VALUE, o.struct_size, 3);
	REFUSED(join_with, CUA_ERROR_VALUE, o.kind, (enum cua_join_kind)3);
	REFUSED(join_with, CUA_ERROR_VALUE, o.kind, (enum cua_join_kind) - 1);
	REFUSED(join_with, CUA_ERROR_VALUE, o.index_type, CUA_I32);
	REFUSED(join_with, CUA_ERROR_TYPE, key_type, CUA_U16);
	REFUSED(join_with, CUA_ERROR_TYPE, key_type, CUA_F16);
	REFUSED(join_with, CUA_ERROR_TYPE, key_type, CUA_NONE);
	REFUSED(join_with, CUA_ERROR_TYPE, key_type, (enum cua_type)99);
	REFUSED(join_with, CUA_ERROR_SIZE, n, SIZE_MAX);
	REFUSED(join_with, CUA_ERROR_SIZE, m, SIZE_MAX);
	REFUSED(join_with, CUA_ERROR_SIZE, n, (size_t)1 << 47);
	REFUSED(join_with, CUA_ERROR_SIZE, m, (size_t)1 << 47);
	REFUSED(join_with, CUA_ERROR_ALIGNMENT, left, good->left + 2);
	REFUSED(join_with, CUA_ERROR_ALIGNMENT, right, good->right + 1);
	REFUSED(join_with, CUA_ERROR_ALIGNMENT, out_left, good->out_left + 4);
	REFUSED(join_with, CUA_ERROR_ALIGNMENT, out_right, good->out_right + 4);
	REFUSED(join_with, CUA_ERROR_ALIGNMENT, pairs, (uint64_t *)(void *)(good->out_right + 124));
	REFUSED(join_with, CUA_ERROR_OVERLAP, out_left, good->left);
	REFUSED(join_with, CUA_ERROR_OVERLAP, out_left, good->right + 8);
	REFUSED(join_with, CUA_ERROR_OVERLAP, out_right, good->left + 8);
	REFUSED(join_with, CUA_ERROR_OVERLAP, out_right, good->right);
	REFUSED(join_with, CUA_ERROR_OVERLAP, out_right, good->out_left + 8);
	REFUSED(join_with, CUA_ERROR_OVERLAP, pairs, (uint64_t *)(void *)good->left);
	REFUSED(join_with, CUA_ERROR_OVERLAP, pairs, (uint64_t *)(void *)good->right);
	REFUSED(join_with, CUA_ERROR_OVERLAP, pairs, (uint64_t *)(void *)good->out_left);
	REFUSED(join_with, CUA_ERROR_OVERLAP, pairs, (uint64_t *)(void *)(good->out_right + 24));
}

static void refused_lookups(const struct arguments *good)
{
	REFUSED(is_in_with, CUA_ERROR_NULL, ctx, NULL);
	REFUSED(is_in_with, CUA_ERROR_NULL, left, NULL);
	REFUSED(is_in_with, CUA_ERROR_NULL, right, NULL);
	REFUSED(is_in_with, CUA_ERROR_NULL, out_left, NULL);
	REFUSED(is_in_with, CUA_ERROR_VALUE, s.struct_size, 3);
	REFUSED(is_in_with, CUA_ERROR_TYPE, key_type, CUA_BF16);
	REFUSED(is_in_with, CUA_ERROR_SIZE, n, SIZE_MAX);
	REFUSED(is_in_with, CUA_ERROR_SIZE, m, SIZE_MAX / 4);
	REFUSED(is_in_with, CUA_ERROR_ALIGNMENT, left, good->left + 1);
	REFUSED(is_in_with, CUA_ERROR_ALIGNMENT, right, good->right + 2);
	REFUSED(is_in_with, CUA_ERROR_OVERLAP, out_left, good->left + 15);
	REFUSED(is_in_with, CUA_ERROR_OVERLAP, out_left, good->right);
}

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	static const uint32_t host[2][4] = {{3, 5, 9, 3}, {9, 3, 3, 1}};
	uint64_t count = 77;
	size_t bytes = 77;
	char got[128];
	struct arguments a = {.ctx = ctx,
			      .o = CUA_JOIN_OPTIONS_INIT,
			      .s = CUA_IS_IN_OPTIONS_INIT,
			      .key_type = CUA_U32,
			      .n = 4,
			      .m = 4,
			      .capacity = 4,
			      .pairs = &count};
	struct arguments narrow;

	a.left = test_upload(ctx, host[0], sizeof(host[0]));
	a.right = test_upload(ctx, host[1], sizeof(host[1]));
	a.out_left = poisoned(ctx, sizeof(got) - GUARD);
	a.out_right = poisoned(ctx, sizeof(got) - GUARD);
	refused_joins(&a);
	refused_lookups(&a);
	narrow = a;
	narrow.o.index_type = CUA_U32;
	narrow.n = (size_t)1 << 32;
	ck_assert_status(join_with(&narrow), CUA_ERROR_SIZE);
	narrow.n = 4;
	narrow.m = (size_t)1 << 32;
	ck_assert_status(join_with(&narrow), CUA_ERROR_SIZE);
	ck_assert_status(cua_join_workspace(NULL, NULL, CUA_U32, 4, 4, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_join_workspace(ctx, NULL, CUA_U32, 4, 4, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_join_workspace(ctx, NULL, CUA_U8, 4, 4, &bytes), CUA_ERROR_TYPE);
	ck_assert_status(cua_join_workspace(ctx, NULL, CUA_U32, SIZE_MAX / 8, 4, &bytes),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_is_in_workspace(NULL, NULL, CUA_U32, 4, 4, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_is_in_workspace(ctx, NULL, CUA_U32, 4, 4, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_is_in_workspace(ctx, NULL, CUA_NONE, 4, 4, &bytes), CUA_ERROR_TYPE);
	ck_assert_status(cua_is_in_workspace(ctx, NULL, CUA_U32, 4, SIZE_MAX / 8, &bytes),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(bytes, 77);
	ck_assert_uint_eq(count, 77);
	expect_unwritten(ctx, a.out_left, sizeof(got));
	expect_unwritten(ctx, a.out_right, sizeof(got));

	ck_assert_cua(join_with(&a));
	ck_assert_uint_eq(count, 5);
	test_download(ctx, got, a.out_left, sizeof(got));
	ck_assert_mem_eq(got, ((const uint64_t[4]){0, 0, 2, 3}), 32);
	expect_poison(got + 32, 96);
	test_download(ctx, got, a.out_right, sizeof(got));
	ck_assert_mem_eq(got, ((const uint64_t[4]){1, 2, 0, 1}), 32);
	expect_poison(got + 32, 96);
	ck_assert_cua(is_in_with(&a));
	test_download(ctx, got, a.out_left, sizeof(got));
	ck_assert_mem_eq(got, ((const uint8_t[4]){1, 0, 1, 1}), 4);
	/* arrays of keys may overlap; an output that is not made is not compared */
	a.right = a.left + 4;
	a.m = 3;
	ck_assert_cua(join_with(&a));
	ck_assert_uint_eq(count, 4);
	a.capacity = 0;
	a.out_left = a.out_right = a.left;
	ck_assert_cua(join_with(&a));
	ck_assert_uint_eq(count, 4);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the workspace ---- */

#if TEST_CUDA
/* Captured calls that may not enlarge the workspace; their graph runs twice. */
static void check_captured(struct cua_context *ctx, cudaStream_t stream, const struct join_call *c)
{
	const struct cua_join_options o = options_of(c);
	const size_t key_size = cua_type_size(c->key_type);
	struct model_pairs m = pairs_of(c, UINT64_MAX);
	const size_t bytes = (size_t)m.stored * index_size(c);
	uint64_t pairs = 77, host = 77, *at = test_alloc(ctx, 8);
	uint8_t *found = test_alloc(ctx, c->n[0]), *flags = test_malloc(c->n[0]);
	char *keys[2], *left, *right;
	struct model_row *rows = sorted_rows(c);

	for (int side = 0; side < 2; side++)
		keys[side] = uploaded(ctx, c->keys[side], c->n[side] * key_size);
	left = poisoned(ctx, bytes);
	right = poisoned(ctx, bytes);
	begin_capture(ctx, stream);
	ck_assert_cua(cua_join(ctx, &o, c->key_type, c->n[0], keys[0], c->n[1], keys[1], m.stored,
			       left, right, at));
	ck_assert_cua(cua_is_in(ctx, NULL, c->key_type, c->n[0], keys[0], c->n[1], keys[1], found));
	/* a number in ordinary memory would have to wait */
	ck_assert_status(cua_join(ctx, &o, c->key_type, c->n[0], keys[0], c->n[1], keys[1],
				  m.stored, left, right, &host),
			 CUA_ERROR_CAPTURE);
	run_captured(stream);
	test_download(ctx, &pairs, at, 8);
	test_download(ctx, flags, found, c->n[0]);
	left = downloaded(ctx, left, bytes);
	right = downloaded(ctx, right, bytes);
	compare(c, &m, "a graph", pairs, left, right);
	for (size_t i = 0; i < c->n[0]; i++) {
		const struct model_row key = model_row(c->key_type, c->keys[0], i);
		size_t matches;

		matches_of(rows, c->n[1], &key, &matches);
		EXPECT(flags[i] == (matches != 0), "a graph: is_in %zu", i);
	}
	for (int side = 0; side < 2; side++)
		test_free(ctx, keys[side]);
	test_free(ctx, at);
	test_free(ctx, found);
	free(flags);
	free(left);
	free(right);
	free(rows);
	free_pairs(&m);
}
#endif

/* The reported size suffices: a context that has it need not grow. */
START_TEST(test_workspace)
{
	const size_t n = test_quick() || test_traced() ? 20000 : 200000;
	uint64_t seed = test_seed("test_workspace");

	for (int turn = 0; turn < 4; turn++) {
		struct join_call c = {.key_type = key_types[turn * 2],
				      .kind = (enum cua_join_kind)(turn % 3),
				      .n = {n, n / 2},
				      .capacity = UINT64_MAX};
		const struct cua_join_options o = options_of(&c);
		size_t bytes = 0, none = 77, fewer = 0;
#if TEST_CUDA
		cudaStream_t stream;
		struct cua_context *ctx = context_with_stream(&stream);
#else
		struct cua_context *ctx = test_context(TEST_BACKEND);
#endif

		make_keys(&c, turn < 2 ? SOME : HALF, &seed);
		ck_assert_cua(cua_join_workspace(ctx, &o, c.key_type, c.n[0], c.n[1], &bytes));
		ck_assert_cua(cua_is_in_workspace(ctx, NULL, c.key_type, c.n[0], c.n[1], &fewer));
		ck_assert_cua(cua_is_in_workspace(ctx, NULL, c.key_type, 0, c.n[1], &none));
		reserve_workspace(ctx, none, fewer, bytes);
#if TEST_CUDA
		check_captured(ctx, stream, &c);
		cua_context_destroy(ctx);
		ck_assert_cuda(cudaStreamDestroy(stream));
#else
		check(ctx, &c, "workspace");
		check_is_in(ctx, &c, "workspace");
		cua_context_destroy(ctx);
#endif
		free_call(&c);
	}
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("join");
	TCase *tc = tcase_create("join");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_arguments);
	tcase_add_test(tc, test_empty);
	tcase_add_loop_test(tc, test_types, 0, (int)COUNT(key_types));
	tcase_add_loop_test(tc, test_large, 0, 4);
	tcase_add_test(tc, test_heavy);
	tcase_add_test(tc, test_many_pairs);
	tcase_add_test(tc, test_capacity);
	tcase_add_test(tc, test_room);
	tcase_add_test(tc, test_permutation);
	tcase_add_test(tc, test_workspace);
#if TEST_CUDA
	tcase_add_test(tc, test_stored_pairs);
#endif
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
