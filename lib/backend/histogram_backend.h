/* SPDX-License-Identifier: MIT */
/* What a backend does for histograms. */
#ifndef CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H
#define CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cua__bin_rule { CUA__BIN_BYTE, CUA__BIN_LETTER, CUA__BIN_EVEN, CUA__BIN_EDGES };

/*
 * A checked call. What the user left to a default is filled in. Pointers are addresses of the backend.
 *
 * What is counted is 1, or the weight. Integer weights are added as their bits extended to 64, by their sign if
 * they have one; float weights as cua__histogram_units, if their size is at most weight_limit, which NaN's is not.
 */
struct cua__histogram {
	/* the elements; element i of channel c is value i % width * channels + c of row i / width */
	enum cua_type type; /* U8 for bytes and letters */
	const void *x;
	size_t n;
	unsigned channels, counted;
	size_t width; /* n if the rows have no gaps between them */
	size_t pitch; /* bytes; that of a row's values if the rows have no gaps */
	/* the bins */
	enum cua__bin_rule rule;
	struct cua_histogram_range
		range; /* EVEN; of _u64 for U64, of _i64 for the other integers */
	/* EDGES: bins + 1 keys, 8 bytes each for types of 64 bits and else 4; see cua__histogram_edge_key. On the
	 * host, where run itself reads them, if edges_on_host */
	const void *edges;
	int closed;    /* EDGES; in the range for EVEN */
	uint32_t bins; /* of one channel */
	/* the weights */
	enum cua_type weight_type; /* 0: none */
	const void *weights;
	double weight_limit, per_unit;
	/* the results */
	enum cua_type count_type; /* U32 or U64: of counts */
	void *counts;             /* counted * bins, to be added to */
	uint64_t *outside;        /* NULL, or counted * CUA_HISTOGRAM_SIDES to be added to */
	int clear;                /* counts and outside are undefined, and count as 0 */
	/* float weights: counts are U64 in scratch memory, and finish makes these of them */
	double *sums;
	double unit;
	int add_sums; /* to those that are there */

	void *scratch;
	/* what plan decides */
	enum cua_histogram_strategy strategy; /* as asked for; AUTO is replaced */
	uint32_t private_bins; /* the first of the bins; 0 where the strategy has none */
	unsigned workers;      /* CPU */
	size_t scratch_bytes;
	int edges_on_host;
};

struct cua__histogram_ops {
	/*
	 * From all but the pointers, of which only outside may be asked whether it is NULL.
	 * n = SIZE_MAX asks for the most of all n, rules, types and rows.
	 */
	void (*plan)(struct cua_context *ctx, struct cua__histogram *h);
	/* n > 0 */
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__histogram *h);
	/* sums[i] = cua__histogram_sum of counts[i] */
	enum cua_status (*finish)(struct cua_context *ctx, const struct cua__histogram *h);
};

/* Bytes of a key of an edge. */
static inline size_t cua__histogram_key_size(enum cua_type type)
{
	return cua_type_size(type) == 8 ? 8 : 4;
}

static inline size_t cua__histogram_count_size(const struct cua__histogram *h)
{
	return h->count_type == CUA_U32 ? 4 : 8;
}

/* In the context's control memory. */
#define CUA__HISTOGRAM_CONTROL 640
/* And numbers of 32 bits, behind what all the others have there. */
#define CUA__HISTOGRAM_SUMS_CONTROL 8192
#define CUA__HISTOGRAM_SUMS 8192u

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_HISTOGRAM_BACKEND_H */
