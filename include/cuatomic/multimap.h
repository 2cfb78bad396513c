/* SPDX-License-Identifier: MIT */
/*
 * A hash map of keys with any number of values each. Keys and values have 4 or 8 bytes. Duplicates
 * are kept, and every bit pattern is allowed for keys and values. For larger values, store an
 * index.
 *
 * Source: the map of hashmap.h, from each key to its newest entry. An entry has a value and a link
 * to the next older entry of the key, and belongs to a pool of fixed size. So a key has a stack
 * (Treiber, 1986) whose head, the newest entry, is the key's value in the map.
 *
 * A cursor is the number of an entry: its index in the pool plus 1, or 0 for none. Heads and links
 * are cursors. An erase marks the links of the removed entries. cua_multimap_reclaim makes marked
 * entries available to inserts again.
 *
 * Synchronization of two calls on the same map. X: the caller must order the calls. -: the calls
 * may run concurrently. retrieve is name_retrieve in a kernel, at is name_at, and keys is
 * cua_multimap_keys.
 *
 *                    insert  count, first  retrieve  erase  at  reclaim, clear  size, keys,
 *                                                                               bulk retrieves
 *     insert           -          -           -        -    X         X                   X
 *     count, first     -          -           -        -    -         X                   -
 *     retrieve         -          -           -        -    -         X                   -
 *     erase            -          -           -        -    X         X                   X
 *     at               X          -           -        X    -         X                   -
 *     reclaim, clear   X          X           X        X    X         X                   X
 *
 * - Any mix of inserts, counts, walks and erases may run concurrently in a kernel, also on the same
 *   key. Each is linearizable in the sense of hashmap.h.
 * - insert takes effect when its entry becomes the head of the key.
 * - count, contains, retrieve and a walk by first and next see the values of the key at the moment
 *   of their read of the head, regardless of concurrent inserts and erases.
 * - erase removes all values of the key at a single moment and returns their number.
 * - The bulk calls insert_n, count_n and erase_n are many such operations. The stream of a context
 *   orders its host calls.
 * - size, keys, at and the bulk retrieves are memory-safe during writes, but their results are then
 *   not the state at any single moment.
 *
 * Order of values: newest first, in the order in which the inserts took effect. The order among the
 * pairs of a bulk call or an insert_warp is unspecified.
 *
 * Scope: the device. On the host, all threads.
 *
 * Memory order: a walk that reads a value acquires the writes of its inserter before the insert.
 *
 * Progress: as the map. count, contains, retrieve, first and next are wait-free, apart from a step
 * per value. insert progresses as the map's insert of an absent key and update of a present key,
 * erase as the map's erase. Any lane of a diverged warp may call them; all lanes of its mask call
 * insert_warp together.
 *
 * Full: an insert that finds no free entry, or no slot for a new key, returns FULL, changes nothing,
 * and sets the sticky status FULL. Erased entries are not free until cua_multimap_reclaim or _clear,
 * since other threads may still read them. Nor is the entry of an insert in progress.
 *
 * Correctness:
 *
 * - Entries. An entry belongs to the lane that claimed it until it becomes the head of its key. A
 *   lane claims an entry by a ticket, from a fetch-and-add on a counter. The first tickets stand for
 *   the entries of the list that the last reclaim made, later tickets for entries that were never
 *   used. No ticket is issued twice between two reclaims. A published entry keeps its value and its
 *   link until reclaim or clear.
 *
 * - Insert. The lane writes the value and the link, then makes its entry the head. If the key is
 *   absent, the link is 0, and the map's insert stores the head. If the key is present, the link is
 *   the head that the lane has read, and a compare-and-swap replaces this head. No entry becomes the
 *   head twice between two reclaims. So the compare-and-swap is free of the ABA problem, and the
 *   link is the replaced head.
 *
 * - Walks. A walk reads the head with acquire. An insert that replaces a head has acquired it, or
 *   continues its release sequence. So all entries further down are complete for a reader of the
 *   head. Their links never change, except for the mark, which readers ignore. So the walk sees the
 *   list at the moment of its read.
 *
 * - Erase. The map's erase returns the removed head, so a single lane removes each list. That lane
 *   then marks and counts its entries. Reclaim runs alone and lists all marked entries.
 *
 * - Spares. If an insert has claimed an entry and the map is full, no other lane has seen the
 *   entry. The insert pushes it to a stack of spares. An insert whose ticket has no entry pops a
 *   spare. Pushes and pops are concurrent, so the word of the stack's head also has a count of pops:
 *   a compare-and-swap fails if the same spare was popped and pushed again meanwhile.
 */
