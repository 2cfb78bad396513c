/* SPDX-License-Identifier: MIT */
/*
 * The hash of the tables: 64 bits in, 64 well mixed bits out, and their mapping to a range.
 *
 * Source: rounds of xor-shift and multiply with published constants, two of splitmix64 (Steele, Lea, Flood, 2014;
 * mix by Stafford) and one of MurmurHash3's fmix64 (Appleby). The shifts are half a word, which is one instruction
 * where registers have 32 bits; with two rounds keys of two equal halves came to few hashes. The mapping is the high
 * half of a product (Lemire, 2016), which needs no division and no power of two.
 *
 * For one seed the hash is a bijection, so different keys have different hashes. It is no defence against
 * someone who knows the seed.
 */
#ifndef CUATOMIC_HASH_H
#define CUATOMIC_HASH_H

#include <cuatomic/port.h>

/* The hash of a key under a seed. */
CUA_FORCE uint64_t cua_hash_u64(uint64_t key, uint64_t seed)
{
	uint64_t x = (key ^ (key >> 32)) * 0xbf58476d1ce4e5b9u + seed;

	/* the seed comes in twice, so that it does more than shift what the first round makes of the keys */
	x = (x ^ (x >> 32)) * 0x94d049bb133111ebu + seed;
	x = (x ^ (x >> 32)) * 0xff51afd7ed558ccdu;
	return x ^ (x >> 32);
}

/* Of a key of 128 bits. For one seed and one half, it is a bijection of the other half. */
CUA_FORCE uint64_t cua_hash_u128(struct cua_u128 key, uint64_t seed)
{
	return cua_hash_u64(key.lo ^ cua_hash_u64(key.hi, ~seed), seed);
}

/* Maps a hash to 0 .. n - 1, evenly, by its high bits; 0 for n = 0. */
CUA_FORCE uint64_t cua_hash_to_index(uint64_t hash, uint64_t n)
{
	return cua_port_mul_high_u64(hash, n);
}

#endif /* CUATOMIC_HASH_H */
