/* SPDX-License-Identifier: MIT */
/* The append buffer and the filter on either backend; on host threads also the pushes. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum cua_type types[] = {CUA_U32, CUA_I32, CUA_U64, CUA_I64, CUA_F32, CUA_F64};
static const enum cua_compare compares[] = {CUA_LT, CUA_LE, CUA_EQ, CUA_NE, CUA_GE, CUA_GT};

/* An element of any type, compared as bits; the upper bits of smaller types are 0. */
union value {
	uint32_t u32;
	int32_t i32;
	uint64_t u64;
	int64_t i64;
	float f32;
	double f64;
};

static union value load(enum cua_type type, const void *array, size_t i)
{
	size_t size = cua_type_size(type);
	union value v = {.u64 = 0};

	memcpy(&v, (const char *)array + i * size, size);
	return v;
}

/* The result of a comparison, independent of the header: -1, 0, 1, or 2 for NaN. */
static int order(enum cua_type type, union value a, union value b)
{
#define ORDER(member)                                                                              \
	return a.member < b.member ? -1 : a.member > b.member ? 1 : a.member == b.member ? 0 : 2
	switch (type) {
	case CUA_U32: ORDER(u32);
	case CUA_I32: ORDER(i32);
	case CUA_U64: ORDER(u64);
	case CUA_I64: ORDER(i64);
	case CUA_F32: ORDER(f32);
	default: ORDER(f64);
	}
#undef ORDER
}

static int model_keeps(enum cua_type type, union value x, enum cua_compare compare, union value v)
{
	int o = order(type, x, v);

	switch (compare) {
	case CUA_LT: return o == -1;
	case CUA_LE: return o == -1 || o == 0;
	case CUA_EQ: return o == 0;
	case CUA_NE: return o != 0;
	case CUA_GE: return o == 0 || o == 1;
	default: return o == 1;
	}
}

static int by_bits(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, 8);
	memcpy(&y, b, 8);
	return (x > y) - (x < y);
}

static uint64_t demand_of(struct cua_append *b)
{
	uint64_t demand = UINT64_MAX;

	ck_assert_cua(cua_append_demand(b, &demand));
	return demand;
}

static uint64_t size_of(struct cua_append *b)
{
	uint64_t size = UINT64_MAX;

	ck_assert_cua(cua_append_size(b, &size));
	return size;
}

/* Reads all items, extended to 64 bits, sorted. The caller frees them. */
static uint64_t *items_of(struct cua_append *b, enum cua_type type, uint64_t *n)
{
	size_t size = cua_type_size(type);
	uint64_t count = size_of(b), got = UINT64_MAX;
	char *raw = test_malloc(count * size);
	uint64_t *bits = test_malloc(count * 8);

	ck_assert_cua(cua_append_read(b, raw, (size_t)count, &got));
	ck_assert_uint_eq(got, count);
	for (size_t i = 0; i < count; i++)
		bits[i] = load(type, raw, i).u64;
	qsort(bits, (size_t)count, 8, by_bits);
	free(raw);
	*n = count;
	return bits;
}

/* Whether the sorted a is a sub-multiset of the sorted b. */
static int is_part(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b)
{
	uint64_t j = 0;

	for (uint64_t i = 0; i < n_a; i++, j++) {
		while (j < n_b && b[j] < a[i])
			j++;
		if (j == n_b || b[j] != a[i])
			return 0;
	}
	return 1;
}

/* ---- the buffer ---- */

