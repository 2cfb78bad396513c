/* SPDX-License-Identifier: MIT */
/*
 * The block of a kernel that reduces in the order of tree.h, with CUA__TREE_THREADS threads. The
 * grid may have any number of blocks.
 *
 * Progress: no block waits for another block.
 *
 * Argument: the blocks share the partial results and the arrival count.
 * - Thread 0 of a block writes the block's partial results. It then arrives with acquire and
 *   release at device scope (cua__finish_arrive of cuatomic/reduce.h).
 * - The arrivals form a single release sequence. So the thread 0 that arrives last acquires the
 *   partial results that all other blocks released.
 * - The barrier after the arrival passes them to the other threads of that block, which read them.
 * - Within a block, the values of warps alternate between two buffers from chunk to chunk. A buffer
 *   is written again only after the barrier that follows its last reads.
 */
#ifndef CUATOMIC_KERNELS_TREE_BLOCK_H
#define CUATOMIC_KERNELS_TREE_BLOCK_H

#include "kernels/cached.h"
#include "kernels/tree.h"

/* 16-byte loads in flight per thread, over all arrays. */
#define CUA__TREE_LOADS 8

/* 8-byte words of the largest value of a kind. */
#define CUA__TREE_WORDS (CUA__TREE_VALUE_BYTES / 8)

/* Shared memory of a block. It needs no initialization. */
struct cua__tree_scratch {
	uint64_t warps[2][CUA__TREE_WARPS][CUA__TREE_WORDS];
	uint64_t last;
};

#endif /* CUATOMIC_KERNELS_TREE_BLOCK_H */
