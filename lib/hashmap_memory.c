/* SPDX-License-Identifier: MIT */
/* The memory of a hash map: its layout, its allocation, and the overlap of arrays with it. */
#include "config.h"

#include "hashmap_host.h"

#define BUCKETS_AT 2304u
CUA_STATIC_ASSERT(BUCKETS_AT % 256 == 0 &&
			  BUCKETS_AT >=
				  CUA_HASHMAP_STRIPES * sizeof(struct cua_hashmap_counts) + 32,
		  "the buckets begin after the reserved slots");
/* Kernels number the buckets in 32 bits. */
#define MOST_WORD_BUCKETS ((uint64_t)1 << 32)

/* ---- layout and allocation ---- */

/* The buckets of a map with this capacity; 0 if there are too many. */
static uint64_t buckets_for(uint64_t capacity, uint64_t slots, int words)
{
	uint64_t n = capacity / slots + (capacity % slots != 0), power = 1;

	if (!words)
		return n;
	if (n > MOST_WORD_BUCKETS - CUA__HASHMAP_REGION)
		return 0;
	if (n > CUA__HASHMAP_REGION)
		return (n + CUA__HASHMAP_REGION - 1) / CUA__HASHMAP_REGION * CUA__HASHMAP_REGION;
	while (power < n)
		power *= 2;
	return power;
}

enum cua_status cua__hashmap_lay_out(struct cua_hashmap *map, uint64_t capacity)
{
	const uint32_t ks = map->view.key_size, vs = map->view.value_size;
	int words = cua__hashmap_is_word(ks, vs);
	enum cua_atomic_path path;
	enum cua_status status;
	size_t buckets, rejects;

	/* a resize keeps the layout */
	if (map->view.layout) {
		words = map->view.layout == CUA_HASHMAP_WORDS;
	} else if (words && cua__hashmap_is_wide(ks, vs)) {
		words = 0;
		if (!map->options.portable) {
			status = cua_atomic_path_query(map->ctx, CUA_U128, CUA_OP_COMPARE_EXCHANGE,
						       &path);
			if (status)
				return status;
			words = path == CUA_PATH_NATIVE;
		}
	}
	map->view.layout = words ? CUA_HASHMAP_WORDS : CUA_HASHMAP_STATES;
	map->view.n_buckets = buckets_for(
		capacity,
		words ? cua__hashmap_word_slots(ks, vs) : cua__hashmap_state_slots(ks, vs), words);
	if (!map->view.n_buckets ||
	    cua__bytes(map->view.n_buckets,
		       words ? CUA__HASHMAP_WORD_BYTES : CUA__HASHMAP_STATE_BUCKET, &buckets) ||
	    cua__bytes(map->options.rejects, sizeof(struct cua_hashmap_pair), &rejects) ||
	    buckets > SIZE_MAX / 4 || rejects > SIZE_MAX / 4)
		return CUA_ERROR_SIZE;
	map->cleared = BUCKETS_AT + buckets + (rejects ? sizeof(uint64_t) : 0);
	map->bytes = BUCKETS_AT + buckets +
		     (rejects ? offsetof(struct cua_hashmap_rejects, pairs) + rejects : 0);
	if (map->options.max_bytes && map->bytes > map->options.max_bytes)
		return CUA_ERROR_SIZE;
	return CUA_OK;
}

enum cua_status cua__hashmap_allocate(struct cua_hashmap *map)
{
	const struct cua__runtime *runtime = map->ctx->runtime;
	enum cua_status status = runtime->may_wait(map->ctx);
	void *base = NULL;

	if (!status)
		status = runtime->allocate_zeros(map->ctx, map->bytes, &base);
	if (status)
		return status;
	map->base = base;
	map->view.counts = base;
	map->view.buckets = map->base + BUCKETS_AT;
	map->view.rejects = NULL;
	if (map->options.rejects) {
		map->view.rejects = (void *)(map->base + map->cleared - sizeof(uint64_t));
		status = runtime->copy(map->ctx,
				       (char *)map->view.rejects +
					       offsetof(struct cua_hashmap_rejects, room),
				       &map->options.rejects, sizeof(map->options.rejects));
	}
	if (!status)
		status = runtime->synchronize(map->ctx);
	if (status)
		runtime->release(map->ctx, base);
	return status;
}

uint64_t cua__hashmap_slots(const struct cua_hashmap_view *view)
{
	return view->n_buckets *
	       (view->layout == CUA_HASHMAP_WORDS
			? cua__hashmap_word_slots(view->key_size, view->value_size)
			: cua__hashmap_state_slots(view->key_size, view->value_size));
}

enum cua_status cua__hashmap_empty(struct cua_hashmap *map)
{
	return map->ctx->runtime->set_bytes(map->ctx, map->base, 0, map->cleared);
}

/* ---- array arguments ---- */

enum cua_status cua__hashmap_check(const struct cua_hashmap *map, const void *p, size_t n,
				   size_t size, struct cua__hashmap_array *a)
{
	enum cua_status status = CUA_OK;

	/* an array of elements without size, or of no elements */
	a->user = a->backend = NULL;
	a->bytes = 0;
	if (!size || (!p && !n))
		return CUA_OK;
	status = cua__check_array(map->ctx, p, n, size, size, &a->backend);
	a->user = p;
	a->bytes = status ? 0 : n * size;
	return status;
}

int cua__hashmap_overlap(const struct cua__hashmap_array *a, const struct cua__hashmap_array *b)
{
	return cua__overlap(a->user, a->bytes, b->user, b->bytes);
}

int cua__hashmap_in_map(const struct cua_hashmap *map, const struct cua__hashmap_array *a)
{
	return cua__overlap(a->user, a->bytes, map->base, map->bytes);
}
