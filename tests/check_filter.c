/* SPDX-License-Identifier: MIT */
/* The filter into arrays and buffers on either backend, against a serial model. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <math.h>
#include <sys/mman.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GUARD 0xa7

/* The first COMPARABLE types are ordered; the other types are filtered by flags only. */
static const enum cua_type types[] = {CUA_U32, CUA_I8,  CUA_U8,   CUA_I16,         CUA_U16,
				      CUA_I32, CUA_I64, CUA_U64,  CUA_F16,         CUA_BF16,
				      CUA_F32, CUA_F64, CUA_U128, CUA_COMPLEX_F32, CUA_COMPLEX_F64};
#define COMPARABLE 12

/* ---- the model ---- */

static uint64_t bits_of(enum cua_type type, const void *p)
{
	uint64_t bits = 0;

	memcpy(&bits, p, cua_type_size(type) < 8 ? cua_type_size(type) : 8);
	return bits;
}

/* A float of any type as a double; double represents all values of every type. */
static double float_of(enum cua_type type, uint64_t bits)
{
	int mantissa_bits = type == CUA_F16 ? 10 : 7, exponent_bits = 15 - mantissa_bits;
	uint64_t mantissa = bits & (((uint64_t)1 << mantissa_bits) - 1);
	int exponent = (int)(bits >> mantissa_bits & (((uint64_t)1 << exponent_bits) - 1));
	int bias = (1 << (exponent_bits - 1)) - 1;
	double v;
	float f;

	if (type == CUA_F64) {
		memcpy(&v, &bits, sizeof(v));
		return v;
	}
	if (type == CUA_F32) {
		uint32_t low = (uint32_t)bits;

		memcpy(&f, &low, sizeof(f));
		return (double)f;
	}
	if (exponent == (1 << exponent_bits) - 1)
		v = mantissa ? (double)NAN : HUGE_VAL;
	else if (exponent == 0)
		v = ldexp((double)mantissa, 1 - bias - mantissa_bits);
	else
		v = ldexp((double)(mantissa + ((uint64_t)1 << mantissa_bits)),
			  exponent - bias - mantissa_bits);
	return bits >> 15 & 1 ? -v : v;
}

/* Returns -1, 0 or 1, or 2 if a or b is NaN. */
static int order(enum cua_type type, uint64_t a, uint64_t b)
{
	unsigned up = 64 - (unsigned)cua_type_size(type) * 8;
	int64_t sa = (int64_t)(a << up), sb = (int64_t)(b << up);
	double fa, fb;

	switch (type) {
	case CUA_U8:
	case CUA_U16:
	case CUA_U32:
	case CUA_U64: return a < b ? -1 : a > b;
	case CUA_I8:
	case CUA_I16:
	case CUA_I32:
	case CUA_I64: return sa < sb ? -1 : sa > sb;
	default:
		fa = float_of(type, a);
		fb = float_of(type, b);
		return fa < fb ? -1 : fa > fb ? 1 : fa == fb ? 0 : 2;
	}
}

static int model_keeps(enum cua_type type, uint64_t x, enum cua_compare compare, uint64_t value)
{
	int o = order(type, x, value);

	switch (compare) {
	case CUA_LT: return o == -1;
	case CUA_LE: return o == -1 || o == 0;
	case CUA_EQ: return o == 0;
	case CUA_NE: return o != 0;
	case CUA_GE: return o == 0 || o == 1;
	default: return o == 1;
	}
}

/*
 * Numbers near 0, at the ends of the type, and special values of floats. The rest of a wide element
 * is random.
 */
static void make_element(enum cua_type type, unsigned char *p, uint64_t *state)
{
	size_t size = cua_type_size(type);
	unsigned bits = size < 8 ? (unsigned)size * 8 : 64;
	uint64_t r = test_random(state), v = r >> 8 & 63, sign = (uint64_t)1 << (bits - 1);
	uint64_t infinity = type == CUA_F16    ? 0x7c00
			    : type == CUA_BF16 ? 0x7f80
			    : type == CUA_F32  ? 0x7f800000
					       : (uint64_t)0x7ff << 52;
	int is_float = type == CUA_F16 || type == CUA_BF16 || type == CUA_F32 || type == CUA_F64;

	switch (r % 8) {
	case 0: v = is_float ? infinity : sign - 1; break;
	case 1: v = is_float ? infinity + 1 + v % 3 : 0; break;
	case 2: v = 0; break;
	case 3: v = is_float ? infinity - 1 : sign - 1 - v; break;
	case 4: v = test_random(state) & (sign - 1); break;
	default: break;
	}
	if (r >> 40 & 1)
		v |= sign;
	memcpy(p, &v, size < 8 ? size : 8);
	if (size == 16) {
		v = test_random(state);
		memcpy(p + 8, &v, 8);
	}
}

