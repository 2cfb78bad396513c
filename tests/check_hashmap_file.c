/* SPDX-License-Identifier: MIT */
/*
 * Files of maps under bad conditions: other users in the same folder, links, temporary files of
 * dead processes, signals, limits, a process killed at each of its system calls, and forged files
 * that cost the reader time or memory.
 *
 * This program's open, openat, read, write, fchmod, fsync, renameat and unlinkat replace the
 * functions of the C library, also for the calls of libcuatomic.
 *
 *   CUA_TEST_DEEP=1   many kills at random moments as well
 */
#undef _FORTIFY_SOURCE /* its inline functions would conflict with the definitions below */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADER 88
#define PART ((size_t)4 << 20) /* bytes that load reads at a time */
#define OTHER_USER 65534
#define NEEDED (O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)
#define MOST_FDS 64

/* ---- the system calls ---- */

static struct {
	int on;
	long steps; /* each call begins a step and ends a step */
	long last;  /* the step that raises the signal */
	int signal; /* 0: none */
	int writes;
	int stop_in_write;
	/* files that this program creates; modes and flags are those at creation */
	int made[MOST_FDS]; /* 1 while open */
	mode_t modes[MOST_FDS];
	int flags[MOST_FDS];
	char names[MOST_FDS][300];
	/* files that it writes to: all, those that others could open, those without a NEEDED flag */
	int written, loose, weak;
	char name[300]; /* of the last file written to */
	/* bytes read, and the offset at which reads begin to fail */
	uint64_t read, most_read;
} watch;

static void step(void)
{
	if (watch.on && ++watch.steps == watch.last && watch.signal)
		kill(getpid(), watch.signal);
}

/* The library calls these functions, too. */
#define EXPORTED __attribute__((visibility("default")))

#define REAL(result, name, ...)                                                                    \
	static result (*real)(__VA_ARGS__);                                                        \
	if (!real)                                                                                 \
	*(void **)(&real) = dlsym(RTLD_NEXT, #name)

static void made(int fd, const char *path, int flags)
{
	struct stat st;

	if (!watch.on || fd < 0 || fd >= MOST_FDS)
		return;
	watch.made[fd] = (flags & O_CREAT) != 0;
	watch.flags[fd] = flags;
	watch.modes[fd] = fstat(fd, &st) ? 07777 : st.st_mode & 07777;
	snprintf(watch.names[fd], sizeof(watch.names[fd]), "%s", path);
}

EXPORTED int open(const char *path, int flags, ...)
{
	REAL(int, open, const char *, int, ...);
	va_list list;
	mode_t mode;
	int fd;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	step();
	fd = real(path, flags, mode);
	made(fd, path, flags);
	step();
	return fd;
}

EXPORTED int openat(int folder, const char *path, int flags, ...)
{
	REAL(int, openat, int, const char *, int, ...);
	va_list list;
	mode_t mode;
	int fd;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	step();
	fd = real(folder, path, flags, mode);
	made(fd, path, flags);
	step();
	return fd;
}

EXPORTED ssize_t write(int fd, const void *bytes, size_t n)
{
	REAL(ssize_t, write, int, const void *, size_t);
	ssize_t done;

	if (watch.on && fd >= 0 && fd < MOST_FDS && watch.made[fd]) {
		watch.made[fd] = 0;
		watch.written++;
		watch.loose += (watch.modes[fd] & 07077) != 0;
		watch.weak += (watch.flags[fd] & NEEDED) != NEEDED;
		memcpy(watch.name, watch.names[fd], sizeof(watch.name));
	}
	step();
	done = real(fd, bytes, n);
	step();
	if (watch.on && ++watch.writes == watch.stop_in_write)
		kill(getpid(), SIGSTOP);
	return done;
}

EXPORTED ssize_t read(int fd, void *bytes, size_t n)
{
	REAL(ssize_t, read, int, void *, size_t);
	ssize_t done;

	if (watch.on && watch.read > watch.most_read) {
		errno = EIO;
		return -1;
	}
	done = real(fd, bytes, n);
	if (watch.on && done > 0)
		watch.read += (uint64_t)done;
	return done;
}

EXPORTED ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room);
ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room)
{
	return read(fd, bytes, n < room ? n : room);
}

