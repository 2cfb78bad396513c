/* SPDX-License-Identifier: MIT */
/*
 * Atomic replacement of a file: the target has the old or the new contents, even if the process is
 * killed.
 *
 * The bytes go to a temporary file in the folder of the target; rename then replaces the target.
 * Other users can neither guess the name of the temporary file nor open it: its mode is 0600 until
 * it is complete. The writer holds a lock (flock) on it, so a later call removes exactly the
 * temporary files of dead writers.
 *
 * A symbolic link at the end of the path is followed under the rule of fs.protected_symlinks,
 * regardless of the kernel's setting: in a world-writable sticky folder, the link must belong to
 * the caller or to the owner of the folder. The same rule applies to links without a target, which
 * the kernel follows for O_CREAT.
 */
#ifndef CUATOMIC_LIB_REPLACE_H
#define CUATOMIC_LIB_REPLACE_H

#include <limits.h>
#include <stddef.h>

#include <cuatomic/status.h>

#define CUA__TEMPORARY_PREFIX ".cuamap-"
#define CUA__TEMPORARY_SUFFIX ".tmp"
#define CUA__TEMPORARY_DIGITS 32 /* random, hexadecimal */
#define CUA__TEMPORARY_BYTES                                                                       \
	(sizeof(CUA__TEMPORARY_PREFIX) + CUA__TEMPORARY_DIGITS + sizeof(CUA__TEMPORARY_SUFFIX) - 1)

struct cua__replace {
	int folder;              /* of target and temporary file, for path lookups only (O_PATH) */
	int fd;                  /* the temporary file */
	char name[NAME_MAX + 1]; /* the name of the target in that folder */
	char temporary[CUA__TEMPORARY_BYTES];
	int renamed; /* the target has the new contents, also if finish failed afterwards */
};

/*
 * Opens a temporary file for this path and removes those of dead writers. After success, call
 * finish or abandon. Errors: SYSTEM, with errno; EISDIR or EINVAL if the path leads to anything
 * other than a regular file.
 */
enum cua_status cua__replace_begin(struct cua__replace *r, const char *path);

/*
 * Writes n bytes. Beyond the file size limit (RLIMIT_FSIZE) it fails with EFBIG, without the signal
 * SIGXFSZ.
 */
enum cua_status cua__replace_write(struct cua__replace *r, const void *bytes, size_t n);

/*
 * Renames the temporary file to the target, durably; removes it after an error. Errors: SYSTEM,
 * with errno.
 */
enum cua_status cua__replace_finish(struct cua__replace *r);

/* Removes the temporary file. Keeps errno. */
void cua__replace_abandon(struct cua__replace *r);

#endif /* CUATOMIC_LIB_REPLACE_H */
