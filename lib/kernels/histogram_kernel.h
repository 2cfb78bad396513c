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

#include "backend/histogram_backend.h"

#define CUA__HISTOGRAM_FULL 0xffffffffu
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
	CUA__COUNT_GLOBAL
};

/* How the counter of an element is found. */
enum cua__histogram_rule {
	CUA__RULE_VALUE, /* elements of 8 bits: the value is the counter */
	/* integers of at most 32 bits, range within the type; floats without a factor */
	CUA__RULE_EVEN_FAST,
	CUA__RULE_EVEN, /* even bins of any type and range */
	CUA__RULE_EDGES /* edges, with a guide in shared memory */
};

/* A pack: 16 bytes of elements. */
struct cua__histogram_pack {
	uint32_t word[4];
} __attribute__((aligned(16), may_alias));

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
	uint32_t private_words;  /* of a block's private histogram in scratch memory */
	uint32_t blocks;
	int finish_here; /* the last block merges the private histograms */
	struct cua_finish *finish;
	uint32_t *privates;
	/* NULL, or zeros that the blocks add their counters to instead of storing them */
	uint32_t *sums;
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

/* ---- the counter of an element ---- */

/* Properties of types; constants if the type is a constant. */
CUA_FORCE size_t cua__histogram_size(enum cua_type type)
{
	switch (type) {
	case CUA_I8:
	case CUA_U8: return 1;
	case CUA_I16:
	case CUA_U16:
	case CUA_F16:
	case CUA_BF16: return 2;
	case CUA_I64:
	case CUA_U64:
	case CUA_F64: return 8;
	default: return 4;
	}
}

CUA_FORCE size_t cua__histogram_key_bytes(enum cua_type type)
{
	return cua__histogram_size(type) == 8 ? 8 : 4;
}

CUA_FORCE int cua__histogram_is_float(enum cua_type type)
{
	return type == CUA_F16 || type == CUA_BF16 || type == CUA_F32 || type == CUA_F64;
}

CUA_FORCE float cua__histogram_f32(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float v;

	memcpy(&v, &low, sizeof(v));
	return v;
}

CUA_FORCE double cua__histogram_f64(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* An f16, bf16 or f32 element as f32; exact. */
CUA_FORCE float cua__histogram_as_f32(enum cua_type type, uint64_t raw)
{
	struct cua_f16 half;
	struct cua_bf16 brain;

	if (type == CUA_F16) {
		half.bits = (uint16_t)raw;
		return cua_f32_from_f16(half);
	}
	if (type == CUA_BF16) {
		brain.bits = (uint16_t)raw;
		return cua_f32_from_bf16(brain);
	}
	return cua__histogram_f32(raw);
}

/* An integer, sign-extended. */
CUA_FORCE int64_t cua__histogram_as_i64(enum cua_type type, uint64_t raw)
{
	switch (type) {
	case CUA_I8: return (int8_t)raw;
	case CUA_I16: return (int16_t)raw;
	case CUA_I32: return (int32_t)raw;
	default: return (int64_t)raw;
	}
}

CUA_FORCE int cua__histogram_is_signed(enum cua_type type)
{
	return type == CUA_I8 || type == CUA_I16 || type == CUA_I32 || type == CUA_I64;
}

CUA_FORCE int cua__histogram_is_in_fast(enum cua_type type, const struct cua__histogram_job *j,
					uint64_t raw)
{
	double x;
	float f;

	if (type == CUA_F64) {
		x = cua__histogram_f64(raw);
		return x >= j->least_f64 && x <= j->most_f64;
	}
	if (cua__histogram_is_float(type)) {
		f = cua__histogram_as_f32(type, raw);
		return f >= j->least_f32 && f <= j->most_f32;
	}
	return (uint32_t)cua__histogram_as_i64(type, raw) - j->lower <= j->last;
}

/* The side of an element that is in no bin. */
CUA_FORCE uint32_t cua__histogram_side_fast(enum cua_type type, const struct cua__histogram_job *j,
					    uint64_t raw)
{
	double x;
	float f;

	if (type == CUA_F64) {
		x = cua__histogram_f64(raw);
		return x != x             ? CUA_HISTOGRAM_NAN
		       : x < j->least_f64 ? CUA_HISTOGRAM_BELOW
					  : CUA_HISTOGRAM_ABOVE;
	}
	if (cua__histogram_is_float(type)) {
		f = cua__histogram_as_f32(type, raw);
		return f != f             ? CUA_HISTOGRAM_NAN
		       : f < j->least_f32 ? CUA_HISTOGRAM_BELOW
					  : CUA_HISTOGRAM_ABOVE;
	}
	return ((uint32_t)cua__histogram_as_i64(type, raw) ^ j->bias) < (j->lower ^ j->bias)
		       ? CUA_HISTOGRAM_BELOW
		       : CUA_HISTOGRAM_ABOVE;
}

/*
 * Finds the bins of all n elements as if they were in the range, then replaces the bins of outside
 * elements by their sides. whole_bins is the job's, or 0 for the same result in more steps.
 */
CUA_FORCE void cua__histogram_counters_even_fast(enum cua_type type, int whole_bins,
						 const struct cua__histogram_job *j, uint32_t n,
						 const uint64_t *raw, uint32_t *counter)
{
	const struct cua_histogram_range *r = &j->h.range;
	const uint32_t part_high = (uint32_t)(r->part >> 32), part_low = (uint32_t)r->part;
	uint32_t k;
	int out = 0;

	CUA__UNROLL
	for (k = 0; k < n; k++)
		out |= !cua__histogram_is_in_fast(type, j, raw[k]);
	if (cua__histogram_is_float(type)) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			double x =
				type == CUA_F64
					? cua__histogram_f64(raw[k])
					: cua_port_cvt_f64_f32(cua__histogram_as_f32(type, raw[k]));

#ifndef __CUDA_ARCH__
			/* on a GPU, the conversion to an integer may have any operand */
			x = cua__histogram_is_in_fast(type, j, raw[k]) ? x : r->origin;
#endif
			/* cua__histogram_float_bin, without a factor */
			counter[k] = (uint32_t)cua_port_mul_rn_f64(
				cua_port_sub_rn_f64(x, r->origin), r->scale);
		}
	} else if (whole_bins) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			counter[k] = ((uint32_t)cua__histogram_as_i64(type, raw[k]) - j->lower) *
				     (uint32_t)r->whole;
	} else if (part_low == 0) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t d = (uint32_t)cua__histogram_as_i64(type, raw[k]) - j->lower;

			counter[k] = d * r->whole + (uint32_t)(((uint64_t)d * part_high) >> 32);
		}
	} else {
		/* cua__histogram_narrow_bin of a 32-bit number */
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t d = (uint32_t)cua__histogram_as_i64(type, raw[k]) - j->lower;

			counter[k] = d * r->whole + (uint32_t)(((uint64_t)d * part_high +
								(((uint64_t)d * part_low) >> 32)) >>
							       32);
		}
	}
	if (cua__histogram_is_float(type) || !whole_bins) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			counter[k] = counter[k] < j->last_bin ? counter[k] : j->last_bin;
	}
	if (out) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			if (!cua__histogram_is_in_fast(type, j, raw[k]))
				counter[k] = r->bins + cua__histogram_side_fast(type, j, raw[k]);
	}
}

CUA_FORCE uint32_t cua__histogram_counter_even(enum cua_type type,
					       const struct cua__histogram_job *j, uint64_t raw)
{
	const struct cua_histogram_range *r = &j->h.range;
	uint32_t bin;

	if (type == CUA_F64) {
		double x = cua__histogram_f64(raw);

		bin = cua_histogram_even_bin_f64(r, x);
		return bin != CUA_HISTOGRAM_NO_BIN ? bin : r->bins + cua_histogram_side_f64(r, x);
	}
	if (cua__histogram_is_float(type)) {
		float x = cua__histogram_as_f32(type, raw);

		bin = cua_histogram_even_bin_f32(r, x);
		return bin != CUA_HISTOGRAM_NO_BIN
			       ? bin
			       : r->bins + cua_histogram_side_f64(r, cua_port_cvt_f64_f32(x));
	}
	bin = cua_histogram_even_bin_i64(r, cua__histogram_as_i64(type, raw));
	if (bin != CUA_HISTOGRAM_NO_BIN)
		return bin;
	return r->bins + (type == CUA_U64
				  ? cua_histogram_side_u64(r, raw)
				  : cua_histogram_side_i64(r, cua__histogram_as_i64(type, raw)));
}

