/* SPDX-License-Identifier: MIT */
/* Functions shared by the cases of simt_*.c, and the main program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simt_suites.h"

TCase *simt_tcase(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, 300);
	return tc;
}

uint64_t simt_seed(void)
{
	static uint64_t seed;
	const char *given = getenv("CUA_TEST_SEED");

	if (!seed) {
		seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u;
		printf("simt: CUA_TEST_SEED=%llu\n", (unsigned long long)seed);
		fflush(stdout);
	}
	return seed;
}

static int is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value && strcmp(value, "0");
}

int simt_quick(void)
{
	return is_set("CUA_TEST_QUICK");
}

int simt_scale(int quick, int normal, int full)
{
	return simt_quick() ? quick : is_set("CUA_TEST_FULL") ? full : normal;
}

/*
 * Schedules dominate the time of `make check`: a sixth of them run, under half of the policies,
 * unless CUA_TEST_FULL requests all.
 */
static unsigned scaled(unsigned all)
{
	return all / (unsigned)simt_scale(8, 6, 1) + (unsigned)simt_scale(1, 1, 0);
}

static void expect_ok(const struct simt_case *c, const char *how, struct simt_report r)
{
	ck_assert_msg(r.verdict == SIMT_OK, "%s, %s, %u x %u lanes: %s: %s (seed %llu, run %llu)",
		      c->name, how, c->shape.blocks, c->shape.block_lanes,
		      simt_verdict_name(r.verdict), r.message, (unsigned long long)r.seed,
		      (unsigned long long)r.runs);
}

static const struct {
	enum simt_policy policy;
	const char *name;
} policies[] = {
	{SIMT_RANDOM, "random"},
	{SIMT_STARVE_LANE, "a lane starved"},
	{SIMT_STARVE_WARP, "a warp starved"},
	{SIMT_LOCKSTEP, "lockstep"},
};

void try_shape(struct simt_case c, unsigned blocks, unsigned block_lanes, unsigned runs)
{
	/* unless all schedules run, a shape gets every second policy; the seed chooses the first */
	static uint64_t shape;
	const size_t step = (size_t)simt_scale(2, 2, 1), first = (simt_seed() + shape++) % step;

	/*
	 * far more steps than a correct case needs, even if the seed starves the holder of a lock
	 */
	if (c.max_steps < 20000000)
		c.max_steps = 20000000;
	c.shape.blocks = blocks;
	c.shape.block_lanes = block_lanes;
	runs = scaled(runs);
	for (size_t i = first; i < sizeof(policies) / sizeof(policies[0]); i += step)
		expect_ok(&c, policies[i].name,
			  simt_random(&c, policies[i].policy, simt_seed(), runs));
}

void explore_shape(struct simt_case c, unsigned blocks, unsigned block_lanes, unsigned preemptions)
{
	struct simt_report r;

	c.shape.blocks = blocks;
	c.shape.block_lanes = block_lanes;
	r = simt_explore(&c, preemptions, scaled(400000));
	expect_ok(&c, "explored", r);
	printf("simt: %s, %u x %u lanes, %u preemptions: %llu schedules%s\n", c.name, blocks,
	       block_lanes, preemptions, (unsigned long long)r.runs, r.exhausted ? ", all" : "");
}

void expect_caught(struct simt_case c, unsigned blocks, unsigned block_lanes,
		   enum simt_verdict expected, const char *says)
{
	struct simt_report r = {.verdict = SIMT_OK};

	c.shape.blocks = blocks;
	c.shape.block_lanes = block_lanes;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]) && r.verdict == SIMT_OK; i++)
		r = simt_random(&c, policies[i].policy, 1, 50);
	ck_assert_msg(r.verdict == expected && strstr(r.message, says),
		      "%s: %s: %s, expected %s: ...%s...", c.name, simt_verdict_name(r.verdict),
		      r.message, simt_verdict_name(expected), says);
	/* the seed replays the failure */
	{
		char first[sizeof(r.message)];
		struct simt_report again;
		size_t i;

		memcpy(first, r.message, sizeof(first));
		for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
			again = simt_random(&c, policies[i].policy, r.seed, 1);
			if (again.verdict == expected && !strcmp(again.message, first))
				break;
		}
		ck_assert_msg(i < sizeof(policies) / sizeof(policies[0]),
			      "%s: seed %llu does not replay", c.name, (unsigned long long)r.seed);
	}
}

struct cua_spinlock counter_lock;
uint64_t counter;

void simt_next_kernel(uint64_t *arrived)
{
	uint64_t wanted;

	cua_port_sync_block();
	if (cua_port_thread() == 0) {
		wanted = cua_port_fetch_add_u64(arrived, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
						CUA_SPACE_GLOBAL);
		wanted += simt_blocks() - wanted % simt_blocks();
		while (cua_port_load_b64(arrived, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL) <
		       wanted)
			cua_port_pause(1);
	}
	cua_port_sync_block();
}

void counter_setup(void)
{
	cua_spinlock_init(&counter_lock);
	counter = 0;
}

const char *counter_check(void)
{
	return counter == (uint64_t)simt_blocks() * simt_block_lanes() ? NULL
								       : "an update was lost";
}

void increment(void)
{
	CUA_WRITE(counter, CUA_READ(counter) + 1);
}

struct simt_case counter_case(const char *name, void (*body)(void))
{
	struct simt_case c = {
		.name = name, .setup = counter_setup, .body = body, .check = counter_check};

	c.max_steps = 300000;
	return c;
}

/* The lanes of this lane's warp that exist. */
uint32_t whole_warp(void)
{
	unsigned rest = simt_block_lanes() - simt_lane_in_block() / 32 * 32;

	return rest < 32 ? ((uint32_t)1 << rest) - 1 : ~(uint32_t)0;
}

static enum way way;

enum way way_of_lane(void)
{
	return way ? way : (enum way)(BY_SECTION + simt_lane() % 4);
}

void try_ways(struct simt_case c)
{
	for (int w = EACH_WAY; w <= BY_LOCK_FOR; w++) {
		way = (enum way)w;
		explore_shape(c, 1, 2, 4);
		explore_shape(c, 3, 1, w ? 2 : 3);
		try_shape(c, 1, 32, 3);
		try_shape(c, 3, 34, 2);
	}
	way = EACH_WAY;
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("skipped: the sanitizers do not follow coroutines\n");
	return 77;
#else
	Suite *suite = suite_create("simt");
	SRunner *runner;
	int failed;

#define SIMT_SUITE(module) suite_add_tcase(suite, simt_##module##_cases());
	SIMT_SUITES
#undef SIMT_SUITE
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
#endif
}
