/* SPDX-License-Identifier: MIT */
/* Exact sums and dot products: argument checks and calls of the backend. */
#include "config.h"

#include "kernels/exact_windows.h"

static struct cua__exact_state *state_of(struct cua_context *ctx)
{
	return (struct cua__exact_state *)(void *)((char *)ctx->control + CUA__EXACT_CONTROL);
}

enum cua_status cua__exact_reduce(struct cua_context *ctx, struct cua__exact *r)
{
	r->state = state_of(ctx);
	r->kept_bytes = ctx->kept_bytes;
	return CUA__OPS(ctx, exact)->run(ctx, r);
}

static enum cua_status add(struct cua_context *ctx, enum cua_reduce_op op, enum cua_type type,
			   size_t n, const void *x, const void *y, struct cua_exact *partial)
{
	struct cua__exact r = {.op = op, .type = type, .n = n};
	struct cua_exact sum;
	struct cua__call call;
	enum cua_status status;
	size_t bytes, size;
	void *backend;

	if (!ctx || !partial)
		return CUA_ERROR_NULL;
	if (!cua__is_float(type))
		return CUA_ERROR_TYPE;
	size = cua_type_size(type);
	status = cua__bytes(n, size, &bytes);
	if (!status)
		status = cua__check_array(ctx, x, n, size, size, &r.x);
	if (!status && op == CUA_REDUCE_DOT)
		status = cua__check_array(ctx, y, n, size, size, &r.y);
	if (status)
		return status;
	if (cua__overlap(partial, sizeof(*partial), x, bytes) ||
	    (op == CUA_REDUCE_DOT && cua__overlap(partial, sizeof(*partial), y, bytes)))
		return CUA_ERROR_OVERLAP;

	r.state = state_of(ctx);
	r.kept_bytes = ctx->kept_bytes;
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, partial, sizeof(*partial), sizeof(uint64_t), &backend);
	if (!status && (call.n_results || ctx->runtime->kind == CUA_BACKEND_CPU) &&
	    partial->layout != CUA_EXACT_LAYOUT)
		status = CUA_ERROR_LAYOUT;
	if (!status)
		r.partial = backend;
	if (!status && call.n_results) {
		/* the device cannot write the partial: its sum is copied here and merged below */
		call.results[0].user = &sum;
		r.fresh = 1;
	}
	if (!status)
		status = CUA__OPS(ctx, exact)->run(ctx, &r);
	status = cua__call_end(&call, status);
	if (!status && r.fresh) {
		cua_exact_merge(partial, &sum);
		cua_exact_normalize(partial);
	}
	return status;
}

enum cua_status cua_exact_sum(struct cua_context *ctx, enum cua_type type, size_t n, const void *x,
			      struct cua_exact *partial)
{
	return add(ctx, CUA_REDUCE_SUM, type, n, x, NULL, partial);
}

enum cua_status cua_exact_dot(struct cua_context *ctx, enum cua_type type, size_t n, const void *x,
			      const void *y, struct cua_exact *partial)
{
	return add(ctx, CUA_REDUCE_DOT, type, n, x, y, partial);
}

enum cua_status cua_exact_finish(struct cua_context *ctx, const struct cua_exact *partial,
				 enum cua_type type, void *result)
{
	struct cua__exact r = {.result_type = type, .partials = 1};
	const void *backend;
	struct cua__call call;
	enum cua_status status;
	size_t size;

	if (!ctx || !partial || !result)
		return CUA_ERROR_NULL;
	if (!cua__is_float(type))
		return CUA_ERROR_TYPE;
	size = cua_type_size(type);
	status = cua__check_array(ctx, partial, 1, sizeof(*partial), sizeof(uint64_t), &backend);
	if (status)
		return status;
	if (cua__overlap(result, size, partial, sizeof(*partial)))
		return CUA_ERROR_OVERLAP;
	if (ctx->runtime->kind == CUA_BACKEND_CPU && partial->layout != CUA_EXACT_LAYOUT)
		return CUA_ERROR_LAYOUT;

	/* the backend only reads it */
	r.partial = (struct cua_exact *)(uintptr_t)backend;
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, result, size, size, &r.result);
	if (!status)
		status = CUA__OPS(ctx, exact)->finish(ctx, &r);
	return cua__call_end(&call, status);
}
