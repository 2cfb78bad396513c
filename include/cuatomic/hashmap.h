/* SPDX-License-Identifier: MIT */
/*
 * A hash map of unique keys: keys and values of 32 or 64 bits, every bit pattern allowed for both.
 *
 * Source: open addressing with linear probing, and for each home bucket the longest probe that one of its
 * keys ever needed (as in Amble and Knuth's ordered tables and in hopscotch hashing), so that an
 * erased slot is simply free again and a miss stays short however often keys come and go; versioned
 * slots after the sequence locks of the Linux kernel.
 *
 * Synchronization: X means that the caller must order the two calls, - that the map does it.
 *
 *               insert  assign  update  find/contains  erase  clear  size, read
 *     insert      -       -       -          -           -      X        X
 *     assign      -       -       -          -           -      X        X
 *     update      -       -       -          -           -      X        X
 *     find        -       -       -          -           -      X        -
 *     erase       -       -       -          -           -      X        X
 *     clear       X       X       X          X           X      X        X
 *
 *     Any mix of the first five may run in one kernel, on one key too, and each is linearizable, where one
 *     call comes before another if it happens before it. Calls on different keys by lanes that do
 *     not synchronize have no common order: two lanes that each insert a key and then look for the other's
 *     may both miss it, unless a cua_port_fence of CUA_SEQ_CST stands between the two calls of each.
 *     The bulk calls insert_n, ... are many of them. The host calls of one context are ordered by its stream.
 *     size and read while a writer runs touch nothing wrong, but what they tell is no moment's state.
 *
 * Scope: the device. On the host, all threads.
 * Memory order: a find that sees a value acquires what the writer of that value did before writing it.
 *   Writers of keys with one home bucket acquire and release its lock.
 * Progress: find and contains are wait-free; insert of a present key and erase of an absent one as well,
 *   unless they come to the lock while others change the key. Other writes are blocking: a spinlock a home
 *   bucket, of which a lane holds one at a time. All may be called by any lane of a diverged warp.
 * Probing is bounded: find, erase and update of a present key look at no more slots than the longest probe
 *   that a key of the home bucket ever needed; an insert looks on to the first free slot, or learns
 *   from the counts that there is none. The longest probe is kept until clear; below a load of 0.8 it is a
 *   few slots.
 * Full: FULL is returned only where at one moment all slots held a key, and changes nothing.
 *
 * Argument. A slot has a state: FREE, BUSY or FULL, and a version that grows each time it is claimed.
 *
 *   Writers. Whoever changes the presence or the value of a key holds the lock of its home bucket, so the
 *   writes of one key are one after the other, and between them a key stays in its slot. A slot with
 *   key k is changed only by holders of k's lock; a FREE slot is claimed by CAS, FREE -> BUSY with the next
 *   version, by writers of any home, of whom one wins. The holder finds k by looking at the slots from home on
 *   up to the home's reach; k is not beyond, because reach is raised before k is published and never
 *   lowered. So k is never there twice.
 *
 *   Order. Claim; key and value by store-release; reach by store-release; FULL by store-release. Erase stores
 *   FREE with release. A reader that takes a key or a value from a later claim has, by the release of that
 *   store and its own acquire, the later state in its past, and its second look at the state
 *   tells it.
 *
 *   Find. A hit read the state FULL with version v, k, the value, and the same state again: the slot
 *   held k all that time, and the hit takes effect when the value is read. Values are one atomic
 *   word, never torn, also when they are updated in place. A miss is right because k was absent at
 *   some moment of the call: had k been there from the first to the last step, it would have been in
 *   one slot, within the reach read at the start, in one state, and that slot would have been a hit. In
 *   particular, if the second look differs then k left that slot, or was not yet published in it, during the
 *   call. So a find never starts again, and an erase and insert into another slot while it looks
 *   cannot mislead it: between the two k was absent.
 *
 *   Insert, assign, update take effect when FULL, or the value in place, is stored; erase when FREE is
 *   stored; an insert that finds the key like a find.
 *
 *   FULL. An insert counts itself after it has published its key, an erase before it frees its slot. The
 *   lane adds up the inserts first and the erases then. When it begins with the erases, there are
 *   at least as many keys as the difference; if that is the number of slots, all were full at that
 *   moment. Where it is less and no free slot was met, somebody is in between, and the lane gives its
 *   lock back and starts again.
 *
 *   Versions have 30 bits. A find would be misled only if it stood still between two loads while its
 *   slot was claimed an exact multiple of 2^30 times.
 */
