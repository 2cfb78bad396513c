/* SPDX-License-Identifier: MIT */
/* Segmented reductions and reductions by key, on either backend. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <float.h>
#include <math.h>

#include "reduce_model.h"
#include "tree_model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum cua_reduce_op ops[] = {CUA_REDUCE_SUM, CUA_REDUCE_MIN, CUA_REDUCE_MAX};
static const enum cua_reduce_mode modes[] = {CUA_REDUCE_AUTO, CUA_REDUCE_FAST, CUA_REDUCE_FIXED};

static struct cua_segment_options options_of(enum cua_reduce_mode mode)
{
	struct cua_segment_options o = CUA_SEGMENT_OPTIONS_INIT;

	o.mode = mode;
	return o;
}

/* Types with sums only, or with sums in the order of a tree. */
static const enum cua_type trees[] = {CUA_F32,  CUA_F64,         CUA_F16,
				      CUA_BF16, CUA_COMPLEX_F32, CUA_COMPLEX_F64};

static int is_word(enum cua_type type)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (types[i] == type)
			return 1;
	return 0;
}

/* The sum of a segment in the tree of mode FIXED. */
static union model_result tree(enum cua_type type, size_t n, const void *x)
{
	struct model_call call = {.op = CUA_REDUCE_SUM, .type = type, .n = n, .x = x};

	return model_reduce(&call);
}

/* ---- input ---- */

static void store(enum cua_type type, void *p, size_t i, double v)
{
	switch (type) {
	case CUA_F16: ((struct cua_f16 *)p)[i] = cua_f16_from_f32((float)v); break;
	case CUA_BF16: ((struct cua_bf16 *)p)[i] = cua_bf16_from_f32((float)v); break;
	case CUA_F32: ((float *)p)[i] = (float)v; break;
	default: ((double *)p)[i] = v;
	}
}

/*
 * The type of the parts of a complex number; the functions that fill arrays treat parts as
 * elements.
 */
static enum cua_type part_type(enum cua_type type)
{
	return type == CUA_COMPLEX_F32 ? CUA_F32 : type == CUA_COMPLEX_F64 ? CUA_F64 : type;
}

/*
 * Floats of many magnitudes and both signs; large values cancel with near neighbours. So two orders
 * hardly ever have the same sum, even after rounding to the type.
 */
static void fill_wild(enum cua_type type, size_t n, void *p, uint64_t *seed)
{
	enum cua_type part = part_type(type);

	if (part != type)
		n *= 2;
	for (size_t i = 0; i < n; i++) {
		uint64_t r = test_random(seed), back = (r >> 32) % 40 + 1;

		if (i >= back && r % 2)
			store(part, p, i, -model_element(part, p, i - back).re);
		else if (part == CUA_F16)
			store(part, p, i, ldexp((double)(int64_t)r, (int)(r % 20) - 70));
		else
			store(part, p, i, ldexp((double)(int64_t)r, (int)(r % 81) - 100));
	}
}

/* Small integers: every order of addition has the same sum. */
static void fill_small(enum cua_type type, size_t n, void *p, uint64_t *seed)
{
	enum cua_type part = part_type(type);

	if (is_word(type)) {
		fill(type, n, p, seed);
		return;
	}
	for (size_t i = 0; i < (part == type ? n : 2 * n); i++)
		store(part, p, i, (double)(test_random(seed) % 201) - 100);
}

enum shape { ALL_IN_ONE, ONES, TENS, HUNDREDS, EMPTY, A_FEW, MIXED, EDGES, SHAPES };

/* Lengths around the limits at which the loops change. */
static const size_t edges[] = {0,    1,    2,    3,    4,    5,    7,    8,    9,    15,
			       16,   17,   31,   32,   33,   63,   64,   65,   127,  128,
			       129,  255,  256,  257,  511,  512,  513,  1023, 1024, 1025,
			       2047, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 16385};

static size_t next_length(enum shape shape, size_t n, uint64_t *seed)
{
	uint64_t r = test_random(seed);

	switch (shape) {
	case ALL_IN_ONE: return n;
	case ONES: return 1;
	case TENS: return (size_t)(r % 11);
	case HUNDREDS: return (size_t)(r % 400);
	case EMPTY: return r % 64 ? 0 : (size_t)(r >> 8) % 200;
	case A_FEW: return n / 3 + (size_t)(r % 5);
	case MIXED: return (size_t)(r >> 8) % ((size_t)1 << (r % 15));
	default: return edges[r % COUNT(edges)];
	}
}

/*
 * Offsets of segments over n elements. Elements before the first offset and after the last offset
 * belong to no segment.
 */
static size_t make_offsets(enum shape shape, size_t n, uint64_t *offsets, size_t most,
			   uint64_t *seed)
{
	size_t at = n > 20 ? (size_t)(test_random(seed) % 4) : 0, segments = 0;

	offsets[0] = at;
	while (segments < most) {
		at += next_length(shape, n, seed);
		if (at > n)
			break;
		offsets[++segments] = at;
	}
	if (shape == ALL_IN_ONE && !segments)
		offsets[++segments] = n;
	return segments;
}

/* ---- arguments ---- */

