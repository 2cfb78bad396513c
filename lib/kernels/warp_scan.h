/* SPDX-License-Identifier: MIT */
/*
 * Sums over the lanes of a whole warp.
 *
 * Source: the scan of Hillis and Steele (Data Parallel Algorithms, 1986). All 32 lanes call together.
 */
#ifndef CUATOMIC_KERNELS_WARP_SCAN_H
#define CUATOMIC_KERNELS_WARP_SCAN_H

#include <cuatomic/port.h>

/* The sum of the words of the lower lanes of the warp; *total is that of all lanes. */
CUA_FORCE uint32_t cua__warp_before(uint32_t v, uint32_t *total)
{
	const uint32_t lane = cua_port_lane();
	uint32_t sum = v;

	CUA__UNROLL
	for (uint32_t by = 1; by < 32; by *= 2) {
		const uint32_t below = cua_port_shuffle_u32(CUA__ALL_LANES, sum, (lane - by) & 31);

		sum += lane >= by ? below : 0;
	}
	*total = cua_port_shuffle_u32(CUA__ALL_LANES, sum, 31);
	return sum - v;
}

#endif /* CUATOMIC_KERNELS_WARP_SCAN_H */
