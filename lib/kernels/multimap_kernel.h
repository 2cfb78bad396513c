/* SPDX-License-Identifier: MIT */
/* The longer kernels of the multimap, by whole warps, over the port layer. */
#ifndef CUATOMIC_KERNELS_MULTIMAP_KERNEL_H
#define CUATOMIC_KERNELS_MULTIMAP_KERNEL_H

#include "kernels/hashmap_bulk.h"
#include "kernels/multimap_pool.h"

CUA_FORCE uint64_t cua__multimap_head_of(const struct cua_multimap_view *view, uint32_t ks,
					 const void *keys, uint64_t i)
{
	const struct cua_u128 key = cua__hashmap_get(keys, ks, i);

	return cua__multimap_head(view, ks, cua__hashmap_hash(&view->map, ks, key), key);
}

/* The index of the block's first element, and the step to its elements of the next tile. */
CUA_FORCE uint64_t cua__multimap_tile(void)
{
	return (uint64_t)cua_port_block() * cua_port_block_size();
}

CUA_FORCE uint64_t cua__multimap_step(void)
{
	return (uint64_t)cua_port_grid_size() * cua_port_block_size();
}

CUA_FORCE void cua__multimap_insert_kernel(const struct cua_multimap_view *view,
					   const struct cua__multimap_call *call, uint32_t ks)
{
	/* whole warps: the bound is equal in all lanes */
	for (uint64_t tile = cua__multimap_tile(); tile < call->n; tile += cua__multimap_step()) {
		const uint64_t i = tile + cua_port_thread();
		const int valid = i < call->n;
		struct cua_u128 key = {0, 0};
		uint64_t value = 0;
		int result;

		if (valid) {
			key = cua__hashmap_get(call->keys, ks, i);
			value = cua__hashmap_get(call->values, view->value_size, i).lo;
		}
		result = cua__multimap_insert_warp(view, ks, view->value_size, CUA__ALL_LANES,
						   valid, key, value);
		if (valid && call->results)
			call->results[i] = (uint8_t)result;
	}
}

/* ---- retrieve: each block has a range of the keys, with contiguous values ---- */

struct cua__multimap_range {
	uint64_t begin, end;
};

/* The range of this block, in whole tiles. */
CUA_FORCE struct cua__multimap_range cua__multimap_range_of(uint64_t n)
{
	const uint64_t threads = cua_port_block_size(), blocks = cua_port_grid_size(),
		       b = cua_port_block();
	const uint64_t tiles = n / threads + (n % threads != 0), each = tiles / blocks,
		       more = tiles % blocks;
	const uint64_t first = each * b + (b < more ? b : more);
	struct cua__multimap_range range;

	range.begin = first * threads;
	range.end = (first + each + (b < more)) * threads;
	if (range.end > n)
		range.end = n;
	return range;
}

/*
 * Block-wide exclusive sum of `value`; *total gets the sum over all threads. All threads of the
 * block call it. `warps`, in shared memory, has an element per warp.
 */
CUA_FORCE uint64_t cua__multimap_block_scan(uint64_t value, uint64_t *warps, uint64_t *total)
{
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / CUA_WARP_LANES;
	uint64_t sum = value, before = 0, all = 0;
	uint32_t d, w;

	for (d = 1; d < CUA_WARP_LANES; d *= 2) {
		uint64_t other =
			cua_port_shuffle_u64(CUA__ALL_LANES, sum, lane >= d ? lane - d : lane);

		if (lane >= d)
			sum += other;
	}
	if (lane == CUA_WARP_LANES - 1)
		CUA_WRITE(warps[warp], sum);
	cua_port_sync_block();
	for (w = 0; w < cua_port_block_size() / CUA_WARP_LANES; w++) {
		if (w == warp)
			before = all;
		all += CUA_READ(warps[w]);
	}
	/* for the next call */
	cua_port_sync_block();
	*total = all;
	return before + sum - value;
}

/* Counts the values of the keys, and sums the counts of each range. */
CUA_FORCE void cua__multimap_sums_kernel(const struct cua_multimap_view *view,
					 const struct cua__multimap_call *call, uint32_t ks,
					 uint64_t *warps)
{
	const struct cua__multimap_range range = cua__multimap_range_of(call->n);
	uint64_t sum = 0, total, i;

	for (i = range.begin + cua_port_thread(); i < range.end; i += cua_port_block_size()) {
		uint64_t n = cua__multimap_length(view, view->value_size,
						  cua__multimap_head_of(view, ks, call->keys, i));

		call->out[i] = n;
		sum += n;
	}
	cua__multimap_block_scan(sum, warps, &total);
	if (cua_port_thread() == 0)
		CUA_WRITE(call->sums[cua_port_block()], total);
}

