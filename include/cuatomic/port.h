/* SPDX-License-Identifier: MIT */
/*
 * The port layer: the only part of cuatomic that depends on the machine.
 *
 * Every algorithm of cuatomic is portable C over the functions listed here. Each function has two
 * definitions: port/port_cuda.h (inline PTX, for code that nvcc compiles for a GPU) and
 * port/port_host.h (the compiler's __atomic builtins). A translation unit that defines
 * CUA_PORT_HEADER includes that header instead, which must define the same names.
 *
 * On the host, a thread is a warp of a single lane and a block of a single thread. So warp and
 * block algorithms reduce to the plain algorithm there, without a second copy.
 *
 * Names: cua_port_<operation>_<type>. The types are named as in PTX: b32 and b64 for operations on
 * bits, u32, i32, u64, i64, f32 and f64 for arithmetic. Each atomic operation is a single
 * indivisible access to a naturally aligned object. The operations with a result, except load,
 * return the old value. The last arguments of an atomic operation, left out below, are:
 *
 *   order   its memory order. A load takes RELAXED, ACQUIRE or SEQ_CST. A store or an operation
 *           without a result takes RELAXED, RELEASE or SEQ_CST, and acquires nothing. All other
 *           operations take all five orders. A failed CAS acquires as its order says and releases
 *           nothing.
 *   scope   the threads among which it is atomic and ordered: the threads of the block, of the
 *           device, or of the system (all devices and the host). The host ignores this argument:
 *           it has a single scope.
 *   space   the state space of the object. SHARED and GLOBAL save the address test of GENERIC.
 *           GENERIC is always correct. The host ignores this argument.
 *
 * All three are constants in practice: the functions are always inlined, and a single instruction
 * remains.
 *
 *   load_b32 load_b64                    store_b32 store_b64
 *   load_2xb64(p, ..., out)              two neighbours, an access each; p is aligned to 16 bytes.
 *                                        Without CUA_PORT_HAS_2XB64, made here of two load_b64
 *   exchange_b32 exchange_b64            cas_b32 cas_b64 (p, expected, desired)
 *   fetch_{and,or,xor}_{b32,b64}         {and,or,xor}_{b32,b64}          (without result: RED)
 *   fetch_add_{u32,u64,f32,f64}          add_{u32,u64,f32,f64}
 *   fetch_{min,max}_{u32,i32,u64,i64}    {min,max}_{u32,i32,u64,i64}
 *   fetch_{inc,dec}_u32                  {inc,dec}_u32    (wrapping at the operand: 0 to v)
 *   fence(order, scope)                  all five orders; RELAXED orders nothing. Programs may call
 *                                        it: see cuatomic_memory_order(7)
 *   acquire_b32(p, scope, space)         makes the caller's last relaxed load of *p an acquire load
 *   pause(ns)                            sleep about ns nanoseconds or yield; not a fence. On a GPU
 *                                        it delays the whole warp
 *   pause_lane(ns)                       pauses the caller only. A GPU does nothing here, because a
 *                                        pause would delay the other lanes of the warp
 *   clock_ns()                           nanoseconds of this processor; host and GPU differ
 *   lane() active_mask() ballot(mask, p) match_any_u32/u64(mask, v)
 *   shuffle_u32/u64(mask, v, lane) sync_warp(mask)
 *   thread() block_size()                the number of the thread in its block, linear with x
 *                                        fastest; the number of threads in a block
 *   block() grid_size()                  the same for the block in its grid
 *   sync_block() sync_block_or(p)        the latter returns 1 if p is not 0 in any thread, else 0
 *   grid_id()                            differs between concurrent launches (on the host, threads)
 *   CUA_WARP_LANES                       32, or 1 on the host
 *   popc_u32 ffs_u32                     ffs: position of the lowest bit + 1, 0 for none
 *   clz_u64                              zero bits above the highest bit of v, v > 0
 *   shl_u32(v, by)                       0 if by is 32 or more
 *   mul_high_u64(a, b)                   the upper half of the product
 *   is_global(p) is_shared(p)            1 if a generic address is in global or in shared memory,
 *                                        else 0; 0 on the host
 *   neg_f32                              changes the sign, flushes nothing
 *   mul_rn_f32/f64 add_rn_f32/f64        one rounding each, never contracted
 *   sub_rn_f32/f64 div_rn_f32/f64
 *   fma_rn_f64(a, b, c)                  a b + c with one rounding; may call libm on the host
 *   cvt_f64_f32                          exact, flushes nothing
 *
 * A port that defines CUA_PORT_HAS_B8 or CUA_PORT_HAS_B16 has load, store, exchange and cas of that
 * width. Otherwise atomic_narrow.h makes them from the b32 operations. A GPU has b16, but not b8.
 *
 * A port that defines CUA_PORT_HAS_B128 has load, store, exchange and cas of b128, on objects
 * aligned to 16 bytes. These are GPUs of sm_90 or newer with nvcc 12.4 or newer, and hosts of
 * x86-64 (except the first processors of 2003) and of 64-bit Arm. On the host a load may write the
 * current value back, so the memory must be writable. In a .cu file the macro describes the current
 * compilation pass, so test it inside functions.
 *
 * Optional functions, each with a macro that announces it:
 *   CUA_PORT_HAS_ADD_F16, _ADD_BF16   fetch_add and add of f16 and bf16, given as bits; nothing is
 *                                     flushed
 *   CUA_PORT_HAS_ADD_V2_F32           add_v2_f32: two adds of f32 to neighbours, each atomic. The
 *                                     first is aligned to 8 bytes. Global memory only
 *   CUA_PORT_HAS_CVT_F16, _CVT_BF16   cvt_f16_f32, cvt_f32_f16, cvt_bf16_f32: conversion to the
 *                                     type named first, rounded to nearest even
 *
 * CUA_PORT_PATH(name, path) records how a function is implemented: CUA_PORT_PATH(fetch_add_u32,
 * CUA_PATH_NATIVE). The macro that defines the function invokes it, for load, store, exchange, cas
 * and the fetch forms.
 *
 * CUA_READ(lvalue) and CUA_WRITE(lvalue, value) are plain, non-atomic accesses to shared data
 * that a lock or another order protects. The macros make these accesses visible to a checker.
 */
