/* SPDX-License-Identifier: MIT */
/* Contexts, devices and backends. */
#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/internal.h"

#define DEFAULT_WORKSPACE ((size_t)1 << 20)
#define MAX_THREADS 1024u

/* The number of CPUs that this thread, and so the threads that it starts, may use. */
static unsigned usable_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	/* the system refuses a set without room for all its CPUs */
	for (unsigned room = 1024; room <= 1u << 16; room *= 4) {
		cpu_set_t *set = CPU_ALLOC(room);
		int ok = set && !sched_getaffinity(0, CPU_ALLOC_SIZE(room), set);

		if (ok)
			n = CPU_COUNT_S(CPU_ALLOC_SIZE(room), set);
		if (set)
			CPU_FREE(set);
		if (ok)
			break;
	}
	return n < 1 ? 1 : n > (long)MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

static const struct cua__runtime *runtime_of(enum cua_backend kind)
{
	if (kind == CUA_BACKEND_CPU)
		return &cua__cpu_runtime;
#if CUA_HAVE_CUDA
	if (kind == CUA_BACKEND_CUDA)
		return &cua__cuda_runtime;
#endif
	return NULL;
}

static int known(enum cua_backend kind)
{
	return kind == CUA_BACKEND_CPU || kind == CUA_BACKEND_CUDA;
}

/* ---- devices ---- */

enum cua_status cua_device_count(enum cua_backend kind, int *count)
{
	const struct cua__runtime *runtime;
	enum cua_status status;
	int cancel;

	if (!count)
		return CUA_ERROR_NULL;
	if (!known(kind))
		return CUA_ERROR_VALUE;
	runtime = runtime_of(kind);
	if (!runtime) {
		*count = 0;
		return CUA_OK;
	}
	cancel = cua__cancel_disable();
	status = runtime->device_count(count);
	cua__cancel_restore(cancel);
	return status;
}

enum cua_status cua__options(const void *options, void *own, size_t size)
{
	size_t given = size;

	memset(own, 0, size);
	if (options) {
		memcpy(&given, options, sizeof(given));
		if (!cua__known_size(given, size))
			return CUA_ERROR_VALUE;
		memcpy(own, options, given);
	}
	memcpy(own, &size, sizeof(size));
	return CUA_OK;
}

/* The size of the members before cache_bytes, which older headers have. */
#define FIRST_DEVICE_INFO ((size_t)256)
_Static_assert(offsetof(struct cua_device_info, cache_bytes) == FIRST_DEVICE_INFO, "no padding");

static int known_device_info(size_t struct_size)
{
	return struct_size == FIRST_DEVICE_INFO ||
	       cua__known_size(struct_size, sizeof(struct cua_device_info));
}

enum cua_status cua_device_query(enum cua_backend kind, int device, struct cua_device_info *info)
{
	const struct cua__runtime *runtime;
	struct cua_device_info out = {.struct_size = sizeof(out)};
	enum cua_status status;
	int cancel;

	if (!info)
		return CUA_ERROR_NULL;
	if (!known(kind) || device < 0 || !known_device_info(info->struct_size))
		return CUA_ERROR_VALUE;
	runtime = runtime_of(kind);
	if (!runtime)
		return CUA_ERROR_NOT_BUILT;
	cancel = cua__cancel_disable();
	status = runtime->device_query(device, &out);
	cua__cancel_restore(cancel);
	if (status)
		return status;
	out.struct_size = info->struct_size;
	memcpy(info, &out, info->struct_size);
	return CUA_OK;
}

enum cua_status cua_device_peer_query(enum cua_backend kind, int device, int peer,
				      struct cua_peer_info *info)
{
	const struct cua__runtime *runtime;
	struct cua_peer_info out = {.struct_size = sizeof(out)};
	enum cua_status status;
	int cancel;

	if (!info)
		return CUA_ERROR_NULL;
	if (!known(kind) || device < 0 || peer < 0 ||
	    !cua__known_size(info->struct_size, sizeof(out)))
		return CUA_ERROR_VALUE;
	runtime = runtime_of(kind);
	if (!runtime)
		return CUA_ERROR_NOT_BUILT;
	cancel = cua__cancel_disable();
	status = runtime->device_peer_query(device, peer, &out);
	cua__cancel_restore(cancel);
	if (!status)
		*info = out;
	return status;
}

