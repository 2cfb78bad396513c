/* SPDX-License-Identifier: MIT */
/*
 * All pairs of a hash map: sorted, copied to the host, visited.
 */
#include "hashmap_pairs.h"

#include <sys/resource.h>
#include <unistd.h>

#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

START_TEST(sorted)
{
	static const size_t counts[] = {0, 1, 2, 3, 100, 255, 4097, 50001};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++)
		for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			size_t n = counts[j];
			struct pair_map m;
			struct pair *p;
			void *gone;

			/* each count with each key size */
			if (test_traced() && ((size_t)c / 3 + j) % 3)
				continue;
			m = new_pair_map(ctx, c, n + 5, NULL);
			p = numbered_pairs(n, m.ks, m.vs, 0);
			if (test_quick() && n > 5000 && c) {
				n = 5000;
				p = (free(p), numbered_pairs(n, m.ks, m.vs, 0));
			}
			/*
			 * In half of the cases the keys differ only in bits 16 to 31 and, if they
			 * have 16 bytes, in bits 64 to 71.
			 */
			for (size_t i = 0; (c + j) % 2 && i < n; i++) {
				p[i].key.lo = (uint64_t)0x77 << (m.ks == 4 ? 0 : 40) |
					      (uint64_t)(i & 0xffff) << 16;
				p[i].key.hi = m.ks == 16 ? i % 7 : 0;
			}
			ck_assert_cua(cua_context_set_threads(ctx, 1 + (unsigned)j % 4));
			ck_assert_cua(insert_pairs(&m, p, n));
			expect_sorted(&m, p, n, n);
			expect_sorted(&m, p, n, n + 100);
			expect_sorted(&m, p, n, n / 3);
			expect_sorted(&m, p, n, n ? n - 1 : 0);
			expect_sorted(&m, p, n, 1);
			/* erased slots */
			gone = upload_keys(ctx, p, n / 4, m.ks);
			ck_assert_cua(cua_hashmap_erase_n(m.map, n / 4, gone, NULL));
			expect_sorted(&m, p + n / 4, n - n / 4, n / 2);
			test_free(ctx, gone);
			free(p);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA && !SANITIZED
/*
 * retrieve succeeds with the workspace that retrieve_workspace returns if no more memory can be
 * allocated, and fails with a smaller workspace.
 */
START_TEST(sorted_workspace)
{
	/*
	 * Workspace is allocated in units. One unit holds the number of pairs before it is copied,
	 * which the CPU backend does not need.
	 */
	enum { UNIT = 256 };
	const size_t n = 300000;
	struct pair *p = numbered_pairs(n, 8, 8, 0);

	/* first the smaller workspace, because later calls could reuse freed memory */
	for (int less = 2; less >= 1; less--) {
		struct cua_context *ctx = test_context(TEST_BACKEND);
		struct pair_map m = new_pair_map(ctx, 4, n + 10, NULL);
		uint64_t *k = test_alloc(ctx, n * 8), *v = test_alloc(ctx, n * 8), there = 5;
		unsigned long pages = 0;
		struct rlimit old, limit;
		enum cua_status status;
		size_t bytes = 0;
		FILE *f;

		ck_assert_cua(cua_context_set_threads(ctx, 1));
		ck_assert_cua(insert_pairs(&m, p, n));
		ck_assert_cua(cua_hashmap_retrieve_workspace(m.map, CUA_HASHMAP_SORTED, n, &bytes));
		/* larger than the initial workspace of a context */
		ck_assert_uint_gt(bytes, ((size_t)1 << 20) + 2 * UNIT);
		ck_assert_cua(cua_context_reserve(ctx, bytes - (size_t)less * UNIT));
		f = fopen("/proc/self/statm", "r");
		ck_assert(f && fscanf(f, "%lu", &pages) == 1);
		fclose(f);
		ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
		limit = old;
		limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE);
		ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
		status = cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, n, k, v, &there);
		ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
		ck_assert_status(status, less == 2 ? CUA_ERROR_NO_MEMORY : CUA_OK);
		ck_assert_uint_eq(there, less == 2 ? 5 : n);
		for (size_t i = 1; less < 2 && i < n; i++)
			EXPECT(k[i - 1] < k[i], "key %zu", i);
		test_free(ctx, k);
		test_free(ctx, v);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		cua_context_destroy(ctx);
	}
	free(p);
}
END_TEST
#endif

