/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench`: the benchmarks in their order, and their runs. A benchmark runs in a child
 * process: its program if there is a GPU, and otherwise a function of this program on the CPU.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "bench_options.h"
#include "bench_plot.h"

#ifndef CUATOMIC_BENCHDIR
#define CUATOMIC_BENCHDIR "/usr/local/libexec/cuatomic"
#endif

static const struct benchmark benchmarks[] = {
	{"append", "filters: elements below a limit, or by flags; partitions", bench_append, NULL,
	 "^append/(f32, 50 % kept|filter 50 %, [0-9]+ .i)/"
	 "(ceiling|a loop|cub|cua_filter_array(, ordered| in order, all threads|, all threads)?$)",
	 NULL},
	{"atomics", "atomic operations on one address and on many", bench_atomics, NULL,
	 "^atomics/one address: f32 add/"
	 "(ceiling|loop of|atomicAdd|cua_atomic_add_f32|cua_atomic_add_warp_f32)",
	 NULL},
	{"copy", "copies of an array by size of the operand", bench_copy, NULL,
	 "^copy/aligned, 16 bytes/(ceiling|block 256, unroll 4|.*threads?, unroll 4)", "stream"},
	{"fill", "fills of arrays and of pitched rows with patterns", bench_fill, NULL,
	 "^fill/1-D, 1 byte/(ceiling|cudaMemset|memset|cua_fill)", "stream"},
	{"group", "sums and maps divided among several GPUs, on GPUs only", NULL, NULL, NULL, NULL},
	{"group-by", "values combined by key, on a GPU only", NULL, NULL, NULL, NULL},
	{"hashmap", "bulk calls and calls in kernels of the map of unique keys", bench_hashmap,
	 "maps",
	 "^hashmap/4[+]4, 0.5, (insert|find hits)/"
	 "(ceiling|linear|cua_hashmap(_insert_n|_find_n|, all threads)$)",
	 NULL},
	{"histogram", "counts of bytes, letters, even bins and bins between edges", bench_histogram,
	 NULL,
	 "^histogram/u8 256, uniform/"
	 "(ceiling|a loop|cub|cua_histogram(_bytes|, all threads)$)",
	 NULL},
	{"latency", "times of dependent loads, atomic operations and fences", bench_latency, NULL,
	 "^latency/(load by footprint/(ceiling|16 MiB|1 GiB)"
	 "|atomics/CAS 32 bits, acq_rel(, gpu|, sys)?$|fences/acq_rel)",
	 "random"},
	{"launch", "times of starting work, and of the smallest calls", bench_launch, NULL,
	 "^launch/(kernel/(in a row|and wait), 1 |call/.*(1 floats?|1 element)|host/)", NULL},
	{"locks", "critical sections under one lock", bench_locks, NULL,
	 "^locks/all threads, [0-9x ]+/"
	 "(ceiling|pthread_mutex|textbook|cua_(spin|mcs)lock_lock, unlock$|combine, block$)",
	 NULL},
	{"malloc", "allocation in kernels, on a GPU only", NULL, NULL, NULL, NULL},
	{"peer", "copies between the host and GPUs, and between GPUs", NULL, NULL,
	 "^peer/(host and GPU 0/pinned, (to|from)|GPU 0 to GPU 1/(ceiling|loads))", NULL},
	{"random", "loads, stores and atomic operations at random addresses", bench_random, NULL,
	 "^random/(load 8 bytes|add 32 bits|CAS 64 bits)/(ceiling|16 MiB|1 GiB)", "random"},
	{"read", "reads of an array by size of the operand", bench_read, NULL,
	 "^read/aligned, (4|16) bytes/(ceiling|block 256, unroll 4|.*threads?, unroll 4)",
	 "stream"},
	{"reduce", "sums, dot products and other reductions of whole arrays", bench_reduce, NULL,
	 "^reduce/sum f32(, (1|512|256|128) .i)?/"
	 "(ceiling|a loop|cub::DeviceReduce::Sum$|cua_reduce, )",
	 NULL},
	{"scatter", "additions to targets by index, on a GPU only", NULL, NULL,
	 "^scatter/to (1 Mi|4 Ki), uniform/(ceiling|native|cua_scatter_add)", NULL},
	{"textbook", "dot product and hash table of the textbooks, on a GPU only", NULL, NULL, NULL,
	 NULL},
	{"write", "writes of an array by size of the operand", bench_write, NULL,
	 "^write/aligned, 16 bytes/(ceiling|block 256, unroll 4|.*threads?, unroll 4)", "stream"},
};

/* The time limit of the summary; starts and preparations take further seconds. */
#define SUMMARY_SECONDS 55

#define BENCHMARKS (sizeof(benchmarks) / sizeof(benchmarks[0]))

const struct benchmark *bench_find(const char *name)
{
	for (size_t i = 0; i < BENCHMARKS; i++)
		if (!strcmp(name, benchmarks[i].name))
			return &benchmarks[i];
	return NULL;
}

/* ---- GPUs ---- */

/* Returns NULL if this build can run on a GPU, else the reason why it cannot. */
static const char *why_no_gpu(void)
{
	const char *problem = cua_device_problem(CUA_BACKEND_CUDA, 0);

	return *problem ? problem : NULL;
}

/* Shows only this device to CUDA: a number in the list of CUDA_VISIBLE_DEVICES if it is set. */
static int select_device(const char *device)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	char name[64];

	snprintf(name, sizeof(name), "%s", device);
	for (int i = atoi(device); list; i--) {
		const size_t length = strcspn(list, ",");

		if (!length || length >= sizeof(name)) {
			tool_error("no device %s: CUDA_VISIBLE_DEVICES hides it", device);
			return TOOL_FAILED;
		}
		if (!i) {
			snprintf(name, sizeof(name), "%.*s", (int)length, list);
			break;
		}
		list += length + (list[length] == ',');
	}
	setenv("CUDA_VISIBLE_DEVICES", name, 1);
	return TOOL_OK;
}

/* Returns the name of a benchmark's GPU program, without "bench-". */
static const char *program_of(const struct benchmark *b)
{
	return b->program ? b->program : b->name;
}

/* Returns the path of a program, in memory from tool_alloc. */
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

static int has_program(const char *name)
{
	char *path = program_path(name);
	const int error = access(path, X_OK);

	free(path);
	return !error;
}

/* Checks that a program is there. */
static int check_program(const char *name)
{
	char *path = program_path(name);
	const int error = access(path, X_OK) ? errno : 0;
	const char *why;

	if (error) {
		why = why_no_gpu();
		/* CUATOMIC_BENCH_DIR explains a missing program better than a build without CUDA */
		if (!*cua_cuda_architectures() && !getenv("CUATOMIC_BENCH_DIR"))
			tool_error("CUDA backend: this build has none");
		else
			tool_error("%s: %s%s%s%s", path, strerror(error), why ? "; no GPU (" : "",
				   why ? why : "", why ? ")" : "");
	}
	free(path);
	return error ? TOOL_FAILED : TOOL_OK;
}

static int run_program(const struct bench_arguments *a, const struct bench_request *q,
		       struct results *r)
{
	char **argv = tool_alloc(((size_t)q->n_rest + 4) * sizeof(*argv));
	char *path = program_path(program_of(q->benchmark));
	struct bench_job job = {.name = q->benchmark->name, .argv = argv, .seconds = q->seconds};
	int n = 0, status;

	argv[n++] = path;
	if (q->benchmark->program)
		argv[n++] = (char *)q->benchmark->name;
	if (a->options.quick)
		argv[n++] = (char *)"--quick";
	for (int i = 0; i < q->n_rest; i++)
		argv[n++] = q->rest[i];
	argv[n] = NULL;
	status = bench_run_job(&job, r);
	free(path);
	free(argv);
	return status;
}

/* ---- the CPU ---- */

/* In a child process. */
static void measure_on_cpu(const struct bench_job *job)
{
	struct bench_options o = *job->options;
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	struct cua_context *ctx = tool_cpu_context(o.threads, &info);

	o.threads = cua_context_threads(ctx);
	cua_context_destroy(ctx);
	bench_head("versions", cua_version());
	printf("%s: %s, %u thread%s; cuatomic %s\n", job->name, info.name, o.threads,
	       o.threads == 1 ? "" : "s", cua_version());
	printf("medians of up to %d runs; every result is checked\n",
	       o.quick ? BENCH_RUNS : STATS_SAMPLES);
	bench_find(job->name)->cpu(&o);
#ifdef CUATOMIC_DEMO_PLANT
	if (bench_env()->planned != bench_env()->done)
		tool_die("bench %s: %d rows, not %d", job->name, bench_env()->done,
			 bench_env()->planned);
#endif
}

static double at_least(double seconds)
{
	return seconds > BENCH_LEAST_SECONDS ? seconds : BENCH_LEAST_SECONDS;
}

/*
 * Runs the program with the benchmark's further CPU peers, if it was built. start: when the
 * benchmark began.
 */
static int run_more(const struct bench_arguments *a, const struct bench_request *q, double start,
		    struct results *r)
{
	const struct benchmark *b = q->benchmark;
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	struct cua_context *ctx;
	char *path = program_path(b->more), threads[32];
	char *argv[] = {path, threads, a->options.quick ? (char *)"--quick" : NULL, NULL};
	struct bench_job job = {.name = b->name, .argv = argv};
	int status = TOOL_OK;

	if (access(path, X_OK) == 0) {
		ctx = tool_cpu_context(a->options.threads, &info);
		snprintf(threads, sizeof(threads), "--threads=%u", cua_context_threads(ctx));
		cua_context_destroy(ctx);
		if (q->seconds > 0)
			job.seconds = at_least(start + q->seconds - stats_now());
		status = bench_run_job(&job, r);
	}
	free(path);
	return status;
}

static int run_on_cpu(const struct bench_arguments *a, const struct bench_request *q,
		      struct results *r)
{
	const struct bench_options o = {.quick = a->options.quick, .threads = a->options.threads};
	const struct bench_job job = {.name = q->benchmark->name,
				      .run = measure_on_cpu,
				      .options = &o,
				      .seconds = q->seconds};
	const double start = stats_now();
	int status = bench_run_job(&job, r);

	if (!status && q->benchmark->more && !a->summary)
		status = run_more(a, q, start, r);
	return status;
}

/* ---- the command ---- */

static void print_list(const struct bench_arguments *a)
{
	for (size_t i = 0; i < BENCHMARKS; i++) {
		int wanted = !a->n;

		for (size_t j = 0; j < a->n; j++)
			wanted |= a->requests[j].benchmark == &benchmarks[i];
		if (wanted)
			printf("%-10s %s\n", benchmarks[i].name, benchmarks[i].what);
	}
}

/* why: the reason to use the CPU, or NULL. */
static int check_request(const struct bench_request *q, int on_cpu, const char *why)
{
	if (!on_cpu)
		return check_program(program_of(q->benchmark));
	if (!q->benchmark->cpu) {
		tool_error("bench %s runs on a GPU only%s%s", q->benchmark->name, why ? ": " : "",
			   why ? why : "");
		return TOOL_FAILED;
	}
	if (q->n_rest)
		return tool_usage_error("%s takes no argument '%s' on the CPU", q->benchmark->name,
					q->rest[0]);
	return TOOL_OK;
}

/* Hands the options to the benchmarks. Only this command decides whether there are records. */
static void set_environment(const struct bench_arguments *a)
{
	char size[24];

	unsetenv(BENCH_ENV_RECORDS);
	if (a->filter)
		setenv(BENCH_ENV_FILTER, a->filter, 1);
	else
		unsetenv(BENCH_ENV_FILTER);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)a->size);
	if (a->size)
		setenv(BENCH_ENV_SIZE, size, 1);
	else
		unsetenv(BENCH_ENV_SIZE);
	/* each job has its time limit, and its rows of the summary */
	unsetenv(BENCH_ENV_SECONDS);
	unsetenv(BENCH_ENV_SUMMARY);
	bench_env()->quick = a->options.quick;
}

static int is_stopped(void)
{
	return bench_caught_signal() || ferror(stdout);
}

/* Runs the benchmarks of the summary. They share the time. */
static int run_summary(const struct bench_arguments *a, int on_cpu, struct results *r)
{
	const double end = stats_now() + (a->seconds > 0 ? a->seconds : SUMMARY_SECONDS);
	size_t failed = 0;

	for (size_t i = 0; i < a->n && !is_stopped(); i++) {
		struct bench_request q = a->requests[i];
		int status = on_cpu ? TOOL_OK : check_program(program_of(q.benchmark));

		q.seconds = at_least((end - stats_now()) / (double)(a->n - i));
		summary_set_rows(q.benchmark->summary);
		if (!status)
			status = on_cpu ? run_on_cpu(a, &q, r) : run_program(a, &q, r);
		failed += status != TOOL_OK;
	}
	r->failed |= failed > 0;
	if (failed && r->show && !bench_caught_signal())
		printf("incomplete: %zu of %zu benchmarks failed\n", failed, a->n);
	return failed ? TOOL_FAILED : TOOL_OK;
}

/* Runs all benchmarks, also after a failure, until a signal or a wrong argument. */
static int run_named(const struct bench_arguments *a, int on_cpu, struct results *r)
{
	int worst = TOOL_OK;

	for (size_t i = 0; i < a->n && !is_stopped(); i++) {
		const struct bench_request *q = &a->requests[i];
		int status;

		if (i && r->prints)
			printf("\n");
		status = on_cpu ? run_on_cpu(a, q, r) : run_program(a, q, r);
		worst = status > worst ? status : worst;
		if (status == TOOL_USAGE)
			break;
	}
	return worst;
}

static int run_requests(const struct bench_arguments *a, int on_cpu, struct results *r)
{
	int worst = a->summary ? run_summary(a, on_cpu, r) : run_named(a, on_cpu, r);

	if (bench_caught_signal() && bench_caught_signal() != SIGPIPE)
		tool_error("bench: stopped after %zu row%s", r->n, r->n == 1 ? "" : "s");
	if (!bench_caught_signal() && !worst && !r->n && a->filter) {
		tool_error("bench: no row matches '%s'", a->filter);
		worst = TOOL_FAILED;
	}
	return worst;
}

static double threshold_of(const struct bench_arguments *a)
{
	return (a->threshold < 0 ? 5 : a->threshold) / 100;
}

static int is_named(const char *bench, const void *arguments)
{
	const struct bench_arguments *a = arguments;

	for (size_t i = 0; i < a->n; i++) {
		if (!strcmp(a->requests[i].benchmark->name, bench))
			return 1;
	}
	return !a->n;
}

static int load_rows(const struct bench_arguments *a, struct results *r)
{
	int status = bench_load(a->from, r, is_named, a);

	if (!status && !r->n && (a->filter || a->n)) {
		if (a->filter)
			tool_error("%s: no row matches '%s'", a->from, a->filter);
		else
			tool_error("%s: no row of these benchmarks", a->from);
		status = TOOL_FAILED;
	}
	return status;
}

static void discard_files(struct bench_arguments *a)
{
	bench_file_discard(&a->json);
	bench_file_discard(&a->csv);
	bench_file_discard(&a->plot);
}

/* Looks for gnuplot if there is a plot, and opens the files. */
static int open_files(struct bench_arguments *a)
{
	int status;

	if (a->plot.path) {
		a->gnuplot = gnuplot_find();
		if (!a->gnuplot)
			return TOOL_FAILED;
	}
	status = bench_file_open(&a->json);
	if (!status)
		status = bench_file_open(&a->csv);
	if (!status && bench_file_is_same(&a->json, &a->csv))
		status = tool_usage_error("options '--json' and '--csv' name a single file");
	if (!status)
		status = bench_file_open(&a->plot);
	if (!status &&
	    (bench_file_is_same(&a->json, &a->plot) || bench_file_is_same(&a->csv, &a->plot)))
		status = tool_usage_error("option '--plot' needs a file of its own");
	if (status)
		discard_files(a);
	return status;
}

/* Draws the rows, if there is a plot. After a signal, or a failure without rows, there is no file. */
static int plot(struct bench_arguments *a, const struct results *r, int failed)
{
	int status = TOOL_OK;

	if (!a->plot.stream)
		return TOOL_OK;
	if (!bench_caught_signal() && (r->n || !failed))
		status = bench_plot(&a->plot, r, a->gnuplot);
	if (status || bench_caught_signal() || !r->n)
		bench_file_discard(&a->plot);
	return status ? status : bench_file_finish(&a->plot);
}

static int write_files(struct bench_arguments *a, const struct results *r, int failed)
{
	int status;

	if (a->json.stream)
		bench_write_json(a->json.stream, r);
	if (a->csv.stream)
		bench_write_csv(a->csv.stream, r);
	status = bench_file_finish(&a->json) | bench_file_finish(&a->csv);
	return status | plot(a, r, failed);
}

/* Returns the options that change the meaning of a row, in memory from tool_alloc. */
static char *options_text(const struct bench_arguments *a)
{
	char text[96];
	int n = 0;

	text[0] = '\0';
	if (a->options.quick)
		n += snprintf(text, sizeof(text), " --quick");
	if (a->size)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " --size=%llu",
			      (unsigned long long)a->size);
	if (a->options.threads)
		snprintf(text + n, sizeof(text) - (size_t)n, " --threads=%u", a->options.threads);
	return results_copy(text + (text[0] == ' '));
}

static int measure_rows(const struct bench_arguments *a, int on_cpu, const char *why,
			struct results *r)
{
	int status;

	results_describe(r, why);
	r->origin.options = options_text(a);
	if (why && r->prints)
		printf("no GPU (%s), so on the CPU\n", why);
	status = run_requests(a, on_cpu, r);
	results_set_date(r);
	return status;
}

/*
 * Opens the files, runs the benchmarks or reads their rows, writes the files, and compares with the
 * reference.
 */
static int measure(struct bench_arguments *a, int on_cpu, const char *why)
{
	const int prints = !bench_has_no_table(a);
	struct results r = {.prints = prints && !a->summary,
			    .show = prints && a->summary ? summary_show : NULL};
	int status = open_files(a), finished;

	if (status)
		return status;
	set_environment(a);
	bench_catch_signals();
	status = a->from ? load_rows(a, &r) : measure_rows(a, on_cpu, why, &r);
	if (a->from && status)
		discard_files(a);
	finished = write_files(a, &r, status);
	if (a->reference && r.n && !bench_caught_signal())
		finished |= bench_reference_judge(a->reference, &r, a->from ? a->from : "this run",
						  threshold_of(a));
	results_free(&r);
	bench_raise_signal();
	return status ? status : finished;
}

/* Requests the benchmarks of the summary. */
static int add_summary(struct bench_arguments *a, int on_cpu)
{
	free(a->requests);
	a->requests = tool_alloc(BENCHMARKS * sizeof(*a->requests));
	for (size_t i = 0; i < BENCHMARKS; i++) {
		const struct benchmark *b = &benchmarks[i];

		if (b->summary && (b->cpu || !on_cpu))
			a->requests[a->n++] = (struct bench_request){.benchmark = b};
	}
	for (size_t i = 0; i < a->n; i++) {
		if (on_cpu || has_program(program_of(a->requests[i].benchmark)))
			return TOOL_OK;
	}
	return check_program(program_of(a->requests[0].benchmark));
}

static int open_reference(struct bench_arguments *a)
{
	if (a->against)
		a->reference = bench_reference_open(a->against);
	return a->against && !a->reference ? TOOL_FAILED : TOOL_OK;
}

/* Checks everything before anything is measured. why: the reason to use the CPU, or NULL. */
static int prepare(struct bench_arguments *a, int on_cpu, const char *why)
{
	int status = a->summary ? add_summary(a, on_cpu) : TOOL_OK;

	for (size_t i = 0; i < a->n && !status && !a->summary; i++)
		status = check_request(&a->requests[i], on_cpu, why);
	return status ? status : open_reference(a);
}

static int run_benchmarks(struct bench_arguments *a)
{
	const char *why = NULL;
	int on_cpu = a->options.cpu, status = TOOL_OK;

	if (a->device) {
		on_cpu = 0;
		status = select_device(a->device);
	} else if (a->options.cpu && a->options.cuda) {
		why = why_no_gpu();
		on_cpu = why != NULL;
	}
	if (!status)
		status = prepare(a, on_cpu, why);
	return status ? status : measure(a, on_cpu, why);
}

/* Reads the rows from a file. */
static int run_file(struct bench_arguments *a)
{
	int status = open_reference(a);

	return status ? status : measure(a, 0, NULL);
}

int tool_bench(int argc, char **argv)
{
	struct bench_arguments a = {.threshold = -1};
	int status = bench_parse_arguments(argc, argv, &a);

	if (status)
		;
	else if (a.compare)
		status = bench_compare(argv[optind], argv[optind + 1], threshold_of(&a));
	else if (a.from)
		status = run_file(&a);
	else if (a.list)
		print_list(&a);
	else
		status = run_benchmarks(&a);
	bench_reference_close(a.reference);
	free(a.gnuplot);
	free(a.requests);
	return status;
}
