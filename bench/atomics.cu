/* SPDX-License-Identifier: MIT */
/*
 * Atomics under contention: all threads on one address, plain, combined in the warp and combined in the
 * block; and on spread addresses. The peers are CUDA's atomicAdd and the textbook's loop over atomicCAS
 * (Sanders and Kandrot, CUDA by Example, appendix A), in the same run.
 *
 * Every figure is the median of RUNS runs, after one that is not counted, with the least and the most;
 * the result of every run is verified. Operands are such that every operation changes the value.
 */
#include <math.h>

#include "bench.h"

#include <cuatomic/atomic_warp.h>

#define THREADS 256

/* ---- a user's operation: a sum modulo a prime ---- */

#define PRIME 4294967291u
CUA_DEFINE_ATOMIC_WARP(add_mod, u64, (old + operand) % PRIME)

/* ---- one operation of one thread ---- */

struct textbook_add_f32 {
	typedef float type;
	static __device__ void apply(float *p, float v, struct cua_block_scratch *)
	{
		int *word = (int *)p, seen = *(volatile int *)word, before;

		do {
			before = seen;
			seen = atomicCAS(word, before, __float_as_int(__int_as_float(before) + v));
		} while (seen != before);
	}
};

struct cuda_add_f32 {
	typedef float type;
	static __device__ void apply(float *p, float v, struct cua_block_scratch *)
	{
		atomicAdd(p, v);
	}
};

#define WAY(name, T, call)                                                                         \
	struct name {                                                                              \
		typedef T type;                                                                    \
		static __device__ void apply(T *p, T v, struct cua_block_scratch *s)               \
		{                                                                                  \
			(void)s;                                                                   \
			call;                                                                      \
		}                                                                                  \
	};

WAY(cas_f32, float, cua_atomic_fetch_add_cas_f32(p, v))
WAY(cas_warp_f32, float, cua_atomic_fetch_add_cas_warp_f32(0xffffffff, p, v))
WAY(cas_block_f32, float, cua_atomic_add_cas_block_f32(p, v, s))
WAY(mul_f64, double, cua_atomic_fetch_mul_f64(p, v))
WAY(mul_warp_f64, double, cua_atomic_fetch_mul_warp_f64(0xffffffff, p, v))
WAY(mul_block_f64, double, cua_atomic_mul_block_f64(p, v, s))
WAY(mod, uint64_t, add_mod(p, v))
WAY(mod_warp, uint64_t, add_mod_warp(0xffffffff, p, v))
WAY(mod_block, uint64_t, add_mod_block(p, v, s))
WAY(add_f32, float, cua_atomic_add_f32(p, v))
WAY(add_warp_f32, float, cua_atomic_add_warp_f32(0xffffffff, p, v))
WAY(add_block_f32, float, cua_atomic_add_block_f32(p, v, s))
WAY(fetch_add_f32, float, if (cua_atomic_fetch_add_f32(p, v) < 0) __trap())
WAY(fetch_add_warp_f32, float, if (cua_atomic_fetch_add_warp_f32(0xffffffff, p, v) < 0) __trap())
WAY(max_f32, float, cua_atomic_max_f32(p, v))
WAY(max_warp_f32, float, cua_atomic_max_warp_f32(0xffffffff, p, v))
WAY(add_u32, uint32_t, cua_atomic_add_u32(p, v))
WAY(add_warp_u32, uint32_t, cua_atomic_add_warp_u32(0xffffffff, p, v))

static __device__ uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Each thread applies v `each` times to one of `cells` cells (a power of two), a new one each time. */
template <class W>
static __global__ void apply_all(typename W::type *p, uint64_t cells, typename W::type v, unsigned each)
{
	__shared__ struct cua_block_scratch scratch;
	uint64_t id = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (cells == 1)
		for (unsigned i = 0; i < each; i++)
			W::apply(p, v, &scratch);
	else
		for (unsigned i = 0; i < each; i++)
			W::apply(p + (mix(id << 32 | i) & (cells - 1)), v, &scratch);
}

