/* SPDX-License-Identifier: MIT */
/*
 * The kernels of segmented reductions, as functions that every thread of a grid calls: cuda/segment.cu makes
 * kernels of them. op and type are constants there.
 *
 * Accumulators are 64 bits whatever they hold, and zeros are the identity of each.
 *
 * Scope: blocks of one device. A block has a multiple of 32 threads, at most CUA__SEGMENT_BLOCK.
 * Progress and argument: see each kernel.
 */
#ifndef CUATOMIC_LIB_SEGMENT_KERNEL_H
#define CUATOMIC_LIB_SEGMENT_KERNEL_H

#include "segment.h"
#include "tree_block.h"

#define CUA__SEGMENT_BLOCK 256u
#define CUA__SEGMENT_WARPS (CUA__SEGMENT_BLOCK / 32)
/* Places of the path a thread takes of a tile. Odd, so that the threads start in different banks. */
#ifndef CUA__SEGMENT_ITEMS
#define CUA__SEGMENT_ITEMS 7u
#endif
#define CUA__SEGMENT_FULL 0xffffffffu

/* Shared memory of a block. */
struct cua__segment_shared {
	struct cua_block_scratch scratch;
	uint64_t warp_value[CUA__SEGMENT_WARPS];
	uint32_t warp_ended[CUA__SEGMENT_WARPS];
	uint64_t start;
	uint32_t warp_ends[CUA__SEGMENT_WARPS];
	/* counted from the tile's first element */
	uint32_t ends[CUA__SEGMENT_ITEMS * CUA__SEGMENT_BLOCK];
	uint64_t values[CUA__SEGMENT_ITEMS * CUA__SEGMENT_BLOCK];
};

/* 16 bytes of elements. */
struct cua__segment_pack {
	uint32_t word[4];
} __attribute__((aligned(16), may_alias));

/* ---- elements, accumulators, results ---- */

CUA_FORCE uint64_t cua__segment_raw(size_t size, const void *x, uint64_t i)
{
	return size == 4 ? (uint64_t)((const cua__raw32 *)x)[i] : ((const cua__raw64 *)x)[i];
}

/* The accumulator of one element, given as bits. */
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

/* Keys of 32 bits are compared as those of 64. */
CUA_FORCE uint64_t cua__segment_combine(enum cua_reduce_op op, enum cua_type type, uint64_t a,
					uint64_t b)
{
	if (op != CUA_REDUCE_SUM)
		return a > b ? a : b;
	if (type == CUA_F32 || type == CUA_F64)
		return cua__bits_f64(cua_port_add_rn_f64(cua__from_bits_f64(a),
							 cua__from_bits_f64(b)));
	return a + b;
}

/* Stores the result of segment i. */
CUA_FORCE void cua__segment_put(enum cua_reduce_op op, enum cua_type type,
				const struct cua__segments *s, const struct cua__path *p, uint64_t i,
				uint64_t bits)
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

/* ---- what a block has in common ---- */

/*
 * Each thread has an accumulator and whether a segment ended before it. *before_v and *before_ended become
 * the same of all threads below, *total_v and *total_ended of all threads; a segment's end makes what
 * was before it forgotten.
 */
