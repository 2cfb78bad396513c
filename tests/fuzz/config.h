/* SPDX-License-Identifier: MIT */
/* The configuration of a library of the CPU backend alone, whatever this build is: clang compiles no kernels here. */
#include_next "config.h"

#undef CUA_HAVE_CUDA
#define CUA_HAVE_CUDA 0
