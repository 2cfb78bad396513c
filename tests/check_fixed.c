/* SPDX-License-Identifier: MIT */
/*
 * Reductions in a fixed order: CPU and GPU return the bits of the model, in every floating-point
 * environment of the caller.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fixed_calls.h"

#include <fenv.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* ---- bits ---- */

/* Every operation, length and pattern of a type, with random options and threads. */
static void lengths_of(enum cua_type type, const size_t *lengths, size_t n_lengths,
		       unsigned patterns, uint64_t *seed)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	size_t size = cua_type_size(type), most = 0, room;
	char *host_x, *host_y, *x, *y, what[64];
	struct cua_reduce_options o = fixed(), fast = CUA_REDUCE_OPTIONS_INIT;

	for (size_t l = 0; l < n_lengths; l++)
		most = lengths[l] > most ? lengths[l] : most;
	room = most + 8;
	host_x = test_malloc(room * size);
	host_y = test_malloc(room * size);
	for (unsigned p = 0; p < PATTERNS; p++) {
		if (!(patterns >> p & 1))
			continue;
		fill(type, (enum pattern)p, room, host_x, seed);
		fill(type, (enum pattern)p, room, host_y, seed);
		x = test_upload(ctx, host_x, room * size);
		y = test_upload(ctx, host_y, room * size);
		for (size_t l = 0; l < n_lengths; l++) {
			for (int op = FIRST_OP; op <= LAST_OP; op++) {
				size_t sx =
					test_random(seed) % 3 * (test_random(seed) % 9) / 2 * size;
				size_t sy =
					test_random(seed) % 3 * (test_random(seed) % 9) / 2 * size;
				struct model_call c = {
					(enum cua_reduce_op)op,
					type,
					some_result((enum cua_reduce_op)op, type, seed),
					lengths[l],
					host_x + sx,
					host_y + sy};
				union model_result expected;

				if (!model_has(c.op, type) ||
				    (test_traced() && (l + (size_t)op) % 4))
					continue;
				o.result_type = fast.result_type = c.result;
				expected = model_reduce(&c);
				snprintf(what, sizeof(what), "%s, shifted by %zu and %zu",
					 pattern_names[p], sx / size, sy / size);
				ck_assert_cua(cua_context_set_threads(
					ctx, 1 + (unsigned)(test_random(seed) % 7)));
				o.blocks = o.block_size = 0;
				expect_call(ctx, &o, &c, x + sx, y + sy, &expected, what);
				o.blocks = 1 + (uint32_t)(test_random(seed) % 9);
				o.block_size = (uint32_t)(test_random(seed) % 1025);
				expect_call(ctx, &o, &c, x + sx, y + sy, &expected, what);
				/* FAST has the same bits only for operations without an order */
				if (model_is_integer(c.type) && !model_is_variance(c.op))
					expect_call(ctx, &fast, &c, x + sx, y + sy, &expected,
						    what);
			}
		}
		test_free(ctx, x);
		test_free(ctx, y);
	}
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}

static void bits_of(int i)
{
	uint64_t seed = test_seed("bits");
	enum cua_type type = types[i];
	size_t pack = 16 / cua_type_size(type), row = 32 * pack, strip = 8 * row, chunk = 8 * strip;
	const size_t lengths[] = {
		0,
		1,
		2,
		3,
		5,
		pack + 1,
		2 * pack - 1,
		row - 1,
		row,
		row + 1,
		3 * row + pack + 1,
		strip - 1,
		strip,
		strip + 1,
		strip + 5 * row + 7,
		chunk - strip + 1,
		chunk - 1,
		chunk,
		chunk + 1,
		chunk + strip + row + 1,
		2 * chunk - 1,
		3 * chunk + 5 * strip + 3,
	};

	lengths_of(type, lengths, test_quick() ? COUNT(lengths) - 1 : COUNT(lengths),
		   test_traced() ? 1u << TAME : (1u << PATTERNS) - 1, &seed);
}

/*
 * Lengths around 256 chunks: from there on a chunk is added to an accumulator that already holds a
 * chunk.
 */
