/* SPDX-License-Identifier: MIT */
/*
 * Operations of a GPU on a whole hash map, as functions that every thread of a grid calls.
 * cuda/cuda_hashmap_ops.cu makes kernels of them, with constants for ks and vs.
 *
 * The sort is an LSD radix sort by bytes, with three launches for each byte in which keys differ:
 *
 * - `count` counts the digits in each block's share.
 * - `scan`, a single block, turns the counts into the offset of each block's first pair with each
 *   digit.
 * - `scatter` reads the share in order, a tile at a time, and computes the rank of each pair among
 *   the earlier pairs of the block with the same digit: inside warps by a match of digits, then
 *   across warps. So pairs with equal digits keep their order.
 *
 * Each launch reads in `differ` the bytes that are sorted by; they determine the array that holds
 * the pairs before a pass.
 *
 * Scope: the device. A block has a multiple of 32 threads and at most CUA__SORT_WARPS warps.
 */
#ifndef CUATOMIC_KERNELS_HASHMAP_KERNEL_H
#define CUATOMIC_KERNELS_HASHMAP_KERNEL_H

#include "kernels/hashmap_bulk.h"
#include "kernels/hashmap_digits.h"

#define CUA__SORT_WARPS 8u
/* Pairs per thread in a tile. */
#define CUA__SORT_ITEMS 4u
#define CUA__HASHMAP_IN_BLOCK CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED

/* ---- sorting ---- */

struct cua__sort_arrays {
	uint32_t key_size, value_size;
	uint32_t pass, blocks; /* of count and scatter */
	uint64_t max;
	const uint64_t *n;
	void *keys[2], *values[2]; /* the pairs, and a second array of the same size */
	/* the bits in which any key differs from the first key; zeros at the start */
	struct cua_u128 *differ;
	uint64_t *counts; /* (blocks + 1) * DIGITS */
};

struct cua__sort_shared {
	uint64_t next[CUA__HASHMAP_DIGITS];
	uint32_t counts[CUA__SORT_WARPS][CUA__HASHMAP_DIGITS];
};

CUA_FORCE uint64_t cua__sort_n(const struct cua__sort_arrays *s)
{
	uint64_t n = *s->n;

	return n < s->max ? n : s->max;
}

/* The input array of a pass: 0 or 1. */
CUA_FORCE uint32_t cua__sort_from(const struct cua__sort_arrays *s, uint32_t pass)
{
	return cua__hashmap_passes(*s->differ, pass) & 1;
}

/* The share of the caller's block, in whole tiles. */
CUA_FORCE void cua__sort_share(const struct cua__sort_arrays *s, uint64_t *begin, uint64_t *end)
{
	const uint64_t tile = (uint64_t)cua_port_block_size() * CUA__SORT_ITEMS, n = cua__sort_n(s);
	const uint64_t tiles = n / tile + (n % tile != 0), block = cua_port_block();
	const uint64_t share = (tiles / s->blocks + (tiles % s->blocks != 0)) * tile;

	*begin = block * share < n ? block * share : n;
	*end = n - *begin < share ? n : *begin + share;
}

CUA_FORCE void cua__sort_differ(const struct cua__sort_arrays *s, uint64_t shared[2])
{
	const uint32_t thread = (uint32_t)cua_port_thread();
	const uint64_t threads = cua_port_block_size(), step = cua_port_grid_size() * threads;
	const uint64_t n = cua__sort_n(s);
	struct cua_u128 first, differ = {0, 0};

	if (!n)
		return;
	first = cua__hashmap_get(s->keys[0], s->key_size, 0);
	if (thread < 2)
		CUA_WRITE(shared[thread], (uint64_t)0);
	cua_port_sync_block();
	for (uint64_t i = cua_port_block() * threads + thread; i < n; i += step) {
		struct cua_u128 key = cua__hashmap_get(s->keys[0], s->key_size, i);

		differ.lo |= key.lo ^ first.lo;
		differ.hi |= key.hi ^ first.hi;
	}
	if (differ.lo)
		cua_port_fetch_or_b64(&shared[0], differ.lo, CUA__HASHMAP_IN_BLOCK);
	if (differ.hi)
		cua_port_fetch_or_b64(&shared[1], differ.hi, CUA__HASHMAP_IN_BLOCK);
	cua_port_sync_block();
	if (thread == 0) {
		cua_port_fetch_or_b64(&s->differ->lo, CUA_READ(shared[0]), CUA_RELAXED,
				      CUA__HASHMAP_AT);
		cua_port_fetch_or_b64(&s->differ->hi, CUA_READ(shared[1]), CUA_RELAXED,
				      CUA__HASHMAP_AT);
	}
}

