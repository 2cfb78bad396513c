/* SPDX-License-Identifier: MIT */
/* The orders of the atomics on host threads: messages, and stores that are seen. */
#include "check_atomic.h"

/* ---- message passing: plain data behind a release and an acquire ---- */

/*
 * The threads form a ring and pass a plain array around: only the thread with the turn accesses the
 * array. The operation under test passes the turn on. ThreadSanitizer proves that the orders
 * suffice.
 */
struct ring {
	int rounds;
	int how;
	uint32_t turn_u;
	double turn_d;
	uint64_t data[16];
	unsigned wrong;
};

struct ring_member {
	struct ring *ring;
	unsigned id;
	pthread_t thread;
};

static int my_turn(struct ring *r, uint32_t mine)
{
	switch (r->how) {
	case 0:
		return cua_atomic_load_explicit_u32(&r->turn_u, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
						    CUA_SPACE_GENERIC) == mine;
	case 1:
		return cua_atomic_fetch_or_explicit_u32(&r->turn_u, 0, CUA_ACQ_REL,
							CUA_SCOPE_DEVICE,
							CUA_SPACE_GENERIC) == mine;
	case 2:
		/* an addition of -0 ends without a store, and still acquires */
		return cua_atomic_fetch_add_cas_explicit_f64(&r->turn_d, -0.0, CUA_ACQUIRE,
							     CUA_SCOPE_DEVICE,
							     CUA_SPACE_GENERIC) == mine;
	case 3:
		/* so does a failing compare_exchange */
		return cua_atomic_compare_exchange_explicit_f64(&r->turn_d, -1, -2, CUA_ACQUIRE,
								CUA_SCOPE_DEVICE,
								CUA_SPACE_GENERIC) == mine;
	default:
		return cua_atomic_load_explicit_u32(&r->turn_u, CUA_SEQ_CST, CUA_SCOPE_SYSTEM,
						    CUA_SPACE_GENERIC) == mine;
	}
}

static void pass_on(struct ring *r, uint32_t next)
{
	switch (r->how) {
	case 0:
		cua_atomic_store_explicit_u32(&r->turn_u, next, CUA_RELEASE, CUA_SCOPE_DEVICE,
					      CUA_SPACE_GENERIC);
		break;
	case 1:
		cua_atomic_add_explicit_u32(&r->turn_u, 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GENERIC);
		break;
	case 2:
		cua_atomic_max_explicit_f64(&r->turn_d, next, CUA_RELEASE, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GENERIC);
		break;
	case 3:
		(void)cua_atomic_fetch_add_explicit_f64(&r->turn_d, 1, CUA_ACQ_REL,
							CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		break;
	default:
		cua_atomic_exchange_explicit_u32(&r->turn_u, next, CUA_SEQ_CST, CUA_SCOPE_SYSTEM,
						 CUA_SPACE_GENERIC);
		break;
	}
}

static void *ring_main(void *arg)
{
	struct ring_member *m = arg;
	struct ring *r = m->ring;

	for (int round = 0; round < r->rounds; round++) {
		uint32_t mine = (uint32_t)round * THREADS + m->id;

		while (!my_turn(r, mine))
			cua_port_pause(100);
		for (int i = 0; i < 16; i++) {
			r->wrong += CUA_READ(r->data[i]) != mine;
			CUA_WRITE(r->data[i], r->data[i] + 1);
		}
		pass_on(r, mine + 1);
	}
	return NULL;
}

START_TEST(message_passing)
{
	struct ring r;
	struct ring_member member[THREADS];

	memset(&r, 0, sizeof(r));
	r.rounds = test_quick() ? 100 : 1000;
	r.how = _i;
	for (unsigned id = 0; id < THREADS; id++) {
		member[id].ring = &r;
		member[id].id = id;
		ck_assert_int_eq(pthread_create(&member[id].thread, NULL, ring_main, &member[id]),
				 0);
	}
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_int_eq(pthread_join(member[id].thread, NULL), 0);
	ck_assert_uint_eq(r.wrong, 0);
	for (int i = 0; i < 16; i++)
		ck_assert_uint_eq(r.data[i], THREADS * (uint64_t)r.rounds);
}
END_TEST

/* Store buffering: with seq_cst, two threads never both miss the other thread's store. */
struct dekker {
	pthread_barrier_t step;
	int rounds, how;
	uint32_t flag[2][16];
	uint32_t saw[2];
	unsigned wrong;
};

struct dekker_side {
	struct dekker *d;
	int me;
};

static void *dekker_main(void *arg)
{
	struct dekker_side *side = arg;
	struct dekker *d = side->d;
	int me = side->me;
	uint32_t *mine = d->flag[me], *other = d->flag[1 - me];

	for (int i = 0; i < d->rounds; i++) {
		cua_atomic_store_u32(mine, 0);
		pthread_barrier_wait(&d->step);
		if (d->how == 0)
			cua_atomic_store_explicit_u32(mine, 1, CUA_SEQ_CST, CUA_SCOPE_DEVICE,
						      CUA_SPACE_GENERIC);
		else
			cua_atomic_add_explicit_u32(mine, 1, CUA_SEQ_CST, CUA_SCOPE_DEVICE,
						    CUA_SPACE_GENERIC);
		d->saw[me] = cua_atomic_load_explicit_u32(other, CUA_SEQ_CST, CUA_SCOPE_DEVICE,
							  CUA_SPACE_GENERIC);
		pthread_barrier_wait(&d->step);
		if (me == 0)
			d->wrong += !d->saw[0] && !d->saw[1];
		pthread_barrier_wait(&d->step);
	}
	return NULL;
}

START_TEST(store_buffering)
{
	struct dekker d;
	struct dekker_side side[2] = {{&d, 0}, {&d, 1}};
	pthread_t thread[2];

	memset(&d, 0, sizeof(d));
	d.rounds = test_quick() ? 200 : 3000;
	d.how = _i;
	ck_assert_int_eq(pthread_barrier_init(&d.step, NULL, 2), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, dekker_main, &side[i]), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	pthread_barrier_destroy(&d.step);
	ck_assert_uint_eq(d.wrong, 0);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("order of atomics");
	TCase *many = tcase_create("threads");

	tcase_set_timeout(many, 120);
	tcase_add_loop_test(many, message_passing, 0, 5);
	tcase_add_loop_test(many, store_buffering, 0, 2);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
