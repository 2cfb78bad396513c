/* SPDX-License-Identifier: MIT */
/* `cuatomic bench --compare` and `--against`: the rows of two JSON files, or of a file and a run. */
#include <math.h>
#include <string.h>

#include "bench.h"

#ifndef CUATOMIC_DATADIR
#define CUATOMIC_DATADIR "/usr/local/share/cuatomic"
#endif

/* The members of a row that the comparison uses. They belong to the results. */
struct compared {
	const char *bench, *name, *way, *unit;
	double median, low, high; /* median 0: not available */
	int few;                  /* too few samples for an interval */
	int matched;
};

struct document {
	const char *path;
	struct results results; /* of a file */
	struct compared *rows;
	size_t n;
};

enum verdict { SAME, FASTER, SLOWER, UNCLEAR };
static const char *const verdict_names[] = {"SAME", "FASTER", "SLOWER", "UNCLEAR"};

/* Sets the rows of the document to those of r. */
static void set_rows(struct document *d, const struct results *r)
{
	d->rows = tool_alloc(r->n * sizeof(*d->rows));
	for (; d->n < r->n; d->n++) {
		const struct result_row *row = &r->rows[d->n];
		const struct figure *f = &row->figure;

		d->rows[d->n] = (struct compared){
			.bench = row->bench,
			.name = row->name,
			.way = row->way,
			.unit = row->unit,
			.median = f->runs ? f->median : 0,
			.low = f->interval.low,
			.high = f->interval.high,
			.few = f->runs && !f->interval.known,
		};
	}
}

static int open_document(struct document *d)
{
	if (bench_load_intervals(d->path, &d->results))
		return TOOL_FAILED;
	set_rows(d, &d->results);
	if (d->results.failed)
		tool_error("%s: the run was not complete, so rows are missing", d->path);
	return TOOL_OK;
}

static void close_document(struct document *d)
{
	free(d->rows);
	results_free(&d->results);
}

/* Returns the first row of d that is the same as c and has no match yet, or NULL. */
static struct compared *find_match(const struct document *d, const struct compared *c)
{
	for (size_t i = 0; i < d->n; i++) {
		struct compared *row = &d->rows[i];

		if (!row->matched && !strcmp(row->bench, c->bench) && !strcmp(row->name, c->name) &&
		    !strcmp(row->way, c->way) && !strcmp(row->unit, c->unit))
			return row;
	}
	return NULL;
}

/*
 * Intervals that overlap show no difference; they show equality only if every ratio of their values
 * is within the threshold. The ends of unknown intervals show neither.
 */
static enum verdict judge(const struct compared *a, const struct compared *b, double threshold)
{
	const double change = b->median / a->median - 1;

	if (a->median == b->median && a->low == b->low && a->high == b->high)
		return SAME;
	if (a->few || b->few)
		return UNCLEAR;
	if (a->low <= b->high && b->low <= a->high) {
		const int is_close =
			b->low >= a->high * (1 - threshold) && b->high <= a->low * (1 + threshold);

		return is_close ? SAME : UNCLEAR;
	}
	if (fabs(change) <= threshold)
		return SAME;
	return (change > 0) == table_is_rate(a->unit) ? FASTER : SLOWER;
}

static void print_name(const struct compared *c)
{
	char text[512];

	snprintf(text, sizeof(text), "%s/%s/%s", c->bench, c->name, c->way);
	tool_one_line(text);
	puts(text);
}

static void print_verdict(enum verdict v, const struct compared *a, const struct compared *b)
{
	const double change = 100 * (b->median / a->median - 1);
	char before[24], after[24], unit[16], percent[24];

	snprintf(unit, sizeof(unit), "%s", a->unit);
	tool_one_line(unit);
	if (change < 1e5)
		snprintf(percent, sizeof(percent), "%+.1f", change);
	else
		strcpy(percent, ">+99999");
	printf("%-8s %8s %% %9s %9s %-6s ", verdict_names[v], percent,
	       table_number(before, a->median), table_number(after, b->median), unit);
	print_name(a);
}

static void print_alone(const struct document *d)
{
	for (size_t i = 0; i < d->n; i++) {
		if (d->rows[i].matched)
			continue;
		printf("only in %s: ", d->path);
		print_name(&d->rows[i]);
	}
}

/* Prints the rows of both, and counts their verdicts. Returns the number of rows in both. */
static size_t judge_rows(struct document *a, struct document *b, double threshold,
			 size_t counts[UNCLEAR + 1])
{
	size_t pairs = 0;

	printf("%-8s %10s %9s %9s %-6s %s\n", "verdict", "change", "before", "after", "unit",
	       "row");
	for (size_t i = 0; i < a->n; i++) {
		struct compared *before = &a->rows[i], *after = find_match(b, before);
		enum verdict v;

		if (!after)
			continue;
		before->matched = after->matched = 1;
		pairs++;
		if (before->median > 0 && after->median > 0) {
			v = judge(before, after, threshold);
			counts[v]++;
			print_verdict(v, before, after);
		} else if (before->median > 0 || after->median > 0) {
			printf("not available in %s: ", before->median > 0 ? b->path : a->path);
			print_name(before);
		}
	}
	return pairs;
}

