/* SPDX-License-Identifier: MIT */
/* A scatter on the CPU: batches of rows of the input, and of records. */
#ifndef CUATOMIC_CPU_CPU_SCATTER_BATCHES_H
#define CUATOMIC_CPU_CPU_SCATTER_BATCHES_H

#include "cpu/cpu_scatter_cells.h"

/* ---- batches of the input ---- */

/*
 * Reads ahead of the batch at row i: its index, and x if its rows are short. The processor's own
 * prefetches stop while a batch is being added. It is inlined, because GCC omits calls of functions
 * that only prefetch.
 */
CUA_FORCE void read_ahead(const struct job *j, uint64_t i, int with_x)
{
	const size_t row = j->s->width * j->size, ahead = 3 * BATCH;
	const char *index = (const char *)j->s->index + (i + ahead) * j->index_size;
	const char *x = (const char *)j->s->x + (i + ahead) * row;

	if (j->s->n - i < ahead + BATCH)
		return;
	for (size_t k = 0; k < BATCH * j->index_size; k += 64)
		__builtin_prefetch(index + k);
	for (size_t k = 0; with_x && row <= 16 && k < BATCH * row; k += 64)
		__builtin_prefetch(x + k);
}

/* The rows of the input from row i on, m <= BATCH, with targets in the range. */
static void take_input(const struct job *j, uint64_t first, uint32_t rows, uint64_t i, uint32_t m,
		       struct batch *b)
{
	const uint64_t left = j->limit > first ? j->limit - first : 0;
	const uint32_t span = (uint32_t)least(rows, left);
	const char *index = (const char *)j->s->index + i * j->index_size;
	uint32_t n = 0, inside;

	if (m == BATCH) {
		inside = j->loops->find[j->index_size == 8](index, first, span, b->at);
	} else {
		inside = 0;
		for (uint32_t k = 0; k < m; k++) {
			const uint64_t row = cua__scatter_integer(
				j->s->index_type, cua__element_load(j->index_size, index, k));
			const uint64_t t = row - first;

			b->at[k] = t < span ? (uint32_t)t : span;
			inside += t < span;
		}
	}
	b->n = inside;
	b->x = NULL;
	if (inside == m) {
		b->x = (const char *)j->s->x + i * j->s->width * j->size;
		b->readable = (j->s->n - i) * j->s->width;
		return;
	}
	if (m == BATCH) {
		j->loops->compact(span, i, b->at, b->row);
		return;
	}
	for (uint32_t k = 0; k < m && n < inside; k++) {
		b->at[n] = b->at[k];
		b->row[n] = i + k;
		n += b->at[k] != span;
	}
}

/* ---- records ---- */

static void count_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *j = arg;
	struct regions *g = &j->regions;
	uint64_t *count = g->count + worker * g->n;
	struct batch b;
	size_t begin, end;

	memset(count, 0, g->n * sizeof(*count));
	cua__share(j->s->n, worker, workers, &begin, &end);
	for (uint64_t i = begin; i < end; i += BATCH) {
		read_ahead(j, i, 0);
		take_input(j, j->range.first, j->range.rows, i, (uint32_t)least(BATCH, end - i),
			   &b);
		for (uint32_t k = 0; k < b.n; k++)
			count[b.at[k] >> g->shift]++;
	}
}

/* Writes the records of a batch. `size` is that of the elements in the records; 0: rows. */
CUA_FORCE void write_records(const struct job *j, const struct batch *b, uint64_t i,
			     uint64_t *restrict next, uint32_t size, int gathered)
{
	const struct regions *g = &j->regions;
	const uint32_t mask = ((uint32_t)1 << g->shift) - 1;
	uint64_t *narrow = g->records;
	struct record *wide = g->records;

	for (uint32_t k = 0; k < b->n; k++) {
		const uint64_t row = gathered ? b->row[k] : i + k;
		const uint64_t v = size ? cua__element_load(size, j->s->x, row) : row;
		const uint64_t to = next[b->at[k] >> g->shift]++;
		const uint32_t key = b->at[k] & mask;

		/* and the next cache line, since there are many places */
		if (size && size <= 4) {
			narrow[to] = v << 32 | key;
			__builtin_prefetch(&narrow[to + 8], 1);
		} else {
			wide[to] = (struct record){key, v};
			__builtin_prefetch(&wide[to + 4], 1);
		}
	}
}

