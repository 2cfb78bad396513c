/* SPDX-License-Identifier: MIT */
/*
 * The filter on the CPU, in order. A worker takes a piece by a ticket, puts what it keeps of it behind each other in
 * a buffer of its own, and waits for its turn: the worker of the piece before has then told how many were kept so far.
 * It tells the next one, and copies.
 *
 * Memory order: the turn is handed on by a release and taken by an acquire. Whoever has it knows that all pieces
 *   before have been read, so that it may store over them: that makes it right in place.
 * Progress: pieces are taken by threads that run, and a worker waits for those with lower pieces, which wait for
 *   lower ones still.
 */
#include "config.h"

#include "filter.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) &&                    \
	!defined(__SANITIZE_THREAD__)
#define HAVE_LEVELS 1
#include <immintrin.h>
#else
#define HAVE_LEVELS 0
#endif

/* Elements of a piece. What one worker has of it stays in its first cache. */
#define PIECE 4096
/* Fewer elements than this are not worth a thread. */
#define GRAIN 32768
/* Bytes that a vector may store behind what it keeps. */
#define SLACK 64

struct job {
	const struct cua__filter *f;
	uint64_t all_kept; /* of a partition */
	/* one line each: the tickets, and the turn with what goes with it */
	uint64_t ticket __attribute__((aligned(64)));
	uint64_t turn __attribute__((aligned(64)));
	uint64_t kept;
};

/* Puts what is kept of n elements behind each other, and returns how many there are. */
typedef size_t pack_fn(const struct cua__filter *f, const void *x, size_t n, void *out);

/* ---- one element after the other: stored, and kept by moving on, which needs no branch ---- */

#define KEEPS_32(T, key, bits)                                                                     \
	(cua__filter_in32(sizeof(T), cua__filter_key32(key, sizeof(T), (uint32_t)(bits)), low32, range32) ^ \
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

/* ---- in vectors ---- */

#if HAVE_LEVELS

/* For each mask of 8 lanes, the numbers of those whose bits are set behind each other, a byte each. */
#define BIT(mask, i) ((uint64_t)(mask) >> (i)&1)
#define BELOW(mask, i)                                                                             \
	((i > 0 ? BIT(mask, 0) : 0) + (i > 1 ? BIT(mask, 1) : 0) + (i > 2 ? BIT(mask, 2) : 0) +    \
	 (i > 3 ? BIT(mask, 3) : 0) + (i > 4 ? BIT(mask, 4) : 0) + (i > 5 ? BIT(mask, 5) : 0) +    \
	 (i > 6 ? BIT(mask, 6) : 0))
#define PLACE(mask, i) (BIT(mask, i) * i << 8 * BELOW(mask, i))
#define PLACES(mask)                                                                               \
	(PLACE(mask, 1) | PLACE(mask, 2) | PLACE(mask, 3) | PLACE(mask, 4) | PLACE(mask, 5) |      \
	 PLACE(mask, 6) | PLACE(mask, 7))
#define PLACES_4(mask) PLACES(mask), PLACES((mask) + 1), PLACES((mask) + 2), PLACES((mask) + 3)
#define PLACES_16(mask) PLACES_4(mask), PLACES_4((mask) + 4), PLACES_4((mask) + 8), PLACES_4((mask) + 12)
#define PLACES_64(mask) PLACES_16(mask), PLACES_16((mask) + 16), PLACES_16((mask) + 32), PLACES_16((mask) + 48)
static const uint64_t places[256] = {PLACES_64(0), PLACES_64(64), PLACES_64(128), PLACES_64(192)};

#define AVX2 __attribute__((target("avx2,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))

/*
 * There is no comparison of unsigned numbers in AVX2, so both sides move by 2^31 or 2^63. A float's key flips the
 * bits below the sign of negative ones.
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
				k = _mm256_xor_si256(v, _mm256_srli_epi32(_mm256_srai_epi32(v, 31), 1)); \
			k = _mm256_xor_si256(_mm256_sub_epi32(k, low), move);                      \
			mask = (unsigned)_mm256_movemask_ps(                                       \
				       _mm256_castsi256_ps(_mm256_cmpgt_epi32(k, range))) ^ flip;  \
			_mm256_storeu_si256((void *)out,                                           \
					    _mm256_permutevar8x32_epi32(                           \
						    v, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(     \
							       (long long)places[mask]))));        \
			out += (size_t)__builtin_popcount(mask) * 4;                               \
		}                                                                                  \
		return (size_t)(out - (char *)kept) / 4 + pack_##name(f, x + i * 4, n - i, out);   \
	}
DEFINE_PACK_AVX2_32(i32, CUA__FILTER_INTEGER)
DEFINE_PACK_AVX2_32(f32, CUA__FILTER_FLOAT)

#define DEFINE_PACK_AVX512(name, bits, key, lanes)                                                 \
	AVX512 static size_t pack_##name##_avx512(const struct cua__filter *f,                     \
						  const void *elements, size_t n, void *kept)      \
	{                                                                                          \
		const __m512i low = _mm512_set1_epi##bits((int##bits##_t)f->low);                  \
		const __m512i range = _mm512_set1_epi##bits((int##bits##_t)f->range);              \
		const unsigned flip = f->inverted ? (1u << lanes) - 1 : 0;                         \
		const char *x = elements;                                                          \
		char *out = kept;                                                                  \
		size_t i = 0;                                                                      \
                                                                                                   \
		for (; n - i >= lanes; i += lanes) {                                               \
			__m512i v = _mm512_loadu_si512(x + i * (bits / 8)), k = v;                 \
			unsigned mask;                                                             \
                                                                                                   \
			if (key == CUA__FILTER_FLOAT)                                              \
				k = _mm512_xor_si512(v, _mm512_srli_epi##bits(                     \
								_mm512_srai_epi##bits(v, bits - 1), 1)); \
			k = _mm512_sub_epi##bits(k, low);                                          \
			mask = (unsigned)_mm512_cmple_epu##bits##_mask(k, range) ^ flip;           \
			_mm512_storeu_si512(out, _mm512_maskz_compress_epi##bits(                  \
							 (__mmask##lanes)mask, v));                \
			out += (size_t)__builtin_popcount(mask) * (bits / 8);                      \
		}                                                                                  \
		return (size_t)(out - (char *)kept) / (bits / 8) +                                 \
		       pack_##name(f, x + i * (bits / 8), n - i, out);                             \
	}
DEFINE_PACK_AVX512(i32, 32, CUA__FILTER_INTEGER, 16)
DEFINE_PACK_AVX512(f32, 32, CUA__FILTER_FLOAT, 16)
DEFINE_PACK_AVX512(i64, 64, CUA__FILTER_INTEGER, 8)
DEFINE_PACK_AVX512(f64, 64, CUA__FILTER_FLOAT, 8)

#endif

static const struct {
	enum cua__filter_key key;
	uint32_t size;
	pack_fn *pack[3]; /* from the narrowest to the widest vectors; NULL as the one before */
	void (*keeps)(const struct cua__filter *f, const void *x, size_t n, uint8_t *keeps);
} kinds[] = {
#if HAVE_LEVELS
#define KIND(key, size, name, avx2, avx512) {CUA__FILTER_##key, size, {pack_##name, avx2, avx512}, keeps_##name}
#else
#define KIND(key, size, name, avx2, avx512) {CUA__FILTER_##key, size, {pack_##name, NULL, NULL}, keeps_##name}
#endif
	KIND(INTEGER, 1, i8, NULL, NULL),
	KIND(INTEGER, 2, i16, NULL, NULL),
	KIND(INTEGER, 4, i32, pack_i32_avx2, pack_i32_avx512),
	KIND(INTEGER, 8, i64, NULL, pack_i64_avx512),
	KIND(FLOAT, 2, f16, NULL, NULL),
	KIND(FLOAT, 4, f32, pack_f32_avx2, pack_f32_avx512),
	KIND(FLOAT, 8, f64, NULL, pack_f64_avx512),
};

