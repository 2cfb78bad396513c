/* SPDX-License-Identifier: MIT */
/*
 * Pairs that a full hash map rejects, and the statistics of a map.
 */
#include "hashmap_pairs.h"

START_TEST(rejected)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++)
		for (uint64_t room = 0; room < 90; room += 30) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o), .rejects = room};
			struct pair_map m = new_pair_map(ctx, c, 40, &o);
			size_t slots = slots_of(&m), n = slots + 50, kept, held = 0;
			struct pair *p = numbered_pairs(n, m.ks, m.vs, 6), *r;
			char keys[1024], values[1024];
			char *k = test_alloc(ctx, 1024), *v = test_alloc(ctx, 1024);
			uint64_t all = 99;

			ck_assert_cua(cua_hashmap_rejected(m.map, 60, k, v, &all));
			ck_assert_uint_eq(all, 0);
			ck_assert_cua(insert_pairs(&m, p, n));
			ck_assert_status(cua_hashmap_status(m.map), CUA_ERROR_FULL);
			for (int resized = 0; resized < 2; resized++) {
				ck_assert_cua(cua_hashmap_rejected(m.map, 60, k, v, &all));
				ck_assert_uint_eq(all, 50);
				kept = room < all ? room : all;
				test_download(ctx, keys, k, 1024);
				test_download(ctx, values, v, 1024);
				r = test_malloc(n * sizeof(*r));
				held = 0;
				for (size_t i = 0; i < n; i++) {
					size_t times = 0;

					for (size_t j = 0; j < kept; j++)
						times += u128_same(p[i].key,
								   load_u128(keys, m.ks, j)) &&
							 u128_same(p[i].value,
								   load_u128(values, m.vs, j));
					ck_assert_uint_le(times, 1);
					held += times;
				}
				free(r);
				ck_assert_uint_eq(held, kept);
				ck_assert_int_eq((uint8_t)keys[kept * m.ks], 0xa5);
				/* room for fewer pairs than the map kept */
				ck_assert_cua(cua_hashmap_rejected(m.map, 0, NULL, NULL, &all));
				ck_assert_uint_eq(all, 50);
				ck_assert_cua(cua_hashmap_resize(m.map, 2 * slots));
				ck_assert_status(cua_hashmap_status(m.map), CUA_ERROR_FULL);
			}
			ck_assert_cua(cua_hashmap_clear(m.map));
			ck_assert_cua(cua_hashmap_rejected(m.map, 60, k, v, &all));
			ck_assert_uint_eq(all, 0);
			ck_assert_cua(cua_hashmap_status(m.map));
			free(p);
			test_free(ctx, k);
			test_free(ctx, v);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Expects that the kept rejected pairs are distinct pairs p[i] with full[i]: all of them, or `room`
 * if they are more.
 */
static void expect_rejected(const struct pair_map *m, const struct pair *p, const uint8_t *full,
			    size_t n, uint64_t room)
{
	char *keys = test_malloc(n * m->ks), *values = test_malloc(n * m->vs + 1);
	void *k = test_alloc(m->ctx, n * m->ks), *v = test_alloc(m->ctx, n * m->vs + 1);
	struct pair *all = test_malloc((n + 1) * sizeof(*all)),
		    *kept = test_malloc((n + 1) * sizeof(*kept));
	uint64_t n_all = 0, reported = 99, n_kept;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		if (full[i])
			all[n_all++] = p[i];
	ck_assert_cua(cua_hashmap_rejected(m->map, n, k, m->vs ? v : NULL, &reported));
	ck_assert_uint_eq(reported, n_all);
	n_kept = n_all < room ? n_all : room;
	test_download(m->ctx, keys, k, n * m->ks);
	test_download(m->ctx, values, v, n * m->vs + 1);
	for (size_t i = 0; i < n_kept; i++) {
		kept[i].key = load_u128(keys, m->ks, i);
		kept[i].value = load_u128(values, m->vs, i);
	}
	qsort(all, n_all, sizeof(*all), by_key);
	qsort(kept, n_kept, sizeof(*kept), by_key);
	for (size_t i = 0; i < n_kept; i++, at++) {
		while (at < n_all && u128_below(all[at].key, kept[i].key))
			at++;
		EXPECT(at < n_all && u128_same(all[at].key, kept[i].key),
		       "rejected key %zu of %llu", i, (unsigned long long)n_all);
		EXPECT(u128_same(all[at].value, kept[i].value), "rejected value %zu of %llu", i,
		       (unsigned long long)n_all);
	}
	free(keys);
	free(values);
	free(all);
	free(kept);
	test_free(m->ctx, k);
	test_free(m->ctx, v);
}

