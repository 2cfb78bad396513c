/* SPDX-License-Identifier: MIT */
/*
 * Floats as bits, and as integers in the order of the floats. No compiler flag changes these
 * functions: neither -ffast-math nor flushed subnormals lose a NaN or an order.
 */
#ifndef CUATOMIC_DETAIL_FLOAT_BITS_H
#define CUATOMIC_DETAIL_FLOAT_BITS_H

#include <cuatomic/port.h>

CUA_FORCE uint32_t cua__bits_f32(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

CUA_FORCE uint64_t cua__bits_f64(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

CUA_FORCE float cua__from_bits_f32(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

CUA_FORCE double cua__from_bits_f64(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

CUA_FORCE int cua__is_nan_f32(float v)
{
	return (cua__bits_f32(v) & 0x7fffffffu) > 0x7f800000u;
}

CUA_FORCE int cua__is_nan_f64(double v)
{
	return (cua__bits_f64(v) & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

/*
 * From the bits of a float to an unsigned integer in the order of the floats: -NaN < -inf < ... <
 * -0 < +0 < ... < +inf < +NaN. It inverts negative floats and sets the top bit of positive floats.
 */
CUA_FORCE uint32_t cua__ordered_f32(uint32_t bits)
{
	return bits ^ ((0u - (bits >> 31)) | 0x80000000u);
}

CUA_FORCE uint64_t cua__ordered_f64(uint64_t bits)
{
	return bits ^ ((0u - (bits >> 63)) | 0x8000000000000000u);
}

CUA_FORCE uint32_t cua__bits_of_ordered_f32(uint32_t ordered)
{
	return ordered ^ (ordered >> 31 ? 0x80000000u : 0xffffffffu);
}

CUA_FORCE uint64_t cua__bits_of_ordered_f64(uint64_t ordered)
{
	return ordered ^ (ordered >> 63 ? 0x8000000000000000u : 0xffffffffffffffffu);
}

/* The same order for signed integers: the top bit of the result is the sign. */
CUA_FORCE uint32_t cua__ranked_f32(uint32_t bits)
{
	return (int32_t)bits < 0 ? bits ^ 0x7fffffffu : bits;
}

CUA_FORCE uint64_t cua__ranked_f64(uint64_t bits)
{
	return (int64_t)bits < 0 ? bits ^ 0x7fffffffffffffffu : bits;
}

#endif /* CUATOMIC_DETAIL_FLOAT_BITS_H */
