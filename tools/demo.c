/* SPDX-License-Identifier: MIT */
/* `cuatomic demo`: options, the input file, the devices and the summary. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
	if (room <= in->room)
		return;
	if (room > (size_t)1 << 20)
		tool_claim_memory(room - in->size);
	in->data = realloc(in->data, room);
	if (!in->data)
		tool_die("%s: out of memory", in->name);
	in->room = room;
}

/* Appends a file's content. Returns 0, or an errno. */
static int read_file(struct input *in, const char *path)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	struct stat st;
	ssize_t n = 1;
	int error = 0;

	if (fd < 0)
		return errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size < SIZE_MAX / 2)
		make_room(in, in->size + (size_t)st.st_size + 1);
	while (n && !error) {
		if (in->size == in->room)
			make_room(in, in->room < 65536 ? 65536 : in->room * 2);
		n = read(fd, in->data + in->size, in->room - in->size);
		if (n > 0)
			in->size += (size_t)n;
		else if (n < 0 && errno != EINTR)
			error = errno;
	}
	if (fd != STDIN_FILENO)
		close(fd);
	return error;
}

/* Appends all regular files of the licence folder in the order of their names. */
static int read_licences(struct input *in)
{
	struct dirent **entries;
	int n = scandir(CUATOMIC_LICENSES, &entries, NULL, alphasort), n_read = 0;

	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", CUATOMIC_LICENSES, entries[i]->d_name);
		/* a symbolic link would add the same text twice */
		if (!lstat(path, &st) && S_ISREG(st.st_mode) && !read_file(in, path))
			n_read++;
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	snprintf(in->name, sizeof(in->name), "%s (%d files)", CUATOMIC_LICENSES, n_read);
	return n_read > 0;
}

/* Reads the README of cuatomic from a folder above the program: a build tree has it there. */
static int read_near_program(struct input *in)
{
	static const char title[] = "# cuatomic\n";
	char *slash;
	ssize_t n = readlink("/proc/self/exe", in->name, PATH_MAX - sizeof("/README.md"));

	in->name[n < 0 ? 0 : n] = 0;
	for (int up = 0; up < 6 && (slash = strrchr(in->name, '/')); up++) {
		strcpy(slash, "/README.md");
		in->size = 0;
		if (!read_file(in, in->name) && in->size >= strlen(title) &&
		    !memcmp(in->data, title, strlen(title)))
			return 1;
		*slash = 0;
	}
	return 0;
}

static int read_installed(struct input *in)
{
	in->size = 0;
	snprintf(in->name, sizeof(in->name), "%s", CUATOMIC_DOCDIR "/README.md");
	return !read_file(in, in->name);
}

static int read_input(struct input *in, const char *path)
{
	int error;

	if (path) {
		snprintf(in->name, sizeof(in->name), "%s",
			 strcmp(path, "-") ? path : "standard input");
		error = read_file(in, path);
		if (error)
			tool_error("%s: %s", in->name, strerror(error));
		return error ? TOOL_FAILED : TOOL_OK;
	}
	if (read_licences(in) || read_near_program(in) || read_installed(in))
		return TOOL_OK;
	tool_error("there is no default file here; name one: cuatomic demo FILE");
	return TOOL_FAILED;
}

/* ---- the command ---- */

/* The reason why no context for the first GPU could be created. */
static const char *gpu_problem(enum cua_status status)
{
	const char *problem = cua_device_problem(CUA_BACKEND_CUDA, 0);

	return *problem ? problem : cua_strerror(status);
}

/* Creates the contexts. A missing GPU is an error only with --backend=cuda. */
static int open_devices(struct demo *d, const struct tool_options *o, enum cua_status *gpu)
{
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;

	if (o->cpu)
		d->ctx[DEMO_CPU] = tool_cpu_context(o->threads, &info);
	if (o->cuda)
		*gpu = cua_context_create(CUA_BACKEND_CUDA, 0, &d->ctx[DEMO_GPU]);
	if (*gpu && !o->cpu) {
		tool_error("CUDA backend: %s", gpu_problem(*gpu));
		return TOOL_FAILED;
	}
	d->first = d->ctx[DEMO_CPU] ? DEMO_CPU : DEMO_GPU;
	return TOOL_OK;
}

static void print_devices(const struct demo *d, const struct tool_options *o, enum cua_status gpu)
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
	struct tool_options o;
	struct input in = {.data = NULL};
	struct demo d = {.first = DEMO_CPU};
	enum cua_status gpu = CUA_OK;
	char size[TOOL_BYTES_TEXT];
	int status = tool_parse_options(argc, argv, ":b:t:", &o);

	if (!status && argc - optind > 1)
		return tool_usage_error("one FILE at a time, not also '%s'", argv[optind + 1]);
	if (!status)
		status = read_input(&in, argv[optind]);
	if (!status)
		status = open_devices(&d, &o, &gpu);
	if (!status) {
		d.data = in.data;
		d.size = in.size;
		tool_one_line(in.name);
		printf("file: %s, %s\n", in.name, tool_bytes_text(size, in.size));
		print_devices(&d, &o, gpu);
		putchar('\n');
		demo_print_columns("part", "result", "CPU time", "GPU time", "verified");
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
