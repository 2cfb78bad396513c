/* SPDX-License-Identifier: MIT */
/* The reductions inside kernels, and the bulk calls in graphs. */
#include "device.h"

static void *device_zeros(size_t bytes)
{
	void *p = NULL;

	ck_assert_cuda(cudaMalloc(&p, bytes));
	ck_assert_cuda(cudaMemset(p, 0, bytes));
	return p;
}

static const enum cua_finish_mode modes[] = {CUA_FINISH_LAST_BLOCK, CUA_FINISH_ATOMIC,
					     CUA_FINISH_LOCK, CUA_FINISH_ORDERED_LOCK};

/* ---- operations of a user ---- */

/* Affine maps modulo 2^32, composed in sequence: associative, but not commutative. */
struct affine {
	uint32_t scale, shift;
};

CUA_FN struct affine affine_make(uint32_t scale, uint32_t shift)
{
	struct affine v;

	v.scale = scale;
	v.shift = shift;
	return v;
}

CUA_FN struct affine affine_after(struct affine a, struct affine b)
{
	return affine_make(a.scale * b.scale, a.shift * b.scale + b.shift);
}

/* A different value for each i; the scale is odd, hence invertible. */
CUA_FN struct affine affine_of(uint32_t i)
{
	return affine_make(i * 2 + 3, i * 40503u + 11);
}

CUA_FN int affine_same(struct affine a, struct affine b)
{
	return a.scale == b.scale && a.shift == b.shift;
}

CUA_DEFINE_REDUCE(affine, struct affine, affine_after(a, b))
CUA_DEFINE_FINISH(affine, struct affine, affine_make(1, 0))

CUA_DEFINE_REDUCE(product, uint16_t, (uint16_t)((unsigned)a *b))
CUA_DEFINE_FINISH(product, uint16_t, 1)

/* ---- blocks ---- */

/*
 * Every thread compares every result with its own count. All calls in sequence use the same
 * scratch. Thread t has the value t + 1; sums are exact in all types.
 */
static __global__ void __launch_bounds__(1024) check_block(uint32_t *wrong, int all_n)
{
	__shared__ struct cua_block_scratch scratch;
	const uint32_t size = cua_port_block_size(), t = cua_port_thread();
	const uint32_t total = size * (size + 1) / 2;
	struct affine expected = affine_of(0);
	uint32_t bad = 0, n;

	bad += cua_block_sum_u32(t + 1, &scratch) != total;
	bad += cua_block_min_u32(size + 7 - t, &scratch) != 8;
	bad += cua_block_max_u32(t * 3, &scratch) != (size - 1) * 3;
	bad += cua_block_sum_i32(-(int32_t)t - 1, &scratch) != -(int32_t)total;
	bad += cua_block_min_i32(5 - (int32_t)t, &scratch) != 6 - (int32_t)size;
	bad += cua_block_max_i32((int32_t)t - 2000, &scratch) != (int32_t)size - 2001;
	bad += cua_block_sum_u64((uint64_t)(t + 1) << 40, &scratch) != (uint64_t)total << 40;
	bad += cua_block_min_u64(((uint64_t)1 << 50) - t, &scratch) !=
	       ((uint64_t)1 << 50) - size + 1;
	bad += cua_block_max_u64((uint64_t)t << 33, &scratch) != (uint64_t)(size - 1) << 33;
	bad += cua_block_sum_i64(-((int64_t)(t + 1) << 40), &scratch) != -((int64_t)total << 40);
	bad += cua_block_min_i64(-((int64_t)t << 33), &scratch) != -((int64_t)(size - 1) << 33);
	bad += cua_block_max_i64((int64_t)t - 5, &scratch) != (int64_t)size - 6;
	bad += cua_block_sum_f32((float)(t + 1) * 0.5f, &scratch) != (float)total * 0.5f;
	bad += cua_block_min_f32(-(float)t, &scratch) != -(float)(size - 1);
	bad += cua_block_max_f32((float)t - 9999, &scratch) != (float)(size - 1) - 9999;
	bad += cua_block_sum_f64((double)(t + 1) * 0.125, &scratch) != (double)total * 0.125;
	bad += cua_block_min_f64((double)t + 1e300, &scratch) != 1e300;
	bad += cua_block_max_f64(-1 / (double)(t + 1), &scratch) != -1 / (double)size;
	for (n = 1; n <= size; n++) {
		if (n > 1)
			expected = affine_after(expected, affine_of(n - 1));
		if (!all_n && n % 61 != 1 && n != size && n != size / 2)
			continue;
		bad += !affine_same(affine_block_n(affine_of(t), n, &scratch), expected);
		bad += cua_block_n_sum_u32(t + 1, n, &scratch) != n * (n + 1) / 2;
	}
	bad += !affine_same(affine_block(affine_of(t), &scratch), expected);
	if (bad)
		atomicAdd(wrong, bad);
}

