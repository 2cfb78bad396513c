/* SPDX-License-Identifier: MIT */
/*
 * Reductions of many parts of an array in a single call: of segments, given by their offsets, and
 * of runs of equal neighbouring keys.
 *
 * Source: the merge path of Green, McColl and Bader. It merges elements and segment ends into a
 * path and divides the path into equal parts. Runs of equal keys are found by a filter in order,
 * which keeps each key that differs from its predecessor.
 *
 * Segment i is the elements offsets[i] to offsets[i + 1] - 1. So there are segments + 1 offsets, as
 * for the rows of a sparse matrix:
 *
 *     x        5 1 2 | | 7 7 | 4
 *     offsets  0      3 3     5   6         4 segments, the second is empty
 *     sums     8 0 14 4
 *
 * A call divides elements and offsets together into equal parts. The tree of mode FIXED permits no
 * division within a chunk, so there a long segment is divided at its chunks. So the time depends on
 * the number of elements and offsets, and little on the lengths: it is similar for a single long
 * segment, a million short segments, mostly empty segments, or any mixture.
 *
 * Modes:
 * - FAST, the default: the order of additions depends on the sizes of the arrays, the lengths of
 *   all segments, the alignment of x, and the device (on the CPU: its kind and the number of
 *   threads). While these are the same, so are the bits. Sums of F16, BF16 and complex numbers are
 *   those of FIXED.
 * - FIXED: each result has the bits that cua_reduce in mode FIXED gives for the segment alone. They
 *   depend on the segment's elements and their number. They do not depend on its position, its
 *   neighbours, the device, the number of threads or the backend.
 * Integers, MIN and MAX have the same bits in both modes.
 *
 * Scope: a single device. No other thread or stream may write the arrays of a call meanwhile. There
 *   are no inline functions.
 * Memory order: that of the context's stream; see cuatomic/context.h.
 * Progress: a call ends for any offsets. cua_reduce_by_key finds the runs by a filter in order: see
 *   cuatomic/filter.h.
 */
#ifndef CUATOMIC_SEGMENT_H
#define CUATOMIC_SEGMENT_H

#include <cuatomic/reduce.h>

/* Options of a call; 0 chooses the default. */
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
 * Reduces each segment of the n elements of x to results[i], 0 <= i < segments. op is SUM, MIN or
 * MAX, with the result types and rules of cua_reduce:
 *
 *   SUM        U32, U64 -> uint64_t; I32, I64 -> int64_t; both modulo 2^64
 *              F16, BF16, F32, F64, COMPLEX_F32, COMPLEX_F64 -> the element type, rounded
 *              once at the end
 *   MIN, MAX   U32, I32, U64, I64, F32 and F64 -> the element type; NaN and -0 as in
 *              cuatomic/reduce.h
 *
 * An empty segment gives 0 for SUM, the type's greatest value for MIN, and its least value for MAX
 * (infinities for floats). Elements before offsets[0] and from offsets[segments] on belong to no
 * segment.
 *
 * The offsets must ascend; equal neighbours make an empty segment. An offset above n counts as n.
 * If the offsets do not ascend, the results are unspecified, but the call accesses nothing outside
 * the arrays. The call does not check the offsets, because they may be in device memory.
 *
 * segments = 0 is valid; then offsets and results may be NULL. options may be NULL; its mode is
 * AUTO, FAST or FIXED. The call follows the rules of cuatomic/context.h; all arrays are memory of
 * the backend.
 * Errors: NULL; VALUE (options, op); TYPE; SIZE; ALIGNMENT; OVERLAP (of results with x or offsets);
 *   MEMORY_KIND; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_segmented_reduce(struct cua_context *ctx,
					     const struct cua_segment_options *options,
					     enum cua_reduce_op op, enum cua_type type, size_t n,
					     const void *x, size_t segments,
					     const uint64_t *offsets, void *results);

/*
 * The workspace that the call needs at most with these arguments. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_segmented_reduce_workspace(struct cua_context *ctx,
						       const struct cua_segment_options *options,
						       enum cua_reduce_op op, enum cua_type type,
						       size_t n, size_t segments, size_t *bytes);

/* The sums of the segments, with default options. */
CUA_API enum cua_status cua_segmented_sum(struct cua_context *ctx, enum cua_type type, size_t n,
					  const void *x, size_t segments, const uint64_t *offsets,
					  void *results);

/*
 * Reduces each run of equal neighbouring keys. unique_keys[i] is the key of run i, in the order of
 * the runs. results[i] is the result of cua_segmented_reduce for the elements of x at the run's
 * indexes. Sorted keys have a single run per key. A key that returns after another key begins a new
 * run. key_type is U32, I32, U64 or I64.
 *
 * unique_keys and results have room for capacity runs. *count becomes the number of all runs, even
 * if it exceeds capacity. Runs beyond capacity are not stored, and the call may be repeated with a
 * capacity of *count. capacity = 0 only counts; then x, unique_keys and results may be NULL.
 *
 * n = 0 has no runs. options, op, type and modes are as above. If count is ordinary host memory,
 * the call waits for the stream; otherwise it may be captured.
 * Errors: NULL; VALUE (options, op); TYPE; SIZE; ALIGNMENT; OVERLAP (of an output with an input or
 *   another output); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_reduce_by_key(struct cua_context *ctx,
					  const struct cua_segment_options *options,
					  enum cua_reduce_op op, enum cua_type key_type,
					  enum cua_type type, size_t n, const void *keys,
					  const void *x, uint64_t capacity, void *unique_keys,
					  void *results, uint64_t *count);

/*
 * The workspace that the call needs at most with these arguments: 8 bytes for each run within
 * min(capacity, n), and little more. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_reduce_by_key_workspace(struct cua_context *ctx,
						    const struct cua_segment_options *options,
						    enum cua_reduce_op op, enum cua_type key_type,
						    enum cua_type type, size_t n, uint64_t capacity,
						    size_t *bytes);

#ifdef __cplusplus
}
#endif

/* Forms with the type in the name: cua_segmented_sum_f32(ctx, n, x, segments, offsets, results) */
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
