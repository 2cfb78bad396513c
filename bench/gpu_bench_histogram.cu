/* SPDX-License-Identifier: MIT */
/*
 * Histograms of whole arrays, in GB/s of the bytes that a call has to read, on data of five kinds:
 * uniform; constant; Zipf's law with exponent 1.5, the most frequent bins next to each other;
 * sorted; and clustered, in runs of equal elements. The peer is CUB, with temporary memory
 * allocated beforehand.
 *
 * The ceiling is the faster of two kernels that only read the same bytes, 16 a load: persistent
 * blocks that loop over the array, and a block for each tile. Counts are stored in device memory.
 * After each run they are compared with the counts of a plain kernel of this program, with an
 * independent bin rule.
 */
#include <math.h>

#include <cub/device/device_histogram.cuh>
#include <cub/version.cuh>

#include <cuatomic/histogram.h>

#include "gpu_bench_calls.h"

#define MOST_BINS ((size_t)1 << 20)
/* Elements of a run in the clustered data. */
#define RUN 777
/* If a run takes more than SLOW seconds, only SLOW_RUNS runs are measured. */
#define SLOW 0.01
#define SLOW_RUNS 3

static struct cua_context *ctx;
static char *memory; /* the array */
static size_t room;  /* size of memory */
static void *counts; /* the counts that a call stores */
static unsigned long long *wanted;
static unsigned *sink; /* results of the reading kernels; the number of wrong counts */
static double *shares; /* cumulative distribution of Zipf's law over the bins */
static double *share_on_host;
static size_t shares_bins; /* number of bins that shares was computed for */

enum data { UNIFORM, CONSTANT, ZIPF, SORTED, CLUSTERED, DATA };

static const char *const data_names[DATA] = {"uniform", "constant", "zipf 1.5", "sorted",
					     "clustered"};

/* ---- measurement ---- */

static double bytes; /* bytes that a call has to read */

/*
 * Measures a call and adds its row. check() runs after each run and returns whether the result is
 * right.
 */
template <typename Call, typename Check>
static struct figure row(enum table_kind kind, const char *way, Call call, Check check)
{
	auto poison = [] {
		need(!cudaMemset(counts, 0xa5, MOST_BINS * 8) && !cudaDeviceSynchronize(),
		     "poison");
	};
	bool right = true;
	/* report only the first wrong result */
	auto verified = [&] { right = right && check(); };
	int runs = BENCH_RUNS;
	struct figure f;

	/* the first call loads the code; the second call gives the duration of a run */
	for (int i = 0; i < 2 && timing != CALL_WAIT; i++) {
		double start;

		poison();
		start = now();
		call();
		need(!cudaDeviceSynchronize(), way);
		runs = now() - start > SLOW ? SLOW_RUNS : BENCH_RUNS;
		verified();
	}
	f = measure_calls(way, bytes, 0, runs, poison, call, verified);
	add_row(kind, way, f, bytes, right);
	return f;
}

/* ---- the ceiling ---- */

static void ceilings(void)
{
	size_t words = (size_t)bytes / 16;
	const uint4 *x = (const uint4 *)memory;

	both_grids(words, [=](unsigned blocks, bool persistent) {
		row(
			TABLE_CEILING,
			persistent ? "ceiling: reads, persistent blocks"
				   : "ceiling: reads, a block per tile",
			[=] { read_all<1><<<blocks, THREADS>>>(words, x, x, sink); },
			[] { return true; });
	});
}

/* ---- elements ---- */

