/* SPDX-License-Identifier: MIT */
/*
 * The cells of a scatter in shared memory: windows of floats, integers and keys; and digits in shared
 * or global memory. The argument is in scatter_kernel.h.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_CELLS_H
#define CUATOMIC_KERNELS_SCATTER_CELLS_H

#include "kernels/scatter_partition.h"
#include "kernels/scatter_values.h"

#define CUA__SCATTER_NONE 0xffffffffu
/* Powers of two between the largest sampled element and the limit of a window. */
#define CUA__SCATTER_ROOM 4
/* Bits of an element in the lower of two windows. */
#define CUA__SCATTER_LOW_BITS 50
/* 1.5 * 2^52: the bits of v + this, less its own, are the integer nearest to v, below 2^51. */
#define CUA__SCATTER_MAGIC 6755399441055744.0
#define CUA__SCATTER_MAGIC_HIGH 0x43380000u

CUA_FORCE int cua__scatter_is_float(enum cua__scatter_cell cell)
{
	return cell == CUA__CELL_WINDOW || cell == CUA__CELL_WINDOWS;
}

/* A work item: a sub-range of targets, and the part of its elements that the block traverses. */
struct cua__scatter_item {
	uint64_t row;             /* the first row of the sub-range */
	uint64_t begin, end;      /* of the records, or of the rows of x */
	uint32_t local;           /* the first row of the sub-range within its region */
	uint32_t rows;            /* of the sub-range */
	uint32_t column, columns; /* of the tile: the first, and how many */
	uint32_t parts;
	uint32_t share; /* the array of shared cells, if parts > 1 */
	int direct;     /* 1: begin and end are rows of x */
	int counts;     /* 1: counts rows in range */
	int valid;
};

/* Shared memory of an accumulation; the words of the cells follow. */
struct cua__scatter_block {
	struct cua__scatter_item item;
	uint32_t region;
	uint32_t top;   /* of the sampled elements */
	uint32_t dirty; /* dirty cells that have a number in this round */
	uint32_t inside;
	uint32_t last;
	uint32_t reserved[3];
	/* a bit for each dirty cell */
	uint32_t is_dirty[1];
};

CUA_STATIC_ASSERT(offsetof(struct cua__scatter_block, is_dirty) % 16 == 0, "cells are packs");

/* Words of the bits of dirty cells, so that the cells are aligned to 16 bytes. */
CUA_FORCE uint32_t cua__scatter_dirty_words(uint32_t cells)
{
	return cells / 32 < 4 ? 4 : cells / 32;
}

CUA_FORCE uint32_t cua__scatter_cell_words(enum cua__scatter_cell cell)
{
	switch (cell) {
	case CUA__CELL_ADD32:
	case CUA__CELL_MAX32: return 1;
	case CUA__CELL_WINDOWS: return 4;
	default: return 2;
	}
}

/* Elements that a warp collects before its lanes add them: a power of two. */
#define CUA__SCATTER_QUEUE 128u

/* A warp's elements of its sub-range, in shared memory. */
struct cua__scatter_queue {
	uint32_t target[CUA__SCATTER_QUEUE];
	uint32_t low[CUA__SCATTER_QUEUE], high[CUA__SCATTER_QUEUE];
};

/* A block's view of its cells. */
struct cua__scatter_cells {
	struct cua__scatter_block *sh;
	struct cua__scatter_queue *queue; /* of each warp */
	uint32_t *word;                   /* planes of `cells` words */
	uint32_t cells;
	uint32_t size;         /* of an element; a constant if its type is */
	uint32_t copy, copies; /* the caller's copy */
	int at;                /* WINDOW(S): the position of the unit; of the lower window */
	/* WINDOW(S): the unit 2^k and 2^-k, of the upper window; the same of the lower one */
	double unit, scale, low_unit, low_scale;
	uint64_t *share; /* shared cells, or NULL */
	uint32_t share_words;
};

