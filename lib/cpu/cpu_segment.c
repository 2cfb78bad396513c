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

/*
 * Independent accumulators: 16 for long ranges, 4 for short ranges, because most segments are
 * short.
 */
#define DEFINE_RANGE(name, op_name, type_name, T, A, R, family, element, value, nothing)           \
	static inline A range_##name(const T *x, uint64_t begin, uint64_t end)                     \
	{                                                                                          \
		uint64_t i = begin;                                                                \
		A t = 0;                                                                           \
                                                                                                   \
		if (end - begin >= 64) {                                                           \
			A chains[16] = {0};                                                        \
                                                                                                   \
			for (; end - i >= 16; i += 16) {                                           \
				_Pragma("GCC unroll 16") for (int c = 0; c < 16; c++)              \
				{                                                                  \
					T a = x[i + (uint64_t)c];                                  \
                                                                                                   \
					chains[c] = cua_combine_##family(chains[c], (element));    \
				}                                                                  \
			}                                                                          \
			for (int c = 0; c < 16; c++)                                               \
				t = cua_combine_##family(t, chains[c]);                            \
		} else if (end - begin >= 8) {                                                     \
			A chains[4] = {0};                                                         \
                                                                                                   \
			for (; end - i >= 4; i += 4) {                                             \
				_Pragma("GCC unroll 4") for (int c = 0; c < 4; c++)                \
				{                                                                  \
					T a = x[i + (uint64_t)c];                                  \
                                                                                                   \
					chains[c] = cua_combine_##family(chains[c], (element));    \
				}                                                                  \
			}                                                                          \
			t = cua_combine_##family(cua_combine_##family(chains[0], chains[1]),       \
						 cua_combine_##family(chains[2], chains[3]));      \
		}                                                                                  \
		for (; i < end; i++) {                                                             \
			T a = x[i];                                                                \
                                                                                                   \
			t = cua_combine_##family(t, (element));                                    \
		}                                                                                  \
		return t;                                                                          \
	}                                                                                          \
                                                                                                   \
	static void part_##name(const struct job *job, unsigned worker, unsigned workers)          \
	{                                                                                          \
		const struct cua__path *p = &job->path;                                            \
		struct cua__path_part *part = &job->parts[worker];                                 \
		uint64_t i = part->first, i_end = part[1].first;                                   \
		uint64_t at = part_begin(p, worker, workers) - i + p->first;                       \
		uint64_t at_end = part_begin(p, worker + 1, workers) - i_end + p->first;           \
		const T *x = job->s->x;                                                            \
		R *results = job->s->results;                                                      \
		A t = 0;                                                                           \
                                                                                                   \
		part->ends = i_end - i;                                                            \
		part->head = 0;                                                                    \
		if (i < i_end) {                                                                   \
			uint64_t next = cua__path_offset(p, i + 1);                                \
                                                                                                   \
			if (at < next) {                                                           \
				t = range_##name(x, at, next);                                     \
				at = next;                                                         \
			}                                                                          \
			put(&part->head, &t, sizeof(t));                                           \
			for (i++; i < i_end; i++) {                                                \
				next = cua__path_offset(p, i + 1);                                 \
				if (at < next) {                                                   \
					t = range_##name(x, at, next);                             \
					at = next;                                                 \
					results[i] = (value);                                      \
				} else {                                                           \
					results[i] = (nothing);                                    \
				}                                                                  \
			}                                                                          \
			t = 0;                                                                     \
		}                                                                                  \
		if (at < at_end)                                                                   \
			t = range_##name(x, at, at_end);                                           \
		put(&part->tail, &t, sizeof(t));                                                   \
	}                                                                                          \
                                                                                                   \
	static void join_##name(const struct job *job, unsigned workers)                           \
	{                                                                                          \
		R *results = job->s->results;                                                      \
		A carry = 0, t;                                                                    \
                                                                                                   \
		for (unsigned w = 0; w < workers; w++) {                                           \
			const struct cua__path_part *part = &job->parts[w];                        \
			uint64_t i = part->first;                                                  \
                                                                                                   \
			if (part->ends) {                                                          \
				memcpy(&t, &part->head, sizeof(t));                                \
				t = cua_combine_##family(carry, t);                                \
				results[i] = cua__path_offset(&job->path, i) <                     \
							     cua__path_offset(&job->path, i + 1)   \
						     ? (value)                                     \
						     : (nothing);                                  \
				carry = 0;                                                         \
			}                                                                          \
			memcpy(&t, &part->tail, sizeof(t));                                        \
			carry = cua_combine_##family(carry, t);                                    \
		}                                                                                  \
	}
