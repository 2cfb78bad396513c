/* SPDX-License-Identifier: MIT */
/*
 * Folders, files and maps for the suites of saved hash maps, and a watch on the system calls of a
 * save or load: open, openat, read, write, fchmod, fsync, renameat and unlinkat of hashmap_files.c
 * replace the functions of the C library, also for the calls of libcuatomic.
 */
#ifndef CUATOMIC_TESTS_HASHMAP_FILES_H
#define CUATOMIC_TESTS_HASHMAP_FILES_H

#include "common.h"

#include <sys/types.h>

#define HEADER_BYTES 88
#define WATCHED_FDS 64

/* ---- the system calls ---- */

struct call_watch {
	int on;
	long steps; /* each call begins a step and ends a step */
	long last;  /* the step that raises the signal */
	int signal; /* 0: none */
	int writes;
	int stop_in_write; /* the write after which the process stops; 0: none */
	/* files that this program creates, with the modes and flags at their creation */
	int made[WATCHED_FDS]; /* 1 until the first write */
	mode_t modes[WATCHED_FDS];
	int flags[WATCHED_FDS];
	char names[WATCHED_FDS][300];
	/*
	 * Counts of files that this program writes to: all, files that other users could open, and
	 * files opened without O_CREAT, O_EXCL, O_NOFOLLOW or O_CLOEXEC.
	 */
	int written, loose, weak;
	char name[300]; /* of the file that the program began to write last */
	/* bytes read, and the offset at which reads begin to fail */
	uint64_t read, most_read;
};
extern struct call_watch watch;

/* Clears the watch and turns it on. */
void watch_on(void);

/* ---- the fixture ---- */

/* The keys of the fixture's map. */
#define FIXTURE_KEYS 50

/* Of each test: its context, map_of FIXTURE_KEYS keys, and the working directory, a new folder. */
struct files_fixture {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	char folder[TEST_PATH_BYTES];
};
extern struct files_fixture fixture;

/*
 * A test case with this fixture. After each test, the teardown removes the folder, and fails if any
 * file is left in it.
 */
TCase *files_tcase(const char *name);

/* ---- files ---- */

/* Creates a file with the contents "before". */
void make_file(const char *path, mode_t mode);

/* ---- maps ---- */

/* A map of keys 1 to n; the value of a key is its double. */
struct cua_hashmap *map_of(struct cua_context *ctx, uint32_t n,
			   const struct cua_hashmap_options *options);
/* The n of the saved map_of. Fails the test if the file holds anything else. */
uint64_t size_of_file(const char *path);

/* ---- users ---- */

#define OTHER_USER 65534

/*
 * Runs fn in a child process of another user and returns its result; 77 if the process cannot
 * change its user. fn must not use macros of check.
 */
int as_other_user(int (*fn)(void));

#endif
