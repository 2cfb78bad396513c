/* SPDX-License-Identifier: MIT */
/*
 * Many pairs into a hash map of words by way of parts: hashmap_build.cu. Both take a call without
 * values_out and flags, and else, or where it would not pay or there is no workspace, return
 * CUA_ERROR_UNSUPPORTED and have done nothing: the caller goes the plain way then.
 */
#ifndef CUATOMIC_CUDA_HASHMAP_BUILD_H
#define CUATOMIC_CUDA_HASHMAP_BUILD_H

#include "backend/hashmap_backend.h"

/* In the place of all that the map has. */
enum cua_status cua__cuda_hashmap_build(struct cua_context *ctx,
					const struct cua_hashmap_view *view,
					const struct cua__hashmap_call *call);
/* Into any map, also while others use it. */
enum cua_status cua__cuda_hashmap_insert_parts(struct cua_context *ctx,
					       const struct cua_hashmap_view *view,
					       const struct cua__hashmap_call *call);

/* The bytes of workspace that they take at most for n pairs. */
size_t cua__cuda_hashmap_build_scratch(struct cua_context *ctx, const struct cua_hashmap_view *view,
				       size_t n);

#endif /* CUATOMIC_CUDA_HASHMAP_BUILD_H */
