/* SPDX-License-Identifier: MIT */
#include "fake_nccl.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INTERNAL_ERROR = 3, IN_PROGRESS = 7 };
enum { MOST_OPERATIONS = 64 };

struct CUstream_st;

struct message {
	struct message *next;
	size_t bytes;
	int type, op; /* of a reduction; else -1 */
	char data[];
};

struct hub {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int size, users;
	struct message **queues; /* from each rank to each rank, the oldest first */
};

struct comm {
	struct hub *hub;
	int rank;
	/* protected by the mutex of the hub */
	int aborted, state;
	unsigned inside; /* groups of operations that run */
	unsigned calls, fails_at;
};

struct operation {
	enum { SEND, RECEIVE, REDUCE } kind;
	struct comm *comm;
	const void *from;
	void *to;
	size_t n;
	int type, op, peer;
};

struct operations {
	int n;
	struct operation at[MOST_OPERATIONS];
};

#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION 22000
#endif
struct fake_nccl fake_nccl = {.version = FAKE_NCCL_VERSION};
static _Thread_local struct operations pending;
static unsigned alive;

/* The functions that the library looks for in the program. */
#pragma GCC visibility push(default)
int ncclGetVersion(int *version);
int ncclCommInitAll(void **comms, int n, const int *devices);
int ncclCommCount(const void *comm, int *ranks);
int ncclCommCuDevice(const void *comm, int *device);
int ncclCommUserRank(const void *comm, int *rank);
int ncclCommGetAsyncError(void *comm, int *error);
int ncclCommAbort(void *comm);
int ncclCommDestroy(void *comm);
int ncclSend(const void *from, size_t n, int type, int peer, void *comm,
	     struct CUstream_st *stream);
int ncclRecv(void *to, size_t n, int type, int peer, void *comm, struct CUstream_st *stream);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm,
		  struct CUstream_st *stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);
#pragma GCC visibility pop

int ncclGetVersion(int *version)
{
	*version = fake_nccl.version;
	return OK;
}

/* ---- communicators ---- */

int ncclCommInitAll(void **comms, int n, const int *devices)
{
	struct hub *hub = calloc(1, sizeof(*hub));

	(void)devices;
	if (!hub)
		abort();
	pthread_mutex_init(&hub->mutex, NULL);
	pthread_cond_init(&hub->changed, NULL);
	hub->size = hub->users = n;
	hub->queues = calloc((size_t)n * (size_t)n, sizeof(struct message *));
	for (int r = 0; r < n; r++) {
		struct comm *comm = calloc(1, sizeof(*comm));

		if (!comm || !hub->queues)
			abort();
		comm->hub = hub;
		comm->rank = r;
		comm->fails_at = ~0u;
		comms[r] = comm;
		__atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST);
	}
	return OK;
}

int ncclCommCount(const void *comm, int *ranks)
{
	*ranks = ((const struct comm *)comm)->hub->size;
	return OK;
}

int ncclCommCuDevice(const void *comm, int *device)
{
	(void)comm;
	*device = fake_nccl.device;
	return OK;
}

int ncclCommUserRank(const void *comm, int *rank)
{
	*rank = ((const struct comm *)comm)->rank;
	return OK;
}

int ncclCommGetAsyncError(void *comm, int *error)
{
	struct comm *c = comm;

	pthread_mutex_lock(&c->hub->mutex);
	*error = c->state;
	pthread_mutex_unlock(&c->hub->mutex);
	return OK;
}

static void free_comm(struct comm *c)
{
	struct hub *hub = c->hub;
	int is_last;

	pthread_mutex_lock(&hub->mutex);
	while (c->inside)
		pthread_cond_wait(&hub->changed, &hub->mutex);
	is_last = !--hub->users;
	pthread_mutex_unlock(&hub->mutex);
	free(c);
	__atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
	if (!is_last)
		return;
	for (int q = 0; q < hub->size * hub->size; q++)
		while (hub->queues[q]) {
			struct message *m = hub->queues[q];

			hub->queues[q] = m->next;
			free(m);
		}
	pthread_cond_destroy(&hub->changed);
	pthread_mutex_destroy(&hub->mutex);
	free(hub->queues);
	free(hub);
}

int ncclCommAbort(void *comm)
{
	struct comm *c = comm;

	while (fake_nccl.abort_hangs)
		pause();
	pthread_mutex_lock(&c->hub->mutex);
	c->aborted = 1;
	pthread_cond_broadcast(&c->hub->changed);
	pthread_mutex_unlock(&c->hub->mutex);
	free_comm(c);
	return OK;
}

int ncclCommDestroy(void *comm)
{
	free_comm(comm);
	return OK;
}

void fake_nccl_fail(void *comm, unsigned call)
{
	((struct comm *)comm)->fails_at = call;
}

unsigned fake_nccl_calls(const void *comm)
{
	return ((const struct comm *)comm)->calls;
}

unsigned fake_nccl_alive(void)
{
	return __atomic_load_n(&alive, __ATOMIC_SEQ_CST);
}

/* ---- operations ---- */

static struct message **queue(struct hub *hub, int from, int to)
{
	return &hub->queues[from * hub->size + to];
}

static size_t bytes_of(size_t n, int type)
{
	return n * (type == 0 ? 1 : type == 2 || type == 3 ? 4 : 8);
}

