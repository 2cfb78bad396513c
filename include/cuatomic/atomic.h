/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations on uint32_t, int32_t, uint64_t, int64_t, float and double. A macro defines any
 * other read-modify-write by compare-and-swap.
 *
 * Source: the operations of C11's <stdatomic.h> and of CUDA's atomicAdd family. The
 * compare-and-swap loop is from Sanders and Kandrot, CUDA by Example, appendix A, made safe for
 * NaN.
 *
 * T stands for the suffix of a type: u32, i32, u64, i64, f32 or f64. The functions return the old
 * value, `old`, except store and the forms without a result:
 *
 *   cua_atomic_load_T(p)
 *   cua_atomic_store_T(p, v)
 *   cua_atomic_exchange_T(p, v)
 *   cua_atomic_compare_exchange_T(p, expected, desired)  stores desired if old == expected; floats
 *                                                        are compared as bits, not as values
 *   cua_atomic_fetch_{add,sub,mul,min,max}_T(p, v)
 *   cua_atomic_fetch_div_T(p, v)                         floats only
 *   cua_atomic_fetch_{and,or,xor,nand}_T(p, v)           integers only
 *   cua_atomic_fetch_inc_T(p, v)                         unsigned only: 0 if old >= v, else old + 1
 *   cua_atomic_fetch_dec_T(p, v)                         unsigned only: v if old is 0 or old > v,
 *                                                        else old - 1
 *   cua_atomic_{add,sub,min,max}_T(p, v)                 without a result: faster on a GPU
 *   cua_atomic_{and,or,xor}_T(p, v)                      integers only, without a result
 *   cua_atomic_{inc,dec}_T(p, v)                         unsigned only, without a result
 *   cua_atomic_fetch_add_cas_{f32,f64}(p, v)             the same as fetch_add, by compare-and-swap
 *
 * Further headers of the family: atomic_narrow.h for uint8_t, int8_t, uint16_t and int16_t,
 * atomic_half.h for 16-bit floats, atomic_b128.h for 128 bits, atomic_complex.h for complex
 * numbers, and atomic_warp.h for operations aggregated in a warp or block. Use atomic_warp.h if
 * many lanes use the same address.
 *
 * These functions are relaxed and of device scope, like CUDA's atomicAdd. The second form,
 * _explicit, takes order, scope and space at the end:
 * cua_atomic_fetch_add_explicit_u32(p, v, order, scope, space). The space is the state space of the
 * object. CUA_SPACE_GENERIC is always correct, and the first form uses it. If a kernel knows that
 * the object is in global or in shared memory, CUA_SPACE_GLOBAL or CUA_SPACE_SHARED saves the GPU a
 * test of the address. A wrong space is undefined behaviour. The host ignores the space.
 * CUA_ATOMIC_PATH below says how an operation is implemented.
 *
 * An object is a plain variable, aligned to its size, in global or shared memory or on the host. A
 * plain assignment initializes it before it is shared.
 *
 * Synchronization of two accesses to the same object. X: the caller must order the accesses.
 * -: the accesses may run concurrently.
 *
 *                            plain access  cua_atomic_*
 *     plain read                  -             X       (-: if all of the atomics are loads)
 *     plain write                 X             X
 *     cua_atomic_*                X             -
 *
 * Scope: the device, or the given scope. Concurrent operations on an object must all name a scope
 *   that includes all threads that use the object.
 * Memory order: relaxed, or the given order, with the meaning of C11. A load takes CUA_RELAXED,
 *   CUA_ACQUIRE or CUA_SEQ_CST, and a store CUA_RELAXED, CUA_RELEASE or CUA_SEQ_CST. All other
 *   operations take any order. A failed compare_exchange is a load: it keeps the acquire of its
 *   order, and releases nothing. If its order includes acquire, a form without a result runs as the
 *   fetch form.
 * Progress: wait-free if the machine has the instruction. A compare-and-swap loop is lock-free, and
 *   any lane of a diverged warp may run it. A GPU has instructions for load, store, exchange,
 *   compare_exchange, add and sub. For integers, it also has min, max, and, or and xor, and for u32
 *   inc and dec. All mul, div and nand, min and max of floats, and inc and dec of u64 are loops.
 * Argument: the last compare-and-swap of a loop succeeds only on the bits that the new value was
 *   computed from, so no other operation came between. It has the requested order. It compares
 *   bits, because a NaN never equals itself. A loop ends without a store if the new bits equal the
 *   old bits and the order is relaxed or acquire. Then the last read, which has that order, is the
 *   operation. With any other order the loop stores, so that other threads can acquire from this
 *   object.
 *
 * Values: Integers wrap around, signed integers too. add, sub, mul and div of floats round once, to
 *   nearest even. On a GPU the native add_f32 and sub_f32 in global memory flush subnormal operands
 *   and results to zeros of their sign. In shared memory, on the host, and in fetch_add_cas, mul
 *   and div nothing is flushed. The sign and payload of a NaN result depend on the machine. min and
 *   max of floats: a NaN operand is ignored, and any number replaces a NaN in memory. If both are
 *   NaN, the memory is unchanged. -0 is less than +0. Subnormals are not flushed.
 */
