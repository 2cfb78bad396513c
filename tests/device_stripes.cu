/* SPDX-License-Identifier: MIT */
/* Lock stripes and striped atomics in kernels: every lane of every warp, in any divergence. */
#include "device.h"

struct wide {
	uint64_t word[3];
};

CUA_FN struct wide wide_of(uint64_t v)
{
	struct wide w;

	w.word[0] = v;
	w.word[1] = 2 * v;
	w.word[2] = 3 * v;
	return w;
}

CUA_FN int whole(const struct wide *w)
{
	return w->word[1] == 2 * w->word[0] && w->word[2] == 3 * w->word[0];
}

CUA_DEFINE_ATOMIC_STRIPED(wide_add, struct wide, wide_of(old.word[0] + operand.word[0]))
CUA_DEFINE_ATOMIC_STRIPED_TYPE(wide, struct wide)

/* Adds 1 by the operation that `way` selects. */
__device__ static struct wide add_one(struct cua_stripes stripes, struct wide *p, uint32_t way,
				      enum cua_scope scope)
{
	struct wide old = wide_of(0), seen;

	switch (way % 5) {
	case 0:
		return wide_add_explicit(stripes, p, wide_of(1), CUA_RELAXED, scope,
					 CUA_SPACE_GENERIC);
	case 1:
		old = wide_load_explicit(stripes, p, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);
		for (;;) {
			seen = wide_compare_exchange_explicit(stripes, p, old,
							      wide_of(old.word[0] + 1), CUA_ACQ_REL,
							      scope, CUA_SPACE_GENERIC);
			if (seen.word[0] == old.word[0])
				return old;
			old = seen;
		}
	case 2:
		CUA_WITH_STRIPE_SCOPE (&stripes, p, scope) {
			old = CUA_READ(*p);
			CUA_WRITE(*p, wide_of(old.word[0] + 1));
			if (way & 64)
				break;
		}
		return old;
	case 3:
		while (!cua_stripes_lock_for_scope(&stripes, p, 2000, scope))
			cua_port_pause(100);
		break;
	default:
		while (!cua_stripes_trylock_scope(&stripes, p, scope))
			cua_port_pause(200);
	}
	old = CUA_READ(*p);
	CUA_WRITE(*p, wide_of(old.word[0] + 1));
	cua_stripes_unlock_scope(&stripes, p, scope);
	return old;
}

__global__ static void additions(struct cua_stripes stripes, struct wide *objects, uint32_t n,
				 uint32_t each, int way, enum cua_scope scope,
				 unsigned long long *expected, unsigned long long *torn)
{
	uint32_t id = global_id();

	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(id * 31 + i + 1), k = random % n;
		struct wide old;

		if (random >> 28 == 1)
			cua_port_pause(random & 1023);
		old = add_one(stripes, &objects[k], way < 5 ? (uint32_t)way : random >> 8, scope);
		if (!whole(&old))
			atomicAdd(torn, 1ull);
		atomicAdd(&expected[k], 1ull);
	}
}

START_TEST(striped_atomics)
{
	static const size_t n_stripes[] = {1, 3, 64, 4097};
	static const uint32_t n_objects[] = {1, 7, 1000};
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	unsigned blocks = test_quick() ? 4 : 40;
	struct cua_stripes stripes;
	struct wide *objects = (struct wide *)managed(1000 * sizeof(*objects));
	unsigned long long *expected = (unsigned long long *)managed(1001 * sizeof(*expected));

	ck_assert_cua(cua_stripes_create(ctx, n_stripes[_i], &stripes));
	for (int o = 0; o < 3; o++)
		for (int way = 0; way <= 5; way++) {
			memset(objects, 0, 1000 * sizeof(*objects));
			memset(expected, 0, 1001 * sizeof(*expected));
			additions<<<blocks, 96>>>(stripes, objects, n_objects[o], 2, way,
						  o == 1 ? CUA_SCOPE_SYSTEM : CUA_SCOPE_DEVICE,
						  expected, &expected[1000]);
			finish_kernel();
			ck_assert_uint_eq(expected[1000], 0);
			for (uint32_t k = 0; k < n_objects[o]; k++)
				ck_assert_msg(whole(&objects[k]) &&
						      objects[k].word[0] == expected[k],
					      "way %d, object %u: %llu, not %llu", way, k,
					      (unsigned long long)objects[k].word[0], expected[k]);
		}
	ck_assert_cua(cua_stripes_destroy(ctx, &stripes));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaFree(objects));
	ck_assert_cuda(cudaFree(expected));
}
END_TEST

