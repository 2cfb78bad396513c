/* SPDX-License-Identifier: MIT */
/* What a backend does for the hash map. */
#ifndef CUATOMIC_BACKEND_HASHMAP_BACKEND_H
#define CUATOMIC_BACKEND_HASHMAP_BACKEND_H

#include "backend/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a write does where the key is there already: one of these or of enum cua_update. */
#define CUA__HASHMAP_INSERT 16
#define CUA__HASHMAP_ASSIGN 17

/* A bulk call. Arrays are as the backend addresses them; those that are not wanted are NULL. */
struct cua__hashmap_call {
	int op;
	size_t n;
	const void *keys, *values;
	struct cua_u128 value; /* of every key, for a write with no `values` */
	/* of INSERT the value afterwards, of ASSIGN the one before, of a find the value; compare_exchange: expected */
	void *values_out;
	uint8_t *flags; /* results, or found */
};

struct cua__hashmap_ops {
	enum cua_status (*write)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_call *call);
	/*
	 * in the place of all that the map has, with no results; UNSUPPORTED, which changes nothing, where clearing
	 * and a write are as good. May be NULL
	 */
	enum cua_status (*build)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_call *call);
	/* bytes of the workspace that build, or write of an insert without results, takes at most for n pairs */
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
	/* *n is 0 before */
	enum cua_status (*retrieve)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n);
	const struct cua__hashmap_whole_ops *whole;
};

/* Pairs to be sorted by key, stably: min(*n, max) of them, in place. */
struct cua__hashmap_sort {
	uint32_t key_size, value_size;
	uint64_t max; /* not 0 */
	const uint64_t *n;
	void *keys, *values;
	void *scratch; /* as large as sort_scratch said */
};

/* Probes of this length, and all longer ones. */
#define CUA__HASHMAP_FAR 31u

/* One pass over a map. */
struct cua__hashmap_tally {
	uint64_t probes[CUA__HASHMAP_FAR + 1];
	uint64_t erased;
	uint64_t worst; /* most keys of one home bucket */
};

/* What is done with a map as a whole. */
struct cua__hashmap_whole_ops {
	size_t (*sort_scratch)(struct cua_context *ctx, uint32_t key_size, uint32_t value_size,
			       uint64_t max);
	enum cua_status (*sort)(struct cua_context *ctx, const struct cua__hashmap_sort *sort);
	/* where *sort->n pairs are more than sort->max: those of the least keys, in any order */
	enum cua_status (*least)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_sort *sort);
	/* of the kept pairs; *n is how many were rejected */
	enum cua_status (*rejected)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n);
	/* writes all pairs of one map into another of the same sizes */
	enum cua_status (*move)(struct cua_context *ctx, const struct cua_hashmap_view *from,
				const struct cua_hashmap_view *to, int op);
	/* the pairs at places first to first + places - 1, for which there is room; *n is 0 before */
	enum cua_status (*slice)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint64_t first, uint64_t places, void *keys_out, void *values_out,
				 uint64_t *n);
	/* *tally and homes, of n_buckets, are zeros before */
	enum cua_status (*tally)(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint32_t *homes, struct cua__hashmap_tally *tally);
};

extern const struct cua__hashmap_whole_ops cua__cpu_hashmap_whole, cua__cuda_hashmap_whole;

/* The CPU's write on the calling thread alone. */
void cua__cpu_hashmap_write_serial(const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *call);
/* The retrieve of cua__cpu_hashmap. */
enum cua_status cua__cpu_hashmap_retrieve(struct cua_context *ctx,
					  const struct cua_hashmap_view *view, uint64_t max,
					  void *keys_out, void *values_out, uint64_t *n);

/* ---- the host's side ---- */

struct cua_hashmap {
	struct cua_context *ctx;
	struct cua_hashmap_view view;
	struct cua_hashmap_options options;
	/* one allocation: counts and cells, buckets, rejected pairs; zeros at first but for the room of these */
	char *base;
	size_t bytes;   /* of all */
	size_t cleared; /* that are zeros in an empty map */
};

/* Sizes and layout of map->view for this capacity, and the bytes, from the options and the sizes of a pair. */
enum cua_status cua__hashmap_lay_out(struct cua_hashmap *map, uint64_t capacity);
/* Memory for what lay_out says, as an empty map. Waits for the stream. */
enum cua_status cua__hashmap_provide(struct cua_hashmap *map);
/* Removes all, in stream order. */
enum cua_status cua__hashmap_empty(struct cua_hashmap *map);
/* The backend's build, or what is as good; `empty`: nothing is in the map. */
enum cua_status cua__hashmap_build(struct cua_hashmap *map, int empty,
				   const struct cua__hashmap_call *call);

/* An array argument as the user gave it, with its bytes, and as the backend addresses it. */
struct cua__hashmap_array {
	const void *user;
	const void *backend;
	size_t bytes;
};

enum cua_status cua__hashmap_check(const struct cua_hashmap *map, const void *p, size_t n,
				   size_t size, struct cua__hashmap_array *a);
int cua__hashmap_meet(const struct cua__hashmap_array *a, const struct cua__hashmap_array *b);
int cua__hashmap_in_map(const struct cua_hashmap *map, const struct cua__hashmap_array *a);

