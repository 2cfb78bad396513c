/* SPDX-License-Identifier: MIT */
/*
 * Group by: keys of 64 bits and values of f32, few and many groups, uniform and skewed.
 *
 * Peer: CUB's radix sort of keys and values, followed by its reduction of equal keys; its sums round
 * after each addition. Ceiling: reading the keys and the values once. The number of groups is
 * compared with CUB's, and the sums of the groups, with weights by key, with those of the rows.
 */
#include "gpu_bench_calls.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>

#include <cuatomic/group_by.h>

#include <math.h>

/* The exponent of a zipf distribution in tenths; 0: uniform. */
struct distribution {
	int skew;
	const char *name;
};

static struct cua_context *ctx;
static size_t rows, most_groups, known_groups;
static uint64_t *keys, *sorted_keys, *out_keys, *groups;
static float *x, *sorted_x, *out;
static double *sums;
static void *more; /* results of other aggregates, or of cua_unique */

/* For any release of CUB. */
struct plus {
	__host__ __device__ float operator()(float a, float b) const
	{
		return a + b;
	}
};

static __device__ double unit(uint64_t i)
{
	return (double)(mix(i * 2654435761u + 1) >> 11) * 0x1p-53;
}

/* The key of number k is a hash of k, so that keys are spread over 64 bits. */
static __global__ void make_rows(size_t n, size_t numbers, int skew, uint64_t *key, float *x)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		const double u = unit(i * 2 + 1), last = (double)numbers + 1, s = 1 - skew * 0.1;
		double k = u * (double)numbers;

		if (skew)
			k = pow(1 + u * (pow(last, s) - 1), 1 / s) - 1;
		key[i] = mix(k >= (double)numbers ? numbers - 1 : (uint64_t)k);
		x[i] = (float)unit(i * 2 + 2);
	}
}

/* Adds the sum of x, weighted by key, to *sum. */
static __global__ void weigh(const uint64_t *n, const uint64_t *key, const float *x, double *sum)
{
	double v = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < *n;
	     i += (size_t)gridDim.x * blockDim.x)
		v += (double)x[i] * (1 + (double)(key[i] >> 40) * 0x1p-24);
	atomicAdd(sum, v);
}

static double weighed(const uint64_t *key, const float *v)
{
	double sum;

	need(!cudaMemset(sums, 0, sizeof(sum)), "cudaMemset");
	weigh<<<processors * 8, THREADS>>>(groups, key, v, sums);
	need(!cudaMemcpy(&sum, sums, sizeof(sum), cudaMemcpyDeviceToHost), "sums");
	return sum;
}

static bool is_right(double wanted, bool has_sums)
{
	uint64_t found = 0;

	need(!cudaMemcpy(&found, groups, sizeof(found), cudaMemcpyDeviceToHost), "groups");
	if (!known_groups)
		known_groups = found;
	return found == known_groups &&
	       (!has_sums || fabs(weighed(out_keys, out) - wanted) <= 1e-4 * wanted);
}

/* Adds a row and checks its runs. */
template <typename Call>
static void row(enum table_kind kind, const char *way, double wanted, bool has_sums, Call call)
{
	bool right = true;
	const struct figure f = measure((double)rows * 1e-3, [] {}, call,
					[&] { right = right && is_right(wanted, has_sums); });
	char number[24], note[48];

	snprintf(note, sizeof(note), "%s us%s",
		 table_number(number, (double)rows / (f.median * 1e3)), right ? "" : ", WRONG");
	table_add_note(&table, kind, way, f, note);
}

static void ceiling_row(void)
{
	struct figure best = {};

	/* keys alone, scaled to the bytes of keys and values */
	both_grids(rows / 2, [&](unsigned blocks, bool) {
		const struct figure f = measure((double)rows * 1e-3 * 8 / 12, [] {},
						[&] {
							read_all<1><<<blocks, THREADS>>>(
								rows / 2, (const uint4 *)keys,
								nullptr, (unsigned *)sums);
						},
						[] {});

		if (f.median > best.median)
			best = f;
	});
	table_add(&table, TABLE_CEILING, "reading keys and values", best);
}

static void cub_row(double wanted)
{
	const int n = (int)rows;
	auto sort = cub_call("cub::DeviceRadixSort", [=](void *t, size_t &has) {
		return cub::DeviceRadixSort::SortPairs(t, has, keys, sorted_keys, x, sorted_x, n);
	});
	auto reduce = cub_call("cub::DeviceReduce::ReduceByKey", [=](void *t, size_t &has) {
		return cub::DeviceReduce::ReduceByKey(t, has, sorted_keys, out_keys, sorted_x, out,
						      groups, plus(), n);
	});

	row(TABLE_PEER, "CUB: sort, reduce by key", wanted, true, [&] {
		sort();
		reduce();
	});
}

