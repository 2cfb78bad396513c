/* SPDX-License-Identifier: MIT */
/*
 * A table of sums by key in the shared memory of a block on a GPU. A sum is the combination of the
 * operands of a key by an enum cua_update: an associative and commutative operation.
 *
 * Source: open addressing with double hashing (Knuth, vol. 3, 6.4); keys are claimed by CAS.
 *
 * A free entry has the greatest key, with all bits set. The pair of that key itself has the last
 * entry, and *has_greatest says whether it is used. Free entries hold the operation's identity, so the thread
 * that claims an entry applies its operand as every thread does.
 *
 * Correctness: an entry's key changes once between two clears, from free to a key. All threads of
 * the block search the entries of a key in the same order, and end at a free entry or at the key.
 * So a key has at most 1 entry. Barriers separate the accesses to the table from a clear and from
 * the reads of sums, so relaxed atomic operations suffice between them.
 *
 * Progress: wait-free.
 */
#ifndef CUATOMIC_KERNELS_HASHMAP_SUMS_H
#define CUATOMIC_KERNELS_HASHMAP_SUMS_H

#include "kernels/hashmap_bulk.h"

#define CUA__SUMS_BLOCK CUA_SCOPE_BLOCK, CUA_SPACE_SHARED
/* With this many probes, random keys fill about 0.8 of the entries. */
#define CUA__SUMS_PROBES 32u
#define CUA__SUMS_NO_ROOM 0xffffffffu

/* Keys and values have ks and vs bytes: 4 or 8. */
struct cua__sums {
	void *keys; /* room keys */
	void *sums; /* room + 1 values */
	uint32_t *has_greatest;
	uint32_t room; /* a power of two */
};

CUA_FORCE uint64_t cua__sums_free(uint32_t ks)
{
	return ks == 4 ? 0xffffffffu : ~(uint64_t)0;
}

CUA_FORCE uint64_t cua__sums_identity(uint32_t vs, int op)
{
	const uint64_t ones = vs == 4 ? 0xffffffffu : ~(uint64_t)0;

	return op == CUA_UPDATE_MIN || op == CUA_UPDATE_AND ? ones : 0;
}

/* Frees entry i. Plain accesses: barriers separate a clear from other accesses. */
CUA_FORCE void cua__sums_clear_key(uint32_t ks, const struct cua__sums *t, uint32_t i)
{
	if (i == t->room)
		CUA_WRITE(*t->has_greatest, 0);
	else if (ks == 4)
		CUA_WRITE(((uint32_t *)t->keys)[i], (uint32_t)cua__sums_free(ks));
	else
		CUA_WRITE(((uint64_t *)t->keys)[i], cua__sums_free(ks));
}

CUA_FORCE void cua__sums_clear(uint32_t ks, uint32_t vs, const struct cua__sums *t, uint32_t i,
			       int op)
{
	cua__sums_clear_key(ks, t, i);
	if (vs == 4)
		CUA_WRITE(((uint32_t *)t->sums)[i], (uint32_t)cua__sums_identity(vs, op));
	else
		CUA_WRITE(((uint64_t *)t->sums)[i], cua__sums_identity(vs, op));
}

/* Gets the key and the sum of entry i. Returns 0 if the entry is free. */
CUA_FORCE int cua__sums_at(uint32_t ks, uint32_t vs, const struct cua__sums *t, uint32_t i,
			   uint64_t *key, uint64_t *sum)
{
	*key = cua__sums_free(ks);
	if (i < t->room)
		*key = ks == 4 ? CUA_READ(((const uint32_t *)t->keys)[i])
			       : CUA_READ(((const uint64_t *)t->keys)[i]);
	*sum = vs == 4 ? CUA_READ(((const uint32_t *)t->sums)[i])
		       : CUA_READ(((const uint64_t *)t->sums)[i]);
	return i < t->room ? *key != cua__sums_free(ks) : CUA_READ(*t->has_greatest) != 0;
}

/*
 * Returns the entry of the key. A key without an entry claims a free entry and sets *claimed. Returns
 * NO_ROOM if the first `probes` entries of the key belong to other keys.
 */
CUA_FORCE uint32_t cua__sums_entry(uint32_t ks, const struct cua__sums *t, uint64_t hash,
				   uint64_t key, uint32_t probes, int *claimed)
{
	const uint64_t none = cua__sums_free(ks);
	const uint32_t step = (uint32_t)(hash >> 22) | 1;
	uint32_t at = (uint32_t)(hash >> 8), tries;

	*claimed = 0;
	if (key == none) {
		*claimed = !cua_port_exchange_b32(t->has_greatest, 1, CUA_RELAXED, CUA__SUMS_BLOCK);
		return t->room;
	}
	for (tries = 0; tries < probes; tries++, at += step) {
		uint32_t *key4 = (uint32_t *)t->keys + (at & (t->room - 1));
		uint64_t *key8 = (uint64_t *)t->keys + (at & (t->room - 1));
		uint64_t there = ks == 4 ? cua_port_load_b32(key4, CUA_RELAXED, CUA__SUMS_BLOCK)
					 : cua_port_load_b64(key8, CUA_RELAXED, CUA__SUMS_BLOCK);

		if (there == none) {
			there = ks == 4 ? cua_port_cas_b32(key4, (uint32_t)none, (uint32_t)key,
							   CUA_RELAXED, CUA__SUMS_BLOCK)
					: cua_port_cas_b64(key8, none, key, CUA_RELAXED,
							   CUA__SUMS_BLOCK);
			*claimed = there == none;
		}
		if (*claimed || there == key)
			return at & (t->room - 1);
	}
	return CUA__SUMS_NO_ROOM;
}

CUA_FORCE void cua__sums_apply_b32(uint32_t *sum, int op, uint32_t v)
{
	switch (op) {
	case CUA_UPDATE_ADD: cua_port_add_u32(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK); break;
	case CUA_UPDATE_MIN: cua_port_min_u32(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK); break;
	case CUA_UPDATE_MAX: cua_port_max_u32(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK); break;
	case CUA_UPDATE_AND: cua_port_and_b32(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK); break;
	case CUA_UPDATE_OR: cua_port_or_b32(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK); break;
	default: cua_port_xor_b32(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK);
	}
}

/* Combines the sum of entry i with v. */
CUA_FORCE void cua__sums_apply(uint32_t vs, const struct cua__sums *t, uint32_t i, int op,
			       uint64_t v)
{
	uint64_t *sum = (uint64_t *)t->sums + i;
	uint32_t *half = (uint32_t *)t->sums + 2 * (size_t)i;
	const uint32_t low = (uint32_t)v;
	uint32_t high = (uint32_t)(v >> 32);

	if (vs == 4) {
		cua__sums_apply_b32((uint32_t *)t->sums + i, op, (uint32_t)v);
		return;
	}
	/* shared memory adds and combines bits natively in halves only, the low half first */
	switch (op) {
	case CUA_UPDATE_MIN: cua_port_min_u64(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK); return;
	case CUA_UPDATE_MAX: cua_port_max_u64(sum, v, CUA_RELAXED, CUA__SUMS_BLOCK); return;
	case CUA_UPDATE_ADD:
		high += cua_port_fetch_add_u32(half, low, CUA_RELAXED, CUA__SUMS_BLOCK) + low < low;
		break;
	default: cua__sums_apply_b32(half, op, low);
	}
	if (high != (uint32_t)cua__sums_identity(4, op))
		cua__sums_apply_b32(half + 1, op, high);
}

#endif /* CUATOMIC_KERNELS_HASHMAP_SUMS_H */
