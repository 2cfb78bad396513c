/* SPDX-License-Identifier: MIT */
/*
 * The serial model of histograms. It shares nothing with the library: wide integers, and elements
 * in sequence.
 */
#ifndef CUATOMIC_TESTS_HISTOGRAM_MODEL_H
#define CUATOMIC_TESTS_HISTOGRAM_MODEL_H

#include "common.h"

#include <float.h>
#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNUSED __attribute__((unused))

__extension__ typedef __int128 wide;

/* Reasons instead of a bin. */
#define MODEL_BELOW (SIZE_MAX - 3)
#define MODEL_ABOVE (SIZE_MAX - 2)
#define MODEL_NAN (SIZE_MAX - 1)

/* Limits in the form for cua_histogram_even. */
union limit {
	int64_t i;
	uint64_t u;
	double f;
};

enum model_rule { MODEL_BYTES, MODEL_LETTERS, MODEL_EVEN, MODEL_EDGES };

/* A call, with its elements, edges and weights in host memory. */
struct model_call {
	enum model_rule rule;
	enum cua_type type;
	struct cua_histogram_options o;
	size_t n;
	const void *x, *edges, *weights;
	size_t bins;
	union limit lower, upper;
};

static const enum cua_type model_types[] = {CUA_I8,  CUA_U8,  CUA_I16, CUA_U16,  CUA_I32, CUA_U32,
					    CUA_I64, CUA_U64, CUA_F16, CUA_BF16, CUA_F32, CUA_F64};

/* Calls that the GPU does not support are left out there. */
static UNUSED int left_out(enum cua_status status)
{
#if TEST_CUDA
	return status == CUA_ERROR_UNSUPPORTED;
#else
	(void)status;
	return 0;
#endif
}

static UNUSED int model_is_float(enum cua_type type)
{
	return type == CUA_F16 || type == CUA_BF16 || type == CUA_F32 || type == CUA_F64;
}

static UNUSED double model_half(unsigned bits, int fraction_bits, int exponent_bits)
{
	int all = (1 << exponent_bits) - 1, exponent = (int)(bits >> fraction_bits) & all;
	int fraction = (int)bits & ((1 << fraction_bits) - 1), bias = all / 2 + fraction_bits;
	double v = exponent == all ? (fraction ? (double)NAN : HUGE_VAL)
		   : exponent      ? ldexp(fraction + (1 << fraction_bits), exponent - bias)
				   : ldexp(fraction, 1 - bias);

	return bits >> 15 & 1 ? -v : v;
}

static UNUSED double model_float_at(enum cua_type type, const void *array, size_t i)
{
	switch (type) {
	case CUA_F16: return model_half(((const struct cua_f16 *)array)[i].bits, 10, 5);
	case CUA_BF16: return model_half(((const struct cua_bf16 *)array)[i].bits, 7, 8);
	case CUA_F32: return (double)((const float *)array)[i];
	default: return ((const double *)array)[i];
	}
}

static UNUSED wide model_integer_at(enum cua_type type, const void *array, size_t i)
{
	switch (type) {
	case CUA_I8: return ((const int8_t *)array)[i];
	case CUA_U8: return ((const uint8_t *)array)[i];
	case CUA_I16: return ((const int16_t *)array)[i];
	case CUA_U16: return ((const uint16_t *)array)[i];
	case CUA_I32: return ((const int32_t *)array)[i];
	case CUA_U32: return ((const uint32_t *)array)[i];
	case CUA_I64: return ((const int64_t *)array)[i];
	default: return ((const uint64_t *)array)[i];
	}
}

static UNUSED size_t model_integer_bin(wide x, wide lower, wide upper, int closed, size_t bins)
{
	if (x < lower)
		return MODEL_BELOW;
	if (x == upper && closed)
		return bins - 1;
	if (x >= upper)
		return MODEL_ABOVE;
	return (size_t)((x - lower) * (wide)bins / (upper - lower));
}

static UNUSED size_t model_float_bin(double x, double lower, double upper, int closed, size_t bins)
{
	/* volatile: each operation is rounded once */
	volatile double difference = upper - lower, h = 1, a, b, c;

	if (isnan(x))
		return MODEL_NAN;
	if (x < lower)
		return MODEL_BELOW;
	if (x > upper || (x == upper && !closed))
		return MODEL_ABOVE;
	if (isinf(difference))
		h = 0.5;
	else if (difference < ldexp(1, -900))
		h = ldexp(1, 128);
	a = upper * h;
	b = lower * h;
	a = a - b;
	a = (double)bins / a;
	c = x * h;
	c = c - b;
	c = c * a;
	c = floor(c);
	return c >= (double)bins ? bins - 1 : (size_t)c;
}

