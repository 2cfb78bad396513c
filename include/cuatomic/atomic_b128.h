/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations on 128 bits, in the manner of atomic.h: struct cua_u128, and any struct of 16
 * bytes.
 *
 * Source: as in atomic.h. Processors and GPUs have a 16-byte compare-and-swap for updates of two
 * words at once: a pointer with a count, a key with its value, a complex number.
 *
 * A value is hi * 2^64 + lo. The functions return the old value:
 *
 *   cua_atomic_load_u128(p)
 *   cua_atomic_store_u128(p, v)
 *   cua_atomic_exchange_u128(p, v)
 *   cua_atomic_compare_exchange_u128(p, expected, desired)
 *   cua_atomic_fetch_{add,sub,mul,min,max}_u128(p, v)
 *   cua_atomic_fetch_{and,or,xor,nand}_u128(p, v)
 *   cua_atomic_fetch_{inc,dec}_u128(p, v)
 *   cua_atomic_{add,sub,min,max,and,or,xor,inc,dec}_u128(p, v)   without a result, but no faster
 *
 * The second form, _explicit, takes order, scope and space at the end. With this header
 * CUA_DEFINE_ATOMIC accepts the suffix u128, and CUA_DEFINE_ATOMIC_STRUCT accepts a type of 128
 * bits that is aligned to 16 bytes:
 *
 *   CUA_DEFINE_ATOMIC_STRUCT(best, struct scored, 128, better_of(old, operand))
 *
 * Machines: a GPU of sm_90 or newer, compiled by nvcc 12.4 or newer, in global and in shared
 * memory; a host of x86-64 (except the first processors of 2003) or of 64-bit Arm. These define
 * CUA_PORT_HAS_B128. In a .cu file the macro describes the current compilation pass, so test it
 * inside a function. For other machines the header compiles, but code that uses a function fails
 * with the error no_128_bit_atomics_on_this_machine. Use the striped atomics of <cuatomic/stripe.h>
 * there. No operation ever takes a lock or calls libatomic.
 *
 * An object is a plain variable, aligned to 16 bytes, as is memory from cudaMalloc, and from malloc
 * on the hosts above. On the host its memory must be writable even for a load, because a load is a
 * compare-and-swap of a value with itself. A GPU's load only reads.
 *
 * Synchronization: that of atomic.h. Operations of other sizes on a part of an object count as
 *   plain access. A GPU and the host must not operate on an object at the same time: no bus between
 *   them is known to carry an atomic of 16 bytes.
 * Scope: as in atomic.h.
 * Memory order: as in atomic.h.
 * Progress: on a GPU load, store, exchange and compare_exchange are wait-free instructions. All
 *   other operations are compare-and-swap loops, lock-free. On the host store and exchange are such
 *   loops too.
 * Argument: that of the loops of atomic.h. The last compare-and-swap covers all 128 bits that the
 *   new value was computed from, and has the requested order. On the host, every compare-and-swap
 *   is seq_cst. A host store is never torn, because it replaces all bits by a compare-and-swap.
 *
 * Values: unsigned integers that wrap around. inc, dec and nand are as in atomic.h.
 */
#ifndef CUATOMIC_ATOMIC_B128_H
#define CUATOMIC_ATOMIC_B128_H

#include <cuatomic/atomic.h>
#include <cuatomic/types.h>

#define CUA__TYPE_u128 struct cua_u128
#define CUA__BITS_u128 128

#if defined(CUA__HAS_UINT128)
CUA_FORCE cua__uint128 cua__whole_u128(struct cua_u128 v)
{
	return (cua__uint128)v.hi << 64 | v.lo;
}

CUA_FORCE struct cua_u128 cua__halves_u128(cua__uint128 v)
{
	struct cua_u128 halves;

	halves.lo = (uint64_t)v;
	halves.hi = (uint64_t)(v >> 64);
	return halves;
}

CUA__DEFINE_ATOMIC_ACCESS(u128, struct cua_u128, 128)

#define CUA__DEFINE_FETCH_U128(op, expression)                                                     \
	CUA_FORCE struct cua_u128 cua__##op##_of_u128(struct cua_u128 x, struct cua_u128 y)        \
	{                                                                                          \
		cua__uint128 a = cua__whole_u128(x), b = cua__whole_u128(y);                       \
                                                                                                   \
		return cua__halves_u128(expression);                                               \
	}                                                                                          \
	CUA__DEFINE_ATOMIC_LOOP(op, u128, cua__##op##_of_u128(old, operand))
#define CUA__DEFINE_ATOMIC_U128(op, expression)                                                    \
	CUA__DEFINE_FETCH_U128(op, expression)                                                     \
	CUA__DEFINE_ATOMIC_NO_RESULT(op, u128, struct cua_u128)

CUA__DEFINE_ATOMIC_U128(add, a + b)
CUA__DEFINE_ATOMIC_U128(sub, a - b)
CUA__DEFINE_ATOMIC_U128(min, b < a ? b : a)
CUA__DEFINE_ATOMIC_U128(max, b > a ? b : a)
CUA__DEFINE_ATOMIC_U128(and, a &b)
CUA__DEFINE_ATOMIC_U128(or, a | b)
CUA__DEFINE_ATOMIC_U128(xor, a ^ b)
CUA__DEFINE_ATOMIC_U128(inc, a >= b ? 0 : a + 1)
CUA__DEFINE_ATOMIC_U128(dec, a == 0 || a > b ? b : a - 1)
CUA__DEFINE_FETCH_U128(mul, a *b)
CUA__DEFINE_FETCH_U128(nand, ~(a &b))
#endif

#endif /* CUATOMIC_ATOMIC_B128_H */
