/* SPDX-License-Identifier: MIT */
/* The sharded maps of `cuatomic bench group`. The peer is a map in a single context. */
#ifndef CUATOMIC_BENCH_GROUP_MAPS_H
#define CUATOMIC_BENCH_GROUP_MAPS_H

#include "bench_keys.h"
#include "gpu_bench_group.h"

/* Maps of keys and values of type K, and the arrays of their calls. */
template <typename K> struct map_case {
	size_t peer, part; /* pairs of the peer, in the memory of rank 0, and of each rank */
	char note[20];     /* at the end of the title of a table */
	K *keys[MOST_RANKS], *values[MOST_RANKS], *found[MOST_RANKS];
	struct cua_hashmap *single;
	struct cua_sharded_map *maps[MOST_RANKS]; /* for each group */
};

template <typename K> static enum cua_type type_of(void)
{
	return sizeof(K) == 4 ? CUA_U32 : CUA_U64;
}

/* "100 M a rank" */
static void note_size(char note[20], size_t n, const char *of)
{
	if (n % 1000000)
		snprintf(note, 20, "%zu K %s", n / 1000, of);
	else
		snprintf(note, 20, "%zu M %s", n / 1000000, of);
}

/* ---- memory ---- */

template <typename K> static bool lay_out(struct map_case<K> *c)
{
	size_t room[MOST_RANKS], bytes[MOST_RANKS];

	for (uint32_t r = 0; r < ranks; r++) {
		lengths[r] = c->part;
		room[r] = !r && c->peer > c->part ? c->peer : c->part;
		bytes[r] = 3 * room[r] * sizeof(K);
	}
	if (!allocate(bytes))
		return false;
	for (uint32_t r = 0; r < ranks; r++) {
		c->keys[r] = (K *)arrays[r];
		c->values[r] = c->keys[r] + room[r];
		c->found[r] = c->values[r] + room[r];
	}
	return true;
}

/* The workspaces of the fastest ways of all calls. */
template <typename K> static enum cua_status reserve_maps(const struct map_case<K> *c)
{
	enum cua_status status = CUA_OK;
	size_t single;

	check(cua_hashmap_build_workspace(c->single, c->peer, &single), "workspace");
	for (uint32_t r = 0; r < ranks && !status; r++) {
		size_t bytes;

		check(cua_sharded_map_workspace(c->maps[by_nccl ? r : 0], c->part, &bytes),
		      "workspace");
		status = cua_context_reserve(contexts[r], r || bytes > single ? bytes : single);
	}
	return status;
}

template <typename K> static void close_maps(struct map_case<K> *c)
{
	for (uint32_t g = 0; g < n_groups; g++)
		cua_sharded_map_destroy(c->maps[g]);
	if (c->single)
		check(cua_hashmap_destroy(c->single), "cua_hashmap_destroy");
}

/*
 * Creates the maps for these numbers of keys and a load of 0.8. Returns false, after a line, if a
 * GPU has too little memory.
 */
template <typename K>
static bool open_maps(struct map_case<K> *c, const char *what, uint64_t single_keys,
		      uint64_t all_keys)
{
	enum cua_status status = lay_out(c) ? CUA_OK : CUA_ERROR_NO_MEMORY;

	if (!status)
		status = cua_hashmap_create(contexts[0], NULL, type_of<K>(), type_of<K>(),
					    (uint64_t)((double)single_keys / 0.8), &c->single);
	if (!status) {
		enum cua_status created[MOST_RANKS] = {};

		collective("cua_sharded_map_create", 1, [&](uint32_t first) {
			created[first] = cua_sharded_map_create(
				groups[first], NULL, type_of<K>(), type_of<K>(),
				(uint64_t)((double)all_keys / 0.8), &c->maps[first]);
			return CUA_OK;
		});
		status = created[0];
	}
	if (!status)
		status = reserve_maps(c);
	if (status == CUA_ERROR_NO_MEMORY) {
		char title[64];

		snprintf(title, sizeof(title), "%s %zu + %zu, %s", what, sizeof(K), sizeof(K),
			 c->note);
		close_maps(c);
		print_skipped(title);
		return false;
	}
	check(status, what);
	return true;
}

/* ---- rows ---- */

/* one() is a call of the peer; all(first) is a collective call. */
template <typename K, typename One, typename All>
static void map_rows(const struct map_case<K> *c, const char *call, One one, All all)
{
	char title[sizeof(table.name)];

	snprintf(title, sizeof(title), "%.6s %zu + %zu, %.13s", call, sizeof(K), sizeof(K),
		 c->note);
	table_begin(&table, title);
	peer_row("one map", 1, (double)c->peer, one);
	group_row("sharded map", (double)ranks * (double)c->part, all);
	table_end(&table);
}

