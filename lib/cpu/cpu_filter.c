/* SPDX-License-Identifier: MIT */
/*
 * The filter on the CPU. A worker claims a tile by a ticket, compacts its kept elements into a
 * private buffer, obtains their offset, and copies them there. Without order the offset is the
 * running total, advanced by a fetch-and-add. In order the worker publishes its count in the tile's
 * word, and sums the published counts of all lower tiles. Each worker sums for itself, so that no
 * worker waits for a worker that is itself waiting or copying.
 *
 * Memory order: the word of a tile is stored with release and loaded with acquire. A worker that
 *   knows its offset also knows that all lower tiles were read, so it may store over them. Hence
 *   filtering in place is correct.
 * Progress: running threads claim the tiles in order. A worker waits only for counts of tiles
 *   claimed earlier, and a count is published without waiting.
 */
#include "config.h"

#include "backend/filter_backend.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) &&                  \
	!defined(__SANITIZE_THREAD__)
#define HAVE_LEVELS 1
#include <immintrin.h>
#else
#define HAVE_LEVELS 0
#endif

/* Elements of a tile. A worker's buffers for it stay in the L2 cache. */
#define TILE 16384
/* Fewer elements than this per thread are not worth a thread. */
#define GRAIN 32768
/* Bytes that a vector store may write past the kept elements. */
#define SLACK 64
/* Prefetch distance in bytes. The hardware prefetcher stops at the end of a page. */
#define AHEAD 4096

struct job {
	const struct cua__filter *f;
	int level;           /* of the vector instructions */
	uint64_t first;      /* offset in the outputs before the call */
	uint64_t total_kept; /* of an ordered partition */
	uint64_t *words;     /* in order: a word for each tile, 0 or its count + 1 */
	char *buffers;       /* the workers' private buffers */
	/* each counter has a cache line */
	uint64_t ticket __attribute__((aligned(64)));
	uint64_t kept __attribute__((aligned(64)));
	uint64_t
		/* partition without order: rejected elements, which are stored from the end down */
		rejected;
};

/* Compacts the kept elements of n elements into out; returns their number. */
typedef size_t pack_fn(const struct cua__filter *f, const void *x, size_t n, void *out);
/* Writes a byte for each element: 1 if it is kept, else 0. */
typedef void keeps_fn(const struct cua__filter *f, const void *x, size_t n, uint8_t *keeps);
/*
 * Compacts the elements with a nonzero flag, or with other = 1 the elements with a zero flag;
 * returns their number.
 */
typedef size_t pack_flags_fn(const uint8_t *flags, int other, const void *x, size_t n, void *out);
/* Compacts the indexes of the elements in the same way; `first` is the index of x[0]. */
typedef size_t pack_indexes_fn(const uint8_t *flags, int other, uint64_t first, size_t n,
			       void *out);

/*
 * ---- scalar: each element is stored, and the output advances only if it is kept, so there is no
 * branch ----
 */

#define KEEPS_32(T, key, bits)                                                                     \
	(cua__filter_in32(sizeof(T), cua__filter_key32(key, sizeof(T), (uint32_t)(bits)), low32,   \
			  range32) ^                                                               \
	 inverted)
#define KEEPS_64(T, key, bits)                                                                     \
	((cua__filter_key64(key, (uint64_t)(bits)) - f->low <= f->range) ^ inverted)

