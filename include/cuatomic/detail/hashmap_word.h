/* SPDX-License-Identifier: MIT */
/*
 * The hash map's layout for pairs that fit into one atomic word: what hashmap.h, which this belongs
 * to, is made of where keys and values have 4 + 4, 4 + 0 or 8 + 0 bytes (words of 64 bits) and, with a
 * compare-and-swap of 128 bits, 8 + 8, 4 + 8, 8 + 4 or 16 + 0 bytes.
 *
 * Source: buckets of one cache line as in bucketized cuckoo hashing; double hashing (Knuth, vol. 3, 6.4) over
 * the buckets of a window of 32 KiB, so that a long probe stays in few pages; a home bucket that says how far
 * its keys went, as in hopscotch hashing (Herlihy, Shavit, Tzafrir, 2008), here for 16 classes of keys apart.
 *
 * A bucket has 64 bytes: the head, then 7 slots of 8 bytes or 3 of 16. A slot is one word:
 *
 *     key, value   word                                      reserved keys
 *     4, 4         key | value << 32                         0
 *     4, 0         key | 1 << 32                             none
 *     8, 0         key                                       0, 1
 *     8, 8         key, value                                0, 1
 *     4, 8         key | 1 << 32, value                      none
 *     8, 4         key, value | 1 << 32                      none
 *     16, 0        key                                       0, 1
 *
 * EMPTY is all zeros and ERASED the other internal word. A pair whose key is reserved has a cell beside
 * the buckets, a word of the same form with 2 in the key's place, all zeros where the pair is absent.
 *
 * The head's first 64 bits: bit 0 the lock of the keys whose home is here; bits 24 to 31 the farthest distance,
 * in buckets of the probe sequence, at which one of them lies, as a code; with slots of 64 bits, bits 32 to 63 are
 * 16 classes of 2 bits, with slots of 128 bits the second 64 bits are 16 classes of 4. A key belongs to a class by its
 * hash; its bits are the farthest distance of a key of that class, the largest number meaning: as far as the head says.
 * A class is raised and never lowered until clear.
 *
 * Argument.
 *
 *   Slots. A slot changes by CAS alone, and never becomes EMPTY again. All who claim a slot in a bucket take the
 *   first EMPTY one (or an ERASED one); so the EMPTY slots of a bucket are its last ones, and there are none once the
 *   last slot is not EMPTY.
 *
 *   Where a key may be. A key is put in its home bucket as long as that has an EMPTY slot, and there only into
 *   such a slot, by anybody. Afterwards it is put into a slot of its probe sequence, and only by the holder of the
 *   home's lock, who has seen the home without EMPTY slots, and every bucket before the one that it chose as well. So
 *   behind an EMPTY slot no key with this home was ever put, and a search ends where the home has one.
 *
 *   One place a key. Say a lane puts a key into EMPTY slot s of its home while the key is in another place p. Nobody
 *   has put a key of this home anywhere but into EMPTY slots of the home, for s was one of them until now; so p is a
 *   slot of the home that was EMPTY. It is not behind s, since whoever took it had seen that s was not EMPTY. It is
 *   not before s either: the lane has seen there another key or ERASED, after the slot was taken, so the key came and
 *   went since, or was there and was met. The holder of the lock, having seen that the last slot is not EMPTY, knows
 *   that nobody else will put the key anywhere, and looks at all slots where it can be before it claims one. An erase
 *   only makes a key's one word ERASED and needs no lock.
 *
 *   Find. A hit read the key and the value in one word. A key that is in one slot during the whole call is met there,
 *   in whatever order the buckets are looked at: its class was raised before the insert returned. It counts as present
 *   once it is in its slot and class and distance say so, which never goes back, also where the class stops to say the
 *   distance itself (cua__hashmap_word_reach); so one find cannot miss what an earlier one met, unless the key was
 *   erased. A miss is right because else the key moved during the call, and between an erase and an insert it was
 *   absent.
 *
 *   Writes. Assign and update replace the word of a present key by CAS, so they take effect only where the key
 *   still is. An erase takes effect by CAS, word -> ERASED. An insert takes effect when its word and class are there.
 *   Each key's changes are those of one word, or are separated by its erase.
 *
 *   FULL with max_probes. The look for the key missed, so the key was absent at one moment. The scan of the probe
 *   sequence then read each slot once, and found another key in each; relaxed loads suffice, because nothing is taken
 *   from what they read. A key that another lane puts into a slot before the scan reads it is seen there.
 *
 *   Locks are taken by an acquiring CAS, or OR, on the head and given back by a releasing store, which also raises the
 *   class. A CAS that writes a pair releases; a find that meets it acquires.
 */
