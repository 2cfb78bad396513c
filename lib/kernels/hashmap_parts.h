/* SPDX-License-Identifier: MIT */
/*
 * A hash map of words (hashmap_word.h) filled on a GPU from many pairs at once, as functions that
 * every thread of a block calls: cuda/hashmap_build.cu makes kernels of them.
 *
 * Source: radix partitioning with staging in shared memory, as in hash joins on GPUs; then a table that is built where
 * it is small and near. Here a part is a range of home buckets.
 *
 * Scatter: pairs go to parts as the words that they are in the map. Each part has fixed room. A block takes a tile of
 * pairs, numbers those of each part in shared memory, claims their places with one fetch-and-add a part, and stores
 * them from shared memory in runs. What finds no room is spilled.
 *
 * Build, in the place of all that a map has. The parts of the last scatter are the map's windows, and each one's words
 * lie where its buckets will be. A block reads them and builds the buckets in shared memory:
 *
 *     each word takes a number in its home bucket | a thread a bucket: equal keys become one, the rest of the slots
 *     EMPTY | words that have found no slot look whether their home has their key | those of which no other may have
 *     the key go into the first bucket with a free slot | the others, which come late, look at each bucket on their
 *     way | store
 *
 * Words that find no slot in their window are spilled. Another kernel inserts what was spilled as any insert does: from
 * the list, or, where there was no room in the list, all pairs once more, of which most are there then. An insert into
 * a map that others work with must not do that, and has a list with room for all.
 *
 * Argument of the build: see hashmap_word.h. What it says of EMPTY slots holds, for slots are taken in order, and only
 * a bucket's thread, between two barriers, takes pairs out and moves the others up. Behind the second a bucket only
 * grows, by a CAS of its number: a key that is away from home went by buckets that were full then, and stay full. Of
 * equal keys that overflow at most one is put without a look, for they have one bit of their home's `told`. Behind the
 * next barrier the late ones go along the same sequence, under the lock of each bucket, and meet it, or an earlier one
 * of themselves. The release that gives a bucket back pairs, in the block, with the acquire of the CAS that takes it,
 * and of the load that sees it full. Progress: who has a bucket gives it back in the same turn of its warp, and waits
 * for no other meanwhile.
 *
 * Hot keys fill the room of a part. So where a tile has many words of one part, most words whose
 * key the tile has once more go at once. And of equal keys that stand next to each other in the
 * stage only the first is spilled.
 *
 * Scope: blocks of one device. A block has a multiple of 32 threads, at most 1024.
 * Memory order: kernels end between the passes; inside a block barriers order everything else.
 */
#ifndef CUATOMIC_KERNELS_HASHMAP_PARTS_H
#define CUATOMIC_KERNELS_HASHMAP_PARTS_H

#include <cuatomic/hashmap_quad.h>

#include "backend/hashmap_backend.h"

#define CUA__PARTS_ALL 0xffffffffu
/* The number of a part in a tile. */
#ifndef CUA__PARTS_LOCAL
#define CUA__PARTS_LOCAL uint16_t
#endif
#define CUA__PARTS_BLOCK CUA_SCOPE_BLOCK, CUA_SPACE_SHARED

/* What a kernel is made for: constants, all of them. */
struct cua__parts_kind {
	uint32_t ks, vs;
	uint32_t threads; /* of a block */
	uint32_t each;    /* words of a thread */
	int again;        /* a scatter of what another has scattered */
	uint32_t hash;    /* as in the view */
};

struct cua__parts {
	struct cua_hashmap_view view;
	/* the pairs */
	const void *keys, *values;
	uint64_t n;
	/* again: words in parts that another scatter has filled, and the tiles that a part may have
	 */
	const void *from;
	const uint64_t *from_filled;
	uint64_t from_room, from_tiles;
	/* where words go; all of them in order of home bucket */
	void *to;
	uint64_t *filled; /* how many wanted to a part, which may be more than the room */
	uint64_t room;    /* < 2^32 */
	uint32_t shift;   /* a home bucket's part, by its number */
	uint32_t many;    /* of a tile in one part: more come of equal keys */
	uint32_t parts;   /* of the pairs, or of each part that they come from, a power of two then;
			     at most 2 a thread */
	/* words that found no room, and of an insert those that could not be put at once, for which there is room for all */
	void *spill;
	uint64_t *spilled;
	uint64_t spill_room;
	/*
	 * of an insert: parts that are at work at the same time, so that their traffic spreads over
	 * the memory
	 */
	uint32_t at_once;
};

/* Of a block, beside the stage. */
struct cua__parts_shared {
	uint32_t warps[32];
	uint32_t listed, inserted, late;
};

/* ---- words ---- */

struct cua__parts_wide {
	uint64_t lo, hi;
} __attribute__((aligned(16), may_alias));

CUA_FORCE struct cua_u128 cua__parts_get(const struct cua__parts_kind k, const void *words,
					 uint64_t i)
{
	struct cua_u128 word = {0, 0};

	if (cua__hashmap_is_wide(k.ks, k.vs)) {
		const struct cua__parts_wide w =
			CUA_READ(((const struct cua__parts_wide *)words)[i]);

		word.lo = w.lo;
		word.hi = w.hi;
	} else {
		word.lo = CUA_READ(((const cua__raw64 *)words)[i]);
	}
	return word;
}

