/* SPDX-License-Identifier: MIT */
/*
 * A chained hash table: buckets, a pool of entries made in advance, a lock a bucket. Keys and values are
 * 64-bit; a key may be there many times. There are three ways to add a pair:
 *
 *   insert  under the lock of its bucket, as the textbook has it;
 *   push    without the lock, by a compare-and-swap of the bucket's head, while others may read;
 *   build   by an exchange of the head, which never has to be tried again, while nobody reads.
 *
 * Source: the hash table of Sanders and Kandrot, CUDA by Example, appendix A.3. Links are indexes into
 * the pool instead of pointers, so that a copy of the table is a table; entries are written before the
 * lock is taken, and a bulk insert links a whole group of entries of one bucket under one lock. The push is
 * that of Treiber's stack, 1986; to join by an exchange and link afterwards, as build does, is how Mellor-Crummey
 * and Scott's queue lock of 1991 begins.
 *
 * Synchronization: X means that the caller must order the two calls, - that the table does it.
 *
 *               insert  push  build  find  count  first/next  clear  bulk count, values, size, verify, copy
 *     insert      -      X      X     -      -        -         X                 X
 *     push        X      -      -     -      -        -         X                 X
 *     build       X      -      -     X      X        X         X                 X
 *     find        -      -      X     -      -        -         X                 -
 *     count       -      -      X     -      -        -         X                 -
 *     first/next  -      -      X     -      -        -         X                 -
 *     clear       X      X      X     X      X        X         X                 X
 *
 *     The bulk calls insert_n, build_n and find_n are many inserts, builds and finds. The host calls of one
 *     context are ordered by its stream; in a kernel, a barrier of all who build and read orders them.
 *
 * Scope: the device. On the host, all threads.
 * Memory order: a find (count, first) that sees an entry acquires what the inserter or pusher of that entry did
 *   before. build publishes nothing: who reads later was ordered behind it by the caller.
 * Progress: insert is blocking (a spinlock a bucket, held for two stores); push is lock-free, since a swap fails
 *   only where another one of its bucket succeeded; build is wait-free where the machine has fetch-and-add and
 *   exchange. find, count, first and next are wait-free and end after as many steps as the chain had entries
 *   when they began. All may be called by any lane of a diverged warp; push_warp is called by all lanes of its mask
 *   together.
 * Full: the pool hands out its entries by fetch-and-add. An insert, push or build that gets none changes nothing
 *   but the demand, which goes on counting; that is the sticky status, and tells the capacity to retry with.
 * Layout: in a table of a layout that this header does not know nothing is added, counted in the demand, or found.
 * Argument: an entry belongs to its inserter until it is published. Under the bucket's lock the inserter
 *   reads the head, writes it into the new entry's link and stores the entry as the head with release.
 *   A finder loads the head with acquire, so that entry is complete for it. Its link names an entry that was
 *   the head before: stored there by the former holder of the lock, whose unlock the inserter
 *   acquired; so its contents, too, happen before the finder's reads, and so on down the chain. A published
 *   entry is never written again (until clear), so finders need no lock; and a link leads to
 *   an entry published earlier, so that a chain has no cycle.
 *   A pusher writes the head that it has seen into its link and swaps with release, if that still is the head.
 *   An index is never the head twice, so the link names what the swap replaced. Each swap reads what
 *   the one before has stored: all swaps of a head are one release sequence, and a finder that acquires the last one
 *   synchronizes with all of them, so with those that published the entries further down.
 *   A builder gets the former head from the exchange and writes it into its link afterwards, so that the chain ends
 *   at its entry for a moment: that is why nobody may read. The head passes from one to the next in one order, so
 *   each former head gets into one link, and when all have written theirs the chain is whole. A push
 *   between two exchanges does not read the entry whose index it links to.
 */
#ifndef CUATOMIC_CHAINED_H
#define CUATOMIC_CHAINED_H

#include <cuatomic/context.h>
#include <cuatomic/hash.h>
#include <cuatomic/port.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/status.h>

/* The handle of the host; only the library knows what is in it. */
struct cua_chained;

/* No entry: the end of a chain. */
#define CUA_CHAINED_NONE (~(uint64_t)0)

/* An entry of the pool. */
struct cua_chained_entry {
	uint64_t key, value;
	uint64_t next; /* index of the next entry of the bucket, or CUA_CHAINED_NONE */
};
CUA_STATIC_ASSERT(sizeof(struct cua_chained_entry) == 24, "the entry is ABI");

/* The pool's cursor. */
struct cua_chained_cursor {
	uint64_t demand; /* pairs to add since the last clear, stored or not */
};
CUA_STATIC_ASSERT(sizeof(struct cua_chained_cursor) == 8, "the cursor is ABI");

#define CUA_CHAINED_LAYOUT 1u

