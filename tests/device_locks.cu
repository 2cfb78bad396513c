/* SPDX-License-Identifier: MIT */
/* The locks in kernels: every lane of every warp, in any divergence, and many blocks. */
#include "device.h"
#include "section_exits.h"

/* ---- every lock that excludes, behind the same calls ---- */

enum kind { SPIN, TICKET, MCS, WRITE, SEQ, SEMAPHORE, N_KINDS };
enum how { SECTION, LOCK_UNLOCK, TRYLOCK, LOCK_FOR, DIVERGED, N_HOW };

/* All locks: zero except for the semaphore. */
struct locks {
	struct cua_spinlock spin;
	struct cua_semaphore semaphore;
	struct cua_ticketlock ticket;
	struct cua_mcslock mcs;
	struct cua_rwlock rw;
	struct cua_seqlock seq;
};

static int locked(const struct locks *l)
{
	return cua_spinlock_locked(&l->spin) || cua_ticketlock_locked(&l->ticket) ||
	       cua_mcslock_locked(&l->mcs) || cua_rwlock_locked(&l->rw) ||
	       cua_seqlock_locked(&l->seq) || cua_semaphore_value(&l->semaphore) != 1;
}

static struct locks *managed_locks(void)
{
	struct locks *l = (struct locks *)managed(sizeof(*l));

	cua_semaphore_init(&l->semaphore, 1);
	return l;
}

__device__ static int trylock(struct locks *l, enum kind kind, struct cua_mcslock_node *node,
			      enum cua_scope scope)
{
	switch (kind) {
	case SPIN: return cua_spinlock_trylock_scope(&l->spin, scope);
	case TICKET: return cua_ticketlock_trylock_scope(&l->ticket, scope);
	case MCS: return cua_mcslock_trylock_scope(&l->mcs, node, scope);
	case WRITE: return cua_rwlock_write_trylock_scope(&l->rw, scope);
	case SEQ: return cua_seqlock_trylock_scope(&l->seq, scope);
	default: return cua_semaphore_trylock_scope(&l->semaphore, scope);
	}
}

__device__ static void lock(struct locks *l, enum kind kind, struct cua_mcslock_node *node,
			    enum cua_scope scope)
{
	switch (kind) {
	case SPIN: cua_spinlock_lock_scope(&l->spin, scope); break;
	case TICKET: cua_ticketlock_lock_scope(&l->ticket, scope); break;
	case MCS: cua_mcslock_lock_scope(&l->mcs, node, scope); break;
	case WRITE: cua_rwlock_write_lock_scope(&l->rw, scope); break;
	case SEQ: cua_seqlock_lock_scope(&l->seq, scope); break;
	default: cua_semaphore_lock_scope(&l->semaphore, scope);
	}
}

__device__ static int lock_for(struct locks *l, enum kind kind, struct cua_mcslock_node *node,
			       uint64_t ns, enum cua_scope scope)
{
	switch (kind) {
	case SPIN: return cua_spinlock_lock_for_scope(&l->spin, ns, scope);
	case TICKET: return cua_ticketlock_lock_for_scope(&l->ticket, ns, scope);
	case MCS: return cua_mcslock_lock_for_scope(&l->mcs, node, ns, scope);
	case WRITE: return cua_rwlock_write_lock_for_scope(&l->rw, ns, scope);
	case SEQ: return cua_seqlock_lock_for_scope(&l->seq, ns, scope);
	default: return cua_semaphore_lock_for_scope(&l->semaphore, ns, scope);
	}
}

__device__ static void unlock(struct locks *l, enum kind kind, struct cua_mcslock_node *node,
			      enum cua_scope scope)
{
	switch (kind) {
	case SPIN: cua_spinlock_unlock_scope(&l->spin, scope); break;
	case TICKET: cua_ticketlock_unlock_scope(&l->ticket, scope); break;
	case MCS: cua_mcslock_unlock_scope(&l->mcs, node, scope); break;
	case WRITE: cua_rwlock_write_unlock_scope(&l->rw, scope); break;
	case SEQ: cua_seqlock_unlock_scope(&l->seq, scope); break;
	default: cua_semaphore_unlock_scope(&l->semaphore, scope);
	}
}

