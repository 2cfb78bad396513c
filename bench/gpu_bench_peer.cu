/* SPDX-License-Identifier: MIT */
/*
 * bench-peer: copies between the host and each GPU, and between all pairs of GPUs. Between GPUs,
 * kernels also load from and store to the memory of the other GPU. The sum of the moved words is
 * checked.
 *
 * Source of the programs: The CUDA Handbook, global memory and streaming workloads.
 */
#include "gpu_bench_memory.h"

#define DEVICES_MOST 16

struct gpu {
	uint32_t *x, *y; /* random words, and a target */
	uint32_t *sums;  /* of the threads of read_kernel */
	unsigned long long *total;
	cudaStream_t stream, other;
	unsigned blocks;
};

static struct gpu gpus[DEVICES_MOST];
static int n_gpus;
static size_t bytes;

static __global__ void sum_all(const uint32_t *x, size_t n, unsigned long long *total)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;
	unsigned long long sum = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		sum += x[i];
	atomicAdd(total, sum);
}

/* The sum of words in the memory of a GPU. */
static uint64_t sum_of(int device, const uint32_t *x, size_t n)
{
	unsigned long long sum;

	need(!cudaSetDevice(device) && !cudaMemset(gpus[device].total, 0, sizeof(sum)), "a sum");
	sum_all<<<processors * 8, 256>>>(x, n, gpus[device].total);
	need(!cudaMemcpy(&sum, gpus[device].total, sizeof(sum), cudaMemcpyDeviceToHost), "a sum");
	return sum;
}

static void open_gpu(int device)
{
	struct gpu *g = &gpus[device];

	need(!cudaSetDevice(device), "cudaSetDevice");
	g->x = (uint32_t *)random_memory(bytes);
	g->y = (uint32_t *)device_memory(bytes);
	g->sums = (uint32_t *)device_memory((size_t)processors * 4096 * sizeof(*g->sums));
	g->total = (unsigned long long *)device_memory(sizeof(*g->total));
	g->blocks = resident(read_kernel<plain_access, 8, uint4>, 512, bytes / 16 / 512 / 8);
	need(!cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking) &&
		     !cudaStreamCreateWithFlags(&g->other, cudaStreamNonBlocking),
	     "streams");
}

static void close_gpu(int device)
{
	struct gpu *g = &gpus[device];

	cudaSetDevice(device);
	cudaStreamDestroy(g->stream);
	cudaStreamDestroy(g->other);
	cudaFree(g->x);
	cudaFree(g->y);
	cudaFree(g->sums);
	cudaFree(g->total);
}

/*
 * Adds a row: GB/s of a call that moves `moved` bytes, on the host's clock, because several devices
 * take part. call() ends when the bytes have moved.
 */
template <typename Call, typename Check>
static void move_row(enum table_kind kind, const char *way, double moved, Call call, Check check)
{
	struct stats s;
	double start;

	if (!table_wants(table.name, way))
		return;
	stats_begin(&s, bench_stats_plan());
	do {
		start = stats_now();
		call();
	} while (stats_add(&s, moved * 1e-9 / (stats_now() - start), stats_now()));
	need(check(), way);
	table_add(&table, kind, way, table_stats(&s));
}

/* ---- the host ---- */

static void host_rows(const char *memory_name, enum table_kind kind, int device, uint32_t *from,
		      uint32_t *to)
{
	struct gpu *g = &gpus[device];
	const size_t n = bytes / 4;
	char way[3][TABLE_NAME];
	uint64_t sum = 0;

	snprintf(way[0], sizeof(way[0]), "%s, to the GPU", memory_name);
	snprintf(way[1], sizeof(way[1]), "%s, from the GPU", memory_name);
	snprintf(way[2], sizeof(way[2]), "%s, both directions", memory_name);
	for (size_t i = 0; i < n; i++) {
		from[i] = (uint32_t)mix(i);
		sum += from[i];
	}
	memset(to, 0, bytes);
	move_row(
		kind, way[0], (double)bytes,
		[=] {
			need(!cudaMemcpyAsync(g->y, from, bytes, cudaMemcpyHostToDevice,
					      g->stream) &&
				     !cudaStreamSynchronize(g->stream),
			     "a copy");
		},
		[=] { return sum_of(device, g->y, n) == sum; });
	move_row(
		kind, way[1], (double)bytes,
		[=] {
			need(!cudaMemcpyAsync(to, g->x, bytes, cudaMemcpyDeviceToHost, g->stream) &&
				     !cudaStreamSynchronize(g->stream),
			     "a copy");
		},
		[=] {
			uint64_t got = 0;

			for (size_t i = 0; i < n; i++)
				got += to[i];
			return got == sum_of(device, g->x, n);
		});
	if (kind == TABLE_CEILING)
		move_row(
			TABLE_OURS, way[2], 2.0 * (double)bytes,
			[=] {
				need(!cudaMemcpyAsync(g->y, from, bytes, cudaMemcpyHostToDevice,
						      g->stream) &&
					     !cudaMemcpyAsync(to, g->x, bytes,
							      cudaMemcpyDeviceToHost, g->other) &&
					     !cudaStreamSynchronize(g->stream) &&
					     !cudaStreamSynchronize(g->other),
				     "copies");
			},
			[=] { return sum_of(device, g->y, n) == sum; });
}

