/* SPDX-License-Identifier: MIT */
/* Group by and unique on either backend, compared with a serial model, bit by bit. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <math.h>

#include "exact_elements.h"
#include "group_by_model.h"
#include "key_arrays.h"

static const enum cua_type value_types[] = {CUA_I8,  CUA_U8,  CUA_I16, CUA_U16,  CUA_I32, CUA_U32,
					    CUA_I64, CUA_U64, CUA_F16, CUA_BF16, CUA_F32, CUA_F64};
static const char *const op_names[] = {"",     "COUNT",    "SUM",   "MIN", "MAX",
				       "MEAN", "VARIANCE", "FIRST", "LAST"};

/* ---- input ---- */

enum spread {
	ONE, /* a single group */
	FEW,
	SOME,
	MANY,     /* about two rows a group */
	DISTINCT, /* all keys differ, if the type has enough numbers */
	RUNS,
	SPECIAL, /* extreme keys, zeros and NaN */
	SPREADS
};
static const char *const spread_names[] = {"one",      "few",  "some",   "many",
					   "distinct", "runs", "special"};

static uint64_t random_number(enum spread spread, size_t i, size_t n, uint64_t last, uint64_t *seed)
{
	const uint64_t r = test_random(seed);

	switch (spread) {
	case ONE: return 5;
	case FEW: return r % 7;
	case SOME: return r % (n / 16 + 1);
	case MANY: return r % (n / 2 + 1);
	case RUNS: return i && r % 16 ? last : r >> 8;
	default: return i;
	}
}

static void make_keys(struct group_call *c, enum spread spread, uint64_t *seed)
{
	const uint64_t mix = test_random(seed) | 1;
	uint64_t number = 0;

	c->keys = test_malloc(c->n * cua_type_size(c->key_type) + 16);
	for (size_t i = 0; i < c->n; i++) {
		number = random_number(spread, i, c->n, number, seed);
		store_key(c->key_type, c->keys, i, number,
			  spread == SPECIAL ? special_key(c->key_type, test_random(seed))
					    : number * mix);
	}
}

static uint64_t value_of(enum cua_type type, enum kind_of_element kind, size_t i, uint64_t *seed)
{
	const uint64_t r = test_random(seed);

	if (format_of(type))
		return random_element(format_of(type), kind, i, seed);
	return r % 8 ? r : r % 64 ? UINT64_MAX : (uint64_t)1 << (8 * cua_type_size(type) - 1);
}

/* Fills an aggregate. A mask has all bytes, or whole bytes of bits. */
static void make_aggregate(const struct group_call *c, struct cua_aggregate *a,
			   enum kind_of_element kind, uint64_t *seed)
{
	const size_t size = cua_type_size(a->type);
	const uint64_t r = test_random(seed);
	uint8_t *valid;
	char *values;

	values = test_malloc(c->n * size + 16);
	for (size_t i = 0; i < c->n && size; i++) {
		if (size == 16)
			memset(values + 16 * i, (int)test_random(seed), 16);
		else
			store_bits(a->type, values, i, value_of(a->type, kind, i, seed));
	}
	a->values = values;
	if (r % 2)
		return;
	a->valid_bits = (int)(r >> 8 & 1);
	a->valid = valid = test_malloc(c->n + 16);
	for (size_t i = 0; i < c->n; i++)
		valid[i] = (uint8_t)(a->valid_bits  ? test_random(seed)
				     : r >> 9 & 1   ? test_random(seed) % 2
				     : i % 64 >= 32 ? 0
						    : test_random(seed) | 1);
}

/* Whether aggregate i has the mask of the preceding aggregate. */
static int shares_mask(const struct group_call *c, uint32_t i)
{
	return i && c->aggregate[i].valid && c->aggregate[i].valid == c->aggregate[i - 1].valid;
}

static void share_mask(struct group_call *c, uint32_t i)
{
	free((void *)c->aggregate[i].valid);
	c->aggregate[i].valid = c->aggregate[i - 1].valid;
	c->aggregate[i].valid_bits = c->aggregate[i - 1].valid_bits;
}

/* The first aggregate with the values of aggregate i. */
static uint32_t first_with_values(const struct group_call *c, uint32_t i)
{
	uint32_t first = 0;

	while (c->aggregate[first].values != c->aggregate[i].values)
		first++;
	return first;
}

static void free_call(struct group_call *c)
{
	free(c->keys);
	for (uint32_t i = 0; i < c->count; i++) {
		free((void *)c->aggregate[i].values);
		if (!shares_mask(c, i))
			free((void *)c->aggregate[i].valid);
	}
}

/* ---- calls ---- */

/* The results in host memory, with room for `room` groups, and a guard after them. */
struct outcome {
	uint64_t groups;
	size_t room;
	char *keys, *out[CUA_AGGREGATES_MAX];
};

static void free_outcome(struct outcome *o, uint32_t count)
{
	free(o->keys);
	for (uint32_t i = 0; i < count; i++)
		free(o->out[i]);
}

static struct cua_group_by_options options_of(const struct group_call *c)
{
	struct cua_group_by_options o = CUA_GROUP_BY_OPTIONS_INIT;

	o.mode = c->mode;
	o.order = c->order;
	return o;
}

static struct outcome run_call(struct cua_context *ctx, const struct group_call *c, int on_backend)
{
	const struct cua_group_by_options o = options_of(c);
	const size_t key_size = cua_type_size(c->key_type);
	struct outcome r = {.groups = 77};
	struct cua_aggregate a[CUA_AGGREGATES_MAX];
	uint64_t *groups = test_alloc(ctx, sizeof(*groups));
	void *keys = uploaded(ctx, c->keys, c->n * key_size), *out_keys;

	r.room = (size_t)(c->capacity < c->n ? c->capacity : c->n);
	memcpy(a, c->aggregate, sizeof(a));
	out_keys = poisoned(ctx, r.room * key_size);
	for (uint32_t i = 0; i < c->count; i++) {
		const uint32_t first = first_with_values(c, i);

		a[i].values = first < i
				      ? a[first].values
				      : uploaded(ctx, a[i].values, c->n * cua_type_size(a[i].type));
		a[i].valid = shares_mask(c, i) ? a[i - 1].valid
					       : uploaded(ctx, a[i].valid,
							  a[i].valid_bits ? (c->n + 7) / 8 : c->n);
		a[i].out = poisoned(ctx, r.room * cua_type_size(result_of(&a[i])));
	}
	ck_assert_cua(cua_group_by(ctx, &o, c->key_type, c->n, keys, a, c->count, c->capacity,
				   out_keys, on_backend ? groups : &r.groups));
	if (on_backend)
		test_download(ctx, &r.groups, groups, sizeof(*groups));
	r.keys = downloaded(ctx, out_keys, r.room * key_size);
	for (uint32_t i = 0; i < c->count; i++) {
		r.out[i] = downloaded(ctx, a[i].out, r.room * cua_type_size(result_of(&a[i])));
		if (a[i].values && first_with_values(c, i) == i)
			test_free(ctx, (void *)a[i].values);
		if (a[i].valid && !shares_mask(c, i))
			test_free(ctx, (void *)a[i].valid);
	}
	test_free(ctx, keys);
	test_free(ctx, groups);
	return r;
}

