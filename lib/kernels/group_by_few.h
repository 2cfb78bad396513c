/* SPDX-License-Identifier: MIT */
/*
 * Group by on a GPU with few groups, whose keys fit a table in the shared memory of each block.
 *
 * Source: private tables that are merged at the end, as private histograms (D. Kirk and W. Hwu,
 * Programming Massively Parallel Processors); the sort is bitonic (K. Batcher, 1968); the dictionary is
 * cuckoo hashing (R. Pagh and F. Rodler, 2001) by multiplications.
 *
 * The kernels are:
 * 1. Collect: each block finds the keys of its rows in a table of its own, with the first row of
 *    each key. At the end it merges its table into that of all blocks.
 * 2. Order: a single block sorts the groups by first row or by key, and numbers them. It makes the
 *    dictionary: a cuckoo table of the keys, with the numbers of their groups. A key is in one of two
 *    slots, so a lookup has no loop.
 * 3. Either, number: each block loads the dictionary, and stores the number of each row.
 *    Or, accumulate: each block loads the dictionary, and has a count and a sum for each slot, in one
 *    or more copies. At the end it adds them to those of the groups.
 * 4. After accumulate, round: results from the counts and sums of the groups.
 *
 * The caller first collects the keys of a part of the rows, the first ones. If the step 3 then meets
 * another key, it sets `missed`, its results are not valid, and the caller collects the keys of all
 * rows. A key of the first rows has its first row there, so the order does not depend on this.
 *
 * The call is `unfit` if there are more groups than a quarter of a table's slots, if a hash is 0, which
 * is an empty slot, or if a key finds no place in the dictionary. Then no result is valid.
 *
 * The hash of a key is a permutation of the numbers of the key's size. So a hash stands for its key.
 * The dictionary has keys. Its empty slots have the key of the first group, and its number: a lookup
 * of another key never matches there.
 *
 * Argument: a slot changes from 0 to a hash, by compare-and-swap, and never again. All rows of a key
 * probe the same slots in the same order. A thread passes a slot only if it has another hash. So all
 * rows of a key end at the same slot. Minima, counts and sums are atomic operations on integers, so
 * their order does not matter. An addition to a word of a sum that passes 2^31 adds 2^32 units to the
 * digits of the group (halves.h). Barriers separate clearing, adding and merging. The ends of kernels
 * publish the tables.
 *
 * Scope: the block for its table, else the device. Memory order: relaxed. Progress: no thread waits
 * for another block. A failed compare-and-swap means that another thread has claimed the slot.
 */
#ifndef CUATOMIC_KERNELS_GROUP_BY_FEW_H
#define CUATOMIC_KERNELS_GROUP_BY_FEW_H

#include "backend/group_by_backend.h"
#include "kernels/group_by_kernel.h"
#include "kernels/group_by_sums.h"
#include "kernels/halves.h"
#include "kernels/owner.h"

/* Logarithm of the most slots of a table. */
#define CUA__FEW_LOG 13u
/* Keys that a thread loads at once. */
#ifndef CUA__FEW_LOADS
#define CUA__FEW_LOADS 4u
#endif
/* Slots that a key probes before the tables count as full. */
#define CUA__FEW_PROBES 64u
/* Rounds of a block between two looks at whether the call goes on. */
#ifndef CUA__FEW_ROUNDS
#define CUA__FEW_ROUNDS 16u
#endif
#define CUA__FEW_NONE UINT32_MAX
/* Exchanges of a key in the dictionary before it has no place, and dictionaries that are tried. */
#define CUA__FEW_MOVES 128u
#define CUA__FEW_TRIES 8u

#define CUA__FEW_IN_BLOCK CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED
#define CUA__FEW_ON_DEVICE CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* The most groups of a call. */
CUA_FORCE uint32_t cua__few_most(const struct cua__few_job *j)
{
	return (1u << j->log) / 4;
}

/* ---- hashes; `size`, that of a key, is a constant ---- */

/* The hash of a row's key. */
CUA_FORCE uint64_t cua__few_hash(const struct cua__few_job *j, uint64_t key, uint32_t size)
{
	return size == 4 ? cua__owner_hash_u32((uint32_t)key, (uint32_t)j->d.seed)
			 : cua_hash_u64(key, j->d.seed);
}

/* The slot at which the probe sequence of a hash begins. */
CUA_FORCE uint32_t cua__few_home(uint64_t hash, uint32_t log, uint32_t size)
{
	return size == 4 ? (uint32_t)hash >> (32 - log) : (uint32_t)(hash >> (64 - log));
}

CUA_FORCE uint64_t cua__few_get(const void *table, uint32_t at, uint32_t size)
{
	if (size == 8)
		return CUA_READ(((const uint64_t *)table)[at]);
	return CUA_READ(((const uint32_t *)table)[at]);
}

