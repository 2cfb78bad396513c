/* SPDX-License-Identifier: MIT */
/*
 * Throughput of CUDA's atomics by contention: all threads on 1 to 2^20 random addresses, in shared
 * and in global memory, natively and by compare-and-swap.
 *
 * The check: the operations of an address are counted by an addition of u32 at the same addresses.
 * An addition of 1 to a float counts exactly up to 2^24, where it rounds to the same value; halves
 * count to 2048; a maximum and an exchange leave 1 in each word that they reach. So the sum of all
 * words is the sum of min(count, CAP).
 */
#ifndef CUATOMIC_BENCH_CONTENTION_H
#define CUATOMIC_BENCH_CONTENTION_H

#include <cuda_fp16.h>

#include "gpu_bench.h"

#define CONTENTION_BLOCK 256
/* Shared memory of a block holds this many 8-byte words. */
#define SHARED_ADDRESSES 4096u
#define GLOBAL_ADDRESSES (1u << 20)
/* Microseconds of a run. */
#define CONTENTION_US 1000.0
/* Longer runs are only repeated twice. */
#define CONTENTION_SLOW_MS 50

enum contention_scope { SCOPE_BLOCK, SCOPE_GPU, SCOPE_SYSTEM };

/* ---- operations ---- */

template <int SCOPE, typename T> static __device__ __forceinline__ void scoped_add(T *p, T v)
{
	if (SCOPE == SCOPE_BLOCK)
		(void)atomicAdd_block(p, v);
	else if (SCOPE == SCOPE_GPU)
		(void)atomicAdd(p, v);
	else
		(void)atomicAdd_system(p, v);
}

template <typename T, unsigned CAP> struct add_native {
	typedef T type;
	static const unsigned cap = CAP;
	template <int SCOPE> static __device__ __forceinline__ void apply(T *p)
	{
		scoped_add<SCOPE>(p, (T)1);
	}
	static __device__ double value(T v)
	{
		return (double)v;
	}
};

typedef unsigned long long contention_u64;

struct add_half2 {
	typedef __half2 type;
	static const unsigned cap = 2048;
	template <int SCOPE> static __device__ __forceinline__ void apply(__half2 *p)
	{
		(void)atomicAdd(p, __floats2half2_rn(1, 1));
	}
	static __device__ double value(__half2 v)
	{
		const float low = __low2float(v), high = __high2float(v);

		return low == high ? low : -1e9;
	}
};

static __device__ __forceinline__ uint32_t bits_of(float v)
{
	return __float_as_uint(v);
}
static __device__ __forceinline__ contention_u64 bits_of(double v)
{
	return (contention_u64)__double_as_longlong(v);
}
static __device__ __forceinline__ uint32_t bits_of(uint32_t v)
{
	return v;
}
static __device__ __forceinline__ float from_bits(uint32_t v, float)
{
	return __uint_as_float(v);
}
static __device__ __forceinline__ double from_bits(contention_u64 v, double)
{
	return __longlong_as_double((long long)v);
}
static __device__ __forceinline__ uint32_t from_bits(uint32_t v, uint32_t)
{
	return v;
}

/* The textbook loop. */
template <typename T, typename WORD, unsigned CAP> struct add_by_cas {
	typedef T type;
	static const unsigned cap = CAP;
	template <int SCOPE> static __device__ __forceinline__ void apply(T *p)
	{
		WORD seen = *(volatile WORD *)p, before;

		do {
			before = seen;
			seen = atomicCAS((WORD *)p, before, bits_of(from_bits(before, T()) + (T)1));
		} while (seen != before);
	}
	static __device__ double value(T v)
	{
		return (double)v;
	}
};

struct max_u32_native {
	typedef uint32_t type;
	static const unsigned cap = 1;
	template <int SCOPE> static __device__ __forceinline__ void apply(uint32_t *p)
	{
		(void)atomicMax(p, 1u);
	}
	static __device__ double value(uint32_t v)
	{
		return v;
	}
};

struct exchange_u32 {
	typedef uint32_t type;
	static const unsigned cap = 1;
	template <int SCOPE> static __device__ __forceinline__ void apply(uint32_t *p)
	{
		/* the result is used, and no word has this value */
		if (atomicExch(p, 1u) == 0x9e3779b9u)
			*p = 0;
	}
	static __device__ double value(uint32_t v)
	{
		return v;
	}
};

