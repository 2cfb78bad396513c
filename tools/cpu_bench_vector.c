/* SPDX-License-Identifier: MIT */
/*
 * The ceilings of benchmarks that write arrays: all threads together store or copy vectors. A
 * ceiling is the best of ordinary and non-temporal stores. Large arrays are faster with
 * non-temporal stores, small arrays with ordinary stores.
 */
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "cpu_bench.h"

typedef uint64_t moved_vector __attribute__((vector_size(64)));

/* Bytes that a worker moves between two checks of the stop flag. */
#define VECTOR_PIECE ((size_t)64000)

struct moves {
	void (*fill)(void *to, const void *from); /* stores the first vector of `from` */
	void (*copy)(void *to, const void *from);
};

static struct {
	char *to;
	const char *from; /* the array; of fills a single piece */
	size_t step;      /* from a piece of `from` to the next */
	void (*move)(void *to, const void *from);
} vector_job;

/* Defines the moves of a piece. `done` orders the stores before the end of the run. */
#define DEFINE_VECTOR_MOVES(name, target, V, store, done)                                          \
	target static void vector_fill_##name(void *to, const void *from)                          \
	{                                                                                          \
		const V v = *(const V *)from;                                                      \
		V *out = to;                                                                       \
                                                                                                   \
		for (size_t i = 0; i < VECTOR_PIECE / sizeof(V); i++)                              \
			store(out + i, v);                                                         \
		done;                                                                              \
	}                                                                                          \
	target static void vector_copy_##name(void *to, const void *from)                          \
	{                                                                                          \
		const V *in = from;                                                                \
		V *out = to;                                                                       \
                                                                                                   \
		for (size_t i = 0; i < VECTOR_PIECE / sizeof(V); i++)                              \
			store(out + i, in[i]);                                                     \
		done;                                                                              \
	}

#define VECTOR_STORE(p, v) (*(p) = (v))
DEFINE_VECTOR_MOVES(plain, , moved_vector, VECTOR_STORE, )
#if defined(__x86_64__) && defined(__GNUC__)
DEFINE_VECTOR_MOVES(plain_avx2, __attribute__((target("avx2"))), moved_vector, VECTOR_STORE, )
DEFINE_VECTOR_MOVES(plain_avx512, __attribute__((target("avx512f"))), moved_vector, VECTOR_STORE, )
DEFINE_VECTOR_MOVES(streaming, , __m128i, _mm_stream_si128, _mm_sfence())
DEFINE_VECTOR_MOVES(streaming_avx2, __attribute__((target("avx2"))), __m256i, _mm256_stream_si256,
		    _mm_sfence())
DEFINE_VECTOR_MOVES(streaming_avx512, __attribute__((target("avx512f"))), __m512i,
		    _mm512_stream_si512, _mm_sfence())
#endif

#define VECTOR_WAYS 2

/* Sets the ordinary and, if the processor has them, the non-temporal moves. Returns the number. */
static int choose_vectors(struct moves ways[VECTOR_WAYS])
{
	ways[0] = (struct moves){vector_fill_plain, vector_copy_plain};
#if defined(__x86_64__) && defined(__GNUC__)
	ways[1] = (struct moves){vector_fill_streaming, vector_copy_streaming};
	if (__builtin_cpu_supports("avx512f")) {
		ways[0] = (struct moves){vector_fill_plain_avx512, vector_copy_plain_avx512};
		ways[1] =
			(struct moves){vector_fill_streaming_avx512, vector_copy_streaming_avx512};
	} else if (__builtin_cpu_supports("avx2")) {
		ways[0] = (struct moves){vector_fill_plain_avx2, vector_copy_plain_avx2};
		ways[1] = (struct moves){vector_fill_streaming_avx2, vector_copy_streaming_avx2};
	}
	return 2;
#else
	return 1;
#endif
}

/* Bytes that the moves of a piece count. */
static uint64_t vector_piece_bytes(void)
{
	return vector_job.step ? 2 * VECTOR_PIECE : VECTOR_PIECE;
}

/* Moves the worker's share over and over until the run stops. */
static void move_vectors(struct bench_worker *w)
{
	size_t first, end, i;
	uint64_t done = 0;

	bench_share(w, w->run->items, &first, &end);
	i = first;
	do {
		vector_job.move(vector_job.to + i * VECTOR_PIECE,
				vector_job.from + i * vector_job.step);
		done += vector_piece_bytes();
		if (++i == end)
			i = first;
	} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));
	w->done = done;
}

/* Counts the pieces that a run moved and that differ from their source, and clears them. */
static uint64_t vectors_wrong(const struct bench_run *r)
{
	uint64_t wrong = 0;
	size_t checked = 0; /* pieces; shares may overlap */

	for (unsigned i = 0; i < r->threads; i++) {
		const size_t pieces = (size_t)(r->workers[i].done / vector_piece_bytes());
		size_t first, end;

		bench_share(&r->workers[i], r->items, &first, &end);
		for (size_t j = first < checked ? checked : first; j < end && j - first < pieces;
		     j++) {
			wrong += memcmp(vector_job.to + j * VECTOR_PIECE,
					vector_job.from + j * vector_job.step, VECTOR_PIECE) != 0;
			memset(vector_job.to + j * VECTOR_PIECE, 0, VECTOR_PIECE);
		}
		checked = end;
	}
	return wrong;
}

static struct figure measure_vectors(const struct bench_options *o, const struct table *t,
				     const char *name, const char *way,
				     const struct bench_ceiling *c)
{
	char *piece = bench_array(VECTOR_PIECE);
	struct figure best = {.runs = 0};
	struct moves ways[VECTOR_WAYS];
	struct bench_run r = {
		.name = name,
		.way = way,
		.seconds = o->quick ? 1e-3 : 10e-3,
		.threads = o->threads,
		.items = c->bytes / VECTOR_PIECE,
		.figure = bench_gb,
		.before = bench_nothing,
		.loop = move_vectors,
		.result = vectors_wrong,
		.expected = bench_zero,
	};
	const int n = choose_vectors(ways);

	for (size_t i = 0; i < VECTOR_PIECE; i++)
		piece[i] = (char)bench_mixed(i % sizeof(moved_vector) + 1);
	vector_job.to = c->to;
	vector_job.from = c->from ? c->from : piece;
	vector_job.step = c->from ? VECTOR_PIECE : 0;
	for (int i = 0; i < n; i++) {
		struct figure figure;

		vector_job.move = c->from ? ways[i].copy : ways[i].fill;
		figure = bench_measure(t, &r);
		if (figure.median > best.median)
			best = figure;
	}
	free(piece);
	return best;
}

void bench_vector_ceiling(const struct bench_options *o, struct table *t, const char *name,
			  struct bench_ceiling *c)
{
	const char *way = !c->to     ? BENCH_READ_CEILING
			  : !c->from ? "ceiling: vector stores, all threads"
				     : "ceiling: vector copy, all threads";

	if (!table_wants(t->name, way))
		return;
	if (!c->measured)
		c->figure = c->to ? measure_vectors(o, t, name, way, c)
				  : bench_read_figure(o, t, name, c->from, c->bytes);
	c->measured = 1;
	table_add(t, TABLE_CEILING, way, c->figure);
}
