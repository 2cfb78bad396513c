/* SPDX-License-Identifier: MIT */
/*
 * Group by of f32 values by keys of 32 and 64 bits, and distinct keys: many and few groups, uniform
 * and skewed.
 *
 * Peer: CUB's radix sort, and a reduction or a selection of its runs. For values, the peer makes
 * only sums, and these round after each addition. Ceiling: reading the keys and the values once.
 * The key, position and results of every group are compared, after every run, with a reference
 * that atomic operations make by number of the key.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>

#include "gpu_bench_calls.h"

#include <cuatomic/group_by.h>

#include <math.h>

/* Keys are numbered, and the numbers are spread over all bits of the type. number() inverts it. */
template <typename Key> struct spread;
template <> struct spread<uint32_t> {
	static const enum cua_type type = CUA_U32;
	static __device__ uint32_t key(size_t number)
	{
		return (uint32_t)number * 2654435761u;
	}
	static __device__ size_t number(uint32_t key)
	{
		return key * 244002641u;
	}
};
template <> struct spread<uint64_t> {
	static const enum cua_type type = CUA_U64;
	static __device__ uint64_t key(size_t number)
	{
		return (uint64_t)number * 0x9e3779b97f4a7c15u;
	}
	static __device__ size_t number(uint64_t key)
	{
		return (size_t)(key * 0xf1de83e19937733du);
	}
};

/* The groups by number of the key. Rows are numbered below 2^32. */
struct reference {
	uint32_t *counts, *first, *last, *seen;
	double *sums, *squares;
};

/* The results of a way, by group. NULL: the way does not make this result. */
struct outputs {
	enum cua_key_order order;
	const uint64_t *counts;
	const float *sums, *last;
	const double *variances;
	const uint32_t *inverse;
	/* of sums, relative to the magnitudes of the values; 0: each sum is rounded once */
	double tolerance;
};

static struct cua_context *ctx;
static size_t rows, numbers; /* key numbers are below `numbers` */
static void *keys, *sorted_keys, *out_keys;
static float *values, *sorted_values;
static void *results, *more_results; /* f32, u64 or f64 by group; or u32 by row */
static struct reference expected;
static unsigned long long *tally; /* groups or rows that differ, or expected groups */
static uint64_t *device_groups;
static uint64_t expected_groups;
static bool failed;

static __device__ double unit(uint64_t i)
{
	return (double)(mix(i * 2654435761u + 1) >> 11) * 0x1p-53;
}

/* skew is the exponent of a zipf distribution in tenths; 0: uniform. Values are normal. */
template <typename Key>
static __global__ void make_rows(size_t n, size_t numbers, int skew, Key *keys, float *values,
				 struct reference to)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		const double u = unit(i * 3), last = (double)numbers + 1, s = 1 - skew * 0.1;
		double k = 1 + u * (double)numbers;
		size_t number;
		float v;

		/* the inverse of the distribution function of a continuous zipf distribution */
		if (skew == 10)
			k = exp(u * log(last));
		else if (skew)
			k = pow(1 + u * (pow(last, s) - 1), 1 / s);
		k -= 1;
		number = k >= (double)numbers ? numbers - 1 : (size_t)k;
		v = (float)(sqrt(-2 * log(unit(i * 3 + 1) + 0x1p-54)) * cospi(2 * unit(i * 3 + 2)));
		keys[i] = spread<Key>::key(number);
		values[i] = v;
		atomicAdd(&to.counts[number], 1);
		atomicAdd(&to.sums[number], (double)v);
		atomicAdd(&to.squares[number], (double)v * v);
		if (to.first[number] > i)
			atomicMin(&to.first[number], (uint32_t)i);
		if (to.last[number] < i)
			atomicMax(&to.last[number], (uint32_t)i);
	}
}

static __global__ void count_used(size_t numbers, const uint32_t *counts, unsigned long long *used)
{
	unsigned long long mine = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < numbers;
	     i += (size_t)gridDim.x * blockDim.x)
		mine += counts[i] != 0;
	atomicAdd(used, mine);
}

