/* SPDX-License-Identifier: MIT */
/*
 * Bulk updates of a hash map of words that combine equal keys first, on a GPU. Every thread of a
 * block calls these functions; cuda/cuda_hashmap_combine.cu makes kernels of them.
 *
 * Source: aggregation by radix partitioning, as in database systems: partitions so small that a
 * table in fast memory holds the keys of each.
 *
 * 1. Guess: looks for equal keys among a few pairs, a pair of each part of the input. If few keys
 *    are equal, the next steps do nothing, and the caller updates the map directly.
 * 2. Count: the pairs of each region. A region is a range of hashes, so its keys are neighbours in
 *    the map, too. Also takes a sample of the keys.
 * 3. Starts: the first word of each region in the output of the scatter. The sample may still
 *    decide for direct updates.
 * 4. Scatter (hashmap_regions.h): sorts the pairs by region. A tile with many pairs of a region
 *    first combines the pairs of its frequent keys. So a region has at most as many words as pairs.
 * 5. Combine: a block reads the words of a region and combines them in a table of sums in shared
 *    memory. If a word finds no entry, the block writes all sums out and goes on with a free table.
 * 6. Update: the quads of warps update the map by the combined words, with ordinary operations.
 *
 * Updates of a sharded map are sent: a region has keys of a single owner, and step 5 writes the combined
 * words to a list in the memory of the owner. In place of step 6 the rank tells each owner the
 * length of its list. After a barrier of all ranks, each owner updates its table by each list. A rank
 * sends all of its pairs or none: it tells 0 if combining does not pay, or if a list has no room.
 *
 * Correctness: each operand is combined into exactly 1 sum of its key, and each sum is written
 * out once. The operations are associative and commutative, so an update by a sum changes the value
 * as the updates by its operands would, in direct succession.
 *
 * Progress: a block that has freed its table finds an entry for at least 1 of its words. A thread
 * without an entry waits at a barrier for the rest of the block, which has finitely many words.
 *
 * Scope: blocks of the same device. A block has a multiple of 32 threads, at most 1024.
 * Memory order: kernel boundaries order the steps; barriers order everything else inside a block.
 */
#ifndef CUATOMIC_KERNELS_HASHMAP_COMBINE_H
#define CUATOMIC_KERNELS_HASHMAP_COMBINE_H

#include "kernels/hashmap_regions.h"

/* Keys of the guess; the sample's expected keys, and the most that are taken. */
#ifndef CUA__COMBINE_GUESSED
#define CUA__COMBINE_GUESSED 65536u
#endif
#define CUA__COMBINE_SAMPLE 4096u
#ifndef CUA__COMBINE_MOST_SAMPLED
#define CUA__COMBINE_MOST_SAMPLED 6144u
#endif
/* Keys that a table of `room` entries holds almost always. */
#define CUA__COMBINE_FILL(room) ((room) / 64 * 48)
#define CUA__COMBINE_GUESS_PROBES 8u

/*
 * Returns whether the key was in the table of the guess; else puts it there, if there is room. The
 * greatest key always seems to be there.
 */
CUA_FORCE int cua__combine_guess_has(const struct cua__regions_kind k,
				     const struct cua__regions_pass *a, struct cua_u128 key)
{
	const uint64_t none = cua__sums_free(k.ks);
	uint32_t at = (uint32_t)(cua__hashmap_hash_of(&a->view, k.hash, k.ks, key) >> 8), tries;

	for (tries = 0; tries < CUA__COMBINE_GUESS_PROBES; tries++, at++) {
		const uint32_t i = at & (a->guess_room - 1);
		const uint64_t there =
			k.ks == 4 ? cua_port_cas_b32((uint32_t *)a->guess + i, (uint32_t)none,
						     (uint32_t)key.lo, CUA_RELAXED, CUA__HASHMAP_AT)
				  : cua_port_cas_b64((uint64_t *)a->guess + i, none, key.lo,
						     CUA_RELAXED, CUA__HASHMAP_AT);

		if (there == none || there == key.lo)
			return there == key.lo;
	}
	return 0;
}