CUA_FORCE void cua__segment_scan(enum cua_reduce_op op, enum cua_type type,
				 struct cua__segment_shared *sh, uint64_t v, uint32_t ended,
				 uint64_t *before_v, uint32_t *before_ended, uint64_t *total_v,
				 uint32_t *total_ended)
{
	uint32_t lane = cua_port_thread() % 32, warp = cua_port_thread() / 32;
	uint32_t warps = cua_port_block_size() / 32, step, w, below_ended;
	uint64_t below;

	for (step = 1; step < 32; step *= 2) {
		below = cua_port_shuffle_u64(CUA__SEGMENT_FULL, v, lane - step);
		below_ended = cua_port_shuffle_u32(CUA__SEGMENT_FULL, ended, lane - step);
		if (lane >= step) {
			if (!ended)
				v = cua__segment_combine(op, type, below, v);
			ended |= below_ended;
		}
	}
	below = cua_port_shuffle_u64(CUA__SEGMENT_FULL, v, lane - 1);
	below_ended = cua_port_shuffle_u32(CUA__SEGMENT_FULL, ended, lane - 1);
	if (lane == 0)
		below = below_ended = 0;
	if (lane == 31) {
		CUA_WRITE(sh->warp_value[warp], v);
		CUA_WRITE(sh->warp_ended[warp], ended);
	}
	cua_port_sync_block();
	v = *before_v = 0;
	ended = *before_ended = 0;
	for (w = 0; w < warps; w++) {
		uint64_t warp_v = CUA_READ(sh->warp_value[w]);
		uint32_t warp_ended = CUA_READ(sh->warp_ended[w]);

		if (w == warp) {
			*before_v = below_ended ? below : cua__segment_combine(op, type, v, below);
			*before_ended = ended | below_ended;
		}
		v = warp_ended ? warp_v : cua__segment_combine(op, type, v, warp_v);
		ended |= warp_ended;
	}
	*total_v = v;
	*total_ended = ended;
	cua_port_sync_block();
}

/* cua__path_search by a warp, 32 places a step. Every lane of it calls. */
CUA_FN uint64_t cua__path_search_warp(const struct cua__path *p, uint64_t d)
{
	uint64_t elements = p->last - p->first;
	uint64_t low = d > elements ? d - elements : 0, high = d < p->segments ? d : p->segments;

	while (low < high) {
		uint64_t step = (high - low) / 32 + 1, at = low + (cua_port_lane() + 1) * step - 1;
		int before = at < high && cua__path_offset(p, at + 1) - p->first + at < d;
		uint32_t count = cua_port_popc_u32(cua_port_ballot(CUA__SEGMENT_FULL, before));

		/* in order, place low + (count + 1) * step - 1 is the first that was seen not to be before d */
		low += count * step;
		if (high - low >= step)
			high = low + step - 1;
	}
	return low;
}

/* The accumulator of element j of a pack. */
CUA_FORCE uint64_t cua__segment_packed(enum cua_reduce_op op, enum cua_type type,
				       const struct cua__segment_pack *v, uint32_t j)
{
	if (type == CUA_U32 || type == CUA_I32 || type == CUA_F32)
		return cua__segment_element(op, type, v->word[j]);
	return cua__segment_element(op, type,
				    v->word[j * 2 % 4] | (uint64_t)v->word[(j * 2 + 1) % 4] << 32);
}

/* A thread's part of elements begin to end - 1, of which none ends a segment. */
CUA_FORCE uint64_t cua__segment_stream(enum cua_reduce_op op, enum cua_type type, const void *x,
				       uint64_t begin, uint64_t end)
{
	enum { LOADS = 8 }; /* in flight a thread */
	const size_t size = type == CUA_U32 || type == CUA_I32 || type == CUA_F32 ? 4 : 8;
	const uint32_t per_pack = (uint32_t)(16 / size), thread = cua_port_thread();
	const uint32_t threads = cua_port_block_size();
	const uint64_t head = (-((uintptr_t)x + begin * size) & 15) / size;
	const struct cua__segment_pack *packs;
	uint64_t t[2] = {0, 0}, at, n, left;

	if (head < end - begin) {
		if (thread < head)
			t[0] = cua__segment_element(op, type, cua__segment_raw(size, x, begin + thread));
		begin += head;
	}
	packs = (const struct cua__segment_pack *)(const void *)((const char *)x + begin * size);
	n = ((uintptr_t)packs & 15) == 0 ? (end - begin) / per_pack : 0;
	for (at = thread; at < n; at += threads * left) {
		struct cua__segment_pack v[LOADS];
		uint32_t l, j;

		/* all of them or, near the end, one */
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
					op, type, t[j % 2], cua__segment_packed(op, type, &v[0], j));
		}
	}
	for (at = begin + n * per_pack + thread; at < end; at += threads)
		t[0] = cua__segment_combine(op, type, t[0],
					    cua__segment_element(op, type,
								 cua__segment_raw(size, x, at)));
	return cua__segment_combine(op, type, t[0], t[1]);
}

/* ---- mode FAST ---- */

