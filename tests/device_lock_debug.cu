/* SPDX-License-Identifier: MIT */
/*
 * Lock debugging in kernels: mistakes, correct use by many lanes, and hangs that the host inspects.
 */
#define CUA_LOCK_DEBUG 1
#include <sched.h>

#include "device.h"
#include "section_exits.h"

#define LIMIT_NS 20000000u
/* No kernel of this program waits longer, even if a test fails. */
#define PATIENCE_NS 20000000000ull

static struct cua_context *ctx;
static struct cua_lock_debug *table;

static void attach_new(uint64_t max_records, uint64_t limit_ns)
{
	struct cua_lock_debug_options options = CUA_LOCK_DEBUG_OPTIONS_INIT;

	options.max_records = max_records;
	options.limit_ns = limit_ns;
	ctx = test_context(CUA_BACKEND_CUDA);
	ck_assert_cua(cua_lock_debug_create(ctx, &options, &table));
	ck_assert_cua(cua_lock_debug_attach_device(table));
}

static void detach(void)
{
	ck_assert_cua(cua_lock_debug_attach_device(NULL));
	ck_assert_cua(cua_lock_debug_destroy(table));
	cua_context_destroy(ctx);
}

/* ---- every lock behind the same calls ---- */

/* In the order of enum cua_lock_kind. */
enum { KINDS = CUA_LOCK_SEMAPHORE + 1 };

struct locks {
	struct cua_spinlock spin;
	struct cua_semaphore semaphore;
	struct cua_ticketlock ticket;
	struct cua_mcslock mcs;
	struct cua_rwlock rw;
	struct cua_seqlock seq;
};

static struct locks *managed_locks(void)
{
	struct locks *l = (struct locks *)managed(sizeof(*l));

	l->semaphore.count = 1;
	return l;
}

static uint64_t address_of(const struct locks *l, int kind)
{
	switch (kind) {
	case CUA_LOCK_SPIN: return (uint64_t)(uintptr_t)&l->spin;
	case CUA_LOCK_TICKET: return (uint64_t)(uintptr_t)&l->ticket;
	case CUA_LOCK_MCS: return (uint64_t)(uintptr_t)&l->mcs;
	case CUA_LOCK_READ:
	case CUA_LOCK_WRITE: return (uint64_t)(uintptr_t)&l->rw;
	case CUA_LOCK_SEQ: return (uint64_t)(uintptr_t)&l->seq;
	default: return (uint64_t)(uintptr_t)&l->semaphore;
	}
}

__device__ __noinline__ static void lock(struct locks *l, int kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case CUA_LOCK_SPIN: cua_spinlock_lock(&l->spin); break;
	case CUA_LOCK_TICKET: cua_ticketlock_lock(&l->ticket); break;
	case CUA_LOCK_MCS: cua_mcslock_lock(&l->mcs, node); break;
	case CUA_LOCK_READ: cua_rwlock_read_lock(&l->rw); break;
	case CUA_LOCK_WRITE: cua_rwlock_write_lock(&l->rw); break;
	case CUA_LOCK_SEQ: cua_seqlock_lock(&l->seq); break;
	default: cua_semaphore_lock(&l->semaphore);
	}
}

__device__ __noinline__ static int trylock(struct locks *l, int kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case CUA_LOCK_SPIN: return cua_spinlock_trylock(&l->spin);
	case CUA_LOCK_TICKET: return cua_ticketlock_trylock(&l->ticket);
	case CUA_LOCK_MCS: return cua_mcslock_trylock(&l->mcs, node);
	case CUA_LOCK_READ: return cua_rwlock_read_trylock(&l->rw);
	case CUA_LOCK_WRITE: return cua_rwlock_write_trylock(&l->rw);
	case CUA_LOCK_SEQ: return cua_seqlock_trylock(&l->seq);
	default: return cua_semaphore_trylock(&l->semaphore);
	}
}

