/* SPDX-License-Identifier: MIT */
/*
 * The mode of floating-point arithmetic that IEEE 754 has by default: to nearest even, subnormals as they are,
 * no traps. A program may have set another one for its threads; one that is linked with -ffast-math takes
 * subnormals as zeros.
 */
#ifndef CUATOMIC_CPU_FLOAT_MODE_H
#define CUATOMIC_CPU_FLOAT_MODE_H

#include <fenv.h>

/* Sets the mode of this thread; the former one, with its exceptions, comes back at the end. */
static inline void cua__float_mode_begin(fenv_t *before)
{
	fegetenv(before);
	fesetenv(FE_DFL_ENV);
}

static inline void cua__float_mode_end(const fenv_t *before)
{
	fesetenv(before);
}

#endif /* CUATOMIC_CPU_FLOAT_MODE_H */
