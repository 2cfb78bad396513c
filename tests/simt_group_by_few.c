/* SPDX-License-Identifier: MIT */
/* Group by with few groups: the kernels in sequence, with tables of few slots. */
#define CUA__FEW_LOADS 2u
#define CUA__FEW_ROUNDS 2u

#include <stdlib.h>

#include "lib/kernels/group_by_few.h"

#include "simt_group_sums.h"

enum {
	LANES = 64,
	TILE = CUA__FEW_LOADS * LANES,
	MOST = 1200,      /* rows */
	MOST_GROUPS = 64, /* distinct keys */
	MOST_SLOTS = 256,
	SHARED = 16 << 10
};

enum ending { COMPLETE, MISSED, UNFIT };
/* Steps that are left out. */
enum skipped { NOTHING, NUMBERS, SUMS };

struct shape {
	enum cua_type key_type;
	enum cua_type type, sum, mean; /* NONE: no values, and no such result */
	enum elements elements;
	int counts, sorted;
	uint32_t n, groups, log;
	uint32_t rows;  /* with keys that are collected; 0: all */
	uint32_t room;  /* 0: for all groups */
	uint32_t bytes; /* of shared memory for the sums; 0: all */
	int limit;      /* of the window of the elements; 0: by the sample */
	int late;       /* 1: the last group has only rows after the collected rows */
	int apart;      /* 1: each tile has groups of its own */
	enum skipped skipped;
	int zero; /* 1: the hash of a key is 0 */
	enum ending ending;
	unsigned blocks;
};

struct group {
	uint64_t key, ordered;
	uint32_t first;
	struct group_sum sum;
};

static struct cua__few_job job;
static struct cua__few_state state;
static struct shape shape;
static uint64_t keys[MOST]; /* of either size */
static uint32_t x[MOST], number[MOST], first[MOST_GROUPS + 1];
static uint64_t hash[MOST_SLOTS], known[MOST_SLOTS];
static uint32_t least[MOST_SLOTS], numbers[MOST_SLOTS];
static uint64_t count[MOST_SLOTS / 4], sum[MOST_SLOTS / 4 * CUA__FEW_SUM_WORDS];
static uint64_t out_count[MOST_GROUPS + 1], out_sum[MOST_GROUPS + 1], out_mean[MOST_GROUPS + 1];
static uint64_t found, arrived;
static struct group group[MOST_GROUPS];
static uint32_t groups;

/* ---- keys ---- */

static uint32_t key_size(void)
{
	return cua__element_size(shape.key_type);
}

/* The bits of key `k`: distinct numbers, and of floats also zeros and NaN of several bits. */
static uint64_t key_bits(uint32_t k, uint64_t r)
{
	if (shape.key_type == CUA_F32)
		return k == 0   ? r & 0x80000000u
		       : k == 1 ? (r & 0x803fffffu) | 0x7fc00000u
				: (0x3f800000u + (k << 20)) ^ (k & 1) << 31;
	if (key_size() == 8)
		return cua_hash_u64(k, 1);
	return cua__owner_hash_u32(k, 0x1234);
}

/* The number that orders a key; equal keys have equal numbers. */
static uint64_t ordered(uint64_t key)
{
	const uint64_t top = (uint64_t)1 << (8 * key_size() - 1);

	if (shape.key_type == CUA_F32) {
		if ((key & 0x7fffffffu) > 0x7f800000u)
			return UINT32_MAX;
		key = key == top ? 0 : key;
		return key & top ? ~key & UINT32_MAX : key | top;
	}
	return cua__is_signed(shape.key_type) ? key ^ top : key;
}

static int by_first(const void *a, const void *b)
{
	return (int)((const struct group *)a)->first - (int)((const struct group *)b)->first;
}

static int by_key(const void *a, const void *b)
{
	const uint64_t k = ((const struct group *)a)->ordered,
		       l = ((const struct group *)b)->ordered;

	return (k > l) - (k < l);
}

static uint64_t load_key(uint32_t row)
{
	return load_result(keys, row, shape.key_type);
}

static uint32_t group_of(uint64_t key)
{
	uint32_t g = 0;

	while (g < groups && group[g].ordered != ordered(key))
		g++;
	return g;
}

/* ---- the call ---- */

