/* SPDX-License-Identifier: MIT */
/*
 * The filter on a GPU. Every thread of a grid calls these functions; cuda/cuda_filter.cu makes
 * kernels of them. A tile is the elements that a block reads in a step. Every kernel makes a single
 * pass over the elements. A partition in order makes two passes.
 *
 * Source: stream compaction by a scan of the block. cuda/cuda_filter.cu chooses the kernel:
 * - cua__filter_direct, without order: a fetch-and-add per tile assigns the offset of its kept
 *   elements, and in a partition a second fetch-and-add that of its rejected elements.
 * - cua__filter_count, then cua__filter_direct, for a partition in order: see below.
 * - cua__filter_in_order: each block publishes the counts of its tiles. A single block, the
 *   scanning block, sums the counts and publishes each tile's offset. It processes tiles itself
 *   only if no other block does.
 * - cua__filter_short, for arrays of at most CUA__FILTER_SHORT tiles: each block has exactly 1
 *   tile, and there is no scanning block. In order, each block sums the published counts of the
 *   lower tiles itself. Without order it fetches its offset by an atomic. A partition in order
 *   counts the kept elements first.
 *
 * Partition in order: the offset of a rejected element depends on all elements, that of a kept
 * element on the lower elements. So if half of the elements are kept, any algorithm reads or stores
 * half of the elements twice. A pass that only counts reads each element once more, and needs no
 * room for elements. cua__filter_count counts the kept elements of each tile, and its last block
 * turns the counts into offsets. Then cua__filter_direct stores the tiles in any order. It begins
 * with the last tile, which the L2 still has.
 *
 * cua__filter_in_order and cua__filter_short also find runs of equal elements (CUA__FILTER_CHANGE):
 * an element is kept if it differs from its predecessor. The predecessor is in the same lane, or is
 * the last element of the lane below. For the first element of a warp, lane 0 loads the predecessor
 * from the array.
 *
 * Tiles begin at 16-byte boundaries, even if the array does not. Kept elements are staged in shared
 * memory, from which a warp stores whole lines. A block loads its next tile while it stores an
 * earlier tile:
 *
 *     direct: load tile k + 1 | receive the offset of tile k | barrier |
 *     store tile k | compare tile k + 1, rank it | barrier |
 *     stage tile k + 1, fetch its offset | ...
 *
 *     in order: compare tile k, rank it | barrier | publish its count, stage it | load tile k + 1 |
 *     receive the offset of tile k - 1 or k - 2 | barrier | store that tile | ...
 *
 * Tiles k, k + 1, ... are here the tiles of a block, in the order of its claims. In order a count is
 * published as soon as it is known, even if offsets are still unknown. With a stage for 2 tiles the
 * scanning block has the time of 1 whole tile to compute an offset; with a stage for 3 tiles, of 2.
 *
 * Scope: blocks of the same device. A block has a multiple of 32 threads, at most 1024.
 *
 * Memory order: a tile's word is all that a reader needs, so its accesses are relaxed, except:
 *   - In place, the tile's offset must also prove that all lower tiles were read, because the block
 *     stores over their elements. The store of a count is a release. The barrier before it makes
 *     the release cover the loads of the whole block. The scanning block acquires each count,
 *     passes a barrier, and releases each offset. The thread that receives the offset acquires it
 *     before the barrier that precedes its block's stores. A tile's own loads precede the barrier
 *     that precedes its staging. In a short array the thread that sums acquires all lower counts.
 *   - In a short array with a buffer, a count also proves that its block has read the end of the
 *     buffer before the last block moves that end. So these counts are released and acquired too.
 *   - The count of a range of tiles is a plain store, which precedes its block's arrival. An arrival
 *     is an acquire and a release. So the last block to arrive acquires the counts of all ranges.
 *     The barrier after its arrival makes the acquire cover the whole block.
 *   - The offsets of a partition in order are plain stores, which only the next kernel in the
 *     stream reads.
 * Progress, without order and for a partition: no block waits for another block.
 * Progress, in order: blocks that run claim tiles by tickets, in ascending order. A block publishes
 *   the count of each claimed tile before it waits for any offset except those of its earlier
 *   tiles, whose counts it has published too. The scanning block can publish an offset once the
 *   counts of all lower tiles are published. Consider the lowest tile that is claimed and has no
 *   published count. Its block waits only for the scanning block, and only for offsets of lower
 *   tiles, which the scanning block can already publish. So each claimed tile gets a count. The
 *   scanning block waits only for counts of claimed tiles. If no other block claims the next tile,
 *   the scanning block claims it, and continues to scan while that tile waits for its offset. The
 *   scanning block is the block with the first ticket, so it runs.
 * Progress, short array in order: a tile waits only for counts of lower tiles. Each is published by
 *   a block that runs and has not waited.
 */
#ifndef CUATOMIC_KERNELS_FILTER_KERNEL_H
#define CUATOMIC_KERNELS_FILTER_KERNEL_H

#include "backend/filter_backend.h"

/* The index of an element in its tile. */
#ifndef CUA__FILTER_LOCAL
#define CUA__FILTER_LOCAL uint16_t
#endif

/* Compile-time parameters of a kernel. */
struct cua__filter_kind {
	enum cua__filter_key key;
	uint32_t size;   /* bytes of an element */
	uint32_t loads;  /* loads of a thread in a tile: 2, 4 or 8 */
	uint32_t warps;  /* warps of a block */
	int lean;        /* stores values only, without indexes */
	uint32_t stages; /* in order: tiles that the stage has room for, 2 or 3 */
	/* whether the kernel has a path for partitions; a lean kernel has no other path then */
	int partitions;
};

struct cua__filter_shared {
	/* offset of the tile's first kept element, and of its first rejected element */
	uint64_t first;
	uint64_t rest;
	uint64_t next;
	uint32_t kept[32]; /* by each warp */
	/*
	 * Of the scan, alternating between steps. For the published tiles before a warp's first
	 * gap: their kept elements, and their number.
	 */
	uint32_t scan_kept[2][32], scan_published[2][32];
};

/* Tiles of a range of cua__filter_count, at most. */
#define CUA__FILTER_RANGE 16u

/* Of cua__filter_count. */
struct cua__filter_counts {
	uint64_t is_last;
	uint64_t sums[2][32];             /* of a step over the ranges, alternating: by each warp */
	uint32_t kept[CUA__FILTER_RANGE]; /* of each tile of the range */
};

/* Elements of a pack. */
CUA_FORCE uint32_t cua__filter_per(const struct cua__filter_kind k)
{
	return k.size <= 4 ? 4 : 16 / k.size;
}

CUA_FORCE uint32_t cua__filter_tile(const struct cua__filter_kind k)
{
	return k.warps * 32 * k.loads * cua__filter_per(k);
}

/* Number of elements before the array in its first aligned pack. They count as part of tile 0. */
CUA_FORCE uint32_t cua__filter_shift(const struct cua__filter_kind k, const void *x)
{
	return (uint32_t)((uintptr_t)x % (cua__filter_per(k) * k.size) / k.size);
}

CUA_FORCE uint64_t cua__filter_tiles(const struct cua__filter_kind k, const struct cua__filter *f)
{
	uint64_t n = f->n + cua__filter_shift(k, f->x), tile = cua__filter_tile(k);

	return n / tile + (n % tile != 0);
}