#ifndef CUATOMIC_MULTIMAP_H
#define CUATOMIC_MULTIMAP_H

#include <cuatomic/context.h>
#include <cuatomic/hashmap.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* The host's handle; opaque. */
struct cua_multimap;

/* Results of an insert; the numbers agree with enum cua_hashmap_result. */
enum cua_multimap_result {
	CUA_MULTIMAP_INSERTED = 1,
	CUA_MULTIMAP_FULL = 3, /* no free entry, or no slot for a new key: nothing changed */
	/*
	 * The code lacks the map's 128-bit CAS (see hashmap.h), or the multimap has other sizes or
	 * another layout. Lookups find nothing then.
	 */
	CUA_MULTIMAP_UNSUPPORTED = 5
};

/* The pool's counters; frequently written counters have cache lines of their own. */
struct cua_multimap_pool {
	uint64_t taken; /* tickets issued since the last reclaim, also without an entry */
	uint64_t reserved_a[15];
	uint64_t reusable; /* entries erased before the last reclaim */
	uint64_t fresh;    /* entries used at any time before the last reclaim */
	uint64_t reserved_b[14];
	uint64_t dropped;  /* entries erased since the last reclaim, plus spares */
	uint64_t rejected; /* inserts without a free entry since the last clear */
	uint64_t spare;    /* the head of the spares, and the count of pops in the high bits */
	uint64_t gathered; /* entries that a reclaim in progress has listed as reusable */
	uint64_t reserved_c[12];
};
CUA_STATIC_ASSERT(sizeof(struct cua_multimap_pool) == 384, "the pool is ABI");

#define CUA_MULTIMAP_LAYOUT 1u

/* The multimap as the backend addresses it; kernels and host threads take it by value. */
struct cua_multimap_view {
	struct cua_hashmap_view map; /* the values are cursors of 4 or 8 bytes, as are links */
	void *entries;  /* value and link: 4 bytes each if both have 4 bytes, else 8 bytes each */
	void *reusable; /* cursors, of the size of links */
	struct cua_multimap_pool *pool;
	uint64_t capacity;   /* entries */
	uint32_t value_size; /* 4 or 8; map.value_size is the size of links */
	uint32_t layout;     /* CUA_MULTIMAP_LAYOUT */
};
CUA_STATIC_ASSERT(sizeof(struct cua_multimap_view) == 64 + 6 * sizeof(void *), "the view is ABI");

#define CUA__MULTIMAP_AT CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* Mark bit of a link: the entry was erased or is a spare. Links of 4 bytes use bit 31. */
#define CUA__MULTIMAP_MARK ((uint64_t)1 << 63)
#define CUA__MULTIMAP_MARK_OF_4 ((uint32_t)1 << 31)
/* The largest capacity with links of 4 bytes, and of 8 bytes. */
#define CUA__MULTIMAP_MOST_OF_4 (((uint64_t)1 << 31) - 2)
#define CUA__MULTIMAP_MOST (((uint64_t)1 << 40) - 2)

/* Backoff limit in ns between two compare-and-swaps of a contended head. */
#define CUA__MULTIMAP_LONGEST_WAIT 65536u

/* ---- entries ---- */

CUA_FORCE uint32_t cua__multimap_entry_size(uint32_t vs, uint32_t ls)
{
	return vs + ls == 8 ? 8 : 16;
}

CUA_FORCE char *cua__multimap_entry(const struct cua_multimap_view *view, uint32_t vs,
				    uint64_t cursor)
{
	return (char *)view->entries +
	       (cursor - 1) * cua__multimap_entry_size(vs, view->map.value_size);
}

CUA_FORCE char *cua__multimap_link_at(const struct cua_multimap_view *view, uint32_t vs,
				      uint64_t cursor)
{
	return cua__multimap_entry(view, vs, cursor) +
	       cua__multimap_entry_size(vs, view->map.value_size) / 2;
}

/* The cursor of the next entry, with the mark. */
CUA_FORCE uint64_t cua__multimap_link(const struct cua_multimap_view *view, uint32_t vs,
				      uint64_t cursor)
{
	const char *at = cua__multimap_link_at(view, vs, cursor);
	uint32_t link;

	if (view->map.value_size == 8)
		return cua_port_load_b64(at, CUA__MULTIMAP_AT);
	link = cua_port_load_b32(at, CUA__MULTIMAP_AT);
	return (link & CUA__MULTIMAP_MARK_OF_4)
		       ? (link ^ CUA__MULTIMAP_MARK_OF_4) | CUA__MULTIMAP_MARK
		       : link;
}