/* Key of an element for comparison with edges, of 32 or 64 bits. */
CUA_FORCE uint64_t cua__histogram_edge_key(enum cua_type type, uint64_t raw)
{
	switch (type) {
	case CUA_I64: return cua__histogram_edge_key_i64((int64_t)raw);
	case CUA_U64: return raw;
	case CUA_F64: return cua__histogram_edge_key_f64(cua__histogram_f64(raw));
	case CUA_F16:
	case CUA_BF16:
	case CUA_F32: return cua__histogram_edge_key_f32(cua__histogram_as_f32(type, raw));
	case CUA_I8:
	case CUA_I16:
	case CUA_I32: return cua__histogram_edge_key_i32((int32_t)cua__histogram_as_i64(type, raw));
	default: return (uint32_t)raw;
	}
}

CUA_FORCE int cua__histogram_is_nan(enum cua_type type, uint64_t raw)
{
	if (type == CUA_F64)
		return cua__histogram_is_nan_f64(cua__histogram_f64(raw));
	return cua__histogram_is_float(type) &&
	       cua__histogram_is_nan_f32(cua__histogram_as_f32(type, raw));
}

/*
 * A guide locates the edges. The range is divided into cells, and each entry of the guide is the
 * number of inner edges in lower cells. Only the edges in the element's cell remain; these are few,
 * and a binary search finds the last edge that is not above the element.
 *
 * The map from elements and edges to cells must be monotonic, and the same for both; nothing else
 * is required. Then an edge in a lower cell is not above the element, and an edge in a higher cell
 * is. The map is either the difference of the keys shifted right, or, for floats, a line. The map
 * that leaves fewer edges in its fullest cell is used. Elements in cells without an edge all load
 * the same edge, because lanes that load different edges wait for each other.
 */
struct cua__histogram_edges {
	/*
	 * In shared memory: edge i at index i, for 1 <= i < bins, followed by a sentinel that is
	 * not below any element. With by_value, edges are stored as the bits of floats; otherwise
	 * as the difference of the edge's key from the first edge's key.
	 */
	const void *edges;
	const cua__raw16 *guide;
	int by_value;
	int empty; /* the range is empty */
	/*
	 * first step of the binary search: half of a power of two that exceeds the edges in any
	 * cell
	 */
	uint32_t search_step;
	uint32_t shift; /* of key differences */
	uint64_t first,
		span; /* key of the first edge; difference of the last key in the range from it */
	uint64_t least, most; /* least and greatest key in the range */
	uint64_t from, to;    /* bits of the least and the greatest float in the range */
	float scale_f32;
	double scale_f64;
};

/* In a guide entry: the cell has no edge. */
#define CUA__HISTOGRAM_NO_EDGE 0x8000u
/* Minimum number of cells of a guide; the number is a power of two. */
#define CUA__HISTOGRAM_LEAST_CELLS 64u

CUA_FORCE uint64_t cua__histogram_edge(enum cua_type type, const void *edges, uint32_t i)
{
	return cua__histogram_key_bytes(type) == 8 ? CUA_READ(((const uint64_t *)edges)[i])
						   : CUA_READ(((const uint32_t *)edges)[i]);
}

CUA_FORCE void cua__histogram_set_edge(enum cua_type type, void *edges, uint32_t i, uint64_t v)
{
	if (cua__histogram_key_bytes(type) == 8)
		CUA_WRITE(((uint64_t *)edges)[i], v);
	else
		CUA_WRITE(((uint32_t *)edges)[i], (uint32_t)v);
}

/* Key i of the edges. */
CUA_FORCE uint64_t cua__histogram_key(enum cua_type type, const void *keys, uint32_t i)
{
	return cua__histogram_key_bytes(type) == 8 ? ((const uint64_t *)keys)[i]
						   : ((const uint32_t *)keys)[i];
}

/* Bits of the float with this key: an f64, otherwise an f32. */
CUA_FORCE uint64_t cua__histogram_float_of_key(enum cua_type type, uint64_t key)
{
	if (type == CUA_F64)
		return key >> 63 ? key ^ 0x8000000000000000u : ~key;
	return (uint32_t)(key >> 31 ? key ^ 0x80000000u : ~key);
}

/* An edge in the form that shared memory holds. */
CUA_FORCE uint64_t cua__histogram_edge_of_key(enum cua_type type, int by_value,
					      const struct cua__histogram_edges *e, uint64_t key)
{
	return by_value ? cua__histogram_float_of_key(type, key) : key - e->first;
}

/* Cell of an element in the range or of an edge, both in that form. */
CUA_FORCE uint32_t cua__histogram_cell(enum cua_type type, int by_value,
				       const struct cua__histogram_edges *e, uint64_t v)
{
	float f;
	double d;
	uint32_t bits;
	uint64_t bits64;

	if (!by_value)
		return cua__histogram_key_bytes(type) == 8 ? (uint32_t)(v >> e->shift)
							   : (uint32_t)v >> e->shift;
	/* adding the power of two moves the integer to the lowest bits */
	if (type == CUA_F64) {
		d = cua_port_sub_rn_f64(cua__histogram_f64(v), cua__histogram_f64(e->from));
		d = cua_port_add_rn_f64(cua_port_mul_rn_f64(d, e->scale_f64), 0x1p52);
		memcpy(&bits64, &d, sizeof(bits64));
		return (uint32_t)bits64;
	}
	f = cua_port_sub_rn_f32(cua__histogram_f32(v), cua__histogram_f32(e->from));
	f = cua_port_add_rn_f32(cua_port_mul_rn_f32(f, e->scale_f32), 0x1p23f);
	memcpy(&bits, &f, sizeof(bits));
	return bits - 0x4b000000u;
}

CUA_FORCE int cua__histogram_not_below(enum cua_type type, int by_value, uint64_t v, uint64_t edge)
{
	if (by_value)
		return type == CUA_F64 ? cua__histogram_f64(v) >= cua__histogram_f64(edge)
				       : cua__histogram_f32(v) >= cua__histogram_f32(edge);
	return cua__histogram_key_bytes(type) == 8 ? v >= edge : (uint32_t)v >= (uint32_t)edge;
}

/* Converts an element to that form and clamps it to the range. Sets *out if it was outside. */
CUA_FORCE uint64_t cua__histogram_into_range(enum cua_type type, int by_value,
					     const struct cua__histogram_edges *e, uint64_t raw,
					     int *out)
{
	float f, g;
	double d, c;
	uint32_t bits;

	if (!by_value) {
		const uint64_t v = cua__histogram_edge_key(type, raw) - e->first;

		if (cua__histogram_key_bytes(type) == 8) {
			*out |= v > e->span;
			return v > e->span ? e->span : v;
		}
		*out |= (uint32_t)v > (uint32_t)e->span;
		return (uint32_t)v > (uint32_t)e->span ? (uint32_t)e->span : (uint32_t)v;
	}
	if (type == CUA_F64) {
		d = cua__histogram_f64(raw);
		c = d >= cua__histogram_f64(e->from) ? d : cua__histogram_f64(e->from);
		c = c <= cua__histogram_f64(e->to) ? c : cua__histogram_f64(e->to);
		*out |= d != c;
		memcpy(&raw, &c, sizeof(raw));
		return raw;
	}
	f = cua__histogram_as_f32(type, raw);
#ifdef __CUDA_ARCH__
	g = fminf(fmaxf(f, cua__histogram_f32(e->from)), cua__histogram_f32(e->to));
#else
	g = f >= cua__histogram_f32(e->from) ? f : cua__histogram_f32(e->from);
	g = g <= cua__histogram_f32(e->to) ? g : cua__histogram_f32(e->to);
#endif
	*out |= f != g;
	memcpy(&bits, &g, sizeof(bits));
	return bits;
}

/* Whether the line can be used. Computes the line's parameters. */
CUA_FORCE int cua__histogram_line(enum cua_type type, const struct cua__histogram_job *j,
				  uint64_t last_key, struct cua__histogram_edges *e)
{
	const uint64_t last = cua__histogram_float_of_key(type, last_key);
	double d;
	float f;

	if (!cua__histogram_is_float(type) || e->empty)
		return 0;
	/* an infinite or NaN parameter fails these tests */
	if (type == CUA_F64) {
		d = cua_port_sub_rn_f64(cua__histogram_f64(last), cua__histogram_f64(e->from));
		e->scale_f64 = cua_port_div_rn_f64((double)(j->cells - 1), d);
		return d > 0 && d < 0x1p1000 && e->scale_f64 < 0x1p1000;
	}
	f = cua_port_sub_rn_f32(cua__histogram_f32(last), cua__histogram_f32(e->from));
	e->scale_f32 = cua_port_div_rn_f32((float)(j->cells - 1), f);
	return f > 0 && f < 0x1p120f && e->scale_f32 < 0x1p120f;
}

/*
 * log2 of the least power of two that exceeds the number of edges in any cell, over the edges that
 * this thread inspects. The edges' keys are in shared memory.
 */
