/* SPDX-License-Identifier: MIT */
/*
 * The owner of a key of a sharded map. Its hash has another seed than the tables, so the keys of a table
 * spread over all its buckets.
 */
#ifndef CUATOMIC_KERNELS_OWNER_H
#define CUATOMIC_KERNELS_OWNER_H

#include <cuatomic/hash.h>

/* key_size is a constant of the caller, 4, 8 or 16. */
CUA_FORCE uint32_t cua__owner(struct cua_u128 key, uint32_t key_size, uint64_t seed, uint32_t ranks)
{
	return (uint32_t)cua_hash_to_index(
		key_size == 16 ? cua_hash_u128(key, seed) : cua_hash_u64(key.lo, seed), ranks);
}

#endif /* CUATOMIC_KERNELS_OWNER_H */
