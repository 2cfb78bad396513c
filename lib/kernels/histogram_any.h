/* SPDX-License-Identifier: MIT */
/* The general kernel: rows with gaps, channels, weights, and strategies chosen by the user. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_ANY_H
#define CUATOMIC_KERNELS_HISTOGRAM_ANY_H

#include "kernels/histogram_find.h"

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
	const size_t size = cua__element_size(type);
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
						    ? (cua__element_load(size, at, c) ^ top) - top
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

#endif /* CUATOMIC_KERNELS_HISTOGRAM_ANY_H */