/* The data under a lock: plain, in three cache lines. */
struct account {
	uint64_t count;
	int64_t debit; /* debit + credit is 0 outside of a section */
	uint8_t gap[112];
	int64_t credit;
	uint32_t wrong;
};

__device__ static void one_section(struct locks *l, enum kind kind, struct cua_mcslock_node *node,
				   struct account *a, enum how how, enum cua_scope scope,
				   uint32_t random)
{
	if (how == DIVERGED)
		how = (enum how)(random >> 8 & 3);
	if (how == SECTION) {
		switch (kind) {
		case SPIN: CUA_WITH_LOCK_SCOPE (&l->spin, scope) { work(a);
			}
			break;
		case TICKET:
			CUA_WITH_TICKETLOCK_SCOPE (&l->ticket, scope) {
				work(a);
				if (random & 1)
					break;
			}
			break;
		case MCS:
			CUA_WITH_MCSLOCK_SCOPE (&l->mcs, node, scope) {
				work(a);
				if (random & 1)
					continue;
			}
			break;
		case WRITE:
			CUA_WITH_WRITE_LOCK_SCOPE (&l->rw, scope) {
				work(a);
				if (random & 1)
					break;
			}
			break;
		case SEQ: CUA_WITH_SEQLOCK_SCOPE (&l->seq, scope) { work(a);
			}
			break;
		default: CUA_WITH_SEMAPHORE_SCOPE (&l->semaphore, scope) { work(a);
			}
		}
		return;
	}
	if (how == LOCK_UNLOCK) {
		lock(l, kind, node, scope);
	} else {
		while (how == TRYLOCK ? !trylock(l, kind, node, scope)
				      : !lock_for(l, kind, node, 2000, scope))
			cua_port_pause(200);
	}
	work(a);
	unlock(l, kind, node, scope);
}

static void check_account(struct account *a, enum kind kind, enum how how, uint64_t expected)
{
	ck_assert_msg(a->wrong == 0, "lock %d, way %d: %u sections saw another one", (int)kind,
		      (int)how, a->wrong);
	ck_assert_msg(a->count == expected, "lock %d, way %d: %llu sections, not %llu", (int)kind,
		      (int)how, (unsigned long long)a->count, (unsigned long long)expected);
	ck_assert(a->debit == -3 * (int64_t)expected);
	ck_assert(a->credit == 3 * (int64_t)expected);
	memset(a, 0, sizeof(*a));
}

/* ---- exclusion ---- */

__global__ static void every_lane(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
				  struct account *a, enum how how, uint32_t each,
				  enum cua_scope scope)
{
	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(global_id() * 31 + i + 1);

		/* some lanes are delayed */
		if (random >> 28 == 1)
			cua_port_pause(random & 1023);
		one_section(l, kind, &nodes[global_id()], a, how, scope, random);
	}
}

static void run_every_lane(enum kind kind, enum how how, unsigned blocks, unsigned threads,
			   uint32_t each, enum cua_scope scope)
{
	struct locks *l = managed_locks();
	struct cua_mcslock_node *nodes;
	struct account *a = (struct account *)managed(sizeof(*a));

	nodes = (struct cua_mcslock_node *)managed((size_t)blocks * threads * sizeof(*nodes));
	every_lane<<<blocks, threads>>>(l, kind, nodes, a, how, each, scope);
	finish_kernel();
	check_account(a, kind, how, (uint64_t)blocks * threads * each);
	ck_assert(!locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(nodes));
	ck_assert_cuda(cudaFree(a));
}

START_TEST(exclusion)
{
	enum kind kind = (enum kind)_i;
	unsigned blocks = test_quick() ? 4 : 40;

	for (int how = 0; how < N_HOW; how++) {
		run_every_lane(kind, (enum how)how, 1, 1, 20, CUA_SCOPE_DEVICE);
		run_every_lane(kind, (enum how)how, 1, 32, 4, CUA_SCOPE_DEVICE);
		run_every_lane(kind, (enum how)how, 3, 45, 4, CUA_SCOPE_DEVICE);
		run_every_lane(kind, (enum how)how, blocks, 128, 2, CUA_SCOPE_DEVICE);
	}
	run_every_lane(kind, DIVERGED, blocks, 128, 1, CUA_SCOPE_SYSTEM);
}
END_TEST

