/* SPDX-License-Identifier: MIT */
/* Paths of files that a fuzz target writes again and again: in TMPDIR, else in memory. */
#ifndef CUATOMIC_TESTS_SCRATCH_H
#define CUATOMIC_TESTS_SCRATCH_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

static char scratch_folder[1024];

static void scratch_remove(void)
{
	char path[1100];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", scratch_folder, i);
		unlink(path);
	}
	rmdir(scratch_folder);
}

/* The path of file number 0 or 1. */
static const char *scratch_path(int number)
{
	static char paths[2][1100];

	if (!scratch_folder[0]) {
		const char *where = getenv("TMPDIR");

		if (!where || !*where)
			where = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
		snprintf(scratch_folder, sizeof(scratch_folder), "%.900s/cuatomic-fuzz-XXXXXX",
			 where);
		FUZZ_CHECK(mkdtemp(scratch_folder), "%s: %s", scratch_folder, strerror(errno));
		for (int i = 0; i < 2; i++)
			snprintf(paths[i], sizeof(paths[i]), "%s/%d", scratch_folder, i);
		atexit(scratch_remove);
	}
	return paths[number];
}

static inline void scratch_write(const char *path, const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	FUZZ_CHECK(write(fd, data, size) == (ssize_t)size, "%s: %s", path, strerror(errno));
	close(fd);
}

#endif /* CUATOMIC_TESTS_SCRATCH_H */
