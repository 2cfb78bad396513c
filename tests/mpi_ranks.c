/* SPDX-License-Identifier: MIT */
/*
 * A process of a group by MPI, for check_mpi.sh.
 *
 * results SEED   random reductions, sums and calls of a sharded map, against a context that has the data
 *                of all ranks
 * errors         all ranks return the error of a single rank
 * away           the last rank does not call: the other ranks return CUA_ERROR_TIMEOUT
 * dead           the last rank is killed: the other ranks return an error
 */
#include <cuatomic.h>
#include <cuatomic/mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition);     \
			fflush(stderr);                                                            \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)
#define EXPECT(call, wanted)                                                                       \
	do {                                                                                       \
		const enum cua_status got_ = (call);                                               \
                                                                                                   \
		if (got_ != (wanted))                                                              \
			fprintf(stderr, "rank %d: %s\n", rank, cua_status_name(got_));             \
		NEED(got_ == (wanted));                                                            \
	} while (0)

static int rank, size;
static uint64_t state;
static struct cua_context *ctx;
static struct cua_group *group;

/* The same numbers on all ranks. */
static uint64_t next(void)
{
	state += 0x9e3779b97f4a7c15;
	return cua_hash_u64(state, 1);
}

static void open_group(void)
{
	EXPECT(cua_context_create(CUA_BACKEND_CPU, 0, &ctx), CUA_OK);
	EXPECT(cua_context_set_threads(ctx, 1), CUA_OK);
	EXPECT(cua_group_create_mpi(ctx, MPI_COMM_WORLD, &group), CUA_OK);
	NEED(cua_group_size(group) == (uint32_t)size);
	NEED(cua_group_rank(group) == (uint32_t)rank);
	NEED(cua_group_local(group) == 1);
}

static void close_group(void)
{
	cua_group_destroy(group);
	cua_context_destroy(ctx);
}

/* ---- results ---- */

enum { MOST = 60000 };
static double x[MOST];

/* Every rank makes the whole array, and reduces it alone, too. */
static void reduce_some(void)
{
	static const enum cua_reduce_op ops[] = {CUA_REDUCE_SUM, CUA_REDUCE_MAX, CUA_REDUCE_ARGMIN,
						 CUA_REDUCE_VARIANCE};
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	const enum cua_reduce_op op = ops[next() % 4];
	const size_t n = next() % 5 ? next() % MOST : next() % 9;
	uint64_t got[2] = {0}, expected[2] = {0}, first = 0, end = n;
	const void *part;
	void *result = got;
	size_t length;

	for (size_t i = 0; i < n; i++)
		x[i] = (double)(int64_t)next() * (next() % 2 ? 0x1p-40 : 1);
	o.mode = op == CUA_REDUCE_SUM && next() % 2 ? CUA_REDUCE_EXACT : CUA_REDUCE_FIXED;
	for (int r = 0; r < size; r++) {
		uint64_t cut;

		EXPECT(cua_fixed_cut(CUA_F64, n, (uint32_t)size, (uint32_t)r + 1, &cut), CUA_OK);
		if (o.mode == CUA_REDUCE_EXACT)
			cut = r + 1 < size ? end + next() % (n - end + 1) : n;
		if (o.mode == CUA_REDUCE_EXACT && r == 0 && size > 1)
			cut = next() % (n + 1);
		if (r < rank)
			first = cut;
		if (r == rank)
			length = cut - first;
		end = cut;
	}
	part = x + first;
	EXPECT(cua_group_reduce(group, &o, op, CUA_F64, &length, &part, NULL, &result), CUA_OK);
	EXPECT(cua_reduce(ctx, &o, op, CUA_F64, n, x, NULL, expected), CUA_OK);
	NEED(!memcmp(got, expected, sizeof(got)));
}

static void sum_some(void)
{
	static uint64_t words[MOST], expected[MOST];
	const size_t n = next() % 5 ? next() % MOST : next() % 9;
	const int narrow = next() % 2;
	void *array = words;

	memset(expected, 0, sizeof(expected));
	for (int r = 0; r < size; r++)
		for (size_t i = 0; i < n; i++) {
			const uint64_t word = next();
			uint32_t *halves = (uint32_t *)expected;

			if (r == rank && narrow)
				((uint32_t *)words)[i] = (uint32_t)word;
			else if (r == rank)
				words[i] = word;
			if (narrow)
				halves[i] += (uint32_t)word;
			else
				expected[i] += word;
		}
	EXPECT(cua_group_sum(group, narrow ? CUA_I32 : CUA_U64, n, &array), CUA_OK);
	NEED(!memcmp(words, expected, n * (narrow ? 4 : 8)));
}

static struct cua_sharded_map *map;
static struct cua_hashmap *whole;

