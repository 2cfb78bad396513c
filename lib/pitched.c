/* SPDX-License-Identifier: MIT */
/* Fills, and pitched arrays: allocation, fills and copies. */
#include "config.h"

#include <string.h>

#include "backend/memory_backend.h"

/* ---- fills ---- */

/* Reads the pattern before it returns, and repeats it to 16 bytes. */
static enum cua_status read_pattern(struct cua_context *ctx, size_t pattern_bytes,
				    const void *pattern, struct cua__pattern *repeated)
{
	enum cua_status status;
	size_t i;

	if (!pattern)
		return CUA_ERROR_NULL;
	if (!pattern_bytes || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)))
		return CUA_ERROR_VALUE;
	status = cua__read_value(ctx, pattern, pattern_bytes, repeated->words);
	if (status)
		return status;
	for (i = pattern_bytes; i < 16; i += pattern_bytes)
		memcpy((char *)repeated->words + i, repeated->words, pattern_bytes);
	return CUA_OK;
}

enum cua_status cua_fill(struct cua_context *ctx, void *dst, size_t count, size_t pattern_bytes,
			 const void *pattern)
{
	struct cua__pattern repeated;
	struct cua__call call;
	enum cua_status status;
	const void *backend;

	if (!ctx)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, ctx);
	status = read_pattern(ctx, pattern_bytes, pattern, &repeated);
	if (!status)
		status = cua__check_array(ctx, dst, count, pattern_bytes, pattern_bytes, &backend);
	if (!status && count)
		status = CUA__OPS(ctx, memory)
				 ->fill(ctx, (void *)backend, count * pattern_bytes, &repeated);
	return cua__call_end(&call, status);
}

/* ---- pitched arrays ---- */

enum cua_status cua_alloc_3d(struct cua_context *ctx, size_t width, size_t height, size_t depth,
			     size_t element_size, struct cua_pitched *array)
{
	struct cua_pitched a = {.width = width,
				.height = height,
				.depth = depth,
				.element_size = element_size,
				.layout = CUA_PITCHED_LAYOUT};
	enum cua_status status;
	size_t rows, bytes;

	if (!ctx || !array)
		return CUA_ERROR_NULL;
	if (!width || !height || !depth || !element_size)
		return CUA_ERROR_VALUE;
	if (cua__bytes(width, element_size, &bytes) || cua__bytes(height, depth, &rows))
		return CUA_ERROR_SIZE;
	a.pitch = (bytes + CUA_PITCH_ALIGNMENT - 1) & ~(size_t)(CUA_PITCH_ALIGNMENT - 1);
	if (cua__bytes(rows, a.pitch, &bytes))
		return CUA_ERROR_SIZE;
	status = cua_alloc(ctx, rows, a.pitch, &a.base);
	if (!status)
		*array = a;
	return status;
}

enum cua_status cua_alloc_2d(struct cua_context *ctx, size_t width, size_t height,
			     size_t element_size, struct cua_pitched *array)
{
	return cua_alloc_3d(ctx, width, height, 1, element_size, array);
}

enum cua_status cua_free_pitched(struct cua_context *ctx, struct cua_pitched *array)
{
	enum cua_status status;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (!array || !array->base)
		return CUA_OK;
	if (array->layout != CUA_PITCHED_LAYOUT)
		return CUA_ERROR_LAYOUT;
	status = cua_free(ctx, array->base);
	if (!status)
		memset(array, 0, sizeof(*array));
	return status;
}

/* Checks the struct, but not the kind of its memory. */
static enum cua_status check_pitched(const struct cua_pitched *a, size_t *row_bytes, size_t *rows)
{
	size_t bytes;

	if (!a)
		return CUA_ERROR_NULL;
	if (a->layout != CUA_PITCHED_LAYOUT)
		return CUA_ERROR_LAYOUT;
	if (!a->base)
		return CUA_ERROR_NULL;
	if (!a->width || !a->height || !a->depth || !a->element_size ||
	    a->pitch % CUA_PITCH_ALIGNMENT)
		return CUA_ERROR_VALUE;
	if (cua__bytes(a->width, a->element_size, row_bytes) ||
	    cua__bytes(a->height, a->depth, rows) || cua__bytes(*rows, a->pitch, &bytes) ||
	    cua__wraps(a->base, bytes))
		return CUA_ERROR_SIZE;
	if (*row_bytes > a->pitch)
		return CUA_ERROR_VALUE;
	if ((uintptr_t)a->base % CUA_PITCH_ALIGNMENT)
		return CUA_ERROR_ALIGNMENT;
	return CUA_OK;
}

