/* SPDX-License-Identifier: MIT */
/*
 * The end of exact cells, and the choice of their unit: steps for single cells, spills and elements.
 * Both backends run them in loops.
 *
 * A finish has these phases. A phase begins when all threads have ended the phase before it:
 * 1. Store: each cell without spills is rounded. A cell with spills gets a number, a slot. Its
 *    word 0 moves to the slot and becomes the number.
 * 2. In rounds of j->round_slots slots:
 *    a. Add: each spill is added to the digits of its cell's slot, if the slot belongs to the round.
 *    b. Round: each slot of the round is rounded with its cell, and word 0 is put back.
 *
 * Synchronization: in phase 1 a thread owns its cells, in phase 2b its slots. In phase 2a threads add
 *   to digits by relaxed atomic additions, and these commute. All other accesses of different threads
 *   are in different phases.
 * Progress: every phase ends after a number of steps that the sizes bound.
 */
#ifndef CUATOMIC_KERNELS_EXACT_CELL_KERNEL_H
#define CUATOMIC_KERNELS_EXACT_CELL_KERNEL_H

#include <cuatomic/exact_cell.h>

#include "backend/exact_cell_backend.h"
#include "kernels/scatter_values.h"

/* Counters of a call, zero at its start. */
struct cua__cells_state {
	uint64_t slots; /* numbers given */
	uint64_t lost;
};

struct cua__cells_job {
	struct cua__cells c;
	uint32_t words;       /* of a cell */
	uint32_t bits;        /* between two words */
	enum cua_type layout; /* of the digits: the wider of the types of cells and results */
	uint32_t digits;
	uint64_t most; /* slots */
	uint64_t round_slots;
	struct cua__cells_state *state;
	uint64_t *slot_cell, *slot_word; /* of each slot */
	uint64_t *digit;                 /* of each slot of a round */
};

#define CUA__CELLS_ROUND_SLOTS 65536u
#define CUA__CELLS_ROUNDS 16u

/* Plans a call, without addresses. */
CUA__HOST_FN void cua__cells_plan(const struct cua__cells *c, struct cua__cells_job *j)
{
	memset((void *)j, 0, sizeof(*j));
	j->c = *c;
	j->words = c->type == CUA_F32 ? CUA__EXACT_CELL_WORDS_f32 : CUA__EXACT_CELL_WORDS_f64;
	j->bits = c->type == CUA_F32 ? CUA__EXACT_CELL_BITS_f32 : CUA__EXACT_CELL_BITS_f64;
	j->layout = c->type == CUA_F64 || c->result_type == CUA_F64 ? CUA_F64 : CUA_F32;
	j->digits = (uint32_t)cua__scatter_digits(j->layout);
	j->most = c->capacity < c->cells ? c->capacity : c->cells;
	j->round_slots = j->most / CUA__CELLS_ROUNDS + 1;
	if (j->round_slots < CUA__CELLS_ROUND_SLOTS)
		j->round_slots = CUA__CELLS_ROUND_SLOTS;
	if (j->round_slots > j->most)
		j->round_slots = j->most;
}

/* Sets the addresses in scratch memory at `base`, NULL for none, and returns its size. */
CUA__HOST_FN size_t cua__cells_lay(struct cua__cells_job *j, char *base)
{
	const size_t slots = (size_t)j->most * sizeof(uint64_t);
	struct cua__arena a = {base, 0};

	j->state = (struct cua__cells_state *)cua__arena_next(&a, sizeof(*j->state));
	j->slot_cell = (uint64_t *)cua__arena_next(&a, slots);
	j->slot_word = (uint64_t *)cua__arena_next(&a, slots);
	j->digit = (uint64_t *)cua__arena_next(&a, (size_t)j->round_slots * j->digits *
							   sizeof(uint64_t));
	return a.used;
}

/* ---- sums in words ---- */

