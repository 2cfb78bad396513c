/* SPDX-License-Identifier: MIT */
/*
 * Traversals of the elements of a work item: each element of the item's targets is added to its cell.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_TRAVERSE_H
#define CUATOMIC_KERNELS_SCATTER_TRAVERSE_H

#include "kernels/scatter_cells.h"

/* Records that a thread loads at once, and steps of rows that a warp loads at once. */
#define CUA__SCATTER_LOADS 4u
/* Packs of 4 elements that a thread loads at once. */
#define CUA__SCATTER_PACKS 2u

/*
 * Adds elements to cells. Bit k of `mine` is set if element k exists. If not, its bits are 0, and its
 * target is any target with a cell.
 */
CUA_FORCE void cua__scatter_add(const struct cua__scatter_job *j,
				const struct cua__scatter_cells *c, const uint32_t *target,
				const uint64_t *bits, uint32_t mine, uint32_t n, enum cua_type type,
				enum cua__scatter_cell cell)
{
	if (cell == CUA__CELL_HALVES) {
		cua__scatter_add_halves(j, c, target, bits, n, type);
		return;
	}
	CUA__UNROLL
	for (uint32_t k = 0; k < n; k++)
		if (mine >> k & 1)
			cua__scatter_combine(j, c, target[k], bits[k], type, cell);
}

/*
 * Adds the elements of records, or of rows of a single element in the input, from `begin` on: as many
 * as a thread loads. Some belong to other sub-ranges. Returns the number of indexes in range. whole is
 * a constant: 1 if all of them exist.
 */
CUA_FORCE uint32_t cua__scatter_traverse_tile(const struct cua__scatter_job *j,
					      const struct cua__scatter_cells *c,
					      const struct cua__scatter_item *t, uint64_t begin,
					      uint32_t value_size, enum cua_type type,
					      enum cua__scatter_cell cell, int whole)
{
	const uint32_t threads = cua_port_block_size();
	uint32_t target[CUA__SCATTER_LOADS], mine = 0, inside = 0;
	uint64_t bits[CUA__SCATTER_LOADS];

	begin += cua_port_thread();
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__SCATTER_LOADS; k++) {
		const uint64_t i = begin + k * threads;

		target[k] = CUA__SCATTER_NONE;
		bits[k] = 0;
		if (!whole && i >= t->end)
			continue;
		if (!t->direct) {
			target[k] = CUA_READ(j->keys[i]) - t->local;
			bits[k] = cua__scatter_value(j->values, i, value_size);
		} else {
			const uint64_t index = cua__scatter_index(j, i);

			inside += index < j->limit;
			bits[k] = cua__scatter_element(j, i, c->size);
			if (index < j->limit && index - t->row < t->rows)
				target[k] = (uint32_t)(index - t->row);
		}
	}
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__SCATTER_LOADS; k++) {
		const int is = target[k] < t->rows;

		/* other elements become zeros in cells of their own lane, so that lanes do not part */
		mine |= (uint32_t)is << k;
		bits[k] = is ? bits[k] : 0;
		target[k] = is ? target[k] : cua_port_lane();
	}
	cua__scatter_add(j, c, target, bits, mine, CUA__SCATTER_LOADS, type, cell);
	return inside;
}

CUA_FORCE void cua__scatter_traverse_some(const struct cua__scatter_job *j,
					  const struct cua__scatter_cells *c,
					  const struct cua__scatter_item *t, uint32_t value_size,
					  enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t tile = CUA__SCATTER_LOADS * cua_port_block_size();
	uint64_t begin = t->begin;
	uint32_t inside = 0;

	for (; t->end - begin >= tile; begin += tile)
		inside += cua__scatter_traverse_tile(j, c, t, begin, value_size, type, cell, 1);
	if (begin < t->end)
		inside += cua__scatter_traverse_tile(j, c, t, begin, value_size, type, cell, 0);
	if (t->counts && inside)
		cua_port_add_u32(&c->sh->inside, inside, CUA__SCATTER_IN_BLOCK);
}

