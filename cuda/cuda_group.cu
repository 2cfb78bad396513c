/* SPDX-License-Identifier: MIT */
/*
 * Groups on the CUDA backend: order between the streams of the ranks by events, and a kernel that
 * reads the values of the other ranks by peer access.
 */
#include "config.h"

#include "backend/group_backend.h"
#include "launch.h"

/* With more ranks, a barrier of each stream with each has too many waits. */
#define FEW_RANKS 4u
#define GATHER_THREADS 128

static cudaStream_t stream_of(const struct cua_context *ctx)
{
	return (cudaStream_t)ctx->stream;
}

/* Sets *access to 0 if the device cannot access the memory of the peer. */
static enum cua_status enable_peer(struct cua_context *ctx, int peer, int *access)
{
	cudaError_t error;
	int can = 0;

	if (ctx->device == peer)
		return CUA_OK;
	error = cudaDeviceCanAccessPeer(&can, ctx->device, peer);
	if (error == cudaSuccess && can)
		error = cudaDeviceEnablePeerAccess(peer, 0);
	if (error == cudaErrorTooManyPeers)
		can = 0;
	if (error == cudaErrorPeerAccessAlreadyEnabled || error == cudaErrorTooManyPeers) {
		cudaGetLastError();
		error = cudaSuccess;
	}
	*access &= can;
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_open(struct cua_group *g)
{
	enum cua_status status = CUA_OK;

	g->all_peers = 1;
	for (uint32_t i = 0; i < g->local && !status; i++) {
		struct cua_context *ctx = g->contexts[i];
		const int previous = ctx->runtime->enter(ctx);

		status =
			cua__cuda_status(ctx, cudaEventCreateWithFlags((cudaEvent_t *)&g->events[i],
								       cudaEventDisableTiming));
		for (uint32_t j = 0; j < g->local && !status; j++)
			status = enable_peer(ctx, g->contexts[j]->device, &g->all_peers);
		ctx->runtime->leave(ctx, previous);
	}
	return status;
}

static void cuda_close(struct cua_group *g)
{
	for (uint32_t i = 0; i < g->local; i++) {
		struct cua_context *ctx = g->contexts[i];
		const int previous = ctx->runtime->enter(ctx);

		/* a transport that has failed may have left work that never ends, in memory that stays */
		if (!g->broken && ctx->runtime->may_wait(ctx) == CUA_OK)
			ctx->runtime->synchronize(ctx);
		if (g->events[i])
			cua__cuda_status(ctx, cudaEventDestroy((cudaEvent_t)g->events[i]));
		ctx->runtime->leave(ctx, previous);
	}
}

/* ---- order between streams ---- */

/*
 * Makes the context's device current if its stream is a default stream, because that is a stream of
 * the current device. Other streams have a device. Returns the argument of leave_default.
 */
static int enter_default(struct cua_context *ctx)
{
	return (uintptr_t)ctx->stream <= (uintptr_t)cudaStreamPerThread ? ctx->runtime->enter(ctx)
									: ctx->device;
}

static void leave_default(struct cua_context *ctx, int previous)
{
	ctx->runtime->leave(ctx, previous);
}

static enum cua_status record(struct cua_group *g, uint32_t i)
{
	struct cua_context *ctx = g->contexts[i];
	const int previous = enter_default(ctx);
	enum cua_status status =
		cua__cuda_status(ctx, cudaEventRecord((cudaEvent_t)g->events[i], stream_of(ctx)));

	leave_default(ctx, previous);
	return status;
}

/* The stream of rank i of `after` waits for the last event of rank j of `before`. */
static enum cua_status wait_for(struct cua_group *after, uint32_t i, struct cua_group *before,
				uint32_t j)
{
	struct cua_context *ctx = after->contexts[i];
	const int previous = enter_default(ctx);
	enum cua_status status = cua__cuda_status(
		ctx, cudaStreamWaitEvent(stream_of(ctx), (cudaEvent_t)before->events[j], 0));

	leave_default(ctx, previous);
	return status;
}

/* The stream of rank 0 waits for the streams of all ranks. */
static enum cua_status collect(struct cua_group *g)
{
	enum cua_status status = CUA_OK;

	for (uint32_t i = 1; i < g->local && !status; i++) {
		status = record(g, i);
		if (!status)
			status = wait_for(g, 0, g, i);
	}
	return status;
}

/* The streams of `after`, but for that of rank 0 of `before`, wait for this stream. */
static enum cua_status spread(struct cua_group *before, struct cua_group *after)
{
	enum cua_status status = CUA_OK;

	if (before != after || after->local > 1)
		status = record(before, 0);
	for (uint32_t i = before == after; i < after->local && !status; i++)
		status = wait_for(after, i, before, 0);
	return status;
}

/*
 * By the stream of rank 0 an order has 2 (local - 1) waits, one after the other; directly it has
 * local (local - 1), side by side.
 */
static enum cua_status cuda_order(struct cua_group *before, struct cua_group *after)
{
	const uint32_t n = before->local;
	enum cua_status status = CUA_OK;

