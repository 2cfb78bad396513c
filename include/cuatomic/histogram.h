/* SPDX-License-Identifier: MIT */
/*
 * Histograms: the number of elements of an array in each bin.
 *
 * Source: Kirk and Hwu, Programming Massively Parallel Processors, the parallel histogram: blocked
 * and interleaved partitioning, privatization and aggregation. All strategies give the same counts,
 * because integer addition is associative and commutative. They differ only in time.
 *
 * The bin rules below are part of the interface. They are the same on every backend:
 *
 *   bytes    256 bins; a byte is its own bin.
 *   letters  7 bins; 'a' to 'd' are bin 0, 'e' to 'h' bin 1, ... 'y' and 'z' bin 6. Other bytes are
 *            in no bin: below 'a' (including capital letters), or above 'z'.
 *   even     `bins` bins of equal width over [lower, upper).
 *            integers: floor((x - lower) * bins / (upper - lower)), exactly, for any width.
 *            floating point: floor((x*h - lower*h) * (bins / (upper*h - lower*h))) in double, each
 *            operation rounded to nearest, and at most bins - 1. h is 1, except 1/2 if
 *            upper - lower overflows, and 2^128 if upper - lower is below 2^-900.
 *   edges    bin i is [edge i, edge i + 1), for bins + 1 ascending edges. Equal edges have an empty
 *            bin between them: an element equal to several edges is after the last of them.
 *   closed   even bins and edges: upper, or the last edge, also belongs to the last bin.
 *
 * An element in no bin is below, above or NaN, and is counted as such on request. -0 equals 0. f16
 * and bf16 elements are converted to double.
 *
 * Synchronization of two calls by threads of a block on the same private bins. X: the caller must
 * order the calls. -: the functions order the calls by themselves.
 *
 *                  block_init  block_add  block_flush  load of counts
 *     block_init       X           X (1)       X             -
 *     block_add        X (1)       -           - (2)         -
 *     block_flush      X           - (2)       X             X
 *
 *     (1) only for an add before the init: block_init ends with a barrier of the block.
 *     (2) block_flush begins and ends with a barrier of the block.
 *     Different blocks have different private bins, and may flush to the same counts at once. Load
 *     the counts after the end of the kernel. The host calls below are ordered by the context's
 *     stream.
 *
 * Scope: block_add, the block; block_flush, the device.
 * Memory order: relaxed; the barriers of the block order the private bins.
 * Progress: block_add is wait-free, and any lane of a diverged warp may call it. All threads of the
 *   block call block_init and block_flush together.
 * Argument: each element adds 1 to a single private bin. Between two barriers, a single thread adds
 *   each private bin to its count and clears it. So every addition arrives exactly once.
 */
#ifndef CUATOMIC_HISTOGRAM_H
#define CUATOMIC_HISTOGRAM_H

#include <cuatomic/context.h>
#include <cuatomic/detail/float_bits.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

#define CUA_HISTOGRAM_BYTE_BINS 256
#define CUA_HISTOGRAM_LETTER_BINS 7
/* Maximum number of bins of an even histogram, per channel. */
#define CUA_HISTOGRAM_MAX_BINS ((size_t)1 << 31)
/* Maximum number of edges; there is one bin less. */
#define CUA_HISTOGRAM_MAX_EDGES ((size_t)65537)
#define CUA_HISTOGRAM_MAX_CHANNELS 4
/* Returned by the bin functions for an element in no bin. */
#define CUA_HISTOGRAM_NO_BIN 0xffffffffu

/* Reasons why an element is not counted; indexes into `outside` of the options. */
enum cua_histogram_side {
	CUA_HISTOGRAM_BELOW = 0,
	CUA_HISTOGRAM_ABOVE = 1,
	CUA_HISTOGRAM_NAN = 2,
	/* in a bin, but its weight is NaN or exceeds the limit */
	CUA_HISTOGRAM_REFUSED = 3
};
#define CUA_HISTOGRAM_SIDES 4

