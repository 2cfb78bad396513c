/* SPDX-License-Identifier: MIT */
/*
 * The kernels of a scatter (scatter_job.h): count the records of each region, plan the passes,
 * partition the records of a pass by region, and accumulate them.
 *
 * Accumulation: a block has a cell in shared memory for each target of a sub-range. A sum of floats
 * has windows: signed integers in units of powers of two that the block chooses for the elements that
 * it sees first. Sums of f64 have two integers of 64 bits. Sums of narrower floats have two of 32
 * bits, the halves of the sum, and a word with the carries of both (halves.h). An element fits if it is
 * a multiple of the lower unit and not too large. A cell that gets an element that does not fit, or
 * whose integers overflow, is dirty. Few such elements of halves are in a list of the block, and added
 * to the sum of their cell. Else the elements of dirty cells are added again, to digits like those of
 * struct cua_exact, by a second traversal of the block's elements. So the result depends on the
 * elements alone, and the windows only on the speed.
 *
 * If a sub-range has many elements, several blocks share it. Each adds its cells to digits in global
 * memory, and the block that arrives last rounds them. There an element that does not fit, or an
 * overflow, is added to the digits at once.
 *
 * Argument: all additions are atomic additions of integers, so their order does not matter. A cell
 * of two words: the lower word's addition returns the old value, so exactly a single addition sees
 * each carry and adds it to the upper word. The upper word is the sum of all that was added to it
 * modulo 2^32, and each addition that passes the limits of an int32_t sees that, because it gets
 * the old value. The same holds for each half, whose carries are added to a third word by the
 * additions that see them. While these carries are many, each thread that sees that moves all of
 * them to the digits of a shared cell, by a compare-and-swap, so only what is there. A digit of
 * 2^62 or more in magnitude is reduced by each thread that sees it: it moves 2^62 to the next digit
 * as 2^30, by a compare-and-swap, so only if the digit is still that large. A thread has a single
 * addition under way, so a digit stays below 2^62 + 2^32 times the threads of the device. Barriers
 * separate clearing, adding and rounding within a block. Between blocks the arrival counter does:
 * each block adds to the digits, passes a barrier and then adds 1 with release; the last block
 * acquires, passes a barrier, and reads.
 *
 * Scope: the device. Progress: no thread waits for another block.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_KERNEL_H
#define CUATOMIC_KERNELS_SCATTER_KERNEL_H

#include "kernels/scatter_results.h"
#include "kernels/scatter_traverse.h"

/* The leading bit of an element that the calling thread samples, or 0. */
CUA_FORCE uint32_t cua__scatter_sample(const struct cua__scatter_job *j,
				       const struct cua__scatter_item *t, uint32_t value_size,
				       int rows, enum cua_type type, uint32_t samples)
{
	const uint64_t i = t->begin + (t->end - t->begin) / samples * cua_port_thread();
	struct cua__exact_parts p;
	uint64_t bits;

	if (cua_port_thread() >= samples || i >= t->end)
		return 0;
	if (!rows)
		bits = t->direct ? cua__scatter_element(j, i, j->size)
				 : cua__scatter_value(j->values, i, value_size);
	else
		bits = cua__scatter_element(
			j,
			(t->direct ? i : cua__scatter_value(j->values, i, value_size)) *
					j->s.width +
				t->column + cua_port_thread() % t->columns,
			j->size);
	p = cua__scatter_parts(type, bits);
	return p.flags || !p.mantissa ? 0 : (uint32_t)(p.at + cua__fraction_bits(type));
}

/* Takes the next work item of pass `number`, or of a call of a single region. */
CUA_FORCE void cua__scatter_take(const struct cua__scatter_job *j, uint32_t number,
				 struct cua__scatter_block *sh)
{
	const uint32_t thread = cua_port_thread(), groups = j->tiles << j->subs;
	struct cua__scatter_item *t = &sh->item;
	struct cua__scatter_pass p = {0, 1, 1, 0};
	uint64_t item, length;
	uint32_t group, part, sub, tile;

