/* SPDX-License-Identifier: MIT */
/* Elements of arrays as bits: properties of their types, packs, and conversions to f32. */
#ifndef CUATOMIC_BACKEND_ELEMENTS_H
#define CUATOMIC_BACKEND_ELEMENTS_H

#include <cuatomic/detail/float_bits.h>
#include <cuatomic/types.h>

typedef uint16_t __attribute__((may_alias)) cua__raw16;
typedef uint32_t __attribute__((may_alias)) cua__raw32;
typedef uint64_t __attribute__((may_alias)) cua__raw64;

/* A pack: 16 bytes of elements of any type, for a single load or store. */
struct cua__pack {
	uint32_t word[4];
} __attribute__((aligned(16), may_alias));

/* ---- properties of types; constants if the type is a constant ---- */

/* cua_type_size of a type of at most 64 bits. */
CUA_FORCE uint32_t cua__element_size(enum cua_type type)
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

CUA_FORCE int cua__is_float(enum cua_type type)
{
	return type == CUA_F16 || type == CUA_BF16 || type == CUA_F32 || type == CUA_F64;
}

CUA_FORCE int cua__is_signed(enum cua_type type)
{
	return type == CUA_I8 || type == CUA_I16 || type == CUA_I32 || type == CUA_I64;
}

/* Integers and floats of 32 and 64 bits. */
CUA_FORCE int cua__is_word(enum cua_type type)
{
	return type == CUA_I32 || type == CUA_U32 || type == CUA_I64 || type == CUA_U64 ||
	       type == CUA_F32 || type == CUA_F64;
}

/* ---- elements as bits ---- */

/* Element i of an array of elements of `size` bytes. */
CUA_FORCE uint64_t cua__element_load(size_t size, const void *x, uint64_t i)
{
	switch (size) {
	case 1: return ((const uint8_t *)x)[i];
	case 2: return ((const cua__raw16 *)x)[i];
	case 4: return ((const cua__raw32 *)x)[i];
	default: return ((const cua__raw64 *)x)[i];
	}
}

/* Element k of a pack of elements of `size` bytes. */
CUA_FORCE uint64_t cua__pack_element(size_t size, const struct cua__pack *p, uint32_t k)
{
	switch (size) {
	case 1: return (p->word[k / 4] >> k % 4 * 8) & 0xff;
	case 2: return (p->word[k / 2] >> k % 2 * 16) & 0xffff;
	case 4: return p->word[k];
	default: return p->word[2 * k % 4] | (uint64_t)p->word[(2 * k + 1) % 4] << 32;
	}
}

/* ---- f16 and bf16 to f32, in vectors on a CPU; a signaling NaN may stay so ---- */

/*
 * Converts an f16 to float without branches. Shifting the bits and adding 112 to the exponent is
 * right for normal numbers; infinities and NaN need another 112. For subnormals, 113 in the
 * exponent adds exactly 2^-14, and the code subtracts 2^-14.
 */
CUA_FORCE float cua__f32_of_f16(struct cua_f16 v)
{
#if defined(CUA_PORT_HAS_CVT_F16)
	return cua_port_cvt_f32_f16(v.bits);
#else
	uint32_t bits = (uint32_t)(v.bits & 0x7fff) << 13;
	uint32_t normal = bits + (112u << 23) + ((0 - (uint32_t)(bits >= 31u << 23)) & 112u << 23);
	float tiny = cua__from_bits_f32(bits + (113u << 23)) - cua__from_bits_f32(113u << 23);
	uint32_t is_tiny = 0 - (uint32_t)(bits < 1u << 23);

	/* masks: compilers do not vectorize a condition on arithmetic that might trap */
	return cua__from_bits_f32((normal & ~is_tiny) | (cua__bits_f32(tiny) & is_tiny) |
				  (uint32_t)(v.bits & 0x8000) << 16);
#endif
}

CUA_FORCE float cua__f32_of_bf16(struct cua_bf16 v)
{
	return cua__from_bits_f32((uint32_t)v.bits << 16);
}

/* An f16, bf16 or f32 element, given as bits. */
CUA_FORCE float cua__element_f32(enum cua_type type, uint64_t bits)
{
	const struct cua_f16 half = {(uint16_t)bits};
	const struct cua_bf16 brain = {(uint16_t)bits};

	return type == CUA_F16    ? cua__f32_of_f16(half)
	       : type == CUA_BF16 ? cua__f32_of_bf16(brain)
				  : cua__from_bits_f32((uint32_t)bits);
}

#endif /* CUATOMIC_BACKEND_ELEMENTS_H */