#define STEPS(name, parameters, arguments, ...)                                                    \
	EXPORTED int name parameters                                                               \
	{                                                                                          \
		REAL(int, name, __VA_ARGS__);                                                      \
		int result;                                                                        \
                                                                                                   \
		step();                                                                            \
		result = real arguments;                                                           \
		step();                                                                            \
		return result;                                                                     \
	}
STEPS(fchmod, (int fd, mode_t mode), (fd, mode), int, mode_t)
STEPS(fsync, (int fd), (fd), int)
STEPS(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), int,
      const char *, int, const char *)
STEPS(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), int, const char *,
      int)

static void watch_on(void)
{
	memset(&watch, 0, sizeof(watch));
	watch.most_read = 64 << 20;
	watch.on = 1;
}

/* ---- folders and files ---- */

static void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "before", 6), 6);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(lstat(path, &st), 0);
	return st.st_mode;
}

/* Whether the file has the contents of make_file. */
static int is_untouched(const char *path)
{
	char text[8] = "";
	int fd = open(path, O_RDONLY), same;

	ck_assert_int_ge(fd, 0);
	same = read(fd, text, 7) == 6 && !strcmp(text, "before");
	close(fd);
	return same;
}

/* The number of temporary files in this folder. *name gets the name of one. */
static int temporaries(char name[300])
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);

		if (length > 4 && !strcmp(entry->d_name + length - 4, ".tmp")) {
			snprintf(name, 300, "%s", entry->d_name);
			n++;
		}
	}
	closedir(dir);
	return n;
}

/* ---- maps ---- */

/* A map of keys 1 to n; the value of a key is its double. */
static struct cua_hashmap *map_of(struct cua_context *ctx, uint32_t n,
				  const struct cua_hashmap_options *options)
{
	uint32_t *keys = test_malloc(n * sizeof(*keys)), *values = test_malloc(n * sizeof(*values));
	struct cua_hashmap *map;
	void *k, *v;

	for (uint32_t i = 0; i < n; i++) {
		keys[i] = i + 1;
		values[i] = 2 * (i + 1);
	}
	ck_assert_cua(cua_hashmap_create(ctx, options, CUA_U32, CUA_U32, n + 10, &map));
	k = test_upload(ctx, keys, n * sizeof(*keys));
	v = test_upload(ctx, values, n * sizeof(*values));
	ck_assert_cua(cua_hashmap_insert_n(map, n, k, v, NULL));
	test_free(ctx, k);
	test_free(ctx, v);
	free(keys);
	free(values);
	return map;
}

static int adds_up(void *arg, const void *key, const void *value)
{
	uint32_t k, v;

	memcpy(&k, key, sizeof(k));
	memcpy(&v, value, sizeof(v));
	ck_assert_uint_eq(v, 2 * k);
	*(uint64_t *)arg += k;
	return 0;
}

/* The n of the saved map_of. Fails the test if the file holds anything else. */
static uint64_t size_of_file(struct cua_context *ctx, const char *path)
{
	struct cua_hashmap *map;
	uint64_t n = 0, sum = 0;

	ck_assert_cua(cua_hashmap_load(ctx, NULL, path, &map));
	ck_assert_cua(cua_hashmap_size(map, &n));
	ck_assert_cua(cua_hashmap_for_each(map, adds_up, &sum));
	ck_assert_uint_eq(sum, n * (n + 1) / 2);
	ck_assert_cua(cua_hashmap_destroy(map));
	return n;
}

static int became_other_user(void)
{
	return !setgroups(0, NULL) && !setgid(OTHER_USER) && !setuid(OTHER_USER);
}

/*
 * Runs fn in a child process of another user and returns its result; 77 if the process cannot
 * change its user. fn must not use macros of check.
 */
static int as_other_user(int (*fn)(void))
{
	int wait_status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child)
		_exit(geteuid() || !became_other_user() ? 77 : fn());
	ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
	ck_assert(WIFEXITED(wait_status));
	if (WEXITSTATUS(wait_status) == 77)
		printf("skipped: this process cannot become another user\n");
	return WEXITSTATUS(wait_status);
}

/* ---- permissions ---- */

