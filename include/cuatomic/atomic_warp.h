/* SPDX-License-Identifier: MIT */
/*
 * Atomics that combine first: the lanes of a warp, or the threads of a block, that name one address
 * put their operands together, and one of them does one atomic operation for all.
 *
 * Source: aggregation in the warp is common practice on GPUs since shuffles and match exist; the scan is
 * that of Hillis and Steele (Data Parallel Algorithms, 1986), here along the lanes of equal address.
 *
 * With T of u32 i32 u64 i64 f32 f64 and the operations of atomic.h:
 *
 *   cua_atomic_fetch_{add,sub,mul,min,max}_warp_T(mask, p, v)
 *   cua_atomic_fetch_{and,or,xor}_warp_T(mask, p, v)        integers only
 *   cua_atomic_fetch_add_cas_warp_{f32,f64}(mask, p, v)
 *   cua_atomic_{add,sub,min,max}_warp_T(mask, p, v)         without a result
 *   cua_atomic_{and,or,xor}_warp_T(mask, p, v)              integers only, without a result
 *     Each lane brings an address and an operand. mask is the caller's: exactly its lanes call,
 *     together, with the same mask. They may bring one address, 32 different ones, or any mixture.
 *
 *   cua_atomic_{add,sub,mul,min,max}_block_T(p, v, scratch) and {and,or,xor}, add_cas likewise
 *     All threads of the block call, together, with one and the same address, and get no result.
 *
 * and each with an explicit form, cua_atomic_fetch_add_warp_explicit_u32(mask, p, v, order, scope). User
 * operations: CUA_DEFINE_ATOMIC_WARP below.
 *
 * In a kernel:
 *
 *     __shared__ struct cua_block_scratch scratch;
 *
 *     cua_atomic_add_warp_f32(0xffffffff, &sums[key], v);     all lanes are here
 *     cua_atomic_add_block_f32(total, v, &scratch);           all threads are here
 *
 * Which: where the lanes of a warp often meet on one address, warp; where a whole block has one, block;
 * where addresses seldom meet, the plain forms of atomic.h, which need no mask.
 *
 * Results: a lane gets the value that it would have seen had the lanes of its address come one after the
 *   other, in the order of the lanes, and nothing in between. For sums and products of floats that value
 *   is rounded in the order of the scan: old + (a sum of the operands of the lanes before). It is the same
 *   in every run for the same old value, mask and addresses. Integers, min and max are exact.
 * Synchronization: that of atomic.h; to the others a call is the plain operation, once an address. The
 *   scratch belongs to the block, and may be used again at once.
 * Scope: as in atomic.h.
 * Memory order: as in atomic.h, for every lane or thread that calls: what any of them did before a
 *   releasing call is released, what the operation acquires is acquired for all. Relaxed calls are
 *   no barrier of the warp or of the block.
 * Progress: the calling lanes, or threads, wait for one another, and for the operations of their leaders.
 *   Those are wait-free or lock-free as in atomic.h. A leader in a loop over compare-and-swap waits longer
 *   after each failure, up to CUA__ATOMIC_LONGEST_WAIT, because each attempt that fails delays those
 *   that would not; it never waits for another thread.
 * Argument: operations on one address are applied as one, f(old, f(a, f(b, c))), which associativity makes
 *   f(f(f(old, a), b), c), the lanes in order. The barrier of the warp, or block, before a releasing
 *   operation orders the others' accesses before the leader's, whose release is cumulative; the one
 *   after an acquiring operation hands on what the leader has acquired.
 */
#ifndef CUATOMIC_ATOMIC_WARP_H
#define CUATOMIC_ATOMIC_WARP_H

#include <cuatomic/atomic.h>
#include <cuatomic/reduce.h>

/* In ns. All warps of a large GPU on one address must together not exceed what its L2 takes. */
#ifndef CUA__ATOMIC_LONGEST_WAIT
#define CUA__ATOMIC_LONGEST_WAIT 2048
#endif

/* The lanes of mask with the address of the caller. One address for all is common, and costs less. */
CUA_FORCE uint32_t cua__warp_peers(uint32_t mask, const void *p)
{
	uint64_t address = (uint64_t)(uintptr_t)p;
	uint64_t first = cua_port_shuffle_u64(mask, address, cua_port_ffs_u32(mask) - 1);

	if (cua_port_ballot(mask, address == first) == mask)
		return mask;
	return cua_port_match_any_u64(mask, address);
}

