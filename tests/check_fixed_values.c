/* SPDX-License-Identifier: MIT */
/*
 * Reductions in a fixed order are near the true values, which are sums in long double and in
 * 128-bit integers.
 */
#include "fixed_calls.h"

#include <float.h>
#include <math.h>

/* FIXED, unless a test sets another mode. */
static enum cua_reduce_mode true_mode = CUA_REDUCE_FIXED;

static double reduce_f64(struct cua_context *ctx, enum cua_reduce_op op, enum cua_type type,
			 size_t n, const void *host)
{
	struct cua_reduce_options o = fixed();
	void *x = test_upload(ctx, host, n * cua_type_size(type));
	double result = -1;

	o.mode = true_mode;
	o.result_type = CUA_F64;
	ck_assert_cua(cua_reduce(ctx, &o, op, type, n, x, has_second(op) ? x : NULL, &result));
	test_free(ctx, x);
	return result;
}

#define expect_near(got, expected, error)                                                          \
	do {                                                                                       \
		long double test__got = (got), test__expected = (expected), test__error = (error); \
                                                                                                   \
		ck_assert_msg(fabsl(test__got - test__expected) <= test__error,                    \
			      "%s: %.20Lg, not %.20Lg: off by %Lg, not %Lg", #got, test__got,      \
			      test__expected, fabsl(test__got - test__expected), test__error);     \
	} while (0)

/*
 * Sums of every float type: the error is only that of the few additions between an element and the
 * result.
 */
static void accurate_sums(int i)
{
	/* FAST needs so many elements that strips grow on the CPU */
	const size_t N = i ? ((size_t)1 << 20) + 3 : 100003;
	static const enum cua_type floats[] = {CUA_F16, CUA_BF16, CUA_F32, CUA_F64};
	uint64_t seed = test_seed("accurate sums");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	void *host = test_malloc(N * 8);

	true_mode = i ? CUA_REDUCE_FAST : CUA_REDUCE_FIXED;
	ck_assert_cua(cua_context_set_threads(ctx, i == 2 ? 3 : 1));
	for (size_t t = 0; t < COUNT(floats); t++) {
		enum cua_type type = floats[t];
		long double sum = 0, size = 0, squares = 0, most;

		fill(type, TAME, N, host, &seed);
		for (size_t k = 0; k < N; k++) {
			long double v = model_element(type, host, k).re;

			sum += v;
			size += fabsl(v);
			squares += v * v;
		}
		/* 8 additions in a column, and 16 more of doubles; some hundreds in FAST */
		most = type == CUA_F16 ? 8 * 0x1p-24L + 16 * 0x1p-53L : 25 * 0x1p-53L;
		if (i)
			most *= 100;
		expect_near(reduce_f64(ctx, CUA_REDUCE_SUM, type, N, host), sum, most * size);
		expect_near(reduce_f64(ctx, CUA_REDUCE_SUM_ABS, type, N, host), size, most * size);
		expect_near(reduce_f64(ctx, CUA_REDUCE_MEAN, type, N, host), sum / (long double)N,
			    1.01L * most * size / (long double)N);
		expect_near(reduce_f64(ctx, CUA_REDUCE_SUM_SQUARES, type, N, host), squares,
			    most * squares);
		expect_near(reduce_f64(ctx, CUA_REDUCE_DOT, type, N, host), squares,
			    most * squares);
		expect_near(reduce_f64(ctx, CUA_REDUCE_NORM2, type, N, host), sqrtl(squares),
			    most * sqrtl(squares));
	}
	free(host);
	cua_context_destroy(ctx);
	true_mode = CUA_REDUCE_FIXED;
}

/*
 * Sums and dot products of floats in mode FAST, in any order: NaN, infinities, and no negative
 * zero.
 */
