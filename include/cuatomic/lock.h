/* SPDX-License-Identifier: MIT */
/*
 * All locks: each algorithm has a header of its own, and all have the same functions:
 *
 *   init  trylock  lock  lock_for(timeout in ns)  unlock  locked
 *   CUA_WITH_<LOCK>(&lock) { section }
 *
 * The plain names have device scope; the names with _scope take a scope argument. They are for a
 * single lane. trylock, lock, lock_for and unlock of the same lock also have forms for a warp,
 * _warp(l, mask), and for a block, _block(l). lock_forms.h has their contract, and that of the
 * arrays of locks for the host.
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
