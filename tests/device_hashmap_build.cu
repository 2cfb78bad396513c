/* SPDX-License-Identifier: MIT */
/*
 * build_n and large insert_n of the hash map in graphs, with a workspace that is large enough for
 * regions, and with a smaller workspace.
 */
#include "device.h"

enum { N = 300000 };

/*
 * N distinct keys that differ from round to round. Key number 0 of round 0 is the key 0. The value
 * of a key is its complement.
 */
static __global__ void fill(uint32_t *keys, uint32_t *values, uint32_t round)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < N;
	     i += gridDim.x * blockDim.x) {
		keys[i] = (round * N + i) * 2654435761u;
		values[i] = ~keys[i];
	}
}

static __global__ void count_wrong(const uint32_t *keys, const uint32_t *values,
				   const uint8_t *found, unsigned long long *wrong)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
		if (!found[i] || values[i] != ~keys[i])
			atomicAdd(wrong, 1ull);
}

START_TEST(test_graph)
{
	static const size_t workspaces[2] = {0, (size_t)64 << 20};
	/* racecheck takes minutes for each round */
	const uint32_t rounds = test_under("racecheck") ? 1 : 3;
	uint32_t *keys, *values, *got;
	unsigned long long *wrong, host_wrong;
	uint8_t *found;
	cudaStream_t stream;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaMalloc((void **)&keys, N * sizeof(*keys)));
	ck_assert_cuda(cudaMalloc((void **)&values, N * sizeof(*values)));
	ck_assert_cuda(cudaMalloc((void **)&got, N * sizeof(*got)));
	ck_assert_cuda(cudaMalloc((void **)&found, N));
	ck_assert_cuda(cudaMalloc((void **)&wrong, sizeof(*wrong)));
	for (int w = 0; w < 2; w++) {
		struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
		struct cua_hashmap *map = NULL;
		cudaGraph_t graph;
		cudaGraphExec_t exec;

		if (workspaces[w])
			ck_assert_cua(cua_context_reserve(ctx, workspaces[w]));
		ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U32, N * 5 / 4, &map));
		ck_assert_cuda(cudaDeviceSynchronize());
		ck_assert_cua(cua_context_set_stream(ctx, stream));
		ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		ck_assert_cua(cua_hashmap_build_n(map, N, keys, values, NULL));
		ck_assert_cua(cua_hashmap_insert_n(map, N, keys, keys, NULL));
		ck_assert_cua(cua_hashmap_find_n(map, N, keys, got, found));
		ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
		ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
		for (uint32_t round = 0; round < rounds; round++) {
			uint64_t size = 0;

			fill<<<64, 256, 0, stream>>>(keys, values, round);
			ck_assert_cuda(cudaMemsetAsync(found, 0, N, stream));
			ck_assert_cuda(cudaMemsetAsync(wrong, 0, sizeof(*wrong), stream));
			ck_assert_cuda(cudaGraphLaunch(exec, stream));
			count_wrong<<<64, 256, 0, stream>>>(keys, got, found, wrong);
			ck_assert_cuda(cudaStreamSynchronize(stream));
			ck_assert_cuda(cudaMemcpy(&host_wrong, wrong, sizeof(host_wrong),
						  cudaMemcpyDeviceToHost));
			ck_assert_uint_eq(host_wrong, 0);
			ck_assert_cua(cua_hashmap_size(map, &size));
			ck_assert_uint_eq(size, N);
			ck_assert_cua(cua_hashmap_status(map));
		}
		ck_assert_cuda(cudaGraphExecDestroy(exec));
		ck_assert_cuda(cudaGraphDestroy(graph));
		ck_assert_cua(cua_hashmap_destroy(map));
		cua_context_destroy(ctx);
	}
	ck_assert_cuda(cudaFree(keys));
	ck_assert_cuda(cudaFree(values));
	ck_assert_cuda(cudaFree(got));
	ck_assert_cuda(cudaFree(found));
	ck_assert_cuda(cudaFree(wrong));
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_hashmap_build");
	TCase *tc = tcase_create("device_hashmap_build");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_graph);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CUDA);
}