CUA_FORCE void cua__cells_put(const struct cua__cells *c, uint64_t i, uint64_t bits)
{
	switch (cua__element_size(c->result_type)) {
	case 2: CUA_WRITE(((cua__raw16 *)c->out)[i], (uint16_t)bits); break;
	case 4: CUA_WRITE(((cua__raw32 *)c->out)[i], (uint32_t)bits); break;
	default: CUA_WRITE(((cua__raw64 *)c->out)[i], bits);
	}
}

CUA_FORCE uint64_t cua__cells_old(const struct cua__cells *c, uint64_t i)
{
	return c->overwrite ? 0 : cua__element_load(cua__element_size(c->result_type), c->out, i);
}

/* The result of a sum with flags. */
CUA_FORCE uint64_t cua__cells_special(const struct cua__cells *c, uint32_t flags, uint64_t old)
{
	flags |= cua__scatter_parts(c->result_type, old).flags;
	/* no digits are read */
	return cua__exact_round_at(NULL, 0, 0, 0, flags, cua__fraction_bits(c->result_type),
				   cua__exponent_bits(c->result_type));
}

/* A sum of three words: low + middle 2^56 + top 2^112. */
struct cua__cells_limbs {
	uint64_t low, middle; /* below 2^56 */
	int64_t top;
};

CUA_FORCE struct cua__cells_limbs cua__cells_limbs(int64_t low, int64_t middle, int64_t top)
{
	const uint64_t all = ((uint64_t)1 << 56) - 1;
	struct cua__cells_limbs s;
	int64_t carry;

	s.low = (uint64_t)low & all;
	/* the carries are added apart, so nothing overflows */
	carry = (int64_t)((uint64_t)middle & all) + (low >> 56);
	s.middle = (uint64_t)carry & all;
	s.top = top + (middle >> 56) + (carry >> 56);
	return s;
}

/* The sum, not 0, rounded to the type; `at` is the position of its unit. */
CUA_FORCE uint64_t cua__cells_round_limbs(enum cua_type type, struct cua__cells_limbs s, int at)
{
	const uint32_t negative = s.top < 0;
	cua__uint128 m;

	if (negative)
		s = cua__cells_limbs(-(int64_t)s.low, -(int64_t)s.middle, -s.top);
	m = (cua__uint128)(uint64_t)s.top << 56 | s.middle;
	if (!(s.top >> 7))
		return cua__scatter_round(type, negative, m << 56 | s.low, at);
	/* the lowest bit stands for the lower word */
	return cua__scatter_round(type, negative, m << 1 | (s.low != 0), at + 55);
}

/*
 * *bits becomes the result of a cell of f64 with these words. Returns 0 if the old value has bits that
 * the words cannot hold.
 */
CUA_FORCE int cua__cells_sum_f64(const struct cua__cells *c, const uint64_t *word, uint64_t old,
				 uint64_t *bits)
{
	const int at = c->unit + CUA__EXACT_POINT;
	struct cua__cells_limbs s = cua__cells_limbs((int64_t)word[0], (int64_t)word[1],
						     (int64_t)word[2] >> CUA__EXACT_CELL_FLAG_BITS);
	struct cua__exact_parts p;

	*bits = old;
	if (!s.low && !s.middle && !s.top)
		return 1;
	p = cua__scatter_parts(c->result_type, old);
	if (p.flags) {
		*bits = cua__cells_special(c, p.flags, 0);
		return 1;
	}
	if (p.mantissa) {
		const int position = p.at - at, w = position / 56, shift = position % 56;
		const int64_t sign = -(int64_t)p.negative;
		uint64_t add[4] = {0, 0, 0, 0};

		if (position < 0 || position > CUA__EXACT_CELL_SPAN_f64)
			return 0;
		add[w] = (p.mantissa << shift) & (((uint64_t)1 << 56) - 1);
		add[w + 1] = p.mantissa >> (56 - shift);
		s = cua__cells_limbs((int64_t)s.low + (((int64_t)add[0] ^ sign) - sign),
				     (int64_t)s.middle + (((int64_t)add[1] ^ sign) - sign),
				     s.top + (((int64_t)add[2] ^ sign) - sign));
		if (!s.low && !s.middle && !s.top) {
			*bits = 0;
			return 1;
		}
	}
	*bits = cua__cells_round_limbs(c->result_type, s, at);
	return 1;
}

