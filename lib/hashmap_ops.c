/* SPDX-License-Identifier: MIT */
/* Calls on a whole hash map. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hashmap_host.h"

/* Bytes of pairs per batch of a pass. */
#define BATCH_BYTES ((size_t)4 << 20)
static uint64_t all_slots(const struct cua_hashmap_view *view)
{
	return cua__hashmap_all_slots(view, view->key_size, view->value_size);
}

/* ---- retrieval to backend memory ---- */

struct request {
	struct cua_hashmap *map;
	uint64_t max;
	void *keys_out, *values_out;
	uint64_t *n;
	int rejected, sorted;
};

/*
 * Orders the output of retrieve by key. If retrieve left pairs out, the output becomes the pairs
 * with the least keys.
 */
static enum cua_status sort(struct cua__call *call, struct cua_hashmap *map, uint64_t max,
			    void *keys, void *values, const uint64_t *n)
{
	const struct cua__hashmap_whole_ops *whole = CUA__OPS(call->ctx, hashmap_whole);
	struct cua__hashmap_sort s = {
		map->view.key_size, map->view.value_size, max, n, keys, values, NULL};
	enum cua_status status;

	if (!max)
		return CUA_OK;
	status = cua__call_scratch(
		call, whole->sort_scratch(call->ctx, s.key_size, s.value_size, max), &s.scratch);
	if (!status && max < all_slots(&map->view))
		status = whole->least(call->ctx, &map->view, &s);
	return status ? status : whole->sort(call->ctx, &s);
}

static enum cua_status give(const struct request *r)
{
	struct cua_hashmap *map = r->map;
	struct cua_context *ctx;
	struct cua__hashmap_array k, v, n;
	struct cua__call call;
	enum cua_status status;
	void *result, *count;
	uint64_t max = r->max;

	if (!map || !r->n)
		return CUA_ERROR_NULL;
	status = cua__hashmap_check(map, r->keys_out, max, map->view.key_size, &k);
	if (!status)
		status = cua__hashmap_check(map, r->values_out, max, map->view.value_size, &v);
	if (status)
		return status;
	n.user = r->n;
	n.bytes = sizeof(*r->n);
	if (cua__hashmap_overlap(&k, &v) || cua__hashmap_overlap(&k, &n) ||
	    cua__hashmap_overlap(&v, &n) || cua__hashmap_in_map(map, &k) ||
	    cua__hashmap_in_map(map, &v) || cua__hashmap_in_map(map, &n))
		return CUA_ERROR_OVERLAP;
	if (max > all_slots(&map->view) && !r->rejected)
		max = all_slots(&map->view);
	ctx = map->ctx;
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, r->n, sizeof(*r->n), sizeof(*r->n), &result);
	if (!status)
		status = cua__call_scratch(&call, sizeof(*r->n), &count);
	if (!status)
		status = ctx->runtime->set_bytes(ctx, count, 0, sizeof(*r->n));
	if (!status && r->rejected)
		status = CUA__OPS(ctx, hashmap_whole)
				 ->rejected(ctx, &map->view, max, (void *)k.backend,
					    (void *)v.backend, count);
	else if (!status)
		status = CUA__OPS(ctx, hashmap_whole)
				 ->retrieve(ctx, &map->view, max, (void *)k.backend,
					    (void *)v.backend, count);
	if (!status && r->sorted)
		status = sort(&call, map, max, (void *)k.backend, (void *)v.backend, count);
	if (!status)
		status = ctx->runtime->copy(ctx, result, count, sizeof(*r->n));
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_retrieve(struct cua_hashmap *map, enum cua_hashmap_order order,
				     uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	struct request r = {map, max, keys_out, values_out, n, 0, order == CUA_HASHMAP_SORTED};

	if (map && n && order != CUA_HASHMAP_ANY && order != CUA_HASHMAP_SORTED)
		return CUA_ERROR_VALUE;
	return give(&r);
}

