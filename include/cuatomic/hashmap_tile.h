/* SPDX-License-Identifier: MIT */
/*
 * Operations of the hash map by tiles of 4 lanes, for maps whose pairs are words.
 *
 * Source: cooperative probing of a bucket by a part of a warp, as in WarpDrive (Juenger, Hundt, Schmidt,
 * 2018) and SlabHash (Ashkiani, Farach-Colton, Owens, 2018). Here a tile has a key for each lane and reads
 * their buckets at the same time.
 *
 * A tile is an aligned group of 4 lanes of a warp: lanes 0 to 3, 4 to 7, ... Each lane brings a key of its
 * own, and lane i of the tile reads bytes 16 i to 16 i + 15 of the buckets of all 4, so that a bucket of 64
 * bytes costs one access. Whole tiles call together, in converged code: `mask` has the calling lanes of the
 * warp, and each of them passes the same mask. A lane without a key passes active = 0 and gets 0.
 *
 * CUA_DEFINE_HASHMAP_TILE(name, K, V), at file scope, without a semicolon, after CUA_DEFINE_HASHMAP(name,
 * K, V), defines
 *
 *   int name_find_tile(view, mask, active, key, &value)      as name_find, ...
 *   int name_contains_tile(view, mask, active, key)
 *   int name_insert_tile(view, mask, active, key, value)
 *   int name_insert_or_get_tile(view, mask, active, key, value, &there)
 *   int name_assign_tile(view, mask, active, key, value)
 *   int name_exchange_tile(view, mask, active, key, value, &old)
 *   int name_erase_tile(view, mask, active, key)
 *
 * CUA_DEFINE_HASHSET_TILE(name, K), after CUA_DEFINE_HASHSET(name, K), defines those of them that need no value:
 * contains, insert, which takes none, and erase. CUA_DEFINE_HASHMAP_TILE_WITH(name, K, V) and
 * CUA_DEFINE_HASHSET_TILE_WITH(name, K) are for those of ..._WITH. CUA_DEFINE_HASHMAP_UPDATE_TILE(update, name),
 * after CUA_DEFINE_HASHMAP_UPDATE(update, name, expression) and the map's tile, defines
 *
 *   int update_tile(view, mask, active, key, operand)        as update
 *
 * A map whose slots have states, and a host thread, which is a warp of one lane, get the operations of one
 * lane. So does an insert, assign, exchange or update of a key that is not in its home bucket where that is full.
 *
 * Synchronization, scope, memory order, progress: each lane's operation is the one of hashmap.h, and none
 * returns before the looks of the others in mask are done.
 *
 * Argument: hashmap_word.h has no order among the loads of a bucket, so it does not matter which lane does
 * them.
 *   The lanes meet before they look, so that what a lane did earlier is seen by those that look for it.
 *   A hit acquires in the lane that loaded the word, and the lanes meet before the lane with the key goes on.
 *   The lock of a home is taken by the lane with the key, and the lanes meet before they look under it.
 *   What a warp has inserted is counted before one of its lanes may wait for a full map to be certain.
 */
#ifndef CUATOMIC_HASHMAP_TILE_H
#define CUATOMIC_HASHMAP_TILE_H

#include <cuatomic/hashmap.h>

/* A function that callers' registers are not to pay for. */
#define CUA__RARE CUA__TARGET static __attribute__((noinline, unused))

/* What a look by a tile is to tell besides whether the key is there. */
#define CUA__TILE_VALUE 1u
#define CUA__TILE_SLOT 2u /* of the key */
#define CUA__TILE_OPEN 4u /* the first EMPTY slot of the home */
#define CUA__TILE_FREE 8u /* the first slot that is EMPTY or ERASED in the buckets where the key may be put */

/* What a lane knows of its key after a tile's look. A table on a GPU has fewer than 2^32 buckets. */
struct cua__hashmap_seen {
	int there; /* as of cua__hashmap_word_search: 1, 0 or -1 */
	uint32_t home;
	uint32_t bucket; /* where it is, if it is there; FREE, and it is not: where it can be put */
	uint32_t slot;   /* SLOT: of the key; OPEN: the first EMPTY one, if there < 0; FREE: there, or NONE */
	uint32_t distance; /* FREE: of that bucket */
	uint64_t classes;  /* of the head of the bucket that was looked at; the home's after a look at the home */
	struct cua_u128 value;
};

#define CUA__TILE_NONE (~(uint32_t)0)
/* Buckets that a tile looks at for a free slot. */
#define CUA__TILE_PATIENCE 16u
/* How often an insert of many keys tries for locks that others may have, before a lane goes alone and waits. */
#define CUA__TILE_TRIES 4

/* Whether this code serves such a map by tiles. */
#define CUA__HASHMAP_HAS_TILES(view, ks, vs)                                                                 \
	(CUA_WARP_LANES > 1 && CUA__HASHMAP_IS_WORDS(view, ks, vs) && cua__hashmap_has_words(ks, vs))

