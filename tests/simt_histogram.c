/* SPDX-License-Identifier: MIT */
/* The kernels of histograms, in small blocks that count few values. */
#define CUA__HISTOGRAM_LOADS 2u
#define CUA__HISTOGRAM_BYTES 16u
#define CUA__HISTOGRAM_BLOCK 64u
#define CUA__HISTOGRAM_SMALL_BLOCK 32u
/* only some of the cases are small */
#define CUA__HISTOGRAM_SMALL_BYTES 8010u
#define CUA__HISTOGRAM_COLUMN_COUNTERS 20u
#define CUA__HISTOGRAM_RANGE_READS 2u
#define CUA__HISTOGRAM_SAMPLES 2u
#define CUA__HISTOGRAM_CACHE_SHORT 1u
#define CUA__HISTOGRAM_CACHE_LONG 2u

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/kernels/histogram_kernel.h"
#include "simt_suites.h"

enum { MOST = 6000, MOST_BINS = 1200, MOST_WORDS = 40000 };

static struct cua__histogram_plan plan;
static struct cua_finish control;
static uint64_t memory[MOST + 8];
static uint64_t counts[MOST_BINS + 1], outside[CUA_HISTOGRAM_SIDES + 1];
static uint64_t counts_before[MOST_BINS + 1], outside_before[CUA_HISTOGRAM_SIDES + 1];
static uint64_t expected[MOST_BINS], expected_outside[CUA_HISTOGRAM_SIDES];
static uint64_t start[MOST_BINS + CUA_HISTOGRAM_SIDES]; /* the counts before an accumulating call */
static uint32_t rows[MOST_WORDS], sums[CUA__HISTOGRAM_SUMS], cached;
static uint64_t keys[MOST_BINS + 1];

static uint64_t rng;
static uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 33;
}

/* ---- a histogram and its expected counts ---- */

/* BLOCKS: long runs; MOVING: a few values that change over time; NEAR: values around an edge */
enum data { ANY, FEW, ONE, RUNS, BLOCKS, MOVING, NEAR };

/*
 * Steps of 1; powers of 2 of both signs; the last edge is 0; all equal; from the least to the
 * greatest value.
 */
enum edges { EVENLY, POWERS, UP_TO_0, EQUAL, ENDLESS };

struct setting {
	enum cua_type type;
	enum cua__bin_rule rule;
	uint32_t bins;
	size_t n;
	enum data data;
	size_t shared_bytes;
	uint32_t processors;
	enum cua__histogram_layout layout; /* the layout that the plan must choose */
	int u32_counts, accumulate;
	enum edges edges;
};

static uint64_t element(const struct setting *t, size_t i)
{
	/* of ANY: some elements are outside */
	uint64_t range = t->rule == CUA__BIN_EVEN ? (uint64_t)t->bins * 3 : (uint64_t)t->bins + 40,
		 v = 0;
	float f;
	double d;

	switch (t->data) {
	case ANY: v = next_random() % (range + 60); break;
	case FEW: v = 30 + next_random() % 9; break;
	case ONE: v = 33; break;
	case RUNS: v = 20 + i / 150 * 7 % range; break;
	case BLOCKS: v = 20 + i / 700 * 7 % range; break;
	case MOVING: v = 20 + (i / 300 * 50 + next_random() % 9) % range; break;
	case NEAR:
		v = next_random() % (t->bins + 1);
		if (t->type == CUA_I64)
			return (keys[v] ^ 0x8000000000000000u) + next_random() % 3 - 1;
		if (next_random() % 20 == 0)
			return next_random() % 2 ? 0x80000000u : 0;
		v = ((const uint32_t *)(const void *)keys)[v] + next_random() % 3 - 1;
		return (uint32_t)(v >> 31 & 1 ? v ^ 0x80000000u : ~v);
	}
	switch (t->type) {
	case CUA_U8: return v % CUA__HISTOGRAM_BYTES;
	case CUA_F32:
		f = (float)v / 2 - 7;
		memcpy(&v, &f, sizeof(f));
		if (t->data == ANY && next_random() % 50 == 0)
			v = 0x7fc00000u;
		return v & 0xffffffffu;
	case CUA_F64:
		d = (double)v / 2 - 7;
		memcpy(&v, &d, sizeof(d));
		return v;
	case CUA_I16: return (uint16_t)(v - 25);
	case CUA_I32: return (uint32_t)(v - 25);
	case CUA_I64: return v - 25;
	default: return v;
	}
}

