/* SPDX-License-Identifier: MIT */
/*
 * The kernels of histograms, as functions that every thread of a grid calls: cuda/histogram.cu
 * makes kernels of them. type, rule and counter are constants there.
 *
 * A slot is a bin of the histogram, or one of the CUA_HISTOGRAM_SIDES behind the bins: every
 * element has one, so that counting needs no branch. Where an element is counted:
 *
 *   COLUMNS  each lane has a column of slots to itself: the lanes of a warp never meet in a bank of
 *            shared memory, whatever the data.
 *   WORDS    the block's slots are words of shared memory, and increments of 1: the hardware merges
 *            those of equal lanes.
 *   HALVES   two slots a word, and
 *   BYTES    four. What a slot has more than that lies in the counts themselves. The slots may be
 *            split into ranges, each counted by blocks of its own.
 *   GLOBAL   the counts themselves.
 *
 * The last three would be slow where many lanes have the same slot, so a warp keeps the numbers of
 * a hot group of four in registers: that in which a sample of its elements is, if enough lanes are;
 * and what is the same in all of a warp is added at once.
 *
 * A field of HALVES and BYTES may run over at its top and carry into the next one. Every addition
 * to a word, whose old bits it gets, settles what it has done: a field that has not changed by what
 * it should, and by that alone, gets the difference in the counts. So the field and the count
 * together are right after each settled addition, whatever else is in flight, and at the end of the
 * block there is none that is not settled. Nothing is to be settled where no top bit is set before
 * or after; the addition that brings a field above its top bit, and nothing else, takes that off,
 * so that few do.
 *
 * Scope: blocks of one device. A block has a multiple of 32 threads. Shared memory is given as
 * words.
 * Progress: no block waits for another one.
 * Argument: the slots of a block are changed by atomics between two barriers, and each has one
 * writer before and one reader behind them. The blocks' results lie in scratch memory, a row a
 * block, or are added to sums that all blocks share, by relaxed additions at device scope. They are
 * merged by a later launch, or by the block that arrives last: thread 0 of a block arrives behind a
 * barrier, acquire and release at device scope (cua__finish_arrive of cuatomic/reduce.h), so that
 * the last one has acquired all rows and all additions, and the barrier behind that passes them on to
 * its block. Nobody adds to the sums then, so it may set them back to zero by plain stores, which the
 * next launch sees.
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
#define CUA__HISTOGRAM_BYTES 256u /* slots where elements of 8 bits are counted by their value */
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
	CUA__RULE_VALUE,     /* elements of 8 bits: the value itself */
	CUA__RULE_EVEN_FAST, /* integers of at most 32 bits whose range is within the type, floats
				without a factor */
	CUA__RULE_EVEN,      /* any */
	CUA__RULE_EDGES      /* edges, with a guide in shared memory */
};

/* 16 bytes of elements. */
struct cua__histogram_pack {
	uint32_t word[4];
} __attribute__((aligned(16), may_alias));