/* Every rank makes the keys of all ranks, and has a map of its own with all of them. */
static void map_some(void)
{
	static uint64_t keys[MOST], values[MOST], answers[MOST], expected[MOST];
	static uint8_t found[MOST], wanted[MOST];
	const size_t n = next() % (MOST / (size_t)size);
	const size_t all = n * (size_t)size, mine = n * (size_t)rank;
	const void *own = keys + mine, *own_values = values + mine;
	void *to = answers + mine;
	uint8_t *flags = found + mine;
	uint64_t held, total;

	for (size_t i = 0; i < all; i++) {
		keys[i] = next() % 30000;
		values[i] = next();
	}
	EXPECT(cua_sharded_map_update_n(map, CUA_UPDATE_ADD, &n, &own, &own_values, NULL), CUA_OK);
	EXPECT(cua_hashmap_update_n(whole, CUA_UPDATE_ADD, all, keys, values, NULL), CUA_OK);
	for (size_t i = 0; i < all; i++)
		keys[i] = next() % 30000;
	if (next() % 2) {
		EXPECT(cua_sharded_map_erase_n(map, &n, &own, NULL), CUA_OK);
		EXPECT(cua_hashmap_erase_n(whole, all, keys, NULL), CUA_OK);
	}
	for (size_t i = 0; i < all; i++) {
		keys[i] = next() % 30000;
		answers[i] = expected[i] = i;
	}
	EXPECT(cua_sharded_map_find_n(map, &n, &own, &to, &flags), CUA_OK);
	EXPECT(cua_hashmap_find_n(whole, all, keys, expected, wanted), CUA_OK);
	NEED(!memcmp(found + mine, wanted + mine, n));
	NEED(!memcmp(answers + mine, expected + mine, n * sizeof(*answers)));
	EXPECT(cua_sharded_map_size(map, &held), CUA_OK);
	EXPECT(cua_hashmap_size(whole, &total), CUA_OK);
	NEED(held == total);
}

static void results(const char *seed)
{
	state = strtoull(seed, NULL, 0);
	open_group();
	EXPECT(cua_group_set_timeout(group, 600), CUA_OK);
	EXPECT(cua_sharded_map_create(group, NULL, CUA_U64, CUA_U64, 40000, &map), CUA_OK);
	EXPECT(cua_hashmap_create(ctx, NULL, CUA_U64, CUA_U64, 40000, &whole), CUA_OK);
	for (int round = 0; round < 40; round++) {
		reduce_some();
		sum_some();
		map_some();
	}
	cua_sharded_map_destroy(map);
	EXPECT(cua_hashmap_destroy(whole), CUA_OK);
	close_group();
}

/* ---- errors ---- */

static void errors(void)
{
	struct cua_group *none = NULL;
	double one = 1, sum = -1;
	const void *part = &one;
	void *result = &sum;
	size_t n = 1;

	EXPECT(cua_context_create(CUA_BACKEND_CPU, 0, &ctx), CUA_OK);
	EXPECT(cua_group_create_mpi(ctx, MPI_COMM_NULL, &none), CUA_ERROR_VALUE);
	for (int bad = 0; bad < size; bad++) {
		EXPECT(cua_group_create_mpi(rank == bad ? NULL : ctx, MPI_COMM_WORLD, &none),
		       CUA_ERROR_NULL);
		EXPECT(cua_group_create_mpi(ctx, MPI_COMM_WORLD, rank == bad ? NULL : &none),
		       CUA_ERROR_NULL);
	}
	NEED(!none);
	EXPECT(cua_group_create_mpi(ctx, MPI_COMM_WORLD, &group), CUA_OK);
	EXPECT(cua_group_set_timeout(group, -1), CUA_ERROR_VALUE);
	for (int bad = 0; bad < size; bad++) {
		part = rank == bad ? NULL : &one;
		EXPECT(cua_group_reduce(group, NULL, CUA_REDUCE_SUM, CUA_F64, &n, &part, NULL,
					&result),
		       CUA_ERROR_NULL);
		part = &one;
		EXPECT(cua_group_reduce(group, NULL, rank == bad ? CUA_REDUCE_MAX : CUA_REDUCE_SUM,
					CUA_F64, &n, &part, NULL, &result),
		       size > 1 ? CUA_ERROR_VALUE : CUA_OK);
	}
	EXPECT(cua_group_reduce(group, NULL, CUA_REDUCE_SUM, CUA_F64, &n, &part, NULL, &result),
	       CUA_OK);
	NEED(sum == size);
	close_group();
}

/* ---- ranks that do not answer ---- */

static enum cua_status reduce_once(void)
{
	const double one = 1;
	const void *part = &one;
	double sum;
	void *result = &sum;
	size_t n = 1;

	return cua_group_reduce(group, NULL, CUA_REDUCE_SUM, CUA_F64, &n, &part, NULL, &result);
}

static void away(void)
{
	open_group();
	EXPECT(reduce_once(), CUA_OK);
	EXPECT(cua_group_set_timeout(group, 0.5), CUA_OK);
	if (rank + 1 < size) {
		const enum cua_status status = reduce_once();

		/* the first rank at the limit tells the others */
		NEED(status == CUA_ERROR_TIMEOUT || status == CUA_ERROR_SYSTEM);
		EXPECT(reduce_once(), status);
		MPI_Barrier(MPI_COMM_WORLD);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		EXPECT(reduce_once(), CUA_ERROR_SYSTEM);
	}
	close_group();
}

/* MPI_Finalize would wait for the rank that is gone. */
static void dead(void)
{
	open_group();
	EXPECT(reduce_once(), CUA_OK);
	EXPECT(cua_group_set_timeout(group, 2), CUA_OK);
	if (rank + 1 == size)
		raise(SIGKILL);
	NEED(reduce_once() < 0);
	close_group();
	printf("rank %d goes on\n", rank);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct cua_group *none = NULL;
	const char *mode = argc > 1 ? argv[1] : "";

	EXPECT(cua_group_create_mpi(NULL, MPI_COMM_WORLD, &none), CUA_ERROR_UNSUPPORTED);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!strcmp(mode, "results") && argc > 2)
		results(argv[2]);
	else if (!strcmp(mode, "errors"))
		errors();
	else if (!strcmp(mode, "away"))
		away();
	else if (!strcmp(mode, "dead"))
		dead();
	else
		NEED(!"mpi_ranks results SEED | errors | away | dead");
	MPI_Finalize();
	EXPECT(cua_group_create_mpi(NULL, MPI_COMM_WORLD, &none), CUA_ERROR_UNSUPPORTED);
	return 0;
}
