/* SPDX-License-Identifier: MIT */
/*
 * The kernels of a find in a sharded map with ranks that read and write each other's memory.
 *
 * Source: a radix partition by histogram, scan and scatter (Knuth, vol. 3, 5.2.5). The digit is the owner of a key
 * and the region of its home bucket. The L2 holds a region of most tables, so keys of a region read each bucket
 * from memory once.
 *
 * 1. cua__bins_count counts the keys of each bin, and cua__bins_scan gives each bin its place.
 * 2. cua__bins_send sorts tiles of keys by bin in shared memory and writes their runs, in the memory of the rank.
 * 3. An owner plans (cua__bins_plan) and finds the keys of its bins in the memory of all ranks, and writes the
 *    answers to the same places there.
 * 4. cua__bins_take writes the answers of a tile to the order of the keys, by way of shared memory.
 *
 * Bins have exactly the room for their keys, so no distribution of keys needs another way.
 *
 * Scope: the device in steps 1, 2 and 4. All operations on counters are relaxed: the atomicity of an addition
 * gives each run its place, and the end of a kernel publishes its output. Events order step 3 after step 2 of all
 * ranks, and step 4 after step 3 of all ranks. Progress: no thread waits for another block.
 */
#ifndef CUATOMIC_KERNELS_SHARD_FIND_H
#define CUATOMIC_KERNELS_SHARD_FIND_H

#include "backend/hashmap_backend.h"
#include "kernels/hashmap_bulk.h"
#include "kernels/shard_kernel.h"
#include "kernels/warp_scan.h"

/* The threads of a block. */
#ifndef CUA__BINS_THREADS
#define CUA__BINS_THREADS 512u
#endif
#ifndef CUA__BINS_LOADS
#define CUA__BINS_LOADS 8u
#endif

struct cua__bins_shared {
	uint32_t count[CUA__SHARD_BINS + 1], base[CUA__SHARD_BINS], of_warp[32];
};

CUA_FORCE uint32_t cua__bins_all(const struct cua__shard_find *f)
{
	return f->ranks * f->regions;
}

CUA_FORCE uint32_t cua__bins_of(const struct cua__shard_find *f, struct cua_u128 key, uint32_t ks)
{
	const uint32_t first = cua__owner(key, ks, f->seed, f->ranks) * f->regions;
	uint64_t hash;

	if (f->regions == 1)
		return first;
	hash = cua__hashmap_hash_of(&f->view, f->view.hash, ks, key);
	return first + (cua__hashmap_word_home(&f->view, hash) >> f->shift);
}

CUA_FORCE uint64_t cua__bins_tiles(const struct cua__shard_find *f)
{
	return (f->n + (uint64_t)f->tile - 1) / f->tile;
}

CUA_FORCE uint32_t cua__bins_in_tile(const struct cua__shard_find *f, uint64_t tile)
{
	const uint64_t left = f->n - tile * f->tile;

	return left < f->tile ? (uint32_t)left : f->tile;
}

/*
 * Adds the keys of each bin to counts, all 0 before, and sets `sorted` to the bin of each key, so that no hash is
 * computed again. count is shared memory, a word for each bin.
 */
CUA_FORCE void cua__bins_count(const struct cua__shard_find *f, uint32_t *count, uint32_t ks)
{
	const uint32_t bins = cua__bins_all(f), thread = cua_port_thread();
	const uint64_t step = (uint64_t)CUA__BINS_THREADS * CUA__BINS_LOADS;
	uint32_t b, j;

	for (b = thread; b < bins; b += CUA__BINS_THREADS)
		CUA_WRITE(count[b], 0u);
	cua_port_sync_block();
	for (uint64_t i = cua_port_block() * step + thread; i < f->n;
	     i += cua_port_grid_size() * step) {
		struct cua_u128 key[CUA__BINS_LOADS];

		CUA__UNROLL
		for (j = 0; j < CUA__BINS_LOADS; j++)
			if (i + j * CUA__BINS_THREADS < f->n)
				key[j] = cua__shard_get(f->keys, i + j * CUA__BINS_THREADS, ks);
		CUA__UNROLL
		for (j = 0; j < CUA__BINS_LOADS; j++) {
			if (i + j * CUA__BINS_THREADS >= f->n)
				continue;
			b = cua__bins_of(f, key[j], ks);
			cua_port_add_u32(&count[b], 1, CUA__SHARD_IN_BLOCK);
			CUA_WRITE(f->sorted[i + j * CUA__BINS_THREADS], (CUA__SHARD_OFFSET)b);
		}
	}
	cua_port_sync_block();
	for (b = thread; b < bins; b += CUA__BINS_THREADS)
		if (CUA_READ(count[b]))
			cua_port_add_u32(&f->counts[b], CUA_READ(count[b]), CUA__SHARD_ON_DEVICE);
}

/*
 * The sum of v over the lower threads of a block, and over all threads. of_warp is shared memory, a word for
 * each warp.
 */
