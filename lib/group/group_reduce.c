/* SPDX-License-Identifier: MIT */
/*
 * Reductions of an array that is divided among the ranks of a group. Each rank reduces its part to
 * values of the tree (kernels/tree.h) or to an exact sum. All ranks receive the values of all ranks
 * and make the same result of these.
 *
 * Mode FIXED: the parts end at chunks of the whole array's tree. So the values of the chunks of all
 * ranks, in order, are those of the whole array, and the root of the tree is the same.
 */
#include "config.h"

#include "group/group_internal.h"
#include "kernels/tree.h"

/* The elements of a chunk of an array with n elements of `size` bytes. */
static uint64_t chunk_elements(uint64_t n, size_t size)
{
	return cua__tree_shape(n, size).rows * CUA__TREE_WARPS * (32 * 16 / size);
}

enum cua_status cua_fixed_cut(enum cua_type type, uint64_t n, uint32_t parts, uint32_t part,
			      uint64_t *first)
{
	const size_t size = cua_type_size(type);
	uint64_t chunks, chunk;

	if (!first)
		return CUA_ERROR_NULL;
	if (!size)
		return CUA_ERROR_TYPE;
	if (!parts || part > parts)
		return CUA_ERROR_VALUE;
	if (n > CUA__MAX_BYTES / size)
		return CUA_ERROR_SIZE;
	chunks = cua__tree_shape(n, size).chunks;
	chunk = chunks * part / parts;
	*first = part == parts ? n : chunk * chunk_elements(n, size);
	return CUA_OK;
}

/* ---- arguments ---- */

static enum cua_status describe(const struct cua_reduce_options *options, enum cua_reduce_op op,
				enum cua_type type, size_t n, struct cua__reduce *r)
{
	struct cua_reduce_options o;

	if (cua__options(options, &o, sizeof(o)) || o.count ||
	    (o.finish != CUA_FINISH_AUTO && o.finish != CUA_FINISH_LAST_BLOCK))
		return CUA_ERROR_VALUE;
	return cua__reduce_describe(options, op, type, n, r);
}

/* Scratch memory of a context to reduce a part of n elements. */
static size_t partials_bytes(struct cua_context *ctx, const struct cua__reduce *r)
{
	struct cua__reduce planned = *r;

	if (r->mode != CUA_REDUCE_FAST)
		return 0;
	planned.step = CUA__TREE_VALUE;
	CUA__OPS(ctx, reduce)->plan(ctx, &planned);
	return cua__reduce_partials(&planned);
}

enum cua_status cua_group_reduce_workspace(struct cua_group *group,
					   const struct cua_reduce_options *options,
					   enum cua_reduce_op op, enum cua_type type, size_t n,
					   size_t *bytes)
{
	struct cua__reduce r;
	enum cua_status status;
	size_t most = 0;

	if (!group || !bytes)
		return CUA_ERROR_NULL;
	status = describe(options, op, type, n, &r);
	if (status)
		return status;
	for (uint32_t i = 0; i < group->local; i++) {
		const size_t partials = partials_bytes(group->contexts[i], &r);

		most = partials > most ? partials : most;
	}
	/* a shorter part can have more chunks */
	if (most && cua__tree_shape(n, cua_type_size(type)).rows > CUA__TREE_ROWS) {
		const size_t partials = CUA__TREE_CHUNKS * cua__tree_value_bytes(r.kind);

		most = partials > most ? partials : most;
	}
	*bytes = cua__scratch_size(cua_type_size(r.result_type)) + cua__scratch_size(most);
	return CUA_OK;
}

/* Checks the arguments of a local rank, and takes the memory that it needs. */
static enum cua_status prepare(struct cua__group_part *part, struct cua_context *ctx, const void *x,
			       const void *y, void *result)
{
	struct cua__reduce *r = &part->reduce;
	enum cua_status status = cua__reduce_arguments(ctx, r, x, y, result);
	const size_t out = cua_type_size(r->result_type), partials = partials_bytes(ctx, r);

	if (!status)
		status = cua__call_result(&part->call, result, out, out, &r->result);
	if (!status && partials)
		status = cua__call_scratch(&part->call, partials, &r->partials);
	return status;
}

/* ---- work ---- */

/*
 * Sets *whole to the number of elements of all ranks, and *first to the number of elements before the
 * local ranks. In mode FIXED checks the cuts. The same on all ranks.
 */
static enum cua_status add_up(const struct cua_group *g, const struct cua__reduce *r,
			      uint64_t *whole, uint64_t *first)
{
	const size_t size = cua_type_size(r->type);
	uint64_t n = 0, chunk;

	*first = 0;
	for (uint32_t i = 0; i < g->size; i++) {
		if (i == g->first)
			*first = n;
		n += g->records[i].n;
		if (n > CUA__MAX_BYTES / size)
			return CUA_ERROR_SIZE;
	}
	*whole = n;
	if (r->mode != CUA_REDUCE_FIXED)
		return CUA_OK;
	chunk = chunk_elements(n, size);
	n = 0;
	for (uint32_t i = 0; i < g->size; i++) {
		if (g->records[i].n && n % chunk)
			return CUA_ERROR_VALUE;
		n += g->records[i].n;
	}
	return CUA_OK;
}