/* The number of the highest lane of a mask that is not empty. */
CUA_FORCE uint32_t cua__warp_highest(uint32_t mask)
{
	mask |= mask >> 1;
	mask |= mask >> 2;
	mask |= mask >> 4;
	mask |= mask >> 8;
	mask |= mask >> 16;
	return cua_port_popc_u32(mask) - 1;
}

CUA_FORCE uint32_t cua__warp_below(uint32_t mask)
{
	return mask & ((1u << cua_port_lane()) - 1);
}

/*
 * For an associative operation on T, written over its operands a and b: group_combine, group_block and so
 * on by CUA_DEFINE_REDUCE, and
 *
 *   group_sum(mask, peers, v)    the reduction over peers, valid in the lowest lane of them
 *   group_scan(mask, peers, v)   in each lane the reduction up to and with it
 */
#define CUA__DEFINE_GROUP(group, T, expression)                                                    \
	CUA_DEFINE_REDUCE(group, T, expression)                                                    \
                                                                                                   \
	/* A round doubles the neighbours that a lane has taken in; see CUA_DEFINE_REDUCE. */      \
	CUA_FORCE T group##_sum(uint32_t mask, uint32_t peers, T v)                                \
	{                                                                                          \
		uint32_t lane = cua_port_lane(), above = peers & ~((2u << lane) - 1);              \
		uint32_t rank = cua_port_popc_u32(cua__warp_below(peers));                         \
                                                                                                   \
		if (peers == mask)                                                                 \
			return group##_warp(v, mask);                                              \
		while (cua_port_ballot(mask, above != 0)) {                                        \
			uint32_t next = above ? cua_port_ffs_u32(above) - 1 : lane;                \
			T other = group##_combine__shuffle(mask, v, next);                         \
                                                                                                   \
			if (above)                                                                 \
				v = group##_combine(v, other);                                     \
			above &= cua_port_ballot(mask, !(rank & 1));                               \
			rank /= 2;                                                                 \
		}                                                                                  \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	CUA_FORCE T group##_scan(uint32_t mask, uint32_t peers, T v)                               \
	{                                                                                          \
		uint32_t lane = cua_port_lane(), below = cua__warp_below(peers), step;             \
		uint32_t from = below ? cua__warp_highest(below) : lane;                           \
                                                                                                   \
		if (peers == 0xffffffffu) {                                                        \
			for (step = 1; step < CUA_WARP_LANES; step *= 2) {                         \
				T other = group##_combine__shuffle(                                \
					mask, v, lane < step ? lane : lane - step);                \
                                                                                                   \
				if (lane >= step)                                                  \
					v = group##_combine(other, v);                             \
			}                                                                          \
			return v;                                                                  \
		}                                                                                  \
		/* from: the next lane whose operands are not in v yet; itself where all are */     \
		while (cua_port_ballot(mask, from != lane)) {                                      \
			T other = group##_combine__shuffle(mask, v, from);                         \
			uint32_t further = cua_port_shuffle_u32(mask, from, from);                 \
                                                                                                   \
			if (from != lane) {                                                        \
				v = group##_combine(other, v);                                     \
				from = further == from ? lane : further;                           \
			}                                                                          \
		}                                                                                  \
		return v;                                                                          \
	}

/* fetch: the leader's operation, fetch(p, v, order, scope). */
#define CUA__DEFINE_FETCH_WARP(name, name_explicit, group, T, fetch)                               \
	CUA_FORCE T name_explicit(uint32_t mask, T *p, T v, enum cua_order order,                  \
				  enum cua_scope scope)                                            \
	{                                                                                          \
		uint32_t lane = cua_port_lane(), peers, below, last;                               \
		T all, before, old = v;                                                            \
                                                                                                   \
		if (CUA_WARP_LANES == 1)                                                           \
			return fetch(p, v, order, scope);                                          \
		peers = cua__warp_peers(mask, p);                                                  \
		below = cua__warp_below(peers);                                                    \
		last = cua__warp_highest(peers);                                                   \
		all = group##_scan(mask, peers, v);                                                \
		if (order != CUA_RELAXED)                                                          \
			cua_port_sync_warp(mask);                                                  \
		if (lane == last)                                                                  \
			old = fetch(p, all, order, scope);                                         \
		if (order != CUA_RELAXED)                                                          \
			cua_port_sync_warp(mask);                                                  \
		old = group##_combine__shuffle(mask, old, last);                                   \
		before = group##_combine__shuffle(mask, all,                                       \
						  below ? cua__warp_highest(below) : lane);        \
		return below ? group##_combine(old, before) : old;                                 \
	}                                                                                          \
	CUA_FORCE T name(uint32_t mask, T *p, T v)                                                 \
	{                                                                                          \
		return name_explicit(mask, p, v, CUA_RELAXED, CUA_SCOPE_DEVICE);                   \
	}

