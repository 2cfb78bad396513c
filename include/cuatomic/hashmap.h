/* SPDX-License-Identifier: MIT */
/*
 * A hash map of unique keys. Keys have 4, 8 or 16 bytes; values have 4, 8 or 16 bytes, or are
 * absent (a set). All bit patterns are allowed for both.
 *
 * Source: open addressing in buckets of 64 or 128 bytes. In the word layout a pair is a single
 * atomic word. In the state layout a slot has a state word, a key and a value. The sizes of key and
 * value and the machine choose the layout. detail/hashmap_word.h and detail/hashmap_state.h have the
 * layouts, their sources and the correctness arguments; doc/hashmap.md introduces both.
 *
 * Synchronization of two calls on the same map. X: the caller must order the calls. -: the calls
 * may run concurrently.
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
 *     insert includes insert_or_get, update includes exchange and compare_exchange. An execute is an
 *     insert, a find or an erase. retrieve includes merge from a map, statistics, copy_to_host,
 *     for_each and save. A merge into a map is many inserts, assigns or updates. resize is like
 *     clear, and so are bulk calls that may grow the map.
 *
 *     Any mix of insert, assign, update, find and erase may run in a kernel, also on the same key.
 *     Each call is linearizable: if a call happens before another call, it also takes effect before
 *     it. Calls on different keys by lanes that do not synchronize have no common order. For example, each of
 *     two lanes inserts a key and then looks up the other lane's key: both lookups may miss, unless
 *     each lane executes cua_port_fence(CUA_SEQ_CST, CUA_SCOPE_DEVICE) between its two calls.
 *     cuatomic_memory_order(7) describes the fence.
 *
 *     The bulk calls insert_n, ... are many such calls. The stream orders the host calls of a
 *     context.
 *
 *     at, size and retrieve are memory-safe while a writer runs, but their result may match no
 *     moment of the map. If retrieve returns only some of the pairs sorted, a pair may then appear
 *     twice.
 *
 * Scope: the device. On the host, all threads.
 * Memory order: a find that returns a value acquires all that its writer did before the write, and
 *   what earlier writers of the value did since the key was inserted. The stream orders the
 *   elements of bulk calls with other work.
 * Progress:
 *                                        word layout                   state layout
 *     find, contains, a miss or hit      wait-free; on the host        wait-free; find of a value
 *                                        lock-free for 128 bits        of 16 bytes: blocking
 *     insert of a present key            as find                       as find
 *     insert of an absent key            lock-free until its home      blocking
 *                                        bucket has been full, then
 *                                        blocking
 *     assign, update of a present key    lock-free                     blocking
 *     erase of an absent key             wait-free                     wait-free
 *     erase of a present key             lock-free                     blocking
 *
 *   A blocking call waits in two cases. It waits for the spinlock of the key's home bucket; a lane
 *   holds a single such lock at a time. And if it finds no free slot, it waits until all inserts in
 *   progress have been counted; a bulk call on the host counts when a thread has finished its
 *   share. Any lane of a diverged warp may make any call. In the word layout, lanes of a warp that
 *   are at the same instruction wait for each other in five cases: for a read of their home
 *   buckets, which a whole warp makes up to 3 times as fast as a warp that has diverged; for an
 *   addition to the counts; for an update in a map that never erases; in a pass of an execute, which
 *   tries once for a lock; and if their CAS of a value failed at the same time. Then they retry
 *   together, until each has succeeded or has found that its key is gone. None of these lanes waits
 *   for another lane meanwhile.
 *
 * Full: FULL is returned only if all slots held a key at a single moment of the call. In a map with
 *   max_probes it has a weaker meaning. The key was absent at some moment of the call, and each
 *   slot that it may have was taken, by a key or by an insert in progress, at some moment of the
 *   call. That insert may be of the same key. In both cases the map is unchanged. The pair is
 *   counted as rejected, and kept if the map has options.rejects. If many lanes compete for the
 *   last slot, exactly one lane gets it. Bulk calls on a GPU may combine equal keys first. Those that
 *   are combined count as one pair; an update has the combined value of all of them. A key may have
 *   several such pairs.
 *
 *   Argument. The map has counts of inserts and of erases (struct cua_hashmap_counts). An insert
 *   counts itself after its key is stored. An erase counts itself before it frees its slot, and
 *   undoes its count if another erase was faster. A lane that finds no free slot adds up first all
 *   counts of inserts, then all counts of erases. Consider the moment between the two sums. Each
 *   insert in the first sum has stored its key, and each slot freed by then is in the second sum. So
 *   the map holds at least as many keys as the difference of the sums. If the difference is the
 *   number of slots, all slots hold a key at that moment. If it is less, an operation is in
 *   progress: the lane releases its lock and retries.
 *
 * Hostile keys: without max_probes an operation visits up to all buckets. Random keys need few, but
 *   an attacker who knows the map's seed, or can watch its layout, can choose keys that all have
 *   the same home. The default is a seed that the map draws at random. It hides the layout from an
 *   attacker who only chooses keys. CUA_HASHMAP_HASH_KEYED hides it also from an attacker who sees
 *   the layout. options.max_probes bounds the work of an operation for any keys.
 */
#ifndef CUATOMIC_HASHMAP_H
#define CUATOMIC_HASHMAP_H

#include <cuatomic/context.h>
#include <cuatomic/detail/hashmap_common.h>
#include <cuatomic/detail/hashmap_execute.h>
#include <cuatomic/detail/hashmap_state.h>
#include <cuatomic/detail/hashmap_word.h>

/* The host's handle of a map; opaque. */
struct cua_hashmap;

/* ---- from the host ---- */