/* Whether the call is a partition. */
CUA_FORCE int cua__filter_partition(const struct cua__filter_kind k, const struct cua__filter *f)
{
	return k.partitions && (k.lean || f->partition);
}

/*
 * Partition in order: loads of a thread of cua__filter_count in a tile. A tile of
 * cua__filter_direct has one or more of its tiles.
 */
#ifndef CUA__FILTER_COUNT_LOADS
#define CUA__FILTER_COUNT_LOADS 4u
#endif

/* Number of ranges of a partition in order; `tiles` are those of cua__filter_count. */
CUA_FORCE uint64_t cua__filter_ranges(const struct cua__filter *f, uint64_t tiles)
{
	return ((tiles - 1) >> f->range_shift) + 1;
}

/* ---- elements ---- */

CUA_FORCE void cua__filter_load(const struct cua__filter_kind k, struct cua__pack *v, const char *p)
{
	if (k.size == 1) {
		v->word[0] = CUA_READ(*(const cua__raw32 *)(const void *)p);
	} else if (k.size == 2) {
		uint64_t bits = CUA_READ(*(const cua__raw64 *)(const void *)p);

		v->word[0] = (uint32_t)bits;
		v->word[1] = (uint32_t)(bits >> 32);
	} else {
		*v = CUA_READ(*(const struct cua__pack *)(const void *)p);
	}
}

/* Loads a single element as element c of a zeroed pack. */
CUA_FORCE void cua__filter_load_one(const struct cua__filter_kind k, struct cua__pack *v,
				    uint32_t c, const char *p)
{
	if (k.size == 16)
		*v = CUA_READ(*(const struct cua__pack *)(const void *)p);
	else if (k.size == 8) {
		uint64_t bits = CUA_READ(*(const cua__raw64 *)(const void *)p);

		v->word[c * 2 % 4] = (uint32_t)bits;
		v->word[(c * 2 + 1) % 4] = (uint32_t)(bits >> 32);
	} else if (k.size == 4)
		v->word[c] = CUA_READ(*(const cua__raw32 *)(const void *)p);
	else if (k.size == 2)
		v->word[c / 2] |= (uint32_t)CUA_READ(*(const cua__raw16 *)(const void *)p)
				  << c % 2 * 16;
	else
		v->word[0] |= (uint32_t)CUA_READ(*(const uint8_t *)p) << c * 8;
}

/* Stores element c of a pack as element i of the stage. */
CUA_FORCE void cua__filter_stage(const struct cua__filter_kind k, void *to, uint32_t i,
				 const struct cua__pack *v, uint32_t c)
{
	if (k.size == 16)
		CUA_WRITE(((struct cua__pack *)to)[i], *v);
	else if (k.size == 8)
		CUA_WRITE(((cua__raw64 *)to)[i], cua__pack_element(8, v, c));
	else if (k.size == 4)
		CUA_WRITE(((cua__raw32 *)to)[i], (uint32_t)cua__pack_element(4, v, c));
	else if (k.size == 2)
		CUA_WRITE(((cua__raw16 *)to)[i], (uint16_t)(uint32_t)cua__pack_element(2, v, c));
	else
		CUA_WRITE(((uint8_t *)to)[i], (uint8_t)(uint32_t)cua__pack_element(1, v, c));
}

/* The kept elements of a pack, a bit each; flags has a byte each. */
CUA_FORCE uint32_t cua__filter_keeps(const struct cua__filter_kind k, const struct cua__filter *f,
				     const struct cua__pack *v, uint32_t flags)
{
	uint32_t bits = 0, c;

	CUA__UNROLL
	for (c = 0; c < cua__filter_per(k); c++) {
		int keep;

		if (k.key == CUA__FILTER_FLAG)
			keep = (flags >> c * 8 & 0xff) != 0;
		else if (k.size == 8)
			keep = cua__filter_key64(k.key, cua__pack_element(8, v, c)) - f->low <=
			       f->range;
		else
			keep = cua__filter_in32(
				k.size,
				cua__filter_key32(k.key, k.size,
						  (uint32_t)cua__pack_element(k.size, v, c)),
				(uint32_t)f->low, (uint32_t)f->range);
		bits |= (uint32_t)keep << c;
	}
	return bits;
}

/* The predecessor of the element at p; elements have 4 or 8 bytes. */
CUA_FORCE uint64_t cua__filter_load_before(const struct cua__filter_kind k, const char *p)
{
	if (k.size == 4)
		return CUA_READ(*(const cua__raw32 *)(const void *)(p - 4));
	return CUA_READ(*(const cua__raw64 *)(const void *)(p - 8));
}

/*
 * A thread's elements of a tile. Lane l of a warp loads pack j from element (j * 32 + l) * per of
 * the warp's range.
 */
struct cua__filter_items {
	struct cua__pack v[8];
	uint32_t flags[8];
	uint32_t valid; /* a bit for each element that is in the array */
	/*
	 * runs: in lane 0, the predecessor of the warp's first element; and the bit of the array's
	 * first element
	 */
	uint64_t before;
	uint32_t start;
};

CUA_FORCE void cua__filter_read_nothing(struct cua__filter_items *t)
{
	t->before = t->start = t->valid = 0;
}

CUA_FORCE void cua__filter_read(const struct cua__filter_kind k, const struct cua__filter *f,
				uint64_t tile, uint32_t shift, struct cua__filter_items *t)
{
	const uint32_t per = cua__filter_per(k), thread = cua_port_thread();
	/* the first element of this thread, counted from the beginning of tile 0 */
	const uint64_t at =
		tile * cua__filter_tile(k) + (thread / 32 * (32 * k.loads) + thread % 32) * per;
	const uint64_t end = tile * cua__filter_tile(k) + cua__filter_tile(k);
	const char *x = (const char *)f->x + (at - shift) * k.size;
	const uint8_t *flags = f->flags + (at - shift);
	const int has_values = k.lean || k.key != CUA__FILTER_FLAG || f->values;
	uint32_t j, c;

	t->before = t->start = 0;
	if (k.key == CUA__FILTER_CHANGE) {
		t->start = at == 0 && !shift;
		if (thread % 32 == 0 && at > shift && at - shift <= f->n)
			t->before = cua__filter_load_before(k, x);
	}
	if ((tile || !shift) && end <= f->n + shift) {
		t->valid = CUA__ALL_LANES >> (32 - k.loads * per);
		if (has_values) {
			CUA__UNROLL
			for (j = 0; j < k.loads; j++)
				cua__filter_load(k, &t->v[j], x + j * (32 * per * k.size));
		}
		if (k.key != CUA__FILTER_FLAG)
			return;
		if (per == 4 && (uintptr_t)flags % 4 == 0) {
			CUA__UNROLL
			for (j = 0; j < k.loads; j++)
				t->flags[j] = CUA_READ(*(
					const cua__raw32 *)(const void *)(flags + j * (32 * per)));
			return;
		}
		CUA__UNROLL
		for (j = 0; j < k.loads; j++) {
			t->flags[j] = 0;
			CUA__UNROLL
			for (c = 0; c < per; c++)
				t->flags[j] |= (uint32_t)CUA_READ(flags[j * (32 * per) + c])
					       << c * 8;
		}
		return;
	}
	t->valid = 0;
	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		t->v[j].word[0] = t->v[j].word[1] = t->v[j].word[2] = t->v[j].word[3] = 0;
		t->flags[j] = 0;
		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint32_t step = j * (32 * per) + c;

			if (at + step < shift || at + step >= f->n + shift)
				continue;
			t->valid |= (uint32_t)1 << (j * per + c);
			if (k.key == CUA__FILTER_CHANGE && at + step == shift)
				t->start = (uint32_t)1 << (j * per + c);
			if (has_values)
				cua__filter_load_one(k, &t->v[j], c, x + step * k.size);
			if (k.key == CUA__FILTER_FLAG)
				t->flags[j] |= (uint32_t)CUA_READ(flags[step]) << c * 8;
		}
	}
}

