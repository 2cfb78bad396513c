/* SPDX-License-Identifier: MIT */
/* The arrays of locks on either backend, and the lock between host threads. */
#include <pthread.h>

#include "common.h"

static void check_free(struct cua_context *ctx, const struct cua_spinlock *locks, size_t n)
{
	struct cua_spinlock *host = test_malloc(n * sizeof(*host));
	size_t held = 0;

	test_download(ctx, host, locks, n * sizeof(*host));
	for (size_t i = 0; i < n; i++)
		held += cua_spinlock_locked(&host[i]) != 0;
	ck_assert_uint_eq(held, 0);
	free(host);
}

START_TEST(arrays)
{
	static const size_t sizes[] = {1, 2, 3, 63, 1000, 100003};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_spinlock *dirty, *locks, *more;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* dirty memory: most likely the same, full of held locks */
		dirty = test_alloc(ctx, sizes[i] * sizeof(*dirty));
		ck_assert_cua(cua_fill(ctx, dirty, sizes[i] * sizeof(*dirty), 1, "\377"));
		test_free(ctx, dirty);
		ck_assert_cua(cua_spinlock_array_create(ctx, sizes[i], &locks));
		ck_assert_ptr_nonnull(locks);
		ck_assert_uint_eq((uintptr_t)locks % 4, 0);
		check_free(ctx, locks, sizes[i]);
		ck_assert_cua(cua_spinlock_array_create(ctx, sizes[i], &more));
		ck_assert_ptr_ne(locks, more);
		ck_assert_cua(cua_spinlock_array_destroy(ctx, locks));
		check_free(ctx, more, sizes[i]);
		ck_assert_cua(cua_spinlock_array_destroy(ctx, more));
	}
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(bad_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_spinlock mark, *locks = &mark;

	ck_assert_status(cua_spinlock_array_create(NULL, 1, &locks), CUA_ERROR_NULL);
	ck_assert_status(cua_spinlock_array_create(ctx, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_spinlock_array_create(ctx, SIZE_MAX, &locks), CUA_ERROR_SIZE);
	ck_assert_status(cua_spinlock_array_create(ctx, SIZE_MAX / 4, &locks), CUA_ERROR_SIZE);
	ck_assert_status(cua_spinlock_array_create(ctx, SIZE_MAX / 4 + 2, &locks), CUA_ERROR_SIZE);
#if !SANITIZED
	/* other tools report the error: skipped there */
	if (!test_quick())
		ck_assert_status(cua_spinlock_array_create(ctx, SIZE_MAX / 16, &locks),
				 CUA_ERROR_NO_MEMORY);
#endif
	ck_assert_ptr_eq(locks, &mark);

	ck_assert_status(cua_spinlock_array_destroy(NULL, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_spinlock_array_destroy(ctx, NULL));
	ck_assert_status(cua_spinlock_array_destroy(ctx, &mark), CUA_ERROR_MEMORY_KIND);
	ck_assert_cua(cua_spinlock_array_create(ctx, 300, &locks));
	ck_assert_status(cua_spinlock_array_destroy(ctx, locks + 1), CUA_ERROR_MEMORY_KIND);
	check_free(ctx, locks, 300);
	ck_assert_cua(cua_spinlock_array_destroy(ctx, locks));

	/* an error leaves the context unchanged */
	ck_assert_cua(cua_spinlock_array_create(ctx, 5, &locks));
	check_free(ctx, locks, 5);
	ck_assert_cua(cua_spinlock_array_destroy(ctx, locks));
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA

START_TEST(one_thread)
{
	static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE,
						CUA_SCOPE_SYSTEM};
	struct cua_spinlock fresh = CUA_SPINLOCK_INIT, l;

	ck_assert_int_eq(cua_spinlock_locked(&fresh), 0);
	memset(&l, 0xff, sizeof(l));
	cua_spinlock_init(&l);
	ck_assert_int_eq(cua_spinlock_locked(&l), 0);
	ck_assert_int_eq(cua_spinlock_trylock(&l), 1);
	ck_assert_int_eq(cua_spinlock_locked(&l), 1);
	ck_assert_int_eq(cua_spinlock_trylock(&l), 0);
	ck_assert_int_eq(cua_spinlock_locked(&l), 1);
	cua_spinlock_unlock(&l);
	ck_assert_int_eq(cua_spinlock_locked(&l), 0);
	cua_spinlock_lock(&l);
	ck_assert_int_eq(cua_spinlock_trylock(&l), 0);
	cua_spinlock_unlock(&l);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(cua_spinlock_trylock_scope(&l, scopes[i]), 1);
		ck_assert_int_eq(cua_spinlock_trylock_scope(&l, scopes[i]), 0);
		ck_assert_int_eq(cua_spinlock_locked_scope(&l, scopes[i]), 1);
		cua_spinlock_unlock_scope(&l, scopes[i]);
		ck_assert_int_eq(cua_spinlock_locked_scope(&l, scopes[i]), 0);
		cua_spinlock_lock_scope(&l, scopes[i]);
		ck_assert_int_eq(cua_spinlock_locked_scope(&l, scopes[i]), 1);
		cua_spinlock_unlock_scope(&l, scopes[i]);
	}
}
END_TEST

/* A section with any exit ran once and under the lock, and the lock is free afterwards. */
START_TEST(sections)
{
	struct cua_spinlock a = CUA_SPINLOCK_INIT, b = CUA_SPINLOCK_INIT;
	int runs = 0, skipped = 0, both = 0;

	CUA_WITH_LOCK (&a) {
		runs++;
		ck_assert_int_eq(cua_spinlock_locked(&a), 1);
	}
	ck_assert_int_eq(runs, 1);
	ck_assert_int_eq(cua_spinlock_locked(&a), 0);

	CUA_WITH_LOCK (&a) {
		runs++;
		if (runs == 2)
			break;
		skipped++;
	}
	ck_assert_int_eq(runs, 2);
	ck_assert_int_eq(cua_spinlock_locked(&a), 0);

	CUA_WITH_LOCK (&a) {
		runs++;
		if (runs == 3)
			continue;
		skipped++;
	}
	ck_assert_int_eq(runs, 3);
	ck_assert_int_eq(skipped, 0);
	ck_assert_int_eq(cua_spinlock_locked(&a), 0);

	/* inside a user's loop, they leave the section only */
	for (int i = 0; i < 5; i++) {
		CUA_WITH_LOCK (&a) {
			if (i % 2)
				continue;
			if (i == 4)
				break;
			runs++;
		}
		ck_assert_int_eq(cua_spinlock_locked(&a), 0);
	}
	ck_assert_int_eq(runs, 5);

	/* a statement without braces, under an if with an else */
	if (runs == 5)
		CUA_WITH_LOCK (&a)
			runs++;
	else
		skipped++;
	if (runs != 6)
		CUA_WITH_LOCK_SCOPE (&a, CUA_SCOPE_SYSTEM)
			skipped++;
	ck_assert_int_eq(runs, 6);
	ck_assert_int_eq(skipped, 0);

	CUA_WITH_LOCK (&a) {
		CUA_WITH_LOCK_SCOPE (&b, CUA_SCOPE_BLOCK) {
			both += cua_spinlock_locked(&a) && cua_spinlock_locked(&b);
			break;
		}
		ck_assert_int_eq(cua_spinlock_locked(&b), 0);
		ck_assert_int_eq(cua_spinlock_locked(&a), 1);
		both++;
	}
	ck_assert_int_eq(both, 2);
	ck_assert_int_eq(cua_spinlock_locked(&a), 0);
}
END_TEST

static int count_under(struct cua_spinlock *l, int *count)
{
	CUA_WITH_LOCK (l)
		return ++*count + (cua_spinlock_locked(l) ? 0 : 100);
	return -1;
}

/* The value of return is computed under the lock; each argument is evaluated once. */
START_TEST(values)
{
	struct cua_spinlock locks[3] = {CUA_SPINLOCK_INIT, CUA_SPINLOCK_INIT, CUA_SPINLOCK_INIT};
	static const enum cua_scope order[] = {CUA_SCOPE_SYSTEM, CUA_SCOPE_BLOCK};
	int count = 6, i = 0, scope = 0;

	ck_assert_int_eq(count_under(&locks[0], &count), 7);
	ck_assert_int_eq(count_under(&locks[0], &count), 8);
	CUA_WITH_LOCK_SCOPE (&locks[i++], order[scope++]) {
		ck_assert_int_eq(cua_spinlock_locked(&locks[0]), 1);
	}
	ck_assert_int_eq(i, 1);
	ck_assert_int_eq(scope, 1);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(cua_spinlock_locked(&locks[i]), 0);
}
END_TEST

/* ---- several threads ---- */

#define THREADS 4
#define LOCKS 7

struct team {
	int how;
	int n; /* sections a thread */
	pthread_barrier_t start;
	struct cua_spinlock *locks; /* LOCKS locks, from the library */
	struct cua_spinlock outer;
	/* plain data; lock i protects state i, the outer lock protects total */
	struct {
		uint64_t count;
		int inside;
		unsigned wrong;
	} state[LOCKS];
	uint64_t total;
	uint64_t done[THREADS][LOCKS]; /* each row is written by its own thread */
};

struct member {
	struct team *team;
	unsigned id;
	pthread_t thread;
};

static void enter(struct team *t, unsigned lock)
{
	CUA_WRITE(t->state[lock].wrong,
		  t->state[lock].wrong + (CUA_READ(t->state[lock].inside) != 0));
	CUA_WRITE(t->state[lock].inside, 1);
	CUA_WRITE(t->state[lock].count, CUA_READ(t->state[lock].count) + 1);
	CUA_WRITE(t->state[lock].inside, 0);
}

/* Runs a section under the lock with this index. Returns whether it ran. */
static int section(struct team *t, unsigned lock, int i)
{
	struct cua_spinlock *l = &t->locks[lock];

	switch (t->how) {
	case 0:
		cua_spinlock_lock(l);
		enter(t, lock);
		cua_spinlock_unlock(l);
		return 1;
	case 1:
		CUA_WITH_LOCK (l)
			enter(t, lock);
		return 1;
	case 2:
		CUA_WITH_LOCK_SCOPE (l, CUA_SCOPE_SYSTEM) {
			enter(t, lock);
			if (i % 2)
				break;
			continue;
		}
		return 1;
	case 3:
		if (!cua_spinlock_trylock(l))
			return 0;
		enter(t, lock);
		cua_spinlock_unlock(l);
		return 1;
	case 4: /* two locks, always in the same order */
		CUA_WITH_LOCK (&t->outer) {
			CUA_WRITE(t->total, CUA_READ(t->total) + 1);
			CUA_WITH_LOCK (l)
				enter(t, lock);
		}
		return 1;
	default: /* all forms exclude each other */
		if (i % 3 == 0) {
			if (!cua_spinlock_trylock_scope(l, CUA_SCOPE_SYSTEM))
				return 0;
			enter(t, lock);
			cua_spinlock_unlock_scope(l, CUA_SCOPE_SYSTEM);
		} else if (i % 3 == 1) {
			cua_spinlock_lock(l);
			enter(t, lock);
			cua_spinlock_unlock(l);
		} else {
			CUA_WITH_LOCK (l)
				enter(t, lock);
		}
		return 1;
	}
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	uint64_t random = m->id;

	pthread_barrier_wait(&t->start);
	for (int i = 0; i < t->n; i++) {
		/* half of the sections use the same lock */
		uint64_t r = test_random(&random);
		unsigned lock = r & 1 ? 0 : (unsigned)(r >> 32) % LOCKS;

		if (section(t, lock, i))
			t->done[m->id][lock]++;
		(void)cua_spinlock_locked(&t->locks[lock]);
	}
	return NULL;
}

START_TEST(threads)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct member member[THREADS];
	struct team t;
	uint64_t total = 0;

	memset(&t, 0, sizeof(t));
	t.how = _i;
	t.n = test_quick() ? 1000 : 20000;
	ck_assert_cua(cua_spinlock_array_create(ctx, LOCKS, &t.locks));
	ck_assert_int_eq(pthread_barrier_init(&t.start, NULL, THREADS), 0);
	for (unsigned id = 0; id < THREADS; id++) {
		member[id].team = &t;
		member[id].id = id;
		ck_assert_int_eq(pthread_create(&member[id].thread, NULL, member_main, &member[id]),
				 0);
	}
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_int_eq(pthread_join(member[id].thread, NULL), 0);
	for (unsigned lock = 0; lock < LOCKS; lock++) {
		uint64_t done = 0;

		for (unsigned id = 0; id < THREADS; id++)
			done += t.done[id][lock];
		ck_assert_uint_eq(t.state[lock].wrong, 0);
		ck_assert_uint_eq(t.state[lock].count, done);
		ck_assert_uint_gt(done, 0);
		ck_assert_int_eq(cua_spinlock_locked(&t.locks[lock]), 0);
		total += done;
	}
	if (t.how != 3 && t.how < 5)
		ck_assert_uint_eq(total, THREADS * (uint64_t)t.n);
	ck_assert_uint_eq(t.total, t.how == 4 ? total : 0);
	pthread_barrier_destroy(&t.start);
	ck_assert_cua(cua_spinlock_array_destroy(ctx, t.locks));
	cua_context_destroy(ctx);
}
END_TEST

#endif /* !TEST_CUDA */

static Suite *make_suite(void)
{
	Suite *suite = suite_create("spinlock");
	TCase *calls = tcase_create("calls");

	tcase_set_timeout(calls, 120);
	tcase_add_test(calls, arrays);
	tcase_add_test(calls, bad_arguments);
#if !TEST_CUDA
	tcase_add_test(calls, one_thread);
	tcase_add_test(calls, sections);
	tcase_add_test(calls, values);
	tcase_add_loop_test(calls, threads, 0, 6);
#endif
	suite_add_tcase(suite, calls);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
