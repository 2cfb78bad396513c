/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a recorded history of calls on a map is linearizable: each call can be given a
 * moment between its invocation and its response, such that a map that executes the calls in the
 * order of these moments gives the same results.
 *
 * A map is linearizable if it is linearizable for each key alone (locality: Herlihy and Wing,
 * 1990), so the checker treats each key separately. The search is depth first and remembers visited
 * nodes (Wing and Gong, 1993; Lowe, 2017). It goes from response to response, and orders only the
 * calls that must be ordered by then.
 *
 * The moments are ticks of a counter, and all differ. If the counter is an atomic that is
 * incremented with acquire and release, "responded before the other was invoked" means "happens
 * before the other".
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

/* The values of enum cua_hashmap_result. find, contains and erase return 1 or 0. */
enum linear_result {
	LINEAR_ABSENT = 0,
	LINEAR_INSERTED = 1,
	LINEAR_EXISTS = 2,
	LINEAR_FULL = 3,
	LINEAR_DIFFERS = 4
};

/* A call. The checker ignores members that its operation or result does not use. */
struct linear_event {
	uint64_t key;
	uint64_t given;    /* the value or operand */
	uint64_t expected; /* of a compare_exchange */
	uint64_t got; /* the value returned by find, insert_or_get, exchange, compare_exchange */
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
	LINEAR_TOO_MUCH /* gave up: too many nodes, or more than 64 concurrent calls on a key */
};

struct linear_report {
	enum linear_verdict verdict;
	char message[256];
	uint64_t key;   /* the key with the wrong call */
	uint64_t nodes; /* number of visited nodes */
};

/*
 * Executes the call on a map that holds `state` for its key and has room for the key. Sets result
 * and got, and updates the state. Values have value_bytes bytes: 4 or 8, or 0 for a set.
 */
void linear_apply(struct linear_state *state, struct linear_event *event, unsigned value_bytes);

/*
 * Checks n calls, given in any order, on a map that was empty before them. This check accepts
 * LINEAR_FULL whenever the key was absent; linear_check_full checks the number of other keys.
 */
struct linear_report linear_check(const struct linear_event *events, size_t n,
				  unsigned value_bytes);

/*
 * Checks each call that returned LINEAR_FULL: at some moment of the call, at least `slots` other
 * keys may have been present. A key may be present from the invocation of its insert until the
 * response of its erase. The condition is necessary, not sufficient.
 */
struct linear_report linear_check_full(const struct linear_event *events, size_t n, uint64_t slots);

/* Prints the calls on a key in the order of their invocation. */
void linear_print(FILE *file, const struct linear_event *events, size_t n, uint64_t key);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_TESTS_LINEAR_H */
