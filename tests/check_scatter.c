/* SPDX-License-Identifier: MIT */
/* Scatters on either backend, compared with a serial model, bit by bit. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <math.h>
#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

#include "scatter_calls.h"
#if TEST_MPFR && !TEST_CUDA
#include "kernels/scatter_values.h"
#endif

/* ---- values ---- */

/* An element type with all operations, result types and index types. */
START_TEST(test_types)
{
	static const size_t sizes[] = {0, 1, 2, 33, 500, 3000};
	static const size_t few[] = {1, 2, 3, 50, 1023, 1024, 1025, 4000};
	static const uint32_t widths[] = {1, 1, 1, 2, 3, 4, 7};
	const enum cua_type type = element_types[_i];
	const int turns = test_traced() ? 1 : test_scale(1, 8, 80);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_types");

	for (size_t k = 0; k < COUNT(ops) * COUNT(element_types) * COUNT(index_types); k++) {
		struct scatter_call c = {.op = ops[k % 4],
					 .type = type,
					 .result_type = element_types[k / 16],
					 .index_type = index_types[k / 4 % 4]};

		if (!is_result(c.op, type, c.result_type) ||
		    (test_traced() && k / 4 % 4 != (k / 16 + (size_t)_i) % 4))
			continue;
		for (int turn = 0; turn < 2 * turns; turn++) {
			const uint64_t r = test_random(&seed);

			c.overwrite = turn % 2;
			c.mode = any_mode(&c, &seed);
			c.n = sizes[r % COUNT(sizes)];
			c.targets = few[r / 64 % COUNT(few)];
			c.width = widths[r / 4096 % COUNT(widths)];
			check_random(ctx, &c, (enum spread)((r >> 20) % SPREADS),
				     (enum kind_of_element)((r >> 32) % KINDS_HERE), &seed);
		}
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Sums of a float type with every kind of elements and indexes. */
START_TEST(test_kinds)
{
	static const size_t counts[] = {1, 3, 40, 1000, 20000};
	const size_t n = test_scale(3000, 20000, 100000), large = test_scale(3000, 140000, 500000);
	const int step = test_traced() ? 17 : 1, all = SPREADS * KINDS_HERE;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_kinds");

	for (int k = 0; k < all * (test_quick() ? 1 : 4); k += step) {
		const uint64_t r = test_random(&seed);
		struct scatter_call c = {.op = r % 8 ? CUA_SCATTER_ADD : CUA_SCATTER_MEAN,
					 .type = floats[_i],
					 .result_type = r / 8 % 4 ? floats[_i] : CUA_F64,
					 .index_type = index_types[k % 4],
					 .overwrite = (int)(r / 32 % 2),
					 .width = r / 64 % 4 ? 1 : 3,
					 .n = k < all ? large : n,
					 .targets = counts[r / 256 % COUNT(counts)]};

		check_random(ctx, &c, (enum spread)(k % SPREADS),
			     (enum kind_of_element)(k / SPREADS % KINDS_HERE), &seed);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Wide rows, up to the limit. */
START_TEST(test_widths)
{
	static const uint32_t widths[] = {1, 2, 3, 4, 5, 7, 8, 31, 64, 100, 1024, 4096};
	static const enum cua_type pairs[][2] = {
		{CUA_F32, CUA_F32}, {CUA_F64, CUA_F64}, {CUA_F16, CUA_F32},  {CUA_BF16, CUA_BF16},
		{CUA_U8, CUA_U32},  {CUA_I64, CUA_I64}, {CUA_I32, CUA_NONE}, {CUA_F32, CUA_F64}};
	const size_t most = test_scale(20000, 150000, 1500000);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_widths");
	size_t turn = 0;

	for (size_t w = 0; w < COUNT(widths); w++)
		for (size_t p = 0; p < COUNT(pairs); p++, turn++) {
			struct scatter_call c = {.op = ops[test_random(&seed) % COUNT(ops)],
						 .type = pairs[p][0],
						 .result_type = pairs[p][1],
						 .index_type = index_types[turn % 4],
						 .overwrite = (int)(test_random(&seed) % 2),
						 .width = widths[w],
						 .n = most / widths[w]};

			/* integers have integer sums and float means */
			if (!format_of(c.type) && c.op == CUA_SCATTER_MEAN)
				c.result_type = CUA_F32;
			if (c.result_type == CUA_NONE)
				c.result_type = c.type;
			c.targets = 1 + (size_t)(test_random(&seed) % (c.n + 1));
			c.mode = any_mode(&c, &seed);
			if (!test_traced() || turn % 7 == 0)
				check_random(
					ctx, &c, (enum spread)(turn % SPREADS),
					(enum kind_of_element)(test_random(&seed) % KINDS_HERE),
					&seed);
		}
	cua_context_destroy(ctx);
}
END_TEST

/* Numbers of targets around the limits at which the algorithm may change. */
START_TEST(test_targets)
{
	static const size_t counts[] = {1,    2,    3,    4,    31,    32,    33,     255,
					256,  257,  1023, 1024, 1025,  2047,  2048,   2049,
					4095, 4096, 4097, 8191, 16385, 65535, 100000, 1 << 18};
	static const enum cua_type types[] = {CUA_F32, CUA_F64, CUA_U32, CUA_BF16, CUA_I8};
	const size_t n = test_scale(4000, 150000, 600000);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_targets");
	size_t turn = 0;

	for (size_t k = 0; k < COUNT(counts); k++)
		for (size_t t = 0; t < COUNT(types); t++, turn++) {
			const uint64_t r = test_random(&seed);
			struct scatter_call c = {.op = r % 2 ? CUA_SCATTER_ADD : ops[r / 2 % 4],
						 .type = types[t],
						 .result_type = types[t],
						 .index_type = index_types[turn % 4],
						 .overwrite = (int)(r / 8 % 2),
						 .width = 1,
						 .n = n - n * (size_t)(r / 16 % 8) / 8,
						 .targets = counts[k]};

			if (test_quick() && counts[k] > 10000)
				continue;
			if (!format_of(c.type) && c.op == CUA_SCATTER_MEAN)
				c.result_type = CUA_F64;
			c.mode = any_mode(&c, &seed);
			if (!test_traced() || turn % 7 == 0)
				check_random(ctx, &c, (enum spread)((r >> 16) % SPREADS),
					     (enum kind_of_element)((r >> 24) % KINDS_HERE), &seed);
		}
	cua_context_destroy(ctx);
}
END_TEST

/* All elements have the same target; a call has 1 target or 1000. */
START_TEST(test_single)
{
	static const struct {
		enum cua_scatter_op op;
		enum cua_type type, result_type;
		enum kind_of_element kind;
	} cases[] = {
		{CUA_SCATTER_ADD, CUA_F32, CUA_F32, KIND_NEAR},
		{CUA_SCATTER_ADD, CUA_F32, CUA_F64, KIND_CANCEL},
		{CUA_SCATTER_ADD, CUA_F32, CUA_F32, KIND_EXTREME},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_NEAR},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_WIDE},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_CANCEL},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_STEPS},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_RANGE},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_FULL},
		{CUA_SCATTER_ADD, CUA_F32, CUA_F32, KIND_FULL},
		{CUA_SCATTER_ADD, CUA_F32, CUA_F32, KIND_RARE},
		{CUA_SCATTER_ADD, CUA_F16, CUA_F16, KIND_FULL},
		{CUA_SCATTER_ADD, CUA_BF16, CUA_BF16, KIND_FULL},
		{CUA_SCATTER_MEAN, CUA_F64, CUA_F64, KIND_EXTREME},
		{CUA_SCATTER_ADD, CUA_F16, CUA_F16, KIND_CANCEL},
		{CUA_SCATTER_MEAN, CUA_F16, CUA_F32, KIND_WIDE},
		{CUA_SCATTER_ADD, CUA_BF16, CUA_F32, KIND_WIDE},
		{CUA_SCATTER_MAX, CUA_F32, CUA_F32, KIND_WIDE},
		{CUA_SCATTER_ADD, CUA_I8, CUA_I8, KIND_NEAR},
		{CUA_SCATTER_ADD, CUA_U32, CUA_U64, KIND_NEAR},
		{CUA_SCATTER_MEAN, CUA_I64, CUA_F64, KIND_NEAR},
	};
	const size_t n = test_quick() ? 150000 : (size_t)1 << 20;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_single");

	for (size_t k = 0; k < COUNT(cases); k++) {
		struct scatter_call c = {.op = cases[k].op,
					 .type = cases[k].type,
					 .result_type = cases[k].result_type,
					 .index_type = index_types[k % 4],
					 .overwrite = k % 3 == 0,
					 .width = 1,
					 .n = n,
					 .targets = k % 2 ? 1 : 1000};

		if (!test_traced() || k % 5 == 0)
			check_random(ctx, &c, ONE, cases[k].kind, &seed);
	}
	cua_context_destroy(ctx);
}
END_TEST