CUA_FORCE void cua__few_set(void *table, uint32_t at, uint64_t hash, uint32_t size)
{
	if (size == 8)
		CUA_WRITE(((uint64_t *)table)[at], hash);
	else
		CUA_WRITE(((uint32_t *)table)[at], (uint32_t)hash);
}

/*
 * Finds or claims the slot of a hash, from its home on, in a table with words of `word` bytes.
 * Returns NONE if the probes end, or if the hash is 0. *claimed becomes 1 if the slot was empty.
 */
CUA_FORCE uint32_t cua__few_claim(void *table, uint32_t log, uint32_t at, uint64_t hash,
				  uint32_t word, enum cua_scope scope, enum cua_space space,
				  int *claimed)
{
	if (!hash)
		return CUA__FEW_NONE;
	for (uint32_t probe = 0; probe < CUA__FEW_PROBES; probe++) {
		uint64_t seen;

		if (word == 8)
			seen = cua_port_load_b64((uint64_t *)table + at, CUA_RELAXED, scope, space);
		else
			seen = cua_port_load_b32((uint32_t *)table + at, CUA_RELAXED, scope, space);
		if (!seen) {
			if (word == 8)
				seen = cua_port_cas_b64((uint64_t *)table + at, 0, hash,
							CUA_RELAXED, scope, space);
			else
				seen = cua_port_cas_b32((uint32_t *)table + at, 0, (uint32_t)hash,
							CUA_RELAXED, scope, space);
			if (!seen) {
				*claimed = 1;
				return at;
			}
		}
		if (seen == hash)
			return at;
		at = (at + 1) & ((1u << log) - 1);
	}
	return CUA__FEW_NONE;
}

/* ---- collect ---- */

/* Shared memory of collect: the planes of hashes and of first rows follow. */
struct cua__few_block {
	uint32_t found; /* keys */
	uint32_t full;
	uint32_t reserved[2];
};

CUA_FORCE uint32_t cua__few_collect_bytes(const struct cua__few_job *j, uint32_t size)
{
	return (uint32_t)sizeof(struct cua__few_block) + (size + 4) * (1u << j->log);
}

/* A row's key: finds or claims its slot, and lowers the first row. */
CUA_FORCE void cua__few_take(const struct cua__few_job *j, struct cua__few_block *sh, void *hashes,
			     uint64_t row, uint64_t hash, int taken, uint32_t size)
{
	uint32_t *least = (uint32_t *)((char *)hashes + (size_t)size * (1u << j->log));
	uint32_t at = CUA__FEW_NONE;
	int claimed = 0;

	if (taken)
		at = cua__few_claim(hashes, j->log, cua__few_home(hash, j->log, size), hash, size,
				    CUA_SCOPE_BLOCK, CUA_SPACE_SHARED, &claimed);
	/* the lanes probe different numbers of slots; they go on together */
	cua_port_sync_warp(CUA__ALL_LANES);
	if (!taken)
		return;
	if (at == CUA__FEW_NONE ||
	    (claimed &&
	     cua_port_fetch_add_u32(&sh->found, 1, CUA__FEW_IN_BLOCK) >= cua__few_most(j)))
		cua_port_store_b32(&sh->full, 1, CUA__FEW_IN_BLOCK);
	else if ((uint32_t)row < cua_port_load_b32(&least[at], CUA__FEW_IN_BLOCK))
		cua_port_min_u32(&least[at], (uint32_t)row, CUA__FEW_IN_BLOCK);
}

/* Merges a block's table into that of all blocks. */
CUA_FORCE void cua__few_merge(const struct cua__few_job *j, const void *hashes, uint32_t size)
{
	const uint32_t *least =
		(const uint32_t *)((const char *)hashes + (size_t)size * (1u << j->log));
	const uint32_t threads = cua_port_block_size();

	for (uint32_t s = cua_port_thread(); s < 1u << j->log; s += threads) {
		const uint64_t hash = cua__few_get(hashes, s, size);
		int claimed = 0;
		uint32_t at;

		if (!hash)
			continue;
		at = cua__few_claim(j->hash, j->log, cua__few_home(hash, j->log, size), hash, 8,
				    CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL, &claimed);
		if (at == CUA__FEW_NONE ||
		    (claimed && cua_port_fetch_add_u32(&j->state->found, 1, CUA__FEW_ON_DEVICE) >=
					cua__few_most(j))) {
			cua_port_or_b32(&j->state->unfit, 1, CUA__FEW_ON_DEVICE);
			return;
		}
		cua_port_min_u32(&j->least[at], CUA_READ(least[s]), CUA__FEW_ON_DEVICE);
	}
}

