/* SPDX-License-Identifier: MIT */
/* The kernel of exact sums, against the inline functions, bit by bit. */
#include <stdio.h>
#include <string.h>

/* small, so that few elements make a block carry */
#define CUA__EXACT_TILES 2
#include "lib/kernels/exact_kernel.h"

#include "exact_elements.h"
#include "simt_suites.h"

#define ROOM 6000

static char x[ROOM * 8 + 64] __attribute__((aligned(64))),
	y[ROOM * 8 + 64] __attribute__((aligned(64)));
static struct cua__exact reduce;
static struct cua__exact_state state;
static struct cua_exact start, partial, expected, parts[3];
static uint64_t result, expected_result, count;
static enum cua_type type;
static int rounding;

static void exact_setup(void)
{
	memset(&state, 0, sizeof(state));
	partial = start;
	result = 0;
}

static void exact_body(void)
{
	struct cua__exact_shared *s = simt_shared(sizeof(*s));

	if (rounding)
		cua__exact_round_block(s, &reduce);
	else
		cua__exact_block(s, &reduce, type, reduce.op == CUA_REDUCE_DOT);
}

static const char *exact_check(void)
{
	static const struct cua__exact_state zero;

	if (memcmp(&state, &zero, sizeof(zero)))
		return "the state is not zero again";
	if (reduce.result)
		return result == expected_result ? NULL : "the result is wrong";
	return memcmp(&partial, &expected, sizeof(partial)) ? "the partial is wrong" : NULL;
}

static void try_exact(const struct format *f, int dot, enum kind_of_element kind, size_t n,
		      size_t at_x, size_t at_y, unsigned blocks, unsigned lanes,
		      unsigned runs /* 0: every schedule */, uint64_t *seed)
{
	struct simt_case c = {.setup = exact_setup, .body = exact_body, .check = exact_check};
	const struct format *to = &formats[test_random(seed) % FORMATS];
	uint64_t how = test_random(seed);
	char name[120];

	fill(f, kind, n, x + at_x, y + at_y, seed);
	memset(&reduce, 0, sizeof(reduce));
	cua_exact_init(&start);
	count = n;
	type = f->type;
	reduce.op = dot ? CUA_REDUCE_DOT : CUA_REDUCE_SUM;
	reduce.type = type;
	reduce.result_type = to->type;
	reduce.n = n;
	reduce.x = x + at_x;
	reduce.y = dot ? y + at_y : NULL;
	reduce.state = &state;
	if (how & 1) {
		reduce.result = &result;
	} else {
		reduce.partial = &partial;
		for (int i = 0; how & 2 && i < 3; i++)
			inline_add(&start, &formats[3], random_finite(&formats[3], seed));
		/* contents that fresh overrides */
		reduce.fresh = (how & 6) == 4;
		if (reduce.fresh)
			memset(&start, 0x5a, sizeof(start));
	}
	if (how & 8) {
		/* the lesser of n and *count is the length */
		reduce.n += how & 16 ? 0 : 100;
		count += how & 16 ? 100 : 0;
		reduce.count = &count;
	}
	expected = start;
	if (reduce.fresh)
		cua_exact_init(&expected);
	sum_inline(&expected, f, n, x + at_x, dot ? y + at_y : NULL);
	cua_exact_normalize(&expected);
	expected_result = inline_round(&expected, to);
	snprintf(name, sizeof(name), "%s %s, %s, %zu at %zu and %zu", f->name, dot ? "dot" : "sum",
		 kind_names[kind], n, at_x, at_y);
	c.name = name;
	if (runs) {
		try_shape(c, blocks, lanes, runs);
	} else {
		/* a run is long: only some of them run */
		struct simt_report r;

		c.shape.blocks = blocks;
		c.shape.block_lanes = lanes;
		r = simt_explore(&c, 1, 2000);
		ck_assert_msg(r.verdict == SIMT_OK, "%s, explored, %u x %u lanes: %s: %s", name,
			      blocks, lanes, simt_verdict_name(r.verdict), r.message);
	}
}

