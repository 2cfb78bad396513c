/* SPDX-License-Identifier: MIT */
/* Sums of arrays that every rank has, in place. */
#include "config.h"

#include <string.h>

#include "group/group_internal.h"

static enum cua_status describe(enum cua_type type, size_t n, size_t *size, size_t *bytes)
{
	if (type != CUA_I32 && type != CUA_U32 && type != CUA_I64 && type != CUA_U64)
		return CUA_ERROR_TYPE;
	*size = cua_type_size(type);
	return cua__bytes(n, *size, bytes);
}

static size_t scratch_bytes(const struct cua_group *g, size_t bytes)
{
	return g->has_transport ? 0 : CUA__OPS(g->contexts[0], group)->sum_scratch(g, bytes);
}

enum cua_status cua_group_sum_workspace(struct cua_group *group, enum cua_type type, size_t n,
					size_t *bytes)
{
	enum cua_status status;
	size_t size, array;

	if (!group || !bytes)
		return CUA_ERROR_NULL;
	status = describe(type, n, &size, &array);
	if (!status)
		*bytes = cua__scratch_size(scratch_bytes(group, array));
	return status;
}

/* ---- with a transport ---- */

/* Sets the numbers w to n elements of the context's memory. Waits. */
static enum cua_status load(struct cua_context *ctx, uint64_t *w, const char *x, size_t n,
			    size_t size)
{
	enum cua_status status;
	uint32_t narrow;

	CUA__GROUP_IN(ctx, status, ctx->runtime->copy(ctx, w, x, n * size));
	if (!status)
		CUA__GROUP_IN(ctx, status, ctx->runtime->synchronize(ctx));
	/* from the last on, because a number takes the place of two elements */
	for (size_t i = n; i-- && size == sizeof(narrow);) {
		memcpy(&narrow, (const char *)w + i * size, sizeof(narrow));
		w[i] = narrow;
	}
	return status;
}

static enum cua_status store(struct cua_context *ctx, char *x, uint64_t *w, size_t n, size_t size)
{
	enum cua_status status;

	for (size_t i = 0; i < n && size == sizeof(uint32_t); i++) {
		const uint32_t narrow = (uint32_t)w[i];

		memcpy((char *)w + i * size, &narrow, sizeof(narrow));
	}
	CUA__GROUP_IN(ctx, status, ctx->runtime->copy(ctx, x, w, n * size));
	return status;
}

/* Whether the transport adds up memory of this rank's context, a GPU. */
static int sums_context(const struct cua_group *g)
{
	return g->has_transport && g->transport.sum_device &&
	       g->contexts[0]->runtime->kind != CUA_BACKEND_CPU;
}

/*
 * A rank with an error of its own goes on, because the other ranks wait for its numbers. The ranks agree
 * at the end of the call.
 */
static enum cua_status sum_remotely(struct cua_group *g, enum cua_type type, size_t n, size_t size)
{
	struct cua_context *ctx = g->contexts[0];
	const int in_place = ctx->runtime->kind == CUA_BACKEND_CPU && size == sizeof(uint64_t);
	char *x = g->parts[0].array;
	enum cua_status own = CUA_OK, last = CUA_OK;

	if (sums_context(g))
		return cua__group_sum_device(g, type, x, n);
	/* ranks with and without numbers in place make the same calls of the transport */
	for (size_t at = 0, count; at < n && !g->broken; at += count) {
		count = n - at < CUA__GROUP_WORDS ? n - at : CUA__GROUP_WORDS;
		if (!in_place) {
			own = cua__worse(own, load(ctx, g->words, x + at * size, count, size));
			cua__group_sum_words(g, g->words, count);
			own = cua__worse(own, store(ctx, x + at * size, g->words, count, size));
		} else {
			cua__group_sum_words(g, (uint64_t *)(void *)x + at, count);
		}
	}
	/* the numbers of the last store */
	if (!in_place && !g->broken)
		CUA__GROUP_IN(ctx, last, ctx->runtime->synchronize(ctx));
	return g->broken ? g->broken : cua__worse(own, last);
}

/* ---- the call ---- */

static enum cua_status prepare(struct cua_group *g, uint32_t i, void *const *x, size_t n,
			       size_t size)
{
	struct cua__group_part *part = &g->parts[i];
	struct cua_context *ctx = g->contexts[i];
	const size_t scratch = scratch_bytes(g, n * size);
	const void *array = NULL;
	enum cua_status status = cua__check_array(ctx, x[i], n, size, size, &array);

	part->array = (void *)(uintptr_t)array;
	for (uint32_t j = 0; j < i && !status && n; j++)
		if (cua__overlap(x[i], n * size, x[j], n * size))
			status = CUA_ERROR_OVERLAP;
	if (!status && scratch)
		status = cua__call_scratch(&part->call, scratch, (void **)&part->window);
	return status;
}

static void write_record(const struct cua_group *g, struct cua__group_record *record,
			 enum cua_type type, size_t n, enum cua_status status)
{
	cua__group_record(record, CUA__GROUP_SUM, status);
	record->arguments[0] = (int32_t)type;
	record->arguments[1] = (g->transport.sum_u64 != NULL) | sums_context(g) << 1;
	record->arguments[2] = (int32_t)(uint32_t)n;
	record->arguments[3] = (int32_t)(uint32_t)((uint64_t)n >> 32);
}

static enum cua_status group_sum(struct cua_group *g, enum cua_type type, size_t n, void *const *x)
{
	const struct cua__group_ops *ops = CUA__OPS(g->contexts[0], group);
	const enum cua_status begun = ops->begin(g);
	size_t size = 0, bytes = 0;
	enum cua_status status, met;

	for (uint32_t i = 0; i < g->local; i++) {
		enum cua_status own = begun;

		cua__call_begin(&g->parts[i].call, g->contexts[i]);
		if (!own)
			own = describe(type, n, &size, &bytes);
		if (!own && g->has_transport)
			own = g->contexts[i]->runtime->may_wait(g->contexts[i]);
		if (!own && !x)
			own = CUA_ERROR_NULL;
		if (!own)
			own = prepare(g, i, x, n, size);
		write_record(g, &g->mine[i], type, n, own);
	}
	met = status = cua__group_meet(g, g->mine);
	if (!status && n)
		status = g->has_transport ? sum_remotely(g, type, n, size) : ops->sum(g, n, size);
	return cua__group_end(g, begun, met, status);
}

enum cua_status cua_group_sum(struct cua_group *group, enum cua_type type, size_t n, void *const *x)
{
	enum cua_status status;

	CUA__GROUP_CALL(group, status, group_sum(group, type, n, x));
	return status;
}