__device__ __noinline__ static void unlock(struct locks *l, int kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case CUA_LOCK_SPIN: cua_spinlock_unlock(&l->spin); break;
	case CUA_LOCK_TICKET: cua_ticketlock_unlock(&l->ticket); break;
	case CUA_LOCK_MCS: cua_mcslock_unlock(&l->mcs, node); break;
	case CUA_LOCK_READ: cua_rwlock_read_unlock(&l->rw); break;
	case CUA_LOCK_WRITE: cua_rwlock_write_unlock(&l->rw); break;
	case CUA_LOCK_SEQ: cua_seqlock_unlock(&l->seq); break;
	default: cua_semaphore_unlock(&l->semaphore);
	}
}

__device__ __noinline__ static void in_section(struct locks *l, int kind,
					       struct cua_mcslock_node *node, uint64_t *sum)
{
	switch (kind) {
	case CUA_LOCK_SPIN:
		CUA_WITH_LOCK (&l->spin)
			++*sum;
		break;
	case CUA_LOCK_TICKET:
		CUA_WITH_TICKETLOCK (&l->ticket)
			++*sum;
		break;
	case CUA_LOCK_MCS:
		CUA_WITH_MCSLOCK (&l->mcs, node)
			++*sum;
		break;
	case CUA_LOCK_READ:
		CUA_WITH_READ_LOCK (&l->rw)
			atomicAdd((unsigned long long *)sum, 1ull);
		break;
	case CUA_LOCK_WRITE:
		CUA_WITH_WRITE_LOCK (&l->rw)
			++*sum;
		break;
	case CUA_LOCK_SEQ:
		CUA_WITH_SEQLOCK (&l->seq)
			++*sum;
		break;
	default: CUA_WITH_SEMAPHORE (&l->semaphore) ++*sum;
	}
}

/* ---- the verdicts of the table ---- */

static void expect_clean(void)
{
	struct cua_lock_verdict v;
	char line[CUA_LOCK_DEBUG_TEXT] = "";
	uint64_t dropped, total;
	size_t n;

	ck_assert_cua(cua_lock_debug_read_verdicts(table, 0, 1, &v, &n, &total));
	if (n)
		(void)cua_lock_verdict_text(&v, sizeof(line), line);
	ck_assert_msg(total == 0, "%llu verdicts: %s", (unsigned long long)total, line);
	ck_assert_cua(cua_lock_debug_dropped(table, &dropped));
	ck_assert_uint_eq(dropped, 0);
}

/* No lane is recorded as a holder. */
static void expect_no_holders(void)
{
	size_t bytes = (size_t)table->n_records * sizeof(struct cua_lock_record);
	struct cua_lock_record *records = (struct cua_lock_record *)test_malloc(bytes);

	test_download(ctx, records, table->records, bytes);
	for (uint64_t i = 0; i < table->n_records; i++)
		ck_assert_uint_eq(records[i].state & 3, 0);
	free(records);
}

/* ---- mistakes: by lane 0 of block 0, and by another lane in block 1 ---- */

__device__ static int wait_for(const uint64_t *p, uint64_t least)
{
	uint64_t start = cua_port_clock_ns();

	while (cua_port_load_b64(p, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC) < least) {
		if (cua_port_clock_ns() - start > PATIENCE_NS / 4)
			return 0;
		cua_port_pause(1000);
	}
	return 1;
}

