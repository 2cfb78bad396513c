/* SPDX-License-Identifier: MIT */
/*
 * The chained table inside kernels, its bulk calls in graphs, and the time at the size of the
 * textbook.
 */
#include "device.h"

static uint64_t *device_zeros(size_t n)
{
	uint64_t *p = NULL;

	ck_assert_cuda(cudaMalloc((void **)&p, n * sizeof(*p)));
	ck_assert_cuda(cudaMemset(p, 0, n * sizeof(*p)));
	return p;
}

static struct cua_chained *new_table(struct cua_context *ctx, uint64_t buckets, uint64_t capacity)
{
	struct cua_chained *table = NULL;

	ck_assert_cua(cua_chained_create(ctx, NULL, buckets, capacity, &table));
	return table;
}

static struct cua_chained_view view_of(struct cua_chained *table)
{
	struct cua_chained_view view;

	ck_assert_cua(cua_chained_get_view(table, &view));
	return view;
}

static void verify(struct cua_chained *table, uint64_t entries)
{
	struct cua_chained_report report = CUA_CHAINED_REPORT_INIT;

	ck_assert_cua(cua_chained_verify(table, &report));
	ck_assert_uint_eq(report.entries, entries);
	ck_assert_uint_eq(report.reached, entries);
}

/* ---- lanes ---- */

enum { STORED, WRONG, COUNTERS };
enum way { INSERT, PUSH, BUILD, WAYS };

static __device__ int add(const struct cua_chained_view *view, enum way way, uint64_t key,
			  uint64_t value)
{
	return way == INSERT ? cua_chained_insert(view, key, value)
	       : way == PUSH ? cua_chained_push(view, key, value)
			     : cua_chained_build(view, key, value);
}

/*
 * Thread t adds (key, t * each + j) for each j below `each`. Lanes add together or in two diverged
 * halves, and search while other lanes insert or push.
 */
