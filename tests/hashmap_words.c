/* SPDX-License-Identifier: MIT */
#include "hashmap_words.h"

const enum cua_type word_types[2] = {CUA_U32, CUA_U64};

uint64_t truncate_word(uint64_t v, enum cua_type type)
{
	return type == CUA_U32 ? (uint32_t)v : v;
}

void *upload_words(struct cua_context *ctx, enum cua_type type, size_t n, const uint64_t *v)
{
	size_t size = cua_type_size(type);
	char *host = test_malloc(n * size);
	void *p;

	for (size_t i = 0; i < n; i++) {
		uint32_t narrow = (uint32_t)v[i];

		memcpy(host + i * size, type == CUA_U32 ? (void *)&narrow : (void *)&v[i], size);
	}
	p = test_upload(ctx, host, n * size);
	free(host);
	return p;
}

void download_words(struct cua_context *ctx, enum cua_type type, size_t n, const void *p,
		    uint64_t *v)
{
	size_t size = cua_type_size(type);
	char *host = test_malloc(n * size);

	test_download(ctx, host, p, n * size);
	for (size_t i = 0; i < n; i++) {
		uint32_t narrow = 0;

		if (type == CUA_U32) {
			memcpy(&narrow, host + i * size, size);
			v[i] = narrow;
		} else {
			memcpy(&v[i], host + i * size, size);
		}
	}
	free(host);
}

struct cua_hashmap *new_word_map(struct cua_context *ctx, enum cua_type key_type,
				 enum cua_type value_type, uint64_t capacity)
{
	struct cua_hashmap *map = NULL;

	ck_assert_cua(cua_hashmap_create(ctx, NULL, key_type, value_type, capacity, &map));
	return map;
}

uint64_t map_size(struct cua_hashmap *map)
{
	uint64_t size = 99;

	ck_assert_cua(cua_hashmap_size(map, &size));
	return size;
}

uint64_t word_key(uint64_t i, enum cua_type type)
{
	static const uint64_t unusual[] = {0, ~(uint64_t)0, 1, 0x80000000, 0x7fffffff, 0xfffffffe};

	if (i < sizeof(unusual) / sizeof(unusual[0]))
		return truncate_word(unusual[i], type);
	/* bijective in 32 bits; the small i of the tests never reach an unusual key */
	return type == CUA_U32 ? (uint32_t)(i * 2654435761u) : i * 0x9e3779b97f4a7c15u;
}

uint64_t reserved_slots(const struct cua_hashmap *map, enum cua_type key_type,
			enum cua_type value_type)
{
	struct cua_hashmap_view view;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	return key_type != value_type || view.layout != CUA_HASHMAP_WORDS ? 0
	       : key_type == CUA_U32                                      ? 1
									  : 2;
}

uint64_t longest_probe(const struct cua_hashmap *map)
{
	struct cua_hashmap_view view;
	uint64_t longest = 0;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_uint_eq(view.layout, CUA_HASHMAP_WORDS);
	for (uint64_t b = 0; b < view.n_buckets; b++) {
		struct cua__hashmap_head head =
			cua__hashmap_word_head(cua__hashmap_word_bucket(&view, b), 0);
		uint64_t far = cua__hashmap_far_of((uint32_t)(head.lo >> 24) & 255);

		if (far > longest)
			longest = far;
	}
	return longest;
}
