/* SPDX-License-Identifier: MIT */
/*
 * Scatters on the CPU. Elements are combined in cells, 64 bits or more for a target. There are two
 * ways:
 * - private: few targets. Each worker has cells for all targets and processes a contiguous part of
 *   the input. Then the workers' cells are combined.
 * - regions: many targets, or few elements. Adjacent targets form regions, with cells that fit a cache.
 *   A pass makes records of the rows that belong to some adjacent regions, sorted by region. Then a
 *   worker processes a region and writes its targets. A region with too many records has private
 *   cells of all workers.
 *
 * Sums of floats are exact. A scan of all elements finds the least and the greatest position of
 * their bits. If these are near each other, a cell is a word of 64 or 128 bits, and otherwise it has
 * digits. If a word overflows, the targets are processed again with a wider form.
 */
#include "config.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "cpu/cpu_scatter_batches.h"
#include "cpu/cpu_scatter_finish.h"
#include "cpu/cpu_scatter_forms.h"

/* The most bytes of private cells: of a worker, and of all. Wide rows are hardly random accesses. */
#define PRIVATE_BYTES ((size_t)40 << 20)
#define PRIVATE_ALL_BYTES ((size_t)64 << 20)
#define WIDE_ROW 16
/* A worker has at least so many bytes for cells with digits, if they need so many. */
#define DIGITS_BYTES ((size_t)256 << 10)
/* The most cells of a region with several rows; with many targets; and how many are many. */
#define REGION_CELLS 65536u
#define REGION_CELLS_MANY 262144u
#define MANY ((uint64_t)1 << 24)
/* The most cells that the regions of a job have, and the most regions of a pass. */
#define MOST_CELLS ((uint64_t)1 << 31)
#define FAN 2048u
/* Records of a pass, at least, if there are so many. */
#define LEAST_ROOM ((uint64_t)1 << 20)

static float f32_of_f16(uint16_t bits)
{
	return cua__element_f32(CUA_F16, bits);
}

static float f32_of_bf16(uint16_t bits)
{
	return cua__element_f32(CUA_BF16, bits);
}

#define LOOP(name) name##_any
#define LOOP_TARGET
#define LOOP_COMPRESS 0
#include "cpu/cpu_scatter_loops.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_WIDER 1
#define LOOP(name) name##_avx2
#define LOOP_TARGET __attribute__((target("avx2")))
#define LOOP_COMPRESS 0
#include "cpu/cpu_scatter_loops.h"

#define LOOP(name) name##_avx512
#define LOOP_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define LOOP_COMPRESS 1
#include "cpu/cpu_scatter_loops.h"
#endif

/* The loops for the widest registers of this processor. */
static const struct loops *widest(void)
{
#if HAVE_WIDER
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		return &loops_avx512;
	if (__builtin_cpu_supports("avx2"))
		return &loops_avx2;
#endif
	return &loops_any;
}

/* ---- the plan ---- */

/* The decisions that follow from the arguments of a call. */
struct plan {
	int sums_floats;
	int is_private; /* each worker has cells for all targets */
	unsigned workers;
	size_t each;      /* bytes of a copy */
	unsigned shift;   /* of regions */
	uint64_t rows;    /* of the regions, at once */
	uint64_t regions; /* for so many rows */
	int narrow;
	uint64_t room;
};

static int sums_floats(const struct cua__scatter *s)
{
	return cua__is_float(s->type) && (s->op == CUA_SCATTER_ADD || s->op == CUA_SCATTER_MEAN);
}

/* Whether each worker has cells for all targets, `bytes` for a row of them. */
static int has_private(const struct cua__scatter *s, unsigned workers, size_t bytes)
{
	const uint64_t most = s->width < WIDE_ROW ? PRIVATE_BYTES : PRIVATE_ALL_BYTES;

	return s->targets <= least(most, PRIVATE_ALL_BYTES / workers) / bytes &&
	       s->targets / 8 <= s->n + 512;
}

