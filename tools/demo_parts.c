/* SPDX-License-Identifier: MIT */
/*
 * The parts of the demonstration. Each calls the library on a piece of the file, and compares each
 * result with a serial reference: plain loops, and a sorted array of words.
 */
#include <math.h>
#include <stdlib.h>

#include "demo.h"

static const char *const device_names[DEMO_COLUMNS] = {"CPU", "GPU"};

/* Waits until the work of a call is done, and starts the clock. An error ends the process. */
static void need(struct demo *d, enum cua_status status)
{
	if (status == CUA_OK)
		status = cua_context_synchronize(d->ctx);
	demo_need(d, status, cua_context_cuda_error(d->ctx));
}

/* As need, and adds the time of the call: from the last start of the clock until it is done. */
static void timed(struct demo *d, enum cua_status status)
{
	const double start = d->clock;

	need(d, status);
	d->part->seconds[d->column] += d->clock - start;
}

/* Returns an array for results. All its bits are set: no result of an earlier call remains. */
static void *output(struct demo *d, int array)
{
	const uint8_t ones = 0xff;

	need(d, cua_fill(d->ctx, d->on[array], d->array_bytes, 1, &ones));
	return d->on[array];
}

/* Copies an array of results to the host. */
static void *results(struct demo *d, int array)
{
	need(d, cua_copy(d->ctx, d->host[array], d->on[array], d->array_bytes));
	return d->host[array];
}

static const uint8_t limit = 32; /* of the filters */

/* ---- reductions ---- */

/* All sums are whole numbers below 2^53, so none is rounded. */
static void run_reduce(struct demo *d)
{
	const struct demo_part *part = d->part;
	const struct cua_reduce_options options = {
		.struct_size = sizeof(options), .finish = part->finish, .mode = part->mode};
	const double *x = d->on[F64], *y = part->op == CUA_REDUCE_DOT ? x + 1 : NULL;
	double result = NAN;

	timed(d, cua_reduce(d->ctx, &options, part->op, CUA_F64, d->n, x, y, &result));
	demo_verify_result(d, part->name, result, d->reduced[part->op]);
}

/* Sums a segment for each word: its bytes, and the white space that follows. */
static void run_segments(struct demo *d)
{
	const uint64_t *offsets = d->host[POSITIONS], *sums;

	timed(d, cua_segmented_sum(d->ctx, CUA_U32, d->n, d->on[U32], d->n_words, d->on[POSITIONS],
				   output(d, OUT_A)));
	sums = results(d, OUT_A);
	for (size_t s = 0; s < d->n_words; s++) {
		uint64_t expected = 0;

		for (size_t k = offsets[s]; k < offsets[s + 1]; k++)
			expected += d->bytes[k];
		demo_verify_result(d, "sum of a segment", sums[s], expected);
	}
}

/* Sums each run of equal bytes. */
static void run_runs(struct demo *d)
{
	const void *x = d->on[U32];
	const uint32_t *keys;
	const uint64_t *sums;
	uint64_t n = 0, run = 0;

	timed(d, cua_reduce_by_key(d->ctx, NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, d->n, x, x, d->n,
				   output(d, OUT_A), output(d, OUT_B), &n));
	keys = results(d, OUT_A);
	sums = results(d, OUT_B);
	for (size_t k = 0, end = 0; k < d->n; k = end, run++) {
		while (end < d->n && d->bytes[end] == d->bytes[k])
			end++;
		demo_verify(d, "byte of a run", keys[run], d->bytes[k]);
		demo_verify(d, "sum of a run", sums[run], (end - k) * d->bytes[k]);
	}
	demo_verify_result(d, "number of runs", n, run);
}

/* ---- filters, histograms, fill ---- */

/* The order is unspecified, so the counts of the bytes are compared. */
static void run_filter(struct demo *d)
{
	uint8_t *kept = d->host[OUT_A];
	uint64_t n = 0, count[256] = {0};
	struct cua_append *out;

	need(d, cua_append_create(d->ctx, sizeof(*kept), d->n, &out));
	timed(d, cua_filter(d->ctx, CUA_U8, d->n, d->on[U8], CUA_LE, &limit, out));
	need(d, cua_append_read(out, kept, d->n, &n));
	need(d, cua_append_destroy(out));
	for (size_t k = 0; k < n; k++)
		count[kept[k]]++;
	for (int byte = 0; byte < 256; byte++)
		demo_verify_result(d, "count of a kept byte", count[byte],
				   byte <= limit ? d->count[byte] : 0);
}

