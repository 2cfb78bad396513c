/* SPDX-License-Identifier: MIT */
/*
 * What both backends' exact reductions share.
 *
 * In front of the digits of struct cua_exact stand windows: with M = 1.5 * 2^(k + 52), a double v of a size of
 * at most 2^(k + 51) has the exact parts q = (v + M) - M, a multiple of 2^k, and v - q. The bits of v + M
 * less those of M are the integer q / 2^k, so that a window is a 64-bit sum of integers. The next window, 51
 * places below, takes v - q. An element is in the windows if the sign and the exponent of every v + M are
 * those of M and what the last window leaves is zero; all others go to the digits one by one.
 */
#ifndef CUATOMIC_KERNELS_EXACT_WINDOWS_H
#define CUATOMIC_KERNELS_EXACT_WINDOWS_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checked call, with everything as the backend addresses it. */
struct cua__exact {
	enum cua_reduce_op op; /* SUM or DOT */
	enum cua_type type, result_type;
	uint64_t n;
	const uint64_t *
		count; /* NULL, or where the backend finds a number of elements: the lesser counts */
	const void *x, *y;         /* y is NULL for SUM */
	void *result;              /* the rounded sum; or, if this is NULL, */
	struct cua_exact *partial; /* what the sum is added to */
	int fresh;                 /* the partial's contents do not count */
	struct cua__exact_state *state;
	uint64_t kept_bytes; /* of an array, that a GPU's L2 keeps for the next reader */
};

/* The sum of all blocks of a launch, in the context's control memory; zeros before and after. */
struct cua__exact_state {
	struct cua_finish finish;
	uint32_t flags;
	uint32_t reserved[15];
	int64_t digit[CUA_EXACT_DIGITS];
};

#define CUA__EXACT_CONTROL 1024
CUA_STATIC_ASSERT(CUA__EXACT_CONTROL + sizeof(struct cua__exact_state) <= CUA__CONTROL_BYTES,
		  "the control memory");

struct cua__exact_ops {
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__exact *r);
	/* *result = *partial, rounded to r->result_type; other fields are not read. */
	enum cua_status (*finish)(struct cua_context *ctx, const struct cua__exact *r);
};

/*
 * *result = the sum of x, or of the products of x and y, rounded to result_type. All pointers are memory that
 * the backend can access, and have been checked; between cua__call_begin and cua__call_end. Takes no
 * workspace and waits for nothing.
 */
enum cua_status cua__exact_reduce(struct cua_context *ctx, enum cua_reduce_op op,
				  enum cua_type type, enum cua_type result_type, uint64_t n,
				  const uint64_t *count, const void *x, const void *y,
				  void *result);

/* ---- windows ---- */

#define CUA__WINDOW_STEP 51
/* The least and the greatest k of a first window, where all windows are normal numbers. */
#define CUA__WINDOW_LEAST(windows) (-1074 + CUA__WINDOW_STEP * ((windows)-1))
#define CUA__WINDOW_MOST 971
/*
 * The least of a dot product of f64, of which x y rounded is in the first two windows, and the error of that
 * in the last two. x y rounded is 0 or not less than 2^(k - 51) then, so with this k its error, a multiple of
 * 2^(k - 51 - 105), has not underflowed. If it is 0 and no factor is, all of the product has.
 */
#define CUA__WINDOW_LEAST_DOT_F64 (-918)
/* Powers of two between the greatest element and the limit of a new window. */
#define CUA__WINDOW_ROOM 3

/* M of the window of quantum 2^k, as bits. */
CUA_FORCE uint64_t cua__window_bits(int k)
{
	return (uint64_t)(k + 52 + 1023) << 52 | (uint64_t)1 << 51;
}

/* The first window for elements below 2^(power + 1). */
CUA_FORCE int cua__window_for(int power, int least, int most)
{
	int k = power + 1 + CUA__WINDOW_ROOM - 51;

	return k < least ? least : k > most ? most : k;
}

/* Adds v 2^k to digits. */
CUA_FORCE void cua__exact_insert_signed(int64_t *digit, int64_t v, int k)
{
	cua__exact_insert(digit, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v,
			  k + CUA__EXACT_POINT);
}

/* The number in digits lo to hi, normalized, to *result in its type. */
CUA_FN void cua__exact_store(const int64_t *digit, int lo, int hi, uint32_t flags,
			     enum cua_type type, void *result)
{
	if (type == CUA_F64)
		CUA_WRITE(*(cua__raw64 *)result,
			  cua__exact_round(digit, lo, hi, flags, CUA__EXACT_FRACTION_f64,
					   CUA__EXACT_EXPONENT_f64));
	else if (type == CUA_F32)
		CUA_WRITE(*(cua__raw32 *)result,
			  (uint32_t)cua__exact_round(digit, lo, hi, flags, CUA__EXACT_FRACTION_f32,
						     CUA__EXACT_EXPONENT_f32));
	else if (type == CUA_F16)
		CUA_WRITE(*(cua__raw16 *)result,
			  (uint16_t)cua__exact_round(digit, lo, hi, flags, CUA__EXACT_FRACTION_f16,
						     CUA__EXACT_EXPONENT_f16));
	else
		CUA_WRITE(*(cua__raw16 *)result,
			  (uint16_t)cua__exact_round(digit, lo, hi, flags, CUA__EXACT_FRACTION_bf16,
						     CUA__EXACT_EXPONENT_bf16));
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_KERNELS_EXACT_WINDOWS_H */
