/* SPDX-License-Identifier: MIT */
/*
 * Bulk insert and build of a hash map of words (hashmap_word.h) on a GPU, and the scatter of large
 * updates (hashmap_combine.h). Every thread of a block calls these functions;
 * cuda/cuda_hashmap_build.cu makes kernels of them.
 *
 * Source: radix partitioning with staging in shared memory, as in hash joins on GPUs, then a table
 * that is built in shared memory. The key of the partition is the home bucket: a region is a
 * contiguous range of home buckets.
 *
 * Scatter: converts pairs to the words of the map and sorts them by region. Each region has a fixed
 * room. A block reads a tile of pairs, ranks the words of each region in shared memory, and claims
 * their offsets with a fetch-and-add per region. It then stores the words from shared memory in
 * runs. Words beyond the room of their region are spilled. A scatter of a sharded map that sends has
 * regions for each owner. The owners read these from the memory of the rank (group/sharded_direct.c).
 * Words without room are only counted; the host inserts these later. A pair for each reserved key is set
 * aside, and another kernel of the owner inserts it.
 *
 * Build: replaces the contents of the map. The regions of the last scatter are the build regions,
 * each of CUA__REGIONS_BUCKETS buckets. The scatter stores the words of a build region in the
 * memory of its buckets. A block reads them and builds the buckets in shared memory, in these
 * steps:
 *
 * 1. Each word claims a number in its home bucket. Words beyond the slots overflow: they go to a
 *    list.
 * 2. A thread per bucket drops duplicate keys and sets the remaining slots to EMPTY.
 * 3. Each overflowing word searches its home for its key. If the key is there, the word is dropped.
 * 4. Overflowing words whose key no other overflowing word can have claim a slot in the first
 *    bucket with room.
 * 5. The other overflowing words, called deferred, search every bucket on their probe sequence
 *    before they insert.
 * 6. The block stores the buckets.
 *
 * Words that find no slot in their build region are spilled. Another kernel inserts the spilled
 * words as ordinary inserts. If the spill list was too short, it inserts all pairs again; most are
 * then present. An insert into a map in concurrent use must not insert pairs twice, so its spill
 * list has room for all pairs.
 *
 * Correctness of the build: the argument of hashmap_word.h applies. Its premise about EMPTY slots
 * holds: slots are claimed in order, and only the thread of a bucket, between two barriers, removes
 * pairs and moves the rest up. After the second barrier a bucket only grows, by a CAS of its
 * number. So every bucket that the probe sequence of a key passed was full, and stays full. At most
 * one of equal overflowing keys is inserted without a search of further buckets, because equal keys
 * share a bit in their home's `overflow` word. After the next barrier the deferred words follow the
 * same probe sequence under the lock of each bucket. So each finds that key, or an equal deferred
 * key inserted earlier. The release that unlocks a bucket synchronizes, in the block, with the
 * acquire of the CAS that locks it and of the load that sees it full.
 *
 * Progress: a lane unlocks its bucket in the turn of the warp that locked it, and waits for no
 * other lane meanwhile.
 *
 * Frequent keys would overflow a region. So a tile with many words for one region first drops most
 * duplicates. If equal keys are adjacent in the stage, only the first is spilled. A scatter of updates
 * combines the duplicates instead; its regions have room for all their pairs, so no word is spilled.
 *
 * Scope: blocks of the same device. A block has a multiple of 32 threads, at most 1024.
 * Memory order: kernel boundaries order the passes; barriers order everything else inside a block.
 */
#ifndef CUATOMIC_KERNELS_HASHMAP_REGIONS_H
#define CUATOMIC_KERNELS_HASHMAP_REGIONS_H

#include <cuatomic/hashmap_quad.h>

#include "backend/shard_backend.h"
#include "kernels/hashmap_bulk.h"
#include "kernels/hashmap_sums.h"
#include "kernels/owner.h"

/* The index of a region within the regions of a tile. */
#ifndef CUA__REGIONS_INDEX
#define CUA__REGIONS_INDEX uint16_t
#endif
#define CUA__REGIONS_BLOCK CUA_SCOPE_BLOCK, CUA_SPACE_SHARED

/* The constants that a kernel is compiled for. */
struct cua__regions_kind {
	uint32_t ks, vs;
	uint32_t threads; /* per block */
	uint32_t each;    /* words per thread */
	int rescatter;    /* 1: the input is the output of another scatter */
	uint32_t hash;    /* as in the view */
	int updates;      /* 1: the pairs are updates, see hashmap_combine.h */
	int sends;        /* 1: the owners of the keys read the words, see `owners` */
};

struct cua__regions_pass {
	struct cua_hashmap_view view;
	/* input pairs */
	const void *keys, *values;
	uint64_t n;
	/*
	 * rescatter and insert: the input words in regions, and the tiles per region. Input region p is
	 * region p / from_ranks of source p % from_ranks. Insert of pairs that were set aside: the struct
	 * cua__shard_late of each rank.
	 */
	const void *from_of[CUA__SHARD_DIRECT_RANKS];
	const uint64_t *from_filled;
	uint64_t from_room, from_tiles;
	uint32_t from_ranks;
	/* output words, in regions in order of home bucket */
	void *to;
	uint64_t *filled; /* words per region that claimed an offset; may exceed room */
	uint64_t room;    /* words per region, < 2^32 */
	uint32_t shift;   /* home bucket >> shift is the region */
	/* a tile with more words than this for a region drops duplicates */
	uint32_t repeat_limit;
	/*
	 * per input: all pairs, or a region of the first scatter (then 2^k); at most
	 * cua__regions_claims for each thread
	 */
	uint32_t regions;
	/* the first output region of a rescatter, and the first region of a build */
	uint64_t first_region;
	/*
	 * The spill list: words beyond the room of their region and, of an insert, words that could
	 * not be inserted soon. An insert has room for all pairs.
	 */
	void *spill;
	uint64_t *spilled;
	uint64_t spill_room;
	/* insert: regions processed concurrently, so that their traffic spreads over the memory */
	uint32_t at_once;
	/* updates: the first word of each region in the output, and the word after its last */
	uint32_t *starts, *ends;
	int op;
	struct cua_u128 value; /* the value for every key, if `values` is NULL */
	/*
	 * A scatter that sends: region p is region p % per_owner of owner p / per_owner. Updates that are
	 * sent: the combined words of owner r go to the list at to_of[r], in the memory of the owner;
	 * filled[r] counts them and may exceed the room.
	 */
	uint32_t owners, per_owner;
	uint32_t rank; /* insert of pairs that were set aside: the rank of the map */
	uint64_t owner_seed;
	char *to_of[CUA__SHARD_DIRECT_RANKS];
	struct cua__shard_late *late;
	/*
	 * updates: the guess looks at `guessed` keys, in a table of guess_room entries, a power of
	 * two, with all bits set at first; *guess_repeats of them were in the table already
	 */
	void *guess;
	uint32_t guess_room, guessed, *guess_repeats;
	/* updates: the keys with a hash >> 32 below the limit */
	void *sample;
	uint32_t sample_limit, *sampled;
	uint32_t *direct; /* updates: 1 if combining would not pay */
	/* updates: the combined words, in any order, and their number */
	void *combined;
	uint64_t *n_combined;
};