CUA_FORCE void cua__sort_count(const struct cua__sort_arrays *s,
			       uint32_t shared[CUA__HASHMAP_DIGITS])
{
	const uint32_t thread = (uint32_t)cua_port_thread(),
		       threads = (uint32_t)cua_port_block_size();
	const void *keys = cua__sort_from(s, s->pass) ? s->keys[1] : s->keys[0];
	uint64_t begin, end;

	if (!cua__hashmap_digit(*s->differ, s->pass))
		return;
	cua__sort_share(s, &begin, &end);
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads)
		CUA_WRITE(shared[d], (uint32_t)0);
	cua_port_sync_block();
	for (uint64_t i = begin + thread; i < end; i += threads)
		cua_port_add_u32(&shared[cua__hashmap_digit(cua__hashmap_get(keys, s->key_size, i),
							    s->pass)],
				 1, CUA__HASHMAP_IN_BLOCK);
	cua_port_sync_block();
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads)
		CUA_WRITE(s->counts[cua_port_block() * CUA__HASHMAP_DIGITS + d],
			  (uint64_t)CUA_READ(shared[d]));
}

/*
 * A single block: replaces the counts of each block by the sums over the blocks before, and stores
 * the first offset of each digit after them.
 */
CUA_FORCE void cua__sort_scan(const struct cua__sort_arrays *s,
			      uint64_t shared[CUA__HASHMAP_DIGITS])
{
	const uint32_t thread = (uint32_t)cua_port_thread(),
		       threads = (uint32_t)cua_port_block_size();

	if (!cua__hashmap_digit(*s->differ, s->pass))
		return;
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads) {
		uint64_t sum = 0;

		for (uint32_t b = 0; b < s->blocks; b++) {
			uint64_t *count = &s->counts[(uint64_t)b * CUA__HASHMAP_DIGITS + d],
				 here = CUA_READ(*count);

			CUA_WRITE(*count, sum);
			sum += here;
		}
		CUA_WRITE(shared[d], sum);
	}
	cua_port_sync_block();
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads) {
		uint64_t sum = 0;

		for (uint32_t e = 0; e < d; e++)
			sum += CUA_READ(shared[e]);
		CUA_WRITE(s->counts[(uint64_t)s->blocks * CUA__HASHMAP_DIGITS + d], sum);
	}
}

