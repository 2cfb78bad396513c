/* SPDX-License-Identifier: MIT */
/*
 * The cells of a scatter in shared memory: windows of floats, integers and keys; and digits in shared
 * or global memory. The argument is in scatter_kernel.h.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_CELLS_H
#define CUATOMIC_KERNELS_SCATTER_CELLS_H

#include "kernels/halves.h"
#include "kernels/scatter_partition.h"
#include "kernels/scatter_values.h"

/* Elements that cua__scatter_add_halves takes at most. */
#define CUA__SCATTER_HALVES 4u
/* Carries from which on a cell of halves is relieved: half of the most that it can hold. */
#ifndef CUA__SCATTER_CARRIES
#define CUA__SCATTER_CARRIES (1 << 14)
#endif
/* Elements of a block's list. */
#ifndef CUA__SCATTER_ODD
#define CUA__SCATTER_ODD 64u
#endif
/* Powers of two between the largest sampled element and the limit of a window. */
#define CUA__SCATTER_ROOM 4
/* Bits of an element in the lower of two windows. */
#define CUA__SCATTER_LOW_BITS 50
/* 1.5 * 2^52: the bits of v + this, less its own, are the integer nearest to v, below 2^51. */
#define CUA__SCATTER_MAGIC 6755399441055744.0
#define CUA__SCATTER_MAGIC_HIGH 0x43380000u

CUA_FORCE int cua__scatter_is_float(enum cua__scatter_cell cell)
{
	return cell == CUA__CELL_HALVES || cell == CUA__CELL_WINDOWS;
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

/* An element that its cell of halves does not hold. */
struct cua__scatter_odd {
	uint32_t target, bits;
};

/* Shared memory of an accumulation; the words of the cells follow. */
struct cua__scatter_block {
	struct cua__scatter_item item;
	uint32_t region;
	uint32_t top;   /* of the sampled elements */
	uint32_t dirty; /* dirty cells that have a number in this round */
	uint32_t again; /* 1: the elements of dirty cells are added again */
	uint32_t odds;  /* elements for the list, which may lack room */
	uint32_t inside;
	uint32_t last;
	uint32_t reserved;
	struct cua__scatter_odd odd[CUA__SCATTER_ODD];
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
	case CUA__CELL_HALVES: return 3;
	case CUA__CELL_WINDOWS: return 4;
	default: return 2;
	}
}

/* A block's view of its cells. */
struct cua__scatter_cells {
	struct cua__scatter_block *sh;
	uint32_t *word; /* planes of `cells` words */
	uint32_t cells;
	uint32_t size;   /* of an element; a constant if its type is */
	uint32_t copies; /* of a target's cell, a power of two up to 32; each lane has one */
	int at;          /* of a float: the position of the lower unit */
	/* WINDOWS: the unit 2^k and 2^-k, of the upper window */
	double unit, scale;
	/* of the lower unit */
	double low_unit, low_scale;
	struct cua__halves halves; /* HALVES */
	uint64_t *share;           /* shared cells, or NULL */
	uint32_t share_words;
};

/* The caller's copy of the cell of a target. */
CUA_FORCE uint32_t cua__scatter_copy(const struct cua__scatter_cells *c, uint32_t target)
{
	return target * c->copies + (cua_port_lane() & (c->copies - 1));
}

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

