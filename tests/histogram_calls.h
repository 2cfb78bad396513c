/* SPDX-License-Identifier: MIT */
/* Random calls of histograms with all options, and the functions that make them. */
#ifndef CUATOMIC_TESTS_HISTOGRAM_CALLS_H
#define CUATOMIC_TESTS_HISTOGRAM_CALLS_H

#include "histogram_model.h"

static UNUSED struct cua_histogram_options no_options(void)
{
	struct cua_histogram_options o = CUA_HISTOGRAM_OPTIONS_INIT;

	return o;
}

static UNUSED enum cua_status make_call(struct cua_context *ctx, const struct model_call *m,
					const struct cua_histogram_options *o, const void *x,
					void *counts)
{
	switch (m->rule) {
	case MODEL_BYTES: return cua_histogram_bytes(ctx, o, m->n, x, counts);
	case MODEL_LETTERS: return cua_histogram_letters(ctx, o, m->n, x, counts);
	case MODEL_EVEN:
		return cua_histogram_even(ctx, o, m->type, m->n, x, m->bins, &m->lower, &m->upper,
					  counts);
	default: return cua_histogram_edges(ctx, o, m->type, m->n, x, m->bins, m->edges, counts);
	}
}

static UNUSED double any_double(uint64_t *seed)
{
	const double odd[] = {0.0,   -0.0,   1,       -1,    0.5,  1e-30,
			      -1e30, 5e-324, DBL_MAX, 65504, 1e-7, 255};
	uint64_t r = test_random(seed);
	double v;

	if (r % 4 == 0)
		return odd[(r >> 8) % COUNT(odd)];
	if (r % 4 < 3)
		return ((double)(r >> 11) * 0x1p-53 - 0.5) * ldexp(1, (int)(r >> 2) % 24);
	memcpy(&v, &r, sizeof(v));
	return isfinite(v) ? v : 1;
}

static UNUSED uint64_t any_integer(uint64_t *seed)
{
	uint64_t r = test_random(seed), v = test_random(seed) >> r % 64;

	return r >> 32 & 1 ? 0 - v : v;
}

static UNUSED void store(enum cua_type type, void *array, size_t i, double f, uint64_t v)
{
	switch (type) {
	case CUA_F16: ((struct cua_f16 *)array)[i] = cua_f16_from_f32((float)f); return;
	case CUA_BF16: ((struct cua_bf16 *)array)[i] = cua_bf16_from_f32((float)f); return;
	case CUA_F32: ((float *)array)[i] = (float)f; return;
	case CUA_F64: ((double *)array)[i] = f; return;
	default: memcpy((char *)array + i * cua_type_size(type), &v, cua_type_size(type));
	}
}

/* Any value; mostly a value between the limits, an edge, or a neighbour of an edge. */
static UNUSED void store_any(const struct model_call *m, void *array, size_t i, uint64_t *seed)
{
	uint64_t r = test_random(seed), v = any_integer(seed);
	double f = any_double(seed);
	size_t size = cua_type_size(m->type);

	if (m->rule == MODEL_LETTERS && r % 4)
		v = 'a' - 2 + (r >> 8) % 30;
	else if (r % 16 == 0)
		f = r >> 8 & 1 ? (double)NAN : r >> 9 & 1 ? HUGE_VAL : -HUGE_VAL;
	else if (m->rule == MODEL_EDGES && r % 2) {
		memcpy((char *)array + i * size,
		       (const char *)m->edges + (r >> 8) % (m->bins + 1) * size, size);
		return;
	} else if (m->rule == MODEL_EVEN && r % 4 && model_is_float(m->type))
		f = r % 8 == 1   ? m->lower.f
		    : r % 8 == 2 ? m->upper.f
				 : m->lower.f + (m->upper.f * 0.5 - m->lower.f * 0.5) * 2 *
							(double)(r >> 11) * 0x1p-53;
	else if (m->rule == MODEL_EVEN && r % 4)
		v = r % 8 == 1   ? m->lower.u - (r >> 8 & 1)
		    : r % 8 == 2 ? m->upper.u - (r >> 8 & 1)
				 : m->lower.u + test_random(seed) % (m->upper.u - m->lower.u);
	store(m->type, array, i, f, v);
}

