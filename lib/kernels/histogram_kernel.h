/* SPDX-License-Identifier: MIT */
/*
 * The kernels of histograms. Every thread of a grid calls these functions; cuda/cuda_histogram.cu
 * makes kernels of them. type, rule and counter are compile-time constants there.
 *
 * A slot is a bin of the histogram, or one of the CUA_HISTOGRAM_SIDES counts after the bins. Every
 * element has a slot, so counting needs no branch. The kind of counter says where an element is
 * counted:
 *
 *     COLUMNS  each lane has a private column of slots. The lanes of a warp never share a bank of
 *              shared memory, whatever the data.
 *     WORDS    a slot is a word of shared memory, incremented by 1. The hardware aggregates the
 *              increments of equal lanes.
 *     HALVES   a counter word holds two slots.
 *     BYTES    a counter word holds four slots. They may be divided into ranges, each counted by
 *              its own blocks.
 *     GLOBAL   a slot is the count itself, in global memory.
 *
 * With HALVES and BYTES, the part of a slot's count that does not fit its field is in the count
 * itself.
 *
 * The last three would be slow if many lanes had the same slot. So a warp counts a hot group of 4
 * slots in registers. A group becomes hot if enough lanes of a sample are in it. If all elements of
 * a warp have the same slot, they are added at once.
 *
 * A field of HALVES or BYTES may overflow and carry into the next field. Every addition to a word
 * gets its old bits, and settles its own effect: if a field changed by a wrong amount, the addition
 * adds the difference to the counts. So field and count together are right after each settled
 * addition, whatever else is in flight. At the end of the block all additions are settled. An
 * addition has nothing to settle if no top bit is set before or after it. Only the addition that
 * raises a field above its top bit subtracts that bit again, so few additions do.
 *
 * Scope: blocks of one device. A block has a multiple of 32 threads. Shared memory is passed as
 * words.
 *
 * Progress: no block waits for another block.
 *
 * Argument: atomics change a block's slots between two barriers. Each slot has a single writer
 *   before them and a single reader after them. A block stores its result as a private histogram in
 *   scratch memory, or adds it to sums shared by all blocks, by relaxed additions at device scope.
 *   A later launch merges the results, or the block that arrives last. Thread 0 of a block arrives
 *   after a barrier, with acquire and release at device scope (cua__finish_arrive of
 *   cuatomic/reduce.h). So the last block has acquired all private histograms and all additions,
 *   and the next barrier passes them on to its threads. No block adds to the sums then, so the last
 *   block may reset them by plain stores. The next launch sees these stores.
 */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_KERNEL_H
#define CUATOMIC_KERNELS_HISTOGRAM_KERNEL_H

#include "backend/histogram_backend.h"

#define CUA__HISTOGRAM_FULL 0xffffffffu
/* 16-byte packs that a thread keeps in flight. */
#ifndef CUA__HISTOGRAM_LOADS
#define CUA__HISTOGRAM_LOADS 4u
#endif
#ifdef __CUDA_ARCH__
#define CUA__NO_UNROLL _Pragma("unroll 1")
#else
#define CUA__NO_UNROLL
#endif
#ifndef CUA__HISTOGRAM_BYTES
#define CUA__HISTOGRAM_BYTES 256u /* slots if 8-bit elements are counted by value */
#endif

enum cua__histogram_counter {
	CUA__COUNT_COLUMNS,
	CUA__COUNT_WORDS,
	CUA__COUNT_HALVES,
	CUA__COUNT_BYTES,
	CUA__COUNT_GLOBAL
};

/* How the slot of an element is found. */
enum cua__histogram_rule {
	CUA__RULE_VALUE, /* 8-bit elements: the value itself */
	/* integers of at most 32 bits whose range is within the type; floats without a factor */
	CUA__RULE_EVEN_FAST,
	CUA__RULE_EVEN, /* all types and ranges */
	CUA__RULE_EDGES /* edges, with a guide in shared memory */
};

/* A pack: 16 bytes of elements. */
struct cua__histogram_pack {
	uint32_t word[4];
} __attribute__((aligned(16), may_alias));

/* The kernels' parameter. */
struct cua__histogram_job {
	struct cua__histogram h;
	/*
	 * the top bit for signed integers of at most 32 bits, else 0; it lets kernels for unsigned
	 * types serve signed types
	 */
	uint32_t bias;
	/* EVEN_FAST only */
	uint32_t lower, last;
	int whole_bins; /* each integer has exactly range.whole bins, and no clamp is needed */
	uint32_t last_bin;
	float least_f32, most_f32;
	double least_f64, most_f64;
	uint32_t levels;        /* EDGES: log2(bins) rounded up, at least 1 */
	uint32_t cells;         /* cells of the guide to the edges */
	uint32_t edge_words;    /* words of the edges and the guide in shared memory */
	uint32_t slots;         /* total number of slots */
	uint32_t ranges;        /* block b counts range b % ranges */
	uint32_t range_slots;   /* slots of each range except perhaps the last */
	uint32_t private_words; /* words of a private histogram in scratch memory */
	uint32_t blocks;
	int finish_here; /* the last block merges the private histograms */
	struct cua_finish *finish;
	uint32_t *privates;
	/* NULL, or zeros to which the blocks add instead of storing private histograms */
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

/* Adds to the count of a slot of a channel, atomically. */
CUA_FORCE void cua__histogram_add(const struct cua__histogram *h, uint32_t channel, uint32_t slot,
				  uint64_t n)
{
	if (slot < h->bins)
		cua__histogram_add_counts(h, (uint64_t)channel * h->bins + slot, n);
	else if (h->outside)
		cua_port_add_u64(&h->outside[channel * CUA_HISTOGRAM_SIDES + (slot - h->bins)], n,
				 CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Sets the count of a slot, or adds to it; no other thread may write it. */
CUA_FORCE void cua__histogram_put(const struct cua__histogram *h, int add, uint32_t slot,
				  uint64_t n)
{
	uint64_t *outside = h->outside;

	if (slot < h->bins && h->count_type == CUA_U32) {
		uint32_t *count = &((uint32_t *)h->counts)[slot];

		CUA_WRITE(*count, (add ? CUA_READ(*count) : 0) + (uint32_t)n);
	} else if (slot < h->bins) {
		uint64_t *count = &((uint64_t *)h->counts)[slot];

		CUA_WRITE(*count, (add ? CUA_READ(*count) : 0) + n);
	} else if (outside) {
		outside += slot - h->bins;
		CUA_WRITE(*outside, (add ? CUA_READ(*outside) : 0) + n);
	}
}

/* ---- the slot of an element ---- */

/* Properties of types, which the compiler folds if the type is a constant. */
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

/* A float element of at most 32 bits as f32; exact. */
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

/* An integer element, sign-extended. */
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
 * Computes bins as if all elements were in the range, then corrects the elements outside to their
 * sides. `whole_bins` is that of the job, or 0; 0 gives the same result in more steps.
 */
CUA_FORCE void cua__histogram_slots_even_fast(enum cua_type type, int whole_bins,
					      const struct cua__histogram_job *j, uint32_t n,
					      const uint64_t *raw, uint32_t *slot)
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
			/* a GPU converts any float to an integer without undefined behaviour */
			x = cua__histogram_is_in_fast(type, j, raw[k]) ? x : r->origin;
#endif
			/* cua__histogram_float_bin, without a factor */
			slot[k] = (uint32_t)cua_port_mul_rn_f64(cua_port_sub_rn_f64(x, r->origin),
								r->scale);
		}
	} else if (whole_bins) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			slot[k] = ((uint32_t)cua__histogram_as_i64(type, raw[k]) - j->lower) *
				  (uint32_t)r->whole;
	} else if (part_low == 0) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t d = (uint32_t)cua__histogram_as_i64(type, raw[k]) - j->lower;

			slot[k] = d * r->whole + (uint32_t)(((uint64_t)d * part_high) >> 32);
		}
	} else {
		/* cua__histogram_narrow_bin, of a 32-bit number */
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t d = (uint32_t)cua__histogram_as_i64(type, raw[k]) - j->lower;

			slot[k] = d * r->whole + (uint32_t)(((uint64_t)d * part_high +
							     (((uint64_t)d * part_low) >> 32)) >>
							    32);
		}
	}
	if (cua__histogram_is_float(type) || !whole_bins) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			slot[k] = slot[k] < j->last_bin ? slot[k] : j->last_bin;
	}
	if (out) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			if (!cua__histogram_is_in_fast(type, j, raw[k]))
				slot[k] = r->bins + cua__histogram_side_fast(type, j, raw[k]);
	}
}

