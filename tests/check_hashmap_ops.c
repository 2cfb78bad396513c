/* SPDX-License-Identifier: MIT */
/*
 * The hash map as a whole: sorted, rejected, resized, grown, merged, told of, copied, saved and
 * loaded.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

static const uint32_t sizes[4] = {4, 8, 16, 0};

static enum cua_type type_of(uint32_t size)
{
	return size == 4 ? CUA_U32 : size == 8 ? CUA_U64 : size == 16 ? CUA_U128 : CUA_NONE;
}

/*
 * All sizes: key of sizes[c % 3], value of sizes[c / 3], c < CASES; 0: 4 + 4, 4: 8 + 8, 8: 16 + 16,
 * 9: 4 + 0.
 */
#define CASES 12

static void cut(struct cua_u128 *v, uint32_t size)
{
	if (size == 4)
		v->lo = (uint32_t)v->lo;
	if (size < 16)
		v->hi = 0;
	if (!size)
		v->lo = 0;
}

/* Number i of different keys, with every unusual pattern. */
static struct cua_u128 key_number(uint64_t i, uint32_t size)
{
	static const uint64_t unusual[] = {0, ~(uint64_t)0, 1, 2, 0x80000000, 0x7fffffff};
	struct cua_u128 key = {i * 2654435761u, 0};

	if (i < sizeof(unusual) / sizeof(unusual[0])) {
		key.lo = key.hi = unusual[i];
		if (i != 1)
			key.hi = 0;
	} else if (size > 4) {
		key.lo = i * 0x9e3779b97f4a7c15u;
		key.hi = i % 3 ? key.lo >> 7 : 0;
	}
	cut(&key, size);
	return key;
}

static struct cua_u128 value_number(uint64_t i, uint32_t size)
{
	struct cua_u128 v = {(i + 1) * 0xd1342543de82ef95u, ~i};

	cut(&v, size);
	return v;
}

static int below(struct cua_u128 a, struct cua_u128 b)
{
	return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

static int same(struct cua_u128 a, struct cua_u128 b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

struct pair {
	struct cua_u128 key, value;
};

static int by_key(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return below(x->key, y->key) ? -1 : below(y->key, x->key);
}

/* ---- arrays of the map's sizes ---- */

static void pack(void *out, uint32_t size, size_t i, struct cua_u128 v)
{
	memcpy((char *)out + i * size, &v, size);
}

static struct cua_u128 unpack(const void *in, uint32_t size, size_t i)
{
	struct cua_u128 v = {0, 0};

	memcpy(&v, (const char *)in + i * size, size);
	return v;
}

static void *keys_of(struct cua_context *ctx, const struct pair *p, size_t n, uint32_t size,
		     int values)
{
	char *host = test_malloc(n * size + 1);
	void *result;

	for (size_t i = 0; i < n; i++)
		pack(host, size, i, values ? p[i].value : p[i].key);
	result = test_upload(ctx, host, n * size + 1);
	free(host);
	return result;
}

static struct pair *random_pairs(size_t n, uint32_t ks, uint32_t vs, uint64_t first)
{
	struct pair *p = test_malloc((n + 1) * sizeof(*p));

	for (size_t i = 0; i < n; i++) {
		p[i].key = key_number(first + i, ks);
		p[i].value = value_number(first + i, vs);
	}
	return p;
}

struct maker {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	uint32_t ks, vs;
};

static struct maker make(struct cua_context *ctx, int c, uint64_t capacity,
			 const struct cua_hashmap_options *options)
{
	struct maker m = {ctx, NULL, sizes[c % 3], sizes[c / 3]};

	ck_assert_cua(
		cua_hashmap_create(ctx, options, type_of(m.ks), type_of(m.vs), capacity, &m.map));
	return m;
}

static enum cua_status insert(const struct maker *m, const struct pair *p, size_t n)
{
	void *k = keys_of(m->ctx, p, n, m->ks, 0), *v = keys_of(m->ctx, p, n, m->vs, 1);
	enum cua_status status = cua_hashmap_insert_n(m->map, n, k, v, NULL);

	ck_assert_cua(cua_context_synchronize(m->ctx));
	test_free(m->ctx, k);
	test_free(m->ctx, v);
	return status;
}

/* The pairs of the map, in ascending order of keys, sorted by us; *n of them. */
static struct pair *contents(const struct maker *m, uint64_t *n)
{
	uint64_t size = 99, copied = 0;
	struct pair *p;
	char *k, *v;

	ck_assert_cua(cua_hashmap_size(m->map, &size));
	k = test_malloc(size * m->ks + 1);
	v = test_malloc(size * m->vs + 1);
	p = test_malloc((size + 1) * sizeof(*p));
	ck_assert_cua(cua_hashmap_copy_to_host(m->map, size, k, v, &copied));
	ck_assert_uint_eq(copied, size);
	for (uint64_t i = 0; i < size; i++) {
		p[i].key = unpack(k, m->ks, i);
		p[i].value = unpack(v, m->vs, i);
	}
	qsort(p, size, sizeof(*p), by_key);
	free(k);
	free(v);
	*n = size;
	return p;
}

/* That the map holds these pairs, which are sorted here, and finds them. */
static void expect_pairs(const struct maker *m, struct pair *p, size_t n)
{
	uint64_t there;
	struct pair *c = contents(m, &there);
	void *k = keys_of(m->ctx, p, n, m->ks, 0);
	uint8_t *f = test_alloc(m->ctx, n + 1), *found = test_malloc(n + 1);

	ck_assert_uint_eq(there, n);
	ck_assert_cua(cua_hashmap_contains_n(m->map, n, k, f));
	test_download(m->ctx, found, f, n);
	for (size_t i = 0; i < n; i++)
		EXPECT(found[i] == 1, "key %zu of %zu is not found", i, n);
	qsort(p, n, sizeof(*p), by_key);
	for (size_t i = 0; i < n; i++) {
		EXPECT(same(c[i].key, p[i].key), "key %zu of %zu", i, n);
		EXPECT(same(c[i].value, p[i].value), "value %zu of %zu", i, n);
	}
	free(c);
	free(found);
	test_free(m->ctx, k);
	test_free(m->ctx, f);
}

static uint64_t slots_of(const struct maker *m)
{
	uint64_t slots = 0;

	ck_assert_cua(cua_hashmap_capacity(m->map, &slots));
	return slots;
}

/* ---- arguments ---- */

static int never(void *arg, const void *key, const void *value)
{
	(void)arg;
	(void)key;
	(void)value;
	ck_abort_msg("called");
	return 1;
}

START_TEST(bad_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *other = test_context(TEST_BACKEND);
	struct cua_hashmap_options own = {.struct_size = sizeof(own), .own_hash = 1};
	struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
	struct maker m = make(ctx, 0, 20, NULL), set = make(ctx, 9, 20, NULL),
		     wide = make(ctx, 4, 20, NULL);
	struct maker large = make(ctx, 8, 20, NULL);
	struct maker strange = make(other, 0, 20, NULL), hashed = make(ctx, 0, 20, &own);
	struct pair *p = random_pairs(10, 4, 4, 0);
	uint64_t n = 5, slots = slots_of(&m);
	uint32_t *k = test_alloc(ctx, 64), *v = test_alloc(ctx, 64);
	struct cua_hashmap *loaded = NULL;
	struct cua_hashmap_view view;
	char host[64];
	size_t bytes = 5;

	ck_assert_cua(insert(&m, p, 10));
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
	/* more than there are addresses */
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
	ck_assert_status(cua_hashmap_for_each(NULL, never, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_for_each(m.map, NULL, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_hashmap_for_each(set.map, never, NULL));

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

/* ---- sorted ---- */

static void check_sorted(const struct maker *m, struct pair *p, size_t n, uint64_t max)
{
	char *k = test_alloc(m->ctx, max * m->ks + 16), *v = test_alloc(m->ctx, max * m->vs + 16);
	char *keys = test_malloc(max * m->ks + 16), *values = test_malloc(max * m->vs + 16);
	const uint64_t fit = n < max ? n : max;
	uint64_t there = 99;

	ck_assert_cua(cua_hashmap_retrieve(m->map, CUA_HASHMAP_SORTED, max, max ? k : NULL,
					   max && m->vs ? v : NULL, &there));
	ck_assert_uint_eq(there, n);
	test_download(m->ctx, keys, k, max * m->ks + 16);
	test_download(m->ctx, values, v, max * m->vs + 16);
	qsort(p, n, sizeof(*p), by_key);
	for (uint64_t i = 0; i < fit; i++) {
		EXPECT(same(p[i].key, unpack(keys, m->ks, i)), "key %llu of %zu, max %llu",
		       (unsigned long long)i, n, (unsigned long long)max);
		EXPECT(same(p[i].value, unpack(values, m->vs, i)), "value %llu of %zu",
		       (unsigned long long)i, n);
	}
	/* nothing behind them */
	for (int i = 0; i < 16; i++) {
		EXPECT((uint8_t)keys[fit * m->ks + (size_t)i] == 0xa5 || max * m->ks + 16 > 4096,
		       "written behind");
		EXPECT((uint8_t)values[fit * m->vs + (size_t)i] == 0xa5 || max * m->vs + 16 > 4096,
		       "written behind");
	}
	free(keys);
	free(values);
	test_free(m->ctx, k);
	test_free(m->ctx, v);
}

START_TEST(sorted)
{
	static const size_t counts[] = {0, 1, 2, 3, 100, 255, 4097, 50001};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < CASES; c++)
		for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			size_t n = counts[j];
			struct maker m;
			struct pair *p;
			void *gone;

			/* each count with each size of keys */
			if (test_traced() && ((size_t)c / 3 + j) % 3)
				continue;
			m = make(ctx, c, n + 5, NULL);
			p = random_pairs(n, m.ks, m.vs, 0);
			if (test_quick() && n > 5000 && c) {
				n = 5000;
				p = (free(p), random_pairs(n, m.ks, m.vs, 0));
			}
			/*
			 * at times keys with bytes in common: only bits 16 to 31 and, of 16 bytes,
			 * 64 to 71 differ
			 */
			for (size_t i = 0; (c + j) % 2 && i < n; i++) {
				p[i].key.lo = (uint64_t)0x77 << (m.ks == 4 ? 0 : 40) |
					      (uint64_t)(i & 0xffff) << 16;
				p[i].key.hi = m.ks == 16 ? i % 7 : 0;
			}
			ck_assert_cua(cua_context_set_threads(ctx, 1 + (unsigned)j % 4));
			ck_assert_cua(insert(&m, p, n));
			check_sorted(&m, p, n, n);
			check_sorted(&m, p, n, n + 100);
			check_sorted(&m, p, n, n / 3);
			check_sorted(&m, p, n, n ? n - 1 : 0);
			check_sorted(&m, p, n, 1);
			/* slots of keys that were erased */
			gone = keys_of(ctx, p, n / 4, m.ks, 0);
			ck_assert_cua(cua_hashmap_erase_n(m.map, n / 4, gone, NULL));
			check_sorted(&m, p + n / 4, n - n / 4, n / 2);
			test_free(ctx, gone);
			free(p);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* The workspace that is told is enough where there is no memory for more, and less is not. */
START_TEST(sorted_workspace)
{
	/*
	 * of whole units, of which one is for the number of pairs where it is copied, which it is
	 * not here
	 */
	enum { UNIT = 256 };
	const size_t n = 300000;
	struct pair *p = random_pairs(n, 8, 8, 0);

	/* less comes first: what is freed later would be memory for it */
	for (int less = 2; less >= 1; less--) {
		struct cua_context *ctx = test_context(TEST_BACKEND);
		struct maker m = make(ctx, 4, n + 10, NULL);
		uint64_t *k = test_alloc(ctx, n * 8), *v = test_alloc(ctx, n * 8), there = 5;
		unsigned long pages = 0;
		struct rlimit old, limit;
		enum cua_status status;
		size_t bytes = 0;
		FILE *f;

		ck_assert_cua(cua_context_set_threads(ctx, 1));
		ck_assert_cua(insert(&m, p, n));
		ck_assert_cua(cua_hashmap_retrieve_workspace(m.map, CUA_HASHMAP_SORTED, n, &bytes));
		/* more than a context begins with */
		ck_assert_uint_gt(bytes, ((size_t)1 << 20) + 2 * UNIT);
		ck_assert_cua(cua_context_reserve(ctx, bytes - (size_t)less * UNIT));
		f = fopen("/proc/self/statm", "r");
		ck_assert(f && fscanf(f, "%lu", &pages) == 1);
		fclose(f);
		ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
		limit = old;
		limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE);
		ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
		status = cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, n, k, v, &there);
		ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
		ck_assert_status(status, less == 2 ? CUA_ERROR_NO_MEMORY : CUA_OK);
		ck_assert_uint_eq(there, less == 2 ? 5 : n);
		for (size_t i = 1; less < 2 && i < n; i++)
			EXPECT(k[i - 1] < k[i], "key %zu", i);
		test_free(ctx, k);
		test_free(ctx, v);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		cua_context_destroy(ctx);
	}
	free(p);
}
END_TEST
#define HAVE_LIMITS
#endif

/* ---- rejected ---- */

START_TEST(rejected)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < CASES; c++)
		for (uint64_t room = 0; room < 90; room += 30) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o), .rejects = room};
			struct maker m = make(ctx, c, 40, &o);
			size_t slots = slots_of(&m), n = slots + 50, kept, held = 0;
			struct pair *p = random_pairs(n, m.ks, m.vs, 6), *r;
			char keys[1024], values[1024];
			char *k = test_alloc(ctx, 1024), *v = test_alloc(ctx, 1024);
			uint64_t all = 99;

			ck_assert_cua(cua_hashmap_rejected(m.map, 60, k, v, &all));
			ck_assert_uint_eq(all, 0);
			ck_assert_cua(insert(&m, p, n));
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
						times += same(p[i].key, unpack(keys, m.ks, j)) &&
							 same(p[i].value, unpack(values, m.vs, j));
					ck_assert_uint_le(times, 1);
					held += times;
				}
				free(r);
				ck_assert_uint_eq(held, kept);
				ck_assert_int_eq((uint8_t)keys[kept * m.ks], 0xa5);
				/* fewer places than are kept */
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

