/* SPDX-License-Identifier: MIT */
/*
 * A second implementation of the reductions, for the tests. Operations without an order are loops
 * over the elements. The remaining operations use the order that lib/kernels/tree.h describes, as
 * simply as possible. Nothing of the library is used.
 */
#ifndef CUATOMIC_TESTS_TREE_MODEL_H
#define CUATOMIC_TESTS_TREE_MODEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cuatomic/reduce.h>

/* Limits for the norm of f64: larger and smaller numbers cannot be squared. */
#define MODEL_LARGE 0x1p480
#define MODEL_SMALL 0x1p-500

__extension__ typedef __int128 model_int128;

struct model_call {
	enum cua_reduce_op op;
	enum cua_type type, result; /* result: 0 is the default type */
	uint64_t n;
	const void *x, *y;
};

/* A result, in the first bytes of the union. */
union model_result {
	uint16_t u16;
	uint32_t u32;
	uint64_t u64, words[2];
	int64_t i64;
	float f32;
	double f64;
	struct cua_complex_f32 c32;
	struct cua_complex_f64 c64;
};

static inline int model_is_complex(enum cua_type type)
{
	return type == CUA_COMPLEX_F32 || type == CUA_COMPLEX_F64;
}

static inline int model_is_integer(enum cua_type type)
{
	return type == CUA_I32 || type == CUA_U32 || type == CUA_I64 || type == CUA_U64;
}

static inline int model_is_signed(enum cua_type type)
{
	return type == CUA_I32 || type == CUA_I64;
}

/* Whether the library has this operation on this type. */
static inline int model_has(enum cua_reduce_op op, enum cua_type type)
{
	if (model_is_complex(type))
		return op == CUA_REDUCE_SUM || op == CUA_REDUCE_DOT || op == CUA_REDUCE_DOT_CONJ;
	return op != CUA_REDUCE_NORM2 || !model_is_integer(type);
}

static inline enum cua_type model_default_result(enum cua_reduce_op op, enum cua_type type)
{
	if (op == CUA_REDUCE_MIN || op == CUA_REDUCE_MAX)
		return type;
	if (op == CUA_REDUCE_ARGMIN || op == CUA_REDUCE_ARGMAX || op == CUA_REDUCE_COUNT)
		return CUA_U64;
	if (!model_is_integer(type))
		return type;
	if (op == CUA_REDUCE_MEAN || op == CUA_REDUCE_VARIANCE || op == CUA_REDUCE_VARIANCE_SAMPLE)
		return CUA_F64;
	return model_is_signed(type) && op != CUA_REDUCE_SUM_ABS ? CUA_I64 : CUA_U64;
}

/* ---- elements ---- */

struct model_element {
	double re, im;
};

static inline double model_of_f16(uint16_t bits)
{
	int exponent = bits >> 10 & 31, digits = bits & 1023;
	double size;

	if (exponent == 31)
		size = digits ? (double)NAN : HUGE_VAL;
	else
		size = exponent ? ldexp(1024 + digits, exponent - 25) : ldexp(digits, -24);
	return bits >> 15 ? -size : size;
}

static inline model_int128 model_integer(enum cua_type type, const void *p, uint64_t i)
{
	switch (type) {
	case CUA_I32: return ((const int32_t *)p)[i];
	case CUA_U32: return ((const uint32_t *)p)[i];
	case CUA_I64: return ((const int64_t *)p)[i];
	default: return ((const uint64_t *)p)[i];
	}
}

