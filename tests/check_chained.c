/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <pthread.h>
#include <sys/mman.h>

static struct cua_chained *new_table(struct cua_context *ctx, uint64_t buckets, uint64_t capacity)
{
	struct cua_chained *table = NULL;

	ck_assert_cua(cua_chained_create(ctx, NULL, buckets, capacity, &table));
	return table;
}

static uint64_t size_of(struct cua_chained *table)
{
	uint64_t size = 99;

	ck_assert_cua(cua_chained_size(table, &size));
	return size;
}

static void verify(struct cua_chained *table, uint64_t entries)
{
	struct cua_chained_report report = CUA_CHAINED_REPORT_INIT;

	ck_assert_cua(cua_chained_verify(table, &report));
	ck_assert_uint_eq(report.entries, entries);
	ck_assert_uint_eq(report.reached, entries);
	ck_assert_uint_eq(report.misplaced, 0);
	ck_assert_uint_eq(report.twice, 0);
	ck_assert_uint_eq(report.lost, 0);
	ck_assert_uint_eq(report.broken_links, 0);
}

/* The two calls that add pairs: with locks and without. */
static enum cua_status (*const add_n[2])(struct cua_chained *table, size_t n, const uint64_t *keys,
					 const uint64_t *values) = {cua_chained_insert_n,
								    cua_chained_build_n};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* ---- arguments ---- */