/* ---- resize ---- */

START_TEST(resized)
{
	uint64_t seed = test_seed("resized");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < CASES; c++) {
		struct maker m = make(ctx, c, 10, NULL);
		size_t n = 10;
		struct pair *p = random_pairs(6000, m.ks, m.vs, 0);

		ck_assert_cua(insert(&m, p, n));
		for (int round = 0; round < 12; round++) {
			uint64_t capacity = n + test_random(&seed) % (round % 3 ? 2000 : 3), slots;
			void *k;

			ck_assert_cua(cua_hashmap_resize(m.map, capacity));
			slots = slots_of(&m);
			ck_assert_uint_ge(slots, capacity);
			expect_pairs(&m, p, n);
			p = (free(p), random_pairs(6000, m.ks, m.vs, 0));
			if (n > 1)
				ck_assert_status(cua_hashmap_resize(m.map, n - 1), CUA_ERROR_SIZE);
			ck_assert_uint_eq(slots_of(&m), slots);
			/* more, or some away again */
			if (test_random(&seed) % 2) {
				size_t more = (slots - n) / 2;

				if (n + more > 6000)
					more = 6000 - n;
				ck_assert_cua(insert(&m, p + n, more));
				n += more;
			} else {
				size_t gone = n / 3;

				k = keys_of(ctx, p + n - gone, gone, m.ks, 0);
				ck_assert_cua(cua_hashmap_erase_n(m.map, gone, k, NULL));
				ck_assert_cua(cua_context_synchronize(ctx));
				test_free(ctx, k);
				n -= gone;
			}
		}
		ck_assert_cua(cua_hashmap_status(m.map));
		free(p);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- compare-exchange ---- */

/*
 * Six elements a key, half of the keys absent, all with the value that the key has and a new one of
 * their own: one of them wins, and the others get what it has stored. Then all expect what is not
 * there.
 */
static void compare_exchange_all(struct cua_context *ctx, int c, uint32_t portable)
{
	const size_t half = 3000, n = 12 * half;
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = portable};
	struct maker m = make(ctx, c, half, &o);
	struct pair *pairs = random_pairs(2 * half, m.ks, m.vs, 0),
		    *given = test_malloc(n * sizeof(*given)),
		    *wanted = test_malloc(n * sizeof(*wanted));
	char *seen = test_malloc(n * m.vs);
	uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n);
	size_t *winner = test_malloc(half * sizeof(*winner));
	void *k, *e, *d;

	ck_assert_cua(insert(&m, pairs, half));
	for (size_t i = 0; i < n; i++) {
		given[i] = wanted[i] = pairs[i % (2 * half)];
		wanted[i].value = value_number(2 * half + i, m.vs);
	}
	k = keys_of(ctx, given, n, m.ks, 0);
	e = keys_of(ctx, given, n, m.vs, 1);
	d = keys_of(ctx, wanted, n, m.vs, 1);
	for (size_t i = 0; i < half; i++)
		winner[i] = n;

	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, n, k, e, d, r));
	test_download(ctx, results, r, n);
	test_download(ctx, seen, e, n * m.vs);
	for (size_t i = 0; i < n; i++) {
		size_t at = i % (2 * half);

		if (at >= half) {
			EXPECT(results[i] == CUA_HASHMAP_ABSENT, "result %zu is %d", i, results[i]);
		} else if (results[i] == CUA_HASHMAP_EXISTS) {
			EXPECT(winner[at] == n, "elements %zu and %zu have won", winner[at], i);
			winner[at] = i;
		} else {
			EXPECT(results[i] == CUA_HASHMAP_DIFFERS, "result %zu is %d", i,
			       results[i]);
		}
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = i % (2 * half);
		int lost = at < half && winner[at] != i;

		EXPECT(at >= half || winner[at] < n, "nobody has won key %zu", at);
		EXPECT(same(unpack(seen, m.vs, i),
			    lost ? wanted[winner[at]].value : given[i].value),
		       "what element %zu has seen", i);
	}
	for (size_t i = 0; i < half; i++)
		pairs[i].value = wanted[winner[i]].value;
	expect_pairs(&m, pairs, half);

	/* those that won still expect what was there first; without results */
	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, 0, NULL, NULL, NULL, NULL));
	for (size_t i = 0; i < n; i++)
		pack(seen, m.vs, i, value_number(2 * half + n + i, m.vs));
	test_free(ctx, e);
	e = test_upload(ctx, seen, n * m.vs);
	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, n, k, e, d, NULL));
	expect_pairs(&m, pairs, half);

	ck_assert_status(cua_hashmap_compare_exchange_n(NULL, n, k, e, d, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, NULL, e, d, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, k, NULL, d, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, k, e, NULL, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, ~(size_t)0, k, e, d, r),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n - 1, k, (char *)e + 1, d, r),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n - 1, k, e, (char *)e + m.vs, r),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, 1, k, k, d, r), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, k, e, d, e), CUA_ERROR_OVERLAP);

	ck_assert_cua(cua_hashmap_destroy(m.map));
	test_free(ctx, k);
	test_free(ctx, e);
	test_free(ctx, d);
	test_free(ctx, r);
	free(pairs);
	free(given);
	free(wanted);
	free(seen);
	free(results);
	free(winner);
}

START_TEST(compare_exchanged)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < CASES; c++) {
		uint64_t word[2] = {0, 0};

		if (sizes[c / 3]) {
			compare_exchange_all(ctx, c, 0);
			compare_exchange_all(ctx, c, 1);
		} else {
			struct maker m = make(ctx, c, 9, NULL);
			void *k = test_upload(ctx, word, sizeof(word));

			ck_assert_status(
				cua_hashmap_compare_exchange_n(m.map, 1, k, NULL, NULL, NULL),
				CUA_ERROR_TYPE);
			ck_assert_cua(cua_hashmap_destroy(m.map));
			test_free(ctx, k);
		}
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- growth ---- */

/* From one slot to as many as the keys need, through each call that adds keys. */
START_TEST(growth)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < CASES; c++)
		for (int call = 0; call < 6; call++) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o),
							.grow_percent = 70};
			struct maker m = make(ctx, c, 1, &o);
			size_t n = test_quick()          ? 3000
				   : c == 4 && call == 0 ? 1000000
				   : c == 3              ? 200000
							 : 20000;
			struct pair *p = random_pairs(n, m.ks, m.vs, 0);
			void *k = keys_of(ctx, p, n, m.ks, 0), *v = keys_of(ctx, p, n, m.vs, 1);
			char *w = test_alloc(ctx, n * m.vs + 1);
			uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n);
			enum cua_status expected = call % 5 && !m.vs ? CUA_ERROR_TYPE : CUA_OK;
			uint64_t size = 0;
			size_t half = n / 2 + 1;

			/* twice, the first time in two calls */
			for (int again = 0; again < 3; again++) {
				size_t from = again == 1 ? half : 0,
				       count = again == 0 ? half : n - from;
				char *keys = (char *)k + from * m.ks,
				     *values = (char *)v + from * m.vs;
				enum cua_status status;

				if (call == 5)
					keys = k, values = v, from = 0, count = n;
				status =
					call == 0 ? cua_hashmap_insert_n(m.map, count, keys, values,
									 r + from)
					: call == 1 ? cua_hashmap_assign_n(m.map, count, keys,
									   values, r + from)
					: call == 2
						? cua_hashmap_update_n(m.map, CUA_UPDATE_MAX, count,
								       keys, values, r + from)
					: call == 3 ? cua_hashmap_insert_or_get_n(
							      m.map, count, keys, values,
							      w + from * m.vs, r + from)
					: call == 4
						? cua_hashmap_exchange_n(m.map, count, keys, values,
									 w + from * m.vs, r + from)
						: cua_hashmap_build_n(m.map, count, keys, values,
								      r + from);
				ck_assert_status(status, expected);
				if (status)
					continue;
				test_download(ctx, results, r, n);
				for (size_t i = from; i < from + count; i++)
					EXPECT(results[i] == (again == 2 && call != 5
								      ? CUA_HASHMAP_EXISTS
								      : CUA_HASHMAP_INSERTED),
					       "result %zu is %d", i, results[i]);
				ck_assert_cua(cua_hashmap_size(m.map, &size));
				ck_assert_uint_eq(size, from + count);
			}
			if (!expected) {
				ck_assert_cua(cua_hashmap_status(m.map));
				/* room for all, and not for many times as many */
				ck_assert_uint_le(n, slots_of(&m) / 10 * 7 + 9);
				ck_assert_uint_le(slots_of(&m),
						  2 * n * 10 / 7 + 2 * 65536 * 10 / 7 + 8192);
				expect_pairs(&m, p, n);
			}
			free(p);
			free(results);
			test_free(ctx, k);
			test_free(ctx, v);
			test_free(ctx, w);
			test_free(ctx, r);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

