/* SPDX-License-Identifier: MIT */
/* Joins: argument checks, and the sequence of steps on the table of lib/distinct.c. */
#include "config.h"

#include "backend/join_backend.h"

/* ---- the arguments that both calls have ---- */

/* The table of the m keys of the right array, for n lookups. Errors: TYPE, SIZE. */
static enum cua_status plan_table(struct cua__join_job *j, enum cua_type key_type, size_t n,
				  size_t m)
{
	enum cua_status status;
	size_t bytes;

	memset(j, 0, sizeof(*j));
	j->n = n;
	if (cua__distinct_has_type(key_type) &&
	    ((uint64_t)n >> 47 || n > SIZE_MAX - m || cua__bytes(n + m, 128, &bytes)))
		return CUA_ERROR_SIZE;
	status = cua__distinct_plan(&j->d, key_type, m, 0, CUA_KEY_ORDER_AUTO);
	if (!status)
		cua__distinct_plan_lookups(&j->d);
	return status;
}

static enum cua_status check_keys(struct cua_context *ctx, struct cua__join_job *j,
				  const void *keys, const void *right)
{
	const size_t size = j->d.key_size;
	enum cua_status status;

	status = cua__check_array(ctx, keys, (size_t)j->n, size, size, &j->keys);
	if (!status)
		status = cua__check_array(ctx, right, (size_t)j->d.n, size, size, &j->d.keys);
	return status;
}

/* Whether an output overlaps an array of keys. */
static int overlaps_keys(const struct cua__join_job *j, const void *keys, const void *right,
			 const void *out, size_t bytes)
{
	return cua__overlap(out, bytes, keys, (size_t)j->n * j->d.key_size) ||
	       cua__overlap(out, bytes, right, (size_t)j->d.n * j->d.key_size);
}

static void *place_table(struct cua__distinct *d, struct cua__arena *a)
{
	return cua__arena_next(a, (size_t)d->slots * cua__number_size(d));
}

/* ---- cua_is_in ---- */

static enum cua_status plan_is_in(const struct cua_context *ctx,
				  const struct cua_is_in_options *options, enum cua_type key_type,
				  size_t n, size_t m, struct cua__join_job *j)
{
	struct cua_is_in_options o;
	enum cua_status status;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (cua__options(options, &o, sizeof(o)))
		return CUA_ERROR_VALUE;
	status = plan_table(j, key_type, n, m);
	j->invert = o.invert != 0;
	return status;
}

enum cua_status cua_is_in(struct cua_context *ctx, const struct cua_is_in_options *options,
			  enum cua_type key_type, size_t n, const void *keys, size_t m,
			  const void *set, uint8_t *out)
{
	struct cua__arena arena = {NULL, 0};
	struct cua__group_job g;
	struct cua__join_job j;
	enum cua_status status;
	struct cua__call call;
	const void *found;
	void *p = NULL;

	status = plan_is_in(ctx, options, key_type, n, m, &j);
	if (!status)
		status = check_keys(ctx, &j, keys, set);
	if (!status)
		status = cua__check_array(ctx, out, n, 1, 1, &found);
	if (!status && overlaps_keys(&j, keys, set, out, n))
		status = CUA_ERROR_OVERLAP;
	if (status || !n)
		return status;
	j.found = (uint8_t *)found;
	cua__call_begin(&call, ctx);
	place_table(&j.d, &arena);
	status = cua__call_scratch(&call, arena.used, &p);
	if (!status) {
		memset(&g, 0, sizeof(g));
		g.d = j.d;
		g.d.table = p;
		status = cua__distinct_claim(ctx, &g);
		j.d = g.d;
	}
	if (!status)
		status = CUA__OPS(ctx, join)->run(ctx, CUA__JOIN_FIND, &j, n);
	return cua__call_end(&call, status);
}

enum cua_status cua_is_in_workspace(struct cua_context *ctx,
				    const struct cua_is_in_options *options, enum cua_type key_type,
				    size_t n, size_t m, size_t *bytes)
{
	struct cua__arena arena = {NULL, 0};
	struct cua__join_job j;
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan_is_in(ctx, options, key_type, n, m, &j);
	if (status)
		return status;
	if (n)
		place_table(&j.d, &arena);
	*bytes = arena.used;
	return CUA_OK;
}

/* ---- cua_join: arguments ---- */