CUA_FORCE void cua__multimap_set_link(const struct cua_multimap_view *view, uint32_t vs,
				      uint64_t cursor, uint64_t link)
{
	char *at = cua__multimap_link_at(view, vs, cursor);

	if (view->map.value_size == 8)
		cua_port_store_b64(at, link, CUA__MULTIMAP_AT);
	else
		cua_port_store_b32(at, (uint32_t)link | (link >> 63 ? CUA__MULTIMAP_MARK_OF_4 : 0),
				   CUA__MULTIMAP_AT);
}

CUA_FORCE uint64_t cua__multimap_next(const struct cua_multimap_view *view, uint32_t vs,
				      uint64_t cursor)
{
	return cua__multimap_link(view, vs, cursor) & ~CUA__MULTIMAP_MARK;
}

CUA_FORCE uint64_t cua__multimap_value(const struct cua_multimap_view *view, uint32_t vs,
				       uint64_t cursor)
{
	const char *at = cua__multimap_entry(view, vs, cursor);

	return vs == 4 ? CUA_READ(*(const uint32_t *)(const void *)at)
		       : CUA_READ(*(const uint64_t *)(const void *)at);
}

CUA_FORCE void cua__multimap_set_value(const struct cua_multimap_view *view, uint32_t vs,
				       uint64_t cursor, uint64_t value)
{
	char *at = cua__multimap_entry(view, vs, cursor);

	if (vs == 4)
		CUA_WRITE(*(uint32_t *)(void *)at, (uint32_t)value);
	else
		CUA_WRITE(*(uint64_t *)(void *)at, value);
}

/* ---- the pool ---- */

/* The number of low bits with the cursor in the head of the spares; the count of pops is above. */
CUA_FORCE uint32_t cua__multimap_spare_bits(const struct cua_multimap_view *view)
{
	return view->map.value_size == 4 ? 32 : 40;
}

