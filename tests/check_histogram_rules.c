/* SPDX-License-Identifier: MIT */
/* The bin functions of histogram.h, on the host, against wide integers and long doubles. */
#include "histogram_model.h"

/* A bin, or NO_BIN and the side, in the model's form. */
static size_t side_of(uint32_t bin, enum cua_histogram_side side)
{
	return bin == CUA_HISTOGRAM_NO_BIN ? MODEL_BELOW + (size_t)side : bin;
}

/* ---- integers ---- */

/* Open and closed ranges; signed, and unsigned if no limit is negative. */
static void check_integer_rule(wide lower, wide upper, size_t bins, wide x)
{
	for (int closed = 0; closed < 2; closed++) {
		size_t expected = model_integer_bin(x, lower, upper, closed, bins), got;
		struct cua_histogram_range range;
		enum cua_status status;

		if (lower >= INT64_MIN && upper <= INT64_MAX && x <= INT64_MAX) {
			status = cua_histogram_range_i64((int64_t)lower, (int64_t)upper, bins,
							 &range);
			EXPECT(!status, "%s", cua_status_name(status));
			if (closed)
				cua_histogram_range_close(&range);
			got = side_of(cua_histogram_even_bin_i64(&range, (int64_t)x),
				      cua_histogram_side_i64(&range, (int64_t)x));
			EXPECT(got == expected,
			       "%lld in %zu bins of [%lld, %lld), closed %d: %zu, not %zu",
			       (long long)x, bins, (long long)lower, (long long)upper, closed, got,
			       expected);
		}
		if (lower >= 0 && upper <= UINT64_MAX && x >= 0) {
			status = cua_histogram_range_u64((uint64_t)lower, (uint64_t)upper, bins,
							 &range);
			EXPECT(!status, "%s", cua_status_name(status));
			if (closed)
				cua_histogram_range_close(&range);
			got = side_of(cua_histogram_even_bin_u64(&range, (uint64_t)x),
				      cua_histogram_side_u64(&range, (uint64_t)x));
			EXPECT(got == expected,
			       "%llu in %zu bins of unsigned [%llu, %llu), closed %d: %zu, not %zu",
			       (unsigned long long)x, bins, (unsigned long long)lower,
			       (unsigned long long)upper, closed, got, expected);
		}
	}
}

static wide clamp(wide v, wide least, wide most)
{
	return v < least ? least : v > most ? most : v;
}