static inline struct model_element model_element(enum cua_type type, const void *p, uint64_t i)
{
	struct model_element e = {0, 0};
	uint32_t bits;
	float f;

	switch (type) {
	case CUA_F16: e.re = model_of_f16(((const uint16_t *)p)[i]); break;
	case CUA_BF16:
		bits = (uint32_t)((const uint16_t *)p)[i] << 16;
		memcpy(&f, &bits, sizeof(f));
		e.re = f;
		break;
	case CUA_F32: e.re = ((const float *)p)[i]; break;
	case CUA_F64: e.re = ((const double *)p)[i]; break;
	case CUA_COMPLEX_F32:
		e.re = ((const float *)p)[2 * i];
		e.im = ((const float *)p)[2 * i + 1];
		break;
	case CUA_COMPLEX_F64:
		e.re = ((const double *)p)[2 * i];
		e.im = ((const double *)p)[2 * i + 1];
		break;
	default: e.re = (double)model_integer(type, p, i); break;
	}
	return e;
}

/* ---- results ---- */

/* Rounds to nearest even, to `digits` digits and to multiples of 2^least. */
static inline double model_rounded(double v, int digits, int least, double greatest)
{
	int exponent;

	if (v == 0 || isinf(v) || isnan(v))
		return v;
	(void)frexp(v, &exponent);
	exponent = exponent - digits < least ? least : exponent - digits;
	v = ldexp(nearbyint(ldexp(v, -exponent)), exponent);
	return fabs(v) > greatest ? copysign(HUGE_VAL, v) : v;
}

static inline uint16_t model_f16(double v)
{
	uint16_t sign;
	int exponent;

	if (isnan(v))
		return 0x7e00;
	v = model_rounded(v, 11, -24, 65504);
	sign = signbit(v) ? 0x8000 : 0;
	v = fabs(v);
	if (isinf(v))
		return sign | 0x7c00;
	if (v < 0x1p-14)
		return (uint16_t)(sign | (int)ldexp(v, 24));
	(void)frexp(v, &exponent);
	return (uint16_t)(sign | ((exponent + 14) << 10) | ((int)ldexp(v, 11 - exponent) - 1024));
}

static inline uint32_t model_f32(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return isnan(v) ? 0x7fc00000 : bits;
}

static inline uint16_t model_bf16(double v)
{
	return (uint16_t)(model_f32(model_rounded(v, 8, -133, 0x1.fep127)) >> 16);
}

static inline uint64_t model_f64(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return isnan(v) ? 0x7ff8000000000000 : bits;
}

static inline union model_result model_real(enum cua_type type, double v)
{
	union model_result r = {.words = {0, 0}};

	switch (type) {
	case CUA_F16: r.u16 = model_f16(v); break;
	case CUA_BF16: r.u16 = model_bf16(v); break;
	case CUA_F32: r.u32 = model_f32(v); break;
	default: r.u64 = model_f64(v); break;
	}
	return r;
}

/* ---- the tree ---- */

struct model_value {
	int there;
	/*
	 * a sum, the two sums of a complex sum, a product; large, medium and small; number, mean
	 * and squares
	 */
	double v[3];
};

struct model_column {
	uint64_t taken;
	float f;
	double v[3];
};

static inline int model_is_variance(enum cua_reduce_op op)
{
	return op == CUA_REDUCE_VARIANCE || op == CUA_REDUCE_VARIANCE_SAMPLE;
}

static inline int model_is_norm(const struct model_call *c)
{
	return c->op == CUA_REDUCE_NORM2 && c->type == CUA_F64;
}