/* Many elements of few keys: the map does not grow for them. */
START_TEST(growth_of_equal_keys)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .grow_percent = 50};
	struct maker m = make(ctx, 4, 100, &o);
	const size_t n = (size_t)test_scale(200000, 500000, 2000000);
	struct pair *p = test_malloc(n * sizeof(*p)), *sums = random_pairs(90, 8, 8, 0);
	void *k, *v;

	for (size_t i = 0; i < n; i++) {
		p[i].key = sums[i % 90].key;
		p[i].value.lo = i;
	}
	for (size_t j = 0; j < 90; j++)
		sums[j].value.lo = sums[j].value.hi = 0;
	for (size_t i = 0; i < n; i++)
		sums[i % 90].value.lo += i;
	k = keys_of(ctx, p, n, 8, 0);
	v = keys_of(ctx, p, n, 8, 1);
	ck_assert_cua(cua_hashmap_update_n(m.map, CUA_UPDATE_ADD, n, k, v, NULL));
	expect_pairs(&m, sums, 90);
	ck_assert_uint_le(slots_of(&m), 2 * 65536 + 4096);
	free(p);
	free(sums);
	test_free(ctx, k);
	test_free(ctx, v);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

static void expect_same_maps(const struct maker *a, const struct maker *b)
{
	uint64_t n, m;
	struct pair *p = contents(a, &n), *q = contents(b, &m);

	ck_assert_uint_eq(n, m);
	for (uint64_t i = 0; i < n; i++)
		EXPECT(same(p[i].key, q[i].key) && same(p[i].value, q[i].value),
		       "pair %llu of %llu", (unsigned long long)i, (unsigned long long)n);
	free(p);
	free(q);
}

/*
 * One operand for all keys: what update_n does with as many copies of it, in every size, also where
 * the map grows.
 */
START_TEST(updated_by_one_value)
{
	static const enum cua_update ops[] = {CUA_UPDATE_ADD, CUA_UPDATE_MIN, CUA_UPDATE_MAX,
					      CUA_UPDATE_AND, CUA_UPDATE_OR,  CUA_UPDATE_XOR};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint8_t zero = 0;

	for (int run = 0; run < 4 * CASES; run++) {
		const int grows = run / CASES % 2, portable = run / CASES / 2;
		struct cua_hashmap_options o = CUA_HASHMAP_OPTIONS_INIT;
		const size_t n = test_quick() ? 4000 : 40000, distinct = n / 3;
		struct maker a, b;
		struct pair *p;
		uint8_t *r, *results[2];
		void *k, *v;

		o.grow_percent = grows ? 60 : 0;
		o.portable = (uint32_t)portable;
		a = make(ctx, run % CASES, grows ? 1 : n, &o);
		b = make(ctx, run % CASES, grows ? 1 : n, &o);
		p = random_pairs(n, a.ks, a.vs, 0);
		r = test_alloc(ctx, n);
		results[0] = test_malloc(n);
		results[1] = test_malloc(n);
		/* every fourth element is of one key, the others of a few each */
		for (size_t i = 0; i < n; i++)
			p[i].key = i % 4 ? p[i % distinct].key : p[7].key;
		k = keys_of(ctx, p, n, a.ks, 0);
		if (!a.vs) {
			ck_assert_status(
				cua_hashmap_update_value_n(a.map, CUA_UPDATE_ADD, n, k, &zero, r),
				CUA_ERROR_TYPE);
			ck_assert_status(cua_hashmap_update_value_n(a.map, CUA_UPDATE_ADD, 0, NULL,
								    NULL, NULL),
					 CUA_ERROR_TYPE);
		}
		for (int op = 0; a.vs && op < 6; op++) {
			struct cua_u128 value = value_number((uint64_t)op + 40, a.vs);
			uint64_t inserted[2] = {0, 0};
			char operand[17];

			for (size_t i = 0; i < n; i++)
				p[i].value = value;
			v = keys_of(ctx, p, n, a.vs, 1);
			pack(operand + 1, a.vs, 0, value);
			ck_assert_cua(cua_hashmap_update_n(a.map, ops[op], n, k, v, r));
			test_download(ctx, results[0], r, n);
			ck_assert_cua(
				cua_hashmap_update_value_n(b.map, ops[op], n, k, operand + 1, r));
			test_download(ctx, results[1], r, n);
			for (size_t i = 0; i < 2 * n; i++) {
				const uint8_t result = results[i / n][i % n];

				inserted[i / n] += result == CUA_HASHMAP_INSERTED;
				EXPECT(result == CUA_HASHMAP_INSERTED ||
					       result == CUA_HASHMAP_EXISTS,
				       "result %zu is %d", i, result);
			}
			ck_assert_uint_eq(inserted[0], inserted[1]);
			ck_assert_uint_eq(inserted[1] != 0, op == 0);
			expect_same_maps(&a, &b);
			test_free(ctx, v);
		}
		free(results[0]);
		free(results[1]);
		free(p);
		test_free(ctx, k);
		test_free(ctx, r);
		ck_assert_cua(cua_hashmap_destroy(a.map));
		ck_assert_cua(cua_hashmap_destroy(b.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

#ifdef HAVE_LIMITS
/*
 * There is no memory to grow on: what was done stays done, and the results tell which elements it
 * was.
 */
START_TEST(growth_without_memory)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .grow_percent = 50};
	struct maker m = make(ctx, 8, 100, &o);
	const size_t n = 700000;
	struct pair *p = random_pairs(n, 16, 16, 0);
	void *k = keys_of(ctx, p, n, 16, 0), *v = keys_of(ctx, p, n, 16, 1);
	uint8_t *results = test_alloc(ctx, n);
	struct rlimit old, limit;
	unsigned long pages = 0;
	uint64_t size = 0, slots;
	size_t done = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	ck_assert_cua(cua_hashmap_insert_n(m.map, 10, k, v, results));
	slots = slots_of(&m);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
	limit = old;
	limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (20 << 20);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_status(cua_hashmap_resize(m.map, n), CUA_ERROR_NO_MEMORY);
	ck_assert_uint_eq(slots_of(&m), slots);
	ck_assert_status(cua_hashmap_insert_n(m.map, n, k, v, results), CUA_ERROR_NO_MEMORY);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
	while (done < n && results[done] == (done < 10 ? CUA_HASHMAP_EXISTS : CUA_HASHMAP_INSERTED))
		done++;
	ck_assert_uint_ge(done, 10);
	ck_assert_uint_lt(done, n);
	for (size_t i = done; i < n; i++)
		EXPECT(results[i] == CUA_HASHMAP_FULL, "result %zu is %d", i, results[i]);
	ck_assert_cua(cua_hashmap_size(m.map, &size));
	ck_assert_uint_eq(size, done);
	ck_assert_cua(cua_hashmap_status(m.map));
	/* now there is */
	ck_assert_cua(cua_hashmap_insert_n(m.map, n, k, v, results));
	expect_pairs(&m, p, n);
	free(p);
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, results);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* ---- merge ---- */

static struct cua_u128 combined(struct cua_u128 a, struct cua_u128 b, int how, uint32_t size)
{
	switch (how) {
	case CUA_HASHMAP_KEEP: break;
	case CUA_HASHMAP_REPLACE: a = b; break;
	case CUA_HASHMAP_ADD:
		a.lo += b.lo;
		a.hi += b.hi + (a.lo < b.lo);
		break;
	case CUA_HASHMAP_MIN: a = below(b, a) ? b : a; break;
	case CUA_HASHMAP_MAX: a = below(a, b) ? b : a; break;
	case CUA_HASHMAP_AND:
		a.lo &= b.lo;
		a.hi &= b.hi;
		break;
	case CUA_HASHMAP_OR:
		a.lo |= b.lo;
		a.hi |= b.hi;
		break;
	default: a.lo ^= b.lo; a.hi ^= b.hi;
	}
	cut(&a, size);
	return a;
}

START_TEST(merged)
{
	static const int all[] = {CUA_HASHMAP_KEEP, CUA_HASHMAP_ADD,    CUA_HASHMAP_MIN,
				  CUA_HASHMAP_MAX,  CUA_HASHMAP_AND,    CUA_HASHMAP_OR,
				  CUA_HASHMAP_XOR,  CUA_HASHMAP_REPLACE};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < CASES; c++)
		for (size_t h = 0; h < sizeof(all) / sizeof(all[0]); h++) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o), .seed = 77};
			struct maker m = make(ctx, c, 4000, NULL), from = make(ctx, c, 2500, &o);
			/* 0 .. 1999 here, 0 .. 499 and 2000 .. 2999 there with other values */
			struct pair *a = random_pairs(3000, m.ks, m.vs, 0),
				    *b = random_pairs(3000, m.ks, m.vs, 0);

			for (size_t i = 0; i < 3000; i++)
				b[i].value = value_number(i * 31 + 5, m.vs);
			ck_assert_cua(insert(&m, a, 2000));
			ck_assert_cua(insert(&from, b, 500));
			ck_assert_cua(insert(&from, b + 2000, 1000));
			if (!m.vs && h) {
				ck_assert_status(
					cua_hashmap_merge(m.map, from.map,
							  (enum cua_hashmap_merge_rule)all[h]),
					CUA_ERROR_TYPE);
			} else {
				ck_assert_cua(cua_hashmap_merge(
					m.map, from.map, (enum cua_hashmap_merge_rule)all[h]));
				for (size_t i = 0; i < 500; i++)
					a[i].value = combined(a[i].value, b[i].value, all[h], m.vs);
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

/* What does not fit is rejected. */
START_TEST(merged_full)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct maker m = make(ctx, 0, 7, NULL), from = make(ctx, 0, 100, NULL);
	struct pair *p = random_pairs(50, 4, 4, 6);
	uint64_t size = 0, all = 0;

	ck_assert_cua(insert(&from, p, 50));
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

/* ---- many elements of few keys: the values that a call gives back ---- */

/* Elements whose keys are some of key_number 0 .. distinct - 1, with random values. */
static uint32_t *random_elements(uint64_t *seed, const struct maker *m, struct pair *p, size_t n,
				 uint64_t distinct)
{
	uint32_t *which = test_malloc(n * sizeof(*which));

	for (size_t i = 0; i < n; i++) {
		which[i] = (uint32_t)(test_random(seed) % distinct);
		p[i].key = key_number(which[i], m->ks);
		p[i].value.lo = test_random(seed);
		p[i].value.hi = test_random(seed);
		cut(&p[i].value, m->vs);
	}
	return which;
}

/*
 * exchange_n: the values of a key that were given are those that came back and the one that is
 * there, whatever the order was. insert_or_get_n: all get the value that is there, which one of
 * them has given. What is rejected gets nothing.
 */
static void check_given_back(struct cua_context *ctx, int c, int portable, int exchange,
			     int in_place, int half, uint64_t *seed)
{
	enum { DISTINCT = 200 };
	const struct cua_hashmap_options o = {.struct_size = sizeof(o),
					      .portable = (uint32_t)portable};
	const size_t n = test_quick() ? 3001 : 20011;
	struct maker m = make(ctx, c, half ? DISTINCT / 2 - 40 : DISTINCT, &o);
	struct pair *p = test_malloc(n * sizeof(*p)),
		    *distinct = random_pairs(DISTINCT, m.ks, m.vs, 0);
	/* 100 keys are always too many for half a map, and 3 have many elements each */
	uint64_t some = half ? DISTINCT : test_random(seed) % 2 ? 3 : DISTINCT;
	uint32_t *which = random_elements(seed, &m, p, n, some);
	struct cua_u128 given[DISTINCT] = {{0, 0}}, back[DISTINCT] = {{0, 0}},
			first[DISTINCT] = {{0, 0}};
	uint32_t inserted[DISTINCT] = {0}, rejected[DISTINCT] = {0}, seen[DISTINCT] = {0}, full = 0;
	void *k = keys_of(ctx, p, n, m.ks, 0), *v = keys_of(ctx, p, n, m.vs, 1), *there;
	char *out = test_malloc(n * m.vs), *final = test_malloc(n * m.vs);
	uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n), found[DISTINCT];
	void *w;

	memset(out, 0x5c, n * m.vs);
	w = in_place ? v : test_upload(ctx, out, n * m.vs);
	ck_assert_cua(exchange ? cua_hashmap_exchange_n(m.map, n, k, v, w, r)
			       : cua_hashmap_insert_or_get_n(m.map, n, k, v, w, r));
	test_download(ctx, out, w, n * m.vs);
	test_download(ctx, results, r, n);
	there = keys_of(ctx, distinct, DISTINCT, m.ks, 0);
	if (!in_place)
		test_free(ctx, v);
	test_free(ctx, w);
	w = test_alloc(ctx, n * m.vs);
	ck_assert_cua(cua_hashmap_find_n(m.map, DISTINCT, there, w, r));
	test_download(ctx, final, w, DISTINCT * m.vs);
	test_download(ctx, found, r, DISTINCT);
	for (size_t i = 0; i < n; i++) {
		const uint32_t j = which[i];
		struct cua_u128 got = unpack(out, m.vs, i), kept = p[i].value;

		if (!in_place)
			memset(&kept, 0x5c, m.vs);
		seen[j]++;
		given[j] = combined(given[j], p[i].value, CUA_UPDATE_ADD, m.vs);
		if (results[i] == CUA_HASHMAP_INSERTED) {
			inserted[j]++;
			first[j] = p[i].value;
		} else if (results[i] == CUA_HASHMAP_FULL) {
			rejected[j]++;
		} else {
			ck_assert_uint_eq(results[i], CUA_HASHMAP_EXISTS);
		}
		if (results[i] == CUA_HASHMAP_FULL ||
		    (exchange && results[i] == CUA_HASHMAP_INSERTED))
			EXPECT(same(got, kept), "sizes %d: element %zu has got a value", c, i);
		else if (exchange)
			back[j] = combined(back[j], got, CUA_UPDATE_ADD, m.vs);
		else
			EXPECT(same(got, unpack(final, m.vs, j)),
			       "sizes %d: element %zu has another value", c, i);
	}
	for (uint32_t j = 0; j < DISTINCT; j++) {
		struct cua_u128 last = unpack(final, m.vs, j);

		full += rejected[j];
		ck_assert_uint_eq(found[j], seen[j] && !rejected[j]);
		ck_assert_uint_eq(inserted[j], found[j]);
		ck_assert(!rejected[j] || rejected[j] == seen[j]);
		if (found[j])
			EXPECT(exchange ? same(combined(back[j], last, CUA_UPDATE_ADD, m.vs),
					       given[j])
					: same(last, first[j]),
			       "sizes %d, portable %d, in place %d, key %u: a value is lost or there twice",
			       c, portable, in_place, j);
	}
	ck_assert_int_eq(full != 0, half);
	free(p);
	free(distinct);
	free(which);
	free(out);
	free(final);
	free(results);
	test_free(ctx, k);
	test_free(ctx, there);
	test_free(ctx, w);
	test_free(ctx, r);
	ck_assert_cua(cua_hashmap_destroy(m.map));
}

