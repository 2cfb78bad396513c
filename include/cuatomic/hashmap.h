/* SPDX-License-Identifier: MIT */
/*
 * A hash map of unique keys: keys of 4, 8 or 16 bytes with values of as many, or with none (a set), every bit
 * pattern allowed for both.
 *
 * Source: open addressing in buckets of 64 or 128 bytes; hashmap_word.h, where a pair is one atomic word, and
 * hashmap_state.h, where it is not, have the layouts, their sources and the arguments.
 *
 * Synchronization: X means that the caller must order the two calls, - that the map does it.
 *
 *               insert  assign  update  find/contains  erase  at  clear  size, retrieve
 *     insert      -       -       -          -           -     X    X        X
 *     assign      -       -       -          -           -     X    X        X
 *     update      -       -       -          -           -     X    X        X
 *     find        -       -       -          -           -     -    X        -
 *     erase       -       -       -          -           -     X    X        X
 *     at          X       X       X          -           X     -    X        -
 *     clear       X       X       X          X           X     X    X        X
 *
 *     insert stands for insert_or_get as well, update for exchange and compare_exchange. Any mix of these, find
 *     and erase may run in one kernel, on one key too, and each is linearizable, where one call comes before
 *     another if it happens before it. Calls on different keys by lanes that do not synchronize have no
 *     common order: two lanes that each insert a key and then look for the other's may both miss it, unless a
 *     cua_port_fence of CUA_SEQ_CST stands between the two calls of each. The bulk calls insert_n, ... are
 *     many of them. The host calls of one context are ordered by its stream.
 *     retrieve stands for merge from a map, statistics, copy_to_host, for_each and save, too; merge into one is many
 *     inserts, assigns or updates; resize is like clear, and so are bulk calls that may grow the map.
 *     at, size and retrieve while a writer runs touch nothing wrong, but what they tell is no moment's state; of
 *     fewer sorted pairs than there are one may be given twice.
 *
 * Scope: the device. On the host, all threads.
 * Memory order: a find that sees a value acquires what the writer of that value did before writing it. The
 *   elements of bulk calls are ordered with other work as their stream orders it.
 * Progress:
 *                                        a word a pair                 a state a slot
 *     find, contains, a miss or hit      wait-free; on the host        wait-free; find of a value of 16
 *                                        lock-free for 128 bits        bytes: blocking
 *     insert of a present key            as find                       as find
 *     insert of an absent key            lock-free while its home      blocking
 *                                        bucket was never full, then
 *                                        blocking
 *     assign, update of a present key    lock-free                     blocking
 *     erase of an absent key             wait-free                     wait-free
 *     erase of a present key             lock-free                     blocking
 *
 *   A call that blocks waits for a spinlock of the key's home bucket, of which a lane holds one at a time; and one
 *   that finds no free slot waits until the inserts under way have been counted, those of a bulk call on the host
 *   when a thread has done its share. All calls may be made by any lane of a diverged warp.
 *   Lanes of a warp that change values of words at one moment, and were all too late, try again together, and wait for
 *   each other until all have succeeded, or found that their key is gone.
 * Full: FULL is returned only where at one moment all slots held a key. In a map made with max_probes it says less: the
 *   key was absent at one moment of the call, and each slot that it may have was taken, by a key or by an insert under
 *   way, at some moment of it. That insert may be of the same key. In both cases the map is unchanged, the pair is
 *   counted and, if the map was made to keep rejected pairs, kept. Bulk calls on a GPU may combine equal keys first:
 *   they count as one pair then, of an update with the operation's value of all of them. Of many lanes that want the
 *   last slot exactly one gets it.
 *
 *   An insert counts itself after its key is there, an erase before it frees its slot; one that another was faster than
 *   takes its count back. The lane that finds no free slot adds up the inserts first and the erases then. When it
 *   begins with the erases, there are at least as many keys as the difference; if that is the number of slots, all
 *   held a key at that moment. Where it is less, somebody is in between, and the lane gives its lock back and starts
 *   again.
 * Hostile keys: without max_probes an operation visits up to all buckets. Keys that are drawn at random need few, but
 *   whoever knows the map's seed, or can watch its layout, can choose keys that all have one home. The default, a seed
 *   that the map draws at random, keeps the layout from those who only choose keys. CUA_HASHMAP_HASH_KEYED keeps it
 *   from those who see it as well. options.max_probes bounds the work of one operation whatever the keys are.
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

/* What became of an operation on one key. */
enum cua_hashmap_result {
	CUA_HASHMAP_ABSENT = 0,   /* compare_exchange: the key is not there */
	CUA_HASHMAP_INSERTED = 1, /* the key was absent, and is now there with the value */
	CUA_HASHMAP_EXISTS = 2,   /* the key was there: kept, overwritten or updated */
	CUA_HASHMAP_FULL = 3,     /* the key was absent and there is no slot: nothing changed */
	CUA_HASHMAP_DIFFERS = 4,  /* compare_exchange: the key is there with another value */
	/* code for a machine that lacks the map's CAS of 128 bits, see portable below, for other sizes or layouts */
	CUA_HASHMAP_UNSUPPORTED = 5
};

/* Counts, striped by home bucket so that no address is hot; sums of all stripes count. */
#define CUA_HASHMAP_STRIPES 64u
struct cua_hashmap_counts {
	uint64_t inserted; /* keys in slots, counted once they are there */
	uint64_t erased;   /* keys in slots, counted before they go */
	uint64_t rejected; /* writes that found the map full */
	uint64_t reserved;
};
CUA_STATIC_ASSERT(sizeof(struct cua_hashmap_counts) == 32, "the counts are ABI");

/* A pair that found the map full; sizes below 16 bytes are in lo, the rest is 0. */
struct cua_hashmap_pair {
	struct cua_u128 key, value;
};

/* The rejected pairs that are kept. */
struct cua_hashmap_rejects {
	uint64_t count; /* rejected since the last clear, also those that found no room here */
	uint64_t room;
	struct cua_hashmap_pair pairs[1]; /* of `room` */
};

/* Layouts: the slot is one word, or has a state. */
#define CUA_HASHMAP_WORDS 2u
#define CUA_HASHMAP_STATES 3u

/* How keys are hashed; see hash.h. */
enum cua_hashmap_hash {
	CUA_HASHMAP_HASH_SEEDED =
		0, /* cua_hash_u64 or cua_hash_u128 under a seed of 64 bits: the fastest */
	CUA_HASHMAP_HASH_KEYED =
		1 /* SipHash-1-3 under a secret of 128 bits: for keys that an attacker chooses */
};

