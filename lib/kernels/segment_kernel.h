/* SPDX-License-Identifier: MIT */
/*
 * The kernel of segmented reductions along the merge path (segment_path.h), as functions that every
 * thread of a grid calls. cuda/cuda_segment.cu makes kernels of them, with constants for op and
 * type. The order of the operations is that of mode FAST; segment_tree.h has that of mode FIXED.
 *
 * - The path is divided into equal parts, one for each block. A block searches the segment that is
 *   open at its part's start, then processes its part tile by tile. A tile has at most
 *   CUA__SEGMENT_ITEMS items for each thread.
 * - In a tile, each thread combines its consecutive items. A segmented scan over the block adds the
 *   sum of the lower threads since the last end. A thread with an end stores that segment's result.
 * - If no segment ends among the next items, the threads of the block stream the elements up to the
 *   next end, in packs.
 * - A segment that two blocks share is finished by the last block, which joins the parts in order.
 * So there is no atomic on a result: with the same grid and the same alignment of the elements,
 * each run gives the same bits.
 *
 * A "sum" below is the combination by any operation. An accumulator has 64 bits for every type.
 * Zeros are the identity of every operation.
 *
 * Scope: blocks of the same device. A block has a multiple of 32 threads, at most
 *   CUA__SEGMENT_BLOCK.
 * Progress, argument: see each kernel.
 */
#ifndef CUATOMIC_KERNELS_SEGMENT_KERNEL_H
#define CUATOMIC_KERNELS_SEGMENT_KERNEL_H

#include "kernels/segment_path.h"

#define CUA__SEGMENT_BLOCK 256u
#define CUA__SEGMENT_WARPS (CUA__SEGMENT_BLOCK / 32)
/* Path items of a tile per thread. Odd, so that the threads start in different banks. */
#ifndef CUA__SEGMENT_ITEMS
#define CUA__SEGMENT_ITEMS 7u
#endif

/* Shared memory of a block. */
struct cua__segment_shared {
	struct cua_block_scratch scratch;
	uint64_t warp_value[CUA__SEGMENT_WARPS];
	uint32_t warp_ended[CUA__SEGMENT_WARPS];
	uint64_t start;
	uint32_t warp_ends[CUA__SEGMENT_WARPS];
	/* of each end in the tile: the number of elements of the tile before it */
	uint32_t ends[CUA__SEGMENT_ITEMS * CUA__SEGMENT_BLOCK];
	uint64_t values[CUA__SEGMENT_ITEMS * CUA__SEGMENT_BLOCK];
};

/* ---- elements, accumulators, results ---- */

/* The accumulator of an element, given as bits. */
CUA_FORCE uint64_t cua__segment_element(enum cua_reduce_op op, enum cua_type type, uint64_t bits)
{
#define CUA__SEGMENT_ELEMENT(name, op_name, type_name, T, A, R, family, element, value, nothing)   \
	if (op == CUA_REDUCE_##op_name && type == CUA_##type_name) {                               \
		uint32_t low = (uint32_t)bits;                                                     \
		uint64_t result = 0;                                                               \
		T a;                                                                               \
		A v;                                                                               \
                                                                                                   \
		memcpy(&a, sizeof(a) == 4 ? (const void *)&low : (const void *)&bits, sizeof(a));  \
		v = (element);                                                                     \
		if (sizeof(v) == 4) {                                                              \
			memcpy(&low, &v, sizeof(v) == 4 ? 4 : 0);                                  \
			return low;                                                                \
		}                                                                                  \
		memcpy(&result, &v, sizeof(v));                                                    \
		return result;                                                                     \
	}
	CUA__REDUCE_SINGLE(CUA__SEGMENT_ELEMENT)
	return 0;
}

/* Keys of 32 bits are compared as 64-bit integers. */
CUA_FORCE uint64_t cua__segment_combine(enum cua_reduce_op op, enum cua_type type, uint64_t a,
					uint64_t b)
{
	if (op != CUA_REDUCE_SUM)
		return a > b ? a : b;
	if (type == CUA_F32 || type == CUA_F64)
		return cua__bits_f64(
			cua_port_add_rn_f64(cua__from_bits_f64(a), cua__from_bits_f64(b)));
	return a + b;
}

