/* SPDX-License-Identifier: MIT */
/* The spinlock in kernels: every lane of every warp, in any divergence. */
#include "device.h"

/* The data under a lock: plain, in three cache lines. */
struct account {
	uint64_t count;
	int64_t debit; /* debit + credit is 0 outside of a section */
	uint8_t gap[112];
	int64_t credit;
	uint32_t wrong;
};

enum how { WITH_LOCK, WITH_LOCK_LEFT, LOCK_UNLOCK, TRYLOCK, DIVERGED, N_HOW };

__device__ static void section(enum how how, struct cua_spinlock *l, struct account *a,
			       enum cua_scope scope, uint32_t random)
{
	if (how == DIVERGED)
		how = (enum how)(random >> 8 & 3);
	if (how == WITH_LOCK) {
		CUA_WITH_LOCK_SCOPE (l, scope) {
			work(a);
		}
	} else if (how == WITH_LOCK_LEFT) {
		CUA_WITH_LOCK_SCOPE (l, scope) {
			work(a);
			if (random & 1)
				break;
			if (random & 2)
				continue;
			(void)cua_spinlock_locked_scope(l, scope);
		}
	} else if (how == LOCK_UNLOCK) {
		cua_spinlock_lock_scope(l, scope);
		work(a);
		cua_spinlock_unlock_scope(l, scope);
	} else {
		for (int done = 0; !done;) {
			if (cua_spinlock_trylock_scope(l, scope)) {
				work(a);
				cua_spinlock_unlock_scope(l, scope);
				done = 1;
			} else {
				cua_port_pause(200);
			}
		}
	}
}

/*
 * Each lane runs `each` sections on locks that it selects; expected[i] counts the sections of lock
 * i.
 */
__global__ static void every_lane(enum how how, struct cua_spinlock *locks,
				  struct account *accounts, uint32_t n_locks, uint32_t each,
				  enum cua_scope scope, unsigned long long *expected)
{
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;

	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(id * 31 + i + 1), k = random % n_locks;

		/* some lanes skip this round, some are delayed */
		if (random >> 28 == 0)
			continue;
		if (random >> 28 == 1)
			cua_port_pause(random & 1023);
		atomicAdd(&expected[k], 1ull);
		section(how, &locks[k], &accounts[k], scope, random);
	}
}

static uint64_t check_accounts(const struct account *accounts, const unsigned long long *expected,
			       const struct cua_spinlock *locks, uint32_t n)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < n; i++) {
		ck_assert_msg(accounts[i].wrong == 0, "lock %u: %u sections saw another one", i,
			      accounts[i].wrong);
		ck_assert_msg(accounts[i].count == expected[i], "lock %u: %llu sections, not %llu",
			      i, (unsigned long long)accounts[i].count, expected[i]);
		ck_assert(accounts[i].debit == -3 * (int64_t)expected[i]);
		ck_assert(accounts[i].credit == 3 * (int64_t)expected[i]);
		ck_assert(cua_spinlock_locked(&locks[i]) == 0);
		total += expected[i];
	}
	return total;
}

/* A run of every_lane on locks that the library created. */
static void run_every_lane(struct cua_context *ctx, enum how how, uint32_t n_locks, unsigned blocks,
			   unsigned threads, uint32_t each, enum cua_scope scope)
{
	struct cua_spinlock *locks, *after;
	unsigned long long *expected;
	struct account *accounts;

	accounts = (struct account *)managed(n_locks * sizeof(*accounts));
	expected = (unsigned long long *)managed(n_locks * sizeof(*expected));
	ck_assert_cua(cua_spinlock_array_create(ctx, n_locks, &locks));
	every_lane<<<blocks, threads>>>(how, locks, accounts, n_locks, each, scope, expected);
	ck_assert_cuda(cudaGetLastError());
	ck_assert_cuda(cudaDeviceSynchronize());
	after = (struct cua_spinlock *)test_malloc(n_locks * sizeof(*after));
	test_download(ctx, after, locks, n_locks * sizeof(*after));
	ck_assert(check_accounts(accounts, expected, after, n_locks) > 0);
	free(after);
	ck_assert_cua(cua_spinlock_array_destroy(ctx, locks));
	ck_assert_cuda(cudaFree(accounts));
	ck_assert_cuda(cudaFree(expected));
}