CUA_FORCE uint32_t cua__histogram_max_edges_log2(enum cua_type type, int by_value,
						 const struct cua__histogram_job *j,
						 const uint32_t *shared,
						 const struct cua__histogram_edges *e)
{
	uint32_t i, most = 0;

#define CUA__CELL_OF(i)                                                                            \
	cua__histogram_cell(type, by_value, e,                                                     \
			    cua__histogram_edge_of_key(type, by_value, e,                          \
						       cua__histogram_edge(type, shared, i)))
	for (i = cua_port_thread() + 1; i < j->h.bins; i += cua_port_block_size()) {
		const uint32_t cell = CUA__CELL_OF(i);

		while (i + ((uint32_t)1 << most) - 1 < j->h.bins &&
		       CUA__CELL_OF(i + ((uint32_t)1 << most) - 1) == cell)
			most++;
	}
#undef CUA__CELL_OF
	return most;
}

/* Number of edges in cells below c. It is between i and i + 2 * w - 1; w is a power of two. */
CUA_FORCE uint32_t cua__histogram_edges_before(enum cua_type type, int by_value,
					       const struct cua__histogram_job *j,
					       const struct cua__histogram_edges *e,
					       const uint32_t *shared, uint32_t i, uint32_t w,
					       uint32_t c)
{
	for (; w; w /= 2)
		if (i + w < j->h.bins &&
		    cua__histogram_cell(type, by_value, e,
					cua__histogram_edge(type, shared, i + w)) < c)
			i += w;
	return i;
}

/* Converts the edges from keys in shared memory to the chosen form, and builds the guide. */
CUA_FORCE void cua__histogram_guide_build(enum cua_type type, int by_value,
					  const struct cua__histogram_job *j, uint32_t *shared,
					  const struct cua__histogram_edges *e)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t each = ((j->cells + threads - 1) / threads + 1) / 2 * 2;
	uint32_t *guide = shared + (j->edge_words - j->cells / 2);
	uint32_t i, c, next, two = 0;

	for (i = thread; i <= j->h.bins; i += threads) {
		uint64_t v = by_value ? type == CUA_F64 ? 0x7ff0000000000000u : 0x7f800000u
				      : ~(uint64_t)0;

		if (i < j->h.bins)
			v = cua__histogram_edge_of_key(type, by_value, e,
						       cua__histogram_edge(type, shared, i));
		cua__histogram_set_edge(type, shared, i, v);
	}
	cua_port_sync_block();
	i = cua__histogram_edges_before(type, by_value, j, e, shared, 0,
					(uint32_t)1 << (j->levels - 1), thread * each);
	for (c = thread * each; c < thread * each + each && c < j->cells; c++) {
		next = cua__histogram_edges_before(type, by_value, j, e, shared, i, e->search_step,
						   c + 1);
		two = two >> 16 | (i | (i == next ? CUA__HISTOGRAM_NO_EDGE : 0)) << 16;
		if (c % 2)
			CUA_WRITE(guide[c / 2], two);
		i = next;
	}
	cua_port_sync_block();
}

/* Builds edges and guide, with all threads of the block. Ends with a barrier. */
CUA_FORCE void cua__histogram_edges_build(enum cua_type type, const struct cua__histogram_job *j,
					  const void *keys, uint32_t *shared,
					  struct cua__histogram_edges *e)
{
	/*
	 * In the guide's memory, temporarily: flags of the values of max_edges_log2 that the
	 * threads found, by keys and by the line.
	 */
	uint32_t *found = shared + (j->edge_words - j->cells / 2);
	uint32_t max_edges_log2[2] = {31, 31}, i;
	uint64_t last;
	int line;

	for (i = cua_port_thread(); i <= j->h.bins; i += cua_port_block_size())
		cua__histogram_set_edge(type, shared, i, cua__histogram_key(type, keys, i));
	for (i = cua_port_thread(); i < 32; i += cua_port_block_size())
		CUA_WRITE(found[i], 0);
	cua_port_sync_block();
	e->edges = shared;
	e->guide = (const cua__raw16 *)(const void *)found;
	e->first = e->least = cua__histogram_edge(type, shared, 0);
	last = cua__histogram_edge(type, shared, j->h.bins);
	/* no element is below key 0 */
	e->empty = !j->h.closed && (last == 0 || last - 1 < e->first);
	e->most = last - (uint64_t)(!j->h.closed);
	/* -0 and 0 have the same key */
	if (cua__histogram_is_float(type) && !j->h.closed &&
	    last == (uint64_t)1 << (type == CUA_F64 ? 63 : 31))
		e->most--;
	e->span = e->empty ? 0 : e->most - e->first;
	for (e->shift = 0; (last - e->first) >> e->shift >= j->cells; e->shift++)
		;
	e->from = cua__histogram_float_of_key(type, e->least);
	e->to = cua__histogram_float_of_key(type, e->most);
	e->scale_f32 = 0;
	e->scale_f64 = 0;
	line = cua__histogram_line(type, j, last, e);
	cua_port_add_u32(&found[cua__histogram_max_edges_log2(type, 0, j, shared, e)], 1,
			 CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	if (cua__histogram_is_float(type) && line)
		cua_port_add_u32(&found[16 + cua__histogram_max_edges_log2(type, 1, j, shared, e)],
				 1, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	cua_port_sync_block();
	for (i = 0; i < 16; i++) {
		if (CUA_READ(found[i]))
			max_edges_log2[0] = i;
		if (CUA_READ(found[16 + i]))
			max_edges_log2[1] = i;
	}
	cua_port_sync_block();
	e->by_value = cua__histogram_is_float(type) && max_edges_log2[1] <= max_edges_log2[0];
	e->search_step = ((uint32_t)1 << max_edges_log2[e->by_value]) / 2;
	if (cua__histogram_is_float(type) && e->by_value)
		cua__histogram_guide_build(type, 1, j, shared, e);
	else
		cua__histogram_guide_build(type, 0, j, shared, e);
}

/* Performs each step for all n elements, so that the loads of a step are in flight together. */
CUA_FORCE int cua__histogram_search(enum cua_type type, int by_value, uint32_t bins,
				    const struct cua__histogram_edges *e, uint32_t n,
				    const uint64_t *raw, uint32_t *counter)
{
	uint64_t v[16];
	uint32_t k, w;
	int out = e->empty;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		v[k] = cua__histogram_into_range(type, by_value, e, raw[k], &out);
		counter[k] = CUA_READ(e->guide[cua__histogram_cell(type, by_value, e, v[k])]);
	}
	CUA__NO_UNROLL
	for (w = e->search_step; w; w /= 2) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t i = counter[k] + w < bins ? counter[k] + w : bins;

			counter[k] +=
				cua__histogram_not_below(type, by_value, v[k],
							 cua__histogram_edge(type, e->edges, i))
					? w
					: 0;
		}
	}
	return out;
}

/* The counters of n elements, by edges and guide. */
CUA_FORCE void cua__histogram_counters_guided(enum cua_type type,
					      const struct cua__histogram_job *j,
					      const struct cua__histogram_edges *e, uint32_t n,
					      const uint64_t *raw, uint32_t *counter)
{
	uint32_t k;
	int out;

	if (cua__histogram_is_float(type) && e->by_value)
		out = cua__histogram_search(type, 1, j->h.bins, e, n, raw, counter);
	else
		out = cua__histogram_search(type, 0, j->h.bins, e, n, raw, counter);
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		counter[k] &= CUA__HISTOGRAM_NO_EDGE - 1;
		counter[k] = counter[k] < j->last_bin ? counter[k] : j->last_bin;
	}
	if (!out)
		return;
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		const uint64_t key = cua__histogram_edge_key(type, raw[k]);
		const int below = key < e->least;

		if (cua__histogram_is_nan(type, raw[k]))
			counter[k] = j->h.bins + CUA_HISTOGRAM_NAN;
		else if (e->empty ? !below : key > e->most)
			counter[k] = j->h.bins + CUA_HISTOGRAM_ABOVE;
		else if (below)
			counter[k] = j->h.bins + CUA_HISTOGRAM_BELOW;
	}
}

/* The counter of an element by edges, without a guide. */
CUA_FORCE uint32_t cua__histogram_counter_edges(enum cua_type type,
						const struct cua__histogram_job *j, uint64_t raw)
{
	const struct cua__histogram *h = &j->h;
	uint64_t key = cua__histogram_edge_key(type, raw);
	uint32_t bin;

	if (type == CUA_U8 || type == CUA_U16 || type == CUA_U32)
		key = (uint32_t)key ^ j->bias;

	if (cua__histogram_is_nan(type, raw))
		return h->bins + CUA_HISTOGRAM_NAN;
	bin = cua__histogram_key_bytes(type) == 8
		      ? cua_histogram_edge_bin_u64((const uint64_t *)h->edges, h->bins, h->closed,
						   key)
		      : cua_histogram_edge_bin_u32((const uint32_t *)h->edges, h->bins, h->closed,
						   (uint32_t)key);
	if (bin != CUA_HISTOGRAM_NO_BIN)
		return bin;
	return h->bins + (key < cua__histogram_key(type, h->edges, 0) ? CUA_HISTOGRAM_BELOW
								      : CUA_HISTOGRAM_ABOVE);
}

