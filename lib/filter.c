/* SPDX-License-Identifier: MIT */
/* The filter's calls: turns the options of a call into a plan for the backend. */
#include "config.h"

#include "backend/append_backend.h"
#include "backend/filter_backend.h"

CUA_STATIC_ASSERT(CUA__FILTER_CONTROL + sizeof(struct cua__filter_control) <= CUA__CONTROL_BYTES,
		  "the control memory");

/* ---- a comparison as a range of keys ---- */

/*
 * A rank is an unsigned number of the type's bits, in the order of the values. A kernel's key is
 * the rank with its highest bit flipped, as signed comparison needs; the flip cancels in a
 * difference.
 */
struct ranks {
	uint64_t most; /* highest number of the type's bits */
	/* lowest and highest rank that a comparison can select; a NaN's rank is outside */
	uint64_t first, last;
	uint64_t low, high; /* ranks equal to the value */
	uint64_t flip;
	int nan;
};

static struct ranks rank(enum cua_type type, const void *value)
{
	unsigned bits = (unsigned)cua_type_size(type) * 8;
	uint64_t sign = (uint64_t)1 << (bits - 1), v, infinity;
	struct ranks r = {.most = UINT64_MAX >> (64 - bits)};
	uint16_t v16;
	uint32_t v32;

	/* the number has this machine's byte order and may be at any address */
	switch (bits) {
	case 8: v = *(const uint8_t *)value; break;
	case 16: memcpy(&v16, value, sizeof(v16)), v = v16; break;
	case 32: memcpy(&v32, value, sizeof(v32)), v = v32; break;
	default: memcpy(&v, value, sizeof(v)); break;
	}
	r.last = r.most;
	switch (type) {
	case CUA_F16: infinity = 0x7c00; break;
	case CUA_BF16: infinity = 0x7f80; break;
	case CUA_F32: infinity = 0x7f800000; break;
	case CUA_F64: infinity = (uint64_t)0x7ff << 52; break;
	case CUA_I8:
	case CUA_I16:
	case CUA_I32:
	case CUA_I64:
		r.flip = sign;
		r.low = r.high = v ^ sign;
		return r;
	default: r.low = r.high = v; return r;
	}
	r.flip = sign;
	r.nan = (v & (sign - 1)) > infinity;
	r.first = sign - 1 - infinity;
	r.last = sign + infinity;
	/* -0 has the rank below +0's */
	if (!(v & (sign - 1))) {
		r.low = sign - 1;
		r.high = sign;
	} else {
		r.low = r.high = v & sign ? sign - 1 - (v & (sign - 1)) : v + sign;
	}
	return r;
}

static void plan_compare(struct cua__filter *f, enum cua_type type, enum cua_compare compare,
			 const void *value)
{
	struct ranks r = rank(type, value);
	uint64_t low = r.low, high = r.high;
	int none = r.nan;

	f->key = cua__is_float(type) ? CUA__FILTER_FLOAT : CUA__FILTER_INTEGER;
	f->inverted = compare == CUA_NE;
	switch (compare) {
	case CUA_LT:
		none |= r.low == r.first;
		low = r.first;
		high = r.low - 1;
		break;
	case CUA_LE: low = r.first; break;
	case CUA_GE: high = r.last; break;
	case CUA_GT:
		none |= r.high == r.last;
		low = r.high + 1;
		high = r.last;
		break;
	default: break;
	}
	if (none) {
		low = 0;
		high = r.most;
		f->inverted = !f->inverted;
	}
	f->low = low ^ r.flip;
	f->range = high - low;
}

/* ---- arguments ---- */

static int known_type(enum cua_type type)
{
	return cua_type_size(type) != 0;
}

/* Types that can be compared: integers and floats of 8 to 64 bits. */
static int comparable(enum cua_type type)
{
	return known_type(type) && type != CUA_U128 && type != CUA_COMPLEX_F32 &&
	       type != CUA_COMPLEX_F64;
}

