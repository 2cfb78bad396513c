/* SPDX-License-Identifier: MIT */
/*
 * The quads of maps and sets of all sizes with the layout of words, also with a hash and an
 * equality of the user.
 */
#include <string.h>

#include <cuatomic/hashmap_quad.h>

#include "simt_suites.h"

#define KEYS 9u
#define MOST_BUCKETS 8u

static struct {
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	uint64_t reserved[4];
} at_counts __attribute__((aligned(64)));
static uint64_t buckets[MOST_BUCKETS * 8] __attribute__((aligned(64)));
static struct cua_hashmap_view view = {buckets, at_counts.counts,  NULL, 1, 0, 4,
				       4,       CUA_HASHMAP_WORDS, 0,    0, 0, 0};
/* inserts minus erases of each key */
static int64_t balance[KEYS];

/* ---- keys: number i; with a user's equality, two forms of a key ---- */

static uint64_t bits_4(uint32_t key)
{
	return key;
}

static uint64_t bits_8(uint64_t key)
{
	return key;
}

/* The upper half counts from 4 on, so neither half alone identifies the key. */
static uint64_t bits_16(struct cua_u128 key)
{
	return key.hi << 2 | key.lo;
}

static uint32_t key_4(uint64_t bits)
{
	return (uint32_t)bits;
}

static uint64_t key_8(uint64_t bits)
{
	return bits;
}

static struct cua_u128 key_16(uint64_t bits)
{
	struct cua_u128 key = {bits & 3, bits >> 2};

	return key;
}

