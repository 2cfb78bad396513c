/* SPDX-License-Identifier: MIT */
/*
 * Aggregated atomics: the lanes of a warp, or the threads of a block, that pass the same address
 * first combine their operands. A leader among them then does a single atomic operation for the
 * whole group.
 *
 * Source: aggregation in a warp is common practice on GPUs since shuffles and match exist. The scan
 * is that of Hillis and Steele (Data Parallel Algorithms, 1986), here along the lanes of equal
 * address.
 *
 * T is u8 i8 u16 i16 u32 i32 u64 i64 f32 f64. Operations as in atomic.h and
 * atomic_narrow.h:
 *
 *   cua_atomic_fetch_{add,sub,min,max}_warp_T(mask, p, v)
 *   cua_atomic_fetch_mul_warp_T(mask, p, v)                 32 and 64 bits
 *   cua_atomic_fetch_{and,or,xor}_warp_T(mask, p, v)        integers only
 *   cua_atomic_fetch_add_cas_warp_{f32,f64}(mask, p, v)
 *   cua_atomic_{add,sub,min,max}_warp_T(mask, p, v)         without a result
 *   cua_atomic_{and,or,xor}_warp_T(mask, p, v)              integers only, without a result
 *   cua_atomic_fetch_nand_warp_T(mask, p, v)                serial, integers only
 *   cua_atomic_fetch_div_warp_T(mask, p, v)                 serial, f32 and f64
 *   cua_atomic_[fetch_]{inc,dec}_warp_T(mask, p, v)         serial, u32 and u64
 *     Each lane passes its own address and operand. All lanes of mask, and no other lanes, must
 *     call together with the same mask. The addresses may be all equal, all different, or any
 *     mixture. In a serial operation, the operands of the lanes with the same address are applied
 *     in lane order, and stored by a single compare-and-swap.
 *
 *   cua_atomic_{add,sub,mul,min,max}_block_T(p, v, scratch) and {and,or,xor}, add_cas likewise
 *   cua_atomic_fetch_{...}_block_T(p, v, scratch)           each thread gets its own old value
 *     All threads of the block must call together with the same address. The old values are as if
 *     the threads had run one after another in the order of their numbers.
 *
 * The second form, _explicit, takes order, scope and space at the end:
 * cua_atomic_fetch_add_warp_explicit_u32(mask, p, v, order, scope, space). The leader's operation
 * uses all three. For user-defined operations see CUA_DEFINE_ATOMIC_WARP below.
 *
 * In a kernel:
 *
 *     __shared__ struct cua_block_scratch scratch;
 *
 *     cua_atomic_add_warp_f32(0xffffffff, &sums[key], v);     all lanes are here
 *     cua_atomic_add_block_f32(total, v, &scratch);           all threads are here
 *
 * When to use each form:
 *   - warp, if lanes of a warp often share an address;
 *   - block, if a whole block uses a single address;
 *   - the plain forms of atomic.h, which need no mask, if addresses are seldom equal.
 * Plain inc and dec of u32 are a single instruction, but their warp forms loop over
 * compare-and-swap. So the warp forms pay only if many lanes share an address.
 *
 * Results: a lane gets the value as if the lanes of its address had run one after another, in lane
 *   order, with no other operation in between. For sums and products of floats, that value is
 *   rounded in the order of the scan: old + (the sum of the operands of the lower lanes). It is the
 *   same in every run with the same old value, mask and addresses. Integers, min and max are exact.
 *   nand, inc, dec and div are exact too: they apply each operand in turn, as the lanes would have
 *   done alone. So the lanes may pass different bounds, and a quotient rounds once per lane: the
 *   result is old / a / b, not old / (a * b).
 * Synchronization: that of atomic.h. To all other threads, a call is one operation of atomic.h per
 *   address. The scratch, struct cua_block_scratch of reduce.h, is shared memory of the block. It
 *   needs no initialization and may be used again as soon as the call returns.
 * Scope: as in atomic.h.
 * Memory order: as in atomic.h, for every calling lane or thread. A releasing call releases all
 *   earlier accesses of every caller. An acquiring call acquires for every caller. Relaxed calls
 *   are no barrier of the warp or of the block.
 * Progress: the calling lanes, or threads, wait for one another and for their leaders'
 *   operations. These are wait-free or lock-free as in atomic.h. A leader in a
 *   compare-and-swap loop backs off exponentially, up to 8 us, because each failed attempt delays
 *   attempts that would succeed. A leader never waits for another thread.
 * Argument: for an associative f, the operations on an address are applied as one, f(old, f(a,
 *   f(b, c))). That equals f(f(f(old, a), b), c), the serial result in lane order. Serial
 *   operations compute the latter directly. The barrier of the warp, or block, before a releasing
 *   operation orders the callers' accesses before the leader's operation, and its release is
 *   cumulative. The barrier after an acquiring operation extends the leader's acquire to all
 *   callers.
 */
#ifndef CUATOMIC_ATOMIC_WARP_H
#define CUATOMIC_ATOMIC_WARP_H

#include <cuatomic/atomic_narrow.h>
#include <cuatomic/reduce.h>

/*
 * The first and the longest pause of a leader's compare-and-swap loop, in ns. If all leaders of a
 * large GPU use the same address, their attempts together must not exceed the throughput of its L2.
 * The block form needs shorter pauses, because a block has a single leader for all of its warps.
 */
