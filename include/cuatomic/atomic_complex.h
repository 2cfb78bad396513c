/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations on complex numbers, struct cua_complex_f32 and struct cua_complex_f64, in the
 * manner of atomic.h. There are two contracts, by parts and as a whole.
 *
 * Source: as in atomic.h.
 *
 * T is complex_f32 or complex_f64. The fetch functions return the old value.
 *
 * By parts: each component is updated by its own atomic operation. Other threads may update the
 * object between the two, or see only one component changed. This suffices for sums that are read
 * after all updates, and is fast on a GPU. Only the forms by parts, and atomic.h on a component,
 * may run at the same time:
 *
 *   cua_atomic_{add,sub}_parts_T(p, v)                      without a result
 *
 * As a whole: both components change, or are read, in a single step.
 *
 *   cua_atomic_load_T(p)
 *   cua_atomic_store_T(p, v)
 *   cua_atomic_exchange_T(p, v)
 *   cua_atomic_compare_exchange_T(p, expected, desired)     compared as bits
 *   cua_atomic_fetch_{add,sub,mul}_T(p, v)
 *   cua_atomic_{add,sub}_T(p, v)                            without a result, but no faster
 *
 * The second form, _explicit, takes order, scope and space at the end. CUA_DEFINE_ATOMIC accepts
 * these suffixes. Aggregated forms, as in atomic_warp.h:
 *
 *   cua_atomic_add_parts_warp_T(mask, p, v)
 *   cua_atomic_add_parts_block_T(p, v, scratch)
 *   cua_atomic_fetch_add_warp_T(mask, p, v)
 *   cua_atomic_add_warp_T(mask, p, v)
 *   cua_atomic_add_block_T(p, v, scratch)
 *
 * An object is a plain variable, aligned to its size, 8 or 16 bytes. complex_f64 as a whole needs
 * the 128-bit instructions; atomic_b128.h lists the machines, and the consequence for read-only
 * memory. complex_f64 by parts works everywhere.
 *
 * Synchronization of two accesses to the same object. X: the caller must order the accesses.
 * -: the accesses may run concurrently.
 *
 *                            plain access  by parts  as a whole
 *     plain read                  -            X         X   (-: if all of the atomics are loads)
 *     plain write                 X            X         X
 *     by parts                    X            -         X
 *     as a whole                  X            X         -
 *
 * Scope: as in atomic.h.
 * Memory order: as in atomic.h. By parts, each of the two operations has the given order, also if a
 *   single vector instruction does both.
 * Progress: by parts, twice the add of atomic.h. A GPU of sm_90 or newer, compiled by nvcc 12.1 or
 *   newer, has a single instruction for both components of complex_f32 in global memory. As a
 *   whole: load, store, exchange and compare_exchange as in atomic.h and atomic_b128.h. All other
 *   operations are compare-and-swap loops.
 * Argument: that of the loops of atomic.h, on 64 or 128 bits. A reader of the whole never sees a
 *   torn value, because only accesses to the whole run at the same time.
 *
 * Values: each operation on components rounds once, to nearest even. (a + bi)(c + di) is (ac - bd)
 *   + (ad + bc)i of rounded products, never contracted, without the rules for infinities of C's
 *   Annex G. By parts, complex_f32 follows add_f32 of atomic.h: in global memory, a GPU flushes
 *   subnormals to zeros. The loops flush nothing.
 */
#ifndef CUATOMIC_ATOMIC_COMPLEX_H
#define CUATOMIC_ATOMIC_COMPLEX_H

#include <cuatomic/atomic.h>
#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_warp.h>
#include <cuatomic/types.h>

#define CUA__TYPE_complex_f32 struct cua_complex_f32
#define CUA__TYPE_complex_f64 struct cua_complex_f64
#define CUA__BITS_complex_f32 64
#define CUA__BITS_complex_f64 128

/* ---- by parts ---- */

#if defined(CUA_PORT_HAS_ADD_V2_F32)
#define CUA__ADD_BOTH_f32(p, v, order, scope, space)                                               \
	((space) == CUA_SPACE_GLOBAL || ((space) == CUA_SPACE_GENERIC && cua_port_is_global(p))    \
		 ? (cua_port_add_v2_f32(&(p)->re, (v).re, (v).im, order, scope), 1)                \
		 : 0)
