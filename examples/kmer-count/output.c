/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmer-count.h"

/* ---- temporary files, removed on every exit ---- */

#define OUTPUTS_MAX 2

static char *volatile temporaries[OUTPUTS_MAX];
static int folders[OUTPUTS_MAX];

static void remove_temporaries(void)
{
	for (int i = 0; i < OUTPUTS_MAX; i++) {
		if (temporaries[i])
			unlinkat(folders[i], temporaries[i], 0);
	}
}

static void on_signal(int number)
{
	/* the handler is now the default, so this ends the process with the status of the signal */
	remove_temporaries();
	raise(number);
}

static void remember_temporary(int folder, char *name)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
	static int n;

	if (!n) {
		atexit(remove_temporaries);
		/*
		 * a write beyond the file size limit fails with EFBIG instead of ending the process
		 */
		signal(SIGXFSZ, SIG_IGN);
		for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
			struct sigaction action;

			/* signals ignored by the parent stay ignored, for example under nohup */
			if (sigaction(signals[i], NULL, &action) || action.sa_handler == SIG_IGN)
				continue;
			memset(&action, 0, sizeof(action));
			action.sa_handler = on_signal;
			action.sa_flags = (int)SA_RESETHAND;
			sigaction(signals[i], &action, NULL);
		}
	}
	folders[n] = folder;
	temporaries[n++] = name;
}

static void forget_temporary(const char *name)
{
	for (int i = 0; i < OUTPUTS_MAX; i++) {
		if (temporaries[i] == name)
			temporaries[i] = NULL;
	}
}

/* ---- the target of an output ---- */

#define LINKS_MAX 40

/*
 * Splits a path, relative to folder `from`, into folder and name. Sets *name to memory from malloc.
 * Returns the open folder, or -1.
 */
static int split(int from, const char *path, char **name)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	char folder[PATH_MAX] = ".";
	size_t n = (size_t)(last - path);

	if (n >= sizeof(folder) || !*last) {
		errno = *last ? ENAMETOOLONG : *path ? EISDIR : ENOENT;
		return -1;
	}
	if (n) {
		memcpy(folder, path, n);
		folder[n] = 0;
	}
	*name = (char *)must_alloc(strlen(last) + 1, 1);
	strcpy(*name, last);
	return openat(from, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Reads the symbolic link `name`. Returns the length of its text, 0 if it is no link, or -1. In a
 * world-writable sticky folder, only links of this user and of the folder's owner are followed: see
 * fs.protected_symlinks in proc(5).
 */
static ssize_t read_link(int folder, const char *name, char text[PATH_MAX])
{
	const mode_t shared = S_ISVTX | S_IWOTH;
	int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;
	struct stat link, parent;
	ssize_t n = -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (!fstat(fd, &link) && !fstat(folder, &parent)) {
		errno = EACCES;
		if (!S_ISLNK(link.st_mode))
			n = 0;
		else if ((parent.st_mode & shared) != shared || link.st_uid == geteuid() ||
			 link.st_uid == parent.st_uid)
			n = readlinkat(fd, "", text, PATH_MAX);
	}
	error = n == PATH_MAX ? ENAMETOOLONG : errno;
	close(fd);
	errno = error;
	if (n == PATH_MAX)
		return -1;
	if (n > 0)
		text[n] = 0;
	return n;
}

/*
 * Follows symbolic links to the final folder and name, so that output replaces the target and not
 * the link.
 */
static void resolve(struct output *o)
{
	char text[PATH_MAX];
	ssize_t n = -1;

	o->folder = split(AT_FDCWD, o->path, &o->target);
	for (int links = 0; o->folder >= 0 && (n = read_link(o->folder, o->target, text)) > 0;
	     links++) {
		int before = o->folder;

		if (links == LINKS_MAX) {
			errno = ELOOP;
			n = -1;
			break;
		}
		free(o->target);
		o->folder = split(before, text, &o->target);
		close(before);
	}
	if (o->folder < 0 || n < 0)
		die("%s: %s", o->path, strerror(errno));
}

/* ---- temporary files: private, and locked by their writer ---- */

#define PREFIX ".kmer-count-"
#define DIGITS 32
#define SUFFIX ".tmp"

static int is_own_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

/* Removes temporary files of killed processes from this folder. */
static void remove_abandoned(int folder)
{
	const size_t before = sizeof(PREFIX) - 1;
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (strncmp(name, PREFIX, before) ||
		    strspn(name + before, "0123456789abcdef") != DIGITS ||
		    strcmp(name + before + DIGITS, SUFFIX) ||
		    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !is_own_file(&st))
			continue;
		fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* a writer holds the lock of its file */
		if (!fstat(fd, &st) && is_own_file(&st) && !flock(fd, LOCK_EX | LOCK_NB))
			unlinkat(folder, name, 0);
		close(fd);
	}
	closedir(dir);
}