#ifndef CUATOMIC_ATOMIC_H
#define CUATOMIC_ATOMIC_H

#include <cuatomic/detail/float_bits.h>
#include <cuatomic/port.h>

#define CUA__TYPE_u32 uint32_t
#define CUA__TYPE_i32 int32_t
#define CUA__TYPE_u64 uint64_t
#define CUA__TYPE_i64 int64_t
#define CUA__TYPE_f32 float
#define CUA__TYPE_f64 double
#define CUA__BITS_u32 32
#define CUA__BITS_i32 32
#define CUA__BITS_u64 64
#define CUA__BITS_i64 64
#define CUA__BITS_f32 32
#define CUA__BITS_f64 64

CUA_FORCE float cua__negative_f32(float v)
{
	return cua_port_neg_f32(v);
}

CUA_FORCE double cua__negative_f64(double v)
{
	return -v;
}

/* ---- paths ---- */

/*
 * CUA_ATOMIC_PATH(operation, suffix) is a constant of type enum cua_atomic_path. It says how
 * cua_atomic_<operation>_<suffix> is implemented in the current compilation pass, as in
 * CUA_ATOMIC_PATH(fetch_add, f32). The operation is the form with a result; the form without a
 * result is never slower. If the suffix has no such operation, the macro does not compile. The
 * macros that define the operation, or the port's macros below them, set the constant. In a .cu
 * file the host's pass and the GPU's passes differ, so use it inside functions.
 */
