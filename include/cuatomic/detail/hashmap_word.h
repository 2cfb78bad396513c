/* SPDX-License-Identifier: MIT */
/*
 * The word layout of the hash map: a pair is a single atomic word. Internal part of hashmap.h.
 * Maps of 4 + 4, 4 + 0 and 8 + 0 bytes (key + value) have words of 64 bits. Maps of 8 + 8, 4 + 8,
 * 8 + 4 and 16 + 0 bytes have words of 128 bits, where the machine has a CAS of 128 bits.
 *
 * Source: buckets of a cache line as in bucketized cuckoo hashing; double hashing (Knuth, vol. 3,
 * 6.4) over the buckets of a region of 32 KiB, so that a long probe stays in few pages; home
 * buckets that record how far their keys are, as in hopscotch hashing (Herlihy, Shavit, Tzafrir,
 * 2008), here separately for 16 classes of keys.
 *
 * A bucket has 64 bytes: the head, then 7 slots of 8 bytes or 3 slots of 16. A slot is a word. Two
 * words mark slots without a pair: EMPTY, all zeros, in a slot that never had a pair, and ERASED. A
 * comma separates the two halves of a word of 128 bits:
 *
 *     key, value   word                      ERASED      reserved keys
 *     4, 4         key | value << 32         1 << 32     0
 *     4, 0         key | 1 << 32             1           none
 *     8, 0         key                       1           0, 1
 *     8, 8         key, value                1, 0        0, 1
 *     4, 8         key | 1 << 32, value      1, 0        none
 *     8, 4         key, value | 1 << 32      0, 1        none
 *     16, 0        key                       1, 0        0, 1
 *
 * A reserved key would look like the key of EMPTY or ERASED. Its pair has a reserved slot outside
 * the buckets: a word of the same form with 2 in place of the key, or all zeros if the pair is
 * absent.
 *
 * The hash of a key chooses its home bucket, its class (one of 16) and its probe sequence, which is
 * the order in which the key's buckets are searched. The distance of a bucket is its index in this
 * sequence. The home is first, at distance 0.
 *
 * The head of a bucket describes the keys whose home it is. Its first 64 bits, `lo`, have
 *   - in bit 0 their lock;
 *   - in bits 24 to 31 the farthest distance of any of them, as a code (cua__hashmap_far_of);
 *   - with words of 64 bits, in bits 32 to 63 the 16 classes, 2 bits each.
 * With words of 128 bits, the second 64 bits, `hi`, have the 16 classes, 4 bits each.
 * A class below its largest number, 3 or 15, is the farthest distance of its keys. The largest
 * number stands for the farthest distance in lo. Classes and the farthest distance are raised, and
 * never lowered until clear.
 *
 * Argument.
 *
 *   Slots. A slot changes only by CAS, and never becomes EMPTY again until clear. Every insert
 *   claims the first EMPTY slot of a bucket, or an ERASED slot. So the EMPTY slots of a bucket are
 *   its last slots, and a bucket whose last slot is not EMPTY has none.
 *
 *   Where a key may be. While its home has an EMPTY slot, any lane may store the key, but only in
 *   the first EMPTY slot of the home. Afterwards only the holder of the home's lock stores it, in
 *   any free slot of the probe sequence. The holder has seen that neither the home nor any bucket
 *   before the chosen bucket has an EMPTY slot. So no key is stored in a bucket after a bucket of
 *   its sequence that has an EMPTY slot. A lookup ends at a home that has an EMPTY slot. A search
 *   under the lock ends at the first such bucket.
 *
 *   At most one slot a key. A lane stores a key k either under the lock or without it.
 *
 *   Under the lock: the holder has seen that the last slot of the home is not EMPTY, so no other
 *   lane can store k. It searches all slots that may hold k before it claims a slot.
 *
 *   Without the lock: suppose that a lane stores k in the EMPTY slot s of the home while slot p
 *   holds k. Since s was EMPTY, keys of this home have been stored only in EMPTY slots of the home.
 *   So p is a slot of the home, and its first word was one of k. There are two cases.
 *   - p is after s. But slots are claimed in order, so s was not EMPTY then: a contradiction.
 *   - p is before s. The lane has read p after the claim of p, and has not found k there, or it
 *     would store nothing. So k was erased from p. p is never EMPTY again, so k cannot return to
 *     it: a contradiction.
 *
 *   An erase changes the key's word to ERASED, and needs no lock.
 *
 *   Find. A hit reads the key and the value in a single word. An insert under the lock first stores
 *   the word, then raises the head. The key counts as present once its slot, its class and the
 *   farthest distance all say so. The class and the farthest distance are never lowered. So a find
 *   hits a key that stays in its slot during the whole call, in whatever order it reads the
 *   buckets. Nor can a find miss a key that an earlier find hit, unless the key was erased. This
 *   also holds if a class reaches its largest number meanwhile: see cua__hashmap_word_reach. If a
 *   find misses a key that was present at the start, the key moved during the call. It was absent
 *   between its erase and its next insert, and the miss takes effect then.
 *
 *   Writes. Assign and update replace the word of a present key by CAS, so they take effect only
 *   while the key is there. An erase takes effect by a CAS of the word to ERASED. An insert takes
 *   effect when its word is stored and its class raised. So any two changes of a key are changes of
 *   the same word, or are separated by an erase of the key.
 *
 *   Updates in a map that never erases. A slot keeps its first key, so an atomic operation on the
 *   whole word always meets the key's value: see cua__hashmap_word_apply. The update takes effect by
 *   that operation.
 *
 *   FULL with max_probes. The lookup missed, so the key was absent at some moment. The scan of the
 *   probe sequence then read each slot once, and found another key in each. Relaxed loads suffice,
 *   because the scan uses no data that these loads would have to acquire. If another lane stores
 *   the key in a slot before the scan reads that slot, the scan sees the key.
 *
 *   Order.
 *   - Lock: the CAS or OR that sets bit 0 of the head acquires. The store of the head that clears
 *     it releases. After an insert, the same store has the raised farthest distance.
 *   - Pairs: each CAS that stores, changes or erases a pair releases. The loads of a lookup are
 *     relaxed. After a hit, the lookup acquires the slot, so a find acquires all that the writer of
 *     the pair did before.
 *   - Calls with the order CUA_RELAXED, as bulk calls on a GPU use, omit the acquire of the hit and
 *     the order of the inserts' CAS. The stream orders them with other work.
 *   - On a GPU a fence costs about as much as an access to memory. So an insert makes one at its
 *     start, and its CAS need not release. If it took the lock, it stores the raised head, still
 *     locked, and makes a second fence. This fence orders the CAS and the head before the addition
 *     to the counts and before the store that unlocks. So each lane that acquires either of the two
 *     finds the key.
 *
 *   Lanes of a warp. The argument assumes no order among the loads of a bucket, so any lane may make
 *   them: detail/hashmap_bucket.h has the reads by a whole warp. The acquire after a hit is made by
 *   the lane with the key. Lanes that count at the same moment may add to the counts once for all.
 *   Everything else is done by each lane alone. detail/hashmap_execute.h has an operation that shares
 *   more.
 */
/* hashmap.h includes this file after the declarations that it needs */
#ifndef CUATOMIC_HASHMAP_WORD_H
#define CUATOMIC_HASHMAP_WORD_H

#include <cuatomic/detail/hashmap_bucket.h>
#include <cuatomic/detail/hashmap_common.h>

#define CUA__HASHMAP_WORD_BYTES 64u
/*
 * log2 of the buckets of a region. A map with more buckets has whole regions; a smaller map is a
 * single region.
 */
#ifndef CUA__HASHMAP_REGION_LOG
#define CUA__HASHMAP_REGION_LOG 9u
#endif
#define CUA__HASHMAP_REGION ((uint64_t)1 << CUA__HASHMAP_REGION_LOG)
#define CUA__HASHMAP_LOCKED ((uint64_t)1)

/* ---- words ---- */

/* Whether maps of these sizes can have the word layout. */
CUA_FORCE int cua__hashmap_is_word(uint32_t ks, uint32_t vs)
{
	return ks + vs <= 16 && (ks != 16 || vs == 0) && vs != 16;
}

/* 0: words of 64 bits. 1: words of 128 bits. 2: words of 128 bits that are a key of 16 bytes. */
CUA_FORCE int cua__hashmap_is_wide(uint32_t ks, uint32_t vs)
{
	return ks == 16 ? 2 : ks + vs > 8;
}

