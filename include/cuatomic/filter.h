/* SPDX-License-Identifier: MIT */
/*
 * The filter compacts the elements of an array that a comparison or an array of flags selects, or
 * their indexes, into an array or an append buffer.
 *
 * Source: stream compaction, as in textbooks by an atomic counter and by a scan. In addition, a
 * destination that is too small is not an error of the call. Nothing is stored past its capacity,
 * and the count is the capacity that a retry needs.
 *
 *     x         5 1 7 2 8        keep elements > 4
 *     values    5 7 8            ordered; without order for example 8 5 7
 *     indexes   0 2 4
 *     values    5 7 8 1 2        ordered, partition
 *
 * Without order the kept elements may have any order, which can differ from call to call. An
 * ordered filter is stable, and its result has the same bits on every device and backend. On a GPU
 * an ordered filter takes up to 15 % longer, and an ordered partition 50 %.
 *
 * Scope: the host calls use one device. No other thread may write their arrays meanwhile.
 *   cua_filter_by_<name> is for a whole grid; it pushes kept elements with the scope of append.h.
 * Memory order: the host calls have that of the context's stream; see cuatomic/context.h.
 *   cua_filter_by_<name> has that of append.h.
 * Progress: without order and in a partition of a long array no block waits for another block.
 *   Otherwise, in order, each block counts tiles of consecutive elements, and publishes a count a
 *   tile. A block waits for the counts of lower tiles only; the blocks that publish these already
 *   run.
 */
#ifndef CUATOMIC_FILTER_H
#define CUATOMIC_FILTER_H

#include <cuatomic/append.h>
#include <cuatomic/context.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/*
 * The predicate of the filter: whether `x compare value` holds, with the meaning of C's operators.
 * If either side is NaN, only NE is true; -0 equals 0.
 */
#define CUA__DEFINE_KEEP(name, T)                                                                  \
	CUA_FORCE int cua_filter_keep_##name(T x, enum cua_compare compare, T value)               \
	{                                                                                          \
		switch (compare) {                                                                 \
		case CUA_LT: return x < value;                                                     \
		case CUA_LE: return x <= value;                                                    \
		case CUA_EQ: return x == value;                                                    \
		case CUA_NE: return x != value;                                                    \
		case CUA_GE: return x >= value;                                                    \
		case CUA_GT: return x > value;                                                     \
		}                                                                                  \
		return 0;                                                                          \
	}
CUA__DEFINE_KEEP(u32, uint32_t)
CUA__DEFINE_KEEP(i32, int32_t)
CUA__DEFINE_KEEP(u64, uint64_t)
CUA__DEFINE_KEEP(i64, int64_t)
CUA__DEFINE_KEEP(f32, float)
CUA__DEFINE_KEEP(f64, double)

/*
 * CUA_DEFINE_FILTER(name, T, C, ...) defines a filter with a user-defined predicate, for the user's
 * kernels. The last arguments are an expression over `x`, the element of type T, `i`, its index,
 * and `c`, a value of type C that the kernel passes. Kept elements go to an append buffer of items
 * T, in any order:
 *
 *     CUA_DEFINE_FILTER(near, float, struct point, x > c.low && x < c.high)
 *
 *     __global__ void keep_near(struct cua_append_view view, uint64_t n, const float *x,
 *                               struct point c)
 *     {
 *             __shared__ struct cua_append_stage_near stage;
 *
 *             cua_filter_by_near(&view, n, x, c, &stage);
 *     }
 *
 * All threads of all blocks of the grid call it once. A block has at most 1024 threads. The stage
 * occupies the shared memory of 4096 items. A buffer whose item size is not that of T remains
 * unchanged.
 */
