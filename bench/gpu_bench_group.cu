/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench group` on GPUs: reductions of arrays that are divided among all GPUs, or among
 * two contexts if there is a single GPU. The peer is one context on a part, in the same run. So
 * "x peer" is the number of GPUs that the group is worth. Each result is checked.
 *
 * The peer of a sum of arrays is a copy of each array to the next rank: two ranks have to send as many
 * bytes. The peer of a sharded map is a map with the pairs of a single rank.
 *
 * A run is a series of calls by the host's clock, from idle GPUs to idle GPUs.
 */
#include <math.h>

#include <cuatomic.h>

#include "gpu_bench_calls.h"

#define MOST_RANKS 8

static uint32_t ranks;
static struct cua_context *contexts[MOST_RANKS];
static struct cua_group *group;
static size_t n, room; /* elements of a rank */
static size_t lengths[MOST_RANKS];
static float *arrays[MOST_RANKS], *results[MOST_RANKS];

static __global__ void fill_kernel(float *x, size_t n, uint32_t rank)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (size_t)blockDim.x)
		x[i] = (float)(mix(i ^ (uint64_t)rank << 40) >> 40) * 0x1p-24f;
}

static void check(enum cua_status status, const char *what)
{
	need(status == CUA_OK, what);
}

static void open_ranks(void)
{
	int devices = 0;

	need(!cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
	ranks = devices < 2 ? 2 : devices > MOST_RANKS ? MOST_RANKS : (uint32_t)devices;
	for (uint32_t r = 0; r < ranks; r++) {
		const int device = (int)r % devices;
		cudaStream_t stream;

		check(cua_context_create(CUA_BACKEND_CUDA, device, &contexts[r]),
		      "cua_context_create");
		need(!cudaSetDevice(device) &&
			     !cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) &&
			     !cudaMalloc(&arrays[r], room * sizeof(float)) &&
			     !cudaMalloc(&results[r], sizeof(float)),
		     "memory of a rank");
		fill_kernel<<<1024, 256>>>(arrays[r], room, r);
		need(!cudaDeviceSynchronize(), "fill");
		check(cua_context_set_stream(contexts[r], stream), "cua_context_set_stream");
	}
	need(!cudaSetDevice(0), "cudaSetDevice");
	check(cua_group_create_devices(ranks, contexts, &group), "cua_group_create_devices");
	printf("%u ranks on %d GPU%s\n", ranks, devices, devices == 1 ? "" : "s");
}

/* Times `calls` calls, by the clock, on `used` ranks with `bytes` bytes in total. */
template <typename Call>
static void row(enum table_kind kind, const char *way, uint32_t used, double bytes, Call call)
{
	double rates[BENCH_RUNS];
	char note[32];
	struct figure f;

	for (int run = -2; run < BENCH_RUNS; run++) {
		const double start = now();

		for (int i = 0; i < calls; i++)
			check(call(), way);
		for (uint32_t r = 0; r < used; r++)
			check(cua_context_synchronize(contexts[r]), way);
		if (run >= 0)
			rates[run] = bytes * calls / (now() - start) * 1e-9;
	}
	f = table_figure(rates, BENCH_RUNS);
	snprintf(note, sizeof(note), "%.1f us", bytes / f.median * 1e-3);
	table_add_note(&table, kind, way, f, note);
}

/* The sum of all ranks in double, by a context for each. */
static double reference(void)
{
	double sum = 0;

	for (uint32_t r = 0; r < ranks; r++) {
		struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
		double part;

		o.result_type = CUA_F64;
		check(cua_reduce(contexts[r], &o, CUA_REDUCE_SUM, CUA_F32, lengths[r], arrays[r],
				 NULL, &part),
		      "reference");
		sum += part;
	}
	return sum;
}

static void check_results(double wanted, const char *way)
{
	float first = 0, sum;

	for (uint32_t r = 0; r < ranks; r++) {
		check(cua_copy(contexts[r], &sum, results[r], sizeof(sum)), way);
		need(fabs((double)sum - wanted) <= fabs(wanted) * 0x1p-22 + 0x1p-100, way);
		need(!r || !memcmp(&sum, &first, sizeof(sum)), way);
		first = sum;
	}
}

/* length: elements of a rank. In mode FIXED the parts are cut at the nearest chunk. */
static void sums(size_t length, enum cua_reduce_mode mode, const char *name)
{
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	char title[sizeof(table.name)], text[24];
	double wanted;

	o.mode = mode;
	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t first = r * length, end = first + length;

		if (mode == CUA_REDUCE_FIXED) {
			check(cua_fixed_cut(CUA_F32, ranks * length, ranks, r, &first), name);
			check(cua_fixed_cut(CUA_F32, ranks * length, ranks, r + 1, &end), name);
		}
		lengths[r] = (size_t)(end - first);
		need(lengths[r] <= room, name);
	}
	wanted = reference();
	snprintf(title, sizeof(title), "%.9s, %.9s a rank", name, size_text(text, length));
	table_begin(&table, title);
	row(TABLE_PEER, "cua_reduce, one context", 1, (double)length * sizeof(float), [&] {
		return cua_reduce(contexts[0], &o, CUA_REDUCE_SUM, CUA_F32, length, arrays[0], NULL,
				  results[0]);
	});
	row(TABLE_OURS, "cua_group_reduce", ranks, (double)ranks * length * sizeof(float), [&] {
		return cua_group_reduce(group, &o, CUA_REDUCE_SUM, CUA_F32, lengths,
					(const void *const *)arrays, NULL, (void *const *)results);
	});
	check_results(wanted, name);
	table_end(&table);
}

static __global__ void set_kernel(uint64_t *x, size_t n, uint64_t value)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (size_t)blockDim.x)
		x[i] = value;
}

/* Rank r has r + 1 in each place. */
static void check_counts(size_t length)
{
	for (uint32_t r = 0; r < ranks; r++) {
		need(!cudaSetDevice(cua_context_device(contexts[r])), "cudaSetDevice");
		set_kernel<<<1024, 256>>>((uint64_t *)arrays[r], length, r + 1);
		need(!cudaDeviceSynchronize(), "set");
	}
	need(!cudaSetDevice(0), "cudaSetDevice");
	check(cua_group_sum(group, CUA_U64, length, (void *const *)arrays), "cua_group_sum");
	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t least, most;

		check(cua_reduce(contexts[r], NULL, CUA_REDUCE_MIN, CUA_U64, length, arrays[r],
				 NULL, &least),
		      "least");
		check(cua_reduce(contexts[r], NULL, CUA_REDUCE_MAX, CUA_U64, length, arrays[r],
				 NULL, &most),
		      "most");
		need(least == ranks * (ranks + 1) / 2 && most == least, "cua_group_sum");
	}
}

static enum cua_status copy_to_next(size_t bytes)
{
	for (uint32_t r = 0; r < ranks; r++)
		if (cudaMemcpyAsync((char *)arrays[(r + 1) % ranks] + bytes, arrays[r], bytes,
				    cudaMemcpyDefault,
				    (cudaStream_t)cua_context_stream(contexts[r])))
			return CUA_ERROR_CUDA;
	return CUA_OK;
}

/* length: counts of a rank. */
static void counts(size_t length)
{
	const double bytes = (double)length * sizeof(uint64_t);
	char title[sizeof(table.name)], text[24];

	need(2 * length * sizeof(uint64_t) <= room * sizeof(float), "room for copies");
	snprintf(title, sizeof(title), "%.9s counts a rank", size_text(text, length));
	table_begin(&table, title);
	row(TABLE_PEER, "a copy to the next rank", ranks, bytes,
	    [&] { return copy_to_next(length * sizeof(uint64_t)); });
	row(TABLE_OURS, "cua_group_sum", ranks, bytes,
	    [&] { return cua_group_sum(group, CUA_U64, length, (void *const *)arrays); });
	check_counts(length);
	table_end(&table);
}

/* ---- sharded maps ---- */

/* Different keys on all ranks: an odd multiple of the index, of 4 or 8 bytes. */
template <typename K>
static __global__ void pairs_kernel(K *keys, K *values, size_t n, size_t first)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (size_t)blockDim.x) {
		keys[i] = sizeof(K) == 4 ? (K)((uint32_t)(first + i) * 2654435761u)
					 : (K)((first + i) * 0x9e3779b97f4a7c15u);
		values[i] = keys[i] + 1;
	}
}

template <typename K>
static __global__ void wrong_kernel(const K *keys, const K *values, size_t n,
				    unsigned long long *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * (size_t)blockDim.x)
		if (values[i] != keys[i] + 1)
			atomicAdd(wrong, 1ull);
}

/* length: pairs of a rank. */
template <typename K> static void maps(size_t length, enum cua_type type)
{
	void *keys[MOST_RANKS], *values[MOST_RANKS], *found[MOST_RANKS];
	unsigned long long *wrong;
	struct cua_sharded_map *map;
	struct cua_hashmap *single;
	char title[sizeof(table.name)], text[24];
	const double all = (double)ranks * length;
	uint64_t size = 0;

	need(3 * length * sizeof(K) <= room * sizeof(float), "room for pairs");
	for (uint32_t r = 0; r < ranks; r++) {
		lengths[r] = length;
		keys[r] = arrays[r];
		values[r] = (K *)keys[r] + length;
		found[r] = (K *)values[r] + length;
		need(!cudaSetDevice(cua_context_device(contexts[r])), "cudaSetDevice");
		pairs_kernel<K><<<1024, 256>>>((K *)keys[r], (K *)values[r], length, r * length);
		need(!cudaDeviceSynchronize(), "pairs");
	}
	need(!cudaSetDevice(0), "cudaSetDevice");
	check(cua_hashmap_create(contexts[0], NULL, type, type, (uint64_t)(length / 0.8), &single),
	      "cua_hashmap_create");
	check(cua_sharded_map_create(group, NULL, type, type, (uint64_t)(all / 0.8), &map),
	      "cua_sharded_map_create");
#define KEYS ((const void *const *)keys)
#define VALUES ((const void *const *)values)
#define ROWS(name, one, group_call)                                                                \
	snprintf(title, sizeof(title), name " %.9s, %zu + %zu", size_text(text, length),           \
		 sizeof(K), sizeof(K));                                                            \
	table_begin(&table, title);                                                                \
	row(TABLE_PEER, "one map", 1, (double)length, [&] { return one; });                        \
	row(TABLE_OURS, "sharded map", ranks, all, [&] { return group_call; });                    \
	table_end(&table);
	ROWS("build", cua_hashmap_build_n(single, length, keys[0], values[0], NULL),
	     cua_sharded_map_build_n(map, lengths, KEYS, VALUES, NULL))
	ROWS("insert",
	     (cua_hashmap_clear(single),
	      cua_hashmap_insert_n(single, length, keys[0], values[0], NULL)),
	     (cua_sharded_map_clear(map),
	      cua_sharded_map_insert_n(map, lengths, KEYS, VALUES, NULL)))
	check(cua_sharded_map_size(map, &size), "size");
	need(size == (uint64_t)all, "sharded inserts");
	for (uint32_t r = 0; r < ranks; r++)
		values[r] = found[r];
	ROWS("find", cua_hashmap_find_n(single, length, keys[0], values[0], NULL),
	     cua_sharded_map_find_n(map, lengths, KEYS, values, NULL))
	need(!cudaMallocManaged(&wrong, sizeof(*wrong)), "wrong");
	*wrong = 0;
	for (uint32_t r = 0; r < ranks; r++) {
		need(!cudaSetDevice(cua_context_device(contexts[r])), "cudaSetDevice");
		wrong_kernel<K><<<1024, 256>>>((K *)keys[r], (K *)values[r], length, wrong);
		need(!cudaDeviceSynchronize(), "wrong");
	}
	need(!*wrong, "sharded finds");
	need(!cudaFree(wrong) && !cudaSetDevice(0), "wrong");
	cua_sharded_map_destroy(map);
	check(cua_hashmap_destroy(single), "destroy");
}

int main(int argc, char **argv)
{
	static const struct {
		enum cua_reduce_mode mode;
		const char *name;
	} modes[] = {{CUA_REDUCE_FAST, "FAST sum"},
		     {CUA_REDUCE_FIXED, "FIXED sum"},
		     {CUA_REDUCE_EXACT, "EXACT sum"}};
	struct options o = parse_options(argc, argv, "group", false);

	(void)print_head("group");
	small = o.quick;
	n = (size_t)1 << (small ? 20 : 30);
	room = n + n / 64;
	open_ranks();
	table_columns("GB/s", "a call");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		set_timing(IN_STREAM, 8);
		sums(n, modes[i].mode, modes[i].name);
		set_timing(CALL_WAIT, 1);
		sums((size_t)1 << 18, modes[i].mode, modes[i].name);
		sums((size_t)1 << 13, modes[i].mode, modes[i].name);
	}
	set_timing(CALL_WAIT, 1);
	counts(256);
	counts((size_t)1 << (small ? 12 : 20));
	counts((size_t)1 << (small ? 14 : 27));
	table_columns("G/s", "a call");
	maps<uint32_t>(small ? 100000 : 100000000, CUA_U32);
	maps<uint64_t>(small ? 100000 : 100000000, CUA_U64);
	cua_group_destroy(group);
	for (uint32_t r = 0; r < ranks; r++)
		cua_context_destroy(contexts[r]);
	return 0;
}
