/* SPDX-License-Identifier: MIT */
#include "thread_transport.h"

#include <pthread.h>

#include "common.h"

struct end {
	struct thread_hub *hub;
	uint32_t rank;
	unsigned calls, fails_at, aborts;
	/* offered to the other ranks between two barriers */
	const void *const *send;
	const size_t *send_bytes;
	const uint64_t *numbers;
	enum cua_status status;
};

struct thread_hub {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint32_t size, arrived;
	unsigned round;
	int aborted;
	struct end *ends;
};

/* Returns 0 if a rank has called abort. */
static int barrier(struct thread_hub *hub)
{
	int here;

	pthread_mutex_lock(&hub->mutex);
	if (++hub->arrived == hub->size) {
		hub->arrived = 0;
		hub->round++;
		pthread_cond_broadcast(&hub->changed);
	} else {
		const unsigned round = hub->round;

		while (hub->round == round && !hub->aborted)
			pthread_cond_wait(&hub->changed, &hub->mutex);
	}
	here = !hub->aborted;
	pthread_mutex_unlock(&hub->mutex);
	return here;
}

static enum cua_status exchange(void *self, const void *const *send, const size_t *send_bytes,
				void *const *receive, const size_t *receive_bytes)
{
	struct end *me = self;
	struct thread_hub *hub = me->hub;

	if (me->calls++ == me->fails_at)
		return CUA_ERROR_SYSTEM;
	me->send = send;
	me->send_bytes = send_bytes;
	if (!barrier(hub))
		return CUA_ERROR_SYSTEM;
	for (uint32_t r = 0; r < hub->size; r++) {
		const struct end *from = &hub->ends[r];

		/* ranks that disagree about a size would corrupt memory: a mistake of the library */
		if (from->send_bytes[me->rank] != receive_bytes[r])
			abort();
		if (receive_bytes[r])
			memcpy(receive[r], from->send[me->rank], receive_bytes[r]);
	}
	return barrier(hub) ? CUA_OK : CUA_ERROR_SYSTEM;
}

static enum cua_status sum_u64(void *self, uint64_t *x, size_t n)
{
	struct end *me = self;
	struct thread_hub *hub = me->hub;
	uint64_t *sums;
	int here;

	if (me->calls++ == me->fails_at)
		return CUA_ERROR_SYSTEM;
	me->numbers = x;
	if (!barrier(hub))
		return CUA_ERROR_SYSTEM;
	sums = test_malloc(n * sizeof(*sums));
	for (size_t i = 0; i < n; i++) {
		sums[i] = 0;
		for (uint32_t r = 0; r < hub->size; r++)
			sums[i] += hub->ends[r].numbers[i];
	}
	here = barrier(hub);
	memcpy(x, sums, n * sizeof(*sums));
	free(sums);
	return here ? CUA_OK : CUA_ERROR_SYSTEM;
}

static enum cua_status agree(void *self, enum cua_status mine, enum cua_status *all)
{
	struct end *me = self;
	struct thread_hub *hub = me->hub;

	if (me->calls++ == me->fails_at)
		return CUA_ERROR_SYSTEM;
	me->status = mine;
	if (!barrier(hub))
		return CUA_ERROR_SYSTEM;
	*all = CUA_OK;
	for (uint32_t r = 0; r < hub->size; r++)
		if (hub->ends[r].status < *all)
			*all = hub->ends[r].status;
	return barrier(hub) ? CUA_OK : CUA_ERROR_SYSTEM;
}

static void abort_all(void *self)
{
	struct end *me = self;

	me->aborts++;
	pthread_mutex_lock(&me->hub->mutex);
	me->hub->aborted = 1;
	pthread_cond_broadcast(&me->hub->changed);
	pthread_mutex_unlock(&me->hub->mutex);
}

struct thread_hub *thread_hub_create(uint32_t size)
{
	struct thread_hub *hub = test_malloc(sizeof(*hub));

	memset(hub, 0, sizeof(*hub));
	ck_assert_int_eq(pthread_mutex_init(&hub->mutex, NULL), 0);
	ck_assert_int_eq(pthread_cond_init(&hub->changed, NULL), 0);
	hub->size = size;
	hub->ends = test_malloc(size * sizeof(*hub->ends));
	for (uint32_t r = 0; r < size; r++) {
		memset(&hub->ends[r], 0, sizeof(hub->ends[r]));
		hub->ends[r].hub = hub;
		hub->ends[r].rank = r;
		hub->ends[r].fails_at = ~0u;
	}
	return hub;
}

void thread_hub_destroy(struct thread_hub *hub)
{
	pthread_cond_destroy(&hub->changed);
	pthread_mutex_destroy(&hub->mutex);
	free(hub->ends);
	free(hub);
}

struct cua_transport thread_transport(struct thread_hub *hub, uint32_t rank)
{
	struct cua_transport t = CUA_TRANSPORT_INIT;

	t.self = &hub->ends[rank];
	t.rank = rank;
	t.size = hub->size;
	t.exchange = exchange;
	t.sum_u64 = sum_u64;
	t.agree = agree;
	t.abort = abort_all;
	return t;
}

void thread_transport_fail(struct thread_hub *hub, uint32_t rank, unsigned call)
{
	hub->ends[rank].fails_at = call;
}

unsigned thread_transport_calls(const struct thread_hub *hub, uint32_t rank)
{
	return hub->ends[rank].calls;
}

unsigned thread_transport_aborts(const struct thread_hub *hub, uint32_t rank)
{
	return hub->ends[rank].aborts;
}

struct job {
	void (*fn)(void *arg, uint32_t rank);
	void *arg;
	uint32_t rank;
};

static void *run(void *arg)
{
	const struct job *job = arg;

	job->fn(job->arg, job->rank);
	return NULL;
}

void thread_ranks(uint32_t size, void (*fn)(void *arg, uint32_t rank), void *arg)
{
	pthread_t *threads = test_malloc(size * sizeof(*threads));
	struct job *jobs = test_malloc(size * sizeof(*jobs));

	for (uint32_t r = 0; r < size; r++) {
		jobs[r] = (struct job){fn, arg, r};
		ck_assert_int_eq(pthread_create(&threads[r], NULL, run, &jobs[r]), 0);
	}
	for (uint32_t r = 0; r < size; r++)
		ck_assert_int_eq(pthread_join(threads[r], NULL), 0);
	free(threads);
	free(jobs);
}
