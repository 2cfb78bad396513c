/* SPDX-License-Identifier: MIT */
/*
 * Runs of equal keys that are found and summed in a single pass, in the order of tree.h, as
 * functions that every thread of a grid calls. cuda/cuda_segment_runs.cu makes a kernel of them for
 * each kind of CUA__TREE_FLOAT_SUMS and size of a key. The pass suits short runs.
 *
 * The pass sums each run that is tiny (CUA__FIXED_TINY_PACKS) and is not the last run of its tile.
 * All remaining runs are pending: the pass stores their offsets, and sets their bits in a bitmap. A
 * second kernel, cua__segment_fixed_pending, sums the pending runs as segments.
 *
 * Tiles, tickets, the words of tiles and the scanning block work as in cua__filter_in_order. A
 * start is the first element of a run. The starts of a tile are counted, and the count is
 * published, CUA__RUNS_LAG tiles before the block needs the tile's offset, the number of starts in
 * lower tiles. Ranking a tile needs only its keys, so its values are copied a tile later:
 *
 *     count the starts of tile k | barrier | publish the count, stage the starts |
 *     copy the keys of tile k + 1 and the values of tile k - 1 | sum the runs of tile k - 2 | ...
 *
 * Tiles k, k + 1, ... belong to the same block, which claims them in this order. The barrier
 * also passes the offset of tile k - 2, and makes its values and its starts visible. So a tile has
 * a single barrier.
 *
 * A lane has consecutive elements of a tile, but a warp copies its keys in whole lines. So the
 * packs of a row of shared memory are permuted: lanes that read their packs meet in no bank.
 *
 * Scope: blocks of the same device. A block has a multiple of 32 threads.
 * Memory order: as for a filter in order that is not in place. Only later kernels in the stream
 *   read the offsets and the bitmap.
 * Progress: as for cua__filter_in_order. A block claims tiles ahead, but it waits only for the
 *   offset of a tile that it has counted, hence for counts of lower tiles. Consider the lowest
 *   claimed tile without a published count. Its block waits only for offsets of lower tiles, and
 *   all counts of lower tiles are published.
 *
 * Argument, reuse of shared memory. Iteration k ranks tile k and has barrier k:
 * - The keys of a warp are read by this warp only. It copies the next keys after all its lanes have
 *   staged their starts.
 * - Values of tile k - 1 are copied after barrier k over the values of tile k - 3. Iteration k - 1
 *   read the latter, before barrier k. Iteration k + 1 reads the copies, after the copying lanes
 *   waited and passed barrier k + 1.
 * - Starts of tile k are staged after barrier k over the starts of tile k - 3: the same.
 * - The words of cua__runs_shared that iteration k writes before barrier k were last read in
 *   iteration k - 2, before barrier k - 1.
 */
#ifndef CUATOMIC_KERNELS_SEGMENT_RUNS_H
#define CUATOMIC_KERNELS_SEGMENT_RUNS_H

#include "kernels/async_copy.h"
#include "kernels/filter_kernel.h"
#include "kernels/segment_tree.h"

/* Iterations between the ranking of a tile and its sums. The buffers of values rely on 2. */
#define CUA__RUNS_LAG 2u
#define CUA__RUNS_STAGES (CUA__RUNS_LAG + 1)
#define CUA__RUNS_BUFFERS 2u

/* No tile. */
#define CUA__RUNS_NONE UINT64_MAX

struct cua__runs_shared {
	uint32_t starts[2][32] __attribute__((aligned(16))); /* of each warp */
	uint64_t next[2];                                    /* the next tile of the block */
	uint64_t first[2];                                   /* the offset of the tile to sum */
	struct cua__filter_shared filter;
};

/* Shared by the functions of a block. */
struct cua__runs_block {
	uint64_t tiles;
	uint32_t shift;       /* elements before the keys in their first pack */
	uint32_t value_shift; /* elements before the values of a tile in their first pack */
	struct cua__runs_shared *sh;
	/* of a tile; of CUA__RUNS_BUFFERS tiles; of CUA__RUNS_STAGES tiles */
	struct cua__pack *keys;
	char *values, *stages;
};

/* A tile between its ranking and its sums. */
struct cua__runs_tile {
	uint64_t tile;   /* or CUA__RUNS_NONE */
	uint32_t starts; /* their number */
};

/* ---- sizes ---- */

/* Consecutive elements of a thread in a tile. */
CUA_FORCE uint32_t cua__runs_elements(const struct cua__filter_kind k)
{
	return k.loads * cua__filter_per(k);
}

/* Bytes of a buffer of values of `size` bytes. */
CUA_FORCE uint32_t cua__runs_buffer(const struct cua__filter_kind k, uint32_t size)
{
	return cua__filter_tile(k) * size + 16;
}

/*
 * A stage has the indexes of all starts of a tile, or, if a tile has few starts, their indexes and
 * then their keys.
 */
