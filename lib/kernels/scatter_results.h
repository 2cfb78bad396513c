/* SPDX-License-Identifier: MIT */
/* Results of a scatter: reads of the targets' old values, and of cells; the last rounding. */
#ifndef CUATOMIC_KERNELS_SCATTER_RESULTS_H
#define CUATOMIC_KERNELS_SCATTER_RESULTS_H

#include "kernels/scatter_cells.h"

CUA_FORCE uint64_t cua__scatter_get(const struct cua__scatter_job *j, uint64_t target)
{
	switch (j->result_size) {
	case 1: return CUA_READ(((const uint8_t *)j->s.out)[target]);
	case 2: return CUA_READ(((const cua__raw16 *)j->s.out)[target]);
	case 4: return CUA_READ(((const cua__raw32 *)j->s.out)[target]);
	default: return CUA_READ(((const cua__raw64 *)j->s.out)[target]);
	}
}

CUA_FORCE void cua__scatter_put(const struct cua__scatter_job *j, uint64_t target, uint64_t bits)
{
	switch (j->result_size) {
	case 1: CUA_WRITE(((uint8_t *)j->s.out)[target], (uint8_t)bits); break;
	case 2: CUA_WRITE(((cua__raw16 *)j->s.out)[target], (uint16_t)bits); break;
	case 4: CUA_WRITE(((cua__raw32 *)j->s.out)[target], (uint32_t)bits); break;
	default: CUA_WRITE(((cua__raw64 *)j->s.out)[target], bits);
	}
}

/* The target in out of a cell of an item, or all bits set if the row is narrower than the tile. */
CUA_FORCE uint64_t cua__scatter_target(const struct cua__scatter_job *j,
				       const struct cua__scatter_item *t, uint32_t cell, int rows)
{
	/* columns: a power of two */
	const uint32_t row = rows ? cell >> (cua_port_ffs_u32(j->columns) - 1) : cell;
	const uint32_t column = rows ? cell & (j->columns - 1) : 0;

	if (row >= t->rows || column >= t->columns)
		return ~(uint64_t)0;
	return rows ? (t->row + row) * j->s.width + t->column + column : t->row + row;
}

/* Stores the mean of a row's elements. */
CUA_FORCE void cua__scatter_put_mean(const struct cua__scatter_job *j, uint64_t target, double sum)
{
	const uint64_t count = CUA_READ(j->counts[target / j->s.width]);

	if (count || j->s.overwrite)
		cua__scatter_put(
			j, target,
			cua__scatter_mean(j->s.result_type, sum, count, j->s.overwrite, 0));
}

/* A sum of floats: magnitude 2^(at - CUA__EXACT_POINT). */
struct cua__scatter_wide {
	cua__uint128 magnitude;
	uint32_t negative;
	int at;
};

/* A signed integer of 64 bits, given as two words, with 128 bits. */
CUA_FORCE cua__uint128 cua__scatter_int128(uint32_t low, uint32_t high)
{
	const cua__uint128 sign = 0 - (cua__uint128)(high >> 31);

	return (sign << 64) | (uint64_t)high << 32 | low;
}

/* A half and its carries. */
CUA_FORCE cua__uint128 cua__scatter_wide_of(int32_t half, int32_t carries)
{
	const int64_t v = half + ((int64_t)carries << 32);

	return cua__scatter_int128((uint32_t)v, (uint32_t)((uint64_t)v >> 32));
}

/* The sum in the copies of a target's cell. */
CUA_FORCE struct cua__scatter_wide cua__scatter_read_window(const struct cua__scatter_cells *c,
							    uint32_t target,
							    enum cua__scatter_cell cell)
{
	struct cua__scatter_wide w = {0, 0, c->at};
	const uint32_t *first = c->word + target * c->copies;

	for (uint32_t k = 0; k < c->copies; k++) {
		/* the lanes have adjacent targets; a copy each, so that they use different banks */
		const uint32_t *word = first + ((k + cua_port_lane()) & (c->copies - 1));

		if (cell == CUA__CELL_HALVES) {
			const uint32_t carries = CUA_READ(word[2 * c->cells]);

			w.magnitude += cua__scatter_wide_of((int32_t)CUA_READ(word[0]),
							    cua__scatter_high_carries(carries))
				       << CUA__HALVES_LOW;
			w.magnitude += cua__scatter_wide_of((int32_t)CUA_READ(word[c->cells]),
							    cua__scatter_low_carries(carries));
		} else {
			w.magnitude +=
				cua__scatter_int128(CUA_READ(word[0]), CUA_READ(word[c->cells]));
			w.magnitude += cua__scatter_int128(CUA_READ(word[2 * c->cells]),
							   CUA_READ(word[3 * c->cells]))
				       << CUA__SCATTER_LOW_BITS;
		}
	}
	w.negative = (uint32_t)(w.magnitude >> 127);
	if (w.negative)
		w.magnitude = 0 - w.magnitude;
	return w;
}

