/* SPDX-License-Identifier: MIT */
/*
 * A chained hash table: buckets, a preallocated pool of entries, and a lock per bucket. Keys and
 * values are 64-bit; a key may occur many times. There are three ways to add a pair:
 *
 *   insert  under the lock of its bucket, as in the textbook;
 *   push    without the lock, by a compare-and-swap of the bucket's head, while others read;
 *   build   by an exchange of the head, which never retries, while there are no readers.
 *
 * Source: the hash table of Sanders and Kandrot, CUDA by Example, appendix A.3. Links are indices
 * into the pool, not pointers, so a copy of the table is a valid table. Entries are written before
 * the lock is acquired, and a bulk insert links a group of entries of the same bucket under a
 * single lock. The push is that of Treiber's stack, 1986. build exchanges the head and links
 * afterwards, like the start of the queue lock of Mellor-Crummey and Scott, 1991.
 *
 * Synchronization of two calls on the same table. X: the caller must order the calls. -: the calls
 * may run concurrently.
 *
 *               insert  push  build  find  count  first/next  clear  bulk count, values, size,
 *                                                                    verify, copy
 *     insert      -      X      X     -      -        -         X                 X
 *     push        X      -      -     -      -        -         X                 X
 *     build       X      -      -     X      X        X         X                 X
 *     find        -      -      X     -      -        -         X                 -
 *     count       -      -      X     -      -        -         X                 -
 *     first/next  -      -      X     -      -        -         X                 -
 *     clear       X      X      X     X      X        X         X                 X
 *
 * insert excludes push and build because it reads the head and stores a new head under the lock,
 * without a compare-and-swap. A push or build between the two would be lost.
 *
 * The bulk calls insert_n, build_n and find_n are many inserts, builds and finds. The stream of a
 * context orders its host calls. In a kernel, a barrier of all builders and readers orders builds
 * before later reads.
 *
 * Scope: the device. On the host, all threads.
 *
 * Memory order: a find (count, first) that sees an entry acquires the writes of its inserter or
 * pusher before the insert or push. build publishes nothing; the caller must order later reads
 * after it.
 *
 * Progress: insert is blocking (a spinlock per bucket, held for two stores). push is lock-free: a
 * compare-and-swap fails only if another push to the bucket succeeded. build is wait-free if the
 * machine has fetch-and-add and exchange. find, count, first and next are wait-free; their steps
 * are bounded by the chain's entries at their start. Any lane of a diverged warp may call these
 * functions; all lanes of its mask call push_warp together.
 *
 * Full: a fetch-and-add claims the entries of the pool. An insert, push or build without an entry
 * changes nothing except the demand, which keeps counting. The demand is the sticky status, and the
 * capacity to retry with.
 *
 * Layout: if the layout is unknown to this header, nothing is added, counted in the demand, or
 * found.
 *
 * Correctness:
 *
 * - An entry belongs to its inserter until it is published. Under the bucket's lock, the inserter
 *   reads the head, writes it to the link of the new entry, and stores the entry as the head with
 *   release.
 * - A finder loads the head with acquire, so that entry is complete for it. Its link names an
 *   earlier head, stored by the previous holder of the lock. The inserter has acquired that
 *   holder's unlock. So the contents of that entry also happen before the finder's reads, and so on
 *   down the chain.
 * - A published entry is never written again until clear, so finders need no lock. A link leads to
 *   an entry published earlier, so a chain has no cycle.
 * - A pusher writes the head that it read to its link, and swaps with release if that is still the
 *   head. An index never becomes the head twice, so the link names the replaced head. Each
 *   compare-and-swap reads the value stored by the previous compare-and-swap, so all of them form a
 *   release sequence of the head. A finder that acquires the last synchronizes with all of them,
 *   and so with the publication of every entry further down.
 * - A builder gets the previous head from the exchange and writes it to its link afterwards. Until
 *   then the chain ends at its entry, so readers are excluded. The exchanges of a head have a
 *   single order, so each previous head gets into exactly one link, and the chain is complete when
 *   all builders have written their links. A push between two exchanges does not read the entry
 *   whose index it links to.
 */
