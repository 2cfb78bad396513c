/* SPDX-License-Identifier: MIT */
/* Functions shared by the tests of atomics in kernels. */
#ifndef CUATOMIC_TESTS_DEVICE_ATOMIC_H
#define CUATOMIC_TESTS_DEVICE_ATOMIC_H

#include <cuatomic/atomic_narrow.h>
#include <cuatomic/atomic_warp.h>

#include "device.h"

#include "atomic_model.h"

/* An operand for each lane and step; all operands differ. */
CUA_FN uint64_t operand_of(uint32_t id, uint32_t i)
{
	uint64_t z = ((uint64_t)id << 32 | i) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	return z ^ (z >> 31);
}

#endif /* CUATOMIC_TESTS_DEVICE_ATOMIC_H */
