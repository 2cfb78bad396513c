/* SPDX-License-Identifier: MIT */
/*
 * Locks and atomics under the greatest contention of the device: exact counts after up to 10^8
 * operations, the distribution of turns, warps with diverged lanes, more blocks than fit, and the
 * delay of timeouts.
 *
 * Apart from locks, no kernel here waits longer than LIMIT_NS.
 */
#include <cuatomic/atomic_narrow.h>
#include <cuatomic/atomic_warp.h>

#include "device.h"

#define LIMIT_NS 20000000000u
#define MILLION 1000000u

/* Waits until *p is `wanted`. Returns 0 if this takes too long. */
__device__ static int wait_until(const uint32_t *p, uint32_t wanted)
{
	uint64_t start = cua_port_clock_ns();

	while (cua_atomic_load_explicit_u32(p, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC) !=
	       wanted) {
		if (cua_port_clock_ns() - start > LIMIT_NS)
			return 0;
		cua_port_pause(100);
	}
	return 1;
}

/* A barrier of all threads of the grid; the grid must fit on the device. */
__device__ static int meet(uint32_t *arrived)
{
	cua_atomic_fetch_add_explicit_u32(arrived, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
					  CUA_SPACE_GENERIC);
	return wait_until(arrived, gridDim.x * blockDim.x);
}

/* ---- the locks ---- */

enum kind { SPIN, TICKET, MCS, WRITE, SEQ, SEMAPHORE, N_KINDS };

static const char *const kind_names[] = {"spinlock", "ticketlock", "mcslock",
					 "rwlock",   "seqlock",    "semaphore"};

/* Locks, zero except for the semaphore, and the plain data under a lock, in three cache lines. */
struct locks {
	struct cua_spinlock spin;
	struct cua_semaphore semaphore;
	struct cua_ticketlock ticket;
	struct cua_mcslock mcs;
	struct cua_rwlock rw;
	struct cua_seqlock seq;
	uint64_t gap0[16];
	uint64_t count, debit; /* debit + credit is 0 outside of a section */
	uint64_t gap1[16];
	uint64_t credit;
	uint64_t wrong;
};

static struct locks *managed_locks(void)
{
	struct locks *l = (struct locks *)managed(sizeof(*l));

	cua_semaphore_init(&l->semaphore, 1);
	return l;
}

static void check_and_free(struct locks *l, uint64_t expected)
{
	ck_assert_uint_eq(l->wrong, 0);
	ck_assert_uint_eq(l->count, expected);
	ck_assert_uint_eq(l->credit, 3 * expected);
	ck_assert_uint_eq(l->debit, 0 - 3 * expected);
	ck_assert(!cua_spinlock_locked(&l->spin) && !cua_ticketlock_locked(&l->ticket) &&
		  !cua_mcslock_locked(&l->mcs) && !cua_rwlock_locked(&l->rw) &&
		  !cua_seqlock_locked(&l->seq));
	ck_assert_uint_eq(cua_semaphore_value(&l->semaphore), 1);
	ck_assert_cuda(cudaFree(l));
}

__device__ static int lock_for(struct locks *l, enum kind kind, struct cua_mcslock_node *node,
			       uint64_t ns)
{
	switch (kind) {
	case SPIN: return cua_spinlock_lock_for(&l->spin, ns);
	case TICKET: return cua_ticketlock_lock_for(&l->ticket, ns);
	case MCS: return cua_mcslock_lock_for(&l->mcs, node, ns);
	case WRITE: return cua_rwlock_write_lock_for(&l->rw, ns);
	case SEQ: return cua_seqlock_lock_for(&l->seq, ns);
	default: return cua_semaphore_lock_for(&l->semaphore, ns);
	}
}

__device__ static void lock(struct locks *l, enum kind kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case SPIN: cua_spinlock_lock(&l->spin); break;
	case TICKET: cua_ticketlock_lock(&l->ticket); break;
	case MCS: cua_mcslock_lock(&l->mcs, node); break;
	case WRITE: cua_rwlock_write_lock(&l->rw); break;
	case SEQ: cua_seqlock_lock(&l->seq); break;
	default: cua_semaphore_lock(&l->semaphore);
	}
}

__device__ static void unlock(struct locks *l, enum kind kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case SPIN: cua_spinlock_unlock(&l->spin); break;
	case TICKET: cua_ticketlock_unlock(&l->ticket); break;
	case MCS: cua_mcslock_unlock(&l->mcs, node); break;
	case WRITE: cua_rwlock_write_unlock(&l->rw); break;
	case SEQ: cua_seqlock_unlock(&l->seq); break;
	default: cua_semaphore_unlock(&l->semaphore);
	}
}

