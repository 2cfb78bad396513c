/* SPDX-License-Identifier: MIT */
/*
 * The files of `cuatomic bench`. A temporary file beside the target is renamed when it is complete,
 * so a reader sees the old file or the new file. A target that is no regular file, for example
 * a pipe or /dev/stdout, is written directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

/* Temporary files: at most a JSON file, a CSV file and a plot. exit() removes them. */
static char *unfinished[3];
static pid_t owner;

static void remove_unfinished(void)
{
	/* a child has a copy of the list */
	if (getpid() != owner)
		return;
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++) {
		if (unfinished[i])
			unlink(unfinished[i]);
	}
}

static void remember(char *was, char *is)
{
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++) {
		if (unfinished[i] == was) {
			unfinished[i] = is;
			break;
		}
	}
	if (!owner) {
		owner = getpid();
		atexit(remove_unfinished);
	}
}

static int file_error(const struct bench_file *f)
{
	/* the output was dropped after a signal */
	if (bench_caught_signal() && f->stream && !f->temporary)
		return TOOL_FAILED;
	tool_error("%s: %s", f->path, strerror(errno));
	return TOOL_FAILED;
}

/* Opens the temporary file, with the permissions of a new file or of the file that it replaces. */
static int open_temporary(struct bench_file *f, const struct stat *old)
{
	const size_t room = strlen(f->target) + sizeof(".XXXXXX");
	const mode_t mask = umask(0);
	int fd;

	umask(mask);
	f->temporary = tool_alloc(room);
	snprintf(f->temporary, room, "%s.XXXXXX", f->target);
	fd = mkstemp(f->temporary);
	if (fd < 0) {
		file_error(f);
		free(f->temporary);
		f->temporary = NULL;
		return TOOL_FAILED;
	}
	remember(NULL, f->temporary);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	f->stream = fdopen(fd, "w");
	if (!f->stream || fchmod(fd, old ? old->st_mode & 0777 : 0666 & ~mask))
		return file_error(f);
	return TOOL_OK;
}

/* Sets the target of a new file. The path is absolute if its folder exists. */
static void set_new_target(struct bench_file *f)
{
	const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
	const size_t length = (size_t)(name - f->path);
	char *folder = tool_alloc(length + 2), *absolute;
	size_t room;

	memcpy(folder, slash ? f->path : ".", slash ? length : 1);
	folder[slash ? length : 1] = '\0';
	absolute = realpath(folder, NULL);
	if (!absolute)
		name = f->path;
	room = (absolute ? strlen(absolute) : 0) + strlen(name) + 2;
	f->target = tool_alloc(room);
	snprintf(f->target, room, "%s%s%s", absolute ? absolute : "", absolute ? "/" : "", name);
	free(absolute);
	free(folder);
}

/* Whether the target exists, and its identity. */
static int identify(const struct bench_file *f, struct stat *s)
{
	return !(f->temporary ? stat(f->target, s) : fstat(fileno(f->stream), s));
}

int bench_file_is_same(const struct bench_file *a, const struct bench_file *b)
{
	struct stat x, y;

	if (!a->stream || !b->stream)
		return 0;
	if (a->temporary && b->temporary)
		return !strcmp(a->target, b->target);
	return identify(a, &x) && identify(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int bench_file_open(struct bench_file *f)
{
	struct stat old;

	if (!f->path)
		return TOOL_OK;
	if (!strcmp(f->path, "-")) {
		f->stream = stdout;
		return TOOL_OK;
	}
	if (stat(f->path, &old)) {
		if (errno != ENOENT || !*f->path)
			return file_error(f);
		set_new_target(f);
		return open_temporary(f, NULL);
	}
	if (S_ISREG(old.st_mode)) {
		/* the target of a symbolic link is replaced, not the link */
		f->target = realpath(f->path, NULL);
		if (!f->target || access(f->target, W_OK))
			return file_error(f);
		return open_temporary(f, &old);
	}
	f->stream = fopen(f->path, "we");
	if (!f->stream)
		return file_error(f);
	bench_watch_output(fileno(f->stream));
	return TOOL_OK;
}

void bench_file_discard(struct bench_file *f)
{
	if (f->stream && f->stream != stdout)
		fclose(f->stream);
	if (f->temporary) {
		unlink(f->temporary);
		remember(f->temporary, NULL);
	}
	free(f->temporary);
	free(f->target);
	f->temporary = f->target = NULL;
	f->stream = NULL;
}

int bench_file_finish(struct bench_file *f)
{
	int status = TOOL_OK;

	if (!f->stream || f->stream == stdout)
		return TOOL_OK;
	if (fflush(f->stream) || ferror(f->stream) || (f->temporary && fsync(fileno(f->stream))))
		status = file_error(f);
	if (fclose(f->stream) && !status)
		status = file_error(f);
	f->stream = NULL;
	if (f->temporary && !status && rename(f->temporary, f->target))
		status = file_error(f);
	if (f->temporary && !status) {
		remember(f->temporary, NULL);
		free(f->temporary);
		f->temporary = NULL;
	}
	bench_file_discard(f);
	return status;
}
