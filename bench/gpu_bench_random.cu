/* SPDX-License-Identifier: MIT */
/*
 * bench-random random|latency: random accesses by the size of the memory that they touch.
 *
 * random    rates of independent operations of all threads at random elements
 * latency   the time of an operation of one thread that depends on the operation before it
 *
 * A footprint is a power of 2 of bytes, from 16 KiB to most of the memory: its steps are the caches
 * and the levels of address translation.
 *
 * Source of the pointer chase: Saavedra and Smith, Measuring cache and TLB performance (1995). The
 * successor of node i is (FACTOR * i + STEP) mod 2^k, which has the full period: Knuth, The Art of
 * Computer Programming, volume 2, section 3.2.1.2, theorem A.
 */
#include "gpu_bench_memory.h"

/* PTX has a compare-and-swap of 128 bits since CUDA 12.4. */
#define HAVE_CAS_128 (CUDART_VERSION >= 12040)
#define LEAST_FOOTPRINT ((uint64_t)16 << 10)
#define FOOTPRINTS_MOST 32

static char *memory;
static uint64_t footprints[FOOTPRINTS_MOST];
static unsigned n_footprints;
static unsigned long long *result;

/* Powers of 4, and the largest power of 2 that fits. */
static void allocate(const struct options *o)
{
	size_t available, total;
	uint64_t most = LEAST_FOOTPRINT, limit;

	need(!cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
	limit = bench_size(o->quick ? (uint64_t)1 << 20 : available / 20 * 19);
	limit = limit < available / 20 * 19 ? limit : available / 20 * 19;
	while (most * 2 <= limit)
		most *= 2;
	for (uint64_t bytes = LEAST_FOOTPRINT; bytes < most; bytes *= 4)
		footprints[n_footprints++] = bytes;
	footprints[n_footprints++] = most;
	memory = (char *)device_memory(most);
	result = (unsigned long long *)device_memory(2 * sizeof(*result));
}

static void release(void)
{
	cudaFree(memory);
	cudaFree(result);
}

/* Loads find the least footprint in the L1; other operations are in the L2. */
static const char *footprint_note(uint64_t bytes, bool loads)
{
	return loads && bytes == LEAST_FOOTPRINT ? "in the L1"
	       : bytes * 10 <= l2_bytes * 8      ? "in the L2"
	       : bytes <= 2 * l2_bytes           ? "around the L2"
						 : "";
}

/* ---- random accesses ---- */

static __device__ __forceinline__ uint64_t random_word(uint64_t i)
{
	i *= 0x9e3779b97f4a7c15u;
	i ^= i >> 32;
	return i * 0xd6e8feb86659fd93u >> 16;
}

/* Content of element i. */
static __device__ __forceinline__ uint64_t content(uint64_t i)
{
	return i * 0xbf58476d1ce4e5b9u + 1;
}

struct load_8 {
	typedef uint64_t type;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
		return x[i];
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t i)
	{
		return content(i);
	}
};

struct load_16 {
	typedef ulonglong2 type;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
		const ulonglong2 v = x[i];

		return v.x + v.y;
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t i)
	{
		return content(2 * i) + content(2 * i + 1);
	}
};

/* Four adjacent lanes read the 16-byte words of 64 bytes. */
struct load_64 {
	typedef ulonglong2 type;
	static const unsigned lanes = 4;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
		return load_16::apply(x, i * 4 + threadIdx.x % 4);
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t i)
	{
		return load_16::wanted(i * 4 + threadIdx.x % 4);
	}
};

struct store_8 {
	typedef uint64_t type;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
		x[i] = ~content(i);
		return 1;
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t)
	{
		return 1;
	}
};

/* A compare-and-swap succeeds, and its result is an equal value, so that the content remains. */
struct cas_32 {
	typedef uint32_t type;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
		const uint32_t v = (uint32_t)(content(i / 2) >> (i % 2 * 32));

		return atomicCAS(x + i, v, v) == v;
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t)
	{
		return 1;
	}
};

