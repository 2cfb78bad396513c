/* SPDX-License-Identifier: MIT */
/* Rounds a number of MPFR to a format. The including file defines TEST_MPFR to 1. */
#ifndef CUATOMIC_TESTS_MPFR_ROUND_H
#define CUATOMIC_TESTS_MPFR_ROUND_H

#include <mpfr.h>

#include "exact_model.h"

/* A number that is neither 0 nor NaN, rounded to nearest even, with subnormals and infinities. */
static inline double mpfr_rounded(const struct format *f, mpfr_t v)
{
	const mpfr_exp_t least = mpfr_get_emin(), most = mpfr_get_emax();
	const int bias = (1 << (f->exponent - 1)) - 1;
	double rounded;
	mpfr_t r;
	int how;

	mpfr_init2(r, f->fraction + 1);
	how = mpfr_set(r, v, MPFR_RNDN);
	mpfr_set_emin(2 - bias - f->fraction);
	mpfr_set_emax(bias + 1);
	how = mpfr_check_range(r, how, MPFR_RNDN);
	(void)mpfr_subnormalize(r, how, MPFR_RNDN);
	mpfr_set_emin(least);
	mpfr_set_emax(most);
	rounded = mpfr_get_d(r, MPFR_RNDN);
	mpfr_clear(r);
	return rounded;
}

#endif /* CUATOMIC_TESTS_MPFR_ROUND_H */
