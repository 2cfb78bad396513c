/* SPDX-License-Identifier: MIT */
/* What a backend does for the append buffer and its filter. */
#ifndef CUATOMIC_LIB_APPEND_H
#define CUATOMIC_LIB_APPEND_H

#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cua__append_ops {
	/* *size = the smaller of demand and capacity */
	enum cua_status (*size)(struct cua_context *ctx, const struct cua_append_view *view,
				uint64_t *size);
	/* n > 0; value points to a host value of the type */
	enum cua_status (*filter)(struct cua_context *ctx, const struct cua_append_view *view,
				  enum cua_type type, size_t n, const void *x,
				  enum cua_compare compare, const void *value);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_LIB_APPEND_H */
