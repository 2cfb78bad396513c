/* SPDX-License-Identifier: MIT */
/* The multimap: options, argument checks and calls of the backend. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "backend/multimap_backend.h"

struct cua_multimap {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	struct cua_multimap_view view;
	/*
	 * a single allocation: the pool, which starts as zeros; the entries; the list of reusable
	 * entries
	 */
	char *base;
	size_t bytes;
};

#define ENTRIES_AT 512u
CUA_STATIC_ASSERT(ENTRIES_AT >= sizeof(struct cua_multimap_pool),
		  "the entries are behind the pool");

/* ---- life ---- */

static uint32_t size_of(enum cua_type type)
{
	return type == CUA_U32 ? 4 : type == CUA_U64 ? 8 : 0;
}

/* Allocates an empty pool. Waits for the stream. */
static enum cua_status provide(struct cua_multimap *mm, size_t entries)
{
	const struct cua__runtime *runtime = mm->ctx->runtime;
	enum cua_status status = runtime->may_wait(mm->ctx);
	void *base = NULL;

	if (!status)
		status = runtime->allocate(mm->ctx, mm->bytes, &base);
	if (status)
		return status;
	status = runtime->set_bytes(mm->ctx, base, 0, sizeof(*mm->view.pool));
	if (!status)
		status = runtime->synchronize(mm->ctx);
	if (status) {
		runtime->release(mm->ctx, base);
		return status;
	}
	mm->base = base;
	mm->view.pool = base;
	mm->view.entries = mm->base + ENTRIES_AT;
	mm->view.reusable = mm->base + ENTRIES_AT + entries;
	return CUA_OK;
}

enum cua_status cua_multimap_create(struct cua_context *ctx,
				    const struct cua_multimap_options *options,
				    enum cua_type key_type, enum cua_type value_type,
				    uint64_t keys_capacity, uint64_t entries_capacity,
				    struct cua_multimap **result)
{
	struct cua_multimap_options chosen;
	struct cua_hashmap_options of_map = {.struct_size = sizeof(of_map)};
	uint32_t value_size = size_of(value_type), link_size;
	struct cua_multimap *mm;
	struct cua__call call;
	enum cua_status status;
	size_t entries, reusable;

	if (!ctx || !result)
		return CUA_ERROR_NULL;
	if (!size_of(key_type) || !value_size)
		return CUA_ERROR_TYPE;
	if (!keys_capacity || !entries_capacity || cua__options(options, &chosen, sizeof(chosen)))
		return CUA_ERROR_VALUE;
	if ((chosen.link_size != 0 && chosen.link_size != 8) || chosen.portable > 1 ||
	    chosen.hash > CUA_HASHMAP_HASH_KEYED || chosen.reserved)
		return CUA_ERROR_VALUE;
	link_size = chosen.link_size || entries_capacity > CUA__MULTIMAP_MOST_OF_4 ? 8 : 4;
	if (entries_capacity > CUA__MULTIMAP_MOST ||
	    cua__bytes(entries_capacity, 4 * cua__multimap_entry_size(value_size, link_size),
		       &entries))
		return CUA_ERROR_SIZE;
	entries = cua__scratch_size(entries / 4);
	reusable = cua__scratch_size((size_t)entries_capacity * link_size);
	mm = calloc(1, sizeof(*mm));
	if (!mm)
		return CUA_ERROR_NO_MEMORY;
	mm->ctx = ctx;
	mm->bytes = ENTRIES_AT + entries + reusable;
	mm->view.capacity = entries_capacity;
	mm->view.value_size = value_size;
	mm->view.layout = CUA_MULTIMAP_LAYOUT;
	of_map.seed = chosen.seed;
	of_map.seed_high = chosen.seed_high;
	of_map.hash = chosen.hash;
	of_map.portable = chosen.portable;
	status = cua_hashmap_create(ctx, &of_map, key_type, link_size == 4 ? CUA_U32 : CUA_U64,
				    keys_capacity, &mm->map);
	if (!status)
		status = cua_hashmap_get_view(mm->map, &mm->view.map);
	if (!status) {
		cua__call_begin(&call, ctx);
		status = cua__call_end(&call, provide(mm, entries));
	}
	if (status) {
		cua_hashmap_destroy(mm->map);
		free(mm);
		return status;
	}
	*result = mm;
	return CUA_OK;
}

enum cua_status cua_multimap_destroy(struct cua_multimap *mm)
{
	struct cua__call call;
	enum cua_status status, released;
	int cancel;

	if (!mm)
		return CUA_OK;
	cancel = cua__cancel_disable();
	/*
	 * the map's destroy waits; during a capture nothing is freed, after any other error the map
	 * is gone
	 */
	status = cua_hashmap_destroy(mm->map);
	if (status != CUA_ERROR_CAPTURE) {
		cua__call_begin(&call, mm->ctx);
		released = mm->ctx->runtime->release(mm->ctx, mm->base);
		status = cua__call_end(&call, status ? status : released);
		free(mm);
	}
	cua__cancel_restore(cancel);
	return status;
}

