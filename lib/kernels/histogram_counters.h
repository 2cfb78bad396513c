/* SPDX-License-Identifier: MIT */
/* The counters of a block: fields of words, their overflow, and the hot set of a warp. */
#ifndef CUATOMIC_KERNELS_HISTOGRAM_COUNTERS_H
#define CUATOMIC_KERNELS_HISTOGRAM_COUNTERS_H

#include "kernels/histogram_cache.h"

#define CUA__HISTOGRAM_NONE 0xffffffffu   /* counter of another range */
#define CUA__HISTOGRAM_NO_HOT 0xfffffffeu /* no hot set */
/* A new hot set must have more lanes than the present hot set has, by more than this number. */
#ifndef CUA__HISTOGRAM_HOT_LANES
#define CUA__HISTOGRAM_HOT_LANES 5u
#endif
/*
 * Tiles until 8-bit fields are added to 16-bit fields, and until the 16-bit fields are flushed. A
 * lane has at most 16 elements of a tile: layouts with a hot set have elements of 4 or 8 bytes, and
 * a tile is CUA__HISTOGRAM_LOADS packs. So a field is at most 128, and 32768.
 */
#define CUA__HISTOGRAM_HOT_SHORT 8u
#define CUA__HISTOGRAM_HOT_LONG 2048u

/* Bits of a counter's field in a word. */
CUA_FORCE uint32_t cua__histogram_field_bits(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_HALVES ? 16 : layout == CUA__COUNT_BYTES ? 8 : 32;
}

CUA_FORCE uint32_t cua__histogram_per_word(enum cua__histogram_layout layout)
{
	return 32 / cua__histogram_field_bits(layout);
}

/* Words of a block's private histogram, or of its cache, in shared memory. */
CUA_FORCE uint32_t cua__histogram_words(enum cua__histogram_layout layout,
					const struct cua__histogram_job *j)
{
	const uint32_t counters = j->range_counters;

	switch (layout) {
	case CUA__COUNT_COLUMNS: return counters * 32;
	case CUA__COUNT_CACHE: return cua__histogram_cache_words(j);
	default:
		return counters / cua__histogram_per_word(layout) +
		       (counters % cua__histogram_per_word(layout) != 0);
	}
}

/*
 * Settles an addition (histogram_kernel.h) that changed a word from `old` to `now` and should add
 * `should` to one counter. Adds the difference to the global counts, for this field and all higher
 * fields of the word.
 */
CUA_FORCE void cua__histogram_settle(enum cua__histogram_layout layout,
				     const struct cua__histogram_job *j,
				     const struct cua__histogram_own *own, uint32_t counter,
				     uint32_t old, uint32_t now, uint32_t should)
{
	const uint32_t bits = cua__histogram_field_bits(layout), mask = ((uint32_t)1 << bits) - 1;
	const uint32_t end = counter / (32 / bits) * (32 / bits) + 32 / bits;
	uint32_t at = counter % (32 / bits) * bits, field;

	CUA__NO_UNROLL
	for (field = counter; field < end; field++) {
		const uint32_t is = ((now >> at) & mask) - ((old >> at) & mask);

		/* the difference is signed; fields after the last counter do not exist */
		if (is != should && field < own->counters)
			cua__histogram_add(&j->h, 0, own->first + field,
					   (uint64_t)(int64_t)(int32_t)(should - is));
		should = 0;
		at += bits;
	}
}

/*
 * Completes an addition of `add` to a counter. Its word was `old`. Called if the top bit of some
 * field is set before or after it. `add` is at most the top bit of a field of BYTES, 128. If this
 * addition raised the field above its top bit, it subtracts the top bit.
 */
