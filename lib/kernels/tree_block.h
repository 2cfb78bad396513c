/* SPDX-License-Identifier: MIT */
/*
 * The block of a kernel that reduces in the order of tree.h, with CUA__TREE_THREADS threads. The
 * grid may have any number of blocks.
 *
 * Progress: no block waits for another block.
 *
 * Argument: the blocks share the partial results and the arrival count.
 * - Thread 0 of a block writes the block's partial results. It then arrives with acquire and
 *   release at device scope (cua__finish_arrive of cuatomic/reduce.h).
 * - The arrivals form a single release sequence. So the thread 0 that arrives last acquires the
 *   partial results that all other blocks released.
 * - The barrier after the arrival passes them to the other threads of that block, which read them.
 * - Within a block, the values of warps alternate between two buffers from chunk to chunk. A buffer
 *   is written again only after the barrier that follows its last reads.
 */
#ifndef CUATOMIC_KERNELS_TREE_BLOCK_H
#define CUATOMIC_KERNELS_TREE_BLOCK_H

#include "kernels/cached.h"
#include "kernels/tree.h"

/* 16-byte loads in flight per thread, over all arrays. */
#define CUA__TREE_LOADS 8

/* 8-byte words of the largest combined value. */
#define CUA__TREE_WORDS 3

/* Shared memory of a block. It needs no initialization. */
struct cua__tree_scratch {
	uint64_t warps[2][CUA__TREE_WARPS][CUA__TREE_WORDS];
	uint64_t last;
};

