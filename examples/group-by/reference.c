/* SPDX-License-Identifier: MIT */
/*
 * The groups by a sort of the rows, and the values row after row in a struct cua_exact. Hashes play
 * no part.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "group-by.h"

/* Rows of a group, with values. */
struct run {
	const struct rows *rows;
	const uint64_t *row;
	uint64_t n;
};

/* The exact sum of x - from, rounded once, or of its square. Each operand is rounded. */
static double sum_of(const struct run *run, double from, int squared)
{
	struct cua_exact sum = CUA_EXACT_INIT;

	for (uint64_t i = 0; i < run->n; i++) {
		const double x = run->rows->value[run->row[i]] - from;

		cua_exact_add_f64(&sum, squared ? x * x : x);
	}
	return cua_exact_round_f64(&sum);
}

/* The steps of VARIANCE in cuatomic/group_by.h, with a ddof of 1. */
static double variance_of(const struct run *run)
{
	const double count = (double)run->n;
	double p, a, d;

	if (run->n < 2)
		return NAN;
	p = sum_of(run, 0, 0) / count;
	p = p + sum_of(run, p, 0) / count;
	a = sum_of(run, p, 0);
	d = sum_of(run, p, 1) - a * a / count;
	return (d < 0 ? 0 : d) / (count - 1);
}

/* Whether a is less than b. NaN is greater than all, and -0 less than +0. */
static int is_less(double a, double b)
{
	if (isnan(a) || isnan(b))
		return !isnan(a);
	return a < b || (a == b && signbit(a) && !signbit(b));
}

static struct group reference(const struct run *run, uint64_t first)
{
	struct group g = {first, run->n, 0, NAN, INFINITY, -INFINITY, NAN};
	int has_number = 0;

	g.sum = sum_of(run, 0, 0);
	if (run->n)
		g.mean = g.sum / (double)run->n;
	for (uint64_t i = 0; i < run->n; i++) {
		const double x = run->rows->value[run->row[i]];

		if (isnan(x))
			continue;
		if (!has_number || is_less(x, g.least))
			g.least = x;
		if (!has_number || is_less(g.most, x))
			g.most = x;
		has_number = 1;
	}
	if (run->n && !has_number)
		g.least = g.most = NAN;
	g.variance = variance_of(run);
	return g;
}

static void compare(const struct group *g, const char *what, double expected, double got)
{
	if (isnan(expected) ? isnan(got) : expected == got && !signbit(expected) == !signbit(got))
		return;
	die("check: %s of the group that begins with row %" PRIu64
	    " is %.17g, and by the reference %.17g",
	    what, g->first + 1, got, expected);
}

/* Compares a group with the sorted rows from *at, and moves *at behind them. */
static void check_group(const struct rows *r, const uint64_t *row, uint64_t *at,
			const struct group *g, uint64_t *with_value)
{
	struct run run = {r, with_value, 0};
	const uint64_t start = *at;
	struct group expected;

	while (*at < r->n && !rows_compare(r, row[start], row[*at])) {
		if (r->valid[row[*at]])
			with_value[run.n++] = row[*at];
		++*at;
	}
	expected = reference(&run, row[start]);
	if (g->first != expected.first)
		die("check: group begins with row %" PRIu64 ", and by the reference with %" PRIu64,
		    g->first + 1, expected.first + 1);
	compare(g, "count", (double)expected.count, (double)g->count);
	compare(g, "sum", expected.sum, g->sum);
	compare(g, "mean", expected.mean, g->mean);
	compare(g, "min", expected.least, g->least);
	compare(g, "max", expected.most, g->most);
	compare(g, "variance", expected.variance, g->variance);
}

void check_groups(const struct rows *r, const struct groups *groups)
{
	uint64_t *row = (uint64_t *)must_alloc(r->n, sizeof(*row)), at = 0, n = 0;
	uint64_t *with_value = (uint64_t *)must_alloc(r->n, sizeof(*row));

	for (uint64_t i = 0; i < r->n; i++)
		row[i] = i;
	rows_sort(r, row, r->n);
	for (; at < r->n && n < groups->n; n++)
		check_group(r, row, &at, &groups->group[n], with_value);
	if (at < r->n || n < groups->n)
		die("check: %" PRIu64 " groups, and by the reference another number", groups->n);
	free(row);
	free(with_value);
}