__device__ static void say(uint64_t *p, uint64_t v)
{
	cua_port_store_b64(p, v, CUA_RELEASE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
}

__global__ static void unlocks_free(struct locks *l, int kind, struct cua_mcslock_node *nodes)
{
	if (threadIdx.x != 7)
		return;
	/* a queue lock would wait for its successor, so the test provides it */
	nodes[0].next = (uint64_t)(uintptr_t)&nodes[1];
	unlock(l, kind, nodes);
}

__global__ static void stranger_unlocks(struct locks *l, int kind, struct cua_mcslock_node *nodes,
					uint64_t *step)
{
	if (blockIdx.x == 0 && threadIdx.x == 3) {
		lock(l, kind, nodes);
		say(step, 1);
	} else if (blockIdx.x == 1 && threadIdx.x == 5 && wait_for(step, 1)) {
		unlock(l, kind, nodes);
		say(step, 2);
	}
}

__global__ static void locks_twice(struct locks *l, int kind, struct cua_mcslock_node *nodes,
				   const struct cua_lock_debug *t, uint64_t *step)
{
	if (blockIdx.x == 0 && threadIdx.x == 3) {
		lock(l, kind, &nodes[0]);
		lock(l, kind, &nodes[1]);
		say(step, 2);
	} else if (blockIdx.x == 1 && threadIdx.x == 5) {
		/* the verdict precedes the hang; this unlock always ends the hang */
		(void)wait_for(&t->n_verdicts, 1);
		if (kind != CUA_LOCK_READ)
			unlock(l, kind, &nodes[0]);
	}
}

static void expect_verdict(uint64_t i, int mistake, const struct locks *l, int kind,
			   const uint64_t *owner, const uint64_t *offender)
{
	struct cua_lock_verdict v;
	uint64_t total;
	size_t n;

	ck_assert_cua(cua_lock_debug_read_verdicts(table, i, 1, &v, &n, &total));
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq((int)v.mistake, mistake);
	ck_assert_int_eq((int)v.kind, kind);
	ck_assert_uint_eq(v.address, address_of(l, kind));
	if (owner) {
		ck_assert_uint_eq(v.owner.block, owner[0]);
		ck_assert_uint_eq(v.owner.thread, owner[1]);
		ck_assert_uint_eq(v.owner.grid, v.offender.grid);
		ck_assert_uint_ne(v.owner_clock, 0);
	} else {
		ck_assert_uint_eq(v.owner_clock, 0);
	}
	ck_assert_uint_eq(v.offender.block, offender[0]);
	ck_assert_uint_eq(v.offender.thread, offender[1]);
	ck_assert_uint_ge(v.clock, v.owner_clock);
}

START_TEST(mistakes)
{
	static const uint64_t lane[2] = {0, 3}, stranger[2] = {1, 5}, freer[2] = {0, 7};
	struct cua_mcslock_node *nodes = (struct cua_mcslock_node *)managed(2 * sizeof(*nodes));
	uint64_t *step = (uint64_t *)managed(sizeof(*step));
	struct locks *l = managed_locks();

	attach_new(64, 0);
	unlocks_free<<<1, 32>>>(l, _i, nodes);
	finish_kernel();
	if (_i == CUA_LOCK_SEMAPHORE)
		expect_clean();
	else
		expect_verdict(0, CUA_LOCK_UNLOCK_FREE, l, _i, NULL, freer);
	detach();
	ck_assert_cuda(cudaMemset(l, 0, sizeof(*l)));
	ck_assert_cuda(cudaMemset(nodes, 0, 2 * sizeof(*nodes)));
	ck_assert_cuda(cudaDeviceSynchronize());
	l->semaphore.count = 1;

	attach_new(64, 0);
	stranger_unlocks<<<2, 32>>>(l, _i, nodes, step);
	finish_kernel();
	ck_assert_uint_eq(*step, 2);
	if (_i == CUA_LOCK_SEMAPHORE)
		expect_clean();
	else
		expect_verdict(0, CUA_LOCK_STRANGER_UNLOCK, l, _i, lane, stranger);
	detach();

	*step = 0;
	attach_new(64, 0);
	if (_i != CUA_LOCK_SEMAPHORE) {
		locks_twice<<<2, 32>>>(l, _i, nodes, table, step);
		finish_kernel();
		ck_assert_uint_eq(*step, 2);
		expect_verdict(0, CUA_LOCK_SELF_RELOCK, l, _i, lane, lane);
		if (_i != CUA_LOCK_READ)
			expect_verdict(1, CUA_LOCK_STRANGER_UNLOCK, l, _i, lane, stranger);
	}
	detach();
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(nodes));
	ck_assert_cuda(cudaFree(step));
}
END_TEST

