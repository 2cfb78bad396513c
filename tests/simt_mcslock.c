/* SPDX-License-Identifier: MIT */
/* The MCS lock. */
#include <string.h>

#include <cuatomic/mcslock.h>

#include "simt_suites.h"

static struct cua_mcslock mcslock;
static struct cua_mcslock_node nodes[SIMT_MAX_LANES];

static void mcs_setup(void)
{
	cua_mcslock_init(&mcslock);
	memset(nodes, 0xee, sizeof(nodes));
	counter = 0;
}

static const char *mcs_check(void)
{
	return mcslock.tail ? "the lock is still held" : counter_check();
}

static void mcs_body(void)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()];

	TAKE_ONE_WAY(CUA_WITH_MCSLOCK (&mcslock, node), cua_mcslock_lock(&mcslock, node),
		     cua_mcslock_trylock(&mcslock, node), cua_mcslock_lock_for(&mcslock, node, 300),
		     cua_mcslock_unlock(&mcslock, node), increment());
}

/* A node serves several sections in turn. */
static void mcs_again_body(void)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()];

	for (int i = 0; i < 3; i++)
		CUA_WITH_MCSLOCK (&mcslock, node) {
			if (i == 1)
				increment();
		}
}

/* The queue written by hand, with selectable orders. */
static void mcs_by_hand(enum cua_order acquire, enum cua_order release)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()], *other;

#define AT CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC
	cua_port_store_b64(&node->next, 0, CUA_RELAXED, AT);
	cua_port_store_b32(&node->waiting, 1, CUA_RELAXED, AT);
	other = (struct cua_mcslock_node *)(uintptr_t)cua_port_exchange_b64(
		&mcslock.tail, (uint64_t)(uintptr_t)node, CUA_ACQ_REL, AT);
	if (other) {
		cua_port_store_b64(&other->next, (uint64_t)(uintptr_t)node, CUA_RELEASE, AT);
		while (cua_port_load_b32(&node->waiting, acquire, AT))
			cua_port_pause(1);
	}
	increment();
	if (cua_port_cas_b64(&mcslock.tail, (uint64_t)(uintptr_t)node, 0, CUA_RELEASE, AT) ==
	    (uint64_t)(uintptr_t)node)
		return;
	while (!cua_port_load_b64(&node->next, CUA_RELAXED, AT))
		cua_port_pause(1);
	other = (struct cua_mcslock_node *)(uintptr_t)cua_port_load_b64(&node->next, CUA_ACQUIRE,
									AT);
	cua_port_store_b32(&other->waiting, 0, release, AT);
#undef AT
}

static void mcs_right(void)
{
	mcs_by_hand(CUA_ACQUIRE, CUA_RELEASE);
}

static void bug_mcs_no_acquire(void)
{
	mcs_by_hand(CUA_RELAXED, CUA_RELEASE);
}

static void bug_mcs_no_release(void)
{
	mcs_by_hand(CUA_ACQUIRE, CUA_RELAXED);
}

START_TEST(mcs)
{
	struct simt_case c = {
		.name = "mcslock", .setup = mcs_setup, .body = mcs_body, .check = mcs_check};
	struct simt_case again = c, bug = c;

	try_ways(c);
	again.name = "mcslock, again";
	again.body = mcs_again_body;
	explore_shape(again, 2, 1, 3);
	try_shape(again, 2, 33, 3);
	bug.name = "mcs by hand";
	bug.body = mcs_right;
	try_shape(bug, 2, 32, 3);
	bug.name = "mcs without acquire";
	bug.body = bug_mcs_no_acquire;
	expect_caught(bug, 2, 32, SIMT_RACE, "plain");
	bug.name = "mcs without release";
	bug.body = bug_mcs_no_release;
	expect_caught(bug, 2, 32, SIMT_RACE, "plain");
}
END_TEST

TCase *simt_mcslock_cases(void)
{
	TCase *tc = simt_tcase("mcslock");

	tcase_add_test(tc, mcs);
	return tc;
}