/* The counters of n elements, n <= 16. */
CUA_FORCE void cua__histogram_find_counters(enum cua_type type, enum cua__histogram_rule rule,
					    enum cua__histogram_layout layout,
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
		/* GLOBAL is bound by its atomics, and uniform data were slower with whole_bins */
		cua__histogram_counters_even_fast(
			type, layout != CUA__COUNT_GLOBAL && j->whole_bins, j, n, raw, counter);
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

/* ---- counting ---- */

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
	uint32_t hot_tiles; /* tiles of the warp since the last flush */
};

#define CUA__HISTOGRAM_NONE 0xffffffffu   /* counter of another range */
#define CUA__HISTOGRAM_NO_HOT 0xfffffffeu /* no hot set */
/* A new hot set must have this many more lanes than the present hot set. */
#ifndef CUA__HISTOGRAM_HOT_LANES
#define CUA__HISTOGRAM_HOT_LANES 5u
#endif
/* Tiles until 8-bit fields are added to 16-bit fields, and until the 16-bit fields are flushed. */
#define CUA__HISTOGRAM_HOT_SHORT 8u
#define CUA__HISTOGRAM_HOT_LONG 2048u

/* Bits of a counter's field in a word. */
CUA_FORCE uint32_t cua__histogram_field_bits(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_HALVES ? 16 : layout == CUA__COUNT_BYTES ? 8 : 32;
}

CUA_FORCE uint32_t cua__histogram_per_word(enum cua__histogram_layout layout)
{
	return 32 / cua__histogram_field_bits(layout);
}

/* Words of a private histogram with this many counters. */
CUA_FORCE uint32_t cua__histogram_words(enum cua__histogram_layout layout, uint32_t counters)
{
	switch (layout) {
	case CUA__COUNT_COLUMNS: return counters * 32;
	case CUA__COUNT_GLOBAL: return 0;
	default:
		return counters / cua__histogram_per_word(layout) +
		       (counters % cua__histogram_per_word(layout) != 0);
	}
}

/*
 * Settles an addition that changed a word from `old` to `now` and should add `should` to one
 * counter. Adds the difference to the global counts, for this field and all higher fields of the
 * word.
 */
CUA_FORCE void cua__histogram_settle(enum cua__histogram_layout layout,
				     const struct cua__histogram_job *j,
				     const struct cua__histogram_own *own, uint32_t counter,
				     uint32_t old, uint32_t now, uint32_t should)
{
	const uint32_t bits = cua__histogram_field_bits(layout), mask = ((uint32_t)1 << bits) - 1;
	const uint32_t end = counter / (32 / bits) * (32 / bits) + 32 / bits;
	uint32_t at = counter % (32 / bits) * bits, field;

	CUA__NO_UNROLL
	for (field = counter; field < end; field++) {
		const uint32_t is = ((now >> at) & mask) - ((old >> at) & mask);

		/* the difference is signed; fields after the last counter do not exist */
		if (is != should && field < own->counters)
			cua__histogram_add(&j->h, 0, own->first + field,
					   (uint64_t)(int64_t)(int32_t)(should - is));
		should = 0;
		at += bits;
	}
}

/*
 * Completes an addition of `add` to a counter. Its word was `old`. Called if the top bit of some
 * field is set before or after it. `add` is at most the top bit of BYTES. If this addition raised
 * the field above its top bit, it subtracts the top bit.
 */
