/* SPDX-License-Identifier: MIT */
/*
 * The slots of a hash map whose pairs do not fit the machine's CAS: each has a word of state with a
 * version, and the writes of a key are under the lock of its home bucket. Internal; see hashmap.h for the
 * contract.
 *
 * Source: open addressing with linear probing, and for each home bucket the longest probe that one of its
 * keys ever needed (as in Amble and Knuth's ordered tables and in hopscotch hashing), so that an
 * erased slot is simply free again and a miss stays short however often keys come and go; versioned
 * slots after the sequence locks of the Linux kernel.
 *
 * Progress: a look for a key is wait-free where values have at most 8 bytes. Values of 16 bytes are
 *   changed in two stores: a look that wants such a value waits while another lane is between the two,
 *   and starts again if the value has changed; one that does not want it only starts again. Writes of a
 *   key are blocking: a spinlock a home bucket, of which a lane holds one at a time, and holds it while
 *   it waits for nothing.
 *
 * Argument. A slot has a state: FREE, BUSY, USED or CHANGING, and a version that grows with each claim
 * and each change of a 16-byte value. It holds a key where it is USED or CHANGING.
 *
 *   Writers. Whoever changes the presence or the value of a key holds the lock of its home bucket, so the
 *   writes of one key are one after the other, and between them a key stays in its slot. A slot with key
 *   k is changed only by holders of k's lock; a FREE slot is claimed by CAS, FREE -> BUSY with the next
 *   version, by writers of any home, of whom one wins. The holder finds k by looking at the slots from
 *   home on up to the home's reach; k is not beyond, because reach is raised before k is published and
 *   never lowered. So k is never there twice. A key of two words may look like k while another one
 *   replaces it; the holder takes it for k only if the state before and after is the same.
 *
 *   Order. Claim; key and value by store-release; reach by store-release; USED by store-release. Erase
 *   stores FREE with release. A value of at most 8 bytes is changed by one store-release and the state
 *   stays as it is; one of 16 bytes so: CHANGING with the next version, by a read-modify-write, so that
 *   who acquires it acquires the claim as before; both words by store-release; USED with that version by
 *   store-release. A reader that takes a word of a key or a value from a later claim or change has, by
 *   the release of that store and its own acquire, the later state in its past, and its second look at
 *   the state tells it.
 *
 *   Find. A hit read the state USED with version v, k, the value, and the same state again: the slot held
 *   k all that time. Where the value is one word the hit takes effect when that is read; two words are
 *   both of version v, so they are one value, which the slot held all that time too. A miss is right
 *   because k was absent at some moment of the call: had k been there from the first to the last step, it
 *   would have been in one slot, within the reach read at the start, in one claim. A look at that slot
 *   reads k, whole, and a state that holds a key, as often as it is made. If the state differs afterwards
 *   and values have at most 8 bytes, then this was not that slot: k left it, or was not yet published in
 *   it, or was never there, and the find looks on. If they have 16 the value may have changed as well,
 *   and it looks at the slot again, until it sees that k is not there or has hit.
 *
 *   Insert, assign, update take effect when USED, or the value in place, is stored (a 16-byte value: when
 *   USED is stored again, and no reader takes it before); erase when FREE is stored; an insert that finds
 *   the key like a find.
 *
 *   FULL: as hashmap.h argues it.
 *
 *   Versions have 30 bits. A find would be misled only if it stood still between two loads while its
 *   slot was claimed or changed an exact multiple of 2^30 times.
 */
/* hashmap.h includes this where what it needs is there */
#ifndef CUATOMIC_HASHMAP_H
#include <cuatomic/hashmap.h>
#endif
#ifndef CUATOMIC_HASHMAP_STATE_H
#define CUATOMIC_HASHMAP_STATE_H

/*
 * The map is an array of buckets of 128 bytes: the head, then slots that end with the bucket. The sizes of a
 * slot, and where its key and its value are, by their bytes:
 *
 *     key  value  slot  slots  first   key  value
 *      4    0, 4    16      7     16     4      8
 *      4       8    16      7     16     4      8
 *      8    0, 4    16      7     16     8      4
 *      8       8    24      5      8     8     16
 *      4      16    24      5      8     4      8
 *     16    0, 4    24      5      8     8      4
 *     16       8    32      3     32     8     24
 *      8      16    32      3     32     8     16
 *     16      16    40      3      8     8     24
 *
 * State, at byte 0 of the slot: version << 2 | phase. What has 16 bytes is two words of 64 bits, lo first.
 * Memory of zeros is an empty map.
 */