START_TEST(test_block_sizes)
{
	static const dim3 shapes[] = {dim3(7, 5, 3),    dim3(33, 31, 1), dim3(1, 1, 64),
				      dim3(1, 1, 33),   dim3(16, 64, 1), dim3(3, 341, 1),
				      dim3(1, 1024, 1), dim3(2, 2, 2),   dim3(5, 1, 13),
				      dim3(8, 8, 16),   dim3(31, 33, 1), dim3(1, 17, 60)};
	uint32_t *wrong = (uint32_t *)device_zeros(1025 * sizeof(*wrong)), host[1025];
	unsigned step = test_quick() ? 37 : 1;

	for (unsigned size = 1; size <= 1024; size += size < 70 ? 1 : step)
		check_block<<<1, size>>>(wrong + size, !test_quick());
	check_block<<<1, 1024>>>(wrong + 1024, 0);
	finish_kernel();
	ck_assert_cuda(cudaMemcpy(host, wrong, sizeof(host), cudaMemcpyDeviceToHost));
	for (unsigned size = 1; size <= 1024; size++)
		ck_assert_msg(host[size] == 0, "%u wrong in a block of %u", host[size], size);
	for (size_t i = 0; i < COUNT(shapes); i++) {
		check_block<<<3, shapes[i]>>>(wrong, !test_quick());
		finish_kernel();
		ck_assert_cuda(cudaMemcpy(host, wrong, sizeof(*host), cudaMemcpyDeviceToHost));
		ck_assert_msg(host[0] == 0, "%u wrong in a block of %u x %u x %u", host[0],
			      shapes[i].x, shapes[i].y, shapes[i].z);
	}
	ck_assert_cuda(cudaFree(wrong));
}
END_TEST

/* NaN, -0 and wrap-around across a block; a single thread has the decisive value. */
static __global__ void __launch_bounds__(1024) check_special(uint32_t *wrong)
{
	__shared__ struct cua_block_scratch scratch;
	const uint32_t size = cua_port_block_size(), t = cua_port_thread();
	const uint32_t chosen = size * 5 / 7;
	const float nan32 = cua__from_bits_f32(t % 2 ? 0x7fc00001u : 0xffc12345u);
	const double nan64 = cua__from_bits_f64(t % 2 ? 0x7ff8000000000001u : 0xfff8000012345678u);
	uint32_t bad = 0;

	bad += cua_block_min_f32(t == chosen ? 3.0f : nan32, &scratch) != 3.0f;
	bad += cua_block_max_f32(t == chosen ? -3.0f : nan32, &scratch) != -3.0f;
	bad += cua_block_min_f64(t == chosen ? 3.0 : nan64, &scratch) != 3.0;
	bad += cua_block_max_f64(t == chosen ? -3.0 : nan64, &scratch) != -3.0;
	if (size > 1) {
		/* a block of a single thread returns its NaN unchanged */
		bad += cua__bits_f32(cua_block_min_f32(nan32, &scratch)) != 0x7fc00000u;
		bad += cua__bits_f64(cua_block_max_f64(nan64, &scratch)) != 0x7ff8000000000000u;
		bad += cua__bits_f32(cua_block_min_f32(t == chosen ? -0.0f : 0.0f, &scratch)) !=
		       0x80000000u;
		bad += cua__bits_f64(cua_block_max_f64(t == chosen ? 0.0 : -0.0, &scratch)) != 0;
	}
	bad += cua_block_sum_u32(0xffffffffu, &scratch) != 0u - size;
	bad += cua_block_sum_i64(INT64_MIN, &scratch) != (size % 2 ? INT64_MIN : 0);
	if (bad)
		atomicAdd(wrong, bad);
}

