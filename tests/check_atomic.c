/* SPDX-License-Identifier: MIT */
/* The atomics on host threads. */
#include "check_atomic.h"

/* ---- a single thread: every operation, type, form, order and scope ---- */

#define DEFINE_SEQUENTIAL(s, T)                                                                    \
	static void try_##s(enum model_op op, T a, T v)                                            \
	{                                                                                          \
		T wanted = model_##s(op, a, v);                                                    \
                                                                                                   \
		for (int form = 0; form < 4; form++)                                               \
			for (int o = 0; o < (form & 1 ? 5 : 1); o++)                               \
				for (int c = 0; c < (form & 1 ? 3 : 1); c++) {                     \
					T x = a;                                                   \
					T old = apply_##s(op, form, &x, v, orders[o], scopes[c]);  \
                                                                                                   \
					EXPECT(model_same_##s(old, a) &&                           \
						       model_same_##s(x, wanted),                  \
					       #s " op %d form %d order %d: %.17g with %.17g is "  \
						  "%.17g, was %.17g",                              \
					       (int)op, form, o, (double)a, (double)v, (double)x,  \
					       (double)old);                                       \
				}                                                                  \
	}                                                                                          \
	START_TEST(sequential_##s)                                                                 \
	{                                                                                          \
		uint64_t seed = test_seed("sequential_" #s);                                       \
                                                                                                   \
		for (int op = 0; op < N_OPS; op++) {                                               \
			if (!MODEL_HAS_##s(op))                                                    \
				continue;                                                          \
			for (size_t i = 0; i < N_VALUES(s); i++)                                   \
				for (size_t j = 0; j < N_VALUES(s); j++)                           \
					try_##s((enum model_op)op, values_##s[i], values_##s[j]);  \
			for (int i = 0; i < 1000; i++) {                                           \
				uint64_t x = test_random(&seed), y = test_random(&seed);           \
				T a, b;                                                            \
                                                                                                   \
				memcpy(&a, &x, sizeof(a));                                         \
				memcpy(&b, &y, sizeof(b));                                         \
				try_##s((enum model_op)op, a, b);                                  \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
	END_TEST                                                                                   \
                                                                                                   \
	START_TEST(access_##s)                                                                     \
	{                                                                                          \
		for (size_t i = 0; i < N_VALUES(s); i++)                                           \
			for (size_t j = 0; j < N_VALUES(s); j++)                                   \
				for (int o = -1; o < 5; o++)                                       \
					for (int c = 0; c < 3; c++)                                \
						access_once_##s(values_##s[i], values_##s[j], o,   \
								scopes[c]);                        \
	}                                                                                          \
	END_TEST

/* Load, store and compare_exchange; order -1 is the plain form. */
#define DEFINE_ACCESS(s, T)                                                                        \
	static void access_once_##s(T a, T b, int order, enum cua_scope scope)                     \
	{                                                                                          \
		int equal = memcmp(&a, &b, sizeof(a)) == 0;                                        \
		T x = a, old;                                                                      \
                                                                                                   \
		if (order != CUA_RELEASE && order != CUA_ACQ_REL) {                                \
			old = order < 0 ? cua_atomic_load_##s(&x)                                  \
					: cua_atomic_load_explicit_##s(&x, (enum cua_order)order,  \
								       scope, CUA_SPACE_GENERIC);  \
			EXPECT(memcmp(&old, &a, sizeof(a)) == 0, "load");                          \
		}                                                                                  \
		if (order != CUA_ACQUIRE && order != CUA_ACQ_REL) {                                \
			if (order < 0)                                                             \
				cua_atomic_store_##s(&x, b);                                       \
			else                                                                       \
				cua_atomic_store_explicit_##s(&x, b, (enum cua_order)order, scope, \
							      CUA_SPACE_GENERIC);                  \
			EXPECT(memcmp(&x, &b, sizeof(b)) == 0, "store");                           \
		}                                                                                  \
		/* from a: expects b; succeeds only if their bits are equal */                     \
		x = a;                                                                             \
		old = order < 0 ? cua_atomic_compare_exchange_##s(&x, b, (T)42)                    \
				: cua_atomic_compare_exchange_explicit_##s(                        \
					  &x, b, (T)42, (enum cua_order)order, scope,              \
					  CUA_SPACE_GENERIC);                                      \
		EXPECT(memcmp(&old, &a, sizeof(a)) == 0, "compare_exchange: old");                 \
		if (equal)                                                                         \
			EXPECT(x == (T)42, "compare_exchange: not done");                          \
		else                                                                               \
			EXPECT(memcmp(&x, &a, sizeof(a)) == 0, "compare_exchange: done");          \
	}

DEFINE_ACCESS(u32, uint32_t)
DEFINE_ACCESS(i32, int32_t)
DEFINE_ACCESS(u64, uint64_t)
DEFINE_ACCESS(i64, int64_t)
DEFINE_ACCESS(f32, float)
DEFINE_ACCESS(f64, double)
DEFINE_SEQUENTIAL(u32, uint32_t)
DEFINE_SEQUENTIAL(i32, int32_t)
DEFINE_SEQUENTIAL(u64, uint64_t)
DEFINE_SEQUENTIAL(i64, int64_t)
DEFINE_SEQUENTIAL(f32, float)
DEFINE_SEQUENTIAL(f64, double)

/* The rules of header and manual, by bits. */
START_TEST(float_rules)
{
	for (size_t i = 0; i < N_MODEL_RULES; i++) {
		double old, v, x;
		uint64_t bits;

		memcpy(&old, &model_rules[i].old, sizeof(old));
		memcpy(&v, &model_rules[i].v, sizeof(v));
		x = old;
		cua_atomic_fetch_min_f64(&x, v);
		memcpy(&bits, &x, sizeof(bits));
		ck_assert_uint_eq(bits, model_rules[i].min);
		x = old;
		cua_atomic_max_f64(&x, v);
		memcpy(&bits, &x, sizeof(bits));
		ck_assert_uint_eq(bits, model_rules[i].max);
	}

	/* a NaN in memory: every loop ends */
	{
		float x = NAN;

		ck_assert(isnan(cua_atomic_fetch_add_f32(&x, 1)));
		ck_assert(isnan(cua_atomic_fetch_add_cas_f32(&x, 1)));
		ck_assert(isnan(cua_atomic_fetch_mul_f32(&x, 2)));
		ck_assert(isnan(x));
		ck_assert(isnan(cua_atomic_fetch_max_f32(&x, -7)));
		ck_assert(x == -7);
	}
	/* compare_exchange compares bits: a NaN equals itself, and -0 differs from +0 */
	{
		float x = NAN;

		cua_atomic_compare_exchange_f32(&x, x, 0.0f);
		ck_assert(x == 0);
		cua_atomic_compare_exchange_f32(&x, -0.0f, 5.0f);
		ck_assert(x == 0);
	}
}
END_TEST

START_TEST(overflow)
{
	int32_t i = INT32_MIN;
	int64_t l = INT64_MIN;

	ck_assert_int_eq(cua_atomic_fetch_sub_i32(&i, INT32_MIN), INT32_MIN);
	ck_assert_int_eq(i, 0);
	cua_atomic_sub_i32(&i, INT32_MIN);
	ck_assert_int_eq(i, INT32_MIN);
	cua_atomic_add_i32(&i, -1);
	ck_assert_int_eq(i, INT32_MAX);
	cua_atomic_fetch_mul_i32(&i, INT32_MAX);
	ck_assert_int_eq(i, 1);
	ck_assert(cua_atomic_fetch_sub_i64(&l, INT64_MIN) == INT64_MIN && l == 0);
	cua_atomic_sub_i64(&l, INT64_MIN);
	cua_atomic_add_i64(&l, -1);
	ck_assert(l == INT64_MAX);
	cua_atomic_fetch_mul_i64(&l, INT64_MAX);
	ck_assert(l == 1);
}
END_TEST

/*
 * The port operations of a loop. If the operation neither changes nor releases anything, the loop
 * makes only a load. Otherwise it makes a compare-and-swap of the given order.
 */
START_TEST(loop_orders)
{
	for (int o = 0; o < 5; o++) {
		int stores = orders[o] != CUA_RELAXED && orders[o] != CUA_ACQUIRE;
		enum cua_order first = orders[o] == CUA_ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED;
		double d = 3;
		float f = 3;

		memset(&asked, 0, sizeof(asked));
		cua_atomic_min_explicit_f64(&d, 4, orders[o], CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		ck_assert_uint_eq(asked.loads, 1);
		ck_assert_uint_eq(asked.cas, stores);
		ck_assert_int_eq(asked.load_order, first);
		if (stores)
			ck_assert_int_eq(asked.cas_order, orders[o]);

		memset(&asked, 0, sizeof(asked));
		cua_atomic_fetch_max_explicit_f32(&f, 4, orders[o], CUA_SCOPE_DEVICE,
						  CUA_SPACE_GENERIC);
		ck_assert_uint_eq(asked.loads, 1);
		ck_assert_uint_eq(asked.cas, 1);
		ck_assert_int_eq(asked.load_order, first);
		ck_assert_int_eq(asked.cas_order, orders[o]);
	}
}
END_TEST

/* ---- operations of the user ---- */

CUA_DEFINE_ATOMIC(wrap_inc_u32, u32, old >= operand ? 0 : old + 1)
CUA_DEFINE_ATOMIC(twice_i32, i32, old * 2)
CUA_DEFINE_ATOMIC(mix_u64, u64, (old ^ operand) * 0x9e3779b97f4a7c15u)
CUA_DEFINE_ATOMIC(towards_i64, i64, old<operand ? old + 1 : old> operand ? old - 1 : old)
CUA_DEFINE_ATOMIC(hypot2_f32, f32, cua_port_add_rn_f32(cua_port_mul_rn_f32(old, old), operand))
CUA_DEFINE_ATOMIC(halfway_f64, f64, (old + operand) / 2)

CUA_DEFINE_ATOMIC_STRUCT(span_widen, struct span, 32, span_join(old, operand))
CUA_DEFINE_ATOMIC_STRUCT(mean_add, struct mean, 64, mean_join(old, operand))

START_TEST(user_operations)
{
	uint32_t u = 0;
	int32_t i = -3;
	uint64_t l = 5;
	int64_t t = -1;
	float f = 3;
	double d = 1;
	struct span span = {1, 1}, to = {-4, 0};

	for (uint32_t k = 0; k < 10; k++)
		ck_assert_uint_eq(wrap_inc_u32(&u, 3), k % 4);
	ck_assert_uint_eq(
		wrap_inc_u32_explicit(&u, 3, CUA_ACQ_REL, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC), 2);
	ck_assert_uint_eq(u, 3);
	ck_assert_int_eq(twice_i32(&i, 0), -3);
	ck_assert_int_eq(i, -6);
	ck_assert(mix_u64(&l, 6) == 5 && l == 3 * 0x9e3779b97f4a7c15u);
	ck_assert(towards_i64(&t, 0) == -1 && towards_i64(&t, 0) == 0 && t == 0);
	ck_assert(hypot2_f32(&f, 1) == 3 && f == 10);
	ck_assert(halfway_f64(&d, 2) == 1 && d == 1.5);
	span_widen(&span, to);
	ck_assert_int_eq(span.low, -4);
	ck_assert_int_eq(span.high, 1);
}
END_TEST

/* ---- several threads ---- */

struct team {
	pthread_barrier_t start;
	int n; /* operations a thread */
	void (*run)(struct team *team, unsigned id);
	/* the shared objects, each in its own cache line */
	struct {
		uint32_t u;
		uint64_t l;
		int32_t i;
		int64_t k;
		float f;
		double d;
		struct span span;
		struct mean mean;
	} shared[1];
	uint32_t *marks; /* THREADS * n */
	uint64_t sums[THREADS];
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

	memset(team, 0, sizeof(*team));
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

/* Every old value occurs exactly once. */
static void run_add(struct team *t, unsigned id)
{
	for (int i = 0; i < t->n; i++) {
		uint32_t old = cua_atomic_fetch_add_u32(&t->shared->u, 1);

		if (old < THREADS * (uint32_t)t->n)
			cua_atomic_add_u32(&t->marks[old], 1);
		else
			t->wrong[id]++;
		cua_atomic_add_u64(&t->shared->l, (uint64_t)1 << 32);
		cua_atomic_sub_i32(&t->shared->i, (int32_t)id + 1);
		cua_atomic_fetch_sub_i64(&t->shared->k, INT64_C(0x100000001));
		cua_atomic_add_f32(&t->shared->f, 1);
		cua_atomic_sub_f64(&t->shared->d, 0.5);
	}
}

START_TEST(threads_add)
{
	struct team t;

	run_team(&t, 20000, run_add);
	ck_assert_uint_eq(team_wrong(&t), 0);
	for (int i = 0; i < THREADS * t.n; i++)
		EXPECT(t.marks[i] == 1, "old value %d came %u times", i, t.marks[i]);
	ck_assert_uint_eq(t.shared->u, THREADS * (unsigned)t.n);
	ck_assert(t.shared->l == (uint64_t)THREADS * (uint64_t)t.n << 32);
	ck_assert_int_eq(t.shared->i, -t.n * THREADS * (THREADS + 1) / 2);
	ck_assert(t.shared->k == -INT64_C(0x100000001) * THREADS * t.n);
	ck_assert(t.shared->f == (float)(THREADS * t.n));
	ck_assert(t.shared->d == -0.5 * THREADS * t.n);
	free(t.marks);
}
END_TEST

/* Mixtures of the two float adds lose no update. */
static void run_add_cas(struct team *t, unsigned id)
{
	for (int i = 0; i < t->n; i++) {
		if ((i + (int)id) % 2) {
			cua_atomic_fetch_add_cas_f32(&t->shared->f, 1);
			cua_atomic_fetch_add_cas_f64(&t->shared->d, 0.25);
		} else {
			cua_atomic_fetch_add_f32(&t->shared->f, 1);
			cua_atomic_fetch_add_f64(&t->shared->d, 0.25);
		}
	}
}

START_TEST(threads_add_cas)
{
	struct team t;

	run_team(&t, 20000, run_add_cas);
	ck_assert(t.shared->f == (float)(THREADS * t.n));
	ck_assert(t.shared->d == 0.25 * THREADS * t.n);
	free(t.marks);
}
END_TEST

static void run_mul(struct team *t, unsigned id)
{
	(void)id;
	for (int i = 0; i < t->n; i++) {
		cua_atomic_fetch_mul_u32(&t->shared->u, 3);
		cua_atomic_fetch_mul_u64(&t->shared->l, 5);
		cua_atomic_fetch_mul_i32(&t->shared->i, -7);
		cua_atomic_fetch_mul_i64(&t->shared->k, -9);
		cua_atomic_fetch_mul_f32(&t->shared->f, i % 2 ? 0.5f : 2.0f);
		cua_atomic_fetch_mul_f64(&t->shared->d, i % 2 ? 0.25 : 4.0);
	}
}

/* x to the power of n, wrapping around. */
static uint64_t power(uint64_t x, int n)
{
	uint64_t product = 1;

	while (n--)
		product *= x;
	return product;
}

/* The start is 0, so each thread first changes 0 to 1, unless another thread has done so. */
static void run_mul_from_one(struct team *t, unsigned id)
{
	cua_atomic_compare_exchange_u32(&t->shared->u, 0, 1);
	cua_atomic_compare_exchange_u64(&t->shared->l, 0, 1);
	cua_atomic_compare_exchange_i32(&t->shared->i, 0, 1);
	cua_atomic_compare_exchange_i64(&t->shared->k, 0, 1);
	cua_atomic_compare_exchange_f32(&t->shared->f, 0, 1);
	cua_atomic_compare_exchange_f64(&t->shared->d, 0, 1);
	run_mul(t, id);
}

START_TEST(threads_mul)
{
	struct team t;

	run_team(&t, 10000, run_mul_from_one);
	ck_assert_uint_eq(t.shared->u, (uint32_t)power(3, THREADS * t.n));
	ck_assert(t.shared->l == power(5, THREADS * t.n));
	ck_assert(t.shared->i == (int32_t)(uint32_t)power((uint64_t)-7, THREADS * t.n));
	ck_assert(t.shared->k == (int64_t)power((uint64_t)-9, THREADS * t.n));
	ck_assert(t.shared->f == 1);
	ck_assert(t.shared->d == 1);
	free(t.marks);
}
END_TEST

/* The operand of a thread and step; all operands differ. */
static uint64_t operand_of(unsigned id, int i)
{
	uint64_t state = ((uint64_t)id << 32) + (uint64_t)i;

	return test_random(&state);
}

/* Each thread sees old values that never increase under min and never decrease under max. */
static void run_min_max(struct team *t, unsigned id)
{
	double last_d = INFINITY;
	uint32_t last_u = 0;

	for (int i = 0; i < t->n; i++) {
		uint64_t v = operand_of(id, i);
		uint32_t old_u = cua_atomic_fetch_max_u32(&t->shared->u, (uint32_t)v);
		double old_d;

		cua_atomic_max_u64(&t->shared->l, v);
		cua_atomic_min_i32(&t->shared->i, (int32_t)(uint32_t)v);
		cua_atomic_fetch_min_i64(&t->shared->k, (int64_t)v);
		cua_atomic_max_f32(&t->shared->f, i % 100 == 99 ? NAN : (float)(uint32_t)v);
		old_d = cua_atomic_fetch_min_f64(&t->shared->d,
						 i % 100 == 99 ? NAN : (double)(int64_t)v);
		t->wrong[id] += old_u < last_u;
		t->wrong[id] += !(old_d <= last_d);
		last_u = old_u;
		last_d = old_d;
	}
}

START_TEST(threads_min_max)
{
	struct team t;
	uint32_t u = 0;
	uint64_t l = 0;
	int32_t i32 = 0;
	int64_t k = 0;
	float f = 0;
	double d = 0;

	run_team(&t, 20000, run_min_max);
	for (unsigned id = 0; id < THREADS; id++)
		for (int i = 0; i < t.n; i++) {
			uint64_t v = operand_of(id, i);

			u = (uint32_t)v > u ? (uint32_t)v : u;
			l = v > l ? v : l;
			i32 = (int32_t)(uint32_t)v < i32 ? (int32_t)(uint32_t)v : i32;
			k = (int64_t)v < k ? (int64_t)v : k;
			if (i % 100 == 99)
				continue;
			f = (float)(uint32_t)v > f ? (float)(uint32_t)v : f;
			d = (double)(int64_t)v < d ? (double)(int64_t)v : d;
		}
	ck_assert_uint_eq(team_wrong(&t), 0);
	ck_assert_uint_eq(t.shared->u, u);
	ck_assert(t.shared->l == l);
	ck_assert_int_eq(t.shared->i, i32);
	ck_assert(t.shared->k == k);
	ck_assert(t.shared->f == f);
	ck_assert(t.shared->d == d);
	free(t.marks);
}
END_TEST

/* Each thread owns bits, and finds them unchanged. */
static void run_bits(struct team *t, unsigned id)
{
	uint32_t mine = 0x11111111u << id;
	uint64_t mine64 = (uint64_t)mine << 32 | mine;

	for (int i = 0; i < t->n; i++) {
		t->wrong[id] += (cua_atomic_fetch_or_u32(&t->shared->u, mine) & mine) != 0;
		t->wrong[id] += (cua_atomic_fetch_and_u32(&t->shared->u, ~mine) & mine) != mine;
		t->wrong[id] += (cua_atomic_fetch_xor_u64(&t->shared->l, mine64) & mine64) != 0;
		t->wrong[id] +=
			(cua_atomic_fetch_xor_u64(&t->shared->l, mine64) & mine64) != mine64;
		cua_atomic_or_i32(&t->shared->i, (int32_t)mine);
		cua_atomic_and_i32(&t->shared->i, (int32_t)~mine);
		cua_atomic_xor_i64(&t->shared->k, (int64_t)mine64);
	}
	cua_atomic_or_i32(&t->shared->i, (int32_t)mine);
	cua_atomic_or_u32(&t->shared->u, mine);
}

START_TEST(threads_bits)
{
	struct team t;

	run_team(&t, 20000, run_bits);
	ck_assert_uint_eq(team_wrong(&t), 0);
	ck_assert_uint_eq(t.shared->u, 0xffffffff);
	ck_assert(t.shared->l == 0);
	ck_assert_int_eq(t.shared->i, -1);
	ck_assert(t.shared->k == 0); /* n is even */
	free(t.marks);
}
END_TEST

/* Every exchanged value returns exactly once. All increments by compare_exchange are counted. */
static void run_exchange(struct team *t, unsigned id)
{
	for (int i = 0; i < t->n; i++) {
		uint64_t v = (uint64_t)id * (uint64_t)t->n + (uint64_t)i + 1;
		uint32_t seen = cua_atomic_load_u32(&t->shared->u), before;
		double seen_d = cua_atomic_load_f64(&t->shared->d), before_d;

		t->sums[id] += cua_atomic_exchange_u64(&t->shared->l, v);
		t->sums[id] += (uint64_t)cua_atomic_exchange_f32(&t->shared->f, (float)(v % 1000));
		do {
			before = seen;
			seen = cua_atomic_compare_exchange_u32(&t->shared->u, before, before + 1);
		} while (seen != before);
		do {
			before_d = seen_d;
			seen_d = cua_atomic_compare_exchange_f64(&t->shared->d, before_d,
								 before_d + 1);
		} while (seen_d != before_d);
	}
}

START_TEST(threads_exchange)
{
	struct team t;
	uint64_t in = 0, out, last;

	run_team(&t, 20000, run_exchange);
	out = t.shared->l + (uint64_t)t.shared->f;
	last = (uint64_t)THREADS * (uint64_t)t.n;
	for (uint64_t v = 1; v <= last; v++)
		in += v + v % 1000;
	for (unsigned id = 0; id < THREADS; id++)
		out += t.sums[id];
	ck_assert(in == out);
	ck_assert_uint_eq(t.shared->u, (unsigned)last);
	ck_assert(t.shared->d == (double)last);
	free(t.marks);
}
END_TEST

static void run_user(struct team *t, unsigned id)
{
	for (int i = 0; i < t->n; i++) {
		struct mean one = {2, 1};
		struct span reach = {(int16_t) - (i % 1000), (int16_t)(i % 1000 + (int)id)};

		wrap_inc_u32(&t->shared->u, 998);
		mean_add(&t->shared->mean, one);
		span_widen(&t->shared->span, reach);
	}
}

START_TEST(threads_user)
{
	struct team t;

	run_team(&t, 20000, run_user);
	ck_assert_uint_eq(t.shared->u, THREADS * (unsigned)t.n % 999);
	ck_assert_uint_eq(t.shared->mean.n, THREADS * (unsigned)t.n);
	ck_assert(t.shared->mean.sum == 2.0f * (float)(THREADS * t.n));
	ck_assert_int_eq(t.shared->span.low, -999);
	ck_assert_int_eq(t.shared->span.high, 999 + THREADS - 1);
	free(t.marks);
}
END_TEST

/* ---- nand, inc, dec, div ---- */

START_TEST(more_operations)
{
	uint32_t a, v;
	uint64_t b;
	int64_t c;
	float f;
	double d;

	for (size_t i = 0; i < N_VALUES(u32); i++)
		for (size_t j = 0; j < N_VALUES(u32); j++) {
			uint32_t old = values_u32[i];
			uint32_t inc, dec;

			v = values_u32[j];
			inc = old >= v ? 0 : old + 1;
			dec = old == 0 || old > v ? v : old - 1;
			a = old;
			ck_assert_uint_eq(cua_atomic_fetch_nand_u32(&a, v), old);
			ck_assert_uint_eq(a, ~(old & v));
			a = old;
			ck_assert_uint_eq(cua_atomic_fetch_inc_u32(&a, v), old);
			ck_assert_uint_eq(a, inc);
			a = old;
			cua_atomic_inc_explicit_u32(&a, v, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
						    CUA_SPACE_GENERIC);
			ck_assert_uint_eq(a, inc);
			a = old;
			ck_assert_uint_eq(cua_atomic_fetch_dec_u32(&a, v), old);
			ck_assert_uint_eq(a, dec);
			a = old;
			cua_atomic_dec_u32(&a, v);
			ck_assert_uint_eq(a, dec);
		}
	for (size_t i = 0; i < N_VALUES(u64); i++)
		for (size_t j = 0; j < N_VALUES(u64); j++) {
			uint64_t old = values_u64[i], w = values_u64[j];

			b = old;
			ck_assert(cua_atomic_fetch_nand_u64(&b, w) == old && b == ~(old & w));
			b = old;
			ck_assert(cua_atomic_fetch_inc_u64(&b, w) == old &&
				  b == (old >= w ? 0 : old + 1));
			b = old;
			cua_atomic_inc_u64(&b, w);
			ck_assert(b == (old >= w ? 0 : old + 1));
			b = old;
			ck_assert(cua_atomic_fetch_dec_u64(&b, w) == old &&
				  b == (old == 0 || old > w ? w : old - 1));
			b = old;
			cua_atomic_dec_explicit_u64(&b, w, CUA_SEQ_CST, CUA_SCOPE_SYSTEM,
						    CUA_SPACE_GENERIC);
			ck_assert(b == (old == 0 || old > w ? w : old - 1));
			c = (int64_t)old;
			ck_assert(cua_atomic_fetch_nand_i64(&c, (int64_t)w) == (int64_t)old &&
				  (uint64_t)c == ~(old & w));
		}
	for (size_t i = 0; i < N_VALUES(f64); i++)
		for (size_t j = 0; j < N_VALUES(f64); j++) {
			f = (float)values_f64[i];
			ck_assert(model_same_f32(cua_atomic_fetch_div_f32(&f, (float)values_f64[j]),
						 (float)values_f64[i]));
			ck_assert(model_same_f32(f, (float)values_f64[i] / (float)values_f64[j]));
			d = values_f64[i];
			ck_assert(model_same_f64(cua_atomic_fetch_div_f64(&d, values_f64[j]),
						 values_f64[i]));
			ck_assert(model_same_f64(d, values_f64[i] / values_f64[j]));
		}
}
END_TEST

/* ---- in a state space, ignored by the host ---- */

#define IN_TRY(name, OP, s, T)                                                                     \
	x = values_##s[i];                                                                         \
	EXPECT(model_same_##s(cua_atomic_##name##_explicit_##s(&x, values_##s[j], AT),             \
			      values_##s[i]) &&                                                    \
		       model_same_##s(x, model_##s(OP, values_##s[i], values_##s[j])),             \
	       #name "_explicit_" #s);
#define IN_QUIET(op, OP, s, T)                                                                     \
	IN_TRY(fetch_##op, OP, s, T)                                                               \
	x = values_##s[i];                                                                         \
	cua_atomic_##op##_explicit_##s(&x, values_##s[j], AT);                                     \
	EXPECT(model_same_##s(x, model_##s(OP, values_##s[i], values_##s[j])), #op "_explicit_" #s);
#define IN_BITS(s, T)                                                                              \
	IN_QUIET(and, OP_AND, s, T)                                                                \
	IN_QUIET(or, OP_OR, s, T)                                                                  \
	IN_QUIET(xor, OP_XOR, s, T)                                                                \
	x = values_##s[i];                                                                         \
	EXPECT(cua_atomic_fetch_nand_explicit_##s(&x, values_##s[j], AT) == values_##s[i] &&       \
		       x == (T) ~(values_##s[i] & values_##s[j]),                                  \
	       "fetch_nand_explicit_" #s);
#define IN_FLOAT(s, T)                                                                             \
	IN_TRY(fetch_add_cas, OP_ADD_CAS, s, T)                                                    \
	x = values_##s[i];                                                                         \
	(void)cua_atomic_fetch_div_explicit_##s(&x, values_##s[j], AT);                            \
	EXPECT(model_same_##s(x, values_##s[i] / values_##s[j]), "fetch_div_explicit_" #s);
#define IN_ALL(s, T, MORE)                                                                         \
	for (size_t i = 0; i < N_VALUES(s); i++)                                                   \
		for (size_t j = 0; j < N_VALUES(s); j++) {                                         \
			T x, old = values_##s[i];                                                  \
			int same = memcmp(&old, &values_##s[j], sizeof(T)) == 0;                   \
                                                                                                   \
			IN_TRY(exchange, OP_EXCHANGE, s, T)                                        \
			IN_QUIET(add, OP_ADD, s, T)                                                \
			IN_QUIET(sub, OP_SUB, s, T)                                                \
			IN_QUIET(min, OP_MIN, s, T)                                                \
			IN_QUIET(max, OP_MAX, s, T)                                                \
			IN_TRY(fetch_mul, OP_MUL, s, T)                                            \
			MORE(s, T)                                                                 \
			cua_atomic_store_explicit_##s(&x, old, CUA_RELEASE, CUA_SCOPE_BLOCK,       \
						      CUA_SPACE_SHARED);                           \
			EXPECT(model_same_##s(cua_atomic_load_explicit_##s(&x, CUA_ACQUIRE,        \
									   CUA_SCOPE_SYSTEM,       \
									   CUA_SPACE_GENERIC),     \
					      old),                                                \
			       "load_explicit_" #s);                                               \
			(void)cua_atomic_compare_exchange_explicit_##s(&x, values_##s[j], 42, AT); \
			EXPECT(model_same_##s(x, same ? 42 : old),                                 \
			       "compare_exchange_explicit_" #s);                                   \
		}
#define AT orders[(i + j) % 5], scopes[i % 3], spaces[j % 3]

CUA_DEFINE_ATOMIC(five, u32, old * 5 + operand)

START_TEST(state_spaces)
{
	static const enum cua_space spaces[] = {CUA_SPACE_GENERIC, CUA_SPACE_GLOBAL,
						CUA_SPACE_SHARED};
	uint32_t word = 7;

	IN_ALL(u32, uint32_t, IN_BITS)
	IN_ALL(i32, int32_t, IN_BITS)
	IN_ALL(u64, uint64_t, IN_BITS)
	IN_ALL(i64, int64_t, IN_BITS)
	IN_ALL(f32, float, IN_FLOAT)
	IN_ALL(f64, double, IN_FLOAT)
	for (size_t i = 0; i < N_VALUES(u32); i++)
		for (size_t j = 0; j < N_VALUES(u32); j++) {
			uint32_t old = values_u32[i], v = values_u32[j], x = old;
			uint8_t b = (uint8_t)old;
			int16_t h = (int16_t)(uint16_t)old;

			ck_assert_uint_eq(cua_atomic_fetch_inc_explicit_u32(&x, v, AT), old);
			ck_assert_uint_eq(x, old >= v ? 0 : old + 1);
			x = old;
			cua_atomic_dec_explicit_u32(&x, v, AT);
			ck_assert_uint_eq(x, old == 0 || old > v ? v : old - 1);
			ck_assert_uint_eq(cua_atomic_fetch_add_explicit_u8(&b, (uint8_t)v, AT),
					  (uint8_t)old);
			ck_assert_uint_eq(b, (uint8_t)(old + v));
			cua_atomic_sub_explicit_i16(&h, (int16_t)(uint16_t)v, AT);
			ck_assert_uint_eq((uint16_t)h, (uint16_t)(old - v));
		}
	ck_assert_uint_eq(five_explicit(&word, 3, CUA_ACQ_REL, CUA_SCOPE_BLOCK, CUA_SPACE_GLOBAL),
			  7);
	ck_assert_uint_eq(word, 38);
}
END_TEST

/* ---- port functions that the atomics do not use ---- */

#if defined(__linux__) && defined(__LP64__)
static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#endif

START_TEST(port_of_a_host_thread)
{
	uint32_t x = 5;
	struct cua_backoff backoff;
	uint64_t t = cua_port_clock_ns();

	ck_assert_int_eq(CUA_WARP_LANES, 1);
	ck_assert_uint_eq(cua_port_lane(), 0);
	ck_assert_uint_eq(cua_port_active_mask(), 1);
	ck_assert_uint_eq(cua_port_ballot(1, 77), 1);
	ck_assert_uint_eq(cua_port_ballot(1, 0), 0);
	ck_assert_uint_eq(cua_port_match_any_u32(1, 9), 1);
	ck_assert_uint_eq(cua_port_match_any_u64(1, 9), 1);
	ck_assert_uint_eq(cua_port_shuffle_u32(1, 9, 0), 9);
	ck_assert(cua_port_shuffle_u64(1, UINT64_MAX, 0) == UINT64_MAX);
	ck_assert_uint_eq(cua_port_thread(), 0);
	ck_assert_uint_eq(cua_port_block_size(), 1);
	ck_assert(cua_port_block() == 0 && cua_port_grid_size() == 1);
	ck_assert_int_eq(cua_port_is_global(&x), 0);
	ck_assert_int_eq(cua_port_is_shared(&x), 0);
	ck_assert(cua_port_grid_id() != 0 && cua_port_grid_id() == cua_port_grid_id());
	cua_port_sync_warp(1);
	cua_port_sync_block();
	ck_assert_uint_eq(cua_port_popc_u32(0xf0f0f0f0), 16);
	ck_assert_uint_eq(cua_port_ffs_u32(0), 0);
	ck_assert_uint_eq(cua_port_ffs_u32(0x80000000), 32);
	ck_assert_uint_eq(cua_port_clz_u64(1), 63);
	ck_assert_uint_eq(cua_port_clz_u64(UINT64_MAX), 0);
	ck_assert_uint_eq(cua_port_shl_u32(3, 31), 0x80000000);
	ck_assert_uint_eq(cua_port_shl_u32(3, 32), 0);
	ck_assert(cua_port_mul_rn_f32(3, 0.5f) == 1.5f && cua_port_mul_rn_f64(3, 0.5) == 1.5);
	ck_assert(cua_port_add_rn_f32(3, 0.5f) == 3.5f && cua_port_add_rn_f64(3, 0.5) == 3.5);
	ck_assert(cua_port_sub_rn_f32(3, 0.5f) == 2.5f && cua_port_sub_rn_f64(3, 0.5) == 2.5);

	/*
	 * the forms without result and the fence; the other tests do not call them in every
	 * order
	 */
	for (int o = 0; o < 5; o++) {
#if !defined(__SANITIZE_THREAD__)
		cua_port_fence(orders[o], CUA_SCOPE_DEVICE);
#endif
		if (orders[o] == CUA_ACQUIRE || orders[o] == CUA_ACQ_REL)
			continue;
		x = 5;
		cua_port_add_u32(&x, 2, orders[o], CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);
		ck_assert_uint_eq(x, 7);
	}
	x = 5;
	ck_assert_uint_eq(
		cua_port_fetch_min_u32(&x, 9, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL), 5);
	ck_assert_uint_eq(x, 5);

	cua_backoff_init(&backoff);
	for (int i = 0; i < 20; i++)
		cua_backoff_wait(&backoff);
	ck_assert_uint_eq(backoff.ns, 1024);
	ck_assert(cua_port_clock_ns() != 0 && t != 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t now = cua_port_clock_ns();

		ck_assert(now >= t);
		t = now;
	}
#if defined(__linux__) && defined(__LP64__)
	/* the system's monotonic clock is not affected by changes of the time of day */
	for (int i = 0; i < 100; i++) {
		uint64_t before = monotonic_ns(), now = cua_port_clock_ns(), after = monotonic_ns();

		ck_assert(before <= now && now <= after);
	}
#endif
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("atomic");
	TCase *one = tcase_create("one thread"), *many = tcase_create("threads");

	tcase_set_timeout(one, 120);
	tcase_set_timeout(many, 120);
	tcase_add_test(one, sequential_u32);
	tcase_add_test(one, sequential_i32);
	tcase_add_test(one, sequential_u64);
	tcase_add_test(one, sequential_i64);
	tcase_add_test(one, sequential_f32);
	tcase_add_test(one, sequential_f64);
	tcase_add_test(one, access_u32);
	tcase_add_test(one, access_i32);
	tcase_add_test(one, access_u64);
	tcase_add_test(one, access_i64);
	tcase_add_test(one, access_f32);
	tcase_add_test(one, access_f64);
	tcase_add_test(one, float_rules);
	tcase_add_test(one, overflow);
	tcase_add_test(one, loop_orders);
	tcase_add_test(one, user_operations);
	tcase_add_test(one, more_operations);
	tcase_add_test(one, state_spaces);
	tcase_add_test(one, port_of_a_host_thread);
	tcase_add_test(many, threads_add);
	tcase_add_test(many, threads_add_cas);
	tcase_add_test(many, threads_mul);
	tcase_add_test(many, threads_min_max);
	tcase_add_test(many, threads_bits);
	tcase_add_test(many, threads_exchange);
	tcase_add_test(many, threads_user);
	suite_add_tcase(suite, one);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