#ifndef CUATOMIC_HASHMAP_H
#define CUATOMIC_HASHMAP_H

#include <cuatomic/context.h>
#include <cuatomic/hash.h>
#include <cuatomic/port.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* The handle of the host; only the library knows what is in it. */
struct cua_hashmap;

/* What became of one insert, assign or update. */
enum cua_hashmap_result {
	CUA_HASHMAP_INSERTED = 1, /* the key was absent, and is now there with the value */
	CUA_HASHMAP_EXISTS = 2,   /* the key was there: kept, overwritten or updated */
	CUA_HASHMAP_FULL = 3      /* the key was absent and there is no slot: nothing changed */
};

/*
 * The map is an array of buckets of 128 bytes: the head, then slots. A slot is {state, key, value}:
 *
 *     key, value   slot        key at  value at  slots a bucket, from byte
 *     4, 4         16 bytes    4       8         7               16
 *     4, 8         16 bytes    4       8         7               16
 *     8, 4         16 bytes    8       4         7               16
 *     8, 8         24 bytes    8       16        5               8
 *
 * State, at byte 0 of the slot: version << 2 | phase. Memory of zeros is an empty map.
 */
#define CUA_HASHMAP_BUCKET_BYTES 128u
#define CUA__HASHMAP_FREE 0u
#define CUA__HASHMAP_BUSY 1u
#define CUA__HASHMAP_USED 2u
#define CUA__HASHMAP_PHASE 3u

struct cua_hashmap_head {
	struct cua_spinlock lock; /* of the keys whose home is here */
	uint32_t reach;           /* slots to look at for such a key, from its home slot on; ~0: all */
};
CUA_STATIC_ASSERT(sizeof(struct cua_hashmap_head) == 8, "the bucket is ABI");

/* Counts, striped by home bucket so that no address is hot; sums of all stripes count. */
#define CUA_HASHMAP_STRIPES 64u
struct cua_hashmap_counts {
	uint64_t inserted; /* keys, counted once they are there */
	uint64_t erased;   /* keys, counted before they go */
	uint64_t rejected; /* writes that found the map full */
	uint64_t reserved;
};
CUA_STATIC_ASSERT(sizeof(struct cua_hashmap_counts) == 32, "the counts are ABI");

#define CUA_HASHMAP_LAYOUT 1u

/* What a kernel or a host thread gets by value: the map as the backend addresses it. */
struct cua_hashmap_view {
	void *buckets;
	struct cua_hashmap_counts *counts;
	uint64_t n_buckets;
	uint64_t seed;
	uint32_t key_size, value_size; /* 4 or 8 */
	uint32_t layout;               /* CUA_HASHMAP_LAYOUT */
	uint32_t reserved;             /* 0 */
};
CUA_STATIC_ASSERT(sizeof(struct cua_hashmap_view) == 32 + 2 * sizeof(void *), "the view is ABI");

/* What a write does where the key is there already: one of these or of enum cua_update. */
#define CUA__HASHMAP_INSERT 16
#define CUA__HASHMAP_ASSIGN 17

#define CUA__HASHMAP_AT CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* ---- where things are ---- */

CUA_FORCE int cua__hashmap_wide(const struct cua_hashmap_view *view)
{
	return view->key_size + view->value_size == 16;
}

