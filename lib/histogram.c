/* SPDX-License-Identifier: MIT */
/* Histograms: the host calls check the arguments and turn the options into a plan for the
 * backend. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "cpu/float_mode.h"
#include "backend/histogram_backend.h"

/* ---- options ---- */

static enum cua_status read_options(const struct cua_histogram_options *options,
				    struct cua_histogram_options *o)
{
	if (cua__options(options, o, sizeof(*o)))
		return CUA_ERROR_VALUE;
	if ((int)o->strategy < CUA_HISTOGRAM_AUTO || o->strategy > CUA_HISTOGRAM_AGGREGATED)
		return CUA_ERROR_VALUE;
	if (!o->channels)
		o->channels = 1;
	if (!o->counted)
		o->counted = o->channels;
	if (o->channels > CUA_HISTOGRAM_MAX_CHANNELS || o->counted > o->channels)
		return CUA_ERROR_VALUE;
	if (o->weights && !o->weight_type)
		return CUA_ERROR_TYPE;
	if (o->weight_type && !cua__is_word(o->weight_type))
		return CUA_ERROR_TYPE;
	if (!cua__is_float(o->weight_type)) {
		if (!o->count_type)
			o->count_type = CUA_U64;
		return o->count_type == CUA_U64 || o->count_type == CUA_U32 ? CUA_OK
									    : CUA_ERROR_TYPE;
	}
	if (!o->count_type)
		o->count_type = CUA_F64;
	if (o->count_type != CUA_F64)
		return CUA_ERROR_TYPE;
	if (o->weight_limit == 0)
		o->weight_limit = 1;
	return o->weight_limit > 0 && isfinite(o->weight_limit) ? CUA_OK : CUA_ERROR_VALUE;
}

/* Copies the options that a plan needs. h has rule, type and bins. */
static void apply_options(const struct cua_histogram_options *o, struct cua__histogram *h)
{
	h->strategy = o->strategy;
	h->channels = o->channels;
	h->counted = o->counted;
	h->closed = o->closed != 0;
	h->outside = o->outside;
	h->weight_type = o->weight_type;
	h->weight_limit = o->weight_limit;
	h->count_type = o->count_type == CUA_U32 ? CUA_U32 : CUA_U64;
	h->clear = !o->accumulate;
	h->add_sums = o->accumulate != 0;
}

/* Checks the layout of the rows. *bytes is the distance from the start of the first row to the
 * end of the last row. */
static enum cua_status lay_rows(const struct cua_histogram_options *o, struct cua__histogram *h,
				size_t n, size_t *bytes)
{
	size_t value = cua_type_size(h->type), element = value * h->channels, row, rows, pitch;
	enum cua_status status;

	h->n = n;
	status = cua__bytes(n, element, bytes);
	if (status)
		return status;
	h->width = n;
	h->pitch = *bytes;
	if (!o->width)
		return o->pitch ? CUA_ERROR_VALUE : CUA_OK;
	if (n % o->width)
		return CUA_ERROR_VALUE;
	status = cua__bytes(o->width, element, &row);
	if (status)
		return status;
	pitch = o->pitch ? o->pitch : row;
	if (pitch < row)
		return CUA_ERROR_VALUE;
	if (pitch % value)
		return CUA_ERROR_ALIGNMENT;
	rows = n / o->width;
	if (rows <= 1 || pitch == row)
		return CUA_OK;
	status = cua__bytes(rows - 1, pitch, bytes);
	if (!status)
		status = cua__bytes(*bytes + row, 1, bytes);
	h->width = o->width;
	h->pitch = pitch;
	return status;
}

/* Chooses the unit of float weights, see histogram.h. */
static void choose_unit(struct cua__histogram *h)
{
	uint64_t most = ((uint64_t)1 << 62) / h->n;
	int e;

	/*
	 * limit = f * 2^e, 1/2 <= f < 1. The limit is at most 2^62 units if a unit is 2^(e - 63)
	 * for f == 1/2, otherwise 2^(e - 62).
	 */
	frexp(h->weight_limit, &e);
	e -= 63;
	if (e < -1022)
		e = -1022;
	while (ldexp(h->weight_limit, -e) > 0x1p62 ||
	       (uint64_t)ceil(ldexp(h->weight_limit, -e)) > most)
		e++;
	h->unit = ldexp(1, e);
	h->per_unit = ldexp(1, -e);
}

/* ---- edges ---- */

/* Converts n edges to keys of 8 or 4 bytes at `keys`. Returns VALUE if the edges are not in
 * order. */
