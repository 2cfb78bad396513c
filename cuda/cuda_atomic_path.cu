/* SPDX-License-Identifier: MIT */
/* The paths of the atomics, as the device's own code has them. */
#include "config.h"

#include "kernels/atomic_paths.h"
#include "launch.h"

static __global__ void paths_kernel(uint8_t *cells)
{
	cua__paths_fill(cells);
}

extern "C" enum cua_status cua__cuda_atomic_paths(struct cua_context *ctx, void *cells)
{
	return cua__launch(ctx, paths_kernel, 1, 1, 0, (uint8_t *)cells);
}