static void run_filter_in_order(struct demo *d)
{
	const struct cua_filter_options options = {.struct_size = sizeof(options), .ordered = 1};
	uint64_t n = 0, expected = 0;
	const uint8_t *kept;

	timed(d, cua_filter_array(d->ctx, &options, CUA_U8, d->n, d->on[U8], CUA_LE, &limit, d->n,
				  output(d, OUT_A), &n));
	kept = results(d, OUT_A);
	for (size_t k = 0; k < d->n; k++) {
		if (d->bytes[k] <= limit)
			demo_verify(d, "byte kept in order", kept[expected++], d->bytes[k]);
	}
	demo_verify_result(d, "number kept in order", n, expected);
}

/* A bin for each byte, then sixteen bins of sixteen bytes. */
static void run_histograms(struct demo *d)
{
	const int64_t lower = 0, upper = 256;
	uint64_t bytes[256] = {0}, even[16] = {0}, expected[16] = {0};

	timed(d, cua_histogram_bytes(d->ctx, NULL, d->n, d->on[U8], bytes));
	timed(d,
	      cua_histogram_even(d->ctx, NULL, CUA_U8, d->n, d->on[U8], 16, &lower, &upper, even));
	for (int byte = 0; byte < 256; byte++) {
		demo_verify_result(d, "count of a byte", bytes[byte], d->count[byte]);
		expected[byte / 16] += d->count[byte];
	}
	for (int bin = 0; bin < 16; bin++)
		demo_verify(d, "count of sixteen bytes", even[bin], expected[bin]);
}

static void run_fill(struct demo *d)
{
	const uint32_t pattern = 0x01020304, *filled;
	uint64_t same = 0;

	timed(d, cua_fill(d->ctx, output(d, OUT_A), d->n, sizeof(pattern), &pattern));
	filled = results(d, OUT_A);
	for (size_t k = 0; k < d->n; k++)
		same += filled[k] == pattern;
	demo_verify_result(d, "number of elements filled", same, d->n);
}

/* ---- hash tables: the keys are hashes of words ---- */

/* Counts each word, then looks up each query. */
static void run_map(struct demo *d)
{
	const uint64_t one = 1, *counts;
	const uint8_t *found;
	struct cua_hashmap *map;
	uint64_t keys = 0;

	/* a quarter more slots than keys: probes are short up to a load of 0.8 */
	need(d, cua_hashmap_create(d->ctx, NULL, CUA_U64, CUA_U64, d->n_keys * 5 / 4 + 1, &map));
	timed(d,
	      cua_hashmap_update_value_n(map, CUA_UPDATE_ADD, d->n_words, d->on[KEYS], &one, NULL));
	need(d, cua_hashmap_size(map, &keys));
	timed(d, cua_hashmap_find_n(map, d->n_queries, d->on[QUERIES], output(d, OUT_A),
				    output(d, OUT_B)));
	need(d, cua_hashmap_destroy(map));
	counts = results(d, OUT_A);
	found = results(d, OUT_B);
	for (size_t q = 0; q < d->n_queries; q++) {
		const uint64_t expected = d->first[q + 1] - d->first[q];

		demo_verify(d, "word found", found[q], expected > 0);
		if (expected > 0)
			demo_verify(d, "count of a word", counts[q], expected);
	}
	demo_verify_result(d, "number of keys", keys, d->n_keys);
}

/* Inserts the position of each word, then retrieves the positions of each query. */
static void run_multimap(struct demo *d)
{
	const uint64_t *first, *positions;
	struct demo_word *words;
	struct cua_multimap *map;
	uint64_t n = 0;

	need(d, cua_multimap_create(d->ctx, NULL, CUA_U64, CUA_U64, d->n_keys * 5 / 4 + 1,
				    d->n_words + 1, &map));
	timed(d, cua_multimap_insert_n(map, d->n_words, d->on[KEYS], d->on[POSITIONS], NULL));
	timed(d, cua_multimap_retrieve_n(map, d->n_queries, d->on[QUERIES], d->n_words,
					 output(d, OUT_A), output(d, OUT_B), &n));
	need(d, cua_multimap_destroy(map));
	first = results(d, OUT_A);
	positions = results(d, OUT_B);
	words = tool_alloc(d->n_words * sizeof(*words));
	for (size_t q = 0; q <= d->n_queries; q++)
		demo_verify(d, "first position of a word", first[q], d->first[q]);
	for (size_t q = 0; q < d->n_queries; q++) {
		for (size_t k = d->first[q]; k < d->first[q + 1]; k++)
			words[k] = (struct demo_word){d->queries[q], positions[k]};
	}
	/* the positions of a word are in any order */
	qsort(words, d->n_words, sizeof(*words), demo_word_order);
	for (size_t k = 0; k < d->n_words; k++)
		demo_verify(d, "position of a word", words[k].position, d->words[k].position);
	demo_verify_result(d, "number of positions", n, d->n_words);
	free(words);
}

