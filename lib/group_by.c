/* SPDX-License-Identifier: MIT */
/* Calls by key: argument checks, and the sequence of scatters and steps that combine the values. */
#include "config.h"

#include "backend/group_by_backend.h"
#include "backend/scatter_backend.h"

/* A checked aggregate, with the addresses that the backend uses. */
struct aggregate {
	enum cua_aggregate_op op;
	enum cua_type type, result_type;
	size_t size, result_size;
	uint32_t ddof;
	int valid_bits, has_mask;
	const void *values;
	const uint8_t *valid;
	void *out;
};

struct range {
	const void *p;
	size_t bytes;
};

/* The arrays of a call: outputs first. */
struct ranges {
	unsigned outputs, n;
	struct range range[3 * CUA_AGGREGATES_MAX + 8];
};

static void add_range(struct ranges *r, const void *p, size_t bytes)
{
	r->range[r->n].p = p;
	r->range[r->n++].bytes = p ? bytes : 0;
}

/* Whether an output overlaps any other array. */
static int ranges_overlap(const struct ranges *r)
{
	for (unsigned i = 0; i < r->outputs; i++)
		for (unsigned k = i + 1; k < r->n; k++)
			if (cua__overlap(r->range[i].p, r->range[i].bytes, r->range[k].p,
					 r->range[k].bytes))
				return 1;
	return 0;
}

/* ---- the checks that do not depend on the arrays ---- */

static enum cua_scatter_op scatter_op(enum cua_aggregate_op op)
{
	switch (op) {
	case CUA_AGGREGATE_MIN: return CUA_SCATTER_MIN;
	case CUA_AGGREGATE_MAX: return CUA_SCATTER_MAX;
	case CUA_AGGREGATE_MEAN:
	case CUA_AGGREGATE_VARIANCE: return CUA_SCATTER_MEAN;
	default: return CUA_SCATTER_ADD;
	}
}

static enum cua_type default_result(enum cua_aggregate_op op, enum cua_type type)
{
	switch (op) {
	case CUA_AGGREGATE_COUNT: return CUA_U64;
	case CUA_AGGREGATE_VARIANCE: return CUA_F64;
	case CUA_AGGREGATE_SUM:
		if (!cua__is_float(type))
			return cua__is_signed(type) ? CUA_I64 : CUA_U64;
		return type;
	case CUA_AGGREGATE_MEAN: return cua__scatter_default_result(CUA_SCATTER_MEAN, type);
	default: return type;
	}
}

static int has_types(enum cua_aggregate_op op, enum cua_type type, enum cua_type result)
{
	switch (op) {
	case CUA_AGGREGATE_COUNT:
		return result == CUA_U64 && (type == CUA_NONE || cua_type_size(type));
	case CUA_AGGREGATE_VARIANCE:
		return result == CUA_F64 &&
		       cua__scatter_has_types(CUA_SCATTER_MEAN, type,
					      cua__scatter_default_result(CUA_SCATTER_MEAN, type));
	case CUA_AGGREGATE_FIRST:
	case CUA_AGGREGATE_LAST: return cua_type_size(type) && result == type;
	default: return cua__scatter_has_types(scatter_op(op), type, result);
	}
}

static enum cua_status plan_aggregate(const struct cua_aggregate *user, struct aggregate *a)
{
	if ((int)user->op < CUA_AGGREGATE_COUNT || user->op > CUA_AGGREGATE_LAST ||
	    user->reserved || (unsigned)user->valid_bits > 1 ||
	    (user->ddof && user->op != CUA_AGGREGATE_VARIANCE))
		return CUA_ERROR_VALUE;
	a->op = user->op;
	a->type = user->type;
	a->result_type = user->result_type == CUA_NONE ? default_result(user->op, user->type)
						       : user->result_type;
	if (!has_types(a->op, a->type, a->result_type))
		return CUA_ERROR_TYPE;
	a->size = cua_type_size(a->type);
	a->result_size = cua_type_size(a->result_type);
	a->ddof = user->ddof;
	a->valid_bits = user->valid_bits;
	a->has_mask = user->valid != NULL;
	return CUA_OK;
}