static void bits_of_accumulators(int i)
{
	uint64_t seed = test_seed("accumulators");
	enum cua_type type = types[i];
	size_t chunk = 64 * 32 * 16 / cua_type_size(type);
	const size_t lengths[] = {33 * chunk - 1,  256 * chunk - 1,         256 * chunk,
				  256 * chunk + 1, 300 * chunk + chunk / 3, 513 * chunk + 1};

	if (SANITIZED || test_quick())
		lengths_of(type, lengths, 1, 1u << TAME, &seed);
	else
		lengths_of(type, lengths, COUNT(lengths),
			   test_random(&seed) % 2 ? 1u << TAME : 1u << FINITE, &seed);
}

/* Counts around a limit at which strips get more rows, given directly or in memory. */
static void bits_of_many(int i)
{
	static const struct {
		enum cua_reduce_op op;
		enum cua_type type;
	} calls[] = {
		{CUA_REDUCE_SUM, CUA_F16},         {CUA_REDUCE_DOT, CUA_F32},
		{CUA_REDUCE_VARIANCE, CUA_F64},    {CUA_REDUCE_ARGMAX, CUA_I32},
		{CUA_REDUCE_SUM, CUA_COMPLEX_F64},
	};
	static const int more[] = {0, 1, -1};
	uint64_t seed, n;
	size_t size, chunk, bytes;
	char *host, *x;
	struct cua_context *ctx;
	struct cua_reduce_options o = fixed();
	struct model_call c = {calls[i].op, calls[i].type, (enum cua_type)0, 0, NULL, NULL};
	union model_result expected[3];
	uint64_t *count;

	if (test_quick() || SANITIZED) {
		printf("many: skipped in a quick or instrumented run\n");
		return;
	}
	seed = test_seed("many");
	ctx = test_context(TEST_BACKEND);
	size = cua_type_size(c.type);
	chunk = 64 * 32 * 16 / size;
	n = 2000 * chunk;
	bytes = (n + 1) * size;
	host = test_malloc(bytes);
	fill(c.type, TAME, n / 64 + 1, host, &seed);
	for (size_t at = n / 64 + 1; at < n + 1; at += n / 64 + 1)
		memcpy(host + at * size, host,
		       (n + 1 - at < n / 64 + 1 ? n + 1 - at : n / 64 + 1) * size);
	x = test_upload(ctx, host, bytes);
	c.x = c.y = host;
	for (size_t m = 0; m < COUNT(more); m++) {
		c.n = n + (uint64_t)more[m];
		expected[m] = model_reduce(&c);
		o.blocks = 0;
		ck_assert_cua(cua_context_set_threads(ctx, 3));
		expect_call(ctx, &o, &c, x, x, &expected[m], "many");
		o.blocks = 1 + (uint32_t)(test_random(&seed) % 50);
		expect_call(ctx, &o, &c, x, x, &expected[m], "many, with blocks");
	}
	for (size_t m = 0; m < COUNT(more); m++) {
		union model_result got;

		count = test_upload(ctx, &(uint64_t){n + (uint64_t)more[m]}, sizeof(*count));
		o.blocks = 0;
		o.count = count;
		ck_assert_cua(cua_reduce(ctx, &o, c.op, c.type, n + 1, x,
					 has_second(c.op) ? x : NULL, &got));
		c.n = n + (uint64_t)more[m];
		expect_bits(&got, &expected[m], &c, "a number in memory");
		test_free(ctx, count);
	}
	test_free(ctx, x);
	free(host);
	cua_context_destroy(ctx);
}