#define CUA_ATOMIC_PATH(operation, suffix)                                                         \
	((enum cua_atomic_path)cua__path_cua_atomic_##operation##_##suffix)

#define CUA__PATH_OF(name, path) enum { cua__path_##name = (path) };
#define CUA__LOOP_PATH(bits)                                                                       \
	((int)cua__port_path_cas_b##bits == (int)CUA_PATH_NATIVE                                   \
		 ? (int)CUA_PATH_CAS_##bits                                                        \
		 : (int)cua__port_path_cas_b##bits)

/* ---- any read-modify-write ---- */

/*
 * CUA_DEFINE_ATOMIC(name, suffix, expression)
 *
 * Defines, at file scope and with no semicolon after it,
 *
 *   T name(T *p, T operand)                                        relaxed, device scope
 *   T name_explicit(T *p, T operand, enum cua_order order, enum cua_scope scope,
 *                   enum cua_space space)
 *
 * where suffix is u32, i32, u64, i64, f32 or f64 and T its type. Both set *p to the value of
 * the expression in a single indivisible step and return the old value. The expression uses `old`,
 * the value of *p, and `operand`. A call may evaluate it several times, so it must have no side
 * effects. If the function is used on a GPU, the functions in the expression must be compiled for
 * it too (CUA_FN).
 *
 *   CUA_DEFINE_ATOMIC(wrap_inc, u32, old >= operand ? 0 : old + 1)
 *
 * CUA_DEFINE_ATOMIC_STRUCT(name, type, bits, expression) is the same for a type, such as a struct,
 * of exactly 32 or 64 bits that is aligned to its size. With atomic_b128.h, the type may also have
 * 128 bits. The expression, usually a call, has that type. For wider types, use
 * CUA_DEFINE_ATOMIC_STRIPED of stripe.h.
 */
#define CUA_DEFINE_ATOMIC(name, suffix, expression)                                                \
	CUA__DEFINE_LOOP_OF(name, name##_explicit, CUA__TYPE_##suffix, CUA__BITS_##suffix,         \
			    expression)

#define CUA_DEFINE_ATOMIC_STRUCT(name, type, bits, expression)                                     \
	CUA_STATIC_ASSERT(sizeof(type) * 8 == (bits), "the type must have exactly so many bits");  \
	CUA_STATIC_ASSERT(__alignof__(type) * 8 >= (bits),                                         \
			  "the type must be aligned to its size");                                 \
	CUA__DEFINE_LOOP_OF(name, name##_explicit, type, bits, expression)

/* Lets the arguments expand before they are pasted. */
#define CUA__DEFINE_LOOP_OF(name, name_explicit, T, bits, expression)                              \
	CUA__DEFINE_CAS_LOOP(name, name_explicit, T, bits, expression)

#define CUA__DEFINE_CAS_LOOP(name, name_explicit, T, bits, expression)                             \
	CUA__PATH_OF(name, CUA__LOOP_PATH(bits))                                                   \
	CUA_FORCE T cua__next_##name(T old, T operand)                                             \
	{                                                                                          \
		(void)old;                                                                         \
		(void)operand;                                                                     \
		return (expression);                                                               \
	}                                                                                          \
	CUA_FORCE T name_explicit(T *p, T operand, enum cua_order order, enum cua_scope scope,     \
				  enum cua_space space)                                            \
	{                                                                                          \
		enum cua_order first = order == CUA_ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED;           \
		cua__uint##bits seen = cua_port_load_b##bits(p, first, scope, space);              \
		cua__uint##bits before, desired;                                                   \
		T old, next;                                                                       \
                                                                                                   \
		do {                                                                               \
			before = seen;                                                             \
			memcpy(&old, &before, sizeof(old));                                        \
			next = cua__next_##name(old, operand);                                     \
			memcpy(&desired, &next, sizeof(desired));                                  \
			if (desired == before && (order == CUA_RELAXED || order == CUA_ACQUIRE))   \
				break;                                                             \
			seen = cua_port_cas_b##bits(p, before, desired, order, scope, space);      \
		} while (seen != before);                                                          \
		return old;                                                                        \
	}                                                                                          \
	CUA_FORCE T name(T *p, T operand)                                                          \
	{                                                                                          \
		return name_explicit(p, operand, CUA_RELAXED, CUA_SCOPE_DEVICE,                    \
				     CUA_SPACE_GENERIC);                                           \
	}

/* ---- load, store, exchange, compare_exchange ---- */

#define CUA__DEFINE_ATOMIC_LOAD_STORE(s, T, bits)                                                  \
	CUA__PATH_OF(cua_atomic_load_##s, cua__port_path_load_b##bits)                             \
	CUA__PATH_OF(cua_atomic_store_##s, cua__port_path_store_b##bits)                           \
	CUA_FORCE T cua_atomic_load_explicit_##s(const T *p, enum cua_order order,                 \
						 enum cua_scope scope, enum cua_space space)       \
	{                                                                                          \
		cua__uint##bits seen = cua_port_load_b##bits(p, order, scope, space);              \
		T v;                                                                               \
                                                                                                   \
		memcpy(&v, &seen, sizeof(v));                                                      \
		return v;                                                                          \
	}                                                                                          \
	CUA_FORCE T cua_atomic_load_##s(const T *p)                                                \
	{                                                                                          \
		return cua_atomic_load_explicit_##s(p, CUA_RELAXED, CUA_SCOPE_DEVICE,              \
						    CUA_SPACE_GENERIC);                            \
	}                                                                                          \
	CUA_FORCE void cua_atomic_store_explicit_##s(T *p, T v, enum cua_order order,              \
						     enum cua_scope scope, enum cua_space space)   \
	{                                                                                          \
		cua__uint##bits desired;                                                           \
                                                                                                   \
		memcpy(&desired, &v, sizeof(desired));                                             \
		cua_port_store_b##bits(p, desired, order, scope, space);                           \
	}                                                                                          \
	CUA_FORCE void cua_atomic_store_##s(T *p, T v)                                             \
	{                                                                                          \
		cua_atomic_store_explicit_##s(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,                 \
					      CUA_SPACE_GENERIC);                                  \
	}

#define CUA__DEFINE_ATOMIC_EXCHANGE(s, T, bits)                                                    \
	CUA__PATH_OF(cua_atomic_exchange_##s, cua__port_path_exchange_b##bits)                     \
	CUA__PATH_OF(cua_atomic_compare_exchange_##s, cua__port_path_cas_b##bits)                  \
	CUA_FORCE T cua_atomic_exchange_explicit_##s(T *p, T v, enum cua_order order,              \
						     enum cua_scope scope, enum cua_space space)   \
	{                                                                                          \
		cua__uint##bits desired, seen;                                                     \
		T old;                                                                             \
                                                                                                   \
		memcpy(&desired, &v, sizeof(desired));                                             \
		seen = cua_port_exchange_b##bits(p, desired, order, scope, space);                 \
		memcpy(&old, &seen, sizeof(old));                                                  \
		return old;                                                                        \
	}                                                                                          \
	CUA_FORCE T cua_atomic_exchange_##s(T *p, T v)                                             \
	{                                                                                          \
		return cua_atomic_exchange_explicit_##s(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,       \
							CUA_SPACE_GENERIC);                        \
	}                                                                                          \
	CUA_FORCE T cua_atomic_compare_exchange_explicit_##s(                                      \
		T *p, T expected, T desired, enum cua_order order, enum cua_scope scope,           \
		enum cua_space space)                                                              \
	{                                                                                          \
		cua__uint##bits before, after, seen;                                               \
		T old;                                                                             \
                                                                                                   \
		memcpy(&before, &expected, sizeof(before));                                        \
		memcpy(&after, &desired, sizeof(after));                                           \
		seen = cua_port_cas_b##bits(p, before, after, order, scope, space);                \
		memcpy(&old, &seen, sizeof(old));                                                  \
		return old;                                                                        \
	}                                                                                          \
	CUA_FORCE T cua_atomic_compare_exchange_##s(T *p, T expected, T desired)                   \
	{                                                                                          \
		return cua_atomic_compare_exchange_explicit_##s(                                   \
			p, expected, desired, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);   \
	}