/* Bytes that each rank sends. */
static void count_bytes(const struct cua_group *g, const struct cua__reduce *r, uint64_t whole,
			size_t *bytes)
{
	struct cua__reduce part = *r;

	part.whole = whole;
	for (uint32_t i = 0; i < g->size; i++) {
		uint64_t values = 1;

		if (r->mode == CUA_REDUCE_FIXED)
			values = cua__tree_shape_of(&part, g->records[i].n, cua_type_size(r->type))
					 .chunks;
		/* the chunk of an empty array is that of rank 0 */
		if (r->mode == CUA_REDUCE_FIXED && !whole && i)
			values = 0;
		bytes[i] = r->mode == CUA_REDUCE_EXACT
				   ? sizeof(struct cua_exact)
				   : (size_t)values * cua__tree_value_bytes(r->kind);
	}
}

/* Reduces the part of a rank, from element `first` of the whole on, to its values. */
static enum cua_status run_part(struct cua_context *ctx, struct cua__group_part *part,
				uint64_t first, uint64_t whole)
{
	struct cua__reduce r = part->reduce;

	if (r.mode == CUA_REDUCE_EXACT) {
		part->exact = cua__reduce_exact(&r);
		part->exact.result = NULL;
		part->exact.partial = (struct cua_exact *)(void *)part->mine;
		part->exact.fresh = 1;
		return cua__exact_reduce(ctx, &part->exact);
	}
	r.first = first;
	if (r.mode == CUA_REDUCE_FIXED) {
		r.step = CUA__TREE_CHUNKS;
		r.whole = whole;
		r.partials = part->mine;
	} else {
		r.step = CUA__TREE_VALUE;
		r.result = part->mine;
	}
	CUA__OPS(ctx, reduce)->plan(ctx, &r);
	return CUA__OPS(ctx, reduce)->run(ctx, &r);
}

/* Makes the result of the values of all ranks. */
static enum cua_status run_root(struct cua_context *ctx, struct cua__group_part *part,
				uint32_t ranks, uint64_t whole, size_t bytes)
{
	struct cua__reduce r = part->reduce;

	if (r.mode == CUA_REDUCE_EXACT) {
		part->exact.partial = (struct cua_exact *)(void *)part->all;
		part->exact.partials = ranks;
		part->exact.result = r.result;
		return CUA__OPS(ctx, exact)->finish(ctx, &part->exact);
	}
	r.step = CUA__TREE_ROOT;
	r.n = whole;
	r.partials = part->all;
	r.values = bytes / cua__tree_value_bytes(r.kind);
	r.blocks = 0;
	CUA__OPS(ctx, reduce)->plan(ctx, &r);
	return CUA__OPS(ctx, reduce)->run(ctx, &r);
}

/* The work of a call whose arguments all ranks have accepted. */
static enum cua_status run(struct cua_group *g)
{
	uint64_t whole, first;
	enum cua_status status = add_up(g, &g->parts[0].reduce, &whole, &first);
	size_t total = 0;

	if (status)
		return status;
	count_bytes(g, &g->parts[0].reduce, whole, g->bytes);
	cua__group_place(g, g->bytes);
	for (uint32_t i = 0; i < g->local && !status; i++) {
		/* in mode FIXED an empty part has no values */
		if (g->bytes[g->first + i])
			CUA__GROUP_IN(g->contexts[i], status,
				      run_part(g->contexts[i], &g->parts[i], first, whole));
		first += g->parts[i].reduce.n;
	}
	for (uint32_t i = 0; i < g->size; i++)
		total += g->bytes[i];
	status = cua__group_gather(g, g->bytes, status);
	for (uint32_t i = 0; i < g->local && !status; i++)
		CUA__GROUP_IN(g->contexts[i], status,
			      run_root(g->contexts[i], &g->parts[i], g->size, whole, total));
	return status;
}

static void write_record(struct cua__group_record *record, const struct cua__reduce *r,
			 enum cua_status status)
{
	cua__group_record(record, CUA__GROUP_REDUCE, status);
	/* an error leaves *r undefined */
	if (status)
		return;
	record->arguments[0] = (int32_t)r->op;
	record->arguments[1] = (int32_t)r->type;
	record->arguments[2] = (int32_t)r->mode;
	record->arguments[3] = (int32_t)r->result_type;
	record->n = r->n;
}

static enum cua_status group_reduce(struct cua_group *g, const struct cua_reduce_options *options,
				    enum cua_reduce_op op, enum cua_type type, const size_t *n,
				    const void *const *x, const void *const *y,
				    void *const *results)
{
	const struct cua__group_ops *ops = CUA__OPS(g->contexts[0], group);
	const int arrays = n && x && results;
	const enum cua_status begun = ops->begin(g);
	enum cua_status status, met;

	for (uint32_t i = 0; i < g->local; i++) {
		struct cua__group_part *part = &g->parts[i];
		struct cua_context *ctx = g->contexts[i];
		enum cua_status own = begun;

		cua__call_begin(&part->call, ctx);
		if (!own)
			own = describe(options, op, type, arrays ? n[i] : 0, &part->reduce);
		if (!own && g->has_transport)
			own = ctx->runtime->may_wait(ctx);
		if (!own && (!arrays || (cua__reduce_has_second(op) && !y)))
			own = CUA_ERROR_NULL;
		if (!own)
			own = prepare(part, ctx, x[i], y ? y[i] : NULL, results[i]);
		write_record(&g->mine[i], &part->reduce, own);
	}
	met = status = cua__group_meet(g, g->mine);
	if (!status)
		status = run(g);
	return cua__group_end(g, begun, met, status);
}

enum cua_status cua_group_reduce(struct cua_group *group, const struct cua_reduce_options *options,
				 enum cua_reduce_op op, enum cua_type type, const size_t *n,
				 const void *const *x, const void *const *y, void *const *results)
{
	enum cua_status status;

	CUA__GROUP_CALL(group, status, group_reduce(group, options, op, type, n, x, y, results));
	return status;
}
