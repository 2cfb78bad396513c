/* SPDX-License-Identifier: MIT */
/* The table of atomic paths, as this compiler implements the operations. */
#include "config.h"

#include "kernels/atomic_paths.h"
#include "backend/internal.h"

enum cua_status cua__cpu_atomic_paths(struct cua_context *ctx, void *entries)
{
	(void)ctx;
	cua__paths_fill(entries);
	return CUA_OK;
}