CUA_FORCE struct cua_u128 cua__tile_key(uint32_t mask, uint32_t ks, struct cua_u128 key, uint32_t lane)
{
	if (ks == 4)
		key.lo = cua_port_shuffle_u32(mask, (uint32_t)key.lo, lane);
	else
		key.lo = cua_port_shuffle_u64(mask, key.lo, lane);
	if (ks == 16)
		key.hi = cua_port_shuffle_u64(mask, key.hi, lane);
	return key;
}

/* 16 bytes of a bucket: two slots of 64 bits or one of 128, of which the first may be the head. */
CUA_FORCE void cua__tile_load(const char *at, int wide, uint64_t out[2])
{
#if defined(CUA_PORT_HAS_B128)
	if (wide) {
		struct cua_u128 w = cua__hashmap_word_load(at, 1, CUA_RELAXED);

		out[0] = w.lo;
		out[1] = w.hi;
		return;
	}
#endif
	(void)wide;
	cua_port_load_2xb64(at, CUA_RELAXED, CUA__HASHMAP_AT, out);
}

/*
 * What lanes see in the buckets of their tiles, a bit a lane of the warp, or after cua__tile_own of the tile: the
 * key, or EMPTY, in their first and second slot. With slots of 128 bits there is no second. Lane 0 has the head in
 * place of its first slot.
 */
struct cua__tile_votes {
	uint32_t key_first, key_second, empty_first, empty_second, free_first, free_second;
	int mine; /* which slot of this lane has the key: 1, 2, or 0 */
};

/*
 * The lanes of mask vote on a bucket of their tile, of which each has its 16 bytes, about a key that is the
 * same in the tile; the votes are those of the whole warp. Without branches on the lane: the compiler would make two
 * copies of the code, and the lanes would not converge. Returns the value at this lane, if it voted for the key.
 */
CUA_FORCE struct cua_u128 cua__tile_vote(uint32_t ks, uint32_t vs, uint32_t mask, uint32_t base,
					 const uint64_t w[2], struct cua_u128 key,
					 cua__hashmap_equal_fn *equal, uint32_t wants,
					 struct cua__tile_votes *votes)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	/* nobody's equality shall be asked about the head; what it says of it does not count */
	const int skip = equal && cua_port_lane() == base;
	const struct cua_u128 first = {skip ? 0 : w[0], wide && !skip ? w[1] : 0}, second = {w[1], 0};
	const int in_first = cua__hashmap_word_has(ks, vs, first, key, equal);
	const int in_second = !wide && cua__hashmap_word_has(ks, vs, second, key, equal);

	votes->key_first = cua_port_ballot(mask, in_first);
	votes->key_second = wide ? 0 : cua_port_ballot(mask, in_second);
	votes->empty_second = wide ? 0 : cua_port_ballot(mask, cua__hashmap_word_empty(second));
	votes->empty_first = wide || (wants & CUA__TILE_OPEN)
				     ? cua_port_ballot(mask, cua__hashmap_word_empty(first))
				     : 0;
	votes->free_first = votes->free_second = 0;
	if (wants & CUA__TILE_FREE) {
		votes->free_first = cua_port_ballot(mask, !cua__hashmap_word_used(ks, vs, first));
		if (!wide)
			votes->free_second = cua_port_ballot(mask, !cua__hashmap_word_used(ks, vs, second));
	}
	votes->mine = in_second ? 2 : in_first;
	return cua__hashmap_word_value(ks, vs, in_second ? second : first);
}

/* Those of the caller's tile, without the head. */
CUA_FORCE void cua__tile_own(uint32_t base, struct cua__tile_votes *votes)
{
	votes->key_first = votes->key_first >> base & 14;
	votes->key_second = votes->key_second >> base & 15;
	votes->empty_first = votes->empty_first >> base & 14;
	votes->empty_second = votes->empty_second >> base & 15;
	votes->free_first = votes->free_first >> base & 14;
	votes->free_second = votes->free_second >> base & 15;
}

/* As cua__hashmap_word_search: whether the key is there, or else an EMPTY slot is the last one. */
CUA_FORCE int cua__tile_there(int wide, const struct cua__tile_votes *votes)
{
	if (votes->key_first | votes->key_second)
		return 1;
	return (wide ? votes->empty_first : votes->empty_second) >> 3 ? -1 : 0;
}

/* The lane of the tile where the key is, if it is there. */
CUA_FORCE uint32_t cua__tile_hit(const struct cua__tile_votes *votes)
{
	uint32_t lanes = votes->key_first | votes->key_second;

	return lanes ? cua_port_ffs_u32(lanes) - 1 : 0;
}

