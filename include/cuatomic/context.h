/* SPDX-License-Identifier: MIT */
/*
 * The context: where the host calls run, on which device and stream, with how many threads and how
 * much workspace.
 *
 * Rules for every host call of cuatomic:
 *
 * - A context may be used by one thread at a time. Different contexts may be used by different threads
 *   at once.
 * - Array arguments are memory that the backend can access: anything that the host can address on the
 *   CPU backend; device, managed and pinned memory on the CUDA backend (also ordinary host memory where
 *   the system is coherent). Other memory is refused with CUA_ERROR_MEMORY_KIND.
 * - Results: when the result pointer is memory that the device can write, the call is ordered in the
 *   stream, waits for nothing and may be captured in a CUDA graph. When it is ordinary host memory (neither
 *   pinned nor managed, also where the device could reach it) the call waits for the stream, and inside a
 *   capture it is refused with CUA_ERROR_CAPTURE. On the CPU backend every call is finished when it returns.
 * - A status other than CUA_OK for the arguments means that nothing was changed. What depends on the
 *   data (full, overflow) is kept by the object and read by a call of its own.
 * - A struct that begins with struct_size says which version of it the caller was compiled with: the caller sets
 *   sizeof the struct, or uses the struct's _INIT. A size that no release gave the struct is refused with
 *   CUA_ERROR_VALUE, also one between two versions.
 * - No host call is a cancellation point. A thread that pthread_cancel names inside a call finishes the call, and the
 *   function that a call runs for the caller, before it is cancelled.
 * - n = 0 elements are valid in every call over arrays, which may then be NULL.
 * - Work in the stream uses the context's workspace. Use one context for each stream that runs at the
 *   same time, and do not run two launches of graphs captured from one context at the same time.
 */
#ifndef CUATOMIC_CONTEXT_H
#define CUATOMIC_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* What cudaStream_t points to; declared here so that no CUDA header is needed. */
struct CUstream_st;

struct cua_context;

enum cua_backend {
	CUA_BACKEND_AUTO = 0, /* CUDA where there is a usable device, else the CPU */
	CUA_BACKEND_CPU = 1,
	CUA_BACKEND_CUDA = 2
};

/*
 * The initializer of a struct T that begins with struct_size: its size, and 0 in every other member, in those of a
 * later version too.
 */
#ifdef __cplusplus
#define CUA__SIZED_INIT(T)                                                                         \
	[] {                                                                                       \
		T cua__sized = {};                                                                 \
		cua__sized.struct_size = sizeof(T);                                                \
		return cua__sized;                                                                 \
	}()
#else
#define CUA__SIZED_INIT(T)                                                                         \
	{                                                                                          \
		.struct_size = sizeof(T)                                                           \
	}
#endif

/* A device, as `cua_device_query` describes it. */
struct cua_device_info {
	size_t struct_size; /* sizeof(struct cua_device_info), set by the caller */
	char name[128];
	int compute_major, compute_minor; /* 0, 0 for the CPU */
	uint32_t processors;              /* multiprocessors, or logical CPUs */
	uint64_t memory_bytes;
	/* of a CUDA device; 0 and "" for the CPU, and where the system does not say */
	int driver_cuda;     /* the newest CUDA that the driver runs, 12040 for CUDA 12.4 */
	int runtime_cuda;    /* the CUDA runtime that the library uses, in the same form */
	char driver[32];     /* the driver's own version, "550.54.15" */
	char pci_bus_id[16]; /* "0000:3b:00.0" */
	char uuid[40];       /* "8-4-4-4-12" hexadecimal digits, without the "GPU-" of nvidia-smi */
};
#define CUA_DEVICE_INFO_INIT CUA__SIZED_INIT(struct cua_device_info)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is loaded, as CUA_VERSION_STRING was when it was built. */
CUA_API const char *cua_version(void);
/* The GPU architectures built in ("75 80 90 +PTX90"), or "" for a build without CUDA. A static string. */
CUA_API const char *cua_cuda_architectures(void);

