/* SPDX-License-Identifier: MIT */
/*
 * A second definition, by other means, of the atomics on 16-bit floats, on 128 bits and on complex
 * numbers. It serves the tests of the host and of the device. The values to test follow.
 */
#ifndef CUATOMIC_TESTS_WIDE_MODEL_H
#define CUATOMIC_TESTS_WIDE_MODEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_complex.h>
#include <cuatomic/atomic_half.h>

#include "common.h"

enum wide_op {
	WIDE_EXCHANGE,
	WIDE_ADD,
	WIDE_SUB,
	WIDE_MIN, /* not complex */
	WIDE_MAX,
	WIDE_MUL,
	WIDE_DIV, /* 16-bit floats */
	WIDE_AND, /* u128 */
	WIDE_OR,
	WIDE_XOR,
	WIDE_NAND,
	WIDE_INC,
	WIDE_DEC,
	N_WIDE_OPS
};
#define WIDE_HAS_f16(op) ((op) <= WIDE_DIV)
#define WIDE_HAS_bf16(op) ((op) <= WIDE_DIV)
#define WIDE_HAS_u128(op) ((op) != WIDE_DIV)
#define WIDE_HAS_complex_f32(op) ((op) <= WIDE_SUB || (op) == WIDE_MUL)
#define WIDE_HAS_complex_f64(op) ((op) <= WIDE_SUB || (op) == WIDE_MUL)

/* ---- 16-bit floats: as doubles, rounded by a search for the neighbours ---- */

/* digits: of the fraction; least: the exponent of the least subnormal. */
static inline double wide_value(uint16_t bits, int digits, int least)
{
	int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
	double size;

	if (exponent == (0x7fff >> digits))
		size = fraction ? (double)NAN : (double)INFINITY;
	else if (exponent == 0)
		size = ldexp(fraction, least);
	else
		size = ldexp(fraction + (1 << digits), least + exponent - 1);
	return bits & 0x8000 ? -size : size;
}

/*
 * The nearest number; of two equally near, the even number. The successor of the largest number is
 * the next power of two.
 */
static inline uint16_t wide_round(double x, int digits, int least)
{
	uint16_t infinity = (uint16_t)(0x7fff >> digits << digits), low = 0, high = infinity;
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	double size = fabs(x), below, above, middle;

	if (x != x)
		return (uint16_t)(infinity | 1 << (digits - 1));
	if (isinf(x))
		return sign | infinity;
	while (high - low > 1) {
		uint16_t between = (uint16_t)((low + high) / 2);

		if (wide_value(between, digits, least) <= size)
			low = between;
		else
			high = between;
	}
	below = wide_value(low, digits, least);
	above = high == infinity ? ldexp(1, least + (infinity >> digits) - 1 + digits)
				 : wide_value(high, digits, least);
	middle = (below + above) / 2;
	if (size > middle || (size == middle && low & 1))
		low = high;
	return sign | low;
}

#define WIDE_HALF(s, digits, least)                                                                \
	static inline double value_##s(struct cua_##s v)                                           \
	{                                                                                          \
		return wide_value(v.bits, digits, least);                                          \
	}                                                                                          \
	static inline struct cua_##s rounded_##s(double x)                                         \
	{                                                                                          \
		struct cua_##s v = {wide_round(x, digits, least)};                                 \
                                                                                                   \
		return v;                                                                          \
	}                                                                                          \
	static inline struct cua_##s wide_##s(enum wide_op op, struct cua_##s old,                 \
					      struct cua_##s v)                                    \
	{                                                                                          \
		double a = value_##s(old), b = value_##s(v);                                       \
                                                                                                   \
		switch (op) {                                                                      \
		case WIDE_EXCHANGE: return v;                                                      \
		case WIDE_ADD: return rounded_##s(a + b);                                          \
		case WIDE_SUB: return rounded_##s(a - b);                                          \
		case WIDE_MUL: return rounded_##s(a * b);                                          \
		case WIDE_DIV: return rounded_##s(a / b);                                          \
		case WIDE_MIN:                                                                     \
			if (b != b || (a == 0 && b == 0 && !signbit(b)))                           \
				return old;                                                        \
			return a != a || b < a || (a == 0 && b == 0) ? v : old;                    \
		case WIDE_MAX:                                                                     \
			if (b != b || (a == 0 && b == 0 && signbit(b)))                            \
				return old;                                                        \
			return a != a || b > a || (a == 0 && b == 0) ? v : old;                    \
		default: return old;                                                               \
		}                                                                                  \
	}                                                                                          \
	/* the same bits, but a computed NaN may be any quiet NaN */                               \
	static inline int wide_same_##s(enum wide_op op, struct cua_##s x, struct cua_##s wanted)  \
	{                                                                                          \
		if (x.bits == wanted.bits)                                                         \
			return 1;                                                                  \
		return op != WIDE_EXCHANGE && op != WIDE_MIN && op != WIDE_MAX &&                  \
		       value_##s(x) != value_##s(x) && value_##s(wanted) != value_##s(wanted) &&   \
		       (x.bits >> (digits - 1) & 1);                                               \
	}