/* hashmap.h includes this where what it needs is there */
#ifndef CUATOMIC_HASHMAP_H
#include <cuatomic/hashmap.h>
#endif
#ifndef CUATOMIC_HASHMAP_WORD_H
#define CUATOMIC_HASHMAP_WORD_H

#define CUA__HASHMAP_WORD_BYTES 64u
/* Buckets of a window, at most; a table with more is made of whole windows. */
#ifndef CUA__HASHMAP_WINDOW_LOG
#define CUA__HASHMAP_WINDOW_LOG 9u
#endif
#define CUA__HASHMAP_WINDOW ((uint64_t)1 << CUA__HASHMAP_WINDOW_LOG)
#define CUA__HASHMAP_LOCKED ((uint64_t)1)

/* ---- words ---- */

/* Whether pairs of these sizes are words. */
CUA_FORCE int cua__hashmap_is_word(uint32_t ks, uint32_t vs)
{
	return ks + vs <= 16 && (ks != 16 || vs == 0) && vs != 16;
}

/* 1: words of 128 bits; 2: and both halves are the key's. */
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
 * With 128 bits, one half of every word but EMPTY is not 0, the same half for all words of a map, so that halves of
 * two words do not look like EMPTY; for keys of 16 bytes cua__hashmap_word_load looks twice.
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

/* Whether a word holds a pair with this key. No word that holds none has the bits of a key that has a slot. */
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
 * A slot. On the host a load of 128 bits is a CAS. So two halves are read there, the first twice: they may be of two
 * pairs, but not a key's half from before it was put there with a half of the pair. Whoever finds what it looks for
 * reads the whole, of each slot that looks so: the one behind may be such a mixture, and the one before the key.
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

/* Of the loads of a look for a key: no equality of the user's shall be asked about halves of two keys. */
CUA_FORCE enum cua_order cua__hashmap_word_order(int wide, cua__hashmap_equal_fn *equal)
{
	return wide == 2 && equal && CUA_WARP_LANES == 1 ? CUA_ACQUIRE : CUA_RELAXED;
}

/* Returns whether it was `expected`; *seen is what was there. */
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

/* The cell of a reserved key, or NULL. */
CUA_FORCE char *cua__hashmap_reserved_slot(const struct cua_hashmap_view *view, uint32_t ks,
					   uint32_t vs, struct cua_u128 key,
					   cua__hashmap_equal_fn *equal)
{
	char *cells = (char *)(view->counts + CUA_HASHMAP_STRIPES);
	struct cua_u128 reserved = {0, 0};

	if (vs != 0 && ks != vs)
		return NULL;
	if (ks == 4 && vs == 0)
		return NULL;
	if (equal ? equal(key, reserved) : cua__hashmap_word_empty(key))
		return cells;
	reserved.lo = 1;
	if (ks != 4 && (equal ? equal(key, reserved) : cua__hashmap_same(key, reserved)))
		return cells + 16;
	return NULL;
}

/* ---- heads and probe sequences ---- */

struct cua__hashmap_head {
	uint64_t lo, hi; /* hi: with slots of 128 bits */
};

CUA_FORCE char *cua__hashmap_word_bucket(const struct cua_hashmap_view *view, uint64_t bucket)
{
	return (char *)view->buckets + bucket * CUA__HASHMAP_WORD_BYTES;
}

/* Without order; see cua__hashmap_word_reach. */
CUA_FORCE struct cua__hashmap_head cua__hashmap_word_head(const char *bucket, int wide)
{
	struct cua__hashmap_head head;

	head.lo = cua_port_load_b64(bucket, CUA_RELAXED, CUA__HASHMAP_AT);
	head.hi = wide ? cua_port_load_b64(bucket + 8, CUA_RELAXED, CUA__HASHMAP_AT) : 0;
	return head;
}

/* Distances as codes of 8 bits: below 128 as they are, above rounded up to a power of two. */
CUA_FORCE uint64_t cua__hashmap_far_of(uint32_t code)
{
	return code < 128 ? code : (uint64_t)1 << (code - 128);
}

CUA_FORCE uint32_t cua__hashmap_far_code(uint64_t distance)
{
	uint32_t e = 7;

	if (distance < 128)
		return (uint32_t)distance;
	while ((uint64_t)1 << e < distance)
		e++;
	return 128 + e;
}

CUA_FORCE uint32_t cua__hashmap_class(uint64_t hash)
{
	return (uint32_t)hash & 15;
}

/* What a class says that went farther than it can say. */
CUA_FORCE uint32_t cua__hashmap_class_most(int wide)
{
	return wide ? 15 : 3;
}

