/* SPDX-License-Identifier: MIT */
/*
 * The documented rules of every reduction: infinities, NaN, zeros, overflow, no elements.
 */
#include "fixed_calls.h"

/* The result of n elements with these bits. */
static union model_result reduce_bits(struct cua_context *ctx, enum cua_reduce_op op,
				      enum cua_type type, size_t n, const uint64_t *bits)
{
	size_t size = cua_type_size(type);
	char *host = test_malloc(n * size);
	union model_result r = {.words = {0, 0}};
	struct cua_reduce_options o = fixed();
	void *x;

	for (size_t k = 0; k < n; k++)
		memcpy(host + k * size, &bits[k], size); /* little endian, as a GPU is */
	x = test_upload(ctx, host, n * size);
	ck_assert_cua(cua_reduce(ctx, &o, op, type, n, x, has_second(op) ? x : NULL, &r));
	test_free(ctx, x);
	free(host);
	return r;
}

#define expect_rule(op, type, expected, ...)                                                       \
	do {                                                                                       \
		const uint64_t test__bits[] = {__VA_ARGS__};                                       \
		union model_result test__r =                                                       \
			reduce_bits(ctx, CUA_REDUCE_##op, type, COUNT(test__bits), test__bits);    \
                                                                                                   \
		ck_assert_msg(test__r.u64 == (uint64_t)(expected),                                 \
			      #op " of %s %s: %llx, not %llx", cua_type_name(type), #__VA_ARGS__,  \
			      (unsigned long long)test__r.u64, (unsigned long long)(expected));    \
	} while (0)

static void float_rules(int i)
{
	static const struct {
		enum cua_type type;
		uint64_t sign, one, two, infinity, quiet, other_nan, least, greatest;
	} floats[] = {
		{CUA_F16, 0x8000, 0x3c00, 0x4000, 0x7c00, 0x7e00, 0xfc01, 1, 0x7bff},
		{CUA_BF16, 0x8000, 0x3f80, 0x4000, 0x7f80, 0x7fc0, 0xff81, 1, 0x7f7f},
		{CUA_F32, 0x80000000, 0x3f800000, 0x40000000, 0x7f800000, 0x7fc00000, 0xff800001, 1,
		 0x7f7fffff},
		{CUA_F64, 0x8000000000000000, 0x3ff0000000000000, 0x4000000000000000,
		 0x7ff0000000000000, 0x7ff8000000000000, 0xfff0000000000001, 1, 0x7fefffffffffffff},
	};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	(void)i;
	for (size_t f = 0; f < COUNT(floats); f++) {
		enum cua_type type = floats[f].type;
		uint64_t sign = floats[f].sign, one = floats[f].one, two = floats[f].two,
			 inf = floats[f].infinity, quiet = floats[f].quiet,
			 nan = floats[f].other_nan, least = floats[f].least,
			 greatest = floats[f].greatest;

		/* equal elements: the first wins */
		expect_rule(ARGMIN, type, 1, two, one, one, two);
		expect_rule(ARGMAX, type, 0, two, one, one, two);
		expect_rule(ARGMIN, type, 0, one, one, one);
		/* NaN is ignored, unless all elements are NaN */
		expect_rule(MIN, type, one, nan, two, quiet, one, nan | 1);
		expect_rule(MAX, type, two, nan, two, quiet, one, nan | 1);
		expect_rule(ARGMIN, type, 3, nan, two, quiet, one, nan | 1);
		expect_rule(ARGMAX, type, 1, nan, two, quiet, one, nan | 1);
		expect_rule(ARGMIN, type, 2, nan, quiet, inf);
		expect_rule(ARGMAX, type, 2, nan, quiet, inf | sign);
		expect_rule(MIN, type, quiet, nan, nan);
		expect_rule(MAX, type, quiet, nan);
		expect_rule(ARGMIN, type, 0, nan, quiet);
		expect_rule(ARGMAX, type, 0, nan, quiet | sign);
		/* -0 is less than +0 */
		expect_rule(MIN, type, sign, 0, sign, 0);
		expect_rule(MAX, type, 0, sign, 0, sign);
		expect_rule(ARGMIN, type, 1, 0, sign, sign);
		expect_rule(ARGMAX, type, 2, sign, sign, 0, 0);
		expect_rule(MIN, type, least | sign, least, sign, least | sign, 0);
		expect_rule(MAX, type, least, sign, 0, least, least | sign);
		expect_rule(MIN, type, inf | sign, greatest | sign, inf, inf | sign);
		expect_rule(MAX, type, inf, greatest, inf | sign, inf);
		/* counts elements other than zero; NaN does not count */
		expect_rule(COUNT, type, 4, 0, sign, nan, least, one, inf, sign, 0);
		/* a sum starts from +0, a product from 1 */
		expect_rule(SUM, type, 0, sign, sign);
		expect_rule(PRODUCT, type, sign, sign, one);
		expect_rule(PRODUCT, type, 0, sign, sign);
		expect_rule(SUM_ABS, type, 0, sign);
		expect_rule(SUM, type, 0, one, one | sign);
		expect_rule(MEAN, type, one, two, one, 0);
		/* every NaN becomes the same NaN */
		expect_rule(SUM, type, quiet, nan);
		expect_rule(SUM, type, quiet, inf, inf | sign);
		expect_rule(SUM_ABS, type, quiet, one, quiet | sign);
		expect_rule(SUM_ABS, type, inf, inf, inf | sign);
		expect_rule(SUM_SQUARES, type, quiet, one, nan);
		expect_rule(PRODUCT, type, quiet, inf, 0);
		expect_rule(PRODUCT, type, quiet, nan);
		expect_rule(NORM2, type, quiet, one, nan, least);
		expect_rule(NORM2, type, quiet, nan, inf);
		expect_rule(NORM2, type, inf, one, inf | sign, least);
		expect_rule(NORM2, type, least, least | sign);
		expect_rule(NORM2, type, greatest, greatest);
		expect_rule(NORM2, type, two, one, one, one, one | sign);
		expect_rule(DOT, type, quiet, one, nan);
		expect_rule(MEAN, type, quiet, nan, one);
		expect_rule(VARIANCE, type, quiet, one, nan);
		expect_rule(VARIANCE, type, quiet, inf);
		expect_rule(VARIANCE, type, 0, greatest);
		expect_rule(VARIANCE_SAMPLE, type, quiet, one);
		expect_rule(VARIANCE_SAMPLE, type, two, one, one | sign);
		expect_rule(VARIANCE, type, one, one, one | sign);
		/* rounded once, at the end */
		if (type != CUA_F64) {
			expect_rule(SUM, type, inf, greatest, greatest);
			expect_rule(SUM, type, greatest, greatest, greatest, greatest | sign);
		}
	}
	/*
	 * just above and just below the midpoint of two results; a rounding to f32 would hide the
	 * difference
	 */
	expect_rule(SUM, CUA_F16, 0x3c01, 0x3c00, 0x1000, 0x0001);
	expect_rule(SUM, CUA_F16, 0x3c01, 0x3c01, 0x1000, 0x8001);
	expect_rule(SUM, CUA_F16, 0xbc01, 0xbc00, 0x9000, 0x8001);
	expect_rule(SUM, CUA_BF16, 0x3f81, 0x3f80, 0x3b80, 0x3080);
	expect_rule(SUM, CUA_BF16, 0x3f81, 0x3f81, 0x3b80, 0xb080);
	expect_rule(SUM, CUA_F32, 0x3f800001, 0x3f800000, 0x33800000, 0x26800000);
	/* half way from the greatest number to its successor, and just below */
	expect_rule(SUM, CUA_F16, 0x7c00, 0x7bff, 0x4c00);
	expect_rule(SUM, CUA_F16, 0x7bff, 0x7bff, 0x4c00, 0x8001);
	cua_context_destroy(ctx);
}

static void integer_rules(int i)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	(void)i;
	expect_rule(SUM, CUA_U32, 0x1fffffffe, 0xffffffff, 0xffffffff);
	expect_rule(SUM, CUA_I32, -2, 0xffffffff, 0xffffffff);
	expect_rule(SUM, CUA_U64, 1, UINT64_MAX, 2);
	expect_rule(SUM, CUA_I64, (uint64_t)INT64_MIN, INT64_MAX, 1);
	expect_rule(SUM_ABS, CUA_I32, 0x100000000, 0x80000000, 0x80000000);
	expect_rule(SUM_ABS, CUA_I64, 0, (uint64_t)INT64_MIN, (uint64_t)INT64_MIN);
	expect_rule(SUM_ABS, CUA_I64, 3, UINT64_MAX, 2);
	expect_rule(SUM_ABS, CUA_U64, 1, UINT64_MAX, 2);
	expect_rule(PRODUCT, CUA_I32, -6, 0xfffffffe, 3);
	expect_rule(PRODUCT, CUA_U32, 0xfffffffeull * 3, 0xfffffffe, 3);
	expect_rule(PRODUCT, CUA_U64, 0, (uint64_t)1 << 40, (uint64_t)1 << 40);
	expect_rule(PRODUCT, CUA_I64, -8, (uint64_t)-2, 4);
	expect_rule(DOT, CUA_I32, (uint64_t)1 << 62, 0x80000000);
	expect_rule(DOT_CONJ, CUA_U32, 0xfffffffe00000001, 0xffffffff);
	expect_rule(SUM_SQUARES, CUA_I64, 0, (uint64_t)INT64_MIN, (uint64_t)INT64_MIN);
	expect_rule(SUM_SQUARES, CUA_I32, 2, 0xffffffff, 1);
	expect_rule(MIN, CUA_I32, 0x80000000, 0, 0x80000000, 0x7fffffff);
	expect_rule(MIN, CUA_U32, 0, 5, 0, 0x80000000);
	expect_rule(MAX, CUA_I64, INT64_MAX, 0, (uint64_t)INT64_MIN, INT64_MAX);
	expect_rule(MAX, CUA_U64, (uint64_t)INT64_MIN, 0, (uint64_t)INT64_MIN, INT64_MAX);
	/* the least key everywhere: the first element still wins */
	expect_rule(ARGMAX, CUA_U32, 0, 0, 0, 0);
	expect_rule(ARGMIN, CUA_U64, 0, UINT64_MAX, UINT64_MAX);
	expect_rule(ARGMAX, CUA_I32, 0, 0x80000000, 0x80000000);
	expect_rule(ARGMIN, CUA_I64, 0, INT64_MAX);
	expect_rule(ARGMIN, CUA_I32, 2, 7, 0, 0xffffffff, 0xffffffff);
	expect_rule(ARGMIN, CUA_U32, 1, 7, 0, 0xffffffff, 0);
	expect_rule(COUNT, CUA_I64, 2, 0, (uint64_t)INT64_MIN, 1, 0);
	expect_rule(COUNT, CUA_U32, 1, 0, 0x80000000);
	expect_rule(MEAN, CUA_I32, 0xbff8000000000000, 0xfffffffe, 0xffffffff); /* -1.5 */
	expect_rule(MEAN, CUA_I64, 0xc3e0000000000000, (uint64_t)INT64_MIN,
		    (uint64_t)INT64_MIN); /* -2^63 */
	expect_rule(MEAN, CUA_U64, 0x43f0000000000000, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	expect_rule(VARIANCE, CUA_I64, 0x4000000000000000, 1, 3, (uint64_t)-1, 1); /* 2 */
	expect_rule(VARIANCE, CUA_U32, 0x43cfffffffc00000, 0, 0xffffffff); /* (2^31 - 1/2)^2 */
	cua_context_destroy(ctx);
}

/* No elements: every operation and type has a result by the table. */
static void nothing(int i)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_reduce_options o = fixed();

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		for (int op = FIRST_OP; op <= LAST_OP; op++) {
			union model_result got = {.words = {1, 1}}, expected = {.words = {0, 0}};
			struct model_call c = {
				(enum cua_reduce_op)op, types[t], (enum cua_type)0, 0, NULL, NULL};

			if (!model_has(c.op, c.type))
				continue;
			switch (c.op) {
			case CUA_REDUCE_PRODUCT:
				if (model_is_integer(c.type))
					expected.u64 = 1;
				else
					expected = model_real(c.type, 1);
				break;
			case CUA_REDUCE_MEAN:
			case CUA_REDUCE_VARIANCE:
			case CUA_REDUCE_VARIANCE_SAMPLE:
				expected =
					model_real(model_default_result(c.op, c.type), (double)NAN);
				break;
			case CUA_REDUCE_MIN:
			case CUA_REDUCE_MAX: expected = model_nothing(&c); break;
			case CUA_REDUCE_ARGMIN:
			case CUA_REDUCE_ARGMAX: expected.u64 = UINT64_MAX; break;
			default: break;
			}
			ck_assert_cua(cua_reduce(ctx, &o, c.op, c.type, 0, NULL, NULL, &got));
			expect_bits(&got, &expected, &c, "nothing");
			expected = model_reduce(&c);
			expect_bits(&got, &expected, &c, "the model of nothing");
		}
	}
	cua_context_destroy(ctx);
}

