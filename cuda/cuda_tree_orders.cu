/* SPDX-License-Identifier: MIT */
/* Minima, maxima, their indexes, and counts, in the order of the tree. */
#include "config.h"

#include "cuda_tree.h"

#define CUA__TREE_TEMPLATE "kernels/tree_block.tmpl.h"
#define CUA__TREE_WITH_ORDERS
#include "kernels/tree_kinds.tmpl.h"

DEFINE_KERNELS(cua__tree_run_orders, CUA__TREE_ORDERS)
