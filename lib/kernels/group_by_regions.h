/* SPDX-License-Identifier: MIT */
/*
 * Group by on a GPU in a single partition of the rows: for keys and values of 32 bits, and groups in
 * any order.
 *
 * Source: radix partitioning by hash with tables in shared memory, as in hash joins on GPUs.
 *
 * The hash of a key is a permutation of the 32-bit numbers. They are divided evenly into regions, and
 * the rest, the difference of a hash from the first of its region, names the key within the region.
 * The kernels are:
 * 1. Count: the records of each region.
 * 2. Plan: the first record of each region. A single block.
 * 3. Partition: a record has the hash and the value of a row. The records are written sorted by
 *    region.
 * 4. Accumulate: a block takes a region, and finds its groups in a table in shared memory: for each
 *    group the rest, the count and the sum. At the end of the region the groups are appended to the
 *    outputs.
 *    Or, for keys alone, mark: the block has a bit for each rest, and appends the keys of the bits that
 *    are set. Then there are as many regions as the bits need, which is no power of two.
 *
 * A table has buckets of four entries, so that nearly all keys are in the first bucket that they
 * probe. If a region has too many groups for its table, the block takes only the keys of a subset,
 * and then the other subsets. Subset s of depth d has the keys with rest mod 2^d = s. A subset that
 * does not fit is divided in two.
 *
 * A sum of floats is a signed integer of 64 bits, in units of a power of two that the block chooses
 * by a sample of the region. An element that does not fit goes to a list of the block, and so does a
 * multiple of 2^64 units when the integer overflows. The sum of a group with such elements is rounded
 * from digits.
 *
 * The call is `unfit` if a region has more records than the share of a multiprocessor, or if a list
 * is full. Then no output is valid, and the caller takes the steps of group_by_kernel.h instead.
 *
 * Argument: an entry changes from 0 to a rest + 1, by compare-and-swap, and never again. All rows of
 * a key probe the same buckets in the same order, and within a bucket claim the first entry that is
 * 0. A thread passes an entry only if the entry has another key. So all rows of a key end at the same
 * entry. Counts and sums are atomic additions of integers, so their order does not matter; the
 * addition to the lower word returns the carry, as in scatter_kernel.h. Barriers separate clearing,
 * adding and appending. The ends of kernels publish the records.
 *
 * Scope: the device. Memory order: relaxed. Progress: no thread waits for another block. A failed
 * compare-and-swap means that another thread has claimed the entry. Division into subsets ends,
 * because a subset of a single rest fits.
 */
#ifndef CUATOMIC_KERNELS_GROUP_BY_REGIONS_H
#define CUATOMIC_KERNELS_GROUP_BY_REGIONS_H

#include "backend/group_by_backend.h"
#include "kernels/group_by_sums.h"
#include "kernels/owner.h"
#include "kernels/warp_scan.h"

#ifndef CUA__REGIONS_BITS
#define CUA__REGIONS_BITS 11u
#endif
/* Regions of calls with tables, and the most of any call. */
#define CUA__REGIONS (1u << CUA__REGIONS_BITS)
#ifndef CUA__REGIONS_LIMIT
#define CUA__REGIONS_LIMIT 2560u
#endif
/* Bits of a rest, with tables. */
#define CUA__REGIONS_REST (32u - CUA__REGIONS_BITS)
/* Records that a thread sorts at once, with values and without; and loads at once. */
#ifndef CUA__REGIONS_SORTS
#define CUA__REGIONS_SORTS 16u
#endif
#define CUA__REGIONS_KEY_SORTS (CUA__REGIONS_SORTS / 2 * 3)
#define CUA__REGIONS_LOADS 4u
/* Elements of a block's list. */
#define CUA__REGIONS_ODD 128u
/* Buckets that a key probes before its table counts as full. */
#define CUA__REGIONS_PROBES 32u

#define CUA__REGIONS_IN_BLOCK CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED
#define CUA__REGIONS_ON_DEVICE CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* The hash of owner.h is a permutation of the 32-bit numbers if the seed has 32 bits. */
CUA_FORCE uint32_t cua__regions_hash(uint32_t key, uint32_t seed)
{
	return cua__owner_hash_u32(key, seed);
}