/* The permissions of other users from the creation of the file on, its name and its flags. */
START_TEST(private_until_whole)
{
	static const mode_t before[] = {0, 0600, 0640, 0666, 0444}, masks[] = {022, 077, 0, 027};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	char folder[TEST_PATH_BYTES], first[300];

	test_enter_folder(folder);
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		for (size_t j = 0; j < sizeof(masks) / sizeof(masks[0]); j++) {
			if (before[i])
				make_file("a", before[i]);
			umask(masks[j]);
			watch_on();
			ck_assert_cua(cua_hashmap_save(map, "a"));
			watch.on = 0;
			ck_assert_int_eq(watch.written, 1);
			ck_assert_int_eq(watch.loose, 0);
			ck_assert_int_eq(watch.weak, 0);
			ck_assert_uint_eq(mode_of("a"),
					  S_IFREG | (before[i] ? before[i] : 0666 & ~masks[j]));
			/* the umask is unchanged */
			ck_assert_uint_eq(umask(022), masks[j]);
			ck_assert_int_eq(test_files_in("."), 1);
			/*
			 * the 128 random bits of a name differ from save to save, and are not the
			 * process id
			 */
			if (i + j)
				ck_assert_str_ne(first, watch.name);
			memcpy(first, watch.name, sizeof(first));
			ck_assert_uint_ge(strspn(strpbrk(first, "-.") + strcspn(first, "-"),
						 "-0123456789abcdef"),
					  32);
			ck_assert_int_eq(unlink("a"), 0);
		}
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

static int make_trap(void)
{
	int fd = open("theirs", O_WRONLY | O_CREAT | O_EXCL, 0600);

	return fd < 0 || fchmod(fd, 04777);
}

/* No file has the set-user-id bit after a save, whoever owned the replaced file. */
START_TEST(set_user_id)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	char folder[TEST_PATH_BYTES];
	struct stat st;
	int other;

	test_enter_folder(folder);
	make_file("own", 06755);
	ck_assert_uint_eq(mode_of("own") & 04000, 04000);
	ck_assert_cua(cua_hashmap_save(map, "own"));
	ck_assert_uint_eq(mode_of("own"), S_IFREG | 0755);

	ck_assert_int_eq(chmod(folder, 0777), 0);
	other = as_other_user(make_trap);
	if (other != 77) {
		ck_assert_int_eq(other, 0);
		ck_assert_cua(cua_hashmap_save(map, "theirs"));
		ck_assert_int_eq(stat("theirs", &st), 0);
		ck_assert_uint_eq(st.st_uid, geteuid());
		ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
		ck_assert_int_eq(unlink("theirs"), 0);
	}
	ck_assert_int_eq(unlink("own"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/*
 * save keeps the group of the file if the saver is a member. Otherwise nobody gets more permissions
 * than before.
 */
static int save_of_group(void)
{
	struct cua_context *ctx;
	struct cua_hashmap *map;
	struct stat st;
	enum cua_status status;

	if (cua_context_create(TEST_BACKEND, 0, &ctx) ||
	    cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U32, 10, &map))
		return 1;
	status = cua_hashmap_save(map, "theirs");
	return status || stat("theirs", &st) || st.st_gid != OTHER_USER ||
	       (st.st_mode & 07777) != 0644;
}

/*
 * A file with a second link gets no more permissions than a new file, because any user may have
 * created the link.
 */
START_TEST(other_names)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	mode_t before;
	char folder[TEST_PATH_BYTES];
	struct stat st;
	int fd;

	test_enter_folder(folder);
	before = umask(077);
	fd = open("b", O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, 0666), 0);
	close(fd);
	ck_assert_int_eq(link("b", "a"), 0);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	ck_assert_int_eq(stat("a", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	/* and no more permissions than it had */
	ck_assert_int_eq(chmod("b", 0400), 0);
	ck_assert_int_eq(unlink("a") | link("b", "a"), 0);
	umask(0);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	umask(before);
	ck_assert_int_eq(stat("a", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0400);
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(group)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	char folder[TEST_PATH_BYTES];
	struct stat st;

	if (geteuid()) {
		printf("skipped: only root can give files away\n");
	} else {
		test_enter_folder(folder);
		ck_assert_int_eq(chmod(folder, 0777), 0);
		make_file("own", 0640);
		ck_assert_int_eq(chown("own", 0, 12345), 0);
		ck_assert_cua(cua_hashmap_save(map, "own"));
		ck_assert_int_eq(stat("own", &st), 0);
		ck_assert_uint_eq(st.st_gid, 12345);
		ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
		/* group 12345 could write and others could not, so the new group must not write */
		make_file("theirs", 0664);
		ck_assert_int_eq(chown("theirs", OTHER_USER, 12345) | chmod("theirs", 0664), 0);
		if (as_other_user(save_of_group) != 77)
			ck_assert_int_eq(as_other_user(save_of_group), 0);
		ck_assert_int_eq(unlink("own") | unlink("theirs"), 0);
		test_leave_folder(folder);
	}
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- links ---- */

static int make_links(void)
{
	return symlink("../victim", "shared/link") || symlink("../nothing", "shared/dangling") ||
	       symlink("mine", "shared/chain") || symlink("../victim", "shared/mine");
}

/*
 * In a sticky folder that all may write, save follows links of this user and of the folder's owner,
 * and no others.
 */
START_TEST(sticky_links)
{
	static const char *const links[] = {"shared/link", "shared/dangling", "shared/chain",
					    "own"};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	char folder[TEST_PATH_BYTES];
	int other;

	test_enter_folder(folder);
	ck_assert_int_eq(chmod(folder, 0755) | mkdir("shared", 0700) | chmod("shared", 01777), 0);
	make_file("victim", 0600);
	/* a link to a link of another user */
	ck_assert_int_eq(symlink("shared/link", "own"), 0);
	other = as_other_user(make_links);
	if (other != 77) {
		ck_assert_int_eq(other, 0);
		for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
			errno = 0;
			ck_assert_status(cua_hashmap_save(map, links[i]), CUA_ERROR_SYSTEM);
			ck_assert_int_eq(errno, EACCES);
			ck_assert(is_untouched("victim"));
			ck_assert_int_eq(test_files_in("."), 3);
			ck_assert_int_eq(test_files_in("shared"), 4);
		}
		/* in a private folder without the sticky bit, save follows them */
		ck_assert_int_eq(chmod("shared", 0755), 0);
		ck_assert_cua(cua_hashmap_save(map, "shared/chain"));
		ck_assert_uint_eq(size_of_file(ctx, "victim"), 50);
		ck_assert_cua(cua_hashmap_save(map, "shared/dangling"));
		ck_assert_uint_eq(size_of_file(ctx, "nothing"), 50);
		ck_assert(S_ISLNK(mode_of("shared/link")) && S_ISLNK(mode_of("shared/dangling")));
		ck_assert_int_eq(unlink("nothing") | unlink("shared/link") |
					 unlink("shared/dangling") | unlink("shared/chain") |
					 unlink("shared/mine"),
				 0);
		ck_assert_int_eq(unlink("victim") | chmod("shared", 01777), 0);
		make_file("victim", 0600);
	}
	ck_assert_int_eq(
		symlink("../victim", "shared/link") | symlink("../nothing", "shared/dangling"), 0);
	ck_assert_cua(cua_hashmap_save(map, "own"));
	ck_assert_uint_eq(size_of_file(ctx, "victim"), 50);
	ck_assert_uint_eq(mode_of("victim"), S_IFREG | 0600);
	ck_assert_cua(cua_hashmap_save(map, "shared/dangling"));
	ck_assert_uint_eq(size_of_file(ctx, "nothing"), 50);
	ck_assert_int_eq(test_files_in("shared"), 2);
	ck_assert_int_eq(unlink("nothing") | unlink("victim") | unlink("own") |
				 unlink("shared/link") | unlink("shared/dangling") |
				 rmdir("shared"),
			 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- temporary files of earlier processes ---- */

#define A_NAME ".cuamap-%032x.tmp"

static int make_temporary(void)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), A_NAME, 1);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
	return fd < 0;
}

/*
 * Forks a child that saves a map of n keys as "a", raises a signal at a step, or stops after a
 * write.
 */
static pid_t saver(uint32_t n, long last, int signal_number, int stop_in_write)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		struct cua_context *ctx = test_context(TEST_BACKEND);
		struct cua_hashmap *map = map_of(ctx, n, NULL);

		watch_on();
		watch.last = last;
		watch.signal = signal_number;
		watch.stop_in_write = stop_in_write;
		_exit(cua_hashmap_save(map, "a") != CUA_OK);
	}
	ck_assert_int_gt(child, 0);
	return child;
}

