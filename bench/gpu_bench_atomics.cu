/* SPDX-License-Identifier: MIT */
/*
 * Atomics of all threads, on a single address and on spread addresses, inside and far beyond the
 * L2. On a single address, each lane does its own operation, or the operations are combined in the
 * warp or in the block. The peers in the same run are CUDA's atomics, libcu++, and the textbook
 * loop over atomicCAS (Sanders and Kandrot, CUDA by Example, appendix A).
 *
 * The ceiling is the hardware's addition without a result, a lane each, on a type of the same size
 * at the same addresses. Combined operations can exceed it because they need fewer atomics. A
 * maximum can exceed it because it skips operands that change nothing.
 *
 * Every operation except a maximum or minimum changes the value. Each run's result is compared with
 * the expected value.
 */
#include <math.h>

#if CUDART_VERSION >= 12000
#include <cuda/atomic>
#define HAVE_ATOMIC_REF 1
#endif

#include <cuatomic/atomic_warp.h>

#include "gpu_bench_contention.h"

#define THREADS 256

/* ---- a user-defined operation: a sum modulo a prime ---- */

#define PRIME 4294967291u
CUA_DEFINE_ATOMIC_CHANGING_WARP(add_mod, u64, (old + operand) % PRIME)

/* ---- the operation of a thread ---- */

#define WAY(name, T, call)                                                                         \
	struct name {                                                                              \
		typedef T type;                                                                    \
		static __device__ void apply(T *p, T v, struct cua_block_scratch *s)               \
		{                                                                                  \
			(void)s;                                                                   \
			call;                                                                      \
		}                                                                                  \
	};

/* The textbook loop. `make` computes the new value from `old` and v. */
#define TEXTBOOK(name, T, WORD, load, store, make)                                                 \
	struct name {                                                                              \
		typedef T type;                                                                    \
		static __device__ void apply(T *p, T v, struct cua_block_scratch *)                \
		{                                                                                  \
			WORD *word = (WORD *)p, seen = *(volatile WORD *)word, before;             \
                                                                                                   \
			do {                                                                       \
				T old = load(seen);                                                \
                                                                                                   \
				before = seen;                                                     \
				seen = atomicCAS(word, before, store(make));                       \
			} while (seen != before);                                                  \
		}                                                                                  \
	};

#define NATIVE(T, p, v) cua_port_add_##T(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL)
#define SAME(x) (x)
typedef unsigned long long word64;

WAY(native_f32, float, NATIVE(f32, p, v))
WAY(native_f64, double, NATIVE(f64, p, v))
WAY(native_u32, uint32_t, NATIVE(u32, p, v))
WAY(native_u64, uint64_t, NATIVE(u64, p, v))

TEXTBOOK(textbook_add_f32, float, int, __int_as_float, __float_as_int, old + v)
TEXTBOOK(textbook_add_f64, double, word64, __longlong_as_double, __double_as_longlong, old + v)
TEXTBOOK(textbook_mul_f64, double, word64, __longlong_as_double, __double_as_longlong, (v * old))
TEXTBOOK(textbook_mod, uint64_t, word64, SAME, SAME, (old + v) % PRIME)
TEXTBOOK(textbook_max_f32, float, int, __int_as_float, __float_as_int, old < v ? v : old)

WAY(cuda_add_f32, float, atomicAdd(p, v))
WAY(cuda_add_f64, double, atomicAdd(p, v))
WAY(cuda_add_u32, uint32_t, atomicAdd(p, v))
WAY(cuda_max_u32, uint32_t, atomicMax(p, v))
WAY(cuda_min_u32, uint32_t, atomicMin(p, v))
#ifdef HAVE_ATOMIC_REF
template <typename T> struct ref_add {
	typedef T type;
	static __device__ void apply(T *p, T v, struct cua_block_scratch *)
	{
		cuda::atomic_ref<T, cuda::thread_scope_device>(*p).fetch_add(
			v, cuda::memory_order_relaxed);
	}
};
#endif