/* The first of many equal elements, far from the start of a long array. */
static void long_ties(int i)
{
	enum { N = 90000, PATTERNS = 5 };
	static const struct {
		enum cua_type type;
		/* the last two are not numbers, or equal */
		uint64_t one, span, minus, other[2];
	} types[] = {
		{CUA_F16, 0x3c00, 0x1000, 0x8000, {0x7e00, 0xfc01}},
		{CUA_BF16, 0x3f80, 0x1000, 0x8000, {0x7fc0, 0xff81}},
		{CUA_F32, 0x3f800000, 0x1000000, 0x80000000, {0x7fc00000, 0xff800001}},
		{CUA_F64,
		 0x3ff0000000000000,
		 0x100000000,
		 0x8000000000000000,
		 {0x7ff8000000000000, 0xfff0000000000001}},
		{CUA_I32, 1, 0x1000000, 0x80000000, {7, 7}},
		{CUA_U64, 1, 0x1000000, 0x8000000000000000, {7, 7}},
	};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t *bits = test_malloc(N * sizeof(*bits)), seed = test_seed("long ties");

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++)
		for (int run = 0; run < 2 * PATTERNS; run++) {
			const enum cua_reduce_op op =
				run % 2 ? CUA_REDUCE_ARGMAX : CUA_REDUCE_ARGMIN;
			union model_result r;
			struct model_call c = {
				.op = op, .type = types[t].type, .result = CUA_U64, .n = N};
			void *x = test_malloc(N * sizeof(*bits));

			for (size_t k = 0; k < N; k++) {
				const uint64_t z = test_random(&seed);
				/* worse, or better, from element to element; the last half is equal */
				const uint64_t slope =
					types[t].one + (k < N / 2 ? k : N / 2) * types[t].span / N;

				switch (run / 2) {
				case 0: bits[k] = types[t].one + z % 16; break;
				case 1: bits[k] = slope; break;
				case 2: bits[k] = slope | types[t].minus; break;
				case 3:
					bits[k] = z % 4 ? types[t].other[z / 4 % 2]
							: z & types[t].minus;
					break;
				default: bits[k] = types[t].other[k % 2]; break;
				}
			}
			for (size_t k = 0; k < N; k++)
				memcpy((char *)x + k * cua_type_size(c.type), &bits[k],
				       cua_type_size(c.type));
			c.x = x;
			r = reduce_bits(ctx, op, c.type, N, bits);
			ck_assert_msg(r.u64 == model_reduce(&c).u64, "%s of %s, pattern %d: %llu",
				      run % 2 ? "ARGMAX" : "ARGMIN", cua_type_name(c.type), run / 2,
				      (unsigned long long)r.u64);
			free(x);
		}
	free(bits);
	cua_context_destroy(ctx);
}

static const struct fixed_test tests[] = {
	{float_rules, 1},
	{integer_rules, 1},
	{nothing, 1},
	{long_ties, 1},
};

int main(void)
{
	return fixed_run("fixed_rules", tests, COUNT(tests));
}
