/* SPDX-License-Identifier: MIT */
/*
 * The table of every benchmark, in C for the command and in CUDA C for the GPU programs. A table
 * has a case; its rows are the ways to do the same work. table_add prints a row at once, also into
 * a pipe. Its last columns are ratios to the ceilings and peers, so these are added first.
 */
#ifndef CUATOMIC_BENCH_TABLE_H
#define CUATOMIC_BENCH_TABLE_H

#include <stdio.h>
#include <stdlib.h>

/* Runs of a way. The figure of a row is their median. */
#define BENCH_RUNS 9
#define TABLE_ROWS 64
#define TABLE_NAME 44

enum table_kind {
	TABLE_CEILING, /* limit of the hardware, the base of "of ceiling" */
	TABLE_PEER,    /* other implementations of the same work, the base of "x peer" */
	TABLE_OURS
};

/* The rates of a way's runs, in the unit of the table's columns. */
struct figure {
	double median, least, most;
	int runs; /* 0: this way is not available */
};

struct table_row {
	char way[TABLE_NAME + 1];
	enum table_kind kind;
	struct figure figure;
};

/* The current case. A zeroed struct is an empty table. */
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

/* Sorts n rates, n >= 1, and returns their figure. */
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

/* Formats v with at least four significant digits and without an exponent. */
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

/*
 * Prints the head of the columns. unit is the unit of the figures. last is the title of the notes,
 * or "".
 */
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

/*
 * Adds and prints a row. "x peer" is the ratio to the best peer added so far, which may be this
 * row. note is for the last column, or "".
 */
static inline void table_add_note(struct table *t, enum table_kind kind, const char *way,
				  struct figure figure, const char *note)
{
	/* rows past TABLE_ROWS overwrite the last row */
	struct table_row *row = &t->rows[t->n < TABLE_ROWS ? t->n++ : TABLE_ROWS - 1];
	char median[24], least[24], most[24], spread[64], of_peer[24] = "-", of_ceiling[24] = "-";
	double peer, ceiling;

	snprintf(row->way, sizeof(row->way), "%s", way);
	row->kind = kind;
	row->figure = figure;
	if (!figure.runs) {
		printf("%-27s %-*s %9s %-20s %8s %12s\n", t->name, TABLE_NAME, row->way, "-",
		       "not available", "-", "-");
		fflush(stdout);
		return;
	}
	peer = table_best(t, TABLE_PEER);
	ceiling = table_best(t, TABLE_CEILING);
	snprintf(spread, sizeof(spread), "(%s to %s)%s", table_number(least, figure.least),
		 table_number(most, figure.most), figure.runs < BENCH_RUNS ? " *" : "");
	if (peer > 0 && kind != TABLE_CEILING)
		snprintf(of_peer, sizeof(of_peer), "%.2f", figure.median / peer);
	if (ceiling > 0)
		snprintf(of_ceiling, sizeof(of_ceiling), "%.3f", figure.median / ceiling);
	printf("%-27s %-*s %9s %-20s %8s %12s%s%s\n", t->name, TABLE_NAME, row->way,
	       table_number(median, figure.median), spread, of_peer, of_ceiling, *note ? "  " : "",
	       note);
	fflush(stdout);
}

static inline void table_add(struct table *t, enum table_kind kind, const char *way,
			     struct figure figure)
{
	table_add_note(t, kind, way, figure, "");
}

/* Ends the case. */
static inline void table_end(struct table *t)
{
	t->n = 0;
}

#endif /* CUATOMIC_BENCH_TABLE_H */
