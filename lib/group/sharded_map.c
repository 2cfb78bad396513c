/* SPDX-License-Identifier: MIT */
/*
 * Maps of keys that are divided among the ranks of a group. A call that cannot be direct
 * (sharded_direct.c) goes in rounds, each over a piece of the keys of each rank:
 *
 * 1. Each rank counts the keys of each owner and writes its pairs in the order of their owners.
 * 2. The ranks exchange these counts, and the most exchanges that any rank needs.
 * 3. In each exchange a rank sends at most `slice` pairs to each other rank. The owner's table processes
 *    the pairs that it receives. Answers return the same way.
 * 4. Each rank writes the answers in the order of its keys.
 *
 * All ranks make the same exchanges: the records of the call give the number of rounds, and step 2 the
 * number of exchanges. A rank with an error takes part until all ranks agree, before the tables take the
 * pairs of an exchange, and at the end.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "group/sharded_internal.h"
#include "kernels/owner.h"

#define OWNER_SALT 0x5851f42d4c957f2du
/* Pairs of a piece. */
enum { LEAST_PIECE = 1 << 16, MOST_PIECE = 1 << 22 };

/* ---- memory ---- */

static size_t lay_out(const struct cua_sharded_map *m, struct cua__shard_of_rank *s)
{
	const size_t ranks = m->group->size, room = m->slice * ranks;
	size_t used = 0;

	cua__lay(s->memory, &used, (size_t)m->piece * m->key_size, &s->keys_part);
	cua__lay(s->memory, &used, (size_t)m->piece * m->value_size, &s->values_part);
	cua__lay(s->memory, &used, (size_t)m->piece * sizeof(uint32_t), &s->index);
	cua__lay(s->memory, &used, m->piece, &s->results_part);
	cua__lay(s->memory, &used, room * m->key_size, &s->keys_in);
	cua__lay(s->memory, &used, room * m->value_size, &s->values_in);
	cua__lay(s->memory, &used, room, &s->results_in);
	cua__lay(s->memory, &used, ranks * sizeof(uint32_t), &s->counts);
	cua__lay(s->memory, &used, ranks * sizeof(uint32_t), &s->cursors);
	return used;
}

static enum cua_status allocate(struct cua_sharded_map *m)
{
	struct cua_group *g = m->group;
	const size_t size = g->size, pairs = size * g->local;
	const size_t widest = m->key_size > m->value_size ? m->key_size : m->value_size;
	struct cua__group_traffic *t = &m->traffic;
	enum cua_status status = CUA_OK;

	t->send = calloc(pairs, sizeof(*t->send));
	t->receive = calloc(pairs, sizeof(*t->receive));
	t->send_bytes = calloc(pairs, sizeof(*t->send_bytes));
	t->receive_bytes = calloc(pairs, sizeof(*t->receive_bytes));
	m->told = calloc(size, sizeof(*m->told));
	m->tell = calloc(size, sizeof(*m->tell));
	if (!t->send || !t->receive || !t->send_bytes || !t->receive_bytes || !m->told || !m->tell)
		return CUA_ERROR_NO_MEMORY;
	for (uint32_t i = 0; i < g->local && !status; i++) {
		struct cua__shard_of_rank *s = &m->shards[i];
		struct cua_context *ctx = g->contexts[i];

		s->to = calloc(size, sizeof(*s->to));
		s->first = calloc(size, sizeof(*s->first));
		s->from = calloc(size, sizeof(*s->from));
		if (!s->to || !s->first || !s->from)
			return CUA_ERROR_NO_MEMORY;
		CUA__GROUP_IN(ctx, status,
			      ctx->runtime->allocate(ctx, lay_out(m, s), (void **)&s->memory));
		lay_out(m, s);
	}
	t->of_context = g->has_transport && g->contexts[0]->runtime->kind != CUA_BACKEND_CPU;
	if (!status && t->of_context && !cua__group_reads_context(g))
		CUA__GROUP_IN(g->contexts[0], status,
			      g->contexts[0]->runtime->allocate_mapped(
				      g->contexts[0], ((size_t)m->piece + m->slice * size) * widest,
				      (void **)&t->staging));
	return status ? status : cua__sharded_direct_open(m);
}

/*
 * Frees the tables of a group with a transport that failed, if the transport has left the stream. Messages may
 * still be under way, so other memory stays.
 */
static void release_broken(struct cua_sharded_map *m)
{
	struct cua_context *ctx = m->group->contexts[0];
	enum cua_status status;
	int done = 0;

	CUA__GROUP_IN(ctx, status, ctx->runtime->query(ctx, &done));
	if (!status && done && m->shards) {
		cua_hashmap_destroy(m->shards[0].table);
		m->shards[0].table = NULL;
	}
	cua__group_keep(&m->kept);
}