/*
 * Whether end k from segment i on is among the next `items` places of the path, where j is its next element;
 * *at becomes where, counted in elements from j.
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

/*
 * A tile of the path from segment i and element j on, at most `items` places: stores the results of the
 * segments that end in it but the first of the whole part, `first`, whose sum goes to *head. Returns how
 * many ends there were; *elements how many elements.
 */
CUA_FORCE uint32_t cua__segment_tile(enum cua_reduce_op op, enum cua_type type,
				     const struct cua__segments *s, const struct cua__path *p,
				     struct cua__segment_shared *sh, uint64_t i, uint64_t j,
				     uint32_t items, uint64_t first, uint64_t *carry, uint64_t *head,
				     uint32_t *elements)
{
	const size_t size = type == CUA_U32 || type == CUA_I32 || type == CUA_F32 ? 4 : 8;
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint32_t k, ends = 0, m, d, low, high, at, q, steps, w, ended = 0, head_at = 0, before_ended;
	uint32_t total_ended;
	uint64_t v = 0, head_v = 0, before, total, raw[CUA__SEGMENT_ITEMS];

	/* elements, of which the ends may leave some for the next tile; all loads are on their way at once */
	for (q = 0; q < CUA__SEGMENT_ITEMS; q++) {
		uint32_t element = q * threads + thread;

		raw[q] = element < items && j + element < p->last
				 ? cua__segment_raw(size, s->x, j + element)
				 : 0;
	}
	/* the ends, one a thread, until there is one that is not in the tile; where they ascend, all others follow */
	for (k = thread;; k += threads) {
		uint64_t where = 0;
		int within = cua__segment_end_within(p, i, j, k, items, &where);
		uint32_t others = ~cua_port_ballot(CUA__SEGMENT_FULL, within);

		if (within)
			CUA_WRITE(sh->ends[k], (uint32_t)where);
		if (thread % 32 == 0)
			CUA_WRITE(sh->warp_ends[thread / 32], others ? cua_port_ffs_u32(others) - 1 : 32);
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

	/* this thread's places of the tile */
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
	cua__segment_scan(op, type, sh, v, ended, &before, &before_ended, &total, &total_ended);
	if (ended) {
		if (!before_ended)
			before = cua__segment_combine(op, type, *carry, before);
		head_v = cua__segment_combine(op, type, before, head_v);
		if (i + head_at == first)
			CUA_WRITE(*head, head_v);
		else
			cua__segment_put(op, type, s, p, i + head_at, head_v);
	}
	*carry = total_ended ? total : cua__segment_combine(op, type, *carry, total);
	*elements = m;
	return ends;
}

/* Finishes the first segment that ends in each of n parts, by one block. */
CUA_FORCE void cua__segment_join(enum cua_reduce_op op, enum cua_type type,
				 const struct cua__segments *s, const struct cua__path *path,
				 struct cua__segment_shared *sh, uint64_t n)
{
	const struct cua__part *parts = (const struct cua__part *)s->scratch;
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	/* neighbours to one thread, so that their order is kept */
	uint64_t k = n / threads * thread + (thread < n % threads ? thread : n % threads), i;
	uint64_t end = k + n / threads + (thread < n % threads), tail, carry = 0, before, total;
	uint32_t ended = 0, before_ended, total_ended;

	for (i = k; i < end; i++) {
		tail = CUA_READ(parts[i].tail);
		if (CUA_READ(parts[i].ends)) {
			ended = 1;
			carry = tail;
		} else {
			carry = cua__segment_combine(op, type, carry, tail);
		}
	}
	cua__segment_scan(op, type, sh, carry, ended, &before, &before_ended, &total, &total_ended);
	for (i = k; i < end; i++) {
		tail = CUA_READ(parts[i].tail);
		if (CUA_READ(parts[i].ends)) {
			cua__segment_put(op, type, s, path, CUA_READ(parts[i].first),
					 cua__segment_combine(op, type, before,
							      CUA_READ(parts[i].head)));
			before = tail;
		} else {
			before = cua__segment_combine(op, type, before, tail);
		}
	}
}

/*
 * The whole of a call in mode FAST. A block takes a contiguous part of the path, a tile at a time, and
 * stores what it cannot finish: the end of the segment that was open when the part began, and what is
 * open when it ends. The last block joins these, in order.
 *
 * No block waits for another one. Each stores its part and then adds 1 to `arrived`, acquire and release, at
 * device scope; these read-modify-writes form one release sequence, so the block that reads blocks - 1 has
 * acquired all parts, and passes that on by its barrier. It puts the count back to zero.
 */
CUA_FORCE void cua__segment_fast(enum cua_reduce_op op, enum cua_type type,
				 const struct cua__segments *s, struct cua__segment_shared *sh)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint64_t block = cua_port_block(), blocks = cua_port_grid_size();
	struct cua__part *parts = (struct cua__part *)s->scratch, *part = &parts[block];
	struct cua__path path;
	uint64_t length, d, end, i, j, first, carry = 0, before, total, last = 0;
	uint32_t before_ended, total_ended;

	cua__path_init(&path, s);
	length = cua__path_length(&path);
	d = length / blocks * block + (block < length % blocks ? block : length % blocks);
	end = d + length / blocks + (block < length % blocks);
	if (thread < 32) {
		i = cua__path_search_warp(&path, d);
		if (thread == 0)
			CUA_WRITE(sh->start, i);
	}
	cua_port_sync_block();
	first = i = CUA_READ(sh->start);
	j = d - i + path.first;
	while (d < end) {
		uint32_t tile = CUA__SEGMENT_ITEMS * threads, ends, elements;
		uint32_t items = end - d < tile ? (uint32_t)(end - d) : tile;
		uint64_t next = i < path.segments ? cua__path_offset(&path, i + 1) : path.last;

		if (next > j && next - j >= items) {
			/* no end for a while */
			uint64_t run = next - j < end - d ? next - j : end - d, v;

			v = cua__segment_stream(op, type, s->x, j, j + run);
			cua__segment_scan(op, type, sh, v, 0, &before, &before_ended, &total,
					  &total_ended);
			carry = cua__segment_combine(op, type, carry, total);
			j += run;
			d += run;
			continue;
		}
		ends = cua__segment_tile(op, type, s, &path, sh, i, j, items, first, &carry, &part->head,
					 &elements);
		i += ends;
		j += elements;
		d += ends + elements;
	}
	/* the barrier passes the head, which any thread may have stored, to thread 0 */
	cua_port_sync_block();
	if (thread == 0) {
		CUA_WRITE(part->first, first);
		CUA_WRITE(part->ends, i - first);
		CUA_WRITE(part->tail, carry);
		last = (uint64_t)cua__finish_arrive((struct cua_finish *)s->control, blocks);
	}
	if (!cua__block_broadcast(last, &sh->scratch))
		return;

	cua__segment_join(op, type, s, &path, sh, blocks);
}

