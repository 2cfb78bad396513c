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
	enum cua_status (*erase)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_call *call);
	enum cua_status (*compare_exchange)(struct cua_context *ctx,
					    const struct cua_hashmap_view *view,
					    const struct cua__hashmap_call *call);
	enum cua_status (*size)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t *size);
	/* *n is 0 before the call */
	enum cua_status (*retrieve)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n);
	const struct cua__hashmap_whole_ops *whole;
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
				 uint64_t first, uint64_t places, void *keys_out, void *values_out,
				 uint64_t *n);
	/* *tally and homes[n_buckets] are zero before the call */
	enum cua_status (*tally)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint32_t *homes, struct cua__hashmap_tally *tally);
};

extern const struct cua__hashmap_whole_ops cua__cpu_hashmap_whole, cua__cuda_hashmap_whole;

/* The CPU's write, serial on the calling thread. */
void cua__cpu_hashmap_write_serial(const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *call);
/* The CPU backend's retrieve. */
enum cua_status cua__cpu_hashmap_retrieve(struct cua_context *ctx,
					  const struct cua_hashmap_view *view, uint64_t max,
					  void *keys_out, void *values_out, uint64_t *n);

/* ---- host side ---- */

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

/* CASE(ks, vs) for all key and value sizes. */
/* clang-format off */
#define CUA__HASHMAP_SIZES(CASE)                                                                   \
	CASE(4, 0) CASE(4, 4) CASE(4, 8) CASE(4, 16)                                               \
	CASE(8, 0) CASE(8, 4) CASE(8, 8) CASE(8, 16)                                               \
	CASE(16, 0) CASE(16, 4) CASE(16, 8) CASE(16, 16)
/* clang-format on */

/* Element i of an array of keys or values. */
CUA_FORCE struct cua_u128 cua__hashmap_get(const void *array, uint32_t size, uint64_t i)
{
	struct cua_u128 v = {0, 0};

	if (size == 4)
		v.lo = ((const uint32_t *)array)[i];
	else if (size == 8)
		v.lo = ((const uint64_t *)array)[i];
	else if (size == 16)
		v = ((const struct cua_u128 *)array)[i];
	return v;
}

CUA_FORCE void cua__hashmap_set(void *array, uint32_t size, uint64_t i, struct cua_u128 v)
{
	if (size == 4)
		((uint32_t *)array)[i] = (uint32_t)v.lo;
	else if (size == 8)
		((uint64_t *)array)[i] = v.lo;
	else if (size == 16)
		((struct cua_u128 *)array)[i] = v;
}

/*
 * A write of the key with this hash. *there gets the value that values_out describes for INSERT and
 * ASSIGN. `op` is not a constant, so all operations share the code.
 */
CUA_FORCE int cua__hashmap_write(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				 int op, uint64_t hash, struct cua_u128 key, struct cua_u128 value,
				 struct cua_u128 *there)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

	*there = value;
	for (;;) {
		int changed,
			result = cua__hashmap_enter(view, ks, vs, hash, key, NULL, value, &spot);

		if (result != CUA_HASHMAP_EXISTS)
			return result;
		*there = spot.value;
		if (op == CUA__HASHMAP_INSERT)
			return result;
		do {
			struct cua_u128 desired = value;

			*there = spot.value;
			if (op != CUA__HASHMAP_ASSIGN)
				desired = cua__hashmap_combine(spot.value, value, vs,
							       (enum cua_update)op);
			/* an update that changes nothing takes effect at the read of the value */
			changed = cua__hashmap_same(desired, spot.value)
					  ? 1
					  : cua__hashmap_change(view, ks, vs, hash, key, NULL,
								&spot, desired);
		} while (!changed);
		if (changed > 0)
			return result;
	}
}

/* The number of reserved slots in use. */
CUA_FORCE uint64_t cua__hashmap_cells_used(const struct cua_hashmap_view *view)
{
	const uint64_t *cells =
		(const uint64_t *)(const void *)(view->counts + CUA_HASHMAP_STRIPES);

	/* the low half of a used reserved slot is never 0 */
	return (uint64_t)(cua_port_load_b64(cells, CUA_RELAXED, CUA__HASHMAP_AT) != 0) +
	       (cua_port_load_b64(cells + 2, CUA_RELAXED, CUA__HASHMAP_AT) != 0);
}

/* The number of keys, from the counts. */
CUA_FORCE uint64_t cua__hashmap_count(const struct cua_hashmap_view *view)
{
	uint64_t n = cua__hashmap_cells_used(view);

	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		n += cua_port_load_b64(&view->counts[i].inserted, CUA_RELAXED, CUA__HASHMAP_AT) -
		     cua_port_load_b64(&view->counts[i].erased, CUA_RELAXED, CUA__HASHMAP_AT);
	return n;
}

