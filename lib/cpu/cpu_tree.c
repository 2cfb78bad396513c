/* SPDX-License-Identifier: MIT */
/*
 * Reductions on the CPU in the order of tree.h, and for mode FAST in an order that is faster on a
 * CPU. A worker reduces the columns of a chunk side by side, several rows in each step. The
 * compiler vectorizes the loops over the columns.
 */
#include "config.h"

#include "cpu/float_mode.h"
#include "kernels/tree.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) &&                  \
	!defined(__SANITIZE_THREAD__)
/*
 * Loops with wider vectors than the library's baseline; the processor's level is chosen at run
 * time.
 */
#define HAVE_LEVELS 1
#include <immintrin.h>
#endif

#define FITS(kind, ...)                                                                            \
	CUA_STATIC_ASSERT(sizeof(cua__tree_value_##kind) <= CUA__TREE_VALUE_BYTES, "see tree.h");
CUA__TREE_LIST(FITS)

/* A thread is started only for at least this many bytes. */
#define GRAIN_BYTES 131072

/*
 * Mode FAST doubles the rows of a strip up to FAST_ROWS, while each worker keeps FAST_CHUNKS
 * chunks.
 */
#define FAST_ROWS 128
#define FAST_CHUNKS 8
/* Packs per row in mode FAST. Short rows make the loops read memory nearly front to back. */
#define FAST_SUM_PACKS 16
#define FAST_DOT_PACKS 8

typedef void chunk_fn(const struct cua__reduce *r, const struct cua__tree_shape *shape,
		      uint64_t chunk, void *partial);

/*
 * The elements from index `first` on. An empty array may be NULL, and adding to NULL is undefined.
 */
static inline const void *elements_from(const void *p, uint64_t first, size_t size)
{
	return first ? (const char *)p + first * size : p;
}

/* The second array. Without one, the first array, so that every kind can compute an address. */
static inline const void *second_array(const struct cua__reduce *r)
{
	return r->y ? r->y : r->x;
}

#define CUA__TREE_TEMPLATE "cpu/cpu_tree.tmpl.h"
#define CUA__TREE_WITH_ALL
#include "kernels/tree_kinds.tmpl.h"

/* packs: packs per row, 32 in the tree. The number of elements of a strip does not depend on it. */
#define DEFINE_CHUNK(name, target, kind, packs)                                                    \
	target static void name(const struct cua__reduce *r, const struct cua__tree_shape *shape,  \
				uint64_t chunk, void *partial)                                     \
	{                                                                                          \
		enum { WIDTH = packs * 16 / sizeof(cua__tree_element_##kind) };                    \
		const struct cua__tree_shape narrow = {shape->n, shape->rows * (32 / packs), 0};   \
		uint64_t size = narrow.rows * WIDTH, first = chunk * CUA__TREE_WARPS * size;       \
		cua__tree_value_##kind v[CUA__TREE_WARPS], total;                                  \
		unsigned used = 0;                                                                 \
                                                                                                   \
		do {                                                                               \
			uint32_t left, rows = cua__tree_strip(&narrow, first, WIDTH, &left);       \
                                                                                                   \
			/* most strips are whole, and short in the tree */                         \
			v[used++] = left || packs < 32 ? strip_##kind(r, first, rows, left, packs) \
						       : strip_##kind(r, first, rows, 0, packs);   \
			first += size;                                                             \
		} while (used < CUA__TREE_WARPS && first < shape->n);                              \
		total = values_##kind(v, CUA__TREE_WARPS / 2, 1, used);                            \
		memcpy(partial, &total, sizeof(total));                                            \
	}

/*
 * The same source for each vector width that makes it faster. Builds with sanitizers have only the
 * baseline, because the wide loops compile slowly there.
 */
#define TREE_CHUNK(level, target, kind) DEFINE_CHUNK(chunk_##kind##_##level, target, kind, 32)

#define DEFINE_PLAIN(kind, ...) TREE_CHUNK(plain, , kind)
CUA__TREE_LIST(DEFINE_PLAIN)
#if HAVE_LEVELS
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define DEFINE_AVX2(kind, ...) TREE_CHUNK(avx2, AVX2, kind)
#define FAST_PACKS(kind) (cua__tree_two_##kind ? FAST_DOT_PACKS : FAST_SUM_PACKS)
/*
 * Kinds with a hand-written AVX-512 function below. For the other kinds SECOND expands to
 * DEFINE_CHUNK.
 */
#define NO_CHUNK(...)
#define OWN_sum_b32 , NO_CHUNK
#define OWN_sum_f16 , NO_CHUNK
#define OWN_dot_b32 , NO_CHUNK
#define OWN_dot_f16 , NO_CHUNK
#define SECOND(...) SECOND_OF(__VA_ARGS__, )
#define SECOND_OF(first, second, ...) second
#define DEFINE_WIDE(kind, ...)                                                                     \
	TREE_CHUNK(avx512, AVX512, kind)                                                           \
	DEFINE_CHUNK(fast_##kind##_avx2, AVX2, kind, FAST_PACKS(kind))                             \
	SECOND(OWN_##kind, DEFINE_CHUNK)                                                           \
	(fast_##kind##_avx512, AVX512, kind, FAST_PACKS(kind))
CUA__TREE_LIST(DEFINE_AVX2)
CUA__TREE_SUMS(DEFINE_WIDE)
CUA__TREE_DOTS(DEFINE_WIDE)

/*
 * Mode FAST by intrinsics, because compilers do not vectorize these loops well: the conversion of
 * f16, and 64-bit sums and products of 32-bit integers.
 */
#define FAST_VECTORS 4

/*
 * The number of elements of a chunk, for elements of `size` bytes; *first is the chunk's first
 * element.
 */
static inline uint64_t fast_extent(const struct cua__tree_shape *shape, uint64_t chunk, size_t size,
				   uint64_t *first)
{
	const uint64_t elements = CUA__TREE_WARPS * shape->rows * (32 * 16 / size);

	*first = chunk * elements;
	return shape->n - *first < elements ? shape->n - *first : elements;
}

AVX512 static inline __attribute__((always_inline)) void
fast_halves(const struct cua__reduce *r, const struct cua__tree_shape *shape, uint64_t chunk,
	    void *partial, int dot)
{
	/*
	 * a float column sums at most as many elements as a column of FAST_ROWS rows of
	 * FAST_DOT_PACKS packs
	 */
	enum {
		N = 16,
		COLUMNS = FAST_VECTORS * N,
		STRIP = COLUMNS * FAST_ROWS * (32 / FAST_DOT_PACKS)
	};
	const __m256i keep = _mm256_set1_epi16(dot ? -1 : (int16_t)r->keep);
	uint64_t first, n = fast_extent(shape, chunk, sizeof(struct cua_f16), &first);
	const struct cua_f16 *x = elements_from(r->x, first, sizeof(*x));
	const struct cua_f16 *y = elements_from(second_array(r), first, sizeof(*y));
	double total = 0;

	for (uint64_t k = 0, end; k < n; k = end) {
		__m512 v[FAST_VECTORS];

		end = n - k < STRIP ? n : k + STRIP;
		for (size_t j = 0; j < FAST_VECTORS; j++)
			v[j] = _mm512_setzero_ps();
		for (; end - k >= COLUMNS; k += COLUMNS)
			for (size_t j = 0; j < FAST_VECTORS; j++) {
				__m256i a = _mm256_loadu_si256((const void *)(x + k + j * N));
				__m256i b = _mm256_loadu_si256((const void *)(y + k + j * N));

				v[j] = _mm512_add_ps(
					v[j],
					dot ? _mm512_mul_ps(_mm512_cvtph_ps(a), _mm512_cvtph_ps(b))
					    : _mm512_cvtph_ps(_mm256_and_si256(a, keep)));
			}
		for (size_t j = 0; j < FAST_VECTORS; j++)
			for (size_t l = 0; l < N; l++)
				total += (double)v[j][l];
		for (; k < end; k++)
			total += (double)(dot ? cua__tree_fold_dot_f16(r, 0, x[k], y[k], 0)
					      : cua__tree_fold_sum_f16(r, 0, x[k], x[k], 0));
	}
	memcpy(partial, &total, sizeof(total));
}

AVX512 static void fast_sum_f16_avx512(const struct cua__reduce *r,
				       const struct cua__tree_shape *shape, uint64_t chunk,
				       void *partial)
{
	fast_halves(r, shape, chunk, partial, 0);
}

AVX512 static void fast_dot_f16_avx512(const struct cua__reduce *r,
				       const struct cua__tree_shape *shape, uint64_t chunk,
				       void *partial)
{
	fast_halves(r, shape, chunk, partial, 1);
}

AVX512 static inline __attribute__((always_inline)) uint64_t
fast_products(const struct cua__reduce *r, const uint32_t *x, const uint32_t *y, uint64_t n,
	      int has_sign)
{
	enum { N = 16 };
	__m512i even[FAST_VECTORS / 2], odd[FAST_VECTORS / 2];
	uint64_t total = 0, k = 0;

	for (size_t j = 0; j < FAST_VECTORS / 2; j++)
		even[j] = odd[j] = _mm512_setzero_si512();
	for (; n - k >= FAST_VECTORS / 2 * N; k += FAST_VECTORS / 2 * N)
		for (size_t j = 0; j < FAST_VECTORS / 2; j++) {
			__m512i a = _mm512_loadu_si512(x + k + j * N),
				b = _mm512_loadu_si512(y + k + j * N);
			__m512i c = _mm512_srli_epi64(a, 32), d = _mm512_srli_epi64(b, 32);

			even[j] = _mm512_add_epi64(even[j], has_sign ? _mm512_mul_epi32(a, b)
								     : _mm512_mul_epu32(a, b));
			odd[j] = _mm512_add_epi64(odd[j], has_sign ? _mm512_mul_epi32(c, d)
								   : _mm512_mul_epu32(c, d));
		}
	for (size_t j = 0; j < FAST_VECTORS / 2; j++)
		total += (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(even[j], odd[j]));
	for (; k < n; k++)
		total = cua__tree_fold_dot_b32(r, total, x[k], y[k], 0);
	return total;
}

AVX512 static void fast_sum_b32_avx512(const struct cua__reduce *r,
				       const struct cua__tree_shape *shape, uint64_t chunk,
				       void *partial)
{
	enum { N = 16 };
	const __m512i sign = _mm512_set1_epi32((int)r->sign), low = _mm512_set1_epi64(0xffffffff);
	const __m512i absolute = _mm512_set1_epi32((int)r->absolute);
	uint64_t first, n = fast_extent(shape, chunk, sizeof(uint32_t), &first), total = 0, k = 0;
	const uint32_t *x = elements_from(r->x, first, sizeof(*x));
	struct cua__wide sum;
	__m512i v[FAST_VECTORS];

	for (size_t j = 0; j < FAST_VECTORS; j++)
		v[j] = _mm512_setzero_si512();
	for (; n - k >= FAST_VECTORS * N; k += FAST_VECTORS * N)
		for (size_t j = 0; j < FAST_VECTORS; j++) {
			__m512i a = _mm512_loadu_si512(x + k + j * N);
			__m512i turn = _mm512_and_si512(_mm512_srai_epi32(a, 31), absolute);

			a = _mm512_xor_si512(_mm512_sub_epi32(_mm512_xor_si512(a, turn), turn),
					     sign);
			v[j] = _mm512_add_epi64(v[j], _mm512_add_epi64(_mm512_and_si512(a, low),
								       _mm512_srli_epi64(a, 32)));
		}
	for (size_t j = 0; j < FAST_VECTORS; j++)
		total += (uint64_t)_mm512_reduce_add_epi64(v[j]);
	for (; k < n; k++)
		total = cua__tree_fold_sum_b32(r, total, x[k], x[k], 0);
	sum = cua__tree_sum_b32_widen(r, total, n, first, 0);
	memcpy(partial, &sum, sizeof(sum));
}

AVX512 static void fast_dot_b32_avx512(const struct cua__reduce *r,
				       const struct cua__tree_shape *shape, uint64_t chunk,
				       void *partial)
{
	uint64_t first, n = fast_extent(shape, chunk, sizeof(uint32_t), &first), total;
	const uint32_t *x = elements_from(r->x, first, sizeof(*x)),
		       *y = elements_from(r->y, first, sizeof(*y));

	total = r->sign ? fast_products(r, x, y, n, 1) : fast_products(r, x, y, n, 0);
	memcpy(partial, &total, sizeof(total));
}
#endif

static const struct {
	size_t element, partial;
	/* from the narrowest to the widest vectors; NULL: use the previous level */
	chunk_fn *chunk[3];
	chunk_fn *fast[3];
	void (*finish)(const struct cua__reduce *r, const struct cua__tree_shape *shape,
		       const void *partials, chunk_fn *of_chunk);
} kinds[] = {
#if HAVE_LEVELS
#define TREE_LEVELS(kind, widest)                                                                  \
	{                                                                                          \
		chunk_##kind##_plain, chunk_##kind##_avx2, widest                                  \
	}
#define LEVELS(kind) TREE_LEVELS(kind, NULL), TREE_LEVELS(kind, NULL)
#define LEVELS_WIDE(kind)                                                                          \
	TREE_LEVELS(kind, chunk_##kind##_avx512),                                                  \
	{                                                                                          \
		chunk_##kind##_plain, fast_##kind##_avx2, fast_##kind##_avx512                     \
	}
#else
#define LEVELS(kind)                                                                               \
	{chunk_##kind##_plain, NULL, NULL},                                                        \
	{                                                                                          \
		chunk_##kind##_plain, NULL, NULL                                                   \
	}
#define LEVELS_WIDE(kind) LEVELS(kind)
#endif
#define KIND(kind, ...)                                                                            \
	[CUA__TREE_##kind] = {sizeof(cua__tree_element_##kind), sizeof(cua__tree_value_##kind),    \
			      LEVELS(kind), finish_##kind},
#define KIND_WIDE(kind, ...)                                                                       \
	[CUA__TREE_##kind] = {sizeof(cua__tree_element_##kind), sizeof(cua__tree_value_##kind),    \
			      LEVELS_WIDE(kind), finish_##kind},
	/* clang-format off */
	CUA__TREE_SUMS(KIND_WIDE)
	CUA__TREE_DOTS(KIND_WIDE)
	CUA__TREE_ORDERS(KIND)
	CUA__TREE_MOMENTS(KIND)
	/* clang-format on */
};

static chunk_fn *chunk_of(const struct cua__reduce *r)
{
	chunk_fn *const *of =
		cua__reduce_in_any_order(r) ? kinds[r->kind].fast : kinds[r->kind].chunk;
	int level = 0;

#if HAVE_LEVELS
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		level = 2;
	else if (__builtin_cpu_supports("avx2"))
		level = 1;
#endif
	while (!of[level])
		level--;
	return of[level];
}

size_t cua__tree_partials(const struct cua__reduce *r)
{
	size_t size = kinds[r->kind].element;
	struct cua__tree_shape shape = cua__tree_shape_of(r, r->n, size);
	uint64_t chunks = shape.chunks;

	/* a smaller count can have more chunks than n, at most CUA__TREE_CHUNKS */
	if (r->count && shape.rows > CUA__TREE_ROWS)
		chunks = CUA__TREE_CHUNKS;
	return (size_t)chunks * kinds[r->kind].partial;
}

size_t cua__tree_value_bytes(enum cua__tree_kind kind)
{
	return kinds[kind].partial;
}

void cua__cpu_tree_serial(const struct cua__reduce *r)
{
	struct cua__tree_shape shape =
		cua__tree_shape(cua__reduce_count(r), kinds[r->kind].element);

	kinds[r->kind].finish(r, &shape, NULL, chunk_of(r));
}

struct job {
	const struct cua__reduce *reduce;
	struct cua__tree_shape shape;
};

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	const struct cua__reduce *r = job->reduce;
	chunk_fn *of_chunk = chunk_of(r);
	size_t chunk, end;
	fenv_t caller;

	/* rounds to nearest and keeps subnormals, independent of the caller's environment */
	cua__float_mode_begin(&caller);
	if (r->step == CUA__TREE_ROOT) {
		kinds[r->kind].finish(r, &job->shape, r->partials, of_chunk);
	} else if (workers == 1 && r->step != CUA__TREE_CHUNKS) {
		kinds[r->kind].finish(r, &job->shape, NULL, of_chunk);
	} else {
		cua__share(job->shape.chunks, worker, workers, &chunk, &end);
		for (; chunk < end; chunk++)
			of_chunk(r, &job->shape, chunk,
				 (char *)r->partials + chunk * kinds[r->kind].partial);
		if (r->step != CUA__TREE_CHUNKS && cua__finish_arrive(r->finish, workers))
			kinds[r->kind].finish(r, &job->shape, r->partials, of_chunk);
	}
	cua__float_mode_end(&caller);
}

enum cua_status cua__cpu_tree(struct cua_context *ctx, const struct cua__reduce *r)
{
	size_t size = kinds[r->kind].element;
	struct job job = {r, cua__tree_shape_of(r, cua__reduce_count(r), size)};
	unsigned workers =
		r->blocks ? r->blocks : cua__workers(ctx, job.shape.n, GRAIN_BYTES / size);

	if (r->step == CUA__TREE_ROOT)
		workers = 1;
	/* no bits are promised: longer strips leave fewer values to combine */
	while (r->step != CUA__TREE_CHUNKS && r->step != CUA__TREE_ROOT &&
	       cua__reduce_in_any_order(r) && job.shape.rows < FAST_ROWS &&
	       job.shape.chunks / FAST_CHUNKS >= workers) {
		job.shape.rows *= 2;
		job.shape.chunks = (job.shape.chunks + 1) / 2;
	}
	cua__parallel(ctx, workers < job.shape.chunks ? workers : (unsigned)job.shape.chunks, work,
		      &job);
	return CUA_OK;
}
