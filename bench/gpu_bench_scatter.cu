/* SPDX-License-Identifier: MIT */
/*
 * Scatters of f32: uniform and skewed indexes, many and few targets, and rows; and exact cells in a
 * kernel, an element a lane, without and with their finish.
 *
 * Peer: native atomic additions, whose bits differ from run to run. Ceiling: reading the indexes and
 * the elements once. A call's targets are summed with weights and compared with the elements.
 */
#include "gpu_bench_calls.h"

#include <cuatomic/exact_cell.h>
#include <cuatomic/scatter.h>

#include <math.h>

/* Of indexes: the exponent of a zipf distribution in tenths; 0: uniform. Of elements: normal or wide. */
struct distribution {
	int skew;
	bool wide;
	const char *name;
};

static struct cua_context *ctx;
static size_t rows, width, targets;
static uint32_t *indexes;
static float *x, *out;
static double *sums;
static struct cua_exact_cell_f32 *cells;
static struct cua_append *spills;

static __device__ double unit(uint64_t i)
{
	return (double)(mix(i * 2654435761u + 1) >> 11) * 0x1p-53;
}

static __global__ void make_indexes(size_t n, size_t targets, int skew, uint32_t *to)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		const double u = unit(i * 2 + 1), last = (double)targets + 1, s = 1 - skew * 0.1;
		double k = 1 + u * (double)targets;

		/* the inverse of the distribution function of a continuous zipf distribution */
		if (skew == 10)
			k = exp(u * log(last));
		else if (skew)
			k = pow(1 + u * (pow(last, s) - 1), 1 / s);
		k -= 1;
		to[i] = k >= (double)targets ? (uint32_t)targets - 1 : (uint32_t)k;
	}
}

/* Normally distributed elements, or exponentials of these with random signs. */
static __global__ void make_elements(size_t n, bool wide, float *to)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		const double normal =
			sqrt(-2 * log(unit(i * 2 + 2) + 0x1p-54)) * cospi(2 * unit(i * 2 + 3));

		to[i] = (float)(!wide ? normal : mix(i) & 1 ? -exp(normal) : exp(normal));
	}
}

/* The weight of a target; different for neighbours. */
static __device__ double weight(size_t target)
{
	return 1 + unit(target);
}

/* Adds the weighted elements to sums[0], and their magnitudes to sums[1]. */
static __global__ void weigh_elements(size_t n, size_t width, const uint32_t *index, const float *x,
				      double *sums)
{
	double sum = 0, magnitude = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n * width;
	     i += (size_t)gridDim.x * blockDim.x) {
		const double v = (double)x[i] * weight(index[i / width] * width + i % width);

		sum += v;
		magnitude += fabs(v);
	}
	atomicAdd(&sums[0], sum);
	atomicAdd(&sums[1], magnitude);
}

static __global__ void weigh_targets(size_t n, const float *out, double *sum)
{
	double v = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		v += (double)out[i] * weight(i);
	atomicAdd(sum, v);
}

static __global__ void native(size_t n, const uint32_t *index, const float *x, float *out)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		atomicAdd(&out[index[i]], x[i]);
}

/* The GPU and CUDA 12.1 or newer have it. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 &&                                              \
	(__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 1))
#define HAVE_ATOMIC_FLOAT4 1
#endif

/* Additions of four neighbours at once, if possible. */
static __global__ void native_rows(size_t n, size_t width, const uint32_t *index, const float4 *x,
				   float4 *out)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n * width / 4;
	     i += (size_t)gridDim.x * blockDim.x) {
		float4 *to = &out[index[i / (width / 4)] * (width / 4) + i % (width / 4)];

#ifdef HAVE_ATOMIC_FLOAT4
		atomicAdd(to, x[i]);
#else
		atomicAdd(&to->x, x[i].x);
		atomicAdd(&to->y, x[i].y);
		atomicAdd(&to->z, x[i].z);
		atomicAdd(&to->w, x[i].w);
#endif
	}
}

static __global__ void add_to_cells(size_t n, const uint32_t *index, const float *x,
				    const __grid_constant__ struct cua_exact_cells_f32 view)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		cua_exact_cell_add_f32(&view, index[i], x[i]);
}

/* The most targets with cells in shared memory. */
#define PRIVATE_CELLS 1024

