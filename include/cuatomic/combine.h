/* SPDX-License-Identifier: MIT */
/*
 * Combining: a single acquire of a lock for the critical sections of a whole warp or block.
 *
 * Passing a lock from one thread to another costs two trips to memory, some thousand cycles. The
 * sections of a warp or a block that use the same lock can share this cost. In the functions that
 * CUA_DEFINE_COMBINE defines, one lane (the leader) acquires the lock and copies the protected
 * value to registers. It then runs the sections of all lanes, writes the value back and releases
 * the lock. CUA_WITH_LOCK_WARP also acquires the lock once, but lets each lane run its own section
 * in turn.
 *
 * Source: flat combining, Hendler, Incze, Shavit and Tzafrir, 2010. Here the lanes converge at a
 * warp operation or a barrier, so no publication list is needed.
 *
 * Synchronization of two calls on the same cua_spinlock. X: the caller must order the calls. -: the
 * calls may run concurrently, and the lock makes their sections run one after another. "lock" is
 * any other function that acquires the spinlock; init is cua_spinlock_init.
 *
 *                    init  lock  name_warp  name_block  CUA_WITH_LOCK_WARP
 *     name_warp       X     -        -          -                -
 *     name_block      X     -        -          -                -
 *     ..LOCK_WARP     X     -        -          -                -
 *
 *   Two calls of name_block with the same scratch are ordered if the same block runs them.
 * Scope: the device. The _scope forms take CUA_SCOPE_BLOCK (a lock in shared memory), _DEVICE or
 *   _SYSTEM. All users of a lock must name a scope that includes all of them.
 * Memory order: a section happens after all earlier accesses of its own lane, and before all later
 *   accesses of that lane, no matter which lane runs it. A section acquires the effects of all
 *   earlier sections under the lock, including earlier sections of the same call.
 * Progress: blocking, not fair between warps or blocks; in lane order inside a call. On sm_70 and
 *   newer, a lane that holds a lock does not wait for lanes of its warp that want a different lock,
 *   nor the other way round: after the match, lanes of different locks share no warp operation. The
 *   wait for the lock contains no warp operation: the leader waits alone, and the lanes of its
 *   group wait for the leader. A lane that already holds a lock must not call these functions if
 *   another lane or block that must arrive may want that lock.
 * Argument: before the sections, the lanes of a group converge (sync_warp, sync_block). This orders
 *   their earlier accesses and their arguments before the sections. The leader's acquire
 *   reads from the last holder's release. The sections run one after another in the leader's
 *   program order or, in CUA_WITH_LOCK_WARP, with a sync_warp between two sections. The release
 *   follows the last section, so the next holder acquires all sections; sections of other lanes are
 *   included through the sync_warp. After the release the lanes converge again. This makes the
 *   sections' effects visible to their lanes, and keeps the scratch unchanged until every section
 *   has run.
 */
#ifndef CUATOMIC_COMBINE_H
#define CUATOMIC_COMBINE_H

#include <cuatomic/port.h>
#include <cuatomic/spinlock.h>

/*
 * CUA_DEFINE_COMBINE(name, state_type, argument_type, statements) defines
 *
 *   void name_warp(struct cua_spinlock *l, state_type *state, argument_type argument,
 *                  uint32_t mask)
 *     All lanes of mask must call together. They may pass different locks. Lanes with the same lock
 *     must pass the same state; the lowest lane's pointer is used.
 *   void name_block(struct cua_spinlock *l, state_type *state, argument_type argument,
 *                   argument_type *scratch)
 *     All threads of the block must call together with the same lock and state. scratch is memory
 *     of the block, usually shared memory, with an element for each thread. It may be used again as
 *     soon as the call returns.
 *   void name_warp_scope(l, state, argument, mask, scope)
 *   void name_block_scope(l, state, argument, n, scratch, scope)
 *     The first n threads of the block have a section; scratch has n elements. n must be the same
 *     in all threads.
 *
 * The statements are a section. They use `state`, a pointer, and `argument`, a value, and must not
 * return. state points to a copy in registers, read after the acquire and written back before the
 * release. For an object that is too large to copy, let state_type be a pointer to it: each lane
 * then passes the address of its own copy of that pointer. A single lane may run the sections of
 * all lanes, so the statements must not depend on the lane that runs them.
 *
 * CUA_DEFINE_COMBINE_FETCH defines the same functions with a result: each lane gets the value that
 * its section left in `argument`. A lane without a section gets its argument back.
 *
 *     CUA_DEFINE_COMBINE_FETCH(take_number, uint64_t, uint64_t, {
 *             uint64_t first = *state;
 *             *state += argument;
 *             argument = first;
 *     });
 */
