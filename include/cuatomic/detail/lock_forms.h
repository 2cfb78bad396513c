/* SPDX-License-Identifier: MIT */
/*
 * The parts of every lock that macros define: its forms for warps and blocks, and arrays of locks
 * for the host.
 *
 * A lane acquires a lock by cua_<lock>_lock, a warp by cua_<lock>_lock_warp, and a block by
 * cua_<lock>_lock_block. All three may use the same lock at the same time. A warp or block acquires
 * the lock once, and all its lanes are then in the section and share the work:
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
 * In the following, the team is the lanes of mask, or all threads of the block, and the leader is
 * the lowest lane of mask, or thread 0. All lanes of the team must call with the same arguments,
 * and must unlock with the form that matches the lock. The leader acts for the team, and every lane
 * gets the same result. A team counts as a single reader of a rwlock and as a single holder of a
 * semaphore. All lanes pass the same node of a mcslock. The caller may reuse the node when the
 * leader has returned from unlock.
 *
 * Source: the usual way to lock for a block (one thread, then a barrier), made into functions.
 *
 * Synchronization: as the lock's own table specifies for trylock, lock, lock_for and unlock; a team
 *   is a single caller.
 * Scope: the device, or the scope argument. CUA_SCOPE_BLOCK is for a lock and data of one block.
 * Memory order: each lane of the team acquires all that the last unlock released. unlock releases
 *   all that the lanes of the team did. Between the two calls, the lanes are not ordered among
 *   themselves.
 * Progress: as the lock's own. The team converges before the leader requests the lock: otherwise
 *   the leader could hold the lock while it waits for a lane of the team that waits for this very
 *   lock. Then the leader waits for the lock, and the other lanes wait for the leader. If several
 *   teams of a warp use the same lock, their lanes must progress independently, as on sm_70 and
 *   newer. A team must not acquire a lock that one of its lanes holds.
 * Argument: the leader's acquire, at the lock's scope, precedes its arrival at the barrier. That
 *   arrival precedes all that any lane does after the barrier. Causality order is transitive over
 *   release, acquire and barriers, so all that the leader acquired happens before all that the team
 *   then does. In unlock, the lanes pass a barrier before the leader releases. A release is
 *   cumulative, so it includes all that the barrier ordered before it. A vote orders no memory, so
 *   a sync_warp follows the vote. The leader unlocks and locks, so the team's next lock follows the
 *   unlock in program order.
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

/* Returns 1 in every lane of mask if `taken` is not 0 in any of them, else 0; orders memory. */
CUA_FORCE int cua__any_warp(int taken, uint32_t mask)
{
	uint32_t votes = cua_port_ballot(mask, taken);

	cua_port_sync_warp(mask);
	return votes != 0;
}

#define CUA__UNPACK(...) __VA_ARGS__

/*
 * Defines the forms of `name` for warps and blocks. params and args are the lock's own parameters
 * in parentheses, with and without types. Every lane of a team that has acquired the lock runs
 * `entered`.
 */
