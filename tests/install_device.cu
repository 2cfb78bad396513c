// SPDX-License-Identifier: MIT
// A user's kernel: the headers alone, without the library.
#include <stdio.h>

#include <cuatomic/spinlock.h>

__device__ struct cua_spinlock lock = CUA_SPINLOCK_INIT;
__device__ unsigned counter;

__global__ void count(void)
{
	CUA_WITH_LOCK (&lock) {
		counter = counter + 1;
	}
}

int main(void)
{
	unsigned result = 0;
	int devices = 0;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("compiled and linked; not run, no GPU\n");
		return 77;
	}
	count<<<8, 96>>>();
	if (cudaMemcpyFromSymbol(&result, counter, sizeof(result)) != cudaSuccess)
		return 1;
	printf("counted %u of %u\n", result, 8 * 96);
	return result == 8 * 96 ? 0 : 2;
}