#define CUA_DEFINE_COMBINE(name, state_type, argument_type, ...)                                   \
	CUA__DEFINE_COMBINE(name, state_type, argument_type, void, 0, __VA_ARGS__)
#define CUA_DEFINE_COMBINE_FETCH(name, state_type, argument_type, ...)                             \
	CUA__DEFINE_COMBINE(name, state_type, argument_type, argument_type, 1, __VA_ARGS__)
#define CUA__COMBINE_TAIL_0
#define CUA__COMBINE_TAIL_1 return

/* Broadcasts an object of any size from a lane, word by word. */
CUA_FORCE void cua__combine_shuffle(uint32_t mask, void *to, const void *from, size_t bytes,
				    uint32_t lane)
{
	uint64_t word;
	uint32_t half;
	size_t i;

	for (i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, (const char *)from + i, sizeof(word));
		word = cua_port_shuffle_u64(mask, word, lane);
		memcpy((char *)to + i, &word, sizeof(word));
	}
	for (; i < bytes; i += sizeof(half)) {
		size_t rest = bytes - i < sizeof(half) ? bytes - i : sizeof(half);

		half = 0;
		memcpy(&half, (const char *)from + i, rest);
		half = cua_port_shuffle_u32(mask, half, lane);
		memcpy((char *)to + i, &half, rest);
	}
}

/*
 * _section runs a single section. All lanes of the group call _turn, once for each of its lanes:
 * lane `turn` passes its argument to the leader, which runs the section. With `fetches`, every lane
 * gets the argument as the section left it.
 */
#define CUA__DEFINE_COMBINE_SECTION(name, S, A, fetches, ...)                                      \
	CUA_FORCE A cua__##name##_section(S *state, A argument)                                    \
	{                                                                                          \
		(void)state;                                                                       \
		__VA_ARGS__;                                                                       \
		return argument;                                                                   \
	}                                                                                          \
	CUA_FORCE A cua__##name##_turn(S *value, A argument, uint32_t group, uint32_t lane,        \
				       uint32_t leader, uint32_t turn)                             \
	{                                                                                          \
		A given = argument;                                                                \
                                                                                                   \
		cua__combine_shuffle(group, (void *)&given, (const void *)&argument, sizeof(A),    \
				     turn);                                                        \
		if (lane == leader)                                                                \
			given = cua__##name##_section(value, given);                               \
		if (fetches) {                                                                     \
			A changed = given;                                                         \
                                                                                                   \
			cua__combine_shuffle(group, (void *)&changed, (const void *)&given,        \
					     sizeof(A), leader);                                   \
			given = changed;                                                           \
		}                                                                                  \
		return given;                                                                      \
	}

