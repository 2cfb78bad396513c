/* SPDX-License-Identifier: MIT */
/*
 * The digits of keys, for two algorithms of both backends: the sort by key, with a pass for each
 * byte in which keys differ, lowest byte first; and the search for the least keys.
 */
#ifndef CUATOMIC_KERNELS_HASHMAP_DIGITS_H
#define CUATOMIC_KERNELS_HASHMAP_DIGITS_H

#include "backend/backend.h"

#define CUA__HASHMAP_DIGITS 256u

CUA_FORCE uint32_t cua__hashmap_digit(struct cua_u128 v, uint32_t pass)
{
	return (uint32_t)((pass < 8 ? v.lo >> 8 * pass : v.hi >> 8 * (pass - 8)) & 255);
}

/*
 * Search for the max-th least key, a digit per pass, highest digit first. Each pass counts the next
 * digits of the keys that share the prefix found so far. Starts as zeros.
 */
struct cua__hashmap_least {
	struct cua_u128
		key;    /* the digits found; the rest are 0, or 255 after the end of the search */
	uint64_t below; /* keys below this prefix */
	uint64_t done;  /* 1: exactly max keys are <= key */
	uint64_t given; /* pairs written */
	uint64_t counts[CUA__HASHMAP_DIGITS];
};

/* Whether the keys agree in all digits above that of this pass. */
CUA_FORCE int cua__hashmap_same_prefix(struct cua_u128 a, struct cua_u128 b, uint32_t pass)
{
	if (pass >= 8)
		return !((a.hi ^ b.hi) >> 8 * (pass - 8) >> 8);
	return a.hi == b.hi && !((a.lo ^ b.lo) >> 8 * pass >> 8);
}

/*
 * Appends the digit of a pass to the key. Of the keys with the prefix, `below` have a lower digit
 * and `here` have this digit. If the max-th key is the last of the latter, the remaining digits do
 * not matter.
 */
CUA_FORCE void cua__hashmap_least_digit(struct cua__hashmap_least *least, uint64_t max,
					uint32_t pass, uint32_t digit, uint64_t below,
					uint64_t here)
{
	uint64_t bits = (uint64_t)digit << 8 * (pass % 8);

	least->below += below;
	least->done = max - least->below == here;
	if (least->done)
		bits |= ((uint64_t)1 << 8 * (pass % 8)) - 1;
	if (pass < 8) {
		least->key.lo |= bits;
	} else {
		least->key.hi |= bits;
		if (least->done)
			least->key.lo = ~(uint64_t)0;
	}
}

/*
 * The passes before this pass that sort, by bytes that differ. Their parity tells which array has
 * the pairs.
 */
CUA_FORCE uint32_t cua__hashmap_passes(struct cua_u128 differ, uint32_t pass)
{
	uint32_t n = 0, i;

	for (i = 0; i < pass; i++)
		n += cua__hashmap_digit(differ, i) != 0;
	return n;
}

#endif /* CUATOMIC_KERNELS_HASHMAP_DIGITS_H */
