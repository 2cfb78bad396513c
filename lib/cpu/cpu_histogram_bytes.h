/* SPDX-License-Identifier: MIT */
/*
 * Counts of bytes by value, on a single CPU core.
 *
 * In a loop over counts[x[i]]++, equal neighbours wait for each other, and each byte costs a store.
 * There are two faster methods. With tables, byte k of a word is counted in a table of its own.
 * With vectors, nothing is stored by index, so all data take the same time: 512 bytes are turned
 * into 8 bit planes. The planes yield 16 masks of the bytes with each value of the lower four bits,
 * and 16 masks for the upper four bits. The AND of a lower and an upper mask marks the bytes of a
 * single value.
 */
#ifndef CUATOMIC_CPU_CPU_HISTOGRAM_BYTES_H
#define CUATOMIC_CPU_CPU_HISTOGRAM_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Numbers of bytes that pay for clearing and adding up the tables, and the vectors' sums. */
#define BYTE_TABLES_FROM 1024
#define BYTE_VECTORS_FROM 32768
/* No counter of a table overflows within this many bytes. A multiple of 1, 2, 3 and 4 channels. */
#define BYTE_TABLES_MOST ((size_t)3 << 29)

#define BYTE_TABLES 8

/*
 * n is a multiple of `tables`. Byte k of each such group is counted in table k, which belongs to
 * channel k % channels.
 */
static inline void count_in_tables(const uint8_t *x, size_t n, unsigned channels,
				   const unsigned tables, uint64_t (*counts)[256])
{
	uint32_t table[BYTE_TABLES][256];

	memset(table, 0, tables * sizeof(table[0]));
	for (size_t i = 0; i < n; i += tables) {
		uint64_t word = 0;

		memcpy(&word, x + i, tables);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		word = __builtin_bswap64(word);
#endif
		table[0][word & 255]++;
		table[1][word >> 8 & 255]++;
		table[2][word >> 16 & 255]++;
		table[3][word >> 24 & 255]++;
		table[4][word >> 32 & 255]++;
		table[5][word >> 40 & 255]++;
		if (tables == 8) {
			table[6][word >> 48 & 255]++;
			table[7][word >> 56]++;
		}
	}
	for (unsigned k = 0; k < tables; k++)
		for (unsigned v = 0; v < 256; v++)
			counts[k % channels][v] += table[k][v];
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define BYTE_TARGET __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,gfni")))
/* Blocks of 512 bytes per step. Their masks and all sums fit into the L1 cache. */
#define BYTE_BLOCKS 4

static int have_byte_vectors(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vpopcntdq") &&
	       __builtin_cpu_supports("gfni");
}

/*
 * Puts bit b of 512 bytes into plane[b]. All planes have the same order of bytes, which is
 * arbitrary.
 */
BYTE_TARGET static inline void make_planes(const uint8_t *x, __m512i plane[8])
{
	static const uint8_t by_byte[64] = {0,  8,  16, 24, 32, 40, 48, 56, 1,  9,  17, 25, 33,
					    41, 49, 57, 2,  10, 18, 26, 34, 42, 50, 58, 3,  11,
					    19, 27, 35, 43, 51, 59, 4,  12, 20, 28, 36, 44, 52,
					    60, 5,  13, 21, 29, 37, 45, 53, 61, 6,  14, 22, 30,
					    38, 46, 54, 62, 7,  15, 23, 31, 39, 47, 55, 63};
	const __m512i order = _mm512_loadu_si512(by_byte);
	/*
	 * gf2p8affine multiplies v, a bit matrix per 8 bytes, by the unit matrix. The result is
	 * transposed.
	 */
	const __m512i unit = _mm512_set1_epi64((long long)0x8040201008040201u);
	__m512i word[8], pair[8];

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++) {
		const __m512i v = _mm512_loadu_si512(x + 64 * i);

		word[i] = _mm512_permutexvar_epi8(order, _mm512_gf2p8affine_epi64_epi8(unit, v, 0));
	}
	/* word b of each vector belongs to plane b */
#pragma GCC unroll 4
	for (int i = 0; i < 8; i += 2) {
		pair[i] = _mm512_unpacklo_epi64(word[i], word[i + 1]);
		pair[i + 1] = _mm512_unpackhi_epi64(word[i], word[i + 1]);
	}
#pragma GCC unroll 2
	for (int b = 0; b < 2; b++) {
		const __m512i even0 = _mm512_shuffle_i64x2(pair[b], pair[2 + b], 0x88);
		const __m512i odd0 = _mm512_shuffle_i64x2(pair[b], pair[2 + b], 0xdd);
		const __m512i even1 = _mm512_shuffle_i64x2(pair[4 + b], pair[6 + b], 0x88);
		const __m512i odd1 = _mm512_shuffle_i64x2(pair[4 + b], pair[6 + b], 0xdd);

		plane[b] = _mm512_shuffle_i64x2(even0, even1, 0x88);
		plane[4 + b] = _mm512_shuffle_i64x2(even0, even1, 0xdd);
		plane[2 + b] = _mm512_shuffle_i64x2(odd0, odd1, 0x88);
		plane[6 + b] = _mm512_shuffle_i64x2(odd0, odd1, 0xdd);
	}
}