#define MANY_CASES 6

/* Many targets, with a few elements each or with most elements in few of them. */
START_TEST(test_many_targets)
{
	static const struct {
		enum cua_scatter_op op;
		enum cua_type type, result_type;
		enum kind_of_element kind;
		enum spread spread;
	} cases[MANY_CASES] = {
		{CUA_SCATTER_ADD, CUA_F32, CUA_F32, KIND_NEAR, UNIFORM},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_WIDE, UNIFORM},
		{CUA_SCATTER_ADD, CUA_F32, CUA_F32, KIND_OUTLIER, SKEWED},
		{CUA_SCATTER_ADD, CUA_F64, CUA_F64, KIND_BY_TARGET, SKEWED},
		{CUA_SCATTER_MIN, CUA_U32, CUA_U64, KIND_NEAR, SKEWED},
		{CUA_SCATTER_MEAN, CUA_BF16, CUA_F32, KIND_NEAR, SORTED},
	};
	const size_t k = (size_t)_i;
	const size_t n = (size_t)test_scale(50000, k < 2 ? 1 << 22 : 1 << 20, 1 << 23);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_many_targets");
	struct scatter_call c = {.op = cases[k].op,
				 .type = cases[k].type,
				 .result_type = cases[k].result_type,
				 .index_type = index_types[k % 4],
				 .overwrite = k % 2,
				 .width = 1,
				 .n = n - k,
				 .targets = n + k};

	check_random(ctx, &c, cases[k].spread, cases[k].kind, &seed);
	cua_context_destroy(ctx);
}
END_TEST

#define LARGEST 1.7976931348623157e308

