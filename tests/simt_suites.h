/* SPDX-License-Identifier: MIT */
/*
 * The inline algorithms under the SIMT checker: lanes are coroutines, and every shared access is a
 * scheduling choice. All of check_simt is compiled with the checker's port layer instead of the
 * host's.
 *
 * The cases of a module are in simt_<module>.c, in a test case of their own. check_simt_planted.sh
 * runs such a test case over a header with a planted bug.
 */
#ifndef CUATOMIC_TESTS_SIMT_SUITES_H
#define CUATOMIC_TESTS_SIMT_SUITES_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include <cuatomic/spinlock.h>

#include "simt/simt.h"

/* Every module that has cases; check_simt_planted.sh selects a single module. */
#ifndef SIMT_SUITES
#define SIMT_SUITES                                                                                \
	SIMT_SUITE(checker)                                                                        \
	SIMT_SUITE(append)                                                                         \
	SIMT_SUITE(atomic_narrow)                                                                  \
	SIMT_SUITE(atomic_warp)                                                                    \
	SIMT_SUITE(chained)                                                                        \
	SIMT_SUITE(combine)                                                                        \
	SIMT_SUITE(exact)                                                                          \
	SIMT_SUITE(exact_cell)                                                                     \
	SIMT_SUITE(filter)                                                                         \
	SIMT_SUITE(group_by)                                                                       \
	SIMT_SUITE(group_by_few)                                                                   \
	SIMT_SUITE(group_by_regions)                                                               \
	SIMT_SUITE(hashmap)                                                                        \
	SIMT_SUITE(hashmap_combine)                                                                \
	SIMT_SUITE(hashmap_kinds)                                                                  \
	SIMT_SUITE(hashmap_regions)                                                                \
	SIMT_SUITE(hashmap_ops)                                                                    \
	SIMT_SUITE(hashmap_state)                                                                  \
	SIMT_SUITE(histogram)                                                                      \
	SIMT_SUITE(join)                                                                           \
	SIMT_SUITE(linear)                                                                         \
	SIMT_SUITE(lock_debug)                                                                     \
	SIMT_SUITE(lock_forms)                                                                     \
	SIMT_SUITE(mcslock)                                                                        \
	SIMT_SUITE(multimap)                                                                       \
	SIMT_SUITE(reduce)                                                                         \
	SIMT_SUITE(rwlock)                                                                         \
	SIMT_SUITE(scatter)                                                                        \
	SIMT_SUITE(section)                                                                        \
	SIMT_SUITE(segment)                                                                        \
	SIMT_SUITE(semaphore)                                                                      \
	SIMT_SUITE(seqlock)                                                                        \
	SIMT_SUITE(serial)                                                                         \
	SIMT_SUITE(shard)                                                                          \
	SIMT_SUITE(shard_find)                                                                     \
	SIMT_SUITE(spinlock)                                                                       \
	SIMT_SUITE(stripe)                                                                         \
	SIMT_SUITE(ticketlock)                                                                     \
	SIMT_SUITE(timeout)                                                                        \
	SIMT_SUITE(tree)                                                                           \
	SIMT_SUITE(wide)
#endif

#define SIMT_SUITE(module) TCase *simt_##module##_cases(void);
SIMT_SUITES
#undef SIMT_SUITE

/* Whether CUA_TEST_QUICK asks for the fewest schedules. */
int simt_quick(void);
/* Chooses by CUA_TEST_QUICK and CUA_TEST_FULL. */
int simt_scale(int quick, int normal, int full);

/* An empty test case with a long timeout. */
TCase *simt_tcase(const char *name);

/* The seed of this run, printed at its first use: CUA_TEST_SEED, else a seed from the clock. */
uint64_t simt_seed(void);

/*
 * Random and adversarial schedules of one shape. A schedule counts as endless after at least 20 000
 * 000 steps. `runs` schedules with CUA_TEST_FULL, fewer without.
 */
void try_shape(struct simt_case c, unsigned blocks, unsigned block_lanes, unsigned runs);
/* Every schedule of a small shape with at most `preemptions` preemptions. */
void explore_shape(struct simt_case c, unsigned blocks, unsigned block_lanes, unsigned preemptions);
/* A planted bug must be found with the expected verdict, and its seed must replay it. */
void expect_caught(struct simt_case c, unsigned blocks, unsigned block_lanes,
		   enum simt_verdict expected, const char *says);

/* The lanes of the caller's warp. */
uint32_t whole_warp(void);

/*
 * Stands for the end of a kernel: all blocks arrive, and every block then sees all writes. Called by
 * all lanes. *arrived is 0 at first.
 */
void simt_next_kernel(uint64_t *arrived);

/* ---- a counter that each lane must increment once ---- */

extern struct cua_spinlock counter_lock;
extern uint64_t counter;

void counter_setup(void);
const char *counter_check(void);
/* Increments the counter by plain accesses. */
void increment(void);
struct simt_case counter_case(const char *name, void (*body)(void));

/* ---- every way to acquire a lock ---- */

/* How a lane acquires a lock, so that every form runs beside every other form. */
enum way { EACH_WAY, BY_SECTION, BY_LOCK, BY_TRYLOCK, BY_LOCK_FOR };
enum way way_of_lane(void);
/* Runs the case with each way alone, then with all together. */
void try_ways(struct simt_case c);

/* A lock acquired by a single lane in the form that way_of_lane() selects. */
#define TAKE_ONE_WAY(SECTION, lock_call, try_call, for_call, unlock_call, body)                    \
	do {                                                                                       \
		switch (way_of_lane()) {                                                           \
		case BY_SECTION:                                                                   \
			SECTION                                                                    \
			{                                                                          \
				body;                                                              \
			}                                                                          \
			break;                                                                     \
		case BY_LOCK:                                                                      \
			lock_call;                                                                 \
			body;                                                                      \
			unlock_call;                                                               \
			break;                                                                     \
		case BY_TRYLOCK:                                                                   \
			while (!(try_call))                                                        \
				cua_port_pause(1);                                                 \
			body;                                                                      \
			unlock_call;                                                               \
			break;                                                                     \
		default:                                                                           \
			while (!(for_call))                                                        \
				cua_port_pause(1);                                                 \
			body;                                                                      \
			unlock_call;                                                               \
		}                                                                                  \
	} while (0)

#endif /* CUATOMIC_TESTS_SIMT_SUITES_H */