#define CUA__DEFINE_TREE_BLOCK(kind, T, two, C, A, none, widen, combine, store)                    \
	struct cua__tree_pack_##kind {                                                             \
		T v[16 / sizeof(T)];                                                               \
	} __attribute__((aligned(16)));                                                            \
                                                                                                   \
	CUA_FORCE struct cua__tree_pack_##kind cua__tree_load_##kind(const T *p, int aligned,      \
								     uint64_t policy)              \
	{                                                                                          \
		struct cua__tree_pack_##kind v;                                                    \
                                                                                                   \
		if (aligned) {                                                                     \
			struct cua__pack words = cua__cached_load(p, policy);                      \
                                                                                                   \
			memcpy(&v, &words, sizeof(v));                                             \
		} else {                                                                           \
			CUA__UNROLL                                                                \
			for (unsigned j = 0; j < 16 / sizeof(T); j++)                              \
				v.v[j] = p[j];                                                     \
		}                                                                                  \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	CUA_FORCE A cua__tree_from_##kind(A v, uint32_t lane)                                      \
	{                                                                                          \
		uint64_t words[sizeof(A) / 8];                                                     \
                                                                                                   \
		memcpy(words, &v, sizeof(v));                                                      \
		CUA__UNROLL                                                                        \
		for (unsigned w = 0; w < sizeof(A) / 8; w++)                                       \
			words[w] = cua_port_shuffle_u64(0xffffffffu, words[w], lane);              \
		memcpy(&v, words, sizeof(v));                                                      \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	/* Combines the values of lanes 0 to 2 * half - 1; the result is in lane 0. */             \
	CUA_FN A cua__tree_lanes_##kind(A v, uint32_t half)                                        \
	{                                                                                          \
		uint32_t lane = cua_port_lane();                                                   \
                                                                                                   \
		for (; half; half /= 2)                                                            \
			v = cua__tree_##combine(v, cua__tree_from_##kind(v, (lane + half) % 32));  \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	/* Combines the values of all packs; the result is in thread 0. */                         \
	CUA_FN A cua__tree_packs_##kind(A v, uint64_t(*warps)[CUA__TREE_WORDS])                    \
	{                                                                                          \
		uint32_t thread = cua_port_thread();                                               \
		uint64_t words[sizeof(A) / 8];                                                     \
                                                                                                   \
		v = cua__tree_lanes_##kind(v, 16);                                                 \
		if (thread % 32 == 0) {                                                            \
			memcpy(words, &v, sizeof(v));                                              \
			CUA__UNROLL                                                                \
			for (unsigned w = 0; w < sizeof(A) / 8; w++)                               \
				CUA_WRITE(warps[thread / 32][w], words[w]);                        \
		}                                                                                  \
		cua_port_sync_block();                                                             \
		if (thread < 32) {                                                                 \
			CUA__UNROLL                                                                \
			for (unsigned w = 0; w < sizeof(A) / 8; w++)                               \
				words[w] = CUA_READ(warps[thread % CUA__TREE_WARPS][w]);           \
			memcpy(&v, words, sizeof(v));                                              \
			v = cua__tree_lanes_##kind(v, CUA__TREE_WARPS / 2);                        \
		}                                                                                  \
		return v;                                                                          \
	}                                                                                          \
                                                                                                   \
	/* \
	 * Folds rows into the columns while at least at_once rows are left; at_once loads \
	 * per array are in flight. \
	 */                                                                                       \
	CUA_FORCE uint32_t cua__tree_rows_##kind(                                                  \
		const struct cua__reduce *r, C *c, const T **x, const T **y, uint32_t row,         \
		uint32_t rows, unsigned at_once, int aligned, const struct cua__cached *cached)    \
	{                                                                                          \
		enum { N = 16 / sizeof(T), WIDTH = 32 * N, MOST = CUA__TREE_LOADS };               \
                                                                                                   \
		for (; row + at_once <= rows; row += at_once) {                                    \
			struct cua__tree_pack_##kind a[MOST], b[MOST];                             \
			uint64_t policy_x = cua__cached_policy(cached, *x);                        \
			uint64_t policy_y = cua__cached_policy(cached, *y);                        \
                                                                                                   \
			CUA__UNROLL                                                                \
			for (unsigned l = 0; l < at_once; l++) {                                   \
				a[l] = cua__tree_load_##kind(*x, aligned, policy_x);               \
				b[l] = two ? cua__tree_load_##kind(*y, aligned, policy_y) : a[l];  \
				*x += WIDTH;                                                       \
				*y += WIDTH;                                                       \
			}                                                                          \
			CUA__UNROLL                                                                \
			for (unsigned l = 0; l < at_once; l++) {                                   \
				CUA__UNROLL                                                        \
				for (unsigned j = 0; j < N; j++)                                   \
					c[j] = cua__tree_##kind##_fold(r, c[j], a[l].v[j],         \
								       b[l].v[j], row + l);        \
			}                                                                          \
		}                                                                                  \
		return row;                                                                        \
	}                                                                                          \
                                                                                                   \
	/* The value of this thread's pack in a chunk. `aligned` is a constant. */                 \
	CUA_FORCE A cua__tree_pack_of_chunk_##kind(                                                \
		const struct cua__reduce *r, const struct cua__tree_shape *shape, uint64_t chunk,  \
		int aligned, const struct cua__cached *cached)                                     \
	{                                                                                          \
		enum {                                                                             \
			N = 16 / sizeof(T),                                                        \
			WIDTH = 32 * N,                                                            \
			LOADS = CUA__TREE_LOADS / (two ? 2 : 1)                                    \
		};                                                                                 \
		uint32_t pack = cua_port_thread() % 32 * N, left, row = 0, rows;                   \
		uint64_t strip = chunk * CUA__TREE_WARPS + cua_port_thread() / 32;                 \
		uint64_t first = strip * shape->rows * WIDTH;                                      \
		const T *x = (const T *)r->x + first + pack, *y = (const T *)r->y + first + pack;  \
		C c[N];                                                                            \
		A v[N];                                                                            \
                                                                                                   \
		rows = cua__tree_strip(shape, first, WIDTH, &left);                                \
		CUA__UNROLL                                                                        \
		for (unsigned j = 0; j < N; j++)                                                   \
			c[j] = cua__tree_##none();                                                 \
		row = cua__tree_rows_##kind(r, c, &x, &y, row, rows, LOADS, aligned, cached);      \
		row = cua__tree_rows_##kind(r, c, &x, &y, row, rows, 1, aligned, cached);          \
		CUA__UNROLL                                                                        \
		for (unsigned j = 0; j < N; j++) {                                                 \
			int more = pack + j < left;                                                \
                                                                                                   \
			if (more)                                                                  \
				c[j] = cua__tree_##kind##_fold(r, c[j], x[j], y[j], rows);         \
			v[j] = cua__tree_##widen(r, c[j], rows + (uint64_t)more, first + pack + j, \
						 WIDTH);                                           \
		}                                                                                  \
		CUA__UNROLL                                                                        \
		for (unsigned w = N / 2; w; w /= 2) {                                              \
			CUA__UNROLL                                                                \
			for (unsigned j = 0; j < w; j++)                                           \
				v[j] = cua__tree_##combine(v[2 * j], v[2 * j + 1]);                \
		}                                                                                  \
		return v[0];                                                                       \
	}                                                                                          \
                                                                                                   \
	/* Every thread of every block calls once. */                                              \
	CUA_FN void cua__tree_block_##kind(const struct cua__reduce *r,                            \
					   struct cua__tree_scratch *s)                            \
	{                                                                                          \
		struct cua__tree_shape shape = cua__tree_shape(cua__reduce_count(r), sizeof(T));   \
		int aligned = (((uintptr_t)r->x | (uintptr_t)r->y) & 15) == 0;                     \
		enum { LOADS = 8 }; /* partial results in flight */                                \
		uint32_t thread = cua_port_thread(), turn = 0;                                     \
		uint64_t blocks = cua_port_grid_size(), chunk, words[sizeof(A) / 8];               \
		uint64_t *partials = (uint64_t *)r->partials;                                      \
		const struct cua__cached cached =                                                  \
			cua__cached(shape.n * sizeof(T) * (two ? 2 : 1), r->kept_bytes);           \
		A v;                                                                               \
                                                                                                   \
		for (chunk = cua_port_block(); chunk < shape.chunks; chunk += blocks) {            \
			if (aligned)                                                               \
				v = cua__tree_pack_of_chunk_##kind(r, &shape, chunk, 1, &cached);  \
			else                                                                       \
				v = cua__tree_pack_of_chunk_##kind(r, &shape, chunk, 0, &cached);  \
			v = cua__tree_packs_##kind(v, s->warps[turn]);                             \
			turn ^= 1;                                                                 \
			if (thread)                                                                \
				continue;                                                          \
			memcpy(words, &v, sizeof(v));                                              \
			CUA__UNROLL                                                                \
			for (unsigned w = 0; w < sizeof(A) / 8; w++)                               \
				CUA_WRITE(partials[chunk * (sizeof(A) / 8) + w], words[w]);        \
		}                                                                                  \
		if (thread == 0)                                                                   \
			CUA_WRITE(s->last, (uint64_t)cua__finish_arrive(r->finish, blocks));       \
		cua_port_sync_block();                                                             \
		if (!CUA_READ(s->last))                                                            \
			return;                                                                    \
		v = cua__tree_##widen(r, cua__tree_##none(), 0, 0, 0);                             \
		for (chunk = thread; chunk < shape.chunks; chunk += LOADS * CUA__TREE_THREADS) {   \
			A next[LOADS];                                                             \
                                                                                                   \
			CUA__UNROLL                                                                \
			for (unsigned l = 0; l < LOADS; l++) {                                     \
				uint64_t at = chunk + l * CUA__TREE_THREADS;                       \
                                                                                                   \
				at = at < shape.chunks ? at : chunk;                               \
				CUA__UNROLL                                                        \
				for (unsigned w = 0; w < sizeof(A) / 8; w++)                       \
					words[w] = CUA_READ(partials[at * (sizeof(A) / 8) + w]);   \
				memcpy(&next[l], words, sizeof(next[l]));                          \
			}                                                                          \
			CUA__UNROLL                                                                \
			for (unsigned l = 0; l < LOADS; l++)                                       \
				if (chunk + l * CUA__TREE_THREADS < shape.chunks)                  \
					v = cua__tree_##combine(v, next[l]);                       \
		}                                                                                  \
		v = cua__tree_packs_##kind(v, s->warps[0]);                                        \
		if (thread == 0)                                                                   \
			cua__tree_##store(r, shape.n, v);                                          \
	}

#endif /* CUATOMIC_KERNELS_TREE_BLOCK_H */
