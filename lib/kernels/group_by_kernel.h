/* SPDX-License-Identifier: MIT */
/*
 * The items of the steps of calls by key (lib/backend/group_by_backend.h). Both backends run them.
 *
 * The table: an open-addressing table with linear probing, of row numbers. The key of a slot is the
 * key of the row that the slot names. `slots` is greater than n, so a probe sequence has an empty
 * slot.
 *
 * Scope: the device. Memory order: relaxed. The steps are ordered by the stream, or by the end of
 * the CPU's parallel loop.
 *
 * Progress: CLAIM is lock-free. A failed compare-and-swap means that another row has claimed the
 * slot, and no slot is claimed twice. No step waits for another thread.
 *
 * Correctness of CLAIM:
 * - A slot changes from EMPTY to a row by compare-and-swap, and then only to lower rows of the same
 *   key, by an atomic minimum. So its key never changes, and a comparison with any value that the
 *   slot had is right. The keys are constant during the call, so no data are published.
 * - Rows with the same key probe the same sequence. A row passes a slot only if it has read a row
 *   of another key there. So no row of this key passes a slot that has its key, and all rows of a
 *   key end at the same slot: the first in the sequence that no other key has claimed.
 * - Each row of the slot's key stores the minimum of itself and the slot, or has read a lower row.
 *   So the slot ends with the lowest row of its key, for any order of the operations.
 *
 * A lookup after CLAIM (cua__group_find) probes the sequence of its key up to the slot of the key or
 * an empty slot. A row of the key would have claimed that empty slot, so the table lacks the key.
 *
 * ASSIGN and NUMBER: the slot of a stored group has the group's number, below `room`. The slot of
 * another group keeps its first row. `room` groups have lower first rows, all different. So this
 * row is at least `room`: out of range for a scatter with at most `room` targets.
 */
#ifndef CUATOMIC_KERNELS_GROUP_BY_KERNEL_H
#define CUATOMIC_KERNELS_GROUP_BY_KERNEL_H

#include "backend/group_by_backend.h"
#include "kernels/scatter_values.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUA__GROUP_AT CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL

/* An empty slot, a null row, or no row: greater than every row number. */
#define CUA__GROUP_NONE UINT64_MAX

/* ---- arrays of numbers; `wide` is a constant ---- */

CUA_FORCE uint64_t cua__number_get(const void *array, uint64_t i, int wide)
{
	uint32_t narrow;

	if (wide)
		return CUA_READ(((const uint64_t *)array)[i]);
	narrow = CUA_READ(((const uint32_t *)array)[i]);
	return narrow == UINT32_MAX ? CUA__GROUP_NONE : narrow;
}

CUA_FORCE void cua__number_set(void *array, uint64_t i, uint64_t v, int wide)
{
	if (wide)
		CUA_WRITE(((uint64_t *)array)[i], v);
	else
		CUA_WRITE(((uint32_t *)array)[i], (uint32_t)v);
}

CUA_FORCE uint64_t cua__number_load(const void *array, uint64_t i, int wide)
{
	uint32_t narrow;

	if (wide)
		return cua_port_load_b64((const uint64_t *)array + i, CUA__GROUP_AT);
	narrow = cua_port_load_b32((const uint32_t *)array + i, CUA__GROUP_AT);
	return narrow == UINT32_MAX ? CUA__GROUP_NONE : narrow;
}

/* Claims an empty slot. Returns NONE, or the row that the slot has. */
CUA_FORCE uint64_t cua__number_claim(void *array, uint64_t i, uint64_t row, int wide)
{
	uint32_t narrow;

	if (wide)
		return cua_port_cas_b64((uint64_t *)array + i, CUA__GROUP_NONE, row, CUA__GROUP_AT);
	narrow = cua_port_cas_b32((uint32_t *)array + i, UINT32_MAX, (uint32_t)row, CUA__GROUP_AT);
	return narrow == UINT32_MAX ? CUA__GROUP_NONE : narrow;
}

CUA_FORCE void cua__number_min(void *array, uint64_t i, uint64_t row, int wide)
{
	if (wide)
		cua_port_min_u64((uint64_t *)array + i, row, CUA__GROUP_AT);
	else
		cua_port_min_u32((uint32_t *)array + i, (uint32_t)row, CUA__GROUP_AT);
}

/* ---- elements ---- */