CUA_FORCE uint32_t cua__hashmap_word_slots(uint32_t ks, uint32_t vs)
{
	return cua__hashmap_is_wide(ks, vs) ? 3 : 7;
}

CUA_FORCE struct cua_u128 cua__hashmap_word_of(uint32_t ks, uint32_t vs, struct cua_u128 key,
					       struct cua_u128 value)
{
	struct cua_u128 w = key;

	if (ks == 4) {
		w.lo = (uint32_t)key.lo | (vs == 4 ? value.lo << 32 : (uint64_t)1 << 32);
		w.hi = vs == 8 ? value.lo : 0;
	} else if (ks == 8) {
		w.hi = vs == 8 ? value.lo : vs == 4 ? ((uint64_t)1 << 32 | (uint32_t)value.lo) : 0;
	}
	return w;
}

CUA_FORCE struct cua_u128 cua__hashmap_word_key(uint32_t ks, struct cua_u128 w)
{
	if (ks == 4)
		w.lo = (uint32_t)w.lo;
	if (ks != 16)
		w.hi = 0;
	return w;
}

CUA_FORCE struct cua_u128 cua__hashmap_word_value(uint32_t ks, uint32_t vs, struct cua_u128 w)
{
	struct cua_u128 value = {0, 0};

	if (vs == 4)
		value.lo = ks == 4 ? w.lo >> 32 : (uint32_t)w.hi;
	else if (vs == 8)
		value.lo = w.hi;
	return value;
}

/* Whether a word holds a pair. */
CUA_FORCE int cua__hashmap_word_used(uint32_t ks, uint32_t vs, struct cua_u128 w)
{
	if (ks == 4)
		return vs == 4 ? (uint32_t)w.lo != 0 : w.lo >> 32 != 0;
	if (vs == 4)
		return w.hi >> 32 != 0;
	return w.lo > 1 || (ks == 16 && w.hi != 0);
}

/*
 * The word ERASED. In a map with words of 128 bits, the same half of every word but EMPTY is not 0.
 * So halves of two different words never look like EMPTY. Keys of 16 bytes have no such half:
 * cua__hashmap_word_load reads their word again as a whole if it looks EMPTY.
 */
CUA_FORCE struct cua_u128 cua__hashmap_word_erased(uint32_t ks, uint32_t vs)
{
	struct cua_u128 w = {1, 0};

	if (ks == 4 && vs == 4)
		w.lo = (uint64_t)1 << 32;
	else if (ks == 8 && vs == 4)
		w.lo = 0, w.hi = 1;
	return w;
}

CUA_FORCE int cua__hashmap_word_empty(struct cua_u128 w)
{
	return !w.lo && !w.hi;
}

/*
 * Whether a word holds a pair with this key. EMPTY and ERASED never match, because no key outside
 * the reserved slots has their bits.
 */
CUA_FORCE int cua__hashmap_word_has(uint32_t ks, uint32_t vs, struct cua_u128 w,
				    struct cua_u128 key, cua__hashmap_equal_fn *equal)
{
	if (equal)
		return cua__hashmap_word_used(ks, vs, w) &&
		       equal(cua__hashmap_word_key(ks, w), key);
	if (ks == 4 && vs == 4)
		return (uint32_t)w.lo == (uint32_t)key.lo;
	if (ks == 4)
		return w.lo == ((uint64_t)1 << 32 | (uint32_t)key.lo);
	if (ks == 8 && vs == 4)
		return w.lo == key.lo && w.hi >> 32 != 0;
	return w.lo == key.lo && (ks == 8 || w.hi == key.hi);
}

/*
 * Loads the word of a slot. On the host an atomic load of 128 bits is a CAS. So the host reads the
 * first half, the second half, and the first half again, until both reads of the first half agree.
 * The halves may still belong to two different pairs. If the second half belongs to a pair, the
 * first half is from that pair or from a later word. After a match, the caller reads the matching
 * slot as a whole. It does so for every matching slot of the bucket, because a later match may be a
 * mixture and an earlier match the key.
 */
CUA_FORCE struct cua_u128 cua__hashmap_word_load(const char *at, int wide, enum cua_order order)
{
	struct cua_u128 w = {0, 0};
	uint64_t again;

#if defined(CUA_PORT_HAS_B128)
	if (wide && (order != CUA_RELAXED || CUA_WARP_LANES > 1)) {
		cua__uint128 both = cua_port_load_b128(at, order, CUA__HASHMAP_AT);

		w.lo = (uint64_t)both;
		w.hi = (uint64_t)(both >> 64);
		return w;
	}
#endif
	if (!wide) {
		w.lo = cua_port_load_b64(at, order, CUA__HASHMAP_AT);
		return w;
	}
	again = cua_port_load_b64(at, CUA_ACQUIRE, CUA__HASHMAP_AT);
	do {
		w.lo = again;
		w.hi = cua_port_load_b64(at + 8, CUA_ACQUIRE, CUA__HASHMAP_AT);
		again = cua_port_load_b64(at, CUA_RELAXED, CUA__HASHMAP_AT);
	} while (again != w.lo);
#if defined(CUA_PORT_HAS_B128)
	if (wide == 2 && !w.lo && !w.hi) {
		cua__uint128 both = cua_port_load_b128(at, order, CUA__HASHMAP_AT);

		w.lo = (uint64_t)both;
		w.hi = (uint64_t)(both >> 64);
	}
#endif
	return w;
}

/*
 * The memory order of a lookup's loads. With a user-supplied `equal`, the host loads 16-byte keys
 * whole, so that `equal` never sees a key torn from two pairs.
 */
CUA_FORCE enum cua_order cua__hashmap_word_order(int wide, cua__hashmap_equal_fn *equal)
{
	return wide == 2 && equal && CUA_WARP_LANES == 1 ? CUA_ACQUIRE : CUA_RELAXED;
}

/* Returns whether the word was `expected`, and sets *seen to the former word. */
CUA_FORCE int cua__hashmap_word_cas(char *at, int wide, struct cua_u128 expected,
				    struct cua_u128 desired, enum cua_order order,
				    struct cua_u128 *seen)
{
	struct cua_u128 old = {0, 0};

#if defined(CUA_PORT_HAS_B128)
	if (wide) {
		cua__uint128 both = cua_port_cas_b128(
			at, (cua__uint128)expected.hi << 64 | expected.lo,
			(cua__uint128)desired.hi << 64 | desired.lo, order, CUA__HASHMAP_AT);

		old.lo = (uint64_t)both;
		old.hi = (uint64_t)(both >> 64);
	} else
#endif
		old.lo = cua_port_cas_b64(at, expected.lo, desired.lo, order, CUA__HASHMAP_AT);
	(void)wide;
	*seen = old;
	return cua__hashmap_same(old, expected);
}

/* The reserved slot of a key, or NULL if the key is not reserved. */
CUA_FORCE char *cua__hashmap_reserved_slot(const struct cua_hashmap_view *view, uint32_t ks,
					   uint32_t vs, struct cua_u128 key,
					   cua__hashmap_equal_fn *equal)
{
	char *reserved_slots = (char *)(view->counts + CUA_HASHMAP_STRIPES);
	struct cua_u128 reserved = {0, 0};

	if (vs != 0 && ks != vs)
		return NULL;
	if (ks == 4 && vs == 0)
		return NULL;
	if (equal ? equal(key, reserved) : cua__hashmap_word_empty(key))
		return reserved_slots;
	reserved.lo = 1;
	if (ks != 4 && (equal ? equal(key, reserved) : cua__hashmap_same(key, reserved)))
		return reserved_slots + 16;
	return NULL;
}

/* ---- heads and probe sequences ---- */

struct cua__hashmap_head {
	uint64_t lo, hi; /* hi: only with words of 128 bits */
};

CUA_FORCE char *cua__hashmap_word_bucket(const struct cua_hashmap_view *view, uint64_t bucket)
{
	return (char *)view->buckets + bucket * CUA__HASHMAP_WORD_BYTES;
}

/* Relaxed loads; cua__hashmap_word_reach orders them where that matters. */
CUA_FORCE struct cua__hashmap_head cua__hashmap_word_head(const char *bucket, int wide)
{
	struct cua__hashmap_head head;

	head.lo = cua_port_load_b64(bucket, CUA_RELAXED, CUA__HASHMAP_AT);
	head.hi = wide ? cua_port_load_b64(bucket + 8, CUA_RELAXED, CUA__HASHMAP_AT) : 0;
	return head;
}

