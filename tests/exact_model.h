/* SPDX-License-Identifier: MIT */
/*
 * The expected value of an exact sum, independent of exact.h. The sum is a long binary number.
 * Elements are added bit by bit. The rounding searches for the nearest number of the result's
 * type.
 */
#ifndef CUATOMIC_TESTS_EXACT_MODEL_H
#define CUATOMIC_TESTS_EXACT_MODEL_H

#include <stdint.h>
#include <string.h>

#include <cuatomic/types.h>

/* Bit 0 has the weight 2^-MODEL_POINT. */
#define MODEL_POINT 2200
#define MODEL_WORDS 138

struct model {
	uint32_t word[MODEL_WORDS]; /* two's complement */
	int nan, infinite, minus_infinite;
};

struct format {
	enum cua_type type;
	const char *name;
	int size, fraction, exponent;
};

static const struct format formats[] = {
	{CUA_F16, "f16", 2, 10, 5},
	{CUA_BF16, "bf16", 2, 7, 8},
	{CUA_F32, "f32", 4, 23, 8},
	{CUA_F64, "f64", 8, 52, 11},
};
#define FORMATS 4

static inline uint64_t format_infinity(const struct format *f)
{
	return (((uint64_t)1 << f->exponent) - 1) << f->fraction;
}

static inline uint64_t format_minus(const struct format *f)
{
	return (uint64_t)1 << (f->fraction + f->exponent);
}

static inline uint64_t format_nan(const struct format *f)
{
	return format_infinity(f) | (uint64_t)1 << (f->fraction - 1);
}

/* Arrays of elements as bits. */
static inline uint64_t format_load(const struct format *f, const void *array, size_t i)
{
	uint64_t bits = 0;

	memcpy(&bits, (const char *)array + i * (size_t)f->size, (size_t)f->size);
	return bits;
}

static inline void format_store(const struct format *f, void *array, size_t i, uint64_t bits)
{
	memcpy((char *)array + i * (size_t)f->size, &bits, (size_t)f->size);
}

/* ---- the long number ---- */

static inline void model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
}

/* Adds or subtracts 2^(at - MODEL_POINT). */
static inline void model_bit(struct model *m, int at, int negative)
{
	for (int i = at / 32; i < MODEL_WORDS; i++) {
		uint32_t one = i == at / 32 ? (uint32_t)1 << at % 32 : 1, before = m->word[i];

		m->word[i] = negative ? before - one : before + one;
		if (negative ? before >= one : m->word[i] >= one)
			return;
	}
}

/*
 * Splits a number. Returns 0 for infinities and NaN; their sign, mantissa and position are not set.
 */
static inline int model_split(const struct format *f, uint64_t bits, int *negative,
			      uint64_t *mantissa, int *power)
{
	uint64_t size = bits & (format_minus(f) - 1);
	int e = (int)(size >> f->fraction);

	*negative = (bits & format_minus(f)) != 0;
	*mantissa = size & (((uint64_t)1 << f->fraction) - 1);
	if (e == 0)
		e = 1;
	else
		*mantissa += (uint64_t)1 << f->fraction;
	*power = e - ((1 << (f->exponent - 1)) - 1) - f->fraction;
	return size < format_infinity(f);
}

static inline int model_is_nan(const struct format *f, uint64_t bits)
{
	return (bits & (format_minus(f) - 1)) > format_infinity(f);
}

static inline void model_special(struct model *m, int negative)
{
	if (negative)
		m->minus_infinite = 1;
	else
		m->infinite = 1;
}

static inline void model_add(struct model *m, const struct format *f, uint64_t bits)
{
	int negative, power;
	uint64_t mantissa;

	if (model_is_nan(f, bits)) {
		m->nan = 1;
	} else if (!model_split(f, bits, &negative, &mantissa, &power)) {
		model_special(m, negative);
	} else {
		for (int i = 0; i < 53; i++)
			if (mantissa >> i & 1)
				model_bit(m, power + i + MODEL_POINT, negative);
	}
}

static inline void model_add_product(struct model *m, const struct format *f, uint64_t x,
				     uint64_t y)
{
	int x_negative, y_negative, x_power, y_power, x_finite, y_finite;
	uint64_t a, b;

	if (model_is_nan(f, x) || model_is_nan(f, y)) {
		m->nan = 1;
		return;
	}
	x_finite = model_split(f, x, &x_negative, &a, &x_power);
	y_finite = model_split(f, y, &y_negative, &b, &y_power);
	if (!x_finite || !y_finite) {
		if ((x_finite && a == 0) || (y_finite && b == 0))
			m->nan = 1;
		else
			model_special(m, x_negative != y_negative);
		return;
	}
	for (int i = 0; i < 53; i++)
		for (int j = 0; a >> i & 1 && j < 53; j++)
			if (b >> j & 1)
				model_bit(m, x_power + y_power + i + j + MODEL_POINT,
					  x_negative != y_negative);
}

/* Compares 2 a with b + c; all are positive. */
static inline int model_compare(const struct model *a, const struct model *b, const struct model *c)
{
	for (int i = MODEL_WORDS - 1, borrowed = 0; i >= 0; i--) {
		/* the word above owes at most a few units */
		int64_t d = 2 * (int64_t)a->word[i] - (int64_t)b->word[i] - (int64_t)c->word[i] +
			    (int64_t)borrowed * ((int64_t)1 << 32);

		if (d > 2 || d < -2)
			return d < 0 ? -1 : 1;
		borrowed = (int)d;
		if (i == 0)
			return borrowed < 0 ? -1 : borrowed > 0;
	}
	return 0;
}

/* A positive number of the format; infinity stands for the successor of the largest number. */
static inline struct model model_of(const struct format *f, uint64_t bits)
{
	struct model m;
	uint64_t mantissa;
	int negative, power;

	model_init(&m);
	(void)model_split(f, bits, &negative, &mantissa, &power);
	for (int i = 0; i < 53; i++)
		if (mantissa >> i & 1)
			model_bit(&m, power + i + MODEL_POINT, 0);
	return m;
}

/* The bits of the sum in the format: to nearest, ties to even. */
static inline uint64_t model_round(const struct model *sum, const struct format *f)
{
	struct model m = *sum, below, above;
	uint64_t lo = 0, hi = format_infinity(f), minus = 0;
	int compared;

	if (m.nan || (m.infinite && m.minus_infinite))
		return format_nan(f);
	if (m.infinite || m.minus_infinite)
		return m.infinite ? format_infinity(f) : format_minus(f) | format_infinity(f);
	if (m.word[MODEL_WORDS - 1] >> 31) {
		uint64_t carry = 1;

		minus = format_minus(f);
		for (int i = 0; i < MODEL_WORDS; i++) {
			carry += (uint32_t)~m.word[i];
			m.word[i] = (uint32_t)carry;
			carry >>= 32;
		}
	}
	below = model_of(f, 0);
	if (!minus && !memcmp(m.word, below.word, sizeof(m.word)))
		return 0;
	above = model_of(f, hi);
	if (model_compare(&m, &above, &above) >= 0)
		return minus | hi;
	/* lo <= sum < hi */
	while (hi - lo > 1) {
		uint64_t middle = lo + (hi - lo) / 2;

		below = model_of(f, middle);
		if (model_compare(&m, &below, &below) >= 0)
			lo = middle;
		else
			hi = middle;
	}
	below = model_of(f, lo);
	above = model_of(f, hi);
	compared = model_compare(&m, &below, &above);
	return minus | (compared < 0 || (compared == 0 && lo % 2 == 0) ? lo : hi);
}

#endif /* CUATOMIC_TESTS_EXACT_MODEL_H */