/* Pushes an unpublished entry to the spares. */
CUA_FN void cua__multimap_push_spare(const struct cua_multimap_view *view, uint32_t vs,
				     uint64_t cursor)
{
	const uint64_t low = ((uint64_t)1 << cua__multimap_spare_bits(view)) - 1;
	uint64_t *spare = &view->pool->spare;
	uint64_t seen = cua_port_load_b64(spare, CUA__MULTIMAP_AT), before;

	cua_port_add_u64(&view->pool->dropped, 1, CUA__MULTIMAP_AT);
	do {
		before = seen;
		cua__multimap_set_link(view, vs, cursor, CUA__MULTIMAP_MARK | (before & low));
		seen = cua_port_cas_b64(spare, before, (before & ~low) | cursor, CUA_RELEASE,
					CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	} while (seen != before);
}

/* Pops a spare. Returns its cursor, or 0. */
CUA_FN uint64_t cua__multimap_pop_spare(const struct cua_multimap_view *view, uint32_t vs)
{
	const uint64_t low = ((uint64_t)1 << cua__multimap_spare_bits(view)) - 1;
	uint64_t *spare = &view->pool->spare;
	uint64_t seen = cua_port_load_b64(spare, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

	while (seen & low) {
		uint64_t before = seen;
		/*
		 * if another lane popped it meanwhile, the link may have any value, and the CAS
		 * fails
		 */
		uint64_t next = cua__multimap_next(view, vs, before & low);

		seen = cua_port_cas_b64(spare, before, ((before & ~low) + low + 1) | next,
					CUA_ACQ_REL, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		if (seen == before) {
			cua_port_add_u64(&view->pool->dropped, ~(uint64_t)0, CUA__MULTIMAP_AT);
			return before & low;
		}
	}
	return 0;
}

/*
 * The cursor of a ticket's entry. If the ticket has no entry: a spare, or 0, and counts the insert as
 * rejected.
 */
CUA_FORCE uint64_t cua__multimap_claim_entry(const struct cua_multimap_view *view, uint32_t vs,
					     uint64_t ticket)
{
	const uint64_t reusable = CUA_READ(view->pool->reusable);
	uint64_t cursor;

	if (ticket < reusable)
		return view->map.value_size == 4
			       ? CUA_READ(((const uint32_t *)view->reusable)[ticket])
			       : CUA_READ(((const uint64_t *)view->reusable)[ticket]);
	ticket = ticket - reusable + CUA_READ(view->pool->fresh);
	if (ticket < view->capacity)
		return ticket + 1;
	cursor = cua__multimap_pop_spare(view, vs);
	if (!cursor)
		cua_port_add_u64(&view->pool->rejected, 1, CUA__MULTIMAP_AT);
	return cursor;
}

/* Claims n tickets and returns the first. */
CUA_FORCE uint64_t cua__multimap_claim_tickets(const struct cua_multimap_view *view, uint64_t n)
{
	return cua_port_fetch_add_u64(&view->pool->taken, n, CUA__MULTIMAP_AT);
}

/* ---- lists ---- */

#define CUA__MULTIMAP_KEY                                                                          \
	&view->map, CUA__HASHMAP_KIND(ks, ls), cua__hashmap_key_of(hash, key), NULL

/* The head of a key's list, or 0. */
CUA_FORCE uint64_t cua__multimap_head(const struct cua_multimap_view *view, uint32_t ks,
				      uint64_t hash, struct cua_u128 key)
{
	struct cua_u128 head;

	if (view->map.value_size == 4)
		return cua__hashmap_find(&view->map, CUA__HASHMAP_KIND(ks, 4),
					 cua__hashmap_key_of(hash, key), NULL, &head)
			       ? head.lo
			       : 0;
	return cua__hashmap_find(&view->map, CUA__HASHMAP_KIND(ks, 8),
				 cua__hashmap_key_of(hash, key), NULL, &head)
		       ? head.lo
		       : 0;
}

/* cua__multimap_join for links of ls bytes. */
CUA_FORCE int cua__multimap_join_of(const struct cua_multimap_view *view, uint32_t ks, uint32_t vs,
				    uint32_t ls, uint64_t hash, struct cua_u128 key, uint64_t first,
				    uint64_t last)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	struct cua_u128 head = {0, 0};
	struct cua_backoff backoff;

	head.lo = first;
	cua_backoff_init(&backoff);
	for (;;) {
		int there;

		cua__multimap_set_link(view, vs, last, 0);
		there = cua__hashmap_enter(CUA__MULTIMAP_KEY, head, &spot);
		if (there != CUA_HASHMAP_EXISTS)
			return there;
		do {
			cua__multimap_set_link(view, vs, last, spot.value.lo);
			if (cua__hashmap_change(CUA__MULTIMAP_KEY, &spot, head) > 0)
				return CUA_MULTIMAP_INSERTED;
			cua__backoff_wait_upto(&backoff, CUA__MULTIMAP_LONGEST_WAIT);
			/* read the head again: the wait made the old value stale */
			there = cua__hashmap_spot_of(CUA__MULTIMAP_KEY, &spot);
		} while (there > 0);
	}
}

/*
 * Prepends a list of entries, which belong to the caller, to the key's list. All links of the
 * caller's list except the last are complete. Returns an enum cua_multimap_result. A result other
 * than INSERTED has changed nothing except the last link.
 */
CUA_FORCE int cua__multimap_join(const struct cua_multimap_view *view, uint32_t ks, uint32_t vs,
				 uint64_t hash, struct cua_u128 key, uint64_t first, uint64_t last)
{
	if (view->map.value_size == 4)
		return cua__multimap_join_of(view, ks, vs, 4, hash, key, first, last);
	return cua__multimap_join_of(view, ks, vs, 8, hash, key, first, last);
}

/* Inserts with the entry of a ticket. */
CUA_FORCE int cua__multimap_insert_at(const struct cua_multimap_view *view, uint32_t ks,
				      uint32_t vs, uint64_t hash, struct cua_u128 key,
				      uint64_t value, uint64_t ticket)
{
	uint64_t cursor = cua__multimap_claim_entry(view, vs, ticket);
	int result;

	if (!cursor)
		return CUA_MULTIMAP_FULL;
	cua__multimap_set_value(view, vs, cursor, value);
	result = cua__multimap_join(view, ks, vs, hash, key, cursor, cursor);
	if (result != CUA_MULTIMAP_INSERTED)
		cua__multimap_push_spare(view, vs, cursor);
	return result;
}

/*
 * Inserts the pair of each lane with a nonzero predicate. All lanes of mask call it together. A
 * single fetch-and-add claims all tickets. Lanes with equal keys link their entries, and their last
 * lane joins them to the key's list.
 */
CUA_FORCE int cua__multimap_insert_warp(const struct cua_multimap_view *view, uint32_t ks,
					uint32_t vs, uint32_t mask, int predicate,
					struct cua_u128 key, uint64_t value)
{
	const uint32_t lane = cua_port_lane(), votes = cua_port_ballot(mask, predicate != 0);
	uint32_t group, above, ends, joiner;
	uint64_t ticket = 0, cursor = 0, first, next;
	uint32_t result = 0;

	if (!votes)
		return 0;
	if (lane == cua_port_ffs_u32(votes) - 1)
		ticket = cua__multimap_claim_tickets(view, cua_port_popc_u32(votes));
	ticket = cua_port_shuffle_u64(mask, ticket, cua_port_ffs_u32(votes) - 1) +
		 cua_port_popc_u32(votes & (((uint32_t)1 << lane) - 1));
	if (predicate)
		cursor = cua__multimap_claim_entry(view, vs, ticket);
	group = cua_port_ballot(mask, cursor != 0) & cua_port_match_any_u64(mask, key.lo);
	above = group & ~(((uint32_t)2 << lane) - 1);
	next = cua_port_shuffle_u64(mask, cursor, above ? cua_port_ffs_u32(above) - 1 : lane);
	first = cua_port_shuffle_u64(mask, cursor, group ? cua_port_ffs_u32(group) - 1 : lane);
	ends = cua_port_ballot(mask, cursor != 0 && !above) & group;
	joiner = ends ? cua_port_ffs_u32(ends) - 1 : lane;
	if (cursor) {
		cua__multimap_set_value(view, vs, cursor, value);
		if (above)
			cua__multimap_set_link(view, vs, cursor, next);
	}
	/* orders the entries of the group before the release by its last lane */
	cua_port_sync_warp(mask);
	if (cursor && !above)
		result = (uint32_t)cua__multimap_join(
			view, ks, vs, cua__hashmap_hash(&view->map, ks, key), key, first, cursor);
	/* after return, a lane finds its own pair */
	cua_port_sync_warp(mask);
	result = cua_port_shuffle_u32(mask, result, joiner);
	if (!predicate)
		return 0;
	if (!cursor)
		return CUA_MULTIMAP_FULL;
	if (result != CUA_MULTIMAP_INSERTED)
		cua__multimap_push_spare(view, vs, cursor);
	return (int)result;
}

/* The number of values from this entry on. */
CUA_FORCE uint64_t cua__multimap_length(const struct cua_multimap_view *view, uint32_t vs,
					uint64_t cursor)
{
	uint64_t n = 0;

	for (; cursor; cursor = cua__multimap_next(view, vs, cursor))
		n++;
	return n;
}

/* Removes a key with its list. Returns the number of values. */
CUA_FORCE uint64_t cua__multimap_erase(const struct cua_multimap_view *view, uint32_t ks,
				       uint32_t vs, uint64_t hash, struct cua_u128 key)
{
	struct cua_u128 head = {0, 0};
	uint64_t cursor, n = 0;
	int there;

	if (view->map.value_size == 4)
		there = cua__hashmap_take(&view->map, CUA__HASHMAP_KIND(ks, 4),
					  cua__hashmap_key_of(hash, key), NULL, &head);
	else
		there = cua__hashmap_take(&view->map, CUA__HASHMAP_KIND(ks, 8),
					  cua__hashmap_key_of(hash, key), NULL, &head);
	if (!there)
		return 0;
	for (cursor = head.lo; cursor; n++) {
		uint64_t next = cua__multimap_next(view, vs, cursor);

		cua__multimap_set_link(view, vs, cursor, next | CUA__MULTIMAP_MARK);
		cursor = next;
	}
	cua_port_add_u64(&view->pool->dropped, n, CUA__MULTIMAP_AT);
	return n;
}

/* Sets *key to the key in a slot of the map, and returns the cursor of its newest entry, or 0. */
CUA_FORCE uint64_t cua__multimap_at(const struct cua_multimap_view *view, uint32_t ks,
				    uint64_t slot, struct cua_u128 *key)
{
	struct cua_u128 head;

	if (view->map.value_size == 4)
		return cua__hashmap_at(&view->map, ks, 4, slot, key, &head) ? head.lo : 0;
	return cua__hashmap_at(&view->map, ks, 8, slot, key, &head) ? head.lo : 0;
}

CUA_FORCE uint64_t cua__multimap_map_slots(const struct cua_multimap_view *view, uint32_t ks)
{
	if (view->map.value_size == 4)
		return cua__hashmap_all_slots(&view->map, ks, 4);
	return cua__hashmap_all_slots(&view->map, ks, 8);
}

/* ---- operations of a single lane, by type ---- */

/*
 * CUA_DEFINE_MULTIMAP(name, K, V) defines functions for a multimap with keys of the size of K and
 * values of the size of V, 4 or 8 bytes. Use it at file scope without a semicolon:
 *
 *   int name_insert(view, key, value)               an enum cua_multimap_result
 *   int name_insert_warp(view, mask, predicate, key, value)
 *                                                   as insert, for the lanes of mask with a nonzero
 *                                                   predicate; the rest get 0. All lanes of
 *                                                   mask call it. Lanes with equal keys need
 *                                                   a single CAS
 *   uint64_t name_count(view, key)                  the number of values of the key
 *   int name_contains(view, key)                    whether the key has values
 *   uint64_t name_first(view, key)                  the cursor of its newest value, or 0
 *   uint64_t name_next(view, cursor)                of the next older value of the key, or 0
 *   V name_value(view, cursor)                      the value at a cursor
 *   uint64_t name_retrieve(view, key, max, values)  stores the max newest values, newest first;
 *                                                   returns the number of values of the key
 *   uint64_t name_erase(view, key)                  removes the key and all its values; returns
 *                                                   their number
 *   uint64_t name_slots(view)                       the number of slots of the map of keys
 *   uint64_t name_at(view, slot, &key)              sets key to the key in this slot, and returns
 *                                                   the cursor of its newest value; or returns 0
 *
 * `view` is a const struct cua_multimap_view *. If the multimap has other sizes, or a layout
 * unknown to this header, inserts return UNSUPPORTED, and lookups and erases find nothing. If the
 * size of values or the layout differs, next returns 0 and value returns bits 0. Keys are equal if
 * their bits are equal. A cursor is valid until reclaim or clear, also after an erase of its key.
 * To visit all pairs, divide the slots 0 to name_slots - 1 among lanes, and follow the cursors:
 *
 *   for (at = name_at(&view, slot, &key); at; at = name_next(&view, at))
 *           use(name_value(&view, at));
 */
/* HAS: value size and layout match. FITS: the key size and the map match, too. */
#define CUA__MULTIMAP_HAS(view, vs)                                                                \
	((view)->value_size == (vs) && (view)->layout == CUA_MULTIMAP_LAYOUT)
#define CUA__MULTIMAP_FITS(view, ks, vs)                                                           \
	(CUA__MULTIMAP_HAS(view, vs) && (view)->map.key_size == (ks) &&                            \
	 CUA__HASHMAP_KNOWN(&(view)->map))
#define CUA__MULTIMAP_BITS(p, T) cua__hashmap_bits(p, sizeof(T))
#define CUA__MULTIMAP_OF(K, key) cua__hashmap_hash(&view->map, sizeof(K), key), key

#define CUA__DEFINE_MULTIMAP_INSERT(name, K, V)                                                    \
	CUA_FN int name##_insert(const struct cua_multimap_view *view, K key, V value)             \
	{                                                                                          \
		struct cua_u128 k = CUA__MULTIMAP_BITS(&key, K);                                   \
                                                                                                   \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return CUA_MULTIMAP_UNSUPPORTED;                                           \
		return cua__multimap_insert_at(view, sizeof(K), sizeof(V), CUA__MULTIMAP_OF(K, k), \
					       CUA__MULTIMAP_BITS(&value, V).lo,                   \
					       cua__multimap_claim_tickets(view, 1));              \
	}                                                                                          \
	CUA_FN int name##_insert_warp(const struct cua_multimap_view *view, uint32_t mask,         \
				      int predicate, K key, V value)                               \
	{                                                                                          \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return predicate ? (int)CUA_MULTIMAP_UNSUPPORTED : 0;                      \
		return cua__multimap_insert_warp(view, sizeof(K), sizeof(V), mask, predicate,      \
						 CUA__MULTIMAP_BITS(&key, K),                      \
						 CUA__MULTIMAP_BITS(&value, V).lo);                \
	}

#define CUA__DEFINE_MULTIMAP_CURSORS(name, K, V)                                                   \
	CUA_FN uint64_t name##_first(const struct cua_multimap_view *view, K key)                  \
	{                                                                                          \
		struct cua_u128 k = CUA__MULTIMAP_BITS(&key, K);                                   \
                                                                                                   \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return 0;                                                                  \
		return cua__multimap_head(view, sizeof(K), CUA__MULTIMAP_OF(K, k));                \
	}                                                                                          \
	CUA_FN uint64_t name##_next(const struct cua_multimap_view *view, uint64_t cursor)         \
	{                                                                                          \
		return CUA__MULTIMAP_HAS(view, sizeof(V))                                          \
			       ? cua__multimap_next(view, sizeof(V), cursor)                       \
			       : 0;                                                                \
	}                                                                                          \
	CUA_FN V name##_value(const struct cua_multimap_view *view, uint64_t cursor)               \
	{                                                                                          \
		struct cua_u128 bits = {0, 0};                                                     \
		V value;                                                                           \
                                                                                                   \
		if (CUA__MULTIMAP_HAS(view, sizeof(V)))                                            \
			bits.lo = cua__multimap_value(view, sizeof(V), cursor);                    \
		cua__hashmap_unbits(&value, sizeof(V), bits);                                      \
		return value;                                                                      \
	}                                                                                          \
	CUA_FN uint64_t name##_count(const struct cua_multimap_view *view, K key)                  \
	{                                                                                          \
		return cua__multimap_length(view, sizeof(V), name##_first(view, key));             \
	}                                                                                          \
	CUA_FN int name##_contains(const struct cua_multimap_view *view, K key)                    \
	{                                                                                          \
		return name##_first(view, key) != 0;                                               \
	}

#define CUA__DEFINE_MULTIMAP_KEY(name, K, V)                                                       \
	CUA_FN uint64_t name##_retrieve(const struct cua_multimap_view *view, K key, uint64_t max, \
					V *values)                                                 \
	{                                                                                          \
		uint64_t at, n = 0;                                                                \
                                                                                                   \
		for (at = name##_first(view, key); at;                                             \
		     at = cua__multimap_next(view, sizeof(V), at), n++)                            \
			if (n < max)                                                               \
				values[n] = name##_value(view, at);                                \
		return n;                                                                          \
	}                                                                                          \
	CUA_FN uint64_t name##_erase(const struct cua_multimap_view *view, K key)                  \
	{                                                                                          \
		struct cua_u128 k = CUA__MULTIMAP_BITS(&key, K);                                   \
                                                                                                   \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return 0;                                                                  \
		return cua__multimap_erase(view, sizeof(K), sizeof(V), CUA__MULTIMAP_OF(K, k));    \
	}

#define CUA__DEFINE_MULTIMAP_SLOTS(name, K, V)                                                     \
	CUA_FN uint64_t name##_slots(const struct cua_multimap_view *view)                         \
	{                                                                                          \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return 0;                                                                  \
		return cua__multimap_map_slots(view, sizeof(K));                                   \
	}                                                                                          \
	CUA_FN uint64_t name##_at(const struct cua_multimap_view *view, uint64_t slot, K *key)     \
	{                                                                                          \
		struct cua_u128 k = {0, 0};                                                        \
		uint64_t cursor = 0;                                                               \
                                                                                                   \
		if (CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			cursor = cua__multimap_at(view, sizeof(K), slot, &k);                      \
		if (cursor)                                                                        \
			cua__hashmap_unbits(key, sizeof(K), k);                                    \
		return cursor;                                                                     \
	}

#define CUA_DEFINE_MULTIMAP(name, K, V)                                                            \
	CUA_STATIC_ASSERT(sizeof(K) == 4 || sizeof(K) == 8, "keys have 4 or 8 bytes");             \
	CUA_STATIC_ASSERT(sizeof(V) == 4 || sizeof(V) == 8, "values have 4 or 8 bytes");           \
	CUA__DEFINE_MULTIMAP_INSERT(name, K, V)                                                    \
	CUA__DEFINE_MULTIMAP_CURSORS(name, K, V)                                                   \
	CUA__DEFINE_MULTIMAP_KEY(name, K, V)                                                       \
	CUA__DEFINE_MULTIMAP_SLOTS(name, K, V)

/* ---- host API ---- */

/* Options of create; NULL means the defaults. */
struct cua_multimap_options {
	size_t struct_size; /* sizeof(struct cua_multimap_options), set by the caller */
	/* seed of the hash; with CUA_HASHMAP_HASH_KEYED the secret; as in hashmap.h */
	uint64_t seed, seed_high;
	uint32_t hash; /* an enum cua_hashmap_hash */
	/* bytes of a link: 8; or 0: 4 up to 2^31 - 2 entries, else 8 */
	uint32_t link_size;
	uint32_t portable; /* as in hashmap.h */
	uint32_t reserved; /* 0 */
};
#define CUA_MULTIMAP_OPTIONS_INIT CUA__SIZED_INIT(struct cua_multimap_options)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates an empty multimap in the memory of the context's backend. keys_capacity distinct keys are
 * guaranteed to fit, and entries_capacity pairs. Types: U32 and U64, for all types of their size.
 * Bytes per entry: 12 if values and links have 4 bytes, 24 if links have 8 bytes, else 20.
 * hashmap.h states the bytes of the map, with values of the size of links; keys or links of 8 bytes
 * need words of 128 bits.
 * Errors: NULL, TYPE, VALUE (a capacity of 0, an option), SIZE, NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_multimap_create(struct cua_context *ctx,
					    const struct cua_multimap_options *options,
					    enum cua_type key_type, enum cua_type value_type,
					    uint64_t keys_capacity, uint64_t entries_capacity,
					    struct cua_multimap **mm);
/* Waits for the device and frees the multimap. NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_multimap_destroy(struct cua_multimap *mm);

/* The view for use in kernels; valid until the multimap is destroyed. Errors: NULL. */
CUA_API enum cua_status cua_multimap_get_view(const struct cua_multimap *mm,
					      struct cua_multimap_view *view);

/* Removes all pairs and the status FULL, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_multimap_clear(struct cua_multimap *mm);

/*
 * Makes erased entries available to inserts, in stream order, by a pass over the entries ever used.
 * May be captured. No other operation may use the multimap meanwhile, and all cursors become
 * invalid. Errors: NULL.
 */
CUA_API enum cua_status cua_multimap_reclaim(struct cua_multimap *mm);

/*
 * Bulk calls, in stream order; may be captured. Arrays are backend memory with n elements, unless
 * stated otherwise, of the multimap's key and value types. Keys may repeat.
 *
 * - insert_n: inserts the pairs. results[i] gets an enum cua_multimap_result; results may be NULL.
 *   If not all pairs with equal keys fit, the choice of the pairs that get FULL is unspecified.
 * - count_n: counts_out[i] gets the number of values of keys[i].
 * - retrieve_n: the values of keys[i] are values_out[offsets_out[i]] to values_out[offsets_out[i +
 *   1] - 1], newest first. offsets_out has n + 1 elements. values_out has room for max values;
 *   values beyond it are left out, and offsets are at most max. *total gets the number of all
 *   values, even above max, so a call with max = 0 returns the room needed. total may be in backend
 *   memory (see context.h). values_out may be NULL if max is 0.
 * - erase_n: removes the keys and all their values. removed_out[i] gets the number of values that
 *   element i removed; among equal keys, a single element gets them all. removed_out may be NULL.
 *
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another argument or the
 * multimap); retrieve_n also CAPTURE, WORKSPACE (33 KiB).
 */
CUA_API enum cua_status cua_multimap_insert_n(struct cua_multimap *mm, size_t n, const void *keys,
					      const void *values, uint8_t *results);
CUA_API enum cua_status cua_multimap_count_n(struct cua_multimap *mm, size_t n, const void *keys,
					     uint64_t *counts_out);
CUA_API enum cua_status cua_multimap_retrieve_n(struct cua_multimap *mm, size_t n, const void *keys,
						uint64_t max, uint64_t *offsets_out,
						void *values_out, uint64_t *total);
CUA_API enum cua_status cua_multimap_erase_n(struct cua_multimap *mm, size_t n, const void *keys,
					     uint64_t *removed_out);

/*
 * The number of pairs, and of distinct keys, without a pass. The result may be in backend memory
 * (see context.h).
 * Errors: NULL, ALIGNMENT, CAPTURE, MEMORY_KIND, OVERLAP (the result lies in the multimap),
 * WORKSPACE.
 */
CUA_API enum cua_status cua_multimap_size(struct cua_multimap *mm, uint64_t *size);
CUA_API enum cua_status cua_multimap_keys(struct cua_multimap *mm, uint64_t *keys);

/*
 * Retrieves max pairs in any order to keys_out and values_out (backend memory; may be NULL if max
 * is 0). *n gets the number of all pairs, even above max; n may be in backend memory (see
 * context.h).
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP, CAPTURE, WORKSPACE.
 */
CUA_API enum cua_status cua_multimap_retrieve(struct cua_multimap *mm, uint64_t max, void *keys_out,
					      void *values_out, uint64_t *n);

/*
 * CUA_ERROR_FULL if an insert returned FULL since the last clear, on the host or in a kernel; else
 * CUA_OK. Waits for the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_multimap_status(struct cua_multimap *mm);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_MULTIMAP_H */
