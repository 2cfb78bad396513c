/* SPDX-License-Identifier: MIT */
/*
 * Declarations that both backends' joins share. A join is a sequence of steps, as are the calls of
 * group_by_backend.h. lib/kernels/join_kernel.h has the items of the steps.
 */
#ifndef CUATOMIC_BACKEND_JOIN_BACKEND_H
#define CUATOMIC_BACKEND_JOIN_BACKEND_H

#include "backend/group_by_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The steps, and their items. */
enum cua__join_step {
	CUA__JOIN_FIND,   /* keys: whether the set has the key */
	CUA__JOIN_ROWS,   /* right rows: before the sort */
	CUA__JOIN_LISTS,  /* sorted right rows: the ends of the list of each key */
	CUA__JOIN_MATCH,  /* left rows: the list of the key, and the number of pairs */
	CUA__JOIN_SUM,    /* parts of the left rows: the sum of the numbers of pairs */
	CUA__JOIN_SCAN,   /* a single item: the sums of lower parts, and the number of all pairs */
	CUA__JOIN_OFFSET, /* parts: the number of pairs of lower left rows */
	CUA__JOIN_WRITE   /* pairs */
};

/*
 * A call, with the arrays of its steps. Row numbers, slots and positions in lists have 64 bits if
 * d.wide is set, else 32 bits. Left rows and pairs are always counted by 64 bits.
 */
struct cua__join_job {
	struct cua__distinct d; /* the table of the right keys, or of the set */
	uint64_t n;             /* left rows, or keys to find; not 0 */
	const void *keys;       /* their keys */
	int invert;
	uint8_t *found;    /* per key */
	void *rows;        /* right rows by slot, then by number: the lists of the keys */
	const void *slots; /* per element of `rows`: its slot */
	void *lists; /* per slot in use: the first position in `rows`, and the position behind */
	int left;    /* 1: a left row without a match has a pair */
	void *list;  /* per left row: the first position of its list, or NONE */
	uint64_t *offset;  /* per left row: its number of pairs, then those of lower rows; n: all */
	uint32_t parts;    /* of the left rows */
	uint64_t *sums;    /* per part: its number of pairs, then those of lower parts */
	uint64_t room;     /* pairs that can be stored */
	uint32_t out_size; /* bytes of a number in the output */
	void *out_left, *out_right; /* NULL: not stored */
};

struct cua__join_ops {
	/*
	 * Runs a step for the items 0 to n - 1; n may be 0. WRITE: for the lower of n and the number
	 * of all pairs.
	 */
	enum cua_status (*run)(struct cua_context *ctx, enum cua__join_step step,
			       const struct cua__join_job *j, uint64_t n);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_JOIN_BACKEND_H */
