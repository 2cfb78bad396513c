/* SPDX-License-Identifier: MIT */
/*
 * The chained hash table on a GPU: the kernels of lib/kernels/chained_kernel.h and their launches.
 */
#include "config.h"

#include "kernels/chained_kernel.h"
#include "launch.h"

/* ---- insert ---- */

#define INSERT_THREADS 1024u
#define NO_ITEM (~(uint32_t)0)

/*
 * A block claims the entries of a tile of pairs at once and writes them to the pool. A hash table
 * of the tile's buckets in shared memory has the last linked item of each bucket; an item links
 * itself to its predecessor by an exchange there. The item without a predecessor ends the bucket's
 * chain. After the barrier its thread splices the chain into the table: a single lock for all items
 * of the bucket.
 *
 * Few waiters are faster than many, because they poll the locks while the holders work. So the grid
 * has a single block per multiprocessor, with a tile as large as its shared memory allows.
 */
template <unsigned ITEMS> struct tile {
	static const uint32_t size = ITEMS * INSERT_THREADS;
	static const uint32_t slots = 2 * size;
	static const size_t bytes = slots * (sizeof(uint64_t) + sizeof(uint32_t));
};

template <unsigned ITEMS>
static __global__ void __launch_bounds__(INSERT_THREADS)
	insert_kernel(struct cua_chained_view view, uint64_t n, const uint64_t *keys,
		      const uint64_t *values)
{
	CUA__SHARED_ARRAY(uint64_t, tags); /* the bucket of each slot, or CUA_CHAINED_NONE */
	__shared__ uint64_t base;
	const uint32_t size = tile<ITEMS>::size, slots = tile<ITEMS>::slots;
	uint32_t *lasts = (uint32_t *)(tags + slots);
	uint64_t buckets[ITEMS];
	uint32_t ends[ITEMS]; /* the slot of the chain that this item ends */

	for (uint64_t start = blockIdx.x * (uint64_t)size; start < n;
	     start += gridDim.x * (uint64_t)size) {
		uint32_t here = n - start < size ? (uint32_t)(n - start) : size;

		for (uint32_t s = threadIdx.x; s < slots; s += INSERT_THREADS) {
			tags[s] = CUA_CHAINED_NONE;
			lasts[s] = NO_ITEM;
		}
		if (threadIdx.x == 0)
			base = cua_port_fetch_add_u64(&view.cursor->demand, here, CUA__CHAINED_AT);
		__syncthreads();
		if (base >= view.capacity)
			here = 0;
		else if (here > view.capacity - base)
			here = (uint32_t)(view.capacity - base);
#pragma unroll
		for (unsigned j = 0; j < ITEMS; j++) {
			uint32_t item = j * INSERT_THREADS + threadIdx.x;
			uint32_t s, before;
			struct cua_chained_entry *entry;
			uint64_t key, bucket;

			ends[j] = NO_ITEM;
			buckets[j] = 0;
			if (item >= here)
				continue;
			key = keys[start + item];
			bucket = cua_chained_bucket(&view, key);
			s = (uint32_t)bucket % slots;
			for (;;) {
				uint64_t tag = cua_port_load_b64(&tags[s], CUA_RELAXED,
								 CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);

				if (tag == CUA_CHAINED_NONE)
					tag = cua_port_cas_b64(&tags[s], CUA_CHAINED_NONE, bucket,
							       CUA_RELAXED, CUA_SCOPE_BLOCK,
							       CUA_SPACE_SHARED);
				if (tag == CUA_CHAINED_NONE || tag == bucket)
					break;
				s = (s + 1) % slots;
			}
			before = cua_port_exchange_b32(&lasts[s], item, CUA_RELAXED,
						       CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
			entry = &view.entries[base + item];
			entry->key = key;
			entry->value = values[start + item];
			if (before == NO_ITEM) {
				ends[j] = s;
				buckets[j] = bucket;
			} else {
				entry->next = base + before;
			}
		}
		/* also orders the entries of the whole block before the release of the splice */
		__syncthreads();
#pragma unroll
		for (unsigned j = 0; j < ITEMS; j++)
			if (ends[j] != NO_ITEM)
				cua__chained_splice(&view, buckets[j], base + lasts[ends[j]],
						    base + j * INSERT_THREADS + threadIdx.x);
		__syncthreads();
	}
}

template <unsigned ITEMS>
static enum cua_status launch_insert(struct cua_context *ctx, const struct cua_chained_view *view,
				     uint64_t n, const uint64_t *keys, const uint64_t *values)
{
	enum cua_status status = cua__cuda_status(
		ctx, cudaFuncSetAttribute((const void *)insert_kernel<ITEMS>,
					  cudaFuncAttributeMaxDynamicSharedMemorySize,
					  (int)tile<ITEMS>::bytes));

	if (status)
		return status;
	return cua__launch(ctx, insert_kernel<ITEMS>, cua__grid(ctx, n, tile<ITEMS>::size, 1),
			   INSERT_THREADS, tile<ITEMS>::bytes, *view, n, keys, values);
}

#define BULK_THREADS 1024u

template <enum cua__chained_way WAY>
static __global__ void __launch_bounds__(BULK_THREADS)
	bulk_kernel(const struct cua__chained_bulk bulk)
{
	CUA__SHARED_ARRAY(uint64_t, bulk_words);

	cua__chained_bulk_add(&bulk, WAY, bulk_words);
}

template <enum cua__chained_way WAY>
static enum cua_status launch_bulk(struct cua_context *ctx, const struct cua__chained_bulk *bulk,
				   unsigned grid)
{
	const size_t bytes = cua__chained_bulk_bytes(BULK_THREADS, bulk->slots);
	enum cua_status status = cua__permit_shared(ctx, (const void *)bulk_kernel<WAY>);

	return status ? status
		      : cua__launch(ctx, bulk_kernel<WAY>, grid, BULK_THREADS, bytes, *bulk);
}

static enum cua_status cuda_insert(struct cua_context *ctx, const struct cua_chained_view *view,
				   int build, size_t n, const uint64_t *keys,
				   const uint64_t *values)
{
	/*
	 * the static shared memory has to fit beside the tile, and every multiprocessor needs a
	 * share
	 */
	const size_t room = ctx->shared_bytes - 64;
	const uint64_t each = n / (uint64_t)ctx->processors;
	struct cua__chained_bulk bulk = {*view, n, keys, values, 0};
	unsigned grid = cua__grid(ctx, n, BULK_THREADS, 1);

	/* indices in a share have 32 bits */
	if (n / grid >> 31)
		grid = (unsigned)(n >> 31) + 1;
	/*
	 * pays if a block has at least an entry per bucket; for build 4, because an exchange of a
	 * head costs less than a lock
	 */
	if (view->n_buckets <= n / grid / (build ? 4 : 1) &&
	    cua__chained_bulk_bytes(BULK_THREADS, view->n_buckets) <= ctx->shared_bytes) {
		bulk.slots = (uint32_t)view->n_buckets;
		return build ? launch_bulk<CUA__CHAINED_GATHER>(ctx, &bulk, grid)
			     : launch_bulk<CUA__CHAINED_INSERT>(ctx, &bulk, grid);
	}
	if (build)
		return launch_bulk<CUA__CHAINED_BUILD>(ctx, &bulk, grid);
	if (room >= tile<8>::bytes && each >= tile<8>::size)
		return launch_insert<8>(ctx, view, n, keys, values);
	if (room >= tile<4>::bytes && each >= tile<4>::size)
		return launch_insert<4>(ctx, view, n, keys, values);
	return launch_insert<1>(ctx, view, n, keys, values);
}

/* ---- find and count: a lane per key ---- */

#define THREADS 256u
#define BLOCKS_PER_PROCESSOR 8u

static __global__ void find_kernel(struct cua_chained_view view, uint64_t n, const uint64_t *keys,
				   uint64_t *values_out, uint8_t *found)
{
	uint64_t step = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		uint64_t value;
		int there = cua_chained_find(&view, keys[i], &value);

		if (there)
			values_out[i] = value;
		if (found)
			found[i] = (uint8_t)there;
	}
}