/* Looks at keys in as many equal parts of the input, each at a place that looks random. */
CUA_FORCE void cua__combine_guess(const struct cua__regions_kind k,
				  const struct cua__regions_pass *a)
{
	const uint64_t part = a->n / a->guessed, step = cua_port_grid_size() * k.threads;
	uint32_t repeats = 0;
	uint64_t i;

	for (i = cua_port_block() * k.threads + cua_port_thread(); i < a->guessed; i += step)
		repeats += (uint32_t)cua__combine_guess_has(
			k, a,
			cua__hashmap_get(a->keys, k.ks,
					 i * part + (cua_hash_u64(i, 0) >> 8) % part));
	repeats = cua__regions_warp_sum(repeats);
	if (cua_port_lane() == 0 && repeats)
		cua_port_add_u32(a->guess_repeats, repeats, CUA_RELAXED, CUA__HASHMAP_AT);
}

/*
 * Whether to update the map directly, as the guess says. With n pairs of d equally frequent keys,
 * m of them, picked without regard to equal neighbours, have about m^2 / 2 d repeats. The pairs
 * then have d * (1 - exp(-n / d)) keys, here about n / (1 + 0.6 n / d). With few repeats of keys, or
 * with more keys than the tables of all regions hold, combining does not pay. A frequent key only
 * adds repeats.
 */
CUA_FORCE int cua__combine_guess_is_direct(const struct cua__regions_pass *a, uint32_t room)
{
	const uint64_t m = a->guessed;
	/* n / d in hundredths */
	const uint64_t each = a->n * 200 * CUA_READ(*a->guess_repeats) / (m * m);

	return each < 76 || (each < 320 && a->n * 1000 / (1000 + 6 * each) >
						   (uint64_t)a->regions * CUA__COMBINE_FILL(room));
}

/* Adds the keys of lanes with `has` to the sample. All lanes of the warp call it. */
CUA_FORCE void cua__combine_sample(const struct cua__regions_kind k,
				   const struct cua__regions_pass *a, int has, struct cua_u128 key)
{
	const uint32_t votes = cua_port_ballot(CUA__ALL_LANES, has);
	/* a frequent key may be in the sample: this load keeps its lanes away from the counter */
	const int full = cua_port_load_b32(a->sampled, CUA_RELAXED, CUA__HASHMAP_AT) >=
			 CUA__COMBINE_MOST_SAMPLED;
	uint32_t at;

	/* other warps add to the counter, so lanes may have seen different numbers */
	if (!votes || cua_port_ballot(CUA__ALL_LANES, full))
		return;
	at = cua_port_lane() == 0 ? cua_port_fetch_add_u32(a->sampled, cua_port_popc_u32(votes),
							   CUA_RELAXED, CUA__HASHMAP_AT)
				  : 0;
	at = cua_port_shuffle_u32(CUA__ALL_LANES, at, 0) +
	     cua_port_popc_u32(votes & (((uint32_t)1 << cua_port_lane()) - 1));
	if (has && at < CUA__COMBINE_MOST_SAMPLED)
		cua__hashmap_set(a->sample, k.ks, at, key);
}

/*
 * Counts the pairs of each region in ends[], and takes the sample, unless the guess says that
 * updates are direct. `number` has an element per region; `room` is the entries of a region's
 * table.
 */
CUA_FORCE void cua__combine_count(const struct cua__regions_kind k,
				  const struct cua__regions_pass *a, uint32_t *number,
				  uint32_t room)
{
	const uint32_t thread = cua_port_thread(), size = cua__regions_tile_size(k);
	uint32_t picked, p, j;
	uint64_t first;

	if (cua__combine_guess_is_direct(a, room))
		return;
	for (p = thread; p < a->regions; p += k.threads)
		CUA_WRITE(number[p], 0);
	cua_port_sync_block();
	for (first = cua_port_block() * size; first < a->n; first += cua_port_grid_size() * size) {
		const uint32_t m = a->n - first < size ? (uint32_t)(a->n - first) : size;
		const char *keys = (const char *)a->keys + first * k.ks;
		struct cua_u128 key[32];

		CUA__UNROLL
		for (j = 0; j < k.each; j++)
			if (j * k.threads + thread < m)
				key[j] = cua__hashmap_get(keys, k.ks, j * k.threads + thread);
		picked = 0;
		CUA__UNROLL
		for (j = 0; j < k.each; j++) {
			uint64_t hash;
			uint32_t region;

			if (j * k.threads + thread >= m)
				continue;
			hash = cua__hashmap_hash_of(&a->view, k.hash, k.ks, key[j]);
			region = cua__regions_of(k, a, hash) +
				 cua__regions_before_owner(k, a, key[j]);
			cua_port_add_u32(&number[region], 1, CUA_RELAXED, CUA__REGIONS_BLOCK);
			picked |= (uint32_t)((uint32_t)(hash >> 32) < a->sample_limit) << j;
		}
		if (!cua_port_ballot(CUA__ALL_LANES, picked))
			continue;
		CUA__UNROLL
		for (j = 0; j < k.each; j++)
			cua__combine_sample(k, a, picked >> j & 1, key[j]);
	}
	cua_port_sync_block();
	for (p = thread; p < a->regions; p += k.threads)
		if (CUA_READ(number[p]))
			cua_port_add_u32(&a->ends[p], CUA_READ(number[p]), CUA_RELAXED,
					 CUA__HASHMAP_AT);
}