/* The first slot of those in two sets of lanes, with their first and second slots; or NONE. */
CUA_FORCE uint32_t cua__tile_lowest(int wide, uint32_t firsts, uint32_t seconds)
{
	uint32_t first = cua_port_ffs_u32(firsts), second = cua_port_ffs_u32(seconds);

	if (wide)
		return firsts ? first - 2 : CUA__TILE_NONE;
	/* lane i has the slots 2 i - 1 and 2 i */
	first = firsts ? 2 * first - 3 : CUA__TILE_NONE;
	second = seconds ? 2 * second - 2 : CUA__TILE_NONE;
	return first < second ? first : second;
}

/* The slot of the key, or else the first EMPTY one. */
CUA_FORCE uint32_t cua__tile_slot(int wide, const struct cua__tile_votes *votes)
{
	if (votes->key_first | votes->key_second) {
		uint32_t hit = cua__tile_hit(votes);

		return wide ? hit - 1 : 2 * hit - !(votes->key_second >> hit & 1);
	}
	return cua__tile_lowest(wide, votes->empty_first, votes->empty_second);
}

CUA_FORCE struct cua_u128 cua__tile_value(uint32_t vs, uint32_t mask, struct cua_u128 value, uint32_t lane)
{
	if (vs == 4)
		value.lo = cua_port_shuffle_u32(mask, (uint32_t)value.lo, lane);
	else if (vs)
		value.lo = cua_port_shuffle_u64(mask, value.lo, lane);
	return value;
}

