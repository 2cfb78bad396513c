/* SPDX-License-Identifier: MIT */
/* cua_reduce and its short forms on either backend; on host threads also the finish functions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reduce_model.h"

static const enum cua_reduce_op ops[] = {CUA_REDUCE_SUM, CUA_REDUCE_MIN, CUA_REDUCE_MAX,
					 CUA_REDUCE_DOT};
static const enum cua_finish_mode modes[] = {CUA_FINISH_AUTO, CUA_FINISH_LAST_BLOCK,
					     CUA_FINISH_ATOMIC, CUA_FINISH_LOCK,
					     CUA_FINISH_ORDERED_LOCK};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct cua_reduce_options options_of(enum cua_finish_mode mode, uint32_t blocks,
					    uint32_t block_size)
{
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;

	o.finish = mode;
	o.blocks = blocks;
	o.block_size = block_size;
	return o;
}

#define assert_bits(got, expected, size, format, ...)                                              \
	ck_assert_msg(memcmp(got, expected, size) == 0, format, __VA_ARGS__)

/* ---- arguments ---- */

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	double *x = test_upload(ctx, host, sizeof(host)), *y = test_upload(ctx, host, sizeof(host));
	struct cua_reduce_options o = options_of(CUA_FINISH_AUTO, 0, 0);
	union value r;
	const uint64_t untouched = 0x123456789abcdef0u;
	size_t bytes = 77;
	double *none = NULL;

	r.u64 = untouched;
#define REFUSED(expected, ...)                                                                     \
	do {                                                                                       \
		ck_assert_status(cua_reduce(__VA_ARGS__), expected);                               \
		ck_assert_uint_eq(r.u64, untouched);                                               \
	} while (0)
	REFUSED(CUA_ERROR_NULL, NULL, NULL, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_NULL, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 4, NULL, NULL, &r);
	REFUSED(CUA_ERROR_NULL, ctx, NULL, CUA_REDUCE_DOT, CUA_F64, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_NULL, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, NULL);
	REFUSED(CUA_ERROR_NULL, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 0, NULL, NULL, NULL);
	REFUSED(CUA_ERROR_VALUE, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 4, x, y, &r);
	REFUSED(CUA_ERROR_VALUE, ctx, NULL, (enum cua_reduce_op)0, CUA_F64, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_VALUE, ctx, NULL, (enum cua_reduce_op)16, CUA_F64, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_VALUE, ctx, NULL, (enum cua_reduce_op) - 1, CUA_F64, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_TYPE, ctx, NULL, CUA_REDUCE_SUM, CUA_U8, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_TYPE, ctx, NULL, CUA_REDUCE_SUM, CUA_I16, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_TYPE, ctx, NULL, CUA_REDUCE_SUM, (enum cua_type)0, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_TYPE, ctx, NULL, CUA_REDUCE_SUM, (enum cua_type)99, 4, x, NULL, &r);
	REFUSED(CUA_ERROR_SIZE, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, SIZE_MAX / 8, x, NULL, &r);
	REFUSED(CUA_ERROR_SIZE, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, SIZE_MAX, x, NULL, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 4, (char *)x + 4, NULL,
		&r);
	REFUSED(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_REDUCE_DOT, CUA_F64, 4, x, (char *)y + 4, &r);
	REFUSED(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_REDUCE_SUM, CUA_F32, 4, (char *)x + 1, NULL,
		&r);
	/* a sum of 32-bit integers has 64 bits, a sum of f32 has 32 */
	REFUSED(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, NULL,
		(char *)&r + 4);
	REFUSED(CUA_ERROR_ALIGNMENT, ctx, NULL, CUA_REDUCE_MIN, CUA_U32, 4, x, NULL,
		(char *)&r + 2);
	REFUSED(CUA_ERROR_OVERLAP, ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, x + 3);
	REFUSED(CUA_ERROR_OVERLAP, ctx, NULL, CUA_REDUCE_DOT, CUA_F64, 4, x, y, y);
	o.struct_size = 0;
	REFUSED(CUA_ERROR_VALUE, ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, &r);
	o.struct_size = sizeof(o) + 1;
	REFUSED(CUA_ERROR_VALUE, ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, &r);
	o = options_of((enum cua_finish_mode)5, 0, 0);
	REFUSED(CUA_ERROR_VALUE, ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, &r);
	o = options_of((enum cua_finish_mode) - 1, 0, 0);
	REFUSED(CUA_ERROR_VALUE, ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, &r);
	o = options_of(CUA_FINISH_AUTO, CUA_REDUCE_BLOCKS_MAX + 1, 0);
	REFUSED(CUA_ERROR_VALUE, ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, &r);
	o = options_of(CUA_FINISH_AUTO, 0, 1025);
	REFUSED(CUA_ERROR_VALUE, ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, &r);

	ck_assert_status(cua_sum(NULL, CUA_F64, 4, x, &r), CUA_ERROR_NULL);
	ck_assert_status(cua_sum(ctx, CUA_U16, 4, x, &r), CUA_ERROR_TYPE);
	ck_assert_status(cua_min(ctx, CUA_F64, 4, none, &r), CUA_ERROR_NULL);
	ck_assert_status(cua_max(ctx, CUA_F64, 4, x, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_dot(ctx, CUA_F64, 4, x, none, &r), CUA_ERROR_NULL);
	ck_assert_uint_eq(r.u64, untouched);

	/* arrays adjacent to the elements do not overlap them */
	ck_assert_cua(cua_reduce(ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 4, x, NULL, x + 4));
	test_download(ctx, host, x, sizeof(host));
	ck_assert(host[4] == 10 && host[3] == 4 && host[5] == 6);

	ck_assert_status(cua_reduce_workspace(NULL, NULL, CUA_REDUCE_SUM, CUA_F64, 4, &bytes),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_reduce_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_F64, 4, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F64, 4, &bytes),
			 CUA_ERROR_VALUE);
	ck_assert_status(
		cua_reduce_workspace(ctx, NULL, (enum cua_reduce_op)16, CUA_F64, 4, &bytes),
		CUA_ERROR_VALUE);
	ck_assert_status(cua_reduce_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_I8, 4, &bytes),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_reduce_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_F64, SIZE_MAX, &bytes),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(bytes, 77);
	test_free(ctx, x);
	test_free(ctx, y);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