	if (n > FEW_RANKS) {
		status = collect(before);
		return status ? status : spread(before, after);
	}
	if (before == after && n < 2)
		return CUA_OK;
	for (uint32_t i = 0; i < n && !status; i++)
		status = record(before, i);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n && !status; j++)
			if (i != j || before != after)
				status = wait_for(after, i, before, j);
	return status;
}

static enum cua_status cuda_follow(struct cua_group *before, struct cua_group *after)
{
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < before->local && !status; i++) {
		status = record(before, i);
		if (!status)
			status = wait_for(after, i, before, i);
	}
	return status;
}

/* Later work of each rank follows the earlier work of all ranks. */
static enum cua_status barrier(struct cua_group *g)
{
	return cuda_order(g, g);
}

static enum cua_status cuda_open_side(struct cua_context *ctx)
{
	const int previous = ctx->runtime->enter(ctx);
	int least = 0, greatest = 0;
	cudaStream_t stream = NULL;
	cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
	enum cua_status status;

	if (error == cudaSuccess)
		error = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest);
	ctx->stream = (struct CUstream_st *)stream;
	status = cua__cuda_status(ctx, error);
	ctx->runtime->leave(ctx, previous);
	return status;
}

static void cuda_close_side(struct cua_context *ctx)
{
	const int previous = ctx->runtime->enter(ctx);

	if (ctx->stream)
		cua__cuda_status(ctx, cudaStreamDestroy(stream_of(ctx)));
	ctx->stream = NULL;
	ctx->runtime->leave(ctx, previous);
}

/* Sets *id to the capture of the context's stream, or to 0 if there is none. */
static enum cua_status capture_of(struct cua_context *ctx, unsigned long long *id)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	const int previous = enter_default(ctx);
	enum cua_status status = ctx->runtime->may_wait(ctx);

	*id = 0;
	if (status == CUA_ERROR_CAPTURE)
		status = cua__cuda_status(ctx,
					  cudaStreamGetCaptureInfo(stream_of(ctx), &capture, id));
	leave_default(ctx, previous);
	return status;
}

static enum cua_status cuda_begin(struct cua_group *g)
{
	unsigned long long first = 0, id;
	enum cua_status status = CUA_OK;
	int default_stream = 0;

	g->forked = 0;
	for (uint32_t i = 0; i < g->local && !g->has_transport && !status; i++) {
		status = capture_of(g->contexts[i], i ? &id : &first);
		if (i && !status && id && id != first)
			status = CUA_ERROR_CAPTURE;
		default_stream |= (uintptr_t)g->contexts[i]->stream <= (uintptr_t)cudaStreamLegacy;
	}
	if (status || !first)
		return status;
	if (default_stream)
		return CUA_ERROR_CAPTURE;
	/* a graph keeps the addresses of all workspaces */
	for (uint32_t i = 0; i < g->local; i++)
		g->contexts[i]->workspace.captured = 1;
	status = spread(g, g);
	if (status)
		collect(g);
	g->forked = !status;
	return status;
}

static enum cua_status cuda_end(struct cua_group *g)
{
	return g->forked ? collect(g) : CUA_OK;
}

/* ---- values ---- */

/* The context's device need not be current for a copy in a stream that is not a default stream. */
static enum cua_status copy_in(struct cua_context *ctx, void *to, const void *from, size_t bytes)
{
	const int previous = enter_default(ctx);
	enum cua_status status = CUA_OK;

	if (bytes)
		status = cua__cuda_status(
			ctx, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(ctx)));
	leave_default(ctx, previous);
	return status;
}

/* The values of up to MOST_SOURCES ranks, in words. */
#define MOST_SOURCES 16u
struct sources {
	const uint64_t *from[MOST_SOURCES]; /* NULL: nothing to copy */
	uint64_t *to[MOST_SOURCES];
	uint32_t words[MOST_SOURCES];
};

static __global__ void __launch_bounds__(GATHER_THREADS)
	gather_kernel(const __grid_constant__ struct sources s)
{
	const uint64_t *from = s.from[blockIdx.x];

	for (uint32_t i = threadIdx.x; from && i < s.words[blockIdx.x]; i += GATHER_THREADS)
		s.to[blockIdx.x][i] = from[i];
}

