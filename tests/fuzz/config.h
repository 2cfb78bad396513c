/* SPDX-License-Identifier: MIT */
/*
 * Configures a library with the CPU backend only, regardless of this build: clang compiles no
 * kernels here.
 */
#include_next "config.h"

#undef CUA_HAVE_CUDA
#define CUA_HAVE_CUDA 0