/* Counts an element at a time by the functions of the header. */
static uint32_t model_slot(const struct cua__histogram *h, uint64_t raw)
{
	const int64_t i = h->type == CUA_I16   ? (int16_t)raw
			  : h->type == CUA_I32 ? (int32_t)raw
					       : (int64_t)raw;
	enum cua_histogram_side side;
	uint32_t bin, low = (uint32_t)raw;
	float f;
	double d;

	memcpy(&f, &low, sizeof(f));
	memcpy(&d, &raw, sizeof(d));
	if (h->rule == CUA__BIN_BYTE)
		return (uint32_t)raw;
	if (h->rule == CUA__BIN_EDGES) {
		if (h->type == CUA_F32) {
			const float *edges = (const float *)(const void *)(keys + MOST_BINS / 2);

			bin = cua_histogram_edge_bin_f32(edges, h->bins, h->closed, f);
			side = cua_histogram_edge_side_f32(edges, f);
		} else {
			const int64_t *edges = (const int64_t *)(keys + MOST_BINS / 2);

			bin = cua_histogram_edge_bin_i64(edges, h->bins, h->closed, i);
			side = cua_histogram_edge_side_i64(edges, i);
		}
	} else if (h->range.is_float) {
		d = h->type == CUA_F32 ? (double)f : d;
		bin = cua_histogram_even_bin_f64(&h->range, d);
		side = cua_histogram_side_f64(&h->range, d);
	} else {
		bin = cua_histogram_even_bin_i64(&h->range, i);
		side = cua_histogram_side_i64(&h->range, i);
	}
	return bin != CUA_HISTOGRAM_NO_BIN ? bin : h->bins + side;
}

/* Makes the call's plan; the elements begin an element behind an aligned address. */
static void make(const struct setting *t, int closed)
{
	struct cua__histogram h;
	const size_t size = cua__element_size(t->type);
	char *x = (char *)memory + size;

	memset(&h, 0, sizeof(h));
	h.type = t->type;
	h.x = x;
	h.n = h.width = t->n;
	h.channels = h.counted = 1;
	h.rule = t->rule;
	h.bins = t->bins;
	h.closed = closed;
	h.count_type = t->u32_counts ? CUA_U32 : CUA_U64;
	h.counts = counts;
	h.outside = outside;
	h.clear = !t->accumulate;
	h.edges = keys;
	if (t->rule == CUA__BIN_EVEN) {
		if (t->type == CUA_F32 || t->type == CUA_F64)
			ck_assert(!cua_histogram_range_f64(-3, t->bins - 3.0, t->bins, &h.range));
		else
			ck_assert(!cua_histogram_range_i64(
				5, 5 + (int64_t)t->bins * 3 - t->bins % 2, t->bins, &h.range));
		if (closed)
			cua_histogram_range_close(&h.range);
	}
	/* the edges as elements, in the upper half of the array, and as keys; some are equal */
	for (uint32_t i = 0; i <= t->bins && t->rule == CUA__BIN_EDGES; i++) {
		int64_t edge = (int64_t)(i - i % 5 / 4) - 3;
		float f;

		switch (t->edges) {
		case EVENLY: break;
		case POWERS: edge = edge < 20 ? -(1 << (20 - edge)) : 1 << (edge - 20) % 30; break;
		case UP_TO_0: edge = (int64_t)i - t->bins; break;
		case EQUAL: edge = 33; break;
		case ENDLESS: edge = i == 0 ? INT64_MIN : i == t->bins ? INT64_MAX : edge; break;
		}
		f = (float)edge;
		if (t->edges == ENDLESS && (i == 0 || i == t->bins))
			f = i ? HUGE_VALF : -HUGE_VALF;
		if (t->type == CUA_F32) {
			((float *)(void *)(keys + MOST_BINS / 2))[i] = f;
			((uint32_t *)(void *)keys)[i] = cua__histogram_edge_key_f32(f);
		} else {
			((int64_t *)(keys + MOST_BINS / 2))[i] = edge;
			keys[i] = cua__histogram_edge_key_i64(edge);
		}
	}
	ck_assert(cua__histogram_plan(&h, t->processors, t->shared_bytes, &plan));
	ck_assert_int_eq(plan.layout, t->layout);
	ck_assert_uint_le(plan.shared, 16 << 10);
	ck_assert_uint_le((size_t)plan.job.private_words * plan.job.blocks, MOST_WORDS);
	plan.job.h = h;
	plan.job.privates = rows;
	plan.job.finish = &control;
	plan.job.sums = plan.sums ? sums : NULL;
	plan.job.cached = plan.sampled ? &cached : NULL;
	memset(expected, 0, sizeof(expected));
	memset(expected_outside, 0, sizeof(expected_outside));
	for (uint32_t i = 0; i < t->bins + CUA_HISTOGRAM_SIDES; i++)
		start[i] = t->accumulate ? i * 3 + 1 : 0;
	for (size_t i = 0; i < t->n; i++) {
		uint64_t raw = element(t, i);
		uint32_t slot = model_slot(&h, raw);

		memcpy(x + i * size, &raw, size);
		if (slot < t->bins)
			expected[slot]++;
		else
			expected_outside[slot - t->bins]++;
	}
}