/* What a kernel or a host thread gets by value: the map as the backend addresses it. */
struct cua_hashmap_view {
	void *buckets;
	struct cua_hashmap_counts *counts;   /* CUA_HASHMAP_STRIPES, then two cells of 16 bytes */
	struct cua_hashmap_rejects *rejects; /* or NULL */
	uint64_t n_buckets;
	uint64_t seed;                 /* of a keyed hash, the lower half of its secret */
	uint32_t key_size, value_size; /* 4, 8 or 16; value_size may be 0 */
	uint32_t layout;
	uint32_t hash;      /* an enum cua_hashmap_hash */
	uint64_t seed_high; /* of a keyed hash, the upper half of its secret; else 0 */
	uint32_t
		max_probes; /* buckets that may hold a key, or 0 for all of them; see the options */
	uint32_t reserved;  /* 0 */
};
CUA_STATIC_ASSERT(sizeof(struct cua_hashmap_view) == 48 + 3 * sizeof(void *), "the view is ABI");

/* Whether two keys are one; NULL where this type is expected: the same bits. Always a constant that vanishes. */
typedef int cua__hashmap_equal_fn(struct cua_u128 a, struct cua_u128 b);

/* The value that follows `old`; a constant as well. `op` is what its caller was given with it. */
typedef struct cua_u128 cua__hashmap_next_fn(struct cua_u128 old, struct cua_u128 operand,
					     enum cua_update op);
#define CUA__HASHMAP_NO_OP ((enum cua_update)0)

/* Where a key was met, and with what. */
struct cua__hashmap_spot {
	char *at;
	struct cua_u128 value;
	struct cua_u128 word; /* with a word a pair: as it was */
};

#define CUA__HASHMAP_AT CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/*
 * Nanoseconds. Hundreds of lanes may want one hot key, and each look at the lock is traffic that its
 * holder waits behind; a lane has waited about as long already when its wait gets this long.
 */
#define CUA__HASHMAP_LONGEST_WAIT 16384u
/* Of a warp whose lanes change values together, as few as one or as many as a GPU has: see doc/performance.md. */
#define CUA__HASHMAP_LONGEST_APART 4096u

/* Whether all slots held a key at some moment of this call; may miss it while writers are at work. */
CUA_FN int cua__hashmap_full(const struct cua_hashmap_view *view, uint32_t slots)
{
	uint64_t inserted = 0, erased = 0;
	uint32_t i;

	for (i = 0; i < CUA_HASHMAP_STRIPES; i++)
		inserted +=
			cua_port_load_b64(&view->counts[i].inserted, CUA_ACQUIRE, CUA__HASHMAP_AT);
	for (i = 0; i < CUA_HASHMAP_STRIPES; i++)
		erased += cua_port_load_b64(&view->counts[i].erased, CUA_ACQUIRE, CUA__HASHMAP_AT);
	return inserted - erased == view->n_buckets * slots;
}

/* Buckets of a probe sequence that may hold a key. */
CUA_FORCE uint64_t cua__hashmap_most(const struct cua_hashmap_view *view)
{
	return view->max_probes && view->max_probes < view->n_buckets ? view->max_probes
								      : view->n_buckets;
}

CUA_FORCE struct cua_hashmap_counts *cua__hashmap_counts(const struct cua_hashmap_view *view,
							 uint64_t bucket)
{
	return &view->counts[bucket % CUA_HASHMAP_STRIPES];
}

CUA_FORCE int cua__hashmap_same(struct cua_u128 a, struct cua_u128 b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

/* ---- keys and values as two words of 64 bits ---- */

CUA_FORCE struct cua_u128 cua__hashmap_bits(const void *p, uint32_t size)
{
	struct cua_u128 bits = {0, 0};
	uint32_t low;

	if (size == 4) {
		memcpy(&low, p, 4);
		bits.lo = low;
	} else if (size) {
		memcpy(&bits, p, size);
	}
	return bits;
}

CUA_FORCE void cua__hashmap_unbits(void *p, uint32_t size, struct cua_u128 bits)
{
	uint32_t low = (uint32_t)bits.lo;

	if (size == 4)
		memcpy(p, &low, 4);
	else if (size)
		memcpy(p, &bits, size);
}

CUA_FORCE struct cua_u128 cua__hashmap_u64(uint64_t v, uint32_t size)
{
	struct cua_u128 bits;

	bits.lo = size == 4 ? (uint32_t)v : v;
	bits.hi = 0;
	return bits;
}

CUA_FORCE int cua__hashmap_below(struct cua_u128 a, struct cua_u128 b)
{
	return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}

CUA_FORCE struct cua_u128 cua__hashmap_cut(struct cua_u128 v, uint32_t size)
{
	if (size == 4)
		v.lo = (uint32_t)v.lo;
	if (size != 16)
		v.hi = 0;
	return v;
}

/* The value after an update, of unsigned numbers of so many bytes. */
CUA_FORCE struct cua_u128 cua__hashmap_combine(struct cua_u128 old, struct cua_u128 operand,
					       uint32_t vs, enum cua_update op)
{
	switch (op) {
	case CUA_UPDATE_ADD:
		old.hi += operand.hi;
		old.lo += operand.lo;
		old.hi += old.lo < operand.lo;
		break;
	case CUA_UPDATE_MIN: return cua__hashmap_below(operand, old) ? operand : old;
	case CUA_UPDATE_MAX: return cua__hashmap_below(old, operand) ? operand : old;
	case CUA_UPDATE_AND:
		old.lo &= operand.lo;
		old.hi &= operand.hi;
		break;
	case CUA_UPDATE_OR:
		old.lo |= operand.lo;
		old.hi |= operand.hi;
		break;
	default: old.lo ^= operand.lo; old.hi ^= operand.hi;
	}
	return cua__hashmap_cut(old, vs);
}

CUA_FORCE struct cua_u128 cua__hashmap_next_combined(struct cua_u128 old, struct cua_u128 operand,
						     enum cua_update op)
{
	return cua__hashmap_combine(old, operand, 16, op);
}

CUA_FORCE struct cua_u128 cua__hashmap_next_assign(struct cua_u128 old, struct cua_u128 operand,
						   enum cua_update op)
{
	(void)old;
	(void)op;
	return operand;
}

#include <cuatomic/detail/hashmap_state.h>
#include <cuatomic/detail/hashmap_word.h>

/* ---- one operation on one key, for all layouts; sizes are constants of the caller ---- */

#define CUA__HASHMAP_IS_WORDS(view, ks, vs)                                                        \
	(cua__hashmap_is_word(ks, vs) &&                                                           \
	 (!cua__hashmap_is_wide(ks, vs) || (view)->layout == CUA_HASHMAP_WORDS))

/* Whether this code can work on a map of words of these sizes. */
CUA_FORCE int cua__hashmap_has_words(uint32_t ks, uint32_t vs)
{
#if defined(CUA_PORT_HAS_B128)
	(void)ks;
	(void)vs;
	return 1;
#else
	return !cua__hashmap_is_wide(ks, vs);
#endif
}

CUA__RARE uint64_t cua__hashmap_keyed(const struct cua_u128 secret, uint32_t ks,
				      struct cua_u128 key)
{
	return ks == 16 ? cua_hash_keyed_u128(key, secret) : cua_hash_keyed_u64(key.lo, secret);
}

/* `hash` is the view's; kernels have it as a constant, because a call costs them registers. */
CUA_FORCE uint64_t cua__hashmap_hash_of(const struct cua_hashmap_view *view, uint32_t hash,
					uint32_t ks, struct cua_u128 key)
{
	if (hash == CUA_HASHMAP_HASH_KEYED) {
		struct cua_u128 secret;

		secret.lo = view->seed;
		secret.hi = view->seed_high;
		return cua__hashmap_keyed(secret, ks, key);
	}
	return ks == 16 ? cua_hash_u128(key, view->seed) : cua_hash_u64(key.lo, view->seed);
}

CUA_FORCE uint64_t cua__hashmap_hash(const struct cua_hashmap_view *view, uint32_t ks,
				     struct cua_u128 key)
{
	return cua__hashmap_hash_of(view, view->hash, ks, key);
}

/* Counts, and keeps if there is room, a pair that found the map full. */
CUA_FN void cua__hashmap_reject(const struct cua_hashmap_view *view, uint64_t hash,
				struct cua_u128 key, struct cua_u128 value)
{
	struct cua_hashmap_rejects *rejects = view->rejects;

	cua_port_add_u64(
		&cua__hashmap_counts(view, cua_hash_to_index(hash, view->n_buckets))->rejected, 1,
		CUA_RELAXED, CUA__HASHMAP_AT);
	if (rejects) {
		uint64_t at =
			cua_port_fetch_add_u64(&rejects->count, 1, CUA_RELAXED, CUA__HASHMAP_AT);

		if (at < rejects->room) {
			rejects->pairs[at].key = key;
			rejects->pairs[at].value = value;
		}
	}
}

/* `value` may be NULL, a constant. */
CUA_FORCE int cua__hashmap_find(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
				struct cua_u128 *value)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return cua__hashmap_state_find(view, ks, vs, hash, key, equal, value);
	return cua__hashmap_has_words(ks, vs) &&
	       cua__hashmap_word_find(view, ks, vs, hash, key, equal, CUA_ACQUIRE, value);
}

