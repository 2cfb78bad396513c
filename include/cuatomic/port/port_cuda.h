/* SPDX-License-Identifier: MIT */
/*
 * The port layer on a GPU: inline PTX, sm_70 and newer. Included by <cuatomic/port.h> only.
 *
 * Mapping, after the PTX memory model: acquire, release and acq_rel are qualifiers of the access
 * itself. seq_cst is fence.sc, followed by the access with its strongest qualifier. Every statement
 * is volatile and clobbers memory, so the compiler moves no plain access across it.
 */
#ifndef CUATOMIC_PORT_CUDA_H
#define CUATOMIC_PORT_CUDA_H

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "cuatomic needs compute capability 7.0 or newer: compile with nvcc -arch=native or -arch=sm_70"
#endif

/* Some instructions need a version of nvcc, besides the architecture. */
#define CUA__NVCC(major, minor)                                                                    \
	(__CUDACC_VER_MAJOR__ > (major) ||                                                         \
	 (__CUDACC_VER_MAJOR__ == (major) && __CUDACC_VER_MINOR__ >= (minor)))

#define CUA_READ(lvalue) (lvalue)
#define CUA_WRITE(lvalue, value) ((lvalue) = (value))

/* ---- fences, waiting, time ---- */

CUA_FORCE void cua_port_fence(enum cua_order order, enum cua_scope scope)
{
	if (order == CUA_RELAXED) {
		asm volatile("" ::: "memory");
	} else if (order == CUA_SEQ_CST) {
		if (scope == CUA_SCOPE_BLOCK)
			asm volatile("fence.sc.cta;" ::: "memory");
		else if (scope == CUA_SCOPE_DEVICE)
			asm volatile("fence.sc.gpu;" ::: "memory");
		else
			asm volatile("fence.sc.sys;" ::: "memory");
	} else {
		if (scope == CUA_SCOPE_BLOCK)
			asm volatile("fence.acq_rel.cta;" ::: "memory");
		else if (scope == CUA_SCOPE_DEVICE)
			asm volatile("fence.acq_rel.gpu;" ::: "memory");
		else
			asm volatile("fence.acq_rel.sys;" ::: "memory");
	}
}

CUA_FORCE void cua_port_pause(uint32_t ns)
{
	__nanosleep(ns);
}

CUA_FORCE void cua_port_pause_lane(uint32_t ns)
{
	(void)ns;
}

