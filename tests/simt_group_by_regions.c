/* SPDX-License-Identifier: MIT */
/*
 * Group by in regions: the kernels in sequence, with tables that are full, and lists of odd elements;
 * and keys by their bits, in the last of very many regions.
 */
#define CUA__REGIONS_BITS 2u
#define CUA__REGIONS_SORTS 2u

#include "lib/kernels/group_by_regions.h"

#include "simt_group_sums.h"

enum {
	LANES = 64,
	MOST = 1000,       /* rows */
	MOST_GROUPS = 100, /* distinct keys */
	STAGE = 4096       /* bytes of a stage, in front of a block's table */
};

struct shape {
	enum cua_type type, sum, mean; /* NONE: no values, and no such result */
	enum elements elements;
	int counts, no_keys;
	uint32_t n, groups, entries;
	uint32_t capacity; /* 0: enough */
	uint32_t most;     /* records of a region; 0: any */
	uint32_t depth;    /* of the first region */
	int crowded;       /* 1: all keys are in a single region, with equal lower bits */
	int unfit;         /* expected */
	unsigned blocks;
};

struct group {
	uint32_t key;
	struct group_sum sum;
};

static struct cua__regions_job job;
static struct cua__regions_state state;
static struct shape shape;
static uint32_t keys[MOST], x[MOST], counts[CUA__REGIONS], cursor[CUA__REGIONS];
static uint32_t before[CUA__REGIONS + 1], out_keys[MOST_GROUPS + 1];
static uint64_t record[MOST], out_count[MOST_GROUPS + 1], out_sum[MOST_GROUPS + 1];
static uint64_t out_mean[MOST_GROUPS + 1], arrived;
static struct group group[MOST_GROUPS];
static uint32_t groups;

/* ---- the call ---- */

static struct group *group_of(uint32_t key)
{
	uint32_t g = 0;

	while (g < groups && group[g].key != key)
		g++;
	return &group[g];
}

static void add_to_group(uint32_t key, uint32_t bits)
{
	struct group *g = group_of(key);

	if (g == group + groups) {
		memset(g, 0, sizeof(*g));
		g->key = key;
		groups++;
	}
	add_to_sum(&g->sum, shape.type, bits);
}

static uint32_t key_number(uint32_t number)
{
	/* in region 1, next to each other in the first bucket; they differ in bits of subsets */
	if (shape.crowded)
		return cua__regions_key(1u << CUA__REGIONS_REST | number << 2, job.seed);
	return number * 0x9e3779b9u;
}

static void make(const struct shape *p)
{
	shape = *p;
	shape.blocks = p->blocks ? p->blocks : 2;
	ck_assert(p->n <= MOST && p->groups <= MOST_GROUPS && p->entries % 4 == 0);
	job = (struct cua__regions_job){
		.n = p->n,
		.capacity = p->capacity ? p->capacity : MOST_GROUPS,
		.keys = keys,
		.s = {.x = p->type == CUA_NONE ? NULL : x,
		      .type = p->type,
		      .counts = p->counts || p->mean != CUA_NONE,
		      .out_count = p->counts ? out_count : NULL,
		      .out_sum = p->sum == CUA_NONE ? NULL : out_sum,
		      .out_mean = p->mean == CUA_NONE ? NULL : out_mean,
		      .sum_type = p->sum,
		      .mean_type = p->mean},
		.seed = (uint32_t)next_random(),
		.out_keys = p->no_keys ? NULL : out_keys,
		.regions = CUA__REGIONS,
		.most = p->most ? p->most : UINT32_MAX,
		.entries = p->entries,
		.state = &state,
		.count = counts,
		.cursor = cursor,
		.before = before,
		.record = record,
	};
	ck_assert(STAGE + cua__regions_table_bytes(&job) <= 16384);
	ck_assert(cua__regions_stage_bytes(LANES, 8, CUA__REGIONS) <= STAGE);
	groups = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		const uint32_t number = (uint32_t)(next_random() % p->groups);

		keys[i] = key_number(number);
		x[i] = make_element(p->type, p->elements, i, p->n, number, next_random());
		add_to_group(keys[i], x[i]);
	}
}

