/* SPDX-License-Identifier: MIT */
/*
 * Histograms on a GPU. Elements are read 16 bytes at a time, two of them in flight; the few before
 * the first and behind the last aligned 16 bytes are taken one by one.
 *
 * Up to COPIES_BINS bins each lane has a column of private bins to itself, so that the lanes of a
 * warp never meet in a bank of shared memory, whatever the data; above, the block shares one set of
 * bins.
 */
#include "config.h"

#include "../lib/histogram.h"
#include "launch.h"

#define COPIES 32u
#define COPIES_BINS 256u
#define BLOCK 512u        /* private bins in the shared memory that every block may have */
#define LARGE_BLOCK 1024u /* more of it, so that few blocks fit a multiprocessor */
#define GLOBAL_BLOCK 256u
#define LOADS 2u
#define PLAIN_SHARED_BYTES ((size_t)48 << 10)

/* A private bin has 32 bits: a block counts 2^31 elements, and a few, between two flushes. */
#define ROUNDS_A_FLUSH (((uint64_t)1 << 31) / (LARGE_BLOCK * LOADS * 16))

/* ---- bin rules ---- */

struct byte_rule {
	typedef uint8_t element;

	static byte_rule of(const struct cua__histogram *)
	{
		return byte_rule();
	}
	__device__ __forceinline__ uint32_t bin(uint8_t v) const
	{
		return v;
	}
};

struct letter_rule {
	typedef uint8_t element;

	static letter_rule of(const struct cua__histogram *)
	{
		return letter_rule();
	}
	__device__ __forceinline__ uint32_t bin(uint8_t v) const
	{
		return cua_histogram_letter_bin(v);
	}
};

template <typename T> struct integer_rule {
	typedef T element;
	struct cua_histogram_range range;

	static integer_rule of(const struct cua__histogram *h)
	{
		integer_rule rule;

		rule.range = h->range;
		return rule;
	}
	__device__ __forceinline__ uint32_t bin(T v) const
	{
		return cua_histogram_even_bin_i64(&range, v);
	}
};

template <typename T> struct float_rule {
	typedef T element;
	struct cua_histogram_range range;

	static float_rule of(const struct cua__histogram *h)
	{
		float_rule rule;

		rule.range = h->range;
		return rule;
	}
	__device__ __forceinline__ uint32_t bin(T v) const
	{
		return cua_histogram_even_bin_f64(&range, (double)v);
	}
};

/* ---- counters: where an element is counted ---- */