struct cas_64 {
	typedef uint64_t type;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
		const unsigned long long v = content(i);

		return atomicCAS((unsigned long long *)x + i, v, v) == v;
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t)
	{
		return 1;
	}
};

struct cas_128 {
	typedef ulonglong2 type;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
#if __CUDA_ARCH__ >= 900 && HAVE_CAS_128
		const uint64_t low = content(2 * i), high = content(2 * i + 1);
		uint64_t was_low, was_high;

		asm volatile("{\n\t.reg .b128 v, was;\n\t"
			     "mov.b128 v, {%3, %4};\n\t"
			     "atom.relaxed.gpu.global.cas.b128 was, [%2], v, v;\n\t"
			     "mov.b128 {%0, %1}, was;\n\t}"
			     : "=l"(was_low), "=l"(was_high)
			     : "l"(x + i), "l"(low), "l"(high)
			     : "memory");
		return was_low == low && was_high == high;
#else
		return 0;
#endif
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t)
	{
		return 1;
	}
};

/* The content of an element counts its additions: see add_rows_are_right. */
struct add_32 {
	typedef uint32_t type;
	static __device__ __forceinline__ uint64_t apply(type *x, uint64_t i)
	{
		(void)atomicAdd(x + i, 1u);
		return 1;
	}
	static __device__ __forceinline__ uint64_t wanted(uint64_t)
	{
		return 1;
	}
};

/* Lanes that share a random number. */
template <class OP> struct lanes_of {
	static const unsigned value = 1;
};
template <> struct lanes_of<load_64> {
	static const unsigned value = 4;
};

#define THREADS 256
#define AT_ONCE 4

/* Each thread makes `each` operations, a multiple of AT_ONCE, at elements of a power of 2. */
template <class OP>
static __global__ void __launch_bounds__(THREADS)
	random_kernel(typename OP::type *x, uint64_t n, unsigned each, uint64_t seed,
		      unsigned long long *sum)
{
	const uint64_t thread = (blockIdx.x * THREADS + threadIdx.x) / lanes_of<OP>::value;
	uint64_t i = seed + thread * each, total = 0;

	for (unsigned k = 0; k < each; k += AT_ONCE, i += AT_ONCE) {
		uint64_t v[AT_ONCE];

#pragma unroll
		for (unsigned j = 0; j < AT_ONCE; j++)
			v[j] = OP::apply(x, random_word(i + j) & (n - 1));
#pragma unroll
		for (unsigned j = 0; j < AT_ONCE; j++)
			total += v[j];
	}
	for (int lanes = 16; lanes; lanes /= 2)
		total += __shfl_down_sync(~0u, total, lanes);
	if (threadIdx.x % 32 == 0)
		atomicAdd(sum, (unsigned long long)total);
}

/* The sum that random_kernel must find. */
template <class OP>
static __global__ void __launch_bounds__(THREADS)
	wanted_kernel(uint64_t n, unsigned each, uint64_t seed, unsigned long long *sum)
{
	const uint64_t thread = (blockIdx.x * THREADS + threadIdx.x) / lanes_of<OP>::value;
	uint64_t i = seed + thread * each, total = 0;

	for (unsigned k = 0; k < each; k++)
		total += OP::wanted(random_word(i + k) & (n - 1));
	atomicAdd(sum, (unsigned long long)total);
}

static __global__ void set_content(uint64_t *x, uint64_t n, bool zero)
{
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		x[i] = zero ? 0 : content(i);
}

/* Adds the 32-bit words of an array, modulo 2^64. */
static __global__ void sum_words(const uint32_t *x, uint64_t n, unsigned long long *sum)
{
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
	unsigned long long total = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		total += x[i];
	atomicAdd(sum, total);
}

#define WRONG_STORE ((uint64_t)1 << 48)

/* Counts the elements with a stored content; adds WRONG_STORE for each with another content. */
static __global__ void count_stored(const uint64_t *x, uint64_t n, unsigned long long *sum)
{
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
	unsigned long long stored = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		stored += x[i] == ~content(i) ? 1 : x[i] == content(i) ? 0 : WRONG_STORE;
	atomicAdd(sum, stored);
}