START_TEST(test_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint32_t host[4] = {1, 2, 3, 4};
	const uint64_t host_offsets[3] = {0, 1, 4};
	const uint64_t poison[4] = {0xa5a5a5a5a5a5a5a5, 0xa5a5a5a5a5a5a5a5, 0xa5a5a5a5a5a5a5a5,
				    0xa5a5a5a5a5a5a5a5};
	uint32_t *x = test_upload(ctx, host, sizeof(host));
	uint64_t *offsets = test_upload(ctx, host_offsets, sizeof(host_offsets));
	uint64_t *results = test_alloc(ctx, 4 * sizeof(*results)), got[4];
	struct cua_segment_options o = CUA_SEGMENT_OPTIONS_INIT;
	size_t bytes = 77;

#define CALL(o_, op, type, n, x_, segments, offsets_, results_)                                    \
	cua_segmented_reduce(ctx, o_, op, type, n, x_, segments, offsets_, results_)
	ck_assert_status(cua_segmented_reduce(NULL, NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets,
					      results),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_segmented_sum(NULL, CUA_U32, 4, x, 2, offsets, results),
			 CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, NULL, 2, offsets, results),
			 CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, NULL, results),
			 CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, CUA_REDUCE_DOT, CUA_U32, 4, x, 2, offsets, results),
			 CUA_ERROR_VALUE);
	ck_assert_status(CALL(NULL, (enum cua_reduce_op)0, CUA_U32, 4, x, 2, offsets, results),
			 CUA_ERROR_VALUE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U8, 4, x, 2, offsets, results),
			 CUA_ERROR_TYPE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, (enum cua_type)0, 4, x, 2, offsets, results),
			 CUA_ERROR_TYPE);
	for (size_t i = 2; i < COUNT(trees); i++) {
		ck_assert_status(CALL(NULL, CUA_REDUCE_MIN, trees[i], 1, x, 2, offsets, results),
				 CUA_ERROR_TYPE);
		ck_assert_status(CALL(NULL, CUA_REDUCE_MAX, trees[i], 1, x, 2, offsets, results),
				 CUA_ERROR_TYPE);
	}
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, SIZE_MAX / 4, x, 2, offsets, results),
			 CUA_ERROR_SIZE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, SIZE_MAX, offsets, results),
			 CUA_ERROR_SIZE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, SIZE_MAX / 8, offsets, results),
			 CUA_ERROR_SIZE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 2, (char *)x + 2, 2, offsets, results),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 1,
			      (uint64_t *)((char *)offsets + 4), results),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets, (char *)results + 4),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U64, 2, results, 2, offsets, results + 1),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, results, results + 2),
			 CUA_ERROR_OVERLAP);
	o.mode = CUA_REDUCE_EXACT;
	ck_assert_status(CALL(&o, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets, results),
			 CUA_ERROR_VALUE);
	o.mode = (enum cua_reduce_mode) - 1;
	ck_assert_status(CALL(&o, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets, results),
			 CUA_ERROR_VALUE);
	o = options_of(CUA_REDUCE_FAST);
	o.struct_size = 0;
	ck_assert_status(CALL(&o, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets, results),
			 CUA_ERROR_VALUE);
	o.struct_size = sizeof(o) + 1;
	ck_assert_status(CALL(&o, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets, results),
			 CUA_ERROR_VALUE);
	ck_assert_status(
		cua_segmented_reduce_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_U32, 4, 2, NULL),
		CUA_ERROR_NULL);
	ck_assert_status(
		cua_segmented_reduce_workspace(NULL, NULL, CUA_REDUCE_SUM, CUA_U32, 4, 2, &bytes),
		CUA_ERROR_NULL);
	ck_assert_status(
		cua_segmented_reduce_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_U8, 4, 2, &bytes),
		CUA_ERROR_TYPE);
	ck_assert_status(
		cua_segmented_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_U32, 4, 2, &bytes),
		CUA_ERROR_VALUE);
	ck_assert_status(cua_segmented_reduce_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_U32,
							SIZE_MAX / 4, 2, &bytes),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(bytes, 77);
#if TEST_CUDA
	{
		struct cua_context *cpu = test_context(CUA_BACKEND_CPU);

		ck_assert_status(cua_segmented_sum(cpu, CUA_U32, 4, x, 2, host_offsets, got),
				 CUA_ERROR_MEMORY_KIND);
		ck_assert_status(cua_segmented_sum(cpu, CUA_U32, 4, host, 2, offsets, got),
				 CUA_ERROR_MEMORY_KIND);
		ck_assert_status(cua_segmented_sum(cpu, CUA_U32, 4, host, 2, host_offsets, results),
				 CUA_ERROR_MEMORY_KIND);
		cua_context_destroy(cpu);
	}
#endif
	/* nothing was written: 0 segments need no work */
	ck_assert_cua(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 0, offsets, results));
	ck_assert_cua(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 0, NULL, NULL));
	ck_assert_cua(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 0, NULL, 0, NULL, NULL));
	test_download(ctx, got, results, sizeof(got));
	ck_assert_mem_eq(got, poison, sizeof(got));
	ck_assert_cua(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, 4, x, 2, offsets, results));
	test_download(ctx, got, results, sizeof(got));
	ck_assert_uint_eq(got[0], 1);
	ck_assert_uint_eq(got[1], 9);
	ck_assert_mem_eq(got + 2, poison, 16);
	/* segments without elements */
	ck_assert_cua(CALL(NULL, CUA_REDUCE_MIN, CUA_U64, 0, NULL, 2, offsets, results));
	test_download(ctx, got, results, sizeof(got));
	ck_assert(got[0] == UINT64_MAX && got[1] == UINT64_MAX && got[2] == poison[2]);