/* Per block, besides the stage. */
struct cua__regions_shared {
	uint32_t warps[32];
	uint32_t listed, inserted, deferred;
	uint32_t has_greatest; /* of a table of sums */
	uint64_t first;        /* offset of a block in the combined words */
};

/* ---- words ---- */

struct cua__regions_wide {
	uint64_t lo, hi;
} __attribute__((aligned(16), may_alias));

CUA_FORCE struct cua_u128 cua__regions_get(const struct cua__regions_kind k, const void *words,
					   uint64_t i)
{
	struct cua_u128 word = {0, 0};

	if (cua__hashmap_is_wide(k.ks, k.vs)) {
		const struct cua__regions_wide w =
			CUA_READ(((const struct cua__regions_wide *)words)[i]);

		word.lo = w.lo;
		word.hi = w.hi;
	} else {
		word.lo = CUA_READ(((const cua__raw64 *)words)[i]);
	}
	return word;
}

CUA_FORCE void cua__regions_set(const struct cua__regions_kind k, void *words, uint64_t i,
				struct cua_u128 word)
{
	if (cua__hashmap_is_wide(k.ks, k.vs)) {
		struct cua__regions_wide w = {word.lo, word.hi};

		CUA_WRITE(((struct cua__regions_wide *)words)[i], w);
	} else {
		CUA_WRITE(((cua__raw64 *)words)[i], word.lo);
	}
}

CUA_FORCE int cua__regions_same_key(const struct cua__regions_kind k, struct cua_u128 a,
				    struct cua_u128 b)
{
	return cua__hashmap_same(cua__hashmap_word_key(k.ks, a), cua__hashmap_word_key(k.ks, b));
}

CUA_FORCE uint64_t cua__regions_hash(const struct cua__regions_kind k,
				     const struct cua__regions_pass *a, struct cua_u128 word)
{
	return cua__hashmap_hash_of(&a->view, k.hash, k.ks, cua__hashmap_word_key(k.ks, word));
}

/* Spills the word of every lane with `has`. All lanes of the warp call it. */
CUA_FORCE void cua__regions_spill(const struct cua__regions_kind k,
				  const struct cua__regions_pass *a, int has, struct cua_u128 word)
{
	const uint32_t mask = cua_port_ballot(CUA__ALL_LANES, has), lane = cua_port_lane();
	uint64_t at = 0;

	if (!mask)
		return;
	if (lane == 0)
		at = cua_port_fetch_add_u64(a->spilled, cua_port_popc_u32(mask), CUA_RELAXED,
					    CUA__HASHMAP_AT);
	at = cua_port_shuffle_u64(CUA__ALL_LANES, at, 0) +
	     cua_port_popc_u32(mask & (((uint32_t)1 << lane) - 1));
	if (has && at < a->spill_room)
		cua__regions_set(k, a->spill, at, word);
}

/* The sum over a warp, in all lanes. */
CUA_FORCE uint32_t cua__regions_warp_sum(uint32_t v)
{
	uint32_t step;

	CUA__UNROLL
	for (step = 16; step; step /= 2)
		v += cua_port_shuffle_u32(CUA__ALL_LANES, v, cua_port_lane() ^ step);
	return v;
}

/* ---- scatter ---- */

/* Of a word, the region in the upper half and the rank among the words of a tile; or no word. */
#define CUA__REGIONS_NONE 0xffffffffu
/* No entry, in the lower half. */
#define CUA__REGIONS_UNOWNED 0xffffu
#define CUA__REGIONS_REPEAT_PROBES 4u

CUA_FORCE uint32_t cua__regions_tile_size(const struct cua__regions_kind k)
{
	return k.threads * k.each;
}

/* The regions whose words a thread of a scatter claims; at most 4. */
CUA_FORCE uint32_t cua__regions_claims(const struct cua__regions_kind k)
{
	return k.updates ? 4 : 2;
}

/*
 * Region j of those whose words the calling thread claims. The counters of a warp are adjacent. With
 * words of 64 bits, registers are scarce, and pairs of counters need fewer.
 */
CUA_FORCE uint32_t cua__regions_mine(const struct cua__regions_kind k, uint32_t j)
{
	return k.updates || cua__hashmap_is_wide(k.ks, k.vs)
		       ? j * k.threads + cua_port_thread()
		       : cua__regions_claims(k) * cua_port_thread() + j;
}

/*
 * The region of a hash, among those of its owner if the scatter sends. Those of updates have equal ranges
 * of hashes, so any number of them will do.
 */
CUA_FORCE uint32_t cua__regions_of(const struct cua__regions_kind k,
				   const struct cua__regions_pass *a, uint64_t hash)
{
	const uint32_t ranges = k.sends ? a->per_owner : a->regions;
	const uint32_t region = k.updates ? (uint32_t)((hash >> 32) * ranges >> 32)
					  : cua__hashmap_word_home(&a->view, hash) >> a->shift;

	return k.rescatter ? region & (a->regions - 1) : region;
}

CUA_FORCE uint32_t cua__regions_before_owner(const struct cua__regions_kind k,
					     const struct cua__regions_pass *a,
					     struct cua_u128 word)
{
	return k.sends ? a->per_owner * cua__owner(cua__hashmap_word_key(k.ks, word), k.ks,
						   a->owner_seed, a->owners)
		       : 0;
}

/*
 * Returns the sum of v over the lower threads of the block; *total is the sum over all. The caller
 * needs a barrier before the next use of `sh`.
 */
CUA_FORCE uint32_t cua__regions_scan(const struct cua__regions_kind k,
				     struct cua__regions_shared *sh, uint32_t v, uint32_t *total)
{
	const uint32_t thread = cua_port_thread(), lane = cua_port_lane();
	uint32_t sum = v, step, before, all;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint32_t other = cua_port_shuffle_u32(CUA__ALL_LANES, sum,
						      lane >= step ? lane - step : lane);

		sum += lane >= step ? other : 0;
	}
	if (lane == 31)
		CUA_WRITE(sh->warps[thread / 32], sum);
	cua_port_sync_block();
	all = lane < k.threads / 32 ? CUA_READ(sh->warps[lane]) : 0;
	CUA__UNROLL
	for (step = 1; step < k.threads / 32; step *= 2) {
		uint32_t other = cua_port_shuffle_u32(CUA__ALL_LANES, all,
						      lane >= step ? lane - step : lane);

		all += lane >= step ? other : 0;
	}
	before = cua_port_shuffle_u32(CUA__ALL_LANES, all, (thread / 32 + 31) % 32);
	*total = cua_port_shuffle_u32(CUA__ALL_LANES, all, k.threads / 32 - 1);
	return (thread < 32 ? 0 : before) + sum - v;
}

