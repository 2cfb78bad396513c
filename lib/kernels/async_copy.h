/* SPDX-License-Identifier: MIT */
/*
 * Copies of packs from global to shared memory that need no registers. On compute capability 8.0
 * and above they are asynchronous: the copies up to cua__copies_commit are a group, and
 * cua__copies_wait waits for the calling lane's older groups. Elsewhere a copy is a load and a
 * store.
 *
 * Other lanes see the copied pack after a wait by the copying lane and a barrier.
 */
#ifndef CUATOMIC_KERNELS_ASYNC_COPY_H
#define CUATOMIC_KERNELS_ASYNC_COPY_H

#include "backend/elements.h"

CUA_FORCE void cua__copy_pack(struct cua__pack *shared, const void *global)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	__asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
				 (uint32_t)__cvta_generic_to_shared(shared)),
			 "l"(__cvta_generic_to_global(global))
			 : "memory");
#else
	CUA_WRITE(*shared, CUA_READ(*(const struct cua__pack *)global));
#endif
}

CUA_FORCE void cua__copies_commit(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	__asm__ volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most the `newest` last groups are incomplete. `newest` is 0 or 1. */
CUA_FORCE void cua__copies_wait(int newest)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	if (newest)
		__asm__ volatile("cp.async.wait_group 1;" ::: "memory");
	else
		__asm__ volatile("cp.async.wait_group 0;" ::: "memory");
#else
	(void)newest;
#endif
}

#endif /* CUATOMIC_KERNELS_ASYNC_COPY_H */