/* Copies element `from` to element `to`. */
CUA_FORCE void cua__group_copy(uint32_t size, void *dst, uint64_t to, const void *src,
			       uint64_t from)
{
	switch (size) {
	case 1: CUA_WRITE(((uint8_t *)dst)[to], CUA_READ(((const uint8_t *)src)[from])); break;
	case 2:
		CUA_WRITE(((cua__raw16 *)dst)[to], CUA_READ(((const cua__raw16 *)src)[from]));
		break;
	case 4:
		CUA_WRITE(((cua__raw32 *)dst)[to], CUA_READ(((const cua__raw32 *)src)[from]));
		break;
	default:
		for (uint32_t k = 0; k < size / 8; k++)
			CUA_WRITE(((cua__raw64 *)dst)[to * (size / 8) + k],
				  CUA_READ(((const cua__raw64 *)src)[from * (size / 8) + k]));
	}
}

/* ---- keys ---- */

/* The bits that stand for a float: equal for both zeros, and for all NaN. */
CUA_FORCE uint64_t cua__group_same_key(enum cua_type type, uint64_t bits)
{
	const uint64_t top = (uint64_t)1 << (8 * cua__element_size(type) - 1);
	const uint64_t infinity = top - ((uint64_t)1 << cua__fraction_bits(type));

	if ((bits & (top - 1)) > infinity)
		return cua__scatter_nan(type);
	return bits == top ? 0 : bits;
}

/* The bits of a key in an array of the type of d->keys. Equal keys have equal bits. */
CUA_FORCE struct cua_u128 cua__group_key_in(const struct cua__distinct *d, const void *keys,
					    uint64_t row)
{
	struct cua_u128 key;

	key.hi = 0;
	if (d->key_size == 16) {
		key.lo = CUA_READ(((const struct cua_u128 *)keys)[row].lo);
		key.hi = CUA_READ(((const struct cua_u128 *)keys)[row].hi);
		return key;
	}
	key.lo = d->key_size == 8 ? (uint64_t)CUA_READ(((const cua__raw64 *)keys)[row])
				  : (uint64_t)CUA_READ(((const cua__raw32 *)keys)[row]);
	if (cua__is_float(d->key_type))
		key.lo = cua__group_same_key(d->key_type, key.lo);
	return key;
}

CUA_FORCE struct cua_u128 cua__group_key(const struct cua__distinct *d, uint64_t row)
{
	return cua__group_key_in(d, d->keys, row);
}

CUA_FORCE uint64_t cua__group_hash(const struct cua__distinct *d, struct cua_u128 key)
{
	return d->key_size == 16 ? cua_hash_u128(key, d->seed) : cua_hash_u64(key.lo, d->seed);
}

/* The slot at which the probe sequence of a key begins. */
CUA_FORCE uint64_t cua__group_home(const struct cua__distinct *d, struct cua_u128 key)
{
	return cua_hash_to_index(cua__group_hash(d, key), d->slots);
}

/* ---- the groups of rows ---- */

/* Finds or claims the slot of a row's key, from slot `at` on. */
CUA_FORCE void cua__group_claim(const struct cua__distinct *d, uint64_t row, struct cua_u128 key,
				uint64_t at, int wide)
{
	for (;; at = at + 1 < d->slots ? at + 1 : 0) {
		uint64_t named = cua__number_load(d->table, at, wide);
		struct cua_u128 other;

		if (named == CUA__GROUP_NONE) {
			named = cua__number_claim(d->table, at, row, wide);
			if (named == CUA__GROUP_NONE)
				break;
		}
		other = cua__group_key(d, named);
		if (other.lo != key.lo || other.hi != key.hi)
			continue;
		if (row < named)
			cua__number_min(d->table, at, row, wide);
		break;
	}
	if (d->number)
		cua__number_set(d->number, row, at, wide);
}

/* The slot of a key after CLAIM, from slot `at` on; NONE if the table lacks the key. */
CUA_FORCE uint64_t cua__group_find(const struct cua__distinct *d, struct cua_u128 key, uint64_t at,
				   int wide)
{
	for (;; at = at + 1 < d->slots ? at + 1 : 0) {
		const uint64_t named = cua__number_get(d->table, at, wide);
		struct cua_u128 other;

		if (named == CUA__GROUP_NONE)
			return CUA__GROUP_NONE;
		other = cua__group_key(d, named);
		if (other.lo == key.lo && other.hi == key.hi)
			return at;
	}
}

/* The number of stored groups. */
CUA_FORCE uint64_t cua__group_stored(const struct cua__distinct *d)
{
	const uint64_t count = CUA_READ(*d->count);

	return count < d->room ? count : d->room;
}