/* The bin chosen for element i. */
static __device__ inline uint32_t bin_of(enum data data, size_t i, size_t n, uint32_t bins,
					 const double *shares)
{
	uint32_t low = 0, high = bins - 1;
	double u;

	switch (data) {
	case UNIFORM: return (uint32_t)(mix(i + 1) >> 16) % bins;
	case CONSTANT: return bins / 3;
	case SORTED: return (uint32_t)((unsigned __int128)i * bins / n);
	case CLUSTERED: return (uint32_t)(mix(i / RUN + 1) >> 16) % bins;
	default: break;
	}
	u = (double)(mix(i + 1) >> 11) * 0x1p-53;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (u < shares[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Element types. value(bin, r) is an element of the bin, with r random; bin(v) is the bin of an
 * element.
 */
struct byte_elements {
	typedef uint8_t type;
	__device__ uint8_t value(uint32_t bin, uint64_t) const
	{
		return (uint8_t)bin;
	}
	__device__ uint32_t bin(uint8_t v) const
	{
		return v;
	}
};

/* Text with some spaces, which belong to no bin. */
struct letter_elements {
	typedef uint8_t type;
	__device__ uint8_t value(uint32_t bin, uint64_t r) const
	{
		return (uint8_t)(r % 8 == 0 ? ' ' : 'a' + bin * 4 + (r >> 8) % (bin == 6 ? 2 : 4));
	}
	__device__ uint32_t bin(uint8_t v) const
	{
		return v < 'a' || v > 'z' ? UINT32_MAX : (v - 'a') >> 2;
	}
};

/* Bins of `each` integers. */
struct integer_elements {
	typedef uint32_t type;
	uint32_t each;
	__device__ uint32_t value(uint32_t bin, uint64_t r) const
	{
		return bin * each + (uint32_t)(r >> 32) % each;
	}
	__device__ uint32_t bin(uint32_t v) const
	{
		return v / each;
	}
};

/* The unit interval with a power of two of bins, so that products are exact. */
struct float_elements {
	typedef float type;
	uint32_t bins;
	__device__ float value(uint32_t bin, uint64_t r) const
	{
		/* 11 bits, so that the sum is exact */
		return ((float)bin + (float)(r >> 53) * 0x1p-11f) / (float)bins;
	}
	__device__ uint32_t bin(float v) const
	{
		return (uint32_t)(v * (float)bins);
	}
};

/*
 * Bins whose width grows: edge i is (i / bins)^2, rounded once, so host and device compute the same
 * edges.
 */
struct edge_elements {
	typedef float type;
	uint32_t bins;
	__host__ __device__ float edge(uint32_t i) const
	{
		return (float)i * (float)i / ((float)bins * (float)bins);
	}
	__device__ float value(uint32_t bin, uint64_t r) const
	{
		float from = edge(bin), to = edge(bin + 1),
		      v = from + (to - from) * ((float)(r >> 53) * 0x1p-11f);

		return v < to ? v : from;
	}
	__device__ uint32_t bin(float v) const
	{
		uint32_t i = (uint32_t)(sqrtf(v) * (float)bins);

		while (i > 0 && v < edge(i))
			i--;
		while (v >= edge(i + 1))
			i++;
		return i;
	}
};

template <typename E>
static __global__ void make_elements(E e, enum data data, size_t n, uint32_t bins,
				     const double *shares, typename E::type *x)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		uint64_t r = mix((data == CONSTANT    ? 0
				  : data == CLUSTERED ? i / RUN
						      : i) +
				 ((uint64_t)1 << 50));

		/* sorted data is ordered by bins, but not within a bin */
		x[i] = e.value(bin_of(data, i, n, bins, shares), r);
	}
}

/* Each thread counts runs of equal bins among 64 neighbours, so all data take similar time. */
template <typename E>
static __global__ void count_plainly(E e, size_t n, const typename E::type *x, uint32_t bins,
				     unsigned long long *counts)
{
	const size_t each = 64, step = (size_t)gridDim.x * blockDim.x * each;

	for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * each; i < n; i += step) {
		size_t end = n - i < each ? n : i + each;
		uint32_t last = UINT32_MAX;
		unsigned long long run = 0;

		for (size_t j = i; j < end; j++) {
			uint32_t bin = e.bin(x[j]);

			if (bin != last) {
				if (last < bins)
					atomicAdd(&counts[last], run);
				last = bin;
				run = 0;
			}
			run++;
		}
		if (last < bins)
			atomicAdd(&counts[last], run);
	}
}

