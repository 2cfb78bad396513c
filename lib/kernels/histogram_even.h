/* SPDX-License-Identifier: MIT */
/* The counters of elements in even bins. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_EVEN_H
#define CUATOMIC_KERNELS_HISTOGRAM_EVEN_H

#include "kernels/histogram_elements.h"
#include "kernels/histogram_job.h"

CUA_FORCE int cua__histogram_is_in_fast(enum cua_type type, const struct cua__histogram_job *j,
					uint64_t raw)
{
	double x;
	float f;

	if (type == CUA_F64) {
		x = cua__from_bits_f64(raw);
		return x >= j->least_f64 && x <= j->most_f64;
	}
	if (cua__is_float(type)) {
		f = cua__element_f32(type, raw);
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
		x = cua__from_bits_f64(raw);
		return x != x             ? CUA_HISTOGRAM_NAN
		       : x < j->least_f64 ? CUA_HISTOGRAM_BELOW
					  : CUA_HISTOGRAM_ABOVE;
	}
	if (cua__is_float(type)) {
		f = cua__element_f32(type, raw);
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
	if (cua__is_float(type)) {
		CUA__UNROLL
		for (k = 0; k < n; k++) {
			double x = type == CUA_F64
					   ? cua__from_bits_f64(raw[k])
					   : cua_port_cvt_f64_f32(cua__element_f32(type, raw[k]));

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
	if (cua__is_float(type) || !whole_bins) {
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
		double x = cua__from_bits_f64(raw);

		bin = cua_histogram_even_bin_f64(r, x);
		return bin != CUA_HISTOGRAM_NO_BIN ? bin : r->bins + cua_histogram_side_f64(r, x);
	}
	if (cua__is_float(type)) {
		float x = cua__element_f32(type, raw);

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

#endif /* CUATOMIC_KERNELS_HISTOGRAM_EVEN_H */