/* The forms of an operation for a lane, a warp and a block. */
#define THREE(name, T, plain, warp, block)                                                         \
	WAY(name, T, plain)                                                                        \
	WAY(name##_warp, T, warp)                                                                  \
	WAY(name##_block, T, block)
#define ALL_LANES 0xffffffff

THREE(add_f32, float, cua_atomic_add_f32(p, v), cua_atomic_add_warp_f32(ALL_LANES, p, v),
      cua_atomic_add_block_f32(p, v, s))
THREE(add_f64, double, cua_atomic_add_f64(p, v), cua_atomic_add_warp_f64(ALL_LANES, p, v),
      cua_atomic_add_block_f64(p, v, s))
THREE(cas_f32, float, cua_atomic_fetch_add_cas_f32(p, v),
      cua_atomic_fetch_add_cas_warp_f32(ALL_LANES, p, v), cua_atomic_add_cas_block_f32(p, v, s))
THREE(cas_f64, double, cua_atomic_fetch_add_cas_f64(p, v),
      cua_atomic_fetch_add_cas_warp_f64(ALL_LANES, p, v), cua_atomic_add_cas_block_f64(p, v, s))
THREE(mul_f64, double, cua_atomic_fetch_mul_f64(p, v),
      cua_atomic_fetch_mul_warp_f64(ALL_LANES, p, v), cua_atomic_mul_block_f64(p, v, s))
THREE(mod, uint64_t, add_mod(p, v), add_mod_warp(ALL_LANES, p, v), add_mod_block(p, v, s))
THREE(add_u32, uint32_t, cua_atomic_add_u32(p, v), cua_atomic_add_warp_u32(ALL_LANES, p, v),
      cua_atomic_add_block_u32(p, v, s))
THREE(max_u32, uint32_t, cua_atomic_max_u32(p, v), cua_atomic_max_warp_u32(ALL_LANES, p, v),
      cua_atomic_max_block_u32(p, v, s))
THREE(min_u32, uint32_t, cua_atomic_min_u32(p, v), cua_atomic_min_warp_u32(ALL_LANES, p, v),
      cua_atomic_min_block_u32(p, v, s))
THREE(max_f32, float, cua_atomic_max_f32(p, v), cua_atomic_max_warp_f32(ALL_LANES, p, v),
      cua_atomic_max_block_f32(p, v, s))
WAY(add_global_f32, float,
    cua_atomic_add_explicit_f32(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL))
WAY(add_global_u32, uint32_t,
    cua_atomic_add_explicit_u32(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL))
WAY(fetch_add_f32, float, if (cua_atomic_fetch_add_f32(p, v) < 0) __trap())
WAY(fetch_add_warp_f32, float, if (cua_atomic_fetch_add_warp_f32(ALL_LANES, p, v) < 0) __trap())

/* ---- kernels ---- */

/* Each thread applies v `each` times to random items. `items` is a power of two. */
template <class W>
static __global__ void apply_all(typename W::type *p, uint64_t items, typename W::type v,
				 unsigned each)
{
	__shared__ struct cua_block_scratch scratch;
	uint64_t id = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (items == 1)
		for (unsigned i = 0; i < each; i++)
			W::apply(p, v, &scratch);
	else
		for (unsigned i = 0; i < each; i++)
			W::apply(p + (mix(id << 32 | i) & (items - 1)), v, &scratch);
}

/*
 * Each thread applies rising operands (falling with FALLS), so each operation would change the
 * value if no other thread were faster.
 */
template <class W, bool FALLS> static __global__ void move_all(typename W::type *p, unsigned each)
{
	__shared__ struct cua_block_scratch scratch;
	unsigned id = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < each; i++) {
		unsigned v = i * 64 + id % 64;

		W::apply(p, (typename W::type)(FALLS ? ~v : v), &scratch);
	}
}

/* Adds all items, or their logarithms, to *sum. */
template <typename T>
static __global__ void sum_items(const T *p, uint64_t items, bool logarithms, double *sum)
{
	double mine = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < items;
	     i += (uint64_t)gridDim.x * blockDim.x)
		mine += logarithms ? log((double)p[i]) : (double)p[i];
	atomicAdd(sum, mine);
}

template <typename T> static __global__ void fill(T *p, uint64_t items, T v)
{
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < items;
	     i += (uint64_t)gridDim.x * blockDim.x)
		p[i] = v;
}

/* ---- a row ---- */

static struct table table;
static unsigned blocks;
static void *memory;
static double *sum;

template <typename T> static T first(void)
{
	T x;

	need(!cudaMemcpy(&x, memory, sizeof(x), cudaMemcpyDeviceToHost), "cudaMemcpy");
	return x;
}

/*
 * Measures `call`, which does n operations on items that start as `start`. verify() returns whether
 * they are right.
 */
template <typename T, typename Call, typename Verify>
static void row(enum table_kind kind, const char *way, double n, uint64_t items, T start, Call call,
		Verify verify)
{
	if (!table_wants(table.name, way))
		return;
	struct figure f = measure(
		n,
		[=] {
			fill<<<blocks * 8, THREADS>>>((T *)memory, items, start);
			need(!cudaDeviceSynchronize(), "fill");
		},
		call,
		[=] {
			if (!verify()) {
				fflush(stdout);
				fprintf(stderr, "cuatomic bench: atomics: %s, %s: wrong result\n",
					table.name, way);
				exit(1);
			}
		});

	table_add(&table, kind, way, f);
}