#define CUA__HASHMAP_STATE_BUCKET 128u
#define CUA__HASHMAP_STATE_FREE 0u
#define CUA__HASHMAP_STATE_BUSY 1u
#define CUA__HASHMAP_STATE_USED 2u
#define CUA__HASHMAP_STATE_CHANGING 3u /* a key, of which the value of 16 bytes is being stored */
#define CUA__HASHMAP_STATE_PHASE 3u
#define CUA__HASHMAP_STATE_KEY 2u /* the bit of the phases in which there is a key */

struct cua__hashmap_state_head {
	struct cua_spinlock lock; /* of the keys whose home is here */
	uint32_t reach; /* slots to look at for such a key, from its home slot on; ~0: all */
};
CUA_STATIC_ASSERT(sizeof(struct cua__hashmap_state_head) == 8, "the bucket is ABI");

/* ---- where things are; ks and vs are the bytes of a key and of a value, constants of the callers ---- */

CUA_FORCE uint32_t cua__hashmap_state_key_at(uint32_t ks)
{
	return ks == 4 ? 4 : 8;
}

CUA_FORCE uint32_t cua__hashmap_state_value_at(uint32_t ks, uint32_t vs)
{
	if (ks == 4)
		return 8;
	return vs == 4 ? 4 : 8 + ks;
}

CUA_FORCE uint32_t cua__hashmap_state_bytes(uint32_t ks, uint32_t vs)
{
	uint32_t bytes = 8 + (ks == 4 ? 0 : ks) + (vs >= 8 ? vs : 0);

	return bytes < 16 ? 16 : bytes;
}

/* Slots a bucket. */
CUA_FORCE uint32_t cua__hashmap_state_slots(uint32_t ks, uint32_t vs)
{
	return (CUA__HASHMAP_STATE_BUCKET - (uint32_t)sizeof(struct cua__hashmap_state_head)) /
	       cua__hashmap_state_bytes(ks, vs);
}

CUA_FORCE uint64_t cua__hashmap_state_all(const struct cua_hashmap_view *view, uint32_t ks,
					  uint32_t vs)
{
	return view->n_buckets * cua__hashmap_state_slots(ks, vs);
}

CUA_FORCE struct cua__hashmap_state_head *
cua__hashmap_state_head(const struct cua_hashmap_view *view, uint64_t bucket)
{
	return (struct cua__hashmap_state_head *)(void *)((char *)view->buckets +
							  bucket * CUA__HASHMAP_STATE_BUCKET);
}

/* A slot, by its bucket and its number there. */
struct cua__hashmap_state_position {
	uint64_t bucket;
	uint32_t slot;
};

CUA_FORCE struct cua__hashmap_state_position
cua__hashmap_state_home(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
			uint64_t hash)
{
	struct cua__hashmap_state_position home;

	home.bucket = cua_hash_to_index(hash, view->n_buckets);
	/* the bucket is made of the high bits, the slot of the low ones */
	home.slot = (uint32_t)(((uint64_t)(uint32_t)hash * cua__hashmap_state_slots(ks, vs)) >> 32);
	return home;
}

CUA_FORCE void cua__hashmap_state_step(const struct cua_hashmap_view *view, uint32_t ks,
				       uint32_t vs, struct cua__hashmap_state_position *p)
{
	if (++p->slot < cua__hashmap_state_slots(ks, vs))
		return;
	p->slot = 0;
	if (++p->bucket == view->n_buckets)
		p->bucket = 0;
}

CUA_FORCE char *cua__hashmap_state_slot(const struct cua_hashmap_view *view, uint32_t ks,
					uint32_t vs, struct cua__hashmap_state_position p)
{
	uint32_t from_end =
		(cua__hashmap_state_slots(ks, vs) - p.slot) * cua__hashmap_state_bytes(ks, vs);

	return (char *)view->buckets + (p.bucket + 1) * CUA__HASHMAP_STATE_BUCKET - from_end;
}

