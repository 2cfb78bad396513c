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
#define SUM_MOST ((size_t)65536)

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
 * Returns microseconds of one of `calls` calls of a sample. launches: additions of a call to the
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

/* Adds a row. check() returns whether the calls had their effect. */
template <typename Call, typename Check>
static void check_row(enum table_kind kind, const char *way, int calls, unsigned launches,
		      Call call, Check check)
{
	struct figure f;

	if (!table_wants(table.name, way))
		return;
	f = time_calls(way, calls, launches, call);
	need(check(), way);
	table_add(&table, kind, way, f);
}

template <typename Call>
static void time_row(enum table_kind kind, const char *way, int calls, unsigned launches, Call call)
{
	check_row(kind, way, calls, launches, call, [] { return true; });
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

/* The time of a node of a graph with `many` nodes. */
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
	unsigned *host;
	int pools = 0;
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
	*host = 0;
	need(!cudaMemset(device, 0x5a, 4), "cudaMemset");
	check_row(
		TABLE_OURS, "copy of 4 bytes to pinned memory, and wait", 1, 0,
		[=] {
			need(!cudaMemcpyAsync(host, device, 4, cudaMemcpyDeviceToHost, stream) &&
				     !cudaStreamSynchronize(stream),
			     "a copy");
		},
		[=] { return *host == 0x5a5a5a5a; });
	need(!cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0), "attribute");
	if (!pools)
		table_add(&table, TABLE_OURS, "cudaMallocAsync and cudaFreeAsync", {});
	else
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

/* Sums of n elements that are 1. */
static void sum_rows(struct cua_context *ctx, const float *ones, float *sum, size_t n)
{
	const char *plural = n == 1 ? "" : "s";
	char way[TABLE_NAME];
	const auto is_right = [=] {
		float got;

		return !cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost) &&
		       !cudaMemset(sum, 0, sizeof(got)) && got == (float)n;
	};

	snprintf(way, sizeof(way), "cua_sum of %zu float%s, in a row", n, plural);
	check_row(
		TABLE_OURS, way, many, 0,
		[=] { need(!cua_sum(ctx, CUA_F32, n, ones, sum), "a sum"); }, is_right);
	snprintf(way, sizeof(way), "cua_sum of %zu float%s, and wait", n, plural);
	check_row(
		TABLE_OURS, way, 1, 0,
		[=] {
			need(!cua_sum(ctx, CUA_F32, n, ones, sum) && !cua_context_synchronize(ctx),
			     "a sum");
		},
		is_right);
}

/* Fills of n bytes of an array of FILL_MOST bytes. */
static void fill_rows(struct cua_context *ctx, uint8_t *x, size_t n, cudaStream_t stream)
{
	static uint8_t got[FILL_MOST];
	static const uint8_t pattern[1] = {0x5a};
	char way[TABLE_NAME], size[24];
	const auto is_right = [=] {
		size_t filled = 0;

		if (cudaMemcpy(got, x, FILL_MOST, cudaMemcpyDeviceToHost) != cudaSuccess ||
		    cudaMemset(x, 0, FILL_MOST) != cudaSuccess)
			return false;
		while (filled < FILL_MOST && got[filled] == pattern[0])
			filled++;
		return filled == n;
	};

	bench_bytes(size, n);
	snprintf(way, sizeof(way), "cudaMemset, %.12s, in a row", size);
	check_row(
		TABLE_PEER, way, many, 0,
		[=] { need(!cudaMemsetAsync(x, pattern[0], n, stream), "cudaMemset"); }, is_right);
	snprintf(way, sizeof(way), "cua_fill, %.12s, in a row", size);
	check_row(
		TABLE_OURS, way, many, 0, [=] { need(!cua_fill(ctx, x, n, 1, pattern), "a fill"); },
		is_right);
}

static void call_rows(cudaStream_t stream)
{
	static float ones[SUM_MOST];
	uint8_t *x = (uint8_t *)device_memory(FILL_MOST);
	float *elements = (float *)device_memory(sizeof(ones));
	float *sum = (float *)device_memory(16);
	struct cua_context *ctx;

	for (size_t i = 0; i < SUM_MOST; i++)
		ones[i] = 1;
	need(!cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) &&
		     !cua_context_set_stream(ctx, (struct CUstream_st *)stream) &&
		     !cudaMemcpy(elements, ones, sizeof(ones), cudaMemcpyHostToDevice) &&
		     !cudaMemset(sum, 0, 16) && !cudaMemset(x, 0, FILL_MOST),
	     "a context");
	begin_case("call");
	sum_rows(ctx, elements, sum, 1);
	sum_rows(ctx, elements, sum, SUM_MOST);
	for (size_t n = 1; n <= FILL_MOST; n *= 1024)
		fill_rows(ctx, x, n, stream);
	table_end(&table);
	cua_context_destroy(ctx);
	cudaFree(x);
	cudaFree(elements);
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
