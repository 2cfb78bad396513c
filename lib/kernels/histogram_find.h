/* SPDX-License-Identifier: MIT */
/* The counter of an element, by any rule. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_FIND_H
#define CUATOMIC_KERNELS_HISTOGRAM_FIND_H

#include "kernels/histogram_edges.h"
#include "kernels/histogram_even.h"

/* The counters of n elements, n <= 16. */
CUA_FORCE void cua__histogram_find_counters(enum cua_type type, enum cua__histogram_rule rule,
					    const struct cua__histogram_job *j,
					    const struct cua__histogram_edges *edges, uint32_t n,
					    const uint64_t *raw, uint32_t *counter)
{
	uint32_t k;

	if (rule == CUA__RULE_EDGES) {
		cua__histogram_counters_guided(type, j, edges, n, raw, counter);
		return;
	}
	if (rule == CUA__RULE_EVEN_FAST) {
		cua__histogram_counters_even_fast(type, j->whole_bins != 0, j, n, raw, counter);
		return;
	}
	CUA__UNROLL
	for (k = 0; k < n; k++)
		counter[k] = rule == CUA__RULE_VALUE ? (uint32_t)raw[k]
						     : cua__histogram_counter_even(type, j, raw[k]);
}

/* The counter of an element by the histogram's rule, not a constant here. */
CUA_FORCE uint32_t cua__histogram_counter_any(enum cua_type type,
					      const struct cua__histogram_job *j, uint64_t raw)
{
	if (j->h.rule == CUA__BIN_EVEN)
		return cua__histogram_counter_even(type, j, raw);
	if (j->h.rule == CUA__BIN_EDGES)
		return cua__histogram_counter_edges(type, j, raw);
	if (j->h.rule == CUA__BIN_LETTER) {
		uint32_t bin = cua_histogram_letter_bin((uint32_t)raw);

		return bin != CUA_HISTOGRAM_NO_BIN
			       ? bin
			       : j->h.bins + cua_histogram_letter_side((uint32_t)raw);
	}
	return (uint32_t)raw;
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_FIND_H */