static __global__ void add_to_private_cells(size_t n, const uint32_t *index, const float *x,
					    const __grid_constant__ struct cua_exact_cells_f32 view)
{
	__shared__ struct cua_exact_cell_f32 own[PRIVATE_CELLS];
	const struct cua_exact_cells_f32 mine =
		cua_exact_cells_private_f32(&view, own, 0, view.cells);

	for (unsigned i = threadIdx.x; i < PRIVATE_CELLS; i += blockDim.x)
		own[i].word[0] = own[i].word[1] = 0;
	__syncthreads();
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		cua_exact_cell_add_block_f32(&mine, index[i], x[i]);
	__syncthreads();
	for (unsigned i = threadIdx.x; i < view.cells; i += blockDim.x)
		cua_exact_cell_merge_f32(&view, i, &own[i]);
}

/* Compares the targets with the elements. */
static bool is_right(const double wanted[2], double tolerance)
{
	double sum;

	need(!cudaMemset(sums, 0, sizeof(sum)), "cudaMemset");
	weigh_targets<<<processors * 8, THREADS>>>(targets * width, out, sums);
	need(!cudaMemcpy(&sum, sums, sizeof(sum), cudaMemcpyDeviceToHost), "sums");
	return fabs(sum - wanted[0]) <= tolerance * wanted[1];
}

static void clear(void)
{
	need(!cudaMemset(out, 0, targets * width * sizeof(*out)), "cudaMemset");
}

/* Adds a row and checks its last run. */
template <typename Call>
static void row(enum table_kind kind, const char *way, const double wanted[2], double tolerance,
		Call call)
{
	const double elements = (double)rows * (double)width;
	bool right = true;

	if (!table_wants(table.name, way))
		return;
	const struct figure f = measure(elements * 1e-3, clear, call,
					[&] { right = right && is_right(wanted, tolerance); });
	char number[24], note[48];

	snprintf(note, sizeof(note), "%s us%s", table_number(number, elements / (f.median * 1e3)),
		 right ? "" : ", WRONG");
	table_add_note(&table, kind, way, f, note);
}

static void ceiling_row(void)
{
	const size_t bytes = rows * sizeof(*indexes) + rows * width * sizeof(*x);
	const double elements = (double)rows * (double)width;
	const char *const way = "reading indexes and elements";
	struct figure best = {};

	if (!table_wants(table.name, way))
		return;
	/* x alone: it is as long as both arrays in cases of rows, and shorter by half otherwise */
	both_grids(rows * width / 4, [&](unsigned blocks, bool) {
		const struct figure f = measure(
			elements * 1e-3 * (double)(rows * width * sizeof(*x)) / (double)bytes,
			[] {},
			[&] {
				read_all<1><<<blocks, THREADS>>>(rows * width / 4, (const uint4 *)x,
								 nullptr, (unsigned *)sums);
			},
			[] {});

		if (f.median > best.median)
			best = f;
	});
	table_add(&table, TABLE_CEILING, way, best);
}

static void our_row(const char *way, enum cua_reduce_mode mode, const double wanted[2])
{
	struct cua_scatter_options options = CUA_SCATTER_OPTIONS_INIT;

	options.mode = mode;
	options.width = (uint32_t)width;
	row(TABLE_OURS, way, wanted, 1e-6, [&] {
		need(cua_scatter(ctx, &options, CUA_SCATTER_ADD, CUA_U32, CUA_F32, rows, indexes, x,
				 targets, out) == CUA_OK,
		     way);
	});
}

/* Cells: additions alone, and additions with the finish. */
static void cell_rows(const double wanted[2])
{
	const double elements = (double)rows * 1e-3;
	struct cua_append_view view;
	char number[24], note[48];

	need(cua_append_get_view(spills, &view) == CUA_OK, "cua_append_get_view");
	const struct cua_exact_cells_f32 all =
		cua_exact_cells_view_f32(cells, targets, CUA_EXACT_CELL_UNIT_F32, &view);
	const auto reset = [&] {
		clear();
		need(!cudaMemset(cells, 0, targets * sizeof(*cells)) &&
			     cua_append_reset(spills) == CUA_OK &&
			     cua_context_synchronize(ctx) == CUA_OK,
		     "cells");
	};
	const auto add = [&] {
		if (targets <= PRIVATE_CELLS)
			add_to_private_cells<<<processors * 2, 1024>>>(rows, indexes, x, all);
		else
			add_to_cells<<<processors * 8, THREADS>>>(rows, indexes, x, all);
	};
	const auto finish = [&] {
		need(cua_exact_cells_finish_f32(ctx, nullptr, &all, out) == CUA_OK, "finish");
	};

	for (int finishes = 0; finishes < 2; finishes++) {
		bool right = true;
		const struct figure f = measure(
			elements, reset,
			[&] {
				add();
				if (finishes)
					finish();
			},
			[&] {
				if (!finishes)
					finish();
				need(cua_context_synchronize(ctx) == CUA_OK,
				     "cua_context_synchronize");
				right = right && is_right(wanted, 1e-6);
			});

		snprintf(note, sizeof(note), "%s us%s",
			 table_number(number, (double)rows / (f.median * 1e3)),
			 right ? "" : ", WRONG");
		table_add_note(&table, TABLE_OURS,
			       finishes ? "exact cells in a kernel, and finish"
					: "exact cells in a kernel",
			       f, note);
	}
}