#else
#define CUA__ADD_BOTH_f32(p, v, order, scope, space) 0
#endif
#define CUA__ADD_BOTH_f64(p, v, order, scope, space) 0

#define CUA__DEFINE_COMPLEX_PARTS(f, T)                                                            \
	CUA_FORCE T cua__negative_complex_##f(T v)                                                 \
	{                                                                                          \
		v.re = cua__negative_##f(v.re);                                                    \
		v.im = cua__negative_##f(v.im);                                                    \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE void cua_atomic_add_parts_explicit_complex_##f(                                  \
		T *p, T v, enum cua_order order, enum cua_scope scope, enum cua_space space)       \
	{                                                                                          \
		/* the vector instruction cannot acquire */                                        \
		if ((order == CUA_RELAXED || order == CUA_RELEASE) &&                              \
		    CUA__ADD_BOTH_##f(p, v, order, scope, space))                                  \
			return;                                                                    \
		cua_atomic_add_explicit_##f(&p->re, v.re, order, scope, space);                    \
		cua_atomic_add_explicit_##f(&p->im, v.im, order, scope, space);                    \
	}                                                                                          \
	CUA_FORCE void cua_atomic_add_parts_complex_##f(T *p, T v)                                 \
	{                                                                                          \
		cua_atomic_add_parts_explicit_complex_##f(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,     \
							  CUA_SPACE_GENERIC);                      \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_parts_explicit_complex_##f(                                  \
		T *p, T v, enum cua_order order, enum cua_scope scope, enum cua_space space)       \
	{                                                                                          \
		cua_atomic_add_parts_explicit_complex_##f(p, cua__negative_complex_##f(v), order,  \
							  scope, space);                           \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_parts_complex_##f(T *p, T v)                                 \
	{                                                                                          \
		cua_atomic_sub_parts_explicit_complex_##f(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,     \
							  CUA_SPACE_GENERIC);                      \
	}

CUA__DEFINE_COMPLEX_PARTS(f32, struct cua_complex_f32)
CUA__DEFINE_COMPLEX_PARTS(f64, struct cua_complex_f64)

/* ---- as a whole ---- */

