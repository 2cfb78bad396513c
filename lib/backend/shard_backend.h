/* SPDX-License-Identifier: MIT */
/*
 * The backend interface of sharded maps: pairs are sorted by their owners, and answers return. Ranks of a
 * process may also access pairs in each other's memory (group/sharded_direct.c).
 */
#ifndef CUATOMIC_BACKEND_SHARD_BACKEND_H
#define CUATOMIC_BACKEND_SHARD_BACKEND_H

#include "backend/hashmap_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of a call's pairs. Addresses are backend memory. */
struct cua__shard {
	uint64_t seed; /* of the hash that chooses the owner */
	uint32_t ranks, key_size, value_size;
	uint32_t n;
	const void *keys, *values;
	/* the pairs in the order of their owners; values and values_out may be NULL */
	void *keys_out, *values_out;
	uint32_t *index;   /* the place of each of these in the piece; may be NULL */
	uint32_t *counts;  /* of each rank */
	uint32_t *cursors; /* of each rank: where its pairs begin in the output */
};

/* Answers to a piece's keys, in the order of their owners. */
struct cua__shard_answers {
	uint32_t n, value_size;
	const uint32_t *index;
	const uint8_t *results;
	const void *values; /* may be NULL */
	uint8_t *results_out;
	/* an answer without a result leaves its value unchanged; both may be NULL */
	void *values_out;
};

/* The most ranks that access each other's memory. */
#define CUA__SHARD_DIRECT_RANKS CUA__HASHMAP_SOURCES

/* What a direct call of a rank leaves for later steps, or for rounds. */
struct cua__shard_late {
	/* inserts: pairs without room at their owners; updates: not 0 if no pair was sent */
	uint64_t spilled;
	uint64_t listed; /* received pairs that went to the table's spill list */
	/* inserts: not 0 if the rank has pairs with the reserved keys 0 and 1, and a value of each */
	uint32_t taken[2];
	uint64_t values[2];
};

enum cua__shard_direct_call { CUA__SHARD_INSERT, CUA__SHARD_BUILD, CUA__SHARD_UPDATE };

/*
 * A call whose pairs are divided by owner first. An update combines equal keys and writes the pairs into the
 * memory of their owners; of an insert or a build, the owners read the pairs. The tables of all ranks have
 * the same seeds, layout and number of buckets.
 */
struct cua__shard_direct {
	uint32_t ranks, rank;
	enum cua__shard_direct_call call;
	enum cua_update op;                  /* of an update */
	uint64_t seed;                       /* of the hash that chooses the owner */
	const struct cua_hashmap_view *view; /* of the table of this rank */
	const void *keys, *values;
	uint64_t n, most; /* pairs of this rank, and the most of any rank */
	/*
	 * memory of each rank, direct_bytes() bytes; it begins with a struct cua__shard_late, and
	 * spill_room is the room for listed pairs of an insert
	 */
	char *memory[CUA__SHARD_DIRECT_RANKS];
	uint64_t spill_room;
	/*
	 * of a build, set by direct_bytes(): the units that are copied, and 1 if the pairs have two parts;
	 * unit 0 is then the first part
	 */
	uint32_t units, early;
};

/* The most bins of a direct find. */
#ifndef CUA__SHARD_BINS
#define CUA__SHARD_BINS 1024u
#endif

/* The most keys of a tile. */
#define CUA__SHARD_MOST_TILE 8192u

/* The position of a key in its tile. */
#ifndef CUA__SHARD_OFFSET
#define CUA__SHARD_OFFSET uint16_t
#endif

/*
 * The keys of a rank in a direct find, in bins in the memory of the rank. Bin b has the keys of region b % regions
 * of owner b / regions. A region is a range of home buckets, so that an owner finds keys of few buckets at a
 * time. A tile of keys is sorted by bin before it is written, and has a run of adjacent keys in each bin.
 */