template <typename Launch> static uint64_t total_of(Launch launch)
{
	unsigned long long total;

	need(!cudaMemset(result, 0, sizeof(*result)), "cudaMemset");
	launch();
	need(!cudaMemcpy(&total, result, sizeof(total), cudaMemcpyDeviceToHost), "a check");
	return total;
}

/* The launch of the rows of an operation. */
static unsigned random_blocks, random_each;

template <class OP>
static void random_row(const char *way, uint64_t bytes, bool stores, bool counts)
{
	typedef typename OP::type T;
	const uint64_t n = bytes / sizeof(T) / lanes_of<OP>::value;
	const unsigned blocks = random_blocks, each = random_each;
	const double operations = (double)blocks * THREADS * each / lanes_of<OP>::value;
	uint64_t seed = 0, calls = 0;
	const bool loads = std::is_same<OP, load_8>::value || std::is_same<OP, load_16>::value ||
			   std::is_same<OP, load_64>::value;
	struct figure f;

	set_content<<<processors * 8, 256>>>((uint64_t *)memory, bytes / 8, counts);
	f = measure(
		operations * 1e-3,
		[&] {
			seed += 0x100000001u;
			calls++;
			need(!cudaMemsetAsync(result, 0, sizeof(*result)), "cudaMemset");
		},
		[&] { random_kernel<OP><<<blocks, THREADS>>>((T *)memory, n, each, seed, result); },
		[] {});
	{
		unsigned long long got;

		need(!cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost), way);
		need(got == total_of([&] {
			     wanted_kernel<OP><<<blocks, THREADS>>>(n, each, seed, result);
		     }),
		     way);
	}
	if (stores) {
		const uint64_t stored = total_of([&] {
			count_stored<<<processors * 8, 256>>>((uint64_t *)memory, bytes / 8,
							      result);
		});

		need(stored > 0 && stored < WRONG_STORE, way);
	}
	if (counts)
		need(total_of([&] {
			     sum_words<<<processors * 8, 256>>>((uint32_t *)memory, n, result);
		     }) == (uint64_t)operations * calls,
		     way);
	table_add_note(&table, TABLE_OURS, way, f, footprint_note(bytes, loads));
}

template <class OP> static void random_case(const char *name, struct figure ceiling)
{
	const bool stores = std::is_same<OP, store_8>::value;
	const bool counts = std::is_same<OP, add_32>::value;
	char way[24];

	table_begin(&table, name);
	table_add(&table, TABLE_CEILING, "ceiling: reading, 32 bytes each", ceiling);
	for (unsigned k = 0; k < n_footprints; k++) {
		bench_bytes(way, footprints[k]);
		if (table_wants(name, way))
			random_row<OP>(way, footprints[k], stores, counts);
	}
	table_end(&table);
}

/* The rate of reading 32-byte sectors one after another, in G/s. */
static struct figure sector_ceiling(void)
{
	const uint64_t bytes = footprints[n_footprints - 1] < ((uint64_t)1 << 30)
				       ? footprints[n_footprints - 1]
				       : (uint64_t)1 << 30;
	uint32_t *sums = (uint32_t *)device_memory((size_t)processors * 4096 * sizeof(*sums));
	struct figure f;

	fill_random<<<processors * 8, 256>>>((uint32_t *)memory, bytes / 4, 1);
	f = best_read((const uint4 *)memory, bytes / 16, sums);
	cudaFree(sums);
	for (int i = 0; i < f.runs; i++)
		f.samples[i] /= 32;
	{
		const enum stats_reason reason = f.reason;
		double samples[STATS_SAMPLES];

		memcpy(samples, f.samples, sizeof(samples));
		f = table_figure(samples, f.runs);
		f.reason = reason;
	}
	return f;
}

