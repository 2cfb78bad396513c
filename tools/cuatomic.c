/* SPDX-License-Identifier: MIT */
/* The command `cuatomic`: dispatches to its subcommands. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools.h"

static int tool_help(int argc, char **argv);

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"bench", tool_bench},
	{"demo", tool_demo},
	{"help", tool_help},
	{"info", tool_info},
};

static const char help_text[] =
	"usage: cuatomic demo [OPTION...] [FILE]\n"
	"       cuatomic bench [OPTION...] [NAME [ARGUMENT...]...]\n"
	"       cuatomic bench --compare [--threshold=PERCENT] BEFORE.json AFTER.json\n"
	"       cuatomic info [--atomics] [--json]\n"
	"       cuatomic help\n"
	"\n"
	"demo   run the calls of the library on the bytes and words of FILE ('-' is\n"
	"       standard input) and check each result against a serial reference\n"
	"bench  measure a module of the library and its peers; without NAME, a report of\n"
	"       the most important rows, in about a minute\n"
	"info   version, build, backends, devices and their links\n"
	"help   this text\n"
	"\n"
	"Options of demo and bench:\n"
	"  -b, --backend=cpu|cuda|auto  where to run; auto (the default): demo on the CPU and,\n"
	"                               if there is a GPU, on the first GPU; bench on the\n"
	"                               GPU, or without a GPU on the CPU\n"
	"  -g, --group=N                demo: the calls of groups, on 1 to 64 ranks; rank R has\n"
	"                               GPU R modulo the number of GPUs, or a context of the CPU\n"
	"  -q, --quick                  bench: short runs, only to test the benchmarks\n"
	"  -t, --threads=N              threads of the CPU backend, 1 to 1024, for each rank\n"
	"\n"
	"Options of bench:\n"
	"      --against=NAME           compare the run with a reference (a file of --json, or the\n"
	"                               name of an installed one); status 1: a row is slower\n"
	"      --compare                compare two files of --json; status 1: a row is slower\n"
	"      --csv[=FILE]             write the rows as CSV, to FILE or in place of the table\n"
	"      --device=N               GPU to run on, from 0\n"
	"      --filter=REGEX           only rows whose \"bench/case/way\" matches\n"
	"      --from=FILE.json         the rows of a file of --json, in place of a run\n"
	"      --json[=FILE]            as --csv, in JSON, with the machine and all samples\n"
	"      --list                   list the benchmarks\n"
	"      --plot=FILE.svg|FILE.png draw the rows by gnuplot\n"
	"      --seconds=S              time of each benchmark; without NAME, of all\n"
	"      --size=BYTES             arrays of the benchmarks of memory; suffixes K, M and G\n"
	"      --threshold=PERCENT      difference that --compare and --against tolerate [5]\n"
	"\n"
	"Options of info:\n"
	"      --atomics                the implementation of each atomic operation\n"
	"      --json                   everything in JSON\n"
	"\n"
	"  -h, --help                   this text\n"
	"  -V, --version                version\n"
	"\n"
	"Exit status: 0 success, 1 a result is wrong or something failed, 2 wrong usage.\n"
	"More: man cuatomic\n";

void tool_one_line(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

static void print_line(const char *end, const char *format, va_list arguments)
{
	char line[1024];

	vsnprintf(line, sizeof(line), format, arguments);
	/* a file name may contain newlines */
	tool_one_line(line);
	fflush(stdout);
	fprintf(stderr, "cuatomic: %s%s\n", line, end);
}

void tool_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", format, arguments);
	va_end(arguments);
}

void tool_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", format, arguments);
	va_end(arguments);
	exit(TOOL_FAILED);
}

int tool_usage_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("; see cuatomic --help", format, arguments);
	va_end(arguments);
	return TOOL_USAGE;
}

/* Refuses the abbreviation of several options, and a value of an option that has none. */
static int long_option_error(const char *argument, const struct option *allowed)
{
	const size_t length = strcspn(argument + 2, "=");
	const struct option *first = NULL;

	for (; allowed->name; allowed++) {
		if (strncmp(allowed->name, argument + 2, length) != 0)
			continue;
		if (first)
			return tool_usage_error("option '%.*s' is ambiguous: --%s or --%s",
						(int)length + 2, argument, first->name,
						allowed->name);
		first = allowed;
	}
	if (first && argument[length + 2] == '=')
		return tool_usage_error("option '--%s' has no value", first->name);
	return tool_usage_error("unknown option '%s'", argument);
}

/*
 * Reports the option that getopt_long refused. `returned` is its result with opterr 0 and a leading
 * ':' in the option string.
 */
static int option_error(int returned, const char *argument, const struct option *allowed)
{
	if (returned == ':')
		return tool_usage_error("option '%s' needs a value", argument);
	/* an unknown letter may be inside a cluster such as -qx */
	if (optopt > ' ' && argument[1] != '-')
		return tool_usage_error("unknown option '-%c'", optopt);
	if (!strncmp(argument, "--", 2) && argument[2])
		return long_option_error(argument, allowed);
	return tool_usage_error("unknown option '%s'", argument);
}

static int parse_threads(const char *text, unsigned *threads)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > 1024)
		return tool_usage_error("'%s' is not a number of threads (1 to 1024)", text);
	*threads = (unsigned)n;
	return TOOL_OK;
}

