/* SPDX-License-Identifier: MIT */
/*
 * Aggregates a column of a CSV file by another column, by cua_unique and cua_group_by, on a GPU or
 * the CPU.
 *
 *     cc *.c $(pkg-config --cflags --libs cuatomic) -o group-by
 *     ./group-by --help
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "group-by.h"

#define USAGE_ERROR 2

static const char help_text[] =
	"usage: group-by [OPTION...] KEY VALUE [FILE]\n"
	"\n"
	"Groups the rows of a CSV file by the column named KEY, and prints a line of CSV for\n"
	"each group, sorted by key: the key, and count, sum, mean, min, max and variance\n"
	"(of a sample, n - 1) of the column named VALUE. The first line of the file has the\n"
	"names of the columns. Without a FILE, or with '-', reads standard input.\n"
	"Fields may be quoted. An empty value does not count. Sums are exact, rounded once.\n"
	"All rows are held in memory.\n"
	"\n"
	"  -d, --device=auto|cpu|cuda  where to compute; auto (the default): on the first GPU,\n"
	"                              or without a GPU on the CPU\n"
	"  -n, --numbers               keys are numbers; otherwise they are text\n"
	"  -c, --check                 compare the results with a serial reference\n"
	"  -t, --threads=N             threads of the CPU backend, 1 to 1024\n"
	"\n"
	"  -h, --help                  this text\n"
	"  -V, --version               version\n"
	"\n"
	"Exit status: 0 success, 1 something failed and no table was printed, 2 wrong usage.\n";

struct options {
	int numbers, check;
	unsigned threads;
	enum cua_backend backend;
	const char *key, *value, *file;
};

/* ---- messages and memory ---- */

static void print_line(const char *end, const char *format, va_list arguments)
{
	char line[1024];

	vsnprintf(line, sizeof(line), format, arguments);
	/* names and fields may contain newlines, but a message is a single line */
	for (char *c = line; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	fprintf(stderr, "group-by: %s%s\n", line, end);
}

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", format, arguments);
	va_end(arguments);
	exit(1);
}

static void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void usage_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("; see group-by --help", format, arguments);
	va_end(arguments);
	exit(USAGE_ERROR);
}

void *must_alloc(uint64_t n, size_t size)
{
	void *p = n > SIZE_MAX / size ? NULL : malloc(n ? (size_t)n * size : 1);

	if (!p)
		die("out of memory");
	return p;
}

void *must_grow(void *p, uint64_t n, uint64_t *room, size_t size)
{
	uint64_t wanted = *room < 64 ? 64 : 2 * *room;

	wanted = wanted < n ? n : wanted;
	p = wanted > SIZE_MAX / size ? NULL : realloc(p, (size_t)wanted * size);
	if (!p)
		die("out of memory");
	*room = wanted;
	return p;
}

/* ---- the table ---- */

static void print_text(const char *text, uint64_t n)
{
	int quotes = 0;

	for (uint64_t i = 0; i < n; i++)
		quotes |= text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
	if (!quotes) {
		fwrite(text, 1, n, stdout);
		return;
	}
	putchar('"');
	for (uint64_t i = 0; i < n; i++) {
		if (text[i] == '"')
			putchar('"');
		putchar(text[i]);
	}
	putchar('"');
}

/* Prints the fewest digits of 15 to 17 that read as the same number. */
static void print_number(double x)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, x);
		if (strtod(text, NULL) == x)
			break;
	}
	fputs(isnan(x) ? "nan" : text, stdout);
}

/* Prints a comma and the number; without a number only the comma. */
static void print_result(double x, int is_there)
{
	putchar(',');
	if (is_there)
		print_number(x);
}

