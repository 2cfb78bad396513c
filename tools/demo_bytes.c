/* SPDX-License-Identifier: MIT */
/*
 * The calls that work on arrays. The bytes of the file are their elements, a range at a time, so a
 * file of any size needs a bounded amount of memory.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "demo.h"

#define RANGE ((size_t)1 << 25)
#define SEGMENT ((size_t)64) /* length of a segment; divides RANGE */
#define RUNS ((size_t)65536) /* the most runs of a range whose sums are compared */

/* The bytes in three types, offsets of segments, results. */
enum { U8, U32, F64, OFFSETS, KEPT, SUMS };

static const uint32_t limit = 32; /* of the filter */

/* A range of the file. */
struct range {
	const uint8_t *bytes;
	size_t n;
	int first, more; /* no bytes precede the range; more bytes follow */
	struct reference_bytes reference;
	struct cua_append *filtered[DEMO_DEVICES];
	uint64_t count[256], letters[7], even[16]; /* histograms of all ranges */
};

/* ---- the parts: each calls the library on a range, and checks the result ---- */

static void run_sum(struct demo_phase *p, struct range *r)
{
	uint64_t sum = 0;

	DEMO_RUN(p, cua_sum(p->ctx, CUA_U32, r->n, p->on[U32], &sum));
	demo_expect(p, "sum", sum, r->reference.sum);
	demo_add(p, (double)sum);
}

static void run_sum_by(struct demo_phase *p, struct range *r, enum cua_finish_mode finish,
		       const char *what)
{
	struct cua_reduce_options options = {.struct_size = sizeof(options), .finish = finish};
	uint64_t sum = 0;

	DEMO_RUN(p, cua_reduce(p->ctx, &options, CUA_REDUCE_SUM, CUA_U32, r->n, p->on[U32], NULL,
			       &sum));
	demo_expect(p, what, sum, r->reference.sum);
	demo_add(p, (double)sum);
}

static void run_sum_by_atomic(struct demo_phase *p, struct range *r)
{
	run_sum_by(p, r, CUA_FINISH_ATOMIC, "atomic sum");
}

static void run_sum_under_lock(struct demo_phase *p, struct range *r)
{
	run_sum_by(p, r, CUA_FINISH_LOCK, "locked sum");
}

static void run_sum_in_order(struct demo_phase *p, struct range *r)
{
	run_sum_by(p, r, CUA_FINISH_ORDERED_LOCK, "ordered sum");
}

/* The number of pairs of neighbours. */
static size_t pairs(const struct range *r)
{
	return r->more || !r->n ? r->n : r->n - 1;
}

/* All partial sums are whole numbers below 2^53: exact in any order. */
static void run_dot(struct demo_phase *p, struct range *r)
{
	const double *x = p->on[F64];
	double dot = 0;

	DEMO_RUN(p, cua_dot(p->ctx, CUA_F64, pairs(r), x, x + 1, &dot));
	demo_expect(p, "dot product", dot, r->reference.dot);
	demo_add(p, dot);
}

static void run_dot_exact(struct demo_phase *p, struct range *r)
{
	struct cua_reduce_options exact = {.struct_size = sizeof(exact), .mode = CUA_REDUCE_EXACT};
	const double *x = p->on[F64];
	double dot = 0;

	DEMO_RUN(p, cua_reduce(p->ctx, &exact, CUA_REDUCE_DOT, CUA_F64, pairs(r), x, x + 1, &dot));
	demo_expect(p, "exact dot product", dot, r->reference.dot);
	demo_add(p, dot);
}

