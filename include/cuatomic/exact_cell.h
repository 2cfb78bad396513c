/* SPDX-License-Identifier: MIT */
/*
 * Exact cells: an array of sums of floats. The threads of a kernel add to them, each to any cell at
 * any time, and the sums have the same bits every time. It is an atomic addition of floats with a
 * result that does not depend on the order of the additions.
 *
 * Source: the fixed windows of a long accumulator (Kulisch 1971), reduced to the exponents that the
 * elements have, as in the fixed-point sums of molecular dynamics on GPUs; integer additions commute.
 *
 *     struct cua_exact_cell_f32 *cell;       an array in the backend's memory, filled with zeros
 *     struct cua_append_view spills;         of a buffer for items of struct cua_exact_spill
 *
 *     view = cua_exact_cells_view_f32(cell, cells, CUA_EXACT_CELL_UNIT_F32, &spills);
 *     ...
 *     cua_exact_cell_add_f32(&view, target, x);        in a kernel, by each lane
 *     ...
 *     cua_exact_cells_finish_f32(ctx, NULL, &view, out);        out[i] += the sum of cell i, rounded
 *                                                               once
 *
 * Range: the lowest bit of a cell has the weight 2^unit, the view's number. A cell holds an element
 * that is a multiple of 2^unit and less than 2^(unit + 87) in magnitude (f32), 2^(unit + 165) (f64).
 * So it holds every number from 2^(unit + 23), or 2^(unit + 52), up to there. Its sum may be less
 * than 2^(unit + 90), or 2^(unit + 170), in magnitude. cua_exact_range finds the unit of given
 * elements; the default units are for numbers between about 1e-11 and 1e8 (f32), 1e-17 and 1e16
 * (f64).
 *
 * Spills: an element outside the range goes to the append buffer of the view, and so does a sum that
 * leaves its range, as a power of two. `finish` adds both, exactly. If the buffer is full, the
 * element is lost, the addition returns 0, and the cell is marked: `finish` makes its result NaN and
 * counts it. The demand of the buffer is the capacity that a repetition needs.
 *
 * Values: NaN and infinities are kept in the cell, as in cuatomic/exact.h, and so are the results:
 *   every NaN is the same, an infinity is the result of infinities of a single sign or of a rounded
 *   sum beyond the type's numbers. Zeros add nothing. The result is rounded once, to nearest even. It
 *   depends on the elements alone: not on their order, on the unit, on the threads or on the backend.
 *   A lost element does depend on the order.
 *
 * In shared memory: for few cells, each block has its own. cua_exact_cells_private_f32 makes a view
 * of them, cua_exact_cell_add_block_f32 adds to them, and cua_exact_cell_merge_f32 adds a private
 * cell to the cell of the array.
 *
 * Synchronization of two calls on the same cell. X: the caller must order the calls. -: the calls may
 *   run concurrently. `add` is any addition but that of a block, `merge to` the same. In cells of
 *   shared memory only add_block may run concurrently with itself.
 *
 *                  add  merge to  merge from  read, finish
 *     add           -      -          X            X
 *     merge to      -      -          X            X
 *     merge from    X      X          -            -
 *     read, finish  X      X          -            -  (not two of `finish`)
 *
 * Scope: the device; for add_block, the block. On the host, all threads.
 * Memory order: relaxed. A cell publishes nothing.
 * Progress: an addition is wait-free if the machine has a fetch-and-add: at most five operations on
 *   words of the cell, and two for each of at most two spills. Any lane of a diverged warp may add.
 *   All lanes of a mask call add_warp together.
 * Argument:
 * - An element is an integer times 2^unit. It is added to a word with a unit that divides it: for f32
 *   to a single word, for f64 to two neighbours, its lower 56 bits to the lower word. So the sum of
 *   the cell, word[0] 2^unit + word[1] 2^(unit + B) + ..., grows by the element, B = 32 or 56.
 * - A word is a signed integer modulo 2^64. A thread's fetch-and-add returns the word before its own
 *   addition. So the thread alone sees that this addition passed the end of the integers, in either
 *   direction. It adds 2^64, or -2^64, to the next word, in that word's unit. Hence the sum of all
 *   words is right once all additions have ended. What leaves the last word is a spill.
 * - The lowest 5 bits of the last word are flags. Its integer is shifted by 5, so additions leave
 *   the flags as they are, and flags are set by an atomic OR.
 * - add_block adds the halves of a word separately, since GPUs have no 64-bit addition in shared
 *   memory. The lower addition returns the carry, the upper addition the overflow, so the argument is
 *   the same.
 */