/* Where the key is, with its value: 1; 0 where it is absent; -1 where this code cannot tell. */
CUA_FORCE int cua__hashmap_spot_of(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				   uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
				   struct cua__hashmap_spot *spot)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return cua__hashmap_state_locate(view, ks, vs, hash, key, equal, spot);
	if (!cua__hashmap_has_words(ks, vs))
		return -1;
	if (!cua__hashmap_word_spot(view, ks, vs, hash, key, equal, CUA_ACQUIRE, spot))
		return 0;
	spot->value = cua__hashmap_word_value(ks, vs, spot->word);
	return 1;
}

/* Inserts if absent: INSERTED, EXISTS with the spot, or FULL, and then the pair is rejected. */
CUA_FORCE int cua__hashmap_enter(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				 uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
				 struct cua_u128 value, struct cua__hashmap_spot *spot)
{
	uint32_t added = 0;
	int result;

	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs)) {
		result = cua__hashmap_state_enter(view, ks, vs, hash, key, equal, value, spot);
	} else if (!cua__hashmap_has_words(ks, vs)) {
		return CUA_HASHMAP_UNSUPPORTED;
	} else {
		result = cua__hashmap_word_enter(view, ks, vs, hash, key, equal, value, CUA_ACQUIRE,
						 spot, &added);
		cua__hashmap_count_added(view, cua_hash_to_index(hash, view->n_buckets), &added);
		spot->value = cua__hashmap_word_value(ks, vs, spot->word);
	}
	if (result == CUA_HASHMAP_FULL)
		cua__hashmap_reject(view, hash, key, value);
	return result;
}

/* Where enter met the key: 1 changed, 0 the value differs and the spot has it, -1 the key is gone. */
CUA_FORCE int cua__hashmap_change(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				  uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
				  struct cua__hashmap_spot *spot, struct cua_u128 desired)
{
	int changed;

	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return cua__hashmap_state_change(view, ks, vs, hash, key, equal, spot, desired);
	changed = cua__hashmap_word_change(ks, vs, spot, desired, CUA_ACQ_REL);
	if (!changed)
		spot->value = cua__hashmap_word_value(ks, vs, spot->word);
	return changed;
}

/*
 * Where the key is there its value becomes next(value, operand, op), and the spot has the value before; else the pair
 * (key, operand) is added. `next` is a constant, and may run more than once.
 */
CUA_FORCE int cua__hashmap_update_by(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				     uint64_t hash, struct cua_u128 key,
				     cua__hashmap_equal_fn *equal, struct cua_u128 operand,
				     cua__hashmap_next_fn *next, enum cua_update op,
				     struct cua__hashmap_spot *spot)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs)) {
		/* under the lock: a loop of many lanes would take a hot key's lock once for each failure */
		int result = cua__hashmap_state_update(view, ks, vs, hash, key, equal, operand,
						       next, op, &spot->value);

		if (result == CUA_HASHMAP_FULL)
			cua__hashmap_reject(view, hash, key, operand);
		return result;
	}
	for (;;) {
		int result = cua__hashmap_enter(view, ks, vs, hash, key, equal, operand, spot);

		if (result != CUA_HASHMAP_EXISTS)
			return result;
		if (cua__hashmap_word_change_by(ks, vs, operand, next, op, spot))
			return result;
	}
}

/* Where the key was met: EXISTS or DIFFERS, or 0 where the key is gone or is to be looked for again. */
CUA_FORCE int cua__hashmap_compare_exchange_at(const struct cua_hashmap_view *view, uint32_t ks,
					       uint32_t vs, uint64_t hash, struct cua_u128 key,
					       cua__hashmap_equal_fn *equal,
					       struct cua__hashmap_spot *spot,
					       struct cua_u128 *expected, struct cua_u128 desired)
{
	int changed;

	do {
		if (!cua__hashmap_same(spot->value, *expected)) {
			*expected = spot->value;
			return CUA_HASHMAP_DIFFERS;
		}
		changed = cua__hashmap_change(view, ks, vs, hash, key, equal, spot, desired);
	} while (!changed);
	return changed > 0 ? CUA_HASHMAP_EXISTS : 0;
}

CUA_FORCE int cua__hashmap_compare_exchange(const struct cua_hashmap_view *view, uint32_t ks,
					    uint32_t vs, uint64_t hash, struct cua_u128 key,
					    cua__hashmap_equal_fn *equal, struct cua_u128 *expected,
					    struct cua_u128 desired)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int result;

	do {
		int there = cua__hashmap_spot_of(view, ks, vs, hash, key, equal, &spot);

		if (there <= 0)
			return there < 0 ? CUA_HASHMAP_UNSUPPORTED : CUA_HASHMAP_ABSENT;
		result = cua__hashmap_compare_exchange_at(view, ks, vs, hash, key, equal, &spot,
							  expected, desired);
	} while (!result);
	return result;
}