/* Stores the result of segment i. */
CUA_FORCE void cua__segment_put(enum cua_reduce_op op, enum cua_type type,
				const struct cua__segments *s, const struct cua__path *p,
				uint64_t i, uint64_t bits)
{
	int empty = op != CUA_REDUCE_SUM && cua__path_offset(p, i) >= cua__path_offset(p, i + 1);

#define CUA__SEGMENT_PUT(name, op_name, type_name, T, A, R, family, element, value, nothing)       \
	if (op == CUA_REDUCE_##op_name && type == CUA_##type_name) {                               \
		uint32_t low = (uint32_t)bits;                                                     \
		A t;                                                                               \
                                                                                                   \
		memcpy(&t, sizeof(t) == 4 ? (const void *)&low : (const void *)&bits, sizeof(t));  \
		CUA_WRITE(((R *)s->results)[i], empty ? (R)(nothing) : (R)(value));                \
		return;                                                                            \
	}
	CUA__REDUCE_SINGLE(CUA__SEGMENT_PUT)
}

/* ---- functions of a block ---- */

/*
 * An accumulator of consecutive items. If a segment ends among them, `ended` is 1, and v covers the
 * items after the last end only.
 */
struct cua__segment_sum {
	uint64_t v;
	uint32_t ended;
};

/*
 * A segmented scan over the block, in the order of the threads. `own` covers the items of the
 * calling thread. *before is set to the accumulator of the items of all lower threads, *total to
 * that of all threads. Both cover only the items after the last end among them.
 */
CUA_FORCE void cua__segment_scan(enum cua_reduce_op op, enum cua_type type,
				 struct cua__segment_shared *sh, const struct cua__segment_sum own,
				 struct cua__segment_sum *before, struct cua__segment_sum *total)
{
	uint32_t lane = cua_port_thread() % 32, warp = cua_port_thread() / 32;
	uint32_t warps = cua_port_block_size() / 32, step, w, below_ended;
	uint32_t ended = own.ended;
	uint64_t v = own.v, below;

	for (step = 1; step < 32; step *= 2) {
		below = cua_port_shuffle_u64(CUA__ALL_LANES, v, lane - step);
		below_ended = cua_port_shuffle_u32(CUA__ALL_LANES, ended, lane - step);
		if (lane >= step) {
			if (!ended)
				v = cua__segment_combine(op, type, below, v);
			ended |= below_ended;
		}
	}
	below = cua_port_shuffle_u64(CUA__ALL_LANES, v, lane - 1);
	below_ended = cua_port_shuffle_u32(CUA__ALL_LANES, ended, lane - 1);
	if (lane == 0)
		below = below_ended = 0;
	if (lane == 31) {
		CUA_WRITE(sh->warp_value[warp], v);
		CUA_WRITE(sh->warp_ended[warp], ended);
	}
	cua_port_sync_block();
	v = before->v = 0;
	ended = before->ended = 0;
	for (w = 0; w < warps; w++) {
		uint64_t warp_v = CUA_READ(sh->warp_value[w]);
		uint32_t warp_ended = CUA_READ(sh->warp_ended[w]);

		if (w == warp) {
			before->v = below_ended ? below : cua__segment_combine(op, type, v, below);
			before->ended = ended | below_ended;
		}
		v = warp_ended ? warp_v : cua__segment_combine(op, type, v, warp_v);
		ended |= warp_ended;
	}
	total->v = v;
	total->ended = ended;
	cua_port_sync_block();
}

/* cua__path_search by a warp, 32 probes a step. Every lane of the warp calls. */
CUA_FN uint64_t cua__path_search_warp(const struct cua__path *p, uint64_t d)
{
	uint64_t elements = p->last - p->first;
	uint64_t low = d > elements ? d - elements : 0, high = d < p->segments ? d : p->segments;

	while (low < high) {
		uint64_t step = (high - low) / 32 + 1, at = low + (cua_port_lane() + 1) * step - 1;
		int before = at < high && cua__path_offset(p, at + 1) - p->first + at < d;
		uint32_t count = cua_port_popc_u32(cua_port_ballot(CUA__ALL_LANES, before));

		/*
		 * with ascending offsets, position low + (count + 1) * step - 1 is the first probe
		 * not before d
		 */
		low += count * step;
		if (high - low >= step)
			high = low + step - 1;
	}
	return low;
}

