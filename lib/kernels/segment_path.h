/* SPDX-License-Identifier: MIT */
/*
 * The merge path of segmented reductions on both backends, and a segment as a reduction of its own
 * in mode FIXED. As in reduce_backend.h, every operation of the merge path is a sum of u64 or f64,
 * or a maximum of unsigned keys. Zeros are the identity of all of them.
 */
#ifndef CUATOMIC_KERNELS_SEGMENT_PATH_H
#define CUATOMIC_KERNELS_SEGMENT_PATH_H

#include "backend/segment_backend.h"

/* ---- the merge path ---- */

/*
 * The merge path: elements first to last - 1 merged with the ends of the segments. Its items are
 * elements and ends; an end follows the elements of its segment. The position of an item is the
 * number of elements plus the number of ends before it. Equal parts of the path are equal work, for
 * any lengths of the segments.
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

/* Clamps first and last to n and first to last, so that every clamped offset is an index into x. */
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
 * Returns the number of ends among the first d items of the path; the other items are elements. The
 * bounds also hold if the offsets do not ascend: the result is at most segments, and d minus the
 * result is at most last - first.
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
 * The partial result of a CPU worker or a block for its part of the path. After all parts are
 * stored, the thread that called the workers, or the last block, reads the parts in order and
 * finishes the segments that the parts divide.
 */
struct cua__path_part {
	uint64_t first; /* the segment that is open at the part's start */
	uint64_t ends;  /* number of segments that end in the part */
	uint64_t head;  /* sum up to the first end, the end of segment `first` */
	uint64_t tail;  /* sum after the last end; the sum of all elements if ends is 0 */
};

/* ---- mode FIXED: the sum of a segment is that of tree.h ---- */

/*
 * Describes a segment's sum as a reduction of its own. The caller sets the elements and the result.
 */
CUA_FORCE struct cua__reduce cua__segment_reduce(const struct cua__segments *s)
{
	struct cua__reduce r;

	memset(&r, 0, sizeof(r));
	r.op = CUA_REDUCE_SUM;
	r.type = r.result_type = s->type;
	r.mode = CUA_REDUCE_FIXED;
	r.finish_mode = CUA_FINISH_LAST_BLOCK;
	r.kind = s->kind;
	r.keep = UINT64_MAX; /* keeps all bits of an element, with its sign */
	return r;
}

#endif /* CUATOMIC_KERNELS_SEGMENT_PATH_H */