/* The state of a slot without order. */
CUA_FORCE uint32_t cua__hashmap_state_glance(const char *slot)
{
	return cua_port_load_b32(slot, CUA_RELAXED, CUA__HASHMAP_AT);
}

/* A key or a value of `size` bytes; of 16, each word by itself. */
CUA_FORCE struct cua_u128 cua__hashmap_state_load(const char *at, uint32_t size,
						  enum cua_order order)
{
	struct cua_u128 v;

	v.lo = v.hi = 0;
	if (size == 4)
		v.lo = cua_port_load_b32(at, order, CUA__HASHMAP_AT);
	if (size >= 8)
		v.lo = cua_port_load_b64(at, order, CUA__HASHMAP_AT);
	if (size == 16)
		v.hi = cua_port_load_b64(at + 8, order, CUA__HASHMAP_AT);
	return v;
}

CUA_FORCE void cua__hashmap_state_store(char *at, uint32_t size, struct cua_u128 v)
{
	if (size == 4)
		cua_port_store_b32(at, (uint32_t)v.lo, CUA_RELEASE, CUA__HASHMAP_AT);
	if (size >= 8)
		cua_port_store_b64(at, v.lo, CUA_RELEASE, CUA__HASHMAP_AT);
	if (size == 16)
		cua_port_store_b64(at + 8, v.hi, CUA_RELEASE, CUA__HASHMAP_AT);
}

/* The same version once more, as FREE. */
CUA_FORCE uint32_t cua__hashmap_state_next(uint32_t state)
{
	return (state | CUA__HASHMAP_STATE_PHASE) + 1;
}

/* Slots to look at for a key of this home bucket. */
CUA_FORCE uint64_t cua__hashmap_state_reach(const struct cua_hashmap_view *view, uint32_t ks,
					    uint32_t vs, uint64_t bucket)
{
	uint64_t all = cua__hashmap_state_all(view, ks, vs);
	uint32_t reach = cua_port_load_b32(&cua__hashmap_state_head(view, bucket)->reach,
					   CUA_RELAXED, CUA__HASHMAP_AT);

	return reach == ~(uint32_t)0 || reach > all ? all : reach;
}

/* Slots that may hold a key, from its home slot on. */
CUA_FORCE uint64_t cua__hashmap_state_most(const struct cua_hashmap_view *view, uint32_t ks,
					   uint32_t vs)
{
	return cua__hashmap_most(view) * cua__hashmap_state_slots(ks, vs);
}

/* ---- looking ---- */

/*
 * Whether the slot, whose state was just read as `seen`, holds the key; sets *state to the state that says
 * so. For the holder of the key's lock (locked) that is all; others have to look at the state again after what
 * it reads. Without order at first: what a relaxed look mistakes for another key was not there all the time.
 */
CUA_FORCE int cua__hashmap_state_match(const char *slot, uint32_t ks, uint32_t vs, uint32_t seen,
				       struct cua_u128 key, cua__hashmap_equal_fn *equal,
				       int locked, uint32_t *state)
{
	const char *at = slot + cua__hashmap_state_key_at(ks);
	struct cua_u128 there;

	if (!(seen & CUA__HASHMAP_STATE_KEY))
		return 0;
	if (!equal && cua__hashmap_state_load(at, ks < 8 ? ks : 8, CUA_RELAXED).lo != key.lo)
		return 0;
	for (;;) {
		*state = cua_port_load_b32(slot, CUA_ACQUIRE, CUA__HASHMAP_AT);
		if (!(*state & CUA__HASHMAP_STATE_KEY))
			return 0;
		there = cua__hashmap_state_load(at, ks, CUA_ACQUIRE);
		/* nobody shall be asked about halves of two keys; a find without `equal` looks again later */
		if (ks < 16 || !(locked || equal) || cua__hashmap_state_glance(slot) == *state)
			return equal ? equal(there, key) : cua__hashmap_same(there, key);
		if (vs < 16)
			return 0;
	}
}

/*
 * Finds the key from its home on; sets spot->at and spot->value where spot is not NULL. Only a look for a
 * value waits.
 */
CUA_FORCE int cua__hashmap_state_lookup(const struct cua_hashmap_view *view, uint32_t ks,
					uint32_t vs, struct cua__hashmap_state_position p,
					struct cua_u128 key, cua__hashmap_equal_fn *equal,
					struct cua__hashmap_spot *spot)
{
	uint64_t left = cua__hashmap_state_reach(view, ks, vs, p.bucket);
	struct cua_backoff backoff;
	struct cua_u128 v;
	uint32_t state, seen;

