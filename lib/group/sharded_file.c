/* SPDX-License-Identifier: MIT */
/*
 * Save and load of sharded maps: a file of cua_hashmap_save for each shard, and a manifest that names
 * them.
 *
 * A save draws an id, and the shards go to new files with the id in their names. Then rank 0 replaces the
 * manifest, as a whole or not at all. So the earlier manifest and its shards remain valid until the new
 * files are. Rank 0 then removes the earlier shards. The manifest has a checksum of its own, and for each
 * shard the number of pairs and the checksum of the header; the header has the checksum of the pairs.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "group/sharded_internal.h"
#include "replace.h"

#define FILE_VERSION 1u
#define SAME_ORDER 0x01020304u

static const char magic[8] = {'c', 'u', 'a', 's', 'h', 'a', 'r', 'd'};

struct manifest {
	char magic[8];
	uint32_t order; /* SAME_ORDER if the byte orders of file and machine agree */
	uint32_t version;
	uint32_t key_size, value_size;
	uint32_t shards, grow_percent, portable, no_erase, hash, max_probes;
	uint64_t id, capacity, count, rejects;
	uint64_t sum; /* of all fields before it, and of the entries */
};
CUA_STATIC_ASSERT(sizeof(struct manifest) == 88, "the manifest is a file format");

struct entry {
	uint64_t count, file_sum;
};

static uint64_t sum_of(const struct manifest *m, const struct entry *entries)
{
	return cua_hash_bytes(entries, m->shards * sizeof(*entries),
			      cua_hash_bytes(m, offsetof(struct manifest, sum), FILE_VERSION));
}

/* The path of a shard, to be freed; NULL without memory. */
static char *shard_path(const char *path, uint64_t id, uint32_t rank)
{
	const size_t room = strlen(path) + 32;
	char *p = malloc(room);

	if (p)
		snprintf(p, room, "%s.%016" PRIx64 ".%" PRIu32, path, id, rank);
	return p;
}

static void remove_shard(const char *path, uint64_t id, uint32_t rank)
{
	const int saved = errno;
	char *shard = shard_path(path, id, rank);

	if (shard)
		unlink(shard);
	free(shard);
	errno = saved;
}

/* ---- the manifest ---- */

static int is_valid(const struct manifest *m, uint64_t bytes)
{
	return !memcmp(m->magic, magic, sizeof(magic)) && m->order == SAME_ORDER &&
	       m->version == FILE_VERSION && m->shards && m->shards <= CUA_GROUP_RANKS_MAX &&
	       bytes == sizeof(*m) + m->shards * sizeof(struct entry);
}

static enum cua_status read_open(int fd, uint64_t bytes, struct manifest *m, struct entry **entries)
{
	enum cua_status status = cua__read_all(fd, m, sizeof(*m));

	if (!status && !is_valid(m, bytes))
		status = CUA_ERROR_CORRUPT;
	if (status)
		return status;
	*entries = malloc(m->shards * sizeof(**entries));
	if (!*entries)
		return CUA_ERROR_NO_MEMORY;
	status = cua__read_all(fd, *entries, m->shards * sizeof(**entries));
	if (!status && m->sum != sum_of(m, *entries))
		status = CUA_ERROR_CORRUPT;
	return status;
}

/* *entries is to be freed. */
static enum cua_status read_manifest(const char *path, struct manifest *m, struct entry **entries)
{
	enum cua_status status;
	uint64_t bytes;
	int fd, saved;

	*entries = NULL;
	status = cua__open_file(path, &fd, &bytes);
	if (status)
		return status;
	status = read_open(fd, bytes, m, entries);
	saved = errno;
	close(fd);
	errno = saved;
	return status;
}

static enum cua_status write_manifest(const char *path, const struct manifest *m,
				      const struct entry *entries, uint64_t *replaced)
{
	struct cua__replace file;
	enum cua_status status = cua__replace_begin(&file, path);

	if (status)
		return status;
	status = cua__replace_write(&file, m, sizeof(*m));
	if (!status)
		status = cua__replace_write(&file, entries, m->shards * sizeof(*entries));
	if (status)
		cua__replace_abandon(&file);
	else
		status = cua__replace_finish(&file);
	*replaced = (uint64_t)file.renamed;
	return status;
}

/*
 * Writes the manifest, and removes the shards of the earlier manifest. *replaced becomes 1 if the path
 * has the new manifest, also if the call fails afterwards.
 */
