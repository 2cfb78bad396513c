/* SPDX-License-Identifier: MIT */
/*
 * Calls of a sharded map with all ranks in this process, if ranks can access each other's memory: finds,
 * and large inserts, builds and updates without results.
 *
 * An insert or a build has three steps. Each rank scatters its pairs into regions of the owners' tables, in
 * its own workspace. Then each owner reads its regions from the workspaces of all ranks. Last, the host reads
 * whether pairs had no room in their region, for example because many keys are equal. All pairs of such a rank are
 * inserted again in rounds; if the spill list of a table was too short, the pairs of all ranks. Most are then
 * present, and an insert of a present key changes nothing.
 *
 * An insert has a barrier of all ranks after the scatters. The kernel of the second step then reads
 * the regions of all ranks, those of different ranks at the same time.
 *
 * A build divides the regions of an owner into slices. In the side streams the owners copy slices of the other
 * ranks to their staging, by the copy engines. Meanwhile the tables scatter their own pairs again, and then
 * the copied slices, and build the parts of these slices. A large build of at least three ranks divides its pairs
 * into two parts. The first part crosses the links while the ranks scatter the second. Unit 0 is then
 * the first part, and the slices of the second part are the units from 1 on; of a single part, the slices are the
 * units. Order of the streams:
 * - The side stream of a rank waits for the scatters of all ranks, and then copies unit 0. Of two parts these
 *   are the scatters of the first part. It waits again for all ranks before it copies unit 1.
 * - The second scatter of a unit waits for its copy. The build of a slice follows the second scatters of the rank's
 *   own pairs, of unit 0 and of the slice in the same stream, so the build regions have all their words.
 * - The staging has room for two units. The copy of unit u + 2 waits for the second scatter of unit u. With two
 *   parts units 1 and 2 have room beside unit 0. The copy of unit u + 2 then waits for the second scatter of
 *   unit u - 1, if there is one.
 * - A stream waits for all that the host queued in the other stream before. So the host queues the copy of
 *   unit u + 2 only after the wait for the copy of unit u + 1.
 *
 * The workspace of a rank may be used again after the call only, because other ranks read it until they have
 * finished. The host waits for all ranks.
 *
 * In an update each rank first combines its pairs with equal keys, and writes all of the combined pairs into
 * the workspaces of their owners, or none. A rank sends none if few keys are equal, or if an owner has no
 * room; its pairs then go in rounds.
 *
 * A find has three steps: each rank sorts its keys by owner and region in its workspace; each owner finds the keys
 * of all ranks there, and writes the answers there too; each rank gets its answers (kernels/shard_find.h). An
 * order of all ranks separates two steps. Keys of more than MOST_FOUND go in parts. A rank writes the keys
 * of the next part after the second order, so after all owners have read those of the part before; and an
 * owner writes answers after the first order of the next part, so after the rank has taken those of the part
 * before. Ranks access only each other's workspaces, because peers may not be able to access a user's array.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "group/sharded_internal.h"

/* ---- contexts ---- */

static int is_direct(const struct cua_sharded_map *m)
{
	const struct cua_group *g = m->group;

	return !g->has_transport && g->all_peers && g->size > 1 &&
	       g->size <= CUA__SHARD_DIRECT_RANKS;
}

enum cua_status cua__sharded_direct_open(struct cua_sharded_map *m)
{
	struct cua_context *contexts[CUA__SHARD_DIRECT_RANKS] = {NULL};
	struct cua_group *g = m->group;
	enum cua_status status = CUA_OK;

	if (!is_direct(m))
		return CUA_OK;
	if (g->contexts[0]->runtime->kind == CUA_BACKEND_CPU) {
		m->side = g;
		return CUA_OK;
	}
	for (uint32_t i = 0; i < g->size && !status; i++) {
		status = cua_context_create(g->contexts[i]->runtime->kind, g->contexts[i]->device,
					    &contexts[i]);
		if (!status)
			status = CUA__OPS(contexts[i], group)->open_side(contexts[i]);
	}
	if (!status)
		status = cua_group_create_devices(g->size, contexts, &m->side);
	for (uint32_t i = 0; i < g->size && status && contexts[i]; i++) {
		CUA__OPS(contexts[i], group)->close_side(contexts[i]);
		cua_context_destroy(contexts[i]);
	}
	if (!status)
		CUA__GROUP_IN(g->contexts[0], status,
			      g->contexts[0]->runtime->allocate_mapped(g->contexts[0],
								       g->size * sizeof(*m->late),
								       (void **)&m->late));
	return status;
}