CUA_FORCE uint32_t cua__runs_stage(const struct cua__filter_kind k)
{
	return cua__filter_tile(k) * (uint32_t)sizeof(CUA__FILTER_LOCAL);
}

/* The most starts that have room for their keys. */
CUA_FORCE uint32_t cua__runs_few(const struct cua__filter_kind k)
{
	return cua__filter_tile(k) / k.size;
}

/* Bytes of a block's buffers and stages in shared memory, for values of `size` bytes. */
CUA_FORCE uint32_t cua__runs_room(const struct cua__filter_kind k, uint32_t size)
{
	return cua__filter_tile(k) * k.size + CUA__RUNS_BUFFERS * cua__runs_buffer(k, size) +
	       CUA__RUNS_STAGES * cua__runs_stage(k);
}

CUA_FORCE struct cua__runs_block cua__runs_block(const struct cua__filter_kind k,
						 const struct cua__filter *f,
						 const struct cua__segments *s, uint32_t size,
						 struct cua__runs_shared *sh, void *room)
{
	struct cua__runs_block b;

	b.tiles = cua__filter_tiles(k, f);
	b.shift = cua__filter_shift(k, f->x);
	b.value_shift = (uint32_t)(((uintptr_t)s->x - (uintptr_t)b.shift * size) % 16 / size);
	b.sh = sh;
	b.keys = (struct cua__pack *)room;
	b.values = (char *)room + cua__filter_tile(k) * k.size;
	b.stages = b.values + CUA__RUNS_BUFFERS * cua__runs_buffer(k, size);
	return b;
}

/* ---- keys ---- */

/* The place of pack i of a warp's keys. */
CUA_FORCE uint32_t cua__runs_place(const struct cua__filter_kind k, uint32_t i)
{
	return i ^ (i / 8 % k.loads);
}

/* Whether all elements of the tile are in the array of keys. */
CUA_FORCE int cua__runs_whole(const struct cua__filter_kind k, const struct cua__filter *f,
			      const struct cua__runs_block *b, uint64_t tile)
{
	return (tile || !b->shift) && (tile + 1) * cua__filter_tile(k) <= f->n + b->shift;
}

/*
 * Copies the keys of the calling warp. Returns the predecessor of its first key to lane 0, and 0 to
 * all higher lanes.
 */
CUA_FORCE uint64_t cua__runs_read_keys(const struct cua__filter_kind k, const struct cua__filter *f,
				       const struct cua__runs_block *b, uint64_t tile)
{
	const uint32_t per = cua__filter_per(k), lane = cua_port_lane(),
		       packs = cua_port_thread() / 32 * 32 * k.loads;
	/* the warp's first element, counted from the beginning of tile 0 */
	const uint64_t at = tile * cua__filter_tile(k) + packs * per;
	const char *x = (const char *)f->x + (at - b->shift) * k.size;
	struct cua__pack *to = b->keys + packs;
	uint64_t before = 0;
	uint32_t j, c;

	if (lane == 0 && at > b->shift && at - b->shift <= f->n)
		before = cua__filter_load_before(k, x);
	if (cua__runs_whole(k, f, b, tile)) {
		CUA__UNROLL
		for (j = 0; j < k.loads; j++) {
			const uint32_t i = j * 32 + lane;

			cua__copy_pack(&to[cua__runs_place(k, i)], x + i * 16);
		}
		return before;
	}
	for (j = 0; j < k.loads; j++) {
		const uint32_t i = j * 32 + lane;
		struct cua__pack v = {{0, 0, 0, 0}};

		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint64_t element = at + i * per + c;

			if (element >= b->shift && element < f->n + b->shift)
				cua__filter_load_one(k, &v, c, x + (i * per + c) * k.size);
		}
		CUA_WRITE(to[cua__runs_place(k, i)], v);
	}
	return before;
}

/*
 * The starts among the thread's elements, a bit each. Called by a whole warp, after its lanes have
 * waited for their copies.
 */
CUA_FORCE uint32_t cua__runs_starts(const struct cua__filter_kind k, const struct cua__filter *f,
				    const struct cua__runs_block *b, uint64_t tile, uint64_t before)
{
	const uint32_t per = cua__filter_per(k), lane = cua_port_lane(), thread = cua_port_thread(),
		       all = cua__runs_elements(k);
	const struct cua__pack *from = b->keys + thread / 32 * 32 * k.loads;
	struct cua__pack v[8];
	uint64_t last, other;
	uint32_t bits = 0, j, c;

	CUA__UNROLL
	for (j = 0; j < k.loads; j++)
		v[j] = CUA_READ(from[cua__runs_place(k, lane * k.loads + j)]);
	last = cua__pack_element(k.size, &v[k.loads - 1], per - 1);
	other = k.size == 4 ? cua_port_shuffle_u32(CUA__ALL_LANES, (uint32_t)last, (lane + 31) % 32)
			    : cua_port_shuffle_u64(CUA__ALL_LANES, last, (lane + 31) % 32);
	before = lane ? other : before;
	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint64_t key = cua__pack_element(k.size, &v[j], c);

			if (key != before)
				bits |= (uint32_t)1 << (j * per + c);
			before = key;
		}
	}
	if (!tile || !cua__runs_whole(k, f, b, tile)) {
		const uint64_t at = tile * cua__filter_tile(k) + thread * all,
			       end = f->n + b->shift;

		/* the array's first element */
		if (at <= b->shift && b->shift - at < all)
			bits |= (uint32_t)1 << (b->shift - at);
		/* bits of elements before and after the array */
		if (at < b->shift)
			bits &= b->shift - at < all ? ~(uint32_t)0 << (b->shift - at) : 0;
		if (end < at + all)
			bits &= end > at ? ((uint32_t)1 << (end - at)) - 1 : 0;
	}
	return bits;
}

