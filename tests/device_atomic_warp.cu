/* SPDX-License-Identifier: MIT */
/* The atomics combined in warps and blocks. */
#include "device_atomic.h"

CUA_DEFINE_ATOMIC_WARP(add_mod, u64, (old + operand) % 1000003)

#define TARGETS 64u

struct combined {
	uint32_t count[TARGETS], max_u32, or_u32, mul_u32, wrong, block_u32;
	uint64_t mod, block_mod;
	int64_t sub_i64, min_i64, block_i64;
	float cas_f32, max_f32, block_f32;
	double add_f64, mul_f64, block_f64;
};

/*
 * The target of a lane: the same for all, each in turn, random, or one of a few that many lanes
 * share.
 */
CUA_FN uint32_t target_of(int how, uint32_t id, uint32_t i)
{
	switch (how) {
	case 0: return i % TARGETS;
	case 1: return (id + i) % TARGETS;
	case 2: return (uint32_t)operand_of(id, i) % TARGETS;
	default: return (uint32_t)operand_of(id, i) % 3 * (id % 2);
	}
}

/*
 * The lanes of a diverged warp call in two groups, with the masks of both. marks[c][old] counts the
 * calls of fetch_add that returned old.
 */
__global__ static void combine(struct combined *m, uint32_t *marks, uint32_t room, uint32_t each,
			       int how)
{
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
	uint32_t warp = blockIdx.x * 32 + threadIdx.x / 32;
	uint32_t full = blockDim.x - threadIdx.x + lane >= 32
				? 0xffffffffu
				: (1u << (blockDim.x - threadIdx.x + lane)) - 1;

	for (uint32_t i = 0; i < each; i++) {
		uint32_t c = target_of(how, id, i), split = (uint32_t)operand_of(warp, i) | 1;
		uint32_t mask, old, before, peers;
		uint64_t v = operand_of(id, i);

		if (i % 2 == 0)
			split = 0xffffffff;
		if (split >> lane & 1) {
			mask = full & split;
			old = cua_atomic_fetch_add_warp_u32(mask, &m->count[c], 1);
			peers = __match_any_sync(mask, c) & ((1u << lane) - 1);
			before = __shfl_sync(mask, old, peers ? 31 - __clz((int)peers) : (int)lane);
			if (peers && before + 1 != old)
				cua_atomic_add_u32(&m->wrong, 1);
			cua_atomic_sub_warp_i64(mask, &m->sub_i64, (int64_t)(v >> 20));
			cua_atomic_fetch_mul_warp_u32(mask, &m->mul_u32, 3);
			cua_atomic_fetch_add_cas_warp_f32(mask, &m->cas_f32, 1);
			add_mod_warp(mask, &m->mod, v >> 40);
		} else {
			mask = full & ~split;
			old = cua_atomic_fetch_add_warp_explicit_u32(mask, &m->count[c], 1,
								     CUA_ACQ_REL, CUA_SCOPE_DEVICE,
								     CUA_SPACE_GENERIC);
			cua_atomic_fetch_sub_warp_i64(mask, &m->sub_i64, (int64_t)(v >> 20));
			cua_atomic_fetch_mul_warp_u32(mask, &m->mul_u32, 3);
			cua_atomic_fetch_add_cas_warp_f32(mask, &m->cas_f32, 1);
			add_mod_warp(mask, &m->mod, v >> 40);
		}
		if (old >= room || cua_atomic_fetch_add_u32(&marks[c * room + old], 1))
			cua_atomic_add_u32(&m->wrong, 1);
		cua_atomic_max_warp_u32(full, &m->max_u32, (uint32_t)v);
		cua_atomic_min_warp_i64(full, &m->min_i64, (int64_t)v);
		cua_atomic_or_warp_u32(full, &m->or_u32, 1u << (v % 32));
		cua_atomic_max_warp_f32(full, &m->max_f32, v % 64 ? (float)(uint32_t)v : NAN);
		cua_atomic_add_warp_f64(full, &m->add_f64, 0.5);
		cua_atomic_fetch_mul_warp_f64(full, &m->mul_f64, -1);
	}
}