#define DEFINE_PACK(name, T, key, KEEPS)                                                           \
	static size_t pack_##name(const struct cua__filter *f, const void *elements, size_t n,     \
				  void *kept)                                                      \
	{                                                                                          \
		const uint32_t low32 = (uint32_t)f->low, range32 = (uint32_t)f->range;             \
		const int inverted = f->inverted;                                                  \
		const T *x = elements;                                                             \
		T *out = kept;                                                                     \
		size_t count = 0;                                                                  \
                                                                                                   \
		(void)low32;                                                                       \
		(void)range32;                                                                     \
		for (size_t i = 0; i < n; i++) {                                                   \
			T v = x[i];                                                                \
                                                                                                   \
			out[count] = v;                                                            \
			count += (size_t)KEEPS(T, key, v);                                         \
		}                                                                                  \
		return count;                                                                      \
	}                                                                                          \
	static void keeps_##name(const struct cua__filter *f, const void *elements, size_t n,      \
				 uint8_t *keeps)                                                   \
	{                                                                                          \
		const uint32_t low32 = (uint32_t)f->low, range32 = (uint32_t)f->range;             \
		const int inverted = f->inverted;                                                  \
		const T *x = elements;                                                             \
                                                                                                   \
		(void)low32;                                                                       \
		(void)range32;                                                                     \
		for (size_t i = 0; i < n; i++)                                                     \
			keeps[i] = (uint8_t)KEEPS(T, key, x[i]);                                   \
	}
DEFINE_PACK(i8, uint8_t, CUA__FILTER_INTEGER, KEEPS_32)
DEFINE_PACK(i16, cua__raw16, CUA__FILTER_INTEGER, KEEPS_32)
DEFINE_PACK(i32, cua__raw32, CUA__FILTER_INTEGER, KEEPS_32)
DEFINE_PACK(i64, cua__raw64, CUA__FILTER_INTEGER, KEEPS_64)
DEFINE_PACK(f16, cua__raw16, CUA__FILTER_FLOAT, KEEPS_32)
DEFINE_PACK(f32, cua__raw32, CUA__FILTER_FLOAT, KEEPS_32)
DEFINE_PACK(f64, cua__raw64, CUA__FILTER_FLOAT, KEEPS_64)

/* Selection by flags. */
#define DEFINE_PACK_FLAGS(name, T)                                                                 \
	static size_t pack_flags_##name(const uint8_t *flags, int other, const void *elements,     \
					size_t n, void *kept)                                      \
	{                                                                                          \
		const T *x = elements;                                                             \
		T *out = kept;                                                                     \
		size_t count = 0;                                                                  \
                                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			out[count] = x[i];                                                         \
			count += (size_t)((flags[i] != 0) ^ other);                                \
		}                                                                                  \
		return count;                                                                      \
	}
DEFINE_PACK_FLAGS(8, uint8_t)
DEFINE_PACK_FLAGS(16, cua__raw16)
DEFINE_PACK_FLAGS(32, cua__raw32)
DEFINE_PACK_FLAGS(64, cua__raw64)
struct pair {
	uint64_t half[2];
} __attribute__((may_alias));
DEFINE_PACK_FLAGS(128, struct pair)

#define DEFINE_PACK_INDEXES(name, T)                                                               \
	static size_t pack_indexes_##name(const uint8_t *flags, int other, uint64_t first,         \
					  size_t n, void *kept)                                    \
	{                                                                                          \
		T *out = kept;                                                                     \
		size_t count = 0;                                                                  \
                                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			out[count] = (T)(first + i);                                               \
			count += (size_t)((flags[i] != 0) ^ other);                                \
		}                                                                                  \
		return count;                                                                      \
	}
DEFINE_PACK_INDEXES(32, cua__raw32)
DEFINE_PACK_INDEXES(64, cua__raw64)

static size_t count_flags_plain(const uint8_t *flags, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += flags[i] != 0;
	return count;
}

/* ---- vectors ---- */

#if HAVE_LEVELS

/* For each mask of 8 lanes: the numbers of the set lanes, compacted, a byte each. */
#define BIT(mask, i) ((uint64_t)(mask) >> (i)&1)
#define BELOW(mask, i)                                                                             \
	((i > 0 ? BIT(mask, 0) : 0) + (i > 1 ? BIT(mask, 1) : 0) + (i > 2 ? BIT(mask, 2) : 0) +    \
	 (i > 3 ? BIT(mask, 3) : 0) + (i > 4 ? BIT(mask, 4) : 0) + (i > 5 ? BIT(mask, 5) : 0) +    \
	 (i > 6 ? BIT(mask, 6) : 0))