/* The same lock for all lanes: a few thousand sections, which run in sequence. */
START_TEST(one_lock)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	unsigned blocks = test_quick() ? 4 : 40;

	for (int how = 0; how < N_HOW; how++) {
		run_every_lane(ctx, (enum how)how, 1, 1, 1, 20, CUA_SCOPE_DEVICE);
		run_every_lane(ctx, (enum how)how, 1, 1, 32, 4, CUA_SCOPE_DEVICE);
		run_every_lane(ctx, (enum how)how, 1, 3, 45, 4, CUA_SCOPE_DEVICE);
		run_every_lane(ctx, (enum how)how, 1, blocks, 128, 2, CUA_SCOPE_DEVICE);
	}
	run_every_lane(ctx, DIVERGED, 1, blocks, 128, 1, CUA_SCOPE_SYSTEM);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(many_locks)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	unsigned blocks = test_quick() ? 8 : 128;

	for (int how = 0; how < N_HOW; how++) {
		run_every_lane(ctx, (enum how)how, 1021, blocks, 256, 4, CUA_SCOPE_DEVICE);
		run_every_lane(ctx, (enum how)how, 5, test_quick() ? 2 : 32, 96, 2,
			       CUA_SCOPE_DEVICE);
	}
	run_every_lane(ctx, DIVERGED, 1021, blocks, 256, 4, CUA_SCOPE_SYSTEM);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * More blocks than the device holds at once: waiting blocks must not keep out the blocks that they
 * wait for.
 */
START_TEST(more_blocks_than_fit)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	int processors = 0;

	ck_assert_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
	/* at most 32 blocks are resident in a multiprocessor */
	run_every_lane(ctx, DIVERGED, 509, (unsigned)processors * (test_quick() ? 33 : 80), 32, 1,
		       CUA_SCOPE_DEVICE);
	run_every_lane(ctx, WITH_LOCK, 1, (unsigned)processors * (test_quick() ? 33 : 80), 1, 1,
		       CUA_SCOPE_DEVICE);
	cua_context_destroy(ctx);
}
END_TEST

/* A lock in shared memory, at block scope. Each block has an account in global memory. */
__global__ static void block_lock(enum how how, struct account *accounts, uint32_t each)
{
	__shared__ struct cua_spinlock lock;

	if (threadIdx.x == 0)
		cua_spinlock_init(&lock);
	__syncthreads();
	for (uint32_t i = 0; i < each; i++)
		section(how, &lock, &accounts[blockIdx.x], CUA_SCOPE_BLOCK,
			mix(blockIdx.x * 1024 + threadIdx.x + i * 77));
}

/* The same with the data in shared memory too. */
__global__ static void block_lock_and_data(enum how how, struct account *accounts, uint32_t each)
{
	__shared__ struct cua_spinlock lock;
	__shared__ struct account account;

	if (threadIdx.x == 0) {
		cua_spinlock_init(&lock);
		memset(&account, 0, sizeof(account));
	}
	__syncthreads();
	for (uint32_t i = 0; i < each; i++)
		section(how, &lock, &account, CUA_SCOPE_BLOCK,
			mix(blockIdx.x * 1024 + threadIdx.x + i * 77));
	__syncthreads();
	if (threadIdx.x == 0)
		accounts[blockIdx.x] = account;
}

static void check_blocks(struct account *accounts, unsigned blocks, uint64_t expected)
{
	ck_assert_cuda(cudaGetLastError());
	ck_assert_cuda(cudaDeviceSynchronize());
	for (unsigned i = 0; i < blocks; i++) {
		ck_assert_uint_eq(accounts[i].wrong, 0);
		ck_assert_uint_eq(accounts[i].count, expected);
		ck_assert(accounts[i].debit == -3 * (int64_t)expected);
		ck_assert(accounts[i].credit == 3 * (int64_t)expected);
	}
	ck_assert_cuda(cudaMemset(accounts, 0, blocks * sizeof(*accounts)));
	ck_assert_cuda(cudaDeviceSynchronize());
}

START_TEST(block_scope)
{
	static const unsigned sizes[] = {1, 32, 33, 250};
	unsigned blocks = test_quick() ? 4 : 200, n_sizes = test_quick() ? 3 : 4;
	struct account *accounts;

	if (test_under("racecheck")) {
		printf("block_scope: skipped, the tool takes a lock in shared memory for a race\n");
		return;
	}
	accounts = (struct account *)managed(blocks * sizeof(*accounts));
	for (int how = 0; how < N_HOW; how++)
		for (unsigned i = 0; i < n_sizes; i++) {
			block_lock<<<blocks, sizes[i]>>>((enum how)how, accounts, 4);
			check_blocks(accounts, blocks, (uint64_t)sizes[i] * 4);
			block_lock_and_data<<<blocks, sizes[i]>>>((enum how)how, accounts, 4);
			check_blocks(accounts, blocks, (uint64_t)sizes[i] * 4);
		}
	ck_assert_cuda(cudaFree(accounts));
}
END_TEST

/* An outer and an inner lock, always in this order, by lanes of the same warp and of many warps. */
__global__ static void nested(struct cua_spinlock *outer, struct cua_spinlock *inner,
			      struct account *outer_accounts, struct account *inner_accounts,
			      uint32_t n, unsigned long long *outer_expected,
			      unsigned long long *inner_expected)
{
	uint32_t random = mix(blockIdx.x * blockDim.x + threadIdx.x + 1);
	uint32_t a = random % n, b = (random >> 12) % n;

	atomicAdd(&outer_expected[a], 1ull);
	atomicAdd(&inner_expected[b], 1ull);
	CUA_WITH_LOCK (&outer[a]) {
		work(&outer_accounts[a]);
		CUA_WITH_LOCK (&inner[b]) {
			work(&inner_accounts[b]);
			if (random >> 31)
				break;
		}
		if (random >> 30 & 1)
			continue;
	}
}