/* A lock in shared memory has the same address in every block, but is a different lock in each. */
__global__ static void unlocks_shared(struct cua_spinlock *global, uint64_t *step, uint32_t *spaces)
{
	__shared__ struct cua_spinlock lock;

	if (threadIdx.x)
		return;
	lock.word = 0;
	if (blockIdx.x == 0) {
		spaces[0] = (uint32_t)cua_port_is_shared(&lock);
		spaces[1] = (uint32_t)cua_port_is_shared(global);
		cua_spinlock_lock_scope(&lock, CUA_SCOPE_BLOCK);
		say(&step[0], 1);
		(void)wait_for(&step[1], 1);
		cua_spinlock_unlock_scope(&lock, CUA_SCOPE_BLOCK);
	} else {
		(void)wait_for(&step[0], 1);
		cua_spinlock_unlock_scope(&lock, CUA_SCOPE_BLOCK);
		say(&step[1], 1);
	}
}

START_TEST(shared_mistake)
{
	uint64_t *step = (uint64_t *)managed(2 * sizeof(*step)), total;
	uint32_t *spaces = (uint32_t *)managed(2 * sizeof(*spaces));
	struct cua_lock_verdict v[2];
	struct locks *l = managed_locks();
	size_t n;

	attach_new(64, 0);
	unlocks_shared<<<2, 32>>>(&l->spin, step, spaces);
	finish_kernel();
	ck_assert_uint_eq(spaces[0], 1);
	ck_assert_uint_eq(spaces[1], 0);
	ck_assert_cua(cua_lock_debug_read_verdicts(table, 0, 2, v, &n, &total));
	ck_assert_uint_eq(total, 1);
	ck_assert_int_eq((int)v[0].mistake, CUA_LOCK_UNLOCK_FREE);
	ck_assert_uint_eq(v[0].offender.block, 1);
	expect_no_holders();
	detach();
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(step));
	ck_assert_cuda(cudaFree(spaces));
}
END_TEST

/* A lane of the warp holds the lock that the warp then combines; block 1 ends the hang. */
CUA_DEFINE_COMBINE(add_up, uint64_t, uint64_t, { *state += argument; });

__global__ static void combines_held(struct cua_spinlock *l, uint64_t *sum,
				     const struct cua_lock_debug *t)
{
	if (blockIdx.x == 0) {
		if (threadIdx.x == 9)
			cua_spinlock_lock(l);
		__syncwarp();
		add_up_warp(l, sum, 1, 0xffffffffu);
	} else if (threadIdx.x == 0) {
		(void)wait_for(&t->n_verdicts, 1);
		cua_spinlock_unlock(l);
	}
}

START_TEST(combined_mistake)
{
	static const uint64_t lane[2] = {0, 9};
	struct locks *l = managed_locks();
	uint64_t *sum = (uint64_t *)managed(sizeof(*sum));

	attach_new(64, 0);
	combines_held<<<2, 32>>>(&l->spin, sum, table);
	finish_kernel();
	ck_assert_uint_eq(*sum, 32);
	expect_verdict(0, CUA_LOCK_SELF_RELOCK, l, CUA_LOCK_SPIN, lane, lane);
	detach();
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(sum));
}
END_TEST

/* ---- correct use by every lane ---- */