#undef CALL
	test_free(ctx, x);
	test_free(ctx, offsets);
	test_free(ctx, results);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(test_by_key_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint32_t host[4] = {1, 2, 2, 4};
	const uint64_t poison = 0xa5a5a5a5a5a5a5a5;
	uint32_t *x = test_upload(ctx, host, sizeof(host));
	uint32_t *keys = test_upload(ctx, host, sizeof(host));
	uint64_t *results = test_alloc(ctx, 8 * sizeof(*results)), got[4], count = 99;
	uint32_t *unique = test_alloc(ctx, 8 * sizeof(*unique)), got_keys[4];
	struct cua_segment_options o = options_of(CUA_REDUCE_EXACT);
	size_t bytes = 77;

#define CALL(...) cua_reduce_by_key(ctx, __VA_ARGS__)
#define GOOD CUA_REDUCE_SUM, CUA_U32, CUA_U32, 4
	ck_assert_status(cua_reduce_by_key(NULL, NULL, GOOD, keys, x, 4, unique, results, &count),
			 CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, GOOD, NULL, x, 4, unique, results, &count), CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, GOOD, keys, NULL, 4, unique, results, &count), CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, NULL, results, &count), CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, NULL, &count), CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, results, NULL), CUA_ERROR_NULL);
	ck_assert_status(CALL(NULL, CUA_REDUCE_DOT, CUA_U32, CUA_U32, 4, keys, x, 4, unique,
			      results, &count),
			 CUA_ERROR_VALUE);
	ck_assert_status(CALL(&o, GOOD, keys, x, 4, unique, results, &count), CUA_ERROR_VALUE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_F32, CUA_U32, 4, keys, x, 4, unique,
			      results, &count),
			 CUA_ERROR_TYPE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U16, CUA_U32, 4, keys, x, 4, unique,
			      results, &count),
			 CUA_ERROR_TYPE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_MIN, CUA_U32, CUA_BF16, 4, keys, x, 4, unique,
			      results, &count),
			 CUA_ERROR_TYPE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, SIZE_MAX / 4, keys, x, 4,
			      unique, results, &count),
			 CUA_ERROR_SIZE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, SIZE_MAX / 8, keys, x, 4,
			      unique, results, &count),
			 CUA_ERROR_SIZE);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, 2, (char *)keys + 2, x, 4,
			      unique, results, &count),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, 2, keys, (char *)x + 2, 4,
			      unique, results, &count),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, (char *)unique + 2, results, &count),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, (char *)results + 4, &count),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, results,
			      (uint64_t *)((char *)(results + 5) + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, keys + 3, results, &count),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, x, results, &count), CUA_ERROR_OVERLAP);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, (uint64_t *)(void *)unique, &count),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, results, results + 3),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, results, (uint64_t *)(void *)unique),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(CALL(NULL, GOOD, keys, x, 4, unique, results, (uint64_t *)(void *)keys),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_reduce_by_key_workspace(ctx, NULL, GOOD, 4, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_reduce_by_key_workspace(NULL, NULL, GOOD, 4, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_reduce_by_key_workspace(ctx, &o, GOOD, 4, &bytes), CUA_ERROR_VALUE);
	ck_assert_status(cua_reduce_by_key_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_F64, CUA_U32, 4,
						     4, &bytes),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_reduce_by_key_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_U64, CUA_U32,
						     SIZE_MAX / 8, 4, &bytes),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(bytes, 77);
	ck_assert_uint_eq(count, 99);
	test_download(ctx, got, results, sizeof(got));
	test_download(ctx, got_keys, unique, sizeof(got_keys));
	for (int i = 0; i < 4; i++)
		ck_assert(got[i] == poison && got_keys[i] == (uint32_t)poison);

	/* calls with minimal arguments */
	ck_assert_cua(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, 0, NULL, NULL, 4, unique,
			   results, &count));
	ck_assert_uint_eq(count, 0);
	ck_assert_cua(CALL(NULL, GOOD, keys, NULL, 0, NULL, NULL, &count));
	ck_assert_uint_eq(count, 3);
	ck_assert_cua(CALL(NULL, CUA_REDUCE_SUM, CUA_U32, CUA_U32, 0, NULL, NULL, 0, NULL, NULL,
			   results));
	test_download(ctx, got, results, sizeof(*got));
	ck_assert_uint_eq(got[0], 0);
	/* any capacity is valid: there are at most n runs */
	ck_assert_cua(CALL(NULL, GOOD, keys, x, UINT64_MAX, unique, results, results + 4));
	test_download(ctx, got, results, sizeof(got));
	test_download(ctx, got_keys, unique, sizeof(got_keys));
	test_download(ctx, &count, results + 4, sizeof(count));
	ck_assert_uint_eq(count, 3);
	ck_assert(got[0] == 1 && got[1] == 4 && got[2] == 4 && got[3] == poison);
	ck_assert(got_keys[0] == 1 && got_keys[1] == 2 && got_keys[2] == 4);
	ck_assert(got_keys[3] == (uint32_t)poison);
#undef GOOD
#undef CALL
	test_free(ctx, x);
	test_free(ctx, keys);
	test_free(ctx, results);
	test_free(ctx, unique);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- values ---- */

/* Compares every result bit by bit, and checks that nothing around them was written. */
static void check_segments(struct cua_context *ctx, enum cua_reduce_mode mode,
			   enum cua_reduce_op op, enum cua_type type, size_t n, const char *host_x,
			   const void *x, size_t segments, const uint64_t *host_offsets,
			   const uint64_t *offsets, int as_tree)
{
	struct cua_segment_options o = options_of(mode);
	size_t size = cua_type_size(type), out = is_word(type) ? result_size(op, type) : size;
	char *results = test_alloc(ctx, (segments + 4) * out);
	char *got = test_malloc((segments + 4) * out);

	ck_assert_cua(
		cua_segmented_reduce(ctx, &o, op, type, n, x, segments, offsets, results + out));
	test_download(ctx, got, results, (segments + 4) * out);
	for (size_t i = 0; i < segments; i++) {
		const char *at = host_x + host_offsets[i] * size;
		size_t length = (size_t)(host_offsets[i + 1] - host_offsets[i]);
		union model_result expected, v = {.words = {0, 0}};

		if (as_tree || !is_word(type)) {
			expected = tree(type, length, at);
		} else {
			union value serial = model(op, type, length, at, at);

			memcpy(&expected, &serial, sizeof(serial));
		}
		memcpy(&v, got + (i + 1) * out, out);
		EXPECT(memcmp(&v, &expected, out) == 0,
		       "mode %d op %d %s n %zu, segment %zu of %zu from %llu, length %zu: %llx %llx, not %llx %llx",
		       (int)mode, (int)op, cua_type_name(type), n, i, segments,
		       (unsigned long long)host_offsets[i], length, (unsigned long long)v.words[0],
		       (unsigned long long)v.words[1], (unsigned long long)expected.words[0],
		       (unsigned long long)expected.words[1]);
	}
	for (size_t i = 0; i < out; i++)
		ck_assert_uint_eq((uint8_t)got[i], 0xa5);
	for (size_t i = (segments + 1) * out; i < (segments + 4) * out; i++)
		ck_assert_uint_eq((uint8_t)got[i], 0xa5);
	free(got);
	test_free(ctx, results);
}

