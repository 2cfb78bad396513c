/* SPDX-License-Identifier: MIT */
/* The append buffer, and its backend interface. */
#ifndef CUATOMIC_BACKEND_APPEND_BACKEND_H
#define CUATOMIC_BACKEND_APPEND_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cua_append {
	struct cua_context *ctx;
	struct cua_append_view view;
};

struct cua__append_ops {
	/* *size = min(demand, capacity) */
	enum cua_status (*size)(struct cua_context *ctx, const struct cua_append_view *view,
				uint64_t *size);
};

/* Whether a range shares a byte with the buffer's items or cursor. */
int cua__append_overlap(const struct cua_append_view *view, const void *p, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_APPEND_BACKEND_H */
