/* SPDX-License-Identifier: MIT */
/* The arguments of `cuatomic bench`, and their checks before anything is measured. */
#include <getopt.h>
#include <string.h>

#include "bench_options.h"

enum {
	JSON = 256,
	AGAINST,
	CSV,
	COMPARE,
	DEVICE,
	FILTER,
	FROM,
	LIST,
	PLOT,
	SECONDS,
	SIZE,
	THRESHOLD
};

static const struct option bench_options[] = {
	{"json", optional_argument, NULL, JSON},
	{"against", required_argument, NULL, AGAINST},
	{"csv", optional_argument, NULL, CSV},
	{"compare", no_argument, NULL, COMPARE},
	{"device", required_argument, NULL, DEVICE},
	{"filter", required_argument, NULL, FILTER},
	{"from", required_argument, NULL, FROM},
	{"list", no_argument, NULL, LIST},
	{"plot", required_argument, NULL, PLOT},
	{"seconds", required_argument, NULL, SECONDS},
	{"size", required_argument, NULL, SIZE},
	{"threshold", required_argument, NULL, THRESHOLD},
	{NULL, 0, NULL, 0},
};

/* Parses a decimal number from 0 to most. */
static int parse_number(const char *text, double most, double *v)
{
	char *end;

	/* strtod also accepts signs, white space, infinities and hexadecimal digits */
	if (!*text || text[strspn(text, "0123456789.")])
		return 0;
	*v = strtod(text, &end);
	return !*end && *v <= most;
}

static int set_file(struct bench_file *f, const char *value, const char *name)
{
	f->path = value ? value : "-";
	if (!*f->path)
		return tool_usage_error("option '--%s=' needs the name of a file", name);
	return TOOL_OK;
}

static int set_filter(struct bench_arguments *a, const char *value)
{
	regex_t filter;
	char why[128];
	int error = regcomp(&filter, value, REG_EXTENDED | REG_NOSUB);

	if (error) {
		regerror(error, &filter, why, sizeof(why));
		return tool_usage_error("'%s' is not a regular expression: %s", value, why);
	}
	regfree(&filter);
	a->filter = *value ? value : NULL;
	return TOOL_OK;
}

static int set_seconds(struct bench_arguments *a, const char *value)
{
	if (!parse_number(value, 86400, &a->seconds) || a->seconds < BENCH_LEAST_SECONDS)
		return tool_usage_error("'%s' is not a number of seconds (0.000001 to 86400)",
					value);
	return TOOL_OK;
}

static int set_size(struct bench_arguments *a, const char *value)
{
	if (!bench_parse_size(value, &a->size))
		return tool_usage_error(
			"'%s' is not a number of bytes (1 to 65536G; suffixes K, M and G)", value);
	return TOOL_OK;
}

static int set_device(struct bench_arguments *a, const char *value)
{
	if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 3)
		return tool_usage_error("'%s' is not the number of a device", value);
	a->device = value;
	return TOOL_OK;
}

static int set_against(struct bench_arguments *a, const char *value)
{
	if (!*value)
		return tool_usage_error("option '--against' needs the name of a reference");
	a->against = value;
	return TOOL_OK;
}

static int set_threshold(struct bench_arguments *a, const char *value)
{
	if (!parse_number(value, 1000, &a->threshold))
		return tool_usage_error("'%s' is not a percentage (0 to 1000)", value);
	return TOOL_OK;
}

static int set_plot(struct bench_arguments *a, const char *value)
{
	const size_t length = strlen(value);
	const char *end = length > 4 ? value + length - 4 : "";

	if (strcmp(end, ".svg") != 0 && strcmp(end, ".png") != 0)
		return tool_usage_error("'%s' is not the name of a plot, FILE.svg or FILE.png",
					value);
	a->plot.path = value;
	return TOOL_OK;
}

static int set_from(struct bench_arguments *a, const char *value)
{
	if (!*value)
		return tool_usage_error("option '--from=' needs the name of a file");
	a->from = value;
	return TOOL_OK;
}