static enum cua_status plan(const struct cua_context *ctx,
			    const struct cua_group_by_options *options, enum cua_type key_type,
			    size_t n, const struct cua_aggregate *aggregates, uint32_t count,
			    uint64_t capacity, struct cua__distinct *d, struct aggregate *a)
{
	struct cua_group_by_options o;
	enum cua_status status = CUA_OK;

	if (!ctx || (count && !aggregates))
		return CUA_ERROR_NULL;
	if (cua__options(options, &o, sizeof(o)))
		return CUA_ERROR_VALUE;
	if ((int)o.mode < CUA_REDUCE_AUTO || o.mode > CUA_REDUCE_EXACT ||
	    (int)o.order < CUA_KEY_ORDER_AUTO || o.order > CUA_KEY_ORDER_ANY ||
	    count > CUA_AGGREGATES_MAX)
		return CUA_ERROR_VALUE;
	for (uint32_t i = 0; i < count && !status; i++)
		status = plan_aggregate(&aggregates[i], &a[i]);
	return status ? status : cua__distinct_plan(d, key_type, n, capacity, o.order);
}

/* ---- the arrays ---- */

/* Bytes of the mask of an aggregate. */
static size_t mask_bytes(const struct aggregate *a, size_t n)
{
	return !a->has_mask ? 0 : a->valid_bits ? n / 8 + (n % 8 != 0) : n;
}

static enum cua_status check_aggregate(struct cua_context *ctx, const struct cua__distinct *d,
				       const struct cua_aggregate *user, struct aggregate *a)
{
	const int reads = d->room && a->op != CUA_AGGREGATE_COUNT;
	const size_t masked = d->room ? mask_bytes(a, (size_t)d->n) : 0;
	enum cua_status status;
	const void *p;

	status = cua__check_array(ctx, user->values, reads ? (size_t)d->n : 0, a->size, a->size,
				  &a->values);
	if (!status) {
		status = cua__check_array(ctx, user->valid, masked, 1, 1, &p);
		a->valid = p;
	}
	if (!status) {
		status = cua__check_array(ctx, user->out, (size_t)d->room, a->result_size,
					  a->result_size, &p);
		a->out = (void *)p;
	}
	return status;
}

static enum cua_status check_arrays(struct cua_context *ctx, struct cua__distinct *d,
				    const void *keys, const struct cua_aggregate *aggregates,
				    uint32_t count, struct aggregate *a, void *out_keys,
				    uint64_t *groups, void **keys_at)
{
	const size_t n = (size_t)d->n, room = (size_t)d->room;
	enum cua_status status;
	struct ranges r = {0};
	const void *p;

	if (!groups)
		return CUA_ERROR_NULL;
	status = cua__check_array(ctx, keys, n, d->key_size, d->key_size, &d->keys);
	*keys_at = NULL;
	if (!status && out_keys && room) {
		status = cua__check_array(ctx, out_keys, room, d->key_size, d->key_size, &p);
		*keys_at = (void *)p;
	}
	for (uint32_t i = 0; i < count && !status; i++)
		status = check_aggregate(ctx, d, &aggregates[i], &a[i]);
	if (status)
		return status;
	add_range(&r, groups, sizeof(*groups));
	add_range(&r, out_keys, room * d->key_size);
	for (uint32_t i = 0; i < count; i++)
		add_range(&r, aggregates[i].out, room * a[i].result_size);
	r.outputs = r.n;
	add_range(&r, keys, n * d->key_size);
	add_range(&r, aggregates, count * sizeof(*aggregates));
	for (uint32_t i = 0; i < count && room; i++) {
		if (a[i].op != CUA_AGGREGATE_COUNT)
			add_range(&r, aggregates[i].values, n * a[i].size);
		add_range(&r, aggregates[i].valid, mask_bytes(&a[i], n));
	}
	return ranges_overlap(&r) ? CUA_ERROR_OVERLAP : CUA_OK;
}

/* ---- scatters by group ---- */

static enum cua_type number_type(const struct cua__distinct *d)
{
	return d->wide ? CUA_U64 : CUA_U32;
}

/* A scatter that overwrites, without addresses. */
static struct cua__scatter scatter_of(const struct cua__distinct *d, enum cua_scatter_op op,
				      enum cua_type type, enum cua_type result_type)
{
	struct cua__scatter s;

