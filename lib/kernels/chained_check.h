/* SPDX-License-Identifier: MIT */
/*
 * The check of a table. A walker per bucket would be slow if a key occurs a million times. So
 * sentinels cut the chains into segments with a walker each. A sentinel is an entry at a
 * pseudo-random index in each group of 1024 entries of the pool. A segment begins at a bucket's
 * head or after a sentinel, and ends with the next sentinel.
 *
 * Pass 1 marks the entries of each segment, and stops at an entry that is already marked. So no
 * entry, and no sentinel, is in two segments. Pass 2 follows the segments from each bucket. It
 * terminates, because no segment has two predecessors and a bucket's first segment has none. Pass 3
 * compares the buckets of the keys.
 */
#ifndef CUATOMIC_KERNELS_CHAINED_CHECK_H
#define CUATOMIC_KERNELS_CHAINED_CHECK_H

#include "backend/chained_backend.h"

#define CUA__CHAINED_AT CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* The number of entries in use. */
CUA_FORCE uint64_t cua__chained_used(const struct cua_chained_view *view)
{
	uint64_t demand = cua_port_load_b64(&view->cursor->demand, CUA__CHAINED_AT);

	return demand < view->capacity ? demand : view->capacity;
}

CUA_FORCE uint64_t cua__chained_sentinel(uint64_t group)
{
	return group * CUA__CHAINED_GROUP + cua_hash_u64(group, 1) % CUA__CHAINED_GROUP;
}

/* The index of a segment's first entry; not necessarily an entry in use. */
CUA_FORCE uint64_t cua__chained_segment_begin(const struct cua_chained_view *view,
					      const struct cua__chained_check *check,
					      uint64_t segment)
{
	uint64_t sentinel;

	if (segment < view->n_buckets)
		return view->heads[segment];
	sentinel = cua__chained_sentinel(segment - view->n_buckets);
	return sentinel < check->entries ? view->entries[sentinel].next : CUA_CHAINED_NONE;
}

CUA_FN void cua__chained_check_mark(const struct cua_chained_view *view,
				    const struct cua__chained_check *check, uint64_t segment)
{
	struct cua__chained_segment *s = &check->segments[segment];
	uint64_t index = cua__chained_segment_begin(view, check, segment), length = 0;
	uint64_t next = CUA_CHAINED_NONE;

	while (index != CUA_CHAINED_NONE) {
		uint32_t bit = (uint32_t)1 << (index % 32);

		if (index >= check->entries) {
			cua_port_add_u64(&check->totals->broken, 1, CUA__CHAINED_AT);
			break;
		}
		if (cua_port_fetch_or_b32(&check->seen[index / 32], bit, CUA__CHAINED_AT) & bit) {
			cua_port_add_u64(&check->totals->twice, 1, CUA__CHAINED_AT);
			break;
		}
		length++;
		if (cua__chained_sentinel(index / CUA__CHAINED_GROUP) == index) {
			next = index / CUA__CHAINED_GROUP;
			break;
		}
		index = view->entries[index].next;
	}
	s->next = next;
	s->length = length;
	s->bucket = segment < view->n_buckets ? segment : CUA_CHAINED_NONE;
}

CUA_FN void cua__chained_check_follow(const struct cua_chained_view *view,
				      const struct cua__chained_check *check, uint64_t bucket)
{
	struct cua__chained_segment *s = &check->segments[bucket];
	uint64_t reached = s->length;

	while (s->next != CUA_CHAINED_NONE) {
		s = &check->segments[view->n_buckets + s->next];
		s->bucket = bucket;
		reached += s->length;
	}
	if (reached)
		cua_port_add_u64(&check->totals->reached, reached, CUA__CHAINED_AT);
}

CUA_FN void cua__chained_check_buckets(const struct cua_chained_view *view,
				       const struct cua__chained_check *check, uint64_t segment)
{
	const struct cua__chained_segment *s = &check->segments[segment];
	uint64_t index = cua__chained_segment_begin(view, check, segment), left, misplaced = 0;

	if (s->bucket == CUA_CHAINED_NONE)
		return;
	for (left = s->length; left; left--) {
		misplaced += cua_chained_bucket(view, view->entries[index].key) != s->bucket;
		index = view->entries[index].next;
	}
	if (misplaced)
		cua_port_add_u64(&check->totals->misplaced, misplaced, CUA__CHAINED_AT);
}

#endif /* CUATOMIC_KERNELS_CHAINED_CHECK_H */