/* Whether a class in hi says that. */
CUA_FORCE int cua__hashmap_has_most(uint64_t hi)
{
	return (hi & hi >> 1 & hi >> 2 & hi >> 3 & 0x1111111111111111u) != 0;
}

/* What a home's classes, hi or the upper half of lo, say of a key of this hash. */
CUA_FORCE uint32_t cua__hashmap_class_far(int wide, uint64_t classes, uint64_t hash)
{
	return (uint32_t)(classes >> (wide ? 4 : 2) * cua__hashmap_class(hash)) &
	       cua__hashmap_class_most(wide);
}

/* How many buckets behind the home may hold a key of this hash, by the head of who holds the lock. */
CUA_FORCE uint64_t cua__hashmap_word_far(int wide, struct cua__hashmap_head head, uint64_t hash)
{
	const uint32_t far = cua__hashmap_class_far(wide, wide ? head.hi : head.lo >> 32, hash);

	return far < cua__hashmap_class_most(wide)
		       ? far
		       : cua__hashmap_far_of((uint32_t)(head.lo >> 24) & 255);
}

/*
 * The same for others. A class in hi that says no distance any more sends to lo, which must not be from before the
 * distance that the class said last: lo is read again, after what released that hi.
 */
CUA_FORCE uint64_t cua__hashmap_word_reach(const char *home, int wide,
					   struct cua__hashmap_head head, uint64_t hash)
{
	if (wide && cua__hashmap_class_far(wide, head.hi, hash) == cua__hashmap_class_most(wide)) {
		cua_port_acquire_b32(home + 8, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		head.lo = cua_port_load_b64(home, CUA_RELAXED, CUA__HASHMAP_AT);
	}
	return cua__hashmap_word_far(wide, head, hash);
}

/* The head, unlocked, that says that such a key may be this far. */
CUA_FORCE struct cua__hashmap_head cua__hashmap_word_raise(int wide, struct cua__hashmap_head head,
							   uint64_t hash, uint64_t distance)
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

/* The bucket at a distance from home, 0 <= distance < n_buckets: all of a window, then those of the next. */
CUA_FORCE uint64_t cua__hashmap_word_probe(const struct cua_hashmap_view *view, uint64_t home,
					   uint64_t hash, uint64_t distance)
{
	uint64_t mask = view->n_buckets < CUA__HASHMAP_WINDOW ? view->n_buckets - 1
							      : CUA__HASHMAP_WINDOW - 1;
	uint64_t step = (hash >> 4) | 1, first = home & ~mask;

	if (distance > mask) {
		first += distance & ~mask;
		if (first >= view->n_buckets)
			first -= view->n_buckets;
	}
	return first + ((home + distance * step) & mask);
}

/* ---- find ---- */

/* All slots of a bucket. */
CUA_FORCE void cua__hashmap_word_read(char *bucket, uint32_t ks, uint32_t vs, enum cua_order order,
				      struct cua_u128 w[7])
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	uint32_t i;

	CUA__UNROLL
	for (i = 0; i < slots; i++)
		w[i] = cua__hashmap_word_load(bucket + (i + 1) * size, wide, order);
}

/*
 * Looks for the key in one bucket. Returns 1 with the spot, 0 if it is not there, -1 if in addition an EMPTY
 * slot says that it is not in the buckets behind either; *first is then the first slot that was EMPTY. With 0 it is
 * the first one that was ERASED, or as many as there are slots; or more where one seemed EMPTY, though the last one
 * did not.
 */
CUA_FORCE int cua__hashmap_word_search(char *bucket, uint32_t ks, uint32_t vs, struct cua_u128 key,
				       cua__hashmap_equal_fn *equal, enum cua_order order,
				       struct cua__hashmap_spot *spot, uint32_t *first)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	const enum cua_order look = cua__hashmap_word_order(wide, equal);
	struct cua_u128 w[7];
	uint32_t i, hit = slots;

	cua__hashmap_word_read(bucket, ks, vs, look, w);
	/* without branches: which slot it is cannot be predicted */
	CUA__UNROLL
	for (i = 0; i < slots; i++) {
		int has = cua__hashmap_word_has(ks, vs, w[i], key, equal);

		hit = has ? i : hit;
		spot->word.lo = has ? w[i].lo : spot->word.lo;
		spot->word.hi = has ? w[i].hi : spot->word.hi;
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
			if (order != CUA_RELAXED)
				cua_port_acquire_b32(spot->at, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			return 1;
		}
	}
	*first = slots;
	if (!cua__hashmap_word_empty(w[slots - 1])) {
		CUA__UNROLL
		for (i = slots; i-- > 0;)
			if (cua__hashmap_same(w[i], cua__hashmap_word_erased(ks, vs)))
				*first = i;
		CUA__UNROLL
		for (i = 0; i < slots; i++)
			if (cua__hashmap_word_empty(w[i]))
				*first = slots + 1;
		return 0;
	}
	CUA__UNROLL
	for (i = slots; i-- > 0;)
		if (cua__hashmap_word_empty(w[i]))
			*first = i;
	return -1;
}

