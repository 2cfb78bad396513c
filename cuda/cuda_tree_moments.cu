/* SPDX-License-Identifier: MIT */
/* Products and moments, in the order of the tree. */
#include "config.h"

#include "cuda_tree.h"

#define CUA__TREE_TEMPLATE "kernels/tree_block.tmpl.h"
#define CUA__TREE_WITH_MOMENTS
#include "kernels/tree_kinds.tmpl.h"

DEFINE_KERNELS(cua__tree_run_moments, CUA__TREE_MOMENTS)
