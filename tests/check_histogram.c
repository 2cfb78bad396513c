/* SPDX-License-Identifier: MIT */
/* Histograms on either backend against a serial model; on the host also the bin functions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <float.h>
#include <math.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum cua_histogram_strategy strategies[] = {
	CUA_HISTOGRAM_AUTO, CUA_HISTOGRAM_BLOCKED, CUA_HISTOGRAM_INTERLEAVED,
	CUA_HISTOGRAM_PRIVATIZED, CUA_HISTOGRAM_AGGREGATED};
static const enum cua_type types[] = {CUA_U8, CUA_U16, CUA_U32, CUA_I32, CUA_F32, CUA_F64};

static struct cua_histogram_options options_of(enum cua_histogram_strategy strategy, int accumulate)
{
	struct cua_histogram_options o = CUA_HISTOGRAM_OPTIONS_INIT;

	o.strategy = strategy;
	o.accumulate = accumulate;
	return o;
}

/* ---- the serial model ---- */

#define IGNORED SIZE_MAX
__extension__ typedef __int128 wide;

static size_t model_integer_bin(int64_t x, int64_t lower, int64_t upper, size_t bins)
{
	if (x < lower || x >= upper)
		return IGNORED;
	return (size_t)((((wide)x - lower) * (wide)bins) / ((wide)upper - lower));
}

static size_t model_float_bin(double x, double lower, double upper, size_t bins)
{
	/* volatile: each operation is rounded once */
	volatile double difference = upper - lower, h = 1, a, b, c;

	if (isnan(x) || x < lower || x >= upper)
		return IGNORED;
	if (isinf(difference))
		h = 0.5;
	else if (difference < ldexp(1, -900))
		h = ldexp(1, 128);
	a = upper * h;
	b = lower * h;
	a = a - b;
	a = (double)bins / a;
	c = x * h;
	c = c - b;
	c = c * a;
	c = floor(c);
	return c >= (double)bins ? bins - 1 : (size_t)c;
}

static size_t model_letter_bin(unsigned char c)
{
	static const char *const groups[7] = {"abcd", "efgh", "ijkl", "mnop", "qrst", "uvwx", "yz"};

	for (size_t i = 0; i < 7; i++)
		if (c && strchr(groups[i], c))
			return i;
	return IGNORED;
}

/* Limits as cua_histogram_even takes them. */
union limit {
	int64_t i;
	double f;
};

static int is_float(enum cua_type type)
{
	return type == CUA_F32 || type == CUA_F64;
}