/* The reserved slot of a word with a reserved key, or NULL. */
CUA_FORCE char *cua__regions_reserved_slot(const struct cua__regions_kind k,
					   const struct cua__regions_pass *a, struct cua_u128 word)
{
	return cua__hashmap_reserved_slot(&a->view, k.ks, k.vs, cua__hashmap_word_key(k.ks, word),
					  NULL);
}

/* Keeps the first word of a reserved key for its owner. */
CUA_FORCE void cua__regions_set_aside(const struct cua__regions_kind k,
				      const struct cua__regions_pass *a, struct cua_u128 word)
{
	/* reserved keys are 0 and 1 */
	const uint32_t which = (uint32_t)cua__hashmap_word_key(k.ks, word).lo;
	uint32_t *taken = &a->late->taken[which];

	if (!cua_port_load_b32(taken, CUA_RELAXED, CUA__HASHMAP_AT) &&
	    !cua_port_fetch_add_u32(taken, 1, CUA_RELAXED, CUA__HASHMAP_AT))
		CUA_WRITE(a->late->values[which], cua__hashmap_word_value(k.ks, k.vs, word).lo);
}

/*
 * Reads this thread's words of the n from `first` on, of the words at `from` or of the pairs; bit j of *there says
 * that word[j] exists. If the input is pairs to insert, a word with a reserved key is inserted into its reserved
 * slot instead, or set aside if the scatter sends, and its bit is 0.
 */
CUA_FORCE void cua__regions_read(const struct cua__regions_kind k,
				 const struct cua__regions_pass *a, const void *from,
				 uint64_t first, uint32_t n, struct cua_u128 *word, uint32_t *there)
{
	const uint32_t thread = cua_port_thread();
	const uint64_t own = first + thread;
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint32_t j;
	int reserved = 0;

	*there = 0;
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		if (j * k.threads + thread >= n)
			continue;
		*there |= (uint32_t)1 << j;
		if (k.rescatter)
			word[j] = cua__regions_get(k, from, own + j * k.threads);
		else
			word[j] = cua__hashmap_word_of(
				k.ks, k.vs, cua__hashmap_get(a->keys, k.ks, own + j * k.threads),
				k.updates && !a->values
					? a->value
					: cua__hashmap_get(a->values, k.vs, own + j * k.threads));
	}
	if (k.rescatter || k.updates)
		return;
	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		reserved |= (*there >> j & 1) && cua__regions_reserved_slot(k, a, word[j]);
	if (!reserved)
		return;
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		char *slot = (*there >> j & 1) ? cua__regions_reserved_slot(k, a, word[j]) : NULL;

		if (!slot)
			continue;
		if (k.sends)
			cua__regions_set_aside(k, a, word[j]);
		else
			(void)cua__hashmap_reserved_enter(
				slot, k.ks, k.vs, cua__hashmap_word_value(k.ks, k.vs, word[j]),
				&spot);
		*there &= ~((uint32_t)1 << j);
	}
}

/*
 * Drops most duplicates of keys that are frequent in the tile. `table` is a hash table in the
 * memory of the unused stage: a word whose key is there is dropped; otherwise the word overwrites
 * the entry. So every key in the table has a word that is kept. All threads call it.
 */
CUA_FORCE void cua__regions_drop_repeats(const struct cua__regions_kind k,
					 const struct cua__regions_pass *a, void *table,
					 const struct cua_u128 *word, uint32_t *there)
{
	const uint32_t thread = cua_port_thread(), size = cua__regions_tile_size(k);
	uint64_t *low = (uint64_t *)table;
	uint32_t j;

	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		cua_port_store_b64(&low[j * k.threads + thread], 0, CUA_RELAXED,
				   CUA__REGIONS_BLOCK);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		struct cua_u128 other = {0, 0};
		uint64_t *at;

		if (!(*there >> j & 1))
			continue;
		at = &low[(uint32_t)(cua__regions_hash(k, a, word[j]) >> 4) % size];
		other.lo = cua_port_load_b64(at, CUA_RELAXED, CUA__REGIONS_BLOCK);
		if (other.lo && cua__regions_same_key(k, other, word[j]))
			*there &= ~((uint32_t)1 << j);
		else
			cua_port_store_b64(at, word[j].lo, CUA_RELAXED, CUA__REGIONS_BLOCK);
	}
	cua_port_sync_block();
}

/*
 * Combines most updates of keys that are frequent in the tile. The table of sums is in the memory of
 * the unused stage. The word that claims an entry gets its sum; the others of the same key are
 * dropped; words without an entry stay. The lower half of rank[j] becomes the entry that word[j] claimed,
 * or UNOWNED. All threads call it.
 */
CUA_FORCE void cua__regions_combine_repeats(const struct cua__regions_kind k,
					    const struct cua__regions_pass *a,
					    struct cua__regions_shared *sh, void *stage,
					    struct cua_u128 *word, uint32_t *there, uint32_t *rank)
{
	const uint32_t size = cua__regions_tile_size(k),
		       word_size = cua__hashmap_is_wide(k.ks, k.vs) ? 16 : 8;
	const struct cua__sums t = {stage, (char *)stage + size / 2 * word_size, &sh->has_greatest,
				    size / 2};
	uint32_t i, j;

	for (i = cua_port_thread(); i <= t.room; i += k.threads)
		cua__sums_clear(k.ks, k.vs, &t, i, a->op);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		const uint64_t key = cua__hashmap_word_key(k.ks, word[j]).lo;
		int claimed;

		rank[j] |= CUA__REGIONS_UNOWNED;
		if (!(*there >> j & 1))
			continue;
		i = cua__sums_entry(k.ks, &t, cua__regions_hash(k, a, word[j]), key,
				    CUA__REGIONS_REPEAT_PROBES, &claimed);
		if (i == CUA__SUMS_NO_ROOM)
			continue;
		cua__sums_apply(k.vs, &t, i, a->op,
				cua__hashmap_word_value(k.ks, k.vs, word[j]).lo);
		if (claimed)
			rank[j] ^= CUA__REGIONS_UNOWNED ^ i;
		else
			*there &= ~((uint32_t)1 << j);
	}
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		struct cua_u128 key = {0, 0}, sum = {0, 0};

		if ((rank[j] & CUA__REGIONS_UNOWNED) == CUA__REGIONS_UNOWNED)
			continue;
		(void)cua__sums_at(k.ks, k.vs, &t, rank[j] & CUA__REGIONS_UNOWNED, &key.lo,
				   &sum.lo);
		word[j] = cua__hashmap_word_of(k.ks, k.vs, key, sum);
	}
	cua_port_sync_block();
}