static const struct {
	unsigned blocks, lanes;
} shapes[] = {{1, 256}, {2, 256}, {1, 1}, {5, 1}, {3, 33}, {2, 136}, {8, 32}, {1, 40}};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

START_TEST(exact_kernel)
{
	uint64_t seed = test_seed("exact");

	for (int k = 0; k < FORMATS * KINDS * 2; k++) {
		const struct format *f = &formats[k % FORMATS];
		size_t size = (size_t)f->size;
		uint64_t r = test_random(&seed);
		unsigned shape = (unsigned)(r % SHAPES);
		/* up to several tiles for every block */
		size_t n = r / SHAPES % (test_quick() ? 400 : ROOM);
		size_t at = r >> 40 & 1 ? (r >> 41) % 16 * size % 64 : 0;
		size_t other = r >> 50 & 1 ? at : (r >> 51) % 16 * size % 64;

		try_exact(f, k >= FORMATS * KINDS, (enum kind_of_element)(k / FORMATS % KINDS), n,
			  at, other, shapes[shape].blocks, shapes[shape].lanes, 1, &seed);
	}
}
END_TEST

/* Sizes around the ends of packs and tiles, in every shape. */
START_TEST(exact_sizes)
{
	uint64_t seed = test_seed("exact sizes");
	static const size_t sizes[] = {0, 1, 3, 31, 257, 528, 1057};

	for (size_t shape = 0; shape < SHAPES; shape++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			const struct format *f = &formats[test_random(&seed) % FORMATS];

			try_exact(f, (int)(test_random(&seed) % 2),
				  (enum kind_of_element)(test_random(&seed) % KINDS), sizes[i],
				  i % 3 * 8, i % 3 * 8, shapes[shape].blocks, shapes[shape].lanes,
				  1, &seed);
		}
	}
}
END_TEST

/* Few elements, so that a block's additions and its arrival interleave in many ways. */
START_TEST(exact_arrival)
{
	uint64_t seed = test_seed("exact arrival");

	for (int turn = 0; turn < 4; turn++) {
		try_exact(&formats[3], turn % 2, KIND_WIDE, 48, 0, 0, 3, 8, 20, &seed);
		try_exact(&formats[3], turn % 2, KIND_SPECIAL, 150, 8, 8, 2, 40, 10, &seed);
		try_exact(&formats[2], turn % 2, KIND_NEAR, 3, 0, 8, 2, 2, 0, &seed);
	}
}
END_TEST

START_TEST(exact_round)
{
	uint64_t seed = test_seed("exact round");

	for (unsigned k = 0; k < 24; k++) {
		struct simt_case c = {.name = "round",
				      .setup = exact_setup,
				      .body = exact_body,
				      .check = exact_check};
		const struct format *to = &formats[k % FORMATS];

		memset(&reduce, 0, sizeof(reduce));
		reduce.partial = parts;
		reduce.partials = 1 + (uint64_t)k % 3;
		reduce.result = &result;
		reduce.result_type = to->type;
		cua_exact_init(&start);
		for (uint64_t p = 0; p < reduce.partials; p++) {
			cua_exact_init(&parts[p]);
			for (int i = 0; i < 20; i++)
				inline_add(&parts[p], to,
					   random_element(to, k % 2 ? KIND_WIDE : KIND_NEAR, 0,
							  &seed));
			if (reduce.partials > 1)
				cua_exact_normalize(&parts[p]);
			parts[p].layout = k % 12 == 11 && p == reduce.partials - 1;
			cua_exact_merge(&start, &parts[p]);
		}
		expected_result = inline_round(&start, to);
		rounding = 1;
		try_shape(c, 1, k % 3 ? 256 : 20, 1);
	}
	rounding = 0;
}
END_TEST

TCase *simt_exact_cases(void)
{
	TCase *tc = simt_tcase("exact");

	tcase_add_test(tc, exact_kernel);
	tcase_add_test(tc, exact_sizes);
	tcase_add_test(tc, exact_arrival);
	tcase_add_test(tc, exact_round);
	return tc;
}
