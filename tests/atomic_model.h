/* SPDX-License-Identifier: MIT */
/*
 * A second, plain definition of the atomics' effect on a value, for the tests of the host and of
 * the device; and the values to test.
 */
#ifndef CUATOMIC_TESTS_ATOMIC_MODEL_H
#define CUATOMIC_TESTS_ATOMIC_MODEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cuatomic/atomic.h>

enum model_op {
	OP_EXCHANGE,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_MIN,
	OP_MAX,
	OP_ADD_CAS, /* floats only */
	OP_AND,     /* integers only, as the next two */
	OP_OR,
	OP_XOR,
	N_OPS
};

/* Whether the operation is offered for floats, for integers. */
#define MODEL_HAS_f32(op) ((op) <= OP_ADD_CAS)
#define MODEL_HAS_f64(op) ((op) <= OP_ADD_CAS)
#define MODEL_HAS_u32(op) ((op) != OP_ADD_CAS)
#define MODEL_HAS_i32(op) ((op) != OP_ADD_CAS)
#define MODEL_HAS_u64(op) ((op) != OP_ADD_CAS)
#define MODEL_HAS_i64(op) ((op) != OP_ADD_CAS)

/* The value after `op` with operand v on old. U is the unsigned type, so that nothing overflows. */
#define MODEL_INTEGER(s, T, U)                                                                     \
	static inline T model_##s(enum model_op op, T old, T v)                                    \
	{                                                                                          \
		switch (op) {                                                                      \
		case OP_EXCHANGE: return v;                                                        \
		case OP_ADD: return (T)((U)old + (U)v);                                            \
		case OP_SUB: return (T)((U)old - (U)v);                                            \
		case OP_MUL: return (T)((U)old * (U)v);                                            \
		case OP_MIN: return v < old ? v : old;                                             \
		case OP_MAX: return v > old ? v : old;                                             \
		case OP_AND: return (T)((U)old & (U)v);                                            \
		case OP_OR: return (T)((U)old | (U)v);                                             \
		case OP_XOR: return (T)((U)old ^ (U)v);                                            \
		default: return old;                                                               \
		}                                                                                  \
	}                                                                                          \
	/* whether x is the expected value */                                                      \
	static inline int model_same_##s(T x, T wanted)                                            \
	{                                                                                          \
		return x == wanted;                                                                \
	}
MODEL_INTEGER(u32, uint32_t, uint32_t)
MODEL_INTEGER(i32, int32_t, uint32_t)
MODEL_INTEGER(u64, uint64_t, uint64_t)
MODEL_INTEGER(i64, int64_t, uint64_t)

/*
 * NaN loses, and -0 is less than +0. Each sum has two operands, so the compiler can contract
 * nothing.
 */
#define MODEL_FLOAT(s, T)                                                                          \
	static inline T model_##s(enum model_op op, T old, T v)                                    \
	{                                                                                          \
		switch (op) {                                                                      \
		case OP_EXCHANGE: return v;                                                        \
		case OP_ADD:                                                                       \
		case OP_ADD_CAS: return old + v;                                                   \
		case OP_SUB: return old - v;                                                       \
		case OP_MUL: return old * v;                                                       \
		case OP_MIN:                                                                       \
			if (v != v)                                                                \
				return old;                                                        \
			if (old != old)                                                            \
				return v;                                                          \
			if (v == 0 && old == 0)                                                    \
				return signbit(v) ? v : old;                                       \
			return v < old ? v : old;                                                  \
		case OP_MAX:                                                                       \
			if (v != v)                                                                \
				return old;                                                        \
			if (old != old)                                                            \
				return v;                                                          \
			if (v == 0 && old == 0)                                                    \
				return signbit(v) ? old : v;                                       \
			return v > old ? v : old;                                                  \
		default: return old;                                                               \
		}                                                                                  \
	}                                                                                          \
	/* the same bits; a NaN that was computed may be any NaN */                                \
	static inline int model_same_##s(T x, T wanted)                                            \
	{                                                                                          \
		return memcmp(&x, &wanted, sizeof(x)) == 0 || (x != x && wanted != wanted);        \
	}
