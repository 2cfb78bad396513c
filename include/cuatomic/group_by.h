/* SPDX-License-Identifier: MIT */
/*
 * Group by: finds the distinct keys of an array in any order, and combines the values of the rows
 * with the same key. A row has a key and a value in each array of values. A group is the rows with
 * the same key.
 *
 *     key      7 3 7 9 3          groups       3
 *     value    1 2 3 4 5          out_keys     7 3 9
 *                                 SUM          4 7 4
 *                                 COUNT        2 2 1
 *
 * cua_unique finds only the keys, like numpy.unique: with counts, the number of each row's group
 * (inverse), and the first row of each group.
 *
 * Source: aggregation by hash as in databases. An open-addressing table holds row numbers instead
 * of keys. Its final entries are the first rows of the groups. So the groups have the order of the
 * input, and not that of the table. The values are combined by scatters (cuatomic/scatter.h). On a
 * GPU, few groups have tables in the shared memory of each block, which are merged at the end. For
 * order ANY, a GPU can instead partition the rows by hash and keep tables in shared memory, as in
 * hash joins.
 *
 * Groups:
 * - Keys are integers or floats of 32 or 64 bits, or numbers of 128 bits. A struct of two uint64_t
 *   that is aligned to 16 bytes is a key of type U128. The member at the higher address decides the
 *   order first.
 * - Float keys: -0 and +0 are the same key, and so are all NaN. Other keys are equal if their bits
 *   are. The stored key has the bits of its first row.
 * - Groups are in the order of their first rows; or SORTED: in ascending order of the keys, NaN
 *   last; or in ANY order, which may differ from run to run.
 * - If there are more groups than `capacity`, the groups with the lowest first rows are stored, and
 *   the rows of other groups are skipped. In order ANY, any groups are stored. The number of groups
 *   is the full demand. A second call with this capacity stores all groups. A call with capacity 0
 *   only counts.
 * - Few groups are several times faster on a GPU, in each order, if the call has: keys of 32 or 64
 *   bits; 2^17 to 2^31 rows; at most 2048 groups (fewer on GPUs with less than 228 KiB of shared
 *   memory); and the number of groups in ordinary host memory, so that the call waits. At most one
 *   SUM, one MEAN and one COUNT, without masks, of a single array of F32, I32 or U32 are the fastest.
 * - ANY never changes the results of a group. With more groups it is faster than FIRST on a GPU if the
 *   call has: keys of type I32 or U32; 2^18 to 2^32 - 1 rows; at most one SUM, one MEAN and one
 *   COUNT, without masks, of a single array of F32, I32 or U32; no `first` and no `inverse`; and a
 *   number of groups for which the call waits. If a 2048th of the keys, chosen by hash, has more rows
 *   than 2^16 and the share of a multiprocessor together, or if many floats are NaN, infinite or differ
 *   by more than 2^20 in magnitude, the call may start again as FIRST. Any other call takes the time
 *   of FIRST, and so does each call on the CPU, and on GPUs with less than 81 KiB of shared memory for
 *   a block (sm_75).
 *
 * Values, by operation. The result for a group depends on its valid values alone. It does not
 * depend on the order of rows, except FIRST and LAST; nor on the device, the number of threads or
 * the backend.
 * - COUNT: the number of valid rows, as U64.
 * - SUM, MIN, MAX, MEAN: as ADD, MIN, MAX and MEAN of cuatomic/scatter.h in a call that overwrites.
 *   So a sum of floats is exact and rounded once. Sums of integers have 64 bits by default.
 * - VARIANCE: the sum of squared differences from the mean, divided by the count minus ddof. All
 *   values are converted to f64, I64 and U64 with a rounding. Each sum is exact and rounded once to
 *   f64. The steps, each with a rounding to f64 of every operation:
 *       p = sum(x) / count,  p = p + sum(x - p) / count,  a = sum(x - p),  b = sum((x - p)^2),
 *       max(b - a a / count, 0) / (count - ddof)
 *   The second p rounds the mean almost correctly, so the last difference loses at most about one
 *   bit. The relative error is below 2^-48, unless a sum or a square overflows or underflows. An
 *   overflow makes the result infinite or NaN. The result is NaN if a value is NaN or infinite, or
 *   if the count is at most ddof.
 * - FIRST, LAST: the value of the valid row with the lowest or highest row number.
 * A group without valid values has COUNT 0, SUM 0, MEAN and VARIANCE NaN, zero bytes for FIRST and
 * LAST, and for MIN and MAX the greatest and the least value of the type (infinities for floats).
 *
 * Scope: a single device. No other thread or stream may access the outputs, or write the inputs,
 *   meanwhile. There are no inline functions.
 * Memory order: that of the context's stream; see cuatomic/context.h.
 * Progress: a call ends for any keys. The hash has a random seed in each call, and a captured call
 *   keeps its seed, so no keys are slow in every run.
 */
#ifndef CUATOMIC_GROUP_BY_H
#define CUATOMIC_GROUP_BY_H

#include <cuatomic/context.h>
#include <cuatomic/reduce.h>

/* The operation that combines the values of a group. The numbers are ABI. */
enum cua_aggregate_op {
	CUA_AGGREGATE_COUNT = 1,
	CUA_AGGREGATE_SUM = 2,
	CUA_AGGREGATE_MIN = 3,
	CUA_AGGREGATE_MAX = 4,
	CUA_AGGREGATE_MEAN = 5,
	CUA_AGGREGATE_VARIANCE = 6,
	CUA_AGGREGATE_FIRST = 7,
	CUA_AGGREGATE_LAST = 8
};