CUA_FORCE void cua__histogram_relieve(enum cua__histogram_layout layout,
				      const struct cua__histogram_job *j,
				      const struct cua__histogram_own *own, uint32_t counter,
				      uint32_t old, uint32_t add)
{
	const uint32_t per_word = cua__histogram_per_word(layout), bits = 32 / per_word;
	const uint32_t at = counter % per_word * bits, top = (uint32_t)1 << (bits - 1);
	uint32_t field;

	cua__histogram_settle(layout, j, own, counter, old, old + (add << at), add);
	field = (old >> at) & (2 * top - 1);
	if (field > top || field + add <= top)
		return;
	old = cua_port_fetch_add_u32(&own->words[counter / per_word], 0 - (top << at), CUA_RELAXED,
				     CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	cua__histogram_settle(layout, j, own, counter, old, old - (top << at), 0);
}

CUA_FORCE uint32_t cua__histogram_tops(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_HALVES ? 0x80008000u : 0x80808080u;
}

/* Adds to a counter of the range; `add` is at most the top bit of a field of BYTES, 128. */
CUA_FORCE void cua__histogram_count_many(enum cua__histogram_layout layout,
					 const struct cua__histogram_job *j,
					 struct cua__histogram_own *own, uint32_t counter,
					 uint32_t add)
{
	const uint32_t per_word = cua__histogram_per_word(layout);
	uint32_t old, one;

	if (layout == CUA__COUNT_CACHE) {
		cua__histogram_cache_add(j, own, counter, add);
		return;
	}
	one = add << counter % per_word * (32 / per_word);
	old = cua_port_fetch_add_u32(&own->words[counter / per_word], one, CUA_RELAXED,
				     CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	if ((old | (old + one)) & cua__histogram_tops(layout))
		cua__histogram_relieve(layout, j, own, counter, old, add);
}

/* Adds 1 to each of n packed counters of the range, unless `skipped` is set. */
CUA_FORCE void cua__histogram_count_packed(enum cua__histogram_layout layout,
					   const struct cua__histogram_job *j,
					   const struct cua__histogram_own *own, uint32_t n,
					   const uint32_t *counter, const int *skipped)
{
	const uint32_t tops = cua__histogram_tops(layout);
	uint32_t old[16], all = 0, k, l;

	CUA__UNROLL
	for (k = 0; k < n; k++) {
		/*
		 * A skipped element adds 0 to the lane's own word, where lanes do not conflict.
		 * This needs no branch.
		 */
		const uint32_t word = counter[k] / cua__histogram_per_word(layout);
		const uint32_t one = layout == CUA__COUNT_HALVES
					     ? (counter[k] & 1) * 0xffffu + 1
					     : (uint32_t)1 << counter[k] % 4 * 8;

		old[k] = cua_port_fetch_add_u32(&own->words[skipped[k] ? own->lane : word],
						skipped[k] ? 0 : one, CUA_RELAXED, CUA_SCOPE_BLOCK,
						CUA_SPACE_SHARED);
	}
	CUA__UNROLL
	for (k = 0; k < n; k++)
		all |= old[k];
	if (!(all & tops))
		return;
	/* rare */
	CUA__NO_UNROLL
	for (k = 0; k < n; k++) {
		uint32_t its_counter = counter[0], its_old = old[0];
		int its_skipped = skipped[0];

		CUA__UNROLL
		for (l = 1; l < n; l++) {
			its_counter = l == k ? counter[l] : its_counter;
			its_old = l == k ? old[l] : its_old;
			its_skipped = l == k ? skipped[l] : its_skipped;
		}
		if (!its_skipped && (its_old & tops))
			cua__histogram_relieve(layout, j, own, its_counter, its_old, 1);
	}
}

/* Adds 1 to a counter of the range. */
CUA_FORCE void cua__histogram_count(enum cua__histogram_layout layout,
				    const struct cua__histogram_job *j,
				    struct cua__histogram_own *own, uint32_t counter)
{
	/* byte offset by bit operations: cheaper than an addition */
	const uint32_t column = counter << 7 | own->lane << 2;
	const int no = 0;

	if (layout == CUA__COUNT_COLUMNS)
		cua_port_add_u32((uint32_t *)(void *)((char *)own->words + column), 1, CUA_RELAXED,
				 CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
	else if (layout == CUA__COUNT_WORDS)
		cua_port_add_u32(&own->words[counter], 1, CUA_RELAXED, CUA_SCOPE_BLOCK,
				 CUA_SPACE_SHARED);
	else if (layout == CUA__COUNT_CACHE)
		cua__histogram_cache_add(j, own, counter, 1);
	else
		cua__histogram_count_packed(layout, j, own, 1, &counter, &no);
}

/* Index of a counter in the block's range. Only BYTES has several ranges. */
CUA_FORCE uint32_t cua__histogram_in_range(enum cua__histogram_layout layout,
					   const struct cua__histogram_own *own, uint32_t counter)
{
	if (layout != CUA__COUNT_BYTES)
		return counter;
	return counter - own->first < own->counters ? counter - own->first : CUA__HISTOGRAM_NONE;
}

CUA_FORCE int cua__histogram_has_hot(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_HALVES || layout == CUA__COUNT_BYTES;
}

/* Counts an element. May be called by any subset of lanes. */
CUA_FORCE void cua__histogram_count_one(enum cua__histogram_layout layout,
					const struct cua__histogram_job *j,
					struct cua__histogram_own *own, uint32_t counter)
{
	if (cua__histogram_has_hot(layout)) {
		counter = cua__histogram_in_range(layout, own, counter);
		if (counter == CUA__HISTOGRAM_NONE)
			return;
	}
	cua__histogram_count(layout, j, own, counter);
}

/* Adds the 8-bit fields to the 16-bit fields. */
CUA_FORCE void cua__histogram_hot_widen(struct cua__histogram_own *own)
{
	own->hot_even += own->hot_n & 0xff00ffu;
	own->hot_odd += (own->hot_n >> 8) & 0xff00ffu;
	own->hot_n = 0;
}

/* Adds the warp's hot set to the global counts. Called by whole warps. */
CUA_FORCE void cua__histogram_hot_flush(const struct cua__histogram_job *j,
					struct cua__histogram_own *own)
{
	const uint32_t lane = own->lane;
	uint64_t all, even, odd;
	uint32_t step;

	if (own->hot == CUA__HISTOGRAM_NO_HOT)
		return;
	cua__histogram_hot_widen(own);
	if (own->tiles < CUA__HISTOGRAM_HOT_SHORT) {
		/* the sums over 32 lanes fit into the fields too */
		all = own->hot_even | (uint64_t)own->hot_odd << 32;
		for (step = 16; step; step /= 2)
			all += cua_port_shuffle_u64(CUA__ALL_LANES, all, lane ^ step);
		all = (uint16_t)(all >> (lane & 1) * 32 >> (lane & 2) * 8);
	} else {
		even = (own->hot_even & 0xffff) | (uint64_t)(own->hot_even >> 16) << 32;
		odd = (own->hot_odd & 0xffff) | (uint64_t)(own->hot_odd >> 16) << 32;
		for (step = 16; step; step /= 2) {
			even += cua_port_shuffle_u64(CUA__ALL_LANES, even, lane ^ step);
			odd += cua_port_shuffle_u64(CUA__ALL_LANES, odd, lane ^ step);
		}
		all = (uint32_t)((lane & 1 ? odd : even) >> (lane & 2) * 16);
	}
	if (lane < 4 && all)
		cua__histogram_add(&j->h, 0, own->first + own->hot * 4 + lane, all);
	own->hot_even = own->hot_odd = own->tiles = 0;
}

/* Called after each tile by whole warps. Widens and flushes the fields before they overflow. */
CUA_FORCE void cua__histogram_hot_tick(const struct cua__histogram_job *j,
				       struct cua__histogram_own *own)
{
	if (++own->tiles % CUA__HISTOGRAM_HOT_SHORT)
		return;
	cua__histogram_hot_widen(own);
	if (own->tiles >= CUA__HISTOGRAM_HOT_LONG)
		cua__histogram_hot_flush(j, own);
}

/*
 * Counts all n elements of all lanes at once if they have the same counter, as in a long run of
 * equal elements, or two different counters, as at the boundary of two runs. Returns 1 if so.
 * `sample` is the counter of some lane. near_sample: the first counters of all lanes are in the
 * sample's hot set. Called by whole warps.
 */
CUA_FORCE int cua__histogram_count_two(enum cua__histogram_layout layout,
				       const struct cua__histogram_job *j,
				       struct cua__histogram_own *own, uint32_t n,
				       const uint32_t *counter, uint32_t sample, int near_sample)
{
	uint32_t first = sample, last = sample, firsts = n * 32, differs = !near_sample, k;

	if (near_sample) {
		CUA__UNROLL
		for (k = 0; k < n; k++)
			differs |= counter[k] ^ sample;
	}
	if (cua_port_ballot(CUA__ALL_LANES, differs != 0)) {
		first = cua_port_shuffle_u32(CUA__ALL_LANES, counter[0], 0);
		last = cua_port_shuffle_u32(CUA__ALL_LANES, counter[n - 1], 31);
		differs = 0;
		CUA__UNROLL
		for (k = 0; k < n; k++)
			differs |= counter[k] != first && counter[k] != last;
		if (cua_port_ballot(CUA__ALL_LANES, differs != 0))
			return 0;
		firsts = 0;
		CUA__UNROLL
		for (k = 0; k < n; k++)
			firsts += cua_port_popc_u32(
				cua_port_ballot(CUA__ALL_LANES, counter[k] == first));
	}
	/* lane 0 counts the first counter, and lane 1 the last counter if it differs */
	first = own->lane ? last : first;
	firsts = own->lane ? n * 32 - firsts : firsts;
	if (own->lane < 2 && firsts && first != CUA__HISTOGRAM_NONE)
		cua__histogram_count_many(layout, j, own, first, firsts);
	return 1;
}

/*
 * Chooses the hot set again. The candidate is the set of lane `from`'s first counter; it is chosen
 * if enough lanes have it. If hardly any lane has the present hot set, there is none. Returns 1 if
 * cua__histogram_count_two has counted all n elements of all lanes instead. Called by whole warps.
 */
CUA_FORCE int cua__histogram_hot_choose(enum cua__histogram_layout layout,
					const struct cua__histogram_job *j,
					struct cua__histogram_own *own, uint32_t n,
					const uint32_t *counter, uint32_t from)
{
	uint32_t old = 0, now, sample;

	if (own->hot != CUA__HISTOGRAM_NO_HOT) {
		old = cua_port_popc_u32(
			cua_port_ballot(CUA__ALL_LANES, counter[0] / 4 == own->hot));
		if (old >= 16 && old < 32)
			return 0;
	}
	sample = cua_port_shuffle_u32(CUA__ALL_LANES, counter[0], from);
	now = cua_port_popc_u32(cua_port_ballot(CUA__ALL_LANES, (counter[0] ^ sample) < 4));
	if ((now > old + CUA__HISTOGRAM_HOT_LANES || now == 32) &&
	    cua__histogram_count_two(layout, j, own, n, counter, sample, now == 32))
		return 1;
	if (now <= old + CUA__HISTOGRAM_HOT_LANES || sample == CUA__HISTOGRAM_NONE) {
		if (own->hot == CUA__HISTOGRAM_NO_HOT || old > 1)
			return 0;
		sample = CUA__HISTOGRAM_NO_HOT;
	}
	cua__histogram_hot_flush(j, own);
	own->hot = sample == CUA__HISTOGRAM_NO_HOT ? sample : sample / 4;
	own->tiles = 0;
	return 0;
}

#endif /* CUATOMIC_KERNELS_HISTOGRAM_COUNTERS_H */
