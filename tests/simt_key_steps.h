/* SPDX-License-Identifier: MIT */
/* Inputs and arrays of row numbers for the SIMT cases of the steps of calls by key. */
#ifndef CUATOMIC_TESTS_SIMT_KEY_STEPS_H
#define CUATOMIC_TESTS_SIMT_KEY_STEPS_H

#include <stdint.h>
#include <string.h>

#include "lib/kernels/group_by_kernel.h"
#include "simt_suites.h"

static int wide; /* row numbers have 64 bits */
static uint32_t parts = 3;
/* The input of a run is the same in each of its schedules. */
static uint64_t rng, input;

static inline uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 33;
}

/* Element i of an array of numbers, without scheduling points. */
static inline uint64_t number_of(const void *array, uint64_t i)
{
	if (wide)
		return ((const uint64_t *)array)[i];
	return ((const uint32_t *)array)[i] == UINT32_MAX ? CUA__GROUP_NONE
							  : ((const uint32_t *)array)[i];
}

static inline void set_number(void *array, uint64_t i, uint64_t v)
{
	if (wide)
		((uint64_t *)array)[i] = v;
	else
		((uint32_t *)array)[i] = (uint32_t)v;
}

/* Describes n keys of 32 bits. */
static inline void set_keys(struct cua__distinct *d, uint64_t n)
{
	d->key_type = CUA_U32;
	d->key_size = 4;
	d->wide = wide;
	d->n = n;
}

/* The first of n items of a part. */
static inline uint64_t first_of(uint64_t n, uint64_t part)
{
	const uint64_t each = n / parts, more = n % parts;

	return each * part + (part < more ? part : more);
}

/* Random schedules with several inputs. */
static inline void try_each_input(struct simt_case c, unsigned blocks, unsigned lanes,
				  unsigned runs)
{
	for (input = 1; input <= 6; input++)
		try_shape(c, blocks, lanes, runs);
}

/* The warps of a run, of 32 lanes each, and the number of the caller's warp. */
static inline uint64_t warps(void)
{
	return (uint64_t)simt_blocks() * (simt_block_lanes() / 32);
}

static inline uint64_t warp_number(void)
{
	return (uint64_t)simt_block() * (simt_block_lanes() / 32) + simt_lane_in_block() / 32;
}

#endif /* CUATOMIC_TESTS_SIMT_KEY_STEPS_H */