CUA_FORCE void cua__parts_set(const struct cua__parts_kind k, void *words, uint64_t i,
			      struct cua_u128 word)
{
	if (cua__hashmap_is_wide(k.ks, k.vs)) {
		struct cua__parts_wide w = {word.lo, word.hi};

		CUA_WRITE(((struct cua__parts_wide *)words)[i], w);
	} else {
		CUA_WRITE(((cua__raw64 *)words)[i], word.lo);
	}
}

CUA_FORCE int cua__parts_same_key(const struct cua__parts_kind k, struct cua_u128 a,
				  struct cua_u128 b)
{
	return cua__hashmap_same(cua__hashmap_word_key(k.ks, a), cua__hashmap_word_key(k.ks, b));
}

CUA_FORCE uint64_t cua__parts_hash(const struct cua__parts_kind k, const struct cua__parts *a,
				   struct cua_u128 word)
{
	return cua__hashmap_hash_of(&a->view, k.hash, k.ks, cua__hashmap_word_key(k.ks, word));
}

/* By whole warps, for the lanes that have a word to spill. */
CUA_FORCE void cua__parts_spill(const struct cua__parts_kind k, const struct cua__parts *a, int has,
				struct cua_u128 word)
{
	const uint32_t mask = cua_port_ballot(CUA__PARTS_ALL, has), lane = cua_port_lane();
	uint64_t at = 0;

	if (!mask)
		return;
	if (lane == 0)
		at = cua_port_fetch_add_u64(a->spilled, cua_port_popc_u32(mask), CUA_RELAXED,
					    CUA__HASHMAP_AT);
	at = cua_port_shuffle_u64(CUA__PARTS_ALL, at, 0) +
	     cua_port_popc_u32(mask & (((uint32_t)1 << lane) - 1));
	if (has && at < a->spill_room)
		cua__parts_set(k, a->spill, at, word);
}

/* The sum over a warp, in all lanes. */
CUA_FORCE uint32_t cua__parts_warp_sum(uint32_t v)
{
	uint32_t step;

	CUA__UNROLL
	for (step = 16; step; step /= 2)
		v += cua_port_shuffle_u32(CUA__PARTS_ALL, v, cua_port_lane() ^ step);
	return v;
}

/* ---- scatter ---- */

#define CUA__PARTS_NONE 0xffffffffu

CUA_FORCE uint32_t cua__parts_tile(const struct cua__parts_kind k)
{
	return k.threads * k.each;
}

/*
 * What comes before this thread's v in the block; *total is the sum of all. Behind it is a barrier
 * to come.
 */
CUA_FORCE uint32_t cua__parts_scan(const struct cua__parts_kind k, struct cua__parts_shared *sh,
				   uint32_t v, uint32_t *total)
{
	const uint32_t thread = cua_port_thread(), lane = cua_port_lane();
	uint32_t sum = v, step, before, all;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint32_t other = cua_port_shuffle_u32(CUA__PARTS_ALL, sum,
						      lane >= step ? lane - step : lane);

		sum += lane >= step ? other : 0;
	}
	if (lane == 31)
		CUA_WRITE(sh->warps[thread / 32], sum);
	cua_port_sync_block();
	all = lane < k.threads / 32 ? CUA_READ(sh->warps[lane]) : 0;
	CUA__UNROLL
	for (step = 1; step < k.threads / 32; step *= 2) {
		uint32_t other = cua_port_shuffle_u32(CUA__PARTS_ALL, all,
						      lane >= step ? lane - step : lane);

		all += lane >= step ? other : 0;
	}
	before = cua_port_shuffle_u32(CUA__PARTS_ALL, all, (thread / 32 + 31) % 32);
	*total = cua_port_shuffle_u32(CUA__PARTS_ALL, all, k.threads / 32 - 1);
	return (thread < 32 ? 0 : before) + sum - v;
}

/* The cell of a word with a reserved key, or NULL. */
CUA_FORCE char *cua__parts_cell(const struct cua__parts_kind k, const struct cua__parts *a,
				struct cua_u128 word)
{
	return cua__hashmap_reserved_slot(&a->view, k.ks, k.vs, cua__hashmap_word_key(k.ks, word),
					  NULL);
}

/* The words at hand of this thread, of n from first on; with pairs, one with a reserved key is put into its
 * cell, and is none. */
CUA_FORCE void cua__parts_read(const struct cua__parts_kind k, const struct cua__parts *a,
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
		if (k.again)
			word[j] = cua__parts_get(k, a->from, own + j * k.threads);
		else
			word[j] = cua__hashmap_word_of(
				k.ks, k.vs, cua__hashmap_get(a->keys, k.ks, own + j * k.threads),
				cua__hashmap_get(a->values, k.vs, own + j * k.threads));
	}
	if (k.again)
		return;
	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		reserved |= (*there >> j & 1) && cua__parts_cell(k, a, word[j]);
	if (!reserved)
		return;
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		char *cell = (*there >> j & 1) ? cua__parts_cell(k, a, word[j]) : NULL;

		if (!cell)
			continue;
		(void)cua__hashmap_reserved_enter(
			cell, k.ks, k.vs, cua__hashmap_word_value(k.ks, k.vs, word[j]), &spot);
		*there &= ~((uint32_t)1 << j);
	}
}

