/* SPDX-License-Identifier: MIT */
/*
 * The kernels of segmented sums in the order of tree.h, as functions that every thread of a grid
 * calls. cuda/cuda_segment.cu makes kernels of them. There is a pair of kernels for each kind of
 * CUA__TREE_FLOAT_SUMS.
 *
 * The first kernel sums short segments. A warp processes up to 32 segments, each by its length:
 * - up to CUA__FIXED_TINY_PACKS packs: a lane sums the segment
 * - up to CUA__FIXED_GROUP_ROWS rows: a group of lanes
 * - up to the smallest chunk of the tree: the warp
 * - longer: the segment goes to a list, with an entry for each of its chunks
 * If the average segment is long, the list has every segment that is not tiny: the warps of the
 * second kernel get equal shares of the list, for any mixture of lengths.
 *
 * In the second kernel, a warp sums a strip of the list at a time, and stores the partial result.
 * The third kernel combines the partial results of each listed segment. The order of the list
 * depends on the scheduling, but changes no sum.
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

/* Most chunks of a segment whose partial results a lane combines, and a warp. */
#ifndef CUA__FIXED_LANE_CHUNKS
#define CUA__FIXED_LANE_CHUNKS 4u
#define CUA__FIXED_WARP_CHUNKS 32u
#endif

#define CUA__FIXED_APART CUA__TARGET static __attribute__((noinline, unused))

/* In global memory; zeros before the first kernel. */
struct cua__fixed_state {
	uint64_t entries; /* number of requested entries */
	uint64_t cut; /* entries at the list's end that are never written; 0 if offsets ascend */
};

/* An entry of the list: a chunk of a segment. The entries of a segment are consecutive. */
struct cua__fixed_entry {
	uint64_t first; /* the chunk's first element, as an index into x */
	uint64_t n;     /* elements of the chunk */
	uint64_t segment;
	uint32_t rows;   /* of a strip */
	uint32_t chunks; /* number of chunks of the segment, in its first entry; otherwise 0 */
};

/*
 * Arrays in the scratch memory. capacity is the greatest number of entries that ascending offsets
 * make.
 */
struct cua__fixed_lists {
	struct cua__fixed_state *state;
	uint64_t capacity;
	struct cua__fixed_entry *entry;
	uint64_t *partial; /* the values of the CUA__TREE_WARPS strips of each entry */
};

/* Shared memory of a block of the third kernel. It needs no initialization. */
struct cua__fixed_scratch {
	uint64_t warps[CUA__TREE_WARPS][CUA__TREE_WORDS];
	uint32_t of_block[CUA__TREE_WARPS]; /* lanes whose segments the block combines */
};

/*
 * The expected length of most segments, a constant of a kernel. The code for this length is
 * inlined, and the code for other lengths is called, so that it takes no registers from it.
 */
enum cua__fixed_length {
	CUA__FIXED_TINY,
	CUA__FIXED_FEW_ROWS,
	CUA__FIXED_LONGER,
	CUA__FIXED_LISTED /* longer still: every segment that is not tiny goes to the list */
};

/* The number of elements of the shortest strip. */
CUA_FN uint32_t cua__fixed_strip(size_t size)
{
	return (uint32_t)(CUA__TREE_ROWS * 32 * 16 / size);
}

/*
 * Without LISTED, a segment on the list has more elements than the smallest chunk. With m elements
 * it has at most m / chunk + 1 chunks, hence at most 2 * (m / chunk).
 */
CUA_FN struct cua__fixed_lists cua__fixed_lists(const struct cua__segments *s,
						enum cua__fixed_length most)
{
	const uint64_t chunk = CUA__TREE_WARPS * cua__fixed_strip(s->size), full = s->n / chunk;
	struct cua__fixed_lists f;

	f.capacity = full + (most == CUA__FIXED_LISTED ? s->segments : full) + 1;
	f.state = (struct cua__fixed_state *)s->scratch;
	f.entry = (struct cua__fixed_entry *)(void *)(f.state + 1);
	f.partial = (uint64_t *)(void *)(f.entry + f.capacity);
	return f;
}