static void plan_regions(struct plan *p, const struct cua__scatter *s)
{
	const int many = s->targets * s->width >= MANY && s->n >= s->targets / 8;
	const uint32_t most = many ? REGION_CELLS_MANY : REGION_CELLS;

	while (((uint64_t)s->width << (p->shift + 1)) <= most)
		p->shift++;
	p->rows = least(MOST_CELLS / s->width, s->targets);
	p->regions = ((p->rows - 1) >> p->shift) + 1;
	p->narrow = s->width == 1 && cua__element_size(s->type) <= 4;
	p->room = s->n / 2 + s->n / 16;
	p->room = least(s->n, p->room > LEAST_ROOM ? p->room : LEAST_ROOM);
}

static void make_plan(struct plan *p, const struct cua_context *ctx, const struct cua__scatter *s)
{
	const uint64_t elements = s->n * s->width, targets = s->targets * s->width;
	size_t cell, digits;

	memset(p, 0, sizeof(*p));
	p->sums_floats = sums_floats(s);
	p->workers = cua__workers(ctx, elements + (s->overwrite ? targets : 0), GRAIN);
	/* words of 64 bits rarely suffice for sums of doubles */
	cell = row_bytes(s, p->sums_floats, p->sums_floats && s->type == CUA_F64 ? 2 : 1);
	p->is_private = has_private(s, p->workers, cell);
	if (!p->is_private)
		plan_regions(p, s);
	p->each = (p->is_private ? s->targets : (uint64_t)1 << p->shift) * cell;
	if (p->sums_floats) {
		digits = row_bytes(s, 1, CUA__SCATTER_DIGITS + 1);
		if (p->each < DIGITS_BYTES)
			p->each = least(DIGITS_BYTES / digits + 1, s->targets) * digits;
		if (p->each < digits)
			p->each = digits;
	}
	/* whole cache lines, and no two workers in one */
	p->each = ((p->each + 63) & ~(size_t)63) + 2 * sizeof(struct own);
}

static size_t cpu_scratch(struct cua_context *ctx, const struct cua__scatter *s)
{
	struct plan p;
	size_t words = 0;

	if (!s->targets)
		return 0;
	make_plan(&p, ctx, s);
	if (!p.is_private)
		words = p.workers * p.regions + p.regions + 1 + p.room * (p.narrow ? 1 : 2);
	return p.workers * p.each + words * sizeof(uint64_t);
}

/* ---- private cells ---- */

static void private_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *j = arg;
	struct range *r = &j->range;
	struct own *own = own_of(j, worker);
	const struct part p = part_of(j, own, r->form, r->rows);
	uint64_t added = 0, inside = 0;
	int overflow = 0;
	struct batch b;
	size_t begin, end;
	fenv_t mode;

	cua__float_mode_begin(&mode);
	memset(b.gathered, 0, sizeof(b.gathered));
	make_clean(j, own, r->form, r->rows);
	cua__share(j->s->n, worker, workers, &begin, &end);
	for (uint64_t i = begin; i < end && !overflow; i += BATCH) {
		read_ahead(j, i, 1);
		take_input(j, r->first, r->rows, i, (uint32_t)least(BATCH, end - i), &b);
		overflow = add_batch(j, r->form, &p, &b);
		inside += b.n;
		added += b.n;
		if (r->form->kind == KIND_DIGITS && added > MOST_ADDITIONS) {
			carry_digits(j, r->form, &p, r->rows);
			added = 0;
		}
	}
	cua__float_mode_end(&mode);
	CUA_WITH_LOCK (&j->lock) {
		r->failed |= (uint32_t)overflow;
		r->inside += inside;
	}
}

/* ---- ranges ---- */