#define LANE(mask, i) (BIT(mask, i) * i << 8 * BELOW(mask, i))
#define LANES(mask)                                                                                \
	(LANE(mask, 1) | LANE(mask, 2) | LANE(mask, 3) | LANE(mask, 4) | LANE(mask, 5) |           \
	 LANE(mask, 6) | LANE(mask, 7))
#define LANES_4(mask) LANES(mask), LANES((mask) + 1), LANES((mask) + 2), LANES((mask) + 3)
#define LANES_16(mask) LANES_4(mask), LANES_4((mask) + 4), LANES_4((mask) + 8), LANES_4((mask) + 12)
#define LANES_64(mask)                                                                             \
	LANES_16(mask), LANES_16((mask) + 16), LANES_16((mask) + 32), LANES_16((mask) + 48)
static const uint64_t compacted_lanes[256] = {LANES_64(0), LANES_64(64), LANES_64(128),
					      LANES_64(192)};

#define AVX2 __attribute__((target("avx2,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))
/* Levels with these can compress elements of 8 and 16 bits too. */
#define VBMI2 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,popcnt")))

/*
 * AVX2 has no unsigned comparison, so both sides are shifted by 2^31. The key of a negative float
 * has the bits below its sign flipped.
 */
#define DEFINE_PACK_AVX2_32(name, key)                                                             \
	AVX2 static size_t pack_##name##_avx2(const struct cua__filter *f, const void *elements,   \
					      size_t n, void *kept)                                \
	{                                                                                          \
		const __m256i move = _mm256_set1_epi32(INT32_MIN);                                 \
		const __m256i low = _mm256_set1_epi32((int)(uint32_t)f->low);                      \
		const __m256i range = _mm256_set1_epi32((int)((uint32_t)f->range ^ 0x80000000u));  \
		const unsigned flip = f->inverted ? 0 : 0xff;                                      \
		const char *x = elements;                                                          \
		char *out = kept;                                                                  \
		size_t i = 0;                                                                      \
                                                                                                   \
		for (; n - i >= 8; i += 8) {                                                       \
			__m256i v = _mm256_loadu_si256((const void *)(x + i * 4)), k = v;          \
			unsigned mask;                                                             \
                                                                                                   \
			if (key == CUA__FILTER_FLOAT)                                              \
				k = _mm256_xor_si256(                                              \
					v, _mm256_srli_epi32(_mm256_srai_epi32(v, 31), 1));        \
			k = _mm256_xor_si256(_mm256_sub_epi32(k, low), move);                      \
			mask = (unsigned)_mm256_movemask_ps(                                       \
				       _mm256_castsi256_ps(_mm256_cmpgt_epi32(k, range))) ^        \
			       flip;                                                               \
			_mm256_storeu_si256(                                                       \
				(void *)out,                                                       \
				_mm256_permutevar8x32_epi32(                                       \
					v, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(                 \
						   (long long)compacted_lanes[mask]))));           \
			out += (size_t)__builtin_popcount(mask) * 4;                               \
		}                                                                                  \
		return (size_t)(out - (char *)kept) / 4 + pack_##name(f, x + i * 4, n - i, out);   \
	}
DEFINE_PACK_AVX2_32(i32, CUA__FILTER_INTEGER)
DEFINE_PACK_AVX2_32(f32, CUA__FILTER_FLOAT)