/*
 * Where a key comes often in a tile most of its words go. A word that meets its key in a table
 * goes; else it is put there over what was there. So what is in the table stays. By all threads;
 * table is the stage, which nobody uses yet.
 */
CUA_FORCE void cua__parts_filter(const struct cua__parts_kind k, const struct cua__parts *a,
				 void *table, const struct cua_u128 *word, uint32_t *there)
{
	const uint32_t thread = cua_port_thread(), size = cua__parts_tile(k);
	uint64_t *low = (uint64_t *)table;
	uint32_t j;

	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		cua_port_store_b64(&low[j * k.threads + thread], 0, CUA_RELAXED, CUA__PARTS_BLOCK);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		struct cua_u128 other = {0, 0};
		uint64_t *at;

		if (!(*there >> j & 1))
			continue;
		at = &low[(uint32_t)(cua__parts_hash(k, a, word[j]) >> 4) % size];
		other.lo = cua_port_load_b64(at, CUA_RELAXED, CUA__PARTS_BLOCK);
		if (other.lo && cua__parts_same_key(k, other, word[j]))
			*there &= ~((uint32_t)1 << j);
		else
			cua_port_store_b64(at, word[j].lo, CUA_RELAXED, CUA__PARTS_BLOCK);
	}
	cua_port_sync_block();
}

/* Stores the words of a stage, all of which have room. */
CUA_FORCE void cua__parts_store(const struct cua__parts_kind k, void *to, uint32_t total,
				const void *stage, const CUA__PARTS_LOCAL *part_of,
				const uint32_t *offset)
{
	const uint32_t thread = cua_port_thread();
	const size_t own = thread;
	uint32_t j;

	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		if (j * k.threads + thread < total)
			cua__parts_set(k, to,
				       CUA_READ(offset[CUA_READ(part_of[own + j * k.threads])]) +
					       j * k.threads + thread,
				       cua__parts_get(k, stage, own + j * k.threads));
}

/* The same where some have none, which are spilled. */
CUA_FORCE void cua__parts_store_crowded(const struct cua__parts_kind k, const struct cua__parts *a,
					uint64_t first_part, uint32_t total, const void *stage,
					const CUA__PARTS_LOCAL *part_of, const uint32_t *offset)
{
	const uint32_t thread = cua_port_thread();
	uint32_t i;

	/* the bound is the same for a warp */
	for (i = thread; i - cua_port_lane() < total; i += k.threads) {
		struct cua_u128 w = {0, 0};
		int spills = 0;

		if (i < total) {
			const uint32_t p = CUA_READ(part_of[i]);
			const uint32_t at = CUA_READ(offset[p]) + i - (uint32_t)(p * a->room);

			w = cua__parts_get(k, stage, i);
			if (at < a->room)
				cua__parts_set(k, a->to, (first_part + p) * a->room + at, w);
			else
				spills = i == 0 || !cua__parts_same_key(
							   k, cua__parts_get(k, stage, i - 1), w);
		}
		cua__parts_spill(k, a, spills, w);
	}
}

/* stage and part_of have room for a tile, number and offset for as many as there are parts. */
CUA_FORCE void cua__parts_scatter(const struct cua__parts_kind k, const struct cua__parts *a,
				  uint64_t tile, struct cua__parts_shared *sh, void *stage,
				  CUA__PARTS_LOCAL *part_of, uint32_t *number, uint32_t *offset)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t thread = cua_port_thread(), size = cua__parts_tile(k);
	uint64_t first = tile * size, end = a->n, first_part = 0, claimed[2] = {0, 0};
	struct cua_u128 word[32];
	uint32_t place[32], there, j, p, before, total, n[2];
	int filtered, crowded;

	if (k.again) {
		const uint64_t part = tile / a->from_tiles, start = part * a->from_room;
		const uint64_t filled = CUA_READ(a->from_filled[part]);

		first = start + tile % a->from_tiles * size;
		end = start + (filled < a->from_room ? filled : a->from_room);
		first_part = part * a->parts;
	}
	if (first >= end)
		return;
	for (p = thread; p < a->parts; p += k.threads)
		CUA_WRITE(number[p], 0);
	cua__parts_read(k, a, first, end - first < size ? (uint32_t)(end - first) : size, word,
			&there);
	cua_port_sync_block();
	for (filtered = k.ks == 16;; filtered = 1) {
		CUA__UNROLL
		for (j = 0; j < k.each; j++) {
			place[j] = CUA__PARTS_NONE;
			if (!(there >> j & 1))
				continue;
			p = cua__quad_home(&a->view, cua__parts_hash(k, a, word[j])) >> a->shift;
			if (k.again)
				p &= a->parts - 1;
			place[j] = p << 16 | cua_port_fetch_add_u32(&number[p], 1, CUA_RELAXED,
								    CUA__PARTS_BLOCK);
		}
		cua_port_sync_block();
		CUA__UNROLL
		for (j = 0; j < 2; j++) {
			p = thread * 2 + j;
			n[j] = p < a->parts ? CUA_READ(number[p]) : 0;
		}
		if (!cua_port_sync_block_or(!filtered && (n[0] > a->many || n[1] > a->many)))
			break;
		cua__parts_filter(k, a, stage, word, &there);
		for (p = thread; p < a->parts; p += k.threads)
			CUA_WRITE(number[p], 0);
		cua_port_sync_block();
	}
	CUA__UNROLL
	for (j = 0; j < 2; j++)
		if (n[j])
			claimed[j] = cua_port_fetch_add_u64(&a->filled[first_part + thread * 2 + j],
							    n[j], CUA_RELAXED, CUA__HASHMAP_AT);
	before = cua__parts_scan(k, sh, n[0] + n[1], &total);
	CUA__UNROLL
	for (j = 0; j < 2; j++) {
		p = thread * 2 + j;
		if (p < a->parts)
			CUA_WRITE(number[p], before);
		before += n[j];
	}
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		uint32_t at;

		if (place[j] == CUA__PARTS_NONE)
			continue;
		at = CUA_READ(number[place[j] >> 16]) + (place[j] & 0xffff);
		cua__parts_set(k, stage, at, word[j]);
		CUA_WRITE(part_of[at], (CUA__PARTS_LOCAL)(place[j] >> 16));
	}
	/*
	 * what a word's place in all parts is more than its place in the stage, modulo 2^32, which is enough but for
	 * more than 2^32 words
	 */
	crowded = a->parts * a->room >> 32 != 0;
	CUA__UNROLL
	for (j = 0; j < 2; j++) {
		p = thread * 2 + j;
		if (p >= a->parts)
			continue;
		crowded |= claimed[j] + n[j] > a->room;
		CUA_WRITE(offset[p],
			  (uint32_t)(p * a->room + (claimed[j] < a->room ? claimed[j] : a->room)) -
				  CUA_READ(number[p]));
	}
	crowded = cua_port_sync_block_or(crowded);
	if (crowded)
		cua__parts_store_crowded(k, a, first_part, total, stage, part_of, offset);
	else
		cua__parts_store(k, (char *)a->to + first_part * a->room * (wide ? 16 : 8), total,
				 stage, part_of, offset);
}

