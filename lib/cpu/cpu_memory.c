/* SPDX-License-Identifier: MIT */
/* The memory calls of the CPU backend; the threads share the rows. */
#include "config.h"

#include <string.h>

#include "backend/memory_backend.h"

/* Rows are divided at multiples of this, a multiple of every pattern's size. */
#define UNIT ((size_t)4096)
/* Fewer units than this per thread are not worth a thread. */
#define GRAIN ((size_t)256)

/* Copies rows, or fills them if src is NULL. */
struct job {
	char *dst;
	const char *src;
	size_t dst_pitch, src_pitch;
	size_t row_bytes, rows;
	size_t units; /* of a row; the last unit may be shorter */
	const struct cua__pattern *pattern;
};

static void fill_range(char *p, size_t bytes, const struct cua__pattern *pattern)
{
	const uint64_t ones = 0x0101010101010101u;
	struct cua__pattern v = *pattern;

	if (v.words[0] == v.words[1] && v.words[0] == (v.words[0] & 0xff) * ones) {
		memset(p, (int)(v.words[0] & 0xff), bytes);
		return;
	}
	for (; bytes >= sizeof(v); p += sizeof(v), bytes -= sizeof(v))
		memcpy(p, &v, sizeof(v));
	memcpy(p, &v, bytes);
}

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	size_t at, end;

	cua__share(job->rows * job->units, worker, workers, &at, &end);
	while (at < end) {
		size_t row = at / job->units, unit = at % job->units;
		size_t n = end - at < job->units - unit ? end - at : job->units - unit;
		size_t first = unit * UNIT;
		size_t last = unit + n == job->units ? job->row_bytes : (unit + n) * UNIT;
		char *dst = job->dst + row * job->dst_pitch + first;

		if (job->src)
			memcpy(dst, job->src + row * job->src_pitch + first, last - first);
		else
			fill_range(dst, last - first, job->pattern);
		at += n;
	}
}

static enum cua_status run(struct cua_context *ctx, struct job *job)
{
	size_t worth;

	job->units = job->row_bytes / UNIT + (job->row_bytes % UNIT != 0);
	/* short rows are weighed by their bytes */
	worth = job->row_bytes < UNIT ? job->rows * job->row_bytes / UNIT : job->rows * job->units;
	cua__parallel(ctx, cua__workers(ctx, worth, GRAIN), work, job);
	return CUA_OK;
}

static enum cua_status cpu_fill_rows(struct cua_context *ctx, void *base, size_t pitch,
				     size_t row_bytes, size_t rows,
				     const struct cua__pattern *pattern)
{
	struct job job = {.dst = base,
			  .dst_pitch = pitch,
			  .row_bytes = row_bytes,
			  .rows = rows,
			  .pattern = pattern};

	return run(ctx, &job);
}

static enum cua_status cpu_fill(struct cua_context *ctx, void *dst, size_t bytes,
				const struct cua__pattern *pattern)
{
	return cpu_fill_rows(ctx, dst, bytes, bytes, 1, pattern);
}

static enum cua_status cpu_copy_rows(struct cua_context *ctx, void *dst, size_t dst_pitch,
				     const void *src, size_t src_pitch, size_t row_bytes,
				     size_t rows)
{
	struct job job = {.dst = dst,
			  .src = src,
			  .dst_pitch = dst_pitch,
			  .src_pitch = src_pitch,
			  .row_bytes = row_bytes,
			  .rows = rows};

	return run(ctx, &job);
}

const struct cua__memory_ops cua__cpu_memory = {
	.fill = cpu_fill,
	.fill_rows = cpu_fill_rows,
	.copy_rows = cpu_copy_rows,
};