/* Random calls: parameters that must not change the bits are random. */
static void random_calls(int i)
{
	enum { ROOM = 70000 };
	uint64_t seed = test_seed("random calls");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host_x = test_malloc(ROOM * 16), *host_y = test_malloc(ROOM * 16), *x, *y, what[80];
	int rounds = test_scale(30, 100, 300);

	(void)i;
	for (int round = 0; round < rounds; round++) {
		enum cua_type type = types[test_random(&seed) % COUNT(types)];
		enum pattern pattern = (enum pattern)(test_random(&seed) % PATTERNS);
		size_t size = cua_type_size(type),
		       longest = test_random(&seed) % 4 ? 5000 : ROOM - 40;
		size_t n = test_random(&seed) % longest;

		fill(type, pattern, n + 40, host_x, &seed);
		fill(type, pattern, n + 40, host_y, &seed);
		x = test_upload(ctx, host_x, (n + 40) * size);
		y = test_upload(ctx, host_y, (n + 40) * size);
		for (int k = 0; k < 10; k++) {
			size_t sx = test_random(&seed) % 40 * size,
			       sy = test_random(&seed) % 40 * size;
			struct cua_reduce_options o = fixed();
			enum cua_reduce_op op =
				(enum cua_reduce_op)(FIRST_OP + test_random(&seed) % LAST_OP);
			struct model_call c = {op, type,        some_result(op, type, &seed),
					       n,  host_x + sx, host_y + sy};
			union model_result expected;

			if (!model_has(c.op, type))
				continue;
			o.result_type = c.result;
			expected = model_reduce(&c);
			for (int t = 0; t < 3; t++) {
				unsigned threads = 1 + (unsigned)(test_random(&seed) % 7);

				o.blocks = (uint32_t)(test_random(&seed) % (t == 2 ? 2000 : 9));
				o.finish = (enum cua_finish_mode)(test_random(&seed) % 2);
				ck_assert_cua(cua_context_set_threads(ctx, threads));
				snprintf(
					what, sizeof(what),
					"round %d, %s, shifted by %zu and %zu, %u threads, %u blocks",
					round, pattern_names[pattern], sx / size, sy / size,
					threads, o.blocks);
				expect_call(ctx, &o, &c, x + sx, y + sy, &expected, what);
			}
		}
		test_free(ctx, x);
		test_free(ctx, y);
	}
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}

static const enum cua_type all_types[] = {
	CUA_I8,   CUA_U8,  CUA_I16,  CUA_U16, CUA_I32, CUA_U32,         CUA_I64,        CUA_U64,
	CUA_U128, CUA_F16, CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F32, CUA_COMPLEX_F64};

static void result_types(int i)
{
	enum { N = 3001 };
	const union model_result untouched = {.words = {0x123456789abcdef0, 0x0fedcba987654321}};
	uint64_t seed = test_seed("result types");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host_x = test_malloc(N * 16), *host_y = test_malloc(N * 16), *x, *y;
	unsigned given = 0;

	(void)i;
	for (size_t t = 0; t < COUNT(all_types); t++) {
		enum cua_type type = all_types[t];
		int known = 0;

		for (size_t k = 0; k < COUNT(types); k++)
			known |= types[k] == type;
		memset(host_x, 0, N * 16);
		memset(host_y, 0, N * 16);
		if (known) {
			fill(type, TAME, N, host_x, &seed);
			fill(type, TAME, N, host_y, &seed);
		}
		x = test_upload(ctx, host_x, N * 16);
		y = test_upload(ctx, host_y, N * 16);
		for (int op = FIRST_OP; op <= LAST_OP; op++) {
			for (int r = 0; r <= CUA_COMPLEX_F64 + 1; r++) {
				struct model_call c = {(enum cua_reduce_op)op,
						       type,
						       (enum cua_type)r,
						       N,
						       host_x,
						       host_y};
				struct cua_reduce_options o = fixed();
				union model_result got = untouched, expected;
				size_t bytes = 77;

				o.result_type = (enum cua_type)r;
				if (known && may_give(c.op, type, o.result_type)) {
					expected = model_reduce(&c);
					expect_call(ctx, &o, &c, x, y, &expected,
						    "a type of result");
					ck_assert_cua(cua_reduce_workspace(ctx, &o, c.op, type, N,
									   &bytes));
					given++;
					continue;
				}
				ck_assert_status(cua_reduce(ctx, &o, c.op, type, N, x,
							    has_second(c.op) ? y : NULL, &got),
						 CUA_ERROR_TYPE);
				ck_assert_status(
					cua_reduce_workspace(ctx, &o, c.op, type, N, &bytes),
					CUA_ERROR_TYPE);
				ck_assert(memcmp(&got, &untouched, sizeof(got)) == 0 &&
					  bytes == 77);
			}
		}
		test_free(ctx, x);
		test_free(ctx, y);
	}
	/*
	 * integers: 2 * 14 each; floats: 2 * 15, f32 10 more, f16 and bf16 20 more; complex: 6
	 * each, and 3 more in total
	 */
	ck_assert_uint_eq(given, 4 * 28 + 4 * 30 + 10 + 2 * 20 + 2 * 6 + 3);
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}