#ifndef CUATOMIC_EXACT_CELL_H
#define CUATOMIC_EXACT_CELL_H

#include <cuatomic/append.h>
#include <cuatomic/context.h>
#include <cuatomic/exact.h>

/* Cells. Zeros are an empty sum. */
struct __attribute__((aligned(16))) cua_exact_cell_f32 {
	uint64_t word[2];
};
struct cua_exact_cell_f64 {
	uint64_t word[3];
};
CUA_STATIC_ASSERT(sizeof(struct cua_exact_cell_f32) == 16, "the cell is ABI");
CUA_STATIC_ASSERT(sizeof(struct cua_exact_cell_f64) == 24, "the cell is ABI");

/* The flags of the last word; the first three are those of cuatomic/exact.h. */
#define CUA_EXACT_SPILLED 8u /* the append buffer has elements of this cell */
#define CUA_EXACT_LOST 16u   /* the append buffer had no room for an element */
#define CUA__EXACT_CELL_FLAG_BITS 5
#define CUA__EXACT_CELL_FLAGS 31u

/* An element outside the range, in the append buffer. */
struct cua_exact_spill {
	uint64_t cell; /* its number in the array */
	uint64_t bits; /* of an f64 */
};
CUA_STATIC_ASSERT(sizeof(struct cua_exact_spill) == 16, "the item is ABI");

#define CUA_EXACT_CELLS_LAYOUT 1u

/* The units of most uses, and the least and the greatest. */
#define CUA_EXACT_CELL_UNIT_F32 (-60)
#define CUA_EXACT_CELL_UNIT_F64 (-110)
#define CUA_EXACT_CELL_UNIT_MIN_F32 (-149)
#define CUA_EXACT_CELL_UNIT_MAX_F32 41
#define CUA_EXACT_CELL_UNIT_MIN_F64 (-1074)
#define CUA_EXACT_CELL_UNIT_MAX_F64 852

