/* SPDX-License-Identifier: MIT */
/*
 * The records of a scatter's passes: count the records of each region, plan the passes, and partition
 * the records of a pass by region.
 *
 * Source: a counting sort of tiles in shared memory, as in radix partitioning on GPUs.
 *
 * Scope: the device. The operations on counters are relaxed: the atomicity of an addition gives each
 * place to a single record, and the end of a kernel publishes its records. Progress: no thread waits
 * for another block.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_PARTITION_H
#define CUATOMIC_KERNELS_SCATTER_PARTITION_H

#include "kernels/scatter_job.h"
#include "kernels/warp_scan.h"

/* The most records that a thread sorts at once. */
#ifndef CUA__SCATTER_SORTS
#define CUA__SCATTER_SORTS 16u
#endif
/* Indexes that a thread reads before the block looks whether its stage is full. */
#ifndef CUA__SCATTER_READS
#define CUA__SCATTER_READS 8u
#endif
/* A position in the stage of a partition. */
#ifndef CUA__SCATTER_ORDER
#define CUA__SCATTER_ORDER uint16_t
#endif
/* Records whose words in shared memory a thread reads before it writes. */
#define CUA__SCATTER_BATCH 4u
#define CUA__SCATTER_NONE 0xffffffffu
#define CUA__SCATTER_IN_BLOCK CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED
#define CUA__SCATTER_ON_DEVICE CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* ---- input ---- */

CUA_FORCE uint64_t cua__scatter_index(const struct cua__scatter_job *j, uint64_t i)
{
	if (j->index_size == 4) {
		uint32_t v = CUA_READ(((const cua__raw32 *)j->s.index)[i]);

		return v;
	}
	return CUA_READ(((const cua__raw64 *)j->s.index)[i]);
}

/* Element e of an array of elements of `size` bytes, as bits. */
CUA_FORCE uint64_t cua__scatter_load(const void *x, uint64_t e, uint32_t size)
{
	switch (size) {
	case 1: return CUA_READ(((const uint8_t *)x)[e]);
	case 2: return CUA_READ(((const cua__raw16 *)x)[e]);
	case 4: return CUA_READ(((const cua__raw32 *)x)[e]);
	default: return CUA_READ(((const cua__raw64 *)x)[e]);
	}
}

/* Element e of x; 1 if there is no x, for counts. */
CUA_FORCE uint64_t cua__scatter_element(const struct cua__scatter_job *j, uint64_t e, uint32_t size)
{
	return j->s.x ? cua__scatter_load(j->s.x, e, size) : 1;
}

/* Whether an earlier kernel has stored all results by cells in global memory. */
CUA_FORCE int cua__scatter_is_done(const struct cua__scatter_job *j)
{
	return j->planes && !CUA_READ(j->state->misfit);
}

/* ---- count ---- */

/* Counts the records of each region; count has a word per region. */
CUA_FORCE void cua__scatter_count(const struct cua__scatter_job *j, uint32_t *count)
{
	const uint32_t threads = cua_port_block_size(), shift = j->span + j->subs;
	const uint64_t step = (uint64_t)cua_port_grid_size() * threads;
	uint64_t i = (uint64_t)cua_port_block() * threads + cua_port_thread();

	if (cua__scatter_is_done(j))
		return;
	for (uint32_t r = cua_port_thread(); r < j->regions; r += threads)
		CUA_WRITE(count[r], 0u);
	cua_port_sync_block();
	for (; i + 3 * step < j->s.n; i += 4 * step) {
		uint64_t at[4];

		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++)
			at[k] = cua__scatter_index(j, i + k * step);
		CUA__UNROLL
		for (uint32_t k = 0; k < 4; k++)
			if (at[k] < j->limit)
				cua_port_add_u32(&count[at[k] >> shift], 1, CUA__SCATTER_IN_BLOCK);
	}
	for (; i < j->s.n; i += step) {
		const uint64_t at = cua__scatter_index(j, i);

		if (at < j->limit)
			cua_port_add_u32(&count[at >> shift], 1, CUA__SCATTER_IN_BLOCK);
	}
	cua_port_sync_block();
	for (uint32_t r = cua_port_thread(); r < j->regions; r += threads) {
		const uint32_t mine = CUA_READ(count[r]);

		if (mine)
			cua_port_add_u64(&j->count[r], mine, CUA__SCATTER_ON_DEVICE);
	}
}

