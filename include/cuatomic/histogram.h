/* SPDX-License-Identifier: MIT */
/*
 * Histograms: how many elements of an array fall into each bin.
 *
 * Source: Kirk and Hwu, Programming Massively Parallel Processors, the parallel histogram: blocked
 * and interleaved partitioning, privatization and aggregation. All strategies give the same
 * counts, because integer addition has no order; they differ in time only.
 *
 * The bin rules below are part of the interface, and are the same on every backend:
 *
 *   bytes    256 bins; a byte is its own bin.
 *   letters  7 bins; 'a' to 'd' are bin 0, 'e' to 'h' bin 1, ... 'y' and 'z' bin 6. Other bytes,
 *            capital letters among them, are ignored.
 *   even     `bins` bins of equal width over [lower, upper). What is outside, and NaN, is ignored.
 *            integers: floor((x - lower) * bins / (upper - lower)), exactly.
 *            floating point: floor((x*h - lower*h) * (bins / (upper*h - lower*h))) in double, each
 *            operation rounded to nearest, and at most bins - 1. h is 1, but 1/2 where
 *            upper - lower overflows and 2^128 where it is below 2^-900.
 *
 * Synchronization: X means that the caller must order the two calls, - that the histogram does it.
 *
 *                  block_init  block_add  block_flush  load of counts
 *     block_init       X           X (1)       X             -
 *     block_add        X (1)       -           - (2)         -
 *     block_flush      X           - (2)       X             X
 *
 *     (1) for an add before the init only: block_init ends with a barrier of the block.
 *     (2) block_flush begins and ends with a barrier of the block.
 *     Several blocks may flush to the same counts at once. To load the counts: after the end of the
 *     kernel. The host calls below are ordered by the context's stream.
 *
 * Scope: block_add, the block; block_flush, the device.
 * Memory order: relaxed; the barriers of the block order the private bins.
 * Progress: block_add is wait-free and any lane of a diverged warp may call it; block_init and
 *   block_flush are called by all threads of the block together.
 * Argument: each element adds one to one private bin, and each private bin is added to its count
 *   and cleared by one thread between two barriers, so that every addition arrives once.
 */
#ifndef CUATOMIC_HISTOGRAM_H
#define CUATOMIC_HISTOGRAM_H

#include <cuatomic/context.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

#define CUA_HISTOGRAM_BYTE_BINS 256
#define CUA_HISTOGRAM_LETTER_BINS 7
/* Most bins of an even histogram. */
#define CUA_HISTOGRAM_MAX_BINS ((size_t)1 << 31)
/* What the bin functions return for an element that is ignored. */
#define CUA_HISTOGRAM_NO_BIN 0xffffffffu

/* How the elements are shared out and where they are counted. */
enum cua_histogram_strategy {
	/* privatized where all bins can be private, else interleaved */
	CUA_HISTOGRAM_AUTO = 0,
	/* a thread takes a contiguous part; one atomic an element */
	CUA_HISTOGRAM_BLOCKED = 1,
	/* threads take turns; one atomic an element */
	CUA_HISTOGRAM_INTERLEAVED = 2,
	/*
	 * A block (a CPU thread) counts in bins of its own, merged at the end; bins that do not fit
	 * its private memory stay global.
	 */
	CUA_HISTOGRAM_PRIVATIZED = 3,
	/* privatized, and a thread adds a run of equal bins at once */
	CUA_HISTOGRAM_AGGREGATED = 4
};

struct cua_histogram_options {
	size_t struct_size; /* sizeof(struct cua_histogram_options), set by the caller */
	enum cua_histogram_strategy strategy;
	int accumulate; /* not 0: add to the counts that are there, which are else overwritten */
};
#define CUA_HISTOGRAM_OPTIONS_INIT {sizeof(struct cua_histogram_options), CUA_HISTOGRAM_AUTO, 0}

/* Even bins, prepared by one of the two functions below. */
struct cua_histogram_range {
	/* integers */
	int64_t lower;
	uint64_t width;   /* upper - lower */
	uint64_t inverse; /* floor(2^64 / width), or 2^64 - 1 for a width of 1 */
	/* floating point */
	double from, to;
	double factor; /* h of the rule */
	double origin; /* from * h */
	double scale;  /* bins in (to - from) * h */
	uint32_t bins;
	uint32_t reserved; /* 0 */
};

