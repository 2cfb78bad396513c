/* SPDX-License-Identifier: MIT */
/* Reductions: argument checks, and the choice of kind and result type. */
#include "config.h"

#include "kernels/exact_windows.h"
#include "backend/reduce_backend.h"

#define MAX_BLOCK_SIZE 1024u

CUA_STATIC_ASSERT(CUA__REDUCE_CONTROL + sizeof(struct cua_finish) <= 512, "the others' control");

#define ALL_BITS UINT64_MAX

static int is_complex(enum cua_type type)
{
	return type == CUA_COMPLEX_F32 || type == CUA_COMPLEX_F64;
}

/*
 * The kinds of tree.h by element type, in the order of column(). Complex types have CUA__TREE_NONE.
 */
#define KINDS_BY_BITS(kind)                                                                        \
	{                                                                                          \
		CUA__TREE_##kind##_b32, CUA__TREE_##kind##_b64, CUA__TREE_##kind##_b16,            \
			CUA__TREE_##kind##_b16, CUA__TREE_##kind##_b32, CUA__TREE_##kind##_b64     \
	}
#define KINDS_BY_TYPE(kind)                                                                        \
	CUA__TREE_##kind##_b32, CUA__TREE_##kind##_b64, CUA__TREE_##kind##_f16,                    \
		CUA__TREE_##kind##_bf16, CUA__TREE_##kind##_f32, CUA__TREE_##kind##_f64

static int column(enum cua_type type)
{
	switch (type) {
	case CUA_I32:
	case CUA_U32: return 0;
	case CUA_I64:
	case CUA_U64: return 1;
	case CUA_F16: return 2;
	case CUA_BF16: return 3;
	case CUA_F32: return 4;
	case CUA_F64: return 5;
	case CUA_COMPLEX_F32: return 6;
	case CUA_COMPLEX_F64: return 7;
	default: return -1;
	}
}

enum cua__tree_kind cua__reduce_kind(enum cua_reduce_op op, enum cua_type type)
{
	static const enum cua__tree_kind sums[8] = {KINDS_BY_TYPE(sum), CUA__TREE_sum_c32,
						    CUA__TREE_sum_c64};
	static const enum cua__tree_kind dots[8] = {KINDS_BY_TYPE(dot), CUA__TREE_dot_c32,
						    CUA__TREE_dot_c64};
	static const enum cua__tree_kind products[8] = {KINDS_BY_TYPE(product)};
	static const enum cua__tree_kind moments[8] = {KINDS_BY_TYPE(moments)};
	static const enum cua__tree_kind orders[8] = KINDS_BY_BITS(order);
	static const enum cua__tree_kind indexes[8] = KINDS_BY_BITS(index);
	static const enum cua__tree_kind counts[8] = KINDS_BY_BITS(count);
	int c = column(type);

	if (c < 0)
		return CUA__TREE_NONE;
	switch (op) {
	case CUA_REDUCE_SUM: return sums[c];
	case CUA_REDUCE_DOT:
	case CUA_REDUCE_DOT_CONJ: return dots[c];
	case CUA_REDUCE_PRODUCT: return products[c];
	case CUA_REDUCE_MIN:
	case CUA_REDUCE_MAX: return orders[c];
	case CUA_REDUCE_ARGMIN:
	case CUA_REDUCE_ARGMAX: return indexes[c];
	case CUA_REDUCE_COUNT: return counts[c];
	default: break;
	}
	if (is_complex(type))
		return CUA__TREE_NONE;
	switch (op) {
	case CUA_REDUCE_SUM_ABS:
	case CUA_REDUCE_MEAN: return sums[c];
	case CUA_REDUCE_SUM_SQUARES: return dots[c];
	case CUA_REDUCE_NORM2:
		if (!cua__is_float(type))
			return CUA__TREE_NONE;
		return type == CUA_F64 ? CUA__TREE_norm_f64 : dots[c];
	case CUA_REDUCE_VARIANCE:
	case CUA_REDUCE_VARIANCE_SAMPLE: return moments[c];
	default: return CUA__TREE_NONE;
	}
}

/* The result type if the options name none. */
static enum cua_type result_type(enum cua_reduce_op op, enum cua_type type)
{
	int is_signed = type == CUA_I32 || type == CUA_I64;

	switch (op) {
	case CUA_REDUCE_MIN:
	case CUA_REDUCE_MAX: return type;
	case CUA_REDUCE_ARGMIN:
	case CUA_REDUCE_ARGMAX:
	case CUA_REDUCE_COUNT: return CUA_U64;
	default: break;
	}
	if (cua__is_float(type) || is_complex(type))
		return type;
	if (op == CUA_REDUCE_MEAN || op == CUA_REDUCE_VARIANCE || op == CUA_REDUCE_VARIANCE_SAMPLE)
		return CUA_F64;
	return is_signed && op != CUA_REDUCE_SUM_ABS ? CUA_I64 : CUA_U64;
}

