/* SPDX-License-Identifier: MIT */
/* The multimap inside kernels, and its bulk calls in graphs. */
#include "device.h"

CUA_DEFINE_MULTIMAP(narrow, uint32_t, uint32_t)
CUA_DEFINE_MULTIMAP(wide, uint64_t, uint64_t)

/* ---- lanes ---- */

enum { INSERTED, ERASED, WRONG, COUNTERS };

static __device__ void count(uint64_t *counter, uint64_t n)
{
	cua_port_add_u64(counter, n, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/*
 * Thread t inserts (id % n_keys, id) for id = t * each + j, alone or with its warp, and searches
 * while other threads insert. If `erases` is not 0, one of `erases` lanes erases a key.
 */
#define DEFINE_LANES(name, T)                                                                      \
	static __global__ void name##_lanes(struct cua_multimap_view view, unsigned each,          \
					    unsigned n_keys, unsigned erases, uint64_t *counters)  \
	{                                                                                          \
		uint64_t inserted = 0, erased = 0, wrong = 0;                                      \
                                                                                                   \
		for (unsigned j = 0; j < each; j++) {                                              \
			T id = (T)global_id() * each + j, key = id % n_keys, last;                 \
			int alone = threadIdx.x % 5 == 0, there = 0;                               \
			uint64_t at;                                                               \
                                                                                                   \
			if (j % 2) {                                                               \
				int result =                                                       \
					name##_insert_warp(&view, 0xffffffffu, !alone, key, id);   \
                                                                                                   \
				wrong += result != (alone ? 0 : CUA_MULTIMAP_INSERTED);            \
			}                                                                          \
			if (j % 2 == 0 || alone)                                                   \
				wrong += name##_insert(&view, key, id) != CUA_MULTIMAP_INSERTED;   \
			inserted++;                                                                \
			if (threadIdx.x % 32 != j % 32)                                            \
				continue;                                                          \
			/* the list has the value unless lanes erase; a thread's values descend */ \
			last = ~(T)0;                                                              \
			for (at = name##_first(&view, key); at; at = name##_next(&view, at)) {     \
				T value = name##_value(&view, at);                                 \
                                                                                                   \
				there += value == id;                                              \
				wrong += value % n_keys != key;                                    \
				if (value / each == id / each) {                                   \
					wrong += value >= last;                                    \
					last = value;                                              \
				}                                                                  \
			}                                                                          \
			wrong += there > 1 || (!erases && !there);                                 \
			wrong += name##_contains(&view, (T)(n_keys + id));                         \
			if (erases && (id + j) % erases == 0)                                      \
				erased += name##_erase(&view, (T)((id / erases) % n_keys));        \
		}                                                                                  \
		count(&counters[INSERTED], inserted);                                              \
		count(&counters[ERASED], erased);                                                  \
		count(&counters[WRONG], wrong);                                                    \
	}                                                                                          \
	/* Checks that every id occurs at most once; *size is the number of ids. */                \
	static __global__ void name##_look(struct cua_multimap_view view, unsigned n_keys,         \
					   uint32_t *seen, uint64_t n, uint64_t *size,             \
					   uint64_t *wrong)                                        \
	{                                                                                          \
		const uint64_t step = (uint64_t)gridDim.x * blockDim.x;                            \
                                                                                                   \
		for (uint64_t p = global_id(); p < name##_slots(&view); p += step) {               \
			T key = 0;                                                                 \
			uint64_t at = name##_at(&view, p, &key);                                   \
                                                                                                   \
			if (at)                                                                    \
				count(size, name##_count(&view, key));                             \
			for (; at; at = name##_next(&view, at)) {                                  \
				T id = name##_value(&view, at);                                    \
                                                                                                   \
				if (id >= n || id % n_keys != key || atomicAdd(&seen[id], 1u))     \
					count(wrong, 1);                                           \
			}                                                                          \
		}                                                                                  \
	}
DEFINE_LANES(narrow, uint32_t)
DEFINE_LANES(wide, uint64_t)

START_TEST(test_lanes)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const unsigned blocks = test_quick() ? 4 : 64, threads = 96, each = 6;
	const uint64_t n = (uint64_t)blocks * threads * each;

	for (int c = 0; c < 24; c++) {
		/* the same key in all lanes, some keys, many keys */
		const unsigned n_keys = c % 3 == 0 ? 1 : c % 3 == 1 ? 40 : (unsigned)(n / 3);
		const unsigned erases = c / 3 % 2 ? 97 : 0;
		const enum cua_type type = c < 6 ? CUA_U32 : CUA_U64;
		uint64_t *counters = (uint64_t *)managed(COUNTERS * 8),
			 *found = (uint64_t *)managed(16);
		uint32_t *seen = (uint32_t *)managed(n * 4);
		struct cua_multimap_options options = {sizeof(options), 0, 0, 0};
		struct cua_multimap *mm = NULL;
		struct cua_multimap_view view;
		uint64_t size = 0;

		options.link_size = c >= 18 ? 8 : 0;
		options.portable = c >= 12 && c < 18;
		ck_assert_cua(cua_multimap_create(ctx, &options, type, type, n_keys, n, &mm));
		ck_assert_cua(cua_multimap_get_view(mm, &view));
		for (int again = 0; again < 2; again++) {
			memset(counters, 0, COUNTERS * 8);
			memset(found, 0, 16);
			memset(seen, 0, n * 4);
			if (type == CUA_U32)
				narrow_lanes<<<blocks, threads>>>(view, each, n_keys, erases,
								  counters);
			else
				wide_lanes<<<blocks, threads>>>(view, each, n_keys, erases,
								counters);
			finish_kernel();
			if (type == CUA_U32)
				narrow_look<<<blocks, threads>>>(view, n_keys, seen, n, found,
								 found + 1);
			else
				wide_look<<<blocks, threads>>>(view, n_keys, seen, n, found,
							       found + 1);
			finish_kernel();
			ck_assert_uint_eq(counters[WRONG], 0);
			ck_assert_uint_eq(counters[INSERTED], n);
			ck_assert_uint_eq(found[0], n - counters[ERASED]);
			ck_assert_uint_eq(found[1], 0);
			ck_assert_cua(cua_multimap_size(mm, &size));
			ck_assert_uint_eq(size, found[0]);
			ck_assert_cua(cua_multimap_status(mm));
			/* all entries are usable again, after an erase of all keys or a clear */
			if (erases) {
				uint64_t *keys = (uint64_t *)managed(n_keys * 8);

				for (unsigned i = 0; i < n_keys; i++)
					if (type == CUA_U32)
						((uint32_t *)keys)[i] = i;
					else
						keys[i] = i;
				ck_assert_cua(cua_multimap_erase_n(mm, n_keys, keys, NULL));
				ck_assert_cua(cua_multimap_reclaim(mm));
				ck_assert_cua(cua_multimap_size(mm, &size));
				ck_assert_uint_eq(size, 0);
				ck_assert_cuda(cudaFree(keys));
			} else {
				ck_assert_cua(cua_multimap_clear(mm));
			}
			ck_assert_cua(cua_context_synchronize(ctx));
		}
		ck_assert_cua(cua_multimap_destroy(mm));
		ck_assert_cuda(cudaFree(counters));
		ck_assert_cuda(cudaFree(found));
		ck_assert_cuda(cudaFree(seen));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- graphs ---- */

START_TEST(test_graph)
{
	enum { N = 5000, KEYS = 300 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	uint32_t *keys = (uint32_t *)managed(N * 4), *values = (uint32_t *)managed(N * 4);
	uint32_t *asked = (uint32_t *)managed(KEYS * 4), *got = (uint32_t *)managed(2 * N * 4);
	uint64_t *counts = (uint64_t *)managed(KEYS * 8),
		 *offsets = (uint64_t *)managed((KEYS + 1) * 8);
	uint64_t *removed = (uint64_t *)managed(KEYS * 8), *results = (uint64_t *)managed(5 * 8),
		 on_host = 77;
	const int replays = test_quick() ? 2 : 10;
	struct cua_multimap *mm = NULL;
	enum cua_status refused[4];
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	ck_assert_cua(cua_multimap_create(ctx, NULL, CUA_U32, CUA_U32, KEYS, N, &mm));
	ck_assert_cua(cua_context_reserve(ctx, 1 << 16));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaDeviceSynchronize());
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cua(cua_multimap_clear(mm));
	ck_assert_cua(cua_multimap_insert_n(mm, N, keys, values, NULL));
	/* the first half of the keys is erased and inserted again */
	ck_assert_cua(cua_multimap_erase_n(mm, KEYS / 2, asked, removed));
	ck_assert_cua(cua_multimap_size(mm, results));
	ck_assert_cua(cua_multimap_reclaim(mm));
	ck_assert_cua(cua_multimap_insert_n(mm, N / 2, keys, values, NULL));
	ck_assert_cua(cua_multimap_count_n(mm, KEYS, asked, counts));
	ck_assert_cua(cua_multimap_retrieve_n(mm, KEYS, asked, N, offsets, got, results + 1));
	ck_assert_cua(cua_multimap_size(mm, results + 2));
	ck_assert_cua(cua_multimap_keys(mm, results + 3));
	ck_assert_status(cua_multimap_retrieve(mm, N, got + N, got + N, results + 4),
			 CUA_ERROR_OVERLAP);
	/* a call that would have to wait: refused, and the capture continues */
	refused[0] = cua_multimap_status(mm);
	refused[1] = cua_multimap_size(mm, &on_host);
	refused[2] = cua_multimap_retrieve_n(mm, 1, asked, N, offsets, got, &on_host);
	refused[3] = cua_multimap_destroy(mm);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	for (int i = 0; i < 4; i++)
		ck_assert_status(refused[i], CUA_ERROR_CAPTURE);
	ck_assert_uint_eq(on_host, 77);
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < replays; replay++) {
		uint64_t expected[KEYS] = {0}, first[KEYS] = {0}, left = N, live = 0, distinct = 0;

		for (uint32_t i = 0; i < N; i++) {
			/* the second half of the pairs has keys from the first half */
			keys[i] =
				i < N / 2 ? (i * 7 + (uint32_t)replay * i) % KEYS : i % (KEYS / 2);
			values[i] = i;
			first[keys[i]]++;
		}
		for (uint32_t k = 0; k < KEYS; k++) {
			asked[k] = k;
			expected[k] = k < KEYS / 2 ? 0 : first[k];
			left -= k < KEYS / 2 ? first[k] : 0;
		}
		for (uint32_t i = 0; i < N / 2; i++)
			expected[keys[i]]++;
		for (uint32_t k = 0; k < KEYS; k++) {
			live += expected[k];
			distinct += expected[k] != 0;
		}
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		ck_assert_mem_eq(counts, expected, sizeof(expected));
		ck_assert_uint_eq(results[0], left);
		ck_assert_uint_eq(results[1], live);
		ck_assert_uint_eq(results[2], live);
		ck_assert_uint_eq(results[3], distinct);
		for (uint32_t k = 0; k < KEYS; k++) {
			ck_assert_uint_eq(removed[k], k < KEYS / 2 ? first[k] : 0);
			ck_assert_uint_eq(offsets[k + 1] - offsets[k], expected[k]);
			for (uint64_t at = offsets[k]; at < offsets[k + 1]; at++)
				ck_assert(got[at] < N && keys[got[at]] == k);
		}
		ck_assert_cua(cua_multimap_status(mm));
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cua(cua_multimap_destroy(mm));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
	ck_assert_cuda(cudaFree(keys));
	ck_assert_cuda(cudaFree(values));
	ck_assert_cuda(cudaFree(asked));
	ck_assert_cuda(cudaFree(got));
	ck_assert_cuda(cudaFree(counts));
	ck_assert_cuda(cudaFree(offsets));
	ck_assert_cuda(cudaFree(removed));
	ck_assert_cuda(cudaFree(results));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("device_multimap");
	TCase *tc = tcase_create("device_multimap");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_lanes);
	tcase_add_test(tc, test_graph);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