START_TEST(test_special)
{
	uint32_t *wrong = (uint32_t *)device_zeros(sizeof(*wrong)), host;

	for (unsigned size = 1; size <= 1024; size += size < 40 ? 1 : 41)
		check_special<<<2, size>>>(wrong);
	finish_kernel();
	ck_assert_cuda(cudaMemcpy(&host, wrong, sizeof(host), cudaMemcpyDeviceToHost));
	ck_assert_uint_eq(host, 0);
	ck_assert_cuda(cudaFree(wrong));
}
END_TEST

/* ---- warps ---- */

static __device__ struct affine affine_of_mask(uint32_t mask)
{
	struct affine v = affine_make(1, 0);

	for (uint32_t lane = 0; lane < 32; lane++)
		if (mask >> lane & 1)
			v = affine_after(v, affine_of(lane));
	return v;
}

/* The lanes of a mask and the remaining lanes reduce concurrently and independently. */
static __global__ void check_warp(uint32_t *wrong, const uint32_t *masks)
{
	const uint32_t lane = cua_port_lane(),
		       mask = masks[blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32];
	uint32_t bad = 0;

	if (mask >> lane & 1) {
		bad += !affine_same(affine_warp(affine_of(lane), mask), affine_of_mask(mask));
		bad += cua_warp_sum_u32(1, mask) != (uint32_t)__popc(mask);
		bad += cua_warp_max_f64((double)lane, mask) != (double)(31 - __clz((int)mask));
	} else {
		bad += !affine_same(affine_warp(affine_of(lane), ~mask), affine_of_mask(~mask));
		bad += cua_warp_min_i32((int32_t)lane, ~mask) != __ffs((int)~mask) - 1;
	}
	if (bad)
		atomicAdd(wrong, bad);
}

START_TEST(test_warp_masks)
{
	enum { WARPS = 8192 };
	uint64_t seed = test_seed("test_warp_masks");
	uint32_t *host = (uint32_t *)test_malloc(WARPS * sizeof(*host)), wrong_host;
	uint32_t *masks = (uint32_t *)device_zeros(WARPS * sizeof(*masks));
	uint32_t *wrong = (uint32_t *)device_zeros(sizeof(*wrong));
	unsigned blocks = test_quick() ? 32 : WARPS / 8;

	for (unsigned i = 0; i < WARPS; i++) {
		if (i < 32)
			host[i] = 1u << i;
		else if (i < 64)
			host[i] = 0xffffffffu >> (i - 32);
		else if (i < 96)
			host[i] = 0xffffffffu << (i - 64);
		else
			host[i] = (uint32_t)test_random(&seed) & (uint32_t)test_random(&seed);
	}
	ck_assert_cuda(cudaMemcpy(masks, host, WARPS * sizeof(*host), cudaMemcpyHostToDevice));
	check_warp<<<blocks, 256>>>(wrong, masks);
	finish_kernel();
	ck_assert_cuda(cudaMemcpy(&wrong_host, wrong, sizeof(wrong_host), cudaMemcpyDeviceToHost));
	ck_assert_uint_eq(wrong_host, 0);
	ck_assert_cuda(cudaFree(masks));
	ck_assert_cuda(cudaFree(wrong));
	free(host);
}
END_TEST

/* ---- across blocks ---- */

struct finish_result {
	struct affine affine;
	double f64;
	uint32_t u32;
	uint32_t winners;
	uint32_t wrong;
	uint16_t product;
	uint16_t unused;
};

/*
 * A user's kernel that finishes four times in the same mode: its own operations, a float and an
 * integer. Each block leaves a mark before its first finish. The block that gets the total must see
 * all marks.
 */