START_TEST(test_life)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_append *b = NULL, *none;
	struct cua_append_view view;
	uint64_t n = 99, value, *device;
	uint32_t item = 7;
	void *items = NULL;

	none = b;
	ck_assert_status(cua_append_create(NULL, 4, 10, &b), CUA_ERROR_NULL);
	ck_assert_status(cua_append_create(ctx, 4, 10, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_append_create(ctx, 0, 10, &b), CUA_ERROR_VALUE);
	ck_assert_status(cua_append_create(ctx, 16, UINT64_MAX / 8, &b), CUA_ERROR_SIZE);
	ck_assert_status(cua_append_create(ctx, SIZE_MAX, 2, &b), CUA_ERROR_SIZE);
	/* the sanitizers' allocators end the program instead */
	if (!SANITIZED)
		ck_assert_status(cua_append_create(ctx, 1, (uint64_t)1 << 62, &b),
				 CUA_ERROR_NO_MEMORY);
	ck_assert_ptr_eq(b, none);
	ck_assert_cua(cua_append_destroy(NULL));

	ck_assert_cua(cua_append_create(ctx, 4, 10, &b));
	ck_assert_status(cua_append_get_view(NULL, &view), CUA_ERROR_NULL);
	ck_assert_status(cua_append_get_view(b, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_append_items(NULL, &items), CUA_ERROR_NULL);
	ck_assert_status(cua_append_items(b, NULL), CUA_ERROR_NULL);
	ck_assert_ptr_null(items);
	ck_assert_cua(cua_append_get_view(b, &view));
	ck_assert_cua(cua_append_items(b, &items));
	ck_assert_ptr_eq(view.items, items);
	ck_assert_uint_eq((uintptr_t)items % 256, 0);
	ck_assert_uint_eq(view.capacity, 10);
	ck_assert_uint_eq(view.item_size, 4);
	ck_assert_uint_eq(view.layout, CUA_APPEND_LAYOUT);
	ck_assert_uint_eq(view.reserved, 0);

	/* empty */
	ck_assert_uint_eq(demand_of(b), 0);
	ck_assert_uint_eq(size_of(b), 0);
	ck_assert_cua(cua_append_status(b));
	ck_assert_cua(cua_append_read(b, NULL, 0, &n));
	ck_assert_uint_eq(n, 0);
	n = 99;
	ck_assert_cua(cua_append_read(b, &item, 1, &n));
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(item, 7);

	/* bad arguments */
	n = 99;
	ck_assert_status(cua_append_reset(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_append_status(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_append_demand(NULL, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_append_demand(b, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_append_demand(b, (uint64_t *)((char *)&value + 1)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_append_demand(b, (uint64_t *)items), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_append_demand(b, &view.cursor->demand), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_append_size(NULL, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_append_size(b, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_append_size(b, (uint64_t *)((char *)&value + 4)), CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_append_size(b, (uint64_t *)items + 1), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_append_read(NULL, &item, 1, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_append_read(b, NULL, 1, &n), CUA_ERROR_NULL);
	ck_assert_status(cua_append_read(b, &item, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_append_read(b, items, 1, &n), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_append_read(b, &item, 1, (uint64_t *)items), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_append_read(b, &value, 2, &value), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_append_read(b, &item, 1, (uint64_t *)((char *)&value + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_uint_eq(n, 99);
	ck_assert_uint_eq(item, 7);
	ck_assert_uint_eq(demand_of(b), 0);

	/* results in backend memory */
	device = test_alloc(ctx, 3 * sizeof(*device));
	value = 5;
	for (int i = 0; i < 3; i++)
		ck_assert_cua(cua_copy(ctx, device + i, &value, sizeof(value)));
	ck_assert_cua(cua_append_demand(b, device));
	ck_assert_cua(cua_append_size(b, device + 1));
	ck_assert_cua(cua_append_read(b, &item, 1, device + 2));
	for (int i = 0; i < 3; i++) {
		test_download(ctx, &value, device + i, sizeof(value));
		ck_assert_uint_eq(value, 0);
	}
	test_free(ctx, device);
	ck_assert_cua(cua_append_destroy(b));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the filter ---- */

START_TEST(test_filter_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *other = test_context(TEST_BACKEND);
	struct cua_append *b4, *b8;
	const uint32_t host[4] = {1, 2, 3, 4};
	uint32_t *x = test_upload(ctx, host, sizeof(host)), value = 2;
	uint64_t wide = 2;
	void *items;

	ck_assert_cua(cua_append_create(ctx, 4, 4, &b4));
	ck_assert_cua(cua_append_create(ctx, 8, 4, &b8));
	ck_assert_cua(cua_append_items(b4, &items));
	ck_assert_status(cua_filter(NULL, CUA_U32, 4, x, CUA_LT, &value, b4), CUA_ERROR_NULL);
	ck_assert_status(cua_filter(ctx, CUA_U32, 4, NULL, CUA_LT, &value, b4), CUA_ERROR_NULL);
	ck_assert_status(cua_filter(ctx, CUA_U32, 4, x, CUA_LT, NULL, b4), CUA_ERROR_NULL);
	ck_assert_status(cua_filter(ctx, CUA_U32, 4, x, CUA_LT, &value, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_filter(ctx, CUA_U8, 4, x, CUA_LT, &value, b4), CUA_ERROR_TYPE);
	ck_assert_status(cua_filter(ctx, CUA_I16, 4, x, CUA_LT, &value, b4), CUA_ERROR_TYPE);
	ck_assert_status(cua_filter(ctx, (enum cua_type)0, 4, x, CUA_LT, &value, b4),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_filter(ctx, (enum cua_type)77, 4, x, CUA_LT, &value, b4),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_filter(ctx, CUA_U32, 4, x, CUA_LT, &value, b8), CUA_ERROR_TYPE);
	ck_assert_status(cua_filter(ctx, CUA_F64, 2, x, CUA_LT, &wide, b4), CUA_ERROR_TYPE);
	ck_assert_status(cua_filter(ctx, CUA_U32, 4, x, (enum cua_compare)0, &value, b4),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_filter(ctx, CUA_U32, 4, x, (enum cua_compare)7, &value, b4),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_filter(other, CUA_U32, 4, x, CUA_LT, &value, b4), CUA_ERROR_CONTEXT);
	ck_assert_status(cua_filter(ctx, CUA_U32, SIZE_MAX / 4, x, CUA_LT, &value, b4),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_filter(ctx, CUA_U32, 2, (char *)x + 2, CUA_LT, &value, b4),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_filter(ctx, CUA_U64, 1, x + 1, CUA_LT, &wide, b8),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_filter(ctx, CUA_U32, 4, items, CUA_LT, &value, b4), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_filter(ctx, CUA_U32, 1, (uint32_t *)items + 3, CUA_LT, &value, b4),
			 CUA_ERROR_OVERLAP);
	ck_assert_uint_eq(demand_of(b4), 0);
	ck_assert_uint_eq(demand_of(b8), 0);
	/* 0 elements: nothing is selected */
	ck_assert_cua(cua_filter(ctx, CUA_U32, 0, NULL, CUA_LT, &value, b4));
	ck_assert_uint_eq(demand_of(b4), 0);
	/* from the items of a buffer into another buffer */
	ck_assert_cua(cua_filter(ctx, CUA_U32, 4, x, CUA_GT, &value, b4));
	ck_assert_cua(cua_filter(ctx, CUA_U64, 1, items, CUA_NE, &wide, b8));
	ck_assert_uint_eq(demand_of(b4), 2);
	ck_assert_uint_eq(demand_of(b8), 1);
	ck_assert_cua(cua_append_destroy(b4));
	ck_assert_cua(cua_append_destroy(b8));
	test_free(ctx, x);
	cua_context_destroy(other);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
START_TEST(test_memory_kind)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA),
			   *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_append *b, *on_cpu;
	uint32_t host[4] = {1, 2, 3, 4}, *ordinary = test_malloc(sizeof(host));
	uint32_t *x = test_upload(ctx, host, sizeof(host)), back[4] = {0};
	uint64_t n = 99;
	enum cua_status status;

	memcpy(ordinary, host, sizeof(host));
	ck_assert_cua(cua_append_create(ctx, 4, 4, &b));
	ck_assert_cua(cua_append_create(cpu, 4, 4, &on_cpu));
	/* wrong memory kind: a CPU context refuses device memory */
	ck_assert_status(cua_filter_u32(cpu, 4, x, CUA_GT, 0, on_cpu), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_append_size(on_cpu, (uint64_t *)(void *)x), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_append_demand(on_cpu, (uint64_t *)(void *)x), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_append_read(on_cpu, x, 4, &n), CUA_ERROR_MEMORY_KIND);
	ck_assert_uint_eq(n, 99);
	ck_assert_uint_eq(demand_of(on_cpu), 0);
	/* ordinary host memory: accepted on a coherent system */
	status = cua_filter_u32(ctx, 4, ordinary, CUA_GT, 2, b);
	ck_assert(status == CUA_ERROR_MEMORY_KIND || status == CUA_OK);
	ck_assert_uint_eq(demand_of(b), status ? 0 : 2);
	test_download(ctx, back, x, sizeof(back));
	ck_assert_mem_eq(back, host, sizeof(back));
	ck_assert_cua(cua_append_destroy(b));
	ck_assert_cua(cua_append_destroy(on_cpu));
	test_free(ctx, x);
	free(ordinary);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* Values near a middle, some equal to it, and the ends of the type; NaN, infinities and -0. */
static void make_elements(enum cua_type type, void *array, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t r = test_random(state);
		int special = r % 16 == 0;
		int64_t near = (int64_t)(r >> 8) % 1000 - 500;
		union value v = {.u64 = 0};
		unsigned which = (unsigned)(r >> 4) % 8;

		switch (type) {
		case CUA_U32:
			v.u32 = special ? (which & 1 ? UINT32_MAX : 0) : (uint32_t)(near + 600);
			break;
		case CUA_I32:
			v.i32 = special ? (which & 1 ? INT32_MAX : INT32_MIN) : (int32_t)near;
			break;
		case CUA_U64:
			v.u64 = special ? (which & 1 ? UINT64_MAX : 0)
					: (uint64_t)(near + 600) << 31;
			break;
		case CUA_I64:
			v.i64 = special ? (which & 1 ? INT64_MAX : INT64_MIN) : near * 5000000000;
			break;
		case CUA_F32: {
			const float odd[] = {NAN,  -NAN,  INFINITY, -INFINITY,
					     0.0f, -0.0f, 1e-45f,   -1e-45f};

			v.f32 = special ? odd[which] : (float)near * 0.25f;
			break;
		}
		default: {
			const double odd[] = {(double)NAN, -(double)NAN, HUGE_VAL, -HUGE_VAL,
					      0.0,         -0.0,         5e-324,   -5e-324};

			v.f64 = special ? odd[which] : (double)near * 0.25;
			break;
		}
		}
		memcpy((char *)array + i * cua_type_size(type), &v, cua_type_size(type));
	}
}

/*
 * All types and comparisons, lengths around the tiles, every alignment, enough capacity and too
 * little.
 */
START_TEST(test_filter_values)
{
	static const size_t lengths[] = {1,    2,    5,    31,   32,   33,   255,    2047,
					 2048, 2049, 4095, 4096, 4097, 8191, 100003, 300001};
	size_t n_lengths = test_quick() || SANITIZED ? 15 : 16, most = lengths[n_lengths - 1];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_type type = types[_i];
	size_t size = cua_type_size(type);
	uint64_t seed = test_seed("test_filter_values");
	char *host = test_malloc((most + 4) * size), *x;
	uint64_t *expected = test_malloc(most * 8);
	struct cua_append *b;

	make_elements(type, host, most + 4, &seed);
	x = test_upload(ctx, host, (most + 4) * size);
	ck_assert_cua(cua_append_create(ctx, size, most, &b));
	for (size_t l = 0; l < n_lengths; l++)
		for (size_t c = 0; c < COUNT(compares); c++) {
			size_t n = lengths[l], first = (l + c + test_random(&seed)) % 4;
			/* a value of the array; sometimes NaN, or an end of the type */
			union value value = load(type, host, test_random(&seed) % most);
			uint64_t n_expected = 0, n_got, *got;

			for (size_t i = 0; i < n; i++) {
				union value v = load(type, host, first + i);

				if (model_keeps(type, v, compares[c], value))
					expected[n_expected++] = v.u64;
			}
			qsort(expected, (size_t)n_expected, 8, by_bits);
			ck_assert_cua(cua_append_reset(b));
			ck_assert_cua(
				cua_filter(ctx, type, n, x + first * size, compares[c], &value, b));
			ck_assert_uint_eq(demand_of(b), n_expected);
			ck_assert_cua(cua_append_status(b));
			got = items_of(b, type, &n_got);
			ck_assert_uint_eq(n_got, n_expected);
			ck_assert_mem_eq(got, expected, (size_t)n_got * 8);
			free(got);
		}
	ck_assert_cua(cua_append_destroy(b));
	test_free(ctx, x);
	free(host);
	free(expected);
	cua_context_destroy(ctx);
}
END_TEST

/* Each comparison of NaN, infinities and -0 against its rule. */
START_TEST(test_filter_floats)
{
	static const double numbers[] = {-HUGE_VAL, -1, -0.0, 0.0, 5e-324, 1, HUGE_VAL};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double host[8], *x;
	struct cua_append *b;

	memcpy(host, numbers, sizeof(numbers));
	host[7] = (double)NAN;
	x = test_upload(ctx, host, sizeof(host));
	ck_assert_cua(cua_append_create(ctx, 8, 8, &b));
#define KEPT(compare, value, n)                                                                    \
	do {                                                                                       \
		ck_assert_cua(cua_append_reset(b));                                                \
		ck_assert_cua(cua_filter_f64(ctx, 8, x, compare, value, b));                       \
		ck_assert_uint_eq(demand_of(b), n);                                                \
	} while (0)
	KEPT(CUA_EQ, (double)NAN, 0);
	KEPT(CUA_LT, (double)NAN, 0);
	KEPT(CUA_GE, (double)NAN, 0);
	KEPT(CUA_NE, (double)NAN, 8);
	KEPT(CUA_EQ, -0.0, 2);
	KEPT(CUA_EQ, 0.0, 2);
	KEPT(CUA_LT, 0.0, 2);
	KEPT(CUA_GT, -0.0, 3);
	KEPT(CUA_LE, HUGE_VAL, 7);
	KEPT(CUA_GE, -HUGE_VAL, 7);
	KEPT(CUA_NE, 1.0, 7);
#undef KEPT
	ck_assert_cua(cua_append_destroy(b));
	test_free(ctx, x);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * More matches than capacity: nothing is written past the capacity, and the demand counts all
 * matches.
 */
START_TEST(test_full)
{
	enum { N = 70001 };
	static const uint64_t capacities[] = {0, 1, 31, 4095, 4096, 5000, N - 1, N, N + 1};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint32_t *host = test_malloc(N * sizeof(*host)), *x, *part = test_malloc(N * sizeof(*part));
	uint32_t *copy = test_alloc(ctx, 64 * sizeof(*copy));
	uint64_t *all = test_malloc(N * 8), *got, n_got = 0, n = 0;

	for (uint32_t i = 0; i < N; i++) {
		host[i] = i * 2654435761u;
		all[i] = host[i];
	}
	qsort(all, N, 8, by_bits);
	x = test_upload(ctx, host, N * sizeof(*host));
	for (size_t i = 0; i < COUNT(capacities); i++) {
		uint64_t capacity = capacities[i], expected = N < capacity ? N : capacity;
		struct cua_append *b;

		ck_assert_cua(cua_append_create(ctx, sizeof(*x), capacity, &b));
		/* 0 occurs once in the sequence; every element is >= 0 */
		ck_assert_cua(cua_filter_u32(ctx, N, x, CUA_GE, 0, b));
		ck_assert_uint_eq(demand_of(b), N);
		ck_assert_uint_eq(size_of(b), expected);
		ck_assert_status(cua_append_status(b), N > capacity ? CUA_ERROR_FULL : CUA_OK);
		got = items_of(b, CUA_U32, &n_got);
		ck_assert_uint_eq(n_got, expected);
		ck_assert(is_part(got, n_got, all, N));

		/* reads of a part: to the host and to backend memory */
		ck_assert_cua(cua_append_read(b, part, 40, &n));
		ck_assert_uint_eq(n, expected < 40 ? expected : 40);
		for (uint64_t k = 0; k < n; k++)
			ck_assert(is_part(&(uint64_t){part[k]}, 1, got, n_got));
		ck_assert_cua(cua_append_read(b, copy, 40, &n));
		if (n) {
			uint32_t back[64];

			test_download(ctx, back, copy, (size_t)n * sizeof(*back));
			ck_assert_mem_eq(back, part, (size_t)n * sizeof(*back));
		}
		free(got);
		/* the output may be larger than the number of items */
		ck_assert_cua(cua_append_read(b, part, expected, &n));
		ck_assert_uint_eq(n, expected);

		/* a full buffer stays full: the demand still grows */
		ck_assert_cua(cua_filter_u32(ctx, N, x, CUA_EQ, 0, b));
		ck_assert_uint_eq(demand_of(b), N + 1);
		ck_assert_status(cua_append_status(b), N + 1 > capacity ? CUA_ERROR_FULL : CUA_OK);
		ck_assert_cua(cua_append_reset(b));
		ck_assert_uint_eq(demand_of(b), 0);
		ck_assert_cua(cua_append_status(b));
		ck_assert_cua(cua_filter_u32(ctx, N, x, CUA_EQ, 0, b));
		ck_assert_uint_eq(size_of(b), capacity ? 1 : 0);
		ck_assert_status(cua_append_status(b), capacity ? CUA_OK : CUA_ERROR_FULL);
		ck_assert_cua(cua_append_destroy(b));
	}
	test_free(ctx, x);
	test_free(ctx, copy);
	free(host);
	free(part);
	free(all);
	cua_context_destroy(ctx);
}
END_TEST

/* The short forms, and each type's own order. */
START_TEST(test_typed)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t bits[4] = {0, 1, UINT64_MAX, (uint64_t)1 << 63};
	const float f32[4] = {-2, -1, 0, 3};
	const double f64[4] = {-2, -1, 0, 3};
	const uint32_t u32[4] = {0, 1, UINT32_MAX, (uint32_t)1 << 31};
	void *wide = test_upload(ctx, bits, sizeof(bits)),
	     *narrow = test_upload(ctx, u32, sizeof(u32));
	void *floats = test_upload(ctx, f32, sizeof(f32)),
	     *doubles = test_upload(ctx, f64, sizeof(f64));
	struct cua_append *b4, *b8;

	ck_assert_cua(cua_append_create(ctx, 4, 100, &b4));
	ck_assert_cua(cua_append_create(ctx, 8, 100, &b8));
	ck_assert_cua(cua_filter_u32(ctx, 4, narrow, CUA_GT, 1, b4));
	ck_assert_uint_eq(demand_of(b4), 2);
	ck_assert_cua(cua_filter_i32(ctx, 4, narrow, CUA_GE, 1, b4));
	ck_assert_uint_eq(demand_of(b4), 2 + 1);
	ck_assert_cua(cua_filter_f32(ctx, 4, floats, CUA_LT, 0.0f, b4));
	ck_assert_uint_eq(demand_of(b4), 2 + 1 + 2);
	ck_assert_cua(cua_filter_u64(ctx, 4, wide, CUA_GT, 1, b8));
	ck_assert_uint_eq(demand_of(b8), 2);
	ck_assert_cua(cua_filter_i64(ctx, 4, wide, CUA_GE, 1, b8));
	ck_assert_uint_eq(demand_of(b8), 2 + 1);
	ck_assert_cua(cua_filter_f64(ctx, 4, doubles, CUA_LE, -1.0, b8));
	ck_assert_uint_eq(demand_of(b8), 2 + 1 + 2);
	ck_assert_cua(cua_append_destroy(b4));
	ck_assert_cua(cua_append_destroy(b8));
	test_free(ctx, wide);
	test_free(ctx, narrow);
	test_free(ctx, floats);
	test_free(ctx, doubles);
	cua_context_destroy(ctx);
}
END_TEST

/* Filters, resets and readings in any order against a list. */
START_TEST(test_random_calls)
{
	enum { N = 5000, CAPACITY = 9000, CALLS = 400 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_random_calls"), *list = test_malloc(CALLS * N * 8),
		 n_list = 0;
	int32_t *host = test_malloc(N * sizeof(*host)), *x;
	struct cua_append *b;
	int calls = test_quick() ? CALLS / 10 : CALLS;

	make_elements(CUA_I32, host, N, &seed);
	x = test_upload(ctx, host, N * sizeof(*host));
	ck_assert_cua(cua_append_create(ctx, sizeof(*x), CAPACITY, &b));
	for (int call = 0; call < calls; call++) {
		uint64_t r = test_random(&seed);

		if (r % 8 == 0) {
			ck_assert_cua(cua_append_reset(b));
			n_list = 0;
		} else if (r % 8 == 1) {
			uint64_t n, *got = items_of(b, CUA_I32, &n);
			uint64_t *sorted = test_malloc((size_t)n_list * 8);

			memcpy(sorted, list, (size_t)n_list * 8);
			qsort(sorted, (size_t)n_list, 8, by_bits);
			ck_assert_uint_eq(n, n_list < CAPACITY ? n_list : CAPACITY);
			ck_assert(is_part(got, n, sorted, n_list));
			free(got);
			free(sorted);
		} else {
			size_t first = (r >> 8) % N, n = (r >> 24) % (N - first + 1);
			enum cua_compare compare = compares[(r >> 4) % 6];
			union value value = load(CUA_I32, host, (r >> 40) % N);

			ck_assert_cua(cua_filter_i32(ctx, n, x + first, compare, value.i32, b));
			for (size_t i = first; i < first + n; i++) {
				union value v = load(CUA_I32, host, i);

				if (model_keeps(CUA_I32, v, compare, value))
					list[n_list++] = v.u64;
			}
		}
		ck_assert_uint_eq(demand_of(b), n_list);
		ck_assert_status(cua_append_status(b), n_list > CAPACITY ? CUA_ERROR_FULL : CUA_OK);
	}
	ck_assert_cua(cua_append_destroy(b));
	test_free(ctx, x);
	free(host);
	free(list);
	cua_context_destroy(ctx);
}
END_TEST

/* More than 2^31 elements, 2^33 bytes. */
START_TEST(test_big)
{
	const size_t n = ((size_t)1 << 31) + 7;
	const uint32_t marks[3] = {11, 12, 13};
	struct cua_context *ctx;
	struct cua_append *b;
	uint32_t *x, got[16] = {0};
	uint64_t n_got = 0;

	if (test_quick() || SANITIZED || sizeof(size_t) < 8) {
		printf("test_big: skipped in a quick or instrumented run\n");
		return;
	}
	ctx = test_context(TEST_BACKEND);
#if TEST_CUDA
	{
		uint64_t free_bytes = 0, total = 0;
		const uint32_t zero = 0;

		ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total));
		if (free_bytes < ((uint64_t)12 << 30)) {
			printf("test_big: skipped, less than 12 GiB of memory free\n");
			cua_context_destroy(ctx);
			return;
		}
		x = test_alloc(ctx, n * sizeof(*x));
		ck_assert_cua(cua_fill(ctx, x, n, sizeof(zero), &zero));
	}
#else
	/* untouched pages of the mapping all map to the same page of zeros */
	x = mmap(NULL, n * sizeof(*x), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (x == MAP_FAILED) {
		printf("test_big: skipped, less than 8 GiB of addresses\n");
		cua_context_destroy(ctx);
		return;
	}
#endif
	ck_assert_cua(cua_copy(ctx, x, &marks[0], sizeof(*x)));
	ck_assert_cua(cua_copy(ctx, x + n / 2, &marks[1], sizeof(*x)));
	ck_assert_cua(cua_copy(ctx, x + n - 1, &marks[2], sizeof(*x)));
	ck_assert_cua(cua_append_create(ctx, sizeof(*x), 16, &b));
	ck_assert_cua(cua_filter_u32(ctx, n, x, CUA_GT, 0, b));
	ck_assert_cua(cua_append_read(b, got, 16, &n_got));
	ck_assert_uint_eq(n_got, 3);
	ck_assert_uint_eq(got[0] + got[1] + got[2], 36);
	ck_assert_uint_eq(got[0] * got[1] * got[2], 11 * 12 * 13);
	ck_assert_cua(cua_append_reset(b));
	ck_assert_cua(cua_filter_u32(ctx, n, x, CUA_EQ, 0, b));
	ck_assert_uint_eq(demand_of(b), n - 3);
	ck_assert_uint_eq(size_of(b), 16);
	ck_assert_status(cua_append_status(b), CUA_ERROR_FULL);
	/* again: past 2^32 */
	ck_assert_cua(cua_filter_u32(ctx, n, x, CUA_LT, 20, b));
	ck_assert_uint_eq(demand_of(b), n - 3 + n);
	ck_assert_cua(cua_append_destroy(b));
#if TEST_CUDA
	test_free(ctx, x);
#else
	munmap(x, n * sizeof(*x));
#endif
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the functions of the header, on host threads ---- */

#if !TEST_CUDA
struct triple {
	uint32_t a, b, c;
};
CUA_DEFINE_APPEND(triple, struct triple)
CUA_DEFINE_APPEND_STAGE(few, uint32_t, 4u)

#define THREADS 4
#define PUSHES 20000

struct pusher {
	struct cua_append_view view;
	uint32_t number;
	uint64_t stored;
};

static void *push_numbers(void *arg)
{
	struct pusher *p = arg;

	for (uint32_t i = 0; i < PUSHES; i++) {
		uint64_t v = (uint64_t)p->number * PUSHES + i;

		if (i % 3 == 0)
			p->stored += (uint64_t)cua_append_push_u64(&p->view, v);
		else if (i % 3 == 1)
			p->stored += (uint64_t)cua_append_push(&p->view, &v);
		else
			p->stored += (uint64_t)cua_append_push_warp_u64(
				&p->view, cua_port_active_mask(), 1, v);
	}
	return NULL;
}

/*
 * Concurrent pushes store every value exactly once if there is room, else as many values as there
 * is room for.
 */
START_TEST(test_threads)
{
	const uint64_t all = THREADS * PUSHES, capacity = _i ? all / 3 : all;
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct pusher pushers[THREADS];
	pthread_t threads[THREADS];
	uint64_t stored = 0, n, *got;
	struct cua_append *b;

	ck_assert_cua(cua_append_create(ctx, 8, capacity, &b));
	for (uint32_t t = 0; t < THREADS; t++) {
		ck_assert_cua(cua_append_get_view(b, &pushers[t].view));
		pushers[t].number = t;
		pushers[t].stored = 0;
		ck_assert_int_eq(pthread_create(&threads[t], NULL, push_numbers, &pushers[t]), 0);
	}
	for (uint32_t t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		stored += pushers[t].stored;
	}
	ck_assert_uint_eq(demand_of(b), all);
	ck_assert_uint_eq(stored, capacity);
	ck_assert_status(cua_append_status(b), _i ? CUA_ERROR_FULL : CUA_OK);
	got = items_of(b, CUA_U64, &n);
	ck_assert_uint_eq(n, capacity);
	for (uint64_t i = 0; i < n; i++)
		if (got[i] >= all || (i && got[i] == got[i - 1]))
			ck_abort_msg("%llu is not there once", (unsigned long long)got[i]);
	free(got);
	ck_assert_cua(cua_append_destroy(b));
	cua_context_destroy(ctx);
}
END_TEST

/* Every push, on the test's own memory with guard words behind it. */
START_TEST(test_pushes)
{
	struct cua_append_cursor cursor = CUA_APPEND_CURSOR_INIT;
	struct cua_append_view view = {0};
	uint64_t memory[5];
	struct triple t = {1, 2, 3}, *triples;
	int one = 1;

#define PUSH(name, T, value)                                                                       \
	do {                                                                                       \
		const T v = (value);                                                               \
                                                                                                   \
		memset(memory, 0xee, sizeof(memory));                                              \
		cursor.demand = 0;                                                                 \
		view.items = memory;                                                               \
		view.cursor = &cursor;                                                             \
		view.capacity = 3;                                                                 \
		view.item_size = sizeof(T);                                                        \
		view.layout = CUA_APPEND_LAYOUT;                                                   \
		ck_assert_int_eq(cua_append_push_##name(&view, v), 1);                             \
		ck_assert_int_eq(cua_append_push_warp_##name(&view, 1, one, v), 1);                \
		ck_assert_int_eq(cua_append_push_warp_##name(&view, 1, 0, v), 0);                  \
		ck_assert_uint_eq(cursor.demand, 2);                                               \
		ck_assert_int_eq(cua_append_push(&view, &v), 1);                                   \
		ck_assert_int_eq(cua_append_push(&view, &v), 0);                                   \
		ck_assert_int_eq(cua_append_push_##name(&view, v), 0);                             \
		ck_assert_int_eq(cua_append_push_warp_##name(&view, 1, 2, v), 0);                  \
		ck_assert_uint_eq(cursor.demand, 6);                                               \
		for (int k = 0; k < 3; k++)                                                        \
			ck_assert_mem_eq((T *)(void *)memory + k, &v, sizeof(T));                  \
		ck_assert_int_eq(((unsigned char *)memory)[3 * sizeof(T)], 0xee);                  \
	} while (0)
	PUSH(u32, uint32_t, 0xfedcba98u);
	PUSH(i32, int32_t, -5);
	PUSH(u64, uint64_t, 0xfedcba9876543210u);
	PUSH(i64, int64_t, -5);
	PUSH(f32, float, -1.5f);
	PUSH(f64, double, 1e300);
	PUSH(triple, struct triple, t);
#undef PUSH

	/* reserved ranges are consecutive, also across the capacity */
	cursor.demand = 0;
	view.item_size = sizeof(t);
	ck_assert_uint_eq(cua_append_reserve(&view, 2), 0);
	ck_assert_uint_eq(cua_append_reserve(&view, 0), 2);
	ck_assert_uint_eq(cua_append_reserve(&view, (uint64_t)1 << 40), 2);
	ck_assert_uint_eq(cursor.demand, ((uint64_t)1 << 40) + 2);
	triples = cua_append_at(&view, 0);
	ck_assert_ptr_eq(triples, (void *)memory);
	ck_assert_ptr_eq(cua_append_at(&view, 2), triples + 2);
	ck_assert_ptr_null(cua_append_at(&view, 3));
	ck_assert_ptr_null(cua_append_at(&view, UINT64_MAX));
	ck_assert_uint_eq(cua_append_reserve_warp(&view, 1, 1), ((uint64_t)1 << 40) + 2);
	view.capacity = 0;
	ck_assert_ptr_null(cua_append_at(&view, 0));
	ck_assert_int_eq(cua_append_push(&view, &t), 0);
}
END_TEST

/* Functions for another item size leave a buffer unchanged. */
START_TEST(test_other_sizes)
{
	static const uint64_t sizes[] = {0, 1, 4, 8, 12, ((uint64_t)1 << 32) + 4};
	struct cua_append_cursor cursor = CUA_APPEND_CURSOR_INIT;
	struct cua_append_stage_few stage;
	struct cua_append_view view = {0};
	uint64_t memory[10], clean[10];
	const struct triple t = {1, 2, 3};

	view.items = memory;
	view.cursor = &cursor;
	view.capacity = 10;
	view.layout = CUA_APPEND_LAYOUT;
	memset(clean, 0xee, sizeof(clean));
	for (size_t s = 0; s < COUNT(sizes); s++) {
		memcpy(memory, clean, sizeof(memory));
		view.item_size = sizes[s];
#define PUSH(name, T, value)                                                                       \
	if (sizeof(T) != sizes[s]) {                                                               \
		ck_assert_int_eq(cua_append_push_##name(&view, value), 0);                         \
		ck_assert_int_eq(cua_append_push_warp_##name(&view, 1, 1, value), 0);              \
	}
		PUSH(u32, uint32_t, 1)
		PUSH(i32, int32_t, 1)
		PUSH(f32, float, 1)
		PUSH(u64, uint64_t, 1)
		PUSH(i64, int64_t, 1)
		PUSH(f64, double, 1)
		PUSH(triple, struct triple, t)
#undef PUSH
		ck_assert_uint_eq(cursor.demand, 0);
		ck_assert_mem_eq(memory, clean, sizeof(memory));
		/* into the stage, past its end, and flushed */
		cua_append_stage_init_few(&stage);
		for (uint32_t i = 0; i < 9; i++) {
			if (i == 6)
				cua_append_stage_make_room_few(&view, &stage, 3);
			cua_append_stage_push_few(&view, &stage, i);
		}
		cua_append_stage_flush_few(&view, &stage);
		ck_assert_uint_eq(stage.used, 0);
		ck_assert_uint_eq(cursor.demand, sizes[s] == 4 ? 9 : 0);
		if (sizes[s] != 4)
			ck_assert_mem_eq(memory, clean, sizeof(memory));
		cursor.demand = 0;
	}
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("append");
	TCase *tc = tcase_create("append");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_life);
	tcase_add_test(tc, test_filter_arguments);
#if TEST_CUDA
	tcase_add_test(tc, test_memory_kind);
#endif
	tcase_add_loop_test(tc, test_filter_values, 0, (int)COUNT(types));
	tcase_add_test(tc, test_filter_floats);
	tcase_add_test(tc, test_full);
	tcase_add_test(tc, test_typed);
	tcase_add_test(tc, test_random_calls);
	tcase_add_test(tc, test_big);
#if !TEST_CUDA
	tcase_add_loop_test(tc, test_threads, 0, 2);
	tcase_add_test(tc, test_pushes);
	tcase_add_test(tc, test_other_sizes);
#endif
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