/* Looks for a key that has a slot. Returns 1 with the spot, or 0. */
CUA_FORCE int cua__hashmap_word_look(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				     uint64_t hash, struct cua_u128 key,
				     cua__hashmap_equal_fn *equal, enum cua_order order,
				     struct cua__hashmap_spot *spot)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	uint64_t home = cua_hash_to_index(hash, view->n_buckets), far, distance;
	char *bucket = cua__hashmap_word_bucket(view, home);
	const struct cua__hashmap_head head = cua__hashmap_word_head(bucket, wide);
	uint32_t first;
	int there = cua__hashmap_word_search(bucket, ks, vs, key, equal, order, spot, &first);

	if (there)
		return there > 0;
	far = cua__hashmap_word_reach(bucket, wide, head, hash);
	distance = far < view->n_buckets ? far : view->n_buckets - 1;
	/* the farthest first: most keys of a class that are not at home are there */
	for (; distance; distance--) {
		bucket = cua__hashmap_word_bucket(
			view, cua__hashmap_word_probe(view, home, hash, distance));
		if (cua__hashmap_word_search(bucket, ks, vs, key, equal, order, spot, &first) > 0)
			return 1;
	}
	return 0;
}

/* The same of any key: reserved ones are in their cells. */
CUA_FORCE int cua__hashmap_word_spot(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				     uint64_t hash, struct cua_u128 key,
				     cua__hashmap_equal_fn *equal, enum cua_order order,
				     struct cua__hashmap_spot *spot)
{
	char *cell = cua__hashmap_reserved_slot(view, ks, vs, key, equal);

	if (!cell)
		return cua__hashmap_word_look(view, ks, vs, hash, key, equal, order, spot);
	spot->at = cell;
	spot->word = cua__hashmap_word_load(cell, cua__hashmap_is_wide(ks, vs), CUA_ACQUIRE);
	return !cua__hashmap_word_empty(spot->word);
}

CUA_FORCE int cua__hashmap_word_find(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				     uint64_t hash, struct cua_u128 key,
				     cua__hashmap_equal_fn *equal, enum cua_order order,
				     struct cua_u128 *value)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

	if (!cua__hashmap_word_spot(view, ks, vs, hash, key, equal, order, &spot))
		return 0;
	if (value)
		*value = cua__hashmap_word_value(ks, vs, spot.word);
	return 1;
}

/* ---- insert ---- */

/* Adds what a lane has counted in *added to the map's counts, and sets it to 0. */
CUA_FORCE void cua__hashmap_count_added(const struct cua_hashmap_view *view, uint64_t bucket,
					uint32_t *added)
{
	if (*added)
		cua_port_add_u64(&cua__hashmap_counts(view, bucket)->inserted, *added, CUA_RELEASE,
				 CUA__HASHMAP_AT);
	*added = 0;
}

/*
 * Tries to put the word into the home bucket, by CAS from slot `first` on. Returns INSERTED, EXISTS with the spot, or 0
 * where no EMPTY slot is left.
 */