__global__ static void right_use(struct locks *l, int kind, struct cua_mcslock_node *nodes,
				 uint64_t *sum, unsigned rounds, bool in_block)
{
	uint32_t id = global_id();
	__shared__ struct cua_spinlock shared_lock;
	__shared__ struct cua_ticketlock shared_ticket;
	__shared__ uint64_t scratch[64], shared_sum;

	if (threadIdx.x == 0) {
		cua_spinlock_init(&shared_lock);
		cua_ticketlock_init(&shared_ticket);
		shared_sum = 0;
	}
	__syncthreads();
	for (unsigned i = 0; i < rounds; i++) {
		in_section(l, kind, &nodes[id], sum);
		if (id % 3 == i % 3) {
			lock(l, kind, &nodes[id]);
			if (kind == CUA_LOCK_READ)
				atomicAdd((unsigned long long *)sum, 1ull);
			else
				++*sum;
			unlock(l, kind, &nodes[id]);
		} else if (in_block) {
			/* the same address in every block */
			CUA_WITH_LOCK_SCOPE (&shared_lock, CUA_SCOPE_BLOCK) {
				CUA_WITH_TICKETLOCK_SCOPE (&shared_ticket, CUA_SCOPE_BLOCK)
					shared_sum++;
			}
		}
		if (id % 5 == 0 && trylock(l, kind, &nodes[id]))
			unlock(l, kind, &nodes[id]);
		__syncwarp();
		if (kind == CUA_LOCK_SPIN) {
			add_up_warp(&l->spin, sum, 1, 0xffffffffu);
			add_up_block(&l->spin, sum, 1, scratch);
			CUA_WITH_LOCK_WARP (&l->spin, 0xffffffffu)
				++*sum;
		}
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		CUA_WITH_LOCK (&l->spin)
			sum[1] += shared_sum;
	}
}

START_TEST(no_mistakes)
{
	const unsigned blocks = 32, threads = 64, rounds = test_quick() ? 3 : 12,
		       n = blocks * threads;
	/* racecheck takes a lock in shared memory for a race */
	const bool in_block = !test_under("racecheck");
	struct cua_mcslock_node *nodes = (struct cua_mcslock_node *)managed(n * sizeof(*nodes));
	uint64_t *sum = (uint64_t *)managed(2 * sizeof(*sum)), locked = 0;
	struct locks *l = managed_locks();

	for (unsigned id = 0; id < n; id++)
		for (unsigned i = 0; i < rounds; i++)
			locked += id % 3 == i % 3;
	attach_new(65536, 0);
	right_use<<<blocks, threads>>>(l, _i, nodes, sum, rounds, in_block);
	finish_kernel();
	ck_assert_uint_eq(sum[0], (uint64_t)n * rounds * (_i == CUA_LOCK_SPIN ? 4 : 1) + locked);
	ck_assert_uint_eq(sum[1], in_block ? (uint64_t)n * rounds - locked : 0);
	expect_clean();
	expect_no_holders();
	detach();
	if (!in_block)
		printf("no_mistakes: without locks in shared memory, which the tool takes for races\n");
	/* again, without a table */
	attach_new(64, 1);
	ck_assert_cua(cua_lock_debug_attach_device(NULL));
	sum[0] = 0;
	right_use<<<blocks, threads>>>(l, _i, nodes, sum, 1, in_block);
	finish_kernel();
	ck_assert_uint_ge(sum[0], n);
	expect_clean();
	expect_no_holders();
	detach();
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(nodes));
	ck_assert_cuda(cudaFree(sum));
}
END_TEST

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

/* No exit leaves a record or causes a verdict. */
START_TEST(exits)
{
	const unsigned blocks = test_quick() ? 4 : 32, threads = 64, rounds = 2 * SECTION_EXITS;
	struct cua_mcslock_node *nodes =
		(struct cua_mcslock_node *)managed((size_t)blocks * threads * sizeof(*nodes));
	struct section_locks *l = (struct section_locks *)managed(sizeof(*l));
	uint64_t sections = (uint64_t)blocks * threads * rounds;
	uint32_t *wrong = (uint32_t *)managed(sizeof(*wrong));

	section_init(l);
	attach_new(65536, 0);
	leave_sections<<<blocks, threads>>>(l, (enum section_kind)_i, nodes, rounds, wrong);
	finish_kernel();
	ck_assert_uint_eq(*wrong, 0);
	ck_assert_uint_eq(l->torn, 0);
	ck_assert_uint_eq(l->count[0], _i == SECTION_READ ? sections / 2 : sections);
	ck_assert(!section_locked(l));
	expect_clean();
	expect_no_holders();
	detach();
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(nodes));
	ck_assert_cuda(cudaFree(wrong));
}
END_TEST