/* ---- offsets ---- */

/*
 * A tile's word is 0, then its count, then its offset. The two top bits distinguish these states,
 * so a published count of 0 differs from the initial 0.
 */
#define CUA__FILTER_COUNT ((uint64_t)1 << 62)
#define CUA__FILTER_OFFSET ((uint64_t)2 << 62)
#define CUA__FILTER_NUMBER (((uint64_t)1 << 62) - 1)
/*
 * Words that a lane of the scanning block polls in a step, and the idle steps after which that
 * block claims a tile. cua__filter_add_ranges has as many words a lane.
 */
#ifndef CUA__FILTER_POLLS
#define CUA__FILTER_POLLS 4u
#define CUA__FILTER_PATIENCE 100u
#endif

CUA_FORCE uint64_t cua__filter_load_word(const struct cua__filter *f, int acquire, uint64_t tile)
{
	if (acquire)
		return cua_port_load_b64(&f->tiles[tile], CUA_ACQUIRE, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GLOBAL);
	return cua_port_load_b64(&f->tiles[tile], CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

CUA_FORCE void cua__filter_publish(const struct cua__filter *f, int release, uint64_t tile,
				   uint64_t word)
{
	if (release)
		cua_port_store_b64(&f->tiles[tile], word, CUA_RELEASE, CUA_SCOPE_DEVICE,
				   CUA_SPACE_GLOBAL);
	else
		cua_port_store_b64(&f->tiles[tile], word, CUA_RELAXED, CUA_SCOPE_DEVICE,
				   CUA_SPACE_GLOBAL);
}

/*
 * Waits for the offset of a tile in order. `word` is the last known word of the tile. Called by a
 * single thread of a block that has published the tile's count.
 */
CUA_FORCE uint64_t cua__filter_await_offset(const struct cua__filter *f, int acquire, uint64_t tile,
					    uint64_t word)
{
	while (word < CUA__FILTER_OFFSET) {
		word = cua__filter_load_word(f, acquire, tile);
		if (word < CUA__FILTER_OFFSET)
			cua_port_pause(32);
	}
	return word & CUA__FILTER_NUMBER;
}

/* The first offset: the end of the buffer, read before any block moves it. At most the capacity. */
CUA_FORCE uint64_t cua__filter_base(const struct cua__filter *f)
{
	uint64_t demand;

	if (!f->demand)
		return 0;
	demand = cua_port_load_b64(f->demand, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	return demand < f->capacity ? demand : f->capacity;
}

/*
 * In order: publishes the total number of kept elements. Called by a single thread, which knows the
 * last offset.
 */
CUA_FORCE void cua__filter_publish_total(const struct cua__filter_kind k,
					 const struct cua__filter *f, uint64_t kept)
{
	if (k.key == CUA__FILTER_CHANGE) {
		CUA_WRITE(*f->count_copy, kept);
		if (kept <= f->capacity)
			CUA_WRITE(((cua__raw64 *)f->indexes)[kept], f->n);
	}
	if (f->demand)
		cua_port_add_u64(f->demand, kept, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		CUA_WRITE(*f->count, kept);
}

/* Inclusive prefix sum over a warp. */
CUA_FORCE uint32_t cua__filter_scan_warp(uint32_t lane, uint32_t v)
{
	uint32_t step;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint32_t below = cua_port_shuffle_u32(CUA__ALL_LANES, v, lane - step);

		v += lane >= step ? below : 0;
	}
	return v;
}

/*
 * A step of the scan, by a whole block. Publishes the offsets of the consecutive tiles from `first`
 * on whose counts are published, and stops at the first gap. *offset is the offset of tile `first`,
 * and becomes the offset after these tiles. Returns the number of tiles. `turn` alternates between
 * 0 and 1.
 */
CUA_FORCE uint32_t cua__filter_scan_step(const struct cua__filter_kind k,
					 const struct cua__filter *f, struct cua__filter_shared *sh,
					 uint32_t turn, uint64_t tiles, uint64_t first,
					 uint64_t *offset)
{
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / 32,
		       full = CUA__FILTER_POLLS * 32;
	const uint64_t tile = first + warp * full + lane;
	uint32_t before[CUA__FILTER_POLLS], published = 0, kept = 0, all = 0, lower = 0, j, w;
	uint64_t word[CUA__FILTER_POLLS];
	int reached = 1, goes_on = 1;

	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_POLLS; j++)
		word[j] = tile + j * 32 < tiles
				  ? cua__filter_load_word(f, f->in_place, tile + j * 32)
				  : 0;
	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_POLLS; j++) {
		uint32_t unpublished = ~cua_port_ballot(CUA__ALL_LANES, word[j] != 0);
		uint32_t run = !goes_on ? 0 : unpublished ? cua_port_ffs_u32(unpublished) - 1 : 32;
		uint32_t own = lane < run ? (uint32_t)(word[j] & CUA__FILTER_NUMBER) : 0;
		uint32_t upto = cua__filter_scan_warp(lane, own);

		before[j] = kept + upto - own;
		kept += cua_port_shuffle_u32(CUA__ALL_LANES, upto, 31);
		published += run;
		goes_on = run == 32;
	}
	if (lane == 0) {
		CUA_WRITE(sh->scan_kept[turn][warp], kept);
		CUA_WRITE(sh->scan_published[turn][warp], published);
	}
	cua_port_sync_block();
	/*
	 * the gap is in the first warp that does not have all of its tiles published; higher warps
	 * publish nothing
	 */
	goes_on = 1;
	kept = 0;
	CUA__UNROLL
	for (w = 0; w < k.warps; w++) {
		const uint32_t of_warp = CUA_READ(sh->scan_published[turn][w]);

		if (w == warp) {
			reached = goes_on;
			lower = kept;
		}
		if (goes_on) {
			kept += CUA_READ(sh->scan_kept[turn][w]);
			all += of_warp;
		}
		goes_on = goes_on && of_warp == full;
	}
	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_POLLS; j++)
		if (reached && j * 32 + lane < published)
			cua__filter_publish(f, f->in_place, tile + j * 32,
					    CUA__FILTER_OFFSET | (*offset + lower + before[j]));
	*offset += kept;
	return all;
}

/* ---- building blocks of the kernels ---- */

/*
 * Stores n staged elements at `to`. The threads start at a 128-byte line, so that a warp stores
 * whole lines. Each thread reads 4 elements at a time, so that it waits for shared memory once.
 */
