/* SPDX-License-Identifier: MIT */
/* Functions on pairs, slots and counts of a hash map that the loops of both backends call. */
#ifndef CUATOMIC_KERNELS_HASHMAP_BULK_H
#define CUATOMIC_KERNELS_HASHMAP_BULK_H

#include "backend/hashmap_backend.h"

/* Element i of an array of keys or values. */
CUA_FORCE struct cua_u128 cua__hashmap_get(const void *array, uint32_t size, uint64_t i)
{
	struct cua_u128 v = {0, 0};

	if (size == 4)
		v.lo = ((const uint32_t *)array)[i];
	else if (size == 8)
		v.lo = ((const uint64_t *)array)[i];
	else if (size == 16)
		v = ((const struct cua_u128 *)array)[i];
	return v;
}

CUA_FORCE void cua__hashmap_set(void *array, uint32_t size, uint64_t i, struct cua_u128 v)
{
	if (size == 4)
		((uint32_t *)array)[i] = (uint32_t)v.lo;
	else if (size == 8)
		((uint64_t *)array)[i] = v.lo;
	else if (size == 16)
		((struct cua_u128 *)array)[i] = v;
}

/*
 * A write of the key with this hash. *there gets the value that values_out describes for INSERT and
 * ASSIGN. `op` is not a constant, so all operations share the code.
 */
CUA_FORCE int cua__hashmap_write(const struct cua_hashmap_view *view, const cua__hashmap_kind kind,
				 int op, uint64_t hash, struct cua_u128 key, struct cua_u128 value,
				 struct cua_u128 *there)
{
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};

	*there = value;
	for (;;) {
		int changed, result = cua__hashmap_enter(view, kind, cua__hashmap_key_of(hash, key),
							 NULL, value, &spot);

		if (result != CUA_HASHMAP_EXISTS)
			return result;
		*there = spot.value;
		if (op == CUA__HASHMAP_INSERT)
			return result;
		if (op != CUA__HASHMAP_ASSIGN &&
		    cua__hashmap_word_is_native(view, CUA__HASHMAP_KS(kind),
						CUA__HASHMAP_VS(kind))) {
			/* on a GPU, the fence of the insert releases */
			cua__hashmap_word_apply(spot.at, cua__hashmap_word_key(4, spot.word), value,
						(enum cua_update)op,
						CUA_WARP_LANES == 1 ? CUA_RELEASE : CUA_RELAXED);
			return result;
		}
		do {
			struct cua_u128 desired = value;

			*there = spot.value;
			if (op != CUA__HASHMAP_ASSIGN)
				desired = cua__hashmap_combine(spot.value, value,
							       CUA__HASHMAP_VS(kind),
							       (enum cua_update)op);
			/* an update that changes nothing takes effect at the read of the value */
			changed = cua__hashmap_same(desired, spot.value)
					  ? 1
					  : cua__hashmap_change(view, kind,
								cua__hashmap_key_of(hash, key),
								NULL, &spot, desired);
		} while (!changed);
		if (changed > 0)
			return result;
	}
}

/* The number of reserved slots in use. */
CUA_FORCE uint64_t cua__hashmap_reserved_used(const struct cua_hashmap_view *view)
{
	const uint64_t *reserved_slots =
		(const uint64_t *)(const void *)(view->counts + CUA_HASHMAP_STRIPES);

	/* the low half of a used reserved slot is never 0 */
	return (uint64_t)(cua_port_load_b64(reserved_slots, CUA_RELAXED, CUA__HASHMAP_AT) != 0) +
	       (cua_port_load_b64(reserved_slots + 2, CUA_RELAXED, CUA__HASHMAP_AT) != 0);
}

/* The number of keys, from the counts. */
CUA_FORCE uint64_t cua__hashmap_count(const struct cua_hashmap_view *view)
{
	uint64_t n = cua__hashmap_reserved_used(view);

	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		n += cua_port_load_b64(&view->counts[i].inserted, CUA_RELAXED, CUA__HASHMAP_AT) -
		     cua_port_load_b64(&view->counts[i].erased, CUA_RELAXED, CUA__HASHMAP_AT);
	return n;
}

/* The number of kept rejected pairs; *all is the number of rejections. */
CUA_FORCE uint64_t cua__hashmap_kept(const struct cua_hashmap_view *view, uint64_t *all)
{
	uint64_t n = 0;

	if (view->rejects) {
		*all = view->rejects->count;
		return *all < view->rejects->room ? *all : view->rejects->room;
	}
	for (uint32_t i = 0; i < CUA_HASHMAP_STRIPES; i++)
		n += view->counts[i].rejected;
	*all = n;
	return 0;
}

/* The distance of the key in slot `place` from its home bucket, FAR at most. */
CUA_FORCE uint32_t cua__hashmap_distance(const struct cua_hashmap_view *view, uint32_t ks,
					 uint32_t vs, uint64_t place, struct cua_u128 key,
					 uint64_t *home)
{
	uint64_t hash = cua__hashmap_hash(view, ks, key), bucket, d;

	*home = cua_hash_to_index(hash, view->n_buckets);
	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs)) {
		const uint32_t slots = cua__hashmap_state_slots(ks, vs);

		bucket = place / slots;
		d = bucket >= *home ? bucket - *home : bucket + view->n_buckets - *home;
		/*
		 * a slot before the home slot in the home bucket: the probe sequence wrapped around
		 */
		if (!d && place % slots < cua__hashmap_state_home(view, ks, vs, hash).slot)
			d = view->n_buckets;
		return d < CUA__HASHMAP_FAR ? (uint32_t)d : CUA__HASHMAP_FAR;
	}
	bucket = place / cua__hashmap_word_slots(ks, vs);
	if (bucket >= view->n_buckets || place >= view->n_buckets * cua__hashmap_word_slots(ks, vs))
		return 0;
	for (d = 0; d < CUA__HASHMAP_FAR; d++)
		if (cua__hashmap_word_probe(view, *home, hash, d) == bucket)
			break;
	return (uint32_t)d;
}

/* Whether the slot is closed and holds no key. */
CUA_FORCE int cua__hashmap_is_erased(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
				     uint64_t place)
{
	const int wide = cua__hashmap_is_wide(ks, vs);
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide ? 16 : 8;

	if (!CUA__HASHMAP_IS_WORDS(view, ks, vs) || place >= view->n_buckets * slots)
		return 0;
	return cua__hashmap_same(
		cua__hashmap_word_load(cua__hashmap_word_bucket(view, place / slots) +
					       (place % slots + 1) * size,
				       wide, CUA_ACQUIRE),
		cua__hashmap_word_erased(ks, vs));
}

#endif /* CUATOMIC_KERNELS_HASHMAP_BULK_H */