/*
 * More blocks than the device holds at once: waiting blocks must not keep out the blocks that they
 * wait for.
 */
START_TEST(more_blocks_than_fit)
{
	unsigned blocks = processors() * (test_quick() ? 33 : 80);

	/* at most 32 blocks are resident in a multiprocessor */
	run_every_lane((enum kind)_i, SECTION, blocks, 1, 1, CUA_SCOPE_DEVICE);
	run_every_lane((enum kind)_i, DIVERGED, blocks, 2, 1, CUA_SCOPE_DEVICE);
}
END_TEST

/* Locks, nodes and data in shared memory, at block scope. */
__global__ static void block_lock(enum kind kind, enum how how, struct account *accounts,
				  uint32_t each)
{
	__shared__ struct locks l;
	__shared__ struct cua_mcslock_node nodes[256];
	__shared__ struct account account;

	if (threadIdx.x == 0) {
		cua_spinlock_init(&l.spin);
		cua_ticketlock_init(&l.ticket);
		cua_mcslock_init(&l.mcs);
		cua_rwlock_init(&l.rw);
		cua_seqlock_init(&l.seq);
		cua_semaphore_init(&l.semaphore, 1);
		memset(&account, 0, sizeof(account));
	}
	__syncthreads();
	for (uint32_t i = 0; i < each; i++)
		one_section(&l, kind, &nodes[threadIdx.x], &account, how, CUA_SCOPE_BLOCK,
			    mix(global_id() + i * 77));
	__syncthreads();
	if (threadIdx.x == 0)
		accounts[blockIdx.x] = account;
}

START_TEST(block_scope)
{
	static const unsigned sizes[] = {1, 33, 250};
	unsigned blocks = test_quick() ? 4 : 100;
	struct account *accounts;

	if (test_under("racecheck")) {
		printf("block_scope: skipped, the tool takes a lock in shared memory for a race\n");
		return;
	}
	accounts = (struct account *)managed(blocks * sizeof(*accounts));
	for (int how = 0; how < N_HOW; how++)
		for (unsigned i = 0; i < 3; i++) {
			block_lock<<<blocks, sizes[i]>>>((enum kind)_i, (enum how)how, accounts, 4);
			finish_kernel();
			for (unsigned b = 0; b < blocks; b++)
				check_account(&accounts[b], (enum kind)_i, (enum how)how,
					      (uint64_t)sizes[i] * 4);
		}
	ck_assert_cuda(cudaFree(accounts));
}
END_TEST

/* ---- fairness: a single lane in each block, until their sections add up to a total ---- */

__global__ static void race(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
			    struct account *a, uint32_t *arrived, uint64_t total, uint64_t *done)
{
	struct cua_mcslock_node *node = &nodes[blockIdx.x];
	int over = 0;