/* The inverse. */
CUA_FORCE uint32_t cua__regions_key(uint32_t hash, uint32_t seed)
{
	hash = (hash ^ hash >> 16) * 0x43021123u;
	hash = (hash ^ hash >> 15 ^ hash >> 30) * 0x1d69e2a5u;
	return hash ^ hash >> 16 ^ seed;
}

/* The region of a hash. */
CUA_FORCE uint32_t cua__regions_of(uint32_t hash, uint32_t regions)
{
	return (uint32_t)((uint64_t)hash * regions >> 32);
}

/* The first hash of a region. */
CUA_FORCE uint64_t cua__regions_first(uint32_t region, uint32_t regions)
{
	return (((uint64_t)region << 32) + regions - 1) / regions;
}

/* ---- count and plan ---- */

/* count: a word for each region, in shared memory. */
CUA_FORCE void cua__regions_count(const struct cua__regions_job *j, uint32_t *count)
{
	const uint32_t threads = cua_port_block_size();
	const uint64_t step = (uint64_t)cua_port_grid_size() * threads;
	uint64_t i = (uint64_t)cua_port_block() * threads + cua_port_thread();

	for (uint32_t r = cua_port_thread(); r < j->regions; r += threads)
		CUA_WRITE(count[r], 0u);
	cua_port_sync_block();
	for (; i < j->n; i += 4 * step) {
		uint32_t key[4];

		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++)
			key[k] = i + k * step < j->n ? CUA_READ(j->keys[i + k * step]) : 0;
		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++)
			if (i + k * step < j->n)
				cua_port_add_u32(
					&count[cua__regions_of(cua__regions_hash(key[k], j->seed),
							       j->regions)],
					1, CUA__REGIONS_IN_BLOCK);
	}
	cua_port_sync_block();
	for (uint32_t r = cua_port_thread(); r < j->regions; r += threads) {
		const uint32_t mine = CUA_READ(count[r]);

		if (mine)
			cua_port_add_u32(&j->count[r], mine, CUA__REGIONS_ON_DEVICE);
	}
}

/* By a single block; sum has a word for each region, in shared memory. */
CUA_FORCE void cua__regions_plan(const struct cua__regions_job *j, uint32_t *sum)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();

	for (uint32_t r = thread; r < j->regions; r += threads) {
		const uint32_t count = CUA_READ(j->count[r]);

		CUA_WRITE(sum[r], count);
		if (count > j->most)
			cua_port_or_b32(&j->state->unfit, 1, CUA__REGIONS_ON_DEVICE);
	}
	cua_port_sync_block();
	for (uint32_t by = 1; by < j->regions; by *= 2) {
		/* from the top down, each thread in steps of the block: no word is read after its change */
		for (uint32_t base = j->regions; base > 0;) {
			const uint32_t part = base < threads ? base : threads;
			const uint32_t r = base - part + thread;
			const uint32_t more = thread < part && r >= by ? CUA_READ(sum[r - by]) : 0;

			cua_port_sync_block();
			if (thread < part)
				CUA_WRITE(sum[r], CUA_READ(sum[r]) + more);
			cua_port_sync_block();
			base -= part;
		}
	}
	for (uint32_t r = thread; r < j->regions; r += threads) {
		const uint32_t before = r ? CUA_READ(sum[r - 1]) : 0;

		CUA_WRITE(j->before[r], before);
		CUA_WRITE(j->cursor[r], before);
	}
	if (thread == 0)
		CUA_WRITE(j->before[j->regions], (uint32_t)j->n);
}

/* ---- partition ---- */

/* Shared memory of a partition; `count` has a word more, and `record` the records of a tile. */
struct cua__regions_stage {
	uint32_t *count, *base, *of_warp;
	void *record;
};

/* Records that a thread sorts at once. */
CUA_FORCE uint32_t cua__regions_sorts(uint32_t record)
{
	return record == 4 ? CUA__REGIONS_KEY_SORTS : CUA__REGIONS_SORTS;
}

CUA_FORCE uint32_t cua__regions_stage_bytes(uint32_t threads, uint32_t record, uint32_t regions)
{
	return 4 * (2 * ((regions + 4) & ~3u) + 32) + threads * cua__regions_sorts(record) * record;
}

CUA_FORCE struct cua__regions_stage cua__regions_stage_at(void *memory, uint32_t regions)
{
	struct cua__regions_stage s;

	s.count = (uint32_t *)memory;
	s.base = s.count + ((regions + 4) & ~3u);
	s.of_warp = s.base + ((regions + 4) & ~3u);
	s.record = s.of_warp + 32;
	return s;
}