/* For few bins: each block counts in shared memory. */
template <typename E>
static __global__ void count_few_plainly(E e, size_t n, const typename E::type *x, uint32_t bins,
					 unsigned long long *counts)
{
	extern __shared__ unsigned own[];

	for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x)
		own[b] = 0;
	__syncthreads();
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		uint32_t bin = e.bin(x[i]);

		if (bin < bins)
			atomicAdd(&own[bin], 1u);
	}
	__syncthreads();
	for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x)
		atomicAdd(&counts[b], (unsigned long long)own[b]);
}

template <typename Count>
static __global__ void compare(uint32_t bins, const Count *got, const unsigned long long *wanted,
			       unsigned *wrong)
{
	for (uint32_t b = blockIdx.x * blockDim.x + threadIdx.x; b < bins;
	     b += gridDim.x * blockDim.x)
		if (got[b] != wanted[b])
			atomicAdd(wrong, 1u);
}

/* Returns whether the counts are right. A wrong count of the library ends the program. */
template <typename Count> static bool verify(enum table_kind kind, const char *way, size_t bins)
{
	unsigned wrong = 1;

	need(!cudaMemset(sink, 0, sizeof(*sink)), "verify");
	compare<<<64, THREADS>>>((uint32_t)bins, (const Count *)counts, wanted, sink);
	need(!cudaMemcpy(&wrong, sink, sizeof(wrong), cudaMemcpyDeviceToHost), way);
	if (wrong) {
		fflush(stdout);
		fprintf(stderr, "cuatomic bench: histogram: %s, %s: %u of %zu counts are wrong\n",
			table.name, way, wrong, bins);
		if (kind == TABLE_OURS)
			exit(1);
	}
	return !wrong;
}

/* Fills the array and computes its expected counts. */
template <typename E>
static typename E::type *make(const E &e, enum data data, size_t n, size_t bins)
{
	typename E::type *x = (typename E::type *)memory;
	unsigned long long sum = 0;

	if (data == ZIPF && shares_bins != bins) {
		double total = 0;

		for (size_t b = 0; b < bins; b++)
			share_on_host[b] = total += 1 / ((double)(b + 1) * sqrt((double)(b + 1)));
		for (size_t b = 0; b < bins; b++)
			share_on_host[b] /= total;
		need(!cudaMemcpy(shares, share_on_host, bins * sizeof(*shares),
				 cudaMemcpyHostToDevice),
		     "shares");
		shares_bins = bins;
	}
	make_elements<<<processors * 8, THREADS>>>(e, data, n, (uint32_t)bins, shares, x);
	need(!cudaMemset(wanted, 0, bins * sizeof(*wanted)), "counts");
	if (bins <= 8192)
		count_few_plainly<<<processors * 4, THREADS, bins * 4>>>(e, n, x, (uint32_t)bins,
									 wanted);
	else
		count_plainly<<<processors * 8, THREADS>>>(e, n, x, (uint32_t)bins, wanted);
	need(!cudaDeviceSynchronize(), "elements");
	/*
	 * check the expected counts: every element except spaces is counted; constant text has no
	 * spaces
	 */
	need(!cudaMemcpy(share_on_host, wanted, bins * sizeof(*wanted), cudaMemcpyDeviceToHost),
	     "counts");
	for (size_t b = 0; b < bins; b++)
		sum += ((unsigned long long *)share_on_host)[b];
	need(bins == CUA_HISTOGRAM_LETTER_BINS && data != CONSTANT ? sum > n / 2 && sum < n
								   : sum == n,
	     "elements");
	return x;
}

/* ---- a case ---- */

/* The results of a case for each kind of data. */
struct outcome {
	char name[28];
	double peer[DATA], ceiling[DATA], ours[DATA];
};

#define MOST_OUTCOMES 32
static struct outcome outcomes[MOST_OUTCOMES];
static int n_outcomes;