	/* no more blocks than multiprocessors, so that all of them run */
	cua_port_add_u32(arrived, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	while (cua_port_load_b32(arrived, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC) !=
	       gridDim.x)
		cua_port_pause(100);
	while (!over) {
		lock(l, kind, node, CUA_SCOPE_DEVICE);
		over = CUA_READ(a->count) >= total;
		if (!over) {
			work(a);
			done[blockIdx.x]++;
		}
		unlock(l, kind, node, CUA_SCOPE_DEVICE);
	}
}

START_TEST(fairness)
{
	static const enum kind fair[] = {TICKET, MCS, WRITE};
	unsigned blocks = processors();
	uint64_t each = test_quick() ? 20 : 200, total = each * blocks, sum = 0, *done;
	struct locks *l = managed_locks();
	struct account *a = (struct account *)managed(sizeof(*a));
	uint32_t *arrived = (uint32_t *)managed(sizeof(*arrived));
	struct cua_mcslock_node *nodes;

	done = (uint64_t *)managed(blocks * sizeof(*done));
	nodes = (struct cua_mcslock_node *)managed(blocks * sizeof(*nodes));
	race<<<blocks, 1>>>(l, fair[_i], nodes, a, arrived, total, done);
	finish_kernel();
	for (unsigned i = 0; i < blocks; i++) {
		sum += done[i];
		ck_assert_msg(done[i] >= each / 2 && done[i] <= each * 2,
			      "block %u had %llu turns of %llu", i, (unsigned long long)done[i],
			      (unsigned long long)each);
	}
	ck_assert_uint_eq(sum, total);
	check_account(a, fair[_i], LOCK_UNLOCK, total);
	ck_assert(!locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(a));
	ck_assert_cuda(cudaFree(arrived));
	ck_assert_cuda(cudaFree(done));
	ck_assert_cuda(cudaFree(nodes));
}
END_TEST

/* ---- readers and writers ---- */

__global__ static void readers_and_writers(struct locks *l, struct account *a, uint32_t each,
					   unsigned long long *torn, unsigned long long *writes)
{
	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(global_id() * 17 + i + 1);
		int holds = 0;

		if (random % 8 == 0) {
			CUA_WITH_WRITE_LOCK (&l->rw) {
				work(a);
			}
			atomicAdd(writes, 1ull);
			continue;
		}
		switch (random >> 8 & 3) {
		case 0:
			CUA_WITH_READ_LOCK (&l->rw) {
				if (CUA_READ(a->debit) + CUA_READ(a->credit) != 0)
					atomicAdd(torn, 1ull);
			}
			break;
		case 1:
			cua_rwlock_read_lock(&l->rw);
			holds = 1;
			break;
		case 2: holds = cua_rwlock_read_trylock(&l->rw); break;
		default: holds = cua_rwlock_read_lock_for(&l->rw, 5000);
		}
		if (holds) {
			if (CUA_READ(a->debit) + CUA_READ(a->credit) != 0)
				atomicAdd(torn, 1ull);
			cua_rwlock_read_unlock(&l->rw);
		}
	}
}

START_TEST(readers)
{
	struct locks *l = managed_locks();
	struct account *a = (struct account *)managed(sizeof(*a));
	unsigned long long *counts = (unsigned long long *)managed(2 * sizeof(*counts));

	readers_and_writers<<<test_quick() ? 4 : 100, 128>>>(l, a, 4, &counts[0], &counts[1]);
	finish_kernel();
	ck_assert_uint_eq(counts[0], 0);
	ck_assert_uint_gt(counts[1], 0);
	check_account(a, WRITE, SECTION, counts[1]);
	ck_assert(!locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(a));
	ck_assert_cuda(cudaFree(counts));
}
END_TEST

