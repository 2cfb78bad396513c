/* SPDX-License-Identifier: MIT */
/* The rows of a file of `cuatomic bench --json`: in place of a run, or for a comparison. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <math.h>
#include <string.h>

#include "bench.h"

#ifdef HAVE_JANSSON
#include <jansson.h>

static void *load_error(const char *path, const char *what)
{
	tool_error("%s: %s", path, what);
	return NULL;
}

/* Returns why the document cannot be read, or NULL. */
static const char *why_no_rows(const json_t *json)
{
	const json_t *schema = json_object_get(json, "schema");

	if (!json_is_integer(schema))
		return "not a file of cuatomic bench --json";
	if (json_integer_value(schema) != 1)
		return "the schema is not 1";
	return json_is_array(json_object_get(json, "rows")) ? NULL : "no rows";
}

static json_t *open_json(const char *path)
{
	json_error_t error;
	json_t *json = json_load_file(path, 0, &error);
	const char *why;

	if (!json && error.line > 0) {
		tool_error("%s: line %d: %s", path, error.line, error.text);
		return NULL;
	}
	if (!json)
		return load_error(path, error.text);
	why = why_no_rows(json);
	if (why) {
		json_decref(json);
		return load_error(path, why);
	}
	return json;
}

/* ---- rows ---- */

static const char *text_member(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

/* Reads the samples, and checks that they have the median of the file. */
static int read_figure(const json_t *row, struct figure *f)
{
	const json_t *values = json_object_get(row, "samples");
	const json_t *median = json_object_get(row, "median");
	const size_t n = json_array_size(values);
	double samples[STATS_SAMPLES];

	memset(f, 0, sizeof(*f));
	if (!json_is_array(values) || n > STATS_SAMPLES)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(values, i);

		samples[i] = json_is_number(v) ? json_number_value(v) : -1;
		if (samples[i] < 0 || samples[i] >= 1e300)
			return 0;
	}
	if (!n)
		return json_is_null(median);
	*f = table_figure(samples, (int)n);
	return json_is_number(median) &&
	       fabs(json_number_value(median) - f->median) <= 1e-9 * f->median + 1e-300 &&
	       results_reason(text_member(row, "reason") ? text_member(row, "reason") : "",
			      &f->reason);
}

/* Reads a clock in MHz. A file of an older version has none. */
static int load_clock(const json_t *v, double *mhz)
{
	*mhz = json_is_number(v) ? json_number_value(v) : 0;
	return !v || json_is_null(v) || (*mhz > 0 && *mhz < 1e6);
}

static int load_state(const json_t *row, struct bench_machine_state *s)
{
	const json_t *throttle = json_object_get(row, "throttle");
	const char *text = json_string_value(throttle);

	s->knows_throttle = text != NULL;
	snprintf(s->throttle, sizeof(s->throttle), "%s", text ? text : "");
	return load_clock(json_object_get(row, "sm_mhz"), &s->sm_mhz) &&
	       load_clock(json_object_get(row, "memory_mhz"), &s->memory_mhz) &&
	       (text || !throttle || json_is_null(throttle));
}

/* Reads the first n of the names of a row, its unit and its note. They belong to the document. */
static int load_texts(const json_t *json, struct result_row *row, size_t n)
{
	const struct {
		const char *name;
		char **to;
	} texts[] = {{"bench", &row->bench},
		     {"case", &row->name},
		     {"way", &row->way},
		     {"unit", &row->unit},
		     {"note", &row->note}};

	for (size_t i = 0; i < n; i++) {
		*texts[i].to = (char *)text_member(json, texts[i].name);
		if (!*texts[i].to)
			return 0;
	}
	return 1;
}

/* The texts of the result belong to the document. */
static int load_row(const json_t *json, struct result_row *row)
{
	const char *kind = text_member(json, "kind");

	return load_texts(json, row, 5) && kind && results_kind(kind, &row->kind) &&
	       read_figure(json, &row->figure) && load_state(json, &row->figure.state);
}

/* Whether a row from row i on has a note, until the benchmark or the unit changes. */
static int has_notes(const json_t *rows, size_t i, const struct result_row *row)
{
	for (; i < json_array_size(rows); i++) {
		const json_t *next = json_array_get(rows, i);
		const char *bench = text_member(next, "bench"), *unit = text_member(next, "unit");
		const char *note = text_member(next, "note");

		if (!bench || !unit || strcmp(bench, row->bench) || strcmp(unit, row->unit))
			break;
		if (note && *note)
			return 1;
	}
	return 0;
}

/* Whether row i begins a case: the file has no mark, but the ways of a case are different. */
static int begins_case(const struct results *r, const struct result_row *row)
{
	const struct result_row *last = r->n ? &r->rows[r->n - 1] : NULL;

	if (!last || last->group != r->group || strcmp(last->name, row->name) != 0)
		return 1;
	for (size_t i = r->n; i-- && r->rows[i].group == r->group;) {
		if (!strcmp(r->rows[i].way, row->way))
			return 1;
	}
	return 0;
}

static void print_origin(const struct results *r)
{
	const char *machine = r->device ? r->device : r->origin.cpu ? r->origin.cpu : "CPU";
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s; cuatomic %s, %s%s", machine,
		 r->driver ? ", driver " : "", r->driver ? r->driver : "", r->origin.version,
		 r->origin.date, r->failed ? "; rows are missing" : "");
	tool_one_line(text);
	puts(text);
}

