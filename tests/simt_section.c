/* SPDX-License-Identifier: MIT */
/* CUA_WITH_ sections that the lanes of a warp leave in different ways. */
#include <string.h>

#include "section_exits.h"
#include "simt_suites.h"

#define SECTION_LANES 128

static struct section_locks locks;
static struct cua_mcslock_node nodes[SECTION_LANES];
static enum section_kind kind;

static void sections_setup(void)
{
	section_init(&locks);
}

/* A reader shares its lock with a writer. */
static enum section_kind kind_of_lane(unsigned lane)
{
	return kind == SECTION_READ && lane % 2 ? SECTION_WRITE : kind;
}

static const char *sections_check(void)
{
	uint64_t writers = 0;

	for (unsigned i = 0; i < simt_blocks() * simt_block_lanes(); i++)
		writers += kind_of_lane(i) != SECTION_READ;
	if (section_locked(&locks))
		return "a lock is held at the end";
	if (locks.torn)
		return "a section saw half of another section";
	return locks.count[0] == writers && locks.count[1] == writers ? NULL : "a section was lost";
}

static void leave(void)
{
	enum section_exit how = (enum section_exit)(simt_lane() % SECTION_EXITS);

	if (!section_left(how, section_leave(&locks, kind_of_lane(simt_lane()), &nodes[simt_lane()],
					     whole_warp(), how)))
		simt_fail("not the way out");
}

/* Twice, so that each lane finds the lock free again. */
static void leave_by_return(void)
{
	for (int i = 0; i < 2; i++)
		(void)section_leave(&locks, kind_of_lane(simt_lane()), &nodes[simt_lane()],
				    whole_warp(), EXIT_RETURN);
}

static const char *return_check(void)
{
	locks.count[0] /= 2;
	locks.count[1] /= 2;
	return sections_check();
}

START_TEST(exits)
{
	struct simt_case mixed = {.name = "every exit",
				  .setup = sections_setup,
				  .body = leave,
				  .check = sections_check,
				  .max_steps = 1000000};
	struct simt_case returns = {.name = "return",
				    .setup = sections_setup,
				    .body = leave_by_return,
				    .check = return_check,
				    .max_steps = 1000000};

	kind = (enum section_kind)_i;
	explore_shape(returns, 1, 2, 3);
	explore_shape(returns, 2, 1, 3);
	try_shape(mixed, 1, 2 * SECTION_EXITS, 10);
	try_shape(mixed, 2, 40, 3);
}
END_TEST

TCase *simt_section_cases(void)
{
	TCase *tc = simt_tcase("section");

	tcase_add_loop_test(tc, exits, 0, SECTION_KINDS);
	return tc;
}
