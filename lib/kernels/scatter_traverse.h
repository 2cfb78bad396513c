/* SPDX-License-Identifier: MIT */
/*
 * Traversals of the elements of a work item: each element of the item's targets is added to its cell.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_TRAVERSE_H
#define CUATOMIC_KERNELS_SCATTER_TRAVERSE_H

#include "kernels/scatter_cells.h"

/* Records that a thread loads at once. */
#define CUA__SCATTER_LOADS 2u
/* Rows that a warp loads at once, in steps of as many rows as its lanes have. */
#define CUA__SCATTER_ROW_LOADS 4u

/*
 * The elements of records, or of rows of a single element in the input. Many of them belong to other
 * sub-ranges. So each warp collects its elements, and then all of its lanes add.
 */
CUA_FORCE void cua__scatter_traverse_some(const struct cua__scatter_job *j,
					  const struct cua__scatter_cells *c,
					  const struct cua__scatter_item *t, uint32_t value_size,
					  enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t threads = cua_port_block_size(), thread = cua_port_thread();
	const uint32_t lane = cua_port_lane();
	struct cua__scatter_queue *q = c->queue + thread / 32;
	uint32_t *q_high = c->queue_high + thread / 32 * CUA__SCATTER_QUEUE;
	uint32_t head = 0, tail = 0, inside = 0;

	for (uint64_t begin = t->begin + thread / 32 * 32; begin < t->end || head != tail;
	     begin += CUA__SCATTER_LOADS * threads) {
		const uint32_t least = begin < t->end ? 32 : 1;
		uint32_t at[CUA__SCATTER_LOADS];
		uint64_t bits[CUA__SCATTER_LOADS];

		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__SCATTER_LOADS; k++) {
			const uint64_t i = begin + k * threads + lane;

			at[k] = CUA__SCATTER_NONE;
			if (i < t->end && !t->direct)
				at[k] = CUA_READ(j->keys[i]) - t->local;
			else if (i < t->end) {
				const uint64_t index = cua__scatter_index(j, i);

				inside += index < j->limit;
				if (index < j->limit && index - t->row < t->rows)
					at[k] = (uint32_t)(index - t->row);
			}
		}
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__SCATTER_LOADS; k++) {
			const uint64_t i = begin + k * threads + lane;

			bits[k] = 0;
			if (at[k] < t->rows)
				bits[k] = t->direct ? cua__scatter_element(j, i, c->size)
						    : cua__scatter_value(j->values, i, value_size);
		}
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__SCATTER_LOADS; k++) {
			const uint32_t kept = cua_port_ballot(CUA__ALL_LANES, at[k] < t->rows);
			const uint32_t to = (tail + cua_port_popc_u32(kept & ((1u << lane) - 1))) &
					    (CUA__SCATTER_QUEUE - 1);

			if (kept >> lane & 1) {
				CUA_WRITE(q->target[to], at[k]);
				CUA_WRITE(q->low[to], (uint32_t)bits[k]);
				if (value_size == 8)
					CUA_WRITE(q_high[to], (uint32_t)(bits[k] >> 32));
			}
			tail += cua_port_popc_u32(kept);
		}
		cua_port_sync_warp(CUA__ALL_LANES);
		while (tail - head >= least) {
			const uint32_t from = (head + lane) & (CUA__SCATTER_QUEUE - 1);
			const uint32_t count = tail - head < 32 ? tail - head : 32;

			if (lane < count) {
				uint64_t v = CUA_READ(q->low[from]);

				if (value_size == 8)
					v |= (uint64_t)CUA_READ(q_high[from]) << 32;
				cua__scatter_combine(j, c, CUA_READ(q->target[from]), v, type,
						     cell);
			}
			head += count;
		}
		/* the entries may be overwritten now */
		cua_port_sync_warp(CUA__ALL_LANES);
	}
	if (t->counts && inside)
		cua_port_add_u32(&c->sh->inside, inside, CUA__SCATTER_IN_BLOCK);
}

/* Adds 4 elements of the input; returns how many have an index in range. */
CUA_FORCE uint32_t cua__scatter_add_pack(const struct cua__scatter_job *j,
					 const struct cua__scatter_cells *c,
					 const struct cua__pack *index, const struct cua__pack *x,
					 enum cua_type type, enum cua__scatter_cell cell)
{
	uint32_t inside = 0;

	if (cell == CUA__CELL_HALVES) {
		uint32_t target[4];
		uint64_t bits[4];

		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++) {
			target[k] = index->word[k] < j->limit ? index->word[k] : CUA__SCATTER_NONE;
			bits[k] = x->word[k];
			inside += target[k] != CUA__SCATTER_NONE;
		}
		cua__scatter_add_halves(j, c, target, bits, 4, type);
		return inside;
	}
	CUA__UNROLL
	for (uint32_t k = 0; k < 4; k++)
		if (index->word[k] < j->limit) {
			cua__scatter_combine(j, c, index->word[k], x->word[k], type, cell);
			inside++;
		}
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
		const struct cua__pack *index = (const struct cua__pack *)j->s.index;
		const struct cua__pack *x = (const struct cua__pack *)j->s.x;
		const uint64_t first = (t->begin + 3) / 4, last = t->end / 4;
		struct cua__pack a, u;

		if (first + thread < last) {
			a = CUA_READ(index[first + thread]);
			u = CUA_READ(x[first + thread]);
		}
		for (uint64_t p = first + thread; p < last; p += threads) {
			const struct cua__pack b = a, v = u;

			if (p + threads < last) {
				a = CUA_READ(index[p + threads]);
				u = CUA_READ(x[p + threads]);
			}
			inside += cua__scatter_add_pack(j, c, &b, &v, type, cell);
		}
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

