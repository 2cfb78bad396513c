/* SPDX-License-Identifier: MIT */
/*
 * The loops of cpu_exact.c over a batch, for a width of the vector registers. cpu_exact.c includes
 * this file once per width, with
 *
 *   LOOP(name)    the name of a function for this width
 *   LOOP_TARGET   the function attribute that permits its instructions, or nothing
 *   LANES         doubles in a vector: 2, 4 or 8
 *   LOOP_FMA      1 if fused multiply-add is available
 *
 * Each loop adds BATCH elements to windows; k is the exponent of the first window's quantum. If all
 * elements fit, it sets a sum per window and returns 1. Otherwise it returns 0, and the sums are
 * meaningless.
 */

typedef double LOOP(vd) __attribute__((vector_size(8 * LANES)));
typedef uint64_t LOOP(vu) __attribute__((vector_size(8 * LANES)));
typedef double LOOP(vd_at) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
#define VD LOOP(vd)
#define VU LOOP(vu)

#define LOOP_FN static __inline__ __attribute__((always_inline)) LOOP_TARGET

/* LANES floats as doubles. */
#if defined(__SSE2__) && LANES == 2
#define LOAD_F32(p)                                                                                \
	((VD)_mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)(p)))))
#elif defined(__SSE2__) && LANES == 4
#define LOAD_F32(p) ((VD)_mm256_cvtps_pd(_mm_loadu_ps(p)))
#elif defined(__SSE2__) && LANES == 8
#define LOAD_F32(p) ((VD)_mm512_cvtps_pd(_mm256_loadu_ps(p)))
#else
#define LOAD_F32(p) ((VD){(double)(p)[0], (double)(p)[1]})
#endif
/* LANES doubles in memory, to load or store. */
#define AT_F64(p) (*(LOOP(vd_at) *)(uintptr_t)(p))

struct LOOP(window) {
	VU sum;
	VD m;
	VU bits;
};

LOOP_FN void LOOP(open)(struct LOOP(window) * w, int k)
{
	uint64_t bits = cua__window_bits(k);
	double m;

	memcpy(&m, &bits, sizeof(m));
	w->sum = (VU){0};
	w->m = m - (VD){0};
	w->bits = bits - (VU){0};
}

/*
 * Adds v to the window and returns the rest. `bad` collects the differing bits of v + M and M.
 */
LOOP_FN VD LOOP(step)(struct LOOP(window) * w, VD v, VU *bad)
{
	VD t = v + w->m;

	w->sum += (VU)t;
	*bad |= (VU)t ^ w->bits;
	return v - (t - w->m);
}

LOOP_FN int64_t LOOP(total)(const struct LOOP(window) * w, uint64_t additions)
{
	uint64_t sum = 0;

	for (int i = 0; i < LANES; i++)
		sum += w->sum[i];
	return (int64_t)(sum - additions * w->bits[0]);
}

/* Whether all elements fit: signs and exponents are those of M, and the rests are +0 or -0. */
LOOP_FN int LOOP(fits)(VU bad, VU rest)
{
	uint64_t b = 0, r = 0;

	for (int i = 0; i < LANES; i++) {
		b |= bad[i];
		r |= rest[i];
	}
	return b >> 52 == 0 && r << 1 == 0;
}

static LOOP_TARGET int LOOP(sum_f32)(const void *x_, const void *y, int k, int64_t *sums)
{
	const float *x = x_;
	struct LOOP(window) w;
	VU bad = {0}, rest = {0};

	(void)y;
	LOOP(open)(&w, k);
	_Pragma("GCC unroll 4") for (int i = 0; i < BATCH; i += LANES) rest |=
		(VU)LOOP(step)(&w, LOAD_F32(x + i), &bad);
	sums[0] = LOOP(total)(&w, BATCH);
	return LOOP(fits)(bad, rest);
}

