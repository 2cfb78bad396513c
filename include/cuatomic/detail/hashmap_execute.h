/* SPDX-License-Identifier: MIT */
/*
 * Finds, inserts and erases of a warp in one call, for maps in the word layout on a GPU. Internal
 * part of hashmap.h.
 *
 * If the lanes of a warp call different functions, the warp diverges. Finds, inserts and erases then
 * run one after another, each with its own latencies and fences, and each lane reads its home alone.
 * Here all lanes of a whole warp go through the same steps, for any mix of operations. A pass is
 *   1. a read of the homes, by quads if the whole warp is here (detail/hashmap_bucket.h);
 *   2. the count of the erases, and a fence;
 *   3. in turn a CAS of a slot or a lock, and a search of other buckets, until each lane is done;
 *   4. a fence, the count of the inserts, and the unlocking stores.
 * All lanes share the code of a step. A lane with the result RETRY makes another pass.
 *
 * If only a part of the warp is here, each lane makes the pass by itself: it reads and counts alone,
 * and meets no other lane. A pass by an arbitrary mask would be slower. And with nvcc 13.0 lanes that
 * execute the same vote for two masks at the same moment may be taken for one group.
 *
 * Argument. Each lane reads, locks, stores and erases by the rules of detail/hashmap_word.h, so the
 * argument there applies. The memory order is obtained as follows; for a lane by itself, the other
 * lanes and the meetings drop out.
 *   - The lanes of a warp meet before the first fence, each makes it, and they meet after it. So the
 *     fence of a lane that has loaded a home, and the second meeting, acquire for the lane with the
 *     key: no lane loads the word of a hit again. A hit behind the home is acquired by the lane
 *     itself.
 *   - A single lane counts the erases of all lanes before the first of these meetings. The fence of
 *     an erasing lane orders this addition before its CAS.
 *   - The first fence also releases the earlier writes of a lane with its CAS.
 *   - The lanes meet after the last CAS, and each makes the second fence. So the fence of the lane
 *     that counts the inserts orders the CAS of all lanes, and the raised heads, before the
 *     addition. The fence of a lane with a lock orders its CAS and its head before the unlocking
 *     store.
 *   - An erase that may find its key is counted in advance. If it finds none, the lane subtracts 1
 *     from the same count at the end. Until then a sum of the counts shows too many erases, never
 *     too few. The inserts of a pass are counted at its end. So during the pass a sum shows at most
 *     the keys that are present, and a lane that finds no free slot may not see that the map is
 *     full. It then makes another pass.
 *
 * Progress. A lane waits for the other lanes if the whole warp makes the pass, and for nothing else
 * during the pass: each attempt to lock is a single CAS, and the number of buckets bounds the searches.
 * The lanes meet after all of them have released their locks, so no lane retries while a lane of its
 * pass holds a lock. A pass finds a present key even if another lane holds the lock.
 */
/* hashmap.h includes this file after the declarations that it needs */
#ifndef CUATOMIC_HASHMAP_EXECUTE_H
#define CUATOMIC_HASHMAP_EXECUTE_H

#include <cuatomic/detail/hashmap_bucket.h>
#include <cuatomic/detail/hashmap_common.h>
#include <cuatomic/detail/hashmap_word.h>

/*
 * The state of a lane in a pass: an enum cua_hashmap_result, RETRY, or the next step. The steps up to
 * PUT are a CAS, the other steps search the bucket at a distance.
 */
#define CUA__EXECUTE_RETRY 8  /* another pass */
#define CUA__EXECUTE_CLAIM 9  /* stores the pair in an EMPTY slot of the home */
#define CUA__EXECUTE_ERASE 10 /* erases the key */
#define CUA__EXECUTE_LOCK 11  /* locks the home */
#define CUA__EXECUTE_PUT 12   /* stores the pair in a vacancy, with the lock */
#define CUA__EXECUTE_SEEK 13  /* for the key, from the farthest distance to 1 */
#define CUA__EXECUTE_SCAN 14  /* for the key or a free slot, in the buckets of max_probes */
#define CUA__EXECUTE_PLACE 15 /* for the key and a vacancy, with the lock */