/* Waits for the streams of all ranks first, because each may read the memory of others. */
static void release(struct cua_sharded_map *m)
{
	struct cua_group *g = m->group;
	enum cua_status status = CUA_OK;

	if (g->has_transport && g->broken) {
		release_broken(m);
		return;
	}
	for (uint32_t i = 0; i < g->local && m->shards; i++)
		CUA__GROUP_IN(g->contexts[i], status,
			      g->contexts[i]->runtime->synchronize(g->contexts[i]));
	cua__sharded_direct_close(m);
	for (uint32_t i = 0; i < g->local && m->shards; i++)
		cua_hashmap_destroy(m->shards[i].table);
	for (uint32_t i = 0; i < g->local && m->shards; i++) {
		struct cua__shard_of_rank *s = &m->shards[i];

		CUA__GROUP_IN(g->contexts[i], status,
			      g->contexts[i]->runtime->release(g->contexts[i], s->memory));
		free(s->to);
		free(s->first);
		free(s->from);
	}
	if (m->traffic.staging)
		CUA__GROUP_IN(g->contexts[0], status,
			      g->contexts[0]->runtime->release_mapped(g->contexts[0],
								      m->traffic.staging));
	if (m->late)
		CUA__GROUP_IN(g->contexts[0], status,
			      g->contexts[0]->runtime->release_mapped(g->contexts[0], m->late));
	(void)status;
	free(m->traffic.send);
	free(m->traffic.receive);
	free(m->traffic.send_bytes);
	free(m->traffic.receive_bytes);
	free(m->told);
	free(m->tell);
	free(m->shards);
	free(m);
}

/* ---- creation ---- */

/* A rank's share of the keys, and the deviation of random shares. */
static uint64_t shard_capacity(uint64_t capacity, uint32_t ranks)
{
	const uint64_t share = capacity / ranks + (capacity % ranks != 0);
	const uint64_t more = (uint64_t)(8 * sqrt((double)share)) + 8;

	return ranks == 1 || share > UINT64_MAX - more ? share : share + more;
}

static void choose_piece(struct cua_sharded_map *m, uint64_t capacity)
{
	uint32_t share;

	m->piece = capacity / 4 > MOST_PIECE    ? MOST_PIECE
		   : capacity / 4 < LEAST_PIECE ? LEAST_PIECE
						: (uint32_t)(capacity / 4);
	/* random keys need a single exchange: a share, and 8 standard deviations */
	share = m->piece / m->group->size;
	m->slice = share + (uint32_t)(8 * sqrt((double)share)) + 16;
}

static enum cua_status create_shards(struct cua_sharded_map *m,
				     const struct cua_hashmap_options *options, enum cua_type key,
				     enum cua_type value, uint64_t capacity)
{
	const uint64_t share = shard_capacity(capacity, m->group->size);
	struct cua_hashmap_options seeded = *options;
	enum cua_status status = CUA_OK;

	/* direct calls need equal seeds */
	if (!seeded.seed && (!seeded.seed_high || seeded.hash != CUA_HASHMAP_HASH_KEYED)) {
		const struct cua_u128 secret = cua__random_seed();

		seeded.seed = secret.lo;
		seeded.seed_high = secret.hi;
	}

	m->shards = calloc(m->group->local, sizeof(*m->shards));
	if (!m->shards)
		return CUA_ERROR_NO_MEMORY;
	for (uint32_t i = 0; i < m->group->local && !status; i++)
		status = cua_hashmap_create(m->group->contexts[i], &seeded, key, value, share,
					    &m->shards[i].table);
	if (status)
		return status;
	m->key_size = m->shards[0].table->view.key_size;
	m->value_size = m->shards[0].table->view.value_size;
	m->no_erase = options->no_erase;
	choose_piece(m, share);
	return allocate(m);
}

/* Options that have to be equal on all ranks. */
static int32_t fold(const struct cua_hashmap_options *o, uint64_t capacity)
{
	uint64_t h = cua_hash_u64(capacity, 1);

	if (o)
		h = cua_hash_bytes((const char *)o + sizeof(o->struct_size),
				   sizeof(*o) - sizeof(o->struct_size), h);
	return (int32_t)(uint32_t)h;
}

static enum cua_status create(struct cua_group *g, const struct cua_hashmap_options *options,
			      enum cua_type key, enum cua_type value, uint64_t capacity,
			      struct cua_sharded_map **map)
{
	struct cua_sharded_map *m = calloc(1, sizeof(*m));
	struct cua_hashmap_options own;
	enum cua_status status = m ? CUA_OK : CUA_ERROR_NO_MEMORY;