/* Each rule for sums of floats. The model agrees, so this checks it, too. */
START_TEST(test_rules)
{
	const double inf = HUGE_VAL, nan = (double)NAN;
	const struct {
		double x[4], old, added, alone;
	} rules[] = {
		{{0, 0, 0, 0}, -0.0, -0.0, 0},
		{{-0.0, -0.0, -0.0, -0.0}, 5, 5, 0},
		{{-0.0, -0.0, -0.0, -0.0}, 0, 0, 0},
		{{1, -1, 2, -2}, -0.0, -0.0, 0},
		{{1, 2, -3.5, -0.0}, 0.5, 0, -0.5},
		{{0, 0, 0, 0}, -inf, -inf, 0},
		{{1, 0, 0, 0}, inf, inf, 1},
		{{1, 0, 0, 0}, nan, nan, 1},
		{{inf, 1, 1, 1}, 1, inf, inf},
		{{inf, inf, 1, 1}, -inf, nan, inf},
		{{-inf, LARGEST, LARGEST, LARGEST}, LARGEST, -inf, -inf},
		{{inf, -inf, 1, 1}, 1, nan, nan},
		{{1, nan, -1, 0}, 1, nan, nan},
		{{-nan, inf, -inf, 0}, 1, nan, nan},
		/* intermediate sums do not overflow */
		{{LARGEST, LARGEST, LARGEST, -LARGEST}, -LARGEST, LARGEST, inf},
		{{LARGEST, LARGEST, 0, 0}, -LARGEST, LARGEST, inf},
		{{-LARGEST, -LARGEST, -LARGEST, -LARGEST}, LARGEST, -inf, -inf},
		{{0x1p970, 0, 0, 0}, LARGEST, inf, 0x1p970},
		{{0x1p970, -0x1p-1074, 0, 0}, LARGEST, LARGEST, 0x1p970},
		{{-0x1.fffffffffffffp969, 0, 0, 0}, -LARGEST, -LARGEST, -0x1.fffffffffffffp969},
		/* ties, and sums slightly to either side */
		{{0x1p-53, 0, 0, 0}, 1, 1, 0x1p-53},
		{{0x1p-53, 0x1p-1074, 0, 0}, 1, 1 + 0x1p-52, 0x1p-53},
		{{0x1p-53, 0x1p-1074, -0x1p-1074, 0}, 1, 1, 0x1p-53},
		{{0x1p-53, -0x1p-1074, 0, 0}, 1 + 0x1p-52, 1 + 0x1p-52, 0x1p-53},
		{{0x1p-53, 0, 0, 0}, 1 + 0x1p-52, 1 + 0x1p-51, 0x1p-53},
		{{-0x1p-54, 0, 0, 0}, 1, 1, -0x1p-54},
		{{-0x1p-54, -0x1p-1074, 0, 0}, 1, 1 - 0x1p-53, -0x1p-54},
		{{1, 0x1p-53, -0x1p-106, 0x1p-107}, 0, 1, 1},
		/* a rounded sum of the elements would decide the tie differently */
		{{1, 0x1p-53, 0, 0}, 0x1p-1074, 1 + 0x1p-52, 1},
		/* subnormal numbers, and the least normal numbers */
		{{0x1p-1074, 0x1p-1074, 0x1p-1074, 0}, 0x1p-1074, 0x1p-1072, 0x3p-1074},
		{{0x1p-1022, -0x1p-1074, 0, 0},
		 0,
		 0x0.fffffffffffffp-1022,
		 0x0.fffffffffffffp-1022},
		{{0x0.fffffffffffffp-1022, 0, 0, 0}, 0x1p-1074, 0x1p-1022, 0x0.fffffffffffffp-1022},
		{{0x1p-1074, 0, 0, 0}, -0x1p-1074, 0, 0x1p-1074},
		/* all exponents in the same target */
		{{0x1p1023, -0x1p1023, 0x1p-1074, 0}, 0x1p1023, 0x1p1023, 0x1p-1074},
		{{-0x1p-1074, 0x1p1023, 0x1p1023, -0x1p1023}, -0x1p1023, -0x1p-1074, 0x1p1023},
		{{0x1p1023, 0x1p970, 0x1p-1074, 0},
		 0,
		 0x1.0000000000001p1023,
		 0x1.0000000000001p1023},
		{{0x1p1023, 0x1p970, -0x1p-1074, 0}, 0, 0x1p1023, 0x1p1023},
	};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double x[4 * COUNT(rules)], old[COUNT(rules)], expected[COUNT(rules)];
	uint32_t index[4 * COUNT(rules)];
	struct scatter_call c = {.op = CUA_SCATTER_ADD,
				 .index_type = CUA_U32,
				 .type = CUA_F64,
				 .result_type = CUA_F64,
				 .width = 1,
				 .n = 4 * COUNT(rules),
				 .targets = COUNT(rules),
				 .index = index,
				 .x = x};

	for (size_t i = 0; i < 4 * COUNT(rules); i++) {
		/* the order is not that of the rule */
		index[i] = (uint32_t)(i * 7 % COUNT(rules));
		x[i] = rules[index[i]].x[i / COUNT(rules)];
	}
	for (c.overwrite = 0; c.overwrite < 2; c.overwrite++) {
		struct outcome got;

		for (size_t i = 0; i < COUNT(rules); i++) {
			old[i] = rules[i].old;
			expected[i] = c.overwrite ? rules[i].alone : rules[i].added;
		}
		got = run_call(ctx, &c, old, NOWHERE, 0);
		compare(&c, "rules", old, got.first, expected);
		free(got.memory);
		check(ctx, &c, "rules", old);
	}
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Elements with which a target of value `own` keeps its bits: none; zeros; 1 and -1; for MIN and MAX
 * two NaN, or a NaN and `own`.
 */
static size_t keeping_elements(const struct scatter_call *c, size_t way, uint64_t own,
			       uint64_t bits[2])
{
	const struct format *f = format_of(c->type);
	const uint64_t minus = format_minus(f), one = bits_of(f, 1), nan = format_infinity(f) + 1;

	if (c->op == CUA_SCATTER_MIN || c->op == CUA_SCATTER_MAX) {
		bits[0] = nan;
		bits[1] = way == 3 ? own : nan + way;
	} else {
		bits[0] = way == 2 ? one : 0;
		bits[1] = way == 2 ? one | minus : way == 1 ? minus : 0;
		/* additions in FAST may round, and lose the sign of a zero or the bits of a NaN */
		if (c->mode == CUA_REDUCE_FAST)
			return 0;
	}
	return way ? 2 : 0;
}

/* A target without elements, or with elements that sum to 0, keeps all its bits. */
START_TEST(test_kept)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (size_t k = 0; k < COUNT(floats) * COUNT(ops) * COUNT(modes);
	     k += test_traced() ? 7 : 1) {
		const struct format *f = format_of(floats[k % 4]);
		const uint64_t minus = format_minus(f), infinity = format_infinity(f);
		const uint64_t kept[] = {0,
					 minus,
					 infinity,
					 minus | infinity,
					 1,
					 minus | 1,
					 infinity - 1,
					 bits_of(f, 1) + 12,
					 format_nan(f),
					 minus | format_nan(f),
					 infinity + 1,
					 minus | (infinity + 2),
					 2 * minus - 1};
		uint8_t old[4 * COUNT(kept) * 8], x[8 * COUNT(kept) * 8];
		int64_t index[8 * COUNT(kept)];
		struct scatter_call c = {.op = ops[k / 4 % 4],
					 .index_type = CUA_I64,
					 .type = floats[k % 4],
					 .result_type = floats[k % 4],
					 .mode = modes[k / 16],
					 .width = 1,
					 .targets = 4 * COUNT(kept),
					 .index = index,
					 .x = x};

		for (size_t t = 0; t < c.targets; t++) {
			uint64_t bits[2];
			size_t elements = keeping_elements(&c, t % 4, kept[t / 4], bits);

			store_bits(c.type, old, t, kept[t / 4]);
			for (size_t i = 0; i < elements; i++) {
				store_bits(c.type, x, c.n, bits[i]);
				index[c.n++] = (int64_t)t;
			}
		}
		for (c.overwrite = 0; c.overwrite < 2; c.overwrite++) {
			struct outcome got = run_call(ctx, &c, old, NOWHERE, 0);

			if (!c.overwrite && c.op != CUA_SCATTER_MEAN)
				compare(&c, "kept bits", old, got.first, old);
			free(got.memory);
			check(ctx, &c, "kept bits", old);
		}
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Every order of the rows, number of threads and backend has the same bits. */
START_TEST(test_same)
{
	static const size_t counts[] = {1, 20, 700, 30000, 300000};
	const size_t n = test_scale(5000, 50000, 500000),
		     large = test_scale(140000, 200000, 500000);
	const int step = test_traced() ? 13 : 1;
	const struct format *f = &formats[_i];
	struct cua_context *ctx = test_context(TEST_BACKEND), *cpu = test_context(CUA_BACKEND_CPU);
	uint64_t seed = test_seed("test_same");

	for (int k = 0; k < KINDS_HERE * 2; k += step) {
		const enum kind_of_element kind = (enum kind_of_element)(k / 2);
		const enum spread spread = (enum spread)(test_random(&seed) % SPREADS);
		struct scatter_call c = {.op = test_random(&seed) % 8 ? CUA_SCATTER_ADD
								      : CUA_SCATTER_MEAN,
					 .index_type = index_types[k % 4],
					 .type = f->type,
					 .result_type = k % 4 == 3 ? CUA_F64 : f->type,
					 .overwrite = k % 2,
					 .width = 1 + (uint32_t)(test_random(&seed) % 8 == 0) * 4,
					 .n = k % 5 ? n : large,
					 .targets = counts[test_random(&seed) % COUNT(counts)]};
		struct outcome first, got;
		char what[80];
		void *old;

		if (test_quick() && c.targets > 30000)
			c.targets = 1000;
		make_call(&c, spread, kind, &seed);
		old = make_targets(&c, kind, &seed);
		first = run_call(ctx, &c, old, ON_HOST, 0);
		for (unsigned turn = 0; turn < 3; turn++) {
			snprintf(what, sizeof(what), "%s, %s, %u threads", spread_names[spread],
				 name_of_kind(kind), 1 + 5 * turn);
			ck_assert_cua(cua_context_set_threads(cpu, 1 + 5 * turn));
			got = run_call(cpu, &c, old, ON_HOST, turn);
			compare(&c, what, old, got.first, first.first);
			ck_assert_uint_eq(got.skipped, first.skipped);
			free(got.memory);
		}
		for (unsigned turn = 0; turn < 2; turn++) {
			shuffle(&c, &seed);
			c.mode = turn ? CUA_REDUCE_FIXED : CUA_REDUCE_EXACT;
			got = run_call(ctx, &c, old, ON_HOST, turn);
			snprintf(what, sizeof(what), "%s, %s, shuffled", spread_names[spread],
				 name_of_kind(kind));
			compare(&c, what, old, got.first, first.first);
			free(got.memory);
		}
		free(first.memory);
		free(old);
		free_call(&c);
	}
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_MPFR && !TEST_CUDA
/* ---- the rounding of words, which both backends share ---- */

/* A target that had the bits `old`, with a sum of v 2^power. */
static uint64_t expected_word(const struct format *f, int64_t v, int power, int overwrite,
			      uint64_t old)
{
	mpfr_t word;

	if (!v)
		return overwrite ? 0 : old;
	mpfr_init2(word, 64);
	(void)mpfr_set_si_2exp(word, v, power, MPFR_RNDN);
	sum_begin();
	ck_assert_int_eq(mpfr_add(model_sum, model_sum, word, MPFR_RNDN), 0);
	if (!overwrite)
		sum_take(f, old);
	mpfr_clear(word);
	return sum_round(f);
}

/* An old value: any, or near the sum, so that the two cancel or that a tie has to be decided. */
static uint64_t old_of_word(const struct format *f, int64_t v, int power, uint64_t *seed)
{
	const uint64_t r = test_random(seed);
	const double near = ldexp((double)v, power + (r / 8 % 2 ? 0 : (int)(r / 64 % 140) - 70));

	switch (r % 8) {
	case 0: return random_element(f, KIND_SPECIAL, 0, seed);
	case 1: return random_element(f, KIND_EXTREME, 0, seed);
	case 2: return random_finite(f, seed);
	case 3: return bits_of(f, r & 16 ? near : -near) & ~(uint64_t)1023;
	default: return bits_of(f, r & 16 ? near : -near) ^ (r / 32 % 2);
	}
}

START_TEST(test_words)
{
	const int turns = test_scale(20000, 300000, 10000000);
	uint64_t seed = test_seed("test_words");

	for (int turn = 0; turn < turns; turn++) {
		const struct format *f = &formats[turn % FORMATS];
		const int bias = (1 << (f->exponent - 1)) - 1;
		const uint64_t r = test_random(&seed);
		int64_t v = (int64_t)test_random(&seed) >> r % 64;
		int power = (int)(r / 64 % (uint64_t)(2 * bias + f->fraction)) - bias - f->fraction;
		int overwrite = (int)(r >> 40) % 4 == 0;
		uint64_t old, got, expected;

		if (r >> 48 & 1)
			v &= -((int64_t)1 << (r >> 50) % 63);
		old = old_of_word(f, v, power, &seed);
		expected = expected_word(f, v, power, overwrite, old);
		got = cua__scatter_sum_word(f->type, v, power + CUA__EXACT_POINT, overwrite, old);
		EXPECT(got == expected, "%s: %lld 2^%d and %llx, overwrite %d: %llx, not %llx",
		       f->name, (long long)v, power, (unsigned long long)old, overwrite,
		       (unsigned long long)got, (unsigned long long)expected);
	}
}
END_TEST
#endif

/* ---- mode FAST ---- */

/*
 * Each sum or mean is within the bound of additions with a rounding after each. Additions of f32 may
 * treat subnormal numbers as 0, and any NaN may be the result.
 */
static void check_bounds(struct cua_context *ctx, const struct scatter_call *c, const char *what,
			 const void *old)
{
	const struct format *f = format_of(c->type), *result = format_of(c->result_type);
	const size_t all = c->targets * c->width;
	char *exact = test_malloc(all * 8);
	double *total = test_malloc(all * 8), *count = test_malloc(all * 8);
	struct scatter_call wide = *c;
	struct outcome got;
	size_t target;

	/* the model in f64, of the old values in f64 */
	for (size_t t = 0; t < all; t++) {
		double v = float_of(result, load_bits(result->type, old, t));

		memcpy(exact + t * 8, &v, 8);
		total[t] = c->op == CUA_SCATTER_MEAN || c->overwrite ? 0 : fabs(v);
		count[t] = 2;
	}
	for (size_t i = 0; i < c->n; i++)
		for (size_t j = 0; target_of(c, i, &target) && j < c->width; j++) {
			uint64_t bits = load_bits(c->type, c->x, i * c->width + j);

			total[target * c->width + j] += fabs(float_of(f, bits));
			count[target * c->width + j]++;
		}
	wide.result_type = CUA_F64;
	(void)model_scatter(&wide, exact, exact);
	got = run_call(ctx, c, old, NOWHERE, 1);
	for (size_t t = 0; t < all; t++) {
		uint64_t before = load_bits(result->type, old, t);
		uint64_t bits = load_bits(result->type, got.first, t);
		double v = float_of(result, bits), right, unit = ldexp(1, -f->fraction - 1);
		double bound = total[t] * count[t] * unit * 1.001;

		memcpy(&right, exact + t * 8, 8);
		if (f->type == CUA_F32 || result->type == CUA_F32)
			bound += count[t] * 0x1p-126;
		/* the mean may be subnormal, and is rounded then, too */
		if (c->op == CUA_SCATTER_MEAN)
			bound = bound / (count[t] - 2) +
				ldexp(1, 2 - (1 << (result->exponent - 1)) - result->fraction);
		if (count[t] == 2 && !c->overwrite ? bits != before
		    : isnan(right)                 ? !isnan(v)
		    : isinf(right)                 ? v != right
						   : !(fabs(v - right) <= bound))
			fail_at(c, what, 1, t, before, bits, bits_of(result, right));
	}
	free(exact);
	free(total);
	free(count);
	free(got.memory);
}

START_TEST(test_fast)
{
	static const enum kind_of_element kinds[] = {KIND_NEAR, KIND_SPARSE, KIND_SUBNORMAL};
	static const size_t counts[] = {1, 7, 100, 3000, 100000};
	const int turns = test_traced() ? 3 : test_scale(30, 100, 1000);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_fast");

	for (int turn = 0; turn < turns; turn++) {
		const uint64_t r = test_random(&seed);
		const enum kind_of_element kind = kinds[r % COUNT(kinds)];
		const enum spread spread = (enum spread)(r / 64 % SPREADS);
		struct scatter_call c = {.op = r / 1024 % 4 ? CUA_SCATTER_ADD : CUA_SCATTER_MEAN,
					 .index_type = index_types[r / 4096 % 4],
					 .type = floats[turn % 4],
					 .result_type = r / 65536 % 2 ? floats[turn % 4] : CUA_F64,
					 .mode = CUA_REDUCE_FAST,
					 .overwrite = (int)(r >> 20 & 1),
					 .width = (r >> 24) % 4 ? 1 : 3,
					 .targets = counts[(r >> 32) % COUNT(counts)]};
		const struct format *result = format_of(c.result_type);
		void *old;

		/* sums far below the overflow, and a bound far below the sum */
		c.n = floats[turn % 4] == CUA_F16 ? 200 : floats[turn % 4] == CUA_BF16 ? 60 : 30000;
		c.index = test_malloc(c.n * cua_type_size(c.index_type));
		c.x = test_malloc(c.n * c.width * cua_type_size(c.type));
		make_indexes(&c, spread, &seed);
		make_elements(&c, kind, &seed);
		old = test_malloc(c.targets * c.width * cua_type_size(c.result_type));
		for (size_t t = 0; t < c.targets * c.width; t++)
			store_bits(c.result_type, old, t,
				   random_element(result, KIND_NEAR, t, &seed));
		check_bounds(ctx, &c, kind_names[kind], old);
		free(old);
		free_call(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* NaN and infinities in mode FAST. */
START_TEST(test_fast_specials)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (size_t k = 0; k < COUNT(floats); k++) {
		const struct format *f = format_of(floats[k]);
		const uint64_t inf = format_infinity(f), minus = format_minus(f);
		const uint64_t values[] = {bits_of(f, 3), inf, inf | minus, inf + 1,
					   (inf + 1) | minus};
		uint8_t x[2 * 125 * 8], old[125 * 8];
		int32_t index[2 * 125];
		struct scatter_call c = {.op = CUA_SCATTER_ADD,
					 .index_type = CUA_I32,
					 .type = f->type,
					 .result_type = f->type,
					 .mode = CUA_REDUCE_FAST,
					 .width = 1,
					 .n = 250,
					 .targets = 125,
					 .index = index,
					 .x = x};

		for (size_t t = 0; t < 125; t++) {
			store_bits(f->type, old, t, values[t % 5]);
			store_bits(f->type, x, 2 * t, values[t / 5 % 5]);
			store_bits(f->type, x, 2 * t + 1, values[t / 25]);
			index[2 * t] = index[2 * t + 1] = (int32_t)t;
		}
		for (c.overwrite = 0; c.overwrite < 2; c.overwrite++)
			check_bounds(ctx, &c, "special floats", old);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- skipped indexes, and calls without elements or targets ---- */

START_TEST(test_skipped)
{
	static const int64_t few[] = {
		0,           -1,           1,         INT64_MIN, INT64_MAX,  2,          3, 4, -4,
		0x100000000, -0x100000000, INT32_MIN, INT32_MAX, UINT32_MAX, 0x100000003};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = COUNT(few);
	uint8_t index[COUNT(few) * 8];
	uint32_t x[COUNT(few)], old[4] = {1000, 2000, 3000, 4000};

	for (size_t i = 0; i < n; i++)
		x[i] = (uint32_t)1 << i;
	for (size_t k = 0; k < COUNT(index_types) * 3 * 5; k++) {
		struct scatter_call c = {.op = CUA_SCATTER_ADD,
					 .index_type = index_types[k % 4],
					 .type = CUA_U32,
					 .result_type = CUA_U32,
					 .width = 1,
					 .n = n,
					 .targets = k / 12,
					 .index = index,
					 .x = x};
		const int narrow = cua_type_size(c.index_type) == 4;
		uint64_t expected = 0;
		uint32_t sums[4];
		struct outcome got;

		memcpy(sums, old, sizeof(sums));
		for (size_t i = 0; i < n; i++) {
			const int64_t v = narrow ? (int64_t)(uint32_t)few[i] : few[i];

			store_bits(c.index_type, index, i, (uint64_t)few[i]);
			/* as an unsigned number a negative index is large */
			if ((uint64_t)v < c.targets)
				sums[v] += x[i];
			else
				expected++;
		}
		got = run_call(ctx, &c, old, (enum place)(k / 4 % 3), 0);
		compare(&c, "skipped", old, got.first, sums);
		ck_assert_uint_eq(got.skipped, k / 4 % 3 == NOWHERE ? 77 : expected);
		free(got.memory);
	}
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(test_empty)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const float host[4] = {1, 2, 3, 4};
	const uint32_t host_index[4] = {0, 1, 0, 7};
	float *x = test_upload(ctx, host, sizeof(host)), got[4];
	uint32_t *index = test_upload(ctx, host_index, sizeof(host_index));
	uint64_t count = 77;
	struct cua_scatter_options o = CUA_SCATTER_OPTIONS_INIT;

	o.skipped = &count;
	for (size_t k = 0; k < COUNT(ops); k++) {
		float expected[4];

		/* no elements: all targets keep their values, or become the empty value */
		float *out = test_upload(ctx, host, sizeof(host));

		o.overwrite = 0;
		count = 77;
		ck_assert_cua(
			cua_scatter(ctx, &o, ops[k], CUA_U32, CUA_F32, 0, NULL, NULL, 4, out));
		ck_assert_uint_eq(count, 0);
		ck_assert_cua(cua_scatter(ctx, &o, ops[k], CUA_I64, CUA_F32, 0, index, x, 4, out));
		test_download(ctx, got, out, sizeof(got));
		ck_assert_mem_eq(got, host, sizeof(got));
		o.overwrite = 1;
		ck_assert_cua(
			cua_scatter(ctx, &o, ops[k], CUA_U32, CUA_F32, 0, NULL, NULL, 3, out));
		test_download(ctx, got, out, sizeof(got));
		for (int i = 0; i < 4; i++)
			expected[i] = i == 3                      ? 4
				      : ops[k] == CUA_SCATTER_ADD ? 0
				      : ops[k] == CUA_SCATTER_MIN ? HUGE_VALF
				      : ops[k] == CUA_SCATTER_MAX ? -HUGE_VALF
								  : NAN;
		ck_assert_mem_eq(got, expected, sizeof(got));
		/* no targets: all indexes are out of range */
		for (int overwrite = 0; overwrite < 2; overwrite++) {
			o.overwrite = overwrite;
			count = 77;
			ck_assert_cua(cua_scatter(ctx, &o, ops[k], CUA_U32, CUA_F32, 4, index, x, 0,
						  NULL));
			ck_assert_uint_eq(count, 4);
			ck_assert_cua(cua_scatter(ctx, &o, ops[k], CUA_U32, CUA_F32, 0, NULL, NULL,
						  0, NULL));
			ck_assert_uint_eq(count, 0);
			ck_assert_cua(cua_scatter(ctx, NULL, ops[k], CUA_U32, CUA_F32, 4, index, x,
						  0, out));
		}
		test_download(ctx, got, out, sizeof(got));
		ck_assert_mem_eq(got, expected, sizeof(got));
		test_free(ctx, out);
	}
	ck_assert_cua(cua_scatter_add(ctx, CUA_I32, CUA_U8, 0, NULL, NULL, 0, NULL));
	test_free(ctx, x);
	test_free(ctx, index);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- arguments ---- */

/* Good arguments. Each refused call differs from them in a single argument. */
struct arguments {
	struct cua_context *ctx;
	uint32_t *index;
	uint32_t *x;
	uint64_t *out;
	struct cua_scatter_options o;
};

static enum cua_status call_with(const struct arguments *a, enum cua_scatter_op op,
				 enum cua_type index_type, enum cua_type type)
{
	return cua_scatter(a->ctx, &a->o, op, index_type, type, 4, a->index, a->x, 4, a->out);
}

static enum cua_status workspace_with(const struct arguments *a, enum cua_scatter_op op,
				      enum cua_type index_type, enum cua_type type)
{
	size_t bytes = 77;
	enum cua_status status =
		cua_scatter_workspace(a->ctx, &a->o, op, index_type, type, 4, 4, &bytes);

	ck_assert((bytes == 77) == (status != CUA_OK));
	return status;
}

#define REFUSED(expected, ...)                                                                     \
	do {                                                                                       \
		ck_assert_status(call_with(__VA_ARGS__), expected);                                \
		ck_assert_status(workspace_with(__VA_ARGS__), expected);                           \
	} while (0)

static void refused_options(const struct arguments *good)
{
	static const size_t sizes[] = {0, sizeof(size_t), sizeof(struct cua_scatter_options) - 8,
				       sizeof(struct cua_scatter_options) + 1, SIZE_MAX};
	struct arguments a = *good;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		a.o.struct_size = sizes[i];
		REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	}
	a = *good;
	a.o.mode = (enum cua_reduce_mode) - 1;
	REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	a.o.mode = (enum cua_reduce_mode)(CUA_REDUCE_EXACT + 1);
	REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	a = *good;
	a.o.overwrite = 2;
	REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	a.o.overwrite = -1;
	REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	a = *good;
	a.o.width = CUA_SCATTER_WIDTH_MAX + 1;
	REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	a.o.width = UINT32_MAX;
	REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	a = *good;
	a.o.reserved = 1;
	REFUSED(CUA_ERROR_VALUE, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
	a = *good;
	REFUSED(CUA_ERROR_VALUE, &a, (enum cua_scatter_op)0, CUA_U32, CUA_U32);
	REFUSED(CUA_ERROR_VALUE, &a, (enum cua_scatter_op)(CUA_SCATTER_MEAN + 1), CUA_U32, CUA_U32);
	REFUSED(CUA_ERROR_VALUE, &a, (enum cua_scatter_op) - 1, CUA_U32, CUA_U32);
	a.ctx = NULL;
	REFUSED(CUA_ERROR_NULL, &a, CUA_SCATTER_ADD, CUA_U32, CUA_U32);
}

/* Each combination of types is refused, unless the header lists it. */
static void refused_types(const struct arguments *good)
{
	static const int types[] = {-1,
				    CUA_I8,
				    CUA_U8,
				    CUA_I16,
				    CUA_U16,
				    CUA_I32,
				    CUA_U32,
				    CUA_I64,
				    CUA_U64,
				    9,
				    CUA_U128,
				    CUA_F16,
				    CUA_BF16,
				    CUA_F32,
				    CUA_F64,
				    CUA_COMPLEX_F32,
				    CUA_COMPLEX_F64,
				    99};
	struct arguments a = *good;

	for (size_t k = 0; k < COUNT(types) * COUNT(types) * COUNT(ops); k++) {
		const enum cua_type type = (enum cua_type)types[k % COUNT(types)];
		const enum cua_type result = (enum cua_type)types[k / COUNT(types) % COUNT(types)];
		const enum cua_scatter_op op = ops[k / (COUNT(types) * COUNT(types))];
		int known = 0;

		for (size_t i = 0; i < COUNT(element_types); i++)
			known += (element_types[i] == type) + (element_types[i] == result);
		a.o.result_type = result;
		if (known < 2 || !is_result(op, type, result))
			REFUSED(CUA_ERROR_TYPE, &a, op, CUA_U32, type);
		else
			ck_assert_cua(workspace_with(&a, op, CUA_U32, type));
	}
	a = *good;
	for (size_t i = 0; i < COUNT(types); i++) {
		const enum cua_type type = (enum cua_type)types[i];

		if (type != CUA_I32 && type != CUA_U32 && type != CUA_I64 && type != CUA_U64)
			REFUSED(CUA_ERROR_TYPE, &a, CUA_SCATTER_ADD, type, CUA_U32);
	}
	REFUSED(CUA_ERROR_TYPE, &a, CUA_SCATTER_MIN, CUA_NONE, CUA_U32);
	REFUSED(CUA_ERROR_TYPE, &a, CUA_SCATTER_MIN, CUA_U32, CUA_NONE);
}

static void refused_sizes(const struct arguments *a)
{
	const struct {
		size_t n, targets;
		enum cua_type index_type, type;
		uint32_t width;
	} sizes[] = {
		{SIZE_MAX, 4, CUA_U32, CUA_U32, 1},
		{SIZE_MAX / 4, 4, CUA_U32, CUA_U8, 1},
		{SIZE_MAX / 8, 4, CUA_U64, CUA_U8, 1},
		{SIZE_MAX / 8, 4, CUA_U32, CUA_F64, 1},
		{SIZE_MAX / 16 + 1, 4, CUA_U32, CUA_U8, 16},
		{SIZE_MAX / 64, 4, CUA_U32, CUA_U32, 16},
		{4, SIZE_MAX, CUA_U32, CUA_U8, 1},
		{4, SIZE_MAX / 8, CUA_U32, CUA_U64, 1},
		{4, SIZE_MAX / 16 + 1, CUA_U32, CUA_U8, 16},
	};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct cua_scatter_options o = a->o;
		size_t bytes = 77;

		o.width = sizes[i].width;
		ck_assert_status(cua_scatter(a->ctx, &o, CUA_SCATTER_ADD, sizes[i].index_type,
					     sizes[i].type, sizes[i].n, a->index, a->x,
					     sizes[i].targets, a->out),
				 CUA_ERROR_SIZE);
		ck_assert_status(cua_scatter_workspace(a->ctx, &o, CUA_SCATTER_ADD,
						       sizes[i].index_type, sizes[i].type,
						       sizes[i].n, sizes[i].targets, &bytes),
				 CUA_ERROR_SIZE);
		ck_assert_uint_eq(bytes, 77);
	}
}

#define REFUSED_ARRAY(expected, field, value)                                                      \
	do {                                                                                       \
		struct arguments one = *a;                                                         \
                                                                                                   \
		one.field = (void *)(value);                                                       \
		ck_assert_status(call_with(&one, CUA_SCATTER_ADD, CUA_U32, CUA_U32), expected);    \
	} while (0)

static void refused_arrays(const struct arguments *a)
{
	REFUSED_ARRAY(CUA_ERROR_NULL, index, NULL);
	REFUSED_ARRAY(CUA_ERROR_NULL, x, NULL);
	REFUSED_ARRAY(CUA_ERROR_NULL, out, NULL);
	REFUSED_ARRAY(CUA_ERROR_ALIGNMENT, index, (char *)a->index + 2);
	REFUSED_ARRAY(CUA_ERROR_ALIGNMENT, x, (char *)a->x + 1);
	REFUSED_ARRAY(CUA_ERROR_ALIGNMENT, out, (char *)a->out + 2);
	REFUSED_ARRAY(CUA_ERROR_ALIGNMENT, o.skipped, (char *)(a->out + 6) + 4);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, out, a->index);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, out, a->index + 3);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, out, a->x);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, out, a->x + 3);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, o.skipped, a->out);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, o.skipped, a->out + 1);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, o.skipped, a->index + 2);
	REFUSED_ARRAY(CUA_ERROR_OVERLAP, o.skipped, a->x);
	ck_assert_status(cua_scatter_add(NULL, CUA_U32, CUA_U32, 4, a->index, a->x, 4, a->out),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_scatter_add(a->ctx, CUA_U32, CUA_U32, 4, a->index, NULL, 4, a->out),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_scatter_add(a->ctx, CUA_U32, CUA_U128, 4, a->index, a->x, 4, a->out),
			 CUA_ERROR_TYPE);
	ck_assert_status(
		cua_scatter_workspace(a->ctx, NULL, CUA_SCATTER_ADD, CUA_U32, CUA_U32, 4, 4, NULL),
		CUA_ERROR_NULL);
}