	cua_backoff_init(&backoff);
	for (; left; left--, cua__hashmap_state_step(view, ks, vs, &p)) {
		char *slot = cua__hashmap_state_slot(view, ks, vs, p);

		seen = cua__hashmap_state_glance(slot);
		while (cua__hashmap_state_match(slot, ks, vs, seen, key, equal, 0, &state)) {
			int wait =
				vs == 16 && spot &&
				(state & CUA__HASHMAP_STATE_PHASE) == CUA__HASHMAP_STATE_CHANGING;

			if (spot && !wait)
				v = cua__hashmap_state_load(
					slot + cua__hashmap_state_value_at(ks, vs), vs,
					CUA_ACQUIRE);
			else if (wait)
				cua_backoff_wait(&backoff);
			seen = cua__hashmap_state_glance(slot);
			if (seen == state && !wait) {
				if (spot) {
					spot->at = slot;
					spot->value = v;
				}
				return 1;
			}
			/* the key is not there, or was not: a value alone does not change the state */
			if (vs < 16)
				break;
		}
	}
	return 0;
}

/* ---- writing ---- */

/* Stores the value of a present key, whose slot is USED with this state, under the lock. */
CUA_FORCE void cua__hashmap_state_put(char *slot, uint32_t ks, uint32_t vs, uint32_t state,
				      struct cua_u128 v)
{
	uint32_t next = cua__hashmap_state_next(state);

	if (vs == 16)
		cua_port_xor_b32(slot, (next | CUA__HASHMAP_STATE_CHANGING) ^ state, CUA_RELAXED,
				 CUA__HASHMAP_AT);
	/* only the holder of the lock writes it, so no read-modify-write is needed */
	cua__hashmap_state_store(slot + cua__hashmap_state_value_at(ks, vs), vs, v);
	if (vs == 16)
		cua_port_store_b32(slot, next | CUA__HASHMAP_STATE_USED, CUA_RELEASE,
				   CUA__HASHMAP_AT);
}

/* Slots that an insert looks at before it asks whether the map is full. */
#define CUA__HASHMAP_STATE_PATIENCE 64u

/*
 * A write under the lock of the home bucket: the pair where the key is absent, else the next value after the
 * one that is there (next is NULL: that stays), of which spot tells. Returns a result, or 0 to come back with
 * the lock released.
 */
CUA_FORCE int cua__hashmap_state_write_locked(const struct cua_hashmap_view *view, uint32_t ks,
					      uint32_t vs, struct cua__hashmap_state_position home,
					      struct cua_u128 key, cua__hashmap_equal_fn *equal,
					      struct cua_u128 value, cua__hashmap_next_fn *next,
					      enum cua_update op, struct cua__hashmap_spot *spot)
{
	const uint64_t all = cua__hashmap_state_all(view, ks, vs),
		       most = cua__hashmap_state_most(view, ks, vs);
	uint64_t reach = cua__hashmap_state_reach(view, ks, vs, home.bucket), distance,
		 free_distance = 0;
	uint64_t ask = reach + CUA__HASHMAP_STATE_PATIENCE;
	struct cua__hashmap_state_position p = home;
	uint32_t state, free_state = 0;
	char *free_slot = NULL;

