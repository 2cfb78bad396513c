/* SPDX-License-Identifier: MIT */
/*
 * Hash map operations by quads, for maps in the word layout.
 *
 * Source: cooperative probing of a bucket by part of a warp, as in WarpDrive (Juenger, Hundt,
 * Schmidt, 2018) and SlabHash (Ashkiani, Farach-Colton, Owens, 2018). Here each lane of a quad has
 * a key of its own, and the quad reads the buckets of all 4 keys together.
 *
 * A quad is an aligned group of 4 lanes of a warp: lanes 0 to 3, 4 to 7, and so on. Each lane reads
 * 16 bytes of each of the 4 buckets, so a bucket of 64 bytes costs a single memory access. The
 * lanes then exchange the pieces, and each lane searches its own bucket in registers. Whole quads
 * call these functions in converged code. `mask` names the calling lanes of the warp, and all of
 * them pass the same mask. A lane without a key passes active = 0 and gets 0.
 *
 * CUA_DEFINE_HASHMAP_QUAD(name, K, V), at file scope, without a semicolon, after
 * CUA_DEFINE_HASHMAP(name, K, V), defines
 *
 *   int name_find_quad(view, mask, active, key, &value)      as name_find, ...
 *   int name_contains_quad(view, mask, active, key)
 *   int name_insert_quad(view, mask, active, key, value)
 *   int name_insert_or_get_quad(view, mask, active, key, value, &there)
 *   int name_assign_quad(view, mask, active, key, value)
 *   int name_exchange_quad(view, mask, active, key, value, &old)
 *   int name_compare_exchange_quad(view, mask, active, key, &expected, desired)
 *   int name_erase_quad(view, mask, active, key)
 *
 * CUA_DEFINE_HASHSET_QUAD(name, K), after CUA_DEFINE_HASHSET(name, K), defines contains, insert
 * (without a value) and erase.
 *
 * CUA_DEFINE_HASHMAP_QUAD_WITH(name, K, V) and CUA_DEFINE_HASHSET_QUAD_WITH(name, K) define the
 * same after CUA_DEFINE_HASHMAP_WITH and CUA_DEFINE_HASHSET_WITH.
 *
 * CUA_DEFINE_HASHMAP_UPDATE_QUAD(update, name), after CUA_DEFINE_HASHMAP_QUAD(name, K, V) and
 * CUA_DEFINE_HASHMAP_UPDATE(update, name, expression) or CUA_DEFINE_HASHMAP_UPDATE_OP(update, name,
 * op), defines
 *
 *   int update_quad(view, mask, active, key, operand)        as update
 *
 * These functions fall back to the operations of a single lane in three cases: the map has the
 * state layout; the caller is a host thread (a warp of 1 lane); or an insert, assign, exchange or
 * update finds its home bucket full and the key not in it.
 *
 * Synchronization, scope, memory order, progress: as the operation of a single lane in hashmap.h.
 * In addition, no lane returns before every lane in `mask` has finished its lookup.
 *
 * Argument. The argument in hashmap_word.h assumes no order among the loads of a bucket, so any
 * lane may make them.
 *   - The lanes converge before they read. So loads for a key see all that any lane did earlier.
 *   - They converge after they read, too. After a hit, the lane with the key loads the word once
 *     more, with acquire. It reads the word that the quad saw, or a later word of that slot.
 *   - The lane with the key locks the home bucket, and the lanes converge before they read under
 *     that lock.
 *   - A lane that finds no free slot waits until all inserts are counted: see "Full" in hashmap.h.
 *     So a warp counts its inserts before any of its lanes may wait.
 */
#ifndef CUATOMIC_HASHMAP_QUAD_H
#define CUATOMIC_HASHMAP_QUAD_H

#include <cuatomic/hashmap.h>

/*
 * The result of a quad's lookup for the key of a lane. A *walk* (cua__quad_walk) searches the
 * buckets of the key's probe sequence; with its argument `free` it also searches for a free slot,
 * which is EMPTY or ERASED. A map on a GPU has fewer than 2^32 buckets.
 */
struct cua__hashmap_seen {
	int there; /* 1, 0 or -1 as cua__hashmap_word_search returns it */
	uint32_t home;
	/*
	 * the bucket of the key if it is there; of a walk with `free`, the bucket of the free slot
	 */
	uint32_t bucket;
	/*
	 * the slot of the key, or the first EMPTY slot; of a walk with `free`, the free slot or
	 * NONE
	 */
	uint32_t slot;
	/*
	 * Before a walk, the farthest distance to search. After a walk with `free`, the distance of
	 * the free slot's bucket.
	 */
	uint32_t distance;
	/*
	 * The half of a head that has the classes. The head is that of the bucket that
	 * cua__quad_look_at searched, and after a walk with `free` that of the home.
	 */
	uint64_t head;
	struct cua_u128 value;
};

#define CUA__QUAD_NONE (~(uint32_t)0)
/* A walk for a free slot ends after this distance, in buckets. */
#define CUA__QUAD_PATIENCE 16u
/*
 * A bulk insert tries this often for locks that may be held. Then each lane waits for its lock
 * alone.
 */
#define CUA__QUAD_TRIES 4

/* Whether this code has quad operations for such a map. */
#define CUA__HASHMAP_HAS_QUADS(view, ks, vs)                                                       \
	(CUA_WARP_LANES > 1 && CUA__HASHMAP_IS_WORDS(view, ks, vs) &&                              \
	 cua__hashmap_has_words(ks, vs))

/* The lanes that call a quad operation together, and whether this lane has a key. */
struct cua__quad_lanes {
	uint32_t mask;
	int active;
};

