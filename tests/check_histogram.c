/* SPDX-License-Identifier: MIT */
/*
 * Histograms on either backend against a serial model: their arguments, and calls with minimal
 * options. check_histogram_options.c tests the other options, check_histogram_rules.c the bin
 * functions.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "histogram_model.h"

#include <sys/mman.h>

static const enum cua_histogram_strategy strategies[] = {
	CUA_HISTOGRAM_AUTO, CUA_HISTOGRAM_BLOCKED, CUA_HISTOGRAM_INTERLEAVED,
	CUA_HISTOGRAM_PRIVATIZED, CUA_HISTOGRAM_AGGREGATED};

static struct cua_histogram_options options_of(enum cua_histogram_strategy strategy, int accumulate)
{
	struct cua_histogram_options o = CUA_HISTOGRAM_OPTIONS_INIT;

	o.strategy = strategy;
	o.accumulate = accumulate;
	return o;
}

/* The counts of even bins by the model. */
static void model_even(enum cua_type type, size_t n, const void *x, size_t bins, union limit lower,
		       union limit upper, uint64_t *counts)
{
	struct model_call m = {.rule = MODEL_EVEN, .type = type, .n = n, .x = x, .bins = bins};
	uint64_t outside[CUA_HISTOGRAM_SIDES];

	m.lower = lower;
	m.upper = upper;
	memset(counts, 0, bins * sizeof(*counts));
	model_count(&m, counts, outside);
}

static void check_counts(const uint64_t *got, const uint64_t *expected, size_t bins,
			 const char *what, int strategy)
{
	/* a single assertion: one for each bin would take longer than the histogram */
	for (size_t i = 0; i < bins; i++)
		if (got[i] != expected[i])
			ck_abort_msg("%s, strategy %d: bin %zu of %zu has %llu, not %llu", what,
				     strategy, i, bins, (unsigned long long)got[i],
				     (unsigned long long)expected[i]);
}