/* Runs the section. Returns the number of runs of its body: always 1. */
__device__ static uint32_t section(struct locks *l, enum kind kind, struct cua_mcslock_node *node)
{
	uint32_t ran = 0;

#define ONCE                                                                                       \
	{                                                                                          \
		work(l);                                                                           \
		ran++;                                                                             \
	}
	switch (kind) {
	case SPIN: CUA_WITH_LOCK (&l->spin) ONCE break;
	case TICKET: CUA_WITH_TICKETLOCK (&l->ticket) ONCE break;
	case MCS: CUA_WITH_MCSLOCK (&l->mcs, node) ONCE break;
	case WRITE: CUA_WITH_WRITE_LOCK (&l->rw) ONCE break;
	case SEQ: CUA_WITH_SEQLOCK (&l->seq) ONCE break;
	default: CUA_WITH_SEMAPHORE (&l->semaphore) ONCE
	}
#undef ONCE
	return ran;
}

/* ---- many sections ---- */

__global__ static void by_section(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
				  uint32_t each)
{
	for (uint32_t i = 0; i < each; i++)
		if (section(l, kind, &nodes[global_id()]) != 1)
			cua_atomic_add_u64(&l->wrong, 1);
}

__global__ static void by_call(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
			       uint32_t each)
{
	struct cua_mcslock_node *node = &nodes[global_id()];

	for (uint32_t i = 0; i < each; i++) {
		lock(l, kind, node);
		work(l);
		unlock(l, kind, node);
	}
}

static void run_sections(void (*kernel)(struct locks *, enum kind, struct cua_mcslock_node *,
					uint32_t),
			 enum kind kind, unsigned blocks, unsigned threads, uint64_t total)
{
	struct locks *l = managed_locks();
	struct cua_mcslock_node *nodes;
	uint64_t n = (uint64_t)blocks * threads;
	uint32_t each = (uint32_t)(total / n + 1);

	nodes = (struct cua_mcslock_node *)managed(n * sizeof(*nodes));
	kernel<<<blocks, threads>>>(l, kind, nodes, each);
	finish_kernel();
	check_and_free(l, n * each);
	ck_assert_cuda(cudaFree(nodes));
}

START_TEST(million_sections)
{
	enum kind kind = (enum kind)_i;
	unsigned sms = processors();
	uint64_t scale = test_quick() ? 500 : MILLION;

	run_sections(by_call, kind, test_quick() ? 4 : sms, 1, scale);
	run_sections(by_call, kind, test_quick() ? 2 : sms / 2, 2 * 32, scale / 5);
	run_sections(by_section, kind, test_quick() ? 4 : sms, 1, scale);
	/* every lane of every warp */
	run_sections(by_section, kind, test_quick() ? 4 : sms, test_quick() ? 64 : 256, scale / 10);
}
END_TEST

/* Far more blocks than are resident wait in the same queue. */
START_TEST(more_blocks_than_fit)
{
	unsigned blocks = test_quick() ? processors() * 40 : 20000;

	run_sections(by_section, (enum kind)_i, blocks, 1, 0);
	run_sections(by_section, (enum kind)_i, blocks, 7, 0);
	run_sections(by_call, (enum kind)_i, blocks, 1, 0);
}
END_TEST

/* ---- lanes that start late, end early, and diverge ---- */

__global__ static void diverged(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
				uint32_t each, uint32_t seed, uint64_t *done)
{
	struct cua_mcslock_node *node = &nodes[global_id()];
	uint32_t stays = mix(global_id() ^ seed) % each, turns = 0;

	if (mix(global_id() + seed) % 5 == 0)
		return;
	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(global_id() * 131 + i + seed);

		if (i > stays)
			break;
		switch (random % 6) {
		case 0: cua_port_pause(random >> 8 & 1023); break;
		case 1: turns += section(l, kind, node); break;
		case 2:
			lock(l, kind, node);
			work(l);
			unlock(l, kind, node);
			turns++;
			break;
		case 3:
			if (threadIdx.x & 1) {
				turns += section(l, kind, node);
			} else {
				for (uint32_t k = 0; k < (threadIdx.x & 3); k++)
					turns += section(l, kind, node);
			}
			break;
		case 4:
			if (!lock_for(l, kind, node, random >> 8 & 8191))
				break;
			work(l);
			turns++;
			unlock(l, kind, node);
			break;
		default:
			if ((random >> 8) % 16 == 0) {
				cua_atomic_add_u64(done, turns);
				return;
			}
		}
	}
	cua_atomic_add_u64(done, turns);
}