#define CUA__FILTER_STEP 4u /* elements that a thread loads at a time */
#define CUA_DEFINE_FILTER(name, T, C, ...)                                                         \
	CUA_DEFINE_APPEND_STAGE(name, T, 4096u)                                                    \
	CUA_FORCE int cua__filter_keep_##name(T x, uint64_t i, C c)                                \
	{                                                                                          \
		(void)x;                                                                           \
		(void)i;                                                                           \
		(void)c;                                                                           \
		return (__VA_ARGS__) ? 1 : 0;                                                      \
	}                                                                                          \
	CUA_FN void cua_filter_by_##name(const struct cua_append_view *view, uint64_t n,           \
					 const T *x, C c, struct cua_append_stage_##name *stage)   \
	{                                                                                          \
		const uint32_t threads = cua_port_block_size();                                    \
		const uint64_t tile = (uint64_t)CUA__FILTER_STEP * threads;                        \
		uint64_t begin, i;                                                                 \
		uint32_t j;                                                                        \
                                                                                                   \
		cua_append_stage_init_##name(stage);                                               \
		for (begin = cua_port_block() * tile; begin < n;                                   \
		     begin += cua_port_grid_size() * tile) {                                       \
			T v[CUA__FILTER_STEP];                                                     \
                                                                                                   \
			for (j = 0; j < CUA__FILTER_STEP; j++) {                                   \
				i = begin + j * threads + cua_port_thread();                       \
				v[j] = x[i < n ? i : n - 1];                                       \
			}                                                                          \
			cua_append_stage_make_room_##name(view, stage, (uint32_t)tile);            \
			for (j = 0; j < CUA__FILTER_STEP; j++) {                                   \
				i = begin + j * threads + cua_port_thread();                       \
				if (i < n && cua__filter_keep_##name(v[j], i, c))                  \
					cua_append_stage_push_##name(view, stage, v[j]);           \
			}                                                                          \
		}                                                                                  \
		cua_append_stage_flush_##name(view, stage);                                        \
	}

/* Options of the filter; zeros select by comparison, without order, and store values. */
struct cua_filter_options {
	size_t struct_size; /* sizeof(struct cua_filter_options), set by the caller */
	int ordered;        /* not 0: kept elements stay in the order of x */
	/*
	 * not 0: rejected elements follow the kept elements, in the order of x if `ordered` is set
	 */
	int partition;
	/* n bytes in backend memory, a byte for each element, 0 rejects it; NULL: compare */
	const uint8_t *flags;
	void *indexes; /* room for `capacity` indexes of the elements, counted from 0; NULL: none */
	enum cua_type index_type; /* U32 or U64; 0: none */
};
#define CUA_FILTER_OPTIONS_INIT                                                                    \
	{                                                                                          \
		sizeof(struct cua_filter_options), 0, 0, NULL, NULL, (enum cua_type)0              \
	}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Stores each element of x for which `element compare *value` holds at the next offset of values,
 * and its index at the same offset of options->indexes. *count receives the number of kept
 * elements. If that exceeds the capacity, the excess is dropped: in order the last elements, else
 * any.
 *
 * With options->flags the flags decide, and compare and value are ignored. values may be NULL if
 * only indexes or the count are needed; x may be NULL too if flags decide. Indexes of U32 need n <=
 * 2^32.
 *
 * A partition stores all n elements or indexes, so its capacity must be at least n. The rejected
 * elements begin at offset *count. Without order they also have any order.
 *
 * values may be x itself, except for a partition. Then the call keeps the order, even if
 * options->ordered is 0. Otherwise the outputs must not overlap the inputs nor each other.
 *
 * Types: for comparisons, integers and floats of 8 to 64 bits; for flags, all types. The host reads
 * value before the call returns. options may be NULL. The call follows the rules of
 * cuatomic/context.h: it is in stream order, and with a count in backend memory it may be captured.
 *
 * Errors: NULL; VALUE (options, compare, index_type without indexes); TYPE; SIZE (n, or a capacity
 * below n of a partition); ALIGNMENT; OVERLAP; UNSUPPORTED (a partition in place); MEMORY_KIND;
 * CAPTURE; WORKSPACE; NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_filter_array(struct cua_context *ctx,
					 const struct cua_filter_options *options,
					 enum cua_type type, size_t n, const void *x,
					 enum cua_compare compare, const void *value,
					 uint64_t capacity, void *values, uint64_t *count);

/*
 * As cua_filter_array, at the end of an append buffer. It appends values, or with
 * options->index_type indexes of that type. Elements that do not fit count in the buffer's demand
 * and are dropped. In order, no other code may append at the same time. A partition is not
 * possible, and options->indexes must be NULL.
 *
 * Errors: as above; TYPE also if the size is not the buffer's item size; CONTEXT (out belongs to
 * another context).
 */
CUA_API enum cua_status cua_filter_append(struct cua_context *ctx,
					  const struct cua_filter_options *options,
					  enum cua_type type, size_t n, const void *x,
					  enum cua_compare compare, const void *value,
					  struct cua_append *out);

/*
 * The most workspace that either call uses with these arguments. Errors: NULL, VALUE, TYPE, SIZE.
 */
CUA_API enum cua_status cua_filter_workspace(struct cua_context *ctx,
					     const struct cua_filter_options *options,
					     enum cua_type type, size_t n, size_t *bytes);

/* cua_filter_append without options: by comparison, in any order. */
CUA_API enum cua_status cua_filter(struct cua_context *ctx, enum cua_type type, size_t n,
				   const void *x, enum cua_compare compare, const void *value,
				   struct cua_append *out);

#ifdef __cplusplus
}
#endif

/* cua_filter by type: cua_filter_f32(ctx, n, x, compare, value, out). */
#define CUA__DEFINE_FILTER(name, TYPE, T)                                                          \
	CUA__HOST_FN enum cua_status cua_filter_##name(struct cua_context *ctx, size_t n,          \
						       const T *x, enum cua_compare compare,       \
						       T value, struct cua_append *out)            \
	{                                                                                          \
		return cua_filter(ctx, TYPE, n, x, compare, &value, out);                          \
	}
CUA__DEFINE_FILTER(u32, CUA_U32, uint32_t)
CUA__DEFINE_FILTER(i32, CUA_I32, int32_t)
CUA__DEFINE_FILTER(u64, CUA_U64, uint64_t)
CUA__DEFINE_FILTER(i64, CUA_I64, int64_t)
CUA__DEFINE_FILTER(f32, CUA_F32, float)
CUA__DEFINE_FILTER(f64, CUA_F64, double)

#endif /* CUATOMIC_FILTER_H */