static enum cua_status plan_join(const struct cua_context *ctx,
				 const struct cua_join_options *options, enum cua_type key_type,
				 size_t n_left, size_t n_right, struct cua__join_job *j)
{
	struct cua_join_options o;
	enum cua_status status;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (cua__options(options, &o, sizeof(o)))
		return CUA_ERROR_VALUE;
	if ((int)o.kind < CUA_JOIN_AUTO || o.kind > CUA_JOIN_LEFT ||
	    (o.index_type != CUA_NONE && o.index_type != CUA_U32 && o.index_type != CUA_U64))
		return CUA_ERROR_VALUE;
	status = plan_table(j, key_type, n_left, n_right);
	if (status)
		return status;
	/* the greatest number is no row */
	if (o.index_type == CUA_U32 && (n_left > UINT32_MAX || n_right > UINT32_MAX))
		return CUA_ERROR_SIZE;
	j->left = o.kind == CUA_JOIN_LEFT;
	j->out_size = o.index_type == CUA_U32 ? 4 : 8;
	return CUA_OK;
}

/* The number of pairs that the outputs need room for at most. */
static uint64_t most_pairs(const struct cua__join_job *j, uint64_t capacity)
{
	const uint64_t each = j->d.n || !j->left ? j->d.n : 1;

	if (j->n && each > UINT64_MAX / j->n)
		return capacity;
	return capacity < j->n * each ? capacity : j->n * each;
}

static enum cua_status check_output(struct cua_context *ctx, const struct cua__join_job *j,
				    const void *out, void **at)
{
	const void *p = NULL;
	enum cua_status status = CUA_OK;

	if (out && j->room > CUA__MAX_BYTES / j->out_size)
		return CUA_ERROR_SIZE;
	if (out && j->room)
		status = cua__check_array(ctx, out, (size_t)j->room, j->out_size, j->out_size, &p);
	*at = (void *)p;
	return status;
}

static enum cua_status check_join(struct cua_context *ctx, struct cua__join_job *j,
				  const void *left, const void *right, uint64_t capacity,
				  const void *out_left, const void *out_right,
				  const uint64_t *pairs)
{
	enum cua_status status;
	size_t bytes;

	if (!pairs)
		return CUA_ERROR_NULL;
	j->room = most_pairs(j, capacity);
	status = check_keys(ctx, j, left, right);
	if (!status)
		status = check_output(ctx, j, out_left, &j->out_left);
	if (!status)
		status = check_output(ctx, j, out_right, &j->out_right);
	if (status)
		return status;
	if (!j->out_left && !j->out_right)
		j->room = 0;
	bytes = (size_t)j->room * j->out_size;
	if (overlaps_keys(j, left, right, pairs, sizeof(*pairs)))
		return CUA_ERROR_OVERLAP;
	if (j->out_left && (overlaps_keys(j, left, right, out_left, bytes) ||
			    cua__overlap(out_left, bytes, pairs, sizeof(*pairs))))
		return CUA_ERROR_OVERLAP;
	if (j->out_right && (overlaps_keys(j, left, right, out_right, bytes) ||
			     cua__overlap(out_right, bytes, pairs, sizeof(*pairs))))
		return CUA_ERROR_OVERLAP;
	if (j->out_left && j->out_right && cua__overlap(out_left, bytes, out_right, bytes))
		return CUA_ERROR_OVERLAP;
	return CUA_OK;
}

/* ---- cua_join: steps ---- */

/* Places the arrays of the table, the sort and the offsets. The sort is that of g->d. */
static void place_join(struct cua_context *ctx, struct cua__join_job *j, struct cua__group_job *g,
		       struct cua__arena *a)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	const size_t size = cua__number_size(&j->d), m = (size_t)j->d.n;
	struct cua__distinct *d = &g->d;

	memset(g, 0, sizeof(*g));
	*d = j->d;
	d->table = place_table(d, a);
	d->number = cua__arena_next(a, m * size);
	d->parts = ops->parts(ctx, m);
	d->order[0] = cua__arena_next(a, m * size);
	d->order[1] = cua__arena_next(a, m * size);
	/* the sort moves the slots of the rows */
	d->ordered[0] = d->number;
	d->ordered[1] = cua__arena_next(a, m * size);
	d->digits = cua__arena_next(a, (size_t)d->parts * CUA__GROUP_DIGITS * sizeof(*d->digits));
	d->digit_totals = cua__arena_next(a, CUA__GROUP_DIGITS * sizeof(*d->digit_totals));
	j->lists = cua__arena_next(a, 2 * (size_t)d->slots * size);
	j->list = cua__arena_next(a, (size_t)j->n * size);
	j->offset = cua__arena_next(a, ((size_t)j->n + 1) * sizeof(*j->offset));
	j->parts = ops->parts(ctx, j->n);
	j->sums = cua__arena_next(a, j->parts * sizeof(*j->sums));
}

