/* SPDX-License-Identifier: MIT */
/*
 * What both backends' segmented reductions share: the calls, the merge path, and the operations as
 * accumulators of 64 bits. As in reduce.h every operation is a sum of u64 or f64, or the maximum of
 * unsigned keys, all with zeros as the identity.
 */
#ifndef CUATOMIC_BACKEND_SEGMENT_BACKEND_H
#define CUATOMIC_BACKEND_SEGMENT_BACKEND_H

#include "backend/internal.h"
#include "kernels/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checked call, with everything as the backend addresses it. */
struct cua__segments {
	enum cua_reduce_op op; /* SUM, MIN or MAX */
	enum cua_type type;
	size_t size; /* of an element */
	/* by the tree of mode FIXED, if not NONE; only sums of floats, the others need none */
	enum cua__tree_kind kind;
	uint64_t n;
	const void *x;
	uint64_t segments;
	const uint64_t
		*count; /* memory of the backend: there are min(*count, segments); NULL: segments */
	const uint64_t *offsets;
	void *results;
	void *scratch; /* as large as segments_scratch said */
	void *control; /* CUA__SEGMENT_CONTROL_BYTES of zeros, to be left as zeros */
};

/* A checked search for runs of equal keys. */
struct cua__runs {
	size_t key_size; /* 4 or 8 */
	uint64_t n;      /* not 0 */
	const void *keys;
	uint64_t capacity;
	void *unique_keys;
	uint64_t *
		offsets; /* min(capacity, runs) + 1 of them: the last one ends the last run with a place */
	uint64_t *total; /* how many runs there are */
	uint64_t *count; /* the same for the user */
	void *scratch;
};

struct cua__segment_ops {
	size_t (*segments_scratch)(struct cua_context *ctx, const struct cua__segments *s);
	size_t (*runs_scratch)(struct cua_context *ctx, const struct cua__runs *r);
	/* segments > 0 */
	enum cua_status (*segments)(struct cua_context *ctx, const struct cua__segments *s);
	enum cua_status (*runs)(struct cua_context *ctx, const struct cua__runs *r);
	/* segments of fewer elements, on average, are summed faster by the tree, whatever the mode */
	size_t tree_below;
};

/* In the context's control memory. */
#define CUA__SEGMENT_CONTROL 512
#define CUA__SEGMENT_CONTROL_BYTES 64

/* ---- the merge path ---- */

/*
 * The elements first to last - 1 and the ends of the segments, merged: an end comes after the elements of
 * its segment. Its place in this order is the number of elements plus the number of ends before it. Equal
 * parts of the path are equal work, whatever the lengths are.
 */
struct cua__path {
	const uint64_t *offsets;
	uint64_t segments;
	uint64_t first, last;
};

CUA_FORCE uint64_t cua__path_offset(const struct cua__path *p, uint64_t i)
{
	uint64_t at = p->offsets[i];

	return at < p->first ? p->first : at > p->last ? p->last : at;
}

/* first and last are clamped to n and to their order, so that every clamped offset is a place in x. */
CUA_FORCE void cua__path_init(struct cua__path *p, const struct cua__segments *s)
{
	uint64_t first, last;

	p->offsets = s->offsets;
	p->segments = s->segments;
	if (s->count && *s->count < p->segments)
		p->segments = *s->count;
	first = p->segments ? s->offsets[0] : 0;
	last = p->segments ? s->offsets[p->segments] : 0;
	p->last = last < s->n ? last : s->n;
	p->first = first < p->last ? first : p->last;
}

CUA_FORCE uint64_t cua__path_length(const struct cua__path *p)
{
	return p->segments + (p->last - p->first);
}

/*
 * How many ends are among the first d places of the path; the others are elements. The bounds hold also
 * where the offsets do not ascend: the result is at most segments, and leaves at most last - first.
 */
CUA_FN uint64_t cua__path_search(const struct cua__path *p, uint64_t d)
{
	uint64_t elements = p->last - p->first;
	uint64_t low = d > elements ? d - elements : 0, high = d < p->segments ? d : p->segments;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (cua__path_offset(p, mid + 1) - p->first + mid < d)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * What a worker or a block tells of its part of the path. Whoever is last goes through the parts in order
 * and finishes the segments that were cut.
 */
struct cua__path_part {
	uint64_t first; /* the segment that is open where the part begins */
	uint64_t ends;  /* how many segments end in the part */
	uint64_t head;  /* up to the first end, which finishes segment `first` */
	uint64_t tail;  /* after the last end, or everything if there is none */
};

/* ---- mode FIXED: the sum of a segment is that of tree.h ---- */

/* A segment's sum as a reduction by itself; elements and result are to be filled in. */
CUA_FORCE struct cua__reduce cua__segment_reduce(const struct cua__segments *s)
{
	struct cua__reduce r;

	memset(&r, 0, sizeof(r));
	r.op = CUA_REDUCE_SUM;
	r.type = r.result_type = s->type;
	r.mode = CUA_REDUCE_FIXED;
	r.finish_mode = CUA_FINISH_LAST_BLOCK;
	r.kind = s->kind;
	r.keep = UINT64_MAX; /* of an element's bits: the sign, too */
	return r;
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_SEGMENT_BACKEND_H */