	if (!status && !map)
		status = CUA_ERROR_NULL;
	if (!status && cua__options(options, &own, sizeof(own)))
		status = CUA_ERROR_VALUE;
	if (!status && !capacity)
		status = CUA_ERROR_VALUE;
	if (!status && own.own_hash)
		status = CUA_ERROR_UNSUPPORTED;
	if (m)
		m->group = g;
	if (!status)
		status = create_shards(m, &own, key, value, capacity);
	for (uint32_t i = 0; i < g->local; i++) {
		struct cua__group_record *record = &g->mine[i];

		cua__group_record(record, CUA__GROUP_CREATE_MAP, status);
		record->arguments[0] = (int32_t)key;
		record->arguments[1] = (int32_t)value;
		/* an error about options leaves `own` undefined */
		record->arguments[2] = status ? 0 : fold(options ? &own : NULL, capacity);
		record->n = cua__random_seed().lo;
	}
	status = cua__group_meet(g, g->mine);
	if (!status) {
		m->seed = own.seed ? own.seed ^ cua_hash_u64(own.seed_high, 1) : g->records[0].n;
		/*
		 * Not the seed of a table, also if CUATOMIC_HASH_SEED names a seed for all of them: the
		 * keys of a shard would then have few home buckets.
		 */
		m->seed = cua_hash_u64(m->seed, OWNER_SALT);
		m->number = ++g->maps;
		m->capacity = capacity;
		*map = m;
	} else if (m) {
		release(m);
	}
	return status;
}

enum cua_status cua_sharded_map_create(struct cua_group *group,
				       const struct cua_hashmap_options *options,
				       enum cua_type key_type, enum cua_type value_type,
				       uint64_t capacity, struct cua_sharded_map **map)
{
	enum cua_status status;

	CUA__GROUP_CALL(group, status, create(group, options, key_type, value_type, capacity, map));
	return status;
}

void cua_sharded_map_destroy(struct cua_sharded_map *map)
{
	int cancel;

	if (!map)
		return;
	cancel = cua__cancel_disable();
	release(map);
	cua__cancel_restore(cancel);
}

struct cua_hashmap *cua_sharded_map_shard(const struct cua_sharded_map *map, uint32_t i)
{
	return map && i < map->group->local ? map->shards[i].table : NULL;
}

enum cua_status cua_sharded_map_workspace(const struct cua_sharded_map *map, size_t n,
					  size_t *bytes)
{
	enum cua_status status;
	size_t pairs, table, more;

	if (!map || !bytes)
		return CUA_ERROR_NULL;
	if (n > CUA__MAX_BYTES / sizeof(struct cua_u128))
		return CUA_ERROR_SIZE;
	/* of a group with a single rank, the table gets all pairs at once */
	pairs = map->group->size == 1 ? n : (size_t)map->slice * map->group->size;
	status = cua_hashmap_build_workspace(map->shards[0].table, pairs, &table);
	if (status)
		return status;
	more = cua__sharded_combine_bytes(map, n);
	*bytes = cua__sharded_direct_bytes(map, n);
	*bytes = (more > *bytes ? more : *bytes) + cua__scratch_size(table);
	return CUA_OK;
}

enum cua_status cua_sharded_map_owner(const struct cua_sharded_map *map, const void *key,
				      uint32_t *rank)
{
	struct cua_u128 aligned = {0, 0};

	if (!map || !key || !rank)
		return CUA_ERROR_NULL;
	memcpy(&aligned, key, map->key_size);
	*rank = cua__owner(aligned, map->key_size, map->seed, map->group->size);
	return CUA_OK;
}

/* ---- a round ---- */

static int takes_values(const struct cua_sharded_map *m, enum cua__sharded_call call)
{
	return m->value_size && call <= CUA__SHARDED_UPDATE;
}

/* Counts the piece of this round, and writes its pairs in the order of their owners. */
static enum cua_status count_piece(struct cua_sharded_map *m, uint32_t i,
				   const struct cua__sharded_bulk *b)
{
	struct cua_context *ctx = m->group->contexts[i];
	struct cua__shard_of_rank *s = &m->shards[i];
	const char *values = takes_values(m, b->call) ? s->values : NULL;
	enum cua_status status;

	s->job = (struct cua__shard){
		.seed = m->seed,
		.ranks = m->group->size,
		.key_size = m->key_size,
		.value_size = m->value_size,
		.n = s->piece,
		.keys = s->keys + s->done * m->key_size,
		.values = values ? values + s->done * m->value_size : NULL,
		.keys_out = s->keys_part,
		.values_out = values ? s->values_part : NULL,
		.index = cua__sharded_is_answered(b) ? s->index : NULL,
		.counts = s->counts,
		.cursors = s->cursors,
	};
	CUA__GROUP_IN(
		ctx, status,
		ctx->runtime->set_bytes(ctx, s->counts, 0, m->group->size * sizeof(uint32_t)));
	if (!status)
		CUA__GROUP_IN(ctx, status, CUA__OPS(ctx, shard)->count(ctx, &s->job));
	return status;
}