CUA_FORCE enum cua_status cua__histogram_bins(size_t bins, struct cua_histogram_range *range)
{
	if (bins == 0)
		return CUA_ERROR_VALUE;
	if (bins > CUA_HISTOGRAM_MAX_BINS)
		return CUA_ERROR_SIZE;
	memset(range, 0, sizeof(*range));
	range->bins = (uint32_t)bins;
	return CUA_OK;
}

/*
 * Even bins for integers of at most 64 bits with a sign, or 63 without.
 * Errors: VALUE (lower >= upper, upper - lower > 2^32, or bins = 0), SIZE (bins > MAX_BINS).
 */
CUA_FN enum cua_status cua_histogram_range_i64(int64_t lower, int64_t upper, size_t bins,
					       struct cua_histogram_range *range)
{
	uint64_t width = (uint64_t)upper - (uint64_t)lower;
	struct cua_histogram_range r;
	enum cua_status status;

	if (lower >= upper || width > (uint64_t)1 << 32)
		return CUA_ERROR_VALUE;
	status = cua__histogram_bins(bins, &r);
	if (status)
		return status;
	r.lower = lower;
	r.width = width;
	/* 2^64 has one bit too many: one less gives the same but for powers of two */
	r.inverse = UINT64_MAX / width;
	if (width > 1 && (width & (width - 1)) == 0)
		r.inverse++;
	*range = r;
	return CUA_OK;
}

/*
 * Even bins for floating point.
 * Errors: VALUE (lower >= upper, a limit that is infinite or NaN, or bins = 0), SIZE (bins >
 * MAX_BINS).
 */
CUA_FN enum cua_status cua_histogram_range_f64(double lower, double upper, size_t bins,
					       struct cua_histogram_range *range)
{
	const double largest = 1.7976931348623157e308; /* the largest double */
	const double small = 1.1830521861667747e-271;  /* 2^-900 */
	const double enlarge = 3.4028236692093846e38;  /* 2^128 */
	double width = cua_port_sub_rn_f64(upper, lower);
	struct cua_histogram_range r;
	enum cua_status status;

	if (!(lower < upper) || !(lower >= -largest) || !(upper <= largest))
		return CUA_ERROR_VALUE;
	status = cua__histogram_bins(bins, &r);
	if (status)
		return status;
	r.from = lower;
	r.to = upper;
	r.factor = width > largest ? 0.5 : width < small ? enlarge : 1.0;
	r.origin = cua_port_mul_rn_f64(lower, r.factor);
	width = cua_port_sub_rn_f64(cua_port_mul_rn_f64(upper, r.factor), r.origin);
	r.scale = (double)r.bins / width;
	*range = r;
	return CUA_OK;
}

/* The bin of a byte of text, or NO_BIN. */
CUA_FORCE uint32_t cua_histogram_letter_bin(uint32_t byte)
{
	uint32_t letter = byte - 'a';

	return letter < 26 ? letter / 4 : CUA_HISTOGRAM_NO_BIN;
}

/* The upper half of a * b. */
CUA_FORCE uint64_t cua__mul_high_u64(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)(((wide)a * b) >> 64);
#else
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
	uint64_t rest = (uint32_t)middle + a0 * b1;

	return a1 * b1 + (middle >> 32) + (rest >> 32);
#endif
}

/* The bin of an integer by a range of cua_histogram_range_i64, or NO_BIN. */
CUA_FORCE uint32_t cua_histogram_even_bin_i64(const struct cua_histogram_range *range, int64_t x)
{
	uint64_t d = (uint64_t)x - (uint64_t)range->lower;
	uint64_t product, bin;

	if (d >= range->width)
		return CUA_HISTOGRAM_NO_BIN;
	/*
	 * d < 2^32 and bins <= 2^31, so product < 2^63. The inverse is at most 1 below 2^64 /
	 * width, so product * inverse / 2^64 is at most 1/2 below the quotient: its floor is right
	 * or one too small.
	 */
	product = d * range->bins;
	bin = cua__mul_high_u64(product, range->inverse);
	if (product - bin * range->width >= range->width)
		bin++;
	return (uint32_t)bin;
}

/* The bin of a number by a range of cua_histogram_range_f64, or NO_BIN. */
CUA_FORCE uint32_t cua_histogram_even_bin_f64(const struct cua_histogram_range *range, double x)
{
	double t;
	uint64_t bin;

	if (!(x >= range->from && x < range->to))
		return CUA_HISTOGRAM_NO_BIN;
	t = cua_port_sub_rn_f64(cua_port_mul_rn_f64(x, range->factor), range->origin);
	bin = (uint64_t)cua_port_mul_rn_f64(t, range->scale);
	return bin < range->bins ? (uint32_t)bin : range->bins - 1;
}

