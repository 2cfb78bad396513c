/* SPDX-License-Identifier: MIT */
#undef _FORTIFY_SOURCE /* its inline functions would conflict with the definitions below */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hashmap_files.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEEDED (O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)

/* ---- the system calls ---- */

struct call_watch watch;

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

static int watched_open(int folder, const char *path, int flags, mode_t mode)
{
	REAL(int, openat, int, const char *, int, ...);
	struct stat st;
	int fd;

	step();
	fd = real(folder, path, flags, mode);
	if (watch.on && fd >= 0 && fd < WATCHED_FDS) {
		watch.made[fd] = (flags & O_CREAT) != 0;
		watch.flags[fd] = flags;
		watch.modes[fd] = fstat(fd, &st) ? 07777 : st.st_mode & 07777;
		snprintf(watch.names[fd], sizeof(watch.names[fd]), "%s", path);
	}
	step();
	return fd;
}

/* Sets mode to the argument after flags, or to 0 if the call does not create a file. */
#define GET_MODE(mode, flags)                                                                      \
	do {                                                                                       \
		va_list list;                                                                      \
                                                                                                   \
		va_start(list, flags);                                                             \
		mode = (flags)&O_CREAT ? va_arg(list, mode_t) : 0;                                 \
		va_end(list);                                                                      \
	} while (0)

EXPORTED int open(const char *path, int flags, ...)
{
	mode_t mode;

	GET_MODE(mode, flags);
	return watched_open(AT_FDCWD, path, flags, mode);
}

EXPORTED int openat(int folder, const char *path, int flags, ...)
{
	mode_t mode;

	GET_MODE(mode, flags);
	return watched_open(folder, path, flags, mode);
}

EXPORTED ssize_t write(int fd, const void *bytes, size_t n)
{
	REAL(ssize_t, write, int, const void *, size_t);
	ssize_t done;

	if (watch.on && fd >= 0 && fd < WATCHED_FDS && watch.made[fd]) {
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

void watch_on(void)
{
	memset(&watch, 0, sizeof(watch));
	watch.most_read = 64 << 20;
	watch.on = 1;
}

/* ---- the fixture ---- */

struct files_fixture fixture;

static void setup(void)
{
	fixture.ctx = test_context(TEST_BACKEND);
	fixture.map = map_of(fixture.ctx, FIXTURE_KEYS, NULL);
	test_enter_folder(fixture.folder);
}

static void teardown(void)
{
	test_leave_folder(fixture.folder);
	ck_assert_cua(cua_hashmap_destroy(fixture.map));
	cua_context_destroy(fixture.ctx);
}

TCase *files_tcase(const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, setup, teardown);
	return tcase;
}

/* ---- files ---- */

void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "before", 6), 6);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

/* ---- maps ---- */

struct cua_hashmap *map_of(struct cua_context *ctx, uint32_t n,
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

uint64_t size_of_file(const char *path)
{
	struct cua_hashmap *map;
	uint64_t n = 0, sum = 0;

	ck_assert_cua(cua_hashmap_load(fixture.ctx, NULL, path, &map));
	ck_assert_cua(cua_hashmap_size(map, &n));
	ck_assert_cua(cua_hashmap_for_each(map, adds_up, &sum));
	ck_assert_uint_eq(sum, n * (n + 1) / 2);
	ck_assert_cua(cua_hashmap_destroy(map));
	return n;
}

/* ---- users ---- */

static int became_other_user(void)
{
	return !setgroups(0, NULL) && !setgid(OTHER_USER) && !setuid(OTHER_USER);
}

int as_other_user(int (*fn)(void))
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