static enum cua_status replace_manifest(const char *path, const struct manifest *m,
					const struct entry *entries, uint64_t *replaced)
{
	struct manifest before;
	struct entry *earlier;
	const enum cua_status had = read_manifest(path, &before, &earlier);
	const enum cua_status status = write_manifest(path, m, entries, replaced);

	for (uint32_t r = 0; !status && !had && before.id != m->id && r < before.shards; r++)
		remove_shard(path, before.id, r);
	free(earlier);
	return status;
}

/* ---- save ---- */

struct saving {
	struct cua_sharded_map *map;
	const char *path;
	uint64_t id;
	struct entry *entries; /* of the local ranks */
	int replaced;          /* the manifest refers to the shards of this save */
};

/* All errors about arguments; the number is a candidate for the id. */
static enum cua_status check_save(struct cua_hashmap *table, uint32_t i, void *arg,
				  uint64_t *number)
{
	const struct saving *s = arg;

	(void)i;
	*number = cua__random().lo;
	if (!s->path)
		return CUA_ERROR_NULL;
	return s->entries ? table->ctx->runtime->may_wait(table->ctx) : CUA_ERROR_NO_MEMORY;
}

static enum cua_status save_shard(struct cua_hashmap *table, uint32_t i, void *arg,
				  uint64_t *number)
{
	struct saving *s = arg;
	struct cua__hashmap_reader r;
	char *path = shard_path(s->path, s->id, s->map->group->first + i);
	enum cua_status status = path ? cua_hashmap_save(table, path) : CUA_ERROR_NO_MEMORY;

	if (!status)
		status = cua__hashmap_reader_open(&r, path);
	if (!status) {
		s->entries[i].count = r.count;
		s->entries[i].file_sum = r.file_sum;
		*number = r.file_sum;
		cua__hashmap_reader_close(&r);
	}
	free(path);
	return status;
}

static enum cua_status count_of_shard(struct cua_hashmap *table, uint32_t i, void *arg,
				      uint64_t *number)
{
	(void)table;
	*number = ((const struct saving *)arg)->entries[i].count;
	return CUA_OK;
}

struct replacing {
	const struct saving *saving;
	const struct manifest *manifest;
	const struct entry *entries;
};

/* The number of rank 0 is 1 if the path has the new manifest. */
static enum cua_status save_manifest(struct cua_hashmap *table, uint32_t i, void *arg,
				     uint64_t *number)
{
	const struct replacing *r = arg;

	(void)table;
	if (r->saving->map->group->first || i)
		return CUA_OK;
	return r->entries ? replace_manifest(r->saving->path, r->manifest, r->entries, number)
			  : CUA_ERROR_NO_MEMORY;
}

/* The shards are saved; collects their entries and replaces the manifest. */
static enum cua_status finish_save(struct saving *s)
{
	struct cua_sharded_map *map = s->map;
	const struct cua_group *g = map->group;
	const struct cua_hashmap *table = map->shards[0].table;
	struct entry *entries = calloc(g->size, sizeof(*entries));
	struct manifest m;
	enum cua_status status;

	for (uint32_t r = 0; r < g->size && entries; r++)
		entries[r].file_sum = g->records[r].n;
	status = cua__for_shards(map, CUA__SHARDED_SAVE, count_of_shard, s);
	memset(&m, 0, sizeof(m));
	memcpy(m.magic, magic, sizeof(magic));
	m.order = SAME_ORDER;
	m.version = FILE_VERSION;
	m.key_size = map->key_size;
	m.value_size = map->value_size;
	m.shards = g->size;
	m.grow_percent = table->options.grow_percent;
	m.portable = table->options.portable;
	m.no_erase = table->options.no_erase;
	m.hash = table->options.hash;
	m.max_probes = table->options.max_probes;
	m.rejects = table->options.rejects;
	m.id = s->id;
	m.capacity = map->capacity;
	for (uint32_t r = 0; r < g->size && entries && !status; r++) {
		entries[r].count = g->records[r].n;
		m.count += entries[r].count;
	}
	if (entries)
		m.sum = sum_of(&m, entries);
	if (!status) {
		struct replacing replacing = {s, &m, entries};

		status = cua__for_shards(map, CUA__SHARDED_SAVE, save_manifest, &replacing);
		s->replaced = g->records[0].n != 0;
	}
	free(entries);
	return status;
}