/* Stores the words of a stage if all of them have room. */
CUA_FORCE void cua__regions_store(const struct cua__regions_kind k, void *to, uint32_t total,
				  const void *stage, const CUA__REGIONS_INDEX *region_of,
				  const uint32_t *offset)
{
	const uint32_t thread = cua_port_thread();
	const size_t own = thread;
	uint32_t j;

	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		if (j * k.threads + thread < total)
			cua__regions_set(
				k, to,
				CUA_READ(offset[CUA_READ(region_of[own + j * k.threads])]) +
					j * k.threads + thread,
				cua__regions_get(k, stage, own + j * k.threads));
}

/* Stores the words of a stage and spills the words without room. */
CUA_FORCE void cua__regions_store_crowded(const struct cua__regions_kind k,
					  const struct cua__regions_pass *a, uint64_t first_region,
					  uint32_t total, const void *stage,
					  const CUA__REGIONS_INDEX *region_of,
					  const uint32_t *offset)
{
	const uint32_t thread = cua_port_thread();
	uint32_t i;

	/* the bound is equal in all lanes of a warp */
	for (i = thread; i - cua_port_lane() < total; i += k.threads) {
		struct cua_u128 w = {0, 0};
		int spills = 0;

		if (i < total) {
			const uint32_t p = CUA_READ(region_of[i]);
			const uint32_t at = CUA_READ(offset[p]) + i - (uint32_t)(p * a->room);

			w = cua__regions_get(k, stage, i);
			if (at < a->room)
				cua__regions_set(k, a->to, (first_region + p) * a->room + at, w);
			else
				spills = i == 0 || !cua__regions_same_key(
							   k, cua__regions_get(k, stage, i - 1), w);
		}
		cua__regions_spill(k, a, spills, w);
	}
}

/* stage and region_of have room for a tile; number and offset have an element per region. */
CUA_FORCE void cua__regions_scatter(const struct cua__regions_kind k,
				    const struct cua__regions_pass *a, uint64_t tile,
				    struct cua__regions_shared *sh, void *stage,
				    CUA__REGIONS_INDEX *region_of, uint32_t *number,
				    uint32_t *offset)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t thread = cua_port_thread(), size = cua__regions_tile_size(k);
	const uint32_t claims = cua__regions_claims(k);
	uint64_t first = tile * size, end = a->n, first_region = 0, claimed[2] = {0, 0};
	const void *from = NULL;
	struct cua_u128 word[32];
	uint32_t rank[32], there, j, p, before, total, n[4], all, starts[4] = {0, 0, 0, 0};
	int filtered, frequent, crowded, again = 0;

	if (k.rescatter) {
		const uint32_t region = (uint32_t)(tile / a->from_tiles);
		const uint64_t filled = CUA_READ(a->from_filled[region]);
		const uint64_t start = region / a->from_ranks * a->from_room;

		from = a->from_of[region % a->from_ranks];
		first = start + tile % a->from_tiles * size;
		end = start + (filled < a->from_room ? filled : a->from_room);
		first_region = a->first_region + (uint64_t)(region / a->from_ranks) * a->regions;
	}
	if (first >= end)
		return;
	for (p = thread; p < a->regions; p += k.threads)
		CUA_WRITE(number[p], 0);
	cua__regions_read(k, a, from, first, end - first < size ? (uint32_t)(end - first) : size,
			  word, &there);
	cua_port_sync_block();
	for (filtered = k.ks == 16;; filtered = 1) {
		CUA__UNROLL
		for (j = 0; j < k.each; j++) {
			/* of inserts, registers are too scarce to keep the regions */
			p = k.updates && again ? rank[j] >> 16 : 0;
			rank[j] = CUA__REGIONS_NONE;
			if (!(there >> j & 1))
				continue;
			if (!k.updates || !again)
				p = cua__regions_of(k, a, cua__regions_hash(k, a, word[j])) +
				    cua__regions_before_owner(k, a, word[j]);
			rank[j] = p << 16 | cua_port_fetch_add_u32(&number[p], 1, CUA_RELAXED,
								   CUA__REGIONS_BLOCK);
		}
		cua_port_sync_block();
		frequent = 0;
		CUA__UNROLL
		for (j = 0; j < claims; j++) {
			p = cua__regions_mine(k, j);
			n[j] = p < a->regions ? CUA_READ(number[p]) : 0;
			frequent |= n[j] > a->repeat_limit;
		}
		if (!cua_port_sync_block_or(!filtered && frequent))
			break;
		if (k.updates)
			cua__regions_combine_repeats(k, a, sh, stage, word, &there, rank);
		else
			cua__regions_drop_repeats(k, a, stage, word, &there);
		for (p = thread; p < a->regions; p += k.threads)
			CUA_WRITE(number[p], 0);
		again = 1;
		cua_port_sync_block();
	}
	all = 0;
	CUA__UNROLL
	for (j = 0; j < claims; j++) {
		p = cua__regions_mine(k, j);
		all += n[j];
		if (n[j] && k.updates)
			starts[j] = cua_port_fetch_add_u32(&a->ends[p], n[j], CUA_RELAXED,
							   CUA__HASHMAP_AT);
		else if (n[j])
			claimed[j % 2] = cua_port_fetch_add_u64(&a->filled[first_region + p], n[j],
								CUA_RELAXED, CUA__HASHMAP_AT);
	}
	before = cua__regions_scan(k, sh, all, &total);
	CUA__UNROLL
	for (j = 0; j < claims; j++) {
		p = cua__regions_mine(k, j);
		if (p < a->regions)
			CUA_WRITE(number[p], before);
		before += n[j];
	}
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		uint32_t at;

		if (rank[j] == CUA__REGIONS_NONE)
			continue;
		at = CUA_READ(number[rank[j] >> 16]) + (rank[j] & 0xffff);
		cua__regions_set(k, stage, at, word[j]);
		CUA_WRITE(region_of[at], (CUA__REGIONS_INDEX)(rank[j] >> 16));
	}
	/*
	 * offset[p] is a word's offset in the output less its index in the stage, modulo 2^32. This
	 * suffices if the output has less than 2^32 words; the crowded path handles longer outputs.
	 */
	crowded = !k.updates && a->regions * a->room >> 32 != 0;
	CUA__UNROLL
	for (j = 0; j < claims; j++) {
		p = cua__regions_mine(k, j);
		if (p >= a->regions)
			continue;
		if (k.updates) {
			CUA_WRITE(offset[p], starts[j] - CUA_READ(number[p]));
			continue;
		}
		crowded |= claimed[j % 2] + n[j] > a->room;
		CUA_WRITE(offset[p],
			  (uint32_t)(p * a->room +
				     (claimed[j % 2] < a->room ? claimed[j % 2] : a->room)) -
				  CUA_READ(number[p]));
	}
	crowded = cua_port_sync_block_or(crowded);
	if (!k.updates && crowded)
		cua__regions_store_crowded(k, a, first_region, total, stage, region_of, offset);
	else
		cua__regions_store(k, (char *)a->to + first_region * a->room * (wide ? 16 : 8),
				   total, stage, region_of, offset);
}

