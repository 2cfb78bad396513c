/* SPDX-License-Identifier: MIT */
/* Groups: creation, agreement, and the exchange of values and sums between ranks. */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "group/group_internal.h"
#include "kernels/tree.h"

/* ---- agreement ---- */

/* After an error of the transport, other ranks may wait for this rank, and no call can be made. */
static enum cua_status fail(struct cua_group *g, enum cua_status status)
{
	/* a positive number is no status */
	g->broken = status < 0 ? status : CUA_ERROR_SYSTEM;
	if (g->transport.abort)
		g->transport.abort(g->transport.self);
	return g->broken;
}

int cua__group_reads_context(const struct cua_group *g)
{
	return g->has_transport && g->transport.exchange_device &&
	       g->contexts[0]->runtime->kind != CUA_BACKEND_CPU;
}

/* The messages are host memory. */
static enum cua_status exchange(struct cua_group *g)
{
	enum cua_status status;

	if (g->broken)
		return g->broken;
	status = g->transport.exchange(g->transport.self, g->send, g->send_bytes, g->receive,
				       g->receive_bytes);
	return status ? fail(g, status) : CUA_OK;
}

/* The messages are memory of the context. */
static enum cua_status exchange_device(struct cua_group *g)
{
	enum cua_status status;

	if (g->broken)
		return g->broken;
	status = g->transport.exchange_device(g->transport.self, g->send, g->send_bytes, g->receive,
					      g->receive_bytes);
	return status ? fail(g, status) : CUA_OK;
}

/* Sends the same bytes to all ranks, and receives bytes[r] of each rank r, in order, at `to`. */
static void send_to_all(struct cua_group *g, const void *from, const size_t *bytes, char *to)
{
	for (uint32_t r = 0; r < g->size; r++) {
		g->send[r] = from;
		g->send_bytes[r] = bytes[g->first];
		g->receive[r] = to;
		g->receive_bytes[r] = bytes[r];
		to += bytes[r];
	}
}

/*
 * Rank r receives share r of the numbers of all ranks, adds it up, and sends the sums to all
 * ranks.
 */
static enum cua_status sum_by_exchange(struct cua_group *g, uint64_t *x, size_t n)
{
	uint64_t *received = g->words + CUA__GROUP_WORDS;
	enum cua_status status;
	size_t first, end, own;

	cua__share(n, g->first, g->size, &first, &end);
	own = end - first;
	for (uint32_t r = 0; r < g->size; r++) {
		size_t from, to;

		cua__share(n, r, g->size, &from, &to);
		g->send[r] = x + from;
		g->send_bytes[r] = (to - from) * sizeof(*x);
		g->receive[r] = received + r * own;
		g->receive_bytes[r] = own * sizeof(*x);
	}
	status = exchange(g);
	if (status)
		return status;
	memset(x + first, 0, own * sizeof(*x));
	for (uint32_t r = 0; r < g->size; r++)
		for (size_t i = 0; i < own; i++)
			x[first + i] += received[r * own + i];
	for (uint32_t r = 0; r < g->size; r++) {
		size_t from, to;

		cua__share(n, r, g->size, &from, &to);
		g->send[r] = x + first;
		g->send_bytes[r] = own * sizeof(*x);
		g->receive[r] = received + from;
		g->receive_bytes[r] = (to - from) * sizeof(*x);
	}
	status = exchange(g);
	if (!status)
		memcpy(x, received, n * sizeof(*x));
	return status;
}

enum cua_status cua__group_sum_words(struct cua_group *g, uint64_t *x, size_t n)
{
	enum cua_status status;

	if (g->broken)
		return g->broken;
	if (!g->transport.sum_u64)
		return sum_by_exchange(g, x, n);
	status = g->transport.sum_u64(g->transport.self, x, n);
	return status ? fail(g, status) : CUA_OK;
}

enum cua_status cua__group_sum_device(struct cua_group *g, enum cua_type type, void *x, size_t n)
{
	enum cua_status status;

	if (g->broken)
		return g->broken;
	status = g->transport.sum_device(g->transport.self, type, x, n);
	return status ? fail(g, status) : CUA_OK;
}

enum cua_status cua__group_agree(struct cua_group *g, enum cua_status mine)
{
	enum cua_status all = mine, status;

	if (!g->has_transport)
		return mine;
	if (g->broken)
		return g->broken;
	status = g->transport.agree(g->transport.self, mine, &all);
	if (!status && all > 0)
		status = CUA_ERROR_SYSTEM;
	return status ? fail(g, status) : all;
}

enum cua_status cua__group_meet(struct cua_group *g, const struct cua__group_record *mine)
{
	const struct cua__group_record *r = g->records;
	enum cua_status status = CUA_OK;