	for (distance = 0; !free_slot || distance < reach;
	     distance++, cua__hashmap_state_step(view, ks, vs, &p)) {
		char *slot = cua__hashmap_state_slot(view, ks, vs, p);
		uint32_t seen;

		if (!free_slot && (distance == ask || distance == most)) {
			if (distance == most && most < all)
				return CUA_HASHMAP_FULL;
			if (cua__hashmap_full(view, cua__hashmap_state_slots(ks, vs)))
				return CUA_HASHMAP_FULL;
			if (distance == all)
				return 0;
		}
		seen = cua__hashmap_state_glance(slot);
		if ((seen & CUA__HASHMAP_STATE_PHASE) == CUA__HASHMAP_STATE_FREE) {
			if (!free_slot) {
				free_slot = slot;
				free_state = seen;
				free_distance = distance;
			}
		} else if (distance < reach &&
			   cua__hashmap_state_match(slot, ks, vs, seen, key, equal, 1, &state)) {
			if (next || spot) {
				struct cua_u128 old = cua__hashmap_state_load(
					slot + cua__hashmap_state_value_at(ks, vs), vs,
					CUA_RELAXED);

				if (next)
					cua__hashmap_state_put(slot, ks, vs, state,
							       next(old, value, op));
				if (spot) {
					spot->at = slot;
					spot->value = old;
				}
			}
			return CUA_HASHMAP_EXISTS;
		}
	}
	state = cua__hashmap_state_next(free_state);
	if (cua_port_cas_b32(free_slot, free_state, state | CUA__HASHMAP_STATE_BUSY, CUA_ACQUIRE,
			     CUA__HASHMAP_AT) != free_state)
		return 0;
	cua__hashmap_state_store(free_slot + cua__hashmap_state_key_at(ks), ks, key);
	cua__hashmap_state_store(free_slot + cua__hashmap_state_value_at(ks, vs), vs, value);
	if (free_distance >= reach)
		cua_port_store_b32(&cua__hashmap_state_head(view, home.bucket)->reach,
				   free_distance < ~(uint32_t)0 ? (uint32_t)free_distance + 1
								: ~(uint32_t)0,
				   CUA_RELEASE, CUA__HASHMAP_AT);
	cua_port_store_b32(free_slot, state | CUA__HASHMAP_STATE_USED, CUA_RELEASE,
			   CUA__HASHMAP_AT);
	cua_port_add_u64(&cua__hashmap_counts(view, home.bucket)->inserted, 1, CUA_RELEASE,
			 CUA__HASHMAP_AT);
	return CUA_HASHMAP_INSERTED;
}

/*
 * In a map with max_probes, where a key of this home lies in the last slot that one may: whether each of these slots
 * is taken, and none by this key; else 0. It needs no lock, for which many inserts of such keys would queue.
 */
CUA_FORCE int cua__hashmap_state_crowded(const struct cua_hashmap_view *view, uint32_t ks,
					 uint32_t vs, struct cua__hashmap_state_position p,
					 struct cua_u128 key, cua__hashmap_equal_fn *equal)
{
	const uint64_t most = cua__hashmap_state_most(view, ks, vs);
	uint64_t distance;

	if (most == cua__hashmap_state_all(view, ks, vs) ||
	    cua__hashmap_state_reach(view, ks, vs, p.bucket) < most)
		return 0;
	for (distance = 0; distance < most; distance++, cua__hashmap_state_step(view, ks, vs, &p)) {
		char *slot = cua__hashmap_state_slot(view, ks, vs, p);
		const uint32_t seen = cua__hashmap_state_glance(slot);
		uint32_t state;

		if ((seen & CUA__HASHMAP_STATE_PHASE) == CUA__HASHMAP_STATE_FREE ||
		    cua__hashmap_state_match(slot, ks, vs, seen, key, equal, 0, &state))
			return 0;
	}
	return 1;
}

/*
 * A write with the lock of the home bucket taken for it; see cua__hashmap_state_write_locked.
 */
CUA_FORCE int cua__hashmap_state_write(const struct cua_hashmap_view *view, uint32_t ks,
				       uint32_t vs, uint64_t hash, struct cua_u128 key,
				       cua__hashmap_equal_fn *equal, struct cua_u128 value,
				       cua__hashmap_next_fn *next, enum cua_update op,
				       struct cua__hashmap_spot *spot)
{
	struct cua__hashmap_state_position home = cua__hashmap_state_home(view, ks, vs, hash);
	struct cua_spinlock *lock = &cua__hashmap_state_head(view, home.bucket)->lock;
	struct cua_backoff backoff;
	int result = 0;

	cua_backoff_init(&backoff);
	while (!result) {
		/* a hot key is found without the lock once it is there, also by those who wait */
		if (!next && cua__hashmap_state_lookup(view, ks, vs, home, key, equal, spot)) {
			result = CUA_HASHMAP_EXISTS;
		} else if (cua__hashmap_state_crowded(view, ks, vs, home, key, equal)) {
			result = CUA_HASHMAP_FULL;
		} else if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			/* the unlock is in the winner's branch: a lane never waits for its own warp */
			result = cua__hashmap_state_write_locked(view, ks, vs, home, key, equal,
								 value, next, op, spot);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		}
		if (!result)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	}
	return result;
}