CUA_FN size_t cua__fixed_lists_size(const struct cua__segments *s, enum cua__fixed_length most)
{
	struct cua__fixed_lists f = cua__fixed_lists(s, most);
	const int two = s->kind == CUA__TREE_sum_c32 || s->kind == CUA__TREE_sum_c64;
	const size_t value = two ? 2 * sizeof(*f.partial) : sizeof(*f.partial);

	return sizeof(*f.state) + (size_t)f.capacity * (sizeof(*f.entry) + CUA__TREE_WARPS * value);
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
 * Appends the entries of segment first + lane to the list, if `listed`. The segment has n elements,
 * n > 0, from `begin` on. The whole warp calls. Returns 0 if the list has no room for the entries,
 * which happens only if the offsets do not ascend. Then `cut` records the number of entries at the
 * list's end that stay unwritten.
 */
CUA_FORCE int cua__fixed_list(const struct cua__fixed_lists *f, size_t size, uint64_t first,
			      uint64_t begin, uint64_t n, int listed)
{
	const struct cua__tree_shape shape = cua__tree_shape(listed ? n : 0, size);
	const uint32_t lane = cua_port_lane(), chunks = listed ? (uint32_t)shape.chunks : 0;
	uint32_t upto = chunks, step, some = cua_port_ballot(CUA__ALL_LANES, listed);
	uint64_t first_entry = 0;
	int fits;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint32_t below = cua_port_shuffle_u32(CUA__ALL_LANES, upto, lane - step);

		upto += lane >= step ? below : 0;
	}
	if (lane == 31)
		first_entry = cua_port_fetch_add_u64(&f->state->entries, upto, CUA_RELAXED,
						     CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	first_entry = cua_port_shuffle_u64(CUA__ALL_LANES, first_entry, 31) + upto - chunks;
	fits = first_entry + chunks <= f->capacity;
	if (listed && !fits && first_entry < f->capacity)
		cua_port_max_u64(&f->state->cut, f->capacity - first_entry, CUA_RELAXED,
				 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	some &= cua_port_ballot(CUA__ALL_LANES, fits);
	for (; some; some &= some - 1) {
		const uint32_t from = cua_port_ffs_u32(some) - 1;
		const uint64_t base = cua_port_shuffle_u64(CUA__ALL_LANES, first_entry, from);
		const uint64_t x = cua_port_shuffle_u64(CUA__ALL_LANES, begin, from);
		const uint64_t all = cua_port_shuffle_u64(CUA__ALL_LANES, n, from);
		const uint32_t rows =
			cua_port_shuffle_u32(CUA__ALL_LANES, (uint32_t)shape.rows, from);
		const uint32_t m = cua_port_shuffle_u32(CUA__ALL_LANES, chunks, from);
		const uint64_t chunk = (uint64_t)rows * (CUA__TREE_WARPS * 32 * 16 / size);

		for (uint32_t c = lane; c < m; c += 32) {
			struct cua__fixed_entry *e = &f->entry[base + c];

			CUA_WRITE(e->first, x + c * chunk);
			CUA_WRITE(e->n, all - c * chunk < chunk ? all - c * chunk : chunk);
			CUA_WRITE(e->segment, first + from);
			CUA_WRITE(e->rows, rows);
			CUA_WRITE(e->chunks, c ? 0u : m);
		}
	}
	return fits;
}

/* The number of entries that were written. */
CUA_FORCE uint64_t cua__fixed_entries(const struct cua__fixed_lists *f)
{
	const uint64_t entries = CUA_READ(f->state->entries), cut = CUA_READ(f->state->cut);

	return entries < f->capacity - cut ? entries : f->capacity - cut;
}

/*
 * The strip of step t: a permutation of the strips of an entry, by a hash of the entry. A segment's
 * last chunk may lack its last strips. Without the hash, the same warps would have no elements each
 * time, because a warp's steps are a multiple of CUA__TREE_WARPS apart.
 */
CUA_FORCE uint64_t cua__fixed_strip_at(uint64_t t)
{
	return t ^
	       (uint32_t)(t / CUA__TREE_WARPS) * 0x9e3779b1u / (UINT32_MAX / CUA__TREE_WARPS + 1);
}

/*
 * The number of segments that a warp processes at a time: a power of two, at most 32. Two limits
 * spread the work: every warp shall have segments, and if the average segment is shorter than a
 * chunk, so that warps sum most segments themselves, a warp shall have about a chunk of elements.
 * If most segments are listed, each warp has segments once.
 */
CUA_FORCE uint32_t cua__fixed_at_once(const struct cua__path *p, uint64_t warps, uint32_t strip,
				      enum cua__fixed_length most)
{
	const uint64_t elements = p->last - p->first, chunk = CUA__TREE_WARPS * (uint64_t)strip;
	uint32_t n = 32;

	if (most == CUA__FIXED_LISTED) {
		while (n > 1 && n / 2 * warps >= p->segments)
			n /= 2;
		return n;
	}
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
