/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench launch` on the CPU: the time in us to start work on another thread, and of the
 * smallest calls of the library on a context with all threads. The peers are calls of POSIX
 * threads.
 */
#include <string.h>

#include <cuatomic/memory.h>
#include <cuatomic/reduce.h>

#include "cpu_bench.h"

#define LAUNCH_ELEMENTS 65536

static struct {
	struct cua_context *ctx;
	size_t n; /* elements that a call reduces */
	float *x;
	float sum;
	unsigned char filled;
	uint64_t starts; /* of the other thread, counted by itself */
	int turn;        /* 1: of the other thread; 2: of the end */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
} launch_job = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void launch_need(enum cua_status status)
{
	if (status)
		tool_die("bench launch: %s", cua_strerror(status));
}

/* ---- threads ---- */

static void *count_start(void *argument)
{
	(void)argument;
	launch_job.starts++;
	return NULL;
}

static void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, count_start, NULL))
		tool_die("bench launch: cannot start a thread");
	pthread_join(thread, NULL);
}

BENCH_LOOP(create_and_join, start_thread())

/* Answers each turn until the end. */
static void *answer(void *argument)
{
	pthread_mutex_lock(&launch_job.mutex);
	while (launch_job.turn != 2) {
		if (launch_job.turn == 1) {
			launch_job.starts++;
			launch_job.turn = 0;
			pthread_cond_signal(&launch_job.changed);
		}
		pthread_cond_wait(&launch_job.changed, &launch_job.mutex);
	}
	pthread_mutex_unlock(&launch_job.mutex);
	return argument;
}

static void ask(void)
{
	pthread_mutex_lock(&launch_job.mutex);
	launch_job.turn = 1;
	pthread_cond_signal(&launch_job.changed);
	while (launch_job.turn)
		pthread_cond_wait(&launch_job.changed, &launch_job.mutex);
	pthread_mutex_unlock(&launch_job.mutex);
}

BENCH_LOOP(ask_answers, ask())

static void there_and_back(struct bench_worker *w)
{
	pthread_t thread;

	launch_job.turn = 0;
	if (pthread_create(&thread, NULL, answer, NULL))
		tool_die("bench launch: cannot start a thread");
	ask_answers(w);
	pthread_mutex_lock(&launch_job.mutex);
	launch_job.turn = 2;
	pthread_cond_signal(&launch_job.changed);
	pthread_mutex_unlock(&launch_job.mutex);
	pthread_join(thread, NULL);
}

static void clear_starts(struct bench_run *r)
{
	(void)r;
	launch_job.starts = 0;
}

static uint64_t starts(const struct bench_run *r)
{
	(void)r;
	return launch_job.starts;
}

/* ---- calls ---- */

BENCH_LOOP(reduce_call,
	   launch_need(cua_sum_f32(launch_job.ctx, launch_job.n, launch_job.x, &launch_job.sum)))

static void fill_byte(uint64_t i)
{
	const unsigned char byte = (unsigned char)i;

	launch_need(cua_fill(launch_job.ctx, &launch_job.filled, 1, 1, &byte));
}

BENCH_LOOP(fill_call, fill_byte(i))

static void clear_results(struct bench_run *r)
{
	launch_job.n = r->items;
	launch_job.sum = 0;
	launch_job.filled = 0;
}

static uint64_t sum_of_ones(const struct bench_run *r)
{
	(void)r;
	return (uint64_t)launch_job.sum;
}

static uint64_t items_of(const struct bench_run *r)
{
	return r->items;
}

static uint64_t byte_filled(const struct bench_run *r)
{
	(void)r;
	return launch_job.filled;
}

static uint64_t last_byte(const struct bench_run *r)
{
	return (unsigned char)(bench_total(r) - 1);
}

/* ---- rows ---- */

#define STARTS clear_starts, starts, bench_total
#define SUMS clear_results, sum_of_ones, items_of
#define FILLS clear_results, byte_filled, last_byte

static const struct launch {
	const char *case_name, *way;
	enum table_kind kind;
	void (*loop)(struct bench_worker *);
	size_t items;
	void (*before)(struct bench_run *);
	uint64_t (*result)(const struct bench_run *);
	uint64_t (*expected)(const struct bench_run *);
} launches[] = {
	{"host", "pthread_create and join", TABLE_PEER, create_and_join, 0, STARTS},
	{"host", "mutex and condition variable, there and back", TABLE_PEER, there_and_back, 0,
	 STARTS},
	{"call", "cua_reduce of 1 element", TABLE_OURS, reduce_call, 1, SUMS},
	{"call", "cua_reduce of 65536 elements", TABLE_OURS, reduce_call, LAUNCH_ELEMENTS, SUMS},
	{"call", "cua_fill of 1 byte", TABLE_OURS, fill_call, 1, FILLS},
};
#define LAUNCHES (sizeof(launches) / sizeof(launches[0]))

void bench_launch(const struct bench_options *o)
{
	struct table t = {.n = 0};

	launch_need(cua_context_create(CUA_BACKEND_CPU, 0, &launch_job.ctx));
	launch_need(cua_context_set_threads(launch_job.ctx, o->threads));
	launch_job.x = bench_array(LAUNCH_ELEMENTS * sizeof(*launch_job.x));
	for (size_t i = 0; i < LAUNCH_ELEMENTS; i++)
		launch_job.x[i] = 1;
	bench_plan(LAUNCHES);
	table_columns("us", "");
	for (size_t i = 0; i < LAUNCHES; i++) {
		const struct launch *l = &launches[i];
		struct bench_run r = {
			.name = "launch",
			.way = l->way,
			.seconds = o->quick ? 1e-3 : 20e-3,
			.cap = UINT64_MAX,
			.threads = 1,
			.items = l->items,
			.figure = bench_us,
			.before = l->before,
			.loop = l->loop,
			.result = l->result,
			.expected = l->expected,
		};

		if (!i || strcmp(l->case_name, launches[i - 1].case_name) != 0)
			table_begin(&t, l->case_name);
		bench_row(&t, l->kind, &r);
	}
	table_end(&t);
	free(launch_job.x);
	cua_context_destroy(launch_job.ctx);
}
