/* SPDX-License-Identifier: MIT */
/* The version of the library and the architectures that it was built for. */
#include "config.h"

#include <cuatomic/context.h>
#include <cuatomic/version.h>

const char *cua_version(void)
{
	return CUA_VERSION_STRING;
}

const char *cua_cuda_architectures(void)
{
#if CUA_HAVE_CUDA
	return CUA_CUDA_ARCHS;
#else
	return "";
#endif
}
