/* SPDX-License-Identifier: MIT */
/* The backend's functions for histograms. */
#ifndef CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H
#define CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cua__bin_rule { CUA__BIN_BYTE, CUA__BIN_LETTER, CUA__BIN_EVEN, CUA__BIN_EDGES };

/*
 * A checked call, with defaults filled in. Pointers are addresses in the backend's address space.
 *
 * An element adds 1 to its count, or its weight. Integer weights are extended to 64 bits, signed
 * types with their sign. Float weights are converted to cua__histogram_units. A float weight is
 * refused if it is NaN or its magnitude exceeds weight_limit.
 */
struct cua__histogram {
	/*
	 * The elements. Element i of channel c is value i % width * channels + c of row i / width.
	 */
	enum cua_type type; /* U8 for bytes and letters */
	const void *x;
	size_t n;
	unsigned channels, counted;
	size_t width; /* n if the rows have no gaps */
	/* bytes between the starts of rows; the size of a row if the rows have no gaps */
	size_t pitch;
	/* the bins */
	enum cua__bin_rule rule;
	/* of EVEN: made by the _u64 function for U64, by the _i64 function for other integers */
	struct cua_histogram_range range;
	/*
	 * Of EDGES: bins + 1 keys, see cua__histogram_edge_key; 8 bytes each for 64-bit types,
	 * otherwise 4. If edges_on_host, they are in host memory and run reads them there.
	 */
	const void *edges;
	int closed;    /* of EDGES; EVEN has it in `range` */
	uint32_t bins; /* per channel */
	/* the weights */
	enum cua_type weight_type; /* 0: none */
	const void *weights;
	double weight_limit, per_unit;
	/* the results */
	enum cua_type count_type; /* U32 or U64: of counts */
	void *counts;             /* counted * bins counts, to be added to */
	/* NULL, or counted * CUA_HISTOGRAM_SIDES counts, to be added to */
	uint64_t *outside;
	int clear; /* counts and outside are undefined and must be taken as 0 */
	/*
	 * float weights: counts are U64 in scratch memory, and finish converts them to these sums
	 */
	double *sums;
	double unit;
	int add_sums; /* add to the present sums */

	void *scratch;
	/* set by plan */
	enum cua_histogram_strategy strategy; /* the user's choice, with AUTO replaced */
	/* number of bins that are private, from bin 0; 0 if the strategy has none */
	uint32_t private_bins;
	unsigned workers; /* CPU */
	size_t scratch_bytes;
	int edges_on_host;
};

struct cua__histogram_ops {
	/*
	 * Uses everything but the pointers' targets; of the pointers, only whether outside is NULL.
	 * With n = SIZE_MAX, plan returns the maximum over all n, rules, types and rows.
	 */
	void (*plan)(struct cua_context *ctx, struct cua__histogram *h);
	/* n > 0 */
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__histogram *h);
	/* sums[i] = cua__histogram_sum of counts[i] */
	enum cua_status (*finish)(struct cua_context *ctx, const struct cua__histogram *h);
};

/* Size of an edge's key in bytes. */
static inline size_t cua__histogram_key_size(enum cua_type type)
{
	return cua_type_size(type) == 8 ? 8 : 4;
}

static inline size_t cua__histogram_count_size(const struct cua__histogram *h)
{
	return h->count_type == CUA_U32 ? 4 : 8;
}

/* Offset in the context's control block. */
#define CUA__HISTOGRAM_CONTROL 640
/* Offset and number of 32-bit sums in the control block, after all other modules. */
#define CUA__HISTOGRAM_SUMS_CONTROL 8192
#define CUA__HISTOGRAM_SUMS 8192u

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H */