/* An operation of a lane in progress. */
struct cua__execution {
	enum cua_hashmap_operation operation;
	int state;
	int locked;                    /* whether the lane has locked its home in this pass */
	struct cua_u128 word;          /* the word that an insert stores */
	struct cua__hashmap_head head; /* of the home */
	struct cua__hashmap_spot
		spot;           /* the word of a hit; for a CAS, its slot and expected word */
	uint32_t far, distance; /* the farthest distance, and the distance to search next */
	uint32_t vacancy, vacant_distance; /* a free slot as in cua__hashmap_word_place */
};

/* The next step after an attempt to lock. */
CUA_FORCE void cua__execute_locked(struct cua__execution *e, int locked)
{
	e->locked = locked;
	e->distance = locked ? 0 : e->far;
	e->vacancy = CUA__HASHMAP_NO_VACANCY;
	e->state = locked ? CUA__EXECUTE_PLACE : e->far ? CUA__EXECUTE_SEEK : CUA__EXECUTE_RETRY;
}

/*
 * The steps with a CAS. All of them use the same CAS, except that a lock of a home with words of 128
 * bits is a CAS of 64 bits. Every bucket is aligned to its size, which shows the end of its slots.
 */
CUA_FORCE void cua__execute_swap(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				 const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
				 struct cua__execution *e)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t size = wide ? 16 : 8;
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs), empty = {0, 0};
	char *const home = cua__hashmap_word_bucket(view, cua__hashmap_word_home(view, key.hash));

	if (wide && e->state == CUA__EXECUTE_LOCK)
		cua__execute_locked(e, cua__hashmap_word_trylock(home, e->head.lo));
	while (e->state >= CUA__EXECUTE_CLAIM && e->state <= CUA__EXECUTE_PUT) {
		const int locks = !wide && e->state == CUA__EXECUTE_LOCK;
		struct cua_u128 desired = e->word, seen;
		int swapped, end;

		if (e->state == CUA__EXECUTE_ERASE)
			desired = erased;
		if (locks) {
			e->spot.at = home;
			e->spot.word.lo = e->head.lo;
			desired.lo = e->head.lo | CUA__HASHMAP_LOCKED;
		}
		/* the fence before releases */
		swapped = cua__hashmap_word_cas(e->spot.at, wide, e->spot.word, desired,
						CUA_ACQUIRE, &seen);
		if (locks) {
			cua__execute_locked(e, swapped);
		} else if (swapped) {
			if (e->state == CUA__EXECUTE_PUT)
				cua__hashmap_word_raise_home(home, wide, key.hash,
							     e->vacant_distance, &e->head);
			e->state = e->state == CUA__EXECUTE_ERASE ? CUA_HASHMAP_EXISTS
								  : CUA_HASHMAP_INSERTED;
		} else if (e->state != CUA__EXECUTE_PUT &&
			   cua__hashmap_word_has(ks, vs, seen, key.bits, equal)) {
			e->spot.word = seen;
			if (e->state == CUA__EXECUTE_CLAIM)
				e->state = CUA_HASHMAP_EXISTS;
		} else if (e->state == CUA__EXECUTE_ERASE) {
			e->state = CUA_HASHMAP_ABSENT;
		} else {
			e->spot.word = empty;
			if (e->state == CUA__EXECUTE_PUT && cua__hashmap_same(seen, erased))
				e->spot.word = erased;
			else if (!cua__hashmap_same(seen, empty))
				e->spot.at += size;
			end = (uintptr_t)e->spot.at % CUA__HASHMAP_WORD_BYTES == 0;
			if (end && e->state == CUA__EXECUTE_CLAIM) {
				e->state = CUA__EXECUTE_RETRY;
			} else if (end) {
				e->distance = e->vacant_distance + 1;
				e->vacancy = CUA__HASHMAP_NO_VACANCY;
				e->state = e->distance < (uint32_t)cua__hashmap_most(view)
						   ? CUA__EXECUTE_PLACE
						   : CUA__EXECUTE_RETRY;
			}
		}
	}
}

/*
 * The next step after a search with the lock has not found the key at e->distance. `there` and
 * `room` are results of cua__hashmap_word_search. The order of the search is that of
 * cua__hashmap_word_place.
 */