MODEL_FLOAT(f32, float)
MODEL_FLOAT(f64, double)

/*
 * Runs a single operation. Form 0 is plain, form 1 explicit; forms 2 and 3 are the same without a
 * result, if they exist. These also return the value before, so that a single comparison serves all
 * forms.
 */
#define MODEL_QUIET(OP, op, s)                                                                     \
	case OP:                                                                                   \
		if (form == 0)                                                                     \
			return cua_atomic_fetch_##op##_##s(p, v);                                  \
		if (form == 1)                                                                     \
			return cua_atomic_fetch_##op##_explicit_##s(p, v, order, scope,            \
								    CUA_SPACE_GENERIC);            \
		if (form == 2)                                                                     \
			cua_atomic_##op##_##s(p, v);                                               \
		else                                                                               \
			cua_atomic_##op##_explicit_##s(p, v, order, scope, CUA_SPACE_GENERIC);     \
		return before;
#define MODEL_FLOAT_OPS(s)                                                                         \
	case OP_ADD_CAS:                                                                           \
		return form & 1 ? cua_atomic_fetch_add_cas_explicit_##s(p, v, order, scope,        \
									CUA_SPACE_GENERIC)         \
				: cua_atomic_fetch_add_cas_##s(p, v);
#define MODEL_INTEGER_OPS(s)                                                                       \
	MODEL_QUIET(OP_AND, and, s)                                                                \
	MODEL_QUIET(OP_OR, or, s)                                                                  \
	MODEL_QUIET(OP_XOR, xor, s)
#define MODEL_APPLY(s, T, more)                                                                    \
	CUA_FN T apply_##s(enum model_op op, int form, T *p, T v, enum cua_order order,            \
			   enum cua_scope scope)                                                   \
	{                                                                                          \
		T before = *p;                                                                     \
                                                                                                   \
		switch (op) {                                                                      \
		default: return before;                                                            \
		case OP_EXCHANGE:                                                                  \
			return form & 1 ? cua_atomic_exchange_explicit_##s(p, v, order, scope,     \
									   CUA_SPACE_GENERIC)      \
					: cua_atomic_exchange_##s(p, v);                           \
		case OP_MUL:                                                                       \
			return form & 1 ? cua_atomic_fetch_mul_explicit_##s(p, v, order, scope,    \
									    CUA_SPACE_GENERIC)     \
					: cua_atomic_fetch_mul_##s(p, v);                          \
			MODEL_QUIET(OP_ADD, add, s)                                                \
			MODEL_QUIET(OP_SUB, sub, s)                                                \
			MODEL_QUIET(OP_MIN, min, s)                                                \
			MODEL_QUIET(OP_MAX, max, s)                                                \
			more                                                                       \
		}                                                                                  \
	}
MODEL_APPLY(u32, uint32_t, MODEL_INTEGER_OPS(u32))
MODEL_APPLY(i32, int32_t, MODEL_INTEGER_OPS(i32))
MODEL_APPLY(u64, uint64_t, MODEL_INTEGER_OPS(u64))
MODEL_APPLY(i64, int64_t, MODEL_INTEGER_OPS(i64))
MODEL_APPLY(f32, float, MODEL_FLOAT_OPS(f32))
MODEL_APPLY(f64, double, MODEL_FLOAT_OPS(f64))