/* In the lanes that voted for a key: the word that they have was acquired. */
CUA_FORCE void cua__tile_acquire(const struct cua_hashmap_view *view, uint32_t bucket, uint32_t part,
				 const struct cua__tile_votes *votes)
{
	/* of the head nobody has anything */
	if (votes->mine == 2 || (votes->mine && part))
		cua_port_acquire_b32(cua__hashmap_word_bucket(view, bucket) + 16 * part +
					     (votes->mine == 2 ? 8 : 0),
				     CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/*
 * The value of the lane's key, of which `hit` is the lane in its tile that voted for it; values[j] is that of the
 * tile's key j, where this lane voted for it.
 */
CUA_FORCE struct cua_u128 cua__tile_values(uint32_t vs, uint32_t mask, uint32_t base,
					   const struct cua_u128 values[4], uint32_t hit)
{
	struct cua_u128 value = {0, 0};
	uint32_t j;

	CUA__UNROLL
	for (j = 0; j < 4; j++) {
		const struct cua_u128 v = cua__tile_value(vs, mask, values[j], base + hit);

		value.lo = cua_port_lane() - base == j ? v.lo : value.lo;
	}
	return value;
}

/*
 * Each lane of mask looks for its key in one bucket. What lanes without a key learn has no meaning. `order`
 * and `wants` are constants.
 */
CUA_FORCE void cua__tile_look_at(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs, uint32_t mask,
				 uint32_t bucket, struct cua_u128 key, cua__hashmap_equal_fn *equal,
				 enum cua_order order, uint32_t wants, struct cua__hashmap_seen *seen)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t part = cua_port_lane() % 4, base = cua_port_lane() - part;
	struct cua__tile_votes votes = {0, 0, 0, 0, 0, 0, 0};
	struct cua_u128 values[4];
	uint64_t w[4][2];
	uint32_t b[4], j;

	/* what a lane did before is seen by those that look for it now; shuffles order nothing */
	if (order != CUA_RELAXED)
		cua_port_sync_warp(mask);
	CUA__UNROLL
	for (j = 0; j < 4; j++) {
		b[j] = cua_port_shuffle_u32(mask, bucket, base + j);
		cua__tile_load(cua__hashmap_word_bucket(view, b[j]) + 16 * part, wide, w[j]);
	}
	seen->bucket = bucket;
	CUA__UNROLL
	for (j = 0; j < 4; j++) {
		struct cua__tile_votes all;
		uint64_t classes;

		values[j] = cua__tile_vote(ks, vs, mask, base, w[j], cua__tile_key(mask, ks, key, base + j),
					   equal, wants, &all);
		if (order != CUA_RELAXED)
			cua__tile_acquire(view, b[j], part, &all);
		classes = wide ? cua_port_shuffle_u64(mask, w[j][1], base)
			       : cua_port_shuffle_u32(mask, (uint32_t)(w[j][0] >> 32), base);
		if (part == j) {
			votes = all;
			seen->classes = classes;
		}
	}
	cua__tile_own(base, &votes);
	seen->there = cua__tile_there(wide, &votes);
	if (wants & CUA__TILE_VALUE)
		seen->value = cua__tile_values(vs, mask, base, values, cua__tile_hit(&votes));
	if (wants & (CUA__TILE_SLOT | CUA__TILE_OPEN))
		seen->slot = cua__tile_slot(wide, &votes);
	if (order != CUA_RELAXED)
		cua_port_sync_warp(mask);
}

/* The farthest distance of all classes, as a head says it. */
CUA_FORCE uint32_t cua__tile_farthest(const struct cua_hashmap_view *view, uint64_t head)
{
	uint64_t far = cua__hashmap_far_of((uint32_t)(head >> 24) & 255);

	return (uint32_t)(far < view->n_buckets ? far : view->n_buckets - 1);
}

/* How many buckets behind its home may hold a lane's key. */
CUA_FORCE uint32_t cua__tile_far(const struct cua_hashmap_view *view, int wide, uint64_t hash,
				 const struct cua__hashmap_seen *seen)
{
	const uint32_t far = cua__hashmap_class_far(wide, seen->classes, hash);

	if (far < cua__hashmap_class_most(wide))
		return far;
	/* after the classes; see cua__hashmap_word_reach */
	return cua__tile_farthest(view, cua_port_load_b64(cua__hashmap_word_bucket(view, seen->home),
							  CUA_RELAXED, CUA__HASHMAP_AT));
}

/*
 * Each lane of mask with `pending` looks for its key in the buckets behind its home, a tile in those of all its lanes
 * at a time: from `far` down to distance 1, for where its class says that a key is it mostly is.
 *
 * With FREE it looks from the home on, up to the first place for the key and as far as the key may be: that is `far`
 * where the home's class says no less. there = -1 then means that the home has EMPTY slots.
 */
CUA_FORCE void cua__tile_walk(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs, uint32_t mask,
			      int pending, uint32_t far, uint64_t hash, struct cua_u128 key,
			      cua__hashmap_equal_fn *equal, enum cua_order order, uint32_t wants,
			      struct cua__hashmap_seen *seen)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t part = cua_port_lane() % 4, base = cua_port_lane() - part;
	uint32_t distance = wants & CUA__TILE_FREE ? 0 : far, bucket = seen->home, waiting;

	if (pending && distance)
		bucket = (uint32_t)cua__hashmap_word_probe(view, seen->home, hash, distance);
	while ((waiting = cua_port_ballot(mask, pending)) != 0) {
		struct cua__tile_votes votes = {0, 0, 0, 0, 0, 0, 0};
		struct cua_u128 values[4];
		uint64_t w[4][2], classes = 0;
		uint32_t b[4], j;
		int there;

		waiting = waiting >> base & 15;
		CUA__UNROLL
		for (j = 0; j < 4; j++) {
			b[j] = cua_port_shuffle_u32(mask, bucket, base + j);
			w[j][0] = w[j][1] = 0;
			if (waiting >> j & 1)
				cua__tile_load(cua__hashmap_word_bucket(view, b[j]) + 16 * part, wide, w[j]);
		}
		CUA__UNROLL
		for (j = 0; j < 4; j++) {
			struct cua__tile_votes all;
			uint64_t c = 0;

			values[j] = cua__tile_vote(ks, vs, mask, base, w[j],
						   cua__tile_key(mask, ks, key, base + j), equal, wants, &all);
			if (order != CUA_RELAXED && (waiting >> j & 1))
				cua__tile_acquire(view, b[j], part, &all);
			if (wants & CUA__TILE_FREE)
				c = wide ? cua_port_shuffle_u64(mask, w[j][1], base)
					 : cua_port_shuffle_u32(mask, (uint32_t)(w[j][0] >> 32), base);
			if (part == j) {
				votes = all;
				classes = c;
			}
		}
		cua__tile_own(base, &votes);
		there = cua__tile_there(wide, &votes);
		if (wants & CUA__TILE_VALUE)
			values[0] = cua__tile_values(vs, mask, base, values, cua__tile_hit(&votes));
		if (order != CUA_RELAXED)
			cua_port_sync_warp(mask);
		if (!pending)
			continue;
		if (there > 0 && (wants & CUA__TILE_FREE) && distance > far) {
			/* its insert has not told the home so far: it counts as present when it has */
			seen->there = 0;
			seen->slot = CUA__TILE_NONE;
			pending = 0;
			continue;
		}
		if (there > 0) {
			seen->there = 1;
			seen->value = values[0];
			seen->bucket = bucket;
			if (wants & CUA__TILE_SLOT)
				seen->slot = cua__tile_slot(wide, &votes);
			pending = 0;
			continue;
		}
		if (!(wants & CUA__TILE_FREE)) {
			pending = --distance > 0;
		} else {
			const uint32_t free =
				cua__tile_lowest(wide, votes.free_first, votes.free_second);

			if (distance == 0) {
				const uint32_t most = cua__hashmap_class_most(wide);
				const uint32_t of_class = cua__hashmap_class_far(wide, classes, hash);

				seen->classes = classes;
				far = of_class < most ? of_class : far;
				seen->there = there;
				seen->slot = CUA__TILE_NONE;
			}
			if (seen->slot == CUA__TILE_NONE && free != CUA__TILE_NONE) {
				seen->bucket = bucket;
				seen->slot = free;
				seen->distance = distance;
			}
			pending = !there && (distance < far || seen->slot == CUA__TILE_NONE) &&
				  distance + 1 < view->n_buckets && distance < CUA__TILE_PATIENCE;
			/* not all places of the key were seen */
			if (!pending && !there && distance < far)
				seen->slot = CUA__TILE_NONE;
			distance++;
		}
		if (pending)
			bucket = (uint32_t)cua__hashmap_word_probe(view, seen->home, hash, distance);
	}
}

