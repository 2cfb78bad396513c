/* SPDX-License-Identifier: MIT */
/* Groups on the CPU backend. Every call has finished when it returns, so nothing is to be ordered. */
#include "config.h"

#include <string.h>

#include "backend/group_backend.h"

static enum cua_status nothing(struct cua_group *g)
{
	(void)g;
	return CUA_OK;
}

static enum cua_status cpu_open(struct cua_group *g)
{
	g->all_peers = 1;
	return CUA_OK;
}

static void cpu_close(struct cua_group *g)
{
	(void)g;
}

static enum cua_status cpu_gather(struct cua_group *g, const size_t *bytes)
{
	for (uint32_t to = 0; to < g->local; to++) {
		char *at = g->parts[to].all;

		for (uint32_t from = 0; from < g->local; from++) {
			if (from != to && bytes[from])
				memcpy(at, g->parts[from].mine, bytes[from]);
			at += bytes[from];
		}
	}
	return CUA_OK;
}

static enum cua_status cpu_exchange(struct cua_group *g, const struct cua__group_traffic *t)
{
	for (uint32_t to = 0; to < g->local; to++)
		for (uint32_t from = 0; from < g->local; from++) {
			const size_t k = (size_t)to * g->local + from;

			if (t->receive_bytes[k])
				memcpy(t->receive[k], t->send[(size_t)from * g->local + to],
				       t->receive_bytes[k]);
		}
	return CUA_OK;
}

struct sum_job {
	const struct cua_group *group;
	size_t n;
};

/* Elements of a few ranks together fit into the cache. */
enum { SUM_BLOCK = 1024, SUM_GRAIN = 16384 };

#define SUM(name, T)                                                                               \
	static void name(void *arg, unsigned worker, unsigned workers)                             \
	{                                                                                          \
		const struct sum_job *job = arg;                                                   \
		const struct cua__group_part *parts = job->group->parts;                           \
		size_t begin, end;                                                                 \
		T sums[SUM_BLOCK];                                                                 \
                                                                                                   \
		cua__share(job->n, worker, workers, &begin, &end);                                 \
		for (size_t at = begin; at < end; at += SUM_BLOCK) {                               \
			const size_t n = end - at < SUM_BLOCK ? end - at : SUM_BLOCK;              \
                                                                                                   \
			memset(sums, 0, sizeof(sums));                                             \
			for (uint32_t r = 0; r < job->group->local; r++)                           \
				for (size_t i = 0; i < n; i++)                                     \
					sums[i] += ((const T *)parts[r].array)[at + i];            \
			for (uint32_t r = 0; r < job->group->local; r++)                           \
				memcpy((T *)parts[r].array + at, sums, n * sizeof(T));             \
		}                                                                                  \
	}
SUM(sum_32, uint32_t)
SUM(sum_64, uint64_t)

/* By the threads of rank 0. */
static enum cua_status cpu_sum(struct cua_group *g, size_t n, size_t size)
{
	struct cua_context *ctx = g->contexts[0];
	struct sum_job job = {g, n};

	if (g->local > 1)
		cua__parallel(ctx, cua__workers(ctx, n, SUM_GRAIN), size == 4 ? sum_32 : sum_64,
			      &job);
	return CUA_OK;
}

static size_t cpu_sum_scratch(const struct cua_group *g, size_t bytes)
{
	(void)g;
	(void)bytes;
	return 0;
}

static enum cua_status cpu_order(struct cua_group *before, struct cua_group *after)
{
	(void)before;
	(void)after;
	return CUA_OK;
}

static enum cua_status cpu_open_side(struct cua_context *ctx)
{
	(void)ctx;
	return CUA_OK;
}

static void cpu_close_side(struct cua_context *ctx)
{
	(void)ctx;
}

const struct cua__group_ops cua__cpu_group = {
	.open = cpu_open,
	.close = cpu_close,
	.begin = nothing,
	.end = nothing,
	.gather = cpu_gather,
	.exchange = cpu_exchange,
	.sum = cpu_sum,
	.sum_scratch = cpu_sum_scratch,
	.order = cpu_order,
	.follow = cpu_order,
	.open_side = cpu_open_side,
	.close_side = cpu_close_side,
};
