/* SPDX-License-Identifier: MIT */
/* Locks acquired by warps, parts of warps and blocks, and locks that host and device share. */
#include <pthread.h>

#include "device.h"
#include "lock_form_calls.h"

static int attribute(enum cudaDeviceAttr which)
{
	int value = 0;

	ck_assert_cuda(cudaDeviceGetAttribute(&value, which, 0));
	return value;
}

enum level { LANE_LEVEL, WARP_LEVEL, PART_LEVEL, BLOCK_LEVEL, MIXED_LEVEL, N_LEVELS };

#define MOST_THREADS 256

/* The data under a lock: plain, for all lanes of a group. */
struct tally {
	uint64_t sections; /* counted by the first lane of each group */
	uint64_t by_rank[MOST_THREADS];
	uint32_t wrong, gave_up;
	/* counted by atomics */
	unsigned long long groups, lanes;
};

__device__ static uint32_t part_lanes(void)
{
	uint32_t part = 0;

	for (uint32_t i = threadIdx.x % 32 % 3; i < 32; i += 3)
		part |= 1u << i;
	return part & whole_warp();
}

__device__ static void meet(uint32_t mask, int block)
{
	if (block)
		cua_port_sync_block();
	else if (mask)
		cua_port_sync_warp(mask);
}

__device__ static void section(struct tally *t, uint32_t rank, uint32_t mask, int block)
{
	uint64_t before = CUA_READ(t->sections), own = CUA_READ(t->by_rank[rank]);

	meet(mask, block);
	if (own > before)
		atomicAdd(&t->wrong, 1u);
	CUA_WRITE(t->by_rank[rank], own + 1);
	if (rank == 0) {
		CUA_WRITE(t->sections, before + 1);
		atomicAdd(&t->groups, 1ull);
	}
	atomicAdd(&t->lanes, 1ull);
}

__device__ static void work(struct group_locks *l, enum group_kind kind,
			    struct cua_mcslock_node *nodes, struct tally *t, enum level level,
			    enum group_how how, uint32_t each, enum cua_scope scope)
{
	uint32_t mask = 0, rank = 0, leader = threadIdx.x, tries = 0;
	int block;

	if (level == MIXED_LEVEL)
		level = blockIdx.x % 2 ? BLOCK_LEVEL : (enum level)(threadIdx.x / 32 % 3);
	block = level == BLOCK_LEVEL;
	if (level == WARP_LEVEL)
		mask = whole_warp();
	else if (level == PART_LEVEL)
		mask = part_lanes();
	if (block) {
		rank = threadIdx.x;
		leader = 0;
	} else if (mask) {
		rank = cua_port_popc_u32(mask & ((1u << threadIdx.x % 32) - 1));
		leader = threadIdx.x / 32 * 32 + cua_port_ffs_u32(mask) - 1;
	}
	for (uint32_t i = 0; i < each; i++) {
		/* uniform: different answers in a group would hang here */
		while (!group_take(l, kind, &nodes[leader], how, 5000, mask, block, scope)) {
			if (++tries > 10000000) {
				atomicAdd(&t->gave_up, 1u);
				return;
			}
			cua_port_pause(200);
		}
		section(t, rank, mask, block);
		group_give(l, kind, &nodes[leader], mask, block, scope);
	}
}

__global__ static void groups(struct group_locks *l, enum group_kind kind,
			      struct cua_mcslock_node *nodes, struct tally *t, enum level level,
			      enum group_how how, uint32_t each, enum cua_scope scope)
{
	work(l, kind, nodes + (size_t)blockIdx.x * blockDim.x, t, level, how, each, scope);
}

static void check_tally(struct tally *t, enum group_kind kind, int level, int how, uint64_t lanes)
{
	uint64_t sum = 0;

	for (int i = 0; i < MOST_THREADS; i++)
		sum += t->by_rank[i];
	ck_assert_msg(
		t->wrong == 0 && t->gave_up == 0 && t->lanes == lanes && sum == lanes &&
			t->sections == t->groups,
		"lock %d, level %d, way %d: %u wrong, %u gave up, %llu lanes of %llu, %llu by rank, "
		"%llu sections of %llu",
		(int)kind, level, how, t->wrong, t->gave_up, t->lanes, (unsigned long long)lanes,
		(unsigned long long)sum, (unsigned long long)t->sections, t->groups);
	memset(t, 0, sizeof(*t));
}

