/* SPDX-License-Identifier: MIT */
/* The choice of a kernel and its parameters, on the host. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_PLAN_H
#define CUATOMIC_KERNELS_HISTOGRAM_PLAN_H

#include "kernels/histogram_counters.h"
#include "kernels/histogram_edges.h"
#include "kernels/histogram_finish.h"

#ifndef CUA__HISTOGRAM_BLOCK
#define CUA__HISTOGRAM_BLOCK 1024u
#endif
/*
 * Arrays of at most SMALL_BYTES would keep only a few large blocks busy. So, with at most
 * SMALL_COUNTERS counters, their blocks have SMALL_BLOCK threads.
 */
#ifndef CUA__HISTOGRAM_SMALL_BLOCK
#define CUA__HISTOGRAM_SMALL_BLOCK 512u
#endif
#ifndef CUA__HISTOGRAM_SMALL_BYTES
#define CUA__HISTOGRAM_SMALL_BYTES ((uint64_t)4 << 20)
#endif
#define CUA__HISTOGRAM_SMALL_COUNTERS 1024u
/*
 * If the blocks add to sums: 16-byte packs per thread, until each processor has a block; and the
 * maximum number of additions that all blocks together make to the sums.
 */
#define CUA__HISTOGRAM_SMALL_LOADS 2u
#define CUA__HISTOGRAM_MOST_ADDED 300000u
/* Maximum number of counters in COLUMNS: 256 bins and the sides. */
#ifndef CUA__HISTOGRAM_COLUMN_COUNTERS
#define CUA__HISTOGRAM_COLUMN_COUNTERS 260u
#endif
/*
 * Maximum number of ranges; the blocks of each range read all elements. With more ranges, misses of
 * a cache take less time. With fewer than RANGE_READS elements for each counter, merging the
 * private histograms takes longer than misses.
 */
#define CUA__HISTOGRAM_RANGES 6u
#ifndef CUA__HISTOGRAM_RANGE_READS
#define CUA__HISTOGRAM_RANGE_READS 8u
#endif
/* Maximum number of words of all private histograms that a single block merges. */
#define CUA__HISTOGRAM_MERGED_HERE 40000u
/* Maximum size of the edges in bytes, their number rounded up to a power of two. */
#define CUA__HISTOGRAM_EDGES ((size_t)32 << 10)
/* Cells of the guide; fewer if building it would take too long. */
#define CUA__HISTOGRAM_CELLS 16384u
#define CUA__HISTOGRAM_FEW_CELLS 1024u
/* A 32-bit counter of a block can count more elements than this. */
#define CUA__HISTOGRAM_MOST_A_BLOCK ((uint64_t)1 << 31)

struct cua__histogram_plan {
	struct cua__histogram_job job;
	enum cua__histogram_rule rule;
	enum cua__histogram_layout layout;
	uint32_t block; /* threads per block */
	int sums;       /* job.sums must be private_words zeros */
	int sampled;    /* job.cached must be a word; a kernel with CACHE runs first */
	size_t shared;  /* bytes of shared memory of a block */
};

/* Whether EVEN_FAST is valid for a range. Sets the job's members for it. */
static inline int cua__histogram_fast_range(enum cua_type type, const struct cua_histogram_range *r,
					    struct cua__histogram_job *job)
{
	int64_t least, most;
	int i;

	if (r->is_float) {
		/* the least and the greatest float in the range, from their keys */
		for (i = 0; i < 2; i++) {
			uint32_t key32 = i ? r->first_f32 + r->span_f32 - 1 : r->first_f32;
			uint64_t key64 = i ? r->first_f64 + r->span_f64 - 1 : r->first_f64;

			*(i ? &job->most_f32 : &job->least_f32) =
				cua__from_bits_f32(cua__bits_of_ordered_f32(key32));
			*(i ? &job->most_f64 : &job->least_f64) =
				cua__from_bits_f64(cua__bits_of_ordered_f64(key64));
		}
		return r->factor == 1;
	}
	switch (type) {
	case CUA_I16:
	case CUA_I32:
		least = INT32_MIN;
		most = INT32_MAX;
		break;
	case CUA_U16:
	case CUA_U32:
		least = 0;
		most = UINT32_MAX;
		break;
	default: return 0;
	}
	if (r->width > (uint64_t)1 << 32 || (int64_t)r->lower < least || (int64_t)r->lower > most)
		return 0;
	job->lower = (uint32_t)r->lower;
	job->whole_bins = r->part == 0 && r->last < r->width;
	/* bounded by the greatest value of the type */
	job->last = (uint32_t)(r->last < (uint64_t)most - r->lower ? r->last
								   : (uint64_t)most - r->lower);
	return 1;
}