static void print_table(const struct rows *r, const struct groups *groups)
{
	print_text(r->name, strlen(r->name));
	fputs(",count,sum,mean,min,max,variance\n", stdout);
	for (uint64_t i = 0; i < groups->n && !ferror(stdout); i++) {
		const struct group *g = &groups->group[i];

		if (r->numbers) {
			print_number(r->number[g->first]);
		} else {
			uint64_t length;
			const char *key = rows_key(r, g->first, &length);

			print_text(key, length);
		}
		printf(",%" PRIu64, g->count);
		print_result(g->sum, 1);
		print_result(g->mean, g->count > 0);
		print_result(g->least, g->count > 0);
		print_result(g->most, g->count > 0);
		print_result(g->variance, g->count > 1);
		putchar('\n');
	}
	if (fflush(stdout) || ferror(stdout))
		die("standard output: %s", strerror(errno));
}

static void run(const struct options *o)
{
	/* static so that leak checkers find them after die() */
	static struct rows rows;
	static struct groups groups;

	rows_read(&rows, o->file, o->key, o->value, o->numbers);
	aggregate(&rows, o->backend, o->threads, &groups);
	if (o->check) {
		check_groups(&rows, &groups);
		fprintf(stderr,
			"group-by: checked: %" PRIu64 " groups of %" PRIu64
			" rows are equal to the reference\n",
			groups.n, rows.n);
	}
	print_table(&rows, &groups);
	free(groups.group);
	rows_free(&rows);
}

/* ---- options ---- */

static unsigned parse_threads(const char *text)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > 1024)
		usage_error("'%.100s' is not a number of threads (1 to 1024)", text);
	return (unsigned)n;
}

static enum cua_backend parse_device(const char *text)
{
	if (!strcmp(text, "auto"))
		return CUA_BACKEND_AUTO;
	if (!strcmp(text, "cpu"))
		return CUA_BACKEND_CPU;
	if (!strcmp(text, "cuda"))
		return CUA_BACKEND_CUDA;
	usage_error("unknown device '%.100s' (auto, cpu or cuda)", text);
}

static void print_and_exit(const char *text)
{
	if (fputs(text, stdout) < 0 || fflush(stdout))
		die("standard output: %s", strerror(errno));
	exit(0);
}

/* Reports a long option that getopt_long refused. */
static void refuse_word(const char *word, const struct option *names)
{
	const size_t length = strcspn(word + 2, "=");

	for (; word[1] == '-' && names->name; names++) {
		if (!strncmp(names->name, word + 2, length))
			usage_error("option '%.*s' takes no value", (int)length + 2, word);
	}
	usage_error("unknown option '%.100s'", word);
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{"device", required_argument, NULL, 'd'},
		{"numbers", no_argument, NULL, 'n'},
		{"check", no_argument, NULL, 'c'},
		{"threads", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	char version[64];
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":d:nct:hV", names, NULL)) != -1) {
		switch (c) {
		case 'd': o->backend = parse_device(optarg); break;
		case 'n': o->numbers = 1; break;
		case 'c': o->check = 1; break;
		case 't': o->threads = parse_threads(optarg); break;
		case 'h': print_and_exit(help_text); break;
		case 'V':
			snprintf(version, sizeof(version), "group-by (cuatomic) %s\n",
				 cua_version());
			print_and_exit(version);
			break;
		case ':': usage_error("option '%.100s' needs a value", argv[optind - 1]);
		default:
			/* an unknown letter may be inside a cluster such as -nx */
			if (optopt > ' ' && optopt < 256 && argv[optind - 1][1] != '-')
				usage_error("unknown option '-%c'", optopt);
			refuse_word(argv[optind - 1], names);
		}
	}
	if (argc - optind < 2)
		usage_error("the names of two columns are needed: KEY and VALUE");
	if (argc - optind > 3)
		usage_error("more than one FILE: '%.100s'", argv[optind + 3]);
	o->key = argv[optind];
	o->value = argv[optind + 1];
	o->file = argv[optind + 2]; /* NULL if there is none */
}

int main(int argc, char **argv)
{
	struct options o = {.backend = CUA_BACKEND_AUTO};

	parse(argc, argv, &o);
	run(&o);
	return 0;
}
