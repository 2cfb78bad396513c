/* SPDX-License-Identifier: MIT */
/* A sharded map, and calls on all of its shards. */
#ifndef CUATOMIC_GROUP_SHARDED_INTERNAL_H
#define CUATOMIC_GROUP_SHARDED_INTERNAL_H

#include <cuatomic/sharded_map.h>

#include "backend/shard_backend.h"
#include "group/group_internal.h"
#include "hashmap_host.h"

/* The part of a local rank. */
struct cua__shard_of_rank {
	struct cua_hashmap *table;
	/* memory of the context: a piece in the order of its owners, and received pairs */
	char *memory;
	char *keys_part, *values_part, *results_part, *keys_in, *values_in, *results_in;
	uint32_t *index, *counts, *cursors;
	/* host memory: the pairs that go to each rank, and where they begin; the pairs from each rank */
	uint32_t *to, *first, *from;
	/* of a call: backend addresses, the length, and the piece of this round */
	const char *keys, *values;
	char *values_out;
	uint8_t *results;
	size_t n, done;
	struct {
		const char *keys, *values;
		size_t n;
	} all; /* of an update in parts */
	uint32_t piece;
	struct cua__shard job;
	size_t received; /* pairs of this exchange */
};

struct cua_sharded_map {
	struct cua_group *group;
	/*
	 * of direct builds: contexts of the same devices, with side streams; `group` itself if the backend
	 * has no streams; NULL without direct calls
	 */
	struct cua_group *side;
	/* host memory that GPUs write: what a direct insert or update of each rank leaves */
	struct cua__shard_late *late;
	uint64_t seed, capacity;
	uint32_t number; /* of the group's maps */
	uint32_t key_size, value_size, no_erase;
	uint32_t piece, slice;
	struct cua__shard_of_rank *shards;
	struct cua__group_traffic traffic;
	struct cua__kept kept;
	uint32_t (*told)[2], (*tell)[2]; /* with a transport: counts and exchanges, of each rank */
};

enum cua__sharded_call {
	CUA__SHARDED_BUILD,
	CUA__SHARDED_INSERT,
	CUA__SHARDED_ASSIGN,
	CUA__SHARDED_UPDATE,
	CUA__SHARDED_FIND,
	CUA__SHARDED_CONTAINS,
	CUA__SHARDED_ERASE,
	CUA__SHARDED_SIZE,
	CUA__SHARDED_STATUS,
	CUA__SHARDED_CLEAR,
	CUA__SHARDED_RETRIEVE,
	CUA__SHARDED_SAVE,
	CUA__SHARDED_LOAD
};

/* A bulk call. */
struct cua__sharded_bulk {
	enum cua__sharded_call call;
	enum cua_update op;
	const size_t *n;
	const void *const *keys, *const *values;
	void *const *values_out;
	uint8_t *const *results;
};

/* The most pairs of a rank, by the records of the ranks. */
static inline uint64_t cua__sharded_most(const struct cua_sharded_map *m)
{
	uint64_t most = 0;

	for (uint32_t r = 0; r < m->group->size; r++)
		most = m->group->records[r].n > most ? m->group->records[r].n : most;
	return most;
}

/* Whether owners send something back. */
static inline int cua__sharded_is_answered(const struct cua__sharded_bulk *b)
{
	return b->call == CUA__SHARDED_FIND || b->results;
}

/* Sets *at to the next `bytes` bytes, in units of 256; measures only if base is NULL. */
static inline void cua__lay(char *base, size_t *used, size_t bytes, void *at)
{
	if (base)
		*(void **)at = base + *used;
	*used += cua__scratch_size(bytes);
}

/* The bulk call of a table on n pairs, in memory of its context. */
enum cua_status cua__sharded_work(struct cua_hashmap *table, const struct cua__sharded_bulk *b,
				  size_t n, const void *keys, const void *values, void *values_out,
				  uint8_t *results);

/*
 * The call in rounds, on the arrays that the shards have; no rank has more than `most` pairs, and `status` is
 * that of this process so far. Returns the status of all ranks.
 */
enum cua_status cua__sharded_rounds(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				    uint64_t most, enum cua_status status);

/* The workspace of direct calls in each context, if no rank has more than `most` pairs. */
size_t cua__sharded_direct_bytes(const struct cua_sharded_map *m, uint64_t most);

/* The workspaces of the local ranks. */
struct cua__workspaces {
	struct cua__call calls[CUA__SHARD_DIRECT_RANKS];
	char *memory[CUA__SHARD_DIRECT_RANKS];
	uint32_t begun;
};

/* Takes a workspace of each local rank, at most DIRECT_RANKS. Returns 0 if a rank has no memory. */
int cua__sharded_take(struct cua_group *g, struct cua__workspaces *w, size_t bytes);
/* Gives the workspaces back, also after cua__sharded_take has returned 0. */
enum cua_status cua__sharded_give_back(struct cua__workspaces *w, enum cua_status status);

/* Whether ranks try to combine the equal keys of a call, with at most `most` pairs of a rank. */
int cua__sharded_combines(const struct cua__sharded_bulk *b, uint64_t most);

/* An update in rounds whose equal keys are combined first. Returns the status of all ranks. */
enum cua_status cua__sharded_update(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				    uint64_t most);

/* The most pairs of a rank in a part of an update. */
uint64_t cua__sharded_part(uint64_t most);

/* The work of a part, on the arrays that the shards have, at most `most` pairs of each. */
typedef enum cua_status cua__sharded_part_fn(struct cua_sharded_map *m,
					     const struct cua__sharded_bulk *b, uint64_t most,
					     void *arg);

/* Calls fn for the parts of an update, one after the other. Returns the least status. */
enum cua_status cua__sharded_in_parts(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				      uint64_t most, cua__sharded_part_fn *fn, void *arg);

/* The workspace of cua__sharded_update in each context, besides that of the rounds. */
size_t cua__sharded_combine_bytes(const struct cua_sharded_map *m, uint64_t most);

/* Opens and closes `side`. */
enum cua_status cua__sharded_direct_open(struct cua_sharded_map *m);
void cua__sharded_direct_close(struct cua_sharded_map *m);

/*
 * The call by ranks that access each other's memory, on the arrays that the shards have. Sets *done to 0,
 * without any effect, if the call must go in rounds.
 */
enum cua_status cua__sharded_direct(struct cua_sharded_map *m, const struct cua__sharded_bulk *b,
				    int *done);

/* The work of a call on the shard of local rank i; *number is a number that all ranks will see. */
typedef enum cua_status cua__shard_fn(struct cua_hashmap *table, uint32_t i, void *arg,
				      uint64_t *number);

/*
 * Calls fn for each local shard; m may be NULL. Returns the least status of all ranks. Afterwards the
 * records of all ranks in the group have their numbers.
 */
enum cua_status cua__for_shards(struct cua_sharded_map *m, enum cua__sharded_call call,
				cua__shard_fn *fn, void *arg);

#endif /* CUATOMIC_GROUP_SHARDED_INTERNAL_H */