START_TEST(values_given_back)
{
	uint64_t seed = test_seed("values_given_back");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	ck_assert_cua(cua_context_set_threads(ctx, 4));
	for (int run = 0; run < 9 * 16; run++)
		check_given_back(ctx, run / 16, run & 1, run >> 1 & 1, run >> 2 & 1, run >> 3 & 1,
				 &seed);
	cua_context_destroy(ctx);
}
END_TEST

/* The calls that give values back have one more argument that may be wrong. */
START_TEST(bad_values_out)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct maker m = make(ctx, 4, 20, NULL), set = make(ctx, 10, 20, NULL);
	struct pair *p = random_pairs(8, 8, 8, 0);
	uint64_t *k = keys_of(ctx, p, 8, 8, 0), *v = keys_of(ctx, p, 8, 8, 1),
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
		/* a part of the values, on either side; keys; results; the map */
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
		/* neighbours are none */
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

/*
 * update_n by all operations on numbers of all sizes; of the longest ones the halves are one
 * number.
 */
START_TEST(updated)
{
	static const uint64_t distinct[] = {3, 150, 1500};
	static const uint64_t unusual[] = {0, 1, ~(uint64_t)0, (uint64_t)1 << 63, 0xffffffff};
	uint64_t seed = test_seed("updated");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = test_quick() ? 3001 : 20011;

	ck_assert_cua(cua_context_set_threads(ctx, 4));
	for (int run = 0; run < CASES * 2 * 6; run++) {
		const int c = run % CASES, op = CUA_UPDATE_ADD + run / (2 * CASES);
		const uint64_t d = distinct[test_random(&seed) % 3];
		struct cua_hashmap_options o = {.struct_size = sizeof(o),
						.portable = run / CASES % 2};
		struct maker m = make(ctx, c, d, &o);
		struct pair *p = test_malloc(n * sizeof(*p)),
			    *expected = random_pairs(d, m.ks, m.vs, 0);
		uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n);
		uint32_t *which, *seen = calloc(d, sizeof(*seen)),
				 *inserted = calloc(d, sizeof(*inserted));
		size_t there = 0;
		void *k, *v;

		ck_assert(seen && inserted);
		which = random_elements(&seed, &m, p, n, d);
		for (size_t i = 0; i < n; i++) {
			struct pair *e = &expected[which[i]];
			struct cua_u128 *value = &p[i].value, bit = {0, 0};

			/* so few bits that AND and OR leave some of them */
			if (test_random(&seed) % n < 30 * d)
				*(m.vs == 16 && value->hi & 1 ? &bit.hi : &bit.lo) =
					(uint64_t)1 << value->lo % 64;
			/* halves that carry, and numbers of which one half decides */
			if (value->hi >> 62 == 0)
				value->lo = unusual[value->hi % 5];
			if (value->hi >> 62 == 1)
				value->hi = unusual[value->lo % 5];
			if (op == CUA_UPDATE_AND) {
				value->lo = ~bit.lo;
				value->hi = ~bit.hi;
			} else if (op == CUA_UPDATE_OR) {
				*value = bit;
			}
			cut(value, m.vs);
			e->value = seen[which[i]]++ ? combined(e->value, *value, op, m.vs) : *value;
		}
		k = keys_of(ctx, p, n, m.ks, 0);
		v = keys_of(ctx, p, n, m.vs, 1);
		ck_assert_status(cua_hashmap_update_n(m.map, (enum cua_update)op, n, k, v, r),
				 m.vs ? CUA_OK : CUA_ERROR_TYPE);
		test_download(ctx, results, r, n);
		for (size_t i = 0; m.vs && i < n; i++) {
			EXPECT(results[i] == CUA_HASHMAP_INSERTED ||
				       results[i] == CUA_HASHMAP_EXISTS,
			       "result %zu is %d", i, results[i]);
			inserted[which[i]] += results[i] == CUA_HASHMAP_INSERTED;
		}
		for (uint64_t j = 0; m.vs && j < d; j++) {
			ck_assert_uint_eq(inserted[j], seen[j] != 0);
			if (seen[j])
				expected[there++] = expected[j];
		}
		expect_pairs(&m, expected, there);
		free(p);
		free(results);
		free(seen);
		free(inserted);
		free(which);
		free(expected);
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, r);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/*
 * The rejected pairs of this map are some of p[i] with full[i], each once, and as many as there is
 * room for.
 */
static void expect_rejected(const struct maker *m, const struct pair *p, const uint8_t *full,
			    size_t n, uint64_t room)
{
	char *keys = test_malloc(n * m->ks), *values = test_malloc(n * m->vs + 1);
	void *k = test_alloc(m->ctx, n * m->ks), *v = test_alloc(m->ctx, n * m->vs + 1);
	struct pair *all = test_malloc((n + 1) * sizeof(*all)),
		    *kept = test_malloc((n + 1) * sizeof(*kept));
	uint64_t n_all = 0, told = 99, n_kept;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		if (full[i])
			all[n_all++] = p[i];
	ck_assert_cua(cua_hashmap_rejected(m->map, n, k, m->vs ? v : NULL, &told));
	ck_assert_uint_eq(told, n_all);
	n_kept = n_all < room ? n_all : room;
	test_download(m->ctx, keys, k, n * m->ks);
	test_download(m->ctx, values, v, n * m->vs + 1);
	for (size_t i = 0; i < n_kept; i++) {
		kept[i].key = unpack(keys, m->ks, i);
		kept[i].value = unpack(values, m->vs, i);
	}
	qsort(all, n_all, sizeof(*all), by_key);
	qsort(kept, n_kept, sizeof(*kept), by_key);
	for (size_t i = 0; i < n_kept; i++, at++) {
		while (at < n_all && below(all[at].key, kept[i].key))
			at++;
		EXPECT(at < n_all && same(all[at].key, kept[i].key), "rejected key %zu of %llu", i,
		       (unsigned long long)n_all);
		EXPECT(same(all[at].value, kept[i].value), "rejected value %zu of %llu", i,
		       (unsigned long long)n_all);
	}
	free(keys);
	free(values);
	free(all);
	free(kept);
	test_free(m->ctx, k);
	test_free(m->ctx, v);
}

/* So many at once that several workers reject them: by calls with results and by a merge. */
START_TEST(rejected_by_many)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = 50000;
	uint8_t *r = test_alloc(ctx, n), *full = test_malloc(n);

	ck_assert_cua(cua_context_set_threads(ctx, 4));
	for (int c = 0; c < CASES; c += test_quick() ? 4 : 1)
		for (int call = 0; call < 4; call++) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o),
							.portable = call % 2,
							.rejects = call % 2 ? 10000 : n};
			struct maker m = make(ctx, c, n / 4, &o), from = make(ctx, c, n, NULL);
			struct pair *p = random_pairs(n, m.ks, m.vs, 6), *old;
			void *k = keys_of(ctx, p, n, m.ks, 0), *v = keys_of(ctx, p, n, m.vs, 1);
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
				/* some keys are in both maps, with other values here */
				old = random_pairs(n / 8, m.ks, m.vs, 6);
				for (size_t i = 0; i < n / 8; i++)
					old[i].value = value_number(n + i, m.vs);
				ck_assert_cua(insert(&m, old, n / 8));
				ck_assert_cua(insert(&from, p, n));
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

/* ---- statistics ---- */

/*
 * A copy of the map where the host can read it, for the functions of the header; free both
 * pointers.
 */
static struct cua_hashmap_view host_view(const struct maker *m)
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

