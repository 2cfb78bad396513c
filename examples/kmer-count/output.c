/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmer-count.h"

/* ---- temporary files, which go whatever happens ---- */

#define OUTPUTS_MAX 2

static char *volatile temporaries[OUTPUTS_MAX];

static void remove_temporaries(void)
{
	for (int i = 0; i < OUTPUTS_MAX; i++) {
		if (temporaries[i])
			unlink(temporaries[i]);
	}
}

static void on_signal(int number)
{
	/* the handler is reset: this ends the process, with the status that the shell expects */
	remove_temporaries();
	raise(number);
}

static void remember_temporary(char *path)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
	static int n;

	if (!n) {
		atexit(remove_temporaries);
		for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
			struct sigaction action;

			/* what is ignored, as under nohup, stays so */
			if (sigaction(signals[i], NULL, &action) || action.sa_handler == SIG_IGN)
				continue;
			memset(&action, 0, sizeof(action));
			action.sa_handler = on_signal;
			action.sa_flags = (int)SA_RESETHAND;
			sigaction(signals[i], &action, NULL);
		}
	}
	temporaries[n++] = path;
}

static void forget_temporary(const char *path)
{
	for (int i = 0; i < OUTPUTS_MAX; i++) {
		if (temporaries[i] == path)
			temporaries[i] = NULL;
	}
}

/* ---- outputs ---- */

/* Bytes of the folder before the name, with its slash. */
static size_t folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Of memory that malloc gave: a name in the folder of this path. */
static char *beside(const char *path, const char *name)
{
	size_t folder = name[0] == '/' ? 0 : folder_of(path);
	char *p = (char *)must_alloc(folder + strlen(name) + 1, 1);

	memcpy(p, path, folder);
	strcpy(p + folder, name);
	return p;
}

/* The target of links, so that it is replaced and not the link; of what is not there yet, the name in its folder. */
static char *resolved(const char *path)
{
	char *at = beside(path, path + folder_of(path)), *target, *next, *folder, *name, link[PATH_MAX];
	size_t room;
	ssize_t n;

	/* a link to nothing is followed; realpath ends a loop */
	while (!(target = realpath(at, NULL)) && errno == ENOENT &&
	       (n = readlink(at, link, sizeof(link) - 1)) >= 0) {
		link[n] = 0;
		next = beside(at, link);
		free(at);
		at = next;
	}
	if (!target && errno == ENOENT) {
		name = at + folder_of(at);
		next = beside(at, "./");
		folder = realpath(next, NULL);
		free(next);
		if (folder) {
			room = strlen(folder) + strlen(name) + 2;
			target = (char *)must_alloc(room, 1);
			snprintf(target, room, "%s/%s", folder, name);
		}
		free(folder);
	}
	if (!target)
		die("%s: %s", path, strerror(errno));
	free(at);
	return target;
}

void output_open(struct output *o, const char *path)
{
	struct stat st;
	mode_t mode;
	int fd, exists;

	memset(o, 0, sizeof(*o));
	o->path = path;
	if (!path)
		return;
	if (!strcmp(path, "-")) {
		o->path = "standard output";
		o->f = stdout;
		return;
	}
	exists = !stat(path, &st);
	if (exists && !S_ISREG(st.st_mode)) {
		/* a device or a pipe stays what it is */
		o->f = fopen(path, "we");
		if (!o->f)
			die("%s: %s", path, strerror(errno));
		return;
	}
	o->target = resolved(path);
	/* the name of the output may be as long as names can be */
	o->temporary = beside(o->target, "kmer-count.XXXXXX");
	fd = mkstemp(o->temporary);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	remember_temporary(o->temporary);
	mode = umask(0);
	umask(mode);
	o->f = fchmod(fd, exists ? st.st_mode & 0777 : 0666 & ~mode) ? NULL : fdopen(fd, "w");
	if (!o->f)
		die("%s: %s", path, strerror(errno));
}

int output_same(const struct output *a, const struct output *b)
{
	return a->target && b->target && !strcmp(a->target, b->target);
}

void output_finish(struct output *outputs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct output *o = &outputs[i];
		int failed;

		if (!o->f)
			continue;
		failed = fflush(o->f) || ferror(o->f);
		if (!failed && o->temporary)
			failed = fsync(fileno(o->f)) != 0;
		if ((!failed && o->f != stdout && fclose(o->f)) || failed)
			die("%s: %s", o->path, strerror(errno));
	}
	for (size_t i = 0; i < n; i++) {
		struct output *o = &outputs[i];

		if (!o->temporary)
			continue;
		if (rename(o->temporary, o->target))
			die("%s: %s", o->path, strerror(errno));
		forget_temporary(o->temporary);
		free(o->temporary);
		free(o->target);
	}
}

/* ---- what is written ---- */

void write_histogram(FILE *f, const uint64_t *counts, uint64_t n, uint64_t high)
{
	uint64_t *bins, most = 0;

	for (uint64_t i = 0; i < n; i++)
		most = counts[i] > most ? counts[i] : most;
	most = most > high ? high + 1 : most;
	bins = (uint64_t *)must_alloc(most + 1, sizeof(*bins));
	memset(bins, 0, (size_t)(most + 1) * sizeof(*bins));
	for (uint64_t i = 0; i < n; i++)
		bins[counts[i] > most ? most : counts[i]]++;
	for (uint64_t count = 1; count <= most; count++) {
		if (bins[count])
			fprintf(f, "%" PRIu64 " %" PRIu64 "\n", count, bins[count]);
	}
	free(bins);
}

void write_dump(FILE *f, unsigned k, const uint64_t *keys, const uint64_t *counts, uint64_t n)
{
	char word[K_MAX + 1];

	word[k] = 0;
	for (uint64_t i = 0; i < n && !ferror(f); i++) {
		for (unsigned j = 0; j < k; j++)
			word[j] = "ACGT"[keys[i] >> 2 * (k - 1 - j) & 3];
		fprintf(f, "%s %" PRIu64 "\n", word, counts[i]);
	}
}
