/* SPDX-License-Identifier: MIT */
/*
 * A scatter with its cells in global memory: for targets whose cells stay in the L2, where atomic
 * additions are fast. A kernel samples the elements, the next adds them, and the last stores the results.
 *
 * A sum of floats has two or three integers of 64 bits, the planes, in units that all blocks share.
 * Each element is split into integers below 2^b and added to the planes where it is not zero. b is so
 * small that n elements cannot overflow. Most elements of type f32 need the upper plane only. If an
 * element does not fit, the call has a misfit: nothing is stored, and the kernels of
 * scatter_kernel.h do the whole call.
 *
 * Frequent targets: a block adds to a cache of sums in shared memory, and at its end to the planes. A
 * target's slot is its number modulo the slots, and the first target of a slot keeps it. So a target
 * with a large share of the elements soon has its slot in each block.
 *
 * Argument: all additions are relaxed atomic additions of integers. A tag is written once, by a
 * compare-and-swap, and the sums of its slot are added to the same target by the thread that reads
 * the tag after a barrier. Kernel boundaries order sampling, adding and storing.
 *
 * Scope: the device. Progress: no thread waits for another block.
 */
#ifndef CUATOMIC_KERNELS_SCATTER_GLOBAL_H
#define CUATOMIC_KERNELS_SCATTER_GLOBAL_H

#include "kernels/scatter_results.h"

/* The slots of the cache, a power of two. */
#ifndef CUA__SCATTER_SLOTS
#define CUA__SCATTER_SLOTS 1024u
#endif
/* Elements that a thread loads at once. */
#define CUA__SCATTER_GLOBAL_LOADS 4u

struct cua__scatter_cache {
	uint32_t tag[CUA__SCATTER_SLOTS], low[CUA__SCATTER_SLOTS], high[CUA__SCATTER_SLOTS];
	uint32_t inside;
};

/* The scales of the planes. */
struct cua__scatter_planes {
	double scale[3]; /* 2^-k for the unit 2^k of each plane, the lowest first */
	double unit[3];
	int at; /* of the lowest plane */
};

CUA_FORCE struct cua__scatter_planes cua__scatter_planes(const struct cua__scatter_job *j)
{
	const uint32_t top = CUA_READ(j->state->top);
	int k = (top ? (int)top - CUA__EXACT_POINT : 0) + 1 + CUA__SCATTER_ROOM -
		(int)j->plane_bits;
	struct cua__scatter_planes s;

	k = k > 960 ? 960 : k < -900 ? -900 : k;
	for (int p = (int)j->planes - 1; p >= 0; p--) {
		s.unit[p] = cua__scatter_power(k);
		s.scale[p] = cua__scatter_power(-k);
		s.at = k + CUA__EXACT_POINT;
		k -= (int)j->low_bits;
	}
	return s;
}

/* Finds the leading bit of the greatest of some elements; a single block. */
CUA_FORCE void cua__scatter_find_top(const struct cua__scatter_job *j, uint32_t *top,
				     enum cua_type type)
{
	const uint64_t elements = j->s.n * j->s.width;
	const uint64_t i = elements / cua_port_block_size() * cua_port_thread();

	if (cua_port_thread() == 0)
		CUA_WRITE(*top, 0u);
	cua_port_sync_block();
	if (i < elements) {
		const struct cua__exact_parts p =
			cua__scatter_parts(type, cua__scatter_element(j, i, j->size));

		if (!p.flags && p.mantissa)
			cua_port_max_u32(top, (uint32_t)(p.at + cua__fraction_bits(type)),
					 CUA__SCATTER_IN_BLOCK);
	}
	cua_port_sync_block();
	if (cua_port_thread() == 0)
		CUA_WRITE(j->state->top, CUA_READ(*top));
}

