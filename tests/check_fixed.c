/* SPDX-License-Identifier: MIT */
/*
 * Reductions in a fixed order, and the rules of every operation. The model of tree_model.h gives
 * the bits that CPU and GPU must both return. Sums in long double and in 128-bit integers give the
 * true values.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif
#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

#include "tree_model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum cua_type types[] = {CUA_I32,  CUA_U32, CUA_I64, CUA_U64,         CUA_F16,
				      CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F32, CUA_COMPLEX_F64};
static const enum cua_type all_types[] = {
	CUA_I8,   CUA_U8,  CUA_I16,  CUA_U16, CUA_I32, CUA_U32,         CUA_I64,        CUA_U64,
	CUA_U128, CUA_F16, CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F32, CUA_COMPLEX_F64};
enum { FIRST_OP = CUA_REDUCE_SUM, LAST_OP = CUA_REDUCE_DOT_CONJ };

static int has_second(enum cua_reduce_op op)
{
	return op == CUA_REDUCE_DOT || op == CUA_REDUCE_DOT_CONJ;
}

static struct cua_reduce_options fixed(void)
{
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;

	o.mode = CUA_REDUCE_FIXED;
	return o;
}

/* ---- elements ---- */

enum pattern {
	TAME,     /* of either sign, over 20 binary orders */
	FINITE,   /* any finite number; f64 only with squares in range */
	ANY,      /* any bits at all */
	TINY,     /* subnormal numbers, and zeros of both signs; small integers */
	NEAR_ONE, /* products stay in range; integers near the ends of their range */
	FEW,      /* few values, so that many are equal; rarely infinities and NaN */
	PATTERNS
};
static const char *const pattern_names[] = {"tame", "finite", "any", "tiny", "near one", "few"};

/* A float's bits, for a size and a number of fraction bits. */
static uint64_t random_float(unsigned bits, unsigned digits, enum pattern pattern, uint64_t *seed)
{
	uint64_t r = test_random(seed), more = test_random(seed),
		 fraction = ((uint64_t)1 << digits) - 1;
	uint64_t sign = (uint64_t)1 << (bits - 1), top = (sign >> digits) - 1, middle = top / 2,
		 exponent;
	uint64_t low = fraction;

	switch (pattern) {
	case TAME:
		exponent = digits == 10 ? middle - 5 + more % 10 : middle - 10 + more % 20;
		break;
	case FINITE: exponent = digits == 52 ? middle - 499 + more % 998 : more % top; break;
	case TINY:
		exponent = 0;
		if (more % 4 == 0)
			low = 0;
		break;
	case NEAR_ONE:
		/* slightly above 1, or slightly below 1 with leading fraction bits of 1 */
		exponent = middle - more % 2;
		low = fraction >> 4;
		if (exponent < middle)
			r |= fraction - low;
		fraction = exponent < middle ? fraction : low;
		return (r & sign) | exponent << digits | (r & fraction);
	case FEW:
		if (more % 40000 == 0)
			return top << digits | (r & sign);
		if (more % 40000 == 1)
			return top << digits | (r & (fraction | sign));
		return r % 7 < 2 ? r & sign : (middle + r % 3) << digits | (r & sign);
	default: return r;
	}
	return (r & sign) | exponent << digits | (r & low);
}

static uint64_t random_bits(enum cua_type type, enum pattern pattern, uint64_t *seed)
{
	unsigned bits = 8 * (unsigned)cua_type_size(type);
	uint64_t r;

	switch (type) {
	case CUA_F16: return random_float(16, 10, pattern, seed);
	case CUA_BF16: return random_float(16, 7, pattern, seed);
	case CUA_F32: return random_float(32, 23, pattern, seed);
	case CUA_F64: return random_float(64, 52, pattern, seed);
	default: break;
	}
	r = test_random(seed);
	switch (pattern) {
	case TAME: return r % 2001 - (model_is_signed(type) ? 1000 : 0);
	case TINY: return r % 3;
	case NEAR_ONE: return ((uint64_t)1 << (bits - 1)) - 3 + r % 6;
	case FEW: return r % 4 ? ~(uint64_t)0 - r % 2 : (uint64_t)1 << (bits - 1);
	default: return r;
	}
}