static UNUSED size_t model_letter_bin(unsigned char c)
{
	static const char *const groups[7] = {"abcd", "efgh", "ijkl", "mnop", "qrst", "uvwx", "yz"};

	for (size_t i = 0; i < 7; i++)
		if (c && strchr(groups[i], c))
			return i;
	return c < 'a' ? MODEL_BELOW : MODEL_ABOVE;
}

/* Compares element i of a with element j of b: -1 below, 0 equal, 1 above. */
static UNUSED int model_compare(enum cua_type type, const void *a, size_t i, const void *b,
				size_t j)
{
	if (model_is_float(type)) {
		double x = model_float_at(type, a, i), y = model_float_at(type, b, j);

		return (x > y) - (x < y);
	}
	return (model_integer_at(type, a, i) > model_integer_at(type, b, j)) -
	       (model_integer_at(type, a, i) < model_integer_at(type, b, j));
}

static UNUSED size_t model_edge_bin(enum cua_type type, const void *x, size_t i, const void *edges,
				    size_t bins, int closed)
{
	size_t not_above = 0;

	if (model_is_float(type) && isnan(model_float_at(type, x, i)))
		return MODEL_NAN;
	while (not_above <= bins && model_compare(type, edges, not_above, x, i) <= 0)
		not_above++;
	if (!not_above)
		return MODEL_BELOW;
	if (not_above <= bins)
		return not_above - 1;
	return closed && !model_compare(type, edges, bins, x, i) ? bins - 1 : MODEL_ABOVE;
}

static UNUSED size_t model_bin(const struct model_call *m, const void *x, size_t i)
{
	wide lower = m->lower.i, upper = m->upper.i;

	switch (m->rule) {
	case MODEL_BYTES: return ((const uint8_t *)x)[i];
	case MODEL_LETTERS: return model_letter_bin(((const uint8_t *)x)[i]);
	case MODEL_EDGES: return model_edge_bin(m->type, x, i, m->edges, m->bins, m->o.closed);
	default: break;
	}
	if (model_is_float(m->type))
		return model_float_bin(model_float_at(m->type, x, i), m->lower.f, m->upper.f,
				       m->o.closed, m->bins);
	if (m->type == CUA_U64) {
		lower = m->lower.u;
		upper = m->upper.u;
	}
	return model_integer_bin(model_integer_at(m->type, x, i), lower, upper, m->o.closed,
				 m->bins);
}

static UNUSED unsigned model_channels(const struct model_call *m)
{
	return m->o.channels ? m->o.channels : 1;
}

static UNUSED unsigned model_counted(const struct model_call *m)
{
	return m->o.counted ? m->o.counted : model_channels(m);
}

/* The index of element i, in values. */
static UNUSED size_t model_place(const struct model_call *m, size_t i)
{
	size_t channels = model_channels(m), width = m->o.width ? m->o.width : m->n;
	size_t pitch = m->o.pitch ? m->o.pitch / cua_type_size(m->type) : width * channels;

	return i / width * pitch + i % width * channels;
}

/* The exponent of the unit of float weights. */
static UNUSED int model_unit(const struct model_call *m)
{
	double limit = m->o.weight_limit != 0 ? m->o.weight_limit : 1;
	int e = -1022;

	/* limit / 2^e, exact in a long double, is at most 2^62 / n */
	while (m->n &&
	       ceill(ldexpl((long double)limit, -e)) > (long double)(((uint64_t)1 << 62) / m->n))
		e++;
	return e;
}

/*
 * Adds the call's counts to bins * counted sums, and to CUA_HISTOGRAM_SIDES for each counted
 * channel. The sums of float weights are numbers of units.
 */
static UNUSED void model_count(const struct model_call *m, uint64_t *sums, uint64_t *outside)
{
	double limit = m->o.weight_limit != 0 ? m->o.weight_limit : 1;
	int weight_is_float = model_is_float(m->o.weight_type);
	int e = weight_is_float ? model_unit(m) : 0;

	for (size_t i = 0; i < m->n; i++)
		for (unsigned c = 0; c < model_counted(m); c++) {
			size_t bin = model_bin(m, m->x, model_place(m, i) + c);
			uint64_t *sides = outside + c * CUA_HISTOGRAM_SIDES, by = 1;

			if (bin >= MODEL_BELOW) {
				sides[bin - MODEL_BELOW]++;
				continue;
			}
			if (weight_is_float) {
				double v = model_float_at(m->o.weight_type, m->weights, i);

				if (isnan(v) || fabs(v) > limit) {
					sides[3]++;
					continue;
				}
				by = (uint64_t)(int64_t)rintl(ldexpl((long double)v, -e));
			} else if (m->o.weight_type) {
				by = (uint64_t)model_integer_at(m->o.weight_type, m->weights, i);
			}
			sums[c * m->bins + bin] += by;
		}
}

#endif /* CUATOMIC_TESTS_HISTOGRAM_MODEL_H */