/* Halves n until n elements fit into the memory. */
static size_t fitting(size_t n, size_t size)
{
	if (small)
		n >>= 10;
	while (n * size > room)
		n /= 2;
	return n;
}

static void need_ok(enum cua_status status, const char *way)
{
	if (status == CUA_OK)
		return;
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: histogram: %s, %s: %s\n", table.name, way,
		cua_strerror(status));
	exit(1);
}

/*
 * Runs a case on all kinds of data up to `last`. peer(temporary, bytes, x, n) is CUB's call with
 * 32-bit counts, ours(x, n) is the library's call.
 */
template <typename E, typename Peer, typename Ours>
static void run_case(const char *what, const E &e, size_t n, size_t bins, enum data last,
		     const char *peer_way, Peer peer, const char *our_way, Ours ours)
{
	struct outcome *o =
		&outcomes[n_outcomes < MOST_OUTCOMES ? n_outcomes++ : MOST_OUTCOMES - 1];

	memset(o, 0, sizeof(*o));
	snprintf(o->name, sizeof(o->name), "%s%s", what, timing_names[timing]);
	for (int d = 0; d <= last; d++) {
		typename E::type *x = make(e, (enum data)d, n, bins);
		size_t wants = 0;
		char name[28];

		snprintf(name, sizeof(name), "%.16s, %s%s", what, data_names[d],
			 timing_names[timing]);
		table_begin(&table, name);
		bytes = (double)n * (double)sizeof(*x);
		ceilings();
		need(!peer(nullptr, wants, x, n), peer_way);
		if (temporary_holds(wants)) {
			row(
				TABLE_PEER, peer_way,
				[&] {
					size_t has = wants;

					need(!peer(temporary, has, x, n), peer_way);
				},
				[&] { return verify<unsigned>(TABLE_PEER, peer_way, bins); });
		} else {
			static const struct figure none = {};

			table_add(&table, TABLE_PEER, peer_way, none);
		}
		row(
			TABLE_OURS, our_way, [&] { need_ok(ours(x, n), our_way); },
			[&] { return verify<unsigned long long>(TABLE_OURS, our_way, bins); });
		o->peer[d] = table_best(&table, TABLE_PEER);
		o->ceiling[d] = table_best(&table, TABLE_CEILING);
		o->ours[d] = table_best(&table, TABLE_OURS);
		table_end(&table);
	}
}

/* CUB's even bins, with limits of type L. */
template <typename T, typename L>
static cudaError_t cub_even(void *t, size_t &has, const T *x, size_t n, size_t bins, L lower,
			    L upper)
{
	if (n > INT32_MAX)
		return cub::DeviceHistogram::HistogramEven(
			t, has, x, (unsigned *)counts, (int)bins + 1, lower, upper, (long long)n);
	return cub::DeviceHistogram::HistogramEven(t, has, x, (unsigned *)counts, (int)bins + 1,
						   lower, upper, (int)n);
}

#define EVEN_PEER "cub::DeviceHistogram::HistogramEven"

static void byte_case(size_t n, enum data last)
{
	struct byte_elements e;

	run_case(
		"u8 256", e, n, 256, last, EVEN_PEER,
		[](void *t, size_t &has, const uint8_t *x, size_t count) {
			return cub_even(t, has, x, count, 256, 0, 256);
		},
		"cua_histogram_bytes",
		[](const uint8_t *x, size_t count) {
			return cua_histogram_bytes(ctx, NULL, count, x, (uint64_t *)counts);
		});
}

/* CUB's last bin covers two more characters, which the text does not contain. */
static void letter_case(size_t n, enum data last)
{
	struct letter_elements e;

	run_case(
		"u8 letters", e, n, CUA_HISTOGRAM_LETTER_BINS, last, EVEN_PEER,
		[](void *t, size_t &has, const uint8_t *x, size_t count) {
			return cub_even(t, has, x, count, 7, (int)'a', 'a' + 28);
		},
		"cua_histogram_letters",
		[](const uint8_t *x, size_t count) {
			return cua_histogram_letters(ctx, NULL, count, x, (uint64_t *)counts);
		});
}