static void fill(enum cua_type type, enum pattern pattern, size_t n, void *p, uint64_t *seed)
{
	if (model_is_complex(type)) {
		type = type == CUA_COMPLEX_F32 ? CUA_F32 : CUA_F64;
		n *= 2;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = random_bits(type, pattern, seed);

		switch (cua_type_size(type)) {
		case 2: ((uint16_t *)p)[i] = (uint16_t)bits; break;
		case 4: ((uint32_t *)p)[i] = (uint32_t)bits; break;
		default: ((uint64_t *)p)[i] = bits; break;
		}
	}
}

/* ---- calls ---- */

/* Whether an operation and type may have this result type. */
static int may_give(enum cua_reduce_op op, enum cua_type type, enum cua_type result)
{
	int is_float = !model_is_integer(type) && !model_is_complex(type);

	if (!model_has(op, type))
		return 0;
	if (!result || result == model_default_result(op, type))
		return 1;
	if (op == CUA_REDUCE_MIN || op == CUA_REDUCE_MAX || op == CUA_REDUCE_ARGMIN ||
	    op == CUA_REDUCE_ARGMAX || op == CUA_REDUCE_COUNT)
		return 0;
	if (model_is_complex(type))
		return type == CUA_COMPLEX_F32 && result == CUA_COMPLEX_F64;
	return is_float && ((type != CUA_F64 && result == CUA_F64) ||
			    ((type == CUA_F16 || type == CUA_BF16) && result == CUA_F32));
}

/* Often the widest result, because a narrow result hides errors in the lower digits. */
static enum cua_type some_result(enum cua_reduce_op op, enum cua_type type, uint64_t *seed)
{
	enum cua_type widest = model_is_complex(type) ? CUA_COMPLEX_F64 : CUA_F64;

	return test_random(seed) % 2 && may_give(op, type, widest) ? widest : (enum cua_type)0;
}

static void expect_bits(const union model_result *got, const union model_result *expected,
			const struct model_call *c, const char *what)
{
	enum cua_type result = c->result ? c->result : model_default_result(c->op, c->type);

	if (memcmp(got, expected, cua_type_size(result)))
		ck_abort_msg("%s: op %d of %llu %s to %s: %016llx %016llx, not %016llx %016llx",
			     what, (int)c->op, (unsigned long long)c->n, cua_type_name(c->type),
			     cua_type_name(result), (unsigned long long)got->words[0],
			     (unsigned long long)got->words[1],
			     (unsigned long long)expected->words[0],
			     (unsigned long long)expected->words[1]);
}

/* Makes the call on the backend's copies of the arrays; c has the host's arrays. */
static void expect_call(struct cua_context *ctx, const struct cua_reduce_options *o,
			const struct model_call *c, const void *x, const void *y,
			const union model_result *expected, const char *what)
{
	/* as aligned as any result needs */
	union model_result got = {.words = {0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a}};
	enum cua_status status =
		cua_reduce(ctx, o, c->op, c->type, c->n, x, has_second(c->op) ? y : NULL, &got);

	if (status)
		ck_abort_msg("%s: op %d of %llu %s: %s", what, (int)c->op, (unsigned long long)c->n,
			     cua_type_name(c->type), cua_status_name(status));
	expect_bits(&got, expected, c, what);
}

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
static void bits_of_places(int i)
{
	uint64_t seed = test_seed("places");
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

/* ---- types of results ---- */

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

/* ---- the true values ---- */

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

/* ---- written rules ---- */

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

/* ---- the number of elements in memory ---- */

static void counts(int i)
{
	enum { N = 20000 };
	static const uint64_t values[] = {0, 1, 7, N - 1, N, N + 1, (uint64_t)1 << 32, UINT64_MAX};
	uint64_t seed = test_seed("counts");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host_x = test_malloc(N * 16), *host_y = test_malloc(N * 16), *x, *y;
	uint64_t *count;

	(void)i;
	count = test_alloc(ctx, sizeof(*count));
	for (size_t t = 0; t < COUNT(types); t++) {
		fill(types[t], TAME, N, host_x, &seed);
		fill(types[t], TAME, N, host_y, &seed);
		x = test_upload(ctx, host_x, N * 16);
		y = test_upload(ctx, host_y, N * 16);
		for (size_t v = 0; v < COUNT(values); v++) {
			ck_assert_cua(cua_copy(ctx, count, &values[v], sizeof(values[v])));
			ck_assert_cua(cua_context_synchronize(ctx));
			for (int op = FIRST_OP; op <= LAST_OP; op++) {
				struct model_call c = {
					(enum cua_reduce_op)op,        types[t], (enum cua_type)0,
					values[v] < N ? values[v] : N, host_x,   host_y};
				union model_result expected, got;
				struct cua_reduce_options o = fixed();

				if (!model_has(c.op, c.type))
					continue;
				expected = model_reduce(&c);
				o.count = count;
				for (int fast = 0; fast < 2; fast++) {
					o.mode = fast ? CUA_REDUCE_FAST : CUA_REDUCE_FIXED;
					o.blocks = (uint32_t)(test_random(&seed) % 5);
					ck_assert_cua(cua_reduce(ctx, &o, c.op, c.type, N, x,
								 has_second(c.op) ? y : NULL,
								 &got));
					if (!fast ||
					    (model_is_integer(c.type) && !model_is_variance(c.op)))
						expect_bits(&got, &expected, &c,
							    "a number in memory");
				}
			}
		}
		test_free(ctx, x);
		test_free(ctx, y);
	}
	/* a count of 0 without arrays */
	{
		struct cua_reduce_options o = fixed();
		uint64_t sum = 77;

		o.count = count;
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U64, 0, NULL, NULL, &sum));
		ck_assert_uint_eq(sum, 0);
	}
	test_free(ctx, count);
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}

