/* SPDX-License-Identifier: MIT */
/*
 * Cache policy for arrays larger than a GPU's L2. An iterative method reads such an array again and
 * again, and each pass evicts every line before the next pass reaches it. So a part of the array,
 * as large as the L2 can keep, is read with normal priority. The rest is marked evict-first, and
 * the next reader finds the kept part in the L2.
 *
 * The kept part is spread over the array, so L2 and DRAM are read at the same time. It depends on
 * addresses alone, so different readers keep the same part.
 */
#ifndef CUATOMIC_KERNELS_CACHED_H
#define CUATOMIC_KERNELS_CACHED_H

#include "backend/elements.h"

struct cua__cached {
	uint64_t evict_first, evict_normal; /* cache policies */
	uint32_t kept; /* the share of pieces that are kept, in units of 2^-32 */
};

/* The policies for reading `bytes` bytes in all, of which the L2 keeps `keeps`. */
CUA_FORCE struct cua__cached cua__cached(uint64_t bytes, uint64_t keeps)
{
	struct cua__cached c = {0, 0, 0xffffffffu};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	if (bytes > keeps)
		c.kept = (uint32_t)((float)keeps / (float)bytes * 4294967040.0f);
	/*
	 * volatile: no load under these policies may precede the wait for kernels that write the
	 * array
	 */
	__asm__ volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
			 : "=l"(c.evict_first));
	__asm__ volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;"
			 : "=l"(c.evict_normal));
#else
	(void)bytes;
	(void)keeps;
#endif
	return c;
}

/* The policy for an address. It is the same within 32 KiB. */
CUA_FORCE uint64_t cua__cached_policy(const struct cua__cached *c, const void *p)
{
	return (uint32_t)((uintptr_t)p >> 15) * 2654435769u <= c->kept ? c->evict_normal
								       : c->evict_first;
}

/*
 * Loads 16 aligned bytes. Nothing may write them from the creation of the policy to the kernel's
 * end.
 */
CUA_FORCE struct cua__pack cua__cached_load(const void *p, uint64_t policy)
{
	struct cua__pack v;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	__asm__("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
		: "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
		: "l"(__cvta_generic_to_global(p)), "l"(policy));
#elif defined(__CUDA_ARCH__)
	(void)policy;
	v = *(const struct cua__pack *)p;
#else
	(void)policy;
	memcpy(&v, p, sizeof(v));
#endif
	return v;
}

#endif /* CUATOMIC_KERNELS_CACHED_H */
