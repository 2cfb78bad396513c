/* SPDX-License-Identifier: MIT */
/* A scatter on the CPU: the new values of targets, from the cells of the workers. */
#ifndef CUATOMIC_CPU_CPU_SCATTER_FINISH_H
#define CUATOMIC_CPU_CPU_SCATTER_FINISH_H

#include "cpu/cpu_scatter_cells.h"

/* ---- taking the contents of cells ---- */

/* The sum of a cell of several workers; the cells become 0. */
CUA_FORCE int128 take_sum(enum kind kind, const struct parts *parts, size_t i)
{
	cua__uint128 sum = 0;

	for (unsigned w = 0; w < parts->n; w++) {
		uint64_t *cell = part_at(parts, w).cells + (kind == KIND_WIDE ? 2 * i : i);

		if (kind == KIND_WIDE) {
			sum += (cua__uint128)cell[1] << 64 | cell[0];
			cell[1] = 0;
		} else {
			sum += (cua__uint128)(int128)(int64_t)*cell;
		}
		*cell = 0;
	}
	return (int128)sum;
}

static uint64_t take_key(const struct parts *parts, size_t i)
{
	uint64_t key = 0;

	for (unsigned w = 0; w < parts->n; w++) {
		uint64_t *cell = part_at(parts, w).cells + i;

		add_key(&key, *cell);
		*cell = 0;
	}
	return key;
}

static uint32_t take_flags(const struct parts *parts, size_t i)
{
	uint32_t flags = 0;

	for (unsigned w = 0; w < parts->n; w++) {
		uint8_t *own = part_at(parts, w).flags + i;

		flags |= *own;
		*own = 0;
	}
	return flags;
}

static uint64_t take_count(const struct parts *parts, size_t row)
{
	uint64_t count = 0;

	for (unsigned w = 0; w < parts->n; w++) {
		uint64_t *own = part_at(parts, w).counts + row;

		count += *own;
		*own = 0;
	}
	return count;
}

/* Returns whether a digit is not 0. */
static int take_digits(const struct form *f, const struct parts *parts, size_t i, int64_t *digit)
{
	int64_t any = 0;

	memset(digit, 0, f->words * sizeof(*digit));
	for (unsigned w = 0; w < parts->n; w++) {
		int64_t *cell = (int64_t *)part_at(parts, w).cells + i * f->words;

		/* so the sum over the workers does not overflow */
		if (parts->n > 1)
			cua__exact_carry(cell, 0, (int)f->words - 1);
		for (unsigned k = 0; k < f->words; k++) {
			digit[k] += cell[k];
			any |= cell[k];
			cell[k] = 0;
		}
	}
	return any != 0;
}

/* ---- new values ---- */

static uint64_t sum_of(enum cua_type type, const struct form *f, int128 v, int overwrite,
		       uint64_t old)
{
	return cua__scatter_sum_wide(type, v < 0, v < 0 ? 0 - (cua__uint128)v : (cua__uint128)v,
				     f->at, overwrite, old);
}

/* The new value of a target with a sum in digits, or with flags. */
static uint64_t sum_of_digits(enum cua_type type, const struct form *f, const int64_t *digit,
			      uint32_t flags, int overwrite, uint64_t old)
{
	int64_t all[CUA__SCATTER_DIGITS] = {0};

	if (digit)
		memcpy(all + f->at / 32 - cua__scatter_low(type), digit, f->words * sizeof(*digit));
	return cua__scatter_sum_digits(type, type, all, flags, overwrite, old);
}

/* Converts a key of the elements' type to the result type. */
static uint64_t result_key(const struct cua__scatter *s, uint64_t key)
{
	if (!cua__is_float(s->type) || s->type == s->result_type || key <= CUA__SCATTER_KEY_NAN)
		return key;
	return cua__scatter_key(
		s->op, s->result_type,
		cua__scatter_widen(s->type, s->result_type,
				   cua__scatter_extreme(s->op, s->type, key, 1, 0)));
}