CUA_FORCE uint32_t cua__hashmap_slots(const struct cua_hashmap_view *view)
{
	return cua__hashmap_wide(view) ? 5 : 7;
}

CUA_FORCE struct cua_hashmap_head *cua__hashmap_head(const struct cua_hashmap_view *view, uint64_t bucket)
{
	return (struct cua_hashmap_head *)(void *)((char *)view->buckets +
						   bucket * CUA_HASHMAP_BUCKET_BYTES);
}

/* A slot, by its bucket and its number there. */
struct cua__hashmap_place {
	uint64_t bucket;
	uint32_t slot;
};

CUA_FORCE struct cua__hashmap_place cua__hashmap_home(const struct cua_hashmap_view *view, uint64_t key)
{
	uint64_t hash = cua_hash_u64(key, view->seed);
	struct cua__hashmap_place home;

	home.bucket = cua_hash_range(hash, view->n_buckets);
	/* the bucket is made of the high bits, the slot of the low ones */
	home.slot = (uint32_t)(((uint64_t)(uint32_t)hash * cua__hashmap_slots(view)) >> 32);
	return home;
}

CUA_FORCE void cua__hashmap_step(const struct cua_hashmap_view *view, struct cua__hashmap_place *p)
{
	if (++p->slot < cua__hashmap_slots(view))
		return;
	p->slot = 0;
	if (++p->bucket == view->n_buckets)
		p->bucket = 0;
}

CUA_FORCE char *cua__hashmap_slot(const struct cua_hashmap_view *view, struct cua__hashmap_place p)
{
	char *bucket = (char *)view->buckets + p.bucket * CUA_HASHMAP_BUCKET_BYTES;

	return cua__hashmap_wide(view) ? bucket + 8 + p.slot * 24 : bucket + 16 + p.slot * 16;
}

CUA_FORCE uint64_t cua__hashmap_load(const char *p, uint32_t size, enum cua_order order)
{
	return size == 8 ? cua_port_load_b64(p, order, CUA__HASHMAP_AT)
			 : cua_port_load_b32(p, order, CUA__HASHMAP_AT);
}

CUA_FORCE void cua__hashmap_store(char *p, uint32_t size, uint64_t v)
{
	if (size == 8)
		cua_port_store_b64(p, v, CUA_RELEASE, CUA__HASHMAP_AT);
	else
		cua_port_store_b32(p, (uint32_t)v, CUA_RELEASE, CUA__HASHMAP_AT);
}

CUA_FORCE char *cua__hashmap_key(const struct cua_hashmap_view *view, char *slot)
{
	return slot + (view->key_size == 8 ? 8 : 4);
}

CUA_FORCE char *cua__hashmap_value(const struct cua_hashmap_view *view, char *slot)
{
	if (view->key_size == 4)
		return slot + 8;
	return slot + (view->value_size == 8 ? 16 : 4);
}

/* A key or value as a map of this size holds it: the low 32 bits where it has no more. */
CUA_FORCE uint64_t cua__hashmap_cut(uint64_t v, uint32_t size)
{
	return size == 8 ? v : (uint32_t)v;
}

/* Slots to look at for a key of this home bucket. */
CUA_FORCE uint64_t cua__hashmap_reach(const struct cua_hashmap_view *view, uint64_t bucket)
{
	uint64_t all = view->n_buckets * cua__hashmap_slots(view);
	uint32_t reach = cua_port_load_b32(&cua__hashmap_head(view, bucket)->reach, CUA_RELAXED,
					   CUA__HASHMAP_AT);

	return reach == ~(uint32_t)0 || reach > all ? all : reach;
}

CUA_FORCE struct cua_hashmap_counts *cua__hashmap_counts(const struct cua_hashmap_view *view,
							 uint64_t bucket)
{
	return &view->counts[bucket % CUA_HASHMAP_STRIPES];
}

