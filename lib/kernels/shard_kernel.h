/* SPDX-License-Identifier: MIT */
/*
 * The kernels of sharded maps: count the pairs of each owner, write the pairs in the order of their
 * owners, and return answers to the order of the caller.
 *
 * Source: a counting sort (Knuth, vol. 3, 5.2), but threads claim places in parallel, so the pairs of an
 * owner are in no particular order.
 *
 * A block processes tiles of CUA__SHARD_ITEMS pairs a thread. For few ranks it counts a tile in shared
 * memory, claims the room of the tile in each owner's output at once, and writes each pair to its place.
 * For many ranks each pair claims its own place.
 *
 * Scope: the device. All operations on counters are relaxed: the atomicity of an addition gives each
 * place to a single pair, and the end of the kernel publishes the output. Progress: no thread waits for
 * another block.
 */
#ifndef CUATOMIC_KERNELS_SHARD_KERNEL_H
#define CUATOMIC_KERNELS_SHARD_KERNEL_H

#include "backend/shard_backend.h"
#include "kernels/owner.h"

#ifndef CUA__SHARD_ITEMS
#define CUA__SHARD_ITEMS 8u
#endif
/* The most ranks with counters in shared memory. */
#ifndef CUA__SHARD_FEW
#define CUA__SHARD_FEW 1024u
#endif

#define CUA__SHARD_IN_BLOCK CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED
#define CUA__SHARD_ON_DEVICE CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* A counter of a tile for each rank, and where the tile's pairs begin in its output. */
struct cua__shard_shared {
	uint32_t count[CUA__SHARD_FEW], first[CUA__SHARD_FEW];
};

/* Element i of an array; size is a constant of the caller, 4, 8 or 16. */
CUA_FORCE struct cua_u128 cua__shard_get(const void *array, uint64_t i, uint32_t size)
{
	const cua__raw64 *wide = (const cua__raw64 *)array;
	struct cua_u128 v = {0, 0};

	if (size == 16) {
		v.lo = CUA_READ(wide[2 * i]);
		v.hi = CUA_READ(wide[2 * i + 1]);
	} else {
		v.lo = size == 8 ? CUA_READ(wide[i]) : CUA_READ(((const cua__raw32 *)array)[i]);
	}
	return v;
}

CUA_FORCE void cua__shard_set(void *array, uint64_t i, struct cua_u128 v, uint32_t size)
{
	cua__raw64 *wide = (cua__raw64 *)array;

	if (size == 4) {
		CUA_WRITE(((cua__raw32 *)array)[i], (uint32_t)v.lo);
	} else if (size == 8) {
		CUA_WRITE(wide[i], v.lo);
	} else if (size == 16) {
		CUA_WRITE(wide[2 * i], v.lo);
		CUA_WRITE(wide[2 * i + 1], v.hi);
	}
}

CUA_FORCE uint32_t cua__shard_owner(const struct cua__shard *s, const void *keys, uint64_t i,
				    uint32_t size)
{
	return cua__owner(cua__shard_get(keys, i, size), size, s->seed, s->ranks);
}

/* Copies element i of `from` to element k of `to`. */
CUA_FORCE void cua__shard_copy(void *to, uint64_t k, const void *from, uint64_t i, uint32_t size)
{
	if (size == 4) {
		CUA_WRITE(((cua__raw32 *)to)[k], CUA_READ(((const cua__raw32 *)from)[i]));
	} else if (size == 8) {
		CUA_WRITE(((cua__raw64 *)to)[k], CUA_READ(((const cua__raw64 *)from)[i]));
	} else if (size == 16) {
		CUA_WRITE(((struct cua__pack *)to)[k],
			  CUA_READ(((const struct cua__pack *)from)[i]));
	}
}

CUA_FORCE void cua__shard_clear(const struct cua__shard *s, struct cua__shard_shared *sh)
{
	for (uint32_t r = cua_port_thread(); r < s->ranks; r += cua_port_block_size())
		CUA_WRITE(sh->count[r], 0u);
}

