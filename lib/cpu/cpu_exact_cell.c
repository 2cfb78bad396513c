/* SPDX-License-Identifier: MIT */
/* Exact cells on the CPU: the phases of lib/kernels/exact_cell_kernel.h, in parallel loops. */
#include "config.h"

#include "kernels/exact_cell_kernel.h"

/* A thread is started only for at least this many cells, spills or elements. */
#define CELLS_GRAIN 8192
#define SPILLS_GRAIN 2048
#define RANGE_GRAIN 32768

/* ---- finish ---- */

struct round {
	const struct cua__cells_job *j;
	uint64_t begin; /* the first slot of the round */
};

static void store_work(void *arg, unsigned worker, unsigned workers)
{
	const struct cua__cells_job *j = arg;
	size_t i, end;

	cua__share((size_t)j->c.cells, worker, workers, &i, &end);
	if (j->c.type == CUA_F32)
		for (; i < end; i++)
			cua__cells_store(j, i, CUA_F32);
	else
		for (; i < end; i++)
			cua__cells_store(j, i, CUA_F64);
}

static void spill_work(void *arg, unsigned worker, unsigned workers)
{
	const struct round *r = arg;
	size_t k, end;

	cua__share((size_t)cua__cells_spills(r->j), worker, workers, &k, &end);
	for (; k < end; k++)
		cua__cells_add_spill(r->j, k, r->begin);
}

static void round_work(void *arg, unsigned worker, unsigned workers)
{
	const struct round *r = arg;
	size_t s, end;

	cua__share((size_t)cua__cells_slots(r->j, r->begin), worker, workers, &s, &end);
	for (; s < end; s++)
		cua__cells_round(r->j, s, r->begin);
}

static size_t cpu_scratch(struct cua_context *ctx, const struct cua__cells *c)
{
	struct cua__cells_job j;

	(void)ctx;
	cua__cells_plan(c, &j);
	return cua__cells_lay(&j, NULL);
}

static enum cua_status cpu_finish(struct cua_context *ctx, const struct cua__cells *c)
{
	struct cua__cells_job j;
	struct round r = {.j = &j};

	cua__cells_plan(c, &j);
	cua__cells_lay(&j, c->scratch);
	memset(j.state, 0, sizeof(*j.state));
	cua__parallel(ctx, cua__workers(ctx, (size_t)c->cells, CELLS_GRAIN), store_work, &j);
	for (; cua__cells_slots(&j, r.begin); r.begin += j.round_slots) {
		const size_t spills = (size_t)cua__cells_spills(&j);
		const size_t slots = (size_t)cua__cells_slots(&j, r.begin);

		cua__parallel(ctx, cua__workers(ctx, spills, SPILLS_GRAIN), spill_work, &r);
		cua__parallel(ctx, cua__workers(ctx, slots, SPILLS_GRAIN), round_work, &r);
	}
	if (c->lost)
		*c->lost = j.state->lost;
	return CUA_OK;
}

/* ---- ranges ---- */

struct range_job {
	const struct cua__range *r;
	uint64_t *bin; /* the counters of all workers */
};

static void count_work(void *arg, unsigned worker, unsigned workers)
{
	const struct range_job *j = arg;
	const enum cua_type type = j->r->type;
	const uint32_t size = cua__element_size(type);
	uint64_t *bin = j->bin + (size_t)worker * CUA__RANGE_BINS_MAX;
	size_t i, end;

	memset(bin, 0, CUA__RANGE_BINS_MAX * sizeof(*bin));
	cua__share((size_t)j->r->n, worker, workers, &i, &end);
	for (; i < end; i++) {
		uint32_t at[2];

		if (!cua__range_bins(type, cua__element_load(size, j->r->x, i), at))
			continue;
		bin[at[0]]++;
		if (at[1] != at[0])
			bin[at[1]]++;
	}
}

static unsigned range_workers(const struct cua_context *ctx, const struct cua__range *r)
{
	return cua__workers(ctx, (size_t)r->n, RANGE_GRAIN);
}

static size_t cpu_range_scratch(struct cua_context *ctx, const struct cua__range *r)
{
	return (size_t)range_workers(ctx, r) * CUA__RANGE_BINS_MAX * sizeof(uint64_t);
}

static enum cua_status cpu_range(struct cua_context *ctx, const struct cua__range *r)
{
	struct range_job j = {.r = r, .bin = r->scratch};
	const unsigned workers = range_workers(ctx, r);

	cua__parallel(ctx, workers, count_work, &j);
	for (unsigned w = 1; w < workers; w++)
		for (uint32_t k = 0; k < CUA__RANGE_BINS(r->type); k++)
			j.bin[k] += j.bin[(size_t)w * CUA__RANGE_BINS_MAX + k];
	cua__range_choose(r->type, j.bin, r->result);
	return CUA_OK;
}

/* In the order of the struct's members. */
const struct cua__cells_ops cua__cpu_cells = {cpu_scratch, cpu_finish, cpu_range_scratch,
					      cpu_range};
