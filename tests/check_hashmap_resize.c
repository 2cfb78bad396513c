/* SPDX-License-Identifier: MIT */
/*
 * The size of a hash map: resize, growth, max_bytes.
 */
#include "hashmap_pairs.h"

#include <sys/resource.h>
#include <unistd.h>

START_TEST(resized)
{
	uint64_t seed = test_seed("resized");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++) {
		struct pair_map m = new_pair_map(ctx, c, 10, NULL);
		size_t n = 10;
		struct pair *p = numbered_pairs(6000, m.ks, m.vs, 0);

		ck_assert_cua(insert_pairs(&m, p, n));
		for (int round = 0; round < 12; round++) {
			uint64_t capacity = n + test_random(&seed) % (round % 3 ? 2000 : 3), slots;
			void *k;

			ck_assert_cua(cua_hashmap_resize(m.map, capacity));
			slots = slots_of(&m);
			ck_assert_uint_ge(slots, capacity);
			expect_pairs(&m, p, n);
			p = (free(p), numbered_pairs(6000, m.ks, m.vs, 0));
			if (n > 1)
				ck_assert_status(cua_hashmap_resize(m.map, n - 1), CUA_ERROR_SIZE);
			ck_assert_uint_eq(slots_of(&m), slots);
			/* insert or erase */
			if (test_random(&seed) % 2) {
				size_t more = (slots - n) / 2;

				if (n + more > 6000)
					more = 6000 - n;
				ck_assert_cua(insert_pairs(&m, p + n, more));
				n += more;
			} else {
				size_t gone = n / 3;

				k = upload_keys(ctx, p + n - gone, gone, m.ks);
				ck_assert_cua(cua_hashmap_erase_n(m.map, gone, k, NULL));
				ck_assert_cua(cua_context_synchronize(ctx));
				test_free(ctx, k);
				n -= gone;
			}
		}
		ck_assert_cua(cua_hashmap_status(m.map));
		free(p);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* From one slot to as many as the keys need, by each call that inserts keys. */
START_TEST(growth)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++)
		for (int call = 0; call < 6; call++) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o),
							.grow_percent = 70};
			struct pair_map m = new_pair_map(ctx, c, 1, &o);
			size_t n = test_quick()          ? 3000
				   : c == 4 && call == 0 ? 1000000
				   : c == 3              ? 200000
							 : 20000;
			struct pair *p = numbered_pairs(n, m.ks, m.vs, 0);
			void *k = upload_keys(ctx, p, n, m.ks), *v = upload_values(ctx, p, n, m.vs);
			char *w = test_alloc(ctx, n * m.vs + 1);
			uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n);
			enum cua_status expected = call % 5 && !m.vs ? CUA_ERROR_TYPE : CUA_OK;
			uint64_t size = 0;
			size_t half = n / 2 + 1;

			/* insert in two calls, then insert all keys again */
			for (int again = 0; again < 3; again++) {
				size_t from = again == 1 ? half : 0,
				       count = again == 0 ? half : n - from;
				char *keys = (char *)k + from * m.ks,
				     *values = (char *)v + from * m.vs;
				enum cua_status status;

				if (call == 5)
					keys = k, values = v, from = 0, count = n;
				status =
					call == 0 ? cua_hashmap_insert_n(m.map, count, keys, values,
									 r + from)
					: call == 1 ? cua_hashmap_assign_n(m.map, count, keys,
									   values, r + from)
					: call == 2
						? cua_hashmap_update_n(m.map, CUA_UPDATE_MAX, count,
								       keys, values, r + from)
					: call == 3 ? cua_hashmap_insert_or_get_n(
							      m.map, count, keys, values,
							      w + from * m.vs, r + from)
					: call == 4
						? cua_hashmap_exchange_n(m.map, count, keys, values,
									 w + from * m.vs, r + from)
						: cua_hashmap_build_n(m.map, count, keys, values,
								      r + from);
				ck_assert_status(status, expected);
				if (status)
					continue;
				test_download(ctx, results, r, n);
				for (size_t i = from; i < from + count; i++)
					EXPECT(results[i] == (again == 2 && call != 5
								      ? CUA_HASHMAP_EXISTS
								      : CUA_HASHMAP_INSERTED),
					       "result %zu is %d", i, results[i]);
				ck_assert_cua(cua_hashmap_size(m.map, &size));
				ck_assert_uint_eq(size, from + count);
			}
			if (!expected) {
				ck_assert_cua(cua_hashmap_status(m.map));
				/* at most twice the slots that the load limit needs */
				ck_assert_uint_le(n, slots_of(&m) / 10 * 7 + 9);
				ck_assert_uint_le(slots_of(&m),
						  2 * n * 10 / 7 + 2 * 65536 * 10 / 7 + 8192);
				expect_pairs(&m, p, n);
			}
			free(p);
			free(results);
			test_free(ctx, k);
			test_free(ctx, v);
			test_free(ctx, w);
			test_free(ctx, r);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

/* Many elements of few keys do not make the map grow. */
START_TEST(growth_of_equal_keys)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .grow_percent = 50};
	struct pair_map m = new_pair_map(ctx, 4, 100, &o);
	const size_t n = (size_t)test_scale(200000, 500000, 2000000);
	struct pair *p = test_malloc(n * sizeof(*p)), *sums = numbered_pairs(90, 8, 8, 0);
	void *k, *v;

	for (size_t i = 0; i < n; i++) {
		p[i].key = sums[i % 90].key;
		p[i].value.lo = i;
	}
	for (size_t j = 0; j < 90; j++)
		sums[j].value.lo = sums[j].value.hi = 0;
	for (size_t i = 0; i < n; i++)
		sums[i % 90].value.lo += i;
	k = upload_keys(ctx, p, n, 8);
	v = upload_values(ctx, p, n, 8);
	ck_assert_cua(cua_hashmap_update_n(m.map, CUA_UPDATE_ADD, n, k, v, NULL));
	expect_pairs(&m, sums, 90);
	ck_assert_uint_le(slots_of(&m), 2 * 65536 + 4096);
	free(p);
	free(sums);
	test_free(ctx, k);
	test_free(ctx, v);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA && !SANITIZED
