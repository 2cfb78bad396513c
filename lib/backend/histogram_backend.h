/* SPDX-License-Identifier: MIT */
/* The backend interface of histograms. */
#ifndef CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H
#define CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cua__bin_rule { CUA__BIN_BYTE, CUA__BIN_LETTER, CUA__BIN_EVEN, CUA__BIN_EDGES };

/*
 * A checked call, with the user's defaults filled in. Pointers are addresses that the backend can
 * use.
 *
 * An element adds 1 or its weight. An integer weight is sign- or zero-extended to 64 bits. A float
 * weight is converted by cua__histogram_units if its absolute value is at most weight_limit, so NaN
 * is refused.
 */
struct cua__histogram {
	/*
	 * the elements; element i of channel c is value i % width * channels + c of row i / width
	 */
	enum cua_type type; /* U8 for bytes and letters */
	const void *x;
	size_t n;
	unsigned channels, counted;
	size_t width; /* n if the rows have no gaps */
	size_t pitch; /* bytes from row to row; the bytes of a row if the rows have no gaps */
	/* the bins */
	enum cua__bin_rule rule;
	struct cua_histogram_range
		range; /* EVEN: the _u64 form for U64, the _i64 form for the other integers */
	/*
	 * EDGES: bins + 1 keys of cua__histogram_edge_key, 8 bytes each for 64-bit types, else 4.
	 * With edges_on_host they are in host memory, which run itself reads.
	 */
	const void *edges;
	int closed;    /* EDGES: the last edge is in the range; EVEN has this in `range` */
	uint32_t bins; /* of a channel */
	/* the weights */
	enum cua_type weight_type; /* 0: no weights */
	const void *weights;
	double weight_limit, per_unit;
	/* the results */
	enum cua_type count_type; /* U32 or U64 */
	void *counts;             /* counted * bins counts to add to */
	uint64_t *outside;        /* NULL, or counted * CUA_HISTOGRAM_SIDES counts to add to */
	int clear;                /* counts and outside are undefined, and are treated as 0 */
	/*
	 * float weights: counts are U64 in scratch memory, and finish converts them to these sums
	 */
	double *sums;
	double unit;
	int add_sums; /* add to the present sums */

	void *scratch;
	/* set by plan */
	enum cua_histogram_strategy strategy; /* as requested, except that AUTO is replaced */
	/* the first bins, which are counted privately; 0 if the strategy has no private bins */
	uint32_t private_bins;
	unsigned workers; /* CPU */
	size_t scratch_bytes;
	int edges_on_host;
};

struct cua__histogram_ops {
	/*
	 * Decides from all members except the pointers; of these it may only test whether outside
	 * is NULL. n = SIZE_MAX requests the maximum over all n, rules, types and rows.
	 */
	void (*plan)(struct cua_context *ctx, struct cua__histogram *h);
	/* n > 0 */
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__histogram *h);
	/* sums[i] = cua__histogram_sum of counts[i] */
	enum cua_status (*finish)(struct cua_context *ctx, const struct cua__histogram *h);
};

/* Bytes of an edge's key. */
static inline size_t cua__histogram_key_size(enum cua_type type)
{
	return cua_type_size(type) == 8 ? 8 : 4;
}

static inline size_t cua__histogram_count_size(const struct cua__histogram *h)
{
	return h->count_type == CUA_U32 ? 4 : 8;
}

/* Bytes of the histogram's range in the context's control block. */
#define CUA__HISTOGRAM_CONTROL 640
/* The sums: 32-bit numbers at the end of the control block, after the ranges of all modules. */
#define CUA__HISTOGRAM_SUMS_CONTROL 8192
#define CUA__HISTOGRAM_SUMS 8192u

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H */
