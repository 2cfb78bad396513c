/* SPDX-License-Identifier: MIT */
/*
 * All locks. One algorithm a file, all of one shape:
 *
 *   init  trylock  lock  lock_for(timeout in ns)  unlock  locked   and CUA_WITH_<LOCK>(&lock) { section }
 *
 * each for the device, and with _scope for a block or the system. These are a lane's; trylock, lock, lock_for and
 * unlock have forms for a warp, _warp(l, mask), and for a block, _block(l), of the same lock; see lock_forms.h,
 * which also has arrays of locks for the host.
 *
 *   want                                          take            words  fair
 *   little contention, or many locks              spinlock.h        1    no
 *   contention, first come first served           ticketlock.h      2    yes
 *   the same, each waiter at a word of its own    mcslock.h         2    yes; a node of 4 words each
 *   sections that mostly read                     rwlock.h          4    readers and writers take turns
 *   a few words, read all the time                seqlock.h         2    no; readers write nothing
 *   at most n at once, or a signal                semaphore.h       1    no
 *
 * Objects without a lock of their own find one by their address in stripe.h. Locks that host and device share
 * are in memory of cua_alloc_system and of CUA_SCOPE_SYSTEM. Where the section is one operation on one word,
 * atomic.h needs no lock at all. Compiled with -DCUA_LOCK_DEBUG, all of them find mistakes and report hangs:
 * lock_debug.h.
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
