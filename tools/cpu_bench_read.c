/* SPDX-License-Identifier: MIT */
/*
 * The read ceiling of benchmarks that read an array once: all threads together read it with vector
 * loads (the compiler's vector extension).
 */
#include <string.h>

#include "cpu_bench.h"

typedef uint64_t vector __attribute__((vector_size(64)));

/*
 * Bytes that a worker reads between two checks of the stop flag, a multiple of 1000 and of 4
 * vectors.
 */
#define PIECE 64000
#define PIECE_VECTORS (PIECE / sizeof(vector))
CUA_STATIC_ASSERT(PIECE % (4 * sizeof(vector)) == 0 && PIECE % 1000 == 0, "pieces are whole");

static const char *memory;
static uint64_t *piece_sums; /* sum of the 64-bit words of each piece, for the check */
static uint64_t *worker_sums;

#define DEFINE_READ(name, target)                                                                  \
	target static uint64_t name(const char *p)                                                 \
	{                                                                                          \
		const vector *v = (const vector *)(const void *)p;                                 \
		vector sums[4] = {{0}};                                                            \
		uint64_t sum = 0;                                                                  \
                                                                                                   \
		for (size_t i = 0; i < PIECE_VECTORS; i += 4)                                      \
			for (size_t j = 0; j < 4; j++)                                             \
				sums[j] += v[i + j];                                               \
		sums[0] += sums[1] + sums[2] + sums[3];                                            \
		for (size_t j = 0; j < sizeof(vector) / sizeof(uint64_t); j++)                     \
			sum += sums[0][j];                                                         \
		return sum;                                                                        \
	}

static uint64_t (*read_piece)(const char *p);

/* Like the library, the ceiling uses the widest vectors of the processor. */
DEFINE_READ(read_plain, )
#if defined(__x86_64__) && defined(__GNUC__)
DEFINE_READ(read_avx2, __attribute__((target("avx2"))))
DEFINE_READ(read_avx512, __attribute__((target("avx512f"))))
#endif

static void choose_read(void)
{
	read_piece = read_plain;
#if defined(__x86_64__) && defined(__GNUC__)
	if (__builtin_cpu_supports("avx512f"))
		read_piece = read_avx512;
	else if (__builtin_cpu_supports("avx2"))
		read_piece = read_avx2;
#endif
}

/* Reads the worker's share over and over until the run stops. An operation is 1000 bytes. */
static void read_share(struct bench_worker *w)
{
	size_t first, end, i;
	uint64_t sum = 0, done = 0;

	bench_share(w, w->run->items, &first, &end);
	i = first;
	do {
		sum += read_piece(memory + i * PIECE);
		done += PIECE / 1000;
		if (++i == end)
			i = first;
	} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));
	worker_sums[w->index] = sum;
	w->done = done;
}

static uint64_t words_read(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->threads; i++)
		sum += worker_sums[i];
	return sum;
}

static uint64_t words_there(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->threads; i++) {
		uint64_t pieces = r->workers[i].done / (PIECE / 1000), whole = 0, rest = 0;
		size_t first, end;

		bench_share(&r->workers[i], r->items, &first, &end);
		for (size_t j = first; j < end; j++) {
			whole += piece_sums[j];
			rest += j - first < pieces % (end - first) ? piece_sums[j] : 0;
		}
		sum += pieces / (end - first) * whole + rest;
	}
	return sum;
}

struct figure bench_read_figure(const struct bench_options *o, const struct table *t,
				const char *name, const void *array, size_t bytes)
{
	struct figure figure;
	struct bench_run r = {
		.name = name,
		.way = BENCH_READ_CEILING,
		.seconds = o->quick ? 1e-3 : 10e-3,
		.threads = o->threads,
		.items = bytes / PIECE,
		.before = bench_nothing,
		.loop = read_share,
		.result = words_read,
		.expected = words_there,
	};

	memory = array;
	choose_read();
	piece_sums = tool_alloc(r.items * sizeof(*piece_sums));
	worker_sums = tool_alloc(o->threads * sizeof(*worker_sums));
	for (size_t i = 0; i < r.items; i++) {
		piece_sums[i] = 0;
		for (size_t j = 0; j < PIECE; j += sizeof(uint64_t)) {
			uint64_t word;

			memcpy(&word, memory + i * PIECE + j, sizeof(word));
			piece_sums[i] += word;
		}
	}
	figure = bench_measure(t, &r);
	free(piece_sums);
	free(worker_sums);
	return figure;
}

void bench_read_ceiling(const struct bench_options *o, struct table *t, const char *name,
			const void *array, size_t bytes)
{
	if (table_wants(t->name, BENCH_READ_CEILING))
		table_add(t, TABLE_CEILING, BENCH_READ_CEILING,
			  bench_read_figure(o, t, name, array, bytes));
}
