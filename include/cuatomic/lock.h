/* SPDX-License-Identifier: MIT */
/*
 * All locks: each algorithm has a header of its own, and all have the same functions:
 *
 *   init  trylock  lock  lock_for(timeout in ns)  unlock  locked
 *   CUA_WITH_<LOCK>(&lock) { section }
 *
 * A rwlock has them with read_ and write_. A mcslock also takes a node.
 *
 * A lane is a GPU thread or a host thread. A host thread is a warp of one lane. The plain names
 * have device scope; the names with _scope take a scope argument. Both are for a single lane.
 * trylock, lock, lock_for and unlock of the same lock also have forms for a warp, _warp(l, mask),
 * and for a block, _block(l). lock_forms.h has their contract, and that of the arrays of locks for
 * the host.
 *
 *   use                                       header          words   fair
 *   little contention, or many locks          spinlock.h      1       no
 *   contention, first come first served       ticketlock.h    2       yes
 *   the same, but each waiter polls its       mcslock.h       2, and  yes
 *     own node                                                4 a node
 *   sections that mostly read                 rwlock.h        4       readers, writers take turns
 *   a few words that are read all the time    seqlock.h       2       no; readers write nothing
 *   at most n holders at once, or a signal    semaphore.h     1       no
 *
 * Zeroed memory is a free lock, except for the semaphore, whose count would be 0. CUDA allows no
 * initializer in shared memory. There, one thread calls init, and then the block passes a barrier.
 *
 * Progress on a GPU. These headers need sm_70 or newer, which schedules the lanes of a diverged
 * warp independently. Even so, the GPU may run a waiting lane for ever and never switch to a lane
 * of the same warp that holds the lock (measured on an H200). The locks make progress as follows:
 *
 *   lock        Every wait pauses (nanosleep), at least at every 16th poll. After a pause, other
 *               lanes of the warp run. But a pause delays the whole warp, so a waiter in a queue
 *               pauses only at some polls: at every 16th poll, in a section also at every 4th.
 *               A section omits at most 32 pauses, while other lanes of its warp run the block.
 *   CUA_WITH_   The block and the unlock are inside the loop that waits. So a lane that fails
 *               retries only after the lanes of its loop that hold the lock have run the block,
 *               even if the warp runs in lockstep. A lane that leaves the block by return, goto
 *               or an exception unlocks outside the loop; then progress depends on pauses, as for
 *               lock.
 *   blocks      Only a lane that already runs can hold a lock or have a place in its queue. So no
 *               lane waits for a block that has not started. A semaphore used as a signal is the
 *               exception: its waiter depends on the lane that signals.
 *
 * Objects without a lock of their own share locks that stripe.h chooses by address. Locks that host
 * and device share need memory of cua_alloc_system and CUA_SCOPE_SYSTEM. A section that is a single
 * operation on a single word needs no lock: see atomic.h. With -DCUA_LOCK_DEBUG, all locks detect
 * mistakes and report hangs: see lock_debug.h.
 */
#ifndef CUATOMIC_LOCK_H
#define CUATOMIC_LOCK_H

#include <cuatomic/mcslock.h>
#include <cuatomic/rwlock.h>
#include <cuatomic/semaphore.h>
#include <cuatomic/seqlock.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/ticketlock.h>

#endif /* CUATOMIC_LOCK_H */