/* ---- looking ---- */

/*
 * Whether the slot, whose state was just read as `seen`, holds the key; sets *state to the state that says
 * so. Without order at first: what a relaxed look mistakes for another key was not there all the time.
 */
CUA_FORCE int cua__hashmap_match(const struct cua_hashmap_view *view, char *slot, uint32_t seen,
				 uint64_t key, uint32_t *state)
{
	const char *at = cua__hashmap_key(view, slot);

	if ((seen & CUA__HASHMAP_PHASE) != CUA__HASHMAP_USED ||
	    cua__hashmap_load(at, view->key_size, CUA_RELAXED) != key)
		return 0;
	*state = cua_port_load_b32(slot, CUA_ACQUIRE, CUA__HASHMAP_AT);
	return (*state & CUA__HASHMAP_PHASE) == CUA__HASHMAP_USED &&
	       cua__hashmap_load(at, view->key_size, CUA_ACQUIRE) == key;
}

CUA_FN int cua__hashmap_lookup(const struct cua_hashmap_view *view, struct cua__hashmap_place p,
			       uint64_t key, uint64_t *value)
{
	uint64_t left = cua__hashmap_reach(view, p.bucket), v;
	uint32_t state;

	for (; left; left--, cua__hashmap_step(view, &p)) {
		char *slot = cua__hashmap_slot(view, p);
		uint32_t seen = cua_port_load_b32(slot, CUA_RELAXED, CUA__HASHMAP_AT);

		if (!cua__hashmap_match(view, slot, seen, key, &state))
			continue;
		v = cua__hashmap_load(cua__hashmap_value(view, slot), view->value_size, CUA_ACQUIRE);
		if (cua_port_load_b32(slot, CUA_RELAXED, CUA__HASHMAP_AT) != state)
			return 0;
		*value = v;
		return 1;
	}
	return 0;
}

/* ---- writing ---- */

/* The value after a write to a present key. */
CUA_FORCE uint64_t cua__hashmap_combine(uint64_t old, uint64_t value, int op)
{
	switch (op) {
	case CUA_UPDATE_ADD: return old + value;
	case CUA_UPDATE_MIN: return value < old ? value : old;
	case CUA_UPDATE_MAX: return value > old ? value : old;
	case CUA__HASHMAP_ASSIGN: return value;
	default: return old;
	}
}

/* Whether all slots held a key at some moment of this call; may miss it while writers are at work. */
CUA_FN int cua__hashmap_full(const struct cua_hashmap_view *view)
{
	uint64_t inserted = 0, erased = 0;
	uint32_t i;

	for (i = 0; i < CUA_HASHMAP_STRIPES; i++)
		inserted += cua_port_load_b64(&view->counts[i].inserted, CUA_ACQUIRE, CUA__HASHMAP_AT);
	for (i = 0; i < CUA_HASHMAP_STRIPES; i++)
		erased += cua_port_load_b64(&view->counts[i].erased, CUA_ACQUIRE, CUA__HASHMAP_AT);
	return inserted - erased == view->n_buckets * cua__hashmap_slots(view);
}

/* Slots that an insert looks at before it asks whether the map is full. */
#define CUA__HASHMAP_PATIENCE 64u

