/* SPDX-License-Identifier: MIT */
/* The kernels of segmented reductions: the functions of the GPU, in small tiles. */
#define CUA__SEGMENT_ITEMS 3u
#define CUA__FIXED_LANE_CHUNKS 2u
#define CUA__FIXED_WARP_CHUNKS 3u

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/kernels/segment_kernel.h"
#include "lib/kernels/segment_tree.h"
#include "simt_suites.h"
#include "tree_model.h"

enum { MOST = 40000 };

static struct cua__segments segments;
static struct cua__path_part parts[160];
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

/* Segments of small integers: every order of addition is exact. */
static void make_segments(enum cua_reduce_op op, enum cua_type type, uint64_t n,
			  uint64_t most_length, unsigned empty)
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
	segments.size = cua_type_size(type);
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
			t = op != CUA_REDUCE_MAX ? t + x_f64[k + 1]
			    : x_f64[k + 1] > t   ? x_f64[k + 1]
						 : t;
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
		snprintf(message, sizeof(message), "segment %d of %d (%d to %d): %g, not %g",
			 (int)s, (int)segments.segments, (int)offsets[s], (int)offsets[s + 1],
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
	cua__segment_fast(CUA_REDUCE_SUM, CUA_F64, &segments,
			  simt_shared(sizeof(struct cua__segment_shared)));
}

static void fast_f32(void)
{
	cua__segment_fast(CUA_REDUCE_SUM, CUA_F32, &segments,
			  simt_shared(sizeof(struct cua__segment_shared)));
}

static void fast_max_f32(void)
{
	cua__segment_fast(CUA_REDUCE_MAX, CUA_F32, &segments,
			  simt_shared(sizeof(struct cua__segment_shared)));
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
			struct simt_case c = {.name = "segments",
					      .setup = segments_setup,
					      .check = segments_check};

			make_segments(kind == 2 ? CUA_REDUCE_MAX : CUA_REDUCE_SUM,
				      kind ? CUA_F32 : CUA_F64, shapes[i].n, shapes[i].most_length,
				      shapes[i].empty);
			c.body = kind == 0 ? fast_f64 : kind == 1 ? fast_f32 : fast_max_f32;
			try_shape(c, shapes[i].blocks, shapes[i].lanes, 1);
		}
}
END_TEST

/* The join alone, of more partial results than a block has threads. */
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
	struct simt_case c = {
		.name = "join", .setup = join_setup, .body = join_body, .check = segments_check};
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
static enum cua__fixed_length most;
static struct cua__fixed_lists fixed_lists;

static struct cua_complex_f32 x_c32[MOST + 8], results_c32[MOST + 2];
static struct cua_f16 x_f16[MOST + 8], results_f16[MOST + 2];
static union model_result expected[MOST];

/* The types, and the functions of each type. The elements begin at all positions in a pack. */
static const struct fixed_type {
	enum cua_type type;
	enum cua__tree_kind kind;
	char *x, *results;
} fixed_types[] = {
	{CUA_F32, CUA__TREE_sum_f32, (char *)x_f32, (char *)results_f32},
	{CUA_F64, CUA__TREE_sum_f64, (char *)x_f64, (char *)results_f64},
	{CUA_F16, CUA__TREE_sum_f16, (char *)x_f16, (char *)results_f16},
	{CUA_COMPLEX_F32, CUA__TREE_sum_c32, (char *)x_c32, (char *)results_c32},
};

/* Elements of many magnitudes: another order has another sum. */
static void make_fixed(const struct fixed_type *t, uint64_t n, uint64_t most_length, unsigned empty)
{
	size_t size = cua_type_size(t->type), first = next_random() % 8;

	make_segments(CUA_REDUCE_SUM, t->type, n, most_length, empty);
	segments.kind = t->kind;
	segments.scratch = lists;
	segments.x = t->x + first * size;
	segments.results = t->results;
	fixed_lists = cua__fixed_lists(&segments, most);
	ck_assert_uint_le(cua__fixed_lists_size(&segments, most), sizeof(lists));
	for (uint64_t k = 0; k < n; k++) {
		double v = ldexp((double)next_random(), (int)(next_random() % 80));

		if (k > 40 && next_random() % 2)
			v = -x_f64[first + k - next_random() % 40];
		x_f64[first + k] = v;
		x_f32[first + k] = (float)v;
		x_f16[first + k] = cua_f16_from_f32((float)ldexp(v, -100));
		x_c32[first + k].re = (float)v;
		x_c32[first + k].im = (float)(1 / (v + 1));
	}
	for (uint64_t i = 0; i < segments.segments; i++) {
		struct model_call call = {.op = CUA_REDUCE_SUM,
					  .type = t->type,
					  .n = offsets[i + 1] - offsets[i],
					  .x = (const char *)segments.x + offsets[i] * size};

		expected[i] = model_reduce(&call);
	}
}

static const char *fixed_check(void)
{
	static char message[160];
	const char *results = segments.results;

	for (uint64_t i = 0; i < segments.segments; i++) {
		if (!memcmp(results + i * segments.size, &expected[i], segments.size))
			continue;
		snprintf(message, sizeof(message), "type %d, segment %d of %d (%d to %d)",
			 (int)segments.type, (int)i, (int)segments.segments, (int)offsets[i],
			 (int)offsets[i + 1]);
		return message;
	}
	for (size_t j = 0; j < segments.size; j++)
		if ((unsigned char)results[segments.segments * segments.size + j] != 0xff)
			return "something was stored past the end";
	return NULL;
}

