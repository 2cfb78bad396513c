/* SPDX-License-Identifier: MIT */
/*
 * The calls that work on arrays. The bytes of the file are their elements, a range at a time, so a
 * file of any size needs a bounded amount of memory.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define RANGE ((size_t)1 << 25)
#define FILTER_LIMIT 32u
#define EVEN_BINS 16u
/*
 * SEGMENT is the length of a segment; it divides RANGE. RUNS is the most runs of a range whose sums
 * are compared.
 */
#define SEGMENT ((size_t)64)
#define RUNS ((size_t)65536)

enum {
	SUM,
	SUM_ATOMIC,
	SUM_LOCK,
	SUM_ORDERED,
	DOT,
	DOT_EXACT,
	SEGMENTS,
	BY_KEY,
	SMALLEST,
	LARGEST,
	FILTER,
	FILTER_ORDERED,
	HISTOGRAM_BYTES,
	HISTOGRAM_LETTERS,
	HISTOGRAM_EVEN,
	FILL,
	N_BYTE_ROWS
};

static const char *const byte_parts[N_BYTE_ROWS] = {
	[SUM] = "sum",
	[SUM_ATOMIC] = "sum, by an atomic",
	[SUM_LOCK] = "sum, under a lock",
	[SUM_ORDERED] = "sum, locks in order",
	[DOT] = "dot",
	[DOT_EXACT] = "dot, exact",
	[SEGMENTS] = "sums of segments",
	[BY_KEY] = "sums of runs",
	[SMALLEST] = "min",
	[LARGEST] = "max",
	[FILTER] = "filter",
	[FILTER_ORDERED] = "filter, in order",
	[HISTOGRAM_BYTES] = "histogram of bytes",
	[HISTOGRAM_LETTERS] = "histogram of letters",
	[HISTOGRAM_EVEN] = "histogram, even bins",
	[FILL] = "fill and copy",
};

/* A range of the file, on the host and on each device in use. */
struct arrays {
	size_t room; /* elements */
	uint32_t *u32;
	double *f64;    /* room + 1: dot multiplies neighbours */
	uint32_t *kept; /* results copied from the device */
	uint64_t *sums; /* segment sums; before the call, segment offsets */
	size_t n_sums;
	struct {
		uint8_t *bytes;
		uint32_t *u32;
		double *f64;
		uint32_t *kept;
		uint64_t *sums, *offsets;
		struct cua_append *filtered;
	} on[DEMO_DEVICES];
};

/* Results of the library, added up over the ranges. */
struct totals {
	uint64_t sum, sum_atomic, sum_lock, sum_ordered, segments, runs, kept, kept_ordered, filled;
	double dot, dot_exact, largest;
	uint64_t smallest;
	uint64_t bytes[256], letters[7], even[EVEN_BINS];
};

static void *device_alloc(const struct demo *d, int device, size_t bytes)
{
	void *p = NULL;

	DEMO_DO(d, device, "memory for the bytes", cua_alloc(d->ctx[device], 1, bytes, &p));
	return p;
}

static void arrays_create(const struct demo *d, struct arrays *a)
{
	a->room = d->size < RANGE ? d->size : RANGE;
	a->u32 = tool_alloc(a->room * sizeof(*a->u32));
	a->kept = tool_alloc((a->room > RUNS ? a->room : RUNS) * sizeof(*a->kept));
	a->f64 = tool_alloc((a->room + 1) * sizeof(*a->f64));
	a->n_sums = a->room / SEGMENT + 2 > RUNS ? a->room / SEGMENT + 2 : RUNS;
	a->sums = tool_alloc(a->n_sums * sizeof(*a->sums));
	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!d->ctx[i])
			continue;
		a->on[i].bytes = device_alloc(d, i, a->room);
		a->on[i].u32 = device_alloc(d, i, a->room * sizeof(*a->u32));
		a->on[i].f64 = device_alloc(d, i, (a->room + 1) * sizeof(*a->f64));
		a->on[i].kept =
			device_alloc(d, i, (a->room > RUNS ? a->room : RUNS) * sizeof(*a->kept));
		a->on[i].sums = device_alloc(d, i, a->n_sums * sizeof(*a->sums));
		a->on[i].offsets = device_alloc(d, i, a->n_sums * sizeof(*a->sums));
		DEMO_DO(d, i, byte_parts[FILTER],
			cua_append_create(d->ctx[i], sizeof(uint32_t), a->room,
					  &a->on[i].filtered));
	}
}