CUA__REDUCE_SINGLE(DEFINE_RANGE)

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

/* Segments i to i_end - 1. */
#define DEFINE_FIXED(kind, T, two, C, A, none, widen, combine, store)                              \
	static inline A element_##kind(const struct cua__reduce *r, T a)                           \
	{                                                                                          \
		C c = cua__tree_##kind##_fold(r, cua__tree_##none(), a, a, 0);                     \
                                                                                                   \
		return cua__tree_##widen(r, c, 1, 0, 0);                                           \
	}                                                                                          \
                                                                                                   \
	/* A sum of at most 32 packs, n > 0: each column has a single element and each pack a */   \
	/* single row. A missing element would add +0, so it is left out. */                       \
	static A short_##kind(const struct cua__reduce *r, const T *x, unsigned n)                 \
	{                                                                                          \
		enum { N = 16 / sizeof(T) };                                                       \
		unsigned packs = 0, left = n;                                                      \
		A v[32], c[N];                                                                     \
                                                                                                   \
		if (n == 1)                                                                        \
			return element_##kind(r, x[0]);                                            \
		for (; left; left -= left < N ? left : N, x += N) {                                \
			for (unsigned j = 0; j < N; j++)                                           \
				c[j] = j < left ? element_##kind(r, x[j])                          \
						: cua__tree_##widen(r, cua__tree_##none(), 0, 0,   \
								    0);                            \
			for (unsigned w = N / 2; w; w /= 2)                                        \
				for (unsigned j = 0; j < w; j++)                                   \
					c[j] = cua__tree_##combine(c[2 * j], c[2 * j + 1]);        \
			v[packs++] = c[0];                                                         \
		}                                                                                  \
		for (unsigned d = 16; d; d /= 2) {                                                 \
			if (packs <= d)                                                            \
				continue;                                                          \
			for (unsigned i = 0; i + d < packs; i++)                                   \
				v[i] = cua__tree_##combine(v[i], v[i + d]);                        \
			packs = d;                                                                 \
		}                                                                                  \
		return v[0];                                                                       \
	}                                                                                          \
                                                                                                   \
	static void fixed_##kind(struct fixed_job *f, uint64_t i, uint64_t i_end)                  \
	{                                                                                          \
		const struct cua__path *p = &f->job.path;                                          \
		const T *x = f->job.s->x;                                                          \
		uint64_t begin, end = cua__path_offset(p, i), n, index;                            \
		struct cua__reduce r = cua__segment_reduce(f->job.s);                              \
                                                                                                   \
		for (; i < i_end; i++) {                                                           \
			begin = end;                                                               \
			end = cua__path_offset(p, i + 1);                                          \
			n = begin < end ? end - begin : 0;                                         \
			if (n <= 32 * 16 / sizeof(T)) {                                            \
				A v = cua__tree_##widen(&r, cua__tree_##none(), 0, 0, 0);          \
                                                                                                   \
				if (n)                                                             \
					v = short_##kind(&r, x + begin, (unsigned)n);              \
				r.result = (T *)f->job.s->results + i;                             \
				cua__tree_##store(&r, n, v);                                       \
				continue;                                                          \
			}                                                                          \
			if (n >= LONG) {                                                           \
				index = cua_port_fetch_add_u64(&f->n_long, 1, CUA_RELAXED,         \
							       CUA_SCOPE_DEVICE,                   \
							       CUA_SPACE_GENERIC);                 \
				if (index < f->most_long) {                                        \
					f->long_segments[index] = i;                               \
					continue;                                                  \
				}                                                                  \
			}                                                                          \
			r = one_segment(f->job.s, i, begin, n);                                    \
			cua__cpu_tree_serial(&r);                                                  \
		}                                                                                  \
	}