enum cua_status cua_hashmap_retrieve_workspace(const struct cua_hashmap *map,
					       enum cua_hashmap_order order, uint64_t max,
					       size_t *bytes)
{
	size_t keys;

	if (!map || !bytes)
		return CUA_ERROR_NULL;
	if (order != CUA_HASHMAP_ANY && order != CUA_HASHMAP_SORTED)
		return CUA_ERROR_VALUE;
	if (cua__bytes(max, map->view.key_size, &keys) ||
	    cua__bytes(max, map->view.value_size, &keys))
		return CUA_ERROR_SIZE;
	/* the count, and its copy for a result in ordinary memory */
	*bytes = 2 * cua__scratch_size(sizeof(uint64_t));
	if (max > all_slots(&map->view))
		max = all_slots(&map->view);
	if (order == CUA_HASHMAP_SORTED && max)
		*bytes += cua__scratch_size(CUA__OPS(map->ctx, hashmap_whole)
						    ->sort_scratch(map->ctx, map->view.key_size,
								   map->view.value_size, max));
	return CUA_OK;
}

enum cua_status cua_hashmap_build_workspace(const struct cua_hashmap *map, size_t n, size_t *bytes)
{
	size_t keys;

	if (!map || !bytes)
		return CUA_ERROR_NULL;
	if (cua__bytes(n, map->view.key_size, &keys) || cua__bytes(n, map->view.value_size, &keys))
		return CUA_ERROR_SIZE;
	*bytes = cua__scratch_size(
		CUA__OPS(map->ctx, hashmap)->build_scratch(map->ctx, &map->view, n));
	return CUA_OK;
}

enum cua_status cua_hashmap_rejected(struct cua_hashmap *map, uint64_t max, void *keys_out,
				     void *values_out, uint64_t *n)
{
	struct request r = {map, max, keys_out, values_out, n, 1, 0};

	return give(&r);
}

/* ---- merge ---- */

enum cua_status cua_hashmap_merge(struct cua_hashmap *map, const struct cua_hashmap *from,
				  enum cua_hashmap_merge_rule how)
{
	struct cua__call call;
	int op = (int)how;

	if (!map || !from)
		return CUA_ERROR_NULL;
	if (map->ctx != from->ctx)
		return CUA_ERROR_CONTEXT;
	if (how == CUA_HASHMAP_KEEP)
		op = CUA__HASHMAP_INSERT;
	else if (how == CUA_HASHMAP_REPLACE)
		op = CUA__HASHMAP_ASSIGN;
	else if (op < CUA_UPDATE_ADD || op > CUA_UPDATE_XOR)
		return CUA_ERROR_VALUE;
	if (map->view.key_size != from->view.key_size ||
	    map->view.value_size != from->view.value_size ||
	    (!map->view.value_size && how != CUA_HASHMAP_KEEP))
		return CUA_ERROR_TYPE;
	if (map->options.own_hash || from->options.own_hash)
		return CUA_ERROR_UNSUPPORTED;
	if (map == from)
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, map->ctx);
	return cua__call_end(
		&call,
		CUA__OPS(map->ctx, hashmap_whole)->move(map->ctx, &from->view, &map->view, op));
}

/* ---- statistics ---- */

CUA_STATIC_ASSERT(CUA_HASHMAP_PROBES == CUA__HASHMAP_FAR + 1,
		  "the last one counts all longer ones");

enum cua_status cua_hashmap_get_statistics(struct cua_hashmap *map,
					   struct cua_hashmap_statistics *statistics)
{
	struct cua_hashmap_statistics out = {.struct_size = sizeof(out)};
	struct cua__hashmap_front front;
	struct cua__hashmap_tally tally;
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;
	void *homes, *backend;
	size_t bytes;

