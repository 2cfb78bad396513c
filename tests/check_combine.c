/* SPDX-License-Identifier: MIT */
/* Combining between host threads: a warp is 1 lane, a block is 1 thread. */
#include <pthread.h>

#include "common.h"

CUA_DEFINE_COMBINE(add, uint64_t, uint64_t, *state += argument);
CUA_DEFINE_COMBINE_FETCH(fetch_add, uint64_t, uint64_t, {
	uint64_t old = *state;

	*state += argument;
	argument = old;
});

static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE, CUA_SCOPE_SYSTEM};

START_TEST(one_thread)
{
	struct cua_spinlock l = CUA_SPINLOCK_INIT;
	uint64_t sum = 5, scratch = 99;

	add_warp(&l, &sum, 3, 1);
	ck_assert_uint_eq(sum, 8);
	add_block(&l, &sum, 4, &scratch);
	ck_assert_uint_eq(sum, 12);
	ck_assert_uint_eq(fetch_add_warp(&l, &sum, 10, 1), 12);
	ck_assert_uint_eq(fetch_add_block(&l, &sum, 100, &scratch), 22);
	ck_assert_uint_eq(sum, 122);
	for (int i = 0; i < 3; i++) {
		add_warp_scope(&l, &sum, 1, 1, scopes[i]);
		add_block_scope(&l, &sum, 1, 1, &scratch, scopes[i]);
		ck_assert_uint_eq(fetch_add_warp_scope(&l, &sum, 1, 1, scopes[i]), 124 + 4 * i);
		ck_assert_uint_eq(fetch_add_block_scope(&l, &sum, 1, 1, &scratch, scopes[i]),
				  125 + 4 * i);
		ck_assert_int_eq(cua_spinlock_locked(&l), 0);
	}
	ck_assert_uint_eq(sum, 134);
}
END_TEST

/* No thread has a section: nothing happens, and the lock is not even acquired. */
START_TEST(no_sections)
{
	struct cua_spinlock l = CUA_SPINLOCK_INIT;
	uint64_t sum = 5, scratch = 99;

	cua_spinlock_lock(&l);
	add_block_scope(&l, &sum, 3, 0, &scratch, CUA_SCOPE_DEVICE);
	ck_assert_uint_eq(fetch_add_block_scope(&l, &sum, 3, 0, &scratch, CUA_SCOPE_DEVICE), 3);
	ck_assert_int_eq(cua_spinlock_locked(&l), 1);
	cua_spinlock_unlock(&l);
	ck_assert_uint_eq(sum, 5);
	ck_assert_uint_eq(scratch, 99);
}
END_TEST

/* Arguments and states with sizes that are not multiples of a word, also through a pointer. */
#define DEFINE_BYTES(n)                                                                            \
	struct bytes_##n {                                                                         \
		unsigned char b[n];                                                                \
	};                                                                                         \
	CUA_DEFINE_COMBINE_FETCH(swap_##n, struct bytes_##n, struct bytes_##n, {                   \
		struct bytes_##n old = *state;                                                     \
		*state = argument;                                                                 \
		argument = old;                                                                    \
	});                                                                                        \
	static void check_bytes_##n(void)                                                          \
	{                                                                                          \
		struct cua_spinlock l = CUA_SPINLOCK_INIT;                                         \
		struct bytes_##n state, in, out, scratch;                                          \
                                                                                                   \
		memset(&state, 1, sizeof(state));                                                  \
		for (unsigned i = 0; i < (n); i++)                                                 \
			in.b[i] = (unsigned char)(i + 7);                                          \
		out = swap_##n##_warp(&l, &state, in, 1);                                          \
		for (unsigned i = 0; i < (n); i++)                                                 \
			ck_assert(out.b[i] == 1 && state.b[i] == i + 7);                           \
		memset(&in, 3, sizeof(in));                                                        \
		out = swap_##n##_block(&l, &state, in, &scratch);                                  \
		for (unsigned i = 0; i < (n); i++)                                                 \
			ck_assert(out.b[i] == i + 7 && state.b[i] == 3);                           \
	}
DEFINE_BYTES(1)
DEFINE_BYTES(2)
DEFINE_BYTES(3)
DEFINE_BYTES(4)
DEFINE_BYTES(5)
DEFINE_BYTES(8)
DEFINE_BYTES(11)
DEFINE_BYTES(16)
DEFINE_BYTES(24)
DEFINE_BYTES(39)

struct large {
	uint64_t element[1000];
};
CUA_DEFINE_COMBINE(large_add, struct large *, uint32_t, {
	uint64_t *element = &(*state)->element[argument];

	CUA_WRITE(*element, CUA_READ(*element) + 1);
});

START_TEST(any_type)
{
	struct cua_spinlock l = CUA_SPINLOCK_INIT;
	struct large *large = calloc(1, sizeof(*large)), *mine = large;
	uint32_t scratch;

	check_bytes_1();
	check_bytes_2();
	check_bytes_3();
	check_bytes_4();
	check_bytes_5();
	check_bytes_8();
	check_bytes_11();
	check_bytes_16();
	check_bytes_24();
	check_bytes_39();
	ck_assert_ptr_nonnull(large);
	large_add_warp(&l, &mine, 999, 1);
	large_add_block(&l, &mine, 999, &scratch);
	ck_assert_ptr_eq(mine, large);
	ck_assert_uint_eq(large->element[999], 2);
	free(large);
}
END_TEST