WIDE_HALF(f16, 10, -24)
WIDE_HALF(bf16, 7, -133)

/* ---- 128 bits: two words and a carry ---- */

/* By 32-bit digits, like long multiplication. */
static inline struct cua_u128 wide_product(struct cua_u128 x, struct cua_u128 y)
{
	uint32_t a[4] = {(uint32_t)x.lo, (uint32_t)(x.lo >> 32), (uint32_t)x.hi,
			 (uint32_t)(x.hi >> 32)};
	uint32_t b[4] = {(uint32_t)y.lo, (uint32_t)(y.lo >> 32), (uint32_t)y.hi,
			 (uint32_t)(y.hi >> 32)};
	uint32_t digit[4] = {0, 0, 0, 0};
	struct cua_u128 r;

	for (int i = 0; i < 4; i++) {
		uint64_t carry = 0;

		for (int j = 0; i + j < 4; j++) {
			carry += (uint64_t)a[i] * b[j] + digit[i + j];
			digit[i + j] = (uint32_t)carry;
			carry >>= 32;
		}
	}
	r.lo = digit[0] | (uint64_t)digit[1] << 32;
	r.hi = digit[2] | (uint64_t)digit[3] << 32;
	return r;
}

static inline struct cua_u128 wide_u128(enum wide_op op, struct cua_u128 old, struct cua_u128 v)
{
	struct cua_u128 r = old;
	int less = v.hi < old.hi || (v.hi == old.hi && v.lo < old.lo);
	int equal = v.hi == old.hi && v.lo == old.lo, zero = !old.hi && !old.lo;

	switch (op) {
	case WIDE_EXCHANGE: return v;
	case WIDE_ADD:
		r.lo = old.lo + v.lo;
		r.hi = old.hi + v.hi + (r.lo < old.lo);
		return r;
	case WIDE_SUB:
		r.lo = old.lo - v.lo;
		r.hi = old.hi - v.hi - (old.lo < v.lo);
		return r;
	case WIDE_MIN: return less ? v : old;
	case WIDE_MAX: return less || equal ? old : v;
	case WIDE_AND: r.lo &= v.lo, r.hi &= v.hi; return r;
	case WIDE_OR: r.lo |= v.lo, r.hi |= v.hi; return r;
	case WIDE_XOR: r.lo ^= v.lo, r.hi ^= v.hi; return r;
	case WIDE_NAND: r.lo = ~(r.lo & v.lo), r.hi = ~(r.hi & v.hi); return r;
	case WIDE_MUL: return wide_product(old, v);
	case WIDE_INC:
		r.lo = less || equal ? 0 : old.lo + 1;
		r.hi = less || equal ? 0 : old.hi + (r.lo == 0);
		return r;
	case WIDE_DEC:
		/* less: v < old */
		if (zero || less)
			return v;
		r.lo = old.lo - 1;
		r.hi = old.hi - (old.lo == 0);
		return r;
	default: return r;
	}
}

static inline int wide_same_u128(enum wide_op op, struct cua_u128 x, struct cua_u128 wanted)
{
	(void)op;
	return x.lo == wanted.lo && x.hi == wanted.hi;
}

/* ---- complex numbers; volatile, so that nothing is contracted ---- */

