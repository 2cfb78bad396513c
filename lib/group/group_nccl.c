/* SPDX-License-Identifier: MIT */
/*
 * A transport (cuatomic/group.h) by NCCL. Messages are ncclSend and ncclRecv, sums and agreements
 * ncclAllReduce, in the stream of the context. Each function waits for its effect in a loop that ends at
 * an error of NCCL and at the time limit.
 *
 * The kernels of NCCL wait for other ranks. So nothing is allocated after the creation: an allocation of
 * CUDA may wait for the kernels of this rank, and these for a rank that waits for this one.
 *
 * Calls of NCCL may also wait on the host, for a connection to another rank. So with a time limit a helper
 * thread makes them. If a call of NCCL does not return, the helper keeps it, and the group is broken.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/nccl.h"
#include "group/group_internal.h"

/* Tests run on the CPU backend. */
#ifndef NCCL_BACKEND
#define NCCL_BACKEND CUA_BACKEND_CUDA
#endif
/* The longest wait for ncclCommAbort. */
#ifndef ABORT_SECONDS
#define ABORT_SECONDS 10.0
#endif
/* Bytes that a piece of an exchange of host memory sends, and as many that it receives. */
#ifndef HALF_BYTES
#define HALF_BYTES ((size_t)2 << 20)
#endif
/* NCCL copies units of 16 bytes fastest. */
#define UNIT ((size_t)16)
/* cudaStreamPerThread: a stream of the calling thread. */
#define STREAM_PER_THREAD ((uintptr_t)2)

/* The call of NCCL that is made next: messages, or if send is NULL a reduction. */
struct request {
	const void *const *send;
	void *const *receive;
	const size_t *send_bytes, *receive_bytes;
	void *x;
	size_t n;
	enum cua__nccl_type type;
	enum cua__nccl_op op;
	struct CUstream_st *stream; /* a helper that is stuck may outlive the context */
};

struct end {
	struct cua_context *ctx;
	const struct cua__nccl *nccl;
	void *comm;
	int rank, size;
	double timeout; /* seconds; 0: none */
	int failed;
	/* device memory, and pinned memory: a half that is sent, and a half that is received */
	char *device, *host;
	struct request request;
	/* a piece of an exchange of host memory, in `device` */
	const void **send;
	void **receive;
	size_t *send_bytes, *receive_bytes;
	/* the helper, and the thread that aborts; the members below are protected by mutex */
	pthread_t helper, aborter;
	int has_helper;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int asked, quit; /* the helper has a request; it ends */
	int result;      /* of the request */
	int aborting, aborted;
	struct end *next; /* kept */
};

static enum cua_status of_nccl(int result)
{
	return result == CUA__NCCL_OK           ? CUA_OK
	       : result == CUA__NCCL_CUDA_ERROR ? CUA_ERROR_CUDA
						: CUA_ERROR_SYSTEM;
}

static int is_error(int result)
{
	return result != CUA__NCCL_OK && result != CUA__NCCL_IN_PROGRESS;
}

/* ---- time ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * Waits until *flag becomes `wanted`, or until the time of the monotonic clock. The caller has locked
 * mutex. Returns whether the flag has the value.
 */
static int wait_until(struct end *e, const int *flag, int wanted, double when)
{
	/* a thousand years, if the time limit is longer */
	const double bounded = when < 3e10 ? when : 3e10;
	struct timespec t;
	int error = 0;

	t.tv_sec = (time_t)bounded;
	t.tv_nsec = (long)((bounded - (double)t.tv_sec) * 1e9);
	while (*flag != wanted && !error)
		error = pthread_cond_timedwait(&e->changed, &e->mutex, &t);
	return *flag == wanted;
}

/* ---- calls of NCCL ---- */

/* Each rank begins with its next neighbour. Messages without bytes are sent by neither side. */
static int post_messages(struct end *e, const struct request *q)
{
	int result = CUA__NCCL_OK;

	for (int k = 1; k < e->size && !is_error(result); k++) {
		const int to = (e->rank + k) % e->size, from = (e->rank + e->size - k) % e->size;

		if (q->send_bytes[to])
			result = e->nccl->send(q->send[to], q->send_bytes[to], CUA__NCCL_I8, to,
					       e->comm, q->stream);
		if (q->receive_bytes[from] && !is_error(result))
			result = e->nccl->receive(q->receive[from], q->receive_bytes[from],
						  CUA__NCCL_I8, from, e->comm, q->stream);
	}
	return result;
}