/* Both. A lane without a key that has a slot is not active. */
CUA_FORCE void cua__tile_look(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs, uint32_t mask,
			      int active, uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
			      enum cua_order order, uint32_t wants, struct cua__hashmap_seen *seen)
{
	uint32_t far = 0;

	seen->home = (uint32_t)cua_hash_range(hash, view->n_buckets);
	cua__tile_look_at(view, ks, vs, mask, seen->home, key, equal, order, wants, seen);
	if (!active)
		seen->there = 0;
	else if (seen->there == 0)
		far = cua__tile_far(view, cua__hashmap_is_wide(ks, vs), hash, seen);
	if (cua_port_ballot(mask, far != 0))
		cua__tile_walk(view, ks, vs, mask, far != 0, far, hash, key, equal, order,
			       wants & ~CUA__TILE_OPEN, seen);
}

/* Where a key is that a look has found, with its word. */
CUA_FORCE void cua__tile_spot(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
			      struct cua_u128 key, const struct cua__hashmap_seen *seen,
			      struct cua__hashmap_spot *spot)
{
	spot->at = cua__hashmap_word_bucket(view, seen->bucket) +
		   (seen->slot + 1) * (cua__hashmap_is_wide(ks, vs) ? 16 : 8);
	spot->word = cua__hashmap_word_of(ks, vs, key, seen->value);
}

/* Returns 1 where the lane's key is there, and with VALUE its value. */
CUA_FORCE int cua__tile_find(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs, uint32_t mask,
			     int active, uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
			     enum cua_order order, uint32_t wants, struct cua_u128 *value)
{
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	const char *cell = cua__hashmap_word_cell(view, ks, vs, key, equal);

	cua__tile_look(view, ks, vs, mask, active && !cell, hash, key, equal, order, wants, &seen);
	if (cell && active) {
		struct cua_u128 w = cua__hashmap_word_load(cell, cua__hashmap_is_wide(ks, vs), CUA_ACQUIRE);

		seen.there = !cua__hashmap_word_empty(w);
		seen.value = cua__hashmap_word_value(ks, vs, w);
	}
	*value = seen.value;
	return seen.there > 0;
}

/* The counts that a warp adds to. */
CUA_FORCE struct cua_hashmap_counts *cua__tile_counts(const struct cua_hashmap_view *view)
{
	return cua__hashmap_counts(view, cua_port_block() * 8 + cua_port_thread() / 32);
}

/*
 * One lane adds to the map's counts what the lanes of mask have inserted, a number that all have, and sets it to 0.
 * Without order, as bulk calls do, it rests on the L2 and not on the memory model that others do not see this before
 * the count of an erase whose slot was taken: all of them take effect there, one after the other.
 */
CUA_FORCE void cua__tile_count(const struct cua_hashmap_view *view, uint32_t mask, enum cua_order order,
			       uint32_t *added)
{
	if (order != CUA_RELAXED)
		cua_port_sync_warp(mask);
	if (*added && cua_port_lane() == cua_port_ffs_u32(mask) - 1)
		cua_port_add_u64(&cua__tile_counts(view)->inserted, *added,
				 order == CUA_RELAXED ? CUA_RELAXED : CUA_RELEASE, CUA__HASHMAP_AT);
	*added = 0;
}

/*
 * Inserts where the key is absent and its home has an EMPTY slot. Returns INSERTED, not counted; or EXISTS,
 * with VALUE and the value in *seen; or 0. What the lanes of mask have inserted must be counted before one
 * of them goes on alone, where it may wait for a full map to be certain.
 */
CUA_FORCE int cua__tile_enter_home(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				   uint32_t mask, int active, uint64_t hash, struct cua_u128 key,
				   cua__hashmap_equal_fn *equal, struct cua_u128 value, enum cua_order order,
				   uint32_t wants, struct cua__hashmap_seen *seen)
{
	const enum cua_order both = order == CUA_RELAXED ? CUA_RELAXED : CUA_ACQ_REL;
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int result = 0;

	seen->home = (uint32_t)cua_hash_range(hash, view->n_buckets);
	cua__tile_look_at(view, ks, vs, mask, seen->home, key, equal, order, wants | CUA__TILE_OPEN, seen);
	if (!active || cua__hashmap_word_cell(view, ks, vs, key, equal))
		return 0;
	if (seen->there > 0)
		return CUA_HASHMAP_EXISTS;
	if (seen->there < 0) {
		result = cua__hashmap_word_claim(cua__hashmap_word_bucket(view, seen->home), ks, vs,
						 seen->slot, key, equal,
						 cua__hashmap_word_of(ks, vs, key, value), both, &spot);
		seen->value = cua__hashmap_word_value(ks, vs, spot.word);
	}
	return result;
}

