/* SPDX-License-Identifier: MIT */
/*
 * Scatter: combines each element of an array into the target that its index names,
 *
 *     out[index[i]] += x[i]        ADD, or MIN, MAX, MEAN
 *
 * with the same bits every time. This is scatter_add, index_add, a bincount with weights, the
 * accumulation of gradients, the deposit of particles on a grid, or the assembly of finite elements.
 *
 *     index    2 0 2 5 2          targets = 4: the index 5 is out of range and skipped
 *     x        1 2 3 4 5
 *     out      2 0 9 0            if all targets were 0
 *
 * Source: the exact sums of cuatomic/exact.h, one per target, so integer additions replace the
 * additions of floats; radix partitioning by target with accumulation in shared memory, as in hash
 * joins on GPUs; privatized histograms for few targets (Kirk and Hwu, Programming Massively Parallel
 * Processors).
 *
 * Modes:
 * - EXACT, the default, and FIXED, which is the same: a sum of floats is exact and rounded once to
 *   the result type, to nearest even. With accumulation the target's old value is a summand. So the
 *   result depends on the summands alone. It does not depend on their order, the device, the number of
 *   threads or the backend. A sum over several calls is rounded once in each call.
 * - FAST: sums of floats may be added in any order, with a rounding after each addition, and may
 *   differ from run to run. The error is at most that of native atomic additions in some order.
 * Integers, MIN and MAX have the same bits in all modes.
 *
 * Values:
 * - ADD of integers is modulo 2^bits of the result type.
 * - ADD of floats follows cuatomic/exact.h: NaN; infinities; overflow only of the final sum;
 *   subnormals. Every NaN that a call stores is the same: quiet, positive, no payload.
 * - A target whose elements sum to exactly 0, or that has no elements, keeps its bits; in a call
 *   that overwrites it becomes +0.
 * - MIN and MAX of floats ignore NaN, also an old value, and -0 is less than +0, as in cuatomic/reduce.h. A target that
 *   already has the extreme value keeps its bits. In a call that overwrites, a target becomes NaN if
 *   all its elements are NaN. If it has no elements, it becomes the greatest value of the type for
 *   MIN, and the least for MAX (infinities for floats).
 * - MEAN is the exact sum, rounded once to f64, divided by the number of elements in f64, and
 *   rounded to the result type. Sums of integers are modulo 2^64. The old value is no summand: a
 *   target with elements is replaced. A target without elements keeps its bits; in a call that
 *   overwrites it becomes NaN.
 *
 * Scope: a single device. No other thread or stream may access the targets, or write the other
 *   arrays, meanwhile. There are no inline functions.
 * Memory order: that of the context's stream; see cuatomic/context.h.
 * Progress: a call ends for any indexes and elements.
 */
#ifndef CUATOMIC_SCATTER_H
#define CUATOMIC_SCATTER_H

#include <cuatomic/context.h>
#include <cuatomic/exact.h>
#include <cuatomic/reduce.h>

/* The operation that combines elements. The numbers are ABI. */
enum cua_scatter_op {
	CUA_SCATTER_ADD = 1,
	CUA_SCATTER_MIN = 2,
	CUA_SCATTER_MAX = 3,
	CUA_SCATTER_MEAN = 4
};

/* The greatest width of a row. */
#define CUA_SCATTER_WIDTH_MAX 4096

/* Options of a call; 0 chooses the default. */
struct cua_scatter_options {
	size_t struct_size;        /* sizeof(struct cua_scatter_options), set by the caller */
	enum cua_reduce_mode mode; /* AUTO is EXACT */
	/*
	 * The type of the targets. NONE, the default: the element type; F64 for MEAN of integers.
	 * Integers: the same or a wider type of the same signedness. Floats: the same or a wider
	 * type. MEAN: F16, BF16, F32 or F64, for floats not narrower than the elements.
	 */
	enum cua_type result_type;
	/* 1: the old values of the targets are ignored, and every target is written */
	int overwrite;
	/*
	 * Elements of a row, 1 to CUA_SCATTER_WIDTH_MAX; 0 is 1. Index i names a row of targets: the
	 * elements x[i * width] to x[i * width + width - 1] are combined into the targets
	 * out[index[i] * width] and so on.
	 */
	uint32_t width;
	uint32_t reserved; /* 0 */
	/* If not NULL, *skipped becomes the number of indexes out of range. */
	uint64_t *skipped;
};
#define CUA_SCATTER_OPTIONS_INIT CUA__SIZED_INIT(struct cua_scatter_options)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Combines n rows of x into `targets` rows of out. index_type is I32, U32, I64 or U64. An index that
 * is negative or at least `targets` is skipped with its row. type is I8 to U64, F16, BF16, F32 or
 * F64.
 *
 * options may be NULL. n = 0 and targets = 0 are valid; then the arrays without elements may be
 * NULL. The call follows the rules of cuatomic/context.h; all arrays are memory of the backend. If
 * options->skipped is ordinary host memory, the call waits for the stream.
 * Errors: NULL; VALUE (options, op); TYPE (index_type, type, result_type); SIZE; ALIGNMENT; OVERLAP
 *   (of out or skipped with any other array); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_scatter(struct cua_context *ctx,
				    const struct cua_scatter_options *options,
				    enum cua_scatter_op op, enum cua_type index_type,
				    enum cua_type type, size_t n, const void *index, const void *x,
				    size_t targets, void *out);

/*
 * The workspace that the call needs at most with these arguments. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_scatter_workspace(struct cua_context *ctx,
					      const struct cua_scatter_options *options,
					      enum cua_scatter_op op, enum cua_type index_type,
					      enum cua_type type, size_t n, size_t targets,
					      size_t *bytes);

/* out[index[i]] += x[i], 0 <= i < n, with default options. */
CUA_API enum cua_status cua_scatter_add(struct cua_context *ctx, enum cua_type index_type,
					enum cua_type type, size_t n, const void *index,
					const void *x, size_t targets, void *out);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_SCATTER_H */