CUA_FORCE struct cua__quad_lanes cua__quad_lanes_of(uint32_t mask, int active)
{
	struct cua__quad_lanes lanes;

	lanes.mask = mask;
	lanes.active = active;
	return lanes;
}

/*
 * Reads the bucket of each lane into its registers: w[0] and w[1] get the first 16 bytes, and so
 * on. `lanes` has a bit for each lane of the quad whose bucket is wanted.
 *
 * The quad reads these buckets in turn, and its lanes exchange the pieces: see
 * detail/hashmap_bucket.h.
 */
CUA_FORCE void cua__quad_read(const struct cua_hashmap_view *view, int wide, uint32_t mask,
			      uint32_t lanes, uint32_t bucket, uint64_t w[8])
{
	const uint32_t lane = cua_port_lane(), part = lane % 4;
	uint32_t j;

	CUA__UNROLL
	for (j = 0; j < 4; j++) {
		const uint32_t b = cua_port_shuffle_u32(mask, bucket, lane - part + j);

		w[2 * j] = w[2 * j + 1] = 0;
		if (lanes >> j & 1)
			cua__piece_load(cua__hashmap_word_bucket(view, b) + 16 * (part ^ j), wide,
					w + 2 * j);
	}
	cua__pieces_exchange(mask, w);
}

/*
 * Searches a bucket in registers for a key and sets seen->there, seen->slot and, on a hit,
 * seen->value. Returns the first slot without a pair, or NONE.
 */
CUA_FORCE uint32_t cua__quad_search(uint32_t ks, uint32_t vs, const uint64_t w[8],
				    struct cua_u128 key, cua__hashmap_equal_fn *equal,
				    struct cua__hashmap_seen *seen)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs);
	uint32_t i, slot, hit = CUA__QUAD_NONE, empty = CUA__QUAD_NONE, unused = CUA__QUAD_NONE;
	struct cua_u128 word = {0, 0};

	CUA__UNROLL
	for (i = 0; i < slots; i++) {
		slot = slots - 1 - i;
		word.lo = wide ? w[2 * slot + 2] : w[slot + 1];
		word.hi = wide ? w[2 * slot + 3] : 0;
		if (cua__hashmap_word_has(ks, vs, word, key, equal)) {
			hit = slot;
			seen->value = cua__hashmap_word_value(ks, vs, word);
		}
		empty = cua__hashmap_word_empty(word) ? slot : empty;
		unused = cua__hashmap_word_used(ks, vs, word) ? unused : slot;
	}
	word.lo = wide ? w[2 * slots] : w[slots];
	word.hi = wide ? w[2 * slots + 1] : 0;
	seen->there = hit != CUA__QUAD_NONE ? 1 : cua__hashmap_word_empty(word) ? -1 : 0;
	seen->slot = seen->there > 0 ? hit : empty;
	return unused;
}

/* The address of the slot of a key that was found. */
CUA_FORCE char *cua__quad_at(const struct cua_hashmap_view *view, int wide,
			     const struct cua__hashmap_seen *seen)
{
	return cua__hashmap_word_bucket(view, seen->bucket) + (seen->slot + 1) * (wide ? 16 : 8);
}

/* Each lane of mask searches a bucket for its key. In lanes without a key, *seen has no meaning. */
CUA_FORCE void cua__quad_look_at(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				 uint32_t mask, uint32_t bucket, struct cua_u128 key,
				 cua__hashmap_equal_fn *equal, enum cua_order order,
				 struct cua__hashmap_seen *seen)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	uint64_t w[8];

	/*
	 * orders earlier writes of a lane before the loads that others make for it; shuffles order
	 * nothing
	 */
	if (order != CUA_RELAXED)
		cua_port_sync_warp(mask);
	cua__quad_read(view, wide, mask, 15, bucket, w);
	(void)cua__quad_search(ks, vs, w, key, equal, seen);
	seen->bucket = bucket;
	seen->head = w[wide != 0];
	if (order != CUA_RELAXED) {
		/*
		 * orders the loads that other lanes made for this key before this lane's own load
		 */
		cua_port_sync_warp(mask);
		if (seen->there > 0)
			(void)cua__hashmap_word_load(cua__quad_at(view, wide, seen), wide,
						     CUA_ACQUIRE);
	}
}

/* The farthest distance of all classes of a home bucket, from its head. */
CUA_FORCE uint32_t cua__quad_farthest(const struct cua_hashmap_view *view, uint64_t head)
{
	const uint32_t far = cua__hashmap_far_of((uint32_t)(head >> 24) & 255);

	return (uint32_t)(far < view->n_buckets ? far : view->n_buckets - 1);
}

/* The farthest distance from its home at which the lane's key may be. */
CUA_FORCE uint32_t cua__quad_far(const struct cua_hashmap_view *view, int wide, uint64_t hash,
				 const struct cua__hashmap_seen *seen)
{
	const uint32_t far =
		cua__hashmap_class_far(wide, wide ? seen->head : seen->head >> 32, hash);

	if (far < cua__hashmap_class_most(wide))
		return far;
	if (!wide)
		return cua__quad_farthest(view, seen->head);
	/* loaded after the classes, for the reason given at cua__hashmap_word_reach */
	(void)cua_port_load_b64(cua__hashmap_word_bucket(view, seen->home) + 8, CUA_ACQUIRE,
				CUA__HASHMAP_AT);
	return cua__quad_farthest(view,
				  cua_port_load_b64(cua__hashmap_word_bucket(view, seen->home),
						    CUA_RELAXED, CUA__HASHMAP_AT));
}

