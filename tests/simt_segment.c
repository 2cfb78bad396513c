/* SPDX-License-Identifier: MIT */
/* The kernels of segmented reductions: the very functions that the GPU runs, in small tiles. */
#define CUA__SEGMENT_ITEMS 3u

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/segment_kernel.h"
#include "simt_suites.h"

enum { MOST = 40000 };

static struct cua__segments segments;
static struct cua__part parts[160];
static struct cua_finish control;
static uint64_t offsets[MOST + 1];
static double x_f64[MOST + 8];
static float x_f32[MOST + 8];
static double results_f64[MOST + 2], expected_f64[MOST + 2];
static float results_f32[MOST + 2], expected_f32[MOST + 2];

static uint64_t rng;
static uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 33;
}

/* Segments of elements that are small integers, so that every order of adding them is exact. */
static void make_segments(enum cua_reduce_op op, enum cua_type type, uint64_t n, uint64_t most_length,
			  unsigned empty)
{
	uint64_t i = 0, at = next_random() % 3;

	offsets[0] = at;
	for (; i + 1 < MOST && at < n; i++) {
		uint64_t length = next_random() % 8 < empty ? 0 : next_random() % (most_length + 1);

		at = at + length < n ? at + length : n;
		offsets[i + 1] = at;
	}
	memset(&segments, 0, sizeof(segments));
	segments.op = op;
	segments.type = type;
	segments.n = n;
	segments.segments = i;
	segments.offsets = offsets;
	segments.scratch = parts;
	segments.control = &control;
	segments.x = type == CUA_F64 ? (void *)(x_f64 + 1) : (void *)(x_f32 + 1);
	segments.results = type == CUA_F64 ? (void *)results_f64 : (void *)results_f32;
	for (uint64_t k = 0; k < n; k++) {
		x_f64[k + 1] = (double)(next_random() % 2001) - 1000;
		x_f32[k + 1] = (float)x_f64[k + 1];
	}
	for (uint64_t s = 0; s < i; s++) {
		double t = op == CUA_REDUCE_MAX ? -INFINITY : 0;

		for (uint64_t k = offsets[s]; k < offsets[s + 1]; k++)
			t = op != CUA_REDUCE_MAX ? t + x_f64[k + 1] : x_f64[k + 1] > t ? x_f64[k + 1] : t;
		expected_f64[s] = t;
		expected_f32[s] = (float)t;
	}
}

static void segments_setup(void)
{
	memset(parts, 0xff, sizeof(parts));
	memset(&control, 0, sizeof(control));
	memset(results_f64, 0xff, sizeof(results_f64));
	memset(results_f32, 0xff, sizeof(results_f32));
}

static const char *segments_check(void)
{
	static const struct cua_finish zero;
	static char message[160];
	double poison;

	memset(&poison, 0xff, sizeof(poison));
	for (uint64_t s = 0; s < segments.segments; s++) {
		int same = segments.type == CUA_F64
				   ? !memcmp(&results_f64[s], &expected_f64[s], sizeof(double))
				   : !memcmp(&results_f32[s], &expected_f32[s], sizeof(float));

		if (same)
			continue;
		snprintf(message, sizeof(message), "segment %d of %d (%d to %d): %g, not %g", (int)s,
			 (int)segments.segments, (int)offsets[s], (int)offsets[s + 1],
			 segments.type == CUA_F64 ? results_f64[s] : (double)results_f32[s],
			 expected_f64[s]);
		return message;
	}
	if (memcmp(&results_f64[segments.segments], &poison, sizeof(poison)) &&
	    segments.type == CUA_F64)
		return "something was stored past the end";
	return memcmp(&control, &zero, sizeof(zero)) ? "the state is not zero again" : NULL;
}

static void fast_f64(void)
{
	cua__segment_fast(CUA_REDUCE_SUM, CUA_F64, &segments, simt_shared(sizeof(struct cua__segment_shared)));
}

static void fast_f32(void)
{
	cua__segment_fast(CUA_REDUCE_SUM, CUA_F32, &segments, simt_shared(sizeof(struct cua__segment_shared)));
}

static void fast_max_f32(void)
{
	cua__segment_fast(CUA_REDUCE_MAX, CUA_F32, &segments, simt_shared(sizeof(struct cua__segment_shared)));
}

