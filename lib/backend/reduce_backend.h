/* SPDX-License-Identifier: MIT */
/*
 * Declarations that both backends' reductions share. A reduction uses one of two algorithms; mode
 * EXACT uses neither, but cua__exact_reduce of kernels/exact_windows.h:
 * - The tree (tree.h) has every operation and type. It finishes by the last block.
 * - The plain algorithm has the operations of CUA__REDUCE_LIST and every finish. Its accumulator is
 *   a sum of u64 or f64, or a maximum of unsigned 32-bit or 64-bit keys (cuatomic/reduce.h). Zeros
 *   are the identity of all four.
 * lib/reduce.c sets the kind of the tree, and the backend's plan replaces it by CUA__TREE_NONE if
 * the backend prefers the plain algorithm or needs it for the finish.
 *
 * The tree of an array that is divided among several contexts is made in steps (enum
 * cua__tree_step). Each context reduces its part to values of the kind, and a context that has the
 * values of all parts makes the result.
 */
#ifndef CUATOMIC_BACKEND_REDUCE_BACKEND_H
#define CUATOMIC_BACKEND_REDUCE_BACKEND_H

#include "backend/internal.h"

/*
 * The kinds that tree.h defines, X(kind, family). A family is a list of kinds in tree.h, and the
 * file cuda/cuda_tree_<family>.cu with their kernels.
 */
/* clang-format off */
#define CUA__TREE_KINDS(X)                                                                         \
	X(sum_b32, sums) X(sum_b64, sums) X(sum_f16, sums) X(sum_bf16, sums) X(sum_f32, sums)      \
	X(sum_f64, sums) X(sum_c32, sums) X(sum_c64, sums)                                         \
	X(dot_b32, dots) X(dot_b64, dots) X(dot_f16, dots) X(dot_bf16, dots) X(dot_f32, dots)      \
	X(dot_f64, dots) X(dot_c32, dots) X(dot_c64, dots)                                         \
	X(norm_f64, dots)                                                                          \
	X(order_b16, orders) X(order_b32, orders) X(order_b64, orders)                             \
	X(index_b16, orders) X(index_b32, orders) X(index_b64, orders)                             \
	X(count_b16, orders) X(count_b32, orders) X(count_b64, orders)                             \
	X(product_b32, moments) X(product_b64, moments) X(product_f16, moments)                    \
	X(product_bf16, moments) X(product_f32, moments) X(product_f64, moments)                   \
	X(moments_b32, moments) X(moments_b64, moments) X(moments_f16, moments)                    \
	X(moments_bf16, moments) X(moments_f32, moments) X(moments_f64, moments)
/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif

enum cua__tree_kind {
	CUA__TREE_NONE = 0,
#define CUA__TREE_KIND(kind, family) CUA__TREE_##kind,
	CUA__TREE_KINDS(CUA__TREE_KIND)
#undef CUA__TREE_KIND
};

/* What a call makes of the tree. All steps but WHOLE are of the tree only. */
enum cua__tree_step {
	CUA__TREE_WHOLE = 0, /* the result, of the elements */
	CUA__TREE_CHUNKS,    /* the values of the chunks, in partials, in the order of the chunks */
	CUA__TREE_VALUE,     /* the value of all elements, in *result */
	CUA__TREE_ROOT       /* the result, of `values` values in partials */
};

/* Bytes of the largest value of a kind. */
#define CUA__TREE_VALUE_BYTES 24u

/* A checked call. All pointers are as the backend addresses them. */
struct cua__reduce {
	enum cua_reduce_op op;
	enum cua_type type, result_type;
	enum cua_reduce_mode mode;
	enum cua_finish_mode finish_mode;
	enum cua__tree_kind kind; /* 0: the plain algorithm */
	uint32_t blocks, block_size;
	uint64_t n;
	const uint64_t *count; /* NULL, or the address of a smaller element count */
	const void *x, *y;     /* y is x if the operation has a single array */
	void *result;
	void *partials; /* a value per block or per chunk; NULL if none are needed */
	struct cua_finish *finish;
	uint64_t kept_bytes; /* bytes of an array that a GPU's L2 keeps for the next reader */
	/*
	 * Of a part of a larger array: the index of its first element, and the elements of the
	 * larger array; 0: the strips are those of an array of n elements. CUA__TREE_CHUNKS needs
	 * `whole`, unless all parts are empty. In CUA__TREE_ROOT, n is that of the larger array.
	 */
	enum cua__tree_step step;
	uint64_t first, whole;
	uint64_t values;
	/*
	 * Parameters that distinguish the operations and types of a kind, as wide as an element;
	 * see tree.h.
	 */
	uint64_t top, sign, keep, low, finite, flip, quiet, absolute;
	double conjugate;
};

struct cua__exact;

struct cua__reduce_ops {
	/*
	 * Chooses the algorithm (kind), and blocks and block_size where they are 0. Reads the other
	 * members except addresses.
	 */
	void (*plan)(struct cua_context *ctx, struct cua__reduce *r);
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__reduce *r);
};

/*
 * The kind that reduces this type by this operation; CUA__TREE_NONE if the operation does not
 * support it.
 */
enum cua__tree_kind cua__reduce_kind(enum cua_reduce_op op, enum cua_type type);

/* Whether the plain algorithm has this operation, element type and result type. */
int cua__reduce_has_plain(const struct cua__reduce *r);

/*
 * Whether the order of elements is free: no bits are promised (FAST), or none depend on the order.
 */
