/* SPDX-License-Identifier: MIT */
/*
 * A model of several GPUs on the CPU, for the host code of the CUDA backend and its kernels. A .cu file is compiled
 * as C++ with this header before its text.
 *
 * - Each stream is a queue. Work of the queues runs when the host waits, or at a random moment. A random queue
 *   continues, or only the work that the host waits for runs, or a random queue runs ahead of the rest. So a missing
 *   order between streams changes the results of some seeds.
 * - A kernel runs a block at a time. Its threads are coroutines that change at barriers, operations of a warp and
 *   pauses. Races inside a kernel are the task of the SIMT checker; see tests/simt/simt.h.
 * - The memory of a device is accessible only while work of this device runs, or of a device with peer access to it.
 *   So an access by host code, or by a device without peer access, ends the program with a message.
 * - Errors that CUDA would report are reported: a launch in a stream of a device that is not current, an event of another
 *   device, shared memory above the permitted bytes, too large blocks, a wait in a capture.
 * - A captured stream makes nodes of a graph. A launch gives each branch of the graph a stream of its own. Calls that
 *   disturb a capture invalidate it, by the rules of cudaThreadExchangeStreamCaptureMode.
 * - The model is libcuda.so.1, so the library finds its cuPointerGetAttributes.
 * - Memory is filled with 0xa5 bytes at its allocation, and shared memory before each block. Writes past the end are
 *   found when memory is freed, and after each block.
 *
 * Environment:
 *   CUA_MODEL_DEVICES=N  the number of devices, 1 to 8, 4 by default
 *   CUA_TEST_SEED=N      the seed of the orders, 1 by default
 */
#ifndef CUATOMIC_TESTS_CUDA_MODEL_H
#define CUATOMIC_TESTS_CUDA_MODEL_H

#include <math.h>
#include <string.h>

#include <functional>
#include <tuple>
#include <utility>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
/* static storage of the thread that runs the block */
#define __shared__ thread_local

struct uint3 {
	unsigned x, y, z;
};
struct dim3 {
	unsigned x, y, z;
	dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
	{
	}
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
	unsigned long long x, y;
};

static inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y)
{
	return {x, y};
}

static inline uint64_t __umul64hi(uint64_t a, uint64_t b)
{
	return (uint64_t)((unsigned __int128)a * b >> 64);
}

static inline int __clz(int v)
{
	return v ? __builtin_clz((unsigned)v) : 32;
}

/* ---- the running thread ---- */

struct cuda_model_thread {
	uint3 thread, block, block_size, grid_size;
	uint64_t grid_id;
	uint32_t loads;
};

/* NULL in host code */
extern __thread struct cuda_model_thread *cuda_model_self;
/* Objects, because structs of CUDA have members of these names. */
template <uint3 cuda_model_thread::*PLACE> struct cuda_model_place {
	template <unsigned uint3::*MEMBER> struct coordinate {
		operator unsigned() const
		{
			return cuda_model_self->*PLACE.*MEMBER;
		}
	};
	coordinate<&uint3::x> x;
	coordinate<&uint3::y> y;
	coordinate<&uint3::z> z;
};
static const cuda_model_place<&cuda_model_thread::thread> threadIdx;
static const cuda_model_place<&cuda_model_thread::block> blockIdx;
static const cuda_model_place<&cuda_model_thread::block_size> blockDim;
static const cuda_model_place<&cuda_model_thread::grid_size> gridDim;

enum cuda_model_warp_op {
	CUDA_MODEL_SYNC,
	CUDA_MODEL_BALLOT,
	CUDA_MODEL_MATCH,
	CUDA_MODEL_SHUFFLE
};

/* Waits for all lanes of the mask in the same operation. Returns the caller's result. */
uint64_t cuda_model_warp(enum cuda_model_warp_op op, uint32_t mask, uint64_t value, uint32_t lane);
uint32_t cuda_model_active_mask(void);
int cuda_model_sync_block(int predicate);
/* Lets other threads of the block run. */
void cuda_model_pause(void);

static inline void __syncthreads(void)
{
	(void)cuda_model_sync_block(0);
}

static inline uint32_t __ballot_sync(uint32_t mask, int predicate)
{
	return (uint32_t)cuda_model_warp(CUDA_MODEL_BALLOT, mask, predicate != 0, 0);
}

/* ---- launches ---- */

cudaError_t cuda_model_launch(const void *kernel, dim3 grid, dim3 block, size_t shared,
			      cudaStream_t stream, std::function<void()> body);

template <typename... P, size_t... I>
static cudaError_t cuda_model_bind(void (*kernel)(P...), dim3 grid, dim3 block, void **args,
				   size_t shared, cudaStream_t stream, std::index_sequence<I...>)
{
	std::tuple<P...> values(*(P *)args[I]...);

	return cuda_model_launch((const void *)kernel, grid, block, shared, stream,
				 [kernel, values] { std::apply(kernel, values); });
}

template <typename... P>
static cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream)
{
	return cuda_model_bind(kernel, grid, block, args, shared, stream,
			       std::index_sequence_for<P...>());
}

enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };
struct cudaLaunchAttribute {
	enum cudaLaunchAttributeID id;
	struct {
		int programmaticStreamSerializationAllowed;
	} val;
};
struct cudaLaunchConfig_t {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	cudaLaunchAttribute *attrs;
	unsigned numAttrs;
};

/* The kernel starts after its predecessor. */
template <typename... P, typename... A>
static cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*kernel)(P...), A... args)
{
	std::tuple<P...> values(args...);

	return cuda_model_launch((const void *)kernel, c->gridDim, c->blockDim, c->dynamicSmemBytes,
				 c->stream, [kernel, values] { std::apply(kernel, values); });
}

/* ---- the part of launch.h for nvcc ---- */

/* Dynamic shared memory, aligned to 16 bytes. */
void *cuda_model_shared(void);
#define CUA__SHARED_ARRAY(T, name) T *const name = (T *)cuda_model_shared()

template <typename T> static inline T *known(T *p)
{
	return p;
}

static inline void cua__after_predecessor(void)
{
}

static inline void cua__prefetch(const void *)
{
}

#endif /* CUATOMIC_TESTS_CUDA_MODEL_H */