/* Makes the calls of the request. If they are in the stream afterwards, returns OK. */
static int post(struct end *e)
{
	const struct request *q = &e->request;
	int result = e->nccl->group_start(), ended;

	if (result)
		return result;
	if (q->send)
		result = post_messages(e, q);
	else
		result = e->nccl->all_reduce(q->x, q->x, q->n, q->type, q->op, e->comm, q->stream);
	ended = e->nccl->group_end();
	return is_error(result) ? result : ended;
}

static void *helper_main(void *arg)
{
	struct end *e = arg;

	/* for a default stream, which is a stream of the current device */
	e->ctx->runtime->enter(e->ctx);
	pthread_mutex_lock(&e->mutex);
	for (;;) {
		int result;

		while (!e->asked && !e->quit)
			pthread_cond_wait(&e->changed, &e->mutex);
		if (!e->asked)
			break;
		pthread_mutex_unlock(&e->mutex);
		result = post(e);
		pthread_mutex_lock(&e->mutex);
		e->result = result;
		e->asked = 0;
		pthread_cond_broadcast(&e->changed);
	}
	pthread_mutex_unlock(&e->mutex);
	return NULL;
}

static int is_late(const struct end *e, double start)
{
	return e->timeout > 0 && now() - start > e->timeout;
}

/*
 * Makes the calls of the request, in the helper if there is a time limit. Returns when they are in the
 * stream. The helper does not wait for that, because the communicator may be freed while it does.
 */
static enum cua_status post_within(struct end *e, double start)
{
	int result = CUA__NCCL_IN_PROGRESS, is_posted = 1;

	e->request.stream = e->ctx->stream;
	/* that stream would be the helper's own */
	if (!(e->timeout > 0) || (uintptr_t)e->ctx->stream == STREAM_PER_THREAD) {
		result = post(e);
	} else {
		pthread_mutex_lock(&e->mutex);
		e->asked = 1;
		pthread_cond_broadcast(&e->changed);
		is_posted = wait_until(e, &e->asked, 0, start + e->timeout);
		if (is_posted)
			result = e->result;
		pthread_mutex_unlock(&e->mutex);
	}
	if (!is_posted)
		return CUA_ERROR_TIMEOUT;
	/* a communicator of the kind that does not block */
	while (result == CUA__NCCL_IN_PROGRESS) {
		int state = CUA__NCCL_OK;

		if (is_late(e, start))
			return CUA_ERROR_TIMEOUT;
		sched_yield();
		result = e->nccl->async_error(e->comm, &state);
		if (!result)
			result = state;
	}
	return of_nccl(result);
}

/*
 * Begins an operation; returns the time. With a time limit it waits for earlier work of this rank, so that
 * the limit is that of the wait for other ranks.
 */
static enum cua_status begin(struct end *e, double *start)
{
	enum cua_status status = CUA_OK;

	if (e->timeout > 0)
		status = e->ctx->runtime->synchronize(e->ctx);
	*start = now();
	return status;
}

/* Waits for the operation. */
static enum cua_status finish(struct end *e, double start)
{
	for (;;) {
		int done = 0, error = CUA__NCCL_OK, result;
		enum cua_status status = e->ctx->runtime->query(e->ctx, &done);

		if (status || done)
			return status;
		result = e->nccl->async_error(e->comm, &error);
		if (result || is_error(error))
			return of_nccl(result ? result : error);
		if (is_late(e, start))
			return CUA_ERROR_TIMEOUT;
		sched_yield();
	}
}

/* The request, on device memory. */
static enum cua_status run(struct end *e)
{
	double start;
	enum cua_status status = begin(e, &start);

	if (!status)
		status = post_within(e, start);
	return status ? status : finish(e, start);
}

/* The request, after a copy of `sent` bytes to the device, and before a copy of `received` bytes back. */
static enum cua_status run_staged(struct end *e, size_t sent, size_t to, size_t received)
{
	const struct cua__runtime *runtime = e->ctx->runtime;
	double start;
	enum cua_status status = begin(e, &start);

	if (!status && sent)
		status = runtime->copy(e->ctx, e->device, e->host, sent);
	if (!status)
		status = post_within(e, start);
	if (!status && received)
		status = runtime->copy(e->ctx, e->host + to, e->device + to, received);
	return status ? status : finish(e, start);
}

/* ---- the functions of the transport ---- */

