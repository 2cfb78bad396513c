/* SPDX-License-Identifier: MIT */
/*
 * The hash of the tables: 64 bits in, 64 well mixed bits out, and their mapping to a range.
 *
 * Source: rounds of xor-shift and multiply with published constants, two of splitmix64 (Steele, Lea, Flood, 2014;
 * mix by Stafford) and one of MurmurHash3's fmix64 (Appleby). The shifts are half a word, which is one instruction
 * where registers have 32 bits; with two rounds keys of two equal halves came to few hashes. The mapping is the high
 * half of a product (Lemire, 2016), which needs no division and no power of two.
 *
 * Byte strings are hashed a word of 8 bytes after the other, the last one padded with zeros and the low byte of the
 * length, as SipHash pads (Aumasson and Bernstein, 2012). Who knows the seed can make strings that share a hash.
 *
 * For one seed the hash is a bijection, so different keys have different hashes. It can be inverted: who knows the
 * seed can name any number of keys that share a bucket. A seed that nobody knows hides the buckets from who cannot
 * watch the table, and that is all that cua_hash_u64 offers.
 *
 * The keyed hash is SipHash-1-3 (Aumasson and Bernstein, 2012; one round a word and three at the end, as in the
 * tables of several languages) of the key's 8 or 16 bytes, low bytes first, under a secret of 128 bits. Without the
 * secret nobody is known to find keys that share a bucket more often than chance has it, also not by watching which
 * keys do. It costs about ten times the instructions of cua_hash_u64.
 */
#ifndef CUATOMIC_HASH_H
#define CUATOMIC_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <cuatomic/port.h>

/* A seed for tables whose layout is the same in each run; 0 makes a table choose a seed at random. */
#define CUA_HASH_SEED_FIXED ((uint64_t)0x9e3779b97f4a7c15u)

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

/*
 * Of n bytes at any address; bytes may be NULL where n is 0. The same on every machine: the words are little-endian.
 * Strings that differ in one word only have different hashes, and so have all strings of up to 7 bytes.
 */
CUA_FN uint64_t cua_hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
	const unsigned char *p = (const unsigned char *)bytes;
	/* no length but 0 begins with 0, which the rounds leave alone under seed 0; shorter than a word: below 2^56 */
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

/* Of a message of one or two words. */
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
	/* the last word has the length in bytes at its top, and no byte of the key is left for it */
	cua__hash_absorb(v, (uint64_t)words * 8 << 56);
	v[2] ^= 255;
	CUA__UNROLL
	for (i = 0; i < 3; i++)
		cua__hash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The keyed hash of a key of 64 bits, and of one of 128 bits. */
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

/* Maps a hash to 0 .. n - 1, evenly, by its high bits; 0 for n = 0. */
CUA_FORCE uint64_t cua_hash_to_index(uint64_t hash, uint64_t n)
{
	return cua_port_mul_high_u64(hash, n);
}

#endif /* CUATOMIC_HASH_H */