/* How the elements are distributed to threads, and where they are counted. */
enum cua_histogram_strategy {
	/* the strategy expected to be fastest for these bins, elements and n */
	CUA_HISTOGRAM_AUTO = 0,
	/* a thread processes a contiguous range; one atomic per element */
	CUA_HISTOGRAM_BLOCKED = 1,
	/* threads take turns; one atomic per element */
	CUA_HISTOGRAM_INTERLEAVED = 2,
	/*
	 * A block (a CPU thread) counts in private bins, which are merged at the end. Bins that do
	 * not fit into private memory stay global.
	 */
	CUA_HISTOGRAM_PRIVATIZED = 3,
	/* privatized, and a thread adds a run of equal bins at once */
	CUA_HISTOGRAM_AGGREGATED = 4
};

/* Options of a histogram. 0 selects a member's default. */
struct cua_histogram_options {
	size_t struct_size; /* sizeof(struct cua_histogram_options), set by the caller */
	enum cua_histogram_strategy strategy;
	/* not 0: add to the present counts and `outside`; otherwise, both are overwritten */
	int accumulate;
	/*
	 * CUA_U64 (default), or CUA_U32: uint32_t, modulo 2^32. With float weights, CUA_F64
	 * (default).
	 */
	enum cua_type count_type;
	unsigned channels; /* interleaved values per element, 1 to 4; default 1 */
	unsigned counted;  /* number of channels that are counted, from the first; default all */
	int closed;        /* not 0: upper, or the last edge, belongs to the last bin */
	size_t width;      /* elements per row, a divisor of n; default: a single row */
	/* bytes from row to row, a multiple of a value's size; default: no gaps */
	size_t pitch;
	/* NULL, or CUA_HISTOGRAM_SIDES counts per counted channel, in backend or host memory */
	uint64_t *outside;
	/* NULL, or a weight per element, without gaps, in backend memory */
	const void *weights;
	enum cua_type weight_type; /* with weights: I32 U32 I64 U64 F32 F64 */
	double weight_limit;       /* of float weights: maximum of |weight|; default 1 */
};
#define CUA_HISTOGRAM_OPTIONS_INIT                                                                 \
	{                                                                                          \
		sizeof(struct cua_histogram_options), CUA_HISTOGRAM_AUTO, 0, (enum cua_type)0, 0,  \
			0, 0, 0, 0, NULL, NULL, (enum cua_type)0, 0                                \
	}

/* Even bins, prepared by one of the cua_histogram_range functions. */
struct cua_histogram_range {
	/*
	 * Integers: d = x - lower, modulo 2^64, is in the range if d <= last. Its bin is d * whole
	 * + d * part / 2^64, where whole + part / 2^64 is bins / width, rounded up.
	 */
	uint64_t lower;
	uint64_t width; /* upper - lower */
	uint64_t last;
	uint64_t part;
	/* floating point */
	double factor; /* h of the bin rule */
	double origin; /* lower * h */
	double scale;  /* bins / ((upper - lower) * h) */
	/*
	 * x is in the range if its key - first < span, modulo 2^32 or 2^64: see
	 * cua__histogram_key_f32
	 */
	uint64_t first_f64, span_f64;
	uint32_t first_f32, span_f32;
	uint32_t whole;
	uint32_t bins;
	uint32_t is_float;
	uint32_t closed;
};

/* ---- keys ---- */

/*
 * Keys of floats: integers in the order of the floats. Here, the key of -0 is 1 less than that of
 * +0.
 */
CUA_FORCE uint32_t cua__histogram_key_f32(float x)
{
	return cua__ordered_f32(cua__bits_f32(x));
}

CUA_FORCE uint64_t cua__histogram_key_f64(double x)
{
	return cua__ordered_f64(cua__bits_f64(x));
}

#define CUA__HISTOGRAM_MINUS_ZERO 0x7fffffffffffffffu /* the key of -0 */

/*
 * Key of the least float whose conversion to double has this key or a greater key. If there is
 * none: the key after infinity.
 */
CUA_FN uint32_t cua__histogram_least_f32(uint64_t key)
{
	uint32_t least = 0x007fffffu, end = 0xff800001u; /* keys of -infinity, and after infinity */

	while (least < end) {
		uint32_t middle = least + (end - least) / 2;
		float v = cua__from_bits_f32(cua__bits_of_ordered_f32(middle));

		if (cua__histogram_key_f64(cua_port_cvt_f64_f32(v)) < key)
			least = middle + 1;
		else
			end = middle;
	}
	return least;
}