	memset(&s, 0, sizeof(s));
	s.op = op;
	s.index_type = number_type(d);
	s.type = type;
	s.result_type = result_type;
	s.overwrite = 1;
	s.width = 1;
	s.n = d->n;
	return s;
}

/*
 * The numbers of targets that a scatter may have: powers of two, and the room for groups. So the
 * scratch memory of all of them is known in advance.
 */
static uint64_t targets_for(const struct cua__distinct *d, uint64_t groups)
{
	uint64_t targets = 1;

	while (targets < groups && targets < d->room)
		targets *= 2;
	return targets < d->room ? targets : d->room;
}

/* The most scratch memory of a scatter. */
static size_t scatter_scratch(struct cua_context *ctx, const struct cua__distinct *d,
			      struct cua__scatter s)
{
	size_t most = 0, bytes;

	do {
		s.targets = targets_for(d, s.targets + 1);
		bytes = CUA__OPS(ctx, scatter)->scratch(ctx, &s);
		most = bytes > most ? bytes : most;
	} while (s.targets < d->room);
	return most;
}

/* The arrays of an aggregate in scratch memory, and the scatters that it needs. */
struct placed {
	struct cua__group_job j;
	struct cua__scatter values, ones, sums;
	void *scratch; /* of each scatter */
};

static size_t most_scratch(struct cua_context *ctx, const struct aggregate *a,
			   const struct placed *p)
{
	const struct cua__distinct *d = &p->j.d;
	size_t values, ones, sums, most;

	switch (a->op) {
	case CUA_AGGREGATE_FIRST:
	case CUA_AGGREGATE_LAST: return 0;
	case CUA_AGGREGATE_COUNT: return scatter_scratch(ctx, d, p->ones);
	case CUA_AGGREGATE_VARIANCE: break;
	default: return scatter_scratch(ctx, d, p->values);
	}
	values = scatter_scratch(ctx, d, p->values);
	ones = scatter_scratch(ctx, d, p->ones);
	sums = scatter_scratch(ctx, d, p->sums);
	most = values > ones ? values : ones;
	return most > sums ? most : sums;
}

/* Whether the scatters of an aggregate need numbers without the rows of null values. */
static int needs_masked(const struct aggregate *a)
{
	return a->has_mask && a->op != CUA_AGGREGATE_COUNT && a->op != CUA_AGGREGATE_FIRST &&
	       a->op != CUA_AGGREGATE_LAST;
}

/* Places such numbers, shared by aggregates with the same mask; NULL if none are needed. */
static void *place_masked(const struct cua__distinct *d, const struct aggregate *a, uint32_t count,
			  struct cua__arena *arena)
{
	for (uint32_t i = 0; i < count; i++)
		if (needs_masked(&a[i]))
			return cua__arena_next(arena, (size_t)d->n * cua__number_size(d));
	return NULL;
}

/* Places the arrays of an aggregate; d->room is not 0. */
static void place(struct cua_context *ctx, const struct cua__distinct *d, const struct aggregate *a,
		  void *masked, struct cua__arena *arena, struct placed *p)
{
	const size_t n = (size_t)d->n, groups = (size_t)d->room * sizeof(double);
	struct cua__group_job *j = &p->j;
	const int varies = a->op == CUA_AGGREGATE_VARIANCE;
	const int picks = a->op == CUA_AGGREGATE_FIRST || a->op == CUA_AGGREGATE_LAST;

	memset(p, 0, sizeof(*p));
	j->d = *d;
	j->type = a->type;
	j->size = (uint32_t)a->size;
	j->valid = a->valid;
	j->valid_bits = a->valid_bits;
	j->values = a->values;
	j->out = a->out;
	j->index = d->number;
	j->ddof = a->ddof;
	p->values = scatter_of(d, scatter_op(a->op), varies ? CUA_F64 : a->type, a->result_type);
	p->ones = scatter_of(d, CUA_SCATTER_ADD, CUA_U8, CUA_U64);
	p->sums = scatter_of(d, CUA_SCATTER_ADD, CUA_F64, CUA_F64);
	if (needs_masked(a))
		j->index = j->masked = masked;
	if (varies || a->op == CUA_AGGREGATE_COUNT)
		j->ones = cua__arena_next(arena, n);
	if (picks)
		j->rows = cua__arena_next(arena, (size_t)d->room * cua__number_size(d));
	if (varies) {
		j->x = cua__arena_next(arena, n * sizeof(double));
		j->pivot = cua__arena_next(arena, groups);
		j->sum = cua__arena_next(arena, groups);
		j->square = cua__arena_next(arena, groups);
		j->valid_count = cua__arena_next(arena, groups);
	}
	p->scratch = cua__arena_next(arena, most_scratch(ctx, a, p));
}

