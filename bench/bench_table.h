/* SPDX-License-Identifier: MIT */
/*
 * The table of every benchmark, in C for the command and in CUDA C for the GPU programs. A table
 * has a case; its rows are the ways to do the same work. table_add prints a row at once, also into
 * a pipe, or writes its record: see bench_records.h. The ratios to the ceilings and peers need
 * rows that were added before, so ceilings and peers are added first.
 */
#ifndef CUATOMIC_BENCH_TABLE_H
#define CUATOMIC_BENCH_TABLE_H

#include "bench_records.h"

#define TABLE_ROWS 64
#define TABLE_NAME 44

enum table_kind {
	TABLE_CEILING, /* limit of the hardware, the base of "of ceiling" */
	TABLE_PEER,    /* other implementations of the same work, the base of "x peer" */
	TABLE_OURS
};

static inline const char *table_kind_name(enum table_kind kind)
{
	return kind == TABLE_CEILING ? "ceiling" : kind == TABLE_PEER ? "peer" : "ours";
}

static inline const char *table_reason_name(enum stats_reason reason)
{
	return reason == STATS_CONVERGED    ? "converged"
	       : reason == STATS_TIME_LIMIT ? "time limit"
					    : "samples";
}

/* The rates of a way's runs, in the unit of the table's columns. */
struct figure {
	double median, least, most;
	int runs; /* 0: this way is not available */
	enum stats_reason reason;
	struct stats_interval interval;
	double samples[STATS_SAMPLES]; /* in the order of the runs */
	struct bench_machine_state state;
};

struct table_row {
	char way[TABLE_NAME + 1];
	enum table_kind kind;
	double median; /* 0: not available */
};

/* The current case. A zeroed struct is an empty table. */
struct table {
	char name[28];
	struct table_row rows[TABLE_ROWS];
	int n;
};

/* Sorts n rates, 1 <= n <= STATS_SAMPLES, and returns their figure. */
static inline struct figure table_figure(double *rates, int n)
{
	struct figure f;

	for (int i = 0; i < n; i++)
		f.samples[i] = rates[i];
	qsort(rates, (size_t)n, sizeof(rates[0]), stats_order);
	f.interval = stats_of_sorted(rates, n);
	f.median = f.interval.median;
	f.least = rates[0];
	f.most = rates[n - 1];
	f.runs = n;
	f.reason = STATS_ALL_SAMPLES;
	memset(&f.state, 0, sizeof(f.state));
	return f;
}

/* Returns the figure of a row whose sampling has ended. */
static inline struct figure table_stats(struct stats *s)
{
	struct figure f = table_figure(s->samples, s->n);

	f.reason = s->reason;
	return f;
}

/* Formats v >= 0 with at least four significant digits; very large and small v with an exponent. */
static inline const char *table_number(char text[24], double v)
{
	if (v >= 1e9 || (v > 0 && v < 1e-3))
		snprintf(text, 24, "%.3e", v);
	else
		snprintf(text, 24, "%.*f",
			 v < 1      ? 4
			 : v < 10   ? 3
			 : v < 100  ? 2
			 : v < 1000 ? 1
				    : 0,
			 v);
	return text;
}

static inline void table_begin(struct table *t, const char *name)
{
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->n = 0;
	record_write("case", t->name, NULL);
}

/*
 * Prints the head of the columns. unit is the unit of the figures. last is the title of the notes,
 * or "".
 */
static inline void table_columns(const char *unit, const char *last)
{
	struct bench_state *s = bench_env();

	snprintf(s->unit, sizeof(s->unit), "%s", unit);
	record_write("columns", unit, last);
	if (s->records >= 0)
		return;
	printf("\n%-27s %-*s %9s %-20s %8s %12s  %-*s%s%s\n", "case", TABLE_NAME, "way", unit,
	       "(least to most)", "x peer", "of ceiling", *last ? 21 : 0, "runs", *last ? "  " : "",
	       last);
	fflush(stdout);
}

/* Whether the filter has this row. */
static inline int table_matches(const char *name, const char *way)
{
	struct bench_state *s = bench_env();
	char row[sizeof(s->name) + 128];

	snprintf(row, sizeof(row), "%s/%s/%s", s->name, name, way);
	return !(s->filtered && regexec(&s->filter, row, 0, NULL, 0)) &&
	       !(s->summarized && regexec(&s->summary, row, 0, NULL, 0));
}

static inline void table_skip(void)
{
	struct record r;

	bench_env()->done++;
	if (bench_env()->records < 0)
		return;
	record_begin(&r, "skip");
	record_end(&r);
}

/* Whether a row is wanted, so that a row that is not wanted need not be measured. */
static inline int table_wants(const char *name, const char *way)
{
	if (table_matches(name, way))
		return 1;
	table_skip();
	return 0;
}

