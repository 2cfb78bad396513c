/* SPDX-License-Identifier: MIT */
/*
 * bench-malloc: malloc and free in kernels, by size and by threads of a block. The ceiling is an
 * atomic add that moves a pointer: it cannot free.
 *
 * Each thread allocates a piece, writes its own number at both ends, and another launch checks and
 * frees the pieces. The limit of the heap is set before the first launch, and only once: the
 * runtime refuses later changes.
 *
 * Source of the programs: The CUDA Handbook, global memory: allocation in kernels.
 */
#include "gpu_bench_memory.h"

/* All threads allocate at once; more of them only wait longer. */
#define THREADS_MOST (1u << 14)
#define RUNS 5
#define HEAP_BYTES ((size_t)4 << 30)

static uint32_t **pieces;
static uint32_t *failures;
static size_t heap_bytes;
static char *bump_memory;

static __device__ __forceinline__ void mark(uint32_t *p, size_t size, uint32_t thread)
{
	p[0] = thread;
	p[size / 4 - 1] = thread;
}

static __global__ void malloc_kernel(uint32_t **pieces, size_t size, uint32_t *failures)
{
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t *p = (uint32_t *)malloc(size);

	pieces[thread] = p;
	if (p)
		mark(p, size, thread);
	else
		atomicAdd(failures, 1);
}

static __global__ void free_kernel(uint32_t **pieces)
{
	free(pieces[blockIdx.x * blockDim.x + threadIdx.x]);
}

static __global__ void bump_kernel(uint32_t **pieces, size_t size, char *memory,
				   unsigned long long *used)
{
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t *p = (uint32_t *)(memory + atomicAdd(used, (unsigned long long)size));

	pieces[thread] = p;
	mark(p, size, thread);
}

/* Counts the pieces that another thread has overwritten. */
static __global__ void check_kernel(uint32_t *const *pieces, size_t size, uint32_t *failures)
{
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t *p = pieces[thread];

	if (!p || p[0] != thread || p[size / 4 - 1] != thread)
		atomicAdd(failures, 1);
}

static void check(const char *way, size_t size, unsigned blocks, unsigned block)
{
	uint32_t bad;

	check_kernel<<<blocks, block>>>(pieces, size, failures);
	need(!cudaMemcpy(&bad, failures, sizeof(bad), cudaMemcpyDeviceToHost), way);
	need(!bad, way);
}

/* The threads whose pieces fill at most half of the heap. */
static unsigned threads_for(size_t size, unsigned block)
{
	size_t n = heap_bytes / 2 / (size < 64 ? 64 : size);

	n = n < THREADS_MOST ? n : THREADS_MOST;
	return (unsigned)(n / block * block);
}

static void malloc_case(unsigned block)
{
	static const size_t sizes[] = {16, 64, 256, 1024, 4096, 16384, 65536};
	const char *bump_way = "ceiling: atomic add, 16 bytes";
	char name[2][28], way[24];
	struct figure frees[sizeof(sizes) / sizeof(sizes[0])] = {};
	const size_t n_sizes = sizeof(sizes) / sizeof(sizes[0]);

	snprintf(name[0], sizeof(name[0]), "malloc, block %u", block);
	snprintf(name[1], sizeof(name[1]), "free, block %u", block);
	table_begin(&table, name[0]);
	for (size_t k = 0; k < n_sizes; k++) {
		const size_t size = sizes[k];
		const unsigned blocks = threads_for(size, block) / block;

		const double n = (double)blocks * block;
		const auto make = [=] { malloc_kernel<<<blocks, block>>>(pieces, size, failures); };
		const auto drop = [=] { free_kernel<<<blocks, block>>>(pieces); };
		need(blocks > 0, way);
		unsigned long long *used = (unsigned long long *)(failures + 2);

		bench_bytes(way, size);
		if (!k && table_wants(name[0], bump_way))
			table_add(&table, TABLE_CEILING, bump_way,
				  measure(
					  n, [=] { cudaMemsetAsync(used, 0, sizeof(*used)); },
					  [=] {
						  bump_kernel<<<blocks, block>>>(pieces, size,
										 bump_memory, used);
					  },
					  [=] { check(bump_way, size, blocks, block); }));
		if (table_wants(name[0], way))
			table_add(&table, TABLE_OURS, way,
				  measure(
					  n, [] {}, make,
					  [=] {
						  check(way, size, blocks, block);
						  drop();
					  }));
		if (table_matches(name[1], way))
			frees[k] = measure_runs(n, 1, RUNS, make, drop, [] {});
	}
	table_end(&table);
	table_begin(&table, name[1]);
	for (size_t k = 0; k < n_sizes; k++)
		table_add(&table, TABLE_OURS, bench_bytes(way, sizes[k]), frees[k]);
	table_end(&table);
}

static void bench_malloc(const struct options *o)
{
	size_t before = 0;

	heap_bytes = fitting_size(o->quick ? (uint64_t)256 << 20 : HEAP_BYTES, 4);
	need(!cudaDeviceGetLimit(&before, cudaLimitMallocHeapSize) &&
		     !cudaDeviceSetLimit(cudaLimitMallocHeapSize, heap_bytes),
	     "the limit of the heap");
	need(!cudaMalloc(&pieces, THREADS_MOST * sizeof(*pieces)) && !cudaMalloc(&failures, 16) &&
		     !cudaMemset(failures, 0, 16) && !cudaMalloc(&bump_memory, THREADS_MOST * 16),
	     "memory");
	bench_plan(4 * (1 + 7 + 7));
	printf("a heap of %zu MiB; up to %u threads, a piece each; * fewer runs\n",
	       heap_bytes >> 20, THREADS_MOST);
	table_columns("M/s", "");
	for (unsigned block = 32; block <= 1024; block *= block == 32 ? 4 : block == 128 ? 2 : 4)
		malloc_case(block);
	cudaFree(pieces);
	cudaFree(failures);
	cudaFree(bump_memory);
	need(!cudaDeviceReset() && !cudaDeviceSetLimit(cudaLimitMallocHeapSize, before),
	     "the limit of the heap");
}

int main(int argc, char **argv)
{
	static const struct memory_bench bench = {"malloc", bench_malloc};

	return run_memory_bench(argc, argv, &bench, 1);
}
