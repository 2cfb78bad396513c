/* SPDX-License-Identifier: MIT */
/* Dot products, and the norm of f64, in the order of the tree. */
#include "config.h"

#include "cuda_tree.h"

DEFINE_KERNELS(cua__tree_run_dots, CUA__TREE_DOTS)
