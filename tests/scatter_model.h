/* SPDX-License-Identifier: MIT */
/* The expected result of a scatter, target by target. It shares no code with the library. */
#ifndef CUATOMIC_TESTS_SCATTER_MODEL_H
#define CUATOMIC_TESTS_SCATTER_MODEL_H

#include "sum_model.h"

/* A call; the arrays are in host memory. */
struct scatter_call {
	enum cua_scatter_op op;
	enum cua_type index_type, type, result_type;
	enum cua_reduce_mode mode;
	int overwrite;
	uint32_t width;
	size_t n, targets;
	void *index, *x;
};

/* ---- types ---- */

static inline int is_signed_integer(enum cua_type type)
{
	return type == CUA_I8 || type == CUA_I16 || type == CUA_I32 || type == CUA_I64;
}

/* An integer element; in two's complement if it is negative. */
static inline uint64_t integer_of(enum cua_type type, uint64_t bits)
{
	switch (type) {
	case CUA_I8: return (uint64_t)(int64_t)(int8_t)bits;
	case CUA_I16: return (uint64_t)(int64_t)(int16_t)bits;
	case CUA_I32: return (uint64_t)(int64_t)(int32_t)bits;
	default: return bits;
	}
}

/* ---- elements by target ---- */

/* Rows of x in the order of their targets: target t has row[start[t]] to row[start[t + 1] - 1]. */
struct scatter_rows {
	size_t *start, *row;
	uint64_t skipped;
};

/* Whether index i is in range; then *target is its value. */
static inline int target_of(const struct scatter_call *c, size_t i, size_t *target)
{
	uint64_t v = integer_of(c->index_type, load_bits(c->index_type, c->index, i));

	if (is_signed_integer(c->index_type) && (int64_t)v < 0)
		return 0;
	*target = (size_t)v;
	return v < c->targets;
}

static inline void rows_of(const struct scatter_call *c, struct scatter_rows *rows)
{
	size_t t, before = 0;

	rows->start = test_malloc((c->targets + 2) * sizeof(size_t));
	rows->row = test_malloc(c->n * sizeof(size_t));
	rows->skipped = 0;
	memset(rows->start, 0, (c->targets + 2) * sizeof(size_t));
	for (size_t i = 0; i < c->n; i++) {
		if (target_of(c, i, &t))
			rows->start[t + 2]++;
		else
			rows->skipped++;
	}
	for (t = 0; t <= c->targets; t++) {
		before += rows->start[t + 1];
		rows->start[t + 1] = before;
	}
	/* start[t + 1] is where the next row of target t belongs, and at last its end */
	for (size_t i = 0; i < c->n; i++)
		if (target_of(c, i, &t))
			rows->row[rows->start[t + 1]++] = i;
}

static inline void rows_free(struct scatter_rows *rows)
{
	free(rows->start);
	free(rows->row);
}

/* The elements that are combined into a target. */
struct scatter_column {
	const struct scatter_call *call;
	const size_t *row;
	size_t count, column;
};

static inline uint64_t column_bits(const struct scatter_column *e, size_t i)
{
	return load_bits(e->call->type, e->call->x, e->row[i] * e->call->width + e->column);
}

/* ---- the operations ---- */

static inline uint64_t integer_sum(const struct scatter_column *e)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < e->count; i++)
		sum += integer_of(e->call->type, column_bits(e, i));
	return sum;
}

static inline void float_sum(const struct scatter_column *e)
{
	const struct format *f = format_of(e->call->type);

	sum_begin();
	for (size_t i = 0; i < e->count; i++)
		sum_take(f, column_bits(e, i));
}

static inline uint64_t expected_add(const struct scatter_column *e, uint64_t old)
{
	const struct scatter_call *c = e->call;
	const struct format *result = format_of(c->result_type);

	if (!result)
		return integer_sum(e) + (c->overwrite ? 0 : old);
	float_sum(e);
	if (sum_is_zero())
		return c->overwrite ? 0 : old;
	if (!c->overwrite)
		sum_take(result, old);
	return sum_round(result);
}

