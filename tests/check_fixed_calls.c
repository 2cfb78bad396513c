/* SPDX-License-Identifier: MIT */
/*
 * Calls of reductions in a fixed order: counts in memory, arguments, modes, workspace, results in
 * the memory of the backend, graphs.
 */
#include "fixed_calls.h"

#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

/* ---- the number of elements in memory ---- */

static void counts(int i)
{
	enum { N = 20000 };
	static const uint64_t values[] = {0, 1, 7, N - 1, N, N + 1, (uint64_t)1 << 32, UINT64_MAX};
	uint64_t seed = test_seed("counts");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host_x = test_malloc(N * 16), *host_y = test_malloc(N * 16), *x, *y;
	uint64_t *count;

	(void)i;
	count = test_alloc(ctx, sizeof(*count));
	for (size_t t = 0; t < COUNT(types); t++) {
		fill(types[t], TAME, N, host_x, &seed);
		fill(types[t], TAME, N, host_y, &seed);
		x = test_upload(ctx, host_x, N * 16);
		y = test_upload(ctx, host_y, N * 16);
		for (size_t v = 0; v < COUNT(values); v++) {
			ck_assert_cua(cua_copy(ctx, count, &values[v], sizeof(values[v])));
			ck_assert_cua(cua_context_synchronize(ctx));
			for (int op = FIRST_OP; op <= LAST_OP; op++) {
				struct model_call c = {
					(enum cua_reduce_op)op,        types[t], (enum cua_type)0,
					values[v] < N ? values[v] : N, host_x,   host_y};
				union model_result expected, got;
				struct cua_reduce_options o = fixed();

				if (!model_has(c.op, c.type))
					continue;
				expected = model_reduce(&c);
				o.count = count;
				for (int fast = 0; fast < 2; fast++) {
					o.mode = fast ? CUA_REDUCE_FAST : CUA_REDUCE_FIXED;
					o.blocks = (uint32_t)(test_random(&seed) % 5);
					ck_assert_cua(cua_reduce(ctx, &o, c.op, c.type, N, x,
								 has_second(c.op) ? y : NULL,
								 &got));
					if (!fast ||
					    (model_is_integer(c.type) && !model_is_variance(c.op)))
						expect_bits(&got, &expected, &c,
							    "a number in memory");
				}
			}
		}
		test_free(ctx, x);
		test_free(ctx, y);
	}
	/* a count of 0 without arrays */
	{
		struct cua_reduce_options o = fixed();
		uint64_t sum = 77;

		o.count = count;
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U64, 0, NULL, NULL, &sum));
		ck_assert_uint_eq(sum, 0);
	}
	test_free(ctx, count);
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}

/* With FAST's additional finishes. */
static void counts_of_finishes(int i)
{
	enum { N = 5000 };
	uint64_t seed = test_seed("counts of finishes"), host[N], *x, *count, got = 0;
	struct cua_context *ctx = test_context(TEST_BACKEND);

	(void)i;
	fill(CUA_U64, ANY, N, host, &seed);
	x = test_upload(ctx, host, sizeof(host));
	for (int finish = CUA_FINISH_AUTO; finish <= CUA_FINISH_ORDERED_LOCK; finish++) {
		uint64_t n = finish == CUA_FINISH_LOCK ? N + 1 : test_random(&seed) % N;
		struct model_call c = {CUA_REDUCE_SUM, CUA_U64, (enum cua_type)0,
				       n < N ? n : N,  host,    NULL};
		struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;

		count = test_upload(ctx, &n, sizeof(n));
		o.finish = (enum cua_finish_mode)finish;
		o.count = count;
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U64, N, x, NULL, &got));
		ck_assert_uint_eq(got, model_reduce(&c).u64);
		c.op = CUA_REDUCE_MIN;
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_MIN, CUA_U64, N, x, NULL, &got));
		ck_assert_uint_eq(got, model_reduce(&c).u64);
		test_free(ctx, count);
	}
	test_free(ctx, x);
	cua_context_destroy(ctx);
}

/* ---- arguments ---- */