/* Adds columns `mine` and `mine` + 32, if there are such, of rows that begin at these targets. */
CUA_FORCE void cua__scatter_add_rows(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c, const uint32_t *target,
				     const uint64_t *bits, uint32_t mine, uint32_t columns,
				     enum cua_type type, enum cua__scatter_cell cell)
{
	uint32_t at[2 * CUA__SCATTER_ROW_LOADS];

	CUA__UNROLL
	for (uint32_t k = 0; k < 2 * CUA__SCATTER_ROW_LOADS; k++) {
		const uint32_t right = k % 2 * 32;

		at[k] = CUA__SCATTER_NONE;
		if (target[k / 2] != CUA__SCATTER_NONE && mine + right < columns)
			at[k] = target[k / 2] + right;
	}
	CUA__UNROLL
	for (uint32_t k = 0; cell == CUA__CELL_HALVES && k < 2 * CUA__SCATTER_ROW_LOADS;
	     k += CUA__SCATTER_HALVES)
		cua__scatter_add_halves(j, c, at + k, bits + k, CUA__SCATTER_HALVES, type);
	CUA__UNROLL
	for (uint32_t k = 0; cell != CUA__CELL_HALVES && k < 2 * CUA__SCATTER_ROW_LOADS; k++)
		if (at[k] != CUA__SCATTER_NONE)
			cua__scatter_combine(j, c, at[k], bits[k], type, cell);
}

/*
 * The elements of rows. The warps have equal shares of the records. A warp reads 32 records at once;
 * its lanes then have a column each, or several rows with a column each if rows are narrow.
 */
CUA_FORCE void cua__scatter_traverse_rows(const struct cua__scatter_job *j,
					  const struct cua__scatter_cells *c,
					  const struct cua__scatter_item *t, uint32_t value_size,
					  enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t warps = cua_port_block_size() / 32, warp = cua_port_thread() / 32;
	const uint32_t lane = cua_port_lane();
	const uint64_t share = (t->end - t->begin + warps - 1) / warps;
	/* lanes of a row, and rows of a step */
	const uint32_t wide = j->columns < 32 ? j->columns : 32, step = 32 / wide;
	const uint32_t mine = lane & (wide - 1), of_step = lane / wide;
	uint64_t begin = t->begin + warp * share, end = begin + share;
	uint32_t inside = 0;

	if (end > t->end)
		end = t->end;
	for (; begin < end; begin += 32) {
		uint64_t at = ~(uint64_t)0, row = 0;
		const uint64_t i = begin + lane;
		uint32_t kept;

		if (i < end) {
			at = t->direct ? cua__scatter_index(j, i) : (uint64_t)CUA_READ(j->keys[i]);
			row = t->direct ? i : cua__scatter_value(j->values, i, value_size);
			if (t->direct && at >= j->limit)
				at = ~(uint64_t)0;
			else
				inside++;
			at -= t->direct ? t->row : t->local;
		}
		kept = cua_port_ballot(CUA__ALL_LANES, at < t->rows);
		while (kept) {
			uint64_t bits[CUA__SCATTER_ROW_LOADS][2];
			uint32_t target[CUA__SCATTER_ROW_LOADS];

			CUA__UNROLL
			for (uint32_t k = 0; k < CUA__SCATTER_ROW_LOADS; k++) {
				uint32_t from = 32;
				uint64_t x;

				for (uint32_t s = 0; s < step; s++) {
					if (s == of_step && kept)
						from = cua_port_ffs_u32(kept) - 1;
					kept &= kept - 1;
				}
				target[k] = from < 32 ? 0 : CUA__SCATTER_NONE;
				x = cua_port_shuffle_u64(CUA__ALL_LANES, row, from & 31) *
					    j->s.width +
				    t->column + mine;
				from = cua_port_shuffle_u32(CUA__ALL_LANES, (uint32_t)at,
							    from & 31);
				if (!target[k])
					target[k] = from * j->columns + mine;
				CUA__UNROLL
				for (uint32_t q = 0; q < 2; q++) {
					bits[k][q] = 0;
					if (target[k] != CUA__SCATTER_NONE &&
					    mine + q * 32 < t->columns)
						bits[k][q] = cua__scatter_element(j, x + q * 32,
										  c->size);
				}
			}
			cua__scatter_add_rows(j, c, target, &bits[0][0], mine, t->columns, type,
					      cell);
		}
	}
	if (t->counts && inside)
		cua_port_add_u32(&c->sh->inside, inside, CUA__SCATTER_IN_BLOCK);
}

CUA_FORCE void cua__scatter_traverse(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c,
				     const struct cua__scatter_item *t, uint32_t value_size,
				     int rows, enum cua_type type, enum cua__scatter_cell cell)
{
	if (rows)
		cua__scatter_traverse_rows(j, c, t, value_size, type, cell);
	else if (t->direct && j->regions == 1 && !j->subs)
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

	CUA__ROLLED
	for (uint64_t e = cua_port_thread(); e < count; e += cua_port_block_size()) {
		const uint64_t i = t->begin + e / j->columns;
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
