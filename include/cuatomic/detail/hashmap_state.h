/* SPDX-License-Identifier: MIT */
/*
 * The state layout of the hash map, for pairs that do not fit the machine's CAS. Each slot has a
 * state word with a version, and the lock of a key's home bucket protects the writes of that key.
 * Internal; hashmap.h has the contract.
 *
 * The hash of a key chooses its home bucket and its home slot in that bucket. A search visits slot
 * after slot from the home slot on. The reach, in the head of the home bucket, is the number of
 * slots to search for any key of this home.
 *
 * Source: open addressing with linear probing. Each home bucket records the longest probe that any
 * of its keys has needed, as in Amble and Knuth's ordered tables and in hopscotch hashing. So an
 * erased slot is simply free again, and a miss stays short however often keys are inserted and
 * erased. Versioned slots are after the sequence locks of the Linux kernel.
 *
 * Progress: a lookup is wait-free if values have at most 8 bytes. A value of 16 bytes is changed in
 *   two stores. A lookup that needs such a value waits while a writer is between the stores, and
 *   retries if the value has changed. A lookup that does not need the value never waits, but may
 *   retry. Writes of a key are blocking. Each home bucket has a spinlock; a lane holds a single
 *   lock at a time, and waits for nothing while it holds a lock.
 *
 * Argument. A slot state has a phase, FREE, BUSY, USED or CHANGING, and a version. An insert claims
 * a FREE slot by a CAS to BUSY. The version grows with each claim and with each change of a 16-byte
 * value. The slot holds a key while it is USED or CHANGING.
 *
 *   Writers. Every change of the presence or the value of a key is made under the lock of its home
 *   bucket. So the writes of a key are ordered, and between them the key stays in its slot. Only
 *   the holder of this lock changes a slot that has the key. Inserts of keys of different homes may
 *   compete for a FREE slot. The CAS, from FREE to BUSY with the next version, lets one of them win.
 *   The holder of the lock searches for its key k from the home slot up to the reach. k is not
 *   beyond the reach, because the reach is raised before k is published and never lowered. So k is
 *   never in two slots. A key of 16 bytes is two words, and may look like k while another key
 *   replaces it. The holder accepts a match only if the state is the same before and after.
 *
 *   Order of stores. An insert
 *     - claims the slot;
 *     - stores key and value with release;
 *     - stores the reach with release;
 *     - stores USED with release.
 *   An erase stores FREE with release. A change of a value of at most 8 bytes is a single store
 *   with release, and leaves the state as it is. A change of a 16-byte value
 *     - sets CHANGING with the next version by a read-modify-write, so that a reader that
 *       acquires this state still acquires the claim;
 *     - stores both words with release;
 *     - stores USED with that version with release.
 *   A find loads the state, the key, the value and the state again. All these loads acquire, except
 *   the last. Suppose that a load of the key or the value reads a store of a later claim or change.
 *   That store releases, so the later state happens before the last load, and the two states differ.
 *
 *   Find, hit. Both states were the same: a phase with a key, and version v. So the slot held k
 *   between these two loads. If the value is a single word, the hit takes effect when that word is
 *   read. A value of two words is accepted only in phase USED. Both words are of version v, so the
 *   slot held this value between the two loads too.
 *
 *   Find, miss. k was absent at some moment of the call. Suppose the contrary, that k was present
 *   during the whole call. Then k stayed in one slot, within the reach that was read at the start,
 *   and no other key had this slot meanwhile. Each read of the slot returns k, whole, and a phase
 *   that has a key. With values of at most 8 bytes the state of the slot stayed the same, so the
 *   find hit. With values of 16 bytes the state differs only if the value was changed. The find then
 *   reads the slot again, until it hits: a contradiction. So the find may go on to the next slot
 *   if a slot has another key, no key, or, with values of at most 8 bytes, a new state.
 *
 *   Insert, assign and update take effect when they store USED or, for a present key, the value. A
 *   change of a 16-byte value takes effect when it stores USED again: no reader accepts the value
 *   earlier. An erase takes effect when it stores FREE. An insert that finds the key takes effect
 *   like a find.
 *
 *   FULL: hashmap.h has the argument.
 *
 *   Versions have 30 bits. A find fails only if it pauses between two loads while its slot is
 *   claimed or changed an exact multiple of 2^30 times.
 */
/* hashmap.h includes this file after the declarations that it needs */
#ifndef CUATOMIC_HASHMAP_STATE_H
#define CUATOMIC_HASHMAP_STATE_H

#include <cuatomic/detail/hashmap_common.h>

