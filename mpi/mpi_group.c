/* SPDX-License-Identifier: MIT */
/*
 * A transport (cuatomic/group.h) by MPI. Every wait is a loop over MPI_Testall that ends at a time limit,
 * and at a message of a rank that has failed.
 */
#include <cuatomic/memory.h>
#include <cuatomic/mpi.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

/* Whether this MPI takes memory of a GPU. Of the MPIs, Open MPI reports that at run time. */
#ifndef TAKES_DEVICE
#ifdef MPIX_CUDA_AWARE_SUPPORT
#define TAKES_DEVICE MPIX_Query_cuda_support()
#else
#define TAKES_DEVICE 0
#endif
#endif
/* Tests without a GPU pass host memory to exchange_device. */
#ifndef EXCHANGE
#define EXCHANGE exchange
#endif
/* The most bytes of a message: MPI counts in int. */
#ifndef PIECE
#define PIECE ((size_t)1 << 30)
#endif
/* The most numbers of a sum in a single call of MPI. */
#define WORDS ((size_t)64 << 10)

enum { TAG_DATA = 1, TAG_FAILED = 2 };

struct end {
	struct cua_context *ctx;
	MPI_Comm comm;
	int rank, size;
	double timeout; /* seconds; 0: none */
	int failed;     /* a rank has failed: requests may be pending, and comm is of no use */
	MPI_Request *requests;
	size_t room; /* of requests */
	int mine, all;
	/* of sums, because pending operations must not use a caller's array */
	uint64_t words[WORDS];
	struct end *next;
};

static enum cua_status of_mpi(int error)
{
	return error == MPI_SUCCESS ? CUA_OK : CUA_ERROR_SYSTEM;
}

/* ---- waiting ---- */

/* Whether a rank has sent that it failed. */
static int is_told(struct end *end)
{
	int told = 0;

	if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILED, end->comm, &told, MPI_STATUS_IGNORE))
		return 1;
	return told;
}

static enum cua_status wait_all(struct end *end, int n, MPI_Request *requests)
{
	const double start = MPI_Wtime();
	enum cua_status status = CUA_OK;
	int done = 0;

	while (!status) {
		status = of_mpi(MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE));
		if (!status && done)
			return CUA_OK;
		if (!status && is_told(end))
			status = CUA_ERROR_SYSTEM;
		if (!status && end->timeout > 0 && MPI_Wtime() - start > end->timeout)
			status = CUA_ERROR_TIMEOUT;
		/* there may be more ranks than processors */
		sched_yield();
	}
	end->failed = 1;
	return status;
}

/* ---- the functions of the transport ---- */

static size_t pieces(size_t bytes)
{
	return bytes / PIECE + (bytes % PIECE != 0);
}

/* Room for n requests. */
static enum cua_status reserve(struct end *end, size_t n)
{
	MPI_Request *more;

	if (n <= end->room)
		return CUA_OK;
	if (n > INT32_MAX)
		return CUA_ERROR_SIZE;
	more = realloc(end->requests, n * sizeof(MPI_Request));
	if (!more)
		return CUA_ERROR_NO_MEMORY;
	end->requests = more;
	end->room = n;
	return CUA_OK;
}

static enum cua_status start(struct end *end, void *at, size_t bytes, int rank, int is_receive,
			     int *n)
{
	enum cua_status status = CUA_OK;

	for (size_t from = 0; from < bytes && !status; from += PIECE) {
		const int count = (int)(bytes - from < PIECE ? bytes - from : PIECE);
		MPI_Request *request = &end->requests[*n];
		char *piece = (char *)at + from;

		status = of_mpi(is_receive ? MPI_Irecv(piece, count, MPI_BYTE, rank, TAG_DATA,
						       end->comm, request)
					   : MPI_Isend(piece, count, MPI_BYTE, rank, TAG_DATA,
						       end->comm, request));
		*n += !status;
	}
	return status;
}