/* Erases the key. Returns whether it was there, and then the value that it had. */
CUA_FORCE int cua__hashmap_take(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal,
				struct cua_u128 *old)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return cua__hashmap_state_erase(view, ks, vs, hash, key, equal, old);
	return cua__hashmap_has_words(ks, vs) &&
	       cua__hashmap_word_erase(view, ks, vs, hash, key, equal, old);
}

CUA_FORCE int cua__hashmap_erase(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				 uint64_t hash, struct cua_u128 key, cua__hashmap_equal_fn *equal)
{
	struct cua_u128 old;

	return cua__hashmap_take(view, ks, vs, hash, key, equal, &old);
}

/* Places that a pair can be at, of which `at` tells; places behind the slots are those of reserved keys. */
CUA_FORCE uint64_t cua__hashmap_places(const struct cua_hashmap_view *view, uint32_t ks,
				       uint32_t vs)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return view->n_buckets * cua__hashmap_state_slots(ks, vs);
	return view->n_buckets * cua__hashmap_word_slots(ks, vs) + 2;
}

CUA_FORCE int cua__hashmap_at(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
			      uint64_t place, struct cua_u128 *key, struct cua_u128 *value)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return cua__hashmap_state_at(view, ks, vs, place, key, value);
	return cua__hashmap_has_words(ks, vs) &&
	       cua__hashmap_word_at(view, ks, vs, place, key, value);
}

/* ---- operations of one lane, by type ---- */

/*
 * CUA_DEFINE_HASHMAP(name, K, V) defines, at file scope and with no semicolon after it, for a map whose keys
 * and values have the sizes of the types K and V:
 *
 *   int name_insert(view, key, value)               adds the pair if the key is absent
 *   int name_insert_or_get(view, key, value, &there)  the same; there: the value of the key, old or new
 *   int name_assign(view, key, value)               sets the key's value, whether it was there or not
 *   int name_exchange(view, key, value, &old)       the same; old is set where the key was there
 *   int name_compare_exchange(view, key, &expected, desired)  if the value has the bits of expected it becomes desired:
 *                                                   EXISTS; else DIFFERS, and expected is set; or ABSENT
 *   int name_find(view, key, &value)                1 and the value, or 0
 *   int name_contains(view, key)                    1 or 0
 *   int name_erase(view, key)                       1, or 0 where the key was absent
 *   uint64_t name_places(view)                      how many places name_at knows
 *   int name_at(view, place, &key, &value)          1 and the pair at this place, or 0
 *
 * where `view` is a const struct cua_hashmap_view *, and results are an enum cua_hashmap_result unless said
 * otherwise. In a map of other sizes, or of a layout that this header does not know, what writes is UNSUPPORTED, and
 * nothing is found. Keys are equal if their bits are: padding in a struct counts. To visit all pairs, share the places
 * out among lanes.
 *
 * CUA_DEFINE_HASHSET(name, K) defines insert(view, key), contains, erase, places and at(view, place, &key).
 *
 * CUA_DEFINE_HASHMAP_WITH(name, K, V, hash, equal) and CUA_DEFINE_HASHSET_WITH(name, K, hash, equal) take the functions
 * uint64_t hash(K key, uint64_t seed) and int equal(K a, K b), which nvcc must see as __host__ __device__ (CUA_FN);
 * equal keys must have equal hashes, and all 64 bits of a hash count. Both must take any bits: equal is also asked
 * whether a key is the one of bits 0, or 1, and calls by quads hash the keys of lanes that are not active. A key that
 * equals the one of bits 0 or 1 may come back as that one. A map with a hash or an equality of its own is made with
 * own_hash.
 *
 * CUA_DEFINE_HASHMAP_UPDATE(update, name, expression) defines int update(view, key, operand), after
 * CUA_DEFINE_HASHMAP(name, K, V): where the key is there its value becomes the expression of `old` and `operand`,
 * both of type V, evaluated perhaps more than once and perhaps under a lock; else the pair (key, operand) is added.
 */
#define CUA__HASHMAP_SIZE_CHECK(K, vs)                                                             \
	CUA_STATIC_ASSERT(sizeof(K) == 4 || sizeof(K) == 8 || sizeof(K) == 16,                     \
			  "keys have 4, 8 or 16 bytes");                                           \
	CUA_STATIC_ASSERT((vs) == 0 || (vs) == 4 || (vs) == 8 || (vs) == 16,                       \
			  "values have 4, 8 or 16 bytes");

/* Whether a map is of a layout that this header knows, and one of such keys and values. */
#define CUA__HASHMAP_KNOWN(view)                                                                   \
	((view)->layout - CUA_HASHMAP_WORDS <= CUA_HASHMAP_STATES - CUA_HASHMAP_WORDS)
#define CUA__HASHMAP_FITS(view, ks, vs)                                                            \
	((view)->key_size == (ks) && (view)->value_size == (vs) && CUA__HASHMAP_KNOWN(view))

#define CUA__DEFINE_HASH_ANY(name, K, vs, equal_fn)                                                \
	CUA__HASHMAP_SIZE_CHECK(K, vs)                                                             \
	CUA_FN int name##_contains(const struct cua_hashmap_view *view, K key)                     \
	{                                                                                          \
		return CUA__HASHMAP_FITS(view, sizeof(K), vs) &&                                   \
		       cua__hashmap_find(view, sizeof(K), vs, name##__hash(view, key),             \
					 cua__hashmap_bits(&key, sizeof(K)), equal_fn, NULL);      \
	}                                                                                          \
	CUA_FN int name##_erase(const struct cua_hashmap_view *view, K key)                        \
	{                                                                                          \
		return CUA__HASHMAP_FITS(view, sizeof(K), vs) &&                                   \
		       cua__hashmap_erase(view, sizeof(K), vs, name##__hash(view, key),            \
					  cua__hashmap_bits(&key, sizeof(K)), equal_fn);           \
	}                                                                                          \
	CUA_FN uint64_t name##_places(const struct cua_hashmap_view *view)                         \
	{                                                                                          \
		return CUA__HASHMAP_FITS(view, sizeof(K), vs)                                      \
			       ? cua__hashmap_places(view, sizeof(K), vs)                          \
			       : 0;                                                                \
	}

#define CUA__DEFINE_HASHSET(name, K, equal_fn)                                                     \
	CUA__DEFINE_HASH_ANY(name, K, 0, equal_fn)                                                 \
	CUA_FN int name##_insert(const struct cua_hashmap_view *view, K key)                       \
	{                                                                                          \
		const struct cua_u128 none = {0, 0};                                               \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), 0))                                        \
			return CUA_HASHMAP_UNSUPPORTED;                                            \
		return cua__hashmap_enter(view, sizeof(K), 0, name##__hash(view, key),             \
					  cua__hashmap_bits(&key, sizeof(K)), equal_fn, none,      \
					  &spot);                                                  \
	}                                                                                          \
	CUA_FN int name##_at(const struct cua_hashmap_view *view, uint64_t place, K *key)          \
	{                                                                                          \
		struct cua_u128 k, v;                                                              \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), 0) ||                                      \
		    !cua__hashmap_at(view, sizeof(K), 0, place, &k, &v))                           \
			return 0;                                                                  \
		cua__hashmap_unbits(key, sizeof(K), k);                                            \
		return 1;                                                                          \
	}

