/* SPDX-License-Identifier: MIT */
/*
 * Functions shared by the fuzz targets. A target is a file that defines LLVMFuzzerTestOneInput.
 * clang links it with libFuzzer. Any compiler can link it with driver.c, to run the seeds and a
 * loop of pseudo-random mutations.
 */
#ifndef CUATOMIC_TESTS_FUZZ_H
#define CUATOMIC_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * libFuzzer's names. The custom mutator is optional for a target. The driver defines
 * LLVMFuzzerMutate.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* Prints a message and crashes, so that the driver keeps the input. */
#define FUZZ_CHECK(condition, ...)                                                                 \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);            \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A splitmix64 sequence. */
static inline uint64_t fuzz_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Compares two unsigned numbers of `bytes` bytes each in the machine's byte order. */
static inline int fuzz_order(const void *a, const void *b, size_t bytes)
{
	const uint8_t *p = (const uint8_t *)a, *q = (const uint8_t *)b;
	const uint16_t one = 1;
	const int little = *(const uint8_t *)&one;

	for (size_t i = 0; i < bytes; i++) {
		size_t at = little ? bytes - 1 - i : i;

		if (p[at] != q[at])
			return p[at] < q[at] ? -1 : 1;
	}
	return 0;
}

#endif /* CUATOMIC_TESTS_FUZZ_H */