#ifndef CUATOMIC_CHAINED_H
#define CUATOMIC_CHAINED_H

#include <cuatomic/context.h>
#include <cuatomic/hash.h>
#include <cuatomic/port.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/status.h>

/* The host's handle; opaque. */
struct cua_chained;

/* No entry: the end of a chain. */
#define CUA_CHAINED_NONE (~(uint64_t)0)

/* An entry of the pool. */
struct cua_chained_entry {
	uint64_t key, value;
	uint64_t next; /* index of the bucket's next entry, or CUA_CHAINED_NONE */
};
CUA_STATIC_ASSERT(sizeof(struct cua_chained_entry) == 24, "the entry is ABI");

/* The counter that claims entries of the pool. */
struct cua_chained_cursor {
	uint64_t demand; /* pairs offered since the last clear, stored or not */
};
CUA_STATIC_ASSERT(sizeof(struct cua_chained_cursor) == 8, "the cursor is ABI");

#define CUA_CHAINED_LAYOUT 1u

/* The table as the backend addresses it; kernels and host threads take it by value. */
struct cua_chained_view {
	uint64_t *heads;            /* index of each bucket's first entry */
	struct cua_spinlock *locks; /* a lock per bucket */
	struct cua_chained_entry *entries;
	struct cua_chained_cursor *cursor;
	uint64_t n_buckets;
	uint64_t capacity; /* entries in the pool */
	uint32_t layout;   /* CUA_CHAINED_LAYOUT */
	uint32_t reserved; /* 0 */
	uint64_t seed;     /* of the hash */
};
CUA_STATIC_ASSERT(sizeof(struct cua_chained_view) == 32 + 4 * sizeof(void *), "the view is ABI");

#define CUA__CHAINED_KNOWN(view) ((view)->layout == CUA_CHAINED_LAYOUT)

/* The bucket of a key. */
CUA_FORCE uint64_t cua_chained_bucket(const struct cua_chained_view *view, uint64_t key)
{
	return cua_hash_to_index(cua_hash_u64(key, view->seed), view->n_buckets);
}

/*
 * Publishes a chain of entries of this bucket, first to last. They belong to the caller and are
 * complete except for the link of the last entry.
 */
CUA_FN void cua__chained_splice(const struct cua_chained_view *view, uint64_t bucket,
				uint64_t first, uint64_t last)
{
	struct cua_spinlock *lock = &view->locks[bucket];
	uint64_t *head = &view->heads[bucket];
	struct cua_backoff backoff;
	int done = 0;

	cua_backoff_init(&backoff);
	while (!done) {
		/*
		 * the unlock is in the branch of the lock's holder, so that no lane waits for its
		 * own warp
		 */
		if (cua_spinlock_trylock_scope(lock, CUA_SCOPE_DEVICE)) {
			CUA_WRITE(view->entries[last].next,
				  cua_port_load_b64(head, CUA_RELAXED, CUA_SCOPE_DEVICE,
						    CUA_SPACE_GLOBAL));
			cua_port_store_b64(head, first, CUA_RELEASE, CUA_SCOPE_DEVICE,
					   CUA_SPACE_GLOBAL);
			cua_spinlock_unlock_scope(lock, CUA_SCOPE_DEVICE);
			done = 1;
		}
		if (!done)
			cua_backoff_wait(&backoff);
	}
}

/* Claims an entry, writes the pair to it and sets *index. Returns 0 if the pool is empty. */
CUA_FORCE int cua__chained_claim(const struct cua_chained_view *view, uint64_t key, uint64_t value,
				 uint64_t *index)
{
	if (!CUA__CHAINED_KNOWN(view))
		return 0;
	*index = cua_port_fetch_add_u64(&view->cursor->demand, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
					CUA_SPACE_GLOBAL);
	if (*index >= view->capacity)
		return 0;
	CUA_WRITE(view->entries[*index].key, key);
	CUA_WRITE(view->entries[*index].value, value);
	return 1;
}

/* Adds a pair; the key may be present. Returns 1, or 0 if the pool is full. */
CUA_FN int cua_chained_insert(const struct cua_chained_view *view, uint64_t key, uint64_t value)
{
	uint64_t index;

	if (!cua__chained_claim(view, key, value, &index))
		return 0;
	cua__chained_splice(view, cua_chained_bucket(view, key), index, index);
	return 1;
}

