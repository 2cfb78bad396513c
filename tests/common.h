/* SPDX-License-Identifier: MIT */
/*
 * What every suite shares. A program is one suite on one backend: TEST_CUDA decides which.
 *
 * Environment: CUA_REQUIRE_GPU=1 turns the skip of a GPU suite into a failure, CUA_TEST_SEED=N replays a
 * run, also the seeds that maps draw (CUATOMIC_HASH_SEED=N replays those alone), CUA_TEST_QUICK=1 shrinks sizes (for
 * tools that slow the program down), CUA_TEST_TOOL names such a tool.
 */
#ifndef CUATOMIC_TESTS_COMMON_H
#define CUATOMIC_TESTS_COMMON_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

/* Whether this is a build with a sanitizer that ends the program, or warns, when memory runs out. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if TEST_CUDA
#define TEST_BACKEND CUA_BACKEND_CUDA
#else
#define TEST_BACKEND CUA_BACKEND_CPU
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Runs the suite and returns what main shall return: 77 (skipped) when the backend is CUDA and there
 * is no device. The parent process never touches CUDA, which a forked test could not use afterwards.
 */
int test_run(Suite *suite, enum cua_backend backend);

/* A context on the backend of the program; fails the test if there is none. */
struct cua_context *test_context(enum cua_backend backend);

/*
 * Memory of the context's backend, filled from or read back to host memory. They fail the test.
 * test_alloc fills small buffers with 0xa5 bytes, so that what a call does not write is known.
 */
void *test_alloc(struct cua_context *ctx, size_t bytes);
void *test_upload(struct cua_context *ctx, const void *host, size_t bytes);
void test_download(struct cua_context *ctx, void *host, const void *p, size_t bytes);
void test_free(struct cua_context *ctx, void *p);

/* Host memory that is not NULL. */
void *test_malloc(size_t bytes);

/* 1 when sizes shall be small. */
int test_quick(void);
/* 1 under this tool of compute-sanitizer, as CUA_TEST_TOOL names it. */
int test_under(const char *tool);
/* 1 under any of them: each call costs a hundredfold, so there shall be few. */
int test_traced(void);

/* The seed of this test, printed once: CUA_TEST_SEED, else one from the clock. */
uint64_t test_seed(const char *test);
/* The next number of a splitmix64 sequence. */
uint64_t test_random(uint64_t *state);

#define ck_assert_status(expression, expected)                                                     \
	do {                                                                                       \
		enum cua_status test__status = (expression);                                       \
		ck_assert_msg(test__status == (expected), "%s: %s, expected %s", #expression,      \
			      cua_status_name(test__status), cua_status_name(expected));           \
	} while (0)
#define ck_assert_cua(expression) ck_assert_status(expression, CUA_OK)

/* Cheaper than ck_assert where it is asked very often. */
#define EXPECT(condition, ...)                                                                     \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg(__VA_ARGS__);                                                 \
	} while (0)

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_TESTS_COMMON_H */
