/* SPDX-License-Identifier: MIT */
/*
 * Whether a recorded history of calls on a map is linearizable: whether each call can be given one moment
 * between its invocation and its response so that the results are those of a map that
 * takes the calls one by one in the order of these moments.
 *
 * A map is linearizable if it is for each key by itself (locality: Herlihy and Wing, 1990), so keys are
 * looked at one by one. The search is depth first and remembers where it has been (Wing and Gong, 1993; Lowe,
 * 2017). It goes from response to response, and decides no more than has to be decided by then.
 *
 * The moments are ticks of one counter, no two of them equal. Where the counter is an atomic that is added to
 * with acquire and release, "responded before the other was invoked" is "happens before the other".
 */
#ifndef CUATOMIC_TESTS_LINEAR_H
#define CUATOMIC_TESTS_LINEAR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum linear_op {
	LINEAR_INSERT,
	LINEAR_ASSIGN,
	LINEAR_ADD,
	LINEAR_MIN,
	LINEAR_MAX,
	LINEAR_AND,
	LINEAR_OR,
	LINEAR_XOR,
	LINEAR_INSERT_OR_GET,
	LINEAR_EXCHANGE,
	LINEAR_COMPARE_EXCHANGE,
	LINEAR_FIND,
	LINEAR_CONTAINS,
	LINEAR_ERASE,
	LINEAR_OPS
};

/* The numbers of enum cua_hashmap_result; find, contains and erase return 1 or 0. */
enum linear_result {
	LINEAR_ABSENT = 0,
	LINEAR_INSERTED = 1,
	LINEAR_EXISTS = 2,
	LINEAR_FULL = 3,
	LINEAR_DIFFERS = 4
};

/* A call. What does not belong to its operation or result is not looked at. */
struct linear_event {
	uint64_t key;
	uint64_t given;    /* the value or operand */
	uint64_t expected; /* of a compare_exchange */
	uint64_t
		got; /* the value that came out: of find, insert_or_get, exchange, compare_exchange */
	uint64_t called, returned;
	uint32_t op, result;
	uint32_t lane, unused;
};

/* What a map holds for one key. */
struct linear_state {
	uint64_t value;
	int present;
};

enum linear_verdict {
	LINEAR_OK,
	LINEAR_WRONG,
	LINEAR_TOO_MUCH /* given up: too many ways to try, or more than 64 calls on a key at once */
};

struct linear_report {
	enum linear_verdict verdict;
	char message[256];
	uint64_t key;   /* that is wrong */
	uint64_t nodes; /* how much was tried */
};

/*
 * Does the call on a map that holds `state` for its key, with room for the key: sets result and got, and
 * moves the state on. Values have value_bytes bytes: 4 or 8, or 0 for a set.
 */
void linear_apply(struct linear_state *state, struct linear_event *event, unsigned value_bytes);

/*
 * Checks n calls, in any order, on a map that was empty before them. LINEAR_FULL is right here wherever the
 * key was absent: linear_check_full looks at the rest.
 */
struct linear_report linear_check(const struct linear_event *events, size_t n,
				  unsigned value_bytes);

/*
 * Whether each call that found the map full may have: at one moment of the call `slots` other keys may have
 * been there, each from an invocation of an insert until the response of an erase. Necessary, not sufficient.
 */
struct linear_report linear_check_full(const struct linear_event *events, size_t n, uint64_t slots);

/* The calls on one key in the order of their invocation. */
void linear_print(FILE *file, const struct linear_event *events, size_t n, uint64_t key);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_TESTS_LINEAR_H */