static enum cua_status read_edges(enum cua_type type, size_t n, const void *edges, void *keys)
{
	uint32_t *k32 = keys;
	uint64_t *k64 = keys;

#define READ(T, k, name, wider)                                                                    \
	for (size_t i = 0; i < n; i++) {                                                           \
		T v;                                                                               \
                                                                                                   \
		memcpy(&v, (const char *)edges + i * sizeof(v), sizeof(v));                        \
		if (cua__is_nan_##name(wider))                                                     \
			return CUA_ERROR_VALUE;                                                    \
		k[i] = cua__histogram_edge_key_##name(wider);                                      \
		if (i && k[i] < k[i - 1])                                                          \
			return CUA_ERROR_VALUE;                                                    \
	}                                                                                          \
	return CUA_OK
	switch (type) {
	case CUA_I8: READ(int8_t, k32, i32, v);
	case CUA_U8: READ(uint8_t, k32, u32, v);
	case CUA_I16: READ(int16_t, k32, i32, v);
	case CUA_U16: READ(uint16_t, k32, u32, v);
	case CUA_I32: READ(int32_t, k32, i32, v);
	case CUA_U32: READ(uint32_t, k32, u32, v);
	case CUA_I64: READ(int64_t, k64, i64, v);
	case CUA_U64: READ(uint64_t, k64, u64, v);
	case CUA_F16: READ(struct cua_f16, k32, f32, cua_f32_from_f16(v));
	case CUA_BF16: READ(struct cua_bf16, k32, f32, cua_f32_from_bf16(v));
	case CUA_F32: READ(float, k32, f32, v);
	default: READ(double, k64, f64, v);
	}
#undef READ
}

/* Copies the keys to memory that the backend can read. */
static enum cua_status stage_edges(struct cua__call *call, struct cua__histogram *h,
				   const void *keys)
{
	size_t bytes = ((size_t)h->bins + 1) * cua__histogram_key_size(h->type);
	enum cua_status status;
	void *staged;

	status = cua__call_scratch(call, bytes, &staged);
	if (!status)
		status = call->ctx->runtime->copy(call->ctx, staged, keys, bytes);
	/* If the device reads pageable memory itself, the copy may run after this call, which
	 * frees the keys. */
	if (!status && call->ctx->pageable_access)
		status = call->ctx->runtime->synchronize(call->ctx);
	h->edges = staged;
	return status;
}

/* ---- the function behind all calls ---- */

struct range {
	const void *p;
	size_t bytes;
};

static int any_overlap(const struct range *written, const struct range *others, int n)
{
	for (int i = 0; i < n; i++)
		if (cua__overlap(written->p, written->bytes, others[i].p, others[i].bytes))
			return 1;
	return 0;
}

/* h has rule, type and bins, and for EVEN the range except `closed`. keys: of EDGES, read from
 * `edges`. */
static enum cua_status count(struct cua_context *ctx, const struct cua_histogram_options *o,
			     struct cua__histogram *h, size_t n, const void *x, const void *edges,
			     const void *keys, void *counts)
{
	const struct cua__runtime *runtime = ctx->runtime;
	const struct cua__histogram_ops *ops = CUA__OPS(ctx, histogram);
	const int fixed_point = cua__is_float(o->weight_type);
	/* counts and outside first, then the inputs */
	struct range user[5] = {{0}}, backend[5] = {{0}};
	struct cua__call call;
	enum cua_status status;
	size_t size = cua_type_size(h->type), weight_size = cua_type_size(o->weight_type), bins,
	       bytes;
	void *out = NULL, *outside = NULL, *sums = NULL;

	if (!counts)
		return CUA_ERROR_NULL;
	apply_options(o, h);
	if (h->rule == CUA__BIN_EVEN && h->closed)
		cua_histogram_range_close(&h->range);
	bins = (size_t)h->bins * h->counted;
	user[0].p = counts;
	status = cua__bytes(bins, cua_type_size(o->count_type), &user[0].bytes);
	if (!status)
		status = lay_rows(o, h, n, &bytes);
	if (!status)
		status = cua__check_array(ctx, x, bytes, 1, size, &h->x);
	if (!status && o->weight_type)
		status =
			cua__check_array(ctx, o->weights, n, weight_size, weight_size, &h->weights);
	if (status)
		return status;
	user[1].p = o->outside;
	user[1].bytes = o->outside ? h->counted * CUA_HISTOGRAM_SIDES * sizeof(*o->outside) : 0;
	user[2].p = x;
	user[2].bytes = bytes;
	user[3].p = o->weights;
	user[3].bytes = n * weight_size;
	user[4].p = edges;
	user[4].bytes = edges ? ((size_t)h->bins + 1) * size : 0;
	if (any_overlap(&user[0], user + 1, 4) || any_overlap(&user[1], user + 2, 3))
		return CUA_ERROR_OVERLAP;
	if (fixed_point && n)
		choose_unit(h);
	ops->plan(ctx, h);

	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, counts, user[0].bytes, cua_type_size(o->count_type), &out);
	if (!status && o->outside)
		status = cua__call_result(&call, o->outside, user[1].bytes, sizeof(*o->outside),
					  &outside);
	backend[0].p = out;
	backend[0].bytes = user[0].bytes;
	backend[1].p = outside;
	backend[1].bytes = user[1].bytes;
	backend[2].p = h->x;
	backend[2].bytes = bytes;
	backend[3].p = h->weights;
	backend[3].bytes = user[3].bytes;
	if (!status &&
	    (any_overlap(&backend[0], backend + 1, 3) || any_overlap(&backend[1], backend + 2, 2)))
		status = CUA_ERROR_OVERLAP;
	h->edges = keys;
	if (!status && h->rule == CUA__BIN_EDGES && n && !h->edges_on_host)
		status = stage_edges(&call, h, keys);
	if (!status && fixed_point && n)
		status = cua__call_scratch(&call, bins * sizeof(uint64_t), &sums);
	if (!status && h->scratch_bytes && n)
		status = cua__call_scratch(&call, h->scratch_bytes, &h->scratch);
	for (int i = 0; i < call.n_results && !status && o->accumulate; i++)
		status = runtime->copy(ctx, call.results[i].backend, call.results[i].user,
				       call.results[i].bytes);
	if (status)
		return cua__call_end(&call, status);
	h->counts = fixed_point ? sums : out;
	h->outside = outside;
	h->sums = out;
	if (!n && !o->accumulate) {
		status = runtime->set_bytes(ctx, out, 0, user[0].bytes);
		if (!status && outside)
			status = runtime->set_bytes(ctx, outside, 0, user[1].bytes);
	} else if (n) {
		/* the units start at zero in every call */
		if (fixed_point && o->accumulate)
			status = runtime->set_bytes(ctx, sums, 0, bins * sizeof(uint64_t));
		if (!status)
			status = ops->run(ctx, h);
		if (!status && fixed_point)
			status = ops->finish(ctx, h);
	}
	return cua__call_end(&call, status);
}