CUA_FORCE void cua__execute_place(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				  const struct cua__hashmap_key key, int there,
				  const struct cua__hashmap_room *room, struct cua__execution *e)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;
	const uint32_t home = cua__hashmap_word_home(view, key.hash);
	const uint32_t most = (uint32_t)cua__hashmap_most(view);
	const struct cua_u128 erased = cua__hashmap_word_erased(ks, vs), empty = {0, 0};

	if (e->distance == 0) {
		e->head.hi = room->head.hi;
		e->far = cua__hashmap_word_far(wide, e->head, key.hash);
		if (room->empty < slots) {
			e->state = CUA__EXECUTE_RETRY;
			return;
		}
	}
	if (e->vacancy == CUA__HASHMAP_NO_VACANCY && room->unused < slots) {
		e->vacant_distance = e->distance;
		e->vacancy = room->unused * 2 + (room->unused != room->empty);
	}
	/* no key is stored after a bucket that has EMPTY slots */
	if (there < 0 && e->distance < e->far)
		e->far = e->distance;
	e->distance++;
	if (e->vacancy != CUA__HASHMAP_NO_VACANCY) {
		if (e->distance > e->far || e->distance >= most) {
			e->spot.at = cua__hashmap_word_bucket(
					     view, cua__hashmap_word_probe(view, home, key.hash,
									   e->vacant_distance)) +
				     (e->vacancy / 2 + 1) * size;
			e->spot.word = e->vacancy & 1 ? erased : empty;
			e->state = CUA__EXECUTE_PUT;
		}
	} else if (e->distance >= most ||
		   (e->distance > e->far && (e->distance - e->far) % CUA__HASHMAP_PATIENCE == 0)) {
		if ((e->distance >= most && most < view->n_buckets) ||
		    cua__hashmap_full(view, slots))
			e->state = CUA_HASHMAP_FULL;
		else if (e->distance >= most)
			e->state = CUA__EXECUTE_RETRY;
	}
}

/* The searches behind the home, and those of a holder of the lock. */
CUA_FORCE void cua__execute_search(const struct cua_hashmap_view *view,
				   const cua__hashmap_kind kind, const struct cua__hashmap_key key,
				   cua__hashmap_equal_fn *equal, struct cua__execution *e)
{
	const uint32_t slots =
		cua__hashmap_word_slots(CUA__HASHMAP_KS(kind), CUA__HASHMAP_VS(kind));
	const uint32_t home = cua__hashmap_word_home(view, key.hash);

	while (e->state >= CUA__EXECUTE_SEEK) {
		char *bucket = cua__hashmap_word_bucket(
			view, cua__hashmap_word_probe(view, home, key.hash, e->distance));
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
		struct cua__hashmap_room room;
		const int there = cua__hashmap_word_search(bucket, kind, key.bits, equal,
							   CUA_ACQUIRE, 0, &spot, &room);

		/* copied even without a hit, so the spot needs no registers in this loop */
		e->spot = spot;
		if (there > 0) {
			e->state = e->operation == CUA_HASHMAP_ERASE ? CUA__EXECUTE_ERASE
								     : CUA_HASHMAP_EXISTS;
		} else if (e->state == CUA__EXECUTE_SEEK) {
			if (--e->distance == 0)
				e->state = e->operation == CUA_HASHMAP_INSERT ? CUA__EXECUTE_RETRY
									      : CUA_HASHMAP_ABSENT;
		} else if (e->state == CUA__EXECUTE_SCAN) {
			if (room.unused < slots)
				e->state = CUA__EXECUTE_LOCK;
			else if (++e->distance == (uint32_t)cua__hashmap_most(view))
				e->state = CUA_HASHMAP_FULL;
		} else {
			cua__execute_place(view, kind, key, there, &room, e);
		}
	}
}

/*
 * The first step after the home was searched, with the results of cua__hashmap_word_search. FULL
 * without the lock, after a SCAN, has the reason given at cua__hashmap_word_crowded.
 */
