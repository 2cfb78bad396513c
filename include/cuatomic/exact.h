/* SPDX-License-Identifier: MIT */
/*
 * Exact sums: the sum of floats, or of their products, kept without any rounding and rounded once at
 * the end, to nearest even. So the result depends on the elements alone: not on their order, on how they
 * were split over threads, blocks, devices or machines, nor on the machine.
 *
 * Source: the long accumulator of Kulisch (1971 and later) with digits that carry late, as in Neal, Fast
 * exact summation using small and large superaccumulators (2015).
 *
 *     struct cua_exact a = CUA_EXACT_INIT, b = CUA_EXACT_INIT;
 *
 *     cua_exact_sum(ctx, CUA_F64, n, x, &a);           a += the sum of x, on the context's backend
 *     cua_exact_dot(other, CUA_F32, m, y, z, &b);      b += the dot product of y and z, on another device
 *     cua_exact_merge(&a, &b);
 *     total = cua_exact_round_f64(&a);                 rounded here, once
 *
 * One format serves all types, so that f16, bf16, f32 and f64 and products of two of a type can be in one
 * sum. It is plain data without pointers: it may be copied between devices and machines of the same byte
 * order, stored, and merged there.
 *
 * Values:
 *   NaN       in an element or a factor: the result is NaN. Infinity times zero, and infinities of both
 *             signs in one sum, are NaN too. Every NaN result is the same: quiet, positive, no payload.
 *   infinity  of one sign only: the result is that infinity.
 *   overflow  is judged at the rounding alone: what lies in between may be as large as it likes. A result
 *             from half an ulp above the largest number of the type on is an infinity.
 *   zero      A sum that is exactly zero is +0, also with no elements and with elements that all are -0.
 *             A sum that is not zero and rounds to zero keeps its sign.
 *   subnormal elements, products and results are exact like all others. A product counts as the
 *             infinitely precise one, also where the type could not hold it.
 *
 * Synchronization: X means that the caller must order the two calls on one struct cua_exact, - that they may
 *   run at the same time. "read" is being the source of a merge or a copy.
 *
 *               write  read
 *     write       X      X
 *     read        X      -
 *
 * Scope, memory order: none; these are plain accesses. The host calls are ordered as context.h says.
 * Progress: every function ends after a bounded number of its own steps.
 * Argument:
 *   Digit i is a signed 64-bit integer of weight 2^(32 i - 2176). The least product of two f64 is 2^-2148,
 *   and 2^64 products of the largest are below 2^2112, so no bit can be lost at either end.
 *   Every value is added as integers of at most 32 bits and a sign, one to a digit. `pending` counts these
 *   additions: |digit| <= (pending + 1) 2^32. Before it passes 2^29 the digits are normalized, that is, what
 *   exceeds 32 bits is carried up; so a digit stays below 2^63. Carrying changes no sum.
 *   Normalized, all digits but the last lie in [0, 2^32), so a value has one representation, and two
 *   normalized sums are equal if and only if their bytes are.
 *   Rounding takes the bits of the result type's precision from the leading one on, or from the place of its
 *   least subnormal, and then looks at all bits below: there is no second rounding.
 * No floating-point arithmetic is used here, so no compiler flag and no mode of the processor has a say.
 */
#ifndef CUATOMIC_EXACT_H
#define CUATOMIC_EXACT_H

#include <cuatomic/context.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

#define CUA_EXACT_DIGITS 136
/* The version of the format. Another one is refused with CUA_ERROR_LAYOUT, or counts as NaN. */
#define CUA_EXACT_LAYOUT 0
/* Bit 0 of digit 0 has the weight 2^-CUA__EXACT_POINT. */
#define CUA__EXACT_POINT 2176
#define CUA__EXACT_PENDING_MAX (1u << 29)

/* What has been seen; the digits hold the finite elements only. */
#define CUA_EXACT_NAN 1u
#define CUA_EXACT_INFINITY 2u
#define CUA_EXACT_NEGATIVE_INFINITY 4u

/* An exact sum. Zeros are the empty one. */
struct cua_exact {
	uint32_t layout;  /* CUA_EXACT_LAYOUT */
	uint32_t flags;   /* of CUA_EXACT_NAN and so on */
	uint32_t pending; /* additions since the digits were normalized */
	uint32_t reserved;
	int64_t digit[CUA_EXACT_DIGITS];
};
/* A struct whose digits or count no function here has made stands for some number; using it is no error. */
CUA_STATIC_ASSERT(sizeof(struct cua_exact) == 16 + 8 * CUA_EXACT_DIGITS, "the state is ABI");
CUA_STATIC_ASSERT(offsetof(struct cua_exact, digit) == 16, "the state is ABI");