START_TEST(divergence)
{
	unsigned blocks = test_quick() ? 4 : processors(), threads = 111;
	uint64_t seed = test_seed("divergence");

	for (int round = 0; round < (test_quick() ? 1 : 4); round++) {
		struct locks *l = managed_locks();
		uint64_t *done = (uint64_t *)managed(sizeof(*done));
		struct cua_mcslock_node *nodes;

		nodes = (struct cua_mcslock_node *)managed((size_t)blocks * threads *
							   sizeof(*nodes));
		diverged<<<blocks, threads>>>(l, (enum kind)_i, nodes, 8,
					      (uint32_t)test_random(&seed), done);
		finish_kernel();
		ck_assert_uint_gt(*done, 0);
		check_and_free(l, *done);
		ck_assert_cuda(cudaFree(done));
		ck_assert_cuda(cudaFree(nodes));
	}
}
END_TEST

/* ---- the distribution of turns while all threads compete for a fixed time ---- */

__global__ static void race(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
			    uint64_t ns, uint32_t *arrived, uint32_t *turns, uint32_t *failed)
{
	uint64_t start;
	uint32_t mine = 0;

	if (!meet(arrived)) {
		cua_atomic_add_u32(failed, 1);
		return;
	}
	start = cua_port_clock_ns();
	while (cua_port_clock_ns() - start < ns)
		mine += section(l, kind, &nodes[global_id()]);
	turns[global_id()] = mine;
}

static void run_race(enum kind kind, unsigned threads)
{
	unsigned blocks = processors(), n = blocks * threads;
	uint64_t ns = test_quick() ? 2000000 : 200000000, sum = 0;
	struct locks *l = managed_locks();
	uint32_t *words = (uint32_t *)managed(2 * sizeof(*words));
	uint32_t *turns = (uint32_t *)managed(n * sizeof(*turns));
	struct cua_mcslock_node *nodes;
	uint32_t least = UINT32_MAX, most = 0;

	nodes = (struct cua_mcslock_node *)managed(n * sizeof(*nodes));
	race<<<blocks, threads>>>(l, kind, nodes, ns, &words[0], turns, &words[1]);
	finish_kernel();
	ck_assert_uint_eq(words[1], 0);
	for (unsigned i = 0; i < n; i++) {
		least = turns[i] < least ? turns[i] : least;
		most = turns[i] > most ? turns[i] : most;
		sum += turns[i];
	}
	printf("fairness: %s, %u blocks of %u: %llu turns in %llu ms; a thread %u to %u, %.1f on average\n",
	       kind_names[kind], blocks, threads, (unsigned long long)sum,
	       (unsigned long long)(ns / 1000000), least, most, (double)sum / n);
	/*
	 * First come, first served: a thread that returns to the lock waits behind all other threads.
	 * Tools delay the start of some threads.
	 */
	if ((kind == TICKET || kind == MCS) && !test_quick())
		ck_assert_msg(most <= least + least / 4 + 8,
			      "%s: a thread had %u turns, another %u", kind_names[kind], least,
			      most);
	check_and_free(l, sum);
	ck_assert_cuda(cudaFree(words));
	ck_assert_cuda(cudaFree(turns));
	ck_assert_cuda(cudaFree(nodes));
}

START_TEST(fairness)
{
	run_race((enum kind)_i, 1);
	if (!test_quick())
		run_race((enum kind)_i, 64);
}
END_TEST

/* ---- timeouts on a lock that another block holds ---- */

enum {
	GAP_NS = 100000
}; /* between two readings of the clock by a block that only polls: the block was not running */

/*
 * Programs that share a device take turns of milliseconds on all of it. The holder watches the
 * clock while the other blocks wait. It adds up in *away the time without a running block of this
 * kernel.
 */
