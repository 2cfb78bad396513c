/* SPDX-License-Identifier: MIT */
/*
 * Memory of a context's backend: allocation, copies, fills with a pattern, pitched 2-D and 3-D
 * arrays, pointer queries, and copies to and from static __device__ variables. With these a plain C
 * program needs no CUDA header.
 *
 * Source: the memory calls of Sanders and Kandrot, CUDA by Example, and the pitched allocations of
 * the CUDA programming guide; here with the same pitch rule for every backend.
 *
 * Synchronization of two calls of a context on the same memory. X: the caller must order the calls.
 * -: the stream of the context orders the calls.
 *
 *              free  copy  fill  work in another stream
 *     free      X     -     -              X
 *     copy      -     -     -              X
 *     fill      -     -     -              X
 *
 * Scope: the device and the host. Inside a kernel only cua_pitched_at and cua_is_global are useful;
 *   both are pure functions of their arguments.
 * Memory order: copies and fills are ordered in the context's stream. A copy from or to ordinary
 *   host memory (neither pinned nor managed) returns when it is done; so does every call on the CPU
 *   backend.
 * Progress: the inline functions never wait.
 */
#ifndef CUATOMIC_MEMORY_H
#define CUATOMIC_MEMORY_H

#include <cuatomic/context.h>
#include <cuatomic/detail/standard.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>

/* The layout version of struct cua_pitched; host calls refuse other versions. */
#define CUA_PITCHED_LAYOUT 1u

/* Rows start at multiples of this. */
#define CUA_PITCH_ALIGNMENT 256u

/*
 * A 2-D or 3-D array whose rows are `pitch` bytes apart; a slice is `height` rows. cua_alloc_2d or
 * cua_alloc_3d makes it. It is passed to kernels by value. All functions only read it.
 */
struct cua_pitched {
	void *base;
	size_t pitch;                /* bytes, a multiple of CUA_PITCH_ALIGNMENT */
	size_t width, height, depth; /* elements of a row, rows of a slice, slices */
	size_t element_size;
	uint32_t layout;
	uint32_t reserved; /* 0 */
};
CUA_STATIC_ASSERT(sizeof(struct cua_pitched) == 6 * sizeof(size_t) + 8,
		  "the array's struct is ABI");

/* A pointer as cua_pointer_query describes it. */
struct cua_pointer_info {
	size_t struct_size;       /* sizeof(struct cua_pointer_info), set by the caller */
	enum cua_backend backend; /* CUDA: device or managed memory; CPU: other memory */
	int device;               /* the device of device and managed memory; else -1 */
	void *base;               /* start and size of the allocation; NULL and 0 if unknown */
	size_t size;
	int accessible;      /* 1: the context's backend can read and write it; else 0 */
	int host_accessible; /* 1: the host can read and write it; else 0 */
};
#define CUA_POINTER_INFO_INIT CUA__SIZED_INIT(struct cua_pointer_info)

/*
 * The address of element (x, y, z), which must exist; y is 0 in a single row, and z is 0 in a
 * single slice.
 */
CUA_FN void *cua_pitched_at(const struct cua_pitched *a, size_t x, size_t y, size_t z)
{
	return (char *)a->base + (z * a->height + y) * a->pitch + x * a->element_size;
}

/*
 * In a kernel: 1 if p is an address in global memory (also static and managed memory), else 0. On
 * the host, which has no such spaces, always 0.
 */
CUA_FN int cua_is_global(const void *p)
{
	return cua_port_is_global(p);
}

/*
 * For code compiled as CUDA: the device address of a __device__ variable, for cua_symbol_write and
 * cua_symbol_read. The macro calls the CUDA runtime that the program itself is linked with, on the
 * current device. No other runtime knows the program's symbols. The value is CUA_OK or
 * CUA_ERROR_CUDA.
 *
 *     static __device__ int table[256];
 *     void *address;
 *     status = CUA_SYMBOL_ADDRESS(table, &address);
 */
#if defined(__CUDACC__)
#define CUA_SYMBOL_ADDRESS(symbol, address)                                                        \
	(cudaGetSymbolAddress((address), (symbol)) == cudaSuccess                                  \
		 ? CUA_OK                                                                          \
		 : ((void)cudaGetLastError(), CUA_ERROR_CUDA))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Host: allocates backend memory for n elements of `size` bytes, 256-byte aligned, contents
 * undefined. If n or size is 0, *p may only be passed to cua_free. cua_free waits for work that may
 * use the memory; NULL is allowed.
 * Errors: NULL, SIZE (n * size overflows), NO_MEMORY, CAPTURE. cua_free: CAPTURE, MEMORY_KIND (not
 * an allocation of this backend and device; nothing is done).
 */
CUA_API enum cua_status cua_alloc(struct cua_context *ctx, size_t n, size_t size, void **p);
CUA_API enum cua_status cua_free(struct cua_context *ctx, void *p);

/*
 * As cua_alloc, with all bytes 0: for arrays of free locks, counters and similar objects. cua_free
 * frees it. Errors: as cua_alloc.
 */