/* ---- the work of an aggregate ---- */

static enum cua_status scatter(struct cua_context *ctx, const struct placed *p,
			       struct cua__scatter s, const void *x, void *out)
{
	s.index = p->j.index;
	s.x = x;
	s.out = out;
	s.targets = p->j.targets;
	s.scratch = p->scratch;
	return CUA__OPS(ctx, scatter)->run(ctx, &s);
}

/* Counts the valid rows of each group. */
static enum cua_status run_count(struct cua_context *ctx, const struct placed *p, void *out)
{
	enum cua_status status =
		CUA__OPS(ctx, group_by)->run(ctx, CUA__GROUP_ONES, &p->j, p->j.d.n);

	return status ? status : scatter(ctx, p, p->ones, p->j.ones, out);
}

/* The steps are those of the header's formula. */
static enum cua_status run_variance(struct cua_context *ctx, const struct placed *p)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	const struct cua__group_job *j = &p->j;
	enum cua_status status = run_count(ctx, p, j->valid_count);

	if (!status)
		status = ops->run(ctx, CUA__GROUP_CONVERT, j, j->d.n);
	if (!status)
		status = scatter(ctx, p, p->values, j->x, j->pivot);
	if (!status)
		status = ops->run(ctx, CUA__GROUP_SUBTRACT, j, j->d.n);
	if (!status)
		status = scatter(ctx, p, p->sums, j->x, j->sum);
	if (!status)
		status = ops->run(ctx, CUA__GROUP_REFINE, j, j->targets);
	if (!status)
		status = ops->run(ctx, CUA__GROUP_SUBTRACT, j, j->d.n);
	if (!status)
		status = scatter(ctx, p, p->sums, j->x, j->sum);
	if (!status)
		status = ops->run(ctx, CUA__GROUP_SQUARE, j, j->d.n);
	if (!status)
		status = scatter(ctx, p, p->sums, j->x, j->square);
	return status ? status : ops->run(ctx, CUA__GROUP_VARIANCE, j, j->targets);
}

static enum cua_status run_pick(struct cua_context *ctx, const struct aggregate *a,
				struct cua__group_job *j)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	const int last = a->op == CUA_AGGREGATE_LAST;
	enum cua_status status = CUA_OK;

	j->from_1 = last;
	if (!last && !a->has_mask) {
		j->rows = j->d.first;
	} else {
		status = ctx->runtime->set_bytes(ctx, j->rows, last ? 0 : 0xff,
						 (size_t)j->targets * cua__number_size(&j->d));
		if (!status)
			status =
				ops->run(ctx, last ? CUA__GROUP_GREATEST_ROW : CUA__GROUP_LEAST_ROW,
					 j, j->d.n);
	}
	return status ? status : ops->run(ctx, CUA__GROUP_GATHER, j, j->targets);
}

static enum cua_status run_aggregate(struct cua_context *ctx, const struct aggregate *a,
				     struct placed *p)
{
	if (a->op == CUA_AGGREGATE_COUNT)
		return run_count(ctx, p, a->out);
	if (a->op == CUA_AGGREGATE_FIRST || a->op == CUA_AGGREGATE_LAST)
		return run_pick(ctx, a, &p->j);
	return a->op == CUA_AGGREGATE_VARIANCE ? run_variance(ctx, p)
					       : scatter(ctx, p, p->values, a->values, a->out);
}

/* Runs the aggregates. The masked numbers are made again only if the mask changes. */
static enum cua_status run_aggregates(struct cua_context *ctx, const struct cua__distinct *d,
				      const struct aggregate *a, uint32_t count, uint64_t targets,
				      struct cua__arena arena)
{
	void *masked = place_masked(d, a, count, &arena);
	const struct aggregate *made = NULL;
	enum cua_status status = CUA_OK;
	struct cua__arena scratch;
	struct placed p;