__global__ static void give_up(struct locks *l, enum kind kind, struct cua_mcslock_node *nodes,
			       uint64_t ns, uint32_t *held, uint32_t *gave_up, uint64_t *longest,
			       uint64_t *away, uint32_t *wrong)
{
	struct cua_mcslock_node *node = &nodes[blockIdx.x];
	uint64_t start, took;

	if (blockIdx.x == 0) {
		uint64_t last, now;
		uint32_t all;

		if (!lock_for(l, kind, node, 0))
			cua_atomic_add_u32(wrong, 1);
		start = last = cua_port_clock_ns();
		cua_atomic_store_explicit_u32(held, 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
					      CUA_SPACE_GENERIC);
		do {
			/* this before the clock: a gap just before the last timeout counts too */
			all = cua_atomic_load_explicit_u32(gave_up, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
							   CUA_SPACE_GENERIC) == gridDim.x - 1;
			now = cua_port_clock_ns();
			if (now - last > GAP_NS)
				*away += now - last;
			last = now;
		} while (!all && now - start < LIMIT_NS);
		if (!all)
			cua_atomic_add_u32(wrong, 1);
		work(l);
		unlock(l, kind, node);
		return;
	}
	if (!wait_until(held, 1))
		cua_atomic_add_u32(wrong, 1);
	start = cua_port_clock_ns();
	if (lock_for(l, kind, node, ns))
		cua_atomic_add_u32(wrong, 1);
	took = cua_port_clock_ns() - start;
	if (took < ns)
		cua_atomic_add_u32(wrong, 1);
	cua_atomic_max_u64(longest, took);
	cua_atomic_fetch_add_explicit_u32(gave_up, 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
					  CUA_SPACE_GENERIC);
}

/* Returns the time of the slowest block; *away is the part of it without a running block. */
static uint64_t run_timeouts(enum kind kind, uint64_t ns, uint64_t *away)
{
	unsigned blocks = test_quick() ? 4 : processors();
	struct cua_mcslock_node *nodes =
		(struct cua_mcslock_node *)managed(blocks * sizeof(*nodes));
	struct locks *l = managed_locks();
	uint64_t *times = (uint64_t *)managed(2 * sizeof(*times)), took;
	uint32_t *words = (uint32_t *)managed(3 * sizeof(*words));

	give_up<<<blocks, 1>>>(l, kind, nodes, ns, &words[0], &words[1], &times[0], &times[1],
			       &words[2]);
	finish_kernel();
	ck_assert_uint_eq(words[2], 0);
	took = times[0];
	*away = times[1];
	check_and_free(l, 1);
	ck_assert_cuda(cudaFree(nodes));
	ck_assert_cuda(cudaFree(times));
	ck_assert_cuda(cudaFree(words));
	return took;
}

START_TEST(timeouts)
{
	static const uint64_t times[] = {0, 10000, 300000, 5000000};
	enum kind kind = (enum kind)_i;

	for (int i = 0; i < 4; i++) {
		uint64_t bound = times[i] + 1000000, took = UINT64_MAX, away = 0;

		/*
		 * a poll under contention and a pause, besides the turns of other programs and the
		 * time to switch
		 */
		for (int again = 0; again < 10 && took > bound + away; again++) {
			took = run_timeouts(kind, times[i], &away);
			ck_assert_uint_le(took, times[i] + LIMIT_NS);
		}
		printf("timeouts: %s: %llu ns asked, %llu ns at most, %llu ns of them for other programs\n",
		       kind_names[kind], (unsigned long long)times[i], (unsigned long long)took,
		       (unsigned long long)away);
		/* tools delay both */
		if (!test_quick())
			ck_assert_uint_le(took, bound + away);
	}
}
END_TEST

/* ---- combining ---- */

CUA_DEFINE_COMBINE(add_to, struct locks, uint64_t, {
	if (state->debit + state->credit != 0)
		state->wrong++;
	state->debit -= 3 * argument;
	state->credit += 3 * argument;
	state->count += argument;
});
CUA_DEFINE_COMBINE(count, uint64_t, uint64_t, *state += argument);

/* Any lanes of a warp, in separate groups; each group has its own mask. */
__global__ static void combine_groups(struct cua_spinlock *locks, uint64_t *counts,
				      uint32_t n_locks, uint32_t each, uint64_t *own)
{
	uint32_t warp = whole_warp(), mine = 0;

	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(global_id() + i * 7919);
		uint32_t group = cua_port_match_any_u32(warp, random % 5), k = random % n_locks;

		if (random % 5 == 4)
			continue;
		count_warp(&locks[k], &counts[k], 1 + (random >> 16 & 7), group);
		mine += 1 + (random >> 16 & 7);
	}
	own[global_id()] = mine;
}

__global__ static void __launch_bounds__(256)
	combine_blocks(struct cua_spinlock *locks, uint64_t *counts, uint32_t n_locks,
		       uint32_t each)
{
	__shared__ uint64_t scratch[256];

	for (uint32_t i = 0; i < each; i++)
		count_block(&locks[blockIdx.x % n_locks], &counts[blockIdx.x % n_locks], 1,
			    scratch);
}

