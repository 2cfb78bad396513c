/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations on 16-bit floats: struct cua_f16 (IEEE binary16) and struct cua_bf16 (the upper
 * half of a float), in the manner of atomic.h; and their conversion from and to float.
 *
 * Source: as in atomic.h. Figueroa's theorem (When is double rounding innocuous?, 1995): a sum,
 * difference, product or quotient may be computed in a format of 2p + 2 or more bits and then
 * rounded again to p bits.
 *
 * The type suffix T is f16 or bf16. The atomic functions return the old value:
 *
 *   float cua_f32_from_T(v)                                 exact
 *   struct cua_T cua_T_from_f32(x)                          rounded to nearest even
 *
 *   cua_atomic_load_T(p)
 *   cua_atomic_store_T(p, v)
 *   cua_atomic_exchange_T(p, v)
 *   cua_atomic_compare_exchange_T(p, expected, desired)     compared as bits
 *   cua_atomic_fetch_{add,sub,mul,div,min,max}_T(p, v)
 *   cua_atomic_{add,sub,min,max}_T(p, v)                    without a result
 *
 * The second form of an atomic function, _explicit, takes order, scope and space at the end.
 * CUA_DEFINE_ATOMIC accepts these suffixes. Aggregated forms, as in atomic_warp.h:
 *
 *   cua_atomic_fetch_{add,sub,min,max}_warp_T(mask, p, v)
 *   cua_atomic_{add,sub,min,max}_warp_T(mask, p, v)
 *   cua_atomic_{add,sub,min,max}_block_T(p, v, scratch)
 *
 * An object is a plain variable, aligned to 2 bytes. Neighbours in its aligned 32-bit word are as
 * in atomic_narrow.h.
 *
 * Synchronization, scope, memory order: as in atomic_narrow.h; for the aggregated forms as in
 * atomic_warp.h.
 * Progress: as in atomic_narrow.h. A GPU has add and sub of f16 and, from sm_90 on, of bf16. All
 *   other operations are compare-and-swap loops.
 * Argument: that of the loops of atomic.h. Native instruction and loop give the same values: both
 *   round once.
 *
 * Values: add, sub, mul and div round once, to nearest even. Nothing is flushed. A result that is
 *   too large becomes an infinity. The loops compute in float and round again. The effect is a
 *   single rounding: float has 24 bits, f16 has 11 and bf16 8, and 24 >= 2 * 11 + 2. The same holds
 *   for subnormal results. Sums are then exact in float, and products of f16 always. A product of
 *   bf16 has 16 bits, so if float rounds it, it is below half of the least bf16. A quotient of n
 *   bits by n bits that is no midpoint differs from each midpoint by more than 2^-(2n + 2) of
 *   itself.
 *
 *   In each conversion and result, a NaN becomes a quiet NaN. Its sign and payload depend on the
 *   machine. load, store, exchange and compare_exchange keep all bits.
 *
 *   min and max: a NaN operand is ignored, and any number replaces a NaN in memory. If both are
 *   NaN, the memory is unchanged. -0 is less than +0. Subnormals are not flushed.
 *
 *   Aggregated add and sub: the operands are summed in float, in the order of atomic_warp.h. The
 *   sum is rounded once to T, and added as by add. So it is more exact than an add per lane, but
 *   infinite if the operands alone are too large. A lane's result of fetch_add_warp is the old
 *   value plus, with one rounding, the sum of the operands of the lower lanes, summed in float and
 *   rounded to T. It may differ from the result of adding lane by lane, because rounding is not
 *   associative. It is the same in every run for the same old value, mask and addresses.
 */
#ifndef CUATOMIC_ATOMIC_HALF_H
#define CUATOMIC_ATOMIC_HALF_H

#include <cuatomic/atomic_narrow.h>
#include <cuatomic/atomic_warp.h>
#include <cuatomic/detail/float_bits.h>
#include <cuatomic/types.h>

#define CUA__TYPE_f16 struct cua_f16
#define CUA__TYPE_bf16 struct cua_bf16
#define CUA__BITS_f16 16
#define CUA__BITS_bf16 16

/* ---- conversions, computed on the bits, so that compiler flags have no effect ---- */