#define CUA__DEFINE_QUIET_WARP(name, name_explicit, group, T, quiet)                               \
	CUA_FORCE void name_explicit(uint32_t mask, T *p, T v, enum cua_order order,               \
				     enum cua_scope scope)                                         \
	{                                                                                          \
		uint32_t peers;                                                                    \
                                                                                                   \
		if (CUA_WARP_LANES == 1) {                                                         \
			(void)quiet(p, v, order, scope);                                           \
			return;                                                                    \
		}                                                                                  \
		peers = cua__warp_peers(mask, p);                                                  \
		v = group##_sum(mask, peers, v);                                                   \
		if (order != CUA_RELAXED)                                                          \
			cua_port_sync_warp(mask);                                                  \
		if (!cua__warp_below(peers))                                                       \
			(void)quiet(p, v, order, scope);                                           \
		if (order != CUA_RELAXED)                                                          \
			cua_port_sync_warp(mask);                                                  \
	}                                                                                          \
	CUA_FORCE void name(uint32_t mask, T *p, T v)                                              \
	{                                                                                          \
		name_explicit(mask, p, v, CUA_RELAXED, CUA_SCOPE_DEVICE);                          \
	}

#define CUA__DEFINE_QUIET_BLOCK(name, name_explicit, group, T, quiet)                              \
	CUA_FORCE void name_explicit(T *p, T v, struct cua_block_scratch *s, enum cua_order order, \
				     enum cua_scope scope)                                         \
	{                                                                                          \
		v = group##_block(v, s);                                                           \
		/* the reduction of one warp has no barrier */                                     \
		if (order != CUA_RELAXED)                                                          \
			cua_port_sync_block();                                                     \
		if (cua_port_thread() == 0)                                                        \
			(void)quiet(p, v, order, scope);                                           \
		if (order != CUA_RELAXED)                                                          \
			cua_port_sync_block();                                                     \
	}                                                                                          \
	CUA_FORCE void name(T *p, T v, struct cua_block_scratch *s)                                \
	{                                                                                          \
		name_explicit(p, v, s, CUA_RELAXED, CUA_SCOPE_DEVICE);                             \
	}

/*
 * A leader's loop over compare-and-swap. Many warps on one address: an attempt that fails has taken the
 * L2 the time of one that succeeds, so a loser waits, and then looks again.
 */
#define CUA__DEFINE_PATIENT(name, T, bits, next_of)                                                \
	CUA_FORCE T name(T *p, T operand, enum cua_order order, enum cua_scope scope)              \
	{                                                                                          \
		enum cua_order first = order == CUA_ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED;           \
		cua__uint##bits seen = cua_port_load_b##bits(p, first, scope, CUA_SPACE_GENERIC);  \
		cua__uint##bits before, desired;                                                   \
		struct cua_backoff backoff;                                                        \
		T old, next;                                                                       \
                                                                                                   \
		cua_backoff_init(&backoff);                                                        \
		for (;;) {                                                                         \
			before = seen;                                                             \
			memcpy(&old, &before, sizeof(old));                                        \
			next = next_of(old, operand);                                              \
			memcpy(&desired, &next, sizeof(desired));                                  \
			if (desired == before && (order == CUA_RELAXED || order == CUA_ACQUIRE))   \
				return old;                                                        \
			seen = cua_port_cas_b##bits(p, before, desired, order, scope,              \
						    CUA_SPACE_GENERIC);                            \
			if (seen == before)                                                        \
				return old;                                                        \
			cua__backoff_wait_upto(&backoff, CUA__ATOMIC_LONGEST_WAIT);                \
			seen = cua_port_load_b##bits(p, first, scope, CUA_SPACE_GENERIC);          \
		}                                                                                  \
	}

