/* SPDX-License-Identifier: MIT */
/*
 * Joins on the CPU: each worker processes a contiguous share of the items of a step. Lookups process
 * a batch of keys at a time and prefetch their slots, and the keys of the rows in these slots,
 * because both are random accesses.
 */
#include "config.h"

#include "kernels/join_kernel.h"

/* A thread is started only for at least this many items. */
#define GRAIN 16384
#define BATCH 64u

struct work {
	enum cua__join_step step;
	const struct cua__join_job *j;
	uint64_t n;
};

CUA_FORCE void look_up(enum cua__join_step step, const struct cua__join_job *j, uint64_t begin,
		       uint64_t end, int wide)
{
	const struct cua__distinct *d = &j->d;
	const size_t number = wide ? 8 : 4;
	struct cua_u128 key[BATCH];
	uint64_t home[BATCH];

	for (uint64_t i = begin; i < end; i += BATCH) {
		const uint32_t n = end - i < BATCH ? (uint32_t)(end - i) : BATCH;

		for (uint32_t k = 0; k < n; k++) {
			key[k] = cua__group_key_in(d, j->keys, i + k);
			home[k] = cua__group_home(d, key[k]);
			__builtin_prefetch((char *)d->table + home[k] * number);
		}
		for (uint32_t k = 0; k < n; k++) {
			const uint64_t row = cua__number_get(d->table, home[k], wide);

			if (row == CUA__GROUP_NONE)
				continue;
			__builtin_prefetch((const char *)d->keys + row * d->key_size);
			if (step == CUA__JOIN_MATCH)
				__builtin_prefetch((char *)j->lists + 2 * home[k] * number);
		}
		for (uint32_t k = 0; k < n; k++) {
			if (step == CUA__JOIN_FIND)
				cua__join_find(j, i + k, key[k], home[k], wide);
			else
				cua__join_match(j, i + k, key[k], home[k], wide);
		}
	}
}

CUA_FORCE void run_items(enum cua__join_step step, const struct cua__join_job *j, uint64_t begin,
			 uint64_t end, int wide)
{
	if (step == CUA__JOIN_FIND || step == CUA__JOIN_MATCH) {
		look_up(step, j, begin, end, wide);
	} else if (step == CUA__JOIN_WRITE) {
		cua__join_write(j, begin, end, 0, 1, wide);
	} else {
		for (uint64_t i = begin; i < end; i++)
			cua__join_item(step, j, i, wide);
	}
}

/* A case for each step, so that the step is a constant in its loop. */
#define CASE(step)                                                                                 \
	case step:                                                                                 \
		if (wide)                                                                          \
			run_items(step, j, begin, end, 1);                                         \
		else                                                                               \
			run_items(step, j, begin, end, 0);                                         \
		break;

static void run_share(enum cua__join_step step, const struct cua__join_job *j, uint64_t begin,
		      uint64_t end)
{
	const int wide = j->d.wide;

	switch (step) {
		CASE(CUA__JOIN_FIND)
		CASE(CUA__JOIN_ROWS)
		CASE(CUA__JOIN_LISTS)
		CASE(CUA__JOIN_MATCH)
		CASE(CUA__JOIN_SUM)
		CASE(CUA__JOIN_SCAN)
		CASE(CUA__JOIN_OFFSET)
		CASE(CUA__JOIN_WRITE)
	default: break;
	}
}

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct work *w = arg;
	size_t begin, end;

	cua__share((size_t)w->n, worker, workers, &begin, &end);
	run_share(w->step, w->j, begin, end);
}

static enum cua_status cpu_run(struct cua_context *ctx, enum cua__join_step step,
			       const struct cua__join_job *j, uint64_t n)
{
	struct work w = {step, j, n};
	unsigned workers;

	if (step == CUA__JOIN_WRITE && cua__join_stored(j) < n)
		w.n = cua__join_stored(j);
	/* a part is an item for a worker of its own */
	workers = cua__join_has_warps(step) ? (unsigned)n : cua__workers(ctx, (size_t)w.n, GRAIN);
	cua__parallel(ctx, workers, work, &w);
	return CUA_OK;
}

const struct cua__join_ops cua__cpu_join = {.run = cpu_run};