static void arrays_destroy(const struct demo *d, struct arrays *a)
{
	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!d->ctx[i])
			continue;
		cua_append_destroy(a->on[i].filtered);
		cua_free(d->ctx[i], a->on[i].offsets);
		cua_free(d->ctx[i], a->on[i].sums);
		cua_free(d->ctx[i], a->on[i].kept);
		cua_free(d->ctx[i], a->on[i].f64);
		cua_free(d->ctx[i], a->on[i].u32);
		cua_free(d->ctx[i], a->on[i].bytes);
	}
	free(a->sums);
	free(a->f64);
	free(a->kept);
	free(a->u32);
}

/* Copies n bytes at p to the arrays, as numbers. `more` is 1 if another byte follows them. */
static void load(const struct demo *d, struct arrays *a, const uint8_t *p, size_t n, int more)
{
	for (size_t i = 0; i < n; i++) {
		a->u32[i] = p[i];
		a->f64[i] = p[i];
	}
	a->f64[n] = more ? p[n] : 0;
	for (int i = 0; i < DEMO_DEVICES; i++) {
		struct cua_context *ctx = d->ctx[i];

		if (!ctx)
			continue;
		DEMO_DO(d, i, "copy", cua_copy(ctx, a->on[i].bytes, p, n));
		DEMO_DO(d, i, "copy", cua_copy(ctx, a->on[i].u32, a->u32, n * sizeof(*a->u32)));
		DEMO_DO(d, i, "copy",
			cua_copy(ctx, a->on[i].f64, a->f64, (n + 1) * sizeof(*a->f64)));
	}
}

static uint64_t sum_by(const struct demo *d, int i, const struct arrays *a, size_t n,
		       enum cua_finish_mode finish, struct demo_row *row)
{
	struct cua_reduce_options options = {.struct_size = sizeof(options), .finish = finish};
	uint64_t sum = 0;

	DEMO_RUN(d, i, row,
		 cua_reduce(d->ctx[i], &options, CUA_REDUCE_SUM, CUA_U32, n, a->on[i].u32, NULL,
			    &sum));
	return sum;
}

static void run_sums(const struct demo *d, int i, const struct arrays *a, size_t n,
		     const struct reference_bytes *r, struct demo_row *rows, struct totals *t)
{
	uint64_t sum = 0;

	DEMO_RUN(d, i, &rows[SUM], cua_sum(d->ctx[i], CUA_U32, n, a->on[i].u32, &sum));
	demo_expect(&rows[SUM], i, "sum", sum, r->sum);
	t->sum += sum;
	sum = sum_by(d, i, a, n, CUA_FINISH_ATOMIC, &rows[SUM_ATOMIC]);
	demo_expect(&rows[SUM_ATOMIC], i, "atomic sum", sum, r->sum);
	t->sum_atomic += sum;
	sum = sum_by(d, i, a, n, CUA_FINISH_LOCK, &rows[SUM_LOCK]);
	demo_expect(&rows[SUM_LOCK], i, "locked sum", sum, r->sum);
	t->sum_lock += sum;
	sum = sum_by(d, i, a, n, CUA_FINISH_ORDERED_LOCK, &rows[SUM_ORDERED]);
	demo_expect(&rows[SUM_ORDERED], i, "ordered sum", sum, r->sum);
	t->sum_ordered += sum;
}

static void run_dots(const struct demo *d, int i, const struct arrays *a, size_t n,
		     uint64_t expected, struct demo_row *rows, struct totals *t)
{
	struct cua_reduce_options options = {.struct_size = sizeof(options),
					     .mode = CUA_REDUCE_EXACT};
	const double *x = a->on[i].f64;
	double dot = 0;

	/* all partial sums are whole numbers below 2^53: exact in any order */
	DEMO_RUN(d, i, &rows[DOT], cua_dot(d->ctx[i], CUA_F64, n, x, x + 1, &dot));
	demo_expect_f64(&rows[DOT], i, "dot product", dot, expected);
	t->dot += dot;
	DEMO_RUN(d, i, &rows[DOT_EXACT],
		 cua_reduce(d->ctx[i], &options, CUA_REDUCE_DOT, CUA_F64, n, x, x + 1, &dot));
	demo_expect_f64(&rows[DOT_EXACT], i, "exact dot product", dot, expected);
	t->dot_exact += dot;
}

