/* SPDX-License-Identifier: MIT */
/* The sequence lock. */
#include <cuatomic/seqlock.h>

#include "simt_suites.h"

static struct cua_seqlock seqlock;
static uint32_t pair[2]; /* equal outside of writers' sections */
static uint32_t plain_inside;

static void seq_setup(void)
{
	cua_seqlock_init(&seqlock);
	/* the sequence passes 32 bits */
	seqlock.sequence = UINT32_MAX - 1;
	pair[0] = pair[1] = 0;
	plain_inside = 0;
}

static void seq_write(void)
{
	uint32_t v = cua_seqlock_load_b32(&pair[0]) + 1;

	/* writers exclude each other */
	CUA_WRITE(plain_inside, CUA_READ(plain_inside) + 1);
	cua_seqlock_store_b32(&pair[0], v);
	cua_seqlock_store_b32(&pair[1], v);
}

static void seq_body(void)
{
	uint32_t snapshot[2], first, second;
	uint64_t begun;

	for (unsigned i = 0; i < 2; i++) {
		if ((i ^ simt_lane()) & 1) {
			TAKE_ONE_WAY(CUA_WITH_SEQLOCK (&seqlock), cua_seqlock_lock(&seqlock),
				     cua_seqlock_trylock(&seqlock),
				     cua_seqlock_lock_for(&seqlock, 300),
				     cua_seqlock_unlock(&seqlock), seq_write());
			continue;
		}
		cua_seqlock_read(&seqlock, pair, 2, snapshot);
		if (snapshot[0] != snapshot[1])
			simt_fail("a snapshot is torn");
		do {
			begun = cua_seqlock_read_begin(&seqlock);
			first = cua_seqlock_load_b32(&pair[0]);
			second = cua_seqlock_load_b32(&pair[1]);
		} while (cua_seqlock_read_retry(&seqlock, begun));
		if (first != second || first < snapshot[0])
			simt_fail("a snapshot is torn or older than the one before");
	}
}

static const char *seq_check(void)
{
	uint32_t n = simt_blocks() * simt_block_lanes();

	if (seqlock.sequence & 1)
		return "the lock is still held";
	return pair[0] == n && pair[1] == n && plain_inside == n ? NULL : "an update was lost";
}

static void bug_seq_no_second_look(void)
{
	uint32_t first, second;

	if (simt_lane() % 2) {
		CUA_WITH_SEQLOCK (&seqlock) {
			seq_write();
		}
		return;
	}
	(void)cua_seqlock_read_begin(&seqlock);
	first = cua_seqlock_load_b32(&pair[0]);
	second = cua_seqlock_load_b32(&pair[1]);
	if (first != second)
		simt_fail("a snapshot is torn");
}

START_TEST(seq)
{
	struct simt_case c = {
		.name = "seqlock", .setup = seq_setup, .body = seq_body, .check = seq_check};
	struct simt_case bug = {.name = "a seqlock reader without the second look",
				.setup = seq_setup,
				.body = bug_seq_no_second_look};

	try_ways(c);
	expect_caught(bug, 2, 8, SIMT_FAILED, "torn");
}
END_TEST

TCase *simt_seqlock_cases(void)
{
	TCase *tc = simt_tcase("seqlock");

	tcase_add_test(tc, seq);
	return tc;
}