/* Adds 4 elements of the input; returns the number of indexes in range. */
CUA_FORCE uint32_t cua__scatter_add_pack(const struct cua__scatter_job *j,
					 const struct cua__scatter_cells *c,
					 const struct cua__pack *index, const struct cua__pack *x,
					 enum cua_type type, enum cua__scatter_cell cell)
{
	/* each target has a cell, so their number has 32 bits */
	const uint32_t limit = (uint32_t)j->limit;
	uint32_t target[4], mine = 0, inside = 0;
	uint64_t bits[4];

	CUA__UNROLL
	for (uint32_t k = 0; k < 4; k++) {
		const int is = index->word[k] < limit;

		target[k] = is ? index->word[k] : cua_port_lane();
		bits[k] = is ? x->word[k] : 0;
		mine |= (uint32_t)is << k;
		inside += (uint32_t)is;
	}
	cua__scatter_add(j, c, target, bits, mine, 4, type, cell);
	return inside;
}

/* Adds packs of 4 elements of the input, from `first` on in steps of the block. */
CUA_FORCE uint32_t cua__scatter_add_packs(const struct cua__scatter_job *j,
					  const struct cua__scatter_cells *c, uint64_t first,
					  uint32_t packs, enum cua_type type,
					  enum cua__scatter_cell cell)
{
	const struct cua__pack *index = (const struct cua__pack *)j->s.index + first;
	const struct cua__pack *x = (const struct cua__pack *)j->s.x + first;
	struct cua__pack at[CUA__SCATTER_PACKS], bits[CUA__SCATTER_PACKS];
	uint32_t inside = 0;

	CUA__UNROLL
	for (uint32_t k = 0; k < packs; k++) {
		at[k] = CUA_READ(index[k * cua_port_block_size()]);
		bits[k] = CUA_READ(x[k * cua_port_block_size()]);
	}
	CUA__UNROLL
	for (uint32_t k = 0; k < packs; k++)
		inside += cua__scatter_add_pack(j, c, &at[k], &bits[k], type, cell);
	return inside;
}

/* The rows of a single element in the input, if there is a single sub-range. */
CUA_FORCE void cua__scatter_traverse_all(const struct cua__scatter_job *j,
					 const struct cua__scatter_cells *c,
					 const struct cua__scatter_item *t, enum cua_type type,
					 enum cua__scatter_cell cell)
{
	const uint32_t threads = cua_port_block_size(), thread = cua_port_thread();
	uint64_t i = t->begin + thread, step = threads;
	uint32_t inside = 0;

	if (j->index_size == 4 && j->size == 4 && j->s.x &&
	    !(((uintptr_t)j->s.index | (uintptr_t)j->s.x) & 15)) {
		const uint64_t first = (t->begin + 3) / 4, last = t->end / 4;
		uint64_t p = first + thread;

		for (; p + (CUA__SCATTER_PACKS - 1) * threads < last;
		     p += CUA__SCATTER_PACKS * threads)
			inside += cua__scatter_add_packs(j, c, p, CUA__SCATTER_PACKS, type, cell);
		CUA__ROLLED
		for (; p < last; p += threads)
			inside += cua__scatter_add_packs(j, c, p, 1, type, cell);
		/* the elements before the first pack and after the last one */
		if (first <= last) {
			const uint32_t before = (uint32_t)(first * 4 - t->begin);

			i = thread < before ? t->begin + thread : last * 4 + thread - before;
			if (thread >= before + 4)
				i = t->end;
			step = t->end;
		}
	}
	CUA__ROLLED
	for (; i < t->end; i = step < t->end - i ? i + step : t->end) {
		const uint64_t at = cua__scatter_index(j, i);

		if (at < j->limit) {
			cua__scatter_combine(j, c, (uint32_t)at,
					     cua__scatter_element(j, i, c->size), type, cell);
			inside++;
		}
	}
	if (t->counts && inside)
		cua_port_add_u32(&c->sh->inside, inside, CUA__SCATTER_IN_BLOCK);
}