static void finish_work(void *arg, unsigned worker, unsigned workers)
{
	const struct job *j = arg;
	const struct range *r = &j->range;
	const struct parts parts = {part_of(j, own_of(j, 0), r->form, r->rows), j->each,
				    j->workers};
	size_t begin, end;
	fenv_t mode;

	cua__float_mode_begin(&mode);
	cua__share(r->rows, worker, workers, &begin, &end);
	finish_rows(j, r->form, r->first, &parts, begin, end);
	cua__float_mode_end(&mode);
}

static void forget_clean(struct job *j)
{
	for (unsigned c = 0; c < j->workers; c++)
		own_of(j, c)->clean = 0;
}

/*
 * Processes rows of targets by private cells, with this form or a wider form. Returns the number of
 * rows of x that belong to them.
 */
static uint64_t run_ranges(struct cua_context *ctx, struct job *j, uint64_t first, uint64_t rows,
			   const struct form *f)
{
	uint64_t inside = 0;

	for (uint64_t done = 0, step; done < rows; done += step) {
		step = least(rows - done, rows_that_fit(j, f));
		j->range = (struct range){.first = first + done, .rows = (uint32_t)step, .form = f};
		cua__parallel(ctx, j->workers, private_work, j);
		if (j->range.failed) {
			forget_clean(j);
			inside += run_ranges(ctx, j, first + done, step, f + 1);
			continue;
		}
		inside += j->range.inside;
		cua__parallel(ctx, j->workers, finish_work, j);
	}
	return inside;
}

/* ---- regions ---- */

/* The records of a region. */
struct region {
	uint64_t first; /* row */
	uint64_t begin, end;
};

static void run_region(const struct job *j, struct own *own, const struct region *r, uint32_t first,
		       uint32_t rows, const struct form *f, struct batch *b);

/*
 * Processes `rows` of a region from row `first` on, with this form or a wider form.
 */
static void run_records(const struct job *j, struct own *own, const struct region *r,
			uint32_t first, uint32_t rows, const struct form *f, struct batch *b)
{
	const struct parts parts = {part_of(j, own, f, rows), 0, 1};
	uint64_t inside = 0, added = 0;
	int overflow = 0;

	make_clean(j, own, f, rows);
	for (uint64_t i = r->begin; i < r->end && !overflow; i += BATCH) {
		take_records(j, i, (uint32_t)least(BATCH, r->end - i), first, rows, b);
		overflow = add_batch(j, f, &parts.first, b);
		inside += b->n;
		added += b->n;
		if (f->kind == KIND_DIGITS && added > MOST_ADDITIONS) {
			carry_digits(j, f, &parts.first, rows);
			added = 0;
		}
	}
	if (overflow) {
		own->clean = 0;
		run_region(j, own, r, first, rows, f + 1, b);
	} else if (j->s->overwrite || inside >= rows / 8) {
		finish_rows(j, f, r->first + first, &parts, 0, rows);
	} else {
		for (uint64_t i = r->begin; i < r->end && inside; i += BATCH) {
			take_records(j, i, (uint32_t)least(BATCH, r->end - i), first, rows, b);
			finish_some(j, f, r->first + first, &parts, b->at, b->n);
		}
	}
}

/* Processes rows of a region, as many at a time as fit the worker's memory. */
static void run_region(const struct job *j, struct own *own, const struct region *r, uint32_t first,
		       uint32_t rows, const struct form *f, struct batch *b)
{
	const uint32_t fit = rows_that_fit(j, f);

	for (uint32_t done = 0; done < rows; done += fit)
		run_records(j, own, r, first + done, (uint32_t)least(rows - done, fit), f, b);
}

/* Whether there is a next region for a worker; *i is its number. */
static int claim_region(struct regions *g, uint64_t *i)
{
	*i = g->begin +
	     cua_port_fetch_add_u64(&g->next, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	return *i < g->end;
}

static void regions_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *j = arg;
	struct regions *g = &j->regions;
	struct batch b;
	uint64_t i;
	fenv_t mode;

	(void)workers;
	cua__float_mode_begin(&mode);
	memset(b.gathered, 0, sizeof(b.gathered));
	while (claim_region(g, &i)) {
		const uint64_t first = i << g->shift;
		const struct region r = {j->range.first + first, g->start[i], g->start[i + 1]};

		if (j->s->overwrite || r.begin < r.end)
			run_region(j, own_of(j, worker), &r, 0,
				   (uint32_t)least((uint64_t)1 << g->shift, j->range.rows - first),
				   j->forms, &b);
	}
	cua__float_mode_end(&mode);
}

