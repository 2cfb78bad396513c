/* SPDX-License-Identifier: MIT */
/* Locks acquired by warps and blocks. */
#include <string.h>

#include "lock_form_calls.h"
#include "simt_suites.h"

/* ---- groups: all lanes of a group see all writes of the group that held the lock before ---- */

#define GROUP_LANES 128

enum group_level { LANE_LEVEL, WARP_LEVEL, PART_LEVEL, BLOCK_LEVEL, MIXED_LEVEL };

static struct group_locks group_locks;
static struct cua_mcslock_node group_nodes[GROUP_LANES];
static uint64_t group_sections, group_slots[GROUP_LANES], group_slot_total;
static uint32_t group_sum; /* totals by atomics: sections << 16 | lanes */

static enum group_kind group_kind;
static enum group_how group_how;
static enum group_level group_level;
static int group_calls; /* calls of each group */

static void groups_setup(void)
{
	group_init(&group_locks);
	group_sections = group_slot_total = group_sum = 0;
	memset(group_slots, 0, sizeof(group_slots));
}

static const char *groups_check(void)
{
	uint64_t slots = 0;

	for (unsigned i = 0; i < GROUP_LANES; i++)
		slots += group_slots[i];
	if (group_locked(&group_locks))
		return "a lock is held at the end";
	if (group_sections != group_sum >> 16)
		return "a section was lost";
	return slots == (group_sum & 0xffff) ? NULL : "a lane of a section was lost";
}

/* The lanes of this warp with the same remainder by 3 as this lane. */
static uint32_t part_of_warp(void)
{
	uint32_t all = whole_warp(), part = 0;

	for (uint32_t i = 0; i < 32; i++)
		if (all >> i & 1 && i % 3 == cua_port_lane() % 3)
			part |= (uint32_t)1 << i;
	return part;
}

static void group_section(unsigned rank, uint32_t mask, int block)
{
	/* every lane has acquired the write of the previous group's first lane */
	uint64_t before = CUA_READ(group_sections);

	if (block)
		cua_port_sync_block();
	else if (mask)
		cua_port_sync_warp(mask);
	CUA_WRITE(group_slots[rank], CUA_READ(group_slots[rank]) + 1);
	if (rank == 0)
		CUA_WRITE(group_sections, before + 1);
	cua_port_add_u32(&group_sum, rank == 0 ? 0x10001 : 1, CUA_RELAXED, CUA_SCOPE_SYSTEM,
			 CUA_SPACE_GENERIC);
}

static void groups(void)
{
	enum group_level level = group_level;
	uint32_t mask = 0;
	unsigned rank = 0, leader;
	int block = 0;

	if (level == MIXED_LEVEL)
		level = simt_block() == 0 ? BLOCK_LEVEL
					  : (enum group_level)(simt_lane_in_block() / 32 % 3);
	if (level == WARP_LEVEL)
		mask = whole_warp();
	else if (level == PART_LEVEL)
		mask = part_of_warp();
	block = level == BLOCK_LEVEL;
	/* a node for each group: its first lane's */
	leader = block ? simt_lane() - simt_lane_in_block() : simt_lane();
	if (mask) {
		leader += cua_port_ffs_u32(mask) - 1 - cua_port_lane();
		rank = cua_port_popc_u32(mask & (((uint32_t)1 << cua_port_lane()) - 1));
	} else if (block) {
		rank = simt_lane_in_block();
	}
	for (int i = 0; i < group_calls; i++) {
		while (!group_take(&group_locks, group_kind, &group_nodes[leader], group_how, 300,
				   mask, block, CUA_SCOPE_DEVICE))
			cua_port_pause(1);
		group_section(rank, mask, block);
		group_give(&group_locks, group_kind, &group_nodes[leader], mask, block,
			   CUA_SCOPE_DEVICE);
	}
}

/* ---- concurrent readers of a group, and a writer in each block ---- */

static void group_readers(void)
{
	uint32_t mask = part_of_warp();

	if (simt_block() == 0) {
		cua_rwlock_write_lock_block(&group_locks.rw);
		CUA_WRITE(group_slots[simt_lane_in_block()], 1);
		cua_rwlock_write_unlock_block(&group_locks.rw);
		return;
	}
	cua_rwlock_read_lock_warp(&group_locks.rw, mask);
	if (CUA_READ(group_slots[0]) != CUA_READ(group_slots[simt_block_lanes() - 1]))
		simt_fail("a reader saw half of a write");
	cua_rwlock_read_unlock_warp(&group_locks.rw, mask);
	if (cua_rwlock_read_trylock_block(&group_locks.rw)) {
		if (CUA_READ(group_slots[0]) != CUA_READ(group_slots[simt_block_lanes() - 1]))
			simt_fail("a reader saw half of a write");
		cua_rwlock_read_unlock_block(&group_locks.rw);
	}
}

static const char *free_check(void)
{
	return group_locked(&group_locks) ? "a lock is held at the end" : NULL;
}

/* ---- sections of a lane, its warp and its block on the same lock, in turn ---- */

static void group_levels(void)
{
	uint32_t mask = whole_warp();

	for (int call = 0; call < 2; call++) {
		cua_spinlock_lock(&group_locks.spin);
		CUA_WRITE(group_sections, CUA_READ(group_sections) + 1);
		cua_spinlock_unlock(&group_locks.spin);
		cua_spinlock_lock_block(&group_locks.spin);
		if (simt_lane_in_block() == 0)
			CUA_WRITE(group_sections, CUA_READ(group_sections) + 1);
		cua_spinlock_unlock_block(&group_locks.spin);
		cua_spinlock_lock_warp(&group_locks.spin, mask);
		CUA_WRITE(group_slots[simt_lane()], CUA_READ(group_sections));
		cua_spinlock_unlock_warp(&group_locks.spin, mask);
	}
}