/* The keys of a vector whose elements have that many bits. */
#define AS_IT_IS(v, bits) (v)
#define BY_SIGN(v, bits)                                                                           \
	_mm512_xor_si512(v, _mm512_srli_epi##bits(_mm512_srai_epi##bits(v, bits - 1), 1))
/* Masks of the nonzero flags, and stores of bytes 1 and 0. */
#define FLAGS_64(p) test_flags(_mm512_loadu_si512(p))
#define FLAGS_32(p)                                                                                \
	_mm256_test_epi8_mask(_mm256_loadu_si256((const void *)(p)), _mm256_set1_epi8(-1))
#define FLAGS_16(p) _mm_test_epi8_mask(_mm_loadu_si128((const void *)(p)), _mm_set1_epi8(-1))
#define FLAGS_8(p)                                                                                 \
	(_mm_test_epi8_mask(_mm_loadl_epi64((const void *)(p)), _mm_set1_epi8(-1)) & 0xffu)
#define STORE_64(p, mask) _mm512_storeu_si512(p, _mm512_maskz_set1_epi8(mask, 1))
#define STORE_32(p, mask) _mm256_storeu_si256((void *)(p), _mm256_maskz_set1_epi8(mask, 1))
#define STORE_16(p, mask) _mm_storeu_si128((void *)(p), _mm_maskz_set1_epi8(mask, 1))
#define STORE_8(p, mask) _mm_storel_epi64((void *)(p), _mm_maskz_set1_epi8(mask, 1))

AVX512 static inline uint64_t test_flags(__m512i flags)
{
	return _mm512_test_epi8_mask(flags, flags);
}

AVX512 static size_t count_flags_avx512(const uint8_t *flags, size_t n)
{
	size_t i = 0, count = 0;

	for (; n - i >= 64; i += 64)
		count += (size_t)__builtin_popcountll(FLAGS_64(flags + i));
	return count + count_flags_plain(flags + i, n - i);
}

#define DEFINE_PACK_AVX512(name, TARGET, bits, KEY, lanes)                                         \
	AVX512 static inline __mmask##lanes mask_##name(__m512i v, __m512i low, __m512i range)     \
	{                                                                                          \
		return _mm512_cmple_epu##bits##_mask(_mm512_sub_epi##bits(KEY(v, bits), low),      \
						     range);                                       \
	}                                                                                          \
	TARGET static size_t pack_##name##_avx512(const struct cua__filter *f,                     \
						  const void *elements, size_t n, void *kept)      \
	{                                                                                          \
		const __m512i low = _mm512_set1_epi##bits((int##bits##_t)f->low);                  \
		const __m512i range = _mm512_set1_epi##bits((int##bits##_t)f->range);              \
		const __mmask##lanes flip = (__mmask##lanes)(f->inverted ? -1 : 0);                \
		const char *x = elements;                                                          \
		char *out = kept;                                                                  \
		size_t i = 0;                                                                      \
                                                                                                   \
		for (; n - i >= lanes; i += lanes) {                                               \
			__m512i v = _mm512_loadu_si512(x + i * (bits / 8));                        \
			__mmask##lanes mask = (__mmask##lanes)(mask_##name(v, low, range) ^ flip); \
                                                                                                   \
			_mm_prefetch(x + i * (bits / 8) + AHEAD, _MM_HINT_T0);                     \
			_mm512_storeu_si512(out, _mm512_maskz_compress_epi##bits(mask, v));        \
			out += (size_t)__builtin_popcountll(mask) * (bits / 8);                    \
		}                                                                                  \
		return (size_t)(out - (char *)kept) / (bits / 8) +                                 \
		       pack_##name(f, x + i * (bits / 8), n - i, out);                             \
	}

#define DEFINE_KEEPS_AVX512(name, bits, lanes)                                                     \
	AVX512 static void keeps_##name##_avx512(const struct cua__filter *f,                      \
						 const void *elements, size_t n, uint8_t *keeps)   \
	{                                                                                          \
		const __m512i low = _mm512_set1_epi##bits((int##bits##_t)f->low);                  \
		const __m512i range = _mm512_set1_epi##bits((int##bits##_t)f->range);              \
		const __mmask##lanes flip = (__mmask##lanes)(f->inverted ? -1 : 0);                \
		const char *x = elements;                                                          \
		size_t i = 0;                                                                      \
                                                                                                   \
		for (; n - i >= lanes; i += lanes) {                                               \
			__m512i v = _mm512_loadu_si512(x + i * (bits / 8));                        \
                                                                                                   \
			_mm_prefetch(x + i * (bits / 8) + AHEAD, _MM_HINT_T0);                     \
			STORE_##lanes(keeps + i,                                                   \
				      (__mmask##lanes)(mask_##name(v, low, range) ^ flip));        \
		}                                                                                  \
		keeps_##name(f, x + i * (bits / 8), n - i, keeps + i);                             \
	}

#define DEFINE_AVX512(name, TARGET, bits, KEY, lanes)                                              \
	DEFINE_PACK_AVX512(name, TARGET, bits, KEY, lanes)                                         \
	DEFINE_KEEPS_AVX512(name, bits, lanes)
DEFINE_AVX512(i8, VBMI2, 8, AS_IT_IS, 64)
DEFINE_AVX512(i16, VBMI2, 16, AS_IT_IS, 32)
DEFINE_AVX512(i32, AVX512, 32, AS_IT_IS, 16)
DEFINE_AVX512(i64, AVX512, 64, AS_IT_IS, 8)
DEFINE_AVX512(f16, VBMI2, 16, BY_SIGN, 32)
DEFINE_AVX512(f32, AVX512, 32, BY_SIGN, 16)
DEFINE_AVX512(f64, AVX512, 64, BY_SIGN, 8)

#define DEFINE_PACK_FLAGS_AVX512(TARGET, bits, lanes)                                              \
	TARGET static size_t pack_flags_##bits##_avx512(                                           \
		const uint8_t *flags, int other, const void *elements, size_t n, void *kept)       \
	{                                                                                          \
		const __mmask##lanes flip = (__mmask##lanes)(other ? -1 : 0);                      \
		const char *x = elements;                                                          \
		char *out = kept;                                                                  \
		size_t i = 0;                                                                      \
                                                                                                   \
		for (; n - i >= lanes; i += lanes) {                                               \
			__mmask##lanes mask = (__mmask##lanes)(FLAGS_##lanes(flags + i) ^ flip);   \
                                                                                                   \
			_mm_prefetch(x + i * (bits / 8) + AHEAD, _MM_HINT_T0);                     \
			_mm512_storeu_si512(                                                       \
				out, _mm512_maskz_compress_epi##bits(                              \
					     mask, _mm512_loadu_si512(x + i * (bits / 8))));       \
			out += (size_t)__builtin_popcountll(mask) * (bits / 8);                    \
		}                                                                                  \
		return (size_t)(out - (char *)kept) / (bits / 8) +                                 \
		       pack_flags_##bits(flags + i, other, x + i * (bits / 8), n - i, out);        \
	}