CUA_FORCE uint64_t cua__regions_get(const void *record, uint64_t i, uint32_t size)
{
	uint32_t narrow;

	if (size == 8)
		return CUA_READ(((const uint64_t *)record)[i]);
	narrow = CUA_READ(((const uint32_t *)record)[i]);
	return narrow;
}

CUA_FORCE void cua__regions_set(void *record, uint64_t i, uint64_t v, uint32_t size)
{
	if (size == 8)
		CUA_WRITE(((uint64_t *)record)[i], v);
	else
		CUA_WRITE(((uint32_t *)record)[i], (uint32_t)v);
}

/* Loads a thread's elements of a tile that begins at `begin`, or zeros beyond the end. */
CUA_FORCE void cua__regions_load(const uint32_t *array, uint64_t begin, uint64_t end,
				 uint32_t threads, uint32_t sorts, uint32_t *v)
{
	CUA__UNROLL
	for (uint32_t k = 0; k < sorts; k++) {
		const uint64_t i = begin + k * threads + cua_port_thread();

		v[k] = i < end ? CUA_READ(array[i]) : 0;
	}
}

/* threads and size, that of a record, are constants; regions is if the records have values. */
CUA_FORCE void cua__regions_partition(const struct cua__regions_job *j,
				      const struct cua__regions_stage *sh, uint32_t size,
				      uint32_t threads, uint32_t regions)
{
	const uint32_t thread = cua_port_thread(), sorts = cua__regions_sorts(size);
	const uint32_t tile = threads * sorts;
	const uint64_t step = (uint64_t)cua_port_grid_size() * tile;

	if (CUA_READ(j->state->unfit))
		return;
	for (uint64_t begin = (uint64_t)cua_port_block() * tile; begin < j->n; begin += step) {
		const uint32_t used = j->n - begin < tile ? (uint32_t)(j->n - begin) : tile;
		uint32_t hash[CUA__REGIONS_KEY_SORTS], value[CUA__REGIONS_SORTS];
		/* two in a word; the positions of a tile have 16 bits */
		uint32_t rank[(CUA__REGIONS_KEY_SORTS + 1) / 2] = {0};

		cua__regions_load(j->keys, begin, j->n, threads, sorts, hash);
		if (size == 8)
			cua__regions_load(j->s.x, begin, j->n, threads, sorts, value);
		for (uint32_t r = thread; r < regions; r += threads)
			CUA_WRITE(sh->count[r], 0u);
		cua_port_sync_block();
		CUA__UNROLL
		for (uint32_t k = 0; k < sorts; k++) {
			hash[k] = cua__regions_hash(hash[k], j->seed);
			if (k * threads + thread < used)
				rank[k / 2] |=
					cua_port_fetch_add_u32(
						&sh->count[cua__regions_of(hash[k], regions)], 1,
						CUA__REGIONS_IN_BLOCK)
					<< k % 2 * 16;
		}
		cua_port_sync_block();
		cua__block_claim(sh->count, sh->base, sh->of_warp, j->cursor, regions, threads);
		CUA__UNROLL
		for (uint32_t k = 0; k < sorts; k++)
			if (k * threads + thread < used)
				cua__regions_set(
					sh->record,
					CUA_READ(sh->count[cua__regions_of(hash[k], regions)]) +
						(rank[k / 2] >> k % 2 * 16 & 0xffff),
					size == 8 ? (uint64_t)value[k] << 32 | hash[k] : hash[k],
					size);
		cua_port_sync_block();
		for (uint32_t i = thread; i < used; i += threads) {
			const uint64_t record = cua__regions_get(sh->record, i, size);
			const uint32_t r = cua__regions_of((uint32_t)record, regions);

			cua__regions_set(j->record, (uint64_t)(CUA_READ(sh->base[r]) + i), record,
					 size);
		}
		cua_port_sync_block();
	}
}

/*
 * Takes the next region, or one past the last if the call is unfit. A single thread decides for the
 * block, because other blocks may set `unfit`. A barrier must follow.
 */
CUA_FORCE void cua__regions_take(const struct cua__regions_job *j, uint32_t *region)
{
	if (cua_port_thread())
		return;
	CUA_WRITE(*region,
		  cua_port_load_b32(&j->state->unfit, CUA__REGIONS_ON_DEVICE)
			  ? j->regions
			  : cua_port_fetch_add_u32(&j->state->next, 1, CUA__REGIONS_ON_DEVICE));
}

