/* SPDX-License-Identifier: MIT */
/*
 * Additions to exact cells of either type, and their expected results. The tests on the host and
 * the tests with kernels include this file, so it compiles as C and C++.
 */
#ifndef CUATOMIC_TESTS_EXACT_CELL_CALLS_H
#define CUATOMIC_TESTS_EXACT_CELL_CALLS_H

#include "common.h"
#include "exact_elements.h"
#include "sum_model.h"

#ifndef COUNT
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#endif

/* ---- the types of cells ---- */

static const struct cell_type {
	enum cua_type type;
	int least, most, usual; /* units */
	int words, bits;        /* of a cell; between the units of neighbouring words */
	int range, top;         /* elements are below 2^(unit + range), sums below 2^(unit + top) */
	int digits;             /* of the mantissa of an element */
	size_t size;
} cell_types[2] = {
	{CUA_F32, CUA_EXACT_CELL_UNIT_MIN_F32, CUA_EXACT_CELL_UNIT_MAX_F32, CUA_EXACT_CELL_UNIT_F32,
	 2, 32, 87, 90, 24, sizeof(struct cua_exact_cell_f32)},
	{CUA_F64, CUA_EXACT_CELL_UNIT_MIN_F64, CUA_EXACT_CELL_UNIT_MAX_F64, CUA_EXACT_CELL_UNIT_F64,
	 3, 56, 165, 170, 53, sizeof(struct cua_exact_cell_f64)},
};

/* The view of cells of a type; the other view is unused. */
struct cells {
	const struct cell_type *type;
	struct cua_exact_cells_f32 f32;
	struct cua_exact_cells_f64 f64;
};

static inline struct cells cells_view(const struct cell_type *type, void *cell, uint64_t n,
				      int unit, const struct cua_append_view *spills)
{
	struct cells c;

	memset(&c, 0, sizeof(c));
	c.type = type;
	if (type->type == CUA_F32)
		c.f32 = cua_exact_cells_view_f32((struct cua_exact_cell_f32 *)cell, n, unit,
						 spills);
	else
		c.f64 = cua_exact_cells_view_f64((struct cua_exact_cell_f64 *)cell, n, unit,
						 spills);
	return c;
}

/* A way to add an element. */
enum form { LANE, WARP, BLOCK, FORMS };
static const char *const form_names[] = {"lane", "warp", "block"};

/* An addition by a thread of the host. */
static inline int cells_add(const struct cells *c, enum form form, uint64_t i, uint64_t bits)
{
	const uint32_t narrow = (uint32_t)bits;
	float s;
	double d;

	memcpy(&s, &narrow, sizeof(s));
	memcpy(&d, &bits, sizeof(d));
	if (c->type->type == CUA_F32)
		return form == LANE   ? cua_exact_cell_add_f32(&c->f32, i, s)
		       : form == WARP ? cua_exact_cell_add_warp_f32(1, &c->f32, i, s)
				      : cua_exact_cell_add_block_f32(&c->f32, i, s);
	return form == LANE   ? cua_exact_cell_add_f64(&c->f64, i, d)
	       : form == WARP ? cua_exact_cell_add_warp_f64(1, &c->f64, i, d)
			      : cua_exact_cell_add_block_f64(&c->f64, i, d);
}

static inline enum cua_status cells_finish(struct cua_context *ctx,
					   const struct cua_exact_cells_options *o,
					   const struct cells *c, void *out)
{
	return c->type->type == CUA_F32 ? cua_exact_cells_finish_f32(ctx, o, &c->f32, out)
					: cua_exact_cells_finish_f64(ctx, o, &c->f64, out);
}

/* ---- elements ---- */

/* The kinds of exact_elements.h, and kinds that depend on the unit. */
enum cell_kind {
	CELL_UNIFORM = KINDS, /* in the middle of the range */
	CELL_NORMAL,          /* nearly a normal distribution, with exponents of a wide range */
	CELL_ODD,             /* multiples of the unit whose lowest bits are zeros; rarely halves */
	CELL_ENDS,            /* at the ends of the range, and slightly to either side of them */
	CELL_CARRY,           /* full mantissas near the ends of a word, with long runs of a sign */
	CELL_TOP,             /* the largest elements, with long runs of a sign */
	CELL_KINDS
};

static inline const char *cell_kind_name(int kind)
{
	static const char *const names[] = {"uniform", "normal", "odd", "ends", "carry", "top"};

	return kind < KINDS ? kind_names[kind] : names[kind - KINDS];
}

/* m 2^power, rounded to a finite number. */
static inline uint64_t scaled(const struct format *f, uint64_t negative, uint64_t m, int power)
{
	uint64_t bits = bits_of(f, ldexp((double)m, power));

	if (bits >= format_infinity(f))
		bits = format_infinity(f) - 1;
	return bits | (negative ? format_minus(f) : 0);
}

