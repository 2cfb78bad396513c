/* SPDX-License-Identifier: MIT */
/* What a backend does for the hash map. */
#ifndef CUATOMIC_LIB_HASHMAP_H
#define CUATOMIC_LIB_HASHMAP_H

#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cua__hashmap_ops {
	/* op: CUA__HASHMAP_INSERT, CUA__HASHMAP_ASSIGN or an enum cua_update; results may be NULL */
	enum cua_status (*write)(struct cua_context *ctx, const struct cua_hashmap_view *view, int op,
				 size_t n, const void *keys, const void *values, uint8_t *results);
	/* values_out NULL: only whether the keys are there; found may be NULL if values_out is not */
	enum cua_status (*find)(struct cua_context *ctx, const struct cua_hashmap_view *view, size_t n,
				const void *keys, void *values_out, uint8_t *found);
	enum cua_status (*erase)(struct cua_context *ctx, const struct cua_hashmap_view *view, size_t n,
				 const void *keys, uint8_t *found);
	enum cua_status (*size)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t *size);
	/* *n is 0 before */
	enum cua_status (*read)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t max, void *keys_out, void *values_out, uint64_t *n);
};

/* An element of an array of 32-bit or 64-bit numbers. */
CUA_FORCE uint64_t cua__hashmap_get(const void *array, uint32_t size, uint64_t i)
{
	return size == 8 ? ((const uint64_t *)array)[i] : ((const uint32_t *)array)[i];
}

CUA_FORCE void cua__hashmap_set(void *array, uint32_t size, uint64_t i, uint64_t v)
{
	if (size == 8)
		((uint64_t *)array)[i] = v;
	else
		((uint32_t *)array)[i] = (uint32_t)v;
}

/* The pair in a slot. Returns 0 where the slot holds none. No writer may run. */
CUA_FORCE int cua__hashmap_pair(const struct cua_hashmap_view *view, uint64_t bucket, uint32_t slot,
				uint64_t *key, uint64_t *value)
{
	struct cua__hashmap_place place;
	char *at;

	place.bucket = bucket;
	place.slot = slot;
	at = cua__hashmap_slot(view, place);
	if ((cua_port_load_b32(at, CUA_ACQUIRE, CUA__HASHMAP_AT) & CUA__HASHMAP_PHASE) !=
	    CUA__HASHMAP_USED)
		return 0;
	*key = cua__hashmap_load(cua__hashmap_key(view, at), view->key_size, CUA_RELAXED);
	*value = cua__hashmap_load(cua__hashmap_value(view, at), view->value_size, CUA_RELAXED);
	return 1;
}

/* The number of keys, by the counts. */
CUA_FORCE uint64_t cua__hashmap_count(const struct cua_hashmap_view *view)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		n += cua_port_load_b64(&view->counts[i].inserted, CUA_RELAXED, CUA__HASHMAP_AT) -
		     cua_port_load_b64(&view->counts[i].erased, CUA_RELAXED, CUA__HASHMAP_AT);
	return n;
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_LIB_HASHMAP_H */