/* What the kernels take. */
struct cua__histogram_job {
	struct cua__histogram h;
	/* the top bit for signed integers of at most 32 bits, else 0; by it some kernels for
	 * unsigned ones are right for signed ones, too */
	uint32_t bias;
	/* EVEN_FAST */
	uint32_t lower, last;
	int whole_bins; /* range.whole bins for each integer, and nothing above them */
	uint32_t last_bin;
	float least_f32, most_f32;
	double least_f64, most_f64;
	uint32_t levels;     /* the logarithm of a power of two that is not less than the edges */
	uint32_t cells;      /* of the guide to them */
	uint32_t edge_words; /* of edges and guide in shared memory */
	/* slots */
	uint32_t slots;       /* all of them */
	uint32_t ranges;      /* blocks b with b % ranges = r count range r */
	uint32_t range_slots; /* of each but perhaps the last one */
	uint32_t row_words;   /* of a block's row in scratch memory */
	uint32_t blocks;
	int finish_here; /* the last block merges the rows */
	struct cua_finish *finish;
	uint32_t *rows;
	uint32_t *sums; /* NULL, or zeros that the blocks add to instead of storing rows */
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

/* Adds to the count of a slot of a channel, while others do. */
CUA_FORCE void cua__histogram_add(const struct cua__histogram *h, uint32_t channel, uint32_t slot,
				  uint64_t n)
{
	if (slot < h->bins)
		cua__histogram_add_counts(h, (uint64_t)channel * h->bins + slot, n);
	else if (h->outside)
		cua_port_add_u64(&h->outside[channel * CUA_HISTOGRAM_SIDES + (slot - h->bins)], n,
				 CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Sets the count of a slot, or adds to it, where nobody else does. */
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

/* Of types, as constants where they are constants. */
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

/* An element of at most 32 bits that is a float, as f32; exact. */
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

/* An integer, with its sign. */
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

/* Of an element that is in no bin. */
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
 * The bins of all, as if they were in the range, and then the sides of those that are not. whole_bins: those of the
 * job, or 0, which is the same in more steps.
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
			/* a GPU's conversion to an integer may have any operand */
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
		/* cua__histogram_narrow_bin, of a number of 32 bits */
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

/* The key of an element among edges, of 32 bits or 64. */
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
 * Edges are found by a guide: the range is cut into cells, and an entry of the guide says how many
 * of the edges between bins lie in lower cells than its own. Only the edges in the element's cell
 * are left, which are few, and they are searched by halves. What takes elements and edges to cells
 * needs to be monotonic, and the same for both, and nothing else: then an edge in a lower cell is
 * not above the element, and one in a higher cell is. It is either the difference of the keys,
 * shifted right, or for floats a line; the one that leaves fewer edges in a cell. Elements in cells
 * without an edge all load the same one, as lanes that load different ones wait for each other.
 */
struct cua__histogram_edges {
	/* in shared memory: edge i at [i], of 1 to bins - 1, and behind them what is not below any;
	 * as bits of floats if by_value, else as the difference of its key from the first one's */
	const void *edges;
	const cua__raw16 *guide;
	int by_value;
	int nothing;     /* is in the range */
	uint32_t window; /* half of a power of two that is more than the edges in any cell */
	uint32_t shift;  /* of keys */
	uint64_t first,
		span; /* key of the first edge; and the difference of the last key in range */
	uint64_t least, most; /* keys in the range */
	uint64_t from, to;    /* bits of the least and the greatest float in the range */
	float scale_f32;
	double scale_f64;
};

/* In the guide: no edge is in the cell. */
#define CUA__HISTOGRAM_NO_EDGE 0x8000u
/* Cells of a guide: a power of two. */
#define CUA__HISTOGRAM_LEAST_CELLS 64u

CUA_FORCE uint64_t cua__histogram_node(enum cua_type type, const void *edges, uint32_t i)
{
	return cua__histogram_key_bytes(type) == 8 ? CUA_READ(((const uint64_t *)edges)[i])
						   : CUA_READ(((const uint32_t *)edges)[i]);
}

CUA_FORCE void cua__histogram_set_node(enum cua_type type, void *edges, uint32_t i, uint64_t v)
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

/* Bits of the float with a key, of f64 or else f32. */
CUA_FORCE uint64_t cua__histogram_float_of_key(enum cua_type type, uint64_t key)
{
	if (type == CUA_F64)
		return key >> 63 ? key ^ 0x8000000000000000u : ~key;
	return (uint32_t)(key >> 31 ? key ^ 0x80000000u : ~key);
}

/* An edge as it lies in shared memory. */
CUA_FORCE uint64_t cua__histogram_edge_of_key(enum cua_type type, int by_value,
					      const struct cua__histogram_edges *e, uint64_t key)
{
	return by_value ? cua__histogram_float_of_key(type, key) : key - e->first;
}

/* Of an element in the range, or of an edge, both in that form. */
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
	/* the power of two brings the integer to the lowest bits */
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

/* An element in that form, brought into the range; adds to *out whether it was not there. */
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

/* Whether a line can be used, and what it is. */
CUA_FORCE int cua__histogram_line(enum cua_type type, const struct cua__histogram_job *j,
				  uint64_t last_key, struct cua__histogram_edges *e)
{
	const uint64_t last = cua__histogram_float_of_key(type, last_key);
	double d;
	float f;

	if (!cua__histogram_is_float(type) || e->nothing)
		return 0;
	/* what is infinite or not a number fails */
	if (type == CUA_F64) {
		d = cua_port_sub_rn_f64(cua__histogram_f64(last), cua__histogram_f64(e->from));
		e->scale_f64 = cua_port_div_rn_f64((double)(j->cells - 1), d);
		return d > 0 && d < 0x1p1000 && e->scale_f64 < 0x1p1000;
	}
	f = cua_port_sub_rn_f32(cua__histogram_f32(last), cua__histogram_f32(e->from));
	e->scale_f32 = cua_port_div_rn_f32((float)(j->cells - 1), f);
	return f > 0 && f < 0x1p120f && e->scale_f32 < 0x1p120f;
}

/* The least power of two that is more than the edges in any cell, of those that this thread looks
 * at, as its logarithm. Their keys are in shared memory. */
CUA_FORCE uint32_t cua__histogram_crowd(enum cua_type type, int by_value,
					const struct cua__histogram_job *j, const uint32_t *shared,
					const struct cua__histogram_edges *e)
{
	uint32_t i, most = 0;

#define CUA__CELL_OF(i)                                                                            \
	cua__histogram_cell(type, by_value, e,                                                     \
			    cua__histogram_edge_of_key(type, by_value, e,                          \
						       cua__histogram_node(type, shared, i)))
	for (i = cua_port_thread() + 1; i < j->h.bins; i += cua_port_block_size()) {
		const uint32_t cell = CUA__CELL_OF(i);

		while (i + ((uint32_t)1 << most) - 1 < j->h.bins &&
		       CUA__CELL_OF(i + ((uint32_t)1 << most) - 1) == cell)
			most++;
	}
#undef CUA__CELL_OF
	return most;
}

/* How many edges are in cells below c: i of them, and up to 2 * w - 1 more, by a power of two w. */
CUA_FORCE uint32_t cua__histogram_edges_before(enum cua_type type, int by_value,
					       const struct cua__histogram_job *j,
					       const struct cua__histogram_edges *e,
					       const uint32_t *shared, uint32_t i, uint32_t w,
					       uint32_t c)
{
	for (; w; w /= 2)
		if (i + w < j->h.bins &&
		    cua__histogram_cell(type, by_value, e,
					cua__histogram_node(type, shared, i + w)) < c)
			i += w;
	return i;
}

/* The edges, of which the keys are in shared memory, and the guide, when the form is known. */
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
						       cua__histogram_node(type, shared, i));
		cua__histogram_set_node(type, shared, i, v);
	}
	cua_port_sync_block();
	i = cua__histogram_edges_before(type, by_value, j, e, shared, 0,
					(uint32_t)1 << (j->levels - 1), thread * each);
	for (c = thread * each; c < thread * each + each && c < j->cells; c++) {
		next = cua__histogram_edges_before(type, by_value, j, e, shared, i, e->window,
						   c + 1);
		two = two >> 16 | (i | (i == next ? CUA__HISTOGRAM_NO_EDGE : 0)) << 16;
		if (c % 2)
			CUA_WRITE(guide[c / 2], two);
		i = next;
	}
	cua_port_sync_block();
}