static void run_groups(enum group_kind kind, enum level level, enum group_how how, unsigned blocks,
		       unsigned threads, uint32_t each, enum cua_scope scope)
{
	struct group_locks *l = (struct group_locks *)managed(sizeof(*l));
	struct tally *t = (struct tally *)managed(sizeof(*t));
	struct cua_mcslock_node *nodes;

	group_init(l);
	nodes = (struct cua_mcslock_node *)managed((size_t)blocks * threads * sizeof(*nodes));
	groups<<<blocks, threads>>>(l, kind, nodes, t, level, how, each, scope);
	finish_kernel();
	check_tally(t, kind, level, how, (uint64_t)blocks * threads * each);
	ck_assert(!group_locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(t));
	ck_assert_cuda(cudaFree(nodes));
}

START_TEST(exclusion)
{
	enum group_kind kind = (enum group_kind)_i;
	unsigned blocks = test_quick() ? 4 : 60;

	if (kind == GROUP_READ)
		return;
	for (int level = 0; level < N_LEVELS; level++)
		for (int how = 0; how < GROUP_HOWS; how++) {
			run_groups(kind, (enum level)level, (enum group_how)how, 1, 1, 20,
				   CUA_SCOPE_DEVICE);
			run_groups(kind, (enum level)level, (enum group_how)how, 2, 45, 6,
				   CUA_SCOPE_DEVICE);
			run_groups(kind, (enum level)level, (enum group_how)how, blocks, 128, 2,
				   CUA_SCOPE_DEVICE);
		}
	run_groups(kind, MIXED_LEVEL, GROUP_LOCK, blocks, 128, 1, CUA_SCOPE_SYSTEM);
}
END_TEST

START_TEST(more_blocks_than_fit)
{
	unsigned blocks = processors() * (test_quick() ? 33 : 80);

	if (_i == GROUP_READ)
		return;
	run_groups((enum group_kind)_i, BLOCK_LEVEL, GROUP_LOCK, blocks, 64, 1, CUA_SCOPE_DEVICE);
	run_groups((enum group_kind)_i, WARP_LEVEL, GROUP_LOCK, blocks, 32, 1, CUA_SCOPE_DEVICE);
}
END_TEST

/* Lock, nodes and data in shared memory, at block scope. */
__global__ static void in_block(enum group_kind kind, enum group_how how, struct tally *tallies,
				uint32_t each)
{
	__shared__ struct group_locks l;
	__shared__ struct cua_mcslock_node nodes[MOST_THREADS];
	__shared__ struct tally tally;

	if (threadIdx.x == 0) {
		group_init(&l);
		memset(&tally, 0, sizeof(tally));
	}
	__syncthreads();
	work(&l, kind, nodes, &tally, WARP_LEVEL, how, each, CUA_SCOPE_BLOCK);
	work(&l, kind, nodes, &tally, PART_LEVEL, how, each, CUA_SCOPE_BLOCK);
	__syncthreads();
	work(&l, kind, nodes, &tally, BLOCK_LEVEL, how, each, CUA_SCOPE_BLOCK);
	__syncthreads();
	if (threadIdx.x == 0)
		tallies[blockIdx.x] = tally;
}

START_TEST(block_scope)
{
	static const unsigned sizes[] = {1, 33, 250};
	unsigned blocks = test_quick() ? 4 : 100;
	struct tally *tallies;

	if (_i == GROUP_READ)
		return;
	if (test_under("racecheck")) {
		printf("block_scope: skipped, the tool takes a lock in shared memory for a race\n");
		return;
	}
	tallies = (struct tally *)managed(blocks * sizeof(*tallies));
	for (int how = 0; how < GROUP_HOWS; how++)
		for (int i = 0; i < 3; i++) {
			in_block<<<blocks, sizes[i]>>>((enum group_kind)_i, (enum group_how)how,
						       tallies, 2);
			finish_kernel();
			for (unsigned b = 0; b < blocks; b++)
				check_tally(&tallies[b], (enum group_kind)_i, -1, how,
					    (uint64_t)sizes[i] * 6);
		}
	ck_assert_cuda(cudaFree(tallies));
}
END_TEST