#define CUA__DEFINE_COMPLEX_WHOLE(f, T, bits)                                                      \
	CUA_FORCE T cua__add_of_complex_##f(T a, T b)                                              \
	{                                                                                          \
		a.re = cua_port_add_rn_##f(a.re, b.re);                                            \
		a.im = cua_port_add_rn_##f(a.im, b.im);                                            \
		return a;                                                                          \
	}                                                                                          \
	CUA_FORCE T cua__mul_of_complex_##f(T a, T b)                                              \
	{                                                                                          \
		T c;                                                                               \
                                                                                                   \
		c.re = cua_port_sub_rn_##f(cua_port_mul_rn_##f(a.re, b.re),                        \
					   cua_port_mul_rn_##f(a.im, b.im));                       \
		c.im = cua_port_add_rn_##f(cua_port_mul_rn_##f(a.re, b.im),                        \
					   cua_port_mul_rn_##f(a.im, b.re));                       \
		return c;                                                                          \
	}                                                                                          \
	CUA__DEFINE_ATOMIC_ACCESS(complex_##f, T, bits)                                            \
	CUA__DEFINE_ATOMIC_LOOP(add, complex_##f, cua__add_of_complex_##f(old, operand))           \
	CUA__DEFINE_ATOMIC_LOOP(sub, complex_##f,                                                  \
				cua__add_of_complex_##f(old, cua__negative_complex_##f(operand)))  \
	CUA__DEFINE_ATOMIC_LOOP(mul, complex_##f, cua__mul_of_complex_##f(old, operand))           \
	CUA__DEFINE_ATOMIC_NO_RESULT(add, complex_##f, T)                                          \
	CUA__DEFINE_ATOMIC_NO_RESULT(sub, complex_##f, T)                                          \
	CUA__DEFINE_BACKOFF_CAS(cua__backoff_cas_add_complex_##f, T, bits,                         \
				cua__add_of_complex_##f, CUA__SELDOM_UNCHANGED)

CUA__DEFINE_COMPLEX_WHOLE(f32, struct cua_complex_f32, 64)
#if defined(CUA__HAS_UINT128)
#define CUA__BITS 128
#include <cuatomic/detail/atomic_update.tmpl.h>
CUA__DEFINE_COMPLEX_WHOLE(f64, struct cua_complex_f64, 128)
#endif

/* ---- aggregated in the warp and in the block, a component after the other ---- */

/* The functions that combine operands, as of CUA__DEFINE_GROUP. */
#define CUA__DEFINE_COMPLEX_GROUP(f, T)                                                            \
	CUA_FORCE T cua__group_add_complex_##f##_combine__shuffle(uint32_t mask, T v,              \
								  uint32_t lane)                   \
	{                                                                                          \
		v.re = cua__group_add_##f##_combine__shuffle(mask, v.re, lane);                    \
		v.im = cua__group_add_##f##_combine__shuffle(mask, v.im, lane);                    \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE T cua__group_add_complex_##f##_sum(uint32_t mask, uint32_t peers, T v)           \
	{                                                                                          \
		v.re = cua__group_add_##f##_sum(mask, peers, v.re);                                \
		v.im = cua__group_add_##f##_sum(mask, peers, v.im);                                \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE T cua__group_add_complex_##f##_scan(uint32_t mask, uint32_t peers, T v)          \
	{                                                                                          \
		v.re = cua__group_add_##f##_scan(mask, peers, v.re);                               \
		v.im = cua__group_add_##f##_scan(mask, peers, v.im);                               \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE T cua__group_add_complex_##f##_block(T v, struct cua_block_scratch *s)           \
	{                                                                                          \
		v.re = cua__group_add_##f##_block(v.re, s);                                        \
		v.im = cua__group_add_##f##_block(v.im, s);                                        \
		return v;                                                                          \
	}

/* no_result: the leader's operation. */
#define CUA__DEFINE_COMPLEX_NO_RESULT(f, T, name, no_result)                                       \
	CUA__DEFINE_NO_RESULT_WARP(name##_warp_complex_##f, name##_warp_explicit_complex_##f,      \
				   cua__group_add_complex_##f, T, no_result)                       \
	CUA__DEFINE_NO_RESULT_BLOCK(name##_block_complex_##f, name##_block_explicit_complex_##f,   \
				    cua__group_add_complex_##f, T, no_result)

CUA__DEFINE_COMPLEX_GROUP(f32, struct cua_complex_f32)
CUA__DEFINE_COMPLEX_GROUP(f64, struct cua_complex_f64)
CUA__DEFINE_COMPLEX_NO_RESULT(f32, struct cua_complex_f32, cua_atomic_add_parts,
			      cua_atomic_add_parts_explicit_complex_f32)
CUA__DEFINE_COMPLEX_NO_RESULT(f64, struct cua_complex_f64, cua_atomic_add_parts,
			      cua_atomic_add_parts_explicit_complex_f64)

#define CUA__DEFINE_COMPLEX_ADD(f, T)                                                              \
	CUA_FORCE T cua__group_add_complex_##f##_combine(T a, T b)                                 \
	{                                                                                          \
		return cua__add_of_complex_##f(a, b);                                              \
	}                                                                                          \
	CUA__DEFINE_FETCH_WARP(cua_atomic_fetch_add_warp_complex_##f,                              \
			       cua_atomic_fetch_add_warp_explicit_complex_##f,                     \
			       cua__group_add_complex_##f, T, cua__backoff_cas_add_complex_##f)    \
	CUA__DEFINE_COMPLEX_NO_RESULT(f, T, cua_atomic_add, cua__backoff_cas_add_complex_##f)

CUA__DEFINE_COMPLEX_ADD(f32, struct cua_complex_f32)
#if defined(CUA__HAS_UINT128)
CUA__DEFINE_COMPLEX_ADD(f64, struct cua_complex_f64)
#endif

#endif /* CUATOMIC_ATOMIC_COMPLEX_H */