/* The number of kept rejected pairs; *all is the number of rejections. */
CUA_FORCE uint64_t cua__hashmap_kept(const struct cua_hashmap_view *view, uint64_t *all)
{
	uint64_t n = 0;

	if (view->rejects) {
		*all = view->rejects->count;
		return *all < view->rejects->room ? *all : view->rejects->room;
	}
	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		n += view->counts[i].rejected;
	*all = n;
	return 0;
}

/* The distance of the key in slot `place` from its home bucket, FAR at most. */
CUA_FORCE uint32_t cua__hashmap_distance(const struct cua_hashmap_view *view, uint32_t ks,
					 uint32_t vs, uint64_t place, struct cua_u128 key,
					 uint64_t *home)
{
	uint64_t hash = cua__hashmap_hash(view, ks, key), bucket, d;

	*home = cua_hash_to_index(hash, view->n_buckets);
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs)) {
		const uint32_t slots = cua__hashmap_state_slots(ks, vs);

		bucket = place / slots;
		d = bucket >= *home ? bucket - *home : bucket + view->n_buckets - *home;
		/*
		 * a slot before the home slot in the home bucket: the probe sequence wrapped around
		 */
		if (!d && place % slots < cua__hashmap_state_home(view, ks, vs, hash).slot)
			d = view->n_buckets;
		return d < CUA__HASHMAP_FAR ? (uint32_t)d : CUA__HASHMAP_FAR;
	}
	bucket = place / cua__hashmap_word_slots(ks, vs);
	if (bucket >= view->n_buckets || place >= view->n_buckets * cua__hashmap_word_slots(ks, vs))
		return 0;
	for (d = 0; d < CUA__HASHMAP_FAR; d++)
		if (cua__hashmap_word_probe(view, *home, hash, d) == bucket)
			break;
	return (uint32_t)d;
}

/* Whether the slot is closed and holds no key. */
CUA_FORCE int cua__hashmap_is_erased(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				     uint64_t place)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;

	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs) || place >= view->n_buckets * slots)
		return 0;
	return cua__hashmap_same(
		cua__hashmap_word_load(cua__hashmap_word_bucket(view, place / slots) +
					       (place % slots + 1) * size,
				       wide, CUA_ACQUIRE),
		cua__hashmap_word_erased(ks, vs));
}

/* ---- sorting: a pass for each byte in which keys differ, lowest byte first ---- */

#define CUA__HASHMAP_DIGITS 256u

CUA_FORCE uint32_t cua__hashmap_digit(struct cua_u128 v, uint32_t pass)
{
	return (uint32_t)((pass < 8 ? v.lo >> 8 * pass : v.hi >> 8 * (pass - 8)) & 255);
}

/*
 * Search for the max-th least key, a digit per pass, highest digit first. Each pass counts the next
 * digits of the keys that share the prefix found so far. Starts as zeros.
 */
struct cua__hashmap_least {
	struct cua_u128
		key;    /* the digits found; the rest are 0, or 255 after the end of the search */
	uint64_t below; /* keys below this prefix */
	uint64_t done;  /* 1: exactly max keys are <= key */
	uint64_t given; /* pairs written */
	uint64_t counts[CUA__HASHMAP_DIGITS];
};

/* Whether the keys agree in all digits above that of this pass. */
CUA_FORCE int cua__hashmap_same_prefix(struct cua_u128 a, struct cua_u128 b, uint32_t pass)
{
	if (pass >= 8)
		return !((a.hi ^ b.hi) >> 8 * (pass - 8) >> 8);
	return a.hi == b.hi && !((a.lo ^ b.lo) >> 8 * pass >> 8);
}

/*
 * Appends the digit of a pass to the key. Of the keys with the prefix, `below` have a lower digit
 * and `here` have this digit. If the max-th key is the last of the latter, the remaining digits do
 * not matter.
 */
CUA_FORCE void cua__hashmap_least_digit(struct cua__hashmap_least *least, uint64_t max,
					uint32_t pass, uint32_t digit, uint64_t below,
					uint64_t here)
{
	uint64_t bits = (uint64_t)digit << 8 * (pass % 8);

	least->below += below;
	least->done = max - least->below == here;
	if (least->done)
		bits |= ((uint64_t)1 << 8 * (pass % 8)) - 1;
	if (pass < 8) {
		least->key.lo |= bits;
	} else {
		least->key.hi |= bits;
		if (least->done)
			least->key.lo = ~(uint64_t)0;
	}
}

/*
 * The passes before this pass that sort, by bytes that differ. Their parity tells which array has
 * the pairs.
 */
CUA_FORCE uint32_t cua__hashmap_passes(struct cua_u128 differ, uint32_t pass)
{
	uint32_t n = 0, i;

	for (i = 0; i < pass; i++)
		n += cua__hashmap_digit(differ, i) != 0;
	return n;
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_HASHMAP_BACKEND_H */