/* A write under the lock of the home bucket. Returns a result, or 0 to come back with the lock released. */
CUA_FN int cua__hashmap_write_locked(const struct cua_hashmap_view *view, struct cua__hashmap_place home,
				     uint64_t key, uint64_t value, int op)
{
	uint64_t all = view->n_buckets * cua__hashmap_slots(view);
	uint64_t reach = cua__hashmap_reach(view, home.bucket), distance, free_distance = 0;
	uint64_t ask = reach + CUA__HASHMAP_PATIENCE;
	struct cua__hashmap_place p = home;
	uint32_t state, free_state = 0;
	char *free_slot = NULL;

	for (distance = 0; distance < (free_slot ? reach : all); distance++, cua__hashmap_step(view, &p)) {
		char *slot = cua__hashmap_slot(view, p);
		uint32_t seen = cua_port_load_b32(slot, CUA_RELAXED, CUA__HASHMAP_AT);

		if ((seen & CUA__HASHMAP_PHASE) == CUA__HASHMAP_FREE) {
			if (!free_slot) {
				free_slot = slot;
				free_state = seen;
				free_distance = distance;
			}
		} else if (distance < reach && cua__hashmap_match(view, slot, seen, key, &state)) {
			char *at = cua__hashmap_value(view, slot);

			/* only the holder of the lock writes it, so no read-modify-write is needed */
			if (op != CUA__HASHMAP_INSERT)
				cua__hashmap_store(at, view->value_size,
						   cua__hashmap_combine(
							   cua__hashmap_load(at, view->value_size,
									     CUA_RELAXED),
							   value, op));
			return CUA_HASHMAP_EXISTS;
		}
		if (distance == ask && cua__hashmap_full(view))
			break;
	}
	if (!free_slot) {
		if (!cua__hashmap_full(view))
			return 0;
		cua_port_add_u64(&cua__hashmap_counts(view, home.bucket)->rejected, 1, CUA_RELAXED,
				 CUA__HASHMAP_AT);
		return CUA_HASHMAP_FULL;
	}
	state = (free_state & ~CUA__HASHMAP_PHASE) + CUA__HASHMAP_PHASE + 1;
	if (cua_port_cas_b32(free_slot, free_state, state | CUA__HASHMAP_BUSY, CUA_ACQUIRE,
			     CUA__HASHMAP_AT) != free_state)
		return 0;
	cua__hashmap_store(cua__hashmap_key(view, free_slot), view->key_size, key);
	cua__hashmap_store(cua__hashmap_value(view, free_slot), view->value_size, value);
	if (free_distance >= reach)
		cua_port_store_b32(&cua__hashmap_head(view, home.bucket)->reach,
				   free_distance < ~(uint32_t)0 ? (uint32_t)free_distance + 1
								: ~(uint32_t)0,
				   CUA_RELEASE, CUA__HASHMAP_AT);
	cua_port_store_b32(free_slot, state | CUA__HASHMAP_USED, CUA_RELEASE, CUA__HASHMAP_AT);
	cua_port_add_u64(&cua__hashmap_counts(view, home.bucket)->inserted, 1, CUA_RELEASE,
			 CUA__HASHMAP_AT);
	return CUA_HASHMAP_INSERTED;
}

/*
 * Nanoseconds. Hundreds of lanes may want one hot key, and each look at the lock is traffic that its
 * holder waits behind; a lane has waited about as long already when its wait gets this long.
 */
#define CUA__HASHMAP_LONGEST_WAIT 16384u

CUA_FN int cua__hashmap_write(const struct cua_hashmap_view *view, uint64_t key, uint64_t value, int op)
{
	struct cua__hashmap_place home;
	struct cua_spinlock *lock;
	struct cua_backoff backoff;
	uint64_t ignored;
	int result = 0;

	key = cua__hashmap_cut(key, view->key_size);
	value = cua__hashmap_cut(value, view->value_size);
	home = cua__hashmap_home(view, key);
	lock = &cua__hashmap_head(view, home.bucket)->lock;
	cua_backoff_init(&backoff);
	while (!result) {
		/* a hot key is found without the lock once it is there, also by those who wait */
		if (op == CUA__HASHMAP_INSERT && cua__hashmap_lookup(view, home, key, &ignored)) {
			result = CUA_HASHMAP_EXISTS;
		} else if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			/* the unlock is in the winner's branch: a lane never waits for its own warp */
			result = cua__hashmap_write_locked(view, home, key, value, op);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		}
		if (!result)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	}
	return result;
}