static const char *levels_check(void)
{
	if (group_sections != 2 * (uint64_t)simt_blocks() * (simt_block_lanes() + 1))
		return "a section was lost";
	return free_check();
}

/* ---- a trylock returns the same answer in all lanes ---- */

static void group_answers(void)
{
	uint32_t mask = whole_warp(), votes;
	int warp = cua_spinlock_trylock_warp(&group_locks.spin, mask), block;

	votes = cua_port_ballot(mask, warp);
	if (votes && votes != mask)
		simt_fail("a warp's try had two answers");
	if (warp)
		cua_spinlock_unlock_warp(&group_locks.spin, mask);
	block = cua_ticketlock_trylock_block(&group_locks.ticket);
	CUA_WRITE(group_slots[simt_lane()], (uint64_t)block);
	cua_port_sync_block();
	if (CUA_READ(group_slots[simt_lane() - simt_lane_in_block()]) != (uint64_t)block)
		simt_fail("a block's try had two answers");
	if (block)
		cua_ticketlock_unlock_block(&group_locks.ticket);
}

/* ---- planted ---- */

static void bug_no_meeting_after(void)
{
	uint32_t mask = whole_warp();

	if (cua_port_lane() == 0)
		cua_spinlock_lock(&group_locks.spin);
	(void)cua_port_ballot(mask, 1);
	group_section(cua_port_lane(), mask, 0);
	cua_spinlock_unlock_warp(&group_locks.spin, mask);
}

static void bug_no_meeting_before(void)
{
	uint32_t mask = whole_warp();

	cua_spinlock_lock_warp(&group_locks.spin, mask);
	group_section(cua_port_lane(), mask, 0);
	if (cua_port_lane() == 0)
		cua_spinlock_unlock(&group_locks.spin);
}

static void bug_other_mask(void)
{
	/* the lanes of a call pass different masks */
	uint32_t mask = cua_port_lane() == 0 ? whole_warp() : part_of_warp();

	cua_spinlock_lock_warp(&group_locks.spin, mask);
	cua_spinlock_unlock_warp(&group_locks.spin, mask);
}

static void bug_part_of_a_block(void)
{
	if (simt_lane_in_block() < 2)
		cua_spinlock_lock_block(&group_locks.spin);
	else
		cua_port_pause(1);
	cua_port_sync_block();
	if (simt_lane_in_block() < 2)
		cua_spinlock_unlock_block(&group_locks.spin);
	else
		(void)cua_port_sync_block_or(0);
}

START_TEST(group_cases)
{
	struct simt_case c = {
		.name = "groups", .setup = groups_setup, .body = groups, .check = groups_check};
	struct simt_case readers = {.name = "groups of readers",
				    .setup = groups_setup,
				    .body = group_readers,
				    .check = free_check};
	struct simt_case answers = {.name = "answers of tries",
				    .setup = groups_setup,
				    .body = group_answers,
				    .check = free_check};
	struct simt_case levels = {.name = "lane, block, warp",
				   .setup = groups_setup,
				   .body = group_levels,
				   .check = levels_check};
	struct simt_case bug = {.setup = groups_setup, .max_steps = 100000};

	for (int kind = 0; kind < GROUP_KINDS; kind++) {
		if (kind == GROUP_READ)
			continue;
		group_kind = (enum group_kind)kind;
		for (int how = 0; how < GROUP_HOWS; how++) {
			group_how = (enum group_how)how;
			group_calls = 1;
			group_level = WARP_LEVEL;
			explore_shape(c, 2, 2, 0);
			group_level = BLOCK_LEVEL;
			explore_shape(c, 2, 2, 0);
			group_level = PART_LEVEL;
			explore_shape(c, 1, 4, 0);
			group_calls = 2;
			for (int level = WARP_LEVEL; level <= MIXED_LEVEL; level++) {
				group_level = (enum group_level)level;
				try_shape(c, 3, 5, 3);
			}
			group_level = PART_LEVEL;
			try_shape(c, 1, 32, 2);
		}
		group_how = GROUP_LOCK;
		group_level = MIXED_LEVEL;
		try_shape(c, 2, 64, 1);
	}
	group_kind = GROUP_SPIN;
	group_calls = 1;
	for (group_level = WARP_LEVEL; group_level <= BLOCK_LEVEL; group_level++)
		explore_shape(c, 2, 2, 1);
	explore_shape(readers, 2, 2, 1);
	try_shape(readers, 3, 34, 3);
	explore_shape(levels, 1, 2, 1);
	try_shape(levels, 3, 5, 5);
	try_shape(levels, 1, 34, 2);
	explore_shape(answers, 2, 2, 1);
	try_shape(answers, 2, 40, 3);

	bug.name = "no meeting after the lock", bug.body = bug_no_meeting_after;
	expect_caught(bug, 4, 8, SIMT_RACE, "plain");
	bug.name = "no meeting before the unlock", bug.body = bug_no_meeting_before;
	expect_caught(bug, 4, 8, SIMT_RACE, "plain");
	bug.name = "two masks", bug.body = bug_other_mask;
	expect_caught(bug, 1, 8, SIMT_DEADLOCK, "wait for each other");
	bug.name = "a part of a block", bug.body = bug_part_of_a_block;
	expect_caught(bug, 1, 4, SIMT_FAILED, "meets");
}
END_TEST

TCase *simt_lock_forms_cases(void)
{
	TCase *tc = simt_tcase("lock_forms");

	tcase_add_test(tc, group_cases);
	return tc;
}
