/* SPDX-License-Identifier: MIT */
/*
 * The items of the steps of joins (lib/backend/join_backend.h). Both backends run them.
 *
 * The table and its lookup are those of group_by_kernel.h. The slot of a key is its number: the sort
 * of cua__distinct_sort orders the right rows by slot, and keeps the order of rows with one slot. So
 * the list of a key is a contiguous range of the sorted rows, in ascending order.
 *
 * Offsets: each part adds the numbers of pairs of its left rows (SUM), a single warp adds the parts
 * (SCAN), and each part stores its sums (OFFSET). The steps are separate, so no warp waits for
 * another. Additions stop at 2^64 - 1. They remain associative, and offsets below this limit are
 * exact. The outputs have no room for a pair with a greater offset.
 *
 * WRITE: pair p belongs to the last left row with an offset of at most p. Equal offsets belong to
 * rows without pairs, except the last of them. A lane finds the row of its first pair by bisection.
 * From pair to pair it doubles its step until it has passed the row. So the number of pairs of a
 * row does not matter, and each pair is written by a single lane.
 *
 * Scope: the device. Memory order: plain accesses. Every element is written by a single lane in a
 * step, and the steps are ordered by the stream, or by the end of the CPU's parallel loop.
 * Progress: no step waits for another thread.
 */
#ifndef CUATOMIC_KERNELS_JOIN_KERNEL_H
#define CUATOMIC_KERNELS_JOIN_KERNEL_H

#include "backend/join_backend.h"
#include "kernels/group_by_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lookups ---- */

CUA_FORCE void cua__join_find(const struct cua__join_job *j, uint64_t i, struct cua_u128 key,
			      uint64_t at, int wide)
{
	const int found = cua__group_find(&j->d, key, at, wide) != CUA__GROUP_NONE;

	CUA_WRITE(j->found[i], (uint8_t)(found != j->invert));
}

CUA_FORCE void cua__join_match(const struct cua__join_job *j, uint64_t row, struct cua_u128 key,
			       uint64_t at, int wide)
{
	const uint64_t slot = cua__group_find(&j->d, key, at, wide);
	uint64_t list = CUA__GROUP_NONE, pairs = (uint64_t)j->left;

	if (slot != CUA__GROUP_NONE) {
		list = cua__number_get(j->lists, 2 * slot, wide);
		pairs = cua__number_get(j->lists, 2 * slot + 1, wide) - list;
	}
	cua__number_set(j->list, row, list, wide);
	CUA_WRITE(j->offset[row], pairs);
}

/* ---- lists of right rows ---- */

/* The element at position i of the sorted rows may be an end of a list. */
CUA_FORCE void cua__join_lists(const struct cua__join_job *j, uint64_t i, int wide)
{
	const uint64_t slot = cua__number_get(j->slots, i, wide);

	if (i == 0 || cua__number_get(j->slots, i - 1, wide) != slot)
		cua__number_set(j->lists, 2 * slot, i, wide);
	if (i == j->d.n - 1 || cua__number_get(j->slots, i + 1, wide) != slot)
		cua__number_set(j->lists, 2 * slot + 1, i + 1, wide);
}

/* ---- offsets ---- */

CUA_FORCE uint64_t cua__join_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/*
 * The sum of v over the lanes below; *all becomes the sum over all lanes. All lanes of the warp call
 * it.
 */
CUA_FORCE uint64_t cua__join_warp_scan(uint64_t v, uint64_t *all)
{
	const uint32_t lane = cua_port_lane();
	uint64_t below;

	for (uint32_t by = 1; by < CUA_WARP_LANES; by *= 2) {
		below = cua_port_shuffle_u64(CUA__ALL_LANES, v, (lane - by) % CUA_WARP_LANES);
		v = lane >= by ? cua__join_add(v, below) : v;
	}
	*all = cua_port_shuffle_u64(CUA__ALL_LANES, v, CUA_WARP_LANES - 1);
	below = cua_port_shuffle_u64(CUA__ALL_LANES, v, (lane - 1) % CUA_WARP_LANES);
	return lane ? below : 0;
}

/* The left rows of a part. */
CUA_FORCE void cua__join_part(const struct cua__join_job *j, uint64_t part, uint64_t *begin,
			      uint64_t *end)
{
	const uint64_t each = j->n / j->parts, more = j->n % j->parts;

	*begin = each * part + (part < more ? part : more);
	*end = *begin + each + (part < more);
}

/* A warp adds the numbers of pairs of a part. */
CUA_FORCE void cua__join_sum(const struct cua__join_job *j, uint64_t part)
{
	uint64_t begin, end, sum = 0, all;

	cua__join_part(j, part, &begin, &end);
	for (uint64_t i = begin + cua_port_lane(); i < end; i += CUA_WARP_LANES)
		sum = cua__join_add(sum, CUA_READ(j->offset[i]));
	cua__join_warp_scan(sum, &all);
	if (cua_port_lane() == 0)
		CUA_WRITE(j->sums[part], all);
}

