/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench fill` on the CPU: fills of an array, and of pitched arrays without their padding,
 * in GB/s of the bytes that are written. The peers are memset, if the pattern is a byte, and plain
 * loops; all ways use all threads.
 */
#include <string.h>

#include <cuatomic/memory.h>

#include "cpu_bench.h"

#define FILL_BYTES ((uint64_t)256 << 20)
#define FILL_QUICK_BYTES ((uint64_t)1 << 20)
/* Bytes of an array between two checks of the stop flag. */
#define FILL_PIECE ((size_t)65536)
#define FILL_ROW_SECONDS 0.8

typedef uint64_t __attribute__((vector_size(16), may_alias)) pattern16;

/* The array as rows: an array without pitch has a row for each piece. */
static struct {
	struct cua_context *ctx;
	const struct cua_pitched *pitched; /* NULL: no pitch */
	char *base;
	size_t pitch, row_bytes;
	size_t pattern_bytes;
	char pattern[16];
	char *expected; /* a row */
	void (*fill)(char *row);
} fill_job;

/* ---- ways to fill ---- */

#define DEFINE_FILL_LOOP(name, T)                                                                  \
	static void loop_##name(char *row)                                                         \
	{                                                                                          \
		const size_t n = fill_job.row_bytes / sizeof(T);                                   \
		T *out = (void *)row, v;                                                           \
                                                                                                   \
		memcpy(&v, fill_job.pattern, sizeof(v));                                           \
		for (size_t i = 0; i < n; i++)                                                     \
			out[i] = v;                                                                \
	}
DEFINE_FILL_LOOP(1, uint8_t)
DEFINE_FILL_LOOP(2, uint16_t)
DEFINE_FILL_LOOP(4, uint32_t)
DEFINE_FILL_LOOP(8, uint64_t)
DEFINE_FILL_LOOP(16, pattern16)

static void fill_by_memset(char *row)
{
	memset(row, (unsigned char)fill_job.pattern[0], fill_job.row_bytes);
}

/* Fills the rows of the worker over and over until the run stops. An operation is a byte. */
static void fill_rows(struct bench_worker *w)
{
	size_t first, end, i;
	uint64_t done = 0;

	bench_share(w, w->run->items, &first, &end);
	i = first;
	do {
		fill_job.fill(fill_job.base + i * fill_job.pitch);
		done += fill_job.row_bytes;
		if (++i == end)
			i = first;
	} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));
	w->done = done;
}

/* The library has threads of its own. */
static void fill_whole(struct bench_worker *w)
{
	const size_t bytes = w->run->items * fill_job.row_bytes;

	do {
		const enum cua_status status =
			fill_job.pitched
				? cua_fill_pitched(fill_job.ctx, fill_job.pitched,
						   fill_job.pattern_bytes, fill_job.pattern)
				: cua_fill(fill_job.ctx, fill_job.base,
					   bytes / fill_job.pattern_bytes, fill_job.pattern_bytes,
					   fill_job.pattern);

		if (status)
			tool_die("bench fill: %s", cua_strerror(status));
		w->done += bytes;
	} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));
}

/* ---- checks ---- */

/* Counts the rows that a run filled and that are wrong, and clears them. */
static uint64_t filled_rows_wrong(const struct bench_run *r)
{
	uint64_t wrong = 0;
	size_t checked = 0; /* rows; shares may overlap */

	for (unsigned i = 0; i < r->threads; i++) {
		const size_t rows = (size_t)(r->workers[i].done / fill_job.row_bytes);
		size_t first, end;

		bench_share(&r->workers[i], r->items, &first, &end);
		for (size_t j = first < checked ? checked : first; j < end && j - first < rows;
		     j++) {
			char *row = fill_job.base + j * fill_job.pitch;

			wrong += memcmp(row, fill_job.expected, fill_job.pitch) != 0;
			memset(row, 0, fill_job.pitch);
		}
		checked = end;
	}
	return wrong;
}

/* ---- rows of the table ---- */

static void add_fill_row(const struct bench_options *o, struct table *t, const char *way,
			 size_t rows, void (*fill)(char *row))
{
	struct bench_run r = {
		.name = "fill",
		.way = way,
		.seconds = o->quick ? 1e-3 : 10e-3,
		.threads = fill ? o->threads : 1,
		.items = rows,
		.figure = bench_gb,
		.before = bench_nothing,
		.loop = fill ? fill_rows : fill_whole,
		.result = filled_rows_wrong,
		.expected = bench_zero,
	};

	fill_job.fill = fill;
	bench_row(t, fill ? TABLE_PEER : TABLE_OURS, &r);
}

/* Sets the pattern, and a row as it must be: the padding stays 0. */
static void set_pattern(size_t bytes)
{
	fill_job.pattern_bytes = bytes;
	for (size_t i = 0; i < bytes; i++)
		fill_job.pattern[i] = (char)(bench_mixed(bytes + i) | 1);
	memset(fill_job.expected, 0, fill_job.pitch);
	for (size_t i = 0; i < fill_job.row_bytes; i++)
		fill_job.expected[i] = fill_job.pattern[i % bytes];
}

static void add_filled_array(const struct bench_options *o, struct bench_ceiling *ceiling,
			     size_t pieces)
{
	static const struct {
		size_t bytes;
		const char *name;
		void (*loop)(char *row);
	} patterns[] = {
		{1, "1-D, 1 byte", loop_1},     {2, "1-D, 2 bytes", loop_2},
		{4, "1-D, 4 bytes", loop_4},    {8, "1-D, 8 bytes", loop_8},
		{16, "1-D, 16 bytes", loop_16},
	};

	fill_job.pitched = NULL;
	fill_job.base = ceiling->to;
	fill_job.pitch = fill_job.row_bytes = FILL_PIECE;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct table t = {.n = 0};

		set_pattern(patterns[i].bytes);
		table_begin(&t, patterns[i].name);
		bench_vector_ceiling(o, &t, "fill", ceiling);
		if (patterns[i].bytes == 1)
			add_fill_row(o, &t, "memset", pieces, fill_by_memset);
		add_fill_row(o, &t, "loop of stores", pieces, patterns[i].loop);
		add_fill_row(o, &t, "cua_fill", pieces, NULL);
		table_end(&t);
	}
}

/* Elements of 4 bytes, filled with their own pattern. */
static void add_filled_pitched(const struct bench_options *o, struct bench_ceiling *ceiling,
			       const char *name, const struct cua_pitched *a)
{
	const size_t rows = a->height * a->depth;
	struct table t = {.n = 0};

	fill_job.pitched = a;
	fill_job.base = a->base;
	fill_job.pitch = a->pitch;
	fill_job.row_bytes = a->width * a->element_size;
	memset(a->base, 0, rows * a->pitch);
	set_pattern(a->element_size);
	table_begin(&t, name);
	bench_vector_ceiling(o, &t, "fill", ceiling);
	add_fill_row(o, &t, "loop of stores", rows, loop_4);
	add_fill_row(o, &t, "cua_fill_pitched", rows, NULL);
	table_end(&t);
}

static void fill_need(enum cua_status status)
{
	if (status)
		tool_die("bench fill: %s", cua_strerror(status));
}

void bench_fill(const struct bench_options *o)
{
	const uint64_t bytes = bench_size(o->quick ? FILL_QUICK_BYTES : FILL_BYTES);
	const size_t pieces = bytes < FILL_PIECE ? 1 : (size_t)(bytes / FILL_PIECE);
	const size_t bytes_2d = sizeof(uint32_t) * 1000 * 1000;
	struct bench_ceiling whole = {.bytes = pieces * FILL_PIECE}, small = {.bytes = bytes_2d};
	struct cua_pitched a2 = {.base = NULL}, a3 = {.base = NULL};
	char size[TOOL_BYTES_TEXT];

	fill_need(cua_context_create(CUA_BACKEND_CPU, 0, &fill_job.ctx));
	fill_need(cua_context_set_threads(fill_job.ctx, o->threads));
	fill_need(cua_alloc_2d(fill_job.ctx, 1000, 1000, sizeof(uint32_t), &a2));
	fill_need(cua_alloc_3d(fill_job.ctx, 100, 100, 100, sizeof(uint32_t), &a3));
	whole.to = bench_array(whole.bytes);
	memset(whole.to, 0, whole.bytes);
	small.to = bench_array(small.bytes);
	memset(small.to, 0, small.bytes);
	fill_job.expected = tool_alloc(FILL_PIECE);
	bench_env()->row_seconds = FILL_ROW_SECONDS;
	printf("1-D: %s; 2-D and 3-D: elements of 4 bytes, without the padding of the rows\n",
	       tool_bytes_text(size, whole.bytes));
	/* the ceiling, the loop and the library of 7 cases, and memset of one */
	bench_plan(3 * 7 + 1);
	table_columns("GB/s", "");
	add_filled_array(o, &whole, pieces);
	add_filled_pitched(o, &small, "2-D, 1000 x 1000", &a2);
	add_filled_pitched(o, &small, "3-D, 100 x 100 x 100", &a3);
	free(fill_job.expected);
	free(small.to);
	free(whole.to);
	cua_free_pitched(fill_job.ctx, &a3);
	cua_free_pitched(fill_job.ctx, &a2);
	cua_context_destroy(fill_job.ctx);
}
