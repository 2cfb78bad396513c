/* SPDX-License-Identifier: MIT */
/* Configures a library with the CUDA backend on the devices of cuda_model.h. */
#include_next "config.h"

#undef CUA_HAVE_CUDA
#define CUA_HAVE_CUDA 1
#undef CUA_CUDA_ARCHS
#define CUA_CUDA_ARCHS "90"