/* ---- build ---- */

#define CUA__PARTS_BUCKETS ((uint32_t)CUA__HASHMAP_WINDOW)
#define CUA__PARTS_WINDOW_BYTES (CUA__PARTS_BUCKETS * CUA__HASHMAP_WORD_BYTES)
/* In a bucket's number of pairs: it is being looked at. */
#define CUA__PARTS_BUSY 0x80000000u

/*
 * Word i of a bucket, 0 being the head, in shared memory: turned with the bucket, since threads
 * tend to use the same word of different buckets.
 */
CUA_FORCE uint32_t cua__parts_at(const struct cua__parts_kind k, uint32_t bucket, uint32_t i)
{
	return cua__hashmap_is_wide(k.ks, k.vs) ? bucket * 4 + (i ^ (bucket / 2 & 3))
						: bucket * 8 + (i ^ (bucket / 2 & 7));
}

/* Takes out all but one of equal keys among the n pairs of a bucket. Returns how many remain. */
CUA_FORCE uint32_t cua__parts_unique(const struct cua__parts_kind k, void *table, uint32_t bucket,
				     uint32_t n)
{
	uint32_t kept = 1, i, j;

	for (i = 1; i < n; i++) {
		const struct cua_u128 w = cua__parts_get(k, table, cua__parts_at(k, bucket, i + 1));

		for (j = 0; j < kept; j++)
			if (cua__parts_same_key(
				    k, cua__parts_get(k, table, cua__parts_at(k, bucket, j + 1)),
				    w))
				break;
		if (j < kept)
			continue;
		cua__parts_set(k, table, cua__parts_at(k, bucket, kept + 1), w);
		kept++;
	}
	return kept;
}

/* A bucket whose words have all their numbers: becomes what it is in the map. Returns its pairs. */
CUA_FORCE uint32_t cua__parts_finish(const struct cua__parts_kind k, void *table, uint32_t *number,
				     uint32_t bucket)
{
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	const struct cua_u128 empty = {0, 0};
	struct cua_u128 w[7];
	uint32_t n = CUA_READ(number[bucket]), i, j;
	int equal = 0;

	n = n < slots ? n : slots;
	CUA__UNROLL
	for (i = 0; i < slots; i++)
		w[i] = cua__parts_get(k, table, cua__parts_at(k, bucket, i + 1));
	CUA__UNROLL
	for (i = 1; i < slots; i++) {
		int same = 0;

		CUA__UNROLL
		for (j = 0; j < i; j++)
			same |= cua__parts_same_key(k, w[i], w[j]);
		equal |= same && i < n;
	}
	if (equal)
		n = cua__parts_unique(k, table, bucket, n);
	CUA__UNROLL
	for (i = 0; i < slots; i++)
		if (i >= n)
			cua__parts_set(k, table, cua__parts_at(k, bucket, i + 1), empty);
	cua__parts_set(k, table, cua__parts_at(k, bucket, 0), empty);
	CUA_WRITE(number[bucket], n);
	return n;
}

/* Takes the bucket, of which n is the number that was seen. Returns whether it did. */
CUA_FORCE int cua__parts_try(uint32_t *number, uint32_t bucket, uint32_t n)
{
	return !(n & CUA__PARTS_BUSY) && cua_port_cas_b32(&number[bucket], n, n | CUA__PARTS_BUSY,
							  CUA_ACQUIRE, CUA__PARTS_BLOCK) == n;
}