/*
 * Whether to update the map directly, as the sample says; `distinct` of its keys are distinct.
 * Unlike the guess, the sample sees the keys beside frequent ones.
 */
CUA_FORCE int cua__combine_sample_is_direct(const struct cua__regions_pass *a, uint32_t distinct,
					    uint32_t sampled, uint32_t room)
{
	/* a full sample ended somewhere in its range of hashes */
	const uint64_t keys = sampled == CUA__COMBINE_MOST_SAMPLED
				      ? a->n * distinct / sampled
				      : ((uint64_t)distinct << 32) / a->sample_limit;

	return keys > a->n / 10 * 3 &&
	       (keys > a->n / 10 * 7 || keys > (uint64_t)a->regions * CUA__COMBINE_FILL(room));
}

/*
 * Turns the counts into starts and ends of empty regions, and decides on direct updates. The table
 * has room for the sample; its sums are not used. A single block calls it. The sum of the counts is below
 * 2^32. `room` is the entries of a region's table.
 */
CUA_FORCE void cua__combine_starts(const struct cua__regions_kind k,
				   const struct cua__regions_pass *a,
				   struct cua__regions_shared *sh, const struct cua__sums *t,
				   uint32_t room)
{
	const uint32_t thread = cua_port_thread(), taken = CUA_READ(*a->sampled);
	const uint32_t sampled =
		taken < CUA__COMBINE_MOST_SAMPLED ? taken : CUA__COMBINE_MOST_SAMPLED;
	uint32_t before = 0, distinct = 0, total, i;

	/* this bound is equal in all threads */
	for (i = thread; i - thread < a->regions; i += k.threads) {
		const uint32_t n = i < a->regions ? CUA_READ(a->ends[i]) : 0;
		const uint32_t start = before + cua__regions_scan(k, sh, n, &total);

		if (i < a->regions) {
			CUA_WRITE(a->starts[i], start);
			CUA_WRITE(a->ends[i], start);
		}
		before += total;
		cua_port_sync_block();
	}
	for (i = thread; i <= t->room; i += k.threads)
		cua__sums_clear_key(k.ks, t, i);
	cua_port_sync_block();
	for (i = thread; i < sampled; i += k.threads) {
		const struct cua_u128 key = cua__hashmap_get(a->sample, k.ks, i);
		int claimed;

		/* a key without an entry is distinct, or nearly so */
		distinct +=
			cua__sums_entry(k.ks, t, cua__hashmap_hash_of(&a->view, k.hash, k.ks, key),
					key.lo, CUA__SUMS_PROBES, &claimed) == CUA__SUMS_NO_ROOM;
		distinct += (uint32_t)claimed;
	}
	(void)cua__regions_scan(k, sh, distinct, &total);
	if (thread == 0)
		CUA_WRITE(*a->direct,
			  (uint32_t)(cua__combine_guess_is_direct(a, room) ||
				     cua__combine_sample_is_direct(a, total, sampled, room)));
}

/*
 * Writes the sums of a region's table to the output and frees the table. All threads call it, after a
 * barrier; the caller needs a barrier before the next use of the table.
 */
CUA_FORCE void cua__combine_flush(const struct cua__regions_kind k,
				  const struct cua__regions_pass *a, uint64_t region,
				  struct cua__regions_shared *sh, const struct cua__sums *t)
{
	const uint64_t owner = k.sends ? region / a->per_owner : 0;
	char *const output = k.sends ? a->to_of[owner] : (char *)a->combined;
	uint64_t *const n_output = k.sends ? &a->filled[owner] : a->n_combined;
	const uint32_t thread = cua_port_thread(), lane = cua_port_lane();
	const uint32_t below = ((uint32_t)1 << lane) - 1;
	/* a warp has adjacent entries; the last warp also has the entry of the greatest key */
	const uint32_t share = t->room / (k.threads / 32), from = thread / 32 * share + lane;
	const uint32_t end = from - lane + share + (thread / 32 == k.threads / 32 - 1);
	struct cua_u128 key = {0, 0}, sum = {0, 0};
	uint32_t i, n = 0, total, at;
	uint64_t first;

