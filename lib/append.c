/* SPDX-License-Identifier: MIT */
/* Append buffers: the calls check their arguments and pass them to the backend. */
#include "config.h"

#include <stdlib.h>

#include "backend/append_backend.h"

static size_t items_bytes(const struct cua_append_view *view)
{
	return (size_t)(view->capacity * view->item_size);
}

int cua__append_overlap(const struct cua_append_view *view, const void *p, size_t bytes)
{
	return cua__overlap(p, bytes, view->items, items_bytes(view)) ||
	       cua__overlap(p, bytes, view->cursor, sizeof(*view->cursor));
}

enum cua_status cua_append_create(struct cua_context *ctx, size_t item_size, uint64_t capacity,
				  struct cua_append **buffer)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	struct cua_append *b;
	enum cua_status status;
	size_t bytes;
	void *items = NULL, *cursor = NULL;

	if (!ctx || !buffer)
		return CUA_ERROR_NULL;
	if (!item_size)
		return CUA_ERROR_VALUE;
	if (capacity > SIZE_MAX)
		return CUA_ERROR_SIZE;
	status = cua__bytes((size_t)capacity, item_size, &bytes);
	if (status)
		return status;
	b = calloc(1, sizeof(*b));
	if (!b)
		return CUA_ERROR_NO_MEMORY;
	runtime = ctx->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->allocate(ctx, bytes, &items);
	if (!status)
		status = runtime->allocate(ctx, sizeof(struct cua_append_cursor), &cursor);
	if (!status)
		status = runtime->set_bytes(ctx, cursor, 0, sizeof(struct cua_append_cursor));
	if (!status)
		status = runtime->synchronize(ctx);
	if (status) {
		if (cursor)
			runtime->release(ctx, cursor);
		if (items)
			runtime->release(ctx, items);
		free(b);
		return cua__call_end(&call, status);
	}
	b->ctx = ctx;
	b->view.items = items;
	b->view.cursor = cursor;
	b->view.capacity = capacity;
	b->view.item_size = item_size;
	b->view.layout = CUA_APPEND_LAYOUT;
	*buffer = b;
	return cua__call_end(&call, CUA_OK);
}

enum cua_status cua_append_destroy(struct cua_append *buffer)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status, second;

	if (!buffer)
		return CUA_OK;
	runtime = buffer->ctx->runtime;
	cua__call_begin(&call, buffer->ctx);
	status = runtime->may_wait(buffer->ctx);
	if (status == CUA_ERROR_CAPTURE)
		return cua__call_end(&call, status);
	status = runtime->release(buffer->ctx, buffer->view.items);
	second = runtime->release(buffer->ctx, buffer->view.cursor);
	status = cua__call_end(&call, status ? status : second);
	free(buffer);
	return status;
}

enum cua_status cua_append_get_view(const struct cua_append *buffer, struct cua_append_view *view)
{
	if (!buffer || !view)
		return CUA_ERROR_NULL;
	*view = buffer->view;
	return CUA_OK;
}

enum cua_status cua_append_items(const struct cua_append *buffer, void **items)
{
	if (!buffer || !items)
		return CUA_ERROR_NULL;
	*items = buffer->view.items;
	return CUA_OK;
}

enum cua_status cua_append_reset(struct cua_append *buffer)
{
	struct cua__call call;
	enum cua_status status;

	if (!buffer)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, buffer->ctx);
	status = buffer->ctx->runtime->set_bytes(buffer->ctx, buffer->view.cursor, 0,
						 sizeof(*buffer->view.cursor));
	return cua__call_end(&call, status);
}

enum cua_status cua_append_demand(struct cua_append *buffer, uint64_t *demand)
{
	struct cua__call call;
	enum cua_status status;
	void *out;

	if (!buffer || !demand)
		return CUA_ERROR_NULL;
	if (cua__append_overlap(&buffer->view, demand, sizeof(*demand)))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, buffer->ctx);
	status = cua__call_result(&call, demand, sizeof(*demand), sizeof(*demand), &out);
	if (!status)
		status = buffer->ctx->runtime->copy(buffer->ctx, out, &buffer->view.cursor->demand,
						    sizeof(*demand));
	return cua__call_end(&call, status);
}

enum cua_status cua_append_size(struct cua_append *buffer, uint64_t *size)
{
	struct cua__call call;
	enum cua_status status;
	void *out;

	if (!buffer || !size)
		return CUA_ERROR_NULL;
	if (cua__append_overlap(&buffer->view, size, sizeof(*size)))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, buffer->ctx);
	status = cua__call_result(&call, size, sizeof(*size), sizeof(*size), &out);
	if (!status)
		status = CUA__OPS(buffer->ctx, append)->size(buffer->ctx, &buffer->view, out);
	return cua__call_end(&call, status);
}

enum cua_status cua_append_status(struct cua_append *buffer)
{
	enum cua_status status;
	uint64_t demand;

	status = cua_append_demand(buffer, &demand);
	if (status)
		return status;
	return demand > buffer->view.capacity ? CUA_ERROR_FULL : CUA_OK;
}

enum cua_status cua_append_read(struct cua_append *buffer, void *dst, size_t max_items, uint64_t *n)
{
	const struct cua_append_view *view;
	const struct cua__runtime *runtime;
	struct cua_context *ctx;
	struct cua__location where;
	struct cua__call call;
	enum cua_status status;
	uint64_t count = 0;
	size_t bytes;
	void *out;

	if (!buffer || !n || (!dst && max_items))
		return CUA_ERROR_NULL;
	ctx = buffer->ctx;
	view = &buffer->view;
	runtime = ctx->runtime;
	if (max_items > view->capacity)
		max_items = (size_t)view->capacity;
	bytes = max_items * (size_t)view->item_size;
	if (cua__append_overlap(view, n, sizeof(*n)) || cua__append_overlap(view, dst, bytes) ||
	    cua__overlap(n, sizeof(*n), dst, bytes))
		return CUA_ERROR_OVERLAP;
	status = cua_append_size(buffer, &count);
	if (status)
		return status;
	if (count > max_items)
		count = max_items;

	cua__call_begin(&call, ctx);
	status = cua__call_result(&call, n, sizeof(*n), sizeof(*n), &out);
	if (!status && bytes) {
		status = runtime->locate(ctx, dst, &where);
		if (!status && where.memory_kind == CUA__MEMORY_KIND_OTHER)
			status = CUA_ERROR_MEMORY_KIND;
	}
	if (!status)
		status = runtime->copy(ctx, out, &count, sizeof(count));
	if (!status && count)
		status = runtime->copy(ctx, dst, view->items,
				       (size_t)count * (size_t)view->item_size);
	if (!status)
		status = runtime->synchronize(ctx);
	return cua__call_end(&call, status);
}