#ifndef CUATOMIC_PORT_H
#define CUATOMIC_PORT_H

#include <cuatomic/detail/standard.h>
#include <cuatomic/types.h>

#if defined(__FAST_MATH__)
#error "cuatomic: -ffast-math changes results that these headers promise; compile without it"
#endif

/* Memory orders, with the meaning of C11's. */
enum cua_order {
	CUA_RELAXED = 0,
	CUA_ACQUIRE = 1,
	CUA_RELEASE = 2,
	CUA_ACQ_REL = 3,
	CUA_SEQ_CST = 4
};

/* Scopes: the set of threads among which an operation is atomic and ordered. */
enum cua_scope { CUA_SCOPE_BLOCK = 0, CUA_SCOPE_DEVICE = 1, CUA_SCOPE_SYSTEM = 2 };

/* State spaces of an address. */
enum cua_space { CUA_SPACE_GENERIC = 0, CUA_SPACE_GLOBAL = 1, CUA_SPACE_SHARED = 2 };

#ifdef __CUDACC__
#define CUA__TARGET __host__ __device__
#else
#define CUA__TARGET
#endif

/*
 * CUA_FN: an inline function of these headers. CUA_FORCE: a function that is always inlined.
 * CUA__RARE: a function that is never inlined, so that callers need no registers for it.
 * CUA__HOST_FN: an inline function for the host alone.
 */
#define CUA_FN CUA__TARGET static __inline__ __attribute__((unused))
#define CUA_FORCE CUA__TARGET static __inline__ __attribute__((always_inline, unused))
#define CUA__RARE CUA__TARGET static __attribute__((noinline, unused))
#define CUA__HOST_FN CUA__HOST static __inline__ __attribute__((unused))

