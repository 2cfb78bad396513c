/* SPDX-License-Identifier: MIT */
/*
 * Combining in kernels: exact counts, lane order, the arguments that sections see, and other users
 * of the lock.
 */
#include "device.h"

/* The data under a lock. */
struct account {
	uint64_t count;
	int64_t debit; /* debit + credit is 0 outside of a section */
	int64_t credit;
	uint64_t wrong;
};

/* Copies the whole account to registers; the result is the number of earlier sections. */
CUA_DEFINE_COMBINE_FETCH(number, struct account, uint64_t, {
	uint64_t before = state->count;

	if (state->debit + state->credit != 0)
		state->wrong++;
	state->debit -= 3;
	state->credit += 3;
	state->count += argument;
	argument = before;
});
/* Updates the account in place. */
CUA_DEFINE_COMBINE(visit, struct account *, uint32_t, {
	for (uint32_t i = 0; i < argument; i++) {
		(*state)->debit -= 3;
		(*state)->credit += 3;
		(*state)->count++;
	}
});
CUA_DEFINE_COMBINE(add, uint64_t, uint64_t, *state += argument);

static void check_accounts(const struct account *accounts, const unsigned long long *expected,
			   const struct cua_spinlock *locks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_uint_eq(accounts[i].wrong, 0);
		ck_assert_uint_eq(accounts[i].count, expected[i]);
		ck_assert(accounts[i].debit == -3 * (int64_t)expected[i]);
		ck_assert(accounts[i].credit == 3 * (int64_t)expected[i]);
		ck_assert_int_eq(cua_spinlock_locked(&locks[i]), 0);
	}
}

/* ---- a warp ---- */

/*
 * Each lane selects a lock, and may also not take part. `errors` counts numbers that do not follow
 * the number of the previous lane with the same lock.
 */
__global__ static void warps(struct cua_spinlock *locks, struct account *accounts, uint32_t n_locks,
			     uint32_t each, unsigned long long *expected, unsigned long long *sum,
			     unsigned long long *errors)
{
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, warp = whole_warp();

	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(id * 31 + i + 1), k = random % n_locks, mask, group, before;
		uint64_t got, got_before;
		int comes = random >> 28 != 0;

		mask = cua_port_ballot(warp, comes);
		if (comes) {
			if (random >> 28 == 1)
				cua_port_pause(random & 1023);
			atomicAdd(&expected[k], 1ull);
			got = number_warp(&locks[k], &accounts[k], 1, mask);
			atomicAdd(&sum[k], (unsigned long long)got);
			group = cua_port_match_any_u32(mask, k);
			before = group & ((1u << cua_port_lane()) - 1);
			got_before = cua_port_shuffle_u64(
				group, got,
				before ? 31u - (uint32_t)__clz((int)before) : cua_port_lane());
			if (before && got != got_before + 1)
				atomicAdd(errors, 1ull);
		}
	}
}

static void run_warps(uint32_t n_locks, unsigned blocks, unsigned threads, uint32_t each)
{
	struct cua_spinlock *locks = (struct cua_spinlock *)managed(n_locks * sizeof(*locks));
	struct account *accounts = (struct account *)managed(n_locks * sizeof(*accounts));
	unsigned long long *expected = (unsigned long long *)managed(n_locks * sizeof(*expected));
	unsigned long long *sum = (unsigned long long *)managed(n_locks * sizeof(*sum));
	unsigned long long *errors = (unsigned long long *)managed(sizeof(*errors));

	warps<<<blocks, threads>>>(locks, accounts, n_locks, each, expected, sum, errors);
	finish_kernel();
	check_accounts(accounts, expected, locks, n_locks);
	ck_assert_uint_eq(*errors, 0);
	/* every number from 0 on was handed out once */
	for (uint32_t i = 0; i < n_locks; i++)
		ck_assert_uint_eq(sum[i], expected[i] ? expected[i] * (expected[i] - 1) / 2 : 0);
	ck_assert_cuda(cudaFree(locks));
	ck_assert_cuda(cudaFree(accounts));
	ck_assert_cuda(cudaFree(expected));
	ck_assert_cuda(cudaFree(sum));
	ck_assert_cuda(cudaFree(errors));
}

