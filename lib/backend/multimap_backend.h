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

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_MULTIMAP_BACKEND_H */