static void fast_specials(int i)
{
	enum { N = 70001 };
	static const enum cua_type floats[] = {CUA_F16, CUA_BF16, CUA_F32, CUA_F64};
	static const uint64_t infinities[] = {0x7c00, 0x7f80, 0x7f800000, (uint64_t)0x7ff << 52};
	static const double least[] = {0x1p-24, 0x1p-133, 0x1p-149, 0x1p-1074};
	uint64_t seed = test_seed("fast specials");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	(void)i;
	true_mode = CUA_REDUCE_FAST;
	for (size_t t = 0; t < COUNT(floats); t++) {
		const enum cua_type type = floats[t];
		const size_t size = cua_type_size(type);
		const uint64_t minus = (uint64_t)1 << (size * 8 - 1), infinity = infinities[t];
		const size_t at = test_random(&seed) % N,
			     other = (at + 1 + test_random(&seed) % (N - 1)) % N;
		char *host = test_malloc(N * size);
		uint64_t v = minus;
		double sum;

		for (size_t k = 0; k < N; k++)
			memcpy(host + k * size, &v, size);
		sum = reduce_f64(ctx, CUA_REDUCE_SUM, type, N, host);
		ck_assert(sum == 0 && !signbit(sum));
		ck_assert(reduce_f64(ctx, CUA_REDUCE_DOT, type, N, host) == 0);
		v = minus | infinity;
		memcpy(host + at * size, &v, size);
		ck_assert(reduce_f64(ctx, CUA_REDUCE_SUM, type, N, host) == -HUGE_VAL);
		ck_assert(reduce_f64(ctx, CUA_REDUCE_SUM_ABS, type, N, host) == HUGE_VAL);
		v = infinity;
		memcpy(host + other * size, &v, size);
		sum = reduce_f64(ctx, CUA_REDUCE_SUM, type, N, host);
		ck_assert(sum != sum);
		v = infinity | 1;
		memcpy(host + at * size, &v, size);
		sum = reduce_f64(ctx, CUA_REDUCE_SUM, type, N, host);
		ck_assert(sum != sum);
		sum = reduce_f64(ctx, CUA_REDUCE_DOT, type, N, host);
		ck_assert(sum != sum);
		/* the least positive number: any sum of N of them is exact */
		v = 1;
		for (size_t k = 0; k < N; k++)
			memcpy(host + k * size, &v, size);
		ck_assert(reduce_f64(ctx, CUA_REDUCE_SUM, type, N, host) == N * least[t]);
		free(host);
	}
	true_mode = CUA_REDUCE_FIXED;
	cua_context_destroy(ctx);
}

static long double true_variance(enum cua_type type, size_t n, const void *host, int sample)
{
	long double mean = 0, squares = 0, distance;

	for (size_t k = 0; k < n; k++)
		mean += model_is_integer(type) ? (long double)model_integer(type, host, k)
					       : (long double)model_element(type, host, k).re;
	mean /= (long double)n;
	for (size_t k = 0; k < n; k++) {
		distance = (model_is_integer(type) ? (long double)model_integer(type, host, k)
						   : (long double)model_element(type, host, k).re) -
			   mean;
		squares += distance * distance;
	}
	return squares / (long double)(n - (size_t)sample);
}

/*
 * Variances of values far from zero: a difference of two sums of squares would have no correct
 * digit.
 */
static void accurate_variances(int i)
{
	enum { N = 100003 };
	uint64_t seed = test_seed("accurate variances");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double *d = test_malloc(N * 8);
	float *f = test_malloc(N * 4);
	int32_t *s = test_malloc(N * 4);
	uint64_t *u = test_malloc(N * 8);
	long double v;

	(void)i;
	for (size_t k = 0; k < N; k++) {
		double r = (double)(test_random(&seed) >> 11) * 0x1p-53;

		d[k] = 1e9 + r;
		f[k] = (float)(1e5 + r);
		s[k] = 2000000000 + (int32_t)(test_random(&seed) % 10);
		u[k] = ((uint64_t)1 << 52) + test_random(&seed) % 1000;
	}
	for (int sample = 0; sample < 2; sample++) {
		enum cua_reduce_op op = sample ? CUA_REDUCE_VARIANCE_SAMPLE : CUA_REDUCE_VARIANCE;

		v = true_variance(CUA_F64, N, d, sample);
		expect_near(reduce_f64(ctx, op, CUA_F64, N, d), v, 1e-7L * v);
		v = true_variance(CUA_F32, N, f, sample);
		expect_near(reduce_f64(ctx, op, CUA_F32, N, f), v, 1e-11L * v);
		v = true_variance(CUA_I32, N, s, sample);
		expect_near(reduce_f64(ctx, op, CUA_I32, N, s), v, 1e-8L * v);
		v = true_variance(CUA_U64, N, u, sample);
		expect_near(reduce_f64(ctx, op, CUA_U64, N, u), v, 1e-3L * v);
		/* two elements: 1e9 and 1e9 + 1; their variance is 1/4 or 1/2 */
		expect_near(reduce_f64(ctx, op, CUA_F64, 2, (double[]){1e9, 1e9 + 1}),
			    sample ? 0.5L : 0.25L, 0);
	}
	/* all equal: variance 0 */
	for (size_t k = 0; k < N; k++)
		d[k] = 1e300 / 3;
	ck_assert(reduce_f64(ctx, CUA_REDUCE_VARIANCE, CUA_F64, N, d) == 0);
	free(d);
	free(f);
	free(s);
	free(u);
	cua_context_destroy(ctx);
}