/* Reads the counts, after all ranks have begun to count, and places the pairs. */
static enum cua_status place_piece(struct cua_sharded_map *m, uint32_t i)
{
	struct cua_context *ctx = m->group->contexts[i];
	struct cua__shard_of_rank *s = &m->shards[i];
	const size_t bytes = m->group->size * sizeof(uint32_t);
	enum cua_status status;
	uint32_t at = 0;

	CUA__GROUP_IN(ctx, status, ctx->runtime->copy(ctx, s->to, s->counts, bytes));
	if (!status)
		CUA__GROUP_IN(ctx, status, ctx->runtime->synchronize(ctx));
	for (uint32_t r = 0; r < m->group->size && !status; r++) {
		s->first[r] = at;
		at += s->to[r];
	}
	if (!status)
		CUA__GROUP_IN(ctx, status, ctx->runtime->copy(ctx, s->cursors, s->first, bytes));
	if (!status)
		CUA__GROUP_IN(ctx, status, CUA__OPS(ctx, shard)->place(ctx, &s->job));
	return status;
}

/* Sets the numbers of pairs that come from each rank, and *exchanges to the most of any rank. */
static enum cua_status exchange_counts(struct cua_sharded_map *m, uint32_t *exchanges)
{
	struct cua_group *g = m->group;
	struct cua__group_traffic *t = &m->traffic;
	struct cua__group_traffic counts = *t;
	enum cua_status status;
	uint32_t most = 0;

	for (uint32_t i = 0; i < g->local; i++)
		for (uint32_t r = 0; r < g->size; r++) {
			const uint32_t needed = m->shards[i].to[r] / m->slice +
						(m->shards[i].to[r] % m->slice != 0);

			most = needed > most ? needed : most;
			if (!g->has_transport)
				m->shards[r].from[i] = m->shards[i].to[r];
		}
	*exchanges = most;
	if (!g->has_transport)
		return CUA_OK;
	counts.of_context = 0;
	for (uint32_t r = 0; r < g->size; r++) {
		m->tell[r][0] = m->shards[0].to[r];
		m->tell[r][1] = most;
		t->send[r] = (const char *)m->tell[r];
		t->receive[r] = (char *)m->told[r];
		t->send_bytes[r] = t->receive_bytes[r] = sizeof(m->tell[r]);
	}
	status = cua__group_exchange(g, &counts);
	for (uint32_t r = 0; r < g->size && !status; r++) {
		m->shards[0].from[r] = m->told[r][0];
		*exchanges = m->told[r][1] > *exchanges ? m->told[r][1] : *exchanges;
	}
	return status;
}

/* The pairs of `all` in an exchange. */
static uint32_t slice_of(const struct cua_sharded_map *m, uint32_t all, uint32_t exchange)
{
	const uint64_t before = (uint64_t)exchange * m->slice;

	return before >= all ? 0 : all - before < m->slice ? (uint32_t)(all - before) : m->slice;
}

enum member { KEYS, VALUES, RESULTS };

/*
 * Exchanges a member of the pairs, from the pieces to the owners, or `back`: from the owners to the
 * pieces.
 */
static enum cua_status move(struct cua_sharded_map *m, uint32_t exchange, enum member member,
			    int back)
{
	const size_t size = member == KEYS ? m->key_size : member == VALUES ? m->value_size : 1;
	struct cua_group *g = m->group;
	struct cua__group_traffic *t = &m->traffic;

	for (uint32_t i = 0; i < g->local; i++) {
		struct cua__shard_of_rank *s = &m->shards[i];
		char *parts = member == KEYS     ? s->keys_part
			      : member == VALUES ? s->values_part
						 : s->results_part;
		char *ins = member == KEYS     ? s->keys_in
			    : member == VALUES ? s->values_in
					       : s->results_in;
		size_t received = 0;

		for (uint32_t r = 0; r < g->size; r++) {
			const size_t k = (size_t)i * g->size + r;
			const uint32_t sent = slice_of(m, s->to[r], exchange);
			const uint32_t came = slice_of(m, s->from[r], exchange);
			char *mine = parts + (s->first[r] + (size_t)exchange * m->slice) * size;
			char *theirs = ins + received * size;

			t->send[k] = back ? theirs : mine;
			t->receive[k] = back ? mine : theirs;
			t->send_bytes[k] = (back ? came : sent) * size;
			t->receive_bytes[k] = (back ? sent : came) * size;
			received += came;
		}
		s->received = received;
	}
	return cua__group_exchange(g, t);
}