	if (g->has_transport) {
		for (uint32_t i = 0; i < g->size; i++) {
			g->send[i] = mine;
			g->receive[i] = &g->records[i];
			g->send_bytes[i] = g->receive_bytes[i] = sizeof(*mine);
		}
		status = exchange(g);
		if (status)
			return status;
	} else {
		memcpy(g->records, mine, g->size * sizeof(*mine));
	}
	for (uint32_t i = 0; i < g->size; i++) {
		status = cua__worse(status, (enum cua_status)r[i].status);
		if (!status && (r[i].call != r[0].call ||
				memcmp(r[i].arguments, r[0].arguments, sizeof(r[0].arguments))))
			status = CUA_ERROR_VALUE;
	}
	return status;
}

enum cua_status cua__group_end(struct cua_group *g, enum cua_status begun, enum cua_status met,
			       enum cua_status status)
{
	if (!begun)
		status = cua__worse(status, CUA__OPS(g->contexts[0], group)->end(g));
	status = cua__worse(status, g->broken);
	for (uint32_t i = g->local; i--;)
		status = cua__worse(status, cua__call_end(&g->parts[i].call, status));
	return g->broken || met ? status : cua__group_agree(g, status);
}

/* ---- values ---- */

/* The most bytes that a rank passes to cua__group_gather: the values of the tree's chunks. */
#define MOST_BYTES ((size_t)CUA__TREE_CHUNKS * CUA__TREE_VALUE_BYTES)

/* The most bytes of all ranks. */
static size_t most_total(uint32_t size)
{
	const size_t exact = size * sizeof(struct cua_exact);

	return exact > MOST_BYTES ? exact : MOST_BYTES;
}

/*
 * By staging memory if the context's memory is not the host's, and the transport does not read it.
 * Ranks of either kind make the same calls of the transport.
 */
static enum cua_status gather_remotely(struct cua_group *g, const size_t *bytes,
				       enum cua_status status)
{
	struct cua_context *ctx = g->contexts[0];
	const struct cua__group_part *part = &g->parts[0];
	const int is_staged = g->staging && !cua__group_reads_context(g);
	const size_t mine = bytes[g->first];
	size_t total = 0;

	for (uint32_t r = 0; r < g->size; r++)
		total += bytes[r];
	if (is_staged && mine && !status)
		CUA__GROUP_IN(ctx, status, ctx->runtime->copy(ctx, g->staging, part->mine, mine));
	if (is_staged && !status)
		CUA__GROUP_IN(ctx, status, ctx->runtime->synchronize(ctx));
	status = cua__group_agree(g, status);
	if (status)
		return status;
	if (!is_staged) {
		send_to_all(g, part->mine, bytes, part->all);
		return cua__group_reads_context(g) ? exchange_device(g) : exchange(g);
	}
	send_to_all(g, g->staging, bytes, g->staging + MOST_BYTES);
	status = exchange(g);
	if (!status && total)
		CUA__GROUP_IN(ctx, status,
			      ctx->runtime->copy(ctx, part->all, g->staging + MOST_BYTES, total));
	return status;
}

enum cua_status cua__group_gather(struct cua_group *g, const size_t *bytes, enum cua_status status)
{
	if (g->has_transport)
		return gather_remotely(g, bytes, status);
	return status ? status : CUA__OPS(g->contexts[0], group)->gather(g, bytes);
}

/* Sets the arguments of the transport's exchange to one side of the traffic's staging memory. */
static enum cua_status exchange_staged(struct cua_group *g, const struct cua__group_traffic *t)
{
	struct cua_context *ctx = g->contexts[0];
	enum cua_status own = CUA_OK;
	char *at = t->staging;

	for (uint32_t r = 0; r < g->size; r++) {
		g->send[r] = at;
		if (t->send_bytes[r] && !own)
			CUA__GROUP_IN(ctx, own,
				      ctx->runtime->copy(ctx, at, t->send[r], t->send_bytes[r]));
		at += t->send_bytes[r];
	}
	for (uint32_t r = 0; r < g->size; r++) {
		g->receive[r] = at;
		at += t->receive_bytes[r];
	}
	/* other ranks wait for the messages, also after an error of this rank */
	if (!own)
		CUA__GROUP_IN(ctx, own, ctx->runtime->synchronize(ctx));
	exchange(g);
	for (uint32_t r = 0; r < g->size && !g->broken; r++)
		if (t->receive_bytes[r] && !own)
			CUA__GROUP_IN(ctx, own,
				      ctx->runtime->copy(ctx, t->receive[r], g->receive[r],
							 t->receive_bytes[r]));
	/* the next exchange writes to the staging memory */
	if (!own && !g->broken)
		CUA__GROUP_IN(ctx, own, ctx->runtime->synchronize(ctx));
	return g->broken ? g->broken : own;
}