static inline uint64_t expected_mean(const struct scatter_column *e, uint64_t old)
{
	const struct scatter_call *c = e->call;
	const struct format *f = format_of(c->type), *result = format_of(c->result_type);
	double sum;

	if (!e->count)
		return c->overwrite ? format_nan(result) : old;
	if (f) {
		float_sum(e);
		sum = float_of(format_of(CUA_F64), sum_round(format_of(CUA_F64)));
	} else if (is_signed_integer(c->type)) {
		sum = (double)(int64_t)integer_sum(e);
	} else {
		sum = (double)integer_sum(e);
	}
	return bits_of(result, sum / (double)e->count);
}

/* Whether a replaces b as the minimum or maximum. */
static inline int float_wins(enum cua_scatter_op op, double a, double b)
{
	if (a == b)
		return op == CUA_SCATTER_MIN ? signbit(a) && !signbit(b)
					     : signbit(b) && !signbit(a);
	return op == CUA_SCATTER_MIN ? a < b : a > b;
}

static inline int integer_wins(const struct scatter_call *c, uint64_t a, uint64_t b)
{
	int less = is_signed_integer(c->type) ? (int64_t)a < (int64_t)b : a < b;

	return c->op == CUA_SCATTER_MIN ? less : a != b && !less;
}

/* The greatest integer of the result type for MIN, the least for MAX. */
static inline uint64_t integer_limit(const struct scatter_call *c)
{
	const uint64_t top = (uint64_t)1 << (8 * cua_type_size(c->result_type) - 1);

	if (is_signed_integer(c->result_type))
		return c->op == CUA_SCATTER_MIN ? top - 1 : 0 - top;
	return c->op == CUA_SCATTER_MIN ? top - 1 + top : 0;
}

static inline uint64_t expected_integer_extreme(const struct scatter_column *e, uint64_t old)
{
	const struct scatter_call *c = e->call;
	uint64_t best = c->overwrite ? integer_limit(c) : integer_of(c->result_type, old);

	for (size_t i = 0; i < e->count; i++) {
		uint64_t v = integer_of(c->type, column_bits(e, i));

		if (integer_wins(c, v, best))
			best = v;
	}
	return best;
}

static inline uint64_t expected_float_extreme(const struct scatter_column *e, uint64_t old)
{
	const struct scatter_call *c = e->call;
	const struct format *f = format_of(c->type), *result = format_of(c->result_type);
	double best = 0, before = float_of(result, old);
	size_t used = 0;

	for (size_t i = 0; i < e->count; i++) {
		double v = float_of(f, column_bits(e, i));

		if (!isnan(v) && (!used++ || float_wins(c->op, v, best)))
			best = v;
	}
	if (!c->overwrite)
		return used && (isnan(before) || float_wins(c->op, best, before))
			       ? bits_of(result, best)
			       : old;
	if (!e->count)
		return bits_of(result, c->op == CUA_SCATTER_MIN ? HUGE_VAL : -HUGE_VAL);
	return used ? bits_of(result, best) : format_nan(result);
}

static inline uint64_t expected_bits(const struct scatter_column *e, uint64_t old)
{
	switch (e->call->op) {
	case CUA_SCATTER_ADD: return expected_add(e, old);
	case CUA_SCATTER_MEAN: return expected_mean(e, old);
	default:
		return format_of(e->call->type) ? expected_float_extreme(e, old)
						: expected_integer_extreme(e, old);
	}
}

/* Stores the new values of all targets, and returns the number of skipped indexes. */
static inline uint64_t model_scatter(const struct scatter_call *c, const void *old, void *expected)
{
	struct scatter_rows rows;
	uint64_t skipped;

	rows_of(c, &rows);
	for (size_t t = 0; t < c->targets; t++) {
		for (size_t column = 0; column < c->width; column++) {
			const struct scatter_column e = {c, rows.row + rows.start[t],
							 rows.start[t + 1] - rows.start[t], column};
			size_t at = t * c->width + column;
			uint64_t before = load_bits(c->result_type, old, at);

			store_bits(c->result_type, expected, at, expected_bits(&e, before));
		}
	}
	skipped = rows.skipped;
	rows_free(&rows);
	return skipped;
}

#endif /* CUATOMIC_TESTS_SCATTER_MODEL_H */