	if (!map || !statistics)
		return CUA_ERROR_NULL;
	if (!cua__known_size(statistics->struct_size, sizeof(out)))
		return CUA_ERROR_VALUE;
	if (map->options.own_hash)
		return CUA_ERROR_UNSUPPORTED;
	if (cua__bytes(map->view.n_buckets, sizeof(uint32_t), &bytes))
		return CUA_ERROR_SIZE;
	runtime = map->ctx->runtime;
	cua__call_begin(&call, map->ctx);
	status = runtime->may_wait(map->ctx);
	if (!status)
		status = cua__call_scratch(&call, bytes, &homes);
	if (!status)
		status = cua__call_scratch(&call, sizeof(tally), &backend);
	if (!status)
		status = runtime->set_bytes(map->ctx, homes, 0, bytes);
	if (!status)
		status = runtime->set_bytes(map->ctx, backend, 0, sizeof(tally));
	if (!status)
		status = CUA__OPS(map->ctx, hashmap_whole)
				 ->tally(map->ctx, &map->view, homes, backend);
	if (!status)
		status = runtime->copy(map->ctx, &tally, backend, sizeof(tally));
	if (!status)
		status = cua__hashmap_read_front(map, &front);
	status = cua__call_end(&call, status);
	if (status)
		return status;
	out.struct_size = statistics->struct_size;
	out.slots = cua__hashmap_slots(&map->view);
	memcpy(out.probes, tally.probes, sizeof(out.probes));
	for (uint32_t i = 0; i < CUA_HASHMAP_PROBES; i++)
		out.keys += out.probes[i];
	out.erased = tally.erased;
	out.free = out.slots - front.in_slots - out.erased;
	out.worst_bucket = tally.worst;
	out.load = (double)out.keys / (double)out.slots;
	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		out.rejected += front.counts[i].rejected;
	memcpy(statistics, &out, statistics->struct_size);
	return CUA_OK;
}

/* ---- retrieval to the host ---- */

enum cua_status cua__hashmap_pass_begin(struct cua__hashmap_pass *pass, struct cua_hashmap *map)
{
	const uint32_t ks = map->view.key_size, vs = map->view.value_size;

	int cancel = cua__cancel_disable();

	pass->map = map;
	pass->place = pass->n = 0;
	pass->cancel = cancel;
	pass->room = BATCH_BYTES / (ks + vs);
	if (pass->room > all_slots(&map->view))
		pass->room = all_slots(&map->view);
	pass->keys = malloc(pass->room * (ks + vs));
	pass->values = pass->keys ? pass->keys + pass->room * ks : NULL;
	if (!pass->keys)
		cua__cancel_restore(cancel);
	return pass->keys ? CUA_OK : CUA_ERROR_NO_MEMORY;
}

void cua__hashmap_pass_end(struct cua__hashmap_pass *pass)
{
	if (!pass->keys)
		return;
	free(pass->keys);
	pass->keys = NULL;
	cua__cancel_restore(pass->cancel);
}

enum cua_status cua__hashmap_pass_next(struct cua__hashmap_pass *pass, int *more)
{
	struct cua_hashmap *map = pass->map;
	const struct cua__runtime *runtime = map->ctx->runtime;
	const uint32_t ks = map->view.key_size, vs = map->view.value_size;
	uint64_t all = all_slots(&map->view), room = pass->room;
	void *keys, *values, *count;
	struct cua__call call;
	enum cua_status status;

	*more = pass->place < all;
	pass->n = 0;
	if (!*more)
		return CUA_OK;
	if (room > all - pass->place)
		room = all - pass->place;
	cua__call_begin(&call, map->ctx);
	status = runtime->may_wait(map->ctx);
	if (!status)
		status = cua__call_scratch(&call, room * ks, &keys);
	if (!status)
		status = cua__call_scratch(&call, room * vs, &values);
	if (!status)
		status = cua__call_scratch(&call, sizeof(pass->n), &count);
	if (!status)
		status = runtime->set_bytes(map->ctx, count, 0, sizeof(pass->n));
	if (!status)
		status = CUA__OPS(map->ctx, hashmap_whole)
				 ->slice(map->ctx, &map->view, pass->place, room, keys, values,
					 count);
	if (!status)
		status = runtime->copy(map->ctx, &pass->n, count, sizeof(pass->n));
	if (!status)
		status = runtime->synchronize(map->ctx);
	if (!status)
		status = runtime->copy(map->ctx, pass->keys, keys, pass->n * ks);
	if (!status && vs)
		status = runtime->copy(map->ctx, pass->values, values, pass->n * vs);
	if (!status)
		status = runtime->synchronize(map->ctx);
	pass->place += room;
	return cua__call_end(&call, status);
}