START_TEST(warp)
{
	static const uint32_t n_locks[] = {1, 2, 5, 1021};
	unsigned blocks = test_quick() ? 4 : 264;

	for (int i = 0; i < 4; i++) {
		run_warps(n_locks[i], 1, 1, 20);
		run_warps(n_locks[i], 1, 32, 10);
		run_warps(n_locks[i], 3, 45, 10);
		run_warps(n_locks[i], blocks, 256, 4);
	}
	/* more blocks than fit */
	run_warps(7, test_quick() ? 200 : 20000, 33, 1);
}
END_TEST

/* ---- a block ---- */

/* n threads of the block have a section; the numbers of a block are consecutive in thread order. */
__global__ static void __launch_bounds__(1024)
	blocks_number(struct cua_spinlock *lock, struct account *account, uint32_t n, uint32_t each,
		      unsigned long long *sum, unsigned long long *errors)
{
	extern __shared__ uint64_t scratch[];
	__shared__ uint64_t first;
	uint32_t thread = cua_port_thread();

	for (uint32_t i = 0; i < each; i++) {
		uint64_t got;

		if (n == cua_port_block_size())
			got = number_block(lock, account, 1, scratch);
		else
			got = number_block_scope(lock, account, 1, n, scratch, CUA_SCOPE_DEVICE);
		if (thread == 0)
			first = got;
		__syncthreads();
		if (thread < n) {
			atomicAdd(sum, (unsigned long long)got);
			if (got != first + thread)
				atomicAdd(errors, 1ull);
		} else if (got != 1) {
			atomicAdd(errors, 1ull);
		}
		__syncthreads();
	}
}

START_TEST(block)
{
	static const dim3 sizes[] = {1, 2, 32, 33, 250, dim3(5, 7, 9), 1024};
	struct cua_spinlock *lock = (struct cua_spinlock *)managed(sizeof(*lock));
	struct account *account = (struct account *)managed(sizeof(*account));
	unsigned long long *sum = (unsigned long long *)managed(2 * sizeof(*sum));
	unsigned blocks = test_quick() ? 4 : 300;

	for (const dim3 &size : sizes) {
		unsigned threads = size.x * size.y * size.z;

		for (unsigned n : {threads, threads / 2, threads - 1}) {
			unsigned long long expected = (unsigned long long)blocks * 3 * n;

			blocks_number<<<blocks, size, threads * 8>>>(lock, account, n, 3, sum,
								     sum + 1);
			finish_kernel();
			check_accounts(account, &expected, lock, 1);
			ck_assert_uint_eq(sum[1], 0);
			ck_assert_uint_eq(sum[0], expected ? expected * (expected - 1) / 2 : 0);
			ck_assert_cuda(cudaMemset(account, 0, sizeof(*account)));
			ck_assert_cuda(cudaMemset(sum, 0, 2 * sizeof(*sum)));
			ck_assert_cuda(cudaDeviceSynchronize());
		}
	}
	ck_assert_cuda(cudaFree(lock));
	ck_assert_cuda(cudaFree(account));
	ck_assert_cuda(cudaFree(sum));
}
END_TEST

__global__ static void many_adds(struct cua_spinlock *lock, uint64_t *counter, uint32_t each)
{
	__shared__ uint64_t scratch[256];

	for (uint32_t i = 0; i < each; i++)
		add_block(lock, counter, 1, scratch);
}