struct visits {
	const struct pair_map *m;
	struct pair *pairs;
	uint64_t n, enough;
};

static int visit(void *arg, const void *key, const void *value)
{
	struct visits *v = arg;

	v->pairs[v->n].key = load_u128(key, v->m->ks, 0);
	if (v->m->vs)
		v->pairs[v->n].value = load_u128(value, v->m->vs, 0);
	else
		v->pairs[v->n].value.lo = value != NULL;
	return ++v->n == v->enough;
}

START_TEST(to_the_host)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++) {
		/* the last map has more slots than copy_to_host reads at once */
		size_t n = c == PAIR_SIZES - 1 && !test_quick() ? 300000 : 2001;
		struct pair_map m = new_pair_map(ctx, c, n + 100, NULL);
		struct pair *p = numbered_pairs(n, m.ks, m.vs, 0);
		struct visits v = {&m, test_malloc(n * sizeof(*v.pairs)), 0, 0};
		char *keys = test_malloc(n * m.ks + 16), *values = test_malloc(n * m.vs + 16);
		uint64_t there = 0;

		memset(v.pairs, 0, n * sizeof(*v.pairs));
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &v));
		ck_assert_uint_eq(v.n, 0);
		ck_assert_cua(insert_pairs(&m, p, n));
		expect_pairs(&m, p, n);
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &v));
		ck_assert_uint_eq(v.n, n);
		qsort(v.pairs, n, sizeof(*v.pairs), by_key);
		for (size_t i = 0; i < n; i++)
			EXPECT(u128_same(v.pairs[i].key, p[i].key) &&
				       u128_same(v.pairs[i].value, p[i].value),
			       "pair %zu", i);
		v.n = 0;
		v.enough = 1000;
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &v));
		ck_assert_uint_eq(v.n, 1000);
		/* room for fewer pairs, at an unaligned address */
		memset(keys, 0x5c, n * m.ks + 16);
		memset(values, 0x5c, n * m.vs + 16);
		ck_assert_cua(cua_hashmap_copy_to_host(m.map, 777, keys + 1, values + 1, &there));
		ck_assert_uint_eq(there, n);
		for (int i = 0; i < 8; i++) {
			ck_assert_int_eq(keys[1 + 777 * m.ks + (size_t)i], 0x5c);
			ck_assert_int_eq(values[1 + 777 * m.vs + (size_t)i], 0x5c);
		}
		for (size_t i = 0; i < 777; i++) {
			struct pair want = {load_u128(keys + 1, m.ks, i), {0, 0}};
			const struct pair *found = bsearch(&want, p, n, sizeof(*p), by_key);

			EXPECT(found && u128_same(found->value, load_u128(values + 1, m.vs, i)),
			       "copied pair %zu", i);
		}
		ck_assert_cua(cua_hashmap_copy_to_host(m.map, 0, NULL, NULL, &there));
		ck_assert_uint_eq(there, n);
		free(p);
		free(v.pairs);
		free(keys);
		free(values);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

enum { WRITTEN = 300 };

struct writer {
	const struct pair_map *m;
	uint64_t *key, *value; /* arrays of one element for bulk calls */
	uint64_t met[WRITTEN], other;
};

