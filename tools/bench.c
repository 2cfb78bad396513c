/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench`: executes the benchmark's program if there is a GPU, and otherwise measures the
 * CPU backend.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu_bench.h"

#ifndef CUATOMIC_BENCHDIR
#define CUATOMIC_BENCHDIR "/usr/local/libexec/cuatomic"
#endif

static const struct benchmark {
	const char *name;
	const char *what;
	void (*cpu)(const struct bench_options *o); /* NULL: on a GPU only */
	const char *more; /* program with further CPU peers, run next if it was built; or NULL */
} benchmarks[] = {
	{"append", "filters: elements below a limit, or by flags; partitions", bench_append, NULL},
	{"atomics", "atomic operations on one address and on many", bench_atomics, NULL},
	{"group", "sums and maps divided among several GPUs, on GPUs only", NULL, NULL},
	{"group-by", "values combined by key, on a GPU only", NULL, NULL},
	{"hashmap", "bulk calls and calls in kernels of the map of unique keys", bench_hashmap,
	 "maps"},
	{"histogram", "counts of bytes, letters, even bins and bins between edges", bench_histogram,
	 NULL},
	{"locks", "critical sections under one lock", bench_locks, NULL},
	{"reduce", "sums, dot products and other reductions of whole arrays", bench_reduce, NULL},
	{"scatter", "additions to targets by index, on a GPU only", NULL, NULL},
	{"textbook", "dot product and hash table of the textbooks, on a GPU only", NULL, NULL},
};

/* ---- runs on threads ---- */

#ifdef CUATOMIC_DEMO_PLANT
uint64_t bench_plant(const char *way)
{
	const char *name = getenv("BENCH_PLANT"), *held = getenv("BENCH_HOLD");

	/* the row named by BENCH_HOLD waits until standard input ends */
	if (held && !strcmp(held, way))
		while (getchar() != EOF)
			;
	return name && !strcmp(name, way);
}
#endif

uint64_t bench_total(const struct bench_run *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < r->threads; i++)
		n += r->workers[i].done;
	return n;
}

static void *bench_thread(void *argument)
{
	struct bench_worker *w = argument;

	pthread_barrier_wait(&w->run->start);
	w->run->loop(w);
	w->end = tool_now();
	return NULL;
}

/* Returns the rate in millions of operations a second. */
static double run_once(struct bench_run *r)
{
	struct timespec pause = {0, (long)(r->seconds * 1e9)};
	pthread_t *threads = tool_alloc(r->threads * sizeof(*threads));
	double start, end = 0;

	r->before(r);
	r->stop = 0;
	pthread_barrier_init(&r->start, NULL, r->threads + 1);
	for (unsigned i = 0; i < r->threads; i++) {
		r->workers[i] = (struct bench_worker){.run = r, .index = i};
		if (pthread_create(&threads[i], NULL, bench_thread, &r->workers[i]))
			tool_die("bench %s: cannot start %u threads", r->name, r->threads);
	}
	start = tool_now();
	pthread_barrier_wait(&r->start);
	nanosleep(&pause, NULL);
	__atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < r->threads; i++) {
		pthread_join(threads[i], NULL);
		if (r->workers[i].end > end)
			end = r->workers[i].end;
	}
	pthread_barrier_destroy(&r->start);
	free(threads);
	return (double)bench_total(r) / (end - start) * 1e-6;
}

void bench_row(struct table *t, enum table_kind kind, struct bench_run *r)
{
	double rates[BENCH_RUNS];
	char note[48] = "";

	r->workers = tool_alloc(r->threads * sizeof(*r->workers));
	r->least_share = 1;
	r->most_share = 0;
	/* run -1 warms up and is not counted */
	for (int i = -1; i < BENCH_RUNS; i++) {
		double rate = run_once(r);
		uint64_t total = bench_total(r), got = r->result(r) + bench_plant(r->way),
			 wanted = r->expected(r);

		if (got != wanted)
			tool_die("bench %s: %s, %s: the result is %llu, not %llu", r->name, t->name,
				 r->way, (unsigned long long)got, (unsigned long long)wanted);
		if (i < 0)
			continue;
		rates[i] = rate;
		for (unsigned j = 0; j < r->threads && total; j++) {
			double share = (double)r->workers[j].done / (double)total;

			r->least_share = share < r->least_share ? share : r->least_share;
			r->most_share = share > r->most_share ? share : r->most_share;
		}
	}
	if (r->show_shares && r->threads > 1)
		snprintf(note, sizeof(note), "%.1f to %.1f %%", 100 * r->least_share,
			 100 * r->most_share);
	table_add_note(t, kind, r->way, table_figure(rates, BENCH_RUNS), note);
	free(r->workers);
	r->workers = NULL;
}

/* ---- the command ---- */

struct arguments {
	struct tool_options options;
	const struct benchmark *benchmark; /* NULL: print the list */
	char **rest;
	int n_rest;
};

static int parse_arguments(int argc, char **argv, struct arguments *a)
{
	int status = tool_parse_options(argc, argv, ":b:qt:", &a->options);

	if (status || optind == argc)
		return status;
	for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++)
		if (!strcmp(argv[optind], benchmarks[i].name))
			a->benchmark = &benchmarks[i];
	if (!a->benchmark)
		return tool_usage_error("unknown benchmark '%s'; cuatomic bench lists them",
					argv[optind]);
	a->rest = argv + optind + 1;
	a->n_rest = argc - optind - 1;
	return TOOL_OK;
}

/* Returns NULL if this build can run on a GPU, else the reason why it cannot. */
static const char *why_no_gpu(void)
{
	const char *problem = cua_device_problem(CUA_BACKEND_CUDA, 0);

	return *problem ? problem : NULL;
}

/* Returns the path of a benchmark's program, in memory from tool_alloc. */
static char *program_path(const char *name)
{
	const char *folder = getenv("CUATOMIC_BENCH_DIR");
	size_t room;
	char *path;

	if (!folder || !*folder)
		folder = CUATOMIC_BENCHDIR;
	room = strlen(folder) + strlen("/bench-") + strlen(name) + 1;
	path = tool_alloc(room);
	snprintf(path, room, "%s/bench-%s", folder, name);
	return path;
}

/* Replaces this process by the benchmark's program. Returns only on failure. */
static int run_program(const struct arguments *a)
{
	char **argv = tool_alloc(((size_t)a->n_rest + 3) * sizeof(*argv));
	char *path = program_path(a->benchmark->name);
	const char *why;
	int n = 0, error;

	argv[n++] = path;
	if (a->options.quick)
		argv[n++] = (char *)"--quick";
	for (int i = 0; i < a->n_rest; i++)
		argv[n++] = a->rest[i];
	argv[n] = NULL;
	fflush(stdout);
	execv(path, argv);
	error = errno;
	why = why_no_gpu();
	/* with CUATOMIC_BENCH_DIR set, a missing program is the cause, not a build without CUDA */
	if (!*cua_cuda_architectures() && !getenv("CUATOMIC_BENCH_DIR"))
		tool_error("CUDA backend: this build has none");
	else
		tool_error("%s: %s%s%s%s", path, strerror(error), why ? "; no GPU (" : "",
			   why ? why : "", why ? ")" : "");
	free(path);
	free(argv);
	return TOOL_FAILED;
}

/* Replaces this process by the program with the benchmark's further CPU peers, if it was built. */
static int run_more(const struct benchmark *b, const struct bench_options *o)
{
	char *path = program_path(b->more), threads[32];
	char *argv[] = {path, threads, o->quick ? (char *)"--quick" : NULL, NULL};
	int status = TOOL_OK;

	snprintf(threads, sizeof(threads), "--threads=%u", o->threads);
	if (access(path, X_OK) == 0) {
		fflush(stdout);
		execv(path, argv);
		tool_error("%s: %s", path, strerror(errno));
		status = TOOL_FAILED;
	}
	free(path);
	return status;
}

static int run_on_cpu(const struct arguments *a)
{
	struct bench_options o = {.quick = a->options.quick};
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	struct cua_context *ctx = tool_cpu_context(a->options.threads, &info);

	o.threads = cua_context_threads(ctx);
	cua_context_destroy(ctx);
	printf("%s: %s, %u thread%s; cuatomic %s\n", a->benchmark->name, info.name, o.threads,
	       o.threads == 1 ? "" : "s", cua_version());
	printf("medians of %d runs; every result is checked\n", BENCH_RUNS);
	a->benchmark->cpu(&o);
	return a->benchmark->more ? run_more(a->benchmark, &o) : TOOL_OK;
}

static void print_list(void)
{
	for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++)
		printf("%-10s %s\n", benchmarks[i].name, benchmarks[i].what);
}

int tool_bench(int argc, char **argv)
{
	struct arguments a = {.benchmark = NULL};
	int status = parse_arguments(argc, argv, &a);
	const char *why = NULL;

	if (status)
		return status;
	if (!a.benchmark) {
		print_list();
		return TOOL_OK;
	}
	if (!a.options.cpu)
		return run_program(&a);
	if (a.options.cuda) {
		why = why_no_gpu();
		if (!why)
			return run_program(&a);
	}
	if (!a.benchmark->cpu) {
		tool_error("bench %s runs on a GPU only%s%s", a.benchmark->name, why ? ": " : "",
			   why ? why : "");
		return TOOL_FAILED;
	}
	if (a.n_rest)
		return tool_usage_error("%s takes no argument '%s' on the CPU", a.benchmark->name,
					a.rest[0]);
	if (why)
		printf("no GPU (%s), so on the CPU\n", why);
	return run_on_cpu(&a);
}
