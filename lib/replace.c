/* SPDX-License-Identifier: MIT */
/* Atomic replacement of a file. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "replace.h"

#define LINKS_MAX 40 /* the limit of the kernel */
#define TRIES 100

static void close_quietly(int fd)
{
	int saved = errno;

	close(fd);
	errno = saved;
}

static void unlink_quietly(int folder, const char *name)
{
	int saved = errno;

	unlinkat(folder, name, 0);
	errno = saved;
}

/* ---- the target ---- */

/*
 * Opens the folder part of a path, relative to another folder. O_PATH needs no permission to list
 * the folder.
 */
static int open_folder(int from, const char *path, size_t length)
{
	char folder[PATH_MAX];

	if (length >= sizeof(folder)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(folder, path, length);
	folder[length] = 0;
	return openat(from, length ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Splits a path into its folder, opened relative to `from`, and the name in the folder. */
static int split(int from, const char *path, int *folder, char name[NAME_MAX + 1])
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

	if (!*last || strlen(last) > NAME_MAX) {
		errno = !*path ? ENOENT : !*last ? EISDIR : ENAMETOOLONG;
		return -1;
	}
	*folder = open_folder(from, path, (size_t)(last - path));
	if (*folder < 0)
		return -1;
	strcpy(name, last);
	return 0;
}

/* The rule of fs.protected_symlinks. */
static int may_follow(int folder, const struct stat *link)
{
	const mode_t shared = S_ISVTX | S_IWOTH;
	struct stat st;

	if (fstat(folder, &st))
		return 0;
	if ((st.st_mode & shared) != shared || link->st_uid == geteuid() ||
	    link->st_uid == st.st_uid)
		return 1;
	errno = EACCES;
	return 0;
}

/* Reads the target of the link r->name. Returns its length, 0 if r->name is no link, or -1. */
static ssize_t read_link(const struct cua__replace *r, char target[PATH_MAX])
{
	int fd = openat(r->folder, r->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	/* by descriptor: owner and target belong to the same link even if the name changes */
	if (!fstat(fd, &st)) {
		if (!S_ISLNK(st.st_mode))
			n = 0;
		else if (may_follow(r->folder, &st))
			n = readlinkat(fd, "", target, PATH_MAX);
	}
	if (n == PATH_MAX) {
		errno = ENAMETOOLONG;
		n = -1;
	}
	if (n > 0)
		target[n] = 0;
	close_quietly(fd);
	return n;
}

/* Sets folder and name to the end of the path's chain of links. */
static int resolve(struct cua__replace *r, const char *path)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	/*
	 * the kernel resolves the path first: the links of an object that is no regular file need
	 * not form a path
	 */
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return -1;
	if (fd >= 0) {
		int known = !fstat(fd, &st);

		close_quietly(fd);
		if (!known)
			return -1;
		if (!S_ISREG(st.st_mode)) {
			errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
			return -1;
		}
	}
	if (split(AT_FDCWD, path, &r->folder, r->name))
		return -1;
	for (int links = 0; (n = read_link(r, target)) > 0; links++) {
		int before = r->folder, bad;

		if (links == LINKS_MAX) {
			errno = ELOOP;
			n = -1;
			break;
		}
		bad = split(before, target, &r->folder, r->name);
		close_quietly(before);
		if (bad)
			return -1;
	}
	if (n < 0) {
		close_quietly(r->folder);
		return -1;
	}
	return 0;
}

/* ---- temporary files ---- */

static int random_name(char name[CUA__TEMPORARY_BYTES])
{
	unsigned char random[CUA__TEMPORARY_DIGITS / 2];
	char *p = name + sizeof(CUA__TEMPORARY_PREFIX) - 1;
	ssize_t n;

	do
		n = getrandom(random, sizeof(random), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(random)) {
		if (n >= 0)
			errno = EIO;
		return -1;
	}
	memcpy(name, CUA__TEMPORARY_PREFIX, sizeof(CUA__TEMPORARY_PREFIX));
	for (size_t i = 0; i < sizeof(random); i++) {
		*p++ = "0123456789abcdef"[random[i] >> 4];
		*p++ = "0123456789abcdef"[random[i] & 15];
	}
	memcpy(p, CUA__TEMPORARY_SUFFIX, sizeof(CUA__TEMPORARY_SUFFIX));
	return 0;
}

static int is_temporary(const char *name)
{
	const size_t before = sizeof(CUA__TEMPORARY_PREFIX) - 1;

	return strlen(name) == CUA__TEMPORARY_BYTES - 1 &&
	       !memcmp(name, CUA__TEMPORARY_PREFIX, before) &&
	       strspn(name + before, "0123456789abcdef") == CUA__TEMPORARY_DIGITS &&
	       !strcmp(name + before + CUA__TEMPORARY_DIGITS, CUA__TEMPORARY_SUFFIX);
}

/* Creates a new file with a random name. */
static int create(int folder, char name[CUA__TEMPORARY_BYTES], mode_t mode)
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < TRIES; i++) {
		if (random_name(name))
			return -1;
		fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    mode);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	return fd;
}

/*
 * Locks a new temporary file. Returns 0 if a concurrent call of another writer found the file
 * unlocked, and removed it or is about to. In a file system without locks it returns 1: a call
 * removes no file that it cannot lock.
 */
static int lock_new(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno != EWOULDBLOCK;
	return fstat(fd, &st) || st.st_nlink;
}

static int is_own_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