/* Under the lock: see cua__hashmap_state_change. */
CUA_FORCE int cua__hashmap_state_change_locked(uint32_t ks, uint32_t vs, struct cua_u128 key,
					       cua__hashmap_equal_fn *equal,
					       struct cua__hashmap_spot *spot,
					       struct cua_u128 desired)
{
	struct cua_u128 old;
	uint32_t state;

	if (!cua__hashmap_state_match(spot->at, ks, vs, cua__hashmap_state_glance(spot->at), key,
				      equal, 1, &state))
		return -1;
	old = cua__hashmap_state_load(spot->at + cua__hashmap_state_value_at(ks, vs), vs,
				      CUA_RELAXED);
	if (!cua__hashmap_same(old, spot->value)) {
		spot->value = old;
		return 0;
	}
	cua__hashmap_state_put(spot->at, ks, vs, state, desired);
	return 1;
}

/* Erases under the lock of the home bucket. Returns whether the key was there. */
CUA_FORCE int cua__hashmap_state_erase_locked(const struct cua_hashmap_view *view, uint32_t ks,
					      uint32_t vs, struct cua__hashmap_state_position p,
					      struct cua_u128 key, cua__hashmap_equal_fn *equal,
					      struct cua_u128 *old)
{
	struct cua_hashmap_counts *counts = cua__hashmap_counts(view, p.bucket);
	uint64_t left = cua__hashmap_state_reach(view, ks, vs, p.bucket);
	uint32_t state;

	for (; left; left--, cua__hashmap_state_step(view, ks, vs, &p)) {
		char *slot = cua__hashmap_state_slot(view, ks, vs, p);

		if (!cua__hashmap_state_match(slot, ks, vs, cua__hashmap_state_glance(slot), key,
					      equal, 1, &state))
			continue;
		if (old)
			*old = cua__hashmap_state_load(slot + cua__hashmap_state_value_at(ks, vs),
						       vs, CUA_RELAXED);
		/* before the slot is free: see FULL above */
		cua_port_add_u64(&counts->erased, 1, CUA_RELAXED, CUA__HASHMAP_AT);
		cua_port_store_b32(slot, state & ~CUA__HASHMAP_STATE_PHASE, CUA_RELEASE,
				   CUA__HASHMAP_AT);
		return 1;
	}
	return 0;
}

/* ---- operations of one lane. Keys and values are extended with zeros. ---- */

/* Returns 1 and sets *value, where that is not NULL, or returns 0 where the key is absent. */
CUA_FORCE int cua__hashmap_state_find(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				      uint64_t hash, struct cua_u128 key,
				      cua__hashmap_equal_fn *equal, struct cua_u128 *value)
{
	struct cua__hashmap_spot spot;

	if (!cua__hashmap_state_lookup(view, ks, vs, cua__hashmap_state_home(view, ks, vs, hash),
				       key, equal, value ? &spot : NULL))
		return 0;
	if (value)
		*value = spot.value;
	return 1;
}

/* Returns 1 and says in *spot where the key is, for cua__hashmap_state_change, or returns 0. */
CUA_FORCE int cua__hashmap_state_locate(const struct cua_hashmap_view *view, uint32_t ks,
					uint32_t vs, uint64_t hash, struct cua_u128 key,
					cua__hashmap_equal_fn *equal,
					struct cua__hashmap_spot *spot)
{
	return cua__hashmap_state_lookup(view, ks, vs, cua__hashmap_state_home(view, ks, vs, hash),
					 key, equal, spot);
}

/*
 * Adds the pair if the key is absent: INSERTED or FULL. Else EXISTS, and *spot, which may be NULL, says where
 * it is and its value.
 */
CUA_FORCE int cua__hashmap_state_enter(const struct cua_hashmap_view *view, uint32_t ks,
				       uint32_t vs, uint64_t hash, struct cua_u128 key,
				       cua__hashmap_equal_fn *equal, struct cua_u128 value,
				       struct cua__hashmap_spot *spot)
{
	return cua__hashmap_state_write(view, ks, vs, hash, key, equal, value, NULL,
					CUA__HASHMAP_NO_OP, spot);
}