	/* not `next`: other blocks add to it */
	if (j->regions > 1) {
		p.first = CUA_READ(j->pass[number].first);
		p.end = CUA_READ(j->pass[number].end);
		p.direct = CUA_READ(j->pass[number].direct);
	}
	if (thread == 0)
		CUA_WRITE(sh->region, cua_port_fetch_add_u32(j->regions > 1 ? &j->pass[number].next
									    : &j->state->next,
							     1, CUA__SCATTER_ON_DEVICE));
	cua_port_sync_block();
	item = CUA_READ(sh->region);
	cua_port_sync_block();
	if (thread == 0)
		CUA_WRITE(sh->region, j->regions > 1 ? CUA__SCATTER_NONE
				      : item < (uint64_t)j->direct_parts * groups
					      ? 0
					      : CUA__SCATTER_NONE);
	if (j->regions > 1) {
		item += CUA_READ(j->items[p.first]);
		cua_port_sync_block();
		for (uint32_t r = p.first + thread; r < p.end; r += cua_port_block_size())
			if (CUA_READ(j->items[r]) <= item && item < CUA_READ(j->items[r + 1]))
				CUA_WRITE(sh->region, r);
	}
	cua_port_sync_block();
	if (thread == 0) {
		const uint32_t r = CUA_READ(sh->region);

		CUA_WRITE(t->valid, r != CUA__SCATTER_NONE);
		if (r != CUA__SCATTER_NONE) {
			uint64_t begin = 0;

			length = j->s.n;
			CUA_WRITE(t->parts, j->direct_parts);
			if (j->regions > 1) {
				item -= CUA_READ(j->items[r]);
				CUA_WRITE(t->parts, (uint32_t)((CUA_READ(j->items[r + 1]) -
								CUA_READ(j->items[r])) /
							       groups));
				if (!p.direct) {
					begin = CUA_READ(j->before[r]) -
						CUA_READ(j->before[p.first]);
					length =
						CUA_READ(j->before[r + 1]) - CUA_READ(j->before[r]);
				}
			}
			group = (uint32_t)item % groups;
			part = (uint32_t)item / groups;
			sub = group & ((1u << j->subs) - 1);
			tile = group >> j->subs;
			{
				const uint64_t each = length / CUA_READ(t->parts);
				const uint64_t more = length % CUA_READ(t->parts);

				begin += each * part + (part < more ? part : more);
				CUA_WRITE(t->begin, begin);
				CUA_WRITE(t->end, begin + each + (part < more));
			}
			CUA_WRITE(t->local, sub << j->span);
			{
				const uint64_t row = ((uint64_t)r << (j->span + j->subs)) +
						     ((uint64_t)sub << j->span);
				const uint64_t left = row < j->s.targets ? j->s.targets - row : 0;

				CUA_WRITE(t->row, row);
				CUA_WRITE(t->rows,
					  left < (1u << j->span) ? (uint32_t)left : 1u << j->span);
			}
			CUA_WRITE(t->column, tile * j->columns);
			CUA_WRITE(t->columns, j->s.width - tile * j->columns < j->columns
						      ? j->s.width - tile * j->columns
						      : j->columns);
			CUA_WRITE(t->share, (j->regions > 1 ? CUA_READ(j->shares[r]) -
								      CUA_READ(j->shares[p.first])
							    : 0) +
						    group);
			CUA_WRITE(t->direct, (int)p.direct);
			CUA_WRITE(t->counts, j->regions == 1 && group == 0);
		}
	}
	cua_port_sync_block();
}

/* Whether any cell is dirty; a barrier of the block. */
CUA_FORCE int cua__scatter_has_dirty(const struct cua__scatter_cells *c)
{
	const uint32_t words = (c->cells / c->copies + 31) / 32;
	uint32_t mine = 0;

	for (uint32_t w = cua_port_thread(); w < words; w += cua_port_block_size())
		mine |= CUA_READ(c->sh->is_dirty[w]);
	return (int)cua_port_sync_block_or(mine != 0);
}