/* By all threads of the block; ends with a barrier. */
CUA_FORCE void cua__histogram_edges_build(enum cua_type type, const struct cua__histogram_job *j,
					  const void *keys, uint32_t *shared,
					  struct cua__histogram_edges *e)
{
	/* where the guide will be: what crowds some thread has found, by keys and by the line */
	uint32_t *found = shared + (j->edge_words - j->cells / 2);
	uint32_t crowd[2] = {31, 31}, i;
	uint64_t last;
	int line;

	for (i = cua_port_thread(); i <= j->h.bins; i += cua_port_block_size())
		cua__histogram_set_node(type, shared, i, cua__histogram_key(type, keys, i));
	for (i = cua_port_thread(); i < 32; i += cua_port_block_size())
		CUA_WRITE(found[i], 0);
	cua_port_sync_block();
	e->edges = shared;
	e->guide = (const cua__raw16 *)(const void *)found;
	e->first = e->least = cua__histogram_node(type, shared, 0);
	last = cua__histogram_node(type, shared, j->h.bins);
	/* nothing is below 0 */
	e->nothing = !j->h.closed && (last == 0 || last - 1 < e->first);
	e->most = last - (uint64_t)(!j->h.closed);
	/* the key of -0 is that of 0 */
	if (cua__histogram_is_float(type) && !j->h.closed &&
	    last == (uint64_t)1 << (type == CUA_F64 ? 63 : 31))
		e->most--;
	e->span = e->nothing ? 0 : e->most - e->first;
	for (e->shift = 0; (last - e->first) >> e->shift >= j->cells; e->shift++)
		;
	e->from = cua__histogram_float_of_key(type, e->least);
	e->to = cua__histogram_float_of_key(type, e->most);
	e->scale_f32 = 0;
	e->scale_f64 = 0;
	line = cua__histogram_line(type, j, last, e);
	cua_port_add_u32(&found[cua__histogram_crowd(type, 0, j, shared, e)], 1, CUA_RELAXED,
			 CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	if (cua__histogram_is_float(type) && line)
		cua_port_add_u32(&found[16 + cua__histogram_crowd(type, 1, j, shared, e)], 1,
				 CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	cua_port_sync_block();
	for (i = 0; i < 16; i++) {
		if (CUA_READ(found[i]))
			crowd[0] = i;
		if (CUA_READ(found[16 + i]))
			crowd[1] = i;
	}
	cua_port_sync_block();
	e->by_value = cua__histogram_is_float(type) && crowd[1] <= crowd[0];
	e->window = ((uint32_t)1 << crowd[e->by_value]) / 2;
	if (cua__histogram_is_float(type) && e->by_value)
		cua__histogram_guide_build(type, 1, j, shared, e);
	else
		cua__histogram_guide_build(type, 0, j, shared, e);
}

/* Step by step for all of n elements, so that the loads of a step are in flight together. */
CUA_FORCE int cua__histogram_search(enum cua_type type, int by_value, uint32_t bins,
				    const struct cua__histogram_edges *e, uint32_t n,
				    const uint64_t *raw, uint32_t *slot)
{
	uint64_t v[16];
	uint32_t k, w;
	int out = e->nothing;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		v[k] = cua__histogram_into_range(type, by_value, e, raw[k], &out);
		slot[k] = CUA_READ(e->guide[cua__histogram_cell(type, by_value, e, v[k])]);
	}
	CUA__NO_UNROLL
	for (w = e->window; w; w /= 2) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t i = slot[k] + w < bins ? slot[k] + w : bins;

			slot[k] += cua__histogram_not_below(type, by_value, v[k],
							    cua__histogram_node(type, e->edges, i))
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
		else if (e->nothing ? !below : key > e->most)
			slot[k] = j->h.bins + CUA_HISTOGRAM_ABOVE;
		else if (below)
			slot[k] = j->h.bins + CUA_HISTOGRAM_BELOW;
	}
}