CUA_FORCE void cua__shard_count(const struct cua__shard *s, struct cua__shard_shared *sh,
				uint32_t key_size)
{
	const uint64_t step = cua_port_grid_size() * cua_port_block_size();
	const int few = s->ranks <= CUA__SHARD_FEW;
	uint64_t i = cua_port_block() * (uint64_t)cua_port_block_size() + cua_port_thread();

	if (few) {
		cua__shard_clear(s, sh);
		cua_port_sync_block();
	}
	for (; i < s->n; i += step) {
		const uint32_t owner = cua__shard_owner(s, s->keys, i, key_size);

		if (few)
			cua_port_fetch_add_u32(&sh->count[owner], 1, CUA__SHARD_IN_BLOCK);
		else
			cua_port_fetch_add_u32(&s->counts[owner], 1, CUA__SHARD_ON_DEVICE);
	}
	if (!few)
		return;
	cua_port_sync_block();
	for (uint32_t r = cua_port_thread(); r < s->ranks; r += cua_port_block_size()) {
		const uint32_t count = CUA_READ(sh->count[r]);

		if (count)
			cua_port_fetch_add_u32(&s->counts[r], count, CUA__SHARD_ON_DEVICE);
	}
}

CUA_FORCE void cua__shard_put(const struct cua__shard *s, uint32_t at, uint64_t i,
			      uint32_t key_size, uint32_t value_size)
{
	cua__shard_copy(s->keys_out, at, s->keys, i, key_size);
	if (value_size)
		cua__shard_copy(s->values_out, at, s->values, i, value_size);
	if (s->index)
		CUA_WRITE(s->index[at], (uint32_t)i);
}

/* Claims the room of a tile's pairs in the output of each rank. */
CUA_FORCE void cua__shard_claim(const struct cua__shard *s, struct cua__shard_shared *sh)
{
	for (uint32_t r = cua_port_thread(); r < s->ranks; r += cua_port_block_size()) {
		const uint32_t count = CUA_READ(sh->count[r]);

		if (count)
			CUA_WRITE(sh->first[r], cua_port_fetch_add_u32(&s->cursors[r], count,
								       CUA__SHARD_ON_DEVICE));
	}
}

/* value_size: 0 if there are no values to write. */
CUA_FORCE void cua__shard_place(const struct cua__shard *s, struct cua__shard_shared *sh,
				uint32_t key_size, uint32_t value_size)
{
	const uint32_t threads = cua_port_block_size();
	const uint64_t tile = (uint64_t)threads * CUA__SHARD_ITEMS;
	uint32_t owner[CUA__SHARD_ITEMS], rank[CUA__SHARD_ITEMS];

	for (uint64_t begin = cua_port_block() * tile; begin < s->n;
	     begin += cua_port_grid_size() * tile) {
		const uint64_t mine = begin + cua_port_thread();

		if (s->ranks <= CUA__SHARD_FEW) {
			cua__shard_clear(s, sh);
			cua_port_sync_block();
			CUA__UNROLL
			for (uint32_t j = 0; j < CUA__SHARD_ITEMS; j++) {
				const uint64_t i = mine + j * (uint64_t)threads;

				if (i >= s->n)
					continue;
				owner[j] = cua__shard_owner(s, s->keys, i, key_size);
				rank[j] = cua_port_fetch_add_u32(&sh->count[owner[j]], 1,
								 CUA__SHARD_IN_BLOCK);
			}
			cua_port_sync_block();
			cua__shard_claim(s, sh);
			cua_port_sync_block();
			CUA__UNROLL
			for (uint32_t j = 0; j < CUA__SHARD_ITEMS; j++) {
				const uint64_t i = mine + j * (uint64_t)threads;

				if (i < s->n)
					cua__shard_put(s, CUA_READ(sh->first[owner[j]]) + rank[j],
						       i, key_size, value_size);
			}
			/*
			 * no barrier: nobody reads the counters any more, and the next tile writes places
			 * after two barriers
			 */
			continue;
		}
		for (uint32_t j = 0; j < CUA__SHARD_ITEMS; j++) {
			const uint64_t i = mine + j * (uint64_t)threads;
			uint32_t to, at;

			if (i >= s->n)
				continue;
			to = cua__shard_owner(s, s->keys, i, key_size);
			at = cua_port_fetch_add_u32(&s->cursors[to], 1, CUA__SHARD_ON_DEVICE);
			cua__shard_put(s, at, i, key_size, value_size);
		}
	}
}

CUA_FORCE void cua__shard_answer(const struct cua__shard_answers *a, uint64_t first, uint64_t step,
				 uint32_t value_size)
{
	for (uint64_t i = first; i < a->n; i += step) {
		const uint32_t at = CUA_READ(a->index[i]);
		/* bytes: the SIMT checker follows words */
		const uint8_t result = a->results[i];

		if (a->results_out)
			a->results_out[at] = result;
		if (value_size && result)
			cua__shard_copy(a->values_out, at, a->values, i, value_size);
	}
}

/* ---- directly to owners ---- */