static inline void model_take(const struct model_call *c, struct model_column *column, uint64_t i)
{
	struct model_element a = model_element(c->type, c->x, i), b = a, term = a;
	double distance, size;

	switch (c->op) {
	case CUA_REDUCE_SUM_ABS: term.re = fabs(a.re); break;
	case CUA_REDUCE_NORM2:
	case CUA_REDUCE_SUM_SQUARES: term.re = a.re * a.re; break;
	case CUA_REDUCE_DOT:
	case CUA_REDUCE_DOT_CONJ:
		b = model_element(c->type, c->y, i);
		if (c->op == CUA_REDUCE_DOT_CONJ)
			a.im = -a.im;
		if (model_is_complex(c->type)) {
			term.re = a.re * b.re - a.im * b.im;
			term.im = a.re * b.im + a.im * b.re;
		} else {
			term.re = a.re * b.re;
		}
		break;
	default: break;
	}
	if (model_is_variance(c->op)) {
		if (!column->taken)
			column->v[0] = a.re;
		distance = a.re - column->v[0];
		column->v[1] += distance;
		column->v[2] += distance * distance;
	} else if (model_is_norm(c)) {
		size = fabs(a.re);
		if (size > MODEL_LARGE)
			column->v[0] += (size * 0x1p-600) * (size * 0x1p-600);
		else if (size < MODEL_SMALL)
			column->v[2] += (size * 0x1p600) * (size * 0x1p600);
		else
			column->v[1] += size * size;
	} else if (c->op == CUA_REDUCE_PRODUCT) {
		column->v[0] = (column->taken ? column->v[0] : 1) * a.re;
	} else {
		column->f += (float)term.re;
		column->v[0] += term.re;
		column->v[1] += term.im;
	}
	column->taken++;
}

static inline struct model_value model_widen(const struct model_call *c,
					     const struct model_column *column)
{
	struct model_value v = {column->taken != 0, {column->v[0], column->v[1], column->v[2]}};
	double n = (double)column->taken;

	if (model_is_variance(c->op)) {
		v.v[0] = n;
		v.v[1] = column->v[0] + column->v[1] / n;
		v.v[2] = column->v[2] - column->v[1] * (column->v[1] / n);
		if (v.v[2] < 0)
			v.v[2] = 0;
	} else if (c->type == CUA_F16 && c->op != CUA_REDUCE_PRODUCT) {
		v.v[0] = column->f;
	}
	return v;
}

static inline struct model_value model_combine(const struct model_call *c, struct model_value a,
					       struct model_value b)
{
	double n, share, distance;

	if (!a.there || !b.there)
		return a.there ? a : b;
	if (model_is_variance(c->op)) {
		n = a.v[0] + b.v[0];
		share = b.v[0] / n;
		distance = b.v[1] - a.v[1];
		a.v[2] = (a.v[2] + b.v[2]) + (distance * distance) * (a.v[0] * share);
		a.v[1] = a.v[1] + distance * share;
		a.v[0] = n;
	} else if (c->op == CUA_REDUCE_PRODUCT) {
		a.v[0] *= b.v[0];
	} else {
		for (int i = 0; i < 3; i++)
			a.v[i] += b.v[i];
	}
	return a;
}

static inline struct model_value model_neighbours(const struct model_call *c,
						  const struct model_value *v, unsigned n)
{
	if (n == 1)
		return v[0];
	return model_combine(c, model_neighbours(c, v, n / 2),
			     model_neighbours(c, v + n / 2, n / 2));
}

static inline struct model_value model_halves(const struct model_call *c, struct model_value *v,
					      unsigned n)
{
	for (unsigned d = n / 2; d; d /= 2)
		for (unsigned i = 0; i < d; i++)
			v[i] = model_combine(c, v[i], v[i + d]);
	return v[0];
}

enum { MODEL_STRIPS = 8, MODEL_THREADS = 256, MODEL_WIDEST = 256 };

static inline struct model_value model_strip(const struct model_call *c, uint64_t first,
					     uint64_t rows, unsigned width)
{
	struct model_column columns[MODEL_WIDEST];
	struct model_value v[MODEL_WIDEST], packs[32];
	unsigned pack = width / 32;

	memset(columns, 0, sizeof(columns));
	for (uint64_t row = 0; row < rows; row++)
		for (unsigned i = 0; i < width && first + row * width + i < c->n; i++)
			model_take(c, &columns[i], first + row * width + i);
	for (unsigned i = 0; i < width; i++)
		v[i] = model_widen(c, &columns[i]);
	for (unsigned i = 0; i < 32; i++)
		packs[i] = model_neighbours(c, v + i * pack, pack);
	return model_halves(c, packs, 32);
}