START_TEST(fast)
{
	static const struct {
		unsigned blocks, lanes;
		uint64_t n, most_length;
		unsigned empty;
	} shapes[] = {
		{1, 32, 0, 5, 0},       {1, 32, 1, 1, 0},      {1, 32, 50, 10, 0},
		{1, 64, 900, 3, 0},     {2, 64, 900, 10, 1},   {3, 64, 2000, 2000, 1},
		{4, 32, 3000, 100, 7},  {2, 256, 6000, 30, 2}, {1, 256, 20000, 20000, 0},
		{5, 96, 5000, 5000, 4}, {8, 32, 200, 1, 7},    {8, 32, 3001, 3001, 0},
	};

	rng = 1;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int kind = 0; kind < 3; kind++) {
			struct simt_case c = {.name = "segments", .setup = segments_setup,
					      .check = segments_check};

			make_segments(kind == 2 ? CUA_REDUCE_MAX : CUA_REDUCE_SUM,
				      kind ? CUA_F32 : CUA_F64, shapes[i].n, shapes[i].most_length,
				      shapes[i].empty);
			c.body = kind == 0 ? fast_f64 : kind == 1 ? fast_f32 : fast_max_f32;
			try_shape(c, shapes[i].blocks, shapes[i].lanes, 1);
		}
}
END_TEST

/* The join alone, of more parts than a block has threads. */
static uint64_t n_parts;

static void join_setup(void)
{
	struct cua__path path;
	uint64_t i = 0, j, length;

	segments_setup();
	cua__path_init(&path, &segments);
	j = path.first;
	length = cua__path_length(&path);
	for (uint64_t k = 0; k < n_parts; k++) {
		uint64_t end = length * (k + 1) / n_parts;
		double t = 0;

		parts[k].first = i;
		for (parts[k].ends = 0; i + (j - path.first) < end;) {
			if (i < path.segments && cua__path_offset(&path, i + 1) <= j) {
				if (!parts[k].ends++)
					parts[k].head = cua__bits_f64(t);
				else
					results_f64[i] = t;
				i++;
				t = 0;
			} else {
				t += x_f64[++j];
			}
		}
		parts[k].tail = cua__bits_f64(t);
	}
}

static void join_body(void)
{
	struct cua__path path;

	cua__path_init(&path, &segments);
	cua__segment_join(CUA_REDUCE_SUM, CUA_F64, &segments, &path,
			  simt_shared(sizeof(struct cua__segment_shared)), n_parts);
}

START_TEST(join)
{
	struct simt_case c = {.name = "join", .setup = join_setup, .body = join_body,
			      .check = segments_check};
	static const uint64_t lengths[] = {1, 5, 40, 300, 5000};

	rng = 4;
	for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
		for (n_parts = 1; n_parts < 160; n_parts = n_parts * 2 + 1) {
			make_segments(CUA_REDUCE_SUM, CUA_F64, 1500, lengths[l], l == 2 ? 4 : 0);
			try_shape(c, 1, l % 2 ? 64 : 32, 1);
		}
}
END_TEST

/* ---- mode FIXED ---- */

static uint64_t lists[100000];

/* The lowest of 2 * half values, after the tree's way to combine them. */
static double combined(double *v, unsigned half)
{
	for (unsigned d = half; d; d /= 2)
		for (unsigned i = 0; i < d; i++)
			v[i] += v[i + d];
	return v[0];
}

/* The sum of a segment in the tree of lib/tree.h; with strips of 8 rows, since these segments are short. */
static double serial_sum(uint64_t begin, uint64_t n)
{
	int f32 = segments.type == CUA_F32;
	uint64_t width = 32 * (f32 ? 4 : 2), strips = (n + 8 * width - 1) / (8 * width);
	double places[256] = {0}, warps[8];

	for (uint64_t chunk = 0; chunk * 8 < strips; chunk++) {
		for (uint64_t w = 0; w < 8; w++) {
			double column[128] = {0}, packs[32];
			uint64_t first = (chunk * 8 + w) * 8 * width;

			for (uint64_t k = first; k < n && k < first + 8 * width; k++)
				column[k % width] +=
					f32 ? (double)x_f32[begin + k + 1] : x_f64[begin + k + 1];
			for (uint64_t p = 0; p < 32; p++)
				packs[p] = f32 ? (column[4 * p] + column[4 * p + 1]) +
							 (column[4 * p + 2] + column[4 * p + 3])
					       : column[2 * p] + column[2 * p + 1];
			warps[w] = combined(packs, 16);
		}
		places[chunk % 256] += combined(warps, 4);
	}
	for (int w = 0; w < 8; w++)
		warps[w] = combined(places + 32 * w, 16);
	return combined(warps, 4);
}