/* Whether a warp ends its loop over the rows: the same for all its lanes. */
CUA_FORCE int cua__few_ends(uint32_t *in_block, uint32_t *on_device, uint32_t round)
{
	int ends = in_block && cua_port_load_b32(in_block, CUA__FEW_IN_BLOCK);

	if (round % CUA__FEW_ROUNDS == 0)
		ends |= cua_port_load_b32(on_device, CUA__FEW_ON_DEVICE) != 0;
	return cua_port_ballot(CUA__ALL_LANES, ends) != 0;
}

/* The tile of a block that begins at row `begin`, and what is constant in a kernel. */
struct cua__few_tile {
	uint64_t begin, end; /* rows; `end` is that of all rows */
	uint32_t threads;    /* of the block */
	uint32_t size;       /* of a key */
	int floats;          /* 1: keys may be floats */
	int whole;           /* 1: all rows of the tile exist */
};

/* The thread's row k of a tile. */
CUA_FORCE uint64_t cua__few_row(const struct cua__few_tile *t, uint32_t k)
{
	return t->begin + cua_port_thread() + k * t->threads;
}

CUA_FORCE int cua__few_has(const struct cua__few_tile *t, uint32_t k)
{
	return t->whole || cua__few_row(t, k) < t->end;
}

/* Loads the keys of a thread's rows. */
CUA_FORCE void cua__few_keys(const struct cua__few_job *j, const struct cua__few_tile *t,
			     uint64_t *key)
{
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__FEW_LOADS; k++) {
		const uint64_t row = cua__few_row(t, k);

		key[k] = 0;
		if (cua__few_has(t, k))
			key[k] = t->size == 8
					 ? (uint64_t)CUA_READ(((const cua__raw64 *)j->d.keys)[row])
					 : CUA_READ(((const cua__raw32 *)j->d.keys)[row]);
	}
	if (!t->floats || !cua__is_float(j->d.key_type))
		return;
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__FEW_LOADS; k++)
		key[k] = cua__group_same_key(t->size == 8 ? CUA_F64 : CUA_F32, key[k]);
}

/* The rows of a tile. */
CUA_FORCE void cua__few_collect_rows(const struct cua__few_job *j, struct cua__few_block *sh,
				     void *hashes, const struct cua__few_tile *t)
{
	uint64_t key[CUA__FEW_LOADS];

	cua__few_keys(j, t, key);
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__FEW_LOADS; k++)
		cua__few_take(j, sh, hashes, cua__few_row(t, k), cua__few_hash(j, key[k], t->size),
			      cua__few_has(t, k), t->size);
}

/* threads and size are constants. */
CUA_FORCE void cua__few_collect(const struct cua__few_job *j, struct cua__few_block *sh,
				uint32_t threads, uint32_t size)
{
	const uint32_t thread = cua_port_thread(), tile = CUA__FEW_LOADS * threads;
	struct cua__few_tile t = {0, j->rows, threads, size, 1, 0};
	void *hashes = sh + 1;
	uint32_t *word = (uint32_t *)hashes, round = 0;

	for (uint32_t i = thread; i < size / 4 << j->log; i += threads)
		CUA_WRITE(word[i], 0u);
	for (uint32_t i = thread; i < 1u << j->log; i += threads)
		CUA_WRITE(word[(size / 4 << j->log) + i], UINT32_MAX);
	if (thread == 0) {
		CUA_WRITE(sh->found, 0u);
		CUA_WRITE(sh->full, 0u);
	}
	cua_port_sync_block();
	for (t.begin = (uint64_t)cua_port_block() * tile; t.begin < j->rows;
	     t.begin += (uint64_t)cua_port_grid_size() * tile) {
		if (cua__few_ends(&sh->full, &j->state->unfit, round++))
			break;
		cua__few_collect_rows(j, sh, hashes, &t);
	}
	cua_port_sync_block();
	if (!CUA_READ(sh->full))
		cua__few_merge(j, hashes, size);
	else if (thread == 0)
		cua_port_or_b32(&j->state->unfit, 1, CUA__FEW_ON_DEVICE);
}

/* ---- order ---- */

/* Shared memory of order: words to sort by, and slots, of the most groups follow. */
struct cua__few_sorter {
	uint32_t groups;
	uint32_t homeless;       /* 1: a key has no place in the dictionary */
	uint32_t exponents[256]; /* of sampled elements */
};

/* The power of two that the sort pads the groups to. */
CUA_FORCE uint32_t cua__few_padded(uint32_t groups)
{
	uint32_t padded = 1;

	while (padded < groups)
		padded *= 2;
	return padded;
}