/* A section with any exit ran once and under the lock, and the lock is free afterwards. */
START_TEST(sections)
{
	struct cua_spinlock a = CUA_SPINLOCK_INIT, b = CUA_SPINLOCK_INIT;
	int runs = 0, skipped = 0;

	CUA_WITH_LOCK_WARP (&a, 1) {
		runs++;
		ck_assert_int_eq(cua_spinlock_locked(&a), 1);
	}
	ck_assert_int_eq(cua_spinlock_locked(&a), 0);
	CUA_WITH_LOCK_WARP (&a, 1) {
		if (++runs == 2)
			break;
		skipped++;
	}
	ck_assert_int_eq(cua_spinlock_locked(&a), 0);
	for (int i = 0; i < 3; i++) {
		CUA_WITH_LOCK_WARP_SCOPE (&a, 1, scopes[i]) {
			if (++runs > 2)
				continue;
			skipped++;
		}
		ck_assert_int_eq(cua_spinlock_locked(&a), 0);
	}
	ck_assert_int_eq(runs, 5);
	if (runs == 5)
		CUA_WITH_LOCK_WARP (&a, 1)
			CUA_WITH_LOCK_WARP (&b, 1)
				runs += cua_spinlock_locked(&a) && cua_spinlock_locked(&b);
	else
		skipped++;
	ck_assert_int_eq(runs, 6);
	ck_assert_int_eq(skipped, 0);
	ck_assert_int_eq(cua_spinlock_locked(&a) + cua_spinlock_locked(&b), 0);
}
END_TEST

/* ---- several threads ---- */

#define THREADS 4

struct team {
	int n; /* sections a thread */
	pthread_barrier_t start;
	struct cua_spinlock lock;
	uint64_t count;          /* under the lock */
	unsigned char *had;      /* a byte for each number handed out */
	uint64_t extra[THREADS]; /* sections that handed out no number */
};

struct member {
	struct team *team;
	unsigned id;
	int disordered;
	pthread_t thread;
};

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	uint64_t random = m->id, last = 0, got, scratch;

	pthread_barrier_wait(&t->start);
	for (int i = 0; i < t->n; i++) {
		switch (test_random(&random) % 6) {
		case 0: got = fetch_add_warp(&t->lock, &t->count, 1, 1); break;
		case 1: got = fetch_add_block(&t->lock, &t->count, 1, &scratch); break;
		case 2:
			got = 0;
			CUA_WITH_LOCK_WARP (&t->lock, 1) {
				got = CUA_READ(t->count);
				CUA_WRITE(t->count, got + 1);
			}
			break;
		case 3:
			cua_spinlock_lock(&t->lock);
			got = CUA_READ(t->count);
			CUA_WRITE(t->count, got + 1);
			cua_spinlock_unlock(&t->lock);
			break;
		case 4:
			add_warp(&t->lock, &t->count, 1, 1);
			t->extra[m->id]++;
			continue;
		default:
			add_block(&t->lock, &t->count, 1, &scratch);
			t->extra[m->id]++;
			continue;
		}
		m->disordered += got < last;
		last = got;
		/* no other thread may have this number */
		t->had[got]++;
	}
	return NULL;
}

START_TEST(threads)
{
	struct member member[THREADS];
	struct team t;
	uint64_t given = 0, extra = 0, total;

	memset(&t, 0, sizeof(t));
	t.n = test_quick() ? 1000 : 50000;
	total = THREADS * (uint64_t)t.n;
	t.had = test_malloc(total);
	memset(t.had, 0, total);
	ck_assert_int_eq(pthread_barrier_init(&t.start, NULL, THREADS), 0);
	for (unsigned id = 0; id < THREADS; id++) {
		member[id] = (struct member){.team = &t, .id = id};
		ck_assert_int_eq(pthread_create(&member[id].thread, NULL, member_main, &member[id]),
				 0);
	}
	for (unsigned id = 0; id < THREADS; id++) {
		ck_assert_int_eq(pthread_join(member[id].thread, NULL), 0);
		ck_assert_int_eq(member[id].disordered, 0);
		extra += t.extra[id];
	}
	for (uint64_t i = 0; i < total; i++) {
		ck_assert_uint_le(t.had[i], 1);
		given += t.had[i];
	}
	ck_assert_uint_eq(t.count, total);
	ck_assert_uint_eq(given + extra, total);
	ck_assert_int_eq(cua_spinlock_locked(&t.lock), 0);
	pthread_barrier_destroy(&t.start);
	free(t.had);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("combine");
	TCase *calls = tcase_create("calls");

	tcase_set_timeout(calls, 120);
	tcase_add_test(calls, one_thread);
	tcase_add_test(calls, no_sections);
	tcase_add_test(calls, any_type);
	tcase_add_test(calls, sections);
	tcase_add_test(calls, threads);
	suite_add_tcase(suite, calls);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CPU);
}