static LOOP_TARGET int LOOP(dot_f32)(const void *x_, const void *y_, int k, int64_t *sums)
{
	const float *x = x_, *y = y_;
	struct LOOP(window) w, w2;
	VU bad = {0}, rest = {0};

	LOOP(open)(&w, k);
	LOOP(open)(&w2, k - CUA__WINDOW_STEP);
	_Pragma("GCC unroll 2") for (int i = 0; i < BATCH; i += LANES)
	{
		VD v = LOOP(step)(&w, LOAD_F32(x + i) * LOAD_F32(y + i), &bad);

		rest |= (VU)LOOP(step)(&w2, v, &bad);
	}
	sums[0] = LOOP(total)(&w, BATCH);
	sums[1] = LOOP(total)(&w2, BATCH);
	return LOOP(fits)(bad, rest);
}

static LOOP_TARGET int LOOP(sum_f64)(const void *x_, const void *y, int k, int64_t *sums)
{
	const double *x = x_;
	struct LOOP(window) w, w2;
	VU bad = {0}, rest = {0};

	(void)y;
	LOOP(open)(&w, k);
	LOOP(open)(&w2, k - CUA__WINDOW_STEP);
	_Pragma("GCC unroll 2") for (int i = 0; i < BATCH; i += LANES)
	{
		VD v = LOOP(step)(&w, AT_F64(x + i), &bad);

		rest |= (VU)LOOP(step)(&w2, v, &bad);
	}
	sums[0] = LOOP(total)(&w, BATCH);
	sums[1] = LOOP(total)(&w2, BATCH);
	return LOOP(fits)(bad, rest);
}

/*
 * The error of p, the rounded product of x and y: exact unless it underflows. Without FMA it uses
 * Veltkamp's splitting, and that overflows to NaN for large factors.
 */
LOOP_FN VD LOOP(product_error)(VD x, VD y, VD p)
{
#if LOOP_FMA && LANES == 4
	return (VD)_mm256_fmsub_pd((__m256d)x, (__m256d)y, (__m256d)p);
#elif LOOP_FMA && LANES == 8
	return (VD)_mm512_fmsub_pd((__m512d)x, (__m512d)y, (__m512d)p);
#else
	const double split = 0x1p27 + 1;
	VD a = x * split, b = y * split, x1 = a - (a - x), y1 = b - (b - y), x0 = x - x1,
	   y0 = y - y1;

	return ((x1 * y1 - p) + x1 * y0 + x0 * y1) + x0 * y0;
#endif
}

static LOOP_TARGET int LOOP(dot_f64)(const void *x_, const void *y_, int k, int64_t *sums)
{
	const double *x = x_, *y = y_;
	struct LOOP(window) w, w2, w3;
	VU bad = {0}, rest = {0}, zero = {0};

	LOOP(open)(&w, k);
	LOOP(open)(&w2, k - CUA__WINDOW_STEP);
	LOOP(open)(&w3, k - 2 * CUA__WINDOW_STEP);
	for (int i = 0; i < BATCH; i += LANES) {
		VD a = AT_F64(x + i), b = AT_F64(y + i), p = a * b;
		VD v = LOOP(step)(&w, p, &bad), error = LOOP(product_error)(a, b, p);

		zero |= (VU)(p == 0);
		rest |= (VU)LOOP(step)(&w2, v, &bad);
		v = LOOP(step)(&w2, error, &bad);
		rest |= (VU)LOOP(step)(&w3, v, &bad);
	}
	sums[0] = LOOP(total)(&w, BATCH);
	sums[1] = LOOP(total)(&w2, 2 * BATCH);
	sums[2] = LOOP(total)(&w3, BATCH);
	if (!LOOP(fits)(zero, (VU){0})) {
		/* underflow: the product is zero, but no factor is */
		zero = (VU){0};
		for (int i = 0; i < BATCH; i += LANES) {
			VD a = AT_F64(x + i), b = AT_F64(y + i), p = a * b;

			zero |= (VU)(p == 0) & (VU)(a != 0) & (VU)(b != 0);
		}
		bad |= zero;
	}
	return LOOP(fits)(bad, rest);
}

/* ---- 16-bit floats, converted to float; products of f16 are exact in float ---- */