CUA_FORCE void cua__histogram_relieve(enum cua__histogram_layout layout,
				      const struct cua__histogram_job *j,
				      const struct cua__histogram_own *own, uint32_t counter,
				      uint32_t old, uint32_t add)
{
	const uint32_t per_word = cua__histogram_per_word(layout), bits = 32 / per_word;
	const uint32_t at = counter % per_word * bits, top = (uint32_t)1 << (bits - 1);
	uint32_t field;

	cua__histogram_settle(layout, j, own, counter, old, old + (add << at), add);
	field = (old >> at) & (2 * top - 1);
	if (field > top || field + add <= top)
		return;
	old = cua_port_fetch_add_u32(&own->words[counter / per_word], 0 - (top << at), CUA_RELAXED,
				     CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	cua__histogram_settle(layout, j, own, counter, old, old - (top << at), 0);
}

CUA_FORCE uint32_t cua__histogram_tops(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_HALVES ? 0x80008000u : 0x80808080u;
}

/* Adds to a counter of the range; `add` is at most the top bit of BYTES. */
CUA_FORCE void cua__histogram_count_many(enum cua__histogram_layout layout,
					 const struct cua__histogram_job *j,
					 const struct cua__histogram_own *own, uint32_t counter,
					 uint32_t add)
{
	const uint32_t per_word = cua__histogram_per_word(layout);
	uint32_t old, one;

	if (layout == CUA__COUNT_GLOBAL) {
		cua__histogram_add(&j->h, 0, counter, add);
		return;
	}
	one = add << counter % per_word * (32 / per_word);
	old = cua_port_fetch_add_u32(&own->words[counter / per_word], one, CUA_RELAXED,
				     CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	if ((old | (old + one)) & cua__histogram_tops(layout))
		cua__histogram_relieve(layout, j, own, counter, old, add);
}

/* Adds 1 to each of n packed counters of the range, unless `skipped` is set. */
CUA_FORCE void cua__histogram_count_packed(enum cua__histogram_layout layout,
					   const struct cua__histogram_job *j,
					   const struct cua__histogram_own *own, uint32_t n,
					   const uint32_t *counter, const int *skipped)
{
	const uint32_t tops = cua__histogram_tops(layout);
	uint32_t old[16], all = 0, k, l;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		/*
		 * A skipped element adds 0 to the lane's own word, where lanes do not conflict.
		 * This needs no branch.
		 */
		const uint32_t word = counter[k] / cua__histogram_per_word(layout);
		const uint32_t one = layout == CUA__COUNT_HALVES
					     ? (counter[k] & 1) * 0xffffu + 1
					     : (uint32_t)1 << counter[k] % 4 * 8;

		old[k] = cua_port_fetch_add_u32(&own->words[skipped[k] ? own->lane : word],
						skipped[k] ? 0 : one, CUA_RELAXED, CUA_SCOPE_BLOCK,
						CUA_SPACE_SHARED);
	}
	CUA__UNROLL
	for (k = 0; k < n; k++)
		all |= old[k];
	if (!(all & tops))
		return;
	/* rare */
	CUA__NO_UNROLL
	for (k = 0; k < n; k++) {
		uint32_t its_counter = counter[0], its_old = old[0];
		int its_skipped = skipped[0];

		CUA__UNROLL
		for (l = 1; l < n; l++) {
			its_counter = l == k ? counter[l] : its_counter;
			its_old = l == k ? old[l] : its_old;
			its_skipped = l == k ? skipped[l] : its_skipped;
		}
		if (!its_skipped && (its_old & tops))
			cua__histogram_relieve(layout, j, own, its_counter, its_old, 1);
	}
}

/* Adds 1 to a counter of the range. */
CUA_FORCE void cua__histogram_count(enum cua__histogram_layout layout,
				    const struct cua__histogram_job *j,
				    const struct cua__histogram_own *own, uint32_t counter)
{
	/* byte offset by bit operations: cheaper than an addition */
	const uint32_t column = counter << 7 | own->lane << 2;
	const int no = 0;

	if (layout == CUA__COUNT_COLUMNS)
		cua_port_add_u32((uint32_t *)(void *)((char *)own->words + column), 1, CUA_RELAXED,
				 CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	else if (layout == CUA__COUNT_WORDS)
		cua_port_add_u32(&own->words[counter], 1, CUA_RELAXED, CUA_SCOPE_BLOCK,
				 CUA_SPACE_SHARED);
	else if (layout == CUA__COUNT_GLOBAL)
		cua__histogram_add(&j->h, 0, counter, 1);
	else
		cua__histogram_count_packed(layout, j, own, 1, &counter, &no);
}

/* Index of a counter in the block's range. Only BYTES has several ranges. */
CUA_FORCE uint32_t cua__histogram_in_range(enum cua__histogram_layout layout,
					   const struct cua__histogram_own *own, uint32_t counter)
{
	if (layout != CUA__COUNT_BYTES)
		return counter;
	return counter - own->first < own->counters ? counter - own->first : CUA__HISTOGRAM_NONE;
}

CUA_FORCE int cua__histogram_has_hot(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_HALVES || layout == CUA__COUNT_BYTES ||
	       layout == CUA__COUNT_GLOBAL;
}

/* Counts an element. May be called by any subset of lanes. */
CUA_FORCE void cua__histogram_count_one(enum cua__histogram_layout layout,
					const struct cua__histogram_job *j,
					const struct cua__histogram_own *own, uint32_t counter)
{
	if (cua__histogram_has_hot(layout)) {
		counter = cua__histogram_in_range(layout, own, counter);
		if (counter == CUA__HISTOGRAM_NONE)
			return;
	}
	cua__histogram_count(layout, j, own, counter);
}

/* Adds the 8-bit fields to the 16-bit fields. */
CUA_FORCE void cua__histogram_hot_widen(struct cua__histogram_own *own)
{
	own->hot_even += own->hot_n & 0xff00ffu;
	own->hot_odd += (own->hot_n >> 8) & 0xff00ffu;
	own->hot_n = 0;
}

/* Adds the warp's hot set to the global counts. Called by whole warps. */
CUA_FORCE void cua__histogram_hot_flush(const struct cua__histogram_job *j,
					struct cua__histogram_own *own)
{
	const uint32_t lane = own->lane;
	uint64_t all, even, odd;
	uint32_t step;

	if (own->hot == CUA__HISTOGRAM_NO_HOT)
		return;
	cua__histogram_hot_widen(own);
	if (own->hot_tiles < CUA__HISTOGRAM_HOT_SHORT) {
		/* the sums over 32 lanes fit into the fields too */
		all = own->hot_even | (uint64_t)own->hot_odd << 32;
		for (step = 16; step; step /= 2)
			all += cua_port_shuffle_u64(CUA__HISTOGRAM_FULL, all, lane ^ step);
		all = (uint16_t)(all >> (lane & 1) * 32 >> (lane & 2) * 8);
	} else {
		even = (own->hot_even & 0xffff) | (uint64_t)(own->hot_even >> 16) << 32;
		odd = (own->hot_odd & 0xffff) | (uint64_t)(own->hot_odd >> 16) << 32;
		for (step = 16; step; step /= 2) {
			even += cua_port_shuffle_u64(CUA__HISTOGRAM_FULL, even, lane ^ step);
			odd += cua_port_shuffle_u64(CUA__HISTOGRAM_FULL, odd, lane ^ step);
		}
		all = (uint32_t)((lane & 1 ? odd : even) >> (lane & 2) * 16);
	}
	if (lane < 4 && all)
		cua__histogram_add(&j->h, 0, own->first + own->hot * 4 + lane, all);
	own->hot_even = own->hot_odd = own->hot_tiles = 0;
}

/* Called after each tile by whole warps. Widens and flushes the fields before they overflow. */
CUA_FORCE void cua__histogram_hot_tick(const struct cua__histogram_job *j,
				       struct cua__histogram_own *own)
{
	if (++own->hot_tiles % CUA__HISTOGRAM_HOT_SHORT)
		return;
	cua__histogram_hot_widen(own);
	if (own->hot_tiles >= CUA__HISTOGRAM_HOT_LONG)
		cua__histogram_hot_flush(j, own);
}

/*
 * Counts all n elements of all lanes at once if they have the same counter, as in a long run of
 * equal elements, or two different counters, as at the boundary of two runs. Returns 1 if so.
 * `sample` is the counter of some lane. near_sample: the first counters of all lanes are in the
 * sample's hot set. Called by whole warps.
 */
CUA_FORCE int cua__histogram_count_two(enum cua__histogram_layout layout,
				       const struct cua__histogram_job *j,
				       const struct cua__histogram_own *own, uint32_t n,
				       const uint32_t *counter, uint32_t sample, int near_sample)
{
	uint32_t first = sample, last = sample, firsts = n * 32, differs = !near_sample, k;

	if (near_sample) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			differs |= counter[k] ^ sample;
	}
	if (cua_port_ballot(CUA__HISTOGRAM_FULL, differs != 0)) {
		first = cua_port_shuffle_u32(CUA__HISTOGRAM_FULL, counter[0], 0);
		last = cua_port_shuffle_u32(CUA__HISTOGRAM_FULL, counter[n - 1], 31);
		differs = 0;
		CUA__UNROLL
		for (k = 0; k < n; k++)
			differs |= counter[k] != first && counter[k] != last;
		if (cua_port_ballot(CUA__HISTOGRAM_FULL, differs != 0))
			return 0;
		firsts = 0;
		CUA__UNROLL
		for (k = 0; k < n; k++)
			firsts += cua_port_popc_u32(
				cua_port_ballot(CUA__HISTOGRAM_FULL, counter[k] == first));
	}
	/* lane 0 counts the first counter, and lane 1 the last counter if it differs */
	first = own->lane ? last : first;
	firsts = own->lane ? n * 32 - firsts : firsts;
	if (own->lane < 2 && firsts && first != CUA__HISTOGRAM_NONE)
		cua__histogram_count_many(layout, j, own, first, firsts);
	return 1;
}

/*
 * Chooses the hot set again. The candidate is the set of lane `from`'s first counter; it is chosen
 * if enough lanes have it. If hardly any lane has the present hot set, there is none. Returns 1 if
 * cua__histogram_count_two has counted all n elements of all lanes instead. Called by whole warps.
 */
CUA_FORCE int cua__histogram_hot_choose(enum cua__histogram_layout layout,
					const struct cua__histogram_job *j,
					struct cua__histogram_own *own, uint32_t n,
					const uint32_t *counter, uint32_t from)
{
	uint32_t old = 0, now, sample;

	if (own->hot != CUA__HISTOGRAM_NO_HOT) {
		old = cua_port_popc_u32(
			cua_port_ballot(CUA__HISTOGRAM_FULL, counter[0] / 4 == own->hot));
		if (old >= 16 && old < 32)
			return 0;
	}
	sample = cua_port_shuffle_u32(CUA__HISTOGRAM_FULL, counter[0], from);
	now = cua_port_popc_u32(cua_port_ballot(CUA__HISTOGRAM_FULL, (counter[0] ^ sample) < 4));
	if ((now > old + CUA__HISTOGRAM_HOT_LANES || now == 32) &&
	    cua__histogram_count_two(layout, j, own, n, counter, sample, now == 32))
		return 1;
	if (now <= old + CUA__HISTOGRAM_HOT_LANES || sample == CUA__HISTOGRAM_NONE) {
		if (own->hot == CUA__HISTOGRAM_NO_HOT || old > 1)
			return 0;
		sample = CUA__HISTOGRAM_NO_HOT;
	}
	cua__histogram_hot_flush(j, own);
	own->hot = sample == CUA__HISTOGRAM_NO_HOT ? sample : sample / 4;
	own->hot_tiles = 0;
	return 0;
}

/* ---- traversal ---- */

CUA_FORCE uint64_t cua__histogram_load(size_t size, const void *x, uint64_t i)
{
	switch (size) {
	case 1: return ((const uint8_t *)x)[i];
	case 2: return ((const cua__raw16 *)x)[i];
	case 4: return ((const cua__raw32 *)x)[i];
	default: return ((const cua__raw64 *)x)[i];
	}
}

/* Element k of a pack. */
CUA_FORCE uint64_t cua__histogram_at(size_t size, const struct cua__histogram_pack *p, uint32_t k)
{
	switch (size) {
	case 1: return (p->word[k / 4] >> k % 4 * 8) & 0xff;
	case 2: return (p->word[k / 2] >> k % 2 * 16) & 0xffff;
	case 4: return p->word[k];
	default: return p->word[2 * k] | (uint64_t)p->word[2 * k + 1] << 32;
	}
}

/* Counts a pack. `together`: called by whole warps. */
CUA_FORCE void
cua__histogram_count_pack(enum cua_type type, enum cua__histogram_rule rule,
			  enum cua__histogram_layout layout, const struct cua__histogram_job *j,
			  const struct cua__histogram_edges *edges, struct cua__histogram_own *own,
			  const struct cua__histogram_pack *p, int together, uint32_t from)
{
	const uint32_t n = 16 / (uint32_t)cua__histogram_size(type);
	uint64_t raw[16];
	uint32_t counter[16], k;
	int skipped[16];

	CUA__UNROLL
	for (k = 0; k < n; k++)
		raw[k] = cua__histogram_at(16 / n, p, k);
	cua__histogram_find_counters(type, rule, layout, j, edges, n, raw, counter);
	if (!together || !cua__histogram_has_hot(layout)) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			cua__histogram_count_one(layout, j, own, counter[k]);
		return;
	}
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		counter[k] = cua__histogram_in_range(layout, own, counter[k]);
		skipped[k] = layout == CUA__COUNT_BYTES && counter[k] == CUA__HISTOGRAM_NONE;
	}
	if (cua__histogram_hot_choose(layout, j, own, n, counter, from))
		return;
	if (own->hot != CUA__HISTOGRAM_NO_HOT) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			/*
			 * Index in the hot set if below 4. Otherwise the shift yields 0; at * 8
			 * does not wrap, because a private histogram has too few counters.
			 */
			const uint32_t at = counter[k] ^ own->hot * 4;

			own->hot_n += cua_port_shl_u32(
				1, layout == CUA__COUNT_GLOBAL && at >= 4 ? 32 : at * 8);
			skipped[k] |= at < 4;
		}
		if (layout != CUA__COUNT_GLOBAL)
			cua__histogram_count_packed(layout, j, own, n, counter, skipped);
	} else if (layout != CUA__COUNT_GLOBAL) {
		/* here, `skipped` is constant except for BYTES */
		cua__histogram_count_packed(layout, j, own, n, counter, skipped);
	}
	if (layout == CUA__COUNT_GLOBAL) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			if (!skipped[k])
				cua__histogram_count(layout, j, own, counter[k]);
	}
}