static void arguments(int i)
{
	const union model_result untouched = {.words = {0x123456789abcdef0, 0x0fedcba987654321}};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	double *x = test_upload(ctx, host, sizeof(host)), *y = test_upload(ctx, host, sizeof(host));
	uint64_t *count = test_upload(ctx, &(uint64_t[]){2, 3}, 2 * sizeof(uint64_t));
	struct cua_reduce_options o = fixed();
	union model_result r = untouched;
	size_t bytes = 77;

	(void)i;
#define REFUSED(expected, op, type, n, x, y, result)                                               \
	do {                                                                                       \
		ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_##op, type, n, x, y, result),      \
				 expected);                                                        \
		ck_assert(memcmp(&r, &untouched, sizeof(r)) == 0);                                 \
	} while (0)
	REFUSED(CUA_ERROR_NULL, MEAN, CUA_F64, 4, NULL, NULL, &r);
	REFUSED(CUA_ERROR_NULL, DOT_CONJ, CUA_F64, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_NULL, NORM2, CUA_F64, 4, x, NULL, NULL);
	REFUSED(CUA_ERROR_VALUE, SUM_SQUARES, CUA_F64, 4, x, y, &r);
	REFUSED(CUA_ERROR_VALUE, ARGMIN, CUA_F64, 4, x, x, &r);
	REFUSED(CUA_ERROR_SIZE, SUM, CUA_COMPLEX_F64, SIZE_MAX / 16, x, NULL, &r);
	REFUSED(CUA_ERROR_SIZE, SUM, CUA_F16, SIZE_MAX / 2, x, NULL, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_F16, 4, (char *)x + 1, NULL, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_COMPLEX_F64, 2, (char *)x + 8, NULL, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, DOT, CUA_COMPLEX_F32, 2, x, (char *)y + 4, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_F16, 4, x, NULL, (char *)&r + 1);
	REFUSED(CUA_ERROR_ALIGNMENT, ARGMAX, CUA_F16, 4, x, NULL, (char *)&r + 4);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_COMPLEX_F64, 2, x, NULL, (char *)&r + 8);
	REFUSED(CUA_ERROR_OVERLAP, SUM, CUA_COMPLEX_F64, 4, x, NULL, x + 6);
	REFUSED(CUA_ERROR_OVERLAP, DOT_CONJ, CUA_F64, 4, x, y, y + 3);
	REFUSED(CUA_ERROR_OVERLAP, COUNT, CUA_F16, 5, x, NULL, x + 1);
	o.count = (const uint64_t *)(const void *)((const char *)count + 4);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_F64, 4, x, NULL, &r);
	o.count = count;
	REFUSED(CUA_ERROR_OVERLAP, SUM, CUA_F64, 4, x, NULL, count);
	REFUSED(CUA_ERROR_OVERLAP, SUM, CUA_F32, 4, x, NULL, (char *)count + 4);
	ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, count + 1));
	test_download(ctx, host, count, 16);
	ck_assert(host[1] == 3);
	/* a struct_size before mode, result_type and count, as no release had */
	o.struct_size = offsetof(struct cua_reduce_options, mode);
	REFUSED(CUA_ERROR_VALUE, SUM, CUA_F64, 4, x, NULL, &r);
	ck_assert_status(cua_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, &bytes),
			 CUA_ERROR_VALUE);
	o.struct_size = sizeof(o);
	ck_assert_cua(cua_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, &bytes));
	ck_assert_uint_ne(bytes, 77);
	o = fixed();
	ck_assert_status(cua_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_reduce_workspace(NULL, &o, CUA_REDUCE_SUM, CUA_F64, 4, &bytes),
			 CUA_ERROR_NULL);
#if TEST_CUDA
	{
		/* a count in memory that the device cannot access */
		struct cua_context *cpu = test_context(CUA_BACKEND_CPU);

		o.count = count;
		ck_assert_status(cua_reduce(cpu, &o, CUA_REDUCE_SUM, CUA_F64, 4, host, NULL, &r),
				 CUA_ERROR_MEMORY_KIND);
		cua_context_destroy(cpu);
	}
#endif
	test_free(ctx, x);
	test_free(ctx, y);
	test_free(ctx, count);
	cua_context_destroy(ctx);
}