/*
 * If an allocation fails during growth, inserted pairs stay. The results say which pairs were
 * inserted.
 */
START_TEST(growth_without_memory)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .grow_percent = 50};
	struct pair_map m = new_pair_map(ctx, 8, 100, &o);
	const size_t n = 700000;
	struct pair *p = numbered_pairs(n, 16, 16, 0);
	void *k = upload_keys(ctx, p, n, 16), *v = upload_values(ctx, p, n, 16);
	uint8_t *results = test_alloc(ctx, n);
	struct rlimit old, limit;
	unsigned long pages = 0;
	uint64_t size = 0, slots;
	size_t done = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	ck_assert_cua(cua_hashmap_insert_n(m.map, 10, k, v, results));
	slots = slots_of(&m);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
	limit = old;
	limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (20 << 20);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_status(cua_hashmap_resize(m.map, n), CUA_ERROR_NO_MEMORY);
	ck_assert_uint_eq(slots_of(&m), slots);
	ck_assert_status(cua_hashmap_insert_n(m.map, n, k, v, results), CUA_ERROR_NO_MEMORY);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
	while (done < n && results[done] == (done < 10 ? CUA_HASHMAP_EXISTS : CUA_HASHMAP_INSERTED))
		done++;
	ck_assert_uint_ge(done, 10);
	ck_assert_uint_lt(done, n);
	for (size_t i = done; i < n; i++)
		EXPECT(results[i] == CUA_HASHMAP_FULL, "result %zu is %d", i, results[i]);
	ck_assert_cua(cua_hashmap_size(m.map, &size));
	ck_assert_uint_eq(size, done);
	ck_assert_cua(cua_hashmap_status(m.map));
	/* without the limit, all pairs fit */
	ck_assert_cua(cua_hashmap_insert_n(m.map, n, k, v, results));
	expect_pairs(&m, p, n);
	free(p);
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, results);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* max_bytes limits create, resize, growth and load, and changes nothing else. */
START_TEST(limited)
{
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .max_bytes = 300000};
	struct cua_hashmap_options grows = {
		.struct_size = sizeof(grows), .grow_percent = 60, .max_bytes = 3000000};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	for (int c = 0; c < PAIR_SIZES; c++) {
		struct pair_map m = new_pair_map(ctx, c, 1000, &o),
				g = new_pair_map(ctx, c, 1000, &grows),
				all = new_pair_map(ctx, c, 50000, NULL);
		struct pair *p = numbered_pairs(200000, m.ks, m.vs, 0),
			    *few = numbered_pairs(900, m.ks, m.vs, 0);
		struct cua_hashmap *none = NULL;
		uint64_t slots = slots_of(&m), n = 0;
		size_t before = 0;

		ck_assert_status(cua_hashmap_create(ctx, &o, type_of_size(m.ks), type_of_size(m.vs),
						    50000, &none),
				 CUA_ERROR_SIZE);
		ck_assert_cua(insert_pairs(&m, p, 900));
		ck_assert_status(cua_hashmap_resize(m.map, 50000), CUA_ERROR_SIZE);
		ck_assert_uint_eq(slots_of(&m), slots);
		ck_assert_cua(cua_hashmap_resize(m.map, 2000));
		expect_pairs(&m, few, 900);
		/* insert until growth reaches the limit */
		while (before < 200000 && !insert_pairs(&g, p + before, 5000))
			before += 5000;
		ck_assert_uint_gt(before, 10000);
		ck_assert_uint_lt(before, 200000);
		ck_assert_cua(cua_hashmap_size(g.map, &n));
		ck_assert_uint_eq(n, before);
		expect_pairs(&g, p, before);
		ck_assert_cua(insert_pairs(&all, p, 20));
		ck_assert_cua(cua_hashmap_save(all.map, "a"));
		ck_assert_status(cua_hashmap_load(ctx, &o, "a", &none), CUA_ERROR_SIZE);
		ck_assert_ptr_null(none);
		/* a saved file does not contain the limit */
		ck_assert_cua(cua_hashmap_save(m.map, "a"));
		for (int given = 0; given < 2; given++) {
			struct pair_map l = m;

			ck_assert_cua(cua_hashmap_load(ctx, given ? &o : NULL, "a", &l.map));
			ck_assert_status(cua_hashmap_resize(l.map, 50000),
					 given ? CUA_ERROR_SIZE : CUA_OK);
			expect_pairs(&l, few, 900);
			ck_assert_cua(cua_hashmap_destroy(l.map));
		}
		free(p);
		free(few);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(g.map));
		ck_assert_cua(cua_hashmap_destroy(all.map));
	}
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_resize");
	TCase *tcase = tcase_create("hashmap_resize");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, resized);
	tcase_add_test(tcase, growth);
	tcase_add_test(tcase, growth_of_equal_keys);
#if !TEST_CUDA && !SANITIZED
	tcase_add_test(tcase, growth_without_memory);
#endif
	tcase_add_test(tcase, limited);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
