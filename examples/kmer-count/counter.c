/* SPDX-License-Identifier: MIT */
/*
 * Counts batches of k-mers in a hash map from k-mer to count. The map grows when it is full. Several
 * ranks count in sharded.c instead.
 */
#include <stdlib.h>

#include "kmer-count.h"

/* Maximum load in percent. Above it, probes get long. */
#define LOAD_MAX 80u

static void check(const struct counter *c, enum cua_status status, const char *what)
{
	if (status == CUA_ERROR_CUDA)
		die("%s: %s (CUDA error %d)", what, cua_strerror(status),
		    cua_context_cuda_error(c->ctx));
	if (status != CUA_OK)
		die("%s: %s", what, cua_strerror(status));
}

static void *backend_alloc(const struct counter *c, uint64_t n, size_t size)
{
	void *p;

	check(c, n > SIZE_MAX ? CUA_ERROR_SIZE : cua_alloc(c->ctx, (size_t)n, size, &p), "memory");
	return p;
}

static uint64_t map_capacity(const struct counter *c)
{
	uint64_t capacity;

	check(c, cua_hashmap_capacity(c->map, &capacity), "capacity");
	return capacity;
}

/* The number of distinct k-mers. */
static uint64_t map_size(const struct counter *c)
{
	uint64_t size;

	check(c, cua_hashmap_size(c->map, &size), "size");
	return size;
}

static void grow(struct counter *c, uint64_t capacity)
{
	check(c, cua_hashmap_resize(c->map, capacity), "growing the table");
	c->growths++;
}

void counter_open(struct counter *c, uint32_t ranks, enum cua_backend backend, unsigned threads,
		  uint64_t capacity, size_t batch)
{
	enum cua_status status;

	if (ranks > 1) {
		sharded_open(&c->sharded, ranks, backend, threads, capacity, batch);
		return;
	}
	status = cua_context_create(backend, 0, &c->ctx);
	if (status)
		die("%s: %s", backend == CUA_BACKEND_CUDA ? "CUDA" : "starting",
		    cua_strerror(status));
	if (cua_context_backend(c->ctx) == CUA_BACKEND_CPU)
		check(c, cua_context_set_threads(c->ctx, threads), "threads");
	check(c, cua_hashmap_create(c->ctx, NULL, CUA_U64, CUA_U64, capacity, &c->map),
	      "table of k-mers");
	c->batch = batch;
	c->keys = (uint64_t *)backend_alloc(c, batch, sizeof(*c->keys));
	c->results = (uint8_t *)backend_alloc(c, batch, sizeof(*c->results));
	c->host_results = (uint8_t *)must_alloc(batch, sizeof(*c->host_results));
}

/*
 * Adds 1 to the counts of n keys. Keys that found the map full are moved to the front;
 * returns their number.
 */
static size_t add_one(struct counter *c, uint64_t *keys, size_t n)
{
	static const uint64_t one = 1;
	enum cua_status status;
	size_t n_full = 0;

	check(c, cua_copy(c->ctx, c->keys, keys, n * sizeof(*keys)), "copying k-mers");
	check(c, cua_hashmap_update_value_n(c->map, CUA_UPDATE_ADD, n, c->keys, &one, c->results),
	      "counting");
	/* the status stays FULL once a call has found the map full */
	status = cua_hashmap_status(c->map);
	if (status == CUA_OK)
		return 0;
	if (status != CUA_ERROR_FULL)
		check(c, status, "counting");
	check(c, cua_copy(c->ctx, c->host_results, c->results, n * sizeof(*c->results)),
	      "copying results");
	for (size_t i = 0; i < n; i++) {
		if (c->host_results[i] == CUA_HASHMAP_FULL)
			keys[n_full++] = keys[i];
	}
	return n_full;
}

void counter_add(struct counter *c, uint64_t *keys, size_t n)
{
	if (c->sharded.ranks) {
		sharded_add(&c->sharded, keys, n);
		return;
	}
	while ((n = add_one(c, keys, n)) > 0) {
		uint64_t capacity = map_capacity(c);

		/* room for all n keys, though many may be equal */
		grow(c, capacity + (n > capacity ? n : capacity));
	}
	if (map_size(c) * 100 > map_capacity(c) * LOAD_MAX)
		grow(c, 2 * map_capacity(c));
}

static uint64_t *to_host(struct counter *c, uint64_t *p, uint64_t n)
{
	uint64_t *host = (uint64_t *)must_alloc(n, sizeof(*host));

	check(c, cua_copy(c->ctx, host, p, (size_t)n * sizeof(*host)), "copying the table");
	check(c, cua_free(c->ctx, p), "memory");
	return host;
}

uint64_t counter_read(struct counter *c, uint64_t **keys, uint64_t **counts)
{
	uint64_t n, *backend_keys, *backend_counts;

	if (c->sharded.ranks)
		return sharded_read(&c->sharded, keys, counts);
	n = map_size(c);
	backend_keys = (uint64_t *)backend_alloc(c, n, sizeof(*backend_keys));
	backend_counts = (uint64_t *)backend_alloc(c, n, sizeof(*backend_counts));
	check(c,
	      cua_hashmap_retrieve(c->map, CUA_HASHMAP_SORTED, n, backend_keys, backend_counts, &n),
	      "reading the table");
	*keys = to_host(c, backend_keys, n);
	*counts = to_host(c, backend_counts, n);
	return n;
}

enum cua_backend counter_backend(const struct counter *c)
{
	return cua_context_backend(c->sharded.ranks ? c->sharded.contexts[0] : c->ctx);
}

unsigned counter_growths(const struct counter *c)
{
	return c->sharded.ranks ? c->sharded.growths : c->growths;
}

void counter_close(struct counter *c)
{
	if (c->sharded.ranks) {
		sharded_close(&c->sharded);
		return;
	}
	free(c->host_results);
	cua_free(c->ctx, c->keys);
	cua_free(c->ctx, c->results);
	cua_hashmap_destroy(c->map);
	cua_context_destroy(c->ctx);
}
