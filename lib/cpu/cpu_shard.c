/* SPDX-License-Identifier: MIT */
/* Sharded maps on the CPU: a stable counting sort; each worker counts and writes a share. */
#include "config.h"

#include <string.h>

#include "kernels/shard_kernel.h"

/* Pairs that justify a thread. */
#define GRAIN 8192
/* For more ranks there is a single worker. */
enum { FEW_RANKS = 256, MOST_WORKERS = 32 };

struct job {
	const struct cua__shard *shard;
	/* of each worker: its pairs of each owner, and then where they begin */
	uint32_t counts[MOST_WORKERS][FEW_RANKS];
};

static uint32_t owner_of(const struct cua__shard *s, size_t i)
{
	switch (s->key_size) {
	case 4: return cua__shard_owner(s, s->keys, i, 4);
	case 8: return cua__shard_owner(s, s->keys, i, 8);
	default: return cua__shard_owner(s, s->keys, i, 16);
	}
}

static unsigned workers_for(struct cua_context *ctx, const struct cua__shard *s)
{
	const unsigned workers = cua__workers(ctx, s->n, GRAIN);

	return s->ranks > FEW_RANKS ? 1 : workers < MOST_WORKERS ? workers : MOST_WORKERS;
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
	const unsigned workers = workers_for(ctx, s);
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
	const unsigned workers = workers_for(ctx, s);
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

const struct cua__shard_ops cua__cpu_shard = {
	.count = cpu_count,
	.place = cpu_place,
	.answer = cpu_answer,
};