static inline struct model_value model_tree(const struct model_call *c)
{
	unsigned width = 32 * 16 / (unsigned)cua_type_size(c->type);
	uint64_t rows = 8, chunks;
	struct model_value threads[MODEL_THREADS], strips[MODEL_STRIPS];

	while ((c->n + MODEL_STRIPS * rows * width - 1) / (MODEL_STRIPS * rows * width) > 2000)
		rows += 8;
	chunks = (c->n + MODEL_STRIPS * rows * width - 1) / (MODEL_STRIPS * rows * width);
	memset(threads, 0, sizeof(threads));
	for (uint64_t chunk = 0; chunk < chunks; chunk++) {
		for (unsigned i = 0; i < MODEL_STRIPS; i++)
			strips[i] = model_strip(c, (chunk * MODEL_STRIPS + i) * rows * width, rows,
						width);
		threads[chunk % MODEL_THREADS] = model_combine(
			c, threads[chunk % MODEL_THREADS], model_halves(c, strips, MODEL_STRIPS));
	}
	for (unsigned i = 0; i < MODEL_THREADS / 32; i++)
		strips[i] = model_halves(c, threads + 32 * i, 32);
	return model_halves(c, strips, MODEL_STRIPS);
}

static inline union model_result model_float(const struct model_call *c, enum cua_type type)
{
	struct model_value v = model_tree(c);
	union model_result r = {.words = {0, 0}};
	double result = v.v[0], n = (double)c->n;

	if (model_is_complex(type)) {
		if (type == CUA_COMPLEX_F32) {
			r.u64 = model_f32(v.v[0]) | (uint64_t)model_f32(v.v[1]) << 32;
		} else {
			r.words[0] = model_f64(v.v[0]);
			r.words[1] = model_f64(v.v[1]);
		}
		return r;
	}
	switch (c->op) {
	case CUA_REDUCE_PRODUCT: result = v.there ? v.v[0] : 1; break;
	case CUA_REDUCE_MEAN: result = c->n ? v.v[0] / n : (double)NAN; break;
	case CUA_REDUCE_VARIANCE: result = c->n ? v.v[2] / n : (double)NAN; break;
	case CUA_REDUCE_VARIANCE_SAMPLE:
		result = c->n > 1 ? v.v[2] / (double)(c->n - 1) : (double)NAN;
		break;
	case CUA_REDUCE_NORM2:
		if (!model_is_norm(c))
			result = sqrt(v.v[0]);
		else if (v.v[0] != 0)
			result = sqrt(v.v[0] + v.v[1] * 0x1p-600 * 0x1p-600) * 0x1p600;
		else if (v.v[1] != 0)
			result = sqrt(v.v[1] + v.v[2] * 0x1p-600 * 0x1p-600);
		else
			result = sqrt(v.v[2]) * 0x1p-600;
		break;
	default: break;
	}
	return model_real(type, result);
}

/* ---- operations without an order ---- */

/* Whether b is less than a; -0 is less than +0. The operands are not NaN. */
static inline int model_less(struct model_element a, struct model_element b)
{
	return b.re < a.re || (b.re == a.re && signbit(b.re) && !signbit(a.re));
}

/* The index of the first least or greatest element; n if all are NaN. */
static inline uint64_t model_first(const struct model_call *c)
{
	int least = c->op == CUA_REDUCE_MIN || c->op == CUA_REDUCE_ARGMIN;
	uint64_t best = c->n;

	for (uint64_t i = 0; i < c->n; i++) {
		int better;

		if (model_is_integer(c->type)) {
			better = best == c->n ||
				 (least ? model_integer(c->type, c->x, i) <
						  model_integer(c->type, c->x, best)
					: model_integer(c->type, c->x, i) >
						  model_integer(c->type, c->x, best));
		} else {
			struct model_element e = model_element(c->type, c->x, i), b = e;

			if (isnan(e.re))
				continue;
			if (best < c->n)
				b = model_element(c->type, c->x, best);
			better = best == c->n || (least ? model_less(b, e) : model_less(e, b));
		}
		if (better)
			best = i;
	}
	return best;
}

