/* SPDX-License-Identifier: MIT */
/* Limits of large calls. By these low limits, calls of small tests take the same ways. */
#ifndef CUATOMIC_TESTS_SMALL_LIMITS_H
#define CUATOMIC_TESTS_SMALL_LIMITS_H

#define LEAST_PAIRS ((uint64_t)1000)
#define LEAST_BYTES_OF_PARTS(ranks) ((uint64_t)(ranks)*4096)
#define LEAST_BUILD_REGIONS 4u
#define INSERT_SHIFT 7u
#define INSERT_BYTES ((uint64_t)4096)
#define LEAST_REGIONS 32u
#define CUA__COMBINE_GUESSED 512u

#endif /* CUATOMIC_TESTS_SMALL_LIMITS_H */