/* ---- mode FIXED ---- */

/*
 * Two kernels. In the first a warp takes 32 segments: a lane sums a tiny one by itself, the warp one of up to
 * a strip of the tree, and longer ones are put on a list, an entry for each chunk. In the second a block
 * takes an entry at a time. So nothing depends on how the lengths are mixed, and the order of the list,
 * which is by chance, changes no sum.
 */
#define CUA__FIXED_TINY_PACKS 8u

CUA__DEFINE_TREE_BLOCK(sum_f32, float, 0, double, double, sum_f64_none, f64_widen, f64_add, f64_store)
CUA__DEFINE_TREE_BLOCK(sum_f64, double, 0, double, double, sum_f64_none, f64_widen, f64_add, f64_store)

/* Shared memory of a block. */
struct cua__fixed_shared {
	struct cua_block_scratch scratch;
	struct cua__tree_scratch tree;
};

/* In global memory, of zeros before the first kernel. */
struct cua__fixed_state {
	uint64_t entries; /* asked for */
	uint64_t listed;  /* segments on the list */
	uint64_t cut;     /* entries at the end of the list without contents; not with offsets in order */
	uint64_t reserved;
};

/* A segment on the list. */
struct cua__fixed_long {
	uint64_t segment;
	uint64_t slot;    /* its first entry */
	uint64_t arrived; /* chunks that are summed */
};