CUA_FORCE uint64_t cua__cells_sum_f32(const struct cua__cells *c, const uint64_t *word,
				      uint64_t old)
{
	const int64_t low = (int64_t)word[0];
	const int64_t high = ((int64_t)word[1] >> CUA__EXACT_CELL_FLAG_BITS) + (low >> 32);
	/* low + high 2^32 */
	const cua__uint128 m = (cua__uint128)(uint64_t)(high < 0 ? ~high : high) << 32;
	const uint32_t negative = high < 0, digit = (uint32_t)low;
	const cua__uint128 magnitude = negative ? (m | 0xffffffffu) - digit + 1 : m | digit;

	return cua__scatter_sum_wide(c->result_type, negative, magnitude,
				     c->unit + CUA__EXACT_POINT, c->overwrite, old);
}

/* ---- sums in digits ---- */

/* The result of cell i with these words and with `digit`. The digits change. */
CUA__RARE uint64_t cua__cells_sum_digits(const struct cua__cells_job j, uint64_t *word,
					 int64_t *digit, uint64_t old)
{
	const int base = j.c.unit + CUA__EXACT_POINT - 32 * cua__scatter_low(j.layout);
	const uint32_t last = j.words - 1;
	const uint32_t flags = (uint32_t)word[last] & (CUA_EXACT_SPILLED - 1);

	word[last] = (uint64_t)((int64_t)word[last] >> CUA__EXACT_CELL_FLAG_BITS);
	for (uint32_t w = 0; w < j.words; w++) {
		const uint32_t negative = (int64_t)word[w] < 0;

		cua__exact_insert(digit, negative, negative ? 0 - word[w] : word[w],
				  base + (int)(w * j.bits));
	}
	return cua__scatter_sum_digits(j.layout, j.c.result_type, digit, flags, j.c.overwrite, old);
}

/* ---- phase 1 ---- */

CUA_FORCE void cua__cells_read(const struct cua__cells_job *j, uint64_t i, uint64_t *word)
{
	for (uint32_t w = 0; w < j->words; w++)
		word[w] = CUA_READ(j->c.cell[i * j->words + w]);
}

