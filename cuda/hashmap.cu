/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "../lib/hashmap.h"
#include "launch.h"

#define THREADS 256u
#define BLOCKS_PER_PROCESSOR 8u
#define ALL_LANES (~(uint32_t)0)

#define EACH(i, n)                                                                                 \
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                \
	     i += (uint64_t)gridDim.x * blockDim.x)

/* ---- insert, assign, update ---- */

#define NO_ITEM (~(uint32_t)0)
#define MOST_ITEMS ((uint32_t)1 << 31)

/*
 * A key that comes often would be written under one lock as often, by all blocks at once. So a block
 * combines the equal keys of its share in shared memory, in a table of keys and sums, and writes the sums to
 * the map when the table fills up or the share ends. The item that brought a key into the table owns it
 * and gets the outcome of the write; the others count as coming right after it.
 *
 * Items are numbered from the first tile that the table has seen. A slot holds its owner's number; while
 * the owner is of the tile at hand its key is in `keys`, from the next tile on in slot_keys.
 */
template <unsigned LANES, unsigned SLOTS>
static __global__ void __launch_bounds__(LANES)
	write_kernel(struct cua_hashmap_view view, int op, uint64_t n, const void *keys,
		     const void *values, uint8_t *results)
{
	const uint64_t step = gridDim.x * (uint64_t)LANES;
	const uint64_t identity = op == CUA_UPDATE_MIN ? ~(uint64_t)0 : 0;
	const int updates = op != CUA__HASHMAP_INSERT && op != CUA__HASHMAP_ASSIGN;
	const uint32_t lane = cua_port_lane();
	__shared__ uint32_t owners[SLOTS];
	__shared__ uint64_t slot_keys[SLOTS], sums[SLOTS];
	__shared__ uint16_t list[SLOTS]; /* the slots in use */
	__shared__ uint32_t listed;
	/* the same in all threads: the table's tiles are at first, first + step, ... */
	uint64_t first = blockIdx.x * (uint64_t)LANES;
	uint32_t items = 0, before = 0; /* of earlier tiles: items, slots in use */

	for (uint32_t s = threadIdx.x; s < SLOTS; s += LANES) {
		owners[s] = NO_ITEM;
		sums[s] = identity;
	}
	if (threadIdx.x == 0)
		listed = 0;
	for (uint64_t start = first; start < n; start += step) {
		const uint64_t i = start + threadIdx.x;
		const int valid = i < n;
		uint32_t s = 0, used, group;
		uint64_t key = 0, value = 0;
		int owns = 0, follows;

		if (valid) {
			key = cua__hashmap_get(keys, view.key_size, i);
			value = cua__hashmap_get(values, view.value_size, i);
			s = (uint32_t)cua_hash_u64(key, view.seed) % SLOTS;
		}
		__syncthreads();
		while (valid) {
			uint32_t owner = cua_port_load_b32(&owners[s], CUA_RELAXED, CUA_SCOPE_BLOCK,
							   CUA_SPACE_SHARED);

			if (owner == NO_ITEM)
				owner = cua_port_cas_b32(&owners[s], NO_ITEM, items + threadIdx.x,
							 CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
			owns = owner == NO_ITEM;
			if (owns || (owner < items ? slot_keys[s]
						   : cua__hashmap_get(keys, view.key_size,
								      start + (owner - items))) == key)
				break;
			s = (s + 1) % SLOTS;
		}
		group = cua_port_ballot(ALL_LANES, owns);
		if (group) {
			const uint32_t leader = cua_port_ffs_u32(group) - 1;
			uint32_t at = 0;

			if (lane == leader)
				at = cua_port_fetch_add_u32(&listed, cua_port_popc_u32(group), CUA_RELAXED,
							    CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
			at = cua_port_shuffle_u32(ALL_LANES, at, leader) +
			     cua_port_popc_u32(group & (((uint32_t)1 << lane) - 1));
			if (owns)
				list[at] = (uint16_t)s;
		}
		/* updates: the owner's own value comes after the barrier, without an atomic */
		follows = updates && valid && !owns;
		if (cua_port_ballot(ALL_LANES, follows)) {
			uint64_t sum = value;

			group = cua_port_match_any_u32(ALL_LANES, follows ? s : lane | 0x80000000u);
			if (cua_port_ballot(ALL_LANES, cua_port_popc_u32(group) > 1))
				for (uint32_t l = 0; l < CUA_WARP_LANES; l++) {
					uint64_t other = cua_port_shuffle_u64(ALL_LANES, value, l);

					if (l != lane && (group >> l & 1))
						sum = cua__hashmap_combine(sum, other, op);
				}
			if (!follows || lane != cua_port_ffs_u32(group) - 1)
				;
			else if (op == CUA_UPDATE_ADD)
				cua_port_add_u64(&sums[s], sum, CUA_RELAXED, CUA_SCOPE_BLOCK,
						 CUA_SPACE_SHARED);
			else if (op == CUA_UPDATE_MIN)
				cua_port_min_u64(&sums[s], sum, CUA_RELAXED, CUA_SCOPE_BLOCK,
						 CUA_SPACE_SHARED);
			else
				cua_port_max_u64(&sums[s], sum, CUA_RELAXED, CUA_SCOPE_BLOCK,
						 CUA_SPACE_SHARED);
		}
		__syncthreads();
		used = listed;
		if (owns) {
			slot_keys[s] = key;
			sums[s] = updates ? cua__hashmap_combine(sums[s], value, op) : value;
		}
		if (op == CUA__HASHMAP_ASSIGN) {
			/* one of those that come after the owner remains; racecheck knows an exchange, but
			 * takes relaxed stores for a race */
			__syncthreads();
			if (valid && !owns)
				cua_port_exchange_b64(&sums[s], value, CUA_RELAXED, CUA_SCOPE_BLOCK,
						      CUA_SPACE_SHARED);
		}
		items += LANES;
		/* on to the next tile where it surely fits and likely leaves a quarter of the slots free */
		if (n - start > step && used <= SLOTS - LANES &&
		    used + (used - before) <= SLOTS / 4 * 3 && items < MOST_ITEMS) {
			before = used;
			continue;
		}
		__syncthreads();
		for (uint32_t l = threadIdx.x; l < used; l += LANES) {
			s = list[l];
			/* the sum has served: the outcome takes its place */
			sums[s] = (uint64_t)cua__hashmap_write(&view, slot_keys[s], sums[s], op);
		}
		__syncthreads();
		for (uint32_t item = threadIdx.x; results && item < items; item += LANES, first += step) {
			const uint64_t at = first + threadIdx.x;
			uint8_t result;

			if (at >= n)
				break;
			key = cua__hashmap_get(keys, view.key_size, at);
			for (s = (uint32_t)cua_hash_u64(key, view.seed) % SLOTS; slot_keys[s] != key;)
				s = (s + 1) % SLOTS;
			result = (uint8_t)sums[s];
			if (result == CUA_HASHMAP_INSERTED && owners[s] != item)
				result = CUA_HASHMAP_EXISTS;
			results[at] = result;
		}
		__syncthreads();
		for (uint32_t l = threadIdx.x; l < used; l += LANES) {
			owners[list[l]] = NO_ITEM;
			sums[list[l]] = identity;
		}
		if (threadIdx.x == 0)
			listed = 0;
		first = start + step;
		items = before = 0;
	}
}

/* The large kernel's registers allow two blocks a multiprocessor: more would only share less. */
static enum cua_status cuda_write(struct cua_context *ctx, const struct cua_hashmap_view *view, int op,
				  size_t n, const void *keys, const void *values, uint8_t *results)
{
	/* a small batch spreads over the processors */
	if (n / 1024 < (uint64_t)ctx->processors)
		return cua__launch(ctx, write_kernel<256, 1024>, cua__grid(ctx, n, 256, 4), 256, 0, *view,
				   op, n, keys, values, results);
	return cua__launch(ctx, write_kernel<512, 2048>, cua__grid(ctx, n, 512, 2), 512, 0, *view, op, n,
			   keys, values, results);
}

/* ---- find and erase: a lane a key ---- */

static __global__ void find_kernel(struct cua_hashmap_view view, uint64_t n, const void *keys,
				   void *values_out, uint8_t *found)
{
	EACH(i, n) {
		uint64_t value;
		int there = cua_hashmap_find(&view, cua__hashmap_get(keys, view.key_size, i), &value);

		if (there && values_out)
			cua__hashmap_set(values_out, view.value_size, i, value);
		if (found)
			found[i] = (uint8_t)there;
	}
}

static enum cua_status cuda_find(struct cua_context *ctx, const struct cua_hashmap_view *view, size_t n,
				 const void *keys, void *values_out, uint8_t *found)
{
	return cua__launch(ctx, find_kernel, cua__grid(ctx, n, THREADS, BLOCKS_PER_PROCESSOR), THREADS, 0,
			   *view, n, keys, values_out, found);
}

static __global__ void erase_kernel(struct cua_hashmap_view view, uint64_t n, const void *keys,
				    uint8_t *found)
{
	EACH(i, n) {
		int there = cua_hashmap_erase(&view, cua__hashmap_get(keys, view.key_size, i));

		if (found)
			found[i] = (uint8_t)there;
	}
}

static enum cua_status cuda_erase(struct cua_context *ctx, const struct cua_hashmap_view *view, size_t n,
				  const void *keys, uint8_t *found)
{
	return cua__launch(ctx, erase_kernel, cua__grid(ctx, n, THREADS, BLOCKS_PER_PROCESSOR), THREADS,
			   0, *view, n, keys, found);
}

/* ---- size and read ---- */

static __global__ void size_kernel(struct cua_hashmap_view view, uint64_t *size)
{
	*size = cua__hashmap_count(&view);
}

static enum cua_status cuda_size(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint64_t *size)
{
	return cua__launch(ctx, size_kernel, 1, 1, 0, *view, size);
}

/* A lane a bucket; the pairs that a warp finds get their places by one addition. */
static __global__ void read_kernel(struct cua_hashmap_view view, uint64_t max, void *keys_out,
				   void *values_out, uint64_t *n)
{
	const uint32_t lane = cua_port_lane(), slots = cua__hashmap_slots(&view);
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;

	/* whole warps: the bound is the same for all lanes */
	for (uint64_t b = (uint64_t)blockIdx.x * blockDim.x; b < view.n_buckets; b += step) {
		for (uint32_t s = 0; s < slots; s++) {
			uint64_t bucket = b + threadIdx.x, key, value, at = 0;
			int there = bucket < view.n_buckets &&
				    cua__hashmap_pair(&view, bucket, s, &key, &value);
			uint32_t pairs = cua_port_ballot(ALL_LANES, there);

			if (!pairs)
				continue;
			if (lane == cua_port_ffs_u32(pairs) - 1)
				at = cua_port_fetch_add_u64(n, cua_port_popc_u32(pairs), CUA_RELAXED,
							    CUA__HASHMAP_AT);
			at = cua_port_shuffle_u64(ALL_LANES, at, cua_port_ffs_u32(pairs) - 1) +
			     cua_port_popc_u32(pairs & (((uint32_t)1 << lane) - 1));
			if (there && at < max) {
				cua__hashmap_set(keys_out, view.key_size, at, key);
				cua__hashmap_set(values_out, view.value_size, at, value);
			}
		}
	}
}

static enum cua_status cuda_read(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	return cua__launch(ctx, read_kernel,
			   cua__grid(ctx, view->n_buckets, THREADS, BLOCKS_PER_PROCESSOR), THREADS, 0,
			   *view, max, keys_out, values_out, n);
}

const struct cua__hashmap_ops cua__cuda_hashmap = {
	cuda_write, cuda_find, cuda_erase, cuda_size, cuda_read,
};
