/* SPDX-License-Identifier: MIT */
/*
 * Bulk inserts of the chained table, without barriers while a block processes its share of the
 * pairs. Every thread of a grid calls the function. cuda/cuda_chained.cu makes kernels of it, with
 * a constant `way`.
 *
 * A block claims the entries of its share of the pairs at once. Its warps process the share
 * independently:
 *
 *   INSERT  few buckets. Each has a slot of the block's shared memory with the chain of the
 *           block's entries for this bucket. At the end of the share, each chain is spliced in
 *           under its bucket's lock.
 *   GATHER  the same for build: an exchange adds the chain.
 *   BUILD   many buckets. Lanes of a warp with keys of the same bucket link their entries, and a
 *           single lane exchanges the head.
 *
 * Whole warps write entries in the order of their words: through shared memory, 24 bytes per
 * thread.
 *
 * Scope: the device. A block has a multiple of 32 threads.
 *
 * Progress: INSERT is blocking; GATHER and BUILD wait for no other block.
 *
 * Correctness: as in cuatomic/chained.h, an entry belongs to its block until it is published. An
 * exchange in shared memory gives each index of the share to exactly one successor. The entry whose
 * exchange finds the slot empty ends the chain, and its lane alone writes slot->last. All entries
 * of a chain are written before the barrier that precedes its publication, so the publisher's
 * release also covers them. BUILD publishes an entry before it is written; there are no readers
 * before the kernel ends.
 */
#ifndef CUATOMIC_KERNELS_CHAINED_KERNEL_H
#define CUATOMIC_KERNELS_CHAINED_KERNEL_H

#include "kernels/chained_check.h"

/* Pairs in flight per thread. */
#ifndef CUA__CHAINED_LOADS
#define CUA__CHAINED_LOADS 4u
#endif

#define CUA__CHAINED_EMPTY 0xffffffffu
#define CUA__CHAINED_IN_BLOCK CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED

enum cua__chained_way { CUA__CHAINED_INSERT, CUA__CHAINED_GATHER, CUA__CHAINED_BUILD };

/* A chain of entries of the same bucket, by their indices in the share. */
struct cua__chained_slot {
	uint32_t first, last; /* first: EMPTY at the start; last: undefined then */
};

struct cua__chained_bulk {
	struct cua_chained_view view;
	uint64_t n;
	const uint64_t *keys, *values;
	uint32_t slots; /* the table's buckets, or 0 for BUILD */
};

/* Bytes of shared memory: the share's offset in the pool, words of entries, slots. */
CUA_FORCE size_t cua__chained_bulk_bytes(uint32_t threads, uint64_t slots)
{
	return 8 * (1 + (size_t)3 * threads) + sizeof(struct cua__chained_slot) * (size_t)slots;
}

/* Writes the entries of a warp's first n lanes to the pool. */
CUA_FORCE void cua__chained_write(uint64_t *stage, struct cua_chained_entry *to, uint32_t n,
				  uint64_t key, uint64_t value, uint64_t next)
{
	const uint32_t lane = cua_port_lane();
	uint64_t *words = (uint64_t *)(void *)to;

	/* all lanes have read the stage */
	cua_port_sync_warp(CUA__ALL_LANES);
	CUA_WRITE(stage[3 * lane], key);
	CUA_WRITE(stage[3 * lane + 1], value);
	CUA_WRITE(stage[3 * lane + 2], next);
	cua_port_sync_warp(CUA__ALL_LANES);
	CUA__UNROLL
	for (uint32_t k = 0; k < 3; k++) {
		uint32_t word = 32 * k + lane;

		if (word < 3 * n)
			CUA_WRITE(words[word], CUA_READ(stage[word]));
	}
}

/* Makes an entry the first of a slot's chain. Returns the index for its link. */
CUA_FORCE uint64_t cua__chained_gather(struct cua__chained_slot *slot, uint64_t base,
				       uint32_t number)
{
	uint32_t before = cua_port_exchange_b32(&slot->first, number, CUA__CHAINED_IN_BLOCK);

	if (before != CUA__CHAINED_EMPTY)
		return base + before;
	CUA_WRITE(slot->last, number);
	return CUA_CHAINED_NONE;
}

