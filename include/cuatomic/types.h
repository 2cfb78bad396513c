/* SPDX-License-Identifier: MIT */
/*
 * Enumerations shared by the host API and by code inside kernels.
 *
 * The numbers are part of the ABI: they are never reused or renumbered.
 */
#ifndef CUATOMIC_TYPES_H
#define CUATOMIC_TYPES_H

#include <cuatomic/detail/standard.h>
#include <cuatomic/status.h>

/* Element types of the bulk calls; each call documents the types that it supports. */
enum cua_type {
	CUA_NONE = 0, /* no element: the value type of a hash map that is a set */
	CUA_I8 = 1,
	CUA_U8 = 2,
	CUA_I16 = 3,
	CUA_U16 = 4,
	CUA_I32 = 5,
	CUA_U32 = 6,
	CUA_I64 = 7,
	CUA_U64 = 8,
	CUA_U128 = 10,
	CUA_F16 = 16,
	CUA_BF16 = 17,
	CUA_F32 = 18,
	CUA_F64 = 19,
	CUA_COMPLEX_F32 = 24,
	CUA_COMPLEX_F64 = 25
};

/* The atomic operations that cua_atomic_path_query describes, with and without a result. */
enum cua_atomic_op {
	CUA_OP_LOAD = 1,
	CUA_OP_STORE = 2,
	CUA_OP_EXCHANGE = 3,
	CUA_OP_COMPARE_EXCHANGE = 4,
	CUA_OP_ADD = 5,
	CUA_OP_SUB = 6,
	CUA_OP_MUL = 7,
	CUA_OP_DIV = 8,
	CUA_OP_MIN = 9,
	CUA_OP_MAX = 10,
	CUA_OP_AND = 11,
	CUA_OP_OR = 12,
	CUA_OP_XOR = 13,
	CUA_OP_NAND = 14,
	CUA_OP_INC = 15,
	CUA_OP_DEC = 16
};

/* The implementation of an atomic operation. */
enum cua_atomic_path {
	CUA_PATH_NONE = 0,   /* the type does not have this operation */
	CUA_PATH_NATIVE = 1, /* a single instruction; on the host, the compiler's builtin */
	CUA_PATH_CAS_8 = 2,  /* a loop over compare-and-swap of that many bits */
	CUA_PATH_CAS_16 = 3,
	CUA_PATH_CAS_32 = 4,
	CUA_PATH_CAS_64 = 5,
	CUA_PATH_CAS_128 = 6,
	/*
	 * on the aligned 32-bit word that contains the value: a load of the word, or a loop over
	 * its compare-and-swap
	 */
	CUA_PATH_WORD = 7,
	CUA_PATH_STRIPE = 8 /* only under a lock, by the striped atomics */
};

/* Comparisons: `element CMP value`. If either side is NaN, only NE is true, as in C. */
enum cua_compare { CUA_LT = 1, CUA_LE = 2, CUA_EQ = 3, CUA_NE = 4, CUA_GE = 5, CUA_GT = 6 };

/* Operations that change a stored value. */
enum cua_update {
	CUA_UPDATE_ADD = 1,
	CUA_UPDATE_MIN = 2,
	CUA_UPDATE_MAX = 3,
	CUA_UPDATE_AND = 4,
	CUA_UPDATE_OR = 5,
	CUA_UPDATE_XOR = 6
};

/*
 * Values for which C has no portable type. They are plain data with the same layout on the host and
 * on a GPU. cua_f16 and cua_bf16 hold the bits of IEEE binary16 and of the upper half of a float.
 */
struct cua_f16 {
	uint16_t bits;
};

struct cua_bf16 {
	uint16_t bits;
};

struct __attribute__((aligned(8))) cua_complex_f32 {
	float re, im;
};

struct __attribute__((aligned(16))) cua_complex_f64 {
	double re, im;
};

struct __attribute__((aligned(16))) cua_u128 {
	uint64_t lo, hi;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of an element; 0 for a number that is no type. */
CUA_API size_t cua_type_size(enum cua_type type);
/* "f32", "u64", ...; "unknown" for a number that is no type. */
CUA_API const char *cua_type_name(enum cua_type type);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_TYPES_H */