/* ---- build ---- */

#define CUA__REGIONS_BUCKETS ((uint32_t)CUA__HASHMAP_REGION)
#define CUA__REGIONS_BUILD_BYTES (CUA__REGIONS_BUCKETS * CUA__HASHMAP_WORD_BYTES)
/* Lock bit in a bucket's number of pairs. */
#define CUA__REGIONS_BUSY 0x80000000u

/*
 * The index in shared memory of word i of a bucket; word 0 is the head. The index is permuted by
 * the bucket, because threads tend to access the same word of different buckets, which would
 * conflict in the banks.
 */
CUA_FORCE uint32_t cua__regions_index(const struct cua__regions_kind k, uint32_t bucket, uint32_t i)
{
	return cua__hashmap_is_wide(k.ks, k.vs) ? bucket * 4 + (i ^ (bucket / 2 & 3))
						: bucket * 8 + (i ^ (bucket / 2 & 7));
}

/*
 * Removes duplicate keys from the n pairs of a bucket. Returns the number of remaining
 * pairs.
 */
CUA_FORCE uint32_t cua__regions_unique(const struct cua__regions_kind k, void *table,
				       uint32_t bucket, uint32_t n)
{
	uint32_t kept = 1, i, j;

	for (i = 1; i < n; i++) {
		const struct cua_u128 w =
			cua__regions_get(k, table, cua__regions_index(k, bucket, i + 1));

		for (j = 0; j < kept; j++)
			if (cua__regions_same_key(
				    k,
				    cua__regions_get(k, table,
						     cua__regions_index(k, bucket, j + 1)),
				    w))
				break;
		if (j < kept)
			continue;
		cua__regions_set(k, table, cua__regions_index(k, bucket, kept + 1), w);
		kept++;
	}
	return kept;
}

/*
 * Brings a bucket, after all words have claimed numbers, into the form of the map: unique keys,
 * then EMPTY slots, and an empty head. Returns the number of pairs.
 */
CUA_FORCE uint32_t cua__regions_finish(const struct cua__regions_kind k, void *table,
				       uint32_t *number, uint32_t bucket)
{
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	const struct cua_u128 empty = {0, 0};
	struct cua_u128 w[7];
	uint32_t n = CUA_READ(number[bucket]), i, j;
	int equal = 0;

	n = n < slots ? n : slots;
	CUA__UNROLL
	for (i = 0; i < slots; i++)
		w[i] = cua__regions_get(k, table, cua__regions_index(k, bucket, i + 1));
	CUA__UNROLL
	for (i = 1; i < slots; i++) {
		int same = 0;

		CUA__UNROLL
		for (j = 0; j < i; j++)
			same |= cua__regions_same_key(k, w[i], w[j]);
		equal |= same && i < n;
	}
	if (equal)
		n = cua__regions_unique(k, table, bucket, n);
	CUA__UNROLL
	for (i = 0; i < slots; i++)
		if (i >= n)
			cua__regions_set(k, table, cua__regions_index(k, bucket, i + 1), empty);
	cua__regions_set(k, table, cua__regions_index(k, bucket, 0), empty);
	CUA_WRITE(number[bucket], n);
	return n;
}

/* Locks the bucket if its number is still n. Returns whether it succeeded. */
CUA_FORCE int cua__regions_lock(uint32_t *number, uint32_t bucket, uint32_t n)
{
	return !(n & CUA__REGIONS_BUSY) &&
	       cua_port_cas_b32(&number[bucket], n, n | CUA__REGIONS_BUSY, CUA_ACQUIRE,
				CUA__REGIONS_BLOCK) == n;
}

/* Unlocks the bucket and sets its number of pairs to n. */
CUA_FORCE void cua__regions_unlock(uint32_t *number, uint32_t bucket, uint32_t n)
{
	/* racecheck recognizes an exchange, but reports a store as a race */
	(void)cua_port_exchange_b32(&number[bucket], n, CUA_RELEASE, CUA__REGIONS_BLOCK);
}

/* Whether any of the first n pairs of a bucket has the word's key. */
CUA_FORCE int cua__regions_has(const struct cua__regions_kind k, const void *table, uint32_t bucket,
			       uint32_t n, struct cua_u128 word)
{
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	uint32_t i;
	int has = 0;

	CUA__UNROLL
	for (i = 0; i < slots; i++)
		has |= i < n &&
		       cua__regions_same_key(
			       k, cua__regions_get(k, table, cua__regions_index(k, bucket, i + 1)),
			       word);
	return has;
}

/* Upper bound on the probes for a key inside a build region. */
CUA_FORCE uint32_t cua__regions_max_probes(const struct cua__regions_pass *a)
{
	const uint64_t most = cua__hashmap_most(&a->view);

	return most < CUA__REGIONS_BUCKETS ? (uint32_t)most : CUA__REGIONS_BUCKETS;
}

/*
 * Searches a bucket of n pairs for the key and appends the word if the key is absent. The bucket is
 * full, or the caller has locked it. Returns INSERTED, EXISTS, or 0 if the bucket is full.
 */
CUA_FORCE int cua__regions_insert_bucket(const struct cua__regions_kind k, void *table,
					 uint32_t bucket, uint32_t n, struct cua_u128 word)
{
	if (cua__regions_has(k, table, bucket, n, word))
		return CUA_HASHMAP_EXISTS;
	if (n == cua__hashmap_word_slots(k.ks, k.vs))
		return 0;
	cua__regions_set(k, table, cua__regions_index(k, bucket, n + 1), word);
	return CUA_HASHMAP_INSERTED;
}

/*
 * Inserts the word of every lane with `has`; other lanes may have the same key. All lanes of the
 * warp call it. Returns INSERTED, EXISTS, or 0 if no bucket that may hold the key has a free slot.
 * A lane unlocks a bucket in the turn of its lock, so no lane waits for another lane of
 * its warp.
 */