/*
 * What cua__hashmap_word_enter_full does, for the lanes of mask at once, but nobody waits: each lane tries
 * once to get the lock of its home, and looks whether it got it or not. Returns INSERTED, not counted;
 * EXISTS, with the value in *seen; or 0 where the lane has to do it alone, also since the home has EMPTY
 * slots. Without order.
 */
CUA_FORCE int cua__tile_enter_full(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				   uint32_t mask, int active, uint64_t hash, struct cua_u128 key,
				   cua__hashmap_equal_fn *equal, struct cua_u128 value,
				   struct cua__hashmap_seen *seen)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const struct cua_u128 word = cua__hashmap_word_of(ks, vs, key, value), empty = {0, 0};
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs);
	struct cua__hashmap_head head = {CUA__HASHMAP_LOCKED, 0};
	struct cua_u128 was;
	int result = 0;
	char *home;

	seen->home = (uint32_t)cua_hash_range(hash, view->n_buckets);
	seen->there = 0;
	seen->slot = CUA__TILE_NONE;
	home = cua__hashmap_word_bucket(view, seen->home);
	if (active)
		head.lo = cua_port_fetch_or_b64(home, CUA__HASHMAP_LOCKED, CUA_ACQUIRE, CUA__HASHMAP_AT);
	/* the lanes of the tile look for the one that has the lock */
	cua_port_sync_warp(mask);
	cua__tile_walk(view, ks, vs, mask, active, cua__tile_farthest(view, head.lo), hash, key, equal,
		       CUA_RELAXED, CUA__TILE_VALUE | CUA__TILE_FREE, seen);
	if (seen->there > 0)
		result = CUA_HASHMAP_EXISTS;
	if (head.lo & CUA__HASHMAP_LOCKED)
		return result;
	if (wide)
		head.hi = seen->there > 0 ? cua_port_load_b64(home + 8, CUA_RELAXED, CUA__HASHMAP_AT)
					  : seen->classes;
	if (seen->there == 0 && seen->slot != CUA__TILE_NONE) {
		char *bucket = cua__hashmap_word_bucket(view, seen->bucket);
		const uint32_t slots = cua__hashmap_word_slots(ks, vs);
		uint32_t slot;

		/* keys of other homes are put here meanwhile */
		for (slot = seen->slot; slot < slots && !result; slot++) {
			char *at = bucket + (slot + 1) * (wide ? 16 : 8);

			if (cua__hashmap_word_cas(at, wide, empty, word, CUA_RELAXED, &was) ||
			    (cua__hashmap_same(was, erased) &&
			     cua__hashmap_word_cas(at, wide, erased, word, CUA_RELAXED, &was)))
				result = CUA_HASHMAP_INSERTED;
		}
		if (result)
			head = cua__hashmap_word_raise(wide, head, hash, seen->distance);
	}
	cua__hashmap_word_unlock(home, wide, head);
	return result;
}

/*
 * Inserts where the lane's key is absent and its home has an EMPTY slot; where the key is in its home, and `next` is
 * not NULL, its value becomes next(value, operand). Returns INSERTED, or EXISTS with the value before in the spot;
 * else, and where others were faster, 0, and has done nothing.
 */
CUA_FORCE int cua__tile_write(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs, uint32_t mask,
			      int active, uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
			      struct cua_u128 operand, cua__hashmap_next_fn *next,
			      struct cua__hashmap_spot *spot)
{
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua_backoff backoff;
	uint32_t added;
	int result = cua__tile_enter_home(view, ks, vs, mask, active, hash, key, equal, operand, CUA_ACQUIRE,
					  CUA__TILE_VALUE | (next ? CUA__TILE_SLOT : 0), &seen);

	/* before one of the lanes may wait for a full map to be certain */
	added = cua_port_popc_u32(cua_port_ballot(mask, result == CUA_HASHMAP_INSERTED));
	cua__tile_count(view, mask, CUA_ACQUIRE, &added);
	spot->value = seen.value;
	if (result != CUA_HASHMAP_EXISTS || !next)
		return result;
	/* not where it was put since */
	if (seen.there <= 0)
		return 0;
	cua__tile_spot(view, ks, vs, key, &seen, spot);
	cua_backoff_init(&backoff);
	return cua__hashmap_change_by(view, ks, vs, hash, key, equal, operand, next,
				      CUA__HASHMAP_NO_OP, spot, &backoff)
		       ? CUA_HASHMAP_EXISTS
		       : 0;
}

