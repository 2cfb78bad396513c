/* SPDX-License-Identifier: MIT */
/*
 * Declarations that both backends' calls by key share.
 *
 * The core is struct cua__distinct: the distinct keys of an array, with a number for each of them
 * and for each row. cua__distinct_run finds them; calls that group, match or look up rows by key
 * build on it. It is a sequence of steps, and a step is a loop over independent items, so that a
 * backend only distributes items over threads. lib/kernels/group_by_kernel.h has the items.
 */
#ifndef CUATOMIC_BACKEND_GROUP_BY_BACKEND_H
#define CUATOMIC_BACKEND_GROUP_BY_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values of a digit of the sort. */
#define CUA__GROUP_DIGITS 256u

/* Row numbers, slots and group numbers have 64 bits if `wide` is set, else 32 bits. */
struct cua__distinct {
	enum cua_type key_type;
	uint32_t key_size;
	int wide;
	int sorted;
	int any;      /* 1: any order suffices */
	int numbered; /* 1: the caller reads the numbers of the rows */
	uint64_t n;   /* rows; not 0 */
	const void *keys;
	uint64_t room; /* groups that can be stored, at most n */
	uint64_t seed;
	/* results */
	uint64_t *count; /* the number of all groups */
	/*
	 * Per row: the slot of its key, later the number of its group. The number of a group that is
	 * not stored is that of its first row, which is at least `room`. NULL: only the table is made.
	 */
	void *number;
	void *first; /* per stored group: its first row */
	/* scratch memory */
	uint64_t slots;
	void *table;    /* per slot: the lowest row so far with this key, or EMPTY */
	uint8_t *flags; /* per row: 1 if it is the first of its group */
	void *occurred; /* the first rows in ascending order; `first` if not sorted */
	/* sorted: the groups before and after a pass of the sort, and numbers in the order of the keys */
	void *order[2], *ordered[2];
	uint64_t *digits;
	uint64_t *digit_totals;
	uint32_t parts; /* of the groups; each is sorted by a warp */
	uint32_t digit; /* of the pass, counted from the lowest */
	/* 1: the sort orders the n rows by numbers of key_size bytes, instead of the groups by key */
	int sorts_rows;
	void *filter_scratch;
};

/* The steps, and their items. */
enum cua__group_step {
	CUA__GROUP_CLEAR,      /* slots: EMPTY */
	CUA__GROUP_CLAIM,      /* rows: finds or claims the slot of the key */
	CUA__GROUP_FLAG,       /* rows: marks the first rows */
	CUA__GROUP_ORDER,      /* groups: before the sort */
	CUA__GROUP_SORT_COUNT, /* parts: counts the digits */
	CUA__GROUP_SORT_SUM,   /* digits: sums the counts of lower parts */
	CUA__GROUP_SORT_MOVE,  /* parts: reorders the groups by digit */
	CUA__GROUP_ASSIGN,     /* groups: replaces the first row of a slot by the group's number */
	CUA__GROUP_NUMBER,     /* rows: replaces the slot by the number */
	CUA__GROUP_KEYS,       /* groups: stores the key */
	CUA__GROUP_MASK,       /* rows: replaces the numbers of rows with null values */
	CUA__GROUP_ONES,       /* rows: 1 if the value is valid */
	CUA__GROUP_LEAST_ROW,  /* rows: the lowest row of each group */
	CUA__GROUP_GREATEST_ROW, /* rows: the highest */
	CUA__GROUP_GATHER,       /* groups: the value of this row */
	CUA__GROUP_CONVERT,      /* rows: the value as f64 */
	CUA__GROUP_SUBTRACT,     /* rows: the difference from the pivot */
	CUA__GROUP_REFINE,       /* groups: a better pivot */
	CUA__GROUP_SQUARE,       /* rows: the square of the difference */
	CUA__GROUP_VARIANCE,     /* groups */
	CUA__GROUP_INVERSE,      /* rows: the number in the type of the output */
	CUA__GROUP_FIRST_ROWS    /* groups: the first row in the type of the output */
};