static void integer_case(size_t n, size_t bins, uint32_t each, enum data last)
{
	struct integer_elements e = {each};
	const int64_t lower = 0, upper = (int64_t)bins * each;
	char what[28], text[24];

	snprintf(text, sizeof(text), "%zu", bins);
	snprintf(what, sizeof(what), "u32 %.10s%s", bins < MOST_BINS ? text : size_text(text, bins),
		 each > 1 ? " wide" : "");
	run_case(
		what, e, n, bins, last, EVEN_PEER,
		[=](void *t, size_t &has, const uint32_t *x, size_t count) {
			return cub_even(t, has, x, count, bins, (uint32_t)lower, (uint32_t)upper);
		},
		"cua_histogram_even",
		[=](const uint32_t *x, size_t count) {
			return cua_histogram_even(ctx, NULL, CUA_U32, count, x, bins, &lower,
						  &upper, (uint64_t *)counts);
		});
}

static void float_case(size_t n, size_t bins, enum data last)
{
	struct float_elements e = {(uint32_t)bins};
	const double lower = 0, upper = 1;
	char what[28];

	snprintf(what, sizeof(what), "f32 %zu", bins);
	run_case(
		what, e, n, bins, last, EVEN_PEER,
		[=](void *t, size_t &has, const float *x, size_t count) {
			return cub_even(t, has, x, count, bins, 0.0f, 1.0f);
		},
		"cua_histogram_even",
		[=](const float *x, size_t count) {
			return cua_histogram_even(ctx, NULL, CUA_F32, count, x, bins, &lower,
						  &upper, (uint64_t *)counts);
		});
}

#ifdef CUA_HISTOGRAM_MAX_EDGES
static void edge_case(size_t n, size_t bins, enum data last)
{
	struct edge_elements e = {(uint32_t)bins};
	float *edges = (float *)malloc((bins + 1) * sizeof(*edges)), *on_device;
	char what[28];

	need(edges && !cudaMalloc(&on_device, (bins + 1) * sizeof(*edges)), "memory");
	for (size_t i = 0; i <= bins; i++)
		edges[i] = e.edge((uint32_t)i);
	need(!cudaMemcpy(on_device, edges, (bins + 1) * sizeof(*edges), cudaMemcpyHostToDevice),
	     "edges");
	snprintf(what, sizeof(what), "f32 %zu edges", bins + 1);
	run_case(
		what, e, n, bins, last, "cub::DeviceHistogram::HistogramRange",
		[=](void *t, size_t &has, const float *x, size_t count) {
			return cub::DeviceHistogram::HistogramRange(t, has, x, (unsigned *)counts,
								    (int)bins + 1, on_device,
								    (int)count);
		},
		"cua_histogram_edges",
		[=](const float *x, size_t count) {
			return cua_histogram_edges(ctx, NULL, CUA_F32, count, x, bins, edges,
						   (uint64_t *)counts);
		});
	cudaFree(on_device);
	free(edges);
}
#endif

/* Prints the worst result of each case over the kinds of data. */
static void print_outcomes(void)
{
	printf("\n%-27s %-27s %-20s %s\n", "case", "least share of ceiling", "slowest of fastest",
	       "least x peer");
	for (int i = 0; i < n_outcomes; i++) {
		const struct outcome *o = &outcomes[i];
		double share = HUGE_VAL, ratio = HUGE_VAL, slowest = HUGE_VAL, fastest = 0;
		int worst = 0;
		char text[64];

		for (int d = 0; d < DATA && o->ours[d] > 0; d++) {
			if (o->ours[d] / o->ceiling[d] < share) {
				share = o->ours[d] / o->ceiling[d];
				worst = d;
			}
			slowest = fmin(slowest, o->ours[d]);
			fastest = fmax(fastest, o->ours[d]);
			if (o->peer[d] > 0)
				ratio = fmin(ratio, o->ours[d] / o->peer[d]);
		}
		snprintf(text, sizeof(text), "%.3f (%s)", share, data_names[worst]);
		printf("%-27s %-27s %-20.3f %.2f\n", o->name, text, slowest / fastest, ratio);
	}
	fflush(stdout);
}

