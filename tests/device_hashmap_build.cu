/* SPDX-License-Identifier: MIT */
/*
 * build_n, and large insert_n and update_n of the hash map, in graphs, with a workspace that is
 * large enough for regions, and with a smaller workspace. update_n also beside lanes that update the
 * same keys.
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

/* ---- updates ---- */

enum { UPDATES = 1 << 20, KEYS = 70001 };

CUA_DEFINE_HASHMAP(counter, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_UPDATE(count, counter, old + operand)

static __global__ void draw(uint32_t *keys)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < UPDATES;
	     i += gridDim.x * blockDim.x)
		keys[i] = i % KEYS * 2654435761u;
}

/* Adds 1 to the values of the first n keys. */
static __global__ void count_by_lanes(const struct cua_hashmap_view view, const uint32_t *keys,
				      uint32_t n)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		(void)count(&view, keys[i], 1);
}

/* Each of the first KEYS keys must have the value `all` times its number among the UPDATES. */
static __global__ void count_wrong_sums(const uint32_t *values, const uint8_t *found, uint32_t all,
					unsigned long long *wrong)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < KEYS;
	     i += gridDim.x * blockDim.x)
		if (!found[i] || values[i] != all * (UPDATES / KEYS + (i < UPDATES % KEYS)))
			atomicAdd(wrong, 1ull);
}

static void expect_sums(struct cua_hashmap *map, cudaStream_t stream, const uint32_t *keys,
			uint32_t all)
{
	unsigned long long *wrong, host_wrong;
	uint64_t size = 0;
	uint32_t *values;
	uint8_t *found;

	ck_assert_cuda(cudaMalloc((void **)&values, KEYS * sizeof(*values)));
	ck_assert_cuda(cudaMalloc((void **)&found, KEYS));
	ck_assert_cuda(cudaMalloc((void **)&wrong, sizeof(*wrong)));
	ck_assert_cuda(cudaMemsetAsync(wrong, 0, sizeof(*wrong), stream));
	ck_assert_cua(cua_hashmap_find_n(map, KEYS, keys, values, found));
	count_wrong_sums<<<64, 256, 0, stream>>>(values, found, all, wrong);
	ck_assert_cuda(cudaStreamSynchronize(stream));
	ck_assert_cuda(cudaMemcpy(&host_wrong, wrong, sizeof(host_wrong), cudaMemcpyDeviceToHost));
	ck_assert_uint_eq(host_wrong, 0);
	ck_assert_cua(cua_hashmap_size(map, &size));
	ck_assert_uint_eq(size, KEYS);
	ck_assert_cua(cua_hashmap_status(map));
	ck_assert_cuda(cudaFree(values));
	ck_assert_cuda(cudaFree(found));
	ck_assert_cuda(cudaFree(wrong));
}

START_TEST(test_update_graph)
{
	const uint32_t rounds = test_under("racecheck") ? 1 : 3;
	const uint32_t one = 1;
	cudaStream_t stream;
	uint32_t *keys;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaMalloc((void **)&keys, UPDATES * sizeof(*keys)));
	draw<<<256, 256, 0, stream>>>(keys);
	for (int w = 0; w < 2; w++) {
		struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
		struct cua_hashmap *map = NULL;
		cudaGraph_t graph;
		cudaGraphExec_t exec;
		size_t bytes;

		ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U32, 2 * KEYS, &map));
		ck_assert_cua(cua_hashmap_build_workspace(map, UPDATES, &bytes));
		ck_assert_uint_gt(bytes, UPDATES * 16);
		if (w)
			ck_assert_cua(cua_context_reserve(ctx, bytes));
		ck_assert_cuda(cudaDeviceSynchronize());
		ck_assert_cua(cua_context_set_stream(ctx, stream));
		ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		ck_assert_cua(
			cua_hashmap_update_value_n(map, CUA_UPDATE_ADD, UPDATES, keys, &one, NULL));
		ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
		ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
		for (uint32_t round = 1; round <= rounds; round++) {
			ck_assert_cuda(cudaGraphLaunch(exec, stream));
			expect_sums(map, stream, keys, round);
		}
		ck_assert_cuda(cudaGraphExecDestroy(exec));
		ck_assert_cuda(cudaGraphDestroy(graph));
		ck_assert_cua(cua_hashmap_destroy(map));
		cua_context_destroy(ctx);
	}
	ck_assert_cuda(cudaFree(keys));
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/* Bulk calls that combine equal keys, and a kernel in another stream that updates the same keys. */
START_TEST(test_update_beside_lanes)
{
	const uint32_t calls = test_under("racecheck") ? 1 : 4;
	const uint32_t one = 1;
	cudaStream_t streams[2];
	uint32_t *keys;

	for (cudaStream_t &stream : streams)
		ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cuda(cudaMalloc((void **)&keys, UPDATES * sizeof(*keys)));
	draw<<<256, 256, 0, streams[0]>>>(keys);
	ck_assert_cuda(cudaStreamSynchronize(streams[0]));
	for (int no_erase = 0; no_erase < 2; no_erase++) {
		struct cua_hashmap_options o = CUA_HASHMAP_OPTIONS_INIT;
		struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
		struct cua_hashmap_view view;
		struct cua_hashmap *map;

		o.no_erase = (uint32_t)no_erase;
		ck_assert_cua(cua_hashmap_create(ctx, &o, CUA_U32, CUA_U32, KEYS * 5 / 4, &map));
		ck_assert_cua(cua_hashmap_get_view(map, &view));
		ck_assert_cuda(cudaDeviceSynchronize());
		ck_assert_cua(cua_context_set_stream(ctx, streams[0]));
		count_by_lanes<<<24, 128, 0, streams[1]>>>(view, keys, UPDATES);
		for (uint32_t i = 0; i < calls; i++)
			ck_assert_cua(cua_hashmap_update_value_n(map, CUA_UPDATE_ADD, UPDATES, keys,
								 &one, NULL));
		ck_assert_cuda(cudaStreamSynchronize(streams[1]));
		expect_sums(map, streams[0], keys, calls + 1);
		ck_assert_cua(cua_hashmap_destroy(map));
		cua_context_destroy(ctx);
	}
	ck_assert_cuda(cudaFree(keys));
	for (cudaStream_t stream : streams)
		ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_hashmap_build");
	TCase *tc = tcase_create("device_hashmap_build");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_update_graph);
	tcase_add_test(tc, test_update_beside_lanes);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CUDA);
}