#define WIDE_COMPLEX(f, R)                                                                         \
	static inline struct cua_complex_##f wide_complex_##f(                                     \
		enum wide_op op, struct cua_complex_##f old, struct cua_complex_##f v)             \
	{                                                                                          \
		volatile R p, q;                                                                   \
		struct cua_complex_##f r = old;                                                    \
                                                                                                   \
		switch (op) {                                                                      \
		case WIDE_EXCHANGE: return v;                                                      \
		case WIDE_ADD: r.re = old.re + v.re, r.im = old.im + v.im; return r;               \
		case WIDE_SUB: r.re = old.re - v.re, r.im = old.im - v.im; return r;               \
		case WIDE_MUL:                                                                     \
			p = old.re * v.re, q = old.im * v.im;                                      \
			r.re = p - q;                                                              \
			p = old.re * v.im, q = old.im * v.re;                                      \
			r.im = p + q;                                                              \
			return r;                                                                  \
		default: return r;                                                                 \
		}                                                                                  \
	}                                                                                          \
	static inline int wide_same_part_##f(R x, R wanted)                                        \
	{                                                                                          \
		return memcmp(&x, &wanted, sizeof(x)) == 0 || (x != x && wanted != wanted);        \
	}                                                                                          \
	static inline int wide_same_complex_##f(enum wide_op op, struct cua_complex_##f x,         \
						struct cua_complex_##f wanted)                     \
	{                                                                                          \
		(void)op;                                                                          \
		return wide_same_part_##f(x.re, wanted.re) && wide_same_part_##f(x.im, wanted.im); \
	}
WIDE_COMPLEX(f32, float)
WIDE_COMPLEX(f64, double)

/* ---- an operation in every form ---- */

/* Forms as in atomic_model.h: plain, explicit, and the two without a result, if they exist. */
#define WIDE_FETCH(OP, op, s)                                                                      \
	case OP:                                                                                   \
		return form & 1 ? cua_atomic_fetch_##op##_explicit_##s(p, v, order, scope,         \
								       CUA_SPACE_GENERIC)          \
				: cua_atomic_fetch_##op##_##s(p, v);
#define WIDE_QUIET(OP, op, s)                                                                      \
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
#define WIDE_APPLY(s, T, more)                                                                     \
	CUA_FN T wide_apply_##s(enum wide_op op, int form, T *p, T v, enum cua_order order,        \
				enum cua_scope scope)                                              \
	{                                                                                          \
		T before = *p;                                                                     \
                                                                                                   \
		switch (op) {                                                                      \
		default: return before;                                                            \
		case WIDE_EXCHANGE:                                                                \
			return form & 1 ? cua_atomic_exchange_explicit_##s(p, v, order, scope,     \
									   CUA_SPACE_GENERIC)      \
					: cua_atomic_exchange_##s(p, v);                           \
			WIDE_QUIET(WIDE_ADD, add, s)                                               \
			WIDE_QUIET(WIDE_SUB, sub, s)                                               \
			more                                                                       \
		}                                                                                  \
	}
#define WIDE_MIN_MAX(s)                                                                            \
	WIDE_QUIET(WIDE_MIN, min, s)                                                               \
	WIDE_QUIET(WIDE_MAX, max, s)
#define WIDE_HALF_OPS(s)                                                                           \
	WIDE_MIN_MAX(s)                                                                            \
	WIDE_FETCH(WIDE_MUL, mul, s)                                                               \
	WIDE_FETCH(WIDE_DIV, div, s)
#define WIDE_BITS(s)                                                                               \
	WIDE_MIN_MAX(s)                                                                            \
	WIDE_QUIET(WIDE_AND, and, s)                                                               \
	WIDE_QUIET(WIDE_OR, or, s)                                                                 \
	WIDE_QUIET(WIDE_XOR, xor, s)                                                               \
	WIDE_QUIET(WIDE_INC, inc, s)                                                               \
	WIDE_QUIET(WIDE_DEC, dec, s)                                                               \
	WIDE_FETCH(WIDE_MUL, mul, s)                                                               \
	WIDE_FETCH(WIDE_NAND, nand, s)
WIDE_APPLY(f16, struct cua_f16, WIDE_HALF_OPS(f16))
WIDE_APPLY(bf16, struct cua_bf16, WIDE_HALF_OPS(bf16))
WIDE_APPLY(complex_f32, struct cua_complex_f32, WIDE_FETCH(WIDE_MUL, mul, complex_f32))
WIDE_APPLY(complex_f64, struct cua_complex_f64, WIDE_FETCH(WIDE_MUL, mul, complex_f64))
WIDE_APPLY(u128, struct cua_u128, WIDE_BITS(u128))

/* ---- values ---- */

/*
 * Zeros, the least, the largest subnormal, the least normal, 1 and its neighbours, the largest,
 * NaNs.
 */