/* ---- any read-modify-write ---- */

/*
 * CUA_DEFINE_ATOMIC_WARP(name, suffix, expression)
 *
 * Defines, at file scope and with no semicolon after it, what CUA_DEFINE_ATOMIC does, name and
 * name_explicit, and
 *
 *   T name_warp(uint32_t mask, T *p, T operand)
 *   T name_warp_explicit(uint32_t mask, T *p, T operand, enum cua_order order, enum cua_scope scope)
 *   void name_block(T *p, T operand, struct cua_block_scratch *s)
 *   void name_block_explicit(T *p, T operand, struct cua_block_scratch *s, enum cua_order order,
 *                            enum cua_scope scope)
 *
 * The expression is written in `old` and `operand` as there, and is also applied to two operands, the
 * earlier one as `old`. So it must be associative, f(f(x, a), b) is f(x, f(a, b)): a sum, a product, a
 * maximum, but not a difference. Operations on one address by many warps come in any order.
 *
 *   CUA_DEFINE_ATOMIC_WARP(add_mod, u32, (old + operand) % 1009)
 *
 * CUA_DEFINE_ATOMIC_STRUCT_WARP(name, type, bits, expression) is the same of CUA_DEFINE_ATOMIC_STRUCT.
 */
#define CUA_DEFINE_ATOMIC_WARP(name, suffix, expression)                                           \
	CUA_DEFINE_ATOMIC(name, suffix, expression)                                                \
	CUA__DEFINE_WARP_OF(name, CUA__TYPE_##suffix, CUA__BITS_##suffix)

#define CUA_DEFINE_ATOMIC_STRUCT_WARP(name, type, bits, expression)                                \
	CUA_DEFINE_ATOMIC_STRUCT(name, type, bits, expression)                                     \
	CUA__DEFINE_WARP_OF(name, type, bits)

/* Lets the arguments expand before they are pasted. */
#define CUA__DEFINE_WARP_OF(name, T, bits) CUA__DEFINE_USER_WARP(name, T, bits)

#define CUA__DEFINE_USER_WARP(name, T, bits)                                                       \
	CUA__DEFINE_GROUP(cua__group_##name, T, cua__next_##name(a, b))                            \
	CUA__DEFINE_PATIENT(cua__patient_##name, T, bits, cua__next_##name)                        \
	CUA__DEFINE_FETCH_WARP(name##_warp, name##_warp_explicit, cua__group_##name, T,            \
			       cua__patient_##name)                                                \
	CUA__DEFINE_QUIET_BLOCK(name##_block, name##_block_explicit, cua__group_##name, T,         \
				cua__patient_##name)

/* ---- the operations of atomic.h ---- */

/* by: the group that combines; leader: the operation, whose operand is what combining has made. */
#define CUA__DEFINE_ATOMIC_WARP(op, s, T, by, fetch, quiet)                                        \
	CUA__DEFINE_FETCH_WARP(cua_atomic_fetch_##op##_warp_##s,                                   \
			       cua_atomic_fetch_##op##_warp_explicit_##s, by##_##s, T, fetch)      \
	CUA__DEFINE_QUIET_BLOCK(cua_atomic_##op##_block_##s, cua_atomic_##op##_block_explicit_##s, \
				by##_##s, T, quiet)

#define CUA__DEFINE_ATOMIC_WARP_QUIET(op, s, T, by, fetch, quiet)                                  \
	CUA__DEFINE_ATOMIC_WARP(op, s, T, by, fetch, quiet)                                        \
	CUA__DEFINE_QUIET_WARP(cua_atomic_##op##_warp_##s, cua_atomic_##op##_warp_explicit_##s,    \
			       by##_##s, T, quiet)

#define CUA__DEFINE_ATOMIC_WARP_NATIVE(op, s, T, expression)                                       \
	CUA__DEFINE_GROUP(cua__group_##op##_##s, T, expression)                                    \
	CUA__DEFINE_ATOMIC_WARP_QUIET(op, s, T, cua__group_##op,                                   \
				      cua_atomic_fetch_##op##_explicit_##s,                        \
				      cua_atomic_##op##_explicit_##s)

/* The loops of atomic.h, patiently; they are named by their fetch form there. */
#define CUA__DEFINE_ATOMIC_WARP_LOOP(op, s, T, bits, EACH)                                         \
	CUA__DEFINE_GROUP(cua__group_##op##_##s, T, cua__next_cua_atomic_fetch_##op##_##s(a, b))   \
	CUA__DEFINE_PATIENT(cua__patient_##op##_##s, T, bits,                                      \
			    cua__next_cua_atomic_fetch_##op##_##s)                                 \
	EACH(op, s, T, cua__group_##op, cua__patient_##op##_##s, cua__patient_##op##_##s)

/* A difference is the sum with the negative. */
#define CUA__DEFINE_ATOMIC_WARP_SUB(s, T, negative)                                                \
	CUA_FORCE T cua_atomic_fetch_sub_warp_explicit_##s(uint32_t mask, T *p, T v,               \
							   enum cua_order order,                   \
							   enum cua_scope scope)                   \
	{                                                                                          \
		return cua_atomic_fetch_add_warp_explicit_##s(mask, p, negative, order, scope);    \
	}                                                                                          \
	CUA_FORCE T cua_atomic_fetch_sub_warp_##s(uint32_t mask, T *p, T v)                        \
	{                                                                                          \
		return cua_atomic_fetch_add_warp_##s(mask, p, negative);                           \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_warp_explicit_##s(uint32_t mask, T *p, T v,                  \
							enum cua_order order,                      \
							enum cua_scope scope)                      \
	{                                                                                          \
		cua_atomic_add_warp_explicit_##s(mask, p, negative, order, scope);                 \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_warp_##s(uint32_t mask, T *p, T v)                           \
	{                                                                                          \
		cua_atomic_add_warp_##s(mask, p, negative);                                        \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_block_explicit_##s(T *p, T v, struct cua_block_scratch *b,   \
							 enum cua_order order,                     \
							 enum cua_scope scope)                     \
	{                                                                                          \
		cua_atomic_add_block_explicit_##s(p, negative, b, order, scope);                   \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_block_##s(T *p, T v, struct cua_block_scratch *b)            \
	{                                                                                          \
		cua_atomic_add_block_##s(p, negative, b);                                          \
	}

#define CUA__DEFINE_ATOMIC_WARP_INTEGER(s, T, bits)                                                \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(add, s, T, (T)((uint##bits##_t)a + (uint##bits##_t)b))      \
	CUA__DEFINE_ATOMIC_WARP_SUB(s, T, (T)(0 - (uint##bits##_t)v))                              \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(min, s, T, b < a ? b : a)                                   \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(max, s, T, b > a ? b : a)                                   \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(and, s, T, a &b)                                            \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(or, s, T, a | b)                                            \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(xor, s, T, a ^ b)                                           \
	CUA__DEFINE_ATOMIC_WARP_LOOP(mul, s, T, bits, CUA__DEFINE_ATOMIC_WARP)

#define CUA__DEFINE_ATOMIC_WARP_FLOAT(s, T, bits)                                                  \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(add, s, T, cua_port_add_rn_##s(a, b))                       \
	CUA__DEFINE_ATOMIC_WARP_SUB(s, T, -v)                                                      \
	CUA__DEFINE_ATOMIC_WARP_LOOP(mul, s, T, bits, CUA__DEFINE_ATOMIC_WARP)                     \
	CUA__DEFINE_ATOMIC_WARP_LOOP(add_cas, s, T, bits, CUA__DEFINE_ATOMIC_WARP)                 \
	CUA__DEFINE_ATOMIC_WARP_LOOP(min, s, T, bits, CUA__DEFINE_ATOMIC_WARP_QUIET)               \
	CUA__DEFINE_ATOMIC_WARP_LOOP(max, s, T, bits, CUA__DEFINE_ATOMIC_WARP_QUIET)

CUA__DEFINE_ATOMIC_WARP_INTEGER(u32, uint32_t, 32)
CUA__DEFINE_ATOMIC_WARP_INTEGER(i32, int32_t, 32)
CUA__DEFINE_ATOMIC_WARP_INTEGER(u64, uint64_t, 64)
CUA__DEFINE_ATOMIC_WARP_INTEGER(i64, int64_t, 64)
CUA__DEFINE_ATOMIC_WARP_FLOAT(f32, float, 32)
CUA__DEFINE_ATOMIC_WARP_FLOAT(f64, double, 64)

#endif /* CUATOMIC_ATOMIC_WARP_H */