/*
 * The home bucket of a hash: cua_hash_to_index. A GPU computes it at half the cost, because the map
 * has fewer than 2^32 buckets.
 */
CUA_FORCE uint32_t cua__hashmap_word_home(const struct cua_hashmap_view *view, uint64_t hash)
{
	const uint64_t n = (uint32_t)view->n_buckets;

	if (CUA_WARP_LANES == 1)
		return (uint32_t)cua_hash_to_index(hash, n);
	return (uint32_t)(((hash >> 32) * n + ((uint64_t)(uint32_t)hash * n >> 32)) >> 32);
}

/*
 * The distance of a code of 8 bits. Distances from 128 on are rounded up to a power of two, or to
 * the largest number.
 */
CUA_FORCE uint32_t cua__hashmap_far_of(uint32_t code)
{
	return code < 128 ? code : code < 160 ? (uint32_t)1 << (code - 128) : ~(uint32_t)0;
}

CUA_FORCE uint32_t cua__hashmap_far_code(uint32_t distance)
{
	uint32_t e = 7;

	if (distance < 128)
		return distance;
	while ((uint64_t)1 << e < distance)
		e++;
	return 128 + e;
}

CUA_FORCE uint32_t cua__hashmap_class(uint64_t hash)
{
	return (uint32_t)hash & 15;
}

/* The largest number of a class: its keys are up to the farthest distance of the head. */
CUA_FORCE uint32_t cua__hashmap_class_most(int wide)
{
	return wide ? 15 : 3;
}

/* Whether any class in hi has its largest number. */
CUA_FORCE int cua__hashmap_has_most(uint64_t hi)
{
	return (hi & hi >> 1 & hi >> 2 & hi >> 3 & 0x1111111111111111u) != 0;
}

/* The number in the class of this hash. `classes` is hi, or the upper half of lo. */
CUA_FORCE uint32_t cua__hashmap_class_far(int wide, uint64_t classes, uint64_t hash)
{
	return (uint32_t)(classes >> (wide ? 4 : 2) * cua__hashmap_class(hash)) &
	       cua__hashmap_class_most(wide);
}

/* The farthest distance at which a key of this hash may be. The head was read under the lock. */
CUA_FORCE uint32_t cua__hashmap_word_far(int wide, struct cua__hashmap_head head, uint64_t hash)
{
	const uint32_t far = cua__hashmap_class_far(wide, wide ? head.hi : head.lo >> 32, hash);

	return far < cua__hashmap_class_most(wide)
		       ? far
		       : cua__hashmap_far_of((uint32_t)(head.lo >> 24) & 255);
}

/*
 * The same for a head that was read without the lock. A class in hi with its largest number refers
 * to the farthest distance in lo. That lo must cover all keys that were present when hi was stored,
 * also keys at the distances that the class recorded earlier. So lo is read again, after an acquire
 * of hi; cua__hashmap_word_unlock has the release.
 */
CUA_FORCE uint32_t cua__hashmap_word_reach(const char *home, int wide,
					   struct cua__hashmap_head head, uint64_t hash)
{
	if (wide && cua__hashmap_class_far(wide, head.hi, hash) == cua__hashmap_class_most(wide)) {
		(void)cua_port_load_b64(home + 8, CUA_ACQUIRE, CUA__HASHMAP_AT);
		head.lo = cua_port_load_b64(home, CUA_RELAXED, CUA__HASHMAP_AT);
	}
	return cua__hashmap_word_far(wide, head, hash);
}

/* The head, unlocked, after its class and farthest distance were raised to `distance`. */
CUA_FORCE struct cua__hashmap_head cua__hashmap_word_raise(int wide, struct cua__hashmap_head head,
							   uint64_t hash, uint32_t distance)
{
	uint32_t shift = wide ? 4 * cua__hashmap_class(hash) : 32 + 2 * cua__hashmap_class(hash);
	uint64_t most = cua__hashmap_class_most(wide), far = distance < most ? distance : most;
	uint64_t *classes = wide ? &head.hi : &head.lo;

	head.lo &= ~CUA__HASHMAP_LOCKED;
	if (distance > cua__hashmap_far_of((uint32_t)(head.lo >> 24) & 255))
		head.lo = (head.lo & ~((uint64_t)255 << 24)) |
			  (uint64_t)cua__hashmap_far_code(distance) << 24;
	if ((*classes >> shift & most) < far)
		*classes = (*classes & ~(most << shift)) | far << shift;
	return head;
}

/*
 * The bucket at a distance from home, 0 <= distance < n_buckets. The probe sequence visits all
 * buckets of the home's region, then all buckets of the next region, and so on.
 */
CUA_FORCE uint32_t cua__hashmap_word_probe(const struct cua_hashmap_view *view, uint32_t home,
					   uint64_t hash, uint32_t distance)
{
	const uint32_t n = (uint32_t)view->n_buckets, step = (uint32_t)(hash >> 4) | 1;
	const uint32_t mask = n < CUA__HASHMAP_REGION ? n - 1 : (uint32_t)CUA__HASHMAP_REGION - 1;
	const uint32_t regions = distance & ~mask;
	uint32_t first = home & ~mask;

	if (distance > mask)
		first = regions < n - first ? first + regions : regions - (n - first);
	return first + ((home + distance * step) & mask);
}

/* ---- find ---- */

/* The lanes that read together: they meet here. 0 if each lane reads alone. */
CUA_FORCE uint32_t cua__hashmap_meet(void)
{
	return CUA__HASHMAP_WARP != 0 ? cua__warp_meet() : 0;
}

/*
 * Loads the head and all slots of a bucket. The loads have no order among them. `mask` has the lanes
 * that read together, or is the constant 0. Most keys are in their home, so a warp seldom reads
 * other buckets as a whole. Returns whether other lanes have loaded for this one.
 */
CUA_FORCE int cua__hashmap_word_read(char *bucket, const cua__hashmap_kind kind,
				     enum cua_order order, uint32_t mask,
				     struct cua__hashmap_head *head, struct cua_u128 w[7])
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	int by_others = 0;
	uint64_t words[8];
	uint32_t i;

	if (CUA_WARP_LANES == 1) {
		*head = cua__hashmap_word_head(bucket, wide);
		CUA__UNROLL
		for (i = 0; i < slots; i++)
			w[i] = cua__hashmap_word_load(bucket + (i + 1) * size, wide, order);
		return 0;
	}
	if (mask)
		by_others = cua__bucket_read_together(mask, bucket, wide, words);
	else
		cua__bucket_read(bucket, wide, words);
	head->lo = words[0];
	head->hi = wide ? words[1] : 0;
	CUA__UNROLL
	for (i = 0; i < slots; i++) {
		w[i].lo = wide ? words[2 * i + 2] : words[i + 1];
		w[i].hi = wide ? words[2 * i + 3] : 0;
	}
	return by_others;
}

/* What a search has read of a bucket that does not hold the key. */
struct cua__hashmap_room {
	struct cua__hashmap_head head;
	uint32_t empty;  /* the first EMPTY slot, or the number of slots */
	uint32_t unused; /* the first EMPTY or ERASED slot, or the number of slots */
};

/*
 * Searches a bucket for the key. Returns
 *   1   the key is there: sets *spot, and room->head;
 *   0   the key is not there, and the bucket has no EMPTY slot: sets *room. room->empty may still be
 *       an EMPTY slot, because the loads are unordered: that slot was claimed meanwhile, perhaps
 *       for this key;
 *   -1  the key is neither there nor in any later bucket, because the last slot is EMPTY: sets
 *       *room.
 * `mask` is that of cua__hashmap_word_read.
 */
