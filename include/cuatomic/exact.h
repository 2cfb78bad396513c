/* SPDX-License-Identifier: MIT */
/*
 * Exact sums: sums of floats, or of products of floats, without any rounding until the end. The
 * result is rounded once, to nearest even. So it depends on the elements alone. It does not depend
 * on their order, on their division over threads, blocks, devices or machines, or on the machine.
 *
 * Source: the long accumulator of Kulisch (1971 and later), with deferred carries as in Neal, Fast
 * exact summation using small and large superaccumulators (2015).
 *
 *     struct cua_exact a = CUA_EXACT_INIT, b = CUA_EXACT_INIT;
 *
 *     cua_exact_sum(ctx, CUA_F64, n, x, &a);        a += the sum of x, on the context's backend
 *     cua_exact_dot(other, CUA_F32, m, y, z, &b);   b += the dot product of y and z, elsewhere
 *     cua_exact_merge(&a, &b);
 *     total = cua_exact_round_f64(&a);              rounded here, once
 *
 * A single format serves all types: a sum may contain f16, bf16, f32 and f64, and products of two
 * elements of the same type. It is plain data without pointers. It may be stored, copied between
 * devices and machines of the same byte order, and merged there.
 *
 * Values:
 * - NaN: a NaN element or factor makes the result NaN. So do infinity times zero, and infinities of
 *   both signs in a sum. Every NaN result is the same: quiet, positive, no payload.
 * - infinity: infinities of a single sign make the result this infinity.
 * - overflow: intermediate sums have no upper limit. A result is an infinity if its magnitude is at
 *   least the type's largest number plus half an ulp.
 * - zero: a sum of exactly zero is +0, also for no elements and for elements that all are -0. A
 *   nonzero sum that rounds to zero keeps its sign.
 * - subnormal: subnormal elements, products and results are exact. A product is infinitely precise,
 *   even if its type could not hold it.
 *
 * Synchronization of two calls on the same struct cua_exact. X: the caller must order the calls.
 *   -: the calls may run concurrently. A merge or a copy reads its source.
 *
 *               write  read
 *     write       X      X
 *     read        X      -
 *
 * Scope, memory order: none; all accesses are plain. Host calls are ordered as in
 *   cuatomic/context.h.
 * Progress: every function ends after a bounded number of its own steps.
 *
 * Argument:
 * - Digit i is a signed 64-bit integer of weight 2^(32 i - 2176). The least product of two f64 is
 *   2^-2148, and 2^64 products of the largest are below 2^2112. So no bit is lost at either end.
 * - A value is added as a sign and integers of at most 32 bits, each to its digit. `pending` counts
 *   these additions: |digit| <= (pending + 1) 2^32. When it exceeds 2^29, the digits are
 *   normalized: each carries the bits above 32 to the next digit. So a digit stays below 2^63.
 *   Carries do not change the sum.
 * - In a normalized sum, all digits but the last are in [0, 2^32). So each value has a single
 *   representation, and two normalized sums are equal if and only if their bytes are.
 * - Rounding extracts as many bits as the result type's precision, from the leading bit down, or
 *   down to the least subnormal. It then inspects all lower bits, so there is no double rounding.
 *
 * These functions use no floating-point arithmetic, so compiler flags and processor modes have no
 * effect.
 */
#ifndef CUATOMIC_EXACT_H
#define CUATOMIC_EXACT_H

#include <cuatomic/context.h>
#include <cuatomic/detail/float_bits.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

#define CUA_EXACT_DIGITS 136
/*
 * The version of the format: 0, so that zeros are an empty sum. A host call that can read the sum
 * refuses another version with CUA_ERROR_LAYOUT. Otherwise such a sum counts as NaN.
 */
#define CUA_EXACT_LAYOUT 0
/* Bit 0 of digit 0 has the weight 2^-CUA__EXACT_POINT. */
#define CUA__EXACT_POINT 2176
#define CUA__EXACT_PENDING_MAX (1u << 29)