/* ---- accumulate ---- */

/* An element that does not fit: its bits, or with `by` a multiple of 2^64 units. */
struct cua__regions_odd {
	uint32_t entry;
	uint32_t bits;
	int32_t by;
};

/* Shared memory of an accumulation; the planes of the table follow. */
struct cua__regions_block {
	uint64_t first; /* output of the region's groups */
	uint32_t region;
	uint32_t top; /* the exponent field of the greatest sampled element */
	uint32_t full;
	uint32_t groups, placed;
	uint32_t odd;
	struct cua__regions_odd list[CUA__REGIONS_ODD];
	uint32_t entry[4]; /* entries, counts if any, lower and upper words of sums if any */
};
CUA_STATIC_ASSERT(offsetof(struct cua__regions_block, entry) % 16 == 0, "buckets are packs");

/* Words of an entry of a table, in planes. */
CUA_FORCE uint32_t cua__regions_words(const struct cua__regions_job *j)
{
	return 1 + cua__sums_words(&j->s);
}

CUA_FORCE uint32_t cua__regions_table_bytes(const struct cua__regions_job *j)
{
	return (uint32_t)offsetof(struct cua__regions_block, entry) +
	       4 * j->entries * cua__regions_words(j);
}

/* A block's view of its table. */
struct cua__regions_table {
	struct cua__regions_block *sh;
	uint32_t *entry, *count, *low, *high;
	uint32_t entries;
	int unit; /* the exponent field of an element with the unit as its lowest bit */
};

CUA_FORCE void cua__regions_add_odd(struct cua__regions_block *sh, uint32_t entry, uint32_t bits,
				    int by)
{
	const uint32_t at = cua_port_fetch_add_u32(&sh->odd, 1, CUA__REGIONS_IN_BLOCK);

	if (at >= CUA__REGIONS_ODD)
		return;
	CUA_WRITE(sh->list[at].entry, entry);
	CUA_WRITE(sh->list[at].bits, bits);
	CUA_WRITE(sh->list[at].by, (int32_t)by);
}

/*
 * The entries of a bucket. Another thread may claim an entry meanwhile: a word is read before or
 * after that.
 */
CUA_FORCE struct cua__pack cua__regions_bucket(const uint32_t *entry, uint32_t bucket)
{
	struct cua__pack p;

#ifdef __CUDA_ARCH__
	/* a single load; the hardware accesses each word at once */
	p = ((const struct cua__pack *)entry)[bucket];
#else
	for (uint32_t k = 0; k < 4; k++)
		p.word[k] = cua_port_load_b32(&entry[4 * bucket + k], CUA__REGIONS_IN_BLOCK);
#endif
	return p;
}

/* Finds or claims the entry of a rest. Returns the number of entries if there is no room. */
CUA_FORCE uint32_t cua__regions_find(const struct cua__regions_table *t, uint32_t rest)
{
	const uint32_t buckets = t->entries / 4, wanted = rest + 1;
	uint32_t bucket = (uint32_t)(((uint64_t)rest * buckets) >> CUA__REGIONS_REST);

	for (uint32_t probe = 0; probe < CUA__REGIONS_PROBES;) {
		const struct cua__pack p = cua__regions_bucket(t->entry, bucket);
		uint32_t k = 4, seen;

		CUA__UNROLL
		for (uint32_t e = 4; e-- > 0;)
			if (p.word[e] == wanted || !p.word[e])
				k = e;
		/* an entry is claimed only if the entries before it are: the first of either kind decides */
		if (k == 4) {
			bucket = bucket + 1 < buckets ? bucket + 1 : 0;
			probe++;
			continue;
		}
		k += 4 * bucket;
		if (p.word[k % 4] == wanted)
			return k;
		seen = cua_port_cas_b32(&t->entry[k], 0, wanted, CUA__REGIONS_IN_BLOCK);
		if (!seen || seen == wanted)
			return k;
	}
	return t->entries;
}

/* Adds an element of `type` to the sum of an entry. */
CUA_FORCE void cua__regions_add(const struct cua__regions_table *t, uint32_t entry, uint32_t bits,
				enum cua_type type)
{
	int64_t v;
	int by;

