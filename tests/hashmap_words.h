/* SPDX-License-Identifier: MIT */
/*
 * Hash maps with keys and values of 4 or 8 bytes. Both are uint64_t on the host; arrays of the
 * backend have the types of the map.
 */
#ifndef CUATOMIC_TESTS_HASHMAP_WORDS_H
#define CUATOMIC_TESTS_HASHMAP_WORDS_H

#include "common.h"

/* CUA_U32, CUA_U64. */
extern const enum cua_type word_types[2];

uint64_t truncate_word(uint64_t v, enum cua_type type);
/* Copies of numbers in backend memory, as elements of a type, and back. */
void *upload_words(struct cua_context *ctx, enum cua_type type, size_t n, const uint64_t *v);
void download_words(struct cua_context *ctx, enum cua_type type, size_t n, const void *p,
		    uint64_t *v);
/* Distinct keys. The first are reserved keys and other unusual patterns. */
uint64_t word_key(uint64_t i, enum cua_type type);

struct cua_hashmap *new_word_map(struct cua_context *ctx, enum cua_type key_type,
				 enum cua_type value_type, uint64_t capacity);
uint64_t map_size(struct cua_hashmap *map);
/* The number of keys of word_key() that the map keeps in reserved slots, outside its buckets. */
uint64_t reserved_slots(const struct cua_hashmap *map, enum cua_type key_type,
			enum cua_type value_type);
/*
 * The farthest distance of any key since the last clear. The map has the layout of words and is in
 * host memory.
 */
uint64_t longest_probe(const struct cua_hashmap *map);

#endif /* CUATOMIC_TESTS_HASHMAP_WORDS_H */
