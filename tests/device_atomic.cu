/* SPDX-License-Identifier: MIT */
/* The atomics, and the port layer below them, in kernels. */
#include "device_atomic.h"

/* ---- every operation, type, form, order, scope and space, each lane on its own target ---- */

#define THREADS 128u

/* A combination for each block. */
struct combination {
	int op, form, order, scope, shared;
};
#define N_COMBINATIONS (N_OPS * 4u * 5u * 3u * 2u)

CUA_FN struct combination combination_of(unsigned block)
{
	struct combination c;

	c.op = (int)(block % N_OPS);
	block /= N_OPS;
	c.form = (int)(block % 4);
	block /= 4;
	c.order = (int)(block % 5);
	block /= 5;
	c.scope = (int)(block % 3);
	c.shared = (int)(block / 3);
	return c;
}

/*
 * targets and olds have n elements for each block. Each thread of a block handles every THREADSth
 * element. All scopes are wide enough, because no other thread accesses a target.
 */
#define DEFINE_EXACT(s, T)                                                                         \
	__global__ static void exact_##s(T *targets, T *olds, const T *a, const T *v, unsigned n)  \
	{                                                                                          \
		__shared__ T shared[THREADS];                                                      \
		struct combination c = combination_of(blockIdx.x);                                 \
		size_t base = (size_t)blockIdx.x * n;                                              \
                                                                                                   \
		for (unsigned i = threadIdx.x; i < n; i += THREADS) {                              \
			T *p = c.shared ? &shared[threadIdx.x] : &targets[base + i];               \
                                                                                                   \
			*p = a[i];                                                                 \
			olds[base + i] =                                                           \
				apply_##s((enum model_op)c.op, c.form, p, v[i],                    \
					  (enum cua_order)c.order, (enum cua_scope)c.scope);       \
			targets[base + i] = *p;                                                    \
		}                                                                                  \
	}                                                                                          \
	START_TEST(operations_##s)                                                                 \
	{                                                                                          \
		uint64_t seed = test_seed("operations_" #s);                                       \
		unsigned edges = (unsigned)(N_VALUES(s) * N_VALUES(s)), n = edges + 100;           \
		T *a = (T *)managed(n * sizeof(T)), *v = (T *)managed(n * sizeof(T));              \
		T *targets = (T *)managed(N_COMBINATIONS * n * sizeof(T));                         \
		T *olds = (T *)managed(N_COMBINATIONS * n * sizeof(T));                            \
                                                                                                   \
		for (unsigned i = 0; i < n; i++) {                                                 \
			a[i] = i < edges ? values_##s[i / N_VALUES(s)] : random_##s(&seed);        \
			v[i] = i < edges ? values_##s[i % N_VALUES(s)] : random_##s(&seed);        \
		}                                                                                  \
		exact_##s<<<N_COMBINATIONS, THREADS>>>(targets, olds, a, v, n);                    \
		finish_kernel();                                                                   \
		for (unsigned b = 0; b < N_COMBINATIONS; b++) {                                    \
			struct combination c = combination_of(b);                                  \
                                                                                                   \
			for (unsigned i = 0; MODEL_HAS_##s(c.op) && i < n; i++) {                  \
				T x = targets[(size_t)b * n + i], old = olds[(size_t)b * n + i];   \
				T wanted = model_##s((enum model_op)c.op, a[i], v[i]);             \
                                                                                                   \
				EXPECT(model_same_##s(old, a[i]) && model_same_##s(x, wanted),     \
				       #s " op %d form %d order %d scope %d shared %d: %.17g "     \
					  "with %.17g is %.17g, not %.17g; was %.17g",             \
				       c.op, c.form, c.order, c.scope, c.shared, (double)a[i],     \
				       (double)v[i], (double)x, (double)wanted, (double)old);      \
			}                                                                          \
		}                                                                                  \
		ck_assert_cuda(cudaFree(a));                                                       \
		ck_assert_cuda(cudaFree(v));                                                       \
		ck_assert_cuda(cudaFree(targets));                                                 \
		ck_assert_cuda(cudaFree(olds));                                                    \
	}                                                                                          \
	END_TEST

#define DEFINE_RANDOM(s, T)                                                                        \
	static T random_##s(uint64_t *seed)                                                        \
	{                                                                                          \
		return (T)test_random(seed);                                                       \
	}
DEFINE_RANDOM(u32, uint32_t)
DEFINE_RANDOM(i32, int32_t)
DEFINE_RANDOM(u64, uint64_t)
DEFINE_RANDOM(i64, int64_t)

/* Of either sign. No number is so small, or so close to another, that a sum is subnormal. */
static double random_f64(uint64_t *seed)
{
	uint64_t r = test_random(seed);

	return ldexp((double)(int64_t)r, (int)(r % 41) - 63);
}

static float random_f32(uint64_t *seed)
{
	return (float)random_f64(seed);
}

DEFINE_EXACT(u32, uint32_t)
DEFINE_EXACT(i32, int32_t)
DEFINE_EXACT(u64, uint64_t)
DEFINE_EXACT(i64, int64_t)
DEFINE_EXACT(f32, float)
DEFINE_EXACT(f64, double)

/* Load, store and compare_exchange in the same way; their old values go to four results. */
#define N_ACCESSES (5u * 3u * 2u)
#define DEFINE_ACCESS(s, T)                                                                        \
	__global__ static void access_##s(T *targets, T *results, const T *a, const T *b,          \
					  unsigned n)                                              \
	{                                                                                          \
		__shared__ T shared[THREADS];                                                      \
		enum cua_order order = (enum cua_order)(blockIdx.x % 5);                           \
		enum cua_scope scope = (enum cua_scope)(blockIdx.x / 5 % 3);                       \
		enum cua_order load =                                                              \
			order == CUA_RELEASE || order == CUA_ACQ_REL ? CUA_ACQUIRE : order;        \
		enum cua_order store =                                                             \
			order == CUA_ACQUIRE || order == CUA_ACQ_REL ? CUA_RELEASE : order;        \
                                                                                                   \
		for (unsigned i = threadIdx.x; i < n; i += THREADS) {                              \
			T *p = blockIdx.x / 15 ? &shared[threadIdx.x]                              \
					       : &targets[(size_t)blockIdx.x * n + i];             \
			T *r = &results[((size_t)blockIdx.x * n + i) * 6];                         \
                                                                                                   \
			*p = a[i];                                                                 \
			r[0] = cua_atomic_load_explicit_##s(p, load, scope, CUA_SPACE_GENERIC);    \
			cua_atomic_store_explicit_##s(p, b[i], store, scope, CUA_SPACE_GENERIC);   \
			r[1] = cua_atomic_load_##s(p);                                             \
			cua_atomic_store_##s(p, a[i]);                                             \
			r[2] = cua_atomic_compare_exchange_explicit_##s(p, b[i], (T)42, order,     \
									scope, CUA_SPACE_GENERIC); \
			r[3] = *p;                                                                 \
			*p = a[i];                                                                 \
			r[4] = cua_atomic_compare_exchange_##s(p, b[i], (T)42);                    \
			r[5] = *p;                                                                 \
		}                                                                                  \
	}                                                                                          \
	START_TEST(accesses_##s)                                                                   \
	{                                                                                          \
		unsigned n = (unsigned)(N_VALUES(s) * N_VALUES(s));                                \
		T *a = (T *)managed(n * sizeof(T)), *b = (T *)managed(n * sizeof(T));              \
		T *targets = (T *)managed(N_ACCESSES * n * sizeof(T));                             \
		T *results = (T *)managed(N_ACCESSES * n * 6 * sizeof(T));                         \
                                                                                                   \
		for (unsigned i = 0; i < n; i++) {                                                 \
			a[i] = values_##s[i / N_VALUES(s)];                                        \
			b[i] = values_##s[i % N_VALUES(s)];                                        \
		}                                                                                  \
		access_##s<<<N_ACCESSES, THREADS>>>(targets, results, a, b, n);                    \
		finish_kernel();                                                                   \
		for (unsigned k = 0; k < N_ACCESSES * n; k++) {                                    \
			const T *r = &results[(size_t)k * 6];                                      \
			T was = a[k % n], set = b[k % n], wanted[6];                               \
			/* bits, not values */                                                     \
			int equal = memcmp(&was, &set, sizeof(was)) == 0;                          \
                                                                                                   \
			wanted[0] = wanted[2] = wanted[4] = was;                                   \
			wanted[1] = set;                                                           \
			wanted[3] = wanted[5] = equal ? (T)42 : was;                               \
			for (int i = 0; i < 6; i++)                                                \
				EXPECT(memcmp(&r[i], &wanted[i], sizeof(was)) == 0,                \
				       #s " block %u result %d: %.17g, not %.17g", k / n, i,       \
				       (double)r[i], (double)wanted[i]);                           \
		}                                                                                  \
		ck_assert_cuda(cudaFree(a));                                                       \
		ck_assert_cuda(cudaFree(b));                                                       \
		ck_assert_cuda(cudaFree(targets));                                                 \
		ck_assert_cuda(cudaFree(results));                                                 \
	}                                                                                          \
	END_TEST

DEFINE_ACCESS(u32, uint32_t)
DEFINE_ACCESS(i32, int32_t)
DEFINE_ACCESS(u64, uint64_t)
DEFINE_ACCESS(i64, int64_t)
DEFINE_ACCESS(f32, float)
DEFINE_ACCESS(f64, double)

/* ---- floats: NaN, -0, subnormals ---- */

__global__ static void rules(const struct model_rule *rule, double *minima, double *maxima)
{
	unsigned i = threadIdx.x;
	double v;

	memcpy(&minima[i], &rule[i].old, sizeof(double));
	memcpy(&maxima[i], &rule[i].old, sizeof(double));
	memcpy(&v, &rule[i].v, sizeof(v));
	cua_atomic_fetch_min_f64(&minima[i], v);
	cua_atomic_max_f64(&maxima[i], v);
}

#define TINY 1.401298464324817e-45f /* the least float above 0 */

__global__ static void subnormals(float *x)
{
	__shared__ float shared;

	x[0] = TINY;
	cua_atomic_fetch_add_cas_f32(&x[0], 2 * TINY);
	x[1] = 6 * TINY;
	cua_atomic_fetch_mul_f32(&x[1], 0.5f);
	x[2] = 3 * TINY;
	cua_atomic_fetch_min_f32(&x[2], 2 * TINY);
	x[3] = TINY;
	cua_atomic_max_f32(&x[3], 2 * TINY);
	shared = TINY;
	cua_atomic_fetch_add_f32(&shared, 2 * TINY);
	x[4] = shared;
	x[5] = TINY;
	cua_atomic_fetch_add_f32(&x[5], 2 * TINY);
}

START_TEST(float_rules)
{
	struct model_rule *rule = (struct model_rule *)managed(sizeof(model_rules));
	double *minima = (double *)managed(N_MODEL_RULES * sizeof(double));
	double *maxima = (double *)managed(N_MODEL_RULES * sizeof(double));
	float *x = (float *)managed(6 * sizeof(float));

	memcpy(rule, model_rules, sizeof(model_rules));
	rules<<<1, N_MODEL_RULES>>>(rule, minima, maxima);
	subnormals<<<1, 1>>>(x);
	finish_kernel();
	for (size_t i = 0; i < N_MODEL_RULES; i++) {
		uint64_t bits;

		memcpy(&bits, &minima[i], sizeof(bits));
		ck_assert_uint_eq(bits, model_rules[i].min);
		memcpy(&bits, &maxima[i], sizeof(bits));
		ck_assert_uint_eq(bits, model_rules[i].max);
	}
	ck_assert(x[0] == 3 * TINY);
	ck_assert(x[1] == 3 * TINY);
	ck_assert(x[2] == 2 * TINY);
	ck_assert(x[3] == 2 * TINY);
	ck_assert(x[4] == 3 * TINY);
	/* the native add may flush subnormals in global memory */
	ck_assert(x[5] == 0 || x[5] == 3 * TINY);
	ck_assert_cuda(cudaFree(rule));
	ck_assert_cuda(cudaFree(minima));
	ck_assert_cuda(cudaFree(maxima));
	ck_assert_cuda(cudaFree(x));
}
END_TEST

/* ---- every lane of many blocks on the same targets ---- */

CUA_DEFINE_ATOMIC(wrap_inc, u32, old >= operand ? 0 : old + 1)
CUA_DEFINE_ATOMIC_STRUCT(span_widen, struct span, 32, span_join(old, operand))
CUA_DEFINE_ATOMIC_STRUCT(mean_add, struct mean, 64, mean_join(old, operand))

struct meet {
	uint32_t count, wrap, mul_u32, max_u32, or_u32, and_u32, cas, wrong;
	int32_t sub_i32, min_i32, mul_i32, xor_i32;
	uint64_t add_u64, max_u64, mul_u64, exchange, sum_in, sum_out;
	int64_t sub_i64, min_i64;
	float add_f32, sub_f32, cas_f32, mul_f32, min_f32, max_f32;
	double add_f64, sub_f64, cas_f64, mul_f64, min_f64, max_f64;
	struct span span;
	struct mean mean;
};

/*
 * The operations with instructions of their own. marks[old] counts the calls of fetch_add that
 * returned old.
 */
__global__ static void meet_native(struct meet *m, uint32_t *marks, uint32_t each)
{
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, total = gridDim.x * blockDim.x * each;

	for (uint32_t i = 0; i < each; i++) {
		uint64_t v = operand_of(id, i);
		uint32_t old = cua_atomic_fetch_add_u32(&m->count, 1);

		if (old < total)
			cua_atomic_add_u32(&marks[old], 1);
		else
			cua_atomic_add_u32(&m->wrong, 1);
		if (v & 1)
			cua_atomic_add_u64(&m->add_u64, (uint64_t)1 << 32);
		else
			cua_atomic_fetch_add_u64(&m->add_u64, (uint64_t)1 << 32);
		cua_atomic_sub_i32(&m->sub_i32, 3);
		cua_atomic_fetch_sub_i64(&m->sub_i64, INT64_C(0x100000001));
		cua_atomic_max_u32(&m->max_u32, (uint32_t)v);
		cua_atomic_fetch_max_u64(&m->max_u64, v);
		cua_atomic_fetch_min_i32(&m->min_i32, (int32_t)(uint32_t)v);
		cua_atomic_min_i64(&m->min_i64, (int64_t)v);
		cua_atomic_or_u32(&m->or_u32, 1u << (id % 32));
		cua_atomic_fetch_and_u32(&m->and_u32, ~(1u << (id % 31)));
		cua_atomic_xor_i32(&m->xor_i32, (int32_t)(uint32_t)v);
		cua_atomic_add_f32(&m->add_f32, 1);
		cua_atomic_fetch_sub_f32(&m->sub_f32, 1);
		cua_atomic_fetch_add_f64(&m->add_f64, 0.5);
		cua_atomic_sub_f64(&m->sub_f64, 0.25);
		cua_atomic_add_u64(&m->sum_in, v >> 16);
		cua_atomic_add_u64(&m->sum_out, cua_atomic_exchange_u64(&m->exchange, v >> 16));
	}
}

START_TEST(contended)
{
	unsigned blocks = test_quick() ? 8 : 200, threads = 250, each = 4;
	uint32_t total = blocks * threads * each, max_u32 = 0, xor_i32 = 0;
	struct meet *m = (struct meet *)managed(sizeof(*m));
	uint32_t *marks = (uint32_t *)managed(total * sizeof(*marks));
	uint64_t max_u64 = 0;
	int32_t min_i32 = 0;
	int64_t min_i64 = 0;

	m->and_u32 = 0xffffffff;
	meet_native<<<blocks, threads>>>(m, marks, each);
	finish_kernel();
	for (uint32_t id = 0; id < blocks * threads; id++)
		for (uint32_t i = 0; i < each; i++) {
			uint64_t v = operand_of(id, i);

			max_u32 = (uint32_t)v > max_u32 ? (uint32_t)v : max_u32;
			max_u64 = v > max_u64 ? v : max_u64;
			min_i32 = (int32_t)(uint32_t)v < min_i32 ? (int32_t)(uint32_t)v : min_i32;
			min_i64 = (int64_t)v < min_i64 ? (int64_t)v : min_i64;
			xor_i32 ^= (uint32_t)v;
		}
	ck_assert_uint_eq(m->wrong, 0);
	ck_assert_uint_eq(m->count, total);
	for (uint32_t i = 0; i < total; i++)
		EXPECT(marks[i] == 1, "old value %u came %u times", i, marks[i]);
	ck_assert(m->add_u64 == (uint64_t)total << 32);
	ck_assert(m->sub_i32 == -3 * (int32_t)total);
	ck_assert(m->sub_i64 == -INT64_C(0x100000001) * (int64_t)total);
	ck_assert_uint_eq(m->max_u32, max_u32);
	ck_assert(m->max_u64 == max_u64);
	ck_assert_int_eq(m->min_i32, min_i32);
	ck_assert(m->min_i64 == min_i64);
	ck_assert_uint_eq(m->or_u32, 0xffffffff);
	ck_assert_uint_eq(m->and_u32, 0x80000000);
	ck_assert_uint_eq((uint32_t)m->xor_i32, xor_i32);
	ck_assert(m->add_f32 == (float)total);
	ck_assert(m->sub_f32 == -(float)total);
	ck_assert(m->add_f64 == 0.5 * total);
	ck_assert(m->sub_f64 == -0.25 * total);
	ck_assert(m->sum_in == m->sum_out + m->exchange);
	ck_assert_cuda(cudaFree(m));
	ck_assert_cuda(cudaFree(marks));
}
END_TEST

/*
 * The operations with loops; few of them a second succeed on a single hot word. Mixtures of the two
 * float adds lose no update.
 */
__global__ static void meet_loops(struct meet *m, uint32_t each)
{
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;

	for (uint32_t i = 0; i < each; i++) {
		uint32_t v = (uint32_t)operand_of(id, i), seen, before;
		struct span reach = {(int16_t) - (v % 1000), (int16_t)(v % 1000 + 1)};
		struct mean one = {2, 1};

		cua_atomic_fetch_mul_u32(&m->mul_u32, 3);
		cua_atomic_fetch_mul_i32(&m->mul_i32, -7);
		cua_atomic_fetch_mul_u64(&m->mul_u64, 5);
		cua_atomic_fetch_mul_f32(&m->mul_f32, -1);
		cua_atomic_fetch_mul_f64(&m->mul_f64, -1);
		cua_atomic_min_f32(&m->min_f32, v % 64 ? -(float)(v >> 8) : NAN);
		cua_atomic_fetch_max_f32(&m->max_f32, v % 64 ? (float)(v >> 8) : NAN);
		cua_atomic_fetch_min_f64(&m->min_f64, v % 64 ? -(double)v : NAN);
		cua_atomic_max_f64(&m->max_f64, v % 64 ? (double)v : NAN);
		if (v & 1) {
			cua_atomic_fetch_add_cas_f32(&m->cas_f32, 1);
			cua_atomic_fetch_add_f64(&m->cas_f64, 0.5);
		} else {
			cua_atomic_add_f32(&m->cas_f32, 1);
			cua_atomic_fetch_add_cas_f64(&m->cas_f64, 0.5);
		}
		wrap_inc(&m->wrap, 100);
		span_widen(&m->span, reach);
		mean_add(&m->mean, one);
		seen = cua_atomic_load_u32(&m->cas);
		do {
			before = seen;
			seen = cua_atomic_compare_exchange_u32(&m->cas, before, before + 1);
		} while (seen != before);
	}
}

static uint64_t power(uint64_t x, uint32_t n)
{
	uint64_t product = 1;

	while (n--)
		product *= x;
	return product;
}

START_TEST(contended_loops)
{
	unsigned blocks = test_quick() ? 4 : 16, threads = 96, each = test_quick() ? 1 : 2;
	uint32_t total = blocks * threads * each, most = 0, reach = 0;
	struct meet *m = (struct meet *)managed(sizeof(*m));

	m->mul_u32 = 1;
	m->mul_i32 = 1;
	m->mul_u64 = 1;
	m->mul_f32 = 1;
	m->mul_f64 = 1;
	m->min_f32 = NAN;
	m->max_f32 = -INFINITY;
	m->min_f64 = INFINITY;
	m->max_f64 = NAN;
	meet_loops<<<blocks, threads>>>(m, each);
	finish_kernel();
	for (uint32_t id = 0; id < blocks * threads; id++)
		for (uint32_t i = 0; i < each; i++) {
			uint32_t v = (uint32_t)operand_of(id, i);

			most = v % 64 && v > most ? v : most;
			reach = v % 1000 > reach ? v % 1000 : reach;
		}
	ck_assert_uint_eq(m->mul_u32, (uint32_t)power(3, total));
	ck_assert(m->mul_i32 == (int32_t)(uint32_t)power((uint64_t)-7, total));
	ck_assert(m->mul_u64 == power(5, total));
	ck_assert(m->mul_f32 == 1 && m->mul_f64 == 1); /* total is even */
	ck_assert(m->min_f32 == -(float)(most >> 8));
	ck_assert(m->max_f32 == (float)(most >> 8));
	ck_assert(m->min_f64 == -(double)most);
	ck_assert(m->max_f64 == (double)most);
	ck_assert(m->cas_f32 == (float)total);
	ck_assert(m->cas_f64 == 0.5 * total);
	ck_assert_uint_eq(m->wrap, total % 101);
	ck_assert_int_eq(m->span.low, -(int)reach);
	ck_assert_int_eq(m->span.high, (int)reach + 1);
	ck_assert_uint_eq(m->mean.n, total);
	ck_assert(m->mean.sum == 2.0f * (float)total);
	ck_assert_uint_eq(m->cas, total);
	ck_assert_cuda(cudaFree(m));
}
END_TEST

/* Block scope in shared memory. */
__global__ static void __launch_bounds__(1024) meet_in_block(uint32_t *wrong)
{
	__shared__ uint32_t count, most;
	__shared__ uint64_t wide;
	__shared__ float sum, sum_cas;
	__shared__ double low;

	if (threadIdx.x == 0) {
		count = 0;
		most = 0;
		wide = 0;
		sum = 0;
		sum_cas = 0;
		low = INFINITY;
	}
	__syncthreads();
	cua_atomic_add_explicit_u32(&count, 1, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);
	cua_atomic_fetch_max_explicit_u32(&most, threadIdx.x, CUA_RELAXED, CUA_SCOPE_BLOCK,
					  CUA_SPACE_GENERIC);
	cua_atomic_add_explicit_u64(&wide, (uint64_t)1 << 40, CUA_RELAXED, CUA_SCOPE_BLOCK,
				    CUA_SPACE_GENERIC);
	cua_atomic_add_explicit_f32(&sum, 0.5f, CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);
	cua_atomic_fetch_add_cas_explicit_f32(&sum_cas, 0.5f, CUA_RELAXED, CUA_SCOPE_BLOCK,
					      CUA_SPACE_GENERIC);
	cua_atomic_min_explicit_f64(&low, -(double)threadIdx.x, CUA_RELAXED, CUA_SCOPE_BLOCK,
				    CUA_SPACE_GENERIC);
	__syncthreads();
	if (threadIdx.x == 0 &&
	    (count != blockDim.x || most != blockDim.x - 1 || wide != (uint64_t)blockDim.x << 40 ||
	     sum != 0.5f * (float)blockDim.x || sum_cas != sum || low != -(double)(blockDim.x - 1)))
		cua_atomic_add_u32(wrong, 1);
}

START_TEST(block_scope)
{
	static const unsigned sizes[] = {1, 31, 32, 33, 256, 1000, 1024};
	uint32_t *wrong = (uint32_t *)managed(sizeof(*wrong));

	for (unsigned i = 0; i < (test_quick() ? 4u : 7u); i++) {
		meet_in_block<<<20, sizes[i]>>>(wrong);
		finish_kernel();
		ck_assert_uint_eq(*wrong, 0);
	}
	ck_assert_cuda(cudaFree(wrong));
}
END_TEST

/* ---- lanes, blocks and arithmetic of the port ---- */

struct lanes {
	uint32_t lane, active, ballot, match32, match64, shuffle32, thread, block_size;
	uint64_t shuffle64, block, grid_size;
	uint32_t popc, ffs, shl, global_is, shared_is, local_is, clock_runs;
	float f32;
	double f64;
};

__global__ static void look_around(struct lanes *out, float fx, double dx)
{
	__shared__ uint32_t shared[1];
	uint32_t local = 0, id;
	uint64_t start = cua_port_clock_ns();
	struct lanes l;

	l.thread = cua_port_thread();
	l.block_size = cua_port_block_size();
	l.block = cua_port_block();
	l.grid_size = cua_port_grid_size();
	l.lane = cua_port_lane();
	cua_port_sync_warp(0xffffffff);
	l.active = cua_port_active_mask();
	l.ballot = cua_port_ballot(0xffffffff, l.lane % 3 == 0 ? 8 : 0);
	l.match32 = cua_port_match_any_u32(0xffffffff, l.lane % 4);
	l.match64 = cua_port_match_any_u64(0xffffffff, (uint64_t)(l.lane % 5) << 40);
	l.shuffle32 = cua_port_shuffle_u32(0xffffffff, l.lane * 10, (l.lane + 1) % 32);
	l.shuffle64 =
		cua_port_shuffle_u64(0xffffffff, (uint64_t)l.lane << 40 | l.lane, 31 - l.lane);
	l.popc = cua_port_popc_u32(l.lane);
	l.ffs = cua_port_ffs_u32(l.lane);
	l.shl = cua_port_shl_u32(3, l.lane * 2);
	l.global_is = (uint32_t)cua_port_is_global(out);
	l.shared_is = (uint32_t)cua_port_is_global(shared);
	l.local_is = (uint32_t)cua_port_is_global(&local);
	/* (1 + e)(1 - e) - 1 is 0 with two roundings, and -e * e with a single rounding */
	l.f32 = cua_port_sub_rn_f32(cua_port_mul_rn_f32(1 + fx, 1 - fx), 1);
	l.f64 = cua_port_add_rn_f64(cua_port_mul_rn_f64(1 + dx, 1 - dx), -1);
	cua_port_pause(1000);
	l.clock_runs = cua_port_clock_ns() >= start && start != 0;
	if (cua_port_thread() == 0)
		shared[0] = 5;
	cua_port_sync_block();
	if (shared[0] != 5)
		l.clock_runs = 2;
	id = (uint32_t)(l.block * l.block_size + l.thread);
	out[id] = l;
}

START_TEST(port_lanes)
{
	const dim3 grid(3, 2, 2), block(8, 4, 3);
	const uint32_t n = 12 * 96;
	struct lanes *out = (struct lanes *)managed(n * sizeof(*out));

	look_around<<<grid, block>>>(out, 0x1p-13f, 0x1p-28);
	finish_kernel();
	for (uint32_t i = 0; i < n; i++) {
		const struct lanes *l = &out[i];
		uint32_t lane = i % 32, match4 = 0, match5 = 0, three = 0, popc = 0, ffs = 0;

		for (uint32_t k = 0; k < 32; k++) {
			match4 |= (uint32_t)(k % 4 == lane % 4) << k;
			match5 |= (uint32_t)(k % 5 == lane % 5) << k;
			three |= (uint32_t)(k % 3 == 0) << k;
			popc += lane >> k & 1;
			if (lane >> k & 1 && !ffs)
				ffs = k + 1;
		}
		/* every thread has its own index: the ids are a permutation */
		ck_assert_uint_eq(l->thread, i % 96);
		ck_assert_uint_eq(l->block, i / 96);
		ck_assert_uint_eq(l->block_size, 96);
		ck_assert_uint_eq(l->grid_size, 12);
		ck_assert_uint_eq(l->lane, lane);
		ck_assert_uint_eq(l->active, 0xffffffff);
		ck_assert_uint_eq(l->ballot, three);
		ck_assert_uint_eq(l->match32, match4);
		ck_assert_uint_eq(l->match64, match5);
		ck_assert_uint_eq(l->shuffle32, (lane + 1) % 32 * 10);
		ck_assert_uint_eq(l->shuffle64, (uint64_t)(31 - lane) << 40 | (31 - lane));
		ck_assert_uint_eq(l->popc, popc);
		ck_assert_uint_eq(l->ffs, ffs);
		ck_assert_uint_eq(l->shl, lane < 16 ? (uint32_t)3 << lane * 2 : 0);
		ck_assert_uint_eq(l->global_is, 1);
		ck_assert_uint_eq(l->shared_is, 0);
		ck_assert_uint_eq(l->local_is, 0);
		ck_assert_uint_eq(l->clock_runs, 1);
		ck_assert(l->f32 == 0);
		ck_assert(l->f64 == 0);
	}
	ck_assert_cuda(cudaFree(out));
}
END_TEST

/* ---- in a state space ---- */

struct in_space {
	uint32_t a, b;
	uint64_t c;
	float d;
	double e;
	int16_t f, g;
};

/*
 * The same operations on a lane's own object in any state space. Returns a hash of the old values.
 */
CUA_FN uint64_t in_space_steps(struct in_space *x, uint32_t v, enum cua_space space)
{
	const enum cua_order order = CUA_ACQ_REL;
	const enum cua_scope scope = CUA_SCOPE_BLOCK;
	uint64_t sum;

	sum = cua_atomic_fetch_add_explicit_u32(&x->a, v, order, scope, space);
	cua_atomic_sub_explicit_u32(&x->a, 3, CUA_RELAXED, scope, space);
	sum = sum * 31 + cua_atomic_fetch_mul_explicit_u32(&x->a, v, order, scope, space);
	sum = sum * 31 + cua_atomic_fetch_inc_explicit_u32(&x->b, v, order, scope, space);
	sum = sum * 31 + cua_atomic_exchange_explicit_u32(&x->b, v, order, scope, space);
	sum = sum * 31 + cua_atomic_fetch_nand_explicit_u32(&x->b, v, order, scope, space);
	sum = sum * 31 + cua_atomic_fetch_max_explicit_u64(&x->c, v, order, scope, space);
	sum = sum * 31 +
	      cua_atomic_compare_exchange_explicit_u64(&x->c, v, v * 7ull, order, scope, space);
	cua_atomic_add_explicit_f32(&x->d, (float)v, CUA_RELEASE, scope, space);
	sum = sum * 31 + (uint64_t)cua_atomic_fetch_mul_explicit_f32(&x->d, 2, order, scope, space);
	cua_atomic_add_explicit_f64(&x->e, v, CUA_RELAXED, scope, space);
	cua_atomic_min_explicit_f64(&x->e, 1000, order, scope, space);
	cua_atomic_store_explicit_i16(&x->f, (int16_t)(v % 100), CUA_RELEASE, scope, space);
	cua_atomic_add_explicit_i16(&x->f, 5, order, scope, space);
	return sum * 31 + (uint64_t)cua_atomic_load_explicit_i16(&x->f, CUA_ACQUIRE, scope, space);
}

__global__ static void in_spaces_kernel(struct in_space *targets, uint64_t *sums)
{
	__shared__ struct in_space shared[64];
	uint32_t i = threadIdx.x;

	memset((void *)&shared[i], 0, sizeof(shared[i]));
	sums[i] = in_space_steps(&targets[i], i * 37, CUA_SPACE_GLOBAL);
	sums[64 + i] = in_space_steps(&shared[i], i * 37, CUA_SPACE_SHARED);
	targets[64 + i] = shared[i];
	sums[128 + i] = in_space_steps(&targets[128 + i], i * 37, CUA_SPACE_GENERIC);
}

START_TEST(in_spaces)
{
	struct in_space *targets = (struct in_space *)managed(192 * sizeof(*targets)), wanted;
	uint64_t *sums = (uint64_t *)managed(192 * sizeof(*sums)), sum;

	memset((void *)targets, 0, 192 * sizeof(*targets));
	in_spaces_kernel<<<1, 64>>>(targets, sums);
	finish_kernel();
	for (uint32_t i = 0; i < 192; i++) {
		memset((void *)&wanted, 0, sizeof(wanted));
		sum = in_space_steps(&wanted, i % 64 * 37, CUA_SPACE_GENERIC);
		EXPECT(sums[i] == sum, "space %u, lane %u: the old values", i / 64, i % 64);
		EXPECT(memcmp(&targets[i], &wanted, sizeof(wanted)) == 0, "space %u, lane %u",
		       i / 64, i % 64);
	}
	ck_assert_cuda(cudaFree(targets));
	ck_assert_cuda(cudaFree(sums));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("atomics in kernels");
	TCase *exact = tcase_create("exact"), *many = tcase_create("many");

	tcase_set_timeout(exact, 120);
	tcase_set_timeout(many, 120);
	tcase_add_test(exact, operations_u32);
	tcase_add_test(exact, operations_i32);
	tcase_add_test(exact, operations_u64);
	tcase_add_test(exact, operations_i64);
	tcase_add_test(exact, operations_f32);
	tcase_add_test(exact, operations_f64);
	tcase_add_test(exact, accesses_u32);
	tcase_add_test(exact, accesses_i32);
	tcase_add_test(exact, accesses_u64);
	tcase_add_test(exact, accesses_i64);
	tcase_add_test(exact, accesses_f32);
	tcase_add_test(exact, accesses_f64);
	tcase_add_test(exact, float_rules);
	tcase_add_test(exact, port_lanes);
	tcase_add_test(exact, in_spaces);
	tcase_add_test(many, contended);
	tcase_add_test(many, contended_loops);
	tcase_add_test(many, block_scope);
	suite_add_tcase(suite, exact);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
