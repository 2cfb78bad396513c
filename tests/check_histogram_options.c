/* SPDX-License-Identifier: MIT */
/*
 * Histograms with all options, on either backend against the serial model: channels, rows, counts
 * of elements outside the range, weights, count types, closed ranges, edges.
 */
#include "histogram_calls.h"

/* ---- random calls ---- */

START_TEST(test_random_calls)
{
	uint64_t seed = test_seed("test_random_calls");
	int rounds = SANITIZED ? 300 : test_scale(300, 800, 2500), done = 0;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t most = (size_t)MOST_BINS * 4;
	char *x = test_malloc(ROOM), *edges = test_malloc((MOST_BINS + 1) * 8);
	char *weights = test_malloc(MOST_N * 8), *ours = test_alloc(ctx, ROOM + 64), text[512];
	char *our_weights = test_alloc(ctx, MOST_N * 8);
	uint64_t *sums = test_malloc(most * 8), *before = test_malloc(most * 8);
	uint64_t *got = test_malloc((most + 1) * 8), *device = test_alloc(ctx, most * 8 + 4);
	uint64_t sides[16], sides_before[16], sides_got[17];
	uint64_t *device_sides = test_alloc(ctx, sizeof(sides));

	for (int i = 0; i < rounds; i++) {
		struct model_call m;
		struct cua_histogram_options o;
		uint64_t r;
		size_t all, size, first, count_size;
		int on_device, with_sides;
		enum cua_status status;

		make_random(&m, &seed, x, edges, weights);
		r = test_random(&seed);
		on_device = r & 1;
		with_sides = r >> 1 & 1;
		size = cua_type_size(m.type);
		first = (r >> 8) % 16;
		all = m.bins * model_counted(&m);
		count_size = m.o.count_type == CUA_U32 ? 4 : 8;
		describe(&m, text, sizeof(text));

		memset(sums, 0, all * 8);
		memset(sides, 0, sizeof(sides));
		model_count(&m, sums, sides);
		for (size_t k = 0; k < all; k++) {
			double f = any_double(&seed);

			before[k] = test_random(&seed);
			if (model_is_float(m.o.weight_type))
				memcpy(&before[k], &f, sizeof(f));
		}
		for (size_t k = 0; k < 16; k++)
			sides_got[k] = sides_before[k] = test_random(&seed);
		sides_got[16] = 77;

		if (m.n)
			ck_assert_cua(
				cua_copy(ctx, ours + first * size, x,
					 (model_place(&m, m.n - 1) + model_channels(&m)) * size));
		ck_assert_cua(cua_copy(ctx, our_weights, weights, MOST_N * 8));
		memset(got, 0xee, (all + 1) * 8);
		for (size_t k = 0; k < all; k++)
			memcpy((char *)got + k * count_size, &before[k], count_size);
		ck_assert_cua(cua_copy(ctx, device, got, all * count_size));
		ck_assert_cua(cua_copy(ctx, device_sides, sides_got, sizeof(sides)));
		o = m.o;
		o.weights = o.weight_type ? our_weights : NULL;
		o.outside = with_sides ? (on_device ? device_sides : sides_got) : NULL;
		ck_assert_cua(cua_context_set_threads(ctx, (unsigned)(1 + (r >> 16) % 3)));
		status = make_call(ctx, &m, &o, ours + first * size, on_device ? device : got);
		if (left_out(status))
			continue;
		EXPECT(!status, "%s: %s", text, cua_status_name(status));
		done++;
		if (on_device) {
			test_download(ctx, got, device, all * count_size);
			test_download(ctx, sides_got, device_sides, sizeof(sides));
		}
		for (size_t k = 0; k < all; k++) {
			uint64_t value = 0, expected = expected_count(&m, before[k], sums[k]);

			memcpy(&value, (char *)got + k * count_size, count_size);
			EXPECT(value == expected, "%s: bin %zu has %llx, not %llx", text, k,
			       (unsigned long long)value, (unsigned long long)expected);
		}
		EXPECT(((unsigned char *)got)[all * count_size] == 0xee, "%s: a bin too many",
		       text);
		for (size_t k = 0; k < 16; k++) {
			uint64_t expected = sides_before[k];

			if (with_sides && k < model_counted(&m) * CUA_HISTOGRAM_SIDES)
				expected = sides[k] + (o.accumulate ? sides_before[k] : 0);
			EXPECT(sides_got[k] == expected, "%s: outside %zu is %llx, not %llx", text,
			       k, (unsigned long long)sides_got[k], (unsigned long long)expected);
		}
	}
	/* only few combinations may be left out */
	ck_assert_int_gt(done, rounds / 100);
	test_free(ctx, ours);
	test_free(ctx, our_weights);
	test_free(ctx, device);
	test_free(ctx, device_sides);
	free(x);
	free(edges);
	free(weights);
	free(sums);
	free(before);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- many elements, so that all workers and blocks have elements ---- */

static void check_long(struct cua_context *ctx, struct model_call *m, const char *what)
{
	size_t all = m->bins * model_counted(m),
	       values = model_place(m, m->n - 1) + model_channels(m);
	size_t size = cua_type_size(m->type);
	uint64_t *sums = test_malloc(all * 8), *got = test_malloc(all * 8), sides[16] = {0},
		 sides_got[16];
	void *x = test_upload(ctx, m->x, values * size);
	struct cua_histogram_options o = m->o;
	enum cua_status status;

	memset(sums, 0, all * 8);
	model_count(m, sums, sides);
	o.outside = sides_got;
	for (int strategy = 0; strategy < 5; strategy++) {
		o.strategy = (enum cua_histogram_strategy)strategy;
		status = make_call(ctx, m, &o, x, got);
		if (left_out(status))
			continue;
		ck_assert_cua(status);
		for (size_t i = 0; i < all; i++)
			EXPECT(got[i] == sums[i],
			       "%s, %s, %u channels, strategy %d: bin %zu has %llu, not %llu", what,
			       cua_type_name(m->type), model_channels(m), strategy, i,
			       (unsigned long long)got[i], (unsigned long long)sums[i]);
		for (unsigned i = 0; i < model_counted(m) * CUA_HISTOGRAM_SIDES; i++)
			EXPECT(sides_got[i] == sides[i],
			       "%s, %s, strategy %d: outside %u is %llu, not %llu", what,
			       cua_type_name(m->type), strategy, i,
			       (unsigned long long)sides_got[i], (unsigned long long)sides[i]);
	}
	test_free(ctx, x);
	free(sums);
	free(got);
}

/* Types of 8 and 16 bits may be counted by value. The data is constant, sorted or random. */
START_TEST(test_long)
{
	const size_t n = 530001;
	const int quick = test_quick() || SANITIZED;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_long");
	uint16_t *x = test_malloc(n * 2 * 2);

	for (int kind = 0; kind < (quick ? 1 : 3); kind++) {
		for (size_t i = 0; i < n * 2; i++)
			x[i] = kind == 0   ? (uint16_t)test_random(&seed)
			       : kind == 1 ? 0x3c55
					   : (uint16_t)(i * 65536 / (n * 2));
		for (unsigned t = 0; t < COUNT(model_types); t++)
			for (unsigned channels = 1; channels < 4; channels++) {
				const double edges[] = {-100, -0.5, 0, 1, 77, 100};
				struct model_call m = {
					.rule = MODEL_EVEN, .type = model_types[t], .x = x};
				char typed[6 * 8];

				if (cua_type_size(m.type) > 2 || (channels > 1 && (kind || quick)))
					continue;
				m.o = no_options();
				ck_assert_cua(cua_context_set_threads(ctx, channels > 1 ? 1 : 2));
				m.o.channels = channels;
				m.o.closed = kind == 1;
				m.n = n * 4 / cua_type_size(m.type) / channels;
				m.bins = 300;
				if (model_is_float(m.type)) {
					m.lower.f = -10;
					m.upper.f = 1000;
				} else {
					m.lower.i = m.type == CUA_I8 ? -100 : 3;
					m.upper.i =
						m.type == CUA_I8 || m.type == CUA_U8 ? 99 : 40000;
				}
				check_long(ctx, &m, "even");
				m.rule = MODEL_EDGES;
				m.bins = 5;
				for (size_t i = 0; i < 6; i++)
					store(m.type, typed, i, edges[i],
					      (uint64_t)(int64_t)(edges[i] +
								  (model_is_float(m.type) ||
										   m.type ==
											   CUA_I8 ||
										   m.type == CUA_I16
									   ? 0
									   : 100)));
				m.edges = typed;
				check_long(ctx, &m, "edges");
			}
	}
	free(x);
	cua_context_destroy(ctx);
}
END_TEST

/* As many bins as integers, or a multiple; runs of all lengths; some elements outside. */
START_TEST(test_whole_bins)
{
	static const enum cua_type types[] = {CUA_I16, CUA_U16, CUA_I32, CUA_U32};
	static const uint32_t widths[] = {1, 7, 100, 30000}, runs[] = {1, 40, 777};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = test_quick() ? 20000 : 100003;
	uint32_t *x = test_malloc(n * sizeof(*x));

	for (size_t i = 0; i < COUNT(types) * COUNT(widths) * 4; i++) {
		struct model_call m;

		memset(&m, 0, sizeof(m));
		m.o = no_options();
		m.o.closed = i & 1;
		m.rule = MODEL_EVEN;
		m.type = types[i / 4 % COUNT(types)];
		m.lower.i = m.type == CUA_I16 || m.type == CUA_I32 ? -5 : 2;
		m.upper.i = m.lower.i + widths[i / 16];
		m.bins = widths[i / 16] * (i & 2 ? 3 : 1);
		m.n = n;
		m.x = x;
		for (size_t k = 0; k < n; k++) {
			uint32_t r =
				(uint32_t)(k / runs[(i + k / 5000) % COUNT(runs)]) * 2654435761u;
			int32_t v =
				(int32_t)m.lower.i - 2 + (int32_t)((r >> 8) % (widths[i / 16] + 5));

			store(m.type, x, k, 0, (uint64_t)(int64_t)v);
		}
		check_long(ctx, &m, "whole bins");
	}
	free(x);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- cases with known answers ---- */

/* Known pitfalls of histograms, with literal results. */
START_TEST(test_known)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t counts[512];
	int16_t *i16 = test_malloc(65536 * 2);
	int8_t i8[256];
	struct cua_bf16 bf16[256];
	struct cua_f16 f16[4];
	uint64_t u64[6] = {
		0, 1, (uint64_t)1 << 63, ((uint64_t)1 << 63) - 1, UINT64_MAX, UINT64_MAX - 1};
	int64_t i64[4] = {INT64_MIN, -1, 0, INT64_MAX};
	struct cua_histogram_options closed = no_options();
	enum cua_status status;
	void *x;

#define KNOWN(data, n, type, options, bins, lower, upper)                                          \
	do {                                                                                       \
		x = test_upload(ctx, data, (n)*cua_type_size(type));                               \
		memset(counts, 0xee, sizeof(counts));                                              \
		status = cua_histogram_even(ctx, options, type, n, x, bins, lower, upper, counts); \
		test_free(ctx, x);                                                                 \
	} while (0)
	closed.closed = 1;
	/* all signed 16-bit values */
	for (int i = 0; i < 65536; i++)
		i16[i] = (int16_t)(i - 32768);
	KNOWN(i16, 65536, CUA_I16, NULL, 4, &(int64_t){-32768}, &(int64_t){32768});
	if (!left_out(status)) {
		ck_assert_cua(status);
		for (int i = 0; i < 4; i++)
			ck_assert_uint_eq(counts[i], 16384);
	}
	KNOWN(i16, 65536, CUA_I16, &closed, 5, &(int64_t){-32768}, &(int64_t){32767});
	if (!left_out(status)) {
		/* 65535 is 5 times 13107: the last bin includes the upper limit */
		ck_assert_cua(status);
		for (int i = 0; i < 5; i++)
			ck_assert_uint_eq(counts[i], 13107 + (i == 4));
	}
	/* negative bytes */
	for (int i = 0; i < 256; i++)
		i8[i] = (int8_t)(i - 128);
	KNOWN(i8, 256, CUA_I8, NULL, 256, &(int64_t){-128}, &(int64_t){128});
	if (!left_out(status)) {
		ck_assert_cua(status);
		for (int i = 0; i < 256; i++)
			ck_assert_uint_eq(counts[i], 1);
	}
	KNOWN(i8, 256, CUA_I8, NULL, 3, &(int64_t){-128}, &(int64_t){-119});
	if (!left_out(status)) {
		ck_assert_cua(status);
		for (int i = 0; i < 3; i++)
			ck_assert_uint_eq(counts[i], 3);
	}
	/* more bins than a bf16 has digits: from 256 to 512 only even numbers are bf16 */
	for (int i = 0; i < 256; i++)
		bf16[i] = cua_bf16_from_f32((float)(2 * i));
	KNOWN(bf16, 256, CUA_BF16, NULL, 510, &(double){0}, &(double){510});
	if (!left_out(status)) {
		ck_assert_cua(status);
		for (int i = 0; i < 510; i++)
			ck_assert_uint_eq(counts[i], i % 2 == 0);
		ck_assert_uint_eq(counts[510], 0xeeeeeeeeeeeeeeeeu);
	}
	/* f16: limits beyond its largest number */
	for (int i = 0; i < 4; i++)
		f16[i].bits = (uint16_t)(i == 3 ? 0x7bff : 0x3c00 + i);
	KNOWN(f16, 4, CUA_F16, NULL, 2, &(double){0}, &(double){131008});
	if (!left_out(status)) {
		ck_assert_cua(status);
		ck_assert_uint_eq(counts[0], 3); /* 65504 is in bin 1 */
		ck_assert_uint_eq(counts[1], 1);
	}
	/* pitfall: bins computed by floats or by a 32-bit multiplication */
	for (int i = 0; i < 65536; i++)
		i16[i] = (int16_t)(i % 10000);
	KNOWN(i16, 10000, CUA_I16, NULL, 7, &(int64_t){0}, &(int64_t){10000});
	if (!left_out(status)) {
		/* the least x of bin i is 10000 i / 7, rounded up */
		ck_assert_cua(status);
		for (int i = 0; i < 7; i++)
			ck_assert_uint_eq(counts[i], (unsigned)(((i + 1) * 10000 + 6) / 7 -
								(i * 10000 + 6) / 7));
	}
	/* the whole range of 64 bits */
	KNOWN(u64, 6, CUA_U64, &closed, 2, &(uint64_t){0}, &(uint64_t){UINT64_MAX});
	if (!left_out(status)) {
		/* 2 x / (2^64 - 1) is 1 from 2^63 on */
		ck_assert_cua(status);
		ck_assert_uint_eq(counts[0], 3);
		ck_assert_uint_eq(counts[1], 3);
	}
	KNOWN(u64, 6, CUA_U64, NULL, 1, &(uint64_t){1}, &(uint64_t){UINT64_MAX});
	if (!left_out(status)) {
		ck_assert_cua(status);
		ck_assert_uint_eq(counts[0], 4);
	}
	KNOWN(i64, 4, CUA_I64, &closed, 4, &(int64_t){INT64_MIN}, &(int64_t){INT64_MAX});
	if (!left_out(status)) {
		/* -1 and 0 are on both sides of the midpoint, and the midpoint is no integer */
		ck_assert_cua(status);
		ck_assert_uint_eq(counts[0], 1);
		ck_assert_uint_eq(counts[1], 1);
		ck_assert_uint_eq(counts[2], 1);
		ck_assert_uint_eq(counts[3], 1);
	}
#undef KNOWN
	free(i16);
	cua_context_destroy(ctx);
}
END_TEST

/* Edges that are equal, infinite or zero, and elements between them. */
START_TEST(test_known_edges)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const float edges[] = {-HUGE_VALF, -0.0f, 0.0f, 1, 1, 1, HUGE_VALF};
	const float values[] = {-HUGE_VALF, -1, -0.0f,     0.0f,       0.5f,
				1,          2,  HUGE_VALF, (float)NAN, -(float)NAN};
	const uint64_t open[6] = {2, 0, 3, 0, 0, 2}, closed[6] = {2, 0, 3, 0, 0, 3};
	struct cua_histogram_options o = no_options();
	uint64_t counts[6], outside[4];
	float *x = test_upload(ctx, values, sizeof(values));
	enum cua_status status;

	o.outside = outside;
	for (int i = 0; i < 2; i++) {
		o.closed = i;
		status = cua_histogram_edges(ctx, &o, CUA_F32, COUNT(values), x, 6, edges, counts);
		if (left_out(status))
			continue;
		ck_assert_cua(status);
		ck_assert_mem_eq(counts, i ? closed : open, sizeof(counts));
		ck_assert_uint_eq(outside[CUA_HISTOGRAM_BELOW], 0);
		ck_assert_uint_eq(outside[CUA_HISTOGRAM_ABOVE], i ? 0 : 1);
		ck_assert_uint_eq(outside[CUA_HISTOGRAM_NAN], 2);
		ck_assert_uint_eq(outside[CUA_HISTOGRAM_REFUSED], 0);
	}
	status = cua_histogram_edges_f32(ctx, COUNT(values), x, 2, edges + 1, counts);
	if (!left_out(status)) {
		ck_assert_cua(status);
		ck_assert_uint_eq(counts[0], 0);
		ck_assert_uint_eq(counts[1], 3);
	}
	test_free(ctx, x);
	cua_context_destroy(ctx);
}
END_TEST