static enum cua_status cuda_find(struct cua_context *ctx, const struct cua_chained_view *view,
				 size_t n, const uint64_t *keys, uint64_t *values_out,
				 uint8_t *found)
{
	return cua__launch(ctx, find_kernel, cua__grid(ctx, n, THREADS, BLOCKS_PER_PROCESSOR),
			   THREADS, 0, *view, n, keys, values_out, found);
}

/*
 * A lane follows a link in some hundred nanoseconds, so a key with a hundred million pairs would
 * take a minute. After this many links, a lane leaves its key to a search of the whole pool. All
 * lanes then read the pool once at memory speed, for up to CUA__CHAINED_PENDING keys.
 */
#define COUNT_WALK 16384u
#define VALUES_WALK 1024u

static __global__ void count_kernel(struct cua_chained_view view, uint64_t n, const uint64_t *keys,
				    uint64_t *counts_out, struct cua__chained_pending *pending)
{
	uint64_t step = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		uint64_t key = keys[i], count = 0, walked = 0;
		uint64_t index = cua_port_load_b64(&view.heads[cua_chained_bucket(&view, key)],
						   CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

		for (; index != CUA_CHAINED_NONE; index = view.entries[index].next) {
			if (walked++ == COUNT_WALK) {
				uint64_t at =
					cua_port_fetch_add_u64(&pending->n, 1, CUA__CHAINED_AT);

				if (at < CUA__CHAINED_PENDING) {
					pending->index[at] = i;
					break;
				}
			}
			count += view.entries[index].key == key;
		}
		counts_out[i] = count;
	}
}