CUA_FORCE uint32_t cua__few_order_bytes(const struct cua__few_job *j)
{
	return (uint32_t)sizeof(struct cua__few_sorter) + 12 * cua__few_most(j);
}

/* The word that orders a group. */
CUA_FORCE uint64_t cua__few_word(const struct cua__few_job *j, uint32_t slot)
{
	const uint32_t row = CUA_READ(j->least[slot]);
	uint64_t word;

	if (!j->d.sorted)
		return row;
	word = cua__group_ordered(&j->d, cua__group_key(&j->d, row)).lo;
	return j->d.key_size == 4 ? (uint32_t)word : word;
}

/* Exchanges the elements a and b if they are not ascending. A pad is the last of equal words. */
CUA_FORCE void cua__few_exchange(uint64_t *word, uint32_t *slot, uint32_t a, uint32_t b)
{
	const uint64_t x = CUA_READ(word[a]), y = CUA_READ(word[b]);
	const uint32_t s = CUA_READ(slot[a]), t = CUA_READ(slot[b]);

	if (x < y || (x == y && s <= t))
		return;
	CUA_WRITE(word[a], y);
	CUA_WRITE(word[b], x);
	CUA_WRITE(slot[a], t);
	CUA_WRITE(slot[b], s);
}

/* Sorts n elements, a power of two. All threads of the block call. */
CUA_FORCE void cua__few_sort(uint64_t *word, uint32_t *slot, uint32_t n)
{
	for (uint32_t length = 2; length <= n; length *= 2)
		for (uint32_t half = length / 2; half > 0; half /= 2) {
			for (uint32_t i = cua_port_thread(); i < n / 2;
			     i += cua_port_block_size()) {
				const uint32_t a = 2 * i - (i & (half - 1));
				/* the first step of a length compares with the reversed half */
				const uint32_t b = half == length / 2 ? a ^ (length - 1) : a + half;

				cua__few_exchange(word, slot, a, b);
			}
			cua_port_sync_block();
		}
}

/*
 * The limit of the window for the sampled elements (cua__halves_limit), of which few may be above it.
 * A single thread.
 */
CUA_FORCE int cua__few_limit(const uint32_t *exponents)
{
	uint32_t all = 0, above = 0;
	int top = 0;

	for (uint32_t e = 0; e < 255; e++)
		all += CUA_READ(exponents[e]);
	for (uint32_t e = 255; e-- > 0 && above <= all / 512;) {
		above += CUA_READ(exponents[e]);
		top = (int)e;
	}
	return cua__halves_limit(all ? top : 127);
}

/* Counts the exponent of a thread's sampled element. */
CUA_FORCE void cua__few_sample(const struct cua__few_job *j, uint32_t *exponents)
{
	const uint64_t row = j->d.n / cua_port_block_size() * cua_port_thread();
	const uint32_t bits = CUA_READ(j->s.x[row]) & 0x7fffffff;

	if (bits && bits < 0x7f800000u)
		cua_port_add_u32(&exponents[bits >> 23 ? bits >> 23 : 1], 1, CUA__FEW_IN_BLOCK);
}

/* The slots of a key in a dictionary of 2^log slots, for a pair of odd multipliers. */
CUA_FORCE void cua__few_places(const uint32_t *multiplier, uint32_t log, uint64_t key,
			       uint32_t size, uint32_t *one, uint32_t *two)
{
	uint32_t x = (uint32_t)key;

	if (size == 8)
		x += (uint32_t)(key >> 32) * (multiplier[0] ^ 0x5bd1e994u);
	*one = (x * multiplier[0]) >> (32 - log);
	*two = (x * multiplier[1]) >> (32 - log);
}

/* The key of a sorted group. */
CUA_FORCE uint64_t cua__few_key_of(const struct cua__few_job *j, const uint32_t *slot, uint32_t g)
{
	return cua__group_key(&j->d, CUA_READ(j->least[CUA_READ(slot[g])])).lo;
}

/* Places a group in the dictionary. A group that it displaces moves to its other slot. */
CUA_FORCE int cua__few_put(const struct cua__few_job *j, const uint32_t *slot,
			   const uint32_t *multiplier, uint32_t log, uint32_t g, uint32_t size)
{
	uint32_t at = CUA__FEW_NONE;

	for (uint32_t move = 0; move < CUA__FEW_MOVES; move++) {
		uint32_t one, two;

		cua__few_places(multiplier, log, cua__few_key_of(j, slot, g), size, &one, &two);
		at = at == one ? two : one;
		g = cua_port_exchange_b32(&j->number[at], g, CUA_RELAXED, CUA_SCOPE_BLOCK,
					  CUA_SPACE_GLOBAL);
		if (g == CUA__FEW_NONE)
			return 1;
	}
	return 0;
}