/* A function runs with the context's device current, and not after a failure. */
#define RUN(e, status, expression)                                                                 \
	do {                                                                                       \
		(status) = CUA_ERROR_SYSTEM;                                                       \
		if (!(e)->failed)                                                                  \
			CUA__GROUP_IN((e)->ctx, status, expression);                               \
		if (status)                                                                        \
			(e)->failed = 1;                                                           \
	} while (0)

static void request_messages(struct end *e, const void *const *send, const size_t *send_bytes,
			     void *const *receive, const size_t *receive_bytes)
{
	const struct request request = {.send = send,
					.receive = receive,
					.send_bytes = send_bytes,
					.receive_bytes = receive_bytes};

	e->request = request;
}

static void request_reduction(struct end *e, void *x, size_t n, enum cua__nccl_type type,
			      enum cua__nccl_op op)
{
	const struct request request = {.x = x, .n = n, .type = type, .op = op};

	e->request = request;
}

/* The bytes of a message in the piece that begins at byte `at` of each message. */
static size_t piece_of(size_t bytes, size_t at, size_t most)
{
	return at >= bytes ? 0 : bytes - at < most ? bytes - at : most;
}

static size_t units(size_t bytes)
{
	return (bytes + UNIT - 1) / UNIT * UNIT;
}

/*
 * Each message has at most `most` bytes in a piece, the same number for all ranks. So both sides of a
 * message agree about its pieces, and a rank without more bytes may end before other ranks.
 */
static enum cua_status exchange_pieces(struct end *e, const void *const *send,
				       const size_t *send_bytes, void *const *receive,
				       const size_t *receive_bytes)
{
	const size_t most = HALF_BYTES / (size_t)e->size / UNIT * UNIT;
	enum cua_status status = CUA_OK;
	int is_last = 0;

	if (send_bytes[e->rank])
		memmove(receive[e->rank], send[e->rank], send_bytes[e->rank]);
	for (size_t at = 0; !is_last && !status; at += most) {
		size_t sent = 0, received = 0;

		is_last = 1;
		for (int r = 0; r < e->size; r++) {
			const int other = r != e->rank;

			e->send[r] = e->device + sent;
			e->receive[r] = e->device + HALF_BYTES + received;
			e->send_bytes[r] = other ? piece_of(send_bytes[r], at, most) : 0;
			e->receive_bytes[r] = other ? piece_of(receive_bytes[r], at, most) : 0;
			if (e->send_bytes[r])
				memcpy(e->host + sent, (const char *)send[r] + at,
				       e->send_bytes[r]);
			sent += units(e->send_bytes[r]);
			received += units(e->receive_bytes[r]);
			if (other && (piece_of(send_bytes[r], at + most, most) ||
				      piece_of(receive_bytes[r], at + most, most)))
				is_last = 0;
		}
		request_messages(e, e->send, e->send_bytes, e->receive, e->receive_bytes);
		if (sent || received)
			status = run_staged(e, sent, HALF_BYTES, received);
		received = HALF_BYTES;
		for (int r = 0; r < e->size && !status; r++) {
			if (e->receive_bytes[r])
				memcpy((char *)receive[r] + at, e->host + received,
				       e->receive_bytes[r]);
			received += units(e->receive_bytes[r]);
		}
	}
	return status;
}

static enum cua_status exchange(void *self, const void *const *send, const size_t *send_bytes,
				void *const *receive, const size_t *receive_bytes)
{
	struct end *e = self;
	enum cua_status status;

	RUN(e, status, exchange_pieces(e, send, send_bytes, receive, receive_bytes));
	return status;
}

static enum cua_status exchange_arrays(struct end *e, const void *const *send,
				       const size_t *send_bytes, void *const *receive,
				       const size_t *receive_bytes)
{
	const int own = e->rank;
	enum cua_status status = CUA_OK;

	if (send_bytes[own] && send[own] != receive[own])
		status = e->ctx->runtime->copy(e->ctx, receive[own], send[own], send_bytes[own]);
	request_messages(e, send, send_bytes, receive, receive_bytes);
	return status ? status : run(e);
}

static enum cua_status exchange_device(void *self, const void *const *send,
				       const size_t *send_bytes, void *const *receive,
				       const size_t *receive_bytes)
{
	struct end *e = self;
	enum cua_status status;

	RUN(e, status, exchange_arrays(e, send, send_bytes, receive, receive_bytes));
	return status;
}

static enum cua_status sum_u64(void *self, uint64_t *x, size_t n)
{
	struct end *e = self;
	/* the helper may still use the request */
	enum cua_status status = e->failed ? CUA_ERROR_SYSTEM : CUA_OK;

