/* SPDX-License-Identifier: MIT */
/*
 * The table of atomic paths (cuatomic/atomic_path.h): how the headers implement each operation on
 * each type, for the machine that the including file is compiled for.
 */
#ifndef CUATOMIC_KERNELS_ATOMIC_PATHS_H
#define CUATOMIC_KERNELS_ATOMIC_PATHS_H

#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_complex.h>
#include <cuatomic/atomic_half.h>
#include <cuatomic/atomic_narrow.h>

#include "backend/backend.h"

#define CUA__PATH_TYPES 26
#define CUA__PATH_OPS 17
#define CUA__PATH_ENTRIES (CUA__PATH_TYPES * CUA__PATH_OPS)
CUA_STATIC_ASSERT((int)CUA_COMPLEX_F64 < CUA__PATH_TYPES && (int)CUA_OP_DEC < CUA__PATH_OPS,
		  "the table has an entry for each");

/* Invokes ENTRY(type, op, form, suffix) for every operation that exists. */
#define CUA__PATHS_ACCESS(ENTRY, type, s)                                                          \
	ENTRY(type, CUA_OP_LOAD, load, s)                                                          \
	ENTRY(type, CUA_OP_STORE, store, s)                                                        \
	ENTRY(type, CUA_OP_EXCHANGE, exchange, s)                                                  \
	ENTRY(type, CUA_OP_COMPARE_EXCHANGE, compare_exchange, s)
#define CUA__PATHS_SUM(ENTRY, type, s)                                                             \
	ENTRY(type, CUA_OP_ADD, fetch_add, s)                                                      \
	ENTRY(type, CUA_OP_SUB, fetch_sub, s)
#define CUA__PATHS_NUMBER(ENTRY, type, s)                                                          \
	CUA__PATHS_ACCESS(ENTRY, type, s)                                                          \
	CUA__PATHS_SUM(ENTRY, type, s)                                                             \
	ENTRY(type, CUA_OP_MIN, fetch_min, s)                                                      \
	ENTRY(type, CUA_OP_MAX, fetch_max, s)
#define CUA__PATHS_BITS(ENTRY, type, s)                                                            \
	CUA__PATHS_NUMBER(ENTRY, type, s)                                                          \
	ENTRY(type, CUA_OP_AND, fetch_and, s)                                                      \
	ENTRY(type, CUA_OP_OR, fetch_or, s)                                                        \
	ENTRY(type, CUA_OP_XOR, fetch_xor, s)
#define CUA__PATHS_INTEGER(ENTRY, type, s)                                                         \
	CUA__PATHS_BITS(ENTRY, type, s)                                                            \
	ENTRY(type, CUA_OP_MUL, fetch_mul, s)                                                      \
	ENTRY(type, CUA_OP_NAND, fetch_nand, s)
#define CUA__PATHS_COUNTER(ENTRY, type, s)                                                         \
	CUA__PATHS_INTEGER(ENTRY, type, s)                                                         \
	ENTRY(type, CUA_OP_INC, fetch_inc, s)                                                      \
	ENTRY(type, CUA_OP_DEC, fetch_dec, s)
#define CUA__PATHS_FLOAT(ENTRY, type, s)                                                           \
	CUA__PATHS_NUMBER(ENTRY, type, s)                                                          \
	ENTRY(type, CUA_OP_MUL, fetch_mul, s)                                                      \
	ENTRY(type, CUA_OP_DIV, fetch_div, s)
#define CUA__PATHS_COMPLEX(ENTRY, type, s)                                                         \
	CUA__PATHS_ACCESS(ENTRY, type, s)                                                          \
	CUA__PATHS_SUM(ENTRY, type, s)                                                             \
	ENTRY(type, CUA_OP_MUL, fetch_mul, s)
#if defined(__SIZEOF_INT128__)
#define CUA__PATHS_128(ENTRY)                                                                      \
	CUA__PATHS_COUNTER(ENTRY, CUA_U128, u128)                                                  \
	CUA__PATHS_COMPLEX(ENTRY, CUA_COMPLEX_F64, complex_f64)
#else
#define CUA__PATHS_128(ENTRY)
#endif
#define CUA__PATHS(ENTRY)                                                                          \
	CUA__PATHS_INTEGER(ENTRY, CUA_I8, i8)                                                      \
	CUA__PATHS_COUNTER(ENTRY, CUA_U8, u8)                                                      \
	CUA__PATHS_INTEGER(ENTRY, CUA_I16, i16)                                                    \
	CUA__PATHS_COUNTER(ENTRY, CUA_U16, u16)                                                    \
	CUA__PATHS_INTEGER(ENTRY, CUA_I32, i32)                                                    \
	CUA__PATHS_COUNTER(ENTRY, CUA_U32, u32)                                                    \
	CUA__PATHS_INTEGER(ENTRY, CUA_I64, i64)                                                    \
	CUA__PATHS_COUNTER(ENTRY, CUA_U64, u64)                                                    \
	CUA__PATHS_FLOAT(ENTRY, CUA_F16, f16)                                                      \
	CUA__PATHS_FLOAT(ENTRY, CUA_BF16, bf16)                                                    \
	CUA__PATHS_FLOAT(ENTRY, CUA_F32, f32)                                                      \
	CUA__PATHS_FLOAT(ENTRY, CUA_F64, f64)                                                      \
	CUA__PATHS_COMPLEX(ENTRY, CUA_COMPLEX_F32, complex_f32)                                    \
	CUA__PATHS_128(ENTRY)

#define CUA__PATH_ENTRY(type, op, form, s)                                                         \
	entries[(type)*CUA__PATH_OPS + (op)] = (uint8_t)CUA_ATOMIC_PATH(form, s);

/*
 * Fills a table of CUA__PATH_ENTRIES. It must be zeroed: an entry without an operation stays
 * CUA_PATH_NONE (0).
 */
CUA_FN void cua__paths_fill(uint8_t *entries)
{
	CUA__PATHS(CUA__PATH_ENTRY)
}

#endif /* CUATOMIC_KERNELS_ATOMIC_PATHS_H */
