/* SPDX-License-Identifier: MIT */
/* What a backend does for the filter, and the comparison as both of them make it. */
#ifndef CUATOMIC_BACKEND_FILTER_BACKEND_H
#define CUATOMIC_BACKEND_FILTER_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an element is looked at. */
enum cua__filter_key {
	CUA__FILTER_FLAG,    /* not at all: its flag decides */
	CUA__FILTER_INTEGER, /* its bits, as an integer */
	CUA__FILTER_FLOAT,   /* sign and magnitude become an integer in the same order */
	CUA__FILTER_CHANGE /* kept where its bits differ from those before it: it begins a run of equal ones */
};

/* Tiles of a short array, at most. */
#define CUA__FILTER_SHORT 128

/* Tickets and sums of a kernel; zeros between calls, but for those of the short arrays in order. */
struct cua__filter_state {
	uint64_t ticket;
	uint64_t pad_1[7];
	uint64_t kept, rest; /* without order: places given out so far */
	uint64_t arrived;
	uint64_t pad_2[5];
	uint64_t short_ticket;
	uint64_t short_kept;
	uint64_t pad_3[6];
	uint64_t short_tiles[CUA__FILTER_SHORT]; /* their words */
};

/*
 * A checked call, with everything as the backend addresses it.
 *
 * An element is kept where its key is one of `range` + 1 consecutive ones from `low` on, modulo 2 to its bits,
 * or with `inverted` where it is none of them: every comparison with a value is one of these.
 *
 * Runs of equal elements are of 4 or 8 bytes, in order, and have indexes of 8 bytes. There is room for one index more
 * than for values: behind the beginning of the last run that has a place stands where it ends.
 */
struct cua__filter {
	enum cua__filter_key key;
	uint32_t size; /* of an element: 1, 2, 4, 8 or 16 bytes */
	uint64_t n;    /* not 0 */
	const void *x; /* NULL: neither compared nor stored */
	const uint8_t *flags;
	uint64_t low, range;
	int inverted;
	int ordered;
	int partition; /* what is not kept goes behind what is; capacity is n */
	int in_place;  /* values is x: ordered, and without partition */
	uint64_t capacity;
	void *values;        /* NULL: not stored */
	void *indexes;       /* NULL: not stored */
	uint32_t index_size; /* 4 or 8 */
	uint64_t *demand; /* the cursor of a buffer, behind whose items the kept ones go; or NULL */
	uint64_t *count;  /* without demand: becomes the number of elements kept */
	uint64_t *count_too; /* of runs: the same, in another place */
	/* set by the CUDA backend */
	const uint64_t *
		all_kept; /* ordered partition: how many are kept, which another pass has counted */
	struct cua__filter_state *state;
	uint64_t *tiles; /* ordered: a word of zeros for each tile, or those of a short array */
};

struct cua__filter_ops {
	/* bytes of scratch memory */
	size_t (*scratch)(struct cua_context *ctx, const struct cua__filter *f);
	enum cua_status (*filter)(struct cua_context *ctx, const struct cua__filter *f,
				  void *scratch);
};

/* In the context's control memory. */
#define CUA__FILTER_CONTROL 4096

/* Where a key is 32 bits or less; the others of the 32 are 0. */
CUA_FORCE uint32_t cua__filter_key32(enum cua__filter_key key, uint32_t size, uint32_t bits)
{
	const uint32_t sign = (uint32_t)1 << (size * 8 - 1);

	if (key == CUA__FILTER_FLOAT && size == 4)
		return bits ^ ((uint32_t)((int32_t)bits >> 31) & (sign - 1));
	if (key == CUA__FILTER_FLOAT)
		return bits & sign ? bits ^ (sign - 1) : bits;
	return bits;
}

CUA_FORCE uint64_t cua__filter_key64(enum cua__filter_key key, uint64_t bits)
{
	if (key == CUA__FILTER_FLOAT)
		return bits ^ ((uint64_t)((int64_t)bits >> 63) & (UINT64_MAX >> 1));
	return bits;
}

/* Whether a key is in the range, for 0 the inverted ones too. */
CUA_FORCE int cua__filter_in32(uint32_t size, uint32_t key, uint32_t low, uint32_t range)
{
	const uint32_t mask = size == 4 ? UINT32_MAX : ((uint32_t)1 << (size * 8 % 32)) - 1;

	return ((key - low) & mask) <= range;
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_FILTER_BACKEND_H */