/*
 * Stores the results of dirty cells of halves from these and the list, if they lack no other element. A
 * thread has the first entry of a target.
 */
CUA__RARE void cua__scatter_put_odds(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c,
				     const struct cua__scatter_item *t, int rows,
				     enum cua_type type)
{
	for (uint32_t k = cua_port_thread(); k < CUA_READ(c->sh->odds);
	     k += cua_port_block_size()) {
		const uint32_t cell = CUA_READ(c->sh->odd[k].target);
		uint32_t first = 0;

		while (CUA_READ(c->sh->odd[first].target) != cell)
			first++;
		if (first == k)
			cua__scatter_put_odd(j, c, cua__scatter_target(j, t, cell, rows), k, type);
	}
}

/* Adds the elements of dirty cells to digits, and stores the results, in rounds. */
CUA__RARE void cua__scatter_dirty(const struct cua__scatter_job *j,
				  const struct cua__scatter_cells *c,
				  const struct cua__scatter_item *t, uint32_t value_size, int rows,
				  enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t targets = c->cells / c->copies, dirty_words = (targets + 31) / 32;
	const uint32_t words = cua__scatter_cell_words(cell) * c->cells;
	struct cua__scatter_digits d;

	d.number = c->word;
	d.digit = (uint64_t *)(c->word + ((targets + 1) & ~1u));
	d.most = (words - ((targets + 1) & ~1u)) / 2 / j->digits;
	do {
		for (uint32_t i = thread; i < words; i += threads)
			CUA_WRITE(c->word[i], i < targets ? CUA__SCATTER_NONE : 0u);
		if (thread == 0)
			CUA_WRITE(c->sh->dirty, 0u);
		cua_port_sync_block();
		for (uint32_t w = thread; w < dirty_words; w += threads) {
			uint32_t left = 0;

			for (uint32_t bits = CUA_READ(c->sh->is_dirty[w]); bits; bits &= bits - 1) {
				const uint32_t bit = cua_port_ffs_u32(bits) - 1;
				const uint32_t number = cua_port_fetch_add_u32(
					&c->sh->dirty, 1, CUA__SCATTER_IN_BLOCK);

				if (number < d.most)
					CUA_WRITE(d.number[w * 32 + bit], number);
				else
					left |= 1u << bit;
			}
			CUA_WRITE(c->sh->is_dirty[w], left);
		}
		cua_port_sync_block();
		cua__scatter_traverse_dirty(j, &d, t, value_size, rows, type);
		cua_port_sync_block();
		for (uint32_t i = thread; i < targets; i += threads) {
			const uint32_t number = CUA_READ(d.number[i]);
			const uint64_t target = cua__scatter_target(j, t, i, rows);

			if (number != CUA__SCATTER_NONE && target != ~(uint64_t)0)
				cua__scatter_put_digits(j, target,
							d.digit + (uint64_t)number * j->digits);
		}
		cua_port_sync_block();
	} while (cua__scatter_has_dirty(c));
}

/*
 * Stores the results of shared cells of floats. The digits are copied to shared memory, in place of the
 * block's cells, because a sum reads and changes each of them. They stay in global memory if there is
 * room for the targets of few threads only.
 */