/* How long the probes are, by the places that the keys have. */
static void expect_probes(const struct maker *m, const struct cua_hashmap_statistics *s)
{
	struct cua_hashmap_view view = host_view(m);
	const int words = view.layout == CUA_HASHMAP_WORDS;
	const uint64_t slots = words ? cua__hashmap_word_slots(m->ks, m->vs)
				     : cua__hashmap_state_slots(m->ks, m->vs);
	uint64_t probes[CUA_HASHMAP_PROBES] = {0};
	struct cua_u128 key, value;

	/* a place behind the slots is a cell's: the key is at home there */
	for (uint64_t place = 0; place < cua__hashmap_places(&view, m->ks, m->vs); place++) {
		uint64_t hash, home, d = 0;

		if (!cua__hashmap_at(&view, m->ks, m->vs, place, &key, &value))
			continue;
		hash = m->ks == 16 ? cua_hash_u128(key, view.seed)
				   : cua_hash_u64(key.lo, view.seed);
		home = cua_hash_to_index(hash, view.n_buckets);
		if (words && place < view.n_buckets * slots) {
			while (d < CUA_HASHMAP_PROBES - 1 &&
			       cua__hashmap_word_probe(&view, home, hash, d) != place / slots)
				d++;
		} else if (!words) {
			/* slot after slot from the home slot on, round the end of the table */
			const uint64_t all = view.n_buckets * slots;
			const uint64_t from =
				home * slots +
				cua__hashmap_state_home(&view, m->ks, m->vs, hash).slot;

			d = (from % slots + (place + all - from) % all) / slots;
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

	for (int c = 0; c < CASES; c++)
		for (int percent = 0; percent <= 100; percent += 25) {
			struct cua_hashmap_options o = {.struct_size = sizeof(o),
							.portable = c % 2};
			struct maker m = make(ctx, c, 3000, &o);
			struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
			size_t slots = slots_of(&m), n = slots * (size_t)percent / 100,
			       gone = n / 4;
			struct pair *p = random_pairs(n, m.ks, m.vs, 6);
			struct cua_hashmap_view view;
			uint64_t homes[4096] = {0}, worst = 0, sum = 0, buckets = 0;
			void *k;

			ck_assert_cua(cua_hashmap_get_view(m.map, &view));
			ck_assert_uint_le(view.n_buckets, 4096);
			ck_assert_cua(insert(&m, p, n));
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
			 * the first key of each home bucket of words is there; most keys are, up to
			 * a high load
			 */
			if (percent <= 75)
				ck_assert_uint_ge(s.probes[0], n / 2);
			if (view.layout == CUA_HASHMAP_WORDS && percent <= 25)
				ck_assert_uint_ge(s.probes[0], buckets * 9 / 10);

			/* more than fit */
			if (percent == 100) {
				struct pair *more = random_pairs(30, m.ks, m.vs, 6 + n);

				ck_assert_cua(insert(&m, more, 30));
				ck_assert_cua(cua_hashmap_get_statistics(m.map, &s));
				ck_assert_uint_eq(s.rejected, 30);
				ck_assert_uint_eq(s.keys, n);
				ck_assert_uint_eq(s.free + s.erased, 0);
				expect_probes(&m, &s);
				free(more);
			}
			k = keys_of(ctx, p, gone, m.ks, 0);
			ck_assert_cua(cua_hashmap_erase_n(m.map, gone, k, NULL));
			/* a shorter struct, which no release had */
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

/* ---- to the host ---- */

struct visits {
	const struct maker *m;
	struct pair *pairs;
	uint64_t n, enough;
};

static int visit(void *arg, const void *key, const void *value)
{
	struct visits *v = arg;

	v->pairs[v->n].key = unpack(key, v->m->ks, 0);
	if (v->m->vs)
		v->pairs[v->n].value = unpack(value, v->m->vs, 0);
	else
		v->pairs[v->n].value.lo = value != NULL;
	return ++v->n == v->enough;
}

START_TEST(to_the_host)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < CASES; c++) {
		/* more places than a part has, for the last one */
		size_t n = c == CASES - 1 && !test_quick() ? 300000 : 2001;
		struct maker m = make(ctx, c, n + 100, NULL);
		struct pair *p = random_pairs(n, m.ks, m.vs, 0);
		struct visits v = {&m, test_malloc(n * sizeof(*v.pairs)), 0, 0};
		char *keys = test_malloc(n * m.ks + 16), *values = test_malloc(n * m.vs + 16);
		uint64_t there = 0;

		memset(v.pairs, 0, n * sizeof(*v.pairs));
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &v));
		ck_assert_uint_eq(v.n, 0);
		ck_assert_cua(insert(&m, p, n));
		expect_pairs(&m, p, n);
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &v));
		ck_assert_uint_eq(v.n, n);
		qsort(v.pairs, n, sizeof(*v.pairs), by_key);
		for (size_t i = 0; i < n; i++)
			EXPECT(same(v.pairs[i].key, p[i].key) && same(v.pairs[i].value, p[i].value),
			       "pair %zu", i);
		v.n = 0;
		v.enough = 1000;
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &v));
		ck_assert_uint_eq(v.n, 1000);
		/* fewer places, not aligned */
		memset(keys, 0x5c, n * m.ks + 16);
		memset(values, 0x5c, n * m.vs + 16);
		ck_assert_cua(cua_hashmap_copy_to_host(m.map, 777, keys + 1, values + 1, &there));
		ck_assert_uint_eq(there, n);
		for (int i = 0; i < 8; i++) {
			ck_assert_int_eq(keys[1 + 777 * m.ks + (size_t)i], 0x5c);
			ck_assert_int_eq(values[1 + 777 * m.vs + (size_t)i], 0x5c);
		}
		for (size_t i = 0; i < 777; i++) {
			struct pair want = {unpack(keys + 1, m.ks, i), {0, 0}};
			const struct pair *found = bsearch(&want, p, n, sizeof(*p), by_key);

			EXPECT(found && same(found->value, unpack(values + 1, m.vs, i)),
			       "copied pair %zu", i);
		}
		ck_assert_cua(cua_hashmap_copy_to_host(m.map, 0, NULL, NULL, &there));
		ck_assert_uint_eq(there, n);
		free(p);
		free(v.pairs);
		free(keys);
		free(values);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

enum { WRITTEN = 300 };

struct writer {
	const struct maker *m;
	uint64_t *key, *value; /* one of each, for bulk calls */
	uint64_t met[WRITTEN], other;
};

/* Of a pair that was there, (i, i + 5), it makes (i + 1000, i + 7). */
static int write_back(void *arg, const void *key, const void *value)
{
	struct writer *w = arg;
	uint64_t pair[2] = {unpack(key, 8, 0).lo, unpack(value, 8, 0).lo};
	uint64_t number = pair[0];

	if (number >= 1000) {
		ck_assert_uint_eq(pair[1], number - 1000 + 7);
		w->other++;
		return 0;
	}
	ck_assert_uint_lt(number, WRITTEN);
	ck_assert_uint_eq(pair[1], number + 5);
	w->met[number]++;
	ck_assert_cua(cua_copy(w->m->ctx, w->key, &pair[0], 8));
	ck_assert_cua(cua_hashmap_erase_n(w->m->map, 1, w->key, NULL));
	pair[0] += 1000;
	pair[1] += 2;
	ck_assert_cua(cua_copy(w->m->ctx, w->key, &pair[0], 8));
	ck_assert_cua(cua_copy(w->m->ctx, w->value, &pair[1], 8));
	ck_assert_cua(cua_hashmap_insert_n(w->m->map, 1, w->key, w->value, NULL));
	return 0;
}

/* for_each may write: what was there before is met once, and what is written stays. */
START_TEST(written_while_visited)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int run = test_traced(); run < 4 - test_traced(); run++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = run % 2};
		/* at times more places than a part has */
		struct maker m = make(ctx, 4, run < 2 ? 2 * WRITTEN : 600000, &o);
		struct pair *p = random_pairs(WRITTEN, 8, 8, 0);
		struct writer w = {.m = &m, .key = test_alloc(ctx, 8), .value = test_alloc(ctx, 8)};

		for (uint64_t i = 0; i < WRITTEN; i++) {
			p[i].key.lo = i;
			p[i].value.lo = i + 5;
		}
		ck_assert_cua(insert(&m, p, WRITTEN));
		ck_assert_cua(cua_hashmap_for_each(m.map, write_back, &w));
		for (uint64_t i = 0; i < WRITTEN; i++) {
			ck_assert_uint_eq(w.met[i], 1);
			p[i].key.lo = i + 1000;
			p[i].value.lo = i + 7;
		}
		ck_assert_uint_le(w.other, WRITTEN);
		ck_assert_cua(cua_hashmap_status(m.map));
		expect_pairs(&m, p, WRITTEN);
		free(p);
		test_free(ctx, w.key);
		test_free(ctx, w.value);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- maps with a hash and an equality of their own ---- */

#if !TEST_CUDA
/* Keys are the same but for their lowest bit. */
static uint64_t half_hash(uint64_t key, uint64_t seed)
{
	return cua_hash_u64(key >> 1, ~seed);
}

static int half_equal(uint64_t a, uint64_t b)
{
	return a >> 1 == b >> 1;
}
CUA_DEFINE_HASHMAP_WITH(halves, uint64_t, uint64_t, half_hash, half_equal)
#endif

