/* SPDX-License-Identifier: MIT */
/*
 * Groups by NCCL, a thread for each rank: reductions, sums and sharded maps against a single context,
 * errors that all ranks return, ranks that stay away, and the end of a group. On the CPU backend a double of
 * NCCL takes its place (fake_nccl.h); on the CUDA backend each GPU has a rank.
 */
#if !TEST_CUDA
/* The transport itself, on the CPU backend, with short pieces and a short wait for an abort. */
#define NCCL_BACKEND CUA_BACKEND_CPU
#define ABORT_SECONDS 1.0
#define HALF_BYTES ((size_t)1024)
#include "backend/nccl.c"
#include "group/group_nccl.c"

#include "fake_nccl.h"
#endif

#include <dlfcn.h>
#include <math.h>
#include <time.h>

#include "group_ranks.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct nccl {
	int (*init_all)(void **comms, int n, const int *devices);
	int (*destroy)(void *comm);
	int (*abort)(void *comm);
};

/* The ranks of a group: each array has an entry for each rank. */
struct crowd {
	uint32_t size;
	struct nccl nccl;
	void *comms[MOST_RANKS];
	struct cua_context *contexts[MOST_RANKS], *single;
	struct cua_group *groups[MOST_RANKS];
	enum cua_status status[MOST_RANKS];
	double seconds[MOST_RANKS]; /* of the last call */
	/* of a call */
	enum cua_reduce_op op;
	enum cua_type type;
	enum cua_reduce_mode mode;
	size_t n[MOST_RANKS];
	char *x[MOST_RANKS];
	char results[MOST_RANKS][16];
	uint32_t bad;  /* the rank with a bad argument */
	uint32_t away; /* the rank that makes no call */
	struct cua_sharded_map *maps[MOST_RANKS];
	uint64_t seeds[MOST_RANKS];
};

static double clock_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The numbers of ranks that the machine has GPUs for, in turn; 0: too many. */
static uint32_t ranks_of(int i)
{
	int devices = 5;

	if (TEST_BACKEND == CUA_BACKEND_CUDA)
		ck_assert_cua(cua_device_count(TEST_BACKEND, &devices));
	return sizes[i] <= (uint32_t)devices ? sizes[i] : 0;
}

static void *function(const char *name)
{
	void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD), *symbol;

	if (!library)
		library = dlopen(NULL, RTLD_NOW);
	symbol = dlsym(library, name);
	ck_assert_msg(symbol != NULL, "%s is missing", name);
	return symbol;
}

static void init_comms(struct crowd *c)
{
	int devices[MOST_RANKS];
	void *symbol;

	ck_assert_str_eq(cua_group_nccl_problem(), "");
	symbol = function("ncclCommInitAll");
	memcpy(&c->nccl.init_all, &symbol, sizeof(symbol));
	symbol = function("ncclCommDestroy");
	memcpy(&c->nccl.destroy, &symbol, sizeof(symbol));
	symbol = function("ncclCommAbort");
	memcpy(&c->nccl.abort, &symbol, sizeof(symbol));
	for (uint32_t r = 0; r < c->size; r++)
		devices[r] = (int)r;
	ck_assert_int_eq(c->nccl.init_all(c->comms, (int)c->size, devices), 0);
}

static struct crowd *open_crowd(uint32_t size)
{
	struct crowd *c = test_malloc(sizeof(*c));

	memset(c, 0, sizeof(*c));
	c->size = size;
	c->bad = c->away = ~0u;
	init_comms(c);
	c->single = test_context(TEST_BACKEND);
	for (uint32_t r = 0; r < size; r++) {
		c->contexts[r] = rank_context(r);
		ck_assert_cua(cua_group_create_nccl(c->contexts[r], c->comms[r], &c->groups[r]));
		ck_assert_uint_eq(cua_group_size(c->groups[r]), size);
		ck_assert_uint_eq(cua_group_rank(c->groups[r]), r);
		ck_assert_uint_eq(cua_group_local(c->groups[r]), 1);
		ck_assert_cua(cua_group_status(c->groups[r]));
	}
	return c;
}