/* The number of usable devices of a backend: 1 for the CPU; 0 where there is no driver. Errors: NULL, VALUE. */
CUA_API enum cua_status cua_device_count(enum cua_backend backend, int *count);
/*
 * Describes a device; info begins as CUA_DEVICE_INFO_INIT. Errors: NULL, VALUE (also struct_size), NO_DEVICE,
 * NOT_BUILT.
 */
CUA_API enum cua_status cua_device_query(enum cua_backend backend, int device,
					 struct cua_device_info *info);
/*
 * Why this device of a backend cannot be used, as text without a full stop ("no CUDA driver is installed"); ""
 * where it can. Device 0 answers for a backend without devices. A static string, never NULL.
 */
CUA_API const char *cua_device_problem(enum cua_backend backend, int device);

/*
 * Creates a context. device: a CUDA device number, 0 for the CPU. The CUDA backend starts on the legacy
 * default stream.
 * CUA_ERROR_NO_DEVICE: no such device, no driver, or no code for its architecture in this build;
 * CUA_ERROR_NOT_BUILT: CUDA in a build without CUDA. With either, AUTO takes the CPU. CUA_ERROR_VALUE: unknown
 * backend, or a negative device. CUA_ERROR_CAPTURE: a stream that waits for the legacy default stream is being
 * captured.
 */
CUA_API enum cua_status cua_context_create(enum cua_backend backend, int device,
					   struct cua_context **ctx);
/*
 * Waits for the stream and frees the context; NULL is allowed. Objects made with it must be gone, and
 * graphs captured from its calls must not be launched any more: they use its workspace.
 */
CUA_API void cua_context_destroy(struct cua_context *ctx);

/* CPU or CUDA, never AUTO; AUTO for NULL. */
CUA_API enum cua_backend cua_context_backend(const struct cua_context *ctx);
/* The number of its device, 0 on the CPU; -1 for NULL. */
CUA_API int cua_context_device(const struct cua_context *ctx);

/*
 * The stream of all later calls; NULL is the legacy default stream. Work queued in the former stream
 * still uses the workspace: synchronize first, or order the streams. CUA_ERROR_NO_DEVICE on a CPU context.
 */
CUA_API enum cua_status cua_context_set_stream(struct cua_context *ctx, struct CUstream_st *stream);
/* NULL also on a CPU context and for NULL. */
CUA_API struct CUstream_st *cua_context_stream(const struct cua_context *ctx);

/*
 * Threads of the CPU backend, 1 to 1024; 0 chooses one for each logical CPU that the calling thread may run
 * on, which is also the default. They take none of the program's signals. Errors: NULL, VALUE (more than 1024).
 */
CUA_API enum cua_status cua_context_set_threads(struct cua_context *ctx, unsigned threads);
/* 0 for NULL. */
CUA_API unsigned cua_context_threads(const struct cua_context *ctx);

/*
 * Makes the workspace at least so large now, so that a later call need not grow it: then it neither allocates
 * nor waits, and may be captured.
 * The sizes are told by the cua_<operation>_workspace calls; a context starts with 1 MiB.
 * Errors: NULL, SIZE, NO_MEMORY, WORKSPACE (in a capture it cannot grow).
 */
CUA_API enum cua_status cua_context_reserve(struct cua_context *ctx, size_t bytes);

/* Waits until all work queued in the context's stream is finished, and reports how it ended. Errors: NULL, CAPTURE. */
CUA_API enum cua_status cua_context_synchronize(struct cua_context *ctx);

/* The cudaError_t behind the last CUA_ERROR_CUDA or CUA_ERROR_NO_DEVICE of this context; 0 for none. */
CUA_API int cua_context_cuda_error(const struct cua_context *ctx);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_CONTEXT_H */