static void load_add(struct results *r, const json_t *rows, size_t i, const struct result_row *row)
{
	const struct result_row *last = r->n ? &r->rows[r->n - 1] : NULL;

	if (!last || strcmp(last->bench, row->bench) != 0)
		results_begin(r, row->bench, 0);
	if (!last || strcmp(last->bench, row->bench) != 0 || strcmp(last->unit, row->unit) != 0)
		results_columns(r, row->unit, has_notes(rows, i, row) ? "note" : "");
	else if (begins_case(r, row))
		results_case(r, row->name);
	if (!table_matches(row->name, row->way))
		return;
	if (!last && r->prints)
		print_origin(r);
	results_add(r, row);
}

/* ---- the file ---- */

static char *copy_member(const json_t *object, const char *name)
{
	const char *text = text_member(object, name);

	return text ? results_copy(text) : NULL;
}

static double number_or_unknown(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	return json_is_number(v) ? json_number_value(v) : -1;
}

static void read_origin(const json_t *json, struct results *r)
{
	const json_t *machine = json_object_get(json, "machine");
	struct result_origin *o = &r->origin;

	o->version = copy_member(json, "version");
	o->date = copy_member(json, "date");
	o->cpu = copy_member(machine, "cpu");
	o->os = copy_member(machine, "os");
	o->options = copy_member(json, "options");
	o->cores = number_or_unknown(machine, "cores");
	o->memory = number_or_unknown(machine, "memory");
	r->device = copy_member(machine, "gpu");
	r->driver = copy_member(machine, "driver");
	r->failed = json_is_false(json_object_get(json, "complete"));
}

static int load_all(const char *path, const json_t *rows, struct results *r,
		    int (*wants)(const char *bench, const void *data), const void *data)
{
	const json_t *json;
	size_t i;

	json_array_foreach(rows, i, json)
	{
		struct result_row row;

		if (!load_row(json, &row)) {
			tool_error("%s: row %zu is malformed", path, i + 1);
			return TOOL_FAILED;
		}
	}
	json_array_foreach(rows, i, json)
	{
		struct result_row row;

		if (load_row(json, &row) && wants(row.bench, data))
			load_add(r, rows, i, &row);
	}
	/* the name may belong to the document */
	r->bench = NULL;
	return TOOL_OK;
}

int bench_load(const char *path, struct results *r,
	       int (*wants)(const char *bench, const void *data), const void *data)
{
	json_t *json = open_json(path);
	int status = TOOL_FAILED;

	if (!json)
		return TOOL_FAILED;
	read_origin(json, r);
	if (r->origin.version && r->origin.date && r->origin.os)
		status = load_all(path, json_object_get(json, "rows"), r, wants, data);
	else
		load_error(path, "no version, date or machine");
	json_decref(json);
	return status;
}

/* ---- intervals ---- */

/* Returns a member that has to be a number, or null for -1. Returns NAN if it is neither. */
static double number_or_null(const json_t *row, const char *name)
{
	const json_t *v = json_object_get(row, name);

	if (json_is_null(v))
		return -1;
	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Whether the interval of a row is unknown. A row without samples has an interval. */
static int has_few_samples(const json_t *row)
{
	const json_t *samples = json_object_get(row, "samples");
	const size_t n = json_array_size(samples);

	return json_is_array(samples) && n < STATS_SAMPLES && !stats_rank((int)n);
}

/* The texts of the result belong to the document. */
static int load_interval(const json_t *json, struct result_row *row)
{
	struct figure *f = &row->figure;

	memset(row, 0, sizeof(*row));
	row->note = (char *)"";
	f->median = number_or_null(json, "median");
	f->interval.low = number_or_null(json, "low");
	f->interval.high = number_or_null(json, "high");
	f->interval.known = !has_few_samples(json);
	f->runs = f->median > 0;
	if (!load_texts(json, row, 4) || isnan(f->median + f->interval.low + f->interval.high))
		return 0;
	return !f->runs || (f->interval.low >= 0 && f->interval.low <= f->median &&
			    f->median <= f->interval.high);
}

int bench_load_intervals(const char *path, struct results *r)
{
	json_t *json = open_json(path), *item;
	int status = TOOL_OK;
	size_t i;

	if (!json)
		return TOOL_FAILED;
	read_origin(json, r);
	json_array_foreach(json_object_get(json, "rows"), i, item)
	{
		struct result_row row;

		if (!load_interval(item, &row)) {
			tool_error("%s: row %zu is malformed", path, i + 1);
			status = TOOL_FAILED;
			break;
		}
		/* without results_begin, which reads the environment before it is set */
		r->bench = row.bench;
		results_add(r, &row);
	}
	r->bench = NULL;
	json_decref(json);
	return status;
}

#else /* HAVE_JANSSON */

int bench_load_intervals(const char *path, struct results *r)
{
	(void)r;
	tool_error("%s: this build has no JSON reader (jansson)", path);
	return TOOL_FAILED;
}

int bench_load(const char *path, struct results *r,
	       int (*wants)(const char *bench, const void *data), const void *data)
{
	(void)wants;
	(void)data;
	return bench_load_intervals(path, r);
}

#endif /* HAVE_JANSSON */