static UNUSED void sort(enum cua_type type, char *p, size_t n)
{
	size_t size = cua_type_size(type);
	char key[8];

	for (size_t gap = 1093; gap; gap /= 3)
		for (size_t i = gap; i < n; i++) {
			size_t j = i;

			memcpy(key, p + i * size, size);
			for (; j >= gap && model_compare(type, key, 0, p, j - gap) < 0; j -= gap)
				memcpy(p + j * size, p + (j - gap) * size, size);
			memcpy(p + j * size, key, size);
		}
}

/* Sets the limits of an even histogram; the type is set before. */
static UNUSED void make_limits(struct model_call *m, uint64_t *seed)
{
	if (model_is_float(m->type)) {
		do {
			m->lower.f = any_double(seed);
			m->upper.f = any_double(seed);
		} while (!(m->lower.f < m->upper.f));
	} else if (m->type == CUA_U64) {
		do {
			m->lower.u = any_integer(seed);
			m->upper.u = any_integer(seed);
		} while (m->lower.u >= m->upper.u);
	} else {
		do {
			m->lower.i = (int64_t)any_integer(seed);
			m->upper.i = (int64_t)any_integer(seed);
		} while (m->lower.i >= m->upper.i);
	}
}

#define MOST_BINS 5000
#define MOST_N 3000
/* Bytes of all elements, including the gaps between the rows. */
#define ROOM ((size_t)MOST_N * 4 * 8 * 3)

/* New random elements and weights for an otherwise unchanged call. */
static UNUSED void fill_random(const struct model_call *m, uint64_t *seed, char *x, char *weights)
{
	size_t values = m->n ? model_place(m, m->n - 1) + model_channels(m) : 0;

	ck_assert_uint_le(values * cua_type_size(m->type), ROOM);
	for (size_t i = 0; i < values; i++)
		store_any(m, x, i, seed);
	for (size_t i = 0; i < m->n && m->o.weight_type; i++) {
		double limit = m->o.weight_limit != 0 ? m->o.weight_limit : 1, f;
		uint64_t w = test_random(seed);

		f = limit * ((double)(w >> 11) * 0x1p-52 - 1);
		if (w % 16 == 0)
			f = w >> 4 & 1 ? limit : -limit;
		else if (w % 16 == 1)
			f = w >> 4 & 1   ? (double)NAN
			    : w >> 5 & 1 ? nextafter(limit, HUGE_VAL)
					 : -HUGE_VAL;
		else if (w % 16 == 2)
			f = ldexp(limit, -(int)(w >> 4) % 80);
		store(m->o.weight_type, weights, i, f, any_integer(seed));
	}
}