/* Gives a taken bucket back, now with n pairs. */
CUA_FORCE void cua__parts_release(uint32_t *number, uint32_t bucket, uint32_t n)
{
	/* racecheck knows an exchange, but takes a store for a race */
	(void)cua_port_exchange_b32(&number[bucket], n, CUA_RELEASE, CUA__PARTS_BLOCK);
}

/* Whether one of the first n pairs of a bucket has the word's key. */
CUA_FORCE int cua__parts_has(const struct cua__parts_kind k, const void *table, uint32_t bucket,
			     uint32_t n, struct cua_u128 word)
{
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	uint32_t i;
	int has = 0;

	CUA__UNROLL
	for (i = 0; i < slots; i++)
		has |= i < n &&
		       cua__parts_same_key(
			       k, cua__parts_get(k, table, cua__parts_at(k, bucket, i + 1)), word);
	return has;
}

/* Buckets of a window that may hold a key. */
CUA_FORCE uint32_t cua__parts_most(const struct cua__parts *a)
{
	const uint64_t most = cua__hashmap_most(&a->view);

	return most < CUA__PARTS_BUCKETS ? (uint32_t)most : CUA__PARTS_BUCKETS;
}

/*
 * Looks for the key in a bucket of n pairs that is full, or that the caller has taken, and puts the word behind the
 * others. Returns INSERTED, EXISTS, or 0 where the bucket is full.
 */
CUA_FORCE int cua__parts_enter(const struct cua__parts_kind k, void *table, uint32_t bucket,
			       uint32_t n, struct cua_u128 word)
{
	if (cua__parts_has(k, table, bucket, n, word))
		return CUA_HASHMAP_EXISTS;
	if (n == cua__hashmap_word_slots(k.ks, k.vs))
		return 0;
	cua__parts_set(k, table, cua__parts_at(k, bucket, n + 1), word);
	return CUA_HASHMAP_INSERTED;
}

/*
 * By whole warps, for the lanes that have a word with no slot so far; others may have its key. Returns INSERTED,
 * EXISTS, or 0 where no bucket that may hold the key has a free slot. A lane that takes a bucket is done with it in the same turn, so that none
 * waits for another of its own warp.
 */
CUA_FORCE int cua__parts_walk(const struct cua__parts_kind k, const struct cua__parts *a,
			      void *table, uint32_t *number, int has, struct cua_u128 word)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	const uint64_t hash = cua__parts_hash(k, a, word);
	const uint32_t home = cua__quad_home(&a->view, hash), here = home % CUA__PARTS_BUCKETS;
	const uint32_t most = cua__parts_most(a);
	const uint32_t head_at = cua__parts_at(k, here, 0);
	uint32_t distance = 0, at = here;
	int result = 0, looks = has;

	while (cua_port_ballot(CUA__PARTS_ALL, looks)) {
		if (looks) {
			const uint32_t n =
				cua_port_load_b32(&number[at], CUA_ACQUIRE, CUA__PARTS_BLOCK);
			/* slots of a full bucket do not change */
			const int full = (n & ~CUA__PARTS_BUSY) == slots;

			if (full || cua__parts_try(number, at, n)) {
				result = cua__parts_enter(k, table, at, full ? slots : n, word);
				if (!full)
					cua__parts_release(number, at,
							   n + (result == CUA_HASHMAP_INSERTED));
				looks = !result && ++distance < most;
				at = (uint32_t)cua__hashmap_word_probe(&a->view, home, hash,
								       distance) %
				     CUA__PARTS_BUCKETS;
			}
		}
		cua_port_sync_warp(CUA__PARTS_ALL);
	}
	looks = distance && result == CUA_HASHMAP_INSERTED;
	while (cua_port_ballot(CUA__PARTS_ALL, looks)) {
		if (looks) {
			const uint32_t n =
				cua_port_load_b32(&number[here], CUA_RELAXED, CUA__PARTS_BLOCK);

			if (cua__parts_try(number, here, n)) {
				const struct cua_u128 w = cua__parts_get(k, table, head_at);
				struct cua__hashmap_head head = {w.lo, w.hi};
				struct cua_u128 raised;

				head = cua__hashmap_word_raise(wide, head, hash, distance);
				raised.lo = head.lo;
				raised.hi = head.hi;
				cua__parts_set(k, table, head_at, raised);
				cua__parts_release(number, here, n);
				looks = 0;
			}
		}
		cua_port_sync_warp(CUA__PARTS_ALL);
	}
	return result;
}

/*
 * By whole warps, for the lanes that have a word of which no bucket has the key, and no other word that is at work
 * has it: into the first of `most` buckets with a free slot. Returns INSERTED, or 0 where none has one. Lanes go on
 * together, though not all of them find a slot at the same time.
 */
