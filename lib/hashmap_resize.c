/* SPDX-License-Identifier: MIT */
/* Resize and growth of a hash map. */
#include "config.h"

#include "hashmap_host.h"

/*
 * A growing map reserves room for at least this many elements per batch, so that a batch justifies
 * a launch.
 */
#define LEAST_BATCH ((uint64_t)1 << 16)

/* ---- resize ---- */

enum cua_status cua__hashmap_read_front(struct cua_hashmap *map, struct cua__hashmap_front *f)
{
	const struct cua__runtime *runtime = map->ctx->runtime;
	enum cua_status status = runtime->may_wait(map->ctx);

	if (!status)
		status = runtime->copy(map->ctx, f, map->view.counts,
				       offsetof(struct cua__hashmap_front, in_slots));
	f->kept = 0;
	if (!status && map->view.rejects)
		status = runtime->copy(map->ctx, &f->kept, &map->view.rejects->count,
				       sizeof(f->kept));
	if (!status)
		status = runtime->synchronize(map->ctx);
	if (status)
		return status;
	if (f->kept > map->options.rejects)
		f->kept = map->options.rejects;
	f->in_slots = 0;
	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		f->in_slots += f->counts[i].inserted - f->counts[i].erased;
	f->keys = f->in_slots + (f->reserved_slots[0].lo != 0) + (f->reserved_slots[1].lo != 0);
	return CUA_OK;
}

/*
 * Moves the pairs to new memory of this capacity, within a call. After an error the map is
 * unchanged.
 */
static enum cua_status resize(struct cua_hashmap *map, uint64_t capacity)
{
	const struct cua__runtime *runtime = map->ctx->runtime;
	struct cua_hashmap fresh = *map;
	enum cua_status status;
	struct cua__hashmap_front front, moved;

	status = cua__hashmap_read_front(map, &front);
	if (status)
		return status;
	if (capacity < front.keys)
		return CUA_ERROR_SIZE;
	status = cua__hashmap_lay_out(&fresh, capacity);
	if (!status)
		status = cua__hashmap_allocate(&fresh);
	if (status)
		return status;
	/* the earlier rejections; the move counts the keys itself */
	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		front.counts[i].inserted = front.counts[i].erased = 0;
	status = runtime->copy(map->ctx, fresh.view.counts, front.counts, sizeof(front.counts));
	if (!status && map->view.rejects)
		status = runtime->copy(map->ctx, fresh.view.rejects, map->view.rejects,
				       offsetof(struct cua_hashmap_rejects, pairs) +
					       front.kept * sizeof(struct cua_hashmap_pair));
	if (!status)
		status = CUA__OPS(map->ctx, hashmap_whole)
				 ->move(map->ctx, &map->view, &fresh.view, CUA__HASHMAP_INSERT);
	if (!status)
		status = runtime->synchronize(map->ctx);
	/* with max_probes a pair may have found no slot; it is still in the old memory */
	if (!status && map->view.max_probes)
		status = cua__hashmap_read_front(&fresh, &moved);
	if (!status && map->view.max_probes && moved.keys != front.keys)
		status = CUA_ERROR_SIZE;
	if (status) {
		runtime->release(map->ctx, fresh.base);
		return status;
	}
	runtime->release(map->ctx, map->base);
	*map = fresh;
	return CUA_OK;
}

enum cua_status cua_hashmap_resize(struct cua_hashmap *map, uint64_t capacity)
{
	struct cua__call call;

	if (!map)
		return CUA_ERROR_NULL;
	if (!capacity)
		return CUA_ERROR_VALUE;
	if (map->options.own_hash)
		return CUA_ERROR_UNSUPPORTED;
	cua__call_begin(&call, map->ctx);
	return cua__call_end(&call, resize(map, capacity));
}

/* ---- growth ---- */

enum cua_status cua__hashmap_build(struct cua_hashmap *map, int empty,
				   const struct cua__hashmap_call *call)
{
	const struct cua__hashmap_ops *ops = CUA__OPS(map->ctx, hashmap);
	enum cua_status status =
		ops->build ? ops->build(map->ctx, &map->view, call) : CUA_ERROR_UNSUPPORTED;

	if (status != CUA_ERROR_UNSUPPORTED)
		return status;
	status = empty ? CUA_OK : cua__hashmap_empty(map);
	return status ? status : ops->write(map->ctx, &map->view, call);
}

/*
 * Makes room for `more` keys below the load limit. *room is the number of keys that fit afterwards.
 */
static enum cua_status make_room(struct cua_hashmap *map, uint64_t more, uint64_t *room)
{
	const uint32_t percent = map->options.grow_percent;
	uint64_t keys, slots = cua__hashmap_slots(&map->view), limit, wanted;
	enum cua_status status;
	struct cua__hashmap_front front;

	status = cua__hashmap_read_front(map, &front);
	if (status)
		return status;
	keys = front.in_slots;
	/* slots * percent / 100 without overflow */
	limit = slots / 100 * percent + slots % 100 * percent / 100;
	if (limit < keys || limit - keys < more) {
		if (keys + more < keys || keys + more > UINT64_MAX / 200 || slots > UINT64_MAX / 4)
			return CUA_ERROR_SIZE;
		/* 2 more: keys in reserved slots need no slot, but resize counts them as keys */
		wanted = (keys + more) * 100 / percent + 2;
		status = resize(map, wanted > 2 * slots ? wanted : 2 * slots);
		if (status)
			return status;
		slots = cua__hashmap_slots(&map->view);
		limit = slots / 100 * percent + slots % 100 * percent / 100;
	}
	*room = limit - keys;
	return CUA_OK;
}

static const void *elements_from(const void *array, size_t done, size_t size)
{
	return array && size ? (const char *)array + done * size : NULL;
}

enum cua_status cua__hashmap_write_growing(struct cua_hashmap *map, int builds,
					   const struct cua__hashmap_call *call)
{
	const uint32_t ks = map->view.key_size, vs = map->view.value_size;
	enum cua_status status = CUA_OK;
	size_t done = 0;

	while (done < call->n) {
		struct cua__hashmap_call batch = *call;
		uint64_t rest = call->n - done, room;

		/*
		 * equal keys share a slot and present keys need none; the number of new keys is
		 * known only afterwards
		 */
		status = make_room(map, rest < LEAST_BATCH ? rest : LEAST_BATCH, &room);
		if (status)
			break;
		batch.n = rest < room ? rest : room;
		batch.keys = elements_from(call->keys, done, ks);
		batch.values = elements_from(call->values, done, vs);
		batch.values_out = (void *)elements_from(call->values_out, done, vs);
		batch.flags = (void *)elements_from(call->flags, done, 1);
		status = builds && !done
				 ? cua__hashmap_build(map, 1, &batch)
				 : CUA__OPS(map->ctx, hashmap)->write(map->ctx, &map->view, &batch);
		if (status)
			break;
		done += batch.n;
	}
	/* the results of the remaining elements are FULL */
	if (status && call->flags)
		map->ctx->runtime->set_bytes(map->ctx, call->flags + done, CUA_HASHMAP_FULL,
					     call->n - done);
	return status;
}
