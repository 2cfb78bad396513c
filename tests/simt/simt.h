/* SPDX-License-Identifier: MIT */
/*
 * A checker for code over the port layer: lanes are coroutines, warps and blocks are as on a GPU, and
 * every atomic, fence, pause, warp operation, barrier and marked plain access is a point at which a
 * seeded scheduler chooses the lane that goes on.
 *
 * It runs sequentially consistent interleavings and keeps a happens-before clock for each lane, which only
 * releases, acquires, fences and barriers of sufficient scope advance. Two accesses of which one is
 * a write, at least one is plain or of too narrow a scope, and which no such edge orders, are a race even if
 * this interleaving was harmless. So a missing acquire, release or fence and too narrow a scope are found
 * on any machine. What it cannot show is a stale value read by a relaxed atomic.
 */
#ifndef CUATOMIC_TESTS_SIMT_H
#define CUATOMIC_TESTS_SIMT_H

#include <stddef.h>
#include <stdint.h>

#define SIMT_WARP_LANES 32
#define SIMT_MAX_LANES 1024

enum simt_policy {
	SIMT_RANDOM,      /* any lane that can run */
	SIMT_STARVE_LANE, /* one lane runs only when nothing else can, or rarely */
	SIMT_STARVE_WARP, /* the same for one warp */
	SIMT_LOCKSTEP     /* a warp's lanes in turn, one step each, as long as they can */
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
	unsigned block_lanes; /* lanes a block; its last warp may be partial */
};

struct simt_report {
	enum simt_verdict verdict;
	char message[256];
	uint64_t seed;  /* that replays a random run */
	uint64_t runs;  /* schedules tried */
	uint64_t steps; /* of the last run */
	int exhausted;  /* explore only: every schedule within the bounds was tried */
};

/* A case: setup before every run, body on every lane, check after it (returns NULL or what is wrong). */
struct simt_case {
	const char *name;
	struct simt_shape shape;
	void (*setup)(void);
	void (*body)(void);
	const char *(*check)(void);
	uint64_t max_steps; /* 0: 1 000 000 */
};

/* Runs `runs` schedules from seed, seed + 1, ...; stops at the first that is not SIMT_OK. */
struct simt_report simt_random(const struct simt_case *c, enum simt_policy policy, uint64_t seed,
			       uint64_t runs);

/*
 * Tries every schedule with at most `preemptions` switches away from a lane that could go on (a pause
 * or a barrier is no preemption), up to max_runs.
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
 * Lanes of this lane's warp, itself one of them, that are at the same call at one moment: any such set that a GPU
 * may give. A scheduling point.
 */
uint32_t simt_active_mask(void);
/* Ends the run with SIMT_FAILED. */
void simt_fail(const char *message);
/* A place in this block's shared memory, zero at the start of a run; bytes is at most 16 KiB. */
void *simt_shared(size_t bytes);

/* ---- for port_simt.h ---- */

enum simt_access { SIMT_LOAD, SIMT_STORE, SIMT_RMW };

/* A scheduling point, then the access's effect on the clocks. order and scope as in port.h. */
void simt_atomic(enum simt_access access, const void *p, size_t bytes, int order, int scope);
/* After a compare-and-swap that failed: it was a load. */
void simt_plain(int is_write, const void *p, size_t bytes);
void simt_fence(int order, int scope);
void simt_pause(void);
/* Waits for the lanes of mask; then each lane of the mask can read what the others brought. */
void simt_warp_meet(const char *what, uint32_t mask, uint64_t value,
		    uint64_t values[SIMT_WARP_LANES], int orders_memory);
/* A barrier of the block. Returns whether the predicate was not 0 in any lane that came. */
int simt_block_meet(const char *what, int predicate);

#endif /* CUATOMIC_TESTS_SIMT_H */