/* Whether the results of group g match the reference of the key with this number. */
static __device__ bool same_results(struct outputs made, size_t g, struct reference wanted,
				    size_t number, const float *values)
{
	const double n = wanted.counts[number], sum = wanted.sums[number];
	const double squares = wanted.squares[number];
	/* at least the sum of the magnitudes */
	const double magnitude = sqrt(n * squares);
	bool right = n > 0;

	if (made.counts)
		right = right && made.counts[g] == wanted.counts[number];
	/* the last term bounds the rounding of the reference */
	if (made.sums)
		right = right && fabs(made.sums[g] - sum) <= made.tolerance * magnitude +
								     0x1p-24 * fabs(sum) +
								     0x1p-53 * n * magnitude;
	if (made.last)
		right = right && made.last[g] == values[wanted.last[number]];
	if (made.variances)
		right = right && fabs(made.variances[g] - (squares - sum * sum / n) / n) <=
					 1e-14 * (n + 8) * squares / n;
	return right;
}

/*
 * Counts the groups with a wrong key, position or result. Keys, or first rows, have to ascend, or
 * are marked as seen, so no key is stored twice.
 */
template <typename Key>
static __global__ void compare_groups(size_t groups, size_t numbers, const Key *keys,
				      struct outputs made, struct reference wanted,
				      const float *values, unsigned long long *wrong)
{
	unsigned long long mine = 0;

	for (size_t g = (size_t)blockIdx.x * blockDim.x + threadIdx.x; g < groups;
	     g += (size_t)gridDim.x * blockDim.x) {
		const size_t number = spread<Key>::number(keys[g]);
		const size_t before = spread<Key>::number(keys[g ? g - 1 : 0]);
		bool right = number < numbers && before < numbers;

		if (right && made.order == CUA_KEY_ORDER_ANY)
			right = !atomicExch(&wanted.seen[number], 1);
		else if (right && g)
			right = made.order == CUA_KEY_ORDER_SORTED
					? keys[g - 1] < keys[g]
					: wanted.first[before] < wanted.first[number];
		mine += !(right && same_results(made, g, wanted, number, values));
	}
	if (mine)
		atomicAdd(wrong, mine);
}

template <typename Key>
static __global__ void compare_rows(size_t n, size_t groups, const Key *keys, const Key *out_keys,
				    const uint32_t *inverse, unsigned long long *wrong)
{
	unsigned long long mine = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		mine += inverse[i] >= groups || out_keys[inverse[i]] != keys[i];
	if (mine)
		atomicAdd(wrong, mine);
}

/* ---- rows of a case ---- */

template <typename Key> static bool is_right(struct outputs made)
{
	unsigned long long wrong;
	uint64_t groups;

	need(!cudaMemcpy(&groups, device_groups, sizeof(groups), cudaMemcpyDeviceToHost), "groups");
	if (groups != expected_groups)
		return false;
	need(!cudaMemset(tally, 0, sizeof(*tally)) &&
		     !cudaMemset(expected.seen, 0, numbers * sizeof(*expected.seen)),
	     "cudaMemset");
	compare_groups<<<processors * 8, THREADS>>>(groups, numbers, (const Key *)out_keys, made,
						    expected, values, tally);
	if (made.inverse)
		compare_rows<<<processors * 8, THREADS>>>(rows, groups, (const Key *)keys,
							  (const Key *)out_keys, made.inverse,
							  tally);
	need(!cudaMemcpy(&wrong, tally, sizeof(wrong), cudaMemcpyDeviceToHost), "results");
	return !wrong;
}