/* Adds an element to digits and flags. */
CUA_FORCE void cua__scatter_add_exact(const struct cua__scatter_job *j, uint64_t *digit,
				      struct cua__exact_parts p, enum cua_scope scope,
				      enum cua_space space)
{
	if (p.flags)
		cua_port_or_b64(&digit[j->digits - 1], p.flags, CUA_RELAXED, scope, space);
	else if (p.mantissa)
		cua__scatter_add_digits(digit, p.negative, p.mantissa,
					p.at - 32 * cua__scatter_low(j->sum_type), scope, space);
}

/* Adds to an integer of two words; returns by how many times 2^64 the sum passed the limits. */
CUA_FORCE int cua__scatter_add64(uint32_t *low, uint32_t *high, int64_t v)
{
	const uint32_t v_low = (uint32_t)v;
	const uint32_t old = cua_port_fetch_add_u32(low, v_low, CUA__SCATTER_IN_BLOCK);
	const uint32_t up = (uint32_t)((uint64_t)v >> 32) + (old + v_low < old);
	uint32_t before, after;

	if (!up)
		return 0;
	before = cua_port_fetch_add_u32(high, up, CUA__SCATTER_IN_BLOCK);
	after = before + up;
	if (!(((before ^ after) & (up ^ after)) >> 31))
		return 0;
	return up >> 31 ? -1 : 1;
}