/* Removes the lane's key. Returns 1; or 0 where it was absent. `order` is one of a CAS, and releases. */
CUA_FORCE int cua__tile_erase(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs, uint32_t mask,
			      int active, uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
			      enum cua_order order)
{
	char *cell = cua__hashmap_word_cell(view, ks, vs, key, equal);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint64_t *counted = &cua__tile_counts(view)->erased;
	uint32_t there;

	if (order != CUA_RELAXED)
		cua_port_sync_warp(mask);
	cua__tile_look(view, ks, vs, mask, active && !cell, hash, key, equal, CUA_RELAXED,
		       CUA__TILE_VALUE | CUA__TILE_SLOT, &seen);
	there = cua_port_ballot(mask, seen.there > 0);
	if (there && cua_port_lane() == cua_port_ffs_u32(mask) - 1)
		cua_port_add_u64(counted, cua_port_popc_u32(there), CUA_RELAXED, CUA__HASHMAP_AT);
	cua_port_sync_warp(mask);
	if (seen.there > 0) {
		cua__tile_spot(view, ks, vs, key, &seen, &spot);
		return cua__hashmap_word_take(ks, vs, key, equal, order, counted, &spot);
	}
	return active && cell && cua__hashmap_word_erase_cell(cell, ks, vs, &seen.value);
}

/* name##_contains_tile and name##_erase_tile; values have vs bytes. */
#define CUA__DEFINE_HASH_ANY_TILE(name, K, vs, equal_fn)                                                     \
	CUA_FN int name##_contains_tile(const struct cua_hashmap_view *view, uint32_t mask, int active,      \
					K key)                                                               \
	{                                                                                                    \
		struct cua_u128 there;                                                                       \
                                                                                                             \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), vs))                                                 \
			return 0;                                                                            \
		if (!CUA__HASHMAP_HAS_TILES(view, sizeof(K), vs))                                            \
			return active && name##_contains(view, key);                                         \
		return cua__tile_find(view, sizeof(K), vs, mask, active, name##__hash(view, key),            \
				      cua__hashmap_bits(&key, sizeof(K)), equal_fn, CUA_ACQUIRE, 0, &there); \
	}                                                                                                    \
	CUA_FN int name##_erase_tile(const struct cua_hashmap_view *view, uint32_t mask, int active, K key)  \
	{                                                                                                    \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), vs))                                                 \
			return 0;                                                                            \
		if (!CUA__HASHMAP_HAS_TILES(view, sizeof(K), vs))                                            \
			return active && name##_erase(view, key);                                            \
		return cua__tile_erase(view, sizeof(K), vs, mask, active, name##__hash(view, key),           \
				       cua__hashmap_bits(&key, sizeof(K)), equal_fn, CUA_ACQ_REL);           \
	}

#define CUA__DEFINE_HASHSET_TILE(name, K, equal_fn)                                                          \
	CUA__DEFINE_HASH_ANY_TILE(name, K, 0, equal_fn)                                                      \
	CUA__RARE int name##__insert_alone(const struct cua_hashmap_view *view, K key)                       \
	{                                                                                                    \
		return name##_insert(view, key);                                                             \
	}                                                                                                    \
	CUA_FN int name##_insert_tile(const struct cua_hashmap_view *view, uint32_t mask, int active, K key) \
	{                                                                                                    \
		const struct cua_u128 none = {0, 0};                                                         \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                                      \
		int result = 0;                                                                              \
                                                                                                             \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), 0))                                                  \
			return active ? CUA_HASHMAP_UNSUPPORTED : 0;                                         \
		if (CUA__HASHMAP_HAS_TILES(view, sizeof(K), 0))                                              \
			result = cua__tile_write(view, sizeof(K), 0, mask, active, name##__hash(view, key),  \
						 cua__hashmap_bits(&key, sizeof(K)), equal_fn, none, NULL,   \
						 &spot);                                                     \
		return result || !active ? result : name##__insert_alone(view, key);                         \
	}