/*
 * Sections of a lane, its block and its warp on the same lock. No call waits for lanes that have
 * not released an earlier section.
 */
__global__ static void in_turn(struct cua_spinlock *l, uint64_t *count, uint32_t each)
{
	uint32_t mask = whole_warp();

	for (uint32_t i = 0; i < each; i++) {
		CUA_WITH_LOCK (l)
			CUA_WRITE(*count, CUA_READ(*count) + 1);
		cua_spinlock_lock_block(l);
		if (threadIdx.x == 0)
			CUA_WRITE(*count, CUA_READ(*count) + 1);
		cua_spinlock_unlock_block(l);
		cua_spinlock_lock(l);
		CUA_WRITE(*count, CUA_READ(*count) + 1);
		cua_spinlock_unlock(l);
		cua_spinlock_lock_warp(l, mask);
		if (threadIdx.x % 32 == 0)
			CUA_WRITE(*count, CUA_READ(*count) + 1);
		cua_spinlock_unlock_warp(l, mask);
	}
}

START_TEST(levels_in_turn)
{
	unsigned blocks = test_quick() ? 3 : 30;
	struct cua_spinlock *l = (struct cua_spinlock *)managed(sizeof(*l));
	uint64_t *count = (uint64_t *)managed(sizeof(*count));

	in_turn<<<blocks, 70>>>(l, count, 3);
	finish_kernel();
	ck_assert_uint_eq(*count, (uint64_t)blocks * 3 * (70 + 1 + 70 + 3));
	ck_assert_uint_eq(l->word, 0);
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(count));
}
END_TEST

/*
 * ---- groups that write under a seqlock, a word for each lane; readers see all of a write or
 * nothing ----
 */

__global__ static void snapshots(struct cua_seqlock *l, uint32_t *data, uint32_t each,
				 unsigned long long *torn)
{
	uint32_t out[64];

	if (blockIdx.x % 4 == 0) {
		for (uint32_t i = 0; i < each; i++) {
			uint32_t v;

			cua_seqlock_lock_block(l);
			v = cua_seqlock_load_b32(&data[threadIdx.x]);
			cua_seqlock_store_b32(&data[threadIdx.x], v + 1);
			cua_seqlock_unlock_block(l);
		}
		return;
	}
	if (blockIdx.x % 4 == 1) {
		for (uint32_t i = 0; i < each; i++) {
			uint32_t lane = threadIdx.x % 32, v;

			cua_seqlock_lock_warp(l, 0xffffffffu);
			v = cua_seqlock_load_b32(&data[lane]);
			cua_seqlock_store_b32(&data[lane], v + 1);
			cua_seqlock_store_b32(&data[lane + 32], v + 1);
			cua_seqlock_unlock_warp(l, 0xffffffffu);
		}
		return;
	}
	for (uint32_t i = 0; i < each; i++) {
		cua_seqlock_read(l, data, 64, out);
		for (int k = 1; k < 64; k++)
			if (out[k] != out[0])
				atomicAdd(torn, 1ull);
	}
}

START_TEST(whole_snapshots)
{
	unsigned quads = test_quick() ? 2 : 16, each = test_quick() ? 20 : 100;
	struct cua_seqlock *l = (struct cua_seqlock *)managed(sizeof(*l));
	uint32_t *data = (uint32_t *)managed(64 * sizeof(*data));
	unsigned long long *torn = (unsigned long long *)managed(sizeof(*torn));

	snapshots<<<quads * 4, 64>>>(l, data, each, torn);
	finish_kernel();
	ck_assert_uint_eq(*torn, 0);
	/* a section for each block and for each warp */
	for (int k = 0; k < 64; k++)
		ck_assert_uint_eq(data[k], quads * each * 3);
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(data));
	ck_assert_cuda(cudaFree(torn));
}
END_TEST