CUA_FORCE void cua__sort_scatter(const struct cua__sort_arrays *s, struct cua__sort_shared *shared)
{
	const uint32_t thread = (uint32_t)cua_port_thread(),
		       threads = (uint32_t)cua_port_block_size();
	const uint32_t lane = cua_port_lane(), warp = thread / 32, warps = threads / 32;
	const uint32_t ks = s->key_size, vs = s->value_size, from = cua__sort_from(s, s->pass);
	/* no index: it would make a GPU copy the struct */
	const void *keys_in = from ? s->keys[1] : s->keys[0],
		   *values_in = from ? s->values[1] : s->values[0];
	void *keys_out = from ? s->keys[0] : s->keys[1],
	     *values_out = from ? s->values[0] : s->values[1];
	uint64_t begin, end;

	if (!cua__hashmap_digit(*s->differ, s->pass))
		return;
	cua__sort_share(s, &begin, &end);
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads)
		CUA_WRITE(
			shared->next[d],
			CUA_READ(s->counts[cua_port_block() * CUA__HASHMAP_DIGITS + d]) +
				CUA_READ(s->counts[(uint64_t)s->blocks * CUA__HASHMAP_DIGITS + d]));
	for (uint64_t tile = begin; tile < end; tile += (uint64_t)threads * CUA__SORT_ITEMS) {
		/* the pairs of a warp are contiguous */
		const uint64_t first = tile + (uint64_t)warp * 32 * CUA__SORT_ITEMS + lane;
		struct cua_u128 keys[CUA__SORT_ITEMS];
		uint32_t digits[CUA__SORT_ITEMS], ranks[CUA__SORT_ITEMS];

		for (uint32_t w = 0; w < warps; w++)
			for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads)
				CUA_WRITE(shared->counts[w][d], (uint32_t)0);
		cua_port_sync_block();
		CUA__UNROLL
		for (uint32_t r = 0; r < CUA__SORT_ITEMS; r++) {
			const int valid = first + r * 32 < end;
			uint32_t peers, before;

			digits[r] = CUA__HASHMAP_DIGITS;
			ranks[r] = 0;
			if (valid) {
				keys[r] = cua__hashmap_get(keys_in, ks, first + r * 32);
				digits[r] = cua__hashmap_digit(keys[r], s->pass);
				ranks[r] = CUA_READ(shared->counts[warp][digits[r]]);
			}
			peers = cua_port_match_any_u32(CUA__ALL_LANES, digits[r]);
			before = cua_port_popc_u32(peers & (((uint32_t)1 << lane) - 1));
			/* all have read */
			cua_port_sync_warp(CUA__ALL_LANES);
			if (valid && !before)
				CUA_WRITE(shared->counts[warp][digits[r]],
					  ranks[r] + cua_port_popc_u32(peers));
			ranks[r] += before;
			cua_port_sync_warp(CUA__ALL_LANES);
		}
		cua_port_sync_block();
		/*
		 * advance `next` to the next tile; counts[w] becomes the distance of warp w's first
		 * pair from it
		 */
		for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads) {
			uint32_t behind = 0;

			for (uint32_t w = warps; w-- > 0;) {
				behind += CUA_READ(shared->counts[w][d]);
				CUA_WRITE(shared->counts[w][d], behind);
			}
			CUA_WRITE(shared->next[d], CUA_READ(shared->next[d]) + behind);
		}
		cua_port_sync_block();
		CUA__UNROLL
		for (uint32_t r = 0; r < CUA__SORT_ITEMS; r++) {
			uint64_t to;

			if (digits[r] == CUA__HASHMAP_DIGITS)
				continue;
			to = CUA_READ(shared->next[digits[r]]) -
			     CUA_READ(shared->counts[warp][digits[r]]) + ranks[r];
			cua__hashmap_set(keys_out, ks, to, keys[r]);
			if (vs)
				cua__hashmap_set(values_out, vs, to,
						 cua__hashmap_get(values_in, vs, first + r * 32));
		}
		cua_port_sync_block();
	}
}

/* Copies the pairs back to the first array if the last pass left them in the second. */
CUA_FORCE void cua__sort_finish(const struct cua__sort_arrays *s)
{
	const uint64_t threads = cua_port_block_size(), step = cua_port_grid_size() * threads;
	const uint64_t n = cua__sort_n(s);

	if (!cua__sort_from(s, s->key_size))
		return;
	for (uint64_t i = cua_port_block() * threads + cua_port_thread(); i < n; i += step) {
		cua__hashmap_set(s->keys[0], s->key_size, i,
				 cua__hashmap_get(s->keys[1], s->key_size, i));
		if (s->value_size)
			cua__hashmap_set(s->values[0], s->value_size, i,
					 cua__hashmap_get(s->values[1], s->value_size, i));
	}
}

/* ---- retrieval ---- */

CUA_FORCE void cua__hashmap_retrieve_rejected(const struct cua_hashmap_view *view, uint64_t max,
					      void *keys_out, void *values_out, uint64_t *n)
{
	const uint64_t threads = cua_port_block_size(), step = cua_port_grid_size() * threads;
	const uint64_t first = cua_port_block() * threads + cua_port_thread();
	uint64_t all, kept = cua__hashmap_kept(view, &all);

	if (first == 0)
		*n = all;
	for (uint64_t i = first; i < kept && i < max; i += step) {
		cua__hashmap_set(keys_out, view->key_size, i, view->rejects->pairs[i].key);
		cua__hashmap_set(values_out, view->value_size, i, view->rejects->pairs[i].value);
	}
}