static size_t kind_of(const struct cua__filter *f)
{
	size_t i = 0;

	while (kinds[i].key != f->key || kinds[i].size != f->size)
		i++;
	return i;
}

static pack_fn *pack_of(const struct cua__filter *f)
{
	size_t kind = kind_of(f);
	int level = 0;

#if HAVE_LEVELS
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		level = 2;
	else if (__builtin_cpu_supports("avx2"))
		level = 1;
#endif
	while (!kinds[kind].pack[level])
		level--;
	return kinds[kind].pack[level];
}

/* ---- by flags ---- */

/* What is kept of n elements, or with other = 1 what is not, by bytes that are not 0 where one is kept. */
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

static size_t pack_flags(uint32_t size, const uint8_t *flags, int other, const void *x, size_t n,
			 void *kept)
{
	switch (size) {
	case 1: return pack_flags_8(flags, other, x, n, kept);
	case 2: return pack_flags_16(flags, other, x, n, kept);
	case 4: return pack_flags_32(flags, other, x, n, kept);
	case 8: return pack_flags_64(flags, other, x, n, kept);
	default: return pack_flags_128(flags, other, x, n, kept);
	}
}

/* The numbers of what is kept, or not, from `first` on. */
static size_t pack_indexes(uint32_t size, const uint8_t *flags, int other, uint64_t first, size_t n,
			   void *kept)
{
	cua__raw32 *narrow = kept;
	cua__raw64 *wide = kept;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (size == 4)
			narrow[count] = (uint32_t)(first + i);
		else
			wide[count] = first + i;
		count += (size_t)((flags[i] != 0) ^ other);
	}
	return count;
}

static size_t count_flags(const uint8_t *flags, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += flags[i] != 0;
	return count;
}

/* ---- the workers ---- */