/*
 * The map is an array of buckets of 128 bytes: the head, then slots that end with the bucket. In
 * bytes, by the sizes of key and value: the size of a slot, the slots of a bucket, the offset of
 * the first slot in the bucket, and the offsets of key and value in a slot:
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
 * The state is at byte 0 of the slot: version << 2 | phase.
 * Keys and values of 16 bytes are two words of 64 bits, lo first. An empty map is all zeros.
 */
#define CUA__HASHMAP_STATE_BUCKET 128u
#define CUA__HASHMAP_STATE_FREE 0u
#define CUA__HASHMAP_STATE_BUSY 1u
#define CUA__HASHMAP_STATE_USED 2u
#define CUA__HASHMAP_STATE_CHANGING 3u /* has a key; its 16-byte value is being stored */
#define CUA__HASHMAP_STATE_PHASE 3u
#define CUA__HASHMAP_STATE_KEY 2u /* set in the phases that have a key */

struct cua__hashmap_state_head {
	struct cua_spinlock lock; /* of the keys whose home is this bucket */
	uint32_t reach; /* slots to search for these keys, from their home slot on; ~0: all */
};
CUA_STATIC_ASSERT(sizeof(struct cua__hashmap_state_head) == 8, "the bucket is ABI");

/* ---- layout; ks and vs are the bytes of a key and of a value, constants of the callers ---- */

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
cua__hashmap_state_head_of(const struct cua_hashmap_view *view, uint64_t bucket)
{
	return (struct cua__hashmap_state_head *)(void *)((char *)view->buckets +
							  bucket * CUA__HASHMAP_STATE_BUCKET);
}

/* The position of a slot: its bucket and its number in the bucket. */
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
	/* high bits of the hash choose the bucket, low bits the slot */
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

/* Loads the state of a slot, relaxed. */
CUA_FORCE uint32_t cua__hashmap_state_glance(const char *slot)
{
	return cua_port_load_b32(slot, CUA_RELAXED, CUA__HASHMAP_AT);
}

/* Loads a key or a value of `size` bytes. The two words of 16 bytes are separate loads. */
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

/* The next version, in phase FREE. */
CUA_FORCE uint32_t cua__hashmap_state_next(uint32_t state)
{
	return (state | CUA__HASHMAP_STATE_PHASE) + 1;
}

/* Slots to search for a key of this home bucket, from its home slot on. */
CUA_FORCE uint64_t cua__hashmap_state_reach(const struct cua_hashmap_view *view, uint32_t ks,
					    uint32_t vs, uint64_t bucket)
{
	uint64_t all = cua__hashmap_state_all(view, ks, vs);
	uint32_t reach = cua_port_load_b32(&cua__hashmap_state_head_of(view, bucket)->reach,
					   CUA_RELAXED, CUA__HASHMAP_AT);

	return reach == ~(uint32_t)0 || reach > all ? all : reach;
}

/* Slots that max_probes allows for a key, from its home slot on. */
CUA_FORCE uint64_t cua__hashmap_state_most(const struct cua_hashmap_view *view, uint32_t ks,
					   uint32_t vs)
{
	return cua__hashmap_most(view) * cua__hashmap_state_slots(ks, vs);
}

/* ---- lookup ---- */

/*
 * Whether the slot holds the key. `seen` is its state as just read. On a match, *state is the state
 * with which the key was read. For a holder of the key's lock (`locked`) the result is final. Other
 * callers must load the state again after the data that they read. `seen` and the first word of the
 * key are relaxed loads that exclude most slots: if they do not match, the key was not in the slot
 * during the whole call. After a match, state and key are loaded again with acquire.
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
		/*
		 * `equal` never sees halves of two keys; without it, a find checks the state later
		 */
		if (ks < 16 || !(locked || equal) || cua__hashmap_state_glance(slot) == *state)
			return equal ? equal(there, key) : cua__hashmap_same(there, key);
		if (vs < 16)
			return 0;
	}
}

/*
 * Looks up the key from its home slot on. If spot is not NULL, sets spot->at and spot->value. Only
 * a lookup with a spot waits.
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
			/*
			 * the key was erased or inserted meanwhile: a change of the value alone
			 * keeps the state
			 */
			if (vs < 16)
				break;
		}
	}
	return 0;
}

/* ---- writing ---- */

/* Stores the value of a present key under the lock. Its slot is USED, with this state. */
CUA_FORCE void cua__hashmap_state_put(char *slot, uint32_t ks, uint32_t vs, uint32_t state,
				      struct cua_u128 v)
{
	uint32_t next = cua__hashmap_state_next(state);