static void describe(const struct group_call *c, const char *what, char text[256])
{
	snprintf(text, 256, "%s: keys %s, %s, n %zu, capacity %llu", what,
		 cua_type_name(c->key_type),
		 c->order == CUA_KEY_ORDER_SORTED ? "sorted"
		 : c->order == CUA_KEY_ORDER_ANY  ? "any order"
						  : "first",
		 c->n, (unsigned long long)c->capacity);
}

static void compare(const struct group_call *c, const struct model_groups *g, const char *what,
		    const struct outcome *got)
{
	const size_t key_size = cua_type_size(c->key_type);
	char text[256];

	describe(c, what, text);
	EXPECT(got->groups == g->groups, "%s: %llu groups, not %llu", text,
	       (unsigned long long)got->groups, (unsigned long long)g->groups);
	for (size_t k = 0; k < g->stored; k++)
		EXPECT(!memcmp(got->keys + k * key_size,
			       (char *)c->keys + g->group[k].row * key_size, key_size),
		       "%s: key %zu of %llu is wrong", text, k, (unsigned long long)g->stored);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct cua_aggregate *a = &c->aggregate[i];
		const size_t size = cua_type_size(result_of(a));
		char *expected = model_aggregate(c, g, a);

		for (size_t k = 0; k < g->stored; k++)
			EXPECT(!memcmp(got->out[i] + k * size, expected + k * size, size),
			       "%s: %s of %s to %s, mask %s: group %zu with %zu rows is %llx, not "
			       "%llx",
			       text, op_names[a->op], cua_type_name(a->type),
			       cua_type_name(result_of(a)),
			       !a->valid       ? "none"
			       : a->valid_bits ? "of bits"
					       : "of bytes",
			       k, g->group[k].n,
			       (unsigned long long)load_bits(CUA_U64, got->out[i] + k * size, 0),
			       (unsigned long long)load_bits(CUA_U64, expected + k * size, 0));
		free(expected);
	}
}

/* Puts the expected groups in the order of the results, and drops groups that are not stored. */
static void match_groups(const struct group_call *c, struct model_groups *g,
			 const struct outcome *got)
{
	struct model_row *sorted = test_malloc((size_t)(g->groups + 1) * sizeof(*sorted));
	uint8_t *taken = calloc((size_t)g->groups + 1, 1);

	ck_assert_ptr_nonnull(taken);
	memcpy(sorted, g->group, (size_t)g->groups * sizeof(*sorted));
	qsort(sorted, (size_t)g->groups, sizeof(*sorted), by_key);
	for (size_t k = 0; k < g->stored; k++) {
		const struct model_row key = ordered_key(c->key_type, got->keys, k);
		size_t low = 0, high = (size_t)g->groups;

		while (low < high) {
			const size_t middle = low + (high - low) / 2;

			if (sorted[middle].hi < key.hi ||
			    (sorted[middle].hi == key.hi && sorted[middle].lo < key.lo))
				low = middle + 1;
			else
				high = middle;
		}
		ck_assert_msg(low < g->groups && sorted[low].hi == key.hi &&
				      sorted[low].lo == key.lo,
			      "key %zu is none of the input", k);
		ck_assert_msg(!taken[low]++, "key %zu is twice in the results", k);
		g->group[k] = sorted[low];
	}
	free(taken);
	free(sorted);
}

static void check(struct cua_context *ctx, const struct group_call *c, const char *what)
{
	static unsigned turn;
	struct model_groups g = groups_of(c);
	struct outcome got;

	ck_assert_cua(cua_context_set_threads(ctx, 1 + turn * 5 % 7));
	/* a waiting call may take another way */
	got = run_call(ctx, c, c->order == CUA_KEY_ORDER_ANY ? 0 : (int)(turn++ % 2));
	if (c->order == CUA_KEY_ORDER_ANY)
		match_groups(c, &g, &got);
	compare(c, &g, what, &got);
	free_outcome(&got, c->count);
	groups_free(&g);
}

/* Adds an aggregate of each operation on this type, and a sum with a wider result type. */
static void add_operations(struct group_call *c, enum cua_type type)
{
	for (int op = CUA_AGGREGATE_COUNT; op <= CUA_AGGREGATE_LAST; op++) {
		struct cua_aggregate a = {.op = (enum cua_aggregate_op)op, .type = type};

		if (op == CUA_AGGREGATE_VARIANCE)
			a.ddof = c->count % 2;
		if (op == CUA_AGGREGATE_MEAN)
			a.result_type = CUA_F64;
		c->aggregate[c->count++] = a;
	}
	if (format_of(type) && type != CUA_F64) {
		const struct cua_aggregate wider = {
			.op = CUA_AGGREGATE_SUM, .type = type, .result_type = CUA_F64};

		c->aggregate[c->count++] = wider;
	}
}

static void check_random(struct cua_context *ctx, struct group_call *c, enum spread spread,
			 enum kind_of_element kind, uint64_t *seed)
{
	char what[64];

	snprintf(what, sizeof(what), "%s keys, %s values", spread_names[spread], kind_names[kind]);
	make_keys(c, spread, seed);
	for (uint32_t i = 0; i < c->count; i++) {
		make_aggregate(c, &c->aggregate[i], kind, seed);
		if (i && test_random(seed) % 2)
			share_mask(c, i);
	}
	check(ctx, c, what);
	free_call(c);
}

static enum cua_reduce_mode any_mode(uint64_t r)
{
	static const enum cua_reduce_mode modes[] = {CUA_REDUCE_AUTO, CUA_REDUCE_EXACT,
						     CUA_REDUCE_FIXED};

	return modes[r % COUNT(modes)];
}

/* ---- values ---- */