/* The accumulator of element j of a pack. */
CUA_FORCE uint64_t cua__segment_packed(enum cua_reduce_op op, enum cua_type type,
				       const struct cua__pack *v, uint32_t j)
{
	return cua__segment_element(op, type, cua__pack_element(cua__element_size(type), v, j));
}

/* Combines this thread's share of elements begin to end - 1. No segment ends among them. */
CUA_FORCE uint64_t cua__segment_stream(enum cua_reduce_op op, enum cua_type type, const void *x,
				       uint64_t begin, uint64_t end)
{
	enum { LOADS = 8 }; /* in flight per thread */
	const size_t size = cua__element_size(type);
	const uint32_t per_pack = (uint32_t)(16 / size), thread = cua_port_thread();
	const uint32_t threads = cua_port_block_size();
	const uint64_t head = (-((uintptr_t)x + begin * size) & 15) / size;
	const struct cua__pack *packs;
	uint64_t t[2] = {0, 0}, at, n, left;

	if (head < end - begin) {
		if (thread < head)
			t[0] = cua__segment_element(op, type,
						    cua__element_load(size, x, begin + thread));
		begin += head;
	}
	packs = (const struct cua__pack *)(const void *)((const char *)x + begin * size);
	n = ((uintptr_t)packs & 15) == 0 ? (end - begin) / per_pack : 0;
	for (at = thread; at < n; at += threads * left) {
		struct cua__pack v[LOADS];
		uint32_t l, j;

		/* all LOADS packs, or a single pack near the end */
		left = n - at > threads * (LOADS - 1) ? LOADS : 1;
		if (left == LOADS) {
			for (l = 0; l < LOADS; l++)
				v[l] = packs[at + l * threads];
			for (l = 0; l < LOADS; l++)
				for (j = 0; j < per_pack; j++)
					t[j % 2] = cua__segment_combine(
						op, type, t[j % 2],
						cua__segment_packed(op, type, &v[l], j));
		} else {
			v[0] = packs[at];
			for (j = 0; j < per_pack; j++)
				t[j % 2] = cua__segment_combine(
					op, type, t[j % 2],
					cua__segment_packed(op, type, &v[0], j));
		}
	}
	for (at = begin + n * per_pack + thread; at < end; at += threads)
		t[0] = cua__segment_combine(
			op, type, t[0],
			cua__segment_element(op, type, cua__element_load(size, x, at)));
	return cua__segment_combine(op, type, t[0], t[1]);
}

/* ---- mode FAST ---- */

/*
 * Whether the end of segment i + k is among the next `items` items of the path. Segment i is open
 * and j is the next element. *at is set to the number of elements from j to this end.
 */
CUA_FORCE int cua__segment_end_within(const struct cua__path *p, uint64_t i, uint64_t j, uint32_t k,
				      uint64_t items, uint64_t *at)
{
	uint64_t end;

	if (i + k >= p->segments)
		return 0;
	end = cua__path_offset(p, i + k + 1);
	*at = end > j ? end - j : 0;
	return *at + k < items;
}

/* The progress of a block in its part of the path. */
struct cua__segment_position {
	uint64_t first; /* the first segment of the part */
	uint64_t i, j;  /* the open segment, and the next element */
	uint64_t carry; /* the sum of the open segment so far */
	uint64_t *head; /* receives the sum of segment `first` */
};

/*
 * Processes a tile of the path: at most `items` items from *from on. Stores the results of the
 * segments that end in the tile, except that of segment from->first: its first elements may be in
 * an earlier part, so its sum is stored in *from->head. Advances *from, and returns the number of
 * items.
 */
CUA_FORCE uint32_t cua__segment_tile(enum cua_reduce_op op, enum cua_type type,
				     const struct cua__segments *s, const struct cua__path *p,
				     struct cua__segment_shared *sh,
				     struct cua__segment_position *from, uint32_t items)
{
	const size_t size = cua__element_size(type);
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint32_t k, ends = 0, m, d, low, high, at, q, steps, w, ended = 0, head_at = 0;
	const uint64_t i = from->i, j = from->j;
	struct cua__segment_sum own, before, total;
	uint64_t v = 0, head_v = 0, raw[CUA__SEGMENT_ITEMS];

