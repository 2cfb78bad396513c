/* SPDX-License-Identifier: MIT */
/*
 * The inline functions of the hash map on the host, called by a single thread and by several.
 */
#include "hashmap_words.h"

#include <pthread.h>
#include <sys/mman.h>

/* ---- functions that the macros define ---- */

/*
 * The names of these variables could clash with names inside the macros; an update expression uses
 * them. Values are structs.
 */
static uint32_t next = 1000, before = 100, with = 10;
struct two {
	uint32_t a, b;
};

static struct two add_two(struct two x, struct two y)
{
	x.a += y.a;
	x.b += y.b;
	return x;
}

static int equal_text(const char *a, const char *b)
{
	return a == b || ((uintptr_t)a > 1 && (uintptr_t)b > 1 && !strcmp(a, b));
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
	uint64_t h = seed;

	if ((uintptr_t)text <= 1)
		return (uintptr_t)text;
	for (; *text; text++)
		h = cua_hash_u64(h ^ (unsigned char)*text, seed);
	return h;
}

CUA_DEFINE_HASHMAP(macro_u32, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_UPDATE(macro_named, macro_u32, old + operand + next + before + with)
CUA_DEFINE_HASHMAP_UPDATE_OP(macro_add, macro_u32, CUA_UPDATE_ADD)
CUA_DEFINE_HASHMAP_UPDATE_OP(macro_min, macro_u32, CUA_UPDATE_MIN)
CUA_DEFINE_HASHMAP(macro_two, uint32_t, struct two)
CUA_DEFINE_HASHMAP_UPDATE(macro_two_add, macro_two, add_two(old, operand))
CUA_DEFINE_HASHMAP_WITH(macro_text, const char *, uint64_t, hash_text, equal_text)
CUA_DEFINE_HASHSET(macro_set, uint64_t)

/* ---- maps that never erase ---- */

static uint32_t updated(uint32_t old, uint32_t operand, enum cua_update op)
{
	switch (op) {
	case CUA_UPDATE_ADD: return old + operand;
	case CUA_UPDATE_MIN: return old < operand ? old : operand;
	case CUA_UPDATE_MAX: return old > operand ? old : operand;
	case CUA_UPDATE_AND: return old & operand;
	case CUA_UPDATE_OR: return old | operand;
	default: return old ^ operand;
	}
}

static int update_by(const struct cua_hashmap_view *view, int typed, uint32_t key, uint32_t operand,
		     enum cua_update op)
{
	if (typed && op == CUA_UPDATE_ADD)
		return macro_add(view, key, operand);
	if (typed && op == CUA_UPDATE_MIN)
		return macro_min(view, key, operand);
	/* the bits above the map's size do not count */
	return cua_hashmap_update(view, key, operand | (uint64_t)9 << 32, op);
}

/* Updates of present keys, by all operations; keys 0 and 1 have reserved slots. */
START_TEST(never_erases)
{
	static const uint32_t keys[] = {0, 1, 2, 7, 0xffffffffu};
	static const uint32_t operands[] = {0, 1, 5, 0x80000000u, 0xfffffffeu, 0xffffffffu};
	enum { KEYS = 5, OPERANDS = 6, OPERATIONS = CUA_UPDATE_XOR - CUA_UPDATE_ADD + 1 };
	const struct cua_hashmap_options o = {.struct_size = sizeof(o), .no_erase = 1};
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct cua_hashmap *map = NULL;
	struct cua_hashmap_view view;

	ck_assert_cua(cua_hashmap_create(ctx, &o, CUA_U32, CUA_U32, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	for (int i = 0; i < KEYS * OPERATIONS * OPERANDS * OPERANDS; i++) {
		const uint32_t key = keys[i % KEYS], old = operands[i / KEYS % OPERANDS],
			       operand = operands[i / KEYS / OPERANDS % OPERANDS];
		const enum cua_update op =
			(enum cua_update)(CUA_UPDATE_ADD + i / KEYS / OPERANDS / OPERANDS);
		uint64_t value = 99;

		(void)cua_hashmap_assign(&view, key, old);
		ck_assert_int_eq(update_by(&view, i % 2, key, operand, op), CUA_HASHMAP_EXISTS);
		ck_assert_int_eq(cua_hashmap_erase(&view, key) | macro_u32_erase(&view, key), 0);
		ck_assert_int_eq(cua_hashmap_find(&view, key, &value), 1);
		EXPECT(value == updated(old, operand, op),
		       "key %u, operation %d of %u and %u: %llu, not %u", key, (int)op, old,
		       operand, (unsigned long long)value, updated(old, operand, op));
	}
	ck_assert_int_eq(macro_add(&view, 3, 4), CUA_HASHMAP_INSERTED);
	ck_assert_uint_eq(map_size(map), KEYS + 1);
	ck_assert_cua(cua_hashmap_clear(map));
	ck_assert_uint_eq(map_size(map), 0);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(macros)
{
	struct cua_hashmap_options own = {.struct_size = sizeof(own), .own_hash = 1};
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct cua_hashmap *map = new_word_map(ctx, CUA_U32, CUA_U32, 10);
	struct cua_hashmap_view view, other;
	struct two two = {1, 2};
	char text[] = "abc", same_text[] = "abc";
	uint32_t value = 0;
	uint64_t wide = 0, key = 0;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(macro_named(&view, 1, 1), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(macro_named(&view, 1, 1), CUA_HASHMAP_EXISTS);
	ck_assert_int_eq(macro_u32_find(&view, 1, &value), 1);
	ck_assert_uint_eq(value, 1112);
	/* a view with other sizes or an unknown layout is not accessed */
	ck_assert_int_eq(macro_two_insert(&view, 1, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_assign(&view, 1, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_add(&view, 1, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_compare_exchange(&view, 1, &two, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_find(&view, 1, &two) | macro_two_contains(&view, 1) |
				 macro_two_erase(&view, 1),
			 0);
	ck_assert_int_eq(macro_set_insert(&view, 1), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_set_contains(&view, 1) | macro_set_erase(&view, 1) |
				 macro_set_at(&view, 0, &key),
			 0);
	ck_assert_uint_eq(macro_set_slots(&view), 0);
	other = view;
	other.layout = 4;
	ck_assert_int_eq(macro_u32_insert(&other, 2, 2), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_u32_contains(&other, 1), 0);
	for (other.layout = 0; other.layout < 6; other.layout++) {
		if (other.layout == CUA_HASHMAP_WORDS || other.layout == CUA_HASHMAP_STATES)
			continue;
		ck_assert_int_eq(cua_hashmap_insert(&other, 2, 2), CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(cua_hashmap_assign(&other, 1, 2), CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(cua_hashmap_update(&other, 1, 2, CUA_UPDATE_ADD),
				 CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(cua_hashmap_find(&other, 1, &wide) |
					 cua_hashmap_contains(&other, 1) |
					 cua_hashmap_erase(&other, 1),
				 0);
		ck_assert_uint_eq(wide, 0);
	}
	ck_assert_int_eq(cua_hashmap_find(&view, 1, &wide), 1);
	ck_assert_uint_eq(wide, 1112);
	ck_assert_uint_eq(map_size(map), 1);
	ck_assert_cua(cua_hashmap_destroy(map));

	map = new_word_map(ctx, CUA_U32, CUA_U64, 10);
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(macro_two_add(&view, 1, two), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(macro_two_add(&view, 1, two), CUA_HASHMAP_EXISTS);
	ck_assert_int_eq(macro_two_find(&view, 1, &two), 1);
	ck_assert(two.a == 2 && two.b == 4);
	ck_assert_cua(cua_hashmap_destroy(map));

	ck_assert_cua(cua_hashmap_create(ctx, &own, CUA_U64, CUA_U64, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(macro_text_insert(&view, text, 5), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(macro_text_insert(&view, same_text, 6), CUA_HASHMAP_EXISTS);
	ck_assert_int_eq(macro_text_find(&view, same_text, &wide), 1);
	ck_assert_uint_eq(wide, 5);
	ck_assert_int_eq(macro_text_find(&view, "", &wide), 0);
	ck_assert_cua(cua_hashmap_destroy(map));

	map = NULL;
	ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U128, CUA_NONE, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(cua_hashmap_insert(&view, 1, 1), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(cua_hashmap_assign(&view, 1, 1), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(cua_hashmap_contains(&view, 1) | cua_hashmap_erase(&view, 1), 0);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* Checks the result of an execute, and the value afterwards. */
#define EXECUTED(call, variable, result, expected)                                                 \
	do {                                                                                       \
		ck_assert_int_eq(call, result);                                                    \
		ck_assert_uint_eq(variable, expected);                                             \
	} while (0)

/* Each operation of execute, on ordinary and on reserved keys. */
START_TEST(executes)
{
	struct cua_hashmap_options never = {.struct_size = sizeof(never), .no_erase = 1};
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct cua_hashmap *map = new_word_map(ctx, CUA_U32, CUA_U32, 10);
	struct cua_hashmap_view view, other;
	struct two two = {1, 2};
	uint32_t v;
	uint64_t wide;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	for (uint32_t key = 0; key < 4; key++) {
		v = 5;
		EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_FIND, key, &v), v, CUA_HASHMAP_ABSENT,
			 5);
		EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_ERASE, key, &v), v,
			 CUA_HASHMAP_ABSENT, 5);
		EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_INSERT, key, &v), v,
			 CUA_HASHMAP_INSERTED, 5);
		v = 6;
		EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_SKIP, key, &v), v, CUA_HASHMAP_ABSENT,
			 6);
		EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_INSERT, key, &v), v,
			 CUA_HASHMAP_EXISTS, 5);
		v = 6;
		EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_FIND, key, &v), v, CUA_HASHMAP_EXISTS,
			 5);
		v = 6;
		EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_ERASE, key, &v), v,
			 CUA_HASHMAP_EXISTS, 5);
		ck_assert_uint_eq(map_size(map), 0);
		wide = 7 | (uint64_t)9 << 32; /* the bits above the map's size do not count */
		ck_assert_int_eq(cua_hashmap_execute(&view, CUA_HASHMAP_INSERT, key, &wide),
				 CUA_HASHMAP_INSERTED);
		EXECUTED(cua_hashmap_execute(&view, CUA_HASHMAP_INSERT, key, &wide), wide,
			 CUA_HASHMAP_EXISTS, 7);
		wide = 0;
		EXECUTED(cua_hashmap_execute(&view, CUA_HASHMAP_FIND, key, &wide), wide,
			 CUA_HASHMAP_EXISTS, 7);
		wide = 0;
		EXECUTED(cua_hashmap_execute(&view, CUA_HASHMAP_ERASE, key, &wide), wide,
			 CUA_HASHMAP_EXISTS, 7);
		ck_assert_int_eq(cua_hashmap_execute(&view, CUA_HASHMAP_ERASE, key, &wide),
				 CUA_HASHMAP_ABSENT);
	}
	/* a full map */
	for (uint32_t key = 1; map_size(map) < view.n_buckets * 7; key++)
		ck_assert_int_eq(macro_u32_execute(&view, CUA_HASHMAP_INSERT, key, &key),
				 CUA_HASHMAP_INSERTED);
	v = 5;
	EXECUTED(macro_u32_execute(&view, CUA_HASHMAP_INSERT, 1000, &v), v, CUA_HASHMAP_FULL, 5);
	ck_assert_int_eq(cua_hashmap_status(map), CUA_ERROR_FULL);
	/* a view with other sizes or an unknown layout is not accessed */
	other = view;
	other.layout = 4;
	for (int op = CUA_HASHMAP_SKIP; op <= CUA_HASHMAP_ERASE; op++) {
		const enum cua_hashmap_operation operation = (enum cua_hashmap_operation)op;

		ck_assert_int_eq(macro_two_execute(&view, operation, 1, &two),
				 CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(macro_set_execute(&view, operation, 1), CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(macro_u32_execute(&other, operation, 1, &v),
				 CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(cua_hashmap_execute(&other, operation, 1, &wide),
				 CUA_HASHMAP_UNSUPPORTED);
	}
	ck_assert_cua(cua_hashmap_destroy(map));

	map = NULL;
	ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U64, CUA_NONE, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	for (uint64_t key = 0; key < 3; key++) {
		ck_assert_int_eq(macro_set_execute(&view, CUA_HASHMAP_INSERT, key),
				 CUA_HASHMAP_INSERTED);
		ck_assert_int_eq(macro_set_execute(&view, CUA_HASHMAP_INSERT, key),
				 CUA_HASHMAP_EXISTS);
		ck_assert_int_eq(macro_set_execute(&view, CUA_HASHMAP_FIND, key),
				 CUA_HASHMAP_EXISTS);
		ck_assert_int_eq(macro_set_execute(&view, CUA_HASHMAP_ERASE, key),
				 CUA_HASHMAP_EXISTS);
		ck_assert_int_eq(macro_set_execute(&view, CUA_HASHMAP_ERASE, key),
				 CUA_HASHMAP_ABSENT);
	}
	ck_assert_cua(cua_hashmap_destroy(map));

	ck_assert_cua(cua_hashmap_create(ctx, &never, CUA_U32, CUA_U32, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	v = 5;
	ck_assert_int_eq(macro_u32_execute(&view, CUA_HASHMAP_INSERT, 3, &v), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(macro_u32_execute(&view, CUA_HASHMAP_ERASE, 3, &v), CUA_HASHMAP_ABSENT);
	ck_assert_int_eq(macro_u32_execute(&view, CUA_HASHMAP_FIND, 3, &v), CUA_HASHMAP_EXISTS);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- more than 2^32 buckets ---- */

CUA_DEFINE_HASHMAP(vast_words, uint32_t, uint32_t)
CUA_DEFINE_HASHSET(vast_set, uint64_t)
CUA_DEFINE_HASHMAP(vast_longs, uint64_t, uint64_t)

/* Zeroed memory without swap reservation. NULL if the address space is too small. */
static void *vast_memory(uint64_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* sanitizers map shadow memory for all of it */
	(void)bytes;
	return NULL;
#else
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
#ifdef MADV_NOHUGEPAGE
	/* so that a bucket costs a small page, not a huge page */
	(void)madvise(p, bytes, MADV_NOHUGEPAGE);
#endif
	return p;
#endif
}

static int vast_call(const struct cua_hashmap_view *view, int call, uint64_t key)
{
	const int words = view->key_size == 4, set = !view->value_size;
	uint32_t narrow = 0;
	uint64_t value = 0;

	switch (call) {
	case 0:
		return words ? vast_words_insert(view, (uint32_t)key, ~(uint32_t)key)
		       : set ? vast_set_insert(view, key)
			     : vast_longs_insert(view, key, ~key);
	case 1:
		return words ? vast_words_find(view, (uint32_t)key, &narrow) &&
				       narrow == ~(uint32_t)key
		       : set ? vast_set_contains(view, key)
			     : vast_longs_find(view, key, &value) && value == ~key;
	case 2:
		return words ? vast_words_erase(view, (uint32_t)key)
		       : set ? vast_set_erase(view, key)
			     : vast_longs_erase(view, key);
	default:
		return words ? vast_words_contains(view, (uint32_t)key)
		       : set ? vast_set_contains(view, key)
			     : vast_longs_contains(view, key);
	}
}

/* Views of hundreds of gigabytes, with few pages touched: homes and probes above 2^31 and 2^32. */
START_TEST(vast)
{
	static const struct {
		uint32_t ks, vs, layout;
		uint64_t n_buckets;
	} shapes[] = {
		{4, 4, CUA_HASHMAP_WORDS, ((uint64_t)1 << 32) - 512},
		{8, 0, CUA_HASHMAP_WORDS, ((uint64_t)1 << 32) - 512},
		{8, 8, CUA_HASHMAP_STATES, ((uint64_t)1 << 33) + 3},
	};
	const uint64_t size = shapes[_i].layout == CUA_HASHMAP_WORDS ? 64 : 128;
	const uint64_t n = test_quick() ? 2000 : 20000, bytes = shapes[_i].n_buckets * size;
	struct cua_hashmap_view view = {.n_buckets = shapes[_i].n_buckets,
					.key_size = shapes[_i].ks,
					.value_size = shapes[_i].vs,
					.layout = shapes[_i].layout};
	uint64_t far = 0;

	view.buckets = vast_memory(bytes);
	if (!view.buckets) {
		printf("vast, %d: skipped\n", _i);
		return;
	}
	view.counts = test_malloc(CUA_HASHMAP_STRIPES * sizeof(*view.counts) + 32);
	memset(view.counts, 0, CUA_HASHMAP_STRIPES * sizeof(*view.counts) + 32);
	for (int call = 0; call < 4; call++)
		/* without reserved keys */
		for (uint64_t i = 6; i < n; i++) {
			const uint64_t key = word_key(i, view.key_size == 4 ? CUA_U32 : CUA_U64);
			const uint64_t home =
				cua_hash_to_index(cua_hash_u64(key, 0), view.n_buckets);
			const char *bucket = (const char *)view.buckets + home * size;
			uint64_t at = 0;

			EXPECT(vast_call(&view, call, key) == (call < 3),
			       "shape %d, call %d, key %llu", _i, call, (unsigned long long)i);
			/* with so few keys, each key is in its home bucket */
			while (call < 2 && at < size && memcmp(bucket + at, &key, view.key_size))
				at += 4;
			EXPECT(at < size, "shape %d, key %llu is in another bucket", _i,
			       (unsigned long long)i);
			far += home >> 31 != 0;
		}
	ck_assert_uint_gt(far, n / 2);
	free(view.counts);
	ck_assert_int_eq(munmap(view.buckets, bytes), 0);
}
END_TEST

/* ---- inline functions called by host threads ---- */

#define THREADS 4
#define HOT 12

struct thread {
	pthread_t id;
	struct cua_hashmap_view view;
	uint64_t seed, number;
	int rounds;
	/* successful inserts and erases of each key, and the number of impossible results */
	int64_t inserted[HOT], erased[HOT], full;
	uint64_t wrong;
};

static void run_threads(struct thread *t, const struct cua_hashmap *map, int rounds, uint64_t *seed,
			void *(*main)(void *))
{
	memset(t, 0, THREADS * sizeof(*t));
	for (int i = 0; i < THREADS; i++) {
		ck_assert_cua(cua_hashmap_get_view(map, &t[i].view));
		t[i].seed = test_random(seed);
		t[i].number = (uint64_t)i;
		t[i].rounds = rounds;
		ck_assert_int_eq(pthread_create(&t[i].id, NULL, main, &t[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(t[i].id, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_uint_eq(t[i].wrong, 0);
}

/* The high half of a value holds its key, so find can check it. */
static uint64_t value_of(const struct thread *t, uint64_t key, uint64_t low)
{
	return t->view.value_size == 8 ? key << 32 | (low & 0xffff) : key << 16 | (low & 0xff);
}

static uint64_t key_of(const struct thread *t, uint64_t value)
{
	return value >> (t->view.value_size == 8 ? 32 : 16);
}

static void *mix_main(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < t->rounds; i++) {
		uint64_t r = test_random(&t->seed), value = 0;
		uint64_t key = (r >> 32) % HOT;
		int result = 0;

		switch (r % 8) {
		case 0:
		case 1: result = cua_hashmap_insert(&t->view, key, value_of(t, key, r >> 8)); break;
		case 2: result = cua_hashmap_assign(&t->view, key, value_of(t, key, r >> 8)); break;
		case 3:
			result = cua_hashmap_update(&t->view, key, value_of(t, key, r >> 8),
						    r & 256 ? CUA_UPDATE_MIN : CUA_UPDATE_MAX);
			break;
		case 4: t->erased[key] += cua_hashmap_erase(&t->view, key); break;
		default:
			if (cua_hashmap_find(&t->view, key, &value) && key_of(t, value) != key)
				t->wrong++;
		}
		t->inserted[key] += result == CUA_HASHMAP_INSERTED;
		t->full += result == CUA_HASHMAP_FULL;
	}
	return NULL;
}

START_TEST(threads_mix)
{
	uint64_t seed = test_seed("threads_mix");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int rounds = test_quick() ? 5000 : 60000;

	/* 5 or 7 slots, fewer than keys, so the map is often full; then slots for all keys */
	for (int t = 0; t < 4; t++)
		for (int small = 0; small < 2; small++) {
			struct cua_hashmap *map = new_word_map(
				ctx, word_types[t & 1], word_types[t >> 1], small ? 5 : 3 * HOT);
			struct thread threads[THREADS];
			uint64_t read = 0, keys[HOT], size = 0;
			void *k = test_alloc(ctx, HOT * 8), *v = test_alloc(ctx, HOT * 8);
			int64_t full = 0, present[HOT] = {0};

			run_threads(threads, map, rounds, &seed, mix_main);
			for (int i = 0; i < THREADS; i++)
				full += threads[i].full;
			ck_assert(small || !full);
			ck_assert_status(cua_hashmap_status(map), full ? CUA_ERROR_FULL : CUA_OK);
			ck_assert_cua(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, HOT, k, v, &read));
			download_words(ctx, word_types[t & 1], read, k, keys);
			for (uint64_t i = 0; i < read; i++) {
				ck_assert_uint_lt(keys[i], HOT);
				present[keys[i]]++;
			}
			for (int key = 0; key < HOT; key++) {
				int64_t balance = 0;

				for (int i = 0; i < THREADS; i++)
					balance +=
						threads[i].inserted[key] - threads[i].erased[key];
				ck_assert_int_eq(balance, present[key]);
				ck_assert(balance == 0 || balance == 1);
				size += (uint64_t)balance;
			}
			ck_assert_uint_eq(map_size(map), size);
			test_free(ctx, k);
			test_free(ctx, v);
			ck_assert_cua(cua_hashmap_destroy(map));
		}
	cua_context_destroy(ctx);
}
END_TEST

static void *sum_main(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < t->rounds; i++)
		t->inserted[i % 3] += cua_hashmap_update(&t->view, (uint64_t)(i % 3), 1,
							 CUA_UPDATE_ADD) == CUA_HASHMAP_INSERTED;
	return NULL;
}

/* No addition is lost, and each key is inserted once. */
START_TEST(threads_sum)
{
	uint64_t seed = 1;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int rounds = test_quick() ? 3000 : 90000;

	for (int t = 0; t < 4; t++) {
		struct cua_hashmap *map =
			new_word_map(ctx, word_types[t & 1], word_types[t >> 1], 10);
		struct thread threads[THREADS];
		uint64_t value = 0;

		run_threads(threads, map, rounds, &seed, sum_main);
		for (uint64_t key = 0; key < 3; key++) {
			int64_t inserted = 0;

			for (int i = 0; i < THREADS; i++)
				inserted += threads[i].inserted[key];
			ck_assert_int_eq(inserted, 1);
			ck_assert_int_eq(cua_hashmap_find(&threads[0].view, key, &value), 1);
			ck_assert_uint_eq(value, (uint64_t)(THREADS * rounds / 3));
		}
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	cua_context_destroy(ctx);
}
END_TEST

static void *own_main(void *arg)
{
	struct thread *t = arg;

	/* the thread owns two keys; the map never contains both */
	for (int i = 0; i < t->rounds; i++) {
		uint64_t low = test_random(&t->seed), value = 0;
		uint64_t key = t->number + (i & 1 ? THREADS : 0),
			 other = (low >> 32) % (2 * THREADS);

		t->wrong += cua_hashmap_insert(&t->view, key, value_of(t, key, low)) !=
			    CUA_HASHMAP_INSERTED;
		t->wrong +=
			!cua_hashmap_find(&t->view, key, &value) || value != value_of(t, key, low);
		t->wrong += cua_hashmap_insert(&t->view, key, 0) != CUA_HASHMAP_EXISTS;
		t->wrong += cua_hashmap_assign(&t->view, key, value_of(t, key, low + 1)) !=
			    CUA_HASHMAP_EXISTS;
		t->wrong += !cua_hashmap_find(&t->view, key, &value) ||
			    value != value_of(t, key, low + 1);
		/* a key of another thread is absent or has a value of its own */
		t->wrong += cua_hashmap_find(&t->view, other, &value) && key_of(t, value) != other;
		t->wrong += !cua_hashmap_erase(&t->view, key);
		t->wrong += cua_hashmap_contains(&t->view, key);
		t->wrong += cua_hashmap_erase(&t->view, key);
	}
	return NULL;
}

/* The threads never hold more keys than there are slots, so FULL would be an error. */
START_TEST(threads_own_keys)
{
	uint64_t seed = test_seed("threads_own_keys");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int t = 0; t < 4; t++) {
		/* few buckets; permanent keys leave a free slot per thread */
		struct cua_hashmap *map =
			new_word_map(ctx, word_types[t & 1], word_types[t >> 1], THREADS);
		struct thread threads[THREADS];
		struct cua_hashmap_view view;
		uint64_t slots = 0;

		ck_assert_cua(cua_hashmap_capacity(map, &slots));
		ck_assert_cua(cua_hashmap_get_view(map, &view));
		for (uint64_t i = 0; i < slots - THREADS; i++)
			ck_assert_int_eq(cua_hashmap_insert(&view, 100 + i, 0),
					 CUA_HASHMAP_INSERTED);
		run_threads(threads, map, test_quick() ? 2000 : 20000, &seed, own_main);
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_uint_eq(map_size(map), slots - THREADS);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	cua_context_destroy(ctx);
}
END_TEST

static pthread_barrier_t barrier;

static void *last_slot_main(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < t->rounds; i++) {
		int result;

		pthread_barrier_wait(&barrier);
		result = cua_hashmap_insert(&t->view, 1000 + t->number, t->number);
		t->full += result == CUA_HASHMAP_FULL;
		pthread_barrier_wait(&barrier);
		if (result == CUA_HASHMAP_INSERTED) {
			t->inserted[0]++;
			if (!cua_hashmap_erase(&t->view, 1000 + t->number))
				t->wrong++;
		} else if (result != CUA_HASHMAP_FULL) {
			t->wrong++;
		}
	}
	return NULL;
}

/*
 * Many threads insert at once into a map with a single free slot. In each round a single insert
 * succeeds.
 */
START_TEST(threads_last_slot)
{
	uint64_t seed = 2;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int rounds = test_quick() ? 200 : 3000;
	struct cua_hashmap *map = new_word_map(ctx, CUA_U64, CUA_U32, 100);
	struct thread threads[THREADS];
	struct cua_hashmap_view view;
	uint64_t slots = 0;
	int64_t won = 0, full_count = 0;

	ck_assert_cua(cua_hashmap_capacity(map, &slots));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	for (uint64_t i = 0; i < slots - 1; i++)
		ck_assert_int_eq(cua_hashmap_insert(&view, i, 0), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	run_threads(threads, map, rounds, &seed, last_slot_main);
	pthread_barrier_destroy(&barrier);
	for (int i = 0; i < THREADS; i++) {
		won += threads[i].inserted[0];
		full_count += threads[i].full;
	}
	ck_assert_int_eq(won, rounds);
	ck_assert_int_eq(full_count, (int64_t)rounds * (THREADS - 1));
	ck_assert_uint_eq(map_size(map), slots - 1);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_inline");
	TCase *tcase = tcase_create("hashmap_inline");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, never_erases);
	tcase_add_test(tcase, macros);
	tcase_add_test(tcase, executes);
	tcase_add_loop_test(tcase, vast, 0, 3);
	tcase_add_test(tcase, threads_mix);
	tcase_add_test(tcase, threads_sum);
	tcase_add_test(tcase, threads_own_keys);
	tcase_add_test(tcase, threads_last_slot);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