/* All types, operations and modes over every kind of lengths, at every alignment. */
START_TEST(test_shapes)
{
	static const size_t sizes[] = {0, 1, 3, 31, 255, 1000, 4097, 30011, 200003};
	enum cua_type type =
		(size_t)_i < COUNT(types) ? types[_i] : trees[(size_t)_i - COUNT(types) + 2];
	/* the model of a tree is slow for short segments, too */
	size_t fewer = test_traced() || !is_word(type) ? 3 : test_quick();
	size_t n_sizes = COUNT(sizes) - fewer, n_ops = is_word(type) ? COUNT(ops) : 1;
	size_t most = sizes[n_sizes - 1], most_segments = most + most / 4 + 300;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	size_t size = cua_type_size(type);
	uint64_t seed = test_seed("test_shapes");
	char *host = test_malloc((most + 4) * size), *x;
	uint64_t *host_offsets = test_malloc((most_segments + 1) * 8), *offsets;

	fill_small(type, most + 4, host, &seed);
	x = test_upload(ctx, host, (most + 4) * size);
	for (size_t l = 0; l < n_sizes; l++)
		for (int shape = 0; shape < SHAPES; shape++) {
			size_t n = sizes[l], first = (size_t)(test_random(&seed) % 4);
			size_t segments = make_offsets((enum shape)shape, n, host_offsets,
						       n + n / 4 + 300, &seed);

			ck_assert_cua(cua_context_set_threads(
				ctx, 1 + (unsigned)(test_random(&seed) % 6)));
			offsets = test_upload(ctx, host_offsets, (segments + 1) * 8);
			for (size_t m = 0; m < COUNT(modes); m++)
				for (size_t op = 0; op < n_ops; op++)
					check_segments(ctx, modes[m], ops[op], type, n,
						       host + first * size, x + first * size,
						       segments, host_offsets, offsets, 0);
			test_free(ctx, offsets);
		}
	test_free(ctx, x);
	free(host);
	free(host_offsets);
	cua_context_destroy(ctx);
}
END_TEST

