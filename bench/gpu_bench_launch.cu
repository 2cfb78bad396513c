/* SPDX-License-Identifier: MIT */
/*
 * bench-launch: the time of launches, of waits, and of the smallest calls of the library.
 *
 * in a row      mean of launches that follow each other in a stream
 * and wait      a launch and the wait for its end, on the host's clock
 *
 * Source of the programs: The CUDA Handbook, streams and events: null kernel launches.
 */
#include <cuatomic.h>

#include "gpu_bench_memory.h"

/* Launches of a sample in a row. */
#define MANY 1000
#define FILL_MOST ((size_t)1 << 20)

static int many;
static unsigned *counter;
static struct figure ceiling;

/* Each launch adds 1, so that a launch that did not run is found. */
static __global__ void add_one(unsigned *p)
{
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*p += 1;
}

static unsigned count(void)
{
	unsigned n;

	need(!cudaMemcpy(&n, counter, sizeof(n), cudaMemcpyDeviceToHost), "a count");
	return n;
}

/*
 * Returns microseconds of one of `calls` calls of a sample. launches: what a call adds to the
 * counter.
 */
template <typename Call>
static struct figure time_calls(const char *way, int calls, unsigned launches, Call call)
{
	unsigned before;
	uint64_t total = 0;
	struct stats s;
	double start;

	need(!cudaDeviceSynchronize(), way);
	before = count();
	stats_begin(&s, bench_stats_plan());
	do {
		start = stats_now();
		for (int i = 0; i < calls; i++)
			call();
		need(!cudaDeviceSynchronize(), way);
		total += (uint64_t)calls * launches;
	} while (stats_add(&s, (stats_now() - start) * 1e6 / calls, stats_now()));
	need(count() - before == (unsigned)total, way);
	return table_stats(&s);
}

template <typename Call>
static void time_row(enum table_kind kind, const char *way, int calls, unsigned launches, Call call)
{
	if (table_wants(table.name, way))
		table_add(&table, kind, way, time_calls(way, calls, launches, call));
}

static void begin_case(const char *name)
{
	table_begin(&table, name);
	table_add(&table, TABLE_CEILING, "ceiling: node of a long graph", ceiling);
}

/* ---- kernels ---- */

static void kernel_rows(cudaStream_t stream)
{
	unsigned *p = counter;

	begin_case("kernel");
	time_row(TABLE_OURS, "in a row, 1 thread", many, 1,
		 [=] { add_one<<<1, 1, 0, stream>>>(p); });
	time_row(TABLE_OURS, "in a row, all multiprocessors", many, 1,
		 [=] { add_one<<<processors, 1024, 0, stream>>>(p); });
	time_row(TABLE_OURS, "and wait, 1 thread", 1, 1, [=] {
		add_one<<<1, 1, 0, stream>>>(p);
		need(!cudaStreamSynchronize(stream), "a wait");
	});
	time_row(TABLE_OURS, "and wait, all multiprocessors", 1, 1, [=] {
		add_one<<<processors, 1024, 0, stream>>>(p);
		need(!cudaStreamSynchronize(stream), "a wait");
	});
	time_row(TABLE_OURS, "cooperative, and wait", 1, 1, [=] {
		unsigned *argument = p;
		void *arguments[] = {&argument};

		need(!cudaLaunchCooperativeKernel((const void *)add_one, dim3(processors),
						  dim3(1024), arguments, 0, stream) &&
			     !cudaStreamSynchronize(stream),
		     "a cooperative launch");
	});
	table_end(&table);
}

/* ---- graphs ---- */

static cudaGraphExec_t graph_of(cudaStream_t stream, int nodes)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	need(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "a capture");
	for (int i = 0; i < nodes; i++)
		add_one<<<1, 1, 0, stream>>>(counter);
	need(!cudaStreamEndCapture(stream, &graph) &&
		     !cudaGraphInstantiateWithFlags(&exec, graph, 0) &&
		     !cudaGraphUpload(exec, stream) && !cudaStreamSynchronize(stream),
	     "a graph");
	cudaGraphDestroy(graph);
	return exec;
}

/* The time of a node: `many` nodes are a single launch. */
static struct figure node_ceiling(cudaStream_t stream)
{
	cudaGraphExec_t graph = graph_of(stream, many);
	struct figure f;
	int node = 0;

	f = time_calls("a long graph", many, 1, [&] {
		if (node++ % many == 0)
			need(!cudaGraphLaunch(graph, stream), "a graph");
	});
	cudaGraphExecDestroy(graph);
	return f;
}

