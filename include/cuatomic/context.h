/* SPDX-License-Identifier: MIT */
/*
 * The context of host calls: device, stream, number of threads, and workspace.
 *
 * Rules for every host call of cuatomic:
 *
 * - Only one thread may use a context at a time. Different threads may use different contexts
 *   concurrently.
 * - Array arguments are memory that the backend can access. On the CPU backend that is all memory
 *   that the host can address. On the CUDA backend it is device, managed and pinned memory, and
 *   ordinary host memory if the system is coherent. Other memory is refused with
 *   CUA_ERROR_MEMORY_KIND.
 * - If the result pointer is memory that the device can write, the call is ordered in the stream,
 *   does not wait, and may be captured in a CUDA graph. If it is ordinary host memory, the call
 *   waits for the stream, and a capture refuses it with CUA_ERROR_CAPTURE. Ordinary means neither
 *   pinned nor managed, even if the device could access it. On the CPU backend every call has
 *   finished when it returns.
 * - The comment of each call lists its errors without the prefix CUA_ERROR_. An error about the
 *   arguments means that nothing was changed. On the CUDA backend every call may also return
 *   CUA_ERROR_CUDA: CUDA failed, or earlier work of the stream did.
 * - Outcomes that depend on the data (full, overflow) are kept by the object. A separate call reads
 *   them.
 * - A struct that begins with struct_size records the version that the caller was compiled with.
 *   The caller sets it to sizeof the struct, or uses the struct's _INIT. A size that no release
 *   gave the struct is refused with CUA_ERROR_VALUE, even a size between two versions.
 * - No host call is a cancellation point. If pthread_cancel names a thread inside a call, the
 *   thread first finishes the call, including the function that the call runs for the caller.
 * - n = 0 elements are valid in every call over arrays; the arrays may then be NULL.
 * - Work in the stream uses the context's workspace. Use a separate context for each stream that
 *   runs at the same time. Do not run two launches of graphs captured from the same context at the
 *   same time.
 *
 * Scope: the device of the context, and the calling thread.
 * Memory order: a call is ordered after earlier work in the context's stream, and before later work.
 *   After a call that waits for the stream, the calling thread sees all that this work wrote.
 * Progress: a call whose result is ordinary host memory waits for the stream. On the CPU backend a
 *   call waits for the context's threads.
 */
#ifndef CUATOMIC_CONTEXT_H
#define CUATOMIC_CONTEXT_H

#include <cuatomic/detail/standard.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* The type that cudaStream_t points to; declared here so that no CUDA header is needed. */
struct CUstream_st;

struct cua_context;

enum cua_backend {
	CUA_BACKEND_AUTO = 0, /* CUDA if there is a usable device, else the CPU */
	CUA_BACKEND_CPU = 1,
	CUA_BACKEND_CUDA = 2
};

/*
 * The initializer of a struct T that begins with struct_size: its size, and 0 in every other
 * member, including members of a later version.
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

/* A device as cua_device_query describes it. */
struct cua_device_info {
	size_t struct_size; /* sizeof(struct cua_device_info), set by the caller */
	char name[128];
	int compute_major, compute_minor; /* 0, 0 for the CPU */
	uint32_t processors;              /* multiprocessors, or logical CPUs */
	uint64_t memory_bytes;
	/* of a CUDA device; 0 and "" for the CPU, and if the system does not report them */
	/* the newest CUDA version that the driver supports, 12040 for CUDA 12.4 */
	int driver_cuda;
	int runtime_cuda;    /* the CUDA runtime of the library, in the same form */
	char driver[32];     /* the driver's own version, "550.54.15" */
	char pci_bus_id[16]; /* "0000:3b:00.0" */
	char uuid[40];       /* "8-4-4-4-12" hexadecimal digits, without the "GPU-" of nvidia-smi */
	/* the last cache before memory: L2 of a GPU; 0 if the system does not report it */
	uint64_t cache_bytes;
	/* of a CUDA device; 0 for the CPU */
	uint32_t clock_mhz, memory_clock_mhz; /* maximum clocks of multiprocessors and of memory */
	uint32_t memory_bus_bits;
	uint32_t block_shared_bytes; /* most shared memory of a block, if the kernel asks for it */
	uint32_t processor_shared_bytes; /* shared memory of a multiprocessor */
	/* 0 or 1 */
	int ecc;                       /* of memory */
	int managed_memory;            /* cudaMallocManaged works */
	int concurrent_managed_access; /* host and device may access it at the same time */
	int host_native_atomics;       /* atomics of host and device are mutually atomic */
	int cooperative_launch;        /* kernels that synchronize the whole grid */
	int memory_pools;              /* cudaMallocAsync works */
	int reserved;
};
#define CUA_DEVICE_INFO_INIT CUA__SIZED_INIT(struct cua_device_info)

