/* SPDX-License-Identifier: MIT */
/*
 * The values of a scatter that both backends share: elements as exact numbers, the last rounding,
 * the keys of MIN and MAX, and means. So the backends have the same bits.
 *
 * A sum has either of two forms:
 * - a word: a signed 64-bit integer times 2^(at - CUA__EXACT_POINT), if the elements of many targets
 *   have similar exponents;
 * - digits, as in struct cua_exact, but only the digits that numbers of the result type can have.
 *   Digit i of this form is digit i + cua__scatter_low(type) of struct cua_exact.
 *
 * A key is an unsigned 64-bit integer. The greatest key wins, and 0 is that of no element.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_VALUES_H
#define CUATOMIC_KERNELS_SCATTER_VALUES_H

#include "backend/scatter_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */

CUA_FORCE int cua__fraction_bits(enum cua_type type)
{
	return type == CUA_F64   ? CUA__EXACT_FRACTION_f64
	       : type == CUA_F32 ? CUA__EXACT_FRACTION_f32
	       : type == CUA_F16 ? CUA__EXACT_FRACTION_f16
				 : CUA__EXACT_FRACTION_bf16;
}

CUA_FORCE int cua__exponent_bits(enum cua_type type)
{
	return type == CUA_F64   ? CUA__EXACT_EXPONENT_f64
	       : type == CUA_F16 ? CUA__EXACT_EXPONENT_f16
				 : CUA__EXACT_EXPONENT_f32;
}

CUA_FORCE struct cua__exact_parts cua__scatter_parts(enum cua_type type, uint64_t bits)
{
	return cua__exact_parts_of(bits, cua__fraction_bits(type), cua__exponent_bits(type));
}

/* The only NaN of results. */
CUA_FORCE uint64_t cua__scatter_nan(enum cua_type type)
{
	return (((uint64_t)2 << cua__exponent_bits(type)) - 1) << (cua__fraction_bits(type) - 1);
}

/* ---- rounding ---- */

/* The position of the leading bit of m, not 0, times 2^at. */
CUA_FORCE int cua__scatter_top(cua__uint128 m, int at)
{
	const uint64_t high = (uint64_t)(m >> 64);

	return at +
	       (high ? 127 - (int)cua_port_clz_u64(high) : 63 - (int)cua_port_clz_u64((uint64_t)m));
}

/*
 * Rounds magnitude 2^(at - CUA__EXACT_POINT) to the type, to nearest even. The lowest bit may stand
 * for any lower bits, if the leading bit is at least bit 64.
 */
CUA_FN uint64_t cua__scatter_round(enum cua_type type, uint32_t negative, cua__uint128 magnitude,
				   int at)
{
	const int fraction = cua__fraction_bits(type), exponent = cua__exponent_bits(type);
	const uint64_t all = ((uint64_t)1 << exponent) - 1, infinity = all << fraction;
	const uint64_t sign = (uint64_t)negative << (fraction + exponent);
	const int least = CUA__EXACT_POINT - (int)(all / 2) - fraction + 1;
	const uint64_t high = (uint64_t)(magnitude >> 64), low = (uint64_t)magnitude;
	uint64_t mantissa, bits;
	int lead, position, shift;

	if (!(high | low))
		return 0;
	lead = cua__scatter_top(magnitude, 0);
	position = at + lead - fraction > least ? at + lead - fraction : least;
	if ((uint64_t)(position - least) >= all)
		return sign | infinity;
	shift = position - at;
	if (shift <= 0)
		mantissa = low << -shift;
	else if (shift > lead + 1)
		mantissa = 0;
	else {
		const cua__uint128 one = 1;
		cua__uint128 rest = magnitude & ((one << (shift - 1)) - 1);

		mantissa = shift < 128 ? (uint64_t)(magnitude >> shift) : 0;
		if ((uint64_t)(magnitude >> (shift - 1)) & 1 && (mantissa & 1 || rest != 0))
			mantissa++;
	}
	/* the leading bit adds 1 to the exponent, and so does a carry into the next binade */
	bits = ((uint64_t)(position - least) << fraction) + mantissa;
	return sign | (bits < infinity ? bits : infinity);
}

/* m 2^e; if bits are lost, the lowest bit of the result is set. */
CUA_FORCE cua__uint128 cua__scatter_align(cua__uint128 m, int e)
{
	const cua__uint128 one = 1;

	if (e >= 0)
		return m << e;
	if (e <= -128)
		return m != 0;
	return m >> -e | ((m & ((one << -e) - 1)) != 0);
}

/*
 * The sum of m 2^(at - CUA__EXACT_POINT), of this sign, and of `p`, a finite number, rounded once.
 * m is below 2^120.
 */
