/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hashmap.h"

struct cua_hashmap {
	struct cua_context *ctx;
	struct cua_hashmap_view view;
	/* one allocation, zeros at first: counts, then buckets */
	char *base;
	size_t bytes;
};

#define COUNTS_BYTES (CUA_HASHMAP_STRIPES * sizeof(struct cua_hashmap_counts))

/* ---- life ---- */

static uint32_t size_of(enum cua_type type)
{
	return type == CUA_U32 ? 4 : type == CUA_U64 ? 8 : 0;
}

enum cua_status cua_hashmap_create(struct cua_context *ctx, const struct cua_hashmap_options *options,
				   enum cua_type key_type, enum cua_type value_type, uint64_t capacity,
				   struct cua_hashmap **result)
{
	struct cua_hashmap_options chosen = {.struct_size = sizeof(chosen)};
	const struct cua__runtime *runtime;
	struct cua_hashmap *map;
	struct cua__call call;
	enum cua_status status;
	uint64_t slots;
	size_t bytes;
	void *base = NULL;

	if (!ctx || !result)
		return CUA_ERROR_NULL;
	if (!size_of(key_type) || !size_of(value_type))
		return CUA_ERROR_TYPE;
	if (!capacity || (options && (options->struct_size < sizeof(size_t) ||
				      options->struct_size > sizeof(chosen))))
		return CUA_ERROR_VALUE;
	if (options)
		memcpy(&chosen, options, options->struct_size);
	map = calloc(1, sizeof(*map));
	if (!map)
		return CUA_ERROR_NO_MEMORY;
	map->ctx = ctx;
	map->view.seed = chosen.seed;
	map->view.key_size = size_of(key_type);
	map->view.value_size = size_of(value_type);
	map->view.layout = CUA_HASHMAP_LAYOUT;
	slots = cua__hashmap_slots(&map->view);
	map->view.n_buckets = capacity / slots + (capacity % slots != 0);
	if (cua__bytes(map->view.n_buckets, 2 * CUA_HASHMAP_BUCKET_BYTES, &bytes)) {
		free(map);
		return CUA_ERROR_SIZE;
	}
	map->bytes = COUNTS_BYTES + bytes / 2;

	runtime = ctx->backend->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->allocate(ctx, map->bytes, &base);
	if (!status) {
		status = runtime->set_bytes(ctx, base, 0, map->bytes);
		if (!status)
			status = runtime->synchronize(ctx);
		if (status)
			runtime->release(ctx, base);
	}
	status = cua__call_end(&call, status);
	if (status) {
		free(map);
		return status;
	}
	map->base = base;
	map->view.counts = base;
	map->view.buckets = map->base + COUNTS_BYTES;
	*result = map;
	return CUA_OK;
}

enum cua_status cua_hashmap_destroy(struct cua_hashmap *map)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;

	if (!map)
		return CUA_OK;
	runtime = map->ctx->backend->runtime;
	cua__call_begin(&call, map->ctx);
	status = runtime->may_wait(map->ctx);
	if (!status)
		status = runtime->synchronize(map->ctx);
	/* in a capture the map stays as it is; after any other error it is gone */
	if (status != CUA_ERROR_CAPTURE) {
		enum cua_status released = runtime->release(map->ctx, map->base);

		status = cua__call_end(&call, status ? status : released);
		free(map);
		return status;
	}
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_view(const struct cua_hashmap *map, struct cua_hashmap_view *view)
{
	if (!map || !view)
		return CUA_ERROR_NULL;
	*view = map->view;
	return CUA_OK;
}

enum cua_status cua_hashmap_capacity(const struct cua_hashmap *map, uint64_t *capacity)
{
	if (!map || !capacity)
		return CUA_ERROR_NULL;
	*capacity = map->view.n_buckets * cua__hashmap_slots(&map->view);
	return CUA_OK;
}

