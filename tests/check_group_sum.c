/* SPDX-License-Identifier: MIT */
/*
 * Sums of arrays of 1 to 8 ranks: numbers that wrap, arrays of all lengths, ranks in threads with a
 * transport, errors that all ranks return, and transports that fail.
 */
#include "group_ranks.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An element before each array and one after it must stay as they are. */
static const enum cua_type types[] = {CUA_I32, CUA_U32, CUA_I64, CUA_U64};

struct sums {
	uint32_t size;
	enum cua_type type;
	size_t n, bytes; /* with the elements around the array */
	char *elements[MOST_RANKS], *expected;
	char *device[MOST_RANKS]; /* memory of the contexts */
	void *x[MOST_RANKS];
};

static void make(struct sums *s, struct cua_context **contexts, uint32_t size, enum cua_type type,
		 size_t n, uint64_t *seed)
{
	const size_t each = cua_type_size(type);

	memset(s, 0, sizeof(*s));
	s->size = size;
	s->type = type;
	s->n = n;
	s->bytes = (n + 2) * each;
	s->expected = test_malloc(s->bytes);
	memset(s->expected, 0, s->bytes);
	for (uint32_t r = 0; r < size; r++) {
		s->elements[r] = test_malloc(s->bytes);
		for (size_t i = 0; i < n + 2; i++) {
			uint64_t sum = 0, number = test_random(seed);

			memcpy(s->elements[r] + i * each, &number, each);
			memcpy(&sum, s->expected + i * each, each);
			sum += number;
			memcpy(s->expected + i * each, &sum, each);
		}
		s->device[r] = test_upload(contexts[r], s->elements[r], s->bytes);
		s->x[r] = s->device[r] + each;
	}
}

/* Each rank has the sums, or, after a refused call, its own elements. */
static void expect(struct sums *s, struct cua_context **contexts, int is_summed)
{
	const size_t each = cua_type_size(s->type);
	char *got = test_malloc(s->bytes);

	for (uint32_t r = 0; r < s->size; r++) {
		test_download(contexts[r], got, s->device[r], s->bytes);
		if (is_summed)
			memcpy(s->elements[r] + each, s->expected + each, s->n * each);
		if (memcmp(got, s->elements[r], s->bytes))
			ck_abort_msg("rank %u of %u: type %d, %zu elements", (unsigned)r,
				     (unsigned)s->size, (int)s->type, s->n);
	}
	free(got);
}

static void release(struct sums *s, struct cua_context **contexts)
{
	for (uint32_t r = 0; r < s->size; r++) {
		free(s->elements[r]);
		test_free(contexts[r], s->device[r]);
	}
	free(s->expected);
}

static struct cua_group *open_ranks(struct cua_context **contexts, uint32_t size)
{
	struct cua_group *group;

	for (uint32_t r = 0; r < size; r++)
		contexts[r] = rank_context(r);
	ck_assert_cua(cua_group_create_devices(size, contexts, &group));
	return group;
}

static void close_ranks(struct cua_group *group, struct cua_context **contexts, uint32_t size)
{
	cua_group_destroy(group);
	for (uint32_t r = 0; r < size; r++)
		rank_context_destroy(contexts[r]);
}

/* ---- ranks of a process ---- */

/* On a GPU, arrays up to 48 000 bytes and longer arrays have different paths. */
static size_t some_length(uint64_t *seed)
{
	static const size_t lengths[] = {0, 1, 3, 1000, 5999, 6000, 6001, 12000, 12001};
	const uint64_t k = test_random(seed);

	return k % 2 ? lengths[k / 2 % COUNT(lengths)] : test_random(seed) % 60000;
}

START_TEST(results)
{
	uint64_t seed = test_seed("results");
	const uint32_t size = sizes[_i];
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *group = open_ranks(contexts, size);
	struct sums s;

	for (int round = 0; round < (test_traced() ? 6 : test_scale(12, 40, 200)); round++) {
		make(&s, contexts, size, types[test_random(&seed) % COUNT(types)],
		     some_length(&seed), &seed);
		ck_assert_cua(cua_group_sum(group, s.type, s.n, s.x));
		expect(&s, contexts, 1);
		release(&s, contexts);
	}
	close_ranks(group, contexts, size);
}
END_TEST

