/* SPDX-License-Identifier: MIT */
/*
 * What both backends' reductions share. Every reduction is one of four: the sum of u64 or f64, or
 * the maximum of unsigned keys of 32 or 64 bits (cuatomic/reduce.h), all with zeros as the
 * identity.
 */
#ifndef CUATOMIC_LIB_REDUCE_H
#define CUATOMIC_LIB_REDUCE_H

#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checked call, with everything as the backend addresses it. */
struct cua__reduce {
	enum cua_reduce_op op;
	enum cua_type type;
	enum cua_finish_mode mode;
	uint32_t blocks, block_size;
	uint64_t n;
	const void *x, *y; /* y is NULL but for DOT */
	void *result;
	void *partials; /* 8 bytes a block; NULL where the mode needs none */
	struct cua_finish *finish;
};

struct cua__reduce_ops {
	/* Replaces mode, blocks and block_size by choices where they are 0; reads op, type and n. */
	void (*plan)(struct cua_context *ctx, struct cua__reduce *r);
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__reduce *r);
};

/* Where the state lies in the context's control memory. */
#define CUA__REDUCE_CONTROL 0

/*
 * X(name, op, type, element type, accumulator, result type, family,
 *   the accumulator of elements a (and b), the result of accumulator t, the result for n = 0)
 */
#define CUA__REDUCE_LIST(X)                                                                        \
	X(sum_u32, SUM, U32, uint32_t, uint64_t, uint64_t, sum_u64, a, t, 0)                       \
	X(sum_i32, SUM, I32, int32_t, uint64_t, uint64_t, sum_u64, (uint64_t)(int64_t)a, t, 0)     \
	X(sum_u64, SUM, U64, uint64_t, uint64_t, uint64_t, sum_u64, a, t, 0)                       \
	X(sum_i64, SUM, I64, int64_t, uint64_t, uint64_t, sum_u64, (uint64_t)a, t, 0)              \
	X(sum_f32, SUM, F32, float, double, float, sum_f64, (double)a, (float)t, 0)                \
	X(sum_f64, SUM, F64, double, double, double, sum_f64, a, t, 0)                             \
	X(dot_u32, DOT, U32, uint32_t, uint64_t, uint64_t, sum_u64, (uint64_t)a * b, t, 0)         \
	X(dot_i32, DOT, I32, int32_t, uint64_t, uint64_t, sum_u64,                                 \
	  (uint64_t)((int64_t)a * (int64_t)b), t, 0)                                               \
	X(dot_u64, DOT, U64, uint64_t, uint64_t, uint64_t, sum_u64, a * b, t, 0)                   \
	X(dot_i64, DOT, I64, int64_t, uint64_t, uint64_t, sum_u64, (uint64_t)a * (uint64_t)b, t,   \
	  0)                                                                                       \
	X(dot_f32, DOT, F32, float, double, float, sum_f64, (double)a * (double)b, (float)t, 0)    \
	X(dot_f64, DOT, F64, double, double, double, sum_f64, a * b, t, 0)                         \
	X(min_u32, MIN, U32, uint32_t, uint32_t, uint32_t, max_u32, cua__key_min_u32(a),           \
	  cua__value_min_u32(t), UINT32_MAX)                                                       \
	X(min_i32, MIN, I32, int32_t, uint32_t, int32_t, max_u32, cua__key_min_i32(a),             \
	  cua__value_min_i32(t), INT32_MAX)                                                        \
	X(min_u64, MIN, U64, uint64_t, uint64_t, uint64_t, max_u64, cua__key_min_u64(a),           \
	  cua__value_min_u64(t), UINT64_MAX)                                                       \
	X(min_i64, MIN, I64, int64_t, uint64_t, int64_t, max_u64, cua__key_min_i64(a),             \
	  cua__value_min_i64(t), INT64_MAX)                                                        \
	X(min_f32, MIN, F32, float, uint32_t, float, max_u32, cua__key_min_f32(a),                 \
	  cua__value_min_f32(t), cua__from_bits_f32(0x7f800000u))                                  \
	X(min_f64, MIN, F64, double, uint64_t, double, max_u64, cua__key_min_f64(a),               \
	  cua__value_min_f64(t), cua__from_bits_f64(0x7ff0000000000000u))                          \
	X(max_u32, MAX, U32, uint32_t, uint32_t, uint32_t, max_u32, cua__key_max_u32(a),           \
	  cua__value_max_u32(t), 0)                                                                \
	X(max_i32, MAX, I32, int32_t, uint32_t, int32_t, max_u32, cua__key_max_i32(a),             \
	  cua__value_max_i32(t), INT32_MIN)                                                        \
	X(max_u64, MAX, U64, uint64_t, uint64_t, uint64_t, max_u64, cua__key_max_u64(a),           \
	  cua__value_max_u64(t), 0)                                                                \
	X(max_i64, MAX, I64, int64_t, uint64_t, int64_t, max_u64, cua__key_max_i64(a),             \
	  cua__value_max_i64(t), INT64_MIN)                                                        \
	X(max_f32, MAX, F32, float, uint32_t, float, max_u32, cua__key_max_f32(a),                 \
	  cua__value_max_f32(t), cua__from_bits_f32(0xff800000u))                                  \
	X(max_f64, MAX, F64, double, uint64_t, double, max_u64, cua__key_max_f64(a),               \
	  cua__value_max_f64(t), cua__from_bits_f64(0xfff0000000000000u))

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_LIB_REDUCE_H */