enum cua_status cua__sharded_work(struct cua_hashmap *table, const struct cua__sharded_bulk *b,
				  size_t n, const void *keys, const void *values, void *values_out,
				  uint8_t *results)
{
	if (!n)
		return CUA_OK;
	switch (b->call) {
	case CUA__SHARDED_BUILD:
	case CUA__SHARDED_INSERT: return cua_hashmap_insert_n(table, n, keys, values, results);
	case CUA__SHARDED_ASSIGN: return cua_hashmap_assign_n(table, n, keys, values, results);
	case CUA__SHARDED_UPDATE:
		return cua_hashmap_update_n(table, b->op, n, keys, values, results);
	case CUA__SHARDED_FIND: return cua_hashmap_find_n(table, n, keys, values_out, results);
	case CUA__SHARDED_CONTAINS: return cua_hashmap_contains_n(table, n, keys, results);
	default: return cua_hashmap_erase_n(table, n, keys, results);
	}
}

/* The owner's work on the pairs that it has received. */
static enum cua_status work(struct cua__shard_of_rank *s, const struct cua__sharded_bulk *b)
{
	return cua__sharded_work(s->table, b, s->received, s->keys_in, s->values_in, s->values_in,
				 cua__sharded_is_answered(b) ? (uint8_t *)s->results_in : NULL);
}

/*
 * `own` is the status of this process so far. Before the tables take the pairs the processes agree. If a
 * process has an error, *stop is set in all, and the pairs are dropped. It is also set if the group breaks.
 */
static enum cua_status exchange_pairs(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				      uint32_t exchange, enum cua_status own, int *stop)
{
	struct cua_group *g = m->group;
	enum cua_status status = cua__worse(own, move(m, exchange, KEYS, 0));

	if (takes_values(m, b->call) && !g->broken)
		status = cua__worse(status, move(m, exchange, VALUES, 0));
	if (!g->broken)
		status = cua__group_agree(g, status);
	*stop = g->broken || status;
	if (*stop)
		return g->broken ? g->broken : status;
	for (uint32_t i = 0; i < g->local && !status; i++)
		status = work(&m->shards[i], b);
	if (cua__sharded_is_answered(b))
		status = cua__worse(status, move(m, exchange, RESULTS, 1));
	if (b->call == CUA__SHARDED_FIND && !g->broken)
		status = cua__worse(status, move(m, exchange, VALUES, 1));
	*stop = g->broken != CUA_OK;
	return g->broken ? g->broken : status;
}

static enum cua_status answer(struct cua_sharded_map *m, uint32_t i,
			      const struct cua__sharded_bulk *b)
{
	struct cua_context *ctx = m->group->contexts[i];
	struct cua__shard_of_rank *s = &m->shards[i];
	const struct cua__shard_answers a = {
		.n = s->piece,
		.value_size = m->value_size,
		.index = s->index,
		.results = (const uint8_t *)s->results_part,
		.values = s->values_part,
		.results_out = s->results ? s->results + s->done : NULL,
		.values_out = b->call == CUA__SHARDED_FIND ? s->values_out + s->done * m->value_size
							   : NULL,
	};
	enum cua_status status;

	CUA__GROUP_IN(ctx, status, CUA__OPS(ctx, shard)->answer(ctx, &a));
	return status;
}

/*
 * A process with the error `own` has no pairs of its own, but takes part. *stop is set in all processes if
 * the call ends here.
 */
static enum cua_status round_of(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				enum cua_status own, int *stop)
{
	struct cua_group *g = m->group;
	enum cua_status status = own;
	uint32_t exchanges = 0;

	for (uint32_t i = 0; i < g->local; i++) {
		struct cua__shard_of_rank *s = &m->shards[i];

		s->piece = s->n - s->done < m->piece ? (uint32_t)(s->n - s->done) : m->piece;
		if (!status)
			status = count_piece(m, i, b);
	}
	for (uint32_t i = 0; i < g->local && !status; i++)
		status = place_piece(m, i);
	*stop = status && !g->has_transport;
	if (*stop)
		return status;
	if (status)
		memset(m->shards[0].to, 0, g->size * sizeof(uint32_t));
	status = cua__worse(status, exchange_counts(m, &exchanges));
	*stop = g->broken != CUA_OK;
	for (uint32_t e = 0; e < exchanges && !*stop; e++)
		status = exchange_pairs(m, b, e, status, stop);
	for (uint32_t i = 0; i < g->local; i++) {
		if (cua__sharded_is_answered(b) && !status)
			status = answer(m, i, b);
		m->shards[i].done += m->shards[i].piece;
	}
	return status;
}