/* Options of a map. NULL instead of a pointer to them means the defaults. */
struct cua_hashmap_options {
	size_t struct_size; /* sizeof(struct cua_hashmap_options), set by the caller */
	/*
	 * The seed of the hash. 0, the default: the map draws a random seed, so its layout differs
	 * from run to run, unless the environment variable CUATOMIC_HASH_SEED names a seed. Any
	 * other number, for example CUA_HASH_SEED_FIXED, is the seed.
	 */
	uint64_t seed;
	/* CUA_HASHMAP_HASH_KEYED: upper half of the secret; random if this and seed are 0 */
	uint64_t seed_high;
	uint64_t rejects; /* the number of rejected pairs to keep; 0 by default */
	/*
	 * The limit in bytes of all slots, rejected pairs and counts that create, load, a resize or
	 * growth may allocate. 0: no limit. A call that would need more fails with SIZE.
	 */
	uint64_t max_bytes;
	uint32_t grow_percent; /* 0: bulk calls never grow the map. 1 to 95: see resize */
	uint32_t own_hash;     /* 1: only the user's kernels hash and compare keys */
	/* 1: pairs never are words of 128 bits, so that code for any GPU can use the map */
	uint32_t portable;
	uint32_t hash; /* an enum cua_hashmap_hash; with own_hash, SEEDED */
	/*
	 * 32 to 128: the most buckets of 64 or 128 bytes that an operation visits, for any keys.
	 * The state layout adds a bucket. A key that finds no slot in them is FULL, though other
	 * slots may be free. 0, the default: no bound. doc/hashmap.md shows how many buckets random
	 * keys need: with 128, none of four million keys was rejected at 80 % of the slots.
	 */
	uint32_t max_probes;
	/*
	 * 1: the map never erases a key, so a slot keeps its key. erase_n fails with UNSUPPORTED, and
	 * the erases of a lane or a quad return 0. clear and build_n still empty the map. In maps of
	 * 32-bit keys and values, a lane that updates a present value by an enum cua_update then takes
	 * a single atomic operation (on the host, MIN and MAX are still loops of CAS), instead of a CAS
	 * that other lanes can make fail.
	 */
	uint32_t no_erase;
};
#define CUA_HASHMAP_OPTIONS_INIT CUA__SIZED_INIT(struct cua_hashmap_options)

#define CUA_HASHMAP_LEAST_MAX_PROBES 32u
#define CUA_HASHMAP_MOST_MAX_PROBES 128u

/* The order of retrieved pairs. */
enum cua_hashmap_order {
	CUA_HASHMAP_ANY = 0,
	CUA_HASHMAP_SORTED = 1 /* by key, as an unsigned number: a fixed order for the same pairs */
};

/* The value of a key that both maps of a merge have. */
enum cua_hashmap_merge_rule {
	CUA_HASHMAP_KEEP = 0, /* its value in the destination */
	CUA_HASHMAP_ADD = CUA_UPDATE_ADD,
	CUA_HASHMAP_MIN = CUA_UPDATE_MIN,
	CUA_HASHMAP_MAX = CUA_UPDATE_MAX,
	CUA_HASHMAP_AND = CUA_UPDATE_AND,
	CUA_HASHMAP_OR = CUA_UPDATE_OR,
	CUA_HASHMAP_XOR = CUA_UPDATE_XOR,
	CUA_HASHMAP_REPLACE = 16 /* its value in the source */
};

/* The result of cua_hashmap_get_statistics. */
#define CUA_HASHMAP_PROBES 32
struct cua_hashmap_statistics {
	size_t struct_size; /* sizeof(struct cua_hashmap_statistics), set by the caller */
	uint64_t keys;
	uint64_t slots;
	/* keys + free + erased is slots, plus up to 2 for pairs in reserved slots */
	uint64_t free; /* words: slots that never held a key; states: slots without a key */
	/* words: slots of erased keys, which inserts claim under a lock, but which end no search */
	uint64_t erased;
	uint64_t rejected;
	uint64_t worst_bucket; /* the largest number of keys with the same home */
	/* probes[i]: keys at distance i from their home; the last element: or farther */
	uint64_t probes[CUA_HASHMAP_PROBES];
	double load; /* keys / slots */
};
#define CUA_HASHMAP_STATISTICS_INIT CUA__SIZED_INIT(struct cua_hashmap_statistics)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates an empty map in the memory of the context's backend. Any `capacity` different keys are
 * certain to fit, unless options.max_probes is set.
 *
 * Slots: `capacity`, rounded up to whole buckets. The number of buckets of words is also rounded
 * up, to a power of two below 512 and to a multiple of 512 above. Bytes a slot: 9.2 for pairs of up
 * to 8 bytes, 21.4 for words of 128 bits, else 18.3 to 42.7. Probes become long above 90 % of the
 * slots: a good capacity is 1.25 to 2 times the expected number of keys.
 *
 * Types: U32, U64 and U128 stand for all types of 4, 8 and 16 bytes. The value type NONE makes a
 * set; its calls ignore arrays of values, which may be NULL. Pairs of up to 8 bytes are words.
 * Pairs of 12 and 16 bytes are words if the machine has a CAS of 128 bits: GPUs of compute
 * capability 9.0, x86-64 and 64-bit Arm hosts. Kernels that use such a map must be compiled for 9.0
 * with CUDA 12.4 or newer. In other kernels writes return UNSUPPORTED, and finds find nothing;
 * options.portable makes maps for them.
 * Errors: NULL, TYPE, VALUE (capacity = 0, an option), SIZE (with slots of words also from 2^32
 * buckets on), NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_hashmap_create(struct cua_context *ctx,
					   const struct cua_hashmap_options *options,
					   enum cua_type key_type, enum cua_type value_type,
					   uint64_t capacity, struct cua_hashmap **map);
/* Frees the map after the device has finished with it. NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_hashmap_destroy(struct cua_hashmap *map);

/*
 * Gets the view for kernels, valid until the map is resized, grows or is destroyed.
 * Errors: NULL.
 */
CUA_API enum cua_status cua_hashmap_get_view(const struct cua_hashmap *map,
					     struct cua_hashmap_view *view);
/* Gets the number of slots, which is at least the capacity of create or resize. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_capacity(const struct cua_hashmap *map, uint64_t *capacity);

/* Clears all keys, the status FULL and the rejected pairs, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_hashmap_clear(struct cua_hashmap *map);

/*
 * Bulk calls, in stream order; they may be captured. Arrays are backend memory of n elements each,
 * keys and values of the map's types. Keys may be equal: each element is an operation of its own,
 * in no particular order. If a call assigns several values to a key, any of them may remain.
 *
 * insert_n, assign_n, update_n: results[i], if results is not NULL, gets the enum
 *   cua_hashmap_result. Keys that find no slot are FULL in results, change nothing, and make the
 *   status FULL.
 *   On a GPU of compute capability 8.0 or newer, update_n and update_value_n of 2^20 pairs and more,
 *   without results and in a map without max_probes, take workspace to combine equal keys first:
 *   see build_workspace.
 * update_value_n: update_n with the same operand for every key. value points to a value of the
 *   map's type in host memory, at any address, and is not NULL even for n = 0. It is read before
 *   the call returns, also in a capture: a graph keeps its value.
 * insert_or_get_n: values_out[i] gets the key's value after the insert. A key that is FULL leaves
 *   it unchanged. values_out may be `values`.
 * exchange_n: values_out[i] gets the key's former value. A key that was absent or is FULL leaves it
 *   unchanged. values_out may be `values`.
 * compare_exchange_n: if keys[i] has the bits of expected[i] as value, the value becomes
 *   desired[i]: EXISTS. If it has another value, expected[i] gets that: DIFFERS. Else ABSENT. No
 *   key is inserted. expected may be `desired`.
 * build_n: clears the map and inserts these pairs. Of equal keys any pair remains, the others are
 *   EXISTS.
 * find_n: for a present key, values_out[i] gets the value and found[i] gets 1. For an absent key,
 *   found[i] gets 0 and values_out[i] is unchanged. found may be NULL.
 * contains_n: found[i] gets 1 or 0.
 * erase_n: found[i], if found is not NULL, gets 1 if this element erased its key, else 0.
 * Errors: NULL, VALUE (unknown op), TYPE (a set, for calls that assign, update, exchange or return
 * values), SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP (an output with another array or the map),
 * UNSUPPORTED (own_hash; erase_n of a map with no_erase), WORKSPACE; with grow_percent also
 * NO_MEMORY and, for calls that insert, CAPTURE.
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
 * Gets the largest workspace in bytes that build_n, and insert_n, update_n and update_value_n
 * without results, use for n pairs and the map in its present size: 1 to 36 bytes a pair if they
 * sort many pairs first on a GPU; updates sort at most 2^27 pairs at a time. If this workspace is not
 * available, or in a capture only by waiting, they work more slowly without it. A map that grows in
 * the call may use more.
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
 * Gets the number of keys, without a pass over the map. The result may be in backend memory: see
 * context.h.
 * Errors: NULL, ALIGNMENT, CAPTURE, MEMORY_KIND, OVERLAP (the result lies in the map), WORKSPACE.
 */