CUA_FORCE uint32_t cua__bins_before(uint32_t v, uint32_t *of_warp, uint32_t *all)
{
	const uint32_t warp = cua_port_thread() / 32;
	uint32_t total, before = cua__warp_before(v, &total), w;

	if (cua_port_lane() == 31)
		CUA_WRITE(of_warp[warp], total);
	cua_port_sync_block();
	*all = 0;
	for (w = 0; w < CUA__BINS_THREADS / 32; w++) {
		before += w < warp ? CUA_READ(of_warp[w]) : 0;
		*all += CUA_READ(of_warp[w]);
	}
	return before;
}

/* Sets starts and cursors. A single block calls it; its threads have adjacent bins. */
CUA_FORCE void cua__bins_scan(const struct cua__shard_find *f, uint32_t *of_warp)
{
	const uint32_t bins = cua__bins_all(f);
	const uint32_t each = (bins + CUA__BINS_THREADS - 1) / CUA__BINS_THREADS;
	const uint32_t first = cua_port_thread() * each;
	uint32_t sum = 0, at, all, b;

	for (b = first; b < first + each && b < bins; b++)
		sum += (CUA_READ(f->counts[b]) + 31) / 32 * 32;
	at = cua__bins_before(sum, of_warp, &all);
	for (b = first; b < first + each && b < bins; b++) {
		CUA_WRITE(f->starts[b], at);
		CUA_WRITE(f->cursors[b], at);
		at += (CUA_READ(f->counts[b]) + 31) / 32 * 32;
	}
}

/*
 * Writes a tile to the bins. stage and bin_of are shared memory for a tile. `items` is a constant, f->tile /
 * CUA__BINS_THREADS and at most 16.
 */
CUA_FORCE void cua__bins_send(const struct cua__shard_find *f, uint64_t tile,
			      struct cua__bins_shared *sh, void *stage, CUA__SHARD_OFFSET *bin_of,
			      uint32_t ks, uint32_t items)
{
	const uint32_t bins = cua__bins_all(f), n = cua__bins_in_tile(f, tile),
		       thread = cua_port_thread();
	const uint64_t first = tile * f->tile;
	struct cua_u128 key[16];
	/* the bin and the number in it of each key */
	uint32_t place[16], i, j, at;

	CUA__UNROLL
	for (j = 0; j < items; j++) {
		i = thread + j * CUA__BINS_THREADS;
		if (i >= n)
			continue;
		place[j] = CUA_READ(f->sorted[first + i]);
		key[j] = cua__shard_get(f->keys, first + i, ks);
	}
	for (i = thread; i < bins; i += CUA__BINS_THREADS)
		CUA_WRITE(sh->count[i], 0u);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < items; j++)
		if (thread + j * CUA__BINS_THREADS < n)
			place[j] = place[j] << 16 | cua_port_fetch_add_u32(&sh->count[place[j]], 1,
									   CUA__SHARD_IN_BLOCK);
	cua_port_sync_block();
	cua__block_claim(sh->count, sh->base, sh->of_warp, f->cursors, bins, CUA__BINS_THREADS);
	CUA__UNROLL
	for (j = 0; j < items; j++) {
		i = thread + j * CUA__BINS_THREADS;
		if (i >= n)
			continue;
		at = CUA_READ(sh->count[place[j] >> 16]) + (place[j] & 0xffff);
		cua__shard_set(stage, at, key[j], ks);
		CUA_WRITE(bin_of[at], (CUA__SHARD_OFFSET)(place[j] >> 16));
		CUA_WRITE(f->sorted[first + i], (CUA__SHARD_OFFSET)at);
	}
	for (i = thread; i <= bins; i += CUA__BINS_THREADS) {
		CUA_WRITE(f->positions[tile * (bins + 1) + i],
			  (CUA__SHARD_OFFSET)CUA_READ(sh->count[i]));
		if (i < bins)
			CUA_WRITE(f->bases[tile * bins + i], CUA_READ(sh->base[i]));
	}
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < items; j++) {
		i = thread + j * CUA__BINS_THREADS;
		if (i < n)
			cua__shard_copy(f->in_bins, CUA_READ(sh->base[CUA_READ(bin_of[i])]) + i,
					stage, i, ks);
	}
}

/* Sets units and extents. A single block calls it, with a thread for each region. */
CUA_FORCE void cua__bins_plan(const struct cua__hashmap_sources *p, uint32_t *of_warp)
{
	const uint32_t region = cua_port_thread();
	uint32_t most = 0, before, all, s;

	for (s = 0; s < p->sources && region < p->regions; s++) {
		const uint32_t n = CUA_READ(p->counts[s][region]);
		const uint32_t at = (region * p->sources + s) * 2;

		CUA_WRITE(p->extents[at], n);
		CUA_WRITE(p->extents[at + 1], CUA_READ(p->starts[s][region]));
		most = n > most ? n : most;
	}
	most = (most + CUA__HASHMAP_UNIT - 1) / CUA__HASHMAP_UNIT * p->sources;
	before = cua__bins_before(most, of_warp, &all);
	if (region < p->regions)
		CUA_WRITE(p->units[region], before);
	if (region == 0)
		CUA_WRITE(p->units[p->regions], all);
}