/* ---- the caller's floating-point environment ---- */

static void set_environment(int which)
{
	static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

	fesetround(roundings[which % 4]);
#if defined(__SSE2__)
	/* the mode: subnormal operands and results are zero */
	if (which >= 4)
		_mm_setcsr(_mm_getcsr() | 0x8040);
#endif
#if defined(__GLIBC__)
	/*
	 * an invalid operation raises a signal; the driver's own arithmetic is outside the
	 * library
	 */
	if (which % 2 && TEST_BACKEND == CUA_BACKEND_CPU)
		feenableexcept(FE_INVALID | FE_OVERFLOW);
#endif
}

static unsigned environment(void)
{
	unsigned state = (unsigned)fegetround() * 64 + (unsigned)fetestexcept(FE_ALL_EXCEPT);

#if defined(__GLIBC__)
	state = state * 64 + (unsigned)fegetexcept();
#endif
#if defined(__SSE2__)
	state ^= _mm_getcsr() << 16;
#endif
	return state;
}

static void environments(int i)
{
	enum { N = 40000 };
	uint64_t seed = test_seed("environments");
	char *host_x = test_malloc(N * 16), *host_y = test_malloc(N * 16), *x, *y;
	struct cua_context *ctx = test_context(TEST_BACKEND);

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		for (int k = 0; k < 3; k++) {
			enum pattern pattern = k == 0 ? TAME : k == 1 ? TINY : ANY;

			fill(types[t], pattern, N, host_x, &seed);
			fill(types[t], pattern, N, host_y, &seed);
			x = test_upload(ctx, host_x, N * 16);
			y = test_upload(ctx, host_y, N * 16);
			for (int op = FIRST_OP; op <= LAST_OP; op++) {
				struct model_call c = {(enum cua_reduce_op)op,
						       types[t],
						       (enum cua_type)0,
						       N,
						       host_x,
						       host_y};
				union model_result expected;

				if (!model_has(c.op, c.type))
					continue;
				expected = model_reduce(&c);
				for (int which = 0; which < 8; which++) {
					struct cua_reduce_options o = fixed();
					union model_result got;
					enum cua_status status;
					unsigned before, after;
					fenv_t usual;
					char what[40];

					/* threads start with the caller's environment */
					ck_assert_cua(
						cua_context_set_threads(ctx, which % 3 ? 4 : 1));
					o.blocks = which % 3 ? 4 : 0;
					fegetenv(&usual);
					set_environment(which);
					feclearexcept(FE_ALL_EXCEPT);
					before = environment();
					status = cua_reduce(ctx, &o, c.op, c.type, N, x,
							    has_second(c.op) ? y : NULL, &got);
					after = environment();
					fesetenv(&usual);
					ck_assert_cua(status);
					snprintf(what, sizeof(what), "%s, environment %d",
						 pattern_names[pattern], which);
					expect_bits(&got, &expected, &c, what);
					/*
					 * the driver's effect on the environment is outside the
					 * library
					 */
					if (TEST_BACKEND == CUA_BACKEND_CPU)
						ck_assert_msg(before == after, "%s: %x, not %x",
							      what, after, before);
				}
			}
			test_free(ctx, x);
			test_free(ctx, y);
		}
	}
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}

static const struct fixed_test tests[] = {
	{bits_of, COUNT(types)}, {bits_of_accumulators, COUNT(types)},
	{bits_of_many, 5},       {random_calls, 1},
	{result_types, 1},       {environments, 1},
};

int main(void)
{
	return fixed_run("fixed", tests, COUNT(tests));
}