/* The array as the backend addresses it; passed by value to kernels and host threads. */
#define CUA__DEFINE_EXACT_CELLS(t)                                                                 \
	struct cua_exact_cells_##t {                                                               \
		struct cua_exact_cell_##t *cell;                                                   \
		uint64_t cells;                                                                    \
		/* the number of *cell in the append buffer; 0, but for private cells */           \
		uint64_t first;                                                                    \
		/* items of struct cua_exact_spill; without a cursor there is no room */           \
		struct cua_append_view spills;                                                     \
		int32_t unit;                                                                      \
		uint32_t layout; /* CUA_EXACT_CELLS_LAYOUT */                                      \
	};                                                                                         \
	CUA_STATIC_ASSERT(sizeof(struct cua_exact_cells_##t) == 48 + 3 * sizeof(void *),           \
			  "the view is ABI");

CUA__DEFINE_EXACT_CELLS(f32)
CUA__DEFINE_EXACT_CELLS(f64)

/* ---- parts ---- */

/* B of the argument above, and the words of a cell. */
#define CUA__EXACT_CELL_BITS_f32 32
#define CUA__EXACT_CELL_BITS_f64 56
#define CUA__EXACT_CELL_WORDS_f32 2
#define CUA__EXACT_CELL_WORDS_f64 3
/* The most powers of two between the unit and the lowest bit of an element. */
#define CUA__EXACT_CELL_SPAN_f32 63
#define CUA__EXACT_CELL_SPAN_f64 112
/* The sum of a cell is less than 2^(unit + this) in magnitude. */
#define CUA__EXACT_CELL_TOP_f32 90
#define CUA__EXACT_CELL_TOP_f64 170

/* Adds to a word; returns by how many times 2^64 the integer passed its ends. */
CUA_FORCE int cua__exact_cell_plus(uint64_t *word, int64_t v, enum cua_scope scope,
				   enum cua_space space)
{
	int64_t before, after;

	if (space == CUA_SPACE_SHARED && CUA_WARP_LANES > 1) {
		uint32_t *half = (uint32_t *)(void *)word;
		const uint32_t low = (uint32_t)v;
		const uint32_t old =
			cua_port_fetch_add_u32(half, low, CUA_RELAXED, scope, CUA_SPACE_SHARED);
		const uint32_t up = (uint32_t)((uint64_t)v >> 32) + (old + low < old);
		uint32_t was;

		if (!up)
			return 0;
		was = cua_port_fetch_add_u32(half + 1, up, CUA_RELAXED, scope, CUA_SPACE_SHARED);
		if (!(((was ^ (was + up)) & (up ^ (was + up))) >> 31))
			return 0;
		return up >> 31 ? -1 : 1;
	}
	before = (int64_t)cua_port_fetch_add_u64(word, (uint64_t)v, CUA_RELAXED, scope, space);
	after = cua__exact_plus(before, v);
	if (((before ^ after) & (v ^ after)) >= 0)
		return 0;
	return v < 0 ? -1 : 1;
}

/* The same by a warp's lanes. A single lane adds for all lanes of an address. */
CUA_FORCE int cua__exact_cell_plus_warp(uint32_t mask, uint64_t *word, int64_t v)
{
	const int64_t before = (int64_t)cua_atomic_fetch_add_warp_explicit_u64(
		mask, word, (uint64_t)v, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	const int64_t after = cua__exact_plus(before, v);

	if (((before ^ after) & (v ^ after)) >= 0)
		return 0;
	return v < 0 ? -1 : 1;
}

/* Sets flags of a cell, given its last word. */
CUA_FORCE void cua__exact_cell_flag(uint64_t *last, uint32_t flags, enum cua_scope scope,
				    enum cua_space space)
{
	if (space == CUA_SPACE_SHARED && CUA_WARP_LANES > 1)
		cua_port_or_b32((uint32_t *)(void *)last, flags, CUA_RELAXED, scope,
				CUA_SPACE_SHARED);
	else
		cua_port_or_b64(last, flags, CUA_RELAXED, scope, space);
}

/* Appends an element of the cell with this number and last word. Returns 0 if it is lost. */
CUA_FORCE int cua__exact_cell_spill(const struct cua_append_view *spills, uint64_t number,
				    uint64_t *last, uint64_t bits, enum cua_scope scope,
				    enum cua_space space)
{
	struct cua_exact_spill *item = NULL;

	if (spills->cursor && CUA__APPEND_FITS(spills, struct cua_exact_spill))
		item = (struct cua_exact_spill *)cua_append_at(spills,
							       cua_append_reserve(spills, 1));
	if (item) {
		CUA_WRITE(item->cell, number);
		CUA_WRITE(item->bits, bits);
	}
	cua__exact_cell_flag(last, item ? CUA_EXACT_SPILLED : CUA_EXACT_LOST, scope, space);
	return item != NULL;
}

/* The bits of 2^k as f64. */
CUA_FORCE uint64_t cua__exact_cell_power(int k)
{
	return k >= -1022 ? (uint64_t)(k + 1023) << 52 : (uint64_t)1 << (k + 1074);
}

/*
 * Adds `by` times 2^64, in units of word w, to a cell of `words` words. Returns 0 if that is lost.
 */
CUA__RARE int cua__exact_cell_carry(struct cua_append_view spills, uint64_t number, uint64_t *word,
				    int unit, int words, int w, int by, enum cua_scope scope,
				    enum cua_space space)
{
	const int bits = words == 2 ? CUA__EXACT_CELL_BITS_f32 : CUA__EXACT_CELL_BITS_f64;
	const int top = words == 2 ? CUA__EXACT_CELL_TOP_f32 : CUA__EXACT_CELL_TOP_f64;

	while (++w < words) {
		const int shift = 64 - bits + (w == words - 1 ? CUA__EXACT_CELL_FLAG_BITS : 0);
		const int64_t v = (int64_t)1 << shift;

		by = cua__exact_cell_plus(word + w, by < 0 ? -v : v, scope, space);
		if (!by)
			return 1;
	}
	return cua__exact_cell_spill(
		&spills, number, word + words - 1,
		cua__exact_cell_power(unit + top + 1) | (uint64_t)(by < 0) << 63, scope, space);
}

/*
 * An element that is no number from 2^unit up within the range: zero, NaN, an infinity, or an element
 * with zeros as its lowest bits. *m becomes the mantissa to add at position 0 of the cell; 0 if there
 * is nothing to add. Returns 0 if the element is lost.
 */
CUA__RARE int cua__exact_cell_odd(struct cua_append_view spills, uint64_t number, uint64_t *last,
				  int unit, uint64_t bits, int64_t *m, enum cua_scope scope,
				  enum cua_space space)
{
	const struct cua__exact_parts p = cua__exact_parts_of(bits, 52, 11);
	const int below = CUA__EXACT_POINT + unit - p.at;

	*m = 0;
	if (p.flags)
		cua__exact_cell_flag(last, p.flags, scope, space);
	if (p.flags || !p.mantissa)
		return 1;
	if (below > 0 && below < 53 && (p.mantissa & (((uint64_t)1 << below) - 1)) == 0) {
		*m = (int64_t)(p.mantissa >> below);
		if (p.negative)
			*m = -*m;
		return 1;
	}
	return cua__exact_cell_spill(&spills, number, last, bits, scope, space);
}

/* An element of f32 in a cell: the word, and the integer to add to it. */
struct cua__exact_term_f32 {
	int w;
	int64_t v;
};

/* Returns 1, or 0 if the element is odd, as above. */
CUA_FORCE int cua__exact_term_f32(int unit, float x, struct cua__exact_term_f32 *term)
{
	const uint32_t bits = cua__bits_f32(x), exponent = bits >> 23 & 0xff;
	const uint32_t m = exponent ? (bits & 0x7fffff) | 0x800000 : bits & 0x7fffff;
	const int p = (int)(exponent ? exponent : 1) - 150 - unit;
	/* the last word has flags below the integer */
	const int shift = p < 32 ? p : p - 32 + CUA__EXACT_CELL_FLAG_BITS;

	if ((uint32_t)p > CUA__EXACT_CELL_SPAN_f32)
		return 0;
	term->w = p >> 5;
	term->v = (int64_t)((uint64_t)m << shift);
	if (bits >> 31)
		term->v = -term->v;
	return 1;
}

/* An element of f64: `low` for word w, and `high` for word w + 1, 0 if w is the last. */
struct cua__exact_term_f64 {
	int w;
	int64_t low, high;
};

CUA_FORCE int cua__exact_term_f64(int unit, double x, struct cua__exact_term_f64 *term)
{
	const uint64_t bits = cua__bits_f64(x), all = ((uint64_t)1 << 52) - 1;
	const uint32_t exponent = (uint32_t)(bits >> 52) & 0x7ff;
	const uint64_t m = exponent ? (bits & all) | (all + 1) : bits & all;
	const int p = (int)(exponent ? exponent : 1) - 1075 - unit;
	const int w = p >= 112 ? 2 : p >= 56 ? 1 : 0, shift = p - 56 * w;
	uint64_t low, high;

	if ((uint32_t)p > CUA__EXACT_CELL_SPAN_f64)
		return 0;
	/* p = 112 has shift 0 */
	low = (m << shift) & (((uint64_t)1 << 56) - 1);
	high = m >> (56 - shift);
	if (w == 2)
		low <<= CUA__EXACT_CELL_FLAG_BITS;
	if (w == 1)
		high <<= CUA__EXACT_CELL_FLAG_BITS;
	term->w = w;
	term->low = bits >> 63 ? -(int64_t)low : (int64_t)low;
	term->high = bits >> 63 ? -(int64_t)high : (int64_t)high;
	return 1;
}

/* ---- views ---- */

/*
 * For t in f32, f64, of C type T:
 *
 *   struct cua_exact_cells_<t> cua_exact_cells_view_<t>(struct cua_exact_cell_<t> *cell,
 *                                        uint64_t cells, int unit,
 *                                        const struct cua_append_view *spills)
 *     The view of an array of `cells` cells with this unit. spills: the view of an append buffer for
 *     items of sizeof(struct cua_exact_spill) bytes; NULL if there is none.
 *
 *   struct cua_exact_cells_<t> cua_exact_cells_private_<t>(const struct cua_exact_cells_<t> *view,
 *                                        struct cua_exact_cell_<t> *cell, uint64_t first,
 *                                        uint64_t cells)
 *     The view of a block's private cells. They stand for cells `first` to `first` + `cells` - 1 of
 *     another view. cell: in shared memory, on the host in any memory; zeroed by the caller.
 *
 *   int cua_exact_cell_unit_<t>(T greatest)
 *     The least unit of cells that hold numbers of this magnitude. It suits numbers that are at most
 *     2^63, or 2^112, times smaller, if their sums are below 8, or 32, times `greatest`.
 */
#define CUA__DEFINE_EXACT_CELLS_VIEW(t, T, at_least, at_most)                                      \
	CUA_FN struct cua_exact_cells_##t cua_exact_cells_view_##t(                                \
		struct cua_exact_cell_##t *cell, uint64_t cells, int unit,                         \
		const struct cua_append_view *spills)                                              \
	{                                                                                          \
		struct cua_exact_cells_##t view;                                                   \
                                                                                                   \
		memset(&view, 0, sizeof(view));                                                    \
		view.cell = cell;                                                                  \
		view.cells = cells;                                                                \
		view.unit = unit;                                                                  \
		view.layout = CUA_EXACT_CELLS_LAYOUT;                                              \
		if (spills)                                                                        \
			view.spills = *spills;                                                     \
		return view;                                                                       \
	}                                                                                          \
	CUA_FN struct cua_exact_cells_##t cua_exact_cells_private_##t(                             \
		const struct cua_exact_cells_##t *view, struct cua_exact_cell_##t *cell,           \
		uint64_t first, uint64_t cells)                                                    \
	{                                                                                          \
		struct cua_exact_cells_##t own = *view;                                            \
                                                                                                   \
		own.cell = cell;                                                                   \
		own.cells = cells;                                                                 \
		own.first += first;                                                                \
		return own;                                                                        \
	}                                                                                          \
	CUA_FN int cua_exact_cell_unit_##t(T greatest)                                             \
	{                                                                                          \
		const struct cua__exact_parts p =                                                  \
			cua__exact_parts_of(cua__exact_bits_##t(greatest),                         \
					    CUA__EXACT_FRACTION_##t, CUA__EXACT_EXPONENT_##t);     \
		const int unit = p.at - CUA__EXACT_POINT - CUA__EXACT_CELL_SPAN_##t;               \
                                                                                                   \
		return unit < (at_least) ? (at_least) : unit > (at_most) ? (at_most) : unit;       \
	}

CUA__DEFINE_EXACT_CELLS_VIEW(f32, float, CUA_EXACT_CELL_UNIT_MIN_F32, CUA_EXACT_CELL_UNIT_MAX_F32)
CUA__DEFINE_EXACT_CELLS_VIEW(f64, double, CUA_EXACT_CELL_UNIT_MIN_F64, CUA_EXACT_CELL_UNIT_MAX_F64)

/* ---- additions ---- */

/*
 * For t in f32, f64, of C type T, and a view of cells of that type. All of them return 1 if cell i
 * has the element, and 0 if it is lost: there is no cell i, the view's layout is unknown, or the
 * append buffer is full.
 *
 *   int cua_exact_cell_add_<t>(const struct cua_exact_cells_<t> *view, uint64_t i, T x)
 *     cell i += x, by a single lane. The cells are in global memory, on the host in any memory.
 *   int cua_exact_cell_add_block_<t>(view, i, x)
 *     The same for cells in shared memory.
 *   int cua_exact_cell_add_warp_<t>(mask, view, i, x)
 *     The same as `add`, for lanes that often have equal i: a single lane adds for all lanes of a
 *     cell. All lanes of mask, and no other lanes, call it together with the same mask.
 *   int cua_exact_cell_merge_<t>(view, i, const struct cua_exact_cell_<t> *part)
 *     cell i += *part. The cells are in global memory, on the host in any memory. *part: a cell with
 *     the same unit and with the number of cell i in the append buffer, as private cells are.
 */
#define CUA__EXACT_CELL_CARRY(view, i, word, words, w, by, ...)                                    \
	cua__exact_cell_carry((view)->spills, (view)->first + (i), word, (view)->unit, words, w,   \
			      by, __VA_ARGS__)
#define CUA__EXACT_CELLS_HAVE(view, i)                                                             \
	((i) < (view)->cells && (view)->layout == CUA_EXACT_CELLS_LAYOUT)

CUA_FORCE int cua__exact_cell_add_f32(const struct cua_exact_cells_f32 *view, uint64_t i, float x,
				      enum cua_scope scope, enum cua_space space)
{
	struct cua__exact_term_f32 term;
	uint64_t *word;
	int by;

	if (!CUA__EXACT_CELLS_HAVE(view, i))
		return 0;
	word = view->cell[i].word;
	if (!cua__exact_term_f32(view->unit, x, &term)) {
		term.w = 0;
		if (!cua__exact_cell_odd(view->spills, view->first + i, word + 1, view->unit,
					 cua__bits_f64(cua_port_cvt_f64_f32(x)), &term.v, scope,
					 space))
			return 0;
		if (!term.v)
			return 1;
	}
	by = cua__exact_cell_plus(word + term.w, term.v, scope, space);
	return !by || CUA__EXACT_CELL_CARRY(view, i, word, 2, term.w, by, scope, space);
}

CUA_FORCE int cua__exact_cell_add_f64(const struct cua_exact_cells_f64 *view, uint64_t i, double x,
				      enum cua_scope scope, enum cua_space space)
{
	struct cua__exact_term_f64 term;
	uint64_t *word;
	int by, stored = 1;

	if (!CUA__EXACT_CELLS_HAVE(view, i))
		return 0;
	word = view->cell[i].word;
	if (!cua__exact_term_f64(view->unit, x, &term)) {
		term.w = 0;
		term.high = 0;
		if (!cua__exact_cell_odd(view->spills, view->first + i, word + 2, view->unit,
					 cua__bits_f64(x), &term.low, scope, space))
			return 0;
	}
	if (term.low) {
		by = cua__exact_cell_plus(word + term.w, term.low, scope, space);
		if (by)
			stored = CUA__EXACT_CELL_CARRY(view, i, word, 3, term.w, by, scope, space);
	}
	if (term.high) {
		by = cua__exact_cell_plus(word + term.w + 1, term.high, scope, space);
		if (by)
			stored &= CUA__EXACT_CELL_CARRY(view, i, word, 3, term.w + 1, by, scope,
							space);
	}
	return stored;
}

#define CUA__EXACT_CELL_ANYWHERE CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC

CUA_FORCE int cua_exact_cell_add_warp_f32(uint32_t mask, const struct cua_exact_cells_f32 *view,
					  uint64_t i, float x)
{
	struct cua__exact_term_f32 term = {0, 0};
	uint64_t *word = NULL;
	int by, stored = 0;

	if (CUA__EXACT_CELLS_HAVE(view, i)) {
		word = view->cell[i].word;
		stored = 1;
		if (!cua__exact_term_f32(view->unit, x, &term)) {
			term.w = 0;
			stored = cua__exact_cell_odd(view->spills, view->first + i, word + 1,
						     view->unit,
						     cua__bits_f64(cua_port_cvt_f64_f32(x)),
						     &term.v, CUA__EXACT_CELL_ANYWHERE);
		}
	}
	/* the lanes without a term leave; the other lanes stay together */
	mask = cua_port_ballot(mask, term.v != 0);
	if (!term.v)
		return stored;
	by = cua__exact_cell_plus_warp(mask, word + term.w, term.v);
	return !by || CUA__EXACT_CELL_CARRY(view, i, word, 2, term.w, by, CUA__EXACT_CELL_ANYWHERE);
}

CUA_FORCE int cua_exact_cell_add_warp_f64(uint32_t mask, const struct cua_exact_cells_f64 *view,
					  uint64_t i, double x)
{
	struct cua__exact_term_f64 term = {0, 0, 0};
	uint64_t *word = NULL;
	int by, stored = 0;
	uint32_t with;

	if (CUA__EXACT_CELLS_HAVE(view, i)) {
		word = view->cell[i].word;
		stored = 1;
		if (!cua__exact_term_f64(view->unit, x, &term)) {
			term.w = 0;
			term.high = 0;
			stored = cua__exact_cell_odd(view->spills, view->first + i, word + 2,
						     view->unit, cua__bits_f64(x), &term.low,
						     CUA__EXACT_CELL_ANYWHERE);
		}
	}
	with = cua_port_ballot(mask, term.low != 0);
	if (term.low) {
		by = cua__exact_cell_plus_warp(with, word + term.w, term.low);
		if (by)
			stored &= CUA__EXACT_CELL_CARRY(view, i, word, 3, term.w, by,
							CUA__EXACT_CELL_ANYWHERE);
	}
	with = cua_port_ballot(mask, term.high != 0);
	if (term.high) {
		by = cua__exact_cell_plus_warp(with, word + term.w + 1, term.high);
		if (by)
			stored &= CUA__EXACT_CELL_CARRY(view, i, word, 3, term.w + 1, by,
							CUA__EXACT_CELL_ANYWHERE);
	}
	return stored;
}

#define CUA__DEFINE_EXACT_CELL_ADD(t, T)                                                           \
	CUA_FORCE int cua_exact_cell_add_##t(const struct cua_exact_cells_##t *view, uint64_t i,   \
					     T x)                                                  \
	{                                                                                          \
		return cua__exact_cell_add_##t(view, i, x, CUA__EXACT_CELL_ANYWHERE);              \
	}                                                                                          \
	CUA_FORCE int cua_exact_cell_add_block_##t(const struct cua_exact_cells_##t *view,         \
						   uint64_t i, T x)                                \
	{                                                                                          \
		return cua__exact_cell_add_##t(view, i, x, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);     \
	}                                                                                          \
	CUA_FN int cua_exact_cell_merge_##t(const struct cua_exact_cells_##t *view, uint64_t i,    \
					    const struct cua_exact_cell_##t *part)                 \
	{                                                                                          \
		const int words = CUA__EXACT_CELL_WORDS_##t;                                       \
		uint64_t *word;                                                                    \
		int stored = 1;                                                                    \
                                                                                                   \
		if (!CUA__EXACT_CELLS_HAVE(view, i))                                               \
			return 0;                                                                  \
		word = view->cell[i].word;                                                         \
		for (int w = 0; w < words; w++) {                                                  \
			const uint64_t flags = w == words - 1 ? CUA__EXACT_CELL_FLAGS : 0;         \
			const uint64_t v = CUA_READ(part->word[w]);                                \
			int by = 0;                                                                \
                                                                                                   \
			if (v & ~flags)                                                            \
				by = cua__exact_cell_plus(word + w, (int64_t)(v & ~flags),         \
							  CUA__EXACT_CELL_ANYWHERE);               \
			if (by)                                                                    \
				stored &= CUA__EXACT_CELL_CARRY(view, i, word, words, w, by,       \
								CUA__EXACT_CELL_ANYWHERE);         \
			if (v & flags)                                                             \
				cua__exact_cell_flag(word + w, (uint32_t)(v & flags),              \
						     CUA__EXACT_CELL_ANYWHERE);                    \
		}                                                                                  \
		return stored;                                                                     \
	}