/* A maximum that each operation raises, or would but for the others. */
template <class W> static __global__ void raise_all(float *p, unsigned each)
{
	__shared__ struct cua_block_scratch scratch;
	unsigned id = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < each; i++)
		W::apply(p, (float)(i * 64 + id % 64), &scratch);
}

static unsigned blocks;
static void *memory;

/* Runs `call`, which does n operations; verify returns whether the memory is right after it. */
template <typename Call, typename Verify>
static double row(const char *name, double n, double base, size_t bytes, double start, size_t start_bytes,
		  Call call, Verify verify)
{
	double rate;
	struct timing t = measure_runs(
		1, RUNS,
		[=] {
			need(!cudaMemset(memory, 0, bytes), "cudaMemset");
			if (start_bytes)
				need(!cudaMemcpy(memory, &start, start_bytes, cudaMemcpyHostToDevice),
				     "cudaMemcpy");
			need(!cudaDeviceSynchronize(), "cudaMemset");
		},
		call, [=] { need(verify(), name); });

	rate = n / t.median / 1e3;
	printf("%-44s %11.0f %11.1f %9.1f %9.1f %10.5f", name, n, t.median, t.least, t.most, rate);
	if (base > 0)
		printf(" %8.2f", rate / base);
	printf("\n");
	fflush(stdout);
	return rate;
}

template <typename T> static T first(void)
{
	T x;

	need(!cudaMemcpy(&x, memory, sizeof(x), cudaMemcpyDeviceToHost), "cudaMemcpy");
	return x;
}

static void heading(const char *what, const char *of)
{
	printf("\n%-44s %11s %11s %9s %9s %10s %s\n", what, "operations", "us", "least", "most", "G/s", of);
}

/* n is kept at 2^24 at most, up to where counts are exact in a float. */
static unsigned each_of(unsigned most)
{
	unsigned exact = (1u << 24) / (blocks * THREADS);

	return most < exact ? most : exact;
}

template <class W> static double sum_row(const char *name, unsigned most, double base)
{
	typedef typename W::type T;
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each;

	return row(name, n, base, sizeof(T), 0, 0,
		   [=] { apply_all<W><<<blocks, THREADS>>>((T *)memory, 1, (T)1, each); },
		   [=] { return (double)first<T>() == n; });
}

/* A factor that is not lost in rounding, and of which one that is missing shows. */
template <class W> static double product_row(const char *name, unsigned most, double base)
{
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each, factor = 1 + 0x1p-20, wanted = exp(n * log1p(0x1p-20));

	return row(name, n, base, sizeof(double), 1, sizeof(double),
		   [=] { apply_all<W><<<blocks, THREADS>>>((double *)memory, 1, factor, each); },
		   [=] { return fabs(first<double>() / wanted - 1) < 0x1p-21; });
}

template <class W> static double mod_row(const char *name, unsigned most, double base)
{
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each;
	uint64_t v = 4000000007u % PRIME, wanted = (uint64_t)n * v % PRIME;

	return row(name, n, base, sizeof(uint64_t), 0, 0,
		   [=] { apply_all<W><<<blocks, THREADS>>>((uint64_t *)memory, 1, v, each); },
		   [=] { return first<uint64_t>() == wanted; });
}

template <class W> static double raise_row(const char *name, unsigned most, double base)
{
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each;

	return row(name, n, base, sizeof(float), 0, 0,
		   [=] { raise_all<W><<<blocks, THREADS>>>((float *)memory, each); },
		   [=] { return first<float>() == (float)(each * 64 - 1); });
}

