/* SPDX-License-Identifier: MIT */
/*
 * Declarations that both backends' exact sums share.
 *
 * Windows speed up the addition to the digits of struct cua_exact. A window has a quantum 2^k and a
 * constant M = 1.5 * 2^(k + 52). A double v with |v| <= 2^(k + 51) splits exactly into q = (v + M)
 * - M, a multiple of 2^k, and the rest v - q. The bits of v + M minus the bits of M are the integer
 * q / 2^k. So a window is a sum of 64-bit integers. The rest is added to the next window, whose k
 * is 51 less.
 *
 * An element fits the windows if every v + M has the sign and exponent of M, and the rest after the
 * last window is zero. A backend checks a batch or a tile of elements at once, and keeps its sums
 * only if all elements fit. Otherwise it chooses other windows, or adds single elements to the
 * digits (cpu/cpu_exact.c, exact_kernel.h). A 64-bit window has room for 2^12 additions; the CPU
 * empties it after each batch, and a GPU extends it to 128 bits.
 */
#ifndef CUATOMIC_KERNELS_EXACT_WINDOWS_H
#define CUATOMIC_KERNELS_EXACT_WINDOWS_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A checked call; struct cua_exact is a sum. All pointers are as the backend addresses them.
 */
struct cua__exact {
	enum cua_reduce_op op; /* SUM or DOT */
	enum cua_type type, result_type;
	uint64_t n;
	const uint64_t *count;     /* NULL, or the address of a smaller element count */
	const void *x, *y;         /* y is NULL for SUM */
	void *result;              /* the rounded sum, or NULL */
	struct cua_exact *partial; /* if result is NULL, the sum is added to it */
	uint64_t partials; /* finish: the number of sums at partial, normalized if above 1 */
	int fresh;         /* 1: the partial's old contents are ignored */
	struct cua__exact_state *state;
	uint64_t kept_bytes; /* bytes of an array that a GPU's L2 keeps for the next reader */
};

/*
 * The sum of all blocks of a launch, in the context's control block. It is zero between launches.
 */
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
	/*
	 * *result = partial[0] + partial[1] + ..., rounded once to r->result_type. Reads no other
	 * members.
	 */
	enum cua_status (*finish)(struct cua_context *ctx, const struct cua__exact *r);
};

/*
 * r->result = the sum of r->x, or of the products of r->x and r->y, rounded to r->result_type. The
 * pointers have been checked, and the backend can access them. The function sets the other members.
 * The caller calls it between cua__call_begin and cua__call_end. It needs no workspace and does not
 * wait.
 */
enum cua_status cua__exact_reduce(struct cua_context *ctx, struct cua__exact *r);

/* ---- windows ---- */

#define CUA__WINDOW_STEP 51
/* The least and the greatest k of a first window; all windows are normal numbers. */
#define CUA__WINDOW_LEAST(windows) (-1074 + CUA__WINDOW_STEP * ((windows)-1))
#define CUA__WINDOW_MOST 971
/*
 * The least k for dot products of f64. The rounded product is added to the first two windows, its
 * error to the last two. A product that fits is 0 or at least 2^(k - 51) after rounding. So its
 * error is a multiple of 2^(k - 51 - 105), and does not underflow with this k. If the rounded
 * product is 0 and no factor is 0, the whole product has underflowed.
 */
#define CUA__WINDOW_LEAST_DOT_F64 (-918)
/* Powers of two between the greatest element and the limit of a new window. */
#define CUA__WINDOW_ROOM 3

/* The bits of M for quantum 2^k. */
CUA_FORCE uint64_t cua__window_bits(int k)
{
	return (uint64_t)(k + 52 + 1023) << 52 | (uint64_t)1 << 51;
}

/* k of the first window for elements below 2^(power + 1). */
CUA_FORCE int cua__window_for(int power, int least, int most)
{
	int k = power + 1 + CUA__WINDOW_ROOM - 51;

	return k < least ? least : k > most ? most : k;
}

/* Adds v 2^k to the digits. */
CUA_FORCE void cua__exact_insert_signed(int64_t *digit, int64_t v, int k)
{
	cua__exact_insert(digit, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v,
			  k + CUA__EXACT_POINT);
}

/* Rounds the normalized number in digits lo to hi to `type` and stores it. */
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
