/* SPDX-License-Identifier: MIT */
/*
 * The ranks of `cuatomic bench group`: their contexts, arrays and groups, and the timing of
 * collective calls. All ranks are in this process. Groups by peer copies: a single group of all
 * ranks, called by the main thread. Groups by NCCL: a group for each rank, called by a thread of
 * its own.
 */
#ifndef CUATOMIC_BENCH_GROUP_H
#define CUATOMIC_BENCH_GROUP_H

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <cuatomic.h>

#include "gpu_bench_calls.h"

#define MOST_RANKS 8
#define BLOCKS 1024
#define EACH(i, n)                                                                                 \
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n);                    \
	     i += gridDim.x * (size_t)blockDim.x)

static uint32_t ranks;
static int devices;
static struct cua_context *contexts[MOST_RANKS];
/* The group of a rank is groups[rank]. By peer copies, groups[0] has all ranks. */
static struct cua_group *groups[MOST_RANKS];
static uint32_t n_groups;
static bool by_nccl;

/* Arrays of each rank: bytes of GPU memory, and a float for results of sums. */
static char *arrays[MOST_RANKS];
static size_t array_bytes[MOST_RANKS];
static float *results[MOST_RANKS];
static size_t lengths[MOST_RANKS]; /* elements of a rank */

static void check(enum cua_status status, const char *way)
{
	if (status == CUA_OK)
		return;
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: group: %s, %s: %s\n", table.name, way,
		cua_strerror(status));
	exit(1);
}

/* Queues work(rank) on the GPU of each rank, and waits for it. */
template <typename Work> static void on_each_gpu(Work work)
{
	for (uint32_t r = 0; r < ranks; r++) {
		need(!cudaSetDevice(cua_context_device(contexts[r])), "cudaSetDevice");
		work(r);
		need(!cudaDeviceSynchronize(), "a kernel of a rank");
	}
	need(!cudaSetDevice(0), "cudaSetDevice");
}

/* ---- memory ---- */

static void print_skipped(const char *what)
{
	printf("%s: skipped, a GPU has too little memory\n", what);
	fflush(stdout);
}

/* Enlarges the arrays; their contents are lost. Returns false if a GPU has too little memory. */
static bool allocate(const size_t *bytes)
{
	bool enough = true;

	for (uint32_t r = 0; r < ranks && enough; r++) {
		size_t is_free = 0, all = 0;

		if (bytes[r] <= array_bytes[r])
			continue;
		need(!cudaSetDevice(cua_context_device(contexts[r])), "cudaSetDevice");
		need(!cudaFree(arrays[r]), "cudaFree");
		arrays[r] = NULL;
		array_bytes[r] = 0;
		need(!cudaMemGetInfo(&is_free, &all), "cudaMemGetInfo");
		enough = bytes[r] <= is_free && !cudaMalloc((void **)&arrays[r], bytes[r]);
		if (enough)
			array_bytes[r] = bytes[r];
		else
			(void)cudaGetLastError();
	}
	need(!cudaSetDevice(0), "cudaSetDevice");
	return enough;
}

/* ---- collective calls ---- */

struct period {
	double start, end;
};

/* Makes call(first) `times` times, and waits for `used` ranks from `first` on. */
template <typename Call>
static struct period time_calls(const char *way, int times, uint32_t first, uint32_t used,
				const Call &call)
{
	struct period p;

	p.start = now();
	for (int i = 0; i < times; i++)
		check(call(first), way);
	for (uint32_t r = first; r < first + used; r++)
		check(cua_context_synchronize(contexts[r]), way);
	p.end = now();
	return p;
}

/*
 * Waits for the threads of all ranks, without sleep: a thread that wakes up late would be
 * measured.
 */
static void meet(void)
{
	static unsigned arrived, turn;
	const unsigned before = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == ranks) {
		__atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&turn, before + 1, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == before)
		sched_yield();
}

template <typename Call> struct rank_thread {
	pthread_t thread;
	const char *way;
	const Call *call;
	int times;
	uint32_t rank;
	struct period period;
};

template <typename Call> static void *rank_main(void *arg)
{
	struct rank_thread<Call> *t = (struct rank_thread<Call> *)arg;

	/* the first call of CUDA in a thread takes longer */
	check(cua_context_synchronize(contexts[t->rank]), t->way);
	meet();
	t->period = time_calls(t->way, t->times, t->rank, 1, *t->call);
	return NULL;
}

/*
 * Makes a collective call `times` times: call(first), with the first rank of each group, in a
 * thread for each group. Returns the seconds from the first begin to the last end.
 */
template <typename Call> static double collective(const char *way, int times, const Call &call)
{
	struct rank_thread<Call> threads[MOST_RANKS];
	struct period all = {};

	if (!by_nccl) {
		all = time_calls(way, times, 0, ranks, call);
		return all.end - all.start;
	}
	for (uint32_t r = 0; r < ranks; r++) {
		threads[r].way = way;
		threads[r].call = &call;
		threads[r].times = times;
		threads[r].rank = r;
		need(!pthread_create(&threads[r].thread, NULL, rank_main<Call>, &threads[r]),
		     "pthread_create");
	}
	for (uint32_t r = 0; r < ranks; r++) {
		need(!pthread_join(threads[r].thread, NULL), "pthread_join");
		if (!r || threads[r].period.start < all.start)
			all.start = threads[r].period.start;
		if (!r || threads[r].period.end > all.end)
			all.end = threads[r].period.end;
	}
	return all.end - all.start;
}

/* ---- rows ---- */

