/* SPDX-License-Identifier: MIT */
/*
 * The processor's mode for floating-point arithmetic as IEEE 754 has it by default: to nearest even, and
 * subnormals as they are. A program may have set another one; with -ffast-math in its link flags, it takes
 * subnormals as zeros.
 */
#ifndef CUATOMIC_LIB_FLOAT_MODE_H
#define CUATOMIC_LIB_FLOAT_MODE_H

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* Sets the mode and returns the former one, with the exceptions that were pending. */
static inline uint64_t cua__float_mode_begin(void)
{
#if defined(__SSE2__)
	unsigned before = _mm_getcsr();

	_mm_setcsr(0x1f80);
	return before;
#elif defined(__aarch64__)
	uint64_t before;

	__asm__ volatile("mrs %0, fpcr" : "=r"(before));
	__asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
	return before;
#else
	return 0;
#endif
}

static inline void cua__float_mode_end(uint64_t before)
{
#if defined(__SSE2__)
	_mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
	__asm__ volatile("msr fpcr, %0" ::"r"(before));
#else
	(void)before;
#endif
}

#endif /* CUATOMIC_LIB_FLOAT_MODE_H */