/* The access of a device to the memory of a peer, as cua_device_peer_query describes it. */
struct cua_peer_info {
	size_t struct_size; /* sizeof(struct cua_peer_info), set by the caller */
	/* 0 or 1 */
	int access;         /* kernels of the device can access memory of the peer */
	int native_atomics; /* and their atomics there are atomic with the peer's own */
	int array_access;   /* and they can access its CUDA arrays */
	/* of the link, compared with the links to other peers of this machine: 0 is the fastest */
	int performance_rank;
};
#define CUA_PEER_INFO_INIT CUA__SIZED_INIT(struct cua_peer_info)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the loaded library: the CUA_VERSION_STRING that it was built with. */
CUA_API const char *cua_version(void);
/*
 * The GPU architectures built in ("75 80 90 +PTX90"), or "" for a build without CUDA. A static
 * string.
 */
CUA_API const char *cua_cuda_architectures(void);

/*
 * The number of usable devices of a backend: 1 for the CPU, 0 without a driver. Errors: NULL,
 * VALUE.
 */
CUA_API enum cua_status cua_device_count(enum cua_backend backend, int *count);
/*
 * Describes a device; initialize info with CUA_DEVICE_INFO_INIT. Errors: NULL, VALUE (also
 * struct_size), NO_DEVICE, NOT_BUILT.
 */
CUA_API enum cua_status cua_device_query(enum cua_backend backend, int device,
					 struct cua_device_info *info);
/*
 * Describes the access of a device to the memory of another device of the same backend; initialize
 * info with CUA_PEER_INFO_INIT. A device is its own peer with access, atomics and rank 0. Enables no
 * access. Errors: NULL, VALUE (also struct_size), NO_DEVICE (either device), NOT_BUILT.
 */
CUA_API enum cua_status cua_device_peer_query(enum cua_backend backend, int device, int peer,
					      struct cua_peer_info *info);
/*
 * The reason why a backend cannot use this device, as text without a full stop ("no CUDA driver is
 * installed"); "" if it can. Device 0 also gives the reason for a backend without devices. A static
 * string, never NULL.
 */
CUA_API const char *cua_device_problem(enum cua_backend backend, int device);

/*
 * Creates a context. device: a CUDA device number; 0 for the CPU. The CUDA backend starts on the
 * legacy default stream.
 *
 * Errors: NO_DEVICE (no such device, no driver, or no code for its architecture in this build);
 * NOT_BUILT (CUDA in a build without CUDA). AUTO uses the CPU instead of returning these two. VALUE
 * (unknown backend, or a negative device); CAPTURE (a stream that waits for the legacy default
 * stream is being captured); NULL, NO_MEMORY, CUDA.
 */
CUA_API enum cua_status cua_context_create(enum cua_backend backend, int device,
					   struct cua_context **ctx);
/*
 * Waits for the stream and frees the context; NULL is allowed. Objects made with it must have been
 * destroyed. Graphs captured from its calls must not be launched afterwards, because they use its
 * workspace.
 */
CUA_API void cua_context_destroy(struct cua_context *ctx);

/* CPU or CUDA, never AUTO; AUTO for NULL. */
CUA_API enum cua_backend cua_context_backend(const struct cua_context *ctx);
/* The device number, 0 on the CPU; -1 for NULL. */
CUA_API int cua_context_device(const struct cua_context *ctx);

/*
 * Sets the stream of all later calls; NULL is the legacy default stream. Work queued in the former
 * stream still uses the workspace: synchronize first, or order the streams. CUA_ERROR_NO_DEVICE on
 * a CPU context.
 */
CUA_API enum cua_status cua_context_set_stream(struct cua_context *ctx, struct CUstream_st *stream);
/* The stream; NULL on a CPU context and for NULL. */
CUA_API struct CUstream_st *cua_context_stream(const struct cua_context *ctx);

/*
 * Sets the number of threads of the CPU backend, 1 to 1024. 0, the default, means a thread for each
 * logical CPU on which the calling thread may run. The threads block the program's signals. Errors:
 * NULL, VALUE (more than 1024).
 */
CUA_API enum cua_status cua_context_set_threads(struct cua_context *ctx, unsigned threads);
/* The number of threads; 0 for NULL. */
CUA_API unsigned cua_context_threads(const struct cua_context *ctx);

/*
 * Enlarges the workspace to at least this size, so that later calls need not grow it. Then they
 * neither allocate nor wait, and may be captured. The cua_<operation>_workspace calls return the
 * sizes; a context starts with 1 MiB.
 * Errors: NULL, SIZE, NO_MEMORY, WORKSPACE (in a capture it cannot grow).
 */
CUA_API enum cua_status cua_context_reserve(struct cua_context *ctx, size_t bytes);

/*
 * Waits until all work queued in the context's stream has finished, and returns its status. Errors:
 * NULL, CAPTURE.
 */
CUA_API enum cua_status cua_context_synchronize(struct cua_context *ctx);

/*
 * The cudaError_t behind the last CUA_ERROR_CUDA or CUA_ERROR_NO_DEVICE of this context; 0 if there
 * was none.
 */
CUA_API int cua_context_cuda_error(const struct cua_context *ctx);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_CONTEXT_H */