/* ---- a run ---- */

static void setup(void)
{
	memset(&state, 0, sizeof(state));
	state.depth = shape.depth;
	memset(counts, 0, sizeof(counts));
	memset(cursor, 0xa5, sizeof(cursor));
	memset(before, 0xa5, sizeof(before));
	memset(record, 0xa5, sizeof(record));
	memset(out_keys, 0xee, sizeof(out_keys));
	memset(out_count, 0xee, sizeof(out_count));
	memset(out_sum, 0xee, sizeof(out_sum));
	memset(out_mean, 0xee, sizeof(out_mean));
	arrived = 0;
}

/* Every record has a hash of its region. The records, and their squares, sum up as for the rows. */
static const char *records_check(void)
{
	uint64_t sum = 0, squares = 0;

	if (before[CUA__REGIONS] != job.n)
		return "the records of all regions are not those of all rows";
	for (uint32_t i = 0; i < job.n; i++) {
		const uint64_t v = (uint64_t)x[i] << 32 | cua__regions_hash(keys[i], job.seed);

		sum += shape.type == CUA_NONE ? (uint32_t)v : v;
		squares += shape.type == CUA_NONE ? (v & UINT32_MAX) * (v & UINT32_MAX) : v * v;
	}
	for (uint32_t r = 0; r < CUA__REGIONS; r++)
		for (uint32_t i = before[r]; i < before[r + 1]; i++) {
			const uint64_t v =
				shape.type == CUA_NONE ? ((const uint32_t *)record)[i] : record[i];

			if ((uint32_t)v >> CUA__REGIONS_REST != r)
				return "a record is in a wrong region";
			sum -= v;
			squares -= v * v;
		}
	return sum || squares ? "the records are not those of the rows" : NULL;
}

static void body(void)
{
	char *memory = simt_shared((size_t)16 << 10);
	const uint32_t size = shape.type == CUA_NONE ? 4 : 8;
	const struct cua__regions_stage stage = cua__regions_stage_at(memory, job.regions);

	cua__regions_count(&job, (uint32_t *)(void *)memory);
	simt_next_kernel(&arrived);
	if (cua_port_block() == 0)
		cua__regions_plan(&job, (uint32_t *)(void *)memory);
	simt_next_kernel(&arrived);
	cua__regions_partition(&job, &stage, size, LANES, CUA__REGIONS);
	simt_next_kernel(&arrived);
	if (simt_lane() == 0 && !state.unfit && records_check())
		simt_fail(records_check());
	cua__regions_accumulate(&job, (struct cua__regions_block *)(void *)(memory + STAGE), size,
				shape.type);
}

static const char *group_check(uint64_t i)
{
	const struct group *g = group_of(out_keys[i]);

	if (g == group + groups)
		return "a stored key is no key of a row";
	for (uint64_t k = 0; k < i; k++)
		if (out_keys[k] == out_keys[i])
			return "a key is stored twice";
	return sums_check(&job.s, i, g->key, &g->sum);
}

static const char *check(void)
{
	const uint64_t stored = job.capacity < groups ? job.capacity : groups;
	const char *message = NULL;
	uint64_t rows = 0;

	if ((int)state.unfit != shape.unfit)
		return "the call is unfit, or not, against expectation";
	if (shape.unfit)
		return NULL;
	if (state.groups != groups)
		return "the number of groups is wrong";
	for (uint64_t i = 0; i < stored && job.out_keys && !message; i++)
		message = group_check(i);
	for (uint64_t i = 0; i < stored && job.s.out_count; i++)
		rows += out_count[i];
	if (job.s.out_count && stored == groups && rows != job.n)
		return "a row is not counted once";
	if (out_keys[stored] != 0xeeeeeeeeu || out_count[stored] != 0xeeeeeeeeeeeeeeeeu)
		return "a result is written past the end";
	return message;
}

