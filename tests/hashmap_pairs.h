/* SPDX-License-Identifier: MIT */
/*
 * Hash maps of all key and value sizes, and numbered pairs to fill them. Keys and values are
 * 128-bit numbers on the host; arrays of the backend have the sizes of the map.
 */
#ifndef CUATOMIC_TESTS_HASHMAP_PAIRS_H
#define CUATOMIC_TESTS_HASHMAP_PAIRS_H

#include "common.h"

/*
 * Combinations of a key size (4, 8, 16) and a value size (4, 8, 16, 0): combination c has key size
 * c % 3 and value size c / 3. 0 is 4 + 4 bytes, 4 is 8 + 8, 8 is 16 + 16, 9 is a set of 4.
 */
#define PAIR_SIZES 12
uint32_t pair_value_size(int c);
enum cua_type type_of_size(uint32_t size);

struct pair {
	struct cua_u128 key, value;
};

struct pair_map {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	uint32_t ks, vs;
};

/* ---- numbers of 128 bits ---- */

/* Keeps the low `size` bytes. */
void truncate_u128(struct cua_u128 *v, uint32_t size);
int u128_below(struct cua_u128 a, struct cua_u128 b);
int u128_same(struct cua_u128 a, struct cua_u128 b);
/* Element i of an array of numbers of `size` bytes. */
void store_u128(void *array, uint32_t size, size_t i, struct cua_u128 v);
struct cua_u128 load_u128(const void *array, uint32_t size, size_t i);

/* ---- pairs ---- */

/* Distinct keys. The first are reserved keys and other unusual patterns. */
struct cua_u128 key_number(uint64_t i, uint32_t size);
struct cua_u128 value_number(uint64_t i, uint32_t size);
/* Pairs of key and value numbers first to first + n - 1. Free the result. */
struct pair *numbered_pairs(size_t n, uint32_t ks, uint32_t vs, uint64_t first);
/* Orders pairs by key, for qsort. */
int by_key(const void *a, const void *b);
/* The value after `rule`, a merge rule or an update, has combined b into a. */
struct cua_u128 combine_values(struct cua_u128 a, struct cua_u128 b, int rule, uint32_t size);

/*
 * Numbers whose halves are reserved keys, complements, signs or neighbours of these. Writes the
 * distinct numbers of a size and returns their count.
 */
#define SPECIAL_PATTERNS 64
size_t special_patterns(uint32_t size, struct cua_u128 patterns[SPECIAL_PATTERNS]);

/* Backend arrays of keys and values of `size` bytes. */
void *upload_keys(struct cua_context *ctx, const struct pair *p, size_t n, uint32_t size);
void *upload_values(struct cua_context *ctx, const struct pair *p, size_t n, uint32_t size);

/* ---- maps ---- */

/* A map of combination c of PAIR_SIZES. */
struct pair_map new_pair_map(struct cua_context *ctx, int c, uint64_t capacity,
			     const struct cua_hashmap_options *options);
uint64_t slots_of(const struct pair_map *m);
/* Inserts the pairs, and waits for the insert. */
enum cua_status insert_pairs(const struct pair_map *m, const struct pair *p, size_t n);
/* The pairs that copy_to_host returns, sorted by key on the host; *n of them. Free the result. */
struct pair *sorted_contents(const struct pair_map *m, uint64_t *n);
/* Sorts p. Expects that the map holds these pairs and no others, and that it finds each key. */
void expect_pairs(const struct pair_map *m, struct pair *p, size_t n);
/*
 * Sorts p. Expects that a sorted retrieve of at most max pairs returns the first max of these pairs
 * and writes nothing else.
 */
void expect_sorted(const struct pair_map *m, struct pair *p, size_t n, uint64_t max);
/* A visitor of cua_hashmap_for_each that no call may reach. */
int abort_visit(void *arg, const void *key, const void *value);

#endif /* CUATOMIC_TESTS_HASHMAP_PAIRS_H */