/* The same without a guide. */
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
		/* behind counts in global memory, whose atomics are the bound, uniform data were slower with it */
		cua__histogram_slots_even_fast(type, counter != CUA__COUNT_GLOBAL && j->whole_bins,
					       j, n, raw, slot);
		return;
	}
	CUA__UNROLL
	for (k = 0; k < n; k++)
		slot[k] = rule == CUA__RULE_VALUE ? (uint32_t)raw[k]
						  : cua__histogram_slot_even(type, j, raw[k]);
}

/* By the rule that the histogram has, which here is no constant. */
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
	uint32_t *words; /* the block's */
	uint32_t lane;
	/* the slots that are counted here */
	uint32_t first, slots;
	/* of the warp: a group of 4 of these that begins at 4 * hot, counted from the first, and
	 * how often this lane has met each: in fields of 8 bits, and before that, of slots 0 and 2
	 * and of 1 and 3, in fields of 16 */
	uint32_t hot, hot_n, hot_even, hot_odd;
	uint32_t hot_tiles; /* that the warp has had since */
};

#define CUA__HISTOGRAM_NONE 0xffffffffu   /* a slot of another range */
#define CUA__HISTOGRAM_NO_HOT 0xfffffffeu /* no slot at all */
/* A group becomes the hot one if so many lanes more have it than the present one. */
#ifndef CUA__HISTOGRAM_HOT_LANES
#define CUA__HISTOGRAM_HOT_LANES 5u
#endif
/* Tiles until fields of 8 bits are brought to those of 16, and until these are flushed. */
#define CUA__HISTOGRAM_HOT_SHORT 8u
#define CUA__HISTOGRAM_HOT_LONG 2048u

/* A field's bits, and how many are in a word. */
CUA_FORCE uint32_t cua__histogram_field_bits(enum cua__histogram_counter counter)
{
	return counter == CUA__COUNT_HALVES ? 16 : counter == CUA__COUNT_BYTES ? 8 : 32;
}

CUA_FORCE uint32_t cua__histogram_a_word(enum cua__histogram_counter counter)
{
	return 32 / cua__histogram_field_bits(counter);
}

/* Words of a block for so many slots. */
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
 * A change of a word from `old` to `now`, which was to add `should` to what a slot has all in all:
 * brings the rest to the counts, of all fields from the slot's on.
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

		/* the sign of the difference matters; behind the last slot there is none */
		if (is != should && field < own->slots)
			cua__histogram_add(&j->h, 0, own->first + field,
					   (uint64_t)(int64_t)(int32_t)(should - is));
		should = 0;
		at += bits;
	}
}

/*
 * An addition of `add`, not more than the top bit of BYTES, to a slot found `old`, in which the top
 * bit of some field is set or is set by it. The one that brings a field above its top bit takes
 * that off.
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

/* Adds to a slot, counted from the first of the range, at most the top bit of BYTES. */
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

/* Adds 1 to packed slots, counted from the first of the range, where `not_it` is 0. */
CUA_FORCE void cua__histogram_count_packed(enum cua__histogram_counter counter,
					   const struct cua__histogram_job *j,
					   const struct cua__histogram_own *own, uint32_t n,
					   const uint32_t *slot, const int *not_it)
{
	const uint32_t tops = cua__histogram_tops(counter);
	uint32_t old[16], all = 0, k, l;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		/* what is not counted adds 0 where the lanes do not meet: no branch */
		const uint32_t word = slot[k] / cua__histogram_a_word(counter);
		const uint32_t one = counter == CUA__COUNT_HALVES ? (slot[k] & 1) * 0xffffu + 1
								  : (uint32_t)1 << slot[k] % 4 * 8;

		old[k] = cua_port_fetch_add_u32(&own->words[not_it[k] ? own->lane : word],
						not_it[k] ? 0 : one, CUA_RELAXED, CUA_SCOPE_BLOCK,
						CUA_SPACE_SHARED);
	}
	CUA__UNROLL
	for (k = 0; k < n; k++)
		all |= old[k];
	if (!(all & tops))
		return;
	/* seldom */
	CUA__NO_UNROLL
	for (k = 0; k < n; k++) {
		uint32_t its_slot = slot[0], its_old = old[0];
		int its_not = not_it[0];

		CUA__UNROLL
		for (l = 1; l < n; l++) {
			its_slot = l == k ? slot[l] : its_slot;
			its_old = l == k ? old[l] : its_old;
			its_not = l == k ? not_it[l] : its_not;
		}
		if (!its_not && (its_old & tops))
			cua__histogram_relieve(counter, j, own, its_slot, its_old, 1);
	}
}