/* Amounts move between accounts, concurrently in both directions. */
__global__ static void moves(struct cua_stripes stripes, int64_t *accounts, uint32_t n,
			     uint32_t each)
{
	uint32_t id = global_id();

	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(id * 13 + i + 1);
		int64_t *p = &accounts[random % n], *q = &accounts[(random >> 12) % n];

		cua_stripes_lock_two(&stripes, p, q);
		CUA_WRITE(*p, CUA_READ(*p) - (random & 255));
		CUA_WRITE(*q, CUA_READ(*q) + (random & 255));
		cua_stripes_unlock_two(&stripes, q, p);
	}
}

START_TEST(two_at_once)
{
	static const size_t n_stripes[] = {1, 2, 5, 256};
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	struct cua_stripes stripes;
	int64_t *accounts = (int64_t *)managed(100 * sizeof(*accounts)), sum;

	ck_assert_cua(cua_stripes_create(ctx, n_stripes[_i], &stripes));
	for (uint32_t n = 2; n <= 100; n *= 7) {
		memset(accounts, 0, 100 * sizeof(*accounts));
		moves<<<test_quick() ? 4 : 40, 96>>>(stripes, accounts, n, 2);
		finish_kernel();
		sum = 0;
		for (uint32_t k = 0; k < 100; k++)
			sum += accounts[k];
		ck_assert(sum == 0);
		ck_assert(accounts[0] != 0 || accounts[1] != 0);
	}
	ck_assert_cua(cua_stripes_destroy(ctx, &stripes));
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaFree(accounts));
}
END_TEST

/* Stripes and objects of a block, in its shared memory. */
__global__ static void in_block(struct wide *out, unsigned long long *wrong, uint32_t each)
{
	__shared__ struct cua_stripe locks[5];
	__shared__ struct wide objects[16];
	struct cua_stripes stripes;

	if (threadIdx.x < 5)
		cua_stripe_init(&locks[threadIdx.x]);
	if (threadIdx.x < 16)
		objects[threadIdx.x] = wide_of(0);
	__syncthreads();
	if (cua_stripes_init(locks, 5, &stripes))
		atomicAdd(wrong, 1ull);
	for (uint32_t i = 0; i < each; i++) {
		uint32_t random = mix(threadIdx.x + i * 1000);
		struct wide old =
			add_one(stripes, &objects[random % 16], random >> 8, CUA_SCOPE_BLOCK);

		if (!whole(&old))
			atomicAdd(wrong, 1ull);
	}
	__syncthreads();
	if (threadIdx.x < 16)
		out[blockIdx.x * 16 + threadIdx.x] = objects[threadIdx.x];
}

START_TEST(block_scope)
{
	const unsigned blocks = 20, threads = 160, each = 4;
	struct wide *out = (struct wide *)managed(blocks * 16 * sizeof(*out));
	unsigned long long *wrong = (unsigned long long *)managed(sizeof(*wrong));

	if (test_under("racecheck")) {
		printf("block_scope: skipped, the tool takes a lock in shared memory for a race\n");
	} else {
		in_block<<<blocks, threads>>>(out, wrong, each);
		finish_kernel();
		ck_assert_uint_eq(*wrong, 0);
		for (unsigned b = 0; b < blocks; b++) {
			uint64_t sum = 0;

			for (int k = 0; k < 16; k++) {
				ck_assert(whole(&out[b * 16 + k]));
				sum += out[b * 16 + k].word[0];
			}
			ck_assert_uint_eq(sum, threads * each);
		}
	}
	ck_assert_cuda(cudaFree(out));
	ck_assert_cuda(cudaFree(wrong));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("stripes in kernels");
	TCase *kernels = tcase_create("kernels");

	tcase_set_timeout(kernels, 120);
	tcase_add_loop_test(kernels, striped_atomics, 0, 4);
	tcase_add_loop_test(kernels, two_at_once, 0, 4);
	tcase_add_test(kernels, block_scope);
	suite_add_tcase(suite, kernels);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
