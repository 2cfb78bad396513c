/* SPDX-License-Identifier: MIT */
/* A scatter on the CPU: the forms of cells that suit the elements. */
#ifndef CUATOMIC_CPU_CPU_SCATTER_FORMS_H
#define CUATOMIC_CPU_CPU_SCATTER_FORMS_H

#include <math.h>

#include "cpu/cpu_scatter_cells.h"
#include "cpu/float_mode.h"

/* Fewer elements are not worth a thread. */
#define GRAIN 32768

static void scan_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *j = arg;
	const uint64_t n = j->s->n * j->s->width;
	struct bounds bounds = {INT32_MAX, INT32_MIN, 0};
	uint64_t last[BATCH] = {0};
	float floats[BATCH];
	size_t begin, end;
	fenv_t mode;

	cua__float_mode_begin(&mode);
	cua__share(n, worker, workers, &begin, &end);
	for (; end - begin >= BATCH; begin += BATCH)
		scan(j, (const char *)j->s->x + begin * j->size, floats, &bounds);
	if (begin < end) {
		memcpy(last, (const char *)j->s->x + begin * j->size, (end - begin) * j->size);
		scan(j, last, floats, &bounds);
	}
	cua__float_mode_end(&mode);
	CUA_WITH_LOCK (&j->lock) {
		widen_bounds(&j->bounds, bounds.least, bounds.top);
		j->bounds.special |= bounds.special;
	}
}

static struct form word_form(const struct job *j)
{
	struct form f = {.kind = KIND_WORD, .words = 1, .at = j->bounds.least};

	f.scale = ldexp(1, CUA__EXACT_POINT - f.at);
	f.unit = ldexp(1, f.at - CUA__EXACT_POINT);
	f.result_base = f.at - cua__scatter_parts(j->s->result_type, 0).at + 1;
	return f;
}

static struct form wide_form(const struct job *j)
{
	const enum cua_type type = j->s->type == CUA_F64 ? CUA_F64 : CUA_F32;
	struct form f = {.kind = KIND_WIDE, .words = 2, .at = j->bounds.least};

	/* an element with exponent 0 has its mantissa there */
	f.base = f.at - cua__scatter_parts(type, 0).at + 1;
	return f;
}

static struct form digits_form(const struct job *j)
{
	const int low = j->bounds.least >> 5;
	struct form f = {.kind = KIND_DIGITS, .at = 32 * low};

	/* an addition has three digits, and the last holds the carries of 2^64 additions */
	f.words = (unsigned)(((j->bounds.top - 1) >> 5) - low + 3);
	return f;
}

/* Bits that hold a number up to n. */
static int bits_of(uint64_t n)
{
	return n ? 64 - (int)cua_port_clz_u64(n) : 0;
}

static void find_float_forms(struct cua_context *ctx, struct job *j)
{
	struct form *f = j->forms;
	int bits, power;

	j->bounds.least = INT32_MAX;
	j->bounds.top = INT32_MIN;
	if (j->s->n)
		cua__parallel(ctx, cua__workers(ctx, j->s->n * j->s->width, GRAIN), scan_work, j);
	if (j->bounds.top < j->bounds.least)
		j->bounds.least = j->bounds.top = CUA__EXACT_POINT;
	bits = j->bounds.top - j->bounds.least;
	power = j->bounds.least - CUA__EXACT_POINT;
	/* the scale must be a normal number */
	if (bits <= 62 && power >= -1022 && power <= 1022)
		*f++ = word_form(j);
	if (bits + bits_of(j->s->n) <= 119)
		*f++ = wide_form(j);
	*f = digits_form(j);
}

static void find_forms(struct cua_context *ctx, struct job *j)
{
	const struct cua__scatter *s = j->s;
	const int is_float = cua__is_float(s->type), minimum = s->op == CUA_SCATTER_MIN;
	const enum cua_type type = is_float ? s->type : s->result_type;
	const uint64_t top = (uint64_t)1 << (8 * cua__element_size(type) - 1), all = 2 * top - 1;
	struct form *f = j->forms;

	f->words = 1;
	f->mask = ~(uint64_t)0;
	if (j->sums_floats) {
		find_float_forms(ctx, j);
	} else if (s->op == CUA_SCATTER_MIN || s->op == CUA_SCATTER_MAX) {
		f->kind = KIND_KEY;
		f->mask = all;
		f->top = top;
		f->infinity = top - ((uint64_t)1 << cua__fraction_bits(type));
		f->flip = (minimum ? all : 0) ^ (cua__is_signed(type) ? top : 0);
	}
}

#endif /* CUATOMIC_CPU_CPU_SCATTER_FORMS_H */
