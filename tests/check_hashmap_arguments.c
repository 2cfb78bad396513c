/* SPDX-License-Identifier: MIT */
/*
 * Arguments that the calls on a hash map refuse. A refused call changes nothing.
 */
#include "hashmap_pairs.h"
#include "hashmap_words.h"

#include <errno.h>

START_TEST(bad_bulk_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = NULL, *kept = (struct cua_hashmap *)&map;
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;
	struct cua_hashmap_view view;
	uint64_t number = 5, some[4] = {1, 2, 3, 4};
	uint32_t *keys = test_alloc(ctx, 64);
	uint64_t *values = test_alloc(ctx, 64);
	uint8_t *flags = test_alloc(ctx, 64);
	char *inside;

	options.seed = 1;
	ck_assert_status(cua_hashmap_create(NULL, NULL, CUA_U32, CUA_U64, 9, &kept),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U64, 9, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_I32, CUA_U64, 9, &kept), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_F64, 9, &kept), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, (enum cua_type)99, CUA_U64, 9, &kept),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U64, 0, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U64, ~(uint64_t)0, &kept),
			 CUA_ERROR_SIZE);
	options.struct_size = 1;
	ck_assert_status(cua_hashmap_create(ctx, &options, CUA_U32, CUA_U64, 9, &kept),
			 CUA_ERROR_VALUE);
	options.struct_size = sizeof(options) + 1;
	ck_assert_status(cua_hashmap_create(ctx, &options, CUA_U32, CUA_U64, 9, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_ptr_eq(kept, &map);
	options.struct_size = sizeof(options);
	ck_assert_cua(cua_hashmap_create(ctx, &options, CUA_U32, CUA_U64, 9, &map));

	ck_assert_status(cua_hashmap_get_view(NULL, &view), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_get_view(map, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert(view.layout == CUA_HASHMAP_WORDS || view.layout == CUA_HASHMAP_STATES);
	ck_assert_uint_eq(view.seed, 1);
	inside = view.buckets;
	ck_assert_status(cua_hashmap_capacity(NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_capacity(map, NULL), CUA_ERROR_NULL);
	ck_assert_uint_eq(number, 5);
	ck_assert_cua(cua_hashmap_capacity(map, &number));
	ck_assert_uint_ge(number, 9);
	ck_assert_uint_le(number, 14);
	ck_assert_status(cua_hashmap_clear(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_status(NULL), CUA_ERROR_NULL);

	ck_assert_cua(cua_copy(ctx, keys, some, 16));
	ck_assert_cua(cua_copy(ctx, values, some, 32));
	ck_assert_cua(cua_hashmap_insert_n(map, 2, keys, values, NULL));
	ck_assert_uint_eq(map_size(map), 2);

	for (int assign = 0; assign < 3; assign++) {
#define WRITE(map, n, keys, values, results)                                                       \
	(assign == 2 ? cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, values, results)         \
	 : assign    ? cua_hashmap_assign_n(map, n, keys, values, results)                         \
		     : cua_hashmap_insert_n(map, n, keys, values, results))
		ck_assert_status(WRITE(NULL, 1, keys, values, flags), CUA_ERROR_NULL);
		ck_assert_status(WRITE(map, 1, NULL, values, flags), CUA_ERROR_NULL);
		ck_assert_status(WRITE(map, 1, keys, NULL, flags), CUA_ERROR_NULL);
		ck_assert_status(WRITE(map, ~(size_t)0, keys, values, flags), CUA_ERROR_SIZE);
		ck_assert_status(WRITE(map, 1, (char *)keys + 2, values, flags),
				 CUA_ERROR_ALIGNMENT);
		ck_assert_status(WRITE(map, 1, keys, (char *)values + 4, flags),
				 CUA_ERROR_ALIGNMENT);
		ck_assert_status(WRITE(map, 4, keys, values, (uint8_t *)keys + 15),
				 CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, keys, values, (uint8_t *)values), CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, inside, values, flags), CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, keys, inside, flags), CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, keys, values, (uint8_t *)inside), CUA_ERROR_OVERLAP);
		ck_assert_cua(WRITE(map, 0, NULL, NULL, NULL));
#undef WRITE
	}
	ck_assert_status(cua_hashmap_update_n(map, (enum cua_update)0, 1, keys, values, flags),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_hashmap_update_n(map, (enum cua_update)16, 1, keys, values, flags),
			 CUA_ERROR_VALUE);

#define UPDATE(map, op, n, keys, value, results)                                                   \
	cua_hashmap_update_value_n(map, (enum cua_update)(op), n, keys, value, results)
	ck_assert_status(UPDATE(NULL, CUA_UPDATE_ADD, 1, keys, &number, flags), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, NULL, &number, flags), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, keys, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 0, NULL, NULL, NULL), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, 0, 1, keys, &number, flags), CUA_ERROR_VALUE);
	ck_assert_status(UPDATE(map, 16, 1, keys, &number, flags), CUA_ERROR_VALUE);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, ~(size_t)0, keys, &number, flags),
			 CUA_ERROR_SIZE);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, keys, (void *)(UINTPTR_MAX - 3), flags),
			 CUA_ERROR_SIZE);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, (char *)keys + 1, &number, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 4, keys, &number, (uint8_t *)keys + 15),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 4, inside, &number, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 4, keys, &number, (uint8_t *)inside),
			 CUA_ERROR_OVERLAP);
	/* a CUDA map rejects an operand in device memory */
	ck_assert_status(UPDATE(map, CUA_UPDATE_MIN, 0, keys, values, flags),
			 TEST_BACKEND == CUA_BACKEND_CUDA ? CUA_ERROR_MEMORY_KIND : CUA_OK);
	ck_assert_cua(UPDATE(map, CUA_UPDATE_ADD, 0, NULL, &number, NULL));