/* ---- bulk calls ---- */

static void *array_of(void *const *arrays, uint32_t i)
{
	return arrays ? arrays[i] : NULL;
}

/* Checks the arrays of a local rank. */
static enum cua_status check_arrays(struct cua_sharded_map *m, uint32_t i,
				    const struct cua__sharded_bulk *b)
{
	struct cua__shard_of_rank *s = &m->shards[i];
	struct cua_hashmap *table = s->table;
	struct cua__hashmap_array a[4] = {{0}};
	const size_t n = b->n[i];
	enum cua_status status;

	if (n && ((b->values && !b->values[i] && takes_values(m, b->call)) ||
		  (b->values_out && !b->values_out[i]) || (b->results && !b->results[i])))
		return CUA_ERROR_NULL;
	status = cua__hashmap_check(table, b->keys[i], n, m->key_size, &a[0]);
	if (!status && n && !b->keys[i])
		status = CUA_ERROR_NULL;
	if (!status && b->values && takes_values(m, b->call))
		status = cua__hashmap_check(table, b->values[i], n, m->value_size, &a[1]);
	if (!status && b->values_out)
		status = cua__hashmap_check(table, b->values_out[i], n, m->value_size, &a[2]);
	if (!status && b->results)
		status = cua__hashmap_check(table, b->results[i], n, 1, &a[3]);
	for (uint32_t j = 0; j < i && !status; j++)
		if (cua__overlap(a[2].user, a[2].bytes, array_of(b->values_out, j),
				 b->n[j] * m->value_size) ||
		    cua__overlap(a[3].user, a[3].bytes, b->results ? b->results[j] : NULL, b->n[j]))
			status = CUA_ERROR_OVERLAP;
	for (int out = 2; out < 4 && !status; out++) {
		if (cua__hashmap_in_map(table, &a[out]))
			status = CUA_ERROR_OVERLAP;
		for (int other = 0; other < out; other++)
			if (cua__hashmap_overlap(&a[out], &a[other]))
				status = CUA_ERROR_OVERLAP;
	}
	s->keys = a[0].backend;
	s->values = a[1].backend;
	s->values_out = (char *)(uintptr_t)a[2].backend;
	s->results = (uint8_t *)(uintptr_t)a[3].backend;
	s->n = n;
	s->done = 0;
	s->all.keys = s->keys;
	s->all.values = s->values;
	s->all.n = n;
	return status;
}

static enum cua_status check_call(const struct cua_sharded_map *m,
				  const struct cua__sharded_bulk *b)
{
	const int of_values = b->call == CUA__SHARDED_ASSIGN || b->call == CUA__SHARDED_UPDATE ||
			      b->call == CUA__SHARDED_FIND;

	if (b->call == CUA__SHARDED_UPDATE &&
	    ((int)b->op < CUA_UPDATE_ADD || b->op > CUA_UPDATE_XOR))
		return CUA_ERROR_VALUE;
	if (of_values && !m->value_size)
		return CUA_ERROR_TYPE;
	if (b->call == CUA__SHARDED_ERASE && m->no_erase)
		return CUA_ERROR_UNSUPPORTED;
	if (!b->n || !b->keys || (takes_values(m, b->call) && !b->values) ||
	    (b->call == CUA__SHARDED_FIND && !b->values_out) ||
	    (b->call == CUA__SHARDED_CONTAINS && !b->results))
		return CUA_ERROR_NULL;
	return CUA_OK;
}

static void clear_shards(struct cua_sharded_map *m, enum cua_status *status)
{
	for (uint32_t i = 0; i < m->group->local && !*status; i++)
		*status = cua_hashmap_clear(m->shards[i].table);
}

enum cua_status cua__sharded_rounds(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				    uint64_t most, enum cua_status status)
{
	const uint64_t rounds = most / m->piece + (most % m->piece != 0);
	int stop = 0;

	for (uint64_t k = 0; k < rounds && !stop; k++)
		status = round_of(m, b, status, &stop);
	return stop ? status : cua__group_agree(m->group, status);
}

static enum cua_status bulk(struct cua_sharded_map *m, const struct cua__sharded_bulk *b)
{
	struct cua_group *g = m->group;
	const enum cua_status checked = check_call(m, b);
	enum cua_status status;
	uint64_t most;
	int direct = 0;

