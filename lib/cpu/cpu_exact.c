/* SPDX-License-Identifier: MIT */
/*
 * Exact sums on the CPU. A worker adds a contiguous range, batch by batch. It uses the windows of
 * exact_windows.h if the whole batch fits; else windows chosen for this batch; else it adds element
 * by element. The workers' sums are merged in any order.
 */
#include "config.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/exact_windows.h"
#include "cpu/float_mode.h"

/* A thread is started only for at least this many elements. */
#define GRAIN 32768
/* Elements that are added between two checks of a window. A window has room for 2^12 additions. */
#define BATCH 512
CUA_STATIC_ASSERT(2 * BATCH <= 4096, "the window of an error has two additions an element");

/* ---- batches through windows ---- */

typedef int batch_fn(const void *x, const void *y, int k, int64_t *sums);

struct kind {
	enum cua_reduce_op op;
	enum cua_type type;
	int size, fraction_bits, exponent_bits;
	int windows;
	int least, most; /* range of k */
};

#define KIND(op, type, t, size, windows, least, most)                                              \
	{                                                                                          \
		op, type, size, CUA__EXACT_FRACTION_##t, CUA__EXACT_EXPONENT_##t, windows, least,  \
			most                                                                       \
	}
#define ANY_KIND(op, type, t, size, windows)                                                       \
	KIND(op, type, t, size, windows, CUA__WINDOW_LEAST(windows), CUA__WINDOW_MOST)
static const struct kind kinds[] = {
	KIND(CUA_REDUCE_SUM, CUA_F16, f16, 2, 1, -24, -24),
	ANY_KIND(CUA_REDUCE_DOT, CUA_F16, f16, 2, 1),
	ANY_KIND(CUA_REDUCE_SUM, CUA_BF16, bf16, 2, 1),
	ANY_KIND(CUA_REDUCE_DOT, CUA_BF16, bf16, 2, 2),
	ANY_KIND(CUA_REDUCE_SUM, CUA_F32, f32, 4, 1),
	ANY_KIND(CUA_REDUCE_DOT, CUA_F32, f32, 4, 2),
	ANY_KIND(CUA_REDUCE_SUM, CUA_F64, f64, 8, 2),
	KIND(CUA_REDUCE_DOT, CUA_F64, f64, 8, 3, CUA__WINDOW_LEAST_DOT_F64, CUA__WINDOW_MOST),
};
#define COUNT_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The loops for a width of the vector registers. */
struct loops {
	batch_fn *batch[COUNT_KINDS];
	int (*any_batch)(struct cua_exact *e, const struct kind *kind, const void *x, const void *y,
			 int *power);
};

#define LOOP(name) name##_any
#define LOOP_TARGET
#define LANES 2
#define LOOP_FMA 0
#include "cpu/cpu_exact_loops.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_WIDER 1
#define LOOP(name) name##_avx2
#define LOOP_TARGET __attribute__((target("avx2,fma,f16c")))
#define LANES 4
#define LOOP_FMA 1
#include "cpu/cpu_exact_loops.h"

#define LOOP(name) name##_avx512
#define LOOP_TARGET __attribute__((target("avx512f,avx512dq,avx2,fma,f16c")))
#define LANES 8
#define LOOP_FMA 1
#include "cpu/cpu_exact_loops.h"
#endif

/* The loops for the widest registers of this processor. */
static const struct loops *widest(void)
{
#if HAVE_WIDER
	/* AVX2 implies F16C, a name that some compilers do not accept here */
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
			       ? &loops_avx512
			       : &loops_avx2;
#endif
	return &loops_any;
}

/* ---- batches element by element ---- */

static struct cua__exact_parts parts_at(const struct kind *kind, const void *x, size_t i)
{
	uint64_t bits;

	if (kind->size == 8)
		bits = ((const cua__raw64 *)x)[i];
	else if (kind->size == 4)
		bits = ((const cua__raw32 *)x)[i];
	else
		bits = ((const cua__raw16 *)x)[i];
	return cua__exact_parts_of(bits, kind->fraction_bits, kind->exponent_bits);
}