static void host_case(int device)
{
	uint32_t *pinned[2], *plain[2];
	char name[28];

	need(!cudaSetDevice(device) && !cudaMallocHost(&pinned[0], bytes) &&
		     !cudaMallocHost(&pinned[1], bytes),
	     "pinned memory");
	plain[0] = (uint32_t *)malloc(bytes);
	plain[1] = (uint32_t *)malloc(bytes);
	need(plain[0] && plain[1], "memory");
	snprintf(name, sizeof(name), "host and GPU %d", device);
	table_begin(&table, name);
	host_rows("pinned", TABLE_CEILING, device, pinned[0], pinned[1]);
	host_rows("pageable", TABLE_OURS, device, plain[0], plain[1]);
	table_end(&table);
	cudaFreeHost(pinned[0]);
	cudaFreeHost(pinned[1]);
	free(plain[0]);
	free(plain[1]);
}

/* ---- pairs of GPUs ---- */

/* GPU i copies its array to GPU j, and reads and writes the memory of GPU j. */
static void pair_case(int i, int j)
{
	struct gpu *a = &gpus[i], *b = &gpus[j];
	const size_t n = bytes / 4, words = bytes / 16;
	const uint64_t sum = sum_of(i, a->x, n);
	int access = 0;
	char name[28];

	snprintf(name, sizeof(name), "GPU %d to GPU %d", i % 100, j % 100);
	table_begin(&table, name);
	move_row(
		TABLE_CEILING, "ceiling: cudaMemcpyPeer", (double)bytes,
		[=] {
			need(!cudaMemcpyPeerAsync(b->y, j, a->x, i, bytes, a->stream) &&
				     !cudaStreamSynchronize(a->stream),
			     "a copy");
		},
		[=] { return sum_of(j, b->y, n) == sum; });
	move_row(
		TABLE_OURS, "cudaMemcpyPeer, both directions", 2.0 * (double)bytes,
		[=] {
			need(!cudaMemcpyPeerAsync(b->y, j, a->x, i, bytes, a->stream) &&
				     !cudaMemcpyPeerAsync(a->y, i, b->x, j, bytes, b->stream) &&
				     !cudaStreamSynchronize(a->stream) &&
				     !cudaStreamSynchronize(b->stream),
			     "copies");
		},
		[=] { return sum_of(j, b->y, n) == sum; });
	need(!cudaDeviceCanAccessPeer(&access, i, j), "cudaDeviceCanAccessPeer");
	if (access) {
		move_row(
			TABLE_OURS, "loads by a kernel", (double)bytes,
			[=] {
				need(!cudaSetDevice(i), "cudaSetDevice");
				read_kernel<plain_access, 8, uint4>
					<<<a->blocks, 512, 0, a->stream>>>((const uint4 *)b->x,
									   words, a->sums);
				need(!cudaStreamSynchronize(a->stream), "loads");
			},
			[=] {
				return (uint32_t)sum_of(i, a->sums, (size_t)a->blocks * 512) ==
				       (uint32_t)sum_of(j, b->x, n);
			});
		need(!cudaSetDevice(j) && !cudaMemset(b->y, 0, bytes) && !cudaSetDevice(i),
		     "cudaMemset");
		move_row(
			TABLE_OURS, "stores by a kernel", (double)bytes,
			[=] {
				need(!cudaSetDevice(i), "cudaSetDevice");
				copy_kernel<plain_access, 8, uint4>
					<<<a->blocks, 512, 0, a->stream>>>(
						(uint4 *)b->y, (const uint4 *)a->x, words);
				need(!cudaStreamSynchronize(a->stream), "stores");
			},
			[=] { return sum_of(j, b->y, n) == sum; });
	} else {
		table_add(&table, TABLE_OURS, "loads by a kernel", (struct figure){});
		table_add(&table, TABLE_OURS, "stores by a kernel", (struct figure){});
	}
	table_end(&table);
}

/* Without it, copies go through the memory of the host. */
static void enable_access(int i, int j)
{
	int access = 0;

	need(!cudaDeviceCanAccessPeer(&access, i, j), "cudaDeviceCanAccessPeer");
	if (access)
		need(!cudaSetDevice(i) && !cudaDeviceEnablePeerAccess(j, 0),
		     "cudaDeviceEnablePeerAccess");
}

static void bench_peer(const struct options *o)
{
	bytes = memory_size(o->quick ? (uint64_t)1 << 20 : (uint64_t)256 << 20);
	bytes = (bytes + 65535) / 65536 * 65536;
	need(!cudaGetDeviceCount(&n_gpus), "cudaGetDeviceCount");
	n_gpus = n_gpus < DEVICES_MOST ? n_gpus : DEVICES_MOST;
	for (int i = 0; i < n_gpus; i++)
		open_gpu(i);
	bench_plan((size_t)n_gpus * 5 + (size_t)n_gpus * (size_t)(n_gpus - 1) * 4);
	printf("%d GPU%s; %zu MiB a copy\n", n_gpus, n_gpus == 1 ? ": there are no pairs" : "s",
	       bytes >> 20);
	table_columns("GB/s", "");
	for (int i = 0; i < n_gpus; i++)
		host_case(i);
	for (int i = 0; i < n_gpus; i++)
		for (int j = 0; j < n_gpus; j++)
			if (i != j)
				enable_access(i, j);
	for (int i = 0; i < n_gpus; i++)
		for (int j = 0; j < n_gpus; j++)
			if (i != j)
				pair_case(i, j);
	for (int i = 0; i < n_gpus; i++)
		close_gpu(i);
}

int main(int argc, char **argv)
{
	static const struct memory_bench bench = {"peer", bench_peer};

	return run_memory_bench(argc, argv, &bench, 1);
}