/* Several workers reject pairs at once, in insert_n, exchange_n and merge. */
START_TEST(rejected_by_many)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = 50000;
	uint8_t *r = test_alloc(ctx, n), *full = test_malloc(n);

	ck_assert_cua(cua_context_set_threads(ctx, 4));
	for (int c = 0; c < PAIR_SIZES; c += test_quick() ? 4 : 1)
		for (int call = 0; call < 4; call++) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o),
							.portable = call % 2,
							.rejects = call % 2 ? 10000 : n};
			struct pair_map m = new_pair_map(ctx, c, n / 4, &o),
					from = new_pair_map(ctx, c, n, NULL);
			struct pair *p = numbered_pairs(n, m.ks, m.vs, 6), *old;
			void *k = upload_keys(ctx, p, n, m.ks), *v = upload_values(ctx, p, n, m.vs);
			void *w = test_alloc(ctx, n * m.vs + 1);
			uint64_t size = 0, there = 0;

			if (call == 2 && m.vs)
				ck_assert_cua(cua_hashmap_exchange_n(m.map, n, k, v, w, r));
			else if (call < 3)
				ck_assert_cua(cua_hashmap_insert_n(m.map, n, k, v, r));
			if (call < 3) {
				test_download(ctx, full, r, n);
				for (size_t i = 0; i < n; i++)
					full[i] = full[i] == CUA_HASHMAP_FULL;
			} else {
				/* both maps have some keys, with different values */
				old = numbered_pairs(n / 8, m.ks, m.vs, 6);
				for (size_t i = 0; i < n / 8; i++)
					old[i].value = value_number(n + i, m.vs);
				ck_assert_cua(insert_pairs(&m, old, n / 8));
				ck_assert_cua(insert_pairs(&from, p, n));
				ck_assert_cua(cua_hashmap_merge(m.map, from.map,
								m.vs ? CUA_HASHMAP_XOR
								     : CUA_HASHMAP_KEEP));
				ck_assert_cua(cua_hashmap_contains_n(m.map, n, k, r));
				test_download(ctx, full, r, n);
				for (size_t i = 0; i < n; i++)
					full[i] = !full[i];
				free(old);
			}
			for (size_t i = 0; i < n; i++)
				there += !full[i];
			ck_assert_cua(cua_hashmap_size(m.map, &size));
			ck_assert_uint_eq(size, there);
			ck_assert_uint_eq(size, slots_of(&m));
			expect_rejected(&m, p, full, n, o.rejects);
			free(p);
			test_free(ctx, k);
			test_free(ctx, v);
			test_free(ctx, w);
			ck_assert_cua(cua_hashmap_destroy(m.map));
			ck_assert_cua(cua_hashmap_destroy(from.map));
		}
	free(full);
	test_free(ctx, r);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * A reserved key needs no slot in the layout of words, but a slot in the layout of states. There a
 * full map rejects it like any other key.
 */