void cua__sharded_direct_close(struct cua_sharded_map *m)
{
	struct cua_context *contexts[CUA__SHARD_DIRECT_RANKS];
	const uint32_t n = m->side ? m->side->size : 0;

	if (!n || m->side == m->group)
		return;
	for (uint32_t i = 0; i < n; i++)
		contexts[i] = m->side->contexts[i];
	cua_group_destroy(m->side);
	m->side = NULL;
	for (uint32_t i = 0; i < n; i++) {
		CUA__OPS(contexts[i], group)->close_side(contexts[i]);
		cua_context_destroy(contexts[i]);
	}
}

static enum cua_status order(struct cua_group *before, struct cua_group *after)
{
	return CUA__OPS(before->contexts[0], group)->order(before, after);
}

/* Waits for the streams of all ranks, also after an error. */
static enum cua_status wait(struct cua_group *g, enum cua_status status)
{
	for (uint32_t i = 0; i < g->local; i++) {
		struct cua_context *ctx = g->contexts[i];
		enum cua_status own;

		CUA__GROUP_IN(ctx, own, ctx->runtime->synchronize(ctx));
		status = status ? status : own;
	}
	return status;
}

static uint64_t most_of(const struct cua_sharded_map *m)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < m->group->local; i++)
		most = m->shards[i].n > most ? m->shards[i].n : most;
	return most;
}

/* ---- inserts ---- */

static int same_tables(const struct cua_sharded_map *m)
{
	const struct cua_hashmap_view *first = &m->shards[0].table->view;

	for (uint32_t i = 0; i < m->group->local; i++) {
		const struct cua_hashmap_view *v = &m->shards[i].table->view;

		if (v->seed != first->seed || v->seed_high != first->seed_high ||
		    v->layout != first->layout || v->n_buckets != first->n_buckets)
			return 0;
	}
	return !m->shards[0].table->options.grow_percent;
}

typedef enum cua_status step_fn(struct cua_context *ctx, const struct cua__shard_direct *d);
typedef enum cua_status unit_fn(struct cua_context *ctx, const struct cua__shard_direct *d,
				uint32_t unit);

static enum cua_status each_rank(struct cua_group *g, step_fn *step,
				 const struct cua__shard_direct *d)
{
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < g->local && !status; i++)
		CUA__GROUP_IN(g->contexts[i], status, step(g->contexts[i], &d[i]));
	return status;
}

/* All ranks have the same number of units; a unit that does not exist has no work. */
static enum cua_status each_unit(struct cua_group *g, unit_fn *step,
				 const struct cua__shard_direct *d, uint32_t unit)
{
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < g->local && unit < d->units && !status; i++)
		CUA__GROUP_IN(g->contexts[i], status, step(g->contexts[i], &d[i], unit));
	return status;
}

static enum cua_status follow(struct cua_group *before, struct cua_group *after)
{
	return CUA__OPS(before->contexts[0], group)->follow(before, after);
}

/* The copy of unit u + 2 waits for the queued work of the tables. */
static enum cua_status permit_copy(struct cua_sharded_map *m, const struct cua__shard_direct *d,
				   uint32_t unit)
{
	return unit + 2 < d->units ? follow(m->group, m->side) : CUA_OK;
}

/* The work of the tables on a unit; then they wait for the next unit. */
static enum cua_status build_unit(struct cua_sharded_map *m, const struct cua__shard_direct *d,
				  uint32_t unit)
{
	const struct cua__shard_ops *ops = CUA__OPS(m->group->contexts[0], shard);
	struct cua_group *g = m->group, *side = m->side;
	enum cua_status status = d->early && unit ? permit_copy(m, d, unit) : CUA_OK;

	if (!status)
		status = each_unit(g, ops->direct_scatter, d, unit);
	if (!status && !d->early)
		status = permit_copy(m, d, unit);
	if (!status && unit >= d->early)
		status = each_unit(g, ops->direct_build, d, unit);
	if (!status && unit + 1 < d->units)
		status = follow(side, g);
	return status ? status : each_unit(side, ops->direct_pull, d, unit + 2);
}

/* Scatters the second part. Later copies wait for the scatters of all ranks. */
static enum cua_status send_rest(struct cua_sharded_map *m, const struct cua__shard_direct *d)
{
	const struct cua__shard_ops *ops = CUA__OPS(m->group->contexts[0], shard);
	enum cua_status status = each_rank(m->group, ops->direct_send_rest, d);