__global__ static void combine_blocks(struct combined *m, uint32_t each)
{
	__shared__ struct cua_block_scratch scratch;
	uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;

	for (uint32_t i = 0; i < each; i++) {
		uint64_t v = operand_of(id, i);

		cua_atomic_add_block_u32(&m->block_u32, 1, &scratch);
		cua_atomic_sub_block_i64(&m->block_i64, (int64_t)(v >> 20), &scratch);
		cua_atomic_add_cas_block_f32(&m->block_f32, 1, &scratch);
		cua_atomic_add_block_explicit_f64(&m->block_f64, 0.5, &scratch, CUA_ACQ_REL,
						  CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		add_mod_block(&m->block_mod, v >> 40, &scratch);
	}
}

START_TEST(combining)
{
	/* the last warp of a block is not full */
	unsigned blocks = test_quick() ? 4 : 40, threads = 250, each = 8;
	uint32_t total = blocks * threads * each, sum = 0, most = 0, bits = 0, product = 1;
	struct combined *m = (struct combined *)managed(sizeof(*m));
	uint32_t *marks = (uint32_t *)managed((size_t)TARGETS * total * sizeof(*marks));
	uint64_t mod = 0;
	int64_t least = 0, difference = 0;
	float greatest = 0;

	m->mul_u32 = 1;
	m->mul_f64 = 1;
	combine<<<blocks, threads>>>(m, marks, total, each, _i);
	combine_blocks<<<blocks, threads>>>(m, each);
	finish_kernel();
	for (uint32_t id = 0; id < blocks * threads; id++)
		for (uint32_t i = 0; i < each; i++) {
			uint64_t v = operand_of(id, i);

			most = (uint32_t)v > most ? (uint32_t)v : most;
			least = (int64_t)v < least ? (int64_t)v : least;
			bits |= 1u << (v % 32);
			if (v % 64 && (float)(uint32_t)v > greatest)
				greatest = (float)(uint32_t)v;
			difference -= (int64_t)(v >> 20);
			mod = (mod + (v >> 40)) % 1000003;
			product *= 3;
		}
	ck_assert_uint_eq(m->wrong, 0);
	for (uint32_t c = 0; c < TARGETS; c++) {
		sum += m->count[c];
		for (uint32_t i = 0; i < m->count[c]; i++)
			EXPECT(marks[(size_t)c * total + i] == 1,
			       "target %u: old value %u came %u times", c, i,
			       marks[(size_t)c * total + i]);
	}
	ck_assert_uint_eq(sum, total);
	ck_assert(m->sub_i64 == difference);
	ck_assert_uint_eq(m->mul_u32, product);
	ck_assert(m->cas_f32 == (float)total);
	ck_assert(m->mod == mod);
	ck_assert_uint_eq(m->max_u32, most);
	ck_assert(m->min_i64 == least);
	ck_assert_uint_eq(m->or_u32, bits);
	ck_assert(m->max_f32 == greatest);
	ck_assert(m->add_f64 == 0.5 * total);
	ck_assert(m->mul_f64 == (total % 2 ? -1 : 1));
	ck_assert_uint_eq(m->block_u32, total);
	ck_assert(m->block_i64 == difference);
	ck_assert(m->block_f32 == (float)total);
	ck_assert(m->block_f64 == 0.5 * total);
	ck_assert(m->block_mod == mod);
	ck_assert_cuda(cudaFree(m));
	ck_assert_cuda(cudaFree(marks));
}
END_TEST

/* ---- lanes or threads in sequence: each result is known ---- */

CUA_DEFINE_ATOMIC_SERIAL_WARP(collatz, u32, (old & 1 ? 3 * old + 1 : old / 2) + operand)

#define TURN_TARGETS 4u
#define TURN_ROUNDS 12u
#define TURN_BLOCKS 6u

/* The lanes of a round call in two groups; each group has its own targets. */
CUA_FN uint32_t group_of(uint32_t block, uint32_t round)
{
	return round % 3 == 0 ? 0xffffffffu : (uint32_t)operand_of(block, round) | 1;
}

CUA_FN uint32_t turn_target(uint32_t block, uint32_t round, uint32_t lane, uint32_t group)
{
	uint32_t c = round % 4 == 0 ? 0
		     : round % 4 == 1
			     ? lane % TURN_TARGETS
			     : (uint32_t)operand_of(block * 32 + lane, round) % TURN_TARGETS;

	return (block * 2 + (group >> lane & 1)) * TURN_TARGETS + c;
}

/* An operand with an effect: small for counters, and not zero for quotients. */
#define TURN_OPERAND(T, id, round) ((T)(operand_of(id, round) % 5 + 1))

#define DEFINE_TURNS(name, s, T, next)                                                             \
	__global__ static void turns_##name##_##s(T *targets, T *olds)                             \
	{                                                                                          \
		uint32_t lane = threadIdx.x, block = blockIdx.x, r;                                \
                                                                                                   \
		for (r = 0; r < TURN_ROUNDS; r++) {                                                \
			uint32_t group = group_of(block, r),                                       \
				 i = (block * TURN_ROUNDS + r) * 32 + lane;                        \
			T *p = &targets[turn_target(block, r, lane, group)];                       \
			T v = TURN_OPERAND(T, block * 32 + lane, r);                               \
                                                                                                   \
			if (group >> lane & 1)                                                     \
				olds[i] = TURN_CALL(name, s)(group, p, v);                         \
			else                                                                       \
				olds[i] = TURN_EXPLICIT(name, s)(~group, p, v, CUA_ACQ_REL,        \
								 CUA_SCOPE_DEVICE,                 \
								 CUA_SPACE_GENERIC);               \
			__syncwarp();                                                              \
		}                                                                                  \
	}                                                                                          \
	START_TEST(in_turn_##name##_##s)                                                           \
	{                                                                                          \
		const uint32_t n = TURN_BLOCKS * 2 * TURN_TARGETS;                                 \
		T *targets = (T *)managed(n * sizeof(T)), wanted[TURN_BLOCKS * 2 * TURN_TARGETS];  \
		T *olds = (T *)managed(TURN_BLOCKS * TURN_ROUNDS * 32 * sizeof(T));                \
		uint32_t i, block, r, lane;                                                        \
                                                                                                   \
		for (i = 0; i < n; i++)                                                            \
			targets[i] = wanted[i] = (T)(operand_of(i, 99) % 7 * 13);                  \
		turns_##name##_##s<<<TURN_BLOCKS, 32>>>(targets, olds);                            \
		finish_kernel();                                                                   \
		for (i = 0; i < TURN_BLOCKS * TURN_ROUNDS * 32; i++) {                             \
			lane = i % 32, r = i / 32 % TURN_ROUNDS, block = i / 32 / TURN_ROUNDS;     \
			T *w = &wanted[turn_target(block, r, lane, group_of(block, r))], old = *w; \
			T v = TURN_OPERAND(T, block * 32 + lane, r);                               \
                                                                                                   \
			EXPECT(memcmp(&olds[i], &old, sizeof(T)) == 0,                             \
			       "block %u, round %u, lane %u: %g, not %g", block, r, lane,          \
			       (double)olds[i], (double)old);                                      \
			*w = (T)(next);                                                            \
		}                                                                                  \
		for (i = 0; i < n; i++)                                                            \
			EXPECT(memcmp(&targets[i], &wanted[i], sizeof(T)) == 0,                    \
			       "target %u: %g, not %g", i, (double)targets[i], (double)wanted[i]); \
		ck_assert_cuda(cudaFree(targets));                                                 \
		ck_assert_cuda(cudaFree(olds));                                                    \
	}                                                                                          \
	END_TEST

#define TURN_CALL(name, s) cua_atomic_fetch_##name##_warp_##s
#define TURN_EXPLICIT(name, s) cua_atomic_fetch_##name##_warp_explicit_##s
DEFINE_TURNS(nand, u8, uint8_t, ~(old &v))
DEFINE_TURNS(nand, i16, int16_t, ~(old &v))
DEFINE_TURNS(nand, u32, uint32_t, ~(old &v))
DEFINE_TURNS(nand, i64, int64_t, ~(old &v))
DEFINE_TURNS(inc, u32, uint32_t, old >= v ? 0 : old + 1)
DEFINE_TURNS(inc, u64, uint64_t, old >= v ? 0 : old + 1)
DEFINE_TURNS(dec, u32, uint32_t, old == 0 || old > v ? v : old - 1)
DEFINE_TURNS(dec, u64, uint64_t, old == 0 || old > v ? v : old - 1)
DEFINE_TURNS(div, f32, float, old / v)
DEFINE_TURNS(div, f64, double, old / v)
DEFINE_TURNS(add, u8, uint8_t, old + v)
DEFINE_TURNS(sub, i16, int16_t, old - v)
DEFINE_TURNS(max, i8, int8_t, old > v ? old : v)
DEFINE_TURNS(xor, u16, uint16_t, old ^ v)
#undef TURN_CALL
#undef TURN_EXPLICIT
#define TURN_CALL(name, s) name##_warp
#define TURN_EXPLICIT(name, s) name##_warp_explicit
DEFINE_TURNS(collatz, u32, uint32_t, (old & 1 ? 3 * old + 1 : old / 2) + v)

#define DEFINE_BLOCK_TURNS(name, s, T, call, next)                                                 \
	__global__ static void __launch_bounds__(1024)                                             \
		block_turns_##name##_##s(T *targets, T *olds)                                      \
	{                                                                                          \
		__shared__ struct cua_block_scratch scratch;                                       \
		uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, r;                            \
                                                                                                   \
		for (r = 0; r < TURN_ROUNDS; r++)                                                  \
			olds[id * TURN_ROUNDS + r] =                                               \
				call(&targets[blockIdx.x], TURN_OPERAND(T, id, r), &scratch);      \
	}                                                                                          \
	START_TEST(block_in_turn_##name##_##s)                                                     \
	{                                                                                          \
		static const uint32_t sizes[] = {1, 31, 32, 33, 250, 1024};                        \
		uint32_t size = sizes[_i], block, r, i;                                            \
		/* a byte is updated through the word that contains it */                          \
		T *targets = (T *)managed((TURN_BLOCKS * sizeof(T) + 3) / 4 * 4);                  \
		T *olds = (T *)managed((size_t)TURN_BLOCKS * size * TURN_ROUNDS * sizeof(T));      \
                                                                                                   \
		for (block = 0; block < TURN_BLOCKS; block++)                                      \
			targets[block] = (T)(block + 3);                                           \
		block_turns_##name##_##s<<<TURN_BLOCKS, size>>>(targets, olds);                    \
		finish_kernel();                                                                   \
		for (block = 0; block < TURN_BLOCKS; block++) {                                    \
			T old = (T)(block + 3);                                                    \
                                                                                                   \
			for (r = 0; r < TURN_ROUNDS; r++)                                          \
				for (i = block * size; i < (block + 1) * size; i++) {              \
					T v = TURN_OPERAND(T, i, r);                               \
                                                                                                   \
					EXPECT(olds[(size_t)i * TURN_ROUNDS + r] == old,           \
					       "block %u of %u, round %u, thread %u", block, size, \
					       r, i - block * size);                               \
					old = (T)(next);                                           \
				}                                                                  \
			EXPECT(targets[block] == old, "the target of block %u", block);            \
		}                                                                                  \
		ck_assert_cuda(cudaFree(targets));                                                 \
		ck_assert_cuda(cudaFree(olds));                                                    \
	}                                                                                          \
	END_TEST
DEFINE_BLOCK_TURNS(add, u32, uint32_t, cua_atomic_fetch_add_block_u32, old + v)
DEFINE_BLOCK_TURNS(mul, u64, uint64_t, cua_atomic_fetch_mul_block_u64, old *v)
DEFINE_BLOCK_TURNS(sub, i64, int64_t, cua_atomic_fetch_sub_block_i64, old - v)
DEFINE_BLOCK_TURNS(add, f64, double, cua_atomic_fetch_add_block_f64, old + v)
DEFINE_BLOCK_TURNS(add, u8, uint8_t, cua_atomic_fetch_add_block_u8, old + v)
DEFINE_BLOCK_TURNS(xor, i16, int16_t, cua_atomic_fetch_xor_block_i16, old ^ v)
DEFINE_BLOCK_TURNS(add_mod, u64, uint64_t, add_mod_fetch_block, (old + v) % 1000003)

/* ---- in a state space ---- */

#define SPACE_THREADS 96u

struct in_space {
	uint64_t block;
	uint32_t sum, product, toggled;
	float most;
	uint8_t bits;
};

/*
 * Every thread of a block calls each form on the same object. ids[i] is the number of a thread as
 * its block operation returned it. marks counts the values that fetch_add returned.
 */
CUA_FORCE void in_space_steps(struct in_space *x, uint32_t *ids, uint32_t *marks,
			      struct cua_block_scratch *scratch, enum cua_space space)
{
	const enum cua_order order = CUA_ACQ_REL;
	const enum cua_scope scope = CUA_SCOPE_BLOCK;
	uint32_t i = threadIdx.x, all = 0xffffffff;

	marks[cua_atomic_fetch_add_warp_explicit_u32(all, &x->sum, 1, order, scope, space)]++;
	cua_atomic_fetch_mul_warp_explicit_u32(all, &x->product, 3, order, scope, space);
	cua_atomic_fetch_nand_warp_explicit_u32(all, &x->toggled, all, order, scope, space);
	cua_atomic_max_warp_explicit_f32(all, &x->most, (float)i, order, scope, space);
	cua_atomic_or_warp_explicit_u8(all, &x->bits, (uint8_t)(1u << i % 8), order, scope, space);
	ids[i] = (uint32_t)cua_atomic_fetch_add_block_explicit_u64(&x->block, 1, scratch, order,
								   scope, space);
	cua_atomic_sub_block_explicit_u64(&x->block, 2, scratch, order, scope, space);
}

__global__ static void in_spaces_kernel(struct in_space *objects, uint32_t *ids, uint32_t *marks)
{
	__shared__ struct cua_block_scratch scratch;
	__shared__ struct in_space shared;

	if (threadIdx.x == 0)
		shared = objects[1];
	__syncthreads();
	in_space_steps(&objects[0], ids, marks, &scratch, CUA_SPACE_GLOBAL);
	in_space_steps(&shared, ids + SPACE_THREADS, marks + SPACE_THREADS, &scratch,
		       CUA_SPACE_SHARED);
	in_space_steps(&objects[2], ids + 2 * SPACE_THREADS, marks + 2 * SPACE_THREADS, &scratch,
		       CUA_SPACE_GENERIC);
	__syncthreads();
	if (threadIdx.x == 0)
		objects[1] = shared;
}

START_TEST(in_spaces)
{
	struct in_space *objects = (struct in_space *)managed(3 * sizeof(*objects));
	uint32_t *ids = (uint32_t *)managed(3 * SPACE_THREADS * sizeof(*ids));
	uint32_t *marks = (uint32_t *)managed(3 * SPACE_THREADS * sizeof(*marks)), product = 1;

	memset((void *)objects, 0, 3 * sizeof(*objects));
	memset(marks, 0, 3 * SPACE_THREADS * sizeof(*marks));
	for (uint32_t i = 0; i < 3; i++)
		objects[i].product = 1, objects[i].toggled = 0x1234;
	in_spaces_kernel<<<1, SPACE_THREADS>>>(objects, ids, marks);
	finish_kernel();
	for (uint32_t i = 0; i < SPACE_THREADS; i++)
		product *= 3;
	for (uint32_t space = 0; space < 3; space++) {
		const struct in_space *x = &objects[space];

		EXPECT(x->sum == SPACE_THREADS, "space %u: sum %u", space, x->sum);
		EXPECT(x->product == product, "space %u: product %u", space, x->product);
		EXPECT(x->toggled == 0x1234, "space %u: toggled %x", space, x->toggled);
		EXPECT(x->most == SPACE_THREADS - 1, "space %u: most %g", space, (double)x->most);
		EXPECT(x->bits == 0xff, "space %u: bits %x", space, x->bits);
		EXPECT(x->block == 0ull - SPACE_THREADS, "space %u: block", space);
		for (uint32_t i = 0; i < SPACE_THREADS; i++) {
			EXPECT(ids[space * SPACE_THREADS + i] == i, "space %u, thread %u", space,
			       i);
			EXPECT(marks[space * SPACE_THREADS + i] == 1, "space %u, value %u", space,
			       i);
		}
	}
	ck_assert_cuda(cudaFree(objects));
	ck_assert_cuda(cudaFree(ids));
	ck_assert_cuda(cudaFree(marks));
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("combined atomics in kernels");
	TCase *exact = tcase_create("exact"), *many = tcase_create("many");

	tcase_set_timeout(exact, 120);
	tcase_set_timeout(many, 120);
	tcase_add_test(exact, in_turn_nand_u8);
	tcase_add_test(exact, in_turn_nand_i16);
	tcase_add_test(exact, in_turn_nand_u32);
	tcase_add_test(exact, in_turn_nand_i64);
	tcase_add_test(exact, in_turn_inc_u32);
	tcase_add_test(exact, in_turn_inc_u64);
	tcase_add_test(exact, in_turn_dec_u32);
	tcase_add_test(exact, in_turn_dec_u64);
	tcase_add_test(exact, in_turn_div_f32);
	tcase_add_test(exact, in_turn_div_f64);
	tcase_add_test(exact, in_turn_add_u8);
	tcase_add_test(exact, in_turn_sub_i16);
	tcase_add_test(exact, in_turn_max_i8);
	tcase_add_test(exact, in_turn_xor_u16);
	tcase_add_test(exact, in_turn_collatz_u32);
	tcase_add_loop_test(exact, block_in_turn_add_u32, 0, 6);
	tcase_add_loop_test(exact, block_in_turn_mul_u64, 0, 6);
	tcase_add_loop_test(exact, block_in_turn_sub_i64, 0, 6);
	tcase_add_loop_test(exact, block_in_turn_add_f64, 0, 6);
	tcase_add_loop_test(exact, block_in_turn_add_u8, 0, 6);
	tcase_add_loop_test(exact, block_in_turn_xor_i16, 0, 6);
	tcase_add_loop_test(exact, block_in_turn_add_mod_u64, 0, 6);
	tcase_add_test(exact, in_spaces);
	tcase_add_loop_test(many, combining, 0, 4);
	suite_add_tcase(suite, exact);
	suite_add_tcase(suite, many);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CUDA);
}
