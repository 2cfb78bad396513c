/* SPDX-License-Identifier: MIT */
/* The end of a block and of a kernel: the private histograms are stored and merged. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_FINISH_H
#define CUATOMIC_KERNELS_HISTOGRAM_FINISH_H

#include "kernels/histogram_counters.h"
#include "kernels/histogram_find.h"

/* Field k of a word. */
CUA_FORCE uint32_t cua__histogram_field(enum cua__histogram_layout layout, uint32_t word,
					uint32_t k)
{
	const uint32_t bits = cua__histogram_field_bits(layout);

	return bits == 32 ? word : (word >> k * bits) & (((uint32_t)1 << bits) - 1);
}

/* Stores the block's private histogram, or adds it to the sums. Called after a barrier. */
CUA_FORCE void cua__histogram_store_private(enum cua__histogram_layout layout,
					    const struct cua__histogram_job *j,
					    const uint32_t *words)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint32_t *row = j->privates + cua_port_block() * j->private_words;
	uint32_t i, k;

	for (i = thread; i < j->private_words; i += threads) {
		uint32_t v = 0;

		if (layout == CUA__COUNT_COLUMNS) {
			/*
			 * each lane starts in a different column, so that all banks are used at
			 * once
			 */
			for (k = 0; k < 32; k++)
				v += CUA_READ(words[i * 32 + (thread + k) % 32]);
		} else {
			v = CUA_READ(words[i]);
		}
		if (!j->sums)
			CUA_WRITE(row[i], v);
		else if (v)
			cua_port_add_u32(&j->sums[i], v, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GLOBAL);
	}
}

/*
 * For elements of 8 bits: turns the counts of values into counts of bins and sides. By a single
 * block.
 */
CUA_FORCE void cua__histogram_set_values(enum cua_type type, const struct cua__histogram_job *j,
					 const uint64_t *values)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t counters = j->h.bins + CUA_HISTOGRAM_SIDES;
	uint32_t i;

	if (j->h.rule == CUA__BIN_BYTE) {
		for (i = thread; i < counters; i += threads)
			cua__histogram_set(&j->h, !j->h.clear, i,
					   i < j->h.bins ? CUA_READ(values[i]) : 0);
		return;
	}
	if (j->h.clear)
		for (i = thread; i < counters; i += threads)
			cua__histogram_set(&j->h, 0, i, 0);
	cua_port_sync_block();
	for (i = thread; i < CUA__HISTOGRAM_BYTES; i += threads) {
		const uint64_t n = CUA_READ(values[i]);

		if (n)
			cua__histogram_add(&j->h, 0, cua__histogram_counter_any(type, j, i), n);
	}
}

/* Words of shared memory that cua__histogram_finish needs. */
CUA_FORCE uint32_t cua__histogram_finish_words(uint32_t threads, uint32_t counters)
{
	return 2 * (4 * threads > counters ? 4 * threads : counters);
}

/* Number of private histograms from which a thread loads at the same time. */
#define CUA__HISTOGRAM_IN_FLIGHT 9u

/*
 * Adds the private histograms, in packs of pack_words words. Thread group g adds the histograms of
 * blocks g, g + groups, ... and stores the result at sums[g * private_words].
 */
CUA_FORCE void cua__histogram_add_privates(uint32_t pack_words, const struct cua__histogram_job *j,
					   uint32_t groups, uint64_t *sums)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t packs = j->private_words / pack_words, group = thread / packs;
	const uint32_t *privates = j->privates;
	uint32_t pack = groups == 1 ? thread : group < groups ? thread % packs : packs;
	uint32_t block = groups == 1 ? 0 : group, first = block, r, k;
	uint64_t sum[4] = {0, 0, 0, 0};

	while (pack < packs) {
		struct cua__pack v[CUA__HISTOGRAM_IN_FLIGHT];
		uint32_t next_pack = pack, next_block = block;

		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_IN_FLIGHT; r++) {
			const uint64_t at = ((uint64_t)next_block * packs + next_pack) * pack_words;

			CUA__UNROLL
			for (k = 0; k < 4; k++)
				v[r].word[k] = 0;
			if (next_pack < packs) {
				if (pack_words == 4)
					v[r] = CUA_READ(*(const struct cua__pack
								  *)(const void *)&privates[at]);
				else
					v[r].word[0] = CUA_READ(privates[at]);
			}
			next_block += groups;
			if (next_block >= j->blocks) {
				next_block = first;
				next_pack += threads;
			}
		}
		CUA__UNROLL
		for (r = 0; r < CUA__HISTOGRAM_IN_FLIGHT; r++) {
			CUA__UNROLL
			for (k = 0; k < pack_words; k++)
				sum[k] += v[r].word[k];
			block += groups;
			if (block < j->blocks)
				continue;
			if (pack < packs) {
				CUA__UNROLL
				for (k = 0; k < pack_words; k++)
					CUA_WRITE(sums[first * j->private_words +
						       pack * pack_words + k],
						  sum[k]);
			}
			CUA__UNROLL
			for (k = 0; k < pack_words; k++)
				sum[k] = 0;
			block = first;
			pack += threads;
		}
	}
}