/* The sum, or the greatest key, in the copies of a target's cell. */
CUA_FORCE uint64_t cua__scatter_read_word(const struct cua__scatter_cells *c, uint32_t target,
					  enum cua__scatter_cell cell)
{
	const uint32_t *word = c->word + target * c->copies;
	uint64_t v = 0;

	for (uint32_t k = 0; k < c->copies; k++) {
		const uint64_t more =
			cell == CUA__CELL_ADD64
				? CUA_READ(word[k]) | (uint64_t)CUA_READ(word[k + c->cells]) << 32
			: cell == CUA__CELL_MAX64
				? CUA_READ(((const uint64_t *)c->word)[target * c->copies + k])
				: CUA_READ(word[k]);

		if (cell == CUA__CELL_ADD32 || cell == CUA__CELL_ADD64)
			v += more;
		else
			v = more > v ? more : v;
	}
	return v;
}

/* The old value of a target; 0 if it does not matter. */
CUA_FORCE uint64_t cua__scatter_old(const struct cua__scatter_job *j, uint64_t target)
{
	return j->s.overwrite || j->counts ? 0 : cua__scatter_get(j, target);
}

/* Stores a sum in digits and flags, and changes them. */
CUA_FORCE void cua__scatter_put_digits(const struct cua__scatter_job *j, uint64_t target,
				       uint64_t *digit)
{
	const uint32_t flags = (uint32_t)CUA_READ(digit[j->digits - 1]);
	const int overwrite = j->s.overwrite || j->counts;
	const uint64_t sum = cua__scatter_sum_digits(j->sum_type, j->sum_type, (int64_t *)digit,
						     flags, overwrite, cua__scatter_old(j, target));

	if (j->counts)
		cua__scatter_put_mean(j, target, cua__from_bits_f64(sum));
	else
		cua__scatter_put(j, target, sum);
}

/*
 * Stores the sum of a cell of halves and the elements of its target in the list, of which entry k is the
 * first. target is that of the result.
 */
CUA_FORCE void cua__scatter_put_odd(const struct cua__scatter_job *j,
				    const struct cua__scatter_cells *c, uint64_t target, uint32_t k,
				    enum cua_type type)
{
	const uint32_t cell = CUA_READ(c->sh->odd[k].target);
	const int low = 32 * cua__scatter_low(j->sum_type);
	struct cua__scatter_wide w = cua__scatter_read_window(c, cell, CUA__CELL_HALVES);
	int64_t digit[CUA__SCATTER_DIGITS + 1] = {0};
	int at = w.at - low;
	uint32_t flags = 0;

	/* the window may begin below the least number; then the bits there are 0 */
	if (at < 0) {
		w.magnitude >>= -at;
		at = 0;
	}
	cua__exact_insert(digit, (int)w.negative, (uint64_t)w.magnitude, at);
	if (w.magnitude >> 64)
		cua__exact_insert(digit, (int)w.negative, (uint64_t)(w.magnitude >> 64), at + 64);
	for (; k < CUA_READ(c->sh->odds); k++) {
		struct cua__exact_parts p;

		if (CUA_READ(c->sh->odd[k].target) != cell)
			continue;
		p = cua__scatter_parts(type, CUA_READ(c->sh->odd[k].bits));
		flags |= p.flags;
		if (!p.flags)
			cua__exact_insert(digit, p.negative, p.mantissa, p.at - low);
	}
	digit[j->digits - 1] = flags;
	cua__scatter_put_digits(j, target, (uint64_t *)digit);
}

/* Stores the sum of integers, or the greatest key. */
CUA_FORCE void cua__scatter_put_word(const struct cua__scatter_job *j, uint64_t target, uint64_t v,
				     uint64_t old, enum cua__scatter_cell cell)
{
	if (cell == CUA__CELL_MAX32 || cell == CUA__CELL_MAX64) {
		if (v || j->s.overwrite)
			cua__scatter_put(j, target,
					 cua__scatter_extreme(j->s.op, j->s.result_type, v,
							      j->s.overwrite, old));
	} else if (j->counts)
		cua__scatter_put_mean(j, target, cua__scatter_f64_of(j->s.type, v));
	else if (v || j->s.overwrite)
		cua__scatter_put(j, target, old + v);
}

/* Stores a sum of floats. Rare for f32, and large. */
CUA__RARE void cua__scatter_put_wide(const struct cua__scatter_job *j, uint64_t target,
				     struct cua__scatter_wide w, uint64_t old)
{
	if (j->counts)
		cua__scatter_put_mean(j, target,
				      cua__from_bits_f64(cua__scatter_sum_wide(
					      CUA_F64, w.negative, w.magnitude, w.at, 1, 0)));
	else if (w.magnitude || j->s.overwrite)
		cua__scatter_put(j, target,
				 cua__scatter_sum_wide(j->s.result_type, w.negative, w.magnitude,
						       w.at, j->s.overwrite, old));
}

