/* SPDX-License-Identifier: MIT */
/* The hash map: options, life and bulk calls. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hashmap_host.h"

/* ---- life ---- */

static int size_of(enum cua_type type, int is_value, uint32_t *size)
{
	*size = type == CUA_U32 ? 4 : type == CUA_U64 ? 8 : type == CUA_U128 ? 16 : 0;
	return *size || (is_value && type == CUA_NONE);
}

enum cua_status cua_hashmap_create(struct cua_context *ctx,
				   const struct cua_hashmap_options *options,
				   enum cua_type key_type, enum cua_type value_type,
				   uint64_t capacity, struct cua_hashmap **result)
{
	struct cua_hashmap_options chosen;
	struct cua_u128 secret;
	uint32_t key_size, value_size;
	struct cua_hashmap *map;
	struct cua__call call;
	enum cua_status status;

	if (!ctx || !result)
		return CUA_ERROR_NULL;
	if (!size_of(key_type, 0, &key_size) || !size_of(value_type, 1, &value_size))
		return CUA_ERROR_TYPE;
	if (!capacity || cua__options(options, &chosen, sizeof(chosen)))
		return CUA_ERROR_VALUE;
	if (chosen.grow_percent > 95 || chosen.own_hash > 1 || chosen.portable > 1 ||
	    chosen.hash > CUA_HASHMAP_HASH_KEYED || chosen.no_erase > 1 ||
	    (chosen.own_hash && chosen.hash) ||
	    (chosen.max_probes && (chosen.max_probes < CUA_HASHMAP_LEAST_MAX_PROBES ||
				   chosen.max_probes > CUA_HASHMAP_MOST_MAX_PROBES)))
		return CUA_ERROR_VALUE;
	map = calloc(1, sizeof(*map));
	if (!map)
		return CUA_ERROR_NO_MEMORY;
	map->ctx = ctx;
	map->options = chosen;
	secret.lo = chosen.seed;
	secret.hi = chosen.seed_high;
	/* the seeded hash ignores seed_high */
	if (!secret.lo && (!secret.hi || chosen.hash != CUA_HASHMAP_HASH_KEYED))
		secret = cua__random_seed();
	map->view.seed = secret.lo;
	map->view.seed_high = chosen.hash == CUA_HASHMAP_HASH_KEYED ? secret.hi : 0;
	map->view.hash = chosen.hash;
	map->view.max_probes = chosen.max_probes;
	map->view.no_erase = chosen.no_erase;
	map->view.key_size = key_size;
	map->view.value_size = value_size;
	status = cua__hashmap_lay_out(map, capacity);
	if (!status) {
		cua__call_begin(&call, ctx);
		status = cua__call_end(&call, cua__hashmap_allocate(map));
	}
	if (status) {
		free(map);
		return status;
	}
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
	runtime = map->ctx->runtime;
	cua__call_begin(&call, map->ctx);
	status = runtime->may_wait(map->ctx);
	if (!status)
		status = runtime->synchronize(map->ctx);
	/* during a capture nothing is freed; after any other error the map is gone */
	if (status != CUA_ERROR_CAPTURE) {
		enum cua_status released = runtime->release(map->ctx, map->base);

		status = cua__call_end(&call, status ? status : released);
		free(map);
		return status;
	}
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_get_view(const struct cua_hashmap *map, struct cua_hashmap_view *view)
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
	*capacity = cua__hashmap_slots(&map->view);
	return CUA_OK;
}

enum cua_status cua_hashmap_clear(struct cua_hashmap *map)
{
	struct cua__call call;

	if (!map)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, map->ctx);
	return cua__call_end(&call, cua__hashmap_empty(map));
}

/* ---- bulk calls ---- */

/* The use of a bulk call's arrays. */
enum {
	TAKES_VALUES = 1, /* reads values */
	GIVES_VALUES = 2, /* values_out is required; otherwise it is ignored */
	NEEDS_FLAGS = 4,  /* flags are required; otherwise they are optional */
	OF_VALUES = 8,    /* not for sets */
	CLEARS = 16,      /* clears the map first */
	ADDS = 32         /* adds keys, so the map may grow */
};