/* ---- kernels ---- */

/* own: each lane has an address of its own, adjacent to those of its neighbours. */
template <class OP, int SCOPE, bool SHARED>
static __global__ void __launch_bounds__(CONTENTION_BLOCK)
	contention_kernel(typename OP::type *words, unsigned addresses, unsigned each, bool own,
			  double cap, double *total)
{
	typedef typename OP::type T;
	__shared__ uint64_t room[SHARED ? SHARED_ADDRESSES : 1];
	T *x = SHARED ? (T *)room : words;
	const unsigned thread = blockIdx.x * CONTENTION_BLOCK + threadIdx.x;
	unsigned at = (SHARED ? threadIdx.x : thread) % addresses;
	uint32_t random = thread * 0x9e3779b9u + 1;
	double sum = 0;

	if (SHARED) {
		for (unsigned i = threadIdx.x; i < SHARED_ADDRESSES; i += CONTENTION_BLOCK)
			room[i] = 0;
		__syncthreads();
	}
	for (unsigned i = 0; i < each; i++) {
		random = random * 1664525u + 1013904223u;
		if (!own)
			at = (random >> 9) & (addresses - 1);
		OP::template apply<SCOPE>(x + at);
	}
	if (SHARED) {
		__syncthreads();
		for (unsigned i = threadIdx.x; i < addresses; i += CONTENTION_BLOCK)
			sum += fmin(OP::value(x[i]), cap);
		if (sum != 0)
			atomicAdd(total, sum);
	}
}

template <class OP>
static __global__ void contention_total(const typename OP::type *words, unsigned n, double cap,
					double *total)
{
	double sum = 0;

	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += fmin(OP::value(words[i]), cap);
	if (sum != 0)
		atomicAdd(total, sum);
}

/* ---- rows ---- */

struct contention {
	struct table *table;
	void *words; /* GLOBAL_ADDRESSES words of 8 bytes */
	double *total;
	unsigned blocks;
	bool quick;
};

/* Returns the sum of min(word, cap) after a run on words that are 0. */
template <class OP, int SCOPE, bool SHARED>
static double contention_sum(const struct contention *c, unsigned addresses, unsigned each,
			     bool own, double cap)
{
	typedef typename OP::type T;
	double total;

	need(!cudaMemset(c->words, 0, GLOBAL_ADDRESSES * 8) &&
		     !cudaMemset(c->total, 0, sizeof(*c->total)),
	     "cudaMemset");
	contention_kernel<OP, SCOPE, SHARED><<<c->blocks, CONTENTION_BLOCK>>>(
		(T *)c->words, addresses, each, own, cap, c->total);
	if (!SHARED)
		contention_total<OP><<<c->blocks, CONTENTION_BLOCK>>>((const T *)c->words,
								      addresses, cap, c->total);
	need(!cudaMemcpy(&total, c->total, sizeof(total), cudaMemcpyDeviceToHost), "a sum");
	return total;
}

/* The operations of a thread in a run: 1, or as many as take CONTENTION_US. */
template <class OP, int SCOPE, bool SHARED>
static unsigned contention_each(const struct contention *c, unsigned addresses, bool own,
				bool *slow)
{
	typedef typename OP::type T;
	cudaEvent_t start, end;
	unsigned each = 1;
	float ms = 0;

	*slow = false;
	if (c->quick)
		return 4;
	need(!cudaEventCreate(&start) && !cudaEventCreate(&end), "cudaEventCreate");
	/* the first launch loads the kernel */
	for (int i = 0; i < 2 || (each < 16384 && ms * 1e3 < CONTENTION_US / 4); i++) {
		each *= i < 2 ? 1 : 4;
		cudaEventRecord(start);
		contention_kernel<OP, SCOPE, SHARED><<<c->blocks, CONTENTION_BLOCK>>>(
			(T *)c->words, addresses, each, own, 0, c->total);
		cudaEventRecord(end);
		need(!cudaEventSynchronize(end) && !cudaEventElapsedTime(&ms, start, end), "a run");
	}
	cudaEventDestroy(start);
	cudaEventDestroy(end);
	*slow = ms > CONTENTION_SLOW_MS;
	return each;
}

