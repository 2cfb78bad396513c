/* SPDX-License-Identifier: MIT */
/* The harness of the benchmarks on the CPU: see cpu_bench.h. */
#include <string.h>
#include <time.h>

#include "cpu_bench.h"

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

/* Checks the result of a run and notes the shares of the threads. */
static void check_run(const struct table *t, struct bench_run *r)
{
	const uint64_t total = bench_total(r), got = r->result(r) + bench_plant(r->way),
		       wanted = r->expected(r);

	if (got != wanted)
		tool_die("bench %s: %s, %s: the result is %llu, not %llu", r->name, t->name, r->way,
			 (unsigned long long)got, (unsigned long long)wanted);
	for (unsigned j = 0; j < r->threads && total; j++) {
		double share = (double)r->workers[j].done / (double)total;

		r->least_share = share < r->least_share ? share : r->least_share;
		r->most_share = share > r->most_share ? share : r->most_share;
	}
}

int bench_more(struct stats *s, double rate)
{
	return stats_add(s, rate, stats_now());
}

void bench_row(struct table *t, enum table_kind kind, struct bench_run *r)
{
	struct stats s;
	char note[48] = "";
	double rate;

	if (!table_wants(t->name, r->way))
		return;
	r->workers = tool_alloc(r->threads * sizeof(*r->workers));
	stats_begin(&s, bench_stats_plan());
	do {
		if (s.n <= 0) {
			r->least_share = 1;
			r->most_share = 0;
		}
		rate = run_once(r);
		check_run(t, r);
	} while (bench_more(&s, rate));
	if (r->show_shares && r->threads > 1)
		snprintf(note, sizeof(note), "%.1f to %.1f %%", 100 * r->least_share,
			 100 * r->most_share);
	table_add_note(t, kind, r->way, table_stats(&s), note);
	free(r->workers);
	r->workers = NULL;
}