/* ---- plan: a single block ---- */

#ifndef CUA__SCATTER_PLAN_THREADS
#define CUA__SCATTER_PLAN_THREADS 1024u
#endif

struct cua__scatter_plan {
	uint64_t sum[CUA__SCATTER_PLAN_THREADS], sum_items[CUA__SCATTER_PLAN_THREADS];
};

/* Replaces each thread's word by the sum of the words before; returns the sum of all. */
CUA_FORCE uint64_t cua__scatter_scan(uint64_t *sum)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	uint64_t total;

	cua_port_sync_block();
	for (uint32_t by = 1; by < threads; by *= 2) {
		const uint64_t more = thread >= by ? CUA_READ(sum[thread - by]) : 0;

		cua_port_sync_block();
		CUA_WRITE(sum[thread], CUA_READ(sum[thread]) + more);
		cua_port_sync_block();
	}
	total = CUA_READ(sum[threads - 1]);
	{
		const uint64_t before = thread ? CUA_READ(sum[thread - 1]) : 0;

		cua_port_sync_block();
		CUA_WRITE(sum[thread], before);
	}
	cua_port_sync_block();
	return total;
}

/* The blocks that accumulate each sub-range and tile of a region. */
CUA_FORCE uint64_t cua__scatter_part_count(const struct cua__scatter_job *j, uint64_t count,
					   uint64_t most)
{
	if (count > j->room)
		return j->direct_parts;
	if (!count)
		return j->s.overwrite != 0;
	return count > most ? (count - 1) / j->part + 1 : 1;
}

/* Chooses the regions of the passes, in order. */
CUA_FORCE uint32_t cua__scatter_choose(const struct cua__scatter_job *j)
{
	uint32_t passes = 0, first = 0;

	while (first < j->regions && passes < j->passes) {
		const uint64_t most = CUA_READ(j->before[first]) + j->room;
		uint32_t low = first, high = first + j->fan;
		struct cua__scatter_pass p = {first, 0, 0, 0};

		if (high > j->regions)
			high = j->regions;
		/* the regions before low fit; not those before high + 1 */
		while (low < high) {
			const uint32_t middle = low + (high - low + 1) / 2;

			if (CUA_READ(j->before[middle]) <= most)
				low = middle;
			else
				high = middle - 1;
		}
		if (low == first) {
			p.direct = 1;
			low++;
		}
		p.end = low;
		CUA_WRITE(j->pass[passes], p);
		passes++;
		first = low;
	}
	return passes;
}

/*
 * The records that a block accumulates alone at most: as few as the shared cells allow. Every thread
 * has regions begin to end - 1. With j->most, the shared cells suffice for each pass.
 */
CUA_FORCE uint64_t cua__scatter_most(const struct cua__scatter_job *j, struct cua__scatter_plan *sh,
				     uint32_t begin, uint32_t end)
{
	const uint32_t groups = j->tiles << j->subs;
	uint64_t most = j->part;

	/* no shared cells */
	if (j->most == UINT64_MAX)
		return j->most;
	while (most < j->most) {
		uint64_t shares = 0;

		for (uint32_t r = begin; r < end; r++)
			shares += CUA_READ(j->count[r]) > most ? groups : 0;
		CUA_WRITE(sh->sum[cua_port_thread()], shares);
		if (cua__scatter_scan(sh->sum) <= CUA__SCATTER_SHARED_MAX)
			return most;
		most *= 2;
	}
	return j->most;
}

