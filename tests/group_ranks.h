/* SPDX-License-Identifier: MIT */
/*
 * The contexts of a group's ranks. On the CUDA backend the ranks use the devices in turn, each with its
 * own stream, so a single device can have all ranks.
 */
#ifndef CUATOMIC_TESTS_GROUP_RANKS_H
#define CUATOMIC_TESTS_GROUP_RANKS_H

#include "common.h"
#include "thread_transport.h"

#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

#define MOST_RANKS 20
static const uint32_t sizes[] = {1, 2, 3, 4, 5, 8};

static inline struct cua_context *rank_context(uint32_t rank)
{
	struct cua_context *ctx;
	int devices = 1;
#if TEST_CUDA
	cudaStream_t stream;
#endif

	ck_assert_cua(cua_device_count(TEST_BACKEND, &devices));
	ck_assert_cua(cua_context_create(TEST_BACKEND, (int)rank % devices, &ctx));
	ck_assert_cua(cua_context_set_threads(ctx, 1 + rank % 3));
#if TEST_CUDA
	ck_assert_cuda(cudaSetDevice((int)rank % devices));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaSetDevice(0));
	ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)stream));
#endif
	return ctx;
}

static inline void rank_context_destroy(struct cua_context *ctx)
{
#if TEST_CUDA
	cudaStream_t stream = (cudaStream_t)cua_context_stream(ctx);
#endif

	cua_context_destroy(ctx);
#if TEST_CUDA
	if (stream)
		ck_assert_cuda(cudaStreamDestroy(stream));
#endif
}

#endif /* CUATOMIC_TESTS_GROUP_RANKS_H */