#if TEST_CUDA
/* Memory that only the device can access, in calls of the CPU backend. */
static void refused_memory(const struct arguments *a)
{
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct arguments b = *a;
	uint32_t index[4] = {0, 1, 2, 3}, x[4] = {1, 2, 3, 4};
	uint64_t out[4];

	b.ctx = cpu;
	b.index = index;
	b.x = x;
	b.out = out;
	ck_assert_cua(call_with(&b, CUA_SCATTER_ADD, CUA_U32, CUA_U32));
	b.index = a->index;
	ck_assert_status(call_with(&b, CUA_SCATTER_ADD, CUA_U32, CUA_U32), CUA_ERROR_MEMORY_KIND);
	b.index = index;
	b.x = a->x;
	ck_assert_status(call_with(&b, CUA_SCATTER_ADD, CUA_U32, CUA_U32), CUA_ERROR_MEMORY_KIND);
	b.x = x;
	b.out = a->out;
	ck_assert_status(call_with(&b, CUA_SCATTER_ADD, CUA_U32, CUA_U32), CUA_ERROR_MEMORY_KIND);
	b.out = out;
	b.o.skipped = a->out;
	ck_assert_status(call_with(&b, CUA_SCATTER_ADD, CUA_U32, CUA_U32), CUA_ERROR_MEMORY_KIND);
	cua_context_destroy(cpu);
}
#endif

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint32_t host_index[4] = {0, 1, 1, 9}, host[4] = {1, 2, 3, 4};
	uint64_t count = 77, got[8], poison[8];
	uint32_t sums[16];
	struct arguments a = {ctx, test_upload(ctx, host_index, 16), test_upload(ctx, host, 16),
			      test_alloc(ctx, sizeof(got)), CUA_SCATTER_OPTIONS_INIT};

	memset(poison, 0xa5, sizeof(poison));
	a.o.skipped = &count;
	refused_options(&a);
	refused_types(&a);
	refused_sizes(&a);
	refused_arrays(&a);
