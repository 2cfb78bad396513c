/* SPDX-License-Identifier: MIT */
/* Declarations that both backends' exact cells share: checked calls and the table. */
#ifndef CUATOMIC_BACKEND_EXACT_CELL_BACKEND_H
#define CUATOMIC_BACKEND_EXACT_CELL_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checked call of `finish`. All pointers are as the backend addresses them. */
struct cua__cells {
	enum cua_type type; /* of the cells: F32 or F64 */
	enum cua_type result_type;
	int overwrite;
	int unit;
	uint64_t cells, first;
	uint64_t *cell; /* the words of all cells */
	void *out;
	const uint64_t *demand; /* of the append buffer; NULL if there is none */
	const struct cua_exact_spill *spill;
	uint64_t capacity;
	uint64_t *lost; /* or NULL; the backend stores the number of cells */
	void *scratch;  /* of the size that `scratch` of the table returned */
};

/* A checked call of cua_exact_range. */
struct cua__range {
	enum cua_type type;
	uint64_t n;
	const void *x;
	struct cua_exact_fit *result;
	void *scratch; /* of the size that `range_scratch` of the table returned */
};

struct cua__cells_ops {
	/* The sizes depend on no pointers. */
	size_t (*scratch)(struct cua_context *ctx, const struct cua__cells *c);
	enum cua_status (*finish)(struct cua_context *ctx, const struct cua__cells *c);
	size_t (*range_scratch)(struct cua_context *ctx, const struct cua__range *r);
	enum cua_status (*range)(struct cua_context *ctx, const struct cua__range *r);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_EXACT_CELL_BACKEND_H */
