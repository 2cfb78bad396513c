/* SPDX-License-Identifier: MIT */
/*
 * The port layer of the SIMT checker; see simt.h. Compile with
 * -DCUA_PORT_HEADER='"simt/port_simt.h"'.
 */
#ifndef CUATOMIC_TESTS_PORT_SIMT_H
#define CUATOMIC_TESTS_PORT_SIMT_H

#include "simt.h"

#define CUA_WARP_LANES SIMT_WARP_LANES
/* see simt_together */
#define CUA__HASHMAP_WARP simt_whole_warp()

#define CUA_READ(lvalue) (*(__typeof__(lvalue) *)simt__reading(&(lvalue), sizeof(lvalue)))
#define CUA_WRITE(lvalue, value)                                                                   \
	do {                                                                                       \
		__typeof__(lvalue) simt__v = (value);                                              \
		simt_plain(1, &(lvalue), sizeof(lvalue));                                          \
		(lvalue) = simt__v;                                                                \
	} while (0)

static inline void *simt__reading(const volatile void *p, size_t bytes)
{
	simt_plain(0, (const void *)p, bytes);
	return (void *)p;
}

#define CUA__WHERE enum cua_order order, enum cua_scope scope, enum cua_space space
#define CUA__POINT(access, bytes)                                                                  \
	((void)space, simt_atomic(access, p, bytes, (int)order, (int)scope))

CUA_FN void cua_port_fence(enum cua_order order, enum cua_scope scope)
{
	simt_fence((int)order, (int)scope);
}

CUA_FN void cua_port_pause(uint32_t ns)
{
	(void)ns;
	simt_pause();
}

CUA_FN void cua_port_pause_lane(uint32_t ns)
{
	cua_port_pause(ns);
}

/* The clock advances with pauses only, so a timeout occurs at the same step in every replay. */
uint64_t simt_clock(void);
CUA_FN uint64_t cua_port_clock_ns(void)
{
	return simt_clock();
}

typedef uint32_t __attribute__((may_alias)) simt__bits32;
typedef uint64_t __attribute__((may_alias)) simt__bits64;
typedef cua__uint128 __attribute__((may_alias)) simt__bits128;