static __global__ void add_lanes(struct cua_chained_view view, enum way way, unsigned each,
				 uint64_t n_keys, uint64_t *counters)
{
	uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	unsigned stored = 0, wrong = 0;

	for (unsigned j = 0; j < each; j++) {
		uint64_t id = thread * each + j, key = id % n_keys, value = 0;
		int done;

		if (way == PUSH && j % 3 == 1) {
			/* every fifth lane pushes alone */
			int alone = threadIdx.x % 5 == 0;

			done = cua_chained_push_warp(&view, 0xffffffffu, !alone, key, id);
			if (alone) {
				wrong += done;
				done = cua_chained_push(&view, key, id);
			}
		} else if (j % 3 == 0) {
			done = add(&view, way, key, id);
		} else if ((threadIdx.x + j) % 3 == 0) {
			done = add(&view, way, key, id);
		} else {
			done = add(&view, way, key, id);
		}
		stored += done;
		if (way == BUILD)
			continue;
		if (cua_chained_find(&view, key, &value))
			wrong += value % n_keys != key;
		else
			wrong += done;
		wrong += cua_chained_find(&view, n_keys + id, &value);
		if (j == 5 && threadIdx.x % 32 == 7) {
			/* the own value is in the list */
			unsigned seen = 0;

			for (uint64_t i = cua_chained_first(&view, key); i != CUA_CHAINED_NONE;
			     i = cua_chained_next(&view, i)) {
				seen += cua_chained_value(&view, i) == id;
				wrong += cua_chained_value(&view, i) % n_keys != key;
			}
			wrong += seen != (unsigned)done;
		}
	}
	cua_port_add_u64(&counters[STORED], stored, CUA_RELAXED, CUA_SCOPE_DEVICE,
			 CUA_SPACE_GLOBAL);
	cua_port_add_u64(&counters[WRONG], wrong, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

START_TEST(test_lanes)
{
	static const uint64_t buckets[] = {1, 3, 1000};
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA),
			   *cpu = test_context(CUA_BACKEND_CPU);
	const unsigned blocks = test_quick() ? 4 : 64, threads = test_quick() ? 64 : 96, each = 6;
	const uint64_t n = (uint64_t)blocks * threads * each;

	for (int b = 0; b < 3; b++)
		for (int c = 0; c < 2 * WAYS; c++) {
			int small = c & 1;
			uint64_t capacity = small ? n - n / 3 : n, counters[COUNTERS], demand = 0,
				 found = 0;
			uint64_t n_keys = buckets[b] == 1000 ? 1500 : 40;
			struct cua_chained *table = new_table(ctx, buckets[b], capacity),
					   *host = NULL;
			struct cua_chained_view view = view_of(table);
			uint64_t *device = device_zeros(COUNTERS);
			uint8_t *seen = (uint8_t *)calloc(n, 1);

			ck_assert_ptr_nonnull(seen);
			add_lanes<<<blocks, threads>>>(view, (enum way)(c / 2), each, n_keys,
						       device);
			finish_kernel();
			ck_assert_cuda(cudaMemcpy(counters, device, sizeof(counters),
						  cudaMemcpyDeviceToHost));
			ck_assert_uint_eq(counters[WRONG], 0);
			ck_assert_uint_eq(counters[STORED], capacity);
			ck_assert_cua(cua_chained_demand(table, &demand));
			ck_assert_uint_eq(demand, n);
			ck_assert_status(cua_chained_status(table),
					 small ? CUA_ERROR_FULL : CUA_OK);
			verify(table, capacity);
			/* every stored value occurs once; the host reads a copy */
			ck_assert_cua(cua_chained_copy(table, cpu, &host));
			verify(host, capacity);
			view = view_of(host);
			for (uint64_t key = 0; key < n_keys; key++)
				for (uint64_t i = cua_chained_first(&view, key);
				     i != CUA_CHAINED_NONE; i = cua_chained_next(&view, i)) {
					uint64_t id = cua_chained_value(&view, i);

					ck_assert(id < n && id % n_keys == key && !seen[id]);
					seen[id] = 1;
					found++;
				}
			ck_assert_uint_eq(found, capacity);
			free(seen);
			ck_assert_cuda(cudaFree(device));
			ck_assert_cua(cua_chained_destroy(table));
			ck_assert_cua(cua_chained_destroy(host));
		}
	cua_context_destroy(ctx);
	cua_context_destroy(cpu);
}
END_TEST

/* ---- graphs ---- */

START_TEST(test_graph)
{
	enum { N = 5000, KEYS = 300 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_chained *table = new_table(ctx, 64, N);
	struct cua_chained *other = NULL;
	uint64_t *keys = device_zeros(N), *values = device_zeros(N), *got = device_zeros(N);
	uint64_t *counts = device_zeros(KEYS), *some = device_zeros(N), *results = device_zeros(3);
	uint8_t *found = (uint8_t *)device_zeros(N / 8);
	uint64_t host[N], host_counts[KEYS], expected[KEYS], host_results[3], on_host = 77;
	enum cua_status refused[5];
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int replays = test_quick() ? 2 : 10;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaDeviceSynchronize());
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cua(cua_chained_clear(table));
	ck_assert_cua(cua_chained_insert_n(table, N - 2000, keys, values));
	ck_assert_cua(cua_chained_build_n(table, 1999, keys + N - 2000, values + N - 2000));
	ck_assert_cua(cua_chained_insert_n(table, 1, keys + N - 1, values + N - 1));
	ck_assert_cua(cua_chained_find_n(table, N, keys, got, found));
	ck_assert_cua(cua_chained_count_n(table, KEYS, values, counts));
	ck_assert_cua(cua_chained_values(table, 0, N, some, results));
	ck_assert_cua(cua_chained_size(table, results + 1));
	ck_assert_cua(cua_chained_demand(table, results + 2));
	/* a call that would have to wait: refused, and the capture continues */
	refused[0] = cua_chained_status(table);
	refused[1] = cua_chained_size(table, &on_host);
	refused[2] = cua_chained_verify(table, NULL);
	refused[3] = cua_chained_copy(table, ctx, &other);
	refused[4] = cua_chained_destroy(table);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	for (int i = 0; i < 5; i++)
		ck_assert_status(refused[i], CUA_ERROR_CAPTURE);
	ck_assert_uint_eq(on_host, 77);
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < replays; replay++) {
		memset(expected, 0, sizeof(expected));
		for (int i = 0; i < N; i++) {
			host[i] = (uint64_t)(i * 7 + replay * i) % KEYS;
			expected[host[i]]++;
		}
		ck_assert_cuda(cudaMemcpy(keys, host, sizeof(host), cudaMemcpyHostToDevice));
		/* the values are 0 .. N - 1: the first values are also the keys to count */
		for (int i = 0; i < N; i++)
			host[i] = (uint64_t)i;
		ck_assert_cuda(cudaMemcpy(values, host, sizeof(host), cudaMemcpyHostToDevice));
		ck_assert_cuda(cudaDeviceSynchronize());
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		ck_assert_cuda(cudaMemcpy(host_counts, counts, sizeof(host_counts),
					  cudaMemcpyDeviceToHost));
		ck_assert_cuda(cudaMemcpy(host_results, results, sizeof(host_results),
					  cudaMemcpyDeviceToHost));
		ck_assert_mem_eq(host_counts, expected, sizeof(expected));
		ck_assert_uint_eq(host_results[0], expected[0]);
		ck_assert_uint_eq(host_results[1], N);
		ck_assert_uint_eq(host_results[2], N);
		ck_assert_cuda(cudaMemcpy(host, got, sizeof(host), cudaMemcpyDeviceToHost));
		for (int i = 0; i < N; i++)
			ck_assert(host[i] < N &&
				  (host[i] * 7 + (uint64_t)replay * host[i]) % KEYS ==
					  (uint64_t)(i * 7 + replay * i) % KEYS);
		verify(table, N);
		ck_assert_cua(cua_chained_status(table));
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cua(cua_chained_destroy(table));
	ck_assert_cuda(cudaFree(keys));
	ck_assert_cuda(cudaFree(values));
	ck_assert_cuda(cudaFree(got));
	ck_assert_cuda(cudaFree(counts));
	ck_assert_cuda(cudaFree(some));
	ck_assert_cuda(cudaFree(results));
	ck_assert_cuda(cudaFree(found));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/* ---- the textbook's size ---- */

static __global__ void random_keys(uint64_t *keys, uint64_t n, uint64_t distinct)
{
	uint64_t step = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		uint64_t random = cua_hash_u64(i, 12345);

		keys[i] = distinct ? random % distinct : random & 0xffffffff;
	}
}

START_TEST(test_time)
{
	static const struct {
		uint64_t buckets, distinct;
		const char *what;
	} runs[] = {
		{1024, 0, "random keys, 1024 buckets"},   {5000, 0, "random keys, 5000 buckets"},
		{30000, 0, "random keys, 30000 buckets"}, {1 << 20, 0, "random keys, 1 Mi buckets"},
		{1 << 20, 1, "one key, 1 Mi buckets"},    {1 << 20, 2, "two keys, 1 Mi buckets"},
		{1, 0, "random keys, 1 bucket"},
	};
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const uint64_t n = test_quick() ? 20000 : 26214400;
	uint64_t *keys = device_zeros(n);
	cudaEvent_t start, stop;

	ck_assert_cuda(cudaEventCreate(&start));
	ck_assert_cuda(cudaEventCreate(&stop));
	for (unsigned c = 0; c < 2 * sizeof(runs) / sizeof(runs[0]); c++) {
		unsigned r = c / 2, build = c % 2;
		struct cua_chained *table = new_table(ctx, runs[r].buckets, n);
		float ms = 0, best = 1e30f;

		random_keys<<<256, 256>>>(keys, n, runs[r].distinct);
		finish_kernel();
		for (int i = 0; i < (test_quick() ? 1 : 5); i++) {
			ck_assert_cua(cua_chained_clear(table));
			ck_assert_cuda(cudaEventRecord(start, 0));
			ck_assert_cua((build ? cua_chained_build_n
					     : cua_chained_insert_n)(table, n, keys, keys));
			ck_assert_cuda(cudaEventRecord(stop, 0));
			ck_assert_cuda(cudaEventSynchronize(stop));
			ck_assert_cuda(cudaEventElapsedTime(&ms, start, stop));
			best = ms < best ? ms : best;
		}
		printf("%s of %llu pairs, %s: %.3f ms, %.3f Gkeys/s\n", build ? "build" : "insert",
		       (unsigned long long)n, runs[r].what, best, (double)n / best / 1e6);
		ck_assert_cua(cua_chained_status(table));
		ck_assert_cuda(cudaEventRecord(start, 0));
		verify(table, n);
		ck_assert_cuda(cudaEventRecord(stop, 0));
		ck_assert_cuda(cudaEventSynchronize(stop));
		ck_assert_cuda(cudaEventElapsedTime(&ms, start, stop));
		printf("  verify: %.1f ms\n", ms);
		if (runs[r].distinct) {
			uint64_t *count = device_zeros(1), host = 0;

			ck_assert_cua(cua_chained_count_n(table, 1, keys, count));
			test_download(ctx, &host, count, sizeof(host));
			ck_assert(runs[r].distinct == 1 ? host == n : host > 0 && host < n);
			ck_assert_cuda(cudaFree(count));
		}
		ck_assert_cua(cua_chained_destroy(table));
		fflush(stdout);
	}
	ck_assert_cuda(cudaEventDestroy(start));
	ck_assert_cuda(cudaEventDestroy(stop));
	ck_assert_cuda(cudaFree(keys));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("device_chained");
	TCase *tc = tcase_create("device_chained");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_lanes);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_time);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