static int set_option(int option, const char *value, void *arguments)
{
	struct bench_arguments *a = arguments;

	switch (option) {
	case JSON: return set_file(&a->json, value, "json");
	case CSV: return set_file(&a->csv, value, "csv");
	case AGAINST: return set_against(a, value);
	case COMPARE: a->compare = 1; return TOOL_OK;
	case DEVICE: return set_device(a, value);
	case FILTER: return set_filter(a, value);
	case FROM: return set_from(a, value);
	case LIST: a->list = 1; return TOOL_OK;
	case PLOT: return set_plot(a, value);
	case SECONDS: return set_seconds(a, value);
	case SIZE: return set_size(a, value);
	default: return set_threshold(a, value);
	}
}

/* Whether the option leaves standard output to the file. */
static int is_stdout(const struct bench_file *f)
{
	return f->path && !strcmp(f->path, "-");
}

/* The name of a benchmark begins a request; other words are arguments of the request. */
static int parse_requests(int argc, char **argv, struct bench_arguments *a)
{
	a->requests = tool_alloc((size_t)argc * sizeof(*a->requests));
	for (int i = optind; i < argc; i++) {
		const struct benchmark *b = bench_find(argv[i]);

		if (b)
			a->requests[a->n++] =
				(struct bench_request){a->seconds, b, argv + i + 1, 0};
		else if (a->n)
			a->requests[a->n - 1].n_rest++;
		else
			return tool_usage_error(
				"unknown benchmark '%s'; cuatomic bench --list lists them",
				argv[i]);
	}
	return TOOL_OK;
}

int bench_has_no_table(const struct bench_arguments *a)
{
	return is_stdout(&a->json) || is_stdout(&a->csv);
}

static int writes_file(const struct bench_arguments *a)
{
	return a->json.path || a->csv.path || a->plot.path;
}

/* Whether an option is for a measurement. */
static int has_run_option(const struct bench_arguments *a)
{
	return a->seconds > 0 || a->size || a->device;
}

/* Whether an option is for the rows of a run or of --from. */
static int has_row_option(const struct bench_arguments *a)
{
	return writes_file(a) || a->filter || a->against;
}

/* Refuses options and arguments of a run if the rows are read from a file. */
static int check_from(const struct bench_arguments *a)
{
	const struct tool_options *o = &a->options;

	if (a->compare || a->list)
		return tool_usage_error("option '--from' excludes '--%s'",
					a->list ? "list" : "compare");
	if (has_run_option(a) || o->quick || o->backend_given || o->threads)
		return tool_usage_error("option '--from' runs no benchmark");
	for (size_t i = 0; i < a->n; i++) {
		if (a->requests[i].n_rest)
			return tool_usage_error(
				"unknown benchmark '%s'; cuatomic bench --list lists them",
				a->requests[i].rest[0]);
	}
	return TOOL_OK;
}

/* Refuses options that have no use for the source of the rows: a run, a file or two files. */
static int check_source(const struct bench_arguments *a)
{
	if (a->from)
		return check_from(a);
	if (a->compare && (a->list || has_run_option(a) || has_row_option(a)))
		return tool_usage_error("option '--compare' runs no benchmark");
	return TOOL_OK;
}

/* Refuses options that exclude each other. */
static int check_options(const struct bench_arguments *a)
{
	int status = check_source(a);

	if (status)
		return status;
	if (a->threshold >= 0 && !a->compare && !a->against)
		return tool_usage_error("option '--threshold' needs '--compare' or '--against'");
	if (a->against && bench_has_no_table(a))
		return tool_usage_error(
			"option '--against' needs standard output for the verdicts");
	if (a->list && writes_file(a))
		return tool_usage_error("option '--list' writes no file");
	if (a->device && !a->options.cuda)
		return tool_usage_error("option '--device' is for GPUs");
	return TOOL_OK;
}

int bench_parse_arguments(int argc, char **argv, struct bench_arguments *a)
{
	const struct tool_more more = {bench_options, set_option, a};
	int status = tool_parse_options(argc, argv, ":b:qt:", &a->options, &more);

	if (!status && !a->compare)
		status = parse_requests(argc, argv, a);
	a->summary = !a->compare && !a->from && !a->list && !a->n;
	if (!status)
		status = check_options(a);
	if (!status && a->compare && argc - optind != 2)
		status = tool_usage_error("option '--compare' needs two files");
	return status;
}
