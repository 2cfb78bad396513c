/* SPDX-License-Identifier: MIT */
/*
 * Sums of 32-bit values in shared memory, for calls by key on a GPU (struct cua__group_sums).
 *
 * A sum is a signed integer of 64 bits in two words. A sum of floats is in units of a power of two.
 * `unit` is the exponent field of an element that has the unit as its lowest bit. A
 * unit is chosen by a sample, so an element may not fit, and neither may a sum.
 */
#ifndef CUATOMIC_KERNELS_GROUP_BY_SUMS_H
#define CUATOMIC_KERNELS_GROUP_BY_SUMS_H

#include "backend/group_by_backend.h"
#include "kernels/scatter_cells.h"

/* The most powers of two between the unit and the largest sampled element, and any element. */
#define CUA__SUMS_ROOM 28
#define CUA__SUMS_MOST 36

/* Words of a row's group in shared memory: a count, and both words of a sum, as far as needed. */
CUA_FORCE uint32_t cua__sums_words(const struct cua__group_sums *s)
{
	return (s->counts ? 1u : 0u) + (s->type == CUA_NONE ? 0u : 2u);
}

/*
 * The unit for elements whose largest exponent field is `top`, for sums of `rows` elements. With less
 * room below the largest, a sum passes 2^63 a few times at most.
 */
CUA_FORCE int cua__sums_unit(int top, uint64_t rows)
{
	int room = 43 - (64 - (int)cua_port_clz_u64(rows + 1));

	room = room > CUA__SUMS_ROOM ? CUA__SUMS_ROOM : room;
	return top - room < 1 ? 1 : top - room;
}

/* The position of the unit, as in cua__scatter_round. */
CUA_FORCE int cua__sums_at(int unit)
{
	return CUA__EXACT_POINT + unit - 150;
}

/* *v = an element as an integer. Returns 0 if it is none of the window; a zero may be none. */
CUA_FORCE int cua__sums_integer(enum cua_type type, uint32_t bits, int unit, int64_t *v)
{
	const uint32_t exponent = bits >> 23 & 0xff;
	const uint32_t m = exponent ? (bits & 0x7fffff) | 0x800000 : bits & 0x7fffff;
	const int p = (int)(exponent ? exponent : 1) - unit;

	if (type != CUA_F32) {
		*v = type == CUA_I32 ? (int64_t)(int32_t)bits : (int64_t)bits;
		return 1;
	}
	if ((uint32_t)p > CUA__SUMS_MOST || exponent == 0xff)
		return 0;
	*v = (int64_t)((uint64_t)m << p);
	if (bits >> 31)
		*v = -*v;
	return 1;
}

/* A sum of integers of `type`, as an integer of 64 bits or rounded to f64 if `result` is a float. */
CUA_FORCE uint64_t cua__sums_of_integers(uint64_t sum, enum cua_type type, enum cua_type result)
{
	if (!cua__is_float(result))
		return sum;
	return cua__bits_f64(cua__scatter_f64_of(type == CUA_I32 ? CUA_I64 : CUA_U64, sum));
}

CUA_FORCE void cua__sums_store(void *out, uint64_t i, uint64_t bits, enum cua_type type)
{
	switch (cua__element_size(type)) {
	case 2: CUA_WRITE(((cua__raw16 *)out)[i], (uint16_t)bits); break;
	case 4: CUA_WRITE(((cua__raw32 *)out)[i], (uint32_t)bits); break;
	default: CUA_WRITE(((cua__raw64 *)out)[i], bits);
	}
}

/* Stores the mean of a group, given the bits of its sum as f64. */
CUA_FORCE void cua__sums_store_mean(const struct cua__group_sums *s, uint64_t g, uint64_t sum,
				    uint64_t count)
{
	cua__sums_store(s->out_mean, g,
			cua__scatter_mean(s->mean_type, cua__from_bits_f64(sum), count, 1, 0),
			s->mean_type);
}

#endif /* CUATOMIC_KERNELS_GROUP_BY_SUMS_H */