CUA_FN uint64_t cua__scatter_round_with(enum cua_type type, uint32_t negative, cua__uint128 m,
					int at, struct cua__exact_parts p)
{
	cua__uint128 a, b;
	int top, base;

	if (!p.mantissa || !m)
		return m ? cua__scatter_round(type, negative, m, at)
			 : cua__scatter_round(type, p.negative, p.mantissa, p.at);
	top = cua__scatter_top(m, at);
	if (cua__scatter_top(p.mantissa, p.at) > top)
		top = cua__scatter_top(p.mantissa, p.at);
	/*
	 * Bits below the base are lost only if the summands differ so much that the sum has at least
	 * 120 bits. So they only decide ties.
	 */
	base = at < p.at ? at : p.at;
	if (base < top - 124)
		base = top - 124;
	a = cua__scatter_align(m, at - base);
	b = cua__scatter_align(p.mantissa, p.at - base);
	if (negative == p.negative)
		return cua__scatter_round(type, negative, a + b, base);
	if (a == b)
		return 0;
	return a > b ? cua__scatter_round(type, negative, a - b, base)
		     : cua__scatter_round(type, p.negative, b - a, base);
}

/*
 * The new value of a target: the sum m 2^(at - CUA__EXACT_POINT), of this sign, added to its old
 * value, or alone in a call that overwrites. m is below 2^120.
 */
CUA_FN uint64_t cua__scatter_sum_wide(enum cua_type type, uint32_t negative, cua__uint128 m, int at,
				      int overwrite, uint64_t old)
{
	struct cua__exact_parts p;

	if (overwrite)
		return cua__scatter_round(type, negative, m, at);
	if (!m)
		return old;
	p = cua__scatter_parts(type, old);
	if (p.flags)
		return p.flags & CUA_EXACT_NAN ? cua__scatter_nan(type) : old;
	return cua__scatter_round_with(type, negative, m, at, p);
}

CUA_FORCE uint64_t cua__scatter_sum_word(enum cua_type type, int64_t v, int at, int overwrite,
					 uint64_t old)
{
	return cua__scatter_sum_wide(type, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, at,
				     overwrite, old);
}

/* ---- digits ---- */

/* The most digits that a result type needs, for sums of 2^64 elements and the old value. */
#define CUA__SCATTER_DIGITS 71

/* The digit of struct cua_exact that has the least subnormal of the type. */
CUA_FORCE int cua__scatter_low(enum cua_type type)
{
	const int bias = (1 << (cua__exponent_bits(type) - 1)) - 1;

	return (CUA__EXACT_POINT - bias - cua__fraction_bits(type) + 1) >> 5;
}

CUA_FORCE int cua__scatter_digits(enum cua_type type)
{
	const int bias = (1 << (cua__exponent_bits(type) - 1)) - 1;

	/* the greatest number, 2^64 of them, and a digit for the carry and the sign */
	return ((CUA__EXACT_POINT + bias + 1 + 64) >> 5) - cua__scatter_low(type) + 2;
}

/*
 * Adds to a digit of many threads. While the digit is 2^62 or more in magnitude, a thread that sees
 * that moves 2^62 to the next digit. The compare-and-swap moves only what is there.
 */
CUA_FORCE void cua__scatter_add_digit(uint64_t *digit, int64_t v, enum cua_scope scope,
				      enum cua_space space)
{
	const int64_t limit = (int64_t)1 << 62;
	int64_t sum;

	if (!v)
		return;
	sum = (int64_t)cua_port_fetch_add_u64(digit, (uint64_t)v, CUA_RELAXED, scope, space) + v;
	while (sum >= limit || sum <= -limit) {
		const int64_t move = sum > 0 ? limit : -limit;
		const int64_t seen = (int64_t)cua_port_cas_b64(
			digit, (uint64_t)sum, (uint64_t)(sum - move), CUA_RELAXED, scope, space);

		if (seen == sum) {
			cua_port_add_u64(digit + 1, (uint64_t)(move >> 32), CUA_RELAXED, scope,
					 space);
			return;
		}
		sum = seen;
	}
}

/* Adds mantissa 2^at to the digits of a target; at counts from the first digit. */
CUA_FORCE void cua__scatter_add_digits(uint64_t *digit, uint32_t negative, uint64_t mantissa,
				       int at, enum cua_scope scope, enum cua_space space)
{
	uint64_t *d = digit + (at >> 5);
	const int64_t sign = -(int64_t)negative;
	const int shift = at & 31;
	const uint64_t low = mantissa << shift, high = mantissa >> 1 >> (63 - shift);

	cua__scatter_add_digit(d, ((int64_t)(low & 0xffffffffu) ^ sign) - sign, scope, space);
	cua__scatter_add_digit(d + 1, ((int64_t)(low >> 32) ^ sign) - sign, scope, space);
	cua__scatter_add_digit(d + 2, ((int64_t)high ^ sign) - sign, scope, space);
}

/*
 * The new value of a target with a sum that has flags, and digits that need not be normalized. The
 * digits are those of the type `layout`, which is at least as wide as the target's type. They are
 * changed. Each must be at most 2^62 in magnitude.
 */