/* The arguments of a collective call. */
#define LENGTHS (lengths + first)
#define CONST_ARRAYS(x) ((const void *const *)(x) + first)
#define ARRAYS(x) ((void *const *)(x) + first)

/* ---- build, insert and find, of different keys ---- */

/* Different keys on all ranks: an odd multiple of the index. */
template <typename K>
static __global__ void pairs_kernel(K *keys, K *values, size_t n, size_t first)
{
	EACH(i, n)
	{
		keys[i] = sizeof(K) == 4 ? (K)((uint32_t)(first + i) * 2654435761u)
					 : (K)((first + i) * 0x9e3779b97f4a7c15u);
		values[i] = keys[i] + 1;
	}
}

template <typename K>
static __global__ void wrong_kernel(const K *keys, const K *values, size_t n,
				    unsigned long long *wrong)
{
	EACH(i, n)
	if (values[i] != keys[i] + 1)
		atomicAdd(wrong, 1ull);
}

template <typename K> static void check_size(const struct map_case<K> *c)
{
	uint64_t sizes[MOST_RANKS] = {};

	collective("cua_sharded_map_size", 1, [&](uint32_t first) {
		return cua_sharded_map_size(c->maps[first], &sizes[first]);
	});
	for (uint32_t g = 0; g < n_groups; g++)
		need(sizes[g] == ranks * (uint64_t)c->part, "size of the sharded map");
}

template <typename K> static void check_found(const struct map_case<K> *c)
{
	unsigned long long *wrong;

	need(!cudaMallocManaged(&wrong, sizeof(*wrong)), "cudaMallocManaged");
	*wrong = 0;
	on_each_gpu([&](uint32_t r) {
		wrong_kernel<K><<<BLOCKS, THREADS>>>(c->keys[r], c->found[r], c->part, wrong);
	});
	need(!*wrong, "values of the sharded map");
	need(!cudaFree(wrong), "cudaFree");
}

/* peer: pairs of the peer. part: pairs of a rank. of: "a rank" or "in all", for the title. */
template <typename K> static void maps(size_t peer, size_t part, const char *of)
{
	struct map_case<K> c = {
	};

	c.peer = peer;
	c.part = part;
	note_size(c.note, peer, of);
	if (!open_maps(&c, "maps", peer, ranks * (uint64_t)part))
		return;
	on_each_gpu([&](uint32_t r) {
		pairs_kernel<<<BLOCKS, THREADS>>>(c.keys[r], c.values[r], r ? part : peer,
						  r * part);
	});
	map_rows(
		&c, "build",
		[&] { return cua_hashmap_build_n(c.single, peer, c.keys[0], c.values[0], NULL); },
		[&](uint32_t first) {
			return cua_sharded_map_build_n(c.maps[first], LENGTHS, CONST_ARRAYS(c.keys),
						       CONST_ARRAYS(c.values), NULL);
		});
	map_rows(
		&c, "insert",
		[&] {
			check(cua_hashmap_clear(c.single), "clear");
			return cua_hashmap_insert_n(c.single, peer, c.keys[0], c.values[0], NULL);
		},
		[&](uint32_t first) {
			check(cua_sharded_map_clear(c.maps[first]), "clear");
			return cua_sharded_map_insert_n(c.maps[first], LENGTHS,
							CONST_ARRAYS(c.keys),
							CONST_ARRAYS(c.values), NULL);
		});
	check_size(&c);
	map_rows(
		&c, "find",
		[&] { return cua_hashmap_find_n(c.single, peer, c.keys[0], c.found[0], NULL); },
		[&](uint32_t first) {
			return cua_sharded_map_find_n(c.maps[first], LENGTHS, CONST_ARRAYS(c.keys),
						      ARRAYS(c.found), NULL);
		});
	check_found(&c);
	close_maps(&c);
}

/* ---- updates and finds, of keys drawn from few ---- */

/* Keys drawn from `all`, and the operands 1. Ranks draw by seeds of their own. */
template <typename K>
static __global__ void draw_kernel(K *keys, K *ones, size_t n, size_t all, bool by_zipf,
				   uint32_t rank)
{
	EACH(i, n)
	{
		const uint64_t seed = keys_mix64(i + 1 + ((uint64_t)rank << 40));

		keys[i] = (K)keys_key(sizeof(K),
				      by_zipf ? keys_zipf(seed, all) : keys_below(seed, all));
		ones[i] = 1;
	}
}