/* Copies the values of ranks [begin, end) to rank `to`. */
static enum cua_status gather_by_kernel(struct cua_group *g, uint32_t to, uint32_t begin,
					uint32_t end, const size_t *bytes, char *at)
{
	struct cua_context *ctx = g->contexts[to];
	const int previous = ctx->runtime->enter(ctx);
	enum cua_status status;
	struct sources s;

	for (uint32_t i = begin; i < end; i++) {
		s.from[i - begin] = i == to ? NULL : (const uint64_t *)(void *)g->parts[i].mine;
		s.to[i - begin] = (uint64_t *)(void *)at;
		s.words[i - begin] = (uint32_t)(bytes[i] / sizeof(uint64_t));
		at += bytes[i];
	}
	status = cua__launch(ctx, gather_kernel, end - begin, GATHER_THREADS, 0, s);
	ctx->runtime->leave(ctx, previous);
	return status;
}

static enum cua_status gather_by_copies(struct cua_group *g, uint32_t to, const size_t *bytes)
{
	enum cua_status status = CUA_OK;
	char *at = g->parts[to].all;

	for (uint32_t i = 0; i < g->local && !status; i++) {
		if (i != to)
			status = copy_in(g->contexts[to], at, g->parts[i].mine, bytes[i]);
		at += bytes[i];
	}
	return status;
}

static enum cua_status cuda_gather(struct cua_group *g, const size_t *bytes)
{
	enum cua_status status = barrier(g);

	if (!status)
		g->slot ^= 1;
	for (uint32_t to = 0; to < g->local && g->local > 1 && !status; to++) {
		char *at = g->parts[to].all;

		if (!g->all_peers)
			status = gather_by_copies(g, to, bytes);
		for (uint32_t i = 0; i < g->local && g->all_peers && !status; i += MOST_SOURCES) {
			const uint32_t end =
				g->local - i < MOST_SOURCES ? g->local : i + MOST_SOURCES;

			status = gather_by_kernel(g, to, i, end, bytes, at);
			for (uint32_t k = i; k < end; k++)
				at += bytes[k];
		}
	}
	return status;
}

/* ---- arrays ---- */

static enum cua_status cuda_exchange(struct cua_group *g, const struct cua__group_traffic *t)
{
	enum cua_status status = barrier(g), last;

	for (uint32_t to = 0; to < g->local; to++)
		for (uint32_t step = 0; step < g->local && !status; step++) {
			/* at each step a rank reads from another rank */
			const uint32_t from = (to + step) % g->local;
			const size_t k = (size_t)to * g->local + from;

			status =
				copy_in(g->contexts[to], t->receive[k],
					t->send[(size_t)from * g->local + to], t->receive_bytes[k]);
		}
	last = barrier(g);
	return status ? status : last;
}

/* ---- sums of arrays ---- */

/*
 * Ranks read only memory of the group or of a workspace, because a peer may not be able to access the
 * user's array. That is so for memory of cudaMallocAsync, and of cuMemCreate.
 *
 * A short array goes to the slots of the group: each rank copies its array to its slot, and after a
 * barrier adds the slots of the other ranks to its array. The argument for slots is that of
 * group_backend.h.
 *
 * A long array goes in pieces through two windows in the workspace of each rank. Rank r owns share r of
 * a piece. Each rank copies the piece to its window. After a barrier rank r adds its share of the
 * windows of the other ranks to that of its own window; no other rank reads or writes that share. After
 * another barrier each rank copies the shares of all ranks to its array. A rank writes a window again two
 * pieces later, after the barriers of the piece between, and these follow all reads of the window. A last
 * barrier protects the windows from later work of the streams in the workspace.
 */
#define WINDOW_BYTES ((size_t)32 << 20)
#define SUM_THREADS 256

struct sum_sources {
	const void *from[MOST_SOURCES];
	uint32_t count;
};

template <typename T>
static __global__ void __launch_bounds__(SUM_THREADS)
	sum_kernel(const __grid_constant__ struct sum_sources s, void *to, uint64_t n)
{
	const uint64_t step = (uint64_t)gridDim.x * SUM_THREADS;

	for (uint64_t i = (uint64_t)blockIdx.x * SUM_THREADS + threadIdx.x; i < n; i += step) {
		T sum = ((const T *)to)[i];

#pragma unroll
		for (uint32_t k = 0; k < MOST_SOURCES; k++)
			if (k < s.count)
				sum += ((const T *)s.from[k])[i];
		((T *)to)[i] = sum;
	}
}

/* Adds n elements at the sources to the elements at `to`. */
static enum cua_status add_sources(struct cua_context *ctx, const struct sum_sources &s, void *to,
				   size_t n, size_t size)
{
	const size_t most = (size_t)ctx->processors * 8;
	const size_t blocks = (n + SUM_THREADS - 1) / SUM_THREADS;
	const unsigned grid = (unsigned)(blocks < most ? blocks : most);

	return cua__launch(ctx, size == 4 ? sum_kernel<uint32_t> : sum_kernel<uint64_t>, grid,
			   SUM_THREADS, 0, s, to, (uint64_t)n);
}