/* Bulk calls would hash by bits; what does not hash works. */
START_TEST(own_hash)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (uint32_t portable = 0; portable < 2; portable++) {
		struct cua_hashmap_options o = {
			.struct_size = sizeof(o), .own_hash = 1, .portable = portable};
		struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
		struct maker m = make(ctx, 4, 200, &o), plain = make(ctx, 4, 200, NULL);
		struct pair *p = random_pairs(8, 8, 8, 0);
		uint64_t *k = keys_of(ctx, p, 8, 8, 0), *v = keys_of(ctx, p, 8, 8, 1),
			 *w = test_alloc(ctx, 64);
		uint64_t n = 5, expected = 0, slots = slots_of(&m);
		uint8_t *r = test_alloc(ctx, 8);
		struct visits visits = {&m, test_malloc(200 * sizeof(*visits.pairs)), 0, 0};

		ck_assert_cua(insert(&plain, p, 8));
		for (int filled = 0; filled < 2; filled++) {
			ck_assert_status(cua_hashmap_insert_n(m.map, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_insert_or_get_n(m.map, 8, k, v, w, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_assign_n(m.map, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_exchange_n(m.map, 8, k, v, w, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_update_n(m.map, CUA_UPDATE_ADD, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(
				cua_hashmap_update_value_n(m.map, CUA_UPDATE_ADD, 8, k, p, r),
				CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_build_n(m.map, 8, k, v, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_find_n(m.map, 8, k, w, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_contains_n(m.map, 8, k, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_erase_n(m.map, 8, k, r),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_merge(m.map, plain.map, CUA_HASHMAP_KEEP),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_merge(plain.map, m.map, CUA_HASHMAP_KEEP),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_resize(m.map, 400), CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_get_statistics(m.map, &s),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_status(cua_hashmap_save(m.map, "not written"),
					 CUA_ERROR_UNSUPPORTED);
			ck_assert_uint_eq(slots_of(&m), slots);
			ck_assert_cua(cua_hashmap_status(m.map));
			ck_assert_cua(cua_hashmap_size(m.map, &n));
			ck_assert_uint_eq(n, expected);
			ck_assert_cua(cua_hashmap_rejected(m.map, 0, NULL, NULL, &n));
			ck_assert_uint_eq(n, 0);
#if !TEST_CUDA
			struct cua_hashmap_view view;

			ck_assert_cua(cua_hashmap_get_view(m.map, &view));
			for (uint64_t i = 0; !filled && i < 300; i++)
				ck_assert_int_eq(halves_insert(&view, i, i + 7),
						 i % 2 ? CUA_HASHMAP_EXISTS : CUA_HASHMAP_INSERTED);
			expected = 150;
#endif
		}
		expect_pairs(&plain, p, 8);
		visits.n = 0;
		ck_assert_cua(cua_hashmap_size(m.map, &n));
		ck_assert_uint_eq(n, expected);
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &visits));
		ck_assert_uint_eq(visits.n, expected);
		qsort(visits.pairs, expected, sizeof(*visits.pairs), by_key);
		for (uint64_t i = 0; i < expected; i++) {
			ck_assert_uint_eq(visits.pairs[i].key.lo, 2 * i);
			ck_assert_uint_eq(visits.pairs[i].value.lo, 2 * i + 7);
		}
		check_sorted(&m, visits.pairs, expected, 200);
		check_sorted(&m, visits.pairs, expected, 50);
		ck_assert_cua(cua_hashmap_retrieve(m.map, CUA_HASHMAP_ANY, 8, k, v, &n));
		ck_assert_uint_eq(n, expected);
		ck_assert_cua(cua_hashmap_copy_to_host(m.map, 0, NULL, NULL, &n));
		ck_assert_uint_eq(n, expected);
		ck_assert_cua(cua_hashmap_clear(m.map));
		ck_assert_cua(cua_hashmap_size(m.map, &n));
		ck_assert_uint_eq(n, 0);
		visits.n = 0;
		ck_assert_cua(cua_hashmap_for_each(m.map, visit, &visits));
		ck_assert_uint_eq(visits.n, 0);
		free(p);
		free(visits.pairs);
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, w);
		test_free(ctx, r);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(plain.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- files ---- */

enum { FOLDER_BYTES = 4096 };

/* A folder of the test's own, that it goes to. */
static void go_to_folder(char folder[FOLDER_BYTES])
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(folder, FOLDER_BYTES, "%s/check_hashmap_ops.XXXXXX",
			 tmp && *tmp ? tmp : "/tmp");

	ck_assert_int_lt(n, FOLDER_BYTES);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
}

static int files_here(void)
{
	DIR *dir = opendir(".");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void leave_folder(const char *folder)
{
	ck_assert_int_eq(files_here(), 0);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *bytes = test_malloc(1 << 20);

	ck_assert_ptr_nonnull(f);
	*size = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
	FILE *f = fopen(path, "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
	ck_assert_int_eq(fclose(f), 0);
}

START_TEST(saved)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *cpu = test_context(CUA_BACKEND_CPU);
	char folder[FOLDER_BYTES];

	go_to_folder(folder);
	for (int c = 0; c < CASES; c++)
		for (int large = 0; large < 3; large++) {
			struct cua_hashmap_options o = {
				.struct_size = sizeof(o), .seed = 5, .rejects = 3};
			size_t n = large == 2 ? (c == 2 && !test_quick() ? 700001 : 3001)
				   : large    ? 1
					      : 0;
			struct maker m = make(ctx, c, n + 10, &o), l = m;
			struct pair *p = random_pairs(n, m.ks, m.vs, 0);
			struct cua_hashmap_view view;

			ck_assert_cua(insert(&m, p, n));
			ck_assert_cua(cua_hashmap_save(m.map, "a"));
			/* over one that is there */
			ck_assert_cua(cua_hashmap_save(m.map, "./a"));
			ck_assert_int_eq(files_here(), c || large ? 2 : 1);
			for (int other = 0; other < 2; other++) {
				l.ctx = other ? cpu : ctx;
				ck_assert_cua(cua_hashmap_load(l.ctx, NULL, "a", &l.map));
				expect_pairs(&l, p, n);
				ck_assert_cua(cua_hashmap_get_view(l.map, &view));
				ck_assert_uint_eq(view.seed, 5);
				ck_assert_ptr_nonnull(view.rejects);
				ck_assert_uint_ge(slots_of(&l), slots_of(&m));
				if (!other)
					ck_assert_uint_eq(slots_of(&l), slots_of(&m));
				/* and from there back again */
				ck_assert_cua(cua_hashmap_save(l.map, "b"));
				ck_assert_cua(cua_hashmap_destroy(l.map));
				l.ctx = ctx;
				o.seed = 6;
				o.rejects = 0;
				ck_assert_cua(cua_hashmap_load(ctx, &o, "b", &l.map));
				expect_pairs(&l, p, n);
				ck_assert_cua(cua_hashmap_get_view(l.map, &view));
				ck_assert_uint_eq(view.seed, 6);
				ck_assert_ptr_null(view.rejects);
				ck_assert_cua(cua_hashmap_destroy(l.map));
			}
			o.own_hash = 1;
			ck_assert_status(cua_hashmap_load(ctx, &o, "b", &l.map),
					 CUA_ERROR_UNSUPPORTED);
			free(p);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
	leave_folder(folder);
	cua_context_destroy(ctx);
	cua_context_destroy(cpu);
}
END_TEST

/*
 * All slots and cells in use, for a layout that has no cells; and a path that is a link to a file
 * of its owner's.
 */
START_TEST(saved_full)
{
	const struct cua_hashmap_options portable = {.struct_size = sizeof(portable),
						     .portable = 1};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_view view;
	char folder[FOLDER_BYTES];

	go_to_folder(folder);
	for (uint64_t capacity = 20; capacity <= 7680; capacity *= 384) {
		/* 8 + 8 */
		struct maker m = make(ctx, 4, capacity, NULL), l = m;
		struct pair *p;
		struct stat st;
		size_t n;

		ck_assert_cua(cua_hashmap_get_view(m.map, &view));
		n = slots_of(&m) + (view.layout == CUA_HASHMAP_WORDS ? 2 : 0);
		p = random_pairs(n, m.ks, m.vs, 0);
		ck_assert_cua(insert(&m, p, n));
		ck_assert_cua(cua_hashmap_status(m.map));
		write_file("a", "before", 6);
		ck_assert_int_eq(chmod("a", 0600) | symlink("a", "link"), 0);
		ck_assert_cua(cua_hashmap_save(m.map, "link"));
		ck_assert_int_eq(lstat("link", &st), 0);
		ck_assert(S_ISLNK(st.st_mode));
		ck_assert_int_eq(lstat("a", &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0600);
		ck_assert_int_eq(files_here(), 2);
		for (int how = 0; how < 2; how++) {
			ck_assert_cua(
				cua_hashmap_load(ctx, how ? &portable : NULL, "link", &l.map));
			expect_pairs(&l, p, n);
			/*
			 * keys that have cells take no slots, of which there are as many as before
			 */
			if (!how)
				ck_assert_uint_eq(slots_of(&l), slots_of(&m));
			ck_assert_cua(cua_hashmap_destroy(l.map));
		}
		free(p);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_int_eq(unlink("a") | unlink("link"), 0);
	}
	leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

/* Links whose targets are made, those that end nowhere, and names as long as they can be. */
START_TEST(saved_by_name)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct maker m = make(ctx, 0, 20, NULL), l = m;
	struct pair *p = random_pairs(13, 4, 4, 0);
	char folder[FOLDER_BYTES], name[256], whole[FOLDER_BYTES + 8];
	const char *links[] = {"first", "d/second", "third"};
	struct stat st;

	go_to_folder(folder);
	ck_assert_cua(insert(&m, p, 13));
	ck_assert_int_eq(mkdir("d", 0700) | symlink("d/second", "first") |
				 symlink("../third", "d/second"),
			 0);
	/* the second time the target is there */
	snprintf(whole, sizeof(whole), "%s/target", folder);
	ck_assert_int_eq(symlink(whole, "third"), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_cua(cua_hashmap_save(m.map, "first"));
		for (size_t j = 0; j < sizeof(links) / sizeof(links[0]); j++) {
			ck_assert_int_eq(lstat(links[j], &st), 0);
			ck_assert(S_ISLNK(st.st_mode));
		}
		ck_assert_int_eq(lstat("target", &st), 0);
		ck_assert(S_ISREG(st.st_mode));
		ck_assert_int_eq(files_here(), 4);
	}
	ck_assert_cua(cua_hashmap_load(ctx, NULL, "first", &l.map));
	expect_pairs(&l, p, 13);
	ck_assert_cua(cua_hashmap_destroy(l.map));
	ck_assert_int_eq(unlink("target") | unlink("third") | unlink("d/second"), 0);

	ck_assert_int_eq(symlink("../first", "d/second"), 0);
	ck_assert_status(cua_hashmap_save(m.map, "first"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ELOOP);
	ck_assert_int_eq(unlink("d/second") | symlink("none/here", "d/second"), 0);
	ck_assert_status(cua_hashmap_save(m.map, "first"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(files_here(), 2);
	ck_assert_int_eq(unlink("d/second") | rmdir("d") | unlink("first"), 0);

	memset(name, 'n', sizeof(name));
	for (size_t length = 240; length <= 255; length++) {
		name[length] = 0;
		ck_assert_cua(cua_hashmap_save(m.map, name));
		ck_assert_int_eq(files_here(), 1);
		ck_assert_int_eq(unlink(name), 0);
		name[length] = 'n';
	}
	leave_folder(folder);
	free(p);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

/*
 * The options that a map was made with are those of the map of its file, unless load is given
 * others.
 */
START_TEST(saved_options)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[FOLDER_BYTES];

	go_to_folder(folder);
	for (unsigned how = 0; how < 16; how++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .seed = 1 + how};
		struct cua_hashmap_options other = {.struct_size = sizeof(other), .seed = 99};
		const struct cua_hashmap_options *now = how & 8 ? &other : &o;
		struct pair *p = random_pairs(3000, 8, 8, 6);
		struct cua_hashmap_view view, plain;
		uint64_t room = 0, slots, all = 99, size = 99;
		struct maker m, l;

		o.grow_percent = how & 1 ? 60 : 0;
		o.portable = how >> 1 & 1;
		o.rejects = how & 4 ? 7 : 0;
		other.grow_percent = how & 1 ? 0 : 60;
		other.portable = !o.portable;
		other.rejects = how & 4 ? 0 : 8;
		/* 8 + 8: words, if not portable and the machine has them */
		m = make(ctx, 4, 500, now);
		ck_assert_cua(cua_hashmap_get_view(m.map, &plain));
		ck_assert_cua(cua_hashmap_destroy(m.map));
		m = make(ctx, 4, 500, &o);
		l = m;
		ck_assert_cua(insert(&m, p, 200));
		ck_assert_cua(cua_hashmap_save(m.map, "a"));
		ck_assert_cua(cua_hashmap_load(ctx, how & 8 ? &other : NULL, "a", &l.map));
		ck_assert_cua(cua_hashmap_get_view(l.map, &view));
		ck_assert_uint_eq(view.layout, plain.layout);
		ck_assert_uint_eq(view.seed, now->seed);
		if (view.rejects)
			test_download(ctx, &room, &view.rejects->room, sizeof(room));
		ck_assert_uint_eq(room, now->rejects);
		slots = slots_of(&l);
		ck_assert_cua(insert(&l, p, 3000));
		ck_assert_int_eq(slots_of(&l) > slots, now->grow_percent != 0);
		ck_assert_cua(cua_hashmap_size(l.map, &size));
		ck_assert_uint_eq(size, now->grow_percent ? 3000 : slots);
		ck_assert_cua(cua_hashmap_rejected(l.map, 0, NULL, NULL, &all));
		ck_assert_uint_eq(all, 3000 - size);
		if (now->grow_percent)
			ck_assert_uint_le(3000, slots_of(&l) / 10 * 6 + 6);
		free(p);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(l.map));
	}
	ck_assert_int_eq(unlink("a"), 0);
	leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

/* max_bytes is a limit for create, resize, growth and load, and changes nothing else. */
START_TEST(limited)
{
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .max_bytes = 300000};
	struct cua_hashmap_options grows = {
		.struct_size = sizeof(grows), .grow_percent = 60, .max_bytes = 3000000};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[FOLDER_BYTES];

	go_to_folder(folder);
	for (int c = 0; c < CASES; c++) {
		struct maker m = make(ctx, c, 1000, &o), g = make(ctx, c, 1000, &grows),
			     all = make(ctx, c, 50000, NULL);
		struct pair *p = random_pairs(200000, m.ks, m.vs, 0),
			    *few = random_pairs(900, m.ks, m.vs, 0);
		struct cua_hashmap *none = NULL;
		uint64_t slots = slots_of(&m), n = 0;
		size_t before = 0;

		ck_assert_status(
			cua_hashmap_create(ctx, &o, type_of(m.ks), type_of(m.vs), 50000, &none),
			CUA_ERROR_SIZE);
		ck_assert_cua(insert(&m, p, 900));
		ck_assert_status(cua_hashmap_resize(m.map, 50000), CUA_ERROR_SIZE);
		ck_assert_uint_eq(slots_of(&m), slots);
		ck_assert_cua(cua_hashmap_resize(m.map, 2000));
		expect_pairs(&m, few, 900);
		/* as far as it may */
		while (before < 200000 && !insert(&g, p + before, 5000))
			before += 5000;
		ck_assert_uint_gt(before, 10000);
		ck_assert_uint_lt(before, 200000);
		ck_assert_cua(cua_hashmap_size(g.map, &n));
		ck_assert_uint_eq(n, before);
		expect_pairs(&g, p, before);
		ck_assert_cua(insert(&all, p, 20));
		ck_assert_cua(cua_hashmap_save(all.map, "a"));
		ck_assert_status(cua_hashmap_load(ctx, &o, "a", &none), CUA_ERROR_SIZE);
		ck_assert_ptr_null(none);
		/* the limit is not saved */
		ck_assert_cua(cua_hashmap_save(m.map, "a"));
		for (int given = 0; given < 2; given++) {
			struct maker l = m;

			ck_assert_cua(cua_hashmap_load(ctx, given ? &o : NULL, "a", &l.map));
			ck_assert_status(cua_hashmap_resize(l.map, 50000),
					 given ? CUA_ERROR_SIZE : CUA_OK);
			expect_pairs(&l, few, 900);
			ck_assert_cua(cua_hashmap_destroy(l.map));
		}
		free(p);
		free(few);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(g.map));
		ck_assert_cua(cua_hashmap_destroy(all.map));
	}
	ck_assert_int_eq(unlink("a"), 0);
	leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- keys and values of special patterns ---- */

/*
 * Halves of 0, 1, 2, complements and signs: keys that have cells, words that mark slots, and those
 * of such a half.
 */
enum { SPECIAL = 8 };
static const uint64_t special[SPECIAL] = {0, 1,          ~(uint64_t)0,      ~(uint64_t)1,
					  2, 0xffffffff, (uint64_t)1 << 63, 0x80000000};

/* The different patterns of this size; room for 64. */
static size_t special_patterns(uint32_t size, struct cua_u128 *patterns)
{
	size_t n = 0;

	for (int i = 0; i < SPECIAL * SPECIAL; i++) {
		struct cua_u128 v = {special[i % SPECIAL], special[i / SPECIAL]};
		size_t j = 0;

		cut(&v, size);
		while (j < n && !same(patterns[j], v))
			j++;
		patterns[j] = v;
		n += j == n;
	}
	return n;
}

/*
 * Through every call that moves pairs or changes values, with all keys and each of the values; two
 * under a tool.
 */
START_TEST(special_pairs)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[FOLDER_BYTES];

	go_to_folder(folder);
	for (int run = 0; run < 2 * CASES; run++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = run % 2};
		struct maker m = make(ctx, run / 2, 100, &o), to = make(ctx, run / 2, 100, &o),
			     l = m;
		struct cua_u128 keys[SPECIAL * SPECIAL], values[SPECIAL * SPECIAL];
		size_t n = special_patterns(m.ks, keys), n_values = special_patterns(m.vs, values);
		const size_t step = test_traced() ? n_values / 2 + 1 : n_values > 8 ? 5 : 1;
		struct pair *p = test_malloc(n * sizeof(*p));
		char *out = test_malloc(n * m.vs + 1);
		void *k, *v, *w = test_alloc(ctx, n * m.vs + 1);

		for (size_t turn = 0; turn < n_values; turn += step) {
			ck_assert_cua(cua_hashmap_clear(m.map));
			ck_assert_cua(cua_hashmap_clear(to.map));
			for (size_t i = 0; i < n; i++) {
				p[i].key = keys[i];
				p[i].value = values[(i + turn) % n_values];
			}
			ck_assert_cua(insert(&m, p, n));
			expect_pairs(&m, p, n);
			check_sorted(&m, p, n, n + 1);
			ck_assert_cua(cua_hashmap_resize(m.map, n + turn));
			expect_pairs(&m, p, n);
			ck_assert_cua(cua_hashmap_merge(to.map, m.map, CUA_HASHMAP_KEEP));
			expect_pairs(&to, p, n);
			if (!turn) {
				ck_assert_cua(cua_hashmap_save(m.map, "a"));
				ck_assert_cua(cua_hashmap_load(ctx, NULL, "a", &l.map));
				expect_pairs(&l, p, n);
				ck_assert_cua(cua_hashmap_destroy(l.map));
			}
			k = keys_of(ctx, p, n, m.ks, 0);
			for (int op = CUA_UPDATE_ADD; m.vs && op <= CUA_UPDATE_XOR; op++) {
				struct pair *q = test_malloc(n * sizeof(*q));

				for (size_t i = 0; i < n; i++) {
					q[i].value = values[(3 * i + turn + (size_t)op) % n_values];
					p[i].value = combined(p[i].value, q[i].value, op, m.vs);
				}
				v = keys_of(ctx, q, n, m.vs, 1);
				test_free(ctx, k);
				k = keys_of(ctx, p, n, m.ks, 0);
				ck_assert_cua(cua_hashmap_update_n(to.map, (enum cua_update)op, n,
								   k, v, NULL));
				expect_pairs(&to, p, n);
				test_free(ctx, v);
				free(q);
			}
			test_free(ctx, k);
			k = keys_of(ctx, p, n, m.ks, 0);
			if (m.vs) {
				struct pair *q = test_malloc(n * sizeof(*q));

				for (size_t i = 0; i < n; i++) {
					q[i].key = p[i].key;
					q[i].value = values[(i + 2 * turn) % n_values];
				}
				v = keys_of(ctx, q, n, m.vs, 1);
				ck_assert_cua(cua_hashmap_exchange_n(to.map, n, k, v, w, NULL));
				test_download(ctx, out, w, n * m.vs);
				for (size_t i = 0; i < n; i++)
					EXPECT(same(unpack(out, m.vs, i), p[i].value),
					       "value %zu before", i);
				expect_pairs(&to, q, n);
				test_free(ctx, v);
				free(q);
			}
			ck_assert_cua(cua_hashmap_erase_n(to.map, n, k, NULL));
			expect_pairs(&to, p, 0);
			test_free(ctx, k);
		}
		free(p);
		free(out);
		test_free(ctx, w);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(to.map));
	}
	ck_assert_int_eq(unlink("a"), 0);
	leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * A key that has a cell in one layout needs a slot in another, and is rejected like any key where
 * there is none.
 */
START_TEST(special_rejected)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int run = 0; run < 2 * CASES; run++) {
		struct cua_hashmap_options o = {
			.struct_size = sizeof(o), .portable = run % 2, .rejects = 40};
		struct maker m = make(ctx, run / 2, 40, &o);
		struct cua_u128 keys[SPECIAL * SPECIAL];
		size_t n = special_patterns(m.ks, keys), slots = slots_of(&m), fit = 0, held = 0;
		struct pair *p = random_pairs(slots, m.ks, m.vs, 6), s[SPECIAL * SPECIAL];
		uint8_t *r = test_alloc(ctx, n), results[SPECIAL * SPECIAL];
		char *rk = test_malloc(40 * m.ks), *rv = test_malloc(40 * m.vs + 1);
		void *k, *v, *wk = test_alloc(ctx, 40 * m.ks), *wv = test_alloc(ctx, 40 * m.vs + 1);
		uint64_t all = 99, kept, size = 99;

		ck_assert_cua(insert(&m, p, slots));
		ck_assert_cua(cua_hashmap_status(m.map));
		for (size_t i = 0; i < n; i++) {
			s[i].key = keys[i];
			s[i].value = value_number(i, m.vs);
		}
		k = keys_of(ctx, s, n, m.ks, 0);
		v = keys_of(ctx, s, n, m.vs, 1);
		ck_assert_cua(cua_hashmap_insert_n(m.map, n, k, v, r));
		test_download(ctx, results, r, n);
		for (size_t i = 0; i < n; i++) {
			ck_assert(results[i] == CUA_HASHMAP_INSERTED ||
				  results[i] == CUA_HASHMAP_FULL);
			fit += results[i] == CUA_HASHMAP_INSERTED;
		}
		/* two cells at most, and none with states */
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
				times += same(s[i].key, unpack(rk, m.ks, j)) &&
					 same(s[i].value, unpack(rv, m.vs, j));
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

/* ---- between layouts ---- */

/* Maps of words and of states, where the sizes allow both: merged, saved, loaded, resized. */
START_TEST(between_layouts)
{
	static const int all[] = {CUA_HASHMAP_KEEP, CUA_HASHMAP_ADD, CUA_HASHMAP_XOR,
				  CUA_HASHMAP_REPLACE};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[FOLDER_BYTES];

	go_to_folder(folder);
	for (int run = 0; run < 2 * CASES; run++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = run % 2};
		struct cua_hashmap_options other = {
			.struct_size = sizeof(other), .portable = !o.portable, .seed = 3};
		struct maker m = make(ctx, run / 2, 1000, &o),
			     from = make(ctx, run / 2, 1000, &other), l = m;
		/* 0 .. 599 here, 400 .. 899 there with other values */
		struct pair *a = random_pairs(900, m.ks, m.vs, 0),
			    *b = random_pairs(500, m.ks, m.vs, 400);
		struct cua_hashmap_view view, was;

		ck_assert_cua(cua_hashmap_get_view(m.map, &was));
		for (size_t i = 0; i < 500; i++)
			b[i].value = value_number(i * 31 + 5, m.vs);
		ck_assert_cua(insert(&from, b, 500));
		for (int h = 0; h < (m.vs ? 4 : 1); h++) {
			struct pair *e = random_pairs(900, m.ks, m.vs, 0);

			ck_assert_cua(cua_hashmap_clear(m.map));
			ck_assert_cua(insert(&m, a, 600));
			ck_assert_cua(cua_hashmap_merge(m.map, from.map,
							(enum cua_hashmap_merge_rule)all[h]));
			for (size_t i = 0; i < 500; i++)
				e[400 + i].value = i < 200 ? combined(e[400 + i].value, b[i].value,
								      all[h], m.vs)
							   : b[i].value;
			expect_pairs(&m, e, 900);
			if (!h) {
				/*
				 * to the other layout, from there back, and to what the file says
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
				/* a map keeps its layout */
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
	leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

/* The same sum as the library's, to write files that lie; of whole words. */
static uint64_t add_up(uint64_t sum, const char *bytes, size_t n)
{
	uint64_t word;

	for (size_t i = 0; i < n; i += 8) {
		memcpy(&word, bytes + i, 8);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	return sum;
}

static void sign(char *header)
{
	uint64_t sum = add_up(1, header, 80);

	memcpy(header + 80, &sum, 8);
}

static void sign_all(char *bytes, size_t size)
{
	uint64_t sum = add_up(0, bytes + 88, size - 88);

	memcpy(bytes + 72, &sum, 8);
	sign(bytes);
}

START_TEST(corrupt_files)
{
	uint64_t seed = test_seed("corrupt_files");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct maker m = make(ctx, 0, 20, NULL);
	struct pair *p = random_pairs(13, 4, 4, 0);
	struct cua_hashmap *none = NULL;
	char folder[FOLDER_BYTES], *good, *bad;
	const uint64_t absurd[] = {0,           12, 14, (uint64_t)1 << 61, ((uint64_t)1 << 61) + 13,
				   ~(uint64_t)0};
	size_t size, other;

	go_to_folder(folder);
	ck_assert_cua(insert(&m, p, 13));
	ck_assert_cua(cua_hashmap_save(m.map, "a"));
	good = read_file("a", &size);
	ck_assert_uint_eq(size, 88 + 13 * 8);
	bad = test_malloc(size + 8);
	memset(bad, 0, size + 8);
	/* cut off anywhere, and too long */
	for (size_t cut_at = 0; cut_at < size; cut_at++) {
		write_file("b", good, cut_at);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	memcpy(bad, good, size);
	write_file("b", bad, size + 8);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	/* any bit, and pairs in another place */
	for (size_t bit = 0; bit < 8 * size; bit++) {
		bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
		bad[bit / 8] = good[bit / 8];
	}
	for (int i = 0; i < 200; i++) {
		size_t a = 88 + test_random(&seed) % 13 * 8, b = 88 + test_random(&seed) % 13 * 8;

		memcpy(bad + a, good + b, 8);
		memcpy(bad + b, good + a, 8);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none),
				 a == b ? CUA_OK : CUA_ERROR_CORRUPT);
		if (a == b)
			ck_assert_cua(cua_hashmap_destroy(none));
		none = NULL;
		memcpy(bad, good, size);
	}
	/* headers that are signed and wrong: the count */
	sign(bad);
	ck_assert_mem_eq(bad, good, size);
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		memcpy(bad + 24, &absurd[i], 8);
		sign(bad);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	memcpy(bad, good, size);
	/*
	 * any key twice, those that have cells too, with its own value or another, in a file that
	 * is signed
	 */
	sign_all(bad, size);
	ck_assert_mem_eq(bad, good, size);
	for (int i = 0; i < 13 * 4; i++) {
		memcpy(bad + 88 + i % 13 * 8, good + 88 + (i + 1 + i / 26 * 5) % 13 * 8,
		       i / 13 % 2 ? 4 : 8);
		sign_all(bad, size);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
		memcpy(bad, good, size);
	}
	/* fewer slots than pairs, more than there can be, sizes of no type, another version */
	memset(bad + 32, 0, 8);
	bad[32] = 5;
	sign(bad);
	write_file("b", bad, size);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	memset(bad + 32, 0xff, 8);
	sign(bad);
	write_file("b", bad, size);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_SIZE);
	for (int at = 8; at < 24; at += 4) {
		memcpy(bad, good, size);
		bad[at] = 7;
		sign(bad);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	/* options that no map has */
	for (int at = 56; at < 64; at += 4) {
		memcpy(bad, good, size);
		bad[at] = 96;
		sign(bad);
		write_file("b", bad, size);
		ck_assert_status(cua_hashmap_load(ctx, NULL, "b", &none), CUA_ERROR_CORRUPT);
	}
	/* what is no file */
	ck_assert_status(cua_hashmap_load(ctx, NULL, ".", &none), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EISDIR);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "/dev/zero", &none), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(mkfifo("f", 0600), 0);
	ck_assert_status(cua_hashmap_load(ctx, NULL, "f", &none), CUA_ERROR_SYSTEM);
	ck_assert_status(cua_hashmap_save(m.map, "f"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(mkdir("d", 0700), 0);
	ck_assert_status(cua_hashmap_save(m.map, "d"), CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, EISDIR);
	ck_assert_ptr_null(none);
	ck_assert_int_eq(files_here(), 4);
	ck_assert_int_eq(rmdir("d") | unlink("f") | unlink("b"), 0);
	/* the file that could not be replaced stays */
	free(bad);
	bad = read_file("a", &other);
	ck_assert_uint_eq(other, size);
	ck_assert_mem_eq(bad, good, size);
	ck_assert_int_eq(unlink("a"), 0);
	leave_folder(folder);
	free(good);
	free(bad);
	free(p);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

/* The disk is full at any place of the file: what was there stays, and nothing else. */
START_TEST(no_space)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct maker m = make(ctx, 4, 100, NULL);
	struct pair *p = random_pairs(50, 8, 8, 0);
	char folder[FOLDER_BYTES], *before, *after;
	size_t size, then;
	struct rlimit old, limit;

	go_to_folder(folder);
	ck_assert_cua(insert(&m, p, 20));
	ck_assert_cua(cua_hashmap_save(m.map, "a"));
	before = read_file("a", &size);
	ck_assert_cua(insert(&m, p + 20, 30));
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	for (rlim_t at = 0; at < 88 + 50 * 16; at += 37) {
		enum cua_status status;
		int error;

		limit = old;
		limit.rlim_cur = at;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		errno = 0;
		status = cua_hashmap_save(m.map, "a");
		error = errno;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
		ck_assert_status(status, CUA_ERROR_SYSTEM);
		ck_assert_int_eq(error, EFBIG);
		ck_assert_int_eq(files_here(), 1);
		after = read_file("a", &then);
		ck_assert_uint_eq(then, size);
		ck_assert_mem_eq(after, before, size);
		free(after);
	}
	ck_assert_int_eq(unlink("a"), 0);
	leave_folder(folder);
	free(before);
	free(p);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
/* ---- captured ---- */

START_TEST(captured)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .grow_percent = 50};
	struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
	struct maker m = make(ctx, 4, 100000, NULL), from = make(ctx, 4, 30000, NULL),
		     grows = make(ctx, 4, 10, &o);
	struct pair *p = random_pairs(20000, 8, 8, 0);
	uint64_t *k = test_alloc(ctx, 8 * 100000), *v = test_alloc(ctx, 8 * 100000),
		 *n = test_alloc(ctx, 8), there;
	uint64_t *least = test_alloc(ctx, 8 * 7000), *keys = test_malloc(2 * 8 * 20000);
	void *ck = keys_of(ctx, p, 5000, 8, 0), *expected = keys_of(ctx, p, 5000, 8, 1);
	void *desired = keys_of(ctx, p + 5000, 5000, 8, 1);
	uint8_t *r = test_alloc(ctx, 5000), results[5000];
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t bytes = 0;

	ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
	ck_assert_cua(insert(&m, p, 10000));
	ck_assert_cua(insert(&from, p + 10000, 10000));
	ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)stream));
	ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
			 cudaSuccess);
	/* more than the workspace that a context begins with: it cannot grow now */
	ck_assert_status(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 100000, k, v, n),
			 CUA_ERROR_WORKSPACE);
	ck_assert_status(cua_hashmap_resize(m.map, 90000), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_get_statistics(m.map, &s), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_copy_to_host(m.map, 20000, keys, keys + 20000, &there),
			 CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_for_each(m.map, never, NULL), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_save(m.map, "not written"), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_insert_n(grows.map, 5, k, v, NULL), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_hashmap_build_n(grows.map, 5, k, v, NULL), CUA_ERROR_CAPTURE);
	ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);

	ck_assert_cua(cua_hashmap_retrieve_workspace(m.map, CUA_HASHMAP_SORTED, 100000, &bytes));
	ck_assert_uint_gt(bytes, ((size_t)1 << 20) + 512);
	for (int enough = 0; enough < 2; enough++) {
		ck_assert_cua(cua_context_reserve(ctx, enough ? bytes : bytes / 2));
		ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
				 cudaSuccess);
		ck_assert_status(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 100000, k, v, n),
				 enough ? CUA_OK : CUA_ERROR_WORKSPACE);
		ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
		ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
	}
	ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
			 cudaSuccess);
	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, 5000, ck, expected, desired, r));
	ck_assert_cua(cua_hashmap_merge(m.map, from.map, CUA_HASHMAP_ADD));
	ck_assert_cua(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 7000, least, v, n));
	ck_assert_cua(cua_hashmap_retrieve(m.map, CUA_HASHMAP_SORTED, 20000, k, v, n));
	ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	ck_assert_int_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	for (int launch = 0; launch < 2; launch++) {
		ck_assert_int_eq(cudaGraphLaunch(exec, stream), cudaSuccess);
		test_download(ctx, &there, n, 8);
		ck_assert_uint_eq(there, 20000);
		test_download(ctx, results, r, sizeof(results));
		for (size_t i = 0; i < sizeof(results); i++)
			EXPECT(results[i] == (launch ? CUA_HASHMAP_DIFFERS : CUA_HASHMAP_EXISTS),
			       "launch %d, result %zu is %d", launch, i, results[i]);
		qsort(p, 20000, sizeof(*p), by_key);
		test_download(ctx, keys, k, 8 * 20000);
		for (size_t i = 0; i < 20000; i++)
			EXPECT(keys[i] == p[i].key.lo, "key %zu", i);
		test_download(ctx, keys, least, 8 * 7000);
		for (size_t i = 0; i < 7000; i++)
			EXPECT(keys[i] == p[i].key.lo, "key %zu of the least ones", i);
	}
	test_free(ctx, least);
	ck_assert_int_eq(cudaGraphExecDestroy(exec), cudaSuccess);
	ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
	ck_assert_cua(cua_hashmap_destroy(m.map));
	ck_assert_cua(cua_hashmap_destroy(from.map));
	ck_assert_cua(cua_hashmap_destroy(grows.map));
	free(p);
	free(keys);
	test_free(ctx, ck);
	test_free(ctx, expected);
	test_free(ctx, desired);
	test_free(ctx, r);
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, n);
	ck_assert_cua(cua_context_set_stream(ctx, NULL));
	ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
	cua_context_destroy(ctx);
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_ops");
	TCase *tcase = tcase_create("hashmap_ops");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, bad_arguments);
	tcase_add_test(tcase, sorted);
	tcase_add_test(tcase, rejected);
	tcase_add_test(tcase, resized);
	tcase_add_test(tcase, compare_exchanged);
	tcase_add_test(tcase, growth);
	tcase_add_test(tcase, growth_of_equal_keys);
	tcase_add_test(tcase, updated_by_one_value);
#ifdef HAVE_LIMITS
	tcase_add_test(tcase, growth_without_memory);
	tcase_add_test(tcase, sorted_workspace);
#endif
	tcase_add_test(tcase, merged);
	tcase_add_test(tcase, merged_full);
	tcase_add_test(tcase, values_given_back);
	tcase_add_test(tcase, bad_values_out);
	tcase_add_test(tcase, updated);
	tcase_add_test(tcase, rejected_by_many);
	tcase_add_test(tcase, statistics);
	tcase_add_test(tcase, to_the_host);
	tcase_add_test(tcase, written_while_visited);
	tcase_add_test(tcase, own_hash);
	tcase_add_test(tcase, saved);
	tcase_add_test(tcase, saved_full);
	tcase_add_test(tcase, saved_by_name);
	tcase_add_test(tcase, saved_options);
	tcase_add_test(tcase, limited);
	tcase_add_test(tcase, special_pairs);
	tcase_add_test(tcase, special_rejected);
	tcase_add_test(tcase, between_layouts);
	tcase_add_test(tcase, corrupt_files);
	tcase_add_test(tcase, no_space);
#if TEST_CUDA
	tcase_add_test(tcase, captured);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
