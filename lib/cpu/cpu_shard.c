/* SPDX-License-Identifier: MIT */
/*
 * Sharded maps on the CPU. A stable counting sort divides pairs among their owners; each worker counts and
 * writes a share. Updates combine equal keys first.
 */
#include "config.h"

#include <string.h>

#include "kernels/shard_find.h"

/* Pairs that justify a thread. */
#define GRAIN 8192
/* For more ranks there is a single worker. */
enum { FEW_RANKS = 256, MOST_WORKERS = 32 };

struct job {
	const struct cua__shard *shard;
	/* of each worker: its pairs of each owner, and then where they begin */
	uint32_t counts[MOST_WORKERS][FEW_RANKS];
};

static uint32_t owner_of_key(const void *keys, size_t i, uint32_t key_size, uint64_t seed,
			     uint32_t ranks)
{
	switch (key_size) {
	case 4: return cua__owner(cua__shard_get(keys, i, 4), 4, seed, ranks);
	case 8: return cua__owner(cua__shard_get(keys, i, 8), 8, seed, ranks);
	default: return cua__owner(cua__shard_get(keys, i, 16), 16, seed, ranks);
	}
}

static uint32_t owner_of(const struct cua__shard *s, size_t i)
{
	return owner_of_key(s->keys, i, s->key_size, s->seed, s->ranks);
}

static unsigned workers_for(struct cua_context *ctx, size_t n, uint32_t ranks)
{
	const unsigned workers = cua__workers(ctx, n, GRAIN);

	return ranks > FEW_RANKS ? 1 : workers < MOST_WORKERS ? workers : MOST_WORKERS;
}

static void count_share(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	size_t begin, end;

	memset(job->counts[worker], 0, sizeof(job->counts[worker]));
	cua__share(job->shard->n, worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++)
		job->counts[worker][owner_of(job->shard, i)]++;
}

static enum cua_status cpu_count(struct cua_context *ctx, const struct cua__shard *s)
{
	const unsigned workers = workers_for(ctx, s->n, s->ranks);
	struct job job = {.shard = s};

	if (s->ranks > FEW_RANKS) {
		for (size_t i = 0; i < s->n; i++)
			s->counts[owner_of(s, i)]++;
		return CUA_OK;
	}
	cua__parallel(ctx, workers, count_share, &job);
	for (unsigned w = 0; w < workers; w++)
		for (uint32_t r = 0; r < s->ranks; r++)
			s->counts[r] += job.counts[w][r];
	return CUA_OK;
}

static void place_share(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	const struct cua__shard *s = job->shard;
	const uint32_t value_size = s->values_out ? s->value_size : 0;
	uint32_t *cursors = s->ranks > FEW_RANKS ? s->cursors : job->counts[worker];
	size_t begin, end;

	cua__share(s->n, worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++)
		cua__shard_put(s, cursors[owner_of(s, i)]++, i, s->key_size, value_size);
}

static enum cua_status cpu_place(struct cua_context *ctx, const struct cua__shard *s)
{
	const unsigned workers = workers_for(ctx, s->n, s->ranks);
	struct job job = {.shard = s};

	if (s->ranks <= FEW_RANKS) {
		cua__parallel(ctx, workers, count_share, &job);
		for (uint32_t r = 0; r < s->ranks; r++) {
			uint32_t at = s->cursors[r];

			for (unsigned w = 0; w < workers; w++) {
				const uint32_t count = job.counts[w][r];

				job.counts[w][r] = at;
				at += count;
			}
		}
	}
	cua__parallel(ctx, workers, place_share, &job);
	return CUA_OK;
}

static void answer_share(void *arg, unsigned worker, unsigned workers)
{
	const struct cua__shard_answers *a = arg;
	struct cua__shard_answers share = *a;
	size_t begin, end;

	cua__share(a->n, worker, workers, &begin, &end);
	share.n = (uint32_t)end;
	cua__shard_answer(&share, begin, 1, a->values_out ? a->value_size : 0);
}

static enum cua_status cpu_answer(struct cua_context *ctx, const struct cua__shard_answers *a)
{
	cua__parallel(ctx, cua__workers(ctx, a->n, GRAIN), answer_share, (void *)(uintptr_t)a);
	return CUA_OK;
}

/* ---- updates ---- */

/*
 * Each worker combines the pairs of its share in a direct-mapped cache. A pair with another key than its
 * entry replaces the pair in the entry, and the replaced pair goes to the output. So frequent keys are combined,
 * and the output is never longer than the input.
 */