CUA_API enum cua_status cua_hashmap_size(struct cua_hashmap *map, uint64_t *size);

/*
 * Copies pairs to keys_out and values_out, at most max of them, and sets *n to the number of pairs
 * in the map, which may exceed max. The arrays are backend memory; they may be NULL if max is 0,
 * and values_out also for a set. *n may be in backend memory: see context.h. May be captured.
 *
 * ANY: in any order, with a single pass over the map. If there are more than max pairs, any of them
 * are copied. SORTED: sorted by key. If there are more than max pairs, those with the least keys
 * are copied. Their selection takes up to a further pass over the map for each byte of a key, and a
 * pass to copy them.
 *
 * Source of the sort: LSD radix sort (Knuth, vol. 3, 5.2.5) by bytes. A byte that is equal in all
 * keys costs nothing. The workspace is then slightly larger than the arrays. Radix selection finds
 * the least keys, from their highest byte on.
 * Errors: NULL, VALUE (order), SIZE, ALIGNMENT, MEMORY_KIND, OVERLAP, CAPTURE, WORKSPACE,
 * NO_MEMORY.
 */
CUA_API enum cua_status cua_hashmap_retrieve(struct cua_hashmap *map, enum cua_hashmap_order order,
					     uint64_t max, void *keys_out, void *values_out,
					     uint64_t *n);

/* Gets the largest workspace of retrieve with these arguments. Errors: NULL, VALUE, SIZE. */
CUA_API enum cua_status cua_hashmap_retrieve_workspace(const struct cua_hashmap *map,
						       enum cua_hashmap_order order, uint64_t max,
						       size_t *bytes);

/*
 * Copies the rejected pairs since the last clear that were kept, like retrieve. Sets *n to the
 * number of all rejected pairs, of which the first options.rejects are kept.
 * Errors: as retrieve.
 */
CUA_API enum cua_status cua_hashmap_rejected(struct cua_hashmap *map, uint64_t max, void *keys_out,
					     void *values_out, uint64_t *n);

/*
 * Resizes the map to room for `capacity` keys, more or fewer than before. All pairs move to new
 * memory, which exists for a while together with the old memory. Views, and graphs captured of the
 * map's calls, become invalid. Rejected pairs and the status remain. Waits for the stream.
 * Errors, which leave the map unchanged: NULL, VALUE (capacity = 0), SIZE (too large, below the
 * number of keys, or with max_probes a key finds no slot), NO_MEMORY, CAPTURE, UNSUPPORTED
 * (own_hash).
 *
 * With options.grow_percent, the bulk calls that insert keys resize the map to at least twice its
 * slots before more than that share of the slots could hold keys. They work in batches of at least
 * 65536 elements, and read between batches how many keys were new. Such a call waits for the
 * stream. If it fails, the elements that it has not processed are FULL in results.
 */
CUA_API enum cua_status cua_hashmap_resize(struct cua_hashmap *map, uint64_t capacity);

/*
 * Inserts all pairs of `from`, which is unchanged, into the map. `how` chooses the value of a key
 * that both maps have. The map does not grow: pairs that find no slot are rejected, as by insert_n.
 * In stream order; may be captured.
 * Errors: NULL, VALUE (how), CONTEXT (maps of two contexts), TYPE (sizes that differ; for sets,
 * other than KEEP), OVERLAP (the same map twice), UNSUPPORTED (own_hash).
 */
CUA_API enum cua_status cua_hashmap_merge(struct cua_hashmap *map, const struct cua_hashmap *from,
					  enum cua_hashmap_merge_rule how);

/*
 * Collects statistics, with a single pass over the map and 4 bytes of workspace a bucket. Waits for
 * the stream.
 * Errors: NULL, VALUE (struct_size), SIZE, UNSUPPORTED (own_hash), CAPTURE, NO_MEMORY.
 */
CUA_API enum cua_status cua_hashmap_get_statistics(struct cua_hashmap *map,
						   struct cua_hashmap_statistics *statistics);

/*
 * Copies pairs in any order to ordinary memory of any alignment, at most max of them, and sets *n
 * to the number of pairs in the map. keys and values may be NULL as in retrieve. Waits for the
 * stream.
 * Errors: NULL, SIZE, OVERLAP (of keys, values, *n and the map's memory), CAPTURE, NO_MEMORY.
 */
CUA_API enum cua_status cua_hashmap_copy_to_host(struct cua_hashmap *map, uint64_t max, void *keys,
						 void *values, uint64_t *n);

/*
 * Calls fn(arg, key, value) for each pair, in any order, on the calling thread, until fn returns
 * nonzero. key and value point to copies of any alignment, which are valid until fn returns. value
 * is NULL for a set. fn may write to the map, and may or may not see its own writes in later calls.
 * It must not resize, grow or destroy the map. Waits for the stream.
 * Errors: NULL, CAPTURE, NO_MEMORY.
 */
CUA_API enum cua_status
cua_hashmap_for_each(struct cua_hashmap *map,
		     int (*fn)(void *arg, const void *key, const void *value), void *arg);

