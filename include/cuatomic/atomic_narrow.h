/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations on uint8_t, int8_t, uint16_t and int16_t, in the manner of atomic.h.
 *
 * Source: as in atomic.h. Access to a byte by an atomic on the word around it is folklore.
 *
 * The type suffix T is u8, i8, u16 or i16. The functions return the old value:
 *
 *   cua_atomic_load_T(p)
 *   cua_atomic_store_T(p, v)
 *   cua_atomic_exchange_T(p, v)
 *   cua_atomic_compare_exchange_T(p, expected, desired)
 *   cua_atomic_fetch_{add,sub,mul,min,max}_T(p, v)
 *   cua_atomic_fetch_{and,or,xor,nand}_T(p, v)
 *   cua_atomic_fetch_{inc,dec}_T(p, v)                      unsigned only
 *   cua_atomic_{add,sub,min,max,and,or,xor}_T(p, v)         without a result, but no faster
 *   cua_atomic_{inc,dec}_T(p, v)                            unsigned only, without a result
 *
 * The second form, _explicit, takes order, scope and space at the end. CUA_DEFINE_ATOMIC accepts
 * these suffixes.
 *
 * An object is a plain variable, aligned to its size. The host has instructions for both widths. A
 * GPU has load, store and compare-and-swap of 16 bits, but no atomic instructions for a byte. On a
 * GPU every operation on a byte, loads and stores included, therefore accesses the aligned 32-bit
 * word that contains it. That word is in the same allocation: cudaMalloc and its variants allocate
 * whole granules of 256 bytes, and the sections of variables in shared and global memory are padded
 * to whole words. The other bytes of the word keep their values.
 *
 * Synchronization: that of atomic.h. On a GPU the byte functions may access different bytes of a
 *   word concurrently. They write the whole word. So a plain write to a byte, or an operation of
 *   another width on it, must be ordered with the atomics on the other bytes of the word. If the
 *   host accesses a byte concurrently with a GPU, no other object may share its word. 16-bit
 *   objects do not affect their neighbours.
 * Scope: as in atomic.h. For bytes on a GPU, the scope must include the users of all bytes of the
 *   word.
 * Memory order: as in atomic.h.
 * Progress: lock-free. For bytes on a GPU, a change to another byte of the word may force a retry.
 *   Loads are wait-free. On the host store, exchange and compare_exchange are wait-free too; on a
 *   GPU, store and compare_exchange of 16 bits.
 * Argument: the compare-and-swap compares all the bits that the new word was computed from. A
 *   compare_exchange fails only if its last read of the word saw a different value in the object
 *   itself. That read has the memory order of a failure.
 *
 * Values: integers wrap around, signed integers too. nand is ~(old & operand). inc and dec are as
 *   in atomic.h.
 */
#ifndef CUATOMIC_ATOMIC_NARROW_H
#define CUATOMIC_ATOMIC_NARROW_H

#include <cuatomic/atomic.h>

#define CUA__TYPE_u8 uint8_t
#define CUA__TYPE_i8 int8_t
#define CUA__TYPE_u16 uint16_t
#define CUA__TYPE_i16 int16_t
#define CUA__BITS_u8 8
#define CUA__BITS_i8 8
#define CUA__BITS_u16 16
#define CUA__BITS_i16 16

#if !defined(CUA_PORT_HAS_B8) || !defined(CUA_PORT_HAS_B16)
/* ---- widths that the port lacks, by atomics on the word that contains the object ---- */

CUA_FORCE uint32_t *cua__word_of(const void *p)
{
	return (uint32_t *)(void *)((uintptr_t)p & ~(uintptr_t)3);
}

/* The object's bit offset in its word (little endian). */
CUA_FORCE uint32_t cua__shift_of(const void *p)
{
	return (uint32_t)((uintptr_t)p & 3) * 8;
}

#if !defined(CUA_PORT_HAS_B8)
CUA__PORT_PATHS(8, CUA_PATH_WORD, CUA_PATH_WORD, CUA_PATH_WORD)
#define CUA__BITS 8
#include <cuatomic/detail/atomic_narrow.tmpl.h>
#endif
#if !defined(CUA_PORT_HAS_B16)
CUA__PORT_PATHS(16, CUA_PATH_WORD, CUA_PATH_WORD, CUA_PATH_WORD)
#define CUA__BITS 16
#include <cuatomic/detail/atomic_narrow.tmpl.h>
#endif
#endif

CUA__DEFINE_ATOMIC_ACCESS(u8, uint8_t, 8)
CUA__DEFINE_ATOMIC_ACCESS(i8, int8_t, 8)
CUA__DEFINE_ATOMIC_ACCESS(u16, uint16_t, 16)
CUA__DEFINE_ATOMIC_ACCESS(i16, int16_t, 16)

#define CUA__DEFINE_NARROW_LOOP(op, s, T, expression)                                              \
	CUA__DEFINE_ATOMIC_LOOP(op, s, expression)                                                 \
	CUA__DEFINE_ATOMIC_NO_RESULT(op, s, T)

#define CUA__DEFINE_ATOMIC_NARROW(s, T)                                                            \
	CUA__DEFINE_NARROW_LOOP(add, s, T, (T)(old + operand))                                     \
	CUA__DEFINE_NARROW_LOOP(sub, s, T, (T)(old - operand))                                     \
	CUA__DEFINE_NARROW_LOOP(min, s, T, operand < old ? operand : old)                          \
	CUA__DEFINE_NARROW_LOOP(max, s, T, operand > old ? operand : old)                          \
	CUA__DEFINE_NARROW_LOOP(and, s, T, (T)(old & operand))                                     \
	CUA__DEFINE_NARROW_LOOP(or, s, T, (T)(old | operand))                                      \
	CUA__DEFINE_NARROW_LOOP(xor, s, T, (T)(old ^ operand))                                     \
	CUA__DEFINE_ATOMIC_LOOP(mul, s, (T)((int32_t)(int16_t)old * (int32_t)(int16_t)operand))    \
	CUA__DEFINE_ATOMIC_LOOP(nand, s, (T) ~(old & operand))

#define CUA__DEFINE_ATOMIC_NARROW_COUNTER(s, T)                                                    \
	CUA__DEFINE_NARROW_LOOP(inc, s, T, (T)(old >= operand ? 0 : old + 1))                      \
	CUA__DEFINE_NARROW_LOOP(dec, s, T, (T)(old == 0 || old > operand ? operand : old - 1))

CUA__DEFINE_ATOMIC_NARROW(u8, uint8_t)
CUA__DEFINE_ATOMIC_NARROW(i8, int8_t)
CUA__DEFINE_ATOMIC_NARROW(u16, uint16_t)
CUA__DEFINE_ATOMIC_NARROW(i16, int16_t)
CUA__DEFINE_ATOMIC_NARROW_COUNTER(u8, uint8_t)
CUA__DEFINE_ATOMIC_NARROW_COUNTER(u16, uint16_t)

#endif /* CUATOMIC_ATOMIC_NARROW_H */