/* Masks of the bytes of block k that have each of the 16 values of four planes. */
BYTE_TARGET static inline void make_masks(const __m512i plane[4], __m512i mask[16][BYTE_BLOCKS],
					  int k)
{
	const __m512i ones = _mm512_set1_epi32(-1);
	const __m512i n0 = _mm512_andnot_si512(plane[0], ones),
		      n1 = _mm512_andnot_si512(plane[1], ones),
		      n2 = _mm512_andnot_si512(plane[2], ones),
		      n3 = _mm512_andnot_si512(plane[3], ones);
	const __m512i low[4] = {_mm512_and_si512(n0, n1), _mm512_and_si512(plane[0], n1),
				_mm512_and_si512(n0, plane[1]),
				_mm512_and_si512(plane[0], plane[1])};
	const __m512i high[4] = {_mm512_and_si512(n2, n3), _mm512_and_si512(plane[2], n3),
				 _mm512_and_si512(n2, plane[3]),
				 _mm512_and_si512(plane[2], plane[3])};

#pragma GCC unroll 16
	for (int v = 0; v < 16; v++)
		mask[v][k] = _mm512_and_si512(low[v & 3], high[v >> 2]);
}

/* Counts whole steps of n bytes. Returns the number of bytes counted. */
BYTE_TARGET static size_t count_in_vectors(const uint8_t *x, size_t n, uint64_t *counts)
{
	const size_t step = 512 * BYTE_BLOCKS;
	__m512i sum[256], low[16][BYTE_BLOCKS], high[16][BYTE_BLOCKS];
	size_t i;

	memset(sum, 0, sizeof(sum));
	for (i = 0; n - i >= step; i += step) {
		for (int k = 0; k < BYTE_BLOCKS; k++) {
			__m512i plane[8];

			make_planes(x + i + 512 * k, plane);
			make_masks(plane, low, k);
			make_masks(plane + 4, high, k);
		}
		for (int h = 0; h < 16; h++) {
			const __m512i h0 = high[h][0], h1 = high[h][1], h2 = high[h][2],
				      h3 = high[h][3];

#pragma GCC unroll 16
			for (int l = 0; l < 16; l++) {
				const __m512i a =
					_mm512_popcnt_epi64(_mm512_and_si512(h0, low[l][0]));
				const __m512i b =
					_mm512_popcnt_epi64(_mm512_and_si512(h1, low[l][1]));
				const __m512i c =
					_mm512_popcnt_epi64(_mm512_and_si512(h2, low[l][2]));
				const __m512i d =
					_mm512_popcnt_epi64(_mm512_and_si512(h3, low[l][3]));
				const __m512i all = _mm512_add_epi64(_mm512_add_epi64(a, b),
								     _mm512_add_epi64(c, d));

				sum[h * 16 + l] = _mm512_add_epi64(sum[h * 16 + l], all);
			}
		}
	}
	for (int v = 0; v < 256; v++)
		counts[v] += (uint64_t)_mm512_reduce_add_epi64(sum[v]);
	return i;
}
#else
static int have_byte_vectors(void)
{
	return 0;
}

static size_t count_in_vectors(const uint8_t *x, size_t n, uint64_t *counts)
{
	(void)x;
	(void)n;
	(void)counts;
	return 0;
}
#endif

/* Adds the count of each value in each channel of n bytes. The first byte belongs to channel 0. */
static void count_bytes(const uint8_t *x, size_t n, unsigned channels, uint64_t (*counts)[256])
{
	size_t i = 0;

	if (channels == 1 && n >= BYTE_VECTORS_FROM && have_byte_vectors())
		i = count_in_vectors(x, n, counts[0]);
	while (n - i >= BYTE_TABLES_FROM) {
		size_t piece = n - i < BYTE_TABLES_MOST ? n - i : BYTE_TABLES_MOST;

		if (channels == 3) {
			piece -= piece % 6;
			count_in_tables(x + i, piece, 3, 6, counts);
		} else {
			piece -= piece % 8;
			count_in_tables(x + i, piece, channels, 8, counts);
		}
		i += piece;
	}
	for (unsigned c = (unsigned)(i % channels); i < n; i++) {
		counts[c][x[i]]++;
		c = c + 1 < channels ? c + 1 : 0;
	}
}

#endif /* CUATOMIC_CPU_CPU_HISTOGRAM_BYTES_H */