#define CUA__DEFINE_HASHMAP(name, K, V, equal_fn)                                                  \
	typedef K name##__key_type;                                                                \
	typedef V name##__value_type;                                                              \
	CUA__DEFINE_HASH_ANY(name, K, sizeof(V), equal_fn)                                         \
	CUA_FN int name##__enter(const struct cua_hashmap_view *view, K key, V value,              \
				 struct cua__hashmap_spot *spot)                                   \
	{                                                                                          \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return CUA_HASHMAP_UNSUPPORTED;                                            \
		return cua__hashmap_enter(view, sizeof(K), sizeof(V), name##__hash(view, key),     \
					  cua__hashmap_bits(&key, sizeof(K)), equal_fn,            \
					  cua__hashmap_bits(&value, sizeof(V)), spot);             \
	}                                                                                          \
	CUA_FORCE int name##__update(const struct cua_hashmap_view *view, K key, V operand,        \
				     cua__hashmap_next_fn *next, struct cua__hashmap_spot *spot)   \
	{                                                                                          \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return CUA_HASHMAP_UNSUPPORTED;                                            \
		return cua__hashmap_update_by(view, sizeof(K), sizeof(V), name##__hash(view, key), \
					      cua__hashmap_bits(&key, sizeof(K)), equal_fn,        \
					      cua__hashmap_bits(&operand, sizeof(V)), next,        \
					      CUA__HASHMAP_NO_OP, spot);                           \
	}                                                                                          \
	CUA_FN int name##_insert(const struct cua_hashmap_view *view, K key, V value)              \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
                                                                                                   \
		return name##__enter(view, key, value, &spot);                                     \
	}                                                                                          \
	CUA_FN int name##_insert_or_get(const struct cua_hashmap_view *view, K key, V value,       \
					V *there)                                                  \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
		int result = name##__enter(view, key, value, &spot);                               \
                                                                                                   \
		if (result == CUA_HASHMAP_EXISTS)                                                  \
			cua__hashmap_unbits(there, sizeof(V), spot.value);                         \
		else if (result == CUA_HASHMAP_INSERTED)                                           \
			*there = value;                                                            \
		return result;                                                                     \
	}                                                                                          \
	CUA_FN int name##_exchange(const struct cua_hashmap_view *view, K key, V value, V *old)    \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
		int result = name##__update(view, key, value, cua__hashmap_next_assign, &spot);    \
                                                                                                   \
		if (result == CUA_HASHMAP_EXISTS)                                                  \
			cua__hashmap_unbits(old, sizeof(V), spot.value);                           \
		return result;                                                                     \
	}                                                                                          \
	CUA_FN int name##_assign(const struct cua_hashmap_view *view, K key, V value)              \
	{                                                                                          \
		V old;                                                                             \
                                                                                                   \
		return name##_exchange(view, key, value, &old);                                    \
	}                                                                                          \
	CUA_FN int name##_compare_exchange(const struct cua_hashmap_view *view, K key,             \
					   V *expected, V desired)                                 \
	{                                                                                          \
		struct cua_u128 seen = cua__hashmap_bits(expected, sizeof(V));                     \
		int result;                                                                        \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return CUA_HASHMAP_UNSUPPORTED;                                            \
		result = cua__hashmap_compare_exchange(                                            \
			view, sizeof(K), sizeof(V), name##__hash(view, key),                       \
			cua__hashmap_bits(&key, sizeof(K)), equal_fn, &seen,                       \
			cua__hashmap_bits(&desired, sizeof(V)));                                   \
                                                                                                   \
		if (result == CUA_HASHMAP_DIFFERS)                                                 \
			cua__hashmap_unbits(expected, sizeof(V), seen);                            \
		return result;                                                                     \
	}                                                                                          \
	CUA_FN int name##_find(const struct cua_hashmap_view *view, K key, V *value)               \
	{                                                                                          \
		struct cua_u128 there;                                                             \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)) ||                              \
		    !cua__hashmap_find(view, sizeof(K), sizeof(V), name##__hash(view, key),        \
				       cua__hashmap_bits(&key, sizeof(K)), equal_fn, &there))      \
			return 0;                                                                  \
		cua__hashmap_unbits(value, sizeof(V), there);                                      \
		return 1;                                                                          \
	}                                                                                          \
	CUA_FN int name##_at(const struct cua_hashmap_view *view, uint64_t place, K *key,          \
			     V *value)                                                             \
	{                                                                                          \
		struct cua_u128 k, v;                                                              \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)) ||                              \
		    !cua__hashmap_at(view, sizeof(K), sizeof(V), place, &k, &v))                   \
			return 0;                                                                  \
		cua__hashmap_unbits(key, sizeof(K), k);                                            \
		cua__hashmap_unbits(value, sizeof(V), v);                                          \
		return 1;                                                                          \
	}

#define CUA__DEFINE_HASH_OF_BITS(name, K)                                                          \
	CUA_FORCE uint64_t name##__hash(const struct cua_hashmap_view *view, K key)                \
	{                                                                                          \
		return cua__hashmap_hash(view, sizeof(K), cua__hashmap_bits(&key, sizeof(K)));     \
	}

#define CUA__DEFINE_HASH_WITH(name, K, hash, equal)                                                \
	CUA_FORCE uint64_t name##__hash(const struct cua_hashmap_view *view, K key)                \
	{                                                                                          \
		return hash(key, view->seed);                                                      \
	}                                                                                          \
	CUA_FORCE int name##__equal(struct cua_u128 a, struct cua_u128 b)                          \
	{                                                                                          \
		K x;                                                                               \
		K y;                                                                               \
                                                                                                   \
		cua__hashmap_unbits((void *)&x, sizeof(K), a);                                     \
		cua__hashmap_unbits((void *)&y, sizeof(K), b);                                     \
		return equal(x, y);                                                                \
	}

#define CUA_DEFINE_HASHMAP(name, K, V)                                                             \
	CUA__DEFINE_HASH_OF_BITS(name, K)                                                          \
	CUA__DEFINE_HASHMAP(name, K, V, NULL)

#define CUA_DEFINE_HASHSET(name, K)                                                                \
	CUA__DEFINE_HASH_OF_BITS(name, K)                                                          \
	CUA__DEFINE_HASHSET(name, K, NULL)

