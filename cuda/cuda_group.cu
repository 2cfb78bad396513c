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

		if (ctx->runtime->may_wait(ctx) == CUA_OK)
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

/* The stream of rank i waits for the last event of rank j. */
static enum cua_status wait_for(struct cua_group *g, uint32_t i, uint32_t j)
{
	struct cua_context *ctx = g->contexts[i];
	const int previous = enter_default(ctx);
	enum cua_status status = cua__cuda_status(
		ctx, cudaStreamWaitEvent(stream_of(ctx), (cudaEvent_t)g->events[j], 0));

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
			status = wait_for(g, 0, i);
	}
	return status;
}

/* The streams of all ranks wait for the stream of rank 0. */
static enum cua_status spread(struct cua_group *g)
{
	enum cua_status status = g->local > 1 ? record(g, 0) : CUA_OK;

	for (uint32_t i = 1; i < g->local && !status; i++)
		status = wait_for(g, i, 0);
	return status;
}

/*
 * Later work of each rank follows the earlier work of all ranks. By the stream of rank 0 a barrier
 * has 2 (local - 1) waits, one after the other; directly it has local (local - 1), side by side.
 */
static enum cua_status barrier(struct cua_group *g)
{
	enum cua_status status = CUA_OK;

	if (g->local > FEW_RANKS) {
		status = collect(g);
		return status ? status : spread(g);
	}
	for (uint32_t i = 0; i < g->local && g->local > 1 && !status; i++)
		status = record(g, i);
	for (uint32_t i = 0; i < g->local; i++)
		for (uint32_t j = 0; j < g->local && !status; j++)
			if (i != j)
				status = wait_for(g, i, j);
	return status;
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
	status = spread(g);
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
	struct cua_context *ctx = g->contexts[to];
	const int previous = enter_default(ctx);
	enum cua_status status = CUA_OK;
	char *at = g->parts[to].all;

	for (uint32_t i = 0; i < g->local && !status; i++) {
		if (i != to && bytes[i])
			status = cua__cuda_status(ctx, cudaMemcpyAsync(at, g->parts[i].mine,
								       bytes[i], cudaMemcpyDefault,
								       stream_of(ctx)));
		at += bytes[i];
	}
	leave_default(ctx, previous);
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

/* In the order of the struct's members. */
const struct cua__group_ops cua__cuda_group = {cuda_open, cuda_close, cuda_begin, cuda_end,
					       cuda_gather};