	/* the bounds are equal in all lanes of a warp */
	for (i = from; i - lane < end; i += 32)
		n += cua_port_popc_u32(
			cua_port_ballot(CUA__ALL_LANES, i < end && cua__sums_at(k.ks, k.vs, t, i,
										&key.lo, &sum.lo)));
	at = cua__regions_scan(k, sh, lane == 0 ? n : 0, &total);
	at = cua_port_shuffle_u32(CUA__ALL_LANES, at, 0);
	if (thread == 0)
		CUA_WRITE(sh->first,
			  cua_port_fetch_add_u64(n_output, total, CUA_RELAXED, CUA__HASHMAP_AT));
	cua_port_sync_block();
	first = CUA_READ(sh->first) + at;
	for (i = from; i - lane < end; i += 32) {
		const int used = i < end && cua__sums_at(k.ks, k.vs, t, i, &key.lo, &sum.lo);
		const uint32_t votes = cua_port_ballot(CUA__ALL_LANES, used);
		const uint64_t to = first + cua_port_popc_u32(votes & below);

		if (used && (!k.sends || to < a->room))
			cua__regions_set(k, output, to, cua__hashmap_word_of(k.ks, k.vs, key, sum));
		if (i < end)
			cua__sums_clear(k.ks, k.vs, t, i, a->op);
		first += cua_port_popc_u32(votes);
	}
}

/* Combines the words of a region. */
CUA_FORCE void cua__combine_region(const struct cua__regions_kind k,
				   const struct cua__regions_pass *a, uint64_t region,
				   struct cua__regions_shared *sh, const struct cua__sums *t)
{
	const uint32_t thread = cua_port_thread();
	const uint64_t start = CUA_READ(a->starts[region]), n = CUA_READ(a->ends[region]) - start;
	struct cua_u128 next = {0, 0};
	uint64_t at;
	uint32_t i;

	/* direct updates leave all regions empty */
	if (!n)
		return;
	for (i = thread; i <= t->room; i += k.threads)
		cua__sums_clear(k.ks, k.vs, t, i, a->op);
	cua_port_sync_block();
	if (thread < n)
		next = cua__regions_get(k, a->to, start + thread);
	for (at = thread;;) {
		int full = 0;

		/* all threads share a full table, so they soon meet at the barrier */
		while (at < n && !full) {
			const struct cua_u128 word = next;
			int claimed;

			if (at + k.threads < n)
				next = cua__regions_get(k, a->to, start + at + k.threads);
			i = cua__sums_entry(k.ks, t, cua__regions_hash(k, a, word),
					    cua__hashmap_word_key(k.ks, word).lo, CUA__SUMS_PROBES,
					    &claimed);
			full = i == CUA__SUMS_NO_ROOM;
			if (full) {
				next = word;
				continue;
			}
			cua__sums_apply(k.vs, t, i, a->op,
					cua__hashmap_word_value(k.ks, k.vs, word).lo);
			at += k.threads;
		}
		if (!cua_port_sync_block_or(full))
			break;
		cua__combine_flush(k, a, region, sh, t);
		cua_port_sync_block();
	}
	cua__combine_flush(k, a, region, sh, t);
}

/* Tells each owner the number of words in its list, in *number_of[r]. A warp of a single block calls it. */
CUA_FORCE void cua__combine_tell(const struct cua__regions_pass *a, uint64_t *const *number_of)
{
	const uint32_t r = cua_port_lane();
	const uint64_t n = r < a->owners ? CUA_READ(a->filled[r]) : 0;
	const uint32_t none = cua_port_ballot(CUA__ALL_LANES, CUA_READ(*a->direct) || n > a->room);

	if (r < a->owners)
		CUA_WRITE(*number_of[r], none ? 0 : n);
	if (r == 0 && none)
		CUA_WRITE(a->late->spilled, (uint64_t)1);
}

/*
 * Splits the combined words into keys and values. *n_out becomes their number, or the greatest number if
 * combining does not pay. All threads of the grid call it.
 */