enum cua_status cua_fill_pitched(struct cua_context *ctx, const struct cua_pitched *array,
				 size_t pattern_bytes, const void *pattern)
{
	struct cua__pattern repeated;
	struct cua__call call;
	enum cua_status status;
	const void *base;
	size_t row_bytes, rows;

	if (!ctx)
		return CUA_ERROR_NULL;
	status = check_pitched(array, &row_bytes, &rows);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	status = read_pattern(ctx, pattern_bytes, pattern, &repeated);
	if (!status && array->element_size % pattern_bytes)
		status = CUA_ERROR_VALUE;
	if (!status)
		status = cua__check_array(ctx, array->base, rows, array->pitch, CUA_PITCH_ALIGNMENT,
					  &base);
	if (!status && (rows == 1 || row_bytes == array->pitch))
		status =
			CUA__OPS(ctx, memory)->fill(ctx, (void *)base, row_bytes * rows, &repeated);
	else if (!status)
		status = CUA__OPS(ctx, memory)
				 ->fill_rows(ctx, (void *)base, array->pitch, row_bytes, rows,
					     &repeated);
	return cua__call_end(&call, status);
}

/*
 * Checks the arguments of both directions; the packed rows are a range of row_bytes * rows bytes.
 */
static enum cua_status check_packed(struct cua_context *ctx, const struct cua_pitched *array,
				    const void *packed, size_t *row_bytes, size_t *rows)
{
	enum cua_status status;

	if (!ctx || !array || !packed)
		return CUA_ERROR_NULL;
	status = check_pitched(array, row_bytes, rows);
	if (status)
		return status;
	if (cua__wraps(packed, *row_bytes * *rows))
		return CUA_ERROR_SIZE;
	if (cua__overlap(array->base, array->pitch * *rows, packed, *row_bytes * *rows))
		return CUA_ERROR_OVERLAP;
	return CUA_OK;
}

/*
 * Copies rows of row_bytes each inside a call. The caller has checked the ranges; this checks memory
 * kinds and capture.
 */
static enum cua_status transfer_rows(struct cua_context *ctx, void *dst, size_t dst_pitch,
				     const void *src, size_t src_pitch, size_t row_bytes,
				     size_t rows)
{
	enum cua_status status;
	int waits;

	status = cua__copy_waits(ctx, dst, src, &waits);
	if (status)
		return status;
	if (rows == 1 || (dst_pitch == row_bytes && src_pitch == row_bytes))
		status = ctx->runtime->copy(ctx, dst, src, row_bytes * rows);
	else
		status = CUA__OPS(ctx, memory)
				 ->copy_rows(ctx, dst, dst_pitch, src, src_pitch, row_bytes, rows);
	if (!status && waits)
		status = ctx->runtime->synchronize(ctx);
	return status;
}

enum cua_status cua_copy_to_pitched(struct cua_context *ctx, const struct cua_pitched *dst,
				    const void *src)
{
	struct cua__call call;
	enum cua_status status;
	size_t row_bytes, rows;

	status = check_packed(ctx, dst, src, &row_bytes, &rows);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	status = transfer_rows(ctx, dst->base, dst->pitch, src, row_bytes, row_bytes, rows);
	return cua__call_end(&call, status);
}

enum cua_status cua_copy_from_pitched(struct cua_context *ctx, void *dst,
				      const struct cua_pitched *src)
{
	struct cua__call call;
	enum cua_status status;
	size_t row_bytes, rows;

	status = check_packed(ctx, src, dst, &row_bytes, &rows);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	status = transfer_rows(ctx, dst, row_bytes, src->base, src->pitch, row_bytes, rows);
	return cua__call_end(&call, status);
}