CUA_FORCE void cua__execute_begin(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				  uint64_t hash, int there, const struct cua__hashmap_room *room,
				  struct cua__execution *e)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int wide = cua__hashmap_is_wide(ks, vs), inserts = e->operation == CUA_HASHMAP_INSERT;
	const uint32_t size = wide ? 16 : 8, most = (uint32_t)cua__hashmap_most(view);
	char *const home = cua__hashmap_word_bucket(view, cua__hashmap_word_home(view, hash));
	uint32_t far;

	e->head = room->head;
	e->state = CUA_HASHMAP_ABSENT;
	if (there > 0) {
		e->state =
			e->operation == CUA_HASHMAP_ERASE ? CUA__EXECUTE_ERASE : CUA_HASHMAP_EXISTS;
		return;
	}
	if (there < 0) {
		if (inserts) {
			e->spot.at = home + (room->empty + 1) * size;
			e->state = CUA__EXECUTE_CLAIM;
		}
		return;
	}
	far = cua__hashmap_word_reach(home, wide, room->head, hash);
	e->far = far < view->n_buckets ? far : (uint32_t)view->n_buckets - 1;
	e->distance = e->far;
	if (inserts && !(room->head.lo & CUA__HASHMAP_LOCKED)) {
		e->state = CUA__EXECUTE_LOCK;
		if (most < view->n_buckets &&
		    cua__hashmap_far_of((uint32_t)(room->head.lo >> 24) & 255) >= most - 1) {
			e->distance = 0;
			e->state = CUA__EXECUTE_SCAN;
		}
	} else if (e->far) {
		e->state = CUA__EXECUTE_SEEK;
	} else if (inserts) {
		e->state = CUA__EXECUTE_RETRY;
	}
}

/* Whether an operation does nothing. */
CUA_FORCE int cua__execute_skips(const struct cua_hashmap_view *view,
				 enum cua_hashmap_operation operation)
{
	return operation == CUA_HASHMAP_SKIP || (operation == CUA_HASHMAP_ERASE && view->no_erase);
}

/* The counts that the lanes of a warp add to. */
CUA_FORCE struct cua_hashmap_counts *cua__execute_counts(const struct cua_hashmap_view *view)
{
	return cua__hashmap_counts(view, cua_port_block() * 8 + cua_port_thread() / 32);
}

/*
 * Each lane with `adds` adds 1 to *count, one of its map's counts. In a whole warp a single lane adds
 * for all, if the lanes that add have the same map. Relaxed.
 */
CUA_FORCE void cua__execute_count(const struct cua_hashmap_view *view, int whole, int adds,
				  uint64_t *count)
{
	const uint64_t map = (uint64_t)(uintptr_t)view->counts;
	uint32_t n = 1;

	if (whole) {
		const uint32_t all = CUA__HASHMAP_WARP, adders = cua_port_ballot(all, adds);
		const uint32_t first = adders ? cua_port_ffs_u32(adders) - 1 : 0;
		const int same = map == cua_port_shuffle_u64(all, map, first);

		if (cua_port_ballot(all, adds && same) == adders) {
			n = cua_port_popc_u32(adders);
			adds = adds && cua_port_lane() == first;
		}
	}
	if (adds)
		cua_port_add_u64(count, n, CUA_RELAXED, CUA__HASHMAP_AT);
}

/* The lanes of a whole warp meet. */
CUA_FORCE void cua__execute_meet(int whole)
{
	if (whole)
		cua_port_sync_warp(CUA__HASHMAP_WARP);
}

/* Executes the operation on a reserved key, whose slot is `reserved`: see cua__hashmap_word_execute. */
CUA_FORCE int cua__hashmap_reserved_execute(char *reserved, uint32_t ks, uint32_t vs,
					    enum cua_hashmap_operation operation,
					    struct cua_u128 value, struct cua_u128 *there)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int result = CUA_HASHMAP_ABSENT;

	if (operation == CUA_HASHMAP_ERASE)
		return cua__hashmap_reserved_erase(reserved, ks, vs, there) ? CUA_HASHMAP_EXISTS
									    : CUA_HASHMAP_ABSENT;
	if (operation == CUA_HASHMAP_INSERT) {
		result = cua__hashmap_reserved_enter(reserved, ks, vs, value, &spot);
	} else if (operation == CUA_HASHMAP_FIND) {
		spot.word =
			cua__hashmap_word_load(reserved, cua__hashmap_is_wide(ks, vs), CUA_ACQUIRE);
		result = cua__hashmap_word_empty(spot.word) ? CUA_HASHMAP_ABSENT
							    : CUA_HASHMAP_EXISTS;
	}
	*there = cua__hashmap_word_value(ks, vs, spot.word);
	return result;
}

