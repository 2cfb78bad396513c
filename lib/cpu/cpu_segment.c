/* SPDX-License-Identifier: MIT */
/*
 * Segmented reductions on the CPU. A worker processes a contiguous part of the merge path
 * (segment_path.h), so the lengths of the segments do not matter. Then the caller joins the
 * segments that were cut, in order.
 */
#include "config.h"

#include "cpu/float_mode.h"
#include "kernels/segment_path.h"
#include "kernels/tree.h"

/* A thread is started only for at least this many path items. */
#define GRAIN 32768

struct job {
	const struct cua__segments *s;
	struct cua__path path;
	/* a part for each worker, and an empty part at the path's end */
	struct cua__path_part *parts;
};

/* The position in the path at which a worker's part begins. */
static uint64_t part_begin(const struct cua__path *p, unsigned worker, unsigned workers)
{
	uint64_t length = cua__path_length(p), each = length / workers, more = length % workers;

	return each * worker + (worker < more ? worker : more);
}

static void put(uint64_t *to, const void *from, size_t size)
{
	*to = 0;
	memcpy(to, from, size);
}

/* The types and functions of an operation by its name, for cpu_segment_range.tmpl.h. */
#define DEFINE_OPERATION(name, op_name, type_name, T, A, R, family, element, value, nothing)       \
	typedef T element_type_##name;                                                             \
	typedef A accumulator_type_##name;                                                         \
	typedef R result_type_##name;                                                              \
	CUA_FORCE A element_##name(T a)                                                            \
	{                                                                                          \
		return element;                                                                    \
	}                                                                                          \
	CUA_FORCE A combine_##name(A t, A more)                                                    \
	{                                                                                          \
		return cua_combine_##family(t, more);                                              \
	}                                                                                          \
	CUA_FORCE R value_##name(A t)                                                              \
	{                                                                                          \
		return value;                                                                      \
	}                                                                                          \
	CUA_FORCE R nothing_##name(void)                                                           \
	{                                                                                          \
		return nothing;                                                                    \
	}
CUA__REDUCE_SINGLE(DEFINE_OPERATION)

#define CUA__OPERATION sum_u32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION sum_i32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION sum_u64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION sum_i64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION sum_f32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION sum_f64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION min_u32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION min_i32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION min_u64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION min_i64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION min_f32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION min_f64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION max_u32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION max_i32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION max_u64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION max_i64
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION max_f32
#include "cpu/cpu_segment_range.tmpl.h"
#define CUA__OPERATION max_f64
#include "cpu/cpu_segment_range.tmpl.h"

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;

#define RUN_PART(name, op_name, type_name, T, A, R, family, element, value, nothing)               \
	if (job->s->op == CUA_REDUCE_##op_name && job->s->type == CUA_##type_name) {               \
		part_##name(job, worker, workers);                                                 \
		return;                                                                            \
	}
	CUA__REDUCE_SINGLE(RUN_PART)
}

static void join(const struct job *job, unsigned workers)
{
#define RUN_JOIN(name, op_name, type_name, T, A, R, family, element, value, nothing)               \
	if (job->s->op == CUA_REDUCE_##op_name && job->s->type == CUA_##type_name) {               \
		join_##name(job, workers);                                                         \
		return;                                                                            \
	}
	CUA__REDUCE_SINGLE(RUN_JOIN)
}

/* ---- mode FIXED ---- */

/*
 * A worker sums a segment whole. Segments of LONG or more elements are deferred: afterwards all
 * workers reduce each of them together, cut only where the tree permits.
 */
#define LONG ((uint64_t)1 << 18)
#define PARTIALS (CUA__TREE_CHUNKS * sizeof(struct cua_complex_f64))

struct fixed_job {
	struct job job;
	uint64_t n_long, most_long;
	uint64_t *long_segments; /* room for most_long segments */
};

/* Segment i, elements begin to begin + n - 1. */
static struct cua__reduce one_segment(const struct cua__segments *s, uint64_t i, uint64_t begin,
				      uint64_t n)
{
	struct cua__reduce r = cua__segment_reduce(s);

	r.n = n;
	r.x = r.y = (const char *)s->x + begin * s->size;
	r.result = (char *)s->results + i * s->size;
	return r;
}

#define CUA__TREE_TEMPLATE "cpu/cpu_segment_fixed.tmpl.h"
#define CUA__TREE_WITH_FLOAT_SUMS
#include "kernels/tree_kinds.tmpl.h"