/* Adds 1 to a slot, counted from the first of the range. */
CUA_FORCE void cua__histogram_count(enum cua__histogram_counter counter,
				    const struct cua__histogram_job *j,
				    const struct cua__histogram_own *own, uint32_t slot)
{
	/* by bits, which takes less than a sum */
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

/* A slot as it is counted; only BYTES have ranges. */
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

/* One element, by any lanes. */
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

/* The fields of 8 bits to those of 16. */
CUA_FORCE void cua__histogram_hot_widen(struct cua__histogram_own *own)
{
	own->hot_even += own->hot_n & 0xff00ffu;
	own->hot_odd += (own->hot_n >> 8) & 0xff00ffu;
	own->hot_n = 0;
}

/* Brings what the warp has of its hot group to the counts. By whole warps. */
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
		/* the sums of 32 lanes fit the fields, too */
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

/* Behind each tile, by whole warps: before the fields could run over. */
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
 * If all n slots of all lanes are the same, as in a long run of equal elements, or one of two, as
 * where such a run ends and the next one begins, counts them at once; 1 if so. `sample` is the slot of
 * some lane, near_sample says whether the first slots of all are near it. By whole warps.
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
	/* lane 0 counts the first one, and lane 1 the last one if it is another */
	first = own->lane ? last : first;
	firsts = own->lane ? n * 32 - firsts : firsts;
	if (own->lane < 2 && firsts && first != CUA__HISTOGRAM_NONE)
		cua__histogram_count_many(counter, j, own, first, firsts);
	return 1;
}

/*
 * Chooses the hot group anew: that of one lane's first slot now, if enough others' are in it, or
 * none, if the present one is in hardly any lane. If cua__histogram_count_two counts all n slots of
 * all lanes instead, the result is 1. By whole warps.
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

/* Counts a pack; `together`: by whole warps. */
CUA_FORCE void
cua__histogram_count_pack(enum cua_type type, enum cua__histogram_rule rule,
			  enum cua__histogram_counter counter, const struct cua__histogram_job *j,
			  const struct cua__histogram_edges *edges, struct cua__histogram_own *own,
			  const struct cua__histogram_pack *p, int together, uint32_t from)
{
	const uint32_t n = 16 / (uint32_t)cua__histogram_size(type);
	uint64_t raw[16];
	uint32_t slot[16], k;
	int not_it[16];

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
		not_it[k] = counter == CUA__COUNT_BYTES && slot[k] == CUA__HISTOGRAM_NONE;
	}
	if (cua__histogram_hot_choose(counter, j, own, n, slot, from))
		return;
	if (own->hot != CUA__HISTOGRAM_NO_HOT) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			/* its number in the group, if it is below 4; the shift has no other bit, nor is
			 * one lost where slots are that few */
			const uint32_t at = slot[k] ^ own->hot * 4;

			own->hot_n += cua_port_shl_u32(
				1, counter == CUA__COUNT_GLOBAL && at >= 4 ? 32 : at * 8);
			not_it[k] |= at < 4;
		}
		if (counter != CUA__COUNT_GLOBAL)
			cua__histogram_count_packed(counter, j, own, n, slot, not_it);
	} else if (counter != CUA__COUNT_GLOBAL) {
		/* not_it is constant here but for BYTES */
		cua__histogram_count_packed(counter, j, own, n, slot, not_it);
	}
	if (counter == CUA__COUNT_GLOBAL) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			if (!not_it[k])
				cua__histogram_count(counter, j, own, slot[k]);
	}
}

/* Element i, by any lanes. */
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
 * All elements of one row without gaps, of one channel, to the slots of the block. A tile is what a
 * block loads at once, a contiguous part of it a warp; the next tile is on its way while one is
 * counted.
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
	/* read only where they have been loaded, which not every compiler sees */
	memset(now, 0, sizeof(now));
	memset(next, 0, sizeof(next));