/*
 * As cua__chained_splice, without the lock: the last entry links to the current head, and a
 * compare-and-swap makes the first entry the head. If hundreds of lanes push to a bucket, most
 * attempts fail, and each costs a release. So the backoff limit is much longer than that of a lock.
 */
#define CUA__CHAINED_LONGEST_WAIT 65536u /* ns */
CUA_FN void cua__chained_swap(const struct cua_chained_view *view, uint64_t bucket, uint64_t first,
			      uint64_t last)
{
	uint64_t *head = &view->heads[bucket];
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	for (;;) {
		uint64_t before =
			cua_port_load_b64(head, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);

		CUA_WRITE(view->entries[last].next, before);
		if (cua_port_cas_b64(head, before, first, CUA_RELEASE, CUA_SCOPE_DEVICE,
				     CUA_SPACE_GLOBAL) == before)
			return;
		cua__backoff_wait_upto(&backoff, CUA__CHAINED_LONGEST_WAIT);
	}
}

/* As cua__chained_splice, by an exchange, while there are no readers. */
CUA_FORCE void cua__chained_exchange(const struct cua_chained_view *view, uint64_t bucket,
				     uint64_t first, uint64_t last)
{
	CUA_WRITE(view->entries[last].next,
		  cua_port_exchange_b64(&view->heads[bucket], first, CUA_RELAXED, CUA_SCOPE_DEVICE,
					CUA_SPACE_GLOBAL));
}

/* Adds a pair without a lock; the key may be present. Returns 1, or 0 if the pool is full. */
CUA_FN int cua_chained_push(const struct cua_chained_view *view, uint64_t key, uint64_t value)
{
	uint64_t index;

	if (!cua__chained_claim(view, key, value, &index))
		return 0;
	cua__chained_swap(view, cua_chained_bucket(view, key), index, index);
	return 1;
}

/*
 * Adds a pair while there are no readers, concurrently with any number of builds and pushes; the
 * key may be present. Returns 1, or 0 if the pool is full.
 */
CUA_FN int cua_chained_build(const struct cua_chained_view *view, uint64_t key, uint64_t value)
{
	uint64_t index;

	if (!cua__chained_claim(view, key, value, &index))
		return 0;
	cua__chained_exchange(view, cua_chained_bucket(view, key), index, index);
	return 1;
}

/* The number of lanes in votes below this lane. */
CUA_FORCE uint64_t cua__chained_rank(uint32_t votes, uint32_t lane)
{
	return cua_port_popc_u32(votes & (((uint32_t)1 << lane) - 1));
}

/*
 * Pushes the pair of each lane with a nonzero predicate. All lanes of mask call it together. A
 * single fetch-and-add claims all entries. Lanes whose keys share a bucket link their entries, and
 * their last lane swaps the head. Returns 1 if this lane's pair was stored, else 0.
 */