static uint64_t count_at(const uint64_t *where, uint32_t i)
{
	return plan.job.h.count_type == CUA_U32 ? ((const uint32_t *)(const void *)where)[i]
						: where[i];
}

static void setup(void)
{
	const struct cua__histogram *h = &plan.job.h;
	const int cleared = plan.layout > CUA__COUNT_WORDS || !h->clear;

	memset(counts, 0xee, sizeof(counts));
	memset(outside, 0xee, sizeof(outside));
	memset(rows, 0xee, sizeof(rows));
	memset(sums, 0, sizeof(sums));
	memset(&control, 0, sizeof(control));
	for (uint32_t i = 0; i < h->bins && cleared; i++)
		if (h->count_type == CUA_U32)
			((uint32_t *)(void *)counts)[i] = (uint32_t)start[i];
		else
			counts[i] = start[i];
	for (uint32_t i = 0; i < CUA_HISTOGRAM_SIDES && cleared; i++)
		outside[i] = start[h->bins + i];
}

static const char *compare(void)
{
	static const struct cua_finish zero;
	static char message[160];
	const struct cua__histogram *h = &plan.job.h;

	for (uint32_t i = 0; i < h->bins + CUA_HISTOGRAM_SIDES; i++) {
		uint64_t got = i < h->bins ? count_at(counts, i) : outside[i - h->bins];
		uint64_t wanted =
			start[i] + (i < h->bins ? expected[i] : expected_outside[i - h->bins]);

		if (got == wanted)
			continue;
		snprintf(message, sizeof(message),
			 "slot %u of %u bins, %llu elements: %lld, not %lld", i, h->bins,
			 (unsigned long long)h->n, (long long)got, (long long)wanted);
		return message;
	}
	if (count_at(counts, h->bins) !=
		    (h->count_type == CUA_U32 ? 0xeeeeeeeeu : 0xeeeeeeeeeeeeeeeeu) ||
	    outside[CUA_HISTOGRAM_SIDES] != 0xeeeeeeeeeeeeeeeeu)
		return "something was stored past the end";
	for (uint32_t i = 0; i < CUA__HISTOGRAM_SUMS; i++)
		if (sums[i])
			return "a sum is not zero again";
	return memcmp(&control, &zero, sizeof(zero)) ? "the state is not zero again" : NULL;
}

/* Of a kernel that other kernels follow. */
static const char *keep(void)
{
	memcpy(counts_before, counts, sizeof(counts));
	memcpy(outside_before, outside, sizeof(outside));
	return NULL;
}

static void next_setup(void)
{
	memcpy(counts, counts_before, sizeof(counts));
	memcpy(outside, outside_before, sizeof(outside));
}

static size_t shared_of(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_CACHE ? (size_t)cua__histogram_words(layout, &plan.job) * 4
					  : plan.shared;
}

#define BODY(name, type, rule, layout)                                                             \
	static void name(void)                                                                     \
	{                                                                                          \
		struct cua__histogram_block block;                                                 \
                                                                                                   \
		cua__histogram_begin(type, rule, layout, &plan.job, plan.job.h.edges,              \
				     simt_shared(shared_of(layout)), &block);                      \
		cua__histogram_run(type, rule, layout, &plan.job, &block);                         \
	}