static double float_at(enum cua_type type, const void *array, size_t i)
{
	return type == CUA_F32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static int64_t integer_at(enum cua_type type, const void *array, size_t i)
{
	switch (type) {
	case CUA_U8: return ((const uint8_t *)array)[i];
	case CUA_U16: return ((const uint16_t *)array)[i];
	case CUA_U32: return ((const uint32_t *)array)[i];
	default: return ((const int32_t *)array)[i];
	}
}

static void model_even(enum cua_type type, size_t n, const void *x, size_t bins, union limit lower,
		       union limit upper, uint64_t *counts)
{
	memset(counts, 0, bins * sizeof(*counts));
	for (size_t i = 0; i < n; i++) {
		size_t bin =
			is_float(type)
				? model_float_bin(float_at(type, x, i), lower.f, upper.f, bins)
				: model_integer_bin(integer_at(type, x, i), lower.i, upper.i, bins);

		if (bin != IGNORED)
			counts[bin]++;
	}
}

static void check_counts(const uint64_t *got, const uint64_t *expected, size_t bins,
			 const char *what, int strategy)
{
	/* an assertion for each would take longer than the histogram */
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
	/* counts in x, at its end, and x behind the first counts */
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
	ck_assert_uint_eq(bytes, 77);
	ck_assert_mem_eq(counts, untouched, 256 * 8);

	/* options of a version that had only a strategy; counts beside x */
	o = options_of(CUA_HISTOGRAM_BLOCKED, 1);
	o.struct_size = offsetof(struct cua_histogram_options, accumulate);
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
	enum cua_status status;

	memset(counts, 0xee, sizeof(counts));
	memset(ordinary, 'b', 100);
	/* memory of the device is none of the CPU's */
	ck_assert_status(cua_histogram_bytes(cpu, NULL, 100, x, counts), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_histogram_letters(cpu, NULL, 100, x, counts), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_histogram_even(cpu, NULL, CUA_U8, 100, x, 3, &zero, &ten, counts),
			 CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_histogram_bytes(cpu, NULL, 100, ordinary, device),
			 CUA_ERROR_MEMORY_KIND);
	/* ordinary host memory is the device's where the system is coherent */
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
				if (bin != IGNORED)
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

/* n = 0 clears; accumulate adds, wherever the counts are. */
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

static void make_elements(enum cua_type type, void *array, size_t n, union limit lower,
			  union limit upper, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t r = test_random(state), pick = r % 8;
		double unit = (double)(r >> 11) * 0x1p-53;

		/* in the range mostly; else any bits, and the limits and what is next to them */
		if (is_float(type)) {
			double v = lower.f + unit * (upper.f * 0.5 - lower.f * 0.5) * 2;
			const double odd[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, 0.0, -0.0, DBL_MAX};

			if (pick == 0)
				v = odd[(r >> 8) % 6];
			else if (pick == 1)
				v = (r >> 8) & 1 ? lower.f : upper.f;
			else if (pick == 2)
				v = nextafter((r >> 8) & 1 ? lower.f : upper.f,
					      (r >> 9) & 1 ? HUGE_VAL : -HUGE_VAL);
			if (type == CUA_F32)
				((float *)array)[i] = (float)v;
			else
				((double *)array)[i] = v;
		} else {
			int64_t width = upper.i - lower.i,
				v = lower.i + (int64_t)((r >> 8) % (uint64_t)width);

			if (pick == 0)
				v = (int64_t)(r >> 16);
			else if (pick == 1)
				v = ((r >> 8) & 1 ? lower.i : upper.i) + (int64_t)((r >> 9) % 3) -
				    1;
			switch (type) {
			case CUA_U8: ((uint8_t *)array)[i] = (uint8_t)v; break;
			case CUA_U16: ((uint16_t *)array)[i] = (uint16_t)v; break;
			case CUA_U32: ((uint32_t *)array)[i] = (uint32_t)v; break;
			default: ((int32_t *)array)[i] = (int32_t)(uint32_t)v; break;
			}
		}
	}
}

struct even_case {
	union limit lower, upper;
	size_t bins;
};

/* Fills cases[] for a type and returns how many there are. */
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
		{-DBL_MAX, 1},       /* it does not */
		{0, 5e-324},         /* one subnormal step */
		{-3 * 5e-324, 4 * 5e-324},
		{1e-290, 3e-290},
		{0, FLT_MAX},
	};
	static const size_t integer_bins[] = {1, 2, 3, 7, 10, 255, 256, 257, 1000, 4096, 65536};
	int64_t least = type == CUA_I32 ? INT32_MIN : 0;
	int64_t above = type == CUA_U8    ? 256
			: type == CUA_U16 ? 65536
			: type == CUA_U32 ? (int64_t)1 << 32
					  : (int64_t)1 << 31;
	const int64_t ranges[][2] = {
		{least, above},     /* all values */
		{least, above - 1}, /* all but the greatest */
		{least + 1, above},
		{0, 10},
		{100, 200},
		{-1000, 1000},
		{-7, -3},             /* nothing of the unsigned types */
		{above, above + 100}, /* nothing */
		{least - 500, above}, /* more than all, where it is not too wide */
		{97, 98},
		{0, 251},
	};
	size_t n = 0;

	if (is_float(type)) {
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
			if (ranges[r][1] - ranges[r][0] > (int64_t)1 << 32)
				continue;
			cases[n].lower.i = ranges[r][0];
			cases[n].upper.i = ranges[r][1];
			cases[n++].bins = integer_bins[b];
		}
	return n;
}