CUA_FORCE void cua__combine_split(const struct cua__regions_kind k,
				  const struct cua__regions_pass *a, void *keys, void *values,
				  uint64_t *n_out)
{
	const uint64_t first = cua_port_block() * k.threads + cua_port_thread();
	const uint64_t n = CUA_READ(*a->direct) ? 0 : CUA_READ(*a->n_combined);

	for (uint64_t i = first; i < n; i += cua_port_grid_size() * k.threads) {
		const struct cua_u128 word = cua__regions_get(k, a->combined, i);

		cua__hashmap_set(keys, k.ks, i, cua__hashmap_word_key(k.ks, word));
		cua__hashmap_set(values, k.vs, i, cua__hashmap_word_value(k.ks, k.vs, word));
	}
	if (first == 0)
		CUA_WRITE(*n_out, CUA_READ(*a->direct) ? ~(uint64_t)0 : n);
}

/*
 * Updates the value at the spot. Returns 0 if the slot no longer holds the key. The stream orders
 * bulk calls with other work, so relaxed operations suffice.
 */
CUA_FORCE int cua__combine_change(const struct cua__regions_kind k,
				  const struct cua__regions_pass *a, struct cua__hashmap_spot *spot,
				  struct cua_u128 operand)
{
	int changed;

	if (cua__hashmap_word_is_native(&a->view, k.ks, k.vs)) {
		cua__hashmap_word_apply(spot->at, cua__hashmap_word_key(k.ks, spot->word), operand,
					(enum cua_update)a->op, CUA_RELAXED);
		return 1;
	}
	do {
		const struct cua_u128 old = cua__hashmap_word_value(k.ks, k.vs, spot->word);
		const struct cua_u128 next =
			cua__hashmap_combine(old, operand, k.vs, (enum cua_update)a->op);

		/* an update that changes nothing takes effect at the read of the value */
		changed = cua__hashmap_same(next, old)
				  ? 1
				  : cua__hashmap_word_change(k.ks, k.vs, spot, next, CUA_RELAXED);
	} while (!changed);
	return changed > 0;
}

/*
 * Updates the keys of active lanes that are at home, and inserts a key if its home has a free slot.
 * Returns INSERTED, EXISTS, or 0. All lanes of the warp call it.
 */
CUA_FORCE int cua__combine_at_home(const struct cua__regions_kind k,
				   const struct cua__regions_pass *a, int active,
				   struct cua_u128 word)
{
	const struct cua_u128 key = cua__hashmap_word_key(k.ks, word),
			      operand = cua__hashmap_word_value(k.ks, k.vs, word);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int result = cua__quad_enter_home(&a->view, CUA__HASHMAP_KIND(k.ks, k.vs),
					  cua__quad_lanes_of(CUA__ALL_LANES, active),
					  cua__hashmap_key_of(cua__regions_hash(k, a, word), key),
					  NULL, operand, CUA_RELAXED, &seen);

	if (result != CUA_HASHMAP_EXISTS)
		return result;
	/* another lane stored the key after the search */
	if (seen.there <= 0)
		return 0;
	cua__quad_spot(&a->view, k.ks, k.vs, key, &seen, &spot);
	return cua__combine_change(k, a, &spot, operand) ? result : 0;
}

/*
 * Updates or inserts the keys of active lanes; they were not at home. Returns `added` plus the
 * number of inserted keys that are not counted yet. All lanes of the warp call it.
 */
CUA_FORCE uint32_t cua__combine_elsewhere(const struct cua__regions_kind k,
					  const struct cua__regions_pass *a, int active,
					  struct cua_u128 word, uint32_t added)
{
	const cua__hashmap_kind kind = CUA__HASHMAP_KIND(k.ks, k.vs);
	const struct cua_u128 bits = cua__hashmap_word_key(k.ks, word),
			      operand = cua__hashmap_word_value(k.ks, k.vs, word);
	const struct cua__hashmap_key key =
		cua__hashmap_key_of(cua__regions_hash(k, a, word), bits);
	const int slotted = active && !cua__hashmap_reserved_slot(&a->view, k.ks, k.vs, bits, NULL);
	struct cua__hashmap_seen seen = {0, 0, 0, 0, 0, 0, {0, 0}};
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	int left = slotted, result = 0, tries;