	for (uint32_t i = 0; i < g->local; i++) {
		enum cua_status own = checked;

		if (!own)
			CUA__GROUP_IN(g->contexts[i], own,
				      g->contexts[i]->runtime->may_wait(g->contexts[i]));
		if (!own)
			own = check_arrays(m, i, b);
		cua__group_record(&g->mine[i], CUA__GROUP_SHARDED, own);
		g->mine[i].arguments[0] = (int32_t)b->call;
		g->mine[i].arguments[1] = (int32_t)b->op;
		g->mine[i].arguments[2] = b->results != NULL;
		g->mine[i].arguments[3] = (int32_t)m->number;
		g->mine[i].n = own ? 0 : b->n[i];
	}
	status = cua__group_meet(g, g->mine);
	if (status)
		return status;
	status = cua__sharded_direct(m, b, &direct);
	if (direct)
		return status;
	most = cua__sharded_most(m);
	if (cua__sharded_combines(b, most))
		return cua__sharded_update(m, b, most);
	if (b->call == CUA__SHARDED_BUILD)
		clear_shards(m, &status);
	return cua__sharded_rounds(m, b, most, status);
}

static enum cua_status run_bulk(struct cua_sharded_map *map, const struct cua__sharded_bulk *b)
{
	enum cua_status status;

	CUA__GROUP_CALL(map ? map->group : NULL, status, bulk(map, b));
	return status;
}

#define BULK(map, ...) run_bulk(map, &(struct cua__sharded_bulk){__VA_ARGS__})

enum cua_status cua_sharded_map_build_n(struct cua_sharded_map *map, const size_t *n,
					const void *const *keys, const void *const *values,
					uint8_t *const *results)
{
	return BULK(map, .call = CUA__SHARDED_BUILD, .n = n, .keys = keys, .values = values,
		    .results = results);
}

enum cua_status cua_sharded_map_insert_n(struct cua_sharded_map *map, const size_t *n,
					 const void *const *keys, const void *const *values,
					 uint8_t *const *results)
{
	return BULK(map, .call = CUA__SHARDED_INSERT, .n = n, .keys = keys, .values = values,
		    .results = results);
}

enum cua_status cua_sharded_map_assign_n(struct cua_sharded_map *map, const size_t *n,
					 const void *const *keys, const void *const *values,
					 uint8_t *const *results)
{
	return BULK(map, .call = CUA__SHARDED_ASSIGN, .n = n, .keys = keys, .values = values,
		    .results = results);
}

enum cua_status cua_sharded_map_update_n(struct cua_sharded_map *map, enum cua_update op,
					 const size_t *n, const void *const *keys,
					 const void *const *values, uint8_t *const *results)
{
	return BULK(map, .call = CUA__SHARDED_UPDATE, .op = op, .n = n, .keys = keys,
		    .values = values, .results = results);
}

enum cua_status cua_sharded_map_find_n(struct cua_sharded_map *map, const size_t *n,
				       const void *const *keys, void *const *values_out,
				       uint8_t *const *found)
{
	return BULK(map, .call = CUA__SHARDED_FIND, .n = n, .keys = keys, .values_out = values_out,
		    .results = found);
}

enum cua_status cua_sharded_map_contains_n(struct cua_sharded_map *map, const size_t *n,
					   const void *const *keys, uint8_t *const *found)
{
	return BULK(map, .call = CUA__SHARDED_CONTAINS, .n = n, .keys = keys, .results = found);
}

enum cua_status cua_sharded_map_erase_n(struct cua_sharded_map *map, const size_t *n,
					const void *const *keys, uint8_t *const *found)
{
	return BULK(map, .call = CUA__SHARDED_ERASE, .n = n, .keys = keys, .results = found);
}

/* ---- calls on the whole map ---- */

static enum cua_status for_shards(struct cua_sharded_map *m, enum cua__sharded_call call,
				  cua__shard_fn *fn, void *arg)
{
	struct cua_group *g = m->group;

	for (uint32_t i = 0; i < g->local; i++) {
		struct cua__group_record *record = &g->mine[i];
		uint64_t number = 0;
		const enum cua_status own = fn(m->shards[i].table, i, arg, &number);

		cua__group_record(record, CUA__GROUP_SHARDED, own);
		record->arguments[0] = (int32_t)call;
		record->arguments[3] = (int32_t)m->number;
		record->n = number;
	}
	return cua__group_meet(g, g->mine);
}

enum cua_status cua__for_shards(struct cua_sharded_map *m, enum cua__sharded_call call,
				cua__shard_fn *fn, void *arg)
{
	enum cua_status status;

	CUA__GROUP_CALL(m ? m->group : NULL, status, for_shards(m, call, fn, arg));
	return status;
}

