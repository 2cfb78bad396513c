/* SPDX-License-Identifier: MIT */
/* Declarations that both backends' scatters share: a checked call and the table. */
#ifndef CUATOMIC_BACKEND_SCATTER_BACKEND_H
#define CUATOMIC_BACKEND_SCATTER_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checked call. All pointers are as the backend addresses them. */
struct cua__scatter {
	enum cua_scatter_op op;
	enum cua_type index_type, type, result_type;
	int overwrite;
	uint32_t width;
	uint64_t n;       /* rows of x */
	uint64_t targets; /* rows of out; may be 0 */
	const void *index, *x;
	void *out;
	uint64_t *skipped; /* or NULL; the backend stores the number of skipped indexes */
	void *scratch;     /* of the size that `scratch` of the table returned */
};

struct cua__scatter_ops {
	/* Reads no pointers of the call. */
	size_t (*scratch)(struct cua_context *ctx, const struct cua__scatter *s);
	enum cua_status (*run)(struct cua_context *ctx, const struct cua__scatter *s);
};

/* The result type that a call leaves open. */
enum cua_type cua__scatter_default_result(enum cua_scatter_op op, enum cua_type type);
/* Whether the operation combines elements of `type` in targets of type `result`. */
int cua__scatter_has_types(enum cua_scatter_op op, enum cua_type type, enum cua_type result);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_SCATTER_BACKEND_H */