/* Makes a random call; writes x, edges and weights to the buffers. */
static UNUSED void make_random(struct model_call *m, uint64_t *seed, char *x, char *edges,
			       char *weights)
{
	static const size_t few[] = {1,   2,   3,    7,    26,   64,       255,
				     256, 257, 1000, 1024, 1025, MOST_BINS};
	static const enum cua_type weight_types[] = {CUA_I32, CUA_U32, CUA_I64,
						     CUA_U64, CUA_F32, CUA_F64};
	uint64_t r = test_random(seed), q = test_random(seed);
	size_t size;

	memset(m, 0, sizeof(*m));
	m->rule = (enum model_rule)(r % 8 < 2 ? r % 8 : 2 + r % 2);
	m->type = m->rule < MODEL_EVEN ? CUA_U8 : model_types[(r >> 8) % COUNT(model_types)];
	m->bins = m->rule == MODEL_BYTES     ? CUA_HISTOGRAM_BYTE_BINS
		  : m->rule == MODEL_LETTERS ? CUA_HISTOGRAM_LETTER_BINS
					     : few[(r >> 16) % COUNT(few)];
	m->n = (r >> 24) % 8 == 0 ? (r >> 32) % 4 : (size_t)((r >> 32) % MOST_N);
	/* the model compares with every edge in sequence */
	if (m->rule == MODEL_EDGES && m->bins > 300)
		m->n /= 16;
	m->o = no_options();
	m->o.strategy = (enum cua_histogram_strategy)(q % 5);
	m->o.accumulate = q >> 8 & 1;
	m->o.closed = q >> 9 & 1;
	m->o.channels = (q >> 10) % 5;
	if (q >> 13 & 1)
		m->o.counted = (unsigned)(1 + (q >> 14) % model_channels(m));
	size = cua_type_size(m->type);
	if (q >> 17 & 1 && m->n) {
		m->o.width = 1 + (q >> 18) % 100;
		m->n -= m->n % m->o.width;
		if (q >> 25 & 1)
			m->o.pitch = m->o.width * model_channels(m) * size + (q >> 26) % 4 * size;
	}
	if (q >> 28 & 1)
		m->o.weight_type = weight_types[(q >> 29) % COUNT(weight_types)];
	if (model_is_float(m->o.weight_type)) {
		const double limits[] = {0, 1, 0.3, 1000, 1e-300, 1e300, DBL_MAX, 5e-324, 1e-3};

		m->o.count_type = q >> 34 & 1 ? CUA_F64 : (enum cua_type)0;
		m->o.weight_limit = limits[(q >> 36) % COUNT(limits)];
	} else {
		m->o.count_type = q >> 34 & 1 ? CUA_U32 : q >> 35 & 1 ? CUA_U64 : (enum cua_type)0;
	}
	if (m->rule == MODEL_EVEN)
		make_limits(m, seed);
	if (m->rule == MODEL_EDGES) {
		m->edges = edges;
		for (size_t i = 0; i <= m->bins; i++) {
			double f = test_random(seed) % 64 ? any_double(seed) : HUGE_VAL;

			store(m->type, edges, i, f, any_integer(seed));
		}
		sort(m->type, edges, m->bins + 1);
	}
	m->x = x;
	m->weights = weights;
	fill_random(m, seed, x, weights);
}

static UNUSED void describe(const struct model_call *m, char *text, size_t size)
{
	snprintf(
		text, size,
		"rule %d of %s, n %zu, %zu bins, strategy %d, channels %u of %u, width %zu, pitch %zu, "
		"weights %d, limit %g, counts %d, closed %d, accumulate %d, limits %llx %llx",
		(int)m->rule, cua_type_name(m->type), m->n, m->bins, (int)m->o.strategy,
		m->o.counted, m->o.channels, m->o.width, m->o.pitch, (int)m->o.weight_type,
		m->o.weight_limit, (int)m->o.count_type, m->o.closed, m->o.accumulate,
		(unsigned long long)m->lower.u, (unsigned long long)m->upper.u);
}

/* The expected count, as the bits of the count's type: `sum` of the model on top of `before`. */
static UNUSED uint64_t expected_count(const struct model_call *m, uint64_t before, uint64_t sum)
{
	volatile double total, old;
	uint64_t bits;

	if (!model_is_float(m->o.weight_type)) {
		sum += m->o.accumulate ? before : 0;
		return m->o.count_type == CUA_U32 ? (uint32_t)sum : sum;
	}
	total = ldexp((double)(int64_t)sum, m->n ? model_unit(m) : 0);
	memcpy((void *)&old, &before, sizeof(old));
	if (m->o.accumulate)
		total = m->n ? old + total : old;
	memcpy(&bits, (const void *)&total, sizeof(bits));
	return bits;
}

#endif /* CUATOMIC_TESTS_HISTOGRAM_CALLS_H */
