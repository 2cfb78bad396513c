/* SPDX-License-Identifier: MIT */
/* The rows of benchmarks, from the records of bench/bench_records.h, and their table. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

/* Fields of a record: a row has the most. */
#define FIELDS (STATS_SAMPLES + 7)

char *results_copy(const char *text)
{
	const size_t bytes = strlen(text) + 1;
	char *copy = tool_alloc(bytes);

	memcpy(copy, text, bytes);
	return copy;
}

static void replace_text(char **to, const char *text)
{
	free(*to);
	*to = text ? results_copy(text) : NULL;
}

void results_begin(struct results *r, const char *bench, double seconds)
{
	struct bench_state *s = bench_env();

	snprintf(s->name, sizeof(s->name), "%s", bench);
	r->bench = bench;
	r->group++;
	r->planned = r->done = 0;
	memset(&r->state, 0, sizeof(r->state));
	r->seconds = seconds;
	r->start = r->last = stats_now();
	table_begin(&r->table, "");
	replace_text(&r->columns, NULL);
	replace_text(&r->title, NULL);
}

void results_columns(struct results *r, const char *unit, const char *title)
{
	replace_text(&r->columns, unit);
	replace_text(&r->title, title);
	r->group++;
}

void results_case(struct results *r, const char *name)
{
	table_begin(&r->table, name);
	r->group++;
}

void results_free(struct results *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->rows[i].bench);
		free(r->rows[i].name);
		free(r->rows[i].way);
		free(r->rows[i].unit);
		free(r->rows[i].note);
	}
	free(r->rows);
	free(r->device);
	free(r->driver);
	free(r->origin.version);
	free(r->origin.versions);
	free(r->origin.date);
	free(r->origin.cpu);
	free(r->origin.os);
	free(r->origin.options);
	free(r->columns);
	free(r->title);
}

double results_best(const struct results *r, size_t i, enum table_kind kind)
{
	double best = 0;

	for (size_t j = 0; j < r->n; j++) {
		const struct result_row *row = &r->rows[j];

		if (row->group == r->rows[i].group && row->kind == kind && row->figure.runs)
			best = table_better(row->unit, best, row->figure.median);
	}
	return best;
}

double results_ratio(const struct results *r, size_t i, enum table_kind kind)
{
	const struct result_row *row = &r->rows[i];
	const double best = results_best(r, i, kind);

	if (!row->figure.runs || !(best > 0) || !(row->figure.median > 0))
		return -1;
	return table_ratio(row->unit, row->figure.median, best);
}

/* ---- records ---- */

/* Undoes the escapes of a field. */
static void unescape(char *field)
{
	char *to = field;

	for (; *field; field++) {
		if (*field != '\\' || !field[1]) {
			*to++ = *field;
			continue;
		}
		field++;
		*to++ = *field == 't' ? '\t' : *field == 'n' ? '\n' : *field;
	}
	*to = '\0';
}

/* Divides a record. Returns the number of fields, at most FIELDS + 1. */
static int split(char *line, char *fields[FIELDS + 1])
{
	int n = 0;

	while (line && n <= FIELDS) {
		char *tab = strchr(line, '\t');

		if (tab)
			*tab++ = '\0';
		unescape(line);
		fields[n++] = line;
		line = tab;
	}
	return n;
}

int results_kind(const char *text, enum table_kind *kind)
{
	for (int k = TABLE_CEILING; k <= TABLE_OURS; k++) {
		*kind = (enum table_kind)k;
		if (!strcmp(text, table_kind_name(*kind)))
			return 1;
	}
	return 0;
}

int results_reason(const char *text, enum stats_reason *reason)
{
	for (int k = STATS_CONVERGED; k <= STATS_ALL_SAMPLES; k++) {
		*reason = (enum stats_reason)k;
		if (!strcmp(text, table_reason_name(*reason)))
			return 1;
	}
	return 0;
}

static int parse_samples(char *const *fields, int n, struct figure *f)
{
	double samples[STATS_SAMPLES];

	memset(f, 0, sizeof(*f));
	for (int i = 0; i < n; i++) {
		char *end;

		samples[i] = strtod(fields[i], &end);
		/* negated, so that a NaN fails */
		if (end == fields[i] || *end || !(samples[i] >= 0 && samples[i] < 1e300))
			return 0;
	}
	if (n)
		*f = table_figure(samples, n);
	return 1;
}

/* Prints a row as a single line, whatever its names contain. */
static void print_row(struct results *r, const struct result_row *row)
{
	char *name, *way, *note;

	if (!r->prints)
		return;
	name = results_copy(row->name);
	way = results_copy(row->way);
	note = results_copy(row->note);
	tool_one_line(name);
	tool_one_line(way);
	tool_one_line(note);
	progress_clear();
	if (r->columns) {
		tool_one_line(r->columns);
		table_columns(r->columns, r->title);
	}
	replace_text(&r->columns, NULL);
	/* the table cuts long names */
	if (strncmp(r->table.name, name, sizeof(r->table.name) - 1) != 0)
		table_begin(&r->table, name);
	table_add_note(&r->table, row->kind, way, row->figure, note);
	free(name);
	free(way);
	free(note);
}