static const struct cua_f16 wide_values_f16[] = {
	{0x0000}, {0x8000}, {0x0001}, {0x8001}, {0x03ff}, {0x0400}, {0x8400}, {0x3bff},
	{0x3c00}, {0x3c01}, {0xbc00}, {0x1400}, {0x0c01}, {0x3555}, {0x6800}, {0x6801},
	{0x7bff}, {0xfbff}, {0x7c00}, {0xfc00}, {0x7e00}, {0xfe01}, {0x7d01},
};
static const struct cua_bf16 wide_values_bf16[] = {
	{0x0000}, {0x8000}, {0x0001}, {0x8001}, {0x007f}, {0x0080}, {0x8080}, {0x3f7f},
	{0x3f80}, {0x3f81}, {0xbf80}, {0x1f80}, {0x2001}, {0x3eab}, {0x4380}, {0x4381},
	{0x7f7f}, {0xff7f}, {0x7f80}, {0xff80}, {0x7fc0}, {0xffc1}, {0x7f81},
};
static const struct cua_u128 wide_values_u128[] = {
	{0, 0},
	{1, 0},
	{UINT64_MAX, 0},
	{0, 1},
	{1, 1},
	{UINT64_MAX, UINT64_MAX},
	{0, UINT64_MAX},
	{UINT64_MAX - 1, UINT64_MAX},
	{0, UINT64_C(1) << 63},
	{UINT64_C(1) << 63, 7},
};
/* No subnormal operands or results, because a GPU may flush them to zero. */
static const struct cua_complex_f32 wide_values_complex_f32[] = {
	{0, 0},           {-0.0f, 0},      {1, 0},        {0, 1},   {1.5f, -3.25f},
	{-1e10f, 1e-10f}, {3e38f, -3e38f}, {INFINITY, 1}, {NAN, 1}, {16777216.0f, 1.0f / 3},
};
static const struct cua_complex_f64 wide_values_complex_f64[] = {
	{0, 0},
	{-0.0, 0},
	{1, 0},
	{0, 1},
	{1.5, -3.25},
	{-1e100, 1e-100},
	{1.5e308, -1.5e308},
	{INFINITY, 1},
	{NAN, 1},
	{9007199254740992.0, 1.0 / 3},
};
#define N_WIDE_VALUES(s) (sizeof(wide_values_##s) / sizeof(wide_values_##s[0]))

/* ---- random values, and the formats to print a value ---- */

#define SHOW_f16 "%#x"
#define SHOW_bf16 "%#x"
#define SHOW_u128 "%#llx:%#llx"
#define SHOW_complex_f32 "%.9g%+.9gi"
#define SHOW_complex_f64 "%.17g%+.17gi"
#define PARTS_f16(v) (v).bits
#define PARTS_bf16(v) (v).bits
#define PARTS_u128(v) (unsigned long long)(v).hi, (unsigned long long)(v).lo
#define PARTS_complex_f32(v) (double)(v).re, (double)(v).im
#define PARTS_complex_f64(v) (v).re, (v).im

static inline struct cua_f16 random_f16(uint64_t *seed)
{
	struct cua_f16 v = {(uint16_t)test_random(seed)};

	return v;
}

static inline struct cua_bf16 random_bf16(uint64_t *seed)
{
	struct cua_bf16 v = {(uint16_t)test_random(seed)};

	return v;
}

static inline struct cua_u128 random_u128(uint64_t *seed)
{
	struct cua_u128 v;

	v.lo = test_random(seed);
	v.hi = test_random(seed);
	return v;
}

/* Of either sign. No number is so small, or so close to another, that a sum is subnormal. */
static inline double random_part(uint64_t *seed)
{
	uint64_t r = test_random(seed);

	return ldexp((double)(int64_t)r, (int)(r % 41) - 63);
}

static inline struct cua_complex_f32 random_complex_f32(uint64_t *seed)
{
	struct cua_complex_f32 v;

	v.re = (float)random_part(seed);
	v.im = (float)random_part(seed);
	return v;
}

static inline struct cua_complex_f64 random_complex_f64(uint64_t *seed)
{
	struct cua_complex_f64 v;

	v.re = random_part(seed);
	v.im = random_part(seed);
	return v;
}

/* ---- a user's object, and the better of two ---- */

struct scored {
	double score;
	uint32_t who, n;
} __attribute__((aligned(16)));

CUA_FN struct scored scored_better(struct scored a, struct scored b)
{
	struct scored r = b.score > a.score ? b : a;

	r.n = a.n + b.n;
	return r;
}

#endif /* CUATOMIC_TESTS_WIDE_MODEL_H */