/* With FAST's additional finishes. */
static void counts_of_finishes(int i)
{
	enum { N = 5000 };
	uint64_t seed = test_seed("counts of finishes"), host[N], *x, *count, got = 0;
	struct cua_context *ctx = test_context(TEST_BACKEND);

	(void)i;
	fill(CUA_U64, ANY, N, host, &seed);
	x = test_upload(ctx, host, sizeof(host));
	for (int finish = CUA_FINISH_AUTO; finish <= CUA_FINISH_ORDERED_LOCK; finish++) {
		uint64_t n = finish == CUA_FINISH_LOCK ? N + 1 : test_random(&seed) % N;
		struct model_call c = {CUA_REDUCE_SUM, CUA_U64, (enum cua_type)0,
				       n < N ? n : N,  host,    NULL};
		struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;

		count = test_upload(ctx, &n, sizeof(n));
		o.finish = (enum cua_finish_mode)finish;
		o.count = count;
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U64, N, x, NULL, &got));
		ck_assert_uint_eq(got, model_reduce(&c).u64);
		c.op = CUA_REDUCE_MIN;
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_MIN, CUA_U64, N, x, NULL, &got));
		ck_assert_uint_eq(got, model_reduce(&c).u64);
		test_free(ctx, count);
	}
	test_free(ctx, x);
	cua_context_destroy(ctx);
}

/* ---- arguments ---- */