/* The order of the groups. The numbers are ABI. */
enum cua_key_order {
	CUA_KEY_ORDER_AUTO = 0,   /* FIRST */
	CUA_KEY_ORDER_FIRST = 1,  /* the order of the first rows */
	CUA_KEY_ORDER_SORTED = 2, /* ascending keys */
	/* any order, perhaps another in each run: fastest for keys and values of 32 bits; see above */
	CUA_KEY_ORDER_ANY = 3
};

/* The most aggregates of a call. */
#define CUA_AGGREGATES_MAX 64

/* An aggregate: an array of values, the operation, and the array of results. */
struct cua_aggregate {
	enum cua_aggregate_op op;
	/*
	 * The type of the values. SUM, MIN, MAX, MEAN and VARIANCE: I8 to U64, F16, BF16, F32 or
	 * F64. FIRST and LAST: every type. COUNT: NONE or any type.
	 */
	enum cua_type type;
	/*
	 * The type of the results. NONE, the default: U64 for COUNT; I64 or U64 for SUM of integers;
	 * F64 for MEAN of integers and for VARIANCE; else the type of the values. SUM, MIN, MAX and
	 * MEAN may have the other result types of cuatomic/scatter.h.
	 */
	enum cua_type result_type;
	uint32_t ddof;        /* VARIANCE: subtracted from the count, 0 or 1 as a rule; else 0 */
	const void *values;   /* n elements; COUNT: ignored */
	const uint8_t *valid; /* which values are valid; NULL: all */
	/* 0: a byte a row, 0 if the value is null. 1: bit i % 8 of byte i / 8 for row i */
	int valid_bits;
	uint32_t reserved; /* 0 */
	void *out;         /* room for `capacity` results */
};

/* Options of a call; 0 chooses the default. */
struct cua_group_by_options {
	size_t struct_size; /* sizeof(struct cua_group_by_options), set by the caller */
	/*
	 * AUTO is EXACT, and so is FIXED. FAST: sums of floats may be added in any order, with a
	 * rounding after each addition, and may differ from run to run.
	 */
	enum cua_reduce_mode mode;
	enum cua_key_order order;
};
#define CUA_GROUP_BY_OPTIONS_INIT CUA__SIZED_INIT(struct cua_group_by_options)

/* Options of cua_unique; 0 chooses the default, and NULL outputs are not made. */
struct cua_unique_options {
	size_t struct_size; /* sizeof(struct cua_unique_options), set by the caller */
	enum cua_key_order order;
	enum cua_type index_type; /* of `inverse` and `first`: U32 or U64; NONE is U64 */
	uint64_t *counts;         /* room for `capacity` counts of rows */
	void *first;              /* room for `capacity` row numbers: the first row of each group */
	/*
	 * n numbers: the offset of each row's key in out_keys. Rows of groups that were not stored
	 * have the greatest value of the type.
	 */
	void *inverse;
};
#define CUA_UNIQUE_OPTIONS_INIT CUA__SIZED_INIT(struct cua_unique_options)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Groups n rows by key, and stores the key and the results of each group at the same offset of
 * out_keys and of aggregates[i].out. *groups becomes the number of all groups. If it is less than
 * the capacity, the elements behind the last group are undefined. key_type is I32, U32, I64, U64,
 * F32, F64 or U128.
 *
 * options may be NULL, and so may out_keys: then no keys are stored. `aggregates` is in host memory
 * and may be NULL if aggregates_count is 0. All other arrays are memory of the backend. The call
 * follows the rules of cuatomic/context.h. If groups is ordinary host memory, the call waits for
 * the stream, and the number of groups decides its further work. If not, the work depends on the
 * capacity, so a capacity near the number of groups is fastest.
 * Errors: NULL; VALUE (options, op, ddof, valid_bits, reserved, aggregates_count); TYPE (key_type,
 *   type, result_type); SIZE; ALIGNMENT; OVERLAP (of an output with any other array); MEMORY_KIND;
 *   CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_group_by(struct cua_context *ctx,
				     const struct cua_group_by_options *options,
				     enum cua_type key_type, size_t n, const void *keys,
				     const struct cua_aggregate *aggregates,
				     uint32_t aggregates_count, uint64_t capacity, void *out_keys,
				     uint64_t *groups);

/*
 * The workspace that the call needs at most with these arguments. Of the pointers in `aggregates`,
 * only `valid` is compared with NULL. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status
cua_group_by_workspace(struct cua_context *ctx, const struct cua_group_by_options *options,
		       enum cua_type key_type, size_t n, const struct cua_aggregate *aggregates,
		       uint32_t aggregates_count, uint64_t capacity, size_t *bytes);

/*
 * Stores the distinct keys among n keys in out_keys, which may be NULL, and the outputs that the
 * options name. *count becomes the number of distinct keys, stored or not. Types, order and
 * capacity are as in cua_group_by, and so are the keys that a call in order ANY stores. An
 * index_type of U32 needs n <= 2^32 - 1.
 * Errors: NULL; VALUE (options); TYPE (key_type); SIZE; ALIGNMENT; OVERLAP; MEMORY_KIND; CAPTURE;
 *   WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_unique(struct cua_context *ctx,
				   const struct cua_unique_options *options, enum cua_type key_type,
				   size_t n, const void *keys, uint64_t capacity, void *out_keys,
				   uint64_t *count);

/*
 * The workspace that the call needs at most with these arguments. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_unique_workspace(struct cua_context *ctx,
					     const struct cua_unique_options *options,
					     enum cua_type key_type, size_t n, uint64_t capacity,
					     size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_GROUP_BY_H */
