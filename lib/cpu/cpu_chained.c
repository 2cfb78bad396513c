/* SPDX-License-Identifier: MIT */
/* The chained hash table on the CPU. */
#include "config.h"

#include <string.h>

#include "kernels/chained_check.h"

/* Pairs that justify a thread. */
#define GRAIN 4096

/* ---- insert ---- */

/*
 * A worker claims entries for a chunk of pairs at once and links the entries of each bucket to a
 * chain. So it locks a bucket, or exchanges its head, once per chunk, however many keys of the
 * chunk the bucket has.
 */
#define CHUNK 1024u
#define SLOTS (2 * CHUNK)
#define NO_GROUP 0xffffu

struct group {
	uint64_t bucket;
	uint64_t first, last;
};

struct insert_job {
	const struct cua_chained_view *view;
	int build;
	size_t n;
	const uint64_t *keys, *values;
};

static void insert_chunk(const struct cua_chained_view *view, int build, uint32_t n,
			 const uint64_t *keys, const uint64_t *values)
{
	struct group groups[CHUNK];
	uint16_t slots[SLOTS];
	uint32_t n_groups = 0;
	uint64_t base = cua_port_fetch_add_u64(&view->cursor->demand, n, CUA__CHAINED_AT);

	if (base >= view->capacity)
		return;
	if (n > view->capacity - base)
		n = (uint32_t)(view->capacity - base);
	memset(slots, 0xff, sizeof(slots));
	for (uint32_t i = 0; i < n; i++) {
		struct cua_chained_entry *entry = &view->entries[base + i];
		uint64_t bucket = cua_chained_bucket(view, keys[i]);
		uint32_t s = (uint32_t)bucket % SLOTS;
		struct group *g;

		while (slots[s] != NO_GROUP && groups[slots[s]].bucket != bucket)
			s = (s + 1) % SLOTS;
		entry->key = keys[i];
		entry->value = values[i];
		if (slots[s] == NO_GROUP) {
			g = &groups[n_groups];
			slots[s] = (uint16_t)n_groups++;
			g->bucket = bucket;
			g->last = base + i;
			if (!build)
				__builtin_prefetch(&view->locks[bucket], 1);
			__builtin_prefetch(&view->heads[bucket], 1);
		} else {
			g = &groups[slots[s]];
			entry->next = g->first;
		}
		g->first = base + i;
	}
	for (uint32_t i = 0; i < n_groups; i++) {
		const struct group *g = &groups[i];

		if (build)
			cua__chained_exchange(view, g->bucket, g->first, g->last);
		else
			cua__chained_splice(view, g->bucket, g->first, g->last);
	}
}

static void insert_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct insert_job *job = arg;
	size_t i, end;

	cua__share(job->n, worker, workers, &i, &end);
	while (i < end) {
		uint32_t n = end - i < CHUNK ? (uint32_t)(end - i) : CHUNK;

		insert_chunk(job->view, job->build, n, job->keys + i, job->values + i);
		i += n;
	}
}

static enum cua_status cpu_insert(struct cua_context *ctx, const struct cua_chained_view *view,
				  int build, size_t n, const uint64_t *keys, const uint64_t *values)
{
	struct insert_job job = {view, build, n, keys, values};

	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), insert_worker, &job);
	return CUA_OK;
}

/* ---- find and count ---- */

struct lookup_job {
	const struct cua_chained_view *view;
	size_t n;
	const uint64_t *keys;
	uint64_t *out;
	uint8_t *found;
};

/* Prefetches the head for a key several iterations ahead. */
static void prefetch(const struct lookup_job *job, size_t i, size_t end)
{
	if (i + 8 < end)
		__builtin_prefetch(
			&job->view->heads[cua_chained_bucket(job->view, job->keys[i + 8])]);
}

static void find_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct lookup_job *job = arg;
	size_t i, end;

	cua__share(job->n, worker, workers, &i, &end);
	for (; i < end; i++) {
		uint64_t value;
		int found;

		prefetch(job, i, end);
		found = cua_chained_find(job->view, job->keys[i], &value);
		if (found)
			job->out[i] = value;
		if (job->found)
			job->found[i] = (uint8_t)found;
	}
}

static void count_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct lookup_job *job = arg;
	size_t i, end;

	cua__share(job->n, worker, workers, &i, &end);
	for (; i < end; i++) {
		prefetch(job, i, end);
		job->out[i] = cua_chained_count(job->view, job->keys[i]);
	}
}

static enum cua_status cpu_find(struct cua_context *ctx, const struct cua_chained_view *view,
				size_t n, const uint64_t *keys, uint64_t *values_out,
				uint8_t *found)
{
	struct lookup_job job = {view, n, keys, values_out, found};

	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), find_worker, &job);
	return CUA_OK;
}

static enum cua_status cpu_count(struct cua_context *ctx, const struct cua_chained_view *view,
				 size_t n, const uint64_t *keys, uint64_t *counts_out,
				 struct cua__chained_pending *pending)
{
	struct lookup_job job = {view, n, keys, counts_out, NULL};

	(void)pending;
	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), count_worker, &job);
	return CUA_OK;
}

static enum cua_status cpu_values(struct cua_context *ctx, const struct cua_chained_view *view,
				  uint64_t key, uint64_t max, uint64_t *values_out,
				  struct cua__chained_found *found)
{
	(void)ctx;
	for (uint64_t i = cua_chained_first(view, key); i != CUA_CHAINED_NONE;
	     i = cua_chained_next(view, i)) {
		if (found->n < max)
			values_out[found->n] = cua_chained_value(view, i);
		found->n++;
	}
	return CUA_OK;
}

static enum cua_status cpu_size(struct cua_context *ctx, const struct cua_chained_view *view,
				uint64_t *size)
{
	(void)ctx;
	*size = cua__chained_used(view);
	return CUA_OK;
}

/* ---- verify ---- */

struct verify_job {
	const struct cua_chained_view *view;
	const struct cua__chained_check *check;
	size_t n;
	void (*step)(const struct cua_chained_view *view, const struct cua__chained_check *check,
		     uint64_t i);
};

static void verify_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct verify_job *job = arg;
	size_t i, end;

	cua__share(job->n, worker, workers, &i, &end);
	for (; i < end; i++)
		job->step(job->view, job->check, i);
}

static enum cua_status cpu_verify(struct cua_context *ctx, const struct cua_chained_view *view,
				  const struct cua__chained_check *check)
{
	size_t segments = view->n_buckets + check->groups;
	unsigned workers = cua__workers(ctx, segments, 64);
	struct verify_job mark = {view, check, segments, cua__chained_check_mark};
	struct verify_job follow = {view, check, view->n_buckets, cua__chained_check_follow};
	struct verify_job buckets = {view, check, segments, cua__chained_check_buckets};

	cua__parallel(ctx, workers, verify_worker, &mark);
	cua__parallel(ctx, workers, verify_worker, &follow);
	cua__parallel(ctx, workers, verify_worker, &buckets);
	return CUA_OK;
}

const struct cua__chained_ops cua__cpu_chained = {
	.insert = cpu_insert,
	.find = cpu_find,
	.count = cpu_count,
	.values = cpu_values,
	.size = cpu_size,
	.verify = cpu_verify,
};