/* Erases under the lock of the home bucket. Returns whether the key was there. */
CUA_FN int cua__hashmap_erase_locked(const struct cua_hashmap_view *view, struct cua__hashmap_place p,
				     uint64_t key)
{
	struct cua_hashmap_counts *counts = cua__hashmap_counts(view, p.bucket);
	uint64_t left = cua__hashmap_reach(view, p.bucket);
	uint32_t state;

	for (; left; left--, cua__hashmap_step(view, &p)) {
		char *slot = cua__hashmap_slot(view, p);
		uint32_t seen = cua_port_load_b32(slot, CUA_RELAXED, CUA__HASHMAP_AT);

		if (!cua__hashmap_match(view, slot, seen, key, &state))
			continue;
		/* before the slot is free: see FULL above */
		cua_port_add_u64(&counts->erased, 1, CUA_RELAXED, CUA__HASHMAP_AT);
		cua_port_store_b32(slot, (state & ~CUA__HASHMAP_PHASE) | CUA__HASHMAP_FREE, CUA_RELEASE,
				   CUA__HASHMAP_AT);
		return 1;
	}
	return 0;
}

/* ---- operations of one lane. A map of 32-bit keys or values takes the low 32 bits of theirs. ---- */

/* Adds the pair if the key is absent; else nothing is changed. Returns an enum cua_hashmap_result. */
CUA_FN int cua_hashmap_insert(const struct cua_hashmap_view *view, uint64_t key, uint64_t value)
{
	return cua__hashmap_write(view, key, value, CUA__HASHMAP_INSERT);
}

/* Sets the key's value, whether it was there or not. Returns an enum cua_hashmap_result. */
CUA_FN int cua_hashmap_assign(const struct cua_hashmap_view *view, uint64_t key, uint64_t value)
{
	return cua__hashmap_write(view, key, value, CUA__HASHMAP_ASSIGN);
}

/*
 * If the key is there its value becomes the sum (wrapping), the smaller or the larger of the two, as
 * unsigned numbers; else the pair is added. Returns an enum cua_hashmap_result.
 */
CUA_FN int cua_hashmap_update(const struct cua_hashmap_view *view, uint64_t key, uint64_t value,
			      enum cua_update op)
{
	return cua__hashmap_write(view, key, value, (int)op);
}

/* Returns 1 and sets *value, or returns 0 where the key is absent. */
CUA_FN int cua_hashmap_find(const struct cua_hashmap_view *view, uint64_t key, uint64_t *value)
{
	key = cua__hashmap_cut(key, view->key_size);
	return cua__hashmap_lookup(view, cua__hashmap_home(view, key), key, value);
}

/* Returns whether the key is there. */
CUA_FN int cua_hashmap_contains(const struct cua_hashmap_view *view, uint64_t key)
{
	uint64_t ignored;

	return cua_hashmap_find(view, key, &ignored);
}

/* Removes the key. Returns 1, or 0 where it was absent. */
CUA_FN int cua_hashmap_erase(const struct cua_hashmap_view *view, uint64_t key)
{
	struct cua__hashmap_place home;
	struct cua_spinlock *lock;
	struct cua_backoff backoff;
	uint64_t ignored;
	int result = -1;

	key = cua__hashmap_cut(key, view->key_size);
	home = cua__hashmap_home(view, key);
	lock = &cua__hashmap_head(view, home.bucket)->lock;
	cua_backoff_init(&backoff);
	while (result < 0) {
		if (!cua__hashmap_lookup(view, home, key, &ignored)) {
			result = 0;
		} else if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			result = cua__hashmap_erase_locked(view, home, key);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		}
		if (result < 0)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	}
	return result;
}