	return status ? status : order(m->group, m->side);
}

static enum cua_status build_units(struct cua_sharded_map *m, const struct cua__shard_direct *d)
{
	const struct cua__shard_ops *ops = CUA__OPS(m->group->contexts[0], shard);
	struct cua_group *g = m->group, *side = m->side;
	enum cua_status status = order(g, side);

	if (!status)
		status = each_unit(side, ops->direct_pull, d, 0);
	if (!status && d->early)
		status = send_rest(m, d);
	if (!status)
		status = each_rank(g, ops->direct_scatter_own, d);
	if (!status)
		status = follow(side, g);
	if (!status)
		status = each_unit(side, ops->direct_pull, d, 1);
	for (uint32_t unit = 0; unit < d->units && !status; unit++)
		status = build_unit(m, d, unit);
	return status;
}

/* After an error all tables are empty: neither old pairs nor some of the new pairs remain. */
static enum cua_status build(struct cua_sharded_map *m, const struct cua__shard_direct *d)
{
	enum cua_status status = build_units(m, d);

	if (!status)
		return CUA_OK;
	status = wait(m->side, status);
	for (uint32_t i = 0; i < m->group->local; i++)
		(void)cua_hashmap_clear(m->shards[i].table);
	return status;
}

static enum cua_status receive(struct cua_sharded_map *m, const struct cua__shard_direct *d)
{
	enum cua_status status = order(m->group, m->group);

	return status ? status
		      : each_rank(m->group, CUA__OPS(m->group->contexts[0], shard)->direct_receive,
				  d);
}

/* All steps of the GPUs; m->late[i] becomes what rank i leaves. */
static enum cua_status send_and_receive(struct cua_sharded_map *m, struct cua__shard_direct *d,
					const struct cua__workspaces *w)
{
	const struct cua__shard_ops *ops = CUA__OPS(m->group->contexts[0], shard);
	struct cua_group *g = m->group;
	enum cua_status status;

	for (uint32_t i = 0; i < g->local; i++)
		memcpy(d[i].memory, w->memory, sizeof(d[i].memory));
	status = each_rank(g, ops->direct_clear, d);
	/* only an update writes into the memory of other ranks */
	if (!status && d->call == CUA__SHARD_UPDATE)
		status = order(g, g);
	if (!status)
		status = each_rank(g, ops->direct_send, d);
	if (!status)
		status = d->call == CUA__SHARD_BUILD ? build(m, d) : receive(m, d);
	for (uint32_t i = 0; i < g->local && !status; i++)
		CUA__GROUP_IN(g->contexts[i], status,
			      g->contexts[i]->runtime->copy(g->contexts[i], &m->late[i],
							    w->memory[i], sizeof(m->late[i])));
	return wait(g, status);
}

static enum cua_status insert(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
			      struct cua__shard_direct *d, struct cua__workspaces *w)
{
	struct cua_group *g = m->group;
	enum cua_status status = send_and_receive(m, d, w);
	int again = 0;

	for (uint32_t i = 0; i < g->local && !status; i++)
		again |= m->late[i].listed > d[i].spill_room;
	for (uint32_t i = 0; i < g->local && !status; i++)
		m->shards[i].n = again || m->late[i].spilled ? m->shards[i].n : 0;
	return status ? status : cua__sharded_rounds(m, b, most_of(m), CUA_OK);
}

static struct cua__shard_direct direct_of(const struct cua_sharded_map *m, uint32_t i,
					  enum cua__shard_direct_call call, uint64_t most)
{
	const struct cua__shard_of_rank *s = &m->shards[i];

	return (struct cua__shard_direct){
		.ranks = m->group->size,
		.rank = i,
		.call = call,
		.seed = m->seed,
		.view = &s->table->view,
		.keys = s->keys,
		.values = s->values,
		.n = s->n,
		.most = most,
	};
}

/* Sets d and the most bytes of a workspace. Returns 0 if the call would not pay. */
static int plan(const struct cua_sharded_map *m, enum cua__shard_direct_call call, uint64_t most,
		struct cua__shard_direct *d, size_t *bytes)
{
	const struct cua__shard_ops *ops = CUA__OPS(m->group->contexts[0], shard);
	struct cua_group *g = m->group;