CUA_FORCE void cua__scatter_plan(const struct cua__scatter_job *j, struct cua__scatter_plan *sh)
{
	const uint32_t thread = cua_port_thread(), threads = cua_port_block_size();
	const uint32_t each = (j->regions + threads - 1) / threads;
	const uint32_t begin = thread * each < j->regions ? thread * each : j->regions;
	const uint32_t end = begin + each < j->regions ? begin + each : j->regions;
	const uint32_t groups = j->tiles << j->subs;
	uint64_t records = 0, items = 0, total, most;
	uint32_t shares = 0, shares_all;

	if (cua__scatter_is_done(j))
		return;
	most = cua__scatter_most(j, sh, begin, end);
	for (uint32_t r = begin; r < end; r++) {
		const uint64_t count = CUA_READ(j->count[r]),
			       parts = cua__scatter_part_count(j, count, most);

		records += count;
		items += parts * groups;
		shares += parts > 1 ? groups : 0;
	}
	CUA_WRITE(sh->sum[thread], records);
	total = cua__scatter_scan(sh->sum);
	records = CUA_READ(sh->sum[thread]);
	cua_port_sync_block();
	CUA_WRITE(sh->sum[thread], (uint64_t)shares);
	CUA_WRITE(sh->sum_items[thread], items);
	shares_all = (uint32_t)cua__scatter_scan(sh->sum);
	shares = (uint32_t)CUA_READ(sh->sum[thread]);
	{
		const uint64_t items_all = cua__scatter_scan(sh->sum_items);

		if (thread == 0) {
			CUA_WRITE(j->before[j->regions], total);
			CUA_WRITE(j->items[j->regions], items_all);
			CUA_WRITE(j->shares[j->regions], shares_all);
			CUA_WRITE(j->state->inside, total);
			if (j->s.skipped)
				CUA_WRITE(*j->s.skipped, j->s.n - total);
		}
	}
	items = CUA_READ(sh->sum_items[thread]);
	for (uint32_t r = begin; r < end; r++) {
		const uint64_t count = CUA_READ(j->count[r]),
			       parts = cua__scatter_part_count(j, count, most);

		CUA_WRITE(j->before[r], records);
		CUA_WRITE(j->items[r], items);
		CUA_WRITE(j->shares[r], shares);
		records += count;
		items += parts * groups;
		shares += parts > 1 ? groups : 0;
	}
	cua_port_sync_block();
	if (thread == 0)
		CUA_WRITE(j->state->passes, cua__scatter_choose(j));
	cua_port_sync_block();
	for (uint32_t p = 0; p < CUA_READ(j->state->passes); p++) {
		const struct cua__scatter_pass pass = CUA_READ(j->pass[p]);
		const uint64_t before = CUA_READ(j->before[pass.first]);

		for (uint32_t r = pass.first + thread; r < pass.end; r += threads)
			CUA_WRITE(j->cursor[r], (uint32_t)(CUA_READ(j->before[r]) - before));
	}
}

/* ---- partition ---- */

/* Shared memory of a partition. */
struct cua__scatter_stage {
	uint32_t *staged;  /* how many records there are */
	uint32_t *of_warp; /* 32 words */
	uint32_t *count;   /* per region, and one more; then the first position after sorting */
	uint32_t *base;    /* per region: where position 0 would go */
	uint32_t *key;     /* per record */
	void *value;
	CUA__SCATTER_ORDER *order;
};

CUA_FORCE uint32_t cua__scatter_stage_bytes(const struct cua__scatter_job *j)
{
	return 4 * (64 + 2 * j->fan + 4) +
	       j->tile * (4 + j->value_size + (uint32_t)sizeof(CUA__SCATTER_ORDER));
}

CUA_FORCE struct cua__scatter_stage cua__scatter_stage_at(const struct cua__scatter_job *j,
							  void *memory)
{
	struct cua__scatter_stage s;

	s.staged = (uint32_t *)memory;
	s.of_warp = s.staged + 32;
	s.count = s.of_warp + 32;
	s.base = s.count + j->fan + 4;
	s.key = s.base + j->fan;
	s.value = s.key + j->tile;
	s.order = (CUA__SCATTER_ORDER *)((char *)s.value + j->tile * j->value_size);
	return s;
}

CUA_FORCE uint64_t cua__scatter_value(const void *values, uint64_t i, uint32_t size)
{
	if (size == 4) {
		uint32_t v = CUA_READ(((const cua__raw32 *)values)[i]);

		return v;
	}
	return CUA_READ(((const cua__raw64 *)values)[i]);
}

CUA_FORCE void cua__scatter_set_value(void *values, uint64_t i, uint64_t v, uint32_t size)
{
	if (size == 4)
		CUA_WRITE(((cua__raw32 *)values)[i], (uint32_t)v);
	else
		CUA_WRITE(((cua__raw64 *)values)[i], v);
}