CUA_FORCE uint32_t cua__histogram_slot_even(enum cua_type type, const struct cua__histogram_job *j,
					    uint64_t raw)
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

/* The 32-bit or 64-bit key by which an element is compared with the edges. */
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
 * Edges are found through a guide. The range is divided into cells. The guide holds for each cell
 * the number of inner edges in lower cells. That leaves the few edges in the element's own cell,
 * which a binary search compares.
 *
 * The map from values to cells must be monotonic and the same for elements and edges. Then an edge
 * in a lower cell is not above the element, and an edge in a higher cell is. The map is either the
 * difference of keys, shifted right, or for floats a line. The block chooses the map with fewer
 * edges in a cell.
 *
 * Elements in cells without an edge all load the same edge, because a warp serializes lanes that
 * load different edges from the same bank.
 */
struct cua__histogram_edges {
	/*
	 * In shared memory: edges[i] is edge i, 1 <= i < bins. edges[bins] is a sentinel, not below
	 * any value. Their form is the bits of floats if by_value, else the difference of their
	 * keys from the first edge's key.
	 */
	const void *edges;
	const cua__raw16 *guide;
	int by_value;
	int empty; /* the range is empty */
	/*
	 * first step of the binary search: half of a power of two that exceeds the edges of any
	 * cell
	 */
	uint32_t first_step;
	uint32_t shift; /* right shift from a key difference to its cell */
	uint64_t first,
		/* key of the first edge, and difference from it to the last key in the range */
		span;
	uint64_t least, most; /* lowest and highest key in the range */
	uint64_t from, to;    /* bits of the lowest and highest float in the range */
	float scale_f32;
	double scale_f64;
};

/* Flag of a guide entry: the cell has no edge. */
#define CUA__HISTOGRAM_NO_EDGE 0x8000u
/* Fewest cells of a guide; a power of two. */
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

/* The i-th key of the edges. */
CUA_FORCE uint64_t cua__histogram_key(enum cua_type type, const void *keys, uint32_t i)
{
	return cua__histogram_key_bytes(type) == 8 ? ((const uint64_t *)keys)[i]
						   : ((const uint32_t *)keys)[i];
}

/* Bits of the f64 or f32 with that key. */
CUA_FORCE uint64_t cua__histogram_float_of_key(enum cua_type type, uint64_t key)
{
	if (type == CUA_F64)
		return key >> 63 ? key ^ 0x8000000000000000u : ~key;
	return (uint32_t)(key >> 31 ? key ^ 0x80000000u : ~key);
}

/* An edge in its shared-memory form. */
CUA_FORCE uint64_t cua__histogram_edge_of_key(enum cua_type type, int by_value,
					      const struct cua__histogram_edges *e, uint64_t key)
{
	return by_value ? cua__histogram_float_of_key(type, key) : key - e->first;
}

/* The cell of an element in the range or of an edge, both in the shared-memory form. */
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

/* An element in the shared-memory form, clamped to the range; sets *out if it was outside. */
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

/* Whether the line is usable; computes its slope. */
CUA_FORCE int cua__histogram_line(enum cua_type type, const struct cua__histogram_job *j,
				  uint64_t last_key, struct cua__histogram_edges *e)
{
	const uint64_t last = cua__histogram_float_of_key(type, last_key);
	double d;
	float f;

	if (!cua__histogram_is_float(type) || e->empty)
		return 0;
	/* infinities and NaN fail these comparisons */
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
 * The base-2 logarithm of the least power of two above the number of edges in any cell, of the
 * cells that this thread examines. The keys of the edges are in shared memory.
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

/*
 * The number of edges in cells below c. It is known to be at least i and at most i + 2 * w - 1; w
 * is a power of two.
 */
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

/* Converts the keys in shared memory to the chosen form, and builds the guide. */
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
		next = cua__histogram_edges_before(type, by_value, j, e, shared, i, e->first_step,
						   c + 1);
		two = two >> 16 | (i | (i == next ? CUA__HISTOGRAM_NO_EDGE : 0)) << 16;
		if (c % 2)
			CUA_WRITE(guide[c / 2], two);
		i = next;
	}
	cua_port_sync_block();
}

/* Called by all threads of the block; ends with a barrier. */
CUA_FORCE void cua__histogram_edges_build(enum cua_type type, const struct cua__histogram_job *j,
					  const void *keys, uint32_t *shared,
					  struct cua__histogram_edges *e)
{
	/*
	 * in the guide's room: flags of the threads' results of
	 * cua__histogram_max_edges_log2, by keys and by the line
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
	/* no key is below 0 */
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
	e->first_step = ((uint32_t)1 << max_edges_log2[e->by_value]) / 2;
	if (cua__histogram_is_float(type) && e->by_value)
		cua__histogram_guide_build(type, 1, j, shared, e);
	else
		cua__histogram_guide_build(type, 0, j, shared, e);
}

/* Performs each step for all n elements, so that the loads of a step are in flight together. */
CUA_FORCE int cua__histogram_search(enum cua_type type, int by_value, uint32_t bins,
				    const struct cua__histogram_edges *e, uint32_t n,
				    const uint64_t *raw, uint32_t *slot)
{
	uint64_t v[16];
	uint32_t k, w;
	int out = e->empty;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		v[k] = cua__histogram_into_range(type, by_value, e, raw[k], &out);
		slot[k] = CUA_READ(e->guide[cua__histogram_cell(type, by_value, e, v[k])]);
	}
	CUA__NO_UNROLL
	for (w = e->first_step; w; w /= 2) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t i = slot[k] + w < bins ? slot[k] + w : bins;

			slot[k] += cua__histogram_not_below(type, by_value, v[k],
							    cua__histogram_edge(type, e->edges, i))
					   ? w
					   : 0;
		}
	}
	return out;
}