/*
 * Counts the pending keys in the pool. A thread adds up a run of equal keys before it updates the
 * shared count.
 */
static __global__ void count_search_kernel(struct cua_chained_view view, const uint64_t *keys,
					   struct cua__chained_pending *pending)
{
	__shared__ uint64_t wanted[CUA__CHAINED_PENDING];
	uint64_t used = cua__chained_used(&view), run = 0, run_key = 0;
	uint64_t step = (uint64_t)gridDim.x * blockDim.x;
	unsigned n =
		(unsigned)(pending->n < CUA__CHAINED_PENDING ? pending->n : CUA__CHAINED_PENDING);

	if (!n)
		return;
	if (threadIdx.x < n)
		wanted[threadIdx.x] = keys[pending->index[threadIdx.x]];
	__syncthreads();
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;; i += step) {
		uint64_t key = i < used ? view.entries[i].key : 0;
		int hit = 0;

		if (i < used && run && key == run_key) {
			run++;
			continue;
		}
		for (unsigned j = 0; j < n; j++) {
			/* equal keys may be pending twice */
			if (run && wanted[j] == run_key)
				cua_port_add_u64(&pending->total[j], run, CUA__CHAINED_AT);
			hit |= wanted[j] == key;
		}
		run = 0;
		if (i >= used)
			break;
		if (hit) {
			run = 1;
			run_key = key;
		}
	}
}

static __global__ void count_finish_kernel(uint64_t *counts_out,
					   const struct cua__chained_pending *pending)
{
	if (threadIdx.x < pending->n)
		counts_out[pending->index[threadIdx.x]] = pending->total[threadIdx.x];
}

static enum cua_status cuda_count(struct cua_context *ctx, const struct cua_chained_view *view,
				  size_t n, const uint64_t *keys, uint64_t *counts_out,
				  struct cua__chained_pending *pending)
{
	enum cua_status status =
		cua__launch(ctx, count_kernel, cua__grid(ctx, n, THREADS, BLOCKS_PER_PROCESSOR),
			    THREADS, 0, *view, n, keys, counts_out, pending);

	if (!status)
		status = cua__launch(ctx, count_search_kernel,
				     cua__grid(ctx, view->capacity, THREADS, BLOCKS_PER_PROCESSOR),
				     THREADS, 0, *view, keys, pending);
	if (!status)
		status = cua__launch(ctx, count_finish_kernel, 1, CUA__CHAINED_PENDING, 0,
				     counts_out, pending);
	return status;
}

/* ---- values ---- */

