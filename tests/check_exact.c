/* SPDX-License-Identifier: MIT */
/*
 * Exact sums: the inline functions against a long number in plain binary and, where it was found, against
 * MPFR; the host calls on either backend against both.
 */
#include "common.h"

#include <math.h>

#include "exact_model.h"
#if TEST_MPFR
#include <mpfr.h>
#endif

/* ---- what the result must be ---- */

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

/* More bits than any sum here has. */
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
	mpfr_exp_t least = mpfr_get_emin(), most = mpfr_get_emax();
	int bias = (1 << (f->exponent - 1)) - 1, how;
	double expected = double_of(f, bits), got;
	mpfr_t r;

	if (mpfr_zero_p(mpfr_sum_))
		return bits == 0;
	if (mpfr_nan_p(mpfr_sum_))
		return bits == format_nan(f);
	mpfr_init2(r, f->fraction + 1);
	how = mpfr_set(r, mpfr_sum_, MPFR_RNDN);
	mpfr_set_emin(2 - bias - f->fraction);
	mpfr_set_emax(bias + 1);
	how = mpfr_check_range(r, how, MPFR_RNDN);
	(void)mpfr_subnormalize(r, how, MPFR_RNDN);
	mpfr_set_emin(least);
	mpfr_set_emax(most);
	got = mpfr_get_d(r, MPFR_RNDN);
	mpfr_clear(r);
	return bits_of_double(got) == bits_of_double(expected);
}
#endif

/* The sum of x, or with y of products, in the model; MPFR has to agree in every format. */
static void expect_sum(struct model *m, const struct format *f, size_t n, const void *x, const void *y)
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

		ck_assert_msg(mpfr_agrees(&formats[r], bits), "MPFR rounds a sum of %zu %s to %s another way than %llx",
			      n, f->name, formats[r].name, (unsigned long long)bits);
	}
#endif
}

/* ---- the inline functions, by format ---- */

static void inline_add(struct cua_exact *e, const struct format *f, uint64_t bits)
{
	struct cua_f16 h;
	struct cua_bf16 b;
	float s;
	double d;

	switch (f->type) {
	case CUA_F16:
		memcpy(&h, &bits, sizeof(h));
		cua_exact_add_f16(e, h);
		break;
	case CUA_BF16:
		memcpy(&b, &bits, sizeof(b));
		cua_exact_add_bf16(e, b);
		break;
	case CUA_F32:
		memcpy(&s, &bits, sizeof(s));
		cua_exact_add_f32(e, s);
		break;
	default:
		memcpy(&d, &bits, sizeof(d));
		cua_exact_add_f64(e, d);
		break;
	}
}

static void inline_add_product(struct cua_exact *e, const struct format *f, uint64_t x, uint64_t y)
{
	struct cua_f16 h[2];
	struct cua_bf16 b[2];
	float s[2];
	double d[2];

	switch (f->type) {
	case CUA_F16:
		memcpy(&h[0], &x, sizeof(h[0]));
		memcpy(&h[1], &y, sizeof(h[0]));
		cua_exact_add_product_f16(e, h[0], h[1]);
		break;
	case CUA_BF16:
		memcpy(&b[0], &x, sizeof(b[0]));
		memcpy(&b[1], &y, sizeof(b[0]));
		cua_exact_add_product_bf16(e, b[0], b[1]);
		break;
	case CUA_F32:
		memcpy(&s[0], &x, sizeof(s[0]));
		memcpy(&s[1], &y, sizeof(s[0]));
		cua_exact_add_product_f32(e, s[0], s[1]);
		break;
	default:
		memcpy(&d[0], &x, sizeof(d[0]));
		memcpy(&d[1], &y, sizeof(d[0]));
		cua_exact_add_product_f64(e, d[0], d[1]);
		break;
	}
}

static uint64_t inline_round(const struct cua_exact *sum, const struct format *f)
{
	struct cua_exact e = *sum;
	uint64_t bits = 0;
	struct cua_f16 h;
	struct cua_bf16 b;
	float s;
	double d;

	switch (f->type) {
	case CUA_F16:
		h = cua_exact_round_f16(&e);
		memcpy(&bits, &h, sizeof(h));
		break;
	case CUA_BF16:
		b = cua_exact_round_bf16(&e);
		memcpy(&bits, &b, sizeof(b));
		break;
	case CUA_F32:
		s = cua_exact_round_f32(&e);
		memcpy(&bits, &s, sizeof(s));
		break;
	default:
		d = cua_exact_round_f64(&e);
		memcpy(&bits, &d, sizeof(d));
		break;
	}
	return bits;
}