static uint64_t load(uint64_t *p, enum cua_order order)
{
	return cua_port_load_b64(p, order, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static uint64_t take(struct job *job)
{
	return cua_port_fetch_add_u64(&job->ticket, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/*
 * Waits for the turn of a piece and tells the next one. Returns how many were kept before, or the place in a buffer,
 * to which others may append too unless it has to be in order.
 */
static uint64_t kept_before(struct job *job, uint64_t piece, size_t count)
{
	uint64_t before;
	uint32_t looks = 0;

	if (job->f->demand && !job->f->ordered)
		return cua_port_fetch_add_u64(job->f->demand, count, CUA_RELAXED, CUA_SCOPE_DEVICE,
					      CUA_SPACE_GLOBAL);

	while (load(&job->turn, CUA_ACQUIRE) != piece)
		if (++looks > 100)
			cua_port_pause(1000);
	before = CUA_READ(job->kept);
	CUA_WRITE(job->kept, before + count);
	cua_port_store_b64(&job->turn, piece + 1, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	return before;
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

/* Which elements of a piece are kept: the flags given, or those of the comparison, put into `room`. */
static const uint8_t *keeps_of(const struct cua__filter *f, uint64_t first, size_t n, uint8_t *room)
{
	size_t kind;

	if (f->key == CUA__FILTER_FLAG)
		return f->flags + first;
	kind = kind_of(f);
	kinds[kind].keeps(f, elements_at(f, first), n, room);
	return room;
}

/* Values alone, by comparison. */
static void compare_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	const struct cua__filter *f = job->f;
	pack_fn *pack = pack_of(f);
	char buffer[PIECE * 8 + SLACK] __attribute__((aligned(64)));
	uint64_t piece;

	(void)worker;
	(void)workers;
	while ((piece = take(job)) < (f->n + PIECE - 1) / PIECE) {
		uint64_t first = piece * PIECE;
		size_t n = f->n - first < PIECE ? (size_t)(f->n - first) : PIECE;
		size_t count = pack(f, elements_at(f, first), n, buffer);

		store(f, f->values, f->size, kept_before(job, piece, count), buffer, count);
	}
}

/* How many are kept, in any order. */
static void count_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	const struct cua__filter *f = job->f;
	uint8_t room[PIECE];
	uint64_t count = 0;
	size_t at, end;

	cua__share((size_t)f->n, worker, workers, &at, &end);
	while (at < end) {
		size_t n = end - at < PIECE ? end - at : PIECE;

		count += count_flags(keeps_of(f, at, n, room), n);
		at += n;
	}
	cua_port_add_u64(&job->all_kept, count, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Everything else. All is put into buffers before the turn is handed on, since the filter may be in place. */
static void any_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *job = arg;
	const struct cua__filter *f = job->f;
	char values[PIECE * 16 + SLACK] __attribute__((aligned(64)));
	uint8_t room[PIECE];
	uint64_t piece;

	(void)worker;
	(void)workers;
	while ((piece = take(job)) < (f->n + PIECE - 1) / PIECE) {
		uint64_t first = piece * PIECE, before, others;
		size_t n = f->n - first < PIECE ? (size_t)(f->n - first) : PIECE;
		const uint8_t *keeps = keeps_of(f, first, n, room);
		size_t count = count_flags(keeps, n);

		if (f->values)
			pack_flags(f->size, keeps, 0, elements_at(f, first), n, values);
		before = kept_before(job, piece, count);
		others = job->all_kept + first - before;
		if (f->values)
			store(f, f->values, f->size, before, values, count);
		if (f->indexes) {
			pack_indexes(f->index_size, keeps, 0, first, n, values);
			store(f, f->indexes, f->index_size, before, values, count);
		}
		if (!f->partition)
			continue;
		if (f->values) {
			pack_flags(f->size, keeps, 1, elements_at(f, first), n, values);
			store(f, f->values, f->size, others, values, n - count);
		}
		if (f->indexes) {
			pack_indexes(f->index_size, keeps, 1, first, n, values);
			store(f, f->indexes, f->index_size, others, values, n - count);
		}
	}
}

static size_t cpu_scratch(struct cua_context *ctx, const struct cua__filter *f)
{
	(void)ctx;
	(void)f;
	return 0;
}

static enum cua_status cpu_filter(struct cua_context *ctx, const struct cua__filter *f, void *scratch)
{
	struct job job = {.f = f};
	unsigned workers = cua__workers(ctx, (size_t)f->n, GRAIN);
	int counts = !f->values && !f->indexes;
	uint64_t kept;

	(void)scratch;
	if (f->demand)
		job.kept = cua_port_load_b64(f->demand, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	kept = job.kept;
	if (counts || f->partition)
		cua__parallel(ctx, workers, count_work, &job);
	if (!counts)
		cua__parallel(ctx, workers,
			      f->key != CUA__FILTER_FLAG && !f->indexes && !f->partition ? compare_work
											  : any_work,
			      &job);
	kept = counts ? job.all_kept : job.kept - kept;
	if (f->demand)
		cua_port_add_u64(f->demand, kept, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		*f->count = kept;
	return CUA_OK;
}

const struct cua__filter_ops cua__cpu_filter = {
	.scratch = cpu_scratch,
	.filter = cpu_filter,
};
