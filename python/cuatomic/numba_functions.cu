/* SPDX-License-Identifier: MIT */
/*
 * The functions of cuatomic/numba.py, in the calling convention of Numba: the result goes to the
 * address of the first argument, and the C function returns 0. Addresses are 64-bit numbers.
 */
#include <cuatomic/append.h>
#include <cuatomic/atomic_warp.h>
#include <cuatomic/exact_cell.h>
#include <cuatomic/hashmap.h>
#include <cuatomic/spinlock.h>

#define NUMBA(name, Result, ...)                                                                   \
	extern "C" __device__ int cua_numba_##name(Result *result, __VA_ARGS__)
#define AT(T, address) ((T *)(uintptr_t)(address))
#define VIEW(address) AT(const struct cua_hashmap_view, address)

/* ---- maps ---- */

/* find returns `otherwise` for an absent key. */
#define DEFINE_MAP(m, K, V)                                                                        \
	CUA_DEFINE_HASHMAP(m, K, V)                                                                \
	CUA_DEFINE_HASHMAP_UPDATE_OP(m##_sum, m, CUA_UPDATE_ADD)                                   \
	NUMBA(insert_##m, int32_t, uint64_t view, K key, V value)                                  \
	{                                                                                          \
		*result = m##_insert(VIEW(view), key, value);                                      \
		return 0;                                                                          \
	}                                                                                          \
	NUMBA(assign_##m, int32_t, uint64_t view, K key, V value)                                  \
	{                                                                                          \
		*result = m##_assign(VIEW(view), key, value);                                      \
		return 0;                                                                          \
	}                                                                                          \
	NUMBA(add_##m, int32_t, uint64_t view, K key, V value)                                     \
	{                                                                                          \
		*result = m##_sum(VIEW(view), key, value);                                         \
		return 0;                                                                          \
	}                                                                                          \
	NUMBA(find_##m, V, uint64_t view, K key, V otherwise)                                      \
	{                                                                                          \
		V value = otherwise;                                                               \
                                                                                                   \
		m##_find(VIEW(view), key, &value);                                                 \
		*result = value;                                                                   \
		return 0;                                                                          \
	}                                                                                          \
	NUMBA(contains_##m, int32_t, uint64_t view, K key)                                         \
	{                                                                                          \
		*result = m##_contains(VIEW(view), key);                                           \
		return 0;                                                                          \
	}                                                                                          \
	NUMBA(erase_##m, int32_t, uint64_t view, K key)                                            \
	{                                                                                          \
		*result = m##_erase(VIEW(view), key);                                              \
		return 0;                                                                          \
	}

DEFINE_MAP(u32_u32, uint32_t, uint32_t)
DEFINE_MAP(u32_u64, uint32_t, uint64_t)
DEFINE_MAP(u64_u32, uint64_t, uint32_t)
DEFINE_MAP(u64_u64, uint64_t, uint64_t)

/* ---- locks ---- */

NUMBA(spinlock_trylock, int32_t, uint64_t lock)
{
	*result = cua_spinlock_trylock(AT(struct cua_spinlock, lock));
	return 0;
}

NUMBA(spinlock_lock, int32_t, uint64_t lock)
{
	cua_spinlock_lock(AT(struct cua_spinlock, lock));
	*result = 1;
	return 0;
}

NUMBA(spinlock_unlock, int32_t, uint64_t lock)
{
	cua_spinlock_unlock(AT(struct cua_spinlock, lock));
	*result = 1;
	return 0;
}

/* ---- append buffers, sums ---- */

#define DEFINE_APPEND(t, T)                                                                        \
	NUMBA(append_push_##t, int32_t, uint64_t view, T item)                                     \
	{                                                                                          \
		*result = cua_append_push_##t(AT(const struct cua_append_view, view), item);       \
		return 0;                                                                          \
	}
DEFINE_APPEND(u32, uint32_t)
DEFINE_APPEND(u64, uint64_t)

#define DEFINE_SUMS(t, T)                                                                          \
	NUMBA(atomic_add_cas_##t, T, uint64_t address, T v)                                        \
	{                                                                                          \
		*result = cua_atomic_fetch_add_cas_##t(AT(T, address), v);                         \
		return 0;                                                                          \
	}                                                                                          \
	NUMBA(exact_add_##t, int32_t, uint64_t view, uint64_t cell, T v)                           \
	{                                                                                          \
		*result = cua_exact_cell_add_##t(AT(const struct cua_exact_cells_##t, view), cell, \
						 v);                                               \
		return 0;                                                                          \
	}
DEFINE_SUMS(f32, float)
DEFINE_SUMS(f64, double)