#define CUA_DEFINE_HASHMAP_WITH(name, K, V, hash, equal)                                           \
	CUA__DEFINE_HASH_WITH(name, K, hash, equal)                                                \
	CUA__DEFINE_HASHMAP(name, K, V, name##__equal)

#define CUA_DEFINE_HASHSET_WITH(name, K, hash, equal)                                              \
	CUA__DEFINE_HASH_WITH(name, K, hash, equal)                                                \
	CUA__DEFINE_HASHSET(name, K, name##__equal)

#define CUA_DEFINE_HASHMAP_UPDATE(update, name, expression)                                        \
	CUA_FORCE struct cua_u128 update##__next(                                                  \
		struct cua_u128 cua__old, struct cua_u128 cua__operand, enum cua_update cua__op)   \
	{                                                                                          \
		name##__value_type old, operand, cua__next;                                        \
                                                                                                   \
		(void)cua__op;                                                                     \
		cua__hashmap_unbits(&old, sizeof(old), cua__old);                                  \
		cua__hashmap_unbits(&operand, sizeof(operand), cua__operand);                      \
		cua__next = (expression);                                                          \
		return cua__hashmap_bits(&cua__next, sizeof(cua__next));                           \
	}                                                                                          \
	CUA_FN int update(const struct cua_hashmap_view *view, name##__key_type key,               \
			  name##__value_type operand)                                              \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
                                                                                                   \
		return name##__update(view, key, operand, update##__next, &spot);                  \
	}

/*
 * The same without types, for keys and values of at most 8 bytes: a map of 32-bit keys or values takes the low
 * 32 bits of theirs. The sizes are looked up in each call. On a set values are ignored, and found as 0. In maps of
 * longer keys or values, or of a layout that this header does not know, what writes is UNSUPPORTED, and nothing is
 * found.
 */
#define CUA__HASHMAP_BY_SIZE(call, other)                                                          \
	switch (CUA__HASHMAP_KNOWN(view) ? view->key_size * 16 + view->value_size : 0) {           \
	case 4 * 16 + 4: return call(4, 4);                                                        \
	case 4 * 16 + 8: return call(4, 8);                                                        \
	case 8 * 16 + 4: return call(8, 4);                                                        \
	case 8 * 16 + 8: return call(8, 8);                                                        \
	case 4 * 16: return call(4, 0);                                                            \
	case 8 * 16: return call(8, 0);                                                            \
	default: return other;                                                                     \
	}
#define CUA__HASHMAP_WHERE(ks, vs)                                                                 \
	view, ks, vs, cua__hashmap_hash(view, ks, cua__hashmap_u64(key, ks)),                      \
		cua__hashmap_u64(key, ks), NULL

/* Adds the pair if the key is absent; else nothing is changed. Returns an enum cua_hashmap_result. */
CUA_FN int cua_hashmap_insert(const struct cua_hashmap_view *view, uint64_t key, uint64_t value)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

#define CUA__CALL(ks, vs)                                                                          \
	cua__hashmap_enter(CUA__HASHMAP_WHERE(ks, vs), cua__hashmap_u64(value, vs), &spot)
	CUA__HASHMAP_BY_SIZE(CUA__CALL, CUA_HASHMAP_UNSUPPORTED)
#undef CUA__CALL
}

/* Sets the key's value, whether it was there or not. Returns an enum cua_hashmap_result. */
CUA_FN int cua_hashmap_assign(const struct cua_hashmap_view *view, uint64_t key, uint64_t value)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

#define CUA__CALL(ks, vs)                                                                          \
	cua__hashmap_update_by(CUA__HASHMAP_WHERE(ks, vs), cua__hashmap_u64(value, vs),            \
			       cua__hashmap_next_assign, CUA__HASHMAP_NO_OP, &spot)
	CUA__HASHMAP_BY_SIZE(CUA__CALL, CUA_HASHMAP_UNSUPPORTED)
#undef CUA__CALL
}

/*
 * If the key is there its value becomes that of the operation, on unsigned numbers, of it and `value`, where a
 * sum wraps; else the pair is added. Returns an enum cua_hashmap_result.
 */
CUA_FN int cua_hashmap_update(const struct cua_hashmap_view *view, uint64_t key, uint64_t value,
			      enum cua_update op)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

#define CUA__CALL(ks, vs)                                                                          \
	cua__hashmap_update_by(CUA__HASHMAP_WHERE(ks, vs), cua__hashmap_u64(value, vs),            \
			       cua__hashmap_next_combined, op, &spot)
	CUA__HASHMAP_BY_SIZE(CUA__CALL, CUA_HASHMAP_UNSUPPORTED)
#undef CUA__CALL
}

/* Returns 1 and sets *value, or returns 0 where the key is absent. */
CUA_FN int cua_hashmap_find(const struct cua_hashmap_view *view, uint64_t key, uint64_t *value)
{
	struct cua_u128 there;

#define CUA__CALL(ks, vs)                                                                          \
	(cua__hashmap_find(CUA__HASHMAP_WHERE(ks, vs), &there) ? (*value = there.lo, 1) : 0)
	CUA__HASHMAP_BY_SIZE(CUA__CALL, 0)
#undef CUA__CALL
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
#define CUA__CALL(ks, vs) cua__hashmap_erase(CUA__HASHMAP_WHERE(ks, vs))
	CUA__HASHMAP_BY_SIZE(CUA__CALL, 0)
#undef CUA__CALL
}

/* ---- from the host ---- */

/* What a map is made with; NULL in its place means the defaults. */
struct cua_hashmap_options {
	size_t struct_size; /* sizeof(struct cua_hashmap_options), set by the caller */
	/*
	 * Of the hash. 0, the default: the map draws one at random, so that its layout differs from run to run, unless
	 * the environment variable CUATOMIC_HASH_SEED names one. CUA_HASH_SEED_FIXED, or any other number: this one.
	 */
	uint64_t seed;
	uint64_t
		seed_high; /* of CUA_HASHMAP_HASH_KEYED, the upper half of the secret; both 0: drawn at random */
	uint64_t rejects; /* pairs to keep that found the map full; 0 by default */
	/*
	 * 0: no limit. Else the most bytes of slots, rejected pairs and counts that create, load, a resize or growth
	 * may allocate; where the map would need more they fail with SIZE.
	 */
	uint64_t max_bytes;
	uint32_t
		grow_percent; /* 0: bulk calls never grow the map; 1 to 95: see cua_hashmap_resize */
	uint32_t own_hash;    /* 1: keys are hashed and compared by the user's kernels alone */
	/* 1: a map of pairs of 12 to 16 bytes has no words of 128 bits, so that code for any GPU can use it */
	uint32_t portable;
	uint32_t hash; /* an enum cua_hashmap_hash; with own_hash, SEEDED */
	/*
	 * 32 to 128: an operation visits at most so many buckets of 64 or 128 bytes, whatever the keys are (one more
	 * where slots have states). A key that finds no slot there is FULL, though other slots may be free. 0, the
	 * default: no bound. doc/hashmap.md tells how many buckets random keys need; with 128 none of four million was
	 * rejected at 80 % of the slots.
	 */
	uint32_t max_probes;
	uint32_t reserved; /* 0 */
};
#define CUA_HASHMAP_OPTIONS_INIT CUA__SIZED_INIT(struct cua_hashmap_options)