template <class OP, int SCOPE, bool SHARED>
static struct figure contention_measure(const struct contention *c, const char *way,
					unsigned addresses, bool own)
{
	typedef typename OP::type T;
	typedef add_native<uint32_t, UINT32_MAX> count;
	bool slow;
	const unsigned each = contention_each<OP, SCOPE, SHARED>(c, addresses, own, &slow);
	const double n = (double)c->blocks * CONTENTION_BLOCK * each, cap = OP::cap;

	need(contention_sum<count, SCOPE, SHARED>(c, addresses, each, own, INFINITY) == n, way);
	need(contention_sum<OP, SCOPE, SHARED>(c, addresses, each, own, INFINITY) ==
		     contention_sum<count, SCOPE, SHARED>(c, addresses, each, own, cap),
	     way);
	return measure_runs(
		n, slow ? 0 : 1, slow ? 3 : BENCH_RUNS, [] {},
		[=] {
			contention_kernel<OP, SCOPE, SHARED><<<c->blocks, CONTENTION_BLOCK>>>(
				(T *)c->words, addresses, each, own, cap, c->total);
		},
		[] {});
}

static inline const char *addresses_text(char text[TABLE_NAME], unsigned n)
{
	if (n == 1)
		return "1 address";
	if (n >= 1u << 20)
		snprintf(text, TABLE_NAME, "%u Mi addresses", n >> 20);
	else if (n >= 1u << 10)
		snprintf(text, TABLE_NAME, "%u Ki addresses", n >> 10);
	else
		snprintf(text, TABLE_NAME, "%u addresses", n);
	return text;
}

template <class OP, int SCOPE, bool SHARED>
static void contention_case(const struct contention *c, const char *operation,
			    struct figure ceiling)
{
	static const char *const scopes[] = {"cta", "gpu", "sys"};
	const unsigned most = SHARED ? SHARED_ADDRESSES : GLOBAL_ADDRESSES;
	char name[28], room[TABLE_NAME];

	if (SHARED)
		snprintf(name, sizeof(name), "%s, shared", operation);
	else
		snprintf(name, sizeof(name), "%s, global, %s", operation, scopes[SCOPE]);
	table_begin(c->table, name);
	table_add(c->table, TABLE_CEILING, "ceiling: add u32, an address a lane", ceiling);
	for (unsigned n = 1; n <= most; n *= n == 1024 && SHARED ? 4 : 32) {
		const char *way = addresses_text(room, n);

		if (table_wants(name, way))
			table_add(c->table, TABLE_OURS, way,
				  contention_measure<OP, SCOPE, SHARED>(c, way, n, false));
	}
	table_end(c->table);
}

template <bool SHARED> static void contention_cases(const struct contention *c)
{
	const enum contention_scope S = SHARED ? SCOPE_BLOCK : SCOPE_GPU;
	typedef add_native<uint32_t, UINT32_MAX> add_u32_native;
	typedef add_native<float, 1u << 24> add_f32_native;
	const struct figure ceiling = contention_measure<add_u32_native, S, SHARED>(
		c, "ceiling", SHARED ? CONTENTION_BLOCK : GLOBAL_ADDRESSES, true);

	contention_case<add_u32_native, S, SHARED>(c, "add u32", ceiling);
	contention_case<add_by_cas<uint32_t, uint32_t, UINT32_MAX>, S, SHARED>(c, "add u32 by CAS",
									       ceiling);
	contention_case<max_u32_native, S, SHARED>(c, "max u32", ceiling);
	contention_case<exchange_u32, S, SHARED>(c, "exchange u32", ceiling);
	contention_case<add_native<contention_u64, UINT32_MAX>, S, SHARED>(c, "add u64", ceiling);
	contention_case<add_half2, S, SHARED>(c, "add f16x2", ceiling);
	contention_case<add_f32_native, S, SHARED>(c, "add f32", ceiling);
	contention_case<add_by_cas<float, uint32_t, 1u << 24>, S, SHARED>(c, "add f32 by CAS",
									  ceiling);
	contention_case<add_native<double, UINT32_MAX>, S, SHARED>(c, "add f64", ceiling);
	contention_case<add_by_cas<double, contention_u64, UINT32_MAX>, S, SHARED>(
		c, "add f64 by CAS", ceiling);
	if (!SHARED) {
		contention_case<add_u32_native, SCOPE_SYSTEM, false>(c, "add u32", ceiling);
		contention_case<add_f32_native, SCOPE_SYSTEM, false>(c, "add f32", ceiling);
	}
}

#endif /* CUATOMIC_BENCH_CONTENTION_H */
