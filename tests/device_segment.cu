/* SPDX-License-Identifier: MIT */
/*
 * Segmented reductions and reductions by key in graphs, on data that changes between replays. All
 * arrays are long.
 */
#include <math.h>

#include "device.h"

enum { N = 300003, SEGMENTS = 3000, CALLS = 6 };

/* Segments of any length, including 0, over all elements. */
static void make_segments(uint64_t *offsets, uint32_t *keys, uint32_t round)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		uint32_t r = mix(i * 977 + round * 13);
		uint64_t length = i % 7 == 3 ? 0 : i == round * 100 + 50 ? 60000 : r % 26;

		offsets[i] = at;
		at = at + length < (uint64_t)N ? at + length : (uint64_t)N;
		for (uint64_t k = offsets[i]; k < at; k++)
			keys[k] = i;
	}
	offsets[SEGMENTS] = N;
	for (; at < N; at++)
		keys[at] = SEGMENTS - 1;
}

static const enum cua_reduce_op ops[] = {CUA_REDUCE_SUM, CUA_REDUCE_MIN, CUA_REDUCE_MAX};
static const enum cua_reduce_mode modes[] = {CUA_REDUCE_FAST, CUA_REDUCE_FIXED};

START_TEST(test_graph)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	double *host = (double *)test_malloc(N * sizeof(*host)),
	       *got = (double *)test_malloc(N * 8);
	uint64_t *host_offsets = (uint64_t *)test_malloc((SEGMENTS + 1) * 8), count = 99,
		 expected_count;
	uint32_t *host_keys = (uint32_t *)test_malloc(N * 4),
		 *got_keys = (uint32_t *)test_malloc(N * 4);
	double *x = (double *)test_alloc(ctx, 2 * N * sizeof(*x));
	double *results = (double *)test_alloc(ctx, CALLS * SEGMENTS * sizeof(*results));
	double *by_key = (double *)test_alloc(ctx, 2 * N * sizeof(*by_key));
	uint64_t *offsets = (uint64_t *)test_alloc(ctx, (SEGMENTS + 1) * 8);
	uint64_t *device_count = (uint64_t *)test_alloc(ctx, 16);
	uint32_t *keys = (uint32_t *)test_alloc(ctx, 2 * N * 4);
	uint32_t *unique = (uint32_t *)test_alloc(ctx, 2 * N * 4);
	enum cua_status host_status, large_status, key_status, many_status;
	cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	size_t bytes = 0;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int replays = test_quick() ? 3 : 20;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cua(cua_reduce_by_key_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_U32, CUA_F64, N, N,
						  &bytes));
	ck_assert_cua(cua_context_reserve(ctx, bytes));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < CALLS; i++) {
		struct cua_segment_options o = CUA_SEGMENT_OPTIONS_INIT;

		o.mode = modes[i / 3];
		ck_assert_cua(cua_segmented_reduce(ctx, &o, ops[i % 3], CUA_F64, N, x, SEGMENTS,
						   offsets, results + i * SEGMENTS));
	}
	key_status = cua_reduce_by_key(ctx, NULL, CUA_REDUCE_SUM, CUA_U32, CUA_F64, N, keys, x,
				       SEGMENTS, unique, by_key, device_count);
	/* with a capacity for short runs, which are summed where they are found */
	many_status = cua_reduce_by_key(ctx, NULL, CUA_REDUCE_SUM, CUA_U32, CUA_F64, N, keys, x, N,
					unique + N, by_key + N, device_count + 1);
	/* a call that would have to wait or to allocate: refused, and the capture continues */
	host_status = cua_reduce_by_key(ctx, NULL, CUA_REDUCE_SUM, CUA_U32, CUA_F64, N, keys, x,
					SEGMENTS, unique, by_key, &count);
	large_status = cua_reduce_by_key(ctx, NULL, CUA_REDUCE_SUM, CUA_U32, CUA_F64, N * 2, keys,
					 x, N * 2, unique, by_key, device_count);
	ck_assert_cuda(cudaStreamIsCapturing(stream, &capturing));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_int_eq((int)capturing, (int)cudaStreamCaptureStatusActive);
	ck_assert_cua(key_status);
	ck_assert_cua(many_status);
	ck_assert_status(host_status, CUA_ERROR_CAPTURE);
	ck_assert_status(large_status, CUA_ERROR_WORKSPACE);
	ck_assert_uint_eq(count, 99);
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < replays; replay++) {
		make_segments(host_offsets, host_keys, (uint32_t)replay);
		for (int i = 0; i < N; i++)
			host[i] = (i * 7 + replay * 1000) % 2003 - 1000;
		ck_assert_cuda(cudaMemcpyAsync(x, host, N * 8, cudaMemcpyHostToDevice, stream));
		ck_assert_cuda(
			cudaMemcpyAsync(keys, host_keys, N * 4, cudaMemcpyHostToDevice, stream));
		ck_assert_cuda(cudaMemcpyAsync(offsets, host_offsets, (SEGMENTS + 1) * 8,
					       cudaMemcpyHostToDevice, stream));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		for (int i = 0; i < CALLS; i++) {
			ck_assert_cuda(cudaMemcpy(got, results + i * SEGMENTS, SEGMENTS * 8,
						  cudaMemcpyDeviceToHost));
			for (int k = 0; k < SEGMENTS; k++) {
				double sum = 0, low = HUGE_VAL, high = -HUGE_VAL, expected;

				for (uint64_t e = host_offsets[k]; e < host_offsets[k + 1]; e++) {
					sum += host[e];
					low = host[e] < low ? host[e] : low;
					high = host[e] > high ? host[e] : high;
				}
				expected = i % 3 == 0 ? sum : i % 3 == 1 ? low : high;
				EXPECT(got[k] == expected,
				       "replay %d, call %d, segment %d: %g, not %g", replay, i, k,
				       got[k], expected);
			}
		}
		for (int way = 0; way < 2; way++) {
			ck_assert_cuda(
				cudaMemcpy(&count, device_count + way, 8, cudaMemcpyDeviceToHost));
			ck_assert_cuda(cudaMemcpy(got, by_key + way * N, SEGMENTS * 8,
						  cudaMemcpyDeviceToHost));
			ck_assert_cuda(cudaMemcpy(got_keys, unique + way * N, SEGMENTS * 4,
						  cudaMemcpyDeviceToHost));
			expected_count = 0;
			for (uint32_t k = 0; k < SEGMENTS; k++) {
				double sum = 0;

				if (host_offsets[k] == host_offsets[k + 1])
					continue;
				for (uint64_t e = host_offsets[k]; e < host_offsets[k + 1]; e++)
					sum += host[e];
				EXPECT(got[expected_count] == sum && got_keys[expected_count] == k,
				       "replay %d, way %d, run %d: %g of key %u, not %g of %u",
				       replay, way, (int)expected_count, got[expected_count],
				       got_keys[expected_count], sum, k);
				expected_count++;
			}
			ck_assert_uint_eq(count, expected_count);
		}
		/* a call between two replays: uses the same state */
		ck_assert_cua(cua_segmented_sum_f64(ctx, N, x, SEGMENTS, offsets, results));
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	test_free(ctx, x);
	test_free(ctx, results);
	test_free(ctx, by_key);
	test_free(ctx, offsets);
	test_free(ctx, device_count);
	test_free(ctx, keys);
	test_free(ctx, unique);
	free(host);
	free(got);
	free(host_offsets);
	free(host_keys);
	free(got_keys);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/* Both backends return the same bits in mode FIXED, also with more rows than chunks. */
START_TEST(test_fixed_as_cpu)
{
	size_t n = test_quick() ? 300007 : ((size_t)1 << 27) + ((size_t)1 << 24) + 7;
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA),
			   *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_segment_options o = CUA_SEGMENT_OPTIONS_INIT;
	const uint64_t host_offsets[8] = {1, 1, 40, 3000, 9000, 100000, 100000, n};
	float *host = (float *)test_malloc(n * 4), *x, *results = (float *)test_alloc(ctx, 7 * 4);
	float expected[7], got[7];
	uint64_t *offsets = (uint64_t *)test_upload(ctx, host_offsets, sizeof(host_offsets));

	for (size_t i = 0; i < n; i++) {
		uint32_t r = mix((uint32_t)i);

		host[i] = i % 2 ? -host[i - 1 - r % (i < 64 ? 1 : 32) * 2 % i]
				: (float)(int32_t)r * (float)(1u << r % 31) * (float)(1u << r % 29);
	}
	x = (float *)test_upload(ctx, host, n * 4);
	o.mode = CUA_REDUCE_FIXED;
	ck_assert_cua(cua_segmented_reduce(cpu, &o, CUA_REDUCE_SUM, CUA_F32, n, host, 7,
					   host_offsets, expected));
	ck_assert_cua(
		cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, n, x, 7, offsets, results));
	test_download(ctx, got, results, sizeof(got));
	ck_assert_mem_eq(got, expected, sizeof(got));
	test_free(ctx, x);
	test_free(ctx, results);
	test_free(ctx, offsets);
	free(host);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

