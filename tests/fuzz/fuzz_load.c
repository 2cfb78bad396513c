/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes cua_hashmap_load. A file that map_file_whole accepts, without duplicate keys, must load,
 * and the map must have its pairs, also after a save and another load. Every other file must be
 * refused.
 */
#include <cuatomic.h>

#include "map_file.h"
#include "scratch.h"

#define MOST_SLOTS 65536u
#define MOST_REJECTS 4096u

static size_t pair_size, key_size;

static int by_key(const void *a, const void *b)
{
	return fuzz_order(a, b, key_size);
}

/* Checks that the map has exactly the n pairs in `sorted`. */
static void compare(struct cua_hashmap *map, const uint8_t *sorted, uint64_t n)
{
	size_t value_size = pair_size - key_size;
	uint64_t *keys = calloc(n + 1, 16), *values = calloc(n + 1, 16), all = 0, size = 0;
	enum cua_status status;

	FUZZ_CHECK(keys && values, "out of memory");
	status = cua_hashmap_size(map, &size);
	FUZZ_CHECK(!status && size == n, "%s, size %llu of %llu", cua_status_name(status),
		   (unsigned long long)size, (unsigned long long)n);
	status = cua_hashmap_retrieve(map, CUA_HASHMAP_SORTED, n, keys, values, &all);
	FUZZ_CHECK(!status && all == n, "%s, %llu of %llu pairs", cua_status_name(status),
		   (unsigned long long)all, (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++) {
		FUZZ_CHECK(!memcmp((char *)keys + i * key_size, sorted + i * pair_size, key_size),
			   "key %llu", (unsigned long long)i);
		FUZZ_CHECK(!memcmp((char *)values + i * value_size,
				   sorted + i * pair_size + key_size, value_size),
			   "value %llu", (unsigned long long)i);
	}
	status = cua_hashmap_status(map);
	FUZZ_CHECK(!status, "%s", cua_status_name(status));
	free(keys);
	free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cua_context *ctx;
	struct cua_hashmap_options options = {.struct_size = sizeof(options)};
	struct cua_hashmap *map = NULL, *again = NULL;
	int whole = map_file_whole(data, size), twice = 0, legal = 1, own;
	const char *path = scratch_path(0), *other = scratch_path(1);
	uint8_t *sorted = NULL;
	enum cua_status status;
	struct map_file h;

	if (!ctx) {
		/* a fixed hash seed makes runs reproducible */
		setenv("CUATOMIC_HASH_SEED", "1", 1);
		status = cua_context_create(CUA_BACKEND_CPU, 0, &ctx);
		FUZZ_CHECK(!status, "%s", cua_status_name(status));
		cua_context_set_threads(ctx, 1);
	}
	memset(&h, 0, sizeof(h));
	if (size >= MAP_FILE_HEADER)
		h = map_file_read(data);
	/* load may allocate as much memory as the header asks for, so skip large tables */
	if (h.slots > MOST_SLOTS || h.rejects > MOST_REJECTS)
		return 0;
	pair_size = h.key_size + h.value_size;
	key_size = h.key_size;
	if (whole) {
		legal = h.grow_percent <= 95 && h.flags <= 3 && h.hash <= CUA_HASHMAP_HASH_KEYED &&
			(!h.max_probes || (h.max_probes >= 32 && h.max_probes <= 128));
		sorted = malloc(size);
		FUZZ_CHECK(sorted, "out of memory");
		memcpy(sorted, data + MAP_FILE_HEADER, size - MAP_FILE_HEADER);
		qsort(sorted, h.count, pair_size, by_key);
		for (uint64_t i = 1; i < h.count; i++)
			twice |= !memcmp(sorted + (i - 1) * pair_size, sorted + i * pair_size,
					 key_size);
	}
	/* every third input is loaded with the caller's options */
	own = size >= MAP_FILE_HEADER && h.header_sum % 3 == 0;
	options.seed = h.header_sum;
	options.portable = h.header_sum >> 8 & 1;
	options.no_erase = h.header_sum >> 10 & 1;
	options.grow_percent = h.header_sum >> 9 & 1 ? 50 : 0;
	scratch_write(path, data, size);
	status = cua_hashmap_load(ctx, own ? &options : NULL, path, &map);
	if (!whole || twice) {
		/* load may find a key without a slot before the damage */
		FUZZ_CHECK(status == CUA_ERROR_CORRUPT ||
				   (!legal && !own && status == CUA_ERROR_VALUE) ||
				   (h.max_probes && !own && status == CUA_ERROR_SIZE),
			   "a file that is damaged: %s", cua_status_name(status));
		FUZZ_CHECK(!map, "a map beside an error");
	} else if (!legal) {
		/*
		 * the caller's options may, but need not, override the illegal options in the file
		 */
		FUZZ_CHECK(status == CUA_ERROR_VALUE || status == CUA_ERROR_CORRUPT ||
				   (own && !status),
			   "options that are not legal: %s", cua_status_name(status));
	} else if (status == CUA_ERROR_CORRUPT && h.count > h.slots) {
		/*
		 * save writes more keys than slots only if some keys need no slot. The target does
		 * not know these keys, so it accepts a refusal.
		 */
		FUZZ_CHECK(!map, "a map beside an error");
	} else if (status == CUA_ERROR_SIZE && h.max_probes && !own) {
		/*
		 * the buckets of a key may be full, because the seed may differ from the seed at
		 * the save
		 */
		FUZZ_CHECK(!map, "a map beside an error");
	} else {
		FUZZ_CHECK(!status && map, "a whole file: %s", cua_status_name(status));
		compare(map, sorted, h.count);
		status = cua_hashmap_save(map, other);
		FUZZ_CHECK(!status, "save: %s", cua_status_name(status));
		status = cua_hashmap_load(ctx, NULL, other, &again);
		FUZZ_CHECK((!status && again) || (status == CUA_ERROR_SIZE && h.max_probes),
			   "load of a save: %s", cua_status_name(status));
		if (again)
			compare(again, sorted, h.count);
	}
	FUZZ_CHECK(!cua_hashmap_destroy(map) && !cua_hashmap_destroy(again), "destroy");
	free(sorted);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	uint64_t state = seed;

	size = LLVMFuzzerMutate(data, size, max);
	if (fuzz_random(&state) % 16)
		size = map_file_repair(data, size, max, (unsigned)fuzz_random(&state));
	return size;
}
