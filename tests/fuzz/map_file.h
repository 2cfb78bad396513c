/* SPDX-License-Identifier: MIT */
/*
 * The file format of cua_hashmap_save, implemented independently for the fuzz target of load.
 * lib/hashmap_file.c is the reference.
 */
#ifndef CUATOMIC_TESTS_MAP_FILE_H
#define CUATOMIC_TESTS_MAP_FILE_H

#include "fuzz.h"

#define MAP_FILE_HEADER ((size_t)88)
#define MAP_FILE_VERSION 1u

struct map_file {
	char magic[8];
	uint32_t order, version;
	uint32_t key_size, value_size;
	uint64_t count, slots, seed, rejects;
	uint32_t grow_percent, flags;
	uint32_t hash, max_probes;
	uint64_t pairs_sum, header_sum;
};

static inline uint64_t map_file_sum(uint64_t sum, const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n; at += 8) {
		uint64_t word = 0;

		memcpy(&word, p + at, n - at < 8 ? n - at : 8);
		sum ^= word;
		sum *= 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	return sum;
}

/* Reads the header. The input must have at least MAP_FILE_HEADER bytes. */
static inline struct map_file map_file_read(const uint8_t *data)
{
	struct map_file h;

	memcpy(&h, data, MAP_FILE_HEADER);
	return h;
}

static inline int map_file_size_ok(uint32_t size)
{
	return size == 4 || size == 8 || size == 16;
}

/* Whether load must accept the file, apart from duplicate keys and the limits of options. */
static inline int map_file_whole(const uint8_t *data, size_t size)
{
	struct map_file h;
	uint64_t pair;

	if (size < MAP_FILE_HEADER)
		return 0;
	h = map_file_read(data);
	pair = (uint64_t)h.key_size + h.value_size;
	return !memcmp(h.magic, "cuamap\r\n", 8) && h.order == 0x01020304u &&
	       h.version == MAP_FILE_VERSION && map_file_size_ok(h.key_size) &&
	       (!h.value_size || map_file_size_ok(h.value_size)) && h.slots &&
	       (size - MAP_FILE_HEADER) % pair == 0 && (size - MAP_FILE_HEADER) / pair == h.count &&
	       (h.count <= h.slots || h.count - h.slots <= 2) &&
	       h.header_sum ==
		       map_file_sum(h.version, data, offsetof(struct map_file, header_sum)) &&
	       h.pairs_sum == map_file_sum(0, data + MAP_FILE_HEADER, size - MAP_FILE_HEADER);
}

/*
 * Repairs the bytes so that most of load's checks pass, and the fuzzer reaches the code behind
 * them. `choices` selects the repairs. Returns the new size.
 */
static inline size_t map_file_repair(uint8_t *data, size_t size, size_t max, unsigned choices)
{
	static const uint32_t sizes[4] = {4, 8, 16, 0};
	struct map_file h;
	size_t pair;

	if (size < MAP_FILE_HEADER) {
		if (max < MAP_FILE_HEADER)
			return size;
		memset(data + size, 0, MAP_FILE_HEADER - size);
		size = MAP_FILE_HEADER;
	}
	h = map_file_read(data);
	memcpy(h.magic, "cuamap\r\n", 8);
	h.order = 0x01020304u;
	h.version = MAP_FILE_VERSION;
	if (!map_file_size_ok(h.key_size))
		h.key_size = sizes[h.key_size % 3];
	if (h.value_size && !map_file_size_ok(h.value_size))
		h.value_size = sizes[h.value_size % 4];
	pair = h.key_size + h.value_size;
	size -= (size - MAP_FILE_HEADER) % pair;
	if (choices % 16)
		h.count = (size - MAP_FILE_HEADER) / pair;
	if ((choices >> 4) % 16)
		h.slots = h.slots % 4096 + 1;
	if ((choices >> 8) % 16 && h.slots + 2 < h.count)
		h.slots = h.count - (choices >> 20) % 3;
	if ((choices >> 12) % 8) {
		h.grow_percent %= 96;
		h.flags %= 4;
		h.rejects %= 16;
		h.hash %= 2;
		h.max_probes = h.max_probes % 4 ? 0 : 32 + h.max_probes / 4 % 97;
	}
	/* a duplicate key */
	if ((choices >> 24) % 16 == 1 && h.count > 1 && size >= MAP_FILE_HEADER + 2 * pair)
		memcpy(data + size - pair, data + MAP_FILE_HEADER, h.key_size);
	if ((choices >> 16) % 16)
		h.pairs_sum = map_file_sum(0, data + MAP_FILE_HEADER, size - MAP_FILE_HEADER);
	memcpy(data, &h, MAP_FILE_HEADER);
	if ((choices >> 28) % 16) {
		h.header_sum = map_file_sum(h.version, data, offsetof(struct map_file, header_sum));
		memcpy(data, &h, MAP_FILE_HEADER);
	}
	return size;
}

#endif /* CUATOMIC_TESTS_MAP_FILE_H */
