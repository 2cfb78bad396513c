/* SPDX-License-Identifier: MIT */
/*
 * Counts batches of k-mers by several ranks in a sharded map: each k-mer has an owner, and the
 * owner's shard has its count. A batch is divided evenly among the ranks. The batch has whole
 * k-mers, so no cut loses a k-mer or counts it twice.
 *
 * All ranks are in this process, so a call passes the arrays of all ranks. In a program of several
 * processes (cuatomic/mpi.h), each process makes the same calls with the arrays of its own rank.
 */
#include <stdlib.h>
#include <string.h>

#include "kmer-count.h"

/* Maximum load of a shard in percent. Above it, probes get long. */
#define LOAD_MAX 80u

static void check(const struct sharded *s, enum cua_status status, const char *what)
{
	int error = 0;

	for (uint32_t r = 0; r < s->ranks && !error; r++)
		error = cua_context_cuda_error(s->contexts[r]);
	if (status == CUA_ERROR_CUDA)
		die("%s: %s (CUDA error %d)", what, cua_strerror(status), error);
	if (status != CUA_OK)
		die("%s: %s", what, cua_strerror(status));
}

static uint64_t *rank_alloc(const struct sharded *s, uint32_t rank, uint64_t n)
{
	void *p;

	check(s, cua_alloc(s->contexts[rank], (size_t)n, sizeof(uint64_t), &p), "memory");
	return (uint64_t *)p;
}

/* The slots of all shards. */
static uint64_t slots(const struct sharded *s)
{
	uint64_t sum = 0, n;

	for (uint32_t r = 0; r < s->ranks; r++) {
		check(s, cua_hashmap_capacity(cua_sharded_map_shard(s->map, r), &n), "capacity");
		sum += n;
	}
	return sum;
}

/* Rank r has GPU r, modulo the number of GPUs, or a context of the CPU. */
static void open_contexts(struct sharded *s, uint32_t ranks, enum cua_backend backend,
			  unsigned threads)
{
	int gpus;

	check(s, cua_device_count(CUA_BACKEND_CUDA, &gpus), "devices");
	if (backend == CUA_BACKEND_AUTO)
		backend = gpus ? CUA_BACKEND_CUDA : CUA_BACKEND_CPU;
	for (; s->ranks < ranks; s->ranks++) {
		const int gpu = gpus ? (int)s->ranks % gpus : 0;
		struct cua_context **ctx = &s->contexts[s->ranks];
		enum cua_status status =
			cua_context_create(backend, backend == CUA_BACKEND_CUDA ? gpu : 0, ctx);

		if (status)
			die("%s: %s", backend == CUA_BACKEND_CUDA ? "CUDA" : "starting",
			    cua_strerror(status));
		if (backend == CUA_BACKEND_CPU)
			check(s, cua_context_set_threads(*ctx, threads), "threads");
	}
}

void sharded_open(struct sharded *s, uint32_t ranks, enum cua_backend backend, unsigned threads,
		  uint64_t capacity, size_t batch)
{
	static const uint64_t one = 1;
	const size_t most = batch / ranks + 1;
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;

	open_contexts(s, ranks, backend, threads);
	check(s, cua_group_create_devices(s->ranks, s->contexts, &s->group), "group");
	options.grow_percent = LOAD_MAX;
	check(s, cua_sharded_map_create(s->group, &options, CUA_U64, CUA_U64, capacity, &s->map),
	      "table of k-mers");
	for (uint32_t r = 0; r < s->ranks; r++) {
		s->keys[r] = rank_alloc(s, r, most);
		s->ones[r] = rank_alloc(s, r, most);
		check(s, cua_fill(s->contexts[r], s->ones[r], most, sizeof(one), &one), "memory");
	}
	s->slots = slots(s);
}