/* Limits n to 2^24: a float counts exactly up to there. */
static unsigned each_of(unsigned most)
{
	unsigned exact = (1u << 24) / (blocks * THREADS);

	return most < exact ? most : exact;
}

template <class W> static void sum_row(enum table_kind kind, const char *way, unsigned most)
{
	typedef typename W::type T;
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each;

	row(
		kind, way, n, 1, (T)0,
		[=] { apply_all<W><<<blocks, THREADS>>>((T *)memory, 1, (T)1, each); },
		[=] { return (double)first<T>() == n; });
}

/* Far enough from 1 that rounding cannot hide a lost multiplication. */
#define FACTOR (1 + 0x1p-20)

template <class W> static void product_row(enum table_kind kind, const char *way, unsigned most)
{
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each, wanted = exp(n * log1p(0x1p-20));

	row(
		kind, way, n, 1, 1.0,
		[=] { apply_all<W><<<blocks, THREADS>>>((double *)memory, 1, FACTOR, each); },
		[=] { return fabs(first<double>() / wanted - 1) < 0x1p-21; });
}

template <class W> static void mod_row(enum table_kind kind, const char *way, unsigned most)
{
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each;
	uint64_t v = 4000000007u % PRIME, wanted = (uint64_t)n * v % PRIME;

	row(
		kind, way, n, 1, (uint64_t)0,
		[=] { apply_all<W><<<blocks, THREADS>>>((uint64_t *)memory, 1, v, each); },
		[=] { return first<uint64_t>() == wanted; });
}

template <class W, bool FALLS = false>
static void move_row(enum table_kind kind, const char *way, unsigned most)
{
	typedef typename W::type T;
	unsigned each = each_of(most);
	double n = (double)blocks * THREADS * each;
	unsigned last = each * 64 - 1;

	row(
		kind, way, n, 1, (T)(FALLS ? ~0u : 0u),
		[=] { move_all<W, FALLS><<<blocks, THREADS>>>((T *)memory, each); },
		[=] { return first<T>() == (T)(FALLS ? ~last : last); });
}

/* With factors, the items start at 1 and the check adds their logarithms. */
template <class W>
static void spread_row(enum table_kind kind, const char *way, uint64_t bytes, bool factors = false)
{
	typedef typename W::type T;
	unsigned wide = blocks * 8, each = 256;
	uint64_t items = bytes / sizeof(T);
	double n = (double)wide * THREADS * each, wanted = factors ? n * log1p(0x1p-20) : n;
	T v = (T)(factors ? FACTOR : 1);

	row(
		kind, way, n, items, (T)(factors ? 1 : 0),
		[=] { apply_all<W><<<wide, THREADS>>>((T *)memory, items, v, each); },
		[=] {
			double got;

			need(!cudaMemset(sum, 0, sizeof(*sum)), "cudaMemset");
			sum_items<<<wide, THREADS>>>((const T *)memory, items, factors, sum);
			need(!cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost),
			     "sum of the items");
			return fabs(got - wanted) < (factors ? 0x1p-21 : 0.5);
		});
}

/* ---- the cases ---- */