/* What a kernel or a host thread gets by value: the table as the backend addresses it. */
struct cua_chained_view {
	uint64_t *heads;            /* index of each bucket's first entry */
	struct cua_spinlock *locks; /* one a bucket */
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
 * Publishes a chain of entries, first to last, that belong to the caller, are complete but for the
 * last one's link, and are all of this bucket.
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
		/* the unlock is in the branch of the winner, so that a lane never waits for its own warp */
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

/* Makes *index an entry with this pair, which is in no chain yet. Returns 0 where there is none. */
CUA_FORCE int cua__chained_take(const struct cua_chained_view *view, uint64_t key, uint64_t value,
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

/* Adds a pair; the key may be there already. Returns 1, or 0 where the pool is full. */
CUA_FN int cua_chained_insert(const struct cua_chained_view *view, uint64_t key, uint64_t value)
{
	uint64_t index;

	if (!cua__chained_take(view, key, value, &index))
		return 0;
	cua__chained_splice(view, cua_chained_bucket(view, key), index, index);
	return 1;
}

/*
 * The same without the lock: the last entry gets the head that was there, and one compare-and-swap makes the
 * first entry the head, if that one still is. Where hundreds push to one bucket, most swaps fail, and each costs
 * a release; so the waits between two tries may become much longer than those for a lock.
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

/* And by an exchange, while nobody reads. */
CUA_FORCE void cua__chained_exchange(const struct cua_chained_view *view, uint64_t bucket,
				     uint64_t first, uint64_t last)
{
	CUA_WRITE(view->entries[last].next,
		  cua_port_exchange_b64(&view->heads[bucket], first, CUA_RELAXED, CUA_SCOPE_DEVICE,
					CUA_SPACE_GLOBAL));
}

/* Adds a pair without a lock; the key may be there already. Returns 1, or 0 where the pool is full. */
CUA_FN int cua_chained_push(const struct cua_chained_view *view, uint64_t key, uint64_t value)
{
	uint64_t index;

	if (!cua__chained_take(view, key, value, &index))
		return 0;
	cua__chained_swap(view, cua_chained_bucket(view, key), index, index);
	return 1;
}

/*
 * Adds a pair while nobody reads, however many add pairs to its bucket; the key may be there already. Returns 1,
 * or 0 where the pool is full.
 */
CUA_FN int cua_chained_build(const struct cua_chained_view *view, uint64_t key, uint64_t value)
{
	uint64_t index;

	if (!cua__chained_take(view, key, value, &index))
		return 0;
	cua__chained_exchange(view, cua_chained_bucket(view, key), index, index);
	return 1;
}

/* How many lanes of votes are below this one. */
CUA_FORCE uint64_t cua__chained_rank(uint32_t votes, uint32_t lane)
{
	return cua_port_popc_u32(votes & (((uint32_t)1 << lane) - 1));
}

/*
 * For the lanes of mask, which all call this together: pushes the pair of each lane whose predicate is
 * not 0. One fetch-and-add takes all entries, and lanes whose keys have one bucket link their entries before
 * one of them swaps the head. Returns 1 if this lane's pair was stored, else 0.
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
	/* makes the entries of the group part of what its last lane releases */
	cua_port_sync_warp(mask);
	if (stored && !above)
		cua__chained_swap(view, bucket,
				  first + cua__chained_rank(votes, cua_port_ffs_u32(group) - 1),
				  index);
	/* a lane that returns finds its own pair */
	cua_port_sync_warp(mask);
	return stored;
}

/* The first entry with this key from index on, down the chain. */
CUA_FORCE uint64_t cua__chained_seek(const struct cua_chained_view *view, uint64_t index,
				     uint64_t key)
{
	while (index != CUA_CHAINED_NONE && CUA_READ(view->entries[index].key) != key)
		index = CUA_READ(view->entries[index].next);
	return index;
}

/*
 * All entries of a key, the one pushed last first:
 *
 *   for (i = cua_chained_first(view, key); i != CUA_CHAINED_NONE; i = cua_chained_next(view, i))
 *           use(cua_chained_value(view, i));
 *
 * Entries pushed after the call of first are not among them.
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

/* The value of the entry at an index that first or next gave. */
CUA_FN uint64_t cua_chained_value(const struct cua_chained_view *view, uint64_t index)
{
	return CUA__CHAINED_KNOWN(view) ? CUA_READ(view->entries[index].value) : 0;
}

/* Returns 1 and sets *value to the value of this key that was pushed last, or returns 0. */
CUA_FN int cua_chained_find(const struct cua_chained_view *view, uint64_t key, uint64_t *value)
{
	uint64_t index = cua_chained_first(view, key);

	if (index == CUA_CHAINED_NONE)
		return 0;
	*value = cua_chained_value(view, index);
	return 1;
}

/* How many pairs have this key. */
CUA_FN uint64_t cua_chained_count(const struct cua_chained_view *view, uint64_t key)
{
	uint64_t n = 0, index;

	for (index = cua_chained_first(view, key); index != CUA_CHAINED_NONE;
	     index = cua_chained_next(view, index))
		n++;
	return n;
}

/* What a table is made with; NULL in its place means the defaults. */
struct cua_chained_options {
	size_t struct_size; /* sizeof(struct cua_chained_options), set by the caller */
	uint64_t
		seed; /* of the hash; 0, the default: drawn at random, see struct cua_hashmap_options */
};

#define CUA_CHAINED_OPTIONS_INIT CUA__SIZED_INIT(struct cua_chained_options)

/* What cua_chained_verify found; all of the last four are 0 in a sound table. */
struct cua_chained_report {
	size_t struct_size;    /* sizeof(struct cua_chained_report), set by the caller */
	uint64_t entries;      /* in use: the smaller of demand and capacity */
	uint64_t reached;      /* different entries reached from the buckets */
	uint64_t misplaced;    /* reached in the chain of a bucket that is not their key's */
	uint64_t twice;        /* links to an entry that another link leads to as well */
	uint64_t lost;         /* entries not reached */
	uint64_t broken_links; /* links to an index that is no entry in use */
};
#define CUA_CHAINED_REPORT_INIT CUA__SIZED_INIT(struct cua_chained_report)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An empty table of so many buckets and places for so many entries, in the memory of the context's
 * backend: 24 bytes an entry and 12 a bucket. Lookups walk entries / buckets links on average, so buckets
 * about as many as entries make it quick. Keys of one bucket make each lookup walk all of them: a seed that nobody
 * knows keeps others from choosing such keys, as far as the layout of the table stays hidden from them; where it
 * may not, cuatomic/multimap.h has a keyed hash. A capacity of 0 is allowed: such a table only counts.
 * Errors: NULL, VALUE (buckets = 0, an option), SIZE, NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_chained_create(struct cua_context *ctx,
					   const struct cua_chained_options *options,
					   uint64_t buckets, uint64_t capacity,
					   struct cua_chained **table);
/* Frees the table once the device has finished with it; NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_chained_destroy(struct cua_chained *table);

/* What kernels use the table through; valid until the table is destroyed. Errors: NULL. */
CUA_API enum cua_status cua_chained_view(const struct cua_chained *table,
					 struct cua_chained_view *view);

/* Removes all entries and the status FULL, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_chained_clear(struct cua_chained *table);

/*
 * Many at once, in stream order; may be captured. Arrays are backend memory of n elements each.
 *
 * insert_n: adds the n pairs, as inserts do. Of the values that one call adds for one key, any may be the one
 *   "pushed last". When the pool runs out the rest is counted in the demand and dropped.
 * build_n: the same, as builds add them: several times as fast. The table need not be empty.
 * find_n: values_out[i] gets the value of keys[i] that was pushed last and found[i] 1; where there is none
 *   found[i] gets 0 and values_out[i] stays as it is. found may be NULL.
 * count_n: counts_out[i] gets the number of pairs with keys[i].
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another argument or the table).
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
 * The values of one key in no particular order: the first max of them to values_out (backend memory; may
 * be NULL if max is 0), and how many there are, also when more than max, to *n. The result *n may be in
 * backend memory: see context.h.
 * Errors: NULL, SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP, CAPTURE, WORKSPACE.
 */
CUA_API enum cua_status cua_chained_values(struct cua_chained *table, uint64_t key, uint64_t max,
					   uint64_t *values_out, uint64_t *n);

/*
 * demand: how many pairs were to be added since the last clear. size: how many of them have an entry, which
 * is the smaller of demand and capacity. Each result may be in backend memory: see context.h.
 * Errors: NULL, ALIGNMENT, CAPTURE, MEMORY_KIND, OVERLAP (the result lies in the table).
 */
CUA_API enum cua_status cua_chained_demand(struct cua_chained *table, uint64_t *demand);
CUA_API enum cua_status cua_chained_size(struct cua_chained *table, uint64_t *size);

/*
 * CUA_ERROR_FULL if there were more pairs than the pool has entries, until the next clear; else CUA_OK.
 * Waits for the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_chained_status(struct cua_chained *table);

/*
 * The same table, with its seed, in the memory of another context, which may be of the other backend. Waits for both
 * streams. Errors: NULL, NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_chained_copy(struct cua_chained *table, struct cua_context *other,
					 struct cua_chained **copy);

/*
 * Checks that every entry is in the chain of its key's bucket, that none is lost and none there twice.
 * Ends whatever the memory contains; in a damaged table the figures say where to look and may differ
 * between two calls. Waits for the stream, and allocates a bit an entry and some 24 bytes a bucket while
 * it runs. CUA_ERROR_CORRUPT: something is wrong; *report (host memory, may be NULL) is set then, too.
 * Other errors: NULL, VALUE (struct_size), NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_chained_verify(struct cua_chained *table,
					   struct cua_chained_report *report);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_CHAINED_H */