/* A warp adds the parts. Each lane has a contiguous range of them. */
CUA_FORCE void cua__join_scan(const struct cua__join_job *j)
{
	const uint64_t lane = cua_port_lane();
	const uint64_t begin = j->parts * lane / CUA_WARP_LANES;
	const uint64_t end = j->parts * (lane + 1) / CUA_WARP_LANES;
	uint64_t before, sum = 0, all;

	for (uint64_t i = begin; i < end; i++)
		sum = cua__join_add(sum, CUA_READ(j->sums[i]));
	before = cua__join_warp_scan(sum, &all);
	for (uint64_t i = begin; i < end; i++) {
		const uint64_t pairs = CUA_READ(j->sums[i]);

		CUA_WRITE(j->sums[i], before);
		before = cua__join_add(before, pairs);
	}
	if (lane == 0)
		CUA_WRITE(j->offset[j->n], all);
}

/* A warp replaces the numbers of pairs of a part by the sums of the numbers of lower rows. */
CUA_FORCE void cua__join_offset(const struct cua__join_job *j, uint64_t part)
{
	uint64_t before = CUA_READ(j->sums[part]), begin, end, all;

	cua__join_part(j, part, &begin, &end);
	for (uint64_t i = begin; i < end; i += CUA_WARP_LANES) {
		const uint64_t row = i + cua_port_lane();
		const uint64_t pairs = row < end ? CUA_READ(j->offset[row]) : 0;
		const uint64_t below = cua__join_warp_scan(pairs, &all);

		if (row < end)
			CUA_WRITE(j->offset[row], cua__join_add(before, below));
		before = cua__join_add(before, all);
	}
}

/* ---- pairs ---- */

/* The number of stored pairs. */
CUA_FORCE uint64_t cua__join_stored(const struct cua__join_job *j)
{
	const uint64_t pairs = CUA_READ(j->offset[j->n]);

	return pairs < j->room ? pairs : j->room;
}

/* The last row with an offset of at most p. Row `low` has such an offset, and row `high` has not. */
CUA_FORCE uint64_t cua__join_bisect(const struct cua__join_job *j, uint64_t p, uint64_t low,
				    uint64_t high)
{
	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;

		if (CUA_READ(j->offset[middle]) <= p)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The row of pair p, at or after the row of a lower pair. */
CUA_FORCE uint64_t cua__join_next(const struct cua__join_job *j, uint64_t p, uint64_t row)
{
	uint64_t step = 1, high = row + 1;

	while (high < j->n && CUA_READ(j->offset[high]) <= p) {
		row = high;
		high = j->n - row > step ? row + step : j->n;
		step *= 2;
	}
	return cua__join_bisect(j, p, row, high);
}

CUA_FORCE void cua__join_store(uint32_t size, void *out, uint64_t i, uint64_t v)
{
	if (!out)
		return;
	if (size == 8)
		CUA_WRITE(((uint64_t *)out)[i], v);
	else
		CUA_WRITE(((uint32_t *)out)[i], (uint32_t)v);
}

/* Lane `lane` of `lanes` writes its share of the pairs from `begin` to `end`. */
CUA_FORCE void cua__join_write(const struct cua__join_job *j, uint64_t begin, uint64_t end,
			       uint32_t lane, uint32_t lanes, int wide)
{
	uint64_t p = begin + lane, row, first, behind, list;

	if (p >= end)
		return;
	row = cua__join_bisect(j, p, 0, j->n);
	for (;;) {
		first = CUA_READ(j->offset[row]);
		behind = CUA_READ(j->offset[row + 1]);
		list = cua__number_get(j->list, row, wide);
		for (; p < end && p < behind; p += lanes) {
			uint64_t right = CUA__GROUP_NONE;

			if (list != CUA__GROUP_NONE)
				right = cua__number_get(j->rows, list + (p - first), wide);
			cua__join_store(j->out_size, j->out_left, p, row);
			cua__join_store(j->out_size, j->out_right, p, right);
		}
		if (p >= end)
			return;
		row = cua__join_next(j, p, row);
	}
}

/* ---- steps ---- */

/* Whether the items of a step are for a warp each. WRITE has its own functions. */
CUA_FORCE int cua__join_has_warps(enum cua__join_step step)
{
	return step == CUA__JOIN_SUM || step == CUA__JOIN_SCAN || step == CUA__JOIN_OFFSET;
}

/* An item of any step but WRITE. */
CUA_FORCE void cua__join_item(enum cua__join_step step, const struct cua__join_job *j, uint64_t i,
			      int wide)
{
	struct cua_u128 key;

	switch (step) {
	case CUA__JOIN_FIND:
		key = cua__group_key_in(&j->d, j->keys, i);
		cua__join_find(j, i, key, cua__group_home(&j->d, key), wide);
		break;
	case CUA__JOIN_ROWS: cua__number_set(j->rows, i, i, wide); break;
	case CUA__JOIN_LISTS: cua__join_lists(j, i, wide); break;
	case CUA__JOIN_MATCH:
		key = cua__group_key_in(&j->d, j->keys, i);
		cua__join_match(j, i, key, cua__group_home(&j->d, key), wide);
		break;
	case CUA__JOIN_SUM: cua__join_sum(j, i); break;
	case CUA__JOIN_SCAN: cua__join_scan(j); break;
	case CUA__JOIN_OFFSET: cua__join_offset(j, i); break;
	default: break;
	}
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_KERNELS_JOIN_KERNEL_H */
