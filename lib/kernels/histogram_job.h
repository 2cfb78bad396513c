/* SPDX-License-Identifier: MIT */
/* The argument of the kernels of histograms, their layouts and rules, and the stores of counts. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_JOB_H
#define CUATOMIC_KERNELS_HISTOGRAM_JOB_H

#include "backend/histogram_backend.h"

/* 16-byte packs that a thread has in flight. */
#ifndef CUA__HISTOGRAM_LOADS
#define CUA__HISTOGRAM_LOADS 4u
#endif
#ifdef __CUDA_ARCH__
#define CUA__NO_UNROLL _Pragma("unroll 1")
#else
#define CUA__NO_UNROLL
#endif
#ifndef CUA__HISTOGRAM_BYTES
#define CUA__HISTOGRAM_BYTES 256u /* counters if elements of 8 bits are counted by value */
#endif

enum cua__histogram_layout {
	CUA__COUNT_COLUMNS,
	CUA__COUNT_WORDS,
	CUA__COUNT_HALVES,
	CUA__COUNT_BYTES,
	CUA__COUNT_CACHE
};

/* How the counter of an element is found. */
enum cua__histogram_rule {
	CUA__RULE_VALUE, /* elements of 8 bits: the value is the counter */
	/* integers of at most 32 bits, range within the type; floats without a factor */
	CUA__RULE_EVEN_FAST,
	CUA__RULE_EVEN, /* even bins of any type and range */
	CUA__RULE_EDGES /* edges, with a guide in shared memory */
};

/* The kernels' argument. */
struct cua__histogram_job {
	struct cua__histogram h;
	/*
	 * The top bit for signed integers of at most 32 bits, else 0. With it, some kernels for
	 * unsigned integers also serve signed integers.
	 */
	uint32_t bias;
	/* EVEN_FAST */
	uint32_t lower, last;
	int whole_bins; /* each integer has range.whole bins, and no bin lies above them */
	uint32_t last_bin;
	float least_f32, most_f32;
	double least_f64, most_f64;
	uint32_t levels;     /* log2 of a power of two that is not less than the number of edges */
	uint32_t cells;      /* of the guide to the edges */
	uint32_t edge_words; /* of edges and guide in shared memory */
	/* the counters */
	uint32_t counters;       /* bins and sides */
	uint32_t ranges;         /* blocks b with b % ranges == r count range r */
	uint32_t range_counters; /* of each range; the last range may have fewer */
	uint32_t slots;          /* of CACHE: a power of two */
	uint32_t slot_shift;     /* bits of a hash that a slot's number leaves */
	uint32_t private_words;  /* of a block's private histogram in scratch memory */
	uint32_t blocks;
	int finish_here; /* the last block merges the private histograms */
	struct cua_finish *finish;
	uint32_t *privates;
	/* NULL, or zeros that the blocks add their counters to instead of storing them */
	uint32_t *sums;
	/*
	 * NULL, or whether a kernel with CACHE has counted all elements. It decides this by a sample.
	 * If not, a kernel with several ranges counts them.
	 */
	uint32_t *cached;
};

/* The counters that a lane's additions change: the block's words, and the hot set of its warp. */
struct cua__histogram_own {
	uint32_t *words; /* of the block */
	uint32_t lane;
	/* the range of counters that this block counts */
	uint32_t first, counters;
	/*
	 * Of the warp: the hot set is counters 4 * hot to 4 * hot + 3, relative to `first`. hot_n
	 * has this lane's number of elements of each, in fields of 8 bits. Older numbers are in
	 * fields of 16 bits: counters 0 and 2 in hot_even, 1 and 3 in hot_odd.
	 */
	uint32_t hot, hot_n, hot_even, hot_odd;
	/* HALVES, BYTES: tiles since the last flush; CACHE: since misses was 0 */
	uint32_t tiles;
	/* CACHE: the tags of the block, the lane's misses, and the tiles until they are examined */
	uint32_t *tags;
	uint32_t misses, period;
};

/* ---- results ---- */

CUA_FORCE void cua__histogram_add_counts(const struct cua__histogram *h, uint64_t i, uint64_t n)
{
	if (h->count_type == CUA_U32)
		cua_port_add_u32(&((uint32_t *)h->counts)[i], (uint32_t)n, CUA_RELAXED,
				 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		cua_port_add_u64(&((uint64_t *)h->counts)[i], n, CUA_RELAXED, CUA_SCOPE_DEVICE,
				 CUA_SPACE_GLOBAL);
}

/* Adds to the count of a counter of a channel, concurrently with other threads. */
CUA_FORCE void cua__histogram_add(const struct cua__histogram *h, uint32_t channel,
				  uint32_t counter, uint64_t n)
{
	if (counter < h->bins)
		cua__histogram_add_counts(h, (uint64_t)channel * h->bins + counter, n);
	else if (h->outside)
		cua_port_add_u64(&h->outside[channel * CUA_HISTOGRAM_SIDES + (counter - h->bins)],
				 n, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Sets the count of a counter, or adds to it, without concurrent access. */
CUA_FORCE void cua__histogram_set(const struct cua__histogram *h, int add, uint32_t counter,
				  uint64_t n)
{
	uint64_t *outside = h->outside;

	if (counter < h->bins && h->count_type == CUA_U32) {
		uint32_t *count = &((uint32_t *)h->counts)[counter];

		CUA_WRITE(*count, (add ? CUA_READ(*count) : 0) + (uint32_t)n);
	} else if (counter < h->bins) {
		uint64_t *count = &((uint64_t *)h->counts)[counter];

		CUA_WRITE(*count, (add ? CUA_READ(*count) : 0) + n);
	} else if (outside) {
		outside += counter - h->bins;
		CUA_WRITE(*outside, (add ? CUA_READ(*outside) : 0) + n);
	}
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_JOB_H */