enum cua_status cua_multimap_get_view(const struct cua_multimap *mm, struct cua_multimap_view *view)
{
	if (!mm || !view)
		return CUA_ERROR_NULL;
	*view = mm->view;
	return CUA_OK;
}

enum cua_status cua_multimap_clear(struct cua_multimap *mm)
{
	struct cua__call call;
	enum cua_status status;
	int cancel;

	if (!mm)
		return CUA_ERROR_NULL;
	/* no cancellation between the two clears */
	cancel = cua__cancel_disable();
	status = cua_hashmap_clear(mm->map);
	if (!status) {
		cua__call_begin(&call, mm->ctx);
		status = cua__call_end(&call, mm->ctx->runtime->set_bytes(mm->ctx, mm->view.pool, 0,
									  sizeof(*mm->view.pool)));
	}
	cua__cancel_restore(cancel);
	return status;
}

enum cua_status cua_multimap_reclaim(struct cua_multimap *mm)
{
	struct cua__call call;

	if (!mm)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, mm->ctx);
	return cua__call_end(&call, CUA__OPS(mm->ctx, multimap)->reclaim(mm->ctx, &mm->view));
}

/* ---- arguments ---- */

/* A user's array argument and its bytes. */
struct array {
	const void *user;
	size_t bytes;
};

#define MOST_ARRAYS 4

/* The arrays of a call: the first `inputs` are read, the rest are written. */
struct arrays {
	struct array a[MOST_ARRAYS];
	int n, inputs;
	enum cua_status status; /* the first error */
};

/* Checks the next array unless there was an error. Returns its backend address. */
static void *next_array(const struct cua_multimap *mm, struct arrays *arrays, const void *p,
			size_t n, size_t size)
{
	const void *backend = NULL;

	if (!arrays->status)
		arrays->status = cua__check_array(mm->ctx, p, n, size, size, &backend);
	if (arrays->status)
		return NULL;
	arrays->a[arrays->n].user = p;
	arrays->a[arrays->n++].bytes = n * size;
	return (void *)backend;
}

static int in_multimap(const struct cua_multimap *mm, const void *p, size_t bytes)
{
	const struct cua_hashmap_view *map = &mm->view.map;
	size_t size = map->layout == CUA_HASHMAP_WORDS ? CUA__HASHMAP_WORD_BYTES
						       : CUA__HASHMAP_STATE_BUCKET;
	const char *end = (const char *)map->buckets + map->n_buckets * size;

	return cua__overlap(p, bytes, mm->base, mm->bytes) ||
	       cua__overlap(p, bytes, map->counts, (size_t)(end - (const char *)map->counts));
}

/* Returns the first error, or OVERLAP if arrays overlap that must not. */
static enum cua_status check_arrays(const struct cua_multimap *mm, const struct arrays *arrays)
{
	if (arrays->status)
		return arrays->status;
	for (int i = 0; i < arrays->n; i++) {
		const struct array *a = &arrays->a[i];

		if (in_multimap(mm, a->user, a->bytes))
			return CUA_ERROR_OVERLAP;
		for (int j = i < arrays->inputs ? arrays->inputs : i + 1; j < arrays->n; j++)
			if (cua__overlap(a->user, a->bytes, arrays->a[j].user, arrays->a[j].bytes))
				return CUA_ERROR_OVERLAP;
	}
	return CUA_OK;
}

/* ---- bulk calls ---- */

enum cua_status cua_multimap_insert_n(struct cua_multimap *mm, size_t n, const void *keys,
				      const void *values, uint8_t *results)
{
	struct cua__multimap_call c = {.n = n};
	struct arrays arrays = {.inputs = 2};
	struct cua__call call;
	enum cua_status status;

	if (!mm)
		return CUA_ERROR_NULL;
	c.keys = next_array(mm, &arrays, keys, n, mm->view.map.key_size);
	c.values = next_array(mm, &arrays, values, n, mm->view.value_size);
	if (results)
		c.results = next_array(mm, &arrays, results, n, 1);
	status = check_arrays(mm, &arrays);
	if (status || !n)
		return status;
	cua__call_begin(&call, mm->ctx);
	return cua__call_end(&call, CUA__OPS(mm->ctx, multimap)->insert(mm->ctx, &mm->view, &c));
}

/* A bulk call with a number per key as its result. */
static enum cua_status numbers(struct cua_multimap *mm, cua__multimap_fn *fn, size_t n,
			       const void *keys, uint64_t *out)
{
	struct cua__multimap_call c = {.n = n};
	struct arrays arrays = {.inputs = 1};
	struct cua__call call;
	enum cua_status status;

	c.keys = next_array(mm, &arrays, keys, n, mm->view.map.key_size);
	if (out || fn == CUA__OPS(mm->ctx, multimap)->count)
		c.out = next_array(mm, &arrays, out, n, sizeof(*out));
	status = check_arrays(mm, &arrays);
	if (status || !n)
		return status;
	cua__call_begin(&call, mm->ctx);
	return cua__call_end(&call, fn(mm->ctx, &mm->view, &c));
}