static __global__ void __launch_bounds__(1024)
	finish_blocks(enum cua_finish_mode mode, struct cua_finish *states, uint64_t *partials,
		      uint32_t *marks, uint32_t mark, struct finish_result *result)
{
	__shared__ struct cua_block_scratch scratch;
	const uint64_t blocks = cua_port_grid_size();
	const uint32_t t = cua_port_thread(), size = cua_port_block_size();
	uint64_t block = cua_finish_block(mode, &states[0], &scratch);
	struct affine a, a_total;
	uint16_t p_total;
	double d_total;
	uint32_t u_total, bad = 0;

	if (t == 0)
		marks[block] = mark;
	a = affine_block(affine_of((uint32_t)block * size + t), &scratch);
	if (affine_finish(mode, &states[0], &scratch, (struct affine *)partials, block, blocks, a,
			  &a_total)) {
		result->affine = a_total;
		for (uint64_t i = 0; i < blocks; i++)
			bad += marks[i] != mark;
		result->wrong += bad;
		atomicAdd(&result->winners, 1);
	}
	partials += blocks;
	block = cua_finish_block(mode, &states[1], &scratch);
	if (product_finish(mode, &states[1], &scratch, (uint16_t *)partials, block, blocks,
			   product_block((uint16_t)(2 * t + 1), &scratch), &p_total)) {
		result->product = p_total;
		atomicAdd(&result->winners, 1);
	}
	partials += blocks;
	block = cua_finish_block(mode, &states[2], &scratch);
	if (cua_finish_sum_f64(mode, &states[2], &scratch, (double *)partials, block, blocks,
			       cua_block_sum_f64((double)block + t * 0.25, &scratch), &d_total)) {
		result->f64 = d_total;
		atomicAdd(&result->winners, 1);
	}
	partials += blocks;
	block = cua_finish_block(mode, &states[3], &scratch);
	if (cua_finish_max_u32(mode, &states[3], &scratch, (uint32_t *)partials, block, blocks,
			       cua_block_max_u32((uint32_t)block * 3 + t, &scratch), &u_total)) {
		result->u32 = u_total;
		atomicAdd(&result->winners, 1);
	}
}

START_TEST(test_finish)
{
	static const struct {
		unsigned grid, block;
	} shapes[] = {{1, 1},    {1, 256}, {2, 33},     {5, 1024},
		      {132, 64}, {300, 1}, {1000, 100}, {3000, 32}};
	const enum cua_finish_mode mode = modes[_i];
	const int in_order = mode == CUA_FINISH_LAST_BLOCK || mode == CUA_FINISH_ORDERED_LOCK;
	struct cua_finish *states = (struct cua_finish *)device_zeros(4 * sizeof(*states));
	uint64_t *partials = (uint64_t *)device_zeros(4 * 3000 * sizeof(*partials));
	uint32_t *marks = (uint32_t *)device_zeros(3000 * sizeof(*marks)), mark = 0;
	struct finish_result *result = (struct finish_result *)device_zeros(sizeof(*result)), got;
	struct cua_finish zero[4], state[4];

	memset(zero, 0, sizeof(zero));
	for (size_t s = 0; s < COUNT(shapes); s++) {
		unsigned grid = shapes[s].grid, block = shapes[s].block;
		struct affine a = affine_of(0);
		uint16_t p = 1;
		int rounds = test_quick() ? 3 : 100;

		for (unsigned i = 1; i < grid * block; i++)
			a = affine_after(a, affine_of(i));
		for (unsigned b = 0; b < grid; b++)
			for (unsigned t = 0; t < block; t++)
				p = (uint16_t)(p * (2 * t + 1));
		/* repeated without pause, like launches in a stream */
		for (int round = 0; round < rounds; round++) {
			mark++;
			finish_blocks<<<grid, block>>>(mode, states, partials, marks, mark, result);
		}
		finish_kernel();
		ck_assert_cuda(cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost));
		ck_assert_cuda(cudaMemcpy(state, states, sizeof(state), cudaMemcpyDeviceToHost));
		ck_assert_cuda(cudaMemset(result, 0, sizeof(*result)));
		ck_assert_msg(memcmp(state, zero, sizeof(zero)) == 0,
			      "mode %d, %u x %u: the state is not zero", (int)mode, grid, block);
		ck_assert_uint_eq(got.winners, 4u * (unsigned)rounds);
		ck_assert_uint_eq(got.wrong, 0);
		ck_assert_uint_eq(got.affine.scale, a.scale);
		if (in_order)
			ck_assert_uint_eq(got.affine.shift, a.shift);
		ck_assert_uint_eq(got.product, p);
		ck_assert_uint_eq(got.u32, (grid - 1) * 3 + block - 1);
		ck_assert(got.f64 == (double)grid * (grid - 1) / 2 * block +
					     (double)grid * block * (block - 1) / 2 * 0.25);
	}
	ck_assert_cuda(cudaFree(states));
	ck_assert_cuda(cudaFree(partials));
	ck_assert_cuda(cudaFree(marks));
	ck_assert_cuda(cudaFree(result));
}
END_TEST

