/* SPDX-License-Identifier: MIT */
/* The backend interface of the multimap. */
#ifndef CUATOMIC_BACKEND_MULTIMAP_BACKEND_H
#define CUATOMIC_BACKEND_MULTIMAP_BACKEND_H

#include "backend/hashmap_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of key ranges of a retrieve; each has a sum in the workspace. */
#define CUA__MULTIMAP_RANGES 4096u

/* A bulk call. Pointers are backend addresses, or NULL for absent arrays. */
struct cua__multimap_call {
	size_t n;
	const void *keys, *values;
	uint8_t *results;
	uint64_t *out;  /* counts, removed counts, or the n + 1 offsets of a retrieve */
	uint64_t max;   /* retrieve */
	void *keys_out; /* retrieve of all pairs */
	void *values_out;
	uint64_t *total; /* retrieve; 0 at the start of a retrieve of all pairs */
	uint64_t *sums;  /* retrieve: CUA__MULTIMAP_RANGES elements */
};

typedef enum cua_status cua__multimap_fn(struct cua_context *ctx,
					 const struct cua_multimap_view *view,
					 const struct cua__multimap_call *call);

struct cua__multimap_ops {
	cua__multimap_fn *insert, *count, *erase;
	cua__multimap_fn *retrieve; /* n may be 0 */
	cua__multimap_fn *retrieve_all;
	enum cua_status (*reclaim)(struct cua_context *ctx, const struct cua_multimap_view *view);
	enum cua_status (*size)(struct cua_context *ctx, const struct cua_multimap_view *view,
				uint64_t *size);
};

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

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_MULTIMAP_BACKEND_H */