/*
 * Each active lane of the mask searches the buckets of its probe sequence. A quad reads the
 * buckets of all its pending lanes together.
 *
 * Without `free`, the walk starts at seen->distance and ends at distance 1: a key of a class is
 * mostly at the farthest distance that the class records.
 *
 * With `free`, the walk starts at the home. It ends when it has read the first free slot and all
 * buckets that may hold the key. These are the buckets up to the farthest distance of the home's
 * class, at most up to seen->distance. The walk also ends at the first bucket that has an EMPTY
 * slot, and after CUA__QUAD_PATIENCE. there = -1 then means that the home has EMPTY slots.
 */
CUA_FORCE void cua__quad_walk(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
			      const struct cua__quad_lanes lanes, const struct cua__hashmap_key key,
			      cua__hashmap_equal_fn *equal, enum cua_order order, int free,
			      struct cua__hashmap_seen *seen)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t part = cua_port_lane() % 4, base = cua_port_lane() - part;
	uint32_t far = seen->distance, distance = free ? 0 : far, bucket = seen->home, waiting;
	int pending = lanes.active;

	if (pending && distance)
		bucket = cua__hashmap_word_probe(view, seen->home, key.hash, distance);
	while ((waiting = cua_port_ballot(lanes.mask, pending)) != 0) {
		struct cua__hashmap_seen here = {0, 0, 0, 0, 0, 0, {0, 0}};
		uint32_t unused;
		uint64_t w[8];

		cua__quad_read(view, wide, lanes.mask, waiting >> base & 15, bucket, w);
		if (order != CUA_RELAXED)
			cua_port_sync_warp(lanes.mask);
		if (!pending)
			continue;
		unused = cua__quad_search(ks, vs, w, key.bits, equal, &here);
		if (here.there > 0 && free && distance > far) {
			/*
			 * its insert has not raised the home's class yet; until then the key is
			 * absent
			 */
			seen->there = 0;
			seen->slot = CUA__QUAD_NONE;
			pending = 0;
			continue;
		}
		if (here.there > 0) {
			seen->there = 1;
			seen->value = here.value;
			seen->slot = here.slot;
			seen->bucket = bucket;
			if (order != CUA_RELAXED)
				(void)cua__hashmap_word_load(cua__quad_at(view, wide, seen), wide,
							     CUA_ACQUIRE);
			pending = 0;
			continue;
		}
		if (!free) {
			pending = --distance > 0;
		} else {
			if (distance == 0) {
				const uint32_t most = cua__hashmap_class_most(wide);
				const uint32_t of_class = cua__hashmap_class_far(
					wide, wide ? w[1] : w[0] >> 32, key.hash);

				/*
				 * the loads are unordered: a slot before the last may seem EMPTY
				 * alone
				 */
				if (here.slot != CUA__QUAD_NONE)
					here.there = -1;
				seen->head = w[wide != 0];
				far = of_class < most ? of_class : far;
				seen->there = here.there;
				seen->slot = CUA__QUAD_NONE;
			}
			if (seen->slot == CUA__QUAD_NONE && unused != CUA__QUAD_NONE) {
				seen->bucket = bucket;
				seen->slot = unused;
				seen->distance = distance;
			}
			pending = !here.there && (distance < far || seen->slot == CUA__QUAD_NONE) &&
				  distance + 1 < view->n_buckets && distance < CUA__QUAD_PATIENCE;
			/* some slots that may hold the key were not searched */
			if (!pending && !here.there && distance < far)
				seen->slot = CUA__QUAD_NONE;
			distance++;
		}
		if (pending)
			bucket = cua__hashmap_word_probe(view, seen->home, key.hash, distance);
	}
}

/*
 * Looks up the key of each active lane, in its home and then in its other buckets. The caller sets
 * active = 0 for reserved keys.
 */
CUA_FORCE void cua__quad_look(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
			      const struct cua__quad_lanes lanes, const struct cua__hashmap_key key,
			      cua__hashmap_equal_fn *equal, enum cua_order order,
			      struct cua__hashmap_seen *seen)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	uint32_t far = 0;

	seen->home = cua__hashmap_word_home(view, key.hash);
	cua__quad_look_at(view, kind, lanes.mask, seen->home, key.bits, equal, order, seen);
	if (!lanes.active)
		seen->there = 0;
	else if (seen->there == 0)
		far = cua__quad_far(view, cua__hashmap_is_wide(ks, vs), key.hash, seen);
	seen->distance = far;
	if (cua_port_ballot(lanes.mask, far != 0))
		cua__quad_walk(view, kind, cua__quad_lanes_of(lanes.mask, far != 0), key, equal,
			       order, 0, seen);
}

/* Sets the spot, with address and word, of a key that a lookup has found. */
CUA_FORCE void cua__quad_spot(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
			      struct cua_u128 key, const struct cua__hashmap_seen *seen,
			      struct cua__hashmap_spot *spot)
{
	spot->at = cua__quad_at(view, cua__hashmap_is_wide(ks, vs), seen);
	spot->word = cua__hashmap_word_of(ks, vs, key, seen->value);
}

/* Returns 1 and sets *value if the lane's key is present. */
CUA_FORCE int cua__quad_find(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
			     const struct cua__quad_lanes lanes, const struct cua__hashmap_key key,
			     cua__hashmap_equal_fn *equal, enum cua_order order,
			     struct cua_u128 *value)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	const char *reserved = cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal);

	cua__quad_look(view, kind, cua__quad_lanes_of(lanes.mask, lanes.active && !reserved), key,
		       equal, order, &seen);
	if (reserved && lanes.active) {
		struct cua_u128 w =
			cua__hashmap_word_load(reserved, cua__hashmap_is_wide(ks, vs), CUA_ACQUIRE);

		seen.there = !cua__hashmap_word_empty(w);
		seen.value = cua__hashmap_word_value(ks, vs, w);
	}
	*value = seen.value;
	return seen.there > 0;
}