static void destroy_group(void *arg, uint32_t r)
{
	struct crowd *c = arg;
	const int is_broken = cua_group_status(c->groups[r]) != CUA_OK;

	cua_group_destroy(c->groups[r]);
	/* ncclCommDestroy may wait for a rank that has aborted */
	if (!is_broken)
		ck_assert_int_eq(c->away != ~0u ? c->nccl.abort(c->comms[r])
						: c->nccl.destroy(c->comms[r]),
				 0);
}

static void close_crowd(struct crowd *c)
{
	thread_ranks(c->size, destroy_group, c);
	for (uint32_t r = 0; r < c->size; r++)
		rank_context_destroy(c->contexts[r]);
	cua_context_destroy(c->single);
#if !TEST_CUDA
	ck_assert_uint_eq(fake_nccl_alive(), 0);
#endif
	free(c);
}

static void limit(struct crowd *c, double seconds)
{
	for (uint32_t r = 0; r < c->size; r++)
		ck_assert_cua(cua_group_set_timeout(c->groups[r], seconds));
}

/* ---- reductions ---- */

static void reduce_alone(void *arg, uint32_t r)
{
	struct crowd *c = arg;
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	const void *x = c->x[r];
	void *result = r == c->bad ? NULL : c->results[r];
	double start;

	o.mode = c->mode;
	start = clock_seconds();
	if (r != c->away)
		c->status[r] = cua_group_reduce(c->groups[r], &o, c->op, c->type, &c->n[r], &x,
						NULL, &result);
	c->seconds[r] = clock_seconds() - start;
}

/* Elements that are numbers of the type; the parts end at the cuts of mode FIXED. */
static void cut(struct crowd *c, char *whole, size_t n)
{
	const size_t size = cua_type_size(c->type);

	for (uint32_t r = 0; r < c->size; r++) {
		uint64_t from, to;

		ck_assert_cua(cua_fixed_cut(c->type, n, c->size, r, &from));
		ck_assert_cua(cua_fixed_cut(c->type, n, c->size, r + 1, &to));
		c->n[r] = (size_t)(to - from);
		c->x[r] = test_upload(c->contexts[r], whole + from * size, c->n[r] * size);
	}
}

static void fill(char *whole, enum cua_type type, size_t n, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t number = test_random(seed);
		const double d = ldexp((double)(int64_t)number, (int)(number % 40) - 80);
		const float f = (float)d;

		memcpy(whole + i * cua_type_size(type),
		       type == CUA_F64   ? (const void *)&d
		       : type == CUA_F32 ? (const void *)&f
					 : (const void *)&number,
		       cua_type_size(type));
	}
}

static const struct {
	enum cua_reduce_op op;
	enum cua_type type;
	enum cua_reduce_mode mode;
} reductions[] = {
	{CUA_REDUCE_SUM, CUA_U64, CUA_REDUCE_FAST},    {CUA_REDUCE_MIN, CUA_F32, CUA_REDUCE_FAST},
	{CUA_REDUCE_ARGMAX, CUA_I32, CUA_REDUCE_FAST}, {CUA_REDUCE_SUM, CUA_F32, CUA_REDUCE_FIXED},
	{CUA_REDUCE_SUM, CUA_F64, CUA_REDUCE_FIXED},   {CUA_REDUCE_SUM, CUA_F64, CUA_REDUCE_EXACT}};

/* All ranks have the bits of a single context. */
static void expect_reduction(struct crowd *c, size_t n, uint64_t *seed)
{
	const size_t size = cua_type_size(c->type);
	char *whole = test_malloc(n * size + 1), expected[16];
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	void *uploaded;

	memset(expected, 0, sizeof(expected));
	memset(c->results, 0, sizeof(c->results));
	fill(whole, c->type, n, seed);
	uploaded = test_upload(c->single, whole, n * size);
	o.mode = c->mode;
	ck_assert_cua(cua_reduce(c->single, &o, c->op, c->type, n, uploaded, NULL, expected));
	cut(c, whole, n);
	thread_ranks(c->size, reduce_alone, c);
	for (uint32_t r = 0; r < c->size; r++) {
		ck_assert_cua(c->status[r]);
		ck_assert_mem_eq(c->results[r], expected, sizeof(expected));
		test_free(c->contexts[r], c->x[r]);
	}
	test_free(c->single, uploaded);
	free(whole);
}