static enum cua_status check_clear(struct cua_hashmap *table, uint32_t i, void *arg,
				   uint64_t *number)
{
	(void)i;
	(void)arg;
	(void)number;
	return table->ctx->runtime->may_wait(table->ctx);
}

static enum cua_status clear_shard(struct cua_hashmap *table, uint32_t i, void *arg,
				   uint64_t *number)
{
	(void)i;
	(void)arg;
	(void)number;
	return cua_hashmap_clear(table);
}

enum cua_status cua_sharded_map_clear(struct cua_sharded_map *map)
{
	enum cua_status status = cua__for_shards(map, CUA__SHARDED_CLEAR, check_clear, NULL);

	return status ? status : cua__for_shards(map, CUA__SHARDED_CLEAR, clear_shard, NULL);
}

/* arg: the caller's pointer, which may be NULL on some ranks only. */
static enum cua_status size_of_shard(struct cua_hashmap *table, uint32_t i, void *arg,
				     uint64_t *number)
{
	(void)i;
	return arg ? cua_hashmap_size(table, number) : CUA_ERROR_NULL;
}

enum cua_status cua_sharded_map_size(struct cua_sharded_map *map, uint64_t *size)
{
	enum cua_status status = cua__for_shards(map, CUA__SHARDED_SIZE, size_of_shard, size);
	uint64_t sum = 0;

	if (status)
		return status;
	for (uint32_t r = 0; r < map->group->size; r++)
		sum += map->group->records[r].n;
	*size = sum;
	return CUA_OK;
}

static enum cua_status status_of_shard(struct cua_hashmap *table, uint32_t i, void *arg,
				       uint64_t *number)
{
	(void)i;
	(void)arg;
	(void)number;
	return cua_hashmap_status(table);
}

enum cua_status cua_sharded_map_status(struct cua_sharded_map *map)
{
	return cua__for_shards(map, CUA__SHARDED_STATUS, status_of_shard, NULL);
}

struct retrieval {
	enum cua_hashmap_order order;
	const uint64_t *max;
	void *const *keys_out, *const *values_out;
	uint64_t *n;
};

/* All errors about arguments, so that no rank writes if another rank has such an error. */
static enum cua_status check_retrieval(struct cua_hashmap *table, uint32_t i, void *arg,
				       uint64_t *number)
{
	const struct retrieval *r = arg;
	struct cua__hashmap_array a[3];
	enum cua_status status;

	(void)number;
	if (!r->max || !r->n)
		return CUA_ERROR_NULL;
	if (r->order != CUA_HASHMAP_ANY && r->order != CUA_HASHMAP_SORTED)
		return CUA_ERROR_VALUE;
	status = cua__hashmap_check(table, array_of(r->keys_out, i), r->max[i],
				    table->view.key_size, &a[0]);
	if (!status)
		status = cua__hashmap_check(table, array_of(r->values_out, i), r->max[i],
					    table->view.value_size, &a[1]);
	if (status)
		return status;
	for (uint32_t j = 0; j < i; j++)
		if (cua__overlap(a[0].user, a[0].bytes, array_of(r->keys_out, j),
				 r->max[j] * table->view.key_size) ||
		    cua__overlap(a[1].user, a[1].bytes, array_of(r->values_out, j),
				 r->max[j] * table->view.value_size))
			return CUA_ERROR_OVERLAP;
	a[2].user = &r->n[i];
	a[2].bytes = sizeof(r->n[i]);
	for (int k = 0; k < 3; k++)
		if (cua__hashmap_in_map(table, &a[k]) ||
		    cua__hashmap_overlap(&a[k], &a[(k + 1) % 3]))
			return CUA_ERROR_OVERLAP;
	return table->ctx->runtime->may_wait(table->ctx);
}

static enum cua_status retrieve_shard(struct cua_hashmap *table, uint32_t i, void *arg,
				      uint64_t *number)
{
	const struct retrieval *r = arg;

	(void)number;
	return cua_hashmap_retrieve(table, r->order, r->max[i], array_of(r->keys_out, i),
				    array_of(r->values_out, i), &r->n[i]);
}

enum cua_status cua_sharded_map_retrieve(struct cua_sharded_map *map, enum cua_hashmap_order order,
					 const uint64_t *max, void *const *keys_out,
					 void *const *values_out, uint64_t *n)
{
	struct retrieval r = {order, max, keys_out, values_out, n};
	enum cua_status status = cua__for_shards(map, CUA__SHARDED_RETRIEVE, check_retrieval, &r);

	return status ? status : cua__for_shards(map, CUA__SHARDED_RETRIEVE, retrieve_shard, &r);
}