/* Whether the kernel in use was compiled for an architecture that has it. */
static bool has_cas_128(void)
{
	cudaFuncAttributes a;

	need(!cudaFuncGetAttributes(&a, random_kernel<cas_128>), "attributes");
	return HAVE_CAS_128 && a.ptxVersion >= 90;
}

static void bench_random(const struct options *o)
{
	struct figure ceiling;

	allocate(o);
	random_blocks = o->quick ? 8 : processors * 8;
	random_each = o->quick ? 64 : 256;
	bench_plan(8 * (n_footprints + 1));
	printf("%u threads, %u operations each, %d at a time\n", random_blocks * THREADS,
	       random_each, AT_ONCE);
	table_columns("G/s", "");
	ceiling = sector_ceiling();
	random_case<load_8>("load 8 bytes", ceiling);
	random_case<load_16>("load 16 bytes", ceiling);
	random_case<load_64>("load 64 bytes, 4 lanes", ceiling);
	random_case<store_8>("store 8 bytes", ceiling);
	random_case<add_32>("add 32 bits", ceiling);
	random_case<cas_32>("CAS 32 bits", ceiling);
	random_case<cas_64>("CAS 64 bits", ceiling);
	if (has_cas_128()) {
		random_case<cas_128>("CAS 128 bits", ceiling);
	} else {
		table_begin(&table, "CAS 128 bits");
		for (unsigned k = 0; k <= n_footprints; k++)
			table_skip();
		table_end(&table);
	}
	release();
}

/* ---- latency of loads ---- */

#define NODE_BYTES 128
/* From the address of a sample to that of the next. */
#define ADDRESS_STEP 4352
#define FACTOR 0x5851f42d4c957f2du /* modulo 4 it is 1 */
#define STEP 0x14057b7ef767814fu   /* odd */

struct node {
	uint64_t next;
	uint64_t rest[NODE_BYTES / 8 - 1];
};

static __global__ void link_nodes(struct node *nodes, uint64_t n)
{
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		nodes[i].next = (FACTOR * i + STEP) & (n - 1);
}

/* Reads all nodes, so that the L2 holds as many of them as after a long chase. */
static __global__ void touch_nodes(const struct node *nodes, uint64_t n, unsigned long long *sink)
{
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
	uint64_t sum = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		sum += nodes[i].next;
	if (sum == 1)
		*sink = sum;
}

struct chase {
	uint64_t end; /* node */
	uint64_t cycles, ns;
};