/* Group g of the output. */
CUA_FORCE void cua__group_assign(const struct cua__distinct *d, uint64_t g, int wide)
{
	const uint64_t from = d->sorted ? cua__number_get(d->order[0], g, wide) : g;
	const uint64_t row = cua__number_get(d->occurred, from, wide);

	if (d->sorted)
		cua__number_set(d->first, g, row, wide);
	cua__number_set(d->table, cua__number_get(d->number, row, wide), g, wide);
}

/* ---- the sort of the groups ---- */

/* A key as an unsigned number in the same order. Of a key of 4 bytes the upper bits are undefined. */
CUA_FORCE struct cua_u128 cua__group_ordered(const struct cua__distinct *d, struct cua_u128 key)
{
	const uint64_t top = (uint64_t)1 << (8 * (d->key_size == 8 ? 8 : 4) - 1);

	if (cua__is_float(d->key_type))
		key.lo = key.lo & top ? ~key.lo : key.lo | top;
	else if (cua__is_signed(d->key_type))
		key.lo ^= top;
	return key;
}

/* A group before the sort: its number, and its key as an unsigned number in the same order. */
CUA_FORCE void cua__group_order(const struct cua__distinct *d, uint64_t g, int wide)
{
	const struct cua_u128 key =
		cua__group_ordered(d, cua__group_key(d, cua__number_get(d->occurred, g, wide)));

	cua__number_set(d->order[0], g, g, wide);
	if (d->key_size == 4) {
		CUA_WRITE(((uint32_t *)d->ordered[0])[g], (uint32_t)key.lo);
	} else if (d->key_size == 8) {
		CUA_WRITE(((uint64_t *)d->ordered[0])[g], key.lo);
	} else {
		CUA_WRITE(((uint64_t *)d->ordered[0])[2 * g], key.lo);
		CUA_WRITE(((uint64_t *)d->ordered[0])[2 * g + 1], key.hi);
	}
}

/* Moves a group from position `from` to position `to` after the pass. */
CUA_FORCE void cua__group_move(const struct cua__distinct *d, uint64_t to, uint64_t from, int wide)
{
	cua__number_set(d->order[1], to, cua__number_get(d->order[0], from, wide), wide);
	cua__group_copy(d->key_size, d->ordered[1], to, d->ordered[0], from);
}

/* The sum of v over this lane and the lanes below. */
CUA_FORCE uint64_t cua__group_warp_scan(uint64_t v)
{
	const uint32_t lane = cua_port_lane();

	for (uint32_t by = 1; by < CUA_WARP_LANES; by *= 2) {
		uint64_t below = cua_port_shuffle_u64(CUA__ALL_LANES, v, (lane - by) % 32);

		v += lane >= by ? below : 0;
	}
	return v;
}

/* The groups, or rows, of a part. */
CUA_FORCE void cua__group_part(const struct cua__distinct *d, uint64_t part, uint64_t *begin,
			       uint64_t *end)
{
	const uint64_t n = d->sorts_rows ? d->n : cua__group_stored(d);
	const uint64_t each = n / d->parts, more = n % d->parts;

	*begin = each * part + (part < more ? part : more);
	*end = *begin + each + (part < more);
}

/*
 * The digit of the group at position i of the order, if that is below `end`. *same becomes the
 * lanes with the same digit.
 */
CUA_FORCE uint32_t cua__group_digit(const struct cua__distinct *d, uint64_t i, uint64_t end,
				    uint32_t *same)
{
	const int inside = i < end;
	uint64_t word = 0;
	uint32_t digit;

	if (inside && d->key_size == 4)
		word = CUA_READ(((const uint32_t *)d->ordered[0])[i]);
	else if (inside)
		word = CUA_READ(
			((const uint64_t *)d->ordered[0])[i * (d->key_size / 8) + d->digit / 8]);
	digit = (uint32_t)(word >> 8 * (d->digit % 8)) & 255;
	*same = cua_port_match_any_u32(CUA__ALL_LANES, digit) &
		cua_port_ballot(CUA__ALL_LANES, inside);
	return digit;
}

