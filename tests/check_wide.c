/* SPDX-License-Identifier: MIT */
/* The atomics on 16-bit floats, on 128 bits and on complex numbers, on host threads. */
#include <pthread.h>

#include <cuatomic/port.h>

#include "counted_port.h"

COUNTED(16)
COUNTED(128)
#define cua_port_load_b16 counted_load_b16
#define cua_port_load_b128 counted_load_b128
#define cua_port_cas_b16 counted_cas_b16
#define cua_port_cas_b128 counted_cas_b128

#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_complex.h>
#include <cuatomic/atomic_half.h>

#include "wide_model.h"

static const enum cua_order orders[] = {CUA_RELAXED, CUA_ACQUIRE, CUA_RELEASE, CUA_ACQ_REL,
					CUA_SEQ_CST};
static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE, CUA_SCOPE_SYSTEM};

/* ---- conversions ---- */

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

#define DEFINE_CONVERSIONS(s, digits)                                                              \
	static void convert_##s(uint32_t bits)                                                     \
	{                                                                                          \
		float x = float_of(bits);                                                          \
		struct cua_##s v = cua_##s##_from_f32(x), wanted = rounded_##s((double)x);         \
                                                                                                   \
		if (x != x)                                                                        \
			EXPECT(value_##s(v) != value_##s(v) && v.bits >> (digits - 1) & 1,         \
			       "the NaN %#x became %#x", bits, v.bits);                            \
		else                                                                               \
			EXPECT(v.bits == wanted.bits, "%#x (%.9g) became %#x, not %#x", bits,      \
			       (double)x, v.bits, wanted.bits);                                    \
	}                                                                                          \
	START_TEST(conversions_##s)                                                                \
	{                                                                                          \
		uint64_t seed = test_seed("conversions_" #s);                                      \
                                                                                                   \
		/* every value there and back, its neighbours, and the midpoints between values */ \
		for (unsigned i = 0; i <= 0xffff; i++) {                                           \
			struct cua_##s v = {(uint16_t)i};                                          \
			float x = cua_f32_from_##s(v);                                             \
			double wanted = value_##s(v);                                              \
                                                                                                   \
			if (wanted != wanted) {                                                    \
				EXPECT(x != x && bits_of(x) & 0x400000, "%#x is no quiet NaN", i); \
			} else {                                                                   \
				EXPECT((double)x == wanted && !signbit(x) == !signbit(wanted),     \
				       "%#x is %.17g, not %.17g", i, (double)x, wanted);           \
				EXPECT(cua_##s##_from_f32(x).bits == i, "%#x does not come back",  \
				       i);                                                         \
			}                                                                          \
			for (int32_t d = -2; d <= 2; d++) {                                        \
				convert_##s(bits_of(x) + (uint32_t)d);                             \
				convert_##s(bits_of(x) + (1u << (22 - digits)) + (uint32_t)d);     \
				/* f16: between its subnormal numbers */                           \
				convert_##s(bits_of(x + 2.98023223876953125e-8f) + (uint32_t)d);   \
			}                                                                          \
		}                                                                                  \
		for (unsigned i = 0; i < (test_quick() ? 20000u : 1000000u); i++)                  \
			convert_##s((uint32_t)test_random(&seed));                                 \
	}                                                                                          \
	END_TEST
DEFINE_CONVERSIONS(f16, 10)
DEFINE_CONVERSIONS(bf16, 7)

/* ---- a single thread: every operation, type, form, order and scope ---- */

#define DEFINE_SEQUENTIAL(s, T)                                                                    \
	static void try_##s(enum wide_op op, T a, T v)                                             \
	{                                                                                          \
		T wanted = wide_##s(op, a, v);                                                     \
                                                                                                   \
		for (int form = 0; form < 4; form++)                                               \
			for (int o = 0; o < (form & 1 ? 5 : 1); o++)                               \
				for (int c = 0; c < (form & 1 ? 3 : 1); c++) {                     \
					T x = a;                                                   \
					T old = wide_apply_##s(op, form, &x, v, orders[o],         \
							       scopes[c]);                         \
                                                                                                   \
					EXPECT(memcmp(&old, &a, sizeof(a)) == 0,                   \
					       #s " op %d form %d order %d: wrong old value",      \
					       (int)op, form, o);                                  \
					EXPECT(wide_same_##s(op, x, wanted),                       \
					       #s " op %d form %d order %d: from " SHOW_##s        \
					       " by " SHOW_##s " came " SHOW_##s                   \
					       ", not " SHOW_##s,                                  \
					       (int)op, form, o, PARTS_##s(a), PARTS_##s(v),       \
					       PARTS_##s(x), PARTS_##s(wanted));                   \
				}                                                                  \
	}                                                                                          \
	/* Load, store and compare_exchange; order -1 is the plain form. */                        \
	static void access_##s(T a, T b, T other, int order, enum cua_scope scope)                 \
	{                                                                                          \
		int equal = memcmp(&a, &b, sizeof(a)) == 0;                                        \
		T x = a, old;                                                                      \
                                                                                                   \
		if (order != CUA_RELEASE && order != CUA_ACQ_REL) {                                \
			old = order < 0 ? cua_atomic_load_##s(&x)                                  \
					: cua_atomic_load_explicit_##s(&x, (enum cua_order)order,  \
								       scope, CUA_SPACE_GENERIC);  \
			EXPECT(memcmp(&old, &a, sizeof(a)) == 0, #s " load");                      \
		}                                                                                  \
		if (order != CUA_ACQUIRE && order != CUA_ACQ_REL) {                                \
			if (order < 0)                                                             \
				cua_atomic_store_##s(&x, b);                                       \
			else                                                                       \
				cua_atomic_store_explicit_##s(&x, b, (enum cua_order)order, scope, \
							      CUA_SPACE_GENERIC);                  \
			EXPECT(memcmp(&x, &b, sizeof(b)) == 0, #s " store");                       \
		}                                                                                  \
		x = a;                                                                             \
		old = order < 0 ? cua_atomic_compare_exchange_##s(&x, b, other)                    \
				: cua_atomic_compare_exchange_explicit_##s(                        \
					  &x, b, other, (enum cua_order)order, scope,              \
					  CUA_SPACE_GENERIC);                                      \
		EXPECT(memcmp(&old, &a, sizeof(a)) == 0, #s " compare_exchange: old");             \
		EXPECT(memcmp(&x, equal ? &other : &a, sizeof(a)) == 0, #s " compare_exchange");   \
	}                                                                                          \
	START_TEST(sequential_##s)                                                                 \
	{                                                                                          \
		uint64_t seed = test_seed("sequential_" #s);                                       \
                                                                                                   \
		for (int op = 0; op < N_WIDE_OPS; op++) {                                          \
			if (!WIDE_HAS_##s(op))                                                     \
				continue;                                                          \
			for (size_t i = 0; i < N_WIDE_VALUES(s); i++)                              \
				for (size_t j = 0; j < N_WIDE_VALUES(s); j++)                      \
					try_##s((enum wide_op)op, wide_values_##s[i],              \
						wide_values_##s[j]);                               \
			for (int i = 0; i < (test_quick() ? 200 : 5000); i++) {                    \
				T a = random_##s(&seed);                                           \
                                                                                                   \
				try_##s((enum wide_op)op, a, random_##s(&seed));                   \
			}                                                                          \
		}                                                                                  \
		for (size_t i = 0; i < N_WIDE_VALUES(s); i++)                                      \
			for (size_t j = 0; j < N_WIDE_VALUES(s); j++)                              \
				for (int o = -1; o < 5; o++)                                       \
					for (int c = 0; c < 3; c++)                                \
						access_##s(wide_values_##s[i], wide_values_##s[j], \
							   random_##s(&seed), o, scopes[c]);       \
	}                                                                                          \
	END_TEST

DEFINE_SEQUENTIAL(f16, struct cua_f16)
DEFINE_SEQUENTIAL(bf16, struct cua_bf16)
DEFINE_SEQUENTIAL(u128, struct cua_u128)
DEFINE_SEQUENTIAL(complex_f32, struct cua_complex_f32)
DEFINE_SEQUENTIAL(complex_f64, struct cua_complex_f64)

/*
 * Rounding twice equals rounding once: for each pair of significands, at exponents from the deepest
 * underflow to overflow. Only bf16 has few enough significands for this.
 */
START_TEST(every_significand_bf16)
{
	static const int exponents[] = {1,   2,   60,  64,  100, 120, 126,
					127, 128, 140, 190, 191, 192, 254};
	size_t n = sizeof(exponents) / sizeof(exponents[0]);
	int step = test_quick() ? 5 : 1;

	for (size_t e = 0; e < n * n; e++)
		for (int i = 0; i < 128; i += step)
			for (int j = 0; j < 128; j++) {
				struct cua_bf16 a = {(uint16_t)(exponents[e / n] << 7 | i)};
				struct cua_bf16 b = {(uint16_t)(exponents[e % n] << 7 | j)};
				struct cua_bf16 x = a, y = a, z = a;

				cua_atomic_fetch_mul_bf16(&x, b);
				cua_atomic_fetch_div_bf16(&y, b);
				cua_atomic_fetch_sub_bf16(&z, b);
				EXPECT(x.bits == wide_bf16(WIDE_MUL, a, b).bits, "%#x * %#x is %#x",
				       a.bits, b.bits, x.bits);
				EXPECT(y.bits == wide_bf16(WIDE_DIV, a, b).bits, "%#x / %#x is %#x",
				       a.bits, b.bits, y.bits);
				EXPECT(z.bits == wide_bf16(WIDE_SUB, a, b).bits, "%#x - %#x is %#x",
				       a.bits, b.bits, z.bits);
			}
}
END_TEST

/* By parts. */
START_TEST(parts)
{
	struct cua_block_scratch scratch;

	for (int o = -1; o < 5; o++) {
		struct cua_complex_f32 f = {1, 2}, df = {0.5f, -4};
		struct cua_complex_f64 d = {1, 2}, dd = {0.5, -4};

		if (o < 0) {
			cua_atomic_add_parts_complex_f32(&f, df);
			cua_atomic_add_parts_complex_f64(&d, dd);
		} else {
			cua_atomic_add_parts_explicit_complex_f32(
				&f, df, orders[o], CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
			cua_atomic_add_parts_explicit_complex_f64(
				&d, dd, orders[o], CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
		}
		ck_assert(f.re == 1.5f && f.im == -2 && d.re == 1.5 && d.im == -2);
		if (o < 0) {
			cua_atomic_sub_parts_complex_f32(&f, df);
			cua_atomic_sub_parts_complex_f64(&d, dd);
		} else {
			cua_atomic_sub_parts_explicit_complex_f32(
				&f, df, orders[o], CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);
			cua_atomic_sub_parts_explicit_complex_f64(
				&d, dd, orders[o], CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);
		}
		ck_assert(f.re == 1 && f.im == 2 && d.re == 1 && d.im == 2);
		/* a warp of 1 lane, a block of 1 thread */
		cua_atomic_add_parts_warp_complex_f32(1, &f, df);
		cua_atomic_add_parts_block_complex_f64(&d, dd, &scratch);
		ck_assert(f.re == 1.5f && f.im == -2 && d.re == 1.5 && d.im == -2);
		ck_assert(cua_atomic_fetch_add_warp_complex_f64(1, &d, dd).im == -2);
		cua_atomic_add_warp_complex_f64(1, &d, dd);
		cua_atomic_add_block_complex_f32(&f, df, &scratch);
		ck_assert(f.re == 2 && f.im == -6 && d.re == 2.5 && d.im == -10);
	}
}
END_TEST

/* A warp of 1 lane and a block of 1 thread: equal to the plain operation. */
START_TEST(half_of_one)
{
	struct cua_block_scratch scratch;
	struct cua_f16 x = {0x3c00}, two = {0x4000};
	struct cua_bf16 y = {0x3f80}, three = {0x4040};

	ck_assert_uint_eq(cua_atomic_fetch_add_warp_f16(1, &x, two).bits, 0x3c00);
	ck_assert_uint_eq(x.bits, 0x4200);
	cua_atomic_sub_warp_f16(1, &x, two);
	cua_atomic_add_block_f16(&x, two, &scratch);
	ck_assert_uint_eq(x.bits, 0x4200);
	cua_atomic_min_warp_f16(1, &x, two);
	ck_assert_uint_eq(x.bits, 0x4000);
	cua_atomic_max_block_f16(&x, two, &scratch);
	ck_assert_uint_eq(cua_atomic_fetch_max_warp_bf16(1, &y, three).bits, 0x3f80);
	cua_atomic_sub_block_bf16(&y, three, &scratch);
	ck_assert_uint_eq(y.bits, 0);
	cua_atomic_add_warp_bf16(1, &y, three);
	ck_assert_uint_eq(y.bits, 0x4040);
}
END_TEST

/* ---- operations of the user ---- */

CUA_DEFINE_ATOMIC_STRUCT(scored_join, struct scored, 128, scored_better(old, operand))
CUA_DEFINE_ATOMIC(wide_mix, u128,
		  cua__halves_u128(cua__whole_u128(old) * 3 + cua__whole_u128(operand)))
CUA_DEFINE_ATOMIC(half_keep, f16, operand.bits & 1 ? operand : old)
CUA_DEFINE_ATOMIC(turn, complex_f64, cua__mul_of_complex_f64(old, operand))

START_TEST(user_operations)
{
	struct scored best = {1, 1, 1}, a = {3, 7, 1}, b = {2, 9, 1};
	struct cua_u128 u = {UINT64_MAX, 0}, two = {2, 0};
	struct cua_complex_f64 z = {1, 0}, i = {0, 1};
	struct cua_f16 h = {2}, odd = {3}, even = {4};

	ck_assert_uint_eq(scored_join(&best, a).who, 1);
	ck_assert_uint_eq(
		scored_join_explicit(&best, b, CUA_ACQ_REL, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC).n,
		2);
	ck_assert(best.who == 7 && best.n == 3 && best.score == 3);
	wide_mix(&u, two);
	ck_assert(u.lo == UINT64_MAX && u.hi == 2);
	half_keep(&h, even);
	ck_assert_uint_eq(h.bits, 2);
	half_keep(&h, odd);
	ck_assert_uint_eq(h.bits, 3);
	for (int k = 0; k < 3; k++)
		turn(&z, i);
	ck_assert(z.re == 0 && z.im == -1);
}
END_TEST

/* The port operations of a loop, as in the test of that name in check_atomic.c. */
START_TEST(loop_orders)
{
	for (int o = 0; o < 5; o++) {
		int stores = orders[o] != CUA_RELAXED && orders[o] != CUA_ACQUIRE;
		enum cua_order first = orders[o] == CUA_ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED;
		struct cua_f16 x = {0x3c00}, y = {0x4000};
		struct cua_u128 u = {3, 3}, v = {4, 4};

		memset(&asked, 0, sizeof(asked));
		cua_atomic_min_explicit_f16(&x, y, orders[o], CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		ck_assert_uint_eq(asked.loads, 1);
		ck_assert_uint_eq(asked.cas, stores);
		ck_assert_int_eq(asked.load_order, first);
		if (stores)
			ck_assert_int_eq(asked.cas_order, orders[o]);

		memset(&asked, 0, sizeof(asked));
		cua_atomic_fetch_min_explicit_u128(&u, v, orders[o], CUA_SCOPE_DEVICE,
						   CUA_SPACE_GENERIC);
		ck_assert_uint_eq(asked.loads, 1);
		ck_assert_uint_eq(asked.cas, stores);
		ck_assert_int_eq(asked.load_order, first);

		memset(&asked, 0, sizeof(asked));
		cua_atomic_fetch_max_explicit_u128(&u, v, orders[o], CUA_SCOPE_DEVICE,
						   CUA_SPACE_GENERIC);
		ck_assert_uint_eq(asked.loads, 1);
		ck_assert_uint_eq(asked.cas, 1);
		ck_assert_int_eq(asked.load_order, first);
		ck_assert_int_eq(asked.cas_order, orders[o]);
	}
}
END_TEST

/* ---- several threads ---- */

#define THREADS 4

struct team {
	pthread_barrier_t start;
	int n; /* operations a thread */
	void (*run)(struct team *team, unsigned id);
	struct {
		struct cua_f16 half[4]; /* [1] and [2] are changed, their neighbours never */
		struct cua_bf16 brain[4];
		struct cua_u128 u, torn;
		struct cua_complex_f32 f, f_parts;
		struct cua_complex_f64 d, d_parts;
		struct scored best;
		uint64_t data[8];
	} shared[1];
	uint32_t *marks; /* THREADS * n */
	unsigned wrong[THREADS];
};

struct member {
	struct team *team;
	unsigned id;
	pthread_t thread;
};

static void *member_main(void *arg)
{
	struct member *m = arg;

	pthread_barrier_wait(&m->team->start);
	m->team->run(m->team, m->id);
	return NULL;
}

/* Runs the threads. All checks follow after they have ended. */
static void run_team(struct team *team, int n, void (*run)(struct team *team, unsigned id))
{
	struct member member[THREADS];

	team->n = test_quick() ? n / 10 : n;
	team->run = run;
	team->marks = calloc((size_t)THREADS * (size_t)team->n, sizeof(*team->marks));
	ck_assert_ptr_nonnull(team->marks);
	ck_assert_int_eq(pthread_barrier_init(&team->start, NULL, THREADS), 0);
	for (unsigned id = 0; id < THREADS; id++) {
		member[id].team = team;
		member[id].id = id;
		ck_assert_int_eq(pthread_create(&member[id].thread, NULL, member_main, &member[id]),
				 0);
	}
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_int_eq(pthread_join(member[id].thread, NULL), 0);
	pthread_barrier_destroy(&team->start);
}

static unsigned team_wrong(const struct team *team)
{
	unsigned wrong = 0;

	for (unsigned id = 0; id < THREADS; id++)
		wrong += team->wrong[id];
	return wrong;
}

/* Sums small enough to be exact, and products with powers of two. */
static void run_halves(struct team *t, unsigned id)
{
	struct cua_f16 one = {0x3c00}, two = {0x4000}, f;
	struct cua_bf16 b1 = {0x3f80}, b2 = {0x4000}, b;

	for (int i = 0; i < t->n; i++) {
		f = cua_atomic_fetch_add_f16(&t->shared->half[1], one);
		b = cua_atomic_fetch_add_bf16(&t->shared->brain[1], b1);
		/* each thread adds at most 1 */
		t->wrong[id] += value_f16(f) < 0 || value_f16(f) >= THREADS;
		t->wrong[id] += value_bf16(b) < 0 || value_bf16(b) >= THREADS;
		cua_atomic_fetch_mul_f16(&t->shared->half[2], two);
		cua_atomic_fetch_mul_bf16(&t->shared->brain[2], b2);
		cua_atomic_sub_f16(&t->shared->half[1], one);
		cua_atomic_sub_bf16(&t->shared->brain[1], b1);
		cua_atomic_fetch_div_f16(&t->shared->half[2], two);
		cua_atomic_fetch_div_bf16(&t->shared->brain[2], b2);
	}
	/* this addition remains */
	cua_atomic_add_f16(&t->shared->half[1], one);
	cua_atomic_add_bf16(&t->shared->brain[1], b1);
}

START_TEST(threads_halves)
{
	struct team t;

	memset(&t, 0, sizeof(t));
	t.shared->half[0].bits = t.shared->brain[0].bits = 0x7d01;
	t.shared->half[3].bits = t.shared->brain[3].bits = 0x8000;
	t.shared->half[2].bits = 0x3c01;
	t.shared->brain[2].bits = 0x3f81;
	run_team(&t, 20000, run_halves);
	ck_assert_uint_eq(team_wrong(&t), 0);
	ck_assert(value_f16(t.shared->half[1]) == THREADS);
	ck_assert(value_bf16(t.shared->brain[1]) == THREADS);
	ck_assert_uint_eq(t.shared->half[2].bits, 0x3c01);
	ck_assert_uint_eq(t.shared->brain[2].bits, 0x3f81);
	ck_assert(t.shared->half[0].bits == 0x7d01 && t.shared->half[3].bits == 0x8000);
	ck_assert(t.shared->brain[0].bits == 0x7d01 && t.shared->brain[3].bits == 0x8000);
	free(t.marks);
}
END_TEST

/* Two halves that are always equal, with each old value once; and a value that is stored whole. */
static void run_wide(struct team *t, unsigned id)
{
	struct cua_u128 step = {1, 1}, old, v;
	struct cua_complex_f32 f = {1, 1}, g;
	struct cua_complex_f64 d = {0.5, 0.5}, e;
	struct scored s;

	for (int i = 0; i < t->n; i++) {
		old = cua_atomic_fetch_add_u128(&t->shared->u, step);
		if (old.lo == old.hi && old.lo < THREADS * (uint64_t)t->n)
			cua_atomic_add_u32(&t->marks[old.lo], 1);
		else
			t->wrong[id]++;
		v.lo = (uint64_t)i << 8 | id;
		v.hi = ~v.lo;
		if (i % 3 == 0)
			cua_atomic_store_u128(&t->shared->torn, v);
		else if (i % 3 == 1)
			v = cua_atomic_exchange_u128(&t->shared->torn, v);
		else
			v = cua_atomic_load_u128(&t->shared->torn);
		t->wrong[id] += v.hi != ~v.lo;
		g = cua_atomic_fetch_add_complex_f32(&t->shared->f, f);
		e = cua_atomic_fetch_add_complex_f64(&t->shared->d, d);
		t->wrong[id] += g.re != g.im || e.re != e.im;
		g = cua_atomic_load_complex_f32(&t->shared->f);
		e = cua_atomic_load_complex_f64(&t->shared->d);
		t->wrong[id] += g.re != g.im || e.re != e.im;
		cua_atomic_add_parts_complex_f32(&t->shared->f_parts, f);
		cua_atomic_sub_parts_complex_f64(&t->shared->d_parts, d);
		s.score = (double)((i * 7919) % t->n);
		s.who = (uint32_t)((i * 7919) % t->n);
		s.n = 1;
		s = scored_join(&t->shared->best, s);
		t->wrong[id] += s.score != s.who;
	}
}

START_TEST(threads_wide)
{
	struct team t;
	double all;

	memset(&t, 0, sizeof(t));
	t.shared->torn.hi = UINT64_MAX;
	run_team(&t, 20000, run_wide);
	all = (double)(THREADS * t.n);
	ck_assert_uint_eq(team_wrong(&t), 0);
	for (int i = 0; i < THREADS * t.n; i++)
		EXPECT(t.marks[i] == 1, "old value %d came %u times", i, t.marks[i]);
	ck_assert(t.shared->u.lo == (uint64_t)all && t.shared->u.hi == (uint64_t)all);
	ck_assert(t.shared->f.re == (float)all && t.shared->f.im == (float)all);
	ck_assert(t.shared->d.re == all / 2 && t.shared->d.im == all / 2);
	ck_assert(t.shared->f_parts.re == (float)all && t.shared->f_parts.im == (float)all);
	ck_assert(t.shared->d_parts.re == -all / 2 && t.shared->d_parts.im == -all / 2);
	ck_assert(t.shared->best.n == (uint32_t)all && t.shared->best.who == (uint32_t)t.n - 1);
	free(t.marks);
}
END_TEST

/* Releases and acquires pass the turn round, and publish plain data. */
static int wide_how;

static void run_ring(struct team *t, unsigned id)
{
	for (int i = 0; i < t->n; i++) {
		uint64_t turn = (uint64_t)i * THREADS + id;
		struct cua_u128 mine = {turn, ~turn}, next = {turn + 1, ~(turn + 1)}, seen;
		struct cua_f16 h;

		for (;;) {
			if (wide_how == 2) {
				h = cua_atomic_load_explicit_f16(&t->shared->half[1], CUA_ACQUIRE,
								 CUA_SCOPE_DEVICE,
								 CUA_SPACE_GENERIC);
				if (h.bits == turn % 1000)
					break;
			} else {
				seen = wide_how == 0
					       ? cua_atomic_load_explicit_u128(
							 &t->shared->u, CUA_ACQUIRE,
							 CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC)
					       : cua_atomic_compare_exchange_explicit_u128(
							 &t->shared->u, mine, mine, CUA_ACQUIRE,
							 CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
				if (seen.lo == turn && seen.hi == ~turn)
					break;
			}
			cua_port_pause(100);
		}
		for (int k = 0; k < 8; k++)
			t->wrong[id] += t->shared->data[k]++ != turn;
		if (wide_how == 0) {
			cua_atomic_store_explicit_u128(&t->shared->u, next, CUA_RELEASE,
						       CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		} else if (wide_how == 1) {
			(void)cua_atomic_exchange_explicit_u128(&t->shared->u, next, CUA_RELEASE,
								CUA_SCOPE_DEVICE,
								CUA_SPACE_GENERIC);
		} else {
			h.bits = (uint16_t)((turn + 1) % 1000);
			cua_atomic_store_explicit_f16(&t->shared->half[1], h, CUA_RELEASE,
						      CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		}
	}
}

START_TEST(message_passing)
{
	struct team t;

	memset(&t, 0, sizeof(t));
	t.shared->u.hi = UINT64_MAX;
	wide_how = _i;
	run_team(&t, 1000, run_ring);
	ck_assert_uint_eq(team_wrong(&t), 0);
	for (int k = 0; k < 8; k++)
		ck_assert_uint_eq(t.shared->data[k], THREADS * (uint64_t)t.n);
	free(t.marks);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("wide atomics");
	TCase *one = tcase_create("one thread"), *many = tcase_create("threads");

	tcase_set_timeout(one, 120);
	tcase_set_timeout(many, 120);
	tcase_add_test(one, conversions_f16);
	tcase_add_test(one, conversions_bf16);
	tcase_add_test(one, sequential_f16);
	tcase_add_test(one, sequential_bf16);
	tcase_add_test(one, sequential_u128);
	tcase_add_test(one, sequential_complex_f32);
	tcase_add_test(one, sequential_complex_f64);
	tcase_add_test(one, every_significand_bf16);
	tcase_add_test(one, parts);
	tcase_add_test(one, half_of_one);
	tcase_add_test(one, user_operations);
	tcase_add_test(one, loop_orders);
	tcase_add_test(many, threads_halves);
	tcase_add_test(many, threads_wide);
	tcase_add_loop_test(many, message_passing, 0, 3);
	suite_add_tcase(suite, one);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
