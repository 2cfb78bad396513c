/* SPDX-License-Identifier: MIT */
/* The steps of calls by key: the table of row numbers, the sort of the groups, and picked rows. */
#include <stdio.h>
#include <string.h>

#include "lib/kernels/group_by_kernel.h"
#include "simt_key_steps.h"
#include "simt_suites.h"

enum { ROWS = 40, SLOTS = 12, GROUPS = 160, MOST_PARTS = 35, KEYS = 5, SUMMED = 48 };

static struct cua__group_job job;
static uint64_t rows; /* of the run */
static uint32_t keys[ROWS];
static uint64_t table[SLOTS], number[GROUPS], picked[KEYS], count;
static uint64_t order[2][GROUPS], ordered[2][GROUPS];
static uint64_t digits[CUA__GROUP_DIGITS * MOST_PARTS], totals[CUA__GROUP_DIGITS];
static uint8_t valid[ROWS];
static void setup(void)
{
	rng = input;
	memset(&job, 0, sizeof(job));
	set_keys(&job.d, rows);
	job.d.keys = keys;
	job.d.slots = SLOTS;
	job.d.table = table;
	job.d.number = number;
	job.d.count = &count;
	job.d.order[0] = order[0];
	job.d.order[1] = order[1];
	job.d.ordered[0] = ordered[0];
	job.d.ordered[1] = ordered[1];
	job.d.digits = digits;
	job.d.digit_totals = totals;
	job.d.parts = parts;
	memset(table, 0xff, sizeof(table));
	memset(number, 0xee, sizeof(number));
}

/* The case with several inputs, and with 2 rows for a lane. */
static void try_inputs(struct simt_case c, unsigned blocks, unsigned lanes, unsigned runs)
{
	rows = 2 * blocks * lanes < ROWS ? 2 * blocks * lanes : ROWS;
	try_each_input(c, blocks, lanes, runs);
}

static void explore_inputs(struct simt_case c, unsigned blocks, unsigned lanes,
			   unsigned preemptions)
{
	rows = 2 * blocks * lanes;
	for (input = 1; input <= 3; input++)
		explore_shape(c, blocks, lanes, preemptions);
}

/* ---- the table ---- */

/* The keys of some runs probe past the end of the table, and the homes of others are equal. */
static void claim_setup(void)
{
	setup();
	job.d.seed = next_random();
	for (uint64_t i = 0; i < rows; i++)
		keys[i] = (uint32_t)(next_random() % KEYS);
}

static void claim_body(void)
{
	const uint64_t lanes = (uint64_t)simt_blocks() * simt_block_lanes();

	for (uint64_t i = simt_lane(); i < rows; i += lanes)
		cua__group_item(CUA__GROUP_CLAIM, &job, i, NULL, wide);
}

static const char *claim_check(void)
{
	uint64_t used = 0, found = 0;

	for (uint64_t i = 0; i < rows; i++) {
		const uint64_t at = number_of(number, i);
		uint64_t first = 0;

		if (at >= SLOTS)
			return "a row has no slot";
		while (keys[first] != keys[i])
			first++;
		if (number_of(table, at) != first)
			return "a slot does not have the first row of its key";
		found += first == i;
	}
	for (uint64_t s = 0; s < SLOTS; s++)
		used += number_of(table, s) != CUA__GROUP_NONE;
	return used == found ? NULL : "a key has two slots";
}

START_TEST(claim)
{
	struct simt_case c = {
		.name = "claim", .setup = claim_setup, .body = claim_body, .check = claim_check};

	for (wide = 0; wide < 2; wide++) {
		explore_inputs(c, 1, 2, 3);
		explore_inputs(c, 3, 1, 2);
		try_inputs(c, 1, 20, 10);
		try_inputs(c, 2, 10, 10);
	}
}
END_TEST

/* ---- the sort ---- */

static uint64_t begin_of(uint64_t part)
{
	return first_of(count, part);
}

static uint32_t digit_of(uint64_t i)
{
	return ((const uint32_t *)(void *)ordered[0])[i] >> 8 & 255;
}

/* Groups with few digits, in any order, and their counts by digit and part. */
static void sort_setup(void)
{
	setup();
	count = 1 + next_random() % GROUPS;
	job.d.room = GROUPS;
	job.d.digit = 1;
	memset(digits, 0, sizeof(digits));
	memset(totals, 0, sizeof(totals));
	for (uint64_t i = 0; i < count; i++) {
		set_number(order[0], i, count - 1 - i);
		((uint32_t *)(void *)ordered[0])[i] =
			(uint32_t)(next_random() % 7 * 40 << 8 | (next_random() & 255));
	}
}

static void fill_counts(void)
{
	for (uint64_t part = 0; part < parts; part++)
		for (uint64_t i = begin_of(part); i < begin_of(part + 1); i++)
			digits[digit_of(i) * parts + part]++;
}

static void fill_sums(void)
{
	for (uint64_t v = 0; v < CUA__GROUP_DIGITS; v++)
		for (uint64_t part = 0; part < parts; part++) {
			const uint64_t n = digits[v * parts + part];

			digits[v * parts + part] = totals[v];
			totals[v] += n;
		}
}

static void sum_setup(void)
{
	sort_setup();
	fill_counts();
}

static void move_setup(void)
{
	sum_setup();
	fill_sums();
}

