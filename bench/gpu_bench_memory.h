/* SPDX-License-Identifier: MIT */
/*
 * Shared by the programs that measure memory: arguments, sizes, random data, and the best kernels
 * that read and write whole arrays.
 */
#ifndef CUATOMIC_BENCH_MEMORY_H
#define CUATOMIC_BENCH_MEMORY_H

#include "gpu_bench.h"

/* The time limit of a row: these programs have many rows. */
#define MEMORY_ROW_SECONDS 0.2

static struct table table;
static unsigned processors;
static uint64_t l2_bytes;

/* A benchmark of a program that contains several. */
struct memory_bench {
	const char *name;
	void (*run)(const struct options *o);
};

/* Runs the only benchmark, or the one that the first argument names. */
static inline int run_memory_bench(int argc, char **argv, const struct memory_bench *benches,
				   size_t n)
{
	cudaDeviceProp device;
	struct options o;

	const int named = n > 1;

	for (size_t i = 0; i < n; i++) {
		if (named && (argc < 2 || strcmp(argv[1], benches[i].name) != 0))
			continue;
		o = parse_options(argc - named, argv + named, benches[i].name, false);
		device = print_head(benches[i].name);
		processors = (unsigned)device.multiProcessorCount;
		l2_bytes = (uint64_t)device.l2CacheSize;
		bench_env()->row_seconds = MEMORY_ROW_SECONDS;
		benches[i].run(&o);
		return 0;
	}
	fprintf(stderr,
		"cuatomic bench: the first argument must name a benchmark of this program\n");
	return 2;
}