__global__ static void attaches(struct cua_lock_debug *t, struct cua_spinlock *l)
{
	if (threadIdx.x == 0)
		cua_lock_debug_attach(t);
	__syncthreads();
	if (threadIdx.x == 40)
		cua_spinlock_unlock(l);
}

START_TEST(attached_in_kernel)
{
	static const uint64_t offender[2] = {0, 40};
	struct locks *l = managed_locks();

	attach_new(64, 0);
	ck_assert_cua(cua_lock_debug_attach_device(NULL));
	attaches<<<1, 64>>>(table, &l->spin);
	finish_kernel();
	expect_verdict(0, CUA_LOCK_UNLOCK_FREE, l, CUA_LOCK_SPIN, NULL, offender);
	detach();
	ck_assert_cuda(cudaFree(l));
}
END_TEST

/* ---- hangs: a kernel holds the lock until the host releases it, or for a limited time ---- */

__global__ static void holds(struct locks *l, int kind, struct cua_mcslock_node *node,
			     uint64_t *held, const uint64_t *go)
{
	uint64_t start = cua_port_clock_ns();

	lock(l, kind, node);
	say(held, 1);
	while (!cua_port_load_b64(go, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC) &&
	       cua_port_clock_ns() - start < PATIENCE_NS)
		cua_port_pause(1000);
	unlock(l, kind, node);
}

__global__ static void waits(struct locks *l, int kind, struct cua_mcslock_node *nodes, int section,
			     uint64_t *sum)
{
	if (threadIdx.x != 1)
		return;
	if (section) {
		in_section(l, kind, &nodes[blockIdx.x], sum);
	} else {
		lock(l, kind, &nodes[blockIdx.x]);
		atomicAdd((unsigned long long *)sum, 1ull);
		unlock(l, kind, &nodes[blockIdx.x]);
	}
}

static const struct {
	int held, wanted;
} hangs[] = {
	{CUA_LOCK_SPIN, CUA_LOCK_SPIN},  {CUA_LOCK_TICKET, CUA_LOCK_TICKET},
	{CUA_LOCK_MCS, CUA_LOCK_MCS},    {CUA_LOCK_WRITE, CUA_LOCK_READ},
	{CUA_LOCK_READ, CUA_LOCK_WRITE}, {CUA_LOCK_WRITE, CUA_LOCK_WRITE},
	{CUA_LOCK_SEQ, CUA_LOCK_SEQ},    {CUA_LOCK_SEMAPHORE, CUA_LOCK_SEMAPHORE},
};
enum { N_HANGS = COUNT(hangs) };