	if (!cua__sums_integer(type, bits, t->unit, &v)) {
		if (bits << 1)
			cua__regions_add_odd(t->sh, entry, bits, 0);
		return;
	}
	by = cua__scatter_add64(&t->low[entry], &t->high[entry], v);
	if (type == CUA_F32 && by)
		cua__regions_add_odd(t->sh, entry, 0, by);
}

/* The digits of the sum of an entry with odd elements, rounded. */
CUA__RARE uint64_t cua__regions_digits(const struct cua__regions_table t, uint32_t entry, int64_t v,
				       enum cua_type type)
{
	const int low = 32 * cua__scatter_low(CUA_F64);
	const int unit = cua__sums_at(t.unit) - low;
	int64_t digit[CUA__SCATTER_DIGITS] = {0};
	uint32_t flags = 0;

	cua__exact_insert(digit, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, unit);
	for (uint32_t k = 0; k < CUA_READ(t.sh->odd); k++) {
		const int by = (int)CUA_READ(t.sh->list[k].by);
		struct cua__exact_parts p;

		if (CUA_READ(t.sh->list[k].entry) != entry)
			continue;
		p = cua__scatter_parts(CUA_F32, CUA_READ(t.sh->list[k].bits));
		flags |= p.flags;
		if (by)
			cua__exact_insert(digit, by < 0, 1, unit + 64);
		else if (!p.flags)
			cua__exact_insert(digit, p.negative, p.mantissa, p.at - low);
	}
	return cua__scatter_sum_digits(CUA_F64, type, digit, flags, 1, 0);
}

/* The sum of an entry, rounded to a float type, or as an integer. */
CUA_FORCE uint64_t cua__regions_sum(const struct cua__regions_table *t, uint32_t entry,
				    enum cua_type type, enum cua_type result)
{
	const int64_t v =
		(int64_t)((uint64_t)CUA_READ(t->high[entry]) << 32 | CUA_READ(t->low[entry]));

	if (type != CUA_F32)
		return cua__sums_of_integers((uint64_t)v, type, result);
	for (uint32_t k = 0; k < CUA_READ(t->sh->odd); k++)
		if (CUA_READ(t->sh->list[k].entry) == entry)
			return cua__regions_digits(*t, entry, v, result);
	return cua__scatter_sum_word(result, v, cua__sums_at(t->unit), 1, 0);
}

/* Appends the groups of the table to the outputs. All threads of the block call. */
CUA_FORCE void cua__regions_append(const struct cua__regions_job *j,
				   const struct cua__regions_table *t, int sums, enum cua_type type)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t lane = cua_port_lane();
	struct cua__regions_block *sh = t->sh;
	uint32_t mine = 0;

	for (uint32_t e = thread; e < t->entries; e += threads)
		mine += CUA_READ(t->entry[e]) != 0;
	if (mine)
		cua_port_add_u32(&sh->groups, mine, CUA__REGIONS_IN_BLOCK);
	cua_port_sync_block();
	if (thread == 0)
		CUA_WRITE(sh->first, cua_port_fetch_add_u64(&j->state->groups, CUA_READ(sh->groups),
							    CUA__REGIONS_ON_DEVICE));
	cua_port_sync_block();
	/* the same number of rounds for all lanes of a warp */
	for (uint32_t begin = thread - lane; begin < t->entries; begin += threads) {
		const uint32_t e = begin + lane;
		const uint32_t rest = e < t->entries ? CUA_READ(t->entry[e]) : 0;
		const uint32_t votes = cua_port_ballot(CUA__ALL_LANES, rest != 0);
		uint32_t at = 0;
		uint64_t g;

		if (lane == 0 && votes)
			at = cua_port_fetch_add_u32(&sh->placed, cua_port_popc_u32(votes),
						    CUA__REGIONS_IN_BLOCK);
		at = cua_port_shuffle_u32(CUA__ALL_LANES, at, 0);
		g = CUA_READ(sh->first) + at + cua_port_popc_u32(votes & ((1u << lane) - 1));
		if (!rest || g >= j->capacity)
			continue;
		if (j->out_keys)
			CUA_WRITE(j->out_keys[g],
				  cua__regions_key((CUA_READ(sh->region) << CUA__REGIONS_REST) |
							   (rest - 1),
						   j->seed));
		if (j->s.out_count)
			CUA_WRITE(j->s.out_count[g], (uint64_t)CUA_READ(t->count[e]));
		if (sums && j->s.out_sum)
			cua__sums_store(j->s.out_sum, g,
					cua__regions_sum(t, e, type, j->s.sum_type), j->s.sum_type);
		if (sums && j->s.out_mean)
			cua__sums_store_mean(&j->s, g, cua__regions_sum(t, e, type, CUA_F64),
					     CUA_READ(t->count[e]));
	}
	cua_port_sync_block();
}