/* Replaces an original pair (i, i + 5) by (i + 1000, i + 7). */
static int write_back(void *arg, const void *key, const void *value)
{
	struct writer *w = arg;
	uint64_t pair[2] = {load_u128(key, 8, 0).lo, load_u128(value, 8, 0).lo};
	uint64_t number = pair[0];

	if (number >= 1000) {
		ck_assert_uint_eq(pair[1], number - 1000 + 7);
		w->other++;
		return 0;
	}
	ck_assert_uint_lt(number, WRITTEN);
	ck_assert_uint_eq(pair[1], number + 5);
	w->met[number]++;
	ck_assert_cua(cua_copy(w->m->ctx, w->key, &pair[0], 8));
	ck_assert_cua(cua_hashmap_erase_n(w->m->map, 1, w->key, NULL));
	pair[0] += 1000;
	pair[1] += 2;
	ck_assert_cua(cua_copy(w->m->ctx, w->key, &pair[0], 8));
	ck_assert_cua(cua_copy(w->m->ctx, w->value, &pair[1], 8));
	ck_assert_cua(cua_hashmap_insert_n(w->m->map, 1, w->key, w->value, NULL));
	return 0;
}

/* A visitor may change the map. for_each visits each original pair once, and the changes stay. */
START_TEST(written_while_visited)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int run = test_traced(); run < 4 - test_traced(); run++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = run % 2};
		/* runs 2 and 3 have more slots than for_each reads at once */
		struct pair_map m = new_pair_map(ctx, 4, run < 2 ? 2 * WRITTEN : 600000, &o);
		struct pair *p = numbered_pairs(WRITTEN, 8, 8, 0);
		struct writer w = {.m = &m, .key = test_alloc(ctx, 8), .value = test_alloc(ctx, 8)};

		for (uint64_t i = 0; i < WRITTEN; i++) {
			p[i].key.lo = i;
			p[i].value.lo = i + 5;
		}
		ck_assert_cua(insert_pairs(&m, p, WRITTEN));
		ck_assert_cua(cua_hashmap_for_each(m.map, write_back, &w));
		for (uint64_t i = 0; i < WRITTEN; i++) {
			ck_assert_uint_eq(w.met[i], 1);
			p[i].key.lo = i + 1000;
			p[i].value.lo = i + 7;
		}
		ck_assert_uint_le(w.other, WRITTEN);
		ck_assert_cua(cua_hashmap_status(m.map));
		expect_pairs(&m, p, WRITTEN);
		free(p);
		test_free(ctx, w.key);
		test_free(ctx, w.value);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA
/* Keys are equal if they differ only in the lowest bit. */
static uint64_t half_hash(uint64_t key, uint64_t seed)
{
	return cua_hash_u64(key >> 1, ~seed);
}

static int half_equal(uint64_t a, uint64_t b)
{
	return a >> 1 == b >> 1;
}
CUA_DEFINE_HASHMAP_WITH(halves, uint64_t, uint64_t, half_hash, half_equal)
#endif