/* Sums each segment of SEGMENT bytes. The last segment may be shorter. */
static void run_segments(const struct demo *d, int i, const struct arrays *a, const uint8_t *p,
			 size_t n, struct demo_row *row, struct totals *t)
{
	const size_t segments = n / SEGMENT + (n % SEGMENT != 0);

	for (size_t s = 0; s <= segments; s++)
		a->sums[s] = s < segments ? s * SEGMENT : n;
	DEMO_DO(d, i, row->part,
		cua_copy(d->ctx[i], a->on[i].offsets, a->sums, (segments + 1) * sizeof(*a->sums)));
	DEMO_RUN(d, i, row,
		 cua_segmented_sum(d->ctx[i], CUA_U32, n, a->on[i].u32, segments, a->on[i].offsets,
				   a->on[i].sums));
	if (segments)
		DEMO_DO(d, i, row->part,
			cua_copy(d->ctx[i], a->sums, a->on[i].sums, segments * sizeof(*a->sums)));
	for (size_t s = 0; s < segments; s++) {
		uint64_t expected = 0;

		for (size_t k = s * SEGMENT; k < n && k < (s + 1) * SEGMENT; k++)
			expected += p[k];
		demo_expect(row, i, "sum of a segment", a->sums[s], expected);
	}
	t->segments += segments;
}

/*
 * Sums each run of equal bytes. The number of runs is always compared, their bytes and sums up to
 * RUNS.
 */
static void run_by_key(const struct demo *d, int i, const struct arrays *a, const uint8_t *p,
		       size_t n, struct demo_row *row, struct totals *t)
{
	uint64_t runs = 0, expected = 0, stored;

	DEMO_RUN(d, i, row,
		 cua_reduce_by_key(d->ctx[i], NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, n,
				   a->on[i].u32, a->on[i].u32, RUNS, a->on[i].kept, a->on[i].sums,
				   &runs));
	stored = runs < RUNS ? runs : RUNS;
	if (stored) {
		DEMO_DO(d, i, row->part,
			cua_copy(d->ctx[i], a->kept, a->on[i].kept, stored * sizeof(*a->kept)));
		DEMO_DO(d, i, row->part,
			cua_copy(d->ctx[i], a->sums, a->on[i].sums, stored * sizeof(*a->sums)));
	}
	for (size_t k = 0, end; k < n; k = end, expected++) {
		for (end = k; end < n && p[end] == p[k];)
			end++;
		if (expected >= stored)
			continue;
		demo_expect(row, i, "byte of a run", a->kept[expected], p[k]);
		demo_expect(row, i, "sum of a run", a->sums[expected], (uint64_t)p[k] * (end - k));
	}
	demo_expect(row, i, "number of runs", runs, expected);
	/* the first run may continue the last run of the range before */
	t->runs += runs - (n && p > d->data && p[-1] == p[0]);
}

static void run_min_max(const struct demo *d, int i, const struct arrays *a, size_t n,
			const struct reference_bytes *r, struct demo_row *rows, struct totals *t)
{
	uint32_t smallest = 0;
	double largest = 0;

	DEMO_RUN(d, i, &rows[SMALLEST], cua_min(d->ctx[i], CUA_U32, n, a->on[i].u32, &smallest));
	DEMO_RUN(d, i, &rows[LARGEST], cua_max(d->ctx[i], CUA_F64, n, a->on[i].f64, &largest));
	if (!n) {
		/* of no elements, min and max return the identity of the operation */
		demo_expect(&rows[SMALLEST], i, "minimum", smallest, UINT32_MAX);
		demo_expect(&rows[LARGEST], i, "maximum", largest == -INFINITY, 1);
		return;
	}
	demo_expect(&rows[SMALLEST], i, "minimum", smallest, r->smallest);
	demo_expect_f64(&rows[LARGEST], i, "maximum", largest, r->largest);
	if (smallest < t->smallest)
		t->smallest = smallest;
	if (largest > t->largest)
		t->largest = largest;
}

static void run_filter(const struct demo *d, int i, const struct arrays *a, size_t n,
		       const struct reference_bytes *r, struct demo_row *row, struct totals *t)
{
	struct cua_append *out = a->on[i].filtered;
	const uint32_t limit = FILTER_LIMIT;
	uint64_t demand = 0, stored = 0, expected = 0, count[256] = {0}, strange = 0;

	DEMO_DO(d, i, row->part, cua_append_reset(out));
	DEMO_RUN(d, i, row, cua_filter(d->ctx[i], CUA_U32, n, a->on[i].u32, CUA_LE, &limit, out));
	DEMO_DO(d, i, row->part, cua_append_status(out));
	DEMO_DO(d, i, row->part, cua_append_demand(out, &demand));
	DEMO_DO(d, i, row->part, cua_append_read(out, a->kept, a->room, &stored));
	for (uint64_t k = 0; k < stored; k++) {
		if (a->kept[k] <= limit)
			count[a->kept[k]]++;
		else
			strange++;
	}
	/* the filter may store in any order, so compare multisets */
	for (unsigned byte = 0; byte <= limit; byte++) {
		demo_expect(row, i, "count of a kept byte", count[byte], r->count[byte]);
		expected += r->count[byte];
	}
	demo_expect(row, i, "number of others kept", strange, 0);
	demo_expect(row, i, "number kept", stored, expected);
	demo_expect(row, i, "demand", demand, expected);
	t->kept += stored;
}