START_TEST(test_integer_rule)
{
	uint64_t seed = test_seed("test_integer_rule");
	int rounds = test_quick() || SANITIZED ? 20000 : 600000;
	struct cua_histogram_range range;

	/* all small ranges, bin counts and elements */
	for (int64_t width = 1; width < 40; width++)
		for (size_t bins = 1; bins < 45; bins++)
			for (int64_t x = -2; x < width + 2; x++)
				check_integer_rule(0, width, bins, x);
	for (int i = 0; i < rounds; i++) {
		uint64_t r = test_random(&seed), q = test_random(&seed);
		int is_signed = i % 2;
		wide least = is_signed ? (wide)INT64_MIN : 0,
		     most = is_signed ? (wide)INT64_MAX : (wide)UINT64_MAX;
		/* widths of any size: half of them around 2^32, with any number of bins */
		uint64_t width =
			i % 4 < 2 ? test_random(&seed) >> q % 64 : ((uint64_t)1 << 32) + r % 7 - 3;
		size_t bins = (size_t)((q >> 8 & 0x7fffffffu) >> (r >> 56) % 31) + 1;
		wide lower = (wide)(test_random(&seed) >> r % 64), upper, d;

		if (is_signed && r >> 40 & 1)
			lower = -lower;
		if (r >> 41 & 1)
			lower = most - width - (wide)(r % 3);
		if (r % 64 == 9)
			bins = CUA_HISTOGRAM_MAX_BINS;
		lower = clamp(lower, least, most - 1);
		upper = clamp(lower + width, lower + 1, most);
		if (r % 64 == 10) {
			lower = least;
			upper = most;
		}
		width = (uint64_t)(upper - lower);
		d = (wide)(test_random(&seed) % width);
		/* an element with an exact quotient, and its predecessor */
		if (i % 3) {
			d = ((wide)(test_random(&seed) % bins) * width + (wide)bins - 1) /
			    (wide)bins;
			d -= i % 3 - 1;
		}
		check_integer_rule(lower, upper, bins, clamp(lower + d, least, most));
		check_integer_rule(lower, upper, bins, clamp(upper - i % 3 + 1, least, most));
		check_integer_rule(lower, upper, bins, clamp(lower - i % 2, least, most));
		check_integer_rule(lower, upper, bins, (r & 1) ? least : most);
	}
	check_integer_rule(INT32_MIN, (int64_t)1 << 31, CUA_HISTOGRAM_MAX_BINS, INT32_MAX);
	check_integer_rule(INT32_MIN, (int64_t)1 << 31, CUA_HISTOGRAM_MAX_BINS, INT32_MIN);
	check_integer_rule(0, 1, CUA_HISTOGRAM_MAX_BINS, 0);
	check_integer_rule(0, UINT64_MAX, CUA_HISTOGRAM_MAX_BINS, UINT64_MAX);
	check_integer_rule(INT64_MIN, INT64_MAX, CUA_HISTOGRAM_MAX_BINS, INT64_MAX);
	check_integer_rule(INT64_MIN, INT64_MIN + 5, 5, INT64_MAX);
	check_integer_rule(INT64_MAX - 5, INT64_MAX, 5, INT64_MIN);

	memset(&range, 0xee, sizeof(range));
	ck_assert_status(cua_histogram_range_i64(3, 3, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_i64(4, 3, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_i64(0, 1, 0, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_i64(0, 1, CUA_HISTOGRAM_MAX_BINS + 1, &range),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_histogram_range_u64(3, 3, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_u64(UINT64_MAX, 0, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_u64(0, 1, 0, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_u64(0, 1, SIZE_MAX, &range), CUA_ERROR_SIZE);
	ck_assert_uint_eq(range.bins, 0xeeeeeeeeu);
	/* a second close has no effect */
	ck_assert_cua(cua_histogram_range_u64(5, 7, 2, &range));
	cua_histogram_range_close(&range);
	cua_histogram_range_close(&range);
	ck_assert_uint_eq(cua_histogram_even_bin_u64(&range, 7), 1);
	ck_assert_uint_eq(cua_histogram_even_bin_u64(&range, 8), CUA_HISTOGRAM_NO_BIN);
}
END_TEST

/* ---- floating point ---- */

static size_t bin_f64(const struct cua_histogram_range *range, double x)
{
	return side_of(cua_histogram_even_bin_f64(range, x), cua_histogram_side_f64(range, x));
}

static size_t bin_f32(const struct cua_histogram_range *range, float x)
{
	return side_of(cua_histogram_even_bin_f32(range, x),
		       cua_histogram_side_f64(range, (double)x));
}

START_TEST(test_float_rule)
{
	uint64_t seed = test_seed("test_float_rule");
	int rounds = test_quick() || SANITIZED ? 20000 : 400000;
	const double limits[] = {0.0,  -0.0,  5e-324,   -5e-324, DBL_MAX, -DBL_MAX,
				 1,    -1,    1e-310,   -1e-310, FLT_MAX, -FLT_MAX,
				 1e39, -1e39, 0x1p-149, 0x1p-150};
	struct cua_histogram_range range;

	for (int i = 0; i < rounds; i++) {
		uint64_t bits[3] = {test_random(&seed), test_random(&seed), test_random(&seed)};
		size_t bins = (size_t)(test_random(&seed) % 1000) + 1;
		int closed = i % 3 == 0;
		double v[3], lower, upper, near[8];
		size_t got;

		/* any bits; sometimes numbers close to each other, or special values */
		for (int k = 0; k < 3; k++) {
			uint64_t r = test_random(&seed);

			if (i % 2)
				bits[k] = (bits[0] & 0xffff000000000000u) |
					  (bits[k] & 0xffffffffffffu);
			memcpy(&v[k], &bits[k], 8);
			if (r % 8 == 0)
				v[k] = limits[(r >> 8) % COUNT(limits)];
			else if (r % 8 == 1)
				v[k] = (double)(float)v[k];
		}
		lower = v[0] < v[1] ? v[0] : v[1];
		upper = v[0] < v[1] ? v[1] : v[0];
		if (!isfinite(lower) || !isfinite(upper) || lower == upper)
			continue;
		ck_assert_cua(cua_histogram_range_f64(lower, upper, bins, &range));
		if (closed)
			cua_histogram_range_close(&range);
		near[0] = v[2];
		near[1] = lower;
		near[2] = upper;
		near[3] = nextafter(lower, -HUGE_VAL);
		near[4] = nextafter(upper, -HUGE_VAL);
		near[5] = nextafter(upper, HUGE_VAL);
		near[6] = limits[i % (int)COUNT(limits)];
		near[7] = i % 5 == 0   ? (double)NAN
			  : i % 5 == 1 ? -(double)NAN
			  : i % 2      ? HUGE_VAL
				       : -HUGE_VAL;
		for (size_t k = 0; k < COUNT(near); k++) {
			size_t expected = model_float_bin(near[k], lower, upper, closed, bins);
			float around[3];

			got = bin_f64(&range, near[k]);
			EXPECT(got == expected,
			       "%a in %zu bins of [%a, %a), closed %d: %zu, not %zu", near[k], bins,
			       lower, upper, closed, got, expected);
			/* the bin is about right */
			if (got < bins) {
				long double part = ((long double)near[k] - lower) /
						   ((long double)upper - lower) * (long double)bins;

				EXPECT((long double)got <= part + 1e-9L &&
					       (long double)got + 1 >= part - 1e-9L,
				       "%a in %zu bins of [%a, %a): %zu", near[k], bins, lower,
				       upper, got);
			}
			around[0] = (float)near[k];
			around[1] = nextafterf(around[0], HUGE_VALF);
			around[2] = nextafterf(around[0], -HUGE_VALF);
			for (int f = 0; f < 3; f++) {
				expected = model_float_bin((double)around[f], lower, upper, closed,
							   bins);
				got = bin_f32(&range, around[f]);
				EXPECT(got == expected,
				       "float %a in %zu bins of [%a, %a), closed %d: %zu, not %zu",
				       (double)around[f], bins, lower, upper, closed, got,
				       expected);
			}
		}
	}
	/* bins a single least subnormal wide */
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
	ck_assert_status(cua_histogram_range_f64(-0.0, 0.0, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(2, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64((double)NAN, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(-(double)NAN, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(1, (double)NAN, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(1, HUGE_VAL, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(-HUGE_VAL, 1, 1, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(0, 1, 0, &range), CUA_ERROR_VALUE);
	ck_assert_status(cua_histogram_range_f64(0, 1, CUA_HISTOGRAM_MAX_BINS + 1, &range),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(range.bins, 0xeeeeeeeeu);
}
END_TEST

/* ---- edges ---- */

/* Few different values, so that some are equal; NaNs from number 16 on. */
static void make_value(enum cua_type type, void *p, uint64_t number)
{
	const double floats[] = {0.0,      -0.0,      1,       -1,       5e-324,      -5e-324,
				 HUGE_VAL, -HUGE_VAL, DBL_MAX, -DBL_MAX, 0x1p-149,    -0x1p-149,
				 1.5,      2,         3,       1e-30,    (double)NAN, -(double)NAN};
	const uint64_t integers[] = {0,          1,
				     2,          3,
				     4,          5,
				     6,          7,
				     UINT64_MAX, UINT64_MAX - 1,
				     INT64_MAX,  (uint64_t)INT64_MIN,
				     INT32_MAX,  (uint64_t)INT32_MIN,
				     UINT32_MAX, (uint64_t)1 << 32};
	double f = floats[number];
	float narrow = (float)f;

	if (type == CUA_F32)
		memcpy(p, &narrow, sizeof(narrow));
	else if (type == CUA_F64)
		memcpy(p, &f, sizeof(f));
	else
		memcpy(p, &integers[number % COUNT(integers)], cua_type_size(type));
}

static void sort(enum cua_type type, char *p, size_t n)
{
	size_t size = cua_type_size(type);

	for (size_t i = 1; i < n; i++)
		for (size_t j = i; j && model_compare(type, p, j, p, j - 1) < 0; j--)
			for (size_t b = 0; b < size; b++) {
				char swap = p[j * size + b];

				p[j * size + b] = p[(j - 1) * size + b];
				p[(j - 1) * size + b] = swap;
			}
}

#define CHECK_EDGES(t, T, TYPE)                                                                    \
	do {                                                                                       \
		T edges[20], x[20];                                                                \
                                                                                                   \
		for (int k = 0; k < 20; k++) {                                                     \
			make_value(TYPE, &edges[k], test_random(&seed) % 16);                      \
			make_value(TYPE, &x[k], test_random(&seed) % 18);                          \
		}                                                                                  \
		sort(TYPE, (char *)edges, bins + 1);                                               \
		for (size_t k = 0; k < 20; k++) {                                                  \
			size_t expected = model_edge_bin(TYPE, x, k, edges, bins, closed);         \
			size_t got = side_of(                                                      \
				cua_histogram_edge_bin_##t(edges, (uint32_t)bins, closed, x[k]),   \
				cua_histogram_edge_side_##t(edges, x[k]));                         \
                                                                                                   \
			EXPECT(got == expected, "%s, %zu bins, closed %d: %zu, not %zu", #t, bins, \
			       closed, got, expected);                                             \
		}                                                                                  \
	} while (0)

START_TEST(test_edge_rule)
{
	uint64_t seed = test_seed("test_edge_rule");
	int rounds = test_quick() || SANITIZED ? 2000 : 20000;

	for (int i = 0; i < rounds; i++) {
		size_t bins = 1 + test_random(&seed) % 19;
		int closed = i % 2;

		CHECK_EDGES(u32, uint32_t, CUA_U32);
		CHECK_EDGES(i32, int32_t, CUA_I32);
		CHECK_EDGES(u64, uint64_t, CUA_U64);
		CHECK_EDGES(i64, int64_t, CUA_I64);
		CHECK_EDGES(f32, float, CUA_F32);
		CHECK_EDGES(f64, double, CUA_F64);
	}
}
END_TEST

/* ---- weights ---- */

START_TEST(test_units)
{
	uint64_t seed = test_seed("test_units");
	int rounds = test_quick() || SANITIZED ? 50000 : 2000000;

	for (int i = 0; i < rounds; i++) {
		uint64_t r = test_random(&seed);
		int e = (int)(r % 2046) - 1022, bits = (int)((r >> 16) % 63);
		/* up to 2^62 units, sometimes plus half a unit */
		double units = ldexp((double)(test_random(&seed) >> 11), bits - 53), weight;
		int64_t got, expected;

		if (i % 4 == 0)
			units = floor(units) + 0.5;
		if (r >> 40 & 1)
			units = -units;
		weight = ldexp(units, e);
		/* the weight has too few digits, or is too large */
		if (!isfinite(weight) || ldexp(weight, -e) != units)
			continue;
		expected = (int64_t)rintl((long double)units);
		got = cua__histogram_units(weight, ldexp(1, -e));
		EXPECT(got == expected, "%a in units of 2^%d: %lld, not %lld", weight, e,
		       (long long)got, (long long)expected);
	}
	ck_assert_int_eq(cua__histogram_units(5e-324, 0x1p62), 0);
	ck_assert_int_eq(cua__histogram_units(-0.0, 0x1p62), 0);
	ck_assert_double_eq(cua__histogram_sum((uint64_t)-3, 0.5, 0, 100), -1.5);
	ck_assert_double_eq(cua__histogram_sum((uint64_t)-3, 0.5, 1, 100), 98.5);
	/* rounds to nearest even, at 53 bits */
	ck_assert_double_eq(cua__histogram_sum(((uint64_t)1 << 53) + 1, 1, 0, 0), 0x1p53);
	ck_assert_double_eq(cua__histogram_sum(((uint64_t)1 << 53) + 3, 1, 0, 0), 0x1p53 + 4);
}
END_TEST

/* ---- letters, and private bins ---- */

START_TEST(test_block)
{
	uint32_t shared[300];
	uint64_t counts[300] = {0};

	for (unsigned c = 0; c < 256; c++) {
		size_t bin = model_letter_bin((unsigned char)c);

		ck_assert_uint_eq(
			side_of(cua_histogram_letter_bin(c), cua_histogram_letter_side(c)), bin);
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
static Suite *make_suite(void)
{
	Suite *suite = suite_create("histogram_rules");
	TCase *tc = tcase_create("histogram_rules");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_integer_rule);
	tcase_add_test(tc, test_float_rule);
	tcase_add_test(tc, test_edge_rule);
	tcase_add_test(tc, test_units);
	tcase_add_test(tc, test_block);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