/* FIXED has the tree's bits, independent of a segment's position and of its surroundings. */
START_TEST(test_fixed)
{
	size_t most = test_quick() ? 60000 : 300000, most_segments = most + 1000;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_type type = trees[_i];
	size_t size = cua_type_size(type);
	uint64_t seed = test_seed("test_fixed");
	char *host = test_malloc((most + 4) * size), *x;
	uint64_t *host_offsets = test_malloc((most_segments + 1) * 8), *offsets;

	fill_wild(type, most + 4, host, &seed);
	x = test_upload(ctx, host, (most + 4) * size);
	for (int shape = 0; shape < SHAPES; shape++)
		for (size_t n = most; n > 1000; n /= 5) {
			size_t first = (size_t)(test_random(&seed) % 4);
			size_t segments = make_offsets((enum shape)shape, n, host_offsets,
						       most_segments, &seed);

			ck_assert_cua(cua_context_set_threads(
				ctx, 1 + (unsigned)(test_random(&seed) % 6)));
			offsets = test_upload(ctx, host_offsets, (segments + 1) * 8);
			check_segments(ctx, CUA_REDUCE_FIXED, CUA_REDUCE_SUM, type, n,
				       host + first * size, x + first * size, segments,
				       host_offsets, offsets, 1);
			test_free(ctx, offsets);
		}
	test_free(ctx, x);
	free(host);
	free(host_offsets);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * A single segment: equals cua_reduce in this mode, and the tree; also with strips of more than 8
 * rows.
 */
START_TEST(test_fixed_alone)
{
	static const size_t lengths[] = {
		0,    1,      63,     64,      65,
		511,  512,    513,    4095,    4096,
		4097, 100003, 262144, 2000003, (size_t)4096 * 8192 + 12345};
	size_t n_lengths = test_quick() ? COUNT(lengths) - 2 : COUNT(lengths);
	size_t most = lengths[n_lengths - 1];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_segment_options o = options_of(CUA_REDUCE_FIXED);
	struct cua_reduce_options alone = CUA_REDUCE_OPTIONS_INIT;
	uint64_t seed = test_seed("test_fixed_alone");
	double *host = test_malloc((most + 1) * 8), *x, *result = test_alloc(ctx, 8), got, reduced;

	alone.mode = CUA_REDUCE_FIXED;
	fill_wild(CUA_F64, most + 1, host, &seed);
	x = test_upload(ctx, host, (most + 1) * 8);
	for (size_t l = 0; l < n_lengths; l++) {
		uint64_t first = l % 2, ends[2] = {first, first + lengths[l]}, *offsets;
		union model_result expected = tree(CUA_F64, lengths[l], host + first);

		offsets = test_upload(ctx, ends, sizeof(ends));
		ck_assert_cua(cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, most + 1, x, 1,
						   offsets, result));
		test_download(ctx, &got, result, 8);
		ck_assert_cua(cua_reduce(ctx, &alone, CUA_REDUCE_SUM, CUA_F64, lengths[l],
					 x + first, NULL, &reduced));
		ck_assert_msg(!memcmp(&got, &expected, 8), "length %zu: %a, not %a", lengths[l],
			      got, expected.f64);
		ck_assert_msg(!memcmp(&got, &reduced, 8), "length %zu: %a, but cua_reduce %a",
			      lengths[l], got, reduced);
		test_free(ctx, offsets);
	}
	test_free(ctx, x);
	test_free(ctx, result);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

/* FAST gives the same bits in every run, close to the true sum; f32 is rounded once. */
START_TEST(test_fast_sums)
{
	size_t n = test_quick() ? 20011 : 300007, most = n + 300;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_fast_sums");
	double *host = test_malloc(n * 8), *x, *first = test_malloc(most * 8);
	double *got = test_malloc(most * 8), *results;
	uint64_t *host_offsets = test_malloc((most + 1) * 8), *offsets;

	ck_assert_cua(cua_context_set_threads(ctx, 5));
	fill_wild(CUA_F64, n, host, &seed);
	x = test_upload(ctx, host, n * 8);
	results = test_alloc(ctx, most * 8);
	for (int shape = 0; shape < SHAPES; shape++) {
		size_t segments = make_offsets((enum shape)shape, n, host_offsets, most, &seed);

		offsets = test_upload(ctx, host_offsets, (segments + 1) * 8);
		for (int run = 0; run < 5; run++) {
			ck_assert_cua(cua_segmented_sum_f64(ctx, n, x, segments, offsets, results));
			test_download(ctx, run ? got : first, results, segments * 8);
			if (run)
				ck_assert_mem_eq(got, first, segments * 8);
		}
		for (size_t i = 0; i < segments; i++) {
			double sum = 0, sizes = 0;

			for (uint64_t j = host_offsets[i]; j < host_offsets[i + 1]; j++) {
				sum += host[j];
				sizes += fabs(host[j]);
			}
			EXPECT(fabs(first[i] - sum) <= 1e-10 * sizes, "segment %zu: %g, not %g", i,
			       first[i], sum);
		}
		test_free(ctx, offsets);
	}
	test_free(ctx, x);
	test_free(ctx, results);
	free(host);
	free(first);
	free(got);
	free(host_offsets);
	cua_context_destroy(ctx);
}
END_TEST

/* Special values in a segment change nothing in its neighbours. */
START_TEST(test_special_floats)
{
	enum { PER = 700, SEGMENTS = 60, N = PER * SEGMENTS };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	float *host = test_malloc(N * sizeof(*host)), *x, got[SEGMENTS];
	const uint64_t host_minus[4] = {2 * PER + 14, 2 * PER + 15, 2 * PER + 50, 3 * PER};
	uint64_t host_offsets[SEGMENTS + 1], *offsets, *minus;
	float *results = test_alloc(ctx, sizeof(got));

	for (int i = 0; i <= SEGMENTS; i++)
		host_offsets[i] = (uint64_t)(i * PER);
	for (int i = 0; i < N; i++) {
		int in = i % PER;

		switch (i / PER % 6) {
		case 0: host[i] = 1; break;
		case 1: host[i] = i % 2 ? NAN : -NAN; break;
		case 2: host[i] = in == 13 ? -INFINITY : -0.0f; break;
		case 3: host[i] = in == 699 ? NAN : in % 2 ? -0.0f : 0; break;
		case 4: host[i] = in < 350 ? FLT_MAX : -FLT_MAX; break;
		default: host[i] = in ? 1 : 16777216; break;
		}
	}
	x = test_upload(ctx, host, N * sizeof(*host));
	offsets = test_upload(ctx, host_offsets, sizeof(host_offsets));
	minus = test_upload(ctx, host_minus, sizeof(host_minus));
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct cua_segment_options o = options_of(modes[m]);

		ck_assert_cua(cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, x, SEGMENTS,
						   offsets, results));
		test_download(ctx, got, results, sizeof(got));
		for (int i = 0; i < SEGMENTS; i += 6) {
			uint32_t bits;

			ck_assert(got[i] == PER);
			memcpy(&bits, &got[i + 1], 4);
			ck_assert_uint_eq(bits, 0x7fc00000);
			ck_assert(isinf(got[i + 2]) && got[i + 2] < 0);
			memcpy(&bits, &got[i + 3], 4);
			ck_assert_uint_eq(bits, 0x7fc00000);
			/* no overflow in between, and a single rounding at the end */
			ck_assert(got[i + 4] == 0 && !signbit(got[i + 4]));
			ck_assert(got[i + 5] == 16777216 + 699 + 1);
		}
		/* -0 by itself: a sum starts from +0 */
		ck_assert_cua(cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, x, 3, minus,
						   results));
		test_download(ctx, got, results, 3 * sizeof(*got));
		for (int i = 0; i < 3; i++)
			ck_assert(got[i] == 0 && !signbit(got[i]));
		ck_assert_cua(cua_segmented_reduce(ctx, &o, CUA_REDUCE_MAX, CUA_F32, N, x, SEGMENTS,
						   offsets, results));
		test_download(ctx, got, results, sizeof(got));
		for (int i = 0; i < SEGMENTS; i += 6) {
			uint32_t bits;

			memcpy(&bits, &got[i + 1], 4);
			ck_assert_uint_eq(bits, 0x7fc00000);
			ck_assert(got[i + 2] == 0 && signbit(got[i + 2]));
			ck_assert(got[i + 3] == 0 && !signbit(got[i + 3]));
			ck_assert(got[i + 4] == FLT_MAX);
		}
	}
	test_free(ctx, x);
	test_free(ctx, offsets);
	test_free(ctx, minus);
	test_free(ctx, results);
	free(host);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- invalid offsets ---- */

/*
 * Nothing outside of the arrays is accessed: the arrays end at the end of their mapping. Offsets
 * beyond n count as n.
 */