CUA_FN float cua_f32_from_f16(struct cua_f16 v)
{
#if defined(CUA_PORT_HAS_CVT_F16)
	return cua_port_cvt_f32_f16(v.bits);
#else
	uint32_t sign = (v.bits & 0x8000u) << 16, exponent = v.bits >> 10 & 31,
		 fraction = v.bits & 0x3ffu;

	if (exponent == 31)
		return cua__from_bits_f32(sign | 0x7f800000u | fraction << 13 |
					  (fraction ? 0x400000u : 0));
	if (exponent == 0) {
		if (fraction == 0)
			return cua__from_bits_f32(sign);
		for (exponent = 1; !(fraction & 0x400); exponent--)
			fraction <<= 1;
	}
	/* the exponent of a subnormal may have wrapped below 0 */
	return cua__from_bits_f32(sign | (exponent + 112) << 23 | (fraction & 0x3ff) << 13);
#endif
}

CUA_FN struct cua_f16 cua_f16_from_f32(float x)
{
	struct cua_f16 v;
#if defined(CUA_PORT_HAS_CVT_F16)
	v.bits = cua_port_cvt_f16_f32(x);
#else
	uint32_t bits = cua__bits_f32(x), size = bits & 0x7fffffffu, all, rest, half, shift;

	if (size > 0x7f800000u) { /* NaN */
		all = 0x7e00 | (size >> 13 & 0x1ff);
	} else if (size >=
		   0x477ff000u) { /* half way from the largest f16 to the next power of two */
		all = 0x7c00;
	} else if (size >= 0x38800000u) { /* 2^-14: a normal f16 */
		all = (size - 0x38000000u + 0xfff + (size >> 13 & 1)) >> 13;
	} else if (size < 0x33000000u) { /* 2^-25: nearer to 0 than to the least subnormal */
		all = 0;
	} else { /* a multiple of 2^-24 */
		shift = 126 - (size >> 23);
		half = 1u << (shift - 1);
		all = (size & 0x7fffffu) | 0x800000u;
		rest = all & (2 * half - 1);
		all >>= shift;
		if (rest > half || (rest == half && all & 1))
			all++;
	}
	v.bits = (uint16_t)(all | (bits >> 16 & 0x8000));
#endif
	return v;
}