/* What a map is made with; NULL in its place means the defaults. */
struct cua_hashmap_options {
	size_t struct_size; /* sizeof(struct cua_hashmap_options), set by the caller */
	uint64_t seed;      /* of the hash; 0 by default */
};

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An empty map in the memory of the context's backend, at most 18.3 bytes a slot, 25.6 with 8 + 8. Any
 * `capacity` different keys fit, for certain; the slots are that many, rounded up to whole buckets. Probes get
 * long above nine tenths of the slots: ask for 1.25 to 2 times the keys expected. Types: U32 and U64.
 * Errors: NULL, TYPE, VALUE (capacity = 0, struct_size), SIZE, NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_hashmap_create(struct cua_context *ctx,
					   const struct cua_hashmap_options *options,
					   enum cua_type key_type, enum cua_type value_type,
					   uint64_t capacity, struct cua_hashmap **map);
/* Frees the map once the device has finished with it; NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_hashmap_destroy(struct cua_hashmap *map);

/* What kernels use the map through; valid until the map is destroyed. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_view(const struct cua_hashmap *map, struct cua_hashmap_view *view);
/* The number of slots, which is at least the capacity asked for. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_capacity(const struct cua_hashmap *map, uint64_t *capacity);

/* Removes all keys and the status FULL, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_clear(struct cua_hashmap *map);

/*
 * Many at once, in stream order; may be captured. Arrays are backend memory of n elements each, keys
 * and values of the map's types. Keys may be equal: each element is an operation of its own, in no
 * particular order, so that of several values assigned to one key by one call any may remain.
 *
 * insert_n, assign_n, update_n: results[i], where results is not NULL, gets the enum cua_hashmap_result.
 *   Keys that find no slot are FULL there, make the status FULL, and change nothing.
 * find_n: values_out[i] gets the value and found[i] 1; for an absent key found[i] gets 0 and values_out[i]
 *   stays as it is. found may be NULL.
 * contains_n: found[i] gets 1 or 0.
 * erase_n: found[i], where found is not NULL, gets whether this element removed its key.
 * Errors: NULL, VALUE (unknown op), SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another
 * argument or the map).
 */
CUA_API enum cua_status cua_hashmap_insert_n(struct cua_hashmap *map, size_t n, const void *keys,
					     const void *values, uint8_t *results);
CUA_API enum cua_status cua_hashmap_assign_n(struct cua_hashmap *map, size_t n, const void *keys,
					     const void *values, uint8_t *results);
CUA_API enum cua_status cua_hashmap_update_n(struct cua_hashmap *map, enum cua_update op, size_t n,
					     const void *keys, const void *values, uint8_t *results);
CUA_API enum cua_status cua_hashmap_find_n(struct cua_hashmap *map, size_t n, const void *keys,
					   void *values_out, uint8_t *found);
CUA_API enum cua_status cua_hashmap_contains_n(struct cua_hashmap *map, size_t n, const void *keys,
					       uint8_t *found);
CUA_API enum cua_status cua_hashmap_erase_n(struct cua_hashmap *map, size_t n, const void *keys,
					    uint8_t *found);

/*
 * The number of keys, without a pass over the map. The result may be in backend memory: see context.h.
 * Errors: NULL, ALIGNMENT, CAPTURE, MEMORY_KIND, OVERLAP (the result lies in the map), WORKSPACE.
 */
CUA_API enum cua_status cua_hashmap_size(struct cua_hashmap *map, uint64_t *size);

/*
 * All pairs, in no particular order: the first max of them to keys_out and values_out (backend memory; may
 * be NULL if max is 0), and how many there are, also when more than max, to *n. The result *n may be in
 * backend memory: see context.h.
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP, CAPTURE, WORKSPACE.
 */
CUA_API enum cua_status cua_hashmap_read(struct cua_hashmap *map, uint64_t max, void *keys_out,
					 void *values_out, uint64_t *n);

/*
 * CUA_ERROR_FULL if a key was rejected since the last clear, by a call from the host or in a kernel;
 * else CUA_OK. Waits for the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_hashmap_status(struct cua_hashmap *map);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_HASHMAP_H */