CUA_FORCE int cua__hashmap_word_claim(char *bucket, uint32_t ks, uint32_t vs, uint32_t first,
				      struct cua_u128 key, cua__hashmap_equal_fn *equal,
				      struct cua_u128 word, enum cua_order order,
				      struct cua__hashmap_spot *spot)
{
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

/* Locks the keys whose home is this bucket, if they are not locked; *head gets its head. */
CUA_FORCE int cua__hashmap_word_trylock(char *bucket, int wide, struct cua__hashmap_head *head)
{
	head->lo = cua_port_load_b64(bucket, CUA_RELAXED, CUA__HASHMAP_AT);
	if ((head->lo & CUA__HASHMAP_LOCKED) ||
	    cua_port_cas_b64(bucket, head->lo, head->lo | CUA__HASHMAP_LOCKED, CUA_ACQUIRE,
			     CUA__HASHMAP_AT) != head->lo)
		return 0;
	if (wide)
		head->hi = cua_port_load_b64(bucket + 8, CUA_RELAXED, CUA__HASHMAP_AT);
	return 1;
}

/*
 * Only the holder of the lock changes the head. The head that is stored says that it is not locked. A hi that sends
 * readers to lo is released, with the lo that the lock was taken with.
 */
CUA_FORCE void cua__hashmap_word_unlock(char *bucket, int wide, struct cua__hashmap_head head)
{
	if (wide && cua__hashmap_has_most(head.hi))
		cua_port_store_b64(bucket + 8, head.hi, CUA_RELEASE, CUA__HASHMAP_AT);
	else if (wide)
		cua_port_store_b64(bucket + 8, head.hi, CUA_RELAXED, CUA__HASHMAP_AT);
	cua_port_store_b64(bucket, head.lo, CUA_RELEASE, CUA__HASHMAP_AT);
}

/* The first slot of a bucket from `from` on that is EMPTY or ERASED, with what is there; or as many as there are. */
CUA_FORCE uint32_t cua__hashmap_word_free(char *bucket, uint32_t ks, uint32_t vs, uint32_t from,
					  struct cua_u128 *there)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs);
	struct cua_u128 w[7];
	uint32_t i, slot = slots;

	if (CUA_WARP_LANES > 1) {
		cua__hashmap_word_read(bucket, ks, vs, CUA_RELAXED, w);
		CUA__UNROLL
		for (i = slots; i-- > 0;)
			if (i >= from &&
			    (cua__hashmap_word_empty(w[i]) || cua__hashmap_same(w[i], erased))) {
				slot = i;
				*there = w[i];
			}
	} else {
		/* which has the whole cache line with the first */
		for (i = from; i < slots && slot == slots; i++) {
			*there = cua__hashmap_word_load(bucket + (i + 1) * size, wide, CUA_RELAXED);
			if (cua__hashmap_word_empty(*there) || cua__hashmap_same(*there, erased))
				slot = i;
		}
	}
	return slot;
}

/*
 * In a map with max_probes, where a key of this home lies in the last bucket that one may: whether each slot of all
 * these buckets holds another key; else 0. It needs no lock, for which many inserts of such keys would queue. Not a
 * function of its own in a kernel: the call alone takes a third of the speed from inserts by lanes.
 */
CUA_FORCE int cua__hashmap_word_crowded(const struct cua_hashmap_view *view, uint32_t ks,
					uint32_t vs, uint64_t home, uint64_t hash,
					struct cua_u128 key, cua__hashmap_equal_fn *equal)
{
	const uint32_t slots = cua__hashmap_word_slots(ks, vs);
	const uint64_t most = cua__hashmap_most(view);
	char *bucket = cua__hashmap_word_bucket(view, home);
	uint64_t distance;

	if (most == view->n_buckets ||
	    cua__hashmap_far_of((uint32_t)(cua__hashmap_word_head(bucket, 0).lo >> 24) & 255) + 1 <
		    most)
		return 0;
	for (distance = 0; distance < most; distance++) {
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
		uint32_t first = 0;

		bucket = cua__hashmap_word_bucket(
			view, cua__hashmap_word_probe(view, home, hash, distance));
		/* a slot that was taken for this key meanwhile is seen, too */
		if (cua__hashmap_word_search(bucket, ks, vs, key, equal, CUA_RELAXED, &spot,
					     &first) ||
		    first != slots)
			return 0;
	}
	return 1;
}

/* Buckets that an insert looks at before it asks whether the map is full. */
#define CUA__HASHMAP_PATIENCE 64u

/*
 * Puts the word somewhere behind or into the home bucket, whose lock is held and whose head this is. Returns INSERTED
 * with the head raised; EXISTS with the spot; FULL; or 0 to come back, because the home has EMPTY slots, or since
 * others were at work.
 */
