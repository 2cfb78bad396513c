/* SPDX-License-Identifier: MIT */
/*
 * Every lock that excludes, behind the same calls, for a warp and for a block. Used by threads,
 * kernels and the checker.
 */
#ifndef CUATOMIC_TESTS_LOCK_FORM_CALLS_H
#define CUATOMIC_TESTS_LOCK_FORM_CALLS_H

#include <cuatomic/lock.h>

enum group_kind {
	GROUP_SPIN,
	GROUP_TICKET,
	GROUP_MCS,
	GROUP_READ, /* excludes writers only */
	GROUP_WRITE,
	GROUP_SEQ,
	GROUP_SEMAPHORE,
	GROUP_KINDS
};
enum group_how { GROUP_LOCK, GROUP_TRYLOCK, GROUP_LOCK_FOR, GROUP_HOWS };

struct group_locks {
	struct cua_spinlock spin;
	struct cua_semaphore semaphore;
	struct cua_ticketlock ticket;
	struct cua_mcslock mcs;
	struct cua_rwlock rw;
	struct cua_seqlock seq;
};

CUA_FN void group_init(struct group_locks *l)
{
	cua_spinlock_init(&l->spin);
	cua_semaphore_init(&l->semaphore, 1);
	cua_ticketlock_init(&l->ticket);
	cua_mcslock_init(&l->mcs);
	cua_rwlock_init(&l->rw);
	cua_seqlock_init(&l->seq);
}

/* Only after all users have finished: by plain reads; the checker allows them after a run. */
CUA_FN int group_locked(const struct group_locks *l)
{
	return l->spin.word || l->semaphore.count != 1 || l->ticket.next != l->ticket.owner ||
	       l->mcs.tail || l->rw.writers_in != l->rw.writers_out ||
	       (l->rw.readers_in & ~(uint32_t)1) != l->rw.readers_out || (l->seq.sequence & 1);
}

#define GROUP__UNPACK(...) __VA_ARGS__
#define GROUP__SWITCH(verb, args)                                                                  \
	switch (kind) {                                                                            \
	case GROUP_SPIN: GROUP__DO cua_spinlock_##verb(&l->spin, GROUP__UNPACK args); break;       \
	case GROUP_TICKET: GROUP__DO cua_ticketlock_##verb(&l->ticket, GROUP__UNPACK args); break; \
	case GROUP_MCS: GROUP__DO cua_mcslock_##verb(&l->mcs, node, GROUP__UNPACK args); break;    \
	case GROUP_READ: GROUP__DO cua_rwlock_read_##verb(&l->rw, GROUP__UNPACK args); break;      \
	case GROUP_WRITE: GROUP__DO cua_rwlock_write_##verb(&l->rw, GROUP__UNPACK args); break;    \
	case GROUP_SEQ: GROUP__DO cua_seqlock_##verb(&l->seq, GROUP__UNPACK args); break;          \
	default: GROUP__DO cua_semaphore_##verb(&l->semaphore, GROUP__UNPACK args); break;         \
	}
#define GROUP__WHICH struct group_locks *l, enum group_kind kind, struct cua_mcslock_node *node

/*
 * Acquires the lock by `how`: for the block, else for the lanes of mask, else (mask 0) for the
 * lane.
 */
CUA_FN int group_take(GROUP__WHICH, enum group_how how, uint64_t ns, uint32_t mask, int block,
		      enum cua_scope scope)
{
	int taken = 1;

#define GROUP__DO taken =
	if (how == GROUP_TRYLOCK) {
		if (block) {
			GROUP__SWITCH(trylock_block_scope, (scope))
		} else if (mask) {
			GROUP__SWITCH(trylock_warp_scope, (mask, scope))
		} else {
			GROUP__SWITCH(trylock_scope, (scope))
		}
		return taken;
	}
	if (how == GROUP_LOCK_FOR) {
		if (block) {
			GROUP__SWITCH(lock_for_block_scope, (ns, scope))
		} else if (mask) {
			GROUP__SWITCH(lock_for_warp_scope, (ns, mask, scope))
		} else {
			GROUP__SWITCH(lock_for_scope, (ns, scope))
		}
		return taken;
	}
#undef GROUP__DO
#define GROUP__DO
	if (block) {
		GROUP__SWITCH(lock_block_scope, (scope))
	} else if (mask) {
		GROUP__SWITCH(lock_warp_scope, (mask, scope))
	} else {
		GROUP__SWITCH(lock_scope, (scope))
	}
	return taken;
}

CUA_FN void group_give(GROUP__WHICH, uint32_t mask, int block, enum cua_scope scope)
{
	if (block) {
		GROUP__SWITCH(unlock_block_scope, (scope))
	} else if (mask) {
		GROUP__SWITCH(unlock_warp_scope, (mask, scope))
	} else {
		GROUP__SWITCH(unlock_scope, (scope))
	}
}

#endif /* CUATOMIC_TESTS_LOCK_FORM_CALLS_H */
