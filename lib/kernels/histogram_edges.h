/* SPDX-License-Identifier: MIT */
/* The counters of elements in bins between edges. A guide in shared memory locates the edges. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_EDGES_H
#define CUATOMIC_KERNELS_HISTOGRAM_EDGES_H

#include "kernels/histogram_elements.h"
#include "kernels/histogram_job.h"

/*
 * A guide locates the edges. The range is divided into cells, and each entry of the guide is the
 * number of inner edges in lower cells. Only the edges in the element's cell remain; these are few.
 * If no cell has several edges, a comparison with the cell's edge, if any, yields the bin.
 * Otherwise a binary search finds the last edge that is not above the element.
 *
 * The map from elements and edges to cells must be monotonic, and the same for both; nothing else
 * is required. Then an edge in a lower cell is not above the element, and an edge in a higher cell
 * is. The map is either the difference of the keys shifted right, or, for floats, a line. The map
 * that leaves fewer edges in its fullest cell is used. Elements in cells without an edge load no
 * edge, or all load the same edge, because lanes that load different edges wait for each other.
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
	uint32_t shift;       /* of key differences */
	uint64_t first;       /* key of the first edge */
	uint64_t span;        /* difference of the last key in the range from `first` */
	uint64_t least, most; /* least and greatest key in the range */
	uint64_t from, to;    /* bits of the least and the greatest float in the range */
	/* the line of an f32 is its cell with fractions, divided by last_cell */
	float scale_f32, offset_f32, last_cell;
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
	return type == CUA_F64 ? cua__bits_of_ordered_f64(key)
			       : cua__bits_of_ordered_f32((uint32_t)key);
}

/* An edge in the form that shared memory holds. */
CUA_FORCE uint64_t cua__histogram_edge_of_key(enum cua_type type, int by_value,
					      const struct cua__histogram_edges *e, uint64_t key)
{
	return by_value ? cua__histogram_float_of_key(type, key) : key - e->first;
}

/* a * b + c, rounded once. */
CUA_FORCE float cua__histogram_fma(float a, float b, float c)
{
#ifdef __CUDA_ARCH__
	return __fmaf_rn(a, b, c);
#else
	return __builtin_fmaf(a, b, c);
#endif
}

/* The same, clamped to [0, 1]; 0 if it is NaN. */
CUA_FORCE float cua__histogram_saturated(float a, float b, float c)
{
	float f = cua__histogram_fma(a, b, c);

#ifdef __CUDA_ARCH__
	return __saturatef(f);
#else
	f = f >= 0 ? f : 0;
	return f <= 1 ? f : 1;
#endif
}

/*
 * Cell of an element or of an edge, both in that form. An element in no bin may have any cell, but
 * must be in the range unless it is an f32 by value.
 */
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
		d = cua_port_sub_rn_f64(cua__from_bits_f64(v), cua__from_bits_f64(e->from));
		d = cua_port_add_rn_f64(cua_port_mul_rn_f64(d, e->scale_f64), 0x1p52);
		memcpy(&bits64, &d, sizeof(bits64));
		return (uint32_t)bits64;
	}
	f = cua__histogram_saturated(cua__from_bits_f32((uint32_t)v), e->scale_f32, e->offset_f32);
	f = cua__histogram_fma(f, e->last_cell, 0x1p23f);
	memcpy(&bits, &f, sizeof(bits));
	return bits - 0x4b000000u;
}

CUA_FORCE int cua__histogram_not_below(enum cua_type type, int by_value, uint64_t v, uint64_t edge)
{
	if (by_value)
		return type == CUA_F64 ? cua__from_bits_f64(v) >= cua__from_bits_f64(edge)
				       : cua__from_bits_f32((uint32_t)v) >=
						 cua__from_bits_f32((uint32_t)edge);
	return cua__histogram_key_bytes(type) == 8 ? v >= edge : (uint32_t)v >= (uint32_t)edge;
}

/*
 * Converts an element to that form. Sets *out if it was outside the range. Clamps it to the range,
 * except f32 by value, where the cell is clamped.
 */