/* Fills in the members that follow from the element type and the options. */
static enum cua_status plan(struct cua_context *ctx, const struct cua_filter_options *options,
			    enum cua_type type, size_t n, struct cua_filter_options *o,
			    struct cua__filter *f)
{
	size_t bytes;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (cua__options(options, o, sizeof(*o)))
		return CUA_ERROR_VALUE;
	if (o->index_type && o->index_type != CUA_U32 && o->index_type != CUA_U64)
		return CUA_ERROR_VALUE;
	if (o->flags ? !known_type(type) : !comparable(type))
		return CUA_ERROR_TYPE;
	if (o->index_type == CUA_U32 && n > (size_t)UINT32_MAX + 1)
		return CUA_ERROR_SIZE;
	memset(f, 0, sizeof(*f));
	f->key = CUA__FILTER_FLAG;
	f->size = (uint32_t)cua_type_size(type);
	f->n = n;
	f->ordered = o->ordered != 0;
	f->partition = o->partition != 0;
	f->index_size = o->index_type ? (uint32_t)cua_type_size(o->index_type) : 0;
	return cua__bytes(n, f->size > 8 ? f->size : 8, &bytes);
}

/*
 * Fills in the inputs of f->n elements: flags or a comparison, and the elements. x may be NULL if
 * neither reads the elements.
 */
static enum cua_status plan_inputs(struct cua_context *ctx, const struct cua_filter_options *o,
				   enum cua_type type, const void *x, enum cua_compare compare,
				   const void *value, int has_values, struct cua__filter *f)
{
	enum cua_status status = CUA_OK;
	const void *p;

	if (o->flags) {
		status = cua__check_array(ctx, o->flags, f->n, 1, 1, &p);
		f->flags = p;
	} else {
		if (!value)
			return CUA_ERROR_NULL;
		if ((int)compare < CUA_LT || compare > CUA_GT)
			return CUA_ERROR_VALUE;
		plan_compare(f, type, compare, value);
	}
	if (!status && (x || has_values || !o->flags))
		status = cua__check_array(ctx, x, f->n, f->size, f->size, &f->x);
	return status;
}

static enum cua_status run(struct cua_context *ctx, struct cua__call *call, struct cua__filter *f)
{
	size_t bytes = CUA__OPS(ctx, filter)->scratch(ctx, f);
	enum cua_status status = CUA_OK;
	void *scratch = NULL;

	if (bytes)
		status = cua__call_scratch(call, bytes, &scratch);
	return status ? status : CUA__OPS(ctx, filter)->filter(ctx, f, scratch);
}

/* ---- the calls ---- */

enum cua_status cua_filter_array(struct cua_context *ctx, const struct cua_filter_options *options,
				 enum cua_type type, size_t n, const void *x,
				 enum cua_compare compare, const void *value, uint64_t capacity,
				 void *values, uint64_t *count)
{
	struct cua_filter_options o;
	struct cua__filter f;
	struct cua__call call;
	enum cua_status status;
	struct {
		const void *p;
		size_t bytes;
	} arrays[5];
	const void *p;
	void *out;
	size_t room;

	status = plan(ctx, options, type, n, &o, &f);
	if (status)
		return status;
	if (!count)
		return CUA_ERROR_NULL;
	if (!o.index_type != !o.indexes)
		return CUA_ERROR_VALUE;
	if (f.partition && capacity < n)
		return CUA_ERROR_SIZE;
	status = plan_inputs(ctx, &o, type, x, compare, value, values != NULL, &f);
	f.capacity = capacity < n ? capacity : n;
	room = (size_t)f.capacity;
	if (!status && values) {
		status = cua__check_array(ctx, values, room, f.size, f.size, &p);
		f.values = room ? (void *)p : NULL;
	}
	if (!status && o.indexes) {
		status = cua__check_array(ctx, o.indexes, room, f.index_size, f.index_size, &p);
		f.indexes = room ? (void *)p : NULL;
	}
	if (status)
		return status;
	if (!values && !o.indexes && room && f.partition)
		return CUA_ERROR_NULL;
	f.in_place = room && values && values == x;
	if (f.in_place && f.partition)
		return CUA_ERROR_UNSUPPORTED;
	arrays[0].p = x;
	arrays[0].bytes = x ? n * f.size : 0;
	arrays[1].p = o.flags;
	arrays[1].bytes = o.flags ? n : 0;
	arrays[2].p = values;
	arrays[2].bytes = values ? room * f.size : 0;
	arrays[3].p = o.indexes;
	arrays[3].bytes = o.indexes ? room * f.index_size : 0;
	arrays[4].p = count;
	arrays[4].bytes = sizeof(*count);
	for (int i = 2; i < 5; i++)
		for (int j = 0; j < i; j++)
			if (!(f.in_place && i == 2 && j == 0) &&
			    cua__overlap(arrays[i].p, arrays[i].bytes, arrays[j].p,
					 arrays[j].bytes))
				return CUA_ERROR_OVERLAP;
	if (f.in_place)
		f.ordered = 1;
	/* nothing is stored, so there is nothing to order */
	if (!f.values && !f.indexes)
		f.ordered = f.partition = 0;

	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, count, sizeof(*count), sizeof(*count), &out);
	f.count = out;
	if (!status && !n)
		status = ctx->runtime->set_bytes(ctx, f.count, 0, sizeof(*f.count));
	else if (!status)
		status = run(ctx, &call, &f);
	return cua__call_end(&call, status);
}