BODY(values, CUA_U8, CUA__RULE_VALUE, CUA__COUNT_COLUMNS)
BODY(columns_u32, CUA_U32, CUA__RULE_EVEN_FAST, CUA__COUNT_COLUMNS)
BODY(columns_f32, CUA_F32, CUA__RULE_EVEN_FAST, CUA__COUNT_COLUMNS)
BODY(words_i16, CUA_I16, CUA__RULE_EVEN_FAST, CUA__COUNT_WORDS)
BODY(words_u32, CUA_U32, CUA__RULE_EVEN_FAST, CUA__COUNT_WORDS)
BODY(words_f64, CUA_F64, CUA__RULE_EVEN_FAST, CUA__COUNT_WORDS)
BODY(words_i64, CUA_I64, CUA__RULE_EVEN, CUA__COUNT_WORDS)
BODY(halves_u32, CUA_U32, CUA__RULE_EVEN_FAST, CUA__COUNT_HALVES)
BODY(halves_i64, CUA_I64, CUA__RULE_EVEN, CUA__COUNT_HALVES)
/* as on the GPU, whose kernels for U32 count I32 as well */
BODY(bytes_i32, CUA_U32, CUA__RULE_EVEN_FAST, CUA__COUNT_BYTES)
BODY(bytes_f32, CUA_F32, CUA__RULE_EVEN_FAST, CUA__COUNT_BYTES)
BODY(cache_u32, CUA_U32, CUA__RULE_EVEN_FAST, CUA__COUNT_CACHE)
BODY(cache_f32, CUA_F32, CUA__RULE_EVEN_FAST, CUA__COUNT_CACHE)
BODY(cache_f64, CUA_F64, CUA__RULE_EVEN_FAST, CUA__COUNT_CACHE)
BODY(cache_i64, CUA_I64, CUA__RULE_EVEN, CUA__COUNT_CACHE)
BODY(edges_f32, CUA_F32, CUA__RULE_EDGES, CUA__COUNT_WORDS)
BODY(edges_i64, CUA_I64, CUA__RULE_EDGES, CUA__COUNT_COLUMNS)
BODY(edges_few_f32, CUA_F32, CUA__RULE_EDGES, CUA__COUNT_COLUMNS)

static void merge(void)
{
	uint64_t *shared = simt_shared(4 * 32 * 2 * sizeof(*shared));
	const struct cua__histogram_job *j = &plan.job;
	const int add = plan.layout > CUA__COUNT_WORDS || !j->h.clear;

	switch (plan.layout) {
	case CUA__COUNT_HALVES: cua__histogram_merge(CUA__COUNT_HALVES, j, add, shared); break;
	case CUA__COUNT_BYTES: cua__histogram_merge(CUA__COUNT_BYTES, j, add, shared); break;
	default: cua__histogram_merge(CUA__COUNT_WORDS, j, add, shared); break;
	}
}

static void try_setting(const struct setting *t, void (*body)(void), int closed)
{
	struct simt_case c = {.name = "histogram", .setup = setup, .body = body};
	int merges;

	make(t, closed);
	merges = !plan.job.finish_here && plan.layout != CUA__COUNT_CACHE;
	if (plan.sampled) {
		c.name = "sample and cache";
		c.body = t->type == CUA_F32 ? cache_f32 : cache_u32;
		c.check = keep;
		try_shape(c, plan.job.blocks, plan.block, 1);
		/* the sample of a few values is too small */
		ck_assert(t->data == FEW || cached == (t->data != ANY));
		c.name = cached ? "nothing after a cache" : "histogram";
		c.setup = next_setup;
		c.body = body;
	}
	c.check = merges ? keep : compare;
	try_shape(c, plan.job.blocks, plan.block, 1);
	if (!merges)
		return;
	c.name = "merged rows";
	c.setup = next_setup;
	c.body = merge;
	c.check = compare;
	try_shape(c, cua__histogram_merges(&plan.job), 64, 1);
}

