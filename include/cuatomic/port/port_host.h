/* SPDX-License-Identifier: MIT */
/*
 * The port layer on host threads: the compiler's __atomic builtins. Included by <cuatomic/port.h>
 *   only.
 *
 * A thread is a warp of a single lane and a block of a single thread. Scope and space are ignored.
 */
#ifndef CUATOMIC_PORT_HOST_H
#define CUATOMIC_PORT_HOST_H

#include <errno.h>
#include <sched.h>
#include <time.h>

#define CUA_READ(lvalue) (lvalue)
#define CUA_WRITE(lvalue, value) ((lvalue) = (value))

/* Objects of any type are accessed as bits through these types. */
typedef uint32_t __attribute__((may_alias)) cua__bits32;
typedef uint64_t __attribute__((may_alias)) cua__bits64;
typedef uint8_t __attribute__((may_alias)) cua__bits8;
typedef uint16_t __attribute__((may_alias)) cua__bits16;

#define CUA__WHERE enum cua_order order, enum cua_scope scope, enum cua_space space
#define CUA__IGNORE ((void)scope, (void)space)

/*
 * A switch over the orders passes each order to the builtin as a constant, as ThreadSanitizer
 * needs.
 */
#define CUA__HOST_ORDERS(S)                                                                        \
	do {                                                                                       \
		switch (order) {                                                                   \
		case CUA_RELAXED: S(__ATOMIC_RELAXED, __ATOMIC_RELAXED); break;                    \
		case CUA_ACQUIRE: S(__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE); break;                    \
		case CUA_RELEASE: S(__ATOMIC_RELEASE, __ATOMIC_RELAXED); break;                    \
		case CUA_ACQ_REL: S(__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); break;                    \
		default: S(__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); break;                             \
		}                                                                                  \
	} while (0)