/* A warp counts the digits of a part. `counter` is memory of this warp. */
CUA_FORCE void cua__group_sort_count(const struct cua__distinct *d, uint64_t part,
				     uint64_t *counter)
{
	const uint32_t lane = cua_port_lane();
	uint64_t begin, end;
	uint32_t same;

	cua__group_part(d, part, &begin, &end);
	for (uint32_t v = lane; v < CUA__GROUP_DIGITS; v += CUA_WARP_LANES)
		CUA_WRITE(counter[v], 0);
	cua_port_sync_warp(CUA__ALL_LANES);
	for (uint64_t i = begin; i < end; i += CUA_WARP_LANES) {
		const uint32_t digit = cua__group_digit(d, i + lane, end, &same);

		if (i + lane < end && cua_port_ffs_u32(same) - 1 == lane)
			CUA_WRITE(counter[digit],
				  CUA_READ(counter[digit]) + cua_port_popc_u32(same));
		cua_port_sync_warp(CUA__ALL_LANES);
	}
	for (uint32_t v = lane; v < CUA__GROUP_DIGITS; v += CUA_WARP_LANES)
		CUA_WRITE(d->digits[(uint64_t)v * d->parts + part], CUA_READ(counter[v]));
}

/* A warp replaces the counts of a digit by the sums of the counts of lower parts. */
CUA_FORCE void cua__group_sort_sum(const struct cua__distinct *d, uint64_t digit)
{
	const uint32_t lane = cua_port_lane();
	uint64_t *counts = d->digits + digit * d->parts, before = 0;

	for (uint64_t i = 0; i < d->parts; i += CUA_WARP_LANES) {
		const int inside = i + lane < d->parts;
		const uint64_t count = inside ? CUA_READ(counts[i + lane]) : 0;
		const uint64_t sum = cua__group_warp_scan(count);

		if (inside)
			CUA_WRITE(counts[i + lane], before + sum - count);
		before += cua_port_shuffle_u64(CUA__ALL_LANES, sum, CUA_WARP_LANES - 1);
	}
	if (lane == 0)
		CUA_WRITE(d->digit_totals[digit], before);
}

/* A warp moves the groups of a part to order[1]. `counter` is memory of this warp. */
CUA_FORCE void cua__group_sort_move(const struct cua__distinct *d, uint64_t part, uint64_t *counter,
				    int wide)
{
	const uint32_t lane = cua_port_lane();
	uint64_t begin, end, before = 0;
	uint32_t same;

	cua__group_part(d, part, &begin, &end);
	for (uint32_t v = 0; v < CUA__GROUP_DIGITS; v += CUA_WARP_LANES) {
		const uint64_t total = CUA_READ(d->digit_totals[v + lane]);
		const uint64_t sum = cua__group_warp_scan(total);

		CUA_WRITE(counter[v + lane],
			  before + sum - total +
				  CUA_READ(d->digits[(uint64_t)(v + lane) * d->parts + part]));
		before += cua_port_shuffle_u64(CUA__ALL_LANES, sum, CUA_WARP_LANES - 1);
	}
	cua_port_sync_warp(CUA__ALL_LANES);
	for (uint64_t i = begin; i < end; i += CUA_WARP_LANES) {
		const uint32_t digit = cua__group_digit(d, i + lane, end, &same);
		const uint64_t at =
			CUA_READ(counter[digit]) + cua_port_popc_u32(cua__warp_below(same));

		/* all lanes have read the counters */
		cua_port_sync_warp(CUA__ALL_LANES);
		if (i + lane < end) {
			cua__group_move(d, at, i + lane, wide);
			if (cua_port_ffs_u32(same) - 1 == lane)
				CUA_WRITE(counter[digit], at + cua_port_popc_u32(same));
		}
		cua_port_sync_warp(CUA__ALL_LANES);
	}
}

/* ---- values ---- */

CUA_FORCE int cua__group_is_valid(const struct cua__group_job *j, uint64_t row)
{
	if (!j->valid)
		return 1;
	return j->valid_bits ? CUA_READ(j->valid[row >> 3]) >> (row & 7) & 1
			     : CUA_READ(j->valid[row]) != 0;
}

CUA_FORCE void cua__group_zero(uint32_t size, void *dst, uint64_t to)
{
	for (uint32_t k = 0; k < size; k++)
		CUA_WRITE(((uint8_t *)dst)[to * size + k], 0);
}

