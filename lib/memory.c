/* SPDX-License-Identifier: MIT */
/* Memory calls: allocation, copies, fills, pitched arrays, queries and static variables. */
#include "config.h"

#include <string.h>

#include "backend/memory_backend.h"

/* Sizes above half the address space count as overflow, as in cua__bytes. */
#define MAX_BYTES (SIZE_MAX / 2)

/* Whether the bytes from p on wrap around the address space. */
static int wraps(const void *p, size_t bytes)
{
	return bytes > MAX_BYTES || (uintptr_t)p > UINTPTR_MAX - bytes;
}

/* ---- allocation ---- */

enum cua_status cua_alloc(struct cua_context *ctx, size_t n, size_t size, void **p)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;
	void *base = NULL;
	size_t bytes;

	if (!ctx || !p)
		return CUA_ERROR_NULL;
	status = cua__bytes(n, size, &bytes);
	if (status)
		return status;
	runtime = ctx->backend->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->allocate(ctx, bytes, &base);
	status = cua__call_end(&call, status);
	if (!status)
		*p = base;
	return status;
}

/* Allocates n zeroed elements with the backend's function `allocate`. */
static enum cua_status
alloc_zeros(struct cua_context *ctx, size_t n, size_t size,
	    enum cua_status (*allocate)(struct cua_context *, size_t, void **), void **p)
{
	const struct cua__runtime *runtime = ctx->backend->runtime;
	struct cua__call call;
	enum cua_status status;
	void *base = NULL;
	size_t bytes;

	status = cua__bytes(n, size, &bytes);
	if (status)
		return status;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = allocate(ctx, bytes, &base);
	if (!status && bytes)
		status = runtime->set_bytes(ctx, base, 0, bytes);
	if (!status)
		status = runtime->synchronize(ctx);
	if (status)
		runtime->release(ctx, base);
	status = cua__call_end(&call, status);
	if (!status)
		*p = base;
	return status;
}

enum cua_status cua_alloc_zero(struct cua_context *ctx, size_t n, size_t size, void **p)
{
	if (!ctx || !p)
		return CUA_ERROR_NULL;
	return alloc_zeros(ctx, n, size, ctx->backend->runtime->allocate, p);
}

enum cua_status cua_alloc_system(struct cua_context *ctx, size_t n, size_t size, void **p)
{
	if (!ctx || !p)
		return CUA_ERROR_NULL;
	return alloc_zeros(ctx, n, size, ctx->backend->runtime->allocate_system, p);
}

/*
 * Checks, as far as the backend can know, that p is the start of an allocation of this backend and
 * device.
 */
static enum cua_status check_allocation(struct cua_context *ctx, const void *p)
{
	struct cua__location where;
	enum cua_status status = ctx->backend->runtime->locate(ctx, p, &where);

	if (status)
		return status;
	ctx->backend->runtime->extent(p, &where);
	if (where.memory_kind != CUA__MEMORY_KIND_BACKEND || where.owner != ctx->backend->kind ||
	    (where.base && where.base != p))
		return CUA_ERROR_MEMORY_KIND;
	return CUA_OK;
}

enum cua_status cua_free(struct cua_context *ctx, void *p)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (!p)
		return CUA_OK;
	runtime = ctx->backend->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = check_allocation(ctx, p);
	if (!status)
		status = runtime->synchronize(ctx);
	if (!status)
		status = runtime->release(ctx, p);
	return cua__call_end(&call, status);
}

/* ---- copies ---- */

/* Checks a side of a copy; sets *waits if its memory makes the call wait. */
static enum cua_status check_side(struct cua_context *ctx, const void *p, int *waits)
{
	struct cua__location where;
	enum cua_status status = ctx->backend->runtime->locate(ctx, p, &where);

	if (status)
		return status;
	if (where.memory_kind == CUA__MEMORY_KIND_OTHER)
		return CUA_ERROR_MEMORY_KIND;
	if (where.pageable || where.memory_kind == CUA__MEMORY_KIND_HOST)
		*waits = 1;
	return CUA_OK;
}

/*
 * Copies rows of row_bytes each; a single row has no pitch. The caller has checked the ranges;
 * transfer checks memory kinds and capture.
 */
static enum cua_status transfer(struct cua_context *ctx, void *dst, size_t dst_pitch,
				const void *src, size_t src_pitch, size_t row_bytes, size_t rows)
{
	const struct cua__runtime *runtime = ctx->backend->runtime;
	enum cua_status status;
	int waits = 0;

	status = check_side(ctx, dst, &waits);
	if (!status)
		status = check_side(ctx, src, &waits);
	if (!status && waits)
		status = runtime->may_wait(ctx);
	if (status)
		return status;
	if (rows == 1 || (dst_pitch == row_bytes && src_pitch == row_bytes))
		status = runtime->copy(ctx, dst, src, row_bytes * rows);
	else
		status = ctx->backend->memory->copy_rows(ctx, dst, dst_pitch, src, src_pitch,
							 row_bytes, rows);
	if (!status && waits)
		status = runtime->synchronize(ctx);
	return status;
}

enum cua_status cua_copy(struct cua_context *ctx, void *dst, const void *src, size_t bytes)
{
	struct cua__call call;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (!bytes)
		return CUA_OK;
	if (!dst || !src)
		return CUA_ERROR_NULL;
	if (wraps(dst, bytes) || wraps(src, bytes))
		return CUA_ERROR_SIZE;
	if (cua__overlap(dst, bytes, src, bytes))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, ctx);
	return cua__call_end(&call, transfer(ctx, dst, bytes, src, bytes, bytes, 1));
}

/* ---- fills ---- */

