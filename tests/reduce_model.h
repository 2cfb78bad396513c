/* SPDX-License-Identifier: MIT */
/* Sums, dot products, minima and maxima as loops over the elements, and elements for them. */
#ifndef CUATOMIC_TESTS_REDUCE_MODEL_H
#define CUATOMIC_TESTS_REDUCE_MODEL_H

#include <math.h>

#include "common.h"

/* Any element or result, compared by its bits. */
union value {
	uint32_t u32;
	int32_t i32;
	uint64_t u64;
	int64_t i64;
	float f32;
	double f64;
};

static const enum cua_type types[] = {CUA_U32, CUA_I32, CUA_U64, CUA_I64, CUA_F32, CUA_F64};

static size_t result_size(enum cua_reduce_op op, enum cua_type type)
{
	if ((op == CUA_REDUCE_SUM || op == CUA_REDUCE_DOT) && type != CUA_F32)
		return 8;
	return cua_type_size(type);
}

/* ---- the serial model ---- */

static int less_f32(float a, float b)
{
	return a < b || (a == b && signbit(a) && !signbit(b));
}

static int less_f64(double a, double b)
{
	return a < b || (a == b && signbit(a) && !signbit(b));
}

#define LESS(a, b) ((a) < (b))

/* M: the type of a sum; R: the type of its result. */
#define DEFINE_MODEL(t, T, M, R, out, LESS_THAN, is_nan, greatest, least, none)                    \
	static union value serial_##t(enum cua_reduce_op op, size_t n, const T *x, const T *y)     \
	{                                                                                          \
		union value v;                                                                     \
		M sum = 0;                                                                         \
		T best = op == CUA_REDUCE_MIN ? (greatest) : (least);                              \
		size_t used = 0;                                                                   \
                                                                                                   \
		memset(&v, 0, sizeof(v));                                                          \
		for (size_t i = 0; i < n; i++) {                                                   \
			sum += op == CUA_REDUCE_DOT ? (M)x[i] * (M)y[i] : (M)x[i];                 \
			if (is_nan(x[i]))                                                          \
				continue;                                                          \
			if (!used++ || (op == CUA_REDUCE_MIN ? LESS_THAN(x[i], best)               \
							     : LESS_THAN(best, x[i])))             \
				best = x[i];                                                       \
		}                                                                                  \
		if (n && !used)                                                                    \
			best = (none);                                                             \
		if (op == CUA_REDUCE_SUM || op == CUA_REDUCE_DOT)                                  \
			v.out = (R)sum;                                                            \
		else                                                                               \
			v.t = best;                                                                \
		return v;                                                                          \
	}
#define NEVER(x) ((void)(x), 0)
DEFINE_MODEL(u32, uint32_t, uint64_t, uint64_t, u64, LESS, NEVER, UINT32_MAX, 0, 0)
DEFINE_MODEL(i32, int32_t, uint64_t, uint64_t, u64, LESS, NEVER, INT32_MAX, INT32_MIN, 0)
DEFINE_MODEL(u64, uint64_t, uint64_t, uint64_t, u64, LESS, NEVER, UINT64_MAX, 0, 0)
DEFINE_MODEL(i64, int64_t, uint64_t, uint64_t, u64, LESS, NEVER, INT64_MAX, INT64_MIN, 0)
DEFINE_MODEL(f32, float, double, float, f32, less_f32, isnan, HUGE_VALF, -HUGE_VALF, NAN)
DEFINE_MODEL(f64, double, double, double, f64, less_f64, isnan, HUGE_VAL, -HUGE_VAL, (double)NAN)

static union value model(enum cua_reduce_op op, enum cua_type type, size_t n, const void *x,
			 const void *y)
{
	switch (type) {
	case CUA_U32: return serial_u32(op, n, x, y);
	case CUA_I32: return serial_i32(op, n, x, y);
	case CUA_U64: return serial_u64(op, n, x, y);
	case CUA_I64: return serial_i64(op, n, x, y);
	case CUA_F32: return serial_f32(op, n, x, y);
	default: return serial_f64(op, n, x, y);
	}
}

/* Integers of all bits. Floats are small integers: every order of addition is exact. */
static void fill(enum cua_type type, size_t n, void *p, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t r = test_random(seed);

		switch (type) {
		case CUA_U32:
		case CUA_I32: ((uint32_t *)p)[i] = (uint32_t)r; break;
		case CUA_F32: ((float *)p)[i] = (float)(r % 2001) - 1000; break;
		case CUA_F64: ((double *)p)[i] = (double)(r % 2000001) - 1000000; break;
		default: ((uint64_t *)p)[i] = r; break;
		}
	}
}

#endif /* CUATOMIC_TESTS_REDUCE_MODEL_H */
