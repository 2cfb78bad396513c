/* SPDX-License-Identifier: MIT */
/* The pool of entries of a multimap: functions that the loops of both backends call. */
#ifndef CUATOMIC_KERNELS_MULTIMAP_POOL_H
#define CUATOMIC_KERNELS_MULTIMAP_POOL_H

#include "backend/multimap_backend.h"

/* The number of entries ever used. */
CUA_FORCE uint64_t cua__multimap_used(const struct cua_multimap_view *view)
{
	const struct cua_multimap_pool *pool = view->pool;
	uint64_t taken = cua_port_load_b64(&pool->taken, CUA__MULTIMAP_AT);
	uint64_t more = taken > pool->reusable ? taken - pool->reusable : 0;

	return more < view->capacity - pool->fresh ? pool->fresh + more : view->capacity;
}

/* The number of pairs. */
CUA_FORCE uint64_t cua__multimap_count(const struct cua_multimap_view *view)
{
	const struct cua_multimap_pool *pool = view->pool;
	uint64_t taken = cua_port_load_b64(&pool->taken, CUA__MULTIMAP_AT);
	uint64_t left = taken < pool->reusable ? pool->reusable - taken : 0;

	return cua__multimap_used(view) - left -
	       cua_port_load_b64(&pool->dropped, CUA__MULTIMAP_AT);
}

/* Whether the entry of this cursor, at most used, is in no list. */
CUA_FORCE int cua__multimap_is_free(const struct cua_multimap_view *view, uint64_t cursor)
{
	return (cua__multimap_link(view, view->value_size, cursor) & CUA__MULTIMAP_MARK) != 0;
}

CUA_FORCE void cua__multimap_set_reusable(const struct cua_multimap_view *view, uint64_t i,
					  uint64_t cursor)
{
	if (view->map.value_size == 4)
		((uint32_t *)view->reusable)[i] = (uint32_t)cursor;
	else
		((uint64_t *)view->reusable)[i] = cursor;
}

/* Ends a reclaim, after all free entries are listed and counted in `gathered`. */
CUA_FORCE void cua__multimap_reclaimed(const struct cua_multimap_view *view)
{
	struct cua_multimap_pool *pool = view->pool;

	pool->fresh = cua__multimap_used(view);
	pool->reusable = pool->gathered;
	pool->taken = pool->dropped = pool->gathered = pool->spare = 0;
}

#endif /* CUATOMIC_KERNELS_MULTIMAP_POOL_H */