static uint64_t sum_and_clear(uint64_t *counts, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += counts[i];
		counts[i] = 0;
	}
	return sum;
}

START_TEST(combining)
{
	const uint32_t n_locks = 3;
	unsigned blocks = test_quick() ? 4 : processors();
	uint32_t each = test_quick() ? 4 : 100 * MILLION / (blocks * 256) + 1;
	struct cua_spinlock *locks = (struct cua_spinlock *)managed(n_locks * sizeof(*locks));
	uint64_t *counts = (uint64_t *)managed(n_locks * sizeof(*counts));
	uint64_t *own = (uint64_t *)managed(blocks * 256 * sizeof(*own));

	combine_blocks<<<blocks, 256>>>(locks, counts, n_locks, each);
	finish_kernel();
	ck_assert_uint_eq(sum_and_clear(counts, n_locks), (uint64_t)blocks * 256 * each);
	combine_groups<<<blocks, 250>>>(locks, counts, n_locks, test_quick() ? 4 : 100, own);
	finish_kernel();
	ck_assert_uint_eq(sum_and_clear(counts, n_locks), sum_and_clear(own, blocks * 250));
	for (uint32_t i = 0; i < n_locks; i++)
		ck_assert(!cua_spinlock_locked(&locks[i]));
	ck_assert_cuda(cudaFree(locks));
	ck_assert_cuda(cudaFree(counts));
	ck_assert_cuda(cudaFree(own));
}
END_TEST

/* ---- atomics: the targets equal the threads' own operations, combined on the host ---- */

/* The target of a thread: shared by a lane's, a warp's or a block's operations. */
enum by { BY_LANE, BY_WARP, BY_BLOCK };

CUA_FN uint32_t target_of(enum by by, uint32_t id, uint32_t block_size, uint32_t n_targets)
{
	switch (by) {
	case BY_LANE: return mix(id) % n_targets;
	case BY_WARP: return mix(id / 32) % n_targets;
	default: return id / block_size % n_targets;
	}
}

/* Blocks of 256 threads: the grid's warps are 32 consecutive threads. */
#define STRESS_THREADS 256u
#define ALL_LANES 0xffffffffu

CUA_DEFINE_ATOMIC_CHANGING_WARP(add_mod, u64, (old + operand) % 1000003)

/*
 * apply: the atomic, with p, operand and the block's scratch. expression: the plain update of old.
 * operand_expression: computed from `random`. The identity changes nothing; the targets and each
 * thread's own account begin with it.
 */