#define CUA__DEFINE_COMBINE_WARP(name, S, A, fetches)                                              \
	CUA_FORCE A cua__##name##_warp(struct cua_spinlock *l, S *state, A argument,               \
				       uint32_t mask, enum cua_scope scope)                        \
	{                                                                                          \
		uint32_t group = cua_port_match_any_u64(mask, (uint64_t)(uintptr_t)l);             \
		uint32_t lane = cua_port_lane(), leader = cua_port_ffs_u32(group) - 1, left;       \
		A result = argument;                                                               \
		S value;                                                                           \
                                                                                                   \
		memset((void *)&value, 0, sizeof(value));                                          \
		if (lane != leader)                                                                \
			CUA__LOCK_DELEGATE(spinlock, l);                                           \
		cua_port_sync_warp(group);                                                         \
		if (lane == leader) {                                                              \
			cua_spinlock_lock_scope(l, scope);                                         \
			value = CUA_READ(*state);                                                  \
		}                                                                                  \
		for (left = group; left; left &= left - 1) {                                       \
			uint32_t turn = cua_port_ffs_u32(left) - 1;                                \
			A changed =                                                                \
				cua__##name##_turn(&value, argument, group, lane, leader, turn);   \
                                                                                                   \
			if (fetches && lane == turn)                                               \
				result = changed;                                                  \
		}                                                                                  \
		if (lane == leader) {                                                              \
			CUA_WRITE(*state, value);                                                  \
			cua_spinlock_unlock_scope(l, scope);                                       \
		}                                                                                  \
		cua_port_sync_warp(group);                                                         \
		return result;                                                                     \
	}

#define CUA__DEFINE_COMBINE_BLOCK(name, S, A, fetches)                                             \
	CUA_FORCE A cua__##name##_block(struct cua_spinlock *l, S *state, A argument, uint32_t n,  \
					A *scratch, enum cua_scope scope)                          \
	{                                                                                          \
		uint32_t thread = cua_port_thread(), i;                                            \
		A result = argument;                                                               \
                                                                                                   \
		if (thread < n)                                                                    \
			CUA_WRITE(scratch[thread], argument);                                      \
		if (thread != 0 && thread < n)                                                     \
			CUA__LOCK_DELEGATE(spinlock, l);                                           \
		cua_port_sync_block();                                                             \
		if (thread == 0 && n != 0) {                                                       \
			S value;                                                                   \
                                                                                                   \
			cua_spinlock_lock_scope(l, scope);                                         \
			value = CUA_READ(*state);                                                  \
			for (i = 0; i < n; i++) {                                                  \
				A given = CUA_READ(scratch[i]);                                    \
                                                                                                   \
				given = cua__##name##_section(&value, given);                      \
				if (fetches)                                                       \
					CUA_WRITE(scratch[i], given);                              \
			}                                                                          \
			CUA_WRITE(*state, value);                                                  \
			cua_spinlock_unlock_scope(l, scope);                                       \
		}                                                                                  \
		cua_port_sync_block();                                                             \
		if (fetches && thread < n)                                                         \
			result = CUA_READ(scratch[thread]);                                        \
		return result;                                                                     \
	}

#define CUA__DEFINE_COMBINE(name, S, A, R, fetches, ...)                                           \
	CUA__DEFINE_COMBINE_SECTION(name, S, A, fetches, __VA_ARGS__)                              \
	CUA__DEFINE_COMBINE_WARP(name, S, A, fetches)                                              \
	CUA__DEFINE_COMBINE_BLOCK(name, S, A, fetches)                                             \
	CUA_FORCE R name##_warp_scope(struct cua_spinlock *l, S *state, A argument, uint32_t mask, \
				      enum cua_scope scope)                                        \
	{                                                                                          \
		CUA__COMBINE_TAIL_##fetches cua__##name##_warp(l, state, argument, mask, scope);   \
	}                                                                                          \
	CUA_FORCE R name##_block_scope(struct cua_spinlock *l, S *state, A argument, uint32_t n,   \
				       A *scratch, enum cua_scope scope)                           \
	{                                                                                          \
		CUA__COMBINE_TAIL_##fetches cua__##name##_block(l, state, argument, n, scratch,    \
								scope);                            \
	}                                                                                          \
	CUA_FN R name##_warp(struct cua_spinlock *l, S *state, A argument, uint32_t mask)          \
	{                                                                                          \
		CUA__COMBINE_TAIL_##fetches cua__##name##_warp(l, state, argument, mask,           \
							       CUA_SCOPE_DEVICE);                  \
	}                                                                                          \
	CUA_FN R name##_block(struct cua_spinlock *l, S *state, A argument, A *scratch)            \
	{                                                                                          \
		CUA__COMBINE_TAIL_##fetches cua__##name##_block(                                   \
			l, state, argument, cua_port_block_size(), scratch, CUA_SCOPE_DEVICE);     \
	}                                                                                          \
	CUA_STATIC_ASSERT(sizeof(S) > 0 && sizeof(A) > 0, "combining copies both")

