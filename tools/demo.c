/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic demo`: options, the input file, the devices and the table. demo_bytes.c and
 * demo_words.c run the library.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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
#ifndef CUATOMIC_DOCDIR
#define CUATOMIC_DOCDIR "/usr/local/share/doc/cuatomic"
#endif

/* ---- the input file ---- */

struct input {
	uint8_t *data;
	size_t size, room;
	char name[PATH_MAX + 64];
};

static void make_room(struct input *in, size_t room)
{
	uint8_t *more;

	if (room <= in->room)
		return;
	if (room > (size_t)1 << 20)
		tool_claim_memory(room - in->size);
	more = realloc(in->data, room);
	if (!more)
		tool_die("%s: out of memory", in->name);
	in->data = more;
	in->room = room;
}

/* Appends a file's content. Returns 0, or an errno. */
static int read_file(struct input *in, const char *path)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	struct stat st;
	int error = 0;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st))
		error = errno;
	else if (S_ISDIR(st.st_mode))
		error = EISDIR;
	else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < SIZE_MAX / 2)
		make_room(in, in->size + (size_t)st.st_size + 1);
	while (!error) {
		ssize_t n;

		if (in->size == in->room)
			make_room(in, in->room < 65536 ? 65536 : in->room * 2);
		n = read(fd, in->data + in->size, in->room - in->size);
		if (n > 0)
			in->size += (size_t)n;
		else if (n == 0)
			break;
		else if (errno != EINTR)
			error = errno;
	}
	if (fd != STDIN_FILENO)
		close(fd);
	return error;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends all regular files of the folder in the order of their names. Returns their number. */
static unsigned read_folder(struct input *in, const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	char **names = NULL;
	size_t n = 0;
	unsigned n_read = 0;

	while (folder && (entry = readdir(folder)) != NULL) {
		char **more = realloc(names, (n + 1) * sizeof(*names));
		size_t room = strlen(path) + strlen(entry->d_name) + 2;

		if (!more)
			tool_die("out of memory");
		names = more;
		names[n] = tool_alloc(room);
		snprintf(names[n++], room, "%s/%s", path, entry->d_name);
	}
	if (folder)
		closedir(folder);
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		struct stat st;

		/* a symbolic link would add the same text twice */
		if (lstat(names[i], &st) == 0 && S_ISREG(st.st_mode) && !read_file(in, names[i]))
			n_read++;
		free(names[i]);
	}
	free(names);
	return n_read;
}

/* Reads the README of cuatomic from a folder above the program: a build tree has it there. */
static int read_near_program(struct input *in)
{
	static const char title[] = "# cuatomic\n";
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("/README.md"));

	if (n <= 0)
		return 0;
	path[n] = 0;
	for (int up = 0; up < 6; up++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return 0;
		strcpy(slash, "/README.md");
		in->size = 0;
		if (!read_file(in, path) && in->size >= sizeof(title) - 1 &&
		    !memcmp(in->data, title, sizeof(title) - 1)) {
			snprintf(in->name, sizeof(in->name), "%s", path);
			return 1;
		}
		*slash = 0;
	}
	return 0;
}

static int read_default(struct input *in)
{
	static const char installed[] = CUATOMIC_DOCDIR "/README.md";
	unsigned n = read_folder(in, CUATOMIC_LICENSES);

	if (n) {
		snprintf(in->name, sizeof(in->name), "%s (%u files)", CUATOMIC_LICENSES, n);
		return TOOL_OK;
	}
	if (read_near_program(in))
		return TOOL_OK;
	in->size = 0;
	if (!read_file(in, installed)) {
		snprintf(in->name, sizeof(in->name), "%s", installed);
		return TOOL_OK;
	}
	tool_error("there is no default file here; name one: cuatomic demo FILE");
	return TOOL_FAILED;
}

static int read_input(struct input *in, const char *path)
{
	int error;

	if (!path)
		return read_default(in);
	snprintf(in->name, sizeof(in->name), "%s", strcmp(path, "-") ? path : "standard input");
	error = read_file(in, path);
	if (error) {
		tool_error("%s: %s", in->name, strerror(error));
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

/* ---- the table ---- */

static const char *const device_names[DEMO_DEVICES] = {"CPU", "GPU"};

const char *demo_device_name(int device)
{
	return device_names[device];
}

void demo_failed(const struct demo *d, int device, const char *part, enum cua_status status)
{
	int cuda = cua_context_cuda_error(d->ctx[device]);

	if (status == CUA_ERROR_CUDA)
		tool_die("%s, %s: %s (CUDA error %d)", part, device_names[device],
			 cua_strerror(status), cuda);
	tool_die("%s, %s: %s", part, device_names[device], cua_strerror(status));
}

#ifdef CUATOMIC_DEMO_PLANT
/*
 * In the test build, 1 if the environment variable DEMO_PLANT names this check, so that it must
 * fail. Otherwise 0.
 */
static uint64_t plant(const char *what)
{
	const char *name = getenv("DEMO_PLANT");

	return name && !strcmp(name, what);
}
#else
#define plant(what) 0
#endif

static void mark_wrong(struct demo_row *row, int device, const char *what, const char *got,
		       const char *expected)
{
	if (!row->wrong)
		tool_error("%s, %s: %s is %s, the reference has %s", row->part,
			   device_names[device], what, got, expected);
	row->wrong = 1;
}

int demo_expect(struct demo_row *row, int device, const char *what, uint64_t got, uint64_t expected)
{
	char got_text[24], expected_text[24];

	expected += plant(what);
	if (got == expected)
		return 1;
	snprintf(got_text, sizeof(got_text), "%llu", (unsigned long long)got);
	snprintf(expected_text, sizeof(expected_text), "%llu", (unsigned long long)expected);
	mark_wrong(row, device, what, got_text, expected_text);
	return 0;
}

int demo_expect_f64(struct demo_row *row, int device, const char *what, double got,
		    uint64_t expected)
{
	char got_text[40], expected_text[24];

	expected += plant(what);
	if (got == (double)expected)
		return 1;
	snprintf(got_text, sizeof(got_text), "%.17g", got);
	snprintf(expected_text, sizeof(expected_text), "%llu", (unsigned long long)expected);
	mark_wrong(row, device, what, got_text, expected_text);
	return 0;
}

static const char *time_text(char text[16], double seconds)
{
	if (seconds < 1e-3)
		snprintf(text, 16, "%.1f us", seconds * 1e6);
	else if (seconds < 1)
		snprintf(text, 16, "%.2f ms", seconds * 1e3);
	else
		snprintf(text, 16, "%.2f s", seconds);
	return text;
}

static void print_columns(const char *part, const char *result, const char *cpu, const char *gpu,
			  const char *verified)
{
	printf("%-20s %-*s %9s %9s  %s\n", part, DEMO_RESULT_WIDTH, result, cpu, gpu, verified);
	fflush(stdout);
}

void demo_print_row(struct demo *d, const struct demo_row *row)
{
	char text[DEMO_DEVICES][16];

	for (int device = 0; device < DEMO_DEVICES; device++) {
		if (d->ctx[device])
			time_text(text[device], row->seconds[device]);
		else
			strcpy(text[device], "-");
	}
	d->n_rows++;
	d->n_wrong += row->wrong;
	print_columns(row->part, row->result, text[DEMO_CPU], text[DEMO_GPU],
		      row->wrong ? "NO" : "yes");
}

/* ---- the command ---- */

struct options {
	int cpu, cuda;   /* the backends to run */
	int cuda_needed; /* --backend=cuda: fail without a GPU */
	unsigned threads;
	const char *path;
};

static int parse_backend(const char *text, struct options *o)
{
	o->cpu = !strcmp(text, "cpu") || !strcmp(text, "auto");
	o->cuda = !strcmp(text, "cuda") || !strcmp(text, "auto");
	o->cuda_needed = !strcmp(text, "cuda");
	if (!o->cpu && !o->cuda)
		return tool_usage_error("unknown backend '%s' (cpu, cuda or auto)", text);
	return TOOL_OK;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{"backend", required_argument, NULL, 'b'},
		{"threads", required_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};
	int c, status = TOOL_OK;

	opterr = 0;
	while (status == TOOL_OK && (c = getopt_long(argc, argv, ":b:t:", names, NULL)) != -1) {
		switch (c) {
		case 'b': status = parse_backend(optarg, o); break;
		case 't': status = tool_parse_threads(optarg, &o->threads); break;
		default: status = tool_option_error(c, argv[optind - 1]); break;
		}
	}
	if (status)
		return status;
	if (argc - optind > 1)
		return tool_usage_error("one FILE at a time, not also '%s'", argv[optind + 1]);
	if (optind < argc)
		o->path = argv[optind];
	return TOOL_OK;
}

static enum cua_status open_device(struct demo *d, int device, const struct options *o)
{
	enum cua_backend backend = device == DEMO_CPU ? CUA_BACKEND_CPU : CUA_BACKEND_CUDA;
	enum cua_status status = cua_context_create(backend, 0, &d->ctx[device]);

	if (status) {
		d->ctx[device] = NULL;
		return status;
	}
	return device == DEMO_CPU ? cua_context_set_threads(d->ctx[device], o->threads) : CUA_OK;
}

/* The reason why no context for the first GPU could be created. */
static const char *gpu_problem(enum cua_status status)
{
	const char *problem = cua_device_problem(CUA_BACKEND_CUDA, 0);

	return *problem ? problem : cua_strerror(status);
}

/* Creates the contexts. A missing GPU is an error only with --backend=cuda. */
static int open_devices(struct demo *d, const struct options *o, enum cua_status *gpu)
{
	enum cua_status status;

	*gpu = CUA_OK;
	if (o->cpu) {
		status = open_device(d, DEMO_CPU, o);
		if (status) {
			tool_error("CPU backend: %s", cua_strerror(status));
			return TOOL_FAILED;
		}
	}
	if (o->cuda) {
		*gpu = open_device(d, DEMO_GPU, o);
		if (*gpu && o->cuda_needed) {
			tool_error("CUDA backend: %s", gpu_problem(*gpu));
			return TOOL_FAILED;
		}
	}
	d->first = d->ctx[DEMO_CPU] ? DEMO_CPU : DEMO_GPU;
	return TOOL_OK;
}

static void print_devices(const struct demo *d, const struct options *o, enum cua_status gpu)
{
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;

	if (!d->ctx[DEMO_CPU])
		printf("CPU:  not used\n");
	else if (cua_device_query(CUA_BACKEND_CPU, 0, &info) == CUA_OK)
		printf("CPU:  %s, %u thread%s\n", info.name, cua_context_threads(d->ctx[DEMO_CPU]),
		       cua_context_threads(d->ctx[DEMO_CPU]) == 1 ? "" : "s");
	if (!o->cuda)
		printf("GPU:  not used\n");
	else if (!d->ctx[DEMO_GPU])
		printf("GPU:  none (%s)\n", gpu_problem(gpu));
	else if (cua_device_query(CUA_BACKEND_CUDA, 0, &info) == CUA_OK)
		printf("GPU:  %s, compute capability %d.%d\n", info.name, info.compute_major,
		       info.compute_minor);
}

static void print_summary(const struct demo *d)
{
	const char *where = !d->ctx[DEMO_GPU]   ? "the CPU"
			    : !d->ctx[DEMO_CPU] ? "the GPU"
						: "the CPU and the GPU";

	if (d->n_wrong)
		printf("\n%d of %d results WRONG on %s\n", d->n_wrong, d->n_rows, where);
	else
		printf("\n%d results verified on %s\n", d->n_rows, where);
}

int tool_demo(int argc, char **argv)
{
	struct options o = {.cpu = 1, .cuda = 1};
	struct input in = {.data = NULL};
	struct demo d = {.first = DEMO_CPU};
	enum cua_status gpu;
	char size[TOOL_BYTES_TEXT];
	int status = parse(argc, argv, &o);

	if (!status)
		status = read_input(&in, o.path);
	if (!status)
		status = open_devices(&d, &o, &gpu);
	if (!status) {
		d.data = in.data;
		d.size = in.size;
		tool_one_line(in.name);
		printf("file: %s, %s\n", in.name, tool_bytes_text(size, in.size));
		print_devices(&d, &o, gpu);
		putchar('\n');
		print_columns("part", "result", "CPU time", "GPU time", "verified");
		demo_bytes(&d);
		demo_words(&d);
		print_summary(&d);
		status = d.n_wrong ? TOOL_FAILED : TOOL_OK;
	}
	for (int device = 0; device < DEMO_DEVICES; device++)
		cua_context_destroy(d.ctx[device]);
	free(in.data);
	return status;
}