	if (vs == 16)
		cua_port_xor_b32(slot, (next | CUA__HASHMAP_STATE_CHANGING) ^ state, CUA_RELAXED,
				 CUA__HASHMAP_AT);
	/* only the holder of the lock writes the value, so no read-modify-write is needed */
	cua__hashmap_state_store(slot + cua__hashmap_state_value_at(ks, vs), vs, v);
	if (vs == 16)
		cua_port_store_b32(slot, next | CUA__HASHMAP_STATE_USED, CUA_RELEASE,
				   CUA__HASHMAP_AT);
}

/* An insert checks after this many slots beyond the reach whether the map is full. */
#define CUA__HASHMAP_STATE_PATIENCE 64u

/*
 * Writes under the lock of the home bucket. An absent key is inserted with `value`. A present key
 * gets the value next(old, value, op), or keeps its value if next is NULL. *spot, if not NULL, gets
 * the address and former value of a present key. Returns a result, or 0 if the caller must release
 * the lock and retry.
 */
CUA_FORCE int cua__hashmap_state_write_locked(const struct cua_hashmap_view *view,
					      const cua__hashmap_kind kind,
					      const struct cua__hashmap_key key,
					      cua__hashmap_equal_fn *equal, struct cua_u128 value,
					      cua__hashmap_next_fn *next, enum cua_update op,
					      struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const struct cua__hashmap_state_position home =
		cua__hashmap_state_home(view, ks, vs, key.hash);
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
			   cua__hashmap_state_match(slot, ks, vs, seen, key.bits, equal, 1,
						    &state)) {
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
	cua__hashmap_state_store(free_slot + cua__hashmap_state_key_at(ks), ks, key.bits);
	cua__hashmap_state_store(free_slot + cua__hashmap_state_value_at(ks, vs), vs, value);
	if (free_distance >= reach)
		cua_port_store_b32(&cua__hashmap_state_head_of(view, home.bucket)->reach,
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
 * Returns 1 if the map has max_probes, a key of this home has reached the last slot that max_probes
 * allows, and each of the allowed slots is taken, but not by this key; else 0. After 1 an insert is
 * FULL without the lock, so hostile inserts do not queue for it. The reach spares other homes the
 * scan.
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
 * Locks the home bucket for cua__hashmap_state_write_locked, and retries until that has a result. An
 * insert, whose `next` is NULL, needs no lock if the key is present.
 */
CUA_FORCE int cua__hashmap_state_write(const struct cua_hashmap_view *view,
				       const cua__hashmap_kind kind,
				       const struct cua__hashmap_key key,
				       cua__hashmap_equal_fn *equal, struct cua_u128 value,
				       cua__hashmap_next_fn *next, enum cua_update op,
				       struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_state_position home = cua__hashmap_state_home(view, ks, vs, key.hash);
	struct cua_spinlock *lock = &cua__hashmap_state_head_of(view, home.bucket)->lock;
	struct cua_backoff backoff;
	int result = 0;

	cua_backoff_init(&backoff);
	while (!result) {
		/*
		 * a present key is found without the lock, also while this lane waits for the lock
		 */
		if (!next && cua__hashmap_state_lookup(view, ks, vs, home, key.bits, equal, spot)) {
			result = CUA_HASHMAP_EXISTS;
		} else if (cua__hashmap_state_crowded(view, ks, vs, home, key.bits, equal)) {
			result = CUA_HASHMAP_FULL;
		} else if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			/*
			 * the unlock is in this branch, so that no lane of the warp waits for a
			 * diverged holder
			 */
			result = cua__hashmap_state_write_locked(view, kind, key, equal, value,
								 next, op, spot);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		}
		if (!result)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	}
	return result;
}

/* cua__hashmap_state_change under the lock. */
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

/* Erases the key under the lock of its home bucket. Returns whether it was present. */
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
		/* counted before the slot is free: see FULL in hashmap.h */
		cua_port_add_u64(&counts->erased, 1, CUA_RELAXED, CUA__HASHMAP_AT);
		cua_port_store_b32(slot, state & ~CUA__HASHMAP_STATE_PHASE, CUA_RELEASE,
				   CUA__HASHMAP_AT);
		return 1;
	}
	return 0;
}

/* ---- operations of a single lane. Keys and values are extended with zeros. ---- */

/* Returns 1 and, if value is not NULL, sets *value; or returns 0 if the key is absent. */
CUA_FORCE int cua__hashmap_state_find(const struct cua_hashmap_view *view,
				      const cua__hashmap_kind kind,
				      const struct cua__hashmap_key key,
				      cua__hashmap_equal_fn *equal, struct cua_u128 *value)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_spot spot;

	if (!cua__hashmap_state_lookup(view, ks, vs,
				       cua__hashmap_state_home(view, ks, vs, key.hash), key.bits,
				       equal, value ? &spot : NULL))
		return 0;
	if (value)
		*value = spot.value;
	return 1;
}