#define CUA__DEFINE_TEAMS(name, params, args, entered)                                             \
	CUA_FORCE int name##_trylock_warp_scope(CUA__UNPACK params, uint32_t mask,                 \
						enum cua_scope scope)                              \
	{                                                                                          \
		int taken =                                                                        \
			cua__converge_warp(mask) && name##_trylock_scope(CUA__UNPACK args, scope); \
                                                                                                   \
		if (!cua__any_warp(taken, mask))                                                   \
			return 0;                                                                  \
		entered;                                                                           \
		return 1;                                                                          \
	}                                                                                          \
	CUA_FORCE void name##_lock_warp_scope(CUA__UNPACK params, uint32_t mask,                   \
					      enum cua_scope scope)                                \
	{                                                                                          \
		if (cua__converge_warp(mask))                                                      \
			name##_lock_scope(CUA__UNPACK args, scope);                                \
		cua_port_sync_warp(mask);                                                          \
		entered;                                                                           \
	}                                                                                          \
	CUA_FORCE int name##_lock_for_warp_scope(CUA__UNPACK params, uint64_t ns, uint32_t mask,   \
						 enum cua_scope scope)                             \
	{                                                                                          \
		int taken = cua__converge_warp(mask) &&                                            \
			    name##_lock_for_scope(CUA__UNPACK args, ns, scope);                    \
                                                                                                   \
		if (!cua__any_warp(taken, mask))                                                   \
			return 0;                                                                  \
		entered;                                                                           \
		return 1;                                                                          \
	}                                                                                          \
	CUA_FORCE void name##_unlock_warp_scope(CUA__UNPACK params, uint32_t mask,                 \
						enum cua_scope scope)                              \
	{                                                                                          \
		if (cua__converge_warp(mask))                                                      \
			name##_unlock_scope(CUA__UNPACK args, scope);                              \
	}                                                                                          \
	CUA_FORCE int name##_trylock_block_scope(CUA__UNPACK params, enum cua_scope scope)         \
	{                                                                                          \
		int taken =                                                                        \
			cua__converge_block() && name##_trylock_scope(CUA__UNPACK args, scope);    \
                                                                                                   \
		if (!cua_port_sync_block_or(taken))                                                \
			return 0;                                                                  \
		entered;                                                                           \
		return 1;                                                                          \
	}                                                                                          \
	CUA_FORCE void name##_lock_block_scope(CUA__UNPACK params, enum cua_scope scope)           \
	{                                                                                          \
		if (cua__converge_block())                                                         \
			name##_lock_scope(CUA__UNPACK args, scope);                                \
		cua_port_sync_block();                                                             \
		entered;                                                                           \
	}                                                                                          \
	CUA_FORCE int name##_lock_for_block_scope(CUA__UNPACK params, uint64_t ns,                 \
						  enum cua_scope scope)                            \
	{                                                                                          \
		int taken = cua__converge_block() &&                                               \
			    name##_lock_for_scope(CUA__UNPACK args, ns, scope);                    \
                                                                                                   \
		if (!cua_port_sync_block_or(taken))                                                \
			return 0;                                                                  \
		entered;                                                                           \
		return 1;                                                                          \
	}                                                                                          \
	CUA_FORCE void name##_unlock_block_scope(CUA__UNPACK params, enum cua_scope scope)         \
	{                                                                                          \
		if (cua__converge_block())                                                         \
			name##_unlock_scope(CUA__UNPACK args, scope);                              \
	}                                                                                          \
	CUA_FN int name##_trylock_warp(CUA__UNPACK params, uint32_t mask)                          \
	{                                                                                          \
		return name##_trylock_warp_scope(CUA__UNPACK args, mask, CUA_SCOPE_DEVICE);        \
	}                                                                                          \
	CUA_FN void name##_lock_warp(CUA__UNPACK params, uint32_t mask)                            \
	{                                                                                          \
		name##_lock_warp_scope(CUA__UNPACK args, mask, CUA_SCOPE_DEVICE);                  \
	}                                                                                          \
	CUA_FN int name##_lock_for_warp(CUA__UNPACK params, uint64_t ns, uint32_t mask)            \
	{                                                                                          \
		return name##_lock_for_warp_scope(CUA__UNPACK args, ns, mask, CUA_SCOPE_DEVICE);   \
	}                                                                                          \
	CUA_FN void name##_unlock_warp(CUA__UNPACK params, uint32_t mask)                          \
	{                                                                                          \
		name##_unlock_warp_scope(CUA__UNPACK args, mask, CUA_SCOPE_DEVICE);                \
	}                                                                                          \
	CUA_FN int name##_trylock_block(CUA__UNPACK params)                                        \
	{                                                                                          \
		return name##_trylock_block_scope(CUA__UNPACK args, CUA_SCOPE_DEVICE);             \
	}                                                                                          \
	CUA_FN void name##_lock_block(CUA__UNPACK params)                                          \
	{                                                                                          \
		name##_lock_block_scope(CUA__UNPACK args, CUA_SCOPE_DEVICE);                       \
	}                                                                                          \
	CUA_FN int name##_lock_for_block(CUA__UNPACK params, uint64_t ns)                          \
	{                                                                                          \
		return name##_lock_for_block_scope(CUA__UNPACK args, ns, CUA_SCOPE_DEVICE);        \
	}                                                                                          \
	CUA_FN void name##_unlock_block(CUA__UNPACK params)                                        \
	{                                                                                          \
		name##_unlock_block_scope(CUA__UNPACK args, CUA_SCOPE_DEVICE);                     \
	}

/*
 * Host: create allocates n free locks, zeroed memory of cua_alloc_zero, in the memory of the
 * context's backend. destroy frees them; destroying NULL is allowed. Host threads (CPU backend) or
 * kernels on the context's device (CUDA) use the locks. For locks that host and device share, call
 * cua_alloc_system instead.
 * Errors: NULL, SIZE, NO_MEMORY, CAPTURE; destroy: the errors of cua_free.
 */
#define CUA__DEFINE_LOCK_ARRAY(name, T)                                                            \
	CUA__HOST_FN enum cua_status name##_array_create(struct cua_context *ctx, size_t n,        \
							 T **locks)                                \
	{                                                                                          \
		enum cua_status status;                                                            \
		void *p = NULL;                                                                    \
                                                                                                   \
		if (!locks)                                                                        \
			return CUA_ERROR_NULL;                                                     \
		status = cua_alloc_zero(ctx, n, sizeof(T), &p);                                    \
		if (!status)                                                                       \
			*locks = (T *)p;                                                           \
		return status;                                                                     \
	}                                                                                          \
	CUA__HOST_FN enum cua_status name##_array_destroy(struct cua_context *ctx, T *locks)       \
	{                                                                                          \
		return cua_free(ctx, locks);                                                       \
	}

#endif /* CUATOMIC_LOCK_FORMS_H */