	/*
	 * loads `items` elements, all in flight at once; ends in the tile may leave some of them to
	 * the next tile
	 */
	for (q = 0; q < CUA__SEGMENT_ITEMS; q++) {
		uint32_t element = q * threads + thread;

		raw[q] = element < items && j + element < p->last
				 ? cua__element_load(size, s->x, j + element)
				 : 0;
	}
	/*
	 * Each thread searches an end, until an end is not in the tile. If the offsets ascend, no
	 * later end is in it.
	 */
	for (k = thread;; k += threads) {
		uint64_t where = 0;
		int within = cua__segment_end_within(p, i, j, k, items, &where);
		uint32_t others = ~cua_port_ballot(CUA__ALL_LANES, within);

		if (within)
			CUA_WRITE(sh->ends[k], (uint32_t)where);
		if (thread % 32 == 0)
			CUA_WRITE(sh->warp_ends[thread / 32],
				  others ? cua_port_ffs_u32(others) - 1 : 32);
		if (cua_port_sync_block_or(!within))
			break;
		ends += threads;
	}
	for (w = 0; w < threads / 32; w++) {
		uint32_t more = CUA_READ(sh->warp_ends[w]);

		ends += more;
		if (more < 32)
			break;
	}
	m = items - ends;
	if (m > p->last - j)
		m = (uint32_t)(p->last - j);
	for (q = 0; q < CUA__SEGMENT_ITEMS; q++)
		if (q * threads + thread < m)
			CUA_WRITE(sh->values[q * threads + thread],
				  cua__segment_element(op, type, raw[q]));
	cua_port_sync_block();

	/* the items of the tile that this thread processes */
	d = thread * CUA__SEGMENT_ITEMS;
	if (d > ends + m)
		d = ends + m;
	steps = ends + m - d < CUA__SEGMENT_ITEMS ? ends + m - d : CUA__SEGMENT_ITEMS;
	low = d > m ? d - m : 0;
	high = d < ends ? d : ends;
	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (CUA_READ(sh->ends[mid]) + mid < d)
			low = mid + 1;
		else
			high = mid;
	}
	at = d - low;
	for (q = 0; q < CUA__SEGMENT_ITEMS; q++) {
		if (q >= steps)
			break;
		if (low < ends && (at >= m || CUA_READ(sh->ends[low]) <= at)) {
			if (ended) {
				cua__segment_put(op, type, s, p, i + low, v);
			} else {
				head_v = v;
				head_at = low;
			}
			ended = 1;
			v = 0;
			low++;
		} else {
			v = cua__segment_combine(op, type, v, CUA_READ(sh->values[at]));
			at++;
		}
	}
	own.v = v;
	own.ended = ended;
	cua__segment_scan(op, type, sh, own, &before, &total);
	if (ended) {
		if (!before.ended)
			before.v = cua__segment_combine(op, type, from->carry, before.v);
		head_v = cua__segment_combine(op, type, before.v, head_v);
		if (i + head_at == from->first)
			CUA_WRITE(*from->head, head_v);
		else
			cua__segment_put(op, type, s, p, i + head_at, head_v);
	}
	from->carry = total.ended ? total.v : cua__segment_combine(op, type, from->carry, total.v);
	from->i += ends;
	from->j += m;
	return ends + m;
}

/*
 * Finishes the first segment that ends in each of the n parts: combines the tails of earlier parts
 * since the last end, in the order of the parts, with the part's head. Called by a whole block.
 */
CUA_FORCE void cua__segment_join(enum cua_reduce_op op, enum cua_type type,
				 const struct cua__segments *s, const struct cua__path *path,
				 struct cua__segment_shared *sh, uint64_t n)
{
	const struct cua__path_part *parts = (const struct cua__path_part *)s->scratch;
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	/* each thread reads neighbours, to keep the order */
	uint64_t k = n / threads * thread + (thread < n % threads ? thread : n % threads), i;
	uint64_t end = k + n / threads + (thread < n % threads), tail;
	struct cua__segment_sum own = {0, 0}, before, total;

