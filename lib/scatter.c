/* SPDX-License-Identifier: MIT */
/* Scatters: argument checks and dispatch. */
#include "config.h"

#include "backend/scatter_backend.h"

enum cua_type cua__scatter_default_result(enum cua_scatter_op op, enum cua_type type)
{
	return op == CUA_SCATTER_MEAN && !cua__is_float(type) ? CUA_F64 : type;
}

static int is_integer(enum cua_type type)
{
	return (int)type >= CUA_I8 && type <= CUA_U64;
}

/* Whether targets of type `result` can hold every element of `type`. */
static int widens(enum cua_type type, enum cua_type result)
{
	if (type == result)
		return 1;
	return cua_type_size(result) > cua_type_size(type);
}

int cua__scatter_has_types(enum cua_scatter_op op, enum cua_type type, enum cua_type result)
{
	if (cua__is_float(type))
		return cua__is_float(result) && widens(type, result);
	if (!is_integer(type))
		return 0;
	if (op == CUA_SCATTER_MEAN)
		return cua__is_float(result);
	return is_integer(result) && cua__is_signed(type) == cua__is_signed(result) &&
	       widens(type, result);
}

static int is_index(enum cua_type type)
{
	return type == CUA_I32 || type == CUA_U32 || type == CUA_I64 || type == CUA_U64;
}

/* The checks that do not depend on the arrays. */
static enum cua_status plan(const struct cua_context *ctx,
			    const struct cua_scatter_options *options, enum cua_scatter_op op,
			    enum cua_type index_type, enum cua_type type, size_t n, size_t targets,
			    struct cua__scatter *s)
{
	struct cua_scatter_options o;
	enum cua_status status;
	size_t elements, bytes;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (cua__options(options, &o, sizeof(o)))
		return CUA_ERROR_VALUE;
	if ((int)o.mode < CUA_REDUCE_AUTO || o.mode > CUA_REDUCE_EXACT || (int)o.overwrite >> 1 ||
	    o.width > CUA_SCATTER_WIDTH_MAX || o.reserved)
		return CUA_ERROR_VALUE;
	if ((int)op < CUA_SCATTER_ADD || op > CUA_SCATTER_MEAN)
		return CUA_ERROR_VALUE;
	memset(s, 0, sizeof(*s));
	s->op = op;
	s->index_type = index_type;
	s->type = type;
	s->result_type =
		o.result_type == CUA_NONE ? cua__scatter_default_result(op, type) : o.result_type;
	if (!is_index(index_type) || !cua__scatter_has_types(op, type, s->result_type))
		return CUA_ERROR_TYPE;
	s->overwrite = o.overwrite;
	s->width = o.width ? o.width : 1;
	s->n = n;
	s->targets = targets;
	s->skipped = o.skipped;
	status = cua__bytes(n, cua_type_size(index_type), &bytes);
	if (!status)
		status = cua__bytes(n, s->width, &elements);
	if (!status)
		status = cua__bytes(elements, cua_type_size(type), &bytes);
	if (!status)
		status = cua__bytes(targets, s->width, &elements);
	/* a backend may need a word of 8 bytes for each target, and divides the targets into ranges */
	if (!status)
		status = cua__bytes(elements, sizeof(uint64_t), &bytes);
	return status ? status : elements >> 47 ? CUA_ERROR_SIZE : CUA_OK;
}

/* The arrays of a planned call; sets their addresses. */
static enum cua_status check_arrays(struct cua_context *ctx, struct cua__scatter *s,
				    const void *index, const void *x, void *out)
{
	const size_t index_size = cua_type_size(s->index_type), size = cua_type_size(s->type);
	const size_t out_size = cua_type_size(s->result_type);
	const size_t n = (size_t)s->n, elements = n * s->width;
	const size_t targets = (size_t)s->targets * s->width;
	const size_t skipped = s->skipped ? sizeof(*s->skipped) : 0;
	enum cua_status status;
	const void *p;

	status = cua__check_array(ctx, index, n, index_size, index_size, &s->index);
	if (!status)
		status = cua__check_array(ctx, x, elements, size, size, &s->x);
	if (!status) {
		status = cua__check_array(ctx, out, targets, out_size, out_size, &p);
		s->out = (void *)p;
	}
	if (status)
		return status;
	if (cua__overlap(out, targets * out_size, index, n * index_size) ||
	    cua__overlap(out, targets * out_size, x, elements * size) ||
	    cua__overlap(s->skipped, skipped, out, targets * out_size) ||
	    cua__overlap(s->skipped, skipped, index, n * index_size) ||
	    cua__overlap(s->skipped, skipped, x, elements * size))
		return CUA_ERROR_OVERLAP;
	return CUA_OK;
}

enum cua_status cua_scatter(struct cua_context *ctx, const struct cua_scatter_options *options,
			    enum cua_scatter_op op, enum cua_type index_type, enum cua_type type,
			    size_t n, const void *index, const void *x, size_t targets, void *out)
{
	struct cua__scatter s;
	struct cua__call call;
	enum cua_status status;
	void *skipped = NULL;

	status = plan(ctx, options, op, index_type, type, n, targets, &s);
	if (!status)
		status = check_arrays(ctx, &s, index, x, out);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	if (s.skipped) {
		status = cua__call_result(&call, s.skipped, sizeof(*s.skipped), sizeof(*s.skipped),
					  &skipped);
		s.skipped = (uint64_t *)skipped;
	}
	if (!status)
		status = cua__call_scratch(&call, CUA__OPS(ctx, scatter)->scratch(ctx, &s),
					   &s.scratch);
	if (!status)
		status = CUA__OPS(ctx, scatter)->run(ctx, &s);
	return cua__call_end(&call, status);
}

enum cua_status cua_scatter_workspace(struct cua_context *ctx,
				      const struct cua_scatter_options *options,
				      enum cua_scatter_op op, enum cua_type index_type,
				      enum cua_type type, size_t n, size_t targets, size_t *bytes)
{
	struct cua__scatter s;
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan(ctx, options, op, index_type, type, n, targets, &s);
	if (!status)
		/* the count, if it is in ordinary host memory */
		*bytes = cua__scratch_size(sizeof(*s.skipped)) +
			 cua__scratch_size(CUA__OPS(ctx, scatter)->scratch(ctx, &s));
	return status;
}

enum cua_status cua_scatter_add(struct cua_context *ctx, enum cua_type index_type,
				enum cua_type type, size_t n, const void *index, const void *x,
				size_t targets, void *out)
{
	return cua_scatter(ctx, NULL, CUA_SCATTER_ADD, index_type, type, n, index, x, targets, out);
}