/* The threads of a block that sends keys. */
#define CUA__SHARD_THREADS (CUA__SHARD_TILE / CUA__SHARD_ITEMS)
/* With more ranks, the counters of a tile have few conflicts, and votes would be slower. */
#define CUA__SHARD_VOTES 4u

/* The keys of each owner in a tile: of this tile and of the next, in turn. */
struct cua__shard_tile {
	uint32_t count[2][CUA__SHARD_DIRECT_RANKS];
};

CUA_FORCE uint64_t cua__shard_tiles(const struct cua__shard_keys *s)
{
	return (s->n + (uint64_t)CUA__SHARD_TILE - 1) / CUA__SHARD_TILE;
}

CUA_FORCE uint32_t cua__shard_in_tile(const struct cua__shard_keys *s, uint64_t tile)
{
	const uint64_t left = s->n - tile * CUA__SHARD_TILE;

	return left < CUA__SHARD_TILE ? (uint32_t)left : CUA__SHARD_TILE;
}

/*
 * Claims a number among the owner's keys in the tile. All lanes of the warp call it; `there`: the lane has a
 * key. With votes, the keys of a warp are numbered in order, so that their answers are adjacent.
 */
CUA_FORCE uint32_t cua__shard_number(const struct cua__shard_keys *s, uint32_t *count, int there,
				     uint32_t owner)
{
	const uint32_t lane = cua_port_lane();
	uint32_t number = 0, r;

	if (s->ranks > CUA__SHARD_VOTES)
		return there ? cua_port_fetch_add_u32(&count[owner], 1, CUA__SHARD_IN_BLOCK) : 0;
	for (r = 0; r < s->ranks; r++) {
		const uint32_t mask = cua_port_ballot(CUA__ALL_LANES, there && owner == r);
		uint32_t at = 0;

		if (lane == 0 && mask)
			at = cua_port_fetch_add_u32(&count[r], cua_port_popc_u32(mask),
						    CUA__SHARD_IN_BLOCK);
		at = cua_port_shuffle_u32(CUA__ALL_LANES, at, 0);
		if (owner == r)
			number = at + cua_port_popc_u32(mask & (((uint32_t)1 << lane) - 1));
	}
	return number;
}

/* The number of key i of a sorted tile among the keys of its owner, *r. */
CUA_FORCE uint32_t cua__shard_split(const uint32_t *count, uint32_t i, uint32_t *r)
{
	for (*r = 0; i >= CUA_READ(count[*r]); ++*r)
		i -= CUA_READ(count[*r]);
	return i;
}

/* Writes key i of a sorted tile to its owner, and keeps its offset. Returns 1 if there is no room. */
CUA_FORCE uint32_t cua__shard_send_key(const struct cua__shard_keys *s, uint64_t tile,
				       const uint32_t *count, uint32_t i, const void *keys,
				       const CUA__SHARD_OFFSET *offsets, uint32_t key_size)
{
	uint32_t r;
	const uint32_t number = cua__shard_split(count, i, &r);
	const uint64_t at = tile * s->room + number;

	if (number >= s->room)
		return 1;
	cua__shard_copy(s->keys_to[r], at, keys, i, key_size);
	CUA_WRITE(s->offsets[r][at], CUA_READ(offsets[i]));
	return 0;
}

/*
 * A block sorts a tile of keys by owner in shared memory, so that it writes runs to the owners. t, keys and
 * offsets are shared memory; the last two have room for a tile. The end of the kernel publishes the output.
 */