/* ---- a filter and its expected result ---- */

struct trial {
	enum cua_type type;
	size_t n, x_at, flags_at, values_at;
	int by_flags, ordered, partition, in_place, has_values;
	enum cua_type index_type; /* 0: none */
	enum cua_compare compare;
	unsigned char value[16];
	uint64_t capacity;
	/* the n elements, and a byte for each: whether the model selects it */
	const unsigned char *x;
	uint8_t *keeps;
	uint64_t kept;
};

static const char *describe(const struct trial *t)
{
	static char text[240];

	snprintf(
		text, sizeof(text),
		"%s, n %zu (x %zu, flags %zu, values %zu), %s %d, kept %llu, capacity %llu%s%s%s%s, index %d",
		cua_type_name(t->type), t->n, t->x_at, t->flags_at, t->values_at,
		t->by_flags ? "flags" : "compare", (int)t->compare, (unsigned long long)t->kept,
		(unsigned long long)t->capacity, t->ordered ? ", ordered" : "",
		t->partition ? ", partition" : "", t->in_place ? ", in place" : "",
		t->has_values ? "" : ", no values", (int)t->index_type);
	return text;
}

static size_t compared_size;
static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, compared_size);
}

static void sort(unsigned char *array, size_t n, size_t size)
{
	compared_size = size;
	qsort(array, n, size, by_bytes);
}

/*
 * Offsets `offset` to `offset` + stored - 1 of the output hold elements that the model selects, or
 * elements that it rejects if `rejected` is 1. Ordered: the first `stored` elements in order.
 * Unordered: any of them, each at most once.
 */
static void check_offsets(const struct trial *t, const unsigned char *values,
			  const unsigned char *indexes, uint64_t offset, uint64_t stored,
			  int rejected)
{
	size_t size = cua_type_size(t->type),
	       index_size = t->index_type ? cua_type_size(t->index_type) : 0;
	uint8_t *seen = test_malloc(t->n + 1);
	uint64_t i = 0;

	memset(seen, 0, t->n + 1);
	if (!t->ordered && !t->index_type) {
		/* Compares the sorted elements; if the output is truncated, it holds a subset. */
		unsigned char *all = test_malloc(t->n * size), *got = test_malloc(t->n * size);
		size_t n_all = 0, a = 0;

		for (i = 0; i < t->n; i++)
			if (t->keeps[i] != rejected)
				memcpy(all + n_all++ * size, t->x + i * size, size);
		memcpy(got, values + offset * size, stored * size);
		sort(all, n_all, size);
		sort(got, stored, size);
		for (i = 0; i < stored; i++, a++) {
			while (a < n_all && memcmp(all + a * size, got + i * size, size) < 0)
				a++;
			EXPECT(a < n_all && !memcmp(all + a * size, got + i * size, size),
			       "%s: element %llu is not in x", describe(t), (unsigned long long)i);
		}
		free(all);
		free(got);
		free(seen);
		return;
	}
	for (uint64_t k = 0; k < stored; k++, offset++) {
		uint64_t index = 0;

		if (t->index_type)
			memcpy(&index, indexes + offset * index_size, index_size);
		if (t->ordered) {
			while (i < t->n && t->keeps[i] == rejected)
				i++;
			EXPECT(!t->index_type || index == i, "%s: index %llu is %llu, not %llu",
			       describe(t), (unsigned long long)offset, (unsigned long long)index,
			       (unsigned long long)i);
			index = i++;
		}
		EXPECT(index < t->n && t->keeps[index] != rejected && !seen[index]++,
		       "%s: index %llu, %llu, should not be there", describe(t),
		       (unsigned long long)offset, (unsigned long long)index);
		EXPECT(!t->has_values || !memcmp(values + offset * size, t->x + index * size, size),
		       "%s: element %llu is not that of index %llu", describe(t),
		       (unsigned long long)offset, (unsigned long long)index);
	}
	free(seen);
}

static void check_guard(const struct trial *t, const unsigned char *array, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
		EXPECT(array[i] == GUARD, "%s: byte %zu outside was written", describe(t), i);
}

