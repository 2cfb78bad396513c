/* SPDX-License-Identifier: MIT */
/*
 * The expected sum of floats. It shares no code with the library. The sum is a number of MPFR, or
 * the long binary number of exact_model.h if MPFR is missing. The file compiles as C and C++.
 */
#ifndef CUATOMIC_TESTS_SUM_MODEL_H
#define CUATOMIC_TESTS_SUM_MODEL_H

#include <math.h>

#include "common.h"
#include "exact_model.h"
#if TEST_MPFR
#include "mpfr_round.h"
#endif

/* ---- types ---- */

static inline const struct format *format_of(enum cua_type type)
{
	for (int i = 0; i < FORMATS; i++)
		if (formats[i].type == type)
			return &formats[i];
	return NULL;
}

static inline uint64_t load_bits(enum cua_type type, const void *array, size_t i)
{
	uint64_t bits = 0;
	size_t size = cua_type_size(type);

	memcpy(&bits, (const char *)array + i * size, size);
	return bits;
}

static inline void store_bits(enum cua_type type, void *array, size_t i, uint64_t bits)
{
	size_t size = cua_type_size(type);

	memcpy((char *)array + i * size, &bits, size);
}

/* Every float is a double. */
static inline double float_of(const struct format *f, uint64_t bits)
{
	uint64_t mantissa;
	int negative, power;
	double v;

	if (f->type == CUA_F64) {
		memcpy(&v, &bits, sizeof(v));
		return v;
	}
	if (model_is_nan(f, bits))
		return (double)NAN;
	if (!model_split(f, bits, &negative, &mantissa, &power))
		return negative ? -HUGE_VAL : HUGE_VAL;
	return ldexp(negative ? -(double)mantissa : (double)mantissa, power);
}

/* The bits of a double, rounded to the format. */
static inline uint64_t bits_of(const struct format *f, double v)
{
	const int bias = (1 << (f->exponent - 1)) - 1, least = 1 - bias - f->fraction;
	uint64_t minus = signbit(v) ? format_minus(f) : 0, bits;
	int power;

	if (isnan(v))
		return format_nan(f);
	if (f->type == CUA_F64) {
		memcpy(&bits, &v, sizeof(bits));
		return bits;
	}
	v = fabs(v);
	if (v == 0 || isinf(v))
		return minus | (v == 0 ? 0 : format_infinity(f));
	(void)frexp(v, &power);
	power -= f->fraction + 1;
	if (power < least)
		power = least;
	/* the leading bit adds 1 to the exponent */
	bits = (uint64_t)nearbyint(ldexp(v, -power)) + ((uint64_t)(power - least) << f->fraction);
	return minus | (bits < format_infinity(f) ? bits : format_infinity(f));
}

/* ---- exact sums ---- */

#if TEST_MPFR
/* More bits than a sum of 2^64 doubles needs. */
#define SUM_MPFR_BITS 2240

static mpfr_t model_sum;

static inline void sum_begin(void)
{
	static int made;

	if (!made)
		mpfr_init2(model_sum, SUM_MPFR_BITS);
	made = 1;
	mpfr_set_zero(model_sum, 1);
}

static inline void sum_take(const struct format *f, uint64_t bits)
{
	EXPECT(mpfr_add_d(model_sum, model_sum, float_of(f, bits), MPFR_RNDN) == 0,
	       "the model of a sum has too few bits");
}

static inline int sum_is_zero(void)
{
	return mpfr_zero_p(model_sum);
}

static inline uint64_t sum_round(const struct format *f)
{
	if (mpfr_zero_p(model_sum))
		return 0;
	if (mpfr_nan_p(model_sum))
		return format_nan(f);
	return bits_of(f, mpfr_rounded(f, model_sum));
}
#else
static struct model model_sum;

static inline void sum_begin(void)
{
	model_init(&model_sum);
}

static inline void sum_take(const struct format *f, uint64_t bits)
{
	model_add(&model_sum, f, bits);
}

static inline int sum_is_zero(void)
{
	static const struct model zero = {{0}, 0, 0, 0};

	return memcmp(&model_sum, &zero, sizeof(zero)) == 0;
}

static inline uint64_t sum_round(const struct format *f)
{
	return model_round(&model_sum, f);
}
#endif

#endif /* CUATOMIC_TESTS_SUM_MODEL_H */