static void run_filter_ordered(const struct demo *d, int i, const struct arrays *a,
			       const uint8_t *p, size_t n, struct demo_row *row, struct totals *t)
{
	const struct cua_filter_options options = {.struct_size = sizeof(options), .ordered = 1};
	const uint32_t limit = FILTER_LIMIT;
	uint64_t kept = 0, stored, expected = 0;

	DEMO_RUN(d, i, row,
		 cua_filter_array(d->ctx[i], &options, CUA_U32, n, a->on[i].u32, CUA_LE, &limit, n,
				  a->on[i].kept, &kept));
	stored = kept < n ? kept : n;
	if (stored)
		DEMO_DO(d, i, row->part,
			cua_copy(d->ctx[i], a->kept, a->on[i].kept, stored * sizeof(*a->kept)));
	for (size_t k = 0; k < n; k++) {
		if (p[k] > limit)
			continue;
		if (expected < stored)
			demo_expect(row, i, "byte kept in order", a->kept[expected], p[k]);
		expected++;
	}
	demo_expect(row, i, "number kept in order", kept, expected);
	t->kept_ordered += kept;
}

static void run_histograms(const struct demo *d, int i, const struct arrays *a, size_t n,
			   const struct reference_bytes *r, struct demo_row *rows, struct totals *t)
{
	uint64_t bytes[256] = {0}, letters[7] = {0}, even[EVEN_BINS] = {0}, expected;
	const int64_t lower = 0, upper = 256;

	DEMO_RUN(d, i, &rows[HISTOGRAM_BYTES],
		 cua_histogram_bytes(d->ctx[i], NULL, n, a->on[i].bytes, bytes));
	DEMO_RUN(d, i, &rows[HISTOGRAM_LETTERS],
		 cua_histogram_letters(d->ctx[i], NULL, n, a->on[i].bytes, letters));
	DEMO_RUN(d, i, &rows[HISTOGRAM_EVEN],
		 cua_histogram_even(d->ctx[i], NULL, CUA_U32, n, a->on[i].u32, EVEN_BINS, &lower,
				    &upper, even));
	for (unsigned bin = 0; bin < 256; bin++) {
		demo_expect(&rows[HISTOGRAM_BYTES], i, "count of a byte", bytes[bin],
			    r->count[bin]);
		t->bytes[bin] += bytes[bin];
	}
	for (unsigned bin = 0; bin < 7; bin++) {
		demo_expect(&rows[HISTOGRAM_LETTERS], i, "count of four letters", letters[bin],
			    r->letters[bin]);
		t->letters[bin] += letters[bin];
	}
	for (unsigned bin = 0; bin < EVEN_BINS; bin++) {
		expected = 0;
		for (unsigned byte = bin * 16; byte < bin * 16 + 16; byte++)
			expected += r->count[byte];
		demo_expect(&rows[HISTOGRAM_EVEN], i, "count of sixteen bytes", even[bin],
			    expected);
		t->even[bin] += even[bin];
	}
}

static void run_fill(const struct demo *d, int i, const struct arrays *a, const uint8_t *p,
		     size_t n, struct demo_row *row, struct totals *t)
{
	uint32_t pattern = 0;
	uint64_t same = 0;

	memcpy(&pattern, p, n < 4 ? n : 4);
	DEMO_RUN(d, i, row, cua_fill(d->ctx[i], a->on[i].u32, n, sizeof(pattern), &pattern));
	if (n)
		DEMO_DO(d, i, row->part,
			cua_copy(d->ctx[i], a->kept, a->on[i].u32, n * sizeof(pattern)));
	for (size_t k = 0; k < n; k++)
		same += a->kept[k] == pattern;
	demo_expect(row, i, "number of elements filled", same, n);
	t->filled += same;
}

/* Prints the counts of the bins, followed by "..." if they do not all fit. */
static void bins_text(char *text, size_t room, const uint64_t *counts, unsigned bins)
{
	size_t used = 0;

	text[0] = 0;
	for (unsigned bin = 0; bin < bins; bin++) {
		char count[24];
		int n = snprintf(count, sizeof(count), bin ? " %llu" : "%llu",
				 (unsigned long long)counts[bin]);

		if (used + (size_t)n + 4 >= room) {
			snprintf(text + used, room - used, " ...");
			return;
		}
		memcpy(text + used, count, (size_t)n + 1);
		used += (size_t)n;
	}
}