static __device__ __forceinline__ uint64_t global_ns(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

/* A thread follows `warm` links, and then times `hops` links. */
static __global__ void chase_kernel(const struct node *nodes, uint64_t at, unsigned warm,
				    unsigned hops, struct chase *c)
{
	uint64_t ns, cycles;

	for (unsigned i = 0; i < warm; i++)
		at = nodes[at].next;
	/* the clock is read after the last load has returned */
	asm volatile("" ::"l"(at) : "memory");
	if (at == ~(uint64_t)0)
		return;
	ns = global_ns();
	cycles = (uint64_t)clock64();
	for (unsigned i = 0; i < hops; i++)
		at = nodes[at].next;
	if (at == ~(uint64_t)0)
		return;
	c->cycles = (uint64_t)clock64() - cycles;
	c->ns = global_ns() - ns;
	c->end = at;
}

/* Node of the chase after `steps` links: the composition of linear maps, by squaring. */
static uint64_t node_after(uint64_t at, uint64_t steps, uint64_t mask)
{
	uint64_t factor = FACTOR, step = STEP;

	for (; steps; steps >>= 1) {
		if (steps & 1)
			at = at * factor + step;
		step *= factor + 1;
		factor *= factor;
	}
	return at & mask;
}

/* Adds a row of times, in ns, with the cycles as the note. */
static struct figure add_times(enum table_kind kind, const char *way, struct stats *s,
			       double cycles)
{
	struct figure f = table_stats(s);
	char note[32];

	snprintf(note, sizeof(note), "%.0f cycles", cycles);
	table_add_note(&table, kind, way, f, note);
	return f;
}

static void chase_row(enum table_kind kind, const char *way, uint64_t bytes, unsigned hops,
		      struct chase *c)
{
	const struct node *nodes = (const struct node *)memory;
	const uint64_t n = bytes / NODE_BYTES;
	const unsigned warm = n < 4096 ? (unsigned)n : 4096;
	uint64_t at = 1;
	struct chase got;
	struct stats s;

	if (!table_wants(table.name, way))
		return;
	link_nodes<<<processors * 8, 256>>>((struct node *)memory, n);
	stats_begin(&s, bench_stats_plan());
	do {
		at = (at * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u) >> 3 & (n - 1);
		touch_nodes<<<processors * 8, 256>>>(nodes, n, result);
		chase_kernel<<<1, 1>>>(nodes, at, warm, hops, c);
		need(!cudaMemcpy(&got, c, sizeof(got), cudaMemcpyDeviceToHost), way);
		need(got.end == node_after(at, (uint64_t)warm + hops, n - 1), way);
	} while (stats_add(&s, (double)got.ns / hops, stats_now()));
	add_times(kind, way, &s, (double)got.cycles / hops);
}

/* ---- latency of operations ---- */

enum scope { CTA, GPU, SYS, SCOPES };
static const char *const scope_names[] = {"cta", "gpu", "sys"};

/* An instruction in each scope: `before`, the scope, `after`, and the operands from ":" on. */
#define IN_SCOPE(before, after, ...)                                                               \
	do {                                                                                       \
		if (S == CTA)                                                                      \
			asm volatile(before ".cta" after __VA_ARGS__);                             \
		else if (S == GPU)                                                                 \
			asm volatile(before ".gpu" after __VA_ARGS__);                             \
		else                                                                               \
			asm volatile(before ".sys" after __VA_ARGS__);                             \
	} while (0)

/*
 * apply(p, v): an operation that depends on the result v of the last one. Both *p and v begin as 0.
 * last(n) is *p after n operations; most operations count, and loads change nothing.
 */
struct counted {
	static uint64_t last(uint64_t n)
	{
		return n;
	}
};
struct unchanged {
	static uint64_t last(uint64_t)
	{
		return 0;
	}
};

struct load_relaxed : unchanged {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		/* v remains 0 */
		IN_SCOPE("ld.relaxed", ".global.u64 %0, [%1];", : "=l"(v) : "l"(p + v) : "memory");
	}
};

struct load_acquire : unchanged {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		IN_SCOPE("ld.acquire", ".global.u64 %0, [%1];", : "=l"(v) : "l"(p + v) : "memory");
	}
};

/* A store has no result; a store with release waits for the store before it. */
struct store_release : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		v++;
		IN_SCOPE("st.release", ".global.u64 [%0], %1;", ::"l"(p), "l"(v) : "memory");
	}
};

/* The addend is 1, but only the last result shows it. */
struct add_relaxed : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		IN_SCOPE("atom.add.relaxed", ".global.u64 %0, [%1], %2;",
			 : "=l"(v)
			 : "l"(p), "l"((v >> 63) + 1)
			 : "memory");
	}
};

struct add_acq_rel : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		IN_SCOPE("atom.add.acq_rel", ".global.u64 %0, [%1], %2;",
			 : "=l"(v)
			 : "l"(p), "l"((v >> 63) + 1)
			 : "memory");
	}
};

struct exchange_acq_rel {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		IN_SCOPE("atom.exch.acq_rel", ".global.b64 %0, [%1], %2;",
			 : "=l"(v)
			 : "l"(p), "l"(v + 1)
			 : "memory");
	}
	static uint64_t last(uint64_t n)
	{
		return (n + 1) / 2;
	}
};

/* All compare-and-swaps succeed. */
struct cas_32_relaxed : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		uint32_t was;

		IN_SCOPE("atom.cas.relaxed", ".global.b32 %0, [%1], %2, %3;",
			 : "=r"(was)
			 : "l"(p), "r"((uint32_t)v), "r"((uint32_t)v + 1)
			 : "memory");
		v = was + 1;
	}
};

