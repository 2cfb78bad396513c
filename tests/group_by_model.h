/* SPDX-License-Identifier: MIT */
/*
 * The expected results of cua_group_by and cua_unique. The rows are sorted by key, and the values of
 * a group are combined by the model of a scatter. The model shares no code with the library.
 */
#ifndef CUATOMIC_TESTS_GROUP_BY_MODEL_H
#define CUATOMIC_TESTS_GROUP_BY_MODEL_H

#include "scatter_model.h"

/* A call; the arrays are in host memory. */
struct group_call {
	enum cua_type key_type;
	enum cua_key_order order;
	enum cua_reduce_mode mode;
	size_t n;
	uint64_t capacity;
	void *keys;
	uint32_t count;
	struct cua_aggregate aggregate[CUA_AGGREGATES_MAX];
};

/* A row, or a group: its rows are next to each other in the sorted array. */
struct model_row {
	uint64_t hi, lo; /* the key as a number in the order of the keys */
	size_t row, n;   /* of a group: its first row, and its number of rows */
	size_t at;       /* of a group: its first row in the sorted array */
};

struct model_groups {
	struct model_row *row;   /* all rows, by key and row */
	struct model_row *group; /* all groups, in the order of the call */
	uint64_t groups, stored;
};

/* ---- keys ---- */

/* Equal keys have equal numbers. */
static inline struct model_row ordered_key(enum cua_type type, const void *keys, size_t i)
{
	const struct format *f = format_of(type);
	struct model_row r = {.row = i, .n = 1};
	struct cua_u128 wide;
	double v;

	if (type == CUA_U128) {
		memcpy(&wide, (const char *)keys + 16 * i, sizeof(wide));
		r.hi = wide.hi;
		r.lo = wide.lo;
	} else if (!f) {
		r.lo = integer_of(type, load_bits(type, keys, i));
		if (is_signed_integer(type))
			r.lo ^= (uint64_t)1 << 63;
	} else {
		v = float_of(f, load_bits(type, keys, i));
		if (isnan(v)) {
			r.hi = 1;
		} else {
			v = v == 0 ? 0 : v;
			memcpy(&r.lo, &v, sizeof(v));
			r.lo = r.lo >> 63 ? ~r.lo : r.lo | (uint64_t)1 << 63;
		}
	}
	return r;
}