/*
 * save writes the map to a file. The file is replaced as a whole or not at all, whenever the
 * process ends. Rejected pairs and the status are not saved. cua_hashmap(3) has the permissions of
 * the file, the links that are followed, and the limits against other users of the folder.
 *
 * load creates a map from such a file, on any backend. The map has the slots of the saved map and,
 * if options is NULL, its options. For an untrusted file, pass options with max_bytes: load
 * allocates the slots and the room for rejected pairs that the header names. load first checks the
 * size of the file. It then inserts the pairs in batches of 4 MiB, and ends after the first batch
 * with a repeated key. Both calls wait for the stream.
 *
 * The file has a header of 88 bytes and the pairs, key and value, in the machine's byte order and
 * in any order. Header and pairs have a checksum each. The checksums find damage, not forgery.
 * Errors: NULL, UNSUPPORTED (own_hash), CAPTURE, NO_MEMORY, SYSTEM (errno has the reason; EISDIR
 * and EINVAL if it is no regular file, EFBIG at the limit RLIMIT_FSIZE, without its signal). load
 * also: VALUE (options), SIZE, and CORRUPT (not a file of save, another version or byte order,
 * truncated or changed).
 */
CUA_API enum cua_status cua_hashmap_save(struct cua_hashmap *map, const char *path);
CUA_API enum cua_status cua_hashmap_load(struct cua_context *ctx,
					 const struct cua_hashmap_options *options,
					 const char *path, struct cua_hashmap **map);

/*
 * Returns CUA_ERROR_FULL if a key was rejected since the last clear, by a host call or in a kernel;
 * else CUA_OK. Waits for the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_hashmap_status(struct cua_hashmap *map);

#ifdef __cplusplus
}
#endif

/* ---- operations on a key, for all layouts; sizes are constants of the caller ---- */

/* Whether the map has the word layout. Pairs of up to 8 bytes have no other. */
CUA_FORCE int cua__hashmap_is_words(const struct cua_hashmap_view *view,
				    const cua__hashmap_kind kind)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);

	if (!cua__hashmap_is_word(ks, vs) || kind & CUA__HASHMAP_OF_STATES)
		return 0;
	return !cua__hashmap_is_wide(ks, vs) || kind & CUA__HASHMAP_OF_WORDS ||
	       view->layout == CUA_HASHMAP_WORDS;
}
#define CUA__HASHMAP_IS_WORDS(view, ks, vs) cua__hashmap_is_words(view, CUA__HASHMAP_KIND(ks, vs))

/* Whether this code can access a word layout of these sizes. */
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

/*
 * `hash` is view->hash. Bulk kernels pass it as a constant, because the call costs them registers.
 */
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

/* Counts a rejected pair, and keeps it if there is room. */
CUA_FN void cua__hashmap_reject(const struct cua_hashmap_view *view, uint64_t hash,
				struct cua_u128 key, struct cua_u128 value)
{
	struct cua_hashmap_rejects *rejects = view->rejects;

	cua_port_add_u64(&cua__hashmap_counts(view, hash)->rejected, 1, CUA_RELAXED,
			 CUA__HASHMAP_AT);
	if (rejects) {
		uint64_t at =
			cua_port_fetch_add_u64(&rejects->count, 1, CUA_RELAXED, CUA__HASHMAP_AT);

		if (at < rejects->room) {
			rejects->pairs[at].key = key;
			rejects->pairs[at].value = value;
		}
	}
}

/* Looks up a key. Returns 1 and sets *value, or returns 0. A `value` of NULL is a constant. */
CUA_FORCE int cua__hashmap_find(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
				struct cua_u128 *value)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);

	if (!cua__hashmap_is_words(view, kind))
		return cua__hashmap_state_find(view, kind, key, equal, value);
	return cua__hashmap_has_words(ks, vs) &&
	       cua__hashmap_word_find(view, kind, key, equal, CUA_ACQUIRE, value);
}

/* Returns 1 and sets *spot; 0 if the key is absent; -1 if this code cannot access the map. */
CUA_FORCE int cua__hashmap_spot_of(const struct cua_hashmap_view *view,
				   const cua__hashmap_kind kind, const struct cua__hashmap_key key,
				   cua__hashmap_equal_fn *equal, struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);

	if (!cua__hashmap_is_words(view, kind))
		return cua__hashmap_state_locate(view, kind, key, equal, spot);
	if (!cua__hashmap_has_words(ks, vs))
		return -1;
	if (!cua__hashmap_word_spot(view, kind, key, equal, CUA_ACQUIRE, spot))
		return 0;
	spot->value = cua__hashmap_word_value(ks, vs, spot->word);
	return 1;
}

/*
 * Inserts the pair if the key is absent: INSERTED, EXISTS with the spot, or FULL with the pair
 * rejected.
 */
CUA_FORCE int cua__hashmap_enter(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				 const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
				 struct cua_u128 value, struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	uint32_t added = 0;
	int result;

	if (!cua__hashmap_is_words(view, kind)) {
		result = cua__hashmap_state_enter(view, kind, key, equal, value, spot);
	} else if (!cua__hashmap_has_words(ks, vs)) {
		return CUA_HASHMAP_UNSUPPORTED;
	} else {
		result = cua__hashmap_word_enter(view, kind, key, equal, value, CUA_ACQUIRE, spot,
						 &added);
		cua__hashmap_count_added(view, cua_hash_to_index(key.hash, view->n_buckets),
					 &added);
		spot->value = cua__hashmap_word_value(ks, vs, spot->word);
	}
	if (result == CUA_HASHMAP_FULL)
		cua__hashmap_reject(view, key.hash, key.bits, value);
	return result;
}

/*
 * Changes the value of the key at *spot. Returns 1; 0 if the key has another value, which is then
 * in the spot; or -1 if the slot no longer holds the key.
 */
CUA_FORCE int cua__hashmap_change(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				  const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
				  struct cua__hashmap_spot *spot, struct cua_u128 desired)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	int changed;

	if (!cua__hashmap_is_words(view, kind))
		return cua__hashmap_state_change(view, kind, key, equal, spot, desired);
	changed = cua__hashmap_word_change(ks, vs, spot, desired, CUA_ACQ_REL);
	if (!changed)
		spot->value = cua__hashmap_word_value(ks, vs, spot->word);
	return changed;
}

/*
 * Changes the value of a present key to next(value, operand, op), and sets spot->value to the
 * former value, unless `next` is cua__hashmap_next_combined. Inserts the pair (key, operand) if the
 * key is absent. `next` is a constant, and may run more than once.
 */
