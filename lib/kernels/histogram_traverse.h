/* SPDX-License-Identifier: MIT */
/* The loop of a block over its elements. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_TRAVERSE_H
#define CUATOMIC_KERNELS_HISTOGRAM_TRAVERSE_H

#include "kernels/histogram_counters.h"
#include "kernels/histogram_find.h"

/* State of a block. The edges and counters that it points to are in shared memory. */
struct cua__histogram_block {
	struct cua__histogram_edges edges;
	struct cua__histogram_own own;
};

/* Maximum number of packs in a sample, and the least number of packs for each sampled pack. */
#ifndef CUA__HISTOGRAM_SAMPLES
#define CUA__HISTOGRAM_SAMPLES 1024u
#endif
#define CUA__HISTOGRAM_SAMPLE_SHARE 16u
/* Time of a miss of the cache, divided by the time that a range takes to read an element. */
#define CUA__HISTOGRAM_MISS_READS 7u

/* Counts a pack in the cache. Called by whole warps. */
CUA_FORCE void cua__histogram_count_cached(const struct cua__histogram_job *j,
					   struct cua__histogram_own *own, uint32_t n,
					   const uint32_t *counter)
{
	const uint32_t sample = cua_port_shuffle_u32(CUA__ALL_LANES, counter[0], 0);
	const uint32_t same =
		cua_port_popc_u32(cua_port_ballot(CUA__ALL_LANES, counter[0] == sample));

	if (same <= CUA__HISTOGRAM_HOT_LANES ||
	    !cua__histogram_count_two(CUA__COUNT_CACHE, j, own, n, counter, sample, same == 32))
		cua__histogram_cache_pack(j, own, n, counter);
}

/* Counts a pack. `together`: called by whole warps. */
CUA_FORCE void cua__histogram_count_pack(enum cua_type type, enum cua__histogram_rule rule,
					 enum cua__histogram_layout layout,
					 const struct cua__histogram_job *j,
					 struct cua__histogram_block *block,
					 const struct cua__pack *p, int together, uint32_t from)
{
	const uint32_t n = 16 / (uint32_t)cua__element_size(type);
	struct cua__histogram_own *own = &block->own;
	uint64_t raw[16];
	uint32_t counter[16], k;
	int skipped[16];

	CUA__UNROLL
	for (k = 0; k < n; k++)
		raw[k] = cua__pack_element(16 / n, p, k);
	cua__histogram_find_counters(type, rule, j, &block->edges, n, raw, counter);
	if (together && layout == CUA__COUNT_CACHE) {
		cua__histogram_count_cached(j, own, n, counter);
		return;
	}
	if (!together || !cua__histogram_has_hot(layout)) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			cua__histogram_count_one(layout, j, own, counter[k]);
		return;
	}
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		counter[k] = cua__histogram_in_range(layout, own, counter[k]);
		skipped[k] = layout == CUA__COUNT_BYTES && counter[k] == CUA__HISTOGRAM_NONE;
	}
	if (cua__histogram_hot_choose(layout, j, own, n, counter, from))
		return;
	if (own->hot != CUA__HISTOGRAM_NO_HOT) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			/*
			 * Index in the hot set if below 4. Otherwise the shift yields 0; at * 8
			 * does not wrap, because a private histogram has too few counters.
			 */
			const uint32_t at = counter[k] ^ own->hot * 4;

			own->hot_n += cua_port_shl_u32(1, at * 8);
			skipped[k] |= at < 4;
		}
		cua__histogram_count_packed(layout, j, own, n, counter, skipped);
	} else {
		/* here, `skipped` is constant except for BYTES */
		cua__histogram_count_packed(layout, j, own, n, counter, skipped);
	}
}

/* Counts element i. May be called by any subset of lanes. */
CUA_FORCE void cua__histogram_count_single(enum cua_type type, enum cua__histogram_rule rule,
					   enum cua__histogram_layout layout,
					   const struct cua__histogram_job *j,
					   struct cua__histogram_block *block, uint64_t i)
{
	uint64_t raw = cua__element_load(cua__element_size(type), j->h.x, i);
	uint32_t counter;

	cua__histogram_find_counters(type, rule, j, &block->edges, 1, &raw, &counter);
	cua__histogram_count_one(layout, j, &block->own, counter);
}

/*
 * Counts all elements of a single row without gaps and a single channel in the block's counters. A
 * tile is the elements that a block loads at once; each warp loads a contiguous part of it. The
 * next tile is loaded while a tile is counted.
 */
