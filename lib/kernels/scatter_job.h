/* SPDX-License-Identifier: MIT */
/*
 * A scatter on a GPU: the plan that the host makes, and the state that its kernels share.
 *
 * The targets are divided into sub-ranges whose cells fit in the shared memory of a block, and
 * adjacent sub-ranges form regions. A call is a sequence of passes over the input. A pass has
 * adjacent regions: its first kernel writes the records of these regions, sorted by region, and
 * its second kernel accumulates them, a block for each sub-range. Only a part of the records exists
 * at a time. So the records need a fraction of the input's memory.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_JOB_H
#define CUATOMIC_KERNELS_SCATTER_JOB_H

#include "backend/scatter_backend.h"

/* The form of a target's cell, in words of 32 bits. */
enum cua__scatter_cell {
	CUA__CELL_ADD32,  /* a word: integers of at most 32 bits */
	CUA__CELL_ADD64,  /* two words */
	CUA__CELL_MAX32,  /* a word: a key */
	CUA__CELL_MAX64,  /* two words: a key */
	CUA__CELL_HALVES, /* three words: the sums of both halves (halves.h), and their carries */
	CUA__CELL_WINDOWS /* four words: two signed integers times powers of two */
};

/* The most regions, and the most regions of a pass. */
#define CUA__SCATTER_REGIONS 8192u
#define CUA__SCATTER_FAN 2048u
/* Tiles of sub-ranges that several blocks accumulate in a pass at most. */
#define CUA__SCATTER_SHARED_MAX 32u
/* The most columns of a row that a block accumulates at once. */
#define CUA__SCATTER_COLUMNS 64u

struct cua__scatter_pass {
	uint32_t first, end; /* regions */
	/* 1: a single region with too many records; its elements are read from the input */
	uint32_t direct;
	uint32_t next; /* the next work item */
};

/* In the workspace; zero before the first kernel. */
struct cua__scatter_state {
	uint64_t inside;        /* rows with an index in range */
	uint64_t inside_planes; /* the same, as counted by the kernel of the planes */
	uint32_t passes;
	uint32_t next;   /* work items of a call without passes */
	uint32_t top;    /* the leading bit of the greatest sampled element */
	uint32_t misfit; /* 1: an element does not fit the planes */
	uint32_t arrived[CUA__SCATTER_SHARED_MAX];
};

struct cua__scatter_job {
	struct cua__scatter s;
	enum cua__scatter_cell cell;
	enum cua_type sum_type; /* the type to which a sum of floats is rounded first */
	uint32_t index_size, size, result_size;
	uint64_t limit;      /* an index from here on, as an unsigned integer, is out of range */
	int rows;            /* 1: a record names its row of x; 0: it has its element */
	uint32_t value_size; /* of a record: 4 or 8 */
	uint32_t cells;      /* of a block, a power of two */
	uint32_t columns;    /* of a tile of a row, a power of two */
	uint32_t tiles;      /* of a row */
	uint32_t span;       /* log2 of the rows of a sub-range */
	uint32_t subs;       /* log2 of the sub-ranges of a region */
	uint32_t copies;     /* cells of a target; above 1 only for a single region */
	uint32_t regions;
	uint32_t fan;          /* the most regions of a pass */
	uint32_t tile;         /* records that a block partitions at once */
	uint32_t passes;       /* the most passes */
	uint64_t room;         /* records of a pass */
	uint64_t most;         /* the records that a block accumulates alone at most, in any call */
	uint64_t part;         /* the records of a block if it has help */
	uint32_t direct_parts; /* blocks for a sub-range and tile whose elements are in the input */
	uint32_t shared_cells; /* arrays of shared cells */
	uint32_t digits;       /* words of 64 bits of a shared cell: digits, and flags of a float */
	/* cells in global memory: planes, or 0, and the bits of an element in the upper and lower planes */
	uint32_t planes, plane_bits, low_bits;
	uint64_t *plane;
	const uint64_t *counts; /* MEAN: the elements of each row */
	/* the workspace */
	struct cua__scatter_state *state;
	struct cua__scatter_pass *pass;
	uint64_t *count;  /* records of each region */
	uint64_t *before; /* regions + 1: records of the regions before */
	uint64_t *items;  /* regions + 1: work items of the regions before */
	uint32_t *shares; /* regions + 1: shared cells of the regions before, in sub-ranges */
	uint32_t *cursor; /* per region: the next record of the pass */
	uint64_t *shared; /* arrays of shared cells, for the targets of a sub-range */
	uint32_t *keys;   /* of records: the row in the region */
	void *values;     /* of records: the element, or the row of x */
};

/* How a block traverses the elements of an item. */
enum cua__scatter_path {
	CUA__SCATTER_SOME, /* records, or rows of an element of the input; some are of other items */
	CUA__SCATTER_ALL,  /* rows of an element of the input; all in range are of the item */
	CUA__SCATTER_ROWS  /* rows of several elements */
};

CUA_FORCE enum cua__scatter_path cua__scatter_path_of(const struct cua__scatter_job *j)
{
	return j->rows                       ? CUA__SCATTER_ROWS
	       : j->regions == 1 && !j->subs ? CUA__SCATTER_ALL
					     : CUA__SCATTER_SOME;
}

#endif /* CUATOMIC_KERNELS_SCATTER_JOB_H */