static enum cua_status bulk(struct cua_hashmap *map, cua__hashmap_bulk_fn *fn, int what,
			    struct cua__hashmap_call *c)
{
	struct cua__hashmap_array k, v, o, f;
	struct cua__call call;
	enum cua_status status;
	uint32_t vs;
	int grows;

	if (!map)
		return CUA_ERROR_NULL;
	if (map->options.own_hash)
		return CUA_ERROR_UNSUPPORTED;
	vs = map->view.value_size;
	if ((what & OF_VALUES) && !vs)
		return CUA_ERROR_TYPE;
	status = cua__hashmap_check(map, c->keys, c->n, map->view.key_size, &k);
	if (!status)
		status = cua__hashmap_check(map, c->values, what & TAKES_VALUES ? c->n : 0, vs, &v);
	if (!status)
		status = cua__hashmap_check(map, c->values_out, what & GIVES_VALUES ? c->n : 0, vs,
					    &o);
	if (!status)
		status = cua__hashmap_check(map, c->flags,
					    c->flags || (what & NEEDS_FLAGS) ? c->n : 0, 1, &f);
	if (status)
		return status;
	/* values and values_out may be the same array */
	if (cua__hashmap_overlap(&k, &o) || cua__hashmap_overlap(&k, &f) ||
	    cua__hashmap_overlap(&v, &f) || cua__hashmap_overlap(&o, &f) ||
	    (o.user != v.user && cua__hashmap_overlap(&o, &v)) || cua__hashmap_in_map(map, &k) ||
	    cua__hashmap_in_map(map, &v) || cua__hashmap_in_map(map, &o) ||
	    cua__hashmap_in_map(map, &f))
		return CUA_ERROR_OVERLAP;
	c->keys = k.backend;
	c->values = v.backend;
	c->values_out = (void *)o.backend;
	c->flags = (void *)f.backend;
	grows = map->options.grow_percent && (what & ADDS) && c->n;
	cua__call_begin(&call, map->ctx);
	if (grows)
		status = map->ctx->runtime->may_wait(map->ctx);
	/* growth reads the counts, so clear first */
	if (!status && (what & CLEARS) && (grows || !c->n))
		status = cua__hashmap_empty(map);
	if (!status && grows)
		status = cua__hashmap_write_growing(map, what & CLEARS, c);
	else if (!status && c->n)
		status =
			what & CLEARS ? cua__hashmap_build(map, 0, c) : fn(map->ctx, &map->view, c);
	return cua__call_end(&call, status);
}

#define BULK(map, name, what, ...)                                                                 \
	bulk(map, (map) ? CUA__OPS((map)->ctx, hashmap)->name : NULL, what,                        \
	     &(struct cua__hashmap_call){__VA_ARGS__})

enum cua_status cua_hashmap_insert_n(struct cua_hashmap *map, size_t n, const void *keys,
				     const void *values, uint8_t *results)
{
	return BULK(map, write, ADDS | TAKES_VALUES, .op = CUA__HASHMAP_INSERT, .n = n,
		    .keys = keys, .values = values, .flags = results);
}

enum cua_status cua_hashmap_insert_or_get_n(struct cua_hashmap *map, size_t n, const void *keys,
					    const void *values, void *values_out, uint8_t *results)
{
	return BULK(map, write, ADDS | TAKES_VALUES | GIVES_VALUES | OF_VALUES,
		    .op = CUA__HASHMAP_INSERT, .n = n, .keys = keys, .values = values,
		    .values_out = values_out, .flags = results);
}

enum cua_status cua_hashmap_assign_n(struct cua_hashmap *map, size_t n, const void *keys,
				     const void *values, uint8_t *results)
{
	return BULK(map, write, ADDS | TAKES_VALUES | OF_VALUES, .op = CUA__HASHMAP_ASSIGN, .n = n,
		    .keys = keys, .values = values, .flags = results);
}