#define CUA__DEFINE_FILTER_STORE(name, T)                                                          \
	CUA_FORCE void cua__filter_store_##name(uint32_t threads, T *to, const T *stage,           \
						uint32_t n)                                        \
	{                                                                                          \
		uint32_t i = cua_port_thread() - (uint32_t)((uintptr_t)to % 128 / sizeof(T)), j;   \
                                                                                                   \
		/* skip indexes below the first element */                                         \
		while ((int32_t)i < 0)                                                             \
			i += threads;                                                              \
		for (; i + 3 * threads < n; i += 4 * threads) {                                    \
			T v[4];                                                                    \
                                                                                                   \
			CUA__UNROLL                                                                \
			for (j = 0; j < 4; j++)                                                    \
				v[j] = CUA_READ(stage[i + j * threads]);                           \
			CUA__UNROLL                                                                \
			for (j = 0; j < 4; j++)                                                    \
				CUA_WRITE(to[i + j * threads], v[j]);                              \
		}                                                                                  \
		for (; i < n; i += threads)                                                        \
			CUA_WRITE(to[i], CUA_READ(stage[i]));                                      \
	}
CUA__DEFINE_FILTER_STORE(8, uint8_t)
CUA__DEFINE_FILTER_STORE(16, cua__raw16)
CUA__DEFINE_FILTER_STORE(32, cua__raw32)
CUA__DEFINE_FILTER_STORE(64, cua__raw64)
CUA__DEFINE_FILTER_STORE(128, struct cua__pack)

/* Stores n staged elements, from index `from` of the stage on, at offset `first`. */
CUA_FORCE void cua__filter_store(const struct cua__filter_kind k, const struct cua__filter *f,
				 uint64_t first, uint32_t n, const void *stage, uint32_t from)
{
	const uint32_t threads = k.warps * 32;

	if (first >= f->capacity)
		return;
	if (f->capacity - first < n)
		n = (uint32_t)(f->capacity - first);
	if (k.size == 16)
		cua__filter_store_128(threads, (struct cua__pack *)f->values + first,
				      (const struct cua__pack *)stage + from, n);
	else if (k.size == 8)
		cua__filter_store_64(threads, (cua__raw64 *)f->values + first,
				     (const cua__raw64 *)stage + from, n);
	else if (k.size == 4)
		cua__filter_store_32(threads, (cua__raw32 *)f->values + first,
				     (const cua__raw32 *)stage + from, n);
	else if (k.size == 2)
		cua__filter_store_16(threads, (cua__raw16 *)f->values + first,
				     (const cua__raw16 *)stage + from, n);
	else
		cua__filter_store_8(threads, (uint8_t *)f->values + first,
				    (const uint8_t *)stage + from, n);
}

/*
 * Stores the indexes of the elements instead of their values: `begin` plus each number in `locals`.
 * For runs it also stores the values. These are read again from the array, which is still in a
 * cache, so that they need no room in the stage.
 */
CUA_FORCE void cua__filter_store_indexes(const struct cua__filter_kind k,
					 const struct cua__filter *f, uint64_t first,
					 uint32_t total, uint64_t begin,
					 const CUA__FILTER_LOCAL *locals, uint32_t from)
{
	/* runs have room for 1 more start, the end of the last run */
	const uint64_t capacity = f->capacity + (k.key == CUA__FILTER_CHANGE);
	uint32_t i;

	for (i = cua_port_thread(); i < total && first + i < capacity; i += k.warps * 32) {
		uint64_t index = begin + CUA_READ(locals[from + i]);

		if (f->index_size == 4)
			CUA_WRITE(((cua__raw32 *)f->indexes)[first + i], (uint32_t)index);
		else
			CUA_WRITE(((cua__raw64 *)f->indexes)[first + i], index);
		if (k.key != CUA__FILTER_CHANGE || first + i >= f->capacity)
			continue;
		if (k.size == 4)
			CUA_WRITE(((cua__raw32 *)f->values)[first + i],
				  CUA_READ(((const cua__raw32 *)f->x)[index]));
		else
			CUA_WRITE(((cua__raw64 *)f->values)[first + i],
				  CUA_READ(((const cua__raw64 *)f->x)[index]));
	}
}

/* Whether the kernel stages values. */
CUA_FORCE int cua__filter_stages(const struct cua__filter_kind k, const struct cua__filter *f)
{
	return k.key != CUA__FILTER_CHANGE && (k.lean || f->values);
}

/* A tile whose kept elements are staged. */
struct cua__filter_staged {
	uint64_t tile;
	/* the elements have the numbers first_local to first_local + elements - 1 in the tile */
	uint32_t kept, elements, first_local;
};

/* The ranks of a thread's kept elements in its warp. */
struct cua__filter_ranks {
	uint32_t kept;    /* a bit for each kept element */
	uint32_t rank[8]; /* rank of the first kept element of each pack */
	uint32_t own;     /* kept elements of the warp */
	uint64_t one;     /* 1, but unknown to the compiler */
};

/* The starts of runs among a thread's elements, a bit each. Called by a whole warp. */
CUA_FORCE uint32_t cua__filter_changes(const struct cua__filter_kind k,
				       const struct cua__filter_items *t)
{
	const uint32_t per = cua__filter_per(k), lane = cua_port_thread() % 32;
	uint64_t lowest = t->before;
	uint32_t bits = t->start, j, c;

	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		uint64_t last = cua__pack_element(k.size, &t->v[j], per - 1);
		/* from the lane below; lane 0 gets lane 31's, which precedes lane 0's next pack */
		uint64_t other =
			k.size == 4 ? cua_port_shuffle_u32(CUA__ALL_LANES, (uint32_t)last,
							   (lane + 31) % 32)
				    : cua_port_shuffle_u64(CUA__ALL_LANES, last, (lane + 31) % 32);
		uint64_t before = lane ? other : lowest;

		lowest = other;
		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint64_t element = cua__pack_element(k.size, &t->v[j], c);

			bits |= (uint32_t)(element != before) << (j * per + c);
			before = element;
		}
	}
	return bits;
}

/* The kept elements of a thread, a bit each. Called by a whole warp. */
CUA_FORCE uint32_t cua__filter_selects(const struct cua__filter_kind k, const struct cua__filter *f,
				       const struct cua__filter_items *t)
{
	uint32_t kept = 0, j;

	if (k.key == CUA__FILTER_CHANGE)
		return cua__filter_changes(k, t) & t->valid;
	CUA__UNROLL
	for (j = 0; j < k.loads; j++)
		kept |= cua__filter_keeps(k, f, &t->v[j], t->flags[j]) << j * cua__filter_per(k);
	return (f->inverted ? ~kept : kept) & t->valid;
}

