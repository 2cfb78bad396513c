/* SPDX-License-Identifier: MIT */
/* Random seeds for hashes without a user-supplied seed. */
#include "config.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cuatomic/hash.h>

#include "backend/internal.h"

/*
 * Fallback if the kernel has no random numbers yet: a hash of data that differs between processes,
 * runs and calls.
 */
static struct cua_u128 weak_seed(void)
{
	static uint64_t calls;
	struct cua_u128 seed;
	struct timespec now;
	uint64_t x = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

	clock_gettime(CLOCK_REALTIME, &now);
	x = cua_hash_u64((uint64_t)(uintptr_t)&now ^ x << 48, (uint64_t)now.tv_nsec);
	seed.lo = cua_hash_u64(x ^ (uint64_t)getpid(), (uint64_t)now.tv_sec);
	seed.hi = cua_hash_u64(x, seed.lo);
	return seed;
}

struct cua_u128 cua__random(void)
{
	struct cua_u128 bits;

	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != (ssize_t)sizeof(bits))
		bits = weak_seed();
	return bits;
}

struct cua_u128 cua__random_seed(void)
{
	const char *named = secure_getenv("CUATOMIC_HASH_SEED");
	struct cua_u128 seed = {0, 0};
	char *end;

	if (named && *named) {
		seed.lo = strtoull(named, &end, 0);
		if (!*end && seed.lo) {
			seed.hi = cua_hash_u64(seed.lo, 1);
			return seed;
		}
	}
	seed = cua__random();
	seed.lo += !seed.lo;
	return seed;
}