/* Adds the records of a subset to the table, which is cleared first. All threads call. */
CUA_FORCE void cua__regions_subset(const struct cua__regions_job *j,
				   const struct cua__regions_table *t, uint32_t subset,
				   uint32_t depth, uint32_t size, enum cua_type type)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t words = t->entries * cua__regions_words(j);
	const struct cua__pack zero = {{0, 0, 0, 0}};
	const uint32_t r = CUA_READ(t->sh->region), end = CUA_READ(j->before[r + 1]);

	for (uint32_t i = thread; i < words / 4; i += threads)
		CUA_WRITE(((struct cua__pack *)t->entry)[i], zero);
	if (thread == 0) {
		CUA_WRITE(t->sh->full, 0u);
		CUA_WRITE(t->sh->groups, 0u);
		CUA_WRITE(t->sh->placed, 0u);
		CUA_WRITE(t->sh->odd, 0u);
	}
	cua_port_sync_block();
	for (uint64_t begin = CUA_READ(j->before[r]); begin < end;
	     begin += CUA__REGIONS_LOADS * threads) {
		uint64_t record[CUA__REGIONS_LOADS];

		/* all lanes of a warp decide together */
		if (cua_port_ballot(CUA__ALL_LANES,
				    cua_port_load_b32(&t->sh->full, CUA__REGIONS_IN_BLOCK) != 0))
			break;
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__REGIONS_LOADS; k++) {
			const uint64_t i = begin + k * threads + thread;

			record[k] = i < end ? cua__regions_get(j->record, i, size) : 0;
		}
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__REGIONS_LOADS; k++) {
			const uint32_t rest = (uint32_t)record[k] & ((1u << CUA__REGIONS_REST) - 1);
			const int taken = begin + k * threads + thread < end &&
					  (rest & ((1u << depth) - 1)) == subset;
			const uint32_t entry = taken ? cua__regions_find(t, rest) : 0;

			/* the lanes probe different numbers of buckets; they add together */
			cua_port_sync_warp(CUA__ALL_LANES);
			if (taken && entry < t->entries) {
				if (j->s.counts)
					cua_port_add_u32(&t->count[entry], 1,
							 CUA__REGIONS_IN_BLOCK);
				if (size == 8)
					cua__regions_add(t, entry, (uint32_t)(record[k] >> 32),
							 type);
			} else if (taken)
				cua_port_store_b32(&t->sh->full, 1, CUA__REGIONS_IN_BLOCK);
		}
	}
	cua_port_sync_block();
}

/* Takes the exponent field of a record's element into the greatest. */
CUA_FORCE void cua__regions_sample(const struct cua__regions_job *j,
				   const struct cua__regions_table *t, uint64_t i)
{
	const uint32_t bits = (uint32_t)(cua__regions_get(j->record, i, 8) >> 32) & 0x7fffffff;

	if (bits && bits < 0x7f800000u)
		cua_port_max_u32(&t->sh->top, bits >> 23 ? bits >> 23 : 1, CUA__REGIONS_IN_BLOCK);
}

/*
 * Sets the unit for the sampled elements of the region, or for all of them if the sample has zeros
 * alone.
 */
CUA_FORCE void cua__regions_set_unit(const struct cua__regions_job *j, struct cua__regions_table *t)
{
	const uint32_t r = CUA_READ(t->sh->region), begin = CUA_READ(j->before[r]);
	const uint32_t count = CUA_READ(j->before[r + 1]) - begin, thread = cua_port_thread();

	if (thread < 128 && count)
		cua__regions_sample(j, t, begin + (uint64_t)count * thread / 128);
	cua_port_sync_block();
	if (!CUA_READ(t->sh->top)) {
		cua_port_sync_block();
		for (uint64_t i = thread; i < count; i += cua_port_block_size())
			cua__regions_sample(j, t, begin + i);
		cua_port_sync_block();
	}
	t->unit = cua__sums_unit((int)CUA_READ(t->sh->top), count);
}