static struct result_row *new_row(struct results *r)
{
	if (r->n == r->room) {
		const size_t room = r->room ? 2 * r->room : 64;
		struct result_row *rows = tool_alloc(room * sizeof(*rows));

		if (r->n)
			memcpy(rows, r->rows, r->n * sizeof(*rows));
		free(r->rows);
		r->rows = rows;
		r->room = room;
	}
	return &r->rows[r->n++];
}

void results_add(struct results *r, const struct result_row *row)
{
	const char *last = r->n ? r->rows[r->n - 1].name : "";
	struct result_row copy = *row;

	if (strcmp(last, row->name) != 0)
		r->group++;
	copy.group = r->group;
	copy.bench = results_copy(r->bench);
	copy.name = results_copy(row->name);
	copy.way = results_copy(row->way);
	copy.unit = results_copy(row->unit);
	copy.note = results_copy(row->note);
	*new_row(r) = copy;
	print_row(r, &copy);
	if (r->show) {
		progress_clear();
		r->show(r, r->n - 1);
	}
}

/* %row CASE WAY KIND UNIT NOTE REASON SAMPLE... */
static int read_row(struct results *r, char **fields, int n)
{
	enum stats_reason reason;
	struct result_row row;

	if (n < 7 || n > FIELDS || !results_kind(fields[3], &row.kind) ||
	    !results_reason(fields[6], &reason) || !parse_samples(fields + 7, n - 7, &row.figure))
		return 0;
	r->done++;
	r->last = stats_now();
	row.figure.state = r->state;
	memset(&r->state, 0, sizeof(r->state));
	if (!table_matches(fields[1], fields[2]))
		return 1;
	row.figure.reason = reason;
	row.name = fields[1];
	row.way = fields[2];
	row.unit = fields[4];
	row.note = fields[5];
	results_add(r, &row);
	return 1;
}

static int read_head(struct results *r, char **fields, int n)
{
	if (n != 3)
		return 0;
	if (!strcmp(fields[1], "device"))
		replace_text(&r->device, fields[2]);
	else if (!strcmp(fields[1], "driver"))
		replace_text(&r->driver, fields[2]);
	else if (!strcmp(fields[1], "versions"))
		replace_text(&r->origin.versions, fields[2]);
	return 1;
}

static int read_plan(struct results *r, char **fields, int n)
{
	char *end;

	if (n != 2)
		return 0;
	r->planned = strtoul(fields[1], &end, 10);
	return end != fields[1] && !*end;
}

static int read_columns(struct results *r, char **fields, int n)
{
	if (n != 3)
		return 0;
	results_columns(r, fields[1], fields[2]);
	return 1;
}

static int read_case(struct results *r, char **fields, int n)
{
	if (n != 2)
		return 0;
	results_case(r, fields[1]);
	return 1;
}

/* Parses a clock in MHz; 0: unknown. */
static int parse_clock(const char *text, double *mhz)
{
	char *end;

	*mhz = strtod(text, &end);
	return end != text && !*end && *mhz >= 0 && *mhz < 1e6;
}

/* %state SM_MHZ MEMORY_MHZ [THROTTLE] */
static int read_state(struct results *r, char **fields, int n)
{
	struct bench_machine_state *s = &r->state;

	if (n < 3 || n > 4 || !parse_clock(fields[1], &s->sm_mhz) ||
	    !parse_clock(fields[2], &s->memory_mhz))
		return 0;
	s->knows_throttle = n == 4;
	snprintf(s->throttle, sizeof(s->throttle), "%s", n == 4 ? fields[3] : "");
	return 1;
}

static int read_skip(struct results *r, char **fields, int n)
{
	(void)fields;
	r->done++;
	return n == 1;
}

static const struct {
	const char *kind;
	int (*read)(struct results *r, char **fields, int n);
} record_kinds[] = {
	{"%case", read_case},   {"%columns", read_columns}, {"%head", read_head},
	{"%plan", read_plan},   {"%row", read_row},         {"%skip", read_skip},
	{"%state", read_state},
};

int results_read(struct results *r, char *line)
{
	const size_t first = strcspn(line, "\t");
	char *fields[FIELDS + 1];

	for (size_t i = 0; i < sizeof(record_kinds) / sizeof(record_kinds[0]); i++) {
		const char *kind = record_kinds[i].kind;

		if (first == strlen(kind) && !strncmp(line, kind, first))
			return record_kinds[i].read(r, fields, split(line, fields));
	}
	if (r->prints) {
		progress_clear();
		puts(line);
		fflush(stdout);
	}
	return 1;
}