CUA_FORCE int cua__hashmap_word_search(char *bucket, const cua__hashmap_kind kind,
				       struct cua_u128 key, cua__hashmap_equal_fn *equal,
				       enum cua_order order, uint32_t mask,
				       struct cua__hashmap_spot *spot,
				       struct cua__hashmap_room *room)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	const enum cua_order look = cua__hashmap_word_order(wide, equal);
	struct cua_u128 w[7] = {{0, 0}}, word = {0, 0};
	const int by_others = cua__hashmap_word_read(bucket, kind, look, mask, &room->head, w);
	uint32_t i, hit = slots;

	/* without branches, because the slot of a hit cannot be predicted */
	CUA__UNROLL
	for (i = 0; i < slots; i++) {
		int has = cua__hashmap_word_has(ks, vs, w[i], key, equal);

		hit = has ? i : hit;
		word.lo = has ? w[i].lo : word.lo;
		word.hi = has ? w[i].hi : word.hi;
	}
	if (hit < slots) {
		if (wide && CUA_WARP_LANES == 1) {
			for (i = 0; i <= hit; i++) {
				if (!cua__hashmap_word_has(ks, vs, w[i], key, equal))
					continue;
				spot->at = bucket + (i + 1) * size;
				spot->word = cua__hashmap_word_load(spot->at, wide, CUA_ACQUIRE);
				if (cua__hashmap_word_has(ks, vs, spot->word, key, equal))
					return 1;
			}
		} else {
			spot->at = bucket + (hit + 1) * size;
			spot->word = word;
			/* the lane itself reads this word, or a later word of the slot */
			if (order != CUA_RELAXED && by_others)
				(void)cua__hashmap_word_load(spot->at, wide, CUA_ACQUIRE);
			else if (order != CUA_RELAXED)
				cua_port_acquire_b32(spot->at, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			return 1;
		}
	}
	room->empty = room->unused = slots;
	CUA__UNROLL
	for (i = slots; i-- > 0;) {
		const int empty = cua__hashmap_word_empty(w[i]);

		room->empty = empty ? i : room->empty;
		room->unused = empty || cua__hashmap_same(w[i], cua__hashmap_word_erased(ks, vs))
				       ? i
				       : room->unused;
	}
	return cua__hashmap_word_empty(w[slots - 1]) ? -1 : 0;
}

/*
 * Looks up a key that is not in its home, whose head the caller has read. Returns 1 and sets *spot,
 * or 0.
 */
CUA_FORCE int cua__hashmap_word_look_far(const struct cua_hashmap_view *view,
					 const cua__hashmap_kind kind,
					 const struct cua__hashmap_key key,
					 cua__hashmap_equal_fn *equal, enum cua_order order,
					 const struct cua__hashmap_head head,
					 struct cua__hashmap_spot *spot)
{
	const int wide = cua__hashmap_is_wide(CUA__HASHMAP_KS(kind), CUA__HASHMAP_VS(kind));
	const uint32_t home = cua__hashmap_word_home(view, key.hash);
	const uint32_t far =
		cua__hashmap_word_reach(cua__hashmap_word_bucket(view, home), wide, head, key.hash);
	uint32_t distance = far < view->n_buckets ? far : (uint32_t)view->n_buckets - 1;

	/* farthest first: most keys of a class that are not at home are at its farthest distance */
	for (; distance; distance--) {
		struct cua__hashmap_room room;
		char *bucket = cua__hashmap_word_bucket(
			view, cua__hashmap_word_probe(view, home, key.hash, distance));

		if (cua__hashmap_word_search(bucket, kind, key.bits, equal, order, 0, spot, &room) >
		    0)
			return 1;
	}
	return 0;
}

/* Looks up a key that is not reserved. Returns 1 and sets *spot, or 0. */
CUA_FORCE int cua__hashmap_word_look(const struct cua_hashmap_view *view,
				     const cua__hashmap_kind kind,
				     const struct cua__hashmap_key key,
				     cua__hashmap_equal_fn *equal, enum cua_order order,
				     struct cua__hashmap_spot *spot)
{
	struct cua__hashmap_room room;
	const int there = cua__hashmap_word_search(
		cua__hashmap_word_bucket(view, cua__hashmap_word_home(view, key.hash)), kind,
		key.bits, equal, order, cua__hashmap_meet(), spot, &room);

	if (there)
		return there > 0;
	return cua__hashmap_word_look_far(view, kind, key, equal, order, room.head, spot);
}

/* The same for any key, reserved keys included. */
CUA_FORCE int cua__hashmap_word_spot(const struct cua_hashmap_view *view,
				     const cua__hashmap_kind kind,
				     const struct cua__hashmap_key key,
				     cua__hashmap_equal_fn *equal, enum cua_order order,
				     struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	char *reserved = cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal);

	if (!reserved)
		return cua__hashmap_word_look(view, kind, key, equal, order, spot);
	spot->at = reserved;
	spot->word = cua__hashmap_word_load(reserved, cua__hashmap_is_wide(ks, vs), CUA_ACQUIRE);
	return !cua__hashmap_word_empty(spot->word);
}

CUA_FORCE int cua__hashmap_word_find(const struct cua_hashmap_view *view,
				     const cua__hashmap_kind kind,
				     const struct cua__hashmap_key key,
				     cua__hashmap_equal_fn *equal, enum cua_order order,
				     struct cua_u128 *value)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

	if (!cua__hashmap_word_spot(view, kind, key, equal, order, &spot))
		return 0;
	if (value)
		*value = cua__hashmap_word_value(ks, vs, spot.word);
	return 1;
}

/* ---- insert ---- */

/*
 * Adds *added, the number of keys that a lane has inserted, to the map's counts, and sets it to 0.
 */
CUA_FORCE void cua__hashmap_count_added(const struct cua_hashmap_view *view, uint64_t bucket,
					uint32_t *added)
{
	uint64_t *count = &cua__hashmap_counts(view, bucket)->inserted;

	if (*added && CUA__HASHMAP_WARP != 0)
		(void)cua__count_together(count, view->counts, CUA_RELEASE);
	else if (*added)
		cua_port_add_u64(count, *added, CUA_RELEASE, CUA__HASHMAP_AT);
	*added = 0;
}

/*
 * Tries to store the word in the home bucket, by a CAS on each slot from `first` on. Returns
 * INSERTED; EXISTS with the spot; or 0 if no slot was EMPTY.
 */
CUA_FORCE int cua__hashmap_word_claim(char *bucket, const cua__hashmap_kind kind, uint32_t first,
				      struct cua_u128 key, cua__hashmap_equal_fn *equal,
				      struct cua_u128 word, enum cua_order order,
				      struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	const struct cua_u128 empty = {0, 0};
	uint32_t i;

	for (i = first; i < slots; i++) {
		spot->at = bucket + (i + 1) * size;
		if (cua__hashmap_word_cas(spot->at, wide, empty, word, order, &spot->word))
			return CUA_HASHMAP_INSERTED;
		if (cua__hashmap_word_has(ks, vs, spot->word, key, equal))
			return CUA_HASHMAP_EXISTS;
	}
	return 0;
}

/* Tries to lock the keys whose home is this bucket. `lo` is the first half of its head as read. */
CUA_FORCE int cua__hashmap_word_trylock(char *bucket, uint64_t lo)
{
	return !(lo & CUA__HASHMAP_LOCKED) && cua_port_cas_b64(bucket, lo, lo | CUA__HASHMAP_LOCKED,
							       CUA_ACQUIRE, CUA__HASHMAP_AT) == lo;
}

/* Stores hi of a head under the lock: see cua__hashmap_word_unlock. */
CUA_FORCE void cua__hashmap_word_put_classes(char *bucket, int wide, uint64_t hi)
{
	if (wide && cua__hashmap_has_most(hi))
		cua_port_store_b64(bucket + 8, hi, CUA_RELEASE, CUA__HASHMAP_AT);
	else if (wide)
		cua_port_store_b64(bucket + 8, hi, CUA_RELAXED, CUA__HASHMAP_AT);
}

/*
 * Unlocks by storing the head, in which bit 0 is clear. Only the holder of the lock changes the
 * head, so no read-modify-write is needed. hi is stored before lo. If a class has its largest
 * number, the store of hi releases the lo of all earlier holders, which covers all present keys. The
 * key of this holder becomes present when its lo is stored.
 */
CUA_FORCE void cua__hashmap_word_unlock(char *bucket, int wide, struct cua__hashmap_head head)
{
	cua__hashmap_word_put_classes(bucket, wide, head.hi);
	cua_port_store_b64(bucket, head.lo, CUA_RELEASE, CUA__HASHMAP_AT);
}

/*
 * Raises *head, the head of a home whose lock is held, for a key that has been stored at `distance`.
 * On a GPU the raised head is also stored, still locked: see cua__hashmap_word_unlock_counted.
 */