START_TEST(kernels)
{
	static const struct {
		struct setting t;
		void (*body)(void);
	} cases[] = {
#define B CUA__BIN_BYTE
#define E CUA__BIN_EVEN
#define D CUA__BIN_EDGES
		{{CUA_U8, B, 16, 5000, ANY, 16384, 3, CUA__COUNT_COLUMNS, 0, 0, EVENLY}, values},
		{{CUA_U8, B, 16, 77, ONE, 16384, 3, CUA__COUNT_COLUMNS, 1, 1, EVENLY}, values},
		{{CUA_U8, B, 16, 5, ANY, 16384, 1, CUA__COUNT_COLUMNS, 0, 1, EVENLY}, values},
		{{CUA_U32, E, 16, 3001, ANY, 16384, 2, CUA__COUNT_COLUMNS, 0, 0, EVENLY},
		 columns_u32},
		{{CUA_F32, E, 9, 2003, ANY, 16384, 4, CUA__COUNT_COLUMNS, 1, 0, EVENLY},
		 columns_f32},
		{{CUA_U32, E, 100, 4003, FEW, 16384, 4, CUA__COUNT_WORDS, 0, 0, EVENLY}, words_u32},
		{{CUA_U32, E, 500, 999, ANY, 16384, 4, CUA__COUNT_WORDS, 0, 1, EVENLY}, words_u32},
		{{CUA_I16, E, 77, 2100, ANY, 16384, 2, CUA__COUNT_WORDS, 1, 0, EVENLY}, words_i16},
		{{CUA_F64, E, 60, 1001, ANY, 16384, 3, CUA__COUNT_WORDS, 0, 0, EVENLY}, words_f64},
		{{CUA_I64, E, 60, 1001, RUNS, 16384, 3, CUA__COUNT_WORDS, 0, 0, EVENLY}, words_i64},
		{{CUA_U32, E, 199, 3001, ANY, 512, 3, CUA__COUNT_HALVES, 0, 0, EVENLY}, halves_u32},
		{{CUA_U32, E, 199, 3001, RUNS, 512, 3, CUA__COUNT_HALVES, 1, 1, EVENLY},
		 halves_u32},
		{{CUA_I64, E, 150, 1200, FEW, 512, 2, CUA__COUNT_HALVES, 0, 0, EVENLY}, halves_i64},
		{{CUA_U32, E, 199, 5999, BLOCKS, 512, 2, CUA__COUNT_HALVES, 0, 0, EVENLY},
		 halves_u32},
		{{CUA_U32, E, 199, 5999, MOVING, 512, 2, CUA__COUNT_HALVES, 0, 0, EVENLY},
		 halves_u32},
		/* a single range, then several ranges; 8-bit fields overflow */
		{{CUA_I32, E, 240, 5990, FEW, 256, 1, CUA__COUNT_BYTES, 0, 0, EVENLY}, bytes_i32},
		{{CUA_I32, E, 240, 5990, FEW, 256, 2, CUA__COUNT_BYTES, 1, 1, EVENLY}, bytes_i32},
		{{CUA_I32, E, 240, 3000, ONE, 256, 2, CUA__COUNT_BYTES, 0, 0, EVENLY}, bytes_i32},
		{{CUA_I32, E, 900, 5000, ANY, 256, 9, CUA__COUNT_BYTES, 0, 1, EVENLY}, bytes_i32},
		{{CUA_F32, E, 999, 4000, RUNS, 256, 5, CUA__COUNT_BYTES, 0, 0, EVENLY}, bytes_f32},
		{{CUA_F32, E, 999, 5990, BLOCKS, 256, 5, CUA__COUNT_BYTES, 0, 0, EVENLY},
		 bytes_f32},
		{{CUA_I32, E, 240, 5990, BLOCKS, 256, 1, CUA__COUNT_BYTES, 0, 0, EVENLY},
		 bytes_i32},
		{{CUA_I32, E, 240, 5990, MOVING, 256, 1, CUA__COUNT_BYTES, 0, 0, EVENLY},
		 bytes_i32},
		/* few slots, then more */
		{{CUA_U32, E, 1000, 3000, ANY, 56, 3, CUA__COUNT_CACHE, 0, 0, EVENLY}, cache_u32},
		{{CUA_U32, E, 1000, 3000, RUNS, 56, 3, CUA__COUNT_CACHE, 1, 1, EVENLY}, cache_u32},
		{{CUA_U32, E, 1000, 5990, MOVING, 120, 2, CUA__COUNT_CACHE, 0, 0, EVENLY},
		 cache_u32},
		{{CUA_U32, E, 1000, 3000, ONE, 56, 3, CUA__COUNT_CACHE, 0, 0, EVENLY}, cache_u32},
		{{CUA_F64, E, 1000, 2000, ANY, 256, 2, CUA__COUNT_CACHE, 1, 0, EVENLY}, cache_f64},
		{{CUA_I64, E, 300, 3000, MOVING, 256, 2, CUA__COUNT_CACHE, 0, 1, EVENLY},
		 cache_i64},
		{{CUA_F32, E, 999, 1000, FEW, 256, 5, CUA__COUNT_CACHE, 0, 0, EVENLY}, cache_f32},
		{{CUA_F32, D, 100, 2500, ANY, 8192, 2, CUA__COUNT_WORDS, 0, 0, EVENLY}, edges_f32},
		{{CUA_F32, D, 64, 1500, RUNS, 8192, 2, CUA__COUNT_WORDS, 1, 1, EVENLY}, edges_f32},
		{{CUA_I64, D, 9, 1500, ANY, 8192, 3, CUA__COUNT_COLUMNS, 0, 0, EVENLY}, edges_i64},
		{{CUA_I64, D, 1, 300, FEW, 8192, 3, CUA__COUNT_COLUMNS, 0, 0, EVENLY}, edges_i64},
		{{CUA_F32, D, 100, 1500, NEAR, 8192, 2, CUA__COUNT_WORDS, 0, 0, EVENLY}, edges_f32},
		{{CUA_F32, D, 48, 1500, NEAR, 8192, 2, CUA__COUNT_WORDS, 0, 0, POWERS}, edges_f32},
		{{CUA_F32, D, 70, 1500, NEAR, 8192, 2, CUA__COUNT_WORDS, 0, 0, UP_TO_0}, edges_f32},
		{{CUA_F32, D, 16, 900, NEAR, 8192, 2, CUA__COUNT_COLUMNS, 0, 0, EQUAL},
		 edges_few_f32},
		{{CUA_F32, D, 70, 1500, NEAR, 8192, 2, CUA__COUNT_WORDS, 0, 0, ENDLESS}, edges_f32},
		{{CUA_F32, D, 1, 300, NEAR, 8192, 2, CUA__COUNT_COLUMNS, 0, 0, ENDLESS},
		 edges_few_f32},
		{{CUA_I64, D, 16, 900, NEAR, 8192, 2, CUA__COUNT_COLUMNS, 0, 0, POWERS}, edges_i64},
		{{CUA_I64, D, 16, 900, NEAR, 8192, 2, CUA__COUNT_COLUMNS, 0, 0, EQUAL}, edges_i64},
		{{CUA_I64, D, 16, 900, NEAR, 8192, 2, CUA__COUNT_COLUMNS, 0, 0, ENDLESS},
		 edges_i64},
#undef B
#undef E
#undef D
	};

	rng = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int closed = 0; closed < 2; closed++)
			try_setting(&cases[i].t, cases[i].body, closed);
}
END_TEST