/* The finishes that each mode accepts. */
static void modes(int i)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char host[64] = {0};
	void *x = test_upload(ctx, host, sizeof(host));

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		for (int op = FIRST_OP; op <= LAST_OP; op++) {
			for (int finish = CUA_FINISH_AUTO; finish <= CUA_FINISH_ORDERED_LOCK;
			     finish++) {
				for (int k = 0; k < 4; k++) {
					enum cua_type type = types[t];
					int half = type == CUA_F16 || type == CUA_BF16;
					int plain = op <= CUA_REDUCE_DOT && !half &&
						    !model_is_complex(type);
					union model_result r = {.words = {1, 1}};
					struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
					enum cua_status expected = CUA_OK;
					size_t bytes;

					if (!model_has((enum cua_reduce_op)op, type))
						continue;
					/* AUTO, FAST, FIXED, and FAST with a wider result */
					o.mode = k == 3 ? CUA_REDUCE_FAST : (enum cua_reduce_mode)k;
					o.finish = (enum cua_finish_mode)finish;
					if (k == 3) {
						if (type != CUA_F32 ||
						    (op != CUA_REDUCE_SUM && op != CUA_REDUCE_DOT))
							continue;
						o.result_type = CUA_F64;
					}
					if (finish > CUA_FINISH_LAST_BLOCK && (k >= 2 || !plain))
						expected = CUA_ERROR_UNSUPPORTED;
					ck_assert_status(
						cua_reduce(
							ctx, &o, (enum cua_reduce_op)op, type, 2, x,
							has_second((enum cua_reduce_op)op) ? x
											   : NULL,
							&r),
						expected);
					ck_assert((r.words[0] == 1 && r.words[1] == 1) ==
						  (expected != CUA_OK));
					ck_assert_status(cua_reduce_workspace(
								 ctx, &o, (enum cua_reduce_op)op,
								 type, 2, &bytes),
							 expected);
				}
			}
		}
	}
	for (int mode = -1; mode < 6; mode += mode == -1 ? 5 : 1) {
		struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
		double r = 77;

		o.mode = (enum cua_reduce_mode)mode;
		ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 2, x, NULL, &r),
				 CUA_ERROR_VALUE);
		ck_assert(r == 77);
	}
	test_free(ctx, x);
	cua_context_destroy(ctx);
}

static void workspace(int i)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_reduce_options o = fixed();
	uint64_t count;

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		for (int op = FIRST_OP; op <= LAST_OP; op++) {
			size_t last = 0, bytes, counted,
			       chunk = 64 * 32 * 16 / cua_type_size(types[t]);

			if (!model_has((enum cua_reduce_op)op, types[t]))
				continue;
			/*
			 * at most 2048 partial results of at most 24 bytes, for any number of
			 * elements
			 */
			for (size_t n = 0; n < SIZE_MAX / 64; n = n * 5 + 3) {
				o.count = NULL;
				ck_assert_cua(cua_reduce_workspace(ctx, &o, (enum cua_reduce_op)op,
								   types[t], n, &bytes));
				ck_assert_uint_le(bytes, 2048 * 24 + 1024);
				/* a sum of floats needs a partial result for each chunk */
				if (n <= 2048 * chunk && op == CUA_REDUCE_SUM &&
				    types[t] == CUA_F32)
					ck_assert_uint_ge(bytes, (n / chunk + 1) * 8);
				/* a smaller count may need more bytes */
				o.count = &count;
				ck_assert_cua(cua_reduce_workspace(ctx, &o, (enum cua_reduce_op)op,
								   types[t], n, &counted));
				ck_assert_uint_ge(counted, bytes);
				ck_assert_uint_ge(counted, last);
				last = counted;
			}
		}
	}
	cua_context_destroy(ctx);
}