CUA_FORCE int cua__regions_insert_deferred(const struct cua__regions_kind k,
					   const struct cua__regions_pass *a, void *table,
					   uint32_t *number, int has, struct cua_u128 word)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	const uint64_t hash = cua__regions_hash(k, a, word);
	const uint32_t home = cua__hashmap_word_home(&a->view, hash),
		       here = home % CUA__REGIONS_BUCKETS;
	const uint32_t most = cua__regions_max_probes(a);
	const uint32_t head_at = cua__regions_index(k, here, 0);
	uint32_t distance = 0, at = here;
	int result = 0, searching = has;

	while (cua_port_ballot(CUA__ALL_LANES, searching)) {
		if (searching) {
			const uint32_t n =
				cua_port_load_b32(&number[at], CUA_ACQUIRE, CUA__REGIONS_BLOCK);
			/* the slots of a full bucket do not change */
			const int full = (n & ~CUA__REGIONS_BUSY) == slots;

			if (full || cua__regions_lock(number, at, n)) {
				result = cua__regions_insert_bucket(k, table, at, full ? slots : n,
								    word);
				if (!full)
					cua__regions_unlock(number, at,
							    n + (result == CUA_HASHMAP_INSERTED));
				searching = !result && ++distance < most;
				at = (uint32_t)cua__hashmap_word_probe(&a->view, home, hash,
								       distance) %
				     CUA__REGIONS_BUCKETS;
			}
		}
		cua_port_sync_warp(CUA__ALL_LANES);
	}
	searching = distance && result == CUA_HASHMAP_INSERTED;
	while (cua_port_ballot(CUA__ALL_LANES, searching)) {
		if (searching) {
			const uint32_t n =
				cua_port_load_b32(&number[here], CUA_RELAXED, CUA__REGIONS_BLOCK);

			if (cua__regions_lock(number, here, n)) {
				const struct cua_u128 w = cua__regions_get(k, table, head_at);
				struct cua__hashmap_head head = {w.lo, w.hi};
				struct cua_u128 raised;

				head = cua__hashmap_word_raise(wide, head, hash, distance);
				raised.lo = head.lo;
				raised.hi = head.hi;
				cua__regions_set(k, table, head_at, raised);
				cua__regions_unlock(number, here, n);
				searching = 0;
			}
		}
		cua_port_sync_warp(CUA__ALL_LANES);
	}
	return result;
}

/*
 * Inserts the word of every lane with `has` into the first of `most` buckets with a free slot. No
 * bucket and no other word in this step has the key. All lanes of the warp call it. Returns
 * INSERTED, or 0 if no bucket has a free slot. The lanes reconverge after each probe, since they
 * find slots at different times.
 */
CUA_FORCE int cua__regions_insert_unique(const struct cua__regions_kind k, uint32_t most,
					 void *table, uint32_t *number, int has, uint32_t home,
					 uint64_t hash, struct cua_u128 word)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	/* as cua__hashmap_word_probe, within a build region */
	const uint32_t step = (uint32_t)(hash >> 4) | 1;
	uint64_t *head = (uint64_t *)table +
			 (size_t)cua__regions_index(k, home, 0) * (wide ? 2 : 1),
		 old = 0;
	uint32_t distance = 0, at = home, slot = 0, half;
	int searching = has, put = 0;

	while (cua_port_ballot(CUA__ALL_LANES, searching)) {
		if (searching) {
			const uint32_t n =
				cua_port_load_b32(&number[at], CUA_RELAXED, CUA__REGIONS_BLOCK);

			if (n >= slots) {
				at = (at + step) % CUA__REGIONS_BUCKETS;
				searching = ++distance < most;
			} else if (cua_port_cas_b32(&number[at], n, n + 1, CUA_RELAXED,
						    CUA__REGIONS_BLOCK) == n) {
				slot = n + 1;
				put = 1;
				searching = 0;
			}
		}
		cua_port_sync_warp(CUA__ALL_LANES);
	}
	if (put)
		cua__regions_set(k, table, cua__regions_index(k, at, slot), word);
	CUA__UNROLL
	for (half = 0; half < (wide ? 2u : 1u); half++) {
		searching = put && distance;
		if (searching)
			old = cua_port_load_b64(&head[half], CUA_RELAXED, CUA__REGIONS_BLOCK);
		while (cua_port_ballot(CUA__ALL_LANES, searching)) {
			if (searching) {
				struct cua__hashmap_head to = {half ? 0 : old, half ? old : 0};
				uint64_t seen;

				to = cua__hashmap_word_raise(wide, to, hash, distance);
				seen = cua_port_cas_b64(&head[half], old, half ? to.hi : to.lo,
							CUA_RELAXED, CUA__REGIONS_BLOCK);
				searching = seen != old;
				old = seen;
			}
			cua_port_sync_warp(CUA__ALL_LANES);
		}
	}
	return put ? CUA_HASHMAP_INSERTED : 0;
}

/*
 * The room of a block that builds a region. `table` has room for the region's buckets; `number` and
 * `overflow` have an element per bucket. `list` takes the words that overflow their home; words
 * beyond list_room go to the memory of the region's words.
 */
struct cua__regions_room {
	void *table;
	uint32_t *number;
	uint32_t *overflow;
	void *list;
	uint32_t list_room;
};

/*
 * Inserts the `listed` words that overflowed their home: in its list and, beyond the room of that, in
 * `words`, the memory of the region's words. Equal keys share a home and a bit of its `overflow` word.
 * The first word that sets the bit searches only its home, then claims a free slot. Every other word
 * with that bit is deferred until the first words have their slots, and searches for its
 * key. Returns the number of words that this thread inserted.
 */