DEFINE_PACK_FLAGS_AVX512(VBMI2, 8, 64)
DEFINE_PACK_FLAGS_AVX512(VBMI2, 16, 32)
DEFINE_PACK_FLAGS_AVX512(AVX512, 32, 16)
DEFINE_PACK_FLAGS_AVX512(AVX512, 64, 8)

#define DEFINE_PACK_INDEXES_AVX512(bits, lanes, ...)                                               \
	AVX512 static size_t pack_indexes_##bits##_avx512(const uint8_t *flags, int other,         \
							  uint64_t first, size_t n, void *kept)    \
	{                                                                                          \
		const __mmask##lanes flip = (__mmask##lanes)(other ? -1 : 0);                      \
		__m512i number = _mm512_add_epi##bits(_mm512_set1_epi##bits((int##bits##_t)first), \
						      __VA_ARGS__);                                \
		char *out = kept;                                                                  \
		size_t i = 0;                                                                      \
                                                                                                   \
		for (; n - i >= lanes; i += lanes) {                                               \
			__mmask##lanes mask = (__mmask##lanes)(FLAGS_##lanes(flags + i) ^ flip);   \
                                                                                                   \
			_mm512_storeu_si512(out, _mm512_maskz_compress_epi##bits(mask, number));   \
			out += (size_t)__builtin_popcountll(mask) * (bits / 8);                    \
			number = _mm512_add_epi##bits(number, _mm512_set1_epi##bits(lanes));       \
		}                                                                                  \
		return (size_t)(out - (char *)kept) / (bits / 8) +                                 \
		       pack_indexes_##bits(flags + i, other, first + i, n - i, out);               \
	}
DEFINE_PACK_INDEXES_AVX512(32, 16,
			   _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))
