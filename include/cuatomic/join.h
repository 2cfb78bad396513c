/* SPDX-License-Identifier: MIT */
/*
 * Joins of two arrays by key: the pairs of a row of the left array and a row of the right array
 * with equal keys. cua_is_in only finds the keys of one array that occur in another, like numpy.isin.
 *
 *     row      0 1 2 3            INNER        LEFT
 *     left     5 8 5 2            left  right  left  right
 *     right    7 5 2 5            0     1      0     1
 *                                 0     3      0     3
 *                                 2     1      1     none
 *                                 2     3      2     1
 *                                 3     2      2     3
 *                                              3     2
 *
 * Source: hash joins of databases. An open-addressing table holds the row numbers of the right
 * array. A stable sort makes a list of the right rows of each key. The sums of the numbers of
 * matches are the offsets of the left rows in the output. The threads then divide the pairs, and not
 * the rows, so a frequent key does not slow them down.
 *
 * Keys are as in cuatomic/group_by.h: integers or floats of 32 or 64 bits, or numbers of 128 bits.
 * Float keys: -0 and +0 are equal, and so are all NaN. Other keys are equal if their bits are.
 *
 * Pairs:
 * - The order is always the same: by left row, then by right row. It does not depend on the device,
 *   the number of threads or the backend.
 * - A LEFT join also has a pair for each left row without a match. Its right row is the greatest
 *   value of the index type.
 * - If there are more pairs than `capacity`, the first pairs are stored. *pairs is the full demand.
 *   A second call with this capacity stores all pairs. A call with capacity 0 only counts.
 * - A demand above 2^64 - 1 is reported as 2^64 - 1.
 *
 * Scope: a single device. No other thread or stream may access the outputs, or write the inputs,
 *   meanwhile. There are no inline functions.
 * Memory order: that of the context's stream; see cuatomic/context.h.
 * Progress: a call ends for any keys. The hash has a random seed in each call, and a captured call
 *   keeps its seed, so no keys are slow in every run.
 */
#ifndef CUATOMIC_JOIN_H
#define CUATOMIC_JOIN_H

#include <cuatomic/context.h>

/* The kind of a join. The numbers are ABI. */
enum cua_join_kind {
	CUA_JOIN_AUTO = 0,  /* INNER */
	CUA_JOIN_INNER = 1, /* pairs of equal keys */
	CUA_JOIN_LEFT = 2   /* and left rows without a match */
};

/* Options of cua_join; 0 chooses the default. */
struct cua_join_options {
	size_t struct_size; /* sizeof(struct cua_join_options), set by the caller */
	enum cua_join_kind kind;
	enum cua_type index_type; /* of the row numbers: U32 or U64; NONE is U64 */
};
#define CUA_JOIN_OPTIONS_INIT CUA__SIZED_INIT(struct cua_join_options)

/* Options of cua_is_in; 0 chooses the default. */
struct cua_is_in_options {
	size_t struct_size; /* sizeof(struct cua_is_in_options), set by the caller */
	int invert;         /* not 0: finds the keys that are not in the set */
};
#define CUA_IS_IN_OPTIONS_INIT CUA__SIZED_INIT(struct cua_is_in_options)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Stores the pairs of rows with equal keys among n_left and n_right keys. Pair i is row out_left[i]
 * and row out_right[i], numbers of the index type. *pairs becomes the number of all pairs. If it is
 * less than the capacity, the elements behind the last pair are undefined. key_type is I32, U32, I64,
 * U64, F32, F64 or U128. An index_type of U32 needs n_left and n_right <= 2^32 - 1.
 *
 * options, out_left and out_right may be NULL; a NULL output is not made. left and right may be the
 * same array. All arrays are memory of the backend. The call follows the rules of cuatomic/context.h.
 * A right row needs more memory and time than a left row, so the right array should be the smaller.
 * Errors: NULL; VALUE (options); TYPE (key_type); SIZE; ALIGNMENT; OVERLAP (of an output with any
 *   other array); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_join(struct cua_context *ctx, const struct cua_join_options *options,
				 enum cua_type key_type, size_t n_left, const void *left,
				 size_t n_right, const void *right, uint64_t capacity,
				 void *out_left, void *out_right, uint64_t *pairs);

/*
 * The workspace that the call needs at most with these arguments and any capacity. Errors: NULL,
 * VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_join_workspace(struct cua_context *ctx,
					   const struct cua_join_options *options,
					   enum cua_type key_type, size_t n_left, size_t n_right,
					   size_t *bytes);

/*
 * Sets out[i] to 1 if keys[i] is among the m keys of the set, else to 0, for n keys; or to the
 * opposite with `invert`. The set may have keys several times. key_type is as in cua_join. options
 * may be NULL. All arrays are memory of the backend. The call is ordered in the stream, does not
 * wait, and may be captured.
 * Errors: NULL; VALUE (options); TYPE (key_type); SIZE; ALIGNMENT; OVERLAP (of out with another
 *   array); MEMORY_KIND; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_is_in(struct cua_context *ctx, const struct cua_is_in_options *options,
				  enum cua_type key_type, size_t n, const void *keys, size_t m,
				  const void *set, uint8_t *out);

/*
 * The workspace that the call needs at most with these arguments. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_is_in_workspace(struct cua_context *ctx,
					    const struct cua_is_in_options *options,
					    enum cua_type key_type, size_t n, size_t m,
					    size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_JOIN_H */
