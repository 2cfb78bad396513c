/* SPDX-License-Identifier: MIT */
/*
 * A queue lock: waiters form a linked list, and each polls a word in its own node.
 *
 * Each acquisition needs a node. The lock uses the node from lock to unlock; after unlock, or after
 * a failed trylock or lock_for, the caller may reuse it. Other lanes access nodes, so nodes are in
 * global memory, or in shared memory for a lock that only the lanes of one block use. A local
 * variable of a lane is not allowed.
 *
 * Source: Mellor-Crummey and Scott, 1991.
 *
 * Synchronization of two calls on the same lock. X: the caller must order the calls. -: the calls
 * may run concurrently if their nodes differ. The caller must order all calls with the same node.
 *
 *               init  trylock  lock  lock_for  unlock  locked
 *     init       X       X       X      X        X       X
 *     trylock    X       -       -      -        -       -
 *     lock       X       -       -      -        -       -
 *     lock_for   X       -       -      -        -       -
 *     unlock     X       -       -      -        X       -
 *     locked     X       -       -      -        -       -
 *
 * Scope: the device. The _scope forms accept CUA_SCOPE_BLOCK (a lock in shared memory), _DEVICE or
 *   _SYSTEM. All users of a lock must name a scope that includes all of these users. At system
 *   scope a node must have the same address for all users.
 * Memory order: unlock releases. A successful trylock, lock or lock_for acquires all that the last
 *   unlock released. A failed call, locked and init guarantee no order.
 * Progress: blocking and fair: the lock is granted in the order in which lanes joined the queue,
 *   and only running lanes join it. A lane may use the lock in a diverged warp; lock.h states why
 *   the warp makes progress. unlock waits for a lane that has joined but has not linked its node;
 *   that lane links it two instructions later. Both may be lanes of one warp, so CUA_WITH_MCSLOCK
 *   depends on pauses too, as lock does. lock_for does not join the queue: it retries until the
 *   time has passed, succeeds only while no lane holds the lock or waits for it, and is not fair.
 * Argument: the exchange on tail orders the lanes, and the lane that reads 0 enters. Its acquire
 *   reads the 0 that the last holder's CAS stored with release. A lane that reads the
 *   address of a node stores its own node's address in that node's `next` (the link), with release.
 *   The holder acquires the link, so the holder's store to the successor's `waiting` comes after
 *   the successor's own store. The holder's store releases, and the successor acquires it. The
 *   exchange releases as well: a lane that reads a node from tail also sees that node's empty link.
 *   A holder without a link removes its node from tail by CAS. The CAS fails exactly if another
 *   lane has joined; the holder then waits for that lane's link. After unlock no lane refers to the
 *   node.
 */
#ifndef CUATOMIC_MCSLOCK_H
#define CUATOMIC_MCSLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

/* Addresses are stored as integers, so the layout is the same on host and device. */
struct cua_mcslock {
	uint64_t tail; /* the node that joined last, 0: free */
};
CUA_STATIC_ASSERT(sizeof(struct cua_mcslock) == 8, "the lock is ABI");

/* Needs no initialization. */
struct cua_mcslock_node {
	uint64_t next;    /* the successor's node, 0: none linked yet */
	uint32_t waiting; /* nonzero until the predecessor passes the lock to this node */
	uint32_t reserved;
};
CUA_STATIC_ASSERT(sizeof(struct cua_mcslock_node) == 16, "the node is ABI");

/* Initializer of a free lock. Zeroed memory is an array of free locks. */
#define CUA_MCSLOCK_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Makes the lock free, whatever its content. No other call on the lock may run at the same time.
 */
CUA_FN void cua_mcslock_init(struct cua_mcslock *l)
{
	CUA__LOCK_INIT(mcslock, l);
	l->tail = 0;
}

/*
 * Acquires the lock if no lane holds it or waits for it, and never waits. Returns 1 if the lock was
 * acquired, else 0.
 */
