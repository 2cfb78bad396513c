/* SPDX-License-Identifier: MIT */
/*
 * The host's part of a hash map: the struct behind a handle, and the functions that its files
 * share. A file calls only files in lower rows:
 *
 *  hashmap_file.c           save and load
 *  hashmap.c                life and bulk calls
 *  hashmap_ops.c            calls on a whole map
 *  hashmap_resize.c         resize and growth
 *  hashmap_memory.c         layout, memory, and the overlap of arrays
 */
#ifndef CUATOMIC_LIB_HASHMAP_HOST_H
#define CUATOMIC_LIB_HASHMAP_HOST_H

#include "backend/hashmap_backend.h"

struct cua_hashmap {
	struct cua_context *ctx;
	struct cua_hashmap_view view;
	struct cua_hashmap_options options;
	/*
	 * A single allocation: counts and reserved slots, buckets, rejected pairs. All is zero at
	 * first, except the room of the rejected pairs.
	 */
	char *base;
	size_t bytes;   /* in total */
	size_t cleared; /* leading bytes that are zero in an empty map */
};

/*
 * Computes layout, sizes and bytes of map->view for this capacity, from the options and the pair
 * sizes.
 */
enum cua_status cua__hashmap_lay_out(struct cua_hashmap *map, uint64_t capacity);
/* Allocates the memory that lay_out computed, as an empty map. Waits for the stream. */
enum cua_status cua__hashmap_allocate(struct cua_hashmap *map);
/* Empties the map, in stream order. */
enum cua_status cua__hashmap_empty(struct cua_hashmap *map);
/*
 * Runs the backend's build or, without it, a clear and a write. `empty`: the map is empty already.
 */
enum cua_status cua__hashmap_build(struct cua_hashmap *map, int empty,
				   const struct cua__hashmap_call *call);

/* A user's array argument: its address, its backend address and its bytes. */
struct cua__hashmap_array {
	const void *user;
	const void *backend;
	size_t bytes;
};

enum cua_status cua__hashmap_check(const struct cua_hashmap *map, const void *p, size_t n,
				   size_t size, struct cua__hashmap_array *a);
int cua__hashmap_overlap(const struct cua__hashmap_array *a, const struct cua__hashmap_array *b);
int cua__hashmap_in_map(const struct cua_hashmap *map, const struct cua__hashmap_array *a);

/* A bulk write; pointers are backend addresses. */
typedef enum cua_status cua__hashmap_bulk_fn(struct cua_context *ctx,
					     const struct cua_hashmap_view *view,
					     const struct cua__hashmap_call *call);
/*
 * The bulk write of a map that grows: reserves room before each batch of elements. Waits for the
 * stream.
 */
enum cua_status cua__hashmap_write_growing(struct cua_hashmap *map, int builds,
					   const struct cua__hashmap_call *call);

uint64_t cua__hashmap_slots(const struct cua_hashmap_view *view);

/* A host copy of the memory before the buckets. */
struct cua__hashmap_front {
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	struct cua_u128 reserved_slots[2];
	uint64_t in_slots, keys; /* keys in reserved slots included */
	uint64_t kept;           /* rejected pairs that are kept */
};

/* Waits for the stream. */
enum cua_status cua__hashmap_read_front(struct cua_hashmap *map, struct cua__hashmap_front *f);

/* A pass that copies the pairs of a map to the host in batches of slots. */
struct cua__hashmap_pass {
	struct cua_hashmap *map;
	uint64_t place;      /* first slot of the next batch */
	uint64_t room;       /* slots per batch */
	uint64_t n;          /* pairs in this batch */
	char *keys, *values; /* host memory with these pairs */
	int cancel;          /* the thread's cancellation state before the pass */
};

/*
 * Begins a pass and disables cancellation of the thread. Call pass_end afterwards, also after an
 * error.
 */
enum cua_status cua__hashmap_pass_begin(struct cua__hashmap_pass *pass, struct cua_hashmap *map);
/* Copies the next batch; *more is 0 if there is none. */
enum cua_status cua__hashmap_pass_next(struct cua__hashmap_pass *pass, int *more);
void cua__hashmap_pass_end(struct cua__hashmap_pass *pass);

/* Inserts pairs from host memory. Waits for the stream. */
enum cua_status cua__hashmap_insert_from_host(struct cua_hashmap *map, uint64_t n, const void *keys,
					      const void *values);

/*
 * Opens a regular file to read, without waiting. Errors: SYSTEM; EISDIR or EINVAL if the path leads to
 * anything else.
 */
enum cua_status cua__open_file(const char *path, int *fd, uint64_t *bytes);
/* Reads n bytes. Errors: SYSTEM, CORRUPT (the file ends earlier). */
enum cua_status cua__read_all(int fd, void *bytes, size_t n);

/* The type of keys or values of a saved map; NONE for another size. */
static inline enum cua_type cua__hashmap_type_of(uint32_t size)
{
	return size == 4 ? CUA_U32 : size == 8 ? CUA_U64 : size == 16 ? CUA_U128 : CUA_NONE;
}

/*
 * The pairs of a file of save, in batches. Errors: those of load. next sets n pairs at keys and values, 0
 * at the end; there it compares the checksum of the pairs.
 */
struct cua__hashmap_reader {
	int fd;
	uint32_t key_size, value_size;
	uint64_t count, slots, file_sum; /* file_sum is different for each file */
	size_t n, most;
	char *keys, *values;
	char *bytes; /* NULL: not open */
	uint64_t done, sum, pairs_sum;
};
enum cua_status cua__hashmap_reader_open(struct cua__hashmap_reader *r, const char *path);
enum cua_status cua__hashmap_reader_next(struct cua__hashmap_reader *r);
/* Keeps errno. */
void cua__hashmap_reader_close(struct cua__hashmap_reader *r);

#endif /* CUATOMIC_LIB_HASHMAP_HOST_H */