CUA_FORCE int cua__parts_put(const struct cua__parts_kind k, uint32_t most, void *table,
			     uint32_t *number, int has, uint32_t home, uint64_t hash,
			     struct cua_u128 word)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t slots = cua__hashmap_word_slots(k.ks, k.vs);
	/* cua__hashmap_word_probe within a window */
	const uint32_t step = (uint32_t)(hash >> 4) | 1;
	uint64_t *head = (uint64_t *)table + (size_t)cua__parts_at(k, home, 0) * (wide ? 2 : 1),
		 old = 0;
	uint32_t distance = 0, at = home, slot = 0, half;
	int looks = has, put = 0;

	while (cua_port_ballot(CUA__PARTS_ALL, looks)) {
		if (looks) {
			const uint32_t n =
				cua_port_load_b32(&number[at], CUA_RELAXED, CUA__PARTS_BLOCK);

			if (n >= slots) {
				at = (at + step) % CUA__PARTS_BUCKETS;
				looks = ++distance < most;
			} else if (cua_port_cas_b32(&number[at], n, n + 1, CUA_RELAXED,
						    CUA__PARTS_BLOCK) == n) {
				slot = n + 1;
				put = 1;
				looks = 0;
			}
		}
		cua_port_sync_warp(CUA__PARTS_ALL);
	}
	if (put)
		cua__parts_set(k, table, cua__parts_at(k, at, slot), word);
	CUA__UNROLL
	for (half = 0; half < (wide ? 2u : 1u); half++) {
		looks = put && distance;
		if (looks)
			old = cua_port_load_b64(&head[half], CUA_RELAXED, CUA__PARTS_BLOCK);
		while (cua_port_ballot(CUA__PARTS_ALL, looks)) {
			if (looks) {
				struct cua__hashmap_head to = {half ? 0 : old, half ? old : 0};
				uint64_t seen;

				to = cua__hashmap_word_raise(wide, to, hash, distance);
				seen = cua_port_cas_b64(&head[half], old, half ? to.hi : to.lo,
							CUA_RELAXED, CUA__PARTS_BLOCK);
				looks = seen != old;
				old = seen;
			}
			cua_port_sync_warp(CUA__PARTS_ALL);
		}
	}
	return put ? CUA_HASHMAP_INSERTED : 0;
}

/*
 * Words that found no slot at home, `listed` of them: in list, and behind its room where the window's words were.
 * Equal keys have one home, and the same bit of its `told`: who finds that bit taken comes late, when the
 * others have their places, and looks whether its key is among them. All others need only look at home, and for
 * a free slot. Returns how many this thread put.
 */
CUA_FORCE uint32_t cua__parts_place(const struct cua__parts_kind k, const struct cua__parts *a,
				    struct cua__parts_shared *sh, void *table, uint32_t *number,
				    uint32_t *told, const void *list, uint32_t list_room,
				    const void *words, uint32_t listed)
{
	const uint32_t thread = cua_port_thread(), lane = cua_port_lane(),
		       most = cua__parts_most(a);
	uint32_t inserted = 0, todo = 0, late = 0, turn, i, at, n;

	/* a thread has no more turns than words of the window, at most 32 */
	for (turn = 0, i = thread; i < listed; turn++, i += k.threads) {
		const struct cua_u128 w = cua__parts_get(k, i < list_room ? list : words, i);
		const uint64_t hash = cua__parts_hash(k, a, w);
		const uint32_t home = cua__quad_home(&a->view, hash) % CUA__PARTS_BUCKETS;
		const uint32_t bit = (uint32_t)1 << (hash >> 4 & 31);

		if (cua__parts_has(k, table, home, CUA_READ(number[home]), w))
			continue;
		if (cua_port_fetch_or_b32(&told[home], bit, CUA_RELAXED, CUA__PARTS_BLOCK) & bit)
			late |= (uint32_t)1 << turn;
		else
			todo |= (uint32_t)1 << turn;
	}
	cua_port_sync_block();
	/* this bound and the next are the same for a warp */
	for (turn = 0, i = thread; i - lane < listed; turn++, i += k.threads) {
		const int has = todo >> turn & 1;
		struct cua_u128 w = {0, 0};
		uint64_t hash;
		int result;

		if (has)
			w = cua__parts_get(k, i < list_room ? list : words, i);
		hash = cua__parts_hash(k, a, w);
		result = cua__parts_put(k, most, table, number, has,
					cua__quad_home(&a->view, hash) % CUA__PARTS_BUCKETS, hash,
					w);
		inserted += result == CUA_HASHMAP_INSERTED;
		cua__parts_spill(k, a, has && !result, w);
	}
	/* told is done with, and now has the numbers of those that are late: few, and then they are together in a warp */
	while (cua_port_sync_block_or(late != 0)) {
		for (turn = 0, i = thread; late; turn++, i += k.threads) {
			if (!(late >> turn & 1))
				continue;
			at = cua_port_fetch_add_u32(&sh->late, 1, CUA_RELAXED, CUA__PARTS_BLOCK);
			if (at >= CUA__PARTS_BUCKETS)
				break;
			CUA_WRITE(told[at], i);
			late &= ~((uint32_t)1 << turn);
		}
		cua_port_sync_block();
		n = CUA_READ(sh->late);
		n = n < CUA__PARTS_BUCKETS ? n : CUA__PARTS_BUCKETS;
		for (at = thread; at - lane < n; at += k.threads) {
			const int has = at < n;
			struct cua_u128 w = {0, 0};
			int result;

			if (has) {
				i = CUA_READ(told[at]);
				w = cua__parts_get(k, i < list_room ? list : words, i);
			}
			result = cua__parts_walk(k, a, table, number, has, w);
			inserted += result == CUA_HASHMAP_INSERTED;
			cua__parts_spill(k, a, has && !result, w);
		}
		cua_port_sync_block();
		if (thread == 0)
			CUA_WRITE(sh->late, 0);
	}
	return inserted;
}

