/* SPDX-License-Identifier: MIT */
/*
 * Reductions over a warp, over a block of 1 to 1024 threads, and across the blocks of a launch. A
 * single kernel ends with the result of the whole grid.
 *
 * Source: the dot product of Sanders and Kandrot, CUDA by Example, chapter 5, finished on the GPU
 * under a lock as in its appendix A; the last arriving block of the CUDA toolkit's sample
 * threadFenceReduction; the reduction over any set of lanes of Coates' "reduce peers".
 *
 * In a kernel:
 *
 *     __shared__ struct cua_block_scratch scratch;
 *     float total, v = ...;                            a value per thread
 *
 *     v = cua_block_sum_f32(v, &scratch);              the block's sum, in every thread
 *     if (cua_finish_last_block_sum_f32(finish, &scratch, partials, cua_port_block(),
 *                                       cua_port_grid_size(), v, &total) &&
 *         cua_port_thread() == 0)
 *             *result = total;                         the grid's sum
 *
 * There are four ways to finish across blocks, for any operation and any type of at most 8 bytes:
 *
 * - lock: a spinlock protects the accumulator. Blocks combine in the order of their arrival, so
 *   float results may differ from run to run. Each block takes the lock once: for small grids.
 * - ordered: a lock in the order of the blocks' tickets. A block takes its ticket when it starts
 *   (cua_finish_ticket). The kernel must use the ticket in place of blockIdx, also to choose the
 *   block's elements. So the result is the same in every run, and a block waits only for blocks
 *   that already run.
 * - last block: each block stores a partial result. The block that arrives last reduces them in
 *   order. The result is the same in every run. This is the default of the host calls.
 * - atomic: an atomic operation on the accumulator: native for the operations below, else a loop of
 *   compare-and-swap. Blocks combine in the order of their arrival, as with the lock.
 *
 * Operations: sum, min and max of u32, i32, u64, i64, f32 and f64 are defined here.
 * CUA_DEFINE_REDUCE and CUA_DEFINE_FINISH define any other operation. Sums of integers wrap. min
 * and max of floats ignore NaN, and return NaN only if all values are NaN; -0 is less than +0. So
 * min and max depend neither on the order nor on the way to finish.
 *
 * Synchronization of two calls on the same scratch or the same struct cua_finish, within a launch.
 *   X: the caller must order the calls. -: the functions order the calls by themselves. "block" is
 *   any block function, and "finish" is any way to finish.
 *
 *               block  init  ticket  finish
 *     block       -      -      -       -
 *     init        -      X      X       X
 *     ticket      -      X      -       -
 *     finish      -      X      -       -
 *
 *   Launches that use the same struct cua_finish must run one after the other. Each launch finishes
 *   in a single way, and every block of it finishes exactly once. The last block resets the state
 *   to zero. So the next launch, or the next replay of a graph, needs no initialization.
 * Scope: warp, block, and device (blocks of the same device; threads of the same host).
 * Memory order: everything that a block did before it finished happens before everything that the
 *   block with the total does after it.
 * Progress: the warp and block functions wait for all named lanes, or for all threads of the block.
 *   lock and ordered are blocking. last block and atomic are lock-free: no block waits for another
 *   block.
 *
 * Argument:
 * - lock: accumulator and arrived are accessed only under the lock; its acquire and release order
 *   the accesses. The first block stores its value instead of combining, so no identity is needed.
 * - ordered: block t - 1 writes turn = t by a release store, after its access of accumulator. Block
 *   t reads it by an acquire load, before its own access. Ticket 0 stores its value instead of
 *   combining. Ticket t is taken only after tickets 0 to t - 1. Their blocks run, and so they reach
 *   their turns.
 * - last block: a block stores its partial result and then adds 1 to arrived, with acquire and
 *   release. These read-modify-writes form a single release sequence. So the block that reads
 *   blocks - 1 acquires the releases of all other blocks, and all partial results are visible to
 *   it. Its thread 0 passes them to its other threads by the block's barrier.
 * - atomic: a relaxed atomic on accumulator precedes the same arrival. The last block's exchange of
 *   accumulator comes after all of them.
 * - The last block resets the state after all other blocks have made their last access.
 */
#ifndef CUATOMIC_REDUCE_H
#define CUATOMIC_REDUCE_H

#include <cuatomic/context.h>
#include <cuatomic/detail/float_bits.h>
#include <cuatomic/port.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/*
 * Shared memory for reductions of a block; on the host, a variable of the thread. It needs no
 * initialization.
 */
struct cua_block_scratch {
	uint64_t slot[32];
};

/*
 * The state that finishes a launch across its blocks, in global memory. It is zero between
 * launches.
 */
struct cua_finish {
	uint64_t accumulator; /* combined value of the arrived blocks: lock, ordered, atomic */
	uint64_t arrived;     /* number of arrived blocks: lock, atomic, last block */
	uint64_t ticket;      /* ordered: the next ticket */
	struct cua_spinlock lock;
	uint32_t reserved0;
	uint64_t turn; /* ordered: ticket that may enter; polled, so in a sector of its own */
	uint64_t reserved1[3];
};
CUA_STATIC_ASSERT(sizeof(struct cua_finish) == 64, "the state is ABI");
CUA_STATIC_ASSERT(CUA__OFFSETOF(struct cua_finish, turn) == 32, "the state is ABI");

#define CUA_FINISH_INIT                                                                            \
	{                                                                                          \
		0, 0, 0, CUA_SPINLOCK_INIT, 0, 0,                                                  \
		{                                                                                  \
			0, 0, 0                                                                    \
		}                                                                                  \
	}

/* The ways to finish across blocks. */
enum cua_finish_mode {
	CUA_FINISH_AUTO = 0, /* LAST_BLOCK */
	CUA_FINISH_LAST_BLOCK = 1,
	CUA_FINISH_ATOMIC = 2,
	CUA_FINISH_LOCK = 3,
	CUA_FINISH_ORDERED_LOCK = 4
};