struct cua__slice_shared {
	uint64_t base;
	uint32_t count;
};

/* A range of slots of a map, and the output of their pairs. */
struct cua__slice {
	uint64_t first, slots;
	void *keys_out, *values_out;
	uint64_t *n; /* 0 before the launch */
	/* if not NULL: only if *all > max, and then at most max pairs with keys <= *last */
	const struct cua_u128 *last;
	const uint64_t *all;
	uint64_t max;
};

/* A block claims the offsets of the pairs of a step by a single addition. */
CUA_FORCE void cua__hashmap_retrieve_slice(const struct cua_hashmap_view *view, uint32_t ks,
					   uint32_t vs, const struct cua__slice *s,
					   struct cua__slice_shared *shared)
{
	const uint32_t thread = (uint32_t)cua_port_thread();
	const uint64_t threads = cua_port_block_size(), step = cua_port_grid_size() * threads;

	if (s->last && *s->all <= s->max)
		return;
	/* the bound is equal in all threads */
	for (uint64_t start = cua_port_block() * threads; start < s->slots; start += step) {
		struct cua_u128 key = {0, 0}, value = {0, 0};
		uint32_t mine = 0;
		int there;

		if (thread == 0)
			CUA_WRITE(shared->count, (uint32_t)0);
		cua_port_sync_block();
		there = start + thread < s->slots &&
			cua__hashmap_at(view, ks, vs, s->first + start + thread, &key, &value) &&
			!(s->last && cua__hashmap_below(*s->last, key));
		if (there)
			mine = cua_port_fetch_add_u32(&shared->count, 1, CUA__HASHMAP_IN_BLOCK);
		cua_port_sync_block();
		if (thread == 0)
			CUA_WRITE(shared->base,
				  cua_port_fetch_add_u64(s->n, CUA_READ(shared->count), CUA_RELAXED,
							 CUA__HASHMAP_AT));
		cua_port_sync_block();
		if (there && (!s->last || CUA_READ(shared->base) + mine < s->max)) {
			cua__hashmap_set(s->keys_out, ks, CUA_READ(shared->base) + mine, key);
			cua__hashmap_set(s->values_out, vs, CUA_READ(shared->base) + mine, value);
		}
	}
}

/*
 * ---- the least keys: for each digit a count by many blocks and a pick by a single block, then the
 * retrieval ----
 */

struct cua__least_arrays {
	uint32_t pass;
	uint64_t max;
	/* the launches do nothing if *all <= max, or after the end of the search */
	const uint64_t *all;
	struct cua__hashmap_least *least;
};

CUA_FORCE void cua__least_count(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				const struct cua__least_arrays *a,
				uint32_t shared[CUA__HASHMAP_DIGITS])
{
	const uint32_t thread = (uint32_t)cua_port_thread(),
		       threads = (uint32_t)cua_port_block_size();
	const uint64_t step = cua_port_grid_size() * threads,
		       slots = cua__hashmap_all_slots(view, ks, vs);
	struct cua_u128 begin, key, value;

	if (*a->all <= a->max || a->least->done)
		return;
	begin = a->least->key;
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads)
		CUA_WRITE(shared[d], (uint32_t)0);
	cua_port_sync_block();
	for (uint64_t i = cua_port_block() * threads + thread; i < slots; i += step)
		if (cua__hashmap_at(view, ks, vs, i, &key, &value) &&
		    cua__hashmap_same_prefix(key, begin, a->pass))
			cua_port_add_u32(&shared[cua__hashmap_digit(key, a->pass)], 1,
					 CUA__HASHMAP_IN_BLOCK);
	cua_port_sync_block();
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads)
		if (CUA_READ(shared[d]))
			cua_port_add_u64(&a->least->counts[d], CUA_READ(shared[d]), CUA_RELAXED,
					 CUA__HASHMAP_AT);
}