static void one_address(void)
{
	table_begin(&table, "one address: f32 add");
	sum_row<native_f32>(TABLE_CEILING, "ceiling: a lane each, global", 400);
	sum_row<cuda_add_f32>(TABLE_PEER, "atomicAdd", 400);
#ifdef HAVE_ATOMIC_REF
	sum_row<ref_add<float>>(TABLE_PEER, "cuda::atomic_ref::fetch_add", 400);
#endif
	sum_row<add_f32>(TABLE_OURS, "cua_atomic_add_f32", 400);
	sum_row<add_f32_warp>(TABLE_OURS, "cua_atomic_add_warp_f32", 400);
	sum_row<add_f32_block>(TABLE_OURS, "cua_atomic_add_block_f32", 400);
	sum_row<fetch_add_f32>(TABLE_OURS, "cua_atomic_fetch_add_f32", 400);
	sum_row<fetch_add_warp_f32>(TABLE_OURS, "cua_atomic_fetch_add_warp_f32", 400);
	table_end(&table);

	table_begin(&table, "one address: f64 add");
	sum_row<native_f64>(TABLE_CEILING, "ceiling: a lane each, global", 400);
	sum_row<cuda_add_f64>(TABLE_PEER, "atomicAdd", 400);
	sum_row<add_f64>(TABLE_OURS, "cua_atomic_add_f64", 400);
	sum_row<add_f64_warp>(TABLE_OURS, "cua_atomic_add_warp_f64", 400);
	sum_row<add_f64_block>(TABLE_OURS, "cua_atomic_add_block_f64", 400);
	table_end(&table);

	table_begin(&table, "one address: u32 add");
	sum_row<native_u32>(TABLE_CEILING, "ceiling: a lane each, global", 400);
	sum_row<cuda_add_u32>(TABLE_PEER, "atomicAdd", 400);
#ifdef HAVE_ATOMIC_REF
	sum_row<ref_add<uint32_t>>(TABLE_PEER, "cuda::atomic_ref::fetch_add", 400);
#endif
	sum_row<add_u32>(TABLE_OURS, "cua_atomic_add_u32", 400);
	sum_row<add_u32_warp>(TABLE_OURS, "cua_atomic_add_warp_u32", 400);
	sum_row<add_u32_block>(TABLE_OURS, "cua_atomic_add_block_u32", 400);
	table_end(&table);

	table_begin(&table, "one address: f32 add by CAS");
	sum_row<native_f32>(TABLE_CEILING, "ceiling: native add, a lane each", 400);
	sum_row<textbook_add_f32>(TABLE_PEER, "textbook", 1);
	sum_row<cas_f32>(TABLE_OURS, "cua_atomic_fetch_add_cas_f32", 1);
	sum_row<cas_f32_warp>(TABLE_OURS, "cua_atomic_fetch_add_cas_warp_f32", 64);
	sum_row<cas_f32_block>(TABLE_OURS, "cua_atomic_add_cas_block_f32", 400);
	table_end(&table);

	table_begin(&table, "one address: f64 add by CAS");
	sum_row<native_f64>(TABLE_CEILING, "ceiling: native add, a lane each", 400);
	sum_row<textbook_add_f64>(TABLE_PEER, "textbook", 1);
	sum_row<cas_f64>(TABLE_OURS, "cua_atomic_fetch_add_cas_f64", 1);
	sum_row<cas_f64_warp>(TABLE_OURS, "cua_atomic_fetch_add_cas_warp_f64", 64);
	sum_row<cas_f64_block>(TABLE_OURS, "cua_atomic_add_cas_block_f64", 400);
	table_end(&table);

	table_begin(&table, "one address: f64 mul");
	sum_row<native_f64>(TABLE_CEILING, "ceiling: native add, a lane each", 400);
	product_row<textbook_mul_f64>(TABLE_PEER, "textbook", 1);
	product_row<mul_f64>(TABLE_OURS, "cua_atomic_fetch_mul_f64", 1);
	product_row<mul_f64_warp>(TABLE_OURS, "cua_atomic_fetch_mul_warp_f64", 64);
	product_row<mul_f64_block>(TABLE_OURS, "cua_atomic_mul_block_f64", 400);
	table_end(&table);

	table_begin(&table, "one address: user, u64");
	sum_row<native_u64>(TABLE_CEILING, "ceiling: native add, a lane each", 400);
	mod_row<textbook_mod>(TABLE_PEER, "textbook", 1);
	mod_row<mod>(TABLE_OURS, "CUA_DEFINE_ATOMIC_CHANGING_WARP, plain", 1);
	mod_row<mod_warp>(TABLE_OURS, "CUA_DEFINE_ATOMIC_CHANGING_WARP, warp", 64);
	mod_row<mod_block>(TABLE_OURS, "CUA_DEFINE_ATOMIC_CHANGING_WARP, block", 400);
	table_end(&table);

	table_begin(&table, "one address: u32 max");
	sum_row<native_u32>(TABLE_CEILING, "ceiling: native add, a lane each", 400);
	move_row<cuda_max_u32>(TABLE_PEER, "atomicMax", 400);
	move_row<max_u32>(TABLE_OURS, "cua_atomic_max_u32", 400);
	move_row<max_u32_warp>(TABLE_OURS, "cua_atomic_max_warp_u32", 400);
	move_row<max_u32_block>(TABLE_OURS, "cua_atomic_max_block_u32", 400);
	table_end(&table);

	table_begin(&table, "one address: u32 min");
	sum_row<native_u32>(TABLE_CEILING, "ceiling: native add, a lane each", 400);
	move_row<cuda_min_u32, true>(TABLE_PEER, "atomicMin", 400);
	move_row<min_u32, true>(TABLE_OURS, "cua_atomic_min_u32", 400);
	move_row<min_u32_warp, true>(TABLE_OURS, "cua_atomic_min_warp_u32", 400);
	move_row<min_u32_block, true>(TABLE_OURS, "cua_atomic_min_block_u32", 400);
	table_end(&table);

	table_begin(&table, "one address: f32 max");
	sum_row<native_f32>(TABLE_CEILING, "ceiling: native add, a lane each", 400);
	move_row<textbook_max_f32>(TABLE_PEER, "textbook", 1);
	move_row<max_f32>(TABLE_OURS, "cua_atomic_max_f32", 16);
	move_row<max_f32_warp>(TABLE_OURS, "cua_atomic_max_warp_f32", 16);
	move_row<max_f32_block>(TABLE_OURS, "cua_atomic_max_block_f32", 64);
	table_end(&table);
}