/*
 * Returns EXISTS if the lane's key had the value *expected, and has set it to `desired`. Returns
 * DIFFERS if the key has another value, and has copied that to *expected. Returns 0 if the key is
 * absent. Returns -1 if the lane must do the operation alone: the key is reserved, or it was erased
 * between the lookup and the CAS.
 */
CUA_FORCE int cua__quad_compare_exchange(const struct cua_hashmap_view *view,
					 const cua__hashmap_kind kind,
					 const struct cua__quad_lanes lanes,
					 const struct cua__hashmap_key key,
					 cua__hashmap_equal_fn *equal, struct cua_u128 *expected,
					 struct cua_u128 desired)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	const int is_reserved = cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal) != NULL;
	int result;

	cua__quad_look(view, kind, cua__quad_lanes_of(lanes.mask, lanes.active && !is_reserved),
		       key, equal, CUA_ACQUIRE, &seen);
	if (!lanes.active || is_reserved || seen.there <= 0)
		return lanes.active && is_reserved ? -1 : 0;
	cua__quad_spot(view, ks, vs, key.bits, &seen, &spot);
	spot.value = seen.value;
	result = cua__hashmap_compare_exchange_at(view, kind, key, equal, &spot, expected, desired);
	return result ? result : -1;
}

/* The stripe of counts that a warp adds to. */
CUA_FORCE struct cua_hashmap_counts *cua__quad_counts(const struct cua_hashmap_view *view)
{
	return cua__hashmap_counts(view, cua_port_block() * 8 + cua_port_thread() / 32);
}

/*
 * One lane adds *added, the number of keys that the lanes of mask have inserted, to the map's
 * counts. All lanes have the same *added, and set it to 0.
 *
 * A thread that sees this count must also see the count of each erase that freed a slot taken by
 * these inserts. With CUA_RELAXED, as in bulk calls, this rests on the L2 cache and not on the
 * memory model: the additions and the CAS take effect in the L2, one after the other.
 */
CUA_FORCE void cua__quad_count(const struct cua_hashmap_view *view, uint32_t mask,
			       enum cua_order order, uint32_t *added)
{
	if (order != CUA_RELAXED)
		cua_port_sync_warp(mask);
	if (*added && cua_port_lane() == cua_port_ffs_u32(mask) - 1)
		cua_port_add_u64(&cua__quad_counts(view)->inserted, *added,
				 order == CUA_RELAXED ? CUA_RELAXED : CUA_RELEASE, CUA__HASHMAP_AT);
	*added = 0;
}

/*
 * Inserts each lane's pair if the key is absent and its home has an EMPTY slot. Returns INSERTED,
 * not counted yet; EXISTS, with the value in *seen; or 0. The inserts of mask must be counted
 * before a lane of it continues alone, because that lane may wait for the counts to be complete.
 * With the order CUA_ACQUIRE the caller has made a fence, so that the inserts release.
 */
CUA_FORCE int cua__quad_enter_home(const struct cua_hashmap_view *view,
				   const cua__hashmap_kind kind, const struct cua__quad_lanes lanes,
				   const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
				   struct cua_u128 value, enum cua_order order,
				   struct cua__hashmap_seen *seen)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int result = 0;

	seen->home = cua__hashmap_word_home(view, key.hash);
	cua__quad_look_at(view, kind, lanes.mask, seen->home, key.bits, equal, order, seen);
	if (!lanes.active || cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal))
		return 0;
	if (seen->there > 0)
		return CUA_HASHMAP_EXISTS;
	if (seen->there < 0) {
		result = cua__hashmap_word_claim(
			cua__hashmap_word_bucket(view, seen->home), kind, seen->slot, key.bits,
			equal, cua__hashmap_word_of(ks, vs, key.bits, value), order, &spot);
		seen->value = cua__hashmap_word_value(ks, vs, spot.word);
	}
	return result;
}

/*
 * cua__hashmap_word_enter_full for the lanes of mask together, without waiting. Each lane tries
 * once to lock its home bucket, and searches for its key whether it got the lock or not. Returns
 *   INSERTED  not counted yet;
 *   EXISTS    with the value in *seen;
 *   0         another lane held the lock or claimed the slot: the caller may try again;
 *   -1        a further try is useless, so the lane must insert alone (cua__hashmap_word_enter): no
 *             slot up to CUA__QUAD_PATIENCE is free, or the home has EMPTY slots.
 * Memory order: relaxed, except that locking acquires and unlocking releases.
 */