static void fixed_work(void *arg, unsigned worker, unsigned workers)
{
	struct fixed_job *f = arg;
	const struct cua__path_part *part = &f->job.parts[worker];
	fenv_t caller;

	(void)workers;
	/* rounds to nearest and keeps subnormals, as in cpu_tree.c */
	cua__float_mode_begin(&caller);
	switch (f->job.s->kind) {
#define RUN_FIXED(kind, ...)                                                                       \
	case CUA__TREE_##kind: fixed_##kind(f, part[0].first, part[1].first); break;
		CUA__TREE_FLOAT_SUMS(RUN_FIXED)
	default: break;
	}
	cua__float_mode_end(&caller);
}

static size_t parts_size(struct cua_context *ctx, const struct cua__segments *s)
{
	return (cua__workers(ctx, s->n + s->segments, GRAIN) + 1) * sizeof(struct cua__path_part);
}

static size_t segments_scratch(struct cua_context *ctx, const struct cua__segments *s)
{
	size_t size = parts_size(ctx, s);

	/* the partial results of a long segment, and the list of long segments */
	if (s->kind)
		size += PARTIALS + (size_t)(s->n / LONG) * 8;
	return size;
}

static void run_fixed(struct cua_context *ctx, const struct job *job, unsigned workers)
{
	struct fixed_job f = {.job = *job, .most_long = job->s->n / LONG};
	char *partials = (char *)job->s->scratch + parts_size(ctx, job->s);

	f.long_segments = (uint64_t *)(void *)(partials + PARTIALS);
	cua__parallel(ctx, workers, fixed_work, &f);
	for (uint64_t l = 0; l < f.n_long && l < f.most_long; l++) {
		uint64_t i = f.long_segments[l], begin = cua__path_offset(&job->path, i);
		struct cua__reduce r =
			one_segment(job->s, i, begin, cua__path_offset(&job->path, i + 1) - begin);

		r.partials = partials;
		r.finish = job->s->control;
		(void)cua__cpu_tree(ctx, &r);
	}
}

static enum cua_status segments(struct cua_context *ctx, const struct cua__segments *s)
{
	struct job job = {.s = s, .parts = s->scratch};
	unsigned workers;

	cua__path_init(&job.path, s);
	workers = cua__workers(ctx, cua__path_length(&job.path), GRAIN);
	/* `first` ascends even if the offsets do not, so no segment belongs to two workers */
	for (unsigned w = 0; w <= workers; w++) {
		uint64_t i = cua__path_search(&job.path, part_begin(&job.path, w, workers));

		job.parts[w].first = w && i < job.parts[w - 1].first ? job.parts[w - 1].first : i;
	}
	if (s->kind) {
		run_fixed(ctx, &job, workers);
		return CUA_OK;
	}
	cua__parallel(ctx, workers, work, &job);
	join(&job, workers);
	return CUA_OK;
}

/* ---- runs of equal keys ---- */

struct runs_job {
	const struct cua__runs *r;
	/* runs per worker; after the first pass, the number of runs before each worker */
	uint64_t *counts;
};

/* Keys compared in bulk. In long runs most batches have equal keys and are skipped whole. */
#define KEYS 64

typedef uint32_t key_32;
typedef uint64_t key_64;

#define BITS 32
#include "cpu/cpu_segment_runs.tmpl.h"
#define BITS 64
#include "cpu/cpu_segment_runs.tmpl.h"

static size_t runs_scratch(struct cua_context *ctx, const struct cua__runs *r,
			   const struct cua__segments *s)
{
	(void)s;
	return cua__workers(ctx, r->n, GRAIN) * sizeof(uint64_t);
}

static enum cua_status runs(struct cua_context *ctx, const struct cua__runs *r,
			    struct cua__segments *s)
{
	struct runs_job job = {r, r->scratch};
	unsigned workers = cua__workers(ctx, r->n, GRAIN);
	uint64_t total = 0;

	(void)s;
	cua__parallel(ctx, workers, r->key_size == 4 ? count_32 : count_64, &job);
	for (unsigned w = 0; w < workers; w++) {
		uint64_t count = job.counts[w];

		job.counts[w] = total;
		total += count;
	}
	cua__parallel(ctx, workers, r->key_size == 4 ? number_32 : number_64, &job);
	if (total <= r->capacity)
		r->offsets[total] = r->n;
	*r->total = *r->count = total;
	return CUA_OK;
}

const struct cua__segment_ops cua__cpu_segment = {
	.segments_scratch = segments_scratch,
	.runs_scratch = runs_scratch,
	.segments = segments,
	.runs = runs,
};
