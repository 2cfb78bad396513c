/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench locks` on the CPU: critical sections a second under a single lock, for the locks
 * of the library and of POSIX threads. The ceiling is a section that never waits, on a single
 * thread: an exchange with acquire, the increment, a store with release.
 */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include <cuatomic/lock.h>

#include "cpu_bench.h"

/* A lock of any kind, and the counter in another cache line. */
static struct {
	_Alignas(128) union {
		uint32_t word;
		pthread_mutex_t mutex;
		pthread_spinlock_t spin;
		pthread_rwlock_t rwlock;
		sem_t semaphore;
		struct cua_spinlock cua_spinlock;
		struct cua_ticketlock cua_ticketlock;
		struct cua_mcslock cua_mcslock;
		struct cua_rwlock cua_rwlock;
		struct cua_semaphore cua_semaphore;
	} lock;
	_Alignas(128) uint64_t counter;
} shared;

static uint64_t counted(const struct bench_run *r)
{
	(void)r;
	return shared.counter;
}

/* ---- preparation of a run ---- */

static void zero(struct bench_run *r)
{
	(void)r;
	memset(&shared, 0, sizeof(shared));
}

static void init_mutex(struct bench_run *r)
{
	zero(r);
	pthread_mutex_init(&shared.lock.mutex, NULL);
}

static void init_spin(struct bench_run *r)
{
	zero(r);
	pthread_spin_init(&shared.lock.spin, PTHREAD_PROCESS_PRIVATE);
}

static void init_rwlock(struct bench_run *r)
{
	zero(r);
	pthread_rwlock_init(&shared.lock.rwlock, NULL);
}

static void init_sem(struct bench_run *r)
{
	zero(r);
	sem_init(&shared.lock.semaphore, 0, 1);
}

static void init_semaphore(struct bench_run *r)
{
	zero(r);
	cua_semaphore_init(&shared.lock.cua_semaphore, 1);
}

/* ---- the rows ---- */

#define SECTION_LOOP(name, acquire, release)                                                       \
	BENCH_LOOP(name, {                                                                         \
		acquire;                                                                           \
		shared.counter++;                                                                  \
		release;                                                                           \
	})

SECTION_LOOP(never_waits, (void)__atomic_exchange_n(&shared.lock.word, 1, __ATOMIC_ACQUIRE),
	     __atomic_store_n(&shared.lock.word, 0, __ATOMIC_RELEASE))
SECTION_LOOP(mutex, pthread_mutex_lock(&shared.lock.mutex),
	     pthread_mutex_unlock(&shared.lock.mutex))
SECTION_LOOP(spin, pthread_spin_lock(&shared.lock.spin), pthread_spin_unlock(&shared.lock.spin))
SECTION_LOOP(rwlock, pthread_rwlock_wrlock(&shared.lock.rwlock),
	     pthread_rwlock_unlock(&shared.lock.rwlock))
SECTION_LOOP(sem, while (sem_wait(&shared.lock.semaphore)) continue,
	     sem_post(&shared.lock.semaphore))
SECTION_LOOP(our_spinlock, cua_spinlock_lock(&shared.lock.cua_spinlock),
	     cua_spinlock_unlock(&shared.lock.cua_spinlock))
SECTION_LOOP(our_ticketlock, cua_ticketlock_lock(&shared.lock.cua_ticketlock),
	     cua_ticketlock_unlock(&shared.lock.cua_ticketlock))
SECTION_LOOP(our_rwlock, cua_rwlock_write_lock(&shared.lock.cua_rwlock),
	     cua_rwlock_write_unlock(&shared.lock.cua_rwlock))
SECTION_LOOP(our_semaphore, cua_semaphore_lock(&shared.lock.cua_semaphore),
	     cua_semaphore_unlock(&shared.lock.cua_semaphore))
BENCH_LOOP(our_mcslock, {
	struct cua_mcslock_node node;

	cua_mcslock_lock(&shared.lock.cua_mcslock, &node);
	shared.counter++;
	cua_mcslock_unlock(&shared.lock.cua_mcslock, &node);
})

static const struct way {
	const char *name;
	enum table_kind kind;
	void (*before)(struct bench_run *);
	void (*loop)(struct bench_worker *);
} ways[] = {
	{"ceiling: one thread that never waits", TABLE_CEILING, zero, never_waits},
	{"pthread_mutex", TABLE_PEER, init_mutex, mutex},
	{"pthread_spinlock", TABLE_PEER, init_spin, spin},
	{"pthread_rwlock, writers", TABLE_PEER, init_rwlock, rwlock},
	{"sem_t, of 1", TABLE_PEER, init_sem, sem},
	{"cua_spinlock_lock, unlock", TABLE_OURS, zero, our_spinlock},
	{"cua_ticketlock_lock, unlock", TABLE_OURS, zero, our_ticketlock},
	{"cua_mcslock_lock, unlock", TABLE_OURS, zero, our_mcslock},
	{"cua_rwlock_write_lock, unlock", TABLE_OURS, zero, our_rwlock},
	{"cua_semaphore_lock, unlock, of 1", TABLE_OURS, init_semaphore, our_semaphore},
};

static void run_case(const struct bench_options *o, const char *name, unsigned threads)
{
	struct table table = {.n = 0};

	table_begin(&table, name);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct bench_run r = {
			.name = "locks",
			.way = ways[i].name,
			.seconds = o->quick ? 1e-3 : 20e-3,
			.cap = UINT64_MAX,
			.threads = ways[i].kind == TABLE_CEILING ? 1 : threads,
			.show_shares = 1,
			.before = ways[i].before,
			.loop = ways[i].loop,
			.result = counted,
			.expected = bench_total,
		};

		bench_row(&table, ways[i].kind, &r);
	}
	table_end(&table);
}

void bench_locks(const struct bench_options *o)
{
	char name[28];

	printf("critical sections: increment of a plain 64-bit counter under a single lock\n");
	bench_plan(2 * sizeof(ways) / sizeof(ways[0]));
	table_columns("M/s", "a thread's share");
	run_case(o, "one thread", 1);
	snprintf(name, sizeof(name), "all threads, %u", o->threads);
	run_case(o, name, o->threads);
}