static void *host_of(struct cua_context *ctx, const void *p, size_t bytes)
{
	void *host = test_malloc(bytes + 1);

	test_download(ctx, host, p, bytes);
	return host;
}

/* An array surrounded by guard bytes in the backend's memory. */
static void *guarded(struct cua_context *ctx, size_t bytes)
{
	void *host = test_malloc(bytes), *p;

	memset(host, GUARD, bytes);
	p = test_upload(ctx, host, bytes);
	free(host);
	return p;
}

static void try_array(struct cua_context *ctx, const struct trial *t, unsigned char *x,
		      const uint8_t *flags, int count_on_host)
{
	struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
	size_t size = cua_type_size(t->type),
	       index_size = t->index_type ? cua_type_size(t->index_type) : 1;
	size_t room = t->capacity < t->n ? (size_t)t->capacity : t->n;
	size_t values_bytes = (t->values_at + room + 9) * size,
	       index_bytes = (room + 9) * index_size;
	unsigned char *values = guarded(ctx, values_bytes), *indexes = guarded(ctx, index_bytes);
	unsigned char *out = t->in_place ? x + t->x_at * size : values + t->values_at * size;
	unsigned char *got_values, *got_indexes;
	uint64_t *device_count = test_alloc(ctx, sizeof(*device_count)), count = 99;
	uint64_t stored = t->kept < room ? t->kept : room;

	o.ordered = t->ordered;
	o.partition = t->partition;
	o.flags = t->by_flags ? flags + t->flags_at : NULL;
	o.indexes = t->index_type ? indexes : NULL;
	o.index_type = t->index_type;
	ck_assert_cua(cua_filter_array(
		ctx, &o, t->type, t->n, t->by_flags && !t->has_values ? NULL : x + t->x_at * size,
		t->compare, t->by_flags ? NULL : t->value, t->capacity, t->has_values ? out : NULL,
		count_on_host ? &count : device_count));
	if (!count_on_host)
		test_download(ctx, &count, device_count, sizeof(count));
	EXPECT(count == t->kept, "%s: the count is %llu", describe(t), (unsigned long long)count);
	got_values = t->in_place ? host_of(ctx, out, t->n * size)
				 : (unsigned char *)host_of(ctx, values, values_bytes);
	got_indexes = host_of(ctx, indexes, index_bytes);
	out = t->in_place ? got_values : got_values + t->values_at * size;
	if (t->has_values || t->index_type) {
		check_offsets(t, out, got_indexes, 0, stored, 0);
		if (t->partition)
			check_offsets(t, out, got_indexes, t->kept, t->n - t->kept, 1);
	}
	if (t->partition)
		stored = t->n;
	if (!t->in_place) {
		check_guard(t, got_values, 0, t->values_at * size);
		check_guard(t, got_values, (t->values_at + (t->has_values ? stored : 0)) * size,
			    values_bytes);
	}
	check_guard(t, got_indexes, t->index_type ? stored * index_size : 0, index_bytes);
	test_free(ctx, values);
	test_free(ctx, indexes);
	test_free(ctx, device_count);
	free(got_values);
	free(got_indexes);
}

/* Appends twice to a buffer that already has items; the second call overflows. */
static void try_append(struct cua_context *ctx, struct trial *t, const unsigned char *x,
		       const uint8_t *flags)
{
	struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
	size_t size = cua_type_size(t->type),
	       item = t->index_type ? cua_type_size(t->index_type) : size;
	struct cua_append_view view;
	struct cua_append *b;
	unsigned char *items;
	uint64_t demand = 0, got = 0, before = 0;

	ck_assert_cua(cua_append_create(ctx, item, t->capacity, &b));
	ck_assert_cua(cua_append_get_view(b, &view));
	o.ordered = t->ordered;
	o.flags = t->by_flags ? flags + t->flags_at : NULL;
	o.index_type = t->index_type;
	t->has_values = !t->index_type;
	for (int k = 0; k < 3; k++) {
		uint64_t stored = before < t->capacity ? t->capacity - before : 0;

		ck_assert_cua(
			cua_filter_append(ctx, &o, t->type, t->n,
					  t->by_flags && t->index_type ? NULL : x + t->x_at * size,
					  t->compare, t->by_flags ? NULL : t->value, b));
		ck_assert_cua(cua_append_demand(b, &demand));
		EXPECT(demand == before + t->kept, "%s: the demand is %llu after %llu", describe(t),
		       (unsigned long long)demand, (unsigned long long)before);
		ck_assert_status(cua_append_status(b),
				 demand > t->capacity ? CUA_ERROR_FULL : CUA_OK);
		items = test_malloc(t->capacity * item + 1);
		ck_assert_cua(cua_append_read(b, items, (size_t)t->capacity, &got));
		if (stored > t->kept)
			stored = t->kept;
		EXPECT(got == (demand < t->capacity ? demand : t->capacity), "%s: %llu stored",
		       describe(t), (unsigned long long)got);
		check_offsets(t, items, items, before, stored, 0);
		free(items);
		before = demand;
	}
	ck_assert_cua(cua_append_destroy(b));
}