	for (uint32_t i = 0; i < count && !status; i++) {
		scratch = arena;
		place(ctx, d, &a[i], masked, &scratch, &p);
		p.j.targets = targets;
		if (needs_masked(&a[i]) &&
		    (!made || made->valid != a[i].valid || made->valid_bits != a[i].valid_bits)) {
			status = CUA__OPS(ctx, group_by)->run(ctx, CUA__GROUP_MASK, &p.j, d->n);
			made = &a[i];
		}
		if (!status)
			status = run_aggregate(ctx, &a[i], &p);
	}
	return status;
}

/* ---- the steps that both calls share ---- */

/* The scratch memory of a call, without that of the count. */
static size_t scratch_bytes(struct cua_context *ctx, const struct cua__distinct *d,
			    const struct aggregate *a, uint32_t count)
{
	struct cua__distinct placed = *d;
	struct cua__arena arena = {NULL, 0};
	size_t kept, most;
	struct placed p;

	if (!d->n)
		return 0;
	cua__distinct_place(&placed, &arena);
	kept = arena.used;
	cua__distinct_place_scratch(ctx, &placed, &arena);
	most = arena.used;
	arena.used = kept;
	place_masked(d, a, count, &arena);
	kept = arena.used;
	for (uint32_t i = 0; i < count && d->room; i++) {
		arena.used = kept;
		place(ctx, d, &a[i], NULL, &arena, &p);
		most = arena.used > most ? arena.used : most;
	}
	return most;
}

/* ---- calls in regions ---- */

/* Fewer rows are faster by steps. */
#ifndef CUA__REGIONS_ROWS
#define CUA__REGIONS_ROWS (1u << 18)
#endif

/* Whether a single traversal makes all aggregates; fills *s. */
static int plan_sums(const struct aggregate *a, uint32_t count, struct cua__group_sums *s)
{
	int counted = 0;

	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < count; i++) {
		const int is_mean = a[i].op == CUA_AGGREGATE_MEAN;

		if (a[i].has_mask)
			return 0;
		if (a[i].op == CUA_AGGREGATE_COUNT && !counted) {
			s->out_count = a[i].out;
			s->counts = counted = 1;
			continue;
		}
		if ((a[i].op != CUA_AGGREGATE_SUM && !is_mean) ||
		    (a[i].type != CUA_F32 && a[i].type != CUA_I32 && a[i].type != CUA_U32) ||
		    (s->type != CUA_NONE && (s->type != a[i].type || s->x != a[i].values)) ||
		    (is_mean ? s->mean_type : s->sum_type) != CUA_NONE)
			return 0;
		s->type = a[i].type;
		s->x = a[i].values;
		if (is_mean) {
			s->out_mean = a[i].out;
			s->mean_type = a[i].result_type;
			s->counts = 1;
		} else {
			s->out_sum = a[i].out;
			s->sum_type = a[i].result_type;
		}
	}
	return 1;
}

/*
 * Whether the call may be in regions, by its types; fills *j, with the addresses that are known. a:
 * the aggregates.
 */
static int plan_regions(struct cua_context *ctx, const struct cua__distinct *d,
			const struct aggregate *a, uint32_t count, struct cua__regions_job *j)
{
	memset(j, 0, sizeof(*j));
	if (!CUA__OPS(ctx, group_by)->regions || !d->any || d->n < CUA__REGIONS_ROWS ||
	    d->n > UINT32_MAX || (d->key_type != CUA_I32 && d->key_type != CUA_U32))
		return 0;
	/* without room no values are read */
	if (!plan_sums(a, d->room ? count : 0, &j->s))
		return 0;
	j->n = d->n;
	j->capacity = d->room;
	j->keys = d->keys;
	return CUA__OPS(ctx, group_by)->regions_scratch(ctx, j) != 0;
}

/* ---- ways ---- */

/* The results that a call with few groups has to find. */
static enum cua__few_want few_want(const struct cua__distinct *d, uint32_t count, int sums)
{
	if (d->room && d->numbered)
		return CUA__FEW_NUMBERS;
	if (!d->room || !count)
		return CUA__FEW_KEYS;
	/* sums compare the keys bit by bit */
	return sums && !cua__is_float(d->key_type) ? CUA__FEW_SUMS : CUA__FEW_NUMBERS;
}