static void spread_case(const char *where, const char *what)
{
	char name[28];

	snprintf(name, sizeof(name), "%s: %s", where, what);
	table_begin(&table, name);
}

static void spread(const char *where, uint64_t bytes)
{
	spread_case(where, "f32 add");
	spread_row<native_f32>(TABLE_CEILING, "ceiling: a lane each, global", bytes);
	spread_row<cuda_add_f32>(TABLE_PEER, "atomicAdd", bytes);
	spread_row<add_f32>(TABLE_OURS, "cua_atomic_add_f32", bytes);
	spread_row<add_global_f32>(TABLE_OURS, "cua_atomic_add_explicit_f32, global", bytes);
	spread_row<add_f32_warp>(TABLE_OURS, "cua_atomic_add_warp_f32", bytes);
	table_end(&table);

	spread_case(where, "u32 add");
	spread_row<native_u32>(TABLE_CEILING, "ceiling: a lane each, global", bytes);
	spread_row<cuda_add_u32>(TABLE_PEER, "atomicAdd", bytes);
	spread_row<add_u32>(TABLE_OURS, "cua_atomic_add_u32", bytes);
	spread_row<add_global_u32>(TABLE_OURS, "cua_atomic_add_explicit_u32, global", bytes);
	spread_row<add_u32_warp>(TABLE_OURS, "cua_atomic_add_warp_u32", bytes);
	table_end(&table);

	spread_case(where, "f32 add by CAS");
	spread_row<native_f32>(TABLE_CEILING, "ceiling: native add, a lane each", bytes);
	spread_row<textbook_add_f32>(TABLE_PEER, "textbook", bytes);
	spread_row<cas_f32>(TABLE_OURS, "cua_atomic_fetch_add_cas_f32", bytes);
	spread_row<cas_f32_warp>(TABLE_OURS, "cua_atomic_fetch_add_cas_warp_f32", bytes);
	table_end(&table);

	spread_case(where, "f64 mul");
	spread_row<native_f64>(TABLE_CEILING, "ceiling: native add, a lane each", bytes);
	spread_row<textbook_mul_f64>(TABLE_PEER, "textbook", bytes, true);
	spread_row<mul_f64>(TABLE_OURS, "cua_atomic_fetch_mul_f64", bytes, true);
	spread_row<mul_f64_warp>(TABLE_OURS, "cua_atomic_fetch_mul_warp_f64", bytes, true);
	table_end(&table);
}

static void contention(bool quick, unsigned processors)
{
	struct contention c = {&table, memory, sum, quick ? 8 : processors * 2, quick};

	bench_env()->row_seconds = 0.2;
	printf("by contention: %u blocks of %u threads, random addresses\n", c.blocks,
	       CONTENTION_BLOCK);
	contention_cases<true>(&c);
	contention_cases<false>(&c);
}

int main(int argc, char **argv)
{
	struct options o = parse_options(argc, argv, "atomics", false);
	cudaDeviceProp device = print_head("atomics");

	blocks = o.quick ? 8 : (unsigned)device.multiProcessorCount;
	need(!cudaMalloc(&memory, (size_t)1 << 30) && !cudaMalloc(&sum, sizeof(*sum)), "memory");
	printf("one address: %u blocks of %u threads; spread: %u blocks, random addresses in 4 KiB, 32 MiB "
	       "(inside a larger L2) and 1 GiB\n",
	       blocks, THREADS, blocks * 8);
	table_columns("M/s", "");
	one_address();
	spread("4 KiB", 4096);
	spread("32 MiB", (uint64_t)32 << 20);
	if (!o.quick)
		spread("1 GiB", (uint64_t)1 << 30);
	if (!bench_env()->summarized)
		contention(o.quick, (unsigned)device.multiProcessorCount);
	cudaFree(memory);
	cudaFree(sum);
	return 0;
}
