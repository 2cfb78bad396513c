/* SPDX-License-Identifier: MIT */
/* The steps of joins: lists, sums that stop at 2^64 - 1, and pairs. */
#include <stdio.h>
#include <string.h>

#include "lib/kernels/join_kernel.h"
#include "simt_key_steps.h"
#include "simt_suites.h"

enum { LEFT = 80, RIGHT = 24, SLOTS = 40, MOST_PARTS = 70, ROOM = 700, CHUNK = 64 };

static struct cua__join_job job;
static uint64_t slots[RIGHT], lists[2 * SLOTS], rows[RIGHT], list[LEFT], offset[LEFT + 1];
static uint64_t demand[LEFT], sums[MOST_PARTS], out_left[ROOM];
static uint32_t out_right[ROOM];
static uint64_t add(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static void setup(void)
{
	rng = input;
	memset(&job, 0, sizeof(job));
	set_keys(&job.d, RIGHT);
	job.n = 1 + next_random() % LEFT;
	job.slots = slots;
	job.lists = lists;
	job.rows = rows;
	job.list = list;
	job.offset = offset;
	job.parts = parts;
	job.sums = sums;
	job.room = ROOM;
	job.out_size = 8;
	job.out_left = out_left;
	memset(lists, 0xee, sizeof(lists));
	memset(sums, 0xee, sizeof(sums));
	memset(out_left, 0xee, sizeof(out_left));
	memset(out_right, 0xee, sizeof(out_right));
}

/* ---- lists ---- */

static void lists_setup(void)
{
	uint64_t slot = 0;

	setup();
	for (uint64_t i = 0; i < RIGHT; i++) {
		slot += next_random() % 3 ? 0 : 1;
		set_number(slots, i, slot);
	}
}

static void lists_body(void)
{
	const uint64_t lanes = (uint64_t)simt_blocks() * simt_block_lanes();

	for (uint64_t i = simt_lane(); i < RIGHT; i += lanes)
		cua__join_item(CUA__JOIN_LISTS, &job, i, wide);
}

static const char *lists_check(void)
{
	for (uint64_t i = 0; i < RIGHT; i++) {
		const uint64_t slot = number_of(slots, i);
		uint64_t begin = i, end = i;

		while (begin && number_of(slots, begin - 1) == slot)
			begin--;
		while (end < RIGHT && number_of(slots, end) == slot)
			end++;
		if (number_of(lists, 2 * slot) != begin || number_of(lists, 2 * slot + 1) != end)
			return "a list has a wrong end";
	}
	return NULL;
}

START_TEST(ends)
{
	struct simt_case c = {
		.name = "lists", .setup = lists_setup, .body = lists_body, .check = lists_check};

	parts = 1;
	for (wide = 0; wide < 2; wide++) {
		try_each_input(c, 1, 20, 6);
		try_each_input(c, 2, 10, 6);
	}
}
END_TEST

/* ---- offsets ---- */

/* The numbers of pairs. Some inputs add up to more than 2^64 - 1. */
static void demand_setup(void)
{
	setup();
	for (uint64_t i = 0; i < job.n; i++)
		demand[i] = input % 3 ? next_random() % 5 : next_random() << 31;
	memcpy(offset, demand, sizeof(demand));
}

static uint64_t begin_of(uint64_t part)
{
	return first_of(job.n, part);
}

static uint64_t total_of(uint64_t begin, uint64_t end)
{
	uint64_t total = 0;

	for (uint64_t i = begin; i < end; i++)
		total = add(total, demand[i]);
	return total;
}

static void scan_setup(void)
{
	demand_setup();
	for (uint64_t part = 0; part < parts; part++)
		sums[part] = total_of(begin_of(part), begin_of(part + 1));
}

static void offset_setup(void)
{
	demand_setup();
	for (uint64_t part = 0; part < parts; part++)
		sums[part] = total_of(0, begin_of(part));
}

/* Warps of 32 lanes. */
static void warp_body(enum cua__join_step step, uint64_t items)
{
	for (uint64_t i = warp_number(); i < items; i += warps())
		cua__join_item(step, &job, i, wide);
}

static void sum_body(void)
{
	warp_body(CUA__JOIN_SUM, parts);
}

static void scan_body(void)
{
	warp_body(CUA__JOIN_SCAN, 1);
}

static void offset_body(void)
{
	warp_body(CUA__JOIN_OFFSET, parts);
}

static const char *sum_check(void)
{
	for (uint64_t part = 0; part < parts; part++)
		if (sums[part] != total_of(begin_of(part), begin_of(part + 1)))
			return "the sum of a part is wrong";
	return NULL;
}

static const char *scan_check(void)
{
	for (uint64_t part = 0; part < parts; part++)
		if (sums[part] != total_of(0, begin_of(part)))
			return "the sum of lower parts is wrong";
	return offset[job.n] == total_of(0, job.n) ? NULL : "the number of all pairs is wrong";
}

static const char *offset_check(void)
{
	for (uint64_t i = 0; i < job.n; i++)
		if (offset[i] != total_of(0, i))
			return "an offset is wrong";
	return NULL;
}

START_TEST(offsets)
{
	static const uint32_t numbers[] = {1, 3, MOST_PARTS};
	struct simt_case s = {
		.name = "sums", .setup = demand_setup, .body = sum_body, .check = sum_check};
	struct simt_case c = {
		.name = "scan", .setup = scan_setup, .body = scan_body, .check = scan_check};
	struct simt_case o = {.name = "offsets",
			      .setup = offset_setup,
			      .body = offset_body,
			      .check = offset_check};

	wide = 0;
	for (int k = 0; k < 3; k++) {
		parts = numbers[k];
		try_each_input(s, 1, 64, 3);
		try_each_input(c, 1, 32, 3);
		try_each_input(o, 2, 32, 3);
	}
}
END_TEST

/* ---- pairs ---- */

/* Rows without pairs, with few and with many; some rows have no match. */
static void write_setup(void)
{
	uint64_t total = 0;

	setup();
	for (uint64_t i = 0; i < RIGHT; i++)
		set_number(rows, i, RIGHT - i);
	for (uint64_t i = 0; i < job.n; i++) {
		const uint64_t kind = next_random() % 8, begin = next_random() % RIGHT;

		demand[i] = kind == 0 ? RIGHT - begin : kind < 4 ? 0 : kind < 6 ? 1 : 2;
		if (demand[i] > RIGHT - begin)
			demand[i] = 1;
		set_number(list, i, kind == 5 ? CUA__GROUP_NONE : begin);
		offset[i] = total;
		total += demand[i];
	}
	offset[job.n] = total;
	job.room = next_random() % 3 ? ROOM : total / 2;
}

static void write_body(void)
{
	const uint64_t stored = cua__join_stored(&job);
	struct cua__join_job right = job;

	/* the other size of numbers */
	right.out_size = 4;
	right.out_left = NULL;
	right.out_right = out_right;
	for (uint64_t i = warp_number() * CHUNK; i < stored; i += warps() * CHUNK) {
		const uint64_t end = stored - i < CHUNK ? stored : i + CHUNK;

		cua__join_write(&job, i, end, cua_port_lane(), CUA_WARP_LANES, wide);
		cua__join_write(&right, i, end, cua_port_lane(), CUA_WARP_LANES, wide);
	}
}

static const char *write_check(void)
{
	uint64_t p = 0;

	for (uint64_t i = 0; i < job.n; i++)
		for (uint64_t k = 0; k < demand[i] && p < job.room; k++, p++) {
			const uint64_t begin = number_of(list, i);
			const uint32_t right = begin == CUA__GROUP_NONE
						       ? UINT32_MAX
						       : (uint32_t)number_of(rows, begin + k);

			if (out_left[p] != i || out_right[p] != right)
				return "a pair is wrong";
		}
	for (; p < ROOM; p++)
		if (out_left[p] != 0xeeeeeeeeeeeeeeee || out_right[p] != 0xeeeeeeee)
			return "a pair behind the last was written";
	return NULL;
}

START_TEST(pairs)
{
	struct simt_case c = {
		.name = "pairs", .setup = write_setup, .body = write_body, .check = write_check};

	parts = 1;
	for (wide = 0; wide < 2; wide++) {
		try_each_input(c, 1, 64, 3);
		try_each_input(c, 2, 32, 3);
	}
}
END_TEST

TCase *simt_join_cases(void)
{
	TCase *tc = simt_tcase("join");

	tcase_add_test(tc, ends);
	tcase_add_test(tc, offsets);
	tcase_add_test(tc, pairs);
	return tc;
}