/* The slots of n elements. */
CUA_FORCE void cua__histogram_slots_guided(enum cua_type type, const struct cua__histogram_job *j,
					   const struct cua__histogram_edges *e, uint32_t n,
					   const uint64_t *raw, uint32_t *slot)
{
	uint32_t k;
	int out;

	if (cua__histogram_is_float(type) && e->by_value)
		out = cua__histogram_search(type, 1, j->h.bins, e, n, raw, slot);
	else
		out = cua__histogram_search(type, 0, j->h.bins, e, n, raw, slot);
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		slot[k] &= CUA__HISTOGRAM_NO_EDGE - 1;
		slot[k] = slot[k] < j->last_bin ? slot[k] : j->last_bin;
	}
	if (!out)
		return;
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		const uint64_t key = cua__histogram_edge_key(type, raw[k]);
		const int below = key < e->least;

		if (cua__histogram_is_nan(type, raw[k]))
			slot[k] = j->h.bins + CUA_HISTOGRAM_NAN;
		else if (e->empty ? !below : key > e->most)
			slot[k] = j->h.bins + CUA_HISTOGRAM_ABOVE;
		else if (below)
			slot[k] = j->h.bins + CUA_HISTOGRAM_BELOW;
	}
}

/* The slot of an element without a guide. */
CUA_FORCE uint32_t cua__histogram_slot_edges(enum cua_type type, const struct cua__histogram_job *j,
					     uint64_t raw)
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

/* The slots of n elements, at most 16. */
CUA_FORCE void cua__histogram_slots(enum cua_type type, enum cua__histogram_rule rule,
				    enum cua__histogram_counter counter,
				    const struct cua__histogram_job *j,
				    const struct cua__histogram_edges *edges, uint32_t n,
				    const uint64_t *raw, uint32_t *slot)
{
	uint32_t k;

	if (rule == CUA__RULE_EDGES) {
		cua__histogram_slots_guided(type, j, edges, n, raw, slot);
		return;
	}
	if (rule == CUA__RULE_EVEN_FAST) {
		/* GLOBAL is bound by its atomics, and uniform data are slower with whole_bins */
		cua__histogram_slots_even_fast(type, counter != CUA__COUNT_GLOBAL && j->whole_bins,
					       j, n, raw, slot);
		return;
	}
	CUA__UNROLL
	for (k = 0; k < n; k++)
		slot[k] = rule == CUA__RULE_VALUE ? (uint32_t)raw[k]
						  : cua__histogram_slot_even(type, j, raw[k]);
}

/* By the histogram's rule, not a compile-time constant here. */
CUA_FORCE uint32_t cua__histogram_slot_any(enum cua_type type, const struct cua__histogram_job *j,
					   uint64_t raw)
{
	if (j->h.rule == CUA__BIN_EVEN)
		return cua__histogram_slot_even(type, j, raw);
	if (j->h.rule == CUA__BIN_EDGES)
		return cua__histogram_slot_edges(type, j, raw);
	if (j->h.rule == CUA__BIN_LETTER) {
		uint32_t bin = cua_histogram_letter_bin((uint32_t)raw);

		return bin != CUA_HISTOGRAM_NO_BIN
			       ? bin
			       : j->h.bins + cua_histogram_letter_side((uint32_t)raw);
	}
	return (uint32_t)raw;
}

/* ---- counters ---- */

struct cua__histogram_own {
	uint32_t *words; /* the block's counter words */
	uint32_t lane;
	/* the slots that this block counts */
	uint32_t first, slots;
	/*
	 * The warp's hot group: slots 4 * hot to 4 * hot + 3 of the range. This lane's counts of
	 * them are 8-bit fields of hot_n. hot_even (slots 0 and 2) and hot_odd (slots 1 and 3) hold
	 * earlier counts in 16-bit fields.
	 */
	uint32_t hot, hot_n, hot_even, hot_odd;
	uint32_t hot_tiles; /* tiles since the last flush */
};

#define CUA__HISTOGRAM_NONE 0xffffffffu   /* a slot of another range */
#define CUA__HISTOGRAM_NO_HOT 0xfffffffeu /* no hot group */
/* A group replaces the hot group if it has more than that many lanes more. */
#ifndef CUA__HISTOGRAM_HOT_LANES
#define CUA__HISTOGRAM_HOT_LANES 5u
#endif
/* Tiles until the 8-bit fields are widened to 16 bits, and until these are flushed. */
#define CUA__HISTOGRAM_HOT_SHORT 8u
#define CUA__HISTOGRAM_HOT_LONG 2048u

/* Bits of a field, and fields of a counter word. */
CUA_FORCE uint32_t cua__histogram_field_bits(enum cua__histogram_counter counter)
{
	return counter == CUA__COUNT_HALVES ? 16 : counter == CUA__COUNT_BYTES ? 8 : 32;
}

CUA_FORCE uint32_t cua__histogram_a_word(enum cua__histogram_counter counter)
{
	return 32 / cua__histogram_field_bits(counter);
}

/* Counter words of a block for that many slots. */
CUA_FORCE uint32_t cua__histogram_words(enum cua__histogram_counter counter, uint32_t slots)
{
	switch (counter) {
	case CUA__COUNT_COLUMNS: return slots * 32;
	case CUA__COUNT_GLOBAL: return 0;
	default:
		return slots / cua__histogram_a_word(counter) +
		       (slots % cua__histogram_a_word(counter) != 0);
	}
}

/*
 * An addition of `should` to a slot has changed its word from `old` to `now`. Adds to the counts
 * the difference between the intended and the actual change of each field, from the slot's field
 * up.
 */
CUA_FORCE void cua__histogram_settle(enum cua__histogram_counter counter,
				     const struct cua__histogram_job *j,
				     const struct cua__histogram_own *own, uint32_t slot,
				     uint32_t old, uint32_t now, uint32_t should)
{
	const uint32_t bits = cua__histogram_field_bits(counter), mask = ((uint32_t)1 << bits) - 1;
	const uint32_t end = slot / (32 / bits) * (32 / bits) + 32 / bits;
	uint32_t at = slot % (32 / bits) * bits, field;

	CUA__NO_UNROLL
	for (field = slot; field < end; field++) {
		const uint32_t is = ((now >> at) & mask) - ((old >> at) & mask);

		/* the difference is signed; fields after the last slot have no count */
		if (is != should && field < own->slots)
			cua__histogram_add(&j->h, 0, own->first + field,
					   (uint64_t)(int64_t)(int32_t)(should - is));
		should = 0;
		at += bits;
	}
}

/*
 * An addition of `add`, at most the top bit of BYTES, found `old`, and a top bit is set before or
 * after it. Settles the addition. If it raised the field above its top bit, also subtracts the top
 * bit.
 */