static inline int by_key(const void *a, const void *b)
{
	const struct model_row *x = a, *y = b;

	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static inline int by_row(const void *a, const void *b)
{
	const struct model_row *x = a, *y = b;

	return x->row < y->row ? -1 : x->row > y->row;
}

static inline struct model_groups groups_of(const struct group_call *c)
{
	const size_t bytes = (c->n + 1) * sizeof(struct model_row);
	struct model_groups g = {.row = test_malloc(bytes), .group = test_malloc(bytes)};

	for (size_t i = 0; i < c->n; i++)
		g.row[i] = ordered_key(c->key_type, c->keys, i);
	qsort(g.row, c->n, sizeof(*g.row), by_key);
	for (size_t i = 0; i < c->n; i++) {
		const int same =
			i && g.row[i].hi == g.row[i - 1].hi && g.row[i].lo == g.row[i - 1].lo;

		if (same) {
			g.group[g.groups - 1].n++;
			continue;
		}
		g.group[g.groups] = g.row[i];
		g.group[g.groups++].at = i;
	}
	qsort(g.group, g.groups, sizeof(*g.group), by_row);
	g.stored = c->capacity < g.groups ? c->capacity : g.groups;
	if (c->order == CUA_KEY_ORDER_SORTED)
		qsort(g.group, g.stored, sizeof(*g.group), by_key);
	return g;
}

static inline void groups_free(struct model_groups *g)
{
	free(g->row);
	free(g->group);
}

/* ---- values ---- */

static inline int model_is_valid(const struct cua_aggregate *a, size_t row)
{
	if (!a->valid)
		return 1;
	return a->valid_bits ? a->valid[row / 8] >> row % 8 & 1 : a->valid[row] != 0;
}

static inline enum cua_type result_of(const struct cua_aggregate *a)
{
	if (a->result_type)
		return a->result_type;
	switch (a->op) {
	case CUA_AGGREGATE_COUNT: return CUA_U64;
	case CUA_AGGREGATE_VARIANCE: return CUA_F64;
	case CUA_AGGREGATE_MEAN: return format_of(a->type) ? a->type : CUA_F64;
	case CUA_AGGREGATE_SUM:
		if (format_of(a->type))
			return a->type;
		return is_signed_integer(a->type) ? CUA_I64 : CUA_U64;
	default: return a->type;
	}
}

static inline double f64_of(const struct cua_aggregate *a, size_t row)
{
	const uint64_t bits = load_bits(a->type, a->values, row);

	if (format_of(a->type))
		return float_of(format_of(a->type), bits);
	return is_signed_integer(a->type) ? (double)(int64_t)integer_of(a->type, bits)
					  : (double)bits;
}

static inline double sum_f64(const double *x, size_t n)
{
	uint64_t bits;

	sum_begin();
	for (size_t i = 0; i < n; i++) {
		memcpy(&bits, &x[i], sizeof(bits));
		sum_take(format_of(CUA_F64), bits);
	}
	return float_of(format_of(CUA_F64), sum_round(format_of(CUA_F64)));
}

/* The formula of the header. `row` has the n valid rows. */
static inline double model_variance(const struct cua_aggregate *a, const size_t *row, size_t n)
{
	double *x = test_malloc((n + 1) * sizeof(double)), pivot, sum, square, v;

	for (size_t i = 0; i < n; i++)
		x[i] = f64_of(a, row[i]);
	pivot = sum_f64(x, n) / (double)n;
	for (size_t i = 0; i < n; i++)
		x[i] = f64_of(a, row[i]) - pivot;
	pivot += sum_f64(x, n) / (double)n;
	for (size_t i = 0; i < n; i++)
		x[i] = f64_of(a, row[i]) - pivot;
	sum = sum_f64(x, n);
	for (size_t i = 0; i < n; i++)
		x[i] *= x[i];
	square = sum_f64(x, n);
	free(x);
	v = sum * sum;
	v /= (double)n;
	v = square - v;
	if (n <= a->ddof)
		return (double)NAN;
	return (v < 0 ? 0 : v) / (double)(n - a->ddof);
}

/* Stores the result of a group; `row` has its n valid rows. */
static inline void model_result(const struct group_call *c, const struct cua_aggregate *a,
				const size_t *row, size_t n, void *out, size_t at)
{
	const enum cua_type result = result_of(a);
	const size_t size = cua_type_size(result);
	struct scatter_call s = {.type = a->type,
				 .result_type = result,
				 .overwrite = 1,
				 .width = 1,
				 .n = c->n,
				 .targets = 1,
				 .x = (void *)a->values};
	const struct scatter_column e = {&s, row, n, 0};

	switch (a->op) {
	case CUA_AGGREGATE_COUNT: store_bits(CUA_U64, out, at, n); return;
	case CUA_AGGREGATE_VARIANCE:
		store_bits(CUA_F64, out, at,
			   bits_of(format_of(CUA_F64), model_variance(a, row, n)));
		return;
	case CUA_AGGREGATE_FIRST:
	case CUA_AGGREGATE_LAST:
		memset((char *)out + at * size, 0, size);
		if (n)
			memcpy((char *)out + at * size,
			       (const char *)a->values +
				       row[a->op == CUA_AGGREGATE_FIRST ? 0 : n - 1] * size,
			       size);
		return;
	case CUA_AGGREGATE_MIN: s.op = CUA_SCATTER_MIN; break;
	case CUA_AGGREGATE_MAX: s.op = CUA_SCATTER_MAX; break;
	case CUA_AGGREGATE_MEAN: s.op = CUA_SCATTER_MEAN; break;
	default: s.op = CUA_SCATTER_ADD; break;
	}
	store_bits(result, out, at, expected_bits(&e, 0));
}

/* The results of an aggregate for the stored groups. */
static inline void *model_aggregate(const struct group_call *c, const struct model_groups *g,
				    const struct cua_aggregate *a)
{
	char *out = test_malloc((size_t)(g->stored + 1) * cua_type_size(result_of(a)));
	size_t *row = test_malloc((c->n + 1) * sizeof(*row));

	for (size_t k = 0; k < g->stored; k++) {
		const struct model_row *group = &g->group[k];
		size_t n = 0;

		for (size_t i = group->at; i < group->at + group->n; i++)
			if (model_is_valid(a, g->row[i].row))
				row[n++] = g->row[i].row;
		model_result(c, a, row, n, out, k);
	}
	free(row);
	return out;
}

#endif /* CUATOMIC_TESTS_GROUP_BY_MODEL_H */