CUA__DEFINE_EXACT_CELL_ADD(f32, float)
CUA__DEFINE_EXACT_CELL_ADD(f64, double)

/* ---- host calls ---- */

/* The elements of an array, for the choice of a unit. */
struct cua_exact_fit {
	/* the unit of cells that hold the most of these elements; the greatest of the best units */
	int32_t unit;
	/* CUA_EXACT_NAN and so on, if there are such elements */
	uint32_t flags;
	/* elements that these cells do not hold: the capacity of the append buffer */
	uint64_t outside;
};

/* Options of cua_exact_cells_finish_f32 and _f64; 0 chooses the default. */
struct cua_exact_cells_options {
	size_t struct_size; /* sizeof(struct cua_exact_cells_options), set by the caller */
	/* F16, BF16, F32 or F64. NONE, the default: the type of the cells */
	enum cua_type result_type;
	/* 1: the old values of the results are ignored; 0: they are summands */
	int overwrite;
	/* If not NULL, *lost becomes the number of cells that lost an element. */
	uint64_t *lost;
};
#define CUA_EXACT_CELLS_OPTIONS_INIT CUA__SIZED_INIT(struct cua_exact_cells_options)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Finds the unit for the sums of the n elements of x. type is F32, for cells of f32, or F64.
 * It is the default unit if no element is a number other than 0.
 * *fit follows the rules for results in cuatomic/context.h.
 * Errors: NULL; TYPE; SIZE; ALIGNMENT; OVERLAP (of fit with x); MEMORY_KIND; CAPTURE; WORKSPACE;
 *   NO_MEMORY; CUDA.
 */