static void partition_work(void *arg, unsigned worker, unsigned workers)
{
	struct job *j = arg;
	const struct regions *g = &j->regions;
	uint64_t *next = g->count + worker * g->n + g->begin;
	const uint64_t skip = g->begin << g->shift;
	const uint32_t rows =
		(uint32_t)least((g->end - g->begin) << g->shift, j->range.rows - skip);
	struct batch b;
	size_t begin, end;

	cua__share(j->s->n, worker, workers, &begin, &end);
	for (uint64_t i = begin; i < end; i += BATCH) {
		read_ahead(j, i, 1);
		take_input(j, j->range.first + skip, rows, i, (uint32_t)least(BATCH, end - i), &b);
		switch (j->s->width > 1 ? 0 : j->size) {
#define WRITE(size)                                                                                \
	case size:                                                                                 \
		if (b.x)                                                                           \
			write_records(j, &b, i, next, size, 0);                                    \
		else                                                                               \
			write_records(j, &b, i, next, size, 1);                                    \
		break;
			WRITE(0)
			WRITE(1)
			WRITE(2)
			WRITE(4)
			WRITE(8)
#undef WRITE
		default: break;
		}
	}
}

/* All elements in the records of a batch, if they have 32 bits. */
static void take_narrow(const struct job *j, const uint64_t *records, uint32_t m, struct batch *b)
{
	cua__raw32 *x = (cua__raw32 *)b->gathered;

	if (m == BATCH)
		j->loops->split(records, b->at, (uint32_t *)(void *)x);
	else
		for (uint32_t k = 0; k < m; k++) {
			b->at[k] = (uint32_t)records[k];
			x[k] = (uint32_t)(records[k] >> 32);
		}
	b->n = m;
}

/* The m <= BATCH records from number i on, with targets among `rows` from row `first` on. */
CUA_FORCE void take_any(const struct job *j, uint64_t i, uint32_t m, uint32_t first, uint32_t rows,
			uint32_t size, int narrow, struct batch *b)
{
	const uint64_t *short_record = (const uint64_t *)j->regions.records + i;
	const struct record *record = (const struct record *)j->regions.records + i;
	uint32_t n = 0;

	for (uint32_t k = 0; k < m; k++) {
		const uint64_t key = narrow ? short_record[k] : record[k].key;
		const uint64_t v = narrow ? key >> 32 : record[k].value;

		b->at[n] = (uint32_t)key - first;
		if (size)
			store(size, b->gathered, n, v);
		else
			b->row[n] = v;
		n += b->at[n] < rows;
	}
	b->n = n;
}

static void take_records(const struct job *j, uint64_t i, uint32_t m, uint32_t first, uint32_t rows,
			 struct batch *b)
{
	const struct regions *g = &j->regions;

	b->x = j->s->width == 1 ? (const char *)b->gathered : NULL;
	b->readable = BATCH;
	if (j->s->width > 1)
		take_any(j, i, m, first, rows, 0, 0, b);
	else if (j->size == 8)
		take_any(j, i, m, first, rows, 8, 0, b);
	else if (j->size == 2)
		take_any(j, i, m, first, rows, 2, 1, b);
	else if (j->size == 1)
		take_any(j, i, m, first, rows, 1, 1, b);
	else if (first || rows >> g->shift == 0)
		take_any(j, i, m, first, rows, 4, 1, b);
	else
		take_narrow(j, (const uint64_t *)g->records + i, m, b);
}

static uint64_t region_records(const struct job *j, uint64_t i)
{
	uint64_t n = 0;

	for (unsigned w = 0; w < j->workers; w++)
		n += j->regions.count[w * j->regions.n + i];
	return n;
}

/* Turns the counts of region i into the places of its records, from start[i] on. */
static void place_records(const struct job *j, uint64_t i)
{
	const struct regions *g = &j->regions;
	uint64_t before = g->start[i];

	for (unsigned w = 0; w < j->workers; w++) {
		uint64_t *count = &g->count[w * g->n + i], n = *count;

		*count = before;
		before += n;
	}
	g->start[i + 1] = before;
}

#endif /* CUATOMIC_CPU_CPU_SCATTER_BATCHES_H */
