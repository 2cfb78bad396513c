/* SPDX-License-Identifier: MIT */
/* Memory calls: allocation, copies, queries and static variables. */
#include "config.h"

#include <string.h>

#include "backend/internal.h"

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
	runtime = ctx->runtime;
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
	const struct cua__runtime *runtime = ctx->runtime;
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
	return alloc_zeros(ctx, n, size, ctx->runtime->allocate, p);
}

enum cua_status cua_alloc_system(struct cua_context *ctx, size_t n, size_t size, void **p)
{
	if (!ctx || !p)
		return CUA_ERROR_NULL;
	return alloc_zeros(ctx, n, size, ctx->runtime->allocate_system, p);
}

/*
 * Checks, as far as the backend can know, that p is the start of an allocation of this backend and
 * device.
 */
static enum cua_status check_allocation(struct cua_context *ctx, const void *p)
{
	struct cua__location where;
	enum cua_status status = ctx->runtime->locate(ctx, p, &where);

	if (status)
		return status;
	ctx->runtime->extent(p, &where);
	if (where.memory_kind != CUA__MEMORY_KIND_BACKEND || where.owner != ctx->runtime->kind ||
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
	runtime = ctx->runtime;
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
	enum cua_status status = ctx->runtime->locate(ctx, p, &where);

	if (status)
		return status;
	if (where.memory_kind == CUA__MEMORY_KIND_OTHER)
		return CUA_ERROR_MEMORY_KIND;
	if (where.pageable || where.memory_kind == CUA__MEMORY_KIND_HOST)
		*waits = 1;
	return CUA_OK;
}

enum cua_status cua__copy_waits(struct cua_context *ctx, const void *dst, const void *src,
				int *waits)
{
	enum cua_status status;

	*waits = 0;
	status = check_side(ctx, dst, waits);
	if (!status)
		status = check_side(ctx, src, waits);
	if (!status && *waits)
		status = ctx->runtime->may_wait(ctx);
	return status;
}

/* Copies inside a call. The caller has checked the ranges. */
static enum cua_status transfer(struct cua_context *ctx, void *dst, const void *src, size_t bytes)
{
	enum cua_status status;
	int waits;

	status = cua__copy_waits(ctx, dst, src, &waits);
	if (!status)
		status = ctx->runtime->copy(ctx, dst, src, bytes);
	if (!status && waits)
		status = ctx->runtime->synchronize(ctx);
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
	if (cua__wraps(dst, bytes) || cua__wraps(src, bytes))
		return CUA_ERROR_SIZE;
	if (cua__overlap(dst, bytes, src, bytes))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, ctx);
	return cua__call_end(&call, transfer(ctx, dst, src, bytes));
}

/* ---- values behind a pointer ---- */

enum cua_status cua__read_value(struct cua_context *ctx, const void *p, size_t bytes, void *value)
{
	const struct cua__runtime *runtime = ctx->runtime;
	struct cua__location where;
	enum cua_status status;
	int previous, cancel;

	if (!p)
		return CUA_ERROR_NULL;
	if (cua__wraps(p, bytes))
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
	status = cua__call_end(&call, ctx->runtime->locate(ctx, p, &where));
	if (status)
		return status;
	ctx->runtime->extent(p, &where);
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
	status = cua__call_end(&call, ctx->runtime->memory_info(ctx, &available, &total));
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
	enum cua_status status = ctx->runtime->locate(ctx, symbol, &where);

	if (status)
		return status;
	if (where.memory_kind != CUA__MEMORY_KIND_BACKEND ||
	    (ctx->runtime->kind == CUA_BACKEND_CUDA && where.owner != CUA_BACKEND_CUDA))
		return CUA_ERROR_MEMORY_KIND;
	ctx->runtime->extent(symbol, &where);
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
	if (bytes > CUA__MAX_BYTES / 2 || offset > CUA__MAX_BYTES / 2 ||
	    cua__wraps(symbol, offset + bytes) || (bytes && cua__wraps(other, bytes)))
		return CUA_ERROR_SIZE;
	inside = (char *)symbol + offset;
	if (cua__overlap(inside, bytes, other, bytes))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, ctx);
	status = check_symbol(ctx, symbol, offset, bytes);
	if (!status && bytes)
		status = transfer(ctx, from ? inside : to, from ? from : inside, bytes);
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
