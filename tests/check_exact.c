/* SPDX-License-Identifier: MIT */
/*
 * Exact sums. The inline functions are compared with a long binary number and, if available, with
 * MPFR. The host calls on either backend are compared with both.
 */
#include "common.h"

#include <math.h>

#include "exact_elements.h"
#include "exact_model.h"
#if TEST_MPFR
#include "mpfr_round.h"
#endif

/* ---- the expected result ---- */

#if TEST_MPFR
static double double_of(const struct format *f, uint64_t bits)
{
	uint64_t mantissa;
	int negative, power;

	if (model_is_nan(f, bits))
		return (double)NAN;
	if (!model_split(f, bits, &negative, &mantissa, &power))
		return negative ? -HUGE_VAL : HUGE_VAL;
	return ldexp(negative ? -(double)mantissa : (double)mantissa, power);
}

static uint64_t bits_of_double(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* More bits than any sum here needs. */
#define MPFR_BITS 4600

static mpfr_t mpfr_sum_, mpfr_x_, mpfr_y_;

static void mpfr_begin(void)
{
	static int made;

	if (!made) {
		mpfr_init2(mpfr_sum_, MPFR_BITS);
		mpfr_init2(mpfr_x_, 53);
		mpfr_init2(mpfr_y_, 106);
		made = 1;
	}
	mpfr_set_zero(mpfr_sum_, 1);
}

static void mpfr_take(const struct format *f, uint64_t x, const uint64_t *y)
{
	ck_assert_int_eq(mpfr_set_d(mpfr_x_, double_of(f, x), MPFR_RNDN), 0);
	if (y) {
		ck_assert_int_eq(mpfr_mul_d(mpfr_y_, mpfr_x_, double_of(f, *y), MPFR_RNDN), 0);
		ck_assert_int_eq(mpfr_add(mpfr_sum_, mpfr_sum_, mpfr_y_, MPFR_RNDN), 0);
	} else {
		ck_assert_int_eq(mpfr_add(mpfr_sum_, mpfr_sum_, mpfr_x_, MPFR_RNDN), 0);
	}
}

/* Whether MPFR rounds its sum to these bits. */
static int mpfr_agrees(const struct format *f, uint64_t bits)
{
	if (mpfr_zero_p(mpfr_sum_))
		return bits == 0;
	if (mpfr_nan_p(mpfr_sum_))
		return bits == format_nan(f);
	return bits_of_double(mpfr_rounded(f, mpfr_sum_)) == bits_of_double(double_of(f, bits));
}
#endif

/* The model's sum of x, or of products with y; MPFR must agree in every format. */
static void expect_sum(struct model *m, const struct format *f, size_t n, const void *x,
		       const void *y)
{
	model_init(m);
#if TEST_MPFR
	mpfr_begin();
#endif
	for (size_t i = 0; i < n; i++) {
		uint64_t a = format_load(f, x, i), b = y ? format_load(f, y, i) : 0;

		if (y)
			model_add_product(m, f, a, b);
		else
			model_add(m, f, a);
#if TEST_MPFR
		mpfr_take(f, a, y ? &b : NULL);
#endif
	}
#if TEST_MPFR
	for (int r = 0; r < FORMATS; r++) {
		uint64_t bits = model_round(m, &formats[r]);

		ck_assert_msg(mpfr_agrees(&formats[r], bits),
			      "MPFR rounds a sum of %zu %s to %s another way than %llx", n, f->name,
			      formats[r].name, (unsigned long long)bits);
	}
#endif
}

/* Every format rounds as the model does. */
static void assert_rounds(const struct cua_exact *e, const struct model *m, const char *what)
{
	for (int r = 0; r < FORMATS; r++) {
		uint64_t got = inline_round(e, &formats[r]), expected = model_round(m, &formats[r]);

		ck_assert_msg(got == expected, "%s: to %s: %llx, expected %llx", what,
			      formats[r].name, (unsigned long long)got,
			      (unsigned long long)expected);
	}
}

static void assert_same(const struct cua_exact *a, const struct cua_exact *b, const char *what)
{
	ck_assert_msg(memcmp(a, b, sizeof(*a)) == 0, "%s: two sums of the same elements differ",
		      what);
}

#if !TEST_CUDA
/* ---- the inline functions ---- */

START_TEST(test_one_element)
{
	uint64_t seed = test_seed("one element");

	for (int k = 0; k < FORMATS; k++) {
		const struct format *f = &formats[k];
		uint64_t minus = format_minus(f);
		int exhaustive = f->size == 2;

		for (uint64_t i = 0; i < 65536; i++) {
			uint64_t bits = exhaustive ? i : test_random(&seed) & (2 * minus - 1),
				 expected, got;
			struct cua_exact e = CUA_EXACT_INIT;

			if (!exhaustive && i % 4 == 0)
				bits &= minus | (((uint64_t)1 << f->fraction) - 1);
			expected = model_is_nan(f, bits) ? format_nan(f) : bits == minus ? 0 : bits;
			inline_add(&e, f, bits);
			got = inline_round(&e, f);
			EXPECT(got == expected, "%s %llx comes back as %llx", f->name,
			       (unsigned long long)bits, (unsigned long long)got);
		}
	}
}
END_TEST

START_TEST(test_inline)
{
	uint64_t seed = test_seed("inline");
	char x[200 * 8], y[200 * 8];

	for (int turn = 0; turn < (test_quick() ? 2 : 12); turn++) {
		for (int k = 0; k < FORMATS * KINDS * 2; k++) {
			const struct format *f = &formats[k % FORMATS];
			enum kind_of_element kind = (enum kind_of_element)(k / FORMATS % KINDS);
			int dot = k >= FORMATS * KINDS;
			size_t n = test_random(&seed) % 200;
			struct cua_exact e = CUA_EXACT_INIT;
			struct model m;
			char what[80];

			snprintf(what, sizeof(what), "%s of %zu %s, %s", dot ? "dot" : "sum", n,
				 f->name, kind_names[kind]);
			fill(f, kind, n, x, dot ? y : NULL, &seed);
			expect_sum(&m, f, n, x, dot ? y : NULL);
			sum_inline(&e, f, n, x, dot ? y : NULL);
			assert_rounds(&e, &m, what);
		}
	}
}
END_TEST

/*
 * Numbers of each format, the midpoints of neighbouring numbers, and values slightly to either side
 * of these. Also sums that overflow, and sums that round to the least numbers and to zero.
 */
START_TEST(test_rounding)
{
	const struct format *f64 = &formats[3];
	uint64_t seed = test_seed("rounding"), x[5], y[5];

	for (int turn = 0; turn < (test_quick() ? 100 : 2000); turn++) {
		for (int k = 0; k < FORMATS; k++) {
			const struct format *f = &formats[k];
			uint64_t bits = random_finite(f, &seed) & (format_minus(f) - 1), mantissa,
				 sign, one;
			int negative, power, n = 0;
			struct cua_exact e = CUA_EXACT_INIT;
			struct model m;
			double value, half;

			switch (turn % 8) {
			case 0: bits = format_infinity(f) - 1; break;
			case 1: bits = turn / 8 % 4; break;
			case 2: bits = ((uint64_t)1 << f->fraction) - 2 + turn / 8 % 4; break;
			case 3: bits &= ~(((uint64_t)1 << f->fraction) - 1); break;
			}
			(void)model_split(f, bits, &negative, &mantissa, &power);
			value = ldexp((double)mantissa, power);
			/* as a product: half of the least f64 is no f64 */
			half = ldexp(1, power / 2);
			sign = test_random(&seed) & format_minus(f64);
			one = 0x3ff0000000000000u | sign;
			memcpy(&x[n], &value, 8);
			y[n++] = one;
			memcpy(&x[n], &half, 8);
			half = ldexp(1, power - power / 2 - 1);
			memcpy(&y[n], &half, 8);
			y[n++] |= sign;
			if (turn % 3) {
				/*
				 * slightly up or down: by 2^-2148, or by a power of two just below
				 * the half
				 */
				int below = power - 2 - (int)(test_random(&seed) % 80);

				half = turn % 3 == 1 ? 0x1p-1074 : ldexp(1, below / 2);
				memcpy(&x[n], &half, 8);
				half = turn % 3 == 1 ? 0x1p-1074 : ldexp(1, below - below / 2);
				memcpy(&y[n], &half, 8);
				y[n++] |= test_random(&seed) & format_minus(f64);
			}
			for (int i = 0; i < n; i++)
				inline_add_product(&e, f64, x[i], y[i]);
			expect_sum(&m, f64, (size_t)n, x, y);
			assert_rounds(&e, &m, f->name);
		}
	}
}
END_TEST

/* Digits that reach their limit: doubled by merges, with all signs. */
START_TEST(test_carry)
{
	uint64_t seed = test_seed("carry");

	for (int turn = 0; turn < 50; turn++) {
		struct cua_exact e = CUA_EXACT_INIT, part = CUA_EXACT_INIT;
		struct model m;
		uint64_t x[70];
		int doubled = 1 + (int)(test_random(&seed) % 60);

		for (int i = 0; i < 70; i++) {
			x[i] = turn % 2 ? 0x3fffffffffffffffu
					: random_near(&formats[3], 1023, 64, &seed);
			inline_add(&part, &formats[3], x[i]);
		}
		model_init(&m);
		cua_exact_merge(&e, &part);
		for (int i = 0; i < doubled; i++) {
			cua_exact_merge(&e, &e);
			ck_assert_uint_le(e.pending, CUA__EXACT_PENDING_MAX);
		}
		for (int i = 0; i < 70; i++)
			model_add(&m, &formats[3], x[i] + ((uint64_t)doubled << 52));
		assert_rounds(&e, &m, "a sum that was doubled");
	}
	/* and by additions alone, from a count near the limit */
	for (int turn = 0; turn < 4; turn++) {
		struct cua_exact e = CUA_EXACT_INIT;
		struct model m;
		uint64_t x = turn % 2 ? 0xbfffffffffffffffu : 0x3fffffffffffffffu,
			 times = (uint64_t)1 << 30;
		int products = turn / 2;

		model_init(&m);
		inline_add(&e, &formats[3], x);
		for (uint64_t i = 1; i < times; i *= 2) {
			/* digits that are not normalized */
			struct cua_exact copy = e;

			cua_exact_merge(&e, &copy);
		}
		model_add(&m, &formats[3], x + ((uint64_t)30 << 52));
		e.pending = CUA__EXACT_PENDING_MAX - 3;
		for (int i = 0; i < 8; i++) {
			if (products)
				inline_add_product(&e, &formats[3], x, 0x3ff0000000000000u);
			else
				inline_add(&e, &formats[3], x);
			model_add(&m, &formats[3], x);
		}
		ck_assert_uint_lt(e.pending, 100);
		assert_rounds(&e, &m, "additions up to the limit");
	}
}
END_TEST

/* All ways to split a sum into parts lead to the same normalized form. */
START_TEST(test_splits)
{
	uint64_t seed = test_seed("splits");
	enum { N = 300 };
	char x[N * 8], y[N * 8];

	for (int turn = 0; turn < (test_quick() ? 20 : 200); turn++) {
		const struct format *f = &formats[turn % FORMATS];
		enum kind_of_element kind = (enum kind_of_element)(test_random(&seed) % KINDS);
		int dot = turn / FORMATS % 2, parts = 1 + (int)(test_random(&seed) % 9);
		struct cua_exact whole = CUA_EXACT_INIT, merged = CUA_EXACT_INIT, part[9],
				 empty = CUA_EXACT_INIT;

		fill(f, kind, N, x, dot ? y : NULL, &seed);
		sum_inline(&whole, f, N, x, dot ? y : NULL);
		for (int i = 0; i < parts; i++)
			cua_exact_init(&part[i]);
		for (size_t i = 0; i < N; i++) {
			size_t j = (i * 173 + 29) % N;
			struct cua_exact *p = &part[test_random(&seed) % (uint64_t)parts];

			if (dot)
				inline_add_product(p, f, format_load(f, x, j),
						   format_load(f, y, j));
			else
				inline_add(p, f, format_load(f, x, j));
		}
		for (int i = parts - 1; i >= 0; i--) {
			if (test_random(&seed) % 2)
				cua_exact_normalize(&part[i]);
			cua_exact_merge(&merged, &part[i]);
		}
		cua_exact_merge(&merged, &empty);
		cua_exact_normalize(&whole);
		cua_exact_normalize(&merged);
		assert_same(&whole, &merged, kind_names[kind]);
	}
	/* a sum of zeros and a sum that has cancelled are the empty sum */
	{
		struct cua_exact zeros, e = CUA_EXACT_INIT;

		memset(&zeros, 0, sizeof(zeros));
		assert_same(&zeros, &e, "zeros");
		cua_exact_add_f64(&e, 1e300);
		cua_exact_add_product_f32(&e, 1e-30f, -1e-30f);
		cua_exact_add_f64(&e, -1e300);
		cua_exact_add_product_f32(&e, 1e-30f, 1e-30f);
		cua_exact_normalize(&e);
		assert_same(&zeros, &e, "cancelled");
	}
	/* another layout is NaN */
	{
		struct cua_exact other = CUA_EXACT_INIT, e = CUA_EXACT_INIT;

		other.layout = CUA_EXACT_LAYOUT + 1;
		ck_assert(isnan(cua_exact_round_f64(&other)));
		cua_exact_merge(&e, &other);
		ck_assert(isnan(cua_exact_round_f64(&e)));
	}
}
END_TEST

/* Each rule for infinities, NaN and zeros. */
START_TEST(test_rules)
{
	static const double largest = 1.7976931348623157e308;
	const double inf = HUGE_VAL, nan = (double)NAN;
	const struct {
		double x[3], y[3];
		double expected;
	} rules[] = {
		{{0, 0, 0}, {1, 1, 1}, 0},
		{{-0.0, -0.0, -0.0}, {1, 1, 1}, 0},
		{{-0.0, 0, 0}, {5, -0.0, -0.0}, 0},
		{{1, -1, -0.0}, {1, 1, 1}, 0},
		{{inf, 1, 1}, {1, 1, 1}, inf},
		{{-inf, largest, largest}, {1, 1, 1}, -inf},
		{{inf, -inf, 1}, {1, 1, 1}, nan},
		{{inf, 1, 1}, {-2, 1, 1}, -inf},
		{{-inf, inf, 1}, {-2, 1e-300, 1}, inf},
		{{inf, 1, 1}, {0, 1, 1}, nan},
		{{-0.0, 1, 1}, {-inf, 1, 1}, nan},
		{{inf, 1, 1}, {nan, 1, 1}, nan},
		{{-nan, 1, 1}, {0, 1, 1}, nan},
		{{inf, 1, nan}, {1, 1, 1}, nan},
		{{largest, largest, -largest}, {1, 1, 1}, largest},
		{{largest, -largest, 3}, {largest, largest, 1}, 3},
		{{largest, largest, 0}, {1, 1, 1}, inf},
		{{-largest, 0x1p970, 0}, {1, -1, 0}, -inf},
		{{-largest, 0x1.fffffffffffffp969, 0}, {1, -1, 0}, -largest},
		{{0x1p-600, 0, 0}, {-0x1p-600, 0, 0}, -0.0},
		{{0x1p-600, 0x1p-1074, 0}, {-0x1p-600, 0.5, 0}, 0},
		{{0x1p-600, 0x1p-1074, 0}, {0x1p-600, 0.5, 0}, 0x1p-1074},
		{{0x1p-600, 0x1p-1074, 0}, {-0x1p-600, -0.5, 0}, -0x1p-1074},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct cua_exact e = CUA_EXACT_INIT;
		double got;

		for (int j = 0; j < 3; j++)
			cua_exact_add_product_f64(&e, rules[i].x[j], rules[i].y[j]);
		got = cua_exact_round_f64(&e);
		ck_assert_msg(isnan(rules[i].expected)
				      ? isnan(got) && !signbit(got)
				      : got == rules[i].expected &&
						!signbit(got) == !signbit(rules[i].expected),
			      "rule %zu: %a, expected %a", i, got, rules[i].expected);
	}
}
END_TEST
#endif

/* ---- the host calls ---- */

static struct cua_exact *upload_sum(struct cua_context *ctx, const struct cua_exact *e)
{
	return test_upload(ctx, e, sizeof(*e));
}

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, result = -1;
	double *x = test_upload(ctx, host, sizeof(host)), *y = test_upload(ctx, host, sizeof(host)),
	       *none = NULL;
	struct cua_exact e = CUA_EXACT_INIT, before, *partial;
	/* room for a misaligned partial sum */
	char *memory = test_alloc(ctx, 4 * sizeof(e));

	cua_exact_add_f64(&e, 5);
	before = e;
#define REFUSED(expected, call)                                                                    \
	do {                                                                                       \
		ck_assert_status(call, expected);                                                  \
		assert_same(&e, &before, #call);                                                   \
	} while (0)
	REFUSED(CUA_ERROR_NULL, cua_exact_sum(NULL, CUA_F64, 4, x, &e));
	REFUSED(CUA_ERROR_NULL, cua_exact_sum(ctx, CUA_F64, 4, none, &e));
	REFUSED(CUA_ERROR_NULL, cua_exact_sum(ctx, CUA_F64, 4, x, NULL));
	REFUSED(CUA_ERROR_NULL, cua_exact_sum(ctx, CUA_F64, 0, NULL, NULL));
	REFUSED(CUA_ERROR_NULL, cua_exact_dot(NULL, CUA_F64, 4, x, y, &e));
	REFUSED(CUA_ERROR_NULL, cua_exact_dot(ctx, CUA_F64, 4, none, y, &e));
	REFUSED(CUA_ERROR_NULL, cua_exact_dot(ctx, CUA_F64, 4, x, none, &e));
	REFUSED(CUA_ERROR_TYPE, cua_exact_sum(ctx, CUA_U32, 4, x, &e));
	REFUSED(CUA_ERROR_TYPE, cua_exact_sum(ctx, CUA_COMPLEX_F32, 4, x, &e));
	REFUSED(CUA_ERROR_TYPE, cua_exact_dot(ctx, (enum cua_type)0, 4, x, y, &e));
	REFUSED(CUA_ERROR_TYPE, cua_exact_dot(ctx, (enum cua_type)99, 4, x, y, &e));
	REFUSED(CUA_ERROR_SIZE, cua_exact_sum(ctx, CUA_F64, SIZE_MAX / 8, x, &e));
	REFUSED(CUA_ERROR_SIZE, cua_exact_dot(ctx, CUA_F16, SIZE_MAX / 2, x, y, &e));
	REFUSED(CUA_ERROR_ALIGNMENT, cua_exact_sum(ctx, CUA_F64, 4, (char *)x + 4, &e));
	REFUSED(CUA_ERROR_ALIGNMENT, cua_exact_sum(ctx, CUA_F16, 4, (char *)x + 1, &e));
	REFUSED(CUA_ERROR_ALIGNMENT, cua_exact_dot(ctx, CUA_F32, 4, x, (char *)y + 2, &e));
	REFUSED(CUA_ERROR_ALIGNMENT,
		cua_exact_sum(ctx, CUA_F64, 4, x, (struct cua_exact *)(void *)(memory + 4)));
	REFUSED(CUA_ERROR_OVERLAP,
		cua_exact_sum(ctx, CUA_F64, 200, memory, (struct cua_exact *)(void *)(memory + 8)));
	REFUSED(CUA_ERROR_OVERLAP,
		cua_exact_dot(ctx, CUA_F64, 4, x, memory, (struct cua_exact *)(void *)memory));
	before.layout = e.layout = CUA_EXACT_LAYOUT + 1;
	REFUSED(CUA_ERROR_LAYOUT, cua_exact_sum(ctx, CUA_F64, 4, x, &e));
	REFUSED(CUA_ERROR_LAYOUT, cua_exact_dot(ctx, CUA_F64, 4, x, y, &e));
	before.layout = e.layout = CUA_EXACT_LAYOUT;

	partial = upload_sum(ctx, &e);
	REFUSED(CUA_ERROR_NULL, cua_exact_finish(NULL, partial, CUA_F64, &result));
	REFUSED(CUA_ERROR_NULL, cua_exact_finish(ctx, NULL, CUA_F64, &result));
	REFUSED(CUA_ERROR_NULL, cua_exact_finish(ctx, partial, CUA_F64, NULL));
	REFUSED(CUA_ERROR_TYPE, cua_exact_finish(ctx, partial, CUA_I64, &result));
	REFUSED(CUA_ERROR_ALIGNMENT, cua_exact_finish(ctx, partial, CUA_F64, (char *)&result + 4));
	REFUSED(CUA_ERROR_ALIGNMENT,
		cua_exact_finish(ctx, (struct cua_exact *)(void *)(memory + 4), CUA_F64, &result));
	REFUSED(CUA_ERROR_OVERLAP, cua_exact_finish(ctx, partial, CUA_F64, &partial->digit[3]));
	ck_assert(result == -1);
	ck_assert_cua(cua_exact_finish(ctx, partial, CUA_F64, &result));
	ck_assert(result == 5);
	/* accumulates: 5 + 36 */
	ck_assert_cua(cua_exact_sum(ctx, CUA_F64, 8, x, &e));
	ck_assert(cua_exact_round_f64(&e) == 41);
	test_free(ctx, partial);
	test_free(ctx, memory);
	test_free(ctx, x);
	test_free(ctx, y);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * A single call, with a partial in the backend's memory or in the host's, after another sum or
 * none.
 */
static void try_call(struct cua_context *ctx, const struct format *f, int dot, size_t n,
		     const void *x, const void *y, const void *host_x, const void *host_y,
		     uint64_t *seed, const char *what)
{
	struct cua_exact e = CUA_EXACT_INIT, expected, *partial;
	uint64_t r = test_random(seed);
	struct model m;

	expect_sum(&m, f, n, host_x, dot ? host_y : NULL);
	if (r & 1) {
		/* digits that have not been normalized */
		for (int i = 0; i < 3; i++) {
			uint64_t bits = random_finite(&formats[3], seed);

			inline_add(&e, &formats[3], bits);
			model_add(&m, &formats[3], bits);
		}
	}
	expected = e;
	sum_inline(&expected, f, n, host_x, dot ? host_y : NULL);
	cua_exact_normalize(&expected);
	partial = r & 2 ? upload_sum(ctx, &e) : &e;
	if (dot)
		ck_assert_cua(cua_exact_dot(ctx, f->type, n, x, y, partial));
	else
		ck_assert_cua(cua_exact_sum(ctx, f->type, n, x, partial));
	if (r & 2) {
		for (int k = 0; k < FORMATS; k++) {
			uint64_t got = 0, wanted = model_round(&m, &formats[k]);

			ck_assert_cua(cua_exact_finish(ctx, partial, formats[k].type, &got));
			ck_assert_msg(got == wanted, "%s: finished as %s: %llx, expected %llx",
				      what, formats[k].name, (unsigned long long)got,
				      (unsigned long long)wanted);
		}
		test_download(ctx, &e, partial, sizeof(e));
		test_free(ctx, partial);
	}
	assert_rounds(&e, &m, what);
	assert_same(&e, &expected, what);
}

START_TEST(test_calls)
{
	uint64_t seed = test_seed("calls");
	static const size_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 511, 512, 513, 1025, 2999, 5000};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	size_t room = 5000 + 32;
	char *host_x = test_malloc(room * 8), *host_y = test_malloc(room * 8);
	char *x = test_alloc(ctx, room * 8), *y = test_alloc(ctx, room * 8);

	for (int k = 0; k < FORMATS * KINDS * 2; k++) {
		const struct format *f = &formats[k % FORMATS];
		enum kind_of_element kind = (enum kind_of_element)(k / FORMATS % KINDS);
		int dot = k >= FORMATS * KINDS;

		fill(f, kind, room, host_x, host_y, &seed);
		ck_assert_cua(cua_copy(ctx, x, host_x, room * 8));
		ck_assert_cua(cua_copy(ctx, y, host_y, room * 8));
		ck_assert_cua(cua_context_synchronize(ctx));
		for (size_t i = 0; i < (test_quick() ? 6 : sizeof(sizes) / sizeof(sizes[0])); i++) {
			size_t at_x = test_random(&seed) % 16 * (size_t)f->size;
			size_t at_y = test_random(&seed) % 3
					      ? at_x
					      : test_random(&seed) % 16 * (size_t)f->size;
			size_t n = sizes[test_quick() ? test_random(&seed) % 13 : i];
			char what[100];

			snprintf(what, sizeof(what), "%s of %zu %s, %s, at %zu and %zu",
				 dot ? "dot" : "sum", n, f->name, kind_names[kind], at_x, at_y);
			try_call(ctx, f, dot, n, x + at_x, y + at_y, host_x + at_x, host_y + at_y,
				 &seed, what);
		}
	}
	free(host_x);
	free(host_y);
	test_free(ctx, x);
	test_free(ctx, y);
	cua_context_destroy(ctx);
}
END_TEST

/* Sums of f64 with condition numbers up to 1e300, and products of half the exponents. */
START_TEST(test_condition)
{
	uint64_t seed = test_seed("condition");
	enum { N = 2000 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double *host_x = test_malloc(N * 8), *host_y = test_malloc(N * 8);

	for (int decade = 0; decade <= 300; decade += 50) {
		struct cua_exact sum = CUA_EXACT_INIT, dot = CUA_EXACT_INIT;
		double *x, *y, result,
			expected = ldexp((double)(test_random(&seed) >> 11 | 1), -60);
		struct model m;

		for (int i = 0; i < N; i++) {
			host_x[i] = ldexp((double)(int64_t)test_random(&seed), -63);
			host_x[i] *= pow(10, (double)(test_random(&seed) % (unsigned)(decade + 1)));
			host_y[i] = 1;
		}
		for (int i = 0; i < N / 2; i++)
			host_x[N / 2 + i] = -host_x[i];
		host_x[0] = expected;
		host_x[N / 2] = 0;
		for (int i = N; i > 1; i--) {
			size_t j = test_random(&seed) % (uint64_t)i;
			double t = host_x[i - 1];

			host_x[i - 1] = host_x[j];
			host_x[j] = t;
		}
		x = test_upload(ctx, host_x, N * 8);
		ck_assert_cua(cua_exact_sum(ctx, CUA_F64, N, x, &sum));
		expect_sum(&m, &formats[3], N, host_x, NULL);
		assert_rounds(&sum, &m, "condition");
		result = cua_exact_round_f64(&sum);
		ck_assert_msg(result == expected, "10^%d: %a, expected %a", decade, result,
			      expected);
		/* with the power of two in the other factor */
		for (int i = 0; i < N; i++) {
			int power;

			host_x[i] = frexp(host_x[i], &power);
			host_y[i] = ldexp(1 + ldexp(1, -52), power);
		}
		y = test_upload(ctx, host_y, N * 8);
		test_free(ctx, x);
		x = test_upload(ctx, host_x, N * 8);
		ck_assert_cua(cua_exact_dot(ctx, CUA_F64, N, x, y, &dot));
		expect_sum(&m, &formats[3], N, host_x, host_y);
		assert_rounds(&dot, &m, "condition of products");
		test_free(ctx, x);
		test_free(ctx, y);
	}
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}
END_TEST

/* The same bits with every number of threads, in every order and split, on every backend. */
START_TEST(test_same)
{
	uint64_t seed = test_seed("same");
	size_t n = test_quick() ? 70001 : 700001;
	struct cua_context *ctx = test_context(TEST_BACKEND), *cpu = test_context(CUA_BACKEND_CPU);
	char *host_x = test_malloc(n * 8), *host_y = test_malloc(n * 8);

	for (int k = 0; k < FORMATS * KINDS; k++) {
		const struct format *f = &formats[k % FORMATS];
		enum kind_of_element kind = (enum kind_of_element)(k / FORMATS % KINDS);
		size_t bytes = n * (size_t)f->size;
		char *x, *y;
		struct cua_exact first[2] = {CUA_EXACT_INIT, CUA_EXACT_INIT};

		fill(f, kind, n, host_x, host_y, &seed);
		x = test_upload(ctx, host_x, bytes);
		y = test_upload(ctx, host_y, bytes);
		ck_assert_cua(cua_exact_sum(ctx, f->type, n, x, &first[0]));
		ck_assert_cua(cua_exact_dot(ctx, f->type, n, x, y, &first[1]));
		for (unsigned threads = 1; threads < 12; threads += 5) {
			struct cua_exact e[2] = {CUA_EXACT_INIT, CUA_EXACT_INIT};

			ck_assert_cua(cua_context_set_threads(cpu, threads));
			ck_assert_cua(cua_exact_sum(cpu, f->type, n, host_x, &e[0]));
			ck_assert_cua(cua_exact_dot(cpu, f->type, n, host_x, host_y, &e[1]));
			assert_same(&e[0], &first[0], kind_names[kind]);
			assert_same(&e[1], &first[1], kind_names[kind]);
		}
		for (int turn = 0; turn < 2; turn++) {
			size_t cut = test_random(&seed) % n, rest = n - cut,
			       at = cut * (size_t)f->size;
			struct cua_exact a = CUA_EXACT_INIT, b = CUA_EXACT_INIT;

			if (turn) {
				ck_assert_cua(
					cua_exact_dot(ctx, f->type, rest, x + at, y + at, &a));
				ck_assert_cua(cua_exact_dot(cpu, f->type, cut, host_x, host_y, &b));
			} else {
				ck_assert_cua(cua_exact_sum(ctx, f->type, rest, x + at, &a));
				ck_assert_cua(cua_exact_sum(cpu, f->type, cut, host_x, &b));
			}
			cua_exact_merge(&a, &b);
			cua_exact_normalize(&a);
			assert_same(&a, &first[turn], kind_names[kind]);
		}
		/* in another order */
		{
			struct cua_exact e = CUA_EXACT_INIT;

			for (size_t i = n; i > 1; i--) {
				size_t j = test_random(&seed) % i;
				uint64_t t = format_load(f, host_x, i - 1);

				format_store(f, host_x, i - 1, format_load(f, host_x, j));
				format_store(f, host_x, j, t);
			}
			ck_assert_cua(cua_copy(ctx, x, host_x, bytes));
			ck_assert_cua(cua_exact_sum(ctx, f->type, n, x, &e));
			assert_same(&e, &first[0], kind_names[kind]);
		}
		test_free(ctx, x);
		test_free(ctx, y);
	}
	free(host_x);
	free(host_y);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * 10^9 elements in a single partial, piece by piece. The elements are integers, so the expected sum
 * is known.
 */
START_TEST(test_many)
{
	uint64_t seed = test_seed("many"), all = test_quick() ? 10000019 : 1000000007, left = all;
	size_t n = (size_t)1 << 22;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_exact zero = CUA_EXACT_INIT, *partial = upload_sum(ctx, &zero),
			 expected = CUA_EXACT_INIT;
	struct cua_exact piece = CUA_EXACT_INIT, rest = CUA_EXACT_INIT;
	float *host = test_malloc(n * sizeof(float)), *x;
	uint64_t got = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t bits =
			random_element(&formats[2], i % 4 ? KIND_NEAR : KIND_OUTLIER, i, &seed);

		format_store(&formats[2], host, i, bits);
		cua_exact_add_f32(&piece, host[i]);
		if (i < all % n)
			cua_exact_add_f32(&rest, host[i]);
	}
	x = test_upload(ctx, host, n * sizeof(float));
	while (left) {
		size_t now = left < n ? (size_t)left : n;

		ck_assert_cua(cua_exact_sum(ctx, CUA_F32, now, x, partial));
		cua_exact_merge(&expected, now == n ? &piece : &rest);
		left -= now;
	}
	cua_exact_normalize(&expected);
	ck_assert_cua(cua_exact_finish(ctx, partial, CUA_F64, &got));
	test_download(ctx, &zero, partial, sizeof(zero));
	assert_same(&zero, &expected, "10^9 elements");
	ck_assert_uint_eq(got, inline_round(&expected, &formats[3]));
	free(host);
	test_free(ctx, x);
	test_free(ctx, partial);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Structs whose digits no sum has, as in uninitialized memory: every call ends and returns a
 * number. The sanitizer for undefined behaviour watches the additions.
 */
START_TEST(test_wild)
{
	static const int64_t most[] = {INT64_MAX, INT64_MIN, -1, 1, 0x100000000, 0xffffffff};
	uint64_t seed = test_seed("wild");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double x[3] = {1.5, -1e300, 1e-300}, *ours = test_upload(ctx, x, sizeof(x));

	for (int round = 0; round < 300; round++) {
		struct cua_exact e = CUA_EXACT_INIT, other = CUA_EXACT_INIT, *partial;
		uint64_t result;

		for (int i = 0; i < CUA_EXACT_DIGITS; i++) {
			e.digit[i] = round % 3 ? most[test_random(&seed) % 6]
					       : (int64_t)test_random(&seed);
			other.digit[i] = round % 2 ? e.digit[i] : INT64_MAX;
		}
		/* a negative leading digit, but all digits are 0 after the carries */
		for (int i = 0; !round && i < CUA_EXACT_DIGITS; i++)
			e.digit[i] = i < 7 ? 0
					   : most[i == 7                     ? 4
						  : i < CUA_EXACT_DIGITS - 1 ? 5
									     : 2];
		e.pending = round % 2 ? (uint32_t)test_random(&seed) : 0;
		partial = upload_sum(ctx, &e);
		for (int f = 0; f < 4; f++)
			ck_assert_cua(cua_exact_finish(ctx, partial, formats[f].type, &result));
		ck_assert_cua(cua_exact_sum(ctx, CUA_F64, 3, ours, partial));
		ck_assert_cua(cua_exact_dot(ctx, CUA_F64, 3, ours, ours, partial));
		test_free(ctx, partial);
		for (int f = 0; f < 4; f++) {
			partial = &(struct cua_exact){0};
			*partial = e;
			(void)inline_round(partial, &formats[f]);
		}
		cua_exact_add_f64(&e, x[round % 3]);
		cua_exact_add_product_f64(&e, x[0], x[1]);
		cua_exact_merge(&e, &other);
		cua_exact_normalize(&e);
	}
	test_free(ctx, ours);
	cua_context_destroy(ctx);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exact");
	TCase *tc = tcase_create("exact");

	tcase_set_timeout(tc, 600);
#if !TEST_CUDA
	tcase_add_test(tc, test_one_element);
	tcase_add_test(tc, test_inline);
	tcase_add_test(tc, test_rounding);
	tcase_add_test(tc, test_carry);
	tcase_add_test(tc, test_splits);
	tcase_add_test(tc, test_rules);
#endif
	tcase_add_test(tc, test_arguments);
	tcase_add_test(tc, test_calls);
	tcase_add_test(tc, test_condition);
	tcase_add_test(tc, test_same);
	tcase_add_test(tc, test_wild);
	tcase_add_test(tc, test_many);
	suite_add_tcase(suite, tc);
	return test_run(suite, TEST_BACKEND);
}