CUA_API enum cua_status cua_exact_range(struct cua_context *ctx, enum cua_type type, size_t n,
					const void *x, struct cua_exact_fit *fit);

/*
 * out[i] += the sum of cell i, for all cells of the view: rounded once, with the old value as a
 * summand, or alone in a call that overwrites. A sum of exactly 0 leaves the old value, or becomes
 * +0. A cell that lost an element becomes NaN. The cells have the same contents afterwards, so
 * additions may go on. The call writes to them meanwhile.
 *
 * The cells, the append buffer and out are memory of the backend. The call is ordered in the stream.
 * If options->lost is ordinary host memory, the call waits, and the status is FULL if a cell lost an
 * element; the results are stored nevertheless. options may be NULL.
 * Errors: NULL; VALUE (options, unit, the size of items); TYPE; LAYOUT; SIZE; ALIGNMENT;
 *   OVERLAP (of out, lost and cells); MEMORY_KIND; CAPTURE; WORKSPACE; NO_MEMORY; FULL; CUDA.
 */
CUA_API enum cua_status cua_exact_cells_finish_f32(struct cua_context *ctx,
						   const struct cua_exact_cells_options *options,
						   const struct cua_exact_cells_f32 *view,
						   void *out);
CUA_API enum cua_status cua_exact_cells_finish_f64(struct cua_context *ctx,
						   const struct cua_exact_cells_options *options,
						   const struct cua_exact_cells_f64 *view,
						   void *out);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_EXACT_CELL_H */