static enum cua_status count_text(struct cua_context *ctx, enum cua__bin_rule rule, uint32_t bins,
				  const struct cua_histogram_options *options, size_t n,
				  const void *x, void *counts)
{
	struct cua__histogram h = {.rule = rule, .type = CUA_U8, .bins = bins};
	struct cua_histogram_options o;
	enum cua_status status;

	if (!ctx)
		return CUA_ERROR_NULL;
	status = read_options(options, &o);
	return status ? status : count(ctx, &o, &h, n, x, NULL, NULL, counts);
}

enum cua_status cua_histogram_bytes(struct cua_context *ctx,
				    const struct cua_histogram_options *options, size_t n,
				    const void *x, void *counts)
{
	return count_text(ctx, CUA__BIN_BYTE, CUA_HISTOGRAM_BYTE_BINS, options, n, x, counts);
}

enum cua_status cua_histogram_letters(struct cua_context *ctx,
				      const struct cua_histogram_options *options, size_t n,
				      const void *x, void *counts)
{
	return count_text(ctx, CUA__BIN_LETTER, CUA_HISTOGRAM_LETTER_BINS, options, n, x, counts);
}

/* Types that bins by value support. */
static int has_bins(enum cua_type type)
{
	return (type >= CUA_I8 && type <= CUA_U64) || cua__is_float(type);
}

static enum cua_status read_range(enum cua_type type, size_t bins, const void *lower,
				  const void *upper, struct cua_histogram_range *range)
{
	enum cua_status status;
	fenv_t mode;

	if (cua__is_float(type)) {
		double from, to;

		memcpy(&from, lower, sizeof(from));
		memcpy(&to, upper, sizeof(to));
		cua__float_mode_begin(&mode);
		status = cua_histogram_range_f64(from, to, bins, range);
		cua__float_mode_end(&mode);
	} else if (type == CUA_U64) {
		uint64_t from, to;

		memcpy(&from, lower, sizeof(from));
		memcpy(&to, upper, sizeof(to));
		status = cua_histogram_range_u64(from, to, bins, range);
	} else {
		int64_t from, to;

		memcpy(&from, lower, sizeof(from));
		memcpy(&to, upper, sizeof(to));
		status = cua_histogram_range_i64(from, to, bins, range);
	}
	return status;
}

