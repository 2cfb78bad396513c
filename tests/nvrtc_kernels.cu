/* SPDX-License-Identifier: MIT */
/* Kernels that check_nvrtc.c compiles at run time. */
#include <cuatomic.h>

CUA_DEFINE_HASHMAP(narrow, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_UPDATE(narrow_sum, narrow, old + operand)
CUA_DEFINE_HASHMAP(wide, uint64_t, uint64_t)
CUA_DEFINE_HASHMAP_UPDATE(wide_sum, wide, old + operand)

static __device__ uint64_t global_id(void)
{
	return cua_port_block() * cua_port_block_size() + cua_port_thread();
}

extern "C" __global__ void count_locked(struct cua_spinlock *lock, uint64_t *count, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++)
		CUA_WITH_LOCK (lock)
			CUA_WRITE(*count, CUA_READ(*count) + 1);
}

/*
 * Thread i inserts key i % keys with three times the key as value, and then adds 1 to the value.
 * *inserted becomes the number of inserts that stored a pair.
 */
#define DEFINE_FILL(name, K, V)                                                                    \
	extern "C" __global__ void fill_##name(struct cua_hashmap_view view, uint64_t keys,        \
					       uint64_t *inserted, uint64_t *wrong)                \
	{                                                                                          \
		const K key = (K)(global_id() % keys);                                             \
		const int result = name##_insert(&view, key, (V)(3 * key));                        \
                                                                                                   \
		cua_atomic_add_u64(inserted, result == CUA_HASHMAP_INSERTED);                      \
		if (result != CUA_HASHMAP_INSERTED && result != CUA_HASHMAP_EXISTS)                \
			cua_atomic_add_u64(wrong, 1);                                              \
		if (name##_sum(&view, key, 1) != CUA_HASHMAP_EXISTS)                               \
			cua_atomic_add_u64(wrong, 1);                                              \
	}                                                                                          \
	/* The map has the pairs of fill, `times` threads a key, and no key from `keys` on. */     \
	extern "C" __global__ void find_##name(struct cua_hashmap_view view, uint64_t keys,        \
					       uint64_t times, uint64_t *wrong)                    \
	{                                                                                          \
		const K key = (K)global_id();                                                      \
		V value = 0;                                                                       \
		const int found = name##_find(&view, key, &value);                                 \
                                                                                                   \
		if (found != (key < keys) || (found && value != (V)(3 * key + times)))             \
			cua_atomic_add_u64(wrong, 1);                                              \
	}
DEFINE_FILL(narrow, uint32_t, uint32_t)
DEFINE_FILL(wide, uint64_t, uint64_t)

/* Every third thread appends its number. */
extern "C" __global__ void append_thirds(struct cua_append_view view, uint64_t *stored)
{
	const uint64_t i = global_id();

	if (i % 3 == 0 && cua_append_push_u64(&view, i))
		cua_atomic_add_u64(stored, 1);
}

/* The sum of the threads' numbers: blocks are reduced, then combined under a lock. */
extern "C" __global__ void sum_ids(struct cua_finish *finish, uint64_t *total)
{
	__shared__ struct cua_block_scratch scratch;
	const uint64_t sum = cua_block_sum_u64(global_id(), &scratch);

	if (cua_port_thread() == 0)
		cua_finish_lock_sum_u64(finish, cua_port_grid_size(), sum, total);
}

extern "C" __global__ void add_floats(float *sum, double *wide_sum)
{
	cua_atomic_fetch_add_cas_f32(sum, 1.0f);
	cua_atomic_fetch_add_cas_f64(wide_sum, 0.5);
}

/* The large summands cancel; the sum is that of the threads' numbers. */
extern "C" __global__ void add_exact(struct cua_exact_cells_f64 cells, uint64_t *lost)
{
	const uint64_t i = global_id();
	const double large = i % 2 ? -9007199254740992.0 : 9007199254740992.0;

	if (!cua_exact_cell_add_f64(&cells, 0, large) ||
	    !cua_exact_cell_add_f64(&cells, 0, (double)i))
		cua_atomic_add_u64(lost, 1);
}

#if defined(CUA_PORT_HAS_B128)
extern "C" __global__ void add_wide(struct cua_u128 *sum, struct cua_u128 *product,
				    struct cua_u128 *ring)
{
	struct cua_u128 v;

	v.lo = ~(uint64_t)0;
	v.hi = 1;
	cua_atomic_add_u128(sum, v);
	v.lo = 3;
	v.hi = 5;
	cua_atomic_fetch_mul_u128(product, v);
	v.lo = 6;
	v.hi = 0;
	cua_atomic_inc_u128(ring, v);
}
#endif