CUA_FORCE int cua__quad_enter_full(const struct cua_hashmap_view *view,
				   const cua__hashmap_kind kind, const struct cua__quad_lanes lanes,
				   const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
				   struct cua_u128 value, struct cua__hashmap_seen *seen)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const struct cua_u128 word = cua__hashmap_word_of(ks, vs, key.bits, value), empty = {0, 0};
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs);
	struct cua__hashmap_head head = {CUA__HASHMAP_LOCKED, 0};
	struct cua_u128 was;
	int result = 0;
	char *home;

	seen->home = cua__hashmap_word_home(view, key.hash);
	seen->there = 0;
	seen->slot = CUA__QUAD_NONE;
	home = cua__hashmap_word_bucket(view, seen->home);
	if (lanes.active)
		head.lo = cua_port_fetch_or_b64(home, CUA__HASHMAP_LOCKED, CUA_ACQUIRE,
						CUA__HASHMAP_AT);
	/* the lanes of the quad read for the lane that has the lock */
	cua_port_sync_warp(lanes.mask);
	seen->distance = cua__quad_farthest(view, head.lo);
	cua__quad_walk(view, kind, lanes, key, equal, CUA_RELAXED, 1, seen);
	if (seen->there)
		result = seen->there > 0 ? CUA_HASHMAP_EXISTS : -1;
	if (head.lo & CUA__HASHMAP_LOCKED)
		return result;
	if (wide)
		head.hi = seen->there > 0
				  ? cua_port_load_b64(home + 8, CUA_RELAXED, CUA__HASHMAP_AT)
				  : seen->head;
	if (seen->there == 0 && seen->slot != CUA__QUAD_NONE) {
		char *bucket = cua__hashmap_word_bucket(view, seen->bucket);
		const uint32_t slots = cua__hashmap_word_slots(ks, vs);
		uint32_t slot;

		/* inserts of other homes may claim slots here meanwhile */
		for (slot = seen->slot; slot < slots && !result; slot++) {
			char *at = bucket + (slot + 1) * (wide ? 16 : 8);

			if (cua__hashmap_word_cas(at, wide, empty, word, CUA_RELAXED, &was) ||
			    (cua__hashmap_same(was, erased) &&
			     cua__hashmap_word_cas(at, wide, erased, word, CUA_RELAXED, &was)))
				result = CUA_HASHMAP_INSERTED;
		}
		if (result)
			head = cua__hashmap_word_raise(wide, head, key.hash, seen->distance);
	} else if (!result) {
		result = -1;
	}
	cua__hashmap_word_unlock(home, wide, head);
	return result;
}

CUA_FORCE struct cua_u128 cua__quad_value(uint32_t vs, uint32_t mask, struct cua_u128 value,
					  uint32_t lane)
{
	if (vs == 4)
		value.lo = cua_port_shuffle_u32(mask, (uint32_t)value.lo, lane);
	else if (vs)
		value.lo = cua_port_shuffle_u64(mask, value.lo, lane);
	return value;
}

/* Lanes of an octet, an aligned group of 8 lanes that inserts a key together. */
#define CUA__OCTET_LANES 8u

/*
 * cua__quad_enter_full by octets, with a key for each octet. An octet reads two buckets at a time,
 * which keeps the latency low if there are few keys. All lanes of an octet pass the same key and
 * get the same result. INSERTED stands for a single insert of the octet.
 */
CUA_FORCE int cua__octet_enter_full(const struct cua_hashmap_view *view,
				    const cua__hashmap_kind kind,
				    const struct cua__quad_lanes lanes,
				    const struct cua__hashmap_key key, struct cua_u128 value,
				    struct cua_u128 *value_there)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t lane = cua_port_lane(), base = lane & ~(CUA__OCTET_LANES - 1),
		       part = lane % 4;
	const struct cua_u128 word = cua__hashmap_word_of(ks, vs, key.bits, value);
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs);
	const uint32_t home = cua__hashmap_word_home(view, key.hash);
	char *const at_home = cua__hashmap_word_bucket(view, home);
	struct cua__hashmap_head head = {CUA__HASHMAP_LOCKED, 0};
	struct cua_u128 expected = {0, 0}, was;
	/*
	 * of the octet: the key's farthest distance, the distance reached, the lane that has a free
	 * slot
	 */
	uint32_t far, distance = 0, owner = CUA__QUAD_NONE, put_distance = 0;
	char *free_at = NULL;
	int pending = lanes.active, result = 0, mine = 0, owns;

	if (lanes.active && lane == base)
		head.lo = cua_port_fetch_or_b64(at_home, CUA__HASHMAP_LOCKED, CUA_ACQUIRE,
						CUA__HASHMAP_AT);
	/* the octet reads for its first lane, which has the lock */
	cua_port_sync_warp(lanes.mask);
	head.lo = cua_port_shuffle_u64(lanes.mask, head.lo, base);
	owns = !(head.lo & CUA__HASHMAP_LOCKED);
	far = cua__quad_farthest(view, head.lo);
	while (cua_port_ballot(lanes.mask, pending)) {
		const uint32_t d = distance + (lane - base) / 4;
		const int looks = pending && d < view->n_buckets;
		char *at = cua__hashmap_word_bucket(
				   view, cua__hashmap_word_probe(view, home, key.hash, d)) +
			   16 * part;
		uint32_t hits, frees, empties;
		struct cua_u128 first, second, there;
		uint64_t w[2] = {0, 0}, classes;
		int in_first, in_second, first_free, second_free;

		if (looks)
			cua__piece_load(at, wide, w);
		first.lo = w[0];
		first.hi = wide ? w[1] : 0;
		second.lo = w[1];
		second.hi = 0;
		/* the first word of lane 0 of a quad is the head, not a slot */
		in_first = looks && part && cua__hashmap_word_has(ks, vs, first, key.bits, NULL);
		in_second = looks && !wide && cua__hashmap_word_has(ks, vs, second, key.bits, NULL);
		first_free = looks && part && !cua__hashmap_word_used(ks, vs, first);
		second_free = looks && !wide && !cua__hashmap_word_used(ks, vs, second);
		hits = cua_port_ballot(lanes.mask, in_first || in_second) >> base & 255;
		frees = cua_port_ballot(lanes.mask, first_free || second_free) >> base & 255;
		/* every slot is checked, not the last alone, because the loads are unordered */
		empties = cua_port_ballot(lanes.mask,
					  looks && ((part && cua__hashmap_word_empty(first)) ||
						    (!wide && cua__hashmap_word_empty(second)))) >>
				  base &
			  255;
		classes = cua_port_shuffle_u64(lanes.mask, w[wide != 0], base);
		there = cua__quad_value(vs, lanes.mask,
					cua__hashmap_word_value(ks, vs, in_second ? second : first),
					base + (hits ? cua_port_ffs_u32(hits) - 1 : 0));
		if (!pending)
			continue;
		if (!distance) {
			const uint32_t most = cua__hashmap_class_most(wide);
			const uint32_t of_class = cua__hashmap_class_far(
				wide, wide ? classes : classes >> 32, key.hash);

			head.hi = wide ? classes : 0;
			far = of_class < most ? of_class : far;
		}
		if (hits) {
			/*
			 * beyond `far`, its insert has not raised the class yet: the key is absent
			 */
			result = distance + (cua_port_ffs_u32(hits) - 1) / 4 <= far
					 ? CUA_HASHMAP_EXISTS
					 : 0;
			*value_there = there;
			mine = 0;
			pending = 0;
		} else if (!distance && (empties & 15)) {
			result = -1;
			pending = 0;
		} else {
			/* no key is stored behind an EMPTY slot of its probe sequence */
			if (empties)
				far = 0;
			if (owner == CUA__QUAD_NONE && frees) {
				owner = base + cua_port_ffs_u32(frees) - 1;
				put_distance = distance + (owner - base) / 4;
				mine = lane == owner;
				free_at = at + (first_free ? 0 : 8);
				expected = first_free ? first : second;
			}
			distance += 2;
			pending = far >= distance || owner == CUA__QUAD_NONE;
			if (pending &&
			    (distance >= view->n_buckets || distance > CUA__QUAD_PATIENCE)) {
				result = -1;
				pending = 0;
			}
		}
	}
	mine = mine && !result && owns &&
	       (cua__hashmap_word_cas(free_at, wide, expected, word, CUA_RELAXED, &was) ||
		/* claimed and erased since the load: the slot is still free */
		(cua__hashmap_same(was, erased) &&
		 cua__hashmap_word_cas(free_at, wide, erased, word, CUA_RELAXED, &was)));
	if (cua_port_ballot(lanes.mask, mine) >> base & 255) {
		result = CUA_HASHMAP_INSERTED;
		head = cua__hashmap_word_raise(wide, head, key.hash, put_distance);
	}
	/* orders the octet's CAS before the unlock */
	cua_port_sync_warp(lanes.mask);
	if (lane == base && owns)
		cua__hashmap_word_unlock(at_home, wide, head);
	return result;
}