enum { CACHE = 4096 };

struct cache {
	struct cua_u128 keys[CACHE], values[CACHE];
	uint8_t used[CACHE];
};

struct combine_job {
	const struct cua__shard_combine *call;
	struct cache *caches; /* of each worker */
	char *keys_out, *values_out;
	uint64_t first[MOST_WORKERS], n[MOST_WORKERS]; /* the output of each worker */
};

static struct cua_u128 get(const void *array, size_t i, uint32_t size)
{
	switch (size) {
	case 4: return cua__shard_get(array, i, 4);
	case 8: return cua__shard_get(array, i, 8);
	default: return cua__shard_get(array, i, 16);
	}
}

static void put_cached(struct combine_job *job, unsigned worker, struct cache *cache, size_t slot)
{
	const struct cua_hashmap_view *view = job->call->view;
	const uint64_t to = job->first[worker] + job->n[worker]++;

	memcpy(job->keys_out + to * view->key_size, &cache->keys[slot], view->key_size);
	memcpy(job->values_out + to * view->value_size, &cache->values[slot], view->value_size);
}

static void combine_share(void *arg, unsigned worker, unsigned workers)
{
	struct combine_job *job = arg;
	const struct cua__shard_combine *c = job->call;
	const uint32_t ks = c->view->key_size, vs = c->view->value_size;
	struct cache *cache = &job->caches[worker];
	size_t begin, end;

	memset(cache->used, 0, sizeof(cache->used));
	cua__share(c->n, worker, workers, &begin, &end);
	job->first[worker] = begin;
	job->n[worker] = 0;
	for (size_t i = begin; i < end; i++) {
		const struct cua_u128 key = get(c->keys, i, ks), value = get(c->values, i, vs);
		const size_t slot = cua_hash_u128(key, 0) % CACHE;

		if (cache->used[slot] && cua__hashmap_same(cache->keys[slot], key)) {
			cache->values[slot] =
				cua__hashmap_combine(cache->values[slot], value, vs, c->op);
			continue;
		}
		if (cache->used[slot])
			put_cached(job, worker, cache, slot);
		cache->used[slot] = 1;
		cache->keys[slot] = key;
		cache->values[slot] = value;
	}
	for (size_t slot = 0; slot < CACHE; slot++)
		if (cache->used[slot])
			put_cached(job, worker, cache, slot);
}

static size_t cpu_combine_bytes(struct cua_context *ctx, const struct cua__shard_combine *c)
{
	return cua__scratch_size(sizeof(uint64_t)) +
	       cua__scratch_size(workers_for(ctx, c->most, 1) * sizeof(struct cache)) +
	       cua__scratch_size(c->most * c->view->key_size) +
	       cua__scratch_size(c->most * c->view->value_size);
}

static enum cua_status cpu_combine(struct cua_context *ctx, struct cua__shard_combine *c)
{
	const unsigned workers = workers_for(ctx, c->n, 1);
	const uint32_t ks = c->view->key_size, vs = c->view->value_size;
	struct combine_job job = {.call = c};
	uint64_t n = 0;

	c->n_out = (uint64_t *)(void *)c->memory;
	job.caches = (struct cache *)(void *)(c->memory + cua__scratch_size(sizeof(uint64_t)));
	job.keys_out = (char *)job.caches + cua__scratch_size(workers * sizeof(*job.caches));
	job.values_out = job.keys_out + cua__scratch_size(c->n * ks);
	c->keys_out = job.keys_out;
	c->values_out = job.values_out;
	cua__parallel(ctx, workers, combine_share, &job);
	for (unsigned w = 0; w < workers; w++) {
		memmove(job.keys_out + n * ks, job.keys_out + job.first[w] * ks, job.n[w] * ks);
		memmove(job.values_out + n * vs, job.values_out + job.first[w] * vs, job.n[w] * vs);
		n += job.n[w];
	}
	*c->n_out = n;
	return CUA_OK;
}

/* ---- direct finds ---- */

static uint32_t bin_of_key(const struct cua__shard_find *f, uint64_t i)
{
	switch (f->key_size) {
	case 4: return cua__bins_of(f, cua__shard_get(f->keys, i, 4), 4);
	case 8: return cua__bins_of(f, cua__shard_get(f->keys, i, 8), 8);
	default: return cua__bins_of(f, cua__shard_get(f->keys, i, 16), 16);
	}
}

