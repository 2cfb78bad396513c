/* SPDX-License-Identifier: MIT */
/* The bin functions and private bins inside kernels, and the host calls in graphs and from many threads. */
#include <math.h>
#include <pthread.h>

#include "device.h"
#include "histogram_calls.h"

static void *device_copy(const void *host, size_t bytes)
{
	void *p = NULL;

	ck_assert_cuda(cudaMalloc(&p, bytes));
	ck_assert_cuda(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
	return p;
}

static const enum cua_histogram_strategy strategies[] = {
	CUA_HISTOGRAM_AUTO, CUA_HISTOGRAM_BLOCKED, CUA_HISTOGRAM_INTERLEAVED,
	CUA_HISTOGRAM_PRIVATIZED, CUA_HISTOGRAM_AGGREGATED};

static struct cua_histogram_options options_of(enum cua_histogram_strategy strategy, int accumulate)
{
	struct cua_histogram_options o = CUA_HISTOGRAM_OPTIONS_INIT;

	o.strategy = strategy;
	o.accumulate = accumulate;
	return o;
}

/* ---- bin functions: the same bits on the device as on the host ---- */

/*
 * A bin function's arguments and the host's result. The device prepares the range again by itself.
 */
struct question {
	union {
		struct {
			int64_t lower, upper, x;
		} i;
		struct {
			double lower, upper, x;
		} f;
	} of;
	int is_float;
	uint32_t bin;
	uint64_t bins;
	struct cua_histogram_range range;
};

static __global__ void ask(const struct question *questions, uint32_t n, uint32_t *wrong)
{
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	struct cua_histogram_range range;
	enum cua_status status;
	uint32_t bins[2];

	if (i >= n)
		return;
	const struct question q = questions[i];

	if (q.is_float) {
		status = cua_histogram_range_f64(q.of.f.lower, q.of.f.upper, q.bins, &range);
		bins[0] = cua_histogram_even_bin_f64(&range, q.of.f.x);
		bins[1] = cua_histogram_even_bin_f64(&q.range, q.of.f.x);
	} else {
		status = cua_histogram_range_i64(q.of.i.lower, q.of.i.upper, q.bins, &range);
		bins[0] = cua_histogram_even_bin_i64(&range, q.of.i.x);
		bins[1] = cua_histogram_even_bin_i64(&q.range, q.of.i.x);
	}
	if (status != CUA_OK || bins[0] != q.bin || bins[1] != q.bin)
		atomicMin(wrong, i);
}

START_TEST(test_bins)
{
	const uint32_t n = test_quick() ? 20000 : 400000, none = 0xffffffffu;
	struct question *questions = (struct question *)test_malloc(n * sizeof(*questions)),
			*on_device;
	uint64_t seed = test_seed("test_bins");
	uint32_t got, *wrong = (uint32_t *)device_copy(&none, sizeof(none));

	for (uint32_t i = 0; i < n; i++) {
		struct question *q = &questions[i];
		uint64_t r = test_random(&seed), bits[3];
		enum cua_status status;
		double v[3];

		memset(q, 0, sizeof(*q));
		q->bins = ((test_random(&seed) >> 33) >> r % 31) + 1;
		q->is_float = i % 2;
		if (!q->is_float) {
			uint64_t width = ((test_random(&seed) & 0xffffffffu) >> (r >> 8) % 32) + 1;

			q->of.i.lower = (int64_t)(test_random(&seed) % 1000000) - 500000;
			q->of.i.upper = q->of.i.lower + (int64_t)width;
			q->of.i.x = q->of.i.lower + (int64_t)(test_random(&seed) % (width + 2)) - 1;
			status = cua_histogram_range_i64(q->of.i.lower, q->of.i.upper, q->bins,
							 &q->range);
			q->bin = cua_histogram_even_bin_i64(&q->range, q->of.i.x);
		} else {
			/* any bits, sometimes numbers close to each other */
			do {
				for (int k = 0; k < 3; k++) {
					bits[k] = test_random(&seed);
					if (i % 4 == 1)
						bits[k] = (bits[0] & 0xffff000000000000u) |
							  (bits[k] & 0xffffffffffffu);
					memcpy(&v[k], &bits[k], 8);
				}
				q->of.f.lower = fmin(v[0], v[1]);
				q->of.f.upper = fmax(v[0], v[1]);
				q->of.f.x = v[2];
				status = cua_histogram_range_f64(q->of.f.lower, q->of.f.upper,
								 q->bins, &q->range);
			} while (status);
			q->bin = cua_histogram_even_bin_f64(&q->range, q->of.f.x);
		}
		if (status)
			ck_abort_msg("question %u", i);
	}
	on_device = (struct question *)device_copy(questions, n * sizeof(*questions));
	ask<<<(n + 255) / 256, 256>>>(on_device, n, wrong);
	finish_kernel();
	ck_assert_cuda(cudaMemcpy(&got, wrong, sizeof(got), cudaMemcpyDeviceToHost));
	ck_assert_msg(got == none, "question %u", got);
	ck_assert_cuda(cudaFree(on_device));
	ck_assert_cuda(cudaFree(wrong));
	free(questions);
}
END_TEST

/* ---- private bins ---- */

#define PRIVATE_BINS 1000u

/* Counts i % (bins + 1) for every i below n; the value `bins` is outside. Sometimes flushes. */
static __global__ void count_kernel(uint64_t n, uint32_t bins, uint32_t rounds_a_flush,
				    uint64_t *counts)
{
	__shared__ uint32_t shared[PRIVATE_BINS + 1];
	const uint64_t threads = cua_port_grid_size() * cua_port_block_size();
	const uint64_t first = cua_port_block() * cua_port_block_size();
	uint32_t round = 0;

	if (cua_port_thread() == 0)
		shared[PRIVATE_BINS] = 0xeeeeeeeeu;
	cua_histogram_block_init(shared, bins);
	for (uint64_t i = first; i < n; i += threads) {
		const uint64_t mine = i + cua_port_thread();
		const uint32_t bin = (uint32_t)(mine % (bins + 1));

		if (mine < n)
			cua_histogram_block_add(shared, bin < bins ? bin : CUA_HISTOGRAM_NO_BIN);
		if (++round % rounds_a_flush == 0)
			cua_histogram_block_flush(shared, bins, counts);
	}
	cua_histogram_block_flush(shared, bins, counts);
	/* all bins are empty again, and nothing behind them was touched */
	for (uint32_t b = cua_port_thread(); b < bins; b += cua_port_block_size())
		if (shared[b])
			atomicAdd((unsigned long long *)counts, 1ull << 40);
	if (cua_port_thread() == 0 && shared[PRIVATE_BINS] != 0xeeeeeeeeu)
		atomicAdd((unsigned long long *)counts, 1ull << 50);
}

START_TEST(test_private)
{
	static const struct {
		unsigned grid, x, y;
		uint32_t bins;
	} shapes[] = {{1, 1, 1, 7},      {1, 33, 1, 1},       {3, 100, 1, 256},
		      {20, 16, 16, 999}, {200, 256, 1, 1000}, {10, 1024, 1, 31}};

	for (size_t s = 0; s < COUNT(shapes); s++) {
		const uint64_t n = 300007;
		const uint32_t bins = shapes[s].bins;
		uint64_t got[PRIVATE_BINS], *counts;

		memset(got, 0, sizeof(got));
		counts = (uint64_t *)device_copy(got, sizeof(got));
		count_kernel<<<shapes[s].grid, dim3(shapes[s].x, shapes[s].y)>>>(n, bins, 5,
										 counts);
		finish_kernel();
		/* again: the counts accumulate */
		count_kernel<<<shapes[s].grid, dim3(shapes[s].x, shapes[s].y)>>>(n, bins, 1000000,
										 counts);
		finish_kernel();
		ck_assert_cuda(cudaMemcpy(got, counts, sizeof(got), cudaMemcpyDeviceToHost));
		for (uint32_t b = 0; b < PRIVATE_BINS; b++) {
			uint64_t expected = b < bins ? n / (bins + 1) + (b < n % (bins + 1)) : 0;

			if (got[b] != expected * 2)
				ck_abort_msg("shape %zu: bin %u has %llu, not %llu", s, b,
					     (unsigned long long)got[b],
					     (unsigned long long)expected * 2);
		}
		ck_assert_cuda(cudaFree(counts));
	}
}
END_TEST

/* A kernel as a user would write it: letters, private to the block. */
static __global__ void letters_kernel(const unsigned char *text, uint32_t n, uint64_t *counts)
{
	__shared__ uint32_t shared[CUA_HISTOGRAM_LETTER_BINS];

	cua_histogram_block_init(shared, CUA_HISTOGRAM_LETTER_BINS);
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		cua_histogram_block_add(shared, cua_histogram_letter_bin(text[i]));
	cua_histogram_block_flush(shared, CUA_HISTOGRAM_LETTER_BINS, counts);
}

START_TEST(test_letters)
{
	enum { N = 100003 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	unsigned char *host = (unsigned char *)test_malloc(N), *text;
	uint64_t expected[7] = {0}, got[7], *counts;

	for (int i = 0; i < N; i++) {
		host[i] = (unsigned char)(i * 31 + i / 256);
		if (host[i] >= 'a' && host[i] <= 'z')
			expected[(host[i] - 'a') / 4]++;
	}
	text = (unsigned char *)device_copy(host, N);
	memset(got, 0, sizeof(got));
	counts = (uint64_t *)device_copy(got, sizeof(got));
	letters_kernel<<<50, 256>>>(text, N, counts);
	finish_kernel();
	ck_assert_cuda(cudaMemcpy(got, counts, sizeof(got), cudaMemcpyDeviceToHost));
	ck_assert_mem_eq(got, expected, sizeof(got));
	ck_assert_cua(cua_histogram_letters(ctx, NULL, N, text, got));
	ck_assert_mem_eq(got, expected, sizeof(got));
	ck_assert_cuda(cudaFree(text));
	ck_assert_cuda(cudaFree(counts));
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- random calls, prepared ---- */

/* A random call on device memory, and its expected counts. */
struct prepared {
	struct model_call m; /* all in host memory */
	struct cua_histogram_options o;
	char *x, *edges, *weights;
	void *our_x, *our_weights, *our_counts, *our_sides;
	size_t bins;                             /* bins of all channels */
	uint64_t *counts, sides[16];             /* as bits of the count type */
	uint64_t *first_counts, first_sides[16]; /* the same: before the first call */
	char text[512];
};

/*
 * Copies elements and weights to the device in stream order, and computes the expected counts of
 * another call.
 */
static void prepare_next(struct prepared *p, cudaStream_t stream)
{
	uint64_t *sums = (uint64_t *)test_malloc(p->bins * 8), sides[16] = {0};

	memset(sums, 0, p->bins * 8);
	model_count(&p->m, sums, sides);
	for (size_t k = 0; k < p->bins; k++)
		p->counts[k] = expected_count(&p->m, p->counts[k], sums[k]);
	for (size_t k = 0; k < model_counted(&p->m) * CUA_HISTOGRAM_SIDES; k++)
		p->sides[k] = sides[k] + (p->o.accumulate ? p->sides[k] : 0);
	ck_assert_cuda(cudaMemcpyAsync(p->our_x, p->x, ROOM, cudaMemcpyHostToDevice, stream));
	ck_assert_cuda(cudaMemcpyAsync(p->our_weights, p->weights, MOST_N * 8,
				       cudaMemcpyHostToDevice, stream));
	ck_assert_cuda(cudaStreamSynchronize(stream));
	free(sums);
}

static size_t count_bytes(const struct prepared *p)
{
	return p->m.o.count_type == CUA_U32 ? 4 : 8;
}

/*
 * Copies the counts before the first call to the device, in stream order; `packed` has room for
 * them.
 */
static cudaError_t put_first_counts(const struct prepared *p, char *packed, cudaStream_t stream)
{
	const size_t size = count_bytes(p);
	cudaError_t error;

	for (size_t k = 0; k < p->bins; k++)
		memcpy(packed + k * size, &p->first_counts[k], size);
	error = cudaMemcpyAsync(p->our_counts, packed, p->bins * size, cudaMemcpyHostToDevice,
				stream);
	if (error == cudaSuccess)
		error = cudaMemcpyAsync(p->our_sides, p->first_sides, sizeof(p->first_sides),
					cudaMemcpyHostToDevice, stream);
	return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

/*
 * The index of a wrong count: bins first, then the counts of elements outside. -1 if all are right,
 * -2 if a copy fails.
 */
static long long wrong_count(const struct prepared *p, char *packed, cudaStream_t stream)
{
	const size_t size = count_bytes(p);
	uint64_t sides[16], v;

	if (cudaMemcpyAsync(packed, p->our_counts, p->bins * size, cudaMemcpyDeviceToHost,
			    stream) != cudaSuccess ||
	    cudaMemcpyAsync(sides, p->our_sides, sizeof(sides), cudaMemcpyDeviceToHost, stream) !=
		    cudaSuccess ||
	    cudaStreamSynchronize(stream) != cudaSuccess)
		return -2;
	for (size_t k = 0; k < p->bins; k++) {
		v = 0;
		memcpy(&v, packed + k * size, size);
		if (v != p->counts[k])
			return (long long)k;
	}
	for (size_t k = 0; k < 16; k++)
		if (sides[k] != p->sides[k])
			return (long long)(p->bins + k);
	return -1;
}

/* Prepares any call; prepare_next replaces its elements. */
static void prepare(struct cua_context *ctx, uint64_t *seed, struct prepared *p)
{
	p->x = (char *)test_malloc(ROOM);
	p->edges = (char *)test_malloc((MOST_BINS + 1) * 8);
	p->weights = (char *)test_malloc(MOST_N * 8);
	memset(p->x, 0, ROOM);
	memset(p->weights, 0, MOST_N * 8);
	make_random(&p->m, seed, p->x, p->edges, p->weights);
	describe(&p->m, p->text, sizeof(p->text));
	p->bins = p->m.bins * model_counted(&p->m);
	p->our_x = test_alloc(ctx, ROOM);
	p->our_weights = test_alloc(ctx, MOST_N * 8);
	p->our_counts = test_alloc(ctx, p->bins * 8);
	p->our_sides = test_alloc(ctx, sizeof(p->sides));
	p->o = p->m.o;
	p->o.weights = p->o.weight_type ? p->our_weights : NULL;
	p->o.outside = (uint64_t *)p->our_sides;
	p->counts = (uint64_t *)test_malloc(p->bins * 8);
	p->first_counts = (uint64_t *)test_malloc(p->bins * 8);
	for (size_t k = 0; k < p->bins; k++) {
		double f = any_double(seed);

		p->counts[k] = test_random(seed);
		if (model_is_float(p->m.o.weight_type))
			memcpy(&p->counts[k], &f, sizeof(f));
		if (count_bytes(p) == 4)
			p->counts[k] = (uint32_t)p->counts[k];
		p->first_counts[k] = p->counts[k];
	}
	for (size_t k = 0; k < 16; k++)
		p->first_sides[k] = p->sides[k] = test_random(seed);
}

static void forget(struct cua_context *ctx, struct prepared *p)
{
	test_free(ctx, p->our_x);
	test_free(ctx, p->our_weights);
	test_free(ctx, p->our_counts);
	test_free(ctx, p->our_sides);
	free(p->x);
	free(p->edges);
	free(p->weights);
	free(p->counts);
	free(p->first_counts);
}

static void reserve(struct cua_context *ctx, const struct prepared *p, int n)
{
	size_t bytes, most = 0;

	for (int i = 0; i < n; i++) {
		ck_assert_cua(cua_histogram_workspace(ctx, &p[i].o, p[i].m.bins, &bytes));
		most = bytes > most ? bytes : most;
	}
	ck_assert_cua(cua_context_reserve(ctx, most));
}

/* ---- graphs ---- */

#define GRAPH_BINS                                                                                 \
	70000u /* exceeds shared memory, so smaller private histograms hold a range of the bins */

/* All calls and strategies in a graph, replayed on changing data; a single call accumulates. */
START_TEST(test_graph)
{
	enum { N = 100003, CALLS = 5 };
	static const size_t bins_of[CALLS] = {256, 7, 4096, 40000, GRAPH_BINS};
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const size_t n_strategies = COUNT(strategies), stride = GRAPH_BINS;
	uint32_t *host = (uint32_t *)test_malloc(N * 4), *x = (uint32_t *)test_alloc(ctx, N * 4);
	uint64_t *expected = (uint64_t *)test_malloc(CALLS * stride * 8);
	uint64_t *got = (uint64_t *)test_malloc(stride * 8);
	uint64_t *counts = (uint64_t *)test_alloc(ctx, CALLS * n_strategies * stride * 8);
	uint64_t *total = (uint64_t *)test_upload(ctx, "\0\0\0\0\0\0\0\0", 8), on_host[7], sum;
	struct cua_histogram_options more = options_of(CUA_HISTOGRAM_AUTO, 1);
	const int64_t zero = 0, all = (int64_t)1 << 32;
	enum cua_status host_status[3];
	cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	size_t bytes = 0;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	memset(on_host, 0xee, sizeof(on_host));
	ck_assert_cua(cua_histogram_workspace(ctx, NULL, GRAPH_BINS, &bytes));
	ck_assert_cua(cua_context_reserve(ctx, bytes));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (size_t s = 0; s < n_strategies; s++) {
		struct cua_histogram_options o = options_of(strategies[s], 0);
		uint64_t *out = counts + s * CALLS * stride;

		ck_assert_cua(cua_histogram_bytes(ctx, &o, N * 4 - 1, (char *)x + 1, out));
		ck_assert_cua(cua_histogram_letters(ctx, &o, N * 4, x, out + stride));
		for (int c = 2; c < CALLS; c++)
			ck_assert_cua(cua_histogram_even(ctx, &o, CUA_U32, N, x, bins_of[c], &zero,
							 &all, out + (size_t)c * stride));
	}
	ck_assert_cua(cua_histogram_even(ctx, &more, CUA_U32, N, x, 1, &zero, &all, total));
	/* host counts: the call would have to wait */
	host_status[0] = cua_histogram_bytes(ctx, NULL, 0, NULL, expected);
	host_status[1] = cua_histogram_letters(ctx, NULL, N, x, on_host);
	host_status[2] = cua_histogram_even(ctx, NULL, CUA_U32, N, x, 3, &zero, &all, on_host);
	ck_assert_cuda(cudaStreamIsCapturing(stream, &capturing));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_int_eq((int)capturing, (int)cudaStreamCaptureStatusActive);
	for (size_t i = 0; i < COUNT(host_status); i++)
		ck_assert_status(host_status[i], CUA_ERROR_CAPTURE);
	ck_assert_uint_eq(on_host[0], 0xeeeeeeeeeeeeeeeeu);
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t replay = 0; replay < 4; replay++) {
		const unsigned char *p = (const unsigned char *)host;

		for (uint32_t i = 0; i < N; i++)
			host[i] = replay == 2 ? 0x61626364u : (i + replay) * 2654435761u;
		memset(expected, 0, CALLS * stride * 8);
		for (uint32_t i = 0; i < N * 4; i++) {
			if (i)
				expected[p[i]]++;
			if (p[i] >= 'a' && p[i] <= 'z')
				expected[stride + (size_t)(p[i] - 'a') / 4]++;
		}
		for (uint32_t i = 0; i < N; i++)
			for (int c = 2; c < CALLS; c++)
				expected[(size_t)c * stride +
					 (((uint64_t)host[i] * bins_of[c]) >> 32)]++;
		ck_assert_cuda(cudaMemcpyAsync(x, host, N * 4, cudaMemcpyHostToDevice, stream));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		for (size_t s = 0; s < n_strategies; s++)
			for (size_t c = 0; c < CALLS; c++) {
				ck_assert_cuda(cudaMemcpy(got, counts + (s * CALLS + c) * stride,
							  bins_of[c] * 8, cudaMemcpyDeviceToHost));
				ck_assert_msg(!memcmp(got, expected + c * stride, bins_of[c] * 8),
					      "replay %u, strategy %zu, call %zu", replay, s, c);
			}
		ck_assert_cuda(cudaMemcpy(&sum, total, sizeof(sum), cudaMemcpyDeviceToHost));
		ck_assert_uint_eq(sum, (uint64_t)N * (replay + 1));
		/* a call between two replays */
		ck_assert_cua(cua_histogram_letters(ctx, NULL, N * 4, x, on_host));
		ck_assert_mem_eq(on_host, expected + stride, sizeof(on_host));
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	test_free(ctx, x);
	test_free(ctx, counts);
	test_free(ctx, total);
	free(host);
	free(expected);
	free(got);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/*
 * Random calls in a graph: rows, channels, weights, accumulated counts. The elements change before
 * each replay.
 */
START_TEST(test_graph_options)
{
	enum { CALLS = 40, REPLAYS = 3 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct prepared *p = (struct prepared *)test_malloc(CALLS * sizeof(*p));
	uint64_t seed = test_seed("test_graph_options");
	char *packed = (char *)test_malloc((size_t)MOST_BINS * 4 * 8);
	cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	enum cua_status status[CALLS];
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	for (int i = 0; i < CALLS; i++)
		prepare(ctx, &seed, &p[i]);
	reserve(ctx, p, CALLS);
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	for (int i = 0; i < CALLS; i++)
		ck_assert_cuda(put_first_counts(&p[i], packed, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < CALLS; i++)
		status[i] = make_call(ctx, &p[i].m, &p[i].o, p[i].our_x, p[i].our_counts);
	ck_assert_cuda(cudaStreamIsCapturing(stream, &capturing));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_int_eq((int)capturing, (int)cudaStreamCaptureStatusActive);
	for (int i = 0; i < CALLS; i++)
		EXPECT(status[i] == (p[i].m.rule == MODEL_EDGES ? CUA_ERROR_CAPTURE : CUA_OK),
		       "%s: %s", p[i].text, cua_status_name(status[i]));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < REPLAYS; replay++) {
		for (int i = 0; i < CALLS; i++) {
			if (p[i].m.rule == MODEL_EDGES)
				continue;
			if (replay)
				fill_random(&p[i].m, &seed, p[i].x, p[i].weights);
			prepare_next(&p[i], stream);
		}
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		for (int i = 0; i < CALLS; i++) {
			long long wrong = wrong_count(&p[i], packed, stream);

			EXPECT(wrong == -1, "replay %d, %s: count %lld", replay, p[i].text, wrong);
		}
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	for (int i = 0; i < CALLS; i++)
		forget(ctx, &p[i]);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
	free(p);
	free(packed);
}
END_TEST

/* ---- threads ---- */

#define THREADS 4
#define THREAD_CALLS 12

/* A thread with its own context and stream. */
struct counting {
	pthread_t id;
	struct cua_context *ctx;
	cudaStream_t stream;
	struct prepared calls[THREAD_CALLS];
	char *packed, error[700];
	int rounds;
};

/* All calls of a round are in flight at once. */
static const char *count_round(struct counting *c, struct prepared **p, long long *wrong)
{
	enum cua_status status;

	for (int i = 0; i < THREAD_CALLS; i++) {
		*p = &c->calls[i];
		if (put_first_counts(*p, c->packed, c->stream) != cudaSuccess)
			return "copy";
	}
	for (int i = 0; i < THREAD_CALLS; i++) {
		*p = &c->calls[i];
		status = make_call(c->ctx, &(*p)->m, &(*p)->o, (*p)->our_x, (*p)->our_counts);
		if (status)
			return cua_status_name(status);
	}
	for (int i = 0; i < THREAD_CALLS; i++) {
		*p = &c->calls[i];
		*wrong = wrong_count(*p, c->packed, c->stream);
		if (*wrong != -1)
			return "wrong";
	}
	return NULL;
}

static void *count_main(void *arg)
{
	struct counting *c = (struct counting *)arg;

	for (int round = 0; round < c->rounds; round++) {
		struct prepared *p = NULL;
		long long wrong = -1;
		const char *what = count_round(c, &p, &wrong);

		if (!what)
			continue;
		snprintf(c->error, sizeof(c->error), "round %d, %s: %s, count %lld", round, p->text,
			 what, wrong);
		break;
	}
	return NULL;
}

/* Concurrent calls of several contexts, each on its own stream and thread. */
START_TEST(test_threads)
{
	struct counting *all = (struct counting *)test_malloc(THREADS * sizeof(*all));
	uint64_t seed = test_seed("test_threads");

	for (int t = 0; t < THREADS; t++) {
		struct counting *c = &all[t];

		c->ctx = test_context(CUA_BACKEND_CUDA);
		c->error[0] = 0;
		c->rounds = test_quick() ? 5 : 100;
		c->packed = (char *)test_malloc((size_t)MOST_BINS * 4 * 8);
		ck_assert_cuda(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
		for (int i = 0; i < THREAD_CALLS; i++)
			prepare(c->ctx, &seed, &c->calls[i]);
		/* the context's first stream clears new memory */
		ck_assert_cua(cua_context_synchronize(c->ctx));
		ck_assert_cua(cua_context_set_stream(c->ctx, c->stream));
		for (int i = 0; i < THREAD_CALLS; i++)
			prepare_next(&c->calls[i], c->stream);
	}
	for (int t = 0; t < THREADS; t++)
		ck_assert_int_eq(pthread_create(&all[t].id, NULL, count_main, &all[t]), 0);
	for (int t = 0; t < THREADS; t++)
		ck_assert_int_eq(pthread_join(all[t].id, NULL), 0);
	for (int t = 0; t < THREADS; t++) {
		struct counting *c = &all[t];

		EXPECT(!c->error[0], "thread %d: %s", t, c->error);
		for (int i = 0; i < THREAD_CALLS; i++)
			forget(c->ctx, &c->calls[i]);
		cua_context_destroy(c->ctx);
		ck_assert_cuda(cudaStreamDestroy(c->stream));
		free(c->packed);
	}
	free(all);
}
END_TEST

/* Elements and counts in pinned and in managed memory; the counts accumulate there. */
START_TEST(test_memory)
{
	enum { N = 10000 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_histogram_options more = options_of(CUA_HISTOGRAM_AUTO, 1);
	const int64_t zero = 0, ten = 10;
	uint64_t *pinned_counts, *managed_counts;
	uint32_t *pinned;
	int has_managed = 0;

	ck_assert_cuda(cudaDeviceGetAttribute(&has_managed, cudaDevAttrManagedMemory, 0));
	ck_assert_cuda(cudaMallocHost((void **)&pinned, N * sizeof(*pinned)));
	ck_assert_cuda(cudaMallocHost((void **)&pinned_counts, 10 * sizeof(*pinned_counts)));
	for (uint32_t i = 0; i < N; i++)
		pinned[i] = i % 20;
	for (int i = 0; i < 10; i++)
		pinned_counts[i] = (uint64_t)i << 33;
	ck_assert_cua(cua_histogram_even(ctx, &more, CUA_U32, N - 1, pinned + 1, 10, &zero, &ten,
					 pinned_counts));
	ck_assert_cua(cua_context_synchronize(ctx));
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(pinned_counts[i], ((uint64_t)i << 33) + N / 20 - (i == 0));
	if (has_managed) {
		ck_assert_cuda(cudaMallocManaged((void **)&managed_counts,
						 10 * sizeof(*managed_counts),
						 cudaMemAttachGlobal));
		for (int i = 0; i < 10; i++)
			managed_counts[i] = 0xeeeeeeeeeeeeeeeeu;
		ck_assert_cua(cua_histogram_even_u32(ctx, N, pinned, 10, 0, 10, managed_counts));
		ck_assert_cua(cua_context_synchronize(ctx));
		for (int i = 0; i < 10; i++)
			ck_assert_uint_eq(managed_counts[i], N / 20);
		ck_assert_cuda(cudaFree(managed_counts));
	}
	ck_assert_cuda(cudaFreeHost(pinned));
	ck_assert_cuda(cudaFreeHost(pinned_counts));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("device_histogram");
	TCase *tc = tcase_create("device_histogram");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_bins);
	tcase_add_test(tc, test_private);
	tcase_add_test(tc, test_letters);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_graph_options);
	tcase_add_test(tc, test_threads);
	tcase_add_test(tc, test_memory);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