/* Makes the dictionary of the sorted groups. All threads of the block call. */
CUA_FORCE void cua__few_define(const struct cua__few_job *j, struct cua__few_sorter *sh,
			       const uint32_t *slot, uint32_t groups, uint32_t size)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint64_t seed = j->d.seed, key = cua__few_key_of(j, slot, 0);
	uint32_t log = 2, multiplier[2], tries = 0;
	int complete = 0;

	while (1u << log < 4 * groups)
		log++;
	while (!complete && tries++ < CUA__FEW_TRIES) {
		seed = cua_hash_u64(seed, tries);
		multiplier[0] = (uint32_t)seed | 1;
		multiplier[1] = (uint32_t)(seed >> 32) | 1;
		for (uint32_t i = thread; i < 1u << log; i += threads)
			CUA_WRITE(j->number[i], CUA__FEW_NONE);
		if (thread == 0)
			CUA_WRITE(sh->homeless, 0u);
		cua_port_sync_block();
		for (uint32_t g = thread; g < groups; g += threads)
			if (!cua__few_put(j, slot, multiplier, log, g, size))
				cua_port_store_b32(&sh->homeless, 1, CUA__FEW_IN_BLOCK);
		cua_port_sync_block();
		complete = !CUA_READ(sh->homeless);
		cua_port_sync_block();
	}
	for (uint32_t i = thread; i < 1u << log; i += threads) {
		const uint32_t g = CUA_READ(j->number[i]);

		CUA_WRITE(j->known[i], g == CUA__FEW_NONE ? key : cua__few_key_of(j, slot, g));
		if (g == CUA__FEW_NONE)
			CUA_WRITE(j->number[i], 0u);
	}
	if (thread)
		return;
	CUA_WRITE(j->state->log, log);
	CUA_WRITE(j->state->multiplier[0], multiplier[0]);
	CUA_WRITE(j->state->multiplier[1], multiplier[1]);
	if (!complete)
		cua_port_or_b32(&j->state->unfit, 1, CUA__FEW_ON_DEVICE);
}

/* By a single block; size is a constant. */
CUA_FORCE void cua__few_order(const struct cua__few_job *j, struct cua__few_sorter *sh,
			      uint32_t size)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t most = cua__few_most(j);
	uint64_t *word = (uint64_t *)(sh + 1);
	uint32_t *slot = (uint32_t *)(word + most), groups, padded;

	if (cua_port_load_b32(&j->state->unfit, CUA__FEW_ON_DEVICE))
		return;
	for (uint32_t e = thread; e < 256; e += threads)
		CUA_WRITE(sh->exponents[e], 0u);
	if (thread == 0)
		CUA_WRITE(sh->groups, 0u);
	cua_port_sync_block();
	for (uint32_t s = thread; s < 1u << j->log; s += threads)
		if (CUA_READ(j->hash[s])) {
			const uint32_t g =
				cua_port_fetch_add_u32(&sh->groups, 1, CUA__FEW_IN_BLOCK);

			CUA_WRITE(slot[g], s);
		}
	if (j->s.type == CUA_F32)
		cua__few_sample(j, sh->exponents);
	cua_port_sync_block();
	groups = CUA_READ(sh->groups);
	padded = cua__few_padded(groups);
	for (uint32_t g = thread; g < padded; g += threads) {
		CUA_WRITE(word[g], g < groups ? cua__few_word(j, CUA_READ(slot[g])) : UINT64_MAX);
		if (g >= groups)
			CUA_WRITE(slot[g], UINT32_MAX);
	}
	cua_port_sync_block();
	cua__few_sort(word, slot, padded);
	cua__few_define(j, sh, slot, groups, size);
	for (uint32_t g = thread; g < groups && g < j->d.room; g += threads)
		cua__number_set(j->d.first, g, CUA_READ(j->least[CUA_READ(slot[g])]), 0);
	if (thread)
		return;
	if (j->s.type == CUA_F32)
		CUA_WRITE(j->state->limit, cua__few_limit(sh->exponents));
	CUA_WRITE(j->state->groups, groups);
	CUA_WRITE(*j->d.count, groups);
	/* the stored groups are the first ones, sorted, and not the lowest keys */
	if (j->d.sorted && j->d.room && groups > j->d.room)
		cua_port_or_b32(&j->state->unfit, 1, CUA__FEW_ON_DEVICE);
}

/* ---- number ---- */

/* A block's view of the dictionary. */
struct cua__few_dictionary {
	void *keys; /* in shared memory */
	uint32_t log;
	uint32_t multiplier[2];
};