/*
 * Adds a row: run() returns the seconds of `calls` calls. amount: bytes or pairs of a call of all
 * ranks; the unit of the table is thousands of millions of these.
 */
template <typename Run>
static void add_runs(enum table_kind kind, const char *way, double amount, Run run)
{
	double rates[BENCH_RUNS];
	char note[32];
	struct figure f;

	if (!table_wants(table.name, way))
		return;
	for (int i = -2; i < BENCH_RUNS; i++) {
		const double seconds = run();

		if (i >= 0)
			rates[i] = amount * calls / seconds * 1e-9;
	}
	f = table_figure(rates, BENCH_RUNS);
	snprintf(note, sizeof(note), "%.1f us", amount / f.median * 1e-3);
	table_add_note(&table, kind, way, f, note);
}

/* The row of a peer, on `used` ranks. */
template <typename Call>
static void peer_row(const char *way, uint32_t used, double amount, Call call)
{
	add_runs(TABLE_PEER, way, amount, [&] {
		const struct period p =
			time_calls(way, calls, 0, used, [&](uint32_t) { return call(); });

		return p.end - p.start;
	});
}

/* The row of a collective call. */
template <typename Call> static void group_row(const char *way, double amount, Call call)
{
	char title[TABLE_NAME];

	snprintf(title, sizeof(title), "%s%s", way, by_nccl ? ", NCCL" : "");
	add_runs(TABLE_OURS, title, amount, [&] { return collective(way, calls, call); });
}

/* ---- contexts and groups ---- */

/* wanted: the number of ranks; 0: a rank for each GPU, and two on a single GPU. */
static void open_contexts(uint32_t wanted)
{
	need(!cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
	ranks = devices < 2 ? 2 : devices > MOST_RANKS ? MOST_RANKS : (uint32_t)devices;
	if (wanted)
		ranks = wanted;
	for (uint32_t r = 0; r < ranks; r++) {
		const int device = (int)r % devices;
		cudaStream_t stream;

		check(cua_context_create(CUA_BACKEND_CUDA, device, &contexts[r]),
		      "cua_context_create");
		need(!cudaSetDevice(device) &&
			     !cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) &&
			     !cudaMalloc((void **)&results[r], sizeof(float)),
		     "memory of a rank");
		check(cua_context_set_stream(contexts[r], stream), "cua_context_set_stream");
	}
	need(!cudaSetDevice(0), "cudaSetDevice");
	printf("%u rank%s on %u of %d GPU%s, ", ranks, ranks == 1 ? "" : "s",
	       ranks < (uint32_t)devices ? ranks : (uint32_t)devices, devices,
	       devices == 1 ? "" : "s");
}

static void open_group(void)
{
	n_groups = 1;
	check(cua_group_create_devices(ranks, contexts, &groups[0]), "cua_group_create_devices");
	printf("a group by peer copies\n");
}

/* Source: the interface of NCCL 2 (nccl.h of NCCL 2.32, 2026). A comm is an ncclComm_t. */
static struct {
	int (*version)(int *version);
	int (*init_all)(void **comms, int n, const int *devices);
	int (*destroy)(void *comm);
	void *comms[MOST_RANKS];
} nccl;

template <typename Function>
static bool find_function(void *library, const char *name, Function *function)
{
	void *symbol = dlsym(library, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

/* Returns the reason why there can be no groups by NCCL, or "". */
static const char *nccl_problem(void)
{
	const char *problem = cua_group_nccl_problem();
	void *library;

	if (ranks < 2 || ranks > (uint32_t)devices)
		return "NCCL needs two ranks, and a GPU for each";
	if (*problem)
		return problem;
	/* the copy that the library has loaded */
	library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
	if (!library || !find_function(library, "ncclGetVersion", &nccl.version) ||
	    !find_function(library, "ncclCommInitAll", &nccl.init_all) ||
	    !find_function(library, "ncclCommDestroy", &nccl.destroy))
		return "libnccl.so.2 lacks ncclCommInitAll";
	return "";
}

/* Returns false, after a line with the reason, if there can be no groups by NCCL. */
static bool open_nccl_groups(void)
{
	const char *problem = nccl_problem();
	int gpus[MOST_RANKS], version = 0;

	if (*problem) {
		printf("NCCL is not available: %s\n", problem);
		return false;
	}
	for (uint32_t r = 0; r < ranks; r++)
		gpus[r] = (int)r;
	need(!nccl.version(&version), "ncclGetVersion");
	need(!nccl.init_all(nccl.comms, (int)ranks, gpus) && !cudaSetDevice(0), "ncclCommInitAll");
	by_nccl = true;
	n_groups = ranks;
	for (uint32_t r = 0; r < ranks; r++)
		check(cua_group_create_nccl(contexts[r], nccl.comms[r], &groups[r]),
		      "cua_group_create_nccl");
	printf("a group by NCCL %d.%d.%d, a thread for each rank\n", version / 10000,
	       version / 100 % 100, version % 100);
	return true;
}

static void close_ranks(void)
{
	for (uint32_t g = 0; g < n_groups; g++)
		cua_group_destroy(groups[g]);
	if (by_nccl)
		collective("ncclCommDestroy", 1, [&](uint32_t first) {
			return nccl.destroy(nccl.comms[first]) ? CUA_ERROR_SYSTEM : CUA_OK;
		});
	for (uint32_t r = 0; r < ranks; r++)
		cua_context_destroy(contexts[r]);
}

#endif /* CUATOMIC_BENCH_GROUP_H */