CUA_FORCE void cua__scatter_put_shared(const struct cua__scatter_job *j,
				       const struct cua__scatter_cells *c,
				       const struct cua__scatter_item *t, int rows,
				       enum cua__scatter_cell cell)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t targets = c->cells / c->copies;
	const uint32_t most = cua__scatter_cell_words(cell) * c->cells / 2 / j->digits;
	uint64_t *digit = (uint64_t *)(void *)c->word;

	if (most < threads / 4) {
		for (uint32_t i = thread; i < targets; i += threads) {
			const uint64_t target = cua__scatter_target(j, t, i, rows);

			if (target != ~(uint64_t)0)
				cua__scatter_put_digits(j, target,
							c->share + (uint64_t)i * j->digits);
		}
		return;
	}
	for (uint32_t first = 0; first < targets; first += most) {
		const uint32_t count = targets - first < most ? targets - first : most;
		const uint64_t *from = c->share + (uint64_t)first * j->digits;

		for (uint32_t i = thread; i < count * j->digits; i += 8 * threads) {
			uint64_t v[8];

			CUA__UNROLL
			for (uint32_t k = 0; k < 8; k++)
				v[k] = i + k * threads < count * j->digits
					       ? CUA_READ(from[i + k * threads])
					       : 0;
			CUA__UNROLL
			for (uint32_t k = 0; k < 8; k++)
				if (i + k * threads < count * j->digits)
					CUA_WRITE(digit[i + k * threads], v[k]);
		}
		cua_port_sync_block();
		for (uint32_t i = thread; i < count; i += threads) {
			const uint64_t target = cua__scatter_target(j, t, first + i, rows);

			if (target != ~(uint64_t)0)
				cua__scatter_put_digits(j, target, digit + i * j->digits);
		}
		cua_port_sync_block();
	}
}

/* Adds the block's cells to the shared cells; the last block stores the results. */
CUA__RARE void cua__scatter_share(const struct cua__scatter_job *j,
				  const struct cua__scatter_cells *c,
				  const struct cua__scatter_item *t, int rows,
				  enum cua__scatter_cell cell)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t targets = c->cells / c->copies;

	for (uint32_t i = thread; i < targets; i += threads)
		if (cua__scatter_target(j, t, i, rows) != ~(uint64_t)0)
			cua__scatter_share_cell(j, c, i, cell);
	cua_port_sync_block();
	if (thread == 0)
		CUA_WRITE(c->sh->last, cua_port_fetch_add_u32(&j->state->arrived[t->share], 1,
							      CUA_ACQ_REL, CUA_SCOPE_DEVICE,
							      CUA_SPACE_GLOBAL) == t->parts - 1);
	cua_port_sync_block();
	if (!CUA_READ(c->sh->last))
		return;
	if (cua__scatter_is_float(cell))
		cua__scatter_put_shared(j, c, t, rows, cell);
	for (uint32_t i = thread; !cua__scatter_is_float(cell) && i < targets; i += threads) {
		const uint64_t target = cua__scatter_target(j, t, i, rows);

		if (target != ~(uint64_t)0)
			cua__scatter_put_word(j, target, CUA_READ(c->share[i]),
					      cua__scatter_old(j, target), cell);
	}
	if (thread == 0) {
		CUA_WRITE(j->state->arrived[t->share], 0u);
		if (t->counts && j->s.skipped)
			CUA_WRITE(*j->s.skipped,
				  j->s.n - cua_port_load_b64(&j->state->inside,
							     CUA__SCATTER_ON_DEVICE));
	}
}

/* Stores the results of all cells that are not dirty. simple: as cua__scatter_is_simple; a constant. */
CUA_FORCE void cua__scatter_put_cells(const struct cua__scatter_job *j,
				      const struct cua__scatter_cells *c,
				      const struct cua__scatter_item *t, int rows,
				      enum cua__scatter_cell cell, int simple)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t count = c->cells / c->copies;

	for (uint32_t first = thread; first < count; first += 4 * threads) {
		uint64_t target[4], old[4];
		uint32_t old32[4];

		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++) {
			const uint32_t i = first + k * threads;

			target[k] = ~(uint64_t)0;
			if (i < count && !(CUA_READ(c->sh->is_dirty[i / 32]) >> i % 32 & 1))
				target[k] = cua__scatter_target(j, t, i, rows);
		}
		/* the loads of old values together: a load does not pass a store */
		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++) {
			const int is = target[k] != ~(uint64_t)0;

			old[k] = !simple && is ? cua__scatter_old(j, target[k]) : 0;
			old32[k] = 0;
			if (simple && is && !j->s.overwrite)
				old32[k] = CUA_READ(((const cua__raw32 *)j->s.out)[target[k]]);
		}
		CUA__UNROLL
		for (uint32_t k = 0; simple && k < 4; k++)
			old[k] = old32[k];
		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++)
			if (target[k] != ~(uint64_t)0)
				cua__scatter_put_cell(j, c, first + k * threads, target[k], old[k],
						      cell, simple);
	}
}

