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

template <uint32_t KS, uint32_t VS, uint32_t LAYOUT, int PLAIN>
static __global__ void __launch_bounds__(THREADS)
	find_kernel(const __grid_constant__ struct bulk_find c)
{
	const cua__hashmap_kind kind =
		CUA__HASHMAP_KIND(KS, VS) +
		(LAYOUT == CUA_HASHMAP_WORDS ? CUA__HASHMAP_OF_WORDS : CUA__HASHMAP_OF_STATES);

	if (LAYOUT == CUA_HASHMAP_WORDS && !cua__hashmap_has_words(KS, VS))
		return;
	cua__after_predecessor();
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < c.n;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		const struct cua_hashmap_view known = with_layout<PLAIN>(&c.view, LAYOUT);
		const struct cua_u128 bits = cua__hashmap_get(c.keys, KS, i);
		const struct cua__hashmap_key key =
			cua__hashmap_key_of(hash_of<KS, PLAIN>(&c.view, bits), bits);
		struct cua_u128 value = {0, 0};
		int there;

		if (LAYOUT == CUA_HASHMAP_WORDS)
			there = cua__hashmap_word_find(&known, kind, key, NULL, CUA_RELAXED,
						       &value);
		else
			there = cua__hashmap_state_find(&known, kind, key, NULL,
							c.values_out ? &value : NULL);
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