CUA_FORCE void cua__hashmap_word_raise_home(char *bucket, int wide, uint64_t hash,
					    uint32_t distance, struct cua__hashmap_head *head)
{
	const uint64_t lo = head->lo;

	*head = cua__hashmap_word_raise(wide, *head, hash, distance);
	if (CUA_WARP_LANES > 1) {
		cua__hashmap_word_put_classes(bucket, wide, head->hi);
		if (head->lo != lo)
			cua_port_store_b64(bucket, head->lo | CUA__HASHMAP_LOCKED, CUA_RELAXED,
					   CUA__HASHMAP_AT);
	}
}

/*
 * Adds *added keys to the map's counts, sets *added to 0, and unlocks a home on a GPU. A raised head
 * has already been stored. So one fence orders the CAS of the slot and the head before both the
 * addition and the store of lo. A lane that is FULL by this count finds the key.
 */
CUA_FORCE void cua__hashmap_word_unlock_counted(const struct cua_hashmap_view *view, uint32_t home,
						uint64_t lo, uint32_t *added)
{
	cua_port_fence(CUA_ACQ_REL, CUA_SCOPE_DEVICE);
	if (*added)
		cua_port_add_u64(&cua__hashmap_counts(view, home)->inserted, *added, CUA_RELAXED,
				 CUA__HASHMAP_AT);
	*added = 0;
	cua_port_store_b64(cua__hashmap_word_bucket(view, home), lo, CUA_RELAXED, CUA__HASHMAP_AT);
}

/*
 * Returns 1 if the map has max_probes, a key of this home has reached the last bucket that
 * max_probes allows, and each slot of the allowed buckets holds another key; else 0. After 1 an
 * insert is FULL without the lock, so hostile inserts do not queue for it. The farthest distance in
 * the head spares other homes the scan. The function is always inlined in kernels: a call would cost
 * inserts by lanes a third of their speed.
 */
CUA_FORCE int cua__hashmap_word_crowded(const struct cua_hashmap_view *view,
					const cua__hashmap_kind kind,
					const struct cua__hashmap_key key,
					cua__hashmap_equal_fn *equal,
					const struct cua__hashmap_head head)
{
	const uint32_t slots =
		cua__hashmap_word_slots(CUA__HASHMAP_KS(kind), CUA__HASHMAP_VS(kind));
	const uint32_t home = cua__hashmap_word_home(view, key.hash);
	const uint32_t most = (uint32_t)cua__hashmap_most(view);
	uint32_t distance;

	if (most == view->n_buckets ||
	    cua__hashmap_far_of((uint32_t)(head.lo >> 24) & 255) < most - 1)
		return 0;
	for (distance = 0; distance < most; distance++) {
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
		struct cua__hashmap_room room;
		char *bucket = cua__hashmap_word_bucket(
			view, cua__hashmap_word_probe(view, home, key.hash, distance));

		/*
		 * searched, not scanned for free slots alone: another lane may have stored this key
		 */
		if (cua__hashmap_word_search(bucket, kind, key.bits, equal, CUA_RELAXED, 0, &spot,
					     &room) ||
		    room.unused < slots)
			return 0;
	}
	return 1;
}

/* An insert checks after this many buckets without a free slot whether the map is full. */
#define CUA__HASHMAP_PATIENCE 64u

/* The word that an insert stores, and the head of its home as read. */
struct cua__hashmap_insertion {
	struct cua_u128 word;
	struct cua__hashmap_head head;
	int locked; /* the lane has locked the home since it read the head */
};

/*
 * A slot without a pair that an insert has found: 2 times its number, plus 1 if it was ERASED and
 * not EMPTY.
 */
#define CUA__HASHMAP_NO_VACANCY 16u

/*
 * Tries to store the word in a vacancy, or in a later slot of its bucket, with the home's lock held.
 * Returns INSERTED and sets *spot, or 0 if inserts of other homes have claimed these slots.
 */
CUA_FORCE int cua__hashmap_word_put(char *bucket, const cua__hashmap_kind kind, uint32_t vacancy,
				    struct cua_u128 word, enum cua_order order,
				    struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	const struct cua_u128 empty = {0, 0}, erased = cua__hashmap_word_erased(ks, vs);
	struct cua_u128 expected = vacancy & 1 ? erased : empty, was;
	uint32_t slot = vacancy / 2;
	int result = 0;

	while (!result && slot < slots) {
		spot->at = bucket + (slot + 1) * size;
		if (cua__hashmap_word_cas(spot->at, wide, expected, word, order, &was)) {
			spot->word = word;
			result = CUA_HASHMAP_INSERTED;
		} else if (cua__hashmap_same(was, erased)) {
			/* claimed and erased since the load: the slot is still free */
			expected = erased;
		} else {
			expected = empty;
			slot += !cua__hashmap_same(was, empty);
		}
	}
	return result;
}

/*
 * Stores the word in the first free slot of the probe sequence, with the home's lock held. Returns
 * INSERTED, with in->head raised; EXISTS with the spot; or FULL. Returns 0 if the caller must unlock
 * and retry: the home may have EMPTY slots, or no slot was free although the counts do not show a
 * full map.
 *
 * The loops have a single exit each, so that the lanes of a warp converge after them, and store and
 * unlock together.
 */
CUA_FORCE int cua__hashmap_word_place(const struct cua_hashmap_view *view,
				      const cua__hashmap_kind kind,
				      const struct cua__hashmap_key key,
				      cua__hashmap_equal_fn *equal, enum cua_order order,
				      struct cua__hashmap_insertion *in,
				      struct cua__hashmap_spot *spot, uint32_t *added)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const uint32_t home = cua__hashmap_word_home(view, key.hash);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs);
	const uint32_t most = (uint32_t)cua__hashmap_most(view);
	uint32_t far = 0, distance = 0;
	int result = 0; /* -1: the caller must retry */

	while (!result) {
		uint32_t vacancy = CUA__HASHMAP_NO_VACANCY, vacant_distance = 0;

		/* searches all buckets that may hold the key, and finds the first unused slot */
		do {
			char *bucket = cua__hashmap_word_bucket(
				view, cua__hashmap_word_probe(view, home, key.hash, distance));
			struct cua__hashmap_room room;
			const int there = cua__hashmap_word_search(bucket, kind, key.bits, equal,
								   order, 0, spot, &room);

			if (distance == 0) {
				in->head.hi = room.head.hi;
				far = cua__hashmap_word_far(wide, in->head, key.hash);
			}
			if (there > 0) {
				result = CUA_HASHMAP_EXISTS;
			} else if (distance == 0 && room.empty < slots) {
				result = -1;
			} else {
				if (vacancy == CUA__HASHMAP_NO_VACANCY && room.unused < slots) {
					vacant_distance = distance;
					vacancy = room.unused * 2 + (room.unused != room.empty);
				}
				/* no key is stored after a bucket that has EMPTY slots */
				if (there < 0 && distance < far)
					far = distance;
				if (vacancy == CUA__HASHMAP_NO_VACANCY && distance >= far &&
				    (distance - far) % CUA__HASHMAP_PATIENCE ==
					    CUA__HASHMAP_PATIENCE - 1) {
					/* the check must see the inserts of this lane */
					cua__hashmap_count_added(view, home, added);
					if (cua__hashmap_full(view, slots))
						result = CUA_HASHMAP_FULL;
				}
				distance++;
			}
		} while (!result && distance < most &&
			 (distance <= far || vacancy == CUA__HASHMAP_NO_VACANCY));
		if (!result && vacancy != CUA__HASHMAP_NO_VACANCY) {
			result = cua__hashmap_word_put(
				cua__hashmap_word_bucket(
					view, cua__hashmap_word_probe(view, home, key.hash,
								      vacant_distance)),
				kind, vacancy, in->word, order, spot);
			if (result)
				cua__hashmap_word_raise_home(cua__hashmap_word_bucket(view, home),
							     wide, key.hash, vacant_distance,
							     &in->head);
			/* else these slots are taken */
			distance = vacant_distance + 1;
		}
		if (!result && distance >= most) {
			cua__hashmap_count_added(view, home, added);
			result = most < view->n_buckets || cua__hashmap_full(view, slots)
					 ? CUA_HASHMAP_FULL
					 : -1;
		}
	}
	return result > 0 ? result : 0;
}

