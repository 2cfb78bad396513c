// SPDX-License-Identifier: MIT
// A dot product in a single user kernel: each block reduces its elements in shared memory and adds
// the sum to the result under a lock, so the host adds nothing.
//
//     nvcc dot.cu $(pkg-config --cflags --libs cuatomic) -o dot
#include <stdio.h>
#include <stdlib.h>

#include <cuatomic/reduce.h>
#include <cuatomic/spinlock.h>

#define N (33 * 1024 * 1024)
#define THREADS 256

// Zeroed global memory: a free lock, and a finish state ready for its first launch.
__device__ struct cua_spinlock lock = CUA_SPINLOCK_INIT;
__device__ struct cua_finish finish = CUA_FINISH_INIT;
__device__ double locked_result, finished_result;

__device__ double part_of_block(size_t n, const float *x, const float *y,
				struct cua_block_scratch *scratch)
{
	size_t stride = (size_t)gridDim.x * blockDim.x;
	double sum = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
		sum += (double)x[i] * y[i];
	return cua_block_sum_f64(sum, scratch);
}

// An explicit critical section: it may contain any statements. The result must be 0 before the
// launch.
__global__ void dot_locked(size_t n, const float *x, const float *y)
{
	__shared__ struct cua_block_scratch scratch;
	double part = part_of_block(n, x, y, &scratch);

	if (threadIdx.x == 0) {
		CUA_WITH_LOCK (&lock) {
			locked_result += part;
		}
	}
}

// The same with a finish state. It resets itself, so each launch needs no preparation.
__global__ void dot_finished(size_t n, const float *x, const float *y)
{
	__shared__ struct cua_block_scratch scratch;
	double total, part = part_of_block(n, x, y, &scratch);

	if (threadIdx.x == 0 && cua_finish_lock_sum_f64(&finish, gridDim.x, part, &total))
		finished_result = total;
}

__global__ void fill(size_t n, float *x, float *y)
{
	size_t stride = (size_t)gridDim.x * blockDim.x;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
		x[i] = (float)(i % 1024);
		y[i] = 2;
	}
}

static void check(cudaError_t error, const char *what)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
		exit(1);
	}
}

int main(void)
{
	// the products of every 1024 elements add up to 2 * (0 + 1 + ... + 1023)
	const double expected = (double)(N / 1024) * 1024 * 1023;
	double locked = 0, finished = 0;
	float *x, *y;
	int blocks = 0;

	check(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0), "device");
	blocks *= 4;
	check(cudaMalloc((void **)&x, N * sizeof(*x)), "memory");
	check(cudaMalloc((void **)&y, N * sizeof(*y)), "memory");
	fill<<<blocks, THREADS>>>(N, x, y);
	dot_locked<<<blocks, THREADS>>>(N, x, y);
	for (int i = 0; i < 3; i++)
		dot_finished<<<blocks, THREADS>>>(N, x, y);
	check(cudaGetLastError(), "launch");
	check(cudaMemcpyFromSymbol(&locked, locked_result, sizeof(locked)), "result");
	check(cudaMemcpyFromSymbol(&finished, finished_result, sizeof(finished)), "result");
	printf("dot of %d: %.0f by hand, %.0f by cua_finish, expected %.0f\n", N, locked, finished,
	       expected);
	check(cudaFree(x), "free");
	check(cudaFree(y), "free");
	return locked == expected && finished == expected ? 0 : 1;
}