/* Whether the block is the last to arrive. All of its threads get the same answer. */
CUA_FORCE int cua__histogram_is_last(const struct cua__histogram_job *j, uint32_t *shared)
{
	int is_last;

	cua_port_sync_block();
	if (cua_port_thread() == 0)
		CUA_WRITE(shared[0], (uint32_t)cua__finish_arrive(j->finish, j->blocks));
	cua_port_sync_block();
	is_last = CUA_READ(shared[0]) != 0;
	cua_port_sync_block();
	return is_last;
}

/*
 * Turns the sums into counts and resets them to zero. With VALUE, copies them to 64-bit numbers in
 * shared memory instead.
 */
CUA_FORCE void cua__histogram_merge_sums(enum cua__histogram_rule rule,
					 const struct cua__histogram_job *j, uint64_t *values)
{
	const uint32_t threads = cua_port_block_size(), counters = j->private_words;
	uint32_t v[CUA__HISTOGRAM_IN_FLIGHT], first, i, k;

	for (first = cua_port_thread(); first < counters;
	     first += threads * CUA__HISTOGRAM_IN_FLIGHT) {
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_IN_FLIGHT; k++) {
			i = first + k * threads;
			v[k] = i < counters ? CUA_READ(j->sums[i]) : 0;
		}
		CUA__UNROLL
		for (k = 0; k < CUA__HISTOGRAM_IN_FLIGHT; k++) {
			i = first + k * threads;
			if (i >= counters)
				continue;
			if (v[k])
				CUA_WRITE(j->sums[i], 0);
			if (rule == CUA__RULE_VALUE)
				CUA_WRITE(values[i], v[k]);
			else
				cua__histogram_set(&j->h, !j->h.clear, i, v[k]);
		}
	}
}

/*
 * Merges the private histograms of all blocks, in the block that arrives last. Counters are words.
 */
CUA_FORCE void cua__histogram_finish(enum cua_type type, enum cua__histogram_rule rule,
				     const struct cua__histogram_job *j, uint32_t *shared)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t counters = j->private_words, blocks = j->blocks;
	uint64_t *sums = (uint64_t *)(void *)shared;
	/* 4 counters at once, if the private histograms are aligned */
	const int packed =
		counters % 4 == 0 && (uintptr_t)j->privates % sizeof(struct cua__pack) == 0;
	const uint32_t packs = packed ? counters / 4 : counters;
	uint32_t groups = packs < threads ? threads / packs : 1, i, b;

	if (!cua__histogram_is_last(j, shared))
		return;
	if (j->sums) {
		cua__histogram_merge_sums(rule, j, sums);
		if (rule == CUA__RULE_VALUE) {
			cua_port_sync_block();
			cua__histogram_set_values(type, j, sums);
		}
		return;
	}
	if (groups > blocks)
		groups = blocks;
	if (packed)
		cua__histogram_add_privates(4, j, groups, sums);
	else
		cua__histogram_add_privates(1, j, groups, sums);
	cua_port_sync_block();
	for (i = thread; i < counters; i += threads) {
		uint64_t sum = CUA_READ(sums[i]);

		for (b = 1; b < groups; b++)
			sum += CUA_READ(sums[b * counters + i]);
		if (rule == CUA__RULE_VALUE)
			CUA_WRITE(sums[i], sum);
		else
			cua__histogram_set(&j->h, !j->h.clear, i, sum);
	}
	if (rule == CUA__RULE_VALUE) {
		cua_port_sync_block();
		cua__histogram_set_values(type, j, sums);
	}
}

/*
 * Merges the private histograms; each block merges 32 words of them. `add`: adds to the present
 * counts. Each warp needs 32 * per_word 64-bit words of `shared`.
 */
CUA_FORCE void cua__histogram_merge(enum cua__histogram_layout layout,
				    const struct cua__histogram_job *j, int add, uint64_t *shared)
{
	const uint32_t per_word = cua__histogram_per_word(layout);
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / 32;
	const uint32_t warps = cua_port_block_size() / 32;
	const uint32_t pieces = (j->private_words + 31) / 32; /* of a private histogram */
	const uint32_t range = (uint32_t)(cua_port_block() / pieces);
	const uint32_t word = (uint32_t)(cua_port_block() % pieces) * 32 + lane;
	const uint32_t first = range * j->range_counters;
	const uint32_t *at = j->privates + word;
	uint64_t sum[4] = {0, 0, 0, 0};
	uint32_t k, b, w;

	if (j->cached && CUA_READ(*j->cached))
		return;
	if (word < j->private_words) {
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
		for (b = range + warp * j->ranges; b < j->blocks; b += warps * j->ranges) {
			const uint32_t v = CUA_READ(at[(uint64_t)b * j->private_words]);

			CUA__UNROLL
			for (k = 0; k < per_word; k++)
				sum[k] += cua__histogram_field(layout, v, k);
		}
	}
	CUA__UNROLL
	for (k = 0; k < per_word; k++)
		CUA_WRITE(shared[(warp * per_word + k) * 32 + lane], sum[k]);
	cua_port_sync_block();
	/* one thread per counter */
	for (k = warp; k < per_word; k += warps) {
		const uint32_t counter = word * per_word + k;
		uint64_t all = 0;

		for (w = 0; w < warps; w++)
			all += CUA_READ(shared[(w * per_word + k) * 32 + lane]);
		if (word < j->private_words && counter < j->range_counters &&
		    first + counter < j->counters)
			cua__histogram_set(&j->h, add, first + counter, all);
	}
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_FINISH_H */
