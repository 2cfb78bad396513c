/* SPDX-License-Identifier: MIT */
/* cua_atomic_path_query: how an atomic operation is implemented on the device of a context. */
#include "config.h"

#include <string.h>

#include "kernels/atomic_paths.h"
#include "backend/internal.h"

enum cua_status cua_atomic_path_query(struct cua_context *ctx, enum cua_type type,
				      enum cua_atomic_op op, enum cua_atomic_path *path)
{
	const struct cua__runtime *runtime;
	uint8_t entries[CUA__PATH_ENTRIES];
	struct cua__call call;
	enum cua_status status;
	void *scratch;

	if (!ctx || !path)
		return CUA_ERROR_NULL;
	if (!cua_type_size(type))
		return CUA_ERROR_TYPE;
	if ((int)op < CUA_OP_LOAD || op > CUA_OP_DEC)
		return CUA_ERROR_VALUE;
	runtime = ctx->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = cua__call_scratch(&call, sizeof(entries), &scratch);
	if (!status)
		status = runtime->set_bytes(ctx, scratch, 0, sizeof(entries));
	if (!status)
		status = CUA__OPS(ctx, atomic_paths)(ctx, scratch);
	if (!status)
		status = runtime->copy(ctx, entries, scratch, sizeof(entries));
	if (!status)
		status = runtime->synchronize(ctx);
	status = cua__call_end(&call, status);
	if (!status)
		*path = (enum cua_atomic_path)entries[(int)type * CUA__PATH_OPS + (int)op];
	return status;
}