static void add_row(uint32_t row)
{
	const uint64_t key = load_key(row);
	const uint32_t g = group_of(key);

	if (g == groups) {
		memset(&group[g], 0, sizeof(group[g]));
		group[g].key = key;
		group[g].ordered = ordered(key);
		group[g].first = row;
		groups++;
	}
	add_to_sum(&group[g].sum, shape.type, x[row]);
}

static void make_rows(void)
{
	const uint32_t usual = shape.late ? shape.groups - 1 : shape.groups;

	groups = 0;
	for (uint32_t i = 0; i < shape.n; i++) {
		uint32_t k = (uint32_t)(next_random() % usual);
		uint64_t key;

		if (shape.apart)
			k = i / TILE * (shape.groups / 4) + k % (shape.groups / 4);
		if (shape.late && i >= job.rows && i % 7 == 0)
			k = usual;
		/* no key is 0 by chance */
		key = key_bits(shape.zero ? k + 1 : k, next_random());
		/* the seed is such that key 0 has this hash */
		if (shape.zero && i == shape.n / 2)
			key = 0;
		memcpy((char *)keys + i * key_size(), &key, key_size());
		x[i] = make_element(shape.type, shape.elements, i, shape.n, k, next_random());
		add_row(i);
	}
	qsort(group, groups, sizeof(group[0]), shape.sorted ? by_key : by_first);
}

static void make(const struct shape *p)
{
	shape = *p;
	shape.blocks = p->blocks ? p->blocks : 2;
	ck_assert(p->n <= MOST && p->groups <= MOST_GROUPS && 1u << p->log <= MOST_SLOTS);
	memset(&job, 0, sizeof(job));
	job.d = (struct cua__distinct){
		.key_type = p->key_type,
		.key_size = key_size(),
		.sorted = p->sorted,
		.n = p->n,
		.keys = keys,
		.room = p->room ? p->room : MOST_GROUPS,
		.seed = p->zero ? 0 : next_random(),
		.count = &found,
		.number = number,
		.first = first,
	};
	job.s = (struct cua__group_sums){
		.x = p->type == CUA_NONE ? NULL : x,
		.type = p->type,
		.counts = p->counts || p->mean != CUA_NONE,
		.out_count = p->counts ? out_count : NULL,
		.out_sum = p->sum == CUA_NONE ? NULL : out_sum,
		.out_mean = p->mean == CUA_NONE ? NULL : out_mean,
		.sum_type = p->sum,
		.mean_type = p->mean,
	};
	job.rows = p->rows ? p->rows : p->n;
	job.log = p->log;
	job.bytes = p->bytes ? p->bytes : SHARED;
	job.state = &state;
	job.hash = hash;
	job.least = least;
	job.known = known;
	job.number = numbers;
	job.count = count;
	job.sum = sum;
	make_rows();
}

/* ---- a run ---- */

static void setup(void)
{
	memset(&state, 0, sizeof(state));
	memset(hash, 0, sizeof(hash));
	memset(least, 0xff, sizeof(least));
	memset(known, 0xa5, sizeof(known));
	memset(numbers, 0, sizeof(numbers));
	memset(count, 0, sizeof(count));
	memset(sum, 0, sizeof(sum));
	memset(number, 0xee, sizeof(number));
	memset(first, 0xee, sizeof(first));
	memset(out_count, 0xee, sizeof(out_count));
	memset(out_sum, 0xee, sizeof(out_sum));
	memset(out_mean, 0xee, sizeof(out_mean));
	found = arrived = 0;
}

static void run(uint32_t size)
{
	void *memory = simt_shared(SHARED);

	cua__few_collect(&job, memory, LANES, size);
	simt_next_kernel(&arrived);
	if (cua_port_block() == 0)
		cua__few_order(&job, memory, size);
	simt_next_kernel(&arrived);
	if (simt_lane() == 0 && shape.limit)
		state.limit = shape.limit;
	simt_next_kernel(&arrived);
	if (shape.skipped != NUMBERS)
		cua__few_number(&job, memory, LANES, size);
	simt_next_kernel(&arrived);
	if (shape.skipped != SUMS)
		cua__few_accumulate(&job, memory, LANES, size, shape.type,
				    shape.type == CUA_NONE || job.s.counts);
	simt_next_kernel(&arrived);
	cua__few_round(&job, simt_lane());
}