/* ---- even bins ---- */

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

CUA_FN enum cua_status cua__histogram_range_integer(uint64_t lower, uint64_t width, size_t bins,
						    struct cua_histogram_range *range)
{
	struct cua_histogram_range r;
	enum cua_status status;
	uint64_t rest;

	status = cua__histogram_bins(bins, &r);
	if (status)
		return status;
	r.lower = lower;
	r.width = width;
	r.last = width - 1;
	r.whole = (uint32_t)(r.bins / width);
	/* part = rest * 2^64 / width, bit by bit */
	rest = r.bins % width;
	for (int bit = 0; bit < 64; bit++) {
		const uint64_t carry = rest >> 63;

		rest <<= 1;
		r.part <<= 1;
		if (carry || rest >= width) {
			rest -= width;
			r.part |= 1;
		}
	}
	if (rest)
		r.part++;
	*range = r;
	return CUA_OK;
}

/*
 * Even bins for signed integers, and for unsigned integers below 2^63.
 * Errors: VALUE (lower >= upper, or bins = 0), SIZE (bins > MAX_BINS).
 */
CUA_FN enum cua_status cua_histogram_range_i64(int64_t lower, int64_t upper, size_t bins,
					       struct cua_histogram_range *range)
{
	if (lower >= upper)
		return CUA_ERROR_VALUE;
	return cua__histogram_range_integer((uint64_t)lower, (uint64_t)upper - (uint64_t)lower,
					    bins, range);
}

/* Even bins for unsigned integers. Errors as above. */
CUA_FN enum cua_status cua_histogram_range_u64(uint64_t lower, uint64_t upper, size_t bins,
					       struct cua_histogram_range *range)
{
	if (lower >= upper)
		return CUA_ERROR_VALUE;
	return cua__histogram_range_integer(lower, upper - lower, bins, range);
}

/* Sets the limits of a float range: its first key, and the first key after it. */
CUA_FN void cua__histogram_set_keys(struct cua_histogram_range *range, uint64_t first, uint64_t end)
{
	range->first_f64 = first;
	range->span_f64 = end - first;
	range->first_f32 = cua__histogram_least_f32(first);
	range->span_f32 = cua__histogram_least_f32(end) - range->first_f32;
}

/*
 * Even bins for floating point.
 * Errors: VALUE (lower >= upper, an infinite or NaN limit, or bins = 0), SIZE (bins > MAX_BINS).
 */
CUA_FN enum cua_status cua_histogram_range_f64(double lower, double upper, size_t bins,
					       struct cua_histogram_range *range)
{
	const double largest = 1.7976931348623157e308; /* the largest double */
	const double small = 1.1830521861667747e-271;  /* 2^-900 */
	const double enlarge = 3.4028236692093846e38;  /* 2^128 */
	const uint64_t infinity = 0xfff0000000000000u, minus_infinity = 0x000fffffffffffffu;
	uint64_t first = cua__histogram_key_f64(lower), end = cua__histogram_key_f64(upper);
	double width = cua_port_sub_rn_f64(upper, lower);
	struct cua_histogram_range r;
	enum cua_status status;

	/* -0 equals 0, so a limit of 0 comes before both */
	if (first == CUA__HISTOGRAM_MINUS_ZERO + 1)
		first--;
	if (end == CUA__HISTOGRAM_MINUS_ZERO + 1)
		end--;
	if (first >= end || first <= minus_infinity || end >= infinity)
		return CUA_ERROR_VALUE;
	status = cua__histogram_bins(bins, &r);
	if (status)
		return status;
	r.factor = width > largest ? 0.5 : width < small ? enlarge : 1.0;
	r.origin = cua_port_mul_rn_f64(lower, r.factor);
	width = cua_port_sub_rn_f64(cua_port_mul_rn_f64(upper, r.factor), r.origin);
	r.scale = (double)r.bins / width;
	r.is_float = 1;
	cua__histogram_set_keys(&r, first, end);
	*range = r;
	return CUA_OK;
}