CUA_FORCE uint64_t cua_port_clock_ns(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

/* ---- atomics ---- */

/*
 * Selects the state space. CASE takes the qualifiers as a single string, the asm constraint of the
 * address, and the address.
 */
#define CUA__SPACES(CASE, qualifiers)                                                              \
	do {                                                                                       \
		if (space == CUA_SPACE_GLOBAL)                                                     \
			CASE(qualifiers ".global", "l", __cvta_generic_to_global(p));              \
		else if (space == CUA_SPACE_SHARED)                                                \
			CASE(qualifiers ".shared", "r", (uint32_t)__cvta_generic_to_shared(p));    \
		else                                                                               \
			CASE(qualifiers, "l", p);                                                  \
	} while (0)

#define CUA__SCOPES(CASE, order_qualifier)                                                         \
	do {                                                                                       \
		if (scope == CUA_SCOPE_BLOCK)                                                      \
			CUA__SPACES(CASE, order_qualifier ".cta");                                 \
		else if (scope == CUA_SCOPE_DEVICE)                                                \
			CUA__SPACES(CASE, order_qualifier ".gpu");                                 \
		else                                                                               \
			CUA__SPACES(CASE, order_qualifier ".sys");                                 \
	} while (0)

/* A read-modify-write may have any order. */
#define CUA__ORDERS(CASE)                                                                          \
	do {                                                                                       \
		if (order == CUA_SEQ_CST)                                                          \
			cua_port_fence(CUA_SEQ_CST, scope);                                        \
		if (order == CUA_RELAXED)                                                          \
			CUA__SCOPES(CASE, ".relaxed");                                             \
		else if (order == CUA_ACQUIRE)                                                     \
			CUA__SCOPES(CASE, ".acquire");                                             \
		else if (order == CUA_RELEASE)                                                     \
			CUA__SCOPES(CASE, ".release");                                             \
		else                                                                               \
			CUA__SCOPES(CASE, ".acq_rel");                                             \
	} while (0)

/* A load is relaxed or acquire. A store, or a reduction without a result, is relaxed or release. */
#define CUA__ORDERS_ONE_SIDED(CASE, strong)                                                        \
	do {                                                                                       \
		if (order == CUA_SEQ_CST)                                                          \
			cua_port_fence(CUA_SEQ_CST, scope);                                        \
		if (order == CUA_RELAXED)                                                          \
			CUA__SCOPES(CASE, ".relaxed");                                             \
		else                                                                               \
			CUA__SCOPES(CASE, strong);                                                 \
	} while (0)

#define CUA__WHERE enum cua_order order, enum cua_scope scope, enum cua_space space

#define CUA__LOAD_16(q, c, a) asm volatile("ld" q ".b16 %0, [%1];" : "=h"(v) : c(a) : "memory")
#define CUA__LOAD_32(q, c, a) asm volatile("ld" q ".b32 %0, [%1];" : "=r"(v) : c(a) : "memory")
#define CUA__LOAD_64(q, c, a) asm volatile("ld" q ".b64 %0, [%1];" : "=l"(v) : c(a) : "memory")
#define CUA__STORE_16(q, c, a) asm volatile("st" q ".b16 [%0], %1;" ::c(a), "h"(v) : "memory")
#define CUA__STORE_32(q, c, a) asm volatile("st" q ".b32 [%0], %1;" ::c(a), "r"(v) : "memory")
#define CUA__STORE_64(q, c, a) asm volatile("st" q ".b64 [%0], %1;" ::c(a), "l"(v) : "memory")
#define CUA__CAS_16(q, c, a)                                                                       \
	asm volatile("atom" q ".cas.b16 %0, [%1], %2, %3;"                                         \
		     : "=h"(old)                                                                   \
		     : c(a), "h"(expected), "h"(desired)                                           \
		     : "memory")
#define CUA__CAS_32(q, c, a)                                                                       \
	asm volatile("atom" q ".cas.b32 %0, [%1], %2, %3;"                                         \
		     : "=r"(old)                                                                   \
		     : c(a), "r"(expected), "r"(desired)                                           \
		     : "memory")
#define CUA__CAS_64(q, c, a)                                                                       \
	asm volatile("atom" q ".cas.b64 %0, [%1], %2, %3;"                                         \
		     : "=l"(old)                                                                   \
		     : c(a), "l"(expected), "l"(desired)                                           \
		     : "memory")

#define CUA__DEFINE_ACCESS(bits)                                                                   \
	CUA_PORT_PATH(load_b##bits, CUA_PATH_NATIVE)                                               \
	CUA_PORT_PATH(store_b##bits, CUA_PATH_NATIVE)                                              \
	CUA_PORT_PATH(cas_b##bits, CUA_PATH_NATIVE)                                                \
	CUA_FORCE uint##bits##_t cua_port_load_b##bits(const void *p, CUA__WHERE)                  \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
                                                                                                   \
		CUA__ORDERS_ONE_SIDED(CUA__LOAD_##bits, ".acquire");                               \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE void cua_port_store_b##bits(void *p, uint##bits##_t v, CUA__WHERE)               \
	{                                                                                          \
		CUA__ORDERS_ONE_SIDED(CUA__STORE_##bits, ".release");                              \
	}                                                                                          \
	CUA_FORCE uint##bits##_t cua_port_cas_b##bits(void *p, uint##bits##_t expected,            \
						      uint##bits##_t desired, CUA__WHERE)          \
	{                                                                                          \
		uint##bits##_t old;                                                                \
                                                                                                   \
		CUA__ORDERS(CUA__CAS_##bits);                                                      \
		return old;                                                                        \
	}
CUA__DEFINE_ACCESS(16)
CUA__DEFINE_ACCESS(32)
CUA__DEFINE_ACCESS(64)

/* In the PTX memory model, a vector access is an unordered set of accesses to its elements. */
#define CUA_PORT_HAS_2XB64 1
#define CUA__LOAD_2X64(q, c, a)                                                                    \
	asm volatile("ld" q ".v2.b64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : c(a) : "memory")
CUA_FORCE void cua_port_load_2xb64(const void *p, CUA__WHERE, uint64_t out[2])
{
	uint64_t first, second;

	CUA__ORDERS_ONE_SIDED(CUA__LOAD_2X64, ".acquire");
	out[0] = first;
	out[1] = second;
}

/*
 * fence.acquire, if available, costs no trip to memory. An acq_rel fence would also wait for
 * outstanding stores.
 */
#if __CUDA_ARCH__ >= 900 && CUA__NVCC(12, 8)
CUA_FORCE void cua_port_acquire_b32(const void *p, enum cua_scope scope, enum cua_space space)
{
	(void)p;
	(void)space;
	if (scope == CUA_SCOPE_BLOCK)
		asm volatile("fence.acquire.cta;" ::: "memory");
	else if (scope == CUA_SCOPE_DEVICE)
		asm volatile("fence.acquire.gpu;" ::: "memory");
	else
		asm volatile("fence.acquire.sys;" ::: "memory");
}
#else
CUA_FORCE void cua_port_acquire_b32(const void *p, enum cua_scope scope, enum cua_space space)
{
	(void)cua_port_load_b32(p, CUA_ACQUIRE, scope, space);
}
#endif

/* PTX has no 16-bit exchange, so this is a compare-and-swap loop. */
#define CUA_PORT_HAS_B16 1
CUA_PORT_PATH(exchange_b16, CUA_PATH_CAS_16)
CUA_FORCE uint16_t cua_port_exchange_b16(void *p, uint16_t v, CUA__WHERE)
{
	uint16_t seen = cua_port_load_b16(p, CUA_RELAXED, scope, space), before;

	do {
		before = seen;
		seen = cua_port_cas_b16(p, before, v, order, scope, space);
	} while (seen != before);
	return before;
}

/* atom, with a result: old = *p; *p = old OP v. */
#define CUA__DEFINE_ATOM(name, T, P, op, r)                                                        \
	CUA_PORT_PATH(name, CUA_PATH_NATIVE)                                                       \
	CUA_FORCE T cua_port_##name(P *p, T v, CUA__WHERE)                                         \
	{                                                                                          \
		T old;                                                                             \
                                                                                                   \
		CUA__ORDERS(CUA__ATOM_##op##_##r);                                                 \
		return old;                                                                        \
	}
/* red: the same without a result. */
#define CUA__DEFINE_RED(name, T, P, op, r)                                                         \
	CUA_FORCE void cua_port_##name(P *p, T v, CUA__WHERE)                                      \
	{                                                                                          \
		CUA__ORDERS_ONE_SIDED(CUA__RED_##op##_##r, ".release");                            \
	}

#define CUA__ATOM(text, q, c, a, r)                                                                \
	asm volatile("atom" q text " %0, [%1], %2;" : "=" r(old) : c(a), r(v) : "memory")
#define CUA__RED(text, q, c, a, r) asm volatile("red" q text " [%0], %1;" ::c(a), r(v) : "memory")

#define CUA__ATOM_exch_b32(q, c, a) CUA__ATOM(".exch.b32", q, c, a, "r")
#define CUA__ATOM_exch_b64(q, c, a) CUA__ATOM(".exch.b64", q, c, a, "l")
#define CUA__ATOM_and_b32(q, c, a) CUA__ATOM(".and.b32", q, c, a, "r")
#define CUA__ATOM_and_b64(q, c, a) CUA__ATOM(".and.b64", q, c, a, "l")
#define CUA__ATOM_or_b32(q, c, a) CUA__ATOM(".or.b32", q, c, a, "r")
#define CUA__ATOM_or_b64(q, c, a) CUA__ATOM(".or.b64", q, c, a, "l")
#define CUA__ATOM_xor_b32(q, c, a) CUA__ATOM(".xor.b32", q, c, a, "r")
#define CUA__ATOM_xor_b64(q, c, a) CUA__ATOM(".xor.b64", q, c, a, "l")
#define CUA__ATOM_add_u32(q, c, a) CUA__ATOM(".add.u32", q, c, a, "r")
#define CUA__ATOM_add_u64(q, c, a) CUA__ATOM(".add.u64", q, c, a, "l")
#define CUA__ATOM_add_f32(q, c, a) CUA__ATOM(".add.f32", q, c, a, "f")
#define CUA__ATOM_add_f64(q, c, a) CUA__ATOM(".add.f64", q, c, a, "d")
#define CUA__ATOM_inc_u32(q, c, a) CUA__ATOM(".inc.u32", q, c, a, "r")
#define CUA__ATOM_dec_u32(q, c, a) CUA__ATOM(".dec.u32", q, c, a, "r")
#define CUA__ATOM_min_u32(q, c, a) CUA__ATOM(".min.u32", q, c, a, "r")
#define CUA__ATOM_min_i32(q, c, a) CUA__ATOM(".min.s32", q, c, a, "r")
#define CUA__ATOM_min_u64(q, c, a) CUA__ATOM(".min.u64", q, c, a, "l")
#define CUA__ATOM_min_i64(q, c, a) CUA__ATOM(".min.s64", q, c, a, "l")
#define CUA__ATOM_max_u32(q, c, a) CUA__ATOM(".max.u32", q, c, a, "r")
#define CUA__ATOM_max_i32(q, c, a) CUA__ATOM(".max.s32", q, c, a, "r")
#define CUA__ATOM_max_u64(q, c, a) CUA__ATOM(".max.u64", q, c, a, "l")
#define CUA__ATOM_max_i64(q, c, a) CUA__ATOM(".max.s64", q, c, a, "l")

#define CUA__RED_and_b32(q, c, a) CUA__RED(".and.b32", q, c, a, "r")
#define CUA__RED_and_b64(q, c, a) CUA__RED(".and.b64", q, c, a, "l")
#define CUA__RED_or_b32(q, c, a) CUA__RED(".or.b32", q, c, a, "r")
#define CUA__RED_or_b64(q, c, a) CUA__RED(".or.b64", q, c, a, "l")
#define CUA__RED_xor_b32(q, c, a) CUA__RED(".xor.b32", q, c, a, "r")
#define CUA__RED_xor_b64(q, c, a) CUA__RED(".xor.b64", q, c, a, "l")
#define CUA__RED_add_u32(q, c, a) CUA__RED(".add.u32", q, c, a, "r")
#define CUA__RED_add_u64(q, c, a) CUA__RED(".add.u64", q, c, a, "l")
#define CUA__RED_add_f32(q, c, a) CUA__RED(".add.f32", q, c, a, "f")
#define CUA__RED_add_f64(q, c, a) CUA__RED(".add.f64", q, c, a, "d")
#define CUA__RED_inc_u32(q, c, a) CUA__RED(".inc.u32", q, c, a, "r")
#define CUA__RED_dec_u32(q, c, a) CUA__RED(".dec.u32", q, c, a, "r")
#define CUA__RED_min_u32(q, c, a) CUA__RED(".min.u32", q, c, a, "r")
#define CUA__RED_min_i32(q, c, a) CUA__RED(".min.s32", q, c, a, "r")
#define CUA__RED_min_u64(q, c, a) CUA__RED(".min.u64", q, c, a, "l")
#define CUA__RED_min_i64(q, c, a) CUA__RED(".min.s64", q, c, a, "l")
#define CUA__RED_max_u32(q, c, a) CUA__RED(".max.u32", q, c, a, "r")
#define CUA__RED_max_i32(q, c, a) CUA__RED(".max.s32", q, c, a, "r")
#define CUA__RED_max_u64(q, c, a) CUA__RED(".max.u64", q, c, a, "l")
#define CUA__RED_max_i64(q, c, a) CUA__RED(".max.s64", q, c, a, "l")

#define CUA__DEFINE_BOTH(op, suffix, T, P)                                                         \
	CUA__DEFINE_ATOM(fetch_##op##_##suffix, T, P, op, suffix)                                  \
	CUA__DEFINE_RED(op##_##suffix, T, P, op, suffix)

CUA__DEFINE_ATOM(exchange_b32, uint32_t, void, exch, b32)
CUA__DEFINE_ATOM(exchange_b64, uint64_t, void, exch, b64)
CUA__DEFINE_BOTH(and, b32, uint32_t, void)
CUA__DEFINE_BOTH(and, b64, uint64_t, void)
CUA__DEFINE_BOTH(or, b32, uint32_t, void)
CUA__DEFINE_BOTH(or, b64, uint64_t, void)
CUA__DEFINE_BOTH(xor, b32, uint32_t, void)
CUA__DEFINE_BOTH(xor, b64, uint64_t, void)
CUA__DEFINE_BOTH(add, u32, uint32_t, uint32_t)
CUA__DEFINE_BOTH(add, u64, uint64_t, uint64_t)
CUA__DEFINE_BOTH(add, f32, float, float)
CUA__DEFINE_BOTH(add, f64, double, double)
CUA__DEFINE_BOTH(inc, u32, uint32_t, uint32_t)
CUA__DEFINE_BOTH(dec, u32, uint32_t, uint32_t)
CUA__DEFINE_BOTH(min, u32, uint32_t, uint32_t)
CUA__DEFINE_BOTH(min, i32, int32_t, int32_t)
CUA__DEFINE_BOTH(min, u64, uint64_t, uint64_t)
CUA__DEFINE_BOTH(min, i64, int64_t, int64_t)
CUA__DEFINE_BOTH(max, u32, uint32_t, uint32_t)
CUA__DEFINE_BOTH(max, i32, int32_t, int32_t)
CUA__DEFINE_BOTH(max, u64, uint64_t, uint64_t)
CUA__DEFINE_BOTH(max, i64, int64_t, int64_t)

/* ---- 16 bits ---- */

#define CUA_PORT_HAS_ADD_F16 1
#define CUA__ATOM_add_f16(q, c, a) CUA__ATOM(".add.noftz.f16", q, c, a, "h")
#define CUA__RED_add_f16(q, c, a) CUA__RED(".add.noftz.f16", q, c, a, "h")
CUA__DEFINE_BOTH(add, f16, uint16_t, void)

#if __CUDA_ARCH__ >= 900
#define CUA_PORT_HAS_ADD_BF16 1
#define CUA__ATOM_add_bf16(q, c, a) CUA__ATOM(".add.noftz.bf16", q, c, a, "h")
#define CUA__RED_add_bf16(q, c, a) CUA__RED(".add.noftz.bf16", q, c, a, "h")
CUA__DEFINE_BOTH(add, bf16, uint16_t, void)
#endif

/* ---- two neighbours, and 128 bits ---- */

/* PTX 8.1 */
#if __CUDA_ARCH__ >= 900 && CUA__NVCC(12, 1)
#define CUA_PORT_HAS_ADD_V2_F32 1
#define CUA__RED_V2(q, c, a)                                                                       \
	asm volatile("red" q ".add.v2.f32 [%0], {%1, %2};" ::c(a), "f"(first), "f"(second)         \
		     : "memory")
CUA_FORCE void cua_port_add_v2_f32(float *p, float first, float second, enum cua_order order,
				   enum cua_scope scope)
{
	const enum cua_space space = CUA_SPACE_GLOBAL;

	CUA__ORDERS_ONE_SIDED(CUA__RED_V2, ".release");
}
#endif

/* PTX 8.4, the first version that has 128-bit accesses in system scope */
#if __CUDA_ARCH__ >= 900 && CUA__NVCC(12, 4)
#define CUA_PORT_HAS_B128 1
#define CUA__LOAD_128(q, c, a)                                                                     \
	asm volatile("{\n\t.reg .b128 v;\n\tld" q ".b128 v, [%2];\n\tmov.b128 {%0, %1}, v;\n\t}"   \
		     : "=l"(low), "=l"(high)                                                       \
		     : c(a)                                                                        \
		     : "memory")
#define CUA__STORE_128(q, c, a)                                                                    \
	asm volatile("{\n\t.reg .b128 v;\n\tmov.b128 v, {%1, %2};\n\tst" q                         \
		     ".b128 [%0], v;\n\t}" ::c(a),                                                 \
		     "l"(low), "l"(high)                                                           \
		     : "memory")
#define CUA__EXCHANGE_128(q, c, a)                                                                 \
	asm volatile("{\n\t.reg .b128 v;\n\tmov.b128 v, {%0, %1};\n\t"                             \
		     "atom" q ".exch.b128 v, [%2], v;\n\tmov.b128 {%0, %1}, v;\n\t}"               \
		     : "+l"(low), "+l"(high)                                                       \
		     : c(a)                                                                        \
		     : "memory")
#define CUA__CAS_128(q, c, a)                                                                      \
	asm volatile("{\n\t.reg .b128 e, d;\n\tmov.b128 e, {%0, %1};\n\tmov.b128 d, {%3, %4};\n\t" \
		     "atom" q ".cas.b128 e, [%2], e, d;\n\tmov.b128 {%0, %1}, e;\n\t}"             \
		     : "+l"(low), "+l"(high)                                                       \
		     : c(a), "l"(desired_low), "l"(desired_high)                                   \
		     : "memory")

CUA__PORT_NATIVE(128)

CUA_FORCE cua__uint128 cua_port_load_b128(const void *p, CUA__WHERE)
{
	uint64_t low, high;

	CUA__ORDERS_ONE_SIDED(CUA__LOAD_128, ".acquire");
	return (cua__uint128)high << 64 | low;
}

CUA_FORCE void cua_port_store_b128(void *p, cua__uint128 v, CUA__WHERE)
{
	uint64_t low = (uint64_t)v, high = (uint64_t)(v >> 64);

	CUA__ORDERS_ONE_SIDED(CUA__STORE_128, ".release");
}

CUA_FORCE cua__uint128 cua_port_exchange_b128(void *p, cua__uint128 v, CUA__WHERE)
{
	uint64_t low = (uint64_t)v, high = (uint64_t)(v >> 64);

	CUA__ORDERS(CUA__EXCHANGE_128);
	return (cua__uint128)high << 64 | low;
}

CUA_FORCE cua__uint128 cua_port_cas_b128(void *p, cua__uint128 expected, cua__uint128 desired,
					 CUA__WHERE)
{
	uint64_t low = (uint64_t)expected, high = (uint64_t)(expected >> 64);
	uint64_t desired_low = (uint64_t)desired, desired_high = (uint64_t)(desired >> 64);

	CUA__ORDERS(CUA__CAS_128);
	return (cua__uint128)high << 64 | low;
}
#endif

/* ---- lanes and blocks ---- */

#define CUA_WARP_LANES 32

CUA_FORCE uint32_t cua_port_lane(void)
{
	uint32_t lane;

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

CUA_FORCE uint32_t cua_port_active_mask(void)
{
	uint32_t mask;

	/*
	 * Only the lanes at this instruction: a called function may run at several places at once.
	 */
	asm volatile("activemask.b32 %0;" : "=r"(mask));
	return mask;
}

/*
 * Lanes that call for another mask may execute the instruction at the same moment, and nvcc 13.0
 * then returns their votes too.
 */
CUA_FORCE uint32_t cua_port_ballot(uint32_t mask, int predicate)
{
	return __ballot_sync(mask, predicate) & mask;
}

CUA_FORCE uint32_t cua_port_match_any_u32(uint32_t mask, uint32_t v)
{
	return __match_any_sync(mask, v) & mask;
}

CUA_FORCE uint32_t cua_port_match_any_u64(uint32_t mask, uint64_t v)
{
	return __match_any_sync(mask, (unsigned long long)v) & mask;
}

CUA_FORCE uint32_t cua_port_shuffle_u32(uint32_t mask, uint32_t v, uint32_t lane)
{
	return __shfl_sync(mask, v, (int)lane);
}

CUA_FORCE uint64_t cua_port_shuffle_u64(uint32_t mask, uint64_t v, uint32_t lane)
{
	return __shfl_sync(mask, (unsigned long long)v, (int)lane);
}

CUA_FORCE void cua_port_sync_warp(uint32_t mask)
{
	__syncwarp(mask);
}

CUA_FORCE uint32_t cua_port_thread(void)
{
	return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

CUA_FORCE uint32_t cua_port_block_size(void)
{
	return blockDim.x * blockDim.y * blockDim.z;
}

CUA_FORCE uint64_t cua_port_block(void)
{
	return ((uint64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

CUA_FORCE uint64_t cua_port_grid_size(void)
{
	return (uint64_t)gridDim.x * gridDim.y * gridDim.z;
}

CUA_FORCE uint64_t cua_port_grid_id(void)
{
	uint64_t id;

	asm("mov.u64 %0, %%gridid;" : "=l"(id));
	return id;
}

CUA_FORCE void cua_port_sync_block(void)
{
	__syncthreads();
}

CUA_FORCE int cua_port_sync_block_or(int predicate)
{
	return __syncthreads_or(predicate) != 0;
}

CUA_FORCE int cua_port_is_global(const void *p)
{
	return __isGlobal(p) != 0;
}

CUA_FORCE int cua_port_is_shared(const void *p)
{
	return __isShared(p) != 0;
}

/* ---- arithmetic ---- */

CUA_FORCE uint32_t cua_port_popc_u32(uint32_t v)
{
	return (uint32_t)__popc(v);
}

CUA_FORCE uint32_t cua_port_ffs_u32(uint32_t v)
{
	return (uint32_t)__ffs((int)v);
}

CUA_FORCE uint32_t cua_port_clz_u64(uint64_t v)
{
	return (uint32_t)__clzll((long long)v);
}

CUA_FORCE uint64_t cua_port_mul_high_u64(uint64_t a, uint64_t b)
{
	return __umul64hi(a, b);
}

/* In PTX, a shift by 32 or more gives 0. In C, it is undefined. */
CUA_FORCE uint32_t cua_port_shl_u32(uint32_t v, uint32_t by)
{
	asm("shl.b32 %0, %1, %2;" : "=r"(v) : "r"(v), "r"(by));
	return v;
}

/* The f32 functions are PTX, because -ftz=true would make the intrinsics flush subnormals. */
CUA_FORCE float cua_port_add_rn_f32(float a, float b)
{
	float r;

	asm("add.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
	return r;
}

CUA_FORCE float cua_port_sub_rn_f32(float a, float b)
{
	float r;

	asm("sub.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
	return r;
}

/* With -ftz=true, C's unary minus would flush subnormals. */
CUA_FORCE float cua_port_neg_f32(float v)
{
	float r;

	asm("neg.f32 %0, %1;" : "=f"(r) : "f"(v));
	return r;
}

CUA_FORCE float cua_port_mul_rn_f32(float a, float b)
{
	float r;

	asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
	return r;
}

CUA_FORCE float cua_port_div_rn_f32(float a, float b)
{
	float r;

	asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
	return r;
}

#define CUA_PORT_HAS_CVT_F16 1
CUA_FORCE uint16_t cua_port_cvt_f16_f32(float v)
{
	uint16_t bits;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
	return bits;
}

CUA_FORCE float cua_port_cvt_f32_f16(uint16_t bits)
{
	float v;

	asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
	return v;
}

#if __CUDA_ARCH__ >= 800
#define CUA_PORT_HAS_CVT_BF16 1
CUA_FORCE uint16_t cua_port_cvt_bf16_f32(float v)
{
	uint16_t bits;

	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(v));
	return bits;
}
#endif

CUA_FORCE double cua_port_add_rn_f64(double a, double b)
{
	return __dadd_rn(a, b);
}

CUA_FORCE double cua_port_sub_rn_f64(double a, double b)
{
	return __dsub_rn(a, b);
}

CUA_FORCE double cua_port_mul_rn_f64(double a, double b)
{
	return __dmul_rn(a, b);
}

CUA_FORCE double cua_port_div_rn_f64(double a, double b)
{
	return __ddiv_rn(a, b);
}

CUA_FORCE double cua_port_fma_rn_f64(double a, double b, double c)
{
	return __fma_rn(a, b, c);
}

CUA_FORCE double cua_port_cvt_f64_f32(float v)
{
	double r;

	asm("cvt.f64.f32 %0, %1;" : "=d"(r) : "f"(v));
	return r;
}

#endif /* CUATOMIC_PORT_CUDA_H */