#ifdef __cplusplus
#define CUA_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define CUA_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/*
 * CUA__UNROLL unrolls a loop over an array that must stay in registers. At -O2, GCC would keep the
 * array in memory. CUA__ROLLED keeps a rare loop of a kernel from being unrolled, which would
 * displace other code from the instruction cache.
 */
#ifdef __CUDA_ARCH__
#define CUA__UNROLL _Pragma("unroll")
#define CUA__ROLLED _Pragma("unroll 1")
#elif defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__) && !defined(__CUDACC__) &&         \
	!defined(CUA_PORT_HEADER)
#define CUA__UNROLL _Pragma("GCC unroll 8")
#define CUA__ROLLED
#else
#define CUA__UNROLL
#define CUA__ROLLED
#endif

/* The mask of all lanes of a whole warp. */
#define CUA__ALL_LANES 0xffffffffu

/*
 * CUA__UNIT_WORD(name) defines a 64-bit variable of the translation unit, initially 0. The host has
 * an instance and, in CUDA code, each device has its own. CUA__UNIT_AT(name) is the address of the
 * instance of the code that uses it.
 */
#ifdef __CUDACC_RTC__
#define CUA__UNIT_WORD(name) static __device__ __attribute__((unused)) uint64_t name##_device
#elif defined(__CUDACC__)
#define CUA__UNIT_WORD(name)                                                                       \
	static __device__ __attribute__((unused)) uint64_t name##_device;                          \
	static __attribute__((unused)) uint64_t name
#else
#define CUA__UNIT_WORD(name) static __attribute__((unused)) uint64_t name
#endif
#ifdef __CUDA_ARCH__
#define CUA__UNIT_AT(name) (&name##_device)
#else
#define CUA__UNIT_AT(name) (&name)
#endif