/* Of 10^8 updates none is lost. */
START_TEST(hundred_million)
{
	struct cua_spinlock *lock = (struct cua_spinlock *)managed(sizeof(*lock));
	uint64_t *counter = (uint64_t *)managed(sizeof(*counter));
	uint32_t each = test_quick() ? 10 : 3052;

	many_adds<<<128, 256>>>(lock, counter, each);
	finish_kernel();
	ck_assert_uint_eq(*counter, (uint64_t)128 * 256 * each);
	ck_assert_cuda(cudaFree(lock));
	ck_assert_cuda(cudaFree(counter));
}
END_TEST

/* ---- turns, and every form at once ---- */

__global__ static void in_turn(struct cua_spinlock *locks, struct account *accounts,
			       uint32_t n_locks, uint32_t each, unsigned long long *expected)
{
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, warp = whole_warp();

	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(id * 17 + i + 1), k = random % n_locks, mask;
		int comes = random >> 29 != 0;

		mask = cua_port_ballot(warp, comes);
		if (!comes)
			continue;
		atomicAdd(&expected[k], 1ull);
		CUA_WITH_LOCK_WARP (&locks[k], mask) {
			work(&accounts[k]);
			if (random & 1)
				break;
			if (random & 2)
				continue;
			(void)cua_spinlock_locked(&locks[k]);
		}
	}
}

/* Blocks that combine, warps that combine, warps in turn and lanes alone, all on the same lock. */
__global__ static void every_way(struct cua_spinlock *lock, struct account *account, uint32_t each)
{
	__shared__ uint64_t numbers[256];
	__shared__ uint32_t visits[256];
	struct account *mine = account;

	for (uint32_t i = 0; i < each; i++) {
		uint32_t way = mix(blockIdx.x * 7 + i) % 7;

		if (way == 0) {
			number_block(lock, account, 1, numbers);
		} else if (way == 1) {
			visit_block(lock, &mine, 1, visits);
		} else if (threadIdx.x / 32 % 2) {
			visit_warp(lock, &mine, 1, whole_warp());
		} else if (way < 4) {
			number_warp(lock, account, 1, whole_warp());
		} else if (way < 6) {
			CUA_WITH_LOCK_WARP (lock, whole_warp())
				work(account);
		} else {
			CUA_WITH_LOCK (lock)
				work(account);
		}
	}
}

START_TEST(turns)
{
	static const uint32_t n_locks[] = {1, 3, 97};
	unsigned blocks = test_quick() ? 4 : 132;
	struct cua_spinlock *locks = (struct cua_spinlock *)managed(97 * sizeof(*locks));
	struct account *accounts = (struct account *)managed(97 * sizeof(*accounts));
	unsigned long long *expected = (unsigned long long *)managed(97 * sizeof(*expected));
	unsigned long long total;

	for (int i = 0; i < 3; i++) {
		in_turn<<<blocks, 200>>>(locks, accounts, n_locks[i], 4, expected);
		finish_kernel();
		check_accounts(accounts, expected, locks, 97);
	}
	ck_assert_cuda(cudaMemset(accounts, 0, sizeof(*accounts)));
	ck_assert_cuda(cudaDeviceSynchronize());
	every_way<<<blocks, 256>>>(locks, accounts, 8);
	finish_kernel();
	total = (unsigned long long)blocks * 256 * 8;
	check_accounts(accounts, &total, locks, 1);
	ck_assert_cuda(cudaFree(locks));
	ck_assert_cuda(cudaFree(accounts));
	ck_assert_cuda(cudaFree(expected));
}
END_TEST

/* ---- block scope ---- */

__global__ static void block_scope_kernel(struct account *accounts)
{
	extern __shared__ uint64_t scratch[];
	__shared__ struct cua_spinlock lock;
	__shared__ struct account account;

	if (threadIdx.x == 0) {
		cua_spinlock_init(&lock);
		memset(&account, 0, sizeof(account));
	}
	__syncthreads();
	number_warp_scope(&lock, &account, 1, whole_warp(), CUA_SCOPE_BLOCK);
	number_block_scope(&lock, &account, 1, blockDim.x, scratch, CUA_SCOPE_BLOCK);
	CUA_WITH_LOCK_WARP_SCOPE (&lock, whole_warp(), CUA_SCOPE_BLOCK)
		work(&account);
	number_block_scope(&lock, &account, 1, blockDim.x, scratch, CUA_SCOPE_BLOCK);
	__syncthreads();
	if (threadIdx.x == 0)
		accounts[blockIdx.x] = account;
}