/* The messages of other ranks. */
static enum cua_status exchange_others(struct end *end, const void *const *send,
				       const size_t *send_bytes, void *const *receive,
				       const size_t *receive_bytes)
{
	enum cua_status status = CUA_OK;
	size_t most = 0;
	int n = 0;

	for (int r = 0; r < end->size; r++)
		if (r != end->rank)
			most += pieces(send_bytes[r]) + pieces(receive_bytes[r]);
	status = reserve(end, most);
	/* each rank begins with its next neighbour */
	for (int k = 1; k < end->size && !status; k++) {
		const int from = (end->rank + end->size - k) % end->size;

		status = start(end, receive[from], receive_bytes[from], from, 1, &n);
	}
	for (int k = 1; k < end->size && !status; k++) {
		const int to = (end->rank + k) % end->size;

		/* MPI does not write there */
		status = start(end, (void *)(uintptr_t)send[to], send_bytes[to], to, 0, &n);
	}
	if (!status)
		status = wait_all(end, n, end->requests);
	if (status)
		end->failed = 1;
	return status;
}

static enum cua_status exchange(void *self, const void *const *send, const size_t *send_bytes,
				void *const *receive, const size_t *receive_bytes)
{
	struct end *end = self;

	if (end->failed)
		return CUA_ERROR_SYSTEM;
	if (send_bytes[end->rank])
		memmove(receive[end->rank], send[end->rank], send_bytes[end->rank]);
	return exchange_others(end, send, send_bytes, receive, receive_bytes);
}

/* MPI does not know of the stream, so the stream is idle before MPI reads and writes. */
static enum cua_status exchange_device(void *self, const void *const *send,
				       const size_t *send_bytes, void *const *receive,
				       const size_t *receive_bytes)
{
	struct end *end = self;
	const int own = end->rank;
	enum cua_status status = CUA_OK;

	if (end->failed)
		return CUA_ERROR_SYSTEM;
	if (send_bytes[own] && send[own] != receive[own])
		status = cua_copy(end->ctx, receive[own], send[own], send_bytes[own]);
	if (!status)
		status = cua_context_synchronize(end->ctx);
	if (status) {
		end->failed = 1;
		return status;
	}
	return exchange_others(end, send, send_bytes, receive, receive_bytes);
}

static enum cua_status sum_u64(void *self, uint64_t *x, size_t n)
{
	struct end *end = self;
	enum cua_status status = end->failed ? CUA_ERROR_SYSTEM : CUA_OK;

	for (size_t at = 0, count; at < n && !status; at += count) {
		MPI_Request request;

		count = n - at < WORDS ? n - at : WORDS;
		memcpy(end->words, x + at, count * sizeof(*x));
		status = of_mpi(MPI_Iallreduce(MPI_IN_PLACE, end->words, (int)count, MPI_UINT64_T,
					       MPI_SUM, end->comm, &request));
		if (!status)
			status = wait_all(end, 1, &request);
		if (!status)
			memcpy(x + at, end->words, count * sizeof(*x));
	}
	return status;
}

static enum cua_status agree(void *self, enum cua_status mine, enum cua_status *all)
{
	struct end *end = self;
	enum cua_status status;
	MPI_Request request;

	if (end->failed)
		return CUA_ERROR_SYSTEM;
	end->mine = mine;
	status = of_mpi(
		MPI_Iallreduce(&end->mine, &end->all, 1, MPI_INT, MPI_MIN, end->comm, &request));
	if (!status)
		status = wait_all(end, 1, &request);
	if (!status)
		*all = (enum cua_status)end->all;
	return status;
}

/* The messages have no bytes, so MPI sends them at once, also if the receiver does not wait. */
static void tell(void *self)
{
	struct end *end = self;

	end->failed = 1;
	for (int r = 0; r < end->size; r++) {
		MPI_Request request = MPI_REQUEST_NULL;

		if (r != end->rank &&
		    MPI_Isend(NULL, 0, MPI_BYTE, r, TAG_FAILED, end->comm, &request) == MPI_SUCCESS)
			MPI_Request_free(&request);
	}
}

static void set_timeout(void *self, double seconds)
{
	((struct end *)self)->timeout = seconds;
}

/*
 * After a failure, requests may be pending for ever. MPI may still read and write the memory of this struct,
 * so it stays, where leak checkers find it; the library keeps the memory of messages (cuatomic/group.h).
 */