/* Sets *bits to the new value of target i of a range. Its row has `count` elements. Returns 0 if it is unchanged. */
static int new_value(const struct job *j, const struct form *f, const struct parts *parts, size_t i,
		     uint64_t count, const void *out, uint64_t *bits)
{
	const struct cua__scatter *s = j->s;
	const int mean = s->op == CUA_SCATTER_MEAN, overwrite = s->overwrite;
	const enum cua_type type = mean ? CUA_F64 : s->result_type;
	const uint32_t flags = j->bounds.special ? take_flags(parts, i) : 0;
	int64_t digit[CUA__SCATTER_DIGITS];
	int128 v = 0;
	uint64_t key = 0, old;
	int any;

	if (f->kind == KIND_DIGITS)
		any = take_digits(f, parts, i, digit);
	else if (f->kind == KIND_KEY)
		any = (key = take_key(parts, i)) != 0;
	else
		any = (v = take_sum(f->kind, parts, i)) != 0;
	if (!overwrite && !(any | (flags != 0) | (count != 0)))
		return 0;
	old = cua__element_load(j->result_size, out, 0);
	if (f->kind == KIND_KEY)
		*bits = cua__scatter_extreme(s->op, type, result_key(s, key), overwrite, old);
	else if (f->kind == KIND_INTEGER && !mean)
		*bits = (overwrite ? 0 : old) + (uint64_t)v;
	else if (f->kind == KIND_INTEGER)
		*bits = cua__bits_f64(cua__scatter_f64_of(s->type, (uint64_t)v));
	else if (f->kind == KIND_DIGITS || flags)
		*bits = sum_of_digits(type, f, f->kind == KIND_DIGITS ? digit : NULL, flags,
				      overwrite | mean, old);
	else
		*bits = sum_of(type, f, v, overwrite | mean, old);
	if (mean)
		*bits = cua__scatter_mean(s->result_type, cua__from_bits_f64(*bits), count,
					  overwrite, old);
	return 1;
}

static inline char *row_of_targets(const struct job *j, uint64_t row)
{
	return (char *)j->s->out + row * j->s->width * j->result_size;
}

static void finish_target(const struct job *j, const struct form *f, const struct parts *parts,
			  size_t i, uint64_t count, void *out)
{
	uint64_t bits;

	if (new_value(j, f, parts, i, count, out, &bits))
		store(j->result_size, out, 0, bits);
}

/* Gives row `row` of the targets from row `first` on its new values. Its cells become 0. */
static void finish_row(const struct job *j, const struct form *f, uint64_t first,
		       const struct parts *parts, uint32_t row)
{
	const uint64_t count = j->s->op == CUA_SCATTER_MEAN ? take_count(parts, row) : 0;
	const uint32_t width = j->s->width;
	char *out = row_of_targets(j, first + row);

	for (uint32_t c = 0; c < width; c++, out += j->result_size)
		finish_target(j, f, parts, (size_t)row * width + c, count, out);
}

/* Whether the loops `sums` suit the targets. */
static int has_words(const struct job *j, const struct form *f)
{
	const enum cua_type type = j->s->result_type;

	return f->kind == KIND_WORD && j->s->op == CUA_SCATTER_ADD && !j->bounds.special &&
	       (type == CUA_F32 || type == CUA_F64);
}

/* The sums of BATCH cells from number i on, over all copies. Returns 0 if a sum has overflowed. */
static int sum_words(const struct parts *parts, size_t i, uint64_t *restrict sum)
{
	uint64_t bad = 0;

	memcpy(sum, parts->first.cells + i, BATCH * sizeof(*sum));
	for (unsigned w = 1; w < parts->n; w++) {
		const uint64_t *restrict cell = part_at(parts, w).cells + i;

		for (unsigned k = 0; k < BATCH; k++) {
			const uint64_t old = sum[k];

			sum[k] += cell[k];
			bad |= (sum[k] ^ old) & (sum[k] ^ cell[k]);
		}
	}
	return (int64_t)bad >= 0;
}