#define CUA__DEFINE_ATOMIC_ACCESS(s, T, bits)                                                      \
	CUA__DEFINE_ATOMIC_LOAD_STORE(s, T, bits)                                                  \
	CUA__DEFINE_ATOMIC_EXCHANGE(s, T, bits)

CUA__DEFINE_ATOMIC_ACCESS(u32, uint32_t, 32)
CUA__DEFINE_ATOMIC_ACCESS(i32, int32_t, 32)
CUA__DEFINE_ATOMIC_ACCESS(u64, uint64_t, 64)
CUA__DEFINE_ATOMIC_ACCESS(i64, int64_t, 64)
CUA__DEFINE_ATOMIC_ACCESS(f32, float, 32)
CUA__DEFINE_ATOMIC_ACCESS(f64, double, 64)

/* ---- operations that the port has, with and without a result ---- */

/*
 * operand: v converted for the port's function. The result is converted back to T. Neither
 * conversion loses a value.
 */
#define CUA__DEFINE_ATOMIC_FETCH(op, s, T, port, P, operand)                                       \
	CUA__PATH_OF(cua_atomic_fetch_##op##_##s, cua__port_path_fetch_##port)                     \
	CUA_FORCE T cua_atomic_fetch_##op##_explicit_##s(                                          \
		T *p, T v, enum cua_order order, enum cua_scope scope, enum cua_space space)       \
	{                                                                                          \
		return (T)cua_port_fetch_##port((P *)p, operand, order, scope, space);             \
	}                                                                                          \
	CUA_FORCE void cua_atomic_##op##_explicit_##s(T *p, T v, enum cua_order order,             \
						      enum cua_scope scope, enum cua_space space)  \
	{                                                                                          \
		/* PTX's red, which has no result, cannot acquire */                               \
		if (order == CUA_RELAXED || order == CUA_RELEASE)                                  \
			cua_port_##port((P *)p, operand, order, scope, space);                     \
		else                                                                               \
			(void)cua_port_fetch_##port((P *)p, operand, order, scope, space);         \
	}                                                                                          \
	CUA__DEFINE_ATOMIC_RELAXED(op, s, T)

