/* SPDX-License-Identifier: MIT */
/*
 * The forms that the macros give every lock. Arrays on either backend, and the forms for a warp and
 * for a block between host threads, where a warp is 1 lane and a block is 1 thread.
 */
#include <pthread.h>

#include "common.h"
#include "lock_form_calls.h"

/* ---- arrays ---- */

static void check_zeros(struct cua_context *ctx, const void *p, size_t bytes)
{
	unsigned char *host = test_malloc(bytes);
	size_t sum = 0;

	test_download(ctx, host, p, bytes);
	for (size_t i = 0; i < bytes; i++)
		sum += host[i] != 0;
	ck_assert_uint_eq(sum, 0);
	free(host);
}

#define ARRAY(name)                                                                                \
	do {                                                                                       \
		struct name *locks = NULL, *none = (struct name *)&n;                              \
                                                                                                   \
		ck_assert_cua(name##_array_create(ctx, n, &locks));                                \
		ck_assert_ptr_nonnull(locks);                                                      \
		check_zeros(ctx, locks, n * sizeof(*locks));                                       \
		ck_assert_cua(name##_array_destroy(ctx, locks));                                   \
		ck_assert_cua(name##_array_destroy(ctx, NULL));                                    \
		ck_assert_status(name##_array_destroy(NULL, NULL), CUA_ERROR_NULL);                \
		ck_assert_status(name##_array_create(ctx, n, NULL), CUA_ERROR_NULL);               \
		ck_assert_status(name##_array_create(NULL, n, &none), CUA_ERROR_NULL);             \
		ck_assert_status(name##_array_create(ctx, SIZE_MAX / 2, &none), CUA_ERROR_SIZE);   \
		ck_assert_ptr_eq(none, (struct name *)&n);                                         \
	} while (0)

START_TEST(arrays)
{
	static const size_t sizes[] = {0, 1, 7, 10007};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int i = 0; i < 4; i++) {
		size_t n = sizes[i];

		ARRAY(cua_spinlock);
		ARRAY(cua_ticketlock);
		ARRAY(cua_mcslock);
		ARRAY(cua_rwlock);
		ARRAY(cua_seqlock);
	}
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(semaphore_arrays)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_semaphore *s = NULL, *none = (struct cua_semaphore *)&s, host[1000];

	ck_assert_cua(cua_semaphore_array_create(ctx, 1000, 4000000000u, &s));
	test_download(ctx, host, s, sizeof(host));
	for (int i = 0; i < 1000; i++)
		ck_assert_uint_eq(host[i].count, 4000000000u);
	ck_assert_cua(cua_semaphore_array_destroy(ctx, s));
	ck_assert_cua(cua_semaphore_array_create(ctx, 1, 0, &s));
	check_zeros(ctx, s, sizeof(*s));
	ck_assert_cua(cua_semaphore_array_destroy(ctx, s));
	s = NULL;
	ck_assert_cua(cua_semaphore_array_create(ctx, 0, 1, &s));
	ck_assert_ptr_nonnull(s);
	ck_assert_cua(cua_semaphore_array_destroy(ctx, s));
	ck_assert_cua(cua_semaphore_array_destroy(ctx, NULL));
	ck_assert_status(cua_semaphore_array_create(ctx, 1, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_semaphore_array_create(NULL, 1, 1, &none), CUA_ERROR_NULL);
	ck_assert_status(cua_semaphore_array_create(ctx, SIZE_MAX / 2, 1, &none), CUA_ERROR_SIZE);
	ck_assert_ptr_eq(none, (struct cua_semaphore *)&s);
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA

/* ---- a single thread, every form at every scope ---- */

START_TEST(one_thread)
{
	static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE,
						CUA_SCOPE_SYSTEM};
	enum group_kind kind = (enum group_kind)_i;
	struct cua_mcslock_node node, other;
	struct group_locks l;

	memset(&l, 0xff, sizeof(l));
	group_init(&l);
	ck_assert_int_eq(group_locked(&l), 0);
	for (int i = 0; i < 3 * 2 * GROUP_HOWS; i++) {
		enum group_how how = (enum group_how)(i % GROUP_HOWS);
		int block = i / GROUP_HOWS % 2, excludes = kind != GROUP_READ;
		enum cua_scope scope = scopes[i / GROUP_HOWS / 2];
		uint64_t start;

		ck_assert_int_eq(group_take(&l, kind, &node, how, UINT64_MAX, 1, block, scope), 1);
		ck_assert_int_eq(group_locked(&l), 1);
		if (excludes) {
			ck_assert_int_eq(
				group_take(&l, kind, &other, GROUP_TRYLOCK, 0, 1, 0, scope), 0);
			ck_assert_int_eq(
				group_take(&l, kind, &other, GROUP_TRYLOCK, 0, 1, 1, scope), 0);
			start = cua_port_clock_ns();
			ck_assert_int_eq(group_take(&l, kind, &other, GROUP_LOCK_FOR, 200000, 1,
						    block, scope),
					 0);
			ck_assert_uint_ge(cua_port_clock_ns() - start, 200000);
			/* the same lock, acquired by a lane */
			ck_assert_int_eq(
				group_take(&l, kind, &other, GROUP_TRYLOCK, 0, 0, 0, scope), 0);
		} else {
			ck_assert_int_eq(cua_rwlock_write_trylock_block(&l.rw), 0);
			ck_assert_int_eq(
				group_take(&l, kind, &other, GROUP_TRYLOCK, 0, 1, 0, scope), 1);
			group_give(&l, kind, &other, 1, 0, scope);
		}
		group_give(&l, kind, &node, 1, block, scope);
		ck_assert_int_eq(group_locked(&l), 0);
	}
}
END_TEST

/* The forms without a scope. */
#define FORMS(name, ...)                                                                           \
	do {                                                                                       \
		name##_lock_warp(__VA_ARGS__, 1);                                                  \
		ck_assert_int_eq(group_locked(&l), 1);                                             \
		name##_unlock_warp(__VA_ARGS__, 1);                                                \
		ck_assert_int_eq(name##_trylock_warp(__VA_ARGS__, 1), 1);                          \
		name##_unlock_block(__VA_ARGS__);                                                  \
		ck_assert_int_eq(name##_lock_for_warp(__VA_ARGS__, 1000, 1), 1);                   \
		name##_unlock_warp(__VA_ARGS__, 1);                                                \
		name##_lock_block(__VA_ARGS__);                                                    \
		ck_assert_int_eq(group_locked(&l), 1);                                             \
		name##_unlock_block(__VA_ARGS__);                                                  \
		ck_assert_int_eq(name##_trylock_block(__VA_ARGS__), 1);                            \
		name##_unlock_block(__VA_ARGS__);                                                  \
		ck_assert_int_eq(name##_lock_for_block(__VA_ARGS__, 1000), 1);                     \
		name##_unlock_block(__VA_ARGS__);                                                  \
		ck_assert_int_eq(group_locked(&l), 0);                                             \
	} while (0)

START_TEST(forms)
{
	struct cua_mcslock_node node;
	struct group_locks l;

	group_init(&l);
	FORMS(cua_spinlock, &l.spin);
	FORMS(cua_ticketlock, &l.ticket);
	FORMS(cua_mcslock, &l.mcs, &node);
	FORMS(cua_rwlock_read, &l.rw);
	FORMS(cua_rwlock_write, &l.rw);
	FORMS(cua_seqlock, &l.seq);
	FORMS(cua_semaphore, &l.semaphore);
}
END_TEST

/* ---- several threads ---- */

#define THREADS 4

struct team {
	enum group_kind kind;
	unsigned n;
	pthread_barrier_t start;
	struct group_locks l;
	/* plain data under the lock */
	uint64_t count;
	int inside;
	unsigned wrong;
};

struct member {
	struct team *team;
	unsigned id;
	pthread_t thread;
	struct cua_mcslock_node node;
	uint64_t done, failed;
};

static void *exclusion_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	pthread_barrier_wait(&t->start);
	for (unsigned i = 0; i < t->n; i++) {
		unsigned random = i * 7 + m->id;
		enum group_how how = (enum group_how)(random % GROUP_HOWS);
		uint32_t mask = random / GROUP_HOWS % 3 != 0;
		int block = random / GROUP_HOWS % 3 == 2;

		if (!group_take(&t->l, t->kind, &m->node, how, 20000, mask, block,
				CUA_SCOPE_DEVICE)) {
			m->failed++;
			continue;
		}
		CUA_WRITE(t->wrong, CUA_READ(t->wrong) + (CUA_READ(t->inside) != 0));
		CUA_WRITE(t->inside, 1);
		CUA_WRITE(t->count, CUA_READ(t->count) + 1);
		CUA_WRITE(t->inside, 0);
		group_give(&t->l, t->kind, &m->node, mask, block, CUA_SCOPE_DEVICE);
		m->done++;
	}
	return NULL;
}

/* A holder of the lock, for itself, its warp or its block, is alone in the section. */
START_TEST(exclusion)
{
	struct member member[THREADS];
	struct team t;
	uint64_t done = 0, failed = 0;

	if (_i == GROUP_READ)
		return;
	memset(&t, 0, sizeof(t));
	memset(member, 0, sizeof(member));
	t.kind = (enum group_kind)_i;
	t.n = test_quick() ? 500 : 10000;
	group_init(&t.l);
	ck_assert_int_eq(pthread_barrier_init(&t.start, NULL, THREADS), 0);
	for (unsigned id = 0; id < THREADS; id++) {
		member[id].team = &t;
		member[id].id = id;
		ck_assert_int_eq(
			pthread_create(&member[id].thread, NULL, exclusion_main, &member[id]), 0);
	}
	for (unsigned id = 0; id < THREADS; id++) {
		ck_assert_int_eq(pthread_join(member[id].thread, NULL), 0);
		done += member[id].done;
		failed += member[id].failed;
	}
	pthread_barrier_destroy(&t.start);
	ck_assert_uint_eq(t.wrong, 0);
	ck_assert_uint_eq(t.count, done);
	ck_assert_uint_eq(done + failed, (uint64_t)THREADS * t.n);
	ck_assert_uint_ge(done, (uint64_t)THREADS * t.n / GROUP_HOWS);
	ck_assert_int_eq(group_locked(&t.l), 0);
}
END_TEST

#endif /* !TEST_CUDA */

static Suite *make_suite(void)
{
	Suite *suite = suite_create("lock forms");
	TCase *tcase = tcase_create("lock forms");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, arrays);
	tcase_add_test(tcase, semaphore_arrays);
#if !TEST_CUDA
	tcase_add_loop_test(tcase, one_thread, 0, GROUP_KINDS);
	tcase_add_test(tcase, forms);
	tcase_add_loop_test(tcase, exclusion, 0, GROUP_KINDS);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