START_TEST(leftovers)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	char folder[TEST_PATH_BYTES], name[300], live[300];
	int wait_status = 0, other;
	struct stat st;
	pid_t child;

	test_enter_folder(folder);
	ck_assert_int_eq(chmod(folder, 0777), 0);
	/* the largest number of files with this process id */
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "cuamap.%ld.%d.tmp", (long)getpid(), i);
		make_file(name, 0600);
	}
	ck_assert_cua(cua_hashmap_save(map, "a"));
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "cuamap.%ld.%d.tmp", (long)getpid(), i);
		ck_assert_int_eq(unlink(name), 0);
	}
	ck_assert_int_eq(test_files_in("."), 1);
	/* files of dead writers, with any mode */
	for (unsigned i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), A_NAME, i + 100);
		make_file(name, i % 3 == 0 ? 0600 : i % 3 == 1 ? 0444 : 0200);
	}
	ck_assert_cua(cua_hashmap_save(map, "a"));
	ck_assert_int_eq(test_files_in("."), 1);
	/* killed during the save */
	for (int i = 1; i <= 3; i++) {
		child = saver(60, 0, 0, i);
		ck_assert_int_eq(waitpid(child, &wait_status, WUNTRACED), child);
		ck_assert(WIFSTOPPED(wait_status));
		ck_assert_int_eq(temporaries(live), 1);
		/* the file of a living writer stays, and its save succeeds */
		ck_assert_cua(cua_hashmap_save(map, "b"));
		ck_assert_int_eq(temporaries(name), 1);
		ck_assert_str_eq(name, live);
		if (i == 2) {
			ck_assert_int_eq(kill(child, SIGCONT), 0);
			ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
			ck_assert(WIFEXITED(wait_status) && !WEXITSTATUS(wait_status));
			ck_assert_uint_eq(size_of_file(ctx, "a"), 60);
		} else {
			ck_assert_int_eq(kill(child, SIGKILL), 0);
			ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
			ck_assert_int_eq(temporaries(name), 1);
			ck_assert_cua(cua_hashmap_save(map, "b"));
		}
		ck_assert_int_eq(test_files_in("."), 2);
	}
	/* files with similar names, and files of other users, stay */
	ck_assert_int_eq(mkdir(".cuamap-0123456789abcdef0123456789abcdef.tmp", 0700), 0);
	ck_assert_int_eq(symlink("a", ".cuamap-0123456789abcdef0123456789abcde0.tmp"), 0);
	make_file(".cuamap-0123456789abcdef0123456789abcdeg.tmp", 0600);
	make_file(".cuamap-0123456789abcdef0123456789abcdef.tmp2", 0600);
	make_file("cuamap-0123456789abcdef0123456789abcdef.tmp", 0600);
	other = as_other_user(make_temporary) != 77;
	ck_assert_cua(cua_hashmap_save(map, "b"));
	ck_assert_int_eq(test_files_in("."), 7 + other);
	snprintf(name, sizeof(name), A_NAME, 1);
	ck_assert_int_eq(lstat(name, &st), other ? 0 : -1);
	if (other)
		ck_assert_int_eq(unlink(name), 0);
	ck_assert_int_eq(rmdir(".cuamap-0123456789abcdef0123456789abcdef.tmp") |
				 unlink(".cuamap-0123456789abcdef0123456789abcde0.tmp") |
				 unlink(".cuamap-0123456789abcdef0123456789abcdeg.tmp") |
				 unlink(".cuamap-0123456789abcdef0123456789abcdef.tmp2") |
				 unlink("cuamap-0123456789abcdef0123456789abcdef.tmp") |
				 unlink("a") | unlink("b"),
			 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- killed ---- */

/*
 * A kill before and after each system call of a save leaves the old or the new file, and the next
 * save removes the temporary file.
 */
START_TEST(killed_at_each_step)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	char folder[TEST_PATH_BYTES];
	long steps[2];

	test_enter_folder(folder);
	for (int exists = 0; exists < 2; exists++) {
		int killed = 1, was_new = 0, left = 0;

		for (steps[exists] = 0; killed; steps[exists]++) {
			int wait_status = 0, there;
			struct stat st;
			pid_t child;

			unlink("a");
			if (exists)
				ck_assert_cua(cua_hashmap_save(map, "a"));
			child = saver(60, steps[exists] + 1, SIGKILL, 0);
			ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
			killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
			ck_assert(killed || (WIFEXITED(wait_status) && !WEXITSTATUS(wait_status)));
			there = !lstat("a", &st);
			left += test_files_in(".") - there;
			if (there) {
				uint64_t n = size_of_file(ctx, "a");

				ck_assert(n == 60 || (exists && n == 50));
				/* after the rename, every file is the new one */
				ck_assert(!was_new || n == 60);
				was_new = n == 60;
			} else {
				ck_assert(!exists && !was_new);
			}
			ck_assert_cua(cua_hashmap_save(map, "b"));
			ck_assert_int_eq(test_files_in("."), 1 + there);
		}
		ck_assert(was_new);
		/* kills between these steps left temporary files */
		ck_assert_int_ge(left, 6);
		ck_assert_int_ge(steps[exists], 16);
	}
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* Kills at random moments, with a file of many writes. */
START_TEST(killed_at_any_time)
{
	uint64_t seed = test_seed("killed_at_any_time"), n = 0;
	const uint32_t size = test_quick() ? 100000 : 2000000;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL);
	int killed = 0, new = 0, ended = 0;
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	for (int i = 0; i < 300; i++) {
		int wait_status = 0, ready[2];
		pid_t child;
		char byte;

		ck_assert_cua(cua_hashmap_save(map, "a"));
		ck_assert_int_eq(pipe(ready), 0);
		fflush(NULL);
		child = fork();
		if (!child) {
			struct cua_context *own = test_context(TEST_BACKEND);
			struct cua_hashmap *large = map_of(own, size, NULL);

			if (write(ready[1], "r", 1) != 1)
				_exit(1);
			_exit(cua_hashmap_save(large, "a") != CUA_OK);
		}
		ck_assert_int_gt(child, 0);
		close(ready[1]);
		ck_assert_int_eq(read(ready[0], &byte, 1), 1);
		close(ready[0]);
		usleep((useconds_t)(test_random(&seed) % (size / 10)));
		kill(child, SIGKILL);
		ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
		killed += WIFSIGNALED(wait_status) != 0;
		ended += WIFEXITED(wait_status) != 0;
		n = size_of_file(ctx, "a");
		ck_assert(n == 50 || n == size);
		new += n == size;
		ck_assert_cua(cua_hashmap_save(map, "b"));
		ck_assert_int_eq(test_files_in("."), 2);
	}
	printf("killed_at_any_time: %d killed, %d ended, %d new files\n", killed, ended, new);
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the limit of file sizes ---- */

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

/*
 * The file size limit makes the call fail and raises no signal, whether the process has the default
 * action, a handler, or a pending signal of its own.
 */
START_TEST(size_limit)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 50, NULL), *more = map_of(ctx, 60, NULL);
	sigset_t set, mask, pending;
	struct rlimit old, limit;
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	for (int how = 0; how < 3; how++)
		for (rlim_t at = 0; at < HEADER + 60 * 8; at += 44) {
			enum cua_status status;
			int error, bad;

			ck_assert(signal(SIGXFSZ, how == 1 ? count_signal : SIG_DFL) != SIG_ERR);
			ck_assert_int_eq(
				sigprocmask(how == 2 ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL), 0);
			if (how == 2)
				raise(SIGXFSZ);
			limit = old;
			limit.rlim_cur = at;
			/* check itself writes to a file, too */
			bad = setrlimit(RLIMIT_FSIZE, &limit);
			errno = 0;
			status = cua_hashmap_save(more, "a");
			error = errno;
			bad |= setrlimit(RLIMIT_FSIZE, &old);
			ck_assert_int_eq(bad, 0);
			ck_assert_status(status, CUA_ERROR_SYSTEM);
			ck_assert_int_eq(error, EFBIG);
			ck_assert_int_eq(signals, 0);
			ck_assert_int_eq(sigpending(&pending), 0);
			ck_assert_int_eq(sigismember(&pending, SIGXFSZ), how == 2);
			ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
			ck_assert_int_eq(sigismember(&mask, SIGXFSZ), how == 2);
			ck_assert_int_eq(test_files_in("."), 1);
			ck_assert_uint_eq(size_of_file(ctx, "a"), 50);
		}
	/* the pending signal is delivered here and ignored */
	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	ck_assert_cua(cua_hashmap_destroy(more));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- options of the hash ---- */