/* Every format's rounding is the model's. */
static void assert_rounds(const struct cua_exact *e, const struct model *m, const char *what)
{
	for (int r = 0; r < FORMATS; r++) {
		uint64_t got = inline_round(e, &formats[r]), expected = model_round(m, &formats[r]);

		ck_assert_msg(got == expected, "%s: to %s: %llx, expected %llx", what, formats[r].name,
			      (unsigned long long)got, (unsigned long long)expected);
	}
}

static void assert_same(const struct cua_exact *a, const struct cua_exact *b, const char *what)
{
	ck_assert_msg(memcmp(a, b, sizeof(*a)) == 0, "%s: two sums of the same elements differ", what);
}

/* ---- elements ---- */

enum kind {
	KIND_NEAR,      /* exponents near 1 */
	KIND_WIDE,      /* all finite numbers */
	KIND_SUBNORMAL, /* and the least normal ones */
	KIND_CANCEL,    /* nearly all cancels */
	KIND_EXTREME,   /* the largest and the least numbers */
	KIND_SPARSE,    /* mostly zeros of both signs */
	KIND_OUTLIER,   /* near 1, and now and then any finite number */
	KIND_STEPS,     /* near some exponent, for a while, and then near another one */
	KIND_SPECIAL,   /* infinities, rarely NaN */
	KINDS
};
static const char *const kind_names[] = {"near",   "wide",    "subnormal", "cancel", "extreme",
					 "sparse", "outlier", "steps",     "special"};

static uint64_t random_finite(const struct format *f, uint64_t *seed)
{
	uint64_t bits;

	do
		bits = test_random(seed) & (2 * format_minus(f) - 1);
	while ((bits & (format_minus(f) - 1)) >= format_infinity(f));
	return bits;
}

static uint64_t random_near(const struct format *f, int exponent, int spread, uint64_t *seed)
{
	uint64_t r = test_random(seed), all = ((uint64_t)1 << f->exponent) - 1;
	int64_t e = exponent + (int64_t)(test_random(seed) % (uint64_t)spread) - spread / 2;

	e = e < 0 ? 0 : e >= (int64_t)all ? (int64_t)all - 1 : e;
	return (r & format_minus(f)) | (uint64_t)e << f->fraction |
	       (r & (((uint64_t)1 << f->fraction) - 1));
}

static uint64_t random_element(const struct format *f, enum kind kind, size_t i, uint64_t *seed)
{
	uint64_t r = test_random(seed), minus = format_minus(f);
	int bias = (1 << (f->exponent - 1)) - 1;

	switch (kind) {
	case KIND_NEAR: return random_near(f, bias, 8, seed);
	case KIND_SUBNORMAL: return random_near(f, 0, 4, seed);
	case KIND_EXTREME:
		return (r & minus) | (r % 3 ? format_infinity(f) - 1 - r / 8 % 3 : 1 + r / 8 % 3);
	case KIND_SPARSE: return r % 16 ? r & minus : random_near(f, bias, 8, seed);
	case KIND_OUTLIER: return r % 64 ? random_near(f, bias, 8, seed) : random_finite(f, seed);
	case KIND_STEPS: return random_near(f, (int)(i / 700 * 37 % (2 * (unsigned)bias)), 8, seed);
	case KIND_SPECIAL:
		if (r % 97 == 0)
			return r / 97 % 8 == 0 ? format_nan(f) | (r & minus) | r / 1024 % 2
			       : r / 97 % 8 < 7 ? format_infinity(f)
						: minus | format_infinity(f);
		return r % 7 ? random_finite(f, seed) : r & minus;
	default: return random_finite(f, seed);
	}
}

/* x, and y unless it is NULL. */
static void fill(const struct format *f, enum kind kind, size_t n, void *x, void *y, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++) {
		format_store(f, x, i, random_element(f, kind, i, seed));
		if (y)
			format_store(f, y, i, random_element(f, kind, i, seed));
	}
	if (kind != KIND_CANCEL)
		return;
	/* pairs, in some order, and few elements that are left */
	for (size_t i = 0; i + 1 < n; i += 2) {
		format_store(f, x, i + 1, format_load(f, x, i) ^ format_minus(f));
		if (y)
			format_store(f, y, i + 1, format_load(f, y, i));
	}
	for (size_t i = n; i > 1; i--) {
		size_t j = test_random(seed) % i;
		uint64_t a = format_load(f, x, i - 1), b;

		format_store(f, x, i - 1, format_load(f, x, j));
		format_store(f, x, j, a);
		if (y) {
			b = format_load(f, y, i - 1);
			format_store(f, y, i - 1, format_load(f, y, j));
			format_store(f, y, j, b);
		}
	}
	if (n && test_random(seed) % 2)
		format_store(f, x, test_random(seed) % n, test_random(seed) % 3);
}