/* Whether a result may have type `wanted`: a wider type, real or complex like the element type. */
static int may_widen(enum cua_reduce_op op, enum cua_type type, enum cua_type wanted)
{
	if (op == CUA_REDUCE_MIN || op == CUA_REDUCE_MAX || result_type(op, type) == CUA_U64)
		return 0;
	if (is_complex(type))
		return is_complex(wanted) && cua_type_size(wanted) >= cua_type_size(type);
	return cua__is_float(type) && cua__is_float(wanted) &&
	       cua_type_size(wanted) > cua_type_size(type);
}

/* Sets the parameters that the functions of a kind read. */
static void describe(struct cua__reduce *r)
{
	unsigned bits = 8 * (unsigned)cua_type_size(r->type);
	uint64_t all;
	int minimum = r->op == CUA_REDUCE_MIN || r->op == CUA_REDUCE_ARGMIN;

	r->conjugate = r->op == CUA_REDUCE_DOT_CONJ ? -1 : 1;
	if (is_complex(r->type))
		return;
	all = ALL_BITS >> (64 - bits);
	r->top = (uint64_t)1 << (bits - 1);
	r->flip = minimum ? all : 0;
	r->finite = r->keep = all;
	if (r->type == CUA_U32 || r->type == CUA_U64)
		return;
	if (!cua__is_float(r->type)) {
		if (r->op == CUA_REDUCE_SUM_ABS)
			r->absolute = all;
		else
			r->sign = r->top;
		return;
	}
	r->sign = r->top;
	r->low = all ^ r->top;
	switch (r->type) {
	case CUA_F16: r->finite = 0x7c00, r->quiet = 0x7e00; break;
	case CUA_BF16: r->finite = 0x7f80, r->quiet = 0x7fc0; break;
	case CUA_F32: r->finite = 0x7f800000u, r->quiet = 0x7fc00000u; break;
	default: r->finite = 0x7ff0000000000000u, r->quiet = 0x7ff8000000000000u; break;
	}
	/* only SUM and MEAN use the sign bits of the elements */
	if (r->op != CUA_REDUCE_SUM && r->op != CUA_REDUCE_MEAN)
		r->keep = r->low;
}