/* size, that of a record, and type, that of the values, are constants. */
CUA_FORCE void cua__regions_accumulate(const struct cua__regions_job *j,
				       struct cua__regions_block *sh, uint32_t size,
				       enum cua_type type)
{
	struct cua__regions_table t;

	t.sh = sh;
	t.entries = j->entries;
	t.entry = sh->entry;
	t.count = t.entry + j->entries;
	t.low = j->s.counts ? t.count + j->entries : t.count;
	t.high = t.low + j->entries;
	t.unit = 1;
	for (;;) {
		uint32_t subset = 0, depth, least;

		cua__regions_take(j, &sh->region);
		if (cua_port_thread() == 0) {
			CUA_WRITE(sh->top, 0u);
			/* as deep as earlier regions had to go */
			CUA_WRITE(sh->full,
				  cua_port_load_b32(&j->state->depth, CUA__REGIONS_ON_DEVICE));
		}
		cua_port_sync_block();
		if (CUA_READ(sh->region) >= j->regions)
			return;
		least = depth = CUA_READ(sh->full);
		cua_port_sync_block();
		if (size == 8 && type == CUA_F32)
			cua__regions_set_unit(j, &t);
		/* all subsets of the least depth, and halves of subsets that do not fit */
		while (subset >> least == 0 || depth > least) {
			cua__regions_subset(j, &t, subset, depth, size, type);
			if (CUA_READ(sh->full)) {
				depth++;
				if (cua_port_thread() == 0)
					cua_port_max_u32(&j->state->depth, depth,
							 CUA__REGIONS_ON_DEVICE);
				cua_port_sync_block();
				continue;
			}
			if (CUA_READ(sh->odd) > CUA__REGIONS_ODD) {
				if (cua_port_thread() == 0)
					cua_port_or_b32(&j->state->unfit, 1,
							CUA__REGIONS_ON_DEVICE);
				return;
			}
			cua__regions_append(j, &t, size == 8, type);
			/* after a second half comes the subset after the whole */
			while (depth > least && subset >> (depth - 1))
				subset -= 1u << --depth;
			if (depth > least)
				subset += 1u << (depth - 1);
			else
				subset++;
		}
	}
}

/* ---- mark ---- */

/* Shared memory of mark. */
struct cua__regions_marks {
	uint64_t first; /* output of the region's keys */
	uint32_t region;
	uint32_t keys, placed;
	uint32_t reserved[3];
	uint32_t word[4]; /* a bit for each rest, and more words */
};
CUA_STATIC_ASSERT(offsetof(struct cua__regions_marks, word) % 16 == 0, "words are packs");

/* Words of the bits of a region, in packs. */
CUA_FORCE uint32_t cua__regions_mark_words(uint32_t regions)
{
	return (uint32_t)((cua__regions_first(1, regions) + 127) / 128 * 4);
}

CUA_FORCE uint32_t cua__regions_mark_bytes(uint32_t regions)
{
	return (uint32_t)offsetof(struct cua__regions_marks, word) +
	       4 * cua__regions_mark_words(regions);
}

/* Sets the bits of the records of a region, and counts them. */
CUA_FORCE void cua__regions_set_marks(const struct cua__regions_job *j,
				      struct cua__regions_marks *sh, uint32_t region)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t first = (uint32_t)cua__regions_first(region, j->regions);
	const uint64_t end = CUA_READ(j->before[region + 1]);
	uint32_t mine = 0;

	for (uint64_t begin = CUA_READ(j->before[region]) + (uint64_t)thread; begin < end;
	     begin += CUA__REGIONS_LOADS * threads) {
		uint32_t rest[CUA__REGIONS_LOADS];

		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__REGIONS_LOADS; k++) {
			const uint64_t i = begin + k * threads;

			/* a record twice is as good as none */
			rest[k] = CUA_READ(((const uint32_t *)j->record)[i < end ? i : begin]) -
				  first;
		}
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__REGIONS_LOADS; k++) {
			uint32_t *word = &sh->word[rest[k] / 32];
			const uint32_t bit = 1u << rest[k] % 32;

			if (!(cua_port_load_b32(word, CUA__REGIONS_IN_BLOCK) & bit))
				mine += !(cua_port_fetch_or_b32(word, bit, CUA__REGIONS_IN_BLOCK) &
					  bit);
		}
	}
	if (mine)
		cua_port_add_u32(&sh->keys, mine, CUA__REGIONS_IN_BLOCK);
}