struct cua__shard_find {
	/* of the rank's table: regions depend on its hash and buckets */
	struct cua_hashmap_view view;
	uint64_t seed;                  /* of the hash that chooses the owner */
	uint32_t ranks, regions, shift; /* home bucket >> shift is the region */
	uint32_t key_size, value_size;
	uint32_t n;    /* < 2^31 */
	uint32_t tile; /* keys */
	const void *keys;
	/* of each bin: keys, where they begin, a multiple of 32, and where the next run begins */
	uint32_t *counts, *starts, *cursors;
	/* of each tile: the positions where the runs begin and the last ends; place in the bins less position */
	CUA__SHARD_OFFSET *positions;
	uint32_t *bases;
	CUA__SHARD_OFFSET *sorted; /* of each key: its bin, and later its position */
	/* the bins, with room for 32 keys more for each, and the answers in the same places */
	void *in_bins;
	void *values;
	uint32_t *found; /* a bit for each key */
	/* an absent key leaves its value unchanged; both may be NULL */
	uint8_t *found_out;
	void *values_out;
};

/* The pairs of an update, with equal keys combined before they go to their owners. Backend memory. */
struct cua__shard_combine {
	uint32_t ranks;
	const struct cua_hashmap_view *view; /* of the table of this rank */
	enum cua_update op;
	const void *keys, *values;
	uint64_t n, most; /* pairs of this rank, and the most of any rank */
	char *memory;     /* combine_bytes() */
	/* the combined pairs, in the memory, and their number; more than n if the pairs were not combined */
	const char *keys_out, *values_out;
	uint64_t *n_out;
};

struct cua__shard_ops {
	/* Adds the number of pairs that each rank owns to counts, which are 0. */
	enum cua_status (*count)(struct cua_context *ctx, const struct cua__shard *s);
	/* Writes the output; cursors are undefined afterwards. */
	enum cua_status (*place)(struct cua_context *ctx, const struct cua__shard *s);
	enum cua_status (*answer)(struct cua_context *ctx, const struct cua__shard_answers *a);
	/* Combines pairs. The bytes of memory; 0 if combining would not pay. The pointers may be NULL. */
	size_t (*combine_bytes)(struct cua_context *ctx, const struct cua__shard_combine *c);
	enum cua_status (*combine)(struct cua_context *ctx, struct cua__shard_combine *c);
	/* Writes keys to their bins, and answers to the order of the keys. */
	enum cua_status (*bin_keys)(struct cua_context *ctx, const struct cua__shard_find *f);
	enum cua_status (*take_answers)(struct cua_context *ctx, const struct cua__shard_find *f);
	/*
	 * Direct inserts, builds and updates. The bytes of memory of each rank, spill_room, units and early; 0
	 * if such a call would not pay. The pointers may be NULL.
	 */
	size_t (*direct_bytes)(struct cua_context *ctx, struct cua__shard_direct *d);
	/* Prepares the memory of the rank. */
	enum cua_status (*direct_clear)(struct cua_context *ctx, const struct cua__shard_direct *d);
	/* Divides the pairs of the rank by owner, or their first part. */
	enum cua_status (*direct_send)(struct cua_context *ctx, const struct cua__shard_direct *d);
	/* Inserts and updates: processes the pairs of all ranks, after all ranks have sent. */
	enum cua_status (*direct_receive)(struct cua_context *ctx,
					  const struct cua__shard_direct *d);
	/* Builds in two parts: divides the second part of the pairs. */
	enum cua_status (*direct_send_rest)(struct cua_context *ctx,
					    const struct cua__shard_direct *d);
	/*
	 * Builds. A unit is a slice of the regions of an owner, with the pairs of the last part; of two parts,
	 * unit 0 is the first part. Copies the pairs of a unit from the other ranks, after these have sent that
	 * part. Unit u overwrites unit u - 2; of two parts units 3 and 4 overwrite unit 0, and later ones unit u - 4.
	 * The context may be another one of the device.
	 */
	enum cua_status (*direct_pull)(struct cua_context *ctx, const struct cua__shard_direct *d,
				       uint32_t unit);
	/* Scatters the rank's own pairs into its table, after it has sent all parts. */
	enum cua_status (*direct_scatter_own)(struct cua_context *ctx,
					      const struct cua__shard_direct *d);
	/* Scatters the pairs of the other ranks in a unit into the table. */
	enum cua_status (*direct_scatter)(struct cua_context *ctx,
					  const struct cua__shard_direct *d, uint32_t unit);
	/*
	 * Builds the table's part of the slice of a unit of the last part, when all pairs of the slice are
	 * scattered. After the last unit the table is complete.
	 */
	enum cua_status (*direct_build)(struct cua_context *ctx, const struct cua__shard_direct *d,
					uint32_t unit);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_SHARD_BACKEND_H */