CUA_FORCE void cua__histogram_relieve(enum cua__histogram_counter counter,
				      const struct cua__histogram_job *j,
				      const struct cua__histogram_own *own, uint32_t slot,
				      uint32_t old, uint32_t add)
{
	const uint32_t a_word = cua__histogram_a_word(counter), bits = 32 / a_word;
	const uint32_t at = slot % a_word * bits, top = (uint32_t)1 << (bits - 1);
	uint32_t field;

	cua__histogram_settle(counter, j, own, slot, old, old + (add << at), add);
	field = (old >> at) & (2 * top - 1);
	if (field > top || field + add <= top)
		return;
	old = cua_port_fetch_add_u32(&own->words[slot / a_word], 0 - (top << at), CUA_RELAXED,
				     CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	cua__histogram_settle(counter, j, own, slot, old, old - (top << at), 0);
}

CUA_FORCE uint32_t cua__histogram_tops(enum cua__histogram_counter counter)
{
	return counter == CUA__COUNT_HALVES ? 0x80008000u : 0x80808080u;
}

/* Adds at most the top bit of BYTES to a slot of the range. */
CUA_FORCE void cua__histogram_count_many(enum cua__histogram_counter counter,
					 const struct cua__histogram_job *j,
					 const struct cua__histogram_own *own, uint32_t slot,
					 uint32_t add)
{
	const uint32_t a_word = cua__histogram_a_word(counter);
	uint32_t old, one;

	if (counter == CUA__COUNT_GLOBAL) {
		cua__histogram_add(&j->h, 0, slot, add);
		return;
	}
	one = add << slot % a_word * (32 / a_word);
	old = cua_port_fetch_add_u32(&own->words[slot / a_word], one, CUA_RELAXED, CUA_SCOPE_BLOCK,
				     CUA_SPACE_SHARED);
	if ((old | (old + one)) & cua__histogram_tops(counter))
		cua__histogram_relieve(counter, j, own, slot, old, add);
}

/* Adds 1 to each packed slot of the range whose `excluded` is 0. */
CUA_FORCE void cua__histogram_count_packed(enum cua__histogram_counter counter,
					   const struct cua__histogram_job *j,
					   const struct cua__histogram_own *own, uint32_t n,
					   const uint32_t *slot, const int *excluded)
{
	const uint32_t tops = cua__histogram_tops(counter);
	uint32_t old[16], all = 0, k, l;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		/*
		 * an excluded element adds 0 to a word of its own lane, which avoids both a branch
		 * and conflicts
		 */
		const uint32_t word = slot[k] / cua__histogram_a_word(counter);
		const uint32_t one = counter == CUA__COUNT_HALVES ? (slot[k] & 1) * 0xffffu + 1
								  : (uint32_t)1 << slot[k] % 4 * 8;

		old[k] = cua_port_fetch_add_u32(&own->words[excluded[k] ? own->lane : word],
						excluded[k] ? 0 : one, CUA_RELAXED, CUA_SCOPE_BLOCK,
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
		uint32_t its_slot = slot[0], its_old = old[0];
		int its_excluded = excluded[0];

		CUA__UNROLL
		for (l = 1; l < n; l++) {
			its_slot = l == k ? slot[l] : its_slot;
			its_old = l == k ? old[l] : its_old;
			its_excluded = l == k ? excluded[l] : its_excluded;
		}
		if (!its_excluded && (its_old & tops))
			cua__histogram_relieve(counter, j, own, its_slot, its_old, 1);
	}
}

/* Adds 1 to a slot of the range. */
CUA_FORCE void cua__histogram_count(enum cua__histogram_counter counter,
				    const struct cua__histogram_job *j,
				    const struct cua__histogram_own *own, uint32_t slot)
{
	/* bit operations are cheaper than a sum here */
	const uint32_t column = slot << 7 | own->lane << 2;
	const int no = 0;

	if (counter == CUA__COUNT_COLUMNS)
		cua_port_add_u32((uint32_t *)(void *)((char *)own->words + column), 1, CUA_RELAXED,
				 CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	else if (counter == CUA__COUNT_WORDS)
		cua_port_add_u32(&own->words[slot], 1, CUA_RELAXED, CUA_SCOPE_BLOCK,
				 CUA_SPACE_SHARED);
	else if (counter == CUA__COUNT_GLOBAL)
		cua__histogram_add(&j->h, 0, slot, 1);
	else
		cua__histogram_count_packed(counter, j, own, 1, &slot, &no);
}

/* A slot relative to the block's range; only BYTES has ranges. */
CUA_FORCE uint32_t cua__histogram_in_range(enum cua__histogram_counter counter,
					   const struct cua__histogram_own *own, uint32_t slot)
{
	if (counter != CUA__COUNT_BYTES)
		return slot;
	return slot - own->first < own->slots ? slot - own->first : CUA__HISTOGRAM_NONE;
}

CUA_FORCE int cua__histogram_has_hot(enum cua__histogram_counter counter)
{
	return counter == CUA__COUNT_HALVES || counter == CUA__COUNT_BYTES ||
	       counter == CUA__COUNT_GLOBAL;
}

/* Counts an element; any subset of lanes may call. */
CUA_FORCE void cua__histogram_count_one(enum cua__histogram_counter counter,
					const struct cua__histogram_job *j,
					const struct cua__histogram_own *own, uint32_t slot)
{
	if (cua__histogram_has_hot(counter)) {
		slot = cua__histogram_in_range(counter, own, slot);
		if (slot == CUA__HISTOGRAM_NONE)
			return;
	}
	cua__histogram_count(counter, j, own, slot);
}

/* Adds the 8-bit fields to the 16-bit fields. */
CUA_FORCE void cua__histogram_hot_widen(struct cua__histogram_own *own)
{
	own->hot_even += own->hot_n & 0xff00ffu;
	own->hot_odd += (own->hot_n >> 8) & 0xff00ffu;
	own->hot_n = 0;
}

/* Adds the warp's hot group to the counts. Called by whole warps. */
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
		/* the sums of 32 lanes fit the fields */
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

/* Called by whole warps after each tile, before the fields can overflow. */
CUA_FORCE void cua__histogram_hot_keep(const struct cua__histogram_job *j,
				       struct cua__histogram_own *own)
{
	if (++own->hot_tiles % CUA__HISTOGRAM_HOT_SHORT)
		return;
	cua__histogram_hot_widen(own);
	if (own->hot_tiles >= CUA__HISTOGRAM_HOT_LONG)
		cua__histogram_hot_flush(j, own);
}

/*
 * If the warp's 32 * n slots have at most two values, counts them at once and returns 1. That
 * covers a long run of equal elements, and the end of such a run. `sample` is the slot of some
 * lane; near_sample says whether the first slots of all lanes are near it. Called by whole warps.
 */
CUA_FORCE int cua__histogram_count_two(enum cua__histogram_counter counter,
				       const struct cua__histogram_job *j,
				       const struct cua__histogram_own *own, uint32_t n,
				       const uint32_t *slot, uint32_t sample, int near_sample)
{
	uint32_t first = sample, last = sample, firsts = n * 32, differs = !near_sample, k;

	if (near_sample) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			differs |= slot[k] ^ sample;
	}
	if (cua_port_ballot(CUA__HISTOGRAM_FULL, differs != 0)) {
		first = cua_port_shuffle_u32(CUA__HISTOGRAM_FULL, slot[0], 0);
		last = cua_port_shuffle_u32(CUA__HISTOGRAM_FULL, slot[n - 1], 31);
		differs = 0;
		CUA__UNROLL
		for (k = 0; k < n; k++)
			differs |= slot[k] != first && slot[k] != last;
		if (cua_port_ballot(CUA__HISTOGRAM_FULL, differs != 0))
			return 0;
		firsts = 0;
		CUA__UNROLL
		for (k = 0; k < n; k++)
			firsts += cua_port_popc_u32(
				cua_port_ballot(CUA__HISTOGRAM_FULL, slot[k] == first));
	}
	/* lane 0 adds for `first`, and lane 1 for `last` if it differs */
	first = own->lane ? last : first;
	firsts = own->lane ? n * 32 - firsts : firsts;
	if (own->lane < 2 && firsts && first != CUA__HISTOGRAM_NONE)
		cua__histogram_count_many(counter, j, own, first, firsts);
	return 1;
}

/*
 * Chooses the hot group again: the group of a lane's first slot if enough lanes are in it, or no
 * group if hardly any lane is in the present group. Returns 1 if cua__histogram_count_two has
 * counted all n slots of all lanes instead. Called by whole warps.
 */
CUA_FORCE int cua__histogram_hot_choose(enum cua__histogram_counter counter,
					const struct cua__histogram_job *j,
					struct cua__histogram_own *own, uint32_t n,
					const uint32_t *slot, uint32_t from)
{
	uint32_t old = 0, now, sample;

	if (own->hot != CUA__HISTOGRAM_NO_HOT) {
		old = cua_port_popc_u32(
			cua_port_ballot(CUA__HISTOGRAM_FULL, slot[0] / 4 == own->hot));
		if (old >= 16 && old < 32)
			return 0;
	}
	sample = cua_port_shuffle_u32(CUA__HISTOGRAM_FULL, slot[0], from);
	now = cua_port_popc_u32(cua_port_ballot(CUA__HISTOGRAM_FULL, (slot[0] ^ sample) < 4));
	if ((now > old + CUA__HISTOGRAM_HOT_LANES || now == 32) &&
	    cua__histogram_count_two(counter, j, own, n, slot, sample, now == 32))
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
			  enum cua__histogram_counter counter, const struct cua__histogram_job *j,
			  const struct cua__histogram_edges *edges, struct cua__histogram_own *own,
			  const struct cua__histogram_pack *p, int together, uint32_t from)
{
	const uint32_t n = 16 / (uint32_t)cua__histogram_size(type);
	uint64_t raw[16];
	uint32_t slot[16], k;
	int excluded[16];

	CUA__UNROLL
	for (k = 0; k < n; k++)
		raw[k] = cua__histogram_at(16 / n, p, k);
	cua__histogram_slots(type, rule, counter, j, edges, n, raw, slot);
	if (!together || !cua__histogram_has_hot(counter)) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			cua__histogram_count_one(counter, j, own, slot[k]);
		return;
	}
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		slot[k] = cua__histogram_in_range(counter, own, slot[k]);
		excluded[k] = counter == CUA__COUNT_BYTES && slot[k] == CUA__HISTOGRAM_NONE;
	}
	if (cua__histogram_hot_choose(counter, j, own, n, slot, from))
		return;
	if (own->hot != CUA__HISTOGRAM_NO_HOT) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			/*
			 * index in the hot group if below 4; a shift of 32 or more adds 0. Only
			 * GLOBAL has so many slots that at * 8 could overflow.
			 */
			const uint32_t at = slot[k] ^ own->hot * 4;

			own->hot_n += cua_port_shl_u32(
				1, counter == CUA__COUNT_GLOBAL && at >= 4 ? 32 : at * 8);
			excluded[k] |= at < 4;
		}
		if (counter != CUA__COUNT_GLOBAL)
			cua__histogram_count_packed(counter, j, own, n, slot, excluded);
	} else if (counter != CUA__COUNT_GLOBAL) {
		/* `excluded` is a constant here except with BYTES */
		cua__histogram_count_packed(counter, j, own, n, slot, excluded);
	}
	if (counter == CUA__COUNT_GLOBAL) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			if (!excluded[k])
				cua__histogram_count(counter, j, own, slot[k]);
	}
}