CUA_FORCE uint64_t cua__histogram_into_range(enum cua_type type, int by_value,
					     const struct cua__histogram_edges *e, uint64_t raw,
					     int *out)
{
	float f;
	double d, c;
	uint32_t bits;

	if (!by_value) {
		const uint64_t v = cua__histogram_edge_key(type, raw) - e->first;

		if (cua__histogram_key_bytes(type) == 8) {
			*out = *out || v > e->span;
			return v > e->span ? e->span : v;
		}
		*out = *out || (uint32_t)v > (uint32_t)e->span;
		return (uint32_t)v > (uint32_t)e->span ? (uint32_t)e->span : (uint32_t)v;
	}
	if (type == CUA_F64) {
		d = cua__from_bits_f64(raw);
		c = d >= cua__from_bits_f64(e->from) ? d : cua__from_bits_f64(e->from);
		c = c <= cua__from_bits_f64(e->to) ? c : cua__from_bits_f64(e->to);
		*out = *out || d != c;
		memcpy(&raw, &c, sizeof(raw));
		return raw;
	}
	f = cua__element_f32(type, raw);
	*out = *out || !(f >= cua__from_bits_f32((uint32_t)e->from) &&
			 f <= cua__from_bits_f32((uint32_t)e->to));
	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* Whether the line can be used. Computes the line's parameters. */
CUA_FORCE int cua__histogram_line(enum cua_type type, const struct cua__histogram_job *j,
				  uint64_t last_key, struct cua__histogram_edges *e)
{
	const uint64_t last = cua__histogram_float_of_key(type, last_key);
	double d;
	float f;

	if (!cua__is_float(type) || e->empty)
		return 0;
	/* an infinite or NaN parameter fails these tests */
	if (type == CUA_F64) {
		d = cua_port_sub_rn_f64(cua__from_bits_f64(last), cua__from_bits_f64(e->from));
		e->scale_f64 = cua_port_div_rn_f64((double)(j->cells - 1), d);
		return d > 0 && d < 0x1p1000 && e->scale_f64 < 0x1p1000;
	}
	f = cua_port_sub_rn_f32(cua__from_bits_f32((uint32_t)last),
				cua__from_bits_f32((uint32_t)e->from));
	e->scale_f32 = cua_port_div_rn_f32(1, f);
	e->offset_f32 = -cua_port_mul_rn_f32(cua__from_bits_f32((uint32_t)e->from), e->scale_f32);
	e->last_cell = (float)(j->cells - 1);
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
	if (cua__is_float(type) && !j->h.closed &&
	    last == (uint64_t)1 << (type == CUA_F64 ? 63 : 31))
		e->most--;
	e->span = e->empty ? 0 : e->most - e->first;
	for (e->shift = 0; (last - e->first) >> e->shift >= j->cells; e->shift++)
		;
	e->from = cua__histogram_float_of_key(type, e->least);
	e->to = cua__histogram_float_of_key(type, e->most);
	e->scale_f32 = e->offset_f32 = e->last_cell = 0;
	e->scale_f64 = 0;
	line = cua__histogram_line(type, j, last, e);
	cua_port_add_u32(&found[cua__histogram_max_edges_log2(type, 0, j, shared, e)], 1,
			 CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	if (cua__is_float(type) && line)
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
	e->by_value = cua__is_float(type) && max_edges_log2[1] <= max_edges_log2[0];
	e->search_step = ((uint32_t)1 << max_edges_log2[e->by_value]) / 2;
	if (cua__is_float(type) && e->by_value)
		cua__histogram_guide_build(type, 1, j, shared, e);
	else
		cua__histogram_guide_build(type, 0, j, shared, e);
}

/*
 * Finds the bins of n elements as if they were in the range. Returns whether some element is in no
 * bin. Each step is performed for all n elements, so that its loads are in flight together.
 */
CUA_FORCE int cua__histogram_search(enum cua_type type, int by_value,
				    const struct cua__histogram_job *j,
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
	if (e->search_step <= 1) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const int has_edge = !(counter[k] & CUA__HISTOGRAM_NO_EDGE);

			counter[k] &= CUA__HISTOGRAM_NO_EDGE - 1;
			if (has_edge)
				counter[k] += (uint32_t)cua__histogram_not_below(
					type, by_value, v[k],
					cua__histogram_edge(type, e->edges, counter[k] + 1));
		}
		return out;
	}
	CUA__NO_UNROLL
	for (w = e->search_step; w; w /= 2) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			const uint32_t i = counter[k] + w < j->h.bins ? counter[k] + w : j->h.bins;

			counter[k] +=
				cua__histogram_not_below(type, by_value, v[k],
							 cua__histogram_edge(type, e->edges, i))
					? w
					: 0;
		}
	}
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		counter[k] &= CUA__HISTOGRAM_NO_EDGE - 1;
		counter[k] = counter[k] < j->last_bin ? counter[k] : j->last_bin;
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

	if (cua__is_float(type) && e->by_value)
		out = cua__histogram_search(type, 1, j, e, n, raw, counter);
	else
		out = cua__histogram_search(type, 0, j, e, n, raw, counter);
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

#endif /* CUATOMIC_KERNELS_HISTOGRAM_EDGES_H */