/* Whether the call may have few groups; fills *j and *want. */
static int plan_few(struct cua_context *ctx, const struct cua__distinct *d,
		    const struct aggregate *a, uint32_t count, struct cua__few_job *j,
		    enum cua__few_want *want)
{
	struct cua__group_sums sums;

	*want = few_want(d, count, plan_sums(a, count, &sums));
	return cua__few_plan(ctx, d, *want == CUA__FEW_SUMS ? &sums : NULL, j);
}

/* The scratch memory of a call, whatever way it takes. */
static size_t call_bytes(struct cua_context *ctx, const struct cua__distinct *d,
			 const struct aggregate *a, uint32_t count)
{
	size_t most = scratch_bytes(ctx, d, a, count), bytes;
	struct cua__distinct placed = *d;
	struct cua__arena arena = {NULL, 0};
	struct cua__regions_job regions;
	struct cua__few_job few;
	enum cua__few_want want;

	if (plan_regions(ctx, d, a, count, &regions)) {
		bytes = CUA__OPS(ctx, group_by)->regions_scratch(ctx, &regions);
		most = bytes > most ? bytes : most;
	}
	if (plan_few(ctx, d, a, count, &few, &want)) {
		cua__distinct_place(&placed, &arena);
		cua__few_place(&few, &arena);
		most = arena.used > most ? arena.used : most;
	}
	return most;
}

/* Runs a call in regions in scratch memory. *done becomes 0 if the outputs are not valid. */
static enum cua_status run_regions(struct cua_context *ctx, struct cua__regions_job *j,
				   void *scratch, void *out_keys, uint64_t *user, int *done)
{
	struct cua__regions_state state = {0};
	enum cua_status status;

	j->out_keys = out_keys;
	j->seed = (uint32_t)cua__random_seed().lo;
	status = CUA__OPS(ctx, group_by)->regions(ctx, j, scratch);
	if (!status)
		status = ctx->runtime->copy(ctx, &state, j->state, sizeof(state));
	if (!status)
		status = ctx->runtime->copy(ctx, user, &j->state->groups, sizeof(*user));
	if (!status)
		status = ctx->runtime->synchronize(ctx);
	*done = !status && !state.unfit;
	return status;
}

/* ---- the groups ---- */

/* Finds the groups by steps. If `waits`, *groups becomes their number, else UINT64_MAX. */
static enum cua_status run_steps(struct cua_context *ctx, struct cua__distinct *d,
				 struct cua__arena scratch, int waits, uint64_t *groups)
{
	enum cua_status status;

	cua__distinct_place_scratch(ctx, d, &scratch);
	status = cua__distinct_run(ctx, d);
	*groups = UINT64_MAX;
	if (status || !d->room || !waits)
		return status;
	status = ctx->runtime->copy(ctx, groups, d->count, sizeof(*groups));
	return status ? status : ctx->runtime->synchronize(ctx);
}

/* The results of find_groups. */
struct found {
	/*
	 * The room for groups. If the call waits in any case, at most the next power of two of the
	 * number of groups. 0: all outputs are complete.
	 */
	uint64_t targets;
	int combined;            /* 1: the aggregates are complete */
	struct cua__arena arena; /* the memory after the results */
};

/*
 * Finds the groups of n > 0 rows, and stores their number and keys. If the call waits in any case,
 * it waits here.
 */
static enum cua_status find_groups(struct cua__call *call, struct cua__distinct *d,
				   const struct aggregate *a, uint32_t count, void *out_keys,
				   uint64_t *user, struct found *f)
{
	struct cua_context *ctx = call->ctx;
	const int waits = call->n_results || ctx->runtime->kind == CUA_BACKEND_CPU;
	enum cua__few_want want = CUA__FEW_KEYS;
	struct cua__regions_job regions;
	struct cua__few_job few;
	struct cua__group_job j;
	enum cua_status status;
	uint64_t groups = 0;
	void *p = NULL;
	int done = 0;

	memset(f, 0, sizeof(*f));
	status = cua__call_scratch(call, call_bytes(ctx, d, a, count), &p);
	f->arena.base = p;
	cua__distinct_place(d, &f->arena);
	if (!status && waits && plan_few(ctx, d, a, count, &few, &want))
		status = cua__few_run(ctx, &few, f->arena, want, &groups);
	if (!status && waits && !groups && plan_regions(ctx, d, a, count, &regions))
		status = run_regions(ctx, &regions, p, out_keys, user, &done);
	if (status || done)
		return status;
	if (!groups) {
		want = CUA__FEW_NUMBERS;
		status = run_steps(ctx, d, f->arena, waits, &groups);
	}
	if (!status)
		status = ctx->runtime->copy(ctx, user, d->count, sizeof(*user));
	f->targets = targets_for(d, groups);
	f->combined = want == CUA__FEW_SUMS;
	if (status || !out_keys || !f->targets)
		return status;
	memset(&j, 0, sizeof(j));
	j.d = *d;
	j.out = out_keys;
	return CUA__OPS(ctx, group_by)->run(ctx, CUA__GROUP_KEYS, &j, f->targets);
}

