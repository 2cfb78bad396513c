/* SPDX-License-Identifier: MIT */
/* A scatter on the CPU: declarations that its parts share. */
#ifndef CUATOMIC_CPU_CPU_SCATTER_JOB_H
#define CUATOMIC_CPU_CPU_SCATTER_JOB_H

#include "kernels/scatter_values.h"

/* Elements, or indexes, of a batch. */
#define BATCH 256u
/* More bytes of cells are prefetched. */
#define FAR_BYTES ((size_t)768 << 10)

__extension__ typedef __int128 int128;

static inline uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- forms of cells ---- */

enum kind {
	KIND_INTEGER, /* a sum modulo 2^64 */
	KIND_KEY,     /* the greatest key */
	KIND_WORD,    /* a signed integer of 64 bits times 2^(at - CUA__EXACT_POINT) */
	KIND_WIDE,    /* the same with 128 bits, the lower half first */
	KIND_DIGITS   /* as in struct cua_exact; digit 0 is that of position `at` */
};

struct form {
	enum kind kind;
	unsigned words; /* of a cell, 64 bits each */
	int at;
	/* how elements become words */
	uint64_t flip, mask, top, infinity;
	double scale; /* 1 / unit */
	double unit;  /* of a word */
	int64_t base;
	int64_t result_base; /* the exponent field of a result with its bit 0 at `at` */
};

/* The least and the greatest position of the bits of finite elements; top is above them. */
struct bounds {
	int least, top;
	int special; /* there are infinities or NaN */
};

static inline void widen_bounds(struct bounds *b, int least, int top)
{
	b->least = least < b->least ? least : b->least;
	b->top = top > b->top ? top : b->top;
}

/* ---- loops ---- */

/* The loops over a batch, for an instruction set. */
struct loops {
	uint32_t (*find[2])(const void *index, uint64_t first, uint32_t span, uint32_t *at);
	void (*compact)(uint32_t span, uint64_t first, uint32_t *at, uint64_t *row);
	void (*split)(const uint64_t *records, uint32_t *at, uint32_t *x);
	void (*scan_f32)(const float *x, struct bounds *bounds);
	void (*scan_f64)(const double *x, struct bounds *bounds);
	void (*floats[2])(const void *x, float *v);
	void (*integers[CUA_U64 + 1])(const struct form *f, const void *x, uint64_t *v);
	void (*keys[CUA_F64 + 1])(const struct form *f, const void *x, uint64_t *v);
	void (*words[2])(const struct form *f, const void *x, uint64_t *v);
	void (*wides[2])(const struct form *f, const void *x, uint64_t *v);
	uint64_t (*sums[2])(const struct form *f, const uint64_t *sum, const void *old,
			    int overwrite, uint64_t *fresh, uint64_t *slow);
};

/* ---- the call ---- */

/* A record of 128 bits: an element, or the number of a row of x, and its target in a region. */
struct record {
	uint64_t key, value;
};

/* Rows of targets that all workers process together. */
struct range {
	uint64_t first;
	uint32_t rows;
	uint32_t failed; /* a word has overflowed */
	const struct form *form;
	uint64_t inside; /* rows of x that belong to them */
};

struct regions {
	unsigned shift;      /* a region has 2^shift rows */
	uint64_t n;          /* regions of the range */
	uint64_t begin, end; /* regions of the pass */
	uint64_t *count;     /* per worker and region: records; in a pass, the place of the next */
	uint64_t *start;     /* n + 1: records of the pass before a region */
	uint64_t room;       /* for records */
	int narrow;          /* a record has 64 bits: the key and the element */
	void *records;
	uint64_t next; /* the next region to process */
};

struct job {
	const struct cua__scatter *s;
	const struct loops *loops;
	uint32_t size, index_size, result_size;
	int sums_floats;
	uint64_t limit; /* rows that an index can name */
	unsigned workers;
	struct cua_spinlock lock;
	struct bounds bounds;
	/* the forms to try, in order; the last form never fails */
	struct form forms[3];
	/* the workers' cells */
	char *memory;
	size_t each;
	struct range range;
	struct regions regions;
};

/* The cells of a worker for some rows; all are 0 between two ranges. */
struct part {
	uint64_t *cells;
	uint64_t *counts; /* MEAN: the elements of each row */
	uint8_t *flags;   /* sums of floats: per cell, as in struct cua_exact */
	int far;          /* the cells exceed the cache of a core */
};

/* The cells of several workers for the same rows. */
struct parts {
	struct part first;
	size_t stride; /* bytes */
	unsigned n;
};

static inline struct part part_at(const struct parts *parts, unsigned worker)
{
	const size_t offset = worker * parts->stride;
	struct part p;

	p.cells = (uint64_t *)(void *)((char *)parts->first.cells + offset);
	p.counts = (uint64_t *)(void *)((char *)parts->first.counts + offset);
	p.flags = parts->first.flags + offset;
	p.far = parts->first.far;
	return p;
}

/* In front of a worker's cells. */
struct own {
	size_t clean; /* bytes of cells that are 0, from the first on */
	uint64_t unused[7];
};

static inline size_t row_bytes(const struct cua__scatter *s, int sums_floats, unsigned words)
{
	return (size_t)s->width * words * 8 + (s->op == CUA_SCATTER_MEAN ? 8 : 0) +
	       (sums_floats ? s->width : 0);
}

static inline struct own *own_of(const struct job *j, unsigned worker)
{
	return (struct own *)(void *)(j->memory + worker * j->each);
}

static inline struct part part_of(const struct job *j, struct own *own, const struct form *f,
				  uint32_t rows)
{
	struct part p;

	p.cells = (uint64_t *)(own + 1);
	p.counts = p.cells + (size_t)rows * j->s->width * f->words;
	p.flags = (uint8_t *)(p.counts + (j->s->op == CUA_SCATTER_MEAN ? rows : 0));
	p.far = rows * row_bytes(j->s, j->sums_floats, f->words) > FAR_BYTES;
	return p;
}

/* The number of rows with cells that fit a worker's memory. */
static inline uint32_t rows_that_fit(const struct job *j, const struct form *f)
{
	uint64_t rows = (j->each - sizeof(struct own)) / row_bytes(j->s, j->sums_floats, f->words);

	return rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX;
}

static inline void make_clean(const struct job *j, struct own *own, const struct form *f,
			      uint32_t rows)
{
	size_t bytes = rows * row_bytes(j->s, j->sums_floats, f->words);

	if (bytes > own->clean) {
		memset((char *)(own + 1) + own->clean, 0, bytes - own->clean);
		own->clean = bytes;
	}
}

#endif /* CUATOMIC_CPU_CPU_SCATTER_JOB_H */