/* ---- arguments ---- */

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_histogram_options o = CUA_HISTOGRAM_OPTIONS_INIT;
	const unsigned char text[8] = {'a', 'b', 'c', 'd', 'e', 'z', 'A', 0};
	const int64_t zero = 0, ten = 10;
	const int32_t edges[5] = {-5, 0, 0, 7, 6};
	const float f_edges[4] = {-1, 0, 1, (float)NAN};
	const double f_zero = 0, f_ten = 10, f_nan = (double)NAN, f_infinite = HUGE_VAL;
	uint64_t *counts = test_malloc(256 * 8), *untouched = test_malloc(256 * 8);
	unsigned char *x = test_upload(ctx, text, sizeof(text));
	uint64_t *wide_x;
	size_t bytes = 77;

	memset(counts, 0xee, 256 * 8);
	wide_x = test_upload(ctx, counts, 256 * 8);
	memcpy(untouched, counts, 256 * 8);

	ck_assert_status(cua_histogram_bytes(NULL, NULL, 8, x, counts), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_bytes(ctx, NULL, 8, NULL, counts), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_bytes(ctx, NULL, 8, x, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_bytes(ctx, NULL, SIZE_MAX, x, counts), CUA_ERROR_SIZE);
	ck_assert_status(cua_histogram_bytes(ctx, NULL, 8, x, (uint64_t *)((char *)counts + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_histogram_letters(NULL, NULL, 8, x, counts), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_letters(ctx, NULL, 8, NULL, counts), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_letters(ctx, NULL, 8, x, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_letters(ctx, NULL, SIZE_MAX, x, counts), CUA_ERROR_SIZE);
	ck_assert_status(cua_histogram_letters(ctx, NULL, 8, x, (uint64_t *)((char *)counts + 1)),
			 CUA_ERROR_ALIGNMENT);
	/* overlaps: counts in x, at its end, and x behind the first counts */
	ck_assert_status(cua_histogram_bytes(ctx, NULL, 256 * 8, wide_x, wide_x),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_histogram_letters(ctx, NULL, 249 * 8 + 1, wide_x, wide_x + 249),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_histogram_bytes(ctx, NULL, 8, (char *)wide_x + 1000, wide_x),
			 CUA_ERROR_OVERLAP);

	/* options */
	o.struct_size = 0;
	ck_assert_status(cua_histogram_bytes(ctx, &o, 8, x, counts), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_workspace(ctx, &o, 8, &bytes), CUA_ERROR_VALUE);
	o.struct_size = sizeof(o) + 1;
	ck_assert_status(cua_histogram_letters(ctx, &o, 8, x, counts), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_even(ctx, &o, CUA_U8, 8, x, 2, &zero, &ten, counts),
			 CUA_ERROR_VALUE);
	o.struct_size = sizeof(o);
	o.strategy = (enum cua_histogram_strategy)5;
	ck_assert_status(cua_histogram_bytes(ctx, &o, 8, x, counts), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_even(ctx, &o, CUA_U8, 8, x, 2, &zero, &ten, counts),
			 CUA_ERROR_VALUE);
	o.strategy = (enum cua_histogram_strategy) - 1;
	ck_assert_status(cua_histogram_letters(ctx, &o, 8, x, counts), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_workspace(ctx, &o, 8, &bytes), CUA_ERROR_VALUE);

	/* even bins */
#define EVEN(status, ...) ck_assert_status(cua_histogram_even(__VA_ARGS__), status)
	EVEN(CUA_ERROR_NULL, NULL, NULL, CUA_U8, 8, x, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_NULL, ctx, NULL, CUA_U8, 8, NULL, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_NULL, ctx, NULL, CUA_U8, 8, x, 2, NULL, &ten, counts);
	EVEN(CUA_ERROR_NULL, ctx, NULL, CUA_U8, 8, x, 2, &zero, NULL, counts);
	EVEN(CUA_ERROR_NULL, ctx, NULL, CUA_U8, 8, x, 2, &zero, &ten, NULL);
	EVEN(CUA_ERROR_TYPE, ctx, NULL, CUA_U128, 1, x, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_TYPE, ctx, NULL, CUA_COMPLEX_F32, 1, x, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_TYPE, ctx, NULL, (enum cua_type)0, 1, x, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_TYPE, ctx, NULL, (enum cua_type)99, 1, x, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_U8, 8, x, 0, &zero, &ten, counts);
	EVEN(CUA_ERROR_SIZE, ctx, NULL, CUA_U8, 8, x, CUA_HISTOGRAM_MAX_BINS + 1, &zero, &ten,
	     counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_U8, 8, x, 2, &ten, &ten, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_U8, 8, x, 2, &ten, &zero, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_F32, 2, x, 0, &f_zero, &f_ten, counts);
	EVEN(CUA_ERROR_SIZE, ctx, NULL, CUA_F32, 2, x, SIZE_MAX, &f_zero, &f_ten, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_F32, 2, x, 2, &f_ten, &f_ten, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_F64, 1, x, 2, &f_ten, &f_zero, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_F64, 1, x, 2, &f_zero, &f_nan, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_F64, 1, x, 2, &f_nan, &f_ten, counts);
	EVEN(CUA_ERROR_VALUE, ctx, NULL, CUA_F64, 1, x, 2, &f_zero, &f_infinite, counts);
	EVEN(CUA_ERROR_SIZE, ctx, NULL, CUA_U32, SIZE_MAX / 4, x, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_U16, 2, x + 1, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_U32, 1, x + 2, 2, &zero, &ten, counts);
	EVEN(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_F64, 1, (char *)wide_x + 4, 2, &f_zero, &f_ten,
	     counts);
	EVEN(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_U8, 8, x, 2, &zero, &ten,
	     (uint64_t *)((char *)counts + 2));
	EVEN(CUA_ERROR_OVERLAP, ctx, NULL, CUA_U32, 4, wide_x, 2, &zero, &ten, wide_x + 1);
#undef EVEN

	ck_assert_status(cua_histogram_workspace(NULL, NULL, 8, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_workspace(ctx, NULL, 8, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_histogram_workspace(ctx, NULL, 0, &bytes), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_workspace(ctx, NULL, CUA_HISTOGRAM_MAX_BINS + 1, &bytes),
			 CUA_ERROR_SIZE);
	/* the other options */
#define OPTIONS(status, ...)                                                                       \
	do {                                                                                       \
		o = options_of(CUA_HISTOGRAM_AUTO, 0);                                             \
		__VA_ARGS__;                                                                       \
		ck_assert_status(cua_histogram_bytes(ctx, &o, 8, x, counts), status);              \
	} while (0)
	OPTIONS(CUA_ERROR_VALUE, o.channels = 5);
	OPTIONS(CUA_ERROR_VALUE, (o.channels = 2, o.counted = 3));
	OPTIONS(CUA_ERROR_VALUE, o.counted = 2);
	OPTIONS(CUA_ERROR_VALUE, o.width = 3);
	OPTIONS(CUA_ERROR_VALUE, o.width = 9);
	OPTIONS(CUA_ERROR_VALUE, o.pitch = 8);
	OPTIONS(CUA_ERROR_VALUE, (o.width = 4, o.pitch = 3));
	OPTIONS(CUA_ERROR_VALUE, (o.width = 4, o.channels = 3, o.pitch = 11));
	OPTIONS(CUA_ERROR_SIZE, (o.width = 4, o.pitch = SIZE_MAX / 2));
	OPTIONS(CUA_ERROR_SIZE, (o.width = 4, o.pitch = SIZE_MAX / 2 - 2));
	OPTIONS(CUA_ERROR_TYPE, o.count_type = CUA_F64);
	OPTIONS(CUA_ERROR_TYPE, o.count_type = CUA_I64);
	OPTIONS(CUA_ERROR_TYPE, o.weights = wide_x);
	OPTIONS(CUA_ERROR_NULL, o.weight_type = CUA_F32);
	OPTIONS(CUA_ERROR_TYPE, (o.weights = wide_x, o.weight_type = CUA_F16));
	OPTIONS(CUA_ERROR_TYPE, (o.weights = wide_x, o.weight_type = CUA_U8));
	OPTIONS(CUA_ERROR_TYPE,
		(o.weights = wide_x, o.weight_type = CUA_F32, o.count_type = CUA_U64));
	OPTIONS(CUA_ERROR_VALUE,
		(o.weights = wide_x, o.weight_type = CUA_F64, o.weight_limit = -1));
	OPTIONS(CUA_ERROR_VALUE,
		(o.weights = wide_x, o.weight_type = CUA_F64, o.weight_limit = HUGE_VAL));
	OPTIONS(CUA_ERROR_VALUE,
		(o.weights = wide_x, o.weight_type = CUA_F64, o.weight_limit = (double)NAN));
	OPTIONS(CUA_ERROR_ALIGNMENT, (o.weights = (char *)wide_x + 2, o.weight_type = CUA_F32));
	OPTIONS(CUA_ERROR_ALIGNMENT, o.outside = (uint64_t *)((char *)wide_x + 4));
	OPTIONS(CUA_ERROR_OVERLAP, o.outside = counts + 255);
	OPTIONS(CUA_ERROR_OVERLAP, o.outside = (uint64_t *)(void *)x);
	o = options_of(CUA_HISTOGRAM_AUTO, 0);
	o.outside = wide_x + 15;
	o.weights = wide_x;
	o.weight_type = CUA_U64;
	ck_assert_status(cua_histogram_bytes(ctx, &o, 16, wide_x + 100, counts), CUA_ERROR_OVERLAP);
	o.outside = NULL;
	ck_assert_status(cua_histogram_letters(ctx, &o, 8, x, wide_x + 1), CUA_ERROR_OVERLAP);
	o = options_of(CUA_HISTOGRAM_AUTO, 0);
	o.width = 2;
	o.pitch = 5;
	ck_assert_status(cua_histogram_even(ctx, &o, CUA_U16, 4, wide_x, 2, &zero, &ten, counts),
			 CUA_ERROR_ALIGNMENT);
	/* rows that overlap the counts only because of their pitch */
	o.pitch = 16;
	ck_assert_status(
		cua_histogram_even(ctx, &o, CUA_U16, 4, wide_x, 2, &zero, &ten, wide_x + 1),
		CUA_ERROR_OVERLAP);
#undef OPTIONS

	/* edges */
#define EDGES(status, ...) ck_assert_status(cua_histogram_edges(__VA_ARGS__), status)
	EDGES(CUA_ERROR_NULL, NULL, NULL, CUA_I32, 2, x, 2, edges, counts);
	EDGES(CUA_ERROR_NULL, ctx, NULL, CUA_I32, 2, NULL, 2, edges, counts);
	EDGES(CUA_ERROR_NULL, ctx, NULL, CUA_I32, 2, x, 2, NULL, counts);
	EDGES(CUA_ERROR_NULL, ctx, NULL, CUA_I32, 2, x, 2, edges, NULL);
	EDGES(CUA_ERROR_TYPE, ctx, NULL, CUA_U128, 1, x, 2, edges, counts);
	EDGES(CUA_ERROR_VALUE, ctx, NULL, CUA_I32, 2, x, 0, edges, counts);
	EDGES(CUA_ERROR_SIZE, ctx, NULL, CUA_I32, 2, x, CUA_HISTOGRAM_MAX_EDGES, edges, counts);
	EDGES(CUA_ERROR_VALUE, ctx, NULL, CUA_I32, 2, x, 4, edges, counts);
	EDGES(CUA_ERROR_VALUE, ctx, NULL, CUA_I32, 0, NULL, 4, edges, counts);
	EDGES(CUA_ERROR_VALUE, ctx, NULL, CUA_F32, 2, x, 3, f_edges, counts);
	EDGES(CUA_ERROR_VALUE, ctx, NULL, CUA_U32, 2, x, 3, edges, counts); /* -5 is a large U32 */
	EDGES(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_I32, 2, x, 2, (const char *)edges + 2, counts);
	EDGES(CUA_ERROR_OVERLAP, ctx, NULL, CUA_U64, 1, x, 2, counts + 1, counts);
#undef EDGES

	ck_assert_uint_eq(bytes, 77);
	ck_assert_mem_eq(counts, untouched, 256 * 8);

	/* a struct_size that no release had */
	o = options_of(CUA_HISTOGRAM_BLOCKED, 1);
	o.struct_size = offsetof(struct cua_histogram_options, accumulate);
	ck_assert_status(cua_histogram_letters(ctx, &o, 8, x, counts), CUA_ERROR_VALUE);
	/* adjacent: counts next to x */
	o = options_of(CUA_HISTOGRAM_BLOCKED, 0);
	ck_assert_cua(cua_histogram_letters(ctx, &o, 8, x, counts));
	ck_assert_uint_eq(counts[0], 4);
	ck_assert_uint_eq(counts[1], 1);
	ck_assert_uint_eq(counts[6], 1);
	ck_assert_uint_eq(counts[7], untouched[7]);
	ck_assert_cua(cua_histogram_letters(ctx, NULL, 199 * 8, wide_x + 7, wide_x));
	ck_assert_cua(cua_context_synchronize(ctx));
	test_free(ctx, x);
	test_free(ctx, wide_x);
	free(counts);
	free(untouched);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
START_TEST(test_memory_kind)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA),
			   *cpu = test_context(CUA_BACKEND_CPU);
	const int64_t zero = 0, ten = 10;
	uint64_t counts[256], *device = test_alloc(ctx, sizeof(counts));
	char *ordinary = test_malloc(100), *x = test_alloc(ctx, 100);
	struct cua_histogram_options o = options_of(CUA_HISTOGRAM_AUTO, 0);
	enum cua_status status;

	memset(counts, 0xee, sizeof(counts));
	memset(ordinary, 'b', 100);
	/* wrong memory kind: a CPU context refuses device memory */
	ck_assert_status(cua_histogram_bytes(cpu, NULL, 100, x, counts), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_histogram_letters(cpu, NULL, 100, x, counts), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_histogram_even(cpu, NULL, CUA_U8, 100, x, 3, &zero, &ten, counts),
			 CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_histogram_bytes(cpu, NULL, 100, ordinary, device),
			 CUA_ERROR_MEMORY_KIND);
	/* the host reads edges on either backend */
	ck_assert_status(cua_histogram_edges(cpu, NULL, CUA_U8, 100, ordinary, 10, x, counts),
			 CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_histogram_edges(ctx, NULL, CUA_U8, 100, x, 10, x, counts),
			 CUA_ERROR_MEMORY_KIND);
	o.outside = device;
	ck_assert_status(cua_histogram_bytes(cpu, &o, 100, ordinary, counts),
			 CUA_ERROR_MEMORY_KIND);
	o.outside = NULL;
	o.weights = device;
	o.weight_type = CUA_U32;
	ck_assert_status(cua_histogram_bytes(cpu, &o, 100, ordinary, counts),
			 CUA_ERROR_MEMORY_KIND);
	/* ordinary host memory: accepted on a coherent system */
	status = cua_histogram_letters(ctx, NULL, 100, ordinary, counts);
	ck_assert(status == CUA_ERROR_MEMORY_KIND || status == CUA_OK);
	ck_assert_uint_eq(counts[0], status ? 0xeeeeeeeeeeeeeeeeu : 100);
	test_free(ctx, x);
	test_free(ctx, device);
	free(ordinary);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* ---- bytes and letters ---- */

static void make_bytes(unsigned char *p, size_t n, int kind, uint64_t *state)
{
	static const char text[] =
		"The quick brown fox jumps over the lazy dog; 0123456789 {|} `az` ";

	for (size_t i = 0; i < n; i++)
		switch (kind) {
		case 0: p[i] = (unsigned char)test_random(state); break;
		case 1: p[i] = 'q'; break;
		case 2: p[i] = (unsigned char)text[i % (sizeof(text) - 1)]; break;
		case 3: p[i] = (unsigned char)(i / 37); break; /* runs of all values */
		default: p[i] = 255; break;
		}
}

/* All strategies, lengths, alignments, kinds of data; counts on the host and in backend memory. */
START_TEST(test_bytes_letters)
{
	static const size_t lengths[] = {0,    1,    2,     15,    16,     17,     31,     33,
					 1000, 8191, 16384, 65537, 131072, 200003, 1000003};
	size_t n_lengths = test_quick() ? 12 : COUNT(lengths), most = lengths[n_lengths - 1];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_bytes_letters");
	unsigned char *host = test_malloc(most + 16), *x;
	uint64_t *device = test_alloc(ctx, 256 * 8), got[256];

	for (int kind = 0; kind < 5; kind++) {
		make_bytes(host, most + 16, kind, &seed);
		x = test_upload(ctx, host, most + 16);
		for (size_t l = 0; l < n_lengths; l++) {
			size_t n = lengths[l], first = test_random(&seed) % 16;
			uint64_t bytes[256] = {0}, letters[7] = {0};

			for (size_t i = 0; i < n; i++) {
				size_t bin = model_letter_bin(host[first + i]);

				bytes[host[first + i]]++;
				if (bin < 7)
					letters[bin]++;
			}
			for (size_t s = 0; s < COUNT(strategies); s++) {
				struct cua_histogram_options o = options_of(strategies[s], 0);

				memset(got, 0xee, sizeof(got));
				ck_assert_cua(cua_histogram_bytes(ctx, &o, n, x + first, got));
				check_counts(got, bytes, 256, "bytes", (int)s);
				memset(got, 0xee, sizeof(got));
				ck_assert_cua(cua_copy(ctx, device, got, sizeof(got)));
				ck_assert_cua(cua_histogram_letters(ctx, &o, n, x + first, device));
				test_download(ctx, got, device, sizeof(got));
				check_counts(got, letters, 7, "letters", (int)s);
				ck_assert_uint_eq(got[7], 0xeeeeeeeeeeeeeeeeu);
			}
		}
		test_free(ctx, x);
	}
	test_free(ctx, device);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

/* n = 0 clears; accumulate adds, for counts in any memory. */
START_TEST(test_accumulate)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_histogram_options more = options_of(CUA_HISTOGRAM_AUTO, 1);
	const int64_t zero = 0, all = 256;
	unsigned char host[1000], *x;
	uint64_t counts[256], expected[256], *device;

	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)(i * i);
	x = test_upload(ctx, host, sizeof(host));
	memset(counts, 0xee, sizeof(counts));
	device = test_upload(ctx, counts, sizeof(counts));
	memset(expected, 0, sizeof(expected));

	ck_assert_cua(cua_histogram_bytes(ctx, NULL, 0, NULL, counts));
	check_counts(counts, expected, 256, "none", 0);
	ck_assert_cua(cua_histogram_even(ctx, NULL, CUA_U8, 0, NULL, 256, &zero, &all, device));
	test_download(ctx, counts, device, sizeof(counts));
	check_counts(counts, expected, 256, "none", 0);

	for (int i = 0; i < 256; i++)
		counts[i] = expected[i] = ((uint64_t)1 << 40) + (uint64_t)i;
	ck_assert_cua(cua_copy(ctx, device, counts, sizeof(counts)));
	ck_assert_cua(cua_histogram_bytes(ctx, &more, 0, NULL, counts));
	check_counts(counts, expected, 256, "accumulate none", 0);
	for (size_t s = 0; s < COUNT(strategies); s++) {
		more.strategy = strategies[s];
		for (size_t i = 0; i < sizeof(host); i++)
			expected[host[i]]++;
		ck_assert_cua(cua_histogram_bytes(ctx, &more, sizeof(host), x, counts));
		check_counts(counts, expected, 256, "accumulate on the host", (int)s);
		ck_assert_cua(cua_histogram_even(ctx, &more, CUA_U8, sizeof(host), x, 256, &zero,
						 &all, device));
	}
	test_download(ctx, counts, device, sizeof(counts));
	check_counts(counts, expected, 256, "accumulate in backend memory", 0);
	test_free(ctx, x);
	test_free(ctx, device);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- even bins ---- */

static void store_float(enum cua_type type, void *array, size_t i, double v)
{
	switch (type) {
	case CUA_F16: ((struct cua_f16 *)array)[i] = cua_f16_from_f32((float)v); break;
	case CUA_BF16: ((struct cua_bf16 *)array)[i] = cua_bf16_from_f32((float)v); break;
	case CUA_F32: ((float *)array)[i] = (float)v; break;
	default: ((double *)array)[i] = v;
	}
}

static void store_integer(enum cua_type type, void *array, size_t i, uint64_t v)
{
	switch (cua_type_size(type)) {
	case 1: ((uint8_t *)array)[i] = (uint8_t)v; break;
	case 2: ((uint16_t *)array)[i] = (uint16_t)v; break;
	case 4: ((uint32_t *)array)[i] = (uint32_t)v; break;
	default: ((uint64_t *)array)[i] = v;
	}
}

static void make_elements(enum cua_type type, void *array, size_t n, union limit lower,
			  union limit upper, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t r = test_random(state), pick = r % 8;
		double unit = (double)(r >> 11) * 0x1p-53;

		/*
		 * mostly in the range; else any bits, the limits, and the neighbours of the
		 * limits
		 */
		if (model_is_float(type)) {
			double v = lower.f + unit * (upper.f * 0.5 - lower.f * 0.5) * 2;
			const double odd[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, 0.0, -0.0, DBL_MAX};

			if (pick == 0)
				v = odd[(r >> 8) % 6];
			else if (pick == 1)
				v = (r >> 8) & 1 ? lower.f : upper.f;
			else if (pick == 2)
				v = nextafter((r >> 8) & 1 ? lower.f : upper.f,
					      (r >> 9) & 1 ? HUGE_VAL : -HUGE_VAL);
			store_float(type, array, i, v);
		} else {
			uint64_t width = upper.u - lower.u,
				 v = lower.u + test_random(state) % width;

			if (pick == 0)
				v = test_random(state);
			else if (pick == 1)
				v = ((r >> 8) & 1 ? lower.u : upper.u) + (r >> 9) % 3 - 1;
			store_integer(type, array, i, v);
		}
	}
}

struct even_case {
	union limit lower, upper;
	size_t bins;
};

/* Fills cases[] for a type and returns their number. */
static size_t make_cases(enum cua_type type, struct even_case *cases)
{
	static const size_t float_bins[] = {1, 2, 7, 10, 100, 256, 257, 1000, 4096, 65536};
	static const struct {
		double lower, upper;
	} float_ranges[] = {
		{0, 1},
		{-1, 1},
		{0.1, 0.3},
		{-1e30, 3e30},
		{1e6, 1e6 + 1},
		{-DBL_MAX, DBL_MAX}, /* the difference overflows */
		{-DBL_MAX, 1},       /* does not overflow */
		{0, 5e-324},         /* a single subnormal step */
		{-3 * 5e-324, 4 * 5e-324},
		{1e-290, 3e-290},
		{0, FLT_MAX},
	};
	static const size_t integer_bins[] = {1, 2, 3, 7, 10, 255, 256, 257, 1000, 4096, 65536};
	const int bits = 8 * (int)cua_type_size(type);
	const int is_signed =
		type == CUA_I8 || type == CUA_I16 || type == CUA_I32 || type == CUA_I64;
	const wide least = is_signed ? -((wide)1 << (bits - 1)) : 0,
		   above = least + ((wide)1 << bits);
	const wide ranges[][2] = {
		{least, above},     /* all values, if limits can express them */
		{least, above - 1}, /* all but the greatest */
		{least + 1, above},
		{0, 10},
		{100, 200},
		{-1000, 1000},
		{-7, -3},             /* negative: empty for unsigned types */
		{above, above + 100}, /* beyond all values: empty */
		{least - 500, above}, /* wider than the type */
		{97, 98},
		{0, 251},
		{-5, (wide)1 << 40}, /* wider than 32 bits, for all types */
		{least / 3, above / 2},
	};
	/* values that limits can represent */
	const wide first = type == CUA_U64 ? 0 : INT64_MIN,
		   last = type == CUA_U64 ? (wide)UINT64_MAX : (wide)INT64_MAX;
	size_t n = 0;

	if (model_is_float(type)) {
		for (size_t r = 0; r < COUNT(float_ranges); r++)
			for (size_t b = 0; b < COUNT(float_bins); b++, n++) {
				cases[n].lower.f = float_ranges[r].lower;
				cases[n].upper.f = float_ranges[r].upper;
				cases[n].bins = float_bins[b];
			}
		return n;
	}
	for (size_t r = 0; r < COUNT(ranges); r++)
		for (size_t b = 0; b < COUNT(integer_bins); b++) {
			if (ranges[r][0] < first || ranges[r][1] > last)
				continue;
			cases[n].lower.u = (uint64_t)ranges[r][0];
			cases[n].upper.u = (uint64_t)ranges[r][1];
			cases[n++].bins = integer_bins[b];
		}
	return n;
}

START_TEST(test_even)
{
	const size_t n = test_quick() || SANITIZED ? 3001 : 20011;
	enum cua_type type = model_types[_i];
	size_t size = cua_type_size(type), n_cases;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_even");
	struct even_case *cases = test_malloc(200 * sizeof(*cases));
	char *host = test_malloc((n + 16) * size), *x = test_alloc(ctx, (n + 16) * size);
	uint64_t *expected = test_malloc(65536 * 8), *got = test_malloc(65536 * 8);
	enum cua_status status;
	char what[160];

	n_cases = make_cases(type, cases);
	for (size_t c = 0; c < n_cases; c++) {
		const struct even_case e = cases[c];
		size_t first = test_random(&seed) % 16, length = n - test_random(&seed) % 16;

		make_elements(type, host, n + 16, e.lower, e.upper, &seed);
		ck_assert_cua(cua_copy(ctx, x, host, (n + 16) * size));
		model_even(type, length, host + first * size, e.bins, e.lower, e.upper, expected);
		if (model_is_float(type))
			snprintf(what, sizeof(what), "%s in [%.17g, %.17g)", cua_type_name(type),
				 e.lower.f, e.upper.f);
		else
			snprintf(what, sizeof(what), "%s in [%lld, %lld)", cua_type_name(type),
				 (long long)e.lower.i, (long long)e.upper.i);
		for (size_t s = 0; s < COUNT(strategies); s++) {
			struct cua_histogram_options o = options_of(strategies[s], 0);

			/* some cases: all strategies; the rest: two strategies */
			if (s != c % COUNT(strategies) && s && c % 4)
				continue;
			memset(got, 0xee, e.bins * 8);
			status = cua_histogram_even(ctx, &o, type, length, x + first * size, e.bins,
						    &e.lower, &e.upper, got);
			if (left_out(status))
				continue;
			ck_assert_cua(status);
			check_counts(got, expected, e.bins, what, (int)s);
		}
	}
	test_free(ctx, x);
	free(host);
	free(cases);
	free(expected);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * More bins than private memory holds, counts near that limit, and a single bin that is hit
 * repeatedly.
 */
START_TEST(test_many_bins)
{
	static const size_t bins[] = {65535, 65536, 65537, 58112,          58113,
				      12288, 12289, 24576, (size_t)1 << 20};
	const size_t n = test_quick() || SANITIZED ? 50021 : 500009, most = (size_t)1 << 20;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_many_bins");
	uint32_t *host = test_malloc(n * 4), *x;
	uint64_t *expected = test_malloc(most * 8), *got = test_malloc(most * 8);
	uint64_t *device = test_alloc(ctx, most * 8);
	const union limit lower = {.i = 0}, upper = {.i = (int64_t)1 << 32};

	for (int constant = 0; constant < 2; constant++) {
		for (size_t i = 0; i < n; i++)
			host[i] = constant && i % 1000 ? 0xfffffffeu : (uint32_t)test_random(&seed);
		x = test_upload(ctx, host, n * 4);
		for (size_t b = 0; b < COUNT(bins); b++) {
			model_even(CUA_U32, n, host, bins[b], lower, upper, expected);
			for (size_t s = 0; s < COUNT(strategies); s++) {
				struct cua_histogram_options o = options_of(strategies[s], 0);

				ck_assert_cua(cua_histogram_even(ctx, &o, CUA_U32, n, x, bins[b],
								 &lower, &upper, device));
				test_download(ctx, got, device, bins[b] * 8);
				ck_assert_msg(!memcmp(got, expected, bins[b] * 8),
					      "%zu bins, strategy %zu", bins[b], s);
			}
		}
		test_free(ctx, x);
	}
	test_free(ctx, device);
	free(host);
	free(expected);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * More bins than shared memory holds, for elements that repeat and elements that do not. The second
 * call adds to the counts of the first call.
 */
START_TEST(test_repeats)
{
	enum { UNIFORM, ONE, RUNS, MOVING, HALF, KINDS };
	static const enum cua_type types[] = {CUA_U32, CUA_I32, CUA_F32, CUA_F64, CUA_U64};
	static const size_t bins[] = {300000, 1500000};
#if TEST_CUDA
	/* enough for a kernel with several ranges */
	const size_t n = test_quick() ? 500003 : 2500003, most = 1500000;
#else
	const size_t n = 100003, most = 1500000;
#endif
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_histogram_options more = options_of(CUA_HISTOGRAM_AUTO, 1);
	uint64_t seed = test_seed("test_repeats");
	uint64_t *host = test_malloc(n * 8);
	uint64_t *expected = test_malloc(most * 8), *got = test_malloc(most * 8);
	uint64_t *device = test_alloc(ctx, most * 8);

	for (size_t c = 0; c < COUNT(types) * KINDS; c++) {
		const enum cua_type type = types[c / KINDS];
		const size_t size = cua_type_size(type);
		char *x;

		for (size_t i = 0; i < n; i++) {
			uint64_t r = test_random(&seed) >> 20, v = r % most;
			float f;
			double d;

			switch (c % KINDS) {
			case ONE: v = 77777; break;
			case RUNS: v = i / 777 * 7919 % most; break;
			case MOVING:
				v = (i / 300000 * 99991 + r % (r % 2 ? 20 : 3000)) % most;
				break;
			case HALF: v = r % 2 ? v : 77777; break;
			default: break;
			}
			f = (float)v;
			d = (double)v;
			if (type == CUA_F32)
				memcpy((char *)host + i * 4, &f, 4);
			else if (type == CUA_F64)
				memcpy(&host[i], &d, 8);
			else if (size == 4)
				((uint32_t *)(void *)host)[i] = (uint32_t)v;
			else
				host[i] = v;
		}
		x = test_upload(ctx, host, n * size);
		for (size_t b = 0; b < COUNT(bins); b++) {
			union limit lower = {.i = 5}, upper = {.i = (int64_t)most};

			if (model_is_float(type)) {
				lower.f = 5;
				upper.f = (double)most;
			}
			model_even(type, n - 1, (char *)host + size, bins[b], lower, upper,
				   expected);
			ck_assert_cua(cua_histogram_even(ctx, NULL, type, n - 1, x + size, bins[b],
							 &lower, &upper, device));
			test_download(ctx, got, device, bins[b] * 8);
			check_counts(got, expected, bins[b], "repeats", (int)c);
			ck_assert_cua(cua_histogram_even(ctx, &more, type, n - 1, x + size, bins[b],
							 &lower, &upper, device));
			test_download(ctx, got, device, bins[b] * 8);
			for (size_t i = 0; i < bins[b]; i++)
				expected[i] *= 2;
			check_counts(got, expected, bins[b], "accumulated repeats", (int)c);
		}
		test_free(ctx, x);
	}
	test_free(ctx, device);
	free(host);
	free(expected);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

/* The short forms. */
START_TEST(test_typed)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint8_t u8[4] = {0, 127, 128, 255};
	const uint16_t u16[4] = {0, 1, 65534, 65535};
	const uint32_t u32[4] = {0, 1, UINT32_MAX - 1, UINT32_MAX};
	const int32_t i32[4] = {INT32_MIN, -1, 0, INT32_MAX};
	const float f32[4] = {-1, -0.0f, 0.5f, 1};
	const double f64[4] = {-1, 0, 0.999, (double)NAN};
	uint64_t counts[3];
	void *x;

#define TYPED(name, lower, upper, a, b)                                                            \
	do {                                                                                       \
		x = test_upload(ctx, name, sizeof(name));                                          \
		counts[2] = 5;                                                                     \
		ck_assert_cua(cua_histogram_even_##name(ctx, 4, x, 2, lower, upper, counts));      \
		ck_assert_uint_eq(counts[0], a);                                                   \
		ck_assert_uint_eq(counts[1], b);                                                   \
		ck_assert_uint_eq(counts[2], 5);                                                   \
		test_free(ctx, x);                                                                 \
	} while (0)
	TYPED(u8, 0, 256, 2, 2);
	TYPED(u8, 0, 255, 2, 1); /* 127 * 2 / 255 is 0, 128 * 2 / 255 is 1 */
	TYPED(u16, 0, 65536, 2, 2);
	TYPED(u32, 0, (int64_t)1 << 32, 2, 2);
	TYPED(u32, 0, 4, 2, 0);
	TYPED(i32, INT32_MIN, (int64_t)1 << 31, 2, 2);
	TYPED(i32, -2, 2, 1, 1);
	TYPED(f32, -1, 1, 1, 2);
	TYPED(f64, -1, 1, 1, 2);
#undef TYPED
	cua_context_destroy(ctx);
}
END_TEST

/* The reported workspace suffices, in a context with any number of threads. */
START_TEST(test_workspace)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint32_t *host = test_malloc(300000 * 4), *x;
	uint64_t *counts = test_malloc(70000 * 8), total = 0;
	size_t bytes = 0, with_private = 0;
	struct cua_histogram_options o = options_of(CUA_HISTOGRAM_PRIVATIZED, 0);

	for (uint32_t i = 0; i < 300000; i++)
		host[i] = i;
	x = test_upload(ctx, host, 300000 * 4);
	ck_assert_cua(cua_context_set_threads(ctx, 3));
	ck_assert_cua(cua_histogram_workspace(ctx, NULL, 70000, &bytes));
	ck_assert_cua(cua_histogram_workspace(ctx, &o, 70000, &with_private));
	ck_assert_uint_ge(with_private, bytes);
	ck_assert_cua(cua_context_reserve(ctx, with_private));
	ck_assert_cua(cua_histogram_even(ctx, &o, CUA_U32, 300000, x, 70000, &(int64_t){0},
					 &(int64_t){70000}, counts));
	for (int i = 0; i < 70000; i++)
		if (counts[i] != 1)
			ck_abort_msg("bin %d", i);
	/* by a single thread and by many threads */
	for (unsigned threads = 1; threads < 9; threads += 3) {
		ck_assert_cua(cua_context_set_threads(ctx, threads));
		ck_assert_cua(cua_histogram_even_u32(ctx, 300000, x, 1000, 0, 300000, counts));
		for (int i = 0; i < 1000; i++)
			ck_assert_uint_eq(counts[i], 300);
	}
	ck_assert_cua(cua_histogram_even_u32(ctx, 300000, x, 1, 0, 299999, &total));
	ck_assert_uint_eq(total, 299999);
	test_free(ctx, x);
	free(host);
	free(counts);
	cua_context_destroy(ctx);
}
END_TEST

/* More than 2^31 elements. */
START_TEST(test_big)
{
	const size_t n = ((size_t)1 << 31) + 7;
	struct cua_context *ctx;
	uint64_t counts[256] = {0}, two[2] = {0};
	unsigned char *x;
#if TEST_CUDA
	uint64_t five[5];
#else
	struct cua_histogram_options o;
#endif

	if (test_quick() || SANITIZED || sizeof(size_t) < 8) {
		printf("test_big: skipped in a quick or instrumented run\n");
		return;
	}
	ctx = test_context(TEST_BACKEND);
#if TEST_CUDA
	{
		uint64_t free_bytes = 0, total = 0;
		const unsigned char zero = 0;

		ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total));
		if (free_bytes < ((uint64_t)12 << 30)) {
			printf("test_big: skipped, less than 12 GiB of memory free\n");
			cua_context_destroy(ctx);
			return;
		}
		x = test_alloc(ctx, n * 4);
		ck_assert_cua(cua_fill(ctx, x, n * 4, 1, &zero));
	}
#else
	/* untouched pages of the mapping all map to the same page of zeros */
	x = mmap(NULL, n * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (x == MAP_FAILED) {
		printf("test_big: skipped, less than 8 GiB of addresses\n");
		cua_context_destroy(ctx);
		return;
	}
#endif
	ck_assert_cua(cua_copy(ctx, x, "a", 1));
	ck_assert_cua(cua_copy(ctx, x + n / 2, "zz", 2));
	ck_assert_cua(cua_copy(ctx, x + n - 1, "k", 1));
	ck_assert_cua(cua_copy(ctx, x + n * 4 - 1, "\xff", 1));
	ck_assert_cua(cua_histogram_bytes(ctx, NULL, n, x, counts));
	ck_assert_uint_eq(counts[0], n - 4);
	ck_assert_uint_eq(counts['a'], 1);
	ck_assert_uint_eq(counts['k'], 1);
	ck_assert_uint_eq(counts['z'], 2);
#if TEST_CUDA
	ck_assert_cua(cua_histogram_letters(ctx, NULL, n, x, counts));
	ck_assert_uint_eq(counts[0], 1);
	ck_assert_uint_eq(counts[2], 1);
	ck_assert_uint_eq(counts[6], 2);
	/* 8-bit values: twice as many in two rows with a gap */
	for (size_t s = 0; s <= COUNT(strategies); s++) {
		struct cua_histogram_options o = options_of(strategies[s % COUNT(strategies)], 0);
		const size_t rows = s < COUNT(strategies) ? 1 : 2;

		if (rows > 1) {
			o.width = n;
			o.pitch = n + 1;
		}
		ck_assert_cua(cua_histogram_even(ctx, &o, CUA_U8, rows * n, x, 5, &(int64_t){0},
						 &(int64_t){130}, five));
		ck_assert_uint_eq(five[0], rows * n - 4);
		ck_assert_uint_eq(five[1] + five[2], 0);
		ck_assert_uint_eq(five[3], 1);
		ck_assert_uint_eq(five[4], 3);
	}
	for (size_t s = 0; s < COUNT(strategies); s++) {
		struct cua_histogram_options o = options_of(strategies[s], 0);

		ck_assert_cua(cua_histogram_even(ctx, &o, CUA_U32, n, x, 2, &(int64_t){0},
						 &(int64_t){(int64_t)1 << 32}, two));
		ck_assert_uint_eq(two[1], 1);
		ck_assert_uint_eq(two[0], n - 1);
	}
	test_free(ctx, x);
#else
	/* a single thread, whose private bins must be flushed during the call */
	ck_assert_cua(cua_context_set_threads(ctx, 1));
	ck_assert_cua(cua_histogram_even_u32(ctx, n, (const uint32_t *)(void *)x, 2, 0,
					     (int64_t)1 << 32, two));
	ck_assert_uint_eq(two[1], 1);
	ck_assert_uint_eq(two[0], n - 1);
	ck_assert_cua(
		cua_histogram_even_u16(ctx, n, (const uint16_t *)(void *)x, 2, 0, 1 << 16, two));
	ck_assert_uint_eq(two[1], 0);
	ck_assert_uint_eq(two[0], n);
	/* more than 2^32 elements in a bin, by a strategy without private copies of the bins */
	o = options_of(CUA_HISTOGRAM_AGGREGATED, 0);
	ck_assert_cua(cua_histogram_even(ctx, &o, CUA_U8, 2 * n, x, 2, &(int64_t){0},
					 &(int64_t){256}, two));
	ck_assert_uint_eq(two[1], 0);
	ck_assert_uint_eq(two[0], 2 * n);
	munmap(x, n * 4);
#endif
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("histogram");
	TCase *tc = tcase_create("histogram");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_arguments);
#if TEST_CUDA
	tcase_add_test(tc, test_memory_kind);
#endif
	tcase_add_test(tc, test_bytes_letters);
	tcase_add_test(tc, test_accumulate);
	tcase_add_loop_test(tc, test_even, 0, (int)COUNT(model_types));
	tcase_add_test(tc, test_many_bins);
	tcase_add_test(tc, test_repeats);
	tcase_add_test(tc, test_typed);
	tcase_add_test(tc, test_workspace);
	tcase_add_test(tc, test_big);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
