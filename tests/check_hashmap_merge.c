/* SPDX-License-Identifier: MIT */
/*
 * Merges of hash maps, also of different layouts.
 */
#include "hashmap_pairs.h"

#include <unistd.h>

START_TEST(merged)
{
	static const int all[] = {CUA_HASHMAP_KEEP, CUA_HASHMAP_ADD,    CUA_HASHMAP_MIN,
				  CUA_HASHMAP_MAX,  CUA_HASHMAP_AND,    CUA_HASHMAP_OR,
				  CUA_HASHMAP_XOR,  CUA_HASHMAP_REPLACE};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++)
		for (size_t h = 0; h < sizeof(all) / sizeof(all[0]); h++) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o), .seed = 77};
			struct pair_map m = new_pair_map(ctx, c, 4000, NULL),
					from = new_pair_map(ctx, c, 2500, &o);
			/*
			 * m has keys 0 to 1999; from has 0 to 499 and 2000 to 2999, with other
			 * values
			 */
			struct pair *a = numbered_pairs(3000, m.ks, m.vs, 0),
				    *b = numbered_pairs(3000, m.ks, m.vs, 0);

			for (size_t i = 0; i < 3000; i++)
				b[i].value = value_number(i * 31 + 5, m.vs);
			ck_assert_cua(insert_pairs(&m, a, 2000));
			ck_assert_cua(insert_pairs(&from, b, 500));
			ck_assert_cua(insert_pairs(&from, b + 2000, 1000));
			if (!m.vs && h) {
				ck_assert_status(
					cua_hashmap_merge(m.map, from.map,
							  (enum cua_hashmap_merge_rule)all[h]),
					CUA_ERROR_TYPE);
			} else {
				ck_assert_cua(cua_hashmap_merge(
					m.map, from.map, (enum cua_hashmap_merge_rule)all[h]));
				for (size_t i = 0; i < 500; i++)
					a[i].value = combine_values(a[i].value, b[i].value, all[h],
								    m.vs);
				memcpy(a + 2000, b + 2000, 1000 * sizeof(*a));
				expect_pairs(&m, a, 3000);
			}
			memmove(b + 500, b + 2000, 1000 * sizeof(*b));
			expect_pairs(&from, b, 1500);
			free(a);
			free(b);
			ck_assert_cua(cua_hashmap_destroy(m.map));
			ck_assert_cua(cua_hashmap_destroy(from.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

/* A merge rejects the pairs that do not fit. */
START_TEST(merged_full)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct pair_map m = new_pair_map(ctx, 0, 7, NULL), from = new_pair_map(ctx, 0, 100, NULL);
	struct pair *p = numbered_pairs(50, 4, 4, 6);
	uint64_t size = 0, all = 0;

	ck_assert_cua(insert_pairs(&from, p, 50));
	ck_assert_cua(cua_hashmap_merge(m.map, from.map, CUA_HASHMAP_KEEP));
	ck_assert_status(cua_hashmap_status(m.map), CUA_ERROR_FULL);
	ck_assert_cua(cua_hashmap_size(m.map, &size));
	ck_assert_uint_eq(size, slots_of(&m));
	ck_assert_cua(cua_hashmap_rejected(m.map, 0, NULL, NULL, &all));
	ck_assert_uint_eq(all, 50 - size);
	free(p);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	ck_assert_cua(cua_hashmap_destroy(from.map));
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Maps with the layouts of words and of states, if the sizes allow both: merge, save, load, resize.
 */
START_TEST(between_layouts)
{
	static const int all[] = {CUA_HASHMAP_KEEP, CUA_HASHMAP_ADD, CUA_HASHMAP_XOR,
				  CUA_HASHMAP_REPLACE};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	for (int run = 0; run < 2 * PAIR_SIZES; run++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = run % 2};
		struct cua_hashmap_options other = {
			.struct_size = sizeof(other), .portable = !o.portable, .seed = 3};
		struct pair_map m = new_pair_map(ctx, run / 2, 1000, &o),
				from = new_pair_map(ctx, run / 2, 1000, &other), l = m;
		/* m has keys 0 to 599; from has 400 to 899, with other values */
		struct pair *a = numbered_pairs(900, m.ks, m.vs, 0),
			    *b = numbered_pairs(500, m.ks, m.vs, 400);
		struct cua_hashmap_view view, was;

		ck_assert_cua(cua_hashmap_get_view(m.map, &was));
		for (size_t i = 0; i < 500; i++)
			b[i].value = value_number(i * 31 + 5, m.vs);
		ck_assert_cua(insert_pairs(&from, b, 500));
		for (int h = 0; h < (m.vs ? 4 : 1); h++) {
			struct pair *e = numbered_pairs(900, m.ks, m.vs, 0);

			ck_assert_cua(cua_hashmap_clear(m.map));
			ck_assert_cua(insert_pairs(&m, a, 600));
			ck_assert_cua(cua_hashmap_merge(m.map, from.map,
							(enum cua_hashmap_merge_rule)all[h]));
			for (size_t i = 0; i < 500; i++)
				e[400 + i].value =
					i < 200 ? combine_values(e[400 + i].value, b[i].value,
								 all[h], m.vs)
						: b[i].value;
			expect_pairs(&m, e, 900);
			if (!h) {
				/*
				 * load into the other layout, save there, load with the first
				 * layout
				 */
				ck_assert_cua(cua_hashmap_save(m.map, "a"));
				ck_assert_cua(cua_hashmap_load(ctx, &other, "a", &l.map));
				expect_pairs(&l, e, 900);
				ck_assert_cua(cua_hashmap_save(l.map, "a"));
				ck_assert_cua(cua_hashmap_destroy(l.map));
				ck_assert_cua(cua_hashmap_load(ctx, &o, "a", &l.map));
				ck_assert_cua(cua_hashmap_get_view(l.map, &view));
				ck_assert_uint_eq(view.layout, was.layout);
				expect_pairs(&l, e, 900);
				ck_assert_cua(cua_hashmap_destroy(l.map));
				/* resize keeps the layout */
				for (uint64_t capacity = 900; capacity < 9000; capacity *= 3) {
					ck_assert_cua(cua_hashmap_resize(m.map, capacity));
					ck_assert_cua(cua_hashmap_get_view(m.map, &view));
					ck_assert_uint_eq(view.layout, was.layout);
					expect_pairs(&m, e, 900);
				}
			}
			free(e);
		}
		free(a);
		free(b);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(from.map));
	}
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_merge");
	TCase *tcase = tcase_create("hashmap_merge");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, merged);
	tcase_add_test(tcase, merged_full);
	tcase_add_test(tcase, between_layouts);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