static struct end *_Atomic kept;

static void close_end(void *self)
{
	struct end *end = self;
	int finalized = 1;

	if (MPI_Finalized(&finalized))
		finalized = 1;
	/* a rank that saw no error itself must not wait for ranks that failed */
	if (!finalized && !end->failed && is_told(end))
		end->failed = 1;
	if (end->failed) {
		end->next = atomic_load(&kept);
		while (!atomic_compare_exchange_weak(&kept, &end->next, end))
			;
		return;
	}
	if (!finalized)
		MPI_Comm_free(&end->comm);
	free(end->requests);
	free(end);
}

/* ---- creation ---- */

/* The least status of all processes. */
static enum cua_status agree_on(MPI_Comm comm, enum cua_status mine)
{
	int own = mine, all = CUA_ERROR_SYSTEM;

	return MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm) ? CUA_ERROR_SYSTEM
								    : (enum cua_status)all;
}

/* Errors of MPI in `comm` are returned. */
static enum cua_status create(struct cua_context *ctx, MPI_Comm comm, struct cua_group **group)
{
	struct cua_transport transport = CUA_TRANSPORT_INIT;
	struct end *end = calloc(1, sizeof(*end));
	struct cua_group *made = NULL;
	enum cua_status status = !ctx || !group ? CUA_ERROR_NULL
				 : end          ? CUA_OK
						: CUA_ERROR_NO_MEMORY;

	if (end) {
		end->ctx = ctx;
		end->comm = MPI_COMM_NULL;
	}
	status = agree_on(comm, status);
	if (!status)
		status = agree_on(comm, of_mpi(MPI_Comm_dup(comm, &end->comm)));
	if (!status)
		status = of_mpi(MPI_Comm_set_errhandler(end->comm, MPI_ERRORS_RETURN));
	if (!status)
		status = of_mpi(MPI_Comm_rank(end->comm, &end->rank));
	if (!status)
		status = of_mpi(MPI_Comm_size(end->comm, &end->size));
	if (!status && (uint32_t)end->size > CUA_GROUP_RANKS_MAX)
		status = CUA_ERROR_SIZE;
	if (!status)
		status = reserve(end, 2 * (size_t)end->size);
	if (!status) {
		transport.self = end;
		transport.rank = (uint32_t)end->rank;
		transport.size = (uint32_t)end->size;
		transport.exchange = EXCHANGE;
		transport.exchange_device = TAKES_DEVICE ? exchange_device : NULL;
		transport.sum_u64 = sum_u64;
		transport.agree = agree;
		transport.abort = tell;
		transport.set_timeout = set_timeout;
		transport.close = close_end;
		status = cua_group_create(ctx, &transport, &made);
	}
	/* all processes have a duplicate, or none */
	if (end && end->comm != MPI_COMM_NULL)
		status = agree_on(comm, status);
	if (!status) {
		*group = made;
	} else if (made) {
		cua_group_destroy(made);
	} else if (end) {
		if (end->comm != MPI_COMM_NULL)
			MPI_Comm_free(&end->comm);
		free(end->requests);
		free(end);
	}
	return status;
}

enum cua_status cua_group_create_mpi(struct cua_context *ctx, MPI_Comm comm,
				     struct cua_group **group)
{
	int initialized = 0, finalized = 1, is_inter = 0;
	MPI_Errhandler handler;
	enum cua_status status;

	if (MPI_Initialized(&initialized) || !initialized || MPI_Finalized(&finalized) || finalized)
		return CUA_ERROR_UNSUPPORTED;
	if (comm == MPI_COMM_NULL)
		return CUA_ERROR_VALUE;
	/* the user's handler may end the process */
	if (MPI_Comm_get_errhandler(comm, &handler))
		return CUA_ERROR_SYSTEM;
	status = of_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
	if (!status)
		status = of_mpi(MPI_Comm_test_inter(comm, &is_inter));
	if (!status && is_inter)
		status = CUA_ERROR_VALUE;
	if (!status)
		status = create(ctx, comm, group);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	return status;
}