/* Bulk calls that hash keys are refused, because they would hash the bits. All other calls work. */
START_TEST(own_hash)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (uint32_t portable = 0; portable < 2; portable++) {
		struct cua_hashmap_options o = {
			.struct_size = sizeof(o), .own_hash = 1, .portable = portable};
		struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
		struct pair_map m = new_pair_map(ctx, 4, 200, &o),
				plain = new_pair_map(ctx, 4, 200, NULL);
		struct pair *p = numbered_pairs(8, 8, 8, 0);
		uint64_t *k = upload_keys(ctx, p, 8, 8), *v = upload_values(ctx, p, 8, 8),
			 *w = test_alloc(ctx, 64);
		uint64_t n = 5, expected = 0, slots = slots_of(&m);
		uint8_t *r = test_alloc(ctx, 8);
		struct visits visits = {&m, test_malloc(200 * sizeof(*visits.pairs)), 0, 0};

		ck_assert_cua(insert_pairs(&plain, p, 8));
		for (int filled = 0; filled < 2; filled++) {
			ck_assert_status(cua_hashmap_insert_n(m.map, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_insert_or_get_n(m.map, 8, k, v, w, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_assign_n(m.map, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_exchange_n(m.map, 8, k, v, w, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_update_n(m.map, CUA_UPDATE_ADD, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(
				cua_hashmap_update_value_n(m.map, CUA_UPDATE_ADD, 8, k, p, r),
				CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_build_n(m.map, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_find_n(m.map, 8, k, w, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_contains_n(m.map, 8, k, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_erase_n(m.map, 8, k, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_merge(m.map, plain.map, CUA_HASHMAP_KEEP),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_merge(plain.map, m.map, CUA_HASHMAP_KEEP),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_resize(m.map, 400), CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_get_statistics(m.map, &s),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_save(m.map, "not written"),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_uint_eq(slots_of(&m), slots);
			ck_assert_cua(cua_hashmap_status(m.map));
			ck_assert_cua(cua_hashmap_size(m.map, &n));
			ck_assert_uint_eq(n, expected);
			ck_assert_cua(cua_hashmap_rejected(m.map, 0, NULL, NULL, &n));
			ck_assert_uint_eq(n, 0);
#if !TEST_CUDA
			struct cua_hashmap_view view;

			ck_assert_cua(cua_hashmap_get_view(m.map, &view));
			for (uint64_t i = 0; !filled && i < 300; i++)
				ck_assert_int_eq(halves_insert(&view, i, i + 7),
						 i % 2 ? CUA_HASHMAP_EXISTS : CUA_HASHMAP_INSERTED);
			expected = 150;
#endif
		}
		expect_pairs(&plain, p, 8);
		visits.n = 0;
		ck_assert_cua(cua_hashmap_size(m.map, &n));
		ck_assert_uint_eq(n, expected);
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &visits));
		ck_assert_uint_eq(visits.n, expected);
		qsort(visits.pairs, expected, sizeof(*visits.pairs), by_key);
		for (uint64_t i = 0; i < expected; i++) {
			ck_assert_uint_eq(visits.pairs[i].key.lo, 2 * i);
			ck_assert_uint_eq(visits.pairs[i].value.lo, 2 * i + 7);
		}
		expect_sorted(&m, visits.pairs, expected, 200);
		expect_sorted(&m, visits.pairs, expected, 50);
		ck_assert_cua(cua_hashmap_retrieve(m.map, CUA_HASHMAP_ANY, 8, k, v, &n));
		ck_assert_uint_eq(n, expected);
		ck_assert_cua(cua_hashmap_copy_to_host(m.map, 0, NULL, NULL, &n));
		ck_assert_uint_eq(n, expected);
		ck_assert_cua(cua_hashmap_clear(m.map));
		ck_assert_cua(cua_hashmap_size(m.map, &n));
		ck_assert_uint_eq(n, 0);
		visits.n = 0;
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &visits));
		ck_assert_uint_eq(visits.n, 0);
		free(p);
		free(visits.pairs);
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, w);
		test_free(ctx, r);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(plain.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
START_TEST(captured)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .grow_percent = 50};
	struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
	struct pair_map m = new_pair_map(ctx, 4, 100000, NULL),
			from = new_pair_map(ctx, 4, 30000, NULL),
			grows = new_pair_map(ctx, 4, 10, &o);
	struct pair *p = numbered_pairs(20000, 8, 8, 0);
	uint64_t *k = test_alloc(ctx, 8 * 100000), *v = test_alloc(ctx, 8 * 100000),
		 *n = test_alloc(ctx, 8), there;
	uint64_t *least = test_alloc(ctx, 8 * 7000), *keys = test_malloc(2 * 8 * 20000);
	void *ck = upload_keys(ctx, p, 5000, 8), *expected = upload_values(ctx, p, 5000, 8);
	void *desired = upload_values(ctx, p + 5000, 5000, 8);
	uint8_t *r = test_alloc(ctx, 5000), results[5000];
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t bytes = 0;

	ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
	ck_assert_cua(insert_pairs(&m, p, 10000));
	ck_assert_cua(insert_pairs(&from, p + 10000, 10000));
	ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)stream));
	ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
			 cudaSuccess);
	/* the call needs more than the initial workspace, which cannot grow during a capture */
	ck_assert_status(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 100000, k, v, n),
			 CUA_ERROR_WORKSPACE);
	ck_assert_status(cua_hashmap_resize(m.map, 90000), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_get_statistics(m.map, &s), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 20000, keys, keys + 20000, &there),
			 CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_for_each(m.map, abort_visit, NULL), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_save(m.map, "not written"), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_insert_n(grows.map, 5, k, v, NULL), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_build_n(grows.map, 5, k, v, NULL), CUA_ERROR_CAPTURE);
	ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);

	ck_assert_cua(cua_hashmap_retrieve_workspace(m.map, CUA_HASHMAP_SORTED, 100000, &bytes));
	ck_assert_uint_gt(bytes, ((size_t)1 << 20) + 512);
	for (int enough = 0; enough < 2; enough++) {
		ck_assert_cua(cua_context_reserve(ctx, enough ? bytes : bytes / 2));
		ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
				 cudaSuccess);
		ck_assert_status(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 100000, k, v, n),
				 enough ? CUA_OK : CUA_ERROR_WORKSPACE);
		ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
		ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
	}
	ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
			 cudaSuccess);
	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, 5000, ck, expected, desired, r));
	ck_assert_cua(cua_hashmap_merge(m.map, from.map, CUA_HASHMAP_ADD));
	ck_assert_cua(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 7000, least, v, n));
	ck_assert_cua(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 20000, k, v, n));
	ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	ck_assert_int_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	for (int launch = 0; launch < 2; launch++) {
		ck_assert_int_eq(cudaGraphLaunch(exec, stream), cudaSuccess);
		test_download(ctx, &there, n, 8);
		ck_assert_uint_eq(there, 20000);
		test_download(ctx, results, r, sizeof(results));
		for (size_t i = 0; i < sizeof(results); i++)
			EXPECT(results[i] == (launch ? CUA_HASHMAP_DIFFERS : CUA_HASHMAP_EXISTS),
			       "launch %d, result %zu is %d", launch, i, results[i]);
		qsort(p, 20000, sizeof(*p), by_key);
		test_download(ctx, keys, k, 8 * 20000);
		for (size_t i = 0; i < 20000; i++)
			EXPECT(keys[i] == p[i].key.lo, "key %zu", i);
		test_download(ctx, keys, least, 8 * 7000);
		for (size_t i = 0; i < 7000; i++)
			EXPECT(keys[i] == p[i].key.lo, "key %zu of the least ones", i);
	}
	test_free(ctx, least);
	ck_assert_int_eq(cudaGraphExecDestroy(exec), cudaSuccess);
	ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	ck_assert_cua(cua_hashmap_destroy(from.map));
	ck_assert_cua(cua_hashmap_destroy(grows.map));
	free(p);
	free(keys);
	test_free(ctx, ck);
	test_free(ctx, expected);
	test_free(ctx, desired);
	test_free(ctx, r);
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, n);
	ck_assert_cua(cua_context_set_stream(ctx, NULL));
	ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
	cua_context_destroy(ctx);
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_retrieve");
	TCase *tcase = tcase_create("hashmap_retrieve");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, sorted);
#if !TEST_CUDA && !SANITIZED
	tcase_add_test(tcase, sorted_workspace);
#endif
	tcase_add_test(tcase, to_the_host);
	tcase_add_test(tcase, written_while_visited);
	tcase_add_test(tcase, own_hash);
#if TEST_CUDA
	tcase_add_test(tcase, captured);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