static void arguments(int i)
{
	const union model_result untouched = {.words = {0x123456789abcdef0, 0x0fedcba987654321}};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	double *x = test_upload(ctx, host, sizeof(host)), *y = test_upload(ctx, host, sizeof(host));
	uint64_t *count = test_upload(ctx, &(uint64_t[]){2, 3}, 2 * sizeof(uint64_t));
	struct cua_reduce_options o = fixed();
	union model_result r = untouched;
	size_t bytes = 77;

	(void)i;
#define REFUSED(expected, op, type, n, x, y, result)                                               \
	do {                                                                                       \
		ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_##op, type, n, x, y, result),      \
				 expected);                                                        \
		ck_assert(memcmp(&r, &untouched, sizeof(r)) == 0);                                 \
	} while (0)
	REFUSED(CUA_ERROR_NULL, MEAN, CUA_F64, 4, NULL, NULL, &r);
	REFUSED(CUA_ERROR_NULL, DOT_CONJ, CUA_F64, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_NULL, NORM2, CUA_F64, 4, x, NULL, NULL);
	REFUSED(CUA_ERROR_VALUE, SUM_SQUARES, CUA_F64, 4, x, y, &r);
	REFUSED(CUA_ERROR_VALUE, ARGMIN, CUA_F64, 4, x, x, &r);
	REFUSED(CUA_ERROR_SIZE, SUM, CUA_COMPLEX_F64, SIZE_MAX / 16, x, NULL, &r);
	REFUSED(CUA_ERROR_SIZE, SUM, CUA_F16, SIZE_MAX / 2, x, NULL, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_F16, 4, (char *)x + 1, NULL, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_COMPLEX_F64, 2, (char *)x + 8, NULL, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, DOT, CUA_COMPLEX_F32, 2, x, (char *)y + 4, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_F16, 4, x, NULL, (char *)&r + 1);
	REFUSED(CUA_ERROR_ALIGNMENT, ARGMAX, CUA_F16, 4, x, NULL, (char *)&r + 4);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_COMPLEX_F64, 2, x, NULL, (char *)&r + 8);
	REFUSED(CUA_ERROR_OVERLAP, SUM, CUA_COMPLEX_F64, 4, x, NULL, x + 6);
	REFUSED(CUA_ERROR_OVERLAP, DOT_CONJ, CUA_F64, 4, x, y, y + 3);
	REFUSED(CUA_ERROR_OVERLAP, COUNT, CUA_F16, 5, x, NULL, x + 1);
	o.count = (const uint64_t *)(const void *)((const char *)count + 4);
	REFUSED(CUA_ERROR_ALIGNMENT, SUM, CUA_F64, 4, x, NULL, &r);
	o.count = count;
	REFUSED(CUA_ERROR_OVERLAP, SUM, CUA_F64, 4, x, NULL, count);
	REFUSED(CUA_ERROR_OVERLAP, SUM, CUA_F32, 4, x, NULL, (char *)count + 4);
	ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, count + 1));
	test_download(ctx, host, count, 16);
	ck_assert(host[1] == 3);
	/* a struct_size before mode, result_type and count, as no release had */
	o.struct_size = offsetof(struct cua_reduce_options, mode);
	REFUSED(CUA_ERROR_VALUE, SUM, CUA_F64, 4, x, NULL, &r);
	ck_assert_status(cua_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, &bytes),
			 CUA_ERROR_VALUE);
	o.struct_size = sizeof(o);
	ck_assert_cua(cua_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, &bytes));
	ck_assert_uint_ne(bytes, 77);
	o = fixed();
	ck_assert_status(cua_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_reduce_workspace(NULL, &o, CUA_REDUCE_SUM, CUA_F64, 4, &bytes),
			 CUA_ERROR_NULL);
#if TEST_CUDA
	{
		/* a count in memory that the device cannot access */
		struct cua_context *cpu = test_context(CUA_BACKEND_CPU);

		o.count = count;
		ck_assert_status(cua_reduce(cpu, &o, CUA_REDUCE_SUM, CUA_F64, 4, host, NULL, &r),
				 CUA_ERROR_MEMORY_KIND);
		cua_context_destroy(cpu);
	}
#endif
	test_free(ctx, x);
	test_free(ctx, y);
	test_free(ctx, count);
	cua_context_destroy(ctx);
}

/* The finishes that each mode accepts. */
static void modes(int i)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char host[64] = {0};
	void *x = test_upload(ctx, host, sizeof(host));

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		for (int op = FIRST_OP; op <= LAST_OP; op++) {
			for (int finish = CUA_FINISH_AUTO; finish <= CUA_FINISH_ORDERED_LOCK;
			     finish++) {
				for (int k = 0; k < 4; k++) {
					enum cua_type type = types[t];
					int half = type == CUA_F16 || type == CUA_BF16;
					int plain = op <= CUA_REDUCE_DOT && !half &&
						    !model_is_complex(type);
					union model_result r = {.words = {1, 1}};
					struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
					enum cua_status expected = CUA_OK;
					size_t bytes;

					if (!model_has((enum cua_reduce_op)op, type))
						continue;
					/* AUTO, FAST, FIXED, and FAST with a wider result */
					o.mode = k == 3 ? CUA_REDUCE_FAST : (enum cua_reduce_mode)k;
					o.finish = (enum cua_finish_mode)finish;
					if (k == 3) {
						if (type != CUA_F32 ||
						    (op != CUA_REDUCE_SUM && op != CUA_REDUCE_DOT))
							continue;
						o.result_type = CUA_F64;
					}
					if (finish > CUA_FINISH_LAST_BLOCK && (k >= 2 || !plain))
						expected = CUA_ERROR_UNSUPPORTED;
					ck_assert_status(
						cua_reduce(
							ctx, &o, (enum cua_reduce_op)op, type, 2, x,
							has_second((enum cua_reduce_op)op) ? x
											   : NULL,
							&r),
						expected);
					ck_assert((r.words[0] == 1 && r.words[1] == 1) ==
						  (expected != CUA_OK));
					ck_assert_status(cua_reduce_workspace(
								 ctx, &o, (enum cua_reduce_op)op,
								 type, 2, &bytes),
							 expected);
				}
			}
		}
	}
	for (int mode = -1; mode < 6; mode += mode == -1 ? 5 : 1) {
		struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
		double r = 77;

		o.mode = (enum cua_reduce_mode)mode;
		ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 2, x, NULL, &r),
				 CUA_ERROR_VALUE);
		ck_assert(r == 77);
	}
	test_free(ctx, x);
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