const char *cua_device_problem(enum cua_backend kind, int device)
{
	const struct cua__runtime *runtime = runtime_of(kind);
	const char *problem;
	int cancel;

	if (!known(kind))
		return "no such backend";
	if (!runtime)
		return cua_strerror(CUA_ERROR_NOT_BUILT);
	if (device < 0)
		return "no such device";
	cancel = cua__cancel_disable();
	problem = runtime->device_problem(device);
	cua__cancel_restore(cancel);
	return problem;
}

/* ---- life of a context ---- */

static enum cua_status create_on(const struct cua__runtime *runtime, int device,
				 struct cua_context **result)
{
	struct cua_context *ctx = calloc(1, sizeof(*ctx));
	enum cua_status status;
	int previous;

	if (!ctx)
		return CUA_ERROR_NO_MEMORY;
	ctx->runtime = runtime;
	ctx->device = device;
	ctx->threads = usable_cpus();
	status = runtime->open(ctx, device);
	if (status) {
		free(ctx);
		return status;
	}
	previous = runtime->enter(ctx);
	/* the default stream cannot be used while a stream that waits for it is being captured */
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->allocate(ctx, CUA__CONTROL_BYTES, &ctx->control);
	if (!status)
		status = runtime->set_bytes(ctx, ctx->control, 0, CUA__CONTROL_BYTES);
	if (!status)
		status = cua_context_reserve(ctx, DEFAULT_WORKSPACE);
	if (!status)
		status = runtime->synchronize(ctx);
	runtime->leave(ctx, previous);
	if (status)
		cua_context_destroy(ctx);
	else
		*result = ctx;
	return status;
}

static enum cua_status create(const struct cua__runtime *runtime, int device,
			      struct cua_context **result)
{
	int cancel = cua__cancel_disable();
	enum cua_status status = create_on(runtime, device, result);

	cua__cancel_restore(cancel);
	return status;
}

enum cua_status cua_context_create(enum cua_backend kind, int device, struct cua_context **ctx)
{
	enum cua_status status;
	const struct cua__runtime *cuda = runtime_of(CUA_BACKEND_CUDA);

	if (!ctx)
		return CUA_ERROR_NULL;
	if (device < 0 || (kind != CUA_BACKEND_AUTO && !known(kind)))
		return CUA_ERROR_VALUE;
	if (kind == CUA_BACKEND_CPU)
		return device ? CUA_ERROR_NO_DEVICE : create(&cua__cpu_runtime, 0, ctx);
	status = cuda ? create(cuda, device, ctx) : CUA_ERROR_NOT_BUILT;
	if ((status == CUA_ERROR_NO_DEVICE || status == CUA_ERROR_NOT_BUILT) &&
	    kind == CUA_BACKEND_AUTO)
		return create(&cua__cpu_runtime, 0, ctx);
	return status;
}

void cua_context_destroy(struct cua_context *ctx)
{
	const struct cua__runtime *runtime;
	int previous, cancel;

	if (!ctx)
		return;
	cancel = cua__cancel_disable();
	runtime = ctx->runtime;
	previous = runtime->enter(ctx);
	/* waiting for a stream that is being captured would invalidate the capture */
	if (runtime->may_wait(ctx) == CUA_OK)
		runtime->synchronize(ctx);
	for (int i = 0; i < ctx->workspace.n_retired; i++)
		runtime->release(ctx, ctx->workspace.retired[i]);
	runtime->release(ctx, ctx->workspace.base);
	runtime->release(ctx, ctx->control);
	runtime->close(ctx);
	runtime->leave(ctx, previous);
	free(ctx->workspace.retired);
	cua__pool_destroy(ctx->pool);
	free(ctx);
	cua__cancel_restore(cancel);
}

enum cua_backend cua_context_backend(const struct cua_context *ctx)
{
	return ctx ? ctx->runtime->kind : CUA_BACKEND_AUTO;
}

int cua_context_device(const struct cua_context *ctx)
{
	return ctx ? ctx->device : -1;
}

enum cua_status cua_context_set_stream(struct cua_context *ctx, struct CUstream_st *stream)
{
	if (!ctx)
		return CUA_ERROR_NULL;
	if (ctx->runtime->kind != CUA_BACKEND_CUDA)
		return CUA_ERROR_NO_DEVICE;
	ctx->stream = stream;
	return CUA_OK;
}

struct CUstream_st *cua_context_stream(const struct cua_context *ctx)
{
	return ctx ? ctx->stream : NULL;
}