/* The greatest number of edges, most of them distinct. */
START_TEST(test_most_edges)
{
	const size_t bins = CUA_HISTOGRAM_MAX_EDGES - 1, n = 100003;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t *edges = test_malloc((bins + 1) * 8), *values = test_malloc(n * 8);
	uint64_t *counts = test_malloc(bins * 8), *expected = test_malloc(bins * 8), *x;
	enum cua_status status;

	/* edge i is i^2, so the bin of v is its integer square root */
	for (size_t i = 0; i <= bins; i++)
		edges[i] = (uint64_t)i * i;
	memset(expected, 0, bins * 8);
	for (size_t i = 0; i < n; i++) {
		size_t root = i * 7919 % bins;

		values[i] = (uint64_t)root * root + (i % 3 == 0 ? 0 : i % 3 == 1 ? root : 2 * root);
		expected[root]++;
	}
	x = test_upload(ctx, values, n * 8);
	status = cua_histogram_edges(ctx, NULL, CUA_U64, n, x, bins, edges, counts);
	if (!left_out(status)) {
		ck_assert_cua(status);
		for (size_t i = 0; i < bins; i++)
			EXPECT(counts[i] == expected[i], "bin %zu has %llu, not %llu", i,
			       (unsigned long long)counts[i], (unsigned long long)expected[i]);
	}
	test_free(ctx, x);
	free(edges);
	free(values);
	free(counts);
	free(expected);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * A single weight under a limit that is a power of two. The limit is 2^62 units, so a weight of 1
 * unit is exact.
 */
START_TEST(test_unit)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_histogram_options o = no_options();
	double *weight = test_alloc(ctx, sizeof(*weight));
	float *x = test_alloc(ctx, sizeof(*x));
	const float one = 1;

	ck_assert_cua(cua_copy(ctx, x, &one, sizeof(one)));
	o.weight_type = CUA_F64;
	o.weights = weight;
	for (int e = -960; e <= 1023; e += e == 1020 ? 3 : 60) {
		const double limit = ldexp(1, e), unit = ldexp(1, e - 62);
		/* the limit, 1 unit, and less than half a unit */
		const double given[3] = {limit, unit, unit * 0.375}, expected[3] = {limit, unit, 0};

		o.weight_limit = limit;
		for (int i = 0; i < 3; i++) {
			double sum = -1;

			ck_assert_cua(cua_copy(ctx, weight, &given[i], sizeof(*weight)));
			ck_assert_cua(cua_histogram_even(ctx, &o, CUA_F32, 1, x, 1, &(double){0},
							 &(double){10}, &sum));
			EXPECT(sum == expected[i], "limit 2^%d, weight %a: %a, not %a", e, given[i],
			       sum, expected[i]);
		}
	}
	test_free(ctx, x);
	test_free(ctx, weight);
	cua_context_destroy(ctx);
}
END_TEST