/* Sorts the staged records by region and writes them. All threads of the block call. */
CUA_FORCE void cua__scatter_flush(const struct cua__scatter_job *j,
				  const struct cua__scatter_stage *sh,
				  const struct cua__scatter_pass *p, uint32_t regions,
				  uint32_t value_size, uint32_t threads)
{
	const uint32_t thread = cua_port_thread(), shift = j->span + j->subs;
	const uint32_t staged = CUA_READ(*sh->staged), mask = (1u << shift) - 1;
	/* two in a word; the positions of a tile have 16 bits */
	uint32_t rank[CUA__SCATTER_SORTS / 2] = {0};

	for (uint32_t r = thread; r < regions; r += threads)
		CUA_WRITE(sh->count[r], 0u);
	cua_port_sync_block();
	CUA__UNROLL
	for (uint32_t first = 0; first < CUA__SCATTER_SORTS; first += CUA__SCATTER_BATCH) {
		uint32_t region[CUA__SCATTER_BATCH];

		CUA__UNROLL
		for (uint32_t e = 0; e < CUA__SCATTER_BATCH; e++) {
			const uint32_t i = (first + e) * threads + thread;

			region[e] = i < staged ? CUA_READ(sh->key[i]) >> shift : CUA__SCATTER_NONE;
		}
		CUA__UNROLL
		for (uint32_t e = 0; e < CUA__SCATTER_BATCH; e++)
			if (region[e] != CUA__SCATTER_NONE)
				rank[(first + e) / 2] |=
					cua_port_fetch_add_u32(&sh->count[region[e]], 1,
							       CUA__SCATTER_IN_BLOCK)
					<< e % 2 * 16;
	}
	cua_port_sync_block();
	cua__block_claim(sh->count, sh->base, sh->of_warp, j->cursor + p->first, regions, threads);
	CUA__UNROLL
	for (uint32_t first = 0; first < CUA__SCATTER_SORTS; first += CUA__SCATTER_BATCH) {
		uint32_t position[CUA__SCATTER_BATCH];

		CUA__UNROLL
		for (uint32_t e = 0; e < CUA__SCATTER_BATCH; e++) {
			const uint32_t i = (first + e) * threads + thread;

			position[e] = 0;
			if (i < staged)
				position[e] = CUA_READ(sh->count[CUA_READ(sh->key[i]) >> shift]) +
					      (rank[(first + e) / 2] >> e % 2 * 16 & 0xffff);
		}
		CUA__UNROLL
		for (uint32_t e = 0; e < CUA__SCATTER_BATCH; e++) {
			const uint32_t i = (first + e) * threads + thread;

			if (i < staged)
				CUA_WRITE(sh->order[position[e]], (CUA__SCATTER_ORDER)i);
		}
	}
	cua_port_sync_block();
	CUA__ROLLED
	for (uint32_t first = thread; first < staged; first += CUA__SCATTER_BATCH * threads) {
		uint32_t key[CUA__SCATTER_BATCH], to[CUA__SCATTER_BATCH];
		uint64_t value[CUA__SCATTER_BATCH];

		CUA__UNROLL
		for (uint32_t e = 0; e < CUA__SCATTER_BATCH; e++) {
			const uint32_t k = first + e * threads;

			if (k < staged) {
				const uint32_t i = CUA_READ(sh->order[k]);

				key[e] = CUA_READ(sh->key[i]);
				value[e] = cua__scatter_value(sh->value, i, value_size);
				to[e] = CUA_READ(sh->base[key[e] >> shift]) + k;
			}
		}
		CUA__UNROLL
		for (uint32_t e = 0; e < CUA__SCATTER_BATCH; e++)
			if (first + e * threads < staged) {
				CUA_WRITE(j->keys[to[e]], key[e] & mask);
				cua__scatter_set_value(j->values, to[e], value[e], value_size);
			}
	}
	cua_port_sync_block();
	if (thread == 0)
		CUA_WRITE(*sh->staged, 0u);
	cua_port_sync_block();
}

/* Reads a thread's part of a tile: indexes and elements, or zeros beyond n. */
CUA_FORCE void cua__scatter_read(const struct cua__scatter_job *j, uint64_t begin, uint64_t *index,
				 uint64_t *value, uint32_t index_size, uint32_t size, int rows,
				 uint32_t threads)
{
	CUA__UNROLL
	for (uint32_t k = 0; k < CUA__SCATTER_READS; k++) {
		const uint64_t i = begin + k * threads + cua_port_thread();

		index[k] = 0;
		value[k] = 0;
		if (i < j->s.n) {
			index[k] = index_size == 4
					   ? (uint64_t)CUA_READ(((const cua__raw32 *)j->s.index)[i])
					   : CUA_READ(((const cua__raw64 *)j->s.index)[i]);
			/* most sectors of x have an element of the pass */
			if (!rows)
				value[k] = cua__scatter_element(j, i, size);
		}
	}
}