/* The relaxed forms of an operation, with and without a result, by the explicit forms. */
#define CUA__DEFINE_ATOMIC_RELAXED(op, s, T)                                                       \
	CUA_FORCE T cua_atomic_fetch_##op##_##s(T *p, T v)                                         \
	{                                                                                          \
		return cua_atomic_fetch_##op##_explicit_##s(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,   \
							    CUA_SPACE_GENERIC);                    \
	}                                                                                          \
	CUA_FORCE void cua_atomic_##op##_##s(T *p, T v)                                            \
	{                                                                                          \
		cua_atomic_##op##_explicit_##s(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,                \
					       CUA_SPACE_GENERIC);                                 \
	}

#define CUA__DEFINE_ATOMIC_INTEGER(s, T, bits)                                                     \
	CUA__DEFINE_ATOMIC_FETCH(add, s, T, add_u##bits, uint##bits##_t, (uint##bits##_t)v)        \
	CUA__DEFINE_ATOMIC_FETCH(sub, s, T, add_u##bits, uint##bits##_t, 0 - (uint##bits##_t)v)    \
	CUA__DEFINE_ATOMIC_FETCH(min, s, T, min_##s, T, v)                                         \
	CUA__DEFINE_ATOMIC_FETCH(max, s, T, max_##s, T, v)                                         \
	CUA__DEFINE_ATOMIC_FETCH(and, s, T, and_b##bits, void, (uint##bits##_t)v)                  \
	CUA__DEFINE_ATOMIC_FETCH(or, s, T, or_b##bits, void, (uint##bits##_t)v)                    \
	CUA__DEFINE_ATOMIC_FETCH(xor, s, T, xor_b##bits, void, (uint##bits##_t)v)

CUA__DEFINE_ATOMIC_INTEGER(u32, uint32_t, 32)
CUA__DEFINE_ATOMIC_INTEGER(i32, int32_t, 32)
CUA__DEFINE_ATOMIC_INTEGER(u64, uint64_t, 64)
CUA__DEFINE_ATOMIC_INTEGER(i64, int64_t, 64)
CUA__DEFINE_ATOMIC_FETCH(inc, u32, uint32_t, inc_u32, uint32_t, v)
CUA__DEFINE_ATOMIC_FETCH(dec, u32, uint32_t, dec_u32, uint32_t, v)
CUA__DEFINE_ATOMIC_FETCH(add, f32, float, add_f32, float, v)
CUA__DEFINE_ATOMIC_FETCH(add, f64, double, add_f64, double, v)
CUA__DEFINE_ATOMIC_FETCH(sub, f32, float, add_f32, float, cua__negative_f32(v))
CUA__DEFINE_ATOMIC_FETCH(sub, f64, double, add_f64, double, cua__negative_f64(v))

/* ---- operations that the port lacks, by compare-and-swap loops ---- */

/* Defines all forms with a result. */
#define CUA__DEFINE_ATOMIC_LOOP(op, s, expression)                                                 \
	CUA__DEFINE_LOOP_OF(cua_atomic_fetch_##op##_##s, cua_atomic_fetch_##op##_explicit_##s,     \
			    CUA__TYPE_##s, CUA__BITS_##s, expression)

CUA__DEFINE_ATOMIC_LOOP(mul, u32, old *operand)
CUA__DEFINE_ATOMIC_LOOP(mul, i32, (int32_t)((uint32_t)old *(uint32_t)operand))
CUA__DEFINE_ATOMIC_LOOP(mul, u64, old *operand)
CUA__DEFINE_ATOMIC_LOOP(mul, i64, (int64_t)((uint64_t)old *(uint64_t)operand))
CUA__DEFINE_ATOMIC_LOOP(mul, f32, cua_port_mul_rn_f32(old, operand))
CUA__DEFINE_ATOMIC_LOOP(mul, f64, cua_port_mul_rn_f64(old, operand))

CUA__DEFINE_ATOMIC_LOOP(div, f32, cua_port_div_rn_f32(old, operand))
CUA__DEFINE_ATOMIC_LOOP(div, f64, cua_port_div_rn_f64(old, operand))

CUA__DEFINE_ATOMIC_LOOP(nand, u32, ~(old &operand))
CUA__DEFINE_ATOMIC_LOOP(nand, i32, ~(old &operand))
CUA__DEFINE_ATOMIC_LOOP(nand, u64, ~(old &operand))
CUA__DEFINE_ATOMIC_LOOP(nand, i64, ~(old &operand))

CUA__DEFINE_ATOMIC_LOOP(inc, u64, old >= operand ? 0 : old + 1)
CUA__DEFINE_ATOMIC_LOOP(dec, u64, old == 0 || old > operand ? operand : old - 1)

CUA__DEFINE_ATOMIC_LOOP(add_cas, f32, cua_port_add_rn_f32(old, operand))
CUA__DEFINE_ATOMIC_LOOP(add_cas, f64, cua_port_add_rn_f64(old, operand))

/*
 * Ranks floats as integers, so that compiler flags that flush subnormals have no effect:
 * -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
 */
CUA_FORCE int32_t cua__rank_f32(float v)
{
	return (int32_t)cua__ranked_f32(cua__bits_f32(v));
}

CUA_FORCE int64_t cua__rank_f64(double v)
{
	return (int64_t)cua__ranked_f64(cua__bits_f64(v));
}

/* Whether v replaces old. */
#define CUA__DEFINE_WINS(s, T)                                                                     \
	CUA_FORCE int cua__min_wins_##s(T v, T old)                                                \
	{                                                                                          \
		return !cua__is_nan_##s(v) &&                                                      \
		       (cua__is_nan_##s(old) || cua__rank_##s(v) < cua__rank_##s(old));            \
	}                                                                                          \
	CUA_FORCE int cua__max_wins_##s(T v, T old)                                                \
	{                                                                                          \
		return !cua__is_nan_##s(v) &&                                                      \
		       (cua__is_nan_##s(old) || cua__rank_##s(v) > cua__rank_##s(old));            \
	}
CUA__DEFINE_WINS(f32, float)
CUA__DEFINE_WINS(f64, double)

CUA__DEFINE_ATOMIC_LOOP(min, f32, cua__min_wins_f32(operand, old) ? operand : old)
CUA__DEFINE_ATOMIC_LOOP(min, f64, cua__min_wins_f64(operand, old) ? operand : old)
CUA__DEFINE_ATOMIC_LOOP(max, f32, cua__max_wins_f32(operand, old) ? operand : old)
CUA__DEFINE_ATOMIC_LOOP(max, f64, cua__max_wins_f64(operand, old) ? operand : old)

/* The forms without a result, by the fetch forms. */
#define CUA__DEFINE_ATOMIC_NO_RESULT(op, s, T)                                                     \
	CUA_FORCE void cua_atomic_##op##_explicit_##s(T *p, T v, enum cua_order order,             \
						      enum cua_scope scope, enum cua_space space)  \
	{                                                                                          \
		(void)cua_atomic_fetch_##op##_explicit_##s(p, v, order, scope, space);             \
	}                                                                                          \
	CUA_FORCE void cua_atomic_##op##_##s(T *p, T v)                                            \
	{                                                                                          \
		(void)cua_atomic_fetch_##op##_##s(p, v);                                           \
	}
CUA__DEFINE_ATOMIC_NO_RESULT(inc, u64, uint64_t)
CUA__DEFINE_ATOMIC_NO_RESULT(dec, u64, uint64_t)
CUA__DEFINE_ATOMIC_NO_RESULT(min, f32, float)
CUA__DEFINE_ATOMIC_NO_RESULT(min, f64, double)
CUA__DEFINE_ATOMIC_NO_RESULT(max, f32, float)
CUA__DEFINE_ATOMIC_NO_RESULT(max, f64, double)

#endif /* CUATOMIC_ATOMIC_H */