START_TEST(reduces)
{
	uint64_t seed = test_seed("reduces");
	const size_t lengths[] = {1, 1000, 40000, 700000};
	const uint32_t size = ranks_of(_i);
	struct crowd *c;

	if (!size)
		return;
	c = open_crowd(size);
	/* with and without the helper thread */
	for (int limited = 0; limited < 2; limited++) {
		limit(c, limited ? 60 : 0);
		for (size_t k = 0; k < COUNT(reductions); k++)
			for (size_t l = 0; l < COUNT(lengths) - (test_quick() ? 1 : 0); l++) {
				c->op = reductions[k].op;
				c->type = reductions[k].type;
				c->mode = reductions[k].mode;
				expect_reduction(c, lengths[l], &seed);
			}
	}
	close_crowd(c);
}
END_TEST

/* ---- sums ---- */

static void sum_alone(void *arg, uint32_t r)
{
	struct crowd *c = arg;
	void *x = c->x[r];

	c->status[r] = cua_group_sum(c->groups[r], c->type, c->n[r], &x);
}

static void expect_sums(struct crowd *c, size_t n, uint64_t *seed)
{
	const size_t size = cua_type_size(c->type);
	char *elements = test_malloc(n * size + 1), *sums = test_malloc(n * size + 1);

	memset(sums, 0, n * size + 1);
	for (uint32_t r = 0; r < c->size; r++) {
		fill(elements, c->type, n, seed);
		for (size_t i = 0; i < n; i++) {
			uint64_t a = 0, b = 0;

			memcpy(&a, sums + i * size, size);
			memcpy(&b, elements + i * size, size);
			a += b;
			memcpy(sums + i * size, &a, size);
		}
		c->n[r] = n;
		c->x[r] = test_upload(c->contexts[r], elements, n * size);
	}
	thread_ranks(c->size, sum_alone, c);
	for (uint32_t r = 0; r < c->size; r++) {
		ck_assert_cua(c->status[r]);
		test_download(c->contexts[r], elements, c->x[r], n * size);
		ck_assert_mem_eq(elements, sums, n * size);
		test_free(c->contexts[r], c->x[r]);
	}
	free(elements);
	free(sums);
}

START_TEST(sums)
{
	uint64_t seed = test_seed("sums");
	const enum cua_type types[] = {CUA_I32, CUA_U32, CUA_I64, CUA_U64};
	const size_t lengths[] = {0, 1, 1000, 300000};
	const uint32_t size = ranks_of(_i);
	struct crowd *c;

	if (!size)
		return;
	c = open_crowd(size);
	for (int limited = 0; limited < 2; limited++) {
		limit(c, limited ? 60 : 0);
		for (size_t k = 0; k < COUNT(types); k++)
			for (size_t l = 0; l < COUNT(lengths) - (test_quick() ? 1 : 0); l++) {
				c->type = types[k];
				expect_sums(c, lengths[l], &seed);
			}
	}
	close_crowd(c);
}
END_TEST

/* ---- sharded maps ---- */

#define KEYS 5000u
#define MOST_PAIRS 5000u

/*
 * The pairs of a round: an update adds each value to its key. Arrays of all ranks are allocated and freed
 * while no rank waits.
 */
struct round {
	size_t n[MOST_RANKS];
	uint64_t keys[MOST_RANKS][MOST_PAIRS], values[MOST_RANKS][MOST_PAIRS];
	void *keys_at[MOST_RANKS], *values_at[MOST_RANKS];
	uint8_t *found_at[MOST_RANKS];
	int erases;
	struct crowd *crowd;
	uint64_t present[KEYS], sums[KEYS]; /* the model */
};

