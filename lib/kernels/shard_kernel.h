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

#endif /* CUATOMIC_KERNELS_SHARD_KERNEL_H */