/* Counts element i; any subset of lanes may call. */
CUA_FORCE void cua__histogram_count_single(enum cua_type type, enum cua__histogram_rule rule,
					   enum cua__histogram_counter counter,
					   const struct cua__histogram_job *j,
					   const struct cua__histogram_edges *edges,
					   const struct cua__histogram_own *own, uint64_t i)
{
	uint64_t raw = cua__histogram_load(cua__histogram_size(type), j->h.x, i);
	uint32_t slot;

	cua__histogram_slots(type, rule, counter, j, edges, 1, &raw, &slot);
	cua__histogram_count_one(counter, j, own, slot);
}

/*
 * Counts all elements of a single row of a single channel in the block's slots. A tile is the
 * elements that a block loads at once; each warp loads a contiguous range of it. The next tile is
 * in flight while a tile is counted.
 */
CUA_FORCE void cua__histogram_count_all(enum cua_type type, enum cua__histogram_rule rule,
					enum cua__histogram_counter counter,
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
	/* each is read only after it was loaded, but some compilers cannot see that */
	memset(now, 0, sizeof(now));
	memset(next, 0, sizeof(next));
#endif
	if (head > n)
		head = n;
	packs = (n - head) * size / 16;
	full = packs / tile;
	/*
	 * the remaining elements are less than a tile per block. The hot group does not count them,
	 * so with a hot group the remainder is as small as possible.
	 */
	if (!cua__histogram_has_hot(counter))
		full = full / members * members;
	p = (const struct cua__histogram_pack *)(const void *)(x + head * size);
	if (member < full) {
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			now[l] = p[(uint64_t)member * tile + mine + l * 32];
	}
	/* the counters are zero */
	cua_port_sync_block();

	/* single elements before and after the packs */
	if (member == members - 1) {
		const uint64_t after = head + packs * (16 / size);

		if (thread < head)
			cua__histogram_count_single(type, rule, counter, j, edges, own, thread);
		if (thread < n - after)
			cua__histogram_count_single(type, rule, counter, j, edges, own,
						    after + thread);
	}
	CUA__NO_UNROLL
	for (i = full * tile + member * cua_port_block_size() + thread; i < packs;
	     i += members * cua_port_block_size()) {
		rest = p[i];
		cua__histogram_count_pack(type, rule, counter, j, edges, own, &rest, 0, 0);
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
			cua__histogram_count_pack(type, rule, counter, j, edges, own, &now[l], 1,
						  l * 11 + 3);
		if (cua__histogram_has_hot(counter))
			cua__histogram_hot_keep(j, own);
		if (!more)
			break;
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			now[l] = next[l];
	}
}

/* ---- the end of a block, and of the grid ---- */