START_TEST(test_memory_kind)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA),
			   *cpu = test_context(CUA_BACKEND_CPU);
	double *host = test_malloc(4 * sizeof(double)), result = -1, host_result = -1;
	double *x;
	enum cua_status status;

	for (int i = 0; i < 4; i++)
		host[i] = i;
	x = test_upload(ctx, host, 4 * sizeof(double));
	/* wrong memory kind: a CPU context refuses device memory */
	ck_assert_status(cua_sum(cpu, CUA_F64, 4, x, &result), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_dot(cpu, CUA_F64, 4, host, x, &result), CUA_ERROR_MEMORY_KIND);
	ck_assert_status(cua_sum(cpu, CUA_F64, 4, host, x), CUA_ERROR_MEMORY_KIND);
	ck_assert(result == -1);
	/* ordinary host memory: accepted on a coherent system */
	status = cua_sum(ctx, CUA_F64, 4, host, &host_result);
	ck_assert(status == CUA_ERROR_MEMORY_KIND || status == CUA_OK);
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert(host_result == (status ? -1 : 6));
	test_free(ctx, x);
	free(host);
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* ---- values ---- */

/*
 * All operations, types, modes, memory kinds of the result, lengths and alignments against the
 * model.
 */
START_TEST(test_values)
{
	static const size_t lengths[] = {0, 1, 2, 31, 32, 33, 1000, 100003, 1000003};
	size_t n_lengths = test_traced()  ? 6
			   : test_quick() ? 7
			   : SANITIZED    ? 8
					  : 9,
	       most = lengths[n_lengths - 1];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_type type = types[_i];
	size_t size = cua_type_size(type), bytes = (most + 4) * size;
	uint64_t seed = test_seed("test_values");
	char *host_x = test_malloc(bytes), *host_y = test_malloc(bytes), *x, *y;
	union value zero, *device;

	memset(&zero, 0, sizeof(zero));
	device = test_upload(ctx, &zero, sizeof(zero));
	ck_assert_cua(cua_context_set_threads(ctx, 4));
	fill(type, most + 4, host_x, &seed);
	fill(type, most + 4, host_y, &seed);
	x = test_upload(ctx, host_x, bytes);
	y = test_upload(ctx, host_y, bytes);
	for (size_t l = 0; l < n_lengths; l++) {
		for (size_t shift = 0; shift < 16; shift++) {
			size_t n = lengths[l], sx = shift % 4 * size, sy = shift / 4 * size;

			/* beyond a few thousand elements only the ends differ */
			if ((n > 1000 || test_quick()) && shift % 5 != 0 && shift != 1 &&
			    shift != 8)
				continue;
			for (size_t o = 0; o < COUNT(ops); o++) {
				enum cua_reduce_op op = ops[o];
				size_t out = result_size(op, type);
				int dot = op == CUA_REDUCE_DOT;
				union value expected;

				if (!dot && shift >= 4)
					continue;
				expected = model(op, type, n, host_x + sx, host_y + sy);
				for (size_t m = 0; m < COUNT(modes); m++) {
					struct cua_reduce_options options =
						options_of(modes[m], 0, 0);
					union value got, back;

					memset(&got, 0x5a, sizeof(got));
					ck_assert_cua(cua_reduce(ctx, &options, op, type, n,
								 n ? x + sx : NULL,
								 dot && n ? y + sy : NULL, &got));
					assert_bits(
						&got, &expected, out,
						"op %d %s n %zu shift %zu mode %d: %llx, not %llx",
						(int)op, cua_type_name(type), n, shift,
						(int)modes[m], (unsigned long long)got.u64,
						(unsigned long long)expected.u64);
					ck_assert_cua(cua_reduce(ctx, &options, op, type, n, x + sx,
								 dot ? y + sy : NULL, device));
					test_download(ctx, &back, device, sizeof(back));
					assert_bits(
						&back, &expected, out,
						"op %d %s n %zu shift %zu mode %d, result in the "
						"backend's memory",
						(int)op, cua_type_name(type), n, shift,
						(int)modes[m]);
				}
			}
		}
	}
	test_free(ctx, device);
	test_free(ctx, x);
	test_free(ctx, y);
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}
END_TEST