#if TEST_CUDA
	a.o.skipped = NULL;
	refused_memory(&a);
	a.o.skipped = &count;
#endif
	ck_assert_uint_eq(count, 77);
	test_download(ctx, got, a.out, sizeof(got));
	ck_assert_mem_eq(got, poison, sizeof(got));

	/* the good arguments, with each default */
	ck_assert_cua(call_with(&a, CUA_SCATTER_ADD, CUA_U32, CUA_U32));
	ck_assert_uint_eq(count, 1);
	a.o.overwrite = 1;
	ck_assert_cua(call_with(&a, CUA_SCATTER_ADD, CUA_U32, CUA_U32));
	ck_assert_cua(cua_scatter_add(ctx, CUA_U32, CUA_U32, 4, a.index, a.x, 4, a.out));
	test_download(ctx, sums, a.out, sizeof(sums));
	ck_assert(sums[0] == 2 && sums[1] == 10 && sums[2] == 0 && sums[3] == 0);
	ck_assert_uint_eq(sums[4], 0xa5a5a5a5);
	/* MEAN of integers has results of f64; index and x may be the same array */
	a.x = a.index;
	ck_assert_cua(call_with(&a, CUA_SCATTER_MEAN, CUA_I32, CUA_I32));
	test_download(ctx, got, a.out, sizeof(got));
	ck_assert(got[0] == 0 && got[1] == 0x3ff0000000000000u && got[2] == 0x7ff8000000000000u);
	ck_assert_uint_eq(got[4], poison[4]);
	/* NULL arrays that have no elements */
	ck_assert_cua(cua_scatter(ctx, NULL, CUA_SCATTER_ADD, CUA_U32, CUA_U32, 4, a.index, a.x, 0,
				  NULL));
	test_free(ctx, a.index);
	test_free(ctx, a.out);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the workspace ---- */