/*
 * Inserts each lane's pair if the key is absent and its home has an EMPTY slot. If the key is in
 * its home and `next` is not NULL, the value becomes next(value, operand). Returns INSERTED;
 * EXISTS, with the former value in the spot; or 0 if it changed nothing. The caller then retries the
 * operation alone.
 */
CUA_FORCE int cua__quad_write(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
			      const struct cua__quad_lanes lanes, const struct cua__hashmap_key key,
			      cua__hashmap_equal_fn *equal, struct cua_u128 operand,
			      cua__hashmap_next_fn *next, struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	uint32_t added;
	int result;

	cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);
	result = cua__quad_enter_home(view, kind, lanes, key, equal, operand, CUA_ACQUIRE, &seen);

	/* counted before a lane may wait for the counts to be complete */
	added = cua_port_popc_u32(cua_port_ballot(lanes.mask, result == CUA_HASHMAP_INSERTED));
	cua__quad_count(view, lanes.mask, CUA_ACQUIRE, &added);
	spot->value = seen.value;
	if (result != CUA_HASHMAP_EXISTS || !next)
		return result;
	/* another lane stored the key after the search, so *seen does not have its slot */
	if (seen.there <= 0)
		return 0;
	cua__quad_spot(view, ks, vs, key.bits, &seen, spot);
	return cua__hashmap_word_change_by(ks, vs, operand, next, CUA__HASHMAP_NO_OP, spot)
		       ? CUA_HASHMAP_EXISTS
		       : 0;
}

/*
 * Erases the lane's key. Returns 1, or 0 if it was absent or the map never erases. `order`, RELEASE
 * or ACQ_REL, is the order of the CAS.
 */
CUA_FORCE int cua__quad_erase(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
			      const struct cua__quad_lanes lanes, const struct cua__hashmap_key key,
			      cua__hashmap_equal_fn *equal, enum cua_order order)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	char *reserved = cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint64_t *counted = &cua__quad_counts(view)->erased;
	uint32_t there;

	if (order != CUA_RELAXED)
		cua_port_sync_warp(lanes.mask);
	if (view->no_erase)
		return 0;
	cua__quad_look(view, kind, cua__quad_lanes_of(lanes.mask, lanes.active && !reserved), key,
		       equal, CUA_RELAXED, &seen);
	there = cua_port_ballot(lanes.mask, seen.there > 0);
	if (there && cua_port_lane() == cua_port_ffs_u32(lanes.mask) - 1)
		cua_port_add_u64(counted, cua_port_popc_u32(there), CUA_RELAXED, CUA__HASHMAP_AT);
	cua_port_sync_warp(lanes.mask);
	if (seen.there > 0) {
		cua__quad_spot(view, ks, vs, key.bits, &seen, &spot);
		return cua__hashmap_word_take(ks, vs, key.bits, equal, order, counted, &spot);
	}
	return lanes.active && reserved &&
	       cua__hashmap_reserved_erase(reserved, ks, vs, &seen.value);
}