/* A loaded map has the hash of the saved map; the file does not contain the secret. */
START_TEST(hash_options)
{
	struct cua_hashmap_options o = {
		.struct_size = sizeof(o), .hash = CUA_HASHMAP_HASH_KEYED, .max_probes = 48};
	const uint64_t secret[2] = {0x1122334455667788, 0x99aabbccddeeff01};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map, *loaded;
	struct cua_hashmap_view view;
	char folder[TEST_PATH_BYTES], bytes[HEADER + 50 * 8];
	int fd;

	test_enter_folder(folder);
	o.seed = secret[0];
	o.seed_high = secret[1];
	map = map_of(ctx, 50, &o);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	fd = open("a", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	close(fd);
	for (size_t i = 0; i + 8 <= sizeof(bytes); i++)
		ck_assert(memcmp(bytes + i, &secret[0], 8) && memcmp(bytes + i, &secret[1], 8));
	ck_assert_cua(cua_hashmap_load(ctx, NULL, "a", &loaded));
	ck_assert_cua(cua_hashmap_get_view(loaded, &view));
	ck_assert_uint_eq(view.hash, CUA_HASHMAP_HASH_KEYED);
	ck_assert_uint_eq(view.max_probes, 48);
	ck_assert_uint_ne(view.seed_high, secret[1]);
	ck_assert_cua(cua_hashmap_destroy(loaded));
	ck_assert_uint_eq(size_of_file(ctx, "a"), 50);
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- files that cost the reader time or memory ---- */

/* The checksum of the file format, over whole words. */
static uint64_t add_up(uint64_t sum, const void *bytes, size_t n)
{
	uint64_t word;

	for (size_t i = 0; i < n; i += 8) {
		memcpy(&word, (const char *)bytes + i, 8);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	return sum;
}

/* Overwrites the header of a saved file with these numbers. */
static void forge_header(const char *path, uint64_t count, uint64_t slots, uint64_t pairs_sum)
{
	char header[HEADER];
	uint64_t sum;
	int fd = open(path, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, header, HEADER, 0), HEADER);
	memcpy(header + 24, &count, 8);
	memcpy(header + 32, &slots, 8);
	memcpy(header + 72, &pairs_sum, 8);
	sum = add_up(1, header, 80);
	memcpy(header + 80, &sum, 8);
	ck_assert_int_eq(pwrite(fd, header, HEADER, 0), HEADER);
	close(fd);
}

/* The same with 4 + 4 bytes a pair, extended by holes to `size`. */
static void forge(const char *path, uint64_t count, uint64_t slots, uint64_t pairs_sum, off_t size)
{
	forge_header(path, count, slots, pairs_sum);
	if (truncate(path, HEADER) || truncate(path, size))
		ck_abort_msg("%s: truncate to %lld: %s", path, (long long)size, strerror(errno));
}

static long peak_kib(void)
{
	struct rusage usage;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/*
 * The same key again and again, in holes and on the disk. load detects it after the first block,
 * with little memory.
 */
START_TEST(equal_keys)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 1, NULL), *none = NULL;
	const uint64_t all = (uint64_t)8 << 30, some = 3 * PART;
	char folder[TEST_PATH_BYTES], *pairs = test_malloc(some);
	long before;
	int fd;

	test_enter_folder(folder);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	before = peak_kib();
	forge("a", all / 8, all / 8, 0, (off_t)(HEADER + all));
	watch_on();
	if (cua_hashmap_load(ctx, NULL, "a", &none) == CUA_ERROR_NO_MEMORY)
		printf("no memory for a map of 8 GiB: the file was not read\n");
	else
		ck_assert_status(cua_hashmap_load(ctx, NULL, "a", &none), CUA_ERROR_CORRUPT);
	watch.on = 0;
	ck_assert_uint_ge(watch.read, HEADER);
	ck_assert_uint_le(watch.read, 2 * (HEADER + PART));
	ck_assert_int_lt(peak_kib() - before, 1 << 20);

	/* with a valid checksum */
	for (uint64_t i = 0; i < some; i += 8)
		memcpy(pairs + i, "key.val.", 8);
	forge("a", some / 8, some / 8, add_up(0, pairs, some), HEADER);
	fd = open("a", O_WRONLY | O_APPEND);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, pairs, some), (ssize_t)some);
	close(fd);
	watch_on();
	ck_assert_status(cua_hashmap_load(ctx, NULL, "a", &none), CUA_ERROR_CORRUPT);
	watch.on = 0;
	ck_assert_uint_ge(watch.read, HEADER + PART);
	ck_assert_uint_le(watch.read, HEADER + PART);
	ck_assert_ptr_null(none);
	free(pairs);
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/*
 * A header alone, of a large map. load allocates no memory for unwritten slots, and no more than
 * the limit.
 */