DEFINE_PACK_INDEXES_AVX512(64, 8, _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0))

#endif

/* ---- selection of the widest vectors that the machine has ---- */

enum { PLAIN, WITH_AVX2, WITH_AVX512, WITH_VBMI2, LEVELS };

static int level_of_machine(void)
{
#if HAVE_LEVELS
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		return __builtin_cpu_supports("avx512vbmi2") ? WITH_VBMI2 : WITH_AVX512;
	if (__builtin_cpu_supports("avx2"))
		return WITH_AVX2;
#endif
	return PLAIN;
}

#if HAVE_LEVELS
#define WHERE_LEVELS(...) __VA_ARGS__
#else
#define WHERE_LEVELS(...) NULL, NULL, NULL
#endif

/* NULL: use the level below. */
static const struct {
	enum cua__filter_key key;
	uint32_t size;
	pack_fn *pack[LEVELS];
	keeps_fn *keeps[LEVELS];
} kinds[] = {
#define KIND(key, size, name, ...)                                                                 \
	{                                                                                          \
		CUA__FILTER_##key, size, {pack_##name, WHERE_LEVELS(__VA_ARGS__)},                 \
		{                                                                                  \
			keeps_##name, WHERE_LEVELS(NULL, keeps_##name##_avx512, NULL)              \
		}                                                                                  \
	}
	KIND(INTEGER, 1, i8, NULL, NULL, pack_i8_avx512),
	KIND(INTEGER, 2, i16, NULL, NULL, pack_i16_avx512),
	KIND(INTEGER, 4, i32, pack_i32_avx2, pack_i32_avx512, NULL),
	KIND(INTEGER, 8, i64, NULL, pack_i64_avx512, NULL),
	KIND(FLOAT, 2, f16, NULL, NULL, pack_f16_avx512),
	KIND(FLOAT, 4, f32, pack_f32_avx2, pack_f32_avx512, NULL),
	KIND(FLOAT, 8, f64, NULL, pack_f64_avx512, NULL),
};

/* By flags: elements of 1, 2, 4, 8 and 16 bytes; indexes of 4 and 8 bytes. */
static pack_flags_fn *const flag_packs[][LEVELS] = {
	{pack_flags_8, WHERE_LEVELS(NULL, NULL, pack_flags_8_avx512)},
	{pack_flags_16, WHERE_LEVELS(NULL, NULL, pack_flags_16_avx512)},
	{pack_flags_32, WHERE_LEVELS(NULL, pack_flags_32_avx512, NULL)},
	{pack_flags_64, WHERE_LEVELS(NULL, pack_flags_64_avx512, NULL)},
	{pack_flags_128, NULL, NULL, NULL},
};
static pack_indexes_fn *const index_packs[][LEVELS] = {
	{pack_indexes_32, WHERE_LEVELS(NULL, pack_indexes_32_avx512, NULL)},
	{pack_indexes_64, WHERE_LEVELS(NULL, pack_indexes_64_avx512, NULL)},
};

static size_t kind_of(const struct cua__filter *f)
{
	size_t i = 0;

	while (kinds[i].key != f->key || kinds[i].size != f->size)
		i++;
	return i;
}

static pack_fn *pack_of(const struct job *job)
{
	pack_fn *const *packs = kinds[kind_of(job->f)].pack;
	int level = job->level;

	while (!packs[level])
		level--;
	return packs[level];
}

static size_t pack_flags(const struct job *job, const uint8_t *flags, int other, const void *x,
			 size_t n, void *kept)
{
	pack_flags_fn *const *packs = flag_packs[__builtin_ctz(job->f->size)];
	int level = job->level;

	while (!packs[level])
		level--;
	return packs[level](flags, other, x, n, kept);
}

static size_t pack_indexes(const struct job *job, const uint8_t *flags, int other, uint64_t first,
			   size_t n, void *kept)
{
	pack_indexes_fn *const *packs = index_packs[job->f->index_size == 8];
	int level = job->level;

	while (!packs[level])
		level--;
	return packs[level](flags, other, first, n, kept);
}

