/* SPDX-License-Identifier: MIT */
/*
 * The CPU's loops for exact sums, for every vector width of this processor; the library uses only
 * the widest. The program's floating-point modes must not matter.
 */
/* Other names, so that the test also links with a static library. */
#define cua__cpu_exact test_exact_ops
#define cua__parallel test_parallel
#define cua__workers test_workers
#include "../lib/cpu/cpu_exact.c"

#include <fenv.h>
#include <math.h>

#include "exact_elements.h"

void cua__parallel(struct cua_context *ctx, unsigned workers,
		   void (*fn)(void *arg, unsigned worker, unsigned workers), void *arg)
{
	(void)ctx;
	for (unsigned i = 0; i < workers; i++)
		fn(arg, i, workers);
}

unsigned cua__workers(const struct cua_context *ctx, size_t n, size_t grain)
{
	(void)ctx;
	(void)n;
	(void)grain;
	return 3;
}

static const struct {
	const char *name;
	const struct loops *loops;
} widths[] = {
	{"any", &loops_any},
#if HAVE_WIDER
	{"avx2", &loops_avx2},
	{"avx512", &loops_avx512},
#endif
};

static int has_width(size_t i)
{
	(void)i;
#if HAVE_WIDER
	if (i == 1)
		return widest() != &loops_any;
	if (i == 2)
		return widest() == &loops_avx512;
#endif
	return 1;
}

static const struct format *format_of(const struct kind *kind)
{
	for (int i = 0; i < FORMATS; i++)
		if (formats[i].type == kind->type)
			return &formats[i];
	return NULL;
}

START_TEST(test_widths)
{
	uint64_t seed = test_seed("widths");
	enum { N = 7 * BATCH + 77 };
	char *x = test_malloc((N + 8) * 8), *y = test_malloc((N + 8) * 8);

	for (int turn = 0; turn < (test_quick() ? 2 : 20); turn++) {
		for (size_t k = 0; k < COUNT_KINDS * KINDS; k++) {
			const struct kind *kind = &kinds[k / KINDS];
			const struct format *f = format_of(kind);
			const void *from_y = kind->op == CUA_REDUCE_DOT ? y : NULL;
			struct cua_exact expected = CUA_EXACT_INIT;
			size_t n = test_random(&seed) % N, at = test_random(&seed) % 8;

			fill(f, (enum kind_of_element)(k % KINDS), N + 8, x, y, &seed);
			sum_inline(&expected, f, n, x + at * f->size,
				   from_y ? (const char *)from_y + at * f->size : NULL);
			cua_exact_normalize(&expected);
			for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
				struct cua_exact e = CUA_EXACT_INIT;

				if (!has_width(w))
					continue;
				add_part(&e, k / KINDS, widths[w].loops, x, from_y, at, at + n);
				cua_exact_normalize(&e);
				ck_assert_msg(memcmp(&e, &expected, sizeof(e)) == 0,
					      "%s %s, %s, %zu from %zu, loops for %s", f->name,
					      from_y ? "dot" : "sum", kind_names[k % KINDS], n, at,
					      widths[w].name);
			}
		}
	}
	free(x);
	free(y);
}
END_TEST

/* Blocks that fit the windows without the slow path, so that the loops are fast. */
START_TEST(test_windows_fit)
{
	uint64_t seed = test_seed("windows fit");
	char x[BATCH * 8], y[BATCH * 8];

	for (size_t i = 0; i < COUNT_KINDS; i++) {
		const struct format *f = format_of(&kinds[i]);

		for (int turn = 0; turn < 100; turn++) {
			struct cua_exact e = CUA_EXACT_INIT;
			int power = 0, k;
			int64_t sums[3];

			fill(f, turn % 2 ? KIND_NEAR : KIND_SPARSE, BATCH, x, y, &seed);
			if (turn % 4 > 1)
				fill(f, KIND_SUBNORMAL, BATCH, x, f->type == CUA_F64 ? NULL : y,
				     &seed);
			/*
			 * an f64 product near the least numbers belongs to the digits, not to a
			 * window
			 */
			if (turn % 4 > 1 && f->type == CUA_F64 && kinds[i].op == CUA_REDUCE_DOT)
				continue;
			ck_assert(loops_any.any_batch(&e, &kinds[i], x, y, &power));
			k = cua__window_for(power, kinds[i].least, kinds[i].most);
			for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
				ck_assert_msg(!has_width(w) ||
						      widths[w].loops->batch[i](x, y, k, sums),
					      "%s %d, turn %d, loops for %s", f->name,
					      (int)kinds[i].op, turn, widths[w].name);
		}
	}
}
END_TEST

/*
 * Elements around the limits of the windows: either they fit and the sums are right, or the loops
 * refuse them.
 */