/* name##_contains_quad and name##_erase_quad; values have vs bytes. */
#define CUA__DEFINE_HASH_ANY_QUAD(name, K, vs, equal_fn)                                           \
	CUA_FN int name##_contains_quad(const struct cua_hashmap_view *view, uint32_t mask,        \
					int active, K key)                                         \
	{                                                                                          \
		struct cua_u128 there;                                                             \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), vs))                                       \
			return 0;                                                                  \
		if (!CUA__HASHMAP_HAS_QUADS(view, sizeof(K), vs))                                  \
			return active && name##_contains(view, key);                               \
		return cua__quad_find(view, CUA__HASHMAP_KIND(sizeof(K), vs),                      \
				      cua__quad_lanes_of(mask, active),                            \
				      cua__hashmap_key_of(name##__hash(view, key),                 \
							  cua__hashmap_bits(&key, sizeof(K))),     \
				      equal_fn, CUA_ACQUIRE, &there);                              \
	}                                                                                          \
	CUA_FN int name##_erase_quad(const struct cua_hashmap_view *view, uint32_t mask,           \
				     int active, K key)                                            \
	{                                                                                          \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), vs))                                       \
			return 0;                                                                  \
		if (!CUA__HASHMAP_HAS_QUADS(view, sizeof(K), vs))                                  \
			return active && name##_erase(view, key);                                  \
		return cua__quad_erase(view, CUA__HASHMAP_KIND(sizeof(K), vs),                     \
				       cua__quad_lanes_of(mask, active),                           \
				       cua__hashmap_key_of(name##__hash(view, key),                \
							   cua__hashmap_bits(&key, sizeof(K))),    \
				       equal_fn, CUA_ACQ_REL);                                     \
	}

#define CUA__DEFINE_HASHSET_QUAD(name, K, equal_fn)                                                \
	CUA__DEFINE_HASH_ANY_QUAD(name, K, 0, equal_fn)                                            \
	CUA__RARE int name##__insert_alone(const struct cua_hashmap_view *view, K key)             \
	{                                                                                          \
		return name##_insert(view, key);                                                   \
	}                                                                                          \
	CUA_FN int name##_insert_quad(const struct cua_hashmap_view *view, uint32_t mask,          \
				      int active, K key)                                           \
	{                                                                                          \
		const struct cua_u128 none = {0, 0};                                               \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
		int result = 0;                                                                    \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), 0))                                        \
			return active ? CUA_HASHMAP_UNSUPPORTED : 0;                               \
		if (CUA__HASHMAP_HAS_QUADS(view, sizeof(K), 0))                                    \
			result = cua__quad_write(                                                  \
				view, CUA__HASHMAP_KIND(sizeof(K), 0),                             \
				cua__quad_lanes_of(mask, active),                                  \
				cua__hashmap_key_of(name##__hash(view, key),                       \
						    cua__hashmap_bits(&key, sizeof(K))),           \
				equal_fn, none, NULL, &spot);                                      \
		return result || !active ? result : name##__insert_alone(view, key);               \
	}

#define CUA__DEFINE_HASHMAP_WRITE_QUAD(name, K, V, equal_fn)                                       \
	CUA_FORCE int name##__write_quad(const struct cua_hashmap_view *view, uint32_t mask,       \
					 int active, K key, V operand, cua__hashmap_next_fn *next, \
					 struct cua__hashmap_spot *spot)                           \
	{                                                                                          \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return active ? CUA_HASHMAP_UNSUPPORTED : 0;                               \
		return CUA__HASHMAP_HAS_QUADS(view, sizeof(K), sizeof(V))                          \
			       ? cua__quad_write(                                                  \
					 view, CUA__HASHMAP_KIND(sizeof(K), sizeof(V)),            \
					 cua__quad_lanes_of(mask, active),                         \
					 cua__hashmap_key_of(name##__hash(view, key),              \
							     cua__hashmap_bits(&key, sizeof(K))),  \
					 equal_fn, cua__hashmap_bits(&operand, sizeof(V)), next,   \
					 spot)                                                     \
			       : 0;                                                                \
	}

#define CUA__DEFINE_HASHMAP_FIND_QUAD(name, K, V, equal_fn)                                        \
	CUA_FN int name##_find_quad(const struct cua_hashmap_view *view, uint32_t mask,            \
				    int active, K key, V *value)                                   \
	{                                                                                          \
		struct cua_u128 there;                                                             \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return 0;                                                                  \
		if (!CUA__HASHMAP_HAS_QUADS(view, sizeof(K), sizeof(V)))                           \
			return active && name##_find(view, key, value);                            \
		if (!cua__quad_find(view, CUA__HASHMAP_KIND(sizeof(K), sizeof(V)),                 \
				    cua__quad_lanes_of(mask, active),                              \
				    cua__hashmap_key_of(name##__hash(view, key),                   \
							cua__hashmap_bits(&key, sizeof(K))),       \
				    equal_fn, CUA_ACQUIRE, &there))                                \
			return 0;                                                                  \
		cua__hashmap_unbits(value, sizeof(V), there);                                      \
		return 1;                                                                          \
	}

#define CUA__DEFINE_HASHMAP_INSERT_QUAD(name, K, V)                                                \
	CUA__RARE int name##__insert_or_get_alone(const struct cua_hashmap_view *view, K key,      \
						  V value, V *there)                               \
	{                                                                                          \
		return name##_insert_or_get(view, key, value, there);                              \
	}                                                                                          \
	CUA_FN int name##_insert_or_get_quad(const struct cua_hashmap_view *view, uint32_t mask,   \
					     int active, K key, V value, V *there)                 \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
		int result = name##__write_quad(view, mask, active, key, value, NULL, &spot);      \
                                                                                                   \
		if (result == CUA_HASHMAP_EXISTS)                                                  \
			cua__hashmap_unbits(there, sizeof(V), spot.value);                         \
		else if (result == CUA_HASHMAP_INSERTED)                                           \
			*there = value;                                                            \
		else if (!result && active)                                                        \
			result = name##__insert_or_get_alone(view, key, value, there);             \
		return result;                                                                     \
	}                                                                                          \
	CUA_FN int name##_insert_quad(const struct cua_hashmap_view *view, uint32_t mask,          \
				      int active, K key, V value)                                  \
	{                                                                                          \
		V there;                                                                           \
                                                                                                   \
		return name##_insert_or_get_quad(view, mask, active, key, value, &there);          \
	}