CUA_FORCE uint32_t cua__regions_insert_overflow(const struct cua__regions_kind k,
						const struct cua__regions_pass *a,
						struct cua__regions_shared *sh,
						const struct cua__regions_room to,
						const void *words, uint32_t listed)
{
	uint32_t *number = to.number, *overflow = to.overflow;
	void *table = to.table;
	const uint32_t thread = cua_port_thread(), lane = cua_port_lane(),
		       most = cua__regions_max_probes(a);
	uint32_t inserted = 0, todo = 0, deferred = 0, turn, i, at, n;

	/* a thread has at most as many turns as words per thread of a region: at most 32 */
	for (turn = 0, i = thread; i < listed; turn++, i += k.threads) {
		const struct cua_u128 w =
			cua__regions_get(k, i < to.list_room ? to.list : words, i);
		const uint64_t hash = cua__regions_hash(k, a, w);
		const uint32_t home = cua__hashmap_word_home(&a->view, hash) % CUA__REGIONS_BUCKETS;
		const uint32_t bit = (uint32_t)1 << (hash >> 4 & 31);

		if (cua__regions_has(k, table, home, CUA_READ(number[home]), w))
			continue;
		if (cua_port_fetch_or_b32(&overflow[home], bit, CUA_RELAXED, CUA__REGIONS_BLOCK) &
		    bit)
			deferred |= (uint32_t)1 << turn;
		else
			todo |= (uint32_t)1 << turn;
	}
	cua_port_sync_block();
	/* this bound and the next are equal in all lanes of a warp */
	for (turn = 0, i = thread; i - lane < listed; turn++, i += k.threads) {
		const int has = todo >> turn & 1;
		struct cua_u128 w = {0, 0};
		uint64_t hash;
		int result;

		if (has)
			w = cua__regions_get(k, i < to.list_room ? to.list : words, i);
		hash = cua__regions_hash(k, a, w);
		result = cua__regions_insert_unique(
			k, most, table, number, has,
			cua__hashmap_word_home(&a->view, hash) % CUA__REGIONS_BUCKETS, hash, w);
		inserted += result == CUA_HASHMAP_INSERTED;
		cua__regions_spill(k, a, has && !result, w);
	}
	/*
	 * from here `overflow` holds the indices of deferred words, so that the few deferred words
	 * fill whole warps
	 */
	while (cua_port_sync_block_or(deferred != 0)) {
		for (turn = 0, i = thread; deferred; turn++, i += k.threads) {
			if (!(deferred >> turn & 1))
				continue;
			at = cua_port_fetch_add_u32(&sh->deferred, 1, CUA_RELAXED,
						    CUA__REGIONS_BLOCK);
			if (at >= CUA__REGIONS_BUCKETS)
				break;
			CUA_WRITE(overflow[at], i);
			deferred &= ~((uint32_t)1 << turn);
		}
		cua_port_sync_block();
		n = CUA_READ(sh->deferred);
		n = n < CUA__REGIONS_BUCKETS ? n : CUA__REGIONS_BUCKETS;
		for (at = thread; at - lane < n; at += k.threads) {
			const int has = at < n;
			struct cua_u128 w = {0, 0};
			int result;

			if (has) {
				i = CUA_READ(overflow[at]);
				w = cua__regions_get(k, i < to.list_room ? to.list : words, i);
			}
			result = cua__regions_insert_deferred(k, a, table, number, has, w);
			inserted += result == CUA_HASHMAP_INSERTED;
			cua__regions_spill(k, a, has && !result, w);
		}
		cua_port_sync_block();
		if (thread == 0)
			CUA_WRITE(sh->deferred, 0);
	}
	return inserted;
}

/* Builds a region. */
CUA_FORCE void cua__regions_build(const struct cua__regions_kind k,
				  const struct cua__regions_pass *a, uint64_t region,
				  struct cua__regions_shared *sh, const struct cua__regions_room to)
{
	uint32_t *number = to.number, *overflow = to.overflow;
	void *table = to.table;
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t thread = cua_port_thread(), slots = cua__hashmap_word_slots(k.ks, k.vs);
	char *words = cua__hashmap_word_bucket(&a->view, region * CUA__REGIONS_BUCKETS);
	struct cua__regions_wide *out = (struct cua__regions_wide *)(void *)words;
	const uint64_t filled = CUA_READ(a->filled[region]), own = thread;
	const uint32_t n = (uint32_t)(filled < a->room ? filled : a->room);
	struct cua_u128 word[32];
	uint32_t inserted = 0, listed, i, j, bucket;

	for (bucket = thread; bucket < CUA__REGIONS_BUCKETS; bucket += k.threads) {
		CUA_WRITE(number[bucket], 0);
		CUA_WRITE(overflow[bucket], 0);
	}
	if (thread == 0) {
		CUA_WRITE(sh->listed, 0);
		CUA_WRITE(sh->inserted, 0);
		CUA_WRITE(sh->deferred, 0);
	}
	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		if (j * k.threads + thread < n)
			word[j] = cua__regions_get(k, words, own + j * k.threads);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		if (j * k.threads + thread >= n)
			continue;
		bucket = cua__hashmap_word_home(&a->view, cua__regions_hash(k, a, word[j])) %
			 CUA__REGIONS_BUCKETS;
		i = cua_port_fetch_add_u32(&number[bucket], 1, CUA_RELAXED, CUA__REGIONS_BLOCK);
		if (i < slots) {
			cua__regions_set(k, table, cua__regions_index(k, bucket, i + 1), word[j]);
			continue;
		}
		i = cua_port_fetch_add_u32(&sh->listed, 1, CUA_RELAXED, CUA__REGIONS_BLOCK);
		if (i < to.list_room)
			cua__regions_set(k, to.list, i, word[j]);
		else
			cua__regions_set(k, words, i, word[j]);
	}
	cua_port_sync_block();
	for (bucket = thread; bucket < CUA__REGIONS_BUCKETS; bucket += k.threads)
		inserted += cua__regions_finish(k, table, number, bucket);
	listed = CUA_READ(sh->listed);
	cua_port_sync_block();
	inserted += cua__regions_insert_overflow(k, a, sh, to, words, listed);
	inserted = cua__regions_warp_sum(inserted);
	if (cua_port_lane() == 0)
		cua_port_add_u32(&sh->inserted, inserted, CUA_RELAXED, CUA__REGIONS_BLOCK);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < CUA__REGIONS_BUILD_BYTES / 16 / k.threads; j++) {
		struct cua__regions_wide pack;

		/*
		 * written so that the compiler hoists the common part of the addresses out of the
		 * loop
		 */
		bucket = j * (k.threads / 4) + thread / 4;
		if (wide) {
			const struct cua_u128 w = cua__regions_get(
				k, table, cua__regions_index(k, bucket, thread % 4));

			pack.lo = w.lo;
			pack.hi = w.hi;
		} else {
			pack.lo = cua__regions_get(k, table,
						   cua__regions_index(k, bucket, thread % 4 * 2))
					  .lo;
			pack.hi =
				cua__regions_get(k, table,
						 cua__regions_index(k, bucket, thread % 4 * 2 + 1))
					.lo;
		}
		out[own + j * k.threads] = pack;
	}
	if (thread == 0)
		cua_port_add_u64(&cua__hashmap_counts(&a->view, region)->inserted,
				 CUA_READ(sh->inserted), CUA_RELAXED, CUA__HASHMAP_AT);
}

/* ---- insert ---- */

/* An ordinary insert by a single lane. */
CUA_FORCE void cua__regions_insert(const struct cua__regions_kind k,
				   const struct cua__regions_pass *a, struct cua_u128 key,
				   struct cua_u128 value)
{
	const uint64_t hash = cua__hashmap_hash_of(&a->view, k.hash, k.ks, key);
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint32_t added = 0;

	if (cua__hashmap_word_enter(&a->view, CUA__HASHMAP_KIND(k.ks, k.vs),
				    cua__hashmap_key_of(hash, key), NULL, value, CUA_RELAXED, &spot,
				    &added) == CUA_HASHMAP_FULL)
		cua__hashmap_reject(&a->view, hash, key, value);
	cua__hashmap_count_added(&a->view, cua_hash_to_index(hash, a->view.n_buckets), &added);
}

/*
 * Inserts the spilled words, or all pairs if the list was too short. All threads of a grid call it.
 */
