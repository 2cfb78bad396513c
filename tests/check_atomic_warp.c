/* SPDX-License-Identifier: MIT */
/* The combined atomics on host threads: a warp is 1 lane, a block is 1 thread. */
#include "check_atomic.h"

CUA_DEFINE_ATOMIC_CHANGING_WARP(add_mod, u32, (old + operand) % 1009)
CUA_DEFINE_ATOMIC_WARP(highest, u32, operand > old ? operand : old)
CUA_DEFINE_ATOMIC_STRUCT_WARP(span_gather, struct span, 32, span_join(old, operand))
CUA_DEFINE_ATOMIC_STRUCT_CHANGING_WARP(mean_gather, struct mean, 64, mean_join(old, operand))
CUA_DEFINE_ATOMIC_SERIAL_WARP(triple, u32, old * 3 - operand)

/* In a warp of 1 lane each combined operation equals the plain operation. */
#define WARP_TRY(op, OP, s, T)                                                                     \
	x = values_##s[i];                                                                         \
	EXPECT(model_same_##s(cua_atomic_fetch_##op##_warp_##s(1, &x, values_##s[j]),              \
			      values_##s[i]) &&                                                    \
		       model_same_##s(x, model_##s(OP, values_##s[i], values_##s[j])),             \
	       "fetch_" #op "_warp_" #s);                                                          \
	x = values_##s[i];                                                                         \
	(void)cua_atomic_fetch_##op##_warp_explicit_##s(1, &x, values_##s[j], orders[i % 5],       \
							CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);       \
	EXPECT(model_same_##s(x, model_##s(OP, values_##s[i], values_##s[j])),                     \
	       "fetch_" #op "_warp_explicit_" #s);                                                 \
	x = values_##s[i];                                                                         \
	cua_atomic_##op##_block_##s(&x, values_##s[j], &scratch);                                  \
	EXPECT(model_same_##s(x, model_##s(OP, values_##s[i], values_##s[j])), #op "_block_" #s);  \
	x = values_##s[i];                                                                         \
	EXPECT(model_same_##s(cua_atomic_fetch_##op##_block_explicit_##s(                          \
				      &x, values_##s[j], &scratch, orders[j % 5],                  \
				      CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC),                        \
			      values_##s[i]) &&                                                    \
		       model_same_##s(x, model_##s(OP, values_##s[i], values_##s[j])),             \
	       "fetch_" #op "_block_" #s);
#define WARP_QUIET(op, OP, s, T)                                                                   \
	WARP_TRY(op, OP, s, T)                                                                     \
	x = values_##s[i];                                                                         \
	cua_atomic_##op##_warp_##s(1, &x, values_##s[j]);                                          \
	EXPECT(model_same_##s(x, model_##s(OP, values_##s[i], values_##s[j])), #op "_warp_" #s);
#define WARP_BITS(s, T)                                                                            \
	WARP_QUIET(and, OP_AND, s, T)                                                              \
	WARP_QUIET(or, OP_OR, s, T)                                                                \
	WARP_QUIET(xor, OP_XOR, s, T)
#define WARP_ALL(s, T, MORE)                                                                       \
	for (size_t i = 0; i < N_VALUES(s); i++)                                                   \
		for (size_t j = 0; j < N_VALUES(s); j++) {                                         \
			T x;                                                                       \
                                                                                                   \
			WARP_QUIET(add, OP_ADD, s, T)                                              \
			WARP_QUIET(sub, OP_SUB, s, T)                                              \
			WARP_QUIET(min, OP_MIN, s, T)                                              \
			WARP_QUIET(max, OP_MAX, s, T)                                              \
			WARP_TRY(mul, OP_MUL, s, T)                                                \
			MORE(s, T)                                                                 \
		}
#define WARP_FLOAT(s, T) WARP_TRY(add_cas, OP_ADD_CAS, s, T)

START_TEST(warp_of_one)
{
	struct cua_block_scratch scratch;
	struct span span = {1, 1}, wider = {-4, 0}, higher = {2, 9};
	struct mean mean = {1, 1}, more = {3, 2};
	uint32_t m = 1000;

	WARP_ALL(u32, uint32_t, WARP_BITS)
	WARP_ALL(i32, int32_t, WARP_BITS)
	WARP_ALL(u64, uint64_t, WARP_BITS)
	WARP_ALL(i64, int64_t, WARP_BITS)
	WARP_ALL(f32, float, WARP_FLOAT)
	WARP_ALL(f64, double, WARP_FLOAT)
	ck_assert_uint_eq(add_mod_warp(1, &m, 10), 1000);
	ck_assert_uint_eq(m, 1);
	add_mod_block(&m, 5, &scratch);
	ck_assert_uint_eq(m, 6);
	ck_assert_uint_eq(add_mod(&m, 5), 6);
	ck_assert_uint_eq(add_mod_fetch_block(&m, 5, &scratch), 11);
	ck_assert_uint_eq(triple_warp(1, &m, 8), 16);
	ck_assert_uint_eq(
		triple_warp_explicit(1, &m, 1, CUA_SEQ_CST, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC),
		40);
	ck_assert_uint_eq(triple(&m, 0), 119);
	ck_assert_uint_eq(m, 357);
	ck_assert_int_eq(span_gather_warp(1, &span, wider).low, 1);
	span_gather_block(&span, higher, &scratch);
	ck_assert(span.low == -4 && span.high == 9);
	ck_assert_uint_eq(mean_gather_warp(1, &mean, more).n, 1);
	mean_gather_block(&mean, more, &scratch);
	ck_assert(mean.sum == 7 && mean.n == 5);
}
END_TEST

/*
 * The port operations of a leader if the value does not change: a swap. Exception: the leader makes
 * no swap if the operation often leaves values unchanged and the order does not release.
 */
#define LEADER(T, before, swaps, call)                                                             \
	{                                                                                          \
		T x = (before), was = x;                                                           \
                                                                                                   \
		memset(&asked, 0, sizeof(asked));                                                  \
		(void)(call);                                                                      \
		EXPECT(!memcmp(&x, &was, sizeof(x)) && asked.loads == 1 && asked.cas == (swaps),   \
		       #call);                                                                     \
	}
START_TEST(leader_keeps)
{
	struct cua_block_scratch scratch;
	struct span span = {1, 1};
	struct mean none = {0, 0}, mean = {1, 1};

	for (int o = 0; o < 5; o++) {
		enum cua_order order = orders[o];
		enum cua_scope at = CUA_SCOPE_DEVICE;
		unsigned stores = order != CUA_RELAXED && order != CUA_ACQUIRE;

		LEADER(float, 3, stores,
		       cua_atomic_fetch_max_warp_explicit_f32(1, &x, 2, order, at,
							      CUA_SPACE_GENERIC))
		LEADER(double, 3, stores,
		       cua_atomic_fetch_min_warp_explicit_f64(1, &x, 4, order, at,
							      CUA_SPACE_GENERIC))
		LEADER(float, 3, stores,
		       cua_atomic_fetch_max_block_explicit_f32(&x, 2, &scratch, order, at,
							       CUA_SPACE_GENERIC))
		LEADER(uint8_t, 3, stores,
		       cua_atomic_fetch_or_warp_explicit_u8(1, &x, 2, order, at, CUA_SPACE_GENERIC))
		LEADER(uint32_t, 3, stores,
		       highest_warp_explicit(1, &x, 2, order, at, CUA_SPACE_GENERIC))
		LEADER(struct span, span, stores,
		       span_gather_warp_explicit(1, &x, span, order, at, CUA_SPACE_GENERIC))
		LEADER(float, -0.f, 1,
		       cua_atomic_fetch_add_cas_warp_explicit_f32(1, &x, -0.f, order, at,
								  CUA_SPACE_GENERIC))
		LEADER(double, 3, 1,
		       cua_atomic_fetch_add_cas_warp_explicit_f64(1, &x, 0, order, at,
								  CUA_SPACE_GENERIC))
		LEADER(float, -0.f, 1,
		       cua_atomic_fetch_mul_warp_explicit_f32(1, &x, 1, order, at,
							      CUA_SPACE_GENERIC))
		LEADER(uint64_t, 3, 1,
		       cua_atomic_fetch_mul_block_explicit_u64(&x, 1, &scratch, order, at,
							       CUA_SPACE_GENERIC))
		LEADER(uint8_t, 3, 1,
		       cua_atomic_fetch_add_warp_explicit_u8(1, &x, 0, order, at,
							     CUA_SPACE_GENERIC))
		LEADER(int16_t, 3, 1,
		       cua_atomic_fetch_sub_warp_explicit_i16(1, &x, 0, order, at,
							      CUA_SPACE_GENERIC))
		LEADER(uint32_t, 3, 1,
		       add_mod_warp_explicit(1, &x, 1009, order, at, CUA_SPACE_GENERIC))
		LEADER(uint32_t, 3, 1,
		       add_mod_fetch_block_explicit(&x, 0, &scratch, order, at, CUA_SPACE_GENERIC))
		LEADER(struct mean, mean, 1,
		       mean_gather_warp_explicit(1, &x, none, order, at, CUA_SPACE_GENERIC))
	}
}
END_TEST

#define SERIAL_TRY(op, s, T, wanted)                                                               \
	for (size_t i = 0; i < N_VALUES(s); i++)                                                   \
		for (size_t j = 0; j < N_VALUES(s); j++) {                                         \
			T old = values_##s[i], v = values_##s[j], x = old, y = old;                \
                                                                                                   \
			EXPECT(model_same_##s(cua_atomic_fetch_##op##_warp_##s(1, &x, v), old) &&  \
				       model_same_##s(x, (T)(wanted)),                             \
			       "fetch_" #op "_warp_" #s);                                          \
			(void)cua_atomic_fetch_##op##_warp_explicit_##s(                           \
				1, &y, v, orders[i % 5], CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);      \
			EXPECT(model_same_##s(y, (T)(wanted)), "fetch_" #op "_warp_explicit_" #s); \
		}
#define NARROW_WARP(op, s, T, wanted)                                                              \
	x = was;                                                                                   \
	EXPECT(cua_atomic_fetch_##op##_warp_##s(1, &x, v) == was && x == (T)(wanted),              \
	       "fetch_" #op "_warp_" #s);                                                          \
	x = was;                                                                                   \
	EXPECT(cua_atomic_fetch_##op##_block_##s(&x, v, &scratch) == was && x == (T)(wanted),      \
	       "fetch_" #op "_block_" #s);                                                         \
	x = was;                                                                                   \
	cua_atomic_##op##_block_##s(&x, v, &scratch);                                              \
	EXPECT(x == (T)(wanted), #op "_block_" #s);                                                \
	x = was;                                                                                   \
	cua_atomic_##op##_warp_##s(1, &x, v);                                                      \
	EXPECT(x == (T)(wanted), #op "_warp_" #s);
#define NARROW_WARPS(s, T)                                                                         \
	for (int i = 0; i < 256; i += 5)                                                           \
		for (int j = 0; j < 256; j += 3) {                                                 \
			T was = (T)(i * 0x101), v = (T)(j * 0x101 + 1), x;                         \
                                                                                                   \
			NARROW_WARP(add, s, T, was + v)                                            \
			NARROW_WARP(sub, s, T, was - v)                                            \
			NARROW_WARP(min, s, T, was < v ? was : v)                                  \
			NARROW_WARP(max, s, T, was > v ? was : v)                                  \
			NARROW_WARP(and, s, T, was &v)                                             \
			NARROW_WARP(or, s, T, was | v)                                             \
			NARROW_WARP(xor, s, T, was ^ v)                                            \
			x = was;                                                                   \
			EXPECT(cua_atomic_fetch_nand_warp_##s(1, &x, v) == was &&                  \
				       x == (T) ~(was & v),                                        \
			       "fetch_nand_warp_" #s);                                             \
		}

START_TEST(serial_warp_of_one)
{
	struct cua_block_scratch scratch;

	SERIAL_TRY(nand, u32, uint32_t, ~(old & v))
	SERIAL_TRY(nand, i32, int32_t, ~(old & v))
	SERIAL_TRY(nand, u64, uint64_t, ~(old & v))
	SERIAL_TRY(nand, i64, int64_t, ~(old & v))
	SERIAL_TRY(div, f32, float, old / v)
	SERIAL_TRY(div, f64, double, old / v)
	SERIAL_TRY(inc, u32, uint32_t, old >= v ? 0 : old + 1)
	SERIAL_TRY(inc, u64, uint64_t, old >= v ? 0 : old + 1)
	SERIAL_TRY(dec, u32, uint32_t, old == 0 || old > v ? v : old - 1)
	SERIAL_TRY(dec, u64, uint64_t, old == 0 || old > v ? v : old - 1)
	NARROW_WARPS(u8, uint8_t)
	NARROW_WARPS(i8, int8_t)
	NARROW_WARPS(u16, uint16_t)
	NARROW_WARPS(i16, int16_t)
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("combined atomics");
	TCase *one = tcase_create("one thread");

	tcase_set_timeout(one, 120);
	tcase_add_test(one, warp_of_one);
	tcase_add_test(one, leader_keeps);
	tcase_add_test(one, serial_warp_of_one);
	suite_add_tcase(suite, one);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