#define CUA_EXACT_INIT                                                                             \
	{                                                                                          \
		CUA_EXACT_LAYOUT, 0, 0, 0,                                                         \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

/* ---- formats ---- */

/* Bits of the fraction and of the exponent. */
#define CUA__EXACT_FRACTION_f16 10
#define CUA__EXACT_EXPONENT_f16 5
#define CUA__EXACT_FRACTION_bf16 7
#define CUA__EXACT_EXPONENT_bf16 8
#define CUA__EXACT_FRACTION_f32 23
#define CUA__EXACT_EXPONENT_f32 8
#define CUA__EXACT_FRACTION_f64 52
#define CUA__EXACT_EXPONENT_f64 11

/* An element taken apart: its value is mantissa times 2^(at - CUA__EXACT_POINT), if it is finite. */
struct cua__exact_parts {
	uint64_t mantissa;
	int at;
	uint32_t negative;
	uint32_t flags; /* as those of cua_exact, without regard to what it is multiplied with */
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

/* What a product is made of flags. */
CUA_FORCE uint32_t cua__exact_product_flags(struct cua__exact_parts x, struct cua__exact_parts y)
{
	if (!(x.flags | y.flags))
		return 0;
	/* an infinity has a mantissa that is not zero here */
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
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

CUA_FORCE uint64_t cua__exact_bits_f64(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* ---- digits ---- */

/* a + b modulo 2^64. Digits that no sum has, of memory never initialized, may overflow. */
CUA_FORCE int64_t cua__exact_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/*
 * The carries of digits lo to hi, where those below lo are zero and the last one takes what is left. hi is
 * lo at least.
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

/* The size of a normalized number's digit i: those of a negative one are subtracted from zero. */
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
 * The number of normalized digits lo to hi, rounded to a format, as its bits. Digits elsewhere are zero, and
 * the last one has a size below 2^32.
 */
CUA_FN uint64_t cua__exact_round(const int64_t *digit, int lo, int hi, uint32_t flags,
				 int fraction_bits, int exponent_bits)
{
	const uint64_t all = ((uint64_t)1 << exponent_bits) - 1, infinity = all << fraction_bits;
	const uint64_t minus = (uint64_t)1 << (fraction_bits + exponent_bits);
	/* the place of the least subnormal */
	const int least = CUA__EXACT_POINT - (int)(all / 2) - fraction_bits + 1;
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
	/* a number has a digit that is not zero; digits that are not normalized may all have a size of zero */
	while ((magnitude = cua__exact_magnitude(digit, first, hi, top)) == 0 && top > first)
		top--;
	/* the result's last bit, at place */
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
	/* half of it, and whether anything lies below */
	at = (position - 1) >> 5;
	bit = (position - 1) & 31;
	magnitude = cua__exact_magnitude(digit, first, hi, at);
	if (magnitude >> bit & 1 &&
	    (mantissa & 1 || first < at || (magnitude & (((uint64_t)1 << bit) - 1)) != 0))
		mantissa++;
	/* the leading one counts as one in the exponent, and so does a carry into the next binade */
	bits = ((uint64_t)(position - least) << fraction_bits) + mantissa;
	return sign | (bits < infinity ? bits : infinity);
}

/* Adds mantissa 2^at to the digits, with this sign: to three neighbours less than 2^32 each. */
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

/* Makes the sum 0, as CUA_EXACT_INIT; nobody may be using it. */
CUA_FN void cua_exact_init(struct cua_exact *e)
{
	e->layout = CUA_EXACT_LAYOUT;
	e->flags = 0;
	e->pending = 0;
	e->reserved = 0;
	for (int i = 0; i < CUA_EXACT_DIGITS; i++)
		e->digit[i] = 0;
}

/* Brings the digits into the form that only this value has. */
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

/* The product of two mantissas in three parts, of which none has more than 64 bits. */
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
 * dst += src, which stays as it is, unless it is dst itself: then the sum is doubled. A src of another layout
 * makes it NaN.
 */
CUA_FN void cua_exact_merge(struct cua_exact *dst, const struct cua_exact *src)
{
	if (src->layout != CUA_EXACT_LAYOUT) {
		dst->flags |= CUA_EXACT_NAN;
		return;
	}
	dst->flags |= src->flags;
	/* the sum of two bounds */
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
 *   void cua_exact_add_<t>(struct cua_exact *e, T x)                e += x
 *   void cua_exact_add_product_<t>(struct cua_exact *e, T x, T y)   e += x y, exactly
 *   T cua_exact_round_<t>(struct cua_exact *e)                      the sum, rounded to nearest even; normalizes
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
 * Add the sum of n elements, or of n products, of type F16, BF16, F32 or F64 to *partial, which is then
 * normalized. *partial is initialized before: CUA_EXACT_INIT, zeros, or an earlier sum of any type. Where it is
 * memory that the device can write, the call is ordered in the stream, and otherwise it waits, by the rules
 * for results in cuatomic/context.h.
 *
 * One kernel. The sum is the same on every backend, device, stream and number of threads.
 * Errors: NULL; TYPE; SIZE; ALIGNMENT; OVERLAP (of partial with x or y); LAYOUT (of a partial in host memory;
 * in other memory its sum becomes NaN); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_exact_sum(struct cua_context *ctx, enum cua_type type, size_t n,
				      const void *x, struct cua_exact *partial);
CUA_API enum cua_status cua_exact_dot(struct cua_context *ctx, enum cua_type type, size_t n,
				      const void *x, const void *y, struct cua_exact *partial);

/*
 * *result = *partial, rounded to type: F16, BF16, F32 or F64. *partial is memory that the backend can access, and
 * stays as it is; the result follows the rules of cuatomic/context.h. A partial in host memory is also rounded
 * by cua_exact_round_f64 and the like, without a context.
 * Errors: NULL; TYPE; ALIGNMENT; OVERLAP; LAYOUT (on the CPU backend; the result is NaN on a device);
 * MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_exact_finish(struct cua_context *ctx, const struct cua_exact *partial,
					 enum cua_type type, void *result);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_EXACT_H */