CUA_FN float cua_f32_from_bf16(struct cua_bf16 v)
{
	uint32_t bits = (uint32_t)v.bits << 16;

	return cua__from_bits_f32((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : bits);
}

CUA_FN struct cua_bf16 cua_bf16_from_f32(float x)
{
	struct cua_bf16 v;
#if defined(CUA_PORT_HAS_CVT_BF16)
	v.bits = cua_port_cvt_bf16_f32(x);
#else
	uint32_t bits = cua__bits_f32(x);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		v.bits = (uint16_t)(bits >> 16 | 0x40);
	else
		v.bits = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
	return v;
}

/* ---- access, and compare-and-swap loops on 16 bits ---- */

CUA__DEFINE_ATOMIC_ACCESS(f16, struct cua_f16, 16)
CUA__DEFINE_ATOMIC_ACCESS(bf16, struct cua_bf16, 16)

#define CUA__DEFINE_HALF_ARITHMETIC(op, s)                                                         \
	CUA_FORCE struct cua_##s cua__##op##_of_##s(struct cua_##s a, struct cua_##s b)            \
	{                                                                                          \
		return cua_##s##_from_f32(                                                         \
			cua_port_##op##_rn_f32(cua_f32_from_##s(a), cua_f32_from_##s(b)));         \
	}

/* infinity: the bits of +infinity. Values are ranked by their bits, as in atomic.h. */
#define CUA__DEFINE_HALF_VALUES(s, infinity)                                                       \
	CUA__DEFINE_HALF_ARITHMETIC(add, s)                                                        \
	CUA__DEFINE_HALF_ARITHMETIC(sub, s)                                                        \
	CUA__DEFINE_HALF_ARITHMETIC(mul, s)                                                        \
	CUA__DEFINE_HALF_ARITHMETIC(div, s)                                                        \
	CUA_FORCE struct cua_##s cua__negative_##s(struct cua_##s v)                               \
	{                                                                                          \
		v.bits ^= 0x8000;                                                                  \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE int32_t cua__rank_##s(struct cua_##s v)                                          \
	{                                                                                          \
		return v.bits & 0x8000 ? -1 - (v.bits & 0x7fff) : v.bits;                          \
	}                                                                                          \
	CUA_FORCE int cua__is_nan_##s(struct cua_##s v)                                            \
	{                                                                                          \
		return (v.bits & 0x7fff) > (infinity);                                             \
	}                                                                                          \
	CUA__DEFINE_WINS(s, struct cua_##s)

CUA__DEFINE_HALF_VALUES(f16, 0x7c00)
CUA__DEFINE_HALF_VALUES(bf16, 0x7f80)

#define CUA__DEFINE_HALF_LOOPS(s)                                                                  \
	CUA__DEFINE_ATOMIC_LOOP(mul, s, cua__mul_of_##s(old, operand))                             \
	CUA__DEFINE_ATOMIC_LOOP(div, s, cua__div_of_##s(old, operand))                             \
	CUA__DEFINE_ATOMIC_LOOP(min, s, cua__min_wins_##s(operand, old) ? operand : old)           \
	CUA__DEFINE_ATOMIC_LOOP(max, s, cua__max_wins_##s(operand, old) ? operand : old)           \
	CUA__DEFINE_ATOMIC_NO_RESULT(min, s, struct cua_##s)                                       \
	CUA__DEFINE_ATOMIC_NO_RESULT(max, s, struct cua_##s)

CUA__DEFINE_HALF_LOOPS(f16)
CUA__DEFINE_HALF_LOOPS(bf16)

/* ---- add and sub: native or a loop, and the operation of a leader of many lanes ---- */

#define CUA__DEFINE_HALF_NATIVE(op, s, operand)                                                    \
	CUA__PATH_OF(cua_atomic_fetch_##op##_##s, cua__port_path_fetch_add_##s)                    \
	CUA_FORCE struct cua_##s cua_atomic_fetch_##op##_explicit_##s(                             \
		struct cua_##s *p, struct cua_##s v, enum cua_order order, enum cua_scope scope,   \
		enum cua_space space)                                                              \
	{                                                                                          \
		struct cua_##s old;                                                                \
                                                                                                   \
		old.bits = cua_port_fetch_add_##s(p, (operand).bits, order, scope, space);         \
		return old;                                                                        \
	}                                                                                          \
	CUA_FORCE void cua_atomic_##op##_explicit_##s(struct cua_##s *p, struct cua_##s v,         \
						      enum cua_order order, enum cua_scope scope,  \
						      enum cua_space space)                        \
	{                                                                                          \
		/* PTX's red, which has no result, cannot acquire */                               \
		if (order == CUA_RELAXED || order == CUA_RELEASE)                                  \
			cua_port_add_##s(p, (operand).bits, order, scope, space);                  \
		else                                                                               \
			(void)cua_atomic_fetch_##op##_explicit_##s(p, v, order, scope, space);     \
	}                                                                                          \
	CUA__DEFINE_ATOMIC_RELAXED(op, s, struct cua_##s)
#define CUA__DEFINE_HALF_ADD_NATIVE(s)                                                             \
	CUA__DEFINE_HALF_NATIVE(add, s, v)                                                         \
	CUA__DEFINE_HALF_NATIVE(sub, s, cua__negative_##s(v))                                      \
	CUA_FORCE struct cua_##s cua__backoff_cas_add_##s(                                         \
		struct cua_##s *p, struct cua_##s v, enum cua_order order, enum cua_scope scope,   \
		enum cua_space space)                                                              \
	{                                                                                          \
		return cua_atomic_fetch_add_explicit_##s(p, v, order, scope, space);               \
	}                                                                                          \
	CUA_FORCE void cua__backoff_cas_no_result_add_##s(                                         \
		struct cua_##s *p, struct cua_##s v, enum cua_order order, enum cua_scope scope,   \
		enum cua_space space)                                                              \
	{                                                                                          \
		cua_atomic_add_explicit_##s(p, v, order, scope, space);                            \
	}

#define CUA__DEFINE_HALF_ADD_LOOP(s)                                                               \
	CUA__DEFINE_ATOMIC_LOOP(add, s, cua__add_of_##s(old, operand))                             \
	CUA__DEFINE_ATOMIC_LOOP(sub, s, cua__sub_of_##s(old, operand))                             \
	CUA__DEFINE_ATOMIC_NO_RESULT(add, s, struct cua_##s)                                       \
	CUA__DEFINE_ATOMIC_NO_RESULT(sub, s, struct cua_##s)                                       \
	CUA__DEFINE_BACKOFF_CAS(cua__backoff_cas_add_##s, struct cua_##s, 16, cua__add_of_##s,     \
				CUA__SELDOM_UNCHANGED)                                             \
	CUA_FORCE void cua__backoff_cas_no_result_add_##s(                                         \
		struct cua_##s *p, struct cua_##s v, enum cua_order order, enum cua_scope scope,   \
		enum cua_space space)                                                              \
	{                                                                                          \
		(void)cua__backoff_cas_add_##s(p, v, order, scope, space);                         \
	}

#if defined(CUA_PORT_HAS_ADD_F16)
CUA__DEFINE_HALF_ADD_NATIVE(f16)
#else
CUA__DEFINE_HALF_ADD_LOOP(f16)
#endif
#if defined(CUA_PORT_HAS_ADD_BF16)
CUA__DEFINE_HALF_ADD_NATIVE(bf16)
#else
CUA__DEFINE_HALF_ADD_LOOP(bf16)
#endif

/* ---- aggregated in the warp and in the block ---- */

CUA__DEFINE_ATOMIC_WARP_LOOP(min, f16, struct cua_f16, 16, CUA__OFTEN_UNCHANGED,
			     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)
CUA__DEFINE_ATOMIC_WARP_LOOP(max, f16, struct cua_f16, 16, CUA__OFTEN_UNCHANGED,
			     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)
CUA__DEFINE_ATOMIC_WARP_LOOP(min, bf16, struct cua_bf16, 16, CUA__OFTEN_UNCHANGED,
			     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)
CUA__DEFINE_ATOMIC_WARP_LOOP(max, bf16, struct cua_bf16, 16, CUA__OFTEN_UNCHANGED,
			     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)

/*
 * The functions that combine operands, as of CUA__DEFINE_GROUP. The lanes sum in float, and round
 * each result once.
 */
#define CUA__DEFINE_HALF_ADD_GROUP(s, T)                                                           \
	CUA_FORCE T cua__group_add_##s##_combine(T a, T b)                                         \
	{                                                                                          \
		return cua__add_of_##s(a, b);                                                      \
	}                                                                                          \
	CUA_FORCE T cua__group_add_##s##_combine__shuffle(uint32_t mask, T v, uint32_t lane)       \
	{                                                                                          \
		v.bits = (uint16_t)cua_port_shuffle_u32(mask, v.bits, lane);                       \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE T cua__group_add_##s##_sum(uint32_t mask, uint32_t peers, T v)                   \
	{                                                                                          \
		return cua_##s##_from_f32(                                                         \
			cua__group_add_f32_sum(mask, peers, cua_f32_from_##s(v)));                 \
	}                                                                                          \
	CUA_FORCE T cua__group_add_##s##_scan(uint32_t mask, uint32_t peers, T v)                  \
	{                                                                                          \
		return cua_##s##_from_f32(                                                         \
			cua__group_add_f32_scan(mask, peers, cua_f32_from_##s(v)));                \
	}                                                                                          \
	CUA_FORCE T cua__group_add_##s##_block(T v, struct cua_block_scratch *b)                   \
	{                                                                                          \
		return cua_##s##_from_f32(cua__group_add_f32_block(cua_f32_from_##s(v), b));       \
	}

#define CUA__DEFINE_HALF_ADD_WARP(s, T)                                                            \
	CUA__DEFINE_HALF_ADD_GROUP(s, T)                                                           \
	CUA__DEFINE_FETCH_WARP(cua_atomic_fetch_add_warp_##s,                                      \
			       cua_atomic_fetch_add_warp_explicit_##s, cua__group_add_##s, T,      \
			       cua__backoff_cas_add_##s)                                           \
	CUA__DEFINE_NO_RESULT_WARP(cua_atomic_add_warp_##s, cua_atomic_add_warp_explicit_##s,      \
				   cua__group_add_##s, T, cua__backoff_cas_no_result_add_##s)      \
	CUA__DEFINE_NO_RESULT_BLOCK(cua_atomic_add_block_##s, cua_atomic_add_block_explicit_##s,   \
				    cua__group_add_##s, T, cua__backoff_cas_no_result_add_##s)     \
	CUA__DEFINE_ATOMIC_WARP_SUB(s, T, cua__negative_##s(v))

CUA__DEFINE_HALF_ADD_WARP(f16, struct cua_f16)
CUA__DEFINE_HALF_ADD_WARP(bf16, struct cua_bf16)

#endif /* CUATOMIC_ATOMIC_HALF_H */
