/* SPDX-License-Identifier: MIT */
/*
 * The loops of cpu_scatter.c over a batch. This file has no include guard: it is included once for
 * each instruction set, with LOOP(name), LOOP_TARGET and LOOP_COMPRESS defined. All loops have a
 * constant length and no branch, so that a compiler vectorizes them.
 */

#define LOOP_FUNCTION(name, ...) LOOP_TARGET static void LOOP(name)(__VA_ARGS__)

/* ---- rows of targets ---- */

/*
 * at[k] = the row of index k among the `span` rows from `first` on, or `span`. Returns how many are
 * among them. A negative index becomes huge.
 */
#define DEFINE_FIND(name, T, U)                                                                    \
	LOOP_TARGET static uint32_t LOOP(find_##name)(const void *index_, uint64_t first_,         \
						      uint32_t span, uint32_t *restrict at)        \
	{                                                                                          \
		const T *restrict index = index_;                                                  \
		const U first = (U)first_;                                                         \
		uint32_t inside = 0;                                                               \
                                                                                                   \
		for (unsigned k = 0; k < BATCH; k++) {                                             \
			const U row = (U)index[k] - first;                                         \
			const uint32_t t = row < span ? (uint32_t)row : span;                      \
                                                                                                   \
			at[k] = t;                                                                 \
			inside += t != span;                                                       \
		}                                                                                  \
		return inside;                                                                     \
	}
DEFINE_FIND(32, cua__raw32, uint32_t)
DEFINE_FIND(64, cua__raw64, uint64_t)

/*
 * Moves the rows of targets below `span` to the beginning. row[n] becomes `first` and the former
 * number of at[n].
 */
#if LOOP_COMPRESS
LOOP_FUNCTION(compact, uint32_t span, uint64_t first, uint32_t *restrict at, uint64_t *restrict row)
{
	const __m512i below = _mm512_set1_epi32((int)span), step = _mm512_set1_epi64(8);
	__m512i number = _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
					  _mm512_set1_epi64((long long)first));
	uint32_t n = 0;

	for (unsigned k = 0; k < BATCH; k += 16) {
		const __m512i t = _mm512_loadu_si512(at + k);
		const __mmask16 m = _mm512_cmplt_epu32_mask(t, below);
		uint32_t mask = m, low;

		/* GCC 12 may count bits beyond a mask that it has spilled */
		__asm__("" : "+r"(mask));
		low = (uint32_t)__builtin_popcount(mask & 255);
		_mm512_storeu_si512(at + n, _mm512_maskz_compress_epi32(m, t));
		_mm512_storeu_si512(row + n, _mm512_maskz_compress_epi64((__mmask8)m, number));
		number = _mm512_add_epi64(number, step);
		_mm512_storeu_si512(row + n + low,
				    _mm512_maskz_compress_epi64((__mmask8)(m >> 8), number));
		number = _mm512_add_epi64(number, step);
		n += (uint32_t)__builtin_popcount(mask);
	}
}
#else
LOOP_FUNCTION(compact, uint32_t span, uint64_t first, uint32_t *restrict at, uint64_t *restrict row)
{
	uint32_t n = 0;

	for (unsigned k = 0; k < BATCH; k++) {
		at[n] = at[k];
		row[n] = first + k;
		n += at[n] < span;
	}
}
#endif

/* Records of 64 bits: the lower and the upper half. */
LOOP_FUNCTION(split, const uint64_t *restrict records, uint32_t *restrict at, uint32_t *restrict x)
{
	for (unsigned k = 0; k < BATCH; k++) {
		at[k] = (uint32_t)records[k];
		x[k] = (uint32_t)(records[k] >> 32);
	}
}

/* ---- exponents ---- */

