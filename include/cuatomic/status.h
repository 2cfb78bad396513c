/* SPDX-License-Identifier: MIT */
/*
 * The status that every host call returns: 0 is success, errors are negative.
 *
 * A single list defines each status's enumerator, number and text. Numbers are never reused, so the
 * list may have gaps.
 */
#ifndef CUATOMIC_STATUS_H
#define CUATOMIC_STATUS_H

/*
 * CUA__HOST marks a host function. NVRTC accepts no host functions, not even prototypes, so there
 * these are device functions without a definition, and a kernel that calls one does not link.
 */
#if defined(__CUDACC_RTC__)
#define CUA__HOST __device__
#else
#define CUA__HOST
#endif

/* Marks the exported host functions; all other symbols of the library are hidden. */
#if defined(__CUDACC_RTC__)
#define CUA_API CUA__HOST
#elif defined(__GNUC__)
#define CUA_API __attribute__((visibility("default")))
#else
#define CUA_API
#endif

#define CUA_STATUS_LIST(X)                                                                         \
	X(CUA_OK, 0, "success")                                                                    \
	X(CUA_ERROR_NULL, -1, "a required pointer is NULL")                                        \
	X(CUA_ERROR_VALUE, -2, "an argument has a value outside its range")                        \
	X(CUA_ERROR_TYPE, -3, "this element type is unknown or not offered by this call")          \
	X(CUA_ERROR_SIZE, -4, "a size overflows or is too large")                                  \
	X(CUA_ERROR_ALIGNMENT, -5, "a pointer is not aligned to its element type")                 \
	X(CUA_ERROR_OVERLAP, -6, "an output overlaps another argument")                            \
	X(CUA_ERROR_MEMORY_KIND, -7, "the backend cannot access this memory")                      \
	X(CUA_ERROR_NO_MEMORY, -8, "out of memory")                                                \
	X(CUA_ERROR_NO_DEVICE, -9, "no usable CUDA device")                                        \
	X(CUA_ERROR_CUDA, -10, "CUDA reported an error; see cua_context_cuda_error")               \
	X(CUA_ERROR_CAPTURE, -11, "this call has to wait, and the stream is being captured")       \
	X(CUA_ERROR_WORKSPACE, -12, "the workspace is too small and cannot grow in a capture")     \
	X(CUA_ERROR_FULL, -13, "the container is full")                                            \
	X(CUA_ERROR_LAYOUT, -15, "header and library disagree about the layout of an object")      \
	X(CUA_ERROR_SYSTEM, -16, "the operating system refused a resource")                        \
	X(CUA_ERROR_CONTEXT, -17, "the objects belong to different contexts or backends")          \
	X(CUA_ERROR_CORRUPT, -18, "the object's memory is not consistent")                         \
	X(CUA_ERROR_UNSUPPORTED, -19,                                                              \
	  "the device, or this operation on this type, does not have this")                        \
	X(CUA_ERROR_NOT_BUILT, -20, "this library was built without CUDA")                         \
	X(CUA_ERROR_TIMEOUT, -21, "another process did not answer in time")

enum cua_status {
#define CUA__STATUS(name, number, text) name = number,
	CUA_STATUS_LIST(CUA__STATUS)
#undef CUA__STATUS
	/* makes the enumeration as wide as int on every compiler */
	CUA__STATUS_WIDTH = 0x7fffffff
};

#ifdef __cplusplus
extern "C" {
#endif

/* A sentence about the status; a static string, never NULL. */
CUA_API const char *cua_strerror(enum cua_status status);
/* The enumerator's name, "CUA_OK"; "CUA_ERROR_UNKNOWN" for an unknown number. A static string. */
CUA_API const char *cua_status_name(enum cua_status status);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_STATUS_H */
