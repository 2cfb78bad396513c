/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "internal.h"

enum cua_status cua_spinlock_array_create(struct cua_context *ctx, size_t n,
					  struct cua_spinlock **locks)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;
	size_t bytes;
	void *p = NULL;

	if (!ctx || !locks)
		return CUA_ERROR_NULL;
	if (!n)
		return CUA_ERROR_VALUE;
	status = cua__bytes(n, sizeof(**locks), &bytes);
	if (status)
		return status;
	runtime = ctx->backend->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->allocate(ctx, bytes, &p);
	if (!status)
		status = runtime->set_bytes(ctx, p, 0, bytes);
	if (!status)
		status = runtime->synchronize(ctx);
	if (status)
		runtime->release(ctx, p);
	status = cua__call_end(&call, status);
	if (!status)
		*locks = p;
	return status;
}

enum cua_status cua_spinlock_array_destroy(struct cua_context *ctx, struct cua_spinlock *locks)
{
	return cua_free(ctx, locks);
}