CUA_FORCE int cua__hashmap_word_place(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				      uint64_t hash, struct cua_u128 key,
				      cua__hashmap_equal_fn *equal, struct cua_u128 word,
				      enum cua_order order, uint64_t home,
				      struct cua__hashmap_head *head,
				      struct cua__hashmap_spot *spot, uint32_t *added)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs);
	const uint64_t none = view->n_buckets, most = cua__hashmap_most(view);
	uint64_t far = cua__hashmap_word_far(wide, *head, hash), distance, free_distance = none;
	uint32_t free_slot = 0, i = 0;

	/* all places where the key can be, and the first free slot */
	for (distance = 0; distance <= far && distance < view->n_buckets; distance++) {
		char *bucket = cua__hashmap_word_bucket(
			view, cua__hashmap_word_probe(view, home, hash, distance));
		const int there =
			cua__hashmap_word_search(bucket, ks, vs, key, equal, order, spot, &i);

		if (there > 0)
			return CUA_HASHMAP_EXISTS;
		if (distance == 0 && (there < 0 || i > slots))
			return 0;
		if (i < slots && free_distance == none) {
			free_distance = distance;
			free_slot = i;
		}
		/* behind this the key is not */
		if (there < 0)
			far = distance;
	}
	if (free_distance != none)
		distance = free_distance;
	for (; distance < most; distance++, free_slot = 0) {
		char *bucket = cua__hashmap_word_bucket(
			view, cua__hashmap_word_probe(view, home, hash, distance));
		struct cua_u128 was = {0, 0};

		while ((i = cua__hashmap_word_free(bucket, ks, vs, free_slot, &was)) < slots) {
			char *at = bucket + (i + 1) * size;

			if (cua__hashmap_word_cas(at, wide, was, word, order, &was) ||
			    /* taken and erased since: free as before */
			    (cua__hashmap_same(was, erased) &&
			     cua__hashmap_word_cas(at, wide, erased, word, order, &was))) {
				spot->at = at;
				spot->word = word;
				*head = cua__hashmap_word_raise(wide, *head, hash, distance);
				return CUA_HASHMAP_INSERTED;
			}
			free_slot = i + 1;
		}
		if (distance >= far &&
		    (distance - far) % CUA__HASHMAP_PATIENCE == CUA__HASHMAP_PATIENCE - 1) {
			/* what this lane has put and not yet counted must not keep a full map from being seen */
			cua__hashmap_count_added(view, home, added);
			if (cua__hashmap_full(view, slots))
				return CUA_HASHMAP_FULL;
		}
	}
	if (most < view->n_buckets)
		return CUA_HASHMAP_FULL;
	cua__hashmap_count_added(view, home, added);
	return cua__hashmap_full(view, slots) ? CUA_HASHMAP_FULL : 0;
}

/* In the cell of a reserved key. */
CUA_FORCE int cua__hashmap_reserved_enter(char *cell, uint32_t ks, uint32_t vs,
					  struct cua_u128 value, struct cua__hashmap_spot *spot)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const struct cua_u128 stands_for = {2, 0}, empty = {0, 0};
	struct cua_u128 word = cua__hashmap_word_of(ks, vs, stands_for, value);

	spot->at = cell;
	spot->word = cua__hashmap_word_load(cell, wide, CUA_ACQUIRE);
	if (cua__hashmap_word_empty(spot->word) &&
	    cua__hashmap_word_cas(cell, wide, empty, word, CUA_ACQ_REL, &spot->word)) {
		spot->word = word;
		return CUA_HASHMAP_INSERTED;
	}
	return CUA_HASHMAP_EXISTS;
}

/*
 * Where the home bucket has no EMPTY slot: looks for the key elsewhere, then puts it there under the lock.
 * Returns INSERTED, EXISTS with the spot, FULL, or 0 where the home has an EMPTY slot after all.
 */
CUA_FORCE int cua__hashmap_word_enter_full(const struct cua_hashmap_view *view, uint32_t ks,
					   uint32_t vs, uint64_t hash, struct cua_u128 key,
					   cua__hashmap_equal_fn *equal, struct cua_u128 word,
					   enum cua_order order, struct cua__hashmap_spot *spot,
					   uint32_t *added)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	uint64_t home = cua_hash_to_index(hash, view->n_buckets);
	char *bucket = cua__hashmap_word_bucket(view, home);
	struct cua__hashmap_head head = {0, 0};
	struct cua_backoff backoff;
	int result = -1;

	cua_backoff_init(&backoff);
	while (result < 0) {
		/* a present key is found without the lock, also by those who wait for it */
		if (cua__hashmap_word_look(view, ks, vs, hash, key, equal, order, spot)) {
			result = CUA_HASHMAP_EXISTS;
		} else if (cua__hashmap_word_crowded(view, ks, vs, home, hash, key, equal)) {
			result = CUA_HASHMAP_FULL;
		} else if (cua__hashmap_word_trylock(bucket, wide, &head)) {
			/* the unlock is in the winner's branch: a lane never waits for its own warp */
			result = cua__hashmap_word_place(view, ks, vs, hash, key, equal, word,
							 order, home, &head, spot, added);
			cua__hashmap_word_unlock(bucket, wide, head);
			*added += result == CUA_HASHMAP_INSERTED;
			/* here and not where the lanes of a warp meet again: one of them may wait for this count */
			if (CUA_WARP_LANES > 1)
				cua__hashmap_count_added(view, home, added);
		}
		if (result <= 0)
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
	}
	return result;
}