/* Adds up n values. */
static uint64_t total(struct cua_context *ctx, enum cua_type type, uint64_t n, const void *values)
{
	uint64_t sum;

	check(cua_reduce(ctx, NULL, CUA_REDUCE_SUM, type, (size_t)n, values, NULL, &sum), "total");
	return sum;
}

/* Each pair has added 1 to a value. Retrieves at most `all` pairs of a map to the third array. */
template <typename K> static void check_totals(const struct map_case<K> *c, size_t all)
{
	K *values[MOST_RANKS];
	uint64_t most[MOST_RANKS], n[MOST_RANKS] = {}, sum = 0;

	need(2 * all <= c->part, "room for pairs");
	for (uint32_t r = 0; r < ranks; r++) {
		values[r] = c->found[r] + all;
		most[r] = all;
	}
	check(cua_hashmap_retrieve(c->single, CUA_HASHMAP_ANY, all, c->found[0], values[0], n),
	      "cua_hashmap_retrieve");
	need(n[0] <= all && total(contexts[0], type_of<K>(), n[0], values[0]) == c->peer,
	     "values of one map");
	collective("cua_sharded_map_retrieve", 1, [&](uint32_t first) {
		return cua_sharded_map_retrieve(c->maps[first], CUA_HASHMAP_ANY, most + first,
						ARRAYS(c->found), ARRAYS(values), n + first);
	});
	for (uint32_t r = 0; r < ranks; r++) {
		need(n[r] <= all, "keys of a shard");
		sum += total(contexts[r], type_of<K>(), n[r], values[r]);
	}
	need(sum == ranks * (uint64_t)c->part, "values of the sharded map");
}

template <typename K>
static __global__ void absent_kernel(const K *values, size_t n, unsigned long long *absent)
{
	EACH(i, n)
	if (!values[i])
		atomicAdd(absent, 1ull);
}

/* Finds of the keys that were drawn: the value of each is its number of pairs, never 0. */
template <typename K> static void drawn_finds(const struct map_case<K> *c)
{
	unsigned long long *absent;

	on_each_gpu([&](uint32_t r) {
		need(!cudaMemset(c->found[r], 0, c->part * sizeof(K)), "cudaMemset");
	});
	map_rows(
		c, "find",
		[&] {
			return cua_hashmap_find_n(c->single, c->part, c->keys[0], c->found[0],
						  NULL);
		},
		[&](uint32_t first) {
			return cua_sharded_map_find_n(c->maps[first], LENGTHS,
						      CONST_ARRAYS(c->keys), ARRAYS(c->found),
						      NULL);
		});
	need(!cudaMallocManaged(&absent, sizeof(*absent)), "cudaMallocManaged");
	*absent = 0;
	on_each_gpu([&](uint32_t r) {
		absent_kernel<K><<<BLOCKS, THREADS>>>(c->found[r], c->part, absent);
	});
	need(!*absent, "values of the keys that were drawn");
	need(!cudaFree(absent), "cudaFree");
}

/* part: pairs of a rank, with keys drawn from `all`. */
template <typename K> static void updates(size_t part, size_t all)
{
	struct map_case<K> c = {
	};

	c.peer = c.part = part;
	note_size(c.note, part, "a rank");
	if (!open_maps(&c, "updates", all, all))
		return;
	for (int by_zipf = 0; by_zipf < 2; by_zipf++) {
		snprintf(c.note, sizeof(c.note), by_zipf ? "zipf 1.0" : "uniform");
		on_each_gpu([&](uint32_t r) {
			draw_kernel<<<BLOCKS, THREADS>>>(c.keys[r], c.values[r], part, all, by_zipf,
							 r);
		});
		map_rows(
			&c, "update",
			[&] {
				check(cua_hashmap_clear(c.single), "clear");
				return cua_hashmap_update_n(c.single, CUA_UPDATE_ADD, part,
							    c.keys[0], c.values[0], NULL);
			},
			[&](uint32_t first) {
				check(cua_sharded_map_clear(c.maps[first]), "clear");
				return cua_sharded_map_update_n(c.maps[first], CUA_UPDATE_ADD,
								LENGTHS, CONST_ARRAYS(c.keys),
								CONST_ARRAYS(c.values), NULL);
			});
		check_totals(&c, all);
		drawn_finds(&c);
	}
	close_maps(&c);
}

#undef LENGTHS
#undef CONST_ARRAYS
#undef ARRAYS

#endif /* CUATOMIC_BENCH_GROUP_MAPS_H */