/* Adds to a plane; the upper plane has a cache. */
CUA_FORCE void cua__scatter_add_plane(const struct cua__scatter_job *j,
				      struct cua__scatter_cache *cache, uint32_t plane,
				      uint64_t target, int64_t v)
{
	if (plane == j->planes - 1) {
		const uint32_t slot = (uint32_t)target & (CUA__SCATTER_SLOTS - 1);
		uint32_t tag = cua_port_load_b32(&cache->tag[slot], CUA__SCATTER_IN_BLOCK);

		if (tag == CUA__SCATTER_NONE) {
			tag = cua_port_cas_b32(&cache->tag[slot], CUA__SCATTER_NONE,
					       (uint32_t)target, CUA__SCATTER_IN_BLOCK);
			if (tag == CUA__SCATTER_NONE)
				tag = (uint32_t)target;
		}
		if (tag == (uint32_t)target) {
			cua__scatter_add64(&cache->low[slot], &cache->high[slot], v);
			return;
		}
	}
	cua_port_add_u64(&j->plane[plane * j->s.targets * j->s.width + target], (uint64_t)v,
			 CUA__SCATTER_ON_DEVICE);
}

/* type (of floats), cell and planes are constants. */
CUA_FORCE void cua__scatter_add_global(const struct cua__scatter_job *j,
				       struct cua__scatter_cache *cache,
				       const struct cua__scatter_planes *s, uint64_t target,
				       uint64_t bits, enum cua_type type,
				       enum cua__scatter_cell cell)
{
	const int planes = cell == CUA__CELL_WINDOWS ? 3 : 2;
	int64_t v[3] = {0, 0, 0};
	double rest;
	int fits = 1;

	if (cell == CUA__CELL_ADD32 || cell == CUA__CELL_ADD64) {
		cua__scatter_add_plane(j, cache, 0, target,
				       (int64_t)cua__scatter_integer(type, bits));
		return;
	}
	if (!cua__scatter_is_float(cell)) {
		const uint64_t key =
			cua__scatter_key(j->s.op, j->s.result_type,
					 cua__scatter_widen(type, j->s.result_type, bits));

		/* most keys of a frequent target are not greater */
		if (key > cua_port_load_b64(&j->plane[target], CUA__SCATTER_ON_DEVICE))
			cua_port_max_u64(&j->plane[target], key, CUA__SCATTER_ON_DEVICE);
		return;
	}
	rest = cua__scatter_f64(type, bits);
	CUA__UNROLL
	for (int p = planes - 1; p >= 0; p--) {
		const int64_t limit = (int64_t)1 << (p == planes - 1 ? j->plane_bits : j->low_bits);
		const double t = cua_port_fma_rn_f64(rest, s->scale[p], CUA__SCATTER_MAGIC);

		v[p] = cua__scatter_magic_integer(cua__bits_f64(t));
		fits &= cua__scatter_is_magic(cua__bits_f64(t)) && v[p] < limit && v[p] > -limit;
		/* exact, as in cua__scatter_add_float */
		rest = cua_port_fma_rn_f64(-cua_port_sub_rn_f64(t, CUA__SCATTER_MAGIC), s->unit[p],
					   rest);
	}
	if (!fits || rest != 0.0) {
		cua_port_store_b32(&j->state->misfit, 1, CUA__SCATTER_ON_DEVICE);
		return;
	}
	CUA__UNROLL
	for (int p = planes - 1; p >= 0; p--)
		if (v[p])
			cua__scatter_add_plane(j, cache, (uint32_t)p, target, v[p]);
}

/* Adds all elements to the planes; size and type of floats, cell and rows are constants. */
CUA_FORCE void cua__scatter_global(const struct cua__scatter_job *j,
				   struct cua__scatter_cache *cache, uint32_t size, int rows,
				   enum cua_type type, enum cua__scatter_cell cell)
{
	const uint32_t threads = cua_port_block_size(), thread = cua_port_thread();
	const uint64_t elements = j->s.n * j->s.width;
	const uint64_t step = (uint64_t)cua_port_grid_size() * threads;
	struct cua__scatter_planes s = {{0, 0, 0}, {0, 0, 0}, 0};
	uint32_t inside = 0;