	*bytes = 0;
	if (!ops->direct_bytes || !same_tables(m))
		return 0;
	for (uint32_t i = 0; i < g->local; i++) {
		size_t own;

		d[i] = direct_of(m, i, call, most);
		CUA__GROUP_IN(g->contexts[i], own, ops->direct_bytes(g->contexts[i], &d[i]));
		if (!own)
			return 0;
		*bytes = own > *bytes ? own : *bytes;
	}
	return 1;
}

static enum cua_status try_insert(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				  int *done)
{
	struct cua__shard_direct d[CUA__SHARD_DIRECT_RANKS];
	struct cua__workspaces w = {.begun = 0};
	enum cua_status status = CUA_OK;
	int clears = 0;
	size_t bytes;

	if (b->results)
		return CUA_OK;
	if (b->call == CUA__SHARDED_INSERT || !plan(m, CUA__SHARD_BUILD, most_of(m), d, &bytes)) {
		/* tables too large for a build take inserts after a clear */
		clears = b->call == CUA__SHARDED_BUILD;
		if (!plan(m, CUA__SHARD_INSERT, most_of(m), d, &bytes))
			return CUA_OK;
	}
	*done = cua__sharded_take(m->group, &w, bytes);
	for (uint32_t i = 0; i < m->group->local && *done && clears && !status; i++)
		status = cua_hashmap_clear(m->shards[i].table);
	if (*done && !status)
		status = insert(m, b, d, &w);
	return cua__sharded_give_back(&w, status);
}

/* ---- updates ---- */

struct updates {
	struct cua__shard_direct *calls;
	const struct cua__workspaces *workspaces;
};

static enum cua_status update_part(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				   uint64_t most, void *arg)
{
	const struct updates *u = arg;
	enum cua_status status;

	for (uint32_t i = 0; i < m->group->local; i++) {
		const struct cua__shard_of_rank *s = &m->shards[i];

		u->calls[i].keys = s->keys;
		u->calls[i].values = s->values;
		u->calls[i].n = s->n;
		u->calls[i].most = most;
		u->calls[i].op = b->op;
	}
	status = send_and_receive(m, u->calls, u->workspaces);
	for (uint32_t i = 0; i < m->group->local && !status; i++)
		m->shards[i].n = m->late[i].spilled ? m->shards[i].n : 0;
	return status ? status : cua__sharded_rounds(m, b, most_of(m), CUA_OK);
}

static enum cua_status try_update(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				  int *done)
{
	struct cua__shard_direct d[CUA__SHARD_DIRECT_RANKS];
	struct cua__workspaces w = {.begun = 0};
	struct updates u = {d, &w};
	const uint64_t most = most_of(m);
	size_t bytes;

	if (b->results || !plan(m, CUA__SHARD_UPDATE, cua__sharded_part(most), d, &bytes))
		return CUA_OK;
	*done = cua__sharded_take(m->group, &w, bytes);
	return cua__sharded_give_back(&w, *done ? cua__sharded_in_parts(m, b, most, update_part, &u)
						: CUA_OK);
}

/* ---- finds ---- */

/* The most keys of a rank that are found at once. Tests have other limits. */
#ifndef MOST_FOUND
#define MOST_FOUND ((uint64_t)1 << 28)
#endif
/*
 * log2 of the buckets of a region, of a table with at least LEAST_REGIONS of them and so many keys: keys of fewer
 * than all buckets would seldom share a cache line.
 */
#ifndef FIND_SHIFT
#define FIND_SHIFT 18u
#define LEAST_REGIONS 4u
#define LEAST_REGION_KEYS(n_buckets) (n_buckets)
#endif

struct finds {
	const struct cua__sharded_bulk *b;
	uint64_t part, parts; /* the most keys of a part of a rank */
	uint32_t regions, shift, tile;
	struct cua__shard_find ranks[CUA__SHARD_DIRECT_RANKS];
	struct cua__hashmap_sources owners[CUA__SHARD_DIRECT_RANKS];
};

static uint32_t regions_of(const struct cua_sharded_map *m, uint64_t part, uint32_t *shift)
{
	const struct cua_hashmap_view *v = &m->shards[0].table->view;

	*shift = FIND_SHIFT;
	if (v->layout != CUA_HASHMAP_WORDS || v->n_buckets >> FIND_SHIFT < LEAST_REGIONS ||
	    part < LEAST_REGION_KEYS(v->n_buckets) || !same_tables(m))
		return 1;
	while ((v->n_buckets - 1) >> *shift >= CUA__SHARD_BINS / m->group->size)
		++*shift;
	return (uint32_t)((v->n_buckets - 1) >> *shift) + 1;
}

