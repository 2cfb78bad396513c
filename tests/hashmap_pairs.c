/* SPDX-License-Identifier: MIT */
#include "hashmap_pairs.h"

static const uint32_t sizes[4] = {4, 8, 16, 0};

uint32_t pair_value_size(int c)
{
	return sizes[c / 3];
}

enum cua_type type_of_size(uint32_t size)
{
	return size == 4 ? CUA_U32 : size == 8 ? CUA_U64 : size == 16 ? CUA_U128 : CUA_NONE;
}

void truncate_u128(struct cua_u128 *v, uint32_t size)
{
	if (size == 4)
		v->lo = (uint32_t)v->lo;
	if (size < 16)
		v->hi = 0;
	if (!size)
		v->lo = 0;
}

struct cua_u128 key_number(uint64_t i, uint32_t size)
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
	truncate_u128(&key, size);
	return key;
}

struct cua_u128 value_number(uint64_t i, uint32_t size)
{
	struct cua_u128 v = {(i + 1) * 0xd1342543de82ef95u, ~i};

	truncate_u128(&v, size);
	return v;
}

int u128_below(struct cua_u128 a, struct cua_u128 b)
{
	return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

int u128_same(struct cua_u128 a, struct cua_u128 b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

int by_key(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return u128_below(x->key, y->key) ? -1 : u128_below(y->key, x->key);
}

void store_u128(void *array, uint32_t size, size_t i, struct cua_u128 v)
{
	memcpy((char *)array + i * size, &v, size);
}

struct cua_u128 load_u128(const void *array, uint32_t size, size_t i)
{
	struct cua_u128 v = {0, 0};

	memcpy(&v, (const char *)array + i * size, size);
	return v;
}

static void *upload(struct cua_context *ctx, const struct pair *p, size_t n, uint32_t size,
		    int values)
{
	char *host = test_malloc(n * size + 1);
	void *result;

	for (size_t i = 0; i < n; i++)
		store_u128(host, size, i, values ? p[i].value : p[i].key);
	result = test_upload(ctx, host, n * size + 1);
	free(host);
	return result;
}

void *upload_keys(struct cua_context *ctx, const struct pair *p, size_t n, uint32_t size)
{
	return upload(ctx, p, n, size, 0);
}

void *upload_values(struct cua_context *ctx, const struct pair *p, size_t n, uint32_t size)
{
	return upload(ctx, p, n, size, 1);
}

struct pair *numbered_pairs(size_t n, uint32_t ks, uint32_t vs, uint64_t first)
{
	struct pair *p = test_malloc((n + 1) * sizeof(*p));

	for (size_t i = 0; i < n; i++) {
		p[i].key = key_number(first + i, ks);
		p[i].value = value_number(first + i, vs);
	}
	return p;
}

struct pair_map new_pair_map(struct cua_context *ctx, int c, uint64_t capacity,
			     const struct cua_hashmap_options *options)
{
	struct pair_map m = {ctx, NULL, sizes[c % 3], pair_value_size(c)};

	ck_assert_cua(cua_hashmap_create(ctx, options, type_of_size(m.ks), type_of_size(m.vs),
					 capacity, &m.map));
	return m;
}

enum cua_status insert_pairs(const struct pair_map *m, const struct pair *p, size_t n)
{
	void *k = upload_keys(m->ctx, p, n, m->ks), *v = upload_values(m->ctx, p, n, m->vs);
	enum cua_status status = cua_hashmap_insert_n(m->map, n, k, v, NULL);

	ck_assert_cua(cua_context_synchronize(m->ctx));
	test_free(m->ctx, k);
	test_free(m->ctx, v);
	return status;
}

struct pair *sorted_contents(const struct pair_map *m, uint64_t *n)
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
		p[i].key = load_u128(k, m->ks, i);
		p[i].value = load_u128(v, m->vs, i);
	}
	qsort(p, size, sizeof(*p), by_key);
	free(k);
	free(v);
	*n = size;
	return p;
}