/* A value type with all operations, and every type of key. */
START_TEST(test_types)
{
	static const size_t sizes[] = {1, 2, 31, 500, 3000};
	const int turns = test_traced() ? 1 : test_scale(1, 3, 20);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_types");

	for (int k = 0; k < (int)COUNT(key_types) * turns; k++) {
		const uint64_t r = test_random(&seed);
		struct group_call c = {.key_type = key_types[k % (int)COUNT(key_types)],
				       .mode = any_mode(r >> 40)};

		c.n = sizes[r % COUNT(sizes)];
		c.order = (enum cua_key_order)(r >> 8 & 1 ? CUA_KEY_ORDER_SORTED : r >> 9 & 1);
		c.capacity = r >> 10 & 3 ? c.n : (r >> 16) % (c.n + 1);
		add_operations(&c, value_types[_i]);
		check_random(ctx, &c, (enum spread)((r >> 20) % SPREADS),
			     (enum kind_of_element)((r >> 32) % KINDS), &seed);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* FIRST and LAST move values of every size. */
START_TEST(test_picks)
{
	static const enum cua_type wide[] = {CUA_U128, CUA_COMPLEX_F32, CUA_COMPLEX_F64};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_picks");

	for (unsigned turn = 0; turn < 6; turn++) {
		struct group_call c = {.key_type = CUA_U64, .n = 700, .capacity = 700, .count = 2};

		for (uint32_t i = 0; i < 2; i++) {
			c.aggregate[i].type = wide[turn % 3];
			c.aggregate[i].op = i ? CUA_AGGREGATE_LAST : CUA_AGGREGATE_FIRST;
		}
		/* make_aggregate fills values of 16 bytes with random bytes */
		check_random(ctx, &c, turn < 3 ? SOME : FEW, KIND_NEAR, &seed);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Many rows, for several threads and blocks; every spread, order and capacity. */
START_TEST(test_large)
{
	const size_t n = test_traced() ? 3000 : (size_t)test_scale(20000, 150000, 2000000);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_large");

	for (int k = 0; k < (test_traced() ? 3 : 10); k++) {
		const uint64_t r = test_random(&seed);
		struct group_call c = {.key_type = key_types[(r >> 8) % COUNT(key_types)],
				       .n = n + k * 1001,
				       .count = 3};

		c.order = k % 2 ? CUA_KEY_ORDER_SORTED : CUA_KEY_ORDER_FIRST;
		c.capacity = k % 3 ? c.n : c.n / 5;
		c.aggregate[0].op = (enum cua_aggregate_op)(1 + r % 8);
		c.aggregate[0].type = CUA_F64;
		c.aggregate[1].op = (enum cua_aggregate_op)(1 + (r >> 16) % 8);
		c.aggregate[1].type = CUA_U32;
		c.aggregate[2].op = CUA_AGGREGATE_SUM;
		c.aggregate[2].type = CUA_F32;
		check_random(ctx, &c, (enum spread)(_i), (enum kind_of_element)(k % KINDS), &seed);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Groups in any order, by as many rows as a GPU needs for another way. */
START_TEST(test_any_order)
{
	static const enum cua_type types[] = {CUA_F32, CUA_I32, CUA_U32, CUA_NONE};
	static const enum cua_aggregate_op ops[] = {CUA_AGGREGATE_SUM, CUA_AGGREGATE_COUNT,
						    CUA_AGGREGATE_MEAN};
	/* the other way begins at 2^18 rows */
	const size_t n = test_traced() ? 2000
			 : TEST_BACKEND == CUA_BACKEND_CPU
				 ? 9000
				 : (1 << 18) + (size_t)test_scale(0, 5000, 1 << 20);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_any_order");

	for (int k = 0; k < (test_traced() ? 2 : test_scale(3, 5, 2 * KINDS)); k++) {
		const uint64_t r = test_random(&seed);
		struct group_call c = {.key_type = r & 1 ? CUA_U32 : CUA_I32,
				       .order = CUA_KEY_ORDER_ANY,
				       .n = n + (r >> 1) % 9999};
		const enum cua_type type = k % 3 == 2 ? types[(r >> 16) % COUNT(types)] : CUA_F32;

		c.capacity = r >> 24 & 3 ? c.n : (r >> 26) % (c.n + 1);
		c.count = type == CUA_NONE ? 1 : 3;
		make_keys(&c, (enum spread)(_i), &seed);
		for (uint32_t i = 0; i < c.count; i++) {
			c.aggregate[i].op = type == CUA_NONE ? CUA_AGGREGATE_COUNT : ops[i];
			c.aggregate[i].type = type;
		}
		if (type == CUA_F32 && r >> 60 & 1)
			c.aggregate[2].result_type = CUA_F64;
		while (c.count == 3 && (!c.aggregate[0].values || c.aggregate[0].valid)) {
			free((void *)c.aggregate[0].values);
			free((void *)c.aggregate[0].valid);
			c.aggregate[0].valid = NULL;
			make_aggregate(&c, &c.aggregate[0],
				       (enum kind_of_element)((r >> 40) % KINDS), &seed);
		}
		/* the same values */
		if (c.count == 3)
			c.aggregate[2].values = c.aggregate[0].values;
		check(ctx, &c, "any order");
		c.aggregate[2].values = NULL;
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* A call that only counts reads no values. */
START_TEST(test_any_order_counts)
{
	const size_t n = test_traced() ? 2000 : (1 << 18) + 77;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_aggregate a[2] = {{.op = CUA_AGGREGATE_SUM, .type = CUA_F32},
				     {.op = CUA_AGGREGATE_MEAN, .type = CUA_F32}};
	struct cua_group_by_options o = CUA_GROUP_BY_OPTIONS_INIT;
	uint32_t *keys = test_malloc(n * sizeof(*keys)), *on_backend;
	uint64_t groups = 0;

	for (size_t i = 0; i < n; i++)
		keys[i] = (uint32_t)(i % 1001) * 0x9e3779b9u;
	on_backend = uploaded(ctx, keys, n * sizeof(*keys));
	o.order = CUA_KEY_ORDER_ANY;
	ck_assert_cua(cua_group_by(ctx, &o, CUA_U32, n, on_backend, a, 2, 0, NULL, &groups));
	ck_assert_uint_eq(groups, 1001);
	test_free(ctx, on_backend);
	free(keys);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- few groups ---- */

/* The numbers of groups around the most that a GPU counts as few, and others. */
static const size_t few_groups[] = {1, 2, 33, 1000, 2047, 2048, 2049, 5000};

/* Rows for the ways of few groups: they begin at 2^17 rows, and those in parts at 2^20. */
static size_t few_rows(int in_parts)
{
	if (test_traced() || TEST_BACKEND == CUA_BACKEND_CPU)
		return test_traced() ? 2000 : 9000;
	return (in_parts ? 1 << 20 : 1 << 17) + 7;
}

/* With `late`, the last group has a single row, the last one. */
static void make_few_keys(struct group_call *c, size_t groups, int late, uint64_t *seed)
{
	const uint64_t mix = test_random(seed) | 1;

	c->keys = test_malloc(c->n * cua_type_size(c->key_type) + 16);
	for (size_t i = 0; i < c->n; i++) {
		const uint64_t number = late && i + 1 == c->n ? groups - 1
					: i < groups - late   ? i
							      : test_random(seed) % (groups - late);

		store_key(c->key_type, c->keys, i, number, (number + 1) * mix);
	}
}

/* Counts, sums and means that a single traversal makes. The aggregates share their values. */
static void add_sums(struct group_call *c, enum cua_type type, uint64_t r, uint64_t *seed)
{
	static const enum cua_aggregate_op ops[] = {CUA_AGGREGATE_SUM, CUA_AGGREGATE_COUNT,
						    CUA_AGGREGATE_MEAN};
	const size_t size = cua_type_size(type);
	char *values = test_malloc(c->n * size + 16);

	for (size_t i = 0; i < c->n; i++)
		store_bits(type, values, i,
			   value_of(type, (enum kind_of_element)(r % KINDS), i, seed));
	for (uint32_t i = 0; i < COUNT(ops); i++) {
		struct cua_aggregate *a = &c->aggregate[c->count++];

		a->op = ops[i];
		a->type = type;
		a->values = values;
		a->result_type = i == 2 && r >> 8 & 1 ? CUA_F64 : CUA_NONE;
	}
}

static void free_sums(struct group_call *c)
{
	for (uint32_t i = 1; i < c->count; i++)
		c->aggregate[i].values = NULL;
	free_call(c);
}

static void check_few(struct cua_context *ctx, const struct group_call *c)
{
	struct model_groups g = groups_of(c);
	struct outcome got = run_call(ctx, c, 0);

	if (c->order == CUA_KEY_ORDER_ANY)
		match_groups(c, &g, &got);
	compare(c, &g, "few groups", &got);
	free_outcome(&got, c->count);
	groups_free(&g);
}

/* Every type of key, in calls that wait. */
START_TEST(test_few)
{
	static const enum cua_type types[] = {CUA_F32, CUA_I32, CUA_U32};
	static const enum cua_key_order orders[] = {CUA_KEY_ORDER_FIRST, CUA_KEY_ORDER_SORTED,
						    CUA_KEY_ORDER_ANY};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_few");

	for (int k = 0; k < (test_traced() ? 2 : test_scale(4, 8, 48)); k++) {
		const uint64_t r = test_random(&seed);
		const size_t groups = few_groups[(r >> 8) % COUNT(few_groups)];
		const int late = groups > 1 && r & 1;
		struct group_call c = {.key_type = key_types[_i],
				       .order = orders[k % 3],
				       .n = few_rows(k % 2) + (r >> 16) % 999};

		c.capacity = r >> 28 & 3 ? c.n : (r >> 32) % (groups + 1);
		make_few_keys(&c, groups, late, &seed);
		if (k % 4 < 3) {
			add_sums(&c, types[(r >> 40) % COUNT(types)], r >> 44, &seed);
			check_few(ctx, &c);
			free_sums(&c);
			continue;
		}
		add_operations(&c, CUA_F32);
		for (uint32_t i = 0; i < c.count; i++)
			make_aggregate(&c, &c.aggregate[i], KIND_NEAR, &seed);
		check_few(ctx, &c);
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Every capacity around the number of groups. */
START_TEST(test_capacity)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_capacity");

	for (int turn = 0; turn < 2 * CAPACITIES; turn++) {
		struct group_call c = {.key_type = CUA_I32, .n = 1000};
		struct model_groups g;

		c.order = turn % 2 ? CUA_KEY_ORDER_SORTED : CUA_KEY_ORDER_FIRST;
		make_keys(&c, SOME, &seed);
		add_operations(&c, CUA_F32);
		for (uint32_t i = 0; i < c.count; i++)
			make_aggregate(&c, &c.aggregate[i], KIND_OUTLIER, &seed);
		g = groups_of(&c);
		c.capacity = capacity_near(turn / 2, g.groups, c.n);
		groups_free(&g);
		check(ctx, &c, "capacity");
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Sorted results have the same bits for any order of the rows, except FIRST and LAST. */
START_TEST(test_permutation)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_permutation");
	struct group_call c = {
		.key_type = CUA_U64, .n = 20000, .capacity = 20000, .order = CUA_KEY_ORDER_SORTED};
	struct outcome first, other;
	char text[256];

	make_keys(&c, FEW, &seed);
	add_operations(&c, CUA_F64);
	for (uint32_t i = 0; i < c.count; i++) {
		make_aggregate(&c, &c.aggregate[i], KIND_CANCEL, &seed);
		free((void *)c.aggregate[i].valid);
		c.aggregate[i].valid = NULL;
	}
	first = run_call(ctx, &c, 0);
	for (size_t i = c.n; i > 1; i--) {
		const size_t j = test_random(&seed) % i;

		for (uint32_t k = 0; k <= c.count; k++) {
			uint64_t *x = k ? (uint64_t *)c.aggregate[k - 1].values : c.keys;
			const uint64_t kept = x[i - 1];

			x[i - 1] = x[j];
			x[j] = kept;
		}
	}
	other = run_call(ctx, &c, 1);
	describe(&c, "permutation", text);
	EXPECT(first.groups == other.groups, "%s: groups", text);
	ck_assert_mem_eq(first.keys, other.keys, first.groups * 8);
	for (uint32_t i = 0; i < c.count; i++)
		if (c.aggregate[i].op < CUA_AGGREGATE_FIRST)
			EXPECT(!memcmp(first.out[i], other.out[i], first.groups * 8), "%s: %s",
			       text, op_names[c.aggregate[i].op]);
	free_outcome(&first, c.count);
	free_outcome(&other, c.count);
	free_call(&c);
	cua_context_destroy(ctx);
}
END_TEST

/* Mode FAST: integers and extremes have the same bits, and sums are near. */
START_TEST(test_fast)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_fast");
	struct group_call c = {.key_type = CUA_U32,
			       .n = 5000,
			       .capacity = 5000,
			       .count = 2,
			       .mode = CUA_REDUCE_FAST};
	struct outcome fast, exact;

	c.aggregate[0].op = CUA_AGGREGATE_SUM;
	c.aggregate[0].type = CUA_F64;
	c.aggregate[1].op = CUA_AGGREGATE_MAX;
	c.aggregate[1].type = CUA_F32;
	make_keys(&c, FEW, &seed);
	for (uint32_t i = 0; i < c.count; i++)
		make_aggregate(&c, &c.aggregate[i], KIND_NEAR, &seed);
	fast = run_call(ctx, &c, 0);
	c.mode = CUA_REDUCE_EXACT;
	exact = run_call(ctx, &c, 0);
	ck_assert_uint_eq(fast.groups, exact.groups);
	ck_assert_mem_eq(fast.out[1], exact.out[1], exact.groups * 4);
	for (size_t k = 0; k < exact.groups; k++)
		ck_assert(fabs(((double *)(void *)fast.out[0])[k] -
			       ((double *)(void *)exact.out[0])[k]) < 1e-9);
	free_outcome(&fast, c.count);
	free_outcome(&exact, c.count);
	free_call(&c);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_MPFR
/* The values of a test of the variance's accuracy. */
static double hard_value(int kind, size_t i, uint64_t *seed)
{
	const uint64_t r = test_random(seed);

	switch (kind) {
	case 0: return 1e9 + (double)(r % 1000) * 1e-6;
	case 1: return 0x1p53 + (double)(r % 2) * 2;
	case 2: return i == 77 ? 1e6 : 1 + (double)(r % 16) * 0x1p-40;
	case 3: return ldexp((double)(r >> 11), -53 + (int)(r % 400) - 200);
	case 4: return i == 5 ? nextafter(2, 0) : nextafter(nextafter(2, 0), 0);
	default: return (double)(r >> 11) * 0x1p-53 - 0.5;
	}
}

/* The variance has a small relative error, also if the mean is large or the values differ greatly. */
START_TEST(test_variance)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_variance");

	for (int kind = 0; kind < 6; kind++) {
		const size_t n = 3000;
		struct cua_aggregate a = {.op = CUA_AGGREGATE_VARIANCE, .type = CUA_F64};
		double *host = test_malloc(n * 8), *x, *out = test_alloc(ctx, 8), got;
		uint32_t *keys = test_alloc(ctx, n * 4), *zeros = test_malloc(n * 4);
		mpfr_t mean, sum, d;
		uint64_t groups = 0;

		mpfr_inits2(4000, mean, sum, d, (mpfr_ptr)NULL);
		mpfr_set_zero(mean, 1);
		mpfr_set_zero(sum, 1);
		memset(zeros, 0, n * 4);
		for (size_t i = 0; i < n; i++) {
			host[i] = hard_value(kind, i, &seed);
			mpfr_add_d(mean, mean, host[i], MPFR_RNDN);
		}
		mpfr_div_ui(mean, mean, n, MPFR_RNDN);
		for (size_t i = 0; i < n; i++) {
			mpfr_d_sub(d, host[i], mean, MPFR_RNDN);
			mpfr_sqr(d, d, MPFR_RNDN);
			mpfr_add(sum, sum, d, MPFR_RNDN);
		}
		mpfr_div_ui(sum, sum, n - 1, MPFR_RNDN);
		x = test_upload(ctx, host, n * 8);
		ck_assert_cua(cua_copy(ctx, keys, zeros, n * 4));
		a.values = x;
		a.out = out;
		a.ddof = 1;
		ck_assert_cua(cua_group_by(ctx, NULL, CUA_U32, n, keys, &a, 1, 1, NULL, &groups));
		test_download(ctx, &got, out, 8);
		mpfr_sub_d(d, sum, got, MPFR_RNDN);
		mpfr_div(d, d, sum, MPFR_RNDN);
		ck_assert_msg(fabs(mpfr_get_d(d, MPFR_RNDN)) < 0x1p-48,
			      "kind %d: %a, relative error %a", kind, got,
			      mpfr_get_d(d, MPFR_RNDN));
		mpfr_clears(mean, sum, d, (mpfr_ptr)NULL);
		test_free(ctx, x);
		test_free(ctx, out);
		test_free(ctx, keys);
		free(host);
		free(zeros);
	}
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* ---- unique ---- */

static uint64_t index_at(enum cua_type type, const char *array, size_t i)
{
	return load_bits(type, array, i);
}

/* With `numbered`, the inverse too. */
static void check_unique(struct cua_context *ctx, const struct group_call *c, enum cua_type type,
			 int numbered, const char *what)
{
	static unsigned turn;
	const size_t key_size = cua_type_size(c->key_type), size = cua_type_size(type);
	const size_t room = (size_t)(c->capacity < c->n ? c->capacity : c->n);
	struct cua_unique_options o = CUA_UNIQUE_OPTIONS_INIT;
	struct model_groups g = groups_of(c);
	void *keys = uploaded(ctx, c->keys, c->n * key_size);
	void *out_keys = poisoned(ctx, room * key_size), *inverse = poisoned(ctx, c->n * size);
	void *first = poisoned(ctx, room * size), *counts = poisoned(ctx, room * 8);
	uint64_t count = 77, *at = test_alloc(ctx, 8);
	char text[256];
	char *host[4];

	describe(c, what, text);
	ck_assert_cua(cua_context_set_threads(ctx, 1 + turn * 3 % 5));
	o.order = c->order;
	o.index_type = type == CUA_U64 && turn % 2 ? CUA_NONE : type;
	o.counts = counts;
	o.first = first;
	o.inverse = numbered ? inverse : NULL;
	turn++;
	if (turn % 2) {
		ck_assert_cua(cua_unique(ctx, &o, c->key_type, c->n, keys, c->capacity, out_keys,
					 &count));
	} else {
		ck_assert_cua(
			cua_unique(ctx, &o, c->key_type, c->n, keys, c->capacity, out_keys, at));
		test_download(ctx, &count, at, 8);
	}
	host[0] = downloaded(ctx, out_keys, room * key_size);
	host[1] = downloaded(ctx, counts, room * 8);
	host[2] = downloaded(ctx, first, room * size);
	host[3] = downloaded(ctx, inverse, c->n * size);
	EXPECT(count == g.groups, "%s: %llu keys, not %llu", text, (unsigned long long)count,
	       (unsigned long long)g.groups);
	for (size_t k = 0; k < g.stored; k++) {
		const struct model_row *group = &g.group[k];

		EXPECT(!memcmp(host[0] + k * key_size, (char *)c->keys + group->row * key_size,
			       key_size),
		       "%s: key %zu", text, k);
		EXPECT(index_at(CUA_U64, host[1], k) == group->n, "%s: count %zu", text, k);
		EXPECT(index_at(type, host[2], k) == group->row, "%s: first row %zu", text, k);
		for (size_t i = group->at; numbered && i < group->at + group->n; i++) {
			EXPECT(index_at(type, host[3], g.row[i].row) == k, "%s: inverse %zu", text,
			       g.row[i].row);
			/* the rows that remain have groups that are not stored */
			store_bits(type, host[3], g.row[i].row, UINT64_MAX);
		}
	}
	for (size_t i = 0; numbered && i < c->n; i++)
		EXPECT(index_at(type, host[3], i) == (size == 4 ? UINT32_MAX : UINT64_MAX),
		       "%s: inverse %zu of no stored key", text, i);
	for (int i = 0; i < 4; i++)
		free(host[i]);
	test_free(ctx, keys);
	test_free(ctx, at);
	groups_free(&g);
}

START_TEST(test_unique)
{
	const int turns = test_traced() ? 1 : test_scale(1, 4, 20);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_unique");

	for (int k = 0; k < turns * SPREADS; k++) {
		const uint64_t r = test_random(&seed);
		struct group_call c = {.key_type = key_types[_i]};

		c.n = 1 + (r >> 8) % (k % 5 ? 2000 : 60000);
		c.capacity = r & 3 ? c.n : (r >> 32) % (c.n + 1);
		c.order = (enum cua_key_order)(r >> 2 & 1 ? CUA_KEY_ORDER_SORTED : r >> 3 & 1);
		make_keys(&c, (enum spread)(k % SPREADS), &seed);
		check_unique(ctx, &c, r >> 4 & 1 ? CUA_U32 : CUA_U64, 1, spread_names[k % SPREADS]);
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Few keys, with and without numbers of the rows. */
START_TEST(test_few_unique)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_few_unique");

	for (int k = 0; k < (test_traced() ? 1 : test_scale(2, 4, 24)); k++) {
		const uint64_t r = test_random(&seed);
		const size_t groups = few_groups[(r >> 8) % COUNT(few_groups)];
		struct group_call c = {.key_type = key_types[_i],
				       .order = r & 1 ? CUA_KEY_ORDER_SORTED : CUA_KEY_ORDER_FIRST,
				       .n = few_rows(k % 2) + (r >> 16) % 999};

		c.capacity = r >> 28 & 3 ? c.n : (r >> 32) % (groups + 1);
		make_few_keys(&c, groups, groups > 1 && r >> 1 & 1, &seed);
		check_unique(ctx, &c, r >> 4 & 1 ? CUA_U32 : CUA_U64, (int)(r >> 5 & 1),
			     "few keys");
		check_unique(ctx, &c, CUA_U32, (int)(r >> 6 & 1), "few keys, again");
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- more than 2^31 and 2^32 rows ---- */

enum { PATTERN = (1 << 20) + 3, PATTERN_GROUPS = 1000 };

/* The key of a row; rows repeat after PATTERN. */
static uint32_t pattern_key(size_t i)
{
	return (uint32_t)(i % PATTERN * 7 % PATTERN_GROUPS) * 2654435761u;
}

/* Fills n keys by copies of copies. */
static uint32_t *pattern_keys(struct cua_context *ctx, size_t n)
{
	uint32_t *host = test_malloc(PATTERN * sizeof(*host)), *keys = test_alloc(ctx, 4 * n);

	for (size_t i = 0; i < PATTERN; i++)
		host[i] = pattern_key(i);
	ck_assert_cua(cua_copy(ctx, keys, host, PATTERN * sizeof(*host)));
	for (size_t done = PATTERN, more; done < n; done += more) {
		more = done < n - done ? done : n - done;
		ck_assert_cua(cua_copy(ctx, keys + done, keys, 4 * more));
	}
	free(host);
	return keys;
}

/* The counts of all groups, in the order of their first rows. */
static void pattern_counts(size_t n, uint64_t count[PATTERN_GROUPS])
{
	uint64_t by_number[PATTERN_GROUPS] = {0};

	for (size_t i = 0; i < PATTERN; i++)
		by_number[i * 7 % PATTERN_GROUPS] += n / PATTERN + (i < n % PATTERN);
	for (size_t g = 0; g < PATTERN_GROUPS; g++)
		count[g] = by_number[g * 7 % PATTERN_GROUPS];
}

/* All values are 3, except a 9 near the end. Skipped if the device lacks the memory. */
START_TEST(test_many_rows)
{
	const size_t n = _i ? ((size_t)1 << 32) + 7 : ((size_t)1 << 31) + 7, marked = n - 2;
	static const uint8_t three = 3, nine = 9;
	static uint64_t expected[PATTERN_GROUPS], sums[PATTERN_GROUPS], counts[PATTERN_GROUPS];
	struct cua_aggregate a[3] = {{0}};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t free_bytes = 0, total = 0, groups = 0;
	uint8_t *values, last[PATTERN_GROUPS];
	size_t bytes = 0, g;
	uint32_t *keys;

	a[0].op = CUA_AGGREGATE_COUNT;
	a[1].op = CUA_AGGREGATE_SUM;
	a[2].op = CUA_AGGREGATE_LAST;
	a[1].type = a[2].type = CUA_U8;
	ck_assert_cua(cua_group_by_workspace(ctx, NULL, CUA_U32, n, a, 3, PATTERN_GROUPS, &bytes));
	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total));
	if (test_quick() || test_traced() || TEST_BACKEND == CUA_BACKEND_CPU ||
	    free_bytes < bytes + 5 * n + n / 4) {
		printf("test_many_rows: skipped\n");
		cua_context_destroy(ctx);
		return;
	}
	keys = pattern_keys(ctx, n);
	values = test_alloc(ctx, n);
	ck_assert_cua(cua_fill(ctx, values, n, 1, &three));
	ck_assert_cua(cua_copy(ctx, values + marked, &nine, 1));
	a[1].values = a[2].values = values;
	a[0].out = test_alloc(ctx, sizeof(counts));
	a[1].out = test_alloc(ctx, sizeof(sums));
	a[2].out = test_alloc(ctx, sizeof(last));
	ck_assert_cua(
		cua_group_by(ctx, NULL, CUA_U32, n, keys, a, 3, PATTERN_GROUPS, NULL, &groups));
	ck_assert_uint_eq(groups, PATTERN_GROUPS);
	test_download(ctx, counts, a[0].out, sizeof(counts));
	test_download(ctx, sums, a[1].out, sizeof(sums));
	test_download(ctx, last, a[2].out, sizeof(last));
	pattern_counts(n, expected);
	for (g = 0; g < PATTERN_GROUPS; g++) {
		const int has_mark = pattern_key(marked) == pattern_key(g);

		EXPECT(counts[g] == expected[g] &&
			       sums[g] == 3 * expected[g] + (has_mark ? 6 : 0) &&
			       last[g] == (has_mark ? 9 : 3),
		       "group %zu: %llu rows, not %llu; sum %llu, last %u", g,
		       (unsigned long long)counts[g], (unsigned long long)expected[g],
		       (unsigned long long)sums[g], last[g]);
	}
	for (int i = 0; i < 3; i++)
		test_free(ctx, a[i].out);
	test_free(ctx, keys);
	test_free(ctx, values);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- arguments ---- */

START_TEST(test_empty)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_aggregate a = {.op = CUA_AGGREGATE_SUM, .type = CUA_F64};
	uint64_t *at = test_alloc(ctx, 8), groups = 77, key = 9;
	void *keys = test_upload(ctx, &key, 8);

	ck_assert_cua(cua_group_by(ctx, NULL, CUA_U64, 0, NULL, NULL, 0, 0, NULL, &groups));
	ck_assert_uint_eq(groups, 0);
	groups = 77;
	ck_assert_cua(cua_group_by(ctx, NULL, CUA_U64, 0, NULL, &a, 1, 100, NULL, &groups));
	ck_assert_uint_eq(groups, 0);
	ck_assert_cua(cua_group_by(ctx, NULL, CUA_U64, 0, NULL, &a, 1, 100, NULL, at));
	test_download(ctx, &groups, at, 8);
	ck_assert_uint_eq(groups, 0);
	groups = 77;
	ck_assert_cua(cua_unique(ctx, NULL, CUA_F32, 0, NULL, 5, NULL, &groups));
	ck_assert_uint_eq(groups, 0);
	/* only the count */
	ck_assert_cua(cua_group_by(ctx, NULL, CUA_U64, 1, keys, &a, 1, 0, NULL, &groups));
	ck_assert_uint_eq(groups, 1);
	groups = 77;
	ck_assert_cua(cua_unique(ctx, NULL, CUA_U64, 1, keys, 0, NULL, &groups));
	ck_assert_uint_eq(groups, 1);
	test_free(ctx, keys);
	test_free(ctx, at);
	cua_context_destroy(ctx);
}
END_TEST

/* Good arguments. Each refused call gets a copy with a bad argument. */
struct arguments {
	struct cua_context *ctx;
	struct cua_group_by_options o;
	struct cua_unique_options u;
	enum cua_type key_type;
	size_t n;
	char *keys, *values, *valid, *out_keys, *out;
	struct cua_aggregate a[2];
	uint32_t count;
	uint64_t *groups;
};

static enum cua_status call_with(const struct arguments *a)
{
	return cua_group_by(a->ctx, &a->o, a->key_type, a->n, a->keys, a->a, a->count, 4,
			    a->out_keys, a->groups);
}

static enum cua_status unique_with(const struct arguments *a)
{
	return cua_unique(a->ctx, &a->u, a->key_type, a->n, a->keys, 4, a->out_keys, a->groups);
}

static void refused_values(const struct arguments *good)
{
	struct arguments counting = *good;

	REFUSED(call_with, CUA_ERROR_NULL, ctx, NULL);
	REFUSED(call_with, CUA_ERROR_VALUE, o.struct_size, 3);
	REFUSED(call_with, CUA_ERROR_VALUE, o.mode, (enum cua_reduce_mode)9);
	REFUSED(call_with, CUA_ERROR_VALUE, o.mode, (enum cua_reduce_mode) - 1);
	REFUSED(call_with, CUA_ERROR_VALUE, o.order, (enum cua_key_order)4);
	REFUSED(call_with, CUA_ERROR_VALUE, o.order, (enum cua_key_order) - 1);
	REFUSED(call_with, CUA_ERROR_VALUE, count, CUA_AGGREGATES_MAX + 1);
	REFUSED(call_with, CUA_ERROR_VALUE, a[1].op, (enum cua_aggregate_op)0);
	REFUSED(call_with, CUA_ERROR_VALUE, a[1].op, (enum cua_aggregate_op)9);
	REFUSED(call_with, CUA_ERROR_VALUE, a[0].ddof, 1);
	REFUSED(call_with, CUA_ERROR_VALUE, a[1].valid_bits, 2);
	REFUSED(call_with, CUA_ERROR_VALUE, a[1].valid_bits, -1);
	REFUSED(call_with, CUA_ERROR_VALUE, a[1].reserved, 1);
	REFUSED(call_with, CUA_ERROR_TYPE, key_type, CUA_U16);
	REFUSED(call_with, CUA_ERROR_TYPE, key_type, CUA_F16);
	REFUSED(call_with, CUA_ERROR_TYPE, key_type, CUA_COMPLEX_F64);
	REFUSED(call_with, CUA_ERROR_TYPE, key_type, (enum cua_type)99);
	REFUSED(call_with, CUA_ERROR_TYPE, a[0].type, CUA_U128);
	REFUSED(call_with, CUA_ERROR_TYPE, a[0].type, CUA_NONE);
	REFUSED(call_with, CUA_ERROR_TYPE, a[0].result_type, CUA_F16);
	REFUSED(call_with, CUA_ERROR_TYPE, a[1].result_type, CUA_F32);
	REFUSED(call_with, CUA_ERROR_TYPE, a[1].type, (enum cua_type)77);
	counting.a[0].op = CUA_AGGREGATE_COUNT;
	good = &counting;
	REFUSED(call_with, CUA_ERROR_TYPE, a[0].result_type, CUA_U32);
	REFUSED(call_with, CUA_ERROR_TYPE, a[0].type, (enum cua_type)77);
	counting.a[0].op = CUA_AGGREGATE_LAST;
	REFUSED(call_with, CUA_ERROR_TYPE, a[0].result_type, CUA_F64);
	REFUSED(unique_with, CUA_ERROR_NULL, ctx, NULL);
	REFUSED(unique_with, CUA_ERROR_VALUE, u.struct_size, 1);
	REFUSED(unique_with, CUA_ERROR_VALUE, u.order, (enum cua_key_order)4);
	REFUSED(unique_with, CUA_ERROR_VALUE, u.index_type, CUA_I32);
	REFUSED(unique_with, CUA_ERROR_TYPE, key_type, CUA_I8);
}

static void refused_arrays(const struct arguments *good)
{
	REFUSED(call_with, CUA_ERROR_SIZE, n, SIZE_MAX);
	REFUSED(call_with, CUA_ERROR_SIZE, n, SIZE_MAX / 128);
	REFUSED(unique_with, CUA_ERROR_SIZE, n, SIZE_MAX / 4);
	REFUSED(call_with, CUA_ERROR_NULL, groups, NULL);
	REFUSED(call_with, CUA_ERROR_NULL, keys, NULL);
	REFUSED(call_with, CUA_ERROR_NULL, a[0].values, NULL);
	REFUSED(call_with, CUA_ERROR_NULL, a[1].out, NULL);
	REFUSED(call_with, CUA_ERROR_ALIGNMENT, keys, good->keys + 1);
	REFUSED(call_with, CUA_ERROR_ALIGNMENT, out_keys, good->out_keys + 2);
	REFUSED(call_with, CUA_ERROR_ALIGNMENT, a[0].values, good->values + 1);
	REFUSED(call_with, CUA_ERROR_ALIGNMENT, a[1].out, good->out + 4);
	REFUSED(call_with, CUA_ERROR_ALIGNMENT, groups, (uint64_t *)(void *)(good->out + 100));
	REFUSED(call_with, CUA_ERROR_OVERLAP, out_keys, good->keys);
	REFUSED(call_with, CUA_ERROR_OVERLAP, out_keys, good->values + 4);
	REFUSED(call_with, CUA_ERROR_OVERLAP, out_keys, good->out);
	REFUSED(call_with, CUA_ERROR_OVERLAP, a[1].out, good->a[0].out);
	REFUSED(call_with, CUA_ERROR_OVERLAP, a[1].out, good->valid - (uintptr_t)good->valid % 8);
	REFUSED(call_with, CUA_ERROR_OVERLAP, groups, (uint64_t *)(void *)good->out_keys);
	REFUSED(call_with, CUA_ERROR_OVERLAP, groups, (uint64_t *)(void *)good->keys);
	REFUSED(unique_with, CUA_ERROR_NULL, groups, NULL);
	REFUSED(unique_with, CUA_ERROR_NULL, keys, NULL);
	REFUSED(unique_with, CUA_ERROR_ALIGNMENT, u.counts, (uint64_t *)(void *)(good->out + 4));
	REFUSED(unique_with, CUA_ERROR_ALIGNMENT, u.inverse, good->out + 4);
	REFUSED(unique_with, CUA_ERROR_ALIGNMENT, u.first, good->out + 4);
	REFUSED(unique_with, CUA_ERROR_OVERLAP, u.inverse, good->keys);
	REFUSED(unique_with, CUA_ERROR_OVERLAP, u.first, good->out_keys);
	REFUSED(unique_with, CUA_ERROR_OVERLAP, u.counts, (uint64_t *)(void *)good->keys);
}

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	static const uint32_t host[8] = {3, 3, 9, 3, 1, 2, 3, 4};
	const float host_values[4] = {1, 2, 3, 4};
	const uint8_t host_valid[8] = {1, 1, 1, 0};
	uint64_t count = 77;
	char got[128];
	size_t bytes = 77;
	struct arguments a = {.ctx = ctx,
			      .o = CUA_GROUP_BY_OPTIONS_INIT,
			      .u = CUA_UNIQUE_OPTIONS_INIT,
			      .key_type = CUA_U32,
			      .n = 4,
			      .count = 2,
			      .groups = &count};

	a.keys = test_upload(ctx, host, sizeof(host));
	a.values = test_upload(ctx, host_values, sizeof(host_values));
	a.valid = test_upload(ctx, host_valid, sizeof(host_valid));
	a.out_keys = poisoned(ctx, sizeof(got) - GUARD);
	a.out = poisoned(ctx, sizeof(got) - GUARD);
	a.a[0].op = CUA_AGGREGATE_SUM;
	a.a[0].type = CUA_F32;
	a.a[0].values = a.values;
	a.a[0].out = a.out;
	a.a[1].op = CUA_AGGREGATE_VARIANCE;
	a.a[1].type = CUA_U32;
	a.a[1].values = a.keys;
	a.a[1].valid = (const uint8_t *)a.valid;
	a.a[1].out = a.out + 16;
	refused_values(&a);
	refused_arrays(&a);
	ck_assert_status(cua_group_by(ctx, NULL, CUA_U32, 4, a.keys, NULL, 1, 4, NULL, &count),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_group_by_workspace(ctx, NULL, CUA_U32, 4, a.a, 2, 4, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_group_by_workspace(ctx, NULL, CUA_U8, 4, a.a, 2, 4, &bytes),
			 CUA_ERROR_TYPE);
	ck_assert_status(
		cua_group_by_workspace(ctx, NULL, CUA_U32, SIZE_MAX / 8, a.a, 2, 4, &bytes),
		CUA_ERROR_SIZE);
	ck_assert_status(cua_unique_workspace(ctx, NULL, CUA_U32, 4, 4, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_unique_workspace(ctx, NULL, CUA_NONE, 4, 4, &bytes), CUA_ERROR_TYPE);
	ck_assert_uint_eq(bytes, 77);
	ck_assert_uint_eq(count, 77);
	expect_unwritten(ctx, a.out, sizeof(got));
	expect_unwritten(ctx, a.out_keys, sizeof(got));

	ck_assert_cua(call_with(&a));
	ck_assert_uint_eq(count, 2);
	test_download(ctx, got, a.out, sizeof(got));
	ck_assert(((float *)(void *)got)[0] == 7 && ((float *)(void *)got)[1] == 3);
	ck_assert(((double *)(void *)got)[2] == 0 && ((double *)(void *)got)[3] == 0);
	test_download(ctx, got, a.out_keys, sizeof(got));
	ck_assert(((uint32_t *)(void *)got)[0] == 3 && ((uint32_t *)(void *)got)[1] == 9);
	/* several aggregates may read the same array, and keys may be values */
	a.a[0].values = a.keys;
	ck_assert_cua(call_with(&a));
	ck_assert_cua(unique_with(&a));
	ck_assert_uint_eq(count, 2);
	test_free(ctx, a.keys);
	test_free(ctx, a.values);
	test_free(ctx, a.valid);
	test_free(ctx, a.out_keys);
	test_free(ctx, a.out);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the workspace ---- */

#if TEST_CUDA
/* A captured call that may not enlarge the workspace; its graph runs twice. */
static void check_captured(struct cua_context *ctx, cudaStream_t stream, const struct group_call *c)
{
	const struct cua_group_by_options o = options_of(c);
	const size_t key_size = cua_type_size(c->key_type);
	struct model_groups g = groups_of(c);
	struct outcome got = {.room = c->n};
	struct cua_aggregate a[CUA_AGGREGATES_MAX];
	uint64_t *groups = test_alloc(ctx, sizeof(*groups)), host = 77;
	char *keys = uploaded(ctx, c->keys, c->n * key_size);
	char *out_keys = poisoned(ctx, c->n * key_size);

	memcpy(a, c->aggregate, sizeof(a));
	for (uint32_t i = 0; i < c->count; i++) {
		a[i].values = uploaded(ctx, a[i].values, c->n * cua_type_size(a[i].type));
		a[i].valid = shares_mask(c, i) ? a[i - 1].valid
					       : uploaded(ctx, a[i].valid,
							  a[i].valid_bits ? (c->n + 7) / 8 : c->n);
		a[i].out = poisoned(ctx, c->n * cua_type_size(result_of(&a[i])));
	}
	begin_capture(ctx, stream);
	ck_assert_cua(cua_group_by(ctx, &o, c->key_type, c->n, keys, a, c->count, c->capacity,
				   out_keys, groups));
	/* a number in ordinary memory would have to wait */
	ck_assert_status(cua_group_by(ctx, &o, c->key_type, c->n, keys, a, c->count, c->capacity,
				      out_keys, &host),
			 CUA_ERROR_CAPTURE);
	run_captured(stream);
	test_download(ctx, &got.groups, groups, sizeof(got.groups));
	got.keys = downloaded(ctx, out_keys, c->n * key_size);
	for (uint32_t i = 0; i < c->count; i++) {
		got.out[i] = downloaded(ctx, a[i].out, c->n * cua_type_size(result_of(&a[i])));
		test_free(ctx, (void *)a[i].values);
		if (a[i].valid && !shares_mask(c, i))
			test_free(ctx, (void *)a[i].valid);
	}
	compare(c, &g, "a graph", &got);
	test_free(ctx, keys);
	test_free(ctx, groups);
	free_outcome(&got, c->count);
	groups_free(&g);
}
#endif

/* The reported size suffices: a context that has it need not grow. */
START_TEST(test_workspace)
{
	static const enum cua_type types[] = {CUA_F32, CUA_F64, CUA_I8, CUA_U64};
	const size_t n = test_quick() || test_traced() ? 20000 : 200000;
	uint64_t seed = test_seed("test_workspace");

	/* the last turn has few groups, and results that need little scratch memory */
	for (int turn = 0; turn < 5; turn++) {
		struct group_call c = {.key_type = turn < 4 ? key_types[turn * 2] : CUA_U32,
				       .n = turn < 4 || n < 150000 ? n : 150000,
				       .capacity = turn < 4 ? n : 2048};
		struct cua_group_by_options o;
		size_t bytes = 0, none = 77, fewer = 0;
#if TEST_CUDA
		cudaStream_t stream;
		struct cua_context *ctx = context_with_stream(&stream);
#else
		struct cua_context *ctx = test_context(TEST_BACKEND);
#endif

		c.order = turn % 2 ? CUA_KEY_ORDER_SORTED : CUA_KEY_ORDER_FIRST;
		if (turn < 4)
			add_operations(&c, types[turn]);
		else
			c.aggregate[c.count++].op = CUA_AGGREGATE_COUNT;
		make_keys(&c, turn == 4 ? FEW : turn < 2 ? SOME : MANY, &seed);
		for (uint32_t i = 0; i < c.count; i++) {
			make_aggregate(&c, &c.aggregate[i], KIND_OUTLIER, &seed);
			if (i % 3)
				share_mask(&c, i);
		}
		o = options_of(&c);
		ck_assert_cua(cua_group_by_workspace(ctx, &o, c.key_type, c.n, c.aggregate, c.count,
						     c.capacity, &bytes));
		ck_assert_cua(cua_group_by_workspace(ctx, &o, c.key_type, 0, c.aggregate, c.count,
						     c.capacity, &none));
		ck_assert_cua(cua_unique_workspace(ctx, NULL, c.key_type, c.n, c.capacity, &fewer));
		reserve_workspace(ctx, none, fewer, bytes);
#if TEST_CUDA
		check_captured(ctx, stream, &c);
		cua_context_destroy(ctx);
		ck_assert_cuda(cudaStreamDestroy(stream));
#else
		check(ctx, &c, "workspace");
		cua_context_destroy(ctx);
#endif
		free_call(&c);
	}
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("group_by");
	TCase *tc = tcase_create("group_by");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_arguments);
	tcase_add_test(tc, test_empty);
	tcase_add_loop_test(tc, test_types, 0, (int)COUNT(value_types));
	tcase_add_test(tc, test_picks);
	tcase_add_loop_test(tc, test_large, 0, SPREADS);
	tcase_add_loop_test(tc, test_any_order, 0, SPREADS);
	tcase_add_test(tc, test_any_order_counts);
	tcase_add_loop_test(tc, test_few, 0, (int)COUNT(key_types));
	tcase_add_test(tc, test_capacity);
	tcase_add_test(tc, test_permutation);
	tcase_add_test(tc, test_fast);
#if TEST_MPFR
	tcase_add_test(tc, test_variance);
#endif
	tcase_add_loop_test(tc, test_unique, 0, (int)COUNT(key_types));
	tcase_add_loop_test(tc, test_few_unique, 0, (int)COUNT(key_types));
	tcase_add_test(tc, test_workspace);
	tcase_add_loop_test(tc, test_many_rows, 0, 2);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