/* The lowest or highest valid row of a group. `rows` begins with NONE, or 0 for the highest. */
CUA_FORCE void cua__group_row(const struct cua__group_job *j, uint64_t row, int greatest, int wide)
{
	const uint64_t g = cua__number_get(j->d.number, row, wide);

	if (g >= j->targets || !cua__group_is_valid(j, row))
		return;
	if (!greatest) {
		if (row < cua__number_load(j->rows, g, wide))
			cua__number_min(j->rows, g, row, wide);
	} else if (row + 1 > cua__number_load(j->rows, g, wide)) {
		if (wide)
			cua_port_max_u64((uint64_t *)j->rows + g, row + 1, CUA__GROUP_AT);
		else
			cua_port_max_u32((uint32_t *)j->rows + g, (uint32_t)row + 1, CUA__GROUP_AT);
	}
}

/* The value of a group's row. Rows counted from 1 have 0 for no row, and 0 - 1 is NONE. */
CUA_FORCE void cua__group_gather(const struct cua__group_job *j, uint64_t g, int wide)
{
	const uint64_t row = cua__number_get(j->rows, g, wide) - (uint64_t)j->from_1;

	if (row == CUA__GROUP_NONE)
		cua__group_zero(j->size, j->out, g);
	else
		cua__group_copy(j->size, j->out, g, j->values, row);
}

/* ---- the variance ---- */

/* A value as f64. Only integers of 64 bits are rounded. A signaling NaN may stay so. */
CUA_FORCE double cua__group_f64(enum cua_type type, uint64_t bits)
{
	if (type == CUA_F64)
		return cua__from_bits_f64(bits);
	if (cua__is_float(type))
		return cua_port_cvt_f64_f32(cua__element_f32(type, bits));
	bits = cua__scatter_integer(type, bits);
	return cua__is_signed(type) ? (double)(int64_t)bits : (double)bits;
}

CUA_FORCE void cua__group_subtract(const struct cua__group_job *j, uint64_t row, int wide)
{
	const uint64_t g = cua__number_get(j->index, row, wide);
	const double x = cua__group_f64(j->type, cua__element_load(j->size, j->values, row));

	if (g < j->targets)
		CUA_WRITE(j->x[row], cua_port_sub_rn_f64(x, CUA_READ(j->pivot[g])));
}

CUA_FORCE void cua__group_refine(const struct cua__group_job *j, uint64_t g)
{
	const double count = cua__scatter_f64_of(CUA_U64, CUA_READ(j->valid_count[g]));
	const double more = cua_port_div_rn_f64(CUA_READ(j->sum[g]), count);

	CUA_WRITE(j->pivot[g], cua_port_add_rn_f64(CUA_READ(j->pivot[g]), more));
}

CUA_FORCE void cua__group_variance(const struct cua__group_job *j, uint64_t g)
{
	const uint64_t valid = CUA_READ(j->valid_count[g]);
	const double count = cua__scatter_f64_of(CUA_U64, valid), sum = CUA_READ(j->sum[g]);
	double v = cua__from_bits_f64(cua__scatter_nan(CUA_F64));

	if (valid > j->ddof) {
		v = cua_port_sub_rn_f64(CUA_READ(j->square[g]),
					cua_port_div_rn_f64(cua_port_mul_rn_f64(sum, sum), count));
		v = v < 0 ? 0 : v;
		v = cua_port_div_rn_f64(v, cua__scatter_f64_of(CUA_U64, valid - j->ddof));
		if (cua__is_nan_f64(v))
			v = cua__from_bits_f64(cua__scatter_nan(CUA_F64));
	}
	CUA_WRITE(((double *)j->out)[g], v);
}

/* ---- steps ---- */

/* A number in the type of the output; NONE is the type's greatest value. */
CUA_FORCE void cua__group_store_number(const struct cua__group_job *j, uint64_t i, uint64_t v)
{
	if (j->size == 8)
		CUA_WRITE(((uint64_t *)j->out)[i], v);
	else
		CUA_WRITE(((uint32_t *)j->out)[i], (uint32_t)v);
}

