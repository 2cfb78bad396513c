/* SPDX-License-Identifier: MIT */
/*
 * The default floating-point environment of IEEE 754: rounding to nearest even, gradual underflow,
 * no traps. A program may set another environment for its threads. A program linked with
 * -ffast-math treats subnormals as zeros.
 */
#ifndef CUATOMIC_CPU_FLOAT_MODE_H
#define CUATOMIC_CPU_FLOAT_MODE_H

#include <fenv.h>

/*
 * Sets this thread's environment to the default and saves the caller's. cua__float_mode_end
 * restores it, with its exception flags.
 */
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