static void count_tiles(void *arg, unsigned worker, unsigned workers)
{
	const struct cua__shard_find *f = arg;
	uint32_t counts[CUA__SHARD_BINS] = {0};
	size_t begin, end;

	cua__share(f->n, worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++) {
		const uint32_t b = bin_of_key(f, i);

		f->sorted[i] = (CUA__SHARD_OFFSET)b;
		counts[b]++;
	}
	for (uint32_t b = 0; b < cua__bins_all(f); b++)
		__atomic_fetch_add(&f->counts[b], counts[b], __ATOMIC_RELAXED);
}

static void bin_tile(const struct cua__shard_find *f, size_t tile)
{
	const uint32_t bins = cua__bins_all(f), n = cua__bins_in_tile(f, tile);
	const size_t first = tile * f->tile;
	CUA__SHARD_OFFSET *positions = f->positions + tile * (bins + 1);
	uint32_t *bases = f->bases + tile * bins, next[CUA__SHARD_BINS] = {0}, position = 0;

	for (uint32_t i = 0; i < n; i++)
		next[f->sorted[first + i]]++;
	for (uint32_t b = 0; b < bins; b++) {
		const uint32_t count = next[b];

		bases[b] = __atomic_fetch_add(&f->cursors[b], count, __ATOMIC_RELAXED) - position;
		positions[b] = (CUA__SHARD_OFFSET)position;
		next[b] = position;
		position += count;
	}
	positions[bins] = (CUA__SHARD_OFFSET)n;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t b = f->sorted[first + i], at = next[b]++;

		f->sorted[first + i] = (CUA__SHARD_OFFSET)at;
		cua__shard_copy(f->in_bins, bases[b] + at, f->keys, first + i, f->key_size);
	}
}

static void bin_tiles(void *arg, unsigned worker, unsigned workers)
{
	const struct cua__shard_find *f = arg;
	size_t begin, end;

	cua__share(cua__bins_tiles(f), worker, workers, &begin, &end);
	for (size_t tile = begin; tile < end; tile++)
		bin_tile(f, tile);
}

static enum cua_status cpu_bin_keys(struct cua_context *ctx, const struct cua__shard_find *f)
{
	const uint32_t bins = cua__bins_all(f);
	uint32_t at = 0;

	memset(f->counts, 0, bins * sizeof(*f->counts));
	cua__parallel(ctx, cua__workers(ctx, f->n, GRAIN), count_tiles, (void *)(uintptr_t)f);
	for (uint32_t b = 0; b < bins; b++) {
		f->starts[b] = f->cursors[b] = at;
		at += (f->counts[b] + 31) / 32 * 32;
	}
	cua__parallel(ctx, cua__workers(ctx, f->n, GRAIN), bin_tiles, (void *)(uintptr_t)f);
	return CUA_OK;
}

static void take_tile(const struct cua__shard_find *f, size_t tile)
{
	const uint32_t bins = cua__bins_all(f), n = cua__bins_in_tile(f, tile);
	const uint32_t value_size = f->values_out ? f->value_size : 0;
	const CUA__SHARD_OFFSET *positions = f->positions + tile * (bins + 1);
	const size_t first = tile * f->tile;
	uint32_t places[CUA__SHARD_MOST_TILE];

	for (uint32_t b = 0; b < bins; b++)
		for (uint32_t s = positions[b]; s < positions[b + 1]; s++)
			places[s] = f->bases[tile * bins + b] + s;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t from = places[f->sorted[first + i]];
		const uint8_t found = f->found[from / 32] >> from % 32 & 1;

		if (f->found_out)
			f->found_out[first + i] = found;
		if (value_size && found)
			cua__shard_copy(f->values_out, first + i, f->values, from, value_size);
	}
}

static void take_tiles(void *arg, unsigned worker, unsigned workers)
{
	const struct cua__shard_find *f = arg;
	size_t begin, end;

	cua__share(cua__bins_tiles(f), worker, workers, &begin, &end);
	for (size_t tile = begin; tile < end; tile++)
		take_tile(f, tile);
}

static enum cua_status cpu_take_answers(struct cua_context *ctx, const struct cua__shard_find *f)
{
	cua__parallel(ctx, cua__workers(ctx, f->n, GRAIN), take_tiles, (void *)(uintptr_t)f);
	return CUA_OK;
}

const struct cua__shard_ops cua__cpu_shard = {
	.count = cpu_count,
	.place = cpu_place,
	.answer = cpu_answer,
	.combine_bytes = cpu_combine_bytes,
	.combine = cpu_combine,
	.bin_keys = cpu_bin_keys,
	.take_answers = cpu_take_answers,
};