/* An entry: the number on the list, and the chunk. */
#define CUA__FIXED_CHUNK_BITS 11
CUA_STATIC_ASSERT(1u << CUA__FIXED_CHUNK_BITS >= CUA__TREE_CHUNKS, "a chunk's number has so many bits");

/* Where they are in the scratch memory; capacity is the most entries that offsets in order make. */
struct cua__fixed_lists {
	struct cua__fixed_state *state;
	uint64_t capacity;
	uint64_t *entry;
	double *partial;
	struct cua__fixed_long *list;
};

/* The elements of a strip of the tree, which is the work of a warp. */
CUA_FORCE uint64_t cua__fixed_strip(enum cua_type type)
{
	return CUA__TREE_ROWS * 32 * (type == CUA_F32 ? 4 : 2);
}

/*
 * A segment on the list has more elements than a strip, and not more chunks than the number of times that the
 * strips of one, at their shortest, go into it, and one.
 */
CUA_FN struct cua__fixed_lists cua__fixed_lists(const struct cua__segments *s)
{
	const uint64_t strip = cua__fixed_strip(s->type);
	struct cua__fixed_lists f;

	f.capacity = s->n / strip + s->n / (CUA__TREE_WARPS * strip) + 1;
	f.state = (struct cua__fixed_state *)s->scratch;
	f.list = (struct cua__fixed_long *)(void *)(f.state + 1);
	f.entry = (uint64_t *)(void *)(f.list + f.capacity);
	f.partial = (double *)(void *)(f.entry + f.capacity);
	return f;
}

CUA_FN size_t cua__fixed_lists_size(const struct cua__segments *s)
{
	struct cua__fixed_lists f = cua__fixed_lists(s);

	return sizeof(*f.state) +
	       (size_t)f.capacity * (sizeof(*f.list) + sizeof(*f.entry) + sizeof(*f.partial));
}

/* The pack at element `at` of n, zeros for elements that are not there. packed: x is aligned to 16. */
CUA_FORCE struct cua__segment_pack cua__fixed_load(enum cua_type type, const void *x, uint64_t at,
						   uint64_t n, int packed)
{
	const size_t size = type == CUA_F32 ? 4 : 8;
	const char *p = (const char *)x + at * size;
	struct cua__segment_pack v = {{0, 0, 0, 0}};
	uint32_t j;

	if (packed && at + 16 / size <= n)
		return *(const struct cua__segment_pack *)(const void *)p;
	for (j = 0; j < 16 / size; j++)
		if (at + j < n) {
			uint64_t bits = cua__segment_raw(size, p, j);

			v.word[j * (size / 4)] = (uint32_t)bits;
			if (size == 8)
				v.word[(j * 2 + 1) % 4] = (uint32_t)(bits >> 32);
		}
	return v;
}

/* Element j of a pack. */
CUA_FORCE double cua__fixed_element(enum cua_type type, const struct cua__segment_pack *v, uint32_t j)
{
	return cua__from_bits_f64(cua__segment_packed(CUA_REDUCE_SUM, type, v, j));
}

CUA_FORCE void cua__fixed_put(enum cua_type type, const struct cua__segments *s, uint64_t i, double sum)
{
	if (type == CUA_F32)
		CUA_WRITE(((float *)s->results)[i], cua__round_f32(sum));
	else
		CUA_WRITE(((double *)s->results)[i], cua__round_f64(sum));
}

/* A tiny segment, by one lane. */
CUA_FORCE double cua__fixed_tiny(enum cua_type type, const void *x, uint64_t n)
{
	const uint32_t per_pack = type == CUA_F32 ? 4 : 2;
	const int packed = ((uintptr_t)x & 15) == 0;
	double v[CUA__FIXED_TINY_PACKS], c[4] = {0, 0, 0, 0};
	uint32_t p, d, j;

	for (p = 0; p < CUA__FIXED_TINY_PACKS; p++) {
		v[p] = 0;
		if (p * per_pack < n) {
			struct cua__segment_pack pack =
				cua__fixed_load(type, x, p * per_pack, n, packed);

			for (j = 0; j < per_pack; j++)
				c[j] = cua__fixed_element(type, &pack, j);
			v[p] = cua__segment_pack_sum(type, c);
		}
	}
	for (d = CUA__FIXED_TINY_PACKS / 2; d; d /= 2)
		for (p = 0; p < d; p++)
			v[p] = cua__tree_f64_add(v[p], v[p + d]);
	/* of -0 alone the sum is +0, as if it had been added to the first one */
	return cua__tree_f64_add(0, v[0]);
}