static void body(void)
{
	/* the kernels have constant sizes */
	if (key_size() == 4)
		run(4);
	else
		run(8);
}

static const char *group_check(uint32_t g)
{
	if (ordered(load_key(first[g])) != group[g].ordered)
		return "a group has the place of another one";
	if (first[g] != group[g].first)
		return "the first row of a group is wrong";
	return sums_check(&job.s, g, group[g].key, &group[g].sum);
}

static const char *check(void)
{
	const uint32_t stored = job.d.room < groups ? (uint32_t)job.d.room : groups;
	const char *message = NULL;

	if ((state.unfit != 0) != (shape.ending == UNFIT))
		return "the call is unfit, or not, against expectation";
	if (shape.ending == UNFIT)
		return out_count[0] == 0xeeeeeeeeeeeeeeeeu && number[0] == 0xeeeeeeeeu
			       ? NULL
			       : "a call that is unfit has results";
	if ((state.missed != 0) != (shape.ending == MISSED))
		return "a key is missed, or not, against expectation";
	if (shape.ending == MISSED)
		return out_count[0] == 0xeeeeeeeeeeeeeeeeu ? NULL : "incomplete sums are stored";
	if (state.groups != groups || found != groups)
		return "the number of groups is wrong";
	for (uint32_t i = 0; i < shape.n; i++)
		if (number[i] != group_of(load_key(i)))
			return "the number of a row is wrong";
	for (uint32_t g = 0; g < stored && !message; g++)
		message = group_check(g);
	if (first[stored] != 0xeeeeeeeeu || out_count[stored] != 0xeeeeeeeeeeeeeeeeu)
		return "a result is written past the end";
	return message;
}

/* Keys of all kinds, in both orders. */
START_TEST(orders)
{
	static const struct shape shapes[] = {
		{.key_type = CUA_U32, .counts = 1, .n = 300, .groups = 12, .log = 6},
		{.key_type = CUA_I32, .counts = 1, .sorted = 1, .n = 300, .groups = 16, .log = 6},
		{.key_type = CUA_F32,
		 .skipped = SUMS,
		 .sorted = 1,
		 .n = 300,
		 .groups = 9,
		 .log = 6},
		{.key_type = CUA_U64, .counts = 1, .n = 200, .groups = 20, .log = 7},
		{.key_type = CUA_I64, .sorted = 1, .counts = 1, .n = 200, .groups = 31, .log = 7},
		{.key_type = CUA_U32, .n = 100, .groups = 1, .log = 6},
		{.key_type = CUA_F32, .skipped = SUMS, .n = 150, .groups = 2, .log = 6, .room = 1},
		{.key_type = CUA_U64, .n = 150, .groups = 64, .log = 8, .blocks = 3},
	};

	TRY_SHAPES("orders", shapes);
}
END_TEST

/* Sums in several copies of the slots, and in a single copy. */
START_TEST(sums)
{
	static const struct shape shapes[] = {
		{.key_type = CUA_U32,
		 .type = CUA_F32,
		 .sum = CUA_F32,
		 .n = 250,
		 .groups = 12,
		 .log = 6},
		{.key_type = CUA_U32,
		 .type = CUA_F32,
		 .sum = CUA_F64,
		 .mean = CUA_F32,
		 .counts = 1,
		 .n = 250,
		 .groups = 5,
		 .log = 6,
		 .bytes = 3 << 10},
		{.key_type = CUA_U64,
		 .type = CUA_I32,
		 .sum = CUA_I64,
		 .mean = CUA_F64,
		 .n = 250,
		 .groups = 30,
		 .log = 7,
		 .bytes = 3 << 10},
		{.key_type = CUA_I32,
		 .type = CUA_U32,
		 .sum = CUA_U32,
		 .n = 250,
		 .groups = 3,
		 .log = 6},
		{.key_type = CUA_U32,
		 .type = CUA_U32,
		 .sum = CUA_U64,
		 .counts = 1,
		 .n = 250,
		 .groups = 16,
		 .log = 6,
		 .room = 4},
	};

	TRY_SHAPES("sums", shapes);
}
END_TEST

