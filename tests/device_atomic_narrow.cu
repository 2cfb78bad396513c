/* SPDX-License-Identifier: MIT */
/* The narrow atomics in kernels, and inc, dec, nand and div. */
#include "device_atomic.h"

struct narrow {
	uint8_t byte[4];
	uint16_t half[2];
	int8_t last[4];
	uint32_t inc_u32, dec_u32, nand_u32, wrong;
	uint64_t inc_u64, dec_u64;
	float div_f32;
	double div_f64;
};

__global__ static void narrow_meet(struct narrow *m, uint32_t each)
{
	__shared__ uint8_t shared[8];
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;

	if (threadIdx.x < 8)
		shared[threadIdx.x] = 0;
	__syncthreads();
	for (uint32_t i = 0; i < each; i++) {
		cua_atomic_fetch_add_u8(&m->byte[id % 3], 1);
		cua_atomic_sub_u16(&m->half[id % 2], 3);
		cua_atomic_fetch_max_i8(&m->last[3], (int8_t)(uint8_t)(id % 128));
		cua_atomic_min_i8(&m->last[0], (int8_t) - (int)(id % 128));
		if (cua_atomic_load_u8(&m->byte[3]) != 0xa5)
			cua_atomic_add_u32(&m->wrong, 1);
		cua_atomic_add_u8(&shared[threadIdx.x % 8], 1);
		cua_atomic_inc_u32(&m->inc_u32, 1000);
		cua_atomic_fetch_dec_u32(&m->dec_u32, 1000);
		cua_atomic_fetch_inc_u64(&m->inc_u64, 1000);
		cua_atomic_dec_u64(&m->dec_u64, 1000);
	}
	__syncthreads();
	if (threadIdx.x < 8 && shared[threadIdx.x] != (uint8_t)(blockDim.x / 8 * each))
		cua_atomic_add_u32(&m->wrong, 1);
	if (id == 0) {
		cua_atomic_fetch_nand_u32(&m->nand_u32, 0x0ff0);
		cua_atomic_fetch_div_f32(&m->div_f32, 3);
		cua_atomic_fetch_div_f64(&m->div_f64, 3);
	}
}

START_TEST(narrow_and_more)
{
	unsigned blocks = 8, threads = 96, each = test_quick() ? 2 : 7,
		 total = blocks * threads * each;
	struct narrow *m = (struct narrow *)managed(sizeof(*m));
	uint64_t inc = 0, dec = 0;

	m->byte[3] = 0xa5;
	m->nand_u32 = 0xff00;
	m->div_f32 = 1;
	m->div_f64 = 1;
	narrow_meet<<<blocks, threads>>>(m, each);
	finish_kernel();
	for (unsigned i = 0; i < total; i++) {
		inc = inc >= 1000 ? 0 : inc + 1;
		dec = dec == 0 || dec > 1000 ? 1000 : dec - 1;
	}
	ck_assert_uint_eq(m->wrong, 0);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(m->byte[i], (uint8_t)(total / 3));
	ck_assert_uint_eq(m->byte[3], 0xa5);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(m->half[i], (uint16_t)(0 - total / 2 * 3));
	ck_assert_int_eq(m->last[3], 127);
	ck_assert_int_eq(m->last[0], -127);
	ck_assert_int_eq(m->last[1], 0);
	ck_assert_uint_eq(m->inc_u32, inc);
	ck_assert_uint_eq(m->dec_u32, dec);
	ck_assert(m->inc_u64 == inc);
	ck_assert(m->dec_u64 == dec);
	ck_assert_uint_eq(m->nand_u32, ~0x0f00u);
	ck_assert(m->div_f32 == 1.0f / 3);
	ck_assert(m->div_f64 == 1.0 / 3);
	ck_assert_cuda(cudaFree(m));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("narrow atomics in kernels");
	TCase *many = tcase_create("many");

	tcase_set_timeout(many, 120);
	tcase_add_test(many, narrow_and_more);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