/* A single block: replaces the sum of each range by the sum over the ranges before. */
CUA_FORCE void cua__multimap_scan_kernel(const struct cua__multimap_call *call, uint32_t ranges,
					 uint64_t *warps)
{
	uint64_t carry = 0;
	uint32_t tile;

	for (tile = 0; tile < ranges; tile += cua_port_block_size()) {
		const uint32_t i = tile + cua_port_thread();
		uint64_t total, before;

		before = cua__multimap_block_scan(i < ranges ? CUA_READ(call->sums[i]) : 0, warps,
						  &total);
		if (i < ranges)
			CUA_WRITE(call->sums[i], carry + before);
		carry += total;
	}
	if (cua_port_thread() == 0) {
		call->out[call->n] = carry < call->max ? carry : call->max;
		*call->total = carry;
	}
}

/* Replaces the counts by offsets and stores the values there. */
CUA_FORCE void cua__multimap_values_kernel(const struct cua_multimap_view *view,
					   const struct cua__multimap_call *call, uint32_t ks,
					   uint64_t *warps)
{
	const struct cua__multimap_range range = cua__multimap_range_of(call->n);
	const uint32_t vs = view->value_size;
	uint64_t carry = CUA_READ(call->sums[cua_port_block()]), tile, at;

	for (tile = range.begin; tile < range.end; tile += cua_port_block_size()) {
		const uint64_t i = tile + cua_port_thread(), n = i < range.end ? call->out[i] : 0;
		uint64_t total, offset = carry + cua__multimap_block_scan(n, warps, &total),
				to = offset + n;

		carry += total;
		if (i < range.end)
			call->out[i] = offset < call->max ? offset : call->max;
		if (to > call->max)
			to = call->max;
		if (i >= range.end || offset >= to)
			continue;
		for (at = cua__multimap_head_of(view, ks, call->keys, i); at && offset < to;
		     at = cua__multimap_next(view, vs, at), offset++) {
			struct cua_u128 value = {0, 0};

			value.lo = cua__multimap_value(view, vs, at);
			cua__hashmap_set(call->values_out, vs, offset, value);
		}
	}
}

/* ---- all pairs, and reclaim ---- */

/* Claims an offset for each lane with `wants`, from a counter. All lanes of the warp call it. */
CUA_FORCE uint64_t cua__multimap_claim_offsets(uint64_t *counter, int wants)
{
	const uint32_t votes = cua_port_ballot(CUA__ALL_LANES, wants), lane = cua_port_lane();
	uint64_t first = 0;

	if (!votes)
		return 0;
	if (lane == cua_port_ffs_u32(votes) - 1)
		first = cua_port_fetch_add_u64(counter, cua_port_popc_u32(votes), CUA__MULTIMAP_AT);
	return cua_port_shuffle_u64(CUA__ALL_LANES, first, cua_port_ffs_u32(votes) - 1) +
	       cua_port_popc_u32(votes & (((uint32_t)1 << lane) - 1));
}

CUA_FORCE void cua__multimap_all_kernel(const struct cua_multimap_view *view,
					const struct cua__multimap_call *call, uint32_t ks)
{
	const uint64_t slots = cua__multimap_map_slots(view, ks);
	const uint32_t vs = view->value_size;
	uint64_t tile;

	for (tile = cua__multimap_tile(); tile < slots; tile += cua__multimap_step()) {
		struct cua_u128 key = {0, 0}, value = {0, 0};
		uint64_t at = 0;

		if (tile + cua_port_thread() < slots)
			at = cua__multimap_at(view, ks, tile + cua_port_thread(), &key);
		while (cua_port_ballot(CUA__ALL_LANES, at != 0)) {
			uint64_t offset = cua__multimap_claim_offsets(call->total, at != 0);

			if (at && offset < call->max) {
				value.lo = cua__multimap_value(view, vs, at);
				cua__hashmap_set(call->keys_out, ks, offset, key);
				cua__hashmap_set(call->values_out, vs, offset, value);
			}
			if (at)
				at = cua__multimap_next(view, vs, at);
		}
	}
}

/* Lists the free entries. Call cua__multimap_reclaimed afterwards. */
CUA_FORCE void cua__multimap_reclaim_kernel(const struct cua_multimap_view *view)
{
	const uint64_t used = cua__multimap_used(view);
	uint64_t tile;

	for (tile = cua__multimap_tile(); tile < used; tile += cua__multimap_step()) {
		const uint64_t cursor = tile + cua_port_thread() + 1;
		int is_free = cursor <= used && cua__multimap_is_free(view, cursor);
		uint64_t offset = cua__multimap_claim_offsets(&view->pool->gathered, is_free);

		if (is_free)
			cua__multimap_set_reusable(view, offset, cursor);
	}
}

#endif /* CUATOMIC_KERNELS_MULTIMAP_KERNEL_H */