#define CUA_HASHMAP_LEAST_MAX_PROBES 32u
#define CUA_HASHMAP_MOST_MAX_PROBES 128u

/* The order of retrieved pairs. */
enum cua_hashmap_order {
	CUA_HASHMAP_ANY = 0,
	CUA_HASHMAP_SORTED =
		1 /* by key, as an unsigned number: always the same for the same pairs */
};

/* What becomes of a key that both maps of a merge have: one of these or of enum cua_update. */
enum cua_hashmap_merge {
	CUA_HASHMAP_KEEP = 0, /* its value in the map that is merged into */
	CUA_HASHMAP_ADD = CUA_UPDATE_ADD,
	CUA_HASHMAP_MIN = CUA_UPDATE_MIN,
	CUA_HASHMAP_MAX = CUA_UPDATE_MAX,
	CUA_HASHMAP_AND = CUA_UPDATE_AND,
	CUA_HASHMAP_OR = CUA_UPDATE_OR,
	CUA_HASHMAP_XOR = CUA_UPDATE_XOR,
	CUA_HASHMAP_REPLACE = 16 /* the value of the other one */
};

/* What cua_hashmap_statistics tells. */
#define CUA_HASHMAP_PROBES 32
struct cua_hashmap_statistics {
	size_t struct_size; /* sizeof(struct cua_hashmap_statistics), set by the caller */
	uint64_t keys;
	uint64_t slots;
	/* keys, free and erased add up to the slots, and up to 2 more: pairs in cells have none */
	uint64_t free;   /* slots that no key was ever in, or with states: is in */
	uint64_t erased; /* slots that hold no key and are used again, but end no search */
	uint64_t rejected;
	uint64_t worst_bucket; /* the most keys that have one bucket for their home */
	/* probes[i]: keys that are i buckets behind their home in the order of search; the last one: or farther */
	uint64_t probes[CUA_HASHMAP_PROBES];
	double load; /* keys by slots */
};
#define CUA_HASHMAP_STATISTICS_INIT CUA__SIZED_INIT(struct cua_hashmap_statistics)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An empty map in the memory of the context's backend. Any `capacity` different keys fit, for certain, unless
 * options.max_probes is set; the slots are
 * that many, rounded up to whole buckets, and those to a power of two below 512 buckets of words, to a multiple of
 * 512 above. Bytes a slot: 9.2 for pairs of up to 8 bytes, 21.4 for words of 128 bits, else 18.3 to 42.7. Probes get
 * long above 0.9 of the slots: ask for 1.25 to 2 times the keys expected.
 *
 * Types: U32, U64 and U128, also for other types of 4, 8 and 16 bytes; the value's may be NONE, which makes a set:
 * arrays of values are then ignored and may be NULL. Pairs of up to 8 bytes are words, and pairs of 12 and 16 where
 * the machine has a CAS of 128 bits: a GPU of compute capability 9.0, x86-64 and 64-bit Arm hosts. Kernels that
 * use such a map must be compiled for 9.0 with CUDA 12.4 or newer; in others what writes is UNSUPPORTED, and nothing
 * is found: options.portable makes maps for them.
 * Errors: NULL, TYPE, VALUE (capacity = 0, an option), SIZE (with slots of words also from 2^32 buckets on),
 * NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_hashmap_create(struct cua_context *ctx,
					   const struct cua_hashmap_options *options,
					   enum cua_type key_type, enum cua_type value_type,
					   uint64_t capacity, struct cua_hashmap **map);
/* Frees the map once the device has finished with it; NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_hashmap_destroy(struct cua_hashmap *map);

/* What kernels use the map through; valid until the map is resized, grows or is destroyed. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_view(const struct cua_hashmap *map,
					 struct cua_hashmap_view *view);
/* The number of slots, which is at least the capacity asked for. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_capacity(const struct cua_hashmap *map, uint64_t *capacity);

/* Removes all keys, the status FULL and the rejected pairs, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_clear(struct cua_hashmap *map);

/*
 * Many at once, in stream order; may be captured. Arrays are backend memory of n elements each, keys
 * and values of the map's types. Keys may be equal: each element is an operation of its own, in no
 * particular order, so that of several values assigned to one key by one call any may remain.
 *
 * insert_n, assign_n, update_n: results[i], where results is not NULL, gets the enum cua_hashmap_result.
 *   Keys that find no slot are FULL there, make the status FULL, and change nothing.
 * update_value_n: update_n with the same operand for every key. *value is one value of the map's type in host memory,
 *   at any address, and is read before the call returns, also in a capture: a graph keeps its value. It is not NULL,
 *   for n = 0 either.
 * insert_or_get_n, exchange_n: values_out[i] gets the value that is there after, or for exchange was there before;
 *   where the key is FULL, or for exchange absent, it stays as it is. values_out may be `values`.
 * compare_exchange_n: where keys[i] is there with the bits of expected[i] its value becomes desired[i], EXISTS; with
 *   another value expected[i] gets that, DIFFERS; else ABSENT. No key is added. expected may be `desired`.
 * build_n: the map is cleared and then holds these pairs; of equal keys any one remains and the others are EXISTS.
 * find_n: values_out[i] gets the value and found[i] 1; for an absent key found[i] gets 0 and values_out[i]
 *   stays as it is. found may be NULL.
 * contains_n: found[i] gets 1 or 0.
 * erase_n: found[i], where found is not NULL, gets whether this element removed its key.
 * Errors: NULL, VALUE (unknown op), TYPE (a set, where values are assigned, updated, exchanged or given), SIZE,
 * ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another array or the map), UNSUPPORTED (own_hash); with
 * grow_percent also NO_MEMORY and, for calls that insert, CAPTURE; WORKSPACE.
 */
CUA_API enum cua_status cua_hashmap_insert_n(struct cua_hashmap *map, size_t n, const void *keys,
					     const void *values, uint8_t *results);
CUA_API enum cua_status cua_hashmap_insert_or_get_n(struct cua_hashmap *map, size_t n,
						    const void *keys, const void *values,
						    void *values_out, uint8_t *results);
CUA_API enum cua_status cua_hashmap_assign_n(struct cua_hashmap *map, size_t n, const void *keys,
					     const void *values, uint8_t *results);
CUA_API enum cua_status cua_hashmap_exchange_n(struct cua_hashmap *map, size_t n, const void *keys,
					       const void *values, void *values_out,
					       uint8_t *results);
CUA_API enum cua_status cua_hashmap_compare_exchange_n(struct cua_hashmap *map, size_t n,
						       const void *keys, void *expected,
						       const void *desired, uint8_t *results);
CUA_API enum cua_status cua_hashmap_update_n(struct cua_hashmap *map, enum cua_update op, size_t n,
					     const void *keys, const void *values,
					     uint8_t *results);
CUA_API enum cua_status cua_hashmap_update_value_n(struct cua_hashmap *map, enum cua_update op,
						   size_t n, const void *keys, const void *value,
						   uint8_t *results);
