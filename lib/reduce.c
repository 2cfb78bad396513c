/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "reduce.h"

#define MAX_BLOCK_SIZE 1024u

CUA_STATIC_ASSERT(CUA__REDUCE_CONTROL + sizeof(struct cua_finish) <= 1024, "the others' control");

/* The result's size, which is also its alignment: sums of integers have 64 bits. */
static size_t result_size(enum cua_reduce_op op, enum cua_type type)
{
	if ((op == CUA_REDUCE_SUM || op == CUA_REDUCE_DOT) && type != CUA_F32)
		return 8;
	return cua_type_size(type);
}

/* The arguments that cua_reduce and cua_reduce_workspace have in common, into a plan. */
static enum cua_status plan(struct cua_context *ctx, const struct cua_reduce_options *options,
			    enum cua_reduce_op op, enum cua_type type, size_t n,
			    struct cua__reduce *r)
{
	struct cua_reduce_options o = {.struct_size = sizeof(o)};
	enum cua_status status;
	size_t bytes;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (options) {
		if (options->struct_size < sizeof(size_t) || options->struct_size > sizeof(o))
			return CUA_ERROR_VALUE;
		memcpy(&o, options, options->struct_size);
	}
	if ((int)o.finish < CUA_FINISH_AUTO || o.finish > CUA_FINISH_ORDERED_LOCK ||
	    o.blocks > CUA_REDUCE_BLOCKS_MAX || o.block_size > MAX_BLOCK_SIZE)
		return CUA_ERROR_VALUE;
	if ((int)op < CUA_REDUCE_SUM || op > CUA_REDUCE_DOT)
		return CUA_ERROR_VALUE;
	switch (type) {
	case CUA_U32:
	case CUA_I32:
	case CUA_U64:
	case CUA_I64:
	case CUA_F32:
	case CUA_F64: break;
	default: return CUA_ERROR_TYPE;
	}
	status = cua__bytes(n, cua_type_size(type), &bytes);
	if (status)
		return status;
	memset(r, 0, sizeof(*r));
	r->op = op;
	r->type = type;
	r->mode = o.finish ? o.finish : CUA_FINISH_LAST_BLOCK;
	r->blocks = o.blocks;
	r->block_size = o.block_size;
	r->n = n;
	ctx->backend->reduce->plan(ctx, r);
	return CUA_OK;
}

static size_t partials_size(const struct cua__reduce *r)
{
	return r->mode == CUA_FINISH_LAST_BLOCK ? (size_t)r->blocks * sizeof(uint64_t) : 0;
}

enum cua_status cua_reduce(struct cua_context *ctx, const struct cua_reduce_options *options,
			   enum cua_reduce_op op, enum cua_type type, size_t n, const void *x,
			   const void *y, void *result)
{
	struct cua__reduce r;
	struct cua__call call;
	enum cua_status status;
	size_t size, out;

	status = plan(ctx, options, op, type, n, &r);
	if (status)
		return status;
	if (op != CUA_REDUCE_DOT && y)
		return CUA_ERROR_VALUE;
	if (!result)
		return CUA_ERROR_NULL;
	size = cua_type_size(type);
	out = result_size(op, type);
	status = cua__check_array(ctx, x, n, size, size, &r.x);
	if (!status && op == CUA_REDUCE_DOT)
		status = cua__check_array(ctx, y, n, size, size, &r.y);
	if (status)
		return status;
	if (cua__overlap(result, out, x, n * size) ||
	    (op == CUA_REDUCE_DOT && cua__overlap(result, out, y, n * size)))
		return CUA_ERROR_OVERLAP;

	r.finish = (struct cua_finish *)(void *)((char *)ctx->control + CUA__REDUCE_CONTROL);
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, result, out, out, &r.result);
	if (!status && partials_size(&r))
		status = cua__call_scratch(&call, partials_size(&r), &r.partials);
	if (!status)
		status = ctx->backend->reduce->run(ctx, &r);
	return cua__call_end(&call, status);
}

enum cua_status cua_reduce_workspace(struct cua_context *ctx,
				     const struct cua_reduce_options *options,
				     enum cua_reduce_op op, enum cua_type type, size_t n,
				     size_t *bytes)
{
	struct cua__reduce r;
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan(ctx, options, op, type, n, &r);
	if (!status)
		*bytes = cua__scratch_size(result_size(op, type)) +
			 cua__scratch_size(partials_size(&r));
	return status;
}

enum cua_status cua_sum(struct cua_context *ctx, enum cua_type type, size_t n, const void *x,
			void *result)
{
	return cua_reduce(ctx, NULL, CUA_REDUCE_SUM, type, n, x, NULL, result);
}

enum cua_status cua_min(struct cua_context *ctx, enum cua_type type, size_t n, const void *x,
			void *result)
{
	return cua_reduce(ctx, NULL, CUA_REDUCE_MIN, type, n, x, NULL, result);
}

enum cua_status cua_max(struct cua_context *ctx, enum cua_type type, size_t n, const void *x,
			void *result)
{
	return cua_reduce(ctx, NULL, CUA_REDUCE_MAX, type, n, x, NULL, result);
}

enum cua_status cua_dot(struct cua_context *ctx, enum cua_type type, size_t n, const void *x,
			const void *y, void *result)
{
	return cua_reduce(ctx, NULL, CUA_REDUCE_DOT, type, n, x, y, result);
}