/* A cell that cannot hold its sum, by 2^64 `by` units at position `at`. */
CUA_FORCE void cua__scatter_overflow(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c, uint32_t target, int by,
				     int at)
{
	if (c->share)
		cua__scatter_add_digits(c->share + (uint64_t)target * c->share_words, by < 0, 1,
					at + 64 - 32 * cua__scatter_low(j->sum_type),
					CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		cua_port_or_b32(&c->sh->is_dirty[target / 32], 1u << target % 32,
				CUA__SCATTER_IN_BLOCK);
}

/* An element that does not fit the window. */
CUA_FORCE void cua__scatter_misfit(const struct cua__scatter_job *j,
				   const struct cua__scatter_cells *c, uint32_t target,
				   struct cua__exact_parts p)
{
	if (c->share)
		cua__scatter_add_exact(j, c->share + (uint64_t)target * c->share_words, p,
				       CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		cua_port_or_b32(&c->sh->is_dirty[target / 32], 1u << target % 32,
				CUA__SCATTER_IN_BLOCK);
}

/* 2^k for a normal number. */
CUA_FORCE double cua__scatter_power(int k)
{
	return cua__from_bits_f64((uint64_t)(k + 1023) << 52);
}

/*
 * Sets the windows for elements below 2^(top + 1 - CUA__EXACT_POINT) or little above. The units are
 * such that all scales are normal numbers.
 */
CUA_FORCE void cua__scatter_set_window(struct cua__scatter_cells *c, int top,
				       enum cua__scatter_cell cell)
{
	int k = top - CUA__EXACT_POINT + 1 + CUA__SCATTER_ROOM - 51, low;

	if (cell == CUA__CELL_WINDOWS) {
		k = k > 960 ? 960 : k < -960 ? -960 : k;
		low = k - CUA__SCATTER_LOW_BITS;
		c->low_unit = cua__scatter_power(low);
		c->low_scale = cua__scatter_power(-low);
	} else
		low = k;
	c->unit = cua__scatter_power(k);
	c->scale = cua__scatter_power(-k);
	c->at = low + CUA__EXACT_POINT;
}

/* The integer in v + CUA__SCATTER_MAGIC, whose bits are given. */
CUA_FORCE int64_t cua__scatter_magic_integer(uint64_t bits)
{
	return (int64_t)(bits - ((uint64_t)CUA__SCATTER_MAGIC_HIGH << 32));
}

/* Whether the sum with CUA__SCATTER_MAGIC has its exponent, so that it holds an integer. */
CUA_FORCE int cua__scatter_is_magic(uint64_t bits)
{
	return (uint32_t)(bits >> 52) == CUA__SCATTER_MAGIC_HIGH >> 20;
}

/* An element as f64; exact. */
CUA_FORCE double cua__scatter_f64(enum cua_type type, uint64_t bits)
{
	if (type == CUA_F64)
		return cua__from_bits_f64(bits);
	return cua_port_cvt_f64_f32(cua__element_f32(type, bits));
}

/*
 * *v = d as an integer in units of `unit`, whose inverse is `scale`. Returns 0 if it is none below
 * 2^51. The product of an integer and the unit does not underflow, unlike that of d and the scale.
 */
CUA_FORCE int cua__scatter_fits(double d, double unit, double scale, int64_t *v)
{
	const double t = cua_port_fma_rn_f64(d, scale, CUA__SCATTER_MAGIC);
	const uint64_t bits = cua__bits_f64(t);

	*v = cua__scatter_magic_integer(bits);
	return cua__scatter_is_magic(bits) &&
	       cua_port_mul_rn_f64(cua_port_sub_rn_f64(t, CUA__SCATTER_MAGIC), unit) == d;
}

/* Adds an element of a float type; type and cell are constants. */
CUA_FORCE void cua__scatter_add_float(const struct cua__scatter_job *j,
				      const struct cua__scatter_cells *c, uint32_t target,
				      uint64_t bits, enum cua_type type,
				      enum cua__scatter_cell cell)
{
	const double d = cua__scatter_f64(type, bits);
	uint32_t *low = c->word + target * c->copies + c->copy, *high = low + c->cells;
	int64_t v, v_low;
	int by;

	if (cell == CUA__CELL_WINDOW) {
		if (!cua__scatter_fits(d, c->unit, c->scale, &v)) {
			cua__scatter_misfit(j, c, target, cua__scatter_parts(type, bits));
			return;
		}
		by = cua__scatter_add64(low, high, v);
		if (by)
			cua__scatter_overflow(j, c, target, by, c->at);
	} else {
		const double t = cua_port_fma_rn_f64(d, c->scale, CUA__SCATTER_MAGIC);
		const double upper = cua_port_sub_rn_f64(t, CUA__SCATTER_MAGIC);
		/* exact: a multiple of the last bit of d, and at most half a unit */
		const double rest = cua_port_fma_rn_f64(-upper, c->unit, d);

		v = cua__scatter_magic_integer(cua__bits_f64(t));
		if (!cua__scatter_is_magic(cua__bits_f64(t)) ||
		    !cua__scatter_fits(rest, c->low_unit, c->low_scale, &v_low)) {
			cua__scatter_misfit(j, c, target, cua__scatter_parts(type, bits));
			return;
		}
		if (v_low) {
			by = cua__scatter_add64(low, high, v_low);
			if (by)
				cua__scatter_overflow(j, c, target, by, c->at);
		}
		low = high + c->cells;
		by = cua__scatter_add64(low, low + c->cells, v);
		if (by)
			cua__scatter_overflow(j, c, target, by, c->at + CUA__SCATTER_LOW_BITS);
	}
}

/* Adds an element; type is a constant if it is a float type and is added. */
CUA_FORCE void cua__scatter_combine(const struct cua__scatter_job *j,
				    const struct cua__scatter_cells *c, uint32_t target,
				    uint64_t bits, enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t i = target * c->copies + c->copy;
	uint64_t v;

	switch (cell) {
	case CUA__CELL_ADD32:
		cua_port_add_u32(c->word + i, (uint32_t)cua__scatter_integer(type, bits),
				 CUA__SCATTER_IN_BLOCK);
		break;
	case CUA__CELL_ADD64:
		cua__scatter_add64(c->word + i, c->word + c->cells + i,
				   (int64_t)cua__scatter_integer(type, bits));
		break;
	case CUA__CELL_MAX32:
		v = cua__scatter_key(j->s.op, j->s.result_type,
				     cua__scatter_widen(type, j->s.result_type, bits));
		cua_port_max_u32(c->word + i, (uint32_t)v, CUA__SCATTER_IN_BLOCK);
		break;
	case CUA__CELL_MAX64:
		v = cua__scatter_key(j->s.op, j->s.result_type,
				     cua__scatter_widen(type, j->s.result_type, bits));
		cua_port_max_u64((uint64_t *)c->word + i, v, CUA__SCATTER_IN_BLOCK);
		break;
	default: cua__scatter_add_float(j, c, target, bits, type, cell);
	}
}

#endif /* CUATOMIC_KERNELS_SCATTER_CELLS_H */