CUA__HOST_FN int cua__reduce_in_any_order(const struct cua__reduce *r)
{
	if (r->mode == CUA_REDUCE_FAST)
		return 1;
	switch (r->kind) {
	/* integers, exact or modulo 2^64; indexes of the first extreme element; counts */
	case CUA__TREE_sum_b32:
	case CUA__TREE_sum_b64:
	case CUA__TREE_dot_b32:
	case CUA__TREE_dot_b64:
	case CUA__TREE_order_b16:
	case CUA__TREE_order_b32:
	case CUA__TREE_order_b64:
	case CUA__TREE_index_b16:
	case CUA__TREE_index_b32:
	case CUA__TREE_index_b64:
	case CUA__TREE_count_b16:
	case CUA__TREE_count_b32:
	case CUA__TREE_count_b64:
	case CUA__TREE_product_b32:
	case CUA__TREE_product_b64: return 1;
	default: return 0;
	}
}

/* Bytes of partial results that the tree needs. */
size_t cua__tree_partials(const struct cua__reduce *r);

/* Bytes of partial results of a planned call. */
size_t cua__reduce_partials(const struct cua__reduce *r);

/* Bytes of a value of the kind. */
size_t cua__tree_value_bytes(enum cua__tree_kind kind);

/*
 * Checks the arguments of a reduction that do not depend on its arrays, and describes it in *r. Does
 * not choose the algorithm, the grid and the step. Errors: VALUE, TYPE, SIZE, UNSUPPORTED.
 */
enum cua_status cua__reduce_describe(const struct cua_reduce_options *options,
				     enum cua_reduce_op op, enum cua_type type, size_t n,
				     struct cua__reduce *r);

/*
 * Checks the arrays and the result of a reduction, and sets its addresses. Errors: VALUE, NULL, SIZE,
 * ALIGNMENT, MEMORY_KIND, OVERLAP.
 */
enum cua_status cua__reduce_arguments(struct cua_context *ctx, struct cua__reduce *r, const void *x,
				      const void *y, const void *result);

/* The sum in mode EXACT of a described call with its addresses. */
struct cua__exact cua__reduce_exact(const struct cua__reduce *r);

/* Whether the operation has a second array. */
CUA__HOST_FN int cua__reduce_has_second(enum cua_reduce_op op)
{
	return op == CUA_REDUCE_DOT || op == CUA_REDUCE_DOT_CONJ;
}

/* The number of elements of a call: the lesser of n and *count. */
CUA_FN uint64_t cua__reduce_count(const struct cua__reduce *r)
{
	uint64_t count = r->count ? *r->count : r->n;

	return count < r->n ? count : r->n;
}

/*
 * The tree on the CPU: by the context's threads, or by the caller alone. The GPU's kernels are in
 * cuda/cuda_tree_*.cu.
 */
enum cua_status cua__cpu_tree(struct cua_context *ctx, const struct cua__reduce *r);
void cua__cpu_tree_serial(const struct cua__reduce *r);

/* Rounds a result to float. Every NaN becomes the same NaN. */
CUA_FORCE float cua__round_f32(double v)
{
	return v != v ? cua__from_bits_f32(0x7fc00000u) : (float)v;
}

CUA_FORCE double cua__round_f64(double v)
{
	return v != v ? cua__from_bits_f64(0x7ff8000000000000u) : v;
}

/* Offset of the state in the context's control block. */
#define CUA__REDUCE_CONTROL 0

/*
 * X(name, op, type, element type, accumulator type, result type, family, accumulator of elements a
 * (and b), result of accumulator t, result for n = 0)
 *
 * CUA__REDUCE_SINGLE lists the operations on a single array, which segmented reductions share.
 * CUA__REDUCE_LIST adds the dot products; it lists every operation of the plain algorithm.
 */
#define CUA__REDUCE_SINGLE(X)                                                                      \
	X(sum_u32, SUM, U32, uint32_t, uint64_t, uint64_t, sum_u64, a, t, 0)                       \
	X(sum_i32, SUM, I32, int32_t, uint64_t, uint64_t, sum_u64, (uint64_t)(int64_t)a, t, 0)     \
	X(sum_u64, SUM, U64, uint64_t, uint64_t, uint64_t, sum_u64, a, t, 0)                       \
	X(sum_i64, SUM, I64, int64_t, uint64_t, uint64_t, sum_u64, (uint64_t)a, t, 0)              \
	X(sum_f32, SUM, F32, float, double, float, sum_f64, (double)a, cua__round_f32(t), 0)       \
	X(sum_f64, SUM, F64, double, double, double, sum_f64, a, cua__round_f64(t), 0)             \
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

/* clang-format off */
#define CUA__REDUCE_LIST(X)                                                                        \
	CUA__REDUCE_SINGLE(X)                                                                      \
	X(dot_u32, DOT, U32, uint32_t, uint64_t, uint64_t, sum_u64, (uint64_t)a * b, t, 0)         \
	X(dot_i32, DOT, I32, int32_t, uint64_t, uint64_t, sum_u64,                                 \
	  (uint64_t)((int64_t)a * (int64_t)b), t, 0)                                               \
	X(dot_u64, DOT, U64, uint64_t, uint64_t, uint64_t, sum_u64, a * b, t, 0)                   \
	X(dot_i64, DOT, I64, int64_t, uint64_t, uint64_t, sum_u64, (uint64_t)a * (uint64_t)b,      \
	  t, 0)                                                                                    \
	X(dot_f32, DOT, F32, float, double, float, sum_f64, (double)a * (double)b,                 \
	  cua__round_f32(t), 0)                                                                    \
	X(dot_f64, DOT, F64, double, double, double, sum_f64, a * b, cua__round_f64(t), 0)
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_REDUCE_BACKEND_H */