#define CUA__DEFINE_HASHMAP_TILE(name, K, V, equal_fn)                                                       \
	CUA__DEFINE_HASH_ANY_TILE(name, K, sizeof(V), equal_fn)                                              \
	CUA__RARE int name##__insert_or_get_alone(const struct cua_hashmap_view *view, K key, V value,       \
						  V *there)                                                  \
	{                                                                                                    \
		return name##_insert_or_get(view, key, value, there);                                        \
	}                                                                                                    \
	CUA__RARE int name##__exchange_alone(const struct cua_hashmap_view *view, K key, V value, V *old)    \
	{                                                                                                    \
		return name##_exchange(view, key, value, old);                                               \
	}                                                                                                    \
	CUA_FORCE int name##__write_tile(const struct cua_hashmap_view *view, uint32_t mask, int active,     \
					 K key, V operand, cua__hashmap_next_fn *next,                       \
					 struct cua__hashmap_spot *spot)                                     \
	{                                                                                                    \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                          \
			return active ? CUA_HASHMAP_UNSUPPORTED : 0;                                         \
		return CUA__HASHMAP_HAS_TILES(view, sizeof(K), sizeof(V))                                    \
			       ? cua__tile_write(view, sizeof(K), sizeof(V), mask, active,                   \
						 name##__hash(view, key), cua__hashmap_bits(&key, sizeof(K)), \
						 equal_fn, cua__hashmap_bits(&operand, sizeof(V)), next, spot) \
			       : 0;                                                                          \
	}                                                                                                    \
	CUA_FN int name##_find_tile(const struct cua_hashmap_view *view, uint32_t mask, int active, K key,   \
				    V *value)                                                                \
	{                                                                                                    \
		struct cua_u128 there;                                                                       \
                                                                                                             \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                          \
			return 0;                                                                            \
		if (!CUA__HASHMAP_HAS_TILES(view, sizeof(K), sizeof(V)))                                     \
			return active && name##_find(view, key, value);                                      \
		if (!cua__tile_find(view, sizeof(K), sizeof(V), mask, active, name##__hash(view, key),       \
				    cua__hashmap_bits(&key, sizeof(K)), equal_fn, CUA_ACQUIRE,               \
				    CUA__TILE_VALUE, &there))                                                \
			return 0;                                                                            \
		cua__hashmap_unbits(value, sizeof(V), there);                                                \
		return 1;                                                                                    \
	}                                                                                                    \
	CUA_FN int name##_insert_or_get_tile(const struct cua_hashmap_view *view, uint32_t mask, int active, \
					     K key, V value, V *there)                                       \
	{                                                                                                    \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                                      \
		int result = name##__write_tile(view, mask, active, key, value, NULL, &spot);                \
                                                                                                             \
		if (result == CUA_HASHMAP_EXISTS)                                                            \
			cua__hashmap_unbits(there, sizeof(V), spot.value);                                   \
		else if (result == CUA_HASHMAP_INSERTED)                                                     \
			*there = value;                                                                      \
		else if (!result && active)                                                                  \
			result = name##__insert_or_get_alone(view, key, value, there);                       \
		return result;                                                                               \
	}                                                                                                    \
	CUA_FN int name##_insert_tile(const struct cua_hashmap_view *view, uint32_t mask, int active, K key, \
				      V value)                                                               \
	{                                                                                                    \
		V there;                                                                                     \
                                                                                                             \
		return name##_insert_or_get_tile(view, mask, active, key, value, &there);                    \
	}                                                                                                    \
	CUA_FN int name##_exchange_tile(const struct cua_hashmap_view *view, uint32_t mask, int active,      \
					K key, V value, V *old)                                              \
	{                                                                                                    \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                                      \
		int result = name##__write_tile(view, mask, active, key, value, cua__hashmap_next_assign,    \
						&spot);                                                      \
                                                                                                             \
		if (result == CUA_HASHMAP_EXISTS)                                                            \
			cua__hashmap_unbits(old, sizeof(V), spot.value);                                     \
		else if (!result && active)                                                                  \
			result = name##__exchange_alone(view, key, value, old);                              \
		return result;                                                                               \
	}                                                                                                    \
	CUA_FN int name##_assign_tile(const struct cua_hashmap_view *view, uint32_t mask, int active, K key, \
				      V value)                                                               \
	{                                                                                                    \
		V old;                                                                                       \
                                                                                                             \
		return name##_exchange_tile(view, mask, active, key, value, &old);                           \
	}

#define CUA_DEFINE_HASHMAP_TILE(name, K, V) CUA__DEFINE_HASHMAP_TILE(name, K, V, NULL)
#define CUA_DEFINE_HASHMAP_TILE_WITH(name, K, V) CUA__DEFINE_HASHMAP_TILE(name, K, V, name##__equal)
#define CUA_DEFINE_HASHSET_TILE(name, K) CUA__DEFINE_HASHSET_TILE(name, K, NULL)
#define CUA_DEFINE_HASHSET_TILE_WITH(name, K) CUA__DEFINE_HASHSET_TILE(name, K, name##__equal)

#define CUA_DEFINE_HASHMAP_UPDATE_TILE(update, name)                                                         \
	CUA__RARE int update##__alone(const struct cua_hashmap_view *view, name##__key_type key,             \
				      name##__value_type operand)                                            \
	{                                                                                                    \
		return update(view, key, operand);                                                           \
	}                                                                                                    \
	CUA_FN int update##_tile(const struct cua_hashmap_view *view, uint32_t mask, int active,             \
				 name##__key_type key, name##__value_type operand)                           \
	{                                                                                                    \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                                      \
		int result = name##__write_tile(view, mask, active, key, operand, update##__next, &spot);    \
                                                                                                             \
		return result || !active ? result : update##__alone(view, key, operand);                     \
	}

#endif /* CUATOMIC_HASHMAP_TILE_H */