enum cua_status cua_hashmap_exchange_n(struct cua_hashmap *map, size_t n, const void *keys,
				       const void *values, void *values_out, uint8_t *results)
{
	return BULK(map, write, ADDS | TAKES_VALUES | GIVES_VALUES | OF_VALUES,
		    .op = CUA__HASHMAP_ASSIGN, .n = n, .keys = keys, .values = values,
		    .values_out = values_out, .flags = results);
}

enum cua_status cua_hashmap_compare_exchange_n(struct cua_hashmap *map, size_t n, const void *keys,
					       void *expected, const void *desired,
					       uint8_t *results)
{
	return BULK(map, compare_exchange, TAKES_VALUES | GIVES_VALUES | OF_VALUES, .n = n,
		    .keys = keys, .values = desired, .values_out = expected, .flags = results);
}

enum cua_status cua_hashmap_update_n(struct cua_hashmap *map, enum cua_update op, size_t n,
				     const void *keys, const void *values, uint8_t *results)
{
	if (!map)
		return CUA_ERROR_NULL;
	if ((int)op < CUA_UPDATE_ADD || op > CUA_UPDATE_XOR)
		return CUA_ERROR_VALUE;
	return BULK(map, write, ADDS | TAKES_VALUES | OF_VALUES, .op = (int)op, .n = n,
		    .keys = keys, .values = values, .flags = results);
}

/* Reads a value of the map's value type from host or backend memory. */
static enum cua_status read_operand(struct cua_hashmap *map, const void *value,
				    struct cua_u128 *operand)
{
	const uint32_t vs = map->view.value_size;
	enum cua_status status;
	uint32_t narrow = 0;

	operand->lo = operand->hi = 0;
	status = cua__read_value(map->ctx, value, vs, vs == 4 ? (void *)&narrow : operand);
	if (vs == 4)
		operand->lo = narrow;
	return status;
}

enum cua_status cua_hashmap_update_value_n(struct cua_hashmap *map, enum cua_update op, size_t n,
					   const void *keys, const void *value, uint8_t *results)
{
	struct cua_u128 operand;
	enum cua_status status;

	if (!map)
		return CUA_ERROR_NULL;
	if ((int)op < CUA_UPDATE_ADD || op > CUA_UPDATE_XOR)
		return CUA_ERROR_VALUE;
	if (map->options.own_hash)
		return CUA_ERROR_UNSUPPORTED;
	if (!map->view.value_size)
		return CUA_ERROR_TYPE;
	status = read_operand(map, value, &operand);
	return status ? status
		      : BULK(map, write, ADDS | OF_VALUES, .op = (int)op, .n = n, .keys = keys,
			     .value = operand, .flags = results);
}

enum cua_status cua_hashmap_build_n(struct cua_hashmap *map, size_t n, const void *keys,
				    const void *values, uint8_t *results)
{
	return BULK(map, write, ADDS | TAKES_VALUES | CLEARS, .op = CUA__HASHMAP_INSERT, .n = n,
		    .keys = keys, .values = values, .flags = results);
}

enum cua_status cua_hashmap_find_n(struct cua_hashmap *map, size_t n, const void *keys,
				   void *values_out, uint8_t *found)
{
	return BULK(map, find, GIVES_VALUES | OF_VALUES, .n = n, .keys = keys,
		    .values_out = values_out, .flags = found);
}

enum cua_status cua_hashmap_contains_n(struct cua_hashmap *map, size_t n, const void *keys,
				       uint8_t *found)
{
	return BULK(map, find, NEEDS_FLAGS, .n = n, .keys = keys, .flags = found);
}

enum cua_status cua_hashmap_erase_n(struct cua_hashmap *map, size_t n, const void *keys,
				    uint8_t *found)
{
	if (map && map->options.no_erase)
		return CUA_ERROR_UNSUPPORTED;
	return BULK(map, erase, 0, .n = n, .keys = keys, .flags = found);
}

/* ---- the whole map ---- */

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
		status = CUA__OPS(map->ctx, hashmap)->size(map->ctx, &map->view, result);
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
	runtime = map->ctx->runtime;
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