/* Halves the size until n arrays of it fill at most most of the free memory. */
static inline uint64_t fitting_size(uint64_t bytes, unsigned n)
{
	size_t available, total;

	need(!cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
	while (bytes > 1 << 20 && bytes > available / 10 * 8 / n)
		bytes /= 2;
	return bytes;
}

/* ---- operands ---- */

/* The operands have 1, 2, 4, 8 and 16 bytes. */
static __device__ __forceinline__ uint32_t fold(uint8_t v)
{
	return v;
}
static __device__ __forceinline__ uint32_t fold(uint16_t v)
{
	return v;
}
static __device__ __forceinline__ uint32_t fold(uint32_t v)
{
	return v;
}
static __device__ __forceinline__ uint32_t fold(uint2 v)
{
	return v.x + v.y;
}
static __device__ __forceinline__ uint32_t fold(uint4 v)
{
	return v.x + v.y + v.z + v.w;
}

static __device__ __forceinline__ void spread(uint8_t *to, uint32_t v)
{
	*to = (uint8_t)v;
}
static __device__ __forceinline__ void spread(uint16_t *to, uint32_t v)
{
	*to = (uint16_t)v;
}
static __device__ __forceinline__ void spread(uint32_t *to, uint32_t v)
{
	*to = v;
}
static __device__ __forceinline__ void spread(uint2 *to, uint32_t v)
{
	*to = make_uint2(v, v >> 1);
}
static __device__ __forceinline__ void spread(uint4 *to, uint32_t v)
{
	*to = make_uint4(v, v >> 1, v >> 2, v >> 3);
}

template <typename T> static __device__ __forceinline__ bool same(T a, T b)
{
	return a == b;
}
static __device__ __forceinline__ bool same(uint2 a, uint2 b)
{
	return a.x == b.x && a.y == b.y;
}
static __device__ __forceinline__ bool same(uint4 a, uint4 b)
{
	return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

/* ---- accesses ---- */

struct plain_access {
	template <typename T> static __device__ __forceinline__ T load(const T *x, size_t i)
	{
		return x[i];
	}
	static __device__ __forceinline__ size_t place(size_t i)
	{
		return i;
	}
};

/* ---- kernels over whole arrays ---- */

/*
 * A block handles tiles of blockDim.x * UNROLL elements. n is a multiple of the tile. Thread t of
 * the grid writes the sum of its elements to sums[t].
 */
template <class ACCESS, int UNROLL, typename T>
static __global__ void __launch_bounds__(1024) read_kernel(const T *x, size_t n, uint32_t *sums)
{
	const size_t step = (size_t)gridDim.x * blockDim.x * UNROLL;
	uint32_t sum = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; i < n; i += step) {
		T v[UNROLL];

#pragma unroll
		for (int k = 0; k < UNROLL; k++)
			v[k] = ACCESS::load(x, ACCESS::place(i + (size_t)k * blockDim.x));
#pragma unroll
		for (int k = 0; k < UNROLL; k++)
			sum += fold(v[k]);
	}
	sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* Like read_kernel. Thread t of a block writes seed + t. */
template <class ACCESS, int UNROLL, typename T>
static __global__ void __launch_bounds__(1024) write_kernel(T *x, size_t n, uint32_t seed)
{
	const size_t step = (size_t)gridDim.x * blockDim.x * UNROLL;
	T v;

	spread(&v, seed + threadIdx.x);
	for (size_t i = (size_t)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; i < n; i += step) {
#pragma unroll
		for (int k = 0; k < UNROLL; k++)
			x[ACCESS::place(i + (size_t)k * blockDim.x)] = v;
	}
}

template <class ACCESS, int UNROLL, typename T>
static __global__ void __launch_bounds__(1024) copy_kernel(T *to, const T *x, size_t n)
{
	const size_t step = (size_t)gridDim.x * blockDim.x * UNROLL;

	for (size_t i = (size_t)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; i < n; i += step) {
		T v[UNROLL];

#pragma unroll
		for (int k = 0; k < UNROLL; k++)
			v[k] = x[ACCESS::place(i + (size_t)k * blockDim.x)];
#pragma unroll
		for (int k = 0; k < UNROLL; k++)
			to[ACCESS::place(i + (size_t)k * blockDim.x)] = v[k];
	}
}

/* ---- launches ---- */

/* The blocks of a kernel that are resident together, but no more than there are tiles. */
template <typename Kernel> static unsigned resident(Kernel kernel, unsigned block, size_t tiles)
{
	int each = 0;

	need(!cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, (int)block, 0) &&
		     each > 0,
	     "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
	return (size_t)each * processors < tiles ? (unsigned)each * processors : (unsigned)tiles;
}

/* ---- the best figures, the ceilings of all programs ---- */

static inline void keep_best(struct figure *best, struct figure f)
{
	if (f.median > best->median)
		*best = f;
}

/* The best rate of reading an array of 16-byte words, in GB/s. sums has a word for each thread. */
static inline struct figure best_read(const uint4 *x, size_t n, uint32_t *sums)
{
	struct figure best = {};

	for (unsigned block = 256; block <= 1024; block *= 2) {
		auto one = [&](auto kernel, int unroll) {
			unsigned blocks = resident(kernel, block, n / ((size_t)block * unroll));

			if (!blocks)
				return;
			keep_best(&best,
				  measure((double)n * 16e-3, [] {},
					  [=] { kernel<<<blocks, block>>>(x, n, sums); }, [] {}));
		};
		one(read_kernel<plain_access, 2, uint4>, 2);
		one(read_kernel<plain_access, 4, uint4>, 4);
		one(read_kernel<plain_access, 8, uint4>, 8);
	}
	return best;
}

/* The best rate of writing, with resident blocks and with a block for each tile. */
static inline struct figure best_write(uint4 *x, size_t n)
{
	struct figure best = {};

	for (unsigned block = 256; block <= 1024; block *= 2) {
		auto one = [&](auto kernel, int unroll) {
			const size_t tiles = n / ((size_t)block * unroll);

			for (unsigned blocks : {resident(kernel, block, tiles), (unsigned)tiles})
				if (tiles)
					keep_best(
						&best,
						measure((double)n * 16e-3, [] {},
							[=] { kernel<<<blocks, block>>>(x, n, 1); },
							[] {}));
		};
		one(write_kernel<plain_access, 1, uint4>, 1);
		one(write_kernel<plain_access, 4, uint4>, 4);
	}
	return best;
}

/* The best rate of copying, in GB/s read and written. */
static inline struct figure best_copy(uint4 *to, const uint4 *x, size_t n)
{
	struct figure best = {};

	for (unsigned block = 256; block <= 1024; block *= 2) {
		auto one = [&](auto kernel, int unroll) {
			const size_t tiles = n / ((size_t)block * unroll);

			for (unsigned blocks : {resident(kernel, block, tiles), (unsigned)tiles})
				if (tiles)
					keep_best(&best, measure((double)n * 32e-3, [] {},
								 [=] {
									 kernel<<<blocks, block>>>(
										 to, x, n);
								 },
								 [] {}));
		};
		one(copy_kernel<plain_access, 2, uint4>, 2);
		one(copy_kernel<plain_access, 4, uint4>, 4);
		one(copy_kernel<plain_access, 8, uint4>, 8);
	}
	return best;
}

/* ---- data ---- */

static __global__ void fill_random(uint32_t *x, size_t n, uint64_t seed)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		x[i] = (uint32_t)mix(seed + i);
}

static inline void *device_memory(uint64_t bytes)
{
	void *p;

	need(!cudaMalloc(&p, bytes), "cudaMalloc");
	return p;
}

/* An array of random words. bytes is a multiple of 4. */
static inline void *random_memory(uint64_t bytes, uint64_t seed)
{
	void *p = device_memory(bytes);

	fill_random<<<processors * 8, 256>>>((uint32_t *)p, bytes / 4, seed * 0x9e3779b97f4a7c15u);
	need(!cudaDeviceSynchronize(), "random data");
	return p;
}

#endif /* CUATOMIC_BENCH_MEMORY_H */