/* Field k of a counter word. */
CUA_FORCE uint32_t cua__histogram_field(enum cua__histogram_counter counter, uint32_t word,
					uint32_t k)
{
	const uint32_t bits = cua__histogram_field_bits(counter);

	return bits == 32 ? word : (word >> k * bits) & (((uint32_t)1 << bits) - 1);
}

/*
 * Stores the block's slots as its private histogram, or adds them to the sums. Follows a barrier.
 */
CUA_FORCE void cua__histogram_store_private(enum cua__histogram_counter counter,
					    const struct cua__histogram_job *j,
					    const uint32_t *words)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint32_t *row = j->privates + cua_port_block() * j->private_words;
	uint32_t i, k;

	for (i = thread; i < j->private_words; i += threads) {
		uint32_t v = 0;

		if (counter == CUA__COUNT_COLUMNS) {
			/* each lane begins in a different column, so that they use all banks */
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

/* 8-bit elements: converts the counts of the values to counts of slots. Called by one block. */
CUA_FORCE void cua__histogram_put_values(enum cua_type type, const struct cua__histogram_job *j,
					 const uint64_t *values)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t slots = j->h.bins + CUA_HISTOGRAM_SIDES;
	uint32_t i;

	if (j->h.rule == CUA__BIN_BYTE) {
		for (i = thread; i < slots; i += threads)
			cua__histogram_put(&j->h, !j->h.clear, i,
					   i < j->h.bins ? CUA_READ(values[i]) : 0);
		return;
	}
	if (j->h.clear)
		for (i = thread; i < slots; i += threads)
			cua__histogram_put(&j->h, 0, i, 0);
	cua_port_sync_block();
	for (i = thread; i < CUA__HISTOGRAM_BYTES; i += threads) {
		const uint64_t n = CUA_READ(values[i]);

		if (n)
			cua__histogram_add(&j->h, 0, cua__histogram_slot_any(type, j, i), n);
	}
}

/* Words of shared memory that cua__histogram_finish needs. */
CUA_FORCE uint32_t cua__histogram_finish_words(uint32_t threads, uint32_t slots)
{
	return 2 * (4 * threads > slots ? 4 * threads : slots);
}

/* Loads of private histograms that a thread keeps in flight. */
#define CUA__HISTOGRAM_IN_FLIGHT 9u

/*
 * Adds up the private histograms in items of item_words words. Group g of the block's threads adds
 * those of blocks g, g + groups, ..., into sums[g * private_words] and the words after it.
 */
CUA_FORCE void cua__histogram_add_privates(uint32_t item_words, const struct cua__histogram_job *j,
					   uint32_t groups, uint64_t *sums)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t items = j->private_words / item_words, group = thread / items;
	const uint32_t *privates = j->privates;
	uint32_t item = groups == 1 ? thread : group < groups ? thread % items : items;
	uint32_t block = groups == 1 ? 0 : group, first = block, r, k;
	uint64_t sum[4] = {0, 0, 0, 0};

	while (item < items) {
		struct cua__histogram_pack v[CUA__HISTOGRAM_IN_FLIGHT];
		uint32_t next_item = item, next_block = block;

		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_IN_FLIGHT; r++) {
			const uint64_t at = ((uint64_t)next_block * items + next_item) * item_words;

			CUA__UNROLL
			for (k = 0; k < 4; k++)
				v[r].word[k] = 0;
			if (next_item < items) {
				if (item_words == 4)
					v[r] = CUA_READ(*(const struct cua__histogram_pack
								  *)(const void *)&privates[at]);
				else
					v[r].word[0] = CUA_READ(privates[at]);
			}
			next_block += groups;
			if (next_block >= j->blocks) {
				next_block = first;
				next_item += threads;
			}
		}
		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_IN_FLIGHT; r++) {
			CUA__UNROLL
			for (k = 0; k < item_words; k++)
				sum[k] += v[r].word[k];
			block += groups;
			if (block < j->blocks)
				continue;
			if (item < items) {
				CUA__UNROLL
				for (k = 0; k < item_words; k++)
					CUA_WRITE(sums[first * j->private_words +
						       item * item_words + k],
						  sum[k]);
			}
			CUA__UNROLL
			for (k = 0; k < item_words; k++)
				sum[k] = 0;
			block = first;
			item += threads;
		}
	}
}

/* Whether this block arrives last; all its threads get the same result. */
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
 * Converts the sums to counts and resets them to zero. With VALUE it stores 64-bit numbers in
 * shared memory instead.
 */
CUA_FORCE void cua__histogram_drain_sums(enum cua__histogram_rule rule,
					 const struct cua__histogram_job *j, uint64_t *values)
{
	const uint32_t threads = cua_port_block_size(), slots = j->private_words;
	uint32_t v[CUA__HISTOGRAM_IN_FLIGHT], first, i, k;

	for (first = cua_port_thread(); first < slots;
	     first += threads * CUA__HISTOGRAM_IN_FLIGHT) {
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_IN_FLIGHT; k++) {
			i = first + k * threads;
			v[k] = i < slots ? CUA_READ(j->sums[i]) : 0;
		}
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_IN_FLIGHT; k++) {
			i = first + k * threads;
			if (i >= slots)
				continue;
			if (v[k])
				CUA_WRITE(j->sums[i], 0);
			if (rule == CUA__RULE_VALUE)
				CUA_WRITE(values[i], v[k]);
			else
				cua__histogram_put(&j->h, !j->h.clear, i, v[k]);
		}
	}
}

