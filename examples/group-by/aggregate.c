/* SPDX-License-Identifier: MIT */
/*
 * A key of text is hashed to 128 bits under random seeds. cua_unique finds the distinct hashes, and
 * the group of each row. Then every row's key is compared with the key of its group's first row. If
 * two keys share a hash, all is repeated under other seeds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "group-by.h"

#define SEEDS 8
/* A test sets it to hash to 2 bits under the first seeds, so that keys share hashes. */
#ifndef WEAK_SEEDS
#define WEAK_SEEDS 0
#endif

static void check(const struct cua_context *ctx, enum cua_status status, const char *what)
{
	if (status == CUA_ERROR_CUDA)
		die("%s: %s (CUDA error %d)", what, cua_strerror(status),
		    cua_context_cuda_error(ctx));
	if (status != CUA_OK)
		die("%s: %s", what, cua_strerror(status));
}

/* ---- arrays in the backend's memory ---- */

static void *backend_alloc(struct cua_context *ctx, uint64_t n, size_t size)
{
	void *p;

	check(ctx, n > SIZE_MAX ? CUA_ERROR_SIZE : cua_alloc(ctx, (size_t)n, size, &p), "memory");
	return p;
}

/* The CPU backend uses the host's array itself. */
static void *to_backend(struct cua_context *ctx, void *host, uint64_t bytes)
{
	void *p;

	if (cua_context_backend(ctx) == CUA_BACKEND_CPU)
		return host;
	p = backend_alloc(ctx, bytes, 1);
	check(ctx, cua_copy(ctx, p, host, bytes), "copying rows");
	return p;
}

static void free_copy(struct cua_context *ctx, void *p)
{
	if (cua_context_backend(ctx) != CUA_BACKEND_CPU)
		check(ctx, cua_free(ctx, p), "memory");
}

/* Copies n elements to memory from malloc, and frees them. */
static void *to_host(struct cua_context *ctx, void *p, uint64_t n, size_t size)
{
	void *host = must_alloc(n, size);

	check(ctx, cua_copy(ctx, host, p, n * size), "copying results");
	check(ctx, cua_free(ctx, p), "memory");
	return host;
}

/* ---- the keys ---- */

static struct cua_u128 *hash_keys(const struct rows *r, int seed_number)
{
	struct cua_u128 *keys = (struct cua_u128 *)must_alloc(r->n, sizeof(*keys));
	uint64_t seed[2], length;

	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		die("random seed: %s", strerror(errno));
	for (uint64_t i = 0; i < r->n; i++) {
		const char *key = rows_key(r, i, &length);

		keys[i].lo = cua_hash_bytes(key, length, seed[0]);
		keys[i].hi = cua_hash_bytes(key, length, seed[1]);
		if (seed_number < WEAK_SEEDS) {
			keys[i].lo &= 3;
			keys[i].hi = 0;
		}
	}
	return keys;
}

static int same_key(const struct rows *r, uint64_t a, uint64_t b)
{
	uint64_t m, n;
	const char *x = rows_key(r, a, &m), *y = rows_key(r, b, &n);

	return m == n && !memcmp(x, y, n);
}

/*
 * Finds the groups of n keys. *first becomes the first row of each, in memory from malloc. *inverse
 * becomes the group of each row, unless inverse is NULL.
 */
static uint64_t find_groups(struct cua_context *ctx, enum cua_type type, uint64_t n,
			    const void *keys, uint64_t **first, uint64_t **inverse)
{
	struct cua_unique_options options = CUA_UNIQUE_OPTIONS_INIT;
	uint64_t groups;

	options.first = backend_alloc(ctx, n, sizeof(uint64_t));
	if (inverse)
		options.inverse = backend_alloc(ctx, n, sizeof(uint64_t));
	check(ctx, cua_unique(ctx, &options, type, n, keys, n, NULL, &groups), "distinct keys");
	*first = (uint64_t *)to_host(ctx, options.first, groups, sizeof(uint64_t));
	if (inverse)
		*inverse = (uint64_t *)to_host(ctx, options.inverse, n, sizeof(uint64_t));
	return groups;
}

/*
 * Makes the keys of text and finds their groups. Returns the keys in the backend's memory; *host is
 * for free.
 */