static __global__ void values_kernel(struct cua_chained_view view, uint64_t key, uint64_t max,
				     uint64_t *values_out, struct cua__chained_found *found)
{
	uint64_t n = 0, walked = 0;
	uint64_t index = cua_port_load_b64(&view.heads[cua_chained_bucket(&view, key)], CUA_ACQUIRE,
					   CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

	for (; index != CUA_CHAINED_NONE; index = view.entries[index].next) {
		if (walked++ == VALUES_WALK) {
			found->search = 1;
			return;
		}
		if (view.entries[index].key != key)
			continue;
		if (n < max)
			values_out[n] = view.entries[index].value;
		n++;
	}
	found->n = n;
}

static __global__ void values_search_kernel(struct cua_chained_view view, uint64_t key,
					    uint64_t max, uint64_t *values_out,
					    struct cua__chained_found *found)
{
	uint64_t used = cua__chained_used(&view), step = (uint64_t)gridDim.x * blockDim.x;
	uint32_t below = ((uint32_t)1 << cua_port_lane()) - 1;

	if (!found->search)
		return;
	/* whole warps: the bound is equal in all lanes */
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x; i < used; i += step) {
		uint64_t index = i + threadIdx.x, at = 0;
		int hit = index < used && view.entries[index].key == key;
		uint32_t hits = cua_port_ballot(CUA__ALL_LANES, hit);

		if (!hits)
			continue;
		if (cua_port_lane() == cua_port_ffs_u32(hits) - 1)
			at = cua_port_fetch_add_u64(&found->n, cua_port_popc_u32(hits),
						    CUA__CHAINED_AT);
		at = cua_port_shuffle_u64(CUA__ALL_LANES, at, cua_port_ffs_u32(hits) - 1) +
		     cua_port_popc_u32(hits & below);
		if (hit && at < max)
			values_out[at] = view.entries[index].value;
	}
}

static enum cua_status cuda_values(struct cua_context *ctx, const struct cua_chained_view *view,
				   uint64_t key, uint64_t max, uint64_t *values_out,
				   struct cua__chained_found *found)
{
	enum cua_status status =
		cua__launch(ctx, values_kernel, 1, 1, 0, *view, key, max, values_out, found);

	if (status)
		return status;
	return cua__launch(ctx, values_search_kernel,
			   cua__grid(ctx, view->capacity, THREADS, BLOCKS_PER_PROCESSOR), THREADS,
			   0, *view, key, max, values_out, found);
}

/* ---- size and verify ---- */

static __global__ void size_kernel(struct cua_chained_view view, uint64_t *size)
{
	*size = cua__chained_used(&view);
}

static enum cua_status cuda_size(struct cua_context *ctx, const struct cua_chained_view *view,
				 uint64_t *size)
{
	return cua__launch(ctx, size_kernel, 1, 1, 0, *view, size);
}

#define EACH(i, n)                                                                                 \
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                \
	     i += (uint64_t)gridDim.x * blockDim.x)

static __global__ void mark_kernel(struct cua_chained_view view, struct cua__chained_check check)
{
	EACH(i, view.n_buckets + check.groups)
	cua__chained_check_mark(&view, &check, i);
}

static __global__ void follow_kernel(struct cua_chained_view view, struct cua__chained_check check)
{
	EACH(i, view.n_buckets)
	cua__chained_check_follow(&view, &check, i);
}

static __global__ void buckets_kernel(struct cua_chained_view view, struct cua__chained_check check)
{
	EACH(i, view.n_buckets + check.groups)
	cua__chained_check_buckets(&view, &check, i);
}

static enum cua_status cuda_verify(struct cua_context *ctx, const struct cua_chained_view *view,
				   const struct cua__chained_check *check)
{
	const unsigned grid =
		cua__grid(ctx, view->n_buckets + check->groups, THREADS, BLOCKS_PER_PROCESSOR);
	enum cua_status status = cua__launch(ctx, mark_kernel, grid, THREADS, 0, *view, *check);

	if (!status)
		status = cua__launch(ctx, follow_kernel, grid, THREADS, 0, *view, *check);
	if (!status)
		status = cua__launch(ctx, buckets_kernel, grid, THREADS, 0, *view, *check);
	return status;
}

const struct cua__chained_ops cua__cuda_chained = {
	cuda_insert, cuda_find, cuda_count, cuda_values, cuda_size, cuda_verify,
};
