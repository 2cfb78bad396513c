/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hashmap.h"

/* Elements worth a thread of their own, and how far ahead a loop asks for memory. */
#define GRAIN 4096
#define AHEAD 8

struct job {
	const struct cua_hashmap_view *view;
	int op;
	size_t n;
	const void *keys, *values;
	void *out;
	uint8_t *flags;
};

static uint64_t key_at(const struct job *job, size_t i)
{
	return cua__hashmap_get(job->keys, job->view->key_size, i);
}

static void prefetch(const struct job *job, size_t i, size_t end)
{
	struct cua__hashmap_place home;

	if (i + AHEAD >= end)
		return;
	home = cua__hashmap_home(job->view, key_at(job, i + AHEAD));
	__builtin_prefetch(cua__hashmap_head(job->view, home.bucket));
	__builtin_prefetch(cua__hashmap_slot(job->view, home));
}

/* Equal keys in a row are combined first, so that they cost one write. */
static void write_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	const struct cua_hashmap_view *view = job->view;
	size_t i, end;

	cua__share(job->n, worker, workers, &i, &end);
	while (i < end) {
		size_t first = i;
		uint64_t key = key_at(job, i);
		uint64_t value = cua__hashmap_get(job->values, view->value_size, i);
		int result;

		prefetch(job, i, end);
		for (i++; i < end && key_at(job, i) == key; i++)
			value = cua__hashmap_combine(
				value, cua__hashmap_get(job->values, view->value_size, i), job->op);
		result = cua__hashmap_write(view, key, value, job->op);
		if (!job->flags)
			continue;
		job->flags[first] = (uint8_t)result;
		/* the others of the run come after the first */
		if (result == CUA_HASHMAP_INSERTED)
			result = CUA_HASHMAP_EXISTS;
		while (++first < i)
			job->flags[first] = (uint8_t)result;
	}
}

static enum cua_status cpu_write(struct cua_context *ctx, const struct cua_hashmap_view *view, int op,
				 size_t n, const void *keys, const void *values, uint8_t *results)
{
	struct job job = {view, op, n, keys, values, NULL, results};

	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), write_worker, &job);
	return CUA_OK;
}

static void find_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	size_t i, end;

	cua__share(job->n, worker, workers, &i, &end);
	for (; i < end; i++) {
		uint64_t value;
		int found;

		prefetch(job, i, end);
		found = cua_hashmap_find(job->view, key_at(job, i), &value);
		if (found && job->out)
			cua__hashmap_set(job->out, job->view->value_size, i, value);
		if (job->flags)
			job->flags[i] = (uint8_t)found;
	}
}

static enum cua_status cpu_find(struct cua_context *ctx, const struct cua_hashmap_view *view, size_t n,
				const void *keys, void *values_out, uint8_t *found)
{
	struct job job = {view, 0, n, keys, NULL, values_out, found};

	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), find_worker, &job);
	return CUA_OK;
}

static void erase_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	size_t i, end;

	cua__share(job->n, worker, workers, &i, &end);
	for (; i < end; i++) {
		int found;

		prefetch(job, i, end);
		found = cua_hashmap_erase(job->view, key_at(job, i));
		if (job->flags)
			job->flags[i] = (uint8_t)found;
	}
}

static enum cua_status cpu_erase(struct cua_context *ctx, const struct cua_hashmap_view *view, size_t n,
				 const void *keys, uint8_t *found)
{
	struct job job = {view, 0, n, keys, NULL, NULL, found};

	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), erase_worker, &job);
	return CUA_OK;
}

static enum cua_status cpu_size(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t *size)
{
	(void)ctx;
	*size = cua__hashmap_count(view);
	return CUA_OK;
}

static enum cua_status cpu_read(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	uint32_t slots = cua__hashmap_slots(view);
	uint64_t key, value;

	(void)ctx;
	for (uint64_t b = 0; b < view->n_buckets; b++)
		for (uint32_t s = 0; s < slots; s++) {
			if (!cua__hashmap_pair(view, b, s, &key, &value))
				continue;
			if (*n < max) {
				cua__hashmap_set(keys_out, view->key_size, *n, key);
				cua__hashmap_set(values_out, view->value_size, *n, value);
			}
			++*n;
		}
	return CUA_OK;
}

const struct cua__hashmap_ops cua__cpu_hashmap = {
	.write = cpu_write,
	.find = cpu_find,
	.erase = cpu_erase,
	.size = cpu_size,
	.read = cpu_read,
};
