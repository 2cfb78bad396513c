/* SPDX-License-Identifier: MIT */
/* The harness of the benchmarks on the CPU: see cpu_bench.h. */
#include <string.h>
#include <sys/mman.h>
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

void bench_nothing(struct bench_run *r)
{
	(void)r;
}

uint64_t bench_zero(const struct bench_run *r)
{
	(void)r;
	return 0;
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

struct figure bench_measure(const struct table *t, struct bench_run *r)
{
	struct stats s;
	double rate;

	r->workers = tool_alloc(r->threads * sizeof(*r->workers));
	stats_begin(&s, bench_stats_plan());
	do {
		if (s.n <= 0) {
			r->least_share = 1;
			r->most_share = 0;
		}
		rate = run_once(r);
		check_run(t, r);
	} while (bench_more(&s, r->figure ? r->figure(rate) : rate));
	free(r->workers);
	r->workers = NULL;
	return table_stats(&s);
}

void bench_row(struct table *t, enum table_kind kind, struct bench_run *r)
{
	char note[48] = "";
	struct figure figure;

	if (!table_wants(t->name, r->way))
		return;
	figure = bench_measure(t, r);
	if (r->show_shares && r->threads > 1)
		snprintf(note, sizeof(note), "%.1f to %.1f %%", 100 * r->least_share,
			 100 * r->most_share);
	table_add_note(t, kind, r->way, figure, r->note ? r->note : note);
}

double bench_gb(double rate)
{
	return rate * 1e-3;
}

double bench_g(double rate)
{
	return rate * 1e-3;
}

double bench_ns(double rate)
{
	return 1e3 / rate;
}

double bench_us(double rate)
{
	return 1 / rate;
}

void *bench_array(size_t bytes)
{
	const size_t huge_page = (size_t)2 << 20;
	void *p;

	tool_claim_memory(bytes);
	if (posix_memalign(&p, huge_page, bytes))
		tool_die("out of memory (%zu bytes are needed)", bytes);
#if defined(MADV_HUGEPAGE)
	/* a hint: with small pages the misses of the address translation add to each figure */
	madvise(p, bytes, MADV_HUGEPAGE);
#endif
	return p;
}

/* Reads a word of a file of Linux about the caches. Returns 0 if there is none. */
static int cache_word(int cache, const char *name, char word[16])
{
	char path[80];
	FILE *f;
	int found;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", cache, name);
	f = fopen(path, "r");
	if (!f)
		return 0;
	found = fscanf(f, "%15s", word) == 1;
	fclose(f);
	return found;
}

/* Returns the size of the data cache of a level, or 0. */
static uint64_t cache_size(int level)
{
	char word[16];

	for (int i = 0; cache_word(i, "level", word); i++) {
		if (atoi(word) != level || !cache_word(i, "type", word) ||
		    !strcmp(word, "Instruction") || !cache_word(i, "size", word))
			continue;
		/* Linux writes the size in KiB */
		return strtoull(word, NULL, 10) << 10;
	}
	return 0;
}

const char *bench_cache(uint64_t bytes)
{
	static const char *const names[] = {"in the L1", "in the L2", "in the L3"};
	uint64_t size = 0;

	for (int level = 1; level <= 3; level++) {
		const uint64_t next = cache_size(level);

		if (bytes <= next)
			return names[level - 1];
		size = next ? next : size;
	}
	return size ? "in memory" : "";
}

uint64_t bench_mixed(uint64_t z)
{
	z *= 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void bench_share(const struct bench_worker *w, size_t n, size_t *first, size_t *end)
{
	*first = n * w->index / w->run->threads;
	*end = n * (w->index + 1) / w->run->threads;
	if (*end == *first)
		*end = *first + 1;
}
