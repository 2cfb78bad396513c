/* SPDX-License-Identifier: MIT */
/* Dot products, and the norm of f64, in the order of the tree. */
#include "config.h"

#include "cuda_tree.h"

#define CUA__TREE_TEMPLATE "kernels/tree_block.tmpl.h"
#define CUA__TREE_WITH_DOTS
#include "kernels/tree_kinds.tmpl.h"

DEFINE_KERNELS(cua__tree_run_dots, CUA__TREE_DOTS)
