/* SPDX-License-Identifier: MIT */
/* The atomics on 16-bit floats, on 128 bits and on complex numbers, in kernels. */
#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_complex.h>
#include <cuatomic/atomic_half.h>

#include "device.h"

#include "wide_model.h"

/* ---- whether this GPU has 128 bits ---- */

__global__ static void ask_wide(int *has)
{
#if defined(CUA_PORT_HAS_B128)
	*has = 1;
#else
	*has = 0;
#endif
}

/* Returns 0 and says so on a GPU without 128-bit atomics; their tests then end. */
static int has_wide(void)
{
	int *has = (int *)managed(sizeof(*has)), it_has;

	ask_wide<<<1, 1>>>(has);
	finish_kernel();
	it_has = *has;
	ck_assert_cuda(cudaFree(has));
	if (!it_has)
		printf("skipped: no 128-bit atomics on this GPU\n");
	return it_has;
}

static int has_always(void)
{
	return 1;
}

#define HAS_f16 has_always
#define HAS_bf16 has_always
#define HAS_complex_f32 has_always
#define HAS_complex_f64 has_wide
#define HAS_u128 has_wide

/* ---- conversions ---- */

__global__ static void widen(float *f, float *b)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	struct cua_f16 h = {(uint16_t)i};
	struct cua_bf16 k = {(uint16_t)i};

	f[i] = cua_f32_from_f16(h);
	b[i] = cua_f32_from_bf16(k);
}

__global__ static void narrow_down(const float *x, struct cua_f16 *f, struct cua_bf16 *b,
				   unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		f[i] = cua_f16_from_f32(x[i]);
		b[i] = cua_bf16_from_f32(x[i]);
	}
}