/* Calls that differ in their workspaces. */
static const struct scatter_call workspace_calls[] = {
	{.op = CUA_SCATTER_ADD, .type = CUA_F32, .result_type = CUA_F32, .targets = 1},
	{.op = CUA_SCATTER_ADD, .type = CUA_F32, .result_type = CUA_F32, .targets = 1000},
	{.op = CUA_SCATTER_ADD, .type = CUA_F32, .result_type = CUA_F32, .targets = 200000},
	{.op = CUA_SCATTER_ADD, .type = CUA_F64, .result_type = CUA_F64, .targets = 200000},
	{.op = CUA_SCATTER_MEAN, .type = CUA_F64, .result_type = CUA_F64, .targets = 3000},
	{.op = CUA_SCATTER_MIN, .type = CUA_BF16, .result_type = CUA_BF16, .targets = 100000},
	{.op = CUA_SCATTER_ADD, .type = CUA_I8, .result_type = CUA_I64, .targets = 100000},
	{.op = CUA_SCATTER_MEAN, .type = CUA_U16, .result_type = CUA_F32, .targets = 70000},
};

#if TEST_CUDA
/* A captured call that may not enlarge the workspace; its graph runs twice. */
static void check_captured(struct cua_context *ctx, cudaStream_t stream, struct scatter_call *c,
			   uint64_t *seed)
{
	const size_t size = cua_type_size(c->result_type), all = c->targets * c->width;
	struct cua_scatter_options o = options_of(c);
	char *got = test_malloc(all * size), *expected = test_malloc(all * size);
	uint64_t *count = test_alloc(ctx, 8), host = 77, skipped = 0;
	struct device_array index, x, out;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	void *old;

	make_call(c, BAD, KIND_OUTLIER, seed);
	old = make_targets(c, KIND_OUTLIER, seed);
	index = upload(ctx, c->index, c->n, cua_type_size(c->index_type), 0);
	x = upload(ctx, c->x, c->n * c->width, cua_type_size(c->type), 0);
	out = upload(ctx, old, all, size, 0);
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	o.skipped = count;
	ck_assert_cua(cua_scatter(ctx, &o, c->op, c->index_type, c->type, c->n, index.first,
				  x.first, c->targets, out.first));
	/* a count in ordinary memory would have to wait */
	o.skipped = &host;
	ck_assert_status(cua_scatter(ctx, &o, c->op, c->index_type, c->type, c->n, index.first,
				     x.first, c->targets, out.first),
			 CUA_ERROR_CAPTURE);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int turn = 0; turn < 2; turn++) {
		skipped = model_scatter(c, turn ? expected : old, expected);
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		test_download(ctx, got, out.first, all * size);
		compare(c, "a graph", old, got, expected);
		test_download(ctx, &host, count, sizeof(host));
		ck_assert_uint_eq(host, skipped);
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	test_free(ctx, index.memory);
	test_free(ctx, x.memory);
	test_free(ctx, out.memory);
	test_free(ctx, count);
	free(got);
	free(expected);
	free(old);
	free_call(c);
}
#endif