enum cua_status cua__read_value(struct cua_context *ctx, const void *p, size_t bytes, void *value)
{
	const struct cua__runtime *runtime = ctx->backend->runtime;
	struct cua__location where;
	enum cua_status status;
	int previous, cancel;

	if (!p)
		return CUA_ERROR_NULL;
	if (wraps(p, bytes))
		return CUA_ERROR_SIZE;
	cancel = cua__cancel_disable();
	previous = runtime->enter(ctx);
	status = runtime->locate(ctx, p, &where);
	runtime->leave(ctx, previous);
	cua__cancel_restore(cancel);
	if (status)
		return status;
	if (!where.host_access)
		return CUA_ERROR_MEMORY_KIND;
	memcpy(value, p, bytes);
	return CUA_OK;
}

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
		status = ctx->backend->memory->fill(ctx, (void *)backend, count * pattern_bytes,
						    &repeated);
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
	    wraps(a->base, bytes))
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
		status = ctx->backend->memory->fill(ctx, (void *)base, row_bytes * rows, &repeated);
	else if (!status)
		status = ctx->backend->memory->fill_rows(ctx, (void *)base, array->pitch, row_bytes,
							 rows, &repeated);
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
	if (wraps(packed, *row_bytes * *rows))
		return CUA_ERROR_SIZE;
	if (cua__overlap(array->base, array->pitch * *rows, packed, *row_bytes * *rows))
		return CUA_ERROR_OVERLAP;
	return CUA_OK;
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
	status = transfer(ctx, dst->base, dst->pitch, src, row_bytes, row_bytes, rows);
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
	status = transfer(ctx, dst, row_bytes, src->base, src->pitch, row_bytes, rows);
	return cua__call_end(&call, status);
}

/* ---- queries ---- */

enum cua_status cua_pointer_query(struct cua_context *ctx, const void *p,
				  struct cua_pointer_info *info)
{
	struct cua_pointer_info out = {.struct_size = sizeof(out)};
	struct cua__location where;
	struct cua__call call;
	enum cua_status status;

	if (!ctx || !p || !info)
		return CUA_ERROR_NULL;
	if (!cua__known_size(info->struct_size, sizeof(out)))
		return CUA_ERROR_VALUE;
	cua__call_begin(&call, ctx);
	status = cua__call_end(&call, ctx->backend->runtime->locate(ctx, p, &where));
	if (status)
		return status;
	ctx->backend->runtime->extent(p, &where);
	out.struct_size = info->struct_size;
	out.backend = where.owner;
	out.device = where.device;
	out.base = where.base;
	out.size = where.size;
	out.accessible = where.memory_kind == CUA__MEMORY_KIND_BACKEND;
	out.host_accessible = where.host_access != 0;
	memcpy(info, &out, info->struct_size);
	return CUA_OK;
}

enum cua_status cua_memory_info(struct cua_context *ctx, uint64_t *free_bytes,
				uint64_t *total_bytes)
{
	struct cua__call call;
	enum cua_status status;
	uint64_t available, total;

	if (!ctx || !free_bytes || !total_bytes)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, ctx);
	status = cua__call_end(&call, ctx->backend->memory->info(ctx, &available, &total));
	if (status)
		return status;
	*free_bytes = available;
	*total_bytes = total;
	return CUA_OK;
}

/* ---- static variables ---- */

/* Checks that the range is in memory that can hold a variable of this backend. */
static enum cua_status check_symbol(struct cua_context *ctx, const void *symbol, size_t offset,
				    size_t bytes)
{
	struct cua__location where;
	enum cua_status status = ctx->backend->runtime->locate(ctx, symbol, &where);

	if (status)
		return status;
	if (where.memory_kind != CUA__MEMORY_KIND_BACKEND ||
	    (ctx->backend->kind == CUA_BACKEND_CUDA && where.owner != CUA_BACKEND_CUDA))
		return CUA_ERROR_MEMORY_KIND;
	ctx->backend->runtime->extent(symbol, &where);
	if (where.base) {
		size_t end =
			(size_t)((const char *)symbol - (const char *)where.base) + offset + bytes;

		if (end > where.size)
			return CUA_ERROR_SIZE;
	}
	return CUA_OK;
}

/* Copies in either direction: from is NULL for a read, to is NULL for a write. */
static enum cua_status copy_symbol(struct cua_context *ctx, const void *symbol, size_t offset,
				   const void *from, void *to, size_t bytes)
{
	const void *other = from ? from : to;
	struct cua__call call;
	enum cua_status status;
	char *inside;

	if (!ctx || !symbol || (bytes && !other))
		return CUA_ERROR_NULL;
	/*
	 * each is at most a quarter of the address space, so neither the sum nor the check of the
	 * end can wrap
	 */
	if (bytes > MAX_BYTES / 2 || offset > MAX_BYTES / 2 || wraps(symbol, offset + bytes) ||
	    (bytes && wraps(other, bytes)))
		return CUA_ERROR_SIZE;
	inside = (char *)symbol + offset;
	if (cua__overlap(inside, bytes, other, bytes))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, ctx);
	status = check_symbol(ctx, symbol, offset, bytes);
	if (!status && bytes)
		status = transfer(ctx, from ? inside : to, bytes, from ? from : inside, bytes,
				  bytes, 1);
	return cua__call_end(&call, status);
}

enum cua_status cua_symbol_write(struct cua_context *ctx, void *symbol_address, size_t offset,
				 const void *src, size_t bytes)
{
	return copy_symbol(ctx, symbol_address, offset, src, NULL, bytes);
}

enum cua_status cua_symbol_read(struct cua_context *ctx, void *dst, const void *symbol_address,
				size_t offset, size_t bytes)
{
	return copy_symbol(ctx, symbol_address, offset, NULL, dst, bytes);
}
