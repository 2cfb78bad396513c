/* SPDX-License-Identifier: MIT */
/* What a backend does for histograms. */
#ifndef CUATOMIC_LIB_HISTOGRAM_H
#define CUATOMIC_LIB_HISTOGRAM_H

#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cua__bin_rule { CUA__BIN_BYTE, CUA__BIN_LETTER, CUA__BIN_EVEN };

struct cua__histogram {
	enum cua__bin_rule rule;
	enum cua_type type; /* U8 for bytes and letters */
	struct cua_histogram_range range;
	size_t n;
	const void *x;
	uint64_t *counts; /* to be added to */
	void *scratch;
	uint32_t bins;
	/* what plan decides */
	enum cua_histogram_strategy strategy; /* as asked for; AUTO is replaced */
	uint32_t private_bins; /* the first of the bins; 0 where the strategy has none */
	unsigned workers;      /* CPU */
	size_t scratch_bytes;
};

struct cua__histogram_ops {
	/* From rule, n, bins and the strategy asked for; n = SIZE_MAX asks for the most of all n. */
	void (*plan)(struct cua_context *ctx, struct cua__histogram *h);
	/* n > 0 */
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__histogram *h);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_LIB_HISTOGRAM_H */