	cua__quad_look(&a->view, kind, cua__quad_lanes_of(CUA__ALL_LANES, slotted), key, NULL,
		       CUA_RELAXED, &seen);
	if (seen.there > 0) {
		cua__quad_spot(&a->view, k.ks, k.vs, bits, &seen, &spot);
		result = cua__combine_change(k, a, &spot, operand) ? CUA_HASHMAP_EXISTS : -1;
		left = 0;
	}
	for (tries = 0; tries < CUA__QUAD_TRIES && cua_port_ballot(CUA__ALL_LANES, left); tries++) {
		const int r = cua__quad_enter_full(&a->view, kind,
						   cua__quad_lanes_of(CUA__ALL_LANES, left), key,
						   NULL, operand, &seen);

		/* an EXISTS has inserted nothing: the lane updates the key alone */
		result = left ? r : result;
		left = left && !r;
	}
	added += cua_port_popc_u32(cua_port_ballot(CUA__ALL_LANES, result == CUA_HASHMAP_INSERTED));
	left = active && result != CUA_HASHMAP_INSERTED &&
	       !(result == CUA_HASHMAP_EXISTS && spot.at);
	/* a lane that writes alone may wait for the counts */
	if (cua_port_ballot(CUA__ALL_LANES, left))
		cua__quad_count(&a->view, CUA__ALL_LANES, CUA_RELAXED, &added);
	if (left)
		(void)cua__hashmap_write(&a->view, kind + CUA__HASHMAP_OF_WORDS, a->op, key.hash,
					 bits, operand, &seen.value);
	cua_port_sync_warp(CUA__ALL_LANES);
	return added;
}

/*
 * Updates the map by the combined words. A warp takes 32 * each adjacent words at a time. Words
 * that are not at home take several times as long. So they are deferred in `list`, 64 words per
 * warp, until every lane has a word.
 */
CUA_FORCE void cua__combine_update(const struct cua__regions_kind k,
				   const struct cua__regions_pass *a, void *list)
{
	const uint32_t lane = cua_port_lane(), warps = k.threads / 32;
	const uint32_t below = ((uint32_t)1 << lane) - 1;
	const uint64_t n = CUA_READ(*a->n_combined), step = cua_port_grid_size() * warps;
	char *const deferred = (char *)list + cua_port_thread() / 32 * 64 *
						      (cua__hashmap_is_wide(k.ks, k.vs) ? 16 : 8);
	const struct cua_u128 none = {0, 0};
	uint64_t piece = (cua_port_block() * warps + cua_port_thread() / 32) * k.each;
	uint32_t added = 0, n_deferred = 0, j = 0;
	struct cua_u128 next = none;

	if (piece * 32 + lane < n)
		next = cua__regions_get(k, a->combined, piece * 32 + lane);
	/* the bounds are equal in all lanes of a warp: 32 words in each turn, then deferred words */
	while (piece * 32 < n || n_deferred) {
		const int last = piece * 32 >= n;
		struct cua_u128 word = none;
		uint32_t votes;

		if (!last) {
			const int active = (piece + j) * 32 + lane < n;
			int result;

			word = next;
			if (++j == k.each) {
				j = 0;
				piece += step * k.each;
			}
			if ((piece + j) * 32 + lane < n)
				next = cua__regions_get(k, a->combined, (piece + j) * 32 + lane);
			result = cua__combine_at_home(k, a, active, word);
			added += cua_port_popc_u32(
				cua_port_ballot(CUA__ALL_LANES, result == CUA_HASHMAP_INSERTED));
			votes = cua_port_ballot(CUA__ALL_LANES, active && !result);
			if (active && !result)
				cua__regions_set(k, deferred,
						 n_deferred + cua_port_popc_u32(votes & below),
						 word);
			n_deferred += cua_port_popc_u32(votes);
			cua_port_sync_warp(CUA__ALL_LANES);
		}
		if (n_deferred >= 32 || last) {
			const uint32_t most = n_deferred < 32 ? n_deferred : 32;

			n_deferred -= most;
			word = none;
			if (lane < most)
				word = cua__regions_get(k, deferred, n_deferred + lane);
			cua_port_sync_warp(CUA__ALL_LANES);
			added = cua__combine_elsewhere(k, a, lane < most, word, added);
		}
	}
	cua__quad_count(&a->view, CUA__ALL_LANES, CUA_RELAXED, &added);
}

#endif /* CUATOMIC_KERNELS_HASHMAP_COMBINE_H */