enum cua_status cua__group_exchange(struct cua_group *g, const struct cua__group_traffic *t)
{
	if (!g->has_transport)
		return CUA__OPS(g->contexts[0], group)->exchange(g, t);
	memcpy(g->send_bytes, t->send_bytes, g->size * sizeof(*g->send_bytes));
	memcpy(g->receive_bytes, t->receive_bytes, g->size * sizeof(*g->receive_bytes));
	if (t->of_context && !cua__group_reads_context(g))
		return exchange_staged(g, t);
	for (uint32_t r = 0; r < g->size; r++) {
		g->send[r] = t->send[r];
		g->receive[r] = t->receive[r];
	}
	return t->of_context ? exchange_device(g) : exchange(g);
}

void cua__group_place(struct cua_group *g, const size_t *bytes)
{
	size_t before = 0;

	for (uint32_t i = 0; i < g->local; i++) {
		struct cua__group_part *part = &g->parts[i];

		part->all = part->slots + g->slot * g->slot_bytes;
		part->mine = g->has_transport ? part->slots + g->slot_bytes : part->all + before;
		before += bytes[i];
	}
}

/* ---- creation ---- */

/* Where a call has finished when it returns, a single slot is enough. */
static size_t slots_bytes(const struct cua_group *g)
{
	if (g->has_transport)
		return g->slot_bytes + MOST_BYTES;
	return g->slot_bytes *
	       (g->contexts[0]->runtime->kind == CUA_BACKEND_CPU ? 1 : CUA__GROUP_SLOTS);
}

static enum cua_status allocate_slots(struct cua_group *g)
{
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < g->local && !status; i++) {
		struct cua_context *ctx = g->contexts[i];
		void *slots = NULL;

		CUA__GROUP_IN(ctx, status, ctx->runtime->allocate(ctx, slots_bytes(g), &slots));
		g->parts[i].slots = slots;
	}
	return status;
}

/* Host memory that a transport reads and writes. */
static enum cua_status allocate_host(struct cua_group *g)
{
	const size_t words = (2 * CUA__GROUP_WORDS + g->size) * sizeof(*g->words);
	struct cua_context *ctx = g->contexts[0];
	enum cua_status status = CUA_OK;

	if (!g->has_transport)
		return CUA_OK;
	if (ctx->runtime->kind == CUA_BACKEND_CPU) {
		g->words = malloc(words);
		return g->words ? CUA_OK : CUA_ERROR_NO_MEMORY;
	}
	CUA__GROUP_IN(ctx, status, ctx->runtime->allocate_mapped(ctx, words, (void **)&g->words));
	if (!status)
		CUA__GROUP_IN(ctx, status,
			      ctx->runtime->allocate_mapped(ctx, MOST_BYTES + g->slot_bytes,
							    (void **)&g->staging));
	return status;
}

void cua__group_keep(struct cua__kept *node)
{
	static struct cua__kept *_Atomic list;

	node->next = atomic_load(&list);
	while (!atomic_compare_exchange_weak(&list, &node->next, node))
		;
}

static void destroy(struct cua_group *g)
{
	struct cua_context *ctx = g->contexts ? g->contexts[0] : NULL;

	for (uint32_t i = 0; i < g->local && g->parts; i++)
		if (g->parts[i].slots)
			CUA__GROUP_IN(g->contexts[i], g->broken,
				      g->contexts[i]->runtime->release(g->contexts[i],
								       g->parts[i].slots));
	if (g->staging)
		CUA__GROUP_IN(ctx, g->broken, ctx->runtime->release_mapped(ctx, g->staging));
	if (g->words && ctx->runtime->kind == CUA_BACKEND_CPU)
		free(g->words);
	else if (g->words)
		CUA__GROUP_IN(ctx, g->broken, ctx->runtime->release_mapped(ctx, g->words));
	free(g->contexts);
	free(g->events);
	free(g->parts);
	free(g->mine);
	free(g->records);
	free(g->bytes);
	free(g->send);
	free(g->receive);
	free(g->send_bytes);
	free(g->receive_bytes);
	free(g);
}