#define CUA__HOST_ORDERS_ONE_SIDED(S, strong)                                                      \
	do {                                                                                       \
		if (order == CUA_RELAXED)                                                          \
			S(__ATOMIC_RELAXED, __ATOMIC_RELAXED);                                     \
		else if (order == CUA_SEQ_CST)                                                     \
			S(__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                     \
		else                                                                               \
			S(strong, strong);                                                         \
	} while (0)

/* ---- fences, waiting, time ---- */

#define CUA__FENCE(success, failure) __atomic_thread_fence(success)
/* ThreadSanitizer ignores fences. The headers use them only between atomics, so nothing races. */
#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && __GNUC__ >= 11
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
CUA_FORCE void cua_port_fence(enum cua_order order, enum cua_scope scope)
{
	(void)scope;
	CUA__HOST_ORDERS(CUA__FENCE);
}
#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && __GNUC__ >= 11
#pragma GCC diagnostic pop
#endif

CUA_FORCE void cua_port_pause(uint32_t ns)
{
	/* After a wait this long, the lock's holder may need this core to run. */
	if (ns >= 64) {
		sched_yield();
		return;
	}
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

CUA_FORCE void cua_port_pause_lane(uint32_t ns)
{
	cua_port_pause(ns);
}

/*
 * A monotonic clock. <time.h> hides clock_gettime from strict ISO C, so it is declared here under
 * another name. The ABI of 64-bit Linux fixes the symbol and its types.
 */
#if defined(__linux__) && defined(__LP64__)
#ifdef __cplusplus
extern "C" {
#endif
extern int cua__clock_gettime(int clock, struct timespec *t) __asm__("clock_gettime");
#ifdef __cplusplus
}
#endif
#define CUA__MONOTONIC 1
#endif

CUA_FORCE uint64_t cua_port_clock_ns(void)
{
	struct timespec t;

#if defined(CUA__MONOTONIC)
	(void)cua__clock_gettime(CUA__MONOTONIC, &t);
#else
	timespec_get(&t, TIME_UTC);
#endif
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- atomics ---- */

#define CUA__DEFINE_ACCESS(bits)                                                                   \
	CUA__PORT_NATIVE(bits)                                                                     \
	CUA_FORCE cua__uint##bits cua_port_load_b##bits(const void *p, CUA__WHERE)                 \
	{                                                                                          \
		cua__uint##bits v;                                                                 \
                                                                                                   \
		CUA__IGNORE;                                                                       \
		CUA__HOST_ORDERS_ONE_SIDED(CUA__LOAD_##bits, __ATOMIC_ACQUIRE);                    \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE void cua_port_store_b##bits(void *p, cua__uint##bits v, CUA__WHERE)              \
	{                                                                                          \
		CUA__IGNORE;                                                                       \
		CUA__HOST_ORDERS_ONE_SIDED(CUA__STORE_##bits, __ATOMIC_RELEASE);                   \
	}                                                                                          \
	CUA_FORCE cua__uint##bits cua_port_exchange_b##bits(void *p, cua__uint##bits v,            \
							    CUA__WHERE)                            \
	{                                                                                          \
		cua__uint##bits old;                                                               \
                                                                                                   \
		CUA__IGNORE;                                                                       \
		CUA__HOST_ORDERS(CUA__EXCHANGE_##bits);                                            \
		return old;                                                                        \
	}                                                                                          \
	CUA_FORCE cua__uint##bits cua_port_cas_b##bits(void *p, cua__uint##bits expected,          \
						       cua__uint##bits desired, CUA__WHERE)        \
	{                                                                                          \
		CUA__IGNORE;                                                                       \
		CUA__HOST_ORDERS(CUA__CAS_##bits);                                                 \
		return expected;                                                                   \
	}
#define CUA__LOAD_32(success, failure) v = __atomic_load_n((const cua__bits32 *)p, success)
#define CUA__LOAD_64(success, failure) v = __atomic_load_n((const cua__bits64 *)p, success)
#define CUA__STORE_32(success, failure) __atomic_store_n((cua__bits32 *)p, v, success)
#define CUA__STORE_64(success, failure) __atomic_store_n((cua__bits64 *)p, v, success)
#define CUA__EXCHANGE_32(success, failure) old = __atomic_exchange_n((cua__bits32 *)p, v, success)
#define CUA__EXCHANGE_64(success, failure) old = __atomic_exchange_n((cua__bits64 *)p, v, success)
#define CUA__CAS_32(success, failure)                                                              \
	(void)__atomic_compare_exchange_n((cua__bits32 *)p, &expected, desired, 0, success, failure)
#define CUA__CAS_64(success, failure)                                                              \
	(void)__atomic_compare_exchange_n((cua__bits64 *)p, &expected, desired, 0, success, failure)
CUA__DEFINE_ACCESS(32)
CUA__DEFINE_ACCESS(64)

CUA_FORCE void cua_port_acquire_b32(const void *p, enum cua_scope scope, enum cua_space space)
{
	(void)cua_port_load_b32(p, CUA_ACQUIRE, scope, space);
}

#define CUA_PORT_HAS_B8 1
#define CUA_PORT_HAS_B16 1
#define CUA__LOAD_8(success, failure) v = __atomic_load_n((const cua__bits8 *)p, success)
#define CUA__LOAD_16(success, failure) v = __atomic_load_n((const cua__bits16 *)p, success)
#define CUA__STORE_8(success, failure) __atomic_store_n((cua__bits8 *)p, v, success)
#define CUA__STORE_16(success, failure) __atomic_store_n((cua__bits16 *)p, v, success)
#define CUA__EXCHANGE_8(success, failure) old = __atomic_exchange_n((cua__bits8 *)p, v, success)
#define CUA__EXCHANGE_16(success, failure) old = __atomic_exchange_n((cua__bits16 *)p, v, success)
#define CUA__CAS_8(success, failure)                                                               \
	(void)__atomic_compare_exchange_n((cua__bits8 *)p, &expected, desired, 0, success, failure)
#define CUA__CAS_16(success, failure)                                                              \
	(void)__atomic_compare_exchange_n((cua__bits16 *)p, &expected, desired, 0, success, failure)
CUA__DEFINE_ACCESS(8)
CUA__DEFINE_ACCESS(16)

/*
 * 128 bits. The compiler's builtins would call libatomic, which may take a lock that GPUs and other
 * copies of libatomic do not share. So the instruction is inline assembly, except in two cases
 * where the builtins do not call libatomic: under ThreadSanitizer, because it implements them
 * itself, and with clang if the target has the instruction.
 */
#if defined(__SIZEOF_INT128__)
typedef cua__uint128 __attribute__((may_alias)) cua__bits128;

#if (defined(__SANITIZE_THREAD__) && !defined(__clang__)) ||                                       \
	(defined(__clang__) && defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16))
#define CUA_PORT_HAS_B128 1
#define CUA__LOAD_128(success, failure) v = __atomic_load_n((const cua__bits128 *)p, success)
#define CUA__STORE_128(success, failure) __atomic_store_n((cua__bits128 *)p, v, success)
#define CUA__EXCHANGE_128(success, failure) old = __atomic_exchange_n((cua__bits128 *)p, v, success)
#define CUA__CAS_128(success, failure)                                                             \
	(void)__atomic_compare_exchange_n((cua__bits128 *)p, &expected, desired, 0, success,       \
					  failure)
CUA__DEFINE_ACCESS(128)

#elif defined(__x86_64__) || defined(__aarch64__)
#define CUA_PORT_HAS_B128 1
/* A seq_cst compare-and-swap. This is strong enough for every order. */
CUA_FORCE cua__uint128 cua__host_cas_b128(void *p, cua__uint128 expected, cua__uint128 desired)
{
#if defined(__x86_64__)
	uint64_t low = (uint64_t)expected, high = (uint64_t)(expected >> 64);

	__asm__ volatile("lock cmpxchg16b %0"
			 : "+m"(*(cua__bits128 *)p), "+a"(low), "+d"(high)
			 : "b"((uint64_t)desired), "c"((uint64_t)(desired >> 64))
			 : "cc", "memory");
#else
	uint64_t old_low = (uint64_t)expected, old_high = (uint64_t)(expected >> 64), low, high;
	uint32_t failed;

	/*
	 * The two words read are a consistent pair only if a store succeeds. So a mismatch stores
	 * the old pair.
	 */
	__asm__ volatile("1:	ldaxp	%0, %1, [%5]\n"
			 "	cmp	%0, %3\n"
			 "	ccmp	%1, %4, #0, eq\n"
			 "	b.ne	2f\n"
			 "	stlxp	%w2, %6, %7, [%5]\n"
			 "	cbnz	%w2, 1b\n"
			 "	b	3f\n"
			 "2:	stlxp	%w2, %0, %1, [%5]\n"
			 "	cbnz	%w2, 1b\n"
			 "3:\n"
			 : "=&r"(low), "=&r"(high), "=&r"(failed)
			 : "r"(old_low), "r"(old_high), "r"(p), "r"((uint64_t)desired),
			   "r"((uint64_t)(desired >> 64))
			 : "cc", "memory");
#endif
	return (cua__uint128)high << 64 | low;
}

CUA__PORT_PATHS(128, CUA_PATH_CAS_128, CUA_PATH_NATIVE, CUA_PATH_CAS_128)

CUA_FORCE cua__uint128 cua_port_load_b128(const void *p, CUA__WHERE)
{
	CUA__IGNORE;
	(void)order;
	return cua__host_cas_b128((void *)(uintptr_t)p, 0, 0);
}

CUA_FORCE cua__uint128 cua_port_cas_b128(void *p, cua__uint128 expected, cua__uint128 desired,
					 CUA__WHERE)
{
	CUA__IGNORE;
	(void)order;
	return cua__host_cas_b128(p, expected, desired);
}

CUA_FORCE cua__uint128 cua_port_exchange_b128(void *p, cua__uint128 v, CUA__WHERE)
{
	cua__uint128 seen = 0, before;

	CUA__IGNORE;
	(void)order;
	do {
		before = seen;
		seen = cua__host_cas_b128(p, before, v);
	} while (seen != before);
	return before;
}

CUA_FORCE void cua_port_store_b128(void *p, cua__uint128 v, CUA__WHERE)
{
	(void)cua_port_exchange_b128(p, v, order, scope, space);
}
#endif
#endif

/* The form without a result is the fetch form here. */
#define CUA__DEFINE_RED(op, suffix, T, P)                                                          \
	CUA_FORCE void cua_port_##op##_##suffix(P *p, T v, CUA__WHERE)                             \
	{                                                                                          \
		(void)cua_port_fetch_##op##_##suffix(p, v, order, scope, space);                   \
	}

#define CUA__FETCH_add(bits, success) old = __atomic_fetch_add((cua__bits##bits *)p, v, success)
#define CUA__FETCH_and(bits, success) old = __atomic_fetch_and((cua__bits##bits *)p, v, success)
#define CUA__FETCH_or(bits, success) old = __atomic_fetch_or((cua__bits##bits *)p, v, success)
#define CUA__FETCH_xor(bits, success) old = __atomic_fetch_xor((cua__bits##bits *)p, v, success)
#define CUA__DEFINE_NATIVE(op, suffix, bits, P)                                                    \
	CUA_PORT_PATH(fetch_##op##_##suffix, CUA_PATH_NATIVE)                                      \
	CUA_FORCE uint##bits##_t cua_port_fetch_##op##_##suffix(P *p, uint##bits##_t v,            \
								CUA__WHERE)                        \
	{                                                                                          \
		uint##bits##_t old;                                                                \
                                                                                                   \
		CUA__IGNORE;                                                                       \
		switch (order) {                                                                   \
		case CUA_RELAXED: CUA__FETCH_##op(bits, __ATOMIC_RELAXED); break;                  \
		case CUA_ACQUIRE: CUA__FETCH_##op(bits, __ATOMIC_ACQUIRE); break;                  \
		case CUA_RELEASE: CUA__FETCH_##op(bits, __ATOMIC_RELEASE); break;                  \
		case CUA_ACQ_REL: CUA__FETCH_##op(bits, __ATOMIC_ACQ_REL); break;                  \
		default: CUA__FETCH_##op(bits, __ATOMIC_SEQ_CST); break;                           \
		}                                                                                  \
		return old;                                                                        \
	}                                                                                          \
	CUA__DEFINE_RED(op, suffix, uint##bits##_t, P)

CUA__DEFINE_NATIVE(and, b32, 32, void)
CUA__DEFINE_NATIVE(and, b64, 64, void)
CUA__DEFINE_NATIVE(or, b32, 32, void)
CUA__DEFINE_NATIVE(or, b64, 64, void)
CUA__DEFINE_NATIVE(xor, b32, 32, void)
CUA__DEFINE_NATIVE(xor, b64, 64, void)
CUA__DEFINE_NATIVE(add, u32, 32, uint32_t)
CUA__DEFINE_NATIVE(add, u64, 64, uint64_t)

/* Operations without a processor instruction: compare-and-swap loops on the bits. */
#define CUA__DEFINE_LOOP(op, suffix, bits, T, expr)                                                \
	CUA_PORT_PATH(fetch_##op##_##suffix, CUA_PATH_CAS_##bits)                                  \
	CUA_FORCE T cua_port_fetch_##op##_##suffix(T *p, T v, CUA__WHERE)                          \
	{                                                                                          \
		uint##bits##_t seen = cua_port_load_b##bits(p, CUA_RELAXED, scope, space);         \
		uint##bits##_t before, desired;                                                    \
		T old, next;                                                                       \
                                                                                                   \
		do {                                                                               \
			before = seen;                                                             \
			memcpy(&old, &before, sizeof(old));                                        \
			next = (expr);                                                             \
			memcpy(&desired, &next, sizeof(desired));                                  \
			/* a relaxed operation that changes nothing need not own the cache line */ \
			if (desired == before && order == CUA_RELAXED)                             \
				break;                                                             \
			seen = cua_port_cas_b##bits(p, before, desired, order, scope, space);      \
		} while (seen != before);                                                          \
		return old;                                                                        \
	}                                                                                          \
	CUA__DEFINE_RED(op, suffix, T, T)

CUA__DEFINE_LOOP(add, f32, 32, float, old + v)
CUA__DEFINE_LOOP(add, f64, 64, double, old + v)
CUA__DEFINE_LOOP(inc, u32, 32, uint32_t, old >= v ? 0 : old + 1)
CUA__DEFINE_LOOP(dec, u32, 32, uint32_t, old == 0 || old > v ? v : old - 1)
CUA__DEFINE_LOOP(min, u32, 32, uint32_t, v < old ? v : old)
CUA__DEFINE_LOOP(min, i32, 32, int32_t, v < old ? v : old)
CUA__DEFINE_LOOP(min, u64, 64, uint64_t, v < old ? v : old)
CUA__DEFINE_LOOP(min, i64, 64, int64_t, v < old ? v : old)
CUA__DEFINE_LOOP(max, u32, 32, uint32_t, v > old ? v : old)
CUA__DEFINE_LOOP(max, i32, 32, int32_t, v > old ? v : old)
CUA__DEFINE_LOOP(max, u64, 64, uint64_t, v > old ? v : old)
CUA__DEFINE_LOOP(max, i64, 64, int64_t, v > old ? v : old)

/* ---- lanes and blocks ---- */

#define CUA_WARP_LANES 1

CUA_FORCE uint32_t cua_port_lane(void)
{
	return 0;
}

CUA_FORCE uint32_t cua_port_active_mask(void)
{
	return 1;
}

CUA_FORCE uint32_t cua_port_ballot(uint32_t mask, int predicate)
{
	return mask & (predicate != 0);
}

CUA_FORCE uint32_t cua_port_match_any_u32(uint32_t mask, uint32_t v)
{
	(void)v;
	return mask;
}

CUA_FORCE uint32_t cua_port_match_any_u64(uint32_t mask, uint64_t v)
{
	(void)v;
	return mask;
}

CUA_FORCE uint32_t cua_port_shuffle_u32(uint32_t mask, uint32_t v, uint32_t lane)
{
	(void)mask;
	(void)lane;
	return v;
}

CUA_FORCE uint64_t cua_port_shuffle_u64(uint32_t mask, uint64_t v, uint32_t lane)
{
	(void)mask;
	(void)lane;
	return v;
}

CUA_FORCE void cua_port_sync_warp(uint32_t mask)
{
	(void)mask;
}

CUA_FORCE uint32_t cua_port_thread(void)
{
	return 0;
}

CUA_FORCE uint32_t cua_port_block_size(void)
{
	return 1;
}

CUA_FORCE uint64_t cua_port_block(void)
{
	return 0;
}

CUA_FORCE uint64_t cua_port_grid_size(void)
{
	return 1;
}

/* The address of errno identifies the thread: in C, each thread has its own errno. */
CUA_FORCE uint64_t cua_port_grid_id(void)
{
	return (uint64_t)(uintptr_t)&errno;
}

CUA_FORCE void cua_port_sync_block(void)
{
}

CUA_FORCE int cua_port_sync_block_or(int predicate)
{
	return predicate != 0;
}

CUA_FORCE int cua_port_is_global(const void *p)
{
	(void)p;
	return 0;
}

CUA_FORCE int cua_port_is_shared(const void *p)
{
	(void)p;
	return 0;
}

/* ---- arithmetic: the library is compiled with -ffp-contract=off ---- */

CUA_FORCE uint32_t cua_port_popc_u32(uint32_t v)
{
	return (uint32_t)__builtin_popcount(v);
}

CUA_FORCE uint32_t cua_port_ffs_u32(uint32_t v)
{
	return (uint32_t)__builtin_ffs((int)v);
}

CUA_FORCE uint32_t cua_port_clz_u64(uint64_t v)
{
	return (uint32_t)__builtin_clzll(v);
}

CUA_FORCE uint64_t cua_port_mul_high_u64(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__)
	return (uint64_t)((cua__uint128)a * b >> 64);
#else
	/* from four 32-bit products */
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);

	return a1 * b1 + (middle >> 32) + ((a0 * b1 + (uint32_t)middle) >> 32);
#endif
}

CUA_FORCE uint32_t cua_port_shl_u32(uint32_t v, uint32_t by)
{
	return by < 32 ? v << by : 0;
}

CUA_FORCE float cua_port_add_rn_f32(float a, float b)
{
	return a + b;
}

CUA_FORCE float cua_port_sub_rn_f32(float a, float b)
{
	return a - b;
}

CUA_FORCE float cua_port_neg_f32(float v)
{
	return -v;
}

CUA_FORCE float cua_port_mul_rn_f32(float a, float b)
{
	return a * b;
}

CUA_FORCE float cua_port_div_rn_f32(float a, float b)
{
	return a / b;
}

CUA_FORCE double cua_port_add_rn_f64(double a, double b)
{
	return a + b;
}

CUA_FORCE double cua_port_sub_rn_f64(double a, double b)
{
	return a - b;
}

CUA_FORCE double cua_port_mul_rn_f64(double a, double b)
{
	return a * b;
}

CUA_FORCE double cua_port_div_rn_f64(double a, double b)
{
	return a / b;
}

CUA_FORCE double cua_port_fma_rn_f64(double a, double b, double c)
{
	return __builtin_fma(a, b, c);
}

CUA_FORCE double cua_port_cvt_f64_f32(float v)
{
	return v;
}

#endif /* CUATOMIC_PORT_HOST_H */