static void add_by_element(struct cua_exact *e, const struct kind *kind, const void *x,
			   const void *y)
{
	for (size_t i = 0; i < BATCH; i++) {
		struct cua__exact_parts a = parts_at(kind, x, i);

		if (kind->op == CUA_REDUCE_DOT)
			cua__exact_add_product(e, a, parts_at(kind, y, i));
		else
			cua__exact_add(e, a);
	}
}

/* ---- a worker's range ---- */

/*
 * Adds a batch of kinds[i]. *k is the quantum of its first window, and becomes that of the next
 * batch.
 */
static void add_batch(struct cua_exact *e, size_t i, const struct loops *loops, const void *x,
		      const void *y, int *k)
{
	const struct kind *kind = &kinds[i];
	int64_t sums[3];
	int power;

	if (loops->batch[i](x, y, *k, sums)) {
		for (int w = 0; w < kind->windows; w++)
			cua__exact_insert_signed(e->digit, sums[w], *k - w * CUA__WINDOW_STEP);
		cua__exact_count(e, (uint32_t)kind->windows);
		return;
	}
	power = *k + 50 - CUA__WINDOW_ROOM;
	if (loops->any_batch(e, kind, x, y, &power))
		*k = cua__window_for(power, kind->least, kind->most);
	else
		add_by_element(e, kind, x, y);
}

static void add_part(struct cua_exact *e, size_t i, const struct loops *loops, const void *x_,
		     const void *y_, size_t begin, size_t end)
{
	const char *x = x_, *y = y_ ? y_ : x_;
	size_t size = (size_t)kinds[i].size, rest;
	int k = cua__window_for(0, kinds[i].least, kinds[i].most);
	/* the last batch is padded with zeros, which change nothing */
	uint64_t last[2][BATCH] = {{0}, {0}};

	for (; end - begin >= BATCH; begin += BATCH)
		add_batch(e, i, loops, x + begin * size, y + begin * size, &k);
	rest = end - begin;
	if (!rest)
		return;
	memcpy(last[0], x + begin * size, rest * size);
	memcpy(last[1], y + begin * size, rest * size);
	add_batch(e, i, loops, last[0], last[1], &k);
}

/* ---- the call ---- */

struct job {
	const struct cua__exact *reduce;
	size_t kind;
	const struct loops *loops;
	uint64_t n;
	struct cua_spinlock lock;
	struct cua_exact sum;
};

static void work(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	struct cua_exact sum = CUA_EXACT_INIT;
	fenv_t mode;
	size_t begin, end;

	cua__float_mode_begin(&mode);
	cua__share(job->n, worker, workers, &begin, &end);
	add_part(&sum, job->kind, job->loops, job->reduce->x, job->reduce->y, begin, end);
	cua__float_mode_end(&mode);
	CUA_WITH_LOCK (&job->lock)
		cua_exact_merge(&job->sum, &sum);
}

static enum cua_status cpu_run(struct cua_context *ctx, const struct cua__exact *r)
{
	struct job job = {.reduce = r, .n = r->n, .lock = CUA_SPINLOCK_INIT, .sum = CUA_EXACT_INIT};

	while (kinds[job.kind].op != r->op || kinds[job.kind].type != r->type)
		job.kind++;
	job.loops = widest();
	if (r->count && *r->count < r->n)
		job.n = *r->count;
	if (job.n)
		cua__parallel(ctx, cua__workers(ctx, job.n, GRAIN), work, &job);
	cua_exact_normalize(&job.sum);
	if (r->result)
		cua__exact_store(job.sum.digit, 0, CUA_EXACT_DIGITS - 1, job.sum.flags,
				 r->result_type, r->result);
	else {
		if (r->fresh)
			cua_exact_init(r->partial);
		cua_exact_merge(r->partial, &job.sum);
		cua_exact_normalize(r->partial);
	}
	return CUA_OK;
}

static enum cua_status cpu_finish(struct cua_context *ctx, const struct cua__exact *r)
{
	struct cua_exact sum = CUA_EXACT_INIT;

	(void)ctx;
	for (uint64_t p = 0; p < r->partials; p++)
		cua_exact_merge(&sum, &r->partial[p]);
	cua_exact_normalize(&sum);
	cua__exact_store(sum.digit, 0, CUA_EXACT_DIGITS - 1, sum.flags, r->result_type, r->result);
	return CUA_OK;
}

const struct cua__exact_ops cua__cpu_exact = {.run = cpu_run, .finish = cpu_finish};
