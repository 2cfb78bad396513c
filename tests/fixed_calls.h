/* SPDX-License-Identifier: MIT */
/*
 * Elements and calls for the suites of reductions in a fixed order. tree_model.h has the model of
 * the results.
 */
#ifndef CUATOMIC_TESTS_FIXED_CALLS_H
#define CUATOMIC_TESTS_FIXED_CALLS_H

#include "common.h"
#include "tree_model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum cua_type types[] = {CUA_I32,  CUA_U32, CUA_I64, CUA_U64,         CUA_F16,
				      CUA_BF16, CUA_F32, CUA_F64, CUA_COMPLEX_F32, CUA_COMPLEX_F64};
enum { FIRST_OP = CUA_REDUCE_SUM, LAST_OP = CUA_REDUCE_DOT_CONJ };

static inline int has_second(enum cua_reduce_op op)
{
	return op == CUA_REDUCE_DOT || op == CUA_REDUCE_DOT_CONJ;
}

static inline struct cua_reduce_options fixed(void)
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
static inline uint64_t random_float(unsigned bits, unsigned digits, enum pattern pattern,
				    uint64_t *seed)
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

static inline uint64_t random_bits(enum cua_type type, enum pattern pattern, uint64_t *seed)
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

static inline void fill(enum cua_type type, enum pattern pattern, size_t n, void *p, uint64_t *seed)
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
static inline int may_give(enum cua_reduce_op op, enum cua_type type, enum cua_type result)
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
static inline enum cua_type some_result(enum cua_reduce_op op, enum cua_type type, uint64_t *seed)
{
	enum cua_type widest = model_is_complex(type) ? CUA_COMPLEX_F64 : CUA_F64;

	return test_random(seed) % 2 && may_give(op, type, widest) ? widest : (enum cua_type)0;
}

static inline void expect_bits(const union model_result *got, const union model_result *expected,
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
static inline void expect_call(struct cua_context *ctx, const struct cua_reduce_options *o,
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

/* ---- the suite ---- */

struct fixed_test {
	void (*run)(int i);
	int times;
};

static const struct fixed_test *fixed_tests;

/*
 * On a GPU a new process costs more than most tests, so each test function there runs a whole list.
 */
START_TEST(fixed_entry)
{
	for (int i = 0; i < fixed_tests[_i].times; i++)
		fixed_tests[_i].run(i);
}
END_TEST

/* Runs n tests. Returns the exit status of main. */
static inline int fixed_run(const char *name, const struct fixed_test *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);

	fixed_tests = tests;
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, fixed_entry, 0, (int)n);
	suite_add_tcase(suite, tc);
	return test_run(suite, TEST_BACKEND);
}

#endif /* CUATOMIC_TESTS_FIXED_CALLS_H */
