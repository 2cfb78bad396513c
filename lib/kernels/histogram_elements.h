/* SPDX-License-Identifier: MIT */
/* The elements of a histogram: properties of their types, loads and conversions. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_ELEMENTS_H
#define CUATOMIC_KERNELS_HISTOGRAM_ELEMENTS_H

#include "backend/histogram_backend.h"

/* A pack: 16 bytes of elements. */
struct cua__histogram_pack {
	uint32_t word[4];
} __attribute__((aligned(16), may_alias));

/* Properties of types; constants if the type is a constant. */
CUA_FORCE size_t cua__histogram_size(enum cua_type type)
{
	switch (type) {
	case CUA_I8:
	case CUA_U8: return 1;
	case CUA_I16:
	case CUA_U16:
	case CUA_F16:
	case CUA_BF16: return 2;
	case CUA_I64:
	case CUA_U64:
	case CUA_F64: return 8;
	default: return 4;
	}
}

CUA_FORCE size_t cua__histogram_key_bytes(enum cua_type type)
{
	return cua__histogram_size(type) == 8 ? 8 : 4;
}

CUA_FORCE int cua__histogram_is_float(enum cua_type type)
{
	return type == CUA_F16 || type == CUA_BF16 || type == CUA_F32 || type == CUA_F64;
}

CUA_FORCE float cua__histogram_f32(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float v;

	memcpy(&v, &low, sizeof(v));
	return v;
}

CUA_FORCE double cua__histogram_f64(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* An f16, bf16 or f32 element as f32; exact. */
CUA_FORCE float cua__histogram_as_f32(enum cua_type type, uint64_t raw)
{
	struct cua_f16 half;
	struct cua_bf16 brain;

	if (type == CUA_F16) {
		half.bits = (uint16_t)raw;
		return cua_f32_from_f16(half);
	}
	if (type == CUA_BF16) {
		brain.bits = (uint16_t)raw;
		return cua_f32_from_bf16(brain);
	}
	return cua__histogram_f32(raw);
}

/* An integer, sign-extended. */
CUA_FORCE int64_t cua__histogram_as_i64(enum cua_type type, uint64_t raw)
{
	switch (type) {
	case CUA_I8: return (int8_t)raw;
	case CUA_I16: return (int16_t)raw;
	case CUA_I32: return (int32_t)raw;
	default: return (int64_t)raw;
	}
}

CUA_FORCE int cua__histogram_is_signed(enum cua_type type)
{
	return type == CUA_I8 || type == CUA_I16 || type == CUA_I32 || type == CUA_I64;
}

CUA_FORCE uint64_t cua__histogram_load(size_t size, const void *x, uint64_t i)
{
	switch (size) {
	case 1: return ((const uint8_t *)x)[i];
	case 2: return ((const cua__raw16 *)x)[i];
	case 4: return ((const cua__raw32 *)x)[i];
	default: return ((const cua__raw64 *)x)[i];
	}
}

/* Element k of a pack. */
CUA_FORCE uint64_t cua__histogram_at(size_t size, const struct cua__histogram_pack *p, uint32_t k)
{
	switch (size) {
	case 1: return (p->word[k / 4] >> k % 4 * 8) & 0xff;
	case 2: return (p->word[k / 2] >> k % 2 * 16) & 0xffff;
	case 4: return p->word[k];
	default: return p->word[2 * k] | (uint64_t)p->word[2 * k + 1] << 32;
	}
}

/* Key of an element for comparison with edges, of 32 or 64 bits. */
CUA_FORCE uint64_t cua__histogram_edge_key(enum cua_type type, uint64_t raw)
{
	switch (type) {
	case CUA_I64: return cua__histogram_edge_key_i64((int64_t)raw);
	case CUA_U64: return raw;
	case CUA_F64: return cua__histogram_edge_key_f64(cua__histogram_f64(raw));
	case CUA_F16:
	case CUA_BF16:
	case CUA_F32: return cua__histogram_edge_key_f32(cua__histogram_as_f32(type, raw));
	case CUA_I8:
	case CUA_I16:
	case CUA_I32: return cua__histogram_edge_key_i32((int32_t)cua__histogram_as_i64(type, raw));
	default: return (uint32_t)raw;
	}
}

CUA_FORCE int cua__histogram_is_nan(enum cua_type type, uint64_t raw)
{
	if (type == CUA_F64)
		return cua__histogram_is_nan_f64(cua__histogram_f64(raw));
	return cua__histogram_is_float(type) &&
	       cua__histogram_is_nan_f32(cua__histogram_as_f32(type, raw));
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_ELEMENTS_H */