#define DEFINE_STRESS(name, T, by, identity, operand_expression, expression, apply, million)       \
	__device__ static void apply_##name(T *p, T operand, struct cua_block_scratch *block)      \
	{                                                                                          \
		(void)block;                                                                       \
		(void)(apply);                                                                     \
	}                                                                                          \
	__global__ static void __launch_bounds__(STRESS_THREADS)                                   \
		kernel_##name(T *targets, T *own, uint32_t n_targets, uint32_t each)               \
	{                                                                                          \
		__shared__ struct cua_block_scratch scratch;                                       \
		T *p = &targets[target_of(by, global_id(), STRESS_THREADS, n_targets)];            \
		T old = (T)(identity);                                                             \
                                                                                                   \
		for (uint32_t i = 0; i < each; i++) {                                              \
			uint32_t random = mix(global_id() * 31 + i);                               \
			T operand = (T)(operand_expression);                                       \
                                                                                                   \
			(void)random;                                                              \
			apply_##name(p, operand, &scratch);                                        \
			old = (T)(expression);                                                     \
		}                                                                                  \
		own[global_id()] = old;                                                            \
	}                                                                                          \
	START_TEST(stress_##name)                                                                  \
	{                                                                                          \
		const uint32_t n_targets = 16;                                                     \
		unsigned blocks = test_quick() ? 4 : processors(), n = blocks * STRESS_THREADS;    \
		uint32_t each = test_quick() ? 5 : (uint32_t)((million)*MILLION / n + 1);          \
		T *targets = (T *)managed(n_targets * sizeof(T));                                  \
		T *own = (T *)managed(n * sizeof(T));                                              \
		T expected[n_targets];                                                             \
                                                                                                   \
		for (uint32_t k = 0; k < n_targets; k++)                                           \
			targets[k] = expected[k] = (T)(identity);                                  \
		kernel_##name<<<blocks, STRESS_THREADS>>>(targets, own, n_targets, each);          \
		finish_kernel();                                                                   \
		for (uint32_t id = 0; id < n; id++) {                                              \
			T *p = &expected[target_of(by, id, STRESS_THREADS, n_targets)];            \
			T old = *p, operand = own[id];                                             \
                                                                                                   \
			*p = (T)(expression);                                                      \
		}                                                                                  \
		for (uint32_t k = 0; k < n_targets; k++)                                           \
			ck_assert_msg(targets[k] == expected[k],                                   \
				      #name ": target %u is %.17g, not %.17g", k,                  \
				      (double)targets[k], (double)expected[k]);                    \
		ck_assert_cuda(cudaFree(targets));                                                 \
		ck_assert_cuda(cudaFree(own));                                                     \
	}                                                                                          \
	END_TEST

#define ADD old + operand
#define BYTE random & 255

/* native operations, a lane at a time: 10^8 */
DEFINE_STRESS(add_u32, uint32_t, BY_LANE, 0, random, ADD, (cua_atomic_add_u32(p, operand), 0), 100)
DEFINE_STRESS(fetch_add_u64, uint64_t, BY_LANE, 0, random, ADD,
	      cua_atomic_fetch_add_u64(p, operand), 100)
DEFINE_STRESS(sub_i64, int64_t, BY_LANE, 0, BYTE, old + operand,
	      (cua_atomic_sub_i64(p, -operand), 0), 100)
DEFINE_STRESS(add_f32, float, BY_LANE, 0, 1, ADD, (cua_atomic_add_f32(p, operand), 0), 100)
DEFINE_STRESS(fetch_add_f64, double, BY_LANE, 0, BYTE, ADD, cua_atomic_fetch_add_f64(p, operand),
	      100)
DEFINE_STRESS(fetch_xor_u32, uint32_t, BY_LANE, 0, random, old ^ operand,
	      cua_atomic_fetch_xor_u32(p, operand), 100)
DEFINE_STRESS(xor_u64, uint64_t, BY_LANE, 0, random, old ^ operand,
	      (cua_atomic_xor_u64(p, operand), 0), 100)
DEFINE_STRESS(max_i32, int32_t, BY_LANE, INT32_MIN, random, (old > operand ? old : operand),
	      (cua_atomic_max_i32(p, operand), 0), 100)
DEFINE_STRESS(fetch_min_u64, uint64_t, BY_LANE, UINT64_MAX, random, (old < operand ? old : operand),
	      cua_atomic_fetch_min_u64(p, operand), 100)
/* combined in the warp and in the block: 10^8 by compare-and-swap */
DEFINE_STRESS(warp_add_u32, uint32_t, BY_WARP, 0, random, ADD,
	      cua_atomic_fetch_add_warp_u32(ALL_LANES, p, operand), 100)
DEFINE_STRESS(warp_mixed_u64, uint64_t, BY_LANE, 0, random, ADD,
	      (cua_atomic_add_warp_u64(ALL_LANES, p, operand), 0), 100)
DEFINE_STRESS(warp_cas_f64, double, BY_WARP, 0, BYTE, ADD,
	      cua_atomic_fetch_add_cas_warp_f64(ALL_LANES, p, operand), 100)
DEFINE_STRESS(warp_mul_u64, uint64_t, BY_WARP, 1, random | 1, old *operand,
	      cua_atomic_fetch_mul_warp_u64(ALL_LANES, p, operand), 100)
DEFINE_STRESS(warp_user, uint64_t, BY_WARP, 0, random, (old + operand) % 1000003,
	      add_mod_warp(ALL_LANES, p, operand), 100)
DEFINE_STRESS(block_add_u64, uint64_t, BY_BLOCK, 0, random, ADD,
	      (cua_atomic_add_block_u64(p, operand, block), 0), 100)
DEFINE_STRESS(block_mul_u32, uint32_t, BY_BLOCK, 1, random | 1, old *operand,
	      (cua_atomic_mul_block_u32(p, operand, block), 0), 100)
DEFINE_STRESS(block_cas_f64, double, BY_BLOCK, 0, BYTE, ADD,
	      (cua_atomic_add_cas_block_f64(p, operand, block), 0), 100)
/* loops over compare-and-swap, a lane at a time: 3 * 10^5 take a second */
DEFINE_STRESS(cas_f32, float, BY_LANE, 0, 1, ADD, cua_atomic_fetch_add_cas_f32(p, operand), 1)
DEFINE_STRESS(mul_u32, uint32_t, BY_LANE, 1, random | 1, old *operand,
	      cua_atomic_fetch_mul_u32(p, operand), 1)
DEFINE_STRESS(user, uint64_t, BY_LANE, 0, random, (old + operand) % 1000003, add_mod(p, operand), 1)
DEFINE_STRESS(max_f64, double, BY_LANE, 0, random, (old > operand ? old : operand),
	      (cua_atomic_max_f64(p, operand), 0), 10)
/* sixteen targets in four words, and in eight */
DEFINE_STRESS(narrow_u8, uint8_t, BY_LANE, 0, random, ADD, (cua_atomic_add_u8(p, operand), 0), 1)
DEFINE_STRESS(narrow_i16, int16_t, BY_LANE, 0, random, old ^ operand,
	      cua_atomic_fetch_xor_i16(p, operand), 1)

static const TTest *const *const stress_tests[] = {
#define STRESS(name) &stress_##name
	STRESS(add_u32),       STRESS(fetch_add_u64), STRESS(sub_i64),        STRESS(add_f32),
	STRESS(fetch_add_f64), STRESS(fetch_xor_u32), STRESS(xor_u64),        STRESS(max_i32),
	STRESS(fetch_min_u64), STRESS(warp_add_u32),  STRESS(warp_mixed_u64), STRESS(warp_cas_f64),
	STRESS(warp_mul_u64),  STRESS(warp_user),     STRESS(block_add_u64),  STRESS(block_mul_u32),
	STRESS(block_cas_f64), STRESS(cas_f32),       STRESS(mul_u32),        STRESS(user),
	STRESS(max_f64),       STRESS(narrow_u8),     STRESS(narrow_i16),
#undef STRESS
};

/* ---- atomics whose results prove themselves ---- */

/* Wrapping counters: target 0 up, target 1 down, and a 64-bit target up. */
__global__ static void wrap(uint32_t *targets, uint64_t *wide, uint32_t limit, uint32_t each)
{
	for (uint32_t i = 0; i < each; i++) {
		cua_atomic_inc_u32(&targets[0], limit);
		(void)cua_atomic_fetch_dec_u32(&targets[1], limit);
		if (threadIdx.x == 0 && i % 16 == 0)
			cua_atomic_inc_u64(wide, limit);
	}
}

START_TEST(wrapping)
{
	const uint32_t limit = 1000002;
	unsigned blocks = test_quick() ? 4 : processors();
	uint32_t each = test_quick() ? 5 : 100 * MILLION / (blocks * 256) + 1;
	uint64_t total = (uint64_t)blocks * 256 * each, round = (uint64_t)limit + 1;
	uint32_t *targets = (uint32_t *)managed(2 * sizeof(*targets));
	uint64_t *wide = (uint64_t *)managed(sizeof(*wide));

	wrap<<<blocks, 256>>>(targets, wide, limit, each);
	finish_kernel();
	ck_assert_uint_eq(targets[0], total % round);
	ck_assert_uint_eq(targets[1], (round - total % round) % round);
	ck_assert_uint_eq(*wide, (uint64_t)blocks * ((each + 15) / 16) % round);
	ck_assert_cuda(cudaFree(targets));
	ck_assert_cuda(cudaFree(wide));
}
END_TEST

/* Each of 32 blocks owns a bit of the same words, and sets and clears it. */
__global__ static void bits(uint32_t *words, uint32_t each, uint32_t *wrong)
{
	uint32_t *word = &words[blockIdx.x / 32], bit = (uint32_t)1 << blockIdx.x % 32;

	for (uint32_t i = 0; i < each; i++) {
		if (cua_atomic_fetch_or_u32(word, bit) & bit)
			cua_atomic_add_u32(wrong, 1);
		if (i + 1 == each)
			break;
		if (!(cua_atomic_load_u32(word) & bit) ||
		    !(cua_atomic_fetch_and_u32(word, ~bit) & bit))
			cua_atomic_add_u32(wrong, 1);
	}
}

/* Exchanges of tokens: none is lost, none occurs twice. */
__global__ static void tokens(uint32_t *targets, uint32_t n_targets, uint32_t each, uint32_t *own)
{
	uint32_t token = n_targets + global_id();

	for (uint32_t i = 0; i < each; i++)
		token = cua_atomic_exchange_u32(&targets[mix(global_id() + i) % n_targets], token);
	own[global_id()] = token;
}

/* An increment by compare-and-swap: each success adds 1. */
__global__ static void swaps(uint64_t *targets, uint32_t n_targets, uint32_t each, uint64_t *won)
{
	uint32_t mine = 0;

	for (uint32_t i = 0; i < each; i++) {
		uint64_t *p = &targets[i % n_targets], seen = cua_atomic_load_u64(p);

		mine += cua_atomic_compare_exchange_u64(p, seen, seen + 1) == seen;
	}
	cua_atomic_add_u64(won, mine);
}

START_TEST(traces)
{
	const uint32_t n_targets = 16;
	unsigned blocks = test_quick() ? 4 : processors(), n = blocks * 256;
	uint32_t each = test_quick() ? 5 : 100 * MILLION / n + 1, wrong_bits = 0;
	uint32_t *targets = (uint32_t *)managed(64 * sizeof(*targets));
	uint32_t *own = (uint32_t *)managed(n * sizeof(*own));
	uint64_t *wide = (uint64_t *)managed(n_targets * sizeof(*wide));
	uint64_t *won = (uint64_t *)managed(sizeof(*won));
	uint8_t *seen = (uint8_t *)test_malloc(n + n_targets);

	bits<<<64, 1>>>(targets, test_quick() ? 5 : MILLION, &targets[32]);
	finish_kernel();
	for (int i = 0; i < 2; i++)
		wrong_bits |= ~targets[i];
	ck_assert_uint_eq(wrong_bits, 0);
	ck_assert_uint_eq(targets[32], 0);

	for (uint32_t k = 0; k < n_targets; k++)
		targets[k] = k;
	tokens<<<blocks, 256>>>(targets, n_targets, each, own);
	finish_kernel();
	memset(seen, 0, n + n_targets);
	for (uint32_t i = 0; i < n + n_targets; i++) {
		uint32_t token = i < n ? own[i] : targets[i - n];

		ck_assert_uint_lt(token, n + n_targets);
		ck_assert_msg(!seen[token], "token %u is there twice", token);
		seen[token] = 1;
	}

	swaps<<<blocks, 256>>>(wide, n_targets, test_quick() ? 5 : 3000, won);
	finish_kernel();
	ck_assert_uint_gt(*won, 0);
	ck_assert_uint_eq(sum_and_clear(wide, n_targets), *won);

	free(seen);
	ck_assert_cuda(cudaFree(targets));
	ck_assert_cuda(cudaFree(own));
	ck_assert_cuda(cudaFree(wide));
	ck_assert_cuda(cudaFree(won));
}
END_TEST

/* Warp atomics by any lanes, in groups with separate masks. */
__global__ static void groups(uint64_t *targets, uint32_t n_targets, uint32_t each, uint64_t *own)
{
	uint32_t warp = whole_warp();
	uint64_t mine = 0;

	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(global_id() * 17 + i);
		uint32_t mask = cua_port_match_any_u32(warp, random % 5);

		if (random % 5 == 0)
			continue;
		cua_atomic_fetch_add_warp_u64(mask, &targets[(random >> 8) % n_targets], random);
		mine += random;
	}
	own[global_id()] = mine;
}

