/* SPDX-License-Identifier: MIT */
/*
 * Reads of a bucket of the hash map by the lanes of a warp, and their counts. Internal part of
 * hashmap.h and hashmap_quad.h.
 *
 * Source: cooperative probing of a bucket by part of a warp, as in WarpDrive (Juenger, Hundt,
 * Schmidt, 2018); lanes at the same instruction as a group, as in the coalesced groups of CUDA 9.
 *
 * A bucket of 64 bytes has 4 pieces of 16 bytes. A lane that loads all pieces of its bucket makes 4
 * requests to the L2 cache. 4 lanes that load the 4 pieces of a bucket in one instruction make a
 * single request. So the lanes of a quad, an aligned group of 4 lanes, load the buckets of all 4 in
 * turn, each lane a piece of each bucket, and then exchange the pieces.
 *
 * The caller of an operation by lanes need not know its warp: cua__warp_meet asks the hardware. If
 * all lanes of the warp are here, its quads read together. Else each lane reads alone, because an
 * exchange among some lanes costs more instructions than it saves requests.
 *
 * Progress: in cua__bucket_read_together and cua__count_together a lane waits only for the lanes that
 * were active with it at the start of the function. Until its end they execute the same
 * instructions, without a loop and without a branch that depends on the lane and waits.
 */
#ifndef CUATOMIC_HASHMAP_BUCKET_H
#define CUATOMIC_HASHMAP_BUCKET_H

#include <cuatomic/port.h>

/*
 * The lanes of a whole warp, which read and count together; or 0 if each lane reads and counts alone.
 * The bulk kernels of the map define 0, because only some lanes of their warps call operations by
 * lanes.
 */
#ifndef CUA__HASHMAP_WARP
#define CUA__HASHMAP_WARP (CUA_WARP_LANES > 1 ? CUA__ALL_LANES : 0)
#endif

/* Loads a piece of a bucket: two words of 64 bits or one of 128. Relaxed. */
CUA_FORCE void cua__piece_load(const char *at, int wide, uint64_t out[2])
{
#if defined(CUA_PORT_HAS_B128)
	if (wide) {
		cua__uint128 both =
			cua_port_load_b128(at, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

		out[0] = (uint64_t)both;
		out[1] = (uint64_t)(both >> 64);
		return;
	}
#endif
	(void)wide;
	cua_port_load_2xb64(at, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL, out);
}

/*
 * Exchanges the pieces of a quad. Lane i of it has loaded piece i ^ j of the bucket of lane j to
 * w[2 j]. Afterwards w[2 r] has piece r of the lane's own bucket.
 *
 * First each lane sorts its pieces, so that w[2 r] has piece r of the bucket of lane i ^ r. The sort
 * has no branches on the lane: with branches, the compiler would make two copies of the code and the
 * lanes would not converge.
 */
CUA_FORCE void cua__pieces_exchange(uint32_t mask, uint64_t w[8])
{
	const uint32_t lane = cua_port_lane(), part = lane % 4;
	uint32_t j, bit, half;

	CUA__UNROLL
	for (bit = 1; bit < 4; bit *= 2)
		CUA__UNROLL
	for (j = 0; j < 4; j++)
		CUA__UNROLL
	for (half = 0; half < 2; half++) {
		const uint64_t low = w[2 * j + half], high = w[2 * (j | bit) + half];

		if (j & bit)
			continue;
		w[2 * j + half] = part & bit ? high : low;
		w[2 * (j | bit) + half] = part & bit ? low : high;
	}
	CUA__UNROLL
	for (j = 1; j < 4; j++)
		CUA__UNROLL
	for (half = 0; half < 2; half++)
		w[2 * j + half] = cua_port_shuffle_u64(mask, w[2 * j + half], lane ^ j);
}

/* Reads a bucket by this lane alone: w[0] and w[1] get its first 16 bytes, and so on. Relaxed. */
CUA_FORCE void cua__bucket_read(const char *bucket, int wide, uint64_t w[8])
{
	uint32_t j;

	CUA__UNROLL
	for (j = 0; j < 4; j++)
		cua__piece_load(bucket + 16 * j, wide, w + 2 * j);
}

/*
 * The same by the lanes of mask, which have just met. The lanes of a whole warp read together, even
 * buckets of different maps. Returns whether another lane has loaded pieces of this lane's bucket.
 * Memory order: relaxed. The loads, by any lane, are ordered after the lane's earlier accesses and
 * before its later accesses. But a fence of this lane does not turn the loads of another lane into
 * an acquire. For an acquire, the lane loads a word again, or the lanes meet after a fence of each.
 */
CUA_FORCE int cua__bucket_read_together(uint32_t mask, const char *bucket, int wide, uint64_t w[8])
{
	const uint32_t all = CUA__HASHMAP_WARP;
	const uint32_t lane = cua_port_lane(), part = lane % 4;
	uint32_t j;

	if (mask == all) {
		CUA__UNROLL
		for (j = 0; j < 4; j++) {
			const char *of_lane = (const char *)(uintptr_t)cua_port_shuffle_u64(
				all, (uint64_t)(uintptr_t)bucket, lane - part + j);

			cua__piece_load(of_lane + 16 * (part ^ j), wide, w + 2 * j);
		}
		cua__pieces_exchange(all, w);
		/* a shuffle orders nothing */
		cua_port_sync_warp(all);
	} else {
		cua__bucket_read(bucket, wide, w);
	}
	return mask == all;
}

/*
 * Each lane that is active here adds 1 to a count of the array `counts`, preferably to *count. If
 * all of them have the same array, a single lane adds for all. Returns the count that has this
 * lane's 1.
 * Memory order: `order` is the order of the addition. It is ordered after the earlier accesses of
 * all these lanes, and before their later accesses.
 */
CUA_FORCE uint64_t *cua__count_together(uint64_t *count, const void *counts, enum cua_order order)
{
	const uint32_t mask = cua_port_active_mask(), first = cua_port_ffs_u32(mask) - 1;
	const uint64_t array = (uint64_t)(uintptr_t)counts;

	cua_port_sync_warp(mask);
	if (cua_port_ballot(mask, cua_port_shuffle_u64(mask, array, first) == array) == mask) {
		count = (uint64_t *)(uintptr_t)cua_port_shuffle_u64(
			mask, (uint64_t)(uintptr_t)count, first);
		if (cua_port_lane() == first)
			cua_port_add_u64(count, cua_port_popc_u32(mask), order, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GLOBAL);
	} else {
		cua_port_add_u64(count, 1, order, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
	cua_port_sync_warp(mask);
	return count;
}

#endif /* CUATOMIC_HASHMAP_BUCKET_H */