START_TEST(conversions)
{
	uint64_t seed = test_seed("conversions");
	/* around each value and around each midpoint, for both types; then any bits */
	unsigned around = 65536 * 12, n = around + (test_quick() ? 10000u : 1000000u);
	float *f = (float *)managed(65536 * sizeof(float)),
	      *b = (float *)managed(65536 * sizeof(float));
	float *x = (float *)managed(n * sizeof(float));
	struct cua_f16 *h = (struct cua_f16 *)managed(n * sizeof(*h));
	struct cua_bf16 *k = (struct cua_bf16 *)managed(n * sizeof(*k));

	widen<<<256, 256>>>(f, b);
	finish_kernel();
	for (unsigned i = 0; i < 65536; i++) {
		struct cua_f16 v = {(uint16_t)i};
		struct cua_bf16 w = {(uint16_t)i};
		double wf = value_f16(v), wb = value_bf16(w);

		EXPECT(wf != wf ? f[i] != f[i]
				: (double)f[i] == wf && !signbit(f[i]) == !signbit(wf),
		       "f16 %#x is %.9g", i, (double)f[i]);
		EXPECT(wb != wb ? b[i] != b[i]
				: (double)b[i] == wb && !signbit(b[i]) == !signbit(wb),
		       "bf16 %#x is %.9g", i, (double)b[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t bits = (uint32_t)test_random(&seed);

		if (i < around) {
			memcpy(&bits, i / 6 % 2 ? &f[i / 12] : &b[i / 12], sizeof(bits));
			bits += i % 6 / 3 * (i / 6 % 2 ? 0x1000u : 0x8000u) + i % 3 - 1;
		}
		memcpy(&x[i], &bits, sizeof(bits));
	}
	narrow_down<<<(n + 255) / 256, 256>>>(x, h, k, n);
	finish_kernel();
	for (unsigned i = 0; i < n; i++) {
		/* compared as the result of an addition: a NaN may be any quiet NaN */
		EXPECT(wide_same_f16(WIDE_ADD, h[i], rounded_f16((double)x[i])),
		       "%.9g became f16 %#x", (double)x[i], h[i].bits);
		EXPECT(wide_same_bf16(WIDE_ADD, k[i], rounded_bf16((double)x[i])),
		       "%.9g became bf16 %#x", (double)x[i], k[i].bits);
	}
	ck_assert_cuda(cudaFree(f));
	ck_assert_cuda(cudaFree(b));
	ck_assert_cuda(cudaFree(x));
	ck_assert_cuda(cudaFree(h));
	ck_assert_cuda(cudaFree(k));
}
END_TEST

/* ---- every operation, type, form, order, scope and space, each lane on its own target ---- */

#define THREADS 128u

/* A combination for each block. */
struct combination {
	int op, form, order, scope, shared;
};
#define N_COMBINATIONS (N_WIDE_OPS * 4u * 5u * 3u * 2u)

CUA_FN struct combination combination_of(unsigned block)
{
	struct combination c;

	c.op = (int)(block % N_WIDE_OPS);
	block /= N_WIDE_OPS;
	c.form = (int)(block % 4);
	block /= 4;
	c.order = (int)(block % 5);
	block /= 5;
	c.scope = (int)(block % 3);
	c.shared = (int)(block / 3);
	return c;
}

/* The operations of a kernel on a target that holds a[i]; the tests below define the expected r. */
#define DEFINE_ON_GPU(s, T)                                                                        \
	__device__ static T apply_##s(struct combination c, T *p, T v)                             \
	{                                                                                          \
		return wide_apply_##s((enum wide_op)c.op, c.form, p, v, (enum cua_order)c.order,   \
				      (enum cua_scope)c.scope);                                    \
	}                                                                                          \
	__device__ static void access_##s(unsigned how, T *p, T a, T b, T other, T *r)             \
	{                                                                                          \
		enum cua_order order = (enum cua_order)(how % 5);                                  \
		enum cua_scope scope = (enum cua_scope)(how / 5 % 3);                              \
		enum cua_order load =                                                              \
			order == CUA_RELEASE || order == CUA_ACQ_REL ? CUA_ACQUIRE : order;        \
		enum cua_order store =                                                             \
			order == CUA_ACQUIRE || order == CUA_ACQ_REL ? CUA_RELEASE : order;        \
                                                                                                   \
		r[0] = cua_atomic_load_explicit_##s(p, load, scope, CUA_SPACE_GENERIC);            \
		cua_atomic_store_explicit_##s(p, b, store, scope, CUA_SPACE_GENERIC);              \
		r[1] = cua_atomic_load_##s(p);                                                     \
		cua_atomic_store_##s(p, a);                                                        \
		r[2] = cua_atomic_compare_exchange_explicit_##s(p, b, other, order, scope,         \
								CUA_SPACE_GENERIC);                \
		r[3] = *p;                                                                         \
		*p = a;                                                                            \
		r[4] = cua_atomic_compare_exchange_##s(p, b, other);                               \
		r[5] = *p;                                                                         \
	}
#define DEFINE_LACKING(s, T)                                                                       \
	__device__ static T apply_##s(struct combination c, T *p, T v)                             \
	{                                                                                          \
		(void)c;                                                                           \
		(void)p;                                                                           \
		return v;                                                                          \
	}                                                                                          \
	__device__ static void access_##s(unsigned how, T *p, T a, T b, T other, T *r)             \
	{                                                                                          \
		(void)how;                                                                         \
		(void)p;                                                                           \
		(void)a;                                                                           \
		(void)b;                                                                           \
		(void)other;                                                                       \
		(void)r;                                                                           \
	}
DEFINE_ON_GPU(f16, struct cua_f16)
DEFINE_ON_GPU(bf16, struct cua_bf16)
DEFINE_ON_GPU(complex_f32, struct cua_complex_f32)
#if defined(CUA_PORT_HAS_B128)
DEFINE_ON_GPU(complex_f64, struct cua_complex_f64)
DEFINE_ON_GPU(u128, struct cua_u128)
#else
DEFINE_LACKING(complex_f64, struct cua_complex_f64)
DEFINE_LACKING(u128, struct cua_u128)
#endif

/*
 * targets and olds have n elements for each block. Each thread of a block handles every THREADSth
 * element. All scopes are wide enough: no other thread accesses a target, and 16-bit targets
 * share a word only with targets of the same block. With plain accesses, each target has its own
 * word. Each element has six results.
 */