/* Counts element i. May be called by any subset of lanes. */
CUA_FORCE void cua__histogram_count_single(enum cua_type type, enum cua__histogram_rule rule,
					   enum cua__histogram_layout layout,
					   const struct cua__histogram_job *j,
					   const struct cua__histogram_edges *edges,
					   const struct cua__histogram_own *own, uint64_t i)
{
	uint64_t raw = cua__histogram_load(cua__histogram_size(type), j->h.x, i);
	uint32_t counter;

	cua__histogram_find_counters(type, rule, layout, j, edges, 1, &raw, &counter);
	cua__histogram_count_one(layout, j, own, counter);
}

/*
 * Counts all elements of a single row without gaps and a single channel in the block's counters. A
 * tile is the elements that a block loads at once; each warp loads a contiguous part of it. The
 * next tile is loaded while a tile is counted.
 */
CUA_FORCE void cua__histogram_count_all(enum cua_type type, enum cua__histogram_rule rule,
					enum cua__histogram_layout layout,
					const struct cua__histogram_job *j,
					const struct cua__histogram_edges *edges,
					struct cua__histogram_own *own)
{
	const size_t size = cua__histogram_size(type);
	const uint32_t loads = CUA__HISTOGRAM_LOADS, thread = cua_port_thread();
	const uint32_t tile = cua_port_block_size() * loads;
	const uint32_t mine = thread / 32 * (32 * loads) + own->lane;
	const uint32_t member = (uint32_t)cua_port_block() / j->ranges,
		       members = j->blocks / j->ranges;
	const char *x = (const char *)j->h.x;
	uint64_t head = (16 - (uintptr_t)x % 16) % 16 / size, packs, full, i, n = j->h.n;
	const struct cua__histogram_pack *p;
	struct cua__histogram_pack now[CUA__HISTOGRAM_LOADS], next[CUA__HISTOGRAM_LOADS], rest;
	uint32_t l;

#ifndef __CUDA_ARCH__
	/* each element is loaded before it is read, but not every compiler sees that */
	memset(now, 0, sizeof(now));
	memset(next, 0, sizeof(next));
#endif
	if (head > n)
		head = n;
	packs = (n - head) * size / 16;
	full = packs / tile;
	/*
	 * The rest is less than a tile per block. If the layout has hot sets, the rest is counted
	 * without them, so it is kept as small as possible.
	 */
	if (!cua__histogram_has_hot(layout))
		full = full / members * members;
	p = (const struct cua__histogram_pack *)(const void *)(x + head * size);
	if (member < full) {
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			now[l] = p[(uint64_t)member * tile + mine + l * 32];
	}
	/* the counters are zero */
	cua_port_sync_block();

	/* elements before the first pack and after the last pack, singly */
	if (member == members - 1) {
		const uint64_t after = head + packs * (16 / size);

		if (thread < head)
			cua__histogram_count_single(type, rule, layout, j, edges, own, thread);
		if (thread < n - after)
			cua__histogram_count_single(type, rule, layout, j, edges, own,
						    after + thread);
	}
	CUA__NO_UNROLL
	for (i = full * tile + member * cua_port_block_size() + thread; i < packs;
	     i += members * cua_port_block_size()) {
		rest = p[i];
		cua__histogram_count_pack(type, rule, layout, j, edges, own, &rest, 0, 0);
	}
	if (member >= full)
		return;
	p += (uint64_t)member * tile + mine;
	for (i = member;; i += members) {
		const int more = i + members < full;

		p += (uint64_t)members * tile;
		if (more) {
			CUA__UNROLL
			for (l = 0; l < loads; l++)
				next[l] = p[l * 32];
		}
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			cua__histogram_count_pack(type, rule, layout, j, edges, own, &now[l], 1,
						  l * 11 + 3);
		if (cua__histogram_has_hot(layout))
			cua__histogram_hot_tick(j, own);
		if (!more)
			break;
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			now[l] = next[l];
	}
}

/* ---- the end of a block and of the kernel ---- */

/* Field k of a word. */
CUA_FORCE uint32_t cua__histogram_field(enum cua__histogram_layout layout, uint32_t word,
					uint32_t k)
{
	const uint32_t bits = cua__histogram_field_bits(layout);

	return bits == 32 ? word : (word >> k * bits) & (((uint32_t)1 << bits) - 1);
}

/* Stores the block's private histogram, or adds it to the sums. Called after a barrier. */
CUA_FORCE void cua__histogram_store_private(enum cua__histogram_layout layout,
					    const struct cua__histogram_job *j,
					    const uint32_t *words)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint32_t *row = j->privates + cua_port_block() * j->private_words;
	uint32_t i, k;

	for (i = thread; i < j->private_words; i += threads) {
		uint32_t v = 0;

		if (layout == CUA__COUNT_COLUMNS) {
			/*
			 * each lane starts in a different column, so that all banks are used at
			 * once
			 */
			for (k = 0; k < 32; k++)
				v += CUA_READ(words[i * 32 + (thread + k) % 32]);
		} else {
			v = CUA_READ(words[i]);
		}
		if (!j->sums)
			CUA_WRITE(row[i], v);
		else if (v)
			cua_port_add_u32(&j->sums[i], v, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GLOBAL);
	}
}

/*
 * For elements of 8 bits: turns the counts of values into counts of bins and sides. By a single
 * block.
 */
CUA_FORCE void cua__histogram_set_values(enum cua_type type, const struct cua__histogram_job *j,
					 const uint64_t *values)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t counters = j->h.bins + CUA_HISTOGRAM_SIDES;
	uint32_t i;

	if (j->h.rule == CUA__BIN_BYTE) {
		for (i = thread; i < counters; i += threads)
			cua__histogram_set(&j->h, !j->h.clear, i,
					   i < j->h.bins ? CUA_READ(values[i]) : 0);
		return;
	}
	if (j->h.clear)
		for (i = thread; i < counters; i += threads)
			cua__histogram_set(&j->h, 0, i, 0);
	cua_port_sync_block();
	for (i = thread; i < CUA__HISTOGRAM_BYTES; i += threads) {
		const uint64_t n = CUA_READ(values[i]);

		if (n)
			cua__histogram_add(&j->h, 0, cua__histogram_counter_any(type, j, i), n);
	}
}

/* Words of shared memory that cua__histogram_finish needs. */
CUA_FORCE uint32_t cua__histogram_finish_words(uint32_t threads, uint32_t counters)
{
	return 2 * (4 * threads > counters ? 4 * threads : counters);
}

/* Number of private histograms from which a thread loads at the same time. */
#define CUA__HISTOGRAM_IN_FLIGHT 9u

/*
 * Adds the private histograms, in packs of pack_words words. Thread group g adds the histograms of
 * blocks g, g + groups, ... and stores the result at sums[g * private_words].
 */
CUA_FORCE void cua__histogram_add_privates(uint32_t pack_words, const struct cua__histogram_job *j,
					   uint32_t groups, uint64_t *sums)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t packs = j->private_words / pack_words, group = thread / packs;
	const uint32_t *privates = j->privates;
	uint32_t pack = groups == 1 ? thread : group < groups ? thread % packs : packs;
	uint32_t block = groups == 1 ? 0 : group, first = block, r, k;
	uint64_t sum[4] = {0, 0, 0, 0};

	while (pack < packs) {
		struct cua__histogram_pack v[CUA__HISTOGRAM_IN_FLIGHT];
		uint32_t next_pack = pack, next_block = block;

		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_IN_FLIGHT; r++) {
			const uint64_t at = ((uint64_t)next_block * packs + next_pack) * pack_words;

			CUA__UNROLL
			for (k = 0; k < 4; k++)
				v[r].word[k] = 0;
			if (next_pack < packs) {
				if (pack_words == 4)
					v[r] = CUA_READ(*(const struct cua__histogram_pack
								  *)(const void *)&privates[at]);
				else
					v[r].word[0] = CUA_READ(privates[at]);
			}
			next_block += groups;
			if (next_block >= j->blocks) {
				next_block = first;
				next_pack += threads;
			}
		}
		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_IN_FLIGHT; r++) {
			CUA__UNROLL
			for (k = 0; k < pack_words; k++)
				sum[k] += v[r].word[k];
			block += groups;
			if (block < j->blocks)
				continue;
			if (pack < packs) {
				CUA__UNROLL
				for (k = 0; k < pack_words; k++)
					CUA_WRITE(sums[first * j->private_words +
						       pack * pack_words + k],
						  sum[k]);
			}
			CUA__UNROLL
			for (k = 0; k < pack_words; k++)
				sum[k] = 0;
			block = first;
			pack += threads;
		}
	}
}