/* Concurrent readers: each waits inside for all the others. */
__global__ static void together(struct cua_rwlock *l, uint32_t *inside)
{
	CUA_WITH_READ_LOCK (l) {
		cua_port_add_u32(inside, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		while (cua_port_load_b32(inside, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GENERIC) != gridDim.x * blockDim.x)
			cua_port_pause(100);
	}
}

START_TEST(readers_together)
{
	struct locks *l = managed_locks();
	uint32_t *inside = (uint32_t *)managed(sizeof(*inside));

	together<<<processors(), 64>>>(&l->rw, inside);
	finish_kernel();
	ck_assert(!locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(inside));
}
END_TEST

/* ---- snapshots ---- */

#define WORDS 6

struct words {
	uint32_t word[WORDS];
	uint64_t wide[2];
};

__global__ static void snapshots(struct cua_seqlock *l, struct words *data, uint64_t *plain,
				 uint32_t each, unsigned long long *torn)
{
	uint32_t out[WORDS], last = 0;
	uint64_t begun, first, second;

	/* the first lane of every fourth block writes */
	if (blockIdx.x % 4 == 0 && threadIdx.x == 0) {
		for (uint32_t i = 0; i < each; i++)
			CUA_WITH_SEQLOCK (l) {
				uint32_t v = cua_seqlock_load_b32(&data->word[0]) + 1;

				for (int k = 0; k < WORDS; k++)
					cua_seqlock_store_b32(&data->word[k], v);
				cua_seqlock_store_b64(&data->wide[0], v);
				cua_seqlock_store_b64(&data->wide[1], ~(uint64_t)v);
				CUA_WRITE(*plain, CUA_READ(*plain) + 1);
			}
		return;
	}
	for (uint32_t i = 0; i < each; i++) {
		cua_seqlock_read(l, data->word, WORDS, out);
		for (int k = 1; k < WORDS; k++)
			if (out[k] != out[0])
				atomicAdd(torn, 1ull);
		if (out[0] < last)
			atomicAdd(torn, 1ull);
		last = out[0];
		do {
			begun = cua_seqlock_read_begin(l);
			first = cua_seqlock_load_b64(&data->wide[0]);
			second = cua_seqlock_load_b64(&data->wide[1]);
		} while (cua_seqlock_read_retry(l, begun));
		if (second != ~first || begun != 2 * first || first < last)
			atomicAdd(torn, 1ull);
	}
}

START_TEST(whole_snapshots)
{
	unsigned blocks = test_quick() ? 8 : 128, each = test_quick() ? 50 : 300;
	struct locks *l = managed_locks();
	struct words *data = (struct words *)managed(sizeof(*data));
	unsigned long long *torn = (unsigned long long *)managed(sizeof(*torn));
	uint64_t *plain = (uint64_t *)managed(sizeof(*plain));

	data->wide[1] = ~(uint64_t)0;
	snapshots<<<blocks, 64>>>(&l->seq, data, plain, each, torn);
	finish_kernel();
	ck_assert_uint_eq(*torn, 0);
	ck_assert_uint_eq(data->word[0], blocks / 4 * each);
	ck_assert_uint_eq(*plain, blocks / 4 * (uint64_t)each);
	ck_assert(!locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(data));
	ck_assert_cuda(cudaFree(torn));
	ck_assert_cuda(cudaFree(plain));
}
END_TEST

/* ---- the semaphore's bound ---- */

__global__ static void bounded(struct cua_semaphore *s, uint32_t bound, uint32_t *inside,
			       uint32_t each, unsigned long long *over, unsigned long long *done)
{
	for (uint32_t i = 0; i < each; i++)
		CUA_WITH_SEMAPHORE (s) {
			if (atomicAdd(inside, 1u) >= bound)
				atomicAdd(over, 1ull);
			cua_port_pause(200);
			atomicSub(inside, 1u);
			atomicAdd(done, 1ull);
		}
}

START_TEST(bounds)
{
	static const uint32_t bound[] = {1, 3, 40};
	unsigned blocks = test_quick() ? 4 : 40;
	struct locks *l = managed_locks();
	uint32_t *inside = (uint32_t *)managed(sizeof(*inside));
	unsigned long long *counts = (unsigned long long *)managed(2 * sizeof(*counts));

	for (int i = 0; i < 3; i++) {
		cua_semaphore_init(&l->semaphore, bound[i]);
		counts[1] = 0;
		bounded<<<blocks, 128>>>(&l->semaphore, bound[i], inside, 2, &counts[0],
					 &counts[1]);
		finish_kernel();
		ck_assert_uint_eq(counts[0], 0);
		ck_assert_uint_eq(counts[1], blocks * 128ull * 2);
		ck_assert_uint_eq(cua_semaphore_value(&l->semaphore), bound[i]);
	}
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(inside));
	ck_assert_cuda(cudaFree(counts));
}
END_TEST

/* ---- timeouts: the first lane holds the lock until all other lanes have timed out ---- */