START_TEST(test_bad_offsets)
{
	enum { N = 50000, MOST = 60000 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_bad_offsets");
	uint64_t *host = test_malloc(N * 8), *x, *host_offsets = test_malloc((MOST + 1) * 8),
		 *offsets;
	double *d = test_malloc(N * 8), *y;

	fill(CUA_U64, N, host, &seed);
	fill(CUA_F64, N, d, &seed);
	x = test_upload(ctx, host, N * 8);
	y = test_upload(ctx, d, N * 8);
	for (int round = 0; round < (test_traced() ? 4 : test_scale(20, 40, 100)); round++) {
		size_t segments = round % 2 ? MOST : (size_t)(test_random(&seed) % 3000) + 1;
		uint64_t *results = test_alloc(ctx, segments * 8 + 16), *got;
		int kind = round % 5;

		for (size_t i = 0; i <= segments; i++) {
			uint64_t r = test_random(&seed);

			host_offsets[i] = kind == 0   ? r
					  : kind == 1 ? r % N
					  : kind == 2 ? (segments - i) * N / segments
					  : kind == 3 ? (i * 2 * N / segments) ^ (r % 64 == 0) * 999
						      : (r % 50 ? i * N / segments : r % (2 * N));
		}
		ck_assert_cua(cua_context_set_threads(ctx, 1 + (unsigned)round % 7));
		offsets = test_upload(ctx, host_offsets, (segments + 1) * 8);
		for (size_t m = 0; m < COUNT(modes); m++) {
			struct cua_segment_options o = options_of(modes[m]);

			ck_assert_cua(cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, N, y,
							   segments, offsets, results));
			ck_assert_cua(cua_segmented_reduce(ctx, &o, ops[round % 3], CUA_U64, N, x,
							   segments, offsets, results));
		}
		got = test_malloc(segments * 8 + 16);
		test_download(ctx, got, results, segments * 8 + 16);
		ck_assert_uint_eq(got[segments], 0xa5a5a5a5a5a5a5a5);
		ck_assert_uint_eq(got[segments + 1], 0xa5a5a5a5a5a5a5a5);
		free(got);
		test_free(ctx, results);
		test_free(ctx, offsets);
	}
	/* ascending, but beyond the end */
	for (int i = 0; i <= 100; i++)
		host_offsets[i] = i < 50 ? (uint64_t)i * 900 : UINT64_MAX - 100 + (uint64_t)i;
	offsets = test_upload(ctx, host_offsets, 101 * 8);
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct cua_segment_options o = options_of(modes[m]);
		double *results = test_alloc(ctx, 100 * 8), got[100];

		ck_assert_cua(cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_F64, N, y, 100,
						   offsets, results));
		test_download(ctx, got, results, sizeof(got));
		for (size_t i = 0; i < 100; i++) {
			size_t begin = i < 50 ? i * 900 : N, end = i < 49 ? begin + 900 : N;

			ck_assert(
				got[i] ==
				serial_f64(CUA_REDUCE_SUM, end - begin, d + begin, d + begin).f64);
		}
		test_free(ctx, results);
	}
	test_free(ctx, offsets);
	test_free(ctx, x);
	test_free(ctx, y);
	free(host);
	free(d);
	free(host_offsets);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- runs of equal keys ---- */

static void set_key(void *keys, size_t key_size, size_t i, uint64_t v)
{
	memcpy((char *)keys + i * key_size, &v, key_size);
}