/* Counts a cell that lost an element, and stores its result. */
CUA_FORCE void cua__cells_lose(const struct cua__cells_job *j, uint64_t i)
{
	cua_port_add_u64(&j->state->lost, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua__cells_put(&j->c, i, cua__scatter_nan(j->c.result_type));
}

/* Moves a cell to a slot. */
CUA_FORCE void cua__cells_claim(const struct cua__cells_job *j, uint64_t i, uint64_t word)
{
	const uint64_t slot = cua_port_fetch_add_u64(&j->state->slots, 1, CUA_RELAXED,
						     CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

	/* only if the append buffer was emptied meanwhile */
	if (slot >= j->most) {
		cua__cells_lose(j, i);
		return;
	}
	CUA_WRITE(j->slot_cell[slot], i);
	CUA_WRITE(j->slot_word[slot], word);
	CUA_WRITE(j->c.cell[i * j->words], slot);
	if (slot < j->round_slots)
		for (uint32_t d = 0; d < j->digits; d++)
			CUA_WRITE(j->digit[slot * j->digits + d], 0);
}

/* Stores the result of cell i; type is the constant type of the cells. */
CUA_FORCE void cua__cells_store(const struct cua__cells_job *j, uint64_t i, enum cua_type type)
{
	const uint32_t last = type == CUA_F32 ? 1 : 2;
	uint64_t word[CUA__EXACT_CELL_WORDS_f64], old, bits;
	uint32_t flags;

	for (uint32_t w = 0; w <= last; w++)
		word[w] = CUA_READ(j->c.cell[i * (last + 1) + w]);
	flags = (uint32_t)word[last] & CUA__EXACT_CELL_FLAGS;
	if (flags & CUA_EXACT_LOST) {
		cua__cells_lose(j, i);
		return;
	}
	if (flags & CUA_EXACT_SPILLED) {
		cua__cells_claim(j, i, word[0]);
		return;
	}
	old = cua__cells_old(&j->c, i);
	if (flags)
		bits = cua__cells_special(&j->c, flags, old);
	else if (type == CUA_F32)
		bits = cua__cells_sum_f32(&j->c, word, old);
	else if (!cua__cells_sum_f64(&j->c, word, old, &bits)) {
		int64_t digit[CUA__SCATTER_DIGITS] = {0};

		bits = cua__cells_sum_digits(*j, word, digit, old);
	}
	cua__cells_put(&j->c, i, bits);
}

/* ---- phase 2 ---- */

/* The number of spills in the append buffer. */
CUA_FORCE uint64_t cua__cells_spills(const struct cua__cells_job *j)
{
	const uint64_t demand = j->c.demand ? CUA_READ(*j->c.demand) : 0;

	return demand < j->c.capacity ? demand : j->c.capacity;
}

/* The slots of the round that begins at slot `begin`. */
CUA_FORCE uint64_t cua__cells_slots(const struct cua__cells_job *j, uint64_t begin)
{
	uint64_t slots = CUA_READ(j->state->slots);

	if (slots > j->most)
		slots = j->most;
	slots = slots > begin ? slots - begin : 0;
	return slots < j->round_slots ? slots : j->round_slots;
}

/*
 * Adds spill k to its cell's digits. Word 0 of a cell is its slot until the cell is rounded; then it
 * may be any number. So the slot is right only if it names the cell.
 */
CUA_FORCE void cua__cells_add_spill(const struct cua__cells_job *j, uint64_t k, uint64_t begin)
{
	const uint64_t i = CUA_READ(j->c.spill[k].cell) - j->c.first;
	struct cua__exact_parts p;
	uint64_t slot;
	uint32_t flags;
	int zeros, at;

	if (i >= j->c.cells)
		return;
	flags = (uint32_t)CUA_READ(j->c.cell[(i + 1) * j->words - 1]);
	slot = CUA_READ(j->c.cell[i * j->words]) - begin;
	if ((flags & (CUA_EXACT_SPILLED | CUA_EXACT_LOST)) != CUA_EXACT_SPILLED ||
	    slot >= cua__cells_slots(j, begin) || CUA_READ(j->slot_cell[begin + slot]) != i)
		return;
	p = cua__exact_parts_of(CUA_READ(j->c.spill[k].bits), 52, 11);
	if (p.flags || !p.mantissa)
		return;
	/* the lowest bits of an f32 are below those of its digits, and zeros */
	zeros = 63 - (int)cua_port_clz_u64(p.mantissa & (0 - p.mantissa));
	p.mantissa >>= zeros;
	at = p.at + zeros - 32 * cua__scatter_low(j->layout);
	if (at < 0 || at / 32 + 2 >= (int)j->digits)
		return;
	cua__scatter_add_digits(j->digit + slot * j->digits, p.negative, p.mantissa, at,
				CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Stores the result of slot `begin` + s, and puts word 0 of the cell back. */
CUA_FORCE void cua__cells_round(const struct cua__cells_job *j, uint64_t s, uint64_t begin)
{
	const uint64_t i = CUA_READ(j->slot_cell[begin + s]);
	uint64_t word[CUA__EXACT_CELL_WORDS_f64] = {0, 0, 0};
	int64_t digit[CUA__SCATTER_DIGITS] = {0};

	for (uint32_t d = 0; d < j->digits; d++) {
		digit[d] = (int64_t)CUA_READ(j->digit[s * j->digits + d]);
		CUA_WRITE(j->digit[s * j->digits + d], 0);
	}
	cua__cells_read(j, i, word);
	word[0] = CUA_READ(j->slot_word[begin + s]);
	CUA_WRITE(j->c.cell[i * j->words], word[0]);
	cua__cells_put(&j->c, i, cua__cells_sum_digits(*j, word, digit, cua__cells_old(&j->c, i)));
}

/* ---- the choice of a unit ---- */

/*
 * An element is m 2^e, m odd. Bin e of the lower counters counts it, and the bin of its exponent
 * field, at least 1, of the upper counters. Then there are counters for NaN and infinities.
 */
#define CUA__RANGE_LOW(type) ((type) == CUA_F32 ? 280u : 2104u)
#define CUA__RANGE_HIGH(type) ((type) == CUA_F32 ? 256u : 2048u)
#define CUA__RANGE_BINS(type) (CUA__RANGE_LOW(type) + CUA__RANGE_HIGH(type) + 3)
#define CUA__RANGE_BINS_MAX (2104 + 2048 + 3)

/* The bins of an element; bins[1] equals bins[0] if there is a single bin. Returns 0 for zero. */
CUA_FORCE int cua__range_bins(enum cua_type type, uint64_t bits, uint32_t bins[2])
{
	const struct cua__exact_parts p = cua__scatter_parts(type, bits);
	const uint32_t low = CUA__RANGE_LOW(type), special = low + CUA__RANGE_HIGH(type);
	const int base = type == CUA_F32 ? 150 : 1075;
	const uint32_t field = (uint32_t)(p.at - CUA__EXACT_POINT + base);

	if (p.flags) {
		bins[0] = bins[1] = special + (p.flags == CUA_EXACT_NAN        ? 0
					       : p.flags == CUA_EXACT_INFINITY ? 1
									       : 2);
		return 1;
	}
	if (!p.mantissa)
		return 0;
	bins[0] = field + 63 - (uint32_t)cua_port_clz_u64(p.mantissa & (0 - p.mantissa));
	bins[1] = low + field;
	return 1;
}

/* The fit with these counters. */
CUA_FN void cua__range_choose(enum cua_type type, const uint64_t *bin, struct cua_exact_fit *fit)
{
	const uint32_t low = CUA__RANGE_LOW(type), high = CUA__RANGE_HIGH(type);
	const int base = type == CUA_F32 ? 150 : 1075;
	const int span = type == CUA_F32 ? CUA__EXACT_CELL_SPAN_f32 : CUA__EXACT_CELL_SPAN_f64;
	const int most =
		type == CUA_F32 ? CUA_EXACT_CELL_UNIT_MAX_F32 : CUA_EXACT_CELL_UNIT_MAX_F64;
	uint64_t outside = 0, best;
	uint32_t flags = 0, any = 0;
	int unit = 1;

	for (uint32_t k = 0; k < 3; k++)
		if (CUA_READ(bin[low + high + k]))
			flags |= 1u << k;
	for (uint32_t k = 1; k < high; k++) {
		const uint64_t count = CUA_READ(bin[low + k]);

		any |= count != 0;
		if ((int)k > 1 + span)
			outside += count;
	}
	best = outside;
	/* in terms of exponent fields; from each unit to the next */
	for (int at = 2; at <= most + base; at++) {
		outside += CUA_READ(bin[at - 1]);
		if (at + span < (int)high)
			outside -= CUA_READ(bin[low + (uint32_t)(at + span)]);
		if (outside <= best) {
			best = outside;
			unit = at;
		}
	}
	CUA_WRITE(fit->unit, any               ? unit - base
			     : type == CUA_F32 ? CUA_EXACT_CELL_UNIT_F32
					       : CUA_EXACT_CELL_UNIT_F64);
	CUA_WRITE(fit->flags, flags);
	CUA_WRITE(fit->outside, best);
}

#endif /* CUATOMIC_KERNELS_EXACT_CELL_KERNEL_H */