/* Creates a temporary file with a random name and locks it. */
static int open_temporary(int folder, char **result)
{
	char *name = (char *)must_alloc(sizeof(PREFIX) + DIGITS + sizeof(SUFFIX), 1);
	unsigned char random[DIGITS / 2];
	struct stat st;

	for (int tries = 0; tries < 100; tries++) {
		char *p = name + sizeof(PREFIX) - 1;
		int fd;

		if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
			break;
		strcpy(name, PREFIX);
		for (size_t i = 0; i < sizeof(random); i++, p += 2)
			snprintf(p, 3, "%02x", random[i]);
		strcpy(p, SUFFIX);
		fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		/* another process may see the file before the lock and remove it; then retry */
		if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) ? errno != EWOULDBLOCK
							    : fstat(fd, &st) || st.st_nlink)) {
			*result = name;
			return fd;
		}
		unlinkat(folder, name, 0);
		close(fd);
		errno = EAGAIN;
	}
	free(name);
	return -1;
}

/*
 * Sets the mode of the new file. If it replaces a file of this user, it gets that file's
 * permissions and group. If the group cannot be kept, the group and others get the permissions that
 * both had. A new file gets the permissions of umask. umask also limits a file with several links,
 * because another user may have linked it here.
 */
static int set_mode(const struct output *o, int fd)
{
	mode_t mode = umask(0), both;
	struct stat old, now;

	umask(mode);
	mode = 0666 & ~mode;
	if (fstat(fd, &now))
		return -1;
	if (!fstatat(o->folder, o->target, &old, AT_SYMLINK_NOFOLLOW) && is_own_file(&old)) {
		mode = old.st_mode & 0777 & (old.st_nlink > 1 ? mode : 0777);
		if (old.st_gid != now.st_gid && fchown(fd, (uid_t)-1, old.st_gid)) {
			both = mode >> 3 & mode & 07;
			mode = (mode & 0700) | both << 3 | both;
		}
	}
	return mode == (now.st_mode & 07777) ? 0 : fchmod(fd, mode);
}

/* ---- outputs ---- */

/*
 * Returns whether another user may have put this device or pipe into a world-writable sticky
 * folder.
 */
static int is_planted(const char *path, const struct stat *there)
{
	const char *slash = strrchr(path, '/');
	char *folder =
		slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	struct stat own, in;
	int planted;

	if (!folder)
		die("out of memory");
	/* the kernel already checked that a link may be followed */
	planted = !lstat(path, &own) && own.st_dev == there->st_dev &&
		  own.st_ino == there->st_ino && !stat(folder, &in) &&
		  (in.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) &&
		  there->st_uid != geteuid() && there->st_uid != in.st_uid;
	free(folder);
	return planted;
}

void output_open(struct output *o, const char *path)
{
	struct stat st, now;
	int fd;

	memset(o, 0, sizeof(*o));
	o->path = path;
	if (!path)
		return;
	/* standard output may be a file; it is appended to and never replaced */
	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout")) {
		o->path = "standard output";
		o->f = stdout;
		return;
	}
	/* the kernel checks whether the path's links may be followed */
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 ? errno != ENOENT : fstat(fd, &st))
		die("%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && !S_ISREG(st.st_mode)) {
		/*
		 * Devices and pipes are written in place. Refuse those planted by other users, now
		 * or after the check.
		 */
		if (is_planted(path, &st))
			die("%s: %s", path, strerror(EACCES));
		fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0 &&
		    (fstat(fd, &now) || now.st_dev != st.st_dev || now.st_ino != st.st_ino))
			die("%s: the file has changed", path);
		o->f = fd < 0 ? NULL : fdopen(fd, "w");
		if (!o->f)
			die("%s: %s", path, strerror(errno));
		return;
	}
	resolve(o);
	remove_abandoned(o->folder);
	fd = open_temporary(o->folder, &o->temporary);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	remember_temporary(o->folder, o->temporary);
	o->f = fdopen(fd, "w");
	if (!o->f)
		die("%s: %s", path, strerror(errno));
}

int output_same(const struct output *a, const struct output *b)
{
	struct stat x, y;

	return a->target && b->target && !strcmp(a->target, b->target) && !fstat(a->folder, &x) &&
	       !fstat(b->folder, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Makes the rename durable, if the folder is readable and its file system supports it. */
static int sync_folder(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), bad, error;

	if (fd < 0)
		return errno == EACCES ? 0 : -1;
	bad = fsync(fd) && errno != EINVAL && errno != ENOTSUP && errno != EROFS;
	error = errno;
	close(fd);
	errno = error;
	return bad ? -1 : 0;
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
			failed = set_mode(o, fileno(o->f)) || fsync(fileno(o->f));
		/* a temporary file stays open, so that its lock is held until the rename */
		if (!failed && o->f != stdout && !o->temporary)
			failed = fclose(o->f) != 0;
		if (failed)
			die("%s: %s", o->path, strerror(errno));
	}
	for (size_t i = 0; i < n; i++) {
		struct output *o = &outputs[i];

		if (!o->temporary)
			continue;
		if (renameat(o->folder, o->temporary, o->folder, o->target))
			die("%s: %s", o->path, strerror(errno));
		forget_temporary(o->temporary);
	}
	for (size_t i = 0; i < n; i++) {
		struct output *o = &outputs[i];

		if (!o->temporary)
			continue;
		if (sync_folder(o->folder))
			die("%s: %s", o->path, strerror(errno));
		fclose(o->f);
		close(o->folder);
		free(o->temporary);
		free(o->target);
	}
}

/* ---- the formats ---- */

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
