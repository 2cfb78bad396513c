/* SPDX-License-Identifier: MIT */
/* The inline functions of exact.h by format, and the elements for tests of exact sums. */
#ifndef CUATOMIC_TESTS_EXACT_ELEMENTS_H
#define CUATOMIC_TESTS_EXACT_ELEMENTS_H

#include "common.h"
#include "exact_model.h"

/* ---- the inline functions, by format ---- */

static inline void inline_add(struct cua_exact *e, const struct format *f, uint64_t bits)
{
	struct cua_f16 h;
	struct cua_bf16 b;
	float s;
	double d;

	switch (f->type) {
	case CUA_F16:
		memcpy(&h, &bits, sizeof(h));
		cua_exact_add_f16(e, h);
		break;
	case CUA_BF16:
		memcpy(&b, &bits, sizeof(b));
		cua_exact_add_bf16(e, b);
		break;
	case CUA_F32:
		memcpy(&s, &bits, sizeof(s));
		cua_exact_add_f32(e, s);
		break;
	default:
		memcpy(&d, &bits, sizeof(d));
		cua_exact_add_f64(e, d);
		break;
	}
}

static inline void inline_add_product(struct cua_exact *e, const struct format *f, uint64_t x,
				      uint64_t y)
{
	struct cua_f16 h[2];
	struct cua_bf16 b[2];
	float s[2];
	double d[2];

	switch (f->type) {
	case CUA_F16:
		memcpy(&h[0], &x, sizeof(h[0]));
		memcpy(&h[1], &y, sizeof(h[0]));
		cua_exact_add_product_f16(e, h[0], h[1]);
		break;
	case CUA_BF16:
		memcpy(&b[0], &x, sizeof(b[0]));
		memcpy(&b[1], &y, sizeof(b[0]));
		cua_exact_add_product_bf16(e, b[0], b[1]);
		break;
	case CUA_F32:
		memcpy(&s[0], &x, sizeof(s[0]));
		memcpy(&s[1], &y, sizeof(s[0]));
		cua_exact_add_product_f32(e, s[0], s[1]);
		break;
	default:
		memcpy(&d[0], &x, sizeof(d[0]));
		memcpy(&d[1], &y, sizeof(d[0]));
		cua_exact_add_product_f64(e, d[0], d[1]);
		break;
	}
}

static inline uint64_t inline_round(const struct cua_exact *sum, const struct format *f)
{
	struct cua_exact e = *sum;
	uint64_t bits = 0;
	struct cua_f16 h;
	struct cua_bf16 b;
	float s;
	double d;

	switch (f->type) {
	case CUA_F16:
		h = cua_exact_round_f16(&e);
		memcpy(&bits, &h, sizeof(h));
		break;
	case CUA_BF16:
		b = cua_exact_round_bf16(&e);
		memcpy(&bits, &b, sizeof(b));
		break;
	case CUA_F32:
		s = cua_exact_round_f32(&e);
		memcpy(&bits, &s, sizeof(s));
		break;
	default:
		d = cua_exact_round_f64(&e);
		memcpy(&bits, &d, sizeof(d));
		break;
	}
	return bits;
}

static inline void sum_inline(struct cua_exact *e, const struct format *f, size_t n, const void *x,
			      const void *y)
{
	for (size_t i = 0; i < n; i++) {
		if (y)
			inline_add_product(e, f, format_load(f, x, i), format_load(f, y, i));
		else
			inline_add(e, f, format_load(f, x, i));
	}
}

/* ---- elements ---- */

