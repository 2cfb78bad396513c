/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench histogram` on the CPU: histograms of arrays larger than every cache, in GB/s of
 * the bytes that a histogram has to read. The peers are plain serial loops.
 *
 * Each element is generated from a chosen bin, so the expected counts are known without a reference
 * histogram.
 */
#include <string.h>

#include <cuatomic/histogram.h>

#include "cpu_bench.h"

#define COUNTED_BYTES ((size_t)64 << 20)
#define COUNTED_QUICK_BYTES ((size_t)256 << 10)
#define MOST_BINS 65536
#define EDGES 257

/* ---- the cases ---- */

enum distribution { UNIFORM, CONSTANT, ZIPF, SORTED, CLUSTERED };

static const char *const distribution_names[] = {"uniform", "constant", "zipf 1.5", "sorted",
						 "clustered"};

/* Edge k is k^2. */
static float edges[EDGES];

static void count_bytes_plainly(size_t n, const void *elements, size_t bins, uint64_t *counts)
{
	const uint8_t *x = elements;

	(void)bins;
	for (size_t i = 0; i < n; i++)
		counts[x[i]]++;
}

static void count_letters_plainly(size_t n, const void *elements, size_t bins, uint64_t *counts)
{
	const uint8_t *x = elements;

	(void)bins;
	for (size_t i = 0; i < n; i++)
		if (x[i] >= 'a' && x[i] <= 'z')
			counts[(x[i] - 'a') / 4]++;
}

static void count_u32_plainly(size_t n, const void *elements, size_t bins, uint64_t *counts)
{
	const uint32_t *x = elements;

	for (size_t i = 0; i < n; i++)
		counts[(uint64_t)x[i] * bins >> 32]++;
}

static void count_f32_plainly(size_t n, const void *elements, size_t bins, uint64_t *counts)
{
	const float *x = elements;

	for (size_t i = 0; i < n; i++)
		if (x[i] >= 0 && x[i] < 1)
			counts[(size_t)(x[i] * (float)bins)]++;
}

static void count_edges_plainly(size_t n, const void *elements, size_t bins, uint64_t *counts)
{
	const float *x = elements;

	for (size_t i = 0; i < n; i++) {
		size_t low = 0, high = bins + 1;

		while (low < high) {
			size_t middle = (low + high) / 2;

			if (edges[middle] <= x[i])
				low = middle + 1;
			else
				high = middle;
		}
		if (low && low <= bins)
			counts[low - 1]++;
	}
}

static enum cua_status call_bytes(struct cua_context *ctx, size_t n, const void *x, size_t bins,
				  uint64_t *counts)
{
	(void)bins;
	return cua_histogram_bytes(ctx, NULL, n, x, counts);
}

static enum cua_status call_letters(struct cua_context *ctx, size_t n, const void *x, size_t bins,
				    uint64_t *counts)
{
	(void)bins;
	return cua_histogram_letters(ctx, NULL, n, x, counts);
}

static enum cua_status call_u32(struct cua_context *ctx, size_t n, const void *x, size_t bins,
				uint64_t *counts)
{
	return cua_histogram_even_u32(ctx, n, x, bins, 0, (int64_t)1 << 32, counts);
}

static enum cua_status call_f32(struct cua_context *ctx, size_t n, const void *x, size_t bins,
				uint64_t *counts)
{
	return cua_histogram_even_f32(ctx, n, x, bins, 0, 1, counts);
}

static enum cua_status call_edges(struct cua_context *ctx, size_t n, const void *x, size_t bins,
				  uint64_t *counts)
{
	return cua_histogram_edges_f32(ctx, n, x, bins, edges, counts);
}

/*
 * A make function stores an element of bin k at index i; r is random. With more than 256 bins,
 * `bins` must be a power of two.
 */
static void make_byte(void *x, size_t i, size_t k, size_t bins, uint64_t r)
{
	(void)bins;
	(void)r;
	((uint8_t *)x)[i] = (uint8_t)k;
}

/* Value 7 of k stands for a byte outside all bins. */
static void make_letter(void *x, size_t i, size_t k, size_t bins, uint64_t r)
{
	(void)bins;
	((uint8_t *)x)[i] = (uint8_t)(k == 7 ? ' ' : 'a' + k * 4 + r % (k == 6 ? 2 : 4));
}

static void make_u32(void *x, size_t i, size_t k, size_t bins, uint64_t r)
{
	uint64_t width = ((uint64_t)1 << 32) / bins;

	((uint32_t *)x)[i] = (uint32_t)(k * width + r % width);
}

static void make_f32(void *x, size_t i, size_t k, size_t bins, uint64_t r)
{
	((float *)x)[i] = ((float)k + (float)(r >> 56) / 256) / (float)bins;
}

static void make_between_edges(void *x, size_t i, size_t k, size_t bins, uint64_t r)
{
	(void)bins;
	((float *)x)[i] = (float)(k * k + r % (2 * k + 1));
}

static const struct shape {
	const char *name;
	size_t size, bins;
	size_t made; /* bound of k; from `bins` on, k is an element outside all bins */
	void (*make)(void *x, size_t i, size_t k, size_t bins, uint64_t r);
	void (*loop)(size_t n, const void *x, size_t bins, uint64_t *counts);
	enum cua_status (*call)(struct cua_context *ctx, size_t n, const void *x, size_t bins,
				uint64_t *counts);
	int all_inputs; /* 0: only uniform and zipf inputs */
} shapes[] = {
	{"u8 256", 1, 256, 256, make_byte, count_bytes_plainly, call_bytes, 1},
	{"letters", 1, 7, 8, make_letter, count_letters_plainly, call_letters, 0},
	{"u32 256", 4, 256, 256, make_u32, count_u32_plainly, call_u32, 1},
	{"u32 4096", 4, 4096, 4096, make_u32, count_u32_plainly, call_u32, 0},
	{"u32 65536", 4, 65536, 65536, make_u32, count_u32_plainly, call_u32, 0},
	{"f32 256", 4, 256, 256, make_f32, count_f32_plainly, call_f32, 0},
	{"f32 256 edges", 4, 256, 256, make_between_edges, count_edges_plainly, call_edges, 0},
};

static uint64_t mixed(uint64_t z)
{
	z *= 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static size_t choose_bin(enum distribution input, size_t i, size_t n, size_t bins, uint64_t r)
{
	double u = ((double)(r >> 11) + 1) * 0x1p-53, v;

	switch (input) {
	case UNIFORM: return (size_t)(r >> 20) % bins;
	case CONSTANT: return bins / 3;
	case ZIPF: v = 1 / (u * u) - 1; return v < (double)bins ? (size_t)v : 0;
	case SORTED: return (size_t)((double)i / (double)n * (double)bins);
	default: return (size_t)(mixed(i / 4096 + 1) + (r >> 20) % 8) % bins;
	}
}

static void make_elements(const struct shape *s, enum distribution input, size_t n, void *x,
			  uint64_t *expected)
{
	memset(expected, 0, MOST_BINS * sizeof(*expected));
	for (size_t i = 0; i < n; i++) {
		uint64_t r = mixed(i + ((uint64_t)input << 40));
		size_t k = choose_bin(input, i, n, s->made, r);

		s->make(x, i, k, s->bins, mixed(r));
		if (k < s->bins)
			expected[k]++;
	}
}

/* ---- measurement ---- */

struct histogram_run {
	const struct shape *shape;
	size_t n;
	const void *x;
	uint64_t *counts;
	const uint64_t *expected;
	double seconds;
};

static void check_counts(const struct histogram_run *h, const struct table *t, const char *way)
{
	char row[sizeof(t->name) + TABLE_NAME + 4];

	snprintf(row, sizeof(row), "%s, %s", t->name, way);
	h->counts[h->shape->bins - 1] += bench_plant(row);
	for (size_t i = 0; i < h->shape->bins; i++)
		if (h->counts[i] != h->expected[i])
			tool_die("bench histogram: %s, %s: the result is %llu, not %llu", t->name,
				 way, (unsigned long long)h->counts[i],
				 (unsigned long long)h->expected[i]);
}

/*
 * Measures the library, or the serial loop if ctx is NULL, if the row is wanted. A run repeats the
 * call for about `seconds`.
 */
static void add_histogram(struct table *t, const struct histogram_run *h, struct cua_context *ctx,
			  const char *way)
{
	const struct shape *s = h->shape;
	struct stats samples;
	double taken;
	int calls;

	if (!table_wants(t->name, way))
		return;
	stats_begin(&samples, bench_stats_plan());
	do {
		taken = 0;
		calls = 0;
		do {
			enum cua_status status = CUA_OK;
			double start = tool_now();

			if (ctx) {
				status = s->call(ctx, h->n, h->x, s->bins, h->counts);
			} else {
				memset(h->counts, 0, s->bins * sizeof(*h->counts));
				s->loop(h->n, h->x, s->bins, h->counts);
			}
			taken += tool_now() - start;
			if (status)
				tool_die("bench histogram: %s, %s: %s", t->name, way,
					 cua_strerror(status));
			check_counts(h, t, way);
			calls++;
		} while (taken < h->seconds);
	} while (bench_more(&samples, (double)(h->n * s->size) * calls / taken * 1e-9));
	table_add(t, ctx ? TABLE_OURS : TABLE_PEER, way, table_stats(&samples));
}

/* Whether the shape has a case with this input. */
static int has_input(const struct shape *s, int input)
{
	return s->all_inputs || input == UNIFORM || input == ZIPF;
}

static size_t count_histogram_rows(void)
{
	size_t cases = 0;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int input = UNIFORM; input <= CLUSTERED; input++)
			cases += (size_t)has_input(&shapes[i], input);
	return 4 * cases;
}

void bench_histogram(const struct bench_options *o)
{
	const size_t bytes = o->quick ? COUNTED_QUICK_BYTES : COUNTED_BYTES;
	uint64_t *counts = tool_alloc(2 * MOST_BINS * sizeof(*counts));
	uint64_t *expected = counts + MOST_BINS;
	struct cua_context *ctx;
	enum cua_status status;
	void *x = NULL;

	status = cua_context_create(CUA_BACKEND_CPU, 0, &ctx);
	if (!status)
		status = cua_alloc(ctx, 1, bytes, &x);
	if (status)
		tool_die("bench histogram: %s", cua_strerror(status));
	for (size_t k = 0; k < EDGES; k++)
		edges[k] = (float)(k * k);
	printf("arrays of %zu KiB\n", bytes >> 10);
	bench_plan(count_histogram_rows());
	table_columns("GB/s", "");
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int input = UNIFORM; input <= CLUSTERED; input++) {
			const struct shape *s = &shapes[i];
			struct histogram_run h = {
				.shape = s,
				.n = bytes / s->size,
				.x = x,
				.counts = counts,
				.expected = expected,
				.seconds = o->quick ? 1e-3 : 10e-3,
			};
			struct table table = {.n = 0};
			char name[sizeof(table.name)];

			if (!has_input(s, input))
				continue;
			make_elements(s, (enum distribution)input, h.n, x, expected);
			snprintf(name, sizeof(name), "%s, %s", s->name, distribution_names[input]);
			table_begin(&table, name);
			bench_read_ceiling(o, &table, "histogram", x, bytes);
			add_histogram(&table, &h, NULL, "a loop, one thread");
			for (int all = 0; all < 2; all++) {
				status = cua_context_set_threads(ctx, all ? o->threads : 1);
				if (status)
					tool_die("bench histogram: %s", cua_strerror(status));
				add_histogram(&table, &h, ctx,
					      all ? "cua_histogram, all threads"
						  : "cua_histogram, one thread");
			}
			table_end(&table);
		}
	free(counts);
	cua_free(ctx, x);
	cua_context_destroy(ctx);
}