/* One bulk write with arrays as the backend addresses them. */
typedef enum cua_status cua__hashmap_bulk_fn(struct cua_context *ctx,
					     const struct cua_hashmap_view *view,
					     const struct cua__hashmap_call *call);
/* The same for a map that grows: in parts, each after the map has got room for it. Waits for the stream. */
enum cua_status cua__hashmap_write_growing(struct cua_hashmap *map, int builds,
					   const struct cua__hashmap_call *call);

uint64_t cua__hashmap_slots(const struct cua_hashmap_view *view);

/* A pass over the pairs of a map in parts, of which the host gets each. */
struct cua__hashmap_pass {
	struct cua_hashmap *map;
	uint64_t place;      /* the next part begins here */
	uint64_t room;       /* places of a part */
	uint64_t n;          /* pairs of this part, and they: */
	char *keys, *values; /* ordinary memory of the pass */
	int cancel;          /* the thread's cancelability before the pass */
};

/* Begins a pass, during which the thread is not cancelled; end it whatever happens afterwards. */
enum cua_status cua__hashmap_pass_begin(struct cua__hashmap_pass *pass, struct cua_hashmap *map);
/* The next part; *more is 0 where there was none. */
enum cua_status cua__hashmap_pass_next(struct cua__hashmap_pass *pass, int *more);
void cua__hashmap_pass_end(struct cua__hashmap_pass *pass);

/* Inserts pairs of ordinary memory. Waits for the stream. */
enum cua_status cua__hashmap_insert_from_host(struct cua_hashmap *map, uint64_t n, const void *keys,
					      const void *values);

/* CASE(ks, vs) for all sizes of keys and values. */
/* clang-format off */
#define CUA__HASHMAP_SIZES(CASE)                                                                   \
	CASE(4, 0) CASE(4, 4) CASE(4, 8) CASE(4, 16)                                               \
	CASE(8, 0) CASE(8, 4) CASE(8, 8) CASE(8, 16)                                               \
	CASE(16, 0) CASE(16, 4) CASE(16, 8) CASE(16, 16)
/* clang-format on */

/* An element of an array of keys or values. */
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
 * One write of a key with this hash; *there, with INSERT and ASSIGN, gets what values_out says. The code of all
 * operations is one, since `op` is no constant.
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
			/* what changes nothing took effect when the value was read */
			changed = cua__hashmap_same(desired, spot.value)
					  ? 1
					  : cua__hashmap_change(view, ks, vs, hash, key, NULL,
								&spot, desired);
		} while (!changed);
		if (changed > 0)
			return result;
	}
}

/* The cells of reserved keys that are in use. */
CUA_FORCE uint64_t cua__hashmap_cells_used(const struct cua_hashmap_view *view)
{
	const uint64_t *cells =
		(const uint64_t *)(const void *)(view->counts + CUA_HASHMAP_STRIPES);

	/* the low half of a cell in use is never 0 */
	return (uint64_t)(cua_port_load_b64(cells, CUA_RELAXED, CUA__HASHMAP_AT) != 0) +
	       (cua_port_load_b64(cells + 2, CUA_RELAXED, CUA__HASHMAP_AT) != 0);
}

/* The number of keys, by the counts. */
CUA_FORCE uint64_t cua__hashmap_count(const struct cua_hashmap_view *view)
{
	uint64_t n = cua__hashmap_cells_used(view);

	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		n += cua_port_load_b64(&view->counts[i].inserted, CUA_RELAXED, CUA__HASHMAP_AT) -
		     cua_port_load_b64(&view->counts[i].erased, CUA_RELAXED, CUA__HASHMAP_AT);
	return n;
}

/* How many rejected pairs are kept; *all is how many there were. */
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

/* How many buckets behind its home bucket the key at this place is, FAR at most. */
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
		/* before its home slot: once around */
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

/* Whether the slot at this place is closed and holds no key. */
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

/* ---- sorting: a pass a byte that is not the same in all keys, the lowest first ---- */

#define CUA__HASHMAP_DIGITS 256u

CUA_FORCE uint32_t cua__hashmap_digit(struct cua_u128 v, uint32_t pass)
{
	return (uint32_t)((pass < 8 ? v.lo >> 8 * pass : v.hi >> 8 * (pass - 8)) & 255);
}

/*
 * The max-th of all keys, found by a digit a pass, the highest one first: how many of the keys that begin like it have
 * each value of the next digit says which one it has. Zeros at first.
 */
struct cua__hashmap_least {
	struct cua_u128 key; /* its digits so far; the others are 0, and 255 once it is found */
	uint64_t below;      /* keys that are below all that begin like this */
	uint64_t done;       /* 1: the key is found, or one between it and the next */
	uint64_t given;      /* pairs */
	uint64_t counts[CUA__HASHMAP_DIGITS];
};

/* Whether the digits above that of this pass are the same. */
CUA_FORCE int cua__hashmap_begins(struct cua_u128 a, struct cua_u128 b, uint32_t pass)
{
	if (pass >= 8)
		return !((a.hi ^ b.hi) >> 8 * (pass - 8) >> 8);
	return a.hi == b.hi && !((a.lo ^ b.lo) >> 8 * pass >> 8);
}

/*
 * The max-th key has this digit in this pass; of the keys that begin like it, `below` have a lower one and `here` have
 * it. If it is the last one of these, the other digits do not matter.
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

/* Of the passes before this one, those that are made; their parity says where the pairs are then. */
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