enum kind_of_element {
	KIND_NEAR,      /* exponents near 1 */
	KIND_WIDE,      /* all finite numbers */
	KIND_SUBNORMAL, /* subnormal numbers; the least normal numbers */
	KIND_CANCEL,    /* nearly all elements cancel */
	KIND_EXTREME,   /* the largest numbers; the least numbers */
	KIND_SPARSE,    /* mostly zeros of both signs */
	KIND_OUTLIER,   /* near 1; rarely any finite number */
	KIND_STEPS,     /* near some exponent for a while; then near another */
	KIND_SPECIAL,   /* infinities; rarely NaN */
	KINDS
};
static const char *const kind_names[] = {"near",   "wide",    "subnormal", "cancel", "extreme",
					 "sparse", "outlier", "steps",     "special"};

static inline uint64_t random_finite(const struct format *f, uint64_t *seed)
{
	uint64_t bits;

	do
		bits = test_random(seed) & (2 * format_minus(f) - 1);
	while ((bits & (format_minus(f) - 1)) >= format_infinity(f));
	return bits;
}

static inline uint64_t random_near(const struct format *f, int exponent, int spread, uint64_t *seed)
{
	uint64_t r = test_random(seed), all = ((uint64_t)1 << f->exponent) - 1;
	int64_t e = exponent + (int64_t)(test_random(seed) % (uint64_t)spread) - spread / 2;

	e = e < 0 ? 0 : e >= (int64_t)all ? (int64_t)all - 1 : e;
	return (r & format_minus(f)) | (uint64_t)e << f->fraction |
	       (r & (((uint64_t)1 << f->fraction) - 1));
}

static inline uint64_t random_element(const struct format *f, enum kind_of_element kind, size_t i,
				      uint64_t *seed)
{
	uint64_t r = test_random(seed), minus = format_minus(f);
	int bias = (1 << (f->exponent - 1)) - 1;

	switch (kind) {
	case KIND_NEAR: return random_near(f, bias, 8, seed);
	case KIND_SUBNORMAL: return random_near(f, 0, 4, seed);
	case KIND_EXTREME:
		return (r & minus) | (r % 3 ? format_infinity(f) - 1 - r / 8 % 3 : 1 + r / 8 % 3);
	case KIND_SPARSE: return r % 16 ? r & minus : random_near(f, bias, 8, seed);
	case KIND_OUTLIER: return r % 64 ? random_near(f, bias, 8, seed) : random_finite(f, seed);
	case KIND_STEPS: return random_near(f, (int)(i / 700 * 37 % (2 * (unsigned)bias)), 8, seed);
	case KIND_SPECIAL:
		if (r % 97 == 0)
			return r / 97 % 8 == 0  ? format_nan(f) | (r & minus) | r / 1024 % 2
			       : r / 97 % 8 < 7 ? format_infinity(f)
						: minus | format_infinity(f);
		return r % 7 ? random_finite(f, seed) : r & minus;
	default: return random_finite(f, seed);
	}
}

/* x, and y unless it is NULL. */
static inline void fill(const struct format *f, enum kind_of_element kind, size_t n, void *x,
			void *y, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++) {
		format_store(f, x, i, random_element(f, kind, i, seed));
		if (y)
			format_store(f, y, i, random_element(f, kind, i, seed));
	}
	if (kind != KIND_CANCEL)
		return;
	/* pairs that cancel, shuffled, and few remaining elements */
	for (size_t i = 0; i + 1 < n; i += 2) {
		format_store(f, x, i + 1, format_load(f, x, i) ^ format_minus(f));
		if (y)
			format_store(f, y, i + 1, format_load(f, y, i));
	}
	for (size_t i = n; i > 1; i--) {
		size_t j = test_random(seed) % i;
		uint64_t a = format_load(f, x, i - 1), b;

		format_store(f, x, i - 1, format_load(f, x, j));
		format_store(f, x, j, a);
		if (y) {
			b = format_load(f, y, i - 1);
			format_store(f, y, i - 1, format_load(f, y, j));
			format_store(f, y, j, b);
		}
	}
	if (n && test_random(seed) % 2)
		format_store(f, x, test_random(seed) % n, test_random(seed) % 3);
}

#endif /* CUATOMIC_TESTS_EXACT_ELEMENTS_H */
