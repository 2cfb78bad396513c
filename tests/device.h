/* SPDX-License-Identifier: MIT */
/* What the programs with kernels of their own share. */
#ifndef CUATOMIC_TESTS_DEVICE_H
#define CUATOMIC_TESTS_DEVICE_H

#include <cuda_runtime.h>

#include "common.h"

#define ck_assert_cuda(expression)                                                                 \
	do {                                                                                       \
		cudaError_t test__error = (expression);                                            \
		ck_assert_msg(test__error == cudaSuccess, "%s: %s", #expression,                   \
			      cudaGetErrorString(test__error));                                    \
	} while (0)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Zeroed memory that the host can read after the kernel. */
static inline void *managed(size_t bytes)
{
	void *p = NULL;

	ck_assert_cuda(cudaMallocManaged(&p, bytes));
	ck_assert_cuda(cudaMemset(p, 0, bytes));
	ck_assert_cuda(cudaDeviceSynchronize());
	return p;
}

/* Reports the launch before it, and how the kernel ended. */
static inline void finish_kernel(void)
{
	ck_assert_cuda(cudaGetLastError());
	ck_assert_cuda(cudaDeviceSynchronize());
}

static inline unsigned processors(void)
{
	int n = 0;

	ck_assert_cuda(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
	return (unsigned)n;
}

/* A permutation of the numbers of 32 bits without pattern. */
CUA_FN uint32_t mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

/* In a grid of one dimension. */
static inline __device__ uint32_t global_id(void)
{
	return blockIdx.x * blockDim.x + threadIdx.x;
}

/* The lanes of this warp that exist. */
static inline __device__ uint32_t whole_warp(void)
{
	uint32_t rest = cua_port_block_size() - cua_port_thread() / 32 * 32;

	return rest < 32 ? ((uint32_t)1 << rest) - 1 : 0xffffffffu;
}

#endif /* CUATOMIC_TESTS_DEVICE_H */