/* Returns 1 and sets *spot, for cua__hashmap_state_change, or returns 0 if the key is absent. */
CUA_FORCE int cua__hashmap_state_locate(const struct cua_hashmap_view *view,
					const cua__hashmap_kind kind,
					const struct cua__hashmap_key key,
					cua__hashmap_equal_fn *equal,
					struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);

	return cua__hashmap_state_lookup(view, ks, vs,
					 cua__hashmap_state_home(view, ks, vs, key.hash), key.bits,
					 equal, spot);
}

/*
 * Inserts the pair if the key is absent: INSERTED or FULL. Else EXISTS; *spot, if not NULL, then
 * gets the address and the value of the key.
 */
CUA_FORCE int cua__hashmap_state_enter(const struct cua_hashmap_view *view,
				       const cua__hashmap_kind kind,
				       const struct cua__hashmap_key key,
				       cua__hashmap_equal_fn *equal, struct cua_u128 value,
				       struct cua__hashmap_spot *spot)
{
	return cua__hashmap_state_write(view, kind, key, equal, value, NULL, CUA__HASHMAP_NO_OP,
					spot);
}

/*
 * Inserts the pair (key, operand) if the key is absent: INSERTED or FULL. Else EXISTS: the value
 * becomes next(value, operand, op), and *old, if not NULL, gets the former value. `next` runs under
 * a lock.
 */
CUA_FORCE int cua__hashmap_state_update(const struct cua_hashmap_view *view,
					const cua__hashmap_kind kind,
					const struct cua__hashmap_key key,
					cua__hashmap_equal_fn *equal, struct cua_u128 operand,
					cua__hashmap_next_fn *next, enum cua_update op,
					struct cua_u128 *old)
{
	struct cua__hashmap_spot spot;
	int result = cua__hashmap_state_write(view, kind, key, equal, operand, next, op,
					      old ? &spot : NULL);

	if (old && result == CUA_HASHMAP_EXISTS)
		*old = spot.value;
	return result;
}

/*
 * Sets the value of the key at *spot to `desired` if it still is spot->value: returns 1. Returns 0
 * if the key has another value, and copies that to spot->value. Returns -1 if the slot no longer
 * holds the key.
 */
CUA_FORCE int cua__hashmap_state_change(const struct cua_hashmap_view *view,
					const cua__hashmap_kind kind,
					const struct cua__hashmap_key key,
					cua__hashmap_equal_fn *equal,
					struct cua__hashmap_spot *spot, struct cua_u128 desired)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_state_position home = cua__hashmap_state_home(view, ks, vs, key.hash);
	struct cua_spinlock *lock = &cua__hashmap_state_head_of(view, home.bucket)->lock;
	struct cua_backoff backoff;
	int result = 2;

	cua_backoff_init(&backoff);
	while (result == 2) {
		if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			result = cua__hashmap_state_change_locked(ks, vs, key.bits, equal, spot,
								  desired);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		} else {
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
		}
	}
	return result;
}

/*
 * Erases the key. Returns 1 and, if old is not NULL, sets *old to its value; or 0 if it was absent.
 */
CUA_FORCE int cua__hashmap_state_erase(const struct cua_hashmap_view *view,
				       const cua__hashmap_kind kind,
				       const struct cua__hashmap_key key,
				       cua__hashmap_equal_fn *equal, struct cua_u128 *old)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_state_position home = cua__hashmap_state_home(view, ks, vs, key.hash);
	struct cua_spinlock *lock = &cua__hashmap_state_head_of(view, home.bucket)->lock;
	struct cua_backoff backoff;
	int result = -1;

	cua_backoff_init(&backoff);
	while (result < 0) {
		if (!cua__hashmap_state_lookup(view, ks, vs, home, key.bits, equal, NULL)) {
			result = 0;
		} else if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			result = cua__hashmap_state_erase_locked(view, ks, vs, home, key.bits,
								 equal, old);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
		}
		if (result < 0)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	}
	return result;
}

/*
 * Reads the pair in slot `number`, below cua__hashmap_state_all. Returns 0 if the slot has no pair.
 */
CUA_FORCE int cua__hashmap_state_at(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				    uint64_t number, struct cua_u128 *key, struct cua_u128 *value)
{
	uint32_t slots = cua__hashmap_state_slots(ks, vs), state;
	struct cua__hashmap_state_position p;
	struct cua_backoff backoff;
	const char *slot;

	p.bucket = number / slots;
	p.slot = (uint32_t)(number % slots);
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
