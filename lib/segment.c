/* SPDX-License-Identifier: MIT */
/* Segmented reductions: argument checks, and the plan of a call for the backend. */
#include "config.h"

#include "backend/segment_backend.h"

CUA_STATIC_ASSERT(CUA__SEGMENT_CONTROL + CUA__SEGMENT_CONTROL_BYTES <= 1024, "the others' control");

/* Size and alignment of a result. Sums of integers have 64 bits. */
static size_t result_size(enum cua_reduce_op op, enum cua_type type)
{
	return op == CUA_REDUCE_SUM && cua__is_word(type) && type != CUA_F32 ? 8
									     : cua_type_size(type);
}

/* The tree's kind. Only sums of floats depend on the order. */
static enum cua__tree_kind tree_of(enum cua_reduce_op op, enum cua_type type)
{
	int is_integer = cua__is_word(type) && !cua__is_float(type);

	return op == CUA_REDUCE_SUM && !is_integer ? cua__reduce_kind(op, type) : CUA__TREE_NONE;
}

/*
 * Chooses the tree for mode FIXED, and for mode FAST if the tree is faster or the only path. For
 * runs of equal keys, s->segments is an upper bound.
 */
static void plan_tree(const struct cua_context *ctx, enum cua_reduce_mode mode,
		      struct cua__segments *s)
{
	if (mode == CUA_REDUCE_FIXED || !cua__is_word(s->type) ||
	    (s->segments && s->n / s->segments < CUA__OPS(ctx, segment)->tree_below))
		s->kind = tree_of(s->op, s->type);
}

/* The checks and the plan that all calls share. */
static enum cua_status plan(struct cua_context *ctx, const struct cua_segment_options *options,
			    enum cua_reduce_op op, enum cua_type type, size_t n, uint64_t segments,
			    struct cua__segments *s)
{
	struct cua_segment_options o;
	size_t bytes;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (cua__options(options, &o, sizeof(o)))
		return CUA_ERROR_VALUE;
	if ((int)o.mode < CUA_REDUCE_AUTO || o.mode > CUA_REDUCE_FIXED)
		return CUA_ERROR_VALUE;
	if ((int)op < CUA_REDUCE_SUM || op > CUA_REDUCE_MAX)
		return CUA_ERROR_VALUE;
	if (!cua__is_word(type) && !tree_of(op, type))
		return CUA_ERROR_TYPE;
	memset(s, 0, sizeof(*s));
	s->op = op;
	s->type = type;
	s->size = cua_type_size(type);
	s->n = n;
	s->segments = segments;
	plan_tree(ctx, o.mode, s);
	s->control = (char *)ctx->control + CUA__SEGMENT_CONTROL;
	return cua__bytes(n, s->size, &bytes);
}

/* ---- segments ---- */

static enum cua_status plan_segmented(struct cua_context *ctx,
				      const struct cua_segment_options *options,
				      enum cua_reduce_op op, enum cua_type type, size_t n,
				      size_t segments, struct cua__segments *s)
{
	enum cua_status status = plan(ctx, options, op, type, n, segments, s);
	size_t bytes;

	if (status)
		return status;
	if (segments == SIZE_MAX)
		return CUA_ERROR_SIZE;
	return cua__bytes(segments + 1, sizeof(uint64_t), &bytes);
}

enum cua_status cua_segmented_reduce(struct cua_context *ctx,
				     const struct cua_segment_options *options,
				     enum cua_reduce_op op, enum cua_type type, size_t n,
				     const void *x, size_t segments, const uint64_t *offsets,
				     void *results)
{
	struct cua__segments s;
	struct cua__call call;
	enum cua_status status;
	size_t size, out, n_offsets;
	const void *p;

	status = plan_segmented(ctx, options, op, type, n, segments, &s);
	if (status)
		return status;
	size = s.size;
	out = result_size(op, type);
	n_offsets = segments ? segments + 1 : 0;
	status = cua__check_array(ctx, x, n, size, size, &s.x);
	if (!status) {
		status = cua__check_array(ctx, offsets, n_offsets, sizeof(*offsets),
					  sizeof(*offsets), &p);
		s.offsets = (const uint64_t *)p;
	}
	if (!status) {
		status = cua__check_array(ctx, results, segments, out, out, &p);
		s.results = (void *)p;
	}
	if (status)
		return status;
	if (cua__overlap(results, segments * out, x, n * size) ||
	    cua__overlap(results, segments * out, offsets, n_offsets * sizeof(*offsets)))
		return CUA_ERROR_OVERLAP;
	if (!segments)
		return CUA_OK;
	cua__call_begin(&call, ctx);
	status = cua__call_scratch(&call, CUA__OPS(ctx, segment)->segments_scratch(ctx, &s),
				   &s.scratch);
	if (!status)
		status = CUA__OPS(ctx, segment)->segments(ctx, &s);
	return cua__call_end(&call, status);
}

enum cua_status cua_segmented_reduce_workspace(struct cua_context *ctx,
					       const struct cua_segment_options *options,
					       enum cua_reduce_op op, enum cua_type type, size_t n,
					       size_t segments, size_t *bytes)
{
	struct cua__segments s;
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan_segmented(ctx, options, op, type, n, segments, &s);
	if (!status)
		*bytes = segments ? cua__scratch_size(
					    CUA__OPS(ctx, segment)->segments_scratch(ctx, &s))
				  : 0;
	return status;
}