/* The result of MIN or MAX without elements: the opposite end of the range. */
static inline union model_result model_nothing(const struct model_call *c)
{
	int least = c->op == CUA_REDUCE_MIN;
	union model_result r = {.words = {0, 0}};

	switch (c->type) {
	case CUA_U32: r.u32 = least ? UINT32_MAX : 0; break;
	case CUA_I32: r.u32 = least ? INT32_MAX : (uint32_t)INT32_MIN; break;
	case CUA_U64: r.u64 = least ? UINT64_MAX : 0; break;
	case CUA_I64: r.u64 = least ? INT64_MAX : (uint64_t)INT64_MIN; break;
	default: r = model_real(c->type, least ? HUGE_VAL : -HUGE_VAL); break;
	}
	return r;
}

static inline union model_result model_no_order(const struct model_call *c)
{
	uint64_t sum = c->op == CUA_REDUCE_PRODUCT, first;
	cua__uint128 size;
	model_int128 wide = 0, a, b;
	union model_result r = {.words = {0, 0}};
	double mean;

	switch (c->op) {
	case CUA_REDUCE_MIN:
	case CUA_REDUCE_MAX:
		first = model_first(c);
		if (!c->n)
			return model_nothing(c);
		if (first == c->n)
			return model_real(c->type, (double)NAN);
		memcpy(&r, (const char *)c->x + first * cua_type_size(c->type),
		       cua_type_size(c->type));
		return r;
	case CUA_REDUCE_ARGMIN:
	case CUA_REDUCE_ARGMAX:
		first = model_first(c);
		r.u64 = !c->n ? UINT64_MAX : first == c->n ? 0 : first;
		return r;
	case CUA_REDUCE_COUNT:
		for (uint64_t i = 0; i < c->n; i++)
			r.u64 += model_element(c->type, c->x, i).re != 0;
		return r;
	default: break;
	}
	for (uint64_t i = 0; i < c->n; i++) {
		a = model_integer(c->type, c->x, i);
		switch (c->op) {
		case CUA_REDUCE_SUM_ABS: sum += (uint64_t)(a < 0 ? -a : a); break;
		case CUA_REDUCE_SUM_SQUARES: sum += (uint64_t)a * (uint64_t)a; break;
		case CUA_REDUCE_PRODUCT: sum *= (uint64_t)a; break;
		case CUA_REDUCE_DOT:
		case CUA_REDUCE_DOT_CONJ:
			b = model_integer(c->type, c->y, i);
			sum += (uint64_t)a * (uint64_t)b;
			break;
		default: sum += (uint64_t)a; break;
		}
		wide += a;
	}
	r.u64 = sum;
	if (c->op == CUA_REDUCE_MEAN) {
		size = (cua__uint128)(wide < 0 ? -wide : wide);
		mean = (double)(uint64_t)(size >> 64) * 0x1p64 + (double)(uint64_t)size;
		r = model_real(CUA_F64,
			       c->n ? (wide < 0 ? -mean : mean) / (double)c->n : (double)NAN);
	}
	return r;
}

static inline union model_result model_reduce(const struct model_call *c)
{
	enum cua_type type = c->result ? c->result : model_default_result(c->op, c->type);

	if (model_is_complex(c->type) ||
	    (!model_is_integer(c->type) && c->op != CUA_REDUCE_MIN && c->op != CUA_REDUCE_MAX &&
	     c->op != CUA_REDUCE_ARGMIN && c->op != CUA_REDUCE_ARGMAX &&
	     c->op != CUA_REDUCE_COUNT) ||
	    model_is_variance(c->op))
		return model_float(c, type);
	return model_no_order(c);
}

#endif /* CUATOMIC_TESTS_TREE_MODEL_H */
