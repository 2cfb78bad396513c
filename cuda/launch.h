/* SPDX-License-Identifier: MIT */
/* What every .cu file of the library needs: launching, and CUDA's errors as statuses. */
#ifndef CUATOMIC_CUDA_LAUNCH_H
#define CUATOMIC_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#include "backend/internal.h"

/* CUDA's error as a status; keeps it for cua_context_cuda_error and clears CUDA's own record. */
extern "C" enum cua_status cua__cuda_status(struct cua_context *ctx, cudaError_t error);

/* atomic_path.cu, for the table of runtime.cu. */
extern "C" enum cua_status cua__cuda_atomic_paths(struct cua_context *ctx, void *cells);

/*
 * Launches a kernel on the context's stream and reports what this launch alone did: <<<>>> would also
 * find the errors of others. A template, because only it sees the kernel's parameter types.
 */
template <typename T> struct cua__same {
	typedef T type;
};

template <typename... P>
static enum cua_status cua__launch(struct cua_context *ctx, void (*kernel)(P...), unsigned grid,
				   unsigned block, size_t shared,
				   typename cua__same<P>::type... args)
{
	void *list[] = {(void *)&args...};

	return cua__cuda_status(ctx, cudaLaunchKernel((const void *)kernel, dim3(grid), dim3(block),
						      list, shared, (cudaStream_t)ctx->stream));
}

/*
 * The same for a kernel that calls cua__after_predecessor: it may be launched while the kernel before it
 * still runs, which hides most of what a launch costs. Not in graphs, whose edges are the older
 * kind with some releases of CUDA.
 */
template <typename... P>
static enum cua_status cua__launch_early(struct cua_context *ctx, void (*kernel)(P...),
					 unsigned grid, unsigned block, size_t shared,
					 typename cua__same<P>::type... args)
{
	void *list[] = {(void *)&args...};
	cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};

	if (!ctx->early_launch ||
	    cudaStreamIsCapturing((cudaStream_t)ctx->stream, &capture) != cudaSuccess ||
	    capture != cudaStreamCaptureStatusNone)
		return cua__launch(ctx, kernel, grid, block, shared, args...);
	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = 1;
	config.gridDim = dim3(grid);
	config.blockDim = dim3(block);
	config.dynamicSmemBytes = shared;
	config.stream = (cudaStream_t)ctx->stream;
	config.attrs = &attribute;
	config.numAttrs = 1;
	return cua__cuda_status(ctx, cudaLaunchKernelExC(&config, (const void *)kernel, list));
}

#ifdef __CUDACC__
/*
 * In all threads of the kernels of cua__launch_early, before they touch memory that others may read or write: waits
 * until the kernels before have ended.
 */
static __device__ __forceinline__ void cua__after_predecessor(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

/* Blocks for n items at per_block items each, at least 1, at most so many for each multiprocessor. */
static inline unsigned cua__grid(const struct cua_context *ctx, uint64_t n, uint64_t per_block,
				 unsigned blocks_per_processor)
{
	uint64_t wanted = n / per_block + (n % per_block != 0);
	uint64_t most = (uint64_t)ctx->processors * blocks_per_processor;

	if (wanted > most)
		wanted = most;
	return wanted ? (unsigned)wanted : 1;
}

#endif /* CUATOMIC_CUDA_LAUNCH_H */