/*
 * CUA_WITH_LOCK_WARP(&lock, mask) { critical section }
 *
 * Runs the block once in every lane of mask, one lane after another in lane order. Lanes with the
 * same lock share a single acquire. All lanes of mask must arrive together, and the block must not
 * use warp operations that name another lane. Every jump out of the block, as listed for
 * CUA_WITH_LOCK in spinlock.h, ends the turn of its lane. A lane that jumps beyond the end of the
 * block first waits for the remaining turns. The arguments are evaluated once.
 * CUA_WITH_LOCK_WARP_SCOPE(&lock, mask, scope) is the same at another scope.
 *
 * Each lane runs its own section. For a section that all lanes of the warp run together, use
 * cua_spinlock_lock_warp; see lock_forms.h.
 */
CUA__SECTION_DECLARE(turns);

struct cua__turns_section {
	struct cua_spinlock *l;
	enum cua_scope scope;
	uint32_t group; /* the lanes with this lock */
	uint32_t left;  /* the lanes of the group that have not finished their turn */
	CUA__LEAVES(turns)
};

CUA_FORCE struct cua__turns_section cua__turns_section_begin(struct cua_spinlock *l, uint32_t mask,
							     enum cua_scope scope)
{
	struct cua__turns_section t;

	t.l = l;
	t.scope = scope;
	t.group = t.left = cua_port_match_any_u64(mask, (uint64_t)(uintptr_t)l);
	if (cua_port_lane() == cua_port_ffs_u32(t.group) - 1)
		cua_spinlock_lock_scope(l, scope);
	else
		CUA__LOCK_DELEGATE(spinlock, l);
	cua_port_sync_warp(t.group);
	return t;
}

CUA_FORCE int cua__turns_section_mine(const struct cua__turns_section *t)
{
	return cua_port_lane() == cua_port_ffs_u32(t->left) - 1;
}

/* Ends a turn. After the last turn, the leader releases the lock. */
CUA_FORCE void cua__turns_section_step(struct cua__turns_section *t)
{
	t->left &= t->left - 1;
	cua_port_sync_warp(t->group);
	if (!t->left && cua_port_lane() == cua_port_ffs_u32(t->group) - 1)
		cua_spinlock_unlock_scope(t->l, t->scope);
}

/* A lane that has left its block waits for the remaining turns: they converge the whole group. */
CUA_FORCE void cua__turns_section_leave(struct cua__turns_section *t)
{
	while (t->left)
		cua__turns_section_step(t);
}

#define CUA__TURNS(l, mask, scope, t, once)                                                        \
	for (struct cua__turns_section t CUA__LEFT(turns) =                                        \
		     cua__turns_section_begin((l), (mask), (scope));                               \
	     t.left; cua__turns_section_step(&t))                                                  \
		for (int once = cua__turns_section_mine(&t); once; once = 0)
#define CUA__TURNS_AT(l, mask, scope, line)                                                        \
	CUA__TURNS(l, mask, scope, cua__turns_##line, cua__turn_##line)
#define CUA__TURNS_LINE(l, mask, scope, line) CUA__TURNS_AT(l, mask, scope, line)
#define CUA_WITH_LOCK_WARP_SCOPE(l, mask, scope) CUA__TURNS_LINE(l, mask, scope, __LINE__)
#define CUA_WITH_LOCK_WARP(l, mask) CUA_WITH_LOCK_WARP_SCOPE (l, mask, CUA_SCOPE_DEVICE)

#endif /* CUATOMIC_COMBINE_H */