template <class W> static double spread_row(const char *name, uint64_t cells, double base)
{
	typedef typename W::type T;
	unsigned wide = blocks * 8, each = 256;
	double n = (double)wide * THREADS * each;
	T *host = (T *)malloc(cells * sizeof(T));
	double rate;

	need(host != NULL, "malloc");
	rate = row(name, n, base, cells * sizeof(T), 0, 0,
		   [=] { apply_all<W><<<wide, THREADS>>>((T *)memory, cells, (T)1, each); },
		   [=] {
			   double sum = 0;

			   need(!cudaMemcpy(host, memory, cells * sizeof(T), cudaMemcpyDeviceToHost),
				"cudaMemcpy");
			   for (uint64_t i = 0; i < cells; i++)
				   sum += (double)host[i];
			   return sum == n;
		   });
	free(host);
	return rate;
}

int main(void)
{
	static const struct {
		uint64_t cells;
		const char *what;
	} spreads[] = {{16, "16 addresses"}, {1 << 10, "1 Ki addresses"},
		       {1 << 23, "8 Mi addresses, 32 MB"}, {1 << 28, "256 Mi addresses, 1 GB"}};
	cudaDeviceProp info;
	double base;

	if (cudaGetDeviceProperties(&info, 0) != cudaSuccess) {
		fprintf(stderr, "atomics: no CUDA device\n");
		return 77;
	}
	blocks = (unsigned)info.multiProcessorCount;
	need(!cudaMalloc(&memory, (size_t)4 << 28), "cudaMalloc");
	printf("%s; %u blocks of %u threads (spread: %u); medians of %d\n", info.name, blocks, THREADS,
	       blocks * 8, RUNS);

	heading("float add by compare-and-swap, one address", "of textbook");
	base = sum_row<textbook_add_f32>("textbook", 1, 0);
	sum_row<cas_f32>("cua_atomic_fetch_add_cas_f32", 1, base);
	sum_row<cas_warp_f32>("cua_atomic_fetch_add_cas_warp_f32", 64, base);
	sum_row<cas_block_f32>("cua_atomic_add_cas_block_f32", 400, base);

	heading("f64 product, one address", "of plain");
	base = product_row<mul_f64>("cua_atomic_fetch_mul_f64", 1, 0);
	product_row<mul_warp_f64>("cua_atomic_fetch_mul_warp_f64", 64, base);
	product_row<mul_block_f64>("cua_atomic_mul_block_f64", 400, base);

	heading("u64 sum modulo a prime (user), one address", "of plain");
	base = mod_row<mod>("add_mod", 1, 0);
	mod_row<mod_warp>("add_mod_warp", 64, base);
	mod_row<mod_block>("add_mod_block", 400, base);

	heading("float maximum, one address", "of plain");
	base = raise_row<max_f32>("cua_atomic_max_f32", 16, 0);
	raise_row<max_warp_f32>("cua_atomic_max_warp_f32", 16, base);

	heading("native float add, one address", "of atomicAdd");
	base = sum_row<cuda_add_f32>("atomicAdd", 400, 0);
	sum_row<add_f32>("cua_atomic_add_f32", 400, base);
	sum_row<add_warp_f32>("cua_atomic_add_warp_f32", 400, base);
	sum_row<add_block_f32>("cua_atomic_add_block_f32", 400, base);
	sum_row<fetch_add_f32>("cua_atomic_fetch_add_f32", 400, base);
	sum_row<fetch_add_warp_f32>("cua_atomic_fetch_add_warp_f32", 400, base);

	heading("native u32 add, one address", "of plain");
	base = sum_row<add_u32>("cua_atomic_add_u32", 400, 0);
	sum_row<add_warp_u32>("cua_atomic_add_warp_u32", 400, base);

	for (auto &s : spreads) {
		char what[64];

		snprintf(what, sizeof(what), "native float add, %s", s.what);
		heading(what, "of atomicAdd");
		base = spread_row<cuda_add_f32>("atomicAdd", s.cells, 0);
		spread_row<add_f32>("cua_atomic_add_f32", s.cells, base);
		spread_row<add_warp_f32>("cua_atomic_add_warp_f32", s.cells, base);
	}
	cudaFree(memory);
	return 0;
}