/* The kernels that are compiled. */
static inline int cua__histogram_has_kernel(enum cua_type type, enum cua__histogram_rule rule,
					    enum cua__histogram_layout layout)
{
	if (layout <= CUA__COUNT_WORDS)
		return 1;
	if (rule == CUA__RULE_EDGES || cua__element_size(type) == 2)
		return 0;
	return layout != CUA__COUNT_BYTES || cua__element_size(type) == 4;
}

/* Chooses rule, layout and counters. Returns 0 if only the general kernel fits. */
static inline int cua__histogram_choose(const struct cua__histogram *h, uint32_t processors,
					size_t shared_bytes, struct cua__histogram_plan *p)
{
	struct cua__histogram_job *job = &p->job;
	const size_t size = cua__element_size(h->type),
		     key_size = cua__histogram_key_bytes(h->type);
	uint64_t words = shared_bytes / 4, counters = (uint64_t)h->bins + CUA_HISTOGRAM_SIDES;

	if (h->strategy != CUA_HISTOGRAM_AUTO || h->channels > 1 || h->width != h->n ||
	    h->weight_type || h->n / processors >= CUA__HISTOGRAM_MOST_A_BLOCK)
		return 0;
	job->ranges = 1;
	job->last_bin = h->bins - 1;
	p->layout = CUA__COUNT_COLUMNS;
	if (size == 1) {
		p->rule = CUA__RULE_VALUE;
		counters = CUA__HISTOGRAM_BYTES;
	} else if (h->rule == CUA__BIN_EVEN) {
		p->rule = CUA__RULE_EVEN_FAST;
		if (h->type == CUA_I64 || h->type == CUA_U64)
			p->rule = CUA__RULE_EVEN;
		else if (!cua__histogram_fast_range(h->type, &h->range, job))
			return 0;
	} else {
		p->rule = CUA__RULE_EDGES;
		for (job->levels = 1; (uint64_t)1 << job->levels < h->bins; job->levels++)
			;
		if (((size_t)1 << job->levels) * key_size > CUA__HISTOGRAM_EDGES)
			return 0;
		job->cells = h->n * size <= CUA__HISTOGRAM_SMALL_BYTES ? CUA__HISTOGRAM_FEW_CELLS
								       : CUA__HISTOGRAM_CELLS;
		for (;; job->cells /= 2) {
			job->edge_words = (uint32_t)(((size_t)h->bins + 1) * key_size / 4);
			/*
			 * 64-bit alignment: counters after them have 32 bits, but are merged in 64
			 */
			job->edge_words = (job->edge_words + 1) / 2 * 2 + job->cells / 2;
			if (job->edge_words <= words / 4 ||
			    job->cells <= CUA__HISTOGRAM_LEAST_CELLS)
				break;
		}
		if (job->edge_words >= words)
			return 0;
		words -= job->edge_words;
	}
	/* so few elements do not pay for clearing the counters */
	if (h->n < counters / 4 && size > 1)
		return 0;
	if (counters > CUA__HISTOGRAM_COLUMN_COUNTERS)
		p->layout = counters <= words       ? CUA__COUNT_WORDS
			    : counters <= words * 2 ? CUA__COUNT_HALVES
						    : CUA__COUNT_BYTES;
	if (p->layout == CUA__COUNT_BYTES) {
		/* ranges consist of whole words */
		const uint64_t ranges = (counters + words * 4 - 1) / (words * 4);

		if (ranges > CUA__HISTOGRAM_RANGES || ranges > processors || size == 8 ||
		    (ranges > 1 && h->n / CUA__HISTOGRAM_RANGE_READS < counters))
			p->layout = CUA__COUNT_CACHE;
		else
			job->ranges = (uint32_t)ranges;
	}
	job->slots = 2;
	for (job->slot_shift = 31; 4 * (uint64_t)job->slots + 1 <= words; job->slot_shift--)
		job->slots *= 2;
	p->sampled = job->ranges > 1;
	job->counters = (uint32_t)counters;
	job->range_counters = (uint32_t)((counters + job->ranges - 1) / job->ranges);
	if (job->ranges > 1)
		job->range_counters = (job->range_counters + 3) / 4 * 4;
	return cua__histogram_has_kernel(h->type, p->rule, p->layout);
}