/* The rows and columns of a warp's lanes: a column each, of a single row or of several rows. */
struct cua__scatter_lanes {
	uint32_t wide;    /* lanes of a row */
	uint32_t mine;    /* the lane's column, and this one + 32 if it is a column */
	uint32_t of_step; /* the lane's row among those of a step */
	uint32_t value_size;
};

/*
 * Adds as many rows as the lanes load at once, from that of lane `from` on. Each lane has a row's first
 * cell, or NONE, and its number in x; for NONE it is the number of any row. whole is a constant: 1 if
 * the rows exist and have all columns of the tile, 64.
 */
CUA_FORCE void cua__scatter_add_rows(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c,
				     const struct cua__scatter_item *t, struct cua__scatter_lanes l,
				     uint32_t from, uint32_t cell_of, uint64_t row,
				     enum cua_type type, enum cua__scatter_cell cell, int whole)
{
	uint32_t target[2 * CUA__SCATTER_LOADS], mine = 0;
	uint64_t bits[2 * CUA__SCATTER_LOADS];

	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__SCATTER_LOADS; k++) {
		const uint32_t lane = whole ? from + k : from + k * (32 / l.wide) + l.of_step;
		const uint32_t first = cua_port_shuffle_u32(CUA__ALL_LANES, cell_of, lane & 31);
		uint64_t at;

		if (l.value_size == 4)
			at = cua_port_shuffle_u32(CUA__ALL_LANES, (uint32_t)row, lane & 31);
		else
			at = cua_port_shuffle_u64(CUA__ALL_LANES, row, lane & 31);
		at = at * j->s.width + t->column;
		CUA__UNROLL
		for (uint32_t q = 0; q < 2; q++) {
			const uint32_t column = l.mine + q * 32;
			const int is = whole || (lane < 32 && first != CUA__SCATTER_NONE &&
						 column < t->columns);

			mine |= (uint32_t)is << (2 * k + q);
			target[2 * k + q] = is ? first + column : cua_port_lane();
			/* some element of x if there is none, so that no load waits for another */
			bits[2 * k + q] = cua__scatter_load(
				j->s.x, at + (whole || column < t->columns ? column : 0), c->size);
		}
	}
	CUA__UNROLL
	for (uint32_t k = 0; !whole && k < 2 * CUA__SCATTER_LOADS; k++)
		bits[k] = mine >> k & 1 ? bits[k] : 0;
	CUA__UNROLL
	for (uint32_t k = 0; k < 2 * CUA__SCATTER_LOADS; k += 4)
		cua__scatter_add(j, c, target + k, bits + k, mine >> k, 4, type, cell);
}

/* The index of a row of the input, or the key of a record, and its number in x. */
struct cua__scatter_row {
	uint64_t at, row;
};

/* Loads row or record i; beyond the end, all bits of its index are set, and its number is 0. */
CUA_FORCE struct cua__scatter_row cua__scatter_load_row(const struct cua__scatter_job *j,
							const struct cua__scatter_item *t,
							uint64_t i, uint64_t end,
							uint32_t value_size)
{
	struct cua__scatter_row r = {~(uint64_t)0, 0};

	if (i >= end)
		return r;
	r.at = t->direct ? cua__scatter_index(j, i) : (uint64_t)CUA_READ(j->keys[i]);
	r.row = t->direct ? i : cua__scatter_value(j->values, i, value_size);
	return r;
}

