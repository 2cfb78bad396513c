/* SPDX-License-Identifier: MIT */
/*
 * A backend is a table of functions for each module, and a runtime. The CPU's tables are always
 * built. The CUDA tables exist only in a build with CUDA. A context knows its runtime, and each
 * module names its own table by CUA__OPS, so that a program that links the static library gets
 * the device code only of the modules that it calls.
 *
 * The functions behind these tables trust their arguments. lib/<module>.c has checked them, has
 * made the context's device current, and has chosen result memory that the backend can write.
 */
#ifndef CUATOMIC_BACKEND_BACKEND_H
#define CUATOMIC_BACKEND_BACKEND_H

#include <cuatomic.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of memory behind a pointer, as seen by a context's backend. */
enum cua__memory_kind {
	CUA__MEMORY_KIND_BACKEND, /* the backend can read and write it */
	/* host memory that the device cannot access; ordinary memory that it can is of BACKEND */
	CUA__MEMORY_KIND_HOST,
	/* memory of another device, or other memory that this backend cannot access */
	CUA__MEMORY_KIND_OTHER
};

struct cua__location {
	enum cua__memory_kind memory_kind;
	enum cua_backend owner; /* the owner of the memory: CUDA for device and managed memory */
	int device;             /* the owner's device number; -1 for the host */
	void *base; /* start and size of the allocation, set by extent; NULL and 0 if unknown */
	size_t size;
	const void *address; /* the address by which the backend accesses the memory */
	int host_access;     /* the host can read and write it */
	/* CUDA: ordinary host memory, of either kind: results there make a call wait */
	int pageable;
};

struct cua__runtime {
	enum cua_backend kind;
	enum cua_status (*device_count)(int *count);
	enum cua_status (*device_query)(int device, struct cua_device_info *info);
	enum cua_status (*device_peer_query)(int device, int peer, struct cua_peer_info *info);
	/* "", or the reason why the device cannot be used. */
	const char *(*device_problem)(int device);

	/* Initializes the backend's members of a new context; close undoes it. */
	enum cua_status (*open)(struct cua_context *ctx, int device);
	void (*close)(struct cua_context *ctx);

	/*
	 * Makes the context's device current for this thread; leave restores the device that enter
	 * returned.
	 */
	int (*enter)(struct cua_context *ctx);
	void (*leave)(struct cua_context *ctx, int previous);

	/* CUA_OK, or CUA_ERROR_CAPTURE while the stream is being captured. */
	enum cua_status (*may_wait)(struct cua_context *ctx);
	enum cua_status (*synchronize)(struct cua_context *ctx);
	enum cua_status (*locate)(struct cua_context *ctx, const void *p,
				  struct cua__location *where);
	/*
	 * Adds base and size to the result of locate. It is separate because every call locates its
	 * arrays.
	 */
	void (*extent)(const void *p, struct cua__location *where);

	/*
	 * Synchronous allocation, 256-byte aligned. Memory of allocate_system is for host and
	 * device at the same time; CUA_ERROR_UNSUPPORTED if that is impossible. release frees
	 * memory of either, or NULL.
	 */
	enum cua_status (*allocate)(struct cua_context *ctx, size_t bytes, void **p);
	enum cua_status (*allocate_system)(struct cua_context *ctx, size_t bytes, void **p);
	enum cua_status (*release)(struct cua_context *ctx, void *p);
	/*
	 * Host memory that the backend reads and writes at the same address, also while kernels
	 * run.
	 */
	enum cua_status (*allocate_mapped)(struct cua_context *ctx, size_t bytes, void **p);
	enum cua_status (*release_mapped)(struct cua_context *ctx, void *p);
	/* In stream order; any combination of host and backend memory. */
	enum cua_status (*copy)(struct cua_context *ctx, void *dst, const void *src, size_t bytes);
	enum cua_status (*set_bytes)(struct cua_context *ctx, void *dst, int byte, size_t bytes);
	/* Bytes of memory that are free, and bytes in total. */
	enum cua_status (*memory_info)(struct cua_context *ctx, uint64_t *free_bytes,
				       uint64_t *total_bytes);
	/* As allocate, with all bytes 0. Unwritten pages need not occupy memory. */
	enum cua_status (*allocate_zeros)(struct cua_context *ctx, size_t bytes, void **p);
	/*
	 * Hint, may be NULL: of unwritten memory of allocate_zeros, only a few scattered bytes will
	 * be written.
	 */
	void (*expect_few)(struct cua_context *ctx, void *p, size_t bytes);
	/* Sets *done to 1 if all work queued in the stream has finished, else to 0. Does not wait. */
	enum cua_status (*query)(struct cua_context *ctx, int *done);
};

extern const struct cua__runtime cua__cpu_runtime, cua__cuda_runtime;

/* The module's table for the backend of a context. */
#if CUA_HAVE_CUDA
#define CUA__OPS(ctx, module)                                                                      \
	((ctx)->runtime->kind == CUA_BACKEND_CUDA ? &cua__cuda_##module : &cua__cpu_##module)
#else
#define CUA__OPS(ctx, module) ((void)(ctx), &cua__cpu_##module)
#endif

struct cua__memory_ops;
struct cua__append_ops;
struct cua__filter_ops;
struct cua__reduce_ops;
struct cua__exact_ops;
struct cua__histogram_ops;
struct cua__chained_ops;
struct cua__hashmap_ops;
struct cua__hashmap_whole_ops;
struct cua__multimap_ops;
struct cua__segment_ops;
struct cua__scatter_ops;
struct cua__cells_ops;
struct cua__group_ops;
struct cua__group_by_ops;
struct cua__join_ops;
struct cua__shard_ops;

/*
 * The modules' tables. lib/backend/<module>_backend.h defines the structs; struct cua__exact_ops is
 * in lib/kernels/exact_windows.h.
 */
extern const struct cua__memory_ops cua__cpu_memory, cua__cuda_memory;
extern const struct cua__append_ops cua__cpu_append, cua__cuda_append;
extern const struct cua__filter_ops cua__cpu_filter, cua__cuda_filter;
extern const struct cua__reduce_ops cua__cpu_reduce, cua__cuda_reduce;
extern const struct cua__exact_ops cua__cpu_exact, cua__cuda_exact;
extern const struct cua__histogram_ops cua__cpu_histogram, cua__cuda_histogram;
extern const struct cua__chained_ops cua__cpu_chained, cua__cuda_chained;
extern const struct cua__hashmap_ops cua__cpu_hashmap, cua__cuda_hashmap;
extern const struct cua__hashmap_whole_ops cua__cpu_hashmap_whole, cua__cuda_hashmap_whole;
extern const struct cua__multimap_ops cua__cpu_multimap, cua__cuda_multimap;
extern const struct cua__segment_ops cua__cpu_segment, cua__cuda_segment;
extern const struct cua__scatter_ops cua__cpu_scatter, cua__cuda_scatter;
extern const struct cua__cells_ops cua__cpu_cells, cua__cuda_cells;
extern const struct cua__group_ops cua__cpu_group, cua__cuda_group;
extern const struct cua__group_by_ops cua__cpu_group_by, cua__cuda_group_by;
extern const struct cua__join_ops cua__cpu_join, cua__cuda_join;
extern const struct cua__shard_ops cua__cpu_shard, cua__cuda_shard;

/* Fills the zeroed table of lib/kernels/atomic_paths.h, in stream order. */
typedef enum cua_status cua__atomic_paths_fn(struct cua_context *ctx, void *entries);
cua__atomic_paths_fn cua__cpu_atomic_paths, cua__cuda_atomic_paths;

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_BACKEND_H */
