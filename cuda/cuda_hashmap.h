/* SPDX-License-Identifier: MIT */
/* Functions that the CUDA hash map's files share. */
#ifndef CUATOMIC_CUDA_HASHMAP_H
#define CUATOMIC_CUDA_HASHMAP_H

#include "backend/hashmap_backend.h"
#include "backend/shard_backend.h"

/* The backend's retrieve (cuda_hashmap.cu). */
enum cua_status cua__cuda_hashmap_retrieve(struct cua_context *ctx,
					   const struct cua_hashmap_view *view, uint64_t max,
					   void *keys_out, void *values_out, uint64_t *n);

/* The backend's find (cuda_hashmap_find.cu). */
enum cua_status cua__cuda_hashmap_find(struct cua_context *ctx, const struct cua_hashmap_view *view,
				       const struct cua__hashmap_call *call);

/* The backend's find_regions. */
enum cua_status cua__cuda_hashmap_find_regions(struct cua_context *ctx,
					       const struct cua_hashmap_view *view,
					       const struct cua__hashmap_sources *sources);

/*
 * Bulk insert and build of a hash map of words by regions (cuda_hashmap_build.cu). Both functions
 * need a call without values_out and flags. They return CUA_ERROR_UNSUPPORTED, without any effect,
 * for other calls, if they would not pay, and if there is no workspace; the caller then takes the
 * ordinary path.
 */
/* Replaces the contents of the map. */
enum cua_status cua__cuda_hashmap_build(struct cua_context *ctx,
					const struct cua_hashmap_view *view,
					const struct cua__hashmap_call *call);
/* Inserts into a map, also during concurrent operations on it. */
enum cua_status cua__cuda_hashmap_insert_regions(struct cua_context *ctx,
						 const struct cua_hashmap_view *view,
						 const struct cua__hashmap_call *call);

/* Direct inserts and builds of sharded maps: the members of struct cua__shard_ops. */
size_t cua__cuda_direct_bytes(struct cua_context *ctx, struct cua__shard_direct *d);
enum cua_status cua__cuda_direct_clear(struct cua_context *ctx, const struct cua__shard_direct *d);
enum cua_status cua__cuda_direct_send(struct cua_context *ctx, const struct cua__shard_direct *d);
enum cua_status cua__cuda_direct_receive(struct cua_context *ctx,
					 const struct cua__shard_direct *d);
enum cua_status cua__cuda_direct_send_rest(struct cua_context *ctx,
					   const struct cua__shard_direct *d);
enum cua_status cua__cuda_direct_pull(struct cua_context *ctx, const struct cua__shard_direct *d,
				      uint32_t unit);
enum cua_status cua__cuda_direct_scatter_own(struct cua_context *ctx,
					     const struct cua__shard_direct *d);
enum cua_status cua__cuda_direct_scatter(struct cua_context *ctx, const struct cua__shard_direct *d,
					 uint32_t unit);
enum cua_status cua__cuda_direct_build(struct cua_context *ctx, const struct cua__shard_direct *d,
				       uint32_t unit);

/*
 * Updates by an enum cua_update that combine equal keys first (cuda_hashmap_combine.cu), also during
 * concurrent operations on the map. **direct, on the device, becomes 1 if nothing was updated because
 * few keys are equal: the caller then updates the map. UNSUPPORTED as above, and for more than
 * MOST_COMBINED pairs.
 */
enum cua_status cua__cuda_hashmap_combine(struct cua_context *ctx,
					  const struct cua_hashmap_view *view,
					  const struct cua__hashmap_call *call,
					  const uint32_t **direct);
/* Upper bound on the bytes of workspace for n pairs. */
size_t cua__cuda_hashmap_combine_scratch(struct cua_context *ctx,
					 const struct cua_hashmap_view *view, uint64_t n);

/* Updates of sharded maps: the members of struct cua__shard_ops; `sent`: direct updates. */
size_t cua__cuda_combine_bytes(struct cua_context *ctx, const struct cua__shard_combine *c);
enum cua_status cua__cuda_combine(struct cua_context *ctx, struct cua__shard_combine *c);
size_t cua__cuda_sent_bytes(struct cua_context *ctx, const struct cua__shard_direct *d);
enum cua_status cua__cuda_sent_clear(struct cua_context *ctx, const struct cua__shard_direct *d);
enum cua_status cua__cuda_sent_send(struct cua_context *ctx, const struct cua__shard_direct *d);
enum cua_status cua__cuda_sent_receive(struct cua_context *ctx, const struct cua__shard_direct *d);

/* Upper bound on the bytes of workspace of a build, an insert or an update for n pairs. */
size_t cua__cuda_hashmap_build_scratch(struct cua_context *ctx, const struct cua_hashmap_view *view,
				       size_t n);

#endif /* CUATOMIC_CUDA_HASHMAP_H */
