/* SPDX-License-Identifier: MIT */
/* Products and moments, in the order of the tree. */
#include "config.h"

#include "cuda_tree.h"

DEFINE_KERNELS(cua__tree_run_moments, CUA__TREE_MOMENTS)