enum cua_status cua_hashmap_clear(struct cua_hashmap *map)
{
	struct cua__call call;

	if (!map)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, map->ctx);
	return cua__call_end(&call, map->ctx->backend->runtime->set_bytes(map->ctx, map->base, 0,
									  map->bytes));
}

/* ---- many at once ---- */

/* An array argument as the user gave it, with its bytes, and as the backend addresses it. */
struct array {
	const void *user;
	const void *backend;
	size_t bytes;
};

static enum cua_status check(const struct cua_hashmap *map, const void *p, size_t n, size_t size,
			     struct array *a)
{
	enum cua_status status = cua__check_array(map->ctx, p, n, size, size, &a->backend);

	a->user = p;
	a->bytes = status ? 0 : n * size;
	return status;
}

static int meet(const struct array *a, const struct array *b)
{
	return cua__overlap(a->user, a->bytes, b->user, b->bytes);
}

static int in_map(const struct cua_hashmap *map, const struct array *a)
{
	return cua__overlap(a->user, a->bytes, map->base, map->bytes);
}

static enum cua_status write_n(struct cua_hashmap *map, int op, size_t n, const void *keys,
			       const void *values, uint8_t *results)
{
	struct array k, v, r;
	struct cua__call call;
	enum cua_status status;

	if (!map)
		return CUA_ERROR_NULL;
	status = check(map, keys, n, map->view.key_size, &k);
	if (!status)
		status = check(map, values, n, map->view.value_size, &v);
	if (!status)
		status = check(map, results, results ? n : 0, 1, &r);
	if (status)
		return status;
	if (meet(&r, &k) || meet(&r, &v) || in_map(map, &k) || in_map(map, &v) || in_map(map, &r))
		return CUA_ERROR_OVERLAP;
	if (!n)
		return CUA_OK;
	cua__call_begin(&call, map->ctx);
	status = map->ctx->backend->hashmap->write(map->ctx, &map->view, op, n, k.backend, v.backend,
						   (void *)r.backend);
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_insert_n(struct cua_hashmap *map, size_t n, const void *keys,
				     const void *values, uint8_t *results)
{
	return write_n(map, CUA__HASHMAP_INSERT, n, keys, values, results);
}

enum cua_status cua_hashmap_assign_n(struct cua_hashmap *map, size_t n, const void *keys,
				     const void *values, uint8_t *results)
{
	return write_n(map, CUA__HASHMAP_ASSIGN, n, keys, values, results);
}

enum cua_status cua_hashmap_update_n(struct cua_hashmap *map, enum cua_update op, size_t n,
				     const void *keys, const void *values, uint8_t *results)
{
	if (!map)
		return CUA_ERROR_NULL;
	if (op != CUA_UPDATE_ADD && op != CUA_UPDATE_MIN && op != CUA_UPDATE_MAX)
		return CUA_ERROR_VALUE;
	return write_n(map, (int)op, n, keys, values, results);
}

/* values_out may be NULL where with_values is 0; found, where it is not. */
static enum cua_status find_n(struct cua_hashmap *map, int with_values, size_t n, const void *keys,
			      void *values_out, uint8_t *found)
{
	struct array k, v, f;
	struct cua__call call;
	enum cua_status status;

	if (!map)
		return CUA_ERROR_NULL;
	status = check(map, keys, n, map->view.key_size, &k);
	if (!status)
		status = check(map, values_out, with_values ? n : 0, map->view.value_size, &v);
	if (!status)
		status = check(map, found, found || !with_values ? n : 0, 1, &f);
	if (status)
		return status;
	if (meet(&k, &v) || meet(&k, &f) || meet(&v, &f) || in_map(map, &v) || in_map(map, &f))
		return CUA_ERROR_OVERLAP;
	if (!n)
		return CUA_OK;
	cua__call_begin(&call, map->ctx);
	status = map->ctx->backend->hashmap->find(map->ctx, &map->view, n, k.backend, (void *)v.backend,
						  (void *)f.backend);
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_find_n(struct cua_hashmap *map, size_t n, const void *keys, void *values_out,
				   uint8_t *found)
{
	return find_n(map, 1, n, keys, values_out, found);
}

enum cua_status cua_hashmap_contains_n(struct cua_hashmap *map, size_t n, const void *keys,
				       uint8_t *found)
{
	return find_n(map, 0, n, keys, NULL, found);
}

enum cua_status cua_hashmap_erase_n(struct cua_hashmap *map, size_t n, const void *keys, uint8_t *found)
{
	struct array k, f;
	struct cua__call call;
	enum cua_status status;

	if (!map)
		return CUA_ERROR_NULL;
	status = check(map, keys, n, map->view.key_size, &k);
	if (!status)
		status = check(map, found, found ? n : 0, 1, &f);
	if (status)
		return status;
	if (meet(&k, &f) || in_map(map, &k) || in_map(map, &f))
		return CUA_ERROR_OVERLAP;
	if (!n)
		return CUA_OK;
	cua__call_begin(&call, map->ctx);
	status = map->ctx->backend->hashmap->erase(map->ctx, &map->view, n, k.backend,
						   (void *)f.backend);
	return cua__call_end(&call, status);
}

/* ---- the state of the whole ---- */

enum cua_status cua_hashmap_size(struct cua_hashmap *map, uint64_t *size)
{
	struct cua__call call;
	enum cua_status status;
	void *result;

	if (!map || !size)
		return CUA_ERROR_NULL;
	if (cua__overlap(size, sizeof(*size), map->base, map->bytes))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, map->ctx);
	status = cua__call_result(&call, size, sizeof(*size), sizeof(*size), &result);
	if (!status)
		status = map->ctx->backend->hashmap->size(map->ctx, &map->view, result);
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_read(struct cua_hashmap *map, uint64_t max, void *keys_out, void *values_out,
				 uint64_t *n)
{
	struct array k, v, r;
	struct cua__call call;
	enum cua_status status;
	const struct cua__runtime *runtime;
	void *result, *count;

	if (!map || !n)
		return CUA_ERROR_NULL;
	status = check(map, keys_out, max, map->view.key_size, &k);
	if (!status)
		status = check(map, values_out, max, map->view.value_size, &v);
	if (status)
		return status;
	r.user = n;
	r.bytes = sizeof(*n);
	if (meet(&k, &v) || meet(&k, &r) || meet(&v, &r) || in_map(map, &k) || in_map(map, &v) ||
	    in_map(map, &r))
		return CUA_ERROR_OVERLAP;
	runtime = map->ctx->backend->runtime;
	cua__call_begin(&call, map->ctx);
	status = cua__call_result(&call, n, sizeof(*n), sizeof(*n), &result);
	if (!status)
		status = cua__call_scratch(&call, sizeof(*n), &count);
	if (!status)
		status = runtime->set_bytes(map->ctx, count, 0, sizeof(*n));
	if (!status)
		status = map->ctx->backend->hashmap->read(map->ctx, &map->view, max, (void *)k.backend,
							  (void *)v.backend, count);
	if (!status)
		status = runtime->copy(map->ctx, result, count, sizeof(*n));
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_status(struct cua_hashmap *map)
{
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;

	if (!map)
		return CUA_ERROR_NULL;
	runtime = map->ctx->backend->runtime;
	cua__call_begin(&call, map->ctx);
	status = runtime->may_wait(map->ctx);
	if (!status)
		status = runtime->copy(map->ctx, counts, map->view.counts, sizeof(counts));
	if (!status)
		status = runtime->synchronize(map->ctx);
	status = cua__call_end(&call, status);
	for (unsigned i = 0; !status && i < CUA_HASHMAP_STRIPES; i++)
		if (counts[i].rejected)
			status = CUA_ERROR_FULL;
	return status;
}