/* A segment of at most one strip, by a warp; valid in lane 0. */
CUA_FORCE double cua__fixed_warp(enum cua_type type, const void *x, uint64_t n)
{
	const uint32_t per_pack = type == CUA_F32 ? 4 : 2;
	const int packed = ((uintptr_t)x & 15) == 0;
	struct cua__segment_pack v[CUA__TREE_ROWS];
	double c[4] = {0, 0, 0, 0};
	uint32_t row, j;

	/* all loads are on their way at once; what is missing adds +0 to a sum that began with +0: nothing */
	for (row = 0; row < CUA__TREE_ROWS; row++)
		v[row] = cua__fixed_load(type, x, (row * 32 + cua_port_lane()) * per_pack, n, packed);
	for (row = 0; row < CUA__TREE_ROWS; row++)
		for (j = 0; j < per_pack; j++)
			c[j] = cua__tree_f64_add(c[j], cua__fixed_element(type, &v[row], j));
	return cua__tree_lanes_sum_f64(cua__segment_pack_sum(type, c), 16);
}

/*
 * Puts a segment on the list, by a whole warp. Where the list is full, which it is not with offsets in order,
 * the segment is left out: its result is 0, and the end of the list is cut where it may not be written.
 */
CUA_FORCE void cua__fixed_list(enum cua_type type, const struct cua__segments *s,
			       const struct cua__fixed_lists *f, uint64_t segment, uint64_t n)
{
	const uint64_t chunks = cua__tree_shape(n, type == CUA_F32 ? 4 : 8).chunks;
	uint64_t slot = 0, number = 0, c;

	if (cua_port_lane() == 0)
		slot = cua_port_fetch_add_u64(&f->state->entries, chunks, CUA_RELAXED,
					      CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	slot = cua_port_shuffle_u64(CUA__SEGMENT_FULL, slot, 0);
	if (slot + chunks > f->capacity) {
		if (cua_port_lane() == 0) {
			if (slot < f->capacity)
				cua_port_max_u64(&f->state->cut, f->capacity - slot, CUA_RELAXED,
						 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			cua__fixed_put(type, s, segment, 0);
		}
		return;
	}
	/* there is a place for it: each one on the list has an entry at least */
	if (cua_port_lane() == 0)
		number = cua_port_fetch_add_u64(&f->state->listed, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
						CUA_SPACE_GLOBAL);
	number = cua_port_shuffle_u64(CUA__SEGMENT_FULL, number, 0);
	if (cua_port_lane() == 0) {
		CUA_WRITE(f->list[number].segment, segment);
		CUA_WRITE(f->list[number].slot, slot);
		CUA_WRITE(f->list[number].arrived, 0);
	}
	for (c = cua_port_lane(); c < chunks; c += 32)
		CUA_WRITE(f->entry[slot + c], number << CUA__FIXED_CHUNK_BITS | c);
}

/* The first kernel. No thread waits for another warp. */
CUA_FORCE void cua__segment_fixed_short(enum cua_type type, const struct cua__segments *s)
{
	const size_t size = type == CUA_F32 ? 4 : 8;
	const uint32_t lane = cua_port_lane(), tiny = CUA__FIXED_TINY_PACKS * (uint32_t)(16 / size);
	const uint64_t warps = cua_port_grid_size() * (cua_port_block_size() / 32);
	uint64_t first = (cua_port_block() * (cua_port_block_size() / 32) + cua_port_thread() / 32) * 32;
	const struct cua__fixed_lists f = cua__fixed_lists(s);
	const char *x = (const char *)s->x;
	struct cua__path path;

	cua__path_init(&path, s);
	for (; first < path.segments; first += warps * 32) {
		uint64_t i = first + lane, begin = 0, n = 0;
		uint32_t others;

		if (i < path.segments) {
			uint64_t end = cua__path_offset(&path, i + 1);

			begin = cua__path_offset(&path, i);
			n = end > begin ? end - begin : 0;
			if (n <= tiny)
				cua__fixed_put(type, s, i, cua__fixed_tiny(type, x + begin * size, n));
		}
		others = cua_port_ballot(CUA__SEGMENT_FULL, n > tiny);
		while (others) {
			uint32_t from = cua_port_ffs_u32(others) - 1;
			uint64_t its_n = cua_port_shuffle_u64(CUA__SEGMENT_FULL, n, from);
			uint64_t its_begin = cua_port_shuffle_u64(CUA__SEGMENT_FULL, begin, from);

			others &= others - 1;
			if (its_n > cua__fixed_strip(type)) {
				cua__fixed_list(type, s, &f, first + from, its_n);
			} else {
				double v = cua__fixed_warp(type, x + its_begin * size, its_n);

				if (lane == 0)
					cua__fixed_put(type, s, first + from, v);
			}
		}
	}
}

/*
 * The second kernel, in blocks of 256. No block waits for another one: each stores its chunk's partial and
 * then adds 1 to the segment's count, acquire and release at device scope. The block that finds all others
 * there has acquired their partials, by the release sequence of these, and finishes the segment.
 */
CUA_FORCE void cua__segment_fixed_long(enum cua_type type, const struct cua__segments *s,
				       struct cua__fixed_shared *sh)
{
	const size_t size = type == CUA_F32 ? 4 : 8;
	const struct cua__fixed_lists f = cua__fixed_lists(s);
	const char *x = (const char *)s->x;
	uint64_t entries = CUA_READ(f.state->entries), cut = CUA_READ(f.state->cut), e;
	uint32_t turn = 0;
	const struct cua__cached cached = cua__cached(0, 0);
	struct cua__path path;
	struct cua__reduce one;

	if (entries > f.capacity - cut)
		entries = f.capacity - cut;
	cua__path_init(&path, s);
	memset(&one, 0, sizeof(one));
	one.keep = UINT64_MAX;
	for (e = cua_port_block(); e < entries; e += cua_port_grid_size()) {
		uint64_t entry = CUA_READ(f.entry[e]), c = entry % (1u << CUA__FIXED_CHUNK_BITS), last = 0;
		struct cua__fixed_long *l = &f.list[entry >> CUA__FIXED_CHUNK_BITS];
		uint64_t i = CUA_READ(l->segment), begin = cua__path_offset(&path, i);
		struct cua__tree_shape shape =
			cua__tree_shape(cua__path_offset(&path, i + 1) - begin, size);
		int aligned = (((uintptr_t)x + begin * size) & 15) == 0;
		double v;

		one.x = one.y = x + begin * size;
		v = type == CUA_F32 ? cua__tree_pack_of_chunk_sum_f32(&one, &shape, c, aligned, &cached)
				    : cua__tree_pack_of_chunk_sum_f64(&one, &shape, c, aligned, &cached);
		/* the warps' values are in one place and then in the other, as in tree_block.h */
		v = cua__tree_packs_sum_f64(v, sh->tree.warps[turn]);
		turn ^= 1;
		if (shape.chunks > 1) {
			if (cua_port_thread() == 0) {
				CUA_WRITE(f.partial[e], v);
				last = cua_port_fetch_add_u64(&l->arrived, 1, CUA_ACQ_REL,
							      CUA_SCOPE_DEVICE,
							      CUA_SPACE_GLOBAL) == shape.chunks - 1;
			}
			if (!cua__block_broadcast(last, &sh->scratch))
				continue;
			v = 0;
			for (c = cua_port_thread(); c < shape.chunks; c += CUA__TREE_THREADS)
				v = cua__tree_f64_add(v, CUA_READ(f.partial[CUA_READ(l->slot) + c]));
			v = cua__tree_packs_sum_f64(v, sh->tree.warps[turn]);
			turn ^= 1;
		}
		if (cua_port_thread() == 0)
			cua__fixed_put(type, s, i, v);
	}
}

#endif /* CUATOMIC_LIB_SEGMENT_KERNEL_H */