struct cas_32_acq_rel : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		uint32_t was;

		IN_SCOPE("atom.cas.acq_rel", ".global.b32 %0, [%1], %2, %3;",
			 : "=r"(was)
			 : "l"(p), "r"((uint32_t)v), "r"((uint32_t)v + 1)
			 : "memory");
		v = was + 1;
	}
};

struct cas_64_acq_rel : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		uint64_t was;

		IN_SCOPE("atom.cas.acq_rel", ".global.b64 %0, [%1], %2, %3;",
			 : "=l"(was)
			 : "l"(p), "l"(v), "l"(v + 1)
			 : "memory");
		v = was + 1;
	}
};

struct cas_128_acq_rel : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
#if __CUDA_ARCH__ >= 900 && HAVE_CAS_128
		uint64_t was;

		IN_SCOPE("{\n\t.reg .b128 old, new, was;\n\t.reg .b64 zero, high;\n\t"
			 "mov.b64 zero, 0;\n\tmov.b128 old, {%2, zero};\n\t"
			 "mov.b128 new, {%3, zero};\n\tatom.cas.acq_rel",
			 ".global.b128 was, [%1], old, new;\n\tmov.b128 {%0, high}, was;\n\t}",
			 : "=l"(was)
			 : "l"(p), "l"(v), "l"(v + 1)
			 : "memory");
		v = was + 1;
#endif
	}
};

/* A fence after a store, because a fence without an access before it has nothing to order. */
struct fence_acq_rel : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		v++;
		asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
		IN_SCOPE("fence.acq_rel", ";", ::: "memory");
	}
};

struct fence_sc : counted {
	template <int S> static __device__ __forceinline__ void apply(uint64_t *p, uint64_t &v)
	{
		v++;
		asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
		IN_SCOPE("fence.sc", ";", ::: "memory");
	}
};

struct times {
	uint64_t cycles, ns, last;
};

template <class OP, int S>
static __global__ void operations_kernel(uint64_t *p, unsigned n, struct times *t)
{
	uint64_t v = 0, ns, cycles;

	for (unsigned i = 0; i < 16; i++)
		OP::template apply<S>(p, v);
	ns = global_ns();
	cycles = (uint64_t)clock64();
#pragma unroll 4
	for (unsigned i = 0; i < n; i++)
		OP::template apply<S>(p, v);
	/* the clock is read after the last result */
	if (v == ~(uint64_t)0)
		return;
	t->cycles = (uint64_t)clock64() - cycles;
	t->ns = global_ns() - ns;
	t->last = *(volatile uint64_t *)p;
}

/* Shared memory: the add and the compare-and-swap of a block. */
template <bool CAS> static __global__ void shared_kernel(unsigned n, struct times *t)
{
	__shared__ unsigned word;
	unsigned v = 0;
	uint64_t ns, cycles;

	word = 0;
	ns = global_ns();
	cycles = (uint64_t)clock64();
	for (unsigned i = 0; i < n; i++)
		v = CAS ? atomicCAS_block(&word, v, v + 1) + 1
			: atomicAdd_block(&word, (v >> 31) + 1);
	if (v == ~0u)
		return;
	t->cycles = (uint64_t)clock64() - cycles;
	t->ns = global_ns() - ns;
	t->last = word;
}

template <typename Launch>
static struct figure times_row(enum table_kind kind, const char *way, unsigned n, uint64_t last,
			       struct times *t, Launch launch)
{
	const uint64_t most = footprints[n_footprints - 1];
	uint64_t at = 0;
	struct times got;
	struct stats s;