static void put(struct comm *c, int to, const void *data, size_t bytes, int type, int op)
{
	struct message *m = malloc(sizeof(*m) + bytes), **end;

	if (!m)
		abort();
	m->next = NULL;
	m->bytes = bytes;
	m->type = type;
	m->op = op;
	memcpy(m->data, data, bytes);
	pthread_mutex_lock(&c->hub->mutex);
	for (end = queue(c->hub, c->rank, to); *end; end = &(*end)->next)
		;
	*end = m;
	pthread_cond_broadcast(&c->hub->changed);
	pthread_mutex_unlock(&c->hub->mutex);
}

/* The next message from a rank; NULL after an abort. */
static struct message *get(struct comm *c, int from, size_t bytes, int type, int op)
{
	struct message **first = queue(c->hub, from, c->rank), *m = NULL;

	pthread_mutex_lock(&c->hub->mutex);
	while (!*first && !c->aborted)
		pthread_cond_wait(&c->hub->changed, &c->hub->mutex);
	if (!c->aborted) {
		m = *first;
		*first = m->next;
		if (m->bytes != bytes || m->type != type || m->op != op)
			abort();
	}
	pthread_mutex_unlock(&c->hub->mutex);
	return m;
}

static void combine(char *to, const char *from, size_t n, int type, int op)
{
	for (size_t i = 0; i < n; i++) {
		const size_t size = bytes_of(1, type);
		uint64_t a = 0, b = 0;
		int32_t x, y;

		memcpy(&a, to + i * size, size);
		memcpy(&b, from + i * size, size);
		if (op) {
			memcpy(&x, &a, sizeof(x));
			memcpy(&y, &b, sizeof(y));
			x = x < y ? x : y;
			memcpy(&a, &x, sizeof(x));
		} else {
			a += b;
		}
		memcpy(to + i * size, &a, size);
	}
}

static int receive(const struct operation *o)
{
	struct message *m;

	if (o->kind == RECEIVE) {
		m = get(o->comm, o->peer, bytes_of(o->n, o->type), -1, -1);
		if (!m)
			return INTERNAL_ERROR;
		memcpy(o->to, m->data, m->bytes);
		free(m);
	}
	for (int r = 0; r < o->comm->hub->size && o->kind == REDUCE; r++) {
		m = get(o->comm, r, bytes_of(o->n, o->type), o->type, o->op);
		if (!m)
			return INTERNAL_ERROR;
		if (r)
			combine(o->to, m->data, o->n, o->type, o->op);
		else
			memcpy(o->to, m->data, m->bytes);
		free(m);
	}
	return OK;
}

/* All messages are sent before the first is received, so no two ranks wait for each other. */
static int run(const struct operations *all)
{
	struct comm *c = all->at[0].comm;
	int result = OK;

	for (int k = 0; k < all->n; k++) {
		const struct operation *o = &all->at[k];

		if (o->kind == SEND)
			put(c, o->peer, o->from, bytes_of(o->n, o->type), -1, -1);
		for (int r = 0; r < c->hub->size && o->kind == REDUCE; r++)
			put(c, r, o->from, bytes_of(o->n, o->type), o->type, o->op);
	}
	for (int k = 0; k < all->n && !result; k++)
		result = receive(&all->at[k]);
	pthread_mutex_lock(&c->hub->mutex);
	c->inside--;
	c->state = result;
	pthread_cond_broadcast(&c->hub->changed);
	pthread_mutex_unlock(&c->hub->mutex);
	return result;
}

static void *run_later(void *operations)
{
	run(operations);
	free(operations);
	return NULL;
}

static int add(struct operation o)
{
	if (pending.n == MOST_OPERATIONS || (pending.n && pending.at[0].comm != o.comm))
		abort();
	pending.at[pending.n++] = o;
	return OK;
}

int ncclSend(const void *from, size_t n, int type, int peer, void *comm, struct CUstream_st *stream)
{
	(void)stream;
	return add((struct operation){
		.kind = SEND, .comm = comm, .from = from, .n = n, .type = type, .peer = peer});
}

int ncclRecv(void *to, size_t n, int type, int peer, void *comm, struct CUstream_st *stream)
{
	(void)stream;
	return add((struct operation){
		.kind = RECEIVE, .comm = comm, .to = to, .n = n, .type = type, .peer = peer});
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm,
		  struct CUstream_st *stream)
{
	(void)stream;
	return add((struct operation){.kind = REDUCE,
				      .comm = comm,
				      .from = from,
				      .to = to,
				      .n = n,
				      .type = type,
				      .op = op});
}

int ncclGroupStart(void)
{
	pending.n = 0;
	return OK;
}

int ncclGroupEnd(void)
{
	struct operations all = pending, *later;
	struct comm *c = all.at[0].comm;
	pthread_t thread;

	if (!all.n)
		return OK;
	if (c->calls++ == c->fails_at)
		return INTERNAL_ERROR;
	pthread_mutex_lock(&c->hub->mutex);
	c->inside++;
	c->state = IN_PROGRESS;
	pthread_mutex_unlock(&c->hub->mutex);
	if (!fake_nccl.asynchronous)
		return run(&all);
	later = malloc(sizeof(*later));
	if (!later)
		abort();
	*later = all;
	if (pthread_create(&thread, NULL, run_later, later))
		abort();
	pthread_detach(thread);
	return IN_PROGRESS;
}