/* Sums each segment of SEGMENT bytes. The last segment may be shorter. */
static void run_segments(struct demo_phase *p, struct range *r)
{
	const size_t n = r->n / SEGMENT + (r->n % SEGMENT != 0);
	uint64_t *offsets = p->host[OFFSETS], *sums;

	for (size_t s = 0; s <= n; s++)
		offsets[s] = s < n ? s * SEGMENT : r->n;
	demo_upload(p, OFFSETS, (n + 1) * sizeof(*offsets));
	DEMO_RUN(p, cua_segmented_sum(p->ctx, CUA_U32, r->n, p->on[U32], n, p->on[OFFSETS],
				      p->on[SUMS]));
	sums = demo_download(p, SUMS, n * sizeof(*sums));
	for (size_t s = 0; s < n; s++) {
		uint64_t expected = 0;

		for (size_t k = offsets[s]; k < offsets[s + 1]; k++)
			expected += r->bytes[k];
		demo_expect(p, "sum of a segment", sums[s], expected);
	}
	demo_add(p, (double)n);
}

/* Sums each run of equal bytes. The number of runs is compared, bytes and sums up to RUNS. */
static void run_runs(struct demo_phase *p, struct range *r)
{
	const uint8_t *bytes = r->bytes;
	uint64_t n = 0, expected = 0, stored, *sums;
	uint32_t *keys;

	DEMO_RUN(p, cua_reduce_by_key(p->ctx, NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, r->n,
				      p->on[U32], p->on[U32], RUNS, p->on[KEPT], p->on[SUMS], &n));
	stored = n < RUNS ? n : RUNS;
	keys = demo_download(p, KEPT, stored * sizeof(*keys));
	sums = demo_download(p, SUMS, stored * sizeof(*sums));
	for (size_t k = 0, end; k < r->n; k = end, expected++) {
		for (end = k; end < r->n && bytes[end] == bytes[k];)
			end++;
		if (expected >= stored)
			continue;
		demo_expect(p, "byte of a run", keys[expected], bytes[k]);
		demo_expect(p, "sum of a run", sums[expected], bytes[k] * (uint64_t)(end - k));
	}
	demo_expect(p, "number of runs", n, expected);
	/* the first run may continue the last run of the preceding range */
	demo_add(p, (double)n - (!r->first && bytes[-1] == bytes[0]));
}

/* Of no elements, min and max return the identity of the operation. */
static void run_smallest(struct demo_phase *p, struct range *r)
{
	uint32_t min = 0;

	DEMO_RUN(p, cua_min(p->ctx, CUA_U32, r->n, p->on[U32], &min));
	demo_expect(p, "minimum", min, r->n ? r->reference.smallest : UINT32_MAX);
	if (!r->n)
		strcpy(p->row->text, "no bytes");
	if (p->device == p->d->first && (r->first || min < p->row->total))
		p->row->total = min;
}

static void run_largest(struct demo_phase *p, struct range *r)
{
	double max = 0;

	DEMO_RUN(p, cua_max(p->ctx, CUA_F64, r->n, p->on[F64], &max));
	if (r->n) {
		demo_expect(p, "maximum", max, r->reference.largest);
	} else {
		demo_expect(p, "maximum", max == -INFINITY, 1);
		strcpy(p->row->text, "no bytes");
	}
	if (p->device == p->d->first && max > p->row->total)
		p->row->total = max;
}

/* The filter may store in any order, so the check compares the count of each byte. */
static void run_filter(struct demo_phase *p, struct range *r)
{
	struct cua_append **out = &r->filtered[p->device];
	const uint32_t *kept = p->host[KEPT];
	uint64_t demand = 0, stored = 0, expected = 0, count[256] = {0}, others = 0;

	if (r->first)
		demo_need(p, cua_append_create(p->ctx, sizeof(*kept), r->n, out));
	demo_need(p, cua_append_reset(*out));
	DEMO_RUN(p, cua_filter(p->ctx, CUA_U32, r->n, p->on[U32], CUA_LE, &limit, *out));
	demo_need(p, cua_append_status(*out));
	demo_need(p, cua_append_demand(*out, &demand));
	demo_need(p, cua_append_read(*out, p->host[KEPT], r->n, &stored));
	for (uint64_t k = 0; k < stored; k++) {
		if (kept[k] <= limit)
			count[kept[k]]++;
		else
			others++;
	}
	for (unsigned byte = 0; byte <= limit; byte++) {
		demo_expect(p, "count of a kept byte", count[byte], r->reference.count[byte]);
		expected += r->reference.count[byte];
	}
	demo_expect(p, "number of others kept", others, 0);
	demo_expect(p, "number kept", stored, expected);
	demo_expect(p, "demand", demand, expected);
	demo_add(p, (double)stored);
}