/* Random calls with random options. */
START_TEST(test_random_options)
{
	enum { N = 20000 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_random_options");
	uint64_t *host_x = test_malloc(N * 8), *host_y = test_malloc(N * 8);
	char *x, *y;
	int rounds = test_traced() ? 10 : test_quick() ? 50 : 500;

	for (int round = 0; round < rounds; round++) {
		enum cua_type type = types[test_random(&seed) % COUNT(types)];
		enum cua_reduce_op op = ops[test_random(&seed) % COUNT(ops)];
		enum cua_finish_mode mode = modes[test_random(&seed) % COUNT(modes)];
		size_t n = test_random(&seed) % (N - 8), size = cua_type_size(type);
		uint32_t most_blocks = test_random(&seed) % 8 ? 12 : 600;
		struct cua_reduce_options o =
			options_of(mode, (uint32_t)(test_random(&seed) % most_blocks),
				   (uint32_t)(test_random(&seed) % 1025));
		size_t sx = test_random(&seed) % 8 * size, sy = test_random(&seed) % 8 * size;
		int dot = op == CUA_REDUCE_DOT;
		union value expected, got;

		if (round % 16 == 0)
			ck_assert_cua(cua_context_set_threads(
				ctx, 1 + (unsigned)(test_random(&seed) % 6)));
		fill(type, N, host_x, &seed);
		fill(type, N, host_y, &seed);
		x = test_upload(ctx, host_x, N * 8);
		y = test_upload(ctx, host_y, N * 8);
		expected = model(op, type, n, (char *)host_x + sx, (char *)host_y + sy);
		ck_assert_cua(cua_reduce(ctx, &o, op, type, n, x + sx, dot ? y + sy : NULL, &got));
		assert_bits(&got, &expected, result_size(op, type),
			    "round %d: op %d %s mode %d blocks %u of %u n %zu: %llx, not %llx",
			    round, (int)op, cua_type_name(type), (int)mode, o.blocks, o.block_size,
			    n, (unsigned long long)got.u64, (unsigned long long)expected.u64);
		test_free(ctx, x);
		test_free(ctx, y);
	}
	free(host_x);
	free(host_y);
	cua_context_destroy(ctx);
}
END_TEST

/* The suffixed forms, and a struct_size that no release had. */
START_TEST(test_typed)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_reduce_options o = options_of(CUA_FINISH_LOCK, 12345678, 12345678);
	uint64_t sum_u = 0;
	int64_t sum_i = 0;

	/* -3, 7, 2 and 5, 1, -4 where there is a sign; +-4 is 4 otherwise */
#define TYPED(t, T, Sum, minus)                                                                    \
	do {                                                                                       \
		T a[3] = {(T)(minus 3), 7, 2}, b[3] = {5, 1, (T)(minus 4)}, low = 0, high = 0;     \
		T *x = test_upload(ctx, a, sizeof(a)), *y = test_upload(ctx, b, sizeof(b));        \
		Sum sum = 0, dot = 0;                                                              \
                                                                                                   \
		ck_assert_cua(cua_sum_##t(ctx, 3, x, &sum));                                       \
		ck_assert_cua(cua_dot_##t(ctx, 3, x, y, &dot));                                    \
		ck_assert_cua(cua_min_##t(ctx, 3, x, &low));                                       \
		ck_assert_cua(cua_max_##t(ctx, 3, x, &high));                                      \
		ck_assert(sum == (Sum)(minus 3 + 9));                                              \
		ck_assert(dot == (Sum)(minus 15 + 7 minus 8));                                     \
		ck_assert(low == ((T)(minus 3) < 2 ? (T)(minus 3) : 2));                           \
		ck_assert(high == 7);                                                              \
		test_free(ctx, x);                                                                 \
		test_free(ctx, y);                                                                 \
	} while (0)
	TYPED(u32, uint32_t, uint64_t, +);
	TYPED(i32, int32_t, int64_t, -);
	TYPED(u64, uint64_t, uint64_t, +);
	TYPED(i64, int64_t, int64_t, -);
	TYPED(f32, float, float, -);
	TYPED(f64, double, double, -);

	o.struct_size = sizeof(size_t) + sizeof(o.finish);
	ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U32, 0, NULL, NULL, &sum_u),
			 CUA_ERROR_VALUE);
	o.struct_size = sizeof(size_t);
	ck_assert_status(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_I64, 0, NULL, NULL, &sum_i),
			 CUA_ERROR_VALUE);
	cua_context_destroy(ctx);
}
END_TEST

/* Sums of integers wrap only at 2^64. */
START_TEST(test_wrap)
{
	enum { N = 50000 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t *host = test_malloc(N * 8), sum;
	int64_t signed_sum;
	void *x;

	for (size_t m = 0; m < COUNT(modes); m++) {
		struct cua_reduce_options o = options_of(modes[m], 0, 0);

		memset(host, 0xff, N * 8);
		x = test_upload(ctx, host, N * 8);
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U32, N, x, NULL, &sum));
		ck_assert_uint_eq(sum, (uint64_t)N * UINT32_MAX);
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U64, N, x, NULL, &sum));
		ck_assert_uint_eq(sum, (uint64_t)N * UINT64_MAX);
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_DOT, CUA_U64, N, x, x, &sum));
		ck_assert_uint_eq(sum, N);
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_DOT, CUA_U32, N, x, x, &sum));
		ck_assert_uint_eq(sum, (uint64_t)N * ((uint64_t)UINT32_MAX * UINT32_MAX));
		ck_assert_cua(
			cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_I32, N, x, NULL, &signed_sum));
		ck_assert_int_eq(signed_sum, -N);
		test_free(ctx, x);
		for (int i = 0; i < N; i++)
			host[i] = (uint64_t)INT64_MAX - (uint64_t)i;
		x = test_upload(ctx, host, N * 8);
		ck_assert_cua(
			cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_I64, N, x, NULL, &signed_sum));
		ck_assert_uint_eq((uint64_t)signed_sum,
				  (uint64_t)N * INT64_MAX - (uint64_t)N * (N - 1) / 2);
		ck_assert_cua(
			cua_reduce(ctx, &o, CUA_REDUCE_MAX, CUA_I64, N, x, NULL, &signed_sum));
		ck_assert_int_eq(signed_sum, INT64_MAX);
		test_free(ctx, x);
	}
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- floats ---- */