/* A single block. During concurrent writes, no digit may qualify; the digit is 0 then. */
CUA_FORCE void cua__least_pick(const struct cua__least_arrays *a,
			       uint64_t shared[CUA__HASHMAP_DIGITS])
{
	const uint32_t thread = (uint32_t)cua_port_thread(),
		       threads = (uint32_t)cua_port_block_size();
	uint64_t rank;

	if (*a->all <= a->max || CUA_READ(a->least->done))
		return;
	rank = a->max - 1 - CUA_READ(a->least->below);
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads) {
		CUA_WRITE(shared[d], CUA_READ(a->least->counts[d]));
		CUA_WRITE(a->least->counts[d], (uint64_t)0);
	}
	cua_port_sync_block();
	for (uint32_t d = thread; d < CUA__HASHMAP_DIGITS; d += threads) {
		uint64_t below = 0;

		for (uint32_t e = 0; e < d; e++)
			below += CUA_READ(shared[e]);
		if (below <= rank && rank - below < CUA_READ(shared[d]))
			cua__hashmap_least_digit(a->least, a->max, a->pass, d, below,
						 CUA_READ(shared[d]));
	}
}

CUA_FORCE void cua__hashmap_move(const struct cua_hashmap_view *from,
				 const struct cua_hashmap_view *to, uint32_t ks, uint32_t vs,
				 int op)
{
	const uint64_t threads = cua_port_block_size(), step = cua_port_grid_size() * threads;
	const uint64_t slots = cua__hashmap_all_slots(from, ks, vs);
	struct cua_u128 key, value, there;

	for (uint64_t i = cua_port_block() * threads + cua_port_thread(); i < slots; i += step)
		if (cua__hashmap_at(from, ks, vs, i, &key, &value))
			(void)cua__hashmap_write(to, CUA__HASHMAP_KIND(ks, vs), op,
						 cua__hashmap_hash(to, ks, key), key, value,
						 &there);
}

CUA_FORCE void cua__hashmap_count_all(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				      uint32_t *homes, struct cua__hashmap_tally *tally,
				      struct cua__hashmap_tally *shared)
{
	const uint32_t thread = (uint32_t)cua_port_thread();
	const uint64_t threads = cua_port_block_size(), step = cua_port_grid_size() * threads;
	const uint64_t slots = cua__hashmap_all_slots(view, ks, vs);
	const uint32_t words = sizeof(*shared) / sizeof(uint64_t);
	uint64_t *sums = (uint64_t *)(void *)shared, *all = (uint64_t *)(void *)tally, worst = 0,
		 erased = 0;
	struct cua_u128 key, value;

	for (uint32_t w = thread; w < words; w += (uint32_t)threads)
		CUA_WRITE(sums[w], (uint64_t)0);
	cua_port_sync_block();
	for (uint64_t i = cua_port_block() * threads + thread; i < slots; i += step) {
		uint64_t home, there;

		if (!cua__hashmap_at(view, ks, vs, i, &key, &value)) {
			erased += (uint64_t)cua__hashmap_is_erased(view, ks, vs, i);
			continue;
		}
		cua_port_add_u64(
			&shared->probes[cua__hashmap_distance(view, ks, vs, i, key, &home)], 1,
			CUA__HASHMAP_IN_BLOCK);
		there = cua_port_fetch_add_u32(&homes[home], 1, CUA_RELAXED, CUA__HASHMAP_AT) +
			(uint64_t)1;
		if (there > worst)
			worst = there;
	}
	if (erased)
		cua_port_add_u64(&shared->erased, erased, CUA__HASHMAP_IN_BLOCK);
	if (worst)
		cua_port_max_u64(&shared->worst, worst, CUA__HASHMAP_IN_BLOCK);
	cua_port_sync_block();
	for (uint32_t w = thread; w < words; w += (uint32_t)threads) {
		if (&sums[w] == &shared->worst)
			cua_port_max_u64(&all[w], CUA_READ(sums[w]), CUA_RELAXED, CUA__HASHMAP_AT);
		else
			cua_port_add_u64(&all[w], CUA_READ(sums[w]), CUA_RELAXED, CUA__HASHMAP_AT);
	}
}

#endif /* CUATOMIC_KERNELS_HASHMAP_KERNEL_H */