/* Whether more of the unit is better: so for rates, not for times such as ns. */
static inline int table_is_rate(const char *unit)
{
	return strstr(unit, "/s") != NULL;
}

/* The better of two medians of this unit. A median of 0 is not available. */
static inline double table_better(const char *unit, double a, double b)
{
	if (!(a > 0) || !(b > 0))
		return a > 0 ? a : b;
	return (a > b) == table_is_rate(unit) ? a : b;
}

/* How many times as good as the base v is. Both are more than 0. */
static inline double table_ratio(const char *unit, double v, double base)
{
	return table_is_rate(unit) ? v / base : base / v;
}

/* The best median of a kind, or 0. */
static inline double table_best(const struct table *t, enum table_kind kind)
{
	double best = 0;

	for (int i = 0; i < t->n; i++)
		if (t->rows[i].kind == kind)
			best = table_better(bench_env()->unit, best, t->rows[i].median);
	return best;
}

static inline void table_record_state(const struct bench_machine_state *state)
{
	struct record r;

	if (!(state->sm_mhz > 0) && !(state->memory_mhz > 0) && !state->knows_throttle)
		return;
	record_begin(&r, "state");
	record_number(&r, state->sm_mhz);
	record_number(&r, state->memory_mhz);
	if (state->knows_throttle)
		record_field(&r, state->throttle);
	record_end(&r);
}

static inline void table_record(const struct table *t, enum table_kind kind, const char *way,
				const struct figure *f, const char *note)
{
	struct record r;

	table_record_state(&f->state);
	record_begin(&r, "row");
	record_field(&r, t->name);
	record_field(&r, way);
	record_field(&r, table_kind_name(kind));
	record_field(&r, bench_env()->unit);
	record_field(&r, note);
	record_field(&r, table_reason_name(f->reason));
	for (int i = 0; i < f->runs; i++)
		record_number(&r, f->samples[i]);
	record_end(&r);
}

static inline void table_print(const struct table *t, const struct table_row *row,
			       const struct figure *f, const char *note)
{
	const double peer = table_best(t, TABLE_PEER), ceiling = table_best(t, TABLE_CEILING);
	const char *unit = bench_env()->unit;
	char median[24], least[24], most[24], spread[64], of_peer[24] = "-", of_ceiling[24] = "-";
	char runs[100];

	if (!f->runs) {
		printf("%-27s %-*s %9s %-20s %8s %12s\n", t->name, TABLE_NAME, row->way, "-",
		       "not available", "-", "-");
		return;
	}
	snprintf(spread, sizeof(spread), "(%s to %s)%s", table_number(least, f->least),
		 table_number(most, f->most), f->runs < BENCH_RUNS ? " *" : "");
	if (peer > 0 && row->kind != TABLE_CEILING && f->median > 0)
		snprintf(of_peer, sizeof(of_peer), "%.2f", table_ratio(unit, f->median, peer));
	if (ceiling > 0 && f->median > 0)
		snprintf(of_ceiling, sizeof(of_ceiling), "%.3f",
			 table_ratio(unit, f->median, ceiling));
	snprintf(runs, sizeof(runs), "%d %s%s%s%s", f->runs, table_reason_name(f->reason),
		 stats_is_noisy(&f->interval) ? ", noisy" : "", *f->state.throttle ? ", " : "",
		 f->state.throttle);
	printf("%-27s %-*s %9s %-20s %8s %12s  %-*s%s%s\n", t->name, TABLE_NAME, row->way,
	       table_number(median, f->median), spread, of_peer, of_ceiling, *note ? 21 : 0, runs,
	       *note ? "  " : "", note);
}

/*
 * Adds a row, and prints it or writes its record, unless the filter excludes it. "x peer" is the
 * ratio to the best peer added so far, which may be this row. note is for the last column, or "".
 */
static inline void table_add_note(struct table *t, enum table_kind kind, const char *way,
				  struct figure figure, const char *note)
{
	/* rows past TABLE_ROWS overwrite the last row */
	struct table_row *row = &t->rows[t->n < TABLE_ROWS ? t->n++ : TABLE_ROWS - 1];

	snprintf(row->way, sizeof(row->way), "%s", way);
	row->kind = kind;
	row->median = figure.runs ? figure.median : 0;
	if (!table_wants(t->name, row->way))
		return;
	bench_env()->done++;
	/* a figure that was measured before has its own state */
	if (bench_env()->clock && figure.runs && !(figure.state.sm_mhz > 0))
		bench_env()->clock(&figure.state);
	if (bench_env()->records >= 0) {
		table_record(t, kind, row->way, &figure, note);
		return;
	}
	table_print(t, row, &figure, note);
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