static enum cua_status save(struct saving *s)
{
	const struct cua_group *g = s->map->group;
	enum cua_status status = cua__for_shards(s->map, CUA__SHARDED_SAVE, check_save, s);

	if (status)
		return status;
	s->id = g->records[0].n;
	status = cua__for_shards(s->map, CUA__SHARDED_SAVE, save_shard, s);
	if (!status)
		status = finish_save(s);
	/* if the transport has failed, the manifest may have been replaced */
	for (uint32_t i = 0; i < g->local && status && !g->broken && !s->replaced; i++)
		remove_shard(s->path, s->id, g->first + i);
	return status;
}

enum cua_status cua_sharded_map_save(struct cua_sharded_map *map, const char *path)
{
	struct saving s = {map, path, 0, NULL, 0};
	enum cua_status status;
	int cancel;

	if (!map)
		return CUA_ERROR_NULL;
	cancel = cua__cancel_disable();
	s.entries = calloc(map->group->local, sizeof(*s.entries));
	status = save(&s);
	free(s.entries);
	cua__cancel_restore(cancel);
	return status;
}

/* ---- load ---- */

/* A local rank reads shards with its own number, and every `size` from there on. */
struct rank_load {
	struct cua__hashmap_reader reader;
	uint32_t next;       /* the next shard */
	char *keys, *values; /* memory of the context, for a batch */
};

struct loading {
	struct cua_sharded_map *map;
	const char *path;
	struct manifest manifest;
	struct entry *entries;
	struct rank_load *ranks;
	size_t *n;
	const void **keys, **values;
};

static enum cua_status open_next(const struct loading *l, struct rank_load *r)
{
	const struct manifest *m = &l->manifest;
	const struct entry *entry = &l->entries[r->next];
	char *path = shard_path(l->path, m->id, r->next);
	enum cua_status status =
		path ? cua__hashmap_reader_open(&r->reader, path) : CUA_ERROR_NO_MEMORY;

	free(path);
	if (status)
		return status;
	r->next += l->map->group->size;
	return r->reader.key_size == m->key_size && r->reader.value_size == m->value_size &&
			       r->reader.count == entry->count &&
			       r->reader.file_sum == entry->file_sum
		       ? CUA_OK
		       : CUA_ERROR_CORRUPT;
}

static enum cua_status upload(struct cua_context *ctx, struct rank_load *r)
{
	const size_t n = r->reader.n, vs = r->reader.value_size;
	enum cua_status status = CUA_OK;

	if (!r->keys)
		CUA__GROUP_IN(ctx, status,
			      ctx->runtime->allocate(ctx, r->reader.most * r->reader.key_size,
						     (void **)&r->keys));
	if (!status && vs && !r->values)
		CUA__GROUP_IN(
			ctx, status,
			ctx->runtime->allocate(ctx, r->reader.most * vs, (void **)&r->values));
	if (!status)
		CUA__GROUP_IN(
			ctx, status,
			ctx->runtime->copy(ctx, r->keys, r->reader.keys, n * r->reader.key_size));
	if (!status && vs)
		CUA__GROUP_IN(ctx, status,
			      ctx->runtime->copy(ctx, r->values, r->reader.values, n * vs));
	/* the reader writes its next batch there */
	if (!status)
		CUA__GROUP_IN(ctx, status, ctx->runtime->synchronize(ctx));
	return status;
}

/* Reads the next batch of a local rank; the number is its length, 0 at the end of all its shards. */
static enum cua_status read_batch(struct cua_hashmap *table, uint32_t i, void *arg,
				  uint64_t *number)
{
	const struct loading *l = arg;
	struct rank_load *r = &l->ranks[i];
	enum cua_status status = CUA_OK;

	l->n[i] = 0;
	while (!status && !l->n[i]) {
		if (!r->reader.bytes && r->next >= l->manifest.shards)
			break;
		if (!r->reader.bytes)
			status = open_next(l, r);
		if (!status)
			status = cua__hashmap_reader_next(&r->reader);
		l->n[i] = status ? 0 : r->reader.n;
		if (!status && !r->reader.n)
			cua__hashmap_reader_close(&r->reader);
	}
	if (l->n[i])
		status = upload(table->ctx, r);
	l->keys[i] = r->keys;
	l->values[i] = r->values;
	*number = l->n[i];
	return status;
}

static enum cua_status read_pairs(struct loading *l)
{
	struct cua_sharded_map *map = l->map;
	const struct cua_group *g = map->group;
	enum cua_status status;
	uint64_t most = 1, size = 0;