/* Sets the shared cells of a pass to 0. */
CUA_FORCE void cua__scatter_clear_shared(const struct cua__scatter_job *j,
					 const struct cua__scatter_pass *p)
{
	const uint64_t words =
		(uint64_t)(CUA_READ(j->shares[p->end]) - CUA_READ(j->shares[p->first])) *
		(j->cells / j->copies) * j->digits;
	const uint64_t step = (uint64_t)cua_port_grid_size() * cua_port_block_size();
	uint64_t i = (uint64_t)cua_port_block() * cua_port_block_size() + cua_port_thread();

	for (; i < words; i += step)
		CUA_WRITE(j->shared[i], (uint64_t)0);
}

/*
 * threads, index_size, value_size and rows are constants, and size if it is 4 or 8; j->tile is between threads *
 * CUA__SCATTER_READS and threads * CUA__SCATTER_SORTS.
 */
CUA_FORCE void cua__scatter_partition(const struct cua__scatter_job *j, uint32_t number,
				      const struct cua__scatter_stage *sh, uint32_t index_size,
				      uint32_t size, uint32_t value_size, int rows,
				      uint32_t threads)
{
	const uint32_t thread = cua_port_thread(), shift = j->span + j->subs;
	const uint32_t tile = threads * CUA__SCATTER_READS;
	struct cua__scatter_pass p;
	const uint64_t step = (uint64_t)cua_port_grid_size() * tile;
	uint64_t begin = (uint64_t)cua_port_block() * tile, first, count, left;
	uint64_t index[CUA__SCATTER_READS], value[CUA__SCATTER_READS];

	if (cua__scatter_is_done(j) || number >= CUA_READ(j->state->passes))
		return;
	p = CUA_READ(j->pass[number]);
	cua__scatter_clear_shared(j, &p);
	if (p.direct)
		return;
	first = (uint64_t)p.first << shift;
	count = (uint64_t)(p.end - p.first) << shift;
	left = first < j->limit ? j->limit - first : 0;
	if (count > left)
		count = left;
	if (thread == 0)
		CUA_WRITE(*sh->staged, 0u);
	cua_port_sync_block();
	cua__scatter_read(j, begin, index, value, index_size, size, rows, threads);
	for (; begin < j->s.n; begin += step) {
		uint32_t at[CUA__SCATTER_READS], mine = 0, total, to = 0;

		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__SCATTER_READS; k++) {
			const int is =
				begin + k * threads + thread < j->s.n && index[k] - first < count;

			at[k] = is ? (uint32_t)(index[k] - first) : CUA__SCATTER_NONE;
			mine += (uint32_t)is;
		}
		to = cua__warp_before(mine, &total);
		if (cua_port_lane() == 0 && total)
			total = cua_port_fetch_add_u32(sh->staged, total, CUA__SCATTER_IN_BLOCK);
		to += cua_port_shuffle_u32(CUA__ALL_LANES, total, 0);
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__SCATTER_READS; k++)
			if (at[k] != CUA__SCATTER_NONE) {
				CUA_WRITE(sh->key[to], at[k]);
				cua__scatter_set_value(
					sh->value, to,
					rows ? begin + k * threads + thread : value[k], value_size);
				to++;
			}
		/* these loads are on their way during the flush */
		cua__scatter_read(j, begin + step, index, value, index_size, size, rows, threads);
		cua_port_sync_block();
		/* the barriers of a flush separate this read from the next additions */
		if (CUA_READ(*sh->staged) > j->tile - tile)
			cua__scatter_flush(j, sh, &p, p.end - p.first, value_size, threads);
		else
			cua_port_sync_block();
	}
	if (CUA_READ(*sh->staged))
		cua__scatter_flush(j, sh, &p, p.end - p.first, value_size, threads);
}

#endif /* CUATOMIC_KERNELS_SCATTER_PARTITION_H */
