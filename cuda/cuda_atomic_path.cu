/* SPDX-License-Identifier: MIT */
/* The table of atomic paths, filled by a kernel, so that it describes the device's code. */
#include "config.h"

#include "kernels/atomic_paths.h"
#include "launch.h"

static __global__ void paths_kernel(uint8_t *entries)
{
	cua__paths_fill(entries);
}

extern "C" enum cua_status cua__cuda_atomic_paths(struct cua_context *ctx, void *entries)
{
	return cua__launch(ctx, paths_kernel, 1, 1, 0, (uint8_t *)entries);
}