/* Adds upper to the last bin. */
CUA_FN void cua_histogram_range_close(struct cua_histogram_range *range)
{
	uint64_t end;

	if (range->closed)
		return;
	range->closed = 1;
	range->last = range->width;
	if (range->is_float) {
		end = range->first_f64 + range->span_f64;
		cua__histogram_set_keys(range, range->first_f64,
					end + (end == CUA__HISTOGRAM_MINUS_ZERO ? 2 : 1));
	}
}

/* The bin of lower + d, for integer ranges of width <= 2^32. */
CUA_FORCE uint32_t cua__histogram_narrow_bin(const struct cua_histogram_range *range, uint64_t d)
{
	/*
	 * Rounding up adds less than d / 2^64 to the quotient. A quotient that is no integer is at
	 * least 1 / width below the next integer. Either d < width <= 2^32, or d = width, which
	 * occurs only in a closed range and gives `bins`.
	 */
	uint64_t bin = d * range->whole + cua_port_mul_high_u64(d, range->part);

	return bin < range->bins ? (uint32_t)bin : range->bins - 1;
}

/* The same for larger widths, where whole is 0. */
CUA_FORCE uint32_t cua__histogram_wide_bin(const struct cua_histogram_range *range, uint64_t d)
{
	/*
	 * rounding up adds less than 1, so bin is right or 1 too large: the latter if bin * width >
	 * d * bins
	 */
	uint64_t bin = cua_port_mul_high_u64(d, range->part);
	uint64_t high = cua_port_mul_high_u64(bin, range->width);
	uint64_t exact = cua_port_mul_high_u64(d, range->bins);

	if (high > exact || (high == exact && bin * range->width > d * range->bins))
		bin--;
	return bin < range->bins ? (uint32_t)bin : range->bins - 1;
}

/* The bin of an integer in a range of cua_histogram_range_u64, or NO_BIN. */
CUA_FORCE uint32_t cua_histogram_even_bin_u64(const struct cua_histogram_range *range, uint64_t x)
{
	uint64_t d = x - range->lower;

	if (d > range->last)
		return CUA_HISTOGRAM_NO_BIN;
	return range->width > (uint64_t)1 << 32 ? cua__histogram_wide_bin(range, d)
						: cua__histogram_narrow_bin(range, d);
}

/* The bin of an integer in a range of cua_histogram_range_i64, or NO_BIN. */
CUA_FORCE uint32_t cua_histogram_even_bin_i64(const struct cua_histogram_range *range, int64_t x)
{
	return cua_histogram_even_bin_u64(range, (uint64_t)x);
}

/* The bin of a number in the range. */
CUA_FORCE uint32_t cua__histogram_float_bin(const struct cua_histogram_range *range, double x)
{
	double t = cua_port_sub_rn_f64(cua_port_mul_rn_f64(x, range->factor), range->origin);
	/* the product is at most slightly above bins */
	uint32_t bin = (uint32_t)cua_port_mul_rn_f64(t, range->scale);

	return bin < range->bins ? bin : range->bins - 1;
}

/* The bin of a number in a range of cua_histogram_range_f64, or NO_BIN. */
CUA_FORCE uint32_t cua_histogram_even_bin_f64(const struct cua_histogram_range *range, double x)
{
	if (cua__histogram_key_f64(x) - range->first_f64 >= range->span_f64)
		return CUA_HISTOGRAM_NO_BIN;
	return cua__histogram_float_bin(range, x);
}

/* The same for a float, with fewer instructions. */
CUA_FORCE uint32_t cua_histogram_even_bin_f32(const struct cua_histogram_range *range, float x)
{
	if (cua__histogram_key_f32(x) - range->first_f32 >= range->span_f32)
		return CUA_HISTOGRAM_NO_BIN;
	return cua__histogram_float_bin(range, cua_port_cvt_f64_f32(x));
}

/* The side of an element that is in no bin. */
CUA_FORCE enum cua_histogram_side cua_histogram_side_i64(const struct cua_histogram_range *range,
							 int64_t x)
{
	return x < (int64_t)range->lower ? CUA_HISTOGRAM_BELOW : CUA_HISTOGRAM_ABOVE;
}

CUA_FORCE enum cua_histogram_side cua_histogram_side_u64(const struct cua_histogram_range *range,
							 uint64_t x)
{
	return x < range->lower ? CUA_HISTOGRAM_BELOW : CUA_HISTOGRAM_ABOVE;
}

