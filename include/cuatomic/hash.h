/* SPDX-License-Identifier: MIT */
/*
 * The hash of the tables: 64 bits in, 64 well mixed bits out, and their mapping to a range.
 *
 * Source: the two rounds are multiply and xor-shift finalizers with the published constants of splitmix64
 * (Steele, Lea, Flood, 2014; mix by Stafford) and MurmurHash3's fmix64 (Appleby). The mapping is the high
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
	uint64_t x = key + seed * 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	/* the seed comes in twice, so that it does more than shift the sequence of keys */
	x += seed;
	x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
	x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
	return x ^ (x >> 33);
}

/* Of a key of 128 bits. For one seed and one half, it is a bijection of the other half. */
CUA_FORCE uint64_t cua_hash_u128(struct cua_u128 key, uint64_t seed)
{
	return cua_hash_u64(key.lo ^ cua_hash_u64(key.hi, ~seed), seed);
}

/* Maps a hash to 0 .. n - 1, evenly, by its high bits; 0 for n = 0. */
CUA_FORCE uint64_t cua_hash_range(uint64_t hash, uint64_t n)
{
	return cua_port_mul_high_u64(hash, n);
}

#endif /* CUATOMIC_HASH_H */
