/* SPDX-License-Identifier: MIT */
/*
 * The table of every benchmark, in C for the command and in CUDA C for the programs beside it: rows of a case
 * are collected, and printed when the best peer of the case is known.
 */
#ifndef CUATOMIC_BENCH_TABLE_H
#define CUATOMIC_BENCH_TABLE_H

#include <stdio.h>
#include <stdlib.h>

/* Each figure is the median of so many runs. */
#define BENCH_RUNS 9
#define TABLE_ROWS 64
#define TABLE_NAME 44

enum table_kind {
	TABLE_CEILING, /* what the machine gives at most, the base of "of ceiling" */
	TABLE_PEER,    /* what others offer for the same job, the base of "x peer" */
	TABLE_OURS
};

/* Runs of one way, in the unit that the columns name. */
struct figure {
	double median, least, most;
	int runs; /* 0: none, the way is not available */
};

struct table_row {
	char way[TABLE_NAME + 1];
	char note[48]; /* in the last column, or "" */
	enum table_kind kind;
	struct figure figure;
};

/* One case at a time. All zeros is an empty table. */
struct table {
	char name[28];
	struct table_row rows[TABLE_ROWS];
	int n;
};

static inline int table_order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The figure of n rates, 1 or more, which are sorted. */
static inline struct figure table_figure(double *rates, int n)
{
	struct figure f;

	qsort(rates, (size_t)n, sizeof(rates[0]), table_order);
	f.median = rates[n / 2];
	f.least = rates[0];
	f.most = rates[n - 1];
	f.runs = n;
	return f;
}

/* Four significant digits at least, and never an exponent. */
static inline const char *table_number(char text[24], double v)
{
	snprintf(text, 24, "%.*f", v < 1 ? 4 : v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0, v);
	return text;
}

static inline void table_begin(struct table *t, const char *name)
{
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->n = 0;
}

/* Returns the row, for a note; rows past TABLE_ROWS take the place of the last one. */
static inline struct table_row *table_add(struct table *t, enum table_kind kind, const char *way,
					  struct figure figure)
{
	struct table_row *row = &t->rows[t->n < TABLE_ROWS ? t->n++ : TABLE_ROWS - 1];

	snprintf(row->way, sizeof(row->way), "%s", way);
	row->note[0] = 0;
	row->kind = kind;
	row->figure = figure;
	return row;
}

/* The columns, once a program; unit is that of the figures, and last names what the notes are, or is "". */
static inline void table_columns(const char *unit, const char *last)
{
	printf("\n%-27s %-*s %9s %-20s %8s %12s%s%s\n", "case", TABLE_NAME, "way", unit,
	       "(least to most)", "x peer", "of ceiling", *last ? "  " : "", last);
	fflush(stdout);
}

static inline double table_best(const struct table *t, enum table_kind kind)
{
	double best = 0;

	for (int i = 0; i < t->n; i++)
		if (t->rows[i].kind == kind && t->rows[i].figure.median > best)
			best = t->rows[i].figure.median;
	return best;
}

/* The case is complete: prints its rows. */
static inline void table_end(struct table *t)
{
	double peer = table_best(t, TABLE_PEER), ceiling = table_best(t, TABLE_CEILING);

	for (int i = 0; i < t->n; i++) {
		const struct table_row *row = &t->rows[i];
		char median[24], least[24], most[24], spread[64], of_peer[24] = "-", of_ceiling[24] = "-";

		if (!row->figure.runs) {
			printf("%-27s %-*s %9s %-20s %8s %12s\n", t->name, TABLE_NAME, row->way, "-",
			       "not available", "-", "-");
			continue;
		}
		snprintf(spread, sizeof(spread), "(%s to %s)%s", table_number(least, row->figure.least),
			 table_number(most, row->figure.most),
			 row->figure.runs < BENCH_RUNS ? " *" : "");
		if (peer > 0 && row->kind != TABLE_CEILING)
			snprintf(of_peer, sizeof(of_peer), "%.2f", row->figure.median / peer);
		if (ceiling > 0)
			snprintf(of_ceiling, sizeof(of_ceiling), "%.3f", row->figure.median / ceiling);
		printf("%-27s %-*s %9s %-20s %8s %12s%s%s\n", t->name, TABLE_NAME, row->way,
		       table_number(median, row->figure.median), spread, of_peer, of_ceiling,
		       row->note[0] ? "  " : "", row->note);
	}
	fflush(stdout);
	t->n = 0;
}

#endif /* CUATOMIC_BENCH_TABLE_H */