/* On a GPU only the last length is not a short array. */
static const size_t lengths[] = {1,    2,    3,    31,   33,    255,   1000,
				 1023, 1025, 2047, 2049, 4095,  4096,  4097,
				 8191, 8192, 8193, 9999, 12289, 70001, 300007};

/* Every type, with all other parameters random. */
START_TEST(test_properties)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_type type = types[_i];
	size_t size = cua_type_size(type), n_lengths = COUNT(lengths) - SANITIZED;
	size_t most = lengths[n_lengths - 1];
	uint64_t seed = test_seed("test_properties");
	unsigned char *host = test_malloc((most + 40) * size), *x, *scratch;
	uint8_t *host_flags = test_malloc(most + 40), *flags, *keeps = test_malloc(most);
	int trials = test_scale(60, 150, 400);

	for (size_t i = 0; i < most + 40; i++)
		make_element(type, host + i * size, &seed);
	x = test_upload(ctx, host, (most + 40) * size);
	scratch = test_alloc(ctx, (most + 40) * size);
	for (int k = 0; k < trials; k++) {
		uint64_t r = test_random(&seed);
		struct trial t = {.type = type};
		unsigned of_16 = r >> 50 & 1 ? (unsigned)(r >> 51 & 15) : (r >> 51 & 1 ? 16 : 0);

		t.n = lengths[k < (int)n_lengths ? (size_t)k : test_random(&seed) % n_lengths];
		/* mostly at the start of a pack, otherwise at any element */
		t.x_at = r & 1 ? 0 : (size_t)(r >> 1 & 31);
		t.flags_at = r >> 6 & 1 ? 0 : (size_t)(r >> 7 & 7);
		t.values_at = (size_t)(r >> 10 & 31);
		t.by_flags = _i >= COMPARABLE || (r >> 15 & 3) == 0;
		t.ordered = (int)(r >> 17 & 1);
		t.partition = (r >> 18 & 3) == 0;
		t.index_type = (r >> 20 & 3) == 0   ? CUA_U32
			       : (r >> 20 & 3) == 1 ? CUA_U64
						    : (enum cua_type)0;
		t.has_values = !t.index_type || (r >> 22 & 1);
		t.in_place = t.has_values && !t.partition && (r >> 23 & 3) == 0;
		t.compare = (enum cua_compare)(CUA_LT + (r >> 25) % 6);
		memcpy(t.value, host + (r >> 30) % most * size, size);
		t.capacity = t.partition || (r >> 28 & 1) ? t.n + (r >> 29 & 1) * 5
							  : t.n * (r >> 33 & 15) / 15;
		t.x = host + t.x_at * size;
		t.keeps = keeps;
		for (size_t i = 0; i < most + 40; i++)
			host_flags[i] = (uint8_t)(test_random(&seed) % 16 < of_16
							  ? 1 + test_random(&seed) % 255
							  : 0);
		flags = test_upload(ctx, host_flags, most + 40);
		for (size_t i = 0; i < t.n; i++) {
			keeps[i] =
				t.by_flags
					? host_flags[t.flags_at + i] != 0
					: (uint8_t)model_keeps(type, bits_of(type, t.x + i * size),
							       t.compare, bits_of(type, t.value));
			t.kept += keeps[i];
		}
		if (!t.in_place) {
			try_array(ctx, &t, x, flags, (int)(r >> 40 & 1));
		} else {
			t.ordered = 1;
			ck_assert_cua(cua_copy(ctx, scratch, host, (most + 40) * size));
			try_array(ctx, &t, scratch, flags, (int)(r >> 40 & 1));
			t.in_place = 0;
		}
		if (k % 4 == 0 && !t.partition)
			try_append(ctx, &t, x, flags);
		test_free(ctx, flags);
	}
	test_free(ctx, x);
	test_free(ctx, scratch);
	free(host);
	free(host_flags);
	free(keeps);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Partitions of arrays so long that a GPU counts several tiles together, not at the start of a
 * pack. Without order only indexes are compared: sorting the values would take too long.
 */