/* Makes the table and the lists of right rows. */
static enum cua_status make_lists(struct cua_context *ctx, struct cua__join_job *j,
				  struct cua__group_job *g)
{
	const struct cua__join_ops *ops = CUA__OPS(ctx, join);
	enum cua_status status = cua__distinct_claim(ctx, g);
	uint32_t digits = 1;

	j->d = g->d;
	if (status || !j->d.n)
		return status;
	while (digits < 8 && (j->d.slots - 1) >> 8 * digits)
		digits++;
	g->d.key_size = (uint32_t)cua__number_size(&g->d);
	g->d.sorts_rows = 1;
	j->rows = g->d.order[0];
	status = ops->run(ctx, CUA__JOIN_ROWS, j, j->d.n);
	if (!status)
		status = cua__distinct_sort(ctx, g, digits);
	j->rows = g->d.order[0];
	j->slots = g->d.ordered[0];
	return status ? status : ops->run(ctx, CUA__JOIN_LISTS, j, j->d.n);
}

static enum cua_status run_join(struct cua_context *ctx, struct cua__join_job *j,
				struct cua__group_job *g, uint64_t *pairs)
{
	const struct cua__join_ops *ops = CUA__OPS(ctx, join);
	enum cua_status status = make_lists(ctx, j, g);

	if (!status)
		status = ops->run(ctx, CUA__JOIN_MATCH, j, j->n);
	if (!status)
		status = ops->run(ctx, CUA__JOIN_SUM, j, j->parts);
	if (!status)
		status = ops->run(ctx, CUA__JOIN_SCAN, j, 1);
	if (!status)
		status = ctx->runtime->copy(ctx, pairs, j->offset + j->n, sizeof(*pairs));
	if (status || !j->room)
		return status;
	status = ops->run(ctx, CUA__JOIN_OFFSET, j, j->parts);
	return status ? status : ops->run(ctx, CUA__JOIN_WRITE, j, j->room);
}

enum cua_status cua_join(struct cua_context *ctx, const struct cua_join_options *options,
			 enum cua_type key_type, size_t n_left, const void *left, size_t n_right,
			 const void *right, uint64_t capacity, void *out_left, void *out_right,
			 uint64_t *pairs)
{
	struct cua__arena arena = {NULL, 0};
	struct cua__group_job g;
	struct cua__join_job j;
	void *user = NULL, *p = NULL;
	enum cua_status status;
	struct cua__call call;

	status = plan_join(ctx, options, key_type, n_left, n_right, &j);
	if (!status)
		status = check_join(ctx, &j, left, right, capacity, out_left, out_right, pairs);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, pairs, sizeof(*pairs), sizeof(*pairs), &user);
	if (!status && !n_left) {
		status = ctx->runtime->set_bytes(ctx, user, 0, sizeof(*pairs));
	} else if (!status) {
		place_join(ctx, &j, &g, &arena);
		status = cua__call_scratch(&call, arena.used, &p);
		arena.base = p;
		arena.used = 0;
		if (!status) {
			place_join(ctx, &j, &g, &arena);
			status = run_join(ctx, &j, &g, (uint64_t *)user);
		}
	}
	return cua__call_end(&call, status);
}

enum cua_status cua_join_workspace(struct cua_context *ctx, const struct cua_join_options *options,
				   enum cua_type key_type, size_t n_left, size_t n_right,
				   size_t *bytes)
{
	struct cua__arena arena = {NULL, 0};
	struct cua__group_job g;
	struct cua__join_job j;
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan_join(ctx, options, key_type, n_left, n_right, &j);
	if (status)
		return status;
	if (n_left)
		place_join(ctx, &j, &g, &arena);
	*bytes = cua__scratch_size(sizeof(uint64_t)) + arena.used;
	return CUA_OK;
}