static void change(void *arg, uint32_t r)
{
	struct round *w = arg;
	struct crowd *c = w->crowd;
	const void *keys = w->keys_at[r], *values = w->values_at[r];

	c->status[r] = w->erases ? cua_sharded_map_erase_n(c->maps[r], &w->n[r], &keys, NULL)
				 : cua_sharded_map_update_n(c->maps[r], CUA_UPDATE_ADD, &w->n[r],
							    &keys, &values, NULL);
}

static void find(void *arg, uint32_t r)
{
	struct round *w = arg;
	struct crowd *c = w->crowd;
	const void *keys = w->keys_at[r];
	uint64_t size, expected = 0;

	c->status[r] = cua_sharded_map_find_n(c->maps[r], &w->n[r], &keys, &w->values_at[r],
					      &w->found_at[r]);
	ck_assert_cua(cua_sharded_map_size(c->maps[r], &size));
	for (uint64_t k = 0; k < KEYS; k++)
		expected += w->present[k];
	ck_assert_uint_eq(size, expected);
}

static void upload_round(struct round *w)
{
	for (uint32_t r = 0; r < w->crowd->size; r++) {
		struct cua_context *ctx = w->crowd->contexts[r];

		w->keys_at[r] = test_upload(ctx, w->keys[r], w->n[r] * sizeof(uint64_t));
		w->values_at[r] = test_upload(ctx, w->values[r], w->n[r] * sizeof(uint64_t));
		w->found_at[r] = test_alloc(ctx, w->n[r]);
	}
}

static void free_round(struct round *w)
{
	for (uint32_t r = 0; r < w->crowd->size; r++) {
		struct cua_context *ctx = w->crowd->contexts[r];

		ck_assert_cua(w->crowd->status[r]);
		test_free(ctx, w->keys_at[r]);
		test_free(ctx, w->values_at[r]);
		test_free(ctx, w->found_at[r]);
	}
}

/* Each rank finds its share of all keys. */
static void expect_model(struct round *w)
{
	struct crowd *c = w->crowd;

	memset(w->n, 0, sizeof(w->n));
	for (uint64_t k = 0; k < KEYS; k++) {
		const uint32_t r = (uint32_t)(k % c->size);

		w->keys[r][w->n[r]++] = k;
	}
	upload_round(w);
	thread_ranks(c->size, find, w);
	for (uint32_t r = 0; r < c->size; r++) {
		uint8_t found[KEYS];

		test_download(c->contexts[r], w->values[r], w->values_at[r],
			      w->n[r] * sizeof(uint64_t));
		test_download(c->contexts[r], found, w->found_at[r], w->n[r]);
		for (size_t i = 0; i < w->n[r]; i++) {
			const uint64_t key = w->keys[r][i];

			EXPECT((found[i] != 0) == w->present[key], "key %llu: result %d",
			       (unsigned long long)key, found[i]);
			EXPECT(!found[i] || w->values[r][i] == w->sums[key], "key %llu: value",
			       (unsigned long long)key);
		}
	}
	free_round(w);
}

static void create_map(void *arg, uint32_t r)
{
	struct crowd *c = ((struct round *)arg)->crowd;

	ck_assert_cua(cua_sharded_map_create(c->groups[r], NULL, CUA_U64, CUA_U64, 2 * KEYS,
					     &c->maps[r]));
}

/* A rank may have no pairs, and all pairs may have the same key. */
static void random_round(struct round *w, uint32_t size, uint64_t *seed)
{
	const uint64_t range = test_random(seed) % 5 ? KEYS : 1;

	w->erases = test_random(seed) % 4 == 0;
	for (uint32_t r = 0; r < size; r++)
		w->n[r] = test_random(seed) % 4 ? test_random(seed) % MOST_PAIRS : 0;
	for (uint32_t r = 0; r < size; r++)
		for (size_t i = 0; i < w->n[r]; i++) {
			const uint64_t key = test_random(seed) % range;

			w->keys[r][i] = key;
			w->values[r][i] = test_random(seed);
			w->sums[key] = w->erases ? 0 : w->sums[key] + w->values[r][i];
			w->present[key] = !w->erases;
		}
}

