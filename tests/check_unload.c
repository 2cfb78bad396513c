/* SPDX-License-Identifier: MIT */
/*
 * A program that loads, uses and unloads the library many times. Nothing remains: neither memory
 * nor fork handlers in unmapped code. The program is not linked with the library.
 */
#include <check.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuatomic.h>

#define ROUNDS 100
#define N 300000u

static char path[4096];
static uint64_t x[N];

struct calls {
	void *library;
	__typeof__(&cua_context_create) create;
	__typeof__(&cua_context_set_threads) set_threads;
	__typeof__(&cua_context_destroy) destroy;
	__typeof__(&cua_alloc_zero) alloc_zero;
	__typeof__(&cua_free) free;
	__typeof__(&cua_reduce) reduce;
	__typeof__(&cua_hashmap_create) map_create;
	__typeof__(&cua_hashmap_insert_n) map_insert;
	__typeof__(&cua_hashmap_destroy) map_destroy;
};

static void find(const struct calls *c, const char *name, void *to)
{
	void *symbol = dlsym(c->library, name);

	ck_assert_msg(symbol != NULL, "%s is not there", name);
	memcpy(to, &symbol, sizeof(symbol));
}

static void load(struct calls *c)
{
	c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(c->library != NULL, "%s", dlerror());
	find(c, "cua_context_create", &c->create);
	find(c, "cua_context_set_threads", &c->set_threads);
	find(c, "cua_context_destroy", &c->destroy);
	find(c, "cua_alloc_zero", &c->alloc_zero);
	find(c, "cua_free", &c->free);
	find(c, "cua_reduce", &c->reduce);
	find(c, "cua_hashmap_create", &c->map_create);
	find(c, "cua_hashmap_insert_n", &c->map_insert);
	find(c, "cua_hashmap_destroy", &c->map_destroy);
}

static void unload(struct calls *c)
{
	void *still;

	ck_assert_int_eq(dlclose(c->library), 0);
	still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	ck_assert_msg(!still, "the library stays loaded");
}

/* Uses memory, helpers and a map; other threads use their own contexts. */
static void *use(void *arg)
{
	const struct calls *c = arg;
	struct cua_context *ctx;
	struct cua_hashmap *map;
	uint64_t sum = 1;
	void *p[100];

	if (c->create(CUA_BACKEND_CPU, 0, &ctx) || c->set_threads(ctx, 2))
		return arg;
	/* so many that the table of allocations grows */
	for (int i = 0; i < 100; i++)
		if (c->alloc_zero(ctx, 1, 64, &p[i]))
			return arg;
	if (c->reduce(ctx, NULL, CUA_REDUCE_SUM, CUA_U64, N, x, NULL, &sum) || sum)
		return arg;
	if (c->map_create(ctx, NULL, CUA_U64, CUA_U64, 1000, &map) ||
	    c->map_insert(map, 1000, x, x, NULL) || c->map_destroy(map))
		return arg;
	for (int i = 0; i < 100; i++)
		if (c->free(ctx, p[i]))
			return arg;
	c->destroy(ctx);
	return NULL;
}

static void once(int threads)
{
	struct calls c;
	pthread_t thread[3];
	void *failed;

	load(&c);
	for (int i = 1; i < threads; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, use, &c), 0);
	ck_assert_ptr_null(use(&c));
	for (int i = 1; i < threads; i++) {
		pthread_join(thread[i], &failed);
		ck_assert_ptr_null(failed);
	}
	unload(&c);
}

static size_t in_use(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
	return mallinfo2().uordblks;
#else
	return 0; /* only a sanitizer can detect leaks here */
#endif
}

/* The system's own structures grow at first, then no more. */
START_TEST(memory)
{
	size_t before, after;

	for (int i = 0; i < 20; i++)
		once(1);
	before = in_use();
	for (int i = 0; i < ROUNDS; i++)
		once(1);
	after = in_use();
	ck_assert_msg(after < before + ROUNDS * 100, "%zu bytes stay after each of %d rounds",
		      (after - before) / ROUNDS, ROUNDS);
}
END_TEST

START_TEST(threads)
{
	for (int i = 0; i < 20; i++)
		once(3);
}
END_TEST

/* The fork handlers are removed with the code. While the library is loaded, a child can use it. */
START_TEST(forks)
{
	struct calls c;
	int status;
	pid_t child;

	for (int i = 0; i < 5; i++) {
		load(&c);
		ck_assert_ptr_null(use(&c));
		child = fork();
		if (!child)
			_exit(use(&c) ? 1 : 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
		unload(&c);
		child = fork();
		if (!child)
			_exit(3);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(WEXITSTATUS(status), 3);
	}
}
END_TEST

/* The library may be unloaded while a context and an allocation exist; both are then lost. */
START_TEST(early)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct calls c;
		struct cua_context *ctx;
		void *p;

		load(&c);
		if (c.create(CUA_BACKEND_CPU, 0, &ctx) || c.alloc_zero(ctx, 1, 64, &p))
			_exit(1);
		_exit(dlclose(c.library) ? 2 : 0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* The CUDA runtime keeps resources of its first load and starts only once in a process. */
static int has_cuda(void)
{
	const char *(*architectures)(void) = NULL;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *symbol = library ? dlsym(library, "cua_cuda_architectures") : NULL;
	int has = 0;

	if (symbol) {
		memcpy(&architectures, &symbol, sizeof(symbol));
		has = *architectures() != 0;
	}
	if (library)
		dlclose(library);
	return has;
}

int main(void)
{
	const char *top = getenv("top_builddir");
	SRunner *runner;
	Suite *suite;
	TCase *tc;
	int failed;

	snprintf(path, sizeof(path), "%s/lib/.libs/libcuatomic.so", top ? top : "..");
	if (access(path, R_OK)) {
		printf("skipped: there is no %s\n", path);
		return 77;
	}
	if (has_cuda()) {
		printf("skipped: this build has the CUDA runtime\n");
		return 77;
	}
	suite = suite_create("unload");
	tc = tcase_create("unload");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, memory);
	tcase_add_test(tc, threads);
	tcase_add_test(tc, forks);
	tcase_add_test(tc, early);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