/* The cases that the summary lacks. */
static void other_cases(void)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20, Gi = 1 << 30;

	letter_case(fitting(2 * Gi, 1), CLUSTERED);
	for (size_t bins = 256; bins <= MOST_BINS; bins *= bins == 4096 || bins == 16384 ? 4 : 16)
		integer_case(fitting(512 * Mi, 4), bins, 1, CLUSTERED);
	integer_case(fitting(512 * Mi, 4), 1000, 1234567, CLUSTERED);
	float_case(fitting(512 * Mi, 4), 256, CLUSTERED);
	float_case(fitting(512 * Mi, 4), 4096, CLUSTERED);
#ifdef CUA_HISTOGRAM_MAX_EDGES
	edge_case(fitting(512 * Mi, 4), 255, CLUSTERED);
#endif
	for (int wait = 0; wait < 2; wait++) {
		set_timing(wait ? CALL_WAIT : IN_STREAM, wait ? 100 : 200);
		byte_case(64 * Ki, UNIFORM);
		letter_case(64 * Ki, UNIFORM);
		integer_case(64 * Ki, 256, 1, UNIFORM);
		integer_case(64 * Ki, 4096, 1, UNIFORM);
		float_case(64 * Ki, 256, UNIFORM);
#ifdef CUA_HISTOGRAM_MAX_EDGES
		edge_case(64 * Ki, 255, UNIFORM);
#endif
	}
}

int main(int argc, char **argv)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20, Gi = 1 << 30;
	struct options o = parse_options(argc, argv, "histogram", false);
	cudaDeviceProp device = print_head("histogram");
	char text[3][24];

	small = o.quick;
	processors = (unsigned)device.multiProcessorCount;
	for (room = small ? 2 * Mi : 2 * Gi; cudaMalloc(&memory, room) != cudaSuccess; room /= 2)
		need(room > 2 * Mi, "memory");
	/* clear the error of a failed allocation */
	(void)cudaGetLastError();
	share_on_host = (double *)malloc(MOST_BINS * sizeof(*share_on_host));
	need(share_on_host && !cudaMalloc(&counts, MOST_BINS * 8) &&
		     !cudaMalloc(&wanted, MOST_BINS * 8) && !cudaMalloc(&shares, MOST_BINS * 8) &&
		     !cudaMalloc(&sink, sizeof(*sink)) &&
		     cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK,
	     "context and memory");
	printf("CUB %d.%d.%d, which counts in 32 bits; cuatomic counts in 64; the array is in "
	       "device memory, as are the "
	       "counts; the L2 has %d MiB\n",
	       CUB_VERSION / 100000, CUB_VERSION / 100 % 1000, CUB_VERSION % 100,
	       device.l2CacheSize >> 20);
	printf("u8: %s elements; u32, f32: %s; stream and wait: %s; clustered: runs of %d\n",
	       size_text(text[0], fitting(2 * Gi, 1)), size_text(text[1], fitting(512 * Mi, 4)),
	       size_text(text[2], 64 * Ki), RUN);
	printf("wait: host time of a call and its synchronization, mean of 100; stream: mean of 200 calls in a "
	       "row; others: a single call; * fewer runs\n");

	table_columns("GB/s", "a call");
	set_timing(ONE_CALL, 1);
	byte_case(fitting(2 * Gi, 1), CLUSTERED);
	if (!bench_env()->summarized)
		other_cases();
	print_outcomes();

	cua_context_destroy(ctx);
	cudaFree(memory);
	cudaFree(counts);
	cudaFree(wanted);
	cudaFree(shares);
	cudaFree(sink);
	cudaFree(temporary);
	free(share_on_host);
	return 0;
}