/* ---- timeouts: the first block holds the lock until all other groups have timed out ---- */

__global__ static void give_up(struct group_locks *l, enum group_kind kind,
			       struct cua_mcslock_node *nodes, uint32_t *held, uint32_t *gave_up,
			       uint32_t *wrong)
{
	struct cua_mcslock_node *node = &nodes[blockIdx.x * 2];
	uint64_t start = cua_port_clock_ns();

	if (blockIdx.x == 0) {
		if (!group_take(l, kind, node, GROUP_LOCK_FOR, 0, 0, 1, CUA_SCOPE_DEVICE))
			atomicAdd(wrong, 1u);
		if (threadIdx.x == 0) {
			cua_port_store_b32(held, 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
					   CUA_SPACE_GENERIC);
			while (cua_port_load_b32(gave_up, CUA_RELAXED, CUA_SCOPE_DEVICE,
						 CUA_SPACE_GENERIC) !=
				       (gridDim.x - 1) * blockDim.x &&
			       cua_port_clock_ns() - start < 20000000000ull)
				cua_port_pause(500);
		}
		group_give(l, kind, node, 0, 1, CUA_SCOPE_DEVICE);
		return;
	}
	while (!cua_port_load_b32(held, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC) &&
	       cua_port_clock_ns() - start < 20000000000ull)
		cua_port_pause(100);
	__syncthreads();
	start = cua_port_clock_ns();
	if (blockIdx.x % 2) {
		if (group_take(l, kind, node, GROUP_LOCK_FOR, 20000, 0, 1, CUA_SCOPE_DEVICE) ||
		    cua_port_clock_ns() - start < 20000 ||
		    group_take(l, kind, node, GROUP_TRYLOCK, 0, 0, 1, CUA_SCOPE_DEVICE))
			atomicAdd(wrong, 1u);
	} else {
		uint32_t mask = whole_warp();

		node += threadIdx.x / 32;
		if (group_take(l, kind, node, GROUP_LOCK_FOR, 20000, mask, 0, CUA_SCOPE_DEVICE) ||
		    group_take(l, kind, node, GROUP_TRYLOCK, 0, mask, 0, CUA_SCOPE_DEVICE))
			atomicAdd(wrong, 1u);
	}
	atomicAdd(gave_up, 1u);
}

START_TEST(timeouts)
{
	struct group_locks *l;
	uint32_t *words;
	struct cua_mcslock_node *nodes;

	if (_i == GROUP_READ)
		return;
	l = (struct group_locks *)managed(sizeof(*l));
	words = (uint32_t *)managed(3 * sizeof(*words));
	nodes = (struct cua_mcslock_node *)managed(2 * 8 * sizeof(*nodes));
	group_init(l);
	give_up<<<8, 64>>>(l, (enum group_kind)_i, nodes, &words[0], &words[1], &words[2]);
	finish_kernel();
	ck_assert_uint_eq(words[2], 0);
	ck_assert_uint_eq(words[1], 7 * 64);
	ck_assert(!group_locked(l));
	ck_assert_cuda(cudaFree(l));
	ck_assert_cuda(cudaFree(words));
	ck_assert_cuda(cudaFree(nodes));
}
END_TEST

/* ---- a lock shared by host and device ---- */

struct shared {
	struct group_locks l;
	uint64_t count;
	uint32_t started; /* number of running blocks */
	struct cua_mcslock_node nodes[64];
};