/*
 * Adds the pair (key, operand) if the key is absent: INSERTED or FULL. Else EXISTS: its value becomes
 * next(value, operand, op), and *old, which may be NULL, is what it was. `next` runs under a lock.
 */
CUA_FORCE int cua__hashmap_state_update(const struct cua_hashmap_view *view, uint32_t ks,
					uint32_t vs, uint64_t hash, struct cua_u128 key,
					cua__hashmap_equal_fn *equal, struct cua_u128 operand,
					cua__hashmap_next_fn *next, enum cua_update op,
					struct cua_u128 *old)
{
	struct cua__hashmap_spot spot;
	int result = cua__hashmap_state_write(view, ks, vs, hash, key, equal, operand, next, op,
					      old ? &spot : NULL);

	if (old && result == CUA_HASHMAP_EXISTS)
		*old = spot.value;
	return result;
}

/*
 * Gives the key at *spot the value `desired` if it still has the value of *spot: 1. Returns 0 where it has
 * another one, which is then in *spot, and -1 where the key is no longer there.
 */
CUA_FORCE int cua__hashmap_state_change(const struct cua_hashmap_view *view, uint32_t ks,
					uint32_t vs, uint64_t hash, struct cua_u128 key,
					cua__hashmap_equal_fn *equal,
					struct cua__hashmap_spot *spot, struct cua_u128 desired)
{
	struct cua__hashmap_state_position home = cua__hashmap_state_home(view, ks, vs, hash);
	struct cua_spinlock *lock = &cua__hashmap_state_head(view, home.bucket)->lock;
	struct cua_backoff backoff;
	int result = 2;

	cua_backoff_init(&backoff);
	while (result == 2) {
		if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			result =
				cua__hashmap_state_change_locked(ks, vs, key, equal, spot, desired);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		} else {
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
		}
	}
	return result;
}

/* Removes the key. Returns 1 and sets *old to its value, where old is not NULL; or 0 where it was absent. */
CUA_FORCE int cua__hashmap_state_erase(const struct cua_hashmap_view *view, uint32_t ks,
				       uint32_t vs, uint64_t hash, struct cua_u128 key,
				       cua__hashmap_equal_fn *equal, struct cua_u128 *old)
{
	struct cua__hashmap_state_position home = cua__hashmap_state_home(view, ks, vs, hash);
	struct cua_spinlock *lock = &cua__hashmap_state_head(view, home.bucket)->lock;
	struct cua_backoff backoff;
	int result = -1;

	cua_backoff_init(&backoff);
	while (result < 0) {
		if (!cua__hashmap_state_lookup(view, ks, vs, home, key, equal, NULL)) {
			result = 0;
		} else if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			result = cua__hashmap_state_erase_locked(view, ks, vs, home, key, equal,
								 old);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		}
		if (result < 0)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	}
	return result;
}

/* The pair in slot number `place`, which is below cua__hashmap_state_all. Returns 0 where there is none. */
CUA_FORCE int cua__hashmap_state_at(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				    uint64_t place, struct cua_u128 *key, struct cua_u128 *value)
{
	uint32_t slots = cua__hashmap_state_slots(ks, vs), state;
	struct cua__hashmap_state_position p;
	struct cua_backoff backoff;
	const char *slot;

	p.bucket = place / slots;
	p.slot = (uint32_t)(place % slots);
	slot = cua__hashmap_state_slot(view, ks, vs, p);
	for (cua_backoff_init(&backoff);; cua_backoff_wait(&backoff)) {
		state = cua_port_load_b32(slot, CUA_ACQUIRE, CUA__HASHMAP_AT);
		if (!(state & CUA__HASHMAP_STATE_KEY))
			return 0;
		if ((state & CUA__HASHMAP_STATE_PHASE) == CUA__HASHMAP_STATE_CHANGING)
			continue;
		*key = cua__hashmap_state_load(slot + cua__hashmap_state_key_at(ks), ks,
					       CUA_ACQUIRE);
		*value = cua__hashmap_state_load(slot + cua__hashmap_state_value_at(ks, vs), vs,
						 CUA_ACQUIRE);
		if (cua__hashmap_state_glance(slot) == state)
			return 1;
	}
}

#endif /* CUATOMIC_HASHMAP_STATE_H */