static float bits_f32(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static double bits_f64(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

START_TEST(test_special_floats)
{
	enum { N = 5000 };
	static const uint32_t all_nan32[] = {0x7fc00000, 0xffc00001, 0x7f800001, 0xffffffff};
	static const uint64_t all_nan64[] = {0x7ff8000000000000, 0xfff8000000000001,
					     0x7ff0000000000001, 0xffffffffffffffff};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	float *f = test_malloc(N * sizeof(*f)), r32;
	double *d = test_malloc(N * sizeof(*d)), r64;
	void *x;
	uint32_t b32;
	uint64_t b64;

#define REDUCE_BITS(op, type, host, bits, expected)                                                \
	do {                                                                                       \
		x = test_upload(ctx, host, N * sizeof(*(host)));                                   \
		ck_assert_cua(cua_reduce(ctx, &o, op, type, N, x, NULL, &(bits)));                 \
		ck_assert_msg((bits) == (expected), "mode %d: %llx, not %llx", (int)modes[m],      \
			      (unsigned long long)(bits), (unsigned long long)(expected));         \
		test_free(ctx, x);                                                                 \
	} while (0)
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct cua_reduce_options o = options_of(modes[m], 7, 96);

		/* NaN everywhere except for a single element */
		for (int i = 0; i < N; i++) {
			f[i] = bits_f32(all_nan32[i % 4]);
			d[i] = bits_f64(all_nan64[i % 4]);
		}
		f[N / 3] = -5;
		d[N / 3] = -5;
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F32, f, b32, 0xc0a00000);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F32, f, b32, 0xc0a00000);
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F64, d, b64, 0xc014000000000000);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F64, d, b64, 0xc014000000000000);
		/* NaN everywhere: the result is always the same NaN */
		f[N / 3] = bits_f32(0xffc00123);
		d[N / 3] = bits_f64(0xfff8000000000123);
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F32, f, b32, 0x7fc00000);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F32, f, b32, 0x7fc00000);
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F64, d, b64, 0x7ff8000000000000);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F64, d, b64, 0x7ff8000000000000);
		/* zeros of both signs, in either order */
		for (int i = 0; i < N; i++) {
			f[i] = i % 2 ? 0.0f : -0.0f;
			d[i] = i % 2 ? -0.0 : 0.0;
		}
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F32, f, b32, 0x80000000);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F32, f, b32, 0);
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F64, d, b64, 0x8000000000000000);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F64, d, b64, 0);
		/* infinities and subnormal numbers: min and max */
		f[17] = INFINITY;
		f[18] = -INFINITY;
		d[17] = bits_f64(1);
		d[18] = bits_f64(0x8000000000000001);
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F32, f, b32, 0xff800000);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F32, f, b32, 0x7f800000);
		REDUCE_BITS(CUA_REDUCE_MIN, CUA_F64, d, b64, 0x8000000000000001);
		REDUCE_BITS(CUA_REDUCE_MAX, CUA_F64, d, b64, 1);
		/* a NaN that an addition produces, and a NaN among the elements */
		REDUCE_BITS(CUA_REDUCE_SUM, CUA_F32, f, b32, 0x7fc00000);
		d[17] = HUGE_VAL;
		d[18] = -HUGE_VAL;
		REDUCE_BITS(CUA_REDUCE_SUM, CUA_F64, d, b64, 0x7ff8000000000000);
		f[17] = bits_f32(0xffc00123);
		d[17] = bits_f64(0xfff8000000000123);
		REDUCE_BITS(CUA_REDUCE_SUM, CUA_F32, f, b32, 0x7fc00000);
		REDUCE_BITS(CUA_REDUCE_SUM, CUA_F64, d, b64, 0x7ff8000000000000);
		f[17] = INFINITY;
		f[18] = 1;
		x = test_upload(ctx, f, N * sizeof(*f));
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, x, NULL, &r32));
		ck_assert(isinf(r32) && r32 > 0);
		test_free(ctx, x);
		/* rounded once at the end: in float, 2^24 + 1 + 1 + ... would stay 2^24 */
		for (int i = 0; i < N; i++) {
			f[i] = 1;
			d[i] = FLT_MAX;
		}
		f[0] = 16777216;
		x = test_upload(ctx, f, N * sizeof(*f));
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, x, NULL, &r32));
		ck_assert_msg(r32 == (float)(16777216 + N - 1), "%a", (double)r32);
		test_free(ctx, x);
		/* no overflow in between: FLT_MAX - FLT_MAX + ... + 1 */
		for (int i = 0; i < N; i++)
			f[i] = i < N / 2 ? FLT_MAX : -FLT_MAX;
		x = test_upload(ctx, f, N * sizeof(*f));
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, x, NULL, &r32));
		ck_assert(r32 == 0);
		test_free(ctx, x);
		x = test_upload(ctx, d, N * sizeof(*d));
		ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, N, x, NULL, &r64));
		ck_assert(r64 == (double)FLT_MAX * N);
		test_free(ctx, x);
	}
	free(f);
	free(d);
	cua_context_destroy(ctx);
}
END_TEST