/* Processes rows of targets region by region. Returns the number of rows of x that belong to them. */
static uint64_t run_regions(struct cua_context *ctx, struct job *j, uint64_t first, uint32_t rows)
{
	struct regions *g = &j->regions;
	const struct range range = {.first = first, .rows = rows};
	uint64_t inside = 0, most = g->room, n;

	j->range = range;
	g->n = ((uint64_t)(rows - 1) >> g->shift) + 1;
	cua__parallel(ctx, j->workers, count_work, j);
	/* with more records, a region would keep a worker busy while the rest wait */
	if (j->workers > 1)
		most = least(most, g->room / 4 + 2 * (j->s->n / g->n));
	for (g->begin = 0; g->begin < g->n; g->begin = g->end) {
		g->end = g->begin;
		g->start[g->begin] = 0;
		while (g->end < g->n && g->end - g->begin < FAN) {
			n = region_records(j, g->end);
			if (n > most || g->start[g->end] + n > g->room)
				break;
			place_records(j, g->end++);
		}
		inside += g->start[g->end];
		if (g->end == g->begin) {
			const uint64_t row = g->end++ << g->shift;

			inside += run_ranges(ctx, j, first + row,
					     least((uint64_t)1 << g->shift, rows - row), j->forms);
			j->range = range;
			continue;
		}
		if (g->start[g->end])
			cua__parallel(ctx, j->workers, partition_work, j);
		g->next = 0;
		if (g->start[g->end] || j->s->overwrite)
			cua__parallel(ctx, j->workers, regions_work, j);
	}
	return inside;
}

/* ---- the call ---- */

static uint64_t run_job(struct cua_context *ctx, struct job *j, const struct plan *p)
{
	const uint64_t targets = j->s->targets;
	struct regions *g = &j->regions;
	uint64_t inside = 0;

	find_forms(ctx, j);
	if (p->is_private)
		return run_ranges(ctx, j, 0, targets, j->forms);
	g->shift = p->shift;
	g->room = p->room;
	g->narrow = p->narrow;
	g->count = (uint64_t *)(void *)(j->memory + p->workers * p->each);
	g->start = g->count + p->workers * p->regions;
	g->records = g->start + p->regions + 1;
	for (uint64_t first = 0; first < targets; first += p->rows)
		inside += run_regions(ctx, j, first, (uint32_t)least(p->rows, targets - first));
	return inside;
}

static enum cua_status cpu_run(struct cua_context *ctx, const struct cua__scatter *s)
{
	struct job j = {.s = s, .loops = widest(), .lock = CUA_SPINLOCK_INIT};
	uint64_t inside = 0;
	struct plan p;

	if (s->targets) {
		make_plan(&p, ctx, s);
		j.size = cua__element_size(s->type);
		j.index_size = cua__element_size(s->index_type);
		j.result_size = cua__element_size(s->result_type);
		j.sums_floats = p.sums_floats;
		j.limit = s->index_type == CUA_I32   ? least(s->targets, (uint64_t)1 << 31)
			  : s->index_type == CUA_U32 ? least(s->targets, (uint64_t)1 << 32)
						     : s->targets;
		j.workers = p.workers;
		j.memory = s->scratch;
		j.each = p.each;
		forget_clean(&j);
		inside = run_job(ctx, &j, &p);
	}
	if (s->skipped)
		*s->skipped = s->n - inside;
	return CUA_OK;
}

const struct cua__scatter_ops cua__cpu_scatter = {.scratch = cpu_scratch, .run = cpu_run};