enum cua_status cua_filter_append(struct cua_context *ctx, const struct cua_filter_options *options,
				  enum cua_type type, size_t n, const void *x,
				  enum cua_compare compare, const void *value,
				  struct cua_append *out)
{
	struct cua_filter_options o;
	struct cua__filter f;
	struct cua__call call;
	enum cua_status status;

	status = plan(ctx, options, type, n, &o, &f);
	if (status)
		return status;
	if (!out)
		return CUA_ERROR_NULL;
	if (o.indexes || f.partition)
		return CUA_ERROR_VALUE;
	if ((o.index_type ? f.index_size : f.size) != out->view.item_size)
		return CUA_ERROR_TYPE;
	if (out->ctx != ctx)
		return CUA_ERROR_CONTEXT;
	status = plan_inputs(ctx, &o, type, x, compare, value, !o.index_type, &f);
	if (status)
		return status;
	if (n && ((x && cua__append_overlap(&out->view, x, n * f.size)) ||
		  (f.x && cua__append_overlap(&out->view, f.x, n * f.size)) ||
		  (o.flags && (cua__append_overlap(&out->view, o.flags, n) ||
			       cua__append_overlap(&out->view, f.flags, n)))))
		return CUA_ERROR_OVERLAP;
	if (!n)
		return CUA_OK;
	f.capacity = out->view.capacity;
	f.demand = &out->view.cursor->demand;
	if (f.capacity && o.index_type)
		f.indexes = out->view.items;
	else if (f.capacity)
		f.values = out->view.items;
	if (!f.capacity)
		f.ordered = 0;
	cua__call_begin(&call, ctx);
	status = run(ctx, &call, &f);
	return cua__call_end(&call, status);
}

enum cua_status cua_filter_workspace(struct cua_context *ctx,
				     const struct cua_filter_options *options, enum cua_type type,
				     size_t n, size_t *bytes)
{
	struct cua_filter_options o;
	struct cua__filter f;
	enum cua_status status;

	if (!bytes)
		return CUA_ERROR_NULL;
	status = plan(ctx, options, type, n, &o, &f);
	if (status)
		return status;
	/*
	 * assumes an ordered filter, because filtering in place is ordered, and a count that goes
	 * to ordinary host memory
	 */
	f.ordered = f.ordered || !f.partition;
	*bytes = cua__scratch_size(sizeof(uint64_t));
	if (n)
		*bytes += cua__scratch_size(CUA__OPS(ctx, filter)->scratch(ctx, &f));
	return CUA_OK;
}

enum cua_status cua_filter(struct cua_context *ctx, enum cua_type type, size_t n, const void *x,
			   enum cua_compare compare, const void *value, struct cua_append *out)
{
	if (!ctx || !value || !out)
		return CUA_ERROR_NULL;
	return cua_filter_append(ctx, NULL, type, n, x, compare, value, out);
}