enum cua_status cua_context_set_threads(struct cua_context *ctx, unsigned threads)
{
	if (!ctx)
		return CUA_ERROR_NULL;
	if (threads > MAX_THREADS)
		return CUA_ERROR_VALUE;
	if (!threads)
		threads = usable_cpus();
	if (threads != ctx->threads) {
		int cancel = cua__cancel_disable();

		cua__pool_destroy(ctx->pool);
		ctx->pool = NULL;
		ctx->threads = threads;
		cua__cancel_restore(cancel);
	}
	return CUA_OK;
}

unsigned cua_context_threads(const struct cua_context *ctx)
{
	return ctx ? ctx->threads : 0;
}

int cua_context_cuda_error(const struct cua_context *ctx)
{
	return ctx ? ctx->cuda_error : 0;
}

enum cua_status cua_context_synchronize(struct cua_context *ctx)
{
	const struct cua__runtime *runtime;
	enum cua_status status;
	int previous, cancel;

	if (!ctx)
		return CUA_ERROR_NULL;
	cancel = cua__cancel_disable();
	runtime = ctx->runtime;
	previous = runtime->enter(ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->synchronize(ctx);
	runtime->leave(ctx, previous);
	cua__cancel_restore(cancel);
	return status;
}

/* ---- workspace ---- */

/* Keeps an outgrown buffer, because queued work or a graph may still use it. */
static enum cua_status retire(struct cua__workspace *w)
{
	void **more;

	if (!w->base)
		return CUA_OK;
	more = realloc(w->retired, (size_t)(w->n_retired + 1) * sizeof(*more));
	if (!more)
		return CUA_ERROR_NO_MEMORY;
	w->retired = more;
	w->retired[w->n_retired++] = w->base;
	return CUA_OK;
}

static enum cua_status grow(struct cua_context *ctx, size_t bytes)
{
	const struct cua__runtime *runtime = ctx->runtime;
	struct cua__workspace *w = &ctx->workspace;
	enum cua_status status;
	void *base;

	status = runtime->may_wait(ctx);
	if (status)
		return status == CUA_ERROR_CAPTURE ? CUA_ERROR_WORKSPACE : status;
	status = runtime->allocate(ctx, bytes, &base);
	if (status)
		return status;
	status = retire(w);
	if (status) {
		runtime->release(ctx, base);
		return status;
	}
	w->base = base;
	w->size = bytes;
	w->used = 0;
	return CUA_OK;
}

/* Frees the outgrown buffers. Releasing waits for the device, so no queued work uses them. */
static void release_retired(struct cua_context *ctx)
{
	struct cua__workspace *w = &ctx->workspace;

	if (w->captured)
		return;
	while (w->n_retired)
		ctx->runtime->release(ctx, w->retired[--w->n_retired]);
}

enum cua_status cua_context_reserve(struct cua_context *ctx, size_t bytes)
{
	enum cua_status status = CUA_OK;
	int previous, cancel;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (bytes > CUA__MAX_BYTES)
		return CUA_ERROR_SIZE;
	cancel = cua__cancel_disable();
	previous = ctx->runtime->enter(ctx);
	if (bytes > ctx->workspace.size)
		status = grow(ctx, cua__scratch_size(bytes));
	if (!status && ctx->workspace.n_retired)
		release_retired(ctx);
	ctx->runtime->leave(ctx, previous);
	cua__cancel_restore(cancel);
	return status;
}

/* ---- a call ---- */

void cua__call_begin(struct cua__call *call, struct cua_context *ctx)
{
	call->cancel = cua__cancel_disable();
	call->ctx = ctx;
	call->n_results = 0;
	call->previous_device = ctx->runtime->enter(ctx);
	if (!ctx->workspace.calls++)
		ctx->workspace.used = 0;
	call->used = ctx->workspace.used;
}

/* Most bytes added to a request, so that a series of growing calls does not allocate each time. */
#define MOST_SPARE ((size_t)32 << 20)

enum cua_status cua__call_scratch(struct cua__call *call, size_t bytes, void **p)
{
	struct cua_context *ctx = call->ctx;
	struct cua__workspace *w = &ctx->workspace;
	enum cua_status status;