static void our_row(const char *way, enum cua_aggregate_op op, enum cua_key_order order,
		    double wanted)
{
	struct cua_group_by_options options = CUA_GROUP_BY_OPTIONS_INIT;
	struct cua_aggregate a = {};

	options.order = order;
	a.op = op;
	a.type = CUA_F32;
	a.values = x;
	a.out = op == CUA_AGGREGATE_SUM ? (void *)out : more;
	row(TABLE_OURS, way, wanted, op == CUA_AGGREGATE_SUM, [&] {
		need(cua_group_by(ctx, &options, CUA_U64, rows, keys, &a, 1, most_groups, out_keys,
				  groups) == CUA_OK,
		     way);
	});
}

/* A call that waits knows the number of groups. */
static void waiting_row(double wanted)
{
	struct cua_aggregate a = {};

	a.op = CUA_AGGREGATE_SUM;
	a.type = CUA_F32;
	a.values = x;
	a.out = out;
	row(TABLE_OURS, "cua_group_by SUM, count on the host", wanted, true, [&] {
		uint64_t count = 0;

		need(cua_group_by(ctx, NULL, CUA_U64, rows, keys, &a, 1, rows, out_keys, &count) ==
			     CUA_OK,
		     "cua_group_by");
		need(!cudaMemcpy(groups, &count, sizeof(count), cudaMemcpyHostToDevice), "count");
	});
}

static void unique_row(double wanted)
{
	struct cua_unique_options options = CUA_UNIQUE_OPTIONS_INIT;

	options.index_type = CUA_U32;
	options.inverse = more;
	row(TABLE_OURS, "cua_unique, inverse", wanted, false, [&] {
		need(cua_unique(ctx, &options, CUA_U64, rows, keys, most_groups, out_keys,
				groups) == CUA_OK,
		     "cua_unique");
	});
}

static void group_by_case(size_t n, size_t numbers, struct distribution d)
{
	const uint64_t all = n;
	char name[28], text[24];
	double wanted;

	rows = n;
	most_groups = numbers < n ? numbers : n;
	known_groups = 0;
	make_rows<<<processors * 8, THREADS>>>(rows, numbers, d.skew, keys, x);
	need(!cudaMemcpy(groups, &all, sizeof(all), cudaMemcpyHostToDevice), "rows");
	wanted = weighed(keys, x);
	snprintf(name, sizeof(name), "%.12s keys, %s", size_text(text, numbers), d.name);
	table_begin(&table, name);
	ceiling_row();
	cub_row(wanted);
	our_row("cua_group_by SUM", CUA_AGGREGATE_SUM, CUA_KEY_ORDER_FIRST, wanted);
	our_row("cua_group_by SUM, sorted", CUA_AGGREGATE_SUM, CUA_KEY_ORDER_SORTED, wanted);
	waiting_row(wanted);
	our_row("cua_group_by COUNT", CUA_AGGREGATE_COUNT, CUA_KEY_ORDER_FIRST, wanted);
	our_row("cua_group_by LAST", CUA_AGGREGATE_LAST, CUA_KEY_ORDER_FIRST, wanted);
	our_row("cua_group_by VARIANCE", CUA_AGGREGATE_VARIANCE, CUA_KEY_ORDER_FIRST, wanted);
	unique_row(wanted);
	table_end(&table);
}

int main(int argc, char **argv)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20;
	const struct options o = parse_options(argc, argv, "group-by", false);
	const cudaDeviceProp device = print_head("group-by");
	const size_t many = o.quick ? 128 * Ki : 96 * Mi, some = o.quick ? 4 * Ki : Mi;
	const struct distribution uniform = {0, "uniform"}, steep = {15, "zipf 1.5"};

	small = o.quick;
	processors = (unsigned)device.multiProcessorCount;
	need(!cudaMalloc(&keys, many * 8) && !cudaMalloc(&sorted_keys, many * 8) &&
		     !cudaMalloc(&out_keys, many * 8) && !cudaMalloc(&more, many * 8) &&
		     !cudaMalloc(&x, many * 4) && !cudaMalloc(&sorted_x, many * 4) &&
		     !cudaMalloc(&out, many * 4) && !cudaMalloc(&sums, 16) &&
		     !cudaMalloc(&groups, 8) &&
		     cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK,
	     "context and memory");
	printf("keys of 64 bits, values of f32; %zu rows\n", many);
	table_columns("G/s", "a call");
	group_by_case(many, many, uniform);
	group_by_case(many, some, uniform);
	group_by_case(many, some, steep);
	group_by_case(many, Ki, uniform);
	group_by_case(many, Ki, steep);
	cua_context_destroy(ctx);
	cudaFree(keys);
	cudaFree(sorted_keys);
	cudaFree(out_keys);
	cudaFree(more);
	cudaFree(x);
	cudaFree(sorted_x);
	cudaFree(out);
	cudaFree(sums);
	cudaFree(groups);
	cudaFree(temporary);
	return 0;
}