CUA_FORCE void cua__chained_bulk_add(const struct cua__chained_bulk *b, enum cua__chained_way way,
				     uint64_t *shared)
{
	const struct cua_chained_view *view = &b->view;
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size(),
		       lane = cua_port_lane();
	const uint64_t blocks = cua_port_grid_size(), block = cua_port_block();
	/* whole warps, so that shares keep the alignment of the arrays */
	const uint64_t share = (b->n / blocks + 32) / 32 * 32, begin = block * share;
	uint64_t *stage = shared + 1 + (thread - lane) * 3;
	struct cua__chained_slot *slots =
		(struct cua__chained_slot *)(void *)(shared + 1 + threads * 3);
	uint64_t base;
	uint32_t mine;

	if (begin >= b->n)
		return;
	mine = (uint32_t)(b->n - begin < share ? b->n - begin : share);
	for (uint32_t s = thread; s < b->slots; s += threads)
		CUA_WRITE(slots[s].first, CUA__CHAINED_EMPTY);
	if (thread == 0)
		CUA_WRITE(shared[0],
			  cua_port_fetch_add_u64(&view->cursor->demand, mine, CUA__CHAINED_AT));
	cua_port_sync_block();
	base = CUA_READ(shared[0]);
	if (base >= view->capacity)
		return;
	if (mine > view->capacity - base)
		mine = (uint32_t)(view->capacity - base);
	for (uint64_t start = (uint64_t)(thread - lane) * CUA__CHAINED_LOADS; start < mine;
	     start += (uint64_t)threads * CUA__CHAINED_LOADS) {
		uint64_t key[CUA__CHAINED_LOADS], value[CUA__CHAINED_LOADS],
			next[CUA__CHAINED_LOADS];
		uint32_t group[CUA__CHAINED_LOADS];

		CUA__UNROLL
		for (uint32_t j = 0; j < CUA__CHAINED_LOADS; j++) {
			uint64_t i = start + 32 * j + lane;

			key[j] = i < mine ? CUA_READ(b->keys[begin + i]) : 0;
			value[j] = i < mine ? CUA_READ(b->values[begin + i]) : 0;
		}
		CUA__UNROLL
		for (uint32_t j = 0; j < CUA__CHAINED_LOADS; j++) {
			uint64_t i = start + 32 * j + lane,
				 bucket = cua_chained_bucket(view, key[j]);

			next[j] = CUA_CHAINED_NONE;
			if (way != CUA__CHAINED_BUILD) {
				if (i < mine)
					next[j] = cua__chained_gather(&slots[bucket], base,
								      (uint32_t)i);
				continue;
			}
			group[j] = cua_port_match_any_u64(CUA__ALL_LANES, bucket) &
				   cua_port_ballot(CUA__ALL_LANES, i < mine);
			if (i < mine && lane == cua_port_ffs_u32(group[j]) - 1)
				next[j] = cua_port_exchange_b64(&view->heads[bucket], base + i,
								CUA__CHAINED_AT);
		}
		CUA__UNROLL
		for (uint32_t j = 0; j < CUA__CHAINED_LOADS; j++) {
			uint64_t first = start + 32 * j;

			if (way == CUA__CHAINED_BUILD) {
				/*
				 * the lowest lane is the head; the highest lane links to the
				 * previous head
				 */
				uint32_t above = group[j] & ~(((uint32_t)2 << lane) - 1);
				uint64_t before =
					cua_port_shuffle_u64(CUA__ALL_LANES, next[j],
							     (cua_port_ffs_u32(group[j]) - 1) % 32);

				next[j] =
					above ? base + first + cua_port_ffs_u32(above) - 1 : before;
			}
			if (first < mine)
				cua__chained_write(stage, &view->entries[base + first],
						   mine - first < 32 ? (uint32_t)(mine - first)
								     : 32,
						   key[j], value[j], next[j]);
		}
	}
	if (way == CUA__CHAINED_BUILD)
		return;
	/* also orders all entries of the block before the releases below */
	cua_port_sync_block();
	for (uint32_t k = thread; k < b->slots; k += threads) {
		/* each block begins at a different slot to avoid contention for a bucket */
		uint64_t s = (k + block * b->slots / blocks) % b->slots;
		uint32_t first = CUA_READ(slots[s].first);

		if (first == CUA__CHAINED_EMPTY)
			continue;
		if (way == CUA__CHAINED_INSERT)
			cua__chained_splice(view, s, base + first, base + CUA_READ(slots[s].last));
		else
			cua__chained_exchange(view, s, base + first,
					      base + CUA_READ(slots[s].last));
	}
}

#endif /* CUATOMIC_KERNELS_CHAINED_KERNEL_H */