#define CUA__ATOMIC_WARP_WAIT 16, 8192
#define CUA__ATOMIC_BLOCK_WAIT 4, 128
/* The longest pause, in ns, of a serial operation, where the other lanes wait for the leader. */
#define CUA__ATOMIC_SERIAL_WAIT 2048

/* Orders the callers' accesses before or after the leader's operation, unless that is relaxed. */
CUA_FORCE void cua__warp_order(uint32_t mask, enum cua_order order)
{
	if (order != CUA_RELAXED)
		cua_port_sync_warp(mask);
}

CUA_FORCE void cua__block_order(enum cua_order order)
{
	if (order != CUA_RELAXED)
		cua_port_sync_block();
}

/* The highest lane of `below`, or the caller's lane if there is none. */
CUA_FORCE uint32_t cua__warp_next_below(uint32_t below, uint32_t lane)
{
	return below ? cua__warp_highest(below) : lane;
}

/* group_sum; see CUA__DEFINE_GROUP. Each round doubles the number of operands in a lane's v. */
#define CUA__DEFINE_GROUP_SUM(group, T)                                                            \
	CUA_FORCE T group##_sum(uint32_t mask, uint32_t peers, T v)                                \
	{                                                                                          \
		uint32_t lane = cua_port_lane();                                                   \
		struct cua__warp_rounds rounds = cua__warp_rounds_of(peers, lane);                 \
                                                                                                   \
		if (peers == mask)                                                                 \
			return group##_warp(v, mask);                                              \
		while (cua_port_ballot(mask, rounds.above != 0)) {                                 \
			T other = group##_combine__shuffle(mask, v,                                \
							   cua__warp_rounds_next(&rounds, lane));  \
                                                                                                   \
			if (rounds.above)                                                          \
				v = group##_combine(v, other);                                     \
			cua__warp_rounds_drop(&rounds, mask);                                      \
		}                                                                                  \
		return v;                                                                          \
	}

/* group_scan; see CUA__DEFINE_GROUP */
#define CUA__DEFINE_GROUP_SCAN(group, T)                                                           \
	CUA_FORCE T group##_scan(uint32_t mask, uint32_t peers, T v)                               \
	{                                                                                          \
		uint32_t lane = cua_port_lane(), step;                                             \
		uint32_t from = cua__warp_next_below(cua__warp_below(peers), lane);                \
                                                                                                   \
		if (peers == CUA__ALL_LANES) {                                                     \
			for (step = 1; step < CUA_WARP_LANES; step *= 2) {                         \
				T other = group##_combine__shuffle(                                \
					mask, v, lane < step ? lane : lane - step);                \
                                                                                                   \
				if (lane >= step)                                                  \
					v = group##_combine(other, v);                             \
			}                                                                          \
			return v;                                                                  \
		}                                                                                  \
		/* from: the next lower lane whose operands v lacks, or the lane itself if none */ \
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

/*
 * For an associative operation on T, written over its operands a and b: group_combine, group_block
 * and so on by CUA_DEFINE_REDUCE, and
 *
 *   group_sum(mask, peers, v)    the reduction over peers, valid in the lowest lane of peers
 *   group_scan(mask, peers, v)   the inclusive scan over peers
 *
 * peers: the lanes of mask that have the address of the caller.
 */
#define CUA__DEFINE_GROUP(group, T, expression)                                                    \
	CUA_DEFINE_REDUCE(group, T, expression)                                                    \
	CUA__DEFINE_GROUP_SUM(group, T)                                                            \
	CUA__DEFINE_GROUP_SCAN(group, T)

/*
 * fetch: the leader's operation, fetch(p, v, order, scope, space). The leader is the highest lane:
 * its scan is the total.
 */
#define CUA__DEFINE_FETCH_WARP(name, name_explicit, group, T, fetch)                               \
	CUA_FORCE T name_explicit(uint32_t mask, T *p, T v, enum cua_order order,                  \
				  enum cua_scope scope, enum cua_space space)                      \
	{                                                                                          \
		uint32_t lane = cua_port_lane(), peers, below, last;                               \
		T all, before, old = v;                                                            \
                                                                                                   \
		if (CUA_WARP_LANES == 1)                                                           \
			return fetch(p, v, order, scope, space);                                   \
		peers = cua__warp_peers(mask, p);                                                  \
		below = cua__warp_below(peers);                                                    \
		last = cua__warp_highest(peers);                                                   \
		all = group##_scan(mask, peers, v);                                                \
		cua__warp_order(mask, order);                                                      \
		if (lane == last)                                                                  \
			old = fetch(p, all, order, scope, space);                                  \
		cua__warp_order(mask, order);                                                      \
		old = group##_combine__shuffle(mask, old, last);                                   \
		before = group##_combine__shuffle(mask, all, cua__warp_next_below(below, lane));   \
		return below ? group##_combine(old, before) : old;                                 \
	}                                                                                          \
	CUA_FORCE T name(uint32_t mask, T *p, T v)                                                 \
	{                                                                                          \
		return name_explicit(mask, p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,                    \
				     CUA_SPACE_GENERIC);                                           \
	}

