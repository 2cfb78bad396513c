/* SPDX-License-Identifier: MIT */
/* The orders of the atomics in kernels: messages, and stores that are seen. */
#include "device_atomic.h"

/* ---- message passing: plain data behind a release and an acquire ---- */

/*
 * Blocks pass a plain array around in the order of their tickets, so each block waits only for
 * blocks that have started. The operation under test passes the turn on.
 */
struct chain {
	uint32_t ticket;
	uint32_t turn_u;
	double turn_d;
	uint32_t wrong;
	uint64_t data[64]; /* data: several cache lines */
};

__device__ static int my_turn(struct chain *c, int how, uint32_t mine)
{
	switch (how) {
	case 0:
		return cua_atomic_load_explicit_u32(&c->turn_u, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
						    CUA_SPACE_GENERIC) == mine;
	case 1:
		return cua_atomic_fetch_or_explicit_u32(&c->turn_u, 0, CUA_ACQ_REL,
							CUA_SCOPE_DEVICE,
							CUA_SPACE_GENERIC) == mine;
	case 2: /* an addition of -0 ends without a store, and still acquires */
		return cua_atomic_fetch_add_cas_explicit_f64(&c->turn_d, -0.0, CUA_ACQUIRE,
							     CUA_SCOPE_DEVICE,
							     CUA_SPACE_GENERIC) == mine;
	case 3: /* so does a failing compare_exchange */
		return cua_atomic_compare_exchange_explicit_f64(&c->turn_d, -1, -2, CUA_ACQUIRE,
								CUA_SCOPE_DEVICE,
								CUA_SPACE_GENERIC) == mine;
	case 4: /* a relaxed read and a fence */
		if (cua_atomic_load_u32(&c->turn_u) != mine)
			return 0;
		cua_port_fence(CUA_ACQUIRE, CUA_SCOPE_DEVICE);
		return 1;
	default:
		return cua_atomic_load_explicit_u32(&c->turn_u, CUA_SEQ_CST, CUA_SCOPE_SYSTEM,
						    CUA_SPACE_GENERIC) == mine;
	}
}

__device__ static void pass_on(struct chain *c, int how, uint32_t next)
{
	switch (how) {
	case 0:
		cua_atomic_store_explicit_u32(&c->turn_u, next, CUA_RELEASE, CUA_SCOPE_DEVICE,
					      CUA_SPACE_GENERIC);
		break;
	case 1:
		cua_atomic_add_explicit_u32(&c->turn_u, 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GENERIC);
		break;
	case 2:
		cua_atomic_max_explicit_f64(&c->turn_d, next, CUA_RELEASE, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GENERIC);
		break;
	case 3:
		cua_atomic_fetch_add_explicit_f64(&c->turn_d, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
						  CUA_SPACE_GENERIC);
		break;
	case 4:
		cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);
		cua_atomic_store_u32(&c->turn_u, next);
		break;
	default:
		cua_atomic_exchange_explicit_u32(&c->turn_u, next, CUA_SEQ_CST, CUA_SCOPE_SYSTEM,
						 CUA_SPACE_GENERIC);
		break;
	}
}

__global__ static void pass_messages(struct chain *c, int how)
{
	uint32_t mine = cua_atomic_fetch_add_u32(&c->ticket, 1);

	while (!my_turn(c, how, mine))
		cua_port_pause(100);
	for (int i = 0; i < 64; i++) {
		uint64_t x = CUA_READ(c->data[i]);

		if (x != mine)
			CUA_WRITE(c->wrong, CUA_READ(c->wrong) + 1);
		CUA_WRITE(c->data[i], x + 1);
	}
	pass_on(c, how, mine + 1);
}

START_TEST(message_passing)
{
	unsigned blocks = test_quick() ? 40 : 1000;
	struct chain *c = (struct chain *)managed(sizeof(*c));

	for (int how = 0; how < 6; how++) {
		memset(c, 0, sizeof(*c));
		pass_messages<<<blocks, 1>>>(c, how);
		finish_kernel();
		ck_assert_msg(c->wrong == 0, "how %d: %u words were stale", how, c->wrong);
		for (int i = 0; i < 64; i++)
			ck_assert_uint_eq(c->data[i], blocks);
	}
	ck_assert_cuda(cudaFree(c));
}
END_TEST

/*
 * Store buffering: with seq_cst, two sides never both miss the other side's store. The two blocks
 * run concurrently, and synchronize before and after each round.
 */
struct dekker {
	uint32_t flag[2][32];
	uint32_t saw[2][32];
	uint32_t met[32];
	uint32_t wrong;
};

__device__ static void meet_other(struct dekker *d, uint32_t *times)
{
	*times += 2;
	cua_atomic_add_explicit_u32(d->met, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	while (cua_atomic_load_explicit_u32(d->met, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GENERIC) < *times)
		;
}

__global__ static void store_then_load(struct dekker *d, int how, uint32_t rounds)
{
	uint32_t me = blockIdx.x, times = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		cua_atomic_store_u32(d->flag[me], 0);
		meet_other(d, &times);
		if (how == 0)
			cua_atomic_store_explicit_u32(d->flag[me], 1, CUA_SEQ_CST, CUA_SCOPE_DEVICE,
						      CUA_SPACE_GENERIC);
		else
			cua_atomic_add_explicit_u32(d->flag[me], 1, CUA_SEQ_CST, CUA_SCOPE_DEVICE,
						    CUA_SPACE_GENERIC);
		d->saw[me][0] = cua_atomic_load_explicit_u32(d->flag[1 - me], CUA_SEQ_CST,
							     CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		meet_other(d, &times);
		if (me == 0 && !d->saw[0][0] && !d->saw[1][0])
			d->wrong++;
		meet_other(d, &times);
	}
}

START_TEST(store_buffering)
{
	struct dekker *d = (struct dekker *)managed(sizeof(*d));

	for (int how = 0; how < 2; how++) {
		memset(d, 0, sizeof(*d));
		store_then_load<<<2, 1>>>(d, how, test_quick() ? 100 : 3000);
		finish_kernel();
		ck_assert_uint_eq(d->wrong, 0);
	}
	ck_assert_cuda(cudaFree(d));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("order of atomics in kernels");
	TCase *many = tcase_create("many");

	tcase_set_timeout(many, 120);
	tcase_add_test(many, message_passing);
	tcase_add_test(many, store_buffering);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