LOOP_FN void LOOP(floats_of_f16)(const uint16_t *h, float *f)
{
#if LOOP_FMA && LANES >= 4
	for (int i = 0; i < BATCH; i += 8)
		_mm256_storeu_ps(f + i, _mm256_cvtph_ps(_mm_loadu_si128(
						(const __m128i *)(const void *)(h + i))));
#elif defined(__SSE2__)
	const __m128i magic = _mm_set1_epi32(113 << 23), none = _mm_setzero_si128();

	for (int i = 0; i < BATCH; i += 4) {
		__m128i v = _mm_unpacklo_epi16(
			_mm_loadl_epi64((const __m128i *)(const void *)(h + i)), none);
		__m128i sign = _mm_slli_epi32(_mm_and_si128(v, _mm_set1_epi32(0x8000)), 16);
		__m128i size = _mm_and_si128(v, _mm_set1_epi32(0x7fff)),
			wide = _mm_slli_epi32(size, 13);
		__m128i small = _mm_cmplt_epi32(size, _mm_set1_epi32(0x400));
		__m128i special = _mm_cmpgt_epi32(size, _mm_set1_epi32(0x7bff));
		/* a subnormal: 2^-14 plus the fraction, minus 2^-14 */
		__m128i least = _mm_castps_si128(_mm_sub_ps(
			_mm_castsi128_ps(_mm_add_epi32(wide, magic)), _mm_castsi128_ps(magic)));
		__m128i normal = _mm_add_epi32(wide, _mm_set1_epi32(112 << 23));

		normal = _mm_or_si128(normal, _mm_and_si128(special, _mm_set1_epi32(0x7f800000)));
		normal = _mm_or_si128(_mm_and_si128(small, least), _mm_andnot_si128(small, normal));
		_mm_storeu_ps(f + i, _mm_castsi128_ps(_mm_or_si128(normal, sign)));
	}
#else
	for (int i = 0; i < BATCH; i++) {
		struct cua_f16 v = {h[i]};

		f[i] = cua__f32_of_f16(v);
	}
#endif
}

LOOP_FN void LOOP(floats_of_bf16)(const uint16_t *h, float *f)
{
	cua__raw32 *bits = (cua__raw32 *)(void *)f;

	for (int i = 0; i < BATCH; i++)
		bits[i] = (uint32_t)h[i] << 16;
}

/* Every f16 is a multiple of 2^-24 below 2^16, so a sum of doubles holds a batch exactly. */
static LOOP_TARGET int LOOP(sum_f16)(const void *x, const void *y, int k, int64_t *sums)
{
	float f[BATCH];
	VD sum[4] = {{0}, {0}, {0}, {0}};
	double total = 0;

	(void)y;
	(void)k;
	LOOP(floats_of_f16)(x, f);
	for (int i = 0; i < BATCH; i += 4 * LANES) {
		_Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) sum[j] +=
			LOAD_F32(f + i + j * LANES);
	}
	sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
	for (int i = 0; i < LANES; i++)
		total += sum[0][i];
	if (!(total - total == 0))
		return 0;
	sums[0] = (int64_t)(total * 0x1p24);
	return 1;
}

static LOOP_TARGET int LOOP(dot_f16)(const void *x, const void *y, int k, int64_t *sums)
{
	float a[BATCH], b[BATCH];

	LOOP(floats_of_f16)(x, a);
	LOOP(floats_of_f16)(y, b);
	for (int i = 0; i < BATCH; i++)
		a[i] *= b[i];
	return LOOP(sum_f32)(a, NULL, k, sums);
}

static LOOP_TARGET int LOOP(sum_bf16)(const void *x, const void *y, int k, int64_t *sums)
{
	float a[BATCH];

	(void)y;
	LOOP(floats_of_bf16)(x, a);
	return LOOP(sum_f32)(a, NULL, k, sums);
}

static LOOP_TARGET int LOOP(dot_bf16)(const void *x, const void *y, int k, int64_t *sums)
{
	float a[BATCH], b[BATCH];

	LOOP(floats_of_bf16)(x, a);
	LOOP(floats_of_bf16)(y, b);
	return LOOP(dot_f32)(a, b, k, sums);
}

/* ---- batches of any finite numbers, by as many windows as needed ---- */

/* The greatest magnitude of n numbers. */
LOOP_FN double LOOP(largest)(const double *v, int n)
{
	VD most = {0};
	double m = 0;

	for (int i = 0; i < n; i += LANES) {
		VD size = (VD)((VU)AT_F64(v + i) & (INT64_MAX - (VU){0}));

		most = (VD)(((VU)(size > most) & (VU)size) | (~(VU)(size > most) & (VU)most));
	}
	for (int i = 0; i < LANES; i++)
		m = most[i] > m ? most[i] : m;
	return m;
}