static size_t count_flags(const struct job *job, const uint8_t *flags, size_t n)
{
#if HAVE_LEVELS
	if (job->level >= WITH_AVX512)
		return count_flags_avx512(flags, n);
#endif
	(void)job;
	return count_flags_plain(flags, n);
}

/* ---- the workers ---- */

static uint64_t add_to(uint64_t *p, uint64_t n)
{
	return cua_port_fetch_add_u64(p, n, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/*
 * A worker's state in order: the elements kept by all tiles below `tile`, and by the worker's own
 * tiles.
 */
struct sum {
	uint64_t tile, kept, own;
};

/*
 * The offset of a tile's first kept element. Without order, other code may append to the buffer at
 * the same time, so the offset comes from the buffer's own demand.
 */
static uint64_t offset_of(struct job *job, uint64_t tile, size_t count, struct sum *sum)
{
	uint32_t polls = 0;

	if (!job->words)
		return job->f->demand ? add_to(job->f->demand, count) : add_to(&job->kept, count);
	cua_port_store_b64(&job->words[tile], count + 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
			   CUA_SPACE_GLOBAL);
	while (sum->tile < tile) {
		uint64_t word = cua_port_load_b64(&job->words[sum->tile], CUA_ACQUIRE,
						  CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

		if (word) {
			sum->kept += word - 1;
			sum->tile++;
		} else {
			/*
			 * a tile takes a few microseconds, so its word arrives soon if its worker
			 * runs
			 */
			cua_port_pause(++polls < 1000 ? 0 : 1000);
		}
	}
	sum->own += count;
	return job->first + sum->kept;
}

static void store(const struct cua__filter *f, void *array, uint32_t size, uint64_t first,
		  const void *from, size_t count)
{
	if (first >= f->capacity)
		return;
	if (count > f->capacity - first)
		count = (size_t)(f->capacity - first);
	memcpy((char *)array + first * size, from, count * size);
}

static const void *elements_at(const struct cua__filter *f, uint64_t i)
{
	return (const char *)f->x + i * f->size;
}

/*
 * The flags of a tile's elements: the caller's, or the comparison's, which are written to `room`.
 */
static const uint8_t *keeps_of(const struct job *job, uint64_t first, size_t n, uint8_t *room)
{
	const struct cua__filter *f = job->f;
	keeps_fn *const *keeps;
	int level = job->level;

	if (f->key == CUA__FILTER_FLAG)
		return f->flags + first;
	keeps = kinds[kind_of(f)].keeps;
	while (!keeps[level])
		level--;
	keeps[level](f, elements_at(f, first), n, room);
	return room;
}

static size_t tiles_of(const struct cua__filter *f)
{
	return (size_t)(f->n / TILE + (f->n % TILE != 0));
}

static size_t tile_room(const struct cua__filter *f)
{
	return f->n < TILE ? ((size_t)f->n + 63) / 64 * 64 : TILE;
}

/* A tile's elements or indexes, the slack after them, and a byte for each element. */
static size_t buffer_bytes(const struct cua__filter *f)
{
	size_t size = f->size > f->index_size ? f->size : f->index_size;

	return tile_room(f) * size + SLACK + tile_room(f);
}

/* Values only, selected by a comparison. */
static void compare_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	const struct cua__filter *f = job->f;
	pack_fn *pack = pack_of(job);
	char *buffer = job->buffers + worker * buffer_bytes(f);
	struct sum sum = {0, 0, 0};
	uint64_t tile;

	(void)workers;
	while ((tile = add_to(&job->ticket, 1)) < tiles_of(f)) {
		uint64_t first = tile * TILE;
		size_t n = f->n - first < TILE ? (size_t)(f->n - first) : TILE;
		size_t count = pack(f, elements_at(f, first), n, buffer);

		store(f, f->values, f->size, offset_of(job, tile, count, &sum), buffer, count);
	}
	add_to(&job->kept, sum.own);
}

/* Counts the kept elements; the order does not matter. */
static void count_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	const struct cua__filter *f = job->f;
	uint8_t room[4096];
	uint64_t count = 0;
	size_t at, end;

	cua__share((size_t)f->n, worker, workers, &at, &end);
	while (at < end) {
		size_t n = end - at < sizeof(room) ? end - at : sizeof(room);

		count += count_flags(job, keeps_of(job, at, n, room), n);
		at += n;
	}
	add_to(&job->total_kept, count);
}

/*
 * All other cases. The kept values are in the buffer before the tile's word is published, because
 * the filter may be in place.
 */
static void any_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	const struct cua__filter *f = job->f;
	char *values = job->buffers + worker * buffer_bytes(f);
	uint8_t *room = (uint8_t *)values + buffer_bytes(f) - tile_room(f);
	struct sum sum = {0, 0, 0};
	uint64_t tile;

	(void)workers;
	while ((tile = add_to(&job->ticket, 1)) < tiles_of(f)) {
		uint64_t first = tile * TILE, offset, rejected_offset;
		size_t n = f->n - first < TILE ? (size_t)(f->n - first) : TILE;
		const uint8_t *keeps = keeps_of(job, first, n, room);
		size_t count;

		if (f->values)
			count = pack_flags(job, keeps, 0, elements_at(f, first), n, values);
		else
			count = pack_indexes(job, keeps, 0, first, n, values);
		offset = offset_of(job, tile, count, &sum);
		if (f->values)
			store(f, f->values, f->size, offset, values, count);
		if (f->values && f->indexes)
			pack_indexes(job, keeps, 0, first, n, values);
		if (f->indexes)
			store(f, f->indexes, f->index_size, offset, values, count);
		if (!f->partition)
			continue;
		rejected_offset = job->words
					  ? job->total_kept + first - offset
					  : f->n - add_to(&job->rejected, n - count) - (n - count);
		if (f->values) {
			pack_flags(job, keeps, 1, elements_at(f, first), n, values);
			store(f, f->values, f->size, rejected_offset, values, n - count);
		}
		if (f->indexes) {
			pack_indexes(job, keeps, 1, first, n, values);
			store(f, f->indexes, f->index_size, rejected_offset, values, n - count);
		}
	}
	add_to(&job->kept, sum.own);
}

