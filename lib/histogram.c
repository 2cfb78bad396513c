/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "histogram.h"

static enum cua_status read_options(const struct cua_histogram_options *options,
				    struct cua_histogram_options *o)
{
	memset(o, 0, sizeof(*o));
	if (options) {
		if (options->struct_size < sizeof(size_t) || options->struct_size > sizeof(*o))
			return CUA_ERROR_VALUE;
		memcpy(o, options, options->struct_size);
	}
	if ((int)o->strategy < CUA_HISTOGRAM_AUTO || o->strategy > CUA_HISTOGRAM_AGGREGATED)
		return CUA_ERROR_VALUE;
	return CUA_OK;
}

/* The call behind all of them; h has rule, type, range and bins. */
static enum cua_status count(struct cua_context *ctx, const struct cua_histogram_options *options,
			     struct cua__histogram *h, size_t n, const void *x, uint64_t *counts)
{
	const struct cua__runtime *runtime = ctx->backend->runtime;
	struct cua_histogram_options o;
	struct cua__call call;
	enum cua_status status;
	size_t size = cua_type_size(h->type), bytes;
	void *out = NULL;

	if (!counts)
		return CUA_ERROR_NULL;
	status = read_options(options, &o);
	if (!status)
		status = cua__bytes(h->bins, sizeof(*counts), &bytes);
	if (!status)
		status = cua__check_array(ctx, x, n, size, size, &h->x);
	if (status)
		return status;
	if (cua__overlap(counts, bytes, x, n * size))
		return CUA_ERROR_OVERLAP;
	h->n = n;
	h->strategy = o.strategy;
	ctx->backend->histogram->plan(ctx, h);

	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, counts, bytes, sizeof(*counts), &out);
	if (!status && cua__overlap(out, bytes, h->x, n * size))
		status = CUA_ERROR_OVERLAP;
	if (!status && h->scratch_bytes)
		status = cua__call_scratch(&call, h->scratch_bytes, &h->scratch);
	if (!status && !o.accumulate)
		status = runtime->set_bytes(ctx, out, 0, bytes);
	else if (!status && call.n_results)
		status = runtime->copy(ctx, out, counts, bytes);
	if (!status && n) {
		h->counts = out;
		status = ctx->backend->histogram->run(ctx, h);
	}
	return cua__call_end(&call, status);
}

enum cua_status cua_histogram_bytes(struct cua_context *ctx,
				    const struct cua_histogram_options *options, size_t n,
				    const void *x, uint64_t *counts)
{
	struct cua__histogram h = {.rule = CUA__BIN_BYTE, .type = CUA_U8};

	if (!ctx)
		return CUA_ERROR_NULL;
	h.bins = CUA_HISTOGRAM_BYTE_BINS;
	return count(ctx, options, &h, n, x, counts);
}

enum cua_status cua_histogram_letters(struct cua_context *ctx,
				      const struct cua_histogram_options *options, size_t n,
				      const void *x, uint64_t *counts)
{
	struct cua__histogram h = {.rule = CUA__BIN_LETTER, .type = CUA_U8};

	if (!ctx)
		return CUA_ERROR_NULL;
	h.bins = CUA_HISTOGRAM_LETTER_BINS;
	return count(ctx, options, &h, n, x, counts);
}

enum cua_status cua_histogram_even(struct cua_context *ctx,
				   const struct cua_histogram_options *options, enum cua_type type,
				   size_t n, const void *x, size_t bins, const void *lower,
				   const void *upper, uint64_t *counts)
{
	struct cua__histogram h = {.rule = CUA__BIN_EVEN, .type = type};
	enum cua_status status;

	if (!ctx || !lower || !upper)
		return CUA_ERROR_NULL;
	switch (type) {
	case CUA_U8:
	case CUA_U16:
	case CUA_U32:
	case CUA_I32: {
		int64_t from, to;

		memcpy(&from, lower, sizeof(from));
		memcpy(&to, upper, sizeof(to));
		status = cua_histogram_range_i64(from, to, bins, &h.range);
		break;
	}
	case CUA_F32:
	case CUA_F64: {
		double from, to;

		memcpy(&from, lower, sizeof(from));
		memcpy(&to, upper, sizeof(to));
		status = cua_histogram_range_f64(from, to, bins, &h.range);
		break;
	}
	default: return CUA_ERROR_TYPE;
	}
	if (status)
		return status;
	h.bins = h.range.bins;
	return count(ctx, options, &h, n, x, counts);
}

enum cua_status cua_histogram_workspace(struct cua_context *ctx,
					const struct cua_histogram_options *options, size_t bins,
					size_t *bytes)
{
	struct cua__histogram h = {.rule = CUA__BIN_EVEN, .type = CUA_U32};
	struct cua_histogram_options o;
	enum cua_status status;

	if (!ctx || !bytes)
		return CUA_ERROR_NULL;
	status = read_options(options, &o);
	if (!status && !bins)
		status = CUA_ERROR_VALUE;
	if (!status && bins > CUA_HISTOGRAM_MAX_BINS)
		status = CUA_ERROR_SIZE;
	if (status)
		return status;
	h.n = SIZE_MAX;
	h.bins = (uint32_t)bins;
	h.strategy = o.strategy;
	ctx->backend->histogram->plan(ctx, &h);
	*bytes = cua__scratch_size(bins * sizeof(uint64_t)) + cua__scratch_size(h.scratch_bytes);
	return CUA_OK;
}