/* LAST_BLOCK and ORDERED_LOCK give the same bits each time. All finishes are near the true sum. */
START_TEST(test_deterministic)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	size_t n = test_quick() ? 20011 : 400009;
	uint64_t seed = test_seed("test_deterministic");
	double *host = test_malloc(n * sizeof(*host)), *x, exact_dot = 0, exact_sum = 0,
	       size_sum = 0;
	int repeats = test_quick() ? 3 : 15;

	for (size_t i = 0; i < n; i++) {
		host[i] = (double)(int64_t)test_random(&seed) *
			  ldexp(1, (int)(test_random(&seed) % 40));
		exact_sum += host[i];
		size_sum += fabs(host[i]);
		exact_dot += host[i] * host[i];
	}
	x = test_upload(ctx, host, n * sizeof(*x));
	ck_assert_cua(cua_context_set_threads(ctx, 5));
	for (size_t m = 0; m < COUNT(modes); m++) {
		for (uint32_t blocks = 0; blocks < 80; blocks += 13) {
			struct cua_reduce_options o = options_of(modes[m], blocks, 0);
			int same = modes[m] != CUA_FINISH_ATOMIC && modes[m] != CUA_FINISH_LOCK;
			double first_sum = 0, first_dot = 0, sum = 0, dot = 0;

			for (int i = 0; i < repeats; i++) {
				ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, n, x,
							 NULL, &sum));
				ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_DOT, CUA_F64, n, x, x,
							 &dot));
				ck_assert(fabs(sum - exact_sum) <= 1e-12 * size_sum);
				ck_assert(fabs(dot - exact_dot) <= 1e-10 * exact_dot);
				if (!i) {
					first_sum = sum;
					first_dot = dot;
				}
				if (same) {
					ck_assert(memcmp(&sum, &first_sum, sizeof(sum)) == 0);
					ck_assert(memcmp(&dot, &first_dot, sizeof(dot)) == 0);
				}
			}
		}
	}
	test_free(ctx, x);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