CUA_FORCE void cua__filter_rank(const struct cua__filter_kind k, const struct cua__filter *f,
				const struct cua__filter_items *t, struct cua__filter_ranks *r)
{
	const uint32_t per = cua__filter_per(k), lane = cua_port_thread() % 32;
	const uint32_t of_pack = CUA__ALL_LANES >> (32 - per), kept = cua__filter_selects(k, f, t);
	uint32_t mine[2] = {0, 0}, upto[2] = {0, 0}, whole[2] = {0, 0}, j, w;

	/* 8 bits for the count of each load: a warp keeps at most 128 elements of a load */
	CUA__UNROLL
	for (j = 0; j < k.loads; j++)
		mine[j / 4] |= cua_port_popc_u32(kept >> j * per & of_pack) << j % 4 * 8;
	CUA__UNROLL
	for (w = 0; w < (k.loads + 3) / 4; w++) {
		upto[w] = cua__filter_scan_warp(lane, mine[w]);
		whole[w] = cua_port_shuffle_u32(CUA__ALL_LANES, upto[w], 31);
		upto[w] -= mine[w];
	}
	/* the top 8 bits are at most 124, so this adds 0 */
	r->one = 1 + (upto[0] >> 31);
	r->kept = kept;
	r->own = 0;
	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		r->rank[j] = r->own + (upto[j / 4] >> j % 4 * 8 & 0xff);
		r->own += whole[j / 4] >> j % 4 * 8 & 0xff;
	}
}

/*
 * Fills in *s after the barrier that makes sh->kept visible. Returns the number of elements that
 * lower warps keep.
 */
CUA_FORCE uint32_t cua__filter_add_warps(const struct cua__filter_kind k,
					 const struct cua__filter *f, uint64_t tiles,
					 uint32_t shift, struct cua__filter_shared *sh,
					 struct cua__filter_staged *s)
{
	const uint32_t warp = cua_port_thread() / 32;
	uint32_t before = 0, w;

	s->kept = 0;
	CUA__UNROLL
	for (w = 0; w < k.warps; w++) {
		const uint32_t of_warp = CUA_READ(sh->kept[w]);

		before += w < warp ? of_warp : 0;
		s->kept += of_warp;
	}
	s->first_local = s->tile ? 0 : shift;
	s->elements = cua__filter_tile(k) - s->first_local;
	if (s->tile == tiles - 1)
		s->elements =
			(uint32_t)(f->n + shift - s->tile * cua__filter_tile(k)) - s->first_local;
	return before;
}

CUA_FORCE void cua__filter_stage_tile(const struct cua__filter_kind k, const struct cua__filter *f,
				      const struct cua__filter_items *t,
				      const struct cua__filter_ranks *r,
				      const struct cua__filter_staged *s, uint32_t before,
				      void *stage, CUA__FILTER_LOCAL *locals)
{
	const uint32_t per = cua__filter_per(k), thread = cua_port_thread();
	const uint32_t lane = thread % 32, warp = thread / 32;
	const int has_values = cua__filter_stages(k, f), has_indexes = !k.lean && f->indexes;
	const int partition = cua__filter_partition(k, f);
	uint32_t j, c;

	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		uint32_t to = before + r->rank[j];

		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint32_t bit = (uint32_t)1 << (j * per + c);
			const uint32_t local = ((warp * k.loads + j) * 32 + lane) * per + c;

			if (partition) {
				/*
				 * Rejected elements follow the kept elements of the tile. Both
				 * kinds share a store.
				 */
				const int keep = (r->kept & bit) != 0;
				const uint32_t at =
					keep ? to : s->kept + (local - s->first_local) - to;

				to += (uint32_t)keep;
				if (!(t->valid & bit))
					continue;
				if (has_values)
					cua__filter_stage(k, stage, at, &t->v[j], c);
				if (has_indexes)
					CUA_WRITE(locals[at], (CUA__FILTER_LOCAL)local);
			} else if (r->kept & bit) {
				if (has_values)
					cua__filter_stage(k, stage, to, &t->v[j], c);
				if (has_indexes)
					CUA_WRITE(locals[to], (CUA__FILTER_LOCAL)local);
				to++;
			}
		}
	}
}

/* What the functions of a block share. */
struct cua__filter_block {
	uint64_t tiles; /* of the call */
	uint32_t shift;
	struct cua__filter_shared *sh;
	/* room for a tile that is being stored or staged */
	void *stage;
	CUA__FILTER_LOCAL *locals;
};

/* Index in the array of the element that has the number 0 in a tile. */
CUA_FORCE uint64_t cua__filter_begin(const struct cua__filter_kind k,
				     const struct cua__filter_block b, uint64_t tile)
{
	return tile * cua__filter_tile(k) - b.shift;
}

/*
 * In order: the offset of a tile's first rejected element. `total` elements are kept, and `first`
 * of them precede the tile.
 */
CUA_FORCE uint64_t cua__filter_rest(const struct cua__filter_kind k,
				    const struct cua__filter_block b, uint64_t tile, uint64_t total,
				    uint64_t first)
{
	return total + (tile ? cua__filter_begin(k, b, tile) : 0) - first;
}

/* Stores the kept elements from offset `first` on, and those rejected from offset `rest` on. */
CUA_FORCE void cua__filter_store_tile(const struct cua__filter_kind k, const struct cua__filter *f,
				      const struct cua__filter_block b,
				      const struct cua__filter_staged *s, uint64_t first,
				      uint64_t rest)
{
	const int has_values = cua__filter_stages(k, f), has_indexes = !k.lean && f->indexes;
	const uint64_t begin = cua__filter_begin(k, b, s->tile);
	const uint32_t rejected = s->elements - s->kept;

	if (has_values)
		cua__filter_store(k, f, first, s->kept, b.stage, 0);
	if (has_indexes)
		cua__filter_store_indexes(k, f, first, s->kept, begin, b.locals, 0);
	if (!cua__filter_partition(k, f))
		return;
	if (has_values)
		cua__filter_store(k, f, rest, rejected, b.stage, s->kept);
	if (has_indexes)
		cua__filter_store_indexes(k, f, rest, rejected, begin, b.locals, s->kept);
}