START_TEST(test_partitions)
{
	static const enum cua_type partitioned[] = {CUA_U8, CUA_U32, CUA_F64, CUA_U128};
	static const unsigned shares[] = {8, 1, 15, 0, 16}; /* of 16 */
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_type type = partitioned[_i];
	const size_t size = cua_type_size(type), n = SANITIZED ? 50021 : 4500011;
	uint64_t seed = test_seed("test_partitions");
	unsigned char *host = test_malloc((n + 3) * size), *x;
	uint8_t *host_flags = test_malloc(n + 3), *flags, *keeps = test_malloc(n);

	for (size_t i = 0; i < n + 3; i++)
		make_element(type, host + i * size, &seed);
	x = test_upload(ctx, host, (n + 3) * size);
	for (int k = 0; k < test_scale(1, 5, 5); k++) {
		struct trial t = {.type = type, .n = n, .x_at = 3, .flags_at = 1};

		t.by_flags = 1;
		t.partition = 1;
		t.capacity = n;
		t.x = host + t.x_at * size;
		t.keeps = keeps;
		for (size_t i = 0; i < n + 3; i++)
			host_flags[i] = test_random(&seed) % 16 < shares[k];
		for (size_t i = 0; i < n; i++) {
			keeps[i] = host_flags[t.flags_at + i];
			t.kept += keeps[i];
		}
		flags = test_upload(ctx, host_flags, n + 3);
		/* ordered values, ordered pairs, and pairs */
		for (int how = 0; how < 3; how++) {
			t.ordered = how < 2;
			t.has_values = 1;
			t.index_type = how ? CUA_U32 : (enum cua_type)0;
			try_array(ctx, &t, x, flags, how == 1);
		}
		test_free(ctx, flags);
	}
	test_free(ctx, x);
	free(host);
	free(host_flags);
	free(keeps);
	cua_context_destroy(ctx);
}
END_TEST