CUA_FORCE enum cua_histogram_side cua_histogram_side_f64(const struct cua_histogram_range *range,
							 double x)
{
	if (cua__is_nan_f64(x))
		return CUA_HISTOGRAM_NAN;
	return cua__histogram_key_f64(x) < range->first_f64 ? CUA_HISTOGRAM_BELOW
							    : CUA_HISTOGRAM_ABOVE;
}

/* ---- letters ---- */

/* The bin of a byte of text, or NO_BIN. */
CUA_FORCE uint32_t cua_histogram_letter_bin(uint32_t byte)
{
	uint32_t letter = byte - 'a';

	return letter < 26 ? letter / 4 : CUA_HISTOGRAM_NO_BIN;
}

CUA_FORCE enum cua_histogram_side cua_histogram_letter_side(uint32_t byte)
{
	return byte < 'a' ? CUA_HISTOGRAM_BELOW : CUA_HISTOGRAM_ABOVE;
}

/* ---- edges ---- */

/* Keys of edges and of elements compared with them. Here, -0 has the key of 0. */
CUA_FORCE uint32_t cua__histogram_edge_key_u32(uint32_t x)
{
	return x;
}

CUA_FORCE uint32_t cua__histogram_edge_key_i32(int32_t x)
{
	return (uint32_t)x ^ 0x80000000u;
}

CUA_FORCE uint64_t cua__histogram_edge_key_u64(uint64_t x)
{
	return x;
}

CUA_FORCE uint64_t cua__histogram_edge_key_i64(int64_t x)
{
	return (uint64_t)x ^ 0x8000000000000000u;
}

CUA_FORCE uint32_t cua__histogram_edge_key_f32(float x)
{
	const uint32_t bits = cua__bits_f32(x);

	return cua__ordered_f32(bits == 0x80000000u ? 0 : bits);
}

CUA_FORCE uint64_t cua__histogram_edge_key_f64(double x)
{
	const uint64_t bits = cua__bits_f64(x);

	return cua__ordered_f64(bits == 0x8000000000000000u ? 0 : bits);
}

#define cua__is_nan_u32(x) 0
#define cua__is_nan_i32(x) 0
#define cua__is_nan_u64(x) 0
#define cua__is_nan_i64(x) 0

/*
 * uint32_t cua_histogram_edge_bin_<t>(const T *edges, uint32_t bins, int closed, T x): the bin of x
 *   among bins + 1 ascending edges, or NO_BIN. t: u32 i32 u64 i64 f32 f64.
 * enum cua_histogram_side cua_histogram_edge_side_<t>(const T *edges, T x): the side of an x in no
 *   bin.
 */
