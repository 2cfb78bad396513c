/* SPDX-License-Identifier: MIT */
/*
 * A hash map of keys of 4 or 8 bytes with any number of values of 4 or 8 bytes each; duplicates are kept, and
 * every bit pattern is allowed for keys and values. Of larger values store the index.
 *
 * Source: the map of hashmap.h, from each key to its newest entry in a pool of entries, each of which links
 * to the one before it: a stack a key (Treiber, 1986) whose heads are the values of the map.
 *
 * Synchronization: X means that the caller must order the two calls, - that the multimap does it.
 *
 *                    insert  count, first  retrieve  erase  at  reclaim, clear  size, keys, bulk retrieves
 *     insert           -          -           -        -    X         X                   X
 *     count, first     -          -           -        -    -         X                   -
 *     retrieve         -          -           -        -    -         X                   -
 *     erase            -          -           -        -    X         X                   X
 *     at               X          -           -        X    -         X                   -
 *     reclaim, clear   X          X           X        X    X         X                   X
 *
 *     Any mix of inserts, counts, walks and erases may run in one kernel, on one key too, and each is
 *     linearizable in the sense of hashmap.h. insert takes effect when the key's head becomes its entry;
 *     count, contains, retrieve and a walk by first and next see the values that the key had at the one
 *     moment when they read its head, whatever is inserted or erased while they walk; erase removes all that
 *     the key has at one moment, and returns how many. The bulk calls insert_n, count_n and erase_n are many
 *     of them. The host calls of one context are ordered by its stream. size, keys, at and the bulk retrieves
 *     while a writer runs touch nothing wrong, but what they tell is no moment's state.
 *
 * Order of values: newest first, in the order in which the inserts took effect. Of those that were inserted
 *   by one bulk call or by one insert_warp any may be the newer one.
 * Scope: the device. On the host, all threads.
 * Memory order: a walk that meets a value acquires what its inserter did before.
 * Progress: that of the map: count, contains, retrieve, first and next are wait-free, but for as many steps
 *   as there are values; insert as the map's insert of an absent key and update of a present one, erase as
 *   its erase. All may be called by any lane of a diverged warp; insert_warp by all lanes of its mask
 *   together.
 * Full: an insert that finds no entry, or no slot for a new key, returns FULL, changes nothing and makes the
 *   sticky status FULL. Entries that were erased count as in use until cua_multimap_reclaim or _clear, since
 *   others may still read them, and so does an entry held by an insert in progress.
 *
 * Argument.
 *
 *   Entries. An entry belongs to the lane that took it until it is the head of its key. It is taken by
 *   fetch-and-add on a counter of places: first those of the list of reusable entries, then those of entries
 *   never used. No place is taken twice between two reclaims. A published entry keeps its value and its link
 *   until reclaim or clear.
 *
 *   Insert. The lane writes the value and the link, then makes its entry the head: by the map's insert, with
 *   the link 0, where the key is absent; else by a compare-and-swap of the head that the link names. No entry
 *   is the head of a key twice between two reclaims, so the swap cannot mistake a later head for the one that
 *   it has read, and the link names what the swap replaced.
 *
 *   Walks. The head is read with acquire. Whoever made an entry the head has acquired the head before, or has
 *   continued its release sequence, so that all entries further down are complete for who reads the head.
 *   Their links never change, but for the mark, which readers ignore: hence the moment's list.
 *
 *   Erase. The map's erase gives the head that it removed, so each list is removed by one lane, which then
 *   marks its entries and counts them. Reclaim, of which nobody else knows, lists all that are marked.
 *
 *   Spares. An insert that has taken an entry and finds the map full has not shown it to anybody; it goes to
 *   a stack of spares, which inserts that find no place look at last. That stack is popped while others push,
 *   so its head has a count of pops beside the entry.
 */
#ifndef CUATOMIC_MULTIMAP_H
#define CUATOMIC_MULTIMAP_H