CUA_FN int cua_chained_push_warp(const struct cua_chained_view *view, uint32_t mask, int predicate,
				 uint64_t key, uint64_t value)
{
	uint32_t lane = cua_port_lane(), votes = cua_port_ballot(mask, predicate != 0), group,
		 above;
	uint64_t bucket = cua_chained_bucket(view, key), first = 0, index;
	int stored;

	if (votes == 0 || !CUA__CHAINED_KNOWN(view))
		return 0;
	if (lane == cua_port_ffs_u32(votes) - 1)
		first = cua_port_fetch_add_u64(&view->cursor->demand, cua_port_popc_u32(votes),
					       CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	first = cua_port_shuffle_u64(mask, first, cua_port_ffs_u32(votes) - 1);
	index = first + cua__chained_rank(votes, lane);
	stored = predicate && index < view->capacity;
	group = cua_port_ballot(mask, stored) & cua_port_match_any_u64(mask, bucket);
	above = group & ~(((uint32_t)2 << lane) - 1);
	if (stored) {
		CUA_WRITE(view->entries[index].key, key);
		CUA_WRITE(view->entries[index].value, value);
		if (above)
			CUA_WRITE(view->entries[index].next,
				  first + cua__chained_rank(votes, cua_port_ffs_u32(above) - 1));
	}
	/* orders the entries of the group before the release by its last lane */
	cua_port_sync_warp(mask);
	if (stored && !above)
		cua__chained_swap(view, bucket,
				  first + cua__chained_rank(votes, cua_port_ffs_u32(group) - 1),
				  index);
	/* after return, a lane finds its own pair */
	cua_port_sync_warp(mask);
	return stored;
}

/* The first entry with this key, from index on down the chain. */
CUA_FORCE uint64_t cua__chained_seek(const struct cua_chained_view *view, uint64_t index,
				     uint64_t key)
{
	while (index != CUA_CHAINED_NONE && CUA_READ(view->entries[index].key) != key)
		index = CUA_READ(view->entries[index].next);
	return index;
}

/*
 * Visits all entries of a key, last pushed first:
 *
 *   for (i = cua_chained_first(view, key); i != CUA_CHAINED_NONE; i = cua_chained_next(view, i))
 *           use(cua_chained_value(view, i));
 *
 * Entries pushed after the call of first are not visited.
 */
CUA_FN uint64_t cua_chained_first(const struct cua_chained_view *view, uint64_t key)
{
	if (!CUA__CHAINED_KNOWN(view))
		return CUA_CHAINED_NONE;
	return cua__chained_seek(view,
				 cua_port_load_b64(&view->heads[cua_chained_bucket(view, key)],
						   CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL),
				 key);
}

/* The next entry with the same key as the entry at index, or CUA_CHAINED_NONE. */
CUA_FN uint64_t cua_chained_next(const struct cua_chained_view *view, uint64_t index)
{
	if (!CUA__CHAINED_KNOWN(view))
		return CUA_CHAINED_NONE;
	return cua__chained_seek(view, CUA_READ(view->entries[index].next),
				 CUA_READ(view->entries[index].key));
}

/* The value of the entry at an index returned by first or next. */
CUA_FN uint64_t cua_chained_value(const struct cua_chained_view *view, uint64_t index)
{
	return CUA__CHAINED_KNOWN(view) ? CUA_READ(view->entries[index].value) : 0;
}

/* Returns 1 and sets *value to the last pushed value of this key, or returns 0. */
CUA_FN int cua_chained_find(const struct cua_chained_view *view, uint64_t key, uint64_t *value)
{
	uint64_t index = cua_chained_first(view, key);

	if (index == CUA_CHAINED_NONE)
		return 0;
	*value = cua_chained_value(view, index);
	return 1;
}

/* The number of pairs with this key. */
CUA_FN uint64_t cua_chained_count(const struct cua_chained_view *view, uint64_t key)
{
	uint64_t n = 0, index;

	for (index = cua_chained_first(view, key); index != CUA_CHAINED_NONE;
	     index = cua_chained_next(view, index))
		n++;
	return n;
}

/* Options of create; NULL means the defaults. */
struct cua_chained_options {
	size_t struct_size; /* sizeof(struct cua_chained_options), set by the caller */
	/* of the hash; 0, the default: drawn at random, see struct cua_hashmap_options */
	uint64_t seed;
};

#define CUA_CHAINED_OPTIONS_INIT CUA__SIZED_INIT(struct cua_chained_options)

/* Result of cua_chained_verify; the last four fields are 0 in a sound table. */
struct cua_chained_report {
	size_t struct_size;    /* sizeof(struct cua_chained_report), set by the caller */
	uint64_t entries;      /* in use: the smaller of demand and capacity */
	uint64_t reached;      /* distinct entries reached from the buckets */
	uint64_t misplaced;    /* reached from a bucket other than that of their key */
	uint64_t twice;        /* links to an entry to which a head or another link also leads */
	uint64_t lost;         /* entries not reached */
	uint64_t broken_links; /* links to an index without an entry in use */
};
#define CUA_CHAINED_REPORT_INIT CUA__SIZED_INIT(struct cua_chained_report)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates an empty table in the memory of the context's backend: 24 bytes per entry and 12 per
 * bucket. A lookup walks entries / buckets links on average, so use about as many buckets as
 * entries. If keys share a bucket, each lookup walks all of them. A secret seed keeps attackers
 * from choosing such keys, as long as the layout of the table stays hidden from them. Otherwise use
 * cuatomic/multimap.h, with its keyed hash. A capacity of 0 is allowed: such a table only counts.
 * Errors: NULL, VALUE (buckets = 0, an option), SIZE, NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_chained_create(struct cua_context *ctx,
					   const struct cua_chained_options *options,
					   uint64_t buckets, uint64_t capacity,
					   struct cua_chained **table);
/* Waits for the device and frees the table. NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_chained_destroy(struct cua_chained *table);

/* The view for use in kernels; valid until the table is destroyed. Errors: NULL. */
CUA_API enum cua_status cua_chained_get_view(const struct cua_chained *table,
					     struct cua_chained_view *view);

/* Removes all entries and the status FULL, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_chained_clear(struct cua_chained *table);

/*
 * Bulk calls, in stream order; may be captured. Arrays are backend memory of n elements each.
 *
 * - insert_n: adds the n pairs as inserts. Among values that a call adds for the same key, any may
 *   be "pushed last". When the pool is empty, the remaining pairs are counted in the demand and
 *   dropped.
 * - build_n: adds the n pairs as builds, several times as fast. The table need not be empty.
 * - find_n: values_out[i] gets the last pushed value of keys[i], and found[i] gets 1. If the key is
 *   absent, found[i] gets 0 and values_out[i] is unchanged. found may be NULL.
 * - count_n: counts_out[i] gets the number of pairs with keys[i].
 *
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another argument or the
 * table).
 */
CUA_API enum cua_status cua_chained_insert_n(struct cua_chained *table, size_t n,
					     const uint64_t *keys, const uint64_t *values);
CUA_API enum cua_status cua_chained_build_n(struct cua_chained *table, size_t n,
					    const uint64_t *keys, const uint64_t *values);
CUA_API enum cua_status cua_chained_find_n(struct cua_chained *table, size_t n,
					   const uint64_t *keys, uint64_t *values_out,
					   uint8_t *found);
CUA_API enum cua_status cua_chained_count_n(struct cua_chained *table, size_t n,
					    const uint64_t *keys, uint64_t *counts_out);

/*
 * Retrieves max values of a key in no particular order to values_out (backend memory; may be NULL
 * if max is 0). *n gets the number of all its values, even above max; n may be in backend memory
 * (see context.h).
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP, CAPTURE, WORKSPACE.
 */
CUA_API enum cua_status cua_chained_values(struct cua_chained *table, uint64_t key, uint64_t max,
					   uint64_t *values_out, uint64_t *n);

/*
 * demand: the number of pairs offered since the last clear. size: the number of them with an entry,
 * which is the smaller of demand and capacity. Each result may be in backend memory (see
 * context.h).
 * Errors: NULL, ALIGNMENT, CAPTURE, MEMORY_KIND, OVERLAP (the result lies in the table).
 */
CUA_API enum cua_status cua_chained_demand(struct cua_chained *table, uint64_t *demand);
CUA_API enum cua_status cua_chained_size(struct cua_chained *table, uint64_t *size);

/*
 * CUA_ERROR_FULL if more pairs were offered than the pool has entries, until the next clear; else
 * CUA_OK. Waits for the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_chained_status(struct cua_chained *table);

/*
 * Copies the table, with its seed, to the memory of another context, also of the other backend.
 * Waits for both streams.
 * Errors: NULL, NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_chained_copy(struct cua_chained *table, struct cua_context *other,
					 struct cua_chained **copy);

/*
 * Checks that every entry is in the chain of its key's bucket exactly once. It terminates for any
 * contents of the memory; in a damaged table the counts indicate the kind of damage and may differ
 * between two calls. Waits for the stream, and allocates a bit per entry and about 24 bytes per
 * bucket temporarily. CUA_ERROR_CORRUPT: the table is damaged; *report (host memory, may be NULL)
 * is set in this case, too.
 * Other errors: NULL, VALUE (struct_size), NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_chained_verify(struct cua_chained *table,
					   struct cua_chained_report *report);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_CHAINED_H */