/* Keys of a tile: elements for 64 KiB, or 32 KiB where a block of some rank has less shared memory. */
static uint32_t tile_of(const struct cua_sharded_map *m)
{
	const uint32_t size = m->key_size > m->value_size ? m->key_size : m->value_size;
	uint32_t tile = CUA__SHARD_MOST_TILE, most = 65536;

	for (uint32_t i = 0; i < m->group->local; i++)
		most = m->group->contexts[i]->shared_bytes < 100000 ? 32768 : most;
	while (tile * size > most)
		tile /= 2;
	return tile;
}

static void shape(const struct cua_sharded_map *m, struct finds *f, uint64_t most)
{
	f->part = most < MOST_FOUND ? most : MOST_FOUND;
	f->parts = most / MOST_FOUND + (most % MOST_FOUND != 0);
	f->regions = regions_of(m, f->part, &f->shift);
	f->tile = tile_of(m);
}

static size_t lay_out(const struct cua_sharded_map *m, struct finds *f, uint32_t i, char *base)
{
	const size_t bins = (size_t)m->group->size * f->regions;
	const size_t tiles = f->part / f->tile + 1, keys = f->part + 32 * bins;
	struct cua__shard_find *r = &f->ranks[i];
	size_t used = 0;

	cua__lay(base, &used, bins * sizeof(uint32_t), &r->counts);
	cua__lay(base, &used, bins * sizeof(uint32_t), &r->starts);
	cua__lay(base, &used, bins * sizeof(uint32_t), &r->cursors);
	cua__lay(base, &used, (f->regions + 1) * sizeof(uint32_t), &f->owners[i].units);
	cua__lay(base, &used, 2 * bins * sizeof(uint32_t), &f->owners[i].extents);
	cua__lay(base, &used, tiles * (bins + 1) * sizeof(CUA__SHARD_OFFSET), &r->positions);
	cua__lay(base, &used, tiles * bins * sizeof(uint32_t), &r->bases);
	cua__lay(base, &used, f->part * sizeof(CUA__SHARD_OFFSET), &r->sorted);
	cua__lay(base, &used, keys * m->key_size, &r->in_bins);
	cua__lay(base, &used, keys * m->value_size, &r->values);
	cua__lay(base, &used, keys / 8 + sizeof(uint32_t), &r->found);
	return used;
}

/* Sets what each rank does with the keys that it has, and with those that it owns. */
static void arrange(const struct cua_sharded_map *m, struct finds *f)
{
	const uint32_t ranks = m->group->size;

	for (uint32_t i = 0; i < ranks; i++) {
		struct cua__shard_find *r = &f->ranks[i];
		struct cua__hashmap_sources *p = &f->owners[i];

		r->view = m->shards[i].table->view;
		r->seed = m->seed;
		r->ranks = ranks;
		r->regions = f->regions;
		r->shift = f->shift;
		r->key_size = m->key_size;
		r->value_size = m->value_size;
		r->tile = f->tile;
		p->sources = ranks;
		p->regions = f->regions;
		p->first = i;
		for (uint32_t s = 0; s < ranks; s++) {
			const struct cua__shard_find *source = &f->ranks[s];

			p->counts[s] = source->counts + (size_t)i * f->regions;
			p->starts[s] = source->starts + (size_t)i * f->regions;
			p->keys[s] = source->in_bins;
			p->values_out[s] = f->b->call == CUA__SHARDED_FIND ? source->values : NULL;
			p->found[s] = source->found;
		}
	}
}

/* The keys of part c. */
static void set_part(const struct cua_sharded_map *m, struct finds *f, uint32_t i, uint64_t c)
{
	const struct cua__shard_of_rank *s = &m->shards[i];
	const uint64_t first = c * f->part < s->n ? c * f->part : s->n;
	struct cua__shard_find *r = &f->ranks[i];

	r->n = (uint32_t)(s->n - first < f->part ? s->n - first : f->part);
	r->keys = s->keys + first * m->key_size;
	r->found_out = s->results ? s->results + first : NULL;
	r->values_out =
		f->b->call == CUA__SHARDED_FIND ? s->values_out + first * m->value_size : NULL;
}

