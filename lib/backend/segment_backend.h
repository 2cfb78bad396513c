/* SPDX-License-Identifier: MIT */
/* Declarations that both backends' segmented reductions share: the calls and the tables. */
#ifndef CUATOMIC_BACKEND_SEGMENT_BACKEND_H
#define CUATOMIC_BACKEND_SEGMENT_BACKEND_H

#include "backend/reduce_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checked call. All pointers are as the backend addresses them. */
struct cua__segments {
	enum cua_reduce_op op; /* SUM, MIN or MAX */
	enum cua_type type;
	size_t size; /* bytes of an element */
	/*
	 * If not NONE: sums each segment by the tree. Only sums of floats need it; other results do
	 * not depend on the order.
	 */
	enum cua__tree_kind kind;
	uint64_t n;
	const void *x;
	uint64_t segments;
	const uint64_t *count; /* min(*count, segments) segments; NULL: segments */
	const uint64_t *offsets;
	/*
	 * A bit for each pending segment; NULL: all segments are pending. The other segments have
	 * their results, and only the offsets of pending segments and of their successors are set.
	 */
	const uint32_t *pending;
	void *results;
	void *scratch; /* of the size that segments_scratch returned */
	void *control; /* CUA__SEGMENT_CONTROL_BYTES, zeros before and after a call */
};

/* A checked search for runs of equal keys. */
struct cua__runs {
	size_t key_size; /* 4 or 8 */
	uint64_t n;      /* not 0 */
	const void *keys;
	uint64_t capacity;
	void *unique_keys;
	uint64_t *offsets; /* min(capacity, runs) + 1; the last ends the last stored run */
	uint64_t *total;   /* number of all runs */
	uint64_t *count;   /* the user's copy of *total */
	void *scratch;
};

struct cua__segment_ops {
	size_t (*segments_scratch)(struct cua_context *ctx, const struct cua__segments *s);
	size_t (*runs_scratch)(struct cua_context *ctx, const struct cua__runs *r,
			       const struct cua__segments *s);
	/* segments > 0 */
	enum cua_status (*segments)(struct cua_context *ctx, const struct cua__segments *s);
	/*
	 * Finds the runs; `s` describes their elements. If it reduces some of them in the same
	 * pass, it sets s->pending.
	 */
	enum cua_status (*runs)(struct cua_context *ctx, const struct cua__runs *r,
				struct cua__segments *s);
	/*
	 * If the segments have fewer elements than this on average, mode FAST uses the tree too,
	 * because it is faster.
	 */
	size_t tree_below;
};

/* Offset in the context's control block. */
#define CUA__SEGMENT_CONTROL 512
#define CUA__SEGMENT_CONTROL_BYTES 64

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_SEGMENT_BACKEND_H */
