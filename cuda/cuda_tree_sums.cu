/* SPDX-License-Identifier: MIT */
/* Sums, in the order of the tree. */
#include "config.h"

#include "cuda_tree.h"

#define CUA__TREE_TEMPLATE "kernels/tree_block.tmpl.h"
#define CUA__TREE_WITH_INTEGER_SUMS
#define CUA__TREE_WITH_FLOAT_SUMS
#include "kernels/tree_kinds.tmpl.h"

DEFINE_KERNELS(cua__tree_run_sums, CUA__TREE_SUMS)