/* Copies the keys of the dictionary to shared memory. A barrier must follow. */
CUA_FORCE struct cua__few_dictionary cua__few_load(const struct cua__few_job *j, void *memory,
						   uint32_t size)
{
	struct cua__few_dictionary d;

	d.keys = memory;
	d.log = CUA_READ(j->state->log);
	d.multiplier[0] = CUA_READ(j->state->multiplier[0]);
	d.multiplier[1] = CUA_READ(j->state->multiplier[1]);
	for (uint32_t i = cua_port_thread(); i < 1u << d.log; i += cua_port_block_size())
		cua__few_set(memory, i, CUA_READ(j->known[i]), size);
	return d;
}

/* Whether a slot has a key. */
CUA_FORCE int cua__few_is(const struct cua__few_dictionary *d, uint32_t slot, uint64_t key,
			  uint32_t size)
{
	if (size == 8)
		return CUA_READ(((const uint64_t *)d->keys)[slot]) == key;
	return CUA_READ(((const uint32_t *)d->keys)[slot]) == (uint32_t)key;
}

/* The slot of a key. *missed becomes 1 if the dictionary lacks the key; then the slot is any. */
CUA_FORCE uint32_t cua__few_find(const struct cua__few_dictionary *d, uint64_t key, uint32_t size,
				 int *missed)
{
	uint32_t one, two;
	int in_one, in_two;

	cua__few_places(d->multiplier, d->log, key, size, &one, &two);
	in_one = cua__few_is(d, one, key, size);
	in_two = cua__few_is(d, two, key, size);
	*missed |= !(in_one | in_two);
	return in_one ? one : two;
}

CUA_FORCE uint32_t cua__few_number_bytes(const struct cua__few_job *j, uint32_t size)
{
	return (size + 4) * (1u << j->log);
}

/* Whether the results of the steps before are not valid; the same for all threads of a launch. */
CUA_FORCE int cua__few_is_unfit(const struct cua__few_job *j)
{
	return CUA_READ(j->state->unfit) != 0;
}

/* Stores the numbers of the rows of a tile. */
CUA_FORCE void cua__few_number_rows(const struct cua__few_job *j,
				    const struct cua__few_dictionary *d, const uint32_t *number,
				    struct cua__few_tile t, int whole)
{
	uint64_t key[CUA__FEW_LOADS];
	int missed = 0;

	t.whole = whole;
	cua__few_keys(j, &t, key);
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__FEW_LOADS; k++)
		if (cua__few_has(&t, k)) {
			const uint32_t slot = cua__few_find(d, key[k], t.size, &missed);

			cua__number_set(j->d.number, cua__few_row(&t, k), CUA_READ(number[slot]),
					0);
		}
	if (missed)
		cua_port_store_b32(&j->state->missed, 1, CUA__FEW_ON_DEVICE);
}

/* threads and size are constants. */
CUA_FORCE void cua__few_number(const struct cua__few_job *j, void *memory, uint32_t threads,
			       uint32_t size)
{
	const uint32_t thread = cua_port_thread(), tile = CUA__FEW_LOADS * threads;
	struct cua__few_tile t = {0, j->d.n, threads, size, 1, 0};
	struct cua__few_dictionary d;
	uint32_t *number, round = 0;

	if (cua__few_is_unfit(j))
		return;
	d = cua__few_load(j, memory, size);
	number = (uint32_t *)((char *)memory + (size_t)size * (1u << d.log));
	for (uint32_t i = thread; i < 1u << d.log; i += threads)
		CUA_WRITE(number[i], CUA_READ(j->number[i]));
	cua_port_sync_block();
	for (t.begin = (uint64_t)cua_port_block() * tile; t.begin < t.end;
	     t.begin += (uint64_t)cua_port_grid_size() * tile) {
		if (cua__few_ends(NULL, &j->state->missed, round++))
			break;
		if (t.begin + tile <= t.end)
			cua__few_number_rows(j, &d, number, t, 1);
		else
			cua__few_number_rows(j, &d, number, t, 0);
	}
}

/* ---- accumulate ---- */

/*
 * A block's counts and sums. An entry is a copy of a slot: its count, and with values the upper and the
 * lower word of its sum.
 */
struct cua__few_sums {
	struct cua__few_dictionary d;
	struct cua__halves window;
	uint32_t *entry;
	uint32_t words;  /* of an entry */
	uint32_t copies; /* a power of two */
};

/* Words of an entry. Three spread over all banks, and two do not. */
CUA_FORCE uint32_t cua__few_words(enum cua_type type)
{
	return type == CUA_NONE ? 1 : 3;
}

CUA_FORCE uint32_t cua__few_accumulate_bytes(const struct cua__few_job *j, uint32_t size)
{
	return (size + 4 * cua__few_words(j->s.type)) << j->log;
}