/* Makes a cell dirty. again: 1 if its elements must be added again. */
CUA_FORCE void cua__scatter_make_dirty(struct cua__scatter_block *sh, uint32_t target, int again)
{
	cua_port_or_b32(&sh->is_dirty[target / 32], 1u << target % 32, CUA__SCATTER_IN_BLOCK);
	if (again)
		cua_port_store_b32(&sh->again, 1, CUA__SCATTER_IN_BLOCK);
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
		cua__scatter_make_dirty(c->sh, target, 1);
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
		cua__scatter_make_dirty(c->sh, target, 1);
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

	if (cell == CUA__CELL_HALVES) {
		c->halves = cua__halves_window(cua__halves_limit(top - CUA__EXACT_POINT + 127));
		low = c->halves.at - CUA__EXACT_POINT;
	} else {
		k = k > 960 ? 960 : k < -960 ? -960 : k;
		low = k - CUA__SCATTER_LOW_BITS;
		c->unit = cua__scatter_power(k);
		c->scale = cua__scatter_power(-k);
	}
	c->low_unit = cua__scatter_power(low);
	c->low_scale = cua__scatter_power(-low);
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

/* Adds an element of f64 to both windows of a cell. */
CUA_FORCE void cua__scatter_add_windows(const struct cua__scatter_job *j,
					const struct cua__scatter_cells *c, uint32_t target,
					uint64_t bits)
{
	const double d = cua__from_bits_f64(bits);
	const double t = cua_port_fma_rn_f64(d, c->scale, CUA__SCATTER_MAGIC);
	const double upper = cua_port_sub_rn_f64(t, CUA__SCATTER_MAGIC);
	/* exact: a multiple of the last bit of d, and at most half a unit */
	const double rest = cua_port_fma_rn_f64(-upper, c->unit, d);
	const int64_t v = cua__scatter_magic_integer(cua__bits_f64(t));
	uint32_t *low = c->word + cua__scatter_copy(c, target), *high = low + c->cells;
	int64_t v_low;
	int by;

	if (!cua__scatter_is_magic(cua__bits_f64(t)) ||
	    !cua__scatter_fits(rest, c->low_unit, c->low_scale, &v_low)) {
		cua__scatter_misfit(j, c, target, cua__scatter_parts(CUA_F64, bits));
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

/* ---- cells of halves: the upper and the lower sum, and the carries of both ---- */

/* The carries of the lower sum, as a word of 16 bits with sign; the rest are carries of the upper sum. */
CUA_FORCE int32_t cua__scatter_low_carries(uint32_t carries)
{
	return (int16_t)(uint16_t)carries;
}

CUA_FORCE int32_t cua__scatter_high_carries(uint32_t carries)
{
	return (int32_t)(carries - (uint32_t)cua__scatter_low_carries(carries)) >> 16;
}

/* The place of parts of a sum that a cell of halves cannot hold: digits, or the cell becomes dirty. */
struct cua__scatter_rest {
	uint64_t *digit; /* of the shared cell, or NULL */
	struct cua__scatter_block *sh;
	uint32_t target;
};

/* Adds to the carries of a cell. While there are too many, a thread that sees that moves them. */
CUA_FORCE void cua__scatter_add_carries(struct cua__scatter_rest r, uint32_t *carries,
					uint32_t more, int at)
{
	const int32_t most = CUA__SCATTER_CARRIES;
	uint32_t sum = cua_port_fetch_add_u32(carries, more, CUA__SCATTER_IN_BLOCK) + more;

	for (;;) {
		const int32_t low = cua__scatter_low_carries(sum);
		const int32_t high = cua__scatter_high_carries(sum);
		uint32_t seen;

		if (low < most && low > -most && high < most && high > -most)
			return;
		if (!r.digit) {
			cua__scatter_make_dirty(r.sh, r.target, 1);
			return;
		}
		seen = cua_port_cas_b32(carries, sum, 0, CUA__SCATTER_IN_BLOCK);
		if (seen == sum) {
			cua__scatter_add_digits(r.digit, low < 0, (uint64_t)(low < 0 ? -low : low),
						at + 32, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			cua__scatter_add_digits(
				r.digit, high < 0, (uint64_t)(high < 0 ? -high : high),
				at + 32 + CUA__HALVES_LOW, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			return;
		}
		sum = seen;
	}
}

/* An element as f32; exact. */
CUA_FORCE uint32_t cua__scatter_f32_bits(enum cua_type type, uint64_t bits)
{
	return type == CUA_F32 ? (uint32_t)bits : cua__bits_f32(cua__element_f32(type, bits));
}

/* Adds an element to the list of the block. Without room, it is added again. */
CUA_FORCE void cua__scatter_add_odd(struct cua__scatter_block *sh, uint32_t target, uint32_t bits)
{
	const uint32_t at = cua_port_fetch_add_u32(&sh->odds, 1, CUA__SCATTER_IN_BLOCK);

	cua__scatter_make_dirty(sh, target, at >= CUA__SCATTER_ODD);
	if (at >= CUA__SCATTER_ODD)
		return;
	CUA_WRITE(sh->odd[at].target, target);
	CUA_WRITE(sh->odd[at].bits, bits);
}

/* Completes the addition of an element to halves that had these old values. */
CUA__RARE void cua__scatter_complete(const struct cua__scatter_job *j, struct cua__scatter_rest r,
				     uint32_t *carries, enum cua_type type, uint64_t bits,
				     const uint32_t old_high, const uint32_t old_low,
				     uint32_t limit)
{
	const struct cua__halves w = cua__halves_window((int)(limit >> 23));
	uint32_t high, low, more = 0;

	if (!cua__halves_split(CUA_F32, cua__scatter_f32_bits(type, bits), &w, &high, &low)) {
		if (r.digit)
			cua__scatter_add_exact(j, r.digit, cua__scatter_parts(type, bits),
					       CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		else
			cua__scatter_add_odd(r.sh, r.target, (uint32_t)bits);
		return;
	}
	if (cua__halves_passed(old_high, high) >> 31)
		more += high >> 31 ? 0 - 0x10000u : 0x10000u;
	if (cua__halves_passed(old_low, low) >> 31)
		more += low >> 31 ? 0 - 1u : 1u;
	cua__scatter_add_carries(r, carries, more, w.at - 32 * cua__scatter_low(j->sum_type));
}

CUA_FORCE struct cua__scatter_rest cua__scatter_rest_of(const struct cua__scatter_cells *c,
							uint32_t target)
{
	struct cua__scatter_rest r;

	r.digit = c->share ? c->share + (uint64_t)target * c->share_words : NULL;
	r.sh = c->sh;
	r.target = target;
	return r;
}

/*
 * Adds elements of a float type to cells of halves. They are completed after all additions, by one
 * branch. n and type are constants.
 */
CUA_FORCE void cua__scatter_add_halves(const struct cua__scatter_job *j,
				       const struct cua__scatter_cells *c, const uint32_t *target,
				       const uint64_t *bits, uint32_t n, enum cua_type type)
{
	uint32_t old[CUA__SCATTER_HALVES][2], odd = 0;

	CUA__UNROLL
	for (uint32_t k = 0; k < n; k++) {
		uint32_t *word = c->word + cua__scatter_copy(c, target[k]);

		odd |= cua__halves_add(CUA_F32, cua__scatter_f32_bits(type, bits[k]), &c->halves,
				       word, word + c->cells, old[k]);
	}
	CUA__UNROLL
	for (uint32_t k = 0; odd >> 31 && k < n; k++)
		cua__scatter_complete(j, cua__scatter_rest_of(c, target[k]),
				      c->word + 2 * c->cells + cua__scatter_copy(c, target[k]),
				      type, bits[k], old[k][0], old[k][1], c->halves.limit);
}

/* Adds an element; type is a constant if it is a float type and is added. */
CUA_FORCE void cua__scatter_combine(const struct cua__scatter_job *j,
				    const struct cua__scatter_cells *c, uint32_t target,
				    uint64_t bits, enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t i = cua__scatter_copy(c, target);
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
	case CUA__CELL_HALVES: cua__scatter_add_halves(j, c, &target, &bits, 1, type); break;
	default: cua__scatter_add_windows(j, c, target, bits);
	}
}

#endif /* CUATOMIC_KERNELS_SCATTER_CELLS_H */