/* The reported workspace suffices for any number of blocks. */
START_TEST(test_workspace)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_reduce_options o = options_of(CUA_FINISH_LAST_BLOCK, 0, 32);
	uint32_t host[100], got = 0, *x;
	size_t bytes = 0, locked = 0;

	for (uint32_t i = 0; i < 100; i++)
		host[i] = 1000 - i;
	x = test_upload(ctx, host, sizeof(host));
	o.blocks = 200000;
	ck_assert_cua(cua_reduce_workspace(ctx, &o, CUA_REDUCE_MIN, CUA_U32, 100, &bytes));
	/* the CPU keeps a partial result for each chunk, and there is a single chunk */
	if (TEST_BACKEND == CUA_BACKEND_CUDA)
		ck_assert_uint_ge(bytes, (size_t)o.blocks * 8);
	else
		ck_assert_uint_lt(bytes, 4096);
	o.finish = CUA_FINISH_LOCK;
	ck_assert_cua(cua_reduce_workspace(ctx, &o, CUA_REDUCE_MIN, CUA_U32, 100, &locked));
	ck_assert_uint_lt(locked, 4096);
	o.finish = CUA_FINISH_LAST_BLOCK;
	/* the workspace grows automatically, also beyond its initial size */
	ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_MIN, CUA_U32, 100, x, NULL, &got));
	ck_assert_uint_eq(got, 901);
	ck_assert_cua(cua_context_reserve(ctx, bytes));
	ck_assert_cua(cua_reduce(ctx, &o, CUA_REDUCE_MAX, CUA_U32, 100, x, NULL, &got));
	ck_assert_uint_eq(got, 1000);
	test_free(ctx, x);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- more than 2^31 elements, 2^33 bytes ---- */

START_TEST(test_big)
{
	const size_t n = ((size_t)1 << 31) + 7, last = n - 1;
	struct cua_context *ctx;
	uint64_t free_bytes = 0, total = 0, sum = 0, dot = 0;
	uint32_t low = 0, high = 0, *x;
	const uint32_t pattern[4] = {7, 0x80000000u, 3, 0xfffffff0u}, end = 1;
	size_t quarter = n / 4;
	uint64_t expected = 0, expected_dot = 0;

	if (test_quick() || SANITIZED || sizeof(size_t) < 8) {
		printf("test_big: skipped in a quick or instrumented run\n");
		return;
	}
	ctx = test_context(TEST_BACKEND);
#if TEST_CUDA
	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total));
	if (free_bytes < ((uint64_t)12 << 30)) {
		printf("test_big: skipped, less than 12 GiB of memory free\n");
		cua_context_destroy(ctx);
		return;
	}
	x = test_alloc(ctx, n * 4);
	ck_assert_cua(cua_fill(ctx, x, quarter, 16, pattern));
	ck_assert_cua(cua_copy(ctx, x + quarter * 4, pattern, (n - quarter * 4) * 4));
	ck_assert_cua(cua_copy(ctx, x + last, &end, sizeof(end)));