CUA_FORCE int cua__hashmap_update_by(const struct cua_hashmap_view *view,
				     const cua__hashmap_kind kind,
				     const struct cua__hashmap_key key,
				     cua__hashmap_equal_fn *equal, struct cua_u128 operand,
				     cua__hashmap_next_fn *next, enum cua_update op,
				     struct cua__hashmap_spot *spot)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);
	const int native =
		next == cua__hashmap_next_combined && cua__hashmap_word_is_native(view, ks, vs);
	const uint32_t together = native && CUA_WARP_LANES > 1 ? cua__warp_meet() : 0;

	if (!cua__hashmap_is_words(view, kind)) {
		/*
		 * a single write under the lock: a CAS loop of many lanes would lock again at each
		 * failure
		 */
		int result = cua__hashmap_state_update(view, kind, key, equal, operand, next, op,
						       &spot->value);

		if (result == CUA_HASHMAP_FULL)
			cua__hashmap_reject(view, key.hash, key.bits, operand);
		return result;
	}
	if (native && CUA_WARP_LANES > 1 &&
	    cua__hashmap_word_look_same(view, key, equal, together, spot)) {
		cua__hashmap_word_apply_together(spot, operand, op, together);
		return CUA_HASHMAP_EXISTS;
	}
	for (;;) {
		int result = cua__hashmap_enter(view, kind, key, equal, operand, spot);

		if (result != CUA_HASHMAP_EXISTS)
			return result;
		if (native) {
			cua__hashmap_word_apply_together(spot, operand, op, together);
			return result;
		}
		if (cua__hashmap_word_change_by(ks, vs, operand, next, op, spot))
			return result;
	}
}

/*
 * compare_exchange of the key at *spot: EXISTS or DIFFERS, or 0 if the slot no longer holds the key
 * and the caller must look it up again.
 */
CUA_FORCE int cua__hashmap_compare_exchange_at(const struct cua_hashmap_view *view,
					       const cua__hashmap_kind kind,
					       const struct cua__hashmap_key key,
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
		changed = cua__hashmap_change(view, kind, key, equal, spot, desired);
	} while (!changed);
	return changed > 0 ? CUA_HASHMAP_EXISTS : 0;
}

CUA_FORCE int cua__hashmap_compare_exchange(const struct cua_hashmap_view *view,
					    const cua__hashmap_kind kind,
					    const struct cua__hashmap_key key,
					    cua__hashmap_equal_fn *equal, struct cua_u128 *expected,
					    struct cua_u128 desired)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int result;

	do {
		int there = cua__hashmap_spot_of(view, kind, key, equal, &spot);

		if (there <= 0)
			return there < 0 ? CUA_HASHMAP_UNSUPPORTED : CUA_HASHMAP_ABSENT;
		result = cua__hashmap_compare_exchange_at(view, kind, key, equal, &spot, expected,
							  desired);
	} while (!result);
	return result;
}

/*
 * Erases the key. Returns 1 and sets *old to its value, or 0 if it was absent or the map never erases.
 */
CUA_FORCE int cua__hashmap_take(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
				struct cua_u128 *old)
{
	const uint32_t ks = CUA__HASHMAP_KS(kind), vs = CUA__HASHMAP_VS(kind);

	if (view->no_erase)
		return 0;
	if (!cua__hashmap_is_words(view, kind))
		return cua__hashmap_state_erase(view, kind, key, equal, old);
	return cua__hashmap_has_words(ks, vs) &&
	       cua__hashmap_word_erase(view, kind, key, equal, old);
}

CUA_FORCE int cua__hashmap_erase(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				 const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal)
{
	struct cua_u128 old;

	return cua__hashmap_take(view, kind, key, equal, &old);
}

/* The result of an operation, and with EXISTS the value. */
struct cua__hashmap_executed {
	int result;
	struct cua_u128 value;
};

/* An operation by the calls of a single lane. */
CUA_FORCE struct cua__hashmap_executed
cua__hashmap_execute_alone(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
			   const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
			   enum cua_hashmap_operation operation, struct cua_u128 value)
{
	struct cua__hashmap_executed done = {CUA_HASHMAP_ABSENT, {0, 0}};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

	if (operation == CUA_HASHMAP_INSERT) {
		done.result = cua__hashmap_enter(view, kind, key, equal, value, &spot);
		done.value = spot.value;
	} else if (operation == CUA_HASHMAP_ERASE) {
		if (cua__hashmap_take(view, kind, key, equal, &done.value))
			done.result = CUA_HASHMAP_EXISTS;
	} else if (operation == CUA_HASHMAP_FIND) {
		if (cua__hashmap_find(view, kind, key, equal, &done.value))
			done.result = CUA_HASHMAP_EXISTS;
	}
	return done;
}

/* An operation in a map of words, by the lanes of a warp together. */
CUA_FORCE struct cua__hashmap_executed
cua__hashmap_execute(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
		     const struct cua__hashmap_key key, cua__hashmap_equal_fn *equal,
		     enum cua_hashmap_operation operation, struct cua_u128 value)
{
	struct cua__hashmap_executed done = {CUA_HASHMAP_UNSUPPORTED, {0, 0}};

	if (!cua__hashmap_has_words(CUA__HASHMAP_KS(kind), CUA__HASHMAP_VS(kind)))
		return done;
	done.result =
		cua__hashmap_word_execute(view, kind, key, equal, operation, value, &done.value);
	if (done.result == CUA_HASHMAP_FULL)
		cua__hashmap_reject(view, key.hash, key.bits, value);
	return done;
}

/* An operation with a value of at most 8 bytes. */
CUA_FORCE int cua__hashmap_execute_u64(const struct cua_hashmap_view *view,
				       const cua__hashmap_kind kind,
				       const struct cua__hashmap_key key,
				       cua__hashmap_equal_fn *equal,
				       enum cua_hashmap_operation operation, uint64_t *value)
{
	const struct cua_u128 given = cua__hashmap_u64(operation == CUA_HASHMAP_INSERT ? *value : 0,
						       CUA__HASHMAP_VS(kind));
	struct cua__hashmap_executed done;

	if (cua__hashmap_is_words(view, kind) &&
	    !cua__hashmap_has_words(CUA__HASHMAP_KS(kind), CUA__HASHMAP_VS(kind)))
		return CUA_HASHMAP_UNSUPPORTED;
	if (CUA_WARP_LANES == 1 || !cua__hashmap_is_words(view, kind))
		done = cua__hashmap_execute_alone(view, kind, key, equal, operation, given);
	else
		done = cua__hashmap_execute(view, kind, key, equal, operation, given);
	if (done.result == CUA_HASHMAP_EXISTS)
		*value = done.value.lo;
	return done.result;
}

/* The number of all slots. The reserved slots of the word layout have the highest numbers. */
CUA_FORCE uint64_t cua__hashmap_all_slots(const struct cua_hashmap_view *view, uint32_t ks,
					  uint32_t vs)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return view->n_buckets * cua__hashmap_state_slots(ks, vs);
	return view->n_buckets * cua__hashmap_word_slots(ks, vs) + 2;
}