START_TEST(test_by_key)
{
	static const size_t sizes[] = {1, 2, 33, 1000, 4097, 30011, 300007};
	static const enum cua_type key_types[] = {CUA_U32, CUA_I32, CUA_U64, CUA_I64};
	size_t n_sizes = test_traced()  ? COUNT(sizes) - 3
			 : test_quick() ? COUNT(sizes) - 1
					: COUNT(sizes);
	size_t most = sizes[n_sizes - 1];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum cua_type type = types[_i];
	size_t size = cua_type_size(type);
	uint64_t seed = test_seed("test_by_key");
	char *host_x = test_malloc((most + 4) * size), *x;
	char *host_keys = test_malloc((most + 4) * 8), *keys;
	uint64_t *starts = test_malloc((most + 1) * 8);

	fill(type, most + 4, host_x, &seed);
	x = test_upload(ctx, host_x, (most + 4) * size);
	for (size_t l = 0; l < n_sizes; l++)
		for (int shape = 0; shape < SHAPES; shape++) {
			size_t n = sizes[l], first = (size_t)(test_random(&seed) % 4), runs = 0;
			enum cua_type key_type = key_types[test_random(&seed) % 4];
			size_t key_size = cua_type_size(key_type);
			uint64_t key = test_random(&seed), capacity[5], count;
			int wild = test_random(&seed) % 2;

			/*
			 * neighbouring keys that differ in a single bit, high or low, or ascending
			 * keys
			 */
			for (size_t i = 0; i < n;) {
				size_t length = next_length((enum shape)shape, n, &seed);

				starts[runs] = i;
				if (!length)
					continue;
				key = wild ? key ^ (uint64_t)1 << (test_random(&seed) %
								   (key_size * 8))
					   : key + 1;
				for (; length && i < n; length--, i++)
					set_key(host_keys, key_size, first + i, key);
				runs++;
			}
			starts[runs] = n;
			keys = test_upload(ctx, host_keys, (n + 4) * key_size);
			ck_assert_cua(cua_context_set_threads(
				ctx, 1 + (unsigned)(test_random(&seed) % 6)));
			capacity[0] = runs;
			capacity[1] = runs + 5;
			capacity[2] = runs - 1;
			capacity[3] = test_random(&seed) % runs;
			capacity[4] = 0;
			for (size_t c = 0; c < COUNT(capacity); c++) {
				enum cua_reduce_op op = ops[(c + l) % 3];
				struct cua_segment_options o =
					options_of(modes[(c + (size_t)shape) % 3]);
				size_t out = result_size(op, type), room = (size_t)capacity[c];
				size_t stored = room < runs ? room : runs;
				char *results = test_alloc(ctx, (room + 4) * out);
				char *unique = test_alloc(ctx, (room + 4) * key_size);
				char *got = test_malloc((room + 4) * out);
				char *got_keys = test_malloc((room + 4) * key_size);

				count = 0;
				ck_assert_cua(cua_reduce_by_key(
					ctx, &o, op, key_type, type, n, keys + first * key_size,
					x + first * size, capacity[c], unique + key_size,
					results + out, &count));
				ck_assert_uint_eq(count, runs);
				test_download(ctx, got, results, (room + 4) * out);
				test_download(ctx, got_keys, unique, (room + 4) * key_size);
				for (size_t i = 0; i < stored; i++) {
					size_t begin = first + (size_t)starts[i];
					union value v =
						model(op, type, (size_t)(starts[i + 1] - starts[i]),
						      host_x + begin * size, host_x + begin * size);

					EXPECT(!memcmp(got_keys + (i + 1) * key_size,
						       host_keys + begin * key_size, key_size),
					       "%s n %zu, key of run %zu of %zu",
					       cua_type_name(key_type), n, i, runs);
					EXPECT(!memcmp(got + (i + 1) * out, &v, out),
					       "%s op %d n %zu, result of run %zu of %zu from %llu",
					       cua_type_name(type), (int)op, n, i, runs,
					       (unsigned long long)starts[i]);
				}
				for (size_t i = 0; i < (room + 4) * out; i++)
					if (i < out || i >= (stored + 1) * out)
						ck_assert_uint_eq((uint8_t)got[i], 0xa5);
				for (size_t i = 0; i < (room + 4) * key_size; i++)
					if (i < key_size || i >= (stored + 1) * key_size)
						ck_assert_uint_eq((uint8_t)got_keys[i], 0xa5);
				free(got);
				free(got_keys);
				test_free(ctx, results);
				test_free(ctx, unique);
			}
			test_free(ctx, keys);
		}
	test_free(ctx, x);
	free(host_x);
	free(host_keys);
	free(starts);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Short runs with room for as many, so that a GPU sums them where it finds them: bits of FIXED for
 * every kind, any alignment of keys and elements, runs that cross tiles, and any capacity.
 */
START_TEST(test_by_key_short)
{
	/* of the longest run; the capacity depends on the way, too */
	static const size_t lengths[] = {3, 1, 20, 150, 20};
	size_t n = TEST_MODEL ? 40000 : test_quick() ? 300000 : 400000;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_segment_options o = options_of(CUA_REDUCE_FIXED);
	enum cua_type type = trees[_i];
	size_t size = cua_type_size(type);
	uint64_t seed = test_seed("test_by_key_short"), *starts = test_malloc((n + 1) * 8), count;
	char *host = test_malloc((n + 8) * size), *x, *got = test_malloc((n + 1) * size), *results;
	char *host_keys = test_malloc((n + 8) * 8), *keys, *unique, *got_keys = test_malloc(n * 8);

	fill_wild(type, n + 8, host, &seed);
	x = test_upload(ctx, host, (n + 8) * size);
	results = test_alloc(ctx, (n + 1) * size);
	unique = test_alloc(ctx, n * 8);
	for (size_t way = 0; way < COUNT(lengths); way++) {
		size_t key_size = way % 2 ? 8 : 4, runs = 0, stored, room;
		size_t first = (size_t)(test_random(&seed) % 8);
		size_t first_key = (size_t)(test_random(&seed) % 4);
		size_t of = n - (size_t)(test_random(&seed) % 5000);

		for (size_t i = 0; i < of; runs++) {
			size_t length = 1 + (size_t)(test_random(&seed) % lengths[way]);

			/* a long run now and then */
			if (test_random(&seed) % 10000 == 0)
				length += (size_t)(test_random(&seed) % 30000);
			starts[runs] = i;
			for (; length && i < of; length--)
				set_key(host_keys, key_size, first_key + i++, runs);
		}
		starts[runs] = of;
		keys = test_upload(ctx, host_keys, (n + 8) * key_size);
		room = way % 3 == 0 ? of : way % 3 == 1 ? runs : runs - runs / 5;
		stored = room < runs ? room : runs;
		ck_assert_cua(cua_reduce_by_key(ctx, &o, CUA_REDUCE_SUM,
						key_size == 4 ? CUA_U32 : CUA_I64, type, of,
						keys + first_key * key_size, x + first * size, room,
						unique, results, &count));
		ck_assert_uint_eq(count, runs);
		test_download(ctx, got, results, stored * size);
		test_download(ctx, got_keys, unique, stored * key_size);
		for (size_t i = 0; i < stored; i++) {
			const char *begin = host + (first + (size_t)starts[i]) * size;
			union model_result v =
				tree(type, (size_t)(starts[i + 1] - starts[i]), begin);

			EXPECT(!memcmp(got + i * size, &v, size),
			       "%s, way %zu, run %zu of %zu: %d to %d", cua_type_name(type), way, i,
			       runs, (int)starts[i], (int)starts[i + 1]);
			EXPECT(!memcmp(got_keys + i * key_size,
				       host_keys + (first_key + starts[i]) * key_size, key_size),
			       "%s, way %zu, key %zu of %zu", cua_type_name(type), way, i, runs);
		}
		test_free(ctx, keys);
	}
	test_free(ctx, x);
	test_free(ctx, results);
	test_free(ctx, unique);
	free(host);
	free(host_keys);
	free(starts);
	free(got);
	free(got_keys);
	cua_context_destroy(ctx);
}
END_TEST

/* FIXED by key equals FIXED of the segments of equal keys. */
START_TEST(test_by_key_fixed)
{
	size_t n = test_quick() ? 40000 : 400000, runs = 0;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_segment_options o = options_of(CUA_REDUCE_FIXED);
	enum cua_type type = trees[_i];
	size_t size = cua_type_size(type);
	uint64_t seed = test_seed("test_by_key_fixed"), *starts = test_malloc((n + 1) * 8), *count;
	char *host = test_malloc(n * size), *x, *results, *got = test_malloc(n * size);
	uint32_t *host_keys = test_malloc(n * 4), *keys, *unique;

	fill_wild(type, n, host, &seed);
	for (size_t i = 0; i < n;) {
		size_t length = next_length(MIXED, n, &seed);

		starts[runs] = i;
		if (!length)
			continue;
		for (; length && i < n; length--, i++)
			host_keys[i] = (uint32_t)runs;
		runs++;
	}
	starts[runs] = n;
	x = test_upload(ctx, host, n * size);
	keys = test_upload(ctx, host_keys, n * 4);
	results = test_alloc(ctx, n * size);
	unique = test_alloc(ctx, n * 4);
	count = test_alloc(ctx, 8);
	ck_assert_cua(cua_reduce_by_key(ctx, &o, CUA_REDUCE_SUM, CUA_I32, type, n, keys, x, n,
					unique, results, count));
	test_download(ctx, got, results, n * size);
	for (size_t i = 0; i < runs; i++) {
		union model_result v =
			tree(type, (size_t)(starts[i + 1] - starts[i]), host + starts[i] * size);

		EXPECT(!memcmp(got + i * size, &v, size), "%s, run %zu of %zu, of %d elements",
		       cua_type_name(type), i, runs, (int)(starts[i + 1] - starts[i]));
	}
	test_free(ctx, x);
	test_free(ctx, keys);
	test_free(ctx, results);
	test_free(ctx, unique);
	test_free(ctx, count);
	free(host);
	free(host_keys);
	free(starts);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the rest ---- */

START_TEST(test_typed)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t host_offsets[4] = {1, 1, 2, 4};
	uint64_t *offsets = test_upload(ctx, host_offsets, sizeof(host_offsets));
	struct cua_segment_options o = options_of(CUA_REDUCE_FIXED);
	uint64_t *u = test_alloc(ctx, 3 * sizeof(*u));

#define TYPED(t, T, Sum, minus)                                                                    \
	do {                                                                                       \
		T a[5] = {9, (T)(minus 3), 7, 2, 9};                                               \
		T *x = test_upload(ctx, a, sizeof(a));                                             \
		Sum *sums = test_alloc(ctx, 3 * sizeof(*sums)), got[3];                            \
                                                                                                   \
		ck_assert_cua(cua_segmented_sum_##t(ctx, 5, x, 3, offsets, sums));                 \
		test_download(ctx, got, sums, sizeof(got));                                        \
		ck_assert(got[0] == 0 && got[1] == (Sum)(minus 3) && got[2] == 9);                 \
		test_free(ctx, x);                                                                 \
		test_free(ctx, sums);                                                              \
	} while (0)
	TYPED(u32, uint32_t, uint64_t, +);
	TYPED(i32, int32_t, int64_t, -);
	TYPED(u64, uint64_t, uint64_t, +);
	TYPED(i64, int64_t, int64_t, -);
	TYPED(f32, float, float, -);
	TYPED(f64, double, double, -);
#undef TYPED
#define TYPED(t, T, ...)                                                                           \
	do {                                                                                       \
		T a[4] = {__VA_ARGS__};                                                            \
		T *x = test_upload(ctx, a, sizeof(a)), *sums = test_alloc(ctx, 3 * sizeof(*sums)); \
		T got[3], zero;                                                                    \
                                                                                                   \
		memset(&zero, 0, sizeof(zero));                                                    \
		ck_assert_cua(cua_segmented_sum_##t(ctx, 4, x, 3, offsets, sums));                 \
		test_download(ctx, got, sums, sizeof(got));                                        \
		ck_assert_mem_eq(&got[0], &zero, sizeof(zero));                                    \
		ck_assert_mem_eq(&got[1], &a[1], sizeof(zero));                                    \
		ck_assert_mem_eq(&got[2], &a[0], sizeof(zero));                                    \
		test_free(ctx, x);                                                                 \
		test_free(ctx, sums);                                                              \
	} while (0)
	/* the first is the sum of the other two */
	TYPED(f16, struct cua_f16, {0x4880}, {0x1234}, {0x4700}, {0x4000});
	TYPED(bf16, struct cua_bf16, {0x4110}, {0x1234}, {0x40e0}, {0x4000});
	TYPED(complex_f32, struct cua_complex_f32, {9, -1}, {5, 6}, {7, 1}, {2, -2});
	TYPED(complex_f64, struct cua_complex_f64, {9, -1}, {5, 6}, {7, 1}, {2, -2});
#undef TYPED
	/* an options struct_size that no release had */
	o.struct_size = sizeof(size_t);
	ck_assert_status(
		cua_segmented_reduce(ctx, &o, CUA_REDUCE_SUM, CUA_U32, 0, NULL, 3, offsets, u),
		CUA_ERROR_VALUE);
	test_free(ctx, u);
	test_free(ctx, offsets);
	cua_context_destroy(ctx);
}
END_TEST

/* The reported workspace suffices: a context that has it does not grow. */
START_TEST(test_workspace)
{
	enum { N = 300000 };
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint32_t *keys = test_malloc(N * 4), *device_keys, *unique = test_alloc(ctx, N * 4);
	float *x = test_alloc(ctx, N * 4), *results = test_alloc(ctx, N * 4);
	size_t small = 0, large = 0, segmented = 0;
	uint64_t count = 0;

	for (uint32_t i = 0; i < N; i++)
		keys[i] = i;
	device_keys = test_upload(ctx, keys, N * 4);
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct cua_segment_options o = options_of(modes[m]);

		ck_assert_cua(cua_reduce_by_key_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_U32, CUA_F32,
							  N, 10, &small));
		ck_assert_cua(cua_reduce_by_key_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_U32, CUA_F32,
							  N, UINT64_MAX, &large));
		ck_assert_cua(cua_segmented_reduce_workspace(ctx, &o, CUA_REDUCE_SUM, CUA_F32, N, N,
							     &segmented));
		ck_assert_uint_ge(large, (size_t)N * 8);
		ck_assert_uint_lt(small, (size_t)1 << 20);
		ck_assert_uint_lt(segmented, (size_t)1 << 20);
		ck_assert_cua(cua_context_reserve(ctx, large));
		ck_assert_cua(cua_reduce_by_key(ctx, &o, CUA_REDUCE_SUM, CUA_U32, CUA_F32, N,
						device_keys, x, N, unique, results, &count));
		ck_assert_uint_eq(count, N);
	}
	ck_assert_cua(cua_segmented_reduce_workspace(ctx, NULL, CUA_REDUCE_SUM, CUA_F32, N, 0,
						     &segmented));
	ck_assert_uint_eq(segmented, 0);
	test_free(ctx, x);
	test_free(ctx, unique);
	test_free(ctx, results);
	test_free(ctx, device_keys);
	free(keys);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("segment");
	TCase *tc = tcase_create("segment");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_arguments);
	tcase_add_test(tc, test_by_key_arguments);
	tcase_add_loop_test(tc, test_shapes, 0, (int)(COUNT(types) + COUNT(trees) - 2));
	tcase_add_loop_test(tc, test_fixed, 0, (int)COUNT(trees));
	tcase_add_test(tc, test_fixed_alone);
	tcase_add_test(tc, test_fast_sums);
	tcase_add_test(tc, test_special_floats);
	tcase_add_test(tc, test_bad_offsets);
	tcase_add_loop_test(tc, test_by_key, 0, (int)COUNT(types));
	tcase_add_loop_test(tc, test_by_key_fixed, 0, (int)COUNT(trees));
	tcase_add_loop_test(tc, test_by_key_short, 0, (int)COUNT(trees));
	tcase_add_test(tc, test_typed);
	tcase_add_test(tc, test_workspace);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