/*
 * Each predefined operation in each mode; the functions for a single thread in each block under
 * their own names.
 */
#define FOR_ALL(X)                                                                                 \
	X(sum, u32, uint32_t)                                                                      \
	X(sum, i32, int32_t)                                                                       \
	X(sum, u64, uint64_t)                                                                      \
	X(sum, i64, int64_t)                                                                       \
	X(sum, f32, float)                                                                         \
	X(sum, f64, double)                                                                        \
	X(min, u32, uint32_t)                                                                      \
	X(min, i32, int32_t)                                                                       \
	X(min, u64, uint64_t)                                                                      \
	X(min, i64, int64_t)                                                                       \
	X(min, f32, float)                                                                         \
	X(min, f64, double)                                                                        \
	X(max, u32, uint32_t)                                                                      \
	X(max, i32, int32_t)                                                                       \
	X(max, u64, uint64_t)                                                                      \
	X(max, i64, int64_t)                                                                       \
	X(max, f32, float)                                                                         \
	X(max, f64, double)

/* Block b of a grid has the value 100 - 7 * b. */
#define DEFINE_WAYS(op, t, T)                                                                      \
	static __global__ void ways_##op##_##t(struct cua_finish *f, T *partials, T *totals)       \
	{                                                                                          \
		__shared__ struct cua_block_scratch scratch;                                       \
		const uint64_t blocks = cua_port_grid_size(), block = cua_port_block();            \
		const uint64_t ticket = cua_finish_ticket_block(&f[0], &scratch);                  \
		const T v = (T)(100 - 7 * (int)block), w = (T)(100 - 7 * (int)ticket);             \
		T total;                                                                           \
                                                                                                   \
		if (threadIdx.x == 0) {                                                            \
			if (cua_finish_ordered_##op##_##t(&f[0], ticket, blocks, w, &total))       \
				totals[0] = total;                                                 \
			if (cua_finish_lock_##op##_##t(&f[1], blocks, v, &total))                  \
				totals[1] = total;                                                 \
			if (cua_finish_atomic_##op##_##t(&f[2], blocks, v, &total))                \
				totals[2] = total;                                                 \
		}                                                                                  \
		if (cua_finish_last_block_##op##_##t(&f[3], &scratch, partials, block, blocks, v,  \
						     &total))                                      \
			totals[3 + threadIdx.x] = total;                                           \
	}                                                                                          \
	static void test_ways_##op##_##t(struct cua_finish *f, void *partials, void *totals,       \
					 unsigned grid)                                            \
	{                                                                                          \
		T host[3 + 40], expected = 100;                                                    \
                                                                                                   \
		for (int b = 1; b < (int)grid; b++)                                                \
			expected = cua_combine_##op##_##t(expected, (T)(100 - 7 * b));             \
		ck_assert_cuda(cudaMemset(totals, 0xee, sizeof(host)));                            \
		ways_##op##_##t<<<grid, 40>>>(f, (T *)partials, (T *)totals);                      \
		finish_kernel();                                                                   \
		ck_assert_cuda(cudaMemcpy(host, totals, sizeof(host), cudaMemcpyDeviceToHost));    \
		for (int i = 0; i < 3 + 40; i++)                                                   \
			ck_assert_msg(host[i] == expected, #op "_" #t ", %u blocks, total %d",     \
				      grid, i);                                                    \
	}
FOR_ALL(DEFINE_WAYS)

START_TEST(test_ways)
{
	struct cua_finish *f = (struct cua_finish *)device_zeros(4 * sizeof(*f));
	void *partials = device_zeros(700 * 8), *totals = device_zeros(64 * 8);

#define CALL_WAYS(op, t, T)                                                                        \
	test_ways_##op##_##t(f, partials, totals, 1);                                              \
	test_ways_##op##_##t(f, partials, totals, 2);                                              \
	test_ways_##op##_##t(f, partials, totals, 40);                                             \
	test_ways_##op##_##t(f, partials, totals, 700);
	FOR_ALL(CALL_WAYS)
	ck_assert_cuda(cudaFree(f));
	ck_assert_cuda(cudaFree(partials));
	ck_assert_cuda(cudaFree(totals));
}
END_TEST

/* ---- bulk calls ---- */

static struct cua_reduce_options options_of(enum cua_finish_mode mode, uint32_t blocks,
					    uint32_t block_size)
{
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;

	o.finish = mode;
	o.blocks = blocks;
	o.block_size = block_size;
	return o;
}

/* Every block size, with the modes and alignments in turn. */
START_TEST(test_bulk_block_sizes)
{
	enum { N = 60000 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	uint32_t *host = (uint32_t *)test_malloc(N * sizeof(*host)), *x;
	uint64_t got[1025 * 2] = {0}, *results = (uint64_t *)test_upload(ctx, got, sizeof(got));
	uint64_t seed = test_seed("test_bulk_block_sizes");
	uint32_t step = test_quick() ? 93 : 1;

	for (int i = 0; i < N; i++)
		host[i] = (uint32_t)test_random(&seed);
	x = (uint32_t *)test_upload(ctx, host, N * sizeof(*host));
	for (uint32_t size = 1; size <= 1024; size += step) {
		struct cua_reduce_options o =
			options_of(modes[size % 4], size % 3 ? size % 50 : 0, size);
		size_t n = N - 10 - size, a = size % 4, b = size / 4 % 4;

		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U32, n, x + a, NULL,
					 &results[size * 2]));
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_DOT, CUA_U32, n, x + a, x + b,
					 &results[size * 2 + 1]));
	}
	test_download(ctx, got, results, sizeof(got));
	for (uint32_t size = 1; size <= 1024; size += step) {
		size_t n = N - 10 - size, a = size % 4, b = size / 4 % 4;
		uint64_t sum = 0, dot = 0;

		for (size_t i = 0; i < n; i++) {
			sum += host[a + i];
			dot += (uint64_t)host[a + i] * host[b + i];
		}
		ck_assert_msg(got[size * 2] == sum, "sum in blocks of %u", size);
		ck_assert_msg(got[size * 2 + 1] == dot, "dot in blocks of %u", size);
	}
	test_free(ctx, x);
	test_free(ctx, results);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