/* Chooses the whole plan for an array of h->n elements. Returns 0 as cua__histogram_choose does. */
static inline int cua__histogram_plan(const struct cua__histogram *h, uint32_t processors,
				      size_t shared_bytes, struct cua__histogram_plan *p)
{
	struct cua__histogram_job *job = &p->job;
	const uint64_t bytes = h->n * cua__element_size(h->type);
	const int is_small = bytes <= CUA__HISTOGRAM_SMALL_BYTES;
	uint64_t blocks;
	size_t words, merging;

	memset(p, 0, sizeof(*p));
	if (cua__is_signed(h->type) && h->type != CUA_I64)
		job->bias = 0x80000000u;
	if (!cua__histogram_choose(h, processors, shared_bytes, p))
		return 0;
	p->block = is_small && job->counters <= CUA__HISTOGRAM_SMALL_COUNTERS
			   ? CUA__HISTOGRAM_SMALL_BLOCK
			   : CUA__HISTOGRAM_BLOCK;
	p->sums = is_small && p->layout <= CUA__COUNT_WORDS && job->counters <= CUA__HISTOGRAM_SUMS;
	blocks = bytes /
		 (p->block * 16 * (p->sums ? CUA__HISTOGRAM_SMALL_LOADS : CUA__HISTOGRAM_LOADS));
	if (blocks > processors)
		blocks = processors;
	if (p->sums && blocks > CUA__HISTOGRAM_MOST_ADDED / job->counters)
		blocks = CUA__HISTOGRAM_MOST_ADDED / job->counters;
	blocks = blocks / job->ranges * job->ranges;
	job->blocks = blocks ? (uint32_t)blocks : job->ranges;
	words = cua__histogram_words(p->layout, job);
	job->private_words = p->layout == CUA__COUNT_COLUMNS ? job->counters
			     : p->layout == CUA__COUNT_CACHE ? 0
							     : (uint32_t)words;
	merging = p->sums ? 2 * CUA__HISTOGRAM_BYTES
			  : cua__histogram_finish_words(p->block, job->private_words);
	merging = merging > words ? merging : words;
	job->finish_here =
		p->sums ||
		(p->layout <= CUA__COUNT_WORDS && (merging + job->edge_words) * 4 <= shared_bytes &&
		 (p->rule == CUA__RULE_VALUE ||
		  (uint64_t)job->private_words * job->blocks <= CUA__HISTOGRAM_MERGED_HERE));
	p->shared = ((job->finish_here ? merging : words) + job->edge_words) * 4;
	return 1;
}

/* Bytes of scratch memory: the private histograms, and the word of job.cached. */
static inline size_t cua__histogram_scratch(const struct cua__histogram_plan *p)
{
	if (p->sums)
		return 0;
	return ((size_t)p->job.private_words * p->job.blocks + (size_t)p->sampled) * 4;
}

/* Number of blocks of cua__histogram_merge. */
static inline uint32_t cua__histogram_merges(const struct cua__histogram_job *job)
{
	return (job->private_words + 31) / 32 * job->ranges;
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_PLAN_H */