/* Whether the block is the last to arrive. All of its threads get the same answer. */
CUA_FORCE int cua__histogram_is_last(const struct cua__histogram_job *j, uint32_t *shared)
{
	int is_last;

	cua_port_sync_block();
	if (cua_port_thread() == 0)
		CUA_WRITE(shared[0], (uint32_t)cua__finish_arrive(j->finish, j->blocks));
	cua_port_sync_block();
	is_last = CUA_READ(shared[0]) != 0;
	cua_port_sync_block();
	return is_last;
}

/*
 * Turns the sums into counts and resets them to zero. With VALUE, copies them to 64-bit numbers in
 * shared memory instead.
 */
CUA_FORCE void cua__histogram_merge_sums(enum cua__histogram_rule rule,
					 const struct cua__histogram_job *j, uint64_t *values)
{
	const uint32_t threads = cua_port_block_size(), counters = j->private_words;
	uint32_t v[CUA__HISTOGRAM_IN_FLIGHT], first, i, k;

	for (first = cua_port_thread(); first < counters;
	     first += threads * CUA__HISTOGRAM_IN_FLIGHT) {
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_IN_FLIGHT; k++) {
			i = first + k * threads;
			v[k] = i < counters ? CUA_READ(j->sums[i]) : 0;
		}
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_IN_FLIGHT; k++) {
			i = first + k * threads;
			if (i >= counters)
				continue;
			if (v[k])
				CUA_WRITE(j->sums[i], 0);
			if (rule == CUA__RULE_VALUE)
				CUA_WRITE(values[i], v[k]);
			else
				cua__histogram_set(&j->h, !j->h.clear, i, v[k]);
		}
	}
}

/*
 * Merges the private histograms of all blocks, in the block that arrives last. Counters are words.
 */
CUA_FORCE void cua__histogram_finish(enum cua_type type, enum cua__histogram_rule rule,
				     const struct cua__histogram_job *j, uint32_t *shared)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t counters = j->private_words, blocks = j->blocks;
	uint64_t *sums = (uint64_t *)(void *)shared;
	/* 4 counters at once, if the private histograms are aligned */
	const int packed = counters % 4 == 0 &&
			   (uintptr_t)j->privates % sizeof(struct cua__histogram_pack) == 0;
	const uint32_t packs = packed ? counters / 4 : counters;
	uint32_t groups = packs < threads ? threads / packs : 1, i, b;

	if (!cua__histogram_is_last(j, shared))
		return;
	if (j->sums) {
		cua__histogram_merge_sums(rule, j, sums);
		if (rule == CUA__RULE_VALUE) {
			cua_port_sync_block();
			cua__histogram_set_values(type, j, sums);
		}
		return;
	}
	if (groups > blocks)
		groups = blocks;
	if (packed)
		cua__histogram_add_privates(4, j, groups, sums);
	else
		cua__histogram_add_privates(1, j, groups, sums);
	cua_port_sync_block();
	for (i = thread; i < counters; i += threads) {
		uint64_t sum = CUA_READ(sums[i]);

		for (b = 1; b < groups; b++)
			sum += CUA_READ(sums[b * counters + i]);
		if (rule == CUA__RULE_VALUE)
			CUA_WRITE(sums[i], sum);
		else
			cua__histogram_set(&j->h, !j->h.clear, i, sum);
	}
	if (rule == CUA__RULE_VALUE) {
		cua_port_sync_block();
		cua__histogram_set_values(type, j, sums);
	}
}

/* State of a block. The edges and counters that it points to are in shared memory. */
struct cua__histogram_block {
	struct cua__histogram_edges edges;
	struct cua__histogram_own own;
};

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

	cua__histogram_count_all(type, rule, layout, j, &block->edges, own);
	if (cua__histogram_has_hot(layout)) {
		cua_port_sync_warp(CUA__HISTOGRAM_FULL);
		cua__histogram_hot_flush(j, own);
	}
	if (layout == CUA__COUNT_GLOBAL)
		return;
	cua_port_sync_block();
	cua__histogram_store_private(layout, j, own->words);
	if (j->finish_here && (layout == CUA__COUNT_COLUMNS || layout == CUA__COUNT_WORDS))
		cua__histogram_finish(type, rule, j, own->words);
}

/*
 * Merges the private histograms; each block merges 32 words of them. `add`: adds to the present
 * counts. Each warp needs 32 * per_word 64-bit words of `shared`.
 */
CUA_FORCE void cua__histogram_merge(enum cua__histogram_layout layout,
				    const struct cua__histogram_job *j, int add, uint64_t *shared)
{
	const uint32_t per_word = cua__histogram_per_word(layout);
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / 32;
	const uint32_t warps = cua_port_block_size() / 32;
	const uint32_t pieces = (j->private_words + 31) / 32; /* of a private histogram */
	const uint32_t range = (uint32_t)(cua_port_block() / pieces);
	const uint32_t word = (uint32_t)(cua_port_block() % pieces) * 32 + lane;
	const uint32_t first = range * j->range_counters;
	const uint32_t *at = j->privates + word;
	uint64_t sum[4] = {0, 0, 0, 0};
	uint32_t k, b, w;

	if (word < j->private_words) {
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
		for (b = range + warp * j->ranges; b < j->blocks; b += warps * j->ranges) {
			const uint32_t v = CUA_READ(at[(uint64_t)b * j->private_words]);

			CUA__UNROLL
			for (k = 0; k < per_word; k++)
				sum[k] += cua__histogram_field(layout, v, k);
		}
	}
	CUA__UNROLL
	for (k = 0; k < per_word; k++)
		CUA_WRITE(shared[(warp * per_word + k) * 32 + lane], sum[k]);
	cua_port_sync_block();
	/* one thread per counter */
	for (k = warp; k < per_word; k += warps) {
		const uint32_t counter = word * per_word + k;
		uint64_t all = 0;

		for (w = 0; w < warps; w++)
			all += CUA_READ(shared[(w * per_word + k) * 32 + lane]);
		if (word < j->private_words && counter < j->range_counters &&
		    first + counter < j->counters)
			cua__histogram_set(&j->h, add, first + counter, all);
	}
}

/* ---- the choice of a kernel and its parameters ---- */

#ifndef CUA__HISTOGRAM_BLOCK
#define CUA__HISTOGRAM_BLOCK 1024u
#endif
/* For arrays that would keep only a few large blocks busy. */
#ifndef CUA__HISTOGRAM_SMALL_BLOCK
#define CUA__HISTOGRAM_SMALL_BLOCK 512u
#endif
#ifndef CUA__HISTOGRAM_SMALL_BYTES
#define CUA__HISTOGRAM_SMALL_BYTES ((uint64_t)4 << 20)
#endif
/*
 * For such arrays: 16-byte packs per thread, as long as there are free processors; and the maximum
 * number of additions that all blocks make to the sums.
 */
#define CUA__HISTOGRAM_SMALL_LOADS 2u
#define CUA__HISTOGRAM_MOST_ADDED 300000u
#define CUA__HISTOGRAM_SMALL_COUNTERS 1024u
/* Maximum number of counters in COLUMNS: 256 bins and the sides. */
#ifndef CUA__HISTOGRAM_COLUMN_COUNTERS
#define CUA__HISTOGRAM_COLUMN_COUNTERS 260u
#endif
/* Maximum number of ranges; the blocks of each range read all elements. */
#define CUA__HISTOGRAM_RANGES 16u
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
	size_t shared;  /* of shared memory */
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

			key32 = key32 >> 31 ? key32 ^ 0x80000000u : ~key32;
			key64 = key64 >> 63 ? key64 ^ 0x8000000000000000u : ~key64;
			memcpy(i ? &job->most_f32 : &job->least_f32, &key32, sizeof(key32));
			memcpy(i ? &job->most_f64 : &job->least_f64, &key64, sizeof(key64));
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
	if (rule == CUA__RULE_EDGES || cua__histogram_size(type) == 2)
		return 0;
	return layout == CUA__COUNT_HALVES || cua__histogram_size(type) == 4;
}