#endif
	if (head > n)
		head = n;
	packs = (n - head) * size / 16;
	full = packs / tile;
	/* what is left then is less than a tile a block; where there may be a hot group, it is not
	 * counted by it, so it is as little as can be there */
	if (!cua__histogram_has_hot(counter))
		full = full / members * members;
	p = (const struct cua__histogram_pack *)(const void *)(x + head * size);
	if (member < full) {
		CUA__UNROLL
		for (l = 0; l < loads; l++)
			now[l] = p[(uint64_t)member * tile + mine + l * 32];
	}
	/* the zeros */
	cua_port_sync_block();

	/* one by one: before the packs and behind them */
	if (member == members - 1) {
		const uint64_t behind = head + packs * (16 / size);

		if (thread < head)
			cua__histogram_count_single(type, rule, counter, j, edges, own, thread);
		if (thread < n - behind)
			cua__histogram_count_single(type, rule, counter, j, edges, own,
						    behind + thread);
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

/* ---- the end of a block, and of all ---- */

/* The number of a slot that a block has. */
CUA_FORCE uint32_t cua__histogram_field(enum cua__histogram_counter counter, uint32_t word,
					uint32_t k)
{
	const uint32_t bits = cua__histogram_field_bits(counter);

	return bits == 32 ? word : (word >> k * bits) & (((uint32_t)1 << bits) - 1);
}

/* Stores the block's slots as its row, or adds them to the sums; behind a barrier. */
CUA_FORCE void cua__histogram_store_row(enum cua__histogram_counter counter,
					const struct cua__histogram_job *j, const uint32_t *words)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint32_t *row = j->rows + cua_port_block() * j->row_words;
	uint32_t i, k;

	for (i = thread; i < j->row_words; i += threads) {
		uint32_t v = 0;

		if (counter == CUA__COUNT_COLUMNS) {
			/* each lane begins in a column of its own: all banks at once */
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

/* Of elements of 8 bits: the counts of all values become those of slots. By one block. */
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

/* Words of shared memory that cua__histogram_finish wants. */
CUA_FORCE uint32_t cua__histogram_finish_words(uint32_t threads, uint32_t slots)
{
	return 2 * (4 * threads > slots ? 4 * threads : slots);
}

/* Rows of which a thread has a place in flight, whichever place it is. */
#define CUA__HISTOGRAM_ROWS 9u

/*
 * Adds up the rows, of places of `a_place` words each: group g of the block's threads those of blocks
 * g, g + groups and so on, to sums[g * row_words] and behind it.
 */
CUA_FORCE void cua__histogram_add_rows(uint32_t a_place, const struct cua__histogram_job *j,
				       uint32_t groups, uint64_t *sums)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t places = j->row_words / a_place, group = thread / places;
	const uint32_t *rows = j->rows;
	uint32_t place = groups == 1 ? thread : group < groups ? thread % places : places;
	uint32_t block = groups == 1 ? 0 : group, first = block, r, k;
	uint64_t sum[4] = {0, 0, 0, 0};

	while (place < places) {
		struct cua__histogram_pack v[CUA__HISTOGRAM_ROWS];
		uint32_t next_place = place, next_block = block;

		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_ROWS; r++) {
			const uint64_t at = ((uint64_t)next_block * places + next_place) * a_place;

			CUA__UNROLL
			for (k = 0; k < 4; k++)
				v[r].word[k] = 0;
			if (next_place < places) {
				if (a_place == 4)
					v[r] = CUA_READ(*(const struct cua__histogram_pack
								  *)(const void *)&rows[at]);
				else
					v[r].word[0] = CUA_READ(rows[at]);
			}
			next_block += groups;
			if (next_block >= j->blocks) {
				next_block = first;
				next_place += threads;
			}
		}
		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_ROWS; r++) {
			CUA__UNROLL
			for (k = 0; k < a_place; k++)
				sum[k] += v[r].word[k];
			block += groups;
			if (block < j->blocks)
				continue;
			if (place < places) {
				CUA__UNROLL
				for (k = 0; k < a_place; k++)
					CUA_WRITE(sums[first * j->row_words + place * a_place + k],
						  sum[k]);
			}
			CUA__UNROLL
			for (k = 0; k < a_place; k++)
				sum[k] = 0;
			block = first;
			place += threads;
		}
	}
}

/* Whether the block is the last one to arrive: 1 in all of its threads then. */
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