/*
 * table has room for a window, number and told for as many as it has buckets. list is for words that find no
 * slot at first; what it has no room for goes where the window's words were.
 */
CUA_FORCE void cua__parts_build(const struct cua__parts_kind k, const struct cua__parts *a,
				uint64_t window, struct cua__parts_shared *sh, void *table,
				uint32_t *number, uint32_t *told, void *list, uint32_t list_room)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t thread = cua_port_thread(), slots = cua__hashmap_word_slots(k.ks, k.vs);
	char *words = cua__hashmap_word_bucket(&a->view, window * CUA__PARTS_BUCKETS);
	struct cua__parts_wide *out = (struct cua__parts_wide *)(void *)words;
	const uint64_t filled = CUA_READ(a->filled[window]), own = thread;
	const uint32_t n = (uint32_t)(filled < a->room ? filled : a->room);
	struct cua_u128 word[32];
	uint32_t inserted = 0, listed, i, j, bucket;

	for (bucket = thread; bucket < CUA__PARTS_BUCKETS; bucket += k.threads) {
		CUA_WRITE(number[bucket], 0);
		CUA_WRITE(told[bucket], 0);
	}
	if (thread == 0) {
		CUA_WRITE(sh->listed, 0);
		CUA_WRITE(sh->inserted, 0);
		CUA_WRITE(sh->late, 0);
	}
	CUA__UNROLL
	for (j = 0; j < k.each; j++)
		if (j * k.threads + thread < n)
			word[j] = cua__parts_get(k, words, own + j * k.threads);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < k.each; j++) {
		if (j * k.threads + thread >= n)
			continue;
		bucket = cua__quad_home(&a->view, cua__parts_hash(k, a, word[j])) %
			 CUA__PARTS_BUCKETS;
		i = cua_port_fetch_add_u32(&number[bucket], 1, CUA_RELAXED, CUA__PARTS_BLOCK);
		if (i < slots) {
			cua__parts_set(k, table, cua__parts_at(k, bucket, i + 1), word[j]);
			continue;
		}
		i = cua_port_fetch_add_u32(&sh->listed, 1, CUA_RELAXED, CUA__PARTS_BLOCK);
		if (i < list_room)
			cua__parts_set(k, list, i, word[j]);
		else
			cua__parts_set(k, words, i, word[j]);
	}
	cua_port_sync_block();
	for (bucket = thread; bucket < CUA__PARTS_BUCKETS; bucket += k.threads)
		inserted += cua__parts_finish(k, table, number, bucket);
	listed = CUA_READ(sh->listed);
	cua_port_sync_block();
	inserted += cua__parts_place(k, a, sh, table, number, told, list, list_room, words, listed);
	inserted = cua__parts_warp_sum(inserted);
	if (cua_port_lane() == 0)
		cua_port_add_u32(&sh->inserted, inserted, CUA_RELAXED, CUA__PARTS_BLOCK);
	cua_port_sync_block();
	CUA__UNROLL
	for (j = 0; j < CUA__PARTS_WINDOW_BYTES / 16 / k.threads; j++) {
		struct cua__parts_wide pack;

		/* so that what all turns have in common can be told */
		bucket = j * (k.threads / 4) + thread / 4;
		if (wide) {
			const struct cua_u128 w =
				cua__parts_get(k, table, cua__parts_at(k, bucket, thread % 4));

			pack.lo = w.lo;
			pack.hi = w.hi;
		} else {
			pack.lo = cua__parts_get(k, table, cua__parts_at(k, bucket, thread % 4 * 2))
					  .lo;
			pack.hi = cua__parts_get(k, table,
						 cua__parts_at(k, bucket, thread % 4 * 2 + 1))
					  .lo;
		}
		out[own + j * k.threads] = pack;
	}
	if (thread == 0)
		cua_port_add_u64(&cua__hashmap_counts(&a->view, window)->inserted,
				 CUA_READ(sh->inserted), CUA_RELAXED, CUA__HASHMAP_AT);
}

/* ---- insert ---- */

/* As any insert, by one lane. */
CUA_FORCE void cua__parts_insert(const struct cua__parts_kind k, const struct cua__parts *a,
				 struct cua_u128 key, struct cua_u128 value)
{
	const uint64_t hash = cua__hashmap_hash_of(&a->view, k.hash, k.ks, key);
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint32_t added = 0;

	if (cua__hashmap_word_enter(&a->view, k.ks, k.vs, hash, key, NULL, value, CUA_RELAXED,
				    &spot, &added) == CUA_HASHMAP_FULL)
		cua__hashmap_reject(&a->view, hash, key, value);
	cua__hashmap_count_added(&a->view, cua_hash_to_index(hash, a->view.n_buckets), &added);
}