int cua__reduce_has_plain(const struct cua__reduce *r)
{
	/* only the tree has results of another type than the default */
	if (r->result_type != result_type(r->op, r->type))
		return 0;
#define HAS_PLAIN(name, op_name, type_name, T, A, R, family, element, value, nothing)              \
	if (r->op == CUA_REDUCE_##op_name && r->type == CUA_##type_name)                           \
		return 1;
	CUA__REDUCE_LIST(HAS_PLAIN)
	return 0;
}

enum cua_status cua__reduce_describe(const struct cua_reduce_options *options,
				     enum cua_reduce_op op, enum cua_type type, size_t n,
				     struct cua__reduce *r)
{
	struct cua_reduce_options o;
	enum cua_status status;
	size_t bytes;

	if (cua__options(options, &o, sizeof(o)))
		return CUA_ERROR_VALUE;
	if ((int)o.finish < CUA_FINISH_AUTO || o.finish > CUA_FINISH_ORDERED_LOCK ||
	    o.blocks > CUA_REDUCE_BLOCKS_MAX || o.block_size > MAX_BLOCK_SIZE ||
	    (int)o.mode < CUA_REDUCE_AUTO || o.mode > CUA_REDUCE_EXACT)
		return CUA_ERROR_VALUE;
	if ((int)op < CUA_REDUCE_SUM || op > CUA_REDUCE_DOT_CONJ)
		return CUA_ERROR_VALUE;
	memset(r, 0, sizeof(*r));
	r->kind = cua__reduce_kind(op, type);
	r->result_type = result_type(op, type);
	if (r->kind == CUA__TREE_NONE)
		return CUA_ERROR_TYPE;
	if (o.result_type && o.result_type != r->result_type) {
		if (!may_widen(op, type, o.result_type))
			return CUA_ERROR_TYPE;
		r->result_type = o.result_type;
	}
	status = cua__bytes(n, cua_type_size(type), &bytes);
	if (status)
		return status;
	r->op = op;
	r->type = type;
	r->mode = o.mode ? o.mode : CUA_REDUCE_FAST;
	r->finish_mode = o.finish ? o.finish : CUA_FINISH_LAST_BLOCK;
	r->blocks = o.blocks;
	r->block_size = o.block_size;
	r->n = n;
	r->count = o.count;
	describe(r);
	if (r->finish_mode != CUA_FINISH_LAST_BLOCK &&
	    (r->mode != CUA_REDUCE_FAST || !cua__reduce_has_plain(r)))
		return CUA_ERROR_UNSUPPORTED;
	if (r->mode == CUA_REDUCE_EXACT &&
	    !(cua__is_float(type) && (op == CUA_REDUCE_SUM || cua__reduce_has_second(op))))
		return CUA_ERROR_UNSUPPORTED;
	return CUA_OK;
}

/* Checks the arguments that cua_reduce and cua_reduce_workspace share, and makes a plan of them. */
static enum cua_status plan(struct cua_context *ctx, const struct cua_reduce_options *options,
			    enum cua_reduce_op op, enum cua_type type, size_t n,
			    struct cua__reduce *r)
{
	enum cua_status status =
		ctx ? cua__reduce_describe(options, op, type, n, r) : CUA_ERROR_NULL;

	if (!status && r->mode != CUA_REDUCE_EXACT)
		CUA__OPS(ctx, reduce)->plan(ctx, r);
	return status;
}

size_t cua__reduce_partials(const struct cua__reduce *r)
{
	if (r->mode == CUA_REDUCE_EXACT)
		return 0;
	if (r->kind)
		return cua__tree_partials(r);
	return r->finish_mode == CUA_FINISH_LAST_BLOCK ? (size_t)r->blocks * sizeof(uint64_t) : 0;
}

struct cua__exact cua__reduce_exact(const struct cua__reduce *r)
{
	struct cua__exact exact = {
		.op = cua__reduce_has_second(r->op) ? CUA_REDUCE_DOT : CUA_REDUCE_SUM,
		.type = r->type,
		.result_type = r->result_type,
		.n = r->n,
		.count = r->count,
		.x = r->x,
		.y = cua__reduce_has_second(r->op) ? r->y : NULL,
		.result = r->result,
	};

	return exact;
}

static enum cua_status reduce_exactly(struct cua_context *ctx, const struct cua__reduce *r)
{
	struct cua__exact exact = cua__reduce_exact(r);

	return cua__exact_reduce(ctx, &exact);
}

enum cua_status cua__reduce_arguments(struct cua_context *ctx, struct cua__reduce *r, const void *x,
				      const void *y, const void *result)
{
	const size_t size = cua_type_size(r->type), out = cua_type_size(r->result_type);
	const size_t n = (size_t)r->n;
	const void *count = NULL;
	enum cua_status status;

	if (!cua__reduce_has_second(r->op) && y)
		return CUA_ERROR_VALUE;
	if (!result)
		return CUA_ERROR_NULL;
	status = cua__check_array(ctx, x, n, size, size, &r->x);
	if (!status && cua__reduce_has_second(r->op))
		status = cua__check_array(ctx, y, n, size, size, &r->y);
	if (!status && r->count)
		status = cua__check_array(ctx, r->count, 1, sizeof(*r->count), sizeof(*r->count),
					  &count);
	if (status)
		return status;
	if (cua__overlap(result, out, x, n * size) ||
	    (r->y && cua__overlap(result, out, y, n * size)) ||
	    (r->count && cua__overlap(result, out, r->count, sizeof(*r->count))))
		return CUA_ERROR_OVERLAP;
	r->count = count;
	/* a sum of squares is the dot product of an array with itself */
	if (!cua__reduce_has_second(r->op))
		r->y = r->x;
	r->finish = (struct cua_finish *)(void *)((char *)ctx->control + CUA__REDUCE_CONTROL);
	return CUA_OK;
}

enum cua_status cua_reduce(struct cua_context *ctx, const struct cua_reduce_options *options,
			   enum cua_reduce_op op, enum cua_type type, size_t n, const void *x,
			   const void *y, void *result)
{
	struct cua__reduce r;
	struct cua__call call;
	enum cua_status status = plan(ctx, options, op, type, n, &r);
	size_t out;

	if (!status)
		status = cua__reduce_arguments(ctx, &r, x, y, result);
	if (status)
		return status;
	out = cua_type_size(r.result_type);
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, result, out, out, &r.result);
	if (!status && cua__reduce_partials(&r))
		status = cua__call_scratch(&call, cua__reduce_partials(&r), &r.partials);
	if (!status && r.mode == CUA_REDUCE_EXACT)
		status = reduce_exactly(ctx, &r);
	else if (!status)
		status = CUA__OPS(ctx, reduce)->run(ctx, &r);
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
		*bytes = cua__scratch_size(cua_type_size(r.result_type)) +
			 cua__scratch_size(cua__reduce_partials(&r));
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