/* A step of a call, with the arrays that this step uses. */
struct cua__group_job {
	struct cua__distinct d;
	enum cua_type type;
	uint32_t size; /* bytes of a value, or of a number that the user receives */
	int valid_bits;
	const uint8_t *valid;
	const void *values;
	void *out;
	const void *index; /* per row: the group, or a number out of range */
	void *masked;
	uint8_t *ones;
	void *rows;       /* per group: a row of it, or NONE */
	int from_1;       /* 1: these rows are counted from 1, and 0 is none */
	uint64_t targets; /* groups that the aggregate has room for */
	uint32_t ddof;
	double *x;             /* per row: the value, then the difference and its square */
	double *pivot;         /* per group */
	double *sum, *square;  /* per group */
	uint64_t *valid_count; /* per group */
};

/* Counts, sums and means of an array of 32-bit values, in a single traversal. */
struct cua__group_sums {
	const uint32_t *x;
	enum cua_type type;  /* of x: F32, I32 or U32; NONE if there are no values */
	int counts;          /* 1: rows are counted, for out_count or out_mean */
	uint64_t *out_count; /* outputs may be NULL */
	void *out_sum, *out_mean;
	enum cua_type sum_type, mean_type; /* NONE if there is no such output */
};

/* In the scratch memory of a call in regions. */
struct cua__regions_state {
	uint64_t groups;
	uint32_t unfit; /* 1: the outputs are not valid */
	uint32_t next;  /* region */
	uint32_t depth; /* of subsets, in the deepest region so far */
	uint32_t reserved;
};

/* A call in regions (lib/kernels/group_by_regions.h): keys and values of 32 bits. */
struct cua__regions_job {
	uint64_t n, capacity;
	const uint32_t *keys;
	struct cua__group_sums s;
	uint32_t seed;
	uint32_t *out_keys; /* may be NULL */
	/* set by the backend */
	uint32_t regions;
	uint64_t most;    /* records of a region */
	uint32_t entries; /* of a table */
	struct cua__regions_state *state;
	uint32_t *count, *cursor; /* per region */
	uint32_t *before;         /* per region, and one more */
	void *record;
};

/* In the scratch memory of a call with few groups. */
struct cua__few_state {
	uint64_t groups;
	uint32_t found;  /* keys in the table of all blocks */
	uint32_t unfit;  /* 1: there are more groups than the tables have room for */
	uint32_t missed; /* 1: the dictionary lacks the key of a row */
	uint32_t log;    /* of the slots of the dictionary */
	int32_t limit;   /* of sums of floats, as in halves.h */
	uint32_t multiplier[2];
};

/* The digits of a sum, its flags, and 0. */
#define CUA__FEW_SUM_WORDS 72

/* A call with few groups (lib/kernels/group_by_few.h): keys of 4 or 8 bytes. */
struct cua__few_job {
	struct cua__distinct d;
	struct cua__group_sums s; /* of the step ACCUMULATE */
	uint64_t rows;            /* of step COLLECT, from the first on */
	uint32_t log;             /* of the slots of a table */
	uint32_t bytes;           /* of shared memory, for the step ACCUMULATE */
	struct cua__few_state *state;
	/* the table of all blocks; per slot: the hash of a key, and the first row that has it */
	uint64_t *hash;
	uint32_t *least;
	/* the dictionary; per slot: a key, and the number of its group */
	uint64_t *known;
	uint32_t *number;
	/* per group: its rows, and the words of its sum; both begin with 0 */
	uint64_t *count, *sum;
};

enum cua__few_step {
	CUA__FEW_COLLECT,    /* finds the keys of the first rows */
	CUA__FEW_ORDER,      /* numbers the groups and makes the dictionary */
	CUA__FEW_NUMBER,     /* stores the number of each row */
	CUA__FEW_ACCUMULATE, /* counts and adds */
	CUA__FEW_ROUND       /* stores the counts, sums and means */
};

