/* SPDX-License-Identifier: MIT */
/* All of cuatomic: the host API and the inline algorithms. */
#ifndef CUATOMIC_H
#define CUATOMIC_H

#include <cuatomic/append.h>
#include <cuatomic/atomic.h>
#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_complex.h>
#include <cuatomic/atomic_half.h>
#include <cuatomic/atomic_narrow.h>
#include <cuatomic/atomic_path.h>
#include <cuatomic/atomic_warp.h>
#include <cuatomic/chained.h>
#include <cuatomic/combine.h>
#include <cuatomic/context.h>
#include <cuatomic/exact.h>
#include <cuatomic/exact_cell.h>
#include <cuatomic/filter.h>
#include <cuatomic/group.h>
#include <cuatomic/group_by.h>
#include <cuatomic/hash.h>
#include <cuatomic/hashmap.h>
#include <cuatomic/hashmap_quad.h>
#include <cuatomic/histogram.h>
#include <cuatomic/join.h>
#include <cuatomic/lock.h>
#include <cuatomic/lock_debug.h>
#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/mcslock.h>
#include <cuatomic/memory.h>
#include <cuatomic/multimap.h>
#include <cuatomic/port.h>
#include <cuatomic/reduce.h>
#include <cuatomic/rwlock.h>
#include <cuatomic/detail/section.h>
#include <cuatomic/scatter.h>
#include <cuatomic/segment.h>
#include <cuatomic/semaphore.h>
#include <cuatomic/seqlock.h>
#include <cuatomic/sharded_map.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/status.h>
#include <cuatomic/stripe.h>
#include <cuatomic/ticketlock.h>
#include <cuatomic/types.h>
#include <cuatomic/version.h>

#endif /* CUATOMIC_H */