/* The bits of a pack that are set. */
CUA_FORCE uint32_t cua__regions_bits(struct cua__pack p)
{
	return cua_port_popc_u32(p.word[0]) + cua_port_popc_u32(p.word[1]) +
	       cua_port_popc_u32(p.word[2]) + cua_port_popc_u32(p.word[3]);
}

/* The number of the lowest bit of a pack that is set, which is cleared. */
CUA_FORCE uint32_t cua__regions_take_bit(struct cua__pack *p)
{
	uint32_t word = p->word[0], at = 0, borrow = 1;

	CUA__UNROLL
	for (uint32_t e = 1; e < 4; e++) {
		at = word ? at : 32 * e;
		word = word ? word : p->word[e];
	}
	/* v & (v - 1) */
	CUA__UNROLL
	for (uint32_t e = 0; e < 4; e++) {
		const uint32_t less = p->word[e] - borrow;

		borrow = borrow && !p->word[e];
		p->word[e] &= less;
	}
	return at + cua_port_ffs_u32(word) - 1;
}

/* Appends the keys of the bits that are set. All threads of the block call. */
CUA_FORCE void cua__regions_append_marks(const struct cua__regions_job *j,
					 struct cua__regions_marks *sh, uint32_t region)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t packs = cua__regions_mark_words(j->regions) / 4, lane = cua_port_lane();
	const uint32_t first = (uint32_t)cua__regions_first(region, j->regions);
	const struct cua__pack *pack = (const struct cua__pack *)sh->word;

	if (thread == 0)
		CUA_WRITE(sh->first, cua_port_fetch_add_u64(&j->state->groups, CUA_READ(sh->keys),
							    CUA__REGIONS_ON_DEVICE));
	cua_port_sync_block();
	if (!j->out_keys)
		return;
	/* the same number of rounds for all lanes of a warp */
	for (uint32_t begin = thread - lane; begin < packs; begin += threads) {
		struct cua__pack p = {{0, 0, 0, 0}};
		uint32_t total, before, bits, at = 0;
		uint64_t g;

		if (begin + lane < packs)
			p = CUA_READ(pack[begin + lane]);
		bits = cua__regions_bits(p);
		before = cua__warp_before(bits, &total);
		if (lane == 0 && total)
			at = cua_port_fetch_add_u32(&sh->placed, total, CUA__REGIONS_IN_BLOCK);
		at = cua_port_shuffle_u32(CUA__ALL_LANES, at, 0);
		g = CUA_READ(sh->first) + at + before;
		if (g >= j->capacity)
			continue;
		bits = j->capacity - g < bits ? (uint32_t)(j->capacity - g) : bits;
		/* as many rounds as the most bits of a lane, not of each word */
		for (; bits; bits--, g++) {
			const uint32_t at_bit = cua__regions_take_bit(&p);

			CUA_WRITE(j->out_keys[g],
				  cua__regions_key(first + 128 * (begin + lane) + at_bit, j->seed));
		}
	}
}

/* Finds the keys of regions, by their bits. */
CUA_FORCE void cua__regions_mark(const struct cua__regions_job *j, struct cua__regions_marks *sh)
{
	const uint32_t packs = cua__regions_mark_words(j->regions) / 4;
	const struct cua__pack zero = {{0, 0, 0, 0}};

	for (;;) {
		uint32_t region;

		cua__regions_take(j, &sh->region);
		cua_port_sync_block();
		region = CUA_READ(sh->region);
		if (region >= j->regions)
			return;
		for (uint32_t i = cua_port_thread(); i < packs; i += cua_port_block_size())
			CUA_WRITE(((struct cua__pack *)sh->word)[i], zero);
		if (cua_port_thread() == 0) {
			CUA_WRITE(sh->keys, 0u);
			CUA_WRITE(sh->placed, 0u);
		}
		cua_port_sync_block();
		cua__regions_set_marks(j, sh, region);
		cua_port_sync_block();
		/* the next barrier comes before the bits are cleared */
		cua__regions_append_marks(j, sh, region);
	}
}

#endif /* CUATOMIC_KERNELS_GROUP_BY_REGIONS_H */