/*
 * Adds n numbers below 2^1022 and overwrites them. It adds to a window for the greatest number,
 * then to a window for the greatest rest, until all rests are zero. *power becomes the exponent of
 * the greatest number's leading bit, unless all are zero.
 */
LOOP_FN void LOOP(spread)(struct cua_exact *e, double *v, int n, int *power)
{
	double m = LOOP(largest)(v, n);

	for (int first = 1; m > 0; first = 0) {
		uint64_t bits;
		struct LOOP(window) w;
		VU bad = {0};
		int at, k;

		memcpy(&bits, &m, sizeof(bits));
		at = (int)(bits >> 52) - 1023;
		if (first)
			*power = at;
		/* the lowest window holds every subnormal */
		k = m < 0x1p-1023 ? -1074 : at - 50;
		LOOP(open)(&w, k);
		for (int i = 0; i < n; i += LANES)
			AT_F64(v + i) = LOOP(step)(&w, AT_F64(v + i), &bad);
		cua__exact_insert_signed(e->digit, LOOP(total)(&w, (uint64_t)n), k);
		cua__exact_count(e, 1);
		m = LOOP(largest)(v, n);
	}
}

/*
 * Adds a batch, and sets *power as above. Returns 0 and adds nothing if the batch has an infinity,
 * a NaN, a number too large for the windows, or a product of f64 whose error may underflow.
 */
static LOOP_TARGET int LOOP(any_batch)(struct cua_exact *e, const struct kind *kind, const void *x,
				       const void *y, int *power)
{
	double v[2 * BATCH];
	float a[BATCH], b[BATCH];
	int n = BATCH;
	VU bad = {0};

	if (kind->type != CUA_F64) {
		const float *f = x, *g = y;

		if (kind->type != CUA_F32) {
			if (kind->type == CUA_F16)
				LOOP(floats_of_f16)(x, a);
			else
				LOOP(floats_of_bf16)(x, a);
			f = a;
		}
		if (kind->op == CUA_REDUCE_DOT && kind->type != CUA_F32) {
			if (kind->type == CUA_F16)
				LOOP(floats_of_f16)(y, b);
			else
				LOOP(floats_of_bf16)(y, b);
			g = b;
		}
		for (int i = 0; i < BATCH; i += LANES)
			AT_F64(v + i) = kind->op == CUA_REDUCE_DOT
						? LOAD_F32(f + i) * LOAD_F32(g + i)
						: LOAD_F32(f + i);
	} else if (kind->op != CUA_REDUCE_DOT) {
		memcpy(v, x, BATCH * sizeof(double));
	} else {
		const double *c = x, *d = y;

		n = 2 * BATCH;
		for (int i = 0; i < BATCH; i += LANES) {
			VD s = AT_F64(c + i), t = AT_F64(d + i), p = s * t;

			AT_F64(v + i) = p;
			AT_F64(v + BATCH + i) = LOOP(product_error)(s, t, p);
			bad |= (VU)(p < 0x1p-960) & (VU)(p > -0x1p-960) & (VU)(s != 0) &
			       (VU)(t != 0);
		}
	}
	for (int i = 0; i < n; i += LANES)
		bad |= ~((VU)(AT_F64(v + i) < 0x1p1022) & (VU)(AT_F64(v + i) > -0x1p1022));
	if (!LOOP(fits)(bad, (VU){0}))
		return 0;
	LOOP(spread)(e, v, n, power);
	return 1;
}

static const struct loops LOOP(loops) = {
	/* in the order of kinds[] */
	{LOOP(sum_f16), LOOP(dot_f16), LOOP(sum_bf16), LOOP(dot_bf16), LOOP(sum_f32), LOOP(dot_f32),
	 LOOP(sum_f64), LOOP(dot_f64)},
	LOOP(any_batch),
};

#undef LOOP
#undef LOOP_TARGET
#undef LANES
#undef LOOP_FMA
#undef LOOP_FN
#undef LOAD_F32
#undef AT_F64
#undef VD
#undef VU