/*
 * Gives BATCH targets of type F32 or F64 their new values. Their cells are words, and begin at
 * number i. Returns 0 if a sum has overflowed.
 */
static int finish_words(const struct job *j, const struct form *f, const struct parts *parts,
			size_t i, void *out)
{
	const enum cua_type type = j->s->result_type;
	const int overwrite = j->s->overwrite;
	uint64_t sum[BATCH], fresh[BATCH], slow[BATCH];

	if (!sum_words(parts, i, sum))
		return 0;
	if (j->loops->sums[type == CUA_F64](f, sum, out, overwrite, fresh, slow))
		for (unsigned k = 0; k < BATCH; k++)
			if (slow[k])
				store(j->result_size, fresh, k,
				      sum_of(type, f, (int64_t)sum[k], overwrite,
					     cua__element_load(j->result_size, out, k)));
	memcpy(out, fresh, BATCH * j->result_size);
	for (unsigned w = 0; w < parts->n; w++)
		memset(part_at(parts, w).cells + i, 0, BATCH * sizeof(uint64_t));
	return 1;
}

/* Gives rows `begin` to `end` - 1 of the targets from row `first` on their new values. */
static void finish_rows(const struct job *j, const struct form *f, uint64_t first,
			const struct parts *parts, size_t begin, size_t end)
{
	const uint32_t width = j->s->width, size = j->result_size;
	char *out = row_of_targets(j, first);

	if (!has_words(j, f)) {
		for (size_t row = begin; row < end; row++)
			finish_row(j, f, first, parts, (uint32_t)row);
		return;
	}
	for (size_t i = begin * width; i < end * width;) {
		size_t left = end * width - i < BATCH ? end * width - i : BATCH;

		if (left == BATCH && finish_words(j, f, parts, i, out + i * size)) {
			i += BATCH;
			continue;
		}
		for (; left; left--, i++)
			finish_target(j, f, parts, i, 0, out + i * size);
	}
}

/* The same for some targets, words of rows of a single column. A target may occur repeatedly. */
static void finish_some_words(const struct job *j, const struct form *f, uint64_t first,
			      const struct part *p, const uint32_t *at, uint32_t n)
{
	const enum cua_type type = j->s->result_type;
	uint64_t sum[BATCH] = {0}, old[BATCH] = {0}, fresh[BATCH], slow[BATCH], bits;
	char *out = row_of_targets(j, first);

	for (uint32_t k = 0; k < n; k++) {
		sum[k] = p->cells[at[k]];
		p->cells[at[k]] = 0;
		store(j->result_size, old, k, cua__element_load(j->result_size, out, at[k]));
	}
	j->loops->sums[type == CUA_F64](f, sum, old, 0, fresh, slow);
	for (uint32_t k = 0; k < n; k++) {
		bits = cua__element_load(j->result_size, slow[k] ? old : fresh, k);
		if (slow[k])
			bits = sum_of(type, f, (int64_t)sum[k], 0, bits);
		if (sum[k])
			store(j->result_size, out, at[k], bits);
	}
}

/* The same for some rows. */
static void finish_some(const struct job *j, const struct form *f, uint64_t first,
			const struct parts *parts, const uint32_t *at, uint32_t n)
{
	if (j->s->width == 1 && has_words(j, f)) {
		finish_some_words(j, f, first, &parts->first, at, n);
		return;
	}
	for (uint32_t k = 0; k < n; k++)
		__builtin_prefetch(row_of_targets(j, first + at[k]), 1);
	for (uint32_t k = 0; k < n; k++)
		finish_row(j, f, first, parts, at[k]);
}

#endif /* CUATOMIC_CPU_CPU_SCATTER_FINISH_H */