/* ---- workspace, results in the backend's memory, graphs ---- */

static void workspace(int i)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_reduce_options o = fixed();
	uint64_t count;

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		for (int op = FIRST_OP; op <= LAST_OP; op++) {
			size_t last = 0, bytes, counted,
			       chunk = 64 * 32 * 16 / cua_type_size(types[t]);

			if (!model_has((enum cua_reduce_op)op, types[t]))
				continue;
			/*
			 * at most 2048 partial results of at most 24 bytes, for any number of
			 * elements
			 */
			for (size_t n = 0; n < SIZE_MAX / 64; n = n * 5 + 3) {
				o.count = NULL;
				ck_assert_cua(cua_reduce_workspace(ctx, &o, (enum cua_reduce_op)op,
								   types[t], n, &bytes));
				ck_assert_uint_le(bytes, 2048 * 24 + 1024);
				/* a sum of floats needs a partial result for each chunk */
				if (n <= 2048 * chunk && op == CUA_REDUCE_SUM &&
				    types[t] == CUA_F32)
					ck_assert_uint_ge(bytes, (n / chunk + 1) * 8);
				/* a smaller count may need more bytes */
				o.count = &count;
				ck_assert_cua(cua_reduce_workspace(ctx, &o, (enum cua_reduce_op)op,
								   types[t], n, &counted));
				ck_assert_uint_ge(counted, bytes);
				ck_assert_uint_ge(counted, last);
				last = counted;
			}
		}
	}
	cua_context_destroy(ctx);
}

/* Adjacent results in the backend's memory, of every operation and type. */
static void results_in_place(int i)
{
	enum { N = 9001 };
	uint64_t seed = test_seed("results in place");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host = test_malloc(N * 16), *x;
	union model_result *results, got[LAST_OP + 2];

	(void)i;
	for (size_t t = 0; t < COUNT(types); t++) {
		struct model_call c = {CUA_REDUCE_SUM, types[t], (enum cua_type)0, N, host, host};
		struct cua_reduce_options o = fixed();

		fill(types[t], TAME, N, host, &seed);
		x = test_upload(ctx, host, N * 16);
		memset(got, 0x5a, sizeof(got));
		results = test_upload(ctx, got, sizeof(got));
		for (int op = FIRST_OP; op <= LAST_OP; op++)
			if (model_has((enum cua_reduce_op)op, types[t]))
				ck_assert_cua(
					cua_reduce(ctx, &o, (enum cua_reduce_op)op, types[t], N, x,
						   has_second((enum cua_reduce_op)op) ? x : NULL,
						   &results[op]));
		test_download(ctx, got, results, sizeof(got));
		for (int op = 0; op <= LAST_OP + 1; op++) {
			size_t written = 0;
			union model_result expected;

			c.op = (enum cua_reduce_op)op;
			if (op >= FIRST_OP && op <= LAST_OP && model_has(c.op, c.type)) {
				expected = model_reduce(&c);
				expect_bits(&got[op], &expected, &c, "in the backend's memory");
				written = cua_type_size(model_default_result(c.op, c.type));
			}
			for (size_t k = written; k < sizeof(got[op]); k++)
				ck_assert_uint_eq(((unsigned char *)&got[op])[k], 0x5a);
		}
		test_free(ctx, x);
		test_free(ctx, results);
	}
	free(host);
	cua_context_destroy(ctx);
}

#if TEST_CUDA
#define ck_assert_cuda(expression)                                                                 \
	do {                                                                                       \
		cudaError_t test__error = (expression);                                            \
		ck_assert_msg(test__error == cudaSuccess, "%s: %s", #expression,                   \
			      cudaGetErrorString(test__error));                                    \
	} while (0)