START_TEST(sharded_maps)
{
	uint64_t seed = test_seed("sharded_maps");
	const int rounds = test_scale(4, 20, 100);
	const uint32_t size = ranks_of(_i);
	struct round *w;
	struct crowd *c;

	if (!size)
		return;
	c = open_crowd(size);
	w = test_malloc(sizeof(*w));
	memset(w, 0, sizeof(*w));
	w->crowd = c;
	limit(c, 60);
	thread_ranks(size, create_map, w);
	for (int round = 0; round < rounds; round++) {
		limit(c, round % 2 ? 60 : 0);
		random_round(w, size, &seed);
		upload_round(w);
		thread_ranks(size, change, w);
		free_round(w);
		expect_model(w);
	}
	for (uint32_t r = 0; r < size; r++)
		cua_sharded_map_destroy(c->maps[r]);
	close_crowd(c);
	free(w);
}
END_TEST

/* ---- errors ---- */

static void small_call(struct crowd *c, uint64_t *seed)
{
	char whole[8 * 1000];

	c->op = CUA_REDUCE_SUM;
	c->type = CUA_U64;
	c->mode = CUA_REDUCE_FAST;
	fill(whole, c->type, 1000, seed);
	cut(c, whole, 1000);
}

static void free_call(struct crowd *c)
{
	for (uint32_t r = 0; r < c->size; r++)
		test_free(c->contexts[r], c->x[r]);
}

/* All ranks return the error of a rank, and the next call works. */
START_TEST(bad_arguments)
{
	uint64_t seed = test_seed("bad_arguments");
	const uint32_t size = ranks_of(_i);
	struct crowd *c;

	if (!size)
		return;
	c = open_crowd(size);
	small_call(c, &seed);
	for (uint32_t bad = 0; bad <= size; bad++) {
		c->bad = bad;
		thread_ranks(size, reduce_alone, c);
		for (uint32_t r = 0; r < size; r++) {
			ck_assert_status(c->status[r], bad < size ? CUA_ERROR_NULL : CUA_OK);
			ck_assert_cua(cua_group_status(c->groups[r]));
		}
	}
	free_call(c);
	close_crowd(c);
}
END_TEST

/*
 * A rank stays away, from the first call or from the second. The call of each other rank ends with
 * TIMEOUT soon after its limit, and so do all later calls.
 */
START_TEST(absent_ranks)
{
	uint64_t seed = test_seed("absent_ranks");
	/* the limit of the first call includes the time to connect */
	const double seconds = TEST_BACKEND == CUA_BACKEND_CUDA ? 3 : 0.3;
	const uint32_t size = ranks_of(_i / 2);
	struct crowd *c;

	if (size < 2)
		return;
	c = open_crowd(size);
	small_call(c, &seed);
	if (_i % 2) {
		limit(c, 60);
		thread_ranks(size, reduce_alone, c);
		for (uint32_t r = 0; r < size; r++)
			ck_assert_cua(c->status[r]);
	}
	limit(c, seconds);
	c->away = size / 2;
	for (int again = 0; again < 2; again++) {
		thread_ranks(size, reduce_alone, c);
		for (uint32_t r = 0; r < size; r++)
			if (r != c->away) {
				ck_assert_status(c->status[r], CUA_ERROR_TIMEOUT);
				ck_assert_status(cua_group_status(c->groups[r]), CUA_ERROR_TIMEOUT);
				EXPECT(c->seconds[r] < seconds + 12, "%f seconds", c->seconds[r]);
				EXPECT(again || c->seconds[r] >= seconds * 0.9, "%f seconds",
				       c->seconds[r]);
			}
	}
	free_call(c);
	close_crowd(c);
}
END_TEST