/* Tables that have room for all groups of a region. */
START_TEST(tables)
{
	static const struct shape shapes[] = {
		{.counts = 1, .n = 300, .groups = 20, .entries = 32},
		{.type = CUA_F32, .sum = CUA_F32, .n = 300, .groups = 20, .entries = 32},
		{.type = CUA_F32,
		 .sum = CUA_F64,
		 .mean = CUA_F32,
		 .counts = 1,
		 .n = 250,
		 .groups = 30,
		 .entries = 40},
		{.type = CUA_I32,
		 .sum = CUA_I64,
		 .mean = CUA_F64,
		 .n = 300,
		 .groups = 9,
		 .entries = 16},
		{.type = CUA_U32, .sum = CUA_U32, .n = 300, .groups = 3, .entries = 16},
		{.type = CUA_U32, .sum = CUA_U64, .counts = 1, .n = 90, .groups = 1, .entries = 8},
	};

	TRY_SHAPES("tables", shapes);
}
END_TEST

/* Tables that are full, so that the keys are divided into subsets. */
START_TEST(subsets)
{
	static const struct shape shapes[] = {
		{.counts = 1, .n = 200, .groups = 60, .entries = 8},
		{.n = 130, .groups = 60, .entries = 8, .depth = 1},
		{.counts = 1, .n = 150, .groups = 40, .entries = 4, .crowded = 1, .blocks = 1},
		{.type = CUA_F32,
		 .sum = CUA_F32,
		 .counts = 1,
		 .n = 200,
		 .groups = 60,
		 .entries = 12},
		{.type = CUA_I32, .sum = CUA_I32, .n = 200, .groups = 50, .entries = 8, .depth = 2},
		{.type = CUA_U32,
		 .mean = CUA_F32,
		 .n = 150,
		 .groups = 30,
		 .entries = 16,
		 .crowded = 1},
	};

	TRY_SHAPES("subsets", shapes);
}
END_TEST

/*
 * Elements that do not fit, and sums that overflow, in tables with and without subsets. 128 rows never
 * fill a list, for any sample of a region.
 */
START_TEST(odd)
{
	static const struct shape shapes[] = {
		{.type = CUA_F32,
		 .elements = ODD,
		 .sum = CUA_F32,
		 .n = 128,
		 .groups = 12,
		 .entries = 16},
		{.type = CUA_F32,
		 .elements = ODD,
		 .sum = CUA_F64,
		 .mean = CUA_F32,
		 .counts = 1,
		 .n = 128,
		 .groups = 60,
		 .entries = 8},
		{.type = CUA_F32,
		 .elements = CROWDED,
		 .sum = CUA_F32,
		 .mean = CUA_F64,
		 .n = 480,
		 .groups = 3,
		 .entries = 8,
		 .blocks = 1},
		{.type = CUA_F32,
		 .elements = SPARSE,
		 .sum = CUA_F32,
		 .n = MOST,
		 .groups = 1,
		 .entries = 8,
		 .blocks = 1},
	};

	TRY_SHAPES("odd elements", shapes);
}
END_TEST

/* Fewer results than groups, and none of some kinds. */
START_TEST(capacity)
{
	static const struct shape shapes[] = {
		{.counts = 1, .n = 200, .groups = 60, .entries = 8, .capacity = 10},
		{.type = CUA_F32,
		 .sum = CUA_F32,
		 .counts = 1,
		 .n = 150,
		 .groups = 30,
		 .entries = 40,
		 .capacity = 1},
		{.counts = 1, .no_keys = 1, .n = 200, .groups = 20, .entries = 12},
		{.n = 200, .groups = 70, .entries = 40},
	};

	TRY_SHAPES("capacity", shapes);
}
END_TEST