struct cua__group_by_ops {
	/* Runs a step for the items 0 to n - 1; n may be 0. */
	enum cua_status (*run)(struct cua_context *ctx, enum cua__group_step step,
			       const struct cua__group_job *j, uint64_t n);
	/* The number of warps that sort up to n groups. */
	uint32_t (*parts)(struct cua_context *ctx, uint64_t n);
	/*
	 * Calls in regions: the scratch memory, 0 if the device cannot run this call, and a run.
	 * NULL if the backend has no such calls.
	 */
	size_t (*regions_scratch)(struct cua_context *ctx, const struct cua__regions_job *j);
	enum cua_status (*regions)(struct cua_context *ctx, struct cua__regions_job *j,
				   void *scratch);
	/*
	 * Calls with few groups: sets `log` and `bytes` of *j, or returns 0 if the device cannot run
	 * this call; and runs a step. NULL if the backend has no such calls.
	 */
	int (*few_fits)(struct cua_context *ctx, struct cua__few_job *j);
	enum cua_status (*few)(struct cua_context *ctx, enum cua__few_step step,
			       const struct cua__few_job *j);
};

/* ---- lib/distinct.c ---- */

/* Bytes of a number. */
static inline size_t cua__number_size(const struct cua__distinct *d)
{
	return d->wide ? sizeof(uint64_t) : sizeof(uint32_t);
}

/* Whether keys of this type can be grouped. */
int cua__distinct_has_type(enum cua_type key_type);

/*
 * Sets the members that follow from the type, n, the capacity and the order. n may be 0. Errors:
 * TYPE, SIZE.
 */
enum cua_status cua__distinct_plan(struct cua__distinct *d, enum cua_type key_type, uint64_t n,
				   uint64_t capacity, enum cua_key_order order);

/*
 * Changes the number of slots to 2 for each row. A lookup of an absent key then reads 1.5 keys of
 * other rows on average, in place of 4.
 */
void cua__distinct_plan_lookups(struct cua__distinct *d);

/* Places the results in memory that lasts as long as the call. */
void cua__distinct_place(struct cua__distinct *d, struct cua__arena *a);

/* Places the arrays that cua__distinct_run needs. They may be reused after it. */
void cua__distinct_place_scratch(struct cua_context *ctx, struct cua__distinct *d,
				 struct cua__arena *a);

/* Finds the distinct keys of the n > 0 rows. */
enum cua_status cua__distinct_run(struct cua_context *ctx, const struct cua__distinct *d);

/*
 * Only fills the table: each slot in use has the first row of its key, and the number of a row is
 * its slot. Sets the seed, which lookups in the table need. n may be 0.
 */
enum cua_status cua__distinct_claim(struct cua_context *ctx, struct cua__group_job *j);

/*
 * Sorts order[0] by the lowest `digits` digits of 8 bits of ordered[0], and moves both. The sort is
 * stable. The results are in order[0] and ordered[0] of *j, which exchanges its arrays.
 */
enum cua_status cua__distinct_sort(struct cua_context *ctx, struct cua__group_job *j,
				   uint32_t digits);

/* ---- lib/few_groups.c ---- */

/* What a call with few groups finds besides the first rows of the groups. */
enum cua__few_want { CUA__FEW_KEYS, CUA__FEW_NUMBERS, CUA__FEW_SUMS };

/*
 * Whether the call may have few groups, by its types and its size; fills *j, with the addresses that
 * are known. s: the sums, or NULL.
 */
int cua__few_plan(struct cua_context *ctx, const struct cua__distinct *d,
		  const struct cua__group_sums *s, struct cua__few_job *j);

/* Adds the scratch memory of a planned call. */
void cua__few_place(const struct cua__few_job *j, struct cua__arena *a);

/*
 * Finds the distinct keys, and waits. *groups becomes their number, or 0 if there are more than few;
 * then no result is valid. The arena is that of cua__few_place, after the results of *j.
 */
enum cua_status cua__few_run(struct cua_context *ctx, struct cua__few_job *j, struct cua__arena a,
			     enum cua__few_want want, uint64_t *groups);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_GROUP_BY_BACKEND_H */
