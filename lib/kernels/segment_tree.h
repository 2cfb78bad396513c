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

#define CUA__FIXED_FULL 0xffffffffu

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

/* The expected length of most segments. It decides which code gets the registers. */
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
 * Puts segment first + lane on the list if its chunks > 0. The whole warp calls. Returns 0 if the
 * list is full, which ascending offsets never cause. In that case `cut` records the entries at the
 * list's end that stay unwritten.
 */
CUA_FORCE int cua__fixed_list(const struct cua__fixed_lists *f, uint64_t first, uint32_t chunks)
{
	const uint32_t lane = cua_port_lane();
	uint32_t upto = chunks, step, some = cua_port_ballot(CUA__FIXED_FULL, chunks != 0);
	uint64_t first_entry = 0;
	int listed;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint32_t below = cua_port_shuffle_u32(CUA__FIXED_FULL, upto, lane - step);

		upto += lane >= step ? below : 0;
	}
	if (lane == 31)
		first_entry = cua_port_fetch_add_u64(&f->state->entries, upto, CUA_RELAXED,
						     CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	first_entry = cua_port_shuffle_u64(CUA__FIXED_FULL, first_entry, 31) + upto - chunks;
	listed = first_entry + chunks <= f->capacity;
	if (chunks && listed) {
		CUA_WRITE(f->list[first_entry].segment, first + lane);
		CUA_WRITE(f->list[first_entry].arrived, 0);
	} else if (chunks && first_entry < f->capacity) {
		cua_port_max_u64(&f->state->cut, f->capacity - first_entry, CUA_RELAXED,
				 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
	some &= cua_port_ballot(CUA__FIXED_FULL, listed);
	for (; some; some &= some - 1) {
		const uint32_t from = cua_port_ffs_u32(some) - 1;
		const uint64_t base = cua_port_shuffle_u64(CUA__FIXED_FULL, first_entry, from);
		const uint32_t n = cua_port_shuffle_u32(CUA__FIXED_FULL, chunks, from);

		for (uint32_t c = lane; c < n; c += 32)
			CUA_WRITE(f->entry[base + c], base << CUA__FIXED_CHUNK_BITS | c);
	}
	return listed;
}

/*
 * The number of segments that a warp processes at a time: a power of two, at most 32. It is limited
 * to the elements of about a chunk if the warp sums the segments itself, and so that no warp is
 * left without segments.
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

#define CUA__DEFINE_FIXED(kind, T, two, C, A, none, widen, combine, store)                         \
	CUA__DEFINE_TREE_BLOCK(kind, T, two, C, A, none, widen, combine, store)                    \
                                                                                                   \
	/* Stores the sum of segment i, of n elements. */                                          \
	CUA_FORCE void cua__fixed_put_##kind(const struct cua__segments *s, uint64_t i,            \
					     uint64_t n, A sum)                                    \
	{                                                                                          \
		struct cua__reduce one = cua__segment_reduce(s);                                   \
                                                                                                   \
		/* constants for the compiler */                                                   \
		one.type = one.result_type = CUA__FIXED_TYPE_##kind;                               \
		one.result = (char *)s->results + i * sizeof(T);                                   \
		cua__tree_##store(&one, n, sum);                                                   \
	}                                                                                          \
                                                                                                   \
	/* Loads the pack at x + at of a strip; elements outside the strip may be zeros. */        \
	/* whole: the whole pack may be read. */                                                   \
	CUA_FORCE struct cua__tree_pack_##kind cua__fixed_load_##kind(const T *x, int32_t at,      \
								      int32_t length, int whole)   \
	{                                                                                          \
		enum { N = 16 / sizeof(T) };                                                       \
		struct cua__tree_pack_##kind v;                                                    \
		struct cua__pack words = {{0, 0, 0, 0}};                                           \
                                                                                                   \
		if (whole) {                                                                       \
			if (at < length)                                                           \
				words = *(const struct cua__pack *)(const void *)(x + at);         \
			memcpy(&v, &words, sizeof(v));                                             \
		} else {                                                                           \
			memcpy(&v, &words, sizeof(v));                                             \
			CUA__UNROLL                                                                \
			for (int j = 0; j < N; j++)                                                \
				if (at + j >= 0 && at + j < length)                                \
					v.v[j] = x[at + j];                                        \
		}                                                                                  \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	/* Replaces the elements before and after the strip by zeros. */                           \
	CUA_FORCE void cua__fixed_cut_##kind(struct cua__tree_pack_##kind *v, int32_t at,          \
					     int32_t length)                                       \
	{                                                                                          \
		enum { N = 16 / sizeof(T) };                                                       \
		T zero;                                                                            \
                                                                                                   \
		memset(&zero, 0, sizeof(zero));                                                    \
		CUA__UNROLL                                                                        \
		for (int j = 0; j < N; j++)                                                        \
			v->v[j] = (uint32_t)(at + j) < (uint32_t)length ? v->v[j] : zero;          \
	}                                                                                          \
                                                                                                   \
	/* Returns the value of this lane's pack in a strip at x, of `elements` elements and */    \
	/* at most `rows` rows. The whole warp calls. `whole` is a constant. */                    \
	CUA_FORCE A cua__fixed_packs_##kind(const struct cua__reduce *one, const T *x,             \
					    uint32_t shift, uint64_t elements, uint64_t rows,      \
					    int whole)                                             \
	{                                                                                          \
		enum { N = 16 / sizeof(T), WIDTH = 32 * N, LOADS = CUA__TREE_LOADS };              \
		const uint32_t lane = cua_port_lane();                                             \
		const int32_t length = (int32_t)elements, full = (int32_t)rows * WIDTH,            \
			      of_lane = (int32_t)(lane * N);                                       \
		const int32_t end =                                                                \
			length + (int32_t)shift < full ? length + (int32_t)shift : full;           \
		struct cua__tree_pack_##kind v[LOADS], last;                                       \
		C c[N];                                                                            \
		A a[N];                                                                            \
                                                                                                   \
		CUA__UNROLL                                                                        \
		for (unsigned j = 0; j < N; j++)                                                   \
			c[j] = cua__tree_##none();                                                 \
		/* the elements that the shift moves out of the last row */                        \
		last = cua__fixed_load_##kind(x, full - (int32_t)shift + of_lane, length, whole);  \
		for (int32_t row = -(int32_t)shift; row < end - (int32_t)shift;                    \
		     row += LOADS * WIDTH) {                                                       \
			CUA__UNROLL                                                                \
			for (int l = 0; l < LOADS; l++)                                            \
				v[l] = cua__fixed_load_##kind(x, row + l * WIDTH + of_lane,        \
							      length, whole);                      \
			CUA__UNROLL                                                                \
			for (int l = 0; l < LOADS; l++) {                                          \
				const int32_t at = row + l * WIDTH;                                \
                                                                                                   \
				/* uniform in the warp */                                          \
				if (at >= length)                                                  \
					break;                                                     \
				if (at < 0 || at + WIDTH > length)                                 \
					cua__fixed_cut_##kind(&v[l], at + of_lane, length);        \
				CUA__UNROLL                                                        \
				for (unsigned j = 0; j < N; j++)                                   \
					c[j] = cua__tree_##kind##_fold(one, c[j], v[l].v[j],       \
								       v[l].v[j], 0);              \
			}                                                                          \
		}                                                                                  \
		if (shift && full - (int32_t)shift < length) {                                     \
			cua__fixed_cut_##kind(&last, full - (int32_t)shift + of_lane, length);     \
			CUA__UNROLL                                                                \
			for (unsigned j = 0; j < N; j++)                                           \
				c[j] = cua__tree_##kind##_fold(one, c[j], last.v[j], last.v[j],    \
							       0);                                 \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (unsigned j = 0; j < N; j++)                                                   \
			a[j] = cua__tree_##widen(one, c[j], 0, 0, 0);                              \
		CUA__UNROLL                                                                        \
		for (unsigned step = 1; step < N; step *= 2) {                                     \
			A moved[N];                                                                \
                                                                                                   \
			if (!(shift & step))                                                       \
				continue;                                                          \
			CUA__UNROLL                                                                \
			for (unsigned j = 0; j < N; j++)                                           \
				moved[j] = j + step < N ? a[j + step]                              \
							: cua__tree_from_##kind(a[j + step - N],   \
										(lane + 1) % 32);  \
			CUA__UNROLL                                                                \
			for (unsigned j = 0; j < N; j++)                                           \
				a[j] = moved[j];                                                   \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (unsigned w = N / 2; w; w /= 2) {                                              \
			CUA__UNROLL                                                                \
			for (unsigned j = 0; j < w; j++)                                           \
				a[j] = cua__tree_##combine(a[2 * j], a[2 * j + 1]);                \
		}                                                                                  \
		return a[0];                                                                       \
	}                                                                                          \
                                                                                                   \
	/* The same for the strip at element `first` of the array; an empty value if length */     \
	/* is 0. */                                                                                \
	CUA_FORCE A cua__fixed_strip_##kind(const struct cua__reduce *one,                         \
					    const struct cua__path *path, const void *array,       \
					    uint64_t first, uint64_t length, uint64_t rows)        \
	{                                                                                          \
		const T *x = (const T *)array + first;                                             \
		const uint32_t shift = (uint32_t)((uintptr_t)x % 16 / sizeof(T));                  \
                                                                                                   \
		if (!length)                                                                       \
			return cua__tree_##widen(one, cua__tree_##none(), 0, 0, 0);                \
		if (cua__fixed_whole(path, first, length, shift, 16 / sizeof(T)))                  \
			return cua__fixed_packs_##kind(one, x, shift, length, rows, 1);            \
		return cua__fixed_packs_##kind(one, x, shift, length, rows, 0);                    \
	}                                                                                          \
                                                                                                   \
	/* A lane sums a tiny segment. */                                                          \
	CUA_FORCE void cua__fixed_tiny_##kind(const struct cua__segments *s, uint64_t i,           \
					      uint64_t begin, uint64_t n)                          \
	{                                                                                          \
		enum { N = 16 / sizeof(T), PACKS = CUA__FIXED_TINY_PACKS };                        \
		const struct cua__reduce one = cua__segment_reduce(s);                             \
		const T *x = (const T *)s->x + begin;                                              \
		const uint32_t length = (uint32_t)n;                                               \
		const int packed = ((uintptr_t)x & 15) == 0;                                       \
		struct cua__tree_pack_##kind v;                                                    \
		A sum[PACKS], a[N];                                                                \
		T zero;                                                                            \
                                                                                                   \
		memset(&zero, 0, sizeof(zero));                                                    \
		CUA__UNROLL                                                                        \
		for (uint32_t p = 0; p < PACKS; p++) {                                             \
			sum[p] = cua__tree_##widen(&one, cua__tree_##none(), 0, 0, 0);             \
			if (p * N < length) {                                                      \
				if (packed && p * N + N <= length) {                               \
					struct cua__pack words =                                   \
						*(const struct cua__pack *)(const void *)(x +      \
											  p * N);  \
                                                                                                   \
					memcpy(&v, &words, sizeof(v));                             \
				} else {                                                           \
					CUA__UNROLL                                                \
					for (uint32_t j = 0; j < N; j++)                           \
						v.v[j] = p * N + j < length ? x[p * N + j] : zero; \
				}                                                                  \
				CUA__UNROLL                                                        \
				for (uint32_t j = 0; j < N; j++)                                   \
					a[j] = cua__tree_##widen(                                  \
						&one,                                              \
						cua__tree_##kind##_fold(&one, cua__tree_##none(),  \
									v.v[j], zero, 0),          \
						0, 0, 0);                                          \
				CUA__UNROLL                                                        \
				for (uint32_t w = N / 2; w; w /= 2) {                              \
					CUA__UNROLL                                                \
					for (uint32_t j = 0; j < w; j++)                           \
						a[j] = cua__tree_##combine(a[2 * j],               \
									   a[2 * j + 1]);          \
				}                                                                  \
				sum[p] = a[0];                                                     \
			}                                                                          \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (uint32_t d = PACKS / 2; d; d /= 2) {                                          \
			CUA__UNROLL                                                                \
			for (uint32_t p = 0; p < d; p++)                                           \
				sum[p] = cua__tree_##combine(sum[p], sum[p + d]);                  \
		}                                                                                  \
		cua__fixed_put_##kind(s, i, n, sum[0]);                                            \
	}                                                                                          \
                                                                                                   \
	/* Groups of lanes sum segments of at most CUA__FIXED_GROUP_ROWS rows, a segment */        \
	/* each. Every lane of the warp calls. n is 0 for a group without a segment. */            \
	CUA_FORCE void cua__fixed_group_##kind(const struct cua__segments *s,                      \
					       const struct cua__path *path, uint64_t i,           \
					       uint64_t begin, uint64_t n)                         \
	{                                                                                          \
		enum {                                                                             \
			N = 16 / sizeof(T),                                                        \
			WIDTH = 32 * N,                                                            \
			LANES = CUA__FIXED_GROUP(T, C),                                            \
			PACKS = 32 / LANES, /* per lane and row */                                 \
			ROWS = CUA__FIXED_GROUP_ROWS                                               \
		};                                                                                 \
		const struct cua__reduce one = cua__segment_reduce(s);                             \
		const T *x = (const T *)s->x + begin;                                              \
		const uint32_t shift = (uint32_t)((uintptr_t)x % 16 / sizeof(T));                  \
		const uint32_t lane = cua_port_lane(), of = lane % LANES;                          \
		/* below every index, if the group has no segment */                               \
		const int32_t length = n ? (int32_t)n : -N,                                        \
			      first = (int32_t)(of * N) - (int32_t)shift;                          \
		const int whole = !cua_port_ballot(                                                \
			CUA__FIXED_FULL, n && !cua__fixed_whole(path, begin, n, shift, N));        \
		struct cua__tree_pack_##kind v[ROWS][PACKS], last;                                 \
		C c[PACKS][N];                                                                     \
		A a[PACKS][N];                                                                     \
                                                                                                   \
		if (whole) {                                                                       \
			CUA__UNROLL                                                                \
			for (int q = 0; q < ROWS * PACKS; q++)                                     \
				v[q / PACKS][q % PACKS] = cua__fixed_load_##kind(                  \
					x, first + q * LANES * N, length, 1);                      \
			last = cua__fixed_load_##kind(x, first + ROWS * WIDTH, length, 1);         \
		} else {                                                                           \
			CUA__UNROLL                                                                \
			for (int q = 0; q < ROWS * PACKS; q++)                                     \
				v[q / PACKS][q % PACKS] = cua__fixed_load_##kind(                  \
					x, first + q * LANES * N, length, 0);                      \
			last = cua__fixed_load_##kind(x, first + ROWS * WIDTH, length, 0);         \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (int p = 0; p < PACKS; p++) {                                                  \
			CUA__UNROLL                                                                \
			for (int j = 0; j < N; j++)                                                \
				c[p][j] = cua__tree_##none();                                      \
			CUA__UNROLL                                                                \
			for (int row = 0; row < ROWS; row++) {                                     \
				cua__fixed_cut_##kind(                                             \
					&v[row][p], first + row * WIDTH + p * LANES * N, length);  \
				CUA__UNROLL                                                        \
				for (int j = 0; j < N; j++)                                        \
					c[p][j] = cua__tree_##kind##_fold(                         \
						&one, c[p][j], v[row][p].v[j], v[row][p].v[j], 0); \
			}                                                                          \
		}                                                                                  \
		cua__fixed_cut_##kind(&last, first + ROWS * WIDTH, length);                        \
		CUA__UNROLL                                                                        \
		for (int j = 0; j < N; j++)                                                        \
			c[0][j] = cua__tree_##kind##_fold(&one, c[0][j], last.v[j], last.v[j], 0); \
		CUA__UNROLL                                                                        \
		for (int p = 0; p < PACKS; p++) {                                                  \
			CUA__UNROLL                                                                \
			for (int j = 0; j < N; j++)                                                \
				a[p][j] = cua__tree_##widen(&one, c[p][j], 0, 0, 0);               \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (int step = 1; step < N; step *= 2) {                                          \
			A next[PACKS][N];                                                          \
                                                                                                   \
			/* columns of the next pack: the next lane has it, or lane 0 of the */     \
			/* group in its next p */                                                  \
			CUA__UNROLL                                                                \
			for (int p = 0; p < PACKS; p++) {                                          \
				CUA__UNROLL                                                        \
				for (int j = 0; j < step; j++)                                     \
					next[p][j] = cua__tree_from_##kind(                        \
						of ? a[p][j] : a[(p + 1) % PACKS][j],              \
						lane - of + (of + 1) % LANES);                     \
			}                                                                          \
			CUA__UNROLL                                                                \
			for (int p = 0; p < PACKS; p++) {                                          \
				CUA__UNROLL                                                        \
				for (int j = 0; j < N; j++) {                                      \
					A moved = j + step < N ? a[p][j + step]                    \
							       : next[p][j + step - N];            \
                                                                                                   \
					a[p][j] = shift & step ? moved : a[p][j];                  \
				}                                                                  \
			}                                                                          \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (int p = 0; p < PACKS; p++) {                                                  \
			CUA__UNROLL                                                                \
			for (int w = N / 2; w; w /= 2) {                                           \
				CUA__UNROLL                                                        \
				for (int j = 0; j < w; j++)                                        \
					a[p][j] =                                                  \
						cua__tree_##combine(a[p][2 * j], a[p][2 * j + 1]); \
			}                                                                          \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (int d = PACKS / 2; d; d /= 2) {                                               \
			CUA__UNROLL                                                                \
			for (int p = 0; p < d; p++)                                                \
				a[p][0] = cua__tree_##combine(a[p][0], a[p + d][0]);               \
		}                                                                                  \
		a[0][0] = cua__tree_lanes_##kind(a[0][0], LANES / 2);                              \
		if (of == 0 && n)                                                                  \
			cua__fixed_put_##kind(s, i, n, a[0][0]);                                   \
	}                                                                                          \
                                                                                                   \
	/* A warp sums chunk c of a segment; the result is in lane 0. */                           \
	CUA_FORCE A cua__fixed_chunk_##kind(const struct cua__reduce *one,                         \
					    const struct cua__segments *s,                         \
					    const struct cua__path *path, uint64_t begin,          \
					    uint64_t n, uint64_t rows, uint64_t c)                 \
	{                                                                                          \
		const uint64_t strip = rows * (32 * 16 / sizeof(T));                               \
		A v = cua__tree_##widen(one, cua__tree_##none(), 0, 0, 0), sum;                    \
                                                                                                   \
		for (uint32_t w = 0; w < CUA__TREE_WARPS; w++) {                                   \
			uint64_t first = (c * CUA__TREE_WARPS + w) * strip, length;                \
                                                                                                   \
			if (first >= n)                                                            \
				break;                                                             \
			length = n - first < strip ? n - first : strip;                            \
			sum = cua__tree_lanes_##kind(cua__fixed_strip_##kind(one, path, s->x,      \
									     begin + first,        \
									     length, rows),        \
						     16);                                          \
			sum = cua__tree_from_##kind(sum, 0);                                       \
			if (cua_port_lane() == w)                                                  \
				v = sum;                                                           \
		}                                                                                  \
		return cua__tree_lanes_##kind(v, CUA__TREE_WARPS / 2);                             \
	}                                                                                          \
                                                                                                   \
	/* A warp sums a segment of a single chunk. */                                             \
	CUA_FORCE void cua__fixed_warp_##kind(const struct cua__segments *s,                       \
					      const struct cua__path *path, uint64_t i,            \
					      uint64_t begin, uint64_t n)                          \
	{                                                                                          \
		const struct cua__reduce one = cua__segment_reduce(s);                             \
		A v = cua__fixed_chunk_##kind(&one, s, path, begin, n, CUA__TREE_ROWS, 0);         \
                                                                                                   \
		if (cua_port_lane() == 0)                                                          \
			cua__fixed_put_##kind(s, i, n, v);                                         \
	}                                                                                          \
                                                                                                   \
	/* Sums the segments of few rows among segments first to first + 31. Each lane has a */    \
	/* segment. */                                                                             \
	CUA_FORCE void cua__fixed_groups_##kind(const struct cua__segments *s,                     \
						const struct cua__path *path, uint64_t first,      \
						uint64_t begin, uint64_t n)                        \
	{                                                                                          \
		enum { N = 16 / sizeof(T), LANES = CUA__FIXED_GROUP(T, C) };                       \
		const uint32_t lane = cua_port_lane();                                             \
		uint32_t rest = cua_port_ballot(CUA__FIXED_FULL,                                   \
						n > CUA__FIXED_TINY_PACKS * N &&                   \
							n <= CUA__FIXED_GROUP_ROWS * 32 * N);      \
                                                                                                   \
		while (rest) {                                                                     \
			uint32_t from = 32;                                                        \
			uint64_t its_n, its_begin;                                                 \
                                                                                                   \
			for (uint32_t group = 0; group < 32 / LANES; group++) {                    \
				if (lane / LANES == group && rest)                                 \
					from = cua_port_ffs_u32(rest) - 1;                         \
				rest &= rest - 1;                                                  \
			}                                                                          \
			its_n = cua_port_shuffle_u64(CUA__FIXED_FULL, n, from % 32);               \
			its_begin = cua_port_shuffle_u64(CUA__FIXED_FULL, begin, from % 32);       \
			cua__fixed_group_##kind(s, path, first + from, its_begin,                  \
						from < 32 ? its_n : 0);                            \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	/* The same for segments of more than `few` elements: the warp sums them, or lists */      \
	/* the long ones. */                                                                       \
	CUA_FORCE void cua__fixed_longer_##kind(const struct cua__segments *s,                     \
						const struct cua__path *path, uint64_t first,      \
						uint64_t begin, uint64_t n, uint32_t few)          \
	{                                                                                          \
		const struct cua__fixed_lists f = cua__fixed_lists(s);                             \
		const int is_long = n > CUA__TREE_WARPS * cua__fixed_strip(sizeof(T));             \
		const uint32_t chunks =                                                            \
			is_long ? (uint32_t)cua__tree_shape(n, sizeof(T)).chunks : 0;              \
		uint32_t rest = cua_port_ballot(CUA__FIXED_FULL, n > few && !is_long);             \
                                                                                                   \
		for (; rest; rest &= rest - 1) {                                                   \
			uint32_t from = cua_port_ffs_u32(rest) - 1;                                \
			uint64_t its_n = cua_port_shuffle_u64(CUA__FIXED_FULL, n, from);           \
			uint64_t its_begin = cua_port_shuffle_u64(CUA__FIXED_FULL, begin, from);   \
                                                                                                   \
			cua__fixed_warp_##kind(s, path, first + from, its_begin, its_n);           \
		}                                                                                  \
		if (cua_port_ballot(CUA__FIXED_FULL, is_long) &&                                   \
		    !cua__fixed_list(&f, first, chunks) && is_long)                                \
			cua__fixed_put_##kind(                                                     \
				s, first + cua_port_lane(), n,                                     \
				cua__tree_##widen(NULL, cua__tree_##none(), 0, 0, 0));             \
	}                                                                                          \
                                                                                                   \
	/* The calls below are not inlined, because they would take registers from more */         \
	/* frequent code. */                                                                       \
	CUA__FIXED_APART void cua__fixed_tiny_apart_##kind(const struct cua__segments *s,          \
							   uint64_t i, uint64_t begin, uint64_t n) \
	{                                                                                          \
		cua__fixed_tiny_##kind(s, i, begin, n);                                            \
	}                                                                                          \
                                                                                                   \
	CUA__FIXED_APART void cua__fixed_longer_apart_##kind(                                      \
		const struct cua__segments *s, struct cua__path path, uint64_t first,              \
		uint64_t begin, uint64_t n)                                                        \
	{                                                                                          \
		cua__fixed_longer_##kind(s, &path, first, begin, n,                                \
					 CUA__FIXED_GROUP_ROWS *(uint32_t)(32 * 16 / sizeof(T)));  \
	}                                                                                          \
                                                                                                   \
	CUA__FIXED_APART void cua__fixed_rest_apart_##kind(const struct cua__segments *s,          \
							   struct cua__path path, uint64_t first,  \
							   uint64_t begin, uint64_t n)             \
	{                                                                                          \
		cua__fixed_groups_##kind(s, &path, first, begin, n);                               \
		cua__fixed_longer_apart_##kind(s, path, first, begin, n);                          \
	}                                                                                          \
                                                                                                   \
	/* A warp processes entry e of the list. */                                                \
	CUA_FORCE void cua__fixed_entry_##kind(const struct cua__segments *s,                      \
					       const struct cua__fixed_lists *f,                   \
					       const struct cua__path *path, uint64_t e)           \
	{                                                                                          \
		enum { WORDS = sizeof(A) / 8 };                                                    \
		const struct cua__reduce one = cua__segment_reduce(s);                             \
		const uint64_t entry = CUA_READ(f->entry[e]);                                      \
		const uint64_t first_entry = entry >> CUA__FIXED_CHUNK_BITS;                       \
		struct cua__fixed_long *l = &f->list[first_entry];                                 \
		const uint64_t i = CUA_READ(l->segment), begin = cua__path_offset(path, i);        \
		const uint64_t n = cua__path_offset(path, i + 1) - begin;                          \
		const struct cua__tree_shape shape = cua__tree_shape(n, sizeof(T));                \
		const uint32_t lane = cua_port_lane();                                             \
		uint64_t words[WORDS];                                                             \
		uint32_t last = 0;                                                                 \
		A v, sum;                                                                          \
                                                                                                   \
		v = cua__fixed_chunk_##kind(&one, s, path, begin, n, shape.rows,                   \
					    entry % (1u << CUA__FIXED_CHUNK_BITS));                \
		if (shape.chunks > 1) {                                                            \
			if (lane == 0) {                                                           \
				memcpy(words, &v, sizeof(v));                                      \
				for (unsigned w = 0; w < WORDS; w++)                               \
					CUA_WRITE(f->partial[e * CUA__TREE_WORDS + w], words[w]);  \
				last = cua_port_fetch_add_u64(                                     \
					       &l->arrived, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,      \
					       CUA_SPACE_GLOBAL) == shape.chunks - 1;              \
			}                                                                          \
			if (!cua_port_shuffle_u32(CUA__FIXED_FULL, last, 0))                       \
				return;                                                            \
			cua_port_sync_warp(CUA__FIXED_FULL);                                       \
			v = cua__tree_##widen(&one, cua__tree_##none(), 0, 0, 0);                  \
			for (uint32_t base = 0; base < CUA__TREE_THREADS; base += 32) {            \
				sum = cua__tree_##widen(&one, cua__tree_##none(), 0, 0, 0);        \
				for (uint64_t c = base + lane; c < shape.chunks;                   \
				     c += CUA__TREE_THREADS) {                                     \
					A partial;                                                 \
                                                                                                   \
					for (unsigned w = 0; w < WORDS; w++)                       \
						words[w] = CUA_READ(                               \
							f->partial[(first_entry + c) *             \
									   CUA__TREE_WORDS +       \
								   w]);                            \
					memcpy(&partial, words, sizeof(partial));                  \
					sum = cua__tree_##combine(sum, partial);                   \
				}                                                                  \
				sum = cua__tree_from_##kind(cua__tree_lanes_##kind(sum, 16), 0);   \
				if (lane == base / 32)                                             \
					v = sum;                                                   \
			}                                                                          \
			v = cua__tree_lanes_##kind(v, CUA__TREE_WARPS / 2);                        \
		}                                                                                  \
		if (lane == 0)                                                                     \
			cua__fixed_put_##kind(s, i, n, v);                                         \
	}                                                                                          \
	/* The first kernel. Progress: no thread waits for another warp. `most` is a */            \
	/* constant: the expected length of most segments. */                                      \
	CUA_FORCE void cua__segment_fixed_short_##kind(const struct cua__segments *s,              \
						       enum cua__fixed_length most)                \
	{                                                                                          \
		enum { N = 16 / sizeof(T), TINY = CUA__FIXED_TINY_PACKS * N };                     \
		const uint32_t lane = cua_port_lane();                                             \
		const uint64_t warps = cua_port_grid_size() * (cua_port_block_size() / 32);        \
		const uint64_t warp =                                                              \
			cua_port_block() * (cua_port_block_size() / 32) + cua_port_thread() / 32;  \
		struct cua__path path;                                                             \
		uint32_t at_once;                                                                  \
                                                                                                   \
		cua__path_init(&path, s);                                                          \
		at_once = cua__fixed_at_once(&path, warps, cua__fixed_strip(sizeof(T)));           \
		for (uint64_t first = warp * at_once; first < path.segments;                       \
		     first += warps * at_once) {                                                   \
			uint64_t i = first + lane, begin = 0, n = 0;                               \
                                                                                                   \
			if (lane < at_once && i < path.segments) {                                 \
				uint64_t end = cua__path_offset(&path, i + 1);                     \
                                                                                                   \
				begin = cua__path_offset(&path, i);                                \
				n = end > begin ? end - begin : 0;                                 \
				if (n <= TINY && most == CUA__FIXED_TINY)                          \
					cua__fixed_tiny_##kind(s, i, begin, n);                    \
				else if (n <= TINY)                                                \
					cua__fixed_tiny_apart_##kind(s, i, begin, n);              \
			}                                                                          \
			if (!cua_port_ballot(CUA__FIXED_FULL, n > TINY))                           \
				continue;                                                          \
			if (most == CUA__FIXED_TINY) {                                             \
				cua__fixed_rest_apart_##kind(s, path, first, begin, n);            \
			} else if (most == CUA__FIXED_FEW_ROWS) {                                  \
				cua__fixed_groups_##kind(s, &path, first, begin, n);               \
				if (cua_port_ballot(CUA__FIXED_FULL,                               \
						    n > CUA__FIXED_GROUP_ROWS * 32 * N))           \
					cua__fixed_longer_apart_##kind(s, path, first, begin, n);  \
			} else {                                                                   \
				cua__fixed_longer_##kind(s, &path, first, begin, n, TINY);         \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	/* The second kernel. Progress: no warp waits for another warp. */                         \
	/* Argument: each warp stores its chunk's partial result and then adds 1 to the */         \
	/* segment's count, with acquire and release at device scope. These additions form a */    \
	/* release sequence. So the lane 0 that finds all other chunks counted has acquired */     \
	/* their partial results. The warp barrier after it passes them to its lanes, and the */   \
	/* warp finishes the segment. */                                                           \
	CUA_FORCE void cua__segment_fixed_long_##kind(const struct cua__segments *s)               \
	{                                                                                          \
		const uint64_t warps = cua_port_grid_size() * (cua_port_block_size() / 32);        \
		const struct cua__fixed_lists f = cua__fixed_lists(s);                             \
		uint64_t entries = CUA_READ(f.state->entries), cut = CUA_READ(f.state->cut), e;    \
		struct cua__path path;                                                             \
                                                                                                   \
		if (entries > f.capacity - cut)                                                    \
			entries = f.capacity - cut;                                                \
		cua__path_init(&path, s);                                                          \
		e = cua_port_block() * (cua_port_block_size() / 32) + cua_port_thread() / 32;      \
		for (; e < entries; e += warps)                                                    \
			cua__fixed_entry_##kind(s, &f, &path, e);                                  \
	}
CUA__TREE_FLOAT_SUMS(CUA__DEFINE_FIXED)

#endif /* CUATOMIC_KERNELS_SEGMENT_TREE_H */