/* The words of the sum of a slot's group. */
CUA_FORCE uint64_t *cua__few_digits(const struct cua__few_job *j, uint32_t slot)
{
	return j->sum + (size_t)CUA__FEW_SUM_WORDS * CUA_READ(j->number[slot]);
}

/* Adds v 2^(at - CUA__EXACT_POINT) to the sum of a slot's group. Of integers, `at` is the exponent. */
CUA_FORCE void cua__few_add_digits(const struct cua__few_job *j, uint32_t slot, int64_t v, int at,
				   enum cua_type type)
{
	if (type == CUA_F32)
		cua__scatter_add_digits(
			cua__few_digits(j, slot), v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v,
			at - 32 * cua__scatter_low(CUA_F64), CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		cua_port_add_u64(cua__few_digits(j, slot), (uint64_t)v << at, CUA__FEW_ON_DEVICE);
}

/* The position of the upper or the lower unit; `at` is that of a window's lower unit. */
CUA_FORCE int cua__few_at(int at, int upper, enum cua_type type)
{
	if (type == CUA_F32)
		return at + (upper ? CUA__HALVES_LOW : 0);
	return upper ? CUA__HALVES_INTEGER : 0;
}

/* Adds 2^32 units, of the upper or lower unit, for a word that passed a limit when v was added. */
CUA_FORCE void cua__few_carry(const struct cua__few_job *j, uint32_t slot, uint32_t v, int at,
			      int upper, enum cua_type type)
{
	cua__few_add_digits(j, slot, v >> 31 ? -1 : 1, cua__few_at(at, upper, type) + 32, type);
}

/* An element that does not fit the window, and was not added. */
CUA_FORCE void cua__few_misfit(const struct cua__few_job *j, uint32_t slot, uint32_t bits)
{
	const struct cua__exact_parts p = cua__scatter_parts(CUA_F32, bits);

	if (p.flags)
		cua_port_or_b64(cua__few_digits(j, slot) + CUA__SCATTER_DIGITS, p.flags,
				CUA__FEW_ON_DEVICE);
	else if (p.mantissa)
		cua__scatter_add_digits(cua__few_digits(j, slot), p.negative, p.mantissa,
					p.at - 32 * cua__scatter_low(CUA_F64), CUA_SCOPE_DEVICE,
					CUA_SPACE_GLOBAL);
}

/* Completes the addition of an element to words that had these old values, if anything is left. */
CUA__RARE void cua__few_complete(const struct cua__few_job *j, uint32_t slot, uint32_t bits,
				 uint32_t old_high, uint32_t old_low, enum cua_type type)
{
	const struct cua__halves w = cua__halves_window(CUA_READ(j->state->limit));
	uint32_t high, low;

	if (!cua__halves_split(type, bits, &w, &high, &low)) {
		cua__few_misfit(j, slot, bits);
		return;
	}
	if (cua__halves_passed(old_high, high) >> 31)
		cua__few_carry(j, slot, high, w.at, 1, type);
	if (cua__halves_passed(old_low, low) >> 31)
		cua__few_carry(j, slot, low, w.at, 0, type);
}

/* Adds the copies of a slot to the count and the sum of its group. */
CUA_FORCE void cua__few_publish(const struct cua__few_job *j, const struct cua__few_sums *t,
				uint32_t slot, enum cua_type type)
{
	int64_t high = 0, low = 0;
	uint64_t count = 0;

	for (uint32_t i = 0; i < t->copies; i++) {
		/* the lanes have adjacent slots; a copy each, so that they use different banks */
		const uint32_t copy = (i + cua_port_lane()) & (t->copies - 1);
		const uint32_t *entry = t->entry + (slot * t->copies + copy) * t->words;

		count += CUA_READ(entry[0]);
		high += type == CUA_NONE ? 0 : (int32_t)CUA_READ(entry[1]);
		low += type == CUA_NONE ? 0 : (int32_t)CUA_READ(entry[2]);
	}
	if (count)
		cua_port_add_u64(&j->count[CUA_READ(j->number[slot])], count, CUA__FEW_ON_DEVICE);
	if (high)
		cua__few_add_digits(j, slot, high, cua__few_at(t->window.at, 1, type), type);
	if (low)
		cua__few_add_digits(j, slot, low, cua__few_at(t->window.at, 0, type), type);
}

/* Adds the rows of a tile. type, counts and whole are constants. */
CUA_FORCE void cua__few_add_rows(const struct cua__few_job *j, const struct cua__few_sums *s,
				 struct cua__few_tile t, enum cua_type type, int counts, int whole)
{
	const uint32_t copy = cua_port_lane() & (s->copies - 1);
	uint32_t x[CUA__FEW_LOADS], slot[CUA__FEW_LOADS], old[CUA__FEW_LOADS][2], odd = 0;
	uint64_t key[CUA__FEW_LOADS];
	int missed = 0;

