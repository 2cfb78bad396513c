/* SPDX-License-Identifier: MIT */
/*
 * Reductions of many parts of one array in one call: segments, given by their offsets, and runs of
 * equal keys that stand next to each other.
 *
 * Source: the merge path of Green, McColl and Bader, which cuts segments and elements together into
 * equal pieces; runs of equal keys are what a filter in order keeps: the keys that differ from the one before.
 *
 * Segment i is the elements offsets[i] to offsets[i + 1] - 1, so that segments + 1 offsets are given,
 * as in the rows of a sparse matrix:
 *
 *     x        5 1 2 | | 7 7 | 4
 *     offsets  0      3 3     5   6         4 segments, the second one is empty
 *     sums     8 0 14 4
 *
 * The work is cut into equal parts, or long segments into chunks, so that the time is that of the elements and
 * offsets, and does not depend much on the lengths: one segment of everything, a million of a few elements, masses
 * of empty ones, and any mixture.
 *
 * Two modes:
 *
 *   FAST   the order of additions depends on the lengths of all segments and on the device (or the number
 *          of threads). The default. Sums of F16, BF16 and complex numbers are those of FIXED.
 *   FIXED  each result has the bits that cua_reduce in mode FIXED gives for the segment alone. They
 *          depend on its elements and their number, and not on where it lies, what is around it, the
 *          device, the number of threads or the backend.
 *
 * Integers, MIN and MAX have the same bits in both.
 *
 * Scope: one device; the calls work in stream order, and nobody else may write their arrays meanwhile. There are no
 *   inline functions.
 * Progress: a call ends whatever the offsets are. cua_reduce_by_key finds the runs by a filter in order: see filter.h.
 */
#ifndef CUATOMIC_SEGMENT_H
#define CUATOMIC_SEGMENT_H

#include <cuatomic/reduce.h>

/* How the segments are reduced; zeros choose. */
struct cua_segment_options {
	size_t struct_size; /* sizeof(struct cua_segment_options), set by the caller */
	enum cua_reduce_mode mode;
};
#define CUA_SEGMENT_OPTIONS_INIT                                                                   \
	{                                                                                          \
		sizeof(struct cua_segment_options), CUA_REDUCE_AUTO                                \
	}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reduces each of the segments of the n elements of x to results[i], 0 <= i < segments. op is SUM, MIN or MAX,
 * with the results' types and the rules of cua_reduce:
 *
 *   SUM        U32, U64 -> uint64_t; I32, I64 -> int64_t; both modulo 2^64
 *              F16, BF16, F32, F64, COMPLEX_F32, COMPLEX_F64 -> the element type, rounded once at the end
 *   MIN, MAX   U32, I32, U64, I64, F32 and F64 -> the element type; NaN and -0 as in cuatomic/reduce.h
 *
 * An empty segment gives 0, or for MIN the greatest and for MAX the least value of the type (infinities
 * for floats). Elements before offsets[0] and from offsets[segments] on belong to no segment.
 *
 * The offsets must ascend; equal neighbours make an empty segment. An offset above n counts as n. Where
 * the offsets do not ascend, the results are not specified, but nothing outside of the arrays is read
 * or written. They are not checked, since they may be in device memory.
 *
 * segments = 0 is valid, and then offsets and results may be NULL. options may be NULL; its mode is AUTO,
 * FAST or FIXED. The call follows the rules of cuatomic/context.h; all arrays are memory of the backend.
 * Errors: NULL; VALUE (options, op); TYPE; SIZE; ALIGNMENT; OVERLAP (of results with x or offsets);
 * MEMORY_KIND; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_segmented_reduce(struct cua_context *ctx,
					     const struct cua_segment_options *options,
					     enum cua_reduce_op op, enum cua_type type, size_t n,
					     const void *x, size_t segments,
					     const uint64_t *offsets, void *results);

/* The workspace that it takes at most with these arguments. Errors: NULL, VALUE, TYPE, SIZE. */
CUA_API enum cua_status cua_segmented_reduce_workspace(struct cua_context *ctx,
						       const struct cua_segment_options *options,
						       enum cua_reduce_op op, enum cua_type type,
						       size_t n, size_t segments, size_t *bytes);

/* The sums of the segments, without options. */
CUA_API enum cua_status cua_segmented_sum(struct cua_context *ctx, enum cua_type type, size_t n,
					  const void *x, size_t segments, const uint64_t *offsets,
					  void *results);

/*
 * Reduces each run of equal keys: unique_keys[i] is the key of run i, in the order of the runs, and
 * results[i] what cua_segmented_reduce gives for the elements of x at its places. With sorted keys there is
 * one run a key; a key that comes again after another one begins a new run. key_type is U32, I32, U64
 * or I64.
 *
 * unique_keys and results have room for capacity runs. *count becomes the number of all runs, also where
 * that is more; the runs without a place are left out, and the call may be repeated with room for
 * *count. capacity = 0 only counts, and then x, unique_keys and results may be NULL.
 *
 * n = 0 has no runs. options, op, type and modes as above. Where count is ordinary host memory the call
 * waits for the stream, else it may be captured.
 * Errors: NULL; VALUE (options, op); TYPE; SIZE; ALIGNMENT; OVERLAP (of an output with an input or another
 * output); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_reduce_by_key(struct cua_context *ctx,
					  const struct cua_segment_options *options,
					  enum cua_reduce_op op, enum cua_type key_type,
					  enum cua_type type, size_t n, const void *keys,
					  const void *x, uint64_t capacity, void *unique_keys,
					  void *results, uint64_t *count);

/*
 * The workspace that it takes at most with these arguments: 8 bytes for each run that is expected to have
 * a place, and little more. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_reduce_by_key_workspace(struct cua_context *ctx,
						    const struct cua_segment_options *options,
						    enum cua_reduce_op op, enum cua_type key_type,
						    enum cua_type type, size_t n, uint64_t capacity,
						    size_t *bytes);

#ifdef __cplusplus
}
#endif

/* And with the type in the name: cua_segmented_sum_f32(ctx, n, x, segments, offsets, results) */
#define CUA__DEFINE_SEGMENTED(t, type, T, Sum)                                                     \
	CUA__HOST_FN enum cua_status cua_segmented_sum_##t(struct cua_context *ctx, size_t n,      \
							   const T *x, size_t segments,            \
							   const uint64_t *offsets, Sum *results)  \
	{                                                                                          \
		return cua_segmented_sum(ctx, type, n, x, segments, offsets, results);             \
	}
CUA__DEFINE_SEGMENTED(u32, CUA_U32, uint32_t, uint64_t)
CUA__DEFINE_SEGMENTED(i32, CUA_I32, int32_t, int64_t)
CUA__DEFINE_SEGMENTED(u64, CUA_U64, uint64_t, uint64_t)
CUA__DEFINE_SEGMENTED(i64, CUA_I64, int64_t, int64_t)
CUA__DEFINE_SEGMENTED(f16, CUA_F16, struct cua_f16, struct cua_f16)
CUA__DEFINE_SEGMENTED(bf16, CUA_BF16, struct cua_bf16, struct cua_bf16)
CUA__DEFINE_SEGMENTED(f32, CUA_F32, float, float)
CUA__DEFINE_SEGMENTED(f64, CUA_F64, double, double)
CUA__DEFINE_SEGMENTED(complex_f32, CUA_COMPLEX_F32, struct cua_complex_f32, struct cua_complex_f32)
CUA__DEFINE_SEGMENTED(complex_f64, CUA_COMPLEX_F64, struct cua_complex_f64, struct cua_complex_f64)

#endif /* CUATOMIC_SEGMENT_H */