#else
	{
		/* the same 64 MiB mapped repeatedly, and a private page at the end */
		const size_t piece = (size_t)64 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
		size_t length = (n * 4 + page - 1) / page * page, tail = (length - page) / 4;
		int fd = memfd_create("elements", MFD_CLOEXEC);
		uint32_t *one;

		(void)free_bytes;
		(void)total;
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(ftruncate(fd, (off_t)piece), 0);
		x = mmap(NULL, length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (x == MAP_FAILED) {
			printf("test_big: skipped, less than 8 GiB of addresses\n");
			close(fd);
			cua_context_destroy(ctx);
			return;
		}
		for (size_t at = 0; at < length - page; at += piece) {
			size_t part = length - page - at < piece ? length - page - at : piece;

			one = mmap((char *)x + at, part, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, fd, 0);
			ck_assert_ptr_ne(one, MAP_FAILED);
		}
		for (size_t i = 0; i < piece / 4; i++)
			x[i] = pattern[i % 4];
		for (size_t i = tail; i < n; i++)
			x[i] = pattern[i % 4];
		x[last] = end;
		close(fd);
	}
#endif
	for (int i = 0; i < 4; i++) {
		uint64_t times = quarter + ((size_t)i < n % 4), v = pattern[i];

		expected += times * v;
		expected_dot += times * v * v;
	}
	expected += (uint64_t)end - pattern[last % 4];
	expected_dot += (uint64_t)end * end - (uint64_t)pattern[last % 4] * pattern[last % 4];
	ck_assert_cua(cua_sum_u32(ctx, n, x, &sum));
	ck_assert_uint_eq(sum, expected);
	ck_assert_cua(cua_min_u32(ctx, n, x, &low));
	ck_assert_uint_eq(low, end);
	ck_assert_cua(cua_max_u32(ctx, n, x, &high));
	ck_assert_uint_eq(high, 0xfffffff0u);
	ck_assert_cua(cua_dot_u32(ctx, n - 1, x + 1, x + 1, &dot));
	ck_assert_uint_eq(dot, expected_dot - (uint64_t)pattern[0] * pattern[0]);
#if TEST_CUDA
	test_free(ctx, x);
#else
	munmap(x, n * 4);
#endif
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the functions of the header, on host threads ---- */

#if !TEST_CUDA

/* Affine maps modulo 2^32, composed in sequence: associative, but not commutative. */
struct affine {
	uint32_t scale, shift;
};

static struct affine after(struct affine a, struct affine b)
{
	struct affine c;

	c.scale = a.scale * b.scale;
	c.shift = a.shift * b.scale + b.shift;
	return c;
}

static struct affine affine_identity(void)
{
	struct affine c = {1, 0};

	return c;
}

CUA_DEFINE_REDUCE(affine, struct affine, after(a, b))
CUA_DEFINE_FINISH(affine, struct affine, affine_identity())
CUA_DEFINE_REDUCE(product, uint16_t, (uint16_t)((unsigned)a *b))
CUA_DEFINE_FINISH(product, uint16_t, 1)

enum { THREADS = 4, ROUNDS = 100 };

static struct {
	struct cua_finish finish;
	enum cua_finish_mode mode;
	pthread_barrier_t barrier;
	struct affine affine_partials[THREADS];
	uint16_t product_partials[THREADS];
	double f64_partials[THREADS];
	struct affine affine_total;
	uint16_t product_total;
	double f64_total;
	float f32_total;
	int winners, mistakes;
} shared;

static struct affine affine_of(uint64_t block)
{
	struct affine v = {(uint32_t)block * 2 + 3, (uint32_t)block + 10};

	return v;
}

/* A thread stands for a block; the barrier stands for the boundary between two launches. */
static void *finishing_thread(void *arg)
{
	uint64_t number = (uint64_t)(uintptr_t)arg;
	struct cua_block_scratch scratch;

	for (int round = 0; round < ROUNDS; round++) {
		int ordered = shared.mode == CUA_FINISH_ORDERED_LOCK;
		struct affine a = affine_identity();
		uint16_t p = 0;
		double d = 0;
		float f = 0;
		uint64_t block = number;

		if (ordered)
			block = cua_finish_block(shared.mode, &shared.finish, &scratch);
		if (affine_finish(shared.mode, &shared.finish, &scratch, shared.affine_partials,
				  block, THREADS, affine_block(affine_of(block), &scratch), &a)) {
			shared.affine_total = a;
			shared.winners++;
		}
		pthread_barrier_wait(&shared.barrier);
		if (ordered)
			block = cua_finish_ticket(&shared.finish);
		if (product_finish(shared.mode, &shared.finish, &scratch, shared.product_partials,
				   block, THREADS, (uint16_t)(block * 2 + 3), &p)) {
			shared.product_total = p;
			shared.winners++;
		}
		pthread_barrier_wait(&shared.barrier);
		if (ordered)
			block = cua_finish_ticket_block(&shared.finish, &scratch);
		if (cua_finish_sum_f64(shared.mode, &shared.finish, &scratch, shared.f64_partials,
				       block, THREADS, 0.5 + (double)block, &d)) {
			shared.f64_total = d;
			shared.winners++;
		}
		pthread_barrier_wait(&shared.barrier);
		if (cua_finish_lock_min_f32(&shared.finish, THREADS, (float)block - 2, &f)) {
			shared.f32_total = f;
			shared.winners++;
		}
		if (number == 0 && round == 0)
			shared.mistakes += affine_warp(affine_of(1), 1).shift != 11;
		pthread_barrier_wait(&shared.barrier);
	}
	return NULL;
}

START_TEST(test_host_finish)
{
	static const struct cua_finish zero = CUA_FINISH_INIT;
	struct affine in_order = affine_identity();

	for (uint64_t i = 0; i < THREADS; i++)
		in_order = after(in_order, affine_of(i));
	for (size_t m = 1; m < COUNT(modes); m++) {
		pthread_t threads[THREADS];
		int in_any_order = modes[m] == CUA_FINISH_LOCK || modes[m] == CUA_FINISH_ATOMIC;

		memset(&shared, 0, sizeof(shared));
		cua_finish_init(&shared.finish);
		shared.mode = modes[m];
		pthread_barrier_init(&shared.barrier, NULL, THREADS);
		for (uintptr_t i = 0; i < THREADS; i++)
			ck_assert_int_eq(
				pthread_create(&threads[i], NULL, finishing_thread, (void *)i), 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		pthread_barrier_destroy(&shared.barrier);
		ck_assert_int_eq(shared.winners, 4 * ROUNDS);
		ck_assert_int_eq(shared.mistakes, 0);
		/* the product of the scales is the same in any order, the shift is not */
		ck_assert_uint_eq(shared.affine_total.scale, in_order.scale);
		if (!in_any_order)
			ck_assert_uint_eq(shared.affine_total.shift, in_order.shift);
		ck_assert_uint_eq(shared.product_total, 3 * 5 * 7 * 9);
		ck_assert(shared.f64_total == 8);
		ck_assert(shared.f32_total == -2);
		ck_assert_msg(memcmp(&shared.finish, &zero, sizeof(zero)) == 0,
			      "mode %d leaves a state that is not zero", (int)modes[m]);
	}
}
END_TEST

/* Every operation of the header, by a block of a single thread, in every mode. */
START_TEST(test_host_operations)
{
	static const struct cua_finish zero = CUA_FINISH_INIT;
	struct cua_finish f = CUA_FINISH_INIT;
	struct cua_block_scratch s;

#define ONE(op, t, T, value)                                                                       \
	do {                                                                                       \
		T v = (value), partial, total;                                                     \
                                                                                                   \
		ck_assert(memcmp(&v, &(T){cua_block_##op##_##t(v, &s)}, sizeof(v)) == 0);          \
		ck_assert(memcmp(&v, &(T){cua_block_n_##op##_##t(v, 1, &s)}, sizeof(v)) == 0);     \
		ck_assert(memcmp(&v, &(T){cua_warp_##op##_##t(v, 1)}, sizeof(v)) == 0);            \
		for (size_t m = 0; m < COUNT(modes); m++) {                                        \
			total = 0;                                                                 \
			ck_assert_int_eq(cua_finish_##op##_##t(modes[m], &f, &s, &partial,         \
							       cua_finish_block(modes[m], &f, &s), \
							       1, v, &total),                      \
					 1);                                                       \
			ck_assert(memcmp(&v, &total, sizeof(v)) == 0);                             \
			ck_assert(memcmp(&f, &zero, sizeof(f)) == 0);                              \
		}                                                                                  \
	} while (0)
#define ALL(op)                                                                                    \
	ONE(op, u32, uint32_t, 0);                                                                 \
	ONE(op, u32, uint32_t, UINT32_MAX);                                                        \
	ONE(op, i32, int32_t, INT32_MIN);                                                          \
	ONE(op, i32, int32_t, INT32_MAX);                                                          \
	ONE(op, u64, uint64_t, UINT64_MAX);                                                        \
	ONE(op, i64, int64_t, INT64_MIN);                                                          \
	ONE(op, i64, int64_t, -1);                                                                 \
	ONE(op, f32, float, -1.5f);                                                                \
	ONE(op, f32, float, INFINITY);                                                             \
	ONE(op, f64, double, -HUGE_VAL);                                                           \
	ONE(op, f64, double, 1e-310)
	ALL(sum);
	ALL(min);
	ALL(max);
	ONE(min, f32, float, -0.0f);
	ONE(max, f64, double, -0.0);

	/* sums wrap; float minima ignore NaN and know -0 */
	ck_assert_int_eq(cua_combine_sum_i32(INT32_MAX, 1), INT32_MIN);
	ck_assert_int_eq(cua_combine_sum_i64(INT64_MIN, -1), INT64_MAX);
	ck_assert_uint_eq(cua_combine_sum_u32(UINT32_MAX, 2), 1);
	ck_assert(cua_combine_min_f32(NAN, 3) == 3 && cua_combine_min_f32(3, NAN) == 3);
	ck_assert(cua_combine_max_f64((double)NAN, -3) == -3);
	ck_assert(isnan(cua_combine_max_f64((double)NAN, -(double)NAN)));
	ck_assert(signbit(cua_combine_min_f64(0.0, -0.0)) &&
		  signbit(cua_combine_min_f64(-0.0, 0.0)));
	ck_assert(!signbit(cua_combine_max_f32(0.0f, -0.0f)) &&
		  !signbit(cua_combine_max_f32(-0.0f, 0.0f)));
	ck_assert(cua_combine_min_i64(-3, 5) == -3 && cua_combine_max_u64(3, 5) == 5);
}
END_TEST

#endif /* !TEST_CUDA */

static Suite *make_suite(void)
{
	Suite *suite = suite_create("reduce");
	TCase *tc = tcase_create("reduce");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_arguments);
#if TEST_CUDA
	tcase_add_test(tc, test_memory_kind);
#endif
	tcase_add_loop_test(tc, test_values, 0, (int)COUNT(types));
	tcase_add_test(tc, test_random_options);
	tcase_add_test(tc, test_typed);
	tcase_add_test(tc, test_wrap);
	tcase_add_test(tc, test_special_floats);
	tcase_add_test(tc, test_deterministic);
	tcase_add_test(tc, test_workspace);
	tcase_add_test(tc, test_big);
#if !TEST_CUDA
	tcase_add_test(tc, test_host_finish);
	tcase_add_test(tc, test_host_operations);
#endif
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