/* ---- any histogram ---- */

static struct cua__histogram_job any_job;
static uint32_t any_own;
static uint64_t weights[MOST];

static void any_body(void)
{
	const size_t words = any_own ? (any_own + CUA_HISTOGRAM_SIDES) * any_job.h.counted *
					       (any_job.h.weight_type ? 2 : 1)
				     : 0;

	/* as on the GPU */
	cua__histogram_any_kernel(CUA_U16, &any_job, any_own, simt_shared(words * 4));
}

static void any_setup(void)
{
	memset(counts, 0, sizeof(counts));
	memset(outside, 0, sizeof(outside));
}

static uint64_t any_outside[4 * CUA_HISTOGRAM_SIDES];

static const char *any_check(void)
{
	static char message[160];
	const struct cua__histogram *h = &any_job.h;

	for (uint32_t i = 0; i < h->bins * h->counted; i++)
		if (counts[i] != expected[i]) {
			snprintf(message, sizeof(message), "bin %u of channel %u: %lld, not %lld",
				 i % h->bins, i / h->bins, (long long)counts[i],
				 (long long)expected[i]);
			return message;
		}
	if (h->outside && memcmp(outside, any_outside, h->counted * sizeof(any_outside) / 4))
		return "the sides are wrong";
	return NULL;
}