/* Inserts the pair of a reserved key into its reserved slot. Returns INSERTED or EXISTS. */
CUA_FORCE int cua__hashmap_reserved_enter(char *reserved, uint32_t ks, uint32_t vs,
					  struct cua_u128 value, struct cua__hashmap_spot *spot)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const struct cua_u128 stands_for = {2, 0}, empty = {0, 0};
	struct cua_u128 word = cua__hashmap_word_of(ks, vs, stands_for, value);

	spot->at = reserved;
	spot->word = cua__hashmap_word_load(reserved, wide, CUA_ACQUIRE);
	if (cua__hashmap_word_empty(spot->word) &&
	    cua__hashmap_word_cas(reserved, wide, empty, word, CUA_ACQ_REL, &spot->word)) {
		spot->word = word;
		return CUA_HASHMAP_INSERTED;
	}
	return CUA_HASHMAP_EXISTS;
}

/*
 * Inserts a key whose home bucket had no EMPTY slot and did not hold the key; in->head is its head
 * as read. Looks the key up in its other buckets without the lock, then tries once to store it under
 * the lock. Neither is needed if in->locked. Returns INSERTED, EXISTS with the spot, or FULL.
 * Returns 0 if the caller must start again at the home: another lane held the lock, or the home has
 * an EMPTY slot.
 */
CUA_FORCE int cua__hashmap_word_enter_full(const struct cua_hashmap_view *view,
					   const cua__hashmap_kind kind,
					   const struct cua__hashmap_key key,
					   cua__hashmap_equal_fn *equal, enum cua_order order,
					   struct cua__hashmap_insertion *in,
					   struct cua__hashmap_spot *spot, uint32_t *added)
{
	const int wide = cua__hashmap_is_wide(CUA__HASHMAP_KS(kind), CUA__HASHMAP_VS(kind));
	const uint32_t home = cua__hashmap_word_home(view, key.hash);
	char *bucket = cua__hashmap_word_bucket(view, home);
	int result = 0;

	/* a present key is found without the lock, also while this lane waits for the lock */
	if (!in->locked &&
	    cua__hashmap_word_look_far(view, kind, key, equal, order, in->head, spot)) {
		result = CUA_HASHMAP_EXISTS;
	} else if (!in->locked && cua__hashmap_word_crowded(view, kind, key, equal, in->head)) {
		result = CUA_HASHMAP_FULL;
	} else if (in->locked || cua__hashmap_word_trylock(bucket, in->head.lo)) {
		/*
		 * the unlock is in this branch, so that no lane of the warp waits for a diverged
		 * holder
		 */
		result = cua__hashmap_word_place(view, kind, key, equal, order, in, spot, added);
		*added += result == CUA_HASHMAP_INSERTED;
		/*
		 * counted before the warp converges again: a lane of it may wait for this count
		 */
		if (CUA_WARP_LANES > 1)
			cua__hashmap_word_unlock_counted(view, home, in->head.lo, added);
		else
			cua__hashmap_word_unlock(bucket, wide, in->head);
	}
	return result;
}

/*
 * Inserts the word into the home bucket if the key is not there, and sets in->head to the head as
 * read. Returns INSERTED; EXISTS; or 0 if no EMPTY slot is left.
 *
 * On a GPU, with words of 64 bits, a lane whose home is full tries to lock it by the same
 * compare-and-swap by which other lanes of the warp claim slots: one trip to memory less for the
 * warp. It does so only if no key of its class is in another bucket, since a present key needs no
 * lock, and if max_probes does not limit the map; the search under the lock decides. in->locked
 * tells whether the lane has the lock. Until it has unlocked, the lane waits at most for lanes of
 * its warp that claim slots, count, or search other buckets: none of them waits meanwhile.
 */
CUA_FORCE int cua__hashmap_word_enter_home(const struct cua_hashmap_view *view,
					   const cua__hashmap_kind kind,
					   const struct cua__hashmap_key key,
					   cua__hashmap_equal_fn *equal, enum cua_order order,
					   struct cua__hashmap_insertion *in,
					   struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int with_lock =
		CUA_WARP_LANES > 1 && !cua__hashmap_is_wide(ks, vs) && order != CUA_RELAXED;
	char *bucket = cua__hashmap_word_bucket(view, cua__hashmap_word_home(view, key.hash));
	struct cua__hashmap_room room;
	const int there = cua__hashmap_word_search(bucket, kind, key.bits, equal, order,
						   cua__hashmap_meet(), spot, &room);
	const uint64_t lo = room.head.lo;
	const int lock = with_lock && there == 0 && !(lo & CUA__HASHMAP_LOCKED) &&
			 cua__hashmap_word_far(0, room.head, key.hash) == 0 &&
			 cua__hashmap_most(view) == view->n_buckets;

	in->head = room.head;
	in->locked = 0;
	if (there > 0)
		return CUA_HASHMAP_EXISTS;
	if (with_lock && (there < 0 || lock)) {
		const struct cua_u128 expected = {lock ? lo : 0, 0};
		const struct cua_u128 desired = {lock ? lo | CUA__HASHMAP_LOCKED : in->word.lo, 0};
		int stored;

		spot->at = bucket + (lock ? 0 : room.empty + 1) * 8;
		stored = cua__hashmap_word_cas(spot->at, 0, expected, desired, order, &spot->word);
		if (!lock && stored)
			return CUA_HASHMAP_INSERTED;
		if (!lock && cua__hashmap_word_has(ks, vs, spot->word, key.bits, equal))
			return CUA_HASHMAP_EXISTS;
		in->locked = lock && stored;
		/* another lane was faster: no second attempt without a new look */
		if (lock && !stored)
			in->head.lo |= CUA__HASHMAP_LOCKED;
		room.empty++;
	}
	if (there == 0)
		return 0;
	return cua__hashmap_word_claim(bucket, kind, room.empty, key.bits, equal, in->word, order,
				       spot);
}

/*
 * Inserts the pair if the key is absent. Returns INSERTED, EXISTS or FULL. With INSERTED and EXISTS
 * the spot has the address and the word of the pair. On the host the caller must add *added to the
 * map's counts. On a GPU *added is 0 afterwards, because other lanes of the warp may wait for the
 * counts.
 */
CUA_FORCE int cua__hashmap_word_enter(const struct cua_hashmap_view *view,
				      const cua__hashmap_kind kind,
				      const struct cua__hashmap_key key,
				      cua__hashmap_equal_fn *equal, struct cua_u128 value,
				      enum cua_order order, struct cua__hashmap_spot *spot,
				      uint32_t *added)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	/* the CAS releases, or a fence before it */
	const int fenced = CUA_WARP_LANES > 1 && order != CUA_RELAXED;
	const enum cua_order both = order == CUA_RELAXED ? CUA_RELAXED
				    : fenced             ? CUA_ACQUIRE
							 : CUA_ACQ_REL;
	char *reserved = cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal);
	struct cua__hashmap_insertion in;
	struct cua_backoff backoff;
	int result;

	/* before any way to the slot: an update of the slot may rely on this fence */
	if (fenced)
		cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);
	if (reserved)
		return cua__hashmap_reserved_enter(reserved, ks, vs, value, spot);
	in.word = cua__hashmap_word_of(ks, vs, key.bits, value);
	cua_backoff_init(&backoff);
	do {
		result = cua__hashmap_word_enter_home(view, kind, key, equal, both, &in, spot);
		if (result == CUA_HASHMAP_INSERTED) {
			++*added;
			if (CUA_WARP_LANES > 1)
				cua__hashmap_count_added(
					view, cua__hashmap_word_home(view, key.hash), added);
		}
		if (!result)
			result = cua__hashmap_word_enter_full(view, kind, key, equal, both, &in,
							      spot, added);
		if (!result)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	} while (!result);
	return result;
}

/* ---- change and erase ---- */

/*
 * Replaces the value at the spot by CAS. Returns 1; 0 if the key has another value, whose word is
 * then in the spot; or -1 if the slot no longer holds the key.
 */
CUA_FORCE int cua__hashmap_word_change(uint32_t ks, uint32_t vs, struct cua__hashmap_spot *spot,
				       struct cua_u128 value, enum cua_order order)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	struct cua_u128 key = cua__hashmap_word_key(ks, spot->word), seen;
	struct cua_u128 word = cua__hashmap_word_of(ks, vs, key, value);

	if (cua__hashmap_word_cas(spot->at, wide, spot->word, word, order, &seen))
		return 1;
	if (!cua__hashmap_word_has(ks, vs, seen, key, NULL))
		return -1;
	spot->word = seen;
	return 0;
}

