/* SPDX-License-Identifier: MIT */
/* Exact cells inside kernels: additions by lanes, warps and blocks, merges, and graphs. */
#include "device.h"

#include <math.h>

#include "exact_cell_calls.h"

/* ---- the inline functions, by type ---- */

#define FORWARD(t, T)                                                                              \
	static __device__ int add_lane(const struct cua_exact_cells_##t *v, uint64_t i, T x)       \
	{                                                                                          \
		return cua_exact_cell_add_##t(v, i, x);                                            \
	}                                                                                          \
	static __device__ int add_warp(uint32_t mask, const struct cua_exact_cells_##t *v,         \
				       uint64_t i, T x)                                            \
	{                                                                                          \
		return cua_exact_cell_add_warp_##t(mask, v, i, x);                                 \
	}                                                                                          \
	static __device__ int add_block(const struct cua_exact_cells_##t *v, uint64_t i, T x)      \
	{                                                                                          \
		return cua_exact_cell_add_block_##t(v, i, x);                                      \
	}                                                                                          \
	static __device__ int merge(const struct cua_exact_cells_##t *v, uint64_t i,               \
				    const struct cua_exact_cell_##t *part)                         \
	{                                                                                          \
		return cua_exact_cell_merge_##t(v, i, part);                                       \
	}                                                                                          \
	static __device__ struct cua_exact_cells_##t private_cells(                                \
		const struct cua_exact_cells_##t *v, struct cua_exact_cell_##t *cell,              \
		uint64_t first, uint64_t n)                                                        \
	{                                                                                          \
		return cua_exact_cells_private_##t(v, cell, first, n);                             \
	}

FORWARD(f32, float)
FORWARD(f64, double)

/* ---- additions ---- */

enum way { BY_LANE, BY_WARP, DIVERGED_LANE, DIVERGED_WARP, SOME_OF_WARP, BY_BLOCK, WAYS };
static const char *const way_names[] = {"lanes",          "whole warps",       "diverged lanes",
					"diverged warps", "warps, then lanes", "blocks"};

/* The cells that a block has in shared memory. */
#define OWN 48u

/* Lanes of a diverged warp call in two groups; the groups differ in each step. */
template <typename View, typename T>
static __device__ int add_by(int way, const View *view, uint32_t mask, uint32_t step, uint64_t i,
			     T x)
{
	const uint32_t lane = cua_port_lane();
	const int side = (int)((lane + step) % 3 == 0 || lane % 8 == step % 8);
	const uint32_t votes = cua_port_ballot(mask, side);
	int stored;

	switch (way) {
	case BY_LANE: return add_lane(view, i, x);
	case BY_WARP: return add_warp(mask, view, i, x);
	case DIVERGED_LANE:
		if (side)
			stored = add_lane(view, i, x);
		else
			stored = add_lane(view, i, x);
		break;
	case DIVERGED_WARP:
		if (side)
			stored = add_warp(votes, view, i, x);
		else
			stored = add_warp(mask & ~votes, view, i, x);
		break;
	default:
		if (side)
			stored = add_warp(votes, view, i, x);
		else
			stored = add_lane(view, i, x);
		break;
	}
	cua_port_sync_warp(mask);
	return stored;
}

/* Adds all elements; *refused counts the additions and merges that returned 0. */
template <typename View, typename T>
static __global__ void add_kernel(const __grid_constant__ View view, int way, const uint32_t *cell,
				  const T *x, uint32_t n, unsigned long long *refused)
{
	const uint32_t stride = gridDim.x * blockDim.x, first_lane = global_id() - cua_port_lane();
	const uint32_t full = whole_warp();
	unsigned long long mine = 0;

	for (uint32_t base = first_lane, step = 0; base < n; base += stride, step++) {
		const uint32_t i = base + cua_port_lane();
		const uint32_t mask = cua_port_ballot(full, i < n);

		if (i < n)
			mine += !add_by(way, &view, mask, step, cell[i], x[i]);
		cua_port_sync_warp(full);
	}
	if (mine)
		atomicAdd(refused, mine);
}

/*
 * The same with private cells for the cells from `first` on; the other cells are added to directly.
 */
template <typename View, typename Cell, typename T>
static __global__ void add_block_kernel(const __grid_constant__ View view, uint32_t first,
					const uint32_t *cell, const T *x, uint32_t n,
					unsigned long long *refused)
{
	__shared__ Cell own[OWN];
	const uint32_t cells = view.cells - first < OWN ? (uint32_t)(view.cells - first) : OWN;
	const View mine = private_cells(&view, own, first, cells);
	unsigned long long zeros = 0;

	for (uint32_t k = threadIdx.x; k < OWN * sizeof(Cell) / 8; k += blockDim.x)
		((uint64_t *)own)[k] = 0;
	__syncthreads();
	for (uint32_t i = global_id(); i < n; i += gridDim.x * blockDim.x) {
		const uint32_t at = cell[i] - first;

		zeros +=
			!(at < cells ? add_block(&mine, at, x[i]) : add_lane(&view, cell[i], x[i]));
	}
	__syncthreads();
	for (uint32_t k = threadIdx.x; k < cells; k += blockDim.x)
		zeros += !merge(&view, first + k, &own[k]);
	if (zeros)
		atomicAdd(refused, zeros);
}

struct shape {
	unsigned grid, block;
};

static void launch(int way, struct shape s, const struct cells *c, uint32_t first,
		   const uint32_t *cell, const void *x, size_t n, unsigned long long *refused,
		   cudaStream_t stream)
{
	const uint32_t count = (uint32_t)n;
	const float *x32 = (const float *)x;
	const double *x64 = (const double *)x;

	if (way == BY_BLOCK && c->type->type == CUA_F32)
		add_block_kernel<struct cua_exact_cells_f32, struct cua_exact_cell_f32, float>
			<<<s.grid, s.block, 0, stream>>>(c->f32, first, cell, x32, count, refused);
	else if (way == BY_BLOCK)
		add_block_kernel<struct cua_exact_cells_f64, struct cua_exact_cell_f64, double>
			<<<s.grid, s.block, 0, stream>>>(c->f64, first, cell, x64, count, refused);
	else if (c->type->type == CUA_F32)
		add_kernel<<<s.grid, s.block, 0, stream>>>(c->f32, way, cell, x32, count, refused);
	else
		add_kernel<<<s.grid, s.block, 0, stream>>>(c->f64, way, cell, x64, count, refused);
}

/* ---- tests ---- */

static const enum cua_type floats[] = {CUA_F16, CUA_BF16, CUA_F32, CUA_F64};
static const struct shape shapes[] = {{1, 1}, {1, 33}, {3, 100}, {40, 256}, {8, 1024}};

/* Additions in device memory. */
struct device_additions {
	uint32_t *cell;
	void *x;
	unsigned long long *refused;
};

static struct device_additions upload_additions(struct cua_context *ctx, const struct additions *a)
{
	const unsigned long long zero = 0;
	struct device_additions d;

	d.cell = (uint32_t *)test_upload(ctx, a->cell, a->n * sizeof(*a->cell));
	d.x = test_upload(ctx, a->x, a->n * cua_type_size(a->type->type));
	d.refused = (unsigned long long *)test_upload(ctx, &zero, sizeof(zero));
	return d;
}

static void free_device_additions(struct cua_context *ctx, const struct device_additions *d)
{
	test_free(ctx, d->cell);
	test_free(ctx, d->x);
	test_free(ctx, d->refused);
}

/* The additions by a kernel. Copies the cells and their spills to h; returns the refused calls. */
static unsigned long long run_kernel(struct cua_context *ctx, int way, struct shape s,
				     const struct additions *a, const struct device_additions *d,
				     struct host_cells *h, struct backend_cells *b, uint32_t first)
{
	unsigned long long refused = 0;

	*b = upload_cells(ctx, h);
	ck_assert_cuda(cudaMemset(d->refused, 0, sizeof(refused)));
	launch(way, s, &b->view, first, d->cell, d->x, a->n, d->refused, 0);
	finish_kernel();
	ck_assert_cuda(cudaMemcpy(&refused, d->refused, sizeof(refused), cudaMemcpyDeviceToHost));
	ck_assert_cuda(
		cudaMemcpy(h->cell, b->cell, a->cells * a->type->size, cudaMemcpyDeviceToHost));
	ck_assert_cuda(
		cudaMemcpy(h->cursor, b->cursor, sizeof(*h->cursor), cudaMemcpyDeviceToHost));
	return refused;
}

/* Every way to add has the bits of the model, which the CPU backend has, too. */
START_TEST(test_ways)
{
	const struct cell_type *t = &cell_types[_i % 2];
	const int kind = _i / 2;
	const size_t n = (size_t)(test_traced() ? 2000 : test_scale(5000, 40000, 400000));
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	uint64_t seed = test_seed("test_ways");

	for (int turn = 0; turn < test_scale(1, 3, 12); turn++) {
		const uint64_t r = test_random(&seed);
		const int units[] = {t->usual, t->least, t->most,
				     t->least + (int)((r >> 32) % (uint64_t)(t->most - t->least))};
		const uint32_t counts[] = {1, 3, 40, 1000};
		const struct additions a =
			make_additions(t, units[r % 4], kind, n, counts[r / 4 % 4], &seed);
		const enum cua_type result = floats[r / 16 % COUNT(floats)];
		const struct device_additions d = upload_additions(ctx, &a);
		const uint64_t room = 2 * (a.outside + (a.may_overflow ? n : 0)) + 1;
		void *old = make_old(&a, result, &seed);
		void *expected = test_malloc(a.cells * cua_type_size(result));
		struct cua_exact_cells_options o = CUA_EXACT_CELLS_OPTIONS_INIT;

		o.result_type = result;
		expected_results(&a, NULL, result, 0, old, expected);
		for (int way = 0; way < WAYS; way++) {
			struct host_cells h = make_host_cells(t, a.cells, a.unit, room);
			const struct shape s = shapes[(r / 64 + (uint64_t)way) % COUNT(shapes)];
			struct backend_cells b;
			void *got;

			ck_assert_uint_eq(run_kernel(ctx, way, s, &a, &d, &h, &b,
						     (uint32_t)turn % 2 * a.cells / 3),
					  0);
			EXPECT(a.may_overflow ? h.cursor->demand >= a.outside
					      : h.cursor->demand == a.outside,
			       "%s, %s: demand %llu of %llu", way_names[way], cell_kind_name(kind),
			       (unsigned long long)h.cursor->demand, (unsigned long long)a.outside);
			got = finish_cells(ctx, &b.view, &o, result, old, CUA_OK);
			expect_results(&a, way_names[way], result, 0, old, got, expected);
			free(got);
			/* the kernel's cells, finished by the CPU backend */
			ck_assert_cuda(cudaMemcpy(h.items, b.items,
						  h.cursor->demand * sizeof(*h.items),
						  cudaMemcpyDeviceToHost));
			got = finish_cells(cpu, &h.view, &o, result, old, CUA_OK);
			expect_results(&a, "finished by the CPU", result, 0, old, got, expected);
			free(got);
			free_backend_cells(ctx, &b);
			free_host_cells(&h);
		}
		free(old);
		free(expected);
		free_device_additions(ctx, &d);
		free_additions(&a);
	}
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

/* A full append buffer: exactly the marked cells are NaN, and each loss is reported once. */
START_TEST(test_lost)
{
	const struct cell_type *t = &cell_types[_i];
	const size_t n = 20000;
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	uint64_t seed = test_seed("test_lost");

	for (int way = 0; way < WAYS; way++) {
		const struct additions a = make_additions(t, t->usual, KIND_OUTLIER, n, 500, &seed);
		const struct device_additions d = upload_additions(ctx, &a);
		struct host_cells h = make_host_cells(t, a.cells, a.unit, a.outside / 2);
		struct cua_exact_cells_options o = CUA_EXACT_CELLS_OPTIONS_INIT;
		void *old = make_old(&a, t->type, &seed), *got;
		void *expected = test_malloc(a.cells * cua_type_size(t->type));
		uint8_t *lost = (uint8_t *)test_malloc(a.cells);
		uint64_t cells = 0, count = 77;
		struct backend_cells b;

		ck_assert(!a.may_overflow);
		ck_assert_uint_eq(run_kernel(ctx, way, shapes[3], &a, &d, &h, &b, 0),
				  a.outside - a.outside / 2);
		ck_assert_uint_eq(h.cursor->demand, a.outside);
		for (uint32_t c = 0; c < a.cells; c++) {
			lost[c] = (cell_flags(t, h.cell, c) & CUA_EXACT_LOST) != 0;
			cells += lost[c];
		}
		ck_assert_uint_ge(cells, 1);
		o.lost = &count;
		got = finish_cells(ctx, &b.view, &o, t->type, old, CUA_ERROR_FULL);
		ck_assert_uint_eq(count, cells);
		expected_results(&a, lost, t->type, 0, old, expected);
		expect_results(&a, way_names[way], t->type, 0, old, got, expected);
		free(old);
		free(got);
		free(expected);
		free(lost);
		free_backend_cells(ctx, &b);
		free_host_cells(&h);
		free_device_additions(ctx, &d);
		free_additions(&a);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Additions to no cell, and by views of an unknown layout, return 0 and change nothing. */
START_TEST(test_refused)
{
	enum { N = 1000 };
	const struct cell_type *t = &cell_types[_i];
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	uint64_t seed = test_seed("test_refused");
	const struct additions a = make_additions(t, t->usual, KIND_SPECIAL, N, 8, &seed);
	const struct device_additions d = upload_additions(ctx, &a);

	for (int way = 0; way < WAYS; way++)
		for (int layout = 0; layout < 2; layout++) {
			const struct host_cells h = make_host_cells(t, 8, t->usual, N);
			struct backend_cells b = upload_cells(ctx, &h);
			unsigned long long refused = 0;
			char got[8 * sizeof(struct cua_exact_cell_f64)];
			uint64_t demand;

			b.view.f32.layout = b.view.f64.layout = CUA_EXACT_CELLS_LAYOUT + layout;
			b.view.f32.cells = b.view.f64.cells = layout ? 8 : 0;
			ck_assert_cuda(cudaMemset(d.refused, 0, sizeof(*d.refused)));
			launch(way, shapes[1], &b.view, 0, d.cell, d.x, N, d.refused, 0);
			finish_kernel();
			test_download(ctx, &refused, d.refused, sizeof(refused));
			/* a block's merges are refused, too */
			ck_assert_uint_eq(refused, N + (way == BY_BLOCK && layout ? 8 : 0));
			test_download(ctx, got, b.cell, 8 * t->size);
			ck_assert_mem_eq(got, h.cell, 8 * t->size);
			test_download(ctx, &demand, b.cursor, sizeof(demand));
			ck_assert_uint_eq(demand, 0);
			free_backend_cells(ctx, &b);
			free_host_cells(&h);
		}
	free_device_additions(ctx, &d);
	free_additions(&a);
	cua_context_destroy(ctx);
}
END_TEST

/* Additions and a finish in a graph. */
START_TEST(test_graph)
{
	const size_t n = 30000;
	const struct cell_type *t = &cell_types[_i];
	const size_t bytes = 200 * cua_type_size(t->type);
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	uint64_t seed = test_seed("test_graph");
	const struct additions a = make_additions(t, t->usual, KIND_OUTLIER, n, 200, &seed);
	const struct device_additions d = upload_additions(ctx, &a);
	const struct host_cells h = make_host_cells(t, a.cells, a.unit, 2 * a.outside + 1);
	const struct backend_cells b = upload_cells(ctx, &h);
	struct cua_exact_cells_options o = CUA_EXACT_CELLS_OPTIONS_INIT;
	char *out = (char *)managed(bytes), *expected = (char *)test_malloc(bytes);
	uint64_t *lost = (uint64_t *)managed(sizeof(*lost));
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	o.overwrite = 1;
	o.lost = lost;
	expected_results(&a, NULL, t->type, 1, out, expected);
	ck_assert_cuda(cudaStreamCreate(&stream));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cua(cells_finish(ctx, &o, &b.view, out));
	ck_assert_cuda(cudaStreamSynchronize(stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cuda(cudaMemsetAsync(b.cell, 0, a.cells * t->size, stream));
	ck_assert_cuda(cudaMemsetAsync(b.cursor, 0, sizeof(*b.cursor), stream));
	launch(BY_WARP, shapes[3], &b.view, 0, d.cell, d.x, n, d.refused, stream);
	ck_assert_cua(cells_finish(ctx, &o, &b.view, out));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int replay = 0; replay < 3; replay++) {
		memset(out, 0x77, bytes);
		*lost = 77;
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		expect_results(&a, "a graph", t->type, 1, out, out, expected);
		ck_assert_uint_eq(*lost, 0);
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	free_device_additions(ctx, &d);
	free_backend_cells(ctx, &b);
	free_host_cells(&h);
	free_additions(&a);
	free(expected);
	ck_assert_cuda(cudaFree(out));
	ck_assert_cuda(cudaFree(lost));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_exact_cell");
	TCase *tc = tcase_create("device_exact_cell");

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, test_ways, 0, 2 * CELL_KINDS);
	tcase_add_loop_test(tc, test_lost, 0, 2);
	tcase_add_loop_test(tc, test_refused, 0, 2);
	tcase_add_loop_test(tc, test_graph, 0, 2);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CUDA);
}