enum cua_status cua_hashmap_copy_to_host(struct cua_hashmap *map, uint64_t max, void *keys,
					 void *values, uint64_t *n)
{
	struct cua__hashmap_pass pass;
	struct cua__hashmap_array k = {keys, NULL, 0}, v = {values, NULL, 0},
				  count = {n, NULL, sizeof(*n)};
	enum cua_status status;
	uint32_t ks, vs;
	uint64_t all = 0;
	int more = 1;

	if (!map || !n)
		return CUA_ERROR_NULL;
	ks = map->view.key_size;
	vs = map->view.value_size;
	if (max && (!keys || (vs && !values)))
		return CUA_ERROR_NULL;
	if (cua__bytes(max, ks, &k.bytes) || cua__bytes(max, vs, &v.bytes))
		return CUA_ERROR_SIZE;
	/* never more pairs than slots */
	if (max > all_slots(&map->view)) {
		k.bytes = all_slots(&map->view) * ks;
		v.bytes = all_slots(&map->view) * vs;
	}
	if (cua__hashmap_overlap(&k, &v) || cua__hashmap_overlap(&k, &count) ||
	    cua__hashmap_overlap(&v, &count) || cua__hashmap_in_map(map, &k) ||
	    cua__hashmap_in_map(map, &v) || cua__hashmap_in_map(map, &count))
		return CUA_ERROR_OVERLAP;
	status = cua__hashmap_pass_begin(&pass, map);
	while (!status && more) {
		uint64_t fit;

		status = cua__hashmap_pass_next(&pass, &more);
		if (status)
			break;
		fit = all >= max ? 0 : pass.n < max - all ? pass.n : max - all;
		if (fit)
			memcpy((char *)keys + all * ks, pass.keys, fit * ks);
		if (fit && vs)
			memcpy((char *)values + all * vs, pass.values, fit * vs);
		all += pass.n;
	}
	cua__hashmap_pass_end(&pass);
	if (!status)
		*n = all;
	return status;
}

enum cua_status cua_hashmap_for_each(struct cua_hashmap *map,
				     int (*fn)(void *arg, const void *key, const void *value),
				     void *arg)
{
	struct cua__hashmap_pass pass;
	enum cua_status status;
	uint32_t ks, vs;
	int more = 1;

	if (!map || !fn)
		return CUA_ERROR_NULL;
	ks = map->view.key_size;
	vs = map->view.value_size;
	status = cua__hashmap_pass_begin(&pass, map);
	while (!status && more) {
		status = cua__hashmap_pass_next(&pass, &more);
		for (uint64_t i = 0; !status && more && i < pass.n; i++)
			if (fn(arg, pass.keys + i * ks, vs ? pass.values + i * vs : NULL))
				more = 0;
	}
	cua__hashmap_pass_end(&pass);
	return status;
}

enum cua_status cua__hashmap_insert_from_host(struct cua_hashmap *map, uint64_t n, const void *keys,
					      const void *values)
{
	const struct cua__runtime *runtime = map->ctx->runtime;
	const uint32_t ks = map->view.key_size, vs = map->view.value_size;
	struct cua__hashmap_call insert = {.op = CUA__HASHMAP_INSERT, .n = n};
	struct cua__call call;
	enum cua_status status;
	void *k, *v = NULL;

	cua__call_begin(&call, map->ctx);
	status = cua__call_scratch(&call, n * ks, &k);
	if (!status)
		status = cua__call_scratch(&call, n * vs, &v);
	if (!status)
		status = runtime->copy(map->ctx, k, keys, n * ks);
	if (!status && vs)
		status = runtime->copy(map->ctx, v, values, n * vs);
	insert.keys = k;
	insert.values = vs ? v : NULL;
	if (!status)
		status = CUA__OPS(map->ctx, hashmap)->write(map->ctx, &map->view, &insert);
	if (!status)
		status = runtime->synchronize(map->ctx);
	return cua__call_end(&call, status);
}
