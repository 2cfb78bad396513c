/* SPDX-License-Identifier: MIT */
/*
 * Elements of 32 bits as two integers of 32 bits, for exact sums in shared memory by independent
 * additions: an element is upper * 2^k + lower, in units of a power of two.
 *
 * A sum is two signed words. The caller sees from the old word whether an addition passed 2^31, and
 * adds 2^32 elsewhere (cua__halves_passed). So the words need no carry between them.
 *
 * Source: the split of a float by additions of 1.5 2^23 units (T. Dekker, 1971, and later error-free
 * transformations).
 */
#ifndef CUATOMIC_KERNELS_HALVES_H
#define CUATOMIC_KERNELS_HALVES_H

#include "kernels/scatter_values.h"

/* Powers of two from the lower unit to the upper, and from the upper to the limit of floats. */
#define CUA__HALVES_LOW 23
#define CUA__HALVES_HIGH 22
/* The same of integers. */
#define CUA__HALVES_INTEGER 16
/* Powers of two between the largest sampled element and the limit. */
#define CUA__HALVES_ROOM 1

/* A window of floats. */
struct cua__halves {
	uint32_t limit;         /* the bits of the least magnitude above the window */
	float magic, low_magic; /* 1.5 2^23 upper units, and lower units */
	int at;                 /* of the lower unit, as in cua__scatter_round */
};

/* The exponent field of the limit, if the largest sampled element has the exponent field `top`. */
CUA_FORCE int cua__halves_limit(int top)
{
	const int limit = top + 1 + CUA__HALVES_ROOM;

	/* the lower unit is at least the least subnormal number, and 2^24 upper units are finite */
	return limit < 23 ? 23 : limit > 252 ? 252 : limit;
}

CUA_FORCE struct cua__halves cua__halves_window(int limit)
{
	const int low = limit - CUA__HALVES_HIGH - CUA__HALVES_LOW;
	const uint32_t half = 0x400000;
	struct cua__halves w;

	w.limit = (uint32_t)limit << 23;
	w.magic = cua__from_bits_f32((uint32_t)(low + CUA__HALVES_LOW + 23) << 23 | half);
	w.low_magic = cua__from_bits_f32((uint32_t)(low + 23) << 23 | half);
	w.at = CUA__EXACT_POINT + low - 127;
	return w;
}

/*
 * Splits an element of F32, I32 or U32. Returns 0 if the window lacks it. Each step is exact: the sum
 * with the magic number is a whole number of units, the difference from it too, and the rest is a
 * multiple of the last bit of the element and at most half a unit.
 */
CUA_FORCE int cua__halves_split(enum cua_type type, uint32_t bits, const struct cua__halves *w,
				uint32_t *high, uint32_t *low)
{
	float x, upper, rest, lower;

	if (type != CUA_F32) {
		*high = type == CUA_I32 ? (uint32_t)((int32_t)bits >> CUA__HALVES_INTEGER)
					: bits >> CUA__HALVES_INTEGER;
		*low = bits & ((1u << CUA__HALVES_INTEGER) - 1);
		return 1;
	}
	x = cua__from_bits_f32(bits);
	upper = cua_port_add_rn_f32(x, w->magic);
	rest = cua_port_sub_rn_f32(x, cua_port_sub_rn_f32(upper, w->magic));
	lower = cua_port_add_rn_f32(rest, w->low_magic);
	*high = cua__bits_f32(upper) - cua__bits_f32(w->magic);
	*low = cua__bits_f32(lower) - cua__bits_f32(w->low_magic);
	return (bits & 0x7fffffff) < w->limit && cua_port_sub_rn_f32(lower, w->low_magic) == rest;
}

/*
 * Bit 31 is set if a signed word passed a limit when `v` was added to `old`: upwards if v is not
 * negative.
 */
CUA_FORCE uint32_t cua__halves_passed(uint32_t old, uint32_t v)
{
	const uint32_t sum = old + v;

	return (old ^ sum) & (v ^ sum);
}

/*
 * Adds an element to the words of a sum in the shared memory of the block, and stores their old values:
 * upper, then lower. Bit 31 of the result is set if the addition is not complete: the window lacks the
 * element, or a word passed a limit.
 */
CUA_FORCE uint32_t cua__halves_add(enum cua_type type, uint32_t bits, const struct cua__halves *w,
				   uint32_t *upper, uint32_t *lower, uint32_t old[2])
{
	uint32_t high, low;
	const int fits = cua__halves_split(type, bits, w, &high, &low);

	/* zeros are added, so that lanes do not part */
	high = fits ? high : 0;
	low = fits ? low : 0;
	old[0] =
		cua_port_fetch_add_u32(upper, high, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	old[1] = cua_port_fetch_add_u32(lower, low, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	return cua__halves_passed(old[0], high) | cua__halves_passed(old[1], low) |
	       (fits ? 0 : 1u << 31);
}

#endif /* CUATOMIC_KERNELS_HALVES_H */