enum cua_status cua_segmented_sum(struct cua_context *ctx, enum cua_type type, size_t n,
				  const void *x, size_t segments, const uint64_t *offsets,
				  void *results)
{
	return cua_segmented_reduce(ctx, NULL, CUA_REDUCE_SUM, type, n, x, segments, offsets,
				    results);
}

/* ---- runs of equal keys ---- */

/* r has n and the user's capacity, and zeros. */
static enum cua_status plan_by_key(struct cua_context *ctx,
				   const struct cua_segment_options *options, enum cua_reduce_op op,
				   enum cua_type key_type, enum cua_type type,
				   struct cua__segments *s, struct cua__runs *r)
{
	const size_t n = (size_t)r->n;
	const uint64_t room = r->capacity < n ? r->capacity : n;
	enum cua_status status = plan(ctx, options, op, type, n, room, s);
	size_t bytes;

	if (status)
		return status;
	switch (key_type) {
	case CUA_U32:
	case CUA_I32:
	case CUA_U64:
	case CUA_I64: break;
	default: return CUA_ERROR_TYPE;
	}
	r->key_size = cua_type_size(key_type);
	r->capacity = room;
	status = cua__bytes(n, r->key_size, &bytes);
	return status ? status : cua__bytes(n + 1, sizeof(uint64_t), &bytes);
}

static size_t offsets_size(const struct cua__runs *r)
{
	return (size_t)(r->capacity + 1) * sizeof(uint64_t);
}

enum cua_status cua_reduce_by_key(struct cua_context *ctx,
				  const struct cua_segment_options *options, enum cua_reduce_op op,
				  enum cua_type key_type, enum cua_type type, size_t n,
				  const void *keys, const void *x, uint64_t capacity,
				  void *unique_keys, void *results, uint64_t *count)
{
	const struct cua__segment_ops *ops;
	struct {
		const void *p;
		size_t bytes;
	} arrays[5];
	struct cua__segments s;
	struct cua__runs r = {.n = n, .capacity = capacity};
	struct cua__call call;
	enum cua_status status;
	size_t size, out, room;
	void *scratch = NULL, *user = NULL;
	const void *p;

	status = plan_by_key(ctx, options, op, key_type, type, &s, &r);
	if (status)
		return status;
	if (!count)
		return CUA_ERROR_NULL;
	ops = CUA__OPS(ctx, segment);
	size = s.size;
	out = result_size(op, type);
	room = (size_t)r.capacity;
	status = cua__check_array(ctx, keys, n, r.key_size, r.key_size, &r.keys);
	if (!status)
		status = cua__check_array(ctx, x, room ? n : 0, size, size, &s.x);
	if (!status) {
		status = cua__check_array(ctx, unique_keys, room, r.key_size, r.key_size, &p);
		r.unique_keys = (void *)p;
	}
	if (!status) {
		status = cua__check_array(ctx, results, room, out, out, &p);
		s.results = (void *)p;
	}
	if (status)
		return status;
	arrays[0].p = keys;
	arrays[0].bytes = n * r.key_size;
	arrays[1].p = x;
	arrays[1].bytes = room ? n * size : 0;
	arrays[2].p = unique_keys;
	arrays[2].bytes = room * r.key_size;
	arrays[3].p = results;
	arrays[3].bytes = room * out;
	arrays[4].p = count;
	arrays[4].bytes = sizeof(*count);
	for (int i = 2; i < 5; i++)
		for (int j = 0; j < i; j++)
			if (cua__overlap(arrays[i].p, arrays[i].bytes, arrays[j].p,
					 arrays[j].bytes))
				return CUA_ERROR_OVERLAP;

	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, count, sizeof(*count), sizeof(*count), &user);
	r.count = (uint64_t *)user;
	if (!status && !n) {
		status = ctx->runtime->set_bytes(ctx, r.count, 0, sizeof(*r.count));
		return cua__call_end(&call, status);
	}
	if (!status)
		status = cua__call_scratch(&call, sizeof(*r.total), &scratch);
	r.total = (uint64_t *)scratch;
	if (!status)
		status = cua__call_scratch(&call, offsets_size(&r), &scratch);
	r.offsets = (uint64_t *)scratch;
	if (!status)
		status = cua__call_scratch(&call, ops->runs_scratch(ctx, &r, &s), &r.scratch);
	if (!status && room)
		status = cua__call_scratch(&call, ops->segments_scratch(ctx, &s), &s.scratch);
	s.count = r.total;
	s.offsets = r.offsets;
	if (!status)
		status = ops->runs(ctx, &r, &s);
	if (!status && room)
		status = ops->segments(ctx, &s);
	return cua__call_end(&call, status);
}

enum cua_status cua_reduce_by_key_workspace(struct cua_context *ctx,
					    const struct cua_segment_options *options,
					    enum cua_reduce_op op, enum cua_type key_type,
					    enum cua_type type, size_t n, uint64_t capacity,
					    size_t *bytes)
{
	struct cua__segments s;
	struct cua__runs r = {.n = n, .capacity = capacity};
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan_by_key(ctx, options, op, key_type, type, &s, &r);
	if (status)
		return status;
	/* the count, if it is in ordinary host memory */
	*bytes = cua__scratch_size(sizeof(*r.count));
	if (n)
		*bytes += cua__scratch_size(sizeof(*r.total)) +
			  cua__scratch_size(offsets_size(&r)) +
			  cua__scratch_size(CUA__OPS(ctx, segment)->runs_scratch(ctx, &r, &s));
	if (r.capacity)
		*bytes += cua__scratch_size(CUA__OPS(ctx, segment)->segments_scratch(ctx, &s));
	return CUA_OK;
}
