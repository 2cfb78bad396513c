/* SPDX-License-Identifier: MIT */
/* `cuatomic demo`: options, the input file, the devices, the table of results. */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"

#ifndef CUATOMIC_LICENSES
#define CUATOMIC_LICENSES "/usr/share/common-licenses"
#endif

/*
 * Bytes of a piece: the arrays and tables of a file of any size need memory for a piece only.
 * Results are added up, so a run of bytes in two pieces counts twice, and the dot product lacks the
 * product of the last byte of a piece and the first of the next.
 */
#define DEMO_PIECE ((size_t)1 << 22)

/* ---- the input file ---- */

struct input {
	uint8_t *data;
	size_t size, room;
	char name[PATH_MAX + 64];
};

/* Appends a file. Returns 0, or an errno. */
static int read_file(struct input *in, const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	size_t n;
	int error;

	if (!f)
		return errno;
	do {
		if (in->size == in->room) {
			in->room += in->room / 4 + 65536;
			tool_claim_memory(in->room - in->size);
			in->data = realloc(in->data, in->room);
			if (!in->data)
				tool_die("%s: out of memory", in->name);
		}
		n = fread(in->data + in->size, 1, in->room - in->size, f);
		in->size += n;
	} while (n > 0);
	error = ferror(f) ? errno : 0;
	if (f != stdin)
		fclose(f);
	return error;
}

/* Reads all licence texts in the order of their names. */
static int read_licences(struct input *in)
{
	glob_t paths = {.gl_pathc = 0};
	struct stat st;
	int n = 0;

	glob(CUATOMIC_LICENSES "/*", 0, NULL, &paths);
	for (size_t k = 0; k < paths.gl_pathc; k++) {
		/* a symbolic link would add the same text twice */
		if (!lstat(paths.gl_pathv[k], &st) && S_ISREG(st.st_mode))
			n += !read_file(in, paths.gl_pathv[k]);
	}
	globfree(&paths);
	snprintf(in->name, sizeof(in->name), "%s (%d files)", CUATOMIC_LICENSES, n);
	return n > 0;
}

/* Reads the README of cuatomic: from a folder above the program in a build tree, or installed. */
static int read_readme(struct input *in)
{
	const ssize_t n = readlink("/proc/self/exe", in->name, PATH_MAX);
	char *slash;

	in->name[n < 0 ? 0 : n] = 0;
	for (int up = 0; up < 6 && (slash = strrchr(in->name, '/')); up++) {
		strcpy(slash, "/README.md");
		in->size = 0;
		if (!read_file(in, in->name) && in->size > 10 &&
		    !memcmp(in->data, "# cuatomic\n", 11))
			return 1;
		*slash = 0;
	}
	in->size = 0;
	strcpy(in->name, CUATOMIC_DOCDIR "/README.md");
	return !read_file(in, in->name);
}

static void read_input(struct input *in, const char *path)
{
	int error = 0;

	if (!path && !read_licences(in) && !read_readme(in))
		tool_die("there is no default file here; name one: cuatomic demo FILE");
	if (path) {
		snprintf(in->name, sizeof(in->name), "%s",
			 strcmp(path, "-") ? path : "standard input");
		error = read_file(in, path);
	}
	tool_one_line(in->name);
	if (error)
		tool_die("%s: %s", in->name, strerror(error));
}

/* The length of the next piece. It ends after white space, unless a word is longer than a piece. */
static size_t piece_length(const uint8_t *data, size_t size)
{
	const size_t most = size < DEMO_PIECE ? size : DEMO_PIECE;
	size_t n = most;

	while (most < size && n > 0 && !isspace(data[n - 1]))
		n--;
	return n > 0 ? n : most;
}

/* ---- the devices ---- */

static void print_file(const struct input *in)
{
	char size[TOOL_BYTES_TEXT];

	printf("file: %s, %s\n", in->name, tool_bytes_text(size, in->size));
}

/* Creates the contexts, and prints the lines above the table. A GPU may be missing beside a CPU. */
static void open_devices(struct cua_context **contexts, const struct tool_options *o,
			 const struct input *in)
{
	struct cua_device_info cpu = CUA_DEVICE_INFO_INIT, gpu = CUA_DEVICE_INFO_INIT;
	const char *problem = cua_device_problem(CUA_BACKEND_CUDA, 0);
	enum cua_status status = CUA_OK;
	unsigned threads;

	if (o->cpu)
		contexts[DEMO_CPU] = tool_cpu_context(o->threads, &cpu);
	if (o->cuda)
		status = cua_context_create(CUA_BACKEND_CUDA, 0, &contexts[DEMO_GPU]);
	if (o->cuda && !status)
		status = cua_device_query(CUA_BACKEND_CUDA, 0, &gpu);
	if (!*problem)
		problem = cua_strerror(status);
	if (status && !o->cpu)
		tool_die("CUDA backend: %s", problem);
	print_file(in);
	threads = cua_context_threads(contexts[DEMO_CPU]);
	if (o->cpu)
		printf("CPU:  %s, %u thread%s\n", cpu.name, threads, threads == 1 ? "" : "s");
	else
		printf("CPU:  not used\n");
	if (!o->cuda)
		printf("GPU:  not used\n");
	else if (status)
		printf("GPU:  none (%s)\n", problem);
	else
		printf("GPU:  %s, compute capability %d.%d\n", gpu.name, gpu.compute_major,
		       gpu.compute_minor);
	fflush(stdout);
}