/* The same without a result. The leader is the lowest lane, where group_sum is valid. */
#define CUA__DEFINE_NO_RESULT_WARP(name, name_explicit, group, T, no_result)                       \
	CUA_FORCE void name_explicit(uint32_t mask, T *p, T v, enum cua_order order,               \
				     enum cua_scope scope, enum cua_space space)                   \
	{                                                                                          \
		uint32_t peers;                                                                    \
                                                                                                   \
		if (CUA_WARP_LANES == 1) {                                                         \
			(void)no_result(p, v, order, scope, space);                                \
			return;                                                                    \
		}                                                                                  \
		peers = cua__warp_peers(mask, p);                                                  \
		v = group##_sum(mask, peers, v);                                                   \
		cua__warp_order(mask, order);                                                      \
		if (!cua__warp_below(peers))                                                       \
			(void)no_result(p, v, order, scope, space);                                \
		cua__warp_order(mask, order);                                                      \
	}                                                                                          \
	CUA_FORCE void name(uint32_t mask, T *p, T v)                                              \
	{                                                                                          \
		name_explicit(mask, p, v, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);       \
	}

/* Scans slots 0 to warps - 1 of the scratch in place, and returns the total. */
#define CUA__DEFINE_SCAN_SLOTS(name, group, T)                                                     \
	CUA_FORCE T name(struct cua_block_scratch *s, uint32_t warps)                              \
	{                                                                                          \
		uint32_t i;                                                                        \
		T all, next;                                                                       \
                                                                                                   \
		cua__block_get(s, 0, &all, sizeof(all));                                           \
		for (i = 1; i < warps; i++) {                                                      \
			cua__block_get(s, i, &next, sizeof(next));                                 \
			all = group##_combine(all, next);                                          \
			cua__block_put(s, i, &all, sizeof(all));                                   \
		}                                                                                  \
		return all;                                                                        \
	}

/*
 * Each warp scans its operands, thread 0 scans the warps' totals in the scratch, and applies the
 * block's total. Slot i holds the total of warps 0 to i. Thread 0 then overwrites the last slot
 * with the old value of *p.
 */