static unsigned workers_of(struct cua_context *ctx, const struct cua__filter *f)
{
	return cua__workers(ctx, (size_t)f->n, GRAIN);
}

static size_t words_bytes(const struct cua__filter *f)
{
	return f->ordered ? tiles_of(f) * sizeof(uint64_t) : 0;
}

/* The words of the tiles, then the buffers. */
static size_t cpu_scratch(struct cua_context *ctx, const struct cua__filter *f)
{
	return words_bytes(f) + workers_of(ctx, f) * buffer_bytes(f);
}

static enum cua_status cpu_filter(struct cua_context *ctx, const struct cua__filter *f,
				  void *scratch)
{
	struct job job = {.f = f, .level = level_of_machine()};
	unsigned workers = workers_of(ctx, f);
	int counts = !f->values && !f->indexes;

	job.buffers = (char *)scratch + words_bytes(f);
	if (f->ordered) {
		job.words = scratch;
		memset(job.words, 0, words_bytes(f));
		if (f->demand)
			job.first = cua_port_load_b64(f->demand, CUA_RELAXED, CUA_SCOPE_DEVICE,
						      CUA_SPACE_GLOBAL);
	}
	if (counts || (f->partition && f->ordered))
		cua__parallel(ctx, workers, count_work, &job);
	if (!counts)
		cua__parallel(ctx, workers,
			      f->key != CUA__FILTER_FLAG && !f->indexes && !f->partition
				      ? compare_work
				      : any_work,
			      &job);
	if (counts)
		job.kept = job.total_kept;
	if (!f->demand)
		*f->count = job.kept;
	else if (counts || job.words)
		add_to(f->demand, job.kept);
	return CUA_OK;
}

const struct cua__filter_ops cua__cpu_filter = {
	.scratch = cpu_scratch,
	.filter = cpu_filter,
};