/*
 * Stages the indexes of the thread's starts in the tile, given as bits, and their keys if the tile
 * has few starts. The first of them is start `at` of the tile.
 */
CUA_FORCE void cua__runs_stage_starts(const struct cua__filter_kind k,
				      const struct cua__runs_block *b, uint32_t stage,
				      uint32_t bits, uint32_t at, int few)
{
	const uint32_t per = cua__filter_per(k), lane = cua_port_lane(), thread = cua_port_thread();
	const struct cua__pack *from = b->keys + thread / 32 * 32 * k.loads;
	CUA__FILTER_LOCAL *locals =
		(CUA__FILTER_LOCAL *)(void *)(b->stages + stage * cua__runs_stage(k));
	void *keys = locals + cua__runs_few(k);

	for (; bits; bits &= bits - 1, at++) {
		const uint32_t c = cua_port_ffs_u32(bits) - 1;
		const struct cua__pack *pack = &from[cua__runs_place(k, lane * k.loads + c / per)];

		CUA_WRITE(locals[at], (CUA__FILTER_LOCAL)(thread * cua__runs_elements(k) + c));
		if (few && k.size == 4)
			CUA_WRITE(((cua__raw32 *)keys)[at],
				  CUA_READ(((const cua__raw32 *)pack)[c % per]));
		else if (few)
			CUA_WRITE(((cua__raw64 *)keys)[at],
				  CUA_READ(((const cua__raw64 *)pack)[c % per]));
	}
}

/* ---- the steps of a tile ---- */

/* A thread's starts, between the two halves of the ranking of a tile. */
struct cua__runs_ranks {
	uint32_t bits;
	uint32_t before; /* starts of lower lanes of the warp */
	uint64_t one;    /* for cua__filter_ticket */
};

/* Counts the starts of each warp in sh->starts[turn]. */
CUA_FORCE struct cua__runs_ranks cua__runs_count(const struct cua__filter_kind k,
						 const struct cua__filter *f,
						 const struct cua__runs_block *b, uint64_t tile,
						 uint64_t before, uint32_t turn)
{
	const uint32_t lane = cua_port_lane();
	struct cua__runs_ranks r;
	uint32_t own, upto;

	r.bits = cua__runs_starts(k, f, b, tile, before);
	own = cua_port_popc_u32(r.bits);
	upto = cua__filter_scan_warp(lane, own);
	if (lane == 31)
		CUA_WRITE(b->sh->starts[turn][cua_port_thread() / 32], upto);
	r.before = upto - own;
	/* a warp has fewer than 2^31 starts, so this adds 0 */
	r.one = 1 + (upto >> 31);
	return r;
}

/*
 * After the barrier: publishes the count of the tile, and stages its starts. Returns their number.
 */
CUA_FORCE uint32_t cua__runs_rank(const struct cua__filter_kind k, const struct cua__filter *f,
				  const struct cua__runs_block *b, uint64_t tile,
				  const struct cua__runs_ranks *r, uint32_t turn, uint32_t stage)
{
	const uint32_t warp = cua_port_thread() / 32;
	uint32_t before = 0, starts = 0, w, c;

	CUA__UNROLL
	for (w = 0; w < k.warps; w += 4) {
		const struct cua__pack v =
			CUA_READ(*(const struct cua__pack *)(const void *)&b->sh->starts[turn][w]);

		CUA__UNROLL
		for (c = 0; c < 4 && w + c < k.warps; c++) {
			before += w + c < warp ? v.word[c] : 0;
			starts += v.word[c];
		}
	}
	if (cua_port_thread() == 0)
		cua__filter_publish(f, 0, tile, CUA__FILTER_COUNT | starts);
	cua__runs_stage_starts(k, b, stage, r->bits, before + r->before,
			       starts <= cua__runs_few(k));
	return starts;
}

#define CUA__TREE_TEMPLATE "kernels/segment_runs.tmpl.h"
#define CUA__TREE_WITH_FLOAT_SUMS
#include "kernels/tree_kinds.tmpl.h"

#endif /* CUATOMIC_KERNELS_SEGMENT_RUNS_H */