/*
 * Private bins of a block, in shared memory, for kernels of your own: all threads of the block call
 * init, then any thread adds, then all call flush, which adds the private bins to the counts in
 * global memory, skips those that are empty, and clears them for more. A block must flush before
 * any of its bins has counted 2^32 elements.
 */
CUA_FN void cua_histogram_block_init(uint32_t *shared, uint32_t bins)
{
	for (uint32_t i = cua_port_thread(); i < bins; i += cua_port_block_size())
		CUA_WRITE(shared[i], 0);
	cua_port_sync_block();
}

/* Adds one to a bin; NO_BIN is ignored. */
CUA_FORCE void cua_histogram_block_add(uint32_t *shared, uint32_t bin)
{
	if (bin != CUA_HISTOGRAM_NO_BIN)
		cua_port_add_u32(&shared[bin], 1, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
}

CUA_FN void cua_histogram_block_flush(uint32_t *shared, uint32_t bins, uint64_t *counts)
{
	cua_port_sync_block();
	for (uint32_t i = cua_port_thread(); i < bins; i += cua_port_block_size()) {
		uint32_t count = CUA_READ(shared[i]);

		if (count == 0)
			continue;
		cua_port_add_u64(&counts[i], count, CUA_RELAXED, CUA_SCOPE_DEVICE,
				 CUA_SPACE_GLOBAL);
		CUA_WRITE(shared[i], 0);
	}
	cua_port_sync_block();
}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Host. options may be NULL for the defaults. counts has one uint64_t a bin, in backend or host
 * memory: see context.h. With n = 0 the counts are cleared, or left as they are with accumulate.
 *
 * Errors: NULL (ctx, counts, or x with n > 0), VALUE (struct_size is not that of a version of the
 * options, unknown strategy), SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (counts with x), CAPTURE,
 * WORKSPACE, NO_MEMORY.
 */
CUA_API enum cua_status cua_histogram_bytes(struct cua_context *ctx,
					    const struct cua_histogram_options *options, size_t n,
					    const void *x, uint64_t *counts);
CUA_API enum cua_status cua_histogram_letters(struct cua_context *ctx,
					      const struct cua_histogram_options *options, size_t n,
					      const void *x, uint64_t *counts);

/*
 * Even bins over [lower, upper). Types: U8 U16 U32 I32 F32 F64. lower and upper point to host
 * values that are read before the call returns: int64_t for the integer types, so that [0, 256) or
 * [0, 2^32) can be said, and double for F32 and F64.
 * Further errors: NULL (lower, upper), TYPE, and those of cua_histogram_range_i64 and _f64.
 */
CUA_API enum cua_status cua_histogram_even(struct cua_context *ctx,
					   const struct cua_histogram_options *options,
					   enum cua_type type, size_t n, const void *x, size_t bins,
					   const void *lower, const void *upper, uint64_t *counts);

/*
 * The workspace that one of these calls with so many bins takes: see cua_context_reserve.
 * Errors: NULL (ctx, bytes), VALUE, SIZE.
 */
CUA_API enum cua_status cua_histogram_workspace(struct cua_context *ctx,
						const struct cua_histogram_options *options,
						size_t bins, size_t *bytes);

#ifdef __cplusplus
}
#endif

/* Even bins by type, with the default options. */
#define CUA__DEFINE_EVEN(name, TYPE, T, L)                                                         \
	CUA__HOST_FN enum cua_status cua_histogram_even_##name(struct cua_context *ctx, size_t n,  \
							       const T *x, size_t bins, L lower,   \
							       L upper, uint64_t *counts)          \
	{                                                                                          \
		return cua_histogram_even(ctx, NULL, TYPE, n, x, bins, &lower, &upper, counts);    \
	}
CUA__DEFINE_EVEN(u8, CUA_U8, uint8_t, int64_t)
CUA__DEFINE_EVEN(u16, CUA_U16, uint16_t, int64_t)
CUA__DEFINE_EVEN(u32, CUA_U32, uint32_t, int64_t)
CUA__DEFINE_EVEN(i32, CUA_I32, int32_t, int64_t)
CUA__DEFINE_EVEN(f32, CUA_F32, float, double)
CUA__DEFINE_EVEN(f64, CUA_F64, double, double)

#endif /* CUATOMIC_HISTOGRAM_H */