/* The reported size suffices: a context that has it need not grow. */
START_TEST(test_workspace)
{
	uint64_t seed = test_seed("test_workspace");
#if TEST_CUDA
	struct cua_context *ctx;
	cudaStream_t stream;
#else
	struct cua_context *ctx = test_context(TEST_BACKEND);
#endif

	for (size_t k = 0; k < COUNT(workspace_calls); k++) {
		struct scatter_call c = workspace_calls[k];
		struct cua_scatter_options o;
		size_t bytes = 77, none = 77;

		c.width = k % 3 == 1 ? 5 : 1;
		c.index_type = CUA_U32;
		c.n = test_quick() ? 20000 : 300000;
		o = options_of(&c);
#if TEST_CUDA
		ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		ctx = test_context(TEST_BACKEND);
		ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)stream));
#endif
		ck_assert_cua(cua_scatter_workspace(ctx, &o, c.op, c.index_type, c.type, c.n,
						    c.targets, &bytes));
		ck_assert_cua(
			cua_scatter_workspace(ctx, &o, c.op, c.index_type, c.type, 0, 0, &none));
		ck_assert_uint_le(none, bytes);
		ck_assert_cua(cua_context_reserve(ctx, bytes));
#if TEST_CUDA
		check_captured(ctx, stream, &c, &seed);
		cua_context_destroy(ctx);
		ck_assert_cuda(cudaStreamDestroy(stream));
#else
		check_random(ctx, &c, SKEWED, KIND_NEAR, &seed);
#endif
	}
#if !TEST_CUDA
	cua_context_destroy(ctx);
#endif
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("scatter");
	TCase *tc = tcase_create("scatter");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_arguments);
	tcase_add_test(tc, test_empty);
	tcase_add_test(tc, test_skipped);
	tcase_add_test(tc, test_rules);
	tcase_add_test(tc, test_kept);
	tcase_add_loop_test(tc, test_types, 0, (int)COUNT(element_types));
	tcase_add_loop_test(tc, test_kinds, 0, (int)COUNT(floats));
	tcase_add_test(tc, test_widths);
	tcase_add_test(tc, test_targets);
	tcase_add_test(tc, test_single);
	tcase_add_loop_test(tc, test_many_targets, 0, MANY_CASES);
	tcase_add_loop_test(tc, test_same, 0, FORMATS);
#if TEST_MPFR && !TEST_CUDA
	tcase_add_test(tc, test_words);
#endif
	tcase_add_test(tc, test_fast);
	tcase_add_test(tc, test_fast_specials);
	tcase_add_test(tc, test_workspace);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