/* A neighbour of a positive number of the format. */
static inline uint64_t neighbour(const struct format *f, uint64_t bits, int up)
{
	if (up)
		return bits + 1 < format_infinity(f) ? bits + 1 : bits;
	return bits ? bits - 1 : bits;
}

static inline uint64_t end_of_range(const struct cell_type *t, int unit, uint64_t r)
{
	const struct format *f = format_of(t->type);
	const int powers[] = {unit + t->range, unit, unit - 1, unit + t->digits - 1,
			      unit + t->digits};
	const uint64_t bits = scaled(f, 0, 1, powers[r % COUNT(powers)]);

	switch (r / 8 % 4) {
	case 0: return neighbour(f, bits, 0);
	case 1: return neighbour(f, bits, 1);
	default: return bits;
	}
}

/* Element number i of an array; `run` elements in sequence have the same sign. */
static inline uint64_t cell_element(const struct cell_type *t, int unit, int kind, size_t i,
				    size_t run, uint64_t *seed)
{
	static const int near[2][6] = {{31, 30, 32, 8, 63, 7}, {55, 56, 54, 112, 111, 3}};
	const struct format *f = format_of(t->type);
	const uint64_t r = test_random(seed), odd = i / run % 2, all = ((uint64_t)1 << 53) - 1;
	double v;

	switch (kind) {
	case CELL_UNIFORM: return scaled(f, r & 1, r >> 11, unit + t->range / 2 - 53);
	case CELL_NORMAL:
		v = (double)(r & 0xffff) + (double)(r >> 16 & 0xffff) + (double)(r >> 32 & 0xffff) +
		    (double)(r >> 48) - 131070.0;
		return scaled(f, v < 0, (uint64_t)(fabs(v) * 0x1p30), unit + t->range / 2 - 47);
	case CELL_ODD:
		/* m ends in the bit of the unit, or below it */
		return scaled(f, r & 1, (r >> 11 >> (54 - t->digits + (int)(r / 2 % 20))) | 1,
			      unit - (r / 64 % 16 == 0));
	case CELL_ENDS: return end_of_range(t, unit, r / 2) | (r & 1 ? format_minus(f) : 0);
	case CELL_CARRY:
		return scaled(f, odd, (all - (r & 3)) >> (53 - t->digits),
			      unit + near[t->words - 2][r / 64 % 64 ? i / run / 2 % 6 : r / 4 % 6]);
	case CELL_TOP:
		return neighbour(f, scaled(f, 0, 1, unit + t->range), 0) |
		       (odd ^ (r % 64 == 0) ? format_minus(f) : 0);
	default: return random_element(f, (enum kind_of_element)kind, i, seed);
	}
}

/* Whether a cell does not hold the element. */
static inline int is_outside(const struct cell_type *t, int unit, uint64_t bits)
{
	uint64_t m;
	int negative, power;

	if (!model_split(format_of(t->type), bits, &negative, &m, &power) || !m)
		return 0;
	for (; m % 2 == 0; m /= 2)
		power++;
	if (power < unit)
		return 1;
	for (; m; m /= 2)
		power++;
	return power > unit + t->range;
}

/* ---- arrays of additions ---- */

/* x[i] is added to cell[i]. */
struct additions {
	const struct cell_type *type;
	int unit, kind;
	size_t n;
	uint32_t cells;
	uint32_t *cell;
	void *x;
	uint64_t outside; /* elements outside the range */
	int may_overflow; /* a sum may pass the end of the last word */
};

static inline uint64_t element(const struct additions *a, size_t i)
{
	return load_bits(a->type->type, a->x, i);
}

/* Recounts the elements for another unit. */
static inline void set_unit(struct additions *a, int unit)
{
	const struct format *f = format_of(a->type->type);
	double *total = (double *)test_malloc(a->cells * sizeof(double));

	a->unit = unit;
	a->outside = 0;
	a->may_overflow = 0;
	for (uint32_t c = 0; c < a->cells; c++)
		total[c] = 0;
	for (size_t i = 0; i < a->n; i++) {
		const uint64_t bits = element(a, i);

		if (is_outside(a->type, unit, bits))
			a->outside++;
		else if ((bits & (format_minus(f) - 1)) < format_infinity(f))
			total[a->cell[i]] += fabs(float_of(f, bits));
		if (total[a->cell[i]] > ldexp(0.99, unit + a->type->top))
			a->may_overflow = 1;
	}
	free(total);
}

static inline void swap_additions(const struct additions *a, size_t i, size_t j)
{
	const uint64_t x = element(a, i), y = element(a, j);
	const uint32_t cell = a->cell[i];

	store_bits(a->type->type, a->x, i, y);
	store_bits(a->type->type, a->x, j, x);
	a->cell[i] = a->cell[j];
	a->cell[j] = cell;
}