CUA_FORCE int cua__hashmap_at(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
			      uint64_t slot, struct cua_u128 *key, struct cua_u128 *value)
{
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs))
		return cua__hashmap_state_at(view, ks, vs, slot, key, value);
	return cua__hashmap_has_words(ks, vs) &&
	       cua__hashmap_word_at(view, ks, vs, slot, key, value);
}

/* ---- operations of a single lane, by type ---- */

/*
 * CUA_DEFINE_HASHMAP(name, K, V) defines, at file scope and with no semicolon after it, for a map
 * whose keys and values have the sizes of the types K and V:
 *
 *   int name_insert(view, key, value)         inserts the pair if the key is absent
 *   int name_insert_or_get(view, key, value, &there)
 *                                             the same; sets there to the key's value, old or new
 *   int name_assign(view, key, value)         sets the key's value, or inserts the pair
 *   int name_exchange(view, key, value, &old) the same; sets old if the key was present
 *   int name_compare_exchange(view, key, &expected, desired)
 *                                             EXISTS if the value had the bits of expected, and
 *                                             then becomes desired; DIFFERS if not, and then sets
 *                                             expected to the value; or ABSENT
 *   int name_find(view, key, &value)          returns 1 and sets value, or returns 0
 *   int name_contains(view, key)              returns 1 or 0
 *   int name_erase(view, key)                 returns 1, or 0 if the key was absent or the map has
 *                                             options.no_erase
 *   int name_execute(view, operation, key, &value)
 *                                             does operation, an enum cua_hashmap_operation: see
 *                                             below
 *   uint64_t name_slots(view)                 the number of slots, reserved slots included
 *   int name_at(view, slot, &key, &value)     returns 1 and sets key and value to the pair in this
 *                                             slot, or returns 0 if the slot has no pair
 *
 * `view` is a const struct cua_hashmap_view *. Results are an enum cua_hashmap_result unless stated
 * otherwise. If the map has other sizes, or a layout that this header does not know, writes return
 * UNSUPPORTED, and finds and erases find nothing. Keys are equal if their bits are: padding in a
 * struct counts. To visit all pairs, divide the slots 0 to name_slots - 1 among lanes.
 *
 * name_execute is for warps whose lanes need different operations. The lanes of a whole warp go
 * through the same steps, so finds, inserts and erases do not run one after another. A mix of them is
 * 1.25 to 1.4 times as fast as by separate calls. Results:
 *   EXISTS       the key was present. *value becomes the key's value, or the value that was erased
 *   ABSENT       FIND and ERASE: the key is absent, or the map has options.no_erase; always for SKIP
 *   INSERTED     INSERT: the key was absent and has *value now
 *   FULL         INSERT: as name_insert
 *   UNSUPPORTED  any operation, in the cases above
 * Only INSERT reads *value. Each lane calls by itself, and lanes may call at any time. But only a
 * whole warp reads together, so lanes without a key should call with SKIP.
 *
 * CUA_DEFINE_HASHSET(name, K) defines insert(view, key), contains, erase, execute(view, operation,
 * key), slots and at(view, slot, &key).
 *
 * CUA_DEFINE_HASHMAP_WITH(name, K, V, hash, equal) and CUA_DEFINE_HASHSET_WITH(name, K, hash,
 * equal) take the functions uint64_t hash(K key, uint64_t seed) and int equal(K a, K b), which nvcc
 * must see as __host__ __device__ (CUA_FN). Equal keys must have equal hashes, and all 64 bits of a
 * hash count. Both functions must accept any bits. The map also compares keys with the keys of bits
 * 0 and 1, and quads hash the keys of inactive lanes. A key that equals the key of bits 0 or 1 may
 * be returned with those bits. Make a map with such functions with options.own_hash.
 *
 * CUA_DEFINE_HASHMAP_UPDATE(update, name, expression), after CUA_DEFINE_HASHMAP(name, K, V),
 * defines int update(view, key, operand). The value of a present key becomes the expression of
 * `old` and `operand`, both of type V. An absent key is inserted with the value `operand`. The
 * expression may be evaluated more than once, and under a lock.
 *
 * CUA_DEFINE_HASHMAP_UPDATE_OP(update, name, op) defines the same function for op, an enum
 * cua_update, on the bits of V as an unsigned number. With options.no_erase it is the fastest way to
 * count in a kernel.
 */
#define CUA__HASHMAP_SIZE_CHECK(K, vs)                                                             \
	CUA_STATIC_ASSERT(sizeof(K) == 4 || sizeof(K) == 8 || sizeof(K) == 16,                     \
			  "keys have 4, 8 or 16 bytes");                                           \
	CUA_STATIC_ASSERT((vs) == 0 || (vs) == 4 || (vs) == 8 || (vs) == 16,                       \
			  "values have 4, 8 or 16 bytes");

/*
 * Whether this header knows a map's layout, and whether the map has keys and values of these sizes.
 */
#define CUA__HASHMAP_KNOWN(view)                                                                   \
	((view)->layout - CUA_HASHMAP_WORDS <= CUA_HASHMAP_STATES - CUA_HASHMAP_WORDS)
#define CUA__HASHMAP_FITS(view, ks, vs)                                                            \
	((view)->key_size == (ks) && (view)->value_size == (vs) && CUA__HASHMAP_KNOWN(view))

#define CUA__DEFINE_HASH_ANY(name, K, vs, equal_fn)                                                \
	CUA__HASHMAP_SIZE_CHECK(K, vs)                                                             \
	CUA_FN int name##_contains(const struct cua_hashmap_view *view, K key)                     \
	{                                                                                          \
		return CUA__HASHMAP_FITS(view, sizeof(K), vs) &&                                   \
		       cua__hashmap_find(view, CUA__HASHMAP_KIND(sizeof(K), vs),                   \
					 cua__hashmap_key_of(name##__hash(view, key),              \
							     cua__hashmap_bits(&key, sizeof(K))),  \
					 equal_fn, NULL);                                          \
	}                                                                                          \
	CUA_FN int name##_erase(const struct cua_hashmap_view *view, K key)                        \
	{                                                                                          \
		return CUA__HASHMAP_FITS(view, sizeof(K), vs) &&                                   \
		       cua__hashmap_erase(view, CUA__HASHMAP_KIND(sizeof(K), vs),                  \
					  cua__hashmap_key_of(name##__hash(view, key),             \
							      cua__hashmap_bits(&key, sizeof(K))), \
					  equal_fn);                                               \
	}                                                                                          \
	CUA_FN uint64_t name##_slots(const struct cua_hashmap_view *view)                          \
	{                                                                                          \
		return CUA__HASHMAP_FITS(view, sizeof(K), vs)                                      \
			       ? cua__hashmap_all_slots(view, sizeof(K), vs)                       \
			       : 0;                                                                \
	}

