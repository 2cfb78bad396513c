/* SPDX-License-Identifier: MIT */
/*
 * The owner of a key of a sharded map. Its hash has another seed than the tables, so the keys of a table
 * spread over all its buckets.
 *
 * Source: the hash of 32 bits has the multipliers of C. Wellons, lowbias32 (2018).
 */
#ifndef CUATOMIC_KERNELS_OWNER_H
#define CUATOMIC_KERNELS_OWNER_H

#include <cuatomic/hash.h>

/* A hash of 32 bits for keys of 4 bytes, because a GPU multiplies 64-bit numbers in several steps. */
CUA_FORCE uint32_t cua__owner_hash_u32(uint32_t key, uint64_t seed)
{
	uint32_t h = key ^ (uint32_t)seed;

	h = (h ^ h >> 16) * 0x7feb352du;
	h = (h ^ h >> 15 ^ (uint32_t)(seed >> 32)) * 0x846ca68bu;
	return h ^ h >> 16;
}

/* key_size is a constant of the caller, 4, 8 or 16. */
CUA_FORCE uint32_t cua__owner(struct cua_u128 key, uint32_t key_size, uint64_t seed, uint32_t ranks)
{
	const uint32_t h = key_size == 4   ? cua__owner_hash_u32((uint32_t)key.lo, seed)
			   : key_size == 8 ? (uint32_t)(cua_hash_u64(key.lo, seed) >> 32)
					   : (uint32_t)(cua_hash_u128(key, seed) >> 32);

	return (uint32_t)((uint64_t)h * ranks >> 32);
}

#endif /* CUATOMIC_KERNELS_OWNER_H */