/*
 * Applies the operands of the lanes in `below` to `start`, in the order of the lanes. Without a
 * start, it combines these operands alone. All lanes of mask must call it.
 */
CUA_FORCE struct cua_u128 cua__hashmap_operands(uint32_t vs, uint32_t mask, uint32_t below,
						struct cua_u128 operand, cua__hashmap_next_fn *next,
						enum cua_update op, int has_start,
						struct cua_u128 start)
{
	struct cua_u128 other = {0, 0};
	uint32_t rest;

	/*
	 * the trip count is the same in all lanes, so no vote is needed; the highest lane is below
	 * none
	 */
	for (rest = mask; rest & (rest - 1); rest &= rest - 1) {
		const uint32_t lane = cua_port_ffs_u32(rest) - 1;

		other.lo = cua_port_shuffle_u64(mask, operand.lo, lane);
		if (below >> lane & 1) {
			start = has_start ? cua__hashmap_cut(next(start, other, op), vs) : other;
			has_start = 1;
		}
	}
	return start;
}

/*
 * Changes the value at the spot for lanes whose own CAS failed. The active lanes of a warp that
 * call together form groups with the same slot, key and operation. In each round of a group
 *   - the lowest lane reads the word;
 *   - each lane applies the operands of the lanes below it to the value;
 *   - the highest lane applies its own operand too, and does a single CAS for all.
 * So the changes of a group take effect one after the other, in the order of the lanes. Returns 1
 * with the former value in the spot, or 0 if the slot no longer holds the key. A lane waits only
 * for the lanes that called with it, and these wait for no other lane.
 */
CUA_FORCE int cua__hashmap_word_change_together(uint32_t ks, uint32_t vs, struct cua_u128 operand,
						cua__hashmap_next_fn *next, enum cua_update op,
						struct cua__hashmap_spot *spot)
{
	/*
	 * a user's operation need not be associative: its operands are applied again to each word
	 * read
	 */
	const int associative =
		next == cua__hashmap_next_combined || next == cua__hashmap_next_assign;
	const int wide = cua__hashmap_is_wide(ks, vs);
	/*
	 * the key's bits in the word: a reserved slot has others, and equal keys may differ in bits
	 */
	const struct cua_u128 key = cua__hashmap_word_key(ks, spot->word);
	const uint32_t mask = cua__warp_meet(), lane = cua_port_lane();
	/*
	 * slot and operation in one number: slots are at least 8 bytes apart, operations are below
	 * 8
	 */
	const uint32_t peers = cua__warp_peers(mask, spot->at + (uint32_t)op) &
			       cua_port_match_any_u64(mask, key.lo);
	const uint32_t below = cua__warp_below(peers), first = cua_port_ffs_u32(peers) - 1;
	const struct cua_u128 none = {0, 0};
	struct cua_u128 together = none;
	struct cua_backoff backoff;
	uint32_t waiting = mask;
	int left = 1, result = 0;

	if (associative)
		together = cua__hashmap_operands(vs, mask, below, operand, next, op, 0, none);
	cua_backoff_init(&backoff);
	do {
		struct cua_u128 word = none, value, seen;
		int swapped = 0;

		/* a warp sleeps as a whole: once for all groups */
		if (lane == cua_port_ffs_u32(mask) - 1)
			cua__backoff_wait_apart(&backoff, CUA__HASHMAP_LONGEST_APART);
		cua_port_sync_warp(mask);
		if (lane == first && waiting & peers)
			word = cua__hashmap_word_load(spot->at, wide, CUA_ACQUIRE);
		/*
		 * passes the acquire on to all lanes, and orders their earlier writes before the
		 * releasing CAS
		 */
		cua_port_sync_warp(mask);
		word.lo = cua_port_shuffle_u64(mask, word.lo, first);
		if (wide)
			word.hi = cua_port_shuffle_u64(mask, word.hi, first);
		left = left && cua__hashmap_word_has(ks, vs, word, key, NULL);
		value = cua__hashmap_word_value(ks, vs, word);
		/* a user's operation is applied to values of this key only */
		if (!associative)
			value = cua__hashmap_operands(vs, mask, left ? below : 0, operand, next, op,
						      1, value);
		else if (below)
			value = cua__hashmap_cut(next(value, together, op), vs);
		if (left && lane == cua__warp_highest(peers)) {
			const struct cua_u128 desired = cua__hashmap_word_of(
				ks, vs, cua__hashmap_word_key(ks, word),
				cua__hashmap_cut(next(value, operand, op), vs));

			swapped = cua__hashmap_same(desired, word) ||
				  cua__hashmap_word_cas(spot->at, wide, word, desired, CUA_ACQ_REL,
							&seen);
		}
		if (cua_port_ballot(mask, swapped) & peers && left) {
			spot->value = value;
			result = 1;
			left = 0;
		}
		waiting = cua_port_ballot(mask, left);
	} while (waiting);
	/* passes the acquires of the CAS on to all lanes */
	cua_port_sync_warp(mask);
	return result;
}

/* Whether updates by an operation are one native atomic: see cua__hashmap_word_apply. */
CUA_FORCE int cua__hashmap_word_is_native(const struct cua_hashmap_view *view, uint32_t ks,
					  uint32_t vs)
{
	return ks == 4 && vs == 4 && view->no_erase;
}

/*
 * Changes the value in a slot of a map that never erases to value op operand. Such a slot keeps its
 * key, so one atomic operation on the whole word suffices: its operand leaves the bits of `key`, the
 * key's bits in the word, as they are. Slots have 8 bytes; all accesses to them have the same size.
 */
CUA_FORCE void cua__hashmap_word_apply(char *at, struct cua_u128 key, struct cua_u128 operand,
				       enum cua_update op, enum cua_order order)
{
	const struct cua_u128 none = {0, 0}, all = {0xffffffffu, 0};
	const uint64_t alone = cua__hashmap_word_of(4, 4, none, operand).lo;
	const uint64_t with_key = cua__hashmap_word_of(4, 4, key, operand).lo;
	uint64_t *word = (uint64_t *)(void *)at;

	switch (op) {
	case CUA_UPDATE_ADD: cua_port_add_u64(word, alone, order, CUA__HASHMAP_AT); break;
	/* the value is the upper half; equal keys leave the order to it */
	case CUA_UPDATE_MIN: cua_port_min_u64(word, with_key, order, CUA__HASHMAP_AT); break;
	case CUA_UPDATE_MAX: cua_port_max_u64(word, with_key, order, CUA__HASHMAP_AT); break;
	case CUA_UPDATE_AND:
		cua_port_and_b64(word, cua__hashmap_word_of(4, 4, all, operand).lo, order,
				 CUA__HASHMAP_AT);
		break;
	case CUA_UPDATE_OR: cua_port_or_b64(word, alone, order, CUA__HASHMAP_AT); break;
	default: cua_port_xor_b64(word, alone, order, CUA__HASHMAP_AT);
	}
}

/*
 * Looks up a key of 4 bytes that all lanes of a whole warp have, in its home of words of 64 bits:
 * lane i loads piece i % 4, a single request of the warp. For a frequent key, where the accesses to
 * its line bound the updates. `mask` is the lane's result of cua__warp_meet, its last meeting.
 * Returns 1 in all lanes, with the spot; or 0 in all, if the keys or the homes differ, or the home
 * does not hold the key. All lanes of the warp take the same branches, which depend on votes.
 * Memory order: releases the lane's earlier accesses, for a relaxed update of the spot; with 1,
 * acquires the word.
 */
CUA_FORCE int cua__hashmap_word_look_same(const struct cua_hashmap_view *view,
					  const struct cua__hashmap_key key,
					  cua__hashmap_equal_fn *equal, uint32_t mask,
					  struct cua__hashmap_spot *spot)
{
	const uint32_t all = CUA__HASHMAP_WARP, part = cua_port_lane() % 4;
	const uint32_t bits = (uint32_t)key.bits.lo;
	struct cua_u128 low = {0, 0}, high = {0, 0};
	uint64_t piece[2];
	uint32_t votes, slot;
	char *home;