START_TEST(test_limits)
{
	uint64_t seed = test_seed("limits");
	char x[BATCH * 8], y[BATCH * 8];

	for (size_t k = 0; k < COUNT_KINDS * (test_quick() ? 2000 : 20000); k++) {
		size_t i = k % (COUNT_KINDS);
		const struct kind *kind = &kinds[i];
		const struct format *f = format_of(kind);
		int bias = (1 << (f->exponent - 1)) - 1, dot = kind->op == CUA_REDUCE_DOT, power,
		    exponent, other;
		struct cua_exact expected = CUA_EXACT_INIT;
		/* the least window, the greatest window, and windows between */
		int window = kind->least;
		uint64_t r = test_random(&seed), a, b;

		if (r % 3 && kind->most > kind->least)
			window = r % 3 == 1 ? kind->most
					    : kind->least +
						      (int)(r / 4 %
							    (unsigned)(kind->most - kind->least));
		/* the product's exponent, from above the first window to below the last window */
		power = window + 54 - (int)(r / 8192 % 180);
		if (kind->least == kind->most)
			power = -24 + (int)(r / 8192 % 42);
		exponent = dot ? power / 2 + (int)(r >> 40) % 11 - 5 : power;
		other = power - exponent;
		a = random_near(f, exponent + bias, 1, &seed);
		b = random_near(f, other + bias, 1, &seed);
		if (r >> 60 == 0)
			a &= ~(((uint64_t)1 << f->fraction) - 1);
		memset(x, 0, sizeof(x));
		memset(y, 0, sizeof(y));
		format_store(f, x, r >> 32 & (BATCH - 1), a);
		format_store(f, y, r >> 32 & (BATCH - 1), b);
		sum_inline(&expected, f, BATCH, x, dot ? y : NULL);
		cua_exact_normalize(&expected);
		for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
			struct cua_exact e = CUA_EXACT_INIT;
			int64_t sums[3];

			if (!has_width(w) || !widths[w].loops->batch[i](x, y, window, sums))
				continue;
			for (int s = 0; s < kind->windows; s++)
				cua__exact_insert_signed(e.digit, sums[s],
							 window - s * CUA__WINDOW_STEP);
			e.pending = 3;
			e.flags = expected.flags;
			cua_exact_normalize(&e);
			ck_assert_msg(memcmp(&e, &expected, sizeof(e)) == 0,
				      "%s %s, %llx and %llx in window %d, loops for %s", f->name,
				      dot ? "dot" : "sum", (unsigned long long)a,
				      (unsigned long long)b, window, widths[w].name);
		}
	}
}
END_TEST

START_TEST(test_mode)
{
	uint64_t seed = test_seed("mode");
	enum { N = 2000 };
	float x[N];
	struct cua_exact expected = CUA_EXACT_INIT;

	fill(&formats[2], KIND_SUBNORMAL, N, x, NULL, &seed);
	sum_inline(&expected, &formats[2], N, x, NULL);
	cua_exact_normalize(&expected);
	for (int mode = 0; mode < 3; mode++) {
		struct cua_exact e = CUA_EXACT_INIT;
		struct cua__exact r = {
			.op = CUA_REDUCE_SUM, .type = CUA_F32, .n = N, .x = x, .partial = &e};
		int rounding;

		ck_assert_int_eq(fesetround(mode == 0   ? FE_TONEAREST
					    : mode == 1 ? FE_UPWARD
							: FE_TOWARDZERO),
				 0);
		rounding = fegetround();
#if defined(__SSE2__)
		/* the mode: subnormals are zeros */
		_mm_setcsr(_mm_getcsr() | 0x8040);
#endif
		ck_assert_int_eq(cpu_run(NULL, &r), CUA_OK);
		ck_assert_int_eq(fegetround(), rounding);
#if defined(__SSE2__)
		ck_assert_int_eq(_mm_getcsr() & 0x8040, 0x8040);
		_mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
		ck_assert_int_eq(fesetround(FE_TONEAREST), 0);
		ck_assert_msg(memcmp(&e, &expected, sizeof(e)) == 0, "mode %d", mode);
	}
}
END_TEST

/* A result in each type, and an element count in memory. */
START_TEST(test_result)
{
	uint64_t seed = test_seed("result");
	enum { N = 1500 };
	char x[N * 8], y[N * 8];

	for (size_t k = 0; k < COUNT_KINDS * FORMATS * 3; k++) {
		const struct kind *kind = &kinds[k % COUNT_KINDS];
		const struct format *f = format_of(kind), *to = &formats[k / COUNT_KINDS % FORMATS];
		uint64_t r = test_random(&seed), count = r % (N + 1), n = count, got[2] = {0, 0},
			 expected;
		const void *from_y = kind->op == CUA_REDUCE_DOT ? y : NULL;
		struct cua_exact sum = CUA_EXACT_INIT;
		struct cua__exact call = {.op = kind->op,
					  .type = kind->type,
					  .result_type = to->type,
					  .n = N,
					  .count = &count,
					  .x = x,
					  .y = from_y,
					  .result = &got[0]};

		fill(f, (enum kind_of_element)(r / N % KINDS), N, x, y, &seed);
		if (k % 3 == 0)
			call.count = NULL;
		if (k % 3 == 0 || k % 3 == 1)
			n = N;
		if (k % 3 == 1)
			count = (uint64_t)N + 1 + r % 5;
		sum_inline(&sum, f, n, x, from_y);
		expected = inline_round(&sum, to);
		ck_assert_int_eq(cpu_run(NULL, &call), CUA_OK);
		ck_assert_msg(got[0] == expected && got[1] == 0, "%s %s to %s: %llx, expected %llx",
			      f->name, from_y ? "dot" : "sum", to->name, (unsigned long long)got[0],
			      (unsigned long long)expected);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exact blocks");
	TCase *tc = tcase_create("exact blocks");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, test_widths);
	tcase_add_test(tc, test_windows_fit);
	tcase_add_test(tc, test_limits);
	tcase_add_test(tc, test_mode);
	tcase_add_test(tc, test_result);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CPU);
}