/*
 * Stores v 2^(at - CUA__EXACT_POINT) as f32 by few instructions; returns 0 if the sum or the old
 * value is not simple. unit is 2^k, and scale 2^-k.
 */
CUA_FORCE int cua__scatter_put_f32(const struct cua__scatter_job *j, uint64_t target, int64_t v,
				   int at, double unit, double scale, uint64_t old)
{
	const int k = at - CUA__EXACT_POINT;
	int64_t more = 0;
	uint32_t bits;
	int exponent;

	if (!v) {
		if (j->s.overwrite)
			CUA_WRITE(((cua__raw32 *)j->s.out)[target], 0u);
		return 1;
	}
	if (!j->s.overwrite &&
	    (v > INT64_MAX / 2 || v < -(INT64_MAX / 2) ||
	     !cua__scatter_fits(cua__scatter_f64(CUA_F32, old), unit, scale, &more)))
		return 0;
	v += more;
	bits = cua__bits_f32((float)v);
	exponent = (int)(bits >> 23 & 255) + k;
	if (v && (exponent < 1 || exponent > 254))
		return 0;
	CUA_WRITE(((cua__raw32 *)j->s.out)[target], v ? bits + ((uint32_t)k << 23) : 0);
	return 1;
}

/* The sum of a cell of halves that has no carries. */
CUA_FORCE int64_t cua__scatter_read_halves(const struct cua__scatter_cells *c, uint32_t i)
{
	return (int64_t)((uint64_t)(int64_t)(int32_t)CUA_READ(c->word[i]) << CUA__HALVES_LOW) +
	       (int32_t)CUA_READ(c->word[i + c->cells]);
}

/* Whether sums are f32 in single cells of halves. */
CUA_FORCE int cua__scatter_is_simple(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c,
				     enum cua__scatter_cell cell)
{
	return cell == CUA__CELL_HALVES && c->copies == 1 && j->s.result_type == CUA_F32 &&
	       !j->counts;
}

/* Stores the result of a target with a clean cell. simple: as cua__scatter_is_simple; a constant. */
CUA_FORCE void cua__scatter_put_cell(const struct cua__scatter_job *j,
				     const struct cua__scatter_cells *c, uint32_t number,
				     uint64_t target, uint64_t old, enum cua__scatter_cell cell,
				     int simple)
{
	if (!cua__scatter_is_float(cell))
		cua__scatter_put_word(j, target, cua__scatter_read_word(c, number, cell), old,
				      cell);
	else if (!simple || CUA_READ(c->word[number + 2 * c->cells]) ||
		 !cua__scatter_put_f32(j, target, cua__scatter_read_halves(c, number), c->at,
				       c->low_unit, c->low_scale, old))
		cua__scatter_put_wide(j, target, cua__scatter_read_window(c, number, cell), old);
}

/* Adds a cell to its shared cell. */
CUA_FORCE void cua__scatter_share_cell(const struct cua__scatter_job *j,
				       const struct cua__scatter_cells *c, uint32_t cell_number,
				       enum cua__scatter_cell cell)
{
	uint64_t *digit = c->share + (uint64_t)cell_number * c->share_words;
	struct cua__scatter_wide w;
	uint64_t v;
	int at;

	if (!cua__scatter_is_float(cell)) {
		v = cua__scatter_read_word(c, cell_number, cell);
		if (v && (cell == CUA__CELL_ADD32 || cell == CUA__CELL_ADD64))
			cua_port_add_u64(digit, v, CUA__SCATTER_ON_DEVICE);
		else if (v)
			cua_port_max_u64(digit, v, CUA__SCATTER_ON_DEVICE);
		return;
	}
	w = cua__scatter_read_window(c, cell_number, cell);
	if (!w.magnitude)
		return;
	at = w.at - 32 * cua__scatter_low(j->sum_type);
	/* the window may begin below the least number; then the bits there are 0 */
	if (at < 0) {
		w.magnitude >>= -at;
		at = 0;
	}
	cua__scatter_add_digits(digit, w.negative, (uint64_t)w.magnitude, at, CUA_SCOPE_DEVICE,
				CUA_SPACE_GLOBAL);
	v = (uint64_t)(w.magnitude >> 64);
	if (v)
		cua__scatter_add_digits(digit, w.negative, v, at + 64, CUA_SCOPE_DEVICE,
					CUA_SPACE_GLOBAL);
}

#endif /* CUATOMIC_KERNELS_SCATTER_RESULTS_H */