static void graph_rows(cudaStream_t stream)
{
	cudaGraphExec_t one = graph_of(stream, 1);

	begin_case("graph");
	time_row(TABLE_OURS, "1 node, and wait", 1, 1, [=] {
		need(!cudaGraphLaunch(one, stream) && !cudaStreamSynchronize(stream), "a graph");
	});
	time_row(TABLE_OURS, "1 node, in a row", many, 1,
		 [=] { need(!cudaGraphLaunch(one, stream), "a graph"); });
	table_end(&table);
	cudaGraphExecDestroy(one);
}

/* ---- waits ---- */

static void wait_rows(cudaStream_t stream)
{
	cudaEvent_t event;
	char *host;
	unsigned *device = counter + 1;

	need(!cudaEventCreateWithFlags(&event, cudaEventDisableTiming) &&
		     !cudaMallocHost(&host, 64),
	     "an event");
	begin_case("wait");
	time_row(TABLE_OURS, "cudaStreamSynchronize, nothing queued", many, 0,
		 [=] { need(!cudaStreamSynchronize(stream), "a wait"); });
	time_row(TABLE_OURS, "event record and synchronize", 1, 0, [=] {
		need(!cudaEventRecord(event, stream) && !cudaEventSynchronize(event), "an event");
	});
	time_row(TABLE_OURS, "copy of 4 bytes to pinned memory, and wait", 1, 0, [=] {
		need(!cudaMemcpyAsync(host, device, 4, cudaMemcpyDeviceToHost, stream) &&
			     !cudaStreamSynchronize(stream),
		     "a copy");
	});
	time_row(TABLE_OURS, "cudaMallocAsync and cudaFreeAsync", many, 0, [=] {
		void *p;

		need(!cudaMallocAsync(&p, 1 << 20, stream) && !cudaFreeAsync(p, stream),
		     "cudaMallocAsync");
	});
	time_row(TABLE_OURS, "cudaMalloc and cudaFree, 1 MiB", 1, 0, [=] {
		void *p;

		need(!cudaMalloc(&p, 1 << 20) && !cudaFree(p), "cudaMalloc");
	});
	table_end(&table);
	cudaEventDestroy(event);
	cudaFreeHost(host);
}

/* ---- calls of the library ---- */

static void call_rows(cudaStream_t stream)
{
	const uint8_t pattern[1] = {0};
	struct cua_context *ctx;
	float *x = (float *)device_memory(FILL_MOST), *sum;

	need(!cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) &&
		     !cua_context_set_stream(ctx, (struct CUstream_st *)stream) &&
		     !cudaMalloc(&sum, 16) && !cudaMemset(x, 0, FILL_MOST),
	     "a context");
	begin_case("call");
	for (size_t n = 1; n <= 65536; n *= 65536) {
		char way[TABLE_NAME];

		snprintf(way, sizeof(way), "cua_sum of %zu float%s, in a row", n,
			 n == 1 ? "" : "s");
		time_row(TABLE_OURS, way, many, 0,
			 [=] { need(!cua_sum(ctx, CUA_F32, n, x, sum), "a sum"); });
		snprintf(way, sizeof(way), "cua_sum of %zu float%s, and wait", n,
			 n == 1 ? "" : "s");
		time_row(TABLE_OURS, way, 1, 0, [=] {
			need(!cua_sum(ctx, CUA_F32, n, x, sum) && !cua_context_synchronize(ctx),
			     "a sum");
		});
	}
	for (size_t n = 1; n <= FILL_MOST; n *= 1024) {
		char way[TABLE_NAME], size[24];

		bytes_text(size, n);
		snprintf(way, sizeof(way), "cudaMemset, %.12s, in a row", size);
		time_row(TABLE_PEER, way, many, 0,
			 [=] { need(!cudaMemsetAsync(x, 0, n, stream), "cudaMemset"); });
		snprintf(way, sizeof(way), "cua_fill, %.12s, in a row", size);
		time_row(TABLE_OURS, way, many, 0,
			 [=] { need(!cua_fill(ctx, x, n, 1, pattern), "a fill"); });
	}
	table_end(&table);
	cua_context_destroy(ctx);
	cudaFree(x);
	cudaFree(sum);
}

static void bench_launch(const struct options *o)
{
	cudaStream_t stream;

	many = o->quick ? 20 : MANY;
	need(!cudaMalloc(&counter, 64) && !cudaMemset(counter, 0, 64) &&
		     !cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
	     "a stream");
	bench_plan(4 + 5 + 2 + 5 + 4 + 6);
	table_columns("us", "");
	ceiling = node_ceiling(stream);
	kernel_rows(stream);
	graph_rows(stream);
	wait_rows(stream);
	call_rows(stream);
	cudaStreamDestroy(stream);
	cudaFree(counter);
}

int main(int argc, char **argv)
{
	static const struct memory_bench bench = {"launch", bench_launch};

	return run_memory_bench(argc, argv, &bench, 1);
}
