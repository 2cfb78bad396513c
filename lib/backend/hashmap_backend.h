/* SPDX-License-Identifier: MIT */
/* The backend interface of the hash map. */
#ifndef CUATOMIC_BACKEND_HASHMAP_BACKEND_H
#define CUATOMIC_BACKEND_HASHMAP_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The operation of a write on a key that is present: INSERT, ASSIGN, or a value of enum cua_update.
 */
#define CUA__HASHMAP_INSERT 16
#define CUA__HASHMAP_ASSIGN 17

/* The most pairs whose equal keys a GPU combines at once. */
#define CUA__HASHMAP_MOST_COMBINED ((uint64_t)1 << 27)

/* A bulk call. Pointers are backend addresses, or NULL for absent arrays. */
struct cua__hashmap_call {
	int op;
	size_t n;
	const void *keys, *values;
	struct cua_u128 value; /* the value for every key, if `values` is NULL */
	/*
	 * INSERT: the value after the call; ASSIGN: the previous value; find: the value;
	 * compare_exchange: expected values
	 */
	void *values_out;
	uint8_t *flags; /* results, or found */
};

/* The most sources of a find in regions. */
#define CUA__HASHMAP_SOURCES 16u
/* Keys of a source and a region that a block finds together. */
#ifndef CUA__HASHMAP_UNIT
#define CUA__HASHMAP_UNIT 512u
#endif

/*
 * A find of keys in the memory of several sources. The keys of a region of a source are adjacent, and their
 * answers have the same places. Blocks find a unit of each source in turn, region by region.
 */
struct cua__hashmap_sources {
	uint32_t sources, regions;
	/* the source of the first unit; owners differ in it, so that no source serves all of them at once */
	uint32_t first;
	uint64_t share; /* the keys of all sources divided by the owners */
	/* of each source: the keys of each region, and where they begin, a multiple of 32 */
	const uint32_t *counts[CUA__HASHMAP_SOURCES], *starts[CUA__HASHMAP_SOURCES];
	const void *keys[CUA__HASHMAP_SOURCES];
	void *values_out[CUA__HASHMAP_SOURCES]; /* may be NULL */
	uint32_t *found[CUA__HASHMAP_SOURCES];  /* a bit for each key */
	/*
	 * memory of the call: the units before each region and in all; and for each region and source, the
	 * count and the start
	 */
	uint32_t *units, *extents;
};

struct cua__hashmap_ops {
	enum cua_status (*write)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_call *call);
	/*
	 * Replaces the contents of the map; the call has no results. UNSUPPORTED, without any
	 * effect, if a clear and a write are as fast. The pointer may be NULL.
	 */
	enum cua_status (*build)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_call *call);
	/*
	 * upper bound on the workspace bytes of build, and of an insert by write without results,
	 * for n pairs
	 */
	size_t (*build_scratch)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				size_t n);
	enum cua_status (*find)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				const struct cua__hashmap_call *call);
	enum cua_status (*find_regions)(struct cua_context *ctx,
					const struct cua_hashmap_view *view,
					const struct cua__hashmap_sources *sources);
	enum cua_status (*erase)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_call *call);
	enum cua_status (*compare_exchange)(struct cua_context *ctx,
					    const struct cua_hashmap_view *view,
					    const struct cua__hashmap_call *call);
	enum cua_status (*size)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t *size);
};

/* A stable sort by key of min(*n, max) pairs in place. */
struct cua__hashmap_sort {
	uint32_t key_size, value_size;
	uint64_t max; /* > 0 */
	const uint64_t *n;
	void *keys, *values;
	void *scratch; /* sort_scratch() bytes */
};

/* The last bin of the probe histogram: this length and longer. */
#define CUA__HASHMAP_FAR 31u

/* Statistics of a pass over a map. */
struct cua__hashmap_tally {
	uint64_t probes[CUA__HASHMAP_FAR + 1];
	uint64_t erased;
	uint64_t worst; /* most keys with the same home bucket */
};

/* Operations on a whole map. */
struct cua__hashmap_whole_ops {
	/* *n is 0 before the call */
	enum cua_status (*retrieve)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n);
	size_t (*sort_scratch)(struct cua_context *ctx, uint32_t key_size, uint32_t value_size,
			       uint64_t max);
	enum cua_status (*sort)(struct cua_context *ctx, const struct cua__hashmap_sort *sort);
	/*
	 * if *sort->n > sort->max: retrieves the sort->max pairs with the least keys, in any order
	 */
	enum cua_status (*least)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_sort *sort);
	/* retrieves the kept rejected pairs; *n is the number of rejections */
	enum cua_status (*rejected)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n);
	/*
	 * inserts all pairs of a map into another map with the same key and value sizes, by
	 * operation `op`
	 */
	enum cua_status (*move)(struct cua_context *ctx, const struct cua_hashmap_view *from,
				const struct cua_hashmap_view *to, int op);
	/*
	 * Retrieves the pairs in slots first to first + places - 1; the outputs have room for all.
	 * *n is 0 before the call.
	 */
	enum cua_status (*slice)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint64_t first, uint64_t slots, void *keys_out, void *values_out,
				 uint64_t *n);
	/* *tally and homes[n_buckets] are zero before the call */
	enum cua_status (*tally)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint32_t *homes, struct cua__hashmap_tally *tally);
};

/* The CPU's write, serial on the calling thread. */
void cua__cpu_hashmap_write_serial(const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *call);
/* CASE(ks, vs) for all key and value sizes. */
/* clang-format off */
#define CUA__HASHMAP_SIZES(CASE)                                                                   \
	CASE(4, 0) CASE(4, 4) CASE(4, 8) CASE(4, 16)                                               \
	CASE(8, 0) CASE(8, 4) CASE(8, 8) CASE(8, 16)                                               \
	CASE(16, 0) CASE(16, 4) CASE(16, 8) CASE(16, 16)
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_HASHMAP_BACKEND_H */
