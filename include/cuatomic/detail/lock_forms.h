/* SPDX-License-Identifier: MIT */
/*
 * The contract of the forms that every lock has for warps and blocks, and of the arrays of locks
 * for the host. Each lock's header ends with its forms.
 *
 * A lane acquires a lock by cua_<lock>_lock, a warp by cua_<lock>_lock_warp, and a block by
 * cua_<lock>_lock_block. All three may use the same lock at the same time. A warp or block acquires
 * the lock once. All its lanes are then in the section, the code between lock and unlock, and share
 * the work:
 *
 *   int cua_<lock>_trylock_warp(l, mask)           int cua_<lock>_trylock_block(l)
 *   void cua_<lock>_lock_warp(l, mask)             void cua_<lock>_lock_block(l)
 *   int cua_<lock>_lock_for_warp(l, ns, mask)      int cua_<lock>_lock_for_block(l, ns)
 *   void cua_<lock>_unlock_warp(l, mask)           void cua_<lock>_unlock_block(l)
 *
 * Each has a form with _scope at the end of the name and the scope as the last argument. <lock> is
 * spinlock, ticketlock, mcslock (with its node after l), rwlock_read, rwlock_write, seqlock
 * (writers) or semaphore. The lock excludes other holders, but not the lanes inside from each
 * other. To run a section for each lane in turn, use CUA_WITH_LOCK_WARP of combine.h.
 *
 *     cua_spinlock_lock_block(&l);         all threads of the block call
 *     ...                                  a section; it may contain barriers of the block
 *     cua_spinlock_unlock_block(&l);       all threads of the block call
 *
 * No macro unlocks for a team. So no lane may leave the section by return or another jump before
 * the team has unlocked: the other lanes would wait for it in unlock, and the lock would stay held.
 *
 * In the following, the team is the lanes of mask, or all threads of the block, and the leader is
 * the lowest lane of mask, or thread 0. All lanes of the team must call with the same arguments,
 * and must unlock with the form that matches the lock. The leader acts for the team, and every lane
 * gets the same result. A team counts as a single reader of a rwlock and as a single holder of a
 * semaphore. All lanes pass the same node of a mcslock. The caller may reuse the node when the
 * leader has returned from unlock.
 *
 * Source: the usual way to lock for a block (one thread, then a barrier), made into functions.
 *
 * Synchronization: that of trylock, lock, lock_for and unlock in the lock's header; a team is a
 *   single caller.
 * Scope: the device, or the scope argument. CUA_SCOPE_BLOCK is for a lock and data of one block.
 * Memory order: each lane of the team acquires all that the last unlock released. unlock releases
 *   all that the lanes of the team did. Between the two calls, the lanes are not ordered among
 *   themselves.
 * Progress: as the lock's own. The team converges before the leader requests the lock: otherwise
 *   the leader could hold the lock while it waits for a lane of the team that waits for this very
 *   lock. Then the leader waits for the lock, and the other lanes wait for the leader. Several
 *   teams of a warp may use the same lock; lock.h states why a diverged warp makes progress. A team
 *   must not acquire a lock that one of its lanes holds.
 * Argument: the leader's acquire, at the lock's scope, precedes its arrival at the barrier. That
 *   arrival precedes all that any lane does after the barrier. Causality order is transitive over
 *   release, acquire and barriers, so all that the leader acquired happens before all that the team
 *   then does. In unlock, the lanes pass a barrier before the leader releases. A release is
 *   cumulative, so it includes all that the barrier ordered before it. The leader's result reaches
 *   the lanes of a warp by a vote. A vote orders no memory, so a sync_warp follows it. The leader
 *   unlocks and locks, so the team's next lock follows the unlock in program order.
 */
#ifndef CUATOMIC_LOCK_FORMS_H
#define CUATOMIC_LOCK_FORMS_H

#include <cuatomic/memory.h>
#include <cuatomic/port.h>

/* Waits until all lanes of the team have arrived. Returns 1 in the leader, else 0. */
CUA_FORCE int cua__converge_warp(uint32_t mask)
{
	cua_port_sync_warp(mask);
	return cua_port_lane() == cua_port_ffs_u32(mask) - 1;
}

CUA_FORCE int cua__converge_block(void)
{
	cua_port_sync_block();
	return cua_port_thread() == 0;
}

/* Returns 1 in every lane of the team if `taken` is not 0 in any of them, else 0; orders memory. */
CUA_FORCE int cua__any_warp(int taken, uint32_t mask)
{
	uint32_t votes = cua_port_ballot(mask, taken);

	cua_port_sync_warp(mask);
	return votes != 0;
}

CUA_FORCE int cua__any_block(int taken)
{
	return cua_port_sync_block_or(taken);
}

/* Waits until the leader has acquired the lock; orders memory. */
CUA_FORCE void cua__await_leader_warp(uint32_t mask)
{
	cua_port_sync_warp(mask);
}

CUA_FORCE void cua__await_leader_block(void)
{
	cua_port_sync_block();
}

/*
 * Host: <lock>_array_create allocates n free locks, zeroed memory of cua_alloc_zero, in the memory
 * of the context's backend. _destroy frees them; destroying NULL is allowed. Host threads (CPU
 * backend) or kernels on the context's device (CUDA) use the locks. For locks that host and device
 * share, call cua_alloc_system instead.
 * Errors (CUA_ERROR_...): NULL, SIZE, NO_MEMORY, CAPTURE, CUDA; destroy: the errors of cua_free.
 *
 * `locks` is the address of the caller's pointer to a lock of `size` bytes.
 */
CUA__HOST_FN enum cua_status cua__lock_array_create(struct cua_context *ctx, size_t n, size_t size,
						    void *locks)
{
	enum cua_status status;
	void *p = NULL;

	if (!locks)
		return CUA_ERROR_NULL;
	status = cua_alloc_zero(ctx, n, size, &p);
	if (!status)
		memcpy(locks, &p, sizeof(p));
	return status;
}

#endif /* CUATOMIC_LOCK_FORMS_H */