/* Adds a row and checks every run. */
template <typename Key, typename Call>
static void row(enum table_kind kind, const char *way, struct outputs made, Call call)
{
	const size_t bytes = numbers * sizeof(uint64_t);
	bool right = true;

	if (!table_wants(table.name, way))
		return;
	const struct figure f = measure(
		(double)rows * 1e-3,
		[&] {
			/* results of another run would pass */
			need(!cudaMemset(out_keys, 0xff, numbers * sizeof(Key)) &&
				     !cudaMemset(results, 0xff, bytes) &&
				     !cudaMemset(more_results, 0xff, bytes) &&
				     !cudaMemset(device_groups, 0xff, sizeof(*device_groups)),
			     "cudaMemset");
		},
		call, [&] { right = right && is_right<Key>(made); });
	char text[24], note[48];

	failed = failed || !right;
	snprintf(note, sizeof(note), "%s us%s", table_number(text, (double)rows / (f.median * 1e3)),
		 right ? "" : ", WRONG");
	table_add_note(&table, kind, way, f, note);
}

/* Reads the keys alone; the figure is scaled to row_bytes bytes a row. */
template <typename Key> static void ceiling_row(const char *way, size_t row_bytes)
{
	const size_t words = rows * sizeof(Key) / 16;
	const double all = (double)rows * 1e-3 * (double)sizeof(Key) / (double)row_bytes;
	struct figure best = {};

	if (!table_wants(table.name, way))
		return;
	both_grids(words, [&](unsigned blocks, bool) {
		const struct figure f = measure(
			all, [] {},
			[&] {
				read_all<1><<<blocks, THREADS>>>(words, (const uint4 *)keys,
								 nullptr, (unsigned *)tally);
			},
			[] {});

		if (f.median > best.median)
			best = f;
	});
	table_add(&table, TABLE_CEILING, way, best);
}

struct plus {
	__device__ float operator()(float a, float b) const
	{
		return a + b;
	}
};

template <typename Key> static cudaError_t sort_pairs(void *t, size_t &has, size_t n)
{
	return cub::DeviceRadixSort::SortPairs(t, has, (const Key *)keys, (Key *)sorted_keys,
					       (const float *)values, sorted_values, (int)n);
}

template <typename Key> static void peer_group_by(void)
{
	const char *way = "CUB: SortPairs, ReduceByKey; sums";
	auto sort =
		cub_call(way, [](void *t, size_t &has) { return sort_pairs<Key>(t, has, rows); });
	auto reduce = cub_call(way, [](void *t, size_t &has) {
		return cub::DeviceReduce::ReduceByKey(t, has, (const Key *)sorted_keys,
						      (Key *)out_keys, (const float *)sorted_values,
						      (float *)results, device_groups, plus(),
						      (int)rows);
	});
	struct outputs made = {};

	made.order = CUA_KEY_ORDER_SORTED;
	made.sums = (const float *)results;
	made.tolerance = 1e-4;
	row<Key>(TABLE_PEER, way, made, [&] {
		sort();
		reduce();
	});
}

template <typename Key> static void peer_unique(void)
{
	const char *way = "CUB: SortKeys, Select::Unique";
	auto sort = cub_call(way, [](void *t, size_t &has) {
		return cub::DeviceRadixSort::SortKeys(t, has, (const Key *)keys, (Key *)sorted_keys,
						      (int)rows);
	});
	auto select = cub_call(way, [](void *t, size_t &has) {
		return cub::DeviceSelect::Unique(t, has, (const Key *)sorted_keys, (Key *)out_keys,
						 device_groups, (int)rows);
	});
	struct outputs made = {};

	made.order = CUA_KEY_ORDER_SORTED;
	row<Key>(TABLE_PEER, way, made, [&] {
		sort();
		select();
	});
}

static void set_aggregate(struct cua_aggregate *a, enum cua_aggregate_op op, void *out,
			  struct outputs *made)
{
	memset(a, 0, sizeof(*a));
	a->op = op;
	a->type = CUA_F32;
	a->values = values;
	a->out = out;
	if (op == CUA_AGGREGATE_SUM)
		made->sums = (const float *)out;
	if (op == CUA_AGGREGATE_COUNT)
		made->counts = (const uint64_t *)out;
	if (op == CUA_AGGREGATE_LAST)
		made->last = (const float *)out;
	if (op == CUA_AGGREGATE_VARIANCE)
		made->variances = (const double *)out;
}