/* Sets the state to CUA_FINISH_INIT. No kernel may use it meanwhile. */
CUA_FN void cua_finish_init(struct cua_finish *f)
{
	f->accumulator = 0;
	f->arrived = 0;
	f->ticket = 0;
	cua_spinlock_init(&f->lock);
	f->reserved0 = 0;
	f->turn = 0;
	f->reserved1[0] = f->reserved1[1] = f->reserved1[2] = 0;
}

/*
 * Returns the block's ticket, from 0 in the order in which blocks start. A single thread of each
 * block calls, once.
 */
CUA_FN uint64_t cua_finish_ticket(struct cua_finish *f)
{
	return cua_port_fetch_add_u64(&f->ticket, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
				      CUA_SPACE_GLOBAL);
}

/* Broadcasts thread 0's value to every thread of the block. */
CUA_FORCE uint64_t cua__block_broadcast(uint64_t v, struct cua_block_scratch *s)
{
	if (cua_port_block_size() == 1)
		return v;
	if (cua_port_thread() == 0)
		CUA_WRITE(s->slot[0], v);
	cua_port_sync_block();
	v = CUA_READ(s->slot[0]);
	cua_port_sync_block();
	return v;
}

/* cua_finish_ticket for a whole block: every thread calls, and gets the block's ticket. */
CUA_FN uint64_t cua_finish_ticket_block(struct cua_finish *f, struct cua_block_scratch *s)
{
	return cua__block_broadcast(cua_port_thread() == 0 ? cua_finish_ticket(f) : 0, s);
}

/*
 * The block number for this way to finish: a ticket for ORDERED_LOCK, else the block's index in the
 * grid. Every thread of the block calls, once per launch.
 */
CUA_FN uint64_t cua_finish_block(enum cua_finish_mode mode, struct cua_finish *f,
				 struct cua_block_scratch *s)
{
	return mode == CUA_FINISH_ORDERED_LOCK ? cua_finish_ticket_block(f, s) : cua_port_block();
}