static __device__ __forceinline__ void add_global(uint64_t *counts, uint32_t bin, uint64_t n)
{
	if (bin != CUA_HISTOGRAM_NO_BIN)
		cua_port_add_u64(&counts[bin], n, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

struct global_counter {
	uint64_t *counts;

	__device__ __forceinline__ void count(uint32_t bin)
	{
		add_global(counts, bin, 1);
	}
};

/* A column a lane; all bins are private. */
struct column_counter {
	uint32_t *own;

	__device__ __forceinline__ void count(uint32_t bin)
	{
		if (bin != CUA_HISTOGRAM_NO_BIN)
			cua_histogram_block_add(own, bin * COPIES + threadIdx.x % COPIES);
	}
	__device__ __forceinline__ void finish()
	{
	}
};

struct private_counter {
	uint32_t *own;
	uint32_t own_bins;
	uint64_t *counts;

	__device__ __forceinline__ void count(uint32_t bin)
	{
		if (bin < own_bins)
			cua_histogram_block_add(own, bin);
		else
			add_global(counts, bin, 1);
	}
	__device__ __forceinline__ void finish()
	{
	}
};

/* Keeps a run of equal bins until another one comes. */
struct aggregating_counter {
	uint32_t *own;
	uint32_t own_bins;
	uint64_t *counts;
	uint32_t last, run;

	__device__ __forceinline__ void count(uint32_t bin)
	{
		if (bin != last) {
			finish();
			last = bin;
		}
		run++;
	}
	__device__ __forceinline__ void finish()
	{
		if (run && last < own_bins)
			cua_port_add_u32(&own[last], run, CUA_RELAXED, CUA_SCOPE_BLOCK,
					 CUA_SPACE_SHARED);
		else if (run)
			add_global(counts, last, run);
		run = 0;
	}
};

/* ---- traversal ---- */

/* 16 bytes of elements. */
template <typename T> struct __align__(16) vector
{
	T at[16 / sizeof(T)];
};

/* An array as single elements, aligned vectors, and single elements again. */
template <typename T> struct parts {
	static constexpr unsigned EACH = 16 / sizeof(T);
	const T *x;
	const vector<T> *vectors;
	uint64_t head, n_vectors, n;

	__device__ parts(const T *array, uint64_t count) : x(array), n(count)
	{
		head = (16 - (uintptr_t)array % 16) % 16 / sizeof(T);
		if (head > n)
			head = n;
		n_vectors = (n - head) / EACH;
		vectors = (const vector<T> *)(array + head);
	}

	/* Calls for all single elements: at most 30, so one for each of the grid's first threads. */
	template <typename Rule, typename Counter>
	__device__ __forceinline__ void singles(const Rule &rule, Counter &counter,
						uint64_t thread) const
	{
		const uint64_t behind = head + n_vectors * EACH;

		if (thread < head)
			counter.count(rule.bin(x[thread]));
		else if (thread - head < n - behind)
			counter.count(rule.bin(x[behind + (thread - head)]));
	}
};

template <typename Rule, typename Counter>
static __device__ __forceinline__ void count_vector(const Rule &rule, Counter &counter,
						    const vector<typename Rule::element> &v)
{
#pragma unroll
	for (unsigned k = 0; k < 16 / sizeof(typename Rule::element); k++)
		counter.count(rule.bin(v.at[k]));
}

/* Round number `round` of the grid: each thread takes LOADS vectors, a grid apart. */
template <typename Rule, typename Counter>
static __device__ __forceinline__ void
count_round(const Rule &rule, Counter &counter, const parts<typename Rule::element> &p,
	    uint64_t round, uint64_t thread, uint64_t threads)
{
	const uint64_t i = round * threads * LOADS + thread;

	if (i + threads < p.n_vectors) {
		const vector<typename Rule::element> a = p.vectors[i], b = p.vectors[i + threads];

		count_vector(rule, counter, a);
		count_vector(rule, counter, b);
	} else if (i < p.n_vectors) {
		count_vector(rule, counter, p.vectors[i]);
	}
}

static __device__ __forceinline__ uint64_t grid_thread()
{
	return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ uint64_t grid_threads()
{
	return (uint64_t)gridDim.x * blockDim.x;
}

/* How many rounds all vectors take: the same for every thread. */
static __device__ __forceinline__ uint64_t rounds_of(uint64_t n_vectors)
{
	const uint64_t each = grid_threads() * LOADS;

	return n_vectors / each + (n_vectors % each != 0);
}

/* ---- kernels ---- */

template <typename Rule>
static __global__ void __launch_bounds__(GLOBAL_BLOCK)
	blocked_kernel(Rule rule, uint64_t n, const typename Rule::element *x, uint64_t *counts)
{
	struct global_counter counter = {counts};
	const uint64_t thread = grid_thread(), threads = grid_threads();
	const uint64_t each = n / threads, more = n % threads;
	const uint64_t begin = each * thread + (thread < more ? thread : more);
	const uint64_t end = begin + each + (thread < more);

	for (uint64_t i = begin; i < end; i++)
		counter.count(rule.bin(x[i]));
}

template <typename Rule>
static __global__ void __launch_bounds__(GLOBAL_BLOCK)
	interleaved_kernel(Rule rule, uint64_t n, const typename Rule::element *x, uint64_t *counts)
{
	struct global_counter counter = {counts};
	const parts<typename Rule::element> p(x, n);
	const uint64_t rounds = rounds_of(p.n_vectors);

	p.singles(rule, counter, grid_thread());
	for (uint64_t round = 0; round < rounds; round++)
		count_round(rule, counter, p, round, grid_thread(), grid_threads());
}

/* The rounds of a block with private bins; flush(), by all threads, empties them. */
template <typename Rule, typename Counter, typename Flush>
static __device__ __forceinline__ void count_private(const Rule &rule, Counter &counter, uint64_t n,
						     const typename Rule::element *x, Flush flush)
{
	const parts<typename Rule::element> p(x, n);
	const uint64_t rounds = rounds_of(p.n_vectors);
	uint64_t round = 0;

	p.singles(rule, counter, grid_thread());
	do {
		const uint64_t stop =
			rounds - round > ROUNDS_A_FLUSH ? round + ROUNDS_A_FLUSH : rounds;

		for (; round < stop; round++)
			count_round(rule, counter, p, round, grid_thread(), grid_threads());
		counter.finish();
		flush();
	} while (round < rounds);
}

extern __shared__ uint32_t own_bins_memory[];

template <typename Rule>
static __global__ void __launch_bounds__(BLOCK)
	column_kernel(Rule rule, uint64_t n, const typename Rule::element *x, uint32_t bins,
		      uint64_t *counts)
{
	struct column_counter counter = {own_bins_memory};

	cua_histogram_block_init(own_bins_memory, bins * COPIES);
	count_private(rule, counter, n, x, [&]() {
		cua_port_sync_block();
		for (uint32_t bin = threadIdx.x; bin < bins; bin += blockDim.x) {
			uint64_t sum = 0;

			/* each lane begins in a column of its own: all banks at once */
			for (uint32_t k = 0; k < COPIES; k++) {
				uint32_t *own =
					&own_bins_memory[bin * COPIES + (threadIdx.x + k) % COPIES];

				sum += *own;
				*own = 0;
			}
			if (sum)
				add_global(counts, bin, sum);
		}
		cua_port_sync_block();
	});
}

template <typename Rule, typename Counter>
static __device__ __forceinline__ void count_block(const Rule &rule, Counter &counter, uint64_t n,
						   const typename Rule::element *x)
{
	cua_histogram_block_init(counter.own, counter.own_bins);
	count_private(rule, counter, n, x, [&]() {
		cua_histogram_block_flush(counter.own, counter.own_bins, counter.counts);
	});
}

template <typename Rule>
static __global__ void __launch_bounds__(LARGE_BLOCK)
	private_kernel(Rule rule, uint64_t n, const typename Rule::element *x, uint32_t own_bins,
		       uint64_t *counts)
{
	struct private_counter counter = {own_bins_memory, own_bins, counts};

	count_block(rule, counter, n, x);
}

template <typename Rule>
static __global__ void __launch_bounds__(LARGE_BLOCK)
	aggregated_kernel(Rule rule, uint64_t n, const typename Rule::element *x, uint32_t own_bins,
			  uint64_t *counts)
{
	struct aggregating_counter counter = {own_bins_memory, own_bins, counts,
					      CUA_HISTOGRAM_NO_BIN, 0};

	count_block(rule, counter, n, x);
}

/* ---- launching ---- */

template <typename Rule>
static enum cua_status run_private(struct cua_context *ctx, const struct cua__histogram *h,
				   uint64_t elements_a_thread)
{
	typedef typename Rule::element T;
	void (*kernel)(Rule, uint64_t, const T *, uint32_t, uint64_t *);
	size_t shared = (size_t)h->private_bins * sizeof(uint32_t);
	unsigned block = BLOCK, blocks_per_processor = 4;

	if (h->strategy == CUA_HISTOGRAM_AGGREGATED) {
		kernel = aggregated_kernel<Rule>;
	} else if (h->bins <= COPIES_BINS && h->private_bins == h->bins) {
		kernel = column_kernel<Rule>;
		shared *= COPIES;
	} else {
		kernel = private_kernel<Rule>;
	}
	if (shared > PLAIN_SHARED_BYTES) {
		enum cua_status status = cua__cuda_status(
			ctx, cudaFuncSetAttribute((const void *)kernel,
						  cudaFuncAttributeMaxDynamicSharedMemorySize,
						  (int)shared));

		if (status)
			return status;
		block = LARGE_BLOCK;
		blocks_per_processor = shared > ctx->shared_bytes / 2 ? 1 : 2;
	}
	return cua__launch(
		ctx, kernel, cua__grid(ctx, h->n, block * elements_a_thread, blocks_per_processor),
		block, shared, Rule::of(h), h->n, (const T *)h->x, h->private_bins, (uint64_t *)h->counts);
}

template <typename Rule>
static enum cua_status run(struct cua_context *ctx, const struct cua__histogram *h)
{
	typedef typename Rule::element T;
	const uint64_t elements_a_thread = LOADS * (16 / sizeof(T));

	if (h->private_bins)
		return run_private<Rule>(ctx, h, elements_a_thread);
	return cua__launch(ctx,
			   h->strategy == CUA_HISTOGRAM_BLOCKED ? blocked_kernel<Rule>
								: interleaved_kernel<Rule>,
			   cua__grid(ctx, h->n, GLOBAL_BLOCK * elements_a_thread, 8), GLOBAL_BLOCK,
			   0, Rule::of(h), h->n, (const T *)h->x,
			   (uint64_t *)h->counts);
}

static void cuda_plan(struct cua_context *ctx, struct cua__histogram *h)
{
	size_t most = ctx->shared_bytes / sizeof(uint32_t);

	if (h->strategy == CUA_HISTOGRAM_AUTO)
		h->strategy =
			h->bins <= most ? CUA_HISTOGRAM_PRIVATIZED : CUA_HISTOGRAM_INTERLEAVED;
	h->private_bins = 0;
	if (h->strategy == CUA_HISTOGRAM_PRIVATIZED || h->strategy == CUA_HISTOGRAM_AGGREGATED)
		h->private_bins = h->bins < most ? h->bins : (uint32_t)most;
	h->scratch_bytes = 0;
}

static enum cua_status cuda_run(struct cua_context *ctx, const struct cua__histogram *h)
{
	if (h->channels > 1 || h->width != h->n || h->outside || h->weight_type ||
	    h->count_type != CUA_U64 || h->rule == CUA__BIN_EDGES)
		return CUA_ERROR_UNSUPPORTED;
	if (h->rule == CUA__BIN_EVEN)
		switch (h->type) {
		case CUA_U8:
		case CUA_U16:
		case CUA_U32:
		case CUA_I32:
		case CUA_F32:
		case CUA_F64: break;
		default: return CUA_ERROR_UNSUPPORTED;
		}
	if (h->clear) {
		enum cua_status status = ctx->backend->runtime->set_bytes(
			ctx, h->counts, 0, h->bins * sizeof(uint64_t));

		if (status)
			return status;
	}
	if (h->rule == CUA__BIN_BYTE)
		return run<byte_rule>(ctx, h);
	if (h->rule == CUA__BIN_LETTER)
		return run<letter_rule>(ctx, h);
	switch (h->type) {
	case CUA_U8: return run<integer_rule<uint8_t>>(ctx, h);
	case CUA_U16: return run<integer_rule<uint16_t>>(ctx, h);
	case CUA_U32: return run<integer_rule<uint32_t>>(ctx, h);
	case CUA_I32: return run<integer_rule<int32_t>>(ctx, h);
	case CUA_F32: return run<float_rule<float>>(ctx, h);
	default: return run<float_rule<double>>(ctx, h);
	}
}

static enum cua_status cuda_finish(struct cua_context *, const struct cua__histogram *)
{
	return CUA_ERROR_UNSUPPORTED;
}

const struct cua__histogram_ops cua__cuda_histogram = {cuda_plan, cuda_run, cuda_finish};