/* Makes counts of the sums, which become zeros again; or numbers of 64 bits in shared memory, of VALUE. */
CUA_FORCE void cua__histogram_take_sums(enum cua__histogram_rule rule,
					const struct cua__histogram_job *j, uint64_t *values)
{
	const uint32_t threads = cua_port_block_size(), slots = j->row_words;
	uint32_t v[CUA__HISTOGRAM_ROWS], first, i, k;

	for (first = cua_port_thread(); first < slots; first += threads * CUA__HISTOGRAM_ROWS) {
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_ROWS; k++) {
			i = first + k * threads;
			v[k] = i < slots ? CUA_READ(j->sums[i]) : 0;
		}
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_ROWS; k++) {
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

/* Merges all blocks' slots, which are words, in the block that arrives last. */
CUA_FORCE void cua__histogram_finish(enum cua_type type, enum cua__histogram_rule rule,
				     const struct cua__histogram_job *j, uint32_t *shared)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t slots = j->row_words, blocks = j->blocks;
	uint64_t *sums = (uint64_t *)(void *)shared;
	/* 4 slots at once, where rows of them are aligned */
	const int packed =
		slots % 4 == 0 && (uintptr_t)j->rows % sizeof(struct cua__histogram_pack) == 0;
	const uint32_t places = packed ? slots / 4 : slots;
	uint32_t groups = places < threads ? threads / places : 1, i, b;

	if (!cua__histogram_is_last(j, shared))
		return;
	if (j->sums) {
		cua__histogram_take_sums(rule, j, sums);
		if (rule == CUA__RULE_VALUE) {
			cua_port_sync_block();
			cua__histogram_put_values(type, j, sums);
		}
		return;
	}
	if (groups > blocks)
		groups = blocks;
	if (packed)
		cua__histogram_add_rows(4, j, groups, sums);
	else
		cua__histogram_add_rows(1, j, groups, sums);
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

/* What a block has; edges and words are in its shared memory. */
struct cua__histogram_block {
	struct cua__histogram_edges edges;
	struct cua__histogram_own own;
};

/* What a block does before it reads elements, counts or scratch memory. keys: of edges. */
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

/* Counts all, and merges the rows if it is to. */
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
	cua__histogram_store_row(counter, j, own->words);
	if (j->finish_here && (counter == CUA__COUNT_COLUMNS || counter == CUA__COUNT_WORDS))
		cua__histogram_finish(type, rule, j, own->words);
}

/*
 * Merges the rows, a block 32 words of them; `add`: to the counts that are there. shared: 32 *
 * fields words of 64 bits a warp.
 */
CUA_FORCE void cua__histogram_merge(enum cua__histogram_counter counter,
				    const struct cua__histogram_job *j, int add, uint64_t *shared)
{
	const uint32_t a_word = cua__histogram_a_word(counter);
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / 32;
	const uint32_t warps = cua_port_block_size() / 32;
	const uint32_t pieces = (j->row_words + 31) / 32; /* of a row */
	const uint32_t range = (uint32_t)(cua_port_block() / pieces);
	const uint32_t word = (uint32_t)(cua_port_block() % pieces) * 32 + lane;
	const uint32_t first = range * j->range_slots;
	const uint32_t *at = j->rows + word;
	uint64_t sum[4] = {0, 0, 0, 0};
	uint32_t k, b, w;

	if (word < j->row_words) {
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
		for (b = range + warp * j->ranges; b < j->blocks; b += warps * j->ranges) {
			const uint32_t v = CUA_READ(at[(uint64_t)b * j->row_words]);

			CUA__UNROLL
			for (k = 0; k < a_word; k++)
				sum[k] += cua__histogram_field(counter, v, k);
		}
	}
	CUA__UNROLL
	for (k = 0; k < a_word; k++)
		CUA_WRITE(shared[(warp * a_word + k) * 32 + lane], sum[k]);
	cua_port_sync_block();
	/* one thread a slot */
	for (k = warp; k < a_word; k += warps) {
		const uint32_t slot = word * a_word + k;
		uint64_t all = 0;

		for (w = 0; w < warps; w++)
			all += CUA_READ(shared[(w * a_word + k) * 32 + lane]);
		if (word < j->row_words && slot < j->range_slots && first + slot < j->slots)
			cua__histogram_put(&j->h, add, first + slot, all);
	}
}

/* ---- which kernel, and how ---- */

#ifndef CUA__HISTOGRAM_BLOCK
#define CUA__HISTOGRAM_BLOCK 1024u
#endif
/* Of arrays that few large blocks would read. */
#ifndef CUA__HISTOGRAM_SMALL_BLOCK
#define CUA__HISTOGRAM_SMALL_BLOCK 512u
#endif
#ifndef CUA__HISTOGRAM_SMALL_BYTES
#define CUA__HISTOGRAM_SMALL_BYTES ((uint64_t)4 << 20)
#endif
/* 16-byte packs that a thread of theirs counts, as long as there are processors; and most additions that all
 * blocks make to the sums. */
#define CUA__HISTOGRAM_SMALL_LOADS 2u
#define CUA__HISTOGRAM_MOST_ADDED 300000u
#define CUA__HISTOGRAM_SMALL_SLOTS 1024u
/* Most slots in columns: 256 bins, and the sides. */
#ifndef CUA__HISTOGRAM_COLUMN_SLOTS
#define CUA__HISTOGRAM_COLUMN_SLOTS 260u
#endif
/* Most ranges that the slots are split into; each reads everything. */
#define CUA__HISTOGRAM_RANGES 16u
/* Most words of all rows that one block merges. */
#define CUA__HISTOGRAM_MERGED_HERE 40000u
/* Most bytes of edges, up to a power of two of them. */
#define CUA__HISTOGRAM_EDGES ((size_t)32 << 10)
/* Cells of the guide to them, and fewer where building it would take long. */
#define CUA__HISTOGRAM_CELLS 16384u
#define CUA__HISTOGRAM_FEW_CELLS 1024u
/* A block's count of 32 bits has room for more than these elements. */
#define CUA__HISTOGRAM_MOST_A_BLOCK ((uint64_t)1 << 31)