/* Counts a block as arrived. Returns 1 for the last block, and resets the count. */
CUA_FORCE int cua__finish_arrive(struct cua_finish *f, uint64_t blocks)
{
	if (cua_port_fetch_add_u64(&f->arrived, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
				   CUA_SPACE_GLOBAL) != blocks - 1)
		return 0;
	cua_port_store_b64(&f->arrived, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	return 1;
}

/*
 * Waits for the turn of a ticket. The pause grows with the distance to the turn, and doubles while
 * the turn does not change; it is at most 1024 ns.
 */
CUA_FN void cua__finish_wait(struct cua_finish *f, uint64_t ticket)
{
	uint64_t seen = ticket, now;
	uint32_t ns = 32;

	while ((now = cua_port_load_b64(&f->turn, CUA_RELAXED, CUA_SCOPE_DEVICE,
					CUA_SPACE_GLOBAL)) != ticket) {
		ns = now != seen ? 32 : ns < 256 ? ns * 2 : ns;
		seen = now;
		cua_port_pause(ticket - now < 1024 / ns ? (uint32_t)(ticket - now) * ns : 1024);
	}
	(void)cua_port_load_b64(&f->turn, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* ---- reductions over warps and blocks ---- */

/* Shuffles *v, of at most 8 bytes. */
CUA_FORCE void cua__reduce_shuffle(uint32_t mask, void *v, size_t bytes, uint32_t lane)
{
	uint32_t low = 0;
	uint64_t all = 0;

	if (bytes <= sizeof(low)) {
		memcpy(&low, v, bytes <= sizeof(low) ? bytes : sizeof(low));
		low = cua_port_shuffle_u32(mask, low, lane);
		memcpy(v, &low, bytes <= sizeof(low) ? bytes : sizeof(low));
	} else {
		memcpy(&all, v, bytes);
		all = cua_port_shuffle_u64(mask, all, lane);
		memcpy(v, &all, bytes);
	}
}

/*
 * The calling thread's warp in its block. The caller passes cua_port_thread(): if this function
 * read it, nvcc would read the register of the thread's number in each iteration of a caller's loop.
 */
struct cua__block_warp {
	uint32_t index, start; /* number of the warp, and of its first thread */
	uint32_t lane, lanes;
};

CUA_FORCE struct cua__block_warp cua__block_warp(uint32_t thread, uint32_t size)
{
	struct cua__block_warp w;

	w.index = thread / CUA_WARP_LANES;
	w.lane = thread % CUA_WARP_LANES;
	w.start = thread - w.lane;
	w.lanes = size - w.start < CUA_WARP_LANES ? size - w.start : CUA_WARP_LANES;
	return w;
}

CUA_FORCE void cua__block_put(struct cua_block_scratch *s, uint32_t slot, const void *v,
			      size_t bytes)
{
	uint64_t bits = 0;

	memcpy(&bits, v, bytes);
	CUA_WRITE(s->slot[slot], bits);
}

CUA_FORCE void cua__block_get(struct cua_block_scratch *s, uint32_t slot, void *v, size_t bytes)
{
	uint64_t bits = CUA_READ(s->slot[slot]);

	memcpy(v, &bits, bytes);
}

/* Thread 0 has stored the block's value in slot 0. Every thread gets it. */
CUA_FORCE void cua__block_get_all(struct cua_block_scratch *s, void *v, size_t bytes)
{
	uint64_t bits;

	cua_port_sync_block();
	bits = CUA_READ(s->slot[0]);
	/* the next call may write slot 0 only after all threads have read it */
	cua_port_sync_block();
	memcpy(v, &bits, bytes);
}

/*
 * CUA_DEFINE_REDUCE(name, type, expression)        at file scope, without a semicolon
 *
 * Defines functions for a trivially copyable type of at most 8 bytes and an associative operation.
 * The operation is an expression over the operands a and b; it need not be commutative.
 *
 *   type name_combine(type a, type b)
 *     The operation.
 *   type name_warp(type v, uint32_t mask)
 *     The reduction over the lanes of mask, in the order of the lanes. Every lane of mask gets
 *     it. Exactly the lanes of mask call, together, with the same mask.
 *   type name_block(type v, struct cua_block_scratch *s)
 *     The reduction over the block, in the order of the threads (x first, then y, then z). Every
 *     thread gets it. All threads of the block call, together.
 *   type name_block_n(type v, uint32_t n, struct cua_block_scratch *s)
 *     The same over the first n threads, 1 <= n <= block size, for a block with fewer values
 *     than threads. All threads call, with the same n; v of threads from n on is not read.
 *
 * The order of operations depends only on mask, block size and n, so a result is the same in every
 * run. The scratch may be reused immediately. These functions are not a barrier for other data of
 * the block.
 *
 *     CUA_DEFINE_REDUCE(gcd, uint32_t, gcd_of(a, b))
 */
#define CUA_DEFINE_REDUCE(name, T, expression)                                                     \
	CUA__DEFINE_REDUCE(name##_combine, name##_warp, name##_block, name##_block_n, T, expression)

/* combine, combine__shuffle and combine__low */
#define CUA__DEFINE_REDUCE_LANES(combine, T, expression)                                           \
	CUA_STATIC_ASSERT(sizeof(T) <= 8, "a value of a reduction has at most 8 bytes");           \
                                                                                                   \
	CUA_FORCE T combine(T a, T b)                                                              \
	{                                                                                          \
		return (expression);                                                               \
	}                                                                                          \
                                                                                                   \
	CUA_FORCE T combine##__shuffle(uint32_t mask, T v, uint32_t lane)                          \
	{                                                                                          \
		cua__reduce_shuffle(mask, &v, sizeof(v), lane);                                    \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	/* Reduces lanes 0 to n - 1; lanes 0 to lanes - 1 all call. The result is in lane 0. */    \
	/* Each step doubles the number of neighbours above a lane that its value covers. */       \
	CUA_FORCE T combine##__low(T v, uint32_t lane, uint32_t lanes, uint32_t n)                 \
	{                                                                                          \
		uint32_t mask = CUA__ALL_LANES >> (32 - lanes), step;                              \
                                                                                                   \
		if (n > lanes)                                                                     \
			n = lanes;                                                                 \
		for (step = 1; step < CUA_WARP_LANES; step *= 2) {                                 \
			int more = lane + step < n;                                                \
			T other = combine##__shuffle(mask, v, more ? lane + step : lane);          \
                                                                                                   \
			if (more)                                                                  \
				v = combine(v, other);                                             \
		}                                                                                  \
		return v;                                                                          \
	}

#define CUA__DEFINE_REDUCE_WARP(combine, warp, T)                                                  \
	CUA_FN T warp(T v, uint32_t mask)                                                          \
	{                                                                                          \
		uint32_t lane = cua_port_lane(), first = cua_port_ffs_u32(mask) - 1;               \
		struct cua__warp_rounds rounds = cua__warp_rounds_of(mask, lane);                  \
                                                                                                   \
		if ((mask & (mask + 1)) == 0) {                                                    \
			uint32_t lanes = cua_port_popc_u32(mask);                                  \
                                                                                                   \
			v = combine##__low(v, lane, lanes, lanes);                                 \
			return combine##__shuffle(mask, v, 0);                                     \
		}                                                                                  \
		while (cua_port_ballot(mask, rounds.above != 0)) {                                 \
			T other =                                                                  \
				combine##__shuffle(mask, v, cua__warp_rounds_next(&rounds, lane)); \
                                                                                                   \
			if (rounds.above)                                                          \
				v = combine(v, other);                                             \
			cua__warp_rounds_drop(&rounds, mask);                                      \
		}                                                                                  \
		return combine##__shuffle(mask, v, first);                                         \
	}

#define CUA__DEFINE_REDUCE_BLOCK(combine, block, block_n, T)                                       \
	CUA_FN T block_n(T v, uint32_t n, struct cua_block_scratch *s)                             \
	{                                                                                          \
		uint32_t size = cua_port_block_size();                                             \
		struct cua__block_warp w = cua__block_warp(cua_port_thread(), size);               \
		uint32_t warps = (n + CUA_WARP_LANES - 1) / CUA_WARP_LANES;                        \
		uint64_t bits;                                                                     \
                                                                                                   \
		if (size == 1)                                                                     \
			return v;                                                                  \
		v = combine##__low(v, w.lane, w.lanes, n > w.start ? n - w.start : 0);             \
		if (size <= CUA_WARP_LANES)                                                        \
			return combine##__shuffle(CUA__ALL_LANES >> (32 - w.lanes), v, 0);         \
		if (w.lane == 0 && w.start < n)                                                    \
			cua__block_put(s, w.index, &v, sizeof(v));                                 \
		cua_port_sync_block();                                                             \
		if (w.index == 0 && warps > 1) {                                                   \
			bits = w.lane < warps ? CUA_READ(s->slot[w.lane]) : 0;                     \
			memcpy(&v, &bits, sizeof(v));                                              \
			v = combine##__low(v, w.lane, w.lanes, warps);                             \
			if (w.lane == 0)                                                           \
				cua__block_put(s, 0, &v, sizeof(v));                               \
		}                                                                                  \
		cua__block_get_all(s, &v, sizeof(v));                                              \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	CUA_FN T block(T v, struct cua_block_scratch *s)                                           \
	{                                                                                          \
		return block_n(v, cua_port_block_size(), s);                                       \
	}

#define CUA__DEFINE_REDUCE(combine, warp, block, block_n, T, expression)                           \
	CUA__DEFINE_REDUCE_LANES(combine, T, expression)                                           \
	CUA__DEFINE_REDUCE_WARP(combine, warp, T)                                                  \
	CUA__DEFINE_REDUCE_BLOCK(combine, block, block_n, T)

/* ---- finishing across blocks ---- */

/*
 * CUA_DEFINE_FINISH(name, type, identity)          at file scope, after CUA_DEFINE_REDUCE
 *
 * Defines the four ways to finish for the operation `name`. identity is the operation's neutral
 * value; only atomic uses it. atomic and lock need a commutative operation. Each function returns 1
 * in the block that finishes last, and sets *total to the reduction of v over all blocks. In every
 * other block it returns 0 and leaves *total unchanged. blocks is the number of finishing blocks;
 * block is the number of the calling block, from 0.
 *
 * For a single thread per block, with the block's value v:
 *   int name_finish_lock(struct cua_finish *f, uint64_t blocks, type v, type *total)
 *   int name_finish_ordered(struct cua_finish *f, uint64_t block, uint64_t blocks, type v,
 *                           type *total)
 *     block is the block's ticket.
 *   int name_finish_atomic(struct cua_finish *f, uint64_t blocks, type v, type *total)
 *
 * For all threads of the block, with v valid in thread 0:
 *   int name_finish_last_block(struct cua_finish *f, struct cua_block_scratch *s, type *partials,
 *                              uint64_t block, uint64_t blocks, type v, type *total)
 *     partials is an array of `blocks` values in global memory. It needs no initialization.
 *     *total is set in every thread of the last block.
 *   int name_finish(enum cua_finish_mode mode, struct cua_finish *f, struct cua_block_scratch *s,
 *                   type *partials, uint64_t block, uint64_t blocks, type v, type *total)
 *     Finishes by `mode` (an unknown mode is LAST_BLOCK). block is the result of
 *     cua_finish_block. Returns 1 in thread 0 of the last block only. LAST_BLOCK sets *total in
 *     every thread of the last block, the other modes in its thread 0. Only LAST_BLOCK uses
 *     partials; with another mode it may be NULL.
 */
#define CUA_DEFINE_FINISH(name, T, identity)                                                       \
	CUA_FN int name##_finish_atomic(struct cua_finish *f, uint64_t blocks, T v, T *total)      \
	{                                                                                          \
		T old = (identity);                                                                \
		uint64_t none = 0, seen, before, desired;                                          \
                                                                                                   \
		/* the accumulator holds value XOR identity, so zeros are the identity */          \
		memcpy(&none, &old, sizeof(old));                                                  \
		seen = cua_port_load_b64(&f->accumulator, CUA_RELAXED, CUA_SCOPE_DEVICE,           \
					 CUA_SPACE_GLOBAL);                                        \
		do {                                                                               \
			T next;                                                                    \
                                                                                                   \
			before = seen;                                                             \
			desired = before ^ none;                                                   \
			memcpy(&old, &desired, sizeof(old));                                       \
			next = name##_combine(old, v);                                             \
			desired = 0;                                                               \
			memcpy(&desired, &next, sizeof(next));                                     \
			desired ^= none;                                                           \
			seen = cua_port_cas_b64(&f->accumulator, before, desired, CUA_RELAXED,     \
						CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);               \
		} while (seen != before);                                                          \
		if (!cua__finish_arrive(f, blocks))                                                \
			return 0;                                                                  \
		seen = none ^ cua_port_exchange_b64(&f->accumulator, 0, CUA_RELAXED,               \
						    CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);           \
		memcpy(total, &seen, sizeof(*total));                                              \
		return 1;                                                                          \
	}                                                                                          \
	CUA__DEFINE_FINISH(name##_finish, name##_finish_lock, name##_finish_ordered,               \
			   name##_finish_last_block, name##_finish_atomic, name##_combine,         \
			   name##_block_n, T)

#define CUA__DEFINE_FINISH_LOCK(lock_way, combine, T)                                              \
	CUA_FN int lock_way(struct cua_finish *f, uint64_t blocks, T v, T *total)                  \
	{                                                                                          \
		uint64_t arrived, bits;                                                            \
		T before;                                                                          \
		int last;                                                                          \
                                                                                                   \
		cua_spinlock_lock(&f->lock);                                                       \
		arrived = CUA_READ(f->arrived);                                                    \
		if (arrived) {                                                                     \
			bits = CUA_READ(f->accumulator);                                           \
			memcpy(&before, &bits, sizeof(before));                                    \
			v = combine(before, v);                                                    \
		}                                                                                  \
		last = ++arrived == blocks;                                                        \
		bits = 0;                                                                          \
		if (!last)                                                                         \
			memcpy(&bits, &v, sizeof(v));                                              \
		CUA_WRITE(f->accumulator, bits);                                                   \
		CUA_WRITE(f->arrived, last ? 0 : arrived);                                         \
		cua_spinlock_unlock(&f->lock);                                                     \
		if (last)                                                                          \
			*total = v;                                                                \
		return last;                                                                       \
	}

#define CUA__DEFINE_FINISH_ORDERED(ordered, combine, T)                                            \
	CUA_FN int ordered(struct cua_finish *f, uint64_t block, uint64_t blocks, T v, T *total)   \
	{                                                                                          \
		int last = block == blocks - 1;                                                    \
		uint64_t bits;                                                                     \
		T before;                                                                          \
                                                                                                   \
		cua__finish_wait(f, block);                                                        \
		if (block) {                                                                       \
			bits = CUA_READ(f->accumulator);                                           \
			memcpy(&before, &bits, sizeof(before));                                    \
			v = combine(before, v);                                                    \
		}                                                                                  \
		bits = 0;                                                                          \
		if (last) {                                                                        \
			*total = v;                                                                \
			cua_port_store_b64(&f->ticket, 0, CUA_RELAXED, CUA_SCOPE_DEVICE,           \
					   CUA_SPACE_GLOBAL);                                      \
		} else {                                                                           \
			memcpy(&bits, &v, sizeof(v));                                              \
		}                                                                                  \
		CUA_WRITE(f->accumulator, bits);                                                   \
		cua_port_store_b64(&f->turn, last ? 0 : block + 1, CUA_RELEASE, CUA_SCOPE_DEVICE,  \
				   CUA_SPACE_GLOBAL);                                              \
		return last;                                                                       \
	}

#define CUA__DEFINE_FINISH_LAST_BLOCK(last_block, combine, block_n, T)                             \
	CUA_FN int last_block(struct cua_finish *f, struct cua_block_scratch *s, T *partials,      \
			      uint64_t block, uint64_t blocks, T v, T *total)                      \
	{                                                                                          \
		uint32_t size = cua_port_block_size(), thread = cua_port_thread();                 \
		uint64_t last = 0, i, end;                                                         \
                                                                                                   \
		if (thread == 0) {                                                                 \
			CUA_WRITE(partials[block], v);                                             \
			last = (uint64_t)cua__finish_arrive(f, blocks);                            \
		}                                                                                  \
		if (!cua__block_broadcast(last, s))                                                \
			return 0;                                                                  \
		/* each thread combines neighbours, to keep the order */                           \
		i = blocks / size * thread + (thread < blocks % size ? thread : blocks % size);    \
		end = i + blocks / size + (thread < blocks % size);                                \
		if (i < end)                                                                       \
			v = CUA_READ(partials[i]);                                                 \
		for (i++; i < end; i++) {                                                          \
			T next = CUA_READ(partials[i]);                                            \
                                                                                                   \
			v = combine(v, next);                                                      \
		}                                                                                  \
		*total = block_n(v, blocks < size ? (uint32_t)blocks : size, s);                   \
		return 1;                                                                          \
	}

#define CUA__DEFINE_FINISH(any, lock_way, ordered, last_block, atomic, combine, block_n, T)        \
	CUA__DEFINE_FINISH_LOCK(lock_way, combine, T)                                              \
	CUA__DEFINE_FINISH_ORDERED(ordered, combine, T)                                            \
	CUA__DEFINE_FINISH_LAST_BLOCK(last_block, combine, block_n, T)                             \
                                                                                                   \
	CUA_FN int any(enum cua_finish_mode mode, struct cua_finish *f,                            \
		       struct cua_block_scratch *s, T *partials, uint64_t block, uint64_t blocks,  \
		       T v, T *total)                                                              \
	{                                                                                          \
		int first = cua_port_thread() == 0;                                                \
                                                                                                   \
		if (mode == CUA_FINISH_LOCK)                                                       \
			return first && lock_way(f, blocks, v, total);                             \
		if (mode == CUA_FINISH_ORDERED_LOCK)                                               \
			return first && ordered(f, block, blocks, v, total);                       \
		if (mode == CUA_FINISH_ATOMIC)                                                     \
			return first && atomic(f, blocks, v, total);                               \
		return last_block(f, s, partials, block, blocks, v, total) && first;               \
	}

/* ---- floats as integers of the same order ---- */

/*
 * Keys: unsigned integers that increase with the value (max) or decrease with it (min). So an
 * unsigned maximum serves all types, and min too. Key 0 is the identity. It is also the key of
 * every NaN, and of the greatest (min) or least (max) integer.
 */
CUA_FORCE uint32_t cua__key_max_u32(uint32_t v)
{
	return v;
}

CUA_FORCE uint32_t cua__key_max_i32(int32_t v)
{
	return (uint32_t)v ^ 0x80000000u;
}

CUA_FORCE uint64_t cua__key_max_u64(uint64_t v)
{
	return v;
}

CUA_FORCE uint64_t cua__key_max_i64(int64_t v)
{
	return (uint64_t)v ^ 0x8000000000000000u;
}

CUA_FORCE uint32_t cua__key_max_f32(float v)
{
	return v != v ? 0 : cua__ordered_f32(cua__bits_f32(v));
}

CUA_FORCE uint64_t cua__key_max_f64(double v)
{
	return v != v ? 0 : cua__ordered_f64(cua__bits_f64(v));
}

CUA_FORCE uint32_t cua__value_max_u32(uint32_t key)
{
	return key;
}

CUA_FORCE int32_t cua__value_max_i32(uint32_t key)
{
	return (int32_t)(key ^ 0x80000000u);
}

CUA_FORCE uint64_t cua__value_max_u64(uint64_t key)
{
	return key;
}

CUA_FORCE int64_t cua__value_max_i64(uint64_t key)
{
	return (int64_t)(key ^ 0x8000000000000000u);
}

CUA_FORCE float cua__value_max_f32(uint32_t key)
{
	return cua__from_bits_f32(key ? cua__bits_of_ordered_f32(key) : 0x7fc00000u);
}

CUA_FORCE double cua__value_max_f64(uint64_t key)
{
	return cua__from_bits_f64(key ? cua__bits_of_ordered_f64(key) : 0x7ff8000000000000u);
}

CUA_FORCE uint32_t cua__key_min_u32(uint32_t v)
{
	return ~v;
}

CUA_FORCE uint32_t cua__key_min_i32(int32_t v)
{
	return ~cua__key_max_i32(v);
}

CUA_FORCE uint64_t cua__key_min_u64(uint64_t v)
{
	return ~v;
}

CUA_FORCE uint64_t cua__key_min_i64(int64_t v)
{
	return ~cua__key_max_i64(v);
}

CUA_FORCE uint32_t cua__key_min_f32(float v)
{
	return v != v ? 0 : ~cua__ordered_f32(cua__bits_f32(v));
}

CUA_FORCE uint64_t cua__key_min_f64(double v)
{
	return v != v ? 0 : ~cua__ordered_f64(cua__bits_f64(v));
}

CUA_FORCE uint32_t cua__value_min_u32(uint32_t key)
{
	return ~key;
}

CUA_FORCE int32_t cua__value_min_i32(uint32_t key)
{
	return cua__value_max_i32(~key);
}

CUA_FORCE uint64_t cua__value_min_u64(uint64_t key)
{
	return ~key;
}

CUA_FORCE int64_t cua__value_min_i64(uint64_t key)
{
	return cua__value_max_i64(~key);
}

CUA_FORCE float cua__value_min_f32(uint32_t key)
{
	return cua__from_bits_f32(key ? cua__bits_of_ordered_f32(~key) : 0x7fc00000u);
}

CUA_FORCE double cua__value_min_f64(uint64_t key)
{
	return cua__from_bits_f64(key ? cua__bits_of_ordered_f64(~key) : 0x7ff8000000000000u);
}

/* ---- predefined operations ---- */

/*
 * For op in sum, min, max and t in u32, i32, u64, i64, f32, f64, as described at CUA_DEFINE_REDUCE
 * and CUA_DEFINE_FINISH:
 *
 *   T cua_combine_<op>_<t>(T a, T b)
 *   T cua_warp_<op>_<t>(T v, uint32_t mask)
 *   T cua_block_<op>_<t>(T v, struct cua_block_scratch *s)
 *   T cua_block_n_<op>_<t>(T v, uint32_t n, struct cua_block_scratch *s)
 *   int cua_finish_lock_<op>_<t>(f, blocks, v, &total)
 *   int cua_finish_ordered_<op>_<t>(f, block, blocks, v, &total)
 *   int cua_finish_last_block_<op>_<t>(f, s, partials, block, blocks, v, &total)
 *   int cua_finish_atomic_<op>_<t>(f, blocks, v, &total)
 *   int cua_finish_<op>_<t>(mode, f, s, partials, block, blocks, v, &total)
 *
 * A GPU's atomic sum of f32 in global memory flushes subnormal numbers to zero; the other ways to
 * finish do not.
 */
#define CUA__DEFINE_ALL(op, t, T, bits, expression, update, value)                                 \
	CUA__DEFINE_REDUCE(cua_combine_##op##_##t, cua_warp_##op##_##t, cua_block_##op##_##t,      \
			   cua_block_n_##op##_##t, T, expression)                                  \
	/* a native atomic on the first bytes of the accumulator; zeros are the identity */        \
	CUA_FN int cua_finish_atomic_##op##_##t(struct cua_finish *f, uint64_t blocks, T v,        \
						T *total)                                          \
	{                                                                                          \
		void *accumulator = &f->accumulator;                                               \
		uint##bits##_t last;                                                               \
                                                                                                   \
		update;                                                                            \
		if (!cua__finish_arrive(f, blocks))                                                \
			return 0;                                                                  \
		last = cua_port_exchange_b##bits(accumulator, 0, CUA__FINISH_WHERE);               \
		*total = (value);                                                                  \
		return 1;                                                                          \
	}                                                                                          \
	CUA__DEFINE_FINISH(cua_finish_##op##_##t, cua_finish_lock_##op##_##t,                      \
			   cua_finish_ordered_##op##_##t, cua_finish_last_block_##op##_##t,        \
			   cua_finish_atomic_##op##_##t, cua_combine_##op##_##t,                   \
			   cua_block_n_##op##_##t, T)

#define CUA__FINISH_WHERE CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL
#define CUA__SUM_INTEGER(bits)                                                                     \
	cua_port_add_u##bits((uint##bits##_t *)accumulator, (uint##bits##_t)v, CUA__FINISH_WHERE)
#define CUA__MAX_KEY(op, t, bits)                                                                  \
	cua_port_max_u##bits((uint##bits##_t *)accumulator, cua__key_##op##_##t(v),                \
			     CUA__FINISH_WHERE)

CUA__DEFINE_ALL(sum, u32, uint32_t, 32, a + b, CUA__SUM_INTEGER(32), last)
CUA__DEFINE_ALL(sum, i32, int32_t, 32, (int32_t)((uint32_t)a + (uint32_t)b), CUA__SUM_INTEGER(32),
		(int32_t)last)
CUA__DEFINE_ALL(sum, u64, uint64_t, 64, a + b, CUA__SUM_INTEGER(64), last)
CUA__DEFINE_ALL(sum, i64, int64_t, 64, (int64_t)((uint64_t)a + (uint64_t)b), CUA__SUM_INTEGER(64),
		(int64_t)last)
CUA__DEFINE_ALL(sum, f32, float, 32, a + b,
		cua_port_add_f32((float *)accumulator, v, CUA__FINISH_WHERE),
		cua__from_bits_f32(last))
CUA__DEFINE_ALL(sum, f64, double, 64, a + b,
		cua_port_add_f64((double *)accumulator, v, CUA__FINISH_WHERE),
		cua__from_bits_f64(last))

#define CUA__DEFINE_MIN_MAX(op, t, T, bits, expression)                                            \
	CUA__DEFINE_ALL(op, t, T, bits, expression, CUA__MAX_KEY(op, t, bits),                     \
			cua__value_##op##_##t(last))
#define CUA__DEFINE_MIN_MAX_FLOAT(op, t, T, bits)                                                  \
	CUA__DEFINE_MIN_MAX(op, t, T, bits,                                                        \
			    cua__value_##op##_##t(cua__key_##op##_##t(a) > cua__key_##op##_##t(b)  \
							  ? cua__key_##op##_##t(a)                 \
							  : cua__key_##op##_##t(b)))

CUA__DEFINE_MIN_MAX(min, u32, uint32_t, 32, b < a ? b : a)
CUA__DEFINE_MIN_MAX(min, i32, int32_t, 32, b < a ? b : a)
CUA__DEFINE_MIN_MAX(min, u64, uint64_t, 64, b < a ? b : a)
CUA__DEFINE_MIN_MAX(min, i64, int64_t, 64, b < a ? b : a)
CUA__DEFINE_MIN_MAX_FLOAT(min, f32, float, 32)
CUA__DEFINE_MIN_MAX_FLOAT(min, f64, double, 64)
CUA__DEFINE_MIN_MAX(max, u32, uint32_t, 32, b > a ? b : a)
CUA__DEFINE_MIN_MAX(max, i32, int32_t, 32, b > a ? b : a)
CUA__DEFINE_MIN_MAX(max, u64, uint64_t, 64, b > a ? b : a)
CUA__DEFINE_MIN_MAX(max, i64, int64_t, 64, b > a ? b : a)
CUA__DEFINE_MIN_MAX_FLOAT(max, f32, float, 32)
CUA__DEFINE_MIN_MAX_FLOAT(max, f64, double, 64)

/* ---- host calls ---- */

enum cua_reduce_op {
	CUA_REDUCE_SUM = 1,
	CUA_REDUCE_MIN = 2,
	CUA_REDUCE_MAX = 3,
	CUA_REDUCE_DOT = 4,
	CUA_REDUCE_PRODUCT = 5,
	CUA_REDUCE_ARGMIN = 6,
	CUA_REDUCE_ARGMAX = 7,
	CUA_REDUCE_COUNT = 8,
	CUA_REDUCE_SUM_SQUARES = 9,
	CUA_REDUCE_SUM_ABS = 10,
	CUA_REDUCE_NORM2 = 11,
	CUA_REDUCE_MEAN = 12,
	CUA_REDUCE_VARIANCE = 13,
	CUA_REDUCE_VARIANCE_SAMPLE = 14,
	CUA_REDUCE_DOT_CONJ = 15
};

/* The guarantee for the bits of a result. */
enum cua_reduce_mode {
	CUA_REDUCE_AUTO = 0, /* FAST */
	CUA_REDUCE_FAST = 1, /* the fastest order on this machine */
	/* the same order on every machine: it depends only on n and the type */
	CUA_REDUCE_FIXED = 2,
	CUA_REDUCE_EXACT = 3 /* the true sum, rounded once */
};

/* The greatest number of blocks that the options accept. */
#define CUA_REDUCE_BLOCKS_MAX (1u << 20)

/* Options of a reduction; 0 chooses the default. */
struct cua_reduce_options {
	size_t struct_size; /* sizeof(struct cua_reduce_options), set by the caller */
	enum cua_finish_mode finish;
	uint32_t blocks;     /* at most CUA_REDUCE_BLOCKS_MAX; the number of workers on the CPU */
	uint32_t block_size; /* 1 to 1024; a hint: CPU blocks have 1 thread, the tree's 256 */
	enum cua_reduce_mode mode;
	enum cua_type result_type; /* a float type, not narrower than the elements' */
	const uint64_t *count;     /* memory of the backend: reduces min(*count, n) elements */
};
#define CUA_REDUCE_OPTIONS_INIT                                                                    \
	{                                                                                          \
		sizeof(struct cua_reduce_options), CUA_FINISH_AUTO, 0, 0, CUA_REDUCE_AUTO,         \
			(enum cua_type)0, NULL                                                     \
	}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reduces n elements of an array, or of two, to *result:
 *
 *   op                      types              result               of n = 0
 *   SUM                     all below          integers: 64 bits    0
 *   DOT                     all below          integers: 64 bits    0
 *   DOT_CONJ                all below          as DOT               0
 *   PRODUCT                 real               integers: 64 bits    1
 *   SUM_SQUARES             real               integers: 64 bits    0
 *   SUM_ABS                 real               integers: uint64_t   0
 *   NORM2                   floats             the type             0
 *   MEAN                    real               integers: double     NaN
 *   VARIANCE                real               integers: double     NaN
 *   VARIANCE_SAMPLE         real               integers: double     NaN, also of n = 1
 *   MIN, MAX                real               the type             the greatest, the least value
 *   ARGMIN, ARGMAX          real               uint64_t             UINT64_MAX
 *   COUNT                   real               uint64_t             0
 *
 * Real types are I32, U32, I64, U64, F16, BF16, F32 and F64. All types are the real types,
 * COMPLEX_F32 and COMPLEX_F64. Sums and products of integers are modulo 2^64, signed for signed
 * types. Floats give a result of their own type. options->result_type may choose a wider type
 * instead: a real type for real types, a complex type for complex types. MIN and MAX always give
 * the element type.
 *
 * - Arithmetic: floats are summed and multiplied in double. Elements and products of F16 are first
 *   added in float, in groups that a single thread adds up; the sums of the groups are added in
 *   double. The result is rounded once to its type. Products of F16, BF16 and F32 are exact before
 *   they are added. Products of F64 are rounded or, in mode FAST, may be fused with the addition.
 *   Sums start from +0.
 * - DOT_CONJ conjugates the elements of x. For real types it is DOT.
 * - NORM2 is the square root of the sum of squares. For F64 it neither overflows nor underflows.
 * - MEAN is the sum divided by n. Integers are summed in 128 bits.
 * - VARIANCE is the mean of the squared distances from the mean. VARIANCE_SAMPLE is the sum of
 *   these squares divided by n - 1. Both need a single pass, over shifted values (Chan, Golub and
 *   LeVeque). Integers of 64 bits are first rounded to double.
 * - MIN, MAX: NaN and -0 are as at the top of this file.
 * - ARGMIN, ARGMAX are the index of the first element with the value of MIN or MAX. If all elements
 *   are NaN, the index is 0. -0 is less than +0.
 * - COUNT is the number of nonzero elements. -0 is zero; a NaN is not zero.
 * - NaN: a NaN result is quiet, without sign and payload.
 *
 * y is the second factor of DOT and DOT_CONJ, and NULL for all other operations. options may be
 * NULL.
 *
 * Reproducibility: results of integers (except variances), MIN, MAX, ARGMIN, ARGMAX and COUNT are
 * always the same. For all other results the guarantee depends on the mode:
 * - FIXED gives the same bits for the same elements, on a GPU and on the CPU, for any address,
 *   device, number of threads and other options. The finish must be AUTO or LAST_BLOCK.
 * - EXACT gives the true sum, rounded once to the result type: the same bits everywhere, in any
 *   order of the elements. It supports SUM, DOT and DOT_CONJ of F16, BF16, F32 and F64, with the
 *   rules of cuatomic/exact.h for NaN, infinities and zeros. cuatomic/exact.h can also divide such
 *   a sum and merge the parts.
 * - FAST with the finish LAST_BLOCK (the default) or ORDERED_LOCK gives the same bits while all of
 *   these are the same: lengths and alignment of the arrays, the device (on the CPU: its kind and
 *   the number of threads), and the options. The finishes under a lock and by an atomic support
 *   SUM, MIN, MAX and DOT of 32-bit and 64-bit types with the default result type.
 *
 * On the CUDA backend the call is a single kernel, which also writes the result. The call follows
 * the rules for results in cuatomic/context.h. options->count is 8-byte aligned memory that the
 * backend can read; the value is read when the call runs.
 * Errors: NULL; VALUE (options, op, or y if it is not used); TYPE (also of the result); UNSUPPORTED
 *   (a finish or mode that the operation or type does not have); SIZE; ALIGNMENT (of x, y, result,
 *   count); OVERLAP (of result with x, y or count); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY;
 *   CUDA.
 */
CUA_API enum cua_status cua_reduce(struct cua_context *ctx,
				   const struct cua_reduce_options *options, enum cua_reduce_op op,
				   enum cua_type type, size_t n, const void *x, const void *y,
				   void *result);

/*
 * The workspace that cua_reduce needs at most with these arguments.
 * Errors: NULL, VALUE, TYPE, UNSUPPORTED, SIZE.
 */
CUA_API enum cua_status cua_reduce_workspace(struct cua_context *ctx,
					     const struct cua_reduce_options *options,
					     enum cua_reduce_op op, enum cua_type type, size_t n,
					     size_t *bytes);

/* cua_reduce with default options. */
CUA_API enum cua_status cua_sum(struct cua_context *ctx, enum cua_type type, size_t n,
				const void *x, void *result);
CUA_API enum cua_status cua_min(struct cua_context *ctx, enum cua_type type, size_t n,
				const void *x, void *result);
CUA_API enum cua_status cua_max(struct cua_context *ctx, enum cua_type type, size_t n,
				const void *x, void *result);
CUA_API enum cua_status cua_dot(struct cua_context *ctx, enum cua_type type, size_t n,
				const void *x, const void *y, void *result);

#ifdef __cplusplus
}
#endif

/*
 * Forms with the type in the name, for each operation and type of cua_reduce: cua_sum_f32(ctx, n,
 * x, &result), cua_dot_u32(ctx, n, x, y, &result). COUNT is cua_count_nonzero.
 */
#define CUA__DEFINE_TYPED(name, op, t, type, T, Result)                                            \
	CUA__HOST_FN enum cua_status cua_##name##_##t(struct cua_context *ctx, size_t n,           \
						      const T *x, Result *result)                  \
	{                                                                                          \
		return cua_reduce(ctx, NULL, CUA_REDUCE_##op, type, n, x, NULL, result);           \
	}
#define CUA__DEFINE_TYPED_PAIR(name, op, t, type, T, Result)                                       \
	CUA__HOST_FN enum cua_status cua_##name##_##t(struct cua_context *ctx, size_t n,           \
						      const T *x, const T *y, Result *result)      \
	{                                                                                          \
		return cua_reduce(ctx, NULL, CUA_REDUCE_##op, type, n, x, y, result);              \
	}
#define CUA__DEFINE_TYPED_REAL(t, type, T, Sum, Size, Mean)                                        \
	CUA__DEFINE_TYPED(sum, SUM, t, type, T, Sum)                                               \
	CUA__DEFINE_TYPED(product, PRODUCT, t, type, T, Sum)                                       \
	CUA__DEFINE_TYPED(min, MIN, t, type, T, T)                                                 \
	CUA__DEFINE_TYPED(max, MAX, t, type, T, T)                                                 \
	CUA__DEFINE_TYPED(argmin, ARGMIN, t, type, T, uint64_t)                                    \
	CUA__DEFINE_TYPED(argmax, ARGMAX, t, type, T, uint64_t)                                    \
	CUA__DEFINE_TYPED(count_nonzero, COUNT, t, type, T, uint64_t)                              \
	CUA__DEFINE_TYPED(sum_squares, SUM_SQUARES, t, type, T, Sum)                               \
	CUA__DEFINE_TYPED(sum_abs, SUM_ABS, t, type, T, Size)                                      \
	CUA__DEFINE_TYPED(mean, MEAN, t, type, T, Mean)                                            \
	CUA__DEFINE_TYPED(variance, VARIANCE, t, type, T, Mean)                                    \
	CUA__DEFINE_TYPED(variance_sample, VARIANCE_SAMPLE, t, type, T, Mean)                      \
	CUA__DEFINE_TYPED_PAIR(dot, DOT, t, type, T, Sum)
CUA__DEFINE_TYPED_REAL(u32, CUA_U32, uint32_t, uint64_t, uint64_t, double)
CUA__DEFINE_TYPED_REAL(i32, CUA_I32, int32_t, int64_t, uint64_t, double)
CUA__DEFINE_TYPED_REAL(u64, CUA_U64, uint64_t, uint64_t, uint64_t, double)
CUA__DEFINE_TYPED_REAL(i64, CUA_I64, int64_t, int64_t, uint64_t, double)
CUA__DEFINE_TYPED_REAL(f16, CUA_F16, struct cua_f16, struct cua_f16, struct cua_f16, struct cua_f16)
CUA__DEFINE_TYPED_REAL(bf16, CUA_BF16, struct cua_bf16, struct cua_bf16, struct cua_bf16,
		       struct cua_bf16)
CUA__DEFINE_TYPED_REAL(f32, CUA_F32, float, float, float, float)
CUA__DEFINE_TYPED_REAL(f64, CUA_F64, double, double, double, double)
CUA__DEFINE_TYPED(norm2, NORM2, f16, CUA_F16, struct cua_f16, struct cua_f16)
CUA__DEFINE_TYPED(norm2, NORM2, bf16, CUA_BF16, struct cua_bf16, struct cua_bf16)
CUA__DEFINE_TYPED(norm2, NORM2, f32, CUA_F32, float, float)
CUA__DEFINE_TYPED(norm2, NORM2, f64, CUA_F64, double, double)
#define CUA__DEFINE_TYPED_COMPLEX(t, type, T)                                                      \
	CUA__DEFINE_TYPED(sum, SUM, t, type, T, T)                                                 \
	CUA__DEFINE_TYPED_PAIR(dot, DOT, t, type, T, T)                                            \
	CUA__DEFINE_TYPED_PAIR(dot_conj, DOT_CONJ, t, type, T, T)
CUA__DEFINE_TYPED_COMPLEX(complex_f32, CUA_COMPLEX_F32, struct cua_complex_f32)
CUA__DEFINE_TYPED_COMPLEX(complex_f64, CUA_COMPLEX_F64, struct cua_complex_f64)

#endif /* CUATOMIC_REDUCE_H */