/* Inserts the hash of the word at each position, then looks up each position. */
static void run_chained(struct demo *d)
{
	const uint64_t *keys = d->host[KEYS], *found_keys;
	const uint8_t *found;
	struct cua_chained *table;
	uint64_t right = 0;

	need(d, cua_chained_create(d->ctx, NULL, d->n_words + 1, d->n_words, &table));
	timed(d, cua_chained_insert_n(table, d->n_words, d->on[POSITIONS], d->on[KEYS]));
	demo_verify(d, "state of the table", cua_chained_verify(table, NULL), CUA_OK);
	timed(d, cua_chained_find_n(table, d->n_words, d->on[POSITIONS], output(d, OUT_A),
				    output(d, OUT_B)));
	need(d, cua_chained_destroy(table));
	found_keys = results(d, OUT_A);
	found = results(d, OUT_B);
	for (size_t k = 0; k < d->n_words; k++)
		right += found[k] == 1 && found_keys[k] == keys[k];
	demo_verify_result(d, "number of right words", right, d->n_words);
}

struct demo_part demo_parts[] = {
	{"sum", run_reduce, "", .op = CUA_REDUCE_SUM},
	{"sum, by an atomic", run_reduce, "", CUA_REDUCE_SUM, .finish = CUA_FINISH_ATOMIC},
	{"sum, under a lock", run_reduce, "", CUA_REDUCE_SUM, .finish = CUA_FINISH_LOCK},
	{"sum, locks in order", run_reduce, "", CUA_REDUCE_SUM, .finish = CUA_FINISH_ORDERED_LOCK},
	{"dot", run_reduce, "", .op = CUA_REDUCE_DOT},
	{"dot, exact", run_reduce, "", CUA_REDUCE_DOT, .mode = CUA_REDUCE_EXACT},
	{"min", run_reduce, "", CUA_REDUCE_MIN, .combine = fmin, .result = {INFINITY, INFINITY}},
	{"max", run_reduce, "", CUA_REDUCE_MAX, .combine = fmax, .result = {-INFINITY, -INFINITY}},
	{"sums of segments", run_segments, .unit = " in all segments"},
	{"sums of runs", run_runs, .unit = " runs of equal bytes"},
	{"filter", run_filter, .unit = " bytes <= 32"},
	{"filter, in order", run_filter_in_order, .unit = " bytes <= 32"},
	{"histograms", run_histograms, .unit = " bytes"},
	{"fill and copy", run_fill, .unit = " elements"},
	{"hash map", run_map, .unit = " different words"},
	{"multimap", run_multimap, .unit = " positions of words"},
	{"chained table", run_chained, .unit = " positions of words"},
	{NULL},
};

void demo_run(struct cua_context *const contexts[DEMO_COLUMNS], const uint8_t *bytes, size_t n)
{
	struct demo_part memory = {.name = "memory"};
	struct demo d;

	demo_open(&d, bytes, n);
	for (d.column = 0; d.column < DEMO_COLUMNS; d.column++) {
		d.ctx = contexts[d.column];
		d.where = device_names[d.column];
		if (!d.ctx)
			continue;
		d.part = &memory;
		for (int k = 0; k < ARRAYS; k++) {
			need(&d, cua_alloc(d.ctx, 1, d.array_bytes, &d.on[k]));
			need(&d, cua_copy(d.ctx, d.on[k], d.host[k], d.array_bytes));
		}
		for (d.part = demo_parts; d.part->name; d.part++)
			d.part->run(&d);
		for (int k = 0; k < ARRAYS; k++)
			cua_free(d.ctx, d.on[k]);
	}
	demo_close(&d);
}