CUA_API enum cua_status cua_alloc_zero(struct cua_context *ctx, size_t n, size_t size, void **p);

/*
 * As cua_alloc_zero, in memory that host threads and kernels on the context's device may use at the
 * same time, through atomics and locks of CUA_SCOPE_SYSTEM. On the CPU backend all memory
 * qualifies. On CUDA the device's atomics must be atomic for the host too, and host and device must
 * be able to access managed memory concurrently. On other hardware, such as most GPUs on PCI
 * Express, nothing is allocated and the call returns UNSUPPORTED. cua_free frees it.
 * Errors: as cua_alloc, and UNSUPPORTED.
 */
CUA_API enum cua_status cua_alloc_system(struct cua_context *ctx, size_t n, size_t size, void **p);

/*
 * Copies between any memory of the backend and of the host. If either side is ordinary host memory
 * the call waits for the copy; otherwise the copy is ordered in the stream.
 * Errors: NULL, SIZE, OVERLAP, MEMORY_KIND (another device's memory; device memory on the CPU
 * backend), CAPTURE (ordinary host memory in a capture).
 */
CUA_API enum cua_status cua_copy(struct cua_context *ctx, void *dst, const void *src, size_t bytes);

/*
 * Writes `count` copies of a pattern of 1, 2, 4, 8 or 16 bytes. dst is aligned to the pattern's
 * size. The pattern is host memory, and the call reads it before it returns, also in a capture: a
 * graph keeps its value.
 * Errors: NULL, VALUE (another pattern size), SIZE, ALIGNMENT, MEMORY_KIND (dst, or a pattern that
 * the host cannot read).
 */
CUA_API enum cua_status cua_fill(struct cua_context *ctx, void *dst, size_t count,
				 size_t pattern_bytes, const void *pattern);

/*
 * Pitched arrays of width x height (x depth) elements of any size; contents undefined.
 * cua_free_pitched clears the struct; NULL, and a struct whose base is NULL, are allowed.
 * Errors: NULL, VALUE (a dimension or the element size is 0), SIZE, NO_MEMORY, CAPTURE.
 * cua_free_pitched: LAYOUT, and the errors of cua_free.
 */
CUA_API enum cua_status cua_alloc_2d(struct cua_context *ctx, size_t width, size_t height,
				     size_t element_size, struct cua_pitched *array);
CUA_API enum cua_status cua_alloc_3d(struct cua_context *ctx, size_t width, size_t height,
				     size_t depth, size_t element_size, struct cua_pitched *array);
CUA_API enum cua_status cua_free_pitched(struct cua_context *ctx, struct cua_pitched *array);

/*
 * Fills the elements, but not the padding, with a pattern, as cua_fill does. The pattern's size
 * must divide the element's.
 * Errors: NULL, LAYOUT, VALUE (the pattern's size, or a struct that no allocation made), SIZE,
 * ALIGNMENT, MEMORY_KIND.
 */
CUA_API enum cua_status cua_fill_pitched(struct cua_context *ctx, const struct cua_pitched *array,
					 size_t pattern_bytes, const void *pattern);

/*
 * Copies between a pitched array and packed rows: width * height * depth elements without padding,
 * x fastest, then y, then z. Waits as cua_copy does.
 * Errors: as cua_copy, and LAYOUT, VALUE and ALIGNMENT for the struct.
 */
CUA_API enum cua_status cua_copy_to_pitched(struct cua_context *ctx, const struct cua_pitched *dst,
					    const void *src);
CUA_API enum cua_status cua_copy_from_pitched(struct cua_context *ctx, void *dst,
					      const struct cua_pitched *src);

/*
 * Describes the memory that p points to. Every address has an answer: memory that no backend knows
 * belongs to the host.
 * Errors: NULL, VALUE (struct_size).
 */
CUA_API enum cua_status cua_pointer_query(struct cua_context *ctx, const void *p,
					  struct cua_pointer_info *info);

/*
 * Copies to and from a static variable by its address: on the CUDA backend the device address of a
 * __device__ variable (CUA_SYMBOL_ADDRESS), on the CPU backend the address of any variable. The
 * other side is any memory that cua_copy accepts, and the call waits as cua_copy does.
 * Errors: as cua_copy, and MEMORY_KIND (on the CUDA backend, not device memory), SIZE (outside the
 * allocation, if its size is known; several variables may share an allocation).
 */
CUA_API enum cua_status cua_symbol_write(struct cua_context *ctx, void *symbol_address,
					 size_t offset, const void *src, size_t bytes);
CUA_API enum cua_status cua_symbol_read(struct cua_context *ctx, void *dst,
					const void *symbol_address, size_t offset, size_t bytes);

/*
 * The backend's free and total memory: of the device, or of the machine. On the CPU backend, free
 * is the memory that new programs could get without swapping. It is a hint, because other programs
 * allocate too. Errors: NULL, SYSTEM (the system does not report it).
 */
CUA_API enum cua_status cua_memory_info(struct cua_context *ctx, uint64_t *free_bytes,
					uint64_t *total_bytes);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_MEMORY_H */
