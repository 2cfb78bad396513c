/* SPDX-License-Identifier: MIT */
/*
 * Reading arrays that are larger than a GPU's L2. Read again and again, as iterative methods do, such an array
 * evicts each of its lines before the next reader comes. So a part of it, as much as the L2 keeps, is read as
 * usual, and the rest marked as what to evict first: the next reader finds that part. It is spread over the
 * array, for both memories to be read at once, and depends on the addresses alone, so that different readers keep
 * the same.
 */
#ifndef CUATOMIC_KERNELS_CACHED_H
#define CUATOMIC_KERNELS_CACHED_H

#include <cuatomic/port.h>

/* 16 bytes of elements. */
struct __attribute__((may_alias, aligned(16))) cua__pack {
	uint32_t w[4];
};

struct cua__cached {
	uint64_t evict_first,
		evict_normal; /* how to read what is evicted first, and what is kept */
	uint32_t kept;        /* how many of 2^32 pieces are kept */
};

/* For so many bytes in all, of which the L2 keeps the second number. */
CUA_FORCE struct cua__cached cua__cached(uint64_t bytes, uint64_t keeps)
{
	struct cua__cached c = {0, 0, 0xffffffffu};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	if (bytes > keeps)
		c.kept = (uint32_t)((float)keeps / (float)bytes * 4294967040.0f);
	/* volatile, so that no load by these is before a wait for the kernels that write the array */
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

/* How to read around an address: the same for 32 KiB. */
CUA_FORCE uint64_t cua__cached_policy(const struct cua__cached *c, const void *p)
{
	return (uint32_t)((uintptr_t)p >> 15) * 2654435769u <= c->kept ? c->evict_normal
								       : c->evict_first;
}

/* 16 bytes, aligned, that nothing writes from the making of the policy to the end of the kernel. */
CUA_FORCE struct cua__pack cua__cached_load(const void *p, uint64_t policy)
{
	struct cua__pack v;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	__asm__("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
		: "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
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