LOOP_FUNCTION(scan_f32, const float *restrict x, struct bounds *bounds)
{
	int32_t least = INT32_MAX, top = 0, special = 0;

	for (unsigned k = 0; k < BATCH; k++) {
		const int32_t bits = (int32_t)cua__bits_f32(x[k]), field = bits >> 23 & 255;
		const int32_t normal = field != 0, at = normal ? field : 1;
		const int32_t m = (bits & 0x7fffff) | normal << 23;
		const int32_t low = (int32_t)cua__bits_f32((float)(m & -m)) >> 23;
		const int32_t none = 0 - ((m == 0) | (field == 255));
		/* no sum of exponents is so great, and 0 is below the exponents */
		const int32_t l = (at + low) | (none & 0xffff), t = at & ~none;

		special |= field == 255;
		least = l < least ? l : least;
		top = t > top ? t : top;
	}
	bounds->special |= special;
	if (!top)
		return;
	/* the exponent of the lowest bit, and the weight of bit 0 of the mantissa */
	widen_bounds(bounds, least - 127 + CUA__EXACT_POINT - 127 - 23,
		     top + 24 + CUA__EXACT_POINT - 127 - 23);
}

LOOP_FUNCTION(scan_f64, const double *restrict x, struct bounds *bounds)
{
	int64_t least = INT64_MAX, top = 0, special = 0;

	for (unsigned k = 0; k < BATCH; k++) {
		const uint64_t bits = cua__bits_f64(x[k]);
		const int64_t field = (int64_t)(bits >> 52 & 2047);
		const int64_t normal = field != 0, at = normal ? field : 1;
		const uint64_t m = (bits & 0xfffffffffffff) | (uint64_t)normal << 52;
		/* the lowest bit as a double: 2^52 more and less */
		const double low =
			cua__from_bits_f64((m & (0 - m)) + 0x4330000000000000) - 4503599627370496.0;
		const int64_t none = 0 - (int64_t)((m == 0) | (field == 2047));
		const int64_t l = (at + (int64_t)(cua__bits_f64(low) >> 52)) | (none & 0xffff);
		const int64_t t = at & ~none;

		special |= field == 2047;
		least = l < least ? l : least;
		top = t > top ? t : top;
	}
	bounds->special |= special != 0;
	if (!top)
		return;
	widen_bounds(bounds, (int)least - 1023 + CUA__EXACT_POINT - 1023 - 52,
		     (int)top + 53 + CUA__EXACT_POINT - 1023 - 52);
}

/* ---- elements as floats ---- */