/* Elements that do not fit, and sums that overflow. */
START_TEST(odd)
{
	static const struct shape shapes[] = {
		{.key_type = CUA_U32,
		 .type = CUA_F32,
		 .elements = VAST,
		 .sum = CUA_F64,
		 .n = 100,
		 .groups = 12,
		 .log = 6},
		{.key_type = CUA_U32,
		 .type = CUA_F32,
		 .elements = ODD,
		 .sum = CUA_F32,
		 .n = 250,
		 .groups = 12,
		 .log = 6},
		{.key_type = CUA_U64,
		 .type = CUA_F32,
		 .elements = WILD,
		 .sum = CUA_F64,
		 .mean = CUA_F32,
		 .n = 200,
		 .groups = 4,
		 .log = 6},
		{.key_type = CUA_U32,
		 .type = CUA_F32,
		 .elements = FULL,
		 .sum = CUA_F32,
		 .n = MOST,
		 .groups = 1,
		 .log = 6,
		 .bytes = 1,
		 .limit = 128,
		 .blocks = 1},
		{.key_type = CUA_U32,
		 .type = CUA_F32,
		 .elements = FULL,
		 .sum = CUA_F64,
		 .n = MOST,
		 .groups = 2,
		 .log = 6,
		 .bytes = 1,
		 .limit = 128,
		 .blocks = 1},
		{.key_type = CUA_U32,
		 .type = CUA_F32,
		 .elements = SPARSE,
		 .sum = CUA_F32,
		 .n = MOST,
		 .groups = 1,
		 .log = 6,
		 .blocks = 1},
	};

	TRY_SHAPES("odd elements", shapes);
}
END_TEST

/* Keys of a part of the rows, with and without all groups there. */
START_TEST(parts)
{
	static const struct shape shapes[] = {
		{.key_type = CUA_U32,
		 .type = CUA_U32,
		 .sum = CUA_U64,
		 .n = 300,
		 .rows = 100,
		 .groups = 8,
		 .log = 6},
		{.key_type = CUA_U32,
		 .type = CUA_U32,
		 .sum = CUA_U64,
		 .counts = 1,
		 .n = 600,
		 .rows = 100,
		 .groups = 9,
		 .log = 6,
		 .late = 1,
		 .skipped = NUMBERS,
		 .ending = MISSED},
		{.key_type = CUA_U64,
		 .counts = 1,
		 .n = 300,
		 .rows = 64,
		 .groups = 2,
		 .log = 6,
		 .late = 1,
		 .skipped = SUMS,
		 .ending = MISSED},
		{.key_type = CUA_U32,
		 .counts = 1,
		 .n = 300,
		 .rows = 100,
		 .groups = 8,
		 .log = 6,
		 .zero = 1,
		 .ending = MISSED},
	};

	TRY_SHAPES("parts", shapes);
}
END_TEST

/* Too many groups for a block, or for all blocks; a hash of 0; room for few groups in order of keys. */
START_TEST(unfit)
{
	static const struct shape shapes[] = {
		{.ending = UNFIT,
		 .key_type = CUA_U32,
		 .counts = 1,
		 .n = 300,
		 .groups = 60,
		 .log = 6},
		{.ending = UNFIT,
		 .key_type = CUA_U64,
		 .counts = 1,
		 .n = 4 * TILE,
		 .groups = 40,
		 .log = 7,
		 .apart = 1,
		 .blocks = 4},
		{.ending = UNFIT,
		 .key_type = CUA_U32,
		 .counts = 1,
		 .n = 200,
		 .groups = 8,
		 .log = 6,
		 .zero = 1},
		{.ending = UNFIT,
		 .key_type = CUA_U32,
		 .counts = 1,
		 .sorted = 1,
		 .n = 200,
		 .groups = 8,
		 .log = 6,
		 .room = 7},
	};

	TRY_SHAPES("unfit", shapes);
}
END_TEST

TCase *simt_group_by_few_cases(void)
{
	TCase *tc = simt_tcase("group_by_few");

	tcase_add_test(tc, orders);
	tcase_add_test(tc, sums);
	tcase_add_test(tc, odd);
	tcase_add_test(tc, parts);
	tcase_add_test(tc, unfit);
	return tc;
}
