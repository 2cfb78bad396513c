/* SPDX-License-Identifier: MIT */
/* Sums, in the order of the tree. */
#include "config.h"

#include "cuda_tree.h"

DEFINE_KERNELS(cua__tree_run_sums, CUA__TREE_SUMS)