#undef UPDATE

	ck_assert_status(cua_hashmap_find_n(NULL, 1, keys, values, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_find_n(map, 1, NULL, values, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_find_n(map, 1, keys, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_find_n(map, ~(size_t)0, keys, values, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_find_n(map, 1, (char *)keys + 1, values, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_find_n(map, 1, keys, (char *)values + 4, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_find_n(map, 2, keys, keys, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, values, (uint8_t *)values + 31),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, values, (uint8_t *)keys),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, inside, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, values, (uint8_t *)inside),
			 CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_hashmap_find_n(map, 0, NULL, NULL, NULL));

	ck_assert_status(cua_hashmap_contains_n(NULL, 1, keys, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_contains_n(map, 1, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_contains_n(map, 1, keys, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_contains_n(map, ~(size_t)0, keys, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_contains_n(map, 1, (char *)keys + 1, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_contains_n(map, 1, keys, (uint8_t *)keys + 3),
			 CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_hashmap_contains_n(map, 0, NULL, NULL));

	ck_assert_status(cua_hashmap_erase_n(NULL, 1, keys, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_erase_n(map, 1, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_erase_n(map, ~(size_t)0, keys, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_erase_n(map, 1, (char *)keys + 1, flags), CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_erase_n(map, 1, keys, (uint8_t *)keys), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_erase_n(map, 1, inside, flags), CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_hashmap_erase_n(map, 0, NULL, NULL));

	number = 5;
	ck_assert_status(cua_hashmap_size(NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_size(map, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_size(map, (uint64_t *)(void *)((char *)values + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_size(map, (uint64_t *)(void *)inside), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_retrieve(NULL, CUA_HASHMAP_ANY, 1, keys, values, &number),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, NULL, values, &number),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, NULL, &number),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, values, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(
		cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, ~(uint64_t)0, keys, values, &number),
		CUA_ERROR_SIZE);
	ck_assert_status(
		cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, (char *)keys + 1, values, &number),
		CUA_ERROR_ALIGNMENT);
	ck_assert_status(
		cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, (char *)values + 4, &number),
		CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, values,
					      (uint64_t *)(void *)(flags + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 2, values, values, &number),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 2, keys, values, values + 1),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, inside, values, &number),
			 CUA_ERROR_OVERLAP);
	ck_assert_uint_eq(number, 5);

#if TEST_CUDA
	{
		/* memory of malloc: an error if the device cannot access it */
		enum cua_status status;
		uint32_t *host = test_malloc(64);

		memset(host, 0, 64);
		status = cua_hashmap_contains_n(map, 1, host, flags);
		ck_assert(status == CUA_ERROR_MEMORY_KIND || status == CUA_OK);
		ck_assert_cua(cua_context_synchronize(ctx));
		free(host);
	}
#endif
	/* the map is unchanged */
	ck_assert_uint_eq(map_size(map), 2);
	ck_assert_cua(cua_hashmap_status(map));
	number = 0;
	ck_assert_cua(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 0, NULL, NULL, &number));
	ck_assert_uint_eq(number, 2);

	ck_assert_cua(cua_hashmap_destroy(map));
	ck_assert_cua(cua_hashmap_destroy(NULL));
	test_free(ctx, keys);
	test_free(ctx, values);
	test_free(ctx, flags);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(bad_map_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *other = test_context(TEST_BACKEND);
	struct cua_hashmap_options own = {.struct_size = sizeof(own), .own_hash = 1};
	struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
	struct pair_map m = new_pair_map(ctx, 0, 20, NULL), set = new_pair_map(ctx, 9, 20, NULL),
			wide = new_pair_map(ctx, 4, 20, NULL);
	struct pair_map large = new_pair_map(ctx, 8, 20, NULL);
	struct pair_map strange = new_pair_map(other, 0, 20, NULL),
			hashed = new_pair_map(ctx, 0, 20, &own);
	struct pair *p = numbered_pairs(10, 4, 4, 0);
	uint64_t n = 5, slots = slots_of(&m);
	uint32_t *k = test_alloc(ctx, 64), *v = test_alloc(ctx, 64);
	struct cua_hashmap *loaded = NULL;
	struct cua_hashmap_view view;
	char host[64];
	size_t bytes = 5;

	ck_assert_cua(insert_pairs(&m, p, 10));
	ck_assert_cua(cua_hashmap_get_view(m.map, &view));
	ck_assert_status(cua_hashmap_retrieve(m.map, (enum cua_hashmap_order)2, 1, k, v, &n),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_hashmap_retrieve(NULL, CUA_HASHMAP_SORTED, 1, k, v, &n),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve_workspace(NULL, CUA_HASHMAP_SORTED, 1, &bytes),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve_workspace(m.map, CUA_HASHMAP_SORTED, 1, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(
		cua_hashmap_retrieve_workspace(m.map, (enum cua_hashmap_order)2, 1, &bytes),
		CUA_ERROR_VALUE);
	ck_assert_status(
		cua_hashmap_retrieve_workspace(m.map, CUA_HASHMAP_SORTED, ~(uint64_t)0, &bytes),
		CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_build_workspace(NULL, 1, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_build_workspace(m.map, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_build_workspace(m.map, SIZE_MAX, &bytes), CUA_ERROR_SIZE);
	ck_assert_uint_eq(bytes, 5);
	ck_assert_cua(cua_hashmap_build_workspace(m.map, 0, &bytes));
	ck_assert_uint_eq(bytes, 0);
	ck_assert_status(cua_hashmap_find_n(set.map, 1, k, v, NULL), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_find_n(set.map, 1, k, NULL, (uint8_t *)v), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_rejected(NULL, 1, k, v, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_rejected(m.map, 1, NULL, v, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_rejected(m.map, 1, k, v, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_rejected(m.map, 2, k, k, &n), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_rejected(m.map, 1, (char *)k + 1, v, &n), CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_rejected(m.map, 1, view.buckets, v, &n), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_rejected(m.map, ~(uint64_t)0, k, v, &n), CUA_ERROR_SIZE);

	ck_assert_status(cua_hashmap_resize(NULL, 9), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_resize(m.map, 0), CUA_ERROR_VALUE);
	ck_assert_status(cua_hashmap_resize(m.map, 9), CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_resize(m.map, ~(uint64_t)0), CUA_ERROR_SIZE);
	/* more bytes than the address space */
	ck_assert_status(cua_hashmap_resize(large.map, (uint64_t)1 << 44), CUA_ERROR_NO_MEMORY);
	ck_assert_status(cua_hashmap_resize(hashed.map, 90), CUA_ERROR_UNSUPPORTED);
	ck_assert_uint_eq(slots_of(&m), slots);

	ck_assert_status(cua_hashmap_merge(NULL, m.map, CUA_HASHMAP_KEEP), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_merge(m.map, NULL, CUA_HASHMAP_KEEP), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_merge(m.map, m.map, CUA_HASHMAP_KEEP), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_merge(m.map, strange.map, CUA_HASHMAP_KEEP),
			 CUA_ERROR_CONTEXT);
	ck_assert_status(cua_hashmap_merge(m.map, wide.map, CUA_HASHMAP_KEEP), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_merge(m.map, set.map, CUA_HASHMAP_KEEP), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_merge(set.map, set.map, CUA_HASHMAP_ADD), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_merge(m.map, hashed.map, CUA_HASHMAP_KEEP),
			 CUA_ERROR_UNSUPPORTED);
	for (int how = -1; how < 20; how++)
		if (how < 0 || (how > 6 && how != 16))
			ck_assert_status(cua_hashmap_merge(m.map, wide.map,
							   (enum cua_hashmap_merge_rule)how),
					 CUA_ERROR_VALUE);

	ck_assert_status(cua_hashmap_get_statistics(NULL, &s), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_get_statistics(m.map, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_get_statistics(hashed.map, &s), CUA_ERROR_UNSUPPORTED);
	s.struct_size++;
	ck_assert_status(cua_hashmap_get_statistics(m.map, &s), CUA_ERROR_VALUE);
	s.struct_size = 0;
	ck_assert_status(cua_hashmap_get_statistics(m.map, &s), CUA_ERROR_VALUE);

	ck_assert_status(cua_hashmap_copy_to_host(NULL, 1, host, host + 4, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 1, NULL, host, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 1, host, NULL, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 1, host, host + 4, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, ~(uint64_t)0, host, host + 4, &n),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 10, host, host, &n), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 2, host + 7, host, &n), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 1, &n, host, &n), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 1, host, (char *)&n + 7, &n),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_copy_to_host(set.map, 1, &n, NULL, &n), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 1, view.buckets, host, &n),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 1, host, view.counts, &n),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(
		cua_hashmap_copy_to_host(m.map, 1, host, host + 4, (uint64_t *)(void *)view.counts),
		CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_for_each(NULL, abort_visit, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_for_each(m.map, NULL, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_hashmap_for_each(set.map, abort_visit, NULL));

	ck_assert_status(cua_hashmap_save(NULL, "x"), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_save(m.map, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_save(hashed.map, "x"), CUA_ERROR_UNSUPPORTED);
	ck_assert_status(cua_hashmap_load(NULL, NULL, "x", &loaded), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_load(ctx, NULL, NULL, &loaded), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "x", NULL), CUA_ERROR_NULL);
	errno = 0;
	ck_assert_status(cua_hashmap_load(ctx, NULL, "/no such/file", &loaded), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ENOENT);
	errno = 0;
	ck_assert_status(cua_hashmap_save(m.map, "/no such/file"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_ptr_null(loaded);
	ck_assert_uint_eq(n, 5);
	expect_pairs(&m, p, 10);

	free(p);
	test_free(ctx, k);
	test_free(ctx, v);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	ck_assert_cua(cua_hashmap_destroy(set.map));
	ck_assert_cua(cua_hashmap_destroy(wide.map));
	ck_assert_cua(cua_hashmap_destroy(large.map));
	ck_assert_cua(cua_hashmap_destroy(hashed.map));
	ck_assert_cua(cua_hashmap_destroy(strange.map));
	cua_context_destroy(ctx);
	cua_context_destroy(other);
}
END_TEST

/* insert_or_get_n and exchange_n also check values_out. */
START_TEST(bad_values_out)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct pair_map m = new_pair_map(ctx, 4, 20, NULL), set = new_pair_map(ctx, 10, 20, NULL);
	struct pair *p = numbered_pairs(8, 8, 8, 0);
	uint64_t *k = upload_keys(ctx, p, 8, 8), *v = upload_values(ctx, p, 8, 8),
		 *w = test_alloc(ctx, 64);
	uint8_t *r = test_alloc(ctx, 8), results[8];
	struct cua_hashmap_view view;
	uint64_t size = 99;

	ck_assert_cua(cua_hashmap_get_view(m.map, &view));
	for (int exchange = 0; exchange < 2; exchange++) {
#define CALL(map, n, keys, values, values_out, results)                                            \
	(exchange ? cua_hashmap_exchange_n(map, n, keys, values, values_out, results)              \
		  : cua_hashmap_insert_or_get_n(map, n, keys, values, values_out, results))
		ck_assert_status(CALL(NULL, 1, k, v, w, r), CUA_ERROR_NULL);
		ck_assert_status(CALL(m.map, 1, NULL, v, w, r), CUA_ERROR_NULL);
		ck_assert_status(CALL(m.map, 1, k, NULL, w, r), CUA_ERROR_NULL);
		ck_assert_status(CALL(m.map, 1, k, v, NULL, r), CUA_ERROR_NULL);
		ck_assert_status(CALL(set.map, 1, k, v, w, r), CUA_ERROR_TYPE);
		ck_assert_status(CALL(m.map, ~(size_t)0, k, v, w, r), CUA_ERROR_SIZE);
		ck_assert_status(CALL(m.map, 1, k, v, (char *)w + 4, r), CUA_ERROR_ALIGNMENT);
		/* values_out overlaps the values partly, the keys, the results, the map */
		ck_assert_status(CALL(m.map, 4, k, v, v + 1, r), CUA_ERROR_OVERLAP);
		ck_assert_status(CALL(m.map, 4, k, v + 1, v, r), CUA_ERROR_OVERLAP);
		ck_assert_status(CALL(m.map, 4, k, v, v + 3, r), CUA_ERROR_OVERLAP);
		ck_assert_status(CALL(m.map, 4, k, v, k, r), CUA_ERROR_OVERLAP);
		ck_assert_status(CALL(m.map, 4, k, v, k + 3, r), CUA_ERROR_OVERLAP);
		ck_assert_status(CALL(m.map, 4, k, v, w, (uint8_t *)w + 31), CUA_ERROR_OVERLAP);
		ck_assert_status(CALL(m.map, 4, k, v, v, (uint8_t *)v + 31), CUA_ERROR_OVERLAP);
		ck_assert_status(CALL(m.map, 4, k, v, view.buckets, r), CUA_ERROR_OVERLAP);
		ck_assert_cua(CALL(m.map, 0, NULL, NULL, NULL, NULL));
		ck_assert_cua(cua_hashmap_size(m.map, &size));
		ck_assert_uint_eq(size, 0);
		/* an adjacent array does not overlap */
		ck_assert_cua(CALL(m.map, 4, k, v, v + 4, r));
		test_download(ctx, results, r, 8);
		for (int i = 0; i < 4; i++)
			ck_assert_uint_eq(results[i], CUA_HASHMAP_INSERTED);
		ck_assert_cua(cua_hashmap_clear(m.map));
#undef CALL
	}
	free(p);
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, w);
	test_free(ctx, r);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	ck_assert_cua(cua_hashmap_destroy(set.map));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_arguments");
	TCase *tcase = tcase_create("hashmap_arguments");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, bad_bulk_arguments);
	tcase_add_test(tcase, bad_map_arguments);
	tcase_add_test(tcase, bad_values_out);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