#define SIMT__DEFINE_ACCESS(bits)                                                                  \
	CUA__PORT_NATIVE(bits)                                                                     \
	CUA_FN cua__uint##bits cua_port_load_b##bits(const void *p, CUA__WHERE)                    \
	{                                                                                          \
		cua__uint##bits v;                                                                 \
                                                                                                   \
		(void)space;                                                                       \
		simt_load(p, &v, bits / 8, (int)order, (int)scope);                                \
		return v;                                                                          \
	}                                                                                          \
	CUA_FN void cua_port_store_b##bits(void *p, cua__uint##bits v, CUA__WHERE)                 \
	{                                                                                          \
		CUA__POINT(SIMT_STORE, bits / 8);                                                  \
		*(simt__bits##bits *)p = v;                                                        \
	}                                                                                          \
	CUA_FN cua__uint##bits cua_port_exchange_b##bits(void *p, cua__uint##bits v, CUA__WHERE)   \
	{                                                                                          \
		cua__uint##bits old;                                                               \
                                                                                                   \
		CUA__POINT(SIMT_RMW, bits / 8);                                                    \
		old = *(simt__bits##bits *)p;                                                      \
		*(simt__bits##bits *)p = v;                                                        \
		return old;                                                                        \
	}                                                                                          \
	CUA_FN cua__uint##bits cua_port_cas_b##bits(void *p, cua__uint##bits expected,             \
						    cua__uint##bits desired, CUA__WHERE)           \
	{                                                                                          \
		cua__uint##bits old;                                                               \
                                                                                                   \
		(void)space;                                                                       \
		simt_cas(p, bits / 8, &expected, (int)order, (int)scope);                          \
		old = *(simt__bits##bits *)p;                                                      \
		if (old == expected)                                                               \
			*(simt__bits##bits *)p = desired;                                          \
		return old;                                                                        \
	}
/* Like simt_atomic with SIMT_RMW, but a load if the bits at p differ from *expected. */
void simt_cas(const void *p, size_t bytes, const void *expected, int order, int scope);
SIMT__DEFINE_ACCESS(32)
SIMT__DEFINE_ACCESS(64)
#define CUA_PORT_HAS_B128 1
SIMT__DEFINE_ACCESS(128)

CUA_FN void cua_port_acquire_b32(const void *p, enum cua_scope scope, enum cua_space space)
{
	if (simt_acquires_by_fence())
		cua_port_fence(CUA_ACQUIRE, scope);
	else
		(void)cua_port_load_b32(p, CUA_ACQUIRE, scope, space);
}

#define SIMT__DEFINE_FETCH(op, suffix, T, P, expr)                                                 \
	CUA_PORT_PATH(fetch_##op##_##suffix, CUA_PATH_NATIVE)                                      \
	CUA_FN T cua_port_fetch_##op##_##suffix(P *p, T v, CUA__WHERE)                             \
	{                                                                                          \
		T old, next;                                                                       \
                                                                                                   \
		CUA__POINT(SIMT_RMW, sizeof(T));                                                   \
		memcpy(&old, p, sizeof(old));                                                      \
		next = (expr);                                                                     \
		memcpy(p, &next, sizeof(next));                                                    \
		return old;                                                                        \
	}                                                                                          \
	CUA_FN void cua_port_##op##_##suffix(P *p, T v, CUA__WHERE)                                \
	{                                                                                          \
		(void)cua_port_fetch_##op##_##suffix(p, v, order, scope, space);                   \
	}
SIMT__DEFINE_FETCH(and, b32, uint32_t, void, old &v)
SIMT__DEFINE_FETCH(and, b64, uint64_t, void, old &v)
SIMT__DEFINE_FETCH(or, b32, uint32_t, void, old | v)
SIMT__DEFINE_FETCH(or, b64, uint64_t, void, old | v)
SIMT__DEFINE_FETCH(xor, b32, uint32_t, void, old ^ v)
SIMT__DEFINE_FETCH(xor, b64, uint64_t, void, old ^ v)
SIMT__DEFINE_FETCH(add, u32, uint32_t, uint32_t, old + v)
SIMT__DEFINE_FETCH(add, u64, uint64_t, uint64_t, old + v)
SIMT__DEFINE_FETCH(add, f32, float, float, old + v)
SIMT__DEFINE_FETCH(add, f64, double, double, old + v)
SIMT__DEFINE_FETCH(inc, u32, uint32_t, uint32_t, old >= v ? 0 : old + 1)
SIMT__DEFINE_FETCH(dec, u32, uint32_t, uint32_t, old == 0 || old > v ? v : old - 1)
#define SIMT__DEFINE_EXTREMES(suffix, T)                                                           \
	SIMT__DEFINE_FETCH(min, suffix, T, T, v < old ? v : old)                                   \
	SIMT__DEFINE_FETCH(max, suffix, T, T, v > old ? v : old)
SIMT__DEFINE_EXTREMES(u32, uint32_t)
SIMT__DEFINE_EXTREMES(i32, int32_t)
SIMT__DEFINE_EXTREMES(u64, uint64_t)
SIMT__DEFINE_EXTREMES(i64, int64_t)

/* ---- lanes and blocks ---- */

CUA_FN uint32_t cua_port_lane(void)
{
	return simt_lane_in_block() % SIMT_WARP_LANES;
}

/* Always inlined, because the return address identifies the call. */
CUA_FORCE uint32_t cua_port_active_mask(void)
{
	return simt_active_mask();
}

CUA_FN uint32_t cua_port_ballot(uint32_t mask, int predicate)
{
	uint64_t values[SIMT_WARP_LANES];
	uint32_t votes = 0;

	simt_warp_converge("ballot", mask, predicate != 0, values, 0);
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (mask >> i & 1 && values[i])
			votes |= (uint32_t)1 << i;
	return votes;
}

CUA_FN uint32_t cua_port_match_any_u64(uint32_t mask, uint64_t v)
{
	uint64_t values[SIMT_WARP_LANES];
	uint32_t equal = 0;

	simt_warp_converge("match", mask, v, values, 0);
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (mask >> i & 1 && values[i] == v)
			equal |= (uint32_t)1 << i;
	return equal;
}

CUA_FN uint32_t cua_port_match_any_u32(uint32_t mask, uint32_t v)
{
	return cua_port_match_any_u64(mask, v);
}

CUA_FN uint64_t cua_port_shuffle_u64(uint32_t mask, uint64_t v, uint32_t lane)
{
	uint64_t values[SIMT_WARP_LANES];

	simt_warp_converge("shuffle", mask, v, values, 0);
	lane %= SIMT_WARP_LANES;
	/* on a GPU the value of a lane outside the mask is undefined */
	return mask >> lane & 1 ? values[lane] : 0xdeadbeefdeadbeefu;
}

CUA_FN uint32_t cua_port_shuffle_u32(uint32_t mask, uint32_t v, uint32_t lane)
{
	return (uint32_t)cua_port_shuffle_u64(mask, v, lane);
}

CUA_FN void cua_port_sync_warp(uint32_t mask)
{
	uint64_t values[SIMT_WARP_LANES];

	simt_warp_converge("sync", mask, 0, values, 1);
}

CUA_FN uint32_t cua_port_thread(void)
{
	return simt_lane_in_block();
}

CUA_FN uint32_t cua_port_block_size(void)
{
	return simt_block_lanes();
}

CUA_FN uint64_t cua_port_block(void)
{
	return simt_block();
}

CUA_FN uint64_t cua_port_grid_size(void)
{
	return simt_blocks();
}

CUA_FN uint64_t cua_port_grid_id(void)
{
	return 0;
}

CUA_FN void cua_port_sync_block(void)
{
	(void)simt_block_converge("sync", 0);
}

CUA_FN int cua_port_sync_block_or(int predicate)
{
	return simt_block_converge("or", predicate);
}

CUA_FN int cua_port_is_global(const void *p)
{
	(void)p;
	return 1;
}

/* Here, the shared memories of different blocks have different addresses. */
CUA_FN int cua_port_is_shared(const void *p)
{
	(void)p;
	return 0;
}

CUA_FN uint32_t cua_port_popc_u32(uint32_t v)
{
	return (uint32_t)__builtin_popcount(v);
}

CUA_FN uint32_t cua_port_ffs_u32(uint32_t v)
{
	return (uint32_t)__builtin_ffs((int)v);
}

CUA_FN uint32_t cua_port_clz_u64(uint64_t v)
{
	return (uint32_t)__builtin_clzll(v);
}

CUA_FN uint64_t cua_port_mul_high_u64(uint64_t a, uint64_t b)
{
	return (uint64_t)((cua__uint128)a * b >> 64);
}

CUA_FN uint32_t cua_port_shl_u32(uint32_t v, uint32_t by)
{
	return by < 32 ? v << by : 0;
}

CUA_FN float cua_port_neg_f32(float v)
{
	return -v;
}

#define SIMT__DEFINE_ARITHMETIC(suffix, T)                                                         \
	CUA_FN T cua_port_add_rn_##suffix(T a, T b)                                                \
	{                                                                                          \
		return a + b;                                                                      \
	}                                                                                          \
	CUA_FN T cua_port_sub_rn_##suffix(T a, T b)                                                \
	{                                                                                          \
		return a - b;                                                                      \
	}                                                                                          \
	CUA_FN T cua_port_mul_rn_##suffix(T a, T b)                                                \
	{                                                                                          \
		return a * b;                                                                      \
	}                                                                                          \
	CUA_FN T cua_port_div_rn_##suffix(T a, T b)                                                \
	{                                                                                          \
		return a / b;                                                                      \
	}
SIMT__DEFINE_ARITHMETIC(f32, float)
SIMT__DEFINE_ARITHMETIC(f64, double)

CUA_FN double cua_port_fma_rn_f64(double a, double b, double c)
{
	return __builtin_fma(a, b, c);
}

CUA_FN double cua_port_cvt_f64_f32(float v)
{
	return v;
}

#endif /* CUATOMIC_TESTS_PORT_SIMT_H */