static enum cua_status find_part(struct cua_sharded_map *m, struct finds *f, uint64_t c)
{
	const struct cua__shard_ops *ops = CUA__OPS(m->group->contexts[0], shard);
	struct cua_group *g = m->group;
	enum cua_status status = CUA_OK;
	uint64_t n = 0;

	for (uint32_t i = 0; i < g->local; i++) {
		set_part(m, f, i, c);
		n += f->ranks[i].n;
	}
	for (uint32_t i = 0; i < g->local && !status; i++) {
		f->owners[i].share = n / g->size;
		CUA__GROUP_IN(g->contexts[i], status, ops->bin_keys(g->contexts[i], &f->ranks[i]));
	}
	if (!status)
		status = order(g, g);
	for (uint32_t i = 0; i < g->local && !status; i++)
		CUA__GROUP_IN(g->contexts[i], status,
			      CUA__OPS(g->contexts[i], hashmap)
				      ->find_regions(g->contexts[i], &m->shards[i].table->view,
						     &f->owners[i]));
	if (!status)
		status = order(g, g);
	for (uint32_t i = 0; i < g->local && !status; i++)
		CUA__GROUP_IN(g->contexts[i], status,
			      ops->take_answers(g->contexts[i], &f->ranks[i]));
	return status;
}

static enum cua_status run_finds(struct cua_sharded_map *m, struct finds *f,
				 struct cua__workspaces *w)
{
	enum cua_status status = CUA_OK;

	for (uint32_t i = 0; i < m->group->local; i++)
		lay_out(m, f, i, w->memory[i]);
	arrange(m, f);
	for (uint64_t c = 0; c < f->parts && !status; c++)
		status = find_part(m, f, c);
	/* also after an error, a workspace is not to be used before the other ranks are done with it */
	return wait(m->group, status);
}

static enum cua_status try_finds(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				 int *done)
{
	struct finds f = {.b = b};
	struct cua__workspaces w = {.begun = 0};

	shape(m, &f, most_of(m));
	if (!f.parts)
		return CUA_OK;
	*done = cua__sharded_take(m->group, &w, lay_out(m, &f, 0, NULL));
	return cua__sharded_give_back(&w, *done ? run_finds(m, &f, &w) : CUA_OK);
}

/* ---- all calls ---- */

/* The most pairs of a rank in a part of a call, or in a call that needs no other way. */
static uint64_t most_at_once(const struct cua_sharded_map *m, enum cua__shard_direct_call call)
{
	const struct cua_hashmap_view *v = &m->shards[0].table->view;

	if (call == CUA__SHARD_UPDATE)
		return CUA__HASHMAP_MOST_COMBINED;
	if (call == CUA__SHARD_BUILD && v->layout == CUA_HASHMAP_WORDS)
		return v->n_buckets * cua__hashmap_word_slots(v->key_size, v->value_size);
	return UINT64_MAX;
}

size_t cua__sharded_direct_bytes(const struct cua_sharded_map *m, uint64_t most)
{
	struct cua__shard_direct d[CUA__SHARD_DIRECT_RANKS];
	struct finds f = {.b = NULL};
	size_t bytes, more;

	if (!m->side)
		return 0;
	shape(m, &f, most);
	bytes = lay_out(m, &f, 0, NULL);
	for (int k = CUA__SHARD_INSERT; k <= CUA__SHARD_UPDATE; k++) {
		const enum cua__shard_direct_call call = (enum cua__shard_direct_call)k;
		const uint64_t limit = most_at_once(m, call);

		if (plan(m, call, most < limit ? most : limit, d, &more))
			bytes = more > bytes ? more : bytes;
	}
	return cua__scratch_size(bytes);
}

enum cua_status cua__sharded_direct(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				    int *done)
{
	const struct cua__shard_of_rank *s = &m->shards[0];

	*done = !m->group->has_transport && m->group->size == 1;
	if (*done && b->call == CUA__SHARDED_BUILD)
		return cua_hashmap_build_n(s->table, s->n, s->keys, s->values, s->results);
	if (*done)
		return cua__sharded_work(s->table, b, s->n, s->keys, s->values, s->values_out,
					 s->results);
	if (!m->side)
		return CUA_OK;
	switch (b->call) {
	case CUA__SHARDED_BUILD:
	case CUA__SHARDED_INSERT: return try_insert(m, b, done);
	case CUA__SHARDED_UPDATE: return try_update(m, b, done);
	case CUA__SHARDED_FIND:
	case CUA__SHARDED_CONTAINS: return try_finds(m, b, done);
	default: return CUA_OK;
	}
}