__global__ static void give_up(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
			       struct account *a, uint32_t *held, uint32_t *gave_up,
			       uint32_t *wrong)
{
	struct cua_mcslock_node *node = &nodes[global_id()];

	if (global_id() == 0) {
		if (!lock_for(l, kind, node, 0, CUA_SCOPE_DEVICE))
			atomicAdd(wrong, 1u);
		cua_port_store_b32(held, 1, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		while (cua_port_load_b32(gave_up, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GENERIC) != gridDim.x * blockDim.x - 1)
			cua_port_pause(500);
		work(a);
		unlock(l, kind, node, CUA_SCOPE_DEVICE);
	} else {
		uint64_t start;

		while (!cua_port_load_b32(held, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC))
			cua_port_pause(100);
		start = cua_port_clock_ns();
		if (lock_for(l, kind, node, 20000, CUA_SCOPE_DEVICE) ||
		    cua_port_clock_ns() - start < 20000 ||
		    lock_for(l, kind, node, 0, CUA_SCOPE_DEVICE))
			atomicAdd(wrong, 1u);
		cua_port_add_u32(gave_up, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		/* with a sufficient time limit */
		if (!lock_for(l, kind, node, UINT64_MAX, CUA_SCOPE_DEVICE))
			atomicAdd(wrong, 1u);
		work(a);
		unlock(l, kind, node, CUA_SCOPE_DEVICE);
	}
}

START_TEST(timeouts)
{
	const unsigned blocks = 8, threads = 48;
	struct locks *l = managed_locks();
	struct account *a = (struct account *)managed(sizeof(*a));
	uint32_t *words = (uint32_t *)managed(3 * sizeof(*words));
	struct cua_mcslock_node *nodes;

	nodes = (struct cua_mcslock_node *)managed(blocks * threads * sizeof(*nodes));
	give_up<<<blocks, threads>>>(l, (enum kind)_i, nodes, a, &words[0], &words[1], &words[2]);
	finish_kernel();
	ck_assert_uint_eq(words[2], 0);
	ck_assert_uint_eq(words[1], blocks * threads - 1);
	check_account(a, (enum kind)_i, LOCK_FOR, blocks * threads);
	ck_assert(!locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(a));
	ck_assert_cuda(cudaFree(words));
	ck_assert_cuda(cudaFree(nodes));
}
END_TEST

/* ---- sections that are left by return, goto, break and continue ---- */

/*
 * Every lane of every warp leaves its section in another way than its neighbours. For SECTION_READ,
 * a writer follows each reader.
 */
__global__ static void leave_sections(struct section_locks *l, enum section_kind kind,
				      struct cua_mcslock_node *nodes, unsigned rounds,
				      uint32_t *wrong)
{
	uint32_t id = global_id();

	if (kind == SECTION_READ && id % 2)
		kind = SECTION_WRITE;
	for (unsigned i = 0; i < rounds; i++) {
		enum section_exit how = (enum section_exit)((id + i) % SECTION_EXITS);

		if (!section_left(how, section_leave(l, kind, &nodes[id], 0xffffffffu, how)))
			atomicAdd(wrong, 1);
		__syncwarp();
	}
}

START_TEST(exits)
{
	const unsigned blocks = test_quick() ? 4 : 32, threads = 64, rounds = 2 * SECTION_EXITS;
	struct cua_mcslock_node *nodes =
		(struct cua_mcslock_node *)managed((size_t)blocks * threads * sizeof(*nodes));
	struct section_locks *l = (struct section_locks *)managed(sizeof(*l));
	uint64_t sections = (uint64_t)blocks * threads * rounds;
	uint32_t *wrong = (uint32_t *)managed(sizeof(*wrong));

	section_init(l);
	leave_sections<<<blocks, threads>>>(l, (enum section_kind)_i, nodes, rounds, wrong);
	finish_kernel();
	ck_assert_uint_eq(*wrong, 0);
	ck_assert_uint_eq(l->torn, 0);
	ck_assert_uint_eq(l->count[0], _i == SECTION_READ ? sections / 2 : sections);
	ck_assert(!section_locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(nodes));
	ck_assert_cuda(cudaFree(wrong));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("locks in kernels");
	TCase *kernels = tcase_create("kernels");

	tcase_set_timeout(kernels, 120);
	tcase_add_loop_test(kernels, exclusion, 0, N_KINDS);
	tcase_add_loop_test(kernels, more_blocks_than_fit, 0, N_KINDS);
	tcase_add_loop_test(kernels, block_scope, 0, N_KINDS);
	tcase_add_loop_test(kernels, fairness, 0, 3);
	tcase_add_test(kernels, readers);
	tcase_add_test(kernels, readers_together);
	tcase_add_test(kernels, whole_snapshots);
	tcase_add_test(kernels, bounds);
	tcase_add_loop_test(kernels, timeouts, 0, N_KINDS);
	tcase_add_loop_test(kernels, exits, 0, SECTION_KINDS);
	suite_add_tcase(suite, kernels);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