/* The block that arrives last merges the slots of all blocks. Slots are words here. */
CUA_FORCE void cua__histogram_finish(enum cua_type type, enum cua__histogram_rule rule,
				     const struct cua__histogram_job *j, uint32_t *shared)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t slots = j->private_words, blocks = j->blocks;
	uint64_t *sums = (uint64_t *)(void *)shared;
	/* 4 slots at a time if the private histograms are aligned */
	const int packed =
		slots % 4 == 0 && (uintptr_t)j->privates % sizeof(struct cua__histogram_pack) == 0;
	const uint32_t items = packed ? slots / 4 : slots;
	uint32_t groups = items < threads ? threads / items : 1, i, b;

	if (!cua__histogram_is_last(j, shared))
		return;
	if (j->sums) {
		cua__histogram_drain_sums(rule, j, sums);
		if (rule == CUA__RULE_VALUE) {
			cua_port_sync_block();
			cua__histogram_put_values(type, j, sums);
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
	for (i = thread; i < slots; i += threads) {
		uint64_t sum = CUA_READ(sums[i]);

		for (b = 1; b < groups; b++)
			sum += CUA_READ(sums[b * slots + i]);
		if (rule == CUA__RULE_VALUE)
			CUA_WRITE(sums[i], sum);
		else
			cua__histogram_put(&j->h, !j->h.clear, i, sum);
	}
	if (rule == CUA__RULE_VALUE) {
		cua_port_sync_block();
		cua__histogram_put_values(type, j, sums);
	}
}

/* A block's data; edges and words are in its shared memory. */
struct cua__histogram_block {
	struct cua__histogram_edges edges;
	struct cua__histogram_own own;
};

/*
 * The part of a block's work that reads no elements, counts or scratch memory. `keys` are the
 * edges' keys.
 */
CUA_FORCE void cua__histogram_begin(enum cua_type type, enum cua__histogram_rule rule,
				    enum cua__histogram_counter counter,
				    const struct cua__histogram_job *j, const void *keys,
				    uint32_t *shared, struct cua__histogram_block *block)
{
	struct cua__histogram_own *own = &block->own;
	const uint32_t words = cua__histogram_words(counter, j->range_slots);
	uint32_t w;

	if (rule == CUA__RULE_EDGES) {
		cua__histogram_edges_build(type, j, keys, shared, &block->edges);
		shared += j->edge_words;
	}
	own->words = shared;
	own->lane = cua_port_lane();
	own->first = 0;
	own->slots = j->slots;
	own->hot = CUA__HISTOGRAM_NO_HOT;
	own->hot_n = own->hot_even = own->hot_odd = own->hot_tiles = 0;
	if (cua__histogram_has_hot(counter)) {
		own->first = (uint32_t)cua_port_block() % j->ranges * j->range_slots;
		own->slots = j->slots - own->first < j->range_slots ? j->slots - own->first
								    : j->range_slots;
	}
	for (w = cua_port_thread(); w < words; w += cua_port_block_size())
		CUA_WRITE(own->words[w], 0);
}

/* Counts all elements; also merges the private histograms if finish_here is set. */
CUA_FORCE void cua__histogram_run(enum cua_type type, enum cua__histogram_rule rule,
				  enum cua__histogram_counter counter,
				  const struct cua__histogram_job *j,
				  struct cua__histogram_block *block)
{
	struct cua__histogram_own *own = &block->own;

	cua__histogram_count_all(type, rule, counter, j, &block->edges, own);
	if (cua__histogram_has_hot(counter)) {
		cua_port_sync_warp(CUA__HISTOGRAM_FULL);
		cua__histogram_hot_flush(j, own);
	}
	if (counter == CUA__COUNT_GLOBAL)
		return;
	cua_port_sync_block();
	cua__histogram_store_private(counter, j, own->words);
	if (j->finish_here && (counter == CUA__COUNT_COLUMNS || counter == CUA__COUNT_WORDS))
		cua__histogram_finish(type, rule, j, own->words);
}

/*
 * Merges the private histograms; each block merges 32 words of them. `add`: adds to the present
 * counts. `shared` has 32 * fields 64-bit words for each warp.
 */
CUA_FORCE void cua__histogram_merge(enum cua__histogram_counter counter,
				    const struct cua__histogram_job *j, int add, uint64_t *shared)
{
	const uint32_t a_word = cua__histogram_a_word(counter);
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / 32;
	const uint32_t warps = cua_port_block_size() / 32;
	const uint32_t pieces = (j->private_words + 31) / 32; /* of a private histogram */
	const uint32_t range = (uint32_t)(cua_port_block() / pieces);
	const uint32_t word = (uint32_t)(cua_port_block() % pieces) * 32 + lane;
	const uint32_t first = range * j->range_slots;
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
			for (k = 0; k < a_word; k++)
				sum[k] += cua__histogram_field(counter, v, k);
		}
	}
	CUA__UNROLL
	for (k = 0; k < a_word; k++)
		CUA_WRITE(shared[(warp * a_word + k) * 32 + lane], sum[k]);
	cua_port_sync_block();
	/* a thread per slot */
	for (k = warp; k < a_word; k += warps) {
		const uint32_t slot = word * a_word + k;
		uint64_t all = 0;

		for (w = 0; w < warps; w++)
			all += CUA_READ(shared[(w * a_word + k) * 32 + lane]);
		if (word < j->private_words && slot < j->range_slots && first + slot < j->slots)
			cua__histogram_put(&j->h, add, first + slot, all);
	}
}

/* ---- choice of the kernel ---- */

#ifndef CUA__HISTOGRAM_BLOCK
#define CUA__HISTOGRAM_BLOCK 1024u
#endif
/* For arrays too small to occupy the device with large blocks. */
#ifndef CUA__HISTOGRAM_SMALL_BLOCK
#define CUA__HISTOGRAM_SMALL_BLOCK 512u
#endif
#ifndef CUA__HISTOGRAM_SMALL_BYTES
#define CUA__HISTOGRAM_SMALL_BYTES ((uint64_t)4 << 20)
#endif
/*
 * 16-byte packs that a thread of a small block counts if there are enough processors, and most
 * additions of all blocks to the sums.
 */
#define CUA__HISTOGRAM_SMALL_LOADS 2u
#define CUA__HISTOGRAM_MOST_ADDED 300000u
#define CUA__HISTOGRAM_SMALL_SLOTS 1024u
/* Most slots in columns: 256 bins and the sides. */
#ifndef CUA__HISTOGRAM_COLUMN_SLOTS
#define CUA__HISTOGRAM_COLUMN_SLOTS 260u
#endif
/* Most ranges of slots; the blocks of each range read all elements. */
#define CUA__HISTOGRAM_RANGES 16u
/* Most words of all private histograms that the last block merges. */
#define CUA__HISTOGRAM_MERGED_HERE 40000u
/* Most bytes of edges, their number rounded up to a power of two. */
#define CUA__HISTOGRAM_EDGES ((size_t)32 << 10)
/* Cells of the guide, and the smaller number for arrays that would not repay building it. */
#define CUA__HISTOGRAM_CELLS 16384u
#define CUA__HISTOGRAM_FEW_CELLS 1024u
/* A block's 32-bit counter has room for more elements than this. */
#define CUA__HISTOGRAM_MOST_A_BLOCK ((uint64_t)1 << 31)

struct cua__histogram_plan {
	struct cua__histogram_job job;
	enum cua__histogram_rule rule;
	enum cua__histogram_counter counter;
	uint32_t block; /* threads */
	int sums;       /* job.sums needs private_words zeros */
	size_t shared;  /* bytes */
};

/* Whether EVEN_FAST is right for a range; fills in its members of the job. */
static inline int cua__histogram_fast_range(enum cua_type type, const struct cua_histogram_range *r,
					    struct cua__histogram_job *job)
{
	int64_t least, most;
	int i;