/* A graph of calls, replayed with other elements and another count. */
static void graphs(int i)
{
	enum { N = 300007 };
	static const struct {
		enum cua_reduce_op op;
		enum cua_type type;
	} calls[] = {
		{CUA_REDUCE_SUM, CUA_F32},      {CUA_REDUCE_DOT_CONJ, CUA_COMPLEX_F32},
		{CUA_REDUCE_MEAN, CUA_I64},     {CUA_REDUCE_ARGMIN, CUA_F16},
		{CUA_REDUCE_VARIANCE, CUA_F32}, {CUA_REDUCE_NORM2, CUA_F64},
		{CUA_REDUCE_PRODUCT, CUA_U32},
	};
	uint64_t seed = test_seed("graphs"), n = N, *count;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char *host = test_malloc(N * 8), *x;
	union model_result *results, got[COUNT(calls)], here;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t nodes = 0, bytes;
	struct cua_reduce_options o = fixed();

	(void)i;
	fill(CUA_F32, TAME, 2 * N, host, &seed);
	x = test_upload(ctx, host, N * 8);
	count = test_upload(ctx, &n, sizeof(n));
	memset(got, 0, sizeof(got));
	results = test_upload(ctx, got, sizeof(got));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)stream));
	o.count = count;
	for (size_t k = 0; k < COUNT(calls); k++) {
		ck_assert_cua(cua_reduce_workspace(ctx, &o, calls[k].op, calls[k].type, N, &bytes));
		ck_assert_cua(cua_context_reserve(ctx, bytes));
	}
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (size_t k = 0; k < COUNT(calls); k++)
		ck_assert_cua(cua_reduce(ctx, &o, calls[k].op, calls[k].type, N, x,
					 has_second(calls[k].op) ? x : NULL, &results[k]));
	/* a result in ordinary memory would have to wait */
	ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, x, NULL, &here),
			 CUA_ERROR_CAPTURE);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	/* a single kernel for each call */
	ck_assert_cuda(cudaGraphGetNodes(graph, NULL, &nodes));
	ck_assert_uint_eq(nodes, COUNT(calls));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 4; round++) {
		fill(CUA_F32, TAME, 2 * N, host, &seed);
		n = round ? test_random(&seed) % N : N;
		ck_assert_cua(cua_copy(ctx, x, host, N * 8));
		ck_assert_cua(cua_copy(ctx, count, &n, sizeof(n)));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		test_download(ctx, got, results, sizeof(got));
		for (size_t k = 0; k < COUNT(calls); k++) {
			struct model_call c = {calls[k].op, calls[k].type, (enum cua_type)0,
					       n,           host,          host};
			union model_result expected = model_reduce(&c);

			expect_bits(&got[k], &expected, &c, "a graph");
		}
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cua(cua_context_set_stream(ctx, NULL));
	ck_assert_cuda(cudaStreamDestroy(stream));
	test_free(ctx, x);
	test_free(ctx, count);
	test_free(ctx, results);
	free(host);
	cua_context_destroy(ctx);
}
#endif

/* ---- the suite ---- */

static const struct {
	void (*run)(int i);
	int times;
} tests[] = {
	{bits_of, COUNT(types)},
	{bits_of_places, COUNT(types)},
	{bits_of_many, 5},
	{random_calls, 1},
	{result_types, 1},
	{accurate_sums, 3},
	{fast_specials, 1},
	{accurate_variances, 1},
	{accurate_means, 1},
	{accurate_norms, 1},
	{norm_of_many, 1},
	{accurate_products, 1},
	{accurate_complex, 1},
	{float_rules, 1},
	{integer_rules, 1},
	{nothing, 1},
	{counts, 1},
	{counts_of_finishes, 1},
	{arguments, 1},
	{modes, 1},
	{environments, 1},
	{workspace, 1},
	{results_in_place, 1},
#if TEST_CUDA
	{graphs, 1},
#endif
};

/*
 * On a GPU a new process costs more than most tests, so each test function there runs a whole list.
 */
START_TEST(test_entry)
{
	for (int i = 0; i < tests[_i].times; i++)
		tests[_i].run(i);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("fixed");
	TCase *tc = tcase_create("fixed");

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, test_entry, 0, (int)COUNT(tests));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
