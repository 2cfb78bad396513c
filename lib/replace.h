/* SPDX-License-Identifier: MIT */
/*
 * A file that takes the place of another: whole or not at all, whenever the process ends.
 *
 * The bytes go to a temporary file in the folder of the target, which rename puts in its place. Other users can neither
 * guess the name of the temporary file nor open it: its mode is 0600 until it is whole. The writer holds a lock (flock)
 * on it, so that a later call removes the temporary files of dead writers and no others.
 *
 * A symbolic link at the end of the path is followed under the rule of fs.protected_symlinks, whether the kernel is set
 * to it or not: in a sticky folder that everybody may write to, a link has to be the caller's or the folder owner's.
 * Links to nothing, which the kernel follows for O_CREAT as well, are followed under the same rule.
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
	int folder; /* of the target and of the temporary file, for path lookups only (O_PATH) */
	int fd;     /* the temporary file */
	char name[NAME_MAX + 1]; /* of the target in that folder */
	char temporary[CUA__TEMPORARY_BYTES];
};

/*
 * Opens a temporary file for this path, and removes those of writers that have died. Errors: SYSTEM, with errno; EISDIR
 * or EINVAL: the path leads to something other than a regular file. Ends with finish or abandon if it succeeds.
 */
enum cua_status cua__replace_begin(struct cua__replace *r, const char *path);

/* Writes all n bytes. A file size limit (RLIMIT_FSIZE) makes it fail with EFBIG and without the signal SIGXFSZ. */
enum cua_status cua__replace_write(struct cua__replace *r, const void *bytes, size_t n);

/* The temporary file becomes the target, durably; if that fails it is removed. Errors: SYSTEM, with errno. */
enum cua_status cua__replace_finish(struct cua__replace *r);

/* Removes the temporary file. Keeps errno. */
void cua__replace_abandon(struct cua__replace *r);

#endif /* CUATOMIC_LIB_REPLACE_H */