/* ---- cua_group_by ---- */

enum cua_status cua_group_by(struct cua_context *ctx, const struct cua_group_by_options *options,
			     enum cua_type key_type, size_t n, const void *keys,
			     const struct cua_aggregate *aggregates, uint32_t aggregates_count,
			     uint64_t capacity, void *out_keys, uint64_t *groups)
{
	struct aggregate a[CUA_AGGREGATES_MAX];
	struct found found = {0};
	struct cua__distinct d;
	struct cua__call call;
	enum cua_status status;
	void *keys_at, *user = NULL;

	status = plan(ctx, options, key_type, n, aggregates, aggregates_count, capacity, &d, a);
	if (!status)
		status = check_arrays(ctx, &d, keys, aggregates, aggregates_count, a, out_keys,
				      groups, &keys_at);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, groups, sizeof(*groups), sizeof(*groups), &user);
	if (!status && !n)
		status = ctx->runtime->set_bytes(ctx, user, 0, sizeof(*groups));
	else if (!status)
		status = find_groups(&call, &d, a, aggregates_count, keys_at, (uint64_t *)user,
				     &found);
	if (!status && found.targets && !found.combined)
		status = run_aggregates(ctx, &d, a, aggregates_count, found.targets, found.arena);
	return cua__call_end(&call, status);
}

enum cua_status cua_group_by_workspace(struct cua_context *ctx,
				       const struct cua_group_by_options *options,
				       enum cua_type key_type, size_t n,
				       const struct cua_aggregate *aggregates,
				       uint32_t aggregates_count, uint64_t capacity, size_t *bytes)
{
	struct aggregate a[CUA_AGGREGATES_MAX];
	struct cua__distinct d;
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	memset(a, 0, sizeof(a));
	status = plan(ctx, options, key_type, n, aggregates, aggregates_count, capacity, &d, a);
	if (!status)
		*bytes = cua__scratch_size(sizeof(uint64_t)) +
			 call_bytes(ctx, &d, a, aggregates_count);
	return status;
}

/* ---- cua_unique ---- */

/* The outputs of cua_unique, as the backend addresses them; NULL if they are not made. */
struct unique {
	enum cua_type index_type;
	size_t index_size;
	uint64_t *counts;
	void *first, *inverse;
	struct aggregate count;
};

static enum cua_status plan_unique(const struct cua_context *ctx,
				   const struct cua_unique_options *options, enum cua_type key_type,
				   size_t n, uint64_t capacity, struct cua_unique_options *o,
				   struct cua__distinct *d, struct unique *u)
{
	enum cua_status status;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (cua__options(options, o, sizeof(*o)))
		return CUA_ERROR_VALUE;
	if ((int)o->order < CUA_KEY_ORDER_AUTO || o->order > CUA_KEY_ORDER_ANY ||
	    (o->index_type != CUA_NONE && o->index_type != CUA_U32 && o->index_type != CUA_U64))
		return CUA_ERROR_VALUE;
	if (o->index_type == CUA_U32 && n > UINT32_MAX)
		return CUA_ERROR_SIZE;
	memset(u, 0, sizeof(*u));
	u->index_type = o->index_type == CUA_U32 ? CUA_U32 : CUA_U64;
	u->index_size = cua_type_size(u->index_type);
	u->count.op = CUA_AGGREGATE_COUNT;
	u->count.result_type = CUA_U64;
	status = cua__distinct_plan(d, key_type, n, capacity, o->order);
	/* regions have no number for each row */
	if (o->first || o->inverse)
		d->any = 0;
	d->numbered = o->inverse != NULL;
	return status;
}