START_TEST(arguments)
{
	struct crowd *c = open_crowd(1);
	struct cua_context *ctx = c->contexts[0];
	struct cua_group *group;

	ck_assert_status(cua_group_create_nccl(NULL, c->comms[0], &group), CUA_ERROR_NULL);
	ck_assert_status(cua_group_create_nccl(ctx, NULL, &group), CUA_ERROR_NULL);
	ck_assert_status(cua_group_create_nccl(ctx, c->comms[0], NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_group_status(NULL), CUA_ERROR_NULL);
#if TEST_CUDA
	{
		struct cua_context *cpu = test_context(CUA_BACKEND_CPU);

		ck_assert_status(cua_group_create_nccl(cpu, c->comms[0], &group),
				 CUA_ERROR_UNSUPPORTED);
		cua_context_destroy(cpu);
	}
	if (ranks_of(1)) {
		struct cua_context *other = rank_context(1);

		ck_assert_status(cua_group_create_nccl(other, c->comms[0], &group),
				 CUA_ERROR_CONTEXT);
		rank_context_destroy(other);
	}
#else
	fake_nccl.device = 1;
	ck_assert_status(cua_group_create_nccl(ctx, c->comms[0], &group), CUA_ERROR_CONTEXT);
	fake_nccl.device = 0;
#endif
	close_crowd(c);
}
END_TEST

#if TEST_CUDA
/* Arrays of pinned and of managed memory, which NCCL reads from the GPU. */
START_TEST(kinds_of_memory)
{
	uint64_t seed = test_seed("kinds_of_memory");
	const uint32_t size = ranks_of(_i);
	const size_t n = 300000;
	uint64_t *elements, *expected;
	struct crowd *c;

	if (!size)
		return;
	c = open_crowd(size);
	c->type = CUA_U64;
	elements = test_malloc(n * sizeof(*elements));
	expected = test_malloc(n * sizeof(*elements));
	memset(expected, 0, n * sizeof(*expected));
	for (uint32_t r = 0; r < size; r++) {
		void *x;

		ck_assert_cuda(cudaSetDevice((int)r));
		if (r % 2)
			ck_assert_cuda(
				cudaMallocManaged(&x, n * sizeof(*elements), cudaMemAttachGlobal));
		else
			ck_assert_cuda(cudaHostAlloc(&x, n * sizeof(*elements),
						     cudaHostAllocMapped | cudaHostAllocPortable));
		c->x[r] = x;
		c->n[r] = n;
		for (size_t i = 0; i < n; i++) {
			((uint64_t *)x)[i] = test_random(&seed);
			expected[i] += ((uint64_t *)x)[i];
		}
	}
	thread_ranks(size, sum_alone, c);
	for (uint32_t r = 0; r < size; r++) {
		ck_assert_cua(c->status[r]);
		ck_assert_mem_eq(c->x[r], expected, n * sizeof(*expected));
		ck_assert_cuda(r % 2 ? cudaFree(c->x[r]) : cudaFreeHost(c->x[r]));
	}
	free(elements);
	free(expected);
	close_crowd(c);
}
END_TEST

/* Streams that are default streams: the calls of NCCL are made in the stream of the calling thread. */
START_TEST(default_streams)
{
	uint64_t seed = test_seed("default_streams");
	const uint32_t size = ranks_of(_i / 2);
	cudaStream_t own[MOST_RANKS];
	struct crowd *c;

	if (!size)
		return;
	c = open_crowd(size);
	limit(c, 60);
	for (uint32_t r = 0; r < size; r++) {
		own[r] = (cudaStream_t)cua_context_stream(c->contexts[r]);
		ck_assert_cua(cua_context_set_stream(
			c->contexts[r],
			(struct CUstream_st *)(_i % 2 ? cudaStreamPerThread : cudaStreamLegacy)));
	}
	c->op = CUA_REDUCE_SUM;
	c->type = CUA_F64;
	c->mode = CUA_REDUCE_EXACT;
	expect_reduction(c, 100000, &seed);
	for (uint32_t r = 0; r < size; r++)
		ck_assert_cua(cua_context_set_stream(c->contexts[r], (struct CUstream_st *)own[r]));
	close_crowd(c);
}
END_TEST
#else
/* ---- with the double of NCCL ---- */

/* A communicator whose calls return before the messages have arrived. */
START_TEST(asynchronous)
{
	uint64_t seed = test_seed("asynchronous");
	struct crowd *c;

	fake_nccl.asynchronous = 1;
	c = open_crowd(3);
	for (int limited = 0; limited < 2; limited++) {
		limit(c, limited ? 60 : 0);
		for (size_t k = 0; k < COUNT(reductions); k++) {
			c->op = reductions[k].op;
			c->type = reductions[k].type;
			c->mode = reductions[k].mode;
			expect_reduction(c, 3000, &seed);
		}
		c->type = CUA_U64;
		expect_sums(c, 1000, &seed);
	}
	limit(c, 0.2);
	small_call(c, &seed);
	c->away = 1;
	thread_ranks(3, reduce_alone, c);
	ck_assert_status(c->status[0], CUA_ERROR_TIMEOUT);
	ck_assert_status(c->status[2], CUA_ERROR_TIMEOUT);
	free_call(c);
	close_crowd(c);
}
END_TEST

/* Each call of NCCL fails in turn, on each rank. The other ranks reach their limits. */
START_TEST(failing_calls)
{
	uint64_t seed = test_seed("failing_calls");
	struct crowd *c = open_crowd(3);
	unsigned calls;

	small_call(c, &seed);
	thread_ranks(3, reduce_alone, c);
	calls = fake_nccl_calls(c->comms[0]);
	ck_assert_uint_ge(calls, 4);
	free_call(c);
	close_crowd(c);
	for (unsigned call = 0; call < calls; call++) {
		const uint32_t bad = call % 3;

		c = open_crowd(3);
		limit(c, 0.2);
		small_call(c, &seed);
		fake_nccl_fail(c->comms[bad], call);
		thread_ranks(3, reduce_alone, c);
		ck_assert_status(c->status[bad], CUA_ERROR_SYSTEM);
		for (uint32_t r = 0; r < 3; r++)
			ck_assert(r == bad || c->status[r] == CUA_ERROR_TIMEOUT ||
				  call + 1 == calls);
		c->away = bad; /* groups of ranks that saw no error */
		free_call(c);
		close_crowd(c);
	}
}
END_TEST

/* The call and cua_group_destroy return, also if ncclCommAbort does not. */
START_TEST(hanging_aborts)
{
	uint64_t seed = test_seed("hanging_aborts");
	struct crowd *c = open_crowd(2);
	double start;

	fake_nccl.abort_hangs = 1;
	limit(c, 0.2);
	small_call(c, &seed);
	c->away = 1;
	start = clock_seconds();
	reduce_alone(c, 0);
	ck_assert_status(c->status[0], CUA_ERROR_TIMEOUT);
	cua_group_destroy(c->groups[0]);
	EXPECT(clock_seconds() - start < 10, "%f seconds", clock_seconds() - start);
	cua_group_destroy(c->groups[1]);
	ck_assert_int_eq(c->nccl.destroy(c->comms[1]), 0);
	free_call(c);
	for (uint32_t r = 0; r < 2; r++)
		rank_context_destroy(c->contexts[r]);
	cua_context_destroy(c->single);
	free(c);
}
END_TEST

/* The functions that the library calls on a GPU, of messages of random lengths, many of them empty. */
struct traffic {
	struct crowd *crowd;
	size_t bytes[MOST_RANKS][MOST_RANKS]; /* from, to */
	int on_device;
};

static char byte_of(uint32_t from, uint32_t to, size_t i)
{
	return (char)(from * 101 + to * 7 + i * 13 + i / 251);
}

static void exchange_alone(void *arg, uint32_t r)
{
	const struct traffic *t = arg;
	const uint32_t size = t->crowd->size;
	void *self = t->crowd->groups[r]->transport.self;
	char *sent[MOST_RANKS], *received[MOST_RANKS];
	const void *send[MOST_RANKS];
	void *receive[MOST_RANKS];
	size_t send_bytes[MOST_RANKS], receive_bytes[MOST_RANKS];

	for (uint32_t k = 0; k < size; k++) {
		send_bytes[k] = t->bytes[r][k];
		receive_bytes[k] = t->bytes[k][r];
		send[k] = sent[k] = send_bytes[k] ? test_malloc(send_bytes[k]) : NULL;
		receive[k] = received[k] = receive_bytes[k] ? test_malloc(receive_bytes[k]) : NULL;
		for (size_t i = 0; i < send_bytes[k]; i++)
			sent[k][i] = byte_of(r, k, i);
	}
	ck_assert_cua((t->on_device ? exchange_device : exchange)(self, send, send_bytes, receive,
								  receive_bytes));
	for (uint32_t k = 0; k < size; k++) {
		for (size_t i = 0; i < receive_bytes[k]; i++)
			EXPECT(received[k][i] == byte_of(k, r, i), "byte %zu", i);
		free(sent[k]);
		free(received[k]);
	}
}

static void sum_on_device(void *arg, uint32_t r)
{
	struct crowd *c = arg;

	c->status[r] = sum_device(c->groups[r]->transport.self, CUA_I32, c->x[r], c->n[r]);
}

START_TEST(device_functions)
{
	uint64_t seed = test_seed("device_functions");
	const uint32_t size = ranks_of(_i);
	int32_t x[MOST_RANKS][100];
	struct crowd *c;
	struct traffic t;

	if (!size)
		return;
	c = open_crowd(size);
	t.crowd = c;
	for (int round = 0; round < 30; round++) {
		t.on_device = round % 2;
		limit(c, round % 3 ? 60 : 0);
		for (uint32_t i = 0; i < size; i++)
			for (uint32_t j = 0; j < size; j++)
				t.bytes[i][j] =
					test_random(&seed) % 2 ? 0 : test_random(&seed) % 3000;
		thread_ranks(size, exchange_alone, &t);
	}
	for (uint32_t r = 0; r < size; r++) {
		for (int i = 0; i < 100; i++)
			x[r][i] = (int32_t)r * 1000 - i;
		c->x[r] = (char *)x[r];
		c->n[r] = 100;
	}
	thread_ranks(size, sum_on_device, c);
	for (uint32_t r = 0; r < size; r++)
		for (int i = 0; i < 100; i++)
			ck_assert_int_eq(x[r][i],
					 (int)(size * (size - 1) / 2) * 1000 - i * (int)size);
	close_crowd(c);
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("group_nccl");
	TCase *tc = tcase_create("group_nccl");
	const int n = (int)COUNT(sizes);
	const char *problem = cua_group_nccl_problem();

	if (*problem) {
		printf("skipped: %s\n", problem);
		return 77;
	}
	tcase_set_timeout(tc, TEST_BACKEND == CUA_BACKEND_CUDA ? 120 : 300);
	tcase_add_loop_test(tc, reduces, 0, n);
	tcase_add_loop_test(tc, sums, 0, n);
	tcase_add_loop_test(tc, sharded_maps, 0, n);
	tcase_add_loop_test(tc, bad_arguments, 0, n);
	tcase_add_loop_test(tc, absent_ranks, 0, 2 * n);
	tcase_add_test(tc, arguments);
#if TEST_CUDA
	tcase_add_loop_test(tc, kinds_of_memory, 0, n);
	tcase_add_loop_test(tc, default_streams, 0, 2 * n);
#else
	tcase_add_test(tc, asynchronous);
	tcase_add_test(tc, failing_calls);
	tcase_add_test(tc, hanging_aborts);
	tcase_add_loop_test(tc, device_functions, 0, n);
#endif
	suite_add_tcase(suite, tc);
	return test_run(suite, TEST_BACKEND);
}
