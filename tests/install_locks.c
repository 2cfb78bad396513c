/* SPDX-License-Identifier: MIT */
/*
 * A user's program that needs of the library only a context and memory: spinlocks in the memory of
 * the backend.
 */
#include <cuatomic.h>

int main(void)
{
	enum { N = 64 };
	struct cua_spinlock *locks = NULL;
	struct cua_context *ctx = NULL;
	int taken = 0, i;

	if (cua_context_create(CUA_BACKEND_CPU, 0, &ctx) != CUA_OK)
		return 2;
	if (cua_alloc_zero(ctx, N, sizeof(*locks), (void **)&locks) != CUA_OK)
		return 3;
	for (i = 0; i < N; i++)
		taken += cua_spinlock_trylock(&locks[i]);
	for (i = 0; i < N; i++)
		cua_spinlock_unlock(&locks[i]);
	if (cua_free(ctx, locks) != CUA_OK)
		return 4;
	cua_context_destroy(ctx);
	return taken == N ? 0 : 1;
}