/* More than 2^31 elements, in a single segment and in many. */
START_TEST(test_big)
{
	const size_t n = ((size_t)1 << 31) + 7, most = 3000000;
	struct cua_context *ctx;
	const uint32_t seven = 7;
	uint64_t free_bytes = 0, total = 0, *host_offsets, *offsets, *results, *got;
	uint32_t *x;

	if (test_quick()) {
		printf("test_big: skipped in a quick run\n");
		return;
	}
	ctx = test_context(CUA_BACKEND_CUDA);
	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total));
	if (free_bytes < (uint64_t)12 << 30) {
		printf("test_big: skipped, less than 12 GiB of memory free\n");
		cua_context_destroy(ctx);
		return;
	}
	host_offsets = (uint64_t *)test_malloc((most + 1) * 8);
	got = (uint64_t *)test_malloc(most * 8);
	x = (uint32_t *)test_alloc(ctx, n * 4);
	results = (uint64_t *)test_alloc(ctx, most * 8);
	ck_assert_cua(cua_fill(ctx, x, n, 4, &seven));
	for (int shape = 0; shape < 3; shape++) {
		size_t segments = shape == 0 ? 1 : most;

		/* a single segment; equal lengths; nearly all empty */
		for (size_t i = 0; i <= segments; i++)
			host_offsets[i] = shape < 2      ? (uint64_t)i * (n / segments)
					  : i < most / 2 ? i / 1000 * 1000
							 : n;
		host_offsets[segments] = n;
		offsets = (uint64_t *)test_upload(ctx, host_offsets, (segments + 1) * 8);
		ck_assert_cua(cua_segmented_sum_u32(ctx, n, x, segments, offsets, results));
		test_download(ctx, got, results, segments * 8);
		for (size_t i = 0; i < segments; i++)
			EXPECT(got[i] == 7 * (host_offsets[i + 1] - host_offsets[i]),
			       "shape %d, segment %zu: %llu", shape, i, (unsigned long long)got[i]);
		test_free(ctx, offsets);
	}
	/*
	 * in the tree, of the bits as floats, without the first element: a missing or an extra
	 * strip would change the bits
	 */
	{
		struct cua_segment_options o = CUA_SEGMENT_OPTIONS_INIT;
		const uint64_t ends[2] = {1, n};
		const float expected = (float)(7 * ldexp((double)(n - 1), -149));
		float sum = 0;

		o.mode = CUA_REDUCE_FIXED;
		offsets = (uint64_t *)test_upload(ctx, ends, sizeof(ends));
		ck_assert_cua(cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, n, x, 1,
						   offsets, results));
		test_download(ctx, &sum, results, sizeof(sum));
		EXPECT(sum == expected, "%a, not %a", (double)sum, (double)expected);
		test_free(ctx, offsets);
	}
	test_free(ctx, x);
	test_free(ctx, results);
	free(host_offsets);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("segment in kernels");
	TCase *tc = tcase_create("segment");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_fixed_as_cpu);
	tcase_add_test(tc, test_big);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