	for (size_t at = 0, count; at < n && !status; at += count) {
		count = n - at < HALF_BYTES / sizeof(*x) ? n - at : HALF_BYTES / sizeof(*x);
		memcpy(e->host, x + at, count * sizeof(*x));
		request_reduction(e, e->device, count, CUA__NCCL_U64, CUA__NCCL_SUM);
		RUN(e, status, run_staged(e, count * sizeof(*x), 0, count * sizeof(*x)));
		if (!status)
			memcpy(x + at, e->host, count * sizeof(*x));
	}
	return status;
}

static enum cua_status sum_device(void *self, enum cua_type type, void *x, size_t n)
{
	struct end *e = self;
	enum cua_status status;

	if (e->failed)
		return CUA_ERROR_SYSTEM;
	request_reduction(e, x, n,
			  type == CUA_I32   ? CUA__NCCL_I32
			  : type == CUA_U32 ? CUA__NCCL_U32
			  : type == CUA_I64 ? CUA__NCCL_I64
					    : CUA__NCCL_U64,
			  CUA__NCCL_SUM);
	RUN(e, status, run(e));
	return status;
}

static enum cua_status agree(void *self, enum cua_status mine, enum cua_status *all)
{
	const int32_t number = (int32_t)mine;
	struct end *e = self;
	enum cua_status status;
	int32_t least;

	if (e->failed)
		return CUA_ERROR_SYSTEM;
	memcpy(e->host, &number, sizeof(number));
	request_reduction(e, e->device, 1, CUA__NCCL_I32, CUA__NCCL_MIN);
	RUN(e, status, run_staged(e, sizeof(number), 0, sizeof(number)));
	if (!status) {
		memcpy(&least, e->host, sizeof(least));
		*all = (enum cua_status)least;
	}
	return status;
}

static void set_timeout(void *self, double seconds)
{
	((struct end *)self)->timeout = seconds;
}

/* ---- threads ---- */

/* Signals of the program are handled by its own threads, except signals of faults. */
static int start_thread(pthread_t *thread, void *(*fn)(void *), struct end *e)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t blocked, before;
	int error;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	error = pthread_create(thread, NULL, fn, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static void *abort_main(void *arg)
{
	struct end *e = arg;

	e->nccl->abort(e->comm);
	pthread_mutex_lock(&e->mutex);
	e->aborted = 1;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->mutex);
	return NULL;
}

/* A thread that does not return from NCCL needs the code of this library as long as the process lives. */
static void stay_loaded(void)
{
	Dl_info self;

	if (dladdr((void *)(uintptr_t)abort_main, &self) && self.dli_fname)
		(void)dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* ncclCommAbort may wait for ever, so a thread of its own calls it. */
static void abort_comm(void *self)
{
	struct end *e = self;
	const double last = now() + ABORT_SECONDS;

	e->failed = 1;
	pthread_mutex_lock(&e->mutex);
	if (!e->aborting && !start_thread(&e->aborter, abort_main, e)) {
		e->aborting = 1;
		/* the abort ends a call of the helper */
		if (wait_until(e, &e->aborted, 1, last))
			wait_until(e, &e->asked, 0, last);
	}
	pthread_mutex_unlock(&e->mutex);
}

/* ---- creation ---- */

static void release(struct end *e)
{
	enum cua_status status = CUA_OK;

	if (e->device)
		CUA__GROUP_IN(e->ctx, status, e->ctx->runtime->release(e->ctx, e->device));
	if (e->host)
		CUA__GROUP_IN(e->ctx, status, e->ctx->runtime->release_mapped(e->ctx, e->host));
	(void)status;
	free(e->send);
	free(e->receive);
	free(e->send_bytes);
	free(e->receive_bytes);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->mutex);
	free(e);
}

/* Memory that threads and kernels of NCCL may still use, where leak checkers find it. */
static struct end *_Atomic kept;

static void close_end(void *self)
{
	struct end *e = self;
	int is_stuck;

	pthread_mutex_lock(&e->mutex);
	is_stuck = e->asked || (e->failed && !e->aborted);
	e->quit = 1;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->mutex);
	if (!is_stuck) {
		if (e->has_helper)
			pthread_join(e->helper, NULL);
		if (e->aborting)
			pthread_join(e->aborter, NULL);
		release(e);
		return;
	}
	stay_loaded();
	if (e->has_helper)
		pthread_detach(e->helper);
	if (e->aborting)
		pthread_detach(e->aborter);
	e->next = atomic_load(&kept);
	while (!atomic_compare_exchange_weak(&kept, &e->next, e))
		;
}

