/* SPDX-License-Identifier: MIT */
/* The elements of a histogram: properties of their types, loads and conversions. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_ELEMENTS_H
#define CUATOMIC_KERNELS_HISTOGRAM_ELEMENTS_H

#include "backend/histogram_backend.h"

/* Bytes of an element's key. */
CUA_FORCE size_t cua__histogram_key_bytes(enum cua_type type)
{
	return cua__element_size(type) == 8 ? 8 : 4;
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

/* Key of an element for comparison with edges, of 32 or 64 bits. */
CUA_FORCE uint64_t cua__histogram_edge_key(enum cua_type type, uint64_t raw)
{
	switch (type) {
	case CUA_I64: return cua__histogram_edge_key_i64((int64_t)raw);
	case CUA_U64: return raw;
	case CUA_F64: return cua__histogram_edge_key_f64(cua__from_bits_f64(raw));
	case CUA_F16:
	case CUA_BF16:
	case CUA_F32: return cua__histogram_edge_key_f32(cua__element_f32(type, raw));
	case CUA_I8:
	case CUA_I16:
	case CUA_I32: return cua__histogram_edge_key_i32((int32_t)cua__histogram_as_i64(type, raw));
	default: return (uint32_t)raw;
	}
}

CUA_FORCE int cua__histogram_is_nan(enum cua_type type, uint64_t raw)
{
	if (type == CUA_F64)
		return cua__is_nan_f64(cua__from_bits_f64(raw));
	return cua__is_float(type) && cua__is_nan_f32(cua__element_f32(type, raw));
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_ELEMENTS_H */