CUA_API enum cua_status cua_hashmap_build_n(struct cua_hashmap *map, size_t n, const void *keys,
					    const void *values, uint8_t *results);
/*
 * The bytes of workspace that build_n, and insert_n without results, take at most for n pairs and the map as it is now:
 * 1 to 36 a pair where they sort many pairs first on a GPU. Where they cannot have as many, or only by waiting in a
 * capture, they work without, more slowly. A map that grows in the call may take more.
 * Errors: NULL, SIZE.
 */
CUA_API enum cua_status cua_hashmap_build_workspace(const struct cua_hashmap *map, size_t n,
						    size_t *bytes);
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
 * All pairs: the first max of them to keys_out and values_out (backend memory; may be NULL if max is 0, values_out also
 * for a set), and how many there are, also when more than max, to *n, which may be in backend memory: see
 * context.h. ANY: in any order, with one pass over the map; where there are more than max, any of them are given.
 * SORTED: sorted by key; where there are more than max, those of the least keys are given, with up to a further pass
 * over the map for each byte of a key, and one to give them. May be captured.
 *
 * Source of the sort: LSD radix sort (Knuth, vol. 3, 5.2.5) by bytes; a byte that all keys have in common costs
 * nothing. The workspace is then the bytes of the arrays and a little more. The least keys are found by their bytes
 * from the highest one on (radix selection).
 * Errors: NULL, VALUE (order), SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP, CAPTURE, WORKSPACE, NO_MEMORY.
 */
CUA_API enum cua_status cua_hashmap_retrieve(struct cua_hashmap *map, enum cua_hashmap_order order,
					     uint64_t max, void *keys_out, void *values_out,
					     uint64_t *n);

/* The workspace that retrieve takes at most with these arguments. Errors: NULL, VALUE, SIZE. */
CUA_API enum cua_status cua_hashmap_retrieve_workspace(const struct cua_hashmap *map,
						       enum cua_hashmap_order order, uint64_t max,
						       size_t *bytes);

/*
 * The pairs that found the map full since the last clear and were kept, as retrieve gives pairs; *n is the number of
 * all that were rejected, of which the first options.rejects are kept. Errors: those of retrieve.
 */
CUA_API enum cua_status cua_hashmap_rejected(struct cua_hashmap *map, uint64_t max, void *keys_out,
					     void *values_out, uint64_t *n);

/*
 * Gives the map room for `capacity` keys, more or fewer than before: all pairs move to new memory, for a while beside
 * the old. Views, and graphs captured of the map's calls, are of no use then. Rejected pairs and the status stay. Waits
 * for the stream.
 * Errors, after which nothing has changed: NULL, VALUE (capacity = 0), SIZE (too large, below the number of keys, or
 * with max_probes a key finds no slot),
 * NO_MEMORY, CAPTURE, UNSUPPORTED (own_hash).
 *
 * With options.grow_percent the bulk calls that add keys do it themselves: before more than that share of the slots
 * could hold keys, to at least twice the slots, in parts of at least 65536 elements, between which they see how many of
 * their keys were new. Such a call waits for the stream; if it fails, the elements that it has not come to
 * are FULL in results.
 */
CUA_API enum cua_status cua_hashmap_resize(struct cua_hashmap *map, uint64_t capacity);

/*
 * Adds all pairs of `from`, which stays as it is, to the map; `how` says which value a key has afterwards that is
 * in both. The map does not grow: pairs that find no slot are rejected, as by insert_n. In stream order; may be
 * captured. Errors: NULL, VALUE (how), CONTEXT (maps of two contexts), TYPE (sizes that differ; for sets, other than
 * KEEP), OVERLAP (the same map twice), UNSUPPORTED (own_hash).
 */
CUA_API enum cua_status cua_hashmap_merge(struct cua_hashmap *map, const struct cua_hashmap *from,
					  enum cua_hashmap_merge how);

/*
 * How the map is filled, with one pass over it and 4 bytes of workspace a bucket. Waits for the stream.
 * Errors: NULL, VALUE (struct_size), SIZE, UNSUPPORTED (own_hash), CAPTURE, NO_MEMORY.
 */
CUA_API enum cua_status cua_hashmap_statistics(struct cua_hashmap *map,
					       struct cua_hashmap_statistics *statistics);

/*
 * All pairs, in any order: the first max of them to ordinary memory of any alignment, and how many there are to *n.
 * keys and values are as with retrieve. Waits for the stream.
 * Errors: NULL, SIZE, OVERLAP (of keys, values, *n and the map's memory), CAPTURE, NO_MEMORY.
 */
CUA_API enum cua_status cua_hashmap_copy_to_host(struct cua_hashmap *map, uint64_t max, void *keys,
						 void *values, uint64_t *n);

/*
 * Calls fn(arg, key, value) for each pair, in any order, on the calling thread, until it returns not 0. The two point
 * to copies, of any alignment, that are there until fn returns; value is NULL for a set. fn may write to the map, and
 * may or may not meet what it has written; it must not resize or destroy it, nor make it grow. Waits for the stream.
 * Errors: NULL, CAPTURE, NO_MEMORY.
 */
CUA_API enum cua_status
cua_hashmap_for_each(struct cua_hashmap *map,
		     int (*fn)(void *arg, const void *key, const void *value), void *arg);

/*
 * save writes the map to a file, which is replaced as a whole or not at all, whenever the process ends. Rejected pairs
 * and the status are not saved. cua_hashmap(3) says which permissions the file gets, which links are followed, and what
 * other users of the folder can do.
 *
 * load makes the map of such a file, of any backend: with the slots it had and, where options is NULL, its options.
 * For a file that may be somebody else's, give options with max_bytes: its header names the slots and the room for
 * rejected pairs, and load allocates both. The size of the file is checked first; then the pairs are inserted in parts
 * of 4 MiB, and load ends after the first part that has a key twice. Both wait for the stream.
 *
 * The file: a header of 88 bytes and the pairs, key and value, in the machine's byte order and in any order; a checksum
 * each. The checksums find damage, not forgery.
 * Errors: NULL, UNSUPPORTED (own_hash), CAPTURE, NO_MEMORY, SYSTEM (errno says why; EISDIR and EINVAL where there is
 * no regular file, EFBIG at the limit RLIMIT_FSIZE, without its signal); of load also VALUE (options), SIZE and
 * CORRUPT: not a file of save, of another version or byte order, truncated or changed.
 */
CUA_API enum cua_status cua_hashmap_save(struct cua_hashmap *map, const char *path);
CUA_API enum cua_status cua_hashmap_load(struct cua_context *ctx,
					 const struct cua_hashmap_options *options,
					 const char *path, struct cua_hashmap **map);

/*
 * CUA_ERROR_FULL if a key was rejected since the last clear, by a call from the host or in a kernel;
 * else CUA_OK. Waits for the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_hashmap_status(struct cua_hashmap *map);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_HASHMAP_H */