/* On a GPU, arrays of several windows of 32 MiB, and the end of a window. */
START_TEST(long_arrays)
{
	static const size_t lengths[] = {((size_t)32 << 20) / 8, ((size_t)64 << 20) / 8 + 3,
					 ((size_t)96 << 20) / 8 + 77};
	uint64_t seed = test_seed("long_arrays");
	const uint32_t size = 2 + (uint32_t)_i;
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *group = open_ranks(contexts, size);
	const int full = test_scale(0, 0, 1) && !test_traced();
	struct sums s;

	for (size_t k = 0; k < (full ? COUNT(lengths) : 1); k++) {
		const enum cua_type type = types[test_random(&seed) % COUNT(types)];

		make(&s, contexts, size, type, full ? lengths[k] * 8 / cua_type_size(type) : 300000,
		     &seed);
		ck_assert_cua(cua_group_sum(group, type, s.n, s.x));
		expect(&s, contexts, 1);
		release(&s, contexts);
	}
	close_ranks(group, contexts, size);
}
END_TEST

/* More ranks than a kernel has sources, and calls in a row with no wait between them. */
START_TEST(many_calls)
{
	uint64_t seed = test_seed("many_calls");
	const uint32_t size = _i ? 3 : MOST_RANKS;
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *group = open_ranks(contexts, size);
	struct sums s[24];

	for (size_t k = 0; k < COUNT(s); k++)
		make(&s[k], contexts, size, CUA_U64, test_random(&seed) % (k % 3 ? 300 : 9000),
		     &seed);
	for (size_t k = 0; k < COUNT(s); k++)
		ck_assert_cua(cua_group_sum(group, CUA_U64, s[k].n, s[k].x));
	for (size_t k = 0; k < COUNT(s); k++) {
		expect(&s[k], contexts, 1);
		release(&s[k], contexts);
	}
	close_ranks(group, contexts, size);
}
END_TEST

/* The counts of each rank's data become the counts of all data. */
START_TEST(counts_of_histograms)
{
	enum { BINS = 256, N = 20000 };
	uint64_t seed = test_seed("counts_of_histograms"), expected[BINS] = {0}, got[BINS];
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *group = open_ranks(contexts, 3);
	uint8_t *data = test_malloc(N);
	void *counts[3], *x;

	for (uint32_t r = 0; r < 3; r++) {
		for (size_t i = 0; i < N; i++) {
			data[i] = (uint8_t)test_random(&seed);
			expected[data[i]]++;
		}
		x = test_upload(contexts[r], data, N);
		counts[r] = test_alloc(contexts[r], sizeof(got));
		ck_assert_cua(cua_histogram_bytes(contexts[r], NULL, N, x, counts[r]));
		ck_assert_cua(cua_context_synchronize(contexts[r]));
		test_free(contexts[r], x);
	}
	ck_assert_cua(cua_group_sum(group, CUA_U64, BINS, counts));
	for (uint32_t r = 0; r < 3; r++) {
		test_download(contexts[r], got, counts[r], sizeof(got));
		ck_assert_mem_eq(got, expected, sizeof(got));
		test_free(contexts[r], counts[r]);
	}
	free(data);
	close_ranks(group, contexts, 3);
}
END_TEST