static enum cua_status create_threads(struct end *e)
{
	if (start_thread(&e->helper, helper_main, e))
		return CUA_ERROR_SYSTEM;
	e->has_helper = 1;
	return CUA_OK;
}

/* Reads the communicator. Its functions fail while it is not connected. */
static enum cua_status read_comm(struct end *e)
{
	int device = -1, state = CUA__NCCL_OK;

	if (e->nccl->async_error(e->comm, &state) || state == CUA__NCCL_IN_PROGRESS)
		return CUA_ERROR_VALUE;
	if (state)
		return of_nccl(state);
	if (e->nccl->count(e->comm, &e->size) || e->nccl->rank(e->comm, &e->rank) ||
	    e->nccl->device(e->comm, &device))
		return CUA_ERROR_VALUE;
	if (device != e->ctx->device)
		return CUA_ERROR_CONTEXT;
	return e->size < 1 || (uint32_t)e->size > CUA_GROUP_RANKS_MAX ? CUA_ERROR_SIZE : CUA_OK;
}

static enum cua_status allocate(struct end *e)
{
	const struct cua__runtime *runtime = e->ctx->runtime;
	const size_t size = (size_t)e->size;
	enum cua_status status;

	e->send = calloc(size, sizeof(*e->send));
	e->receive = calloc(size, sizeof(*e->receive));
	e->send_bytes = calloc(size, sizeof(*e->send_bytes));
	e->receive_bytes = calloc(size, sizeof(*e->receive_bytes));
	if (!e->send || !e->receive || !e->send_bytes || !e->receive_bytes)
		return CUA_ERROR_NO_MEMORY;
	CUA__GROUP_IN(e->ctx, status,
		      runtime->allocate(e->ctx, 2 * HALF_BYTES, (void **)&e->device));
	if (!status)
		CUA__GROUP_IN(e->ctx, status,
			      runtime->allocate_mapped(e->ctx, 2 * HALF_BYTES, (void **)&e->host));
	return status;
}

static struct end *create_end(struct cua_context *ctx, const struct cua__nccl *nccl, void *comm)
{
	struct end *e = calloc(1, sizeof(*e));
	pthread_condattr_t monotonic;

	if (!e)
		return NULL;
	e->ctx = ctx;
	e->nccl = nccl;
	e->comm = comm;
	/* these fail only for a bad argument */
	pthread_mutex_init(&e->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&e->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return e;
}

static enum cua_status create(struct cua_context *ctx, void *comm, struct cua_group **group)
{
	struct cua_transport transport = CUA_TRANSPORT_INIT;
	enum cua_status status;
	const char *problem;
	const struct cua__nccl *nccl = cua__nccl_load(&problem);
	struct end *e;

	if (!nccl)
		return CUA_ERROR_UNSUPPORTED;
	e = create_end(ctx, nccl, comm);
	if (!e)
		return CUA_ERROR_NO_MEMORY;
	status = read_comm(e);
	if (!status)
		status = allocate(e);
	if (!status)
		status = create_threads(e);
	if (!status) {
		transport.self = e;
		transport.rank = (uint32_t)e->rank;
		transport.size = (uint32_t)e->size;
		transport.exchange = exchange;
		transport.sum_u64 = sum_u64;
		transport.agree = agree;
		transport.abort = abort_comm;
		transport.set_timeout = set_timeout;
		transport.close = close_end;
		transport.exchange_device = exchange_device;
		transport.sum_device = sum_device;
		status = cua_group_create(ctx, &transport, group);
	}
	if (status)
		close_end(e);
	return status;
}

enum cua_status cua_group_create_nccl(struct cua_context *ctx, void *comm, struct cua_group **group)
{
	enum cua_status status;
	int cancel;

	if (!ctx || !comm || !group)
		return CUA_ERROR_NULL;
	if (ctx->runtime->kind != NCCL_BACKEND)
		return CUA_ERROR_UNSUPPORTED;
	cancel = cua__cancel_disable();
	status = create(ctx, comm, group);
	cua__cancel_restore(cancel);
	return status;
}

const char *cua_group_nccl_problem(void)
{
	const int cancel = cua__cancel_disable();
	const char *problem;
	const int usable = cua__nccl_load(&problem) != NULL;

	cua__cancel_restore(cancel);
	return usable ? "" : problem;
}