#define CUA__DEFINE_EDGE_BIN(t, T, K)                                                              \
	CUA_FORCE uint32_t cua_histogram_edge_bin_##t(const T *edges, uint32_t bins, int closed,   \
						      T x)                                         \
	{                                                                                          \
		const K key = cua__histogram_edge_key_##t(x);                                      \
		uint32_t at = 0, n = bins + 1;                                                     \
                                                                                                   \
		/* invariant: the last edge <= x, if any, is among n edges from `at` on */         \
		while (n > 1) {                                                                    \
			const uint32_t half = n / 2;                                               \
                                                                                                   \
			at += cua__histogram_edge_key_##t(edges[at + half]) <= key ? half : 0;     \
			n -= half;                                                                 \
		}                                                                                  \
		if (at == 0 && key < cua__histogram_edge_key_##t(edges[0]))                        \
			return CUA_HISTOGRAM_NO_BIN;                                               \
		if (at < bins)                                                                     \
			return at;                                                                 \
		return closed && key == cua__histogram_edge_key_##t(edges[bins])                   \
			       ? bins - 1                                                          \
			       : CUA_HISTOGRAM_NO_BIN;                                             \
	}                                                                                          \
	CUA_FORCE enum cua_histogram_side cua_histogram_edge_side_##t(const T *edges, T x)         \
	{                                                                                          \
		if (cua__is_nan_##t(x))                                                            \
			return CUA_HISTOGRAM_NAN;                                                  \
		return cua__histogram_edge_key_##t(x) < cua__histogram_edge_key_##t(edges[0])      \
			       ? CUA_HISTOGRAM_BELOW                                               \
			       : CUA_HISTOGRAM_ABOVE;                                              \
	}
CUA__DEFINE_EDGE_BIN(u32, uint32_t, uint32_t)
CUA__DEFINE_EDGE_BIN(i32, int32_t, uint32_t)
CUA__DEFINE_EDGE_BIN(u64, uint64_t, uint64_t)
CUA__DEFINE_EDGE_BIN(i64, int64_t, uint64_t)
CUA__DEFINE_EDGE_BIN(f32, float, uint32_t)
CUA__DEFINE_EDGE_BIN(f64, double, uint64_t)

/* ---- weights ---- */

/*
 * Converts a float weight of magnitude at most 2^62 units to an integer number of units, rounded to
 * nearest, ties to even. per_unit is 1 / unit, a power of two.
 */
CUA_FORCE int64_t cua__histogram_units(double weight, double per_unit)
{
	const double integers = 4503599627370496.0; /* 2^52: larger doubles have no fraction */
	double t = cua_port_mul_rn_f64(weight, per_unit);

	if (t > -integers && t < integers) {
		double shift = t < 0 ? -integers : integers;

		t = cua_port_sub_rn_f64(cua_port_add_rn_f64(t, shift), shift);
	}
	return (int64_t)t;
}

/*
 * Converts a number of units to a sum. With `add`, the sum is then added to `before`, with a second
 * rounding.
 */
CUA_FORCE double cua__histogram_sum(uint64_t units, double unit, int add, double before)
{
	double sum = cua_port_mul_rn_f64((double)(int64_t)units, unit);

	return add ? cua_port_add_rn_f64(before, sum) : sum;
}

/* ---- private bins ---- */

/*
 * Private bins of a block, for user kernels. `shared` is an array of `bins` words in shared memory,
 * counts is an array of `bins` counts in global memory. All threads of the block call init. Then
 * any thread may add. Then all threads call flush: it adds the nonempty private bins to the counts,
 * and clears them for further use. A block must flush before any of its bins has counted 2^32
 * elements.
 */
CUA_FN void cua_histogram_block_init(uint32_t *shared, uint32_t bins)
{
	for (uint32_t i = cua_port_thread(); i < bins; i += cua_port_block_size())
		CUA_WRITE(shared[i], 0);
	cua_port_sync_block();
}

/* Adds 1 to a bin; NO_BIN is ignored. */
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
 * Host calls. options may be NULL for the defaults. n is the number of elements, of `channels`
 * values each. With width, there are n / width rows, `pitch` bytes apart. The counts of channel c
 * are at counts + c * bins, for the first `counted` channels. Counts and `outside` are in backend
 * or host memory, see context.h. If n = 0, they are cleared. With accumulate, the call adds to the
 * present counts and `outside`, and n = 0 changes neither.
 *
 * Weights: a bin's count is the sum of the weights of its elements. All channels of an element have
 *   the same weight.
 *   integers  The sum is modulo 2^64, or 2^32 with count_type U32.
 *   floats    counts are doubles. A weight is rounded to the nearest multiple of a unit, ties to
 *             even. The sum of the rounded weights is exact, so it does not depend on the order.
 *             The sum is then rounded to a double, and with accumulate, added to the count. The
 *             unit is the least power of two, at least 2^-1022, such that weight_limit is at most
 *             2^62 / n units. An element whose weight is NaN or exceeds the limit is counted only
 *             in `outside`.
 *
 * outside: for each channel, the numbers of elements below, above and NaN, and of elements in a bin
 *   whose weight is refused, in the order of enum cua_histogram_side. With accumulate, they are
 *   added to the present numbers.
 *
 * Errors: NULL (ctx; counts; x if n > 0; weights if there is a weight_type), TYPE (count_type,
 * weight_type; weights without a type), VALUE (struct_size, unknown strategy, more than 4 channels,
 * counted > channels, n not a multiple of width, pitch without width or less than a row, a
 * weight_limit that is negative, infinite or NaN), SIZE, ALIGNMENT (also of pitch), MEMORY_KIND,
 * OVERLAP (counts or outside with each other or with an input), CAPTURE, WORKSPACE, NO_MEMORY.
 */
CUA_API enum cua_status cua_histogram_bytes(struct cua_context *ctx,
					    const struct cua_histogram_options *options, size_t n,
					    const void *x, void *counts);
CUA_API enum cua_status cua_histogram_letters(struct cua_context *ctx,
					      const struct cua_histogram_options *options, size_t n,
					      const void *x, void *counts);

/*
 * Even bins over [lower, upper). Types: I8 to U64, F16 BF16 F32 F64. lower and upper point to
 * values in host memory, which are read before the call returns. Their type is uint64_t for U64,
 * int64_t for the other integer types (which can express [0, 256) and [0, 2^32)), and double for
 * floating point. Further errors: NULL (lower, upper), TYPE, and the errors of the
 * cua_histogram_range functions.
 */
CUA_API enum cua_status cua_histogram_even(struct cua_context *ctx,
					   const struct cua_histogram_options *options,
					   enum cua_type type, size_t n, const void *x, size_t bins,
					   const void *lower, const void *upper, void *counts);

/*
 * Bins between bins + 1 edges of the element's type. The edges ascend and may be infinite. They are
 * in host memory and are read before the call returns.
 * Errors: as above, and NULL (edges), TYPE, VALUE (edges that descend or are NaN, bins = 0), SIZE
 * (bins >= MAX_EDGES), ALIGNMENT (edges), MEMORY_KIND (edges that the host cannot read), CAPTURE
 * (always in a capture).
 */
CUA_API enum cua_status cua_histogram_edges(struct cua_context *ctx,
					    const struct cua_histogram_options *options,
					    enum cua_type type, size_t n, const void *x,
					    size_t bins, const void *edges, void *counts);

/*
 * The maximum workspace of any of these calls with this number of bins, for any n: see
 * cua_context_reserve. Only these options matter: strategy, counted, and the types of counts and
 * weights.
 * Errors: NULL (ctx, bytes), VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_histogram_workspace(struct cua_context *ctx,
						const struct cua_histogram_options *options,
						size_t bins, size_t *bytes);

#ifdef __cplusplus
}
#endif

/* By type, with the default options. */
#define CUA__DEFINE_HISTOGRAM(name, TYPE, T, L)                                                    \
	CUA__HOST_FN enum cua_status cua_histogram_even_##name(struct cua_context *ctx, size_t n,  \
							       const T *x, size_t bins, L lower,   \
							       L upper, uint64_t *counts)          \
	{                                                                                          \
		return cua_histogram_even(ctx, NULL, TYPE, n, x, bins, &lower, &upper, counts);    \
	}                                                                                          \
	CUA__HOST_FN enum cua_status cua_histogram_edges_##name(struct cua_context *ctx, size_t n, \
								const T *x, size_t bins,           \
								const T *edges, uint64_t *counts)  \
	{                                                                                          \
		return cua_histogram_edges(ctx, NULL, TYPE, n, x, bins, edges, counts);            \
	}
CUA__DEFINE_HISTOGRAM(i8, CUA_I8, int8_t, int64_t)
CUA__DEFINE_HISTOGRAM(u8, CUA_U8, uint8_t, int64_t)
CUA__DEFINE_HISTOGRAM(i16, CUA_I16, int16_t, int64_t)
CUA__DEFINE_HISTOGRAM(u16, CUA_U16, uint16_t, int64_t)
CUA__DEFINE_HISTOGRAM(i32, CUA_I32, int32_t, int64_t)
CUA__DEFINE_HISTOGRAM(u32, CUA_U32, uint32_t, int64_t)
CUA__DEFINE_HISTOGRAM(i64, CUA_I64, int64_t, int64_t)
CUA__DEFINE_HISTOGRAM(u64, CUA_U64, uint64_t, uint64_t)
CUA__DEFINE_HISTOGRAM(f16, CUA_F16, struct cua_f16, double)
CUA__DEFINE_HISTOGRAM(bf16, CUA_BF16, struct cua_bf16, double)
CUA__DEFINE_HISTOGRAM(f32, CUA_F32, float, double)
CUA__DEFINE_HISTOGRAM(f64, CUA_F64, double, double)

#endif /* CUATOMIC_HISTOGRAM_H */