START_TEST(odd_masks)
{
	const uint32_t n_targets = 3;
	unsigned blocks = test_quick() ? 4 : processors(), threads = 250;
	uint64_t *targets = (uint64_t *)managed(n_targets * sizeof(*targets));
	uint64_t *own = (uint64_t *)managed(blocks * threads * sizeof(*own));

	groups<<<blocks, threads>>>(targets, n_targets, test_quick() ? 5 : 300, own);
	finish_kernel();
	ck_assert_uint_eq(sum_and_clear(targets, n_targets), sum_and_clear(own, blocks * threads));
	ck_assert_cuda(cudaFree(targets));
	ck_assert_cuda(cudaFree(own));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("stress");
	TCase *locks = tcase_create("locks"), *atomics = tcase_create("atomics");

	tcase_set_timeout(locks, 120);
	tcase_add_loop_test(locks, million_sections, 0, N_KINDS);
	tcase_add_loop_test(locks, more_blocks_than_fit, 0, N_KINDS);
	tcase_add_loop_test(locks, divergence, 0, N_KINDS);
	tcase_add_loop_test(locks, fairness, 0, N_KINDS);
	tcase_add_loop_test(locks, timeouts, 0, N_KINDS);
	tcase_add_test(locks, combining);
	suite_add_tcase(suite, locks);
	tcase_set_timeout(atomics, 120);
	for (size_t i = 0; i < sizeof(stress_tests) / sizeof(stress_tests[0]); i++)
		tcase_add_test(atomics, *stress_tests[i]);
	tcase_add_test(atomics, wrapping);
	tcase_add_test(atomics, traces);
	tcase_add_test(atomics, odd_masks);
	suite_add_tcase(suite, atomics);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
