/* SPDX-License-Identifier: MIT */
/*
 * The parts of the C library that the public headers use. NVRTC has no headers of its own, but
 * predefines size_t, NULL, memcpy and memset.
 */
#ifndef CUATOMIC_STANDARD_H
#define CUATOMIC_STANDARD_H

#if !defined(__CUDACC_RTC__)

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The offset of a member as a constant expression. */
#define CUA__OFFSETOF(type, member) offsetof(type, member)

#else

/*
 * The types of <cuda/std/cstdint>, so that a program may include both in any order. Any other
 * <stdint.h> must be included first; its macro UINT64_MAX then announces its types.
 */
#if !defined(UINT64_MAX)
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#endif

/* NVRTC has no offsetof, and its compiler folds an address without an object only by this name. */
#define CUA__OFFSETOF(type, member) ((size_t)__INTADDR__(&((type *)0)->member))

#endif

#endif /* CUATOMIC_STANDARD_H */