CUA_FN uint64_t cua__scatter_sum_digits(enum cua_type layout, enum cua_type type, int64_t *digit,
					uint32_t flags, int overwrite, uint64_t old)
{
	const int low = cua__scatter_low(layout), count = cua__scatter_digits(layout);
	int any = 0;

	cua__exact_carry(digit, 0, count - 1);
	for (int i = 0; i < count; i++)
		any |= digit[i] != 0;
	if (!any && !flags)
		return overwrite ? 0 : old;
	if (!overwrite) {
		struct cua__exact_parts p = cua__scatter_parts(type, old);

		flags |= p.flags;
		if (!p.flags && p.mantissa) {
			cua__exact_insert(digit, p.negative, p.mantissa, p.at - 32 * low);
			cua__exact_carry(digit, 0, count - 1);
		}
	}
	return cua__exact_round_at(digit, 0, count - 1, CUA__EXACT_POINT - 32 * low, flags,
				   cua__fraction_bits(type), cua__exponent_bits(type));
}

/* A number or an infinity, rounded to the type. A zero keeps its sign. */
CUA_FORCE uint64_t cua__scatter_convert(enum cua_type type, struct cua__exact_parts p)
{
	const uint64_t sign = (uint64_t)p.negative << (8 * cua__element_size(type) - 1);

	if (p.flags)
		return sign | (((uint64_t)1 << cua__exponent_bits(type)) - 1)
				      << cua__fraction_bits(type);
	return p.mantissa ? cua__scatter_round(type, p.negative, p.mantissa, p.at) : sign;
}

/* ---- integers, and conversions to the result type ---- */

/* An integer element as 64 bits, with its sign. */
CUA_FORCE uint64_t cua__scatter_integer(enum cua_type type, uint64_t bits)
{
	const uint32_t unused = 64 - 8 * cua__element_size(type);

	return cua__is_signed(type) ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

/* The bits of an element in the result type, wide enough for it. Any NaN becomes some NaN. */
CUA_FN uint64_t cua__scatter_widen(enum cua_type type, enum cua_type result, uint64_t bits)
{
	struct cua__exact_parts p;

	if (!cua__is_float(type))
		return cua__scatter_integer(type, bits);
	if (type == result)
		return bits;
	p = cua__scatter_parts(type, bits);
	if (p.flags & CUA_EXACT_NAN)
		return cua__scatter_nan(result);
	return cua__scatter_convert(result, p);
}

/* ---- minima and maxima ---- */

#define CUA__SCATTER_KEY_NAN 1u

/* The key of a value of the result type. It has no more bits than the type. */
CUA_FORCE uint64_t cua__scatter_key(enum cua_scatter_op op, enum cua_type type, uint64_t bits)
{
	/* of the sign and of all bits */
	const uint64_t top = (uint64_t)1 << (8 * cua__element_size(type) - 1), all = 2 * top - 1;
	const uint64_t infinity = top - ((uint64_t)1 << cua__fraction_bits(type));
	uint64_t ordered;

	if (!cua__is_float(type))
		ordered = cua__is_signed(type) ? bits ^ top : bits;
	else if ((bits & (top - 1)) > infinity)
		return CUA__SCATTER_KEY_NAN;
	else
		/* the patterns of NaN are below and above all numbers, so 0 and 1 are free */
		ordered = bits & top ? ~bits : bits | top;
	return (op == CUA_SCATTER_MIN ? ~ordered : ordered) & all;
}

/* The new value of a target with the greatest key of its elements. */
CUA_FN uint64_t cua__scatter_extreme(enum cua_scatter_op op, enum cua_type type, uint64_t key,
				     int overwrite, uint64_t old)
{
	const uint64_t top = (uint64_t)1 << (8 * cua__element_size(type) - 1), all = 2 * top - 1;
	const int minimum = op == CUA_SCATTER_MIN;
	uint64_t ordered;

	if (!overwrite && key <= cua__scatter_key(op, type, old))
		return old;
	ordered = (minimum ? ~key : key) & all;
	if (!cua__is_float(type))
		return cua__is_signed(type) ? ordered ^ top : ordered;
	if (key == 0)
		return (minimum ? 0 : top) | (top - ((uint64_t)1 << cua__fraction_bits(type)));
	if (key == CUA__SCATTER_KEY_NAN)
		return cua__scatter_nan(type);
	return ordered & top ? ordered & (top - 1) : ~ordered & all;
}

/* ---- means ---- */

/* An integer of 64 bits, rounded to f64. */
CUA_FORCE double cua__scatter_f64_of(enum cua_type type, uint64_t sum)
{
	const uint32_t negative = cua__is_signed(type) && (int64_t)sum < 0;

	return cua__from_bits_f64(
		cua__scatter_round(CUA_F64, negative, negative ? 0 - sum : sum, CUA__EXACT_POINT));
}

/* The new value of a target with `count` elements and this sum. */
CUA_FN uint64_t cua__scatter_mean(enum cua_type type, double sum, uint64_t count, int overwrite,
				  uint64_t old)
{
	uint64_t bits;

	if (!count)
		return overwrite ? cua__scatter_nan(type) : old;
	bits = cua__bits_f64(sum / cua__scatter_f64_of(CUA_U64, count));
	if (cua__is_nan_f64(cua__from_bits_f64(bits)))
		return cua__scatter_nan(type);
	return type == CUA_F64 ? bits
			       : cua__scatter_convert(type, cua__scatter_parts(CUA_F64, bits));
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_KERNELS_SCATTER_VALUES_H */