/*
 * The operations in a map of states are a function of their own with a copy of the view, so that a
 * kernel needs no registers for them.
 */
#define CUA__DEFINE_EXECUTE(name, K, vs, equal_fn)                                                 \
	CUA__RARE struct cua__hashmap_executed name##__execute_alone(                              \
		struct cua_hashmap_view view, enum cua_hashmap_operation operation, K key,         \
		struct cua_u128 value)                                                             \
	{                                                                                          \
		return cua__hashmap_execute_alone(                                                 \
			&view,                                                                     \
			CUA__HASHMAP_KIND(sizeof(K), vs) |                                         \
				(CUA_WARP_LANES == 1 ? 0 : CUA__HASHMAP_OF_STATES),                \
			cua__hashmap_key_of(name##__hash(&view, key),                              \
					    cua__hashmap_bits(&key, sizeof(K))),                   \
			equal_fn, operation, value);                                               \
	}                                                                                          \
	CUA_FORCE struct cua__hashmap_executed name##__execute(                                    \
		const struct cua_hashmap_view *view, enum cua_hashmap_operation operation, K key,  \
		struct cua_u128 value)                                                             \
	{                                                                                          \
		struct cua__hashmap_executed done = {CUA_HASHMAP_UNSUPPORTED, {0, 0}};             \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), vs) ||                                     \
		    (CUA__HASHMAP_IS_WORDS(view, sizeof(K), vs) &&                                 \
		     !cua__hashmap_has_words(sizeof(K), vs)))                                      \
			return done;                                                               \
		if (CUA_WARP_LANES == 1 || !CUA__HASHMAP_IS_WORDS(view, sizeof(K), vs))            \
			return name##__execute_alone(*view, operation, key, value);                \
		return cua__hashmap_execute(                                                       \
			view, CUA__HASHMAP_KIND(sizeof(K), vs),                                    \
			cua__hashmap_key_of(name##__hash(view, key),                               \
					    cua__hashmap_bits(&key, sizeof(K))),                   \
			equal_fn, operation, value);                                               \
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
		return cua__hashmap_enter(view, CUA__HASHMAP_KIND(sizeof(K), 0),                   \
					  cua__hashmap_key_of(name##__hash(view, key),             \
							      cua__hashmap_bits(&key, sizeof(K))), \
					  equal_fn, none, &spot);                                  \
	}                                                                                          \
	CUA__DEFINE_EXECUTE(name, K, 0, equal_fn)                                                  \
	CUA_FN int name##_execute(const struct cua_hashmap_view *view,                             \
				  enum cua_hashmap_operation operation, K key)                     \
	{                                                                                          \
		const struct cua_u128 none = {0, 0};                                               \
                                                                                                   \
		return name##__execute(view, operation, key, none).result;                         \
	}                                                                                          \
	CUA_FN int name##_at(const struct cua_hashmap_view *view, uint64_t slot, K *key)           \
	{                                                                                          \
		struct cua_u128 k, v;                                                              \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), 0) ||                                      \
		    !cua__hashmap_at(view, sizeof(K), 0, slot, &k, &v))                            \
			return 0;                                                                  \
		cua__hashmap_unbits(key, sizeof(K), k);                                            \
		return 1;                                                                          \
	}

#define CUA__DEFINE_HASHMAP_INSERT(name, K, V, equal_fn)                                           \
	CUA_FN int name##__enter(const struct cua_hashmap_view *view, K key, V value,              \
				 struct cua__hashmap_spot *spot)                                   \
	{                                                                                          \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return CUA_HASHMAP_UNSUPPORTED;                                            \
		return cua__hashmap_enter(view, CUA__HASHMAP_KIND(sizeof(K), sizeof(V)),           \
					  cua__hashmap_key_of(name##__hash(view, key),             \
							      cua__hashmap_bits(&key, sizeof(K))), \
					  equal_fn, cua__hashmap_bits(&value, sizeof(V)), spot);   \
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
	}

#define CUA__DEFINE_HASHMAP_EXCHANGE(name, K, V, equal_fn)                                         \
	CUA_FORCE int name##__update(const struct cua_hashmap_view *view, K key, V operand,        \
				     cua__hashmap_next_fn *next, enum cua_update op,               \
				     struct cua__hashmap_spot *spot)                               \
	{                                                                                          \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return CUA_HASHMAP_UNSUPPORTED;                                            \
		return cua__hashmap_update_by(                                                     \
			view, CUA__HASHMAP_KIND(sizeof(K), sizeof(V)),                             \
			cua__hashmap_key_of(name##__hash(view, key),                               \
					    cua__hashmap_bits(&key, sizeof(K))),                   \
			equal_fn, cua__hashmap_bits(&operand, sizeof(V)), next, op, spot);         \
	}                                                                                          \
	CUA_FN int name##_exchange(const struct cua_hashmap_view *view, K key, V value, V *old)    \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
		int result = name##__update(view, key, value, cua__hashmap_next_assign,            \
					    CUA__HASHMAP_NO_OP, &spot);                            \
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
	}

#define CUA__DEFINE_HASHMAP_COMPARE_EXCHANGE(name, K, V, equal_fn)                                 \
	CUA_FN int name##_compare_exchange(const struct cua_hashmap_view *view, K key,             \
					   V *expected, V desired)                                 \
	{                                                                                          \
		struct cua_u128 seen = cua__hashmap_bits(expected, sizeof(V));                     \
		int result;                                                                        \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)))                                \
			return CUA_HASHMAP_UNSUPPORTED;                                            \
		result = cua__hashmap_compare_exchange(                                            \
			view, CUA__HASHMAP_KIND(sizeof(K), sizeof(V)),                             \
			cua__hashmap_key_of(name##__hash(view, key),                               \
					    cua__hashmap_bits(&key, sizeof(K))),                   \
			equal_fn, &seen, cua__hashmap_bits(&desired, sizeof(V)));                  \
		if (result == CUA_HASHMAP_DIFFERS)                                                 \
			cua__hashmap_unbits(expected, sizeof(V), seen);                            \
		return result;                                                                     \
	}