static void accurate_means(int i)
{
	enum { N = 50001 };
	uint64_t seed = test_seed("accurate means");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t *u = test_malloc(N * 8);
	long double all = 0, mean;
	model_int128 sum = 0;

	(void)i;
	for (size_t k = 0; k < N; k++) {
		u[k] = UINT64_MAX - test_random(&seed) % 1000000;
		all += (long double)(UINT64_MAX - u[k]);
	}
	mean = (long double)UINT64_MAX - all / N;
	expect_near(reduce_f64(ctx, CUA_REDUCE_MEAN, CUA_U64, N, u), mean, 4 * 0x1p-53L * mean);
	/* of both signs: the sum is far below the elements */
	for (size_t k = 0; k < N; k++)
		u[k] = k % 2 ? (uint64_t)INT64_MAX - k : (uint64_t)INT64_MIN + k * 3;
	for (size_t k = 0; k < N; k++)
		sum += (int64_t)u[k];
	mean = (long double)sum / N;
	expect_near(reduce_f64(ctx, CUA_REDUCE_MEAN, CUA_I64, N, u), mean,
		    4 * 0x1p-53L * fabsl(mean));
	for (size_t k = 0; k < N; k++)
		u[k] = (uint64_t)INT64_MIN;
	ck_assert(reduce_f64(ctx, CUA_REDUCE_MEAN, CUA_I64, N, u) == -0x1p63);
	ck_assert(reduce_f64(ctx, CUA_REDUCE_MEAN, CUA_I64, 1, u) == -0x1p63);
	ck_assert(reduce_f64(ctx, CUA_REDUCE_MEAN, CUA_U64, N, u) == 0x1p63);
	free(u);
	cua_context_destroy(ctx);
}

static void accurate_norms(int i)
{
	enum { N = 20011 };
	static const struct {
		double scale, other;
	} cases[] = {{1e300, 1e300},
		     {1e-300, 1e-300},
		     {1, 1},
		     {1e300, 1e-300},
		     {1, 1e-300},
		     {1e300, 1},
		     {5e-324, 5e-324},
		     {1e-310, 1e-305},
		     {0x1p500, 0x1p481},
		     {0x1p-500, 0x1p-501},
		     {1e160, 1e140},
		     {1e-160, 1e-140},
		     {0, 0}};
	uint64_t seed = test_seed("accurate norms");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double *d = test_malloc(N * 8);

	(void)i;
	for (size_t k = 0; k < COUNT(cases); k++) {
		long double squares = 0, norm, error;

		for (size_t j = 0; j < N; j++) {
			double r = (double)(test_random(&seed) >> 11) * 0x1p-53 + 0.5;

			d[j] = (j % 2 ? -r : r) * (j % 3 ? cases[k].scale : cases[k].other);
			/* scaled by powers of two: so no long double overflows */
			squares += (long double)d[j] * d[j];
		}
		norm = sqrtl(squares);
		error = 20 * 0x1p-53L * norm;
		/* the exact result is half a step between subnormal numbers */
		expect_near(reduce_f64(ctx, CUA_REDUCE_NORM2, CUA_F64, N, d), norm,
			    norm < DBL_MIN ? 0x1p-1074L : error);
	}
	free(d);
	cua_context_destroy(ctx);
}

/* Many elements of middle size: the sum of their squares overflows. */
static void norm_of_many(int i)
{
	const size_t n = (size_t)1 << 24;
	static const double value = 0x1p500;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_reduce_options o = fixed();
	double *x, norm = -1;

	(void)i;
	if (test_quick() || SANITIZED) {
		printf("norm of many: skipped in a quick or instrumented run\n");
		cua_context_destroy(ctx);
		return;
	}
	x = test_alloc(ctx, n * sizeof(*x));
	ck_assert_cua(cua_fill(ctx, x, n, sizeof(value), &value));
	ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_NORM2, CUA_F64, n, x, NULL, &norm));
	ck_assert_msg(norm == value * 4096, "%a", norm);
	test_free(ctx, x);
	cua_context_destroy(ctx);
}