/* The calls in a graph, replayed on changing data. */
START_TEST(test_graph)
{
	enum { N = 100003, CALLS = 4 * 4 };
	static const enum cua_reduce_op ops[] = {CUA_REDUCE_SUM, CUA_REDUCE_MIN, CUA_REDUCE_MAX,
						 CUA_REDUCE_DOT};
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	double *host = (double *)test_malloc(N * sizeof(*host)), got[CALLS], on_host = -1;
	double *x = (double *)test_alloc(ctx, N * sizeof(*x));
	double *results = (double *)test_alloc(ctx, CALLS * sizeof(*results));
	struct cua_reduce_options many =
		options_of(CUA_FINISH_LAST_BLOCK, CUA_REDUCE_BLOCKS_MAX, 32);
	enum cua_status host_status, many_status;
	cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int replays = test_quick() ? 3 : 20;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < CALLS; i++) {
		struct cua_reduce_options o = options_of(modes[i % 4], i % 3 ? 0 : 17, 0);

		ck_assert_cua(cua_reduce(ctx, &o, ops[i / 4], CUA_F64, N, x,
					 ops[i / 4] == CUA_REDUCE_DOT ? x : NULL, results + i));
	}
	/* a call that would have to wait or to allocate: refused, and the capture continues */
	host_status = cua_sum_f64(ctx, N, x, &on_host);
	many_status = cua_reduce(ctx, &many, CUA_REDUCE_SUM, CUA_F64, N, x, NULL, results);
	ck_assert_cuda(cudaStreamIsCapturing(stream, &capturing));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_int_eq((int)capturing, (int)cudaStreamCaptureStatusActive);
	ck_assert_status(host_status, CUA_ERROR_CAPTURE);
	ck_assert_status(many_status, CUA_ERROR_WORKSPACE);
	ck_assert(on_host == -1);
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < replays; replay++) {
		double expected[4] = {0, 1e300, -1e300, 0};

		for (int i = 0; i < N; i++) {
			host[i] = (i * 7 + replay * 1000) % 2003 - 1000;
			expected[0] += host[i];
			expected[1] = host[i] < expected[1] ? host[i] : expected[1];
			expected[2] = host[i] > expected[2] ? host[i] : expected[2];
			expected[3] += host[i] * host[i];
		}
		ck_assert_cuda(
			cudaMemcpyAsync(x, host, N * sizeof(*x), cudaMemcpyHostToDevice, stream));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(
			cudaMemcpyAsync(got, results, sizeof(got), cudaMemcpyDeviceToHost, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		for (int i = 0; i < CALLS; i++)
			ck_assert_msg(got[i] == expected[i / 4], "replay %d, call %d: %g, not %g",
				      replay, i, got[i], expected[i / 4]);
		/* a call between two replays: uses the same state */
		ck_assert_cua(cua_sum_f64(ctx, N, x, &on_host));
		ck_assert(on_host == expected[0]);
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	/* outside of a capture the workspace grows */
	ck_assert_cua(cua_reduce(ctx, &many, CUA_REDUCE_SUM, CUA_F64, N, x, NULL, &on_host));
	test_download(ctx, got, results, sizeof(*got));
	ck_assert(on_host == got[0]);
	test_free(ctx, x);
	test_free(ctx, results);
	free(host);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

/* Results and elements in managed and in pinned memory. */
START_TEST(test_memory)
{
	enum { N = 5000 };
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	float *managed, *pinned;
	int has_managed = 0;

	ck_assert_cuda(cudaDeviceGetAttribute(&has_managed, cudaDevAttrManagedMemory, 0));
	ck_assert_cuda(cudaMallocHost((void **)&pinned, (N + 1) * sizeof(*pinned)));
	for (int i = 0; i < N; i++)
		pinned[i] = (float)(i % 11);
	pinned[N] = -1;
	ck_assert_cua(cua_dot_f32(ctx, N, pinned, pinned, &pinned[N]));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert(pinned[N] == 454 * 385 + 0 + 1 + 4 + 9 + 16 + 25);
	if (has_managed) {
		ck_assert_cuda(cudaMallocManaged((void **)&managed, (N + 1) * sizeof(*managed),
						 cudaMemAttachGlobal));
		for (int i = 0; i < N; i++)
			managed[i] = (float)(i % 11);
		ck_assert_cua(cua_max_f32(ctx, N, managed, &managed[N]));
		ck_assert_cua(cua_context_synchronize(ctx));
		ck_assert(managed[N] == 10);
		ck_assert_cuda(cudaFree(managed));
	}
	ck_assert_cuda(cudaFreeHost(pinned));
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("device_reduce");
	TCase *tc = tcase_create("device_reduce");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_block_sizes);
	tcase_add_test(tc, test_special);
	tcase_add_test(tc, test_warp_masks);
	tcase_add_loop_test(tc, test_finish, 0, (int)COUNT(modes));
	tcase_add_test(tc, test_ways);
	tcase_add_test(tc, test_bulk_block_sizes);
	tcase_add_test(tc, test_graph);
	tcase_add_test(tc, test_memory);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
