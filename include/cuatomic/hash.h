/* SPDX-License-Identifier: MIT */
/*
 * The hash functions of the tables: 64-bit hashes of numbers and byte strings, and the mapping of
 * a hash to a bucket.
 *
 * Source: three rounds of xor-shift and multiply with published constants. Two rounds are from
 * splitmix64 (Steele, Lea, Flood, 2014; mix by Stafford), the third is from MurmurHash3's fmix64
 * (Appleby). Each shift is 32 bits: a single instruction on a machine with 32-bit registers. Two
 * rounds are too few: keys with two equal halves then share few hashes. The mapping takes the high
 * half of a product (Lemire, 2016). It needs no division, and n may be any number.
 *
 * cua_hash_bytes absorbs a string in words of 8 bytes. The last word is padded with zeros and the
 * low byte of the length, as in SipHash (Aumasson and Bernstein, 2012). An attacker who knows the
 * seed can construct strings that share a hash.
 *
 * cua_hash_u64 is a bijection for each seed, so different keys have different hashes. It can be
 * inverted: an attacker who knows the seed can name any number of keys that share a bucket. A
 * secret seed hides the buckets from an attacker who cannot watch the table. cua_hash_u64 protects
 * against nothing more.
 *
 * The keyed hash is SipHash-1-3 (Aumasson and Bernstein, 2012: a single round for each word and
 * three at the end, as in the tables of several languages). It hashes the key's 8 or 16 bytes, low
 * bytes first, under a secret of 128 bits. No method is known to find keys that share a bucket
 * more often than by chance without the secret, even for an attacker who sees collisions. The
 * keyed hash costs about ten times the instructions of cua_hash_u64.
 *
 * Scope, memory order: none. The functions depend on their arguments alone, so any calls may run
 *   concurrently. The caller orders writes of a string with cua_hash_bytes.
 * Progress: every function ends after a bounded number of its own steps.
 */
#ifndef CUATOMIC_HASH_H
#define CUATOMIC_HASH_H

#include <cuatomic/detail/standard.h>
#include <cuatomic/port.h>

/* A seed for layouts that are the same in each run. A table given seed 0 draws a random seed. */
#define CUA_HASH_SEED_FIXED ((uint64_t)0x9e3779b97f4a7c15u)

/* Hashes a key under a seed. For each seed it is a bijection of the key. */
CUA_FORCE uint64_t cua_hash_u64(uint64_t key, uint64_t seed)
{
	uint64_t x = (key ^ (key >> 32)) * 0xbf58476d1ce4e5b9u + seed;

	/* added once, the seed would only shift the outputs of the first round */
	x = (x ^ (x >> 32)) * 0x94d049bb133111ebu + seed;
	x = (x ^ (x >> 32)) * 0xff51afd7ed558ccdu;
	return x ^ (x >> 32);
}

/*
 * Hashes a key of 128 bits. With a fixed seed and a fixed half, it is a bijection of the other
 * half.
 */
CUA_FORCE uint64_t cua_hash_u128(struct cua_u128 key, uint64_t seed)
{
	return cua_hash_u64(key.lo ^ cua_hash_u64(key.hi, ~seed), seed);
}

/*
 * Hashes n bytes at any address. `bytes` may be NULL if n is 0. The result is the same on every
 * machine, because words are read as little-endian. For each seed, strings of equal length that
 * differ in a single word have different hashes, and so have different strings of up to 7 bytes.
 */
CUA_FN uint64_t cua_hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
	const unsigned char *p = (const unsigned char *)bytes;
	/*
	 * The start is 0 only for length 0: under seed 0 the rounds map 0 to 0. Below 8 bytes it
	 * is less than 2^56, so it does not reach the byte of the last word that has the length.
	 */
	uint64_t h = (uint64_t)n * 0x9e3779b1u, word;
	size_t i = 0;
	unsigned k;

	for (; n - i >= 8; i += 8) {
		word = (uint64_t)p[i] | (uint64_t)p[i + 1] << 8 | (uint64_t)p[i + 2] << 16 |
		       (uint64_t)p[i + 3] << 24 | (uint64_t)p[i + 4] << 32 |
		       (uint64_t)p[i + 5] << 40 | (uint64_t)p[i + 6] << 48 |
		       (uint64_t)p[i + 7] << 56;
		h = cua_hash_u64(h ^ word, seed);
	}
	word = (uint64_t)(n & 255) << 56;
	for (k = 0; i < n; i++, k += 8)
		word |= (uint64_t)p[i] << k;
	return cua_hash_u64(h ^ word, seed);
}

/* ---- the keyed hash ---- */

CUA_FORCE uint64_t cua__hash_rotate(uint64_t x, uint32_t by)
{
	return x << by | x >> (64 - by);
}

CUA_FORCE void cua__hash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = cua__hash_rotate(v[1], 13) ^ v[0];
	v[3] = cua__hash_rotate(v[3], 16) ^ v[2];
	v[0] = cua__hash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = cua__hash_rotate(v[1], 17) ^ v[2];
	v[3] = cua__hash_rotate(v[3], 21) ^ v[0];
	v[2] = cua__hash_rotate(v[2], 32);
}

CUA_FORCE void cua__hash_absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	cua__hash_round(v);
	v[0] ^= word;
}

/* Hashes a message of 1 or 2 words. */
CUA_FORCE uint64_t cua__hash_keyed(struct cua_u128 key, uint32_t words, struct cua_u128 secret)
{
	uint64_t v[4];
	int i;

	v[0] = secret.lo ^ 0x736f6d6570736575u;
	v[1] = secret.hi ^ 0x646f72616e646f6du;
	v[2] = secret.lo ^ 0x6c7967656e657261u;
	v[3] = secret.hi ^ 0x7465646279746573u;
	cua__hash_absorb(v, key.lo);
	if (words == 2)
		cua__hash_absorb(v, key.hi);
	/* the final word: the length in bytes in its top byte, without bytes of the key */
	cua__hash_absorb(v, (uint64_t)words * 8 << 56);
	v[2] ^= 255;
	CUA__UNROLL
	for (i = 0; i < 3; i++)
		cua__hash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The keyed hash of a key of 64 bits and of a key of 128 bits. */
CUA_FN uint64_t cua_hash_keyed_u64(uint64_t key, struct cua_u128 secret)
{
	struct cua_u128 bits;

	bits.lo = key;
	bits.hi = 0;
	return cua__hash_keyed(bits, 1, secret);
}

CUA_FN uint64_t cua_hash_keyed_u128(struct cua_u128 key, struct cua_u128 secret)
{
	return cua__hash_keyed(key, 2, secret);
}

/* ---- from a hash to a bucket ---- */

/* Maps a hash evenly to 0 .. n - 1 by its high bits. Returns 0 for n = 0. */
CUA_FORCE uint64_t cua_hash_to_index(uint64_t hash, uint64_t n)
{
	return cua_port_mul_high_u64(hash, n);
}

#endif /* CUATOMIC_HASH_H */