START_TEST(special_rejected)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int run = 0; run < 2 * PAIR_SIZES; run++) {
		struct cua_hashmap_options o = {
			.struct_size = sizeof(o), .portable = run % 2, .rejects = 40};
		struct pair_map m = new_pair_map(ctx, run / 2, 40, &o);
		struct cua_u128 keys[SPECIAL_PATTERNS];
		size_t n = special_patterns(m.ks, keys), slots = slots_of(&m), fit = 0, held = 0;
		struct pair *p = numbered_pairs(slots, m.ks, m.vs, 6), s[SPECIAL_PATTERNS];
		uint8_t *r = test_alloc(ctx, n), results[SPECIAL_PATTERNS];
		char *rk = test_malloc(40 * m.ks), *rv = test_malloc(40 * m.vs + 1);
		void *k, *v, *wk = test_alloc(ctx, 40 * m.ks), *wv = test_alloc(ctx, 40 * m.vs + 1);
		uint64_t all = 99, kept, size = 99;

		ck_assert_cua(insert_pairs(&m, p, slots));
		ck_assert_cua(cua_hashmap_status(m.map));
		for (size_t i = 0; i < n; i++) {
			s[i].key = keys[i];
			s[i].value = value_number(i, m.vs);
		}
		k = upload_keys(ctx, s, n, m.ks);
		v = upload_values(ctx, s, n, m.vs);
		ck_assert_cua(cua_hashmap_insert_n(m.map, n, k, v, r));
		test_download(ctx, results, r, n);
		for (size_t i = 0; i < n; i++) {
			ck_assert(results[i] == CUA_HASHMAP_INSERTED ||
				  results[i] == CUA_HASHMAP_FULL);
			fit += results[i] == CUA_HASHMAP_INSERTED;
		}
		/* at most two reserved slots, and none in the layout of states */
		ck_assert_uint_le(fit, run % 2 && m.ks + m.vs > 8 ? 0 : 2);
		ck_assert_cua(cua_hashmap_size(m.map, &size));
		ck_assert_uint_eq(size, slots + fit);
		ck_assert_status(cua_hashmap_status(m.map), CUA_ERROR_FULL);
		ck_assert_cua(cua_hashmap_rejected(m.map, 40, wk, m.vs ? wv : NULL, &all));
		ck_assert_uint_eq(all, n - fit);
		kept = all < 40 ? all : 40;
		test_download(ctx, rk, wk, 40 * m.ks);
		test_download(ctx, rv, wv, 40 * m.vs + 1);
		for (size_t i = 0; i < n; i++) {
			size_t times = 0;

			for (uint64_t j = 0; j < kept; j++)
				times += u128_same(s[i].key, load_u128(rk, m.ks, j)) &&
					 u128_same(s[i].value, load_u128(rv, m.vs, j));
			ck_assert_uint_le(times, results[i] == CUA_HASHMAP_FULL);
			held += times;
		}
		ck_assert_uint_eq(held, kept);
		free(p);
		free(rk);
		free(rv);
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, r);
		test_free(ctx, wk);
		test_free(ctx, wv);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- statistics ---- */

/* A copy of the map in host memory, for the inline functions. Free buckets and counts. */
static struct cua_hashmap_view host_view(const struct pair_map *m)
{
	const size_t counts = CUA_HASHMAP_STRIPES * sizeof(struct cua_hashmap_counts) + 32;
	struct cua_hashmap_view view;
	void *copy;
	size_t bytes;

	ck_assert_cua(cua_hashmap_get_view(m->map, &view));
	bytes = view.n_buckets * (view.layout == CUA_HASHMAP_WORDS ? 64 : 128);
	copy = test_malloc(counts);
	test_download(m->ctx, copy, view.counts, counts);
	view.counts = copy;
	copy = test_malloc(bytes);
	test_download(m->ctx, copy, view.buckets, bytes);
	view.buckets = copy;
	return view;
}

/* Expects the statistics of distances that the slots of the keys imply. */
static void expect_probes(const struct pair_map *m, const struct cua_hashmap_statistics *s)
{
	struct cua_hashmap_view view = host_view(m);
	const int words = view.layout == CUA_HASHMAP_WORDS;
	const uint64_t slots = words ? cua__hashmap_word_slots(m->ks, m->vs)
				     : cua__hashmap_state_slots(m->ks, m->vs);
	uint64_t probes[CUA_HASHMAP_PROBES] = {0};
	struct cua_u128 key, value;

	/* indexes after the buckets are reserved slots, at distance 0 */
	for (uint64_t index = 0; index < cua__hashmap_all_slots(&view, m->ks, m->vs); index++) {
		uint64_t hash, home, d = 0;

		if (!cua__hashmap_at(&view, m->ks, m->vs, index, &key, &value))
			continue;
		hash = m->ks == 16 ? cua_hash_u128(key, view.seed)
				   : cua_hash_u64(key.lo, view.seed);
		home = cua_hash_to_index(hash, view.n_buckets);
		if (words && index < view.n_buckets * slots) {
			while (d < CUA_HASHMAP_PROBES - 1 &&
			       cua__hashmap_word_probe(&view, home, hash, d) != index / slots)
				d++;
		} else if (!words) {
			/* keys probe slot by slot from the home slot, and wrap around the table */
			const uint64_t all = view.n_buckets * slots;
			const uint64_t from =
				home * slots +
				cua__hashmap_state_home(&view, m->ks, m->vs, hash).slot;

			d = (from % slots + (index + all - from) % all) / slots;
		}
		probes[d < CUA_HASHMAP_PROBES - 1 ? d : CUA_HASHMAP_PROBES - 1]++;
	}
	for (int i = 0; i < CUA_HASHMAP_PROBES; i++)
		EXPECT(s->probes[i] == probes[i],
		       "sizes %u + %u: %llu keys %d behind their home, not %llu", m->ks, m->vs,
		       (unsigned long long)s->probes[i], i, (unsigned long long)probes[i]);
	free(view.buckets);
	free(view.counts);
}

