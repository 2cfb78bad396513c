/* SPDX-License-Identifier: MIT */
/* A scatter on the CPU: adding batches of elements to cells. */
#ifndef CUATOMIC_CPU_CPU_SCATTER_CELLS_H
#define CUATOMIC_CPU_CPU_SCATTER_CELLS_H

#include "cpu/cpu_scatter_job.h"

/* Additions to digits that need no normalization in between. */
#define MOST_ADDITIONS ((uint64_t)1 << 28)

/* Rows and the targets that they belong to. */
struct batch {
	uint32_t n; /* rows */
	/* the rows are at x; elements that can be read from there on; or x is NULL */
	const char *x;
	uint64_t readable;
	uint32_t at[BATCH];       /* rows of targets */
	uint64_t row[BATCH];      /* rows in the input, if x is NULL */
	uint64_t gathered[BATCH]; /* elements */
	/* temporary */
	uint64_t word[2 * BATCH];
	float floats[BATCH];
	uint64_t scrubbed[BATCH];
};

/* Elements of adjacent columns: `columns` for each of `rows`, without gaps. */
struct tile {
	const uint32_t *at;
	const void *x;
	uint32_t rows, columns, column; /* column: the first */
};

/* ---- elements as words ---- */

static void scan(const struct job *j, const void *x, float *floats, struct bounds *bounds)
{
	switch (j->s->type) {
	case CUA_F16:
	case CUA_BF16:
		j->loops->floats[j->s->type == CUA_BF16](x, floats);
		j->loops->scan_f32(floats, bounds);
		break;
	case CUA_F32: j->loops->scan_f32(x, bounds); break;
	default: j->loops->scan_f64(x, bounds); break;
	}
}

static void store(size_t size, void *x, uint64_t i, uint64_t bits)
{
	switch (size) {
	case 1: ((uint8_t *)x)[i] = (uint8_t)bits; break;
	case 2: ((cua__raw16 *)x)[i] = (uint16_t)bits; break;
	case 4: ((cua__raw32 *)x)[i] = (uint32_t)bits; break;
	default: ((cua__raw64 *)x)[i] = bits; break;
	}
}

/* Sets the flags of infinities and NaN, and replaces them by 0. */
static void scrub(const struct job *j, const struct part *p, struct batch *b, struct tile *t)
{
	const uint32_t n = t->rows * t->columns;
	struct bounds bounds = {INT32_MAX, INT32_MIN, 0};

	scan(j, t->x, b->floats, &bounds);
	if (!bounds.special)
		return;
	memset(b->scrubbed, 0, sizeof(b->scrubbed));
	memcpy(b->scrubbed, t->x, n * j->size);
	t->x = b->scrubbed;
	for (uint32_t k = 0; k < n; k++) {
		const uint64_t bits = cua__element_load(j->size, b->scrubbed, k);
		const uint32_t flags = cua__scatter_parts(j->s->type, bits).flags;

		if (!flags)
			continue;
		p->flags[(size_t)t->at[k / t->columns] * j->s->width + t->column +
			 k % t->columns] |= (uint8_t)flags;
		store(j->size, b->scrubbed, k, 0);
	}
}

static void convert(const struct job *j, const struct form *f, struct batch *b,
		    const struct tile *t)
{
	const enum cua_type type = j->s->type;
	const void *x = t->x;

	if (f->kind == KIND_KEY && cua__is_float(type)) {
		j->loops->keys[type](f, x, b->word);
		return;
	}
	if (f->kind < KIND_WORD) {
		j->loops->integers[type](f, x, b->word);
		return;
	}
	if (type == CUA_F16 || type == CUA_BF16) {
		j->loops->floats[type == CUA_BF16](x, b->floats);
		x = b->floats;
	}
	(f->kind == KIND_WORD ? j->loops->words : j->loops->wides)[type == CUA_F64](f, x, b->word);
}

/* ---- additions to cells ---- */

CUA_FORCE void add_integer(uint64_t *cell, uint64_t v)
{
	*cell += v;
}

CUA_FORCE void add_key(uint64_t *cell, uint64_t v)
{
	*cell = v > *cell ? v : *cell;
}

/* Returns 1 if the word has overflowed. */
CUA_FORCE int add_word(uint64_t *cell, uint64_t v)
{
	const uint64_t old = *cell, sum = old + v;

	*cell = sum;
	return (int64_t)((sum ^ old) & (sum ^ v)) < 0;
}

CUA_FORCE void add_wide(uint64_t *cell, uint64_t low, uint64_t high)
{
	const cua__uint128 old = (cua__uint128)cell[1] << 64 | cell[0];
	const cua__uint128 sum = old + ((cua__uint128)high << 64 | low);

	cell[0] = (uint64_t)sum;
	cell[1] = (uint64_t)(sum >> 64);
}

static int add_single_words(uint64_t *restrict cells, const uint32_t *restrict at,
			    const uint64_t *restrict v, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		int64_t *cell = (int64_t *)&cells[at[k]];

		if (__builtin_add_overflow(*cell, (int64_t)v[k], cell))
			return 1;
	}
	return 0;
}