static inline void shuffle_additions(const struct additions *a, uint64_t *seed)
{
	for (size_t i = a->n; i > 1; i--)
		swap_additions(a, i - 1, (size_t)(test_random(seed) % i));
}

static inline struct additions make_additions(const struct cell_type *t, int unit, int kind,
					      size_t n, uint32_t cells, uint64_t *seed)
{
	struct additions a;
	/* a run reaches every cell often enough to pass the ends of its words */
	const size_t run = (kind == CELL_TOP ? 50 : 700) * (size_t)cells;
	const uint64_t minus = format_minus(format_of(t->type));

	memset(&a, 0, sizeof(a));
	a.type = t;
	a.kind = kind;
	a.n = n;
	a.cells = cells;
	a.cell = (uint32_t *)test_malloc(n * sizeof(*a.cell));
	a.x = test_malloc(n * cua_type_size(t->type));
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = cell_element(t, unit, kind, i, run, seed);

		a.cell[i] = (uint32_t)(test_random(seed) % cells);
		if (kind == KIND_CANCEL && i % 2) {
			/* nearly all pairs cancel */
			a.cell[i] = a.cell[i - 1];
			bits = element(&a, i - 1) ^ minus ^ (test_random(seed) % 512 == 0);
		}
		store_bits(t->type, a.x, i, bits);
	}
	if (kind == KIND_CANCEL) {
		if (n % 2)
			store_bits(t->type, a.x, n - 1, minus);
		shuffle_additions(&a, seed);
	}
	set_unit(&a, unit);
	return a;
}

static inline void free_additions(const struct additions *a)
{
	free(a->cell);
	free(a->x);
}

/* ---- expected results ---- */

/* The additions by cell: first[c], then next[i], up to n. */
struct chains {
	size_t *first, *next;
};

static inline struct chains chains_of(const struct additions *a)
{
	struct chains c;

	c.first = (size_t *)test_malloc(a->cells * sizeof(size_t));
	c.next = (size_t *)test_malloc(a->n * sizeof(size_t));
	for (uint32_t cell = 0; cell < a->cells; cell++)
		c.first[cell] = a->n;
	for (size_t i = a->n; i-- > 0;) {
		c.next[i] = c.first[a->cell[i]];
		c.first[a->cell[i]] = i;
	}
	return c;
}

static inline void free_chains(const struct chains *c)
{
	free(c->first);
	free(c->next);
}

/* The result of cell number `cell`. lost: 1 if an element of the cell is lost. */
static inline uint64_t expected_result(const struct additions *a, const struct chains *chains,
				       uint32_t cell, int lost, enum cua_type result, int overwrite,
				       uint64_t old)
{
	const struct format *f = format_of(result);

	if (lost)
		return format_nan(f);
	sum_begin();
	for (size_t i = chains->first[cell]; i < a->n; i = chains->next[i])
		sum_take(format_of(a->type->type), element(a, i));
	if (sum_is_zero())
		return overwrite ? 0 : old;
	if (!overwrite)
		sum_take(f, old);
	return sum_round(f);
}

/* lost: a byte for each cell, or NULL if no element is lost. */
static inline void expected_results(const struct additions *a, const uint8_t *lost,
				    enum cua_type result, int overwrite, const void *old,
				    void *expected)
{
	const struct chains chains = chains_of(a);

	for (uint32_t c = 0; c < a->cells; c++)
		store_bits(result, expected, c,
			   expected_result(a, &chains, c, lost && lost[c], result, overwrite,
					   load_bits(result, old, c)));
	free_chains(&chains);
}

/* Old values: few of them are special, because most special values decide the result. */
static inline void *make_old(const struct additions *a, enum cua_type result, uint64_t *seed)
{
	const struct format *f = format_of(result);
	void *old = test_malloc(a->cells * cua_type_size(result));

	for (uint32_t c = 0; c < a->cells; c++) {
		const uint64_t r = test_random(seed);
		uint64_t bits;

		if (r % 64 == 0)
			bits = format_infinity(f) + r / 64 % 3 + (r / 1024 & 1) * format_minus(f);
		else if (r % 4 == 0)
			bits = (r / 8 & 1) * format_minus(f);
		else
			bits = random_element(
				f, a->kind < KINDS ? (enum kind_of_element)a->kind : KIND_WIDE, c,
				seed);
		store_bits(result, old, c, bits);
	}
	return old;
}