START_TEST(statistics)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++)
		for (int percent = 0; percent <= 100; percent += 25) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o),
							.portable = c % 2};
			struct pair_map m = new_pair_map(ctx, c, 3000, &o);
			struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
			size_t slots = slots_of(&m), n = slots * (size_t)percent / 100,
			       gone = n / 4;
			struct pair *p = numbered_pairs(n, m.ks, m.vs, 6);
			struct cua_hashmap_view view;
			uint64_t homes[4096] = {0}, worst = 0, sum = 0, buckets = 0;
			void *k;

			ck_assert_cua(cua_hashmap_get_view(m.map, &view));
			ck_assert_uint_le(view.n_buckets, 4096);
			ck_assert_cua(insert_pairs(&m, p, n));
			ck_assert_cua(cua_hashmap_get_statistics(m.map, &s));
			for (size_t i = 0; i < n; i++) {
				uint64_t hash = m.ks == 16 ? cua_hash_u128(p[i].key, view.seed)
							   : cua_hash_u64(p[i].key.lo, view.seed);
				uint64_t home = cua_hash_to_index(hash, view.n_buckets);

				if (++homes[home] > worst)
					worst = homes[home];
			}
			for (int i = 0; i < CUA_HASHMAP_PROBES; i++)
				sum += s.probes[i];
			for (uint64_t i = 0; i < view.n_buckets; i++)
				buckets += homes[i] > 0;
			ck_assert_uint_eq(s.keys, n);
			ck_assert_uint_eq(sum, n);
			ck_assert_uint_eq(s.slots, slots);
			ck_assert_uint_eq(s.free + s.erased, slots - n);
			ck_assert_uint_eq(s.erased, 0);
			ck_assert_uint_eq(s.worst_bucket, worst);
			ck_assert(s.load > (double)percent / 100 - 0.01 &&
				  s.load < (double)percent / 100 + 0.01);
			ck_assert_uint_eq(s.rejected, 0);
			expect_probes(&m, &s);
			/*
			 * In the layout of words, the first key of each home bucket stays there. Up
			 * to load 0.75, half of the keys are in their home buckets.
			 */
			if (percent <= 75)
				ck_assert_uint_ge(s.probes[0], n / 2);
			if (view.layout == CUA_HASHMAP_WORDS && percent <= 25)
				ck_assert_uint_ge(s.probes[0], buckets * 9 / 10);

			/* more keys than slots */
			if (percent == 100) {
				struct pair *more = numbered_pairs(30, m.ks, m.vs, 6 + n);

				ck_assert_cua(insert_pairs(&m, more, 30));
				ck_assert_cua(cua_hashmap_get_statistics(m.map, &s));
				ck_assert_uint_eq(s.rejected, 30);
				ck_assert_uint_eq(s.keys, n);
				ck_assert_uint_eq(s.free + s.erased, 0);
				expect_probes(&m, &s);
				free(more);
			}
			k = upload_keys(ctx, p, gone, m.ks);
			ck_assert_cua(cua_hashmap_erase_n(m.map, gone, k, NULL));
			/* a struct_size that no release had */
			s.struct_size = offsetof(struct cua_hashmap_statistics, probes);
			s.probes[0] = 12345;
			ck_assert_status(cua_hashmap_get_statistics(m.map, &s), CUA_ERROR_VALUE);
			ck_assert_uint_eq(s.probes[0], 12345);
			s.struct_size = sizeof(s);
			ck_assert_cua(cua_hashmap_get_statistics(m.map, &s));
			ck_assert_uint_eq(s.keys, n - gone);
			ck_assert_uint_eq(s.free + s.erased, slots - n + gone);
			if (view.layout == CUA_HASHMAP_WORDS)
				ck_assert_uint_ge(s.erased, gone);
			free(p);
			test_free(ctx, k);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_reject");
	TCase *tcase = tcase_create("hashmap_reject");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, rejected);
	tcase_add_test(tcase, rejected_by_many);
	tcase_add_test(tcase, special_rejected);
	tcase_add_test(tcase, statistics);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