START_TEST(any)
{
	static const struct {
		unsigned channels, counted;
		size_t rows, width, gap; /* gap: values between the end of a row and the next row */
		enum cua_type weight_type;
		enum cua_histogram_strategy strategy;
		uint32_t own;
		unsigned blocks, lanes;
	} cases[] = {
		{1, 1, 1, 1000, 0, (enum cua_type)0, CUA_HISTOGRAM_AUTO, 50, 2, 64},
		{3, 2, 7, 31, 5, (enum cua_type)0, CUA_HISTOGRAM_AUTO, 50, 2, 64},
		{4, 4, 40, 9, 1, CUA_I32, CUA_HISTOGRAM_AUTO, 50, 3, 32},
		{2, 1, 3, 200, 0, CUA_U64, CUA_HISTOGRAM_PRIVATIZED, 20, 2, 64},
		{1, 1, 5, 101, 3, CUA_F64, CUA_HISTOGRAM_AGGREGATED, 50, 2, 96},
		{2, 2, 5, 101, 2, CUA_F32, CUA_HISTOGRAM_BLOCKED, 0, 2, 64},
		{4, 1, 1, 333, 0, CUA_F64, CUA_HISTOGRAM_INTERLEAVED, 0, 1, 96},
	};

	rng = 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct simt_case c = {.name = "any histogram",
				      .setup = any_setup,
				      .body = any_body,
				      .check = any_check};
		struct cua__histogram *h = &any_job.h;
		int16_t *x = (int16_t *)(void *)memory + 1;
		const size_t pitch = cases[i].width * cases[i].channels + cases[i].gap;

		memset(&any_job, 0, sizeof(any_job));
		any_job.bias = 0x80000000u;
		memset(expected, 0, sizeof(expected));
		memset(any_outside, 0, sizeof(any_outside));
		h->type = CUA_I16;
		h->x = x;
		h->n = cases[i].rows * cases[i].width;
		h->width = cases[i].width;
		h->pitch = pitch * sizeof(*x);
		h->channels = cases[i].channels;
		h->counted = cases[i].counted;
		h->rule = CUA__BIN_EVEN;
		h->bins = 50;
		h->count_type = CUA_U64;
		h->counts = counts;
		h->outside = h->counted == 1 ? outside : NULL;
		h->weight_type = cases[i].weight_type;
		h->weights = weights;
		h->weight_limit = 8;
		h->per_unit = 1024;
		h->strategy = cases[i].strategy;
		any_own = cases[i].own;
		ck_assert(!cua_histogram_range_i64(-100, 107, h->bins, &h->range));
		for (size_t e = 0; e < h->n; e++) {
			int64_t w = (int64_t)(next_random() % 20000) - 10000;
			double f = (double)w / 1024;
			float f32 = (float)f;
			int taken = 1;

			switch (h->weight_type) {
			case CUA_I32: ((int32_t *)(void *)weights)[e] = (int32_t)w; break;
			case CUA_U64: weights[e] = (uint64_t)(w <<= 33); break;
			case CUA_F32: ((float *)(void *)weights)[e] = f32; break;
			case CUA_F64: memcpy(&weights[e], &f, sizeof(f)); break;
			default: w = 1; break;
			}
			if (cua__is_float(h->weight_type))
				taken = f >= -8 && f <= 8;
			for (unsigned ch = 0; ch < h->channels; ch++) {
				int16_t v = (int16_t)((int)(next_random() % 240) - 120);
				uint32_t bin = cua_histogram_even_bin_i64(&h->range, v);

				x[e / h->width * pitch + e % h->width * h->channels + ch] = v;
				if (ch >= h->counted)
					continue;
				if (bin == CUA_HISTOGRAM_NO_BIN)
					any_outside[ch * CUA_HISTOGRAM_SIDES +
						    cua_histogram_side_i64(&h->range, v)]++;
				else if (!taken)
					any_outside[ch * CUA_HISTOGRAM_SIDES +
						    CUA_HISTOGRAM_REFUSED]++;
				else
					expected[ch * h->bins + bin] += (uint64_t)w;
			}
		}
		try_shape(c, cases[i].blocks, cases[i].lanes, 1);
	}
}
END_TEST

TCase *simt_histogram_cases(void)
{
	TCase *tc = simt_tcase("histogram");

	tcase_add_test(tc, kernels);
	tcase_add_test(tc, any);
	return tc;
}