#define CUA__DEFINE_FETCH_BLOCK(name, name_explicit, group, T, fetch)                              \
	CUA__DEFINE_SCAN_SLOTS(group##_scan_slots, group, T)                                       \
	CUA_FORCE T name_explicit(T *p, T v, struct cua_block_scratch *s, enum cua_order order,    \
				  enum cua_scope scope, enum cua_space space)                      \
	{                                                                                          \
		uint32_t size = cua_port_block_size();                                             \
		struct cua__block_warp w = cua__block_warp(cua_port_thread(), size);               \
		uint32_t warps = (size + CUA_WARP_LANES - 1) / CUA_WARP_LANES;                     \
		uint32_t mask = CUA__ALL_LANES >> (32 - w.lanes);                                  \
		T all, before, total, old;                                                         \
                                                                                                   \
		if (size == 1)                                                                     \
			return fetch(p, v, order, scope, space);                                   \
		all = group##_scan(mask, mask, v);                                                 \
		before = group##_combine__shuffle(mask, all, w.lane ? w.lane - 1 : 0);             \
		if (w.lane == w.lanes - 1)                                                         \
			cua__block_put(s, w.index, &all, sizeof(all));                             \
		/* also orders all threads' earlier accesses before a releasing fetch */           \
		cua_port_sync_block();                                                             \
		if (cua_port_thread() == 0) {                                                      \
			old = fetch(p, group##_scan_slots(s, warps), order, scope, space);         \
			cua__block_put(s, warps - 1, &old, sizeof(old));                           \
		}                                                                                  \
		cua_port_sync_block();                                                             \
		cua__block_get(s, warps - 1, &old, sizeof(old));                                   \
		if (w.index) {                                                                     \
			cua__block_get(s, w.index - 1, &total, sizeof(total));                     \
			old = group##_combine(old, total);                                         \
		}                                                                                  \
		/* the slots are free again only after all threads have read them */               \
		cua_port_sync_block();                                                             \
		return w.lane ? group##_combine(old, before) : old;                                \
	}                                                                                          \
	CUA_FORCE T name(T *p, T v, struct cua_block_scratch *s)                                   \
	{                                                                                          \
		return name_explicit(p, v, s, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);   \
	}

#define CUA__DEFINE_NO_RESULT_BLOCK(name, name_explicit, group, T, no_result)                      \
	CUA_FORCE void name_explicit(T *p, T v, struct cua_block_scratch *s, enum cua_order order, \
				     enum cua_scope scope, enum cua_space space)                   \
	{                                                                                          \
		v = group##_block(v, s);                                                           \
		/* in a block of a single warp, the reduction has no barrier */                    \
		cua__block_order(order);                                                           \
		if (cua_port_thread() == 0)                                                        \
			(void)no_result(p, v, order, scope, space);                                \
		cua__block_order(order);                                                           \
	}                                                                                          \
	CUA_FORCE void name(T *p, T v, struct cua_block_scratch *s)                                \
	{                                                                                          \
		name_explicit(p, v, s, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);          \
	}

#define CUA__BITS 8
#include <cuatomic/detail/atomic_update.tmpl.h>
#define CUA__BITS 16
#include <cuatomic/detail/atomic_update.tmpl.h>
#define CUA__BITS 32
#include <cuatomic/detail/atomic_update.tmpl.h>
#define CUA__BITS 64
#include <cuatomic/detail/atomic_update.tmpl.h>

/*
 * Replaces *seen by next_of(old, operand). Returns 1 if that is done; else *seen is the value that
 * the swap found. Each step between a read and its swap costs successes.
 *
 * tests_unchanged: if 1, and the order releases nothing, an operation that leaves the value
 * unchanged skips the swap. This suits a maximum, because most operands change nothing. For
 * operations that nearly always change the value (0), the test would only delay the swap.
 */
#define CUA__OFTEN_UNCHANGED 1
#define CUA__SELDOM_UNCHANGED 0
#define CUA__DEFINE_UPDATE(name, T, bits, next_of, tests_unchanged)                                \
	CUA_FORCE int name(T *p, T old, T operand, enum cua_order order, enum cua_scope scope,     \
			   enum cua_space space, cua__uint##bits *seen)                            \
	{                                                                                          \
		cua__uint##bits before = *seen, desired;                                           \
		T next = next_of(old, operand);                                                    \
                                                                                                   \
		memcpy(&desired, &next, sizeof(desired));                                          \
		*seen = cua__update_swap_b##bits(p, before, desired, tests_unchanged, order,       \
						 scope, space);                                    \
		return *seen == before;                                                            \
	}

/*
 * A leader's compare-and-swap loop with backoff. A failed attempt costs the L2 as much time as a
 * successful attempt. So after a failure the leader retries once with the value that the swap
 * returned; then it pauses, loads again and retries.
 */
#define CUA__DEFINE_BACKOFF_CAS(name, T, bits, next_of, tests_unchanged)                           \
	CUA__DEFINE_UPDATE(name##_update, T, bits, next_of, tests_unchanged)                       \
	CUA_FORCE int name##_attempt(T *p, T operand, enum cua_order order, enum cua_scope scope,  \
				     enum cua_space space, cua__uint##bits *seen, T *old)          \
	{                                                                                          \
		memcpy(old, seen, sizeof(*old));                                                   \
		return name##_update(p, *old, operand, order, scope, space, seen);                 \
	}                                                                                          \
	CUA_FORCE T name##_waiting(T *p, T operand, enum cua_order order, enum cua_scope scope,    \
				   enum cua_space space, uint32_t shortest, uint32_t longest)      \
	{                                                                                          \
		cua__uint##bits seen = cua__update_load_b##bits(p, order, scope, space);           \
		struct cua_backoff backoff;                                                        \
		T old;                                                                             \
                                                                                                   \
		cua_backoff_init(&backoff);                                                        \
		backoff.ns = shortest;                                                             \
		while (!name##_attempt(p, operand, order, scope, space, &seen, &old)) {            \
			/* retry with the value that the swap returned */                          \
			if (name##_attempt(p, operand, order, scope, space, &seen, &old))          \
				break;                                                             \
			cua__backoff_wait_upto(&backoff, longest);                                 \
			seen = cua__update_load_b##bits(p, order, scope, space);                   \
		}                                                                                  \
		return old;                                                                        \
	}                                                                                          \
	CUA_FORCE T name(T *p, T operand, enum cua_order order, enum cua_scope scope,              \
			 enum cua_space space)                                                     \
	{                                                                                          \
		return name##_waiting(p, operand, order, scope, space, CUA__ATOMIC_WARP_WAIT);     \
	}                                                                                          \
	CUA_FORCE T name##_of_block(T *p, T operand, enum cua_order order, enum cua_scope scope,   \
				    enum cua_space space)                                          \
	{                                                                                          \
		return name##_waiting(p, operand, order, scope, space, CUA__ATOMIC_BLOCK_WAIT);    \
	}

/* ---- any read-modify-write ---- */

/*
 * CUA_DEFINE_ATOMIC_WARP(name, suffix, expression)
 *
 * Defines the functions of CUA_DEFINE_ATOMIC, including name and name_explicit, and the functions
 * below. Use it at file scope, without a semicolon.
 *
 *   T name_warp(uint32_t mask, T *p, T operand)
 *   T name_warp_explicit(uint32_t mask, T *p, T operand, enum cua_order order,
 *                        enum cua_scope scope, enum cua_space space)
 *   T name_fetch_block(T *p, T operand, struct cua_block_scratch *s)
 *   T name_fetch_block_explicit(T *p, T operand, struct cua_block_scratch *s,
 *                               enum cua_order order, enum cua_scope scope, enum cua_space space)
 *   void name_block(T *p, T operand, struct cua_block_scratch *s)
 *   void name_block_explicit(T *p, T operand, struct cua_block_scratch *s, enum cua_order order,
 *                            enum cua_scope scope, enum cua_space space)
 *
 * The expression uses `old` and `operand`, as in CUA_DEFINE_ATOMIC. It is also applied to pairs of
 * operands, with the operand of the lower lane as `old`. So it must be associative, f(f(x, a), b) =
 * f(x, f(a, b)): a sum, a product or a maximum, but not a difference. Operations of different warps
 * on one address run in any order.
 *
 *   CUA_DEFINE_ATOMIC_WARP(longest, u32, operand > old ? operand : old)
 *
 * CUA_DEFINE_ATOMIC_STRUCT_WARP(name, type, bits, expression) does the same for a type of
 * CUA_DEFINE_ATOMIC_STRUCT.
 *
 * If the order is relaxed or acquire and the value would not change, the leader skips the
 * compare-and-swap. This test saves most swaps of a maximum, but delays the swaps of operations
 * that nearly always change the value. For the latter, a second macro defines the same functions
 * without the test, with the same results:
 *
 *   CUA_DEFINE_ATOMIC_CHANGING_WARP(add_mod, u32, (old + operand) % 1009)
 *
 * and CUA_DEFINE_ATOMIC_STRUCT_CHANGING_WARP(name, type, bits, expression).
 */
#define CUA_DEFINE_ATOMIC_WARP(name, suffix, expression)                                           \
	CUA_DEFINE_ATOMIC(name, suffix, expression)                                                \
	CUA__DEFINE_WARP_OF(name, CUA__TYPE_##suffix, CUA__BITS_##suffix, CUA__OFTEN_UNCHANGED)

#define CUA_DEFINE_ATOMIC_STRUCT_WARP(name, type, bits, expression)                                \
	CUA_DEFINE_ATOMIC_STRUCT(name, type, bits, expression)                                     \
	CUA__DEFINE_WARP_OF(name, type, bits, CUA__OFTEN_UNCHANGED)

#define CUA_DEFINE_ATOMIC_CHANGING_WARP(name, suffix, expression)                                  \
	CUA_DEFINE_ATOMIC(name, suffix, expression)                                                \
	CUA__DEFINE_WARP_OF(name, CUA__TYPE_##suffix, CUA__BITS_##suffix, CUA__SELDOM_UNCHANGED)

#define CUA_DEFINE_ATOMIC_STRUCT_CHANGING_WARP(name, type, bits, expression)                       \
	CUA_DEFINE_ATOMIC_STRUCT(name, type, bits, expression)                                     \
	CUA__DEFINE_WARP_OF(name, type, bits, CUA__SELDOM_UNCHANGED)

/* Lets the arguments expand before they are pasted. */
#define CUA__DEFINE_WARP_OF(name, T, bits, tests_unchanged)                                        \
	CUA__DEFINE_USER_WARP(name, T, bits, tests_unchanged)

#define CUA__DEFINE_USER_WARP(name, T, bits, tests_unchanged)                                      \
	CUA__DEFINE_GROUP(cua__group_##name, T, cua__next_##name(a, b))                            \
	CUA__DEFINE_BACKOFF_CAS(cua__backoff_cas_##name, T, bits, cua__next_##name,                \
				tests_unchanged)                                                   \
	CUA__DEFINE_FETCH_WARP(name##_warp, name##_warp_explicit, cua__group_##name, T,            \
			       cua__backoff_cas_##name)                                            \
	CUA__DEFINE_FETCH_BLOCK(name##_fetch_block, name##_fetch_block_explicit,                   \
				cua__group_##name, T, cua__backoff_cas_##name##_of_block)          \
	CUA__DEFINE_NO_RESULT_BLOCK(name##_block, name##_block_explicit, cua__group_##name, T,     \
				    cua__backoff_cas_##name##_of_block)

/* ---- serial operations: the operands are applied in lane order ---- */

/* Applies the operands of the lanes of `below`, in their order. */
#define CUA__DEFINE_SERIAL_APPLY(name, T, next_of)                                                 \
	CUA_STATIC_ASSERT(sizeof(T) <= 8, "an operand of a serial operation has at most 8 bytes"); \
	CUA_FORCE T name(uint32_t mask, uint32_t below, uint32_t lane, T old, T operand)           \
	{                                                                                          \
		for (; cua_port_ballot(mask, below != 0); below &= below - 1) {                    \
			T next = operand;                                                          \
                                                                                                   \
			cua__reduce_shuffle(mask, &next, sizeof(next),                             \
					    below ? cua_port_ffs_u32(below) - 1 : lane);           \
			if (below)                                                                 \
				old = next_of(old, next);                                          \
		}                                                                                  \
		return old;                                                                        \
	}

/*
 * The highest lane of an address is the leader, and reads the object. Each lane applies the
 * operands of the lower lanes of its address to the leader's value; the result is its old value.
 * The leader also applies its own operand, and does a single compare-and-swap for all. plain: the
 * operation of one thread.
 */
#define CUA__DEFINE_SERIAL_WARP(name, name_explicit, T, bits, next_of, plain, tests_unchanged)     \
	CUA__DEFINE_SERIAL_APPLY(cua__serial_##name, T, next_of)                                   \
	CUA__DEFINE_UPDATE(cua__update_##name, T, bits, next_of, tests_unchanged)                  \
	CUA_FORCE T name_explicit(uint32_t mask, T *p, T operand, enum cua_order order,            \
				  enum cua_scope scope, enum cua_space space)                      \
	{                                                                                          \
		uint32_t lane = cua_port_lane(), peers, last;                                      \
		cua__uint##bits seen = 0;                                                          \
		struct cua_backoff backoff;                                                        \
		T old;                                                                             \
		int pending;                                                                       \
                                                                                                   \
		if (CUA_WARP_LANES == 1)                                                           \
			return plain(p, operand, order, scope, space);                             \
		peers = cua__warp_peers(mask, p);                                                  \
		last = cua__warp_highest(peers);                                                   \
		cua_backoff_init(&backoff);                                                        \
		cua__warp_order(mask, order);                                                      \
		pending = lane == last;                                                            \
		do {                                                                               \
			if (pending)                                                               \
				seen = cua__update_load_b##bits(p, order, scope, space);           \
			memcpy(&old, &seen, sizeof(old));                                          \
			cua__reduce_shuffle(mask, &old, sizeof(old), last);                        \
			old = cua__serial_##name(mask, cua__warp_below(peers), lane, old,          \
						 operand);                                         \
			/* leaves `seen` if done: later rounds compute the same `old` */           \
			pending = pending && !cua__update_##name(p, old, operand, order, scope,    \
								 space, &seen);                    \
			if (pending)                                                               \
				cua__backoff_wait_upto(&backoff, CUA__ATOMIC_SERIAL_WAIT);         \
		} while (cua_port_ballot(mask, pending));                                          \
		cua__warp_order(mask, order);                                                      \
		return old;                                                                        \
	}                                                                                          \
	CUA_FORCE T name(uint32_t mask, T *p, T operand)                                           \
	{                                                                                          \
		return name_explicit(mask, p, operand, CUA_RELAXED, CUA_SCOPE_DEVICE,              \
				     CUA_SPACE_GENERIC);                                           \
	}

/*
 * CUA_DEFINE_ATOMIC_SERIAL_WARP(name, suffix, expression)
 *
 * Defines the functions of CUA_DEFINE_ATOMIC, and
 *
 *   T name_warp(uint32_t mask, T *p, T operand)
 *   T name_warp_explicit(uint32_t mask, T *p, T operand, enum cua_order order,
 *                        enum cua_scope scope, enum cua_space space)
 *
 * for any expression, associative or not: a quotient, a counter that wraps, a step of a state
 * machine. The operands of the lanes of one address are applied in lane order, in a single
 * indivisible step, by a single compare-and-swap. Each lane gets exactly the old value that it
 * would have got alone. A call takes as many steps as the largest number of lanes with the same
 * address, and repeats them after each failed compare-and-swap. For an associative expression
 * CUA_DEFINE_ATOMIC_WARP takes only the logarithm of that number.
 *
 *   CUA_DEFINE_ATOMIC_SERIAL_WARP(collatz, u32, (old & 1 ? 3 * old + 1 : old / 2) + operand)
 *
 * CUA_DEFINE_ATOMIC_STRUCT_SERIAL_WARP(name, type, bits, expression) does the same for a type of
 * CUA_DEFINE_ATOMIC_STRUCT.
 */
#define CUA_DEFINE_ATOMIC_SERIAL_WARP(name, suffix, expression)                                    \
	CUA_DEFINE_ATOMIC(name, suffix, expression)                                                \
	CUA__DEFINE_SERIAL_OF(name##_warp, name##_warp_explicit, CUA__TYPE_##suffix,               \
			      CUA__BITS_##suffix, cua__next_##name, name##_explicit,               \
			      CUA__OFTEN_UNCHANGED)

#define CUA_DEFINE_ATOMIC_STRUCT_SERIAL_WARP(name, type, bits, expression)                         \
	CUA_DEFINE_ATOMIC_STRUCT(name, type, bits, expression)                                     \
	CUA__DEFINE_SERIAL_OF(name##_warp, name##_warp_explicit, type, bits, cua__next_##name,     \
			      name##_explicit, CUA__OFTEN_UNCHANGED)

/* Lets the arguments expand before they are pasted. */
#define CUA__DEFINE_SERIAL_OF(name, name_explicit, T, bits, next_of, plain, tests_unchanged)       \
	CUA__DEFINE_SERIAL_WARP(name, name_explicit, T, bits, next_of, plain, tests_unchanged)

/* ---- the operations of atomic.h ---- */

/*
 * by: the prefix of the functions that combine operands (CUA__DEFINE_GROUP). fetch, no_result,
 * block_fetch, block_no_result: the leader's operation on the combined operand, with and without a
 * result, in a warp and in a block.
 */
#define CUA__DEFINE_ATOMIC_WARP(op, s, T, by, fetch, no_result, block_fetch, block_no_result)      \
	CUA__DEFINE_FETCH_WARP(cua_atomic_fetch_##op##_warp_##s,                                   \
			       cua_atomic_fetch_##op##_warp_explicit_##s, by##_##s, T, fetch)      \
	CUA__DEFINE_FETCH_BLOCK(cua_atomic_fetch_##op##_block_##s,                                 \
				cua_atomic_fetch_##op##_block_explicit_##s, by##_##s, T,           \
				block_fetch)                                                       \
	CUA__DEFINE_NO_RESULT_BLOCK(cua_atomic_##op##_block_##s,                                   \
				    cua_atomic_##op##_block_explicit_##s, by##_##s, T,             \
				    block_no_result)

#define CUA__DEFINE_ATOMIC_WARP_NO_RESULT(op, s, T, by, fetch, no_result, block_fetch,             \
					  block_no_result)                                         \
	CUA__DEFINE_ATOMIC_WARP(op, s, T, by, fetch, no_result, block_fetch, block_no_result)      \
	CUA__DEFINE_NO_RESULT_WARP(cua_atomic_##op##_warp_##s,                                     \
				   cua_atomic_##op##_warp_explicit_##s, by##_##s, T, no_result)

#define CUA__DEFINE_ATOMIC_WARP_NATIVE(op, s, T, expression)                                       \
	CUA__DEFINE_GROUP(cua__group_##op##_##s, T, expression)                                    \
	CUA__DEFINE_ATOMIC_WARP_NO_RESULT(                                                         \
		op, s, T, cua__group_##op, cua_atomic_fetch_##op##_explicit_##s,                   \
		cua_atomic_##op##_explicit_##s, cua_atomic_fetch_##op##_explicit_##s,              \
		cua_atomic_##op##_explicit_##s)

/*
 * The compare-and-swap loops of atomic.h, with backoff. cua__next_ is followed by the loop's name
 * there.
 */
#define CUA__DEFINE_ATOMIC_WARP_LOOP(op, s, T, bits, tests_unchanged, EACH)                        \
	CUA__DEFINE_GROUP(cua__group_##op##_##s, T, cua__next_cua_atomic_fetch_##op##_##s(a, b))   \
	CUA__DEFINE_BACKOFF_CAS(cua__backoff_cas_##op##_##s, T, bits,                              \
				cua__next_cua_atomic_fetch_##op##_##s, tests_unchanged)            \
	EACH(op, s, T, cua__group_##op, cua__backoff_cas_##op##_##s, cua__backoff_cas_##op##_##s,  \
	     cua__backoff_cas_##op##_##s##_of_block, cua__backoff_cas_##op##_##s##_of_block)

/* Subtracting v is adding its negative. */
#define CUA__DEFINE_ATOMIC_WARP_SUB(s, T, negative)                                                \
	CUA_FORCE T cua_atomic_fetch_sub_warp_explicit_##s(                                        \
		uint32_t mask, T *p, T v, enum cua_order order, enum cua_scope scope,              \
		enum cua_space space)                                                              \
	{                                                                                          \
		return cua_atomic_fetch_add_warp_explicit_##s(mask, p, negative, order, scope,     \
							      space);                              \
	}                                                                                          \
	CUA_FORCE T cua_atomic_fetch_sub_warp_##s(uint32_t mask, T *p, T v)                        \
	{                                                                                          \
		return cua_atomic_fetch_add_warp_##s(mask, p, negative);                           \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_warp_explicit_##s(                                           \
		uint32_t mask, T *p, T v, enum cua_order order, enum cua_scope scope,              \
		enum cua_space space)                                                              \
	{                                                                                          \
		cua_atomic_add_warp_explicit_##s(mask, p, negative, order, scope, space);          \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_warp_##s(uint32_t mask, T *p, T v)                           \
	{                                                                                          \
		cua_atomic_add_warp_##s(mask, p, negative);                                        \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_block_explicit_##s(                                          \
		T *p, T v, struct cua_block_scratch *b, enum cua_order order,                      \
		enum cua_scope scope, enum cua_space space)                                        \
	{                                                                                          \
		cua_atomic_add_block_explicit_##s(p, negative, b, order, scope, space);            \
	}                                                                                          \
	CUA_FORCE void cua_atomic_sub_block_##s(T *p, T v, struct cua_block_scratch *b)            \
	{                                                                                          \
		cua_atomic_add_block_##s(p, negative, b);                                          \
	}

#define CUA__DEFINE_ATOMIC_SUB_FETCH_BLOCK(s, T, negative)                                         \
	CUA_FORCE T cua_atomic_fetch_sub_block_explicit_##s(                                       \
		T *p, T v, struct cua_block_scratch *b, enum cua_order order,                      \
		enum cua_scope scope, enum cua_space space)                                        \
	{                                                                                          \
		return cua_atomic_fetch_add_block_explicit_##s(p, negative, b, order, scope,       \
							       space);                             \
	}                                                                                          \
	CUA_FORCE T cua_atomic_fetch_sub_block_##s(T *p, T v, struct cua_block_scratch *b)         \
	{                                                                                          \
		return cua_atomic_fetch_add_block_##s(p, negative, b);                             \
	}

#define CUA__DEFINE_ATOMIC_WARP_INTEGER(s, T, bits)                                                \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(add, s, T, (T)((uint##bits##_t)a + (uint##bits##_t)b))      \
	CUA__DEFINE_ATOMIC_WARP_SUB(s, T, (T)(0 - (uint##bits##_t)v))                              \
	CUA__DEFINE_ATOMIC_SUB_FETCH_BLOCK(s, T, (T)(0 - (uint##bits##_t)v))                       \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(min, s, T, b < a ? b : a)                                   \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(max, s, T, b > a ? b : a)                                   \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(and, s, T, a &b)                                            \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(or, s, T, a | b)                                            \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(xor, s, T, a ^ b)                                           \
	CUA__DEFINE_ATOMIC_WARP_LOOP(mul, s, T, bits, CUA__SELDOM_UNCHANGED,                       \
				     CUA__DEFINE_ATOMIC_WARP)

#define CUA__DEFINE_ATOMIC_WARP_FLOAT(s, T, bits)                                                  \
	CUA__DEFINE_ATOMIC_WARP_NATIVE(add, s, T, cua_port_add_rn_##s(a, b))                       \
	CUA__DEFINE_ATOMIC_WARP_SUB(s, T, cua__negative_##s(v))                                    \
	CUA__DEFINE_ATOMIC_SUB_FETCH_BLOCK(s, T, cua__negative_##s(v))                             \
	CUA__DEFINE_ATOMIC_WARP_LOOP(mul, s, T, bits, CUA__SELDOM_UNCHANGED,                       \
				     CUA__DEFINE_ATOMIC_WARP)                                      \
	CUA__DEFINE_ATOMIC_WARP_LOOP(add_cas, s, T, bits, CUA__SELDOM_UNCHANGED,                   \
				     CUA__DEFINE_ATOMIC_WARP)                                      \
	CUA__DEFINE_ATOMIC_WARP_LOOP(min, s, T, bits, CUA__OFTEN_UNCHANGED,                        \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)                            \
	CUA__DEFINE_ATOMIC_WARP_LOOP(max, s, T, bits, CUA__OFTEN_UNCHANGED,                        \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)

CUA__DEFINE_ATOMIC_WARP_INTEGER(u32, uint32_t, 32)
CUA__DEFINE_ATOMIC_WARP_INTEGER(i32, int32_t, 32)
CUA__DEFINE_ATOMIC_WARP_INTEGER(u64, uint64_t, 64)
CUA__DEFINE_ATOMIC_WARP_INTEGER(i64, int64_t, 64)
CUA__DEFINE_ATOMIC_WARP_FLOAT(f32, float, 32)
CUA__DEFINE_ATOMIC_WARP_FLOAT(f64, double, 64)

/* ---- the operations of atomic_narrow.h ---- */

#define CUA__DEFINE_ATOMIC_WARP_NARROW(s, T, bits)                                                 \
	CUA__DEFINE_ATOMIC_WARP_LOOP(add, s, T, bits, CUA__SELDOM_UNCHANGED,                       \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)                            \
	CUA__DEFINE_ATOMIC_WARP_SUB(s, T, (T)(0 - v))                                              \
	CUA__DEFINE_ATOMIC_SUB_FETCH_BLOCK(s, T, (T)(0 - v))                                       \
	CUA__DEFINE_ATOMIC_WARP_LOOP(min, s, T, bits, CUA__OFTEN_UNCHANGED,                        \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)                            \
	CUA__DEFINE_ATOMIC_WARP_LOOP(max, s, T, bits, CUA__OFTEN_UNCHANGED,                        \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)                            \
	CUA__DEFINE_ATOMIC_WARP_LOOP(and, s, T, bits, CUA__OFTEN_UNCHANGED,                        \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)                            \
	CUA__DEFINE_ATOMIC_WARP_LOOP(or, s, T, bits, CUA__OFTEN_UNCHANGED,                         \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)                            \
	CUA__DEFINE_ATOMIC_WARP_LOOP(xor, s, T, bits, CUA__SELDOM_UNCHANGED,                       \
				     CUA__DEFINE_ATOMIC_WARP_NO_RESULT)

CUA__DEFINE_ATOMIC_WARP_NARROW(u8, uint8_t, 8)
CUA__DEFINE_ATOMIC_WARP_NARROW(i8, int8_t, 8)
CUA__DEFINE_ATOMIC_WARP_NARROW(u16, uint16_t, 16)
CUA__DEFINE_ATOMIC_WARP_NARROW(i16, int16_t, 16)

/* ---- operations that are not associative ---- */

#define CUA__DEFINE_ATOMIC_SERIAL(op, s, next_of)                                                  \
	CUA__DEFINE_SERIAL_OF(cua_atomic_fetch_##op##_warp_##s,                                    \
			      cua_atomic_fetch_##op##_warp_explicit_##s, CUA__TYPE_##s,            \
			      CUA__BITS_##s, next_of, cua_atomic_fetch_##op##_explicit_##s,        \
			      CUA__SELDOM_UNCHANGED)
#define CUA__DEFINE_ATOMIC_SERIAL_LOOP(op, s)                                                      \
	CUA__DEFINE_ATOMIC_SERIAL(op, s, cua__next_cua_atomic_fetch_##op##_##s)

CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, u8)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, i8)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, u16)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, i16)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, u32)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, i32)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, u64)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(nand, i64)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(div, f32)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(div, f64)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(inc, u64)
CUA__DEFINE_ATOMIC_SERIAL_LOOP(dec, u64)

CUA_FORCE uint32_t cua__next_inc_u32(uint32_t old, uint32_t v)
{
	return old >= v ? 0 : old + 1;
}

CUA_FORCE uint32_t cua__next_dec_u32(uint32_t old, uint32_t v)
{
	return old == 0 || old > v ? v : old - 1;
}

CUA__DEFINE_ATOMIC_SERIAL(inc, u32, cua__next_inc_u32)
CUA__DEFINE_ATOMIC_SERIAL(dec, u32, cua__next_dec_u32)

#define CUA__DEFINE_ATOMIC_SERIAL_NO_RESULT(op, s, T)                                              \
	CUA_FORCE void cua_atomic_##op##_warp_explicit_##s(                                        \
		uint32_t mask, T *p, T v, enum cua_order order, enum cua_scope scope,              \
		enum cua_space space)                                                              \
	{                                                                                          \
		(void)cua_atomic_fetch_##op##_warp_explicit_##s(mask, p, v, order, scope, space);  \
	}                                                                                          \
	CUA_FORCE void cua_atomic_##op##_warp_##s(uint32_t mask, T *p, T v)                        \
	{                                                                                          \
		(void)cua_atomic_fetch_##op##_warp_##s(mask, p, v);                                \
	}
CUA__DEFINE_ATOMIC_SERIAL_NO_RESULT(inc, u32, uint32_t)
CUA__DEFINE_ATOMIC_SERIAL_NO_RESULT(dec, u32, uint32_t)
CUA__DEFINE_ATOMIC_SERIAL_NO_RESULT(inc, u64, uint64_t)
CUA__DEFINE_ATOMIC_SERIAL_NO_RESULT(dec, u64, uint64_t)

#endif /* CUATOMIC_ATOMIC_WARP_H */