/* An item of a step that has rows or slots. */
CUA_FORCE void cua__group_row_step(enum cua__group_step step, const struct cua__group_job *j,
				   uint64_t i, int wide)
{
	const struct cua__distinct *d = &j->d;
	struct cua_u128 key;
	uint64_t v;
	double x;

	switch (step) {
	case CUA__GROUP_CLEAR: cua__number_set(d->table, i, CUA__GROUP_NONE, wide); break;
	case CUA__GROUP_CLAIM:
		key = cua__group_key(d, i);
		cua__group_claim(d, i, key, cua__group_home(d, key), wide);
		break;
	case CUA__GROUP_FLAG:
		v = cua__number_get(d->number, i, wide);
		CUA_WRITE(d->flags[i], cua__number_get(d->table, v, wide) == i);
		break;
	case CUA__GROUP_NUMBER:
		v = cua__number_get(d->number, i, wide);
		cua__number_set(d->number, i, cua__number_get(d->table, v, wide), wide);
		break;
	case CUA__GROUP_MASK:
		v = cua__number_get(d->number, i, wide);
		cua__number_set(j->masked, i, cua__group_is_valid(j, i) ? v : CUA__GROUP_NONE,
				wide);
		break;
	case CUA__GROUP_ONES: CUA_WRITE(j->ones[i], (uint8_t)cua__group_is_valid(j, i)); break;
	case CUA__GROUP_LEAST_ROW: cua__group_row(j, i, 0, wide); break;
	case CUA__GROUP_GREATEST_ROW:
		/* descending, so that few rows replace the greatest row so far */
		cua__group_row(j, d->n - 1 - i, 1, wide);
		break;
	case CUA__GROUP_CONVERT:
		CUA_WRITE(j->x[i],
			  cua__group_f64(j->type, cua__element_load(j->size, j->values, i)));
		break;
	case CUA__GROUP_SUBTRACT: cua__group_subtract(j, i, wide); break;
	case CUA__GROUP_SQUARE:
		x = CUA_READ(j->x[i]);
		CUA_WRITE(j->x[i], cua_port_mul_rn_f64(x, x));
		break;
	case CUA__GROUP_INVERSE:
		v = cua__number_get(d->number, i, wide);
		cua__group_store_number(j, i, v < d->room ? v : CUA__GROUP_NONE);
		break;
	default: break;
	}
}

/* An item of a step that has groups. */
CUA_FORCE void cua__group_group_step(enum cua__group_step step, const struct cua__group_job *j,
				     uint64_t g, int wide)
{
	const struct cua__distinct *d = &j->d;

	if (g >= cua__group_stored(d))
		return;
	switch (step) {
	case CUA__GROUP_ORDER: cua__group_order(d, g, wide); break;
	case CUA__GROUP_ASSIGN: cua__group_assign(d, g, wide); break;
	case CUA__GROUP_KEYS:
		cua__group_copy(d->key_size, j->out, g, d->keys,
				cua__number_get(d->first, g, wide));
		break;
	case CUA__GROUP_GATHER: cua__group_gather(j, g, wide); break;
	case CUA__GROUP_REFINE: cua__group_refine(j, g); break;
	case CUA__GROUP_VARIANCE: cua__group_variance(j, g); break;
	case CUA__GROUP_FIRST_ROWS:
		cua__group_store_number(j, g, cua__number_get(d->first, g, wide));
		break;
	default: break;
	}
}

/* Whether the items of a step are rows or slots, or are for a warp each; if neither, groups. */
CUA_FORCE int cua__group_has_rows(enum cua__group_step step)
{
	return step == CUA__GROUP_CLEAR || step == CUA__GROUP_CLAIM || step == CUA__GROUP_FLAG ||
	       step == CUA__GROUP_NUMBER || step == CUA__GROUP_MASK || step == CUA__GROUP_ONES ||
	       step == CUA__GROUP_LEAST_ROW || step == CUA__GROUP_GREATEST_ROW ||
	       step == CUA__GROUP_CONVERT || step == CUA__GROUP_SUBTRACT ||
	       step == CUA__GROUP_SQUARE || step == CUA__GROUP_INVERSE;
}

CUA_FORCE int cua__group_has_warps(enum cua__group_step step)
{
	return step == CUA__GROUP_SORT_COUNT || step == CUA__GROUP_SORT_SUM ||
	       step == CUA__GROUP_SORT_MOVE;
}

/* An item of any step. `counter` is for the steps whose items are for a warp each. */
CUA_FORCE void cua__group_item(enum cua__group_step step, const struct cua__group_job *j,
			       uint64_t i, uint64_t *counter, int wide)
{
	if (step == CUA__GROUP_SORT_COUNT)
		cua__group_sort_count(&j->d, i, counter);
	else if (step == CUA__GROUP_SORT_SUM)
		cua__group_sort_sum(&j->d, i);
	else if (step == CUA__GROUP_SORT_MOVE)
		cua__group_sort_move(&j->d, i, counter, wide);
	else if (cua__group_has_rows(step))
		cua__group_row_step(step, j, i, wide);
	else
		cua__group_group_step(step, j, i, wide);
}

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_KERNELS_GROUP_BY_KERNEL_H */