	while (most) {
		status = cua__for_shards(map, CUA__SHARDED_LOAD, read_batch, l);
		if (status)
			return status;
		most = 0;
		for (uint32_t r = 0; r < g->size; r++)
			most |= g->records[r].n;
		if (most)
			status = cua_sharded_map_insert_n(map, l->n, l->keys, l->values, NULL);
		if (status)
			return status;
	}
	status = cua_sharded_map_status(map);
	/* the shards of the file may have been fuller than random shares allow */
	if (status)
		return status == CUA_ERROR_FULL ? CUA_ERROR_SIZE : status;
	status = cua_sharded_map_size(map, &size);
	/* a key that is there twice */
	return status ? status : size == l->manifest.count ? CUA_OK : CUA_ERROR_CORRUPT;
}

static enum cua_status check_load(struct cua_hashmap *table, uint32_t i, void *arg,
				  uint64_t *number)
{
	const struct loading *l = arg;

	(void)table;
	(void)i;
	(void)number;
	return l->ranks && l->n && l->keys && l->values ? CUA_OK : CUA_ERROR_NO_MEMORY;
}

static enum cua_status read_shards(struct loading *l)
{
	const struct cua_group *g = l->map->group;
	enum cua_status status;

	l->ranks = calloc(g->local, sizeof(*l->ranks));
	l->n = calloc(g->local, sizeof(*l->n));
	l->keys = calloc(g->local, sizeof(*l->keys));
	l->values = calloc(g->local, sizeof(*l->values));
	status = cua__for_shards(l->map, CUA__SHARDED_LOAD, check_load, l);
	for (uint32_t i = 0; i < g->local && l->ranks; i++)
		l->ranks[i].next = g->first + i;
	if (!status)
		status = read_pairs(l);
	for (uint32_t i = 0; i < g->local && l->ranks; i++) {
		struct cua_context *ctx = g->contexts[i];
		enum cua_status released = CUA_OK;

		cua__hashmap_reader_close(&l->ranks[i].reader);
		if (l->ranks[i].keys || l->ranks[i].values)
			CUA__GROUP_IN(ctx, released, ctx->runtime->synchronize(ctx));
		CUA__GROUP_IN(ctx, released, ctx->runtime->release(ctx, l->ranks[i].keys));
		CUA__GROUP_IN(ctx, released, ctx->runtime->release(ctx, l->ranks[i].values));
		if (!status)
			status = released;
	}
	free(l->ranks);
	free(l->n);
	free(l->keys);
	free(l->values);
	return status;
}

static enum cua_status load(struct cua_group *g, const struct cua_hashmap_options *options,
			    const char *path, struct cua_sharded_map **map)
{
	struct cua_hashmap_options own = CUA_HASHMAP_OPTIONS_INIT;
	struct loading l = {.path = path};
	struct manifest *m = &l.manifest;
	enum cua_status status = path && map ? CUA_OK : CUA_ERROR_NULL;

	if (!status)
		status = read_manifest(path, m, &l.entries);
	for (uint32_t i = 0; i < g->local; i++) {
		struct cua__group_record *record = &g->mine[i];

		cua__group_record(record, CUA__GROUP_LOAD_MAP, status);
		/* all processes have read the same manifest */
		record->arguments[0] = status ? 0 : (int32_t)(uint32_t)m->sum;
		record->arguments[1] = status ? 0 : (int32_t)(uint32_t)(m->sum >> 32);
	}
	status = cua__group_meet(g, g->mine);
	if (!status) {
		own.grow_percent = m->grow_percent;
		own.portable = m->portable;
		own.no_erase = m->no_erase;
		own.hash = m->hash;
		own.max_probes = m->max_probes;
		own.rejects = m->rejects;
		status = cua_sharded_map_create(
			g, options ? options : &own, cua__hashmap_type_of(m->key_size),
			cua__hashmap_type_of(m->value_size),
			m->capacity > m->count ? m->capacity : m->count, &l.map);
	}
	if (!status)
		status = read_shards(&l);
	free(l.entries);
	if (!status)
		*map = l.map;
	else
		cua_sharded_map_destroy(l.map);
	return status;
}

enum cua_status cua_sharded_map_load(struct cua_group *group,
				     const struct cua_hashmap_options *options, const char *path,
				     struct cua_sharded_map **map)
{
	enum cua_status status;

	CUA__GROUP_CALL(group, status, load(group, options, path, map));
	return status;
}