#define CUA__DEFINE_HASHMAP_READ(name, K, V, equal_fn)                                             \
	CUA_FN int name##_find(const struct cua_hashmap_view *view, K key, V *value)               \
	{                                                                                          \
		struct cua_u128 there;                                                             \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)) ||                              \
		    !cua__hashmap_find(view, CUA__HASHMAP_KIND(sizeof(K), sizeof(V)),              \
				       cua__hashmap_key_of(name##__hash(view, key),                \
							   cua__hashmap_bits(&key, sizeof(K))),    \
				       equal_fn, &there))                                          \
			return 0;                                                                  \
		cua__hashmap_unbits(value, sizeof(V), there);                                      \
		return 1;                                                                          \
	}                                                                                          \
	CUA_FN int name##_at(const struct cua_hashmap_view *view, uint64_t slot, K *key, V *value) \
	{                                                                                          \
		struct cua_u128 k, v;                                                              \
                                                                                                   \
		if (!CUA__HASHMAP_FITS(view, sizeof(K), sizeof(V)) ||                              \
		    !cua__hashmap_at(view, sizeof(K), sizeof(V), slot, &k, &v))                    \
			return 0;                                                                  \
		cua__hashmap_unbits(key, sizeof(K), k);                                            \
		cua__hashmap_unbits(value, sizeof(V), v);                                          \
		return 1;                                                                          \
	}

#define CUA__DEFINE_HASHMAP_EXECUTE(name, K, V, equal_fn)                                          \
	CUA__DEFINE_EXECUTE(name, K, sizeof(V), equal_fn)                                          \
	CUA_FN int name##_execute(const struct cua_hashmap_view *view,                             \
				  enum cua_hashmap_operation operation, K key, V *value)           \
	{                                                                                          \
		struct cua__hashmap_executed done;                                                 \
		struct cua_u128 given = {0, 0};                                                    \
                                                                                                   \
		if (operation == CUA_HASHMAP_INSERT)                                               \
			given = cua__hashmap_bits(value, sizeof(V));                               \
		done = name##__execute(view, operation, key, given);                               \
		if (done.result == CUA_HASHMAP_EXISTS)                                             \
			cua__hashmap_unbits(value, sizeof(V), done.value);                         \
		return done.result;                                                                \
	}

#define CUA__DEFINE_HASHMAP(name, K, V, equal_fn)                                                  \
	typedef K name##__key_type;                                                                \
	typedef V name##__value_type;                                                              \
	CUA__DEFINE_HASH_ANY(name, K, sizeof(V), equal_fn)                                         \
	CUA__DEFINE_HASHMAP_INSERT(name, K, V, equal_fn)                                           \
	CUA__DEFINE_HASHMAP_EXCHANGE(name, K, V, equal_fn)                                         \
	CUA__DEFINE_HASHMAP_COMPARE_EXCHANGE(name, K, V, equal_fn)                                 \
	CUA__DEFINE_HASHMAP_READ(name, K, V, equal_fn)                                             \
	CUA__DEFINE_HASHMAP_EXECUTE(name, K, V, equal_fn)

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
		return name##__update(view, key, operand, update##__next, CUA__HASHMAP_NO_OP,      \
				      &spot);                                                      \
	}

#define CUA_DEFINE_HASHMAP_UPDATE_OP(update, name, op)                                             \
	CUA_FORCE struct cua_u128 update##__next(                                                  \
		struct cua_u128 cua__old, struct cua_u128 cua__operand, enum cua_update cua__op)   \
	{                                                                                          \
		(void)cua__op;                                                                     \
		return cua__hashmap_combine(cua__old, cua__operand, sizeof(name##__value_type),    \
					    op);                                                   \
	}                                                                                          \
	CUA_FN int update(const struct cua_hashmap_view *view, name##__key_type key,               \
			  name##__value_type operand)                                              \
	{                                                                                          \
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};                            \
                                                                                                   \
		return name##__update(view, key, operand, cua__hashmap_next_combined, op, &spot);  \
	}

/*
 * The same operations without types, for keys and values of at most 8 bytes. A map of 32-bit keys
 * or values takes the low 32 bits of the arguments. Each call reads the sizes from the view. A set
 * ignores values, and a find returns 0 as value. If the map has longer keys or values, or a layout
 * that this header does not know, writes return UNSUPPORTED, and finds and erases find nothing.
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
	view, CUA__HASHMAP_KIND(ks, vs),                                                           \
		cua__hashmap_key_of(cua__hashmap_hash(view, ks, cua__hashmap_u64(key, ks)),        \
				    cua__hashmap_u64(key, ks)),                                    \
		NULL

/*
 * Inserts the pair if the key is absent; else changes nothing. Returns an enum cua_hashmap_result.
 */
CUA_FN int cua_hashmap_insert(const struct cua_hashmap_view *view, uint64_t key, uint64_t value)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

#define CUA__CALL(ks, vs)                                                                          \
	cua__hashmap_enter(CUA__HASHMAP_WHERE(ks, vs), cua__hashmap_u64(value, vs), &spot)
	CUA__HASHMAP_BY_SIZE(CUA__CALL, CUA_HASHMAP_UNSUPPORTED)
#undef CUA__CALL
}

/* Sets the key's value, or inserts the pair if it is absent. Returns an enum cua_hashmap_result. */
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
 * Sets the value of a present key to op(old value, value), on unsigned numbers; sums wrap. Inserts
 * the pair if the key is absent. Returns an enum cua_hashmap_result.
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

#define CUA__CALL(ks, vs) cua__hashmap_execute_u64(CUA__HASHMAP_WHERE(ks, vs), op, value)
/*
 * Does an operation on a key, together with the lanes of the warp that call at the same moment: see
 * name_execute above. An insert reads *value. With the result EXISTS, *value becomes the key's
 * value. Returns an enum cua_hashmap_result.
 */
CUA_FN int cua_hashmap_execute(const struct cua_hashmap_view *view, enum cua_hashmap_operation op,
			       uint64_t key, uint64_t *value)
{
	CUA__HASHMAP_BY_SIZE(CUA__CALL, CUA_HASHMAP_UNSUPPORTED)
}
#undef CUA__CALL

/* Returns 1 and sets *value, or returns 0 if the key is absent. */
CUA_FN int cua_hashmap_find(const struct cua_hashmap_view *view, uint64_t key, uint64_t *value)
{
	struct cua_u128 there;

#define CUA__CALL(ks, vs)                                                                          \
	(cua__hashmap_find(CUA__HASHMAP_WHERE(ks, vs), &there) ? (*value = there.lo, 1) : 0)
	CUA__HASHMAP_BY_SIZE(CUA__CALL, 0)
#undef CUA__CALL
}

/* Returns whether the key is present. */
CUA_FN int cua_hashmap_contains(const struct cua_hashmap_view *view, uint64_t key)
{
	uint64_t ignored;

	return cua_hashmap_find(view, key, &ignored);
}

/* Erases the key. Returns 1, or 0 if it was absent. */
CUA_FN int cua_hashmap_erase(const struct cua_hashmap_view *view, uint64_t key)
{
#define CUA__CALL(ks, vs) cua__hashmap_erase(CUA__HASHMAP_WHERE(ks, vs))
	CUA__HASHMAP_BY_SIZE(CUA__CALL, 0)
#undef CUA__CALL
}

#endif /* CUATOMIC_HASHMAP_H */
