/* SPDX-License-Identifier: MIT */
/*
 * The kernels of histograms, as functions that every thread of a grid calls. cuda/cuda_histogram.cu
 * makes kernels of them; type, rule and layout are constants there.
 *
 * A counter is the count of a bin, or of a side. The CUA_HISTOGRAM_SIDES sides follow the bins.
 * Every element has a counter, so counting needs no branch. A block's private histogram has a
 * layout of this list:
 *
 *  COLUMNS  each lane has a column of counters to itself, so that the lanes of a warp never
 *           conflict in a bank of shared memory, for any data.
 *  WORDS    a counter is a word of shared memory, incremented by 1. The hardware merges the
 *           increments of lanes with the same counter.
 *  HALVES   a word holds 2 counters.
 *  BYTES    a word holds 4 counters. The counters may be split into ranges, each counted by blocks
 *           of its own.
 *  GLOBAL   no private histogram: the blocks increment the counts in global memory.
 *
 * With HALVES and BYTES, the private counter holds the low bits, and the count in global memory
 * holds the rest.
 *
 * The last three layouts would be slow if many lanes have the same counter. So a warp keeps a hot
 * set in registers: 4 adjacent counters that a sampled element belongs to, chosen if enough lanes
 * have elements there. And if all elements of a warp have the same counter, they are added at once.
 *
 * A field of HALVES and BYTES may overflow and carry into the next field. Each addition to a word
 * fetches its old bits and settles its own effect: if a field has not changed by exactly the amount
 * that it should have, the difference goes to the global count. So after each settled addition,
 * field and count together are right, regardless of other additions in flight. At the end of the
 * block, every addition is settled. An addition needs no settling if no top bit is set before or
 * after it. Only the addition that raises a field above its top bit subtracts that bit again. So
 * few additions have to settle anything.
 *
 * Scope: blocks of one device. A block has a multiple of 32 threads. Shared memory is passed as
 *   words.
 * Progress: no block waits for another block.
 * Argument: between two barriers, only atomics change a block's counters. Before the first and
 *   after the second, each counter has a single writer or reader. A block stores its private
 *   histogram in scratch memory, or adds it to sums that all blocks share, by relaxed additions at
 *   device scope. A later launch merges them, or the block that arrives last. Thread 0 of a block
 *   arrives after a barrier, with acquire and release at device scope (cua__finish_arrive of
 *   cuatomic/reduce.h). So the last arrival has acquired all private histograms and additions, and
 *   the next barrier passes them on to its block. No block adds to the sums at that point. So the
 *   last block may reset them to zero by plain stores; the next launch sees them.
 */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_KERNEL_H
#define CUATOMIC_KERNELS_HISTOGRAM_KERNEL_H

#include "kernels/histogram_any.h"
#include "kernels/histogram_finish.h"
#include "kernels/histogram_plan.h"
#include "kernels/histogram_traverse.h"

/*
 * The part of a block's work that accesses no elements, counts or scratch memory. keys: of the
 * edges.
 */
CUA_FORCE void cua__histogram_begin(enum cua_type type, enum cua__histogram_rule rule,
				    enum cua__histogram_layout layout,
				    const struct cua__histogram_job *j, const void *keys,
				    uint32_t *shared, struct cua__histogram_block *block)
{
	struct cua__histogram_own *own = &block->own;
	const uint32_t words = cua__histogram_words(layout, j->range_counters);
	uint32_t w;

	if (rule == CUA__RULE_EDGES) {
		cua__histogram_edges_build(type, j, keys, shared, &block->edges);
		shared += j->edge_words;
	}
	own->words = shared;
	own->lane = cua_port_lane();
	own->first = 0;
	own->counters = j->counters;
	own->hot = CUA__HISTOGRAM_NO_HOT;
	own->hot_n = own->hot_even = own->hot_odd = own->hot_tiles = 0;
	if (cua__histogram_has_hot(layout)) {
		own->first = (uint32_t)cua_port_block() % j->ranges * j->range_counters;
		own->counters = j->counters - own->first < j->range_counters
					? j->counters - own->first
					: j->range_counters;
	}
	for (w = cua_port_thread(); w < words; w += cua_port_block_size())
		CUA_WRITE(own->words[w], 0);
}

/* Counts all elements, and merges the private histograms if the job says so. */
CUA_FORCE void cua__histogram_run(enum cua_type type, enum cua__histogram_rule rule,
				  enum cua__histogram_layout layout,
				  const struct cua__histogram_job *j,
				  struct cua__histogram_block *block)
{
	struct cua__histogram_own *own = &block->own;

	cua__histogram_count_all(type, rule, layout, j, block);
	if (cua__histogram_has_hot(layout)) {
		cua_port_sync_warp(CUA__ALL_LANES);
		cua__histogram_hot_flush(j, own);
	}
	if (layout == CUA__COUNT_GLOBAL)
		return;
	cua_port_sync_block();
	cua__histogram_store_private(layout, j, own->words);
	if (j->finish_here && (layout == CUA__COUNT_COLUMNS || layout == CUA__COUNT_WORDS))
		cua__histogram_finish(type, rule, j, own->words);
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_KERNEL_H */