#define CUA__DEFINE_HASHMAP_EXCHANGE_QUAD(name, K, V)                                              \
	CUA__RARE int name##__exchange_alone(const struct cua_hashmap_view *view, K key, V value,  \
					     V *old)                                               \
	{                                                                                          \
		return name##_exchange(view, key, value, old);                                     \
	}                                                                                          \
	CUA_FN int name##_exchange_quad(const struct cua_hashmap_view *view, uint32_t mask,        \
					int active, K key, V value, V *old)                        \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
		int result = name##__write_quad(view, mask, active, key, value,                    \
						cua__hashmap_next_assign, &spot);                  \
                                                                                                   \
		if (result == CUA_HASHMAP_EXISTS)                                                  \
			cua__hashmap_unbits(old, sizeof(V), spot.value);                           \
		else if (!result && active)                                                        \
			result = name##__exchange_alone(view, key, value, old);                    \
		return result;                                                                     \
	}                                                                                          \
	CUA_FN int name##_assign_quad(const struct cua_hashmap_view *view, uint32_t mask,          \
				      int active, K key, V value)                                  \
	{                                                                                          \
		V old;                                                                             \
                                                                                                   \
		return name##_exchange_quad(view, mask, active, key, value, &old);                 \
	}

#define CUA__DEFINE_HASHMAP_COMPARE_EXCHANGE_QUAD(name, K, V, equal_fn)                            \
	CUA__RARE int name##__compare_exchange_alone(const struct cua_hashmap_view *view, K key,   \
						     V *expected, V desired)                       \
	{                                                                                          \
		return name##_compare_exchange(view, key, expected, desired);                      \
	}                                                                                          \
	CUA_FN int name##_compare_exchange_quad(const struct cua_hashmap_view *view,               \
						uint32_t mask, int active, K key, V *expected,     \
						V desired)                                         \
	{                                                                                          \
		struct cua_u128 seen = cua__hashmap_bits(expected, sizeof(V));                     \
		int result = -1;                                                                   \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return active ? CUA_HASHMAP_UNSUPPORTED : 0;                               \
		if (CUA__HASHMAP_HAS_QUADS(view, sizeof(K), sizeof(V)))                            \
			result = cua__quad_compare_exchange(                                       \
				view, CUA__HASHMAP_KIND(sizeof(K), sizeof(V)),                     \
				cua__quad_lanes_of(mask, active),                                  \
				cua__hashmap_key_of(name##__hash(view, key),                       \
						    cua__hashmap_bits(&key, sizeof(K))),           \
				equal_fn, &seen, cua__hashmap_bits(&desired, sizeof(V)));          \
		if (result < 0)                                                                    \
			return active ? name##__compare_exchange_alone(view, key, expected,        \
								       desired)                    \
				      : 0;                                                         \
		if (result == CUA_HASHMAP_DIFFERS)                                                 \
			cua__hashmap_unbits(expected, sizeof(V), seen);                            \
		return result;                                                                     \
	}

#define CUA__DEFINE_HASHMAP_QUAD(name, K, V, equal_fn)                                             \
	CUA__DEFINE_HASH_ANY_QUAD(name, K, sizeof(V), equal_fn)                                    \
	CUA__DEFINE_HASHMAP_WRITE_QUAD(name, K, V, equal_fn)                                       \
	CUA__DEFINE_HASHMAP_FIND_QUAD(name, K, V, equal_fn)                                        \
	CUA__DEFINE_HASHMAP_INSERT_QUAD(name, K, V)                                                \
	CUA__DEFINE_HASHMAP_EXCHANGE_QUAD(name, K, V)                                              \
	CUA__DEFINE_HASHMAP_COMPARE_EXCHANGE_QUAD(name, K, V, equal_fn)

#define CUA_DEFINE_HASHMAP_QUAD(name, K, V) CUA__DEFINE_HASHMAP_QUAD(name, K, V, NULL)
#define CUA_DEFINE_HASHMAP_QUAD_WITH(name, K, V) CUA__DEFINE_HASHMAP_QUAD(name, K, V, name##__equal)
#define CUA_DEFINE_HASHSET_QUAD(name, K) CUA__DEFINE_HASHSET_QUAD(name, K, NULL)
#define CUA_DEFINE_HASHSET_QUAD_WITH(name, K) CUA__DEFINE_HASHSET_QUAD(name, K, name##__equal)

#define CUA_DEFINE_HASHMAP_UPDATE_QUAD(update, name)                                               \
	CUA__RARE int update##__alone(const struct cua_hashmap_view *view, name##__key_type key,   \
				      name##__value_type operand)                                  \
	{                                                                                          \
		return update(view, key, operand);                                                 \
	}                                                                                          \
	CUA_FN int update##_quad(const struct cua_hashmap_view *view, uint32_t mask, int active,   \
				 name##__key_type key, name##__value_type operand)                 \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
		int result = name##__write_quad(view, mask, active, key, operand, update##__next,  \
						&spot);                                            \
                                                                                                   \
		return result || !active ? result : update##__alone(view, key, operand);           \
	}

#endif /* CUATOMIC_HASHMAP_QUAD_H */