/* The keys of a unit: n from `at` on in the memory of the source. */
struct cua__bins_unit {
	uint32_t source, at, n;
};

/* The keys of a unit below units[regions]; possibly none, if some source has more in the region. */
CUA_FORCE struct cua__bins_unit cua__bins_unit(const struct cua__hashmap_sources *p, uint32_t unit)
{
	struct cua__bins_unit u;
	uint32_t low = 0, high = p->regions, i, n;

	/* units[low] <= unit < units[high] */
	while (high - low > 1) {
		const uint32_t middle = (low + high) / 2;

		if (CUA_READ(p->units[middle]) <= unit)
			low = middle;
		else
			high = middle;
	}
	unit -= CUA_READ(p->units[low]);
	u.source = (unit + p->first) % p->sources;
	i = unit / p->sources * CUA__HASHMAP_UNIT;
	n = CUA_READ(p->extents[(low * p->sources + u.source) * 2]);
	u.at = CUA_READ(p->extents[(low * p->sources + u.source) * 2 + 1]) + i;
	u.n = i >= n ? 0 : n - i < CUA__HASHMAP_UNIT ? n - i : CUA__HASHMAP_UNIT;
	return u;
}

/*
 * Writes the answers of a tile to the order of the keys. values, bin_of and bits are shared memory, with room
 * for a tile, in bits for a bit of each key. A thread loads `loads` answers before it stores them, a constant of
 * at most CUA__BINS_LOADS.
 */
CUA_FORCE void cua__bins_take(const struct cua__shard_find *f, uint64_t tile,
			      struct cua__bins_shared *sh, void *values, CUA__SHARD_OFFSET *bin_of,
			      uint32_t *bits, uint32_t vs, uint32_t loads)
{
	const uint32_t bins = cua__bins_all(f), n = cua__bins_in_tile(f, tile),
		       thread = cua_port_thread(), lane = cua_port_lane();
	const uint64_t first = tile * f->tile;
	uint32_t i, j, s;

	for (i = thread; i <= bins; i += CUA__BINS_THREADS) {
		CUA_WRITE(sh->count[i], (uint32_t)CUA_READ(f->positions[tile * (bins + 1) + i]));
		if (i < bins)
			CUA_WRITE(sh->base[i], CUA_READ(f->bases[tile * bins + i]));
	}
	cua_port_sync_block();
	for (i = thread / 32; i < bins; i += CUA__BINS_THREADS / 32) {
		const uint32_t end = CUA_READ(sh->count[i + 1]);

		for (s = CUA_READ(sh->count[i]) + lane; s < end; s += 32)
			CUA_WRITE(bin_of[s], (CUA__SHARD_OFFSET)i);
	}
	cua_port_sync_block();
	/* the bound is equal in all lanes of a warp */
	for (i = thread; i - lane < n; i += loads * CUA__BINS_THREADS) {
		struct cua_u128 value[CUA__BINS_LOADS];
		uint32_t there[CUA__BINS_LOADS];

		CUA__UNROLL
		for (j = 0; j < loads; j++) {
			uint32_t at;

			s = i + j * CUA__BINS_THREADS;
			there[j] = 0;
			if (s >= n)
				continue;
			at = CUA_READ(sh->base[CUA_READ(bin_of[s])]) + s;
			there[j] = CUA_READ(f->found[at / 32]) >> at % 32 & 1;
			/* of an absent key any bits; these stay in shared memory */
			if (vs)
				value[j] = cua__shard_get(f->values, at, vs);
		}
		CUA__UNROLL
		for (j = 0; j < loads; j++) {
			const uint32_t votes = cua_port_ballot(CUA__ALL_LANES, there[j]);

			s = i + j * CUA__BINS_THREADS;
			if (lane == 0 && s < n)
				CUA_WRITE(bits[s / 32], votes);
			if (vs && s < n)
				cua__shard_set(values, s, value[j], vs);
		}
	}
	cua_port_sync_block();
	for (i = thread; i < n; i += CUA__BINS_LOADS * CUA__BINS_THREADS) {
		uint32_t position[CUA__BINS_LOADS];

		CUA__UNROLL
		for (j = 0; j < CUA__BINS_LOADS; j++)
			if (i + j * CUA__BINS_THREADS < n)
				position[j] =
					CUA_READ(f->sorted[first + i + j * CUA__BINS_THREADS]);
		CUA__UNROLL
		for (j = 0; j < CUA__BINS_LOADS; j++) {
			const uint64_t to = first + i + j * CUA__BINS_THREADS;
			int there;

			if (i + j * CUA__BINS_THREADS >= n)
				continue;
			s = position[j];
			there = CUA_READ(bits[s / 32]) >> s % 32 & 1;
			/* bytes: the SIMT checker follows words */
			if (f->found_out)
				f->found_out[to] = (uint8_t)there;
			if (vs && there)
				cua__shard_copy(f->values_out, to, values, s, vs);
		}
	}
}

#endif /* CUATOMIC_KERNELS_SHARD_FIND_H */