	if (r->is_float) {
		/* converts keys back to numbers: the first and the last number in the range */
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
	/* the type's last value in the range */
	job->last = (uint32_t)(r->last < (uint64_t)most - r->lower ? r->last
								   : (uint64_t)most - r->lower);
	return 1;
}

/* The kernels that are compiled. */
static inline int cua__histogram_has_kernel(enum cua_type type, enum cua__histogram_rule rule,
					    enum cua__histogram_counter counter)
{
	if (counter <= CUA__COUNT_WORDS)
		return 1;
	if (rule == CUA__RULE_EDGES || cua__histogram_size(type) == 2)
		return 0;
	return counter == CUA__COUNT_HALVES || cua__histogram_size(type) == 4;
}

/* Chooses rule, counter and slots. Returns 0 if only the kernel for any histogram fits. */
static inline int cua__histogram_choose(const struct cua__histogram *h, uint32_t processors,
					size_t shared_bytes, struct cua__histogram_plan *p)
{
	struct cua__histogram_job *job = &p->job;
	const size_t size = cua__histogram_size(h->type),
		     key_size = cua__histogram_key_bytes(h->type);
	uint64_t words = shared_bytes / 4, slots = (uint64_t)h->bins + CUA_HISTOGRAM_SIDES;

	if (h->strategy != CUA_HISTOGRAM_AUTO || h->channels > 1 || h->width != h->n ||
	    h->weight_type || h->n / processors >= CUA__HISTOGRAM_MOST_A_BLOCK)
		return 0;
	job->ranges = 1;
	job->last_bin = h->bins - 1;
	p->counter = CUA__COUNT_COLUMNS;
	if (size == 1) {
		p->rule = CUA__RULE_VALUE;
		slots = CUA__HISTOGRAM_BYTES;
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
			 * the counters after them are 32-bit, but private histograms are merged in
			 * 64-bit words
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
	/* too few elements to repay clearing the counters */
	if (h->n < slots / 4 && size > 1)
		return 0;
	if (slots > CUA__HISTOGRAM_COLUMN_SLOTS)
		p->counter = slots <= words       ? CUA__COUNT_WORDS
			     : slots <= words * 2 ? CUA__COUNT_HALVES
						  : CUA__COUNT_BYTES;
	if (p->counter == CUA__COUNT_BYTES) {
		/* a range consists of whole words */
		const uint64_t ranges = (slots + words * 4 - 1) / (words * 4);

		if (ranges > CUA__HISTOGRAM_RANGES || ranges > processors)
			p->counter = CUA__COUNT_GLOBAL;
		else
			job->ranges = (uint32_t)ranges;
	}
	job->slots = (uint32_t)slots;
	job->range_slots = (uint32_t)((slots + job->ranges - 1) / job->ranges);
	if (job->ranges > 1)
		job->range_slots = (job->range_slots + 3) / 4 * 4;
	return cua__histogram_has_kernel(h->type, p->rule, p->counter);
}

/* Chooses all members for the number of elements. Returns 0 as cua__histogram_choose does. */
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
	p->block = is_small && job->slots <= CUA__HISTOGRAM_SMALL_SLOTS ? CUA__HISTOGRAM_SMALL_BLOCK
									: CUA__HISTOGRAM_BLOCK;
	p->sums = is_small && p->counter <= CUA__COUNT_WORDS && job->slots <= CUA__HISTOGRAM_SUMS;
	blocks = bytes /
		 (p->block * 16 * (p->sums ? CUA__HISTOGRAM_SMALL_LOADS : CUA__HISTOGRAM_LOADS));
	if (blocks > processors)
		blocks = processors;
	if (p->sums && blocks > CUA__HISTOGRAM_MOST_ADDED / job->slots)
		blocks = CUA__HISTOGRAM_MOST_ADDED / job->slots;
	blocks = blocks / job->ranges * job->ranges;
	job->blocks = blocks ? (uint32_t)blocks : job->ranges;
	words = cua__histogram_words(p->counter, job->range_slots);
	job->private_words = p->counter == CUA__COUNT_COLUMNS ? job->slots : (uint32_t)words;
	merging = p->sums ? 2 * CUA__HISTOGRAM_BYTES
			  : cua__histogram_finish_words(p->block, job->private_words);
	merging = merging > words ? merging : words;
	job->finish_here =
		p->sums ||
		(p->counter <= CUA__COUNT_WORDS &&
		 (merging + job->edge_words) * 4 <= shared_bytes &&
		 (p->rule == CUA__RULE_VALUE ||
		  (uint64_t)job->private_words * job->blocks <= CUA__HISTOGRAM_MERGED_HERE));
	p->shared = ((job->finish_here ? merging : words) + job->edge_words) * 4;
	return 1;
}

/* Blocks of cua__histogram_merge. */
static inline uint32_t cua__histogram_merges(const struct cua__histogram_job *job)
{
	return (job->private_words + 31) / 32 * job->ranges;
}

/* ---- any histogram: rows, channels, weights, and requested strategies ---- */

/* Elements that a thread keeps in flight. */
#define CUA__HISTOGRAM_AT_ONCE 4u

struct cua__histogram_any {
	uint32_t *words;   /* the block's private slots: a word each, or two with weights */
	uint32_t own_bins; /* private bins of each channel; 0: no private slots */
	/* AGGREGATED: the slot of the present run of equal slots, and its sum */
	uint32_t last[CUA_HISTOGRAM_MAX_CHANNELS];
	uint64_t run[CUA_HISTOGRAM_MAX_CHANNELS];
};

/* Adds n to a slot of a channel. */
CUA_FORCE void cua__histogram_any_add(const struct cua__histogram *h,
				      const struct cua__histogram_any *a, uint32_t channel,
				      uint32_t slot, uint64_t n)
{
	uint32_t *own, old;
	int is_side = slot >= h->bins;

	if (!a->own_bins || (slot >= a->own_bins && !is_side)) {
		cua__histogram_add(h, channel, slot, n);
		return;
	}
	if (is_side)
		slot = a->own_bins + (slot - h->bins);
	slot += channel * (a->own_bins + CUA_HISTOGRAM_SIDES);
	if (!h->weight_type) {
		cua_port_add_u32(&a->words[slot], (uint32_t)n, CUA_RELAXED, CUA_SCOPE_BLOCK,
				 CUA_SPACE_SHARED);
		return;
	}
	/*
	 * 64 bits as two words. Each carry of the lower word is observed by exactly one addition,
	 * which adds it to the upper word.
	 */
	own = &a->words[slot * 2];
	old = cua_port_fetch_add_u32(own, (uint32_t)n, CUA_RELAXED, CUA_SCOPE_BLOCK,
				     CUA_SPACE_SHARED);
	old = (uint32_t)(n >> 32) + (old + (uint32_t)n < old);
	if (old)
		cua_port_add_u32(own + 1, old, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
}

/* Stores in *n what element i adds to its slot; returns 0 if its weight is refused. */
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
		uint32_t slot = i % each;
		uint64_t n = h->weight_type ? CUA_READ(a->words[2 * i]) |
						      (uint64_t)CUA_READ(a->words[2 * i + 1]) << 32
					    : CUA_READ(a->words[i]);

		if (n)
			cua__histogram_add(h, i / each,
					   slot < a->own_bins ? slot : slot - a->own_bins + h->bins,
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
				uint32_t slot;

				if (!is[u] || c >= h->counted)
					continue;
				slot = cua__histogram_slot_any(type, j, raw[u][c]);
				if (slot >= h->bins)
					add = 1;
				else if (!accepted[u])
					slot = h->bins + CUA_HISTOGRAM_REFUSED, add = 1;
				if (!aggregated) {
					cua__histogram_any_add(h, &a, c, slot, add);
					continue;
				}
				if (slot != a.last[c]) {
					if (a.run[c])
						cua__histogram_any_add(h, &a, c, a.last[c],
								       a.run[c]);
					a.last[c] = slot;
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