	for (i = k; i < end; i++) {
		tail = CUA_READ(parts[i].tail);
		if (CUA_READ(parts[i].ends)) {
			own.ended = 1;
			own.v = tail;
		} else {
			own.v = cua__segment_combine(op, type, own.v, tail);
		}
	}
	cua__segment_scan(op, type, sh, own, &before, &total);
	for (i = k; i < end; i++) {
		tail = CUA_READ(parts[i].tail);
		if (CUA_READ(parts[i].ends)) {
			cua__segment_put(
				op, type, s, path, CUA_READ(parts[i].first),
				cua__segment_combine(op, type, before.v, CUA_READ(parts[i].head)));
			before.v = tail;
		} else {
			before.v = cua__segment_combine(op, type, before.v, tail);
		}
	}
}

/*
 * A whole call. A block stores the two sums that it cannot finish. Head is the sum of the segment
 * that is open at the part's start, up to the end of this segment. Tail is the sum of the segment
 * that is open at the part's end. The last block joins heads and tails in order.
 *
 * Progress: no block waits for another block.
 *
 * Argument: each block stores its part and then adds 1 to `arrived`, with acquire and release at
 * device scope. These read-modify-writes form a single release sequence. So the block that reads
 * blocks - 1 has acquired all parts; its barrier passes them to its threads. It resets the count to
 * zero.
 */
CUA_FORCE void cua__segment_fast(enum cua_reduce_op op, enum cua_type type,
				 const struct cua__segments *s, struct cua__segment_shared *sh)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint64_t block = cua_port_block(), blocks = cua_port_grid_size();
	struct cua__path_part *parts = (struct cua__path_part *)s->scratch, *part = &parts[block];
	struct cua__path path;
	struct cua__segment_position at;
	uint64_t length, d, end, last = 0;

	cua__path_init(&path, s);
	length = cua__path_length(&path);
	d = length / blocks * block + (block < length % blocks ? block : length % blocks);
	end = d + length / blocks + (block < length % blocks);
	if (thread < 32) {
		const uint64_t i = cua__path_search_warp(&path, d);

		if (thread == 0) {
			CUA_WRITE(sh->start, i);
			/* if the offsets do not ascend, a part may have ends without a head */
			CUA_WRITE(part->head, (uint64_t)0);
		}
	}
	cua_port_sync_block();
	at.first = at.i = CUA_READ(sh->start);
	at.j = d - at.i + path.first;
	at.carry = 0;
	at.head = &part->head;
	while (d < end) {
		uint32_t tile = CUA__SEGMENT_ITEMS * threads;
		uint32_t items = end - d < tile ? (uint32_t)(end - d) : tile;
		uint64_t next =
			at.i < path.segments ? cua__path_offset(&path, at.i + 1) : path.last;

		if (next > at.j && next - at.j >= items) {
			/* no end among the next items: stream the elements up to the next end */
			uint64_t run = next - at.j < end - d ? next - at.j : end - d;
			struct cua__segment_sum own = {0, 0}, before, total;

			own.v = cua__segment_stream(op, type, s->x, at.j, at.j + run);
			cua__segment_scan(op, type, sh, own, &before, &total);
			at.carry = cua__segment_combine(op, type, at.carry, total.v);
			at.j += run;
			d += run;
			continue;
		}
		d += cua__segment_tile(op, type, s, &path, sh, &at, items);
	}
	/* any thread may have stored the head; the barrier makes the store visible to thread 0 */
	cua_port_sync_block();
	if (thread == 0) {
		CUA_WRITE(part->first, at.first);
		CUA_WRITE(part->ends, at.i - at.first);
		CUA_WRITE(part->tail, at.carry);
		last = (uint64_t)cua__finish_arrive((struct cua_finish *)s->control, blocks);
	}
	if (!cua__block_broadcast(last, &sh->scratch))
		return;

	cua__segment_join(op, type, s, &path, sh, blocks);
}

#endif /* CUATOMIC_KERNELS_SEGMENT_KERNEL_H */
