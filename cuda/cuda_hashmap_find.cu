/* SPDX-License-Identifier: MIT */
/* Bulk finds of the hash map on a GPU: the lanes of a warp read their home buckets together. */
#include "config.h"

#include "cuda_hashmap_calls.h"
#include "kernels/shard_find.h"

/*
 * Blocks per multiprocessor: enough for a thread for each key. In a loop, lanes that search beyond
 * the home would be late for the warp's next keys, and each lane would read its homes alone.
 */
#define MOST_BLOCKS ((unsigned)1 << 22)

struct bulk_find {
	struct cua_hashmap_view view;
	uint64_t n;
	const void *keys;
	void *values_out;
	uint8_t *found;
};

/* Finds the key at `keys`, and sets *value if it is there and wanted. */
template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __device__ __forceinline__ int
find(const struct cua_hashmap_view *view, struct cua_u128 bits, bool wanted, struct cua_u128 *value)
{
	const cua__hashmap_kind kind =
		CUA__HASHMAP_KIND(KS, VS) +
		(LAYOUT == CUA_HASHMAP_WORDS ? CUA__HASHMAP_OF_WORDS : CUA__HASHMAP_OF_STATES);
	const struct cua_hashmap_view known = with_layout<PLAIN>(view, LAYOUT);
	const struct cua__hashmap_key key =
		cua__hashmap_key_of(hash_of<KS, PLAIN>(view, bits), bits);

	if (LAYOUT == CUA_HASHMAP_WORDS)
		return cua__hashmap_word_find(&known, kind, key, NULL, CUA_RELAXED, value);
	return cua__hashmap_state_find(&known, kind, key, NULL, wanted ? value : NULL);
}

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __global__ void __launch_bounds__(THREADS)
	find_kernel(const __grid_constant__ struct bulk_find c)
{
	if (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS))
		return;
	cua__after_predecessor();
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < c.n;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		struct cua_u128 value = {0, 0};
		const int there = find<KS, VS, LAYOUT, PLAIN>(
			&c.view, cua__hashmap_get(c.keys, KS, i), c.values_out, &value);

		if (VS && there && c.values_out)
			cua__hashmap_set(c.values_out, VS, i, value);
		if (c.found)
			c.found[i] = (uint8_t)there;
	}
}

enum cua_status cua__cuda_hashmap_find(struct cua_context *ctx, const struct cua_hashmap_view *view,
				       const struct cua__hashmap_call *c)
{
	const struct bulk_find b = {*view, c->n, c->keys, c->values_out, c->flags};

#define FUNCTION(ks, vs, layout)                                                                   \
	launch_each(ctx, c->n, MOST_BLOCKS, FOR_VIEW(view, find_kernel, ks, vs, layout), b)
	BY_SIZE
#undef FUNCTION
}

/* ---- in regions ---- */

/* Keys of a thread: all are loaded before the first is found, because they may come from another GPU. */
#define REGIONS_EACH 2u

static_assert(CUA__HASHMAP_UNIT == THREADS * REGIONS_EACH, "a block finds a unit");

struct find_regions {
	struct cua_hashmap_view view;
	struct cua__hashmap_sources sources;
};

static __global__ void __launch_bounds__(CUA__BINS_THREADS)
	plan_kernel(const __grid_constant__ struct cua__hashmap_sources sources)
{
	__shared__ uint32_t of_warp[CUA__BINS_THREADS / 32];

	cua__bins_plan(&sources, of_warp);
}

/* Blocks begin in order, so those that run at the same time find keys of few regions. */
template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __global__ void __launch_bounds__(THREADS)
	find_regions_kernel(const __grid_constant__ struct find_regions c)
{
	const struct cua__hashmap_sources *p = &c.sources;
	const uint32_t all = p->units[p->regions];

	if (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS))
		return;
	for (uint32_t unit = blockIdx.x; unit < all; unit += gridDim.x) {
		const struct cua__bins_unit u = cua__bins_unit(p, unit);
		struct cua_u128 key[REGIONS_EACH];

		CUA__UNROLL
		for (uint32_t j = 0; j < REGIONS_EACH; j++)
			if (threadIdx.x + j * THREADS < u.n)
				key[j] = cua__hashmap_get(p->keys[u.source], KS,
							  u.at + threadIdx.x + j * THREADS);
		CUA__UNROLL
		for (uint32_t j = 0; j < REGIONS_EACH; j++) {
			const uint32_t i = threadIdx.x + j * THREADS;
			struct cua_u128 value;
			int there = 0;
			uint32_t votes;

			if (i < u.n)
				there = find<KS, VS, LAYOUT, PLAIN>(
					&c.view, key[j], p->values_out[u.source], &value);
			votes = __ballot_sync(0xffffffffu, there);
			if (VS && there && p->values_out[u.source])
				cua__hashmap_set(p->values_out[u.source], VS, u.at + i, value);
			if (i < u.n && i % 32 == 0)
				p->found[u.source][(u.at + i) / 32] = votes;
		}
	}
}

enum cua_status cua__cuda_hashmap_find_regions(struct cua_context *ctx,
					       const struct cua_hashmap_view *view,
					       const struct cua__hashmap_sources *sources)
{
	const struct find_regions f = {*view, *sources};
	/* the units of an even share of the keys; with more keys, blocks find several units */
	const uint64_t units = sources->share / CUA__HASHMAP_UNIT * 17 / 16 +
			       2ull * sources->regions * sources->sources;
	const enum cua_status status =
		cua__launch(ctx, plan_kernel, 1, CUA__BINS_THREADS, 0, *sources);

	if (status)
		return status;
#define FUNCTION(ks, vs, layout)                                                                   \
	cua__launch(ctx, FOR_VIEW(view, find_regions_kernel, ks, vs, layout), (unsigned)units,     \
		    THREADS, 0, f)
	BY_SIZE
#undef FUNCTION
}
