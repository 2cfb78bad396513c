/* SPDX-License-Identifier: MIT */
/*
 * A hash map of unique keys that is divided among the ranks of a group (cuatomic/group.h): among
 * several GPUs, processes or machines.
 *
 * Source: distributed hash tables with an owner for each key (for example Devine, 1993), over the maps of
 * cuatomic/hashmap.h.
 *
 * A key's owner is a rank that a hash of the key chooses. The owner has the key's pair in its shard, a
 * map of cuatomic/hashmap.h in the owner's context. Each rank passes keys of its own and gets the answers
 * to these, in the order of its keys.
 *
 *     cua_sharded_map_create(group, NULL, CUA_U64, CUA_U32, 2000000000, &map);
 *     cua_sharded_map_insert_n(map, n, keys, values, NULL);
 *     cua_sharded_map_find_n(map, m, others, answers, found);
 *
 * All calls but those marked "local" are collective, as in cuatomic/group.h: every process calls, with
 * the same arguments except for the arrays and their lengths, and in the same order. Array arguments
 * have an entry for each local rank: n[i] keys at keys[i], in memory that the context of local rank i can
 * access; keys[i] may be NULL if n[i] is 0. All processes return the same status. A process that passes
 * NULL as the map makes no call.
 *
 * Synchronization: as in cuatomic/group.h, a single thread uses the group, its contexts and its maps at
 *   a time. The elements of a call, of all ranks, are concurrent operations, as those of a bulk call of
 *   cuatomic/hashmap.h. Calls of the group take effect in their order.
 * Scope: all ranks.
 * Memory order: a call is ordered after earlier work in the streams of the local ranks. Answers are ordered
 *   before later work in the stream of the rank that gets them, and changes of a shard before later work
 *   in the stream of its owner.
 * Progress: a call waits for the streams of the local ranks, and for the other processes.
 *
 * Direct calls: if all ranks are in this process, at most 16, and their GPUs have access to each other, finds
 *   and large inserts, builds and updates without results move pairs and answers straight between the
 *   workspaces of the ranks (cua_sharded_map_workspace). Without this workspace, and for other calls, there are
 *   rounds. A direct insert may insert a pair twice, so no kernel may erase keys of a shard at the same time.
 * Rounds: a call moves at most a few million pairs of a rank at a time, in memory that the map allocated
 *   when it was created: 14 to 70 bytes for each, and for a GPU with a transport that cannot access its
 *   memory 8 to 33 bytes of pinned memory. If the keys of a round have few owners, the round has
 *   more exchanges. So a rank has room for all that it receives, for any keys. Long updates without results
 *   and the bulk calls of the shards also use the workspace of each context. Where an allocation may wait for
 *   another rank, as with NCCL and ranks in threads, reserve it.
 *
 * Errors: NULL, TYPE, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP and VALUE are found before anything is
 *   changed on any rank. Other errors may come when a part of the elements has been processed; the
 *   answers are then undefined.
 */
#ifndef CUATOMIC_SHARDED_MAP_H
#define CUATOMIC_SHARDED_MAP_H

#include <cuatomic/group.h>
#include <cuatomic/hashmap.h>

struct cua_sharded_map;

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates an empty map in the memory of all contexts of the group, which must outlive it. `capacity` is
 * the number of keys of all ranks together. Each shard has room for its share of them and for the
 * deviation of random shares: 8 times the square root of the share. So random keys fit, up to the
 * capacity, with a probability of more than 1 - 1e-14 for each rank. options and types are those of
 * cua_hashmap_create, and so is a seed of 0: rank 0 draws the seed of the owners, and each process draws
 * the seed of its shards. For direct calls each GPU has a second context and stream.
 * Errors: as cua_hashmap_create; VALUE (ranks that differ in an argument); UNSUPPORTED (own_hash);
 *   errors of the transport.
 */
CUA_API enum cua_status cua_sharded_map_create(struct cua_group *group,
					       const struct cua_hashmap_options *options,
					       enum cua_type key_type, enum cua_type value_type,
					       uint64_t capacity, struct cua_sharded_map **map);
/* Frees the map after the local ranks have finished with it. NULL is allowed. Local. */
CUA_API void cua_sharded_map_destroy(struct cua_sharded_map *map);

/*
 * The shard of local rank i: a map for all calls that do not change its keys, for views in kernels, and
 * for statistics. NULL if there is no such rank. Local.
 */
CUA_API struct cua_hashmap *cua_sharded_map_shard(const struct cua_sharded_map *map, uint32_t i);
/* The rank that owns the key, which has the map's key size, at any address. Local. Errors: NULL. */
CUA_API enum cua_status cua_sharded_map_owner(const struct cua_sharded_map *map, const void *key,
					      uint32_t *rank);

/*
 * Gets the largest workspace in bytes of the bulk calls in each context, if no rank passes more than n
 * elements: for cua_context_reserve. Local. A call takes the workspace if it can have it; if there is no
 * memory, the call is slower.
 * Errors: NULL, SIZE.
 */