	t.whole = whole;
	cua__few_keys(j, &t, key);
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__FEW_LOADS; k++)
		x[k] = type != CUA_NONE && cua__few_has(&t, k)
			       ? CUA_READ(j->s.x[cua__few_row(&t, k)])
			       : 0;
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__FEW_LOADS; k++)
		if (cua__few_has(&t, k)) {
			uint32_t *entry;

			slot[k] = cua__few_find(&s->d, key[k], t.size, &missed);
			entry = s->entry + (slot[k] * s->copies + copy) * s->words;
			if (counts)
				cua_port_add_u32(&entry[0], 1, CUA__FEW_IN_BLOCK);
			if (type != CUA_NONE)
				odd |= cua__halves_add(type, x[k], &s->window, &entry[1], &entry[2],
						       old[k]);
		}
	/* one branch for all rows of the thread */
	CUA__UNROLL
	for (uint32_t k = 0; type != CUA_NONE && odd >> 31 && k < CUA__FEW_LOADS; k++)
		if (cua__few_has(&t, k))
			cua__few_complete(j, slot[k], x[k], old[k][0], old[k][1], type);
	if (missed)
		cua_port_store_b32(&j->state->missed, 1, CUA__FEW_ON_DEVICE);
}

/* Constants: threads; size; type, that of the values; and counts, whether rows are counted. */
CUA_FORCE void cua__few_accumulate(const struct cua__few_job *j, void *memory, uint32_t threads,
				   uint32_t size, enum cua_type type, int counts)
{
	const uint32_t thread = cua_port_thread(), tile = CUA__FEW_LOADS * threads;
	struct cua__few_tile t = {0, j->d.n, threads, size, 0, 0};
	uint32_t slots, round = 0;
	struct cua__few_sums s;

	if (cua__few_is_unfit(j))
		return;
	s.d = cua__few_load(j, memory, size);
	s.window = cua__halves_window(CUA_READ(j->state->limit));
	slots = 1u << s.d.log;
	s.entry = (uint32_t *)((char *)memory + (size_t)size * slots);
	s.words = cua__few_words(type);
	s.copies = 32;
	while (s.copies > 1 && slots * (size + 4 * s.words * s.copies) > j->bytes)
		s.copies /= 2;
	for (uint32_t i = thread; i < slots * s.copies * s.words; i += threads)
		CUA_WRITE(s.entry[i], 0u);
	cua_port_sync_block();
	for (t.begin = (uint64_t)cua_port_block() * tile; t.begin < t.end;
	     t.begin += (uint64_t)cua_port_grid_size() * tile) {
		if (cua__few_ends(NULL, &j->state->missed, round++))
			break;
		if (t.begin + tile <= t.end)
			cua__few_add_rows(j, &s, t, type, counts, 1);
		else
			cua__few_add_rows(j, &s, t, type, counts, 0);
	}
	cua_port_sync_block();
	for (uint32_t i = thread; i < slots; i += threads)
		cua__few_publish(j, &s, i, type);
}

/* ---- round ---- */

/* The sum of a group as `result`. */
CUA_FORCE uint64_t cua__few_sum(const struct cua__few_job *j, uint64_t g, enum cua_type result)
{
	const uint64_t *sum = j->sum + CUA__FEW_SUM_WORDS * g;
	int64_t digit[CUA__SCATTER_DIGITS];

	if (j->s.type != CUA_F32)
		return cua__sums_of_integers(CUA_READ(sum[0]), j->s.type, result);
	for (uint32_t i = 0; i < CUA__SCATTER_DIGITS; i++)
		digit[i] = (int64_t)CUA_READ(sum[i]);
	return cua__scatter_sum_digits(CUA_F64, result, digit,
				       (uint32_t)CUA_READ(sum[CUA__SCATTER_DIGITS]), 1, 0);
}

/* Stores the results of a group. */
CUA_FORCE void cua__few_round(const struct cua__few_job *j, uint64_t g)
{
	if (cua__few_is_unfit(j) || CUA_READ(j->state->missed) || g >= cua__group_stored(&j->d))
		return;
	if (j->s.out_count)
		CUA_WRITE(j->s.out_count[g], CUA_READ(j->count[g]));
	if (j->s.out_sum)
		cua__sums_store(j->s.out_sum, g, cua__few_sum(j, g, j->s.sum_type), j->s.sum_type);
	if (j->s.out_mean)
		cua__sums_store_mean(&j->s, g, cua__few_sum(j, g, CUA_F64), CUA_READ(j->count[g]));
}

#endif /* CUATOMIC_KERNELS_GROUP_BY_FEW_H */