static int parse_group(const char *text, uint32_t *ranks)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > DEMO_RANKS_MAX)
		return tool_usage_error("'%s' is not a number of ranks (1 to %u)", text,
					DEMO_RANKS_MAX);
	*ranks = (uint32_t)n;
	return TOOL_OK;
}

/* Most further options of a command, and their first value. */
#define MORE_OPTIONS 16
#define MORE_FIRST 256

static int parse_backend(const char *text, struct tool_options *o)
{
	o->cpu = !strcmp(text, "cpu") || !strcmp(text, "auto");
	o->backend_given = 1;
	o->cuda = !strcmp(text, "cuda") || !strcmp(text, "auto");
	if (!o->cpu && !o->cuda)
		return tool_usage_error("unknown backend '%s' (cpu, cuda or auto)", text);
	return TOOL_OK;
}

int tool_parse_options(int argc, char **argv, const char *letters, struct tool_options *o,
		       const struct tool_more *more)
{
	static const struct option names[] = {
		{"backend", required_argument, NULL, 'b'},
		{"group", required_argument, NULL, 'g'},
		{"quick", no_argument, NULL, 'q'},
		{"threads", required_argument, NULL, 't'},
	};
	struct option allowed[sizeof(names) / sizeof(names[0]) + MORE_OPTIONS + 1] = {
		{NULL, 0, NULL, 0}};
	size_t n = 0;
	int c, status = TOOL_OK;

	*o = (struct tool_options){.cpu = 1, .cuda = 1};
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		if (strchr(letters, names[k].val))
			allowed[n++] = names[k];
	}
	for (size_t k = 0; more && more->names[k].name && k < MORE_OPTIONS; k++)
		allowed[n++] = more->names[k];
	opterr = 0;
	while (!status && (c = getopt_long(argc, argv, letters, allowed, NULL)) != -1) {
		switch (c) {
		case 'b': status = parse_backend(optarg, o); break;
		case 'g': status = parse_group(optarg, &o->group); break;
		case 'q': o->quick = 1; break;
		case 't': status = parse_threads(optarg, &o->threads); break;
		default:
			status = c >= MORE_FIRST ? more->set(c, optarg, more->data)
						 : option_error(c, argv[optind - 1], allowed);
			break;
		}
	}
	return status;
}

struct cua_context *tool_cpu_context(unsigned threads, struct cua_device_info *info)
{
	struct cua_context *ctx;
	enum cua_status status = cua_context_create(CUA_BACKEND_CPU, 0, &ctx);

	if (!status)
		status = cua_context_set_threads(ctx, threads);
	if (!status)
		status = cua_device_query(CUA_BACKEND_CPU, 0, info);
	if (status)
		tool_die("CPU backend: %s", cua_strerror(status));
	return ctx;
}

int tool_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	tool_error("standard output: %s", strerror(errno));
	return TOOL_FAILED;
}

void *tool_alloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		tool_die("out of memory (%zu bytes asked for)", bytes);
	return p;
}

uint64_t tool_available_memory(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	uint64_t bytes = UINT64_MAX;
	char line[128];

	if (!f)
		return bytes;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			bytes = (uint64_t)kib * 1024;
	}
	fclose(f);
	return bytes;
}

void tool_claim_memory(uint64_t bytes)
{
	char wanted[TOOL_BYTES_TEXT], left[TOOL_BYTES_TEXT];
	uint64_t available = tool_available_memory();

	if (bytes > available)
		tool_die("out of memory (%s more are needed, %s are available)",
			 tool_bytes_text(wanted, bytes), tool_bytes_text(left, available));
}

double tool_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const char *tool_bytes_text(char *buffer, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	int unit = -1;

	while (value >= 1024 && unit + 1 < (int)(sizeof(units) / sizeof(units[0]))) {
		value /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(buffer, TOOL_BYTES_TEXT, "%d byte%s", (int)bytes, bytes == 1 ? "" : "s");
	else
		snprintf(buffer, TOOL_BYTES_TEXT, "%.1f %s", value, units[unit]);
	return buffer;
}

static int tool_help(int argc, char **argv)
{
	if (argc > 1)
		return tool_usage_error("help takes no argument '%s'", argv[1]);
	fputs(help_text, stdout);
	return TOOL_OK;
}

static int is_option(const char *argument, const char *brief, const char *full)
{
	return !strcmp(argument, brief) || !strcmp(argument, full);
}

/*
 * Opens the standard streams that are closed, so that no file gets their numbers. Reads and writes of
 * them still fail.
 */
static void open_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			return;
}

int main(int argc, char **argv)
{
	open_streams();
	if (argc < 2)
		return tool_usage_error("no command given");
	/* also accepted after a command */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (is_option(argv[i], "-h", "--help"))
			return tool_finish(tool_help(1, argv));
		if (is_option(argv[i], "-V", "--version")) {
			printf("cuatomic %s\n", cua_version());
			return tool_finish(TOOL_OK);
		}
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(argv[1], commands[i].name))
			return tool_finish(commands[i].run(argc - 1, argv + 1));
	}
	if (argv[1][0] == '-')
		return tool_usage_error("unknown option '%s'", argv[1]);
	return tool_usage_error("unknown command '%s'", argv[1]);
}
