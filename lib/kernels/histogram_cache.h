/* SPDX-License-Identifier: MIT */
/*
 * A block's cache of counters, for more counters than shared memory holds. A slot is a tag and a
 * number; the tag is 0, or the slot's counter plus 1. An element of a cached counter adds to the
 * number in shared memory. An element of another counter is a miss: it adds to the count in global
 * memory.
 *
 * A counter may have either slot of a pair, which its hash selects. The first miss of a counter
 * claims a free slot of the pair. So frequent counters are likely to be cached, wherever they are
 * among the bins. If a lane has many misses during some tiles, the block adds all numbers to the
 * counts and frees all slots, because the frequent counters may have changed.
 *
 * Argument: the numbers and tags are zero before a barrier. Then only compare-and-swaps change a
 * tag, from 0 to a counter's tag, so a lane that has seen the tag adds to the right number. A
 * counter that has both slots of its pair is right too, because both numbers are added to its
 * count. The block adds and frees the slots between two barriers, where each has a single thread.
 */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_CACHE_H
#define CUATOMIC_KERNELS_HISTOGRAM_CACHE_H

#include "kernels/histogram_job.h"

/*
 * Tiles after which a block examines its misses: SHORT, or twice as many as before if it has freed
 * the slots, up to LONG.
 */
#ifndef CUA__HISTOGRAM_CACHE_SHORT
#define CUA__HISTOGRAM_CACHE_SHORT 4u
#endif
#ifndef CUA__HISTOGRAM_CACHE_LONG
#define CUA__HISTOGRAM_CACHE_LONG 64u
#endif
/* The block frees its slots if a lane's share of misses is above 1 / CUA__HISTOGRAM_MANY_MISSES. */
#define CUA__HISTOGRAM_MANY_MISSES 4u

/* Words of the cache in shared memory: numbers, tags, and a sum of the sample. */
CUA_FORCE uint32_t cua__histogram_cache_words(const struct cua__histogram_job *j)
{
	return 2 * j->slots + 1;
}

/* The slot of a counter that is tried first; its pair also has slot ^ 1. */
CUA_FORCE uint32_t cua__histogram_slot(const struct cua__histogram_job *j, uint32_t counter)
{
	return (counter * 0x9e3779b1u) >> j->slot_shift;
}

CUA_FORCE uint32_t cua__histogram_tag(const struct cua__histogram_own *own, uint32_t slot)
{
	return cua_port_load_b32(&own->tags[slot], CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
}

/* Adds to a counter. May be called by any subset of lanes. */
CUA_FORCE void cua__histogram_cache_add(const struct cua__histogram_job *j,
					struct cua__histogram_own *own, uint32_t counter,
					uint32_t n)
{
	uint32_t slot = cua__histogram_slot(j, counter), way, tag;

	CUA__UNROLL
	for (way = 0; way < 2; way++) {
		tag = cua__histogram_tag(own, slot);
		if (!tag) {
			tag = cua_port_cas_b32(&own->tags[slot], 0, counter + 1, CUA_RELAXED,
					       CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
			tag = tag ? tag : counter + 1;
		}
		if (tag == counter + 1) {
			cua_port_add_u32(&own->words[slot], n, CUA_RELAXED, CUA_SCOPE_BLOCK,
					 CUA_SPACE_SHARED);
			return;
		}
		slot ^= 1;
	}
	own->misses++;
	cua__histogram_add(&j->h, 0, counter, n);
}

/* Adds 1 to each of n <= 4 counters. May be called by any subset of lanes. */
CUA_FORCE void cua__histogram_cache_pack(const struct cua__histogram_job *j,
					 struct cua__histogram_own *own, uint32_t n,
					 const uint32_t *counter)
{
	uint32_t slot[4], tag[4], others = 0, k, l;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		slot[k] = cua__histogram_slot(j, counter[k]);
		tag[k] = cua__histogram_tag(own, slot[k]);
	}
	CUA__UNROLL
	for (k = 0; k < n; k++) {
		/* the literal 1, because the hardware merges these additions */
		if (tag[k] == counter[k] + 1)
			cua_port_add_u32(&own->words[slot[k]], 1, CUA_RELAXED, CUA_SCOPE_BLOCK,
					 CUA_SPACE_SHARED);
		else
			others |= (uint32_t)1 << k;
	}
	/* each lane's next element at once, so a pack with few others takes few steps */
	CUA__NO_UNROLL
	while (others) {
		uint32_t its_counter = counter[0];

		k = cua_port_ffs_u32(others) - 1;
		CUA__UNROLL
		for (l = 1; l < n; l++)
			its_counter = l == k ? counter[l] : its_counter;
		others &= others - 1;
		cua__histogram_cache_add(j, own, its_counter, 1);
	}
}

/* Adds the numbers to the counts and frees the slots, by all threads between two barriers. */
CUA_FORCE void cua__histogram_cache_flush(const struct cua__histogram_job *j,
					  const struct cua__histogram_own *own)
{
	uint32_t slot;

	for (slot = cua_port_thread(); slot < j->slots; slot += cua_port_block_size()) {
		const uint32_t n = CUA_READ(own->words[slot]), tag = CUA_READ(own->tags[slot]);

		if (n)
			cua__histogram_add(&j->h, 0, tag - 1, n);
		CUA_WRITE(own->words[slot], 0);
		CUA_WRITE(own->tags[slot], 0);
	}
}

/* Called by all threads of the block after each tile. lane_elements: of a lane in a tile. */
CUA_FORCE void cua__histogram_cache_tick(const struct cua__histogram_job *j,
					 struct cua__histogram_own *own, uint32_t lane_elements)
{
	const uint32_t most = own->period * lane_elements / CUA__HISTOGRAM_MANY_MISSES;

	if (++own->tiles < own->period)
		return;
	if (cua_port_sync_block_or(own->misses > most)) {
		cua__histogram_cache_flush(j, own);
		cua_port_sync_block();
		if (own->period < CUA__HISTOGRAM_CACHE_LONG)
			own->period *= 2;
	} else {
		own->period = CUA__HISTOGRAM_CACHE_SHORT;
	}
	own->tiles = own->misses = 0;
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_CACHE_H */