/* Inserts into the home bucket if the key is absent there: INSERTED, EXISTS, or 0 where no EMPTY slot is left. */
CUA_FORCE int cua__hashmap_word_enter_home(const struct cua_hashmap_view *view, uint32_t ks,
					   uint32_t vs, uint64_t hash, struct cua_u128 key,
					   cua__hashmap_equal_fn *equal, struct cua_u128 word,
					   enum cua_order order, struct cua__hashmap_spot *spot)
{
	char *bucket = cua__hashmap_word_bucket(view, cua_hash_to_index(hash, view->n_buckets));
	uint32_t first = 0;
	int there = cua__hashmap_word_search(bucket, ks, vs, key, equal, order, spot, &first);

	if (there > 0)
		return CUA_HASHMAP_EXISTS;
	if (there == 0)
		return 0;
	return cua__hashmap_word_claim(bucket, ks, vs, first, key, equal, word,
				       order == CUA_RELAXED ? CUA_RELAXED : CUA_ACQ_REL, spot);
}

/*
 * Inserts the pair if the key is absent. Returns INSERTED, EXISTS or FULL; with the first two the spot says where
 * the pair is and what its word was. What is in *added afterwards is for the caller to add; nothing on a GPU, where
 * other lanes of the warp may wait for it.
 */
CUA_FORCE int cua__hashmap_word_enter(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				      uint64_t hash, struct cua_u128 key,
				      cua__hashmap_equal_fn *equal, struct cua_u128 value,
				      enum cua_order order, struct cua__hashmap_spot *spot,
				      uint32_t *added)
{
	const enum cua_order both = order == CUA_RELAXED ? CUA_RELAXED : CUA_ACQ_REL;
	char *cell = cua__hashmap_reserved_slot(view, ks, vs, key, equal);
	struct cua_u128 word;
	int result = 0;

	if (cell)
		return cua__hashmap_reserved_enter(cell, ks, vs, value, spot);
	word = cua__hashmap_word_of(ks, vs, key, value);
	while (!result) {
		result = cua__hashmap_word_enter_home(view, ks, vs, hash, key, equal, word, order,
						      spot);
		if (result == CUA_HASHMAP_INSERTED) {
			++*added;
			if (CUA_WARP_LANES > 1)
				cua__hashmap_count_added(
					view, cua_hash_to_index(hash, view->n_buckets), added);
		} else if (!result) {
			result = cua__hashmap_word_enter_full(view, ks, vs, hash, key, equal, word,
							      both, spot, added);
		}
	}
	return result;
}

/* ---- change and erase ---- */

/*
 * Replaces the value at the spot. Returns 1; or 0 where the key is there with another value, and the spot has its
 * word; or -1 where it is not there any more.
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
 * `start` after the operands of the lanes in `below`, one after the other; without a start, what they are
 * together. For all lanes of mask.
 */
CUA_FORCE struct cua_u128 cua__hashmap_operands(uint32_t vs, uint32_t mask, uint32_t below,
						struct cua_u128 operand, cua__hashmap_next_fn *next,
						enum cua_update op, int has_start,
						struct cua_u128 start)
{
	struct cua_u128 other = {0, 0};
	uint32_t rest;

	/* as often for every lane, and so without votes; the highest lane is below none */
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
 * For lanes whose own attempt failed. Those of a warp that come here together go on together: of those with one place,
 * key and operation the lowest reads, each applies the operands of the lanes below it to what was read, and the
 * highest does one compare-and-swap for all, which are one after the other then in the order of the lanes. Returns 1
 * with the value before in the spot; or 0 where the key is not there any more. A lane waits only for those that came
 * here with it, and they for nobody else.
 */
CUA_FORCE int cua__hashmap_word_change_together(uint32_t ks, uint32_t vs, struct cua_u128 operand,
						cua__hashmap_next_fn *next, enum cua_update op,
						struct cua__hashmap_spot *spot)
{
	/* which a user's operation need not be: its operands are applied anew to each word that is read */
	const int associative =
		next == cua__hashmap_next_combined || next == cua__hashmap_next_assign;
	const int wide = cua__hashmap_is_wide(ks, vs);
	/* as it is in the word: in a cell it is another one, and equal keys may differ in their bits */
	const struct cua_u128 key = cua__hashmap_word_key(ks, spot->word);
	const uint32_t mask = cua_port_active_mask(), lane = cua_port_lane();
	/* places are 8 bytes apart or more, and operations have lesser numbers */
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