START_TEST(nested_locks)
{
	const uint32_t n = 13;
	struct cua_spinlock *locks;
	unsigned long long *expected;
	struct account *accounts;
	uint64_t total;
	unsigned blocks = test_quick() ? 4 : 64;

	locks = (struct cua_spinlock *)managed(2 * n * sizeof(*locks));
	accounts = (struct account *)managed(2 * n * sizeof(*accounts));
	expected = (unsigned long long *)managed(2 * n * sizeof(*expected));
	nested<<<blocks, 128>>>(locks, locks + n, accounts, accounts + n, n, expected,
				expected + n);
	ck_assert_cuda(cudaGetLastError());
	ck_assert_cuda(cudaDeviceSynchronize());
	total = check_accounts(accounts, expected, locks, 2 * n);
	ck_assert_uint_eq(total, 2 * 128 * (uint64_t)blocks);
	ck_assert_cuda(cudaFree(locks));
	ck_assert_cuda(cudaFree(accounts));
	ck_assert_cuda(cudaFree(expected));
}
END_TEST

/* A static lock, and trylocks that may fail: the data counts exactly the successes. */
__device__ static struct cua_spinlock static_lock = CUA_SPINLOCK_INIT;
__device__ static struct cua_spinlock lone_lock = CUA_SPINLOCK_INIT;

__global__ static void try_once(struct account *a, unsigned long long *taken, uint32_t *results)
{
	if (threadIdx.x == 0 && blockIdx.x == 0) {
		struct cua_spinlock *l = &lone_lock; /* only this lane uses it */

		results[0] = (uint32_t)cua_spinlock_trylock(l);
		results[1] = (uint32_t)cua_spinlock_trylock(l);
		results[2] = (uint32_t)cua_spinlock_locked(l);
		cua_spinlock_unlock(l);
		results[3] = (uint32_t)cua_spinlock_locked(l);
		cua_spinlock_lock(l);
		results[4] = (uint32_t)cua_spinlock_locked(l);
		cua_spinlock_init(l);
		results[5] = (uint32_t)cua_spinlock_locked(l);
	}
	if (cua_spinlock_trylock(&static_lock)) {
		work(a);
		cua_spinlock_unlock(&static_lock);
		atomicAdd(taken, 1ull);
	}
}

START_TEST(trylock_once)
{
	static const uint32_t wanted[6] = {1, 0, 1, 0, 1, 0};
	unsigned long long *taken;
	struct account *account;
	uint32_t *results;

	account = (struct account *)managed(sizeof(*account));
	taken = (unsigned long long *)managed(sizeof(*taken));
	results = (uint32_t *)managed(sizeof(wanted));
	try_once<<<test_quick() ? 4 : 64, 64>>>(account, taken, results);
	ck_assert_cuda(cudaGetLastError());
	ck_assert_cuda(cudaDeviceSynchronize());
	for (int i = 0; i < 6; i++)
		ck_assert_uint_eq(results[i], wanted[i]);
	ck_assert_uint_ge(*taken, 1);
	ck_assert_uint_eq(account->count, *taken);
	ck_assert_uint_eq(account->wrong, 0);
	ck_assert_cuda(cudaFree(account));
	ck_assert_cuda(cudaFree(taken));
	ck_assert_cuda(cudaFree(results));
}
END_TEST

/* Creation and destruction of an array wait, so a capture refuses them. */
START_TEST(capture)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_spinlock mark, *locks = &mark, *made;
	cudaStream_t stream;
	cudaGraph_t graph;

	ck_assert_cuda(cudaStreamCreate(&stream));
	ck_assert_cua(cua_context_set_stream(ctx, stream));
	ck_assert_cua(cua_spinlock_array_create(ctx, 10, &made));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_status(cua_spinlock_array_create(ctx, 10, &locks), CUA_ERROR_CAPTURE);
	ck_assert(locks == &mark);
	ck_assert_status(cua_spinlock_array_destroy(ctx, made), CUA_ERROR_CAPTURE);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphDestroy(graph));
	ck_assert_cua(cua_spinlock_array_destroy(ctx, made));
	ck_assert_cua(cua_context_set_stream(ctx, NULL));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("spinlock in kernels");
	TCase *kernels = tcase_create("kernels");

	tcase_set_timeout(kernels, 120);
	tcase_add_test(kernels, one_lock);
	tcase_add_test(kernels, many_locks);
	tcase_add_test(kernels, more_blocks_than_fit);
	tcase_add_test(kernels, block_scope);
	tcase_add_test(kernels, nested_locks);
	tcase_add_test(kernels, trylock_once);
	tcase_add_test(kernels, capture);
	suite_add_tcase(suite, kernels);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