/* Values at limits. */
static const uint32_t values_u32[] = {
	0,          1,          2,          3,          7,          0x7fffffff,
	0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0xaaaaaaaa, 65537,
};
static const int32_t values_i32[] = {
	0, 1, -1, 2, -2, 3, 46341, INT32_MAX, INT32_MAX - 1, INT32_MIN, INT32_MIN + 1, 0x55555555,
};
static const uint64_t values_u64[] = {
	0,
	1,
	2,
	3,
	0xffffffff,
	0x100000000,
	0x7fffffffffffffff,
	0x8000000000000000,
	0x8000000000000001,
	UINT64_MAX - 1,
	UINT64_MAX,
	0xaaaaaaaaaaaaaaaa,
};
static const int64_t values_i64[] = {
	0,           1,
	-1,          2,
	3,           -3037000500,
	INT64_MAX,   INT64_MAX - 1,
	INT64_MIN,   INT64_MIN + 1,
	0x100000000, 0x5555555555555555,
};
/* Only normal numbers and zeros; their sums and products are normal, zero, infinite or NaN. */
static const float values_f32[] = {
	0.0f,
	-0.0f,
	1.0f,
	-1.0f,
	1.5f,
	-3.25f,
	1e10f,
	-3.4028234663852886e38f,
	3.4028234663852886e38f,
	INFINITY,
	-INFINITY,
	NAN,
	16777216.0f,
	-1e-10f,
};
static const double values_f64[] = {
	0.0,
	-0.0,
	1.0,
	-1.0,
	1.5,
	-3.25,
	1e100,
	-1.7976931348623157e308,
	1.7976931348623157e308,
	INFINITY,
	-INFINITY,
	NAN,
	9007199254740992.0,
	-1e-100,
};
#define N_VALUES(s) (sizeof(values_##s) / sizeof(values_##s[0]))

/* The rules of min and max of floats, by bits. */
static const struct model_rule {
	uint64_t old, v, min, max;
} model_rules[] = {
	/* -0 is less than +0 */
	{0x0000000000000000, 0x8000000000000000, 0x8000000000000000, 0x0000000000000000},
	{0x8000000000000000, 0x0000000000000000, 0x8000000000000000, 0x0000000000000000},
	/* a NaN operand is ignored, a NaN in memory is replaced */
	{0x3ff0000000000000, 0x7ff8000000000000, 0x3ff0000000000000, 0x3ff0000000000000},
	{0x3ff0000000000000, 0xfff8000000000000, 0x3ff0000000000000, 0x3ff0000000000000},
	{0x7ff8000000000000, 0x3ff0000000000000, 0x3ff0000000000000, 0x3ff0000000000000},
	{0xfff8000000000000, 0xfff0000000000000, 0xfff0000000000000, 0xfff0000000000000},
	/* two NaNs leave the memory unchanged */
	{0xfff8000000000123, 0x7ff8000000000000, 0xfff8000000000123, 0xfff8000000000123},
	/* subnormal numbers are not flushed */
	{0x0000000000000001, 0x0000000000000002, 0x0000000000000001, 0x0000000000000002},
	{0x8000000000000001, 0x8000000000000000, 0x8000000000000001, 0x8000000000000000},
	{0x8000000000000001, 0x0000000000000001, 0x8000000000000001, 0x0000000000000001},
	{0x7ff0000000000000, 0x7fefffffffffffff, 0x7fefffffffffffff, 0x7ff0000000000000},
};
#define N_MODEL_RULES (sizeof(model_rules) / sizeof(model_rules[0]))

/* A user's objects, and associative operations on them. */
struct span {
	int16_t low, high;
} __attribute__((aligned(4)));

struct mean {
	float sum;
	uint32_t n;
} __attribute__((aligned(8)));

CUA_FN struct span span_join(struct span a, struct span b)
{
	a.low = b.low < a.low ? b.low : a.low;
	a.high = b.high > a.high ? b.high : a.high;
	return a;
}

CUA_FN struct mean mean_join(struct mean a, struct mean b)
{
	a.sum += b.sum;
	a.n += b.n;
	return a;
}

#endif /* CUATOMIC_TESTS_ATOMIC_MODEL_H */