static void accurate_products(int i)
{
	enum { N = 5003 };
	static const enum cua_type floats[] = {CUA_F16, CUA_BF16, CUA_F32, CUA_F64};
	uint64_t seed = test_seed("accurate products");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	void *host = test_malloc(N * 8);

	(void)i;
	for (size_t t = 0; t < COUNT(floats); t++) {
		long double product = 1;

		fill(floats[t], NEAR_ONE, N, host, &seed);
		for (size_t k = 0; k < N; k++)
			product *= model_element(floats[t], host, k).re;
		ck_assert(product != 0 && !isinf(product));
		expect_near(reduce_f64(ctx, CUA_REDUCE_PRODUCT, floats[t], N, host), product,
			    N * 0x1p-53L * fabsl(product));
	}
	free(host);
	cua_context_destroy(ctx);
}

static void accurate_complex(int i)
{
	enum { N = 30011 };
	static const enum cua_type complexes[] = {CUA_COMPLEX_F32, CUA_COMPLEX_F64};
	uint64_t seed = test_seed("accurate complex");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	void *host_x = test_malloc(N * 16), *host_y = test_malloc(N * 16), *x, *y;

	(void)i;
	for (size_t t = 0; t < COUNT(complexes); t++) {
		enum cua_type type = complexes[t];
		struct cua_reduce_options o = fixed();

		o.result_type = CUA_COMPLEX_F64;
		fill(type, TAME, N, host_x, &seed);
		fill(type, TAME, N, host_y, &seed);
		x = test_upload(ctx, host_x, N * cua_type_size(type));
		y = test_upload(ctx, host_y, N * cua_type_size(type));
		for (int conjugated = 0; conjugated < 2; conjugated++) {
			long double re = 0, im = 0, size = 0, error;
			struct cua_complex_f64 got = {-1, -1};

			for (size_t k = 0; k < N; k++) {
				struct model_element a = model_element(type, host_x, k),
						     b = model_element(type, host_y, k);
				long double sign = conjugated ? -1 : 1;

				re += (long double)a.re * b.re - sign * a.im * b.im;
				im += (long double)a.re * b.im + sign * a.im * b.re;
				size += fabsl((long double)a.re * b.re) +
					fabsl((long double)a.im * b.im) +
					fabsl((long double)a.re * b.im) +
					fabsl((long double)a.im * b.re);
			}
			error = 25 * 0x1p-53L * size;
			ck_assert_cua(cua_reduce(ctx, &o,
						 conjugated ? CUA_REDUCE_DOT_CONJ : CUA_REDUCE_DOT,
						 type, N, x, y, &got));
			expect_near(got.re, re, error);
			expect_near(got.im, im, error);
		}
		test_free(ctx, x);
		test_free(ctx, y);
	}
	/* (1 + 2i)(3 + 4i) = -5 + 10i, and with the first conjugated 11 - 2i */
	{
		struct cua_complex_f32 a = {1, 2}, b = {3, 4}, got = {0, 0};
		struct cua_reduce_options o = fixed();

		x = test_upload(ctx, &a, sizeof(a));
		y = test_upload(ctx, &b, sizeof(b));
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_DOT, CUA_COMPLEX_F32, 1, x, y, &got));
		ck_assert(got.re == -5 && got.im == 10);
		ck_assert_cua(
			cua_reduce(ctx, &o, CUA_REDUCE_DOT_CONJ, CUA_COMPLEX_F32, 1, x, y, &got));
		ck_assert(got.re == 11 && got.im == -2);
		test_free(ctx, x);
		test_free(ctx, y);
	}
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}

static const struct fixed_test tests[] = {
	{accurate_sums, 3},  {fast_specials, 1}, {accurate_variances, 1}, {accurate_means, 1},
	{accurate_norms, 1}, {norm_of_many, 1},  {accurate_products, 1},  {accurate_complex, 1},
};

int main(void)
{
	return fixed_run("fixed_values", tests, COUNT(tests));
}