enum cua_status cua_histogram_even(struct cua_context *ctx,
				   const struct cua_histogram_options *options, enum cua_type type,
				   size_t n, const void *x, size_t bins, const void *lower,
				   const void *upper, void *counts)
{
	struct cua__histogram h = {.rule = CUA__BIN_EVEN, .type = type};
	struct cua_histogram_options o;
	enum cua_status status;

	if (!ctx || !lower || !upper)
		return CUA_ERROR_NULL;
	status = read_options(options, &o);
	if (!status && !has_bins(type))
		status = CUA_ERROR_TYPE;
	if (!status)
		status = read_range(type, bins, lower, upper, &h.range);
	if (status)
		return status;
	h.bins = h.range.bins;
	return count(ctx, &o, &h, n, x, NULL, NULL, counts);
}

/* Whether the host can read the edges during the call. */
static enum cua_status check_edges(struct cua_context *ctx, const void *edges, size_t align)
{
	const struct cua__runtime *runtime = ctx->runtime;
	struct cua__location where;
	enum cua_status status;
	int previous, cancel;

	if ((uintptr_t)edges & (align - 1))
		return CUA_ERROR_ALIGNMENT;
	cancel = cua__cancel_disable();
	previous = runtime->enter(ctx);
	status = runtime->locate(ctx, edges, &where);
	if (!status && !where.host_access)
		status = CUA_ERROR_MEMORY_KIND;
	/* a replayed graph would read the staged edges again */
	if (!status)
		status = runtime->may_wait(ctx);
	runtime->leave(ctx, previous);
	cua__cancel_restore(cancel);
	return status;
}

enum cua_status cua_histogram_edges(struct cua_context *ctx,
				    const struct cua_histogram_options *options, enum cua_type type,
				    size_t n, const void *x, size_t bins, const void *edges,
				    void *counts)
{
	struct cua__histogram h = {.rule = CUA__BIN_EDGES, .type = type, .bins = (uint32_t)bins};
	struct cua_histogram_options o;
	enum cua_status status;
	void *keys;
	int cancel;

	if (!ctx || !edges)
		return CUA_ERROR_NULL;
	status = read_options(options, &o);
	if (!status && !has_bins(type))
		status = CUA_ERROR_TYPE;
	if (!status && !bins)
		status = CUA_ERROR_VALUE;
	if (!status && bins >= CUA_HISTOGRAM_MAX_EDGES)
		status = CUA_ERROR_SIZE;
	if (!status)
		status = check_edges(ctx, edges, cua_type_size(type));
	if (status)
		return status;
	cancel = cua__cancel_disable();
	keys = malloc((bins + 1) * cua__histogram_key_size(type));
	status = keys ? read_edges(type, bins + 1, edges, keys) : CUA_ERROR_NO_MEMORY;
	if (!status)
		status = count(ctx, &o, &h, n, x, edges, keys, counts);
	free(keys);
	cua__cancel_restore(cancel);
	return status;
}

enum cua_status cua_histogram_workspace(struct cua_context *ctx,
					const struct cua_histogram_options *options, size_t bins,
					size_t *bytes)
{
	struct cua__histogram h = {.rule = CUA__BIN_EVEN, .type = CUA_U32, .n = SIZE_MAX};
	struct cua_histogram_options o;
	enum cua_status status;
	size_t all, most;

	if (!ctx || !bytes)
		return CUA_ERROR_NULL;
	status = read_options(options, &o);
	if (!status && !bins)
		status = CUA_ERROR_VALUE;
	if (!status && bins > CUA_HISTOGRAM_MAX_BINS)
		status = CUA_ERROR_SIZE;
	if (status)
		return status;
	h.bins = (uint32_t)bins;
	apply_options(&o, &h);
	all = bins * o.counted;
	/* counts and outside, in case they go to ordinary host memory */
	most = cua__scratch_size(all * cua_type_size(o.count_type)) +
	       cua__scratch_size(o.counted * CUA_HISTOGRAM_SIDES * sizeof(uint64_t));
	if (bins < CUA_HISTOGRAM_MAX_EDGES)
		most += cua__scratch_size((bins + 1) * sizeof(uint64_t));
	if (cua__is_float(o.weight_type))
		most += cua__scratch_size(all * sizeof(uint64_t));
	CUA__OPS(ctx, histogram)->plan(ctx, &h);
	*bytes = most + cua__scratch_size(h.scratch_bytes);
	return CUA_OK;
}