static inline void expect_results(const struct additions *a, const char *what, enum cua_type result,
				  int overwrite, const void *old, const void *got,
				  const void *expected)
{
	for (uint32_t c = 0; c < a->cells; c++) {
		const uint64_t have = load_bits(result, got, c);
		const uint64_t want = load_bits(result, expected, c);

		EXPECT(have == want,
		       "%s: %s, unit %d, %zu %s elements in %u cells, to %s, overwrite %d: cell "
		       "%u was %llx, is %llx, not %llx",
		       what, cua_type_name(a->type->type), a->unit, a->n, cell_kind_name(a->kind),
		       a->cells, cua_type_name(result), overwrite, c,
		       (unsigned long long)load_bits(result, old, c), (unsigned long long)have,
		       (unsigned long long)want);
	}
}

/* ---- cells in host memory ---- */

/* Cells with an append buffer; zeroed. */
struct host_cells {
	struct cells view;
	void *cell;
	struct cua_append_cursor *cursor;
	struct cua_exact_spill *items;
	struct cua_append_view spills;
};

static inline struct host_cells make_host_cells(const struct cell_type *t, uint64_t cells, int unit,
						uint64_t capacity)
{
	struct host_cells h;

	memset(&h, 0, sizeof(h));
	h.cell = test_malloc(cells * t->size);
	memset(h.cell, 0, cells * t->size);
	h.cursor = (struct cua_append_cursor *)test_malloc(sizeof(*h.cursor));
	h.cursor->demand = 0;
	h.items = (struct cua_exact_spill *)test_malloc((capacity + 1) * sizeof(*h.items));
	h.spills.items = h.items;
	h.spills.cursor = h.cursor;
	h.spills.capacity = capacity;
	h.spills.item_size = sizeof(*h.items);
	h.spills.layout = CUA_APPEND_LAYOUT;
	h.view = cells_view(t, h.cell, cells, unit, &h.spills);
	return h;
}

static inline void free_host_cells(const struct host_cells *h)
{
	free(h->cell);
	free(h->cursor);
	free(h->items);
}

static inline uint64_t cell_word(const struct cell_type *t, const void *cell, uint64_t i, int w)
{
	uint64_t word;

	memcpy(&word, (const char *)cell + i * t->size + 8 * (size_t)w, sizeof(word));
	return word;
}

/* The flags of a cell of the host. */
static inline uint32_t cell_flags(const struct cell_type *t, const void *cell, uint64_t i)
{
	return (uint32_t)(cell_word(t, cell, i, t->words - 1) & 31);
}

/* ---- cells in the memory of a backend ---- */

struct backend_cells {
	struct cells view;
	void *cell, *items;
	struct cua_append_cursor *cursor;
};

/* A copy of cells and their spills. */
static inline struct backend_cells upload_cells(struct cua_context *ctx, const struct host_cells *h)
{
	const struct cell_type *t = h->view.type;
	const uint64_t cells = t->type == CUA_F32 ? h->view.f32.cells : h->view.f64.cells;
	struct cua_append_view spills = h->spills;
	struct backend_cells b;

	b.cell = test_upload(ctx, h->cell, cells * t->size);
	b.items = test_upload(ctx, h->items, (h->spills.capacity + 1) * sizeof(*h->items));
	b.cursor = (struct cua_append_cursor *)test_upload(ctx, h->cursor, sizeof(*h->cursor));
	spills.items = b.items;
	spills.cursor = b.cursor;
	b.view = h->view;
	b.view.f32.spills = b.view.f64.spills = spills;
	b.view.f32.cell = (struct cua_exact_cell_f32 *)b.cell;
	b.view.f64.cell = (struct cua_exact_cell_f64 *)b.cell;
	return b;
}

static inline void free_backend_cells(struct cua_context *ctx, const struct backend_cells *b)
{
	test_free(ctx, b->cell);
	test_free(ctx, b->items);
	test_free(ctx, b->cursor);
}

/*
 * finish of all cells into a copy of `old`, whose end is a guard. Returns the results in host
 * memory.
 */
static inline void *finish_cells(struct cua_context *ctx, const struct cells *c,
				 const struct cua_exact_cells_options *o, enum cua_type result,
				 const void *old, enum cua_status expected)
{
	const uint64_t cells = c->type->type == CUA_F32 ? c->f32.cells : c->f64.cells;
	const size_t bytes = cells * cua_type_size(result);
	char *got = (char *)test_malloc(bytes + 64);
	void *out = test_alloc(ctx, bytes + 64);

	memset(got, 0xa5, bytes + 64);
	memcpy(got, old, bytes);
	ck_assert_cua(cua_copy(ctx, out, got, bytes + 64));
	ck_assert_status(cells_finish(ctx, o, c, out), expected);
	test_download(ctx, got, out, bytes + 64);
	for (size_t i = 0; i < 64; i++)
		EXPECT((uint8_t)got[bytes + i] == 0xa5, "a result behind the last cell");
	test_free(ctx, out);
	return got;
}

#endif /* CUATOMIC_TESTS_EXACT_CELL_CALLS_H */