/* Warps of 32 lanes; the checker's shared memory has the counters. */
static void warp_body(enum cua__group_step step, uint64_t items)
{
	uint64_t *counters = simt_shared(sizeof(uint64_t) * CUA__GROUP_DIGITS * 2);

	counters += simt_lane_in_block() / 32 * CUA__GROUP_DIGITS;
	for (uint64_t i = warp_number(); i < items; i += warps())
		cua__group_item(step, &job, i, counters, wide);
}

static void count_body(void)
{
	warp_body(CUA__GROUP_SORT_COUNT, parts);
}

static void sum_body(void)
{
	warp_body(CUA__GROUP_SORT_SUM, SUMMED);
}

static void move_body(void)
{
	warp_body(CUA__GROUP_SORT_MOVE, parts);
}

/* Compares the counts, or the sums, of the lowest digits with the model. */
static const char *compare_digits(int sums, uint64_t compared)
{
	static uint64_t got[CUA__GROUP_DIGITS * MOST_PARTS], got_totals[CUA__GROUP_DIGITS];

	memcpy(got, digits, sizeof(got));
	memcpy(got_totals, totals, sizeof(got_totals));
	memset(digits, 0, sizeof(digits));
	memset(totals, 0, sizeof(totals));
	fill_counts();
	if (sums)
		fill_sums();
	return memcmp(got, digits, compared * parts * sizeof(*got)) ||
			       memcmp(got_totals, totals, compared * sizeof(*got))
		       ? "a count is wrong"
		       : NULL;
}

static const char *count_check(void)
{
	return compare_digits(0, CUA__GROUP_DIGITS);
}

static const char *sum_check(void)
{
	/* the checker has no room for the accesses to all of them */
	return compare_digits(1, SUMMED);
}

/* The order after the pass is that of a stable sort by digit. */
static const char *move_check(void)
{
	uint64_t at = 0;

	for (uint32_t v = 0; v < CUA__GROUP_DIGITS; v++)
		for (uint64_t i = 0; i < count; i++) {
			if (digit_of(i) != v)
				continue;
			if (number_of(order[1], at) != number_of(order[0], i) ||
			    ((const uint32_t *)(void *)ordered[1])[at] !=
				    ((const uint32_t *)(void *)ordered[0])[i])
				return "a group is at a wrong place";
			at++;
		}
	return NULL;
}

START_TEST(sort)
{
	struct simt_case c = {.name = "count of digits",
			      .setup = sort_setup,
			      .body = count_body,
			      .check = count_check};
	struct simt_case s = {
		.name = "sums of digits", .setup = sum_setup, .body = sum_body, .check = sum_check};
	struct simt_case m = {.name = "order by digit",
			      .setup = move_setup,
			      .body = move_body,
			      .check = move_check};

	for (wide = 0; wide < 2; wide++) {
		try_inputs(c, 1, 64, 4);
		try_inputs(c, 2, 32, 4);
		/* more parts than a warp has lanes */
		parts = MOST_PARTS;
		try_inputs(s, 2, 64, 1);
		parts = 3;
		try_inputs(m, 1, 64, 4);
		try_inputs(m, 2, 32, 4);
	}
}
END_TEST

/* ---- the first and last valid rows ---- */

static void pick_setup(void)
{
	claim_setup();
	job.valid = valid;
	job.targets = KEYS - 1;
	job.rows = picked;
	for (uint64_t i = 0; i < rows; i++) {
		set_number(number, i, keys[i]);
		valid[i] = next_random() % 4 != 0;
	}
}

static void first_setup(void)
{
	pick_setup();
	memset(picked, 0xff, sizeof(picked));
}

static void last_setup(void)
{
	pick_setup();
	memset(picked, 0, sizeof(picked));
}

static void pick_body(enum cua__group_step step)
{
	const uint64_t lanes = (uint64_t)simt_blocks() * simt_block_lanes();

	for (uint64_t i = simt_lane(); i < rows; i += lanes)
		cua__group_item(step, &job, i, NULL, wide);
}

static void first_body(void)
{
	pick_body(CUA__GROUP_LEAST_ROW);
}

static void last_body(void)
{
	pick_body(CUA__GROUP_GREATEST_ROW);
}

static const char *pick_check(int last)
{
	for (uint64_t g = 0; g < KEYS; g++) {
		uint64_t expected = last ? 0 : CUA__GROUP_NONE;

		for (uint64_t i = 0; i < rows && g < job.targets; i++)
			if (keys[i] == g && valid[i] && (last || expected == CUA__GROUP_NONE))
				expected = i + (uint64_t)last;
		if (number_of(picked, g) != expected)
			return "a row is not the first or last of its group";
	}
	return NULL;
}

static const char *first_check(void)
{
	return pick_check(0);
}

static const char *last_check(void)
{
	return pick_check(1);
}

START_TEST(picks)
{
	struct simt_case first = {
		.name = "first", .setup = first_setup, .body = first_body, .check = first_check};
	struct simt_case last = {
		.name = "last", .setup = last_setup, .body = last_body, .check = last_check};

	for (wide = 0; wide < 2; wide++) {
		explore_inputs(first, 1, 3, 2);
		explore_inputs(last, 1, 3, 2);
		try_inputs(first, 2, 10, 5);
		try_inputs(last, 2, 10, 5);
	}
}
END_TEST

TCase *simt_group_by_cases(void)
{
	TCase *tc = simt_tcase("group_by");

	tcase_add_test(tc, claim);
	tcase_add_test(tc, sort);
	tcase_add_test(tc, picks);
	return tc;
}