	if (cua__scatter_is_float(cell))
		s = cua__scatter_planes(j);
	for (uint32_t i = thread; i < CUA__SCATTER_SLOTS; i += threads) {
		CUA_WRITE(cache->tag[i], CUA__SCATTER_NONE);
		CUA_WRITE(cache->low[i], 0u);
		CUA_WRITE(cache->high[i], 0u);
	}
	if (thread == 0)
		CUA_WRITE(cache->inside, 0u);
	cua_port_sync_block();
	for (uint64_t e = (uint64_t)cua_port_block() * threads + thread; e < elements;
	     e += CUA__SCATTER_GLOBAL_LOADS * step) {
		uint64_t at[CUA__SCATTER_GLOBAL_LOADS], bits[CUA__SCATTER_GLOBAL_LOADS];
		uint32_t column[CUA__SCATTER_GLOBAL_LOADS];

		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__SCATTER_GLOBAL_LOADS; k++) {
			const uint64_t i = e + k * step;
			const uint64_t row = rows ? i / j->s.width : i;

			at[k] = ~(uint64_t)0;
			bits[k] = 0;
			column[k] = rows ? (uint32_t)(i - row * j->s.width) : 0;
			if (i < elements) {
				at[k] = cua__scatter_index(j, row);
				bits[k] = cua__scatter_element(j, i, size);
			}
		}
		CUA__UNROLL
		for (uint32_t k = 0; k < CUA__SCATTER_GLOBAL_LOADS; k++)
			if (at[k] < j->limit) {
				inside += column[k] == 0;
				cua__scatter_add_global(
					j, cache, &s, rows ? at[k] * j->s.width + column[k] : at[k],
					bits[k], type, cell);
			}
	}
	if (inside)
		cua_port_add_u32(&cache->inside, inside, CUA__SCATTER_IN_BLOCK);
	cua_port_sync_block();
	for (uint32_t i = thread; i < CUA__SCATTER_SLOTS; i += threads) {
		const uint32_t tag = CUA_READ(cache->tag[i]);
		const uint64_t v = CUA_READ(cache->low[i]) | (uint64_t)CUA_READ(cache->high[i])
								     << 32;

		if (tag != CUA__SCATTER_NONE && v)
			cua_port_add_u64(
				&j->plane[(j->planes - 1) * j->s.targets * j->s.width + tag], v,
				CUA__SCATTER_ON_DEVICE);
	}
	if (thread == 0)
		cua_port_add_u64(&j->state->inside_planes, CUA_READ(cache->inside),
				 CUA__SCATTER_ON_DEVICE);
}

/* Stores the results, unless there was a misfit; type (of floats) and cell are constants. */
CUA_FORCE void cua__scatter_store_global(const struct cua__scatter_job *j,
					 enum cua__scatter_cell cell)
{
	const uint64_t elements = j->s.targets * j->s.width;
	const uint64_t step = (uint64_t)cua_port_grid_size() * cua_port_block_size();
	const uint32_t first = cua_port_block() == 0 && cua_port_thread() == 0;
	struct cua__scatter_planes s = {{0, 0, 0}, {0, 0, 0}, 0};
	uint64_t i = (uint64_t)cua_port_block() * cua_port_block_size() + cua_port_thread();

	if (CUA_READ(j->state->misfit))
		return;
	if (first && j->s.skipped)
		CUA_WRITE(*j->s.skipped, j->s.n - CUA_READ(j->state->inside_planes));
	if (cua__scatter_is_float(cell))
		s = cua__scatter_planes(j);
	for (; i < elements; i += step) {
		const uint64_t old = cua__scatter_old(j, i);
		struct cua__scatter_wide w = {0, 0, s.at};

		if (!cua__scatter_is_float(cell)) {
			cua__scatter_put_word(j, i, CUA_READ(j->plane[i]), old, cell);
			continue;
		}
		for (uint32_t p = j->planes; p-- > 0;) {
			const uint64_t v = CUA_READ(j->plane[p * elements + i]);
			const cua__uint128 sign = 0 - (cua__uint128)(v >> 63);

			w.magnitude = (w.magnitude << j->low_bits) + ((sign << 64) | v);
		}
		w.negative = (uint32_t)(w.magnitude >> 127);
		if (w.negative)
			w.magnitude = 0 - w.magnitude;
		cua__scatter_put_wide(j, i, w, old);
	}
}

#endif /* CUATOMIC_KERNELS_SCATTER_GLOBAL_H */