	if (bytes > SIZE_MAX / 4)
		return CUA_ERROR_SIZE;
	bytes = cua__scratch_size(bytes);
	if (bytes > w->size - w->used) {
		/*
		 * scratch memory already taken stays in the old buffer; the next such call has room
		 * for everything
		 */
		const size_t all = w->used + bytes;

		status = grow(ctx, all + (all < MOST_SPARE ? all : MOST_SPARE));
		if (status == CUA_ERROR_NO_MEMORY)
			status = grow(ctx, bytes);
		if (status)
			return status;
	}
	*p = w->base + w->used;
	w->used += bytes;
	if (!w->captured && ctx->runtime->may_wait(ctx) == CUA_ERROR_CAPTURE)
		w->captured = 1;
	return CUA_OK;
}

void cua__call_give_back(struct cua__call *call, void *p)
{
	struct cua__workspace *w = &call->ctx->workspace;

	w->used = (size_t)((char *)p - (char *)w->base);
}

enum cua_status cua__call_result(struct cua__call *call, void *user, size_t bytes, size_t align,
				 void **backend)
{
	const struct cua__runtime *runtime = call->ctx->runtime;
	struct cua__location where;
	enum cua_status status;

	if (!user)
		return CUA_ERROR_NULL;
	if ((uintptr_t)user & (align - 1))
		return CUA_ERROR_ALIGNMENT;
	status = runtime->locate(call->ctx, user, &where);
	if (status)
		return status;
	if (where.memory_kind == CUA__MEMORY_KIND_OTHER)
		return CUA_ERROR_MEMORY_KIND;
	/* a result in ordinary memory must be complete when the call returns, on every system */
	if (where.memory_kind == CUA__MEMORY_KIND_BACKEND && !where.pageable) {
		*backend = (void *)where.address;
		return CUA_OK;
	}
	status = runtime->may_wait(call->ctx);
	if (status)
		return status;
	status = cua__call_scratch(call, bytes, backend);
	if (status)
		return status;
	call->results[call->n_results].user = user;
	call->results[call->n_results].backend = *backend;
	call->results[call->n_results].bytes = bytes;
	call->n_results++;
	return CUA_OK;
}

enum cua_status cua__call_end(struct cua__call *call, enum cua_status status)
{
	struct cua_context *ctx = call->ctx;
	const struct cua__runtime *runtime = ctx->runtime;
	struct cua__workspace *w = &ctx->workspace;

	/* results are written only if all earlier work has succeeded */
	if (!status && call->n_results)
		status = runtime->synchronize(ctx);
	for (int i = 0; i < call->n_results && !status; i++)
		status = runtime->copy(ctx, call->results[i].user, call->results[i].backend,
				       call->results[i].bytes);
	if (!status && call->n_results)
		status = runtime->synchronize(ctx);
	/* outer calls may use an outgrown buffer, or more than the buffer now has */
	w->used = call->used < w->size ? call->used : w->size;
	if (!--w->calls && w->n_retired && runtime->may_wait(ctx) == CUA_OK)
		release_retired(ctx);
	runtime->leave(ctx, call->previous_device);
	cua__cancel_restore(call->cancel);
	return status;
}

/* ---- arguments ---- */

enum cua_status cua__bytes(size_t n, size_t size, size_t *bytes)
{
	if (size && n > CUA__MAX_BYTES / size)
		return CUA_ERROR_SIZE;
	*bytes = n * size;
	return CUA_OK;
}

enum cua_status cua__check_array(struct cua_context *ctx, const void *p, size_t n, size_t size,
				 size_t align, const void **backend)
{
	struct cua__location where;
	enum cua_status status;
	size_t bytes;
	int previous, cancel;

	if (backend)
		*backend = p;
	if (!n)
		return CUA_OK;
	if (!p)
		return CUA_ERROR_NULL;
	status = cua__bytes(n, size, &bytes);
	if (status)
		return status;
	if ((uintptr_t)p & (align - 1))
		return CUA_ERROR_ALIGNMENT;
	if ((uintptr_t)p > UINTPTR_MAX - bytes)
		return CUA_ERROR_SIZE;
	cancel = cua__cancel_disable();
	previous = ctx->runtime->enter(ctx);
	status = ctx->runtime->locate(ctx, p, &where);
	ctx->runtime->leave(ctx, previous);
	cua__cancel_restore(cancel);
	if (status)
		return status;
	if (where.memory_kind != CUA__MEMORY_KIND_BACKEND)
		return CUA_ERROR_MEMORY_KIND;
	if (backend)
		*backend = where.address;
	return CUA_OK;
}

int cua__overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}