#include <cuatomic/context.h>
#include <cuatomic/hashmap.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* The handle of the host; only the library knows what is in it. */
struct cua_multimap;

/* What became of an insert; the numbers are those of enum cua_hashmap_result. */
enum cua_multimap_result {
	CUA_MULTIMAP_INSERTED = 1,
	CUA_MULTIMAP_FULL = 3, /* no entry, or no slot for a new key: nothing changed */
	/*
	 * code for a machine that lacks the map's CAS of 128 bits, see hashmap.h, or for other sizes or another
	 * layout: it finds nothing
	 */
	CUA_MULTIMAP_UNSUPPORTED = 5
};

/* The pool's counters; what is written often is apart from what is not. */
struct cua_multimap_pool {
	uint64_t taken; /* places asked for since the last reclaim, also in vain */
	uint64_t reserved_a[15];
	uint64_t reusable; /* entries that were erased before the last reclaim */
	uint64_t fresh;    /* entries ever used before the last reclaim */
	uint64_t reserved_b[14];
	uint64_t dropped;  /* since the last reclaim: entries erased, and spares there are */
	uint64_t rejected; /* inserts that found no entry since the last clear */
	uint64_t spare;    /* the first spare, and above it a count */
	uint64_t gathered; /* of a reclaim at work */
	uint64_t reserved_c[12];
};
CUA_STATIC_ASSERT(sizeof(struct cua_multimap_pool) == 384, "the pool is ABI");

#define CUA_MULTIMAP_LAYOUT 1u

/* What a kernel or a host thread gets by value: the multimap as the backend addresses it. */
struct cua_multimap_view {
	struct cua_hashmap_view map; /* values are cursors, of 4 or 8 bytes; links have as many */
	void *entries;               /* value, link: 8 bytes each, or where both have 4, 4 each */
	void *reusable;              /* cursors, as long as links */
	struct cua_multimap_pool *pool;
	uint64_t capacity;   /* entries */
	uint32_t value_size; /* 4 or 8, of a value; map.value_size is that of links */
	uint32_t layout;     /* CUA_MULTIMAP_LAYOUT */
};
CUA_STATIC_ASSERT(sizeof(struct cua_multimap_view) == 64 + 6 * sizeof(void *), "the view is ABI");

#define CUA__MULTIMAP_AT CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* In a link: the entry is in no list any more, or not yet. Of links with 4 bytes, bit 31. */
#define CUA__MULTIMAP_MARK ((uint64_t)1 << 63)
#define CUA__MULTIMAP_MARK_OF_4 ((uint32_t)1 << 31)
/* The most entries with links of 4 bytes, and at all. */
#define CUA__MULTIMAP_MOST_OF_4 (((uint64_t)1 << 31) - 2)
#define CUA__MULTIMAP_MOST (((uint64_t)1 << 40) - 2)

/* Nanoseconds between two tries for a head that many want. */
#define CUA__MULTIMAP_LONGEST_WAIT 65536u

/* ---- entries; a cursor is the number of an entry + 1, or 0 ---- */

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

/* The cursor of the next entry, and perhaps the mark. */
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

/* The word of a spare: the cursor, and the count of pops above it. */
CUA_FORCE uint32_t cua__multimap_spare_bits(const struct cua_multimap_view *view)
{
	return view->map.value_size == 4 ? 32 : 40;
}

