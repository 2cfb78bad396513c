/* SPDX-License-Identifier: MIT */
/*
 * The workspaces of the calls of a sharded map, and updates in rounds. Each rank combines equal keys before
 * the rounds, so a key travels once. Direct updates combine their pairs too (sharded_direct.c). Both combine a
 * part of the pairs at a time.
 *
 * Whether ranks try to combine depends on the call and on the most pairs of a rank alone. So all ranks make the
 * second exchange of records. These have the new numbers of pairs.
 */
#include "config.h"

#include "group/sharded_internal.h"

/* Fewer pairs are not worth another exchange of records. */
enum { LEAST_PAIRS = 1 << 15 };

int cua__sharded_take(struct cua_group *g, struct cua__workspaces *w, size_t bytes)
{
	enum cua_status status = CUA_OK;

	for (w->begun = 0; w->begun < g->local && !status; w->begun++) {
		struct cua__call *call = &w->calls[w->begun];

		cua__call_begin(call, g->contexts[w->begun]);
		status = cua__call_scratch(call, bytes, (void **)&w->memory[w->begun]);
	}
	return !status;
}

enum cua_status cua__sharded_give_back(struct cua__workspaces *w, enum cua_status status)
{
	for (; w->begun; w->begun--)
		status = cua__worse(status, cua__call_end(&w->calls[w->begun - 1], status));
	return status;
}

/* Sets the arrays of a rank to its n combined pairs. */
static void use_combined(struct cua__shard_of_rank *s, const struct cua__shard_combine *c,
			 uint64_t n)
{
	if (n > s->n)
		return;
	s->n = (size_t)n;
	s->keys = c->keys_out;
	s->values = c->values_out;
}

static struct cua__shard_combine call_of(const struct cua_sharded_map *m, uint32_t i, uint64_t most)
{
	const struct cua__shard_of_rank *s = &m->shards[i];

	return (struct cua__shard_combine){
		.ranks = m->group->size,
		.view = &s->table->view,
		.keys = s->keys,
		.values = s->values,
		.n = s->n,
		.most = most,
	};
}

static enum cua_status combine(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
			       uint64_t most, const struct cua__workspaces *w)
{
	struct cua__shard_combine calls[CUA__SHARD_DIRECT_RANKS];
	uint64_t n[CUA__SHARD_DIRECT_RANKS];
	struct cua_group *g = m->group;
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < g->local && !status; i++) {
		struct cua_context *ctx = g->contexts[i];

		calls[i] = call_of(m, i, most);
		calls[i].op = b->op;
		calls[i].memory = w->memory[i];
		CUA__GROUP_IN(ctx, status, CUA__OPS(ctx, shard)->combine(ctx, &calls[i]));
		if (!status)
			CUA__GROUP_IN(ctx, status,
				      ctx->runtime->copy(ctx, &n[i], calls[i].n_out, sizeof(n[i])));
	}
	for (uint32_t i = 0; i < g->local; i++) {
		struct cua_context *ctx = g->contexts[i];
		enum cua_status own;

		CUA__GROUP_IN(ctx, own, ctx->runtime->synchronize(ctx));
		status = status ? status : own;
	}
	for (uint32_t i = 0; i < g->local && !status; i++)
		use_combined(&m->shards[i], &calls[i], n[i]);
	return status;
}

/* The workspace of each local rank, or 0 if combining does not pay on a rank. */
static size_t bytes_for(const struct cua_sharded_map *m, uint64_t most)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < m->group->local; i++) {
		const struct cua__shard_combine c = call_of(m, i, most);
		struct cua_context *ctx = m->group->contexts[i];
		size_t own;

		CUA__GROUP_IN(ctx, own, CUA__OPS(ctx, shard)->combine_bytes(ctx, &c));
		if (!own)
			return 0;
		bytes = own > bytes ? own : bytes;
	}
	return bytes;
}

size_t cua__sharded_combine_bytes(const struct cua_sharded_map *m, uint64_t most)
{
	const struct cua_group *g = m->group;

	if (most > CUA__HASHMAP_MOST_COMBINED)
		most = CUA__HASHMAP_MOST_COMBINED;
	return m->value_size && most >= LEAST_PAIRS && g->local <= CUA__SHARD_DIRECT_RANKS
		       ? bytes_for(m, most)
		       : 0;
}

/* The update by the pairs that the shards have, in rounds. */
static enum cua_status update_part(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				   uint64_t most, void *arg)
{
	struct cua__workspaces w = {.begun = 0};
	struct cua_group *g = m->group;
	const size_t bytes = cua__sharded_combine_bytes(m, most);
	enum cua_status status = CUA_OK;

	(void)arg;
	if (bytes && cua__sharded_take(g, &w, bytes))
		status = combine(m, b, most, &w);
	for (uint32_t i = 0; i < g->local; i++) {
		g->mine[i].status = (int32_t)status;
		g->mine[i].n = m->shards[i].n;
	}
	status = cua__group_meet(g, g->mine);
	if (!status)
		status = cua__sharded_rounds(m, b, cua__sharded_most(m), CUA_OK);
	return cua__sharded_give_back(&w, status);
}

enum cua_status cua__sharded_update(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				    uint64_t most)
{
	return cua__sharded_in_parts(m, b, most, update_part, NULL);
}

int cua__sharded_combines(const struct cua__sharded_bulk *b, uint64_t most)
{
	return b->call == CUA__SHARDED_UPDATE && !b->results && most >= LEAST_PAIRS;
}

/* ---- parts ---- */

uint64_t cua__sharded_part(uint64_t most)
{
	const uint64_t parts =
		most / CUA__HASHMAP_MOST_COMBINED + (most % CUA__HASHMAP_MOST_COMBINED != 0);

	return parts ? most / parts + (most % parts != 0) : 0;
}

enum cua_status cua__sharded_in_parts(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				      uint64_t most, cua__sharded_part_fn *fn, void *arg)
{
	const uint64_t part = cua__sharded_part(most);
	enum cua_status status = CUA_OK;

	/* also after an error, because other ranks may have none yet */
	for (uint64_t first = 0; first < most && !m->group->broken; first += part) {
		for (uint32_t i = 0; i < m->group->local; i++) {
			struct cua__shard_of_rank *s = &m->shards[i];
			const uint64_t rest = s->all.n > first ? s->all.n - first : 0;

			s->n = (size_t)(rest < part ? rest : part);
			s->done = 0;
			if (!s->n)
				continue;
			s->keys = s->all.keys + first * m->key_size;
			s->values = s->all.values + first * m->value_size;
		}
		status = cua__worse(status, fn(m, b, part, arg));
	}
	return status;
}
