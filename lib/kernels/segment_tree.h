/* SPDX-License-Identifier: MIT */
/*
 * The kernels of segmented sums in the order of tree.h, as functions that every thread of a grid
 * calls. cuda/cuda_segment.cu makes kernels of them. There is a pair of kernels for each kind of
 * CUA__TREE_FLOAT_SUMS.
 *
 * In the first kernel, a warp processes up to 32 segments, each by its length:
 * - up to CUA__FIXED_TINY_PACKS packs: a lane sums the segment
 * - up to CUA__FIXED_GROUP_ROWS rows: a group of lanes
 * - up to the smallest chunk of the tree: the warp
 * - longer: the segment goes to a list, with an entry for each of its chunks
 *
 * In the second kernel, a warp processes an entry at a time. So the time does not depend on the
 * mixture of lengths. The order of the list depends on the scheduling, but changes no sum.
 *
 * Alignment: segments begin anywhere, but memory is read in aligned packs of 16 bytes. If a strip
 * begins k elements after a pack boundary, element e is read in position e + k. This shift is the
 * same in each row, so a lane still has whole columns of the tree, with their rows in order, but
 * not its own columns. After the last row, the lanes exchange columns once.
 *
 * Scope: blocks of the same device. A block has a multiple of 32 threads.
 * Progress, argument: see each kernel.
 */
#ifndef CUATOMIC_KERNELS_SEGMENT_TREE_H
#define CUATOMIC_KERNELS_SEGMENT_TREE_H

#include "kernels/segment_path.h"
#include "kernels/tree_block.h"

/*
 * Limits: packs of a segment that a lane sums alone, and rows of a segment that a group of lanes
 * sums.
 */
#define CUA__FIXED_TINY_PACKS 8u
#define CUA__FIXED_GROUP_ROWS 2
/* Lanes of a group: the columns of a row must fit in 32 registers per lane. */
#define CUA__FIXED_GROUP(T, C) (16 / sizeof(T) * sizeof(C) > 32 ? 16 : 8)

#define CUA__FIXED_APART CUA__TARGET static __attribute__((noinline, unused))

/* In global memory; zeros before the first kernel. */
struct cua__fixed_state {
	uint64_t entries; /* number of requested entries */
	uint64_t cut; /* entries at the list's end that are never written; 0 if offsets ascend */
};

/* A segment on the list, stored at the index of its first entry. */
struct cua__fixed_long {
	uint64_t segment;
	uint64_t arrived; /* number of summed chunks */
};

/*
 * An entry is the index of its segment's first entry, shifted left, plus the number of the chunk.
 */
#define CUA__FIXED_CHUNK_BITS 11
CUA_STATIC_ASSERT(1u << CUA__FIXED_CHUNK_BITS >= CUA__TREE_CHUNKS,
		  "a chunk's number has so many bits");

/*
 * Arrays in the scratch memory. capacity is the greatest number of entries that ascending offsets
 * make.
 */
struct cua__fixed_lists {
	struct cua__fixed_state *state;
	uint64_t capacity;
	uint64_t *entry;
	uint64_t *partial; /* CUA__TREE_WORDS words per entry */
	struct cua__fixed_long *list;
};

/*
 * The expected length of most segments, a constant of a kernel. The code for this length is
 * inlined, and the code for other lengths is called, so that it takes no registers from it.
 */
enum cua__fixed_length { CUA__FIXED_TINY, CUA__FIXED_FEW_ROWS, CUA__FIXED_LONGER };

/* The number of elements of the shortest strip. */
CUA_FN uint32_t cua__fixed_strip(size_t size)
{
	return (uint32_t)(CUA__TREE_ROWS * 32 * 16 / size);
}

/*
 * A segment on the list has more elements than the smallest chunk. With m elements it has at most m
 * / chunk + 1 chunks, hence at most 2 * (m / chunk).
 */
CUA_FN struct cua__fixed_lists cua__fixed_lists(const struct cua__segments *s)
{
	const uint64_t chunk = CUA__TREE_WARPS * cua__fixed_strip(s->size);
	struct cua__fixed_lists f;

	f.capacity = s->n / chunk * 2 + 1;
	f.state = (struct cua__fixed_state *)s->scratch;
	f.list = (struct cua__fixed_long *)(void *)(f.state + 1);
	f.entry = (uint64_t *)(void *)(f.list + f.capacity);
	f.partial = f.entry + f.capacity;
	return f;
}

