/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define POISON_MOST ((size_t)64 << 20)

/*
 * Whether a context can be created. A child process tests this, so that the parent never uses CUDA.
 */
static int backend_works(enum cua_backend backend)
{
	int wait_status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct cua_context *ctx;

		_exit(cua_context_create(backend, 0, &ctx) == CUA_OK ? 0 : 1);
	}
	return child > 0 && waitpid(child, &wait_status, 0) == child && WIFEXITED(wait_status) &&
	       WEXITSTATUS(wait_status) == 0;
}

static uint64_t test_clock_seed(void)
{
	return (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
}

int test_run(Suite *suite, enum cua_backend backend)
{
	SRunner *runner = srunner_create(suite);
	const char *require = getenv("CUA_REQUIRE_GPU"), *given = getenv("CUA_TEST_SEED");
	char seed[24];
	int failed;

	/* a replay also needs the seeds that maps draw at random */
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)(test_clock_seed() | 1));
	setenv("CUATOMIC_HASH_SEED", given ? given : seed, 0);
	printf("CUATOMIC_HASH_SEED=%s\n", getenv("CUATOMIC_HASH_SEED"));
	fflush(stdout);
	if (backend == CUA_BACKEND_CUDA && !backend_works(backend)) {
		int required = require && *require && strcmp(require, "0");

		printf("%s: no CUDA device\n", required ? "failed" : "skipped");
		srunner_free(runner);
		return required ? EXIT_FAILURE : EXIT_SKIP;
	}
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

struct cua_context *test_context(enum cua_backend backend)
{
	struct cua_context *ctx = NULL;

	ck_assert_cua(cua_context_create(backend, 0, &ctx));
	return ctx;
}

void *test_alloc(struct cua_context *ctx, size_t bytes)
{
	static const uint8_t poison = 0xa5;
	void *p = NULL;

	ck_assert_cua(cua_alloc(ctx, 1, bytes, &p));
	if (bytes <= POISON_MOST)
		ck_assert_cua(cua_fill(ctx, p, bytes, sizeof(poison), &poison));
	return p;
}

void *test_upload(struct cua_context *ctx, const void *host, size_t bytes)
{
	void *p = test_alloc(ctx, bytes);

	ck_assert_cua(cua_copy(ctx, p, host, bytes));
	ck_assert_cua(cua_context_synchronize(ctx));
	return p;
}

void test_download(struct cua_context *ctx, void *host, const void *p, size_t bytes)
{
	ck_assert_cua(cua_copy(ctx, host, p, bytes));
	ck_assert_cua(cua_context_synchronize(ctx));
}

void test_free(struct cua_context *ctx, void *p)
{
	ck_assert_cua(cua_free(ctx, p));
}

void *test_malloc(size_t bytes)
{
	void *p = NULL;

	/* Enough for every type of the library: malloc promises no more than 16 bytes. */
	ck_assert_int_eq(posix_memalign(&p, 128, bytes ? bytes : 1), 0);
	return p;
}

static int is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0");
}

int test_quick(void)
{
	return is_set("CUA_TEST_QUICK");
}

int test_deep(void)
{
	return is_set("CUA_TEST_DEEP");
}

int test_scale(int quick, int normal, int full)
{
	return test_quick() ? quick : is_set("CUA_TEST_FULL") ? full : normal;
}

int test_under(const char *tool)
{
	const char *name = getenv("CUA_TEST_TOOL");

	return name && !strcmp(name, tool);
}

int test_traced(void)
{
	const char *name = getenv("CUA_TEST_TOOL");

	return name && *name;
}

uint64_t test_seed(const char *test)
{
	const char *given = getenv("CUA_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : test_clock_seed();

	printf("%s: CUA_TEST_SEED=%llu\n", test, (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

uint64_t test_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void test_enter_folder(char folder[TEST_PATH_BYTES])
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(folder, TEST_PATH_BYTES, "%s/cuatomic-test.XXXXXX",
			 tmp && *tmp ? tmp : "/tmp");

	ck_assert_int_lt(n, TEST_PATH_BYTES);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
	umask(022);
}

int test_files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

void test_leave_folder(const char *folder)
{
	ck_assert_int_eq(test_files_in("."), 0);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}