static void short_setup(void)
{
	segments_setup();
	memset(results_f16, 0xff, sizeof(results_f16));
	memset(results_c32, 0xff, sizeof(results_c32));
	memset(lists, 0xff, sizeof(lists));
	memset(lists, 0, sizeof(struct cua__fixed_state));
}

static void fixed_short(void)
{
	const struct cua__fixed_lists *f = &fixed_lists;

	switch (segments.kind) {
	case CUA__TREE_sum_f32: cua__segment_fixed_short_sum_f32(&segments, f, most); break;
	case CUA__TREE_sum_f64: cua__segment_fixed_short_sum_f64(&segments, f, most); break;
	case CUA__TREE_sum_f16: cua__segment_fixed_short_sum_f16(&segments, f, most); break;
	default: cua__segment_fixed_short_sum_c32(&segments, f, most);
	}
}

/* Each later kernel starts from the memory that the last run of the kernel before it left. */
static void strips_setup(void)
{
	memset(fixed_lists.partial, 0xff,
	       (size_t)((char *)lists + sizeof(lists) - (char *)fixed_lists.partial));
}

static void fixed_strips(void)
{
	const struct cua__fixed_lists *f = &fixed_lists;

	switch (segments.kind) {
	case CUA__TREE_sum_f32: cua__segment_fixed_strips_sum_f32(&segments, f); break;
	case CUA__TREE_sum_f64: cua__segment_fixed_strips_sum_f64(&segments, f); break;
	case CUA__TREE_sum_f16: cua__segment_fixed_strips_sum_f16(&segments, f); break;
	default: cua__segment_fixed_strips_sum_c32(&segments, f);
	}
}

static void join_lists_setup(void)
{
	for (uint64_t e = 0;
	     e < fixed_lists.state->entries && e < fixed_lists.capacity - fixed_lists.state->cut;
	     e++)
		memset((char *)segments.results + fixed_lists.entry[e].segment * segments.size,
		       0xff, segments.size);
}

static void fixed_join(void)
{
	const struct cua__fixed_lists *f = &fixed_lists;
	struct cua__fixed_scratch *s = simt_shared(sizeof(*s));

	switch (segments.kind) {
	case CUA__TREE_sum_f32: cua__segment_fixed_join_sum_f32(&segments, f, s); break;
	case CUA__TREE_sum_f64: cua__segment_fixed_join_sum_f64(&segments, f, s); break;
	case CUA__TREE_sum_f16: cua__segment_fixed_join_sum_f16(&segments, f, s); break;
	default: cua__segment_fixed_join_sum_c32(&segments, f, s);
	}
}

/* The kernels one after another; `check` follows the last. */
static void try_fixed(unsigned blocks, unsigned lanes, const char *(*check)(void))
{
	struct simt_case c = {.name = "short segments", .setup = short_setup, .body = fixed_short};

	try_shape(c, blocks, lanes, 2);
	c.name = "strips of long segments";
	c.setup = strips_setup;
	c.body = fixed_strips;
	try_shape(c, 2, 96, 1);
	try_shape(c, 3, 256, 1);
	c.name = "long segments";
	c.setup = join_lists_setup;
	c.body = fixed_join;
	c.check = check;
	try_shape(c, 2, 256, 2);
	try_shape(c, 1, 256, 1);
}

START_TEST(fixed)
{
	static const struct {
		unsigned blocks, lanes;
		uint64_t n, most_length;
		unsigned empty;
	} shapes[] = {
		{2, 64, 500, 5, 1},     {2, 32, 3000, 40, 0},     {1, 64, 5000, 700, 1},
		{2, 96, 9000, 3000, 0}, {2, 32, 39000, 39000, 0}, {1, 32, 20000, 9000, 2},
		{2, 64, 6000, 120, 0},  {1, 64, 39000, 19000, 0},
	};

	rng = 3;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (size_t t = 0; t < sizeof(fixed_types) / sizeof(fixed_types[0]); t++) {
			most = (enum cua__fixed_length)((i + t) % 4);
			make_fixed(&fixed_types[t], shapes[i].n, shapes[i].most_length,
				   shapes[i].empty);
			try_fixed(shapes[i].blocks, shapes[i].lanes, fixed_check);
		}
}
END_TEST

/*
 * Offsets that do not ascend need more entries than the list has room for. A single segment gets an
 * entry, the other segments have the result 0, and no lane reads an entry that was not written.
 */
static const char *cut_check(void)
{
	unsigned right = 0;

	for (uint64_t i = 0; i < segments.segments; i++)
		if (results_f32[i] != 0 &&
		    (i % 2 || memcmp(&results_f32[i], &expected[0], sizeof(float)) || right++))
			return "a segment beyond the list has a sum";
	return right ? NULL : "no segment has its sum";
}

START_TEST(fixed_cut)
{
	rng = 5;
	for (unsigned blocks = 1; blocks < 3; blocks++) {
		struct model_call call = {.op = CUA_REDUCE_SUM, .type = CUA_F32, .n = 20000};

		most = CUA__FIXED_LONGER;
		make_fixed(&fixed_types[0], 20000, 20000, 0);
		segments.segments = 41;
		for (uint64_t i = 0; i <= segments.segments; i++)
			offsets[i] = i % 2 ? segments.n : 0;
		call.x = segments.x;
		expected[0] = model_reduce(&call);
		try_fixed(blocks, 64, cut_check);
	}
}
END_TEST

TCase *simt_segment_cases(void)
{
	TCase *tc = simt_tcase("segment");

	tcase_add_test(tc, fast);
	tcase_add_test(tc, join);
	tcase_add_test(tc, fixed);
	tcase_add_test(tc, fixed_cut);
	return tc;
}