/*
 * Finds, inserts or erases a key. Returns EXISTS and sets *there to the key's value, or the value that
 * was erased; ABSENT; INSERTED; or FULL. Lanes with SKIP or a reserved key take part in the passes
 * only to read for other lanes. To save registers, values for use after the passes are computed again
 * or kept in e.
 */
CUA_FORCE int cua__hashmap_word_execute(const struct cua_hashmap_view *view,
					const cua__hashmap_kind kind,
					const struct cua__hashmap_key key,
					cua__hashmap_equal_fn *equal,
					enum cua_hashmap_operation operation, struct cua_u128 value,
					struct cua_u128 *there)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const struct cua_u128 empty = {0, 0};
	struct cua__execution e;
	uint32_t passes = 0;

	e.operation = operation;
	e.word = cua__hashmap_word_of(ks, vs, key.bits, value);
	do {
		const uint32_t mask = cua__warp_meet();
		const int whole = mask == CUA__HASHMAP_WARP;
		struct cua__hashmap_room room = {{0, 0}, 0, 0};
		int seen, counted, ends;

		e.locked = 0;
		e.spot.at = NULL;
		e.spot.word = empty;
		e.far = e.distance = e.vacant_distance = 0;
		e.vacancy = CUA__HASHMAP_NO_VACANCY;
		seen = cua__hashmap_word_search(
			cua__hashmap_word_bucket(view, cua__hashmap_word_home(view, key.hash)),
			kind, key.bits, equal, CUA_RELAXED, mask, &e.spot, &room);
		e.state = CUA_HASHMAP_ABSENT;
		if (!cua__execute_skips(view, operation) &&
		    !cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal))
			cua__execute_begin(view, kind, key.hash, seen, &room, &e);
		counted = operation == CUA_HASHMAP_ERASE && e.state >= CUA__EXECUTE_CLAIM;
		cua__execute_count(view, whole, counted, &cua__execute_counts(view)->erased);
		cua__execute_meet(whole);
		cua_port_fence(CUA_ACQ_REL, CUA_SCOPE_DEVICE);
		cua__execute_meet(whole);
		while (e.state >= CUA__EXECUTE_CLAIM) {
			cua__execute_swap(view, kind, key, equal, &e);
			cua__execute_search(view, kind, key, equal, &e);
		}
		ends = e.state == CUA_HASHMAP_INSERTED || e.locked;
		if (whole)
			ends = cua_port_ballot(CUA__HASHMAP_WARP, ends) != 0;
		if (ends) {
			cua__execute_meet(whole);
			cua_port_fence(CUA_ACQ_REL, CUA_SCOPE_DEVICE);
			cua__execute_count(view, whole, e.state == CUA_HASHMAP_INSERTED,
					   &cua__execute_counts(view)->inserted);
			if (e.locked)
				cua_port_store_b64(
					cua__hashmap_word_bucket(
						view, cua__hashmap_word_home(view, key.hash)),
					e.head.lo & ~CUA__HASHMAP_LOCKED, CUA_RELAXED,
					CUA__HASHMAP_AT);
			cua__execute_meet(whole);
		}
		if (counted && e.state != CUA_HASHMAP_EXISTS)
			cua_port_add_u64(&cua__execute_counts(view)->erased, ~(uint64_t)0,
					 CUA_RELAXED, CUA__HASHMAP_AT);
		if (e.state == CUA__EXECUTE_RETRY) {
			struct cua_backoff backoff;

			cua_backoff_init(&backoff);
			backoff.ns <<= passes < 9 ? passes++ : passes;
			cua__backoff_wait_upto(&backoff, CUA__HASHMAP_LONGEST_WAIT);
		}
	} while (e.state == CUA__EXECUTE_RETRY);
	*there = cua__hashmap_word_value(ks, vs, e.spot.word);
	if (!cua__execute_skips(view, operation) &&
	    cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal))
		return cua__hashmap_reserved_execute(
			cua__hashmap_reserved_slot(view, ks, vs, key.bits, equal), ks, vs,
			operation, cua__hashmap_word_value(ks, vs, e.word), there);
	return e.state;
}

#endif /* CUATOMIC_HASHMAP_EXECUTE_H */