static int no_row_in_common(const struct document *a, const struct document *b)
{
	tool_error("%s and %s have no row in common", a->path, b->path);
	return TOOL_FAILED;
}

/* Rows of other options measure something else. A file without options is not compared. */
static void warn_of_options(const struct results *a, const char *a_name, const struct results *b,
			    const char *b_name)
{
	const char *first = a->origin.options, *second = b->origin.options;

	if (first && second && strcmp(first, second) != 0)
		tool_error("%s has the options '%s', and %s '%s'", a_name, first, b_name, second);
}

static int compare_rows(struct document *a, struct document *b, double threshold)
{
	size_t counts[UNCLEAR + 1] = {0};
	const size_t pairs = judge_rows(a, b, threshold, counts);

	print_alone(a);
	print_alone(b);
	printf("%zu SAME, %zu FASTER, %zu SLOWER, %zu UNCLEAR\n", counts[SAME], counts[FASTER],
	       counts[SLOWER], counts[UNCLEAR]);
	if (pairs)
		return counts[SLOWER] ? TOOL_FAILED : TOOL_OK;
	return no_row_in_common(a, b);
}

int bench_compare(const char *before, const char *after, double threshold)
{
	struct document a = {.path = before}, b = {.path = after};
	int status = open_document(&a);

	if (!status)
		status = open_document(&b);
	if (!status) {
		warn_of_options(&a.results, before, &b.results, after);
		status = compare_rows(&a, &b, threshold);
	}
	close_document(&a);
	close_document(&b);
	return status;
}

/* ---- the comparison of a run ---- */

struct bench_reference {
	struct document document;
	char *path;
};

/* Returns the path of a reference, in memory from tool_alloc. */
static char *reference_path(const char *name)
{
	const size_t length = strlen(name);
	const int is_path =
		strchr(name, '/') || (length >= 5 && !strcmp(name + length - 5, ".json"));
	const char *folder = getenv("CUATOMIC_DATA_DIR");
	size_t room;
	char *path;

	if (!folder || !*folder)
		folder = CUATOMIC_DATADIR;
	room = strlen(folder) + length + sizeof("/.json");
	path = tool_alloc(room);
	if (is_path)
		snprintf(path, room, "%s", name);
	else
		snprintf(path, room, "%s/%s.json", folder, name);
	return path;
}

struct bench_reference *bench_reference_open(const char *name)
{
	struct bench_reference *ref = tool_alloc(sizeof(*ref));

	memset(ref, 0, sizeof(*ref));
	ref->path = reference_path(name);
	ref->document.path = ref->path;
	if (!open_document(&ref->document))
		return ref;
	bench_reference_close(ref);
	return NULL;
}

void bench_reference_close(struct bench_reference *ref)
{
	if (!ref)
		return;
	close_document(&ref->document);
	free(ref->path);
	free(ref);
}

static void warn_of_other_gpu(const struct bench_reference *ref, const struct results *r,
			      const char *name)
{
	const char *gpu = ref->document.results.device;

	if (gpu && r->device && strcmp(gpu, r->device) != 0)
		tool_error("%s: its GPU is '%s', %s is of '%s'", ref->path, gpu, name, r->device);
	else if (gpu && !r->device)
		tool_error("%s: its GPU is '%s', %s is of the CPU", ref->path, gpu, name);
	else if (!gpu && r->device)
		tool_error("%s: its GPU is none, %s is of '%s'", ref->path, name, r->device);
}

int bench_reference_judge(struct bench_reference *ref, const struct results *r, const char *name,
			  double threshold)
{
	struct document run = {.path = name};
	size_t counts[UNCLEAR + 1] = {0}, pairs;
	int status;

	set_rows(&run, r);
	warn_of_other_gpu(ref, r, name);
	warn_of_options(&ref->document.results, ref->path, r, name);
	printf("\n");
	pairs = judge_rows(&ref->document, &run, threshold, counts);
	if (pairs < run.n)
		printf("rows without a row in %s: %zu\n", ref->path, run.n - pairs);
	printf("%zu of %zu rows are at least %g %% slower than in %s\n", counts[SLOWER], pairs,
	       100 * threshold, ref->path);
	status = counts[SLOWER] ? TOOL_FAILED : TOOL_OK;
	if (!pairs)
		status = no_row_in_common(&ref->document, &run);
	close_document(&run);
	return status;
}