enum cua_status cua_multimap_count_n(struct cua_multimap *mm, size_t n, const void *keys,
				     uint64_t *counts_out)
{
	return mm ? numbers(mm, CUA__OPS(mm->ctx, multimap)->count, n, keys, counts_out)
		  : CUA_ERROR_NULL;
}

enum cua_status cua_multimap_erase_n(struct cua_multimap *mm, size_t n, const void *keys,
				     uint64_t *removed_out)
{
	return mm ? numbers(mm, CUA__OPS(mm->ctx, multimap)->erase, n, keys, removed_out)
		  : CUA_ERROR_NULL;
}

enum cua_status cua_multimap_retrieve_n(struct cua_multimap *mm, size_t n, const void *keys,
					uint64_t max, uint64_t *offsets_out, void *values_out,
					uint64_t *total)
{
	struct cua__multimap_call c = {.n = n, .max = max};
	struct arrays arrays = {.inputs = 1};
	struct cua__call call;
	enum cua_status status;
	void *result, *sums;

	if (!mm || !total)
		return CUA_ERROR_NULL;
	if (n > SIZE_MAX / 16)
		return CUA_ERROR_SIZE;
	c.keys = next_array(mm, &arrays, keys, n, mm->view.map.key_size);
	c.out = next_array(mm, &arrays, offsets_out, n + 1, sizeof(*offsets_out));
	c.values_out = next_array(mm, &arrays, values_out, max, mm->view.value_size);
	if (!arrays.status) {
		arrays.a[arrays.n].user = total;
		arrays.a[arrays.n++].bytes = sizeof(*total);
	}
	status = check_arrays(mm, &arrays);
	if (status)
		return status;
	cua__call_begin(&call, mm->ctx);
	status = cua__call_result(&call, total, sizeof(*total), sizeof(*total), &result);
	if (!status)
		status = cua__call_scratch(&call, CUA__MULTIMAP_RANGES * sizeof(*c.sums), &sums);
	if (!status) {
		c.total = result;
		c.sums = sums;
		status = CUA__OPS(mm->ctx, multimap)->retrieve(mm->ctx, &mm->view, &c);
	}
	return cua__call_end(&call, status);
}

/* ---- the whole multimap ---- */

static enum cua_status number(struct cua_multimap *mm, int keys, uint64_t *out)
{
	struct cua__call call;
	enum cua_status status;
	void *result;

	if (!mm || !out)
		return CUA_ERROR_NULL;
	if (in_multimap(mm, out, sizeof(*out)))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, mm->ctx);
	status = cua__call_result(&call, out, sizeof(*out), sizeof(*out), &result);
	if (!status)
		status = keys ? CUA__OPS(mm->ctx, hashmap)->size(mm->ctx, &mm->view.map, result)
			      : CUA__OPS(mm->ctx, multimap)->size(mm->ctx, &mm->view, result);
	return cua__call_end(&call, status);
}

enum cua_status cua_multimap_size(struct cua_multimap *mm, uint64_t *size)
{
	return number(mm, 0, size);
}

enum cua_status cua_multimap_keys(struct cua_multimap *mm, uint64_t *keys)
{
	return number(mm, 1, keys);
}

enum cua_status cua_multimap_retrieve(struct cua_multimap *mm, uint64_t max, void *keys_out,
				      void *values_out, uint64_t *n)
{
	struct cua__multimap_call c = {.max = max};
	struct arrays arrays = {.inputs = 0};
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;
	void *result, *count;

	if (!mm || !n)
		return CUA_ERROR_NULL;
	c.keys_out = next_array(mm, &arrays, keys_out, max, mm->view.map.key_size);
	c.values_out = next_array(mm, &arrays, values_out, max, mm->view.value_size);
	if (!arrays.status) {
		arrays.a[arrays.n].user = n;
		arrays.a[arrays.n++].bytes = sizeof(*n);
	}
	status = check_arrays(mm, &arrays);
	if (status)
		return status;
	runtime = mm->ctx->runtime;
	cua__call_begin(&call, mm->ctx);
	status = cua__call_result(&call, n, sizeof(*n), sizeof(*n), &result);
	if (!status)
		status = cua__call_scratch(&call, sizeof(*n), &count);
	if (!status)
		status = runtime->set_bytes(mm->ctx, count, 0, sizeof(*n));
	if (!status) {
		c.total = count;
		status = CUA__OPS(mm->ctx, multimap)->retrieve_all(mm->ctx, &mm->view, &c);
	}
	if (!status)
		status = runtime->copy(mm->ctx, result, count, sizeof(*n));
	return cua__call_end(&call, status);
}

enum cua_status cua_multimap_status(struct cua_multimap *mm)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;
	uint64_t rejected = 0;

	if (!mm)
		return CUA_ERROR_NULL;
	status = cua_hashmap_status(mm->map);
	if (status)
		return status;
	runtime = mm->ctx->runtime;
	cua__call_begin(&call, mm->ctx);
	status = runtime->copy(mm->ctx, &rejected, &mm->view.pool->rejected, sizeof(rejected));
	if (!status)
		status = runtime->synchronize(mm->ctx);
	status = cua__call_end(&call, status);
	return !status && rejected ? CUA_ERROR_FULL : status;
}