void sharded_add(struct sharded *s, const uint64_t *kmers, size_t n)
{
	const void *keys[RANKS_MAX], *ones[RANKS_MAX];
	size_t part[RANKS_MAX];
	uint64_t now;

	for (uint32_t r = 0; r < s->ranks; r++) {
		const size_t first = n * r / s->ranks;

		part[r] = n * (r + 1) / s->ranks - first;
		check(s,
		      cua_copy(s->contexts[r], s->keys[r], kmers + first, part[r] * sizeof(*kmers)),
		      "copying k-mers");
		keys[r] = s->keys[r];
		ones[r] = s->ones[r];
	}
	check(s, cua_sharded_map_update_n(s->map, CUA_UPDATE_ADD, part, keys, ones, NULL),
	      "counting");
	now = slots(s);
	s->growths += now > s->slots;
	s->slots = now;
}

/*
 * Merges the sorted k-mers of the ranks. Rank r has elements first[r] to first[r + 1] - 1 of
 * from_keys and from_counts. No k-mer is in two shards.
 */
static void merge(const struct sharded *s, const uint64_t *first, const uint64_t *from_keys,
		  const uint64_t *from_counts, uint64_t *keys, uint64_t *counts)
{
	uint64_t at[RANKS_MAX];

	memcpy(at, first, s->ranks * sizeof(*at));
	for (uint64_t i = 0; i < first[s->ranks]; i++) {
		uint32_t least = s->ranks;

		for (uint32_t r = 0; r < s->ranks; r++) {
			if (at[r] < first[r + 1] &&
			    (least == s->ranks || from_keys[at[r]] < from_keys[at[least]]))
				least = r;
		}
		keys[i] = from_keys[at[least]];
		counts[i] = from_counts[at[least]++];
	}
}

uint64_t sharded_read(struct sharded *s, uint64_t **keys, uint64_t **counts)
{
	uint64_t most[RANKS_MAX] = {0}, n[RANKS_MAX], first[RANKS_MAX + 1] = {0};
	void *rank_keys[RANKS_MAX], *rank_counts[RANKS_MAX];
	uint64_t *all_keys, *all_counts;

	check(s, cua_sharded_map_retrieve(s->map, CUA_HASHMAP_ANY, most, NULL, NULL, n), "size");
	for (uint32_t r = 0; r < s->ranks; r++) {
		most[r] = n[r];
		first[r + 1] = first[r] + n[r];
		rank_keys[r] = rank_alloc(s, r, n[r]);
		rank_counts[r] = rank_alloc(s, r, n[r]);
	}
	check(s,
	      cua_sharded_map_retrieve(s->map, CUA_HASHMAP_SORTED, most, rank_keys, rank_counts, n),
	      "reading the table");
	all_keys = (uint64_t *)must_alloc(first[s->ranks], sizeof(*all_keys));
	all_counts = (uint64_t *)must_alloc(first[s->ranks], sizeof(*all_counts));
	for (uint32_t r = 0; r < s->ranks; r++) {
		const size_t bytes = (size_t)n[r] * sizeof(uint64_t);

		check(s, cua_copy(s->contexts[r], all_keys + first[r], rank_keys[r], bytes),
		      "copying the table");
		check(s, cua_copy(s->contexts[r], all_counts + first[r], rank_counts[r], bytes),
		      "copying the table");
		check(s, cua_context_synchronize(s->contexts[r]), "copying the table");
		check(s, cua_free(s->contexts[r], rank_keys[r]), "memory");
		check(s, cua_free(s->contexts[r], rank_counts[r]), "memory");
	}
	*keys = (uint64_t *)must_alloc(first[s->ranks], sizeof(**keys));
	*counts = (uint64_t *)must_alloc(first[s->ranks], sizeof(**counts));
	merge(s, first, all_keys, all_counts, *keys, *counts);
	free(all_keys);
	free(all_counts);
	return first[s->ranks];
}

void sharded_close(struct sharded *s)
{
	cua_sharded_map_destroy(s->map);
	cua_group_destroy(s->group);
	for (uint32_t r = 0; r < s->ranks; r++) {
		cua_free(s->contexts[r], s->keys[r]);
		cua_free(s->contexts[r], s->ones[r]);
		cua_context_destroy(s->contexts[r]);
	}
}
