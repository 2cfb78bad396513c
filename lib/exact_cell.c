/* SPDX-License-Identifier: MIT */
/* Exact cells: argument checks and dispatch. */
#include "config.h"

#include <cuatomic/exact_cell.h>

#include "backend/exact_cell_backend.h"

/* The fields of a view that finish needs, for either type. */
struct view {
	enum cua_type type;
	const void *cell;
	uint64_t cells, first;
	const struct cua_append_view *spills;
	int unit, least, greatest;
	size_t cell_size, align;
	uint32_t layout;
};

/* The checks of the view's numbers. */
static enum cua_status check_view(const struct view *v)
{
	if (v->layout != CUA_EXACT_CELLS_LAYOUT)
		return CUA_ERROR_LAYOUT;
	if (v->unit < v->least || v->unit > v->greatest)
		return CUA_ERROR_VALUE;
	if (v->cells > SIZE_MAX || v->spills->capacity > SIZE_MAX)
		return CUA_ERROR_SIZE;
	if (!v->spills->cursor)
		return CUA_OK;
	if (v->spills->layout != CUA_APPEND_LAYOUT)
		return CUA_ERROR_LAYOUT;
	return v->spills->item_size == sizeof(struct cua_exact_spill) ? CUA_OK : CUA_ERROR_VALUE;
}

/* The arrays of a call; sets their addresses. */
static enum cua_status check_arrays(struct cua_context *ctx, const struct view *v,
				    struct cua__cells *c, const void *out)
{
	const size_t cells = (size_t)v->cells, size = cua_type_size(c->result_type);
	const size_t room = v->spills->cursor ? (size_t)v->spills->capacity : 0;
	const struct cua_append_view *spills = v->spills;
	const size_t lost = c->lost ? sizeof(*c->lost) : 0;
	enum cua_status status;
	const void *p;

	status = cua__check_array(ctx, v->cell, cells, v->cell_size, v->align, &p);
	c->cell = (uint64_t *)(uintptr_t)p;
	if (!status)
		status = cua__check_array(ctx, out, cells, size, size, &p);
	c->out = (void *)(uintptr_t)p;
	if (!status && spills->cursor) {
		status = cua__check_array(ctx, spills->cursor, 1, sizeof(*spills->cursor),
					  sizeof(uint64_t), &p);
		c->demand = (const uint64_t *)p;
		if (!status)
			status = cua__check_array(ctx, spills->items, room,
						  sizeof(struct cua_exact_spill), sizeof(uint64_t),
						  &p);
		c->spill = (const struct cua_exact_spill *)p;
		c->capacity = room;
	}
	if (status)
		return status;
	if (cua__overlap(out, cells * size, v->cell, cells * v->cell_size) ||
	    cua__overlap(out, cells * size, spills->items, room * sizeof(*c->spill)) ||
	    cua__overlap(out, cells * size, spills->cursor, c->demand ? sizeof(*c->demand) : 0) ||
	    cua__overlap(c->lost, lost, out, cells * size) ||
	    cua__overlap(c->lost, lost, v->cell, cells * v->cell_size) ||
	    cua__overlap(c->lost, lost, spills->items, room * sizeof(*c->spill)) ||
	    cua__overlap(c->lost, lost, spills->cursor, c->demand ? sizeof(*c->demand) : 0))
		return CUA_ERROR_OVERLAP;
	return CUA_OK;
}

static enum cua_status finish(struct cua_context *ctx,
			      const struct cua_exact_cells_options *options, const struct view *v,
			      void *out)
{
	struct cua_exact_cells_options o;
	struct cua__cells c = {
		.type = v->type, .unit = v->unit, .cells = v->cells, .first = v->first};
	struct cua__call call;
	enum cua_status status;
	void *lost = NULL;
	int waits = 0;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (cua__options(options, &o, sizeof(o)) || (int)o.overwrite >> 1)
		return CUA_ERROR_VALUE;
	c.result_type = o.result_type == CUA_NONE ? v->type : o.result_type;
	if (!cua__is_float(c.result_type))
		return CUA_ERROR_TYPE;
	c.overwrite = o.overwrite;
	c.lost = o.lost;
	status = check_view(v);
	if (!status)
		status = check_arrays(ctx, v, &c, out);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	if (c.lost) {
		status = cua__call_result(&call, c.lost, sizeof(*c.lost), sizeof(*c.lost), &lost);
		c.lost = (uint64_t *)lost;
		/* the call waits for a result that it copies, or that the CPU has stored */
		waits = call.n_results || ctx->runtime->kind == CUA_BACKEND_CPU;
	}
	if (!status)
		status = cua__call_scratch(&call, CUA__OPS(ctx, cells)->scratch(ctx, &c),
					   &c.scratch);
	if (!status)
		status = CUA__OPS(ctx, cells)->finish(ctx, &c);
	status = cua__call_end(&call, status);
	return !status && waits && *o.lost ? CUA_ERROR_FULL : status;
}

#define DEFINE_FINISH(t, TYPE, suffix)                                                             \
	enum cua_status cua_exact_cells_finish_##t(                                                \
		struct cua_context *ctx, const struct cua_exact_cells_options *options,            \
		const struct cua_exact_cells_##t *view, void *out)                                 \
	{                                                                                          \
		struct view v = {.type = TYPE,                                                     \
				 .least = CUA_EXACT_CELL_UNIT_MIN_##suffix,                        \
				 .greatest = CUA_EXACT_CELL_UNIT_MAX_##suffix,                     \
				 .cell_size = sizeof(struct cua_exact_cell_##t),                   \
				 .align = __alignof__(struct cua_exact_cell_##t)};                 \
                                                                                                   \
		if (!view)                                                                         \
			return CUA_ERROR_NULL;                                                     \
		v.cell = view->cell;                                                               \
		v.cells = view->cells;                                                             \
		v.first = view->first;                                                             \
		v.spills = &view->spills;                                                          \
		v.unit = view->unit;                                                               \
		v.layout = view->layout;                                                           \
		return finish(ctx, options, &v, out);                                              \
	}

DEFINE_FINISH(f32, CUA_F32, F32)
DEFINE_FINISH(f64, CUA_F64, F64)

enum cua_status cua_exact_range(struct cua_context *ctx, enum cua_type type, size_t n,
				const void *x, struct cua_exact_fit *fit)
{
	struct cua__range r = {.type = type, .n = n};
	struct cua__call call;
	enum cua_status status;
	void *result = NULL;
	size_t bytes, size;

	if (!ctx || !fit)
		return CUA_ERROR_NULL;
	if (type != CUA_F32 && type != CUA_F64)
		return CUA_ERROR_TYPE;
	size = cua_type_size(type);
	status = cua__bytes(n, size, &bytes);
	if (!status)
		status = cua__check_array(ctx, x, n, size, size, &r.x);
	if (status)
		return status;
	if (cua__overlap(fit, sizeof(*fit), x, bytes))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, fit, sizeof(*fit), sizeof(uint64_t), &result);
	r.result = (struct cua_exact_fit *)result;
	if (!status)
		status = cua__call_scratch(&call, CUA__OPS(ctx, cells)->range_scratch(ctx, &r),
					   &r.scratch);
	if (!status)
		status = CUA__OPS(ctx, cells)->range(ctx, &r);
	return cua__call_end(&call, status);
}
