/* SPDX-License-Identifier: MIT */
/*
 * The kernels of the tree (lib/kernels/tree_block.h). Each cuda_tree_*.cu has a subset of the kinds,
 * so that they compile in parallel.
 */
#ifndef CUATOMIC_CUDA_TREE_H
#define CUATOMIC_CUDA_TREE_H

#include "kernels/tree_block.h"
#include "launch.h"

/*
 * Resident blocks guaranteed per multiprocessor. With so few blocks the compiler keeps all loads of
 * a thread in flight.
 */
#define TREE_BLOCKS_PER_SM 2

#define DEFINE_KERNEL(kind, T, two, C, A, none, widen, combine, store)                             \
	static __global__ void __launch_bounds__(CUA__TREE_THREADS, TREE_BLOCKS_PER_SM)            \
		tree_##kind(const __grid_constant__ struct cua__reduce r)                          \
	{                                                                                          \
		__shared__ struct cua__tree_scratch scratch;                                       \
                                                                                                   \
		cua__after_predecessor();                                                          \
		cua__tree_block_##kind(&r, &scratch);                                              \
	}

#define RUN_KERNEL(kind, T, two, C, A, none, widen, combine, store)                                \
	case CUA__TREE_##kind:                                                                     \
		return cua__launch_early(ctx, tree_##kind, r->blocks, CUA__TREE_THREADS, 0, *r);

/*
 * Defines the kernels of a file and the function that launches them. tree_block.tmpl.h for the
 * kinds of LIST must precede it.
 */
#define DEFINE_KERNELS(run, LIST)                                                                  \
	LIST(DEFINE_KERNEL)                                                                        \
	extern "C" enum cua_status run(struct cua_context *ctx, const struct cua__reduce *r)       \
	{                                                                                          \
		switch (r->kind) {                                                                 \
			LIST(RUN_KERNEL)                                                           \
		default: return CUA_ERROR_TYPE;                                                    \
		}                                                                                  \
	}

extern "C" {
enum cua_status cua__tree_run_sums(struct cua_context *ctx, const struct cua__reduce *r);
enum cua_status cua__tree_run_dots(struct cua_context *ctx, const struct cua__reduce *r);
enum cua_status cua__tree_run_orders(struct cua_context *ctx, const struct cua__reduce *r);
enum cua_status cua__tree_run_moments(struct cua_context *ctx, const struct cua__reduce *r);
}

#endif /* CUATOMIC_CUDA_TREE_H */