static enum cua_status create(uint32_t size, uint32_t first, uint32_t local,
			      struct cua_context *const *contexts,
			      const struct cua_transport *transport, struct cua_group **group)
{
	struct cua_group *g = calloc(1, sizeof(*g));
	struct cua_context *ctx = contexts[0];
	enum cua_status status = CUA_OK;

	if (!g)
		return CUA_ERROR_NO_MEMORY;
	g->size = size;
	g->first = first;
	g->local = local;
	g->slot_bytes = most_total(size);
	g->has_transport = transport != NULL;
	if (transport)
		g->transport = *transport;
	g->contexts = calloc(local, sizeof(void *));
	for (uint32_t i = 0; i < local && g->contexts; i++)
		g->contexts[i] = contexts[i];
	g->events = calloc(local, sizeof(*g->events));
	g->parts = calloc(local, sizeof(*g->parts));
	g->mine = calloc(local, sizeof(*g->mine));
	g->records = calloc(size, sizeof(*g->records));
	g->bytes = calloc(size, sizeof(*g->bytes));
	g->send = calloc(size, sizeof(*g->send));
	g->receive = calloc(size, sizeof(*g->receive));
	g->send_bytes = calloc(size, sizeof(*g->send_bytes));
	g->receive_bytes = calloc(size, sizeof(*g->receive_bytes));
	if (!g->contexts || !g->events || !g->parts || !g->mine || !g->records || !g->bytes ||
	    !g->send || !g->receive || !g->send_bytes || !g->receive_bytes)
		status = CUA_ERROR_NO_MEMORY;
	if (!status)
		status = allocate_host(g);
	if (!status)
		status = allocate_slots(g);
	if (!status)
		status = CUA__OPS(ctx, group)->open(g);
	if (!status) {
		*group = g;
		return CUA_OK;
	}
	if (g->contexts && g->events)
		CUA__OPS(ctx, group)->close(g);
	destroy(g);
	return status;
}

static enum cua_status create_devices(uint32_t n, struct cua_context *const *contexts,
				      struct cua_group **group)
{
	if (!contexts || !group)
		return CUA_ERROR_NULL;
	if (!n || n > CUA_GROUP_RANKS_MAX)
		return CUA_ERROR_VALUE;
	for (uint32_t i = 0; i < n; i++)
		if (!contexts[i])
			return CUA_ERROR_NULL;
	for (uint32_t i = 0; i < n; i++) {
		if (contexts[i]->runtime->kind != contexts[0]->runtime->kind)
			return CUA_ERROR_CONTEXT;
		for (uint32_t j = 0; j < i; j++)
			if (contexts[i] == contexts[j])
				return CUA_ERROR_VALUE;
	}
	return create(n, 0, n, contexts, NULL, group);
}

enum cua_status cua_group_create_devices(uint32_t n, struct cua_context *const *contexts,
					 struct cua_group **group)
{
	const int cancel = cua__cancel_disable();
	const enum cua_status status = create_devices(n, contexts, group);

	cua__cancel_restore(cancel);
	return status;
}

enum cua_status cua_group_create(struct cua_context *ctx, const struct cua_transport *transport,
				 struct cua_group **group)
{
	struct cua_transport own;
	enum cua_status status;
	int cancel;

	if (!ctx || !transport || !group)
		return CUA_ERROR_NULL;
	if (cua__options(transport, &own, sizeof(own)))
		return CUA_ERROR_VALUE;
	if (!own.exchange || !own.agree)
		return CUA_ERROR_NULL;
	if (!own.size || own.size > CUA_GROUP_RANKS_MAX || own.rank >= own.size)
		return CUA_ERROR_VALUE;
	cancel = cua__cancel_disable();
	status = create(own.size, own.rank, 1, &ctx, &own, group);
	cua__cancel_restore(cancel);
	return status;
}

void cua_group_destroy(struct cua_group *group)
{
	int cancel;

	if (!group)
		return;
	cancel = cua__cancel_disable();
	CUA__OPS(group->contexts[0], group)->close(group);
	if (group->transport.close)
		group->transport.close(group->transport.self);
	if (group->has_transport && group->broken)
		cua__group_keep(&group->kept);
	else
		destroy(group);
	cua__cancel_restore(cancel);
}

enum cua_status cua_group_set_timeout(struct cua_group *group, double seconds)
{
	if (!group)
		return CUA_ERROR_NULL;
	if (!(seconds >= 0) || isinf(seconds))
		return CUA_ERROR_VALUE;
	if (!group->has_transport)
		return CUA_OK;
	if (!group->transport.set_timeout)
		return CUA_ERROR_UNSUPPORTED;
	group->transport.set_timeout(group->transport.self, seconds);
	return CUA_OK;
}

enum cua_status cua_group_status(const struct cua_group *group)
{
	return group ? group->broken : CUA_ERROR_NULL;
}

uint32_t cua_group_size(const struct cua_group *group)
{
	return group ? group->size : 0;
}

uint32_t cua_group_local(const struct cua_group *group)
{
	return group ? group->local : 0;
}

uint32_t cua_group_rank(const struct cua_group *group)
{
	return group ? group->first : 0;
}
