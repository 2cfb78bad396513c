/* SPDX-License-Identifier: MIT */
/* Exact sums: the inline functions inside kernels, the calls in graphs, and arrays of more than 2^31 elements. */
#include "device.h"

#include <math.h>

#include "exact_elements.h"

/*
 * ---- the inline functions: each thread sums its part, and the parts are merged in thread order
 * ----
 */

enum { THREADS = 64 };

static __global__ void sum_parts(const double *x, const double *y, int n, struct cua_exact *parts)
{
	struct cua_exact *e = &parts[global_id()];

	cua_exact_init(e);
	for (int i = (int)global_id(); i < n; i += (int)(gridDim.x * blockDim.x)) {
		cua_exact_add_f64(e, x[i]);
		cua_exact_add_product_f64(e, x[i], y[i]);
		cua_exact_add_f32(e, (float)i);
		cua_exact_add_product_f32(e, 1e-40f, (float)i);
	}
}

static __global__ void merge_parts(struct cua_exact *parts, int n, double *result, float *narrow)
{
	for (int i = 1; i < n; i++)
		cua_exact_merge(&parts[0], &parts[i]);
	*result = cua_exact_round_f64(&parts[0]);
	*narrow = cua_exact_round_f32(&parts[0]);
}

START_TEST(test_inline)
{
	uint64_t seed = test_seed("inline in a kernel");
	enum { N = 3000 };
	double *x = (double *)managed(N * sizeof(double)),
	       *y = (double *)managed(N * sizeof(double));
	double *result = (double *)managed(sizeof(double));
	float *narrow = (float *)managed(sizeof(float));
	struct cua_exact *parts = (struct cua_exact *)managed(THREADS * sizeof(*parts)), expected;

	for (int kind = 0; kind < KINDS; kind++) {
		double wide;
		float f;

		fill(&formats[3], (enum kind_of_element)kind, N, x, y, &seed);
		cua_exact_init(&expected);
		for (int i = 0; i < N; i++) {
			cua_exact_add_f64(&expected, x[i]);
			cua_exact_add_product_f64(&expected, x[i], y[i]);
			cua_exact_add_f32(&expected, (float)i);
			cua_exact_add_product_f32(&expected, 1e-40f, (float)i);
		}
		cua_exact_normalize(&expected);
		sum_parts<<<2, THREADS / 2>>>(x, y, N, parts);
		merge_parts<<<1, 1>>>(parts, THREADS, result, narrow);
		finish_kernel();
		ck_assert_msg(memcmp(&parts[0], &expected, sizeof(expected)) == 0,
			      "%s: the sums differ", kind_names[kind]);
		wide = cua_exact_round_f64(&expected);
		f = cua_exact_round_f32(&expected);
		ck_assert_msg(memcmp(result, &wide, sizeof(wide)) == 0 &&
				      memcmp(narrow, &f, sizeof(f)) == 0,
			      "%s: the results differ", kind_names[kind]);
	}
	ck_assert_cuda(cudaFree(x));
	ck_assert_cuda(cudaFree(y));
	ck_assert_cuda(cudaFree(result));
	ck_assert_cuda(cudaFree(narrow));
	ck_assert_cuda(cudaFree(parts));
}
END_TEST

/* ---- graphs ---- */

START_TEST(test_graph)
{
	enum { N = 300001 };
	uint64_t seed = test_seed("graph");
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	float *x = (float *)managed(N * sizeof(float));
	struct cua_exact *partial = (struct cua_exact *)managed(sizeof(*partial)),
			 host = CUA_EXACT_INIT;
	struct cua_exact expected = CUA_EXACT_INIT;
	double *result = (double *)managed(sizeof(double)), wide, pageable = -1;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	ck_assert_cuda(cudaStreamCreate(&stream));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cua(cua_exact_sum(ctx, CUA_F32, N, x, partial));
	ck_assert_cua(cua_exact_dot(ctx, CUA_F32, N - 1, x, x + 1, partial));
	ck_assert_cua(cua_exact_finish(ctx, partial, CUA_F64, result));
	/* a call that would have to wait: refused, and the capture continues */
	ck_assert_status(cua_exact_sum(ctx, CUA_F32, N, x, &host), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_exact_finish(ctx, partial, CUA_F64, &pageable), CUA_ERROR_CAPTURE);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < KINDS; replay++) {
		fill(&formats[2], (enum kind_of_element)(replay % KINDS), N, x, NULL, &seed);
		for (int i = 0; i < N; i++) {
			cua_exact_add_f32(&expected, x[i]);
			if (i + 1 < N)
				cua_exact_add_product_f32(&expected, x[i], x[i + 1]);
		}
		cua_exact_normalize(&expected);
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		ck_assert_msg(memcmp(partial, &expected, sizeof(expected)) == 0, "replay %d",
			      replay);
		wide = cua_exact_round_f64(&expected);
		ck_assert_msg(memcmp(result, &wide, sizeof(wide)) == 0,
			      "replay %d: the results differ", replay);
	}
	ck_assert(pageable == -1);
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
	ck_assert_cuda(cudaFree(x));
	ck_assert_cuda(cudaFree(partial));
	ck_assert_cuda(cudaFree(result));
}
END_TEST

/* ---- a partial of another layout in device memory ---- */

START_TEST(test_layout)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_exact other = CUA_EXACT_INIT, *partial;
	double one = 1, result = 0, *x = (double *)test_upload(ctx, &one, sizeof(one));

	other.layout = CUA_EXACT_LAYOUT + 1;
	partial = (struct cua_exact *)test_upload(ctx, &other, sizeof(other));
	ck_assert_cua(cua_exact_finish(ctx, partial, CUA_F64, &result));
	ck_assert(isnan(result));
	result = 0;
	ck_assert_cua(cua_exact_sum(ctx, CUA_F64, 1, x, partial));
	ck_assert_cua(cua_exact_finish(ctx, partial, CUA_F64, &result));
	ck_assert(isnan(result));
	test_free(ctx, partial);
	test_free(ctx, x);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- more than 2^31 elements ---- */

static __global__ void fill_large(uint16_t *x, uint64_t n)
{
	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (uint64_t)blockDim.x)
		x[i] = (uint16_t)(0x3c00 + i % 1024); /* f16: 1 + (i mod 1024) / 1024 */
}

START_TEST(test_large)
{
	const uint64_t n = ((uint64_t)1 << 31) + 7, turns = n / 1024, rest = n % 1024;
	/* in units of 1 / 1024 */
	const uint64_t units = n * 1024 + turns * (1023 * 1024 / 2) + rest * (rest - 1) / 2;
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_exact e = CUA_EXACT_INIT;
	size_t free_bytes = 0, all_bytes = 0;
	uint16_t *x = NULL;

	ck_assert_cuda(cudaMemGetInfo(&free_bytes, &all_bytes));
	if (test_quick() || free_bytes < n * 2 + ((size_t)1 << 28)) {
		printf("not run: 2^31 + 7 elements\n");
		cua_context_destroy(ctx);
		return;
	}
	ck_assert_cuda(cudaMalloc((void **)&x, n * 2));
	fill_large<<<1024, 256>>>(x, n);
	finish_kernel();
	ck_assert_cua(cua_exact_sum(ctx, CUA_F16, n, x, &e));
	ck_assert(cua_exact_round_f64(&e) == (double)units / 1024);
	ck_assert_cuda(cudaFree(x));
	cua_context_destroy(ctx);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_exact");
	TCase *tc = tcase_create("device_exact");

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, test_inline);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_layout);
	tcase_add_test(tc, test_large);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CUDA);
}