CUA_FN size_t cua__fixed_lists_size(const struct cua__segments *s)
{
	struct cua__fixed_lists f = cua__fixed_lists(s);

	return sizeof(*f.state) + (size_t)f.capacity * (sizeof(*f.list) + sizeof(*f.entry) +
							CUA__TREE_WORDS * sizeof(*f.partial));
}

/*
 * Whether all packs with any of the n > 0 elements from `first` on lie inside the segments of this
 * call. Then all their bytes may be read.
 */
CUA_FORCE int cua__fixed_whole(const struct cua__path *p, uint64_t first, uint64_t n,
			       uint32_t shift, uint32_t per_pack)
{
	const uint64_t packs = (n + shift + per_pack - 1) / per_pack;

	return first - p->first >= shift && first - shift + packs * per_pack <= p->last;
}

/*
 * Appends the `chunks` entries of segment first + lane to the list, if chunks > 0. The whole warp
 * calls. Returns 0 if the list has no room for them, which happens only if the offsets do not
 * ascend. Then `cut` records the number of entries at the list's end that stay unwritten.
 */
CUA_FORCE int cua__fixed_list(const struct cua__fixed_lists *f, uint64_t first, uint32_t chunks)
{
	const uint32_t lane = cua_port_lane();
	uint32_t upto = chunks, step, some = cua_port_ballot(CUA__ALL_LANES, chunks != 0);
	uint64_t first_entry = 0;
	int listed;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint32_t below = cua_port_shuffle_u32(CUA__ALL_LANES, upto, lane - step);

		upto += lane >= step ? below : 0;
	}
	if (lane == 31)
		first_entry = cua_port_fetch_add_u64(&f->state->entries, upto, CUA_RELAXED,
						     CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	first_entry = cua_port_shuffle_u64(CUA__ALL_LANES, first_entry, 31) + upto - chunks;
	listed = first_entry + chunks <= f->capacity;
	if (chunks && listed) {
		CUA_WRITE(f->list[first_entry].segment, first + lane);
		CUA_WRITE(f->list[first_entry].arrived, 0);
	} else if (chunks && first_entry < f->capacity) {
		cua_port_max_u64(&f->state->cut, f->capacity - first_entry, CUA_RELAXED,
				 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
	some &= cua_port_ballot(CUA__ALL_LANES, listed);
	for (; some; some &= some - 1) {
		const uint32_t from = cua_port_ffs_u32(some) - 1;
		const uint64_t base = cua_port_shuffle_u64(CUA__ALL_LANES, first_entry, from);
		const uint32_t n = cua_port_shuffle_u32(CUA__ALL_LANES, chunks, from);

		for (uint32_t c = lane; c < n; c += 32)
			CUA_WRITE(f->entry[base + c], base << CUA__FIXED_CHUNK_BITS | c);
	}
	return listed;
}

/*
 * The number of segments that a warp processes at a time: a power of two, at most 32. Two limits
 * spread the work: every warp shall have segments, and if the average segment is shorter than a
 * chunk, so that warps sum most segments themselves, a warp shall have about a chunk of elements.
 */
CUA_FORCE uint32_t cua__fixed_at_once(const struct cua__path *p, uint64_t warps, uint32_t strip)
{
	const uint64_t elements = p->last - p->first, chunk = CUA__TREE_WARPS * (uint64_t)strip;
	uint32_t n = 32;

	while (n > 1 && (n * warps > p->segments ||
			 (n * elements > chunk * p->segments && elements < chunk * p->segments)))
		n /= 2;
	return n;
}

#define CUA__FIXED_TYPE_sum_f16 CUA_F16
#define CUA__FIXED_TYPE_sum_bf16 CUA_BF16
#define CUA__FIXED_TYPE_sum_f32 CUA_F32
#define CUA__FIXED_TYPE_sum_f64 CUA_F64
#define CUA__FIXED_TYPE_sum_c32 CUA_COMPLEX_F32
#define CUA__FIXED_TYPE_sum_c64 CUA_COMPLEX_F64

#define CUA__TREE_TEMPLATE "kernels/tree_block.tmpl.h"
#define CUA__TREE_WITH_FLOAT_SUMS
#include "kernels/tree_kinds.tmpl.h"

#define CUA__TREE_TEMPLATE "kernels/segment_tree.tmpl.h"
#define CUA__TREE_WITH_FLOAT_SUMS
#include "kernels/tree_kinds.tmpl.h"

#endif /* CUATOMIC_KERNELS_SEGMENT_TREE_H */
