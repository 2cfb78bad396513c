/* SPDX-License-Identifier: MIT */
/*
 * What a backend is: a table of functions a module. The CPU's table is always there; the CUDA table
 * (cuda/runtime.cu) only in a build with CUDA, and context.c is the one place that knows.
 *
 * The functions behind these tables trust their arguments: lib/<module>.c has checked them, has made
 * the context's device current, and has put results where the backend can write them.
 */
#ifndef CUATOMIC_BACKEND_BACKEND_H
#define CUATOMIC_BACKEND_BACKEND_H

#include <cuatomic.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where memory lies, as seen by one context's backend. */
enum cua__place {
	CUA__PLACE_BACKEND, /* the backend can read and write it */
	CUA__PLACE_HOST,    /* ordinary host memory that the device cannot reach */
	CUA__PLACE_OTHER    /* memory of another device, or one that this backend cannot reach */
};

struct cua__location {
	enum cua__place place;
	enum cua_backend owner; /* whose memory it is: CUDA for device and managed memory */
	int device;             /* the owner's device number; -1 for the host */
	void *base; /* start and size of the allocation, by extent; NULL and 0 where unknown */
	size_t size;
	const void *address; /* the same memory as the backend addresses it */
	int host_access;     /* the host can read and write it */
	int pageable;        /* CUDA: ordinary host memory, even where the device can reach it */
};

struct cua__runtime {
	enum cua_status (*device_count)(int *count);
	enum cua_status (*device_query)(int device, struct cua_device_info *info);
	/* "", or why the device cannot be used. */
	const char *(*device_problem)(int device);

	/* Fills the backend's part of a new context; close undoes it. */
	enum cua_status (*open)(struct cua_context *ctx, int device);
	void (*close)(struct cua_context *ctx);

	/* Makes the context's device current for this thread; leave restores what enter returned. */
	int (*enter)(struct cua_context *ctx);
	void (*leave)(struct cua_context *ctx, int previous);

	/* CUA_OK, or CUA_ERROR_CAPTURE while the stream is being captured. */
	enum cua_status (*may_wait)(struct cua_context *ctx);
	enum cua_status (*synchronize)(struct cua_context *ctx);
	enum cua_status (*locate)(struct cua_context *ctx, const void *p,
				  struct cua__location *where);
	/* Adds base and size to what locate found out; apart, because every call locates its arrays. */
	void (*extent)(const void *p, struct cua__location *where);

	/*
	 * Synchronous allocation, 256-byte aligned; allocate_system's memory is for host and device at the same
	 * time, or CUA_ERROR_UNSUPPORTED. release takes what either gave, or NULL.
	 */
	enum cua_status (*allocate)(struct cua_context *ctx, size_t bytes, void **p);
	enum cua_status (*allocate_system)(struct cua_context *ctx, size_t bytes, void **p);
	enum cua_status (*release)(struct cua_context *ctx, void *p);
	/* Host memory that the backend reads and writes at the same address, also while kernels run. */
	enum cua_status (*allocate_mapped)(struct cua_context *ctx, size_t bytes, void **p);
	enum cua_status (*release_mapped)(struct cua_context *ctx, void *p);
	/* In stream order; any combination of host and backend memory. */
	enum cua_status (*copy)(struct cua_context *ctx, void *dst, const void *src, size_t bytes);
	enum cua_status (*set_bytes)(struct cua_context *ctx, void *dst, int byte, size_t bytes);
	/* Fills the table of lib/atomic_path.h, which is zeros, in stream order. */
	enum cua_status (*atomic_paths)(struct cua_context *ctx, void *cells);
	/* As allocate, and all bytes are 0. Pages that nobody has written to need take no memory. */
	enum cua_status (*allocate_zeros)(struct cua_context *ctx, size_t bytes, void **p);
	/* NULL, or: of memory of allocate_zeros, not yet written, few bytes far apart will be. */
	void (*expect_few)(struct cua_context *ctx, void *p, size_t bytes);
};

struct cua__memory_ops;
struct cua__append_ops;
struct cua__filter_ops;
struct cua__reduce_ops;
struct cua__exact_ops;
struct cua__histogram_ops;
struct cua__chained_ops;
struct cua__hashmap_ops;
struct cua__multimap_ops;
struct cua__segment_ops;

struct cua__backend {
	enum cua_backend kind;
	const struct cua__runtime *runtime;
	const struct cua__memory_ops *memory;
	const struct cua__append_ops *append;
	const struct cua__filter_ops *filter;
	const struct cua__reduce_ops *reduce;
	const struct cua__exact_ops *exact;
	const struct cua__histogram_ops *histogram;
	const struct cua__chained_ops *chained;
	const struct cua__hashmap_ops *hashmap;
	const struct cua__segment_ops *segment;
	const struct cua__multimap_ops *multimap;
};

extern const struct cua__backend cua__cpu_backend;
#if CUA_HAVE_CUDA
extern const struct cua__backend cua__cuda_backend;
#endif

/* Each module's tables; the structs are in lib/<module>.h. */
extern const struct cua__memory_ops cua__cpu_memory, cua__cuda_memory;
extern const struct cua__append_ops cua__cpu_append, cua__cuda_append;
extern const struct cua__filter_ops cua__cpu_filter, cua__cuda_filter;
extern const struct cua__reduce_ops cua__cpu_reduce, cua__cuda_reduce;
extern const struct cua__exact_ops cua__cpu_exact, cua__cuda_exact;
extern const struct cua__histogram_ops cua__cpu_histogram, cua__cuda_histogram;
extern const struct cua__chained_ops cua__cpu_chained, cua__cuda_chained;
extern const struct cua__hashmap_ops cua__cpu_hashmap, cua__cuda_hashmap;
extern const struct cua__multimap_ops cua__cpu_multimap, cua__cuda_multimap;
extern const struct cua__segment_ops cua__cpu_segment, cua__cuda_segment;

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_BACKEND_H */