/* A region with too many records, and full lists. */
START_TEST(unfit)
{
	static const struct shape shapes[] = {
		{.counts = 1, .n = 200, .groups = 30, .entries = 16, .most = 20, .unfit = 1},
		{.type = CUA_F32,
		 .elements = WILD,
		 .sum = CUA_F32,
		 .n = MOST,
		 .groups = 20,
		 .entries = 16,
		 .unfit = 1},
		{.type = CUA_F32,
		 .elements = WILD,
		 .sum = CUA_F32,
		 .n = MOST,
		 .groups = 80,
		 .entries = 40,
		 .unfit = 1,
		 .blocks = 4},
	};

	TRY_SHAPES("unfit", shapes);
}
END_TEST

/* ---- keys by their bits ---- */

enum { MARKED = 40000, LAST = 5, MARKS = 300 };

static uint32_t marked_before[MARKED + 1], marked_keys[MARKS + 1];
static uint64_t marks_capacity;

/* Records of the last regions. Some are twice, and the first and the last hash of a region are there. */
static void marks_setup(void)
{
	uint32_t i = 0;

	memset(&state, 0, sizeof(state));
	memset(marked_keys, 0xee, sizeof(marked_keys));
	memset(marked_before, 0, sizeof(marked_before));
	state.next = MARKED - LAST;
	job = (struct cua__regions_job){.capacity = marks_capacity,
					.out_keys = marked_keys,
					.regions = MARKED,
					.seed = 77,
					.state = &state,
					.before = marked_before,
					.record = record};
	rng = 5;
	groups = 0;
	for (uint32_t r = MARKED - LAST; r < MARKED; r++) {
		const uint64_t first = cua__regions_first(r, MARKED);
		const uint64_t size = cua__regions_first(r + 1, MARKED) - first;

		ck_assert(cua__regions_of((uint32_t)first, MARKED) == r &&
			  cua__regions_of((uint32_t)(first + size - 1), MARKED) == r);
		marked_before[r] = i;
		/* a region has no records */
		for (uint32_t k = 0; k < MARKS / LAST && r != MARKED - 3; k++) {
			const uint64_t rest = k == 0   ? 0
					      : k == 1 ? size - 1
						       : next_random() % (k % 2 ? size : 50);

			((uint32_t *)record)[i++] = (uint32_t)(first + rest);
		}
	}
	marked_before[MARKED] = i;
	for (uint32_t k = 0; k < i; k++) {
		uint32_t l = 0;

		while (((uint32_t *)record)[l] != ((uint32_t *)record)[k])
			l++;
		groups += l == k;
	}
}

static void marks_body(void)
{
	cua__regions_mark(&job, simt_shared((size_t)16 << 10));
}

static const char *marks_check(void)
{
	const uint32_t n = marked_before[MARKED];
	const uint64_t stored = marks_capacity < groups ? marks_capacity : groups;

	if (state.groups != groups)
		return "the number of keys is wrong";
	for (uint64_t g = 0; g < stored; g++) {
		const uint32_t hash = cua__regions_hash(marked_keys[g], job.seed);
		uint32_t k = 0;

		while (k < n && ((uint32_t *)record)[k] != hash)
			k++;
		if (k == n)
			return "a stored key is no key of a record";
		for (uint64_t l = 0; l < g; l++)
			if (marked_keys[l] == marked_keys[g])
				return "a key is stored twice";
	}
	return marked_keys[stored] == 0xeeeeeeeeu ? NULL : "a key is written past the end";
}

START_TEST(marks)
{
	struct simt_case c = {
		.name = "marks", .setup = marks_setup, .body = marks_body, .check = marks_check};

	ck_assert(cua__regions_mark_bytes(MARKED) <= 16384);
	marks_capacity = MARKS;
	try_shape(c, 2, LANES, 3);
	marks_capacity = 20;
	try_shape(c, 2, LANES, 3);
}
END_TEST

TCase *simt_group_by_regions_cases(void)
{
	TCase *tc = simt_tcase("group_by_regions");

	tcase_add_test(tc, tables);
	tcase_add_test(tc, subsets);
	tcase_add_test(tc, odd);
	tcase_add_test(tc, capacity);
	tcase_add_test(tc, unfit);
	tcase_add_test(tc, marks);
	return tc;
}
