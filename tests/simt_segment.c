/* SPDX-License-Identifier: MIT */
/* The kernels of segmented reductions: the functions of the GPU, in small tiles. */
#define CUA__SEGMENT_ITEMS 3u
#define CUA__FIXED_LANE_CHUNKS 2u
#define CUA__FIXED_WARP_CHUNKS 3u
#define CUA__FILTER_POLLS 2u
#define CUA__FILTER_PATIENCE 3u
/* the checker tracks words of 4 bytes */
#define CUA__FILTER_LOCAL uint32_t

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/kernels/segment_kernel.h"
#include "lib/kernels/segment_runs.h"
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

/* The kernels of the list; `check` follows the last. */
static void try_lists(const char *(*check)(void))
{
	struct simt_case c = {
		.name = "strips of long segments", .setup = strips_setup, .body = fixed_strips};

	try_shape(c, 2, 96, 1);
	try_shape(c, 3, 256, 1);
	c.name = "long segments";
	c.setup = join_lists_setup;
	c.body = fixed_join;
	c.check = check;
	try_shape(c, 2, 256, 2);
	try_shape(c, 1, 256, 1);
}

/* The kernels one after another. */
static void try_fixed(unsigned blocks, unsigned lanes, const char *(*check)(void))
{
	struct simt_case c = {.name = "short segments", .setup = short_setup, .body = fixed_short};

	try_shape(c, blocks, lanes, 2);
	try_lists(check);
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

/* ---- runs of equal keys, found and summed in a single pass ---- */

enum { RUNS = 2300 };
static struct cua__filter_kind runs_kind;
static struct cua__filter runs;
static struct cua__filter_control runs_control;
static uint64_t runs_words[RUNS / 64 + 2], runs_counts[2];
static uint64_t starts[RUNS + 1], n_runs, n_stored;
static uint32_t pending[RUNS / 32 + 2];
static uint64_t run_keys[RUNS + 4], unique_keys[RUNS + 2];

static const char *run_key(uint64_t i)
{
	return (const char *)runs.x + i * runs.size;
}

/*
 * Runs of up to most_length elements. Neighbouring keys differ in a single bit. The first key is 0,
 * as every value outside the array, so only its index starts the first run.
 */
static void make_runs(const struct fixed_type *t, uint32_t key_size, uint32_t warps, uint32_t loads,
		      uint64_t n, uint64_t most_length, uint64_t short_by)
{
	const uint64_t first = next_random() % 4;
	const size_t size = cua_type_size(t->type);
	uint64_t key = 0, at = 0;

	most = CUA__FIXED_TINY;
	make_fixed(t, n, most_length, 0);
	memset(&runs, 0, sizeof(runs));
	runs_kind = (struct cua__filter_kind){CUA__FILTER_CHANGE, key_size, loads, warps, 0, 1, 0};
	/* as much as a block of the checker has room for */
	while (cua__runs_room(runs_kind, (uint32_t)size) > (14u << 10))
		runs_kind.loads /= 2;
	runs.key = CUA__FILTER_CHANGE;
	runs.size = key_size;
	runs.n = n;
	runs.x = (const char *)run_keys + first * key_size;
	runs.ordered = 1;
	memset(run_keys, 0, sizeof(run_keys));
	for (n_runs = 0; at < n; key ^= (uint64_t)1 << next_random() % (key_size * 8)) {
		uint64_t length = 1 + next_random() % most_length;

		starts[n_runs++] = at;
		for (; length && at < n; length--)
			memcpy((char *)run_keys + (first + at++) * key_size, &key, key_size);
	}
	starts[n_runs] = n;
	/* room for all runs and more, for all, or for fewer */
	runs.capacity = short_by ? n_runs + 1 - short_by : n;
	n_stored = runs.capacity < n_runs ? runs.capacity : n_runs;
	runs.values = unique_keys;
	runs.indexes = offsets;
	runs.index_size = 8;
	runs.count = &runs_counts[0];
	runs.count_copy = &runs_counts[1];
	runs.control = &runs_control;
	runs.tiles = runs_words;
	ck_assert_uint_lt(cua__filter_tiles(runs_kind, &runs),
			  sizeof(runs_words) / sizeof(runs_words[0]));
	segments.segments = runs.capacity;
	segments.count = &runs_counts[0];
	segments.pending = pending;
	fixed_lists = cua__fixed_lists(&segments, most);
	ck_assert_uint_le(cua__fixed_lists_size(&segments, most), sizeof(lists));
	for (uint64_t i = 0; i < n_stored; i++) {
		struct model_call call = {.op = CUA_REDUCE_SUM,
					  .type = t->type,
					  .n = starts[i + 1] - starts[i],
					  .x = (const char *)segments.x + starts[i] * size};

		expected[i] = model_reduce(&call);
	}
}

static void runs_setup(void)
{
	short_setup();
	memset(lists, 0xff, sizeof(lists));
	memset(offsets, 0xff, sizeof(offsets));
	memset(pending, 0, sizeof(pending));
	memset(runs_words, 0, sizeof(runs_words));
	memset(&runs_control, 0, sizeof(runs_control));
	memset(unique_keys, 0xff, sizeof(unique_keys));
}

static void runs_body(void)
{
	const uint32_t size = (uint32_t)segments.size;
	struct cua__fixed_state *state = fixed_lists.state;
	struct cua__runs_shared *sh =
		simt_shared(sizeof(*sh) + 16 + cua__runs_room(runs_kind, size));
	void *room = (void *)(((uintptr_t)(sh + 1) + 15) & ~(uintptr_t)15);

	switch (segments.kind) {
	case CUA__TREE_sum_f32:
		cua__segment_runs_sum_f32(runs_kind, &runs, &segments, state, pending, sh, room);
		break;
	case CUA__TREE_sum_f64:
		cua__segment_runs_sum_f64(runs_kind, &runs, &segments, state, pending, sh, room);
		break;
	case CUA__TREE_sum_f16:
		cua__segment_runs_sum_f16(runs_kind, &runs, &segments, state, pending, sh, room);
		break;
	default: cua__segment_runs_sum_c32(runs_kind, &runs, &segments, state, pending, sh, room);
	}
}

/* Of the first kernel: everything but the sums. */
static const char *runs_check(void)
{
	static char message[160];
	static const struct cua__filter_control zero;
	const char *got = (const char *)unique_keys;

	if (runs_counts[0] != n_runs || runs_counts[1] != n_runs)
		return "the count is wrong";
	for (uint64_t i = 0; i < n_stored; i++) {
		const int is_pending = pending[i / 32] >> i % 32 & 1;

		snprintf(message, sizeof(message), "run %d of %d (%d to %d)", (int)i, (int)n_runs,
			 (int)starts[i], (int)starts[i + 1]);
		if (memcmp(got + i * runs.size, run_key(starts[i]), runs.size)) {
			strcat(message, ", key");
			return message;
		}
		if (is_pending && (offsets[i] != starts[i] || offsets[i + 1] != starts[i + 1])) {
			strcat(message, ", offset");
			return message;
		}
		if (!is_pending && memcmp((const char *)segments.results + i * segments.size,
					  &expected[i], segments.size))
			return message;
	}
	for (size_t j = 0; j < runs.size; j++)
		if ((unsigned char)got[n_stored * runs.size + j] != 0xff)
			return "a key was stored past the end";
	if (offsets[n_stored] != starts[n_stored] || fixed_lists.state->entries ||
	    fixed_lists.state->cut)
		return "the end of the runs, or the list, is not set";
	return memcmp(&runs_control, &zero, sizeof(zero)) ? "the control block is not zero again"
							  : NULL;
}

static void pending_setup(void)
{
	memset(fixed_lists.state, 0, sizeof(*fixed_lists.state));
}

static void pending_body(void)
{
	const struct cua__fixed_lists *f = &fixed_lists;

	switch (segments.kind) {
	case CUA__TREE_sum_f32: cua__segment_fixed_pending_sum_f32(&segments, f); break;
	case CUA__TREE_sum_f64: cua__segment_fixed_pending_sum_f64(&segments, f); break;
	case CUA__TREE_sum_f16: cua__segment_fixed_pending_sum_f16(&segments, f); break;
	default: cua__segment_fixed_pending_sum_c32(&segments, f);
	}
}

static const char *sums_check(void)
{
	segments.segments = n_stored;
	return fixed_check();
}

START_TEST(summed_runs)
{
	static const struct {
		unsigned blocks, warps, loads;
		uint64_t n, most_length;
	} shapes[] = {
		{1, 1, 1, 1, 1},     {1, 2, 1, 700, 20},    {2, 1, 2, 900, 3},
		{3, 1, 1, 1200, 40}, {4, 2, 1, 1300, 90},   {3, 2, 2, 1500, 1},
		{2, 1, 4, 1900, 19}, {5, 1, 1, 1500, 1500}, {3, 4, 1, 1700, 70},
		{3, 1, 8, 2200, 12}, {2, 1, 1, 2200, 2200},
	};

	rng = 7;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (size_t t = 0; t < sizeof(fixed_types) / sizeof(fixed_types[0]); t++) {
			struct simt_case c = {.name = "runs",
					      .setup = runs_setup,
					      .body = runs_body,
					      .check = runs_check};

			make_runs(&fixed_types[t], (i + t) % 2 ? 8 : 4, shapes[i].warps,
				  shapes[i].loads, shapes[i].n, shapes[i].most_length, (i + t) % 4);
			if (!runs.capacity)
				continue;
			try_shape(c, shapes[i].blocks, shapes[i].warps * 32, 2);
			c.name = "pending runs";
			c.setup = pending_setup;
			c.body = pending_body;
			c.check = NULL;
			try_shape(c, 2, 64, 1);
			try_lists(sums_check);
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
	tcase_add_test(tc, summed_runs);
	return tc;
}