static void write_byte_results(const struct demo *d, struct demo_row *rows, const struct totals *t)
{
	unsigned distinct = 0, most = 0;

	for (unsigned byte = 0; byte < 256; byte++) {
		distinct += t->bytes[byte] != 0;
		if (t->bytes[byte] > t->bytes[most])
			most = byte;
	}
#define RESULT(row, ...) snprintf(rows[row].result, sizeof(rows[row].result), __VA_ARGS__)
	RESULT(SUM, "%llu", (unsigned long long)t->sum);
	RESULT(SUM_ATOMIC, "%llu", (unsigned long long)t->sum_atomic);
	RESULT(SUM_LOCK, "%llu", (unsigned long long)t->sum_lock);
	RESULT(SUM_ORDERED, "%llu", (unsigned long long)t->sum_ordered);
	RESULT(DOT, "%.0f", t->dot);
	RESULT(DOT_EXACT, "%.0f", t->dot_exact);
	RESULT(SEGMENTS, "%llu of up to %zu bytes", (unsigned long long)t->segments, SEGMENT);
	RESULT(BY_KEY, "%llu runs of equal bytes", (unsigned long long)t->runs);
	if (d->size) {
		RESULT(SMALLEST, "%llu", (unsigned long long)t->smallest);
		RESULT(LARGEST, "%.17g", t->largest);
	} else {
		RESULT(SMALLEST, "no bytes");
		RESULT(LARGEST, "no bytes");
	}
	RESULT(FILTER, "%llu bytes <= %u", (unsigned long long)t->kept, FILTER_LIMIT);
	RESULT(FILTER_ORDERED, "%llu bytes <= %u", (unsigned long long)t->kept_ordered,
	       FILTER_LIMIT);
	RESULT(HISTOGRAM_BYTES, "%u values, most often %u", distinct, most);
	bins_text(rows[HISTOGRAM_LETTERS].result, DEMO_RESULT_WIDTH + 1, t->letters, 7);
	bins_text(rows[HISTOGRAM_EVEN].result, DEMO_RESULT_WIDTH + 1, t->even, EVEN_BINS);
	RESULT(FILL, "%llu elements", (unsigned long long)t->filled);
#undef RESULT
}

void demo_bytes(struct demo *d)
{
	struct demo_row rows[N_BYTE_ROWS] = {{.part = NULL}};
	struct totals totals[DEMO_DEVICES];
	struct reference_bytes reference;
	struct arrays a;
	size_t at = 0;

	memset(totals, 0, sizeof(totals));
	memset(&a, 0, sizeof(a));
	for (int row = 0; row < N_BYTE_ROWS; row++)
		rows[row].part = byte_parts[row];
	for (int i = 0; i < DEMO_DEVICES; i++)
		totals[i].smallest = 255;
	arrays_create(d, &a);
	/* an empty file is processed as an empty range */
	do {
		const uint8_t *p = d->data + at;
		size_t n = d->size - at < RANGE ? d->size - at : RANGE;
		int more = at + n < d->size;
		size_t n_dot = more ? n : n ? n - 1 : 0;
		uint64_t dot = reference_dot(p, n_dot);

		reference_bytes(&reference, p, n);
		load(d, &a, p, n, more);
		for (int i = 0; i < DEMO_DEVICES; i++) {
			if (!d->ctx[i])
				continue;
			run_sums(d, i, &a, n, &reference, rows, &totals[i]);
			run_dots(d, i, &a, n_dot, dot, rows, &totals[i]);
			run_segments(d, i, &a, p, n, &rows[SEGMENTS], &totals[i]);
			run_by_key(d, i, &a, p, n, &rows[BY_KEY], &totals[i]);
			run_min_max(d, i, &a, n, &reference, rows, &totals[i]);
			run_filter(d, i, &a, n, &reference, &rows[FILTER], &totals[i]);
			run_filter_ordered(d, i, &a, p, n, &rows[FILTER_ORDERED], &totals[i]);
			run_histograms(d, i, &a, n, &reference, rows, &totals[i]);
			run_fill(d, i, &a, p, n, &rows[FILL], &totals[i]);
		}
		at += n;
	} while (at < d->size);
	arrays_destroy(d, &a);
	write_byte_results(d, rows, &totals[d->first]);
	for (int row = 0; row < N_BYTE_ROWS; row++)
		demo_print_row(d, &rows[row]);
}
