/* SPDX-License-Identifier: MIT */
/* The backend interface of fills and of pitched arrays. */
#ifndef CUATOMIC_BACKEND_MEMORY_BACKEND_H
#define CUATOMIC_BACKEND_MEMORY_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A pattern of 1 to 16 bytes, repeated to 16, so that it is the same at every address aligned to
 * its size.
 */
struct cua__pattern {
	uint64_t words[2];
};

struct cua__memory_ops {
	/* bytes is a multiple of the pattern's size; dst is aligned to it. */
	enum cua_status (*fill)(struct cua_context *ctx, void *dst, size_t bytes,
				const struct cua__pattern *pattern);
	/* Fills the first row_bytes of each row; base and pitch are multiples of 256. */
	enum cua_status (*fill_rows)(struct cua_context *ctx, void *base, size_t pitch,
				     size_t row_bytes, size_t rows,
				     const struct cua__pattern *pattern);
	/* In stream order; any combination of host and backend memory. */
	enum cua_status (*copy_rows)(struct cua_context *ctx, void *dst, size_t dst_pitch,
				     const void *src, size_t src_pitch, size_t row_bytes,
				     size_t rows);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_MEMORY_BACKEND_H */
