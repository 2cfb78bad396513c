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
static uint32_t *host_target; /* of copies from a GPU, or NULL */

static size_t sums_bytes(void)
{
	return (size_t)processors * 4096 * sizeof(uint32_t);
}

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
	g->x = (uint32_t *)random_memory(bytes, (uint64_t)device + 1);
	g->y = (uint32_t *)device_memory(bytes);
	g->sums = (uint32_t *)device_memory(sums_bytes());
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

/* Without old contents, a move that does nothing is found. */
static void clear_targets(void)
{
	for (int i = 0; i < n_gpus; i++)
		need(!cudaSetDevice(i) && !cudaMemset(gpus[i].y, 0, bytes) &&
			     !cudaMemset(gpus[i].sums, 0, sums_bytes()) && !cudaDeviceSynchronize(),
		     "cudaMemset");
	if (host_target)
		memset(host_target, 0, bytes);
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
	clear_targets();
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
	host_target = to;
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
			[=] {
				uint64_t got = 0;

				for (size_t i = 0; i < n; i++)
					got += to[i];
				return sum_of(device, g->y, n) == sum &&
				       got == sum_of(device, g->x, n);
			});
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
	host_target = NULL;
	cudaFreeHost(pinned[0]);
	cudaFreeHost(pinned[1]);
	free(plain[0]);
	free(plain[1]);
}

/* ---- pairs of GPUs ---- */

/*
 * Opens or closes the access of GPU i to the memory of GPU j. Without it, copies go through the
 * memory of the host. Returns whether there is access: a GPU has access to at most 8 peers at once.
 */
static bool set_access(int i, int j, bool open)
{
	int access = 0;

	need(!cudaDeviceCanAccessPeer(&access, i, j) && !cudaSetDevice(i),
	     "cudaDeviceCanAccessPeer");
	if (access && (open ? cudaDeviceEnablePeerAccess(j, 0) : cudaDeviceDisablePeerAccess(j)) !=
			      cudaSuccess) {
		(void)cudaGetLastError();
		access = 0;
	}
	return access;
}

/* Copies from the array of GPU i to the target of GPU j. */
static void queue_copy(int i, int j)
{
	need(!cudaMemcpyPeerAsync(gpus[j].y, j, gpus[i].x, i, bytes, gpus[i].stream), "a copy");
}

static void wait_for(int device)
{
	need(!cudaStreamSynchronize(gpus[device].stream), "a wait");
}

/* Kernels of GPU i read from GPU j and write to it. */
static void kernel_rows(int i, int j)
{
	struct gpu *a = &gpus[i], *b = &gpus[j];
	const size_t n = bytes / 4, words = bytes / 16;

	move_row(
		TABLE_OURS, "loads by a kernel", (double)bytes,
		[=] {
			need(!cudaSetDevice(i), "cudaSetDevice");
			read_kernel<plain_access, 8, uint4><<<a->blocks, 512, 0, a->stream>>>(
				(const uint4 *)b->x, words, a->sums);
			wait_for(i);
		},
		[=] {
			return (uint32_t)sum_of(i, a->sums, (size_t)a->blocks * 512) ==
			       (uint32_t)sum_of(j, b->x, n);
		});
	move_row(
		TABLE_OURS, "stores by a kernel", (double)bytes,
		[=] {
			need(!cudaSetDevice(i), "cudaSetDevice");
			copy_kernel<plain_access, 8, uint4><<<a->blocks, 512, 0, a->stream>>>(
				(uint4 *)b->y, (const uint4 *)a->x, words);
			wait_for(i);
		},
		[=] { return sum_of(j, b->y, n) == sum_of(i, a->x, n); });
}

/* GPU i copies its array to GPU j, and reads and writes the memory of GPU j. */
static void pair_case(int i, int j)
{
	struct gpu *a = &gpus[i], *b = &gpus[j];
	const size_t n = bytes / 4;
	const bool access = set_access(i, j, true), back = set_access(j, i, true);
	char name[28];

	snprintf(name, sizeof(name), "GPU %d to GPU %d", i % 100, j % 100);
	table_begin(&table, name);
	move_row(
		TABLE_CEILING, "ceiling: cudaMemcpyPeer", (double)bytes,
		[=] {
			queue_copy(i, j);
			wait_for(i);
		},
		[=] { return sum_of(j, b->y, n) == sum_of(i, a->x, n); });
	move_row(
		TABLE_OURS, "cudaMemcpyPeer, both directions", 2.0 * (double)bytes,
		[=] {
			queue_copy(i, j);
			queue_copy(j, i);
			wait_for(i);
			wait_for(j);
		},
		[=] {
			return sum_of(j, b->y, n) == sum_of(i, a->x, n) &&
			       sum_of(i, a->y, n) == sum_of(j, b->x, n);
		});
	if (access) {
		kernel_rows(i, j);
		set_access(i, j, false);
	} else {
		table_add(&table, TABLE_OURS, "loads by a kernel", (struct figure){});
		table_add(&table, TABLE_OURS, "stores by a kernel", (struct figure){});
	}
	if (back)
		set_access(j, i, false);
	table_end(&table);
}

static void bench_peer(const struct options *o)
{
	bytes = o->quick ? (size_t)1 << 20 : (size_t)256 << 20;
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
				pair_case(i, j);
	for (int i = 0; i < n_gpus; i++)
		close_gpu(i);
}

int main(int argc, char **argv)
{
	static const struct memory_bench bench = {"peer", bench_peer};

	return run_memory_bench(argc, argv, &bench, 1);
}