__global__ static void device_side(struct shared *s, enum group_kind kind, uint32_t each)
{
	uint32_t node = global_id();

	cua_port_add_u32(&s->started, 1, CUA_RELAXED, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
	for (uint32_t i = 0; i < each; i++) {
		group_take(&s->l, kind, &s->nodes[node], GROUP_LOCK, 0, 0, 0, CUA_SCOPE_SYSTEM);
		CUA_WRITE(s->count, CUA_READ(s->count) + 1);
		group_give(&s->l, kind, &s->nodes[node], 0, 0, CUA_SCOPE_SYSTEM);
	}
}

struct host_side {
	struct shared *s;
	enum group_kind kind;
	uint32_t each;
	unsigned id;
};

static void *host_main(void *arg)
{
	const struct host_side *h = (const struct host_side *)arg;
	struct shared *s = h->s;

	while (!cua_port_load_b32(&s->started, CUA_RELAXED, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC))
		cua_port_pause(1000);
	for (uint32_t i = 0; i < h->each; i++) {
		group_take(&s->l, h->kind, &s->nodes[60 + h->id], GROUP_LOCK, 0, 0, 0,
			   CUA_SCOPE_SYSTEM);
		CUA_WRITE(s->count, CUA_READ(s->count) + 1);
		group_give(&s->l, h->kind, &s->nodes[60 + h->id], 0, 0, CUA_SCOPE_SYSTEM);
	}
	return NULL;
}

/* Without hardware for such memory the call returns an error and has no effect. */
START_TEST(host_and_device)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	int supported = attribute(cudaDevAttrHostNativeAtomicSupported) &&
			attribute(cudaDevAttrConcurrentManagedAccess);
	uint32_t each = test_quick() ? 50 : 2000;
	struct host_side host[2];
	struct shared *s;
	pthread_t threads[2];
	void *p = &ctx;

	if (!supported) {
		printf("host_and_device: this device and host have no atomics in common\n");
		ck_assert_status(cua_alloc_system(ctx, 1, sizeof(*s), &p), CUA_ERROR_UNSUPPORTED);
		ck_assert_ptr_eq(p, &ctx);
		ck_assert_int_eq(cua_context_cuda_error(ctx), 0);
		ck_assert_cuda(cudaGetLastError());
		cua_context_destroy(ctx);
		return;
	}
	for (int kind = 0; kind < GROUP_KINDS; kind++) {
		if (kind == GROUP_READ)
			continue;
		ck_assert_cua(cua_alloc_system(ctx, 1, sizeof(*s), &p));
		s = (struct shared *)p;
		group_init(&s->l);
		device_side<<<4, 8>>>(s, (enum group_kind)kind, each);
		ck_assert_cuda(cudaGetLastError());
		for (unsigned i = 0; i < 2; i++) {
			host[i].s = s;
			host[i].kind = (enum group_kind)kind;
			host[i].each = each * 10;
			host[i].id = i;
			ck_assert_int_eq(pthread_create(&threads[i], NULL, host_main, &host[i]), 0);
		}
		for (unsigned i = 0; i < 2; i++)
			ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		finish_kernel();
		ck_assert_uint_eq(s->count, (uint64_t)each * (32 + 20));
		ck_assert(!group_locked(&s->l));
		ck_assert_cua(cua_free(ctx, p));
	}
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(system_memory_in_capture)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	cudaStream_t stream;
	cudaGraph_t graph;
	void *p = &ctx;

	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	ck_assert_status(cua_alloc_system(ctx, 1, 4, &p), CUA_ERROR_CAPTURE);
	ck_assert_status(cua_alloc_zero(ctx, 1, 4, &p), CUA_ERROR_CAPTURE);
	ck_assert_ptr_eq(p, &ctx);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphDestroy(graph));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("locks of warps and blocks");
	TCase *kernels = tcase_create("kernels");

	tcase_set_timeout(kernels, 120);
	tcase_add_loop_test(kernels, exclusion, 0, GROUP_KINDS);
	tcase_add_loop_test(kernels, more_blocks_than_fit, 0, GROUP_KINDS);
	tcase_add_loop_test(kernels, block_scope, 0, GROUP_KINDS);
	tcase_add_test(kernels, levels_in_turn);
	tcase_add_test(kernels, whole_snapshots);
	tcase_add_loop_test(kernels, timeouts, 0, GROUP_KINDS);
	tcase_add_test(kernels, host_and_device);
	tcase_add_test(kernels, system_memory_in_capture);
	suite_add_tcase(suite, kernels);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