struct cua__histogram_plan {
	struct cua__histogram_job job;
	enum cua__histogram_rule rule;
	enum cua__histogram_counter counter;
	uint32_t block; /* threads */
	int sums;       /* job.sums is to be so many zeros as there are row_words */
	size_t shared;  /* bytes */
};

/* Whether EVEN_FAST is right for a range, and what it wants to know of it. */
static inline int cua__histogram_fast_range(enum cua_type type, const struct cua_histogram_range *r,
					    struct cua__histogram_job *job)
{
	int64_t least, most;
	int i;

	if (r->is_float) {
		/* from keys back to numbers: the first one in the range, and the last one */
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
	/* the last one that the type has */
	job->last = (uint32_t)(r->last < (uint64_t)most - r->lower ? r->last
								   : (uint64_t)most - r->lower);
	return 1;
}

/* The kernels that there are. */
static inline int cua__histogram_has_kernel(enum cua_type type, enum cua__histogram_rule rule,
					    enum cua__histogram_counter counter)
{
	if (counter <= CUA__COUNT_WORDS)
		return 1;
	if (rule == CUA__RULE_EDGES || cua__histogram_size(type) == 2)
		return 0;
	return counter == CUA__COUNT_HALVES || cua__histogram_size(type) == 4;
}

/* Chooses rule, counter and slots. 0: none of them, but the kernel for any histogram. */
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
			/* the counters behind them are of 32 bits, but rows are merged in 64 */
			job->edge_words = (job->edge_words + 1) / 2 * 2 + job->cells / 2;
			if (job->edge_words <= words / 4 ||
			    job->cells <= CUA__HISTOGRAM_LEAST_CELLS)
				break;
		}
		if (job->edge_words >= words)
			return 0;
		words -= job->edge_words;
	}
	/* so few elements are not worth the clearing */
	if (h->n < slots / 4 && size > 1)
		return 0;
	if (slots > CUA__HISTOGRAM_COLUMN_SLOTS)
		p->counter = slots <= words       ? CUA__COUNT_WORDS
			     : slots <= words * 2 ? CUA__COUNT_HALVES
						  : CUA__COUNT_BYTES;
	if (p->counter == CUA__COUNT_BYTES) {
		/* whole words */
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

/* Chooses all, for arrays of so many elements; 0: as above. */
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
	job->row_words = p->counter == CUA__COUNT_COLUMNS ? job->slots : (uint32_t)words;
	merging = p->sums ? 2 * CUA__HISTOGRAM_BYTES
			  : cua__histogram_finish_words(p->block, job->row_words);
	merging = merging > words ? merging : words;
	job->finish_here =
		p->sums || (p->counter <= CUA__COUNT_WORDS &&
			    (merging + job->edge_words) * 4 <= shared_bytes &&
			    (p->rule == CUA__RULE_VALUE ||
			     (uint64_t)job->row_words * job->blocks <= CUA__HISTOGRAM_MERGED_HERE));
	p->shared = ((job->finish_here ? merging : words) + job->edge_words) * 4;
	return 1;
}

/* Blocks of cua__histogram_merge. */
static inline uint32_t cua__histogram_merges(const struct cua__histogram_job *job)
{
	return (job->row_words + 31) / 32 * job->ranges;
}

/* ---- any histogram: rows, channels, weights, and the strategies that were asked for ---- */

/* Elements that a thread has in flight. */
#define CUA__HISTOGRAM_AT_ONCE 4u

struct cua__histogram_any {
	uint32_t *words;   /* the block's private slots, each a word, or two with weights */
	uint32_t own_bins; /* of each channel; 0: nothing is private */
	uint32_t last[CUA_HISTOGRAM_MAX_CHANNELS]; /* AGGREGATED: a run of equal slots */
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
	/* 64 bits as two words; each carry of the lower one is seen by one addition, which brings
	 * it to the upper */
	own = &a->words[slot * 2];
	old = cua_port_fetch_add_u32(own, (uint32_t)n, CUA_RELAXED, CUA_SCOPE_BLOCK,
				     CUA_SPACE_SHARED);
	old = (uint32_t)(n >> 32) + (old + (uint32_t)n < old);
	if (old)
		cua_port_add_u32(own + 1, old, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
}

/* What element i adds to its slot; 0 if its weight is refused. */
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
		int is[CUA__HISTOGRAM_AT_ONCE], taken[CUA__HISTOGRAM_AT_ONCE];
		uint32_t u;

		CUA__UNROLL
		for (u = 0; u < CUA__HISTOGRAM_AT_ONCE; u++) {
			const char *at =
				(const char *)h->x + row * h->pitch + column * h->channels * size;

			is[u] = i < end;
			taken[u] = 0;
			n[u] = 0;
			if (is[u])
				taken[u] = cua__histogram_weight(h, i, &n[u]);
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
				else if (!taken[u])
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