/* Adjacent results in the backend's memory, of every operation and type. */
static void results_in_place(int i)
{
	enum { N = 9001 };
	uint64_t seed = test_seed("results in place");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host = test_malloc(N * 16), *x;
	union model_result *results, got[LAST_OP + 2];

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		struct model_call c = {CUA_REDUCE_SUM, types[t], (enum cua_type)0, N, host, host};
		struct cua_reduce_options o = fixed();

		fill(types[t], TAME, N, host, &seed);
		x = test_upload(ctx, host, N * 16);
		memset(got, 0x5a, sizeof(got));
		results = test_upload(ctx, got, sizeof(got));
		for (int op = FIRST_OP; op <= LAST_OP; op++)
			if (model_has((enum cua_reduce_op)op, types[t]))
				ck_assert_cua(
					cua_reduce(ctx, &o, (enum cua_reduce_op)op, types[t], N, x,
						   has_second((enum cua_reduce_op)op) ? x : NULL,
						   &results[op]));
		test_download(ctx, got, results, sizeof(got));
		for (int op = 0; op <= LAST_OP + 1; op++) {
			size_t written = 0;
			union model_result expected;

			c.op = (enum cua_reduce_op)op;
			if (op >= FIRST_OP && op <= LAST_OP && model_has(c.op, c.type)) {
				expected = model_reduce(&c);
				expect_bits(&got[op], &expected, &c, "in the backend's memory");
				written = cua_type_size(model_default_result(c.op, c.type));
			}
			for (size_t k = written; k < sizeof(got[op]); k++)
				ck_assert_uint_eq(((unsigned char *)&got[op])[k], 0x5a);
		}
		test_free(ctx, x);
		test_free(ctx, results);
	}
	free(host);
	cua_context_destroy(ctx);
}

#if TEST_CUDA
/* A graph of calls, replayed with other elements and another count. */
static void graphs(int i)
{
	enum { N = 300007 };
	static const struct {
		enum cua_reduce_op op;
		enum cua_type type;
	} calls[] = {
		{CUA_REDUCE_SUM, CUA_F32},      {CUA_REDUCE_DOT_CONJ, CUA_COMPLEX_F32},
		{CUA_REDUCE_MEAN, CUA_I64},     {CUA_REDUCE_ARGMIN, CUA_F16},
		{CUA_REDUCE_VARIANCE, CUA_F32}, {CUA_REDUCE_NORM2, CUA_F64},
		{CUA_REDUCE_PRODUCT, CUA_U32},
	};
	uint64_t seed = test_seed("graphs"), n = N, *count;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host = test_malloc(N * 8), *x;
	union model_result *results, got[COUNT(calls)], here;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t nodes = 0, bytes;
	struct cua_reduce_options o = fixed();

	(void)i;
	fill(CUA_F32, TAME, 2 * N, host, &seed);
	x = test_upload(ctx, host, N * 8);
	count = test_upload(ctx, &n, sizeof(n));
	memset(got, 0, sizeof(got));
	results = test_upload(ctx, got, sizeof(got));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)stream));
	o.count = count;
	for (size_t k = 0; k < COUNT(calls); k++) {
		ck_assert_cua(cua_reduce_workspace(ctx, &o, calls[k].op, calls[k].type, N, &bytes));
		ck_assert_cua(cua_context_reserve(ctx, bytes));
	}
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (size_t k = 0; k < COUNT(calls); k++)
		ck_assert_cua(cua_reduce(ctx, &o, calls[k].op, calls[k].type, N, x,
					 has_second(calls[k].op) ? x : NULL, &results[k]));
	/* a result in ordinary memory would have to wait */
	ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, x, NULL, &here),
			 CUA_ERROR_CAPTURE);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	/* a single kernel for each call */
	ck_assert_cuda(cudaGraphGetNodes(graph, NULL, &nodes));
	ck_assert_uint_eq(nodes, COUNT(calls));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 4; round++) {
		fill(CUA_F32, TAME, 2 * N, host, &seed);
		n = round ? test_random(&seed) % N : N;
		ck_assert_cua(cua_copy(ctx, x, host, N * 8));
		ck_assert_cua(cua_copy(ctx, count, &n, sizeof(n)));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		test_download(ctx, got, results, sizeof(got));
		for (size_t k = 0; k < COUNT(calls); k++) {
			struct model_call c = {calls[k].op, calls[k].type, (enum cua_type)0,
					       n,           host,          host};
			union model_result expected = model_reduce(&c);

			expect_bits(&got[k], &expected, &c, "a graph");
		}
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cua(cua_context_set_stream(ctx, NULL));
	ck_assert_cuda(cudaStreamDestroy(stream));
	test_free(ctx, x);
	test_free(ctx, count);
	test_free(ctx, results);
	free(host);
	cua_context_destroy(ctx);
}
#endif

static const struct fixed_test tests[] = {
	{counts, 1}, {counts_of_finishes, 1}, {arguments, 1},
	{modes, 1},  {workspace, 1},          {results_in_place, 1},
#if TEST_CUDA
	{graphs, 1},
#endif
};

int main(void)
{
	return fixed_run("fixed_calls", tests, COUNT(tests));
}