CUA_FORCE void cua__histogram_count_all(enum cua_type type, enum cua__histogram_rule rule,
					enum cua__histogram_layout layout,
					const struct cua__histogram_job *j,
					struct cua__histogram_block *block)
{
	const size_t size = cua__element_size(type);
	struct cua__histogram_own *own = &block->own;
	const uint32_t loads = CUA__HISTOGRAM_LOADS, thread = cua_port_thread();
	const uint32_t tile = cua_port_block_size() * loads;
	const uint32_t mine = thread / 32 * (32 * loads) + own->lane;
	const uint32_t ranges = layout == CUA__COUNT_CACHE ? 1 : j->ranges;
	const uint32_t member = (uint32_t)cua_port_block() / ranges, members = j->blocks / ranges;
	const char *x = (const char *)j->h.x;
	uint64_t head = (16 - (uintptr_t)x % 16) % 16 / size, packs, full, i, n = j->h.n;
	const struct cua__pack *p;
	struct cua__pack now[CUA__HISTOGRAM_LOADS], next[CUA__HISTOGRAM_LOADS], rest;
	uint32_t l;

#ifndef __CUDA_ARCH__
	/* each element is loaded before it is read, but not every compiler sees that */
	memset(now, 0, sizeof(now));
	memset(next, 0, sizeof(next));
#endif
	if (head > n)
		head = n;
	packs = (n - head) * size / 16;
	full = packs / tile;
	/*
	 * The rest is less than a tile per block. If a layout has hot sets or a cache, the rest is
	 * counted without their fast paths, so it is kept as small as possible.
	 */
	if (!cua__histogram_has_hot(layout) && layout != CUA__COUNT_CACHE)
		full = full / members * members;
	p = (const struct cua__pack *)(const void *)(x + head * size);
	if (member < full) {
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			now[l] = p[(uint64_t)member * tile + mine + l * 32];
	}
	/* the counters are zero */
	cua_port_sync_block();

	/* elements before the first pack and after the last pack, singly */
	if (member == members - 1) {
		const uint64_t after = head + packs * (16 / size);

		if (thread < head)
			cua__histogram_count_single(type, rule, layout, j, block, thread);
		if (thread < n - after)
			cua__histogram_count_single(type, rule, layout, j, block, after + thread);
	}
	CUA__NO_UNROLL
	for (i = full * tile + member * cua_port_block_size() + thread; i < packs;
	     i += members * cua_port_block_size()) {
		rest = p[i];
		cua__histogram_count_pack(type, rule, layout, j, block, &rest, 0, 0);
	}
	if (member >= full)
		return;
	p += (uint64_t)member * tile + mine;
	for (i = member;; i += members) {
		const int more = i + members < full;

		p += (uint64_t)members * tile;
		if (more) {
			CUA__UNROLL
			for (l = 0; l < loads; l++)
				next[l] = p[l * 32];
		}
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			cua__histogram_count_pack(type, rule, layout, j, block, &now[l], 1,
						  l * 11 + 3);
		if (cua__histogram_has_hot(layout))
			cua__histogram_hot_tick(j, own);
		if (layout == CUA__COUNT_CACHE)
			cua__histogram_cache_tick(j, own, loads * 16 / (uint32_t)size);
		if (!more)
			break;
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			now[l] = next[l];
	}
}

/*
 * Whether a cache is faster than several ranges, by a sample. The share of misses is estimated as
 * the share of elements that need a slot of their own. A miss takes about as long as reading
 * MISS_READS elements, and each range reads all elements. Called by all threads. Before and after
 * the call, the numbers of the cache are zero. All blocks get the same answer, because it depends
 * on the elements alone.
 */
CUA_FORCE int cua__histogram_repeats(enum cua_type type, enum cua__histogram_rule rule,
				     const struct cua__histogram_job *j,
				     struct cua__histogram_block *block)
{
	const size_t size = cua__element_size(type);
	const uint32_t n = 16 / (uint32_t)size;
	struct cua__histogram_own *own = &block->own;
	const uint64_t head = (16 - (uintptr_t)j->h.x % 16) % 16 / size;
	const uint64_t packs = j->h.n > head ? (j->h.n - head) / n : 0;
	const uint64_t few = packs / CUA__HISTOGRAM_SAMPLE_SHARE;
	const uint32_t samples =
		few < CUA__HISTOGRAM_SAMPLES ? (uint32_t)few : CUA__HISTOGRAM_SAMPLES;
	const struct cua__pack *p =
		(const struct cua__pack *)(const void *)((const char *)j->h.x + head * size);
	uint32_t *sum = &own->tags[j->slots], i, k, slots = 0;

	/* the cache and the sum are zero */
	cua_port_sync_block();
	for (i = cua_port_thread(); i < samples; i += cua_port_block_size()) {
		const struct cua__pack pack = p[i * (packs / samples)];
		uint64_t raw[16];
		uint32_t counter[16];

		CUA__UNROLL
		for (k = 0; k < n; k++)
			raw[k] = cua__pack_element(16 / n, &pack, k);
		cua__histogram_find_counters(type, rule, j, &block->edges, n, raw, counter);
		CUA__UNROLL
		for (k = 0; k < n; k++)
			cua_port_add_u32(&own->words[cua__histogram_slot(j, counter[k])], 1,
					 CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	}
	cua_port_sync_block();
	for (i = cua_port_thread(); i < j->slots; i += cua_port_block_size()) {
		slots += CUA_READ(own->words[i]) != 0;
		CUA_WRITE(own->words[i], 0);
	}
	cua_port_add_u32(sum, slots, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	cua_port_sync_block();
	return CUA_READ(*sum) * CUA__HISTOGRAM_MISS_READS <= samples * n * j->ranges;
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_TRAVERSE_H */