CUA_API enum cua_status cua_sharded_map_workspace(const struct cua_sharded_map *map, size_t n,
						  size_t *bytes);

/* Clears all keys, the status FULL and the rejected pairs. Errors: NULL. */
CUA_API enum cua_status cua_sharded_map_clear(struct cua_sharded_map *map);

/*
 * The bulk calls of cuatomic/hashmap.h on the keys of all ranks; results[i][k] is an enum
 * cua_hashmap_result. values and results may be NULL as there, on all ranks or on none. If they are not NULL,
 * they have an array for each local rank with keys. find_n leaves the values of absent keys unchanged.
 *
 * update_n without results combines the pairs with equal keys on each rank before they go to their owners: on a
 * GPU under the same conditions as cua_hashmap_update_n, on the CPU if they are near each other or frequent. So
 * it reduces by key over all ranks: CUA_UPDATE_ADD adds up the integers of each key.
 *
 * Errors: NULL, VALUE (unknown op; ranks that differ in a call or in arrays that are NULL), TYPE (a set,
 *   for calls with values), SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another array of its rank,
 *   or of a local rank), UNSUPPORTED (erase_n of a map with no_erase), CAPTURE, NO_MEMORY, CUDA; errors of
 *   the transport.
 */
CUA_API enum cua_status cua_sharded_map_build_n(struct cua_sharded_map *map, const size_t *n,
						const void *const *keys, const void *const *values,
						uint8_t *const *results);
CUA_API enum cua_status cua_sharded_map_insert_n(struct cua_sharded_map *map, const size_t *n,
						 const void *const *keys, const void *const *values,
						 uint8_t *const *results);
CUA_API enum cua_status cua_sharded_map_assign_n(struct cua_sharded_map *map, const size_t *n,
						 const void *const *keys, const void *const *values,
						 uint8_t *const *results);
CUA_API enum cua_status cua_sharded_map_update_n(struct cua_sharded_map *map, enum cua_update op,
						 const size_t *n, const void *const *keys,
						 const void *const *values,
						 uint8_t *const *results);
CUA_API enum cua_status cua_sharded_map_find_n(struct cua_sharded_map *map, const size_t *n,
					       const void *const *keys, void *const *values_out,
					       uint8_t *const *found);
CUA_API enum cua_status cua_sharded_map_contains_n(struct cua_sharded_map *map, const size_t *n,
						   const void *const *keys, uint8_t *const *found);
CUA_API enum cua_status cua_sharded_map_erase_n(struct cua_sharded_map *map, const size_t *n,
						const void *const *keys, uint8_t *const *found);

/* Sets *size to the number of keys of all ranks; host memory. Errors: NULL, CAPTURE, CUDA. */
CUA_API enum cua_status cua_sharded_map_size(struct cua_sharded_map *map, uint64_t *size);

/* FULL if a rank rejected a key since the last clear. Other errors: NULL, CAPTURE, CUDA. */
CUA_API enum cua_status cua_sharded_map_status(struct cua_sharded_map *map);

/*
 * cua_hashmap_retrieve of each local shard: pairs that rank i owns go to keys_out[i] and values_out[i], at
 * most max[i] of them, and n[i] is set to their number. keys_out and values_out may be NULL if all max
 * are 0, values_out also for a set. n is host memory, so the call waits. SORTED sorts the pairs of a
 * shard.
 * Errors: as cua_hashmap_retrieve.
 */
CUA_API enum cua_status cua_sharded_map_retrieve(struct cua_sharded_map *map,
						 enum cua_hashmap_order order, const uint64_t *max,
						 void *const *keys_out, void *const *values_out,
						 uint64_t *n);

/*
 * save writes a file for each shard, as cua_hashmap_save, and a manifest at `path`. A shard is at `path`
 * with a random id of the save and a rank appended: path.0123456789abcdef.0. The manifest is replaced as a
 * whole or not at all, after all shards have been written; then the shards of the earlier manifest are
 * removed. All processes must pass the same path, to a folder that they share.
 *
 * load creates a map from such files, for any number of ranks and on any backend: each rank reads some of
 * the shards and sends their pairs to the owners. The map has the capacity of the saved map and, if options
 * is NULL, its options without the seed. The limit options->max_bytes is that of each shard. Both calls
 * wait for the streams.
 * Errors: those of cua_hashmap_save and cua_hashmap_load. A shard that is missing is SYSTEM, with ENOENT
 *   in the process that misses it. CORRUPT: also a shard of another save, or a key in two shards. VALUE:
 *   processes that read different manifests. SIZE: the keys do not fit, which random keys do.
 */
CUA_API enum cua_status cua_sharded_map_save(struct cua_sharded_map *map, const char *path);
CUA_API enum cua_status cua_sharded_map_load(struct cua_group *group,
					     const struct cua_hashmap_options *options,
					     const char *path, struct cua_sharded_map **map);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_SHARDED_MAP_H */