START_TEST(bad_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_chained *table = NULL, *kept = (struct cua_chained *)&table;
	struct cua_chained_view view;
	struct cua_chained_report report;
	uint64_t number = 5, some[4] = {1, 2, 3, 4}, *inside;
	uint64_t *a = test_upload(ctx, some, 32), *b = test_upload(ctx, some, 32);
	uint8_t *flags = test_alloc(ctx, 32);

	ck_assert_status(cua_chained_create(NULL, NULL, 1, 1, &kept), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_create(ctx, NULL, 1, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_create(ctx, NULL, 0, 1, &kept), CUA_ERROR_VALUE);
	ck_assert_status(cua_chained_create(ctx, NULL, ~(uint64_t)0, 1, &kept), CUA_ERROR_SIZE);
	ck_assert_status(cua_chained_create(ctx, NULL, 1, ~(uint64_t)0, &kept), CUA_ERROR_SIZE);
	ck_assert_status(cua_chained_create(ctx, NULL, 1, (~(uint64_t)0 >> 1) / 24, &kept),
			 CUA_ERROR_SIZE);
	ck_assert_ptr_eq(kept, &table);
	table = new_table(ctx, 3, 10);

	ck_assert_status(cua_chained_get_view(NULL, &view), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_get_view(table, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_chained_get_view(table, &view));
	ck_assert_uint_eq(view.layout, CUA_CHAINED_LAYOUT);
	ck_assert_uint_eq(view.n_buckets, 3);
	ck_assert_uint_eq(view.capacity, 10);
	inside = (uint64_t *)view.entries;
	ck_assert_status(cua_chained_clear(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_status(NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_chained_insert_n(table, 4, a, b));

	for (int i = 0; i < 2; i++) {
		ck_assert_status(add_n[i](NULL, 1, a, b), CUA_ERROR_NULL);
		ck_assert_status(add_n[i](table, 1, NULL, b), CUA_ERROR_NULL);
		ck_assert_status(add_n[i](table, 1, a, NULL), CUA_ERROR_NULL);
		ck_assert_status(add_n[i](table, ~(size_t)0, a, b), CUA_ERROR_SIZE);
		ck_assert_status(add_n[i](table, 1, (void *)((char *)a + 4), b),
				 CUA_ERROR_ALIGNMENT);
		ck_assert_status(add_n[i](table, 1, a, (void *)((char *)b + 1)),
				 CUA_ERROR_ALIGNMENT);
		ck_assert_status(add_n[i](table, 1, inside, b), CUA_ERROR_OVERLAP);
		ck_assert_status(add_n[i](table, 1, a, view.heads), CUA_ERROR_OVERLAP);
		ck_assert_cua(add_n[i](table, 0, NULL, NULL));
	}

	ck_assert_status(cua_chained_find_n(NULL, 1, a, b, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_find_n(table, 1, NULL, b, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_find_n(table, 1, a, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_find_n(table, ~(size_t)0, a, b, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_chained_find_n(table, 1, (void *)((char *)a + 4), b, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_find_n(table, 1, a, (void *)((char *)b + 4), flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_find_n(table, 2, a, a + 1, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_find_n(table, 2, a, b, (uint8_t *)a), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_find_n(table, 2, a, b, (uint8_t *)b + 15), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_find_n(table, 2, a, inside, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_find_n(table, 2, a, b, (uint8_t *)inside), CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_chained_find_n(table, 0, NULL, NULL, NULL));

	ck_assert_status(cua_chained_count_n(NULL, 1, a, b), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_count_n(table, 1, NULL, b), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_count_n(table, 1, a, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_count_n(table, ~(size_t)0, a, b), CUA_ERROR_SIZE);
	ck_assert_status(cua_chained_count_n(table, 1, (void *)((char *)a + 4), b),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_count_n(table, 1, a, (void *)((char *)b + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_count_n(table, 2, a, a), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_count_n(table, 2, a, inside), CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_chained_count_n(table, 0, NULL, NULL));

	ck_assert_status(cua_chained_values(NULL, 1, 1, b, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_values(table, 1, 1, NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_values(table, 1, 1, b, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_values(table, 1, ~(uint64_t)0, b, &number), CUA_ERROR_SIZE);
	ck_assert_status(cua_chained_values(table, 1, 1, (void *)((char *)b + 4), &number),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_values(table, 1, 1, b, (void *)((char *)a + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_values(table, 1, 2, b, b + 1), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_values(table, 1, 2, inside, &number), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_values(table, 1, 2, b, inside), CUA_ERROR_OVERLAP);

	ck_assert_status(cua_chained_demand(NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_demand(table, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_demand(table, (void *)((char *)a + 4)), CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_demand(table, inside), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_chained_size(NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_size(table, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_size(table, (void *)((char *)a + 4)), CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_chained_size(table, inside), CUA_ERROR_OVERLAP);

	ck_assert_status(cua_chained_copy(NULL, ctx, &kept), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_copy(table, NULL, &kept), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_copy(table, ctx, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_chained_verify(NULL, NULL), CUA_ERROR_NULL);
	report.struct_size = 1;
	ck_assert_status(cua_chained_verify(table, &report), CUA_ERROR_VALUE);
	report.struct_size = sizeof(report) + 1;
	ck_assert_status(cua_chained_verify(table, &report), CUA_ERROR_VALUE);
	ck_assert_cua(cua_chained_verify(table, NULL));

#if TEST_CUDA
	{
		/* ordinary memory, where the device cannot reach it */
		enum cua_status status;
		uint64_t *host = test_malloc(64);

		memset(host, 0, 64);
		status = cua_chained_count_n(table, 1, host, b);
		ck_assert(status == CUA_ERROR_MEMORY_KIND || status == CUA_OK);
		ck_assert_cua(cua_context_synchronize(ctx));
		free(host);
	}
#endif
	/* none of these calls has changed the table */
	ck_assert_uint_eq(number, 5);
	ck_assert_cua(cua_chained_demand(table, &number));
	ck_assert_uint_eq(number, 4);
	verify(table, 4);
	ck_assert_cua(cua_chained_destroy(table));
	ck_assert_cua(cua_chained_destroy(NULL));
	test_free(ctx, a);
	test_free(ctx, b);
	test_free(ctx, flags);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- against a model: pair i is (keys[i], i) ---- */

static uint64_t key_number(uint64_t i)
{
	static const uint64_t unusual[] = {0, ~(uint64_t)0, 1, (uint64_t)1 << 63};

	return i < 4 ? unusual[i] : i * 0x9e3779b97f4a7c15u;
}

/*
 * Adds n pairs with n_keys different keys, in calls of random sizes, and then compares all lists
 * with the model.
 */
static void against_model(struct cua_context *ctx, uint64_t *seed, uint64_t buckets, size_t n,
			  uint64_t distinct)
{
	struct cua_chained *table = new_table(ctx, buckets, n);
	uint64_t *numbers = test_malloc(n * 8), *keys = test_malloc(n * 8),
		 *values = test_malloc(n * 8);
	uint64_t *counts = calloc(distinct + 1, 8), *last = calloc(distinct + 1, 8), host = 0;
	uint64_t *asked = test_malloc((distinct + 1) * 8),
		 *got = test_malloc((n + distinct + 1) * 8);
	uint8_t *flags = test_malloc(distinct + 1);
	uint64_t *k, *v, *q, *r, *result = test_alloc(ctx, 8);
	uint8_t *f = test_alloc(ctx, distinct + 1);

	ck_assert(counts && last);
	for (size_t i = 0; i < n; i++) {
		numbers[i] = test_random(seed) % distinct;
		keys[i] = key_number(numbers[i]);
		values[i] = i ? i : ~(uint64_t)0;
		counts[numbers[i]]++;
	}
	k = test_upload(ctx, keys, n * 8);
	v = test_upload(ctx, values, n * 8);
	for (size_t i = 0, some; i < n; i += some) {
		some = test_random(seed) % 3 ? 1 + test_random(seed) % (n / 2 + 1) : 1;
		if (some > n - i)
			some = n - i;
		ck_assert_cua(add_n[test_random(seed) % 2](table, some, k + i, v + i));
		/* in the latest call, so the last pair of its key */
		for (size_t j = i; j < i + some; j++)
			last[numbers[j]] = i;
	}
	ck_assert_uint_eq(size_of(table), n);
	ck_assert_cua(cua_chained_status(table));
	verify(table, n);
	/* plus an absent key */
	for (size_t i = 0; i <= distinct; i++)
		asked[i] = key_number(i);
	q = test_upload(ctx, asked, (distinct + 1) * 8);
	r = test_upload(ctx, asked, (distinct + 1) * 8);
	ck_assert_cua(cua_chained_find_n(table, distinct + 1, q, r, f));
	test_download(ctx, got, r, (distinct + 1) * 8);
	test_download(ctx, flags, f, distinct + 1);
	for (size_t i = 0; i <= distinct; i++) {
		ck_assert_uint_eq(flags[i], counts[i] != 0);
		if (counts[i]) {
			uint64_t at = got[i] == ~(uint64_t)0 ? 0 : got[i];

			ck_assert_uint_lt(at, n);
			ck_assert_uint_eq(numbers[at], i);
			ck_assert_uint_ge(at, last[i]);
		} else {
			ck_assert_uint_eq(got[i], asked[i]);
		}
	}
	ck_assert_cua(cua_chained_find_n(table, distinct + 1, q, r, NULL));
	ck_assert_cua(cua_chained_count_n(table, distinct + 1, q, r));
	test_download(ctx, got, r, (distinct + 1) * 8);
	for (size_t i = 0; i <= distinct; i++)
		ck_assert_uint_eq(got[i], counts[i]);
	/* all values of some keys */
	for (int t = 0; t < 5; t++) {
		uint64_t number = t == 4 ? distinct : test_random(seed) % distinct, m = 0;
		uint64_t room = t == 3 ? counts[number] / 2 : n;
		uint64_t *all = test_alloc(ctx, n * 8 + 8);

		ck_assert_cua(cua_chained_values(table, key_number(number), room, room ? all : NULL,
						 t & 1 ? &host : result));
		if (!(t & 1))
			test_download(ctx, &host, result, 8);
		ck_assert_uint_eq(host, counts[number]);
		m = host < room ? host : room;
		test_download(ctx, got, all, m * 8);
		for (uint64_t i = 0; i < m; i++)
			got[i] = got[i] == ~(uint64_t)0 ? 0 : got[i];
		qsort(got, m, 8, compare);
		for (uint64_t i = 0; i < m; i++) {
			ck_assert_uint_eq(numbers[got[i]], number);
			ck_assert(!i || got[i] != got[i - 1]);
		}
		test_free(ctx, all);
	}
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, q);
	test_free(ctx, r);
	test_free(ctx, f);
	test_free(ctx, result);
	free(numbers);
	free(keys);
	free(values);
	free(counts);
	free(last);
	free(asked);
	free(got);
	free(flags);
	ck_assert_cua(cua_chained_destroy(table));
}

START_TEST(model)
{
	uint64_t seed = test_seed("model");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int quick = test_quick();

	against_model(ctx, &seed, 1, 1, 1);
	against_model(ctx, &seed, 1, 2, 1);
	against_model(ctx, &seed, 7, 33, 50);
	against_model(ctx, &seed, 1, 1500, 300);
	against_model(ctx, &seed, 1024, quick ? 5001 : 100003, 999);
	against_model(ctx, &seed, 100000, quick ? 5001 : 50001, 100000);
	/*
	 * chains so long that a GPU searches the pool: a single frequent key, and more frequent
	 * keys than it lists
	 */
	against_model(ctx, &seed, 1000, quick ? 20001 : 300007, 1);
	/* few keys and many buckets, so that lanes of a warp build in the same bucket */
	against_model(ctx, &seed, 200000, quick ? 20001 : 300007, 3);
	if (!quick) {
		against_model(ctx, &seed, 10, 300007, 7);
		against_model(ctx, &seed, 1, 40009, 100);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- full ---- */

START_TEST(full)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	static const uint64_t capacities[] = {0, 1, 31, 1000, 4097};
	const size_t n = 5000;
	uint64_t keys[5000], got[5000], demand = 0, stored;
	uint8_t flags[5000];
	uint64_t *k, *v = test_alloc(ctx, n * 8);
	uint8_t *f = test_alloc(ctx, n);

	for (size_t i = 0; i < n; i++)
		keys[i] = key_number(i);
	k = test_upload(ctx, keys, n * 8);
	for (int c = 0; c < 20; c++) {
		/* with few buckets and with many; the overrun is by either call */
		struct cua_chained *table =
			new_table(ctx, c < 10 ? 100 : 100000, capacities[c % 5]);
		uint64_t capacity = capacities[c % 5];
		int build = c / 5 % 2;
		size_t first = capacity / 2;

		ck_assert_cua(add_n[!build](table, first, k, k));
		ck_assert_cua(cua_chained_status(table));
		/* the pool runs out in the middle of this call */
		ck_assert_cua(add_n[build](table, n - first, k + first, k + first));
		ck_assert_status(cua_chained_status(table), CUA_ERROR_FULL);
		ck_assert_cua(cua_chained_demand(table, &demand));
		ck_assert_uint_eq(demand, n);
		ck_assert_uint_eq(size_of(table), capacity);
		verify(table, capacity);
		ck_assert_cua(cua_chained_find_n(table, n, k, v, f));
		test_download(ctx, flags, f, n);
		test_download(ctx, got, v, n * 8);
		stored = 0;
		for (size_t i = 0; i < n; i++) {
			stored += flags[i];
			ck_assert(i >= first || flags[i]);
			ck_assert(!flags[i] || got[i] == keys[i]);
		}
		ck_assert_uint_eq(stored, capacity);
		/* the status is sticky */
		ck_assert_cua(add_n[build](table, 1, k, k));
		ck_assert_status(cua_chained_status(table), CUA_ERROR_FULL);
		ck_assert_cua(cua_chained_clear(table));
		ck_assert_cua(cua_chained_status(table));
		verify(table, 0);
		ck_assert_cua(cua_chained_find_n(table, n, k, v, f));
		test_download(ctx, flags, f, n);
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_eq(flags[i], 0);
		ck_assert_cua(add_n[build](table, capacity, k, k));
		ck_assert_cua(cua_chained_status(table));
		verify(table, capacity);
		ck_assert_cua(cua_chained_destroy(table));
	}
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, f);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- copy: to the CPU, where the inline functions read it, and back ---- */

START_TEST(copies)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *cpu = test_context(CUA_BACKEND_CPU);
	const uint64_t n = 3000, capacity = 2500;
	struct cua_chained *table = new_table(ctx, 50, capacity), *host = NULL, *back = NULL;
	struct cua_chained_view view;
	uint64_t keys[3000], demand = 0, value = 0, found = 0, *k;

	for (uint64_t i = 0; i < n; i++)
		keys[i] = key_number(i);
	k = test_upload(ctx, keys, n * 8);
	ck_assert_cua(cua_chained_insert_n(table, n / 2, k, k));
	ck_assert_cua(cua_chained_build_n(table, n - n / 2, k + n / 2, k + n / 2));
	ck_assert_cua(cua_chained_copy(table, cpu, &host));
	ck_assert_cua(cua_chained_copy(host, ctx, &back));
	ck_assert_cua(cua_chained_destroy(table));
	verify(host, capacity);
	verify(back, capacity);
	ck_assert_status(cua_chained_status(host), CUA_ERROR_FULL);
	ck_assert_cua(cua_chained_demand(back, &demand));
	ck_assert_uint_eq(demand, n);
	ck_assert_cua(cua_chained_get_view(host, &view));
	for (uint64_t i = 0; i < n; i++)
		if (cua_chained_find(&view, keys[i], &value)) {
			ck_assert_uint_eq(value, keys[i]);
			ck_assert_uint_eq(cua_chained_count(&view, keys[i]), 1);
			found++;
		}
	ck_assert_uint_eq(found, capacity);
	ck_assert_cua(cua_chained_destroy(host));
	ck_assert_cua(cua_chained_destroy(back));
	test_free(ctx, k);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- verify finds each kind of damage ---- */

struct damaged {
	struct cua_context *ctx;
	struct cua_chained *table;
	struct cua_chained_view view;
	struct cua_chained_entry *entries; /* copies of the undamaged table, on the host */
	uint64_t *heads;
	uint64_t n;
	struct cua_chained_report report;
};

static void set(struct damaged *d, uint64_t *p, uint64_t v)
{
	ck_assert_cua(cua_copy(d->ctx, p, &v, 8));
	ck_assert_cua(cua_context_synchronize(d->ctx));
}

static void find_damage(struct damaged *d)
{
	d->report.struct_size = sizeof(d->report);
	ck_assert_status(cua_chained_verify(d->table, &d->report), CUA_ERROR_CORRUPT);
	ck_assert_uint_eq(d->report.entries, d->n);
	ck_assert_uint_eq(d->report.lost, d->n - d->report.reached);
	/* restored: the table is sound again */
	ck_assert_cua(cua_copy(d->ctx, d->view.entries, d->entries, d->n * sizeof(*d->entries)));
	ck_assert_cua(cua_copy(d->ctx, d->view.heads, d->heads, d->view.n_buckets * 8));
	verify(d->table, d->n);
}

START_TEST(verify_damage)
{
	struct damaged d;
	uint64_t *keys, *k, i, j;

	d.ctx = test_context(TEST_BACKEND);
	d.n = 5000;
	keys = test_malloc(d.n * 8);
	for (i = 0; i < d.n; i++)
		keys[i] = key_number(i);
	k = test_upload(d.ctx, keys, d.n * 8);
	d.table = new_table(d.ctx, 20, d.n + 10);
	ck_assert_cua(cua_chained_insert_n(d.table, d.n, k, k));
	ck_assert_cua(cua_chained_get_view(d.table, &d.view));
	d.entries = test_malloc(d.n * sizeof(*d.entries));
	d.heads = test_malloc(20 * 8);
	test_download(d.ctx, d.entries, d.view.entries, d.n * sizeof(*d.entries));
	test_download(d.ctx, d.heads, d.view.heads, 20 * 8);
	verify(d.table, d.n);

	/* a key of another bucket: at the end, the head and the middle of chains */
	for (i = 0; i < d.n; i += 617) {
		for (j = 0; cua_chained_bucket(&d.view, j) ==
			    cua_chained_bucket(&d.view, d.entries[i].key);
		     j++)
			;
		set(&d, &d.view.entries[i].key, j);
		find_damage(&d);
		ck_assert_uint_eq(d.report.misplaced, 1);
		ck_assert_uint_eq(d.report.lost + d.report.twice + d.report.broken_links, 0);
	}
	/* a link out of the pool: to an unused entry, and to none */
	set(&d, &d.view.entries[d.heads[3]].next, (uint64_t)1 << 62);
	find_damage(&d);
	ck_assert_uint_eq(d.report.broken_links, 1);
	ck_assert_uint_gt(d.report.lost, 0);
	set(&d, &d.view.heads[19], d.n);
	find_damage(&d);
	ck_assert_uint_eq(d.report.broken_links, 1);
	ck_assert_uint_gt(d.report.lost, 0);
	set(&d, &d.view.heads[0], CUA_CHAINED_NONE);
	find_damage(&d);
	ck_assert_uint_gt(d.report.lost, 0);
	ck_assert_uint_eq(d.report.misplaced + d.report.twice + d.report.broken_links, 0);
	/* shape: a cycle at the head, a cycle of a single entry, a chain in two buckets */
	for (i = d.heads[7]; d.entries[i].next != CUA_CHAINED_NONE; i = d.entries[i].next)
		;
	set(&d, &d.view.entries[i].next, d.heads[7]);
	find_damage(&d);
	ck_assert_uint_eq(d.report.twice, 1);
	set(&d, &d.view.entries[i].next, i);
	find_damage(&d);
	ck_assert_uint_eq(d.report.twice, 1);
	set(&d, &d.view.heads[8], d.heads[7]);
	find_damage(&d);
	ck_assert_uint_eq(d.report.twice, 1);
	ck_assert_uint_gt(d.report.lost, 0);
	/* shape: a cycle that no bucket reaches */
	i = d.heads[9];
	j = d.entries[d.entries[i].next].next;
	set(&d, &d.view.heads[9], j);
	set(&d, &d.view.entries[d.entries[i].next].next, i);
	find_damage(&d);
	ck_assert_uint_eq(d.report.lost, 2);
	ck_assert_uint_eq(d.report.misplaced + d.report.twice + d.report.broken_links, 0);

	/* a struct_size that no release had */
	d.report.struct_size = offsetof(struct cua_chained_report, misplaced);
	d.report.misplaced = 77;
	ck_assert_status(cua_chained_verify(d.table, &d.report), CUA_ERROR_VALUE);
	ck_assert_uint_eq(d.report.misplaced, 77);
	ck_assert_cua(cua_chained_verify(d.table, NULL));

	free(keys);
	free(d.entries);
	free(d.heads);
	test_free(d.ctx, k);
	ck_assert_cua(cua_chained_destroy(d.table));
	cua_context_destroy(d.ctx);
}
END_TEST

/* More than 2^31 pairs of the same key in a single call. */
START_TEST(many)
{
	const size_t n = ((size_t)1 << 31) + 7;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t free_bytes = 0, total_bytes = 0, key = 7, count = 0, *keys, *out;
	struct cua_chained *table;

	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total_bytes));
	if (test_quick() || TEST_BACKEND == CUA_BACKEND_CPU || free_bytes < (uint64_t)n * 36) {
		printf("many: skipped\n");
		cua_context_destroy(ctx);
		return;
	}
	keys = test_alloc(ctx, 8 * n);
	out = test_alloc(ctx, 8);
	ck_assert_cua(cua_fill(ctx, keys, n, 8, &key));
	for (int i = 0; i < 3; i++) {
		table = new_table(ctx, i < 2 ? 100 : 1 << 20, n - 1);
		ck_assert_cua(add_n[i != 0](table, n, keys, keys));
		ck_assert_status(cua_chained_status(table), CUA_ERROR_FULL);
		ck_assert_cua(cua_chained_count_n(table, 1, keys, out));
		test_download(ctx, &count, out, 8);
		ck_assert_uint_eq(count, n - 1);
		count = 0;
		ck_assert_cua(cua_chained_values(table, key, 0, NULL, &count));
		ck_assert_uint_eq(count, n - 1);
		verify(table, n - 1);
		ck_assert_cua(cua_chained_destroy(table));
	}
	test_free(ctx, keys);
	test_free(ctx, out);
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA
/* ---- the inline functions, by a single thread ---- */

START_TEST(layouts)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_chained *table = new_table(ctx, 1, 10);
	struct cua_chained_entry before[10];
	struct cua_chained_view view;
	uint64_t value = 99, demand = 0;

	ck_assert_cua(cua_chained_get_view(table, &view));
	memset(view.entries, 0xa5, sizeof(before));
	ck_assert_int_eq(cua_chained_insert(&view, 1, 2) & cua_chained_push(&view, 1, 3), 1);
	memcpy(before, view.entries, sizeof(before));
	for (view.layout = 0; view.layout < 3; view.layout++) {
		if (view.layout == CUA_CHAINED_LAYOUT)
			continue;
		ck_assert_int_eq(cua_chained_insert(&view, 1, 5) | cua_chained_push(&view, 1, 5) |
					 cua_chained_build(&view, 1, 5) |
					 cua_chained_push_warp(&view, 1, 1, 1, 5),
				 0);
		ck_assert_uint_eq(cua_chained_first(&view, 1), CUA_CHAINED_NONE);
		ck_assert_uint_eq(cua_chained_next(&view, 1), CUA_CHAINED_NONE);
		ck_assert_uint_eq(cua_chained_value(&view, 1), 0);
		ck_assert_int_eq(cua_chained_find(&view, 1, &value), 0);
		ck_assert_uint_eq(cua_chained_count(&view, 1), 0);
	}
	ck_assert_uint_eq(value, 99);
	ck_assert_mem_eq(before, view.entries, sizeof(before));
	ck_assert_cua(cua_chained_demand(table, &demand));
	ck_assert_uint_eq(demand, 2);
	verify(table, 2);
	view.layout = CUA_CHAINED_LAYOUT;
	ck_assert_int_eq(cua_chained_find(&view, 1, &value), 1);
	ck_assert_uint_eq(value, 3);
	ck_assert_uint_eq(cua_chained_count(&view, 1), 2);
	ck_assert_cua(cua_chained_destroy(table));
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Entries with indexes of 31 bits, 32 bits or more. The entries are in the test's own memory, which
 * is touched only there.
 */
START_TEST(far_entries)
{
	const uint64_t first = ((uint64_t)1 << (31 + _i)) - 20, room = 40;
	const size_t bytes = (size_t)(first + room) * sizeof(struct cua_chained_entry);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct cua_chained_cursor cursor = {first};
	struct cua_spinlock locks[2];
	uint64_t heads[2] = {CUA_CHAINED_NONE, CUA_CHAINED_NONE}, i, at, value = 0;
	struct cua_chained_view view = {
		heads, locks, p, &cursor, 2, first + room, CUA_CHAINED_LAYOUT, 0, 0};

	if (p == MAP_FAILED) {
		printf("far_entries: skipped, too few addresses\n");
		return;
	}
	memset(locks, 0, sizeof(locks));
	for (i = 0; i < room + 4; i++) {
		int stored = i % 4 == 0   ? cua_chained_insert(&view, i % 3, i)
			     : i % 4 == 1 ? cua_chained_push(&view, i % 3, i)
			     : i % 4 == 2 ? cua_chained_push_warp(&view, 1, 1, i % 3, i)
					  : cua_chained_build(&view, i % 3, i);

		ck_assert_int_eq(stored, i < room);
	}
	ck_assert_uint_eq(cursor.demand, first + room + 4);
	for (uint64_t key = 0; key < 3; key++) {
		i = (room - 1 - key) / 3 * 3 + key;
		ck_assert_uint_eq(cua_chained_count(&view, key), i / 3 + 1);
		ck_assert_int_eq(cua_chained_find(&view, key, &value), 1);
		ck_assert_uint_eq(value, i);
		for (at = cua_chained_first(&view, key); at != CUA_CHAINED_NONE;
		     at = cua_chained_next(&view, at)) {
			ck_assert_uint_eq(at, first + i);
			ck_assert_uint_eq(cua_chained_value(&view, at), i);
			ck_assert_uint_eq(((struct cua_chained_entry *)p)[at].value, i);
			i -= 3;
		}
		ck_assert_uint_eq(i + 3, key);
	}
	munmap(p, bytes);
}
END_TEST

/* ---- host threads through the inline functions ---- */

#define THREADS 4
#define KEYS 5

struct thread {
	pthread_t id;
	struct cua_chained_view view;
	uint64_t number, rounds, stored, wrong;
	enum { INSERTS, PUSHES, BUILDS } way;
};

static int add_one(const struct thread *t, uint64_t key, uint64_t i)
{
	uint64_t value = t->number << 32 | i;

	if (t->way == INSERTS)
		return cua_chained_insert(&t->view, key, value);
	/* besides the building threads, one thread pushes */
	if (t->way == BUILDS && t->number != 1)
		return cua_chained_build(&t->view, key, value);
	return i & 1 ? cua_chained_push(&t->view, key, value)
		     : cua_chained_push_warp(&t->view, 1, 1, key, value);
}

/* Adds (key, number << 32 | i) with growing i, and reads in between, except during builds. */
static void *mix_main(void *arg)
{
	struct thread *t = arg;

	for (uint64_t i = 0; i < t->rounds; i++) {
		uint64_t key = i % KEYS, value = 0, before[THREADS], index;
		int stored = add_one(t, key, i);

		t->stored += (uint64_t)stored;
		if (i % 64 || t->way == BUILDS)
			continue;
		/* each thread's values are newest first, and the own value is there */
		for (int j = 0; j < THREADS; j++)
			before[j] = ~(uint64_t)0;
		for (index = cua_chained_first(&t->view, key); index != CUA_CHAINED_NONE;
		     index = cua_chained_next(&t->view, index)) {
			value = cua_chained_value(&t->view, index);
			t->wrong += value >> 32 >= THREADS || (uint32_t)value % KEYS != key ||
				    (uint32_t)value >= before[value >> 32];
			if (value >> 32 < THREADS)
				before[value >> 32] = (uint32_t)value;
			if (value == (t->number << 32 | i))
				stored = 0;
		}
		t->wrong += stored != 0;
	}
	return NULL;
}

START_TEST(threads_mix)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t rounds = test_quick() ? 1000 : 6000;

	for (int c = 0; c < 6; c++) {
		int small = c & 1;
		uint64_t capacity = rounds * THREADS - (small ? 1234 : 0), stored = 0, demand = 0,
			 all = 0;
		struct cua_chained *table = new_table(ctx, 3, capacity);
		struct thread threads[THREADS];

		memset(threads, 0, sizeof(threads));
		for (int i = 0; i < THREADS; i++) {
			ck_assert_cua(cua_chained_get_view(table, &threads[i].view));
			threads[i].number = (uint64_t)i;
			threads[i].rounds = rounds;
			threads[i].way = c / 2;
			ck_assert_int_eq(
				pthread_create(&threads[i].id, NULL, mix_main, &threads[i]), 0);
		}
		for (int i = 0; i < THREADS; i++)
			ck_assert_int_eq(pthread_join(threads[i].id, NULL), 0);
		for (int i = 0; i < THREADS; i++) {
			ck_assert_uint_eq(threads[i].wrong, 0);
			stored += threads[i].stored;
		}
		ck_assert_uint_eq(stored, capacity);
		ck_assert_cua(cua_chained_demand(table, &demand));
		ck_assert_uint_eq(demand, rounds * THREADS);
		ck_assert_status(cua_chained_status(table), small ? CUA_ERROR_FULL : CUA_OK);
		for (uint64_t key = 0; key < KEYS; key++)
			all += cua_chained_count(&threads[0].view, key);
		ck_assert_uint_eq(all, capacity);
		verify(table, capacity);
		ck_assert_cua(cua_chained_destroy(table));
	}
	cua_context_destroy(ctx);
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("chained");
	TCase *tcase = tcase_create("chained");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, bad_arguments);
	tcase_add_test(tcase, model);
	tcase_add_test(tcase, full);
	tcase_add_test(tcase, copies);
	tcase_add_test(tcase, verify_damage);
	tcase_add_test(tcase, many);
#if !TEST_CUDA
	tcase_add_test(tcase, layouts);
	tcase_add_loop_test(tcase, far_entries, 0, 2);
	tcase_add_test(tcase, threads_mix);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