START_TEST(test_even)
{
	const size_t n = test_quick() || SANITIZED ? 3001 : 20011;
	enum cua_type type = types[_i];
	size_t size = cua_type_size(type), n_cases;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_even");
	struct even_case *cases = test_malloc(200 * sizeof(*cases));
	char *host = test_malloc((n + 16) * size), *x = test_alloc(ctx, (n + 16) * size);
	uint64_t *expected = test_malloc(65536 * 8), *got = test_malloc(65536 * 8);
	char what[160];

	n_cases = make_cases(type, cases);
	for (size_t c = 0; c < n_cases; c++) {
		const struct even_case e = cases[c];
		size_t first = test_random(&seed) % 16, length = n - test_random(&seed) % 16;

		make_elements(type, host, n + 16, e.lower, e.upper, &seed);
		ck_assert_cua(cua_copy(ctx, x, host, (n + 16) * size));
		model_even(type, length, host + first * size, e.bins, e.lower, e.upper, expected);
		if (is_float(type))
			snprintf(what, sizeof(what), "%s in [%.17g, %.17g)", cua_type_name(type),
				 e.lower.f, e.upper.f);
		else
			snprintf(what, sizeof(what), "%s in [%lld, %lld)", cua_type_name(type),
				 (long long)e.lower.i, (long long)e.upper.i);
		for (size_t s = 0; s < COUNT(strategies); s++) {
			struct cua_histogram_options o = options_of(strategies[s], 0);

			/* all of them for some cases, two for each */
			if (s != c % COUNT(strategies) && s && c % 4)
				continue;
			memset(got, 0xee, e.bins * 8);
			ck_assert_cua(cua_histogram_even(ctx, &o, type, length, x + first * size,
							 e.bins, &e.lower, &e.upper, got));
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

/* More bins than fit private memory, and around what does; one bin that is hit again and again. */
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

/* Enough is enough: with the workspace that was told, on a context of any number of threads. */
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
	/* by one thread and by many */
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
	/* pages that are only read all stand for one page of zeros */
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
	for (size_t s = 0; s < COUNT(strategies); s++) {
		struct cua_histogram_options o = options_of(strategies[s], 0);

		ck_assert_cua(cua_histogram_even(ctx, &o, CUA_U32, n, x, 2, &(int64_t){0},
						 &(int64_t){(int64_t)1 << 32}, two));
		ck_assert_uint_eq(two[1], 1);
		ck_assert_uint_eq(two[0], n - 1);
	}
	test_free(ctx, x);
#else
	ck_assert_cua(cua_histogram_even_u32(ctx, n, (const uint32_t *)(void *)x, 2, 0,
					     (int64_t)1 << 32, two));
	ck_assert_uint_eq(two[1], 1);
	ck_assert_uint_eq(two[0], n - 1);
	munmap(x, n * 4);
#endif
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the functions of the header, on the host ---- */

#if !TEST_CUDA
static void check_integer_rule(int64_t lower, int64_t upper, size_t bins, int64_t x)
{
	struct cua_histogram_range range;
	size_t expected = model_integer_bin(x, lower, upper, bins);
	uint32_t got;

	if (cua_histogram_range_i64(lower, upper, bins, &range))
		ck_abort_msg("%zu bins of [%lld, %lld)", bins, (long long)lower, (long long)upper);
	got = cua_histogram_even_bin_i64(&range, x);
	if (got != (expected == IGNORED ? CUA_HISTOGRAM_NO_BIN : (uint32_t)expected))
		ck_abort_msg("%lld in %zu bins of [%lld, %lld): %u", (long long)x, bins,
			     (long long)lower, (long long)upper, got);
}

START_TEST(test_integer_rule)
{
	const int64_t offsets[] = {0,         -3,        1000,
				   INT32_MIN, INT64_MIN, INT64_MAX - ((int64_t)1 << 32)};
	uint64_t seed = test_seed("test_integer_rule");
	int rounds = test_quick() || SANITIZED ? 20000 : 1000000;
	struct cua_histogram_range range;

	/* all small ones */
	for (int64_t width = 1; width < 40; width++)
		for (size_t bins = 1; bins < 45; bins++)
			for (int64_t x = -2; x < width + 2; x++)
				check_integer_rule(0, width, bins, x);
	for (int i = 0; i < rounds; i++) {
		uint64_t r = test_random(&seed), q = test_random(&seed);
		int64_t lower = offsets[r % COUNT(offsets)];
		int64_t width = (int64_t)((r >> 8 & 0xffffffffu) >> (q % 32)) + 1;
		size_t bins = (size_t)((q >> 8 & 0x7fffffffu) >> (r >> 56) % 31) + 1;
		uint64_t d = (q >> 20) % (uint64_t)width;

		/* where a quotient is exact, and one below it */
		if (i % 3 == 0)
			d = (uint64_t)(((wide)((q >> 20) % bins) * width + (wide)bins - 1) /
				       (wide)bins);
		if (i % 6 == 0 && d)
			d--;
		check_integer_rule(lower, lower + width, bins, (int64_t)((uint64_t)lower + d));
	}
	check_integer_rule(INT32_MIN, (int64_t)1 << 31, CUA_HISTOGRAM_MAX_BINS, INT32_MAX);
	check_integer_rule(INT32_MIN, (int64_t)1 << 31, CUA_HISTOGRAM_MAX_BINS, INT32_MIN);
	check_integer_rule(0, 1, CUA_HISTOGRAM_MAX_BINS, 0);
	check_integer_rule(INT64_MIN, INT64_MIN + 5, 5, INT64_MAX);
	check_integer_rule(INT64_MAX - 5, INT64_MAX, 5, INT64_MIN);

	memset(&range, 0xee, sizeof(range));
	ck_assert_status(cua_histogram_range_i64(3, 3, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_i64(4, 3, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_i64(0, 1, 0, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_i64(0, 1, CUA_HISTOGRAM_MAX_BINS + 1, &range),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(range.bins, 0xeeeeeeeeu);
}
END_TEST

START_TEST(test_float_rule)
{
	uint64_t seed = test_seed("test_float_rule");
	int rounds = test_quick() || SANITIZED ? 20000 : 500000;
	struct cua_histogram_range range;

	for (int i = 0; i < rounds; i++) {
		uint64_t bits[3] = {test_random(&seed), test_random(&seed), test_random(&seed)};
		size_t bins = (size_t)(test_random(&seed) % 1000) + 1, expected;
		double v[3], lower, upper;
		enum cua_status status;
		uint32_t got;
		int right;

		/* any bits at all, and at times numbers that are near each other */
		for (int k = 0; k < 3; k++) {
			if (i % 2)
				bits[k] = (bits[0] & 0xffff000000000000u) |
					  (bits[k] & 0xffffffffffffu);
			memcpy(&v[k], &bits[k], 8);
		}
		lower = fmin(v[0], v[1]);
		upper = fmax(v[0], v[1]);
		if (!isfinite(lower) || !isfinite(upper) || lower == upper)
			continue;
		status = cua_histogram_range_f64(lower, upper, bins, &range);
		expected = model_float_bin(v[2], lower, upper, bins);
		got = cua_histogram_even_bin_f64(&range, v[2]);
		right = !status &&
			got == (expected == IGNORED ? CUA_HISTOGRAM_NO_BIN : (uint32_t)expected);
		/* the edges, and that the bin is about right */
		right &= cua_histogram_even_bin_f64(&range, lower) == 0;
		right &= cua_histogram_even_bin_f64(&range, upper) == CUA_HISTOGRAM_NO_BIN;
		right &= cua_histogram_even_bin_f64(&range, nextafter(lower, -HUGE_VAL)) ==
			 CUA_HISTOGRAM_NO_BIN;
		right &= cua_histogram_even_bin_f64(&range, nextafter(upper, lower)) < bins;
		if (got != CUA_HISTOGRAM_NO_BIN) {
			long double part = ((long double)v[2] - lower) /
					   ((long double)upper - lower) * (long double)bins;

			right &= got <= part + 1e-9L && got + 1 >= part - 1e-9L;
		}
		if (!right)
			ck_abort_msg("%a in %zu bins of [%a, %a): %u", v[2], bins, lower, upper,
				     got);
	}
	/* steps of the smallest numbers fall one by one */
	ck_assert_cua(cua_histogram_range_f64(-3 * 5e-324, 4 * 5e-324, 7, &range));
	for (int i = 0; i < 7; i++)
		ck_assert_uint_eq(cua_histogram_even_bin_f64(&range, (i - 3) * 5e-324), i);
	ck_assert_cua(cua_histogram_range_f64(-DBL_MAX, DBL_MAX, 4, &range));
	ck_assert_uint_eq(cua_histogram_even_bin_f64(&range, -DBL_MAX), 0);
	ck_assert_uint_eq(cua_histogram_even_bin_f64(&range, -DBL_MAX * 0.25), 1);
	ck_assert_uint_eq(cua_histogram_even_bin_f64(&range, 0), 2);
	ck_assert_uint_eq(cua_histogram_even_bin_f64(&range, DBL_MAX * 0.75), 3);
	ck_assert_uint_eq(cua_histogram_even_bin_f64(&range, (double)NAN), CUA_HISTOGRAM_NO_BIN);

	memset(&range, 0xee, sizeof(range));
	ck_assert_status(cua_histogram_range_f64(1, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(0.0, -0.0, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(2, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64((double)NAN, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(1, (double)NAN, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(1, HUGE_VAL, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(-HUGE_VAL, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(0, 1, 0, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(0, 1, CUA_HISTOGRAM_MAX_BINS + 1, &range),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(range.bins, 0xeeeeeeeeu);
}
END_TEST

START_TEST(test_block)
{
	uint32_t shared[300];
	uint64_t counts[300] = {0};

	for (unsigned c = 0; c < 256; c++) {
		size_t bin = model_letter_bin((unsigned char)c);

		ck_assert_uint_eq(cua_histogram_letter_bin(c),
				  bin == IGNORED ? CUA_HISTOGRAM_NO_BIN : (uint32_t)bin);
	}
	memset(shared, 0xee, sizeof(shared));
	cua_histogram_block_init(shared, 299);
	for (uint32_t i = 0; i < 1000; i++)
		cua_histogram_block_add(shared, i % 300 < 299 ? i % 300 : CUA_HISTOGRAM_NO_BIN);
	cua_histogram_block_flush(shared, 299, counts);
	cua_histogram_block_add(shared, 5);
	cua_histogram_block_flush(shared, 299, counts);
	for (uint32_t i = 0; i < 299; i++) {
		ck_assert_uint_eq(counts[i], 3 + (i < 100) + (i == 5));
		ck_assert_uint_eq(shared[i], 0);
	}
	ck_assert_uint_eq(counts[299], 0);
	ck_assert_uint_eq(shared[299], 0xeeeeeeeeu);
}
END_TEST
#endif

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
	tcase_add_loop_test(tc, test_even, 0, (int)COUNT(types));
	tcase_add_test(tc, test_many_bins);
	tcase_add_test(tc, test_typed);
	tcase_add_test(tc, test_workspace);
	tcase_add_test(tc, test_big);
#if !TEST_CUDA
	tcase_add_test(tc, test_integer_rule);
	tcase_add_test(tc, test_float_rule);
	tcase_add_test(tc, test_block);
#endif
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