/* Gives an entry back that nobody else has seen. */
CUA_FN void cua__multimap_give_back(const struct cua_multimap_view *view, uint32_t vs,
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

/* A spare, or 0. */
CUA_FN uint64_t cua__multimap_take_spare(const struct cua_multimap_view *view, uint32_t vs)
{
	const uint64_t low = ((uint64_t)1 << cua__multimap_spare_bits(view)) - 1;
	uint64_t *spare = &view->pool->spare;
	uint64_t seen = cua_port_load_b64(spare, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

	while (seen & low) {
		uint64_t before = seen;
		/* where another has popped it since, the link may be anything, and the swap fails */
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

/* The entry at a place of the counter, or where there is none a spare, or 0 and then the insert is rejected. */
CUA_FORCE uint64_t cua__multimap_take_at(const struct cua_multimap_view *view, uint32_t vs,
					 uint64_t place)
{
	const uint64_t reusable = CUA_READ(view->pool->reusable);
	uint64_t cursor;

	if (place < reusable)
		return view->map.value_size == 4
			       ? CUA_READ(((const uint32_t *)view->reusable)[place])
			       : CUA_READ(((const uint64_t *)view->reusable)[place]);
	place = place - reusable + CUA_READ(view->pool->fresh);
	if (place < view->capacity)
		return place + 1;
	cursor = cua__multimap_take_spare(view, vs);
	if (!cursor)
		cua_port_add_u64(&view->pool->rejected, 1, CUA__MULTIMAP_AT);
	return cursor;
}

/* Takes so many places of the counter and returns the first. */
CUA_FORCE uint64_t cua__multimap_places(const struct cua_multimap_view *view, uint64_t n)
{
	return cua_port_fetch_add_u64(&view->pool->taken, n, CUA__MULTIMAP_AT);
}

/* ---- lists ---- */

#define CUA__MULTIMAP_KEY &view->map, ks, ls, hash, key, NULL

/* The head of a key's list, or 0. */
CUA_FORCE uint64_t cua__multimap_head(const struct cua_multimap_view *view, uint32_t ks,
				      uint64_t hash, struct cua_u128 key)
{
	struct cua_u128 head;

	if (view->map.value_size == 4)
		return cua__hashmap_find(&view->map, ks, 4, hash, key, NULL, &head) ? head.lo : 0;
	return cua__hashmap_find(&view->map, ks, 8, hash, key, NULL, &head) ? head.lo : 0;
}

/* For links of ls bytes: see cua__multimap_join. */
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
			/* the head of now, not that of before the wait */
			there = cua__hashmap_spot_of(CUA__MULTIMAP_KEY, &spot);
		} while (there > 0);
	}
}

/*
 * Puts a list of the caller's, complete but for the last link, in front of the key's. Returns an enum
 * cua_multimap_result; what is not INSERTED has changed nothing but that link.
 */
CUA_FORCE int cua__multimap_join(const struct cua_multimap_view *view, uint32_t ks, uint32_t vs,
				 uint64_t hash, struct cua_u128 key, uint64_t first, uint64_t last)
{
	if (view->map.value_size == 4)
		return cua__multimap_join_of(view, ks, vs, 4, hash, key, first, last);
	return cua__multimap_join_of(view, ks, vs, 8, hash, key, first, last);
}

/* Inserts with the entry at a place of the counter. */
CUA_FORCE int cua__multimap_insert_at(const struct cua_multimap_view *view, uint32_t ks,
				      uint32_t vs, uint64_t hash, struct cua_u128 key,
				      uint64_t value, uint64_t place)
{
	uint64_t cursor = cua__multimap_take_at(view, vs, place);
	int result;

	if (!cursor)
		return CUA_MULTIMAP_FULL;
	cua__multimap_set_value(view, vs, cursor, value);
	result = cua__multimap_join(view, ks, vs, hash, key, cursor, cursor);
	if (result != CUA_MULTIMAP_INSERTED)
		cua__multimap_give_back(view, vs, cursor);
	return result;
}

/*
 * For the lanes of mask, which all call this together: inserts the pair of each lane whose predicate is not
 * 0. One fetch-and-add takes all places, and lanes with one key link their entries before one of them joins
 * the list.
 */
CUA_FORCE int cua__multimap_insert_warp(const struct cua_multimap_view *view, uint32_t ks,
					uint32_t vs, uint32_t mask, int predicate,
					struct cua_u128 key, uint64_t value)
{
	const uint32_t lane = cua_port_lane(), votes = cua_port_ballot(mask, predicate != 0);
	uint32_t group, above, ends, joiner;
	uint64_t place = 0, cursor = 0, first, next;
	uint32_t result = 0;

	if (!votes)
		return 0;
	if (lane == cua_port_ffs_u32(votes) - 1)
		place = cua__multimap_places(view, cua_port_popc_u32(votes));
	place = cua_port_shuffle_u64(mask, place, cua_port_ffs_u32(votes) - 1) +
		cua_port_popc_u32(votes & (((uint32_t)1 << lane) - 1));
	if (predicate)
		cursor = cua__multimap_take_at(view, vs, place);
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
	/* makes the entries of the group part of what its last lane releases */
	cua_port_sync_warp(mask);
	if (cursor && !above)
		result = (uint32_t)cua__multimap_join(
			view, ks, vs, cua__hashmap_hash(&view->map, ks, key), key, first, cursor);
	/* a lane that returns finds its own pair */
	cua_port_sync_warp(mask);
	result = cua_port_shuffle_u32(mask, result, joiner);
	if (!predicate)
		return 0;
	if (!cursor)
		return CUA_MULTIMAP_FULL;
	if (result != CUA_MULTIMAP_INSERTED)
		cua__multimap_give_back(view, vs, cursor);
	return (int)result;
}

/* How many values a list has from this entry on. */
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
		there = cua__hashmap_take(&view->map, ks, 4, hash, key, NULL, &head);
	else
		there = cua__hashmap_take(&view->map, ks, 8, hash, key, NULL, &head);
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

/* The key at a place of the map, with the head of its list, or 0. */
CUA_FORCE uint64_t cua__multimap_at(const struct cua_multimap_view *view, uint32_t ks,
				    uint64_t place, struct cua_u128 *key)
{
	struct cua_u128 head;

	if (view->map.value_size == 4)
		return cua__hashmap_at(&view->map, ks, 4, place, key, &head) ? head.lo : 0;
	return cua__hashmap_at(&view->map, ks, 8, place, key, &head) ? head.lo : 0;
}

CUA_FORCE uint64_t cua__multimap_map_places(const struct cua_multimap_view *view, uint32_t ks)
{
	if (view->map.value_size == 4)
		return cua__hashmap_places(&view->map, ks, 4);
	return cua__hashmap_places(&view->map, ks, 8);
}

/* ---- operations of one lane, by type ---- */

/*
 * CUA_DEFINE_MULTIMAP(name, K, V) defines, at file scope and with no semicolon after it, for a multimap whose
 * keys and values have the sizes of the types K and V, 4 or 8 bytes:
 *
 *   int name_insert(view, key, value)               an enum cua_multimap_result
 *   int name_insert_warp(view, mask, predicate, key, value)  for all lanes of mask together: the same for
 *                                                   those whose predicate is not 0; others get 0. Lanes with
 *                                                   one key need one swap
 *   uint64_t name_count(view, key)                  how many values the key has
 *   int name_contains(view, key)                    whether it has any
 *   uint64_t name_first(view, key)                  a cursor to its newest value, or 0
 *   uint64_t name_next(view, cursor)                to the next older one of the same key, or 0
 *   V name_value(view, cursor)                      the value at a cursor
 *   uint64_t name_retrieve(view, key, max, values)  the first max of its values, newest first; returns how many
 *                                                   there are
 *   uint64_t name_erase(view, key)                  removes the key with all its values; returns how many
 *   uint64_t name_places(view)                      how many places name_at knows
 *   uint64_t name_at(view, place, &key)             a cursor and the key at this place, or 0
 *
 * where `view` is a const struct cua_multimap_view *. In a multimap of other sizes, or of a layout that this header
 * does not know, inserts are UNSUPPORTED, and nothing is found or erased; where it is the size of values, or the
 * layout, next is 0 and values have bits 0. Keys are equal if their bits are. A cursor stays good until reclaim or
 * clear, also if its key is erased. To visit all pairs, share the places out among lanes, and follow the cursors:
 *
 *   for (at = name_first(&view, key); at; at = name_next(&view, at))
 *           use(name_value(&view, at));
 */
/* Whether the entries have such values; and for what begins with a key, whether the map has such keys, too. */
#define CUA__MULTIMAP_HAS(view, vs)                                                                \
	((view)->value_size == (vs) && (view)->layout == CUA_MULTIMAP_LAYOUT)
#define CUA__MULTIMAP_FITS(view, ks, vs)                                                           \
	(CUA__MULTIMAP_HAS(view, vs) && (view)->map.key_size == (ks) &&                            \
	 CUA__HASHMAP_KNOWN(&(view)->map))
#define CUA__MULTIMAP_BITS(p, T) cua__hashmap_bits(p, sizeof(T))
#define CUA__MULTIMAP_OF(K, key) cua__hashmap_hash(&view->map, sizeof(K), key), key
#define CUA_DEFINE_MULTIMAP(name, K, V)                                                            \
	CUA_STATIC_ASSERT(sizeof(K) == 4 || sizeof(K) == 8, "keys have 4 or 8 bytes");             \
	CUA_STATIC_ASSERT(sizeof(V) == 4 || sizeof(V) == 8, "values have 4 or 8 bytes");           \
	CUA_FN int name##_insert(const struct cua_multimap_view *view, K key, V value)             \
	{                                                                                          \
		struct cua_u128 k = CUA__MULTIMAP_BITS(&key, K);                                   \
                                                                                                   \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return CUA_MULTIMAP_UNSUPPORTED;                                           \
		return cua__multimap_insert_at(view, sizeof(K), sizeof(V), CUA__MULTIMAP_OF(K, k), \
					       CUA__MULTIMAP_BITS(&value, V).lo,                   \
					       cua__multimap_places(view, 1));                     \
	}                                                                                          \
	CUA_FN int name##_insert_warp(const struct cua_multimap_view *view, uint32_t mask,         \
				      int predicate, K key, V value)                               \
	{                                                                                          \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return predicate ? (int)CUA_MULTIMAP_UNSUPPORTED : 0;                      \
		return cua__multimap_insert_warp(view, sizeof(K), sizeof(V), mask, predicate,      \
						 CUA__MULTIMAP_BITS(&key, K),                      \
						 CUA__MULTIMAP_BITS(&value, V).lo);                \
	}                                                                                          \
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
	}                                                                                          \
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
	}                                                                                          \
	CUA_FN uint64_t name##_places(const struct cua_multimap_view *view)                        \
	{                                                                                          \
		if (!CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                               \
			return 0;                                                                  \
		return cua__multimap_map_places(view, sizeof(K));                                  \
	}                                                                                          \
	CUA_FN uint64_t name##_at(const struct cua_multimap_view *view, uint64_t place, K *key)    \
	{                                                                                          \
		struct cua_u128 k = {0, 0};                                                        \
		uint64_t cursor = 0;                                                               \
                                                                                                   \
		if (CUA__MULTIMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			cursor = cua__multimap_at(view, sizeof(K), place, &k);                     \
		if (cursor)                                                                        \
			cua__hashmap_unbits(key, sizeof(K), k);                                    \
		return cursor;                                                                     \
	}

/* ---- from the host ---- */

/* What a multimap is made with; NULL in its place means the defaults. */
struct cua_multimap_options {
	size_t struct_size; /* sizeof(struct cua_multimap_options), set by the caller */
	/* of the hash, and of CUA_HASHMAP_HASH_KEYED the secret; as in hashmap.h */
	uint64_t seed, seed_high;
	uint32_t hash; /* an enum cua_hashmap_hash */
	/* bytes of a link: 8, or 0 for 4 where they are enough, which they are for 2^31 - 2 entries */
	uint32_t link_size;
	uint32_t portable; /* as in hashmap.h */
	uint32_t reserved; /* 0 */
};
#define CUA_MULTIMAP_OPTIONS_INIT CUA__SIZED_INIT(struct cua_multimap_options)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An empty multimap in the memory of the context's backend, for so many different keys, which fit for
 * certain, and so many entries, which are pairs. Types: U32 and U64, which stand for all types of their size.
 * Bytes an entry: 12 with values and links of 4 bytes, else 20, or with links of 8 bytes 24. Those of the map
 * are told in hashmap.h, of values as long as links; keys or links of 8 bytes make words of 128 bits.
 * Errors: NULL, TYPE, VALUE (a capacity of 0, an option), SIZE, NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_multimap_create(struct cua_context *ctx,
					    const struct cua_multimap_options *options,
					    enum cua_type key_type, enum cua_type value_type,
					    uint64_t keys_capacity, uint64_t entries_capacity,
					    struct cua_multimap **mm);
/* Frees the multimap once the device has finished with it; NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_multimap_destroy(struct cua_multimap *mm);

/* What kernels use the multimap through; valid until it is destroyed. Errors: NULL. */
CUA_API enum cua_status cua_multimap_view(const struct cua_multimap *mm,
					  struct cua_multimap_view *view);

/* Removes all pairs and the status FULL, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_multimap_clear(struct cua_multimap *mm);

/*
 * Makes the entries that were erased free for inserts, in stream order, in one pass over the entries ever
 * used; may be captured. Nobody else may use the multimap meanwhile, and cursors are void afterwards. Errors:
 * NULL.
 */
CUA_API enum cua_status cua_multimap_reclaim(struct cua_multimap *mm);

/*
 * Many at once, in stream order; may be captured. Arrays are backend memory, keys and values of the
 * multimap's types, of n elements each unless said otherwise. Keys may be equal.
 *
 * insert_n: adds the pairs. results[i], where results is not NULL, gets the enum cua_multimap_result. Equal
 *   keys that do not fit any more are FULL, which ones is not said.
 * count_n: counts_out[i] gets how many values keys[i] has.
 * retrieve_n: the values of keys[i] are values_out[offsets_out[i]] to values_out[offsets_out[i + 1] - 1],
 *   newest first; offsets_out has n + 1 elements. values_out has room for max values: offsets end there, and
 *   what is beyond is left out. *total, which may be in backend memory (see context.h), gets how many values
 *   there are, also when more than max; so a call with max = 0 tells what to provide. values_out may be NULL
 *   if max is 0.
 * erase_n: removes the keys with all their values; removed_out[i], where removed_out is not NULL, gets how
 *   many values this element removed: of equal keys one has them all.
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another argument or the multimap);
 * retrieve_n also CAPTURE, WORKSPACE (33 KiB).
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
 * The number of pairs, and of different keys, without a pass. The result may be in backend memory: see
 * context.h.
 * Errors: NULL, ALIGNMENT, CAPTURE, MEMORY_KIND, OVERLAP (the result lies in the multimap), WORKSPACE.
 */
CUA_API enum cua_status cua_multimap_size(struct cua_multimap *mm, uint64_t *size);
CUA_API enum cua_status cua_multimap_keys(struct cua_multimap *mm, uint64_t *keys);

/*
 * All pairs in any order: the first max of them to keys_out and values_out (backend memory; may be NULL if
 * max is 0), and how many there are, also when more than max, to *n, which may be in backend memory: see
 * context.h.
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP, CAPTURE, WORKSPACE.
 */
CUA_API enum cua_status cua_multimap_retrieve(struct cua_multimap *mm, uint64_t max, void *keys_out,
					      void *values_out, uint64_t *n);

/*
 * CUA_ERROR_FULL if an insert was FULL since the last clear, by a call from the host or in a kernel; else
 * CUA_OK. Waits for the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_multimap_status(struct cua_multimap *mm);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_MULTIMAP_H */