START_TEST(block_scope)
{
	static const unsigned sizes[] = {1, 31, 64, 250};
	unsigned blocks = test_quick() ? 4 : 300;
	struct account *accounts;

	if (test_under("racecheck")) {
		printf("block_scope: skipped, the tool takes a lock in shared memory for a race\n");
		return;
	}
	accounts = (struct account *)managed(blocks * sizeof(*accounts));
	for (int i = 0; i < 4; i++) {
		block_scope_kernel<<<blocks, sizes[i], sizes[i] * 8>>>(accounts);
		finish_kernel();
		for (unsigned k = 0; k < blocks; k++) {
			ck_assert_uint_eq(accounts[k].wrong, 0);
			ck_assert_uint_eq(accounts[k].count, 4 * sizes[i]);
		}
	}
	ck_assert_cuda(cudaFree(accounts));
}
END_TEST

/* ---- the memory that sections see ---- */

struct letter {
	uint64_t *letters, *replies;
	uint64_t at, text;
};

/*
 * Reads a word that the lane wrote before the call, and writes a word that the lane reads after it.
 */
CUA_DEFINE_COMBINE(answer, uint64_t, struct letter, {
	*state += CUA_READ(argument.letters[argument.at]) != argument.text;
	CUA_WRITE(argument.replies[argument.at], argument.text + 1);
});

__global__ static void messages(struct cua_spinlock *locks, uint64_t *wrong, uint64_t *letters,
				uint64_t *replies, uint32_t each, unsigned long long *errors)
{
	__shared__ struct letter scratch[128];
	struct letter l;

	l.letters = letters;
	l.replies = replies;
	l.at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	for (uint32_t i = 0; i < each; i++) {
		uint32_t k = (threadIdx.x + i) % 3;

		l.text = l.at * 1000 + i;
		CUA_WRITE(letters[l.at], l.text);
		if (mix(blockIdx.x * 99 + i) % 2)
			answer_block(&locks[3], &wrong[3], l, scratch);
		else
			answer_warp(&locks[k], &wrong[k], l, whole_warp());
		if (CUA_READ(replies[l.at]) != l.text + 1)
			atomicAdd(errors, 1ull);
	}
}

START_TEST(visibility)
{
	unsigned blocks = test_quick() ? 4 : 132;
	struct cua_spinlock *locks = (struct cua_spinlock *)managed(4 * sizeof(*locks));
	uint64_t *wrong = (uint64_t *)managed(4 * sizeof(*wrong));
	uint64_t *letters = (uint64_t *)managed(2 * blocks * 128 * sizeof(*letters));
	unsigned long long *errors = (unsigned long long *)managed(sizeof(*errors));

	messages<<<blocks, 128>>>(locks, wrong, letters, letters + blocks * 128, 20, errors);
	finish_kernel();
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(wrong[i], 0);
	ck_assert_uint_eq(*errors, 0);
	ck_assert_cuda(cudaFree(locks));
	ck_assert_cuda(cudaFree(wrong));
	ck_assert_cuda(cudaFree(letters));
	ck_assert_cuda(cudaFree(errors));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("combine in kernels");
	TCase *kernels = tcase_create("kernels");

	tcase_set_timeout(kernels, 120);
	tcase_add_test(kernels, warp);
	tcase_add_test(kernels, block);
	tcase_add_test(kernels, hundred_million);
	tcase_add_test(kernels, turns);
	tcase_add_test(kernels, block_scope);
	tcase_add_test(kernels, visibility);
	suite_add_tcase(suite, kernels);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