CUA__TREE_FLOAT_SUMS(DEFINE_FIXED)

static void fixed_work(void *arg, unsigned worker, unsigned workers)
{
	struct fixed_job *f = arg;
	const struct cua__path_part *part = &f->job.parts[worker];
	fenv_t caller;

	(void)workers;
	/* rounds to nearest and keeps subnormals, as in cpu_tree.c */
	cua__float_mode_begin(&caller);
	switch (f->job.s->kind) {
#define RUN_FIXED(kind, T, two, C, A, none, widen, combine, store)                                 \
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

/* A run begins where a key differs from its predecessor. */
#define DEFINE_RUNS(bits)                                                                          \
	static inline uint64_t differing_##bits(const uint##bits##_t *keys)                        \
	{                                                                                          \
		uint##bits##_t count = 0;                                                          \
                                                                                                   \
		for (int i = 0; i < KEYS; i++)                                                     \
			count += keys[i] != keys[i - 1];                                           \
		return count;                                                                      \
	}                                                                                          \
                                                                                                   \
	static void count_##bits(void *arg, unsigned worker, unsigned workers)                     \
	{                                                                                          \
		const struct runs_job *job = arg;                                                  \
		const uint##bits##_t *keys = job->r->keys;                                         \
		uint64_t count = worker == 0;                                                      \
		size_t i, end;                                                                     \
                                                                                                   \
		cua__share((size_t)job->r->n, worker, workers, &i, &end);                          \
		i += i == 0;                                                                       \
		for (; end - i >= KEYS; i += KEYS)                                                 \
			count += differing_##bits(keys + i);                                       \
		for (; i < end; i++)                                                               \
			count += keys[i] != keys[i - 1];                                           \
		job->counts[worker] = count;                                                       \
	}                                                                                          \
                                                                                                   \
	static void number_##bits(void *arg, unsigned worker, unsigned workers)                    \
	{                                                                                          \
		const struct runs_job *job = arg;                                                  \
		const struct cua__runs *r = job->r;                                                \
		const uint##bits##_t *keys = r->keys;                                              \
		uint##bits##_t *unique = r->unique_keys;                                           \
		uint64_t run = job->counts[worker];                                                \
		size_t i, end;                                                                     \
                                                                                                   \
		cua__share((size_t)r->n, worker, workers, &i, &end);                               \
		/* the key after the last stored run is the end of that run */                     \
		while (i < end && run <= r->capacity) {                                            \
			if (i && end - i >= KEYS && !differing_##bits(keys + i)) {                 \
				i += KEYS;                                                         \
				continue;                                                          \
			}                                                                          \
			for (size_t stop = end - i > KEYS ? i + KEYS : end;                        \
			     i < stop && run <= r->capacity; i++) {                                \
				if (i && keys[i] == keys[i - 1])                                   \
					continue;                                                  \
				if (run < r->capacity)                                             \
					unique[run] = keys[i];                                     \
				r->offsets[run++] = i;                                             \
			}                                                                          \
		}                                                                                  \
	}
DEFINE_RUNS(32)
DEFINE_RUNS(64)

static size_t runs_scratch(struct cua_context *ctx, const struct cua__runs *r)
{
	return cua__workers(ctx, r->n, GRAIN) * sizeof(uint64_t);
}

static enum cua_status runs(struct cua_context *ctx, const struct cua__runs *r)
{
	struct runs_job job = {r, r->scratch};
	unsigned workers = cua__workers(ctx, r->n, GRAIN);
	uint64_t total = 0;

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