START_TEST(arguments)
{
	uint64_t seed = test_seed("arguments");
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *group = open_ranks(contexts, 3);
	void *bad[3];
	struct sums s;
	size_t bytes = 77;

	make(&s, contexts, 3, CUA_U64, 1000, &seed);
	ck_assert_status(cua_group_sum(NULL, CUA_U64, 1, s.x), CUA_ERROR_NULL);
	ck_assert_status(cua_group_sum(group, CUA_U64, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_group_sum(group, CUA_F32, 1, s.x), CUA_ERROR_TYPE);
	ck_assert_status(cua_group_sum(group, CUA_U16, 1, s.x), CUA_ERROR_TYPE);
	ck_assert_status(cua_group_sum(group, (enum cua_type)99, 1, s.x), CUA_ERROR_TYPE);
	ck_assert_status(cua_group_sum(group, CUA_U64, SIZE_MAX / 8, s.x), CUA_ERROR_SIZE);
	for (uint32_t r = 0; r < 3; r++) {
		memcpy(bad, s.x, sizeof(bad));
		bad[r] = NULL;
		ck_assert_status(cua_group_sum(group, CUA_U64, s.n, bad), CUA_ERROR_NULL);
		bad[r] = (char *)s.x[r] + 4;
		ck_assert_status(cua_group_sum(group, CUA_U64, s.n, bad), CUA_ERROR_ALIGNMENT);
#if !TEST_CUDA
		bad[r] = (char *)s.x[(r + 1) % 3] + 8;
		ck_assert_status(cua_group_sum(group, CUA_U64, s.n, bad), CUA_ERROR_OVERLAP);
#endif
	}
	expect(&s, contexts, 0);
	memset(bad, 0, sizeof(bad));
	ck_assert_cua(cua_group_sum(group, CUA_U64, 0, bad));
	ck_assert_status(cua_group_sum_workspace(NULL, CUA_U64, 1, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_group_sum_workspace(group, CUA_U64, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_group_sum_workspace(group, CUA_F64, 1, &bytes), CUA_ERROR_TYPE);
	ck_assert_status(cua_group_sum_workspace(group, CUA_U64, SIZE_MAX, &bytes), CUA_ERROR_SIZE);
	ck_assert_uint_eq(bytes, 77);
	ck_assert_cua(cua_group_sum_workspace(group, CUA_U64, SIZE_MAX / 16, &bytes));
	ck_assert_uint_le(bytes, (size_t)96 << 20);
	release(&s, contexts);
	close_ranks(group, contexts, 3);
}
END_TEST

/* ---- a rank in each thread ---- */

struct crowd {
	struct thread_hub *hub;
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *groups[MOST_RANKS];
	struct sums sums;
	/* of each rank's call */
	enum cua_type type[MOST_RANKS];
	size_t n[MOST_RANKS];
	void *x[MOST_RANKS];
	enum cua_status status[MOST_RANKS];
};

/* Bit r of by_exchange: rank r has no sum_u64. On a GPU, every third rank is on the CPU. */
static struct crowd *crowd_open(uint32_t size, unsigned by_exchange)
{
	struct crowd *c = test_malloc(sizeof(*c));

	memset(c, 0, sizeof(*c));
	c->hub = thread_hub_create(size);
	for (uint32_t r = 0; r < size; r++) {
		struct cua_transport t = thread_transport(c->hub, r);

		if (by_exchange >> r & 1)
			t.sum_u64 = NULL;
		c->contexts[r] = r % 3 == 2 ? test_context(CUA_BACKEND_CPU) : rank_context(r);
		ck_assert_cua(cua_group_create(c->contexts[r], &t, &c->groups[r]));
	}
	return c;
}

static void crowd_close(struct crowd *c, uint32_t size)
{
	for (uint32_t r = 0; r < size; r++) {
		cua_group_destroy(c->groups[r]);
		rank_context_destroy(c->contexts[r]);
	}
	thread_hub_destroy(c->hub);
	free(c);
}

static void crowd_make(struct crowd *c, uint32_t size, enum cua_type type, size_t n, uint64_t *seed)
{
	make(&c->sums, c->contexts, size, type, n, seed);
	for (uint32_t r = 0; r < size; r++) {
		c->type[r] = type;
		c->n[r] = n;
		c->x[r] = c->sums.x[r];
	}
}

static void sum_alone(void *arg, uint32_t rank)
{
	struct crowd *c = arg;

	c->status[rank] = cua_group_sum(c->groups[rank], c->type[rank], c->n[rank], &c->x[rank]);
}

START_TEST(threads)
{
	uint64_t seed = test_seed("threads");
	const uint32_t size = sizes[_i / 2];
	struct crowd *c = crowd_open(size, _i % 2 ? ~0u : 0);

	for (int round = 0; round < (test_traced() || SANITIZED ? 4 : test_scale(6, 20, 100));
	     round++) {
		crowd_make(c, size, types[test_random(&seed) % COUNT(types)], some_length(&seed),
			   &seed);
		thread_ranks(size, sum_alone, c);
		for (uint32_t r = 0; r < size; r++)
			ck_assert_cua(c->status[r]);
		expect(&c->sums, c->contexts, 1);
		release(&c->sums, c->contexts);
	}
	/* in three parts, of 256 Ki numbers at most */
	crowd_make(c, size, types[test_random(&seed) % COUNT(types)], test_traced() ? 9 : 600000,
		   &seed);
	thread_ranks(size, sum_alone, c);
	for (uint32_t r = 0; r < size; r++)
		ck_assert_cua(c->status[r]);
	expect(&c->sums, c->contexts, 1);
	release(&c->sums, c->contexts);
	crowd_close(c, size);
}
END_TEST

/* All ranks return the error of a rank, or that they differ, and then still work. */
START_TEST(errors_of_threads)
{
	uint64_t seed = test_seed("errors_of_threads");
	struct crowd *c = crowd_open(4, 0);

	for (uint32_t bad = 0; bad < 4; bad++) {
		for (int what = 0; what < 5; what++) {
			crowd_make(c, 4, CUA_U64, 100, &seed);
			if (what == 0)
				c->x[bad] = NULL;
			if (what == 1)
				c->type[bad] = CUA_I64;
			if (what == 2)
				c->n[bad] = 99;
			if (what == 3)
				c->type[bad] = CUA_F64;
			thread_ranks(4, sum_alone, c);
			for (uint32_t r = 0; r < 4; r++)
				ck_assert_status(c->status[r], what == 0   ? CUA_ERROR_NULL
							       : what == 3 ? CUA_ERROR_TYPE
							       : what == 4 ? CUA_OK
									   : CUA_ERROR_VALUE);
			expect(&c->sums, c->contexts, what == 4);
			release(&c->sums, c->contexts);
		}
	}
	crowd_close(c, 4);
	/* sum_u64 on some ranks only */
	c = crowd_open(3, 2);
	crowd_make(c, 3, CUA_U64, 100, &seed);
	thread_ranks(3, sum_alone, c);
	for (uint32_t r = 0; r < 3; r++)
		ck_assert_status(c->status[r], CUA_ERROR_VALUE);
	expect(&c->sums, c->contexts, 0);
	release(&c->sums, c->contexts);
	crowd_close(c, 3);
}
END_TEST

/* Each function of the transport fails once: no rank hangs, and the groups stay broken. */
START_TEST(failing_transports)
{
	uint64_t seed = test_seed("failing_transports");
	const unsigned by_exchange = _i ? ~0u : 0;
	struct crowd *c = crowd_open(3, by_exchange);
	unsigned calls;

	crowd_make(c, 3, CUA_U32, 300000, &seed);
	thread_ranks(3, sum_alone, c);
	calls = thread_transport_calls(c->hub, 0);
	ck_assert_uint_ge(calls, 4);
	release(&c->sums, c->contexts);
	crowd_close(c, 3);
	for (unsigned call = 0; call < calls; call++) {
		c = crowd_open(3, by_exchange);
		crowd_make(c, 3, CUA_U32, 300000, &seed);
		thread_transport_fail(c->hub, call % 3, call);
		for (int again = 0; again < 2; again++) {
			thread_ranks(3, sum_alone, c);
			for (uint32_t r = 0; r < 3; r++) {
				ck_assert_status(c->status[r], CUA_ERROR_SYSTEM);
				ck_assert_uint_eq(thread_transport_aborts(c->hub, r), 1);
			}
		}
		release(&c->sums, c->contexts);
		crowd_close(c, 3);
	}
}
END_TEST

#if TEST_CUDA
/* A capture of the stream of rank 0 has short and long sums of all ranks. */
START_TEST(graphs)
{
	uint64_t seed = test_seed("graphs");
	const uint32_t size = sizes[_i];
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *group = open_ranks(contexts, size);
	cudaStream_t stream = (cudaStream_t)cua_context_stream(contexts[0]);
	struct sums shorter, longer;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t bytes;

	make(&shorter, contexts, size, CUA_U32, 700, &seed);
	make(&longer, contexts, size, CUA_U64, 70000, &seed);
	ck_assert_cua(cua_group_sum_workspace(group, CUA_U64, longer.n, &bytes));
	for (uint32_t r = 0; r < size; r++) {
		ck_assert_cua(cua_context_reserve(contexts[r], bytes));
		ck_assert_cua(cua_context_synchronize(contexts[r]));
	}
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cua(cua_group_sum(group, CUA_U32, shorter.n, shorter.x));
	ck_assert_cua(cua_group_sum(group, CUA_U64, longer.n, longer.x));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	expect(&shorter, contexts, 0);
	ck_assert_cuda(cudaGraphLaunch(exec, stream));
	ck_assert_cuda(cudaStreamSynchronize(stream));
	expect(&shorter, contexts, 1);
	expect(&longer, contexts, 1);
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	release(&shorter, contexts);
	release(&longer, contexts);
	close_ranks(group, contexts, size);
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("group_sum");
	TCase *tc = tcase_create("group_sum");
	const int n = (int)COUNT(sizes);

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, results, 0, n);
	tcase_add_loop_test(tc, long_arrays, 0, 2);
	tcase_add_loop_test(tc, many_calls, 0, 2);
	tcase_add_test(tc, counts_of_histograms);
	tcase_add_test(tc, arguments);
	tcase_add_loop_test(tc, threads, 0, 2 * n);
	tcase_add_test(tc, errors_of_threads);
	tcase_add_loop_test(tc, failing_transports, 0, 2);
#if TEST_CUDA
	tcase_add_loop_test(tc, graphs, 0, n);
#endif
	suite_add_tcase(suite, tc);
	return test_run(suite, TEST_BACKEND);
}