/* Removes a temporary file of this user if no writer holds its lock. */
static void remove_abandoned(int folder, const char *name)
{
	static const int how[] = {O_RDWR, O_RDONLY, O_WRONLY};
	struct stat st;
	int fd = -1;

	/* opens regular files only: opening a device may have side effects */
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !is_own_file(&st))
		return;
	/* some file systems lock only files that are open for writing */
	for (size_t i = 0; fd < 0 && i < sizeof(how) / sizeof(how[0]); i++)
		fd = openat(folder, name, how[i] | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && is_own_file(&st) && !flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(folder, name, 0);
	close(fd);
}

static int open_to_read(int folder)
{
	return openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Removes the files of killed writers. Leaves a folder alone if it cannot be listed. */
static void remove_all_abandoned(int folder)
{
	int fd = open_to_read(folder);
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (is_temporary(entry->d_name))
			remove_abandoned(folder, entry->d_name);
	closedir(dir);
}

/* ---- begin to end ---- */

enum cua_status cua__replace_begin(struct cua__replace *r, const char *path)
{
	r->renamed = 0;
	if (resolve(r, path))
		return CUA_ERROR_SYSTEM;
	remove_all_abandoned(r->folder);
	for (int i = 0; i < TRIES; i++) {
		r->fd = create(r->folder, r->temporary, 0600);
		if (r->fd < 0)
			break;
		if (lock_new(r->fd))
			return CUA_OK;
		unlink_quietly(r->folder, r->temporary);
		close(r->fd);
		errno = EAGAIN;
	}
	close_quietly(r->folder);
	return CUA_ERROR_SYSTEM;
}

void cua__replace_abandon(struct cua__replace *r)
{
	unlink_quietly(r->folder, r->temporary);
	close_quietly(r->fd);
	close_quietly(r->folder);
}

/*
 * A write beyond the file size limit sends SIGXFSZ to this thread. A signal that was already
 * pending stays pending, and stays a single signal, because standard signals do not queue.
 */
enum cua_status cua__replace_write(struct cua__replace *r, const void *bytes, size_t n)
{
	const struct timespec at_once = {0, 0};
	const char *p = bytes;
	sigset_t limit, before, pending;
	int was_pending, error = 0;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	sigemptyset(&pending);
	pthread_sigmask(SIG_BLOCK, &limit, &before);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGXFSZ);
	while (n && !error) {
		ssize_t done = write(r->fd, p, n);

		if (done > 0) {
			p += done;
			n -= (size_t)done;
		} else if (!done) {
			error = EIO;
		} else if (errno != EINTR) {
			error = errno;
		}
	}
	if (error == EFBIG && !was_pending)
		while (sigtimedwait(&limit, NULL, &at_once) < 0 && errno == EINTR)
			continue;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		errno = error;
	return error ? CUA_ERROR_SYSTEM : CUA_OK;
}

/*
 * The permissions of a new file in this folder, after umask and the folder's access list. They are
 * read from an empty file, because umask() would change the mask of all threads for a moment.
 */
static int mode_of_new(int folder, mode_t *mode)
{
	char name[CUA__TEMPORARY_BYTES];
	int fd = create(folder, name, 0666), bad;
	struct stat st;

	if (fd < 0)
		return -1;
	bad = fstat(fd, &st);
	unlink_quietly(folder, name);
	close_quietly(fd);
	if (!bad)
		*mode = st.st_mode & 0666;
	return bad;
}

/*
 * Keeps the permissions of the replaced file if it is a regular file of this user. Its group is
 * kept, too. If it cannot be kept, the new group and all other users get only the permissions that
 * both had before. A file with several names may have been linked here by another user; the result
 * then gets no more than a new file.
 */
static int set_mode(struct cua__replace *r)
{
	struct stat old, own;
	mode_t mode, both, fresh;

	if (fstat(r->fd, &own))
		return -1;
	if (!fstatat(r->folder, r->name, &old, AT_SYMLINK_NOFOLLOW) && is_own_file(&old)) {
		mode = old.st_mode & 0777;
		if (old.st_nlink > 1) {
			if (mode_of_new(r->folder, &fresh))
				return -1;
			mode &= fresh;
		}
		if (own.st_gid != old.st_gid && fchown(r->fd, (uid_t)-1, old.st_gid)) {
			both = mode >> 3 & mode & 07;
			mode = (mode & 0700) | both << 3 | both;
		}
	} else if (mode_of_new(r->folder, &mode)) {
		return -1;
	}
	/* a file system without permissions has the same mode for all files */
	return mode == (own.st_mode & 07777) ? 0 : fchmod(r->fd, mode);
}

static int sync_file(int fd)
{
	int bad;

	do
		bad = fsync(fd);
	while (bad && errno == EINTR);
	return bad;
}

/* Makes the new name durable. A folder that cannot be read, or has no fsync, is no error. */
static int sync_folder(int folder)
{
	int fd = open_to_read(folder), bad;

	if (fd < 0)
		return errno == EACCES || errno == EPERM ? 0 : -1;
	bad = sync_file(fd) && errno != EINVAL && errno != ENOTSUP && errno != EROFS ? -1 : 0;
	close_quietly(fd);
	return bad;
}

enum cua_status cua__replace_finish(struct cua__replace *r)
{
	int bad;

	/* the lock is held until the file has its name */
	if (set_mode(r) || sync_file(r->fd) ||
	    renameat(r->folder, r->temporary, r->folder, r->name)) {
		cua__replace_abandon(r);
		return CUA_ERROR_SYSTEM;
	}
	r->renamed = 1;
	bad = sync_folder(r->folder);
	close_quietly(r->fd);
	close_quietly(r->folder);
	return bad ? CUA_ERROR_SYSTEM : CUA_OK;
}