/* Every 16-bit element with every comparison: tests the float rules exhaustively. */
START_TEST(test_all_halves)
{
	static const uint16_t values[] = {0,      0x8000, 1,      0x8001, 0x3c00, 0xbc00,
					  0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfe00,
					  0x7f80, 0xff80, 0x7f81, 0xffff};
	static const enum cua_type halves[] = {CUA_F16, CUA_BF16, CUA_I16, CUA_U16};
	enum { N = 65536 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_type type = halves[_i];
	uint16_t *host = test_malloc(N * 2), *x, *out;
	uint64_t count;

	for (unsigned i = 0; i < N; i++)
		host[i] = (uint16_t)i;
	x = test_upload(ctx, host, N * 2);
	out = test_alloc(ctx, N * 2);
	for (size_t v = 0; v < COUNT(values); v++)
		for (int compare = CUA_LT; compare <= CUA_GT; compare++) {
			struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
			uint16_t *got;
			uint64_t k = 0;

			o.ordered = 1;
			ck_assert_cua(cua_filter_array(ctx, &o, type, N, x,
						       (enum cua_compare)compare, &values[v], N,
						       out, &count));
			got = host_of(ctx, out, N * 2);
			for (unsigned i = 0; i < N; i++)
				if (model_keeps(type, i, (enum cua_compare)compare, values[v])) {
					EXPECT(k < count && got[k] == i, "%s: %x %d %x is not kept",
					       cua_type_name(type), i, compare, values[v]);
					k++;
				}
			ck_assert_uint_eq(k, count);
			free(got);
		}
	test_free(ctx, x);
	test_free(ctx, out);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *other = test_context(TEST_BACKEND);
	struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT, bad = CUA_FILTER_OPTIONS_INIT;
	const uint32_t host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, two = 2;
	uint32_t *x = test_upload(ctx, host, sizeof(host)), *out = guarded(ctx, 64),
		 *indexes = guarded(ctx, 64);
	uint8_t *flags = test_upload(ctx, host, 8);
	uint64_t *on_device = guarded(ctx, 16), count = 99;
	struct cua_append *b;
	size_t bytes = 99;
	void *items;

#define TRY(ctx, options, type, n, x, compare, value, capacity, values, count, status)             \
	ck_assert_status(cua_filter_array(ctx, options, type, n, x, compare, value, capacity,      \
					  values, count),                                          \
			 status)
	TRY(NULL, &o, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_NULL);
	TRY(ctx, &o, CUA_U32, 8, NULL, CUA_LT, &two, 8, out, &count, CUA_ERROR_NULL);
	TRY(ctx, &o, CUA_U32, 8, x, CUA_LT, NULL, 8, out, &count, CUA_ERROR_NULL);
	TRY(ctx, &o, CUA_U32, 8, x, CUA_LT, &two, 8, out, NULL, CUA_ERROR_NULL);
	TRY(ctx, &o, CUA_U128, 1, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_TYPE);
	TRY(ctx, &o, CUA_COMPLEX_F32, 1, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_TYPE);
	TRY(ctx, &o, (enum cua_type)77, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_TYPE);
	TRY(ctx, &o, CUA_U32, 8, x, (enum cua_compare)0, &two, 8, out, &count, CUA_ERROR_VALUE);
	TRY(ctx, &o, CUA_U32, 8, x, (enum cua_compare)7, &two, 8, out, &count, CUA_ERROR_VALUE);
	bad.struct_size = sizeof(bad) + 1;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_VALUE);
	bad.struct_size = 0;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_VALUE);
	bad = o;
	bad.index_type = CUA_U16;
	bad.indexes = indexes;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_VALUE);
	bad.index_type = (enum cua_type)0;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_VALUE);
	bad.index_type = CUA_U32;
	bad.indexes = NULL;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_VALUE);
	bad.indexes = (char *)indexes + 2;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_ALIGNMENT);
	TRY(ctx, &o, CUA_U32, SIZE_MAX / 4, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_SIZE);
	TRY(ctx, &o, CUA_U32, 7, (char *)x + 2, CUA_LT, &two, 8, out, &count, CUA_ERROR_ALIGNMENT);
	TRY(ctx, &o, CUA_U32, 7, x, CUA_LT, &two, 8, (char *)out + 1, &count, CUA_ERROR_ALIGNMENT);
	/* partition: needs room for all elements, and cannot be in place */
	bad = o;
	bad.partition = 1;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 7, out, &count, CUA_ERROR_SIZE);
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, x, &count, CUA_ERROR_UNSUPPORTED);
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, NULL, &count, CUA_ERROR_NULL);
	/* overlaps: only the same array is in place */
	TRY(ctx, &o, CUA_U32, 7, x, CUA_LT, &two, 8, x + 1, &count, CUA_ERROR_OVERLAP);
	TRY(ctx, &o, CUA_U32, 7, x + 1, CUA_LT, &two, 8, x, &count, CUA_ERROR_OVERLAP);
	TRY(ctx, &o, CUA_U32, 8, x, CUA_LT, &two, 8, out, (uint64_t *)(void *)x, CUA_ERROR_OVERLAP);
	TRY(ctx, &o, CUA_U32, 8, x, CUA_LT, &two, 8, out, (uint64_t *)(void *)out,
	    CUA_ERROR_OVERLAP);
	bad = o;
	bad.indexes = out + 7;
	bad.index_type = CUA_U32;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_OVERLAP);
	bad.indexes = x;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_OVERLAP);
	bad = o;
	bad.flags = (const uint8_t *)(void *)out;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, &two, 8, out, &count, CUA_ERROR_OVERLAP);
	bad.flags = (const uint8_t *)(void *)x;
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_LT, NULL, 8, x, &count, CUA_ERROR_OVERLAP);
	ck_assert_status(cua_filter_array(ctx, &o, CUA_U32, 8, x, CUA_LT, &two, 8, out,
					  (uint64_t *)(void *)((char *)on_device + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_uint_eq(count, 99);

	/* appends */
	ck_assert_cua(cua_append_create(ctx, 4, 4, &b));
	ck_assert_cua(cua_append_items(b, &items));
#define APPEND(options, type, x, out, status)                                                      \
	ck_assert_status(cua_filter_append(ctx, options, type, 8, x, CUA_LT, &two, out), status)
	APPEND(&o, CUA_U32, x, NULL, CUA_ERROR_NULL);
	APPEND(&o, CUA_U16, x, b, CUA_ERROR_TYPE);
	bad = o;
	bad.partition = 1;
	APPEND(&bad, CUA_U32, x, b, CUA_ERROR_VALUE);
	bad = o;
	bad.index_type = CUA_U32;
	bad.indexes = indexes;
	APPEND(&bad, CUA_U32, x, b, CUA_ERROR_VALUE);
	bad.indexes = NULL;
	bad.index_type = CUA_U64;
	APPEND(&bad, CUA_U32, x, b, CUA_ERROR_TYPE);
	APPEND(&o, CUA_U32, items, b, CUA_ERROR_OVERLAP);
	bad = o;
	bad.flags = items;
	APPEND(&bad, CUA_U32, x, b, CUA_ERROR_OVERLAP);
	ck_assert_status(cua_filter_append(other, &o, CUA_U32, 8, x, CUA_LT, &two, b),
			 CUA_ERROR_CONTEXT);
	ck_assert_cua(cua_append_demand(b, &count));
	ck_assert_uint_eq(count, 0);

	/* 0 elements; the arrays may be NULL */
	TRY(ctx, &o, CUA_U32, 0, NULL, CUA_LT, &two, 8, out, &count, CUA_OK);
	ck_assert_uint_eq(count, 0);
	TRY(ctx, NULL, CUA_U32, 0, NULL, CUA_LT, &two, 0, NULL, on_device, CUA_OK);
	test_download(ctx, &count, on_device, sizeof(count));
	ck_assert_uint_eq(count, 0);
	bad = o;
	bad.partition = bad.ordered = 1;
	bad.flags = flags;
	TRY(ctx, &bad, CUA_U32, 0, NULL, CUA_LT, NULL, 0, NULL, &count, CUA_OK);
	APPEND(&o, CUA_U32, x, b, CUA_OK);
	/* only the count */
	TRY(ctx, NULL, CUA_U32, 8, x, CUA_GT, &two, 0, NULL, &count, CUA_OK);
	ck_assert_uint_eq(count, 6);
	TRY(ctx, NULL, CUA_U32, 8, x, CUA_GT, &two, 0, out, &count, CUA_OK);
	ck_assert_uint_eq(count, 6);

	/* a struct_size that no release had */
	bad = o;
	bad.struct_size = offsetof(struct cua_filter_options, indexes);
	TRY(ctx, &bad, CUA_U32, 8, x, CUA_GT, &two, 8, out, &count, CUA_ERROR_VALUE);

	ck_assert_status(cua_filter_workspace(ctx, &o, CUA_U32, 8, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_filter_workspace(NULL, &o, CUA_U32, 8, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_filter_workspace(ctx, &o, CUA_U128, 8, &bytes), CUA_ERROR_TYPE);
	ck_assert_uint_eq(bytes, 99);
	ck_assert_cua(cua_filter_workspace(ctx, &o, CUA_U32, 8, &bytes));
	ck_assert_uint_le(bytes, 4096);
#undef TRY
#undef APPEND
	ck_assert_cua(cua_append_destroy(b));
	test_free(ctx, x);
	test_free(ctx, out);
	test_free(ctx, indexes);
	test_free(ctx, flags);
	test_free(ctx, on_device);
	cua_context_destroy(other);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * More than 2^31 elements: marks at both ends and in the middle, found by index; most other
 * elements are only counted.
 */
START_TEST(test_big)
{
	const size_t n = ((size_t)1 << 31) + 7;
	const uint8_t marks[3] = {11, 12, 13}, zero = 0;
	struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
	struct cua_context *ctx;
	uint64_t *indexes, got[4], count = 0;
	uint8_t *x;

	if (test_quick() || SANITIZED || sizeof(size_t) < 8) {
		printf("test_big: skipped in a quick or instrumented run\n");
		return;
	}
	ctx = test_context(TEST_BACKEND);
#if TEST_CUDA
	x = test_alloc(ctx, n);
	ck_assert_cua(cua_fill(ctx, x, n, 1, &zero));
#else
	x = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		 0);
	if (x == MAP_FAILED) {
		printf("test_big: skipped, less than 2 GiB of addresses\n");
		cua_context_destroy(ctx);
		return;
	}
#endif
	for (size_t k = 0; k < 3; k++)
		ck_assert_cua(cua_copy(ctx, x + k * (n / 2) - (k == 2), &marks[k], 1));
	indexes = guarded(ctx, sizeof(got));
	o.indexes = indexes;
	o.index_type = CUA_U64;
	for (int ordered = 1; ordered >= 0; ordered--) {
		o.ordered = ordered;
		ck_assert_cua(
			cua_filter_array(ctx, &o, CUA_U8, n, x, CUA_GT, &zero, 4, NULL, &count));
		ck_assert_uint_eq(count, 3);
		test_download(ctx, got, indexes, sizeof(got));
		ck_assert_uint_eq(got[0] + got[1] + got[2], n / 2 + n / 2 * 2 - 1);
		if (ordered) {
			ck_assert_uint_eq(got[0], 0);
			ck_assert_uint_eq(got[1], n / 2);
		}
	}
	/* the kept elements far exceed the capacity */
	o.ordered = 1;
	ck_assert_cua(cua_filter_array(ctx, &o, CUA_U8, n, x, CUA_EQ, &zero, 3, NULL, &count));
	ck_assert_uint_eq(count, n - 3);
	test_download(ctx, got, indexes, sizeof(got));
	ck_assert_uint_eq(got[0], 1);
	ck_assert_uint_eq(got[2], 3);
	/* in place: the three marks move to the start */
	o.indexes = NULL;
	o.index_type = (enum cua_type)0;
#if TEST_CUDA
	ck_assert_cua(cua_filter_array(ctx, &o, CUA_U8, n, x, CUA_GE, &marks[0], n, x, &count));
	ck_assert_uint_eq(count, 3);
	test_download(ctx, got, x, 3);
	ck_assert_mem_eq(got, marks, 3);
	test_free(ctx, x);
#else
	munmap(x, n);
#endif
	test_free(ctx, indexes);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
/*
 * Partitions of more than 2^32 bytes: few elements differ from 0. Either all others are rejected,
 * or they are kept. Skipped if the device lacks the memory.
 */
START_TEST(test_big_partition)
{
	const size_t n = ((size_t)1 << 32) + 7, at[3] = {0, (size_t)1 << 31, n - 2};
	const uint8_t marks[3] = {11, 12, 13}, zero = 0;
	struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
	struct cua_context *ctx;
	void *x = NULL, *out = NULL;
	uint64_t count = 0;
	uint8_t got[3];

	if (test_quick()) {
		printf("test_big_partition: skipped in a quick run\n");
		return;
	}
	ctx = test_context(TEST_BACKEND);
	if (cua_alloc(ctx, 1, n, &x) || cua_alloc(ctx, 1, n, &out)) {
		printf("test_big_partition: skipped, less than 8 GiB of memory\n");
		cua_context_destroy(ctx);
		return;
	}
	ck_assert_cua(cua_fill(ctx, x, n, 1, &zero));
	for (size_t k = 0; k < 3; k++)
		ck_assert_cua(cua_copy(ctx, (uint8_t *)x + at[k], &marks[k], 1));
	o.partition = 1;
	for (int how = 0; how < 4; how++) {
		const enum cua_compare compare = how & 1 ? CUA_EQ : CUA_GT;
		const size_t first = how & 1 ? n - 3 : 0;

		o.ordered = how < 2;
		ck_assert_cua(cua_fill(ctx, out, n, 1, &marks[0]));
		ck_assert_cua(
			cua_filter_array(ctx, &o, CUA_U8, n, x, compare, &zero, n, out, &count));
		ck_assert_uint_eq(count, how & 1 ? n - 3 : 3);
		test_download(ctx, got, (uint8_t *)out + first, 3);
		if (o.ordered)
			ck_assert_mem_eq(got, marks, 3);
		ck_assert_uint_eq(got[0] + got[1] + got[2], 11 + 12 + 13);
		/* so all others are 0 */
		ck_assert_cua(cua_filter_array(ctx, NULL, CUA_U8, n, out, CUA_GT, &zero, 0, NULL,
					       &count));
		ck_assert_uint_eq(count, 3);
	}
	cua_free(ctx, x);
	cua_free(ctx, out);
	cua_context_destroy(ctx);
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("filter");
	TCase *tc = tcase_create("filter");

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, test_arguments);
	tcase_add_loop_test(tc, test_properties, 0, (int)COUNT(types));
	tcase_add_loop_test(tc, test_all_halves, 0, 4);
	tcase_add_loop_test(tc, test_partitions, 0, 4);
	tcase_add_test(tc, test_big);
#if TEST_CUDA
	tcase_add_test(tc, test_big_partition);
#endif
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