CUA_FORCE void cua__regions_insert_spilled(const struct cua__regions_kind k,
					   const struct cua__regions_pass *a)
{
	const uint64_t step = cua_port_grid_size() * k.threads, spilled = CUA_READ(*a->spilled);
	const int listed = spilled <= a->spill_room;
	const uint64_t n = listed ? spilled : a->n;
	uint64_t i;

	i = cua_port_block() * k.threads + cua_port_thread();
	/* spilled words are slow: interleave them over the warps */
	if (listed)
		i = i % 32 * (step / 32) + i / 32;
	for (; i < n; i += step) {
		if (listed) {
			const struct cua_u128 w = cua__regions_get(k, a->spill, i);

			cua__regions_insert(k, a, cua__hashmap_word_key(k.ks, w),
					    cua__hashmap_word_value(k.ks, k.vs, w));
		} else {
			cua__regions_insert(k, a, cua__hashmap_get(a->keys, k.ks, i),
					    cua__hashmap_get(a->values, k.vs, i));
		}
	}
}

/*
 * Inserts the pairs that the ranks have set aside, if this rank owns their keys. A single block of at least
 * 2 * owners threads calls it.
 */
CUA_FORCE void cua__regions_insert_aside(const struct cua__regions_kind k,
					 const struct cua__regions_pass *a)
{
	const uint32_t thread = cua_port_thread(), which = thread % 2;
	const struct cua_u128 key = {which, 0};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	char *slot = cua__hashmap_reserved_slot(&a->view, k.ks, k.vs, key, NULL);
	struct cua_u128 value = {0, 0};
	const struct cua__shard_late *late;

	if (thread >= 2 * a->owners || !slot ||
	    cua__owner(key, k.ks, a->owner_seed, a->owners) != a->rank)
		return;
	late = (const struct cua__shard_late *)a->from_of[thread / 2];
	if (!CUA_READ(late->taken[which]))
		return;
	value.lo = CUA_READ(late->values[which]);
	(void)cua__hashmap_reserved_enter(slot, k.ks, k.vs, value, &spot);
}

/*
 * Inserts the words of a tile of a scattered region. Tiles are numbered round-robin over at_once input regions, so
 * concurrent tiles have different sources. Words with a full home take several times as long. So they are deferred
 * in `list`, 64 words per warp, until every lane has a word.
 */
CUA_FORCE void cua__regions_insert_tile(const struct cua__regions_kind k,
					const struct cua__regions_pass *a, uint64_t tile,
					void *list)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t size = cua__regions_tile_size(k), thread = cua_port_thread(),
		       lane = cua_port_lane();
	const uint32_t below = ((uint32_t)1 << lane) - 1;
	const uint64_t tiles = a->from_tiles * a->at_once;
	const uint32_t region = (uint32_t)(tile / tiles * a->at_once + tile % a->at_once);
	const uint64_t first = tile % tiles / a->at_once * size;
	char *const deferred = (char *)list + thread / 32 * 64 * (wide ? 16 : 8);
	const struct cua_u128 none = {0, 0};
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua_u128 next = none;
	/* attempts for the deferred words after the last new word */
	uint32_t tries = CUA__QUAD_TRIES;
	uint32_t added = 0, n_deferred = 0, j, n;
	const char *words;
	uint64_t filled;

	if (region >= a->regions)
		return;
	filled = CUA_READ(a->from_filled[region]);
	if (filled > a->from_room)
		filled = a->from_room;
	if (first >= filled)
		return;
	n = filled - first < size ? (uint32_t)(filled - first) : size;
	words = (const char *)a->from_of[region % a->from_ranks] +
		(region / a->from_ranks * a->from_room + first) * (wide ? 16 : 8);
	if (thread < n)
		next = cua__regions_get(k, words, thread);
	/* the bound is equal in all lanes of a warp */
	for (j = thread; j - lane < n || n_deferred; j += k.threads) {
		const struct cua_u128 word = next;
		uint32_t votes;
		int result;

		if (j - lane < n) {
			next = j + k.threads < n ? cua__regions_get(k, words, j + k.threads) : none;
			result = cua__quad_enter_home(
				&a->view, CUA__HASHMAP_KIND(k.ks, k.vs),
				cua__quad_lanes_of(CUA__ALL_LANES, j < n),
				cua__hashmap_key_of(cua__regions_hash(k, a, word),
						    cua__hashmap_word_key(k.ks, word)),
				NULL, cua__hashmap_word_value(k.ks, k.vs, word), CUA_RELAXED,
				&seen);
			added += cua_port_popc_u32(
				cua_port_ballot(CUA__ALL_LANES, result == CUA_HASHMAP_INSERTED));
			votes = cua_port_ballot(CUA__ALL_LANES, j < n && !result);
			if (j < n && !result)
				cua__regions_set(k, deferred,
						 n_deferred + cua_port_popc_u32(votes & below),
						 word);
			n_deferred += cua_port_popc_u32(votes);
			cua_port_sync_warp(CUA__ALL_LANES);
		}
		if (n_deferred >= 32 || j - lane >= n) {
			const uint32_t most = n_deferred < 32 ? n_deferred : 32;
			const int has = lane < most;
			struct cua_u128 w = none;

			n_deferred -= most;
			if (has)
				w = cua__regions_get(k, deferred, n_deferred + lane);
			cua_port_sync_warp(CUA__ALL_LANES);
			result = cua__quad_enter_full(
				&a->view, CUA__HASHMAP_KIND(k.ks, k.vs),
				cua__quad_lanes_of(CUA__ALL_LANES, has),
				cua__hashmap_key_of(cua__regions_hash(k, a, w),
						    cua__hashmap_word_key(k.ks, w)),
				NULL, cua__hashmap_word_value(k.ks, k.vs, w), &seen);
			added += cua_port_popc_u32(
				cua_port_ballot(CUA__ALL_LANES, result == CUA_HASHMAP_INSERTED));
			/*
			 * another thread claimed the slot first: retry with the next deferred words
			 */
			votes = cua_port_ballot(CUA__ALL_LANES, has && !result);
			if (tries && n_deferred + cua_port_popc_u32(votes) < 32) {
				if (has && !result)
					cua__regions_set(
						k, deferred,
						n_deferred + cua_port_popc_u32(votes & below), w);
				n_deferred += cua_port_popc_u32(votes);
				tries -= j - lane >= n;
			} else {
				result = result ? result : -1;
			}
			cua__regions_spill(k, a, has && result < 0, w);
			cua_port_sync_warp(CUA__ALL_LANES);
		}
	}
	cua__quad_count(&a->view, CUA__ALL_LANES, CUA_RELAXED, &added);
}

#endif /* CUATOMIC_KERNELS_HASHMAP_REGIONS_H */