		/* a warp sleeps as a whole: once for all places */
		if (lane == cua_port_ffs_u32(mask) - 1)
			cua__backoff_wait_apart(&backoff, CUA__HASHMAP_LONGEST_APART);
		cua_port_sync_warp(mask);
		if (lane == first && waiting & peers)
			word = cua__hashmap_word_load(spot->at, wide, CUA_ACQUIRE);
		/* acquires for the others, and what they did before comes before the swap, which releases it */
		cua_port_sync_warp(mask);
		word.lo = cua_port_shuffle_u64(mask, word.lo, first);
		if (wide)
			word.hi = cua_port_shuffle_u64(mask, word.hi, first);
		left = left && cua__hashmap_word_has(ks, vs, word, key, NULL);
		value = cua__hashmap_word_value(ks, vs, word);
		/* a user's operation gets no value but the key's */
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
	/* what the swaps acquired */
	cua_port_sync_warp(mask);
	return result;
}

/*
 * Where enter met the key: its value becomes next(value, operand, op), and the spot has the value before. Returns 0
 * where the key is gone, or its place is to be looked for again.
 */
CUA_FORCE int cua__hashmap_word_change_by(uint32_t ks, uint32_t vs, struct cua_u128 operand,
					  cua__hashmap_next_fn *next, enum cua_update op,
					  struct cua__hashmap_spot *spot)
{
	const struct cua_u128 desired = cua__hashmap_cut(next(spot->value, operand, op), vs);
	/* what changes nothing took effect when the value was read */
	const int changed = cua__hashmap_same(desired, spot->value)
				    ? 1
				    : cua__hashmap_word_change(ks, vs, spot, desired, CUA_ACQ_REL);

	if (changed)
		return changed > 0;
	return cua__hashmap_word_change_together(ks, vs, operand, next, op, spot);
}

/*
 * Erases the key at the spot, which the caller has counted at *counted already: see FULL in hashmap.h. Returns 1,
 * with the last word in the spot; or 0 where another one erased it meanwhile. Then the count is undone, where it was
 * made: whoever adds up the counts may miss both or the second, but never the first alone.
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

/* The same in the cell of a reserved key. */
CUA_FORCE int cua__hashmap_reserved_erase(char *cell, uint32_t ks, uint32_t vs,
					  struct cua_u128 *old)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const struct cua_u128 empty = {0, 0};
	struct cua_u128 word = cua__hashmap_word_load(cell, wide, CUA_ACQUIRE), seen;

	while (!cua__hashmap_word_empty(word)) {
		if (cua__hashmap_word_cas(cell, wide, word, empty, CUA_ACQ_REL, &seen)) {
			*old = cua__hashmap_word_value(ks, vs, word);
			return 1;
		}
		word = seen;
	}
	return 0;
}

/* Removes the key. Returns whether it was there, and then its value. */
CUA_FORCE int cua__hashmap_word_erase(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				      uint64_t hash, struct cua_u128 key,
				      cua__hashmap_equal_fn *equal, struct cua_u128 *old)
{
	char *cell = cua__hashmap_reserved_slot(view, ks, vs, key, equal);
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint64_t *counted =
		&cua__hashmap_counts(view, cua_hash_to_index(hash, view->n_buckets))->erased;

	if (cell)
		return cua__hashmap_reserved_erase(cell, ks, vs, old);
	if (!cua__hashmap_word_look(view, ks, vs, hash, key, equal, CUA_RELAXED, &spot))
		return 0;
	cua_port_add_u64(counted, 1, CUA_RELAXED, CUA__HASHMAP_AT);
	if (!cua__hashmap_word_take(ks, vs, key, equal, CUA_ACQ_REL, counted, &spot))
		return 0;
	*old = cua__hashmap_word_value(ks, vs, spot.word);
	return 1;
}

/* The pair at a place: a slot, or behind the slots the cells of reserved keys. */
CUA_FORCE int cua__hashmap_word_at(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				   uint64_t place, struct cua_u128 *key, struct cua_u128 *value)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	struct cua_u128 w;

	if (place >= view->n_buckets * slots) {
		place -= view->n_buckets * slots;
		w = cua__hashmap_word_load((char *)(view->counts + CUA_HASHMAP_STRIPES) +
						   16 * place,
					   wide, CUA_ACQUIRE);
		key->lo = place;
		key->hi = 0;
	} else {
		w = cua__hashmap_word_load(cua__hashmap_word_bucket(view, place / slots) +
						   (place % slots + 1) * size,
					   wide, CUA_ACQUIRE);
		*key = cua__hashmap_word_key(ks, w);
	}
	*value = cua__hashmap_word_value(ks, vs, w);
	return cua__hashmap_word_used(ks, vs, w);
}

#endif /* CUATOMIC_HASHMAP_WORD_H */