/* Adds the converted elements of a tile of a single column. Returns 1 if a word has overflowed. */
static int add_single(const struct form *f, uint64_t *restrict cells, const struct batch *b,
		      const struct tile *t)
{
	const uint32_t *restrict at = t->at;
	const uint64_t *restrict v = b->word;
	const uint32_t n = t->rows;

	switch (f->kind) {
	case KIND_INTEGER:
		for (uint32_t k = 0; k < n; k++)
			add_integer(&cells[at[k]], v[k]);
		return 0;
	case KIND_KEY:
		for (uint32_t k = 0; k < n; k++)
			add_key(&cells[at[k]], v[k]);
		return 0;
	case KIND_WORD: return add_single_words(cells, at, v, n);
	default:
		for (uint32_t k = 0; k < n; k++)
			add_wide(&cells[2 * (size_t)at[k]], v[k], v[BATCH + k]);
		return 0;
	}
}

static int add_columns(const struct form *f, uint64_t *restrict cells, const uint64_t *restrict v,
		       uint32_t columns)
{
	int overflow = 0;

	switch (f->kind) {
	case KIND_INTEGER:
		for (uint32_t c = 0; c < columns; c++)
			add_integer(&cells[c], v[c]);
		break;
	case KIND_KEY:
		for (uint32_t c = 0; c < columns; c++)
			add_key(&cells[c], v[c]);
		break;
	case KIND_WORD:
		for (uint32_t c = 0; c < columns; c++)
			overflow |= add_word(&cells[c], v[c]);
		break;
	default:
		for (uint32_t c = 0; c < columns; c++)
			add_wide(&cells[2 * (size_t)c], v[c], v[BATCH + c]);
		break;
	}
	return overflow;
}

static void add_digits(const struct job *j, const struct form *f, const struct part *p,
		       const struct tile *t)
{
	for (uint32_t k = 0; k < t->rows * t->columns; k++) {
		struct cua__exact_parts e =
			cua__scatter_parts(j->s->type, cua__element_load(j->size, t->x, k));
		const size_t cell =
			(size_t)t->at[k / t->columns] * j->s->width + t->column + k % t->columns;

		if (!e.mantissa)
			continue;
		/* no element has bits below f->at */
		if (e.at < f->at) {
			e.mantissa >>= f->at - e.at;
			e.at = f->at;
		}
		cua__exact_insert((int64_t *)p->cells + cell * f->words, e.negative, e.mantissa,
				  e.at - f->at);
	}
}

static int add_tile(const struct job *j, const struct form *f, const struct part *p,
		    struct batch *b, struct tile *t)
{
	int overflow = 0;

	if (j->bounds.special)
		scrub(j, p, b, t);
	if (f->kind == KIND_DIGITS) {
		add_digits(j, f, p, t);
		return 0;
	}
	convert(j, f, b, t);
	if (j->s->width == 1)
		return add_single(f, p->cells, b, t);
	for (uint32_t r = 0; r < t->rows; r++)
		overflow |= add_columns(
			f, p->cells + ((size_t)t->at[r] * j->s->width + t->column) * f->words,
			b->word + r * t->columns, t->columns);
	return overflow;
}

/* Makes the elements of a tile readable without gaps, and so many after them that they are BATCH. */
static const void *tile_elements(const struct job *j, struct batch *b, uint32_t r,
				 const struct tile *t)
{
	const size_t size = j->size, columns = t->columns * size;
	const size_t stride = j->s->width * size;
	const uint64_t before = (uint64_t)r * j->s->width + t->column;
	char *to = (char *)b->gathered;

	if (b->x && b->readable >= before + BATCH)
		return b->x + before * size;
	if (b->x) {
		memcpy(to, b->x + before * size, t->rows * columns);
		return to;
	}
	if (j->s->width == 1) {
		for (uint32_t k = 0; k < t->rows; k++)
			store(size, to, k, cua__element_load(size, j->s->x, b->row[r + k]));
		return to;
	}
	for (uint32_t k = 0; k < t->rows; k++)
		memcpy(to + k * columns,
		       (const char *)j->s->x + b->row[r + k] * stride + t->column * size, columns);
	return to;
}

/* Adds the rows of a batch. Returns 1 if a word has overflowed. */
static int add_batch(const struct job *j, const struct form *f, const struct part *p,
		     struct batch *b)
{
	const uint32_t width = j->s->width, columns = width < BATCH ? width : BATCH;
	const uint32_t rows = BATCH / columns;

	if (p->far)
		for (uint32_t k = 0; k < b->n; k++)
			__builtin_prefetch(p->cells + (size_t)b->at[k] * width * f->words, 1);
	for (uint32_t r = 0; r < b->n; r += rows) {
		for (uint32_t c = 0; c < width; c += columns) {
			struct tile t = {.at = b->at + r, .column = c};

			t.rows = b->n - r < rows ? b->n - r : rows;
			t.columns = width - c < columns ? width - c : columns;
			t.x = tile_elements(j, b, r, &t);
			if (add_tile(j, f, p, b, &t))
				return 1;
		}
	}
	if (j->s->op == CUA_SCATTER_MEAN)
		for (uint32_t k = 0; k < b->n; k++)
			p->counts[b->at[k]]++;
	return 0;
}

/* Normalizes the digits of all cells. */
static void carry_digits(const struct job *j, const struct form *f, const struct part *p,
			 uint32_t rows)
{
	for (size_t i = 0; i < (size_t)rows * j->s->width; i++)
		cua__exact_carry((int64_t *)p->cells + i * f->words, 0, (int)f->words - 1);
}

#endif /* CUATOMIC_CPU_CPU_SCATTER_CELLS_H */