/* Float weights give the same bits in any order and with any number of threads. */
START_TEST(test_order)
{
	const size_t n = 300007, bins = 10;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_order");
	float *values = test_malloc(n * 4), *w = test_malloc(n * 4), *x, *weights;
	double first[10], again[10];
	struct cua_histogram_options o = no_options();
	enum cua_status status = CUA_OK;

	for (size_t i = 0; i < n; i++) {
		values[i] = (float)(test_random(&seed) % bins);
		w[i] = (float)((double)(test_random(&seed) >> 11) * 0x1p-53 - 0.25) *
		       (i % 7 ? 1.0f : 1e-6f);
	}
	o.weight_type = CUA_F32;
	for (int round = 0; round < 5 && !left_out(status); round++) {
		x = test_upload(ctx, values, n * 4);
		weights = test_upload(ctx, w, n * 4);
		o.weights = weights;
		o.strategy = (enum cua_histogram_strategy)round;
		ck_assert_cua(cua_context_set_threads(ctx, (unsigned)round + 1));
		status = cua_histogram_even(ctx, &o, CUA_F32, n, x, bins, &(double){0},
					    &(double){10}, round ? again : first);
		if (!left_out(status)) {
			ck_assert_cua(status);
			ck_assert_mem_eq(round ? again : first, first, sizeof(first));
		}
		test_free(ctx, x);
		test_free(ctx, weights);
		/* another order */
		for (size_t i = n - 1; i; i--) {
			size_t j = test_random(&seed) % (i + 1);
			float t = values[i];

			values[i] = values[j];
			values[j] = t;
			t = w[i];
			w[i] = w[j];
			w[j] = t;
		}
	}
	free(values);
	free(w);
	cua_context_destroy(ctx);
}
END_TEST