static void sum_inline(struct cua_exact *e, const struct format *f, size_t n, const void *x, const void *y)
{
	for (size_t i = 0; i < n; i++) {
		if (y)
			inline_add_product(e, f, format_load(f, x, i), format_load(f, y, i));
		else
			inline_add(e, f, format_load(f, x, i));
	}
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
			uint64_t bits = exhaustive ? i : test_random(&seed) & (2 * minus - 1), expected, got;
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
			enum kind kind = (enum kind)(k / FORMATS % KINDS);
			int dot = k >= FORMATS * KINDS;
			size_t n = test_random(&seed) % 200;
			struct cua_exact e = CUA_EXACT_INIT;
			struct model m;
			char what[80];

			snprintf(what, sizeof(what), "%s of %zu %s, %s", dot ? "dot" : "sum", n, f->name,
				 kind_names[kind]);
			fill(f, kind, n, x, dot ? y : NULL, &seed);
			expect_sum(&m, f, n, x, dot ? y : NULL);
			sum_inline(&e, f, n, x, dot ? y : NULL);
			assert_rounds(&e, &m, what);
		}
	}
}
END_TEST

/*
 * Numbers of each format and those half way between two, and a little to either side of them; sums that
 * overflow, and that round to the least numbers and to zero.
 */
START_TEST(test_rounding)
{
	const struct format *f64 = &formats[3];
	uint64_t seed = test_seed("rounding"), x[5], y[5];

	for (int turn = 0; turn < (test_quick() ? 100 : 2000); turn++) {
		for (int k = 0; k < FORMATS; k++) {
			const struct format *f = &formats[k];
			uint64_t bits = random_finite(f, &seed) & (format_minus(f) - 1), mantissa, sign, one;
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
			/* as a product, because half of the least f64 is no f64 */
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
				/* up or down by 2^-2148, or by a power of two that is just below the half */
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

/* Digits that grow to their limit: doubled by merging, with all signs. */
START_TEST(test_carry)
{
	uint64_t seed = test_seed("carry");

	for (int turn = 0; turn < 50; turn++) {
		struct cua_exact e = CUA_EXACT_INIT, part = CUA_EXACT_INIT;
		struct model m;
		uint64_t x[70];
		int doubled = 1 + (int)(test_random(&seed) % 60);

		for (int i = 0; i < 70; i++) {
			x[i] = turn % 2 ? 0x3fffffffffffffffu : random_near(&formats[3], 1023, 64, &seed);
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
	/* and by additions alone, from a number of them that is near the limit */
	for (int turn = 0; turn < 4; turn++) {
		struct cua_exact e = CUA_EXACT_INIT;
		struct model m;
		uint64_t x = turn % 2 ? 0xbfffffffffffffffu : 0x3fffffffffffffffu, times = (uint64_t)1 << 30;
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

/* A value has one normalized form, however it was put together. */
START_TEST(test_splits)
{
	uint64_t seed = test_seed("splits");
	enum { N = 300 };
	char x[N * 8], y[N * 8];

	for (int turn = 0; turn < (test_quick() ? 20 : 200); turn++) {
		const struct format *f = &formats[turn % FORMATS];
		enum kind kind = (enum kind)(test_random(&seed) % KINDS);
		int dot = turn / FORMATS % 2, parts = 1 + (int)(test_random(&seed) % 9);
		struct cua_exact whole = CUA_EXACT_INIT, merged = CUA_EXACT_INIT, part[9], empty = CUA_EXACT_INIT;

		fill(f, kind, N, x, dot ? y : NULL, &seed);
		sum_inline(&whole, f, N, x, dot ? y : NULL);
		for (int i = 0; i < parts; i++)
			cua_exact_init(&part[i]);
		for (size_t i = 0; i < N; i++) {
			size_t j = (i * 173 + 29) % N;
			struct cua_exact *p = &part[test_random(&seed) % (uint64_t)parts];

			if (dot)
				inline_add_product(p, f, format_load(f, x, j), format_load(f, y, j));
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
	/* zeros are the empty sum, and so is what has cancelled */
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
	/* another layout is no number */
	{
		struct cua_exact other = CUA_EXACT_INIT, e = CUA_EXACT_INIT;

		other.layout = CUA_EXACT_LAYOUT + 1;
		ck_assert(isnan(cua_exact_round_f64(&other)));
		cua_exact_merge(&e, &other);
		ck_assert(isnan(cua_exact_round_f64(&e)));
	}
}
END_TEST

/* The rules for what is not finite, and for zeros, one by one. */
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
		ck_assert_msg(isnan(rules[i].expected) ? isnan(got) && !signbit(got)
						       : got == rules[i].expected &&
								 !signbit(got) == !signbit(rules[i].expected),
			      "rule %zu: %a, expected %a", i, got, rules[i].expected);
	}
}
END_TEST
#endif

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
	suite_add_tcase(suite, tc);
	return test_run(suite, TEST_BACKEND);
}
