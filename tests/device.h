/* SPDX-License-Identifier: MIT */
/* Functions shared by the tests that launch their own kernels. */
#ifndef CUATOMIC_TESTS_DEVICE_H
#define CUATOMIC_TESTS_DEVICE_H

#include <cuda_runtime.h>

#include "common.h"

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

/* Waits for the kernel. Fails the test if the launch or the kernel failed. */
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

/* A pseudo-random permutation of the 32-bit numbers. */
CUA_FN uint32_t mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

/* The number of the thread in a 1-D grid. */
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

/*
 * The work of a critical section. Outside of a section the sum of debit and credit is 0; a section
 * that sees another sum counts it in `wrong`.
 */
template <typename Account> static inline __device__ void work(Account *a)
{
	const auto debit = CUA_READ(a->debit);

	if (debit + CUA_READ(a->credit) != 0)
		CUA_WRITE(a->wrong, CUA_READ(a->wrong) + 1);
	CUA_WRITE(a->debit, debit - 3);
	CUA_WRITE(a->credit, CUA_READ(a->credit) + 3);
	CUA_WRITE(a->count, CUA_READ(a->count) + 1);
}

#endif /* CUATOMIC_TESTS_DEVICE_H */