static enum cua_status check_unique(struct cua_context *ctx, struct cua__distinct *d,
				    const void *keys, const struct cua_unique_options *o,
				    void *out_keys, uint64_t *count, struct unique *u,
				    void **keys_at)
{
	const size_t n = (size_t)d->n, room = (size_t)d->room;
	enum cua_status status;
	struct ranges r = {0};
	const void *p;

	status = check_arrays(ctx, d, keys, NULL, 0, NULL, out_keys, count, keys_at);
	if (!status && o->counts && room) {
		status = cua__check_array(ctx, o->counts, room, sizeof(uint64_t), sizeof(uint64_t),
					  &p);
		u->count.out = u->counts = (uint64_t *)p;
	}
	if (!status && o->first && room) {
		status = cua__check_array(ctx, o->first, room, u->index_size, u->index_size, &p);
		u->first = (void *)p;
	}
	if (!status && o->inverse && n) {
		status = cua__check_array(ctx, o->inverse, n, u->index_size, u->index_size, &p);
		u->inverse = (void *)p;
	}
	if (status)
		return status;
	add_range(&r, count, sizeof(*count));
	add_range(&r, out_keys, room * d->key_size);
	add_range(&r, o->counts, room * sizeof(uint64_t));
	add_range(&r, o->first, room * u->index_size);
	add_range(&r, o->inverse, n * u->index_size);
	r.outputs = r.n;
	add_range(&r, keys, n * d->key_size);
	return ranges_overlap(&r) ? CUA_ERROR_OVERLAP : CUA_OK;
}

/* Stores the outputs of found groups. */
static enum cua_status store_unique(struct cua_context *ctx, const struct cua__distinct *d,
				    const struct unique *u, const struct found *f)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	enum cua_status status = CUA_OK;
	struct cua__group_job j;

	if (u->inverse && !d->room)
		return ctx->runtime->set_bytes(ctx, u->inverse, 0xff, (size_t)d->n * u->index_size);
	memset(&j, 0, sizeof(j));
	j.d = *d;
	j.size = (uint32_t)u->index_size;
	j.out = u->inverse;
	if (u->inverse)
		status = ops->run(ctx, CUA__GROUP_INVERSE, &j, d->n);
	j.out = u->first;
	if (u->first && !status)
		status = ops->run(ctx, CUA__GROUP_FIRST_ROWS, &j, f->targets);
	if (!u->counts || !f->targets || f->combined || status)
		return status;
	return run_aggregates(ctx, d, &u->count, 1, f->targets, f->arena);
}

enum cua_status cua_unique(struct cua_context *ctx, const struct cua_unique_options *options,
			   enum cua_type key_type, size_t n, const void *keys, uint64_t capacity,
			   void *out_keys, uint64_t *count)
{
	struct cua_unique_options o;
	struct found found = {0};
	struct cua__distinct d;
	struct cua__call call;
	enum cua_status status;
	void *keys_at, *user = NULL;
	struct unique u;

	status = plan_unique(ctx, options, key_type, n, capacity, &o, &d, &u);
	if (!status)
		status = check_unique(ctx, &d, keys, &o, out_keys, count, &u, &keys_at);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, count, sizeof(*count), sizeof(*count), &user);
	if (!status && !n) {
		status = ctx->runtime->set_bytes(ctx, user, 0, sizeof(*count));
		return cua__call_end(&call, status);
	}
	if (!status)
		status = find_groups(&call, &d, &u.count, u.counts != NULL, keys_at,
				     (uint64_t *)user, &found);
	if (!status)
		status = store_unique(ctx, &d, &u, &found);
	return cua__call_end(&call, status);
}

enum cua_status cua_unique_workspace(struct cua_context *ctx,
				     const struct cua_unique_options *options,
				     enum cua_type key_type, size_t n, uint64_t capacity,
				     size_t *bytes)
{
	struct cua_unique_options o;
	struct cua__distinct d;
	enum cua_status status;
	struct unique u;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan_unique(ctx, options, key_type, n, capacity, &o, &d, &u);
	if (!status)
		*bytes = cua__scratch_size(sizeof(uint64_t)) +
			 call_bytes(ctx, &d, &u.count, o.counts != NULL);
	return status;
}