/* Flags of special elements. The digits have only the finite elements. */
#define CUA_EXACT_NAN 1u
#define CUA_EXACT_INFINITY 2u
#define CUA_EXACT_NEGATIVE_INFINITY 4u

/* An exact sum. Zeros are an empty sum. */
struct cua_exact {
	uint32_t layout;  /* CUA_EXACT_LAYOUT */
	uint32_t flags;   /* CUA_EXACT_NAN and so on */
	uint32_t pending; /* additions since the digits were last normalized */
	uint32_t reserved;
	int64_t digit[CUA_EXACT_DIGITS];
};
/* Any contents of `digit` and `pending` are some number: using them is safe. */
CUA_STATIC_ASSERT(sizeof(struct cua_exact) == 16 + 8 * CUA_EXACT_DIGITS, "the state is ABI");
CUA_STATIC_ASSERT(CUA__OFFSETOF(struct cua_exact, digit) == 16, "the state is ABI");

#define CUA_EXACT_INIT                                                                             \
	{                                                                                          \
		CUA_EXACT_LAYOUT, 0, 0, 0,                                                         \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

/* ---- formats ---- */

/* Bits of fraction and exponent. */
#define CUA__EXACT_FRACTION_f16 10
#define CUA__EXACT_EXPONENT_f16 5
#define CUA__EXACT_FRACTION_bf16 7
#define CUA__EXACT_EXPONENT_bf16 8
#define CUA__EXACT_FRACTION_f32 23
#define CUA__EXACT_EXPONENT_f32 8
#define CUA__EXACT_FRACTION_f64 52
#define CUA__EXACT_EXPONENT_f64 11

/* The fields of an element. A finite element is mantissa times 2^(at - CUA__EXACT_POINT). */
struct cua__exact_parts {
	uint64_t mantissa;
	int at;
	uint32_t negative;
	uint32_t flags; /* the flags of the element alone, as in struct cua_exact */
};

CUA_FORCE struct cua__exact_parts cua__exact_parts_of(uint64_t bits, int fraction_bits,
						      int exponent_bits)
{
	struct cua__exact_parts p;
	uint64_t fraction = bits & (((uint64_t)1 << fraction_bits) - 1);
	int all = (1 << exponent_bits) - 1;
	int exponent = (int)(bits >> fraction_bits) & all;

	p.negative = (uint32_t)(bits >> (fraction_bits + exponent_bits)) & 1;
	p.mantissa = exponent ? fraction | (uint64_t)1 << fraction_bits : fraction;
	p.at = CUA__EXACT_POINT - all / 2 - fraction_bits + (exponent ? exponent : 1);
	p.flags = 0;
	if (exponent == all)
		p.flags = fraction     ? CUA_EXACT_NAN
			  : p.negative ? CUA_EXACT_NEGATIVE_INFINITY
				       : CUA_EXACT_INFINITY;
	return p;
}

/* The flags of a product. */
CUA_FORCE uint32_t cua__exact_product_flags(struct cua__exact_parts x, struct cua__exact_parts y)
{
	if (!(x.flags | y.flags))
		return 0;
	/* here the mantissa of an infinity is not zero */
	if ((x.flags | y.flags) & CUA_EXACT_NAN || x.mantissa == 0 || y.mantissa == 0)
		return CUA_EXACT_NAN;
	return x.negative != y.negative ? CUA_EXACT_NEGATIVE_INFINITY : CUA_EXACT_INFINITY;
}

CUA_FORCE uint64_t cua__exact_bits_f16(struct cua_f16 x)
{
	return x.bits;
}

CUA_FORCE uint64_t cua__exact_bits_bf16(struct cua_bf16 x)
{
	return x.bits;
}

CUA_FORCE uint64_t cua__exact_bits_f32(float x)
{
	return cua__bits_f32(x);
}

CUA_FORCE uint64_t cua__exact_bits_f64(double x)
{
	return cua__bits_f64(x);
}

/* ---- digits ---- */

/* a + b modulo 2^64. The digits of uninitialized memory may overflow; digits of a sum do not. */
CUA_FORCE int64_t cua__exact_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/*
 * Propagates the carries of digits lo to hi, lo <= hi. The digits below lo are zero. The last digit
 * keeps its carry.
 */
CUA_FN void cua__exact_carry(int64_t *digit, int lo, int hi)
{
	int64_t carry = 0;

	for (int i = lo; i < hi; i++) {
		carry = cua__exact_plus(carry, digit[i]);
		digit[i] = carry & 0xffffffff;
		carry >>= 32;
	}
	digit[hi] = cua__exact_plus(digit[hi], carry);
}

/* Digit i of the magnitude of a normalized number. A negative number is subtracted from zero. */
CUA_FORCE uint64_t cua__exact_magnitude(const int64_t *digit, int first, int hi, int i)
{
	if (i < first || i > hi)
		return 0;
	if (digit[hi] >= 0)
		return (uint64_t)digit[i];
	if (i == first)
		return i == hi ? 0 - (uint64_t)digit[i] : 0x100000000u - (uint64_t)digit[i];
	return i == hi ? ~(uint64_t)digit[i] : 0xffffffffu - (uint64_t)digit[i];
}

/*
 * Rounds the number in normalized digits lo to hi to a format and returns its bits. All other
 * digits are zero, and the magnitude of the last digit is below 2^32. Bit 0 of digit 0 has the
 * weight 2^-point.
 */
CUA_FN uint64_t cua__exact_round_at(const int64_t *digit, int lo, int hi, int point, uint32_t flags,
				    int fraction_bits, int exponent_bits)
{
	const uint64_t all = ((uint64_t)1 << exponent_bits) - 1, infinity = all << fraction_bits;
	const uint64_t minus = (uint64_t)1 << (fraction_bits + exponent_bits);
	/* the position of the least subnormal's bit */
	const int least = point - (int)(all / 2) - fraction_bits + 1;
	const uint32_t both = CUA_EXACT_INFINITY | CUA_EXACT_NEGATIVE_INFINITY;
	uint64_t sign, magnitude, mantissa, bits;
	int first = lo, top = hi, position, at, bit;

	if (flags & CUA_EXACT_NAN || (flags & both) == both)
		return infinity | (uint64_t)1 << (fraction_bits - 1);
	if (flags & both)
		return flags & CUA_EXACT_INFINITY ? infinity : minus | infinity;
	while (first <= hi && digit[first] == 0)
		first++;
	if (first > hi)
		return 0;
	sign = digit[hi] < 0 ? minus : 0;
	/*
	 * a normalized number has a nonzero digit; without normalization all magnitudes may be zero
	 */
	while ((magnitude = cua__exact_magnitude(digit, first, hi, top)) == 0 && top > first)
		top--;
	/* `position` is that of the result's last bit */
	for (bit = 32 * top - 1; magnitude; magnitude >>= 1)
		bit++;
	position = bit - fraction_bits > least ? bit - fraction_bits : least;
	if ((uint64_t)(position - least) >= all)
		return sign | infinity;
	at = position >> 5;
	bit = position & 31;
	mantissa = cua__exact_magnitude(digit, first, hi, at) |
		   cua__exact_magnitude(digit, first, hi, at + 1) << 32;
	mantissa >>= bit;
	if (bit)
		mantissa |= cua__exact_magnitude(digit, first, hi, at + 2) << (64 - bit);
	/* the half bit, and whether any lower bit is set */
	at = (position - 1) >> 5;
	bit = (position - 1) & 31;
	magnitude = cua__exact_magnitude(digit, first, hi, at);
	if (magnitude >> bit & 1 &&
	    (mantissa & 1 || first < at || (magnitude & (((uint64_t)1 << bit) - 1)) != 0))
		mantissa++;
	/* the leading bit adds 1 to the exponent, and so does a carry into the next binade */
	bits = ((uint64_t)(position - least) << fraction_bits) + mantissa;
	return sign | (bits < infinity ? bits : infinity);
}

CUA_FN uint64_t cua__exact_round(const int64_t *digit, int lo, int hi, uint32_t flags,
				 int fraction_bits, int exponent_bits)
{
	return cua__exact_round_at(digit, lo, hi, CUA__EXACT_POINT, flags, fraction_bits,
				   exponent_bits);
}

/* Adds mantissa 2^at with this sign to the digits: less than 2^32 to each of three neighbours. */
CUA_FORCE void cua__exact_insert(int64_t *digit, uint32_t negative, uint64_t mantissa, int at)
{
	int64_t *d = digit + (at >> 5), sign = -(int64_t)negative;
	int shift = at & 31;
	uint64_t low = mantissa << shift, high = mantissa >> 1 >> (63 - shift);

	d[0] = cua__exact_plus(d[0], ((int64_t)(low & 0xffffffffu) ^ sign) - sign);
	d[1] = cua__exact_plus(d[1], ((int64_t)(low >> 32) ^ sign) - sign);
	d[2] = cua__exact_plus(d[2], ((int64_t)high ^ sign) - sign);
}

/* ---- sums ---- */

/* Sets the sum to 0, like CUA_EXACT_INIT. No other thread may use it. */
CUA_FN void cua_exact_init(struct cua_exact *e)
{
	e->layout = CUA_EXACT_LAYOUT;
	e->flags = 0;
	e->pending = 0;
	e->reserved = 0;
	for (int i = 0; i < CUA_EXACT_DIGITS; i++)
		e->digit[i] = 0;
}

/* Normalizes the digits: each value has a single normalized form. */
CUA_FN void cua_exact_normalize(struct cua_exact *e)
{
	if (e->pending)
		cua__exact_carry(e->digit, 0, CUA_EXACT_DIGITS - 1);
	e->pending = 0;
}

CUA_FORCE void cua__exact_count(struct cua_exact *e, uint32_t additions)
{
	e->pending += additions;
	if (e->pending > CUA__EXACT_PENDING_MAX)
		cua_exact_normalize(e);
}

CUA_FORCE void cua__exact_add(struct cua_exact *e, struct cua__exact_parts p)
{
	if (p.flags) {
		e->flags |= p.flags;
		return;
	}
	cua__exact_insert(e->digit, p.negative, p.mantissa, p.at);
	cua__exact_count(e, 1);
}

/* The product of two mantissas in three parts of at most 64 bits. */
CUA_FORCE void cua__exact_add_product(struct cua_exact *e, struct cua__exact_parts x,
				      struct cua__exact_parts y)
{
	uint64_t x0 = x.mantissa & 0xffffffffu, x1 = x.mantissa >> 32;
	uint64_t y0 = y.mantissa & 0xffffffffu, y1 = y.mantissa >> 32;
	uint32_t negative = x.negative ^ y.negative;
	int at = x.at + y.at - CUA__EXACT_POINT;

	if (x.flags | y.flags) {
		e->flags |= cua__exact_product_flags(x, y);
		return;
	}
	cua__exact_insert(e->digit, negative, x0 * y0, at);
	if (x1 | y1) {
		cua__exact_insert(e->digit, negative, x0 * y1 + x1 * y0, at + 32);
		cua__exact_insert(e->digit, negative, x1 * y1, at + 64);
	}
	cua__exact_count(e, 3);
}

/*
 * dst += src. src is unchanged, unless it is dst: then the sum is doubled. If src has another
 * layout, dst becomes NaN.
 */
CUA_FN void cua_exact_merge(struct cua_exact *dst, const struct cua_exact *src)
{
	if (src->layout != CUA_EXACT_LAYOUT) {
		dst->flags |= CUA_EXACT_NAN;
		return;
	}
	dst->flags |= src->flags;
	/* the bounds of the digits add up */
	dst->pending += src->pending + 1;
	for (int i = 0; i < CUA_EXACT_DIGITS; i++)
		dst->digit[i] = cua__exact_plus(dst->digit[i], src->digit[i]);
	cua__exact_count(dst, 0);
}

CUA_FORCE uint64_t cua__exact_rounded(struct cua_exact *e, int fraction_bits, int exponent_bits)
{
	cua_exact_normalize(e);
	return cua__exact_round(e->digit, 0, CUA_EXACT_DIGITS - 1,
				e->layout != CUA_EXACT_LAYOUT ? CUA_EXACT_NAN : e->flags,
				fraction_bits, exponent_bits);
}

/*
 * For t in f16, bf16, f32, f64, of C type T:
 *
 *   void cua_exact_add_<t>(struct cua_exact *e, T x)
 *     e += x
 *   void cua_exact_add_product_<t>(struct cua_exact *e, T x, T y)
 *     e += x y, exactly
 *   T cua_exact_round_<t>(struct cua_exact *e)
 *     normalizes e and returns the sum, rounded to nearest even
 */
#define CUA__DEFINE_EXACT(t, T, B)                                                                 \
	CUA_FN void cua_exact_add_##t(struct cua_exact *e, T x)                                    \
	{                                                                                          \
		cua__exact_add(e, cua__exact_parts_of(cua__exact_bits_##t(x),                      \
						      CUA__EXACT_FRACTION_##t,                     \
						      CUA__EXACT_EXPONENT_##t));                   \
	}                                                                                          \
	CUA_FN void cua_exact_add_product_##t(struct cua_exact *e, T x, T y)                       \
	{                                                                                          \
		cua__exact_add_product(                                                            \
			e,                                                                         \
			cua__exact_parts_of(cua__exact_bits_##t(x), CUA__EXACT_FRACTION_##t,       \
					    CUA__EXACT_EXPONENT_##t),                              \
			cua__exact_parts_of(cua__exact_bits_##t(y), CUA__EXACT_FRACTION_##t,       \
					    CUA__EXACT_EXPONENT_##t));                             \
	}                                                                                          \
	CUA_FN T cua_exact_round_##t(struct cua_exact *e)                                          \
	{                                                                                          \
		B bits = (B)cua__exact_rounded(e, CUA__EXACT_FRACTION_##t,                         \
					       CUA__EXACT_EXPONENT_##t);                           \
		T result;                                                                          \
                                                                                                   \
		memcpy(&result, &bits, sizeof(result));                                            \
		return result;                                                                     \
	}

CUA__DEFINE_EXACT(f16, struct cua_f16, uint16_t)
CUA__DEFINE_EXACT(bf16, struct cua_bf16, uint16_t)
CUA__DEFINE_EXACT(f32, float, uint32_t)
CUA__DEFINE_EXACT(f64, double, uint64_t)

/* ---- host calls ---- */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Add the sum of n elements, or of n products, to *partial and normalize it. type is F16, BF16, F32
 * or F64. The caller initializes *partial: CUA_EXACT_INIT, zeros, or an earlier sum of any type. If
 * the device can write *partial, the call is ordered in the stream. Otherwise it waits, by the
 * rules for results in cuatomic/context.h.
 *
 * On the CUDA backend each call is a single kernel. The sum is the same for every backend, device,
 * stream and number of threads.
 * Errors: NULL; TYPE; SIZE; ALIGNMENT; OVERLAP (of partial with x or y); LAYOUT (of a partial in
 *   host memory; in other memory the sum becomes NaN); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY;
 *   CUDA.
 */
CUA_API enum cua_status cua_exact_sum(struct cua_context *ctx, enum cua_type type, size_t n,
				      const void *x, struct cua_exact *partial);
CUA_API enum cua_status cua_exact_dot(struct cua_context *ctx, enum cua_type type, size_t n,
				      const void *x, const void *y, struct cua_exact *partial);

/*
 * *result = *partial, rounded to type: F16, BF16, F32 or F64. *partial must be memory that the
 * backend can access; it does not change. The result follows the rules of cuatomic/context.h. For a
 * partial in host memory, cua_exact_round_f64 and its siblings do the same without a context.
 * Errors: NULL; TYPE; ALIGNMENT; OVERLAP; LAYOUT (on the CPU backend; on a device the result is
 *   NaN); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_exact_finish(struct cua_context *ctx, const struct cua_exact *partial,
					 enum cua_type type, void *result);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_EXACT_H */
