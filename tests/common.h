/* SPDX-License-Identifier: MIT */
/*
 * Functions shared by all test suites. A program runs a suite on a single backend, selected by
 * TEST_CUDA.
 *
 * Environment:
 *   CUA_REQUIRE_GPU=1   a GPU suite fails, instead of being skipped, if there is no GPU
 *   CUA_TEST_SEED=N     replays a run, including the seeds that maps draw
 *                       (CUATOMIC_HASH_SEED=N replays only the maps' seeds)
 *   CUA_TEST_QUICK=1    smaller sizes, for tools that slow the program down
 *   CUA_TEST_TOOL=NAME  the tool of compute-sanitizer that runs the program, or "model" for a slow suite on the model
 *                       of GPUs
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

/* 1 in a build with a sanitizer that aborts, or warns, if an allocation fails. */
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

/* 1 if the devices of the CUDA backend are a model (cuda_model.h). */
#ifndef TEST_MODEL
#define TEST_MODEL 0
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
 * Runs the suite and returns the exit status of main: 77 (skipped) if the backend is CUDA and there
 * is no device. The parent process never uses CUDA, because then its forked tests could not use
 * CUDA.
 */
int test_run(Suite *suite, enum cua_backend backend);

/* Creates a context on a backend. Fails the test on an error. */
struct cua_context *test_context(enum cua_backend backend);

/*
 * Memory of the context's backend, and copies from and to host memory. An error fails the test.
 * test_alloc fills small buffers with 0xa5 bytes, so that tests can check the bytes that a call
 * does not write.
 */
void *test_alloc(struct cua_context *ctx, size_t bytes);
void *test_upload(struct cua_context *ctx, const void *host, size_t bytes);
void test_download(struct cua_context *ctx, void *host, const void *p, size_t bytes);
void test_free(struct cua_context *ctx, void *p);

/* Host memory, aligned to 128 bytes. A failure fails the test. */
void *test_malloc(size_t bytes);

/*
 * Creates an empty folder of this test alone in TMPDIR or /tmp, and makes it the working directory.
 * test_leave_folder expects that it is empty again, and removes it. test_files_in counts the
 * entries of a folder.
 */
#define TEST_PATH_BYTES 4096
void test_enter_folder(char folder[TEST_PATH_BYTES]);
int test_files_in(const char *folder);
void test_leave_folder(const char *folder);

/* 1 if sizes shall be small. */
int test_quick(void);
/* 1 in `make check-deep`, which sets CUA_TEST_DEEP. */
int test_deep(void);
/* quick with CUA_TEST_QUICK, full with CUA_TEST_FULL, otherwise normal. */
int test_scale(int quick, int normal, int full);
/* 1 if CUA_TEST_TOOL is this name. */
int test_under(const char *tool);
/* 1 if CUA_TEST_TOOL is set: each call takes about 100 times as long, so make few calls. */
int test_traced(void);

/* Returns and prints the seed of this test: CUA_TEST_SEED, else a seed from the clock. */
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

/* In suites that include the header of the CUDA runtime. */
#define ck_assert_cuda(expression)                                                                 \
	do {                                                                                       \
		cudaError_t test__error = (expression);                                            \
		ck_assert_msg(test__error == cudaSuccess, "%s: %s", #expression,                   \
			      cudaGetErrorString(test__error));                                    \
	} while (0)

/* Cheaper than ck_assert, for conditions in hot loops. */
#define EXPECT(condition, ...)                                                                     \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg(__VA_ARGS__);                                                 \
	} while (0)

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_TESTS_COMMON_H */
