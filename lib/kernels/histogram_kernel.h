/* SPDX-License-Identifier: MIT */
/*
 * The kernels of histograms, as functions that every thread of a grid calls. cuda/cuda_histogram.cu
 * makes kernels of them; type, rule and layout are constants there.
 *
 * A counter is the count of a bin, or of a side (enum cua_histogram_side: the reasons why an
 * element is in no bin). The CUA_HISTOGRAM_SIDES sides follow the bins. So every element has a
 * counter, and counting needs no branch. A block's private histogram has a layout of this list,
 * which is in the order of the number of counters (histogram_plan.h chooses):
 *
 *  COLUMNS  32 columns of counters, a column for each lane number. So the lanes of a warp never conflict
 *           in a bank of shared memory, for any data. The warps of the block share the columns, by
 *           atomics.
 *  WORDS    a counter is a word of shared memory, incremented by 1. The hardware merges the
 *           increments of lanes with the same counter.
 *  HALVES   a word holds 2 counters.
 *  BYTES    a word holds 4 counters. The counters may be split into ranges, each counted by blocks
 *           of its own.
 *  CACHE    no private histogram: a block caches frequent counters (histogram_cache.h).
 *
 * With HALVES and BYTES, the private counter holds the low bits, and the count in global memory
 * holds the rest.
 *
 * HALVES and BYTES would be slow if many lanes had the same counter. So a warp keeps a hot set in
 * registers: 4 adjacent counters, those of a sampled element, chosen if enough lanes have elements
 * there. And if all elements of a warp have the same counter, they are added at once, also with
 * CACHE.
 *
 * Several ranges read all elements several times, and are slow if a few counters of one range are
 * frequent. CACHE is slow if elements hardly repeat. So with several ranges, a kernel with CACHE
 * runs first. It examines a sample, and counts the elements unless they hardly repeat. All blocks
 * decide alike, because the sample is the same; block 0 stores the decision for the next kernels.
 * If the cache has counted the elements, the kernel with ranges and the merging kernel do nothing.
 *
 * A field of HALVES and BYTES may overflow and carry into the next field of its word. The invariant
 * for each counter: the block's field, plus what the block has added to the global count, is the
 * number that the block has counted.
 * - Each addition fetches the old bits of its word, so it knows by how much it changed each field.
 *   Its own field should change by the amount that it added, all higher fields by 0. A
 *   difference is due to an overflow; it is added to the global counts of these fields: the
 *   addition settles. This restores the invariant for its own effect, regardless of other additions
 *   in flight.
 * - An addition of at most 128 cannot overflow a field without a set top bit. So it settles only if
 *   the top bit of some field is set before or after it.
 * - To keep that rare, the addition that raises a field above its top bit (2^15 or 2^7)
 *   subtracts the top bit again, and settles this subtraction too: the global count receives the
 *   top bit.
 * At the end of the block all additions have settled, so the invariant gives the exact counts.
 *
 * Scope: blocks of a device. A block has a multiple of 32 threads. Shared memory is passed as
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
	const uint32_t words = cua__histogram_words(layout, j);
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
	own->hot_n = own->hot_even = own->hot_odd = own->tiles = own->misses = 0;
	own->period = CUA__HISTOGRAM_CACHE_SHORT;
	own->tags = shared + j->slots;
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

	if (j->cached && layout == CUA__COUNT_CACHE) {
		const int repeats = cua__histogram_repeats(type, rule, j, block);

		if (cua_port_block() == 0 && cua_port_thread() == 0)
			CUA_WRITE(*j->cached, (uint32_t)repeats);
		if (!repeats)
			return;
	}
	if (j->cached && layout == CUA__COUNT_BYTES && CUA_READ(*j->cached))
		return;
	cua__histogram_count_all(type, rule, layout, j, block);
	if (cua__histogram_has_hot(layout)) {
		cua_port_sync_warp(CUA__ALL_LANES);
		cua__histogram_hot_flush(j, own);
	}
	cua_port_sync_block();
	if (layout == CUA__COUNT_CACHE) {
		cua__histogram_cache_flush(j, own);
		return;
	}
	cua__histogram_store_private(layout, j, own->words);
	if (j->finish_here && (layout == CUA__COUNT_COLUMNS || layout == CUA__COUNT_WORDS))
		cua__histogram_finish(type, rule, j, own->words);
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_KERNEL_H */