/* Ways to call cua_group_by. */
struct way {
	const char *name;
	enum cua_key_order order;
	enum cua_reduce_mode mode;
	bool device_count; /* the call does not know the number of groups */
	enum cua_aggregate_op op[2];
};

template <typename Key> static void our_group_by(const struct way &w)
{
	struct cua_group_by_options options = CUA_GROUP_BY_OPTIONS_INIT;
	const uint32_t n = w.op[1] ? 2 : 1;
	struct cua_aggregate a[2];
	struct outputs made = {};

	made.order = w.order;
	made.tolerance = w.mode == CUA_REDUCE_FAST ? 1e-4 : 0;
	set_aggregate(&a[0], w.op[0], results, &made);
	if (n == 2)
		set_aggregate(&a[1], w.op[1], more_results, &made);
	options.mode = w.mode;
	options.order = w.order;
	row<Key>(TABLE_OURS, w.name, made, [&] {
		uint64_t groups;

		need(cua_group_by(ctx, &options, spread<Key>::type, rows, keys, a, n, numbers,
				  out_keys, w.device_count ? device_groups : &groups) == CUA_OK,
		     w.name);
		if (!w.device_count)
			need(!cudaMemcpy(device_groups, &groups, sizeof(groups),
					 cudaMemcpyHostToDevice),
			     "groups");
	});
}

template <typename Key>
static void our_unique(const char *way, enum cua_key_order order, bool counts, bool inverse)
{
	struct cua_unique_options options = CUA_UNIQUE_OPTIONS_INIT;
	struct outputs made = {};

	options.order = order;
	options.index_type = CUA_U32;
	if (counts)
		made.counts = options.counts = (uint64_t *)results;
	if (inverse)
		made.inverse = (const uint32_t *)(options.inverse = more_results);
	made.order = order;
	row<Key>(TABLE_OURS, way, made, [&] {
		uint64_t groups;

		need(cua_unique(ctx, &options, spread<Key>::type, rows, keys, numbers, out_keys,
				&groups) == CUA_OK,
		     way);
		need(!cudaMemcpy(device_groups, &groups, sizeof(groups), cudaMemcpyHostToDevice),
		     "groups");
	});
}

/* ---- cases ---- */

/* Makes the rows of a case. */
template <typename Key>
static void begin_case(const char *name, size_t n, size_t n_numbers, int skew)
{
	unsigned long long used;

	rows = n;
	numbers = n_numbers;
	need(!cudaMemset(expected.counts, 0, numbers * sizeof(*expected.counts)) &&
		     !cudaMemset(expected.first, 0xff, numbers * sizeof(*expected.first)) &&
		     !cudaMemset(expected.last, 0, numbers * sizeof(*expected.last)) &&
		     !cudaMemset(expected.sums, 0, numbers * sizeof(*expected.sums)) &&
		     !cudaMemset(expected.squares, 0, numbers * sizeof(*expected.squares)) &&
		     !cudaMemset(tally, 0, sizeof(*tally)),
	     "cudaMemset");
	make_rows<<<processors * 8, THREADS>>>(rows, numbers, skew, (Key *)keys, values, expected);
	count_used<<<processors * 8, THREADS>>>(numbers, expected.counts, tally);
	need(!cudaMemcpy(&used, tally, sizeof(used), cudaMemcpyDeviceToHost), "groups");
	expected_groups = used;
	table_begin(&table, name);
}

static const enum cua_aggregate_op NO_OP = (enum cua_aggregate_op)0;

