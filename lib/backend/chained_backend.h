/* SPDX-License-Identifier: MIT */
/* The backend interface of the chained table. */
#ifndef CUATOMIC_BACKEND_CHAINED_BACKEND_H
#define CUATOMIC_BACKEND_CHAINED_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scratch of count: keys with long chains, to be searched for in the pool. */
#define CUA__CHAINED_PENDING 64
struct cua__chained_pending {
	uint64_t n; /* may exceed CUA__CHAINED_PENDING */
	uint64_t index[CUA__CHAINED_PENDING];
	uint64_t total[CUA__CHAINED_PENDING];
};

/* Scratch of values. */
struct cua__chained_found {
	uint64_t n;
	uint64_t search; /* nonzero: the chain was too long to walk */
};

/* Entries of the pool for each sentinel of the check (lib/kernels/chained_check.h). */
#define CUA__CHAINED_GROUP 1024u

struct cua__chained_segment {
	uint64_t next;   /* the group of the sentinel at its end, or CUA_CHAINED_NONE */
	uint64_t length; /* entries */
	uint64_t bucket; /* the bucket of its chain, or CUA_CHAINED_NONE */
};

struct cua__chained_totals {
	uint64_t reached, misplaced, twice, broken;
};

struct cua__chained_check {
	uint64_t entries;
	uint64_t groups;
	uint32_t *seen;                        /* a bit per entry, 0 at the start */
	struct cua__chained_segment *segments; /* of the buckets, then of the groups */
	struct cua__chained_totals *totals;    /* 0 at the start */
};

struct cua__chained_ops {
	/* if build: there are no readers */
	enum cua_status (*insert)(struct cua_context *ctx, const struct cua_chained_view *view,
				  int build, size_t n, const uint64_t *keys,
				  const uint64_t *values);
	enum cua_status (*find)(struct cua_context *ctx, const struct cua_chained_view *view,
				size_t n, const uint64_t *keys, uint64_t *values_out,
				uint8_t *found);
	/* pending->n and its totals are 0 at the start */
	enum cua_status (*count)(struct cua_context *ctx, const struct cua_chained_view *view,
				 size_t n, const uint64_t *keys, uint64_t *counts_out,
				 struct cua__chained_pending *pending);
	enum cua_status (*values)(struct cua_context *ctx, const struct cua_chained_view *view,
				  uint64_t key, uint64_t max, uint64_t *values_out,
				  struct cua__chained_found *found);
	enum cua_status (*size)(struct cua_context *ctx, const struct cua_chained_view *view,
				uint64_t *size);
	enum cua_status (*verify)(struct cua_context *ctx, const struct cua_chained_view *view,
				  const struct cua__chained_check *check);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_CHAINED_BACKEND_H */