/* The elements of rows. The warps have equal shares of the records. A warp reads 32 records at once. */
CUA_FORCE void cua__scatter_traverse_rows(const struct cua__scatter_job *j,
					  const struct cua__scatter_cells *c,
					  const struct cua__scatter_item *t, uint32_t value_size,
					  enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t warps = cua_port_block_size() / 32, warp = cua_port_thread() / 32;
	const uint32_t lane = cua_port_lane(), wide = j->columns < 32 ? j->columns : 32;
	const struct cua__scatter_lanes l = {wide, lane & (wide - 1), lane / wide, value_size};
	const uint64_t share = (t->end - t->begin + warps - 1) / warps;
	uint64_t begin = t->begin + warp * share, end = begin + share;
	struct cua__scatter_row next;
	uint32_t inside = 0;

	if (end > t->end)
		end = t->end;
	next = cua__scatter_load_row(j, t, begin + lane, end, value_size);
	for (; begin < end; begin += 32) {
		const uint32_t count = end - begin < 32 ? (uint32_t)(end - begin) : 32;
		const struct cua__scatter_row r = next;
		uint32_t first, all;
		uint64_t at = r.at;

		/* the next loads are on their way during the additions */
		next = cua__scatter_load_row(j, t, begin + 32 + lane, end, value_size);
		if (t->direct && at >= j->limit)
			at = ~(uint64_t)0;
		inside += at != ~(uint64_t)0;
		at -= t->direct ? t->row : t->local;
		first = at < t->rows ? (uint32_t)at * j->columns : CUA__SCATTER_NONE;
		all = cua_port_ballot(CUA__ALL_LANES, first != CUA__SCATTER_NONE);
		if (all == CUA__ALL_LANES && t->columns == 64)
			for (uint32_t k = 0; k < 32; k += CUA__SCATTER_LOADS)
				cua__scatter_add_rows(j, c, t, l, k, first, r.row, type, cell, 1);
		else
			for (uint32_t k = 0; k < count; k += CUA__SCATTER_LOADS * (32 / wide))
				cua__scatter_add_rows(j, c, t, l, k, first, r.row, type, cell, 0);
	}
	if (t->counts && inside)
		cua_port_add_u32(&c->sh->inside, inside, CUA__SCATTER_IN_BLOCK);
}

CUA_FORCE void cua__scatter_traverse(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c,
				     const struct cua__scatter_item *t, uint32_t value_size,
				     enum cua__scatter_path path, enum cua_type type,
				     enum cua__scatter_cell cell)
{
	if (path == CUA__SCATTER_ROWS)
		cua__scatter_traverse_rows(j, c, t, value_size, type, cell);
	else if (path == CUA__SCATTER_ALL)
		cua__scatter_traverse_all(j, c, t, type, cell);
	else
		cua__scatter_traverse_some(j, c, t, value_size, type, cell);
}

/* The numbers and digits of dirty cells, over the words of the cells. */
struct cua__scatter_digits {
	uint32_t *number; /* of each cell, or CUA__SCATTER_NONE */
	uint64_t *digit;
	uint32_t most;
};

/* Adds the elements of dirty cells with a number to their digits. */
CUA_FORCE void cua__scatter_traverse_dirty(const struct cua__scatter_job *j,
					   const struct cua__scatter_digits *d,
					   const struct cua__scatter_item *t, uint32_t value_size,
					   int rows, enum cua_type type)
{
	const uint64_t count = (t->end - t->begin) * j->columns;
	const uint32_t log = cua_port_ffs_u32(j->columns) - 1;

	CUA__ROLLED
	for (uint64_t e = cua_port_thread(); e < count; e += cua_port_block_size()) {
		const uint64_t i = t->begin + (e >> log);
		const uint32_t column = (uint32_t)e & (j->columns - 1);
		uint64_t at = t->direct ? cua__scatter_index(j, i) : (uint64_t)CUA_READ(j->keys[i]);
		uint64_t bits, row;
		uint32_t number;

		if (t->direct && at >= j->limit)
			continue;
		at -= t->direct ? t->row : t->local;
		if (at >= t->rows || column >= t->columns)
			continue;
		number = CUA_READ(d->number[at * j->columns + column]);
		if (number == CUA__SCATTER_NONE)
			continue;
		row = t->direct ? i : rows ? cua__scatter_value(j->values, i, value_size) : 0;
		if (rows || t->direct)
			bits = cua__scatter_element(j, row * j->s.width + t->column + column,
						    j->size);
		else
			bits = cua__scatter_value(j->values, i, value_size);
		cua__scatter_add_exact(j, d->digit + (uint64_t)number * j->digits,
				       cua__scatter_parts(type, bits), CUA_SCOPE_BLOCK,
				       CUA_SPACE_SHARED);
	}
}

#endif /* CUATOMIC_KERNELS_SCATTER_TRAVERSE_H */