	if (!table_wants(table.name, way))
		return {};
	stats_begin(&s, bench_stats_plan());
	do {
		/* the time depends on the part of the L2 that has the address */
		uint64_t *p = (uint64_t *)(memory + at);

		at = (at + ADDRESS_STEP) % most;
		need(!cudaMemset(p, 0, 256), "cudaMemset");
		launch(p);
		need(!cudaMemcpy(&got, t, sizeof(got), cudaMemcpyDeviceToHost), way);
		need(got.last == last, way);
	} while (stats_add(&s, (double)got.ns / n, stats_now()));
	return add_times(kind, way, &s, (double)got.cycles / n);
}

template <class OP, int S> static void scope_row(const char *name, unsigned n, struct times *t)
{
	char way[TABLE_NAME];

	snprintf(way, sizeof(way), "%s, %s", name, scope_names[S]);
	times_row(TABLE_OURS, way, n, OP::last(n + 16), t,
		  [=](uint64_t *p) { operations_kernel<OP, S><<<1, 1>>>(p, n, t); });
}

template <class OP> static void scope_rows(const char *name, unsigned n, struct times *t)
{
	scope_row<OP, CTA>(name, n, t);
	scope_row<OP, GPU>(name, n, t);
	scope_row<OP, SYS>(name, n, t);
}

static void bench_latency(const struct options *o)
{
	const unsigned hops = o->quick ? 256 : 8192;
	struct figure ceiling;
	struct times *t;
	struct chase *c;
	char way[24];
	bool wide = has_cas_128();

	allocate(o);
	bench_plan(1 + n_footprints + 3 * 9 + (wide ? 3 : 0) + 3 + 7);
	t = (struct times *)device_memory(sizeof(*t));
	c = (struct chase *)device_memory(sizeof(*c));
	const auto load = [=](uint64_t *p) {
		operations_kernel<load_relaxed, GPU><<<1, 1>>>(p, hops, t);
	};
	table_columns("ns", "");

	table_begin(&table, "load by footprint");
	chase_row(TABLE_CEILING, "ceiling: 4 KiB", 4096, hops, c);
	for (unsigned k = 0; k < n_footprints; k++)
		chase_row(TABLE_OURS, bench_bytes(way, footprints[k]), footprints[k], hops, c);
	table_end(&table);

	table_begin(&table, "atomics");
	ceiling = times_row(TABLE_CEILING, "ceiling: a load from the L2", hops, 0, t, load);
	times_row(TABLE_OURS, "add, shared", hops, hops, t,
		  [=](uint64_t *) { shared_kernel<false><<<1, 1>>>(hops, t); });
	times_row(TABLE_OURS, "CAS 32 bits, shared", hops, hops, t,
		  [=](uint64_t *) { shared_kernel<true><<<1, 1>>>(hops, t); });
	scope_rows<load_relaxed>("load, relaxed", hops, t);
	scope_rows<load_acquire>("load, acquire", hops, t);
	scope_rows<store_release>("store, release", hops, t);
	scope_rows<add_relaxed>("add, relaxed", hops, t);
	scope_rows<add_acq_rel>("add, acq_rel", hops, t);
	scope_rows<exchange_acq_rel>("exchange, acq_rel", hops, t);
	scope_rows<cas_32_relaxed>("CAS 32 bits, relaxed", hops, t);
	scope_rows<cas_32_acq_rel>("CAS 32 bits, acq_rel", hops, t);
	scope_rows<cas_64_acq_rel>("CAS 64 bits, acq_rel", hops, t);
	if (wide)
		scope_rows<cas_128_acq_rel>("CAS 128 bits, acq_rel", hops, t);
	table_end(&table);

	table_begin(&table, "fences");
	table_add(&table, TABLE_CEILING, "ceiling: a load from the L2", ceiling);
	scope_rows<fence_acq_rel>("acq_rel", hops, t);
	scope_rows<fence_sc>("sc", hops, t);
	table_end(&table);
	cudaFree(t);
	cudaFree(c);
	release();
}

int main(int argc, char **argv)
{
	static const struct memory_bench benches[] = {{"random", bench_random},
						      {"latency", bench_latency}};

	return run_memory_bench(argc, argv, benches, sizeof(benches) / sizeof(benches[0]));
}
