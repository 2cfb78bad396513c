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

/* Regions that a thread claims at once. */
#define CUA__CLAIMS 4u

/*
 * The claims of a block that sorts elements by region: replaces the counts of its regions by their
 * first positions in sorted order, and advances each cursor by the count. base[r] becomes the
 * difference of an element's place in memory from its position. A thread has adjacent regions for the
 * positions, and a warp for the cursors: its additions then share sectors of the L2. count has a word
 * more than there are regions, and of_warp a word for each warp. All threads of the block call; threads
 * is a constant.
 */
CUA_FORCE void cua__block_claim(uint32_t *count, uint32_t *base, uint32_t *of_warp,
				uint32_t *cursor, uint32_t regions, uint32_t threads)
{
	/* an odd number, so that the lanes of a warp use different banks */
	const uint32_t thread = cua_port_thread(), each = (regions + threads - 1) / threads | 1;
	const uint32_t begin = thread * each;
	uint32_t sum = 0, before, total;

	for (uint32_t r = begin; r < begin + each && r < regions; r++)
		sum += CUA_READ(count[r]);
	before = cua__warp_before(sum, &total);
	if (cua_port_lane() == 31)
		CUA_WRITE(of_warp[thread / 32], total);
	cua_port_sync_block();
	CUA__UNROLL
	for (uint32_t w = 0; w < threads / 32; w++)
		before += w < thread / 32 ? CUA_READ(of_warp[w]) : 0;
	for (uint32_t r = begin; r < begin + each && r < regions; r++) {
		const uint32_t mine = CUA_READ(count[r]);

		CUA_WRITE(count[r], before);
		before += mine;
	}
	if (thread == threads - 1)
		CUA_WRITE(count[regions], before);
	cua_port_sync_block();
	for (uint32_t first = thread; first < regions; first += CUA__CLAIMS * threads) {
		uint32_t place[CUA__CLAIMS], position[CUA__CLAIMS];

		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__CLAIMS; k++) {
			const uint32_t r = first + k * threads;

			if (r < regions) {
				position[k] = CUA_READ(count[r]);
				place[k] = cua_port_fetch_add_u32(
					&cursor[r], CUA_READ(count[r + 1]) - position[k],
					CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			}
		}
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__CLAIMS; k++)
			if (first + k * threads < regions)
				CUA_WRITE(base[first + k * threads], place[k] - position[k]);
	}
	cua_port_sync_block();
}

#endif /* CUATOMIC_KERNELS_WARP_SCAN_H */
