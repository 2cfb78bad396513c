/* SPDX-License-Identifier: MIT */
/* Common code of the library's .cu files: kernel launches, and CUDA's errors as statuses. */
#ifndef CUATOMIC_CUDA_LAUNCH_H
#define CUATOMIC_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#include "backend/internal.h"

/*
 * Converts CUDA's error to a status, keeps it for cua_context_cuda_error, and clears CUDA's own
 * record.
 */
extern "C" enum cua_status cua__cuda_status(struct cua_context *ctx, cudaError_t error);

/*
 * A thread of the process may be capturing a stream in the default mode. Calls that might disturb
 * that capture then fail and invalidate it, unless the calling thread has selected the relaxed
 * mode. may_wait has checked before whether the context's own stream is being captured.
 */
static inline enum cudaStreamCaptureMode relax(void)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

	if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
		return cudaStreamCaptureModeGlobal;
	return mode;
}

static inline void restore(enum cudaStreamCaptureMode mode)
{
	cudaThreadExchangeStreamCaptureMode(&mode);
}

/*
 * Launches a kernel on the context's stream and reports the result of this launch alone; <<<>>>
 * would also report earlier errors of other code. It is a template because only a template sees the
 * kernel's parameter types.
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

	return cua__cuda_status(ctx, cudaLaunchKernel(kernel, dim3(grid), dim3(block), list, shared,
						      (cudaStream_t)ctx->stream));
}

/*
 * Permits a kernel as much dynamic shared memory as a block can have. Always the maximum: the attribute
 * also holds for other threads of the process, and their launches may need more. The kernel has no
 * other shared memory.
 */
static inline enum cua_status cua__permit_shared(struct cua_context *ctx, const void *kernel)
{
	return cua__cuda_status(
		ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					  (int)ctx->shared_bytes));
}

/*
 * As cua__launch, for a kernel that calls cua__after_predecessor. The kernel may start while its
 * predecessor in the stream still runs, which hides most of the launch latency. It is not used
 * during capture, because some releases of CUDA capture the older kind of edges.
 */
template <typename... P>
static enum cua_status cua__launch_early(struct cua_context *ctx, void (*kernel)(P...),
					 unsigned grid, unsigned block, size_t shared,
					 typename cua__same<P>::type... args)
{
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
	return cua__cuda_status(ctx, cudaLaunchKernelEx(&config, kernel, args...));
}

#ifdef __CUDACC__
/* The dynamic shared memory of a block, as an array of T. */
#define CUA__SHARED_ARRAY(T, name) extern __shared__ __align__(16) T name[]

/*
 * Keeps the address of shared memory in a register. Otherwise the compiler recomputes it for each
 * use, with four instructions.
 */
template <typename T> static __device__ __forceinline__ T *known(T *p)
{
	uint32_t at = (uint32_t)__cvta_generic_to_shared(p);

	asm("" : "+r"(at));
	return (T *)__cvta_shared_to_generic(at);
}

/*
 * Waits until the preceding kernels have ended. All threads of a kernel of cua__launch_early call
 * it before they access memory that other work may read or write.
 */
static __device__ __forceinline__ void cua__after_predecessor(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Moves a line of global memory to the L2. */
static __device__ __forceinline__ void cua__prefetch(const void *p)
{
	asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
}
#endif

/*
 * Blocks for n items at per_block items each: at least 1, at most blocks_per_processor for each
 * multiprocessor.
 */
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