#define N_ACCESSES (5u * 3u * 2u)
#define DEFINE_EXACT(s, T)                                                                         \
	__global__ static void exact_##s(T *targets, T *olds, const T *a, const T *v, unsigned n)  \
	{                                                                                          \
		__shared__ T shared[THREADS * 2];                                                  \
		struct combination c = combination_of(blockIdx.x);                                 \
		size_t base = (size_t)blockIdx.x * n;                                              \
                                                                                                   \
		for (unsigned i = threadIdx.x; i < n; i += THREADS) {                              \
			T *p = c.shared ? &shared[threadIdx.x * 2] : &targets[base + i];           \
                                                                                                   \
			if (c.shared)                                                              \
				*p = a[i];                                                         \
			olds[base + i] = apply_##s(c, p, v[i]);                                    \
			if (c.shared)                                                              \
				targets[base + i] = *p;                                            \
		}                                                                                  \
	}                                                                                          \
	__global__ static void accesses_of_##s(T *targets, T *results, const T *a, const T *b,     \
					       const T *other, unsigned n)                         \
	{                                                                                          \
		__shared__ T shared[THREADS * 2];                                                  \
                                                                                                   \
		for (unsigned i = threadIdx.x; i < n; i += THREADS) {                              \
			size_t at = (size_t)blockIdx.x * n + i;                                    \
			T *p = blockIdx.x / 15 ? &shared[threadIdx.x * 2] : &targets[at * 2];      \
                                                                                                   \
			*p = a[i];                                                                 \
			access_##s(blockIdx.x, p, a[i], b[i], other[i], &results[at * 6]);         \
		}                                                                                  \
	}                                                                                          \
	START_TEST(operations_##s)                                                                 \
	{                                                                                          \
		uint64_t seed = test_seed("operations_" #s);                                       \
		unsigned edges = (unsigned)(N_WIDE_VALUES(s) * N_WIDE_VALUES(s));                  \
		/* even: so that no word belongs to two blocks */                                  \
		unsigned n = edges + 100 + edges % 2;                                              \
		T *a, *v, *targets, *olds;                                                         \
                                                                                                   \
		if (!HAS_##s())                                                                    \
			return;                                                                    \
		a = (T *)managed(n * sizeof(T));                                                   \
		v = (T *)managed(n * sizeof(T));                                                   \
		targets = (T *)managed(N_COMBINATIONS * n * sizeof(T));                            \
		olds = (T *)managed(N_COMBINATIONS * n * sizeof(T));                               \
		for (unsigned i = 0; i < n; i++) {                                                 \
			a[i] = i < edges ? wide_values_##s[i / N_WIDE_VALUES(s)]                   \
					 : random_##s(&seed);                                      \
			v[i] = i < edges ? wide_values_##s[i % N_WIDE_VALUES(s)]                   \
					 : random_##s(&seed);                                      \
		}                                                                                  \
		for (unsigned b = 0; b < N_COMBINATIONS; b++)                                      \
			memcpy(&targets[(size_t)b * n], a, n * sizeof(T));                         \
		exact_##s<<<N_COMBINATIONS, THREADS>>>(targets, olds, a, v, n);                    \
		finish_kernel();                                                                   \
		for (unsigned b = 0; b < N_COMBINATIONS; b++) {                                    \
			struct combination c = combination_of(b);                                  \
                                                                                                   \
			for (unsigned i = 0; WIDE_HAS_##s(c.op) && i < n; i++) {                   \
				T x = targets[(size_t)b * n + i], old = olds[(size_t)b * n + i];   \
				T wanted = wide_##s((enum wide_op)c.op, a[i], v[i]);               \
                                                                                                   \
				EXPECT(memcmp(&old, &a[i], sizeof(old)) == 0,                      \
				       #s                                                          \
				       " op %d form %d order %d scope %d shared %d element %u: "   \
				       "wrong old value",                                          \
				       c.op, c.form, c.order, c.scope, c.shared, i);               \
				EXPECT(wide_same_##s((enum wide_op)c.op, x, wanted),               \
				       #s " op %d form %d order %d scope %d shared %d:"            \
					  " from " SHOW_##s " by " SHOW_##s " came " SHOW_##s      \
				       ", not " SHOW_##s,                                          \
				       c.op, c.form, c.order, c.scope, c.shared, PARTS_##s(a[i]),  \
				       PARTS_##s(v[i]), PARTS_##s(x), PARTS_##s(wanted));          \
			}                                                                          \
		}                                                                                  \
		ck_assert_cuda(cudaFree(a));                                                       \
		ck_assert_cuda(cudaFree(v));                                                       \
		ck_assert_cuda(cudaFree(targets));                                                 \
		ck_assert_cuda(cudaFree(olds));                                                    \
	}                                                                                          \
	END_TEST                                                                                   \
                                                                                                   \
	START_TEST(accesses_##s)                                                                   \
	{                                                                                          \
		uint64_t seed = test_seed("accesses_" #s);                                         \
		unsigned n = (unsigned)(N_WIDE_VALUES(s) * N_WIDE_VALUES(s));                      \
		T *a, *b, *other, *targets, *results;                                              \
                                                                                                   \
		if (!HAS_##s())                                                                    \
			return;                                                                    \
		a = (T *)managed(n * sizeof(T));                                                   \
		b = (T *)managed(n * sizeof(T));                                                   \
		other = (T *)managed(n * sizeof(T));                                               \
		targets = (T *)managed(N_ACCESSES * n * 2 * sizeof(T));                            \
		results = (T *)managed(N_ACCESSES * n * 6 * sizeof(T));                            \
		for (unsigned i = 0; i < n; i++) {                                                 \
			a[i] = wide_values_##s[i / N_WIDE_VALUES(s)];                              \
			b[i] = wide_values_##s[i % N_WIDE_VALUES(s)];                              \
			other[i] = random_##s(&seed);                                              \
		}                                                                                  \
		accesses_of_##s<<<N_ACCESSES, THREADS>>>(targets, results, a, b, other, n);        \
		finish_kernel();                                                                   \
		for (unsigned k = 0; k < N_ACCESSES * n; k++) {                                    \
			const T *r = &results[(size_t)k * 6];                                      \
			T was = a[k % n], set = b[k % n], wanted[6];                               \
			/* bits, not values */                                                     \
			int equal = memcmp(&was, &set, sizeof(was)) == 0;                          \
                                                                                                   \
			wanted[0] = wanted[2] = wanted[4] = was;                                   \
			wanted[1] = set;                                                           \
			wanted[3] = wanted[5] = equal ? other[k % n] : was;                        \
			for (int i = 0; i < 6; i++)                                                \
				EXPECT(memcmp(&r[i], &wanted[i], sizeof(was)) == 0,                \
				       #s " block %u result %d: " SHOW_##s ", not " SHOW_##s,      \
				       k / n, i, PARTS_##s(r[i]), PARTS_##s(wanted[i]));           \
		}                                                                                  \
		ck_assert_cuda(cudaFree(a));                                                       \
		ck_assert_cuda(cudaFree(b));                                                       \
		ck_assert_cuda(cudaFree(other));                                                   \
		ck_assert_cuda(cudaFree(targets));                                                 \
		ck_assert_cuda(cudaFree(results));                                                 \
	}                                                                                          \
	END_TEST

DEFINE_EXACT(f16, struct cua_f16)
DEFINE_EXACT(bf16, struct cua_bf16)
DEFINE_EXACT(complex_f32, struct cua_complex_f32)
DEFINE_EXACT(complex_f64, struct cua_complex_f64)
DEFINE_EXACT(u128, struct cua_u128)

/* ---- every lane of many blocks on the same targets ---- */

CUA_DEFINE_ATOMIC_STRUCT(scored_join, struct scored, 128, scored_better(old, operand))

/* Blocks times threads is MEET, the greatest count that f16 represents exactly. */
#define MEET 2048u
struct meet {
	struct cua_f16 half[4];   /* [1] and [2] change, their neighbours never */
	struct cua_bf16 brain[4]; /* the same, by the first 256 threads */
	struct cua_u128 u, torn;
	struct cua_complex_f32 f, f_parts, f_warp, f_block;
	struct cua_complex_f64 d, d_parts, d_warp, d_block;
	struct scored best;
	struct cua_f16 in_warp[2], in_block, least;
	struct cua_bf16 brain_warp, most;
	uint32_t half_marks[MEET], wide_marks[MEET], warp_marks[2][MEET];
	uint32_t wrong;
};

__global__ static void meet_halves(struct meet *m)
{
	unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
	struct cua_f16 one = cua_f16_from_f32(1), old;
	struct cua_bf16 b1 = cua_bf16_from_f32(1);
	struct cua_complex_f32 f = {1, -2};
	struct cua_complex_f64 d = {0.5, -4};
	float was;

	old = cua_atomic_fetch_add_f16(&m->half[1], one);
	was = cua_f32_from_f16(old);
	if (was >= 0 && was < (float)MEET)
		cua_atomic_add_u32(&m->half_marks[(unsigned)was], 1);
	else
		cua_atomic_add_u32(&m->wrong, 1);
	cua_atomic_sub_f16(&m->half[2], one);
	if (id < 256) {
		cua_atomic_add_bf16(&m->brain[1], b1);
		cua_atomic_fetch_sub_bf16(&m->brain[2], b1);
	}
	cua_atomic_min_f16(&m->least, cua_f16_from_f32(-(float)id));
	cua_atomic_max_bf16(&m->most, cua_bf16_from_f32((float)(id % 250)));
	cua_atomic_add_parts_complex_f32(&m->f_parts, f);
	cua_atomic_sub_parts_complex_f64(&m->d_parts, d);
	f = cua_atomic_fetch_add_complex_f32(&m->f, f);
	if (f.im != -2 * f.re)
		cua_atomic_add_u32(&m->wrong, 1);
	f = cua_atomic_load_complex_f32(&m->f);
	if (f.im != -2 * f.re)
		cua_atomic_add_u32(&m->wrong, 1);
}

__global__ static void meet_wide(struct meet *m)
{
#if defined(CUA_PORT_HAS_B128)
	unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
	struct cua_u128 step = {1, 1}, v = {id, ~(uint64_t)id}, old;
	struct cua_complex_f64 d = {0.5, -4};
	struct scored s = {(double)(id * 7919 % MEET), id * 7919 % MEET, 1};

	old = cua_atomic_fetch_add_u128(&m->u, step);
	if (old.lo == old.hi && old.lo < MEET)
		cua_atomic_add_u32(&m->wide_marks[old.lo], 1);
	else
		cua_atomic_add_u32(&m->wrong, 1);
	for (int i = 0; i < 20; i++) {
		if (id % 3 == 0)
			cua_atomic_store_u128(&m->torn, v);
		else if (id % 3 == 1)
			v = cua_atomic_exchange_u128(&m->torn, v);
		else
			v = cua_atomic_load_u128(&m->torn);
		if (v.hi != ~v.lo)
			cua_atomic_add_u32(&m->wrong, 1);
	}
	d = cua_atomic_fetch_add_complex_f64(&m->d, d);
	if (d.im != -8 * d.re)
		cua_atomic_add_u32(&m->wrong, 1);
	d = cua_atomic_load_complex_f64(&m->d);
	if (d.im != -8 * d.re)
		cua_atomic_add_u32(&m->wrong, 1);
	s = scored_join(&m->best, s);
	if (s.score != (double)s.who)
		cua_atomic_add_u32(&m->wrong, 1);
#else
	(void)m;
#endif
}

START_TEST(contended)
{
	struct meet *m = (struct meet *)managed(sizeof(*m));
	int wide = has_wide();

	m->half[0].bits = m->brain[0].bits = 0x7d01;
	m->half[3].bits = m->brain[3].bits = 0x8000;
	m->torn.hi = UINT64_MAX;
	meet_halves<<<16, MEET / 16>>>(m);
	if (wide)
		meet_wide<<<16, MEET / 16>>>(m);
	finish_kernel();
	ck_assert_uint_eq(m->wrong, 0);
	for (unsigned i = 0; i < MEET; i++) {
		EXPECT(m->half_marks[i] == 1, "f16: old value %u came %u times", i,
		       m->half_marks[i]);
		EXPECT(!wide || m->wide_marks[i] == 1, "u128: old value %u came %u times", i,
		       m->wide_marks[i]);
	}
	ck_assert(value_f16(m->half[1]) == MEET && value_f16(m->half[2]) == -(double)MEET);
	ck_assert(value_bf16(m->brain[1]) == 256 && value_bf16(m->brain[2]) == -256);
	ck_assert(m->half[0].bits == 0x7d01 && m->half[3].bits == 0x8000);
	ck_assert(m->brain[0].bits == 0x7d01 && m->brain[3].bits == 0x8000);
	ck_assert(value_f16(m->least) == -(double)(MEET - 1) && value_bf16(m->most) == 249);
	ck_assert(m->f_parts.re == (float)MEET && m->f_parts.im == -2 * (float)MEET);
	ck_assert(m->d_parts.re == -0.5 * MEET && m->d_parts.im == 4.0 * MEET);
	ck_assert(m->f.re == (float)MEET && m->f.im == -2 * (float)MEET);
	if (wide) {
		ck_assert(m->u.lo == MEET && m->u.hi == MEET);
		ck_assert(m->d.re == 0.5 * MEET && m->d.im == -4.0 * MEET);
		ck_assert(m->best.n == MEET && m->best.who == MEET - 1);
	}
	ck_assert_cuda(cudaFree(m));
}
END_TEST

/* ---- combined ---- */

CUA_FN unsigned target_of(unsigned id, int pattern)
{
	return pattern == 0 ? 0 : pattern == 1 ? id & 1 : id % 7 < 3;
}

/* With pattern 3 half of the lanes take no part. */
__global__ static void combine_all(struct meet *m, int pattern)
{
	__shared__ struct cua_block_scratch scratch;
	unsigned id = blockIdx.x * blockDim.x + threadIdx.x, c = target_of(id, pattern);
	uint32_t mask = __ballot_sync(0xffffffffu, pattern != 3 || id % 2);
	struct cua_f16 one = cua_f16_from_f32(1);
	struct cua_complex_f32 f = {1, -2}, old;
	struct cua_complex_f64 d = {0.5, -4};
	float was;

	if (mask >> (threadIdx.x % 32) & 1) {
		was = cua_f32_from_f16(cua_atomic_fetch_add_warp_f16(mask, &m->in_warp[c], one));
		if (was >= 0 && was < (float)MEET)
			cua_atomic_add_u32(&m->warp_marks[c][(unsigned)was], 1);
		else
			cua_atomic_add_u32(&m->wrong, 1);
		cua_atomic_min_warp_f16(mask, &m->least, cua_f16_from_f32(-(float)id));
		cua_atomic_fetch_max_warp_bf16(mask, &m->most,
					       cua_bf16_from_f32((float)(id % 250)));
		cua_atomic_add_parts_warp_complex_f32(mask, &m->f_parts, f);
		cua_atomic_add_parts_warp_complex_f64(mask, &m->d_parts, d);
		old = cua_atomic_fetch_add_warp_complex_f32(mask, &m->f_warp, f);
		if (old.im != -2 * old.re)
			cua_atomic_add_u32(&m->wrong, 1);
#if defined(CUA_PORT_HAS_B128)
		d = cua_atomic_fetch_add_warp_complex_f64(mask, &m->d_warp, d);
		if (d.im != -8 * d.re)
			cua_atomic_add_u32(&m->wrong, 1);
		d.re = 0.5;
		d.im = -4;
#endif
		/* two lanes of each warp: exact in bf16 too */
		cua_atomic_add_warp_explicit_bf16(
			mask, &m->brain_warp,
			cua_bf16_from_f32(threadIdx.x % 32 / 2 == 1 ? 1.0f : 0.0f), CUA_RELEASE,
			CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	}
	__syncthreads();
	cua_atomic_add_block_f16(&m->in_block, one, &scratch);
	cua_atomic_add_block_complex_f32(&m->f_block, f, &scratch);
	cua_atomic_add_parts_block_complex_f32(&m->f_parts, f, &scratch);
#if defined(CUA_PORT_HAS_B128)
	cua_atomic_add_block_complex_f64(&m->d_block, d, &scratch);
#endif
}

START_TEST(combining)
{
	struct meet *m = (struct meet *)managed(sizeof(*m));
	int pattern = _i, wide = has_wide();
	unsigned n[2] = {0, 0}, callers, least = 0;

	for (unsigned id = 0; id < MEET; id++)
		if (pattern != 3 || id % 2) {
			n[target_of(id, pattern)]++;
			least = id;
		}
	callers = n[0] + n[1];
	combine_all<<<16, MEET / 16>>>(m, pattern);
	finish_kernel();
	ck_assert_uint_eq(m->wrong, 0);
	for (unsigned c = 0; c < 2; c++) {
		ck_assert(value_f16(m->in_warp[c]) == n[c]);
		for (unsigned i = 0; i < MEET; i++)
			EXPECT(m->warp_marks[c][i] == (i < n[c]),
			       "target %u: old value %u came %u times", c, i, m->warp_marks[c][i]);
	}
	ck_assert(value_f16(m->least) == -(double)least && value_bf16(m->most) == 249);
	ck_assert(value_bf16(m->brain_warp) == (pattern == 3 ? 1 : 2) * MEET / 32);
	ck_assert(m->f_parts.re == (float)(callers + MEET) &&
		  m->f_parts.im == -2 * (float)(callers + MEET));
	ck_assert(m->d_parts.re == 0.5 * callers && m->d_parts.im == -4.0 * callers);
	ck_assert(m->f_warp.re == (float)callers && m->f_warp.im == -2 * (float)callers);
	ck_assert(value_f16(m->in_block) == MEET);
	ck_assert(m->f_block.re == (float)MEET && m->f_block.im == -2 * (float)MEET);
	if (wide) {
		ck_assert(m->d_warp.re == 0.5 * callers && m->d_warp.im == -4.0 * callers);
		ck_assert(m->d_block.re == 0.5 * MEET && m->d_block.im == -4.0 * MEET);
	}
	ck_assert_cuda(cudaFree(m));
}
END_TEST

/*
 * The sum of the lanes is rounded once: 2048 and 32 times 1/4 are 2056. Added separately, they are
 * 2048.
 */
__global__ static void round_once(struct cua_f16 *x)
{
	__shared__ struct cua_block_scratch scratch;
	struct cua_f16 quarter = cua_f16_from_f32(0.25f);

	cua_atomic_add_warp_f16(0xffffffffu, &x[0], quarter);
	cua_atomic_add_block_f16(&x[1], quarter, &scratch);
	cua_atomic_add_f16(&x[2], quarter);
}

START_TEST(rounded_once)
{
	struct cua_f16 *x = (struct cua_f16 *)managed(3 * sizeof(*x));

	for (int i = 0; i < 3; i++)
		x[i] = rounded_f16(2048);
	round_once<<<1, 32>>>(x);
	finish_kernel();
	ck_assert(value_f16(x[0]) == 2056);
	ck_assert(value_f16(x[1]) == 2056);
	ck_assert(value_f16(x[2]) == 2048);
	ck_assert_cuda(cudaFree(x));
}
END_TEST

/* Additions by parts in shared memory, in each order; no instruction there adds both parts. */
__global__ static void shared_parts(struct cua_complex_f32 *f, struct cua_complex_f64 *d)
{
	__shared__ struct cua_complex_f32 x;
	__shared__ struct cua_complex_f64 y;
	struct cua_complex_f32 v = {1, -2};
	struct cua_complex_f64 w = {0.5, -4};

	if (threadIdx.x == 0) {
		x.re = x.im = 0;
		y.re = y.im = 0;
	}
	__syncthreads();
	for (int o = 0; o < 5; o++) {
		cua_atomic_add_parts_explicit_complex_f32(&x, v, (enum cua_order)o, CUA_SCOPE_BLOCK,
							  CUA_SPACE_GENERIC);
		cua_atomic_sub_parts_explicit_complex_f64(&y, w, (enum cua_order)o, CUA_SCOPE_BLOCK,
							  CUA_SPACE_GENERIC);
		cua_atomic_sub_parts_explicit_complex_f32(f, v, (enum cua_order)o, CUA_SCOPE_SYSTEM,
							  CUA_SPACE_GENERIC);
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		f[1] = x;
		d[0] = y;
	}
}

START_TEST(parts)
{
	struct cua_complex_f32 *f = (struct cua_complex_f32 *)managed(2 * sizeof(*f));
	struct cua_complex_f64 *d = (struct cua_complex_f64 *)managed(sizeof(*d));

	shared_parts<<<1, 96>>>(f, d);
	finish_kernel();
	ck_assert(f[0].re == -5 * 96 && f[0].im == 10 * 96);
	ck_assert(f[1].re == 5 * 96 && f[1].im == -10 * 96);
	ck_assert(d[0].re == -2.5 * 96 && d[0].im == 20 * 96);
	ck_assert_cuda(cudaFree(f));
	ck_assert_cuda(cudaFree(d));
}
END_TEST

/* ---- a message published by 128 bits, and by 16 bits ---- */

struct post {
	struct cua_u128 flag;
	struct cua_bf16 half;
	uint64_t data[64];
	uint32_t wrong, seen;
};

/*
 * Block 0 writes; the other blocks poll for a while. They may miss the flag, but never the data
 * behind a flag that they saw.
 */
__global__ static void post_and_look(struct post *p, int how)
{
	if (blockIdx.x == 0) {
		if (threadIdx.x)
			return;
		for (int i = 0; i < 64; i++)
			p->data[i] = 1000u + (unsigned)i;
		if (how == 1) {
			struct cua_bf16 one = cua_bf16_from_f32(1);

			cua_atomic_add_explicit_bf16(&p->half, one, CUA_RELEASE, CUA_SCOPE_DEVICE,
						     CUA_SPACE_GENERIC);
		}
#if defined(CUA_PORT_HAS_B128)
		if (how == 0) {
			struct cua_u128 one = {1, 1};

			cua_atomic_store_explicit_u128(&p->flag, one, CUA_RELEASE, CUA_SCOPE_DEVICE,
						       CUA_SPACE_GENERIC);
		}
#endif
		return;
	}
	for (int k = 0; k < 100000; k++) {
		uint64_t there = 0;

		if (how == 1)
			there = cua_atomic_load_explicit_bf16(&p->half, CUA_ACQUIRE,
							      CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC)
					.bits;
#if defined(CUA_PORT_HAS_B128)
		if (how == 0)
			there = cua_atomic_load_explicit_u128(&p->flag, CUA_ACQUIRE,
							      CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC)
					.hi;
#endif
		if (!there)
			continue;
		for (int i = 0; i < 64; i++)
			if (p->data[i] != 1000u + (unsigned)i)
				cua_atomic_add_u32(&p->wrong, 1);
		cua_atomic_add_u32(&p->seen, 1);
		return;
	}
}

START_TEST(message_passing)
{
	struct post *p = (struct post *)managed(sizeof(*p));

	if (_i == 1 || has_wide())
		for (int round = 0; round < (test_quick() ? 5 : 50); round++) {
			memset(p, 0, sizeof(*p));
			post_and_look<<<8, 32>>>(p, _i);
			finish_kernel();
			ck_assert_uint_eq(p->wrong, 0);
			ck_assert_uint_gt(p->seen, 0);
		}
	ck_assert_cuda(cudaFree(p));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("wide atomics in kernels");
	TCase *exact = tcase_create("exact"), *many = tcase_create("many");

	tcase_set_timeout(exact, 120);
	tcase_set_timeout(many, 120);
	tcase_add_test(exact, conversions);
	tcase_add_test(exact, operations_f16);
	tcase_add_test(exact, operations_bf16);
	tcase_add_test(exact, operations_complex_f32);
	tcase_add_test(exact, operations_complex_f64);
	tcase_add_test(exact, operations_u128);
	tcase_add_test(exact, accesses_f16);
	tcase_add_test(exact, accesses_bf16);
	tcase_add_test(exact, accesses_complex_f32);
	tcase_add_test(exact, accesses_complex_f64);
	tcase_add_test(exact, accesses_u128);
	tcase_add_test(exact, rounded_once);
	tcase_add_test(many, contended);
	tcase_add_test(many, parts);
	tcase_add_loop_test(many, combining, 0, 4);
	tcase_add_loop_test(many, message_passing, 0, 2);
	suite_add_tcase(suite, exact);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