#define FOLDED(size, K)                                                                            \
	static uint64_t hash_##size(K key, uint64_t seed)                                          \
	{                                                                                          \
		return cua_hash_u64(bits_##size(key) >> 1, seed);                                  \
	}                                                                                          \
	static int equal_##size(K a, K b)                                                          \
	{                                                                                          \
		return bits_##size(a) >> 1 == bits_##size(b) >> 1;                                 \
	}
FOLDED(4, uint32_t)
FOLDED(8, uint64_t)
FOLDED(16, struct cua_u128)

/* ---- kinds ---- */

static int folds;

/* Lanes use different forms, if there are two. */
static uint64_t bits_of(unsigned i)
{
	return folds ? 2 * i + simt_lane() % 2 : i;
}

struct kind {
	uint32_t key_size, value_size;
	int folds;
	int (*insert)(uint32_t mask, int active, unsigned i);
	int (*find)(uint32_t mask, int active, unsigned i);
	int (*erase)(uint32_t mask, int active, unsigned i);
};

/* By quads, by the lanes of a whole warp that call together, or by execute. */
static int executes;
#define BY(quads, lanes, executed)                                                                 \
	(!simt_together ? (quads) : !active ? 0 : executes ? (executed) : (lanes))

#define ERASE(name, size)                                                                          \
	static int name##_erase_number(uint32_t mask, int active, unsigned i)                      \
	{                                                                                          \
		return BY(name##_erase_quad(&view, mask, active, key_##size(bits_of(i))),          \
			  name##_erase(&view, key_##size(bits_of(i))),                             \
			  name##_execute_number(CUA_HASHMAP_ERASE, i) == CUA_HASHMAP_EXISTS);      \
	}

/* The value of key i is 7 i. */
#define MAP(name, size, V)                                                                         \
	static __attribute__((noinline)) int name##_execute_number(                                \
		enum cua_hashmap_operation operation, unsigned i)                                  \
	{                                                                                          \
		V value = (V)(7 * i);                                                              \
		const int result =                                                                 \
			name##_execute(&view, operation, key_##size(bits_of(i)), &value);          \
                                                                                                   \
		if (value != 7 * i)                                                                \
			simt_fail("an operation gave another key's value");                        \
		return result;                                                                     \
	}                                                                                          \
	ERASE(name, size)                                                                          \
	static int name##_insert_number(uint32_t mask, int active, unsigned i)                     \
	{                                                                                          \
		return BY(name##_insert_quad(&view, mask, active, key_##size(bits_of(i)),          \
					     (V)(7 * i)),                                          \
			  name##_insert(&view, key_##size(bits_of(i)), (V)(7 * i)),                \
			  name##_execute_number(CUA_HASHMAP_INSERT, i));                           \
	}                                                                                          \
	static int name##_find_number(uint32_t mask, int active, unsigned i)                       \
	{                                                                                          \
		V value = (V)(executes ? 7 * i : 0);                                               \
		const int there =                                                                  \
			BY(name##_find_quad(&view, mask, active, key_##size(bits_of(i)), &value),  \
			   name##_find(&view, key_##size(bits_of(i)), &value),                     \
			   name##_execute_number(CUA_HASHMAP_FIND, i) == CUA_HASHMAP_EXISTS);      \
                                                                                                   \
		if (there && (value != 7 * i || !active))                                          \
			simt_fail("find gave another key's value");                                \
		return there;                                                                      \
	}

#define SET(name, size)                                                                            \
	static __attribute__((noinline)) int name##_execute_number(                                \
		enum cua_hashmap_operation operation, unsigned i)                                  \
	{                                                                                          \
		return name##_execute(&view, operation, key_##size(bits_of(i)));                   \
	}                                                                                          \
	ERASE(name, size)                                                                          \
	static int name##_insert_number(uint32_t mask, int active, unsigned i)                     \
	{                                                                                          \
		return BY(name##_insert_quad(&view, mask, active, key_##size(bits_of(i))),         \
			  name##_insert(&view, key_##size(bits_of(i))),                            \
			  name##_execute_number(CUA_HASHMAP_INSERT, i));                           \
	}                                                                                          \
	static int name##_find_number(uint32_t mask, int active, unsigned i)                       \
	{                                                                                          \
		return BY(name##_contains_quad(&view, mask, active, key_##size(bits_of(i))),       \
			  name##_contains(&view, key_##size(bits_of(i))),                          \
			  name##_execute_number(CUA_HASHMAP_FIND, i) == CUA_HASHMAP_EXISTS);       \
	}

CUA_DEFINE_HASHMAP(map_4_8, uint32_t, uint64_t)
CUA_DEFINE_HASHMAP_QUAD(map_4_8, uint32_t, uint64_t)
MAP(map_4_8, 4, uint64_t)
CUA_DEFINE_HASHMAP(map_8_4, uint64_t, uint32_t)
CUA_DEFINE_HASHMAP_QUAD(map_8_4, uint64_t, uint32_t)
MAP(map_8_4, 8, uint32_t)
CUA_DEFINE_HASHSET(set_4, uint32_t)
CUA_DEFINE_HASHSET_QUAD(set_4, uint32_t)
SET(set_4, 4)
CUA_DEFINE_HASHSET(set_8, uint64_t)
CUA_DEFINE_HASHSET_QUAD(set_8, uint64_t)
SET(set_8, 8)
CUA_DEFINE_HASHSET(set_16, struct cua_u128)
CUA_DEFINE_HASHSET_QUAD(set_16, struct cua_u128)
SET(set_16, 16)
CUA_DEFINE_HASHMAP_WITH(own_4_4, uint32_t, uint32_t, hash_4, equal_4)
CUA_DEFINE_HASHMAP_QUAD_WITH(own_4_4, uint32_t, uint32_t)
MAP(own_4_4, 4, uint32_t)
CUA_DEFINE_HASHMAP_WITH(own_8_8, uint64_t, uint64_t, hash_8, equal_8)
CUA_DEFINE_HASHMAP_QUAD_WITH(own_8_8, uint64_t, uint64_t)
MAP(own_8_8, 8, uint64_t)
CUA_DEFINE_HASHSET_WITH(own_8, uint64_t, hash_8, equal_8)
CUA_DEFINE_HASHSET_QUAD_WITH(own_8, uint64_t)
SET(own_8, 8)
CUA_DEFINE_HASHSET_WITH(own_16, struct cua_u128, hash_16, equal_16)
CUA_DEFINE_HASHSET_QUAD_WITH(own_16, struct cua_u128)
SET(own_16, 16)

#define KIND(name, ks, vs, folds)                                                                  \
	{                                                                                          \
		ks, vs, folds, name##_insert_number, name##_find_number, name##_erase_number       \
	}
static const struct kind kinds[] = {
	KIND(map_4_8, 4, 8, 0), KIND(map_8_4, 8, 4, 0), KIND(set_4, 4, 0, 0),
	KIND(set_8, 8, 0, 0),   KIND(set_16, 16, 0, 0), KIND(own_4_4, 4, 4, 1),
	KIND(own_8_8, 8, 8, 1), KIND(own_8, 8, 0, 1),   KIND(own_16, 16, 0, 1),
};
#define KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))
static const struct kind *kind;

/* ---- any mix ---- */

static void kinds_setup(void)
{
	memset(buckets, 0, sizeof(buckets));
	memset(&at_counts, 0, sizeof(at_counts));
	memset(balance, 0, sizeof(balance));
}

static void insert(uint32_t mask, int active, unsigned i)
{
	const int result = kind->insert(mask, active, i % KEYS);

	if (result == CUA_HASHMAP_UNSUPPORTED || !result != !active)
		simt_fail("an insert gave what it cannot give");
	balance[i % KEYS] += result == CUA_HASHMAP_INSERTED;
}

static void erase(uint32_t mask, int active, unsigned i)
{
	balance[i % KEYS] -= kind->erase(mask, active, i % KEYS);
}

static void kinds_mixed(void)
{
	const uint32_t mask = whole_warp();
	const unsigned lane = simt_lane();

	insert(mask, lane % 7 != 6, lane);
	kind->find(mask, 1, (lane + 1) % KEYS);
	erase(mask, lane % 3 == 0, lane + 2);
	kind->find(mask, lane % 2, lane % KEYS);
	insert(mask, 1, lane + 4);
	erase(mask, lane % 5 == 0, lane);
}

/* Records the key of a word. Returns the number of errors. */
static const char *note(struct cua_u128 word, unsigned char there[KEYS])
{
	const struct cua_u128 key = cua__hashmap_word_key(kind->key_size, word);
	const uint64_t i = (kind->key_size == 16 ? bits_16(key) : key.lo) >> folds;

	if (i >= KEYS)
		return "a key that nobody inserted";
	return there[i]++ ? "a key is there twice" : NULL;
}

static const char *kinds_check(void)
{
	const uint32_t ks = kind->key_size, vs = kind->value_size,
		       words = cua__hashmap_is_wide(ks, vs) ? 2 : 1;
	unsigned char there[KEYS] = {0};
	const char *wrong = NULL;
	uint64_t size = 0, in_slots = 0;

	for (unsigned b = 0; !wrong && b < view.n_buckets; b++) {
		if (buckets[8 * b] & 1)
			return "a bucket is locked for ever";
		for (unsigned i = 1; !wrong && i <= cua__hashmap_word_slots(ks, vs); i++) {
			struct cua_u128 word = {buckets[8 * b + i * words], 0};

			if (words == 2)
				word.hi = buckets[8 * b + i * 2 + 1];
			if (!cua__hashmap_word_used(ks, vs, word))
				continue;
			wrong = note(word, there);
			in_slots++;
		}
	}
	for (unsigned c = 0; !wrong && c < 2; c++) {
		/* number of keys with each value of bits 0 and 1 */
		if (at_counts.reserved[2 * c] && there[folds ? 0 : c]++)
			wrong = "a reserved key is there twice";
	}
	for (unsigned i = 0; !wrong && i < KEYS; i++)
		if (there[i] != balance[i])
			wrong = "a key is there that was erased, or is not that was inserted";
	for (unsigned i = 0; i < CUA_HASHMAP_STRIPES; i++)
		size += at_counts.counts[i].inserted - at_counts.counts[i].erased;
	return wrong || size == in_slots ? wrong : "the size is wrong";
}

START_TEST(hashmap_kinds)
{
	struct simt_case mixed = {.name = "map, kinds",
				  .setup = kinds_setup,
				  .body = kinds_mixed,
				  .check = kinds_check};

	kind = &kinds[_i % KINDS];
	simt_together = _i / KINDS > 0;
	executes = _i / KINDS == 2;
	folds = kind->folds;
	view.key_size = kind->key_size;
	view.value_size = kind->value_size;
	for (view.n_buckets = 1; view.n_buckets <= MOST_BUCKETS; view.n_buckets *= 2) {
		try_shape(mixed, 1, 8, 10);
		try_shape(mixed, 2, 4, 10);
		try_shape(mixed, 3, 12, 2);
	}
	simt_together = executes = 0;
}
END_TEST

TCase *simt_hashmap_kinds_cases(void)
{
	TCase *tc = simt_tcase("hashmap_kinds");

	tcase_add_loop_test(tc, hashmap_kinds, 0, 3 * KINDS);
	return tc;
}
