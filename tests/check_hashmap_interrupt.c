/* SPDX-License-Identifier: MIT */
/*
 * Saves of hash maps that are interrupted: temporary files of dead processes, a process killed at
 * each of its system calls, and the limit of file sizes.
 *
 *   CUA_TEST_DEEP=1   many kills at random moments as well
 */
#include "hashmap_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- temporary files of earlier processes ---- */

#define A_NAME ".cuamap-%032x.tmp"

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
	char name[300], live[300];
	int wait_status = 0, other;
	struct stat st;
	pid_t child;

	ck_assert_int_eq(chmod(fixture.folder, 0777), 0);
	/* the largest number of files with this process id */
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "cuamap.%ld.%d.tmp", (long)getpid(), i);
		make_file(name, 0600);
	}
	ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
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
	ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
	ck_assert_int_eq(test_files_in("."), 1);
	/* killed during the save */
	for (int i = 1; i <= 3; i++) {
		child = saver(60, 0, 0, i);
		ck_assert_int_eq(waitpid(child, &wait_status, WUNTRACED), child);
		ck_assert(WIFSTOPPED(wait_status));
		ck_assert_int_eq(temporaries(live), 1);
		/* the file of a living writer stays, and its save succeeds */
		ck_assert_cua(cua_hashmap_save(fixture.map, "b"));
		ck_assert_int_eq(temporaries(name), 1);
		ck_assert_str_eq(name, live);
		if (i == 2) {
			ck_assert_int_eq(kill(child, SIGCONT), 0);
			ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
			ck_assert(WIFEXITED(wait_status) && !WEXITSTATUS(wait_status));
			ck_assert_uint_eq(size_of_file("a"), 60);
		} else {
			ck_assert_int_eq(kill(child, SIGKILL), 0);
			ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
			ck_assert_int_eq(temporaries(name), 1);
			ck_assert_cua(cua_hashmap_save(fixture.map, "b"));
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
	ck_assert_cua(cua_hashmap_save(fixture.map, "b"));
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
}
END_TEST

/* ---- killed ---- */

/*
 * A kill before and after each system call of a save leaves the old or the new file, and the next
 * save removes the temporary file.
 */
START_TEST(killed_at_each_step)
{
	long steps[2];

	for (int exists = 0; exists < 2; exists++) {
		int killed = 1, was_new = 0, left = 0;

		for (steps[exists] = 0; killed; steps[exists]++) {
			int wait_status = 0, there;
			struct stat st;
			pid_t child;

			unlink("a");
			if (exists)
				ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
			child = saver(60, steps[exists] + 1, SIGKILL, 0);
			ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
			killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
			ck_assert(killed || (WIFEXITED(wait_status) && !WEXITSTATUS(wait_status)));
			there = !lstat("a", &st);
			left += test_files_in(".") - there;
			if (there) {
				uint64_t n = size_of_file("a");

				ck_assert(n == 60 || (exists && n == FIXTURE_KEYS));
				/* after the rename, every file is the new one */
				ck_assert(!was_new || n == 60);
				was_new = n == 60;
			} else {
				ck_assert(!exists && !was_new);
			}
			ck_assert_cua(cua_hashmap_save(fixture.map, "b"));
			ck_assert_int_eq(test_files_in("."), 1 + there);
		}
		ck_assert(was_new);
		/* kills between these steps left temporary files */
		ck_assert_int_ge(left, 6);
		ck_assert_int_ge(steps[exists], 16);
	}
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
}
END_TEST

/* Kills at random moments, with a file of many writes. */
START_TEST(killed_at_any_time)
{
	uint64_t seed = test_seed("killed_at_any_time"), n = 0;
	const uint32_t size = test_quick() ? 100000 : 2000000;
	int killed = 0, new = 0, ended = 0;

	for (int i = 0; i < 300; i++) {
		int wait_status = 0, ready[2];
		pid_t child;
		char byte;

		ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
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
		n = size_of_file("a");
		ck_assert(n == FIXTURE_KEYS || n == size);
		new += n == size;
		ck_assert_cua(cua_hashmap_save(fixture.map, "b"));
		ck_assert_int_eq(test_files_in("."), 2);
	}
	printf("killed_at_any_time: %d killed, %d ended, %d new files\n", killed, ended, new);
	ck_assert_int_eq(unlink("a") | unlink("b"), 0);
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
	struct cua_hashmap *more = map_of(fixture.ctx, 60, NULL);
	sigset_t set, mask, pending;
	struct rlimit old, limit;

	ck_assert_cua(cua_hashmap_save(fixture.map, "a"));
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	for (int how = 0; how < 3; how++)
		for (rlim_t at = 0; at < HEADER_BYTES + 60 * 8; at += 44) {
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
			ck_assert_uint_eq(size_of_file("a"), FIXTURE_KEYS);
		}
	/* the pending signal is delivered here and ignored */
	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	ck_assert_int_eq(unlink("a"), 0);
	ck_assert_cua(cua_hashmap_destroy(more));
}
END_TEST

static Suite *make_suite(void)
{
	const int deep = test_deep();
	Suite *suite = suite_create("hashmap_interrupt");
	TCase *tcase = files_tcase("hashmap_interrupt");

	tcase_add_test(tcase, leftovers);
	tcase_add_test(tcase, killed_at_each_step);
	tcase_add_test(tcase, size_limit);
	suite_add_tcase(suite, tcase);
	if (deep) {
		tcase = files_tcase("deep");
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