CUA_FORCE void cua__shard_send(const struct cua__shard_keys *s, struct cua__shard_tile *t,
			       void *keys, CUA__SHARD_OFFSET *offsets, uint32_t key_size)
{
	const uint32_t threads = CUA__SHARD_THREADS, thread = cua_port_thread();
	const uint64_t tiles = cua__shard_tiles(s);
	uint32_t owner[CUA__SHARD_ITEMS], number[CUA__SHARD_ITEMS], spilled = 0, turn = 0, j;
	struct cua_u128 key[CUA__SHARD_ITEMS];

	if (thread < s->ranks)
		CUA_WRITE(t->count[0][thread], 0u);
	cua_port_sync_block();
	for (uint64_t tile = cua_port_block(); tile < tiles; tile += cua_port_grid_size()) {
		const uint32_t n = cua__shard_in_tile(s, tile);
		uint32_t *count = t->count[turn];

		turn ^= 1;
		CUA__UNROLL
		for (j = 0; j < CUA__SHARD_ITEMS; j++)
			if (thread + j * threads < n)
				key[j] = cua__shard_get(
					s->keys, tile * CUA__SHARD_TILE + thread + j * threads,
					key_size);
		CUA__UNROLL
		for (j = 0; j < CUA__SHARD_ITEMS; j++) {
			const int there = thread + j * threads < n;

			owner[j] = there ? cua__owner(key[j], key_size, s->seed, s->ranks) : 0;
			number[j] = cua__shard_number(s, count, there, owner[j]);
		}
		cua_port_sync_block();
		/* after this barrier the counters of the tile before are not read any more */
		if (thread < s->ranks) {
			CUA_WRITE(s->counts_to[thread][tile], CUA_READ(count[thread]));
			CUA_WRITE(s->counts[thread][tile], CUA_READ(count[thread]));
			CUA_WRITE(t->count[turn][thread], 0u);
		}
		CUA__UNROLL
		for (j = 0; j < CUA__SHARD_ITEMS; j++) {
			const uint32_t i = thread + j * threads;
			uint32_t at = number[j], r;

			if (i >= n)
				continue;
			for (r = 0; r < owner[j]; r++)
				at += CUA_READ(count[r]);
			cua__shard_set(keys, at, key[j], key_size);
			CUA_WRITE(offsets[at], (CUA__SHARD_OFFSET)i);
		}
		cua_port_sync_block();
		CUA__UNROLL
		for (j = 0; j < CUA__SHARD_ITEMS; j++)
			if (thread + j * threads < n)
				spilled += cua__shard_send_key(s, tile, count, thread + j * threads,
							       keys, offsets, key_size);
		/* no barrier: the stage is written again after the next */
	}
	if (spilled)
		cua_port_fetch_add_u64(s->spilled, spilled, CUA__SHARD_ON_DEVICE);
}

/*
 * Writes the answers of all owners to the order of the keys, by way of shared memory: values and found, which
 * have room for a tile. found has a byte for each key.
 */
CUA_FORCE void cua__shard_take(const struct cua__shard_keys *s, uint32_t *count, void *values,
			       uint32_t *found, uint32_t value_size)
{
	const uint32_t threads = CUA__SHARD_THREADS, thread = cua_port_thread();
	const uint64_t tiles = cua__shard_tiles(s);
	uint32_t offset[CUA__SHARD_ITEMS], there, j;
	struct cua_u128 value[CUA__SHARD_ITEMS];

	for (uint64_t tile = cua_port_block(); tile < tiles; tile += cua_port_grid_size()) {
		const uint64_t begin = tile * CUA__SHARD_TILE;
		const uint32_t n = cua__shard_in_tile(s, tile);

		if (thread < s->ranks)
			CUA_WRITE(count[thread], CUA_READ(s->counts[thread][tile]));
		/* absent keys, and keys without room */
		for (j = thread; j < CUA__SHARD_TILE / 4; j += threads)
			CUA_WRITE(found[j], 0u);
		cua_port_sync_block();
		there = 0;
		CUA__UNROLL
		for (j = 0; j < CUA__SHARD_ITEMS; j++) {
			const uint32_t i = thread + j * threads;
			uint32_t number, r;
			uint64_t at;

			if (i >= n)
				continue;
			number = cua__shard_split(count, i, &r);
			at = tile * s->room + number;
			if (number >= s->room || !(CUA_READ(s->found[r][at / 32]) >> at % 32 & 1))
				continue;
			there |= 1u << j;
			offset[j] = CUA_READ(s->offsets[r][at]);
			if (value_size)
				value[j] = cua__shard_get(s->values[r], at, value_size);
		}
		CUA__UNROLL
		for (j = 0; j < CUA__SHARD_ITEMS; j++) {
			if (!(there >> j & 1))
				continue;
			/* bytes: the SIMT checker follows words */
			((uint8_t *)found)[offset[j]] = 1;
			if (value_size)
				cua__shard_set(values, offset[j], value[j], value_size);
		}
		cua_port_sync_block();
		CUA__UNROLL
		for (j = 0; j < CUA__SHARD_ITEMS; j++) {
			const uint32_t i = thread + j * threads;

			if (i >= n)
				continue;
			if (s->found_out)
				s->found_out[begin + i] = ((const uint8_t *)found)[i];
			if (value_size && ((const uint8_t *)found)[i])
				cua__shard_copy(s->values_out, begin + i, values, i, value_size);
		}
		/* the next tile writes the counts and the answers */
		cua_port_sync_block();
	}
}

#endif /* CUATOMIC_KERNELS_SHARD_KERNEL_H */
