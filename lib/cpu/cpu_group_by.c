/* SPDX-License-Identifier: MIT */
/*
 * Calls by key on the CPU: each worker processes a contiguous share of the items of a step. CLAIM
 * processes a batch of rows at a time and prefetches their slots, and the keys of the rows in these
 * slots, because both are random accesses.
 */
#include "config.h"

#include "cpu/float_mode.h"
#include "kernels/group_by_kernel.h"

/* A thread is started only for at least this many items. */
#define GRAIN 16384
#define BATCH 64u

struct work {
	enum cua__group_step step;
	const struct cua__group_job *j;
	uint64_t n;
};

CUA_FORCE void claim(const struct cua__distinct *d, uint64_t begin, uint64_t end, int wide)
{
	struct cua_u128 key[BATCH];
	uint64_t home[BATCH];

	for (uint64_t i = begin; i < end; i += BATCH) {
		const uint32_t n = end - i < BATCH ? (uint32_t)(end - i) : BATCH;

		for (uint32_t k = 0; k < n; k++) {
			key[k] = cua__group_key(d, i + k);
			home[k] = cua__group_home(d, key[k]);
			__builtin_prefetch((char *)d->table + home[k] * (wide ? 8 : 4), 1);
		}
		for (uint32_t k = 0; k < n; k++) {
			const uint64_t row = cua__number_load(d->table, home[k], wide);

			if (row != CUA__GROUP_NONE)
				__builtin_prefetch((const char *)d->keys + row * d->key_size);
		}
		for (uint32_t k = 0; k < n; k++)
			cua__group_claim(d, i + k, key[k], home[k], wide);
	}
}

CUA_FORCE void run_items(enum cua__group_step step, const struct cua__group_job *j, uint64_t begin,
			 uint64_t end, int wide)
{
	uint64_t counter[CUA__GROUP_DIGITS];

	if (step == CUA__GROUP_CLAIM) {
		claim(&j->d, begin, end, wide);
		return;
	}
	for (uint64_t i = begin; i < end; i++)
		cua__group_item(step, j, i, counter, wide);
}

/* A case for each step, so that the step is a constant in its loop. */
#define CASE(step)                                                                                 \
	case step:                                                                                 \
		if (wide)                                                                          \
			run_items(step, j, begin, end, 1);                                         \
		else                                                                               \
			run_items(step, j, begin, end, 0);                                         \
		break;

static void run_share(enum cua__group_step step, const struct cua__group_job *j, uint64_t begin,
		      uint64_t end)
{
	const int wide = j->d.wide;

	switch (step) {
		CASE(CUA__GROUP_CLEAR)
		CASE(CUA__GROUP_CLAIM)
		CASE(CUA__GROUP_FLAG)
		CASE(CUA__GROUP_ORDER)
		CASE(CUA__GROUP_SORT_COUNT)
		CASE(CUA__GROUP_SORT_SUM)
		CASE(CUA__GROUP_SORT_MOVE)
		CASE(CUA__GROUP_ASSIGN)
		CASE(CUA__GROUP_NUMBER)
		CASE(CUA__GROUP_KEYS)
		CASE(CUA__GROUP_MASK)
		CASE(CUA__GROUP_ONES)
		CASE(CUA__GROUP_LEAST_ROW)
		CASE(CUA__GROUP_GREATEST_ROW)
		CASE(CUA__GROUP_GATHER)
		CASE(CUA__GROUP_CONVERT)
		CASE(CUA__GROUP_SUBTRACT)
		CASE(CUA__GROUP_REFINE)
		CASE(CUA__GROUP_SQUARE)
		CASE(CUA__GROUP_VARIANCE)
		CASE(CUA__GROUP_INVERSE)
		CASE(CUA__GROUP_FIRST_ROWS)
	default: break;
	}
}

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct work *w = arg;
	size_t begin, end;
	fenv_t mode;

	cua__float_mode_begin(&mode);
	cua__share((size_t)w->n, worker, workers, &begin, &end);
	run_share(w->step, w->j, begin, end);
	cua__float_mode_end(&mode);
}

static enum cua_status cpu_run(struct cua_context *ctx, enum cua__group_step step,
			       const struct cua__group_job *j, uint64_t n)
{
	struct work w = {step, j, n};
	unsigned workers;

	if (!cua__group_has_rows(step) && !cua__group_has_warps(step)) {
		const uint64_t stored = cua__group_stored(&j->d);

		w.n = n < stored ? n : stored;
	}
	/* a part of the sort is an item for a worker of its own */
	workers = step == CUA__GROUP_SORT_COUNT || step == CUA__GROUP_SORT_MOVE
			  ? (unsigned)n
			  : cua__workers(ctx, (size_t)w.n, GRAIN);
	cua__parallel(ctx, workers, work, &w);
	return CUA_OK;
}

static uint32_t cpu_parts(struct cua_context *ctx, uint64_t n)
{
	return cua__workers(ctx, (size_t)n, GRAIN);
}

const struct cua__group_by_ops cua__cpu_group_by = {.run = cpu_run, .parts = cpu_parts};