static void *find_text(struct cua_context *ctx, const struct rows *r, uint64_t *groups,
		       uint64_t **first, void **host)
{
	for (int seed = 0; seed < SEEDS; seed++) {
		struct cua_u128 *hashes = hash_keys(r, seed);
		void *keys = to_backend(ctx, hashes, r->n * sizeof(*hashes));
		uint64_t *inverse, row = 0;

		*groups = find_groups(ctx, CUA_U128, r->n, keys, first, &inverse);
		while (row < r->n && same_key(r, row, (*first)[inverse[row]]))
			row++;
		free(inverse);
		*host = hashes;
		if (row == r->n)
			return keys;
		free_copy(ctx, keys);
		free(hashes);
		free(*first);
	}
	die("keys share a hash under %d seeds", SEEDS);
}

/* ---- the values ---- */

enum result { COUNT, SUM, MEAN, LEAST, MOST, VARIANCE, RESULTS };

static void combine(struct cua_context *ctx, const struct rows *r, enum cua_type type,
		    const void *keys, uint64_t groups, void *results[RESULTS])
{
	static const enum cua_aggregate_op op[RESULTS] = {
		CUA_AGGREGATE_COUNT, CUA_AGGREGATE_SUM, CUA_AGGREGATE_MEAN,
		CUA_AGGREGATE_MIN,   CUA_AGGREGATE_MAX, CUA_AGGREGATE_VARIANCE};
	void *values = to_backend(ctx, r->value, r->n * sizeof(*r->value));
	void *valid = to_backend(ctx, r->valid, r->n * sizeof(*r->valid));
	struct cua_aggregate a[RESULTS];
	uint64_t found;

	memset(a, 0, sizeof(a));
	for (int i = 0; i < RESULTS; i++) {
		a[i].op = op[i];
		a[i].type = CUA_F64;
		a[i].values = values;
		a[i].valid = (const uint8_t *)valid;
		a[i].out = backend_alloc(ctx, groups, sizeof(double));
	}
	a[VARIANCE].ddof = 1;
	check(ctx, cua_group_by(ctx, NULL, type, r->n, keys, a, RESULTS, groups, NULL, &found),
	      "groups");
	if (found != groups)
		die("%" PRIu64 " distinct keys, but %" PRIu64 " groups", groups, found);
	free_copy(ctx, values);
	free_copy(ctx, valid);
	for (int i = 0; i < RESULTS; i++)
		results[i] = to_host(ctx, a[i].out, groups, sizeof(double));
}

/* Both calls have the groups in the order of their first rows. Sorts them by key. */
static void sort_groups(const struct rows *r, uint64_t *first, void *results[RESULTS],
			struct groups *groups)
{
	const uint64_t n = groups->n;
	/* the group that begins with a row */
	uint64_t *at = (uint64_t *)must_alloc(r->n, sizeof(*at));

	groups->group = (struct group *)must_alloc(n, sizeof(*groups->group));
	for (uint64_t g = 0; g < n; g++)
		at[first[g]] = g;
	rows_sort(r, first, n);
	for (uint64_t i = 0; i < n; i++) {
		struct group *group = &groups->group[i];
		const uint64_t g = at[first[i]];

		group->first = first[i];
		group->count = ((uint64_t *)results[COUNT])[g];
		group->sum = ((double *)results[SUM])[g];
		group->mean = ((double *)results[MEAN])[g];
		group->least = ((double *)results[LEAST])[g];
		group->most = ((double *)results[MOST])[g];
		group->variance = ((double *)results[VARIANCE])[g];
	}
	free(at);
}

void aggregate(const struct rows *r, enum cua_backend backend, unsigned threads,
	       struct groups *groups)
{
	const enum cua_type type = r->numbers ? CUA_F64 : CUA_U128;
	void *results[RESULTS], *keys, *host = NULL;
	struct cua_context *ctx;
	uint64_t *first;
	enum cua_status status = cua_context_create(backend, 0, &ctx);

	if (status)
		die("%s: %s", backend == CUA_BACKEND_CUDA ? "CUDA" : "starting",
		    cua_strerror(status));
	if (cua_context_backend(ctx) == CUA_BACKEND_CPU)
		check(ctx, cua_context_set_threads(ctx, threads), "threads");
	if (r->numbers) {
		keys = to_backend(ctx, r->number, r->n * sizeof(*r->number));
		groups->n = find_groups(ctx, type, r->n, keys, &first, NULL);
	} else {
		keys = find_text(ctx, r, &groups->n, &first, &host);
	}
	combine(ctx, r, type, keys, groups->n, results);
	free_copy(ctx, keys);
	free(host);
	cua_context_destroy(ctx);
	sort_groups(r, first, results, groups);
	for (int i = 0; i < RESULTS; i++)
		free(results[i]);
	free(first);
}
