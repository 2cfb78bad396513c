/* SPDX-License-Identifier: MIT */
/* Bulk finds of the hash map on a GPU: the lanes of a warp read their home buckets together. */
#include "config.h"

#include "cuda_hashmap_calls.h"

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

/* ---- in parts ---- */

struct find_parts {
	struct cua_hashmap_view view;
	struct cua__hashmap_parts parts;
	uint32_t blocks; /* of a part */
};

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __global__ void __launch_bounds__(THREADS)
	find_parts_kernel(const __grid_constant__ struct find_parts c)
{
	const struct cua__hashmap_parts *p = &c.parts;
	const uint32_t part = blockIdx.x / c.blocks, source = part / p->parts;
	const uint32_t i = blockIdx.x % c.blocks * THREADS + threadIdx.x;
	const uint64_t to = (uint64_t)(part % p->parts) * p->room + i;
	const bool has = i < p->counts[part] && i < p->room;
	struct cua_u128 value = {0, 0};
	int there = 0;
	uint32_t bits;

	if (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS))
		return;
	if (has)
		there = find<KS, VS, LAYOUT, PLAIN>(
			&c.view, cua__hashmap_get(p->keys, KS, (uint64_t)part * p->room + i),
			p->values_out[source], &value);
	bits = __ballot_sync(0xffffffffu, there);
	if (VS && there && p->values_out[source])
		cua__hashmap_set(p->values_out[source], VS, to, value);
	if (has && threadIdx.x % 32 == 0)
		p->found[source][to / 32] = bits;
}

enum cua_status cua__cuda_hashmap_find_parts(struct cua_context *ctx,
					     const struct cua_hashmap_view *view,
					     const struct cua__hashmap_parts *parts)
{
	const uint32_t blocks = (parts->room + THREADS - 1) / THREADS;
	const struct find_parts f = {*view, *parts, blocks};

#define FUNCTION(ks, vs, layout)                                                                   \
	cua__launch(ctx, FOR_VIEW(view, find_parts_kernel, ks, vs, layout),                        \
		    parts->sources * parts->parts * blocks, THREADS, 0, f)
	BY_SIZE
#undef FUNCTION
}