/* Records how a function of the port is implemented, as a constant of enum cua_atomic_path. */
#define CUA_PORT_PATH(name, path) enum { cua__port_path_##name = (path) };
#define CUA__PORT_PATHS(bits, access, cas, exchange)                                               \
	CUA_PORT_PATH(load_b##bits, access)                                                        \
	CUA_PORT_PATH(store_b##bits, access)                                                       \
	CUA_PORT_PATH(exchange_b##bits, exchange)                                                  \
	CUA_PORT_PATH(cas_b##bits, cas)
#define CUA__PORT_NATIVE(bits)                                                                     \
	CUA__PORT_PATHS(bits, CUA_PATH_NATIVE, CUA_PATH_NATIVE, CUA_PATH_NATIVE)

/* Pastes two names after they expand. */
#define CUA__JOIN(a, b) CUA__JOIN_EXPANDED(a, b)
#define CUA__JOIN_EXPANDED(a, b) a##b

/* Types of bits, under names that macros can paste from a width. */
typedef uint8_t cua__uint8;
typedef uint16_t cua__uint16;
typedef uint32_t cua__uint32;
typedef uint64_t cua__uint64;
/* CUA__HAS_UINT128 announces cua__uint128. */
#if defined(__CUDACC_RTC__)
#define CUA__HAS_UINT128 1
#include <cuatomic/detail/uint128.h>
#elif defined(__SIZEOF_INT128__)
#define CUA__HAS_UINT128 1
__extension__ typedef unsigned __int128 cua__uint128;
#endif

#if defined(CUA_PORT_HEADER)
#include CUA_PORT_HEADER
#elif defined(__CUDA_ARCH__)
#include <cuatomic/port/port_cuda.h>
#else
#include <cuatomic/port/port_host.h>
#endif

#if !defined(CUA_PORT_HAS_2XB64)
CUA_FORCE void cua_port_load_2xb64(const void *p, enum cua_order order, enum cua_scope scope,
				   enum cua_space space, uint64_t out[2])
{
	out[0] = cua_port_load_b64(p, order, scope, space);
	out[1] = cua_port_load_b64((const char *)p + 8, order, scope, space);
}
#endif

#if !defined(CUA_PORT_HAS_B128) && defined(CUA__HAS_UINT128)
/*
 * No function with this name is defined. If code for a machine without 128-bit instructions uses
 * them, the compiler or the linker fails with this name in its message. Host code in a .cu file
 * compiles even if the GPU lacks them.
 */
#ifdef __cplusplus
extern "C" {
#endif
CUA__TARGET cua__uint128
cua__no_128_bit_atomics_on_this_machine__use_the_striped_ones_of_stripe_h(void)
#if !defined(__CUDACC__) && defined(__has_attribute)
#if __has_attribute(error)
	__attribute__((error(
		"no 128-bit atomics on this machine: use the striped ones of <cuatomic/stripe.h>")))
#endif
#endif
	;
#ifdef __cplusplus
}
#endif

CUA__PORT_PATHS(128, CUA_PATH_STRIPE, CUA_PATH_STRIPE, CUA_PATH_STRIPE)

CUA_FORCE cua__uint128 cua__refused_b128(const void *p, enum cua_order order, enum cua_scope scope,
					 enum cua_space space)
{
	(void)p;
	(void)order;
	(void)scope;
	(void)space;
	return cua__no_128_bit_atomics_on_this_machine__use_the_striped_ones_of_stripe_h();
}

CUA_FORCE cua__uint128 cua_port_load_b128(const void *p, enum cua_order order, enum cua_scope scope,
					  enum cua_space space)
{
	return cua__refused_b128(p, order, scope, space);
}

CUA_FORCE void cua_port_store_b128(void *p, cua__uint128 v, enum cua_order order,
				   enum cua_scope scope, enum cua_space space)
{
	(void)v;
	(void)cua__refused_b128(p, order, scope, space);
}

CUA_FORCE cua__uint128 cua_port_exchange_b128(void *p, cua__uint128 v, enum cua_order order,
					      enum cua_scope scope, enum cua_space space)
{
	(void)v;
	return cua__refused_b128(p, order, scope, space);
}

CUA_FORCE cua__uint128 cua_port_cas_b128(void *p, cua__uint128 expected, cua__uint128 desired,
					 enum cua_order order, enum cua_scope scope,
					 enum cua_space space)
{
	(void)expected;
	(void)desired;
	return cua__refused_b128(p, order, scope, space);
}
#endif

/*
 * Exponential backoff of a waiter. A pause is random between half the limit and the limit, so that
 * waiters spread out. The limit is 32 ns for the first pause and doubles with each pause, up to
 * about 1 us.
 */
struct cua_backoff {
	uint32_t ns;   /* the limit of the next pause */
	uint32_t seed; /* of the random numbers */
};

CUA_FN void cua_backoff_init(struct cua_backoff *b)
{
	b->ns = 32;
	b->seed = cua_port_thread() * 2654435761u + (uint32_t)cua_port_block() * 40503u + 1u;
}

/*
 * Returns the next pause, random between b->ns / 2 and b->ns. Then doubles b->ns if it is below
 * `longest`.
 */
CUA_FN uint32_t cua__backoff_next(struct cua_backoff *b, uint32_t longest)
{
	uint32_t ns;

	b->seed = b->seed * 1664525u + 1013904223u;
	ns = b->ns / 2 + (b->seed >> 16) % (b->ns / 2 + 1);
	if (b->ns < longest)
		b->ns *= 2;
	return ns;
}

/* Pauses, with a backoff limit of `longest` ns. */
CUA_FN void cua__backoff_wait_upto(struct cua_backoff *b, uint32_t longest)
{
	cua_port_pause(cua__backoff_next(b, longest));
}

/*
 * The same for many waiters that compete for a word. On a GPU (measured on an H200), waiters with
 * similar pauses wake at the same moment, even with random jitter, and then only one of them
 * succeeds. Pauses split into pieces of 256 ns and a remainder do not synchronize the waiters.
 */
CUA_FN void cua__backoff_wait_apart(struct cua_backoff *b, uint32_t longest)
{
	uint32_t ns = cua__backoff_next(b, longest);

	if (CUA_WARP_LANES > 1)
		for (; ns > 256; ns -= 256)
			cua_port_pause(256);
	cua_port_pause(ns);
}

/* Pauses, with a backoff limit of 1024 ns. */
CUA_FN void cua_backoff_wait(struct cua_backoff *b)
{
	cua__backoff_wait_upto(b, 1024);
}

/*
 * Pauses between two polls of a waiter in a queue, which must not sleep past its turn. So on a GPU
 * 15 of 16 polls do not pause. Every 16th poll pauses for 32 ns. Without any pause, a GPU may never
 * run the other lanes of a diverged warp, and one of these may hold the lock or be next to get it.
 * The locks' guarantee of progress depends on this pause. Sections wait by cua__section_turn_wait.
 */
CUA_FORCE void cua__wait_turn(uint32_t *polls)
{
	if (++*polls % 16 == 0)
		cua_port_pause(32);
	else
		cua_port_pause_lane(*polls < 64 ? 32 : 64);
}

/*
 * The lanes of mask with the caller's address. The common case, the same address in all lanes,
 * avoids the match.
 */
CUA_FORCE uint32_t cua__warp_peers(uint32_t mask, const void *p)
{
	uint64_t address = (uint64_t)(uintptr_t)p;
	uint64_t first = cua_port_shuffle_u64(mask, address, cua_port_ffs_u32(mask) - 1);

	if (cua_port_ballot(mask, address == first) == mask)
		return mask;
	return cua_port_match_any_u64(mask, address);
}

/* The highest lane of a mask that is not empty. */
CUA_FORCE uint32_t cua__warp_highest(uint32_t mask)
{
	mask |= mask >> 1;
	mask |= mask >> 2;
	mask |= mask >> 4;
	mask |= mask >> 8;
	mask |= mask >> 16;
	return cua_port_popc_u32(mask) - 1;
}

/* The lanes of mask below the caller. */
CUA_FORCE uint32_t cua__warp_below(uint32_t mask)
{
	return mask & ((1u << cua_port_lane()) - 1);
}

/*
 * The active lanes that call together. The earlier accesses of each are ordered before the later
 * accesses of all. The barrier is the first instruction after the mask is known: lanes that the
 * compiler splits before it would not meet again.
 */
CUA_FORCE uint32_t cua__warp_meet(void)
{
	const uint32_t mask = cua_port_active_mask();

	cua_port_sync_warp(mask);
	return mask;
}

/*
 * A lane's part in a reduction over lanes. In each round, a remaining lane combines with the next
 * remaining lane above it. Then every second remaining lane drops out.
 */
struct cua__warp_rounds {
	uint32_t above; /* the remaining lanes above */
	uint32_t rank;  /* the number of remaining lanes below */
};

CUA_FORCE struct cua__warp_rounds cua__warp_rounds_of(uint32_t lanes, uint32_t lane)
{
	struct cua__warp_rounds r;

	r.above = lanes & ~((2u << lane) - 1);
	r.rank = cua_port_popc_u32(lanes & ((1u << lane) - 1));
	return r;
}

/* The next remaining lane above, or the caller's lane if there is none. */
CUA_FORCE uint32_t cua__warp_rounds_next(const struct cua__warp_rounds *r, uint32_t lane)
{
	return r->above ? cua_port_ffs_u32(r->above) - 1 : lane;
}

CUA_FORCE void cua__warp_rounds_drop(struct cua__warp_rounds *r, uint32_t mask)
{
	r->above &= cua_port_ballot(mask, !(r->rank & 1));
	r->rank /= 2;
}

#endif /* CUATOMIC_PORT_H */