/* size, value_size and type of floats, path and cell are constants. */
CUA_FORCE void cua__scatter_accumulate(const struct cua__scatter_job *j, uint32_t number,
				       struct cua__scatter_block *sh, uint32_t size,
				       uint32_t value_size, enum cua__scatter_path path,
				       enum cua_type type, enum cua__scatter_cell cell)
{
	const int rows = path == CUA__SCATTER_ROWS;
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t words = cua__scatter_cell_words(cell) * j->cells;
	const uint32_t dirty_words = cua__scatter_dirty_words(j->cells);
	const struct cua__pack zero = {{0, 0, 0, 0}};
	struct cua__scatter_cells c;

	if (cua__scatter_is_done(j) || (j->regions > 1 && number >= CUA_READ(j->state->passes)))
		return;
	c.sh = sh;
	c.word = sh->is_dirty + dirty_words;
	c.size = size;
	c.cells = j->cells;
	c.copies = j->copies;
	c.share_words = j->digits;
	for (;;) {
		struct cua__scatter_item t;

		cua__scatter_take(j, number, sh);
		t = CUA_READ(sh->item);
		if (!t.valid)
			return;
		c.share = t.parts > 1 ? j->shared + (uint64_t)t.share * (j->cells / j->copies) *
							    j->digits
				      : NULL;
		for (uint32_t i = thread; i < words / 4; i += threads)
			CUA_WRITE(((struct cua__pack *)c.word)[i], zero);
		for (uint32_t i = thread; i < dirty_words; i += threads)
			CUA_WRITE(sh->is_dirty[i], 0u);
		if (thread == 0) {
			CUA_WRITE(sh->again, 0u);
			CUA_WRITE(sh->odds, 0u);
			CUA_WRITE(sh->top, 0u);
			CUA_WRITE(sh->inside, 0u);
		}
		cua_port_sync_block();
		c.at = 0;
		if (cua__scatter_is_float(cell)) {
			const uint32_t top = cua__scatter_sample(j, &t, value_size, rows, type,
								 threads < 128 ? threads : 128);

			if (top)
				cua_port_max_u32(&sh->top, top, CUA__SCATTER_IN_BLOCK);
			cua_port_sync_block();
			cua__scatter_set_window(
				&c, CUA_READ(sh->top) ? (int)CUA_READ(sh->top) : CUA__EXACT_POINT,
				cell);
		}
		cua__scatter_traverse(j, &c, &t, value_size, path, type, cell);
		cua_port_sync_block();
		if (t.counts && thread == 0) {
			if (t.parts > 1)
				cua_port_add_u64(&j->state->inside, CUA_READ(sh->inside),
						 CUA__SCATTER_ON_DEVICE);
			else if (j->s.skipped)
				CUA_WRITE(*j->s.skipped, j->s.n - CUA_READ(sh->inside));
		}
		if (!c.share && cua__scatter_is_simple(j, &c, cell))
			cua__scatter_put_cells(j, &c, &t, rows, cell, 1);
		else if (!c.share)
			cua__scatter_put_cells(j, &c, &t, rows, cell, 0);
		if (c.share || (cua__scatter_is_float(cell) && cua__scatter_has_dirty(&c))) {
			/* copies: a variable that a function without inlining can reach is not in registers */
			const struct cua__scatter_cells cold_c = c;
			const struct cua__scatter_item cold_t = t;

			if (c.share)
				cua__scatter_share(j, &cold_c, &cold_t, rows, cell);
			else if (cell == CUA__CELL_HALVES && !CUA_READ(sh->again))
				cua__scatter_put_odds(j, &cold_c, &cold_t, rows, type);
			else
				cua__scatter_dirty(j, &cold_c, &cold_t, value_size, rows, type,
						   cell);
		}
	}
}

#endif /* CUATOMIC_KERNELS_SCATTER_KERNEL_H */