	if (!all || mask != all ||
	    cua_port_ballot(all, bits == cua_port_shuffle_u32(all, bits, 0)) != all)
		return 0;
	/* lanes may have different maps */
	home = cua__hashmap_word_bucket(view, cua__hashmap_word_home(view, key.hash));
	if (cua__warp_peers(all, home) != all ||
	    cua__hashmap_reserved_slot(view, 4, 4, key.bits, equal))
		return 0;
	cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);
	cua__piece_load(home + 16 * part, 0, piece);
	low.lo = piece[0];
	high.lo = piece[1];
	/* the first word of the bucket is its head */
	slot = part && cua__hashmap_word_has(4, 4, low, key.bits, equal) ? 2 * part
	       : cua__hashmap_word_has(4, 4, high, key.bits, equal)      ? 2 * part + 1
									 : 0;
	votes = cua_port_ballot(all, slot != 0);
	if (!votes)
		return 0;
	slot = cua_port_shuffle_u32(all, slot, cua_port_ffs_u32(votes) - 1);
	spot->at = home + 8 * slot;
	spot->word = cua__hashmap_word_load(spot->at, 0, CUA_ACQUIRE);
	return 1;
}

/*
 * Changes the value at the spot to value op operand, in a map that never erases. `together` is the
 * lane's result of cua__warp_meet at the start of the call. The active lanes of a warp form groups
 * that met there, with the same slot and operation. The lowest lane of a group applies the operands
 * of all.
 *
 * A group has equal masks `together`. Being in each other's mask is not enough: a lane of an earlier
 * meeting may have returned, and be here again in its next call. Two lanes with equal masks attended
 * the same last meeting: each is in the other's mask, and a meeting has one mask.
 *
 * Memory order: releases the earlier accesses of all lanes. The lanes of a group met before the
 * fence of cua__hashmap_word_enter or cua__hashmap_word_look_same, so the fence of the lowest lane
 * covers all of them. Nothing of the former value is returned, so there is nothing to acquire. The
 * warp meets again, so a later find by a lane of the group returns a value that includes its update.
 */
CUA_FORCE void cua__hashmap_word_apply_together(const struct cua__hashmap_spot *spot,
						struct cua_u128 operand, enum cua_update op,
						uint32_t together)
{
	const struct cua_u128 key = cua__hashmap_word_key(4, spot->word);
	struct cua__warp_rounds rounds;
	uint32_t mask, peers, grouped = 0;

	if (CUA_WARP_LANES == 1) {
		cua__hashmap_word_apply(spot->at, key, operand, op, CUA_RELEASE);
		return;
	}
	mask = cua__warp_meet();
	/* slots are 8 bytes apart, operations are below 8 */
	peers = cua__warp_peers(mask, spot->at + (uint32_t)op) &
		cua_port_match_any_u32(mask, together);
	rounds = cua__warp_rounds_of(peers, cua_port_lane());
	while (cua_port_ballot(mask, rounds.above != 0)) {
		struct cua_u128 other = {0, 0};

		other.lo = cua_port_shuffle_u32(mask, (uint32_t)operand.lo,
						cua__warp_rounds_next(&rounds, cua_port_lane()));
		if (rounds.above)
			operand = cua__hashmap_combine(operand, other, 4, op);
		cua__warp_rounds_drop(&rounds, mask);
		grouped = 1;
	}
	if (!cua__warp_below(peers))
		cua__hashmap_word_apply(spot->at, key, operand, op, CUA_RELAXED);
	if (grouped)
		cua_port_sync_warp(mask);
}

/*
 * Changes the value of the key at the spot to next(value, operand, op), and sets spot->value to the
 * former value. Returns 0 if the slot no longer holds the key: the caller looks it up again.
 */
CUA_FORCE int cua__hashmap_word_change_by(uint32_t ks, uint32_t vs, struct cua_u128 operand,
					  cua__hashmap_next_fn *next, enum cua_update op,
					  struct cua__hashmap_spot *spot)
{
	const struct cua_u128 desired = cua__hashmap_cut(next(spot->value, operand, op), vs);
	/* an update that changes nothing takes effect when the value is read */
	const int changed = cua__hashmap_same(desired, spot->value)
				    ? 1
				    : cua__hashmap_word_change(ks, vs, spot, desired, CUA_ACQ_REL);

	if (changed)
		return changed > 0;
	return cua__hashmap_word_change_together(ks, vs, operand, next, op, spot);
}

/*
 * Erases the key at the spot. The caller has already counted the erase at *counted; FULL in
 * hashmap.h has the reason. Returns 1, with the last word in the spot. Returns 0 if another lane
 * has erased the key, and undoes the count in the same stripe. A sum of the counts then includes
 * neither addition, the first, or both. So it is never less than the erases that took effect.
 */
CUA_FORCE int cua__hashmap_word_take(uint32_t ks, uint32_t vs, struct cua_u128 key,
				     cua__hashmap_equal_fn *equal, enum cua_order order,
				     uint64_t *counted, struct cua__hashmap_spot *spot)
{
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs);
	struct cua_u128 seen;

	while (!cua__hashmap_word_cas(spot->at, cua__hashmap_is_wide(ks, vs), spot->word, erased,
				      order, &seen)) {
		if (!cua__hashmap_word_has(ks, vs, seen, key, equal)) {
			cua_port_add_u64(counted, ~(uint64_t)0, CUA_RELAXED, CUA__HASHMAP_AT);
			return 0;
		}
		spot->word = seen;
	}
	return 1;
}

/* Erases the pair in a reserved slot. Returns 1 and sets *old, or 0 if it was absent. */
CUA_FORCE int cua__hashmap_reserved_erase(char *reserved, uint32_t ks, uint32_t vs,
					  struct cua_u128 *old)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const struct cua_u128 empty = {0, 0};
	struct cua_u128 word = cua__hashmap_word_load(reserved, wide, CUA_ACQUIRE), seen;

	while (!cua__hashmap_word_empty(word)) {
		if (cua__hashmap_word_cas(reserved, wide, word, empty, CUA_ACQ_REL, &seen)) {
			*old = cua__hashmap_word_value(ks, vs, word);
			return 1;
		}
		word = seen;
	}
	return 0;
}

/* Erases the key. Returns 1 and sets *old to its value, or 0 if it was absent. */
CUA_FORCE int cua__hashmap_word_erase(const struct cua_hashmap_view *view,
				      const cua__hashmap_kind kind,
				      const struct cua__hashmap_key key,
				      cua__hashmap_equal_fn *equal, struct cua_u128 *old)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	char *reserved = cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal);
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint64_t *counted =
		&cua__hashmap_counts(view, cua__hashmap_word_home(view, key.hash))->erased;

	if (reserved)
		return cua__hashmap_reserved_erase(reserved, ks, vs, old);
	if (!cua__hashmap_word_look(view, kind, key, equal, CUA_RELAXED, &spot))
		return 0;
	if (CUA__HASHMAP_WARP != 0)
		counted = cua__count_together(counted, view->counts, CUA_RELAXED);
	else
		cua_port_add_u64(counted, 1, CUA_RELAXED, CUA__HASHMAP_AT);
	if (!cua__hashmap_word_take(ks, vs, key.bits, equal, CUA_ACQ_REL, counted, &spot))
		return 0;
	*old = cua__hashmap_word_value(ks, vs, spot.word);
	return 1;
}

/*
 * Reads the pair in a slot. The reserved slots have the numbers after all others. Returns 0 if the
 * slot has no pair.
 */
CUA_FORCE int cua__hashmap_word_at(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				   uint64_t number, struct cua_u128 *key, struct cua_u128 *value)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	struct cua_u128 w;

	if (number >= view->n_buckets * slots) {
		number -= view->n_buckets * slots;
		w = cua__hashmap_word_load((char *)(view->counts + CUA_HASHMAP_STRIPES) +
						   16 * number,
					   wide, CUA_ACQUIRE);
		key->lo = number;
		key->hi = 0;
	} else {
		w = cua__hashmap_word_load(cua__hashmap_word_bucket(view, number / slots) +
						   (number % slots + 1) * size,
					   wide, CUA_ACQUIRE);
		*key = cua__hashmap_word_key(ks, w);
	}
	*value = cua__hashmap_word_value(ks, vs, w);
	return cua__hashmap_word_used(ks, vs, w);
}

#endif /* CUATOMIC_HASHMAP_WORD_H */