/*
 * Adds n elements at from(j) of each other rank j to the elements at `to` of rank i. Without peer access, each
 * source is copied to `landing` first.
 */
template <typename F>
static enum cua_status add_others(struct cua_group *g, uint32_t i, F from, void *to, void *landing,
				  size_t n, size_t size)
{
	struct cua_context *ctx = g->contexts[i];
	const int previous = ctx->runtime->enter(ctx);
	enum cua_status status = CUA_OK;
	struct sum_sources s = {};

	for (uint32_t j = 0; j < g->local && n && !status; j++) {
		if (i != j && g->all_peers) {
			s.from[s.count++] = from(j);
		} else if (i != j) {
			s.from[s.count++] = landing;
			status = copy_in(ctx, landing, from(j), n * size);
		}
		if (!status && s.count &&
		    (!g->all_peers || s.count == MOST_SOURCES || j + 1 == g->local)) {
			status = add_sources(ctx, s, to, n, size);
			s.count = 0;
		}
	}
	ctx->runtime->leave(ctx, previous);
	return status;
}

static enum cua_status sum_by_slots(struct cua_group *g, size_t n, size_t size)
{
	const size_t slot = g->slot * g->slot_bytes;
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < g->local && !status; i++)
		status = copy_in(g->contexts[i], g->parts[i].slots + slot, g->parts[i].array,
				 n * size);
	if (!status)
		status = barrier(g);
	if (!status)
		g->slot ^= 1;
	for (uint32_t i = 0; i < g->local && !status; i++)
		status = add_others(
			g, i, [=](uint32_t j) { return g->parts[j].slots + slot; },
			g->parts[i].array, NULL, n, size);
	return status;
}

/* The first element of a rank's share of a piece of n elements. */
static size_t share_of(const struct cua_group *g, uint32_t rank, size_t n)
{
	size_t begin, end;

	cua__share(n, rank, g->local, &begin, &end);
	return begin;
}

/* A piece of n elements that begins `at` bytes into the arrays, by the windows at `window`. */
static enum cua_status sum_piece(struct cua_group *g, size_t at, size_t window, size_t landing,
				 size_t n, size_t size)
{
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < g->local && !status; i++)
		status = copy_in(g->contexts[i], g->parts[i].window + window,
				 (const char *)g->parts[i].array + at, n * size);
	if (!status)
		status = barrier(g);
	for (uint32_t i = 0; i < g->local && !status; i++) {
		const size_t first = share_of(g, i, n), count = share_of(g, i + 1, n) - first;

		status = add_others(
			g, i,
			[=](uint32_t j) { return g->parts[j].window + window + first * size; },
			g->parts[i].window + window + first * size, g->parts[i].window + landing,
			count, size);
	}
	if (!status)
		status = barrier(g);
	for (uint32_t i = 0; i < g->local; i++)
		for (uint32_t j = 0; j < g->local && !status; j++) {
			const size_t first = share_of(g, j, n);
			const size_t count = share_of(g, j + 1, n) - first;

			status = copy_in(g->contexts[i],
					 (char *)g->parts[i].array + at + first * size,
					 g->parts[j].window + window + first * size, count * size);
		}
	return status;
}

/* Whether a slot has room for the array. */
static int is_short(const struct cua_group *g, size_t bytes)
{
	return g->all_peers && bytes <= g->slot_bytes;
}

static size_t cuda_sum_scratch(const struct cua_group *g, size_t bytes)
{
	if (g->local < 2 || is_short(g, bytes))
		return 0;
	if (bytes <= WINDOW_BYTES)
		return cua__scratch_size(bytes) * (g->all_peers ? 1 : 2);
	return WINDOW_BYTES * (g->all_peers ? 2 : 3);
}

static enum cua_status cuda_sum(struct cua_group *g, size_t n, size_t size)
{
	const size_t most = WINDOW_BYTES / size, bytes = n * size;
	const size_t landing = bytes <= WINDOW_BYTES ? cua__scratch_size(bytes) : 2 * WINDOW_BYTES;
	enum cua_status status = CUA_OK, last;
	size_t window = 0;

	if (g->local < 2)
		return CUA_OK;
	if (is_short(g, bytes))
		return sum_by_slots(g, n, size);
	for (size_t at = 0, count; at < n && !status; at += count) {
		count = n - at < most ? n - at : most;
		status = sum_piece(g, at * size, window, landing, count, size);
		window ^= WINDOW_BYTES;
	}
	last = barrier(g);
	return status ? status : last;
}

/* In the order of the struct's members. */
const struct cua__group_ops cua__cuda_group = {
	cuda_open, cuda_close,       cuda_begin, cuda_end,    cuda_gather,    cuda_exchange,
	cuda_sum,  cuda_sum_scratch, cuda_order, cuda_follow, cuda_open_side, cuda_close_side};