static void scatter_case(size_t n, size_t n_targets, size_t n_width, struct distribution d)
{
	char name[28], to[24];
	double wanted[2];

	rows = n;
	targets = n_targets;
	width = n_width;
	make_indexes<<<processors * 8, THREADS>>>(rows, targets, d.skew, indexes);
	make_elements<<<processors * 8, THREADS>>>(rows * width, d.wide, x);
	need(!cudaMemset(sums, 0, sizeof(wanted)), "cudaMemset");
	weigh_elements<<<processors * 8, THREADS>>>(rows, width, indexes, x, sums);
	need(!cudaMemcpy(wanted, sums, sizeof(wanted), cudaMemcpyDeviceToHost), "sums");
	if (width == 1)
		snprintf(name, sizeof(name), "to %.12s, %s", size_text(to, targets), d.name);
	else
		snprintf(name, sizeof(name), "rows of %zu, %s", width, d.name);
	table_begin(&table, name);
	ceiling_row();
	row(TABLE_PEER, "native atomic additions", wanted, 1e-4, [] {
		if (width == 1)
			native<<<processors * 16, THREADS>>>(rows, indexes, x, out);
		else
			native_rows<<<processors * 16, THREADS>>>(rows, width, indexes,
								  (const float4 *)x, (float4 *)out);
	});
	our_row("cua_scatter_add, FAST", CUA_REDUCE_FAST, wanted);
	our_row("cua_scatter_add, EXACT", CUA_REDUCE_EXACT, wanted);
	if (width == 1)
		cell_rows(wanted);
	table_end(&table);
}

int main(int argc, char **argv)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20;
	const struct options o = parse_options(argc, argv, "scatter", false);
	const cudaDeviceProp device = print_head("scatter");
	const size_t many = o.quick ? 128 * Ki : 96 * Mi, some = o.quick ? 4 * Ki : Mi;
	const size_t elements = some * 256 > many ? some * 256 : many;
	const struct distribution uniform = {0, false, "uniform"};
	const struct distribution flat = {10, false, "zipf 1.0"}, steep = {15, false, "zipf 1.5"};
	const struct distribution wide = {0, true, "lognormal"};

	small = o.quick;
	processors = (unsigned)device.multiProcessorCount;
	need(!cudaMalloc(&indexes, many * sizeof(*indexes)) &&
		     !cudaMalloc(&x, elements * sizeof(*x)) &&
		     !cudaMalloc(&out, elements * sizeof(*out)) && !cudaMalloc(&sums, 16) &&
		     !cudaMalloc(&cells, many * sizeof(*cells)) &&
		     cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK &&
		     cua_append_create(ctx, sizeof(struct cua_exact_spill), 1 << 16, &spills) ==
			     CUA_OK,
	     "context and memory");
	printf("f32, normally distributed or as named; %zu elements, or %zu rows of 64 to %zu targets\n",
	       many, some * 4, some);
	table_columns("G/s", "a call");
	scatter_case(many, some, 1, uniform);
	if (!bench_env()->summarized) {
		scatter_case(many, many, 1, uniform);
		scatter_case(many, many, 1, flat);
		scatter_case(many, many, 1, wide);
		scatter_case(many, some, 1, steep);
		scatter_case(many, Ki, 1, uniform);
		scatter_case(many, Ki, 1, steep);
		scatter_case(some * 4, some, 64, uniform);
		scatter_case(some * 4, some, 64, flat);
	}
	cua_append_destroy(spills);
	cua_context_destroy(ctx);
	cudaFree(cells);
	cudaFree(indexes);
	cudaFree(x);
	cudaFree(out);
	cudaFree(sums);
	return 0;
}