static void run_filter_in_order(struct demo_phase *p, struct range *r)
{
	const struct cua_filter_options options = {.struct_size = sizeof(options), .ordered = 1};
	uint64_t n = 0, stored, expected = 0;
	uint32_t *kept;

	DEMO_RUN(p, cua_filter_array(p->ctx, &options, CUA_U32, r->n, p->on[U32], CUA_LE, &limit,
				     r->n, p->on[KEPT], &n));
	stored = n < r->n ? n : r->n;
	kept = demo_download(p, KEPT, stored * sizeof(*kept));
	for (size_t k = 0; k < r->n; k++) {
		if (r->bytes[k] > limit)
			continue;
		if (expected < stored)
			demo_expect(p, "byte kept in order", kept[expected], r->bytes[k]);
		expected++;
	}
	demo_expect(p, "number kept in order", n, expected);
	demo_add(p, (double)n);
}

/* Writes the counts of the bins, followed by "..." if they do not all fit the column. */
static void bins_text(char *text, const uint64_t *counts, unsigned bins)
{
	size_t used = 0;

	for (unsigned bin = 0; bin < bins; bin++) {
		char count[24];
		int n = snprintf(count, sizeof(count), bin ? " %llu" : "%llu",
				 (unsigned long long)counts[bin]);

		if (used + (size_t)n + 4 > DEMO_RESULT_WIDTH) {
			strcpy(text + used, " ...");
			return;
		}
		strcpy(text + used, count);
		used += (size_t)n;
	}
}

/* Compares the bins, and adds those of the first device to the bins of all ranges. */
static void check_bins(struct demo_phase *p, const char *what, unsigned n, const uint64_t *bins,
		       const uint64_t *expected, uint64_t *all)
{
	for (unsigned k = 0; k < n; k++) {
		demo_expect(p, what, bins[k], expected[k]);
		if (p->device == p->d->first)
			all[k] += bins[k];
	}
}

static void run_histogram_bytes(struct demo_phase *p, struct range *r)
{
	uint64_t bins[256] = {0};
	unsigned distinct = 0, most = 0;

	DEMO_RUN(p, cua_histogram_bytes(p->ctx, NULL, r->n, p->on[U8], bins));
	check_bins(p, "count of a byte", 256, bins, r->reference.count, r->count);
	for (unsigned byte = 0; byte < 256; byte++) {
		distinct += r->count[byte] != 0;
		if (r->count[byte] > r->count[most])
			most = byte;
	}
	snprintf(p->row->text, sizeof(p->row->text), "%u values, most often %u", distinct, most);
}

static void run_histogram_letters(struct demo_phase *p, struct range *r)
{
	uint64_t bins[7] = {0};

	DEMO_RUN(p, cua_histogram_letters(p->ctx, NULL, r->n, p->on[U8], bins));
	check_bins(p, "count of four letters", 7, bins, r->reference.letters, r->letters);
	bins_text(p->row->text, r->letters, 7);
}

static void run_histogram_even(struct demo_phase *p, struct range *r)
{
	const int64_t lower = 0, upper = 256;
	uint64_t bins[16] = {0};

	DEMO_RUN(p, cua_histogram_even(p->ctx, NULL, CUA_U32, r->n, p->on[U32], 16, &lower, &upper,
				       bins));
	check_bins(p, "count of sixteen bytes", 16, bins, r->reference.even, r->even);
	bins_text(p->row->text, r->even, 16);
}

/* Overwrites the array U32, so it is the last part of a range. */
static void run_fill(struct demo_phase *p, struct range *r)
{
	uint32_t pattern = 0, *filled;
	uint64_t same = 0;

	memcpy(&pattern, r->bytes, r->n < 4 ? r->n : 4);
	DEMO_RUN(p, cua_fill(p->ctx, p->on[U32], r->n, sizeof(pattern), &pattern));
	filled = demo_download(p, U32, r->n * sizeof(*filled));
	for (size_t k = 0; k < r->n; k++)
		same += filled[k] == pattern;
	demo_expect(p, "number of elements filled", same, r->n);
	demo_add(p, (double)same);
}