CUA_FORCE int cua_mcslock_trylock_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					enum cua_scope scope)
{
	if (cua_port_load_b64(&l->tail, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != 0)
		return 0;
	cua_port_store_b64(&node->next, 0, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	return CUA__LOCK_ACQUIRED(mcslock, l,
				  cua_port_cas_b64(&l->tail, 0, (uint64_t)(uintptr_t)node,
						   CUA_ACQ_REL, scope, CUA_SPACE_GENERIC) == 0);
}

/* Joins the queue. Returns 1 if the queue was empty: the lane then holds the lock. */
CUA_FORCE int cua__mcslock_join(struct cua_mcslock *l, struct cua_mcslock_node *node,
				enum cua_scope scope)
{
	struct cua_mcslock_node *predecessor;

	cua_port_store_b64(&node->next, 0, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	predecessor = (struct cua_mcslock_node *)(uintptr_t)cua_port_exchange_b64(
		&l->tail, (uint64_t)(uintptr_t)node, CUA_ACQ_REL, scope, CUA_SPACE_GENERIC);
	if (!predecessor)
		return 1;
	cua_port_store_b32(&node->waiting, 1, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	cua_port_store_b64(&predecessor->next, (uint64_t)(uintptr_t)node, CUA_RELEASE, scope,
			   CUA_SPACE_GENERIC);
	return 0;
}

/* Returns 1 if the predecessor has passed the lock to this node, else 0. */
CUA_FORCE int cua__mcslock_handed(const struct cua_mcslock_node *node, enum cua_scope scope)
{
	if (cua_port_load_b32(&node->waiting, CUA_RELAXED, scope, CUA_SPACE_GENERIC))
		return 0;
	cua_port_acquire_b32(&node->waiting, scope, CUA_SPACE_GENERIC);
	return 1;
}

/* Joins the queue and waits until the predecessor passes the lock on. */
CUA_FORCE void cua_mcslock_lock_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
				      enum cua_scope scope)
{
	CUA__LOCK_REQUEST(mcslock, l, wait);
	uint32_t polls = 0;

	if (cua__mcslock_join(l, node, scope)) {
		(void)CUA__LOCK_ACQUIRED(mcslock, l, 1);
		return;
	}
	while (!cua__mcslock_handed(node, scope)) {
		CUA__LOCK_WAITING(mcslock, l, wait);
		cua__wait_turn(&polls);
	}
	(void)CUA__LOCK_ACQUIRED(mcslock, l, 1);
}

/*
 * Tries at least once, and retries for about ns nanoseconds. Returns 1 if the lock was acquired,
 * else 0.
 */
CUA_FORCE int cua_mcslock_lock_for_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					 uint64_t ns, enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_mcslock_trylock_scope(l, node, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua_backoff_wait(&backoff);
	}
	return 1;
}

/*
 * Releases the lock to the next node of the queue. Only its holder may call this, with the node
 * that it passed to lock.
 */
CUA_FORCE void cua_mcslock_unlock_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(mcslock, l);
	uint64_t next = cua_port_load_b64(&node->next, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);
	uint32_t polls = 0;

	if (!next) {
		if (cua_port_cas_b64(&l->tail, (uint64_t)(uintptr_t)node, 0, CUA_RELEASE, scope,
				     CUA_SPACE_GENERIC) == (uint64_t)(uintptr_t)node)
			return;
		/* another lane has joined and is about to link its node */
		while (!cua_port_load_b64(&node->next, CUA_RELAXED, scope, CUA_SPACE_GENERIC))
			cua__wait_turn(&polls);
		next = cua_port_load_b64(&node->next, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);
	}
	cua_port_store_b32(&((struct cua_mcslock_node *)(uintptr_t)next)->waiting, 0, CUA_RELEASE,
			   scope, CUA_SPACE_GENERIC);
}

/* Returns 1 if the lock is held at this moment, else 0. The result is a hint and orders nothing. */
CUA_FORCE int cua_mcslock_locked_scope(const struct cua_mcslock *l, enum cua_scope scope)
{
	return cua_port_load_b64(&l->tail, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != 0;
}

CUA_FN int cua_mcslock_trylock(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	return cua_mcslock_trylock_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_lock(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	cua_mcslock_lock_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_mcslock_lock_for(struct cua_mcslock *l, struct cua_mcslock_node *node, uint64_t ns)
{
	return cua_mcslock_lock_for_scope(l, node, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_unlock(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	cua_mcslock_unlock_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_mcslock_locked(const struct cua_mcslock *l)
{
	return cua_mcslock_locked_scope(l, CUA_SCOPE_DEVICE);
}

/*
 * CUA_WITH_MCSLOCK(&lock, &node) { critical section }
 *
 * Every lane that reaches the macro runs the block once under the lock, in queue order. Each lane
 * passes a node of its own. CUA_WITH_LOCK of spinlock.h has the rules for the block and for jumps.
 * The arguments are evaluated once. CUA_WITH_MCSLOCK_SCOPE(&lock, &node, scope) does the same at
 * another scope.
 */
CUA__SECTION_DECLARE(mcslock);

struct cua__mcslock_section {
	struct cua_mcslock *l;
	struct cua_mcslock_node *node;
	enum cua_scope scope;
	struct cua__section_turn turn;
	int first; /* the queue was empty */
	CUA__SECTION_MEMBERS(mcslock)
};

CUA_FORCE struct cua__mcslock_section cua__mcslock_section_begin(struct cua_mcslock *l,
								 struct cua_mcslock_node *node,
								 enum cua_scope scope)
{
	struct cua__mcslock_section s;

	s.l = l;
	s.node = node;
	s.scope = scope;
	s.state = 0;
	CUA__LOCK_SECTION(mcslock, &s);
	s.turn = cua__section_turn_begin();
	s.first = cua__mcslock_join(l, node, scope);
	return s;
}

CUA_FORCE int cua__mcslock_section_try(struct cua__mcslock_section *s)
{
	return CUA__LOCK_ACQUIRED(mcslock, s->l,
				  s->first || cua__mcslock_handed(s->node, s->scope));
}

CUA_FORCE void cua__mcslock_section_step(struct cua__mcslock_section *s)
{
	if (s->state) {
		cua_mcslock_unlock_scope(s->l, s->node, s->scope);
		s->state = 2;
	} else {
		CUA__LOCK_WAITING(mcslock, s->l, s->wait);
		cua__section_turn_wait(&s->turn, 4);
	}
}

CUA_FORCE void cua__mcslock_section_leave(struct cua__mcslock_section *s)
{
	if (s->state == 1)
		cua__mcslock_section_step(s);
}

#define CUA_WITH_MCSLOCK_SCOPE(l, node, scope) CUA__WITH(mcslock, __LINE__, (l), (node), (scope))
#define CUA_WITH_MCSLOCK(l, node) CUA_WITH_MCSLOCK_SCOPE (l, node, CUA_SCOPE_DEVICE)

/* ---- forms for warps and blocks: the contract is in lock_forms.h ---- */

CUA_FORCE int cua_mcslock_trylock_warp_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					     uint32_t mask, enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_mcslock_trylock_scope(l, node, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_mcslock_lock_warp_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					   uint32_t mask, enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_mcslock_lock_scope(l, node, scope);
	cua__await_leader_warp(mask);
}

CUA_FORCE int cua_mcslock_lock_for_warp_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					      uint64_t ns, uint32_t mask, enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_mcslock_lock_for_scope(l, node, ns, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_mcslock_unlock_warp_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					     uint32_t mask, enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_mcslock_unlock_scope(l, node, scope);
}

CUA_FORCE int cua_mcslock_trylock_block_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					      enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_mcslock_trylock_scope(l, node, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_mcslock_lock_block_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					    enum cua_scope scope)
{
	if (cua__converge_block())
		cua_mcslock_lock_scope(l, node, scope);
	cua__await_leader_block();
}

CUA_FORCE int cua_mcslock_lock_for_block_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					       uint64_t ns, enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_mcslock_lock_for_scope(l, node, ns, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_mcslock_unlock_block_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					      enum cua_scope scope)
{
	if (cua__converge_block())
		cua_mcslock_unlock_scope(l, node, scope);
}

CUA_FN int cua_mcslock_trylock_warp(struct cua_mcslock *l, struct cua_mcslock_node *node,
				    uint32_t mask)
{
	return cua_mcslock_trylock_warp_scope(l, node, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_lock_warp(struct cua_mcslock *l, struct cua_mcslock_node *node,
				  uint32_t mask)
{
	cua_mcslock_lock_warp_scope(l, node, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_mcslock_lock_for_warp(struct cua_mcslock *l, struct cua_mcslock_node *node,
				     uint64_t ns, uint32_t mask)
{
	return cua_mcslock_lock_for_warp_scope(l, node, ns, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_unlock_warp(struct cua_mcslock *l, struct cua_mcslock_node *node,
				    uint32_t mask)
{
	cua_mcslock_unlock_warp_scope(l, node, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_mcslock_trylock_block(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	return cua_mcslock_trylock_block_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_lock_block(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	cua_mcslock_lock_block_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_mcslock_lock_for_block(struct cua_mcslock *l, struct cua_mcslock_node *node,
				      uint64_t ns)
{
	return cua_mcslock_lock_for_block_scope(l, node, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_unlock_block(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	cua_mcslock_unlock_block_scope(l, node, CUA_SCOPE_DEVICE);
}

/* ---- arrays of locks for the host: the contract is in lock_forms.h ---- */

CUA__HOST_FN enum cua_status cua_mcslock_array_create(struct cua_context *ctx, size_t n,
						      struct cua_mcslock **locks)
{
	return cua__lock_array_create(ctx, n, sizeof(**locks), locks);
}

CUA__HOST_FN enum cua_status cua_mcslock_array_destroy(struct cua_context *ctx,
						       struct cua_mcslock *locks)
{
	return cua_free(ctx, locks);
}

#endif /* CUATOMIC_MCSLOCK_H */