/* ---- the table of results ---- */

/*
 * The name of a column is NULL if it was not run: then it has dashes, or with `only_used` is absent.
 * Returns the number of wrong rows.
 */
static int print_table(const struct demo_part *parts, const char *const names[DEMO_COLUMNS],
		       int only_used, const char *where)
{
	static const char *const heads[DEMO_COLUMNS] = {"CPU time", "GPU time"};
	const struct demo_part *part;
	char text[64];
	int wrong = 0, rows;

	printf("\n%-20s %-29s", "part", "result");
	for (int i = 0; i < DEMO_COLUMNS; i++) {
		if (names[i] || !only_used)
			printf(" %9s", names[i] ? names[i] : heads[i]);
	}
	printf("  verified\n");
	for (part = parts; part->name; part++) {
		snprintf(text, sizeof(text), "%.*f%s", part->decimals,
			 part->result[names[0] ? 0 : 1], part->unit);
		printf("%-20s %-29s", part->name, text);
		for (int i = 0; i < DEMO_COLUMNS; i++) {
			const double ms = part->seconds[i] * 1e3;

			snprintf(text, sizeof(text), ms < 100 ? "%.3f ms" : "%.0f ms", ms);
			if (names[i] || !only_used)
				printf(" %9s", names[i] ? text : "-");
		}
		printf("  %s\n", part->wrong ? "NO" : "yes");
		wrong += part->wrong;
	}
	rows = (int)(part - parts);
	if (wrong)
		printf("\n%d of %d results WRONG on %s\n", wrong, rows, where);
	else
		printf("\n%d results verified on %s\n", rows, where);
	return wrong;
}

/* Runs the parts on the devices. Returns the number of wrong rows. */
static int demo_devices(const struct tool_options *o, const struct input *in)
{
	struct cua_context *contexts[DEMO_COLUMNS] = {NULL};
	const char *names[DEMO_COLUMNS];
	size_t at = 0, n;
	int wrong;

	open_devices(contexts, o, in);
	/* an empty file is an empty piece */
	do {
		n = piece_length(in->data + at, in->size - at);
		demo_run(contexts, in->data + at, n);
		at += n;
	} while (at < in->size);
	names[DEMO_CPU] = contexts[DEMO_CPU] ? "CPU time" : NULL;
	names[DEMO_GPU] = contexts[DEMO_GPU] ? "GPU time" : NULL;
	wrong = print_table(demo_parts, names, 0,
			    !contexts[DEMO_GPU]   ? "the CPU"
			    : !contexts[DEMO_CPU] ? "the GPU"
						  : "the CPU and the GPU");
	cua_context_destroy(contexts[DEMO_CPU]);
	cua_context_destroy(contexts[DEMO_GPU]);
	return wrong;
}

/* Runs the parts of groups, on a single rank and on all ranks. */
static int demo_ranks(const struct tool_options *o, const struct input *in)
{
	struct demo_group *g = demo_group_open(o);
	const char *names[DEMO_COLUMNS] = {demo_group_name(g, 0), demo_group_name(g, 1)};
	char where[64];
	size_t at = 0, n;
	int wrong;

	print_file(in);
	demo_group_print(g, o);
	do {
		n = piece_length(in->data + at, in->size - at);
		demo_group_run(g, in->data + at, n);
		at += n;
	} while (at < in->size);
	if (o->group == 1)
		names[1] = NULL;
	snprintf(where, sizeof(where), "%s%s%s", names[0], names[1] ? " and on " : "",
		 names[1] ? names[1] : "");
	wrong = print_table(demo_group_parts, names, 1, where);
	demo_group_close(g);
	return wrong;
}

int tool_demo(int argc, char **argv)
{
	struct tool_options o;
	struct input in = {.data = NULL};
	int wrong, status = tool_parse_options(argc, argv, ":b:g:t:", &o, NULL);

	if (status)
		return status;
	if (argc - optind > 1)
		return tool_usage_error("one FILE at a time, not also '%s'", argv[optind + 1]);
	read_input(&in, argv[optind]);
	wrong = o.group ? demo_ranks(&o, &in) : demo_devices(&o, &in);
	free(in.data);
	return wrong ? TOOL_FAILED : TOOL_OK;
}