/* By all threads of a grid: from the list, or from the pairs where the list was too short. */
CUA_FORCE void cua__parts_insert_spilled(const struct cua__parts_kind k, const struct cua__parts *a)
{
	const uint64_t step = cua_port_grid_size() * k.threads, spilled = CUA_READ(*a->spilled);
	const int listed = spilled <= a->spill_room;
	const uint64_t n = listed ? spilled : a->n;
	uint64_t i;

	i = cua_port_block() * k.threads + cua_port_thread();
	/* what is spilled takes long: it spreads over the warps */
	if (listed)
		i = i % 32 * (step / 32) + i / 32;
	for (; i < n; i += step) {
		if (listed) {
			const struct cua_u128 w = cua__parts_get(k, a->spill, i);

			cua__parts_insert(k, a, cua__hashmap_word_key(k.ks, w),
					  cua__hashmap_word_value(k.ks, k.vs, w));
		} else {
			cua__parts_insert(k, a, cua__hashmap_get(a->keys, k.ks, i),
					  cua__hashmap_get(a->values, k.vs, i));
		}
	}
}

/*
 * The words of a tile of a part, of `parts` that a scatter has filled; tiles are numbered from one
 * part to the next of those that are at work at once. Those whose home is full wait in `list`, 64 words a
 * warp, until there is one for each lane: they take several times as long as others.
 */
CUA_FORCE void cua__parts_insert_tile(const struct cua__parts_kind k, const struct cua__parts *a,
				      uint64_t tile, void *list)
{
	const int wide = cua__hashmap_is_wide(k.ks, k.vs);
	const uint32_t size = cua__parts_tile(k), thread = cua_port_thread(),
		       lane = cua_port_lane();
	const uint32_t below = ((uint32_t)1 << lane) - 1;
	const uint64_t tiles = a->from_tiles * a->at_once;
	const uint64_t part = tile / tiles * a->at_once + tile % a->at_once;
	const uint64_t first = tile % tiles / a->at_once * size;
	char *const late = (char *)list + thread / 32 * 64 * (wide ? 16 : 8);
	const struct cua_u128 none = {0, 0};
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua_u128 next = none;
	/* when no more words come */
	uint32_t tries = CUA__QUAD_TRIES;
	uint32_t added = 0, waiting = 0, j, n;
	uint64_t filled, from;

	if (part >= a->parts)
		return;
	filled = CUA_READ(a->from_filled[part]);
	if (filled > a->from_room)
		filled = a->from_room;
	if (first >= filled)
		return;
	n = filled - first < size ? (uint32_t)(filled - first) : size;
	from = part * a->from_room + first;
	if (thread < n)
		next = cua__parts_get(k, a->from, from + thread);
	/* the bound is the same for a warp */
	for (j = thread; j - lane < n || waiting; j += k.threads) {
		const struct cua_u128 word = next;
		uint32_t votes;
		int result;

		if (j - lane < n) {
			next = j + k.threads < n ? cua__parts_get(k, a->from, from + j + k.threads)
						 : none;
			result = cua__quad_enter_home(&a->view, k.ks, k.vs, CUA__PARTS_ALL, j < n,
						      cua__parts_hash(k, a, word),
						      cua__hashmap_word_key(k.ks, word), NULL,
						      cua__hashmap_word_value(k.ks, k.vs, word),
						      CUA_RELAXED, &seen);
			added += cua_port_popc_u32(
				cua_port_ballot(CUA__PARTS_ALL, result == CUA_HASHMAP_INSERTED));
			votes = cua_port_ballot(CUA__PARTS_ALL, j < n && !result);
			if (j < n && !result)
				cua__parts_set(k, late, waiting + cua_port_popc_u32(votes & below),
					       word);
			waiting += cua_port_popc_u32(votes);
			cua_port_sync_warp(CUA__PARTS_ALL);
		}
		if (waiting >= 32 || j - lane >= n) {
			const uint32_t most = waiting < 32 ? waiting : 32;
			const int has = lane < most;
			struct cua_u128 w = none;

			waiting -= most;
			if (has)
				w = cua__parts_get(k, late, waiting + lane);
			cua_port_sync_warp(CUA__PARTS_ALL);
			result = cua__quad_enter_full(
				&a->view, k.ks, k.vs, CUA__PARTS_ALL, has, cua__parts_hash(k, a, w),
				cua__hashmap_word_key(k.ks, w), NULL,
				cua__hashmap_word_value(k.ks, k.vs, w), &seen);
			added += cua_port_popc_u32(
				cua_port_ballot(CUA__PARTS_ALL, result == CUA_HASHMAP_INSERTED));
			/* others were faster: with the next ones */
			votes = cua_port_ballot(CUA__PARTS_ALL, has && !result);
			if (tries && waiting + cua_port_popc_u32(votes) < 32) {
				if (has && !result)
					cua__parts_set(k, late,
						       waiting + cua_port_popc_u32(votes & below),
						       w);
				waiting += cua_port_popc_u32(votes);
				tries -= j - lane >= n;
			} else {
				result = result ? result : -1;
			}
			cua__parts_spill(k, a, has && result < 0, w);
			cua_port_sync_warp(CUA__PARTS_ALL);
		}
	}
	cua__quad_count(&a->view, CUA__PARTS_ALL, CUA_RELAXED, &added);
}

#endif /* CUATOMIC_KERNELS_HASHMAP_PARTS_H */
