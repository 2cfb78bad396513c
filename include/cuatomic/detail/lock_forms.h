/* SPDX-License-Identifier: MIT */
/*
 * What every lock has by macro: its forms for a warp and for a block, and arrays of it from the host.
 *
 * A lock is taken by a lane, cua_<lock>_lock, by a warp, cua_<lock>_lock_warp, or by a block,
 * cua_<lock>_lock_block; it is the same lock, and all three may want it at the same time. A warp or block
 * takes it once and is in the section with all its lanes, which share the work there:
 *
 *   int cua_<lock>_trylock_warp(l, mask)           int cua_<lock>_trylock_block(l)
 *   void cua_<lock>_lock_warp(l, mask)             void cua_<lock>_lock_block(l)
 *   int cua_<lock>_lock_for_warp(l, ns, mask)      int cua_<lock>_lock_for_block(l, ns)
 *   void cua_<lock>_unlock_warp(l, mask)           void cua_<lock>_unlock_block(l)
 *
 * and with _scope at the end of the name the scope as the last argument. <lock> is spinlock, ticketlock,
 * mcslock (with its node after l), rwlock_read, rwlock_write, seqlock (the writers) or semaphore. The lanes
 * inside exclude other holders, not each other: for a section of each lane's own, one after the other, use
 * CUA_WITH_LOCK_WARP of combine.h, which differs from lock_warp in just that.
 *
 * All lanes of mask, or all threads of the block, call with the same arguments, and unlock as they locked.
 * The lowest lane of mask, or thread 0, does the work for all, and the result is the same in all. A warp or
 * block counts as one reader of a rwlock and as one holder of a semaphore. The node of a mcslock must be the
 * same for all too; it is the caller's again when the lowest lane, or thread 0, has returned from unlock.
 *
 * Source: the usual way to lock for a block (one thread, then a barrier), made into functions.
 *
 * Synchronization: as the lock's own table says of trylock, lock, lock_for and unlock; a group is one caller.
 * Scope: the device, or the one that is given. CUA_SCOPE_BLOCK for lock and data of one block.
 * Memory order: each lane of the group acquires what the last unlock released; unlock releases what all
 *   lanes of the group did. Between the two nothing orders the lanes among themselves.
 * Progress: as the lock's own. The group meets before it wants the lock, so that no lane that is still
 *   elsewhere, perhaps waiting for this very lock, is waited for with the lock taken. Then one lane waits for the
 *   lock and the others for it; groups in one warp that want the same lock need lanes that progress on
 *   their own, as on sm_70 and newer. A group must not take a lock that one of its lanes holds.
 * Argument: the acquire of one lane, at the lock's scope, comes before that lane's arrival at the meeting, and
 *   that before what any lane does after it: causality order is transitive over release, acquire and barriers,
 *   so whatever the one lane has acquired happens before all that the group does. In unlock, the lanes meet
 *   before one of them releases, and a release is cumulative: what the meeting has ordered before it goes
 *   with it. A vote orders no memory, so the warp's result is followed by a sync_warp. The lane that unlocks
 *   is the one that locked, so the group's own next lock comes after it in program order.
 */
#ifndef CUATOMIC_LOCK_FORMS_H
#define CUATOMIC_LOCK_FORMS_H

#include <cuatomic/memory.h>
#include <cuatomic/port.h>

/* Waits until all have come. Returns 1 in the lane that acts for all. */
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

/* Tells the group whether the lock has been taken. */
CUA_FORCE int cua__any_warp(int taken, uint32_t mask)
{
	uint32_t votes = cua_port_ballot(mask, taken);

	cua_port_sync_warp(mask);
	return votes != 0;
}

#define CUA__UNPACK(...) __VA_ARGS__

/*
 * The forms of `name` for groups. params and args are the lock's own parameters in parentheses, with and
 * without types; every lane of the group that has got the lock runs `entered`.
 */
#define CUA__DEFINE_GROUPS(name, params, args, entered)                                            \
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
 * Host: n free locks in the memory of the context's backend, and their release. The locks
 * may be used by host threads (CPU backend) or in kernels on the context's device (CUDA). They are
 * memory of zeros, cua_alloc_zero; for locks that host and device share, take cua_alloc_system in its
 * place.
 * Errors: NULL, SIZE, NO_MEMORY, CAPTURE; destroy: those of cua_free. Destroying NULL is
 * allowed.
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
