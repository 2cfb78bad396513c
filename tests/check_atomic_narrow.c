/* SPDX-License-Identifier: MIT */
/* The atomics of 8 and 16 bits on host threads. */
#include "check_atomic.h"

/* An object among neighbours, and the expected result of each operation. */
#define DEFINE_NARROW(s, T)                                                                        \
	static void narrow_##s(T old, T v, enum cua_order order)                                   \
	{                                                                                          \
		struct {                                                                           \
			T before, x, after;                                                        \
		} at;                                                                              \
		const enum cua_scope scope = CUA_SCOPE_SYSTEM;                                     \
                                                                                                   \
		memset(&at, 0x5a, sizeof(at));                                                     \
		NARROW_TRY(fetch_add, s, old, (T)(old + v))                                        \
		NARROW_TRY(fetch_sub, s, old, (T)(old - v))                                        \
		NARROW_TRY(fetch_mul, s, old, (T)((uint32_t)old * (uint32_t)v))                    \
		NARROW_TRY(fetch_min, s, old, (v < old ? v : old))                                 \
		NARROW_TRY(fetch_max, s, old, (v > old ? v : old))                                 \
		NARROW_TRY(fetch_and, s, old, (T)(old & v))                                        \
		NARROW_TRY(fetch_or, s, old, (T)(old | v))                                         \
		NARROW_TRY(fetch_xor, s, old, (T)(old ^ v))                                        \
		NARROW_TRY(fetch_nand, s, old, (T) ~(old & v))                                     \
		NARROW_TRY(exchange, s, old, v)                                                    \
		at.x = old;                                                                        \
		cua_atomic_sub_##s(&at.x, v);                                                      \
		EXPECT(at.x == (T)(old - v), "sub_" #s);                                           \
		cua_atomic_max_explicit_##s(&at.x, v, CUA_RELEASE, scope, CUA_SPACE_GENERIC);      \
		EXPECT(at.x == ((T)(old - v) > v ? (T)(old - v) : v), "max_" #s);                  \
		cua_atomic_store_##s(&at.x, old);                                                  \
		EXPECT(cua_atomic_load_##s(&at.x) == old, "load_" #s);                             \
		EXPECT(cua_atomic_compare_exchange_explicit_##s(&at.x, v, (T)42, order, scope,     \
								CUA_SPACE_GENERIC) == old,         \
		       "compare_exchange_" #s);                                                    \
		EXPECT(at.x == (old == v ? (T)42 : old), "compare_exchange_" #s " made %d",        \
		       (int)at.x);                                                                 \
		memset(&at.x, 0x5a, sizeof(at.x));                                                 \
		EXPECT(at.before == at.x && at.after == at.x, "a neighbour has changed");          \
	}
#define NARROW_TRY(op, s, was, wanted)                                                             \
	at.x = old;                                                                                \
	EXPECT(cua_atomic_##op##_##s(&at.x, v) == was && at.x == wanted,                           \
	       #op "_" #s " of %d and %d made %d", (int)old, (int)v, (int)at.x);                   \
	at.x = old;                                                                                \
	EXPECT(cua_atomic_##op##_explicit_##s(&at.x, v, order, scope, CUA_SPACE_GENERIC) == was && \
		       at.x == wanted,                                                             \
	       #op "_explicit_" #s " of %d and %d made %d", (int)old, (int)v, (int)at.x);
DEFINE_NARROW(u8, uint8_t)
DEFINE_NARROW(i8, int8_t)
DEFINE_NARROW(u16, uint16_t)
DEFINE_NARROW(i16, int16_t)

#define DEFINE_NARROW_COUNTER(s, T)                                                                \
	static void narrow_counter_##s(T old, T v, enum cua_order order)                           \
	{                                                                                          \
		const enum cua_scope scope = CUA_SCOPE_SYSTEM;                                     \
		struct {                                                                           \
			T before, x, after;                                                        \
		} at;                                                                              \
                                                                                                   \
		memset(&at, 0x5a, sizeof(at));                                                     \
		NARROW_TRY(fetch_inc, s, old, (T)(old < v ? old + 1 : 0))                          \
		NARROW_TRY(fetch_dec, s, old, (T)(old != 0 && old <= v ? old - 1 : v))             \
		at.x = old;                                                                        \
		cua_atomic_inc_##s(&at.x, v);                                                      \
		EXPECT(at.x == (T)(old < v ? old + 1 : 0), "inc_" #s);                             \
		memset(&at.x, 0x5a, sizeof(at.x));                                                 \
		EXPECT(at.before == at.x && at.after == at.x, "a neighbour has changed");          \
	}
DEFINE_NARROW_COUNTER(u8, uint8_t)
DEFINE_NARROW_COUNTER(u16, uint16_t)

START_TEST(narrow_values)
{
	uint64_t seed = test_seed("narrow_values");
	int step = test_quick() ? 7 : 1;

	for (int i = 0; i < 256; i += step)
		for (int j = 0; j < 256; j += step) {
			uint64_t r = test_random(&seed);
			uint16_t edge = (uint16_t)(i * 0x101 + j % 3 - 1);

			narrow_u8((uint8_t)i, (uint8_t)j, orders[r % 5]);
			narrow_counter_u8((uint8_t)i, (uint8_t)j, orders[r % 5]);
			narrow_counter_u16(edge, (uint16_t)(edge + j % 5 - 2), orders[r % 5]);
			narrow_i8((int8_t)(uint8_t)i, (int8_t)(uint8_t)j, orders[r % 5]);
			narrow_u16(edge, (uint16_t)(r >> 8), orders[r % 5]);
			narrow_i16((int16_t)edge, (int16_t)(uint16_t)(r >> 24), orders[r % 5]);
			narrow_u16(edge, edge, orders[r % 5]);
		}
}
END_TEST

/*
 * Each thread updates its own byte of a word, and all threads update the same half of the next
 * word.
 */
static uint8_t neighbours[THREADS < 4 ? 4 : THREADS];
static uint16_t shared_half;

static void *narrow_main(void *arg)
{
	uint8_t *mine = arg;

	for (int i = 0; i < 20000; i++) {
		cua_atomic_fetch_add_u8(mine, 1);
		cua_atomic_add_u16(&shared_half, 3);
	}
	return NULL;
}

START_TEST(threads_narrow)
{
	pthread_t thread[THREADS];

	memset(neighbours, 0, sizeof(neighbours));
	shared_half = 0;
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_int_eq(pthread_create(&thread[id], NULL, narrow_main, &neighbours[id]),
				 0);
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_int_eq(pthread_join(thread[id], NULL), 0);
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_uint_eq(neighbours[id], (uint8_t)20000);
	ck_assert_uint_eq(shared_half, (uint16_t)(THREADS * 60000u));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("narrow atomics");
	TCase *one = tcase_create("one thread"), *many = tcase_create("threads");

	tcase_set_timeout(one, 120);
	tcase_set_timeout(many, 120);
	tcase_add_test(one, narrow_values);
	tcase_add_test(many, threads_narrow);
	suite_add_tcase(suite, one);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