static uint64_t load(const uint64_t *p)
{
	return cua_port_load_b64(p, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
}

START_TEST(hang)
{
	int held = hangs[_i / 2].held, wanted = hangs[_i / 2].wanted;
	struct cua_mcslock_node *nodes = (struct cua_mcslock_node *)managed(3 * sizeof(*nodes));
	uint64_t *sum = (uint64_t *)managed(sizeof(*sum)), *flags = NULL, start, total;
	struct locks *l = managed_locks();
	struct cua_hang_report reports[3];
	cudaError_t busy, busy_then;
	cudaStream_t a, b;
	uint64_t block;
	size_t n;

	ck_assert_cuda(cudaHostAlloc((void **)&flags, 2 * sizeof(*flags), cudaHostAllocMapped));
	memset(flags, 0, 2 * sizeof(*flags));
	ck_assert_cuda(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	ck_assert_cuda(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	attach_new(1024, LIMIT_NS);
	/* first launches: may have to wait until no other kernel runs */
	flags[1] = 1;
	holds<<<1, 1>>>(l, held, &nodes[2], &flags[0], &flags[1]);
	waits<<<2, 32>>>(l, wanted, nodes, _i % 2, sum);
	finish_kernel();
	memset(flags, 0, 2 * sizeof(*flags));
	*sum = 0;
	start = cua_port_clock_ns();
	holds<<<1, 1, 0, a>>>(l, held, &nodes[2], &flags[0], &flags[1]);
	ck_assert_cuda(cudaGetLastError());
	while (!load(&flags[0]) && cua_port_clock_ns() - start < PATIENCE_NS / 4)
		sched_yield();
	waits<<<2, 32, 0, b>>>(l, wanted, nodes, _i % 2, sum);
	ck_assert_cuda(cudaGetLastError());
	do
		ck_assert_cua(cua_lock_debug_read_reports(table, 0, 3, reports, &n, &total));
	while (n < 2 && cua_port_clock_ns() - start < PATIENCE_NS / 2);
	/* while the kernels hang */
	busy = cudaStreamQuery(a);
	busy_then = cudaStreamQuery(b);
	for (uint64_t now = cua_port_clock_ns();
	     cua_port_clock_ns() - now < 3 * (uint64_t)LIMIT_NS;)
		sched_yield();
	ck_assert_cua(cua_lock_debug_read_reports(table, 0, 3, reports, &n, &total));
	cua_port_store_b64(&flags[1], 1, CUA_RELEASE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
	finish_kernel();
	ck_assert_uint_eq(flags[0], 1);
	ck_assert_int_eq(busy, cudaErrorNotReady);
	ck_assert_int_eq(busy_then, cudaErrorNotReady);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(total, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq((int)reports[i].kind, wanted);
		ck_assert_int_eq((int)reports[i].owner_kind, held);
		ck_assert_uint_eq(reports[i].address, address_of(l, wanted));
		ck_assert_uint_eq(reports[i].owner.block, 0);
		ck_assert_uint_eq(reports[i].owner.thread, 0);
		ck_assert_uint_ne(reports[i].owner.grid, reports[i].waiter.grid);
		ck_assert_uint_eq(reports[i].waiter.thread, 1);
		ck_assert_uint_ge(reports[i].waited_ns, LIMIT_NS);
		ck_assert_uint_gt(reports[i].clock, reports[i].owner_clock);
	}
	block = reports[0].waiter.block;
	ck_assert_uint_le(block, 1);
	ck_assert_uint_eq(reports[1].waiter.block, 1 - block);
	ck_assert_uint_eq(*sum, 2);
	expect_clean();
	expect_no_holders();
	detach();
	ck_assert_cuda(cudaStreamDestroy(a));
	ck_assert_cuda(cudaStreamDestroy(b));
	ck_assert_cuda(cudaFreeHost(flags));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(nodes));
	ck_assert_cuda(cudaFree(sum));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("lock debugging in kernels");
	TCase *kernels = tcase_create("kernels");

	tcase_set_timeout(kernels, 120);
	tcase_add_loop_test(kernels, mistakes, CUA_LOCK_SPIN, KINDS);
	tcase_add_test(kernels, shared_mistake);
	tcase_add_test(kernels, combined_mistake);
	tcase_add_loop_test(kernels, no_mistakes, CUA_LOCK_SPIN, KINDS);
	tcase_add_loop_test(kernels, exits, 0, SECTION_KINDS);
	tcase_add_test(kernels, attached_in_kernel);
	/* tools run kernels in sequence */
	if (!getenv("CUA_TEST_TOOL"))
		tcase_add_loop_test(kernels, hang, 0, 2 * N_HANGS);
	suite_add_tcase(suite, kernels);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