/* Chooses rule, layout and counters. Returns 0 if only the general kernel fits. */
static inline int cua__histogram_choose(const struct cua__histogram *h, uint32_t processors,
					size_t shared_bytes, struct cua__histogram_plan *p)
{
	struct cua__histogram_job *job = &p->job;
	const size_t size = cua__histogram_size(h->type),
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

		if (ranges > CUA__HISTOGRAM_RANGES || ranges > processors)
			p->layout = CUA__COUNT_GLOBAL;
		else
			job->ranges = (uint32_t)ranges;
	}
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
	const uint64_t bytes = h->n * cua__histogram_size(h->type);
	const int is_small = bytes <= CUA__HISTOGRAM_SMALL_BYTES;
	uint64_t blocks;
	size_t words, merging;

	memset(p, 0, sizeof(*p));
	if (cua__histogram_is_signed(h->type) && h->type != CUA_I64)
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
	words = cua__histogram_words(p->layout, job->range_counters);
	job->private_words = p->layout == CUA__COUNT_COLUMNS ? job->counters : (uint32_t)words;
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

/* Number of blocks of cua__histogram_merge. */
static inline uint32_t cua__histogram_merges(const struct cua__histogram_job *job)
{
	return (job->private_words + 31) / 32 * job->ranges;
}

/* ---- general kernel: rows with gaps, channels, weights, and strategies chosen by the user ---- */

/* Elements that a thread has in flight. */
#define CUA__HISTOGRAM_AT_ONCE 4u

struct cua__histogram_any {
	uint32_t *words;   /* the block's private counters, each a word, or two with weights */
	uint32_t own_bins; /* private bins of each channel; 0: none */
	/* AGGREGATED: counter and total of the present run of equal counters */
	uint32_t last[CUA_HISTOGRAM_MAX_CHANNELS];
	uint64_t run[CUA_HISTOGRAM_MAX_CHANNELS];
};

/* Adds n to a counter of a channel. */
CUA_FORCE void cua__histogram_any_add(const struct cua__histogram *h,
				      const struct cua__histogram_any *a, uint32_t channel,
				      uint32_t counter, uint64_t n)
{
	uint32_t *own, old;
	int is_side = counter >= h->bins;

	if (!a->own_bins || (counter >= a->own_bins && !is_side)) {
		cua__histogram_add(h, channel, counter, n);
		return;
	}
	if (is_side)
		counter = a->own_bins + (counter - h->bins);
	counter += channel * (a->own_bins + CUA_HISTOGRAM_SIDES);
	if (!h->weight_type) {
		cua_port_add_u32(&a->words[counter], (uint32_t)n, CUA_RELAXED, CUA_SCOPE_BLOCK,
				 CUA_SPACE_SHARED);
		return;
	}
	/*
	 * A 64-bit counter is two words. Exactly one addition sees each carry of the lower word,
	 * and adds it to the upper word.
	 */
	own = &a->words[counter * 2];
	old = cua_port_fetch_add_u32(own, (uint32_t)n, CUA_RELAXED, CUA_SCOPE_BLOCK,
				     CUA_SPACE_SHARED);
	old = (uint32_t)(n >> 32) + (old + (uint32_t)n < old);
	if (old)
		cua_port_add_u32(own + 1, old, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
}

/* The amount that element i adds to its counter. Returns 0 if its weight is refused. */
CUA_FORCE int cua__histogram_weight(const struct cua__histogram *h, uint64_t i, uint64_t *n)
{
	double v;

	switch (h->weight_type) {
	case CUA_I32: *n = (uint64_t)(int64_t)((const int32_t *)h->weights)[i]; return 1;
	case CUA_U32: *n = ((const uint32_t *)h->weights)[i]; return 1;
	case CUA_I64:
	case CUA_U64: *n = ((const uint64_t *)h->weights)[i]; return 1;
	case CUA_F32: v = cua_port_cvt_f64_f32(((const float *)h->weights)[i]); break;
	case CUA_F64: v = ((const double *)h->weights)[i]; break;
	default: *n = 1; return 1;
	}
	if (!(v >= -h->weight_limit && v <= h->weight_limit))
		return 0;
	*n = (uint64_t)cua__histogram_units(v, h->per_unit);
	return 1;
}

CUA_FORCE void cua__histogram_any_flush(const struct cua__histogram *h,
					const struct cua__histogram_any *a)
{
	const uint32_t each = a->own_bins + CUA_HISTOGRAM_SIDES;
	uint32_t i;

	cua_port_sync_block();
	for (i = cua_port_thread(); i < each * h->counted; i += cua_port_block_size()) {
		uint32_t counter = i % each;
		uint64_t n = h->weight_type ? CUA_READ(a->words[2 * i]) |
						      (uint64_t)CUA_READ(a->words[2 * i + 1]) << 32
					    : CUA_READ(a->words[i]);

		if (n)
			cua__histogram_add(h, i / each,
					   counter < a->own_bins ? counter
								 : counter - a->own_bins + h->bins,
					   n);
	}
}

CUA_FORCE void cua__histogram_any_kernel(enum cua_type type, const struct cua__histogram_job *j,
					 uint32_t own_bins, uint32_t *shared)
{
	const size_t size = cua__histogram_size(type);
	const struct cua__histogram *h = &j->h;
	const uint64_t threads = cua_port_grid_size() * cua_port_block_size();
	const uint64_t thread = cua_port_block() * cua_port_block_size() + cua_port_thread();
	const int blocked = h->strategy == CUA_HISTOGRAM_BLOCKED;
	const int aggregated = h->strategy == CUA_HISTOGRAM_AGGREGATED;
	const uint64_t each = h->n / threads, more = h->n % threads;
	const uint64_t end =
		blocked ? each * (thread + 1) + (thread < more ? thread + 1 : more) : h->n;
	const uint64_t step = blocked ? 1 : threads;
	const uint64_t step_rows = step / h->width, step_columns = step % h->width;
	uint64_t i = blocked ? each * thread + (thread < more ? thread : more) : thread;
	uint64_t row = i / h->width, column = i % h->width;
	const uint32_t words =
		own_bins ? (own_bins + CUA_HISTOGRAM_SIDES) * h->counted * (h->weight_type ? 2 : 1)
			 : 0;
	const int is_small = type == CUA_U8 || type == CUA_U16 || type == CUA_U32;
	const uint64_t top = is_small ? j->bias >> (32 - size * 8) : 0;
	struct cua__histogram_any a;
	uint32_t w, c;

	a.words = shared;
	a.own_bins = own_bins;
	CUA__UNROLL
	for (c = 0; c < CUA_HISTOGRAM_MAX_CHANNELS; c++)
		a.run[c] = a.last[c] = 0;
	for (w = cua_port_thread(); w < words; w += cua_port_block_size())
		CUA_WRITE(shared[w], 0);
	cua_port_sync_block();
	while (i < end) {
		uint64_t raw[CUA__HISTOGRAM_AT_ONCE][CUA_HISTOGRAM_MAX_CHANNELS];
		uint64_t n[CUA__HISTOGRAM_AT_ONCE];
		int is[CUA__HISTOGRAM_AT_ONCE], accepted[CUA__HISTOGRAM_AT_ONCE];
		uint32_t u;

		CUA__UNROLL
		for (u = 0; u < CUA__HISTOGRAM_AT_ONCE; u++) {
			const char *at =
				(const char *)h->x + row * h->pitch + column * h->channels * size;

			is[u] = i < end;
			accepted[u] = 0;
			n[u] = 0;
			if (is[u])
				accepted[u] = cua__histogram_weight(h, i, &n[u]);
			CUA__UNROLL
			for (c = 0; c < CUA_HISTOGRAM_MAX_CHANNELS; c++)
				raw[u][c] = is[u] && c < h->counted
						    ? (cua__histogram_load(size, at, c) ^ top) - top
						    : 0;
			i += step;
			row += step_rows;
			column += step_columns;
			if (column >= h->width) {
				column -= h->width;
				row++;
			}
		}
		CUA__UNROLL
		for (u = 0; u < CUA__HISTOGRAM_AT_ONCE; u++) {
			CUA__UNROLL
			for (c = 0; c < CUA_HISTOGRAM_MAX_CHANNELS; c++) {
				uint64_t add = n[u];
				uint32_t counter;

				if (!is[u] || c >= h->counted)
					continue;
				counter = cua__histogram_counter_any(type, j, raw[u][c]);
				if (counter >= h->bins)
					add = 1;
				else if (!accepted[u])
					counter = h->bins + CUA_HISTOGRAM_REFUSED, add = 1;
				if (!aggregated) {
					cua__histogram_any_add(h, &a, c, counter, add);
					continue;
				}
				if (counter != a.last[c]) {
					if (a.run[c])
						cua__histogram_any_add(h, &a, c, a.last[c],
								       a.run[c]);
					a.last[c] = counter;
					a.run[c] = 0;
				}
				a.run[c] += add;
			}
		}
	}
	CUA__UNROLL
	for (c = 0; c < CUA_HISTOGRAM_MAX_CHANNELS; c++)
		if (a.run[c])
			cua__histogram_any_add(h, &a, c, a.last[c], a.run[c]);
	if (own_bins)
		cua__histogram_any_flush(h, &a);
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_KERNEL_H */