/* After a reserve of the reported workspace, a call allocates nothing more. */
START_TEST(test_workspace)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = 5000, bins = 3000;
	uint64_t *counts = test_malloc(bins * 2 * 8), outside[8];
	double edges[3001];
	double *x = test_alloc(ctx, n * 2 * 8), *weights = test_alloc(ctx, n * 8);
	struct cua_histogram_options o = no_options();
	size_t bytes = 0;
	enum cua_status status;

	for (size_t i = 0; i <= bins; i++)
		edges[i] = (double)i;
	o.channels = 2;
	o.weight_type = CUA_F64;
	o.weights = weights;
	o.outside = outside;
	ck_assert_cua(cua_histogram_workspace(ctx, &o, bins, &bytes));
	/* a sum and a result for each bin and channel, and the edges */
	ck_assert_uint_ge(bytes, 2 * bins * 2 * 8 + (bins + 1) * 8);
	ck_assert_cua(cua_context_reserve(ctx, bytes));
	status = cua_histogram_edges(ctx, &o, CUA_F64, n, x, bins, edges, counts);
	if (!left_out(status))
		ck_assert_cua(status);
	o.weight_type = CUA_F16;
	ck_assert_status(cua_histogram_workspace(ctx, &o, bins, &bytes), CUA_ERROR_TYPE);
	test_free(ctx, x);
	test_free(ctx, weights);
	free(counts);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("histogram_options");
	TCase *tc = tcase_create("histogram_options");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_random_calls);
	tcase_add_test(tc, test_long);
	tcase_add_test(tc, test_whole_bins);
	tcase_add_test(tc, test_known);
	tcase_add_test(tc, test_known_edges);
	tcase_add_test(tc, test_most_edges);
	tcase_add_test(tc, test_unit);
	tcase_add_test(tc, test_order);
	tcase_add_test(tc, test_workspace);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