static const struct {
	const char *part, *unit;
	void (*run)(struct demo_phase *p, struct range *r);
} byte_parts[] = {
	{"sum", "", run_sum},
	{"sum, by an atomic", "", run_sum_by_atomic},
	{"sum, under a lock", "", run_sum_under_lock},
	{"sum, locks in order", "", run_sum_in_order},
	{"dot", "", run_dot},
	{"dot, exact", "", run_dot_exact},
	{"sums of segments", " of up to 64 bytes", run_segments},
	{"sums of runs", " runs of equal bytes", run_runs},
	{"min", "", run_smallest},
	{"max", "", run_largest},
	{"filter", " bytes <= 32", run_filter},
	{"filter, in order", " bytes <= 32", run_filter_in_order},
	{"histogram of bytes", "", run_histogram_bytes},
	{"histogram of letters", "", run_histogram_letters},
	{"histogram, even bins", "", run_histogram_even},
	{"fill and copy", " elements", run_fill},
};
enum { BYTE_PARTS = sizeof(byte_parts) / sizeof(byte_parts[0]) };

/* ---- the phase ---- */

/* Loads the range that starts at an offset into the arrays of all devices. */
static void load(struct demo_phase *p, struct range *r, size_t at)
{
	const struct demo *d = p->d;
	uint8_t *u8 = p->host[U8];
	uint32_t *u32 = p->host[U32];
	double *f64 = p->host[F64];

	r->bytes = d->data + at;
	r->n = d->size - at < RANGE ? d->size - at : RANGE;
	r->first = at == 0;
	r->more = at + r->n < d->size;
	reference_bytes(&r->reference, r->bytes, r->n, r->more);
	for (size_t k = 0; k < r->n; k++)
		f64[k] = u32[k] = u8[k] = r->bytes[k];
	f64[r->n] = r->more ? r->bytes[r->n] : 0;
	p->row = &p->setup;
	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!demo_select(p, i))
			continue;
		demo_upload(p, U8, r->n * sizeof(*u8));
		demo_upload(p, U32, r->n * sizeof(*u32));
		demo_upload(p, F64, (r->n + 1) * sizeof(*f64));
	}
}

void demo_bytes(struct demo *d)
{
	const size_t room = d->size < RANGE ? d->size : RANGE;
	const size_t segment_sums = room / SEGMENT + 2;
	const size_t bytes[DEMO_ARRAYS] = {
		[U8] = room,
		[U32] = room * sizeof(uint32_t),
		[F64] = (room + 1) * sizeof(double),
		[OFFSETS] = segment_sums * sizeof(uint64_t),
		[KEPT] = (room > RUNS ? room : RUNS) * sizeof(uint32_t),
		[SUMS] = (segment_sums > RUNS ? segment_sums : RUNS) * sizeof(uint64_t),
	};
	struct demo_row rows[BYTE_PARTS] = {{.part = NULL}};
	struct demo_phase phase = {.d = d}, *p = &phase;
	struct range r = {.n = 0};
	size_t at = 0;

	for (int k = 0; k < BYTE_PARTS; k++) {
		rows[k].part = byte_parts[k].part;
		rows[k].unit = byte_parts[k].unit;
	}
	demo_open(p, "memory for the bytes", bytes);
	/* an empty file is an empty range */
	do {
		load(p, &r, at);
		for (int i = 0; i < DEMO_DEVICES; i++)
			for (int k = 0; demo_select(p, i) && k < BYTE_PARTS; k++) {
				p->row = &rows[k];
				byte_parts[k].run(p, &r);
			}
		at += r.n;
	} while (at < d->size);
	for (int i = 0; i < DEMO_DEVICES; i++)
		cua_append_destroy(r.filtered[i]);
	demo_close(p);
	for (int k = 0; k < BYTE_PARTS; k++)
		demo_print_row(d, &rows[k]);
}
