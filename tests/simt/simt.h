/* SPDX-License-Identifier: MIT */
/*
 * A checker for code over the port layer. Lanes are coroutines, grouped in warps and blocks as on a
 * GPU. Every atomic, fence, pause, warp operation, barrier and marked plain access is a scheduling
 * point: a seeded scheduler chooses the lane that continues.
 *
 * The checker executes one access after the other, and keeps a happens-before clock for each lane.
 * Only releases, acquires, fences and barriers of sufficient scope advance the clocks. Two accesses
 * race if they are not ordered by the clocks, at least one is a write, and at least one is plain or
 * of too narrow a scope. A race is reported even if it was harmless in this run. So a missing
 * acquire, release or fence, or too narrow a scope, is found on any machine.
 *
 * In explored runs, and in half of the random ones, an atomic load may return an older store, as the
 * memory models of CUDA and C11 allow. Stores and read-modify-writes take effect in the order of the
 * run, so no load returns a store that a lane makes later.
 */
#ifndef CUATOMIC_TESTS_SIMT_H
#define CUATOMIC_TESTS_SIMT_H

#include <stddef.h>
#include <stdint.h>

#define SIMT_WARP_LANES 32
#define SIMT_MAX_LANES 1024

enum simt_policy {
	SIMT_RANDOM,      /* any lane that can run */
	SIMT_STARVE_LANE, /* a chosen lane runs only if no other lane can, or rarely */
	SIMT_STARVE_WARP, /* the same for a chosen warp */
	SIMT_LOCKSTEP     /* the lanes of a warp in turn, a step each, as long as they can run */
};

enum simt_verdict {
	SIMT_OK,
	SIMT_RACE,     /* unordered accesses, see the message */
	SIMT_DEADLOCK, /* no lane can run */
	SIMT_LIVELOCK, /* more steps than max_steps */
	SIMT_FAILED    /* simt_fail, or the check after the run */
};

struct simt_shape {
	unsigned blocks;
	unsigned block_lanes; /* lanes per block; the last warp may be partial */
};

struct simt_report {
	enum simt_verdict verdict;
	char message[256];
	uint64_t seed;  /* replays the last random run */
	uint64_t runs;  /* schedules tried */
	uint64_t steps; /* of the last run */
	int exhausted;  /* explore only: every schedule within the bounds was tried */
};

/*
 * A case: setup before every run, body on every lane, check after the run (returns NULL, or a
 * message if wrong).
 */
struct simt_case {
	const char *name;
	struct simt_shape shape;
	void (*setup)(void);
	void (*body)(void);
	const char *(*check)(void);
	uint64_t max_steps; /* 0: 1 000 000 */
};

/*
 * Runs up to `runs` schedules with seeds seed, seed + 1, ...; stops at the first that is not
 * SIMT_OK.
 */
struct simt_report simt_random(const struct simt_case *c, enum simt_policy policy, uint64_t seed,
			       uint64_t runs);

/*
 * Tries every schedule with at most `preemptions` preemptions, up to max_runs schedules. A
 * preemption is a switch away from a lane that could continue, or a load of an older store. A switch
 * at a pause or a barrier is none.
 */
struct simt_report simt_explore(const struct simt_case *c, unsigned preemptions, uint64_t max_runs);

const char *simt_verdict_name(enum simt_verdict verdict);

/* ---- for bodies ---- */

unsigned simt_lane_in_block(void);
unsigned simt_lane(void);
unsigned simt_block(void);
unsigned simt_blocks(void);
unsigned simt_block_lanes(void);
/* Lanes of this lane's warp that exist and have not returned. */
uint32_t simt_warp_mask(void);
/*
 * A set of lanes of this warp, including this lane, that are at the same call. Returns any such set
 * that a GPU may return. A scheduling point.
 */
uint32_t simt_active_mask(void);
/*
 * Whether the lanes of a whole warp read a bucket of the hash map together; else each lane reads
 * alone, which has fewer scheduling points. A case sets it, and clears it at its end.
 */
extern int simt_together;
/*
 * The mask that simt_active_mask returns for a whole warp, if its lanes form quads. Else a mask that
 * it never returns. 0 unless simt_together.
 */
uint32_t simt_whole_warp(void);
/*
 * A moment between two calls of a lane. In a run with loads of older stores, all that happens before
 * a moment happens before the next moment of any lane, so that calls have an order in time.
 */
void simt_moment(void);
/* Ends the run with SIMT_FAILED. */
void simt_fail(const char *message);
/* This block's shared memory, zero at the start of a run. bytes is at most 16 KiB. */
void *simt_shared(size_t bytes);

/* ---- for port_simt.h ---- */

enum simt_access { SIMT_LOAD, SIMT_STORE, SIMT_RMW };

/* A scheduling point, then the access's effect on the clocks. order and scope as in port.h. */
void simt_atomic(enum simt_access access, const void *p, size_t bytes, int order, int scope);
/* The same for a load; stores what it returns into *value. */
void simt_load(const void *p, void *value, size_t bytes, int order, int scope);
/* The same for a plain access. */
void simt_plain(int is_write, const void *p, size_t bytes);
void simt_fence(int order, int scope);
/* Whether an acquire after a load is a fence, or else another load: GPUs have either. */
int simt_acquires_by_fence(void);
void simt_pause(void);
/*
 * Waits for the lanes of mask. Then sets values[i] to the value of lane i, for each lane i of mask.
 */
void simt_warp_converge(const char *what, uint32_t mask, uint64_t value,
			uint64_t values[SIMT_WARP_LANES], int orders_memory);
/* A barrier of the block. Returns whether the predicate was not 0 in any arriving lane. */
int simt_block_converge(const char *what, int predicate);

#endif /* CUATOMIC_TESTS_SIMT_H */