template <typename Key>
static void group_by_case(const char *name, size_t n, size_t n_numbers, int skew)
{
	static const struct way ways[] = {
		{"cua_group_by, ANY: SUM",
		 CUA_KEY_ORDER_ANY,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_SUM, NO_OP}},
		{"cua_group_by, ANY: SUM, COUNT",
		 CUA_KEY_ORDER_ANY,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_SUM, CUA_AGGREGATE_COUNT}},
		{"cua_group_by: SUM",
		 CUA_KEY_ORDER_FIRST,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_SUM, NO_OP}},
		{"cua_group_by: SUM, count on the device",
		 CUA_KEY_ORDER_FIRST,
		 CUA_REDUCE_EXACT,
		 true,
		 {CUA_AGGREGATE_SUM, NO_OP}},
		{"cua_group_by: SUM, COUNT",
		 CUA_KEY_ORDER_FIRST,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_SUM, CUA_AGGREGATE_COUNT}},
		{"cua_group_by, SORTED: SUM, COUNT",
		 CUA_KEY_ORDER_SORTED,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_SUM, CUA_AGGREGATE_COUNT}},
		{"cua_group_by: COUNT",
		 CUA_KEY_ORDER_FIRST,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_COUNT, NO_OP}},
		{"cua_group_by: LAST",
		 CUA_KEY_ORDER_FIRST,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_LAST, NO_OP}},
		{"cua_group_by: VARIANCE",
		 CUA_KEY_ORDER_FIRST,
		 CUA_REDUCE_EXACT,
		 false,
		 {CUA_AGGREGATE_VARIANCE, NO_OP}},
	};

	begin_case<Key>(name, n, n_numbers, skew);
	ceiling_row<Key>("reading keys and values", sizeof(Key) + sizeof(*values));
	peer_group_by<Key>();
	for (const struct way &w : ways)
		our_group_by<Key>(w);
	table_end(&table);
}

template <typename Key> static void unique_case(const char *name, size_t n, size_t n_numbers)
{
	begin_case<Key>(name, n, n_numbers, 0);
	ceiling_row<Key>("reading keys", sizeof(Key));
	peer_unique<Key>();
	our_unique<Key>("cua_unique, ANY", CUA_KEY_ORDER_ANY, false, false);
	our_unique<Key>("cua_unique, ANY, counts", CUA_KEY_ORDER_ANY, true, false);
	our_unique<Key>("cua_unique, FIRST", CUA_KEY_ORDER_FIRST, false, false);
	our_unique<Key>("cua_unique, SORTED", CUA_KEY_ORDER_SORTED, false, false);
	our_unique<Key>("cua_unique, FIRST, counts", CUA_KEY_ORDER_FIRST, true, false);
	our_unique<Key>("cua_unique, SORTED, counts", CUA_KEY_ORDER_SORTED, true, false);
	our_unique<Key>("cua_unique, FIRST, inverse", CUA_KEY_ORDER_FIRST, false, true);
	table_end(&table);
}

/* ---- memory ---- */

template <typename T> static bool get(T **p, size_t n, size_t size)
{
	if (cudaMalloc((void **)p, n * size) == cudaSuccess)
		return true;
	(void)cudaGetLastError();
	*p = nullptr;
	return false;
}

static void free_rows(void)
{
	cudaFree(keys);
	cudaFree(values);
	cudaFree(sorted_keys);
	cudaFree(sorted_values);
	keys = sorted_keys = nullptr;
	values = sorted_values = nullptr;
}

/*
 * Allocates the rows, and for n rows with keys of 32 bits in few groups the peer's temporary memory
 * and the workspace. There are at least `least` rows with keys of 64 bits.
 */
