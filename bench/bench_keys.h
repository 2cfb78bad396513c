/* SPDX-License-Identifier: MIT */
/*
 * The keys and values of the hash map's benchmarks, in C and in CUDA C. A key is a function of its
 * index, and a value is a function of its key, so results can be checked without a reference table.
 */
#ifndef CUATOMIC_BENCH_KEYS_H
#define CUATOMIC_BENCH_KEYS_H

#include <math.h>
#include <stdint.h>

#include <cuatomic/port.h>

/* Bijective. Source: the finalizers of MurmurHash3 and of SplitMix64. */
CUA_FN uint32_t keys_mix32(uint32_t z)
{
	z = (z ^ (z >> 16)) * 0x85ebca6bu;
	z = (z ^ (z >> 13)) * 0xc2b2ae35u;
	return z ^ (z >> 16);
}

CUA_FN uint64_t keys_mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/*
 * The key of 4 or 8 bytes with index i. Keys of different indexes below 2^32 - 1 differ. No key is
 * 0, because a peer may reserve it.
 */
CUA_FN uint64_t keys_key(unsigned size, uint64_t i)
{
	return size == 4 ? keys_mix32((uint32_t)i + 1) : keys_mix64(i + 1);
}

/* The value of a key. */
CUA_FN uint64_t keys_value(unsigned size, uint64_t key)
{
	uint64_t value = key * 0x9e3779b97f4a7c15u + 1;

	return size == 4 ? (uint32_t)(value >> 16) : value;
}

/*
 * A permutation of the indexes below n, n at most 2^31: the multiplier is a prime that does not
 * divide n.
 */
CUA_FN uint64_t keys_turn(uint64_t i, uint64_t n)
{
	return i * 2654435761u % n;
}

/* Maps a random number to an index below n. */
CUA_FN uint64_t keys_below(uint64_t random, uint64_t n)
{
	return ((random >> 32) * n) >> 32;
}

/*
 * An index below n by Zipf's law with exponent 1, from random numbers generated from seed; index 0
 * is the most frequent. Source: W. Hoermann and G. Derflinger, Rejection-inversion to generate
 * variates from monotone discrete distributions, 1996; the hat is 1 / x and its integral ln x.
 */
CUA_FN uint64_t keys_zipf(uint64_t seed, uint64_t n)
{
	const double low = log(1.5) - 1, high = log((double)n + 0.5);
	const double sure = 2 - exp(log(2.5) - 0.5);

	for (;;) {
		double u, x, k;

		seed = keys_mix64(seed + 0x9e3779b97f4a7c15u);
		u = high + (double)(seed >> 11) * 0x1p-53 * (low - high);
		x = exp(u);
		k = floor(x + 0.5);
		k = k < 1 ? 1 : k > (double)n ? (double)n : k;
		if (k - x <= sure || u >= log(k + 0.5) - 1 / k)
			return (uint64_t)k - 1;
	}
}

#endif /* CUATOMIC_BENCH_KEYS_H */