/* Whether this block is the last to arrive. Called by a single thread of each block. */
CUA_FORCE int cua__filter_arrive(const struct cua__filter *f)
{
	const uint64_t arrived = cua_port_fetch_add_u64(&f->control->arrived, 1, CUA_ACQ_REL,
							CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

	return arrived == cua_port_grid_size() - 1;
}

/*
 * The last block to arrive knows that all tiles are done. It publishes the count, unless another
 * thread does, and resets the control block to zero. Called by every thread of a block.
 */
CUA_FORCE void cua__filter_finish(const struct cua__filter *f)
{
	struct cua__filter_control *s = f->control;

	/* all threads of this block have finished their work on the sums */
	cua_port_sync_block();
	if (cua_port_thread() != 0 || !cua__filter_arrive(f))
		return;
	if (!f->ordered && !f->demand)
		CUA_WRITE(*f->count, cua_port_load_b64(&s->kept, CUA_RELAXED, CUA_SCOPE_DEVICE,
						       CUA_SPACE_GLOBAL));
	cua_port_store_b64(&s->kept, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua_port_store_b64(&s->rest, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua_port_store_b64(&s->ticket, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua_port_store_b64(&s->arrived, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/*
 * `one` is 1, but unknown to the compiler. For a constant the compiler would aggregate the
 * operation over the warp and wait for its result at once.
 */
CUA_FORCE uint64_t cua__filter_ticket(struct cua__filter_control *s, uint64_t one)
{
	return cua_port_fetch_add_u64(&s->ticket, one, CUA_RELAXED, CUA_SCOPE_DEVICE,
				      CUA_SPACE_GLOBAL);
}

/* Fetches the first ticket of a block. Called by every thread of the block; all get the ticket. */
CUA_FORCE uint64_t cua__filter_first_ticket(const struct cua__filter *f,
					    struct cua__filter_shared *sh)
{
	uint64_t ticket;

	if (cua_port_thread() == 0)
		CUA_WRITE(sh->next, cua__filter_ticket(f->control, 1));
	cua_port_sync_block();
	ticket = CUA_READ(sh->next);
	cua_port_sync_block();
	return ticket;
}

/* ---- the counts of a partition in order ---- */

/* Inclusive prefix sum over a warp. */
CUA_FORCE uint64_t cua__filter_scan_warp_u64(uint32_t lane, uint64_t v)
{
	uint32_t step;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint64_t below = cua_port_shuffle_u64(CUA__ALL_LANES, v, lane - step);

		v += lane >= step ? below : 0;
	}
	return v;
}

/*
 * Replaces the count of each range by the number of kept elements of all lower ranges, and returns
 * the total. Called by every thread of a single block.
 */
CUA_FORCE uint64_t cua__filter_add_ranges(const struct cua__filter_kind k,
					  const struct cua__filter *f, uint64_t ranges,
					  struct cua__filter_counts *sh)
{
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / 32,
		       of_warp = CUA__FILTER_POLLS * 32;
	uint64_t begin, total = 0;
	uint32_t turn = 0, j, w;

	for (begin = 0; begin < ranges; begin += k.warps * of_warp) {
		const uint64_t at = begin + warp * of_warp + lane;
		uint64_t count[CUA__FILTER_POLLS], before[CUA__FILTER_POLLS], kept = 0, all = 0;

		CUA__UNROLL
		for (j = 0; j < CUA__FILTER_POLLS; j++)
			count[j] = at + j * 32 < ranges ? CUA_READ(f->range_kept[at + j * 32]) : 0;
		CUA__UNROLL
		for (j = 0; j < CUA__FILTER_POLLS; j++) {
			const uint64_t upto = cua__filter_scan_warp_u64(lane, count[j]);

			before[j] = kept + upto - count[j];
			kept += cua_port_shuffle_u64(CUA__ALL_LANES, upto, 31);
		}
		if (lane == 0)
			CUA_WRITE(sh->sums[turn][warp], kept);
		cua_port_sync_block();
		kept = 0;
		CUA__UNROLL
		for (w = 0; w < k.warps; w++) {
			const uint64_t sum = CUA_READ(sh->sums[turn][w]);

			kept += w < warp ? sum : 0;
			all += sum;
		}
		CUA__UNROLL
		for (j = 0; j < CUA__FILTER_POLLS; j++)
			if (at + j * 32 < ranges)
				CUA_WRITE(f->range_kept[at + j * 32], total + kept + before[j]);
		total += all;
		turn ^= 1;
	}
	return total;
}

/*
 * Counts the kept elements of each tile. A range has 2^f->range_shift consecutive tiles, at most
 * CUA__FILTER_RANGE, and each block has exactly 1 range. The last block to arrive publishes the
 * offsets of the ranges and the total. `counts` has room for a number for each thread and each tile
 * of a range: a sum over the warp after each tile would delay the loads of the next tile.
 */
CUA_FORCE void cua__filter_count(const struct cua__filter_kind k, const struct cua__filter *f,
				 struct cua__filter_counts *sh, CUA__FILTER_LOCAL *counts)
{
	const uint32_t thread = cua_port_thread(), lane = cua_port_lane(), warp = thread / 32,
		       threads = k.warps * 32, shift = cua__filter_shift(k, f->x);
	const uint64_t tiles = cua__filter_tiles(k, f), range = cua_port_block(),
		       first = range << f->range_shift;
	const uint32_t of_range = (tiles - first) >> f->range_shift ? (uint32_t)1 << f->range_shift
								    : (uint32_t)(tiles - first);
	uint64_t total;
	uint32_t kept, upto, i, w;

	for (i = 0; i < of_range; i++) {
		struct cua__filter_items t;

		cua__filter_read(k, f, first + i, shift, &t);
		kept = cua_port_popc_u32(cua__filter_selects(k, f, &t));
		CUA_WRITE(counts[i * threads + thread], (CUA__FILTER_LOCAL)kept);
	}
	cua_port_sync_block();
	for (i = warp; i < of_range; i += k.warps) {
		kept = 0;
		CUA__UNROLL
		for (w = 0; w < k.warps; w++)
			kept += CUA_READ(counts[i * threads + w * 32 + lane]);
		upto = cua__filter_scan_warp(lane, kept);
		if (lane == 31)
			CUA_WRITE(sh->kept[i], upto);
	}
	cua_port_sync_block();
	if (warp == 0) {
		kept = lane < of_range ? CUA_READ(sh->kept[lane]) : 0;
		upto = cua__filter_scan_warp(lane, kept);
		if (lane < of_range)
			CUA_WRITE(f->tile_kept[first + lane], upto - kept);
		upto = cua_port_shuffle_u32(CUA__ALL_LANES, upto, 31);
		if (lane == 0) {
			CUA_WRITE(f->range_kept[range], upto);
			CUA_WRITE(sh->is_last, (uint64_t)cua__filter_arrive(f));
		}
	}
	cua_port_sync_block();
	if (!CUA_READ(sh->is_last))
		return;
	total = cua__filter_add_ranges(k, f, cua__filter_ranges(f, tiles), sh);
	if (thread != 0)
		return;
	CUA_WRITE(*f->total_kept, total);
	CUA_WRITE(*f->count, total);
	cua_port_store_b64(&f->control->arrived, 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
			   CUA_SPACE_GLOBAL);
}

/* The number of kept elements in the tiles below a tile of cua__filter_direct. */
CUA_FORCE uint64_t cua__filter_offset(const struct cua__filter_kind k, const struct cua__filter *f,
				      uint64_t tile)
{
	const uint64_t counted = tile * (k.loads / CUA__FILTER_COUNT_LOADS);

	return CUA_READ(f->range_kept[counted >> f->range_shift]) + CUA_READ(f->tile_kept[counted]);
}

/* ---- direct ---- */

/*
 * Stores the tiles without order, or a partition in order after cua__filter_count. `stage` has room
 * for the elements of a tile. `locals` has room for as many numbers; only kernels that are not lean
 * use it.
 */
CUA_FORCE void cua__filter_direct(const struct cua__filter_kind k, const struct cua__filter *f,
				  struct cua__filter_shared *sh, void *stage,
				  CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread(), shift = cua__filter_shift(k, f->x);
	const uint64_t tiles = cua__filter_tiles(k, f);
	const struct cua__filter_block b = {tiles, shift, sh, stage, locals};
	const int partition = cua__filter_partition(k, f), ordered = partition && f->ordered;
	const uint64_t total = ordered ? CUA_READ(*f->total_kept) : 0;
	/* if each block has a tile, no block claims a second */
	const int one_each = tiles <= cua_port_grid_size();
	struct cua__filter_control *control = f->control;
	struct cua__filter_staged s = {0, 0, 0, 0};
	uint64_t offset = 0, rest = 0, tile, ticket = tiles, one = 1;
	int is_staged = 0;

	tile = cua__filter_first_ticket(f, sh);
	if (thread == 0 && !one_each)
		ticket = cua__filter_ticket(control, one);
	for (;;) {
		struct cua__filter_items t;
		struct cua__filter_ranks r;
		const int more = tile < tiles;
		uint32_t before;

		/* in order the last tile is the first */
		if (ordered && more)
			tile = tiles - 1 - tile;
		cua__filter_read_nothing(&t);
		if (more)
			cua__filter_read(k, f, tile, shift, &t);

		/*
		 * The offsets of the staged tile have arrived. Without order the rejected elements
		 * fill the array from its end.
		 */
		if (thread == 0) {
			CUA_WRITE(sh->first, offset);
			if (ordered)
				CUA_WRITE(sh->rest, cua__filter_rest(k, b, s.tile, total, offset));
			else if (partition)
				CUA_WRITE(sh->rest, f->n - rest - (s.elements - s.kept));
			CUA_WRITE(sh->next, ticket);
		}
		cua_port_sync_block();

		if (is_staged)
			cua__filter_store_tile(k, f, b, &s, CUA_READ(sh->first),
					       partition ? CUA_READ(sh->rest) : 0);
		if (!more)
			break;
		s.tile = tile;
		is_staged = 1;
		tile = CUA_READ(sh->next);
		if (thread == 0 && !one_each)
			ticket = cua__filter_ticket(control, one);
		cua__filter_rank(k, f, &t, &r);
		one = r.one;
		if (thread % 32 == 0)
			CUA_WRITE(sh->kept[thread / 32], r.own);
		cua_port_sync_block();

		/* no thread reads the stage any more */
		before = cua__filter_add_warps(k, f, tiles, shift, sh, &s);
		if (thread == 0 && ordered) {
			offset = cua__filter_offset(k, f, s.tile);
		} else if (thread == 0) {
			offset = rest = 0;
			if (s.kept)
				offset = cua_port_fetch_add_u64(
					f->demand ? f->demand : &control->kept, s.kept, CUA_RELAXED,
					CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			if (partition)
				rest = cua_port_fetch_add_u64(&control->rest, s.elements - s.kept,
							      CUA_RELAXED, CUA_SCOPE_DEVICE,
							      CUA_SPACE_GLOBAL);
		}
		cua__filter_stage_tile(k, f, &t, &r, &s, before, stage, locals);
	}
	cua__filter_finish(f);
}

/* ---- in order ---- */

/*
 * Ranks a tile that has been read, publishes its count, and stages it after a barrier. Returns the
 * 1 for cua__filter_ticket.
 */
CUA_FORCE uint64_t cua__filter_count_tile(const struct cua__filter_kind k,
					  const struct cua__filter *f,
					  const struct cua__filter_block b,
					  const struct cua__filter_items *t, uint64_t tile,
					  uint64_t next, struct cua__filter_staged *s)
{
	const uint32_t thread = cua_port_thread();
	struct cua__filter_ranks r;
	uint32_t before;

	s->tile = tile;
	cua__filter_rank(k, f, t, &r);
	if (thread % 32 == 0)
		CUA_WRITE(b.sh->kept[thread / 32], r.own);
	if (thread == 0)
		CUA_WRITE(b.sh->next, next);
	cua_port_sync_block();
	before = cua__filter_add_warps(k, f, b.tiles, b.shift, b.sh, s);
	if (thread == 0)
		cua__filter_publish(f, f->in_place, tile, CUA__FILTER_COUNT | s->kept);
	cua__filter_stage_tile(k, f, t, &r, s, before, b.stage, b.locals);
	return r.one;
}

/*
 * Claims tile `first` for the scanning block, unless another block has claimed it: that block will
 * publish the count. Returns the claimed tile, or UINT64_MAX. Called by every thread of the block.
 * Tile `first` has ticket first + 1.
 */
CUA_FORCE uint64_t cua__filter_claim(const struct cua__filter *f, struct cua__filter_shared *sh,
				     uint64_t first)
{
	uint64_t ticket = 0;

	cua_port_sync_block();
	if (cua_port_thread() == 0) {
		ticket = cua_port_load_b64(&f->control->ticket, CUA_RELAXED, CUA_SCOPE_DEVICE,
					   CUA_SPACE_GLOBAL);
		if (ticket == first + 1)
			ticket = cua__filter_ticket(f->control, 1);
		else
			ticket = 0;
		CUA_WRITE(sh->next, ticket);
	}
	cua_port_sync_block();
	ticket = CUA_READ(sh->next);
	cua_port_sync_block();
	return ticket - 1;
}

/* The scanning block. */
CUA_FORCE void cua__filter_scan(const struct cua__filter_kind k, const struct cua__filter *f,
				const struct cua__filter_block b)
{
	struct cua__filter_shared *sh = b.sh;
	const uint64_t tiles = b.tiles;
	const uint32_t thread = cua_port_thread();
	const uint64_t base = cua__filter_base(f);
	uint64_t first = 0, offset = base;
	uint32_t turn = 0, idle = 0;
	/* a tile that the scanning block has claimed itself */
	struct cua__filter_staged s = {0, 0, 0, 0};
	int is_staged = 0;

	while (first < tiles) {
		const uint32_t published =
			cua__filter_scan_step(k, f, sh, turn, tiles, first, &offset);

		first += published;
		turn ^= 1;
		idle = published ? 0 : idle + 1;
		if (is_staged && s.tile < first) {
			cua_port_sync_block();
			if (thread == 0)
				CUA_WRITE(sh->first, cua__filter_load_word(f, f->in_place, s.tile) &
							     CUA__FILTER_NUMBER);
			cua_port_sync_block();
			cua__filter_store_tile(k, f, b, &s, CUA_READ(sh->first), 0);
			is_staged = 0;
		} else if (idle > CUA__FILTER_PATIENCE && !is_staged) {
			const uint64_t tile = cua__filter_claim(f, sh, first);

			idle = 0;
			if (tile < tiles) {
				struct cua__filter_items t;

				cua__filter_read(k, f, tile, b.shift, &t);
				cua__filter_count_tile(k, f, b, &t, tile, 0, &s);
				is_staged = 1;
			}
		} else if (published == 0) {
			cua_port_pause(32);
		}
	}
	if (thread == 0)
		cua__filter_publish_total(k, f, offset - base);
}

/*
 * `stage` has room for the elements of kind.stages tiles; runs need no stage. `locals` has room for
 * as many numbers; only kernels that are not lean use it. Tile i has ticket i + 1.
 */
CUA_FORCE void cua__filter_in_order(const struct cua__filter_kind k, const struct cua__filter *f,
				    struct cua__filter_shared *sh, void *stage,
				    CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread(), shift = cua__filter_shift(k, f->x),
		       room = cua__filter_tile(k);
	const uint64_t tiles = cua__filter_tiles(k, f);
	struct cua__filter_block b = {tiles, shift, sh, stage, locals};
	/*
	 * staged tiles that are not stored yet, newest first; at most stages - 1 between two
	 * iterations
	 */
	struct cua__filter_staged staged[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
	struct cua__filter_items t;
	uint64_t ticket = cua__filter_first_ticket(f, sh), tile, word, one = 1;
	uint32_t n_staged = 0, to = 0;
	int more;

	if (ticket == 0) {
		cua__filter_scan(k, f, b);
		cua__filter_finish(f);
		return;
	}
	tile = ticket - 1;
	cua__filter_read_nothing(&t);
	if (tile < tiles)
		cua__filter_read(k, f, tile, shift, &t);
	do {
		const struct cua__filter_staged oldest =
			k.stages > 2 && n_staged == 2 ? staged[1] : staged[0];
		const uint32_t from = to < n_staged ? to + k.stages - n_staged : to - n_staged;
		int due;

		more = tile < tiles;
		due = n_staged != 0 && (!more || n_staged == k.stages - 1);
		word = 0;
		/*
		 * The ticket and the word arrive during the loads. In place the load must be an
		 * acquire, which would wait at once, so it follows the loads.
		 */
		if (thread == 0) {
			if (more)
				ticket = cua__filter_ticket(f->control, one);
			if (due && !f->in_place)
				word = cua__filter_load_word(f, 0, oldest.tile);
		}
		if (more) {
			staged[1] = staged[0];
			b.stage = (char *)stage + to * room * k.size;
			b.locals = locals + to * room;
			one = cua__filter_count_tile(k, f, b, &t, tile, ticket, &staged[0]);
			to = to + 1 == k.stages ? 0 : to + 1;
			tile = CUA_READ(sh->next) - 1;
			cua__filter_read_nothing(&t);
			if (tile < tiles)
				cua__filter_read(k, f, tile, shift, &t);
		} else {
			/* all threads have read the previous offset */
			cua_port_sync_block();
		}
		if (thread == 0 && due)
			CUA_WRITE(sh->first,
				  cua__filter_await_offset(f, f->in_place, oldest.tile, word));
		cua_port_sync_block();
		if (due) {
			b.stage = (char *)stage + from * room * k.size;
			b.locals = locals + from * room;
			cua__filter_store_tile(k, f, b, &oldest, CUA_READ(sh->first), 0);
		}
		n_staged += (uint32_t)more - (uint32_t)due;
	} while (n_staged);
	cua__filter_finish(f);
}

/* ---- short arrays ---- */

/*
 * Tickets and words of an ordered short array are never reset: their bits from 16 on hold the
 * number of the call, and a block ignores words with another number. The block with the last ticket
 * of a call raises the number, in device memory, so a replayed graph gets a new number too. So no
 * block waits for other blocks to finish, and the words may start with any older value.
 */
#define CUA__FILTER_LOW 0xffffu

/*
 * The number of elements that lower tiles keep, in order. Called by a whole warp; every lane gets
 * the result.
 */
CUA_FORCE uint32_t cua__filter_lower(const struct cua__filter *f, int acquire, uint32_t tile,
				     uint64_t call)
{
	const uint32_t lane = cua_port_lane();
	uint64_t word[CUA__FILTER_SHORT / 32];
	uint32_t kept = 0, j, step;

	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_SHORT / 32; j++)
		if (j * 32 + lane < tile)
			word[j] = cua__filter_load_word(f, acquire, j * 32 + lane);
	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_SHORT / 32; j++) {
		if (j * 32 + lane >= tile)
			continue;
		while (word[j] >> 16 != call) {
			cua_port_pause(32);
			word[j] = cua__filter_load_word(f, acquire, j * 32 + lane);
		}
		kept += (uint32_t)(word[j] & CUA__FILTER_LOW);
	}
	cua_port_sync_warp(CUA__ALL_LANES);
	CUA__UNROLL
	for (step = 16; step; step /= 2)
		kept += cua_port_shuffle_u32(CUA__ALL_LANES, kept, lane ^ step);
	return kept;
}

/*
 * Each block has exactly 1 tile, of at most CUA__FILTER_SHORT tiles in all. A tile has fewer than
 * 2^16 elements. The kernel has no path for a partition without order. `stage` and `locals` are as
 * for cua__filter_direct.
 */
CUA_FORCE void cua__filter_short(const struct cua__filter_kind k, const struct cua__filter *f,
				 struct cua__filter_shared *sh, void *stage,
				 CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread(), shift = cua__filter_shift(k, f->x);
	const uint64_t tiles = cua__filter_tiles(k, f);
	const struct cua__filter_block b = {tiles, shift, sh, stage, locals};
	const int synchronize = f->in_place || f->demand;
	struct cua__filter_control *control = f->control;
	struct cua__filter_staged s;
	struct cua__filter_items t;
	struct cua__filter_ranks r;
	uint64_t call = 0, base = 0, offset = 0;
	uint32_t before;

	s.tile = cua_port_block();
	if (f->ordered) {
		if (thread == 0) {
			offset = cua_port_fetch_add_u64(&control->short_ticket, 1, CUA_RELAXED,
							CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			/* the last block has seen the tickets of all other blocks */
			if ((offset & CUA__FILTER_LOW) == tiles - 1)
				cua_port_store_b64(&control->short_ticket,
						   (offset & ~(uint64_t)CUA__FILTER_LOW) +
							   CUA__FILTER_LOW + 1,
						   CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			CUA_WRITE(sh->next, offset);
		}
		cua_port_sync_block();
		call = (CUA_READ(sh->next) >> 16) + 1;
		s.tile = CUA_READ(sh->next) & CUA__FILTER_LOW;
		if (thread < 32)
			base = cua__filter_base(f);
	}
	cua__filter_read(k, f, s.tile, shift, &t);
	cua__filter_rank(k, f, &t, &r);
	if (thread % 32 == 0)
		CUA_WRITE(sh->kept[thread / 32], r.own);
	cua_port_sync_block();
	before = cua__filter_add_warps(k, f, tiles, shift, sh, &s);
	if (f->ordered) {
		if (thread == 0)
			cua__filter_publish(f, synchronize, s.tile, call << 16 | s.kept);
	} else if (thread == 0 && f->demand) {
		if (s.kept)
			offset = cua_port_fetch_add_u64(f->demand, s.kept, CUA_RELAXED,
							CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	} else if (thread == 0) {
		/* adds 1 arrived block and its kept elements */
		offset = cua_port_fetch_add_u64(&control->short_kept, (uint64_t)1 << 32 | s.kept,
						CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
	cua__filter_stage_tile(k, f, &t, &r, &s, before, stage, locals);
	if (f->ordered && thread < 32) {
		const uint32_t lower = cua__filter_lower(f, synchronize, (uint32_t)s.tile, call);

		offset = base + lower;
		if (thread == 0 && s.tile == tiles - 1)
			cua__filter_publish_total(k, f, (uint64_t)lower + s.kept);
	} else if (thread == 0 && !f->ordered && !f->demand) {
		if (offset >> 32 == tiles - 1) {
			CUA_WRITE(*f->count, (uint32_t)offset + (uint64_t)s.kept);
			cua_port_store_b64(&control->short_kept, 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
					   CUA_SPACE_GLOBAL);
		}
		offset = (uint32_t)offset;
	}
	if (thread == 0)
		CUA_WRITE(sh->first, offset);
	cua_port_sync_block();
	offset = CUA_READ(sh->first);
	cua__filter_store_tile(
		k, f, b, &s, offset,
		f->partition ? cua__filter_rest(k, b, s.tile, CUA_READ(*f->total_kept), offset)
			     : 0);
}

#endif /* CUATOMIC_KERNELS_FILTER_KERNEL_H */