static bool holds(size_t n, size_t least, uint64_t groups)
{
	const size_t room = n > least ? n : least, words = n > 2 * least ? n : 2 * least;
	struct cua_group_by_options options = CUA_GROUP_BY_OPTIONS_INIT;
	size_t wants = 0, workspace = 0;
	struct cua_aggregate a[2];
	struct outputs made;

	if (get(&keys, words, 4) && get(&values, room, 4) && get(&sorted_keys, words, 4) &&
	    get(&sorted_values, room, 4)) {
		set_aggregate(&a[0], CUA_AGGREGATE_VARIANCE, results, &made);
		set_aggregate(&a[1], CUA_AGGREGATE_COUNT, more_results, &made);
		options.order = CUA_KEY_ORDER_SORTED;
		need(!sort_pairs<uint32_t>(nullptr, wants, n) &&
			     cua_group_by_workspace(ctx, &options, CUA_U32, n, a, 2, groups,
						    &workspace) == CUA_OK,
		     "workspace");
		if (temporary_holds(wants) && cua_context_reserve(ctx, workspace) == CUA_OK)
			return true;
	}
	(void)cudaGetLastError();
	free_rows();
	return false;
}

int main(int argc, char **argv)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20;
	const struct options o = parse_options(argc, argv, "group-by", false);
	const cudaDeviceProp device = print_head("group-by");
	const size_t many = o.quick ? 96 * Ki : 96 * Mi, some = o.quick ? 4 * Ki : Mi;
	/* n rows have n / 2 distinct keys on average */
	const size_t half = (size_t)((double)many * 0.6275), few = 1000;
	size_t n = o.quick ? Mi : Ki * Mi;
	char text[24], name[48];

	small = o.quick;
	processors = (unsigned)device.multiProcessorCount;
	need(get(&out_keys, many, 8) && get(&results, many, 8) && get(&more_results, many, 8) &&
		     get(&expected.counts, many, 4) && get(&expected.first, many, 4) &&
		     get(&expected.last, many, 4) && get(&expected.seen, many, 4) &&
		     get(&expected.sums, many, 8) && get(&expected.squares, many, 8) &&
		     get(&tally, 1, 8) && get(&device_groups, 1, 8) &&
		     cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK,
	     "context and memory");
	if (!holds(n, many, few)) {
		n = 256 * Mi;
		need(holds(n, many, few), "memory");
	}
	printf("f32 values, normally distributed, %s rows; long: %s rows;", size_text(text, many),
	       size_text(name, n));
	printf(" CUB %d.%d.%d\n", CUB_VERSION / 100000, CUB_VERSION / 100 % 1000,
	       CUB_VERSION % 100);
	table_columns("G/s", "a call");
	group_by_case<uint32_t>(o.quick ? "u32, 10 K groups" : "u32, 10 M groups", many,
				o.quick ? 10000 : 10000000, 0);
	group_by_case<uint32_t>("long, u32, 1000 groups", n, few, 0);
	group_by_case<uint32_t>("long, u32, 1000, zipf 1.0", n, few, 10);
	unique_case<uint32_t>("u32, half distinct", many, half);
	snprintf(name, sizeof(name), "u64, %s keys", size_text(text, many));
	group_by_case<uint64_t>(name, many, many, 0);
	snprintf(name, sizeof(name), "u64, %s keys", size_text(text, some));
	group_by_case<uint64_t>(name, many, some, 0);
	snprintf(name, sizeof(name), "u64, %s keys, zipf 1.5", size_text(text, some));
	group_by_case<uint64_t>(name, many, some, 15);
	group_by_case<uint64_t>("u64, 1 Ki keys", many, Ki, 0);
	group_by_case<uint64_t>("u64, 1 Ki keys, zipf 1.5", many, Ki, 15);
	unique_case<uint64_t>("u64, half distinct", many, half);
	cua_context_destroy(ctx);
	free_rows();
	cudaFree(out_keys);
	cudaFree(results);
	cudaFree(more_results);
	cudaFree(expected.counts);
	cudaFree(expected.first);
	cudaFree(expected.last);
	cudaFree(expected.seen);
	cudaFree(expected.sums);
	cudaFree(expected.squares);
	cudaFree(tally);
	cudaFree(device_groups);
	cudaFree(temporary);
	return failed;
}