void expect_pairs(const struct pair_map *m, struct pair *p, size_t n)
{
	uint64_t held;
	struct pair *c = sorted_contents(m, &held);
	void *k = upload_keys(m->ctx, p, n, m->ks);
	uint8_t *f = test_alloc(m->ctx, n + 1), *found = test_malloc(n + 1);

	ck_assert_uint_eq(held, n);
	ck_assert_cua(cua_hashmap_contains_n(m->map, n, k, f));
	test_download(m->ctx, found, f, n);
	for (size_t i = 0; i < n; i++)
		EXPECT(found[i] == 1, "key %zu of %zu is not found", i, n);
	qsort(p, n, sizeof(*p), by_key);
	for (size_t i = 0; i < n; i++) {
		EXPECT(u128_same(c[i].key, p[i].key), "key %zu of %zu", i, n);
		EXPECT(u128_same(c[i].value, p[i].value), "value %zu of %zu", i, n);
	}
	free(c);
	free(found);
	test_free(m->ctx, k);
	test_free(m->ctx, f);
}

uint64_t slots_of(const struct pair_map *m)
{
	uint64_t slots = 0;

	ck_assert_cua(cua_hashmap_capacity(m->map, &slots));
	return slots;
}

int abort_visit(void *arg, const void *key, const void *value)
{
	(void)arg;
	(void)key;
	(void)value;
	ck_abort_msg("called");
	return 1;
}

void expect_sorted(const struct pair_map *m, struct pair *p, size_t n, uint64_t max)
{
	char *k = test_alloc(m->ctx, max * m->ks + 16), *v = test_alloc(m->ctx, max * m->vs + 16);
	char *keys = test_malloc(max * m->ks + 16), *values = test_malloc(max * m->vs + 16);
	const uint64_t fit = n < max ? n : max;
	uint64_t held = 99;

	ck_assert_cua(cua_hashmap_retrieve(m->map, CUA_HASHMAP_SORTED, max, max ? k : NULL,
					   max && m->vs ? v : NULL, &held));
	ck_assert_uint_eq(held, n);
	test_download(m->ctx, keys, k, max * m->ks + 16);
	test_download(m->ctx, values, v, max * m->vs + 16);
	qsort(p, n, sizeof(*p), by_key);
	for (uint64_t i = 0; i < fit; i++) {
		EXPECT(u128_same(p[i].key, load_u128(keys, m->ks, i)), "key %llu of %zu, max %llu",
		       (unsigned long long)i, n, (unsigned long long)max);
		EXPECT(u128_same(p[i].value, load_u128(values, m->vs, i)), "value %llu of %zu",
		       (unsigned long long)i, n);
	}
	/* no bytes after the last element; test_alloc fills small buffers with 0xa5 */
	for (int i = 0; i < 16; i++) {
		EXPECT((uint8_t)keys[fit * m->ks + (size_t)i] == 0xa5 || max * m->ks + 16 > 4096,
		       "written past the end");
		EXPECT((uint8_t)values[fit * m->vs + (size_t)i] == 0xa5 || max * m->vs + 16 > 4096,
		       "written past the end");
	}
	free(keys);
	free(values);
	test_free(m->ctx, k);
	test_free(m->ctx, v);
}

struct cua_u128 combine_values(struct cua_u128 a, struct cua_u128 b, int rule, uint32_t size)
{
	switch (rule) {
	case CUA_HASHMAP_KEEP: break;
	case CUA_HASHMAP_REPLACE: a = b; break;
	case CUA_HASHMAP_ADD:
		a.lo += b.lo;
		a.hi += b.hi + (a.lo < b.lo);
		break;
	case CUA_HASHMAP_MIN: a = u128_below(b, a) ? b : a; break;
	case CUA_HASHMAP_MAX: a = u128_below(a, b) ? b : a; break;
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
	truncate_u128(&a, size);
	return a;
}

enum { SPECIAL = 8 };
static const uint64_t special[SPECIAL] = {0, 1,          ~(uint64_t)0,      ~(uint64_t)1,
					  2, 0xffffffff, (uint64_t)1 << 63, 0x80000000};

size_t special_patterns(uint32_t size, struct cua_u128 patterns[SPECIAL_PATTERNS])
{
	size_t n = 0;

	for (int i = 0; i < SPECIAL * SPECIAL; i++) {
		struct cua_u128 v = {special[i % SPECIAL], special[i / SPECIAL]};
		size_t j = 0;

		truncate_u128(&v, size);
		while (j < n && !u128_same(patterns[j], v))
			j++;
		patterns[j] = v;
		n += j == n;
	}
	return n;
}
