/* SPDX-License-Identifier: MIT */
/* Distinct keys if there are few: the sequence of steps of lib/kernels/group_by_few.h. */
#include "config.h"

#include "backend/group_by_backend.h"

/* Fewer rows are faster by the steps of any number of groups. */
#ifndef CUA__FEW_ROWS
#define CUA__FEW_ROWS (1u << 17)
#endif
/* Of more rows, the keys of a part are collected first. */
#ifndef CUA__FEW_PART
#define CUA__FEW_PART (1u << 20)
#endif

/* Rows of the part: enough that each of the most groups, if they are alike, has a row there. */
static uint64_t part_of(uint64_t n)
{
	const uint64_t least = CUA__FEW_PART / 16, most = (uint64_t)1 << 22;

	return n / 64 < least ? least : n / 64 > most ? most : n / 64;
}

int cua__few_plan(struct cua_context *ctx, const struct cua__distinct *d,
		  const struct cua__group_sums *s, struct cua__few_job *j)
{
	memset(j, 0, sizeof(*j));
	if (!CUA__OPS(ctx, group_by)->few || d->n < CUA__FEW_ROWS || d->wide || d->key_size > 8)
		return 0;
	j->d = *d;
	if (s)
		j->s = *s;
	return CUA__OPS(ctx, group_by)->few_fits(ctx, j);
}

/* Sets the addresses. The first *zeros bytes from the state on must be zero. */
static void place(struct cua__few_job *j, struct cua__arena *a, size_t *zeros)
{
	const size_t slots = (size_t)1 << j->log, begin = a->used;
	const size_t counts = j->s.counts ? slots / 4 : 0;
	const size_t sums = j->s.type != CUA_NONE ? slots / 4 : 0;

	j->state = cua__arena_next(a, sizeof(*j->state));
	j->hash = cua__arena_next(a, slots * sizeof(*j->hash));
	j->count = cua__arena_next(a, counts * sizeof(*j->count));
	j->sum = cua__arena_next(a, sums * CUA__FEW_SUM_WORDS * sizeof(*j->sum));
	*zeros = a->used - begin;
	j->least = cua__arena_next(a, slots * sizeof(*j->least));
	j->known = cua__arena_next(a, slots * sizeof(*j->known));
	j->number = cua__arena_next(a, slots * sizeof(*j->number));
}

void cua__few_place(const struct cua__few_job *j, struct cua__arena *a)
{
	struct cua__few_job placed = *j;
	size_t zeros;

	place(&placed, a, &zeros);
}

/* Collects the keys of the first j->rows rows, and runs the steps that follow. */
static enum cua_status attempt(struct cua_context *ctx, const struct cua__few_job *j, size_t zeros,
			       enum cua__few_want want, struct cua__few_state *state)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	enum cua_status status = ctx->runtime->set_bytes(ctx, j->state, 0, zeros);

	if (!status)
		status = ctx->runtime->set_bytes(ctx, j->least, 0xff, sizeof(*j->least) << j->log);
	if (!status)
		status = ops->few(ctx, CUA__FEW_COLLECT, j);
	if (!status)
		status = ops->few(ctx, CUA__FEW_ORDER, j);
	if (!status && want == CUA__FEW_NUMBERS)
		status = ops->few(ctx, CUA__FEW_NUMBER, j);
	if (!status && want == CUA__FEW_SUMS)
		status = ops->few(ctx, CUA__FEW_ACCUMULATE, j);
	if (!status && want == CUA__FEW_SUMS)
		status = ops->few(ctx, CUA__FEW_ROUND, j);
	if (!status)
		status = ctx->runtime->copy(ctx, state, j->state, sizeof(*state));
	return status ? status : ctx->runtime->synchronize(ctx);
}

enum cua_status cua__few_run(struct cua_context *ctx, struct cua__few_job *j, struct cua__arena a,
			     enum cua__few_want want, uint64_t *groups)
{
	const int in_part = want != CUA__FEW_KEYS && j->d.n >= CUA__FEW_PART;
	struct cua__few_state state = {0};
	enum cua_status status;
	size_t zeros;

	place(j, &a, &zeros);
	j->d.seed = cua__random_seed().lo;
	j->rows = in_part ? part_of(j->d.n) : j->d.n;
	status = attempt(ctx, j, zeros, want, &state);
	if (!status && !state.unfit && state.missed) {
		j->rows = j->d.n;
		status = attempt(ctx, j, zeros, want, &state);
	}
	*groups = status || state.unfit ? 0 : state.groups;
	return status;
}