START_TEST(large_header)
{
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .max_bytes = 1 << 20};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 1, NULL), *loaded = NULL;
	const uint64_t slots = 512 * 7 << 17;
	uint64_t n = 0, size = 1;
	char folder[TEST_PATH_BYTES];
	enum cua_status status;
	long before;

	test_enter_folder(folder);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	/* 4 GiB, then more than the address space */
	for (int i = 0; i < 2; i++) {
		forge("a", 0, i ? (uint64_t)1 << 60 : slots, 0, HEADER);
		ck_assert_status(cua_hashmap_load(ctx, &o, "a", &loaded), CUA_ERROR_SIZE);
		ck_assert_ptr_null(loaded);
	}
	/* load checks the size of the file first */
	forge("a", slots, slots, 0, HEADER);
	ck_assert_status(cua_hashmap_load(ctx, &o, "a", &loaded), CUA_ERROR_CORRUPT);
	forge("a", 0, slots, 0, HEADER);
	before = peak_kib();
	status = cua_hashmap_load(ctx, NULL, "a", &loaded);
	ck_assert_int_lt(peak_kib() - before, 256 << 10);
	if (status == CUA_ERROR_NO_MEMORY) {
		printf("no memory for a map of 4 GiB\n");
	} else {
		ck_assert_cua(status);
		ck_assert_cua(cua_hashmap_capacity(loaded, &n));
		ck_assert_uint_eq(n, slots);
		ck_assert_cua(cua_hashmap_size(loaded, &size));
		ck_assert_uint_eq(size, 0);
		ck_assert_cua(cua_hashmap_destroy(loaded));
	}
	/* a sufficient limit */
	forge("a", 0, 512 * 7, 0, HEADER);
	ck_assert_cua(cua_hashmap_load(ctx, &o, "a", &loaded));
	ck_assert_cua(cua_hashmap_destroy(loaded));
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* Few pairs far apart in a large map. Each pair costs a page, not a huge page. */
START_TEST(few_pairs)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = map_of(ctx, 500, NULL), *loaded = NULL;
	uint64_t pairs_sum, size = 0;
	char folder[TEST_PATH_BYTES];
	enum cua_status status;
	long before;
	int fd;

	test_enter_folder(folder);
	ck_assert_cua(cua_hashmap_save(map, "a"));
	fd = open("a", O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &pairs_sum, 8, 72), 8);
	close(fd);
	/* 4 GiB of slots */
	forge_header("a", 500, 512 * 7 << 17, pairs_sum);
	before = peak_kib();
	status = cua_hashmap_load(ctx, NULL, "a", &loaded);
	if (status == CUA_ERROR_NO_MEMORY) {
		printf("no memory for a map of 4 GiB\n");
	} else {
		ck_assert_cua(status);
		ck_assert_int_lt(peak_kib() - before, 128 << 10);
		ck_assert_cua(cua_hashmap_size(loaded, &size));
		ck_assert_uint_eq(size, 500);
		ck_assert_cua(cua_hashmap_destroy(loaded));
	}
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	const int deep = test_deep();
	Suite *suite = suite_create("hashmap_file");
	TCase *tcase = tcase_create("hashmap_file");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, private_until_whole);
	tcase_add_test(tcase, set_user_id);
	tcase_add_test(tcase, other_names);
	tcase_add_test(tcase, group);
	tcase_add_test(tcase, sticky_links);
	tcase_add_test(tcase, leftovers);
	tcase_add_test(tcase, killed_at_each_step);
	tcase_add_test(tcase, size_limit);
	tcase_add_test(tcase, hash_options);
	tcase_add_test(tcase, equal_keys);
	tcase_add_test(tcase, large_header);
	tcase_add_test(tcase, few_pairs);
	suite_add_tcase(suite, tcase);
	if (deep) {
		tcase = tcase_create("deep");
		tcase_set_timeout(tcase, 1200);
		tcase_add_test(tcase, killed_at_any_time);
		suite_add_tcase(suite, tcase);
	}
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