/* Now of many sizes, so that another order has another sum. */
static void make_fixed(enum cua_type type, uint64_t n, uint64_t most_length, unsigned empty)
{
	make_segments(CUA_REDUCE_SUM, type, n, most_length, empty);
	segments.fixed = 1;
	segments.scratch = lists;
	ck_assert_uint_le(cua__fixed_lists_size(&segments), sizeof(lists));
	for (uint64_t k = 0; k < n; k++) {
		x_f64[k + 1] = ldexp((double)next_random(), (int)(next_random() % 80));
		if (k > 40 && next_random() % 2)
			x_f64[k + 1] = -x_f64[k + 1 - next_random() % 40];
		x_f32[k + 1] = (float)x_f64[k + 1];
	}
	for (uint64_t i = 0; i < segments.segments; i++) {
		double sum = serial_sum(offsets[i], offsets[i + 1] - offsets[i]);

		expected_f64[i] = cua__round_f64(sum);
		expected_f32[i] = cua__round_f32(sum);
	}
}

static void short_setup(void)
{
	segments_setup();
	memset(lists, 0xff, sizeof(lists));
	memset(lists, 0, sizeof(struct cua__fixed_state));
}

static void short_f32(void)
{
	cua__segment_fixed_short(CUA_F32, &segments);
}

static void short_f64(void)
{
	cua__segment_fixed_short(CUA_F64, &segments);
}

/* The second kernel starts from the list that the last run of the first one left. */
static void long_setup(void)
{
	struct cua__fixed_lists f = cua__fixed_lists(&segments);

	for (uint64_t i = 0; i < f.state->listed; i++) {
		f.list[i].arrived = 0;
		memset(&results_f64[f.list[i].segment], 0xff, segments.type == CUA_F64 ? 8 : 0);
		memset(&results_f32[f.list[i].segment], 0xff, segments.type == CUA_F32 ? 4 : 0);
	}
}

static void long_f32(void)
{
	cua__segment_fixed_long(CUA_F32, &segments, simt_shared(sizeof(struct cua__fixed_shared)));
}

static void long_f64(void)
{
	cua__segment_fixed_long(CUA_F64, &segments, simt_shared(sizeof(struct cua__fixed_shared)));
}

START_TEST(fixed)
{
	static const struct {
		unsigned blocks, lanes;
		uint64_t n, most_length;
		unsigned empty;
	} shapes[] = {
		{2, 64, 500, 5, 1},    {2, 32, 3000, 40, 0},      {1, 64, 5000, 700, 1},
		{2, 96, 9000, 3000, 0}, {2, 32, 39000, 39000, 0}, {1, 32, 20000, 9000, 2},
	};

	rng = 3;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int f32 = 0; f32 < 2; f32++) {
			struct simt_case c = {.name = "short segments", .setup = short_setup};

			make_fixed(f32 ? CUA_F32 : CUA_F64, shapes[i].n, shapes[i].most_length,
				   shapes[i].empty);
			c.body = f32 ? short_f32 : short_f64;
			try_shape(c, shapes[i].blocks, shapes[i].lanes, 2);
			c.name = "long segments";
			c.setup = long_setup;
			c.body = f32 ? long_f32 : long_f64;
			c.check = segments_check;
			try_shape(c, 2, 256, 2);
			try_shape(c, 1, 256, 1);
		}
}
END_TEST

TCase *simt_segment_cases(void)
{
	TCase *tc = simt_tcase("segment");

	tcase_add_test(tc, fast);
	tcase_add_test(tc, join);
	tcase_add_test(tc, fixed);
	return tc;
}
