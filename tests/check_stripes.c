/* SPDX-License-Identifier: MIT */
/*
 * Lock stripes: their creation on either backend, and the stripes and striped atomics between host
 * threads.
 */
#include <pthread.h>

#include "common.h"

START_TEST(arrays)
{
	static const size_t sizes[] = {1, 2, 3, 64, 1000, 30011};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int i = 0; i < 6; i++) {
		struct cua_stripes stripes;
		struct cua_stripe *host = test_malloc(sizes[i] * sizeof(*host));
		uint32_t any = 0;

		memset(&stripes, 0xff, sizeof(stripes));
		ck_assert_cua(cua_stripes_create(ctx, sizes[i], &stripes));
		ck_assert_uint_eq(stripes.n, sizes[i]);
		ck_assert_uint_eq(stripes.layout, CUA_STRIPES_LAYOUT);
		ck_assert_uint_eq((uintptr_t)stripes.locks % 32, 0);
		test_download(ctx, host, stripes.locks, sizes[i] * sizeof(*host));
		for (size_t k = 0; k < sizes[i]; k++)
			any |= host[k].lock.word;
		ck_assert_uint_eq(any, 0);
		stripes.layout++;
		ck_assert_status(cua_stripes_destroy(ctx, &stripes), CUA_ERROR_LAYOUT);
		stripes.layout--;
		ck_assert_cua(cua_stripes_destroy(ctx, &stripes));
		ck_assert_ptr_null(stripes.locks);
		ck_assert_uint_eq(stripes.n, 0);
		ck_assert_cua(cua_stripes_destroy(ctx, &stripes));
		free(host);
	}
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(bad_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_stripe locks[2] = {CUA_STRIPE_INIT, CUA_STRIPE_INIT};
	struct cua_stripes stripes, before;

	memset(&stripes, 0x5a, sizeof(stripes));
	before = stripes;
	ck_assert_status(cua_stripes_create(NULL, 1, &stripes), CUA_ERROR_NULL);
	ck_assert_status(cua_stripes_create(NULL, 0, &stripes), CUA_ERROR_NULL);
	ck_assert_status(cua_stripes_create(ctx, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_stripes_create(ctx, 0, &stripes), CUA_ERROR_VALUE);
	ck_assert_status(cua_stripes_create(ctx, SIZE_MAX / 4, &stripes), CUA_ERROR_SIZE);
	ck_assert_status(cua_stripes_init(NULL, 1, &stripes), CUA_ERROR_NULL);
	ck_assert_status(cua_stripes_init(locks, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_stripes_init(locks, 0, &stripes), CUA_ERROR_VALUE);
	ck_assert_status(cua_stripes_init(locks, UINT64_MAX, &stripes), CUA_ERROR_SIZE);
	ck_assert_status(cua_stripes_init(locks, UINT64_MAX / 32, &stripes), CUA_ERROR_SIZE);
	ck_assert_status(cua_stripes_init((struct cua_stripe *)((uintptr_t)locks + 4), 1, &stripes),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_mem_eq(&stripes, &before, sizeof(stripes));
	ck_assert_status(cua_stripes_destroy(NULL, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_stripes_destroy(ctx, NULL));
	ck_assert_cua(cua_stripes_init(locks, 2, &stripes));
	ck_assert_status(cua_stripes_destroy(ctx, &stripes), CUA_ERROR_MEMORY_KIND);
	ck_assert_ptr_eq(stripes.locks, locks);
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA

/* Consecutive objects, as in an array, spread over the stripes. */
START_TEST(spread)
{
	static const size_t strides[] = {4, 8, 16, 24, 32, 256, 4096, 65536};
	enum { N = 64, OBJECTS = 64 * 100 };
	static struct cua_stripe locks[N];
	struct cua_stripes stripes;

	ck_assert_cua(cua_stripes_init(locks, N, &stripes));
	for (int i = 0; i < 8; i++) {
		unsigned counts[N] = {0};

		for (size_t k = 0; k < OBJECTS; k++) {
			const void *p = (const void *)(uintptr_t)(0x700000000000u + k * strides[i]);
			uint64_t at = cua_stripes_index(&stripes, p);

			ck_assert_uint_lt(at, N);
			ck_assert_ptr_eq(cua_stripes_at(&stripes, p), &locks[at].lock);
			counts[at]++;
		}
		/* 100 on average, within six deviations of a random spread */
		for (int k = 0; k < N; k++)
			ck_assert_msg(counts[k] > 40 && counts[k] < 160,
				      "stride %zu: stripe %d has %u of %u", strides[i], k,
				      counts[k], OBJECTS);
	}
}
END_TEST

struct wide {
	uint64_t word[3];
	uint32_t half[2];
};

static struct wide wide_of(uint64_t v)
{
	struct wide w = {{v, 2 * v, 3 * v}, {(uint32_t)v, (uint32_t)~v}};

	return w;
}

static int whole(const struct wide *w)
{
	struct wide expected = wide_of(w->word[0]);

	return !memcmp(w, &expected, sizeof(expected));
}

CUA_FN struct wide wide_next(struct wide old, struct wide operand)
{
	return wide_of(old.word[0] + operand.word[0]);
}
CUA_DEFINE_ATOMIC_STRIPED(wide_add, struct wide, wide_next(old, operand))
CUA_DEFINE_ATOMIC_STRIPED_TYPE(wide, struct wide)

struct small {
	unsigned char bytes[11];
};
CUA_DEFINE_ATOMIC_STRIPED_TYPE(small, struct small)

START_TEST(one_thread)
{
	static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE,
						CUA_SCOPE_SYSTEM};
	struct cua_stripe locks[5];
	struct cua_stripes s;
	struct wide objects[40], w;
	int runs = 0;

	for (int n = 1; n <= 5; n++) {
		for (int i = 0; i < n; i++) {
			memset(&locks[i], 0xff, sizeof(locks[i]));
			cua_stripe_init(&locks[i]);
		}
		ck_assert_cua(cua_stripes_init(locks, (uint64_t)n, &s));
		for (int i = 0; i < 40; i++) {
			const struct wide *p = &objects[i], *q = &objects[(i * 7 + 3) % 40];
			enum cua_scope scope = scopes[i % 3];
			int same = cua_stripes_index(&s, p) == cua_stripes_index(&s, q);

			ck_assert_int_eq(cua_stripes_locked(&s, p), 0);
			ck_assert_int_eq(cua_stripes_trylock(&s, p), 1);
			ck_assert_int_eq(cua_stripes_locked(&s, p), 1);
			ck_assert_int_eq(cua_stripes_locked(&s, q), same);
			ck_assert_int_eq(cua_stripes_trylock(&s, p), 0);
			ck_assert_int_eq(cua_stripes_lock_for(&s, p, 100), 0);
			cua_stripes_unlock(&s, p);
			cua_stripes_lock(&s, p);
			cua_stripes_unlock(&s, p);
			ck_assert_int_eq(cua_stripes_lock_for(&s, p, 0), 1);
			cua_stripes_unlock(&s, p);
			cua_stripes_lock_two(&s, p, q);
			ck_assert_int_eq(cua_stripes_locked(&s, p) && cua_stripes_locked(&s, q), 1);
			cua_stripes_unlock_two(&s, q, p);
			cua_stripes_lock_two_scope(&s, q, p, scope);
			ck_assert_int_eq(cua_stripes_trylock_scope(&s, p, scope), 0);
			ck_assert_int_eq(cua_stripes_trylock_scope(&s, q, scope), 0);
			cua_stripes_unlock_two_scope(&s, q, p, scope);
			cua_stripes_lock_two(&s, p, p);
			cua_stripes_unlock_two(&s, p, p);
			cua_stripes_lock_scope(&s, p, scope);
			ck_assert_int_eq(cua_stripes_lock_for_scope(&s, p, 100, scope), 0);
			ck_assert_int_eq(cua_stripes_locked_scope(&s, p, scope), 1);
			cua_stripes_unlock_scope(&s, p, scope);
			CUA_WITH_STRIPE (&s, p) {
				runs += cua_stripes_locked(&s, p);
				if (i % 3 == 1)
					break;
				if (i % 3 == 2)
					continue;
			}
			CUA_WITH_STRIPE_SCOPE (&s, p, scope)
				runs += cua_stripes_locked(&s, p);
			for (int k = 0; k < n; k++)
				ck_assert_uint_eq(locks[k].lock.word, 0);
		}
	}
	ck_assert_int_eq(runs, 5 * 40 * 2);

	objects[0] = wide_of(5);
	w = wide_add(s, &objects[0], wide_of(3));
	ck_assert_uint_eq(w.word[0], 5);
	w = wide_load(s, &objects[0]);
	ck_assert_uint_eq(w.word[2], 24);
	wide_store(s, &objects[0], wide_of(100));
	w = wide_exchange(s, &objects[0], wide_of(101));
	ck_assert_uint_eq(w.word[1], 200);
	w = wide_compare_exchange(s, &objects[0], wide_of(100), wide_of(7));
	ck_assert_uint_eq(w.word[0], 101);
	ck_assert_uint_eq(objects[0].word[0], 101);
	w = wide_compare_exchange(s, &objects[0], wide_of(101), wide_of(7));
	ck_assert_uint_eq(w.word[0], 101);
	ck_assert(whole(&objects[0]) && objects[0].word[0] == 7);
	for (int order = CUA_RELAXED; order <= CUA_SEQ_CST; order++) {
		w = wide_add_explicit(s, &objects[0], wide_of(1), (enum cua_order)order,
				      CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
		ck_assert_uint_eq(w.word[0], 7);
		w = wide_load_explicit(s, &objects[0], (enum cua_order)order, CUA_SCOPE_BLOCK,
				       CUA_SPACE_GENERIC);
		ck_assert_uint_eq(w.word[0], 8);
		wide_store_explicit(s, &objects[0], wide_of(9), (enum cua_order)order,
				    CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		w = wide_exchange_explicit(s, &objects[0], wide_of(10), (enum cua_order)order,
					   CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
		ck_assert_uint_eq(w.word[0], 9);
		w = wide_compare_exchange_explicit(s, &objects[0], wide_of(10), wide_of(7),
						   (enum cua_order)order, CUA_SCOPE_SYSTEM,
						   CUA_SPACE_GENERIC);
		ck_assert_uint_eq(w.word[0], 10);
	}
	ck_assert(whole(&objects[0]) && objects[0].word[0] == 7);
}
END_TEST

/* Every byte is compared, also the bytes beyond the last whole word. */
START_TEST(compared_bytes)
{
	struct cua_stripe locks[1] = {CUA_STRIPE_INIT};
	struct cua_stripes s;
	struct small x, expected, desired, old;

	ck_assert_cua(cua_stripes_init(locks, 1, &s));
	for (unsigned i = 0; i < sizeof(x.bytes); i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			memset(&x, 0x3c, sizeof(x));
			memset(&desired, 0x77, sizeof(desired));
			expected = x;
			expected.bytes[i] ^= (unsigned char)(1u << bit);
			old = small_compare_exchange(s, &x, expected, desired);
			ck_assert_mem_eq(&old, &x, sizeof(old));
			ck_assert_uint_eq(x.bytes[i], 0x3c);
			expected = x;
			old = small_compare_exchange(s, &x, expected, desired);
			ck_assert_mem_eq(&old, &expected, sizeof(old));
			ck_assert_mem_eq(&x, &desired, sizeof(x));
		}
}
END_TEST

/* ---- several threads ---- */

#define THREADS 4
#define OBJECTS 12

struct team {
	struct cua_stripes stripes;
	unsigned n;
	pthread_barrier_t start;
	struct wide objects[OBJECTS];
	int64_t accounts[OBJECTS];
};

struct member {
	struct team *team;
	unsigned id;
	pthread_t thread;
	uint64_t added[OBJECTS], torn;
};

static void *team_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	uint64_t random = m->id;

	pthread_barrier_wait(&t->start);
	for (unsigned i = 0; i < t->n; i++) {
		uint64_t r = test_random(&random);
		unsigned k = (unsigned)(r >> 8) % OBJECTS, j = (unsigned)(r >> 24) % OBJECTS;
		struct wide *p = &t->objects[k], old, seen;

		switch (r % 6) {
		case 0:
			old = wide_add(t->stripes, p, wide_of(1));
			m->added[k]++;
			break;
		case 1:
			old = wide_load(t->stripes, p);
			for (;;) {
				seen = wide_compare_exchange(t->stripes, p, old,
							     wide_of(old.word[0] + 2));
				if (!memcmp(&seen, &old, sizeof(old)))
					break;
				old = seen;
			}
			m->added[k] += 2;
			break;
		case 2:
			CUA_WITH_STRIPE (&t->stripes, p) {
				old = CUA_READ(*p);
				CUA_WRITE(*p, wide_of(old.word[0] + 3));
			}
			m->added[k] += 3;
			break;
		case 3:
			if (!cua_stripes_lock_for(&t->stripes, p, 30000))
				continue;
			old = CUA_READ(*p);
			CUA_WRITE(*p, wide_of(old.word[0] + 4));
			cua_stripes_unlock(&t->stripes, p);
			m->added[k] += 4;
			break;
		default:
			cua_stripes_lock_two(&t->stripes, &t->accounts[k], &t->accounts[j]);
			t->accounts[k] -= (int64_t)(r >> 40);
			t->accounts[j] += (int64_t)(r >> 40);
			cua_stripes_unlock_two(&t->stripes, &t->accounts[k], &t->accounts[j]);
			continue;
		}
		m->torn += !whole(&old);
	}
	return NULL;
}

static void run_team(struct team *t, void *(*body)(void *), struct member *member, unsigned threads)
{
	ck_assert_int_eq(pthread_barrier_init(&t->start, NULL, threads), 0);
	memset(member, 0, threads * sizeof(*member));
	for (unsigned id = 0; id < threads; id++) {
		member[id].team = t;
		member[id].id = id;
		ck_assert_int_eq(pthread_create(&member[id].thread, NULL, body, &member[id]), 0);
	}
	for (unsigned id = 0; id < threads; id++)
		ck_assert_int_eq(pthread_join(member[id].thread, NULL), 0);
	pthread_barrier_destroy(&t->start);
}

START_TEST(threads)
{
	static const size_t sizes[] = {1, 2, 7, 100};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct member member[THREADS];
	struct team t;
	int64_t sum = 0;

	memset(&t, 0, sizeof(t));
	t.n = test_quick() ? 1000 : 20000;
	for (int k = 0; k < OBJECTS; k++)
		t.objects[k] = wide_of(0);
	ck_assert_cua(cua_stripes_create(ctx, sizes[_i], &t.stripes));
	run_team(&t, team_main, member, THREADS);
	for (int k = 0; k < OBJECTS; k++) {
		uint64_t added = 0;

		for (int id = 0; id < THREADS; id++)
			added += member[id].added[k];
		ck_assert(whole(&t.objects[k]));
		ck_assert_uint_eq(t.objects[k].word[0], added);
		ck_assert_uint_gt(added, 0);
		sum += t.accounts[k];
	}
	for (int id = 0; id < THREADS; id++)
		ck_assert_uint_eq(member[id].torn, 0);
	ck_assert_int_eq(sum, 0);
	ck_assert_cua(cua_stripes_destroy(ctx, &t.stripes));
	cua_context_destroy(ctx);
}
END_TEST

#endif /* !TEST_CUDA */

static Suite *make_suite(void)
{
	Suite *suite = suite_create("stripes");
	TCase *tcase = tcase_create("stripes");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, arrays);
	tcase_add_test(tcase, bad_arguments);
#if !TEST_CUDA
	tcase_add_test(tcase, spread);
	tcase_add_test(tcase, one_thread);
	tcase_add_test(tcase, compared_bytes);
	tcase_add_loop_test(tcase, threads, 0, 4);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