#define DEFINE_FLOATS(type, OF)                                                                    \
	LOOP_FUNCTION(floats_##type, const void *x_, float *restrict v)                            \
	{                                                                                          \
		const cua__raw16 *restrict x = x_;                                                 \
                                                                                                   \
		for (unsigned k = 0; k < BATCH; k++)                                               \
			v[k] = OF(x[k]);                                                           \
	}
DEFINE_FLOATS(f16, f32_of_f16)
DEFINE_FLOATS(bf16, f32_of_bf16)

/* ---- elements as words ---- */

/* Integers, or their keys. */
#define DEFINE_INTEGERS(type, T)                                                                   \
	LOOP_FUNCTION(integers_##type, const struct form *c, const void *x_, uint64_t *restrict v) \
	{                                                                                          \
		const T *restrict x = x_;                                                          \
		const uint64_t flip = c->flip, mask = c->mask;                                     \
                                                                                                   \
		for (unsigned k = 0; k < BATCH; k++)                                               \
			v[k] = ((uint64_t)(int64_t)x[k] ^ flip) & mask;                            \
	}
DEFINE_INTEGERS(i8, int8_t)
DEFINE_INTEGERS(u8, uint8_t)
DEFINE_INTEGERS(i16, int16_t)
DEFINE_INTEGERS(u16, uint16_t)
DEFINE_INTEGERS(i32, int32_t)
DEFINE_INTEGERS(u32, uint32_t)
DEFINE_INTEGERS(64, uint64_t)

/* Keys of floats of this type. */
#define DEFINE_KEYS(size, T)                                                                       \
	LOOP_FUNCTION(keys_##size, const struct form *c, const void *x_, uint64_t *restrict v)     \
	{                                                                                          \
		const T *restrict x = x_;                                                          \
		const uint64_t top = c->top, infinity = c->infinity, flip = c->flip;               \
                                                                                                   \
		for (unsigned k = 0; k < BATCH; k++) {                                             \
			const uint64_t bits = x[k];                                                \
			const uint64_t set = 0 - (uint64_t)((bits & top) != 0);                    \
			const uint64_t key = (bits ^ ((set & (2 * top - 1)) | top)) ^ flip;        \
                                                                                                   \
			v[k] = (bits & (top - 1)) > infinity ? CUA__SCATTER_KEY_NAN : key;         \
		}                                                                                  \
	}
DEFINE_KEYS(16, cua__raw16)
DEFINE_KEYS(32, cua__raw32)
DEFINE_KEYS(64, cua__raw64)

/* The products are integers. */
#define DEFINE_WORDS(type, T)                                                                      \
	LOOP_FUNCTION(words_##type, const struct form *c, const void *x_, uint64_t *restrict v)    \
	{                                                                                          \
		const T *restrict x = x_;                                                          \
		const double scale = c->scale;                                                     \
                                                                                                   \
		for (unsigned k = 0; k < BATCH; k++)                                               \
			v[k] = (uint64_t)(int64_t)((double)x[k] * scale);                          \
	}
DEFINE_WORDS(f32, float)
DEFINE_WORDS(f64, double)

/*
 * Two words of 64 bits: v[k] and v[BATCH + k]. A mantissa has no bits below position 0, even if it
 * is shifted right.
 */
#define DEFINE_WIDES(type, T, BITS, FRACTION, EXPONENT)                                            \
	LOOP_FUNCTION(wides_##type, const struct form *c, const void *x_, uint64_t *restrict v)    \
	{                                                                                          \
		const T *restrict x = x_;                                                          \
		const int64_t base = c->base;                                                      \
                                                                                                   \
		for (unsigned k = 0; k < BATCH; k++) {                                             \
			const uint64_t bits = BITS(x[k]);                                          \
			const uint64_t field = bits >> (FRACTION) & ((1u << (EXPONENT)) - 1);      \
			const uint64_t normal = field != 0;                                        \
			const uint64_t m =                                                         \
				(bits & (((uint64_t)1 << (FRACTION)) - 1)) | normal << (FRACTION); \
			const int64_t by = (int64_t)(field + 1 - normal) - base;                   \
			const uint64_t up = (uint64_t)by & 63, down = (uint64_t)(0 - by) & 63;     \
			const uint64_t left = m << up, right = m >> down;                          \
			/* in these cases `by` is negative, or below 64, or above */               \
			const uint64_t low = by < 0 ? right : by < 64 ? left : 0;                  \
			const uint64_t high = by <= 0 ? 0 : by < 64 ? right : left;                \
			const uint64_t sign = 0 - (bits >> ((FRACTION) + (EXPONENT)));             \
			const uint64_t l = (low ^ sign) - sign;                                    \
                                                                                                   \
			v[k] = l;                                                                  \
			v[BATCH + k] = (high ^ sign) + (sign & (l == 0));                          \
		}                                                                                  \
	}
DEFINE_WIDES(f32, float, cua__bits_f32, 23, 8)
DEFINE_WIDES(f64, double, cua__bits_f64, 52, 11)

/* ---- new values ---- */

/*
 * fresh[k] = the sum of sum[k] units and old[k], rounded once, by few operations. Otherwise slow[k]
 * is not 0. Returns the OR of all slow[k].
 *
 * The old value has to be a number of units. The sum is converted to a float, with a rounding. Then
 * the multiplication by the unit is exact if the result is a normal number.
 */
#define DEFINE_SUMS(type, T, FRACTION, EXPONENT, UP, DOUBLE, BITS, LEAST, MOST)                    \
	LOOP_TARGET static uint64_t LOOP(sums_##type)(                                             \
		const struct form *f, const uint64_t *restrict sum, const void *old_,              \
		int overwrite, uint64_t *restrict fresh_, uint64_t *restrict slow)                 \
	{                                                                                          \
		const T *restrict old = old_;                                                      \
		T *restrict fresh = (T *)(void *)fresh_;                                           \
		const uint64_t keep = overwrite ? 0 : ~(uint64_t)0, all = (1u << (EXPONENT)) - 1;  \
		const uint64_t minus = (uint64_t)1 << 63;                                          \
		const int64_t base = f->result_base;                                               \
		const double unit = f->unit;                                                       \
		uint64_t any = 0;                                                                  \
                                                                                                   \
		for (unsigned k = 0; k < BATCH; k++) {                                             \
			const uint64_t bits = old[k], v = sum[k];                                  \
			const uint64_t field = bits >> (FRACTION)&all, normal = field != 0;        \
			const uint64_t fraction = bits & (((uint64_t)1 << (FRACTION)) - 1);        \
			const uint64_t m = (fraction | normal << (FRACTION)) & keep;               \
			const int64_t up = (int64_t)(field + 1 - normal) - base;                   \
			const uint64_t left = (uint64_t)up & 63, right = (uint64_t)(0 - up) & 63;  \
			const uint64_t is_down = (uint64_t)(up >> 63), down = m >> right;          \
			const uint64_t moved = (m << left & ~is_down) | (down & is_down);          \
			const uint64_t lost = (down << right ^ m) & is_down;                       \
			const uint64_t far = (uint64_t)(up + 63) > (UP) + 63;                      \
			const uint64_t bad = lost | far | (field == all);                          \
			const uint64_t sign = 0 - (bits >> ((FRACTION) + (EXPONENT)));             \
			const uint64_t total = v + ((moved ^ sign) - sign);                        \
			const double d = DOUBLE((int64_t)total) * unit;                            \
			const uint64_t size = cua__bits_f64(d) & ~minus;                           \
			const uint64_t exact = (size >= (LEAST)) & (size < (MOST));                \
			const uint64_t small = v + (minus >> 2) < minus >> 1;                      \
			const uint64_t same = (0 - (uint64_t)(v == 0)) & keep;                     \
			const uint64_t quick = small & (exact | !total) & (!bad | !m);             \
                                                                                                   \
			slow[k] = (quick ^ 1) & ~same;                                             \
			any |= slow[k];                                                            \
			fresh[k] = (T)((bits & same) | (BITS(d) & ~same));                         \
		}                                                                                  \
		return any;                                                                        \
	}
#define OF_F32(v) ((double)(float)(v))
#define OF_F64(v) ((double)(v))
#define TO_F32(d) (cua__bits_f32((float)(d)))
/* magnitudes of normal numbers; a double must not have been rounded up to the least of them */
DEFINE_SUMS(f32, cua__raw32, 23, 8, 37, OF_F32, TO_F32, (uint64_t)(1023 - 126) << 52,
	    (uint64_t)(1023 + 128) << 52)
DEFINE_SUMS(f64, cua__raw64, 52, 11, 8, OF_F64, cua__bits_f64, ((uint64_t)1 << 52) + 1,
	    (uint64_t)2047 << 52)

static const struct loops LOOP(loops) = {
	.find = {LOOP(find_32), LOOP(find_64)},
	.compact = LOOP(compact),
	.split = LOOP(split),
	.scan_f32 = LOOP(scan_f32),
	.scan_f64 = LOOP(scan_f64),
	.floats = {LOOP(floats_f16), LOOP(floats_bf16)},
	.integers =
		{
			[CUA_I8] = LOOP(integers_i8),
			[CUA_U8] = LOOP(integers_u8),
			[CUA_I16] = LOOP(integers_i16),
			[CUA_U16] = LOOP(integers_u16),
			[CUA_I32] = LOOP(integers_i32),
			[CUA_U32] = LOOP(integers_u32),
			[CUA_I64] = LOOP(integers_64),
			[CUA_U64] = LOOP(integers_64),
		},
	.keys =
		{
			[CUA_F16] = LOOP(keys_16),
			[CUA_BF16] = LOOP(keys_16),
			[CUA_F32] = LOOP(keys_32),
			[CUA_F64] = LOOP(keys_64),
		},
	.words = {LOOP(words_f32), LOOP(words_f64)},
	.wides = {LOOP(wides_f32), LOOP(wides_f64)},
	.sums = {LOOP(sums_f32), LOOP(sums_f64)},
};

#undef LOOP
#undef LOOP_TARGET
#undef LOOP_FUNCTION
#undef DEFINE_FIND
#undef DEFINE_FLOATS
#undef DEFINE_INTEGERS
#undef DEFINE_KEYS
#undef DEFINE_WORDS
#undef DEFINE_WIDES
#undef DEFINE_SUMS
#undef OF_F32
#undef OF_F64
#undef TO_F32
#undef LOOP_COMPRESS
