/* SPDX-License-Identifier: MIT */
/*
 * The two programs of the textbooks at their sizes: a dot product finished on the GPU under a lock, and a
 * hash table with a lock a bucket. Peers are our own writing of the programs as the books describe them
 * (Sanders and Kandrot, CUDA by Example, appendix A): one compare-and-swap spin lock with __threadfence.
 *
 * Every figure is the median of RUNS runs, after one that is not counted, with the least and the most.
 */
#include <cuatomic/chained.h>
#include <cuatomic/reduce.h>

#include "bench.h"

#define DOT_N ((size_t)33 << 20)
#define KEYS ((size_t)26214400)

/* ---- the textbook's programs ---- */

static __global__ void textbook_dot(size_t n, const float *x, const float *y, float *result,
				    struct textbook_lock *lock)
{
	__shared__ float cache[256];
	float sum = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		sum += x[i] * y[i];
	cache[threadIdx.x] = sum;
	__syncthreads();
	for (unsigned half = blockDim.x / 2; half; half /= 2) {
		if (threadIdx.x < half)
			cache[threadIdx.x] += cache[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		textbook_acquire(lock);
		*(volatile float *)result += cache[0];
		textbook_release(lock);
	}
}

struct textbook_entry {
	unsigned key;
	void *value;
	struct textbook_entry *next;
};

static __global__ void textbook_insert(size_t n, const unsigned *keys, struct textbook_entry **heads,
				       unsigned buckets, struct textbook_entry *pool,
				       struct textbook_lock *locks)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		unsigned bucket = keys[i] % buckets;

		/* a lane at a time, as the book does against deadlock in lockstep */
		for (unsigned lane = 0; lane < 32; lane++)
			if (lane == threadIdx.x % 32) {
				pool[i].key = keys[i];
				pool[i].value = NULL;
				textbook_acquire(&locks[bucket]);
				pool[i].next = *(struct textbook_entry *volatile *)&heads[bucket];
				*(struct textbook_entry *volatile *)&heads[bucket] = &pool[i];
				textbook_release(&locks[bucket]);
			}
	}
}

/* ---- inputs ---- */

static __device__ uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static __global__ void make_floats(size_t n, float *x, uint64_t seed)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		x[i] = (float)(mix(i + seed) >> 40) * 0x1p-24f;
}

static __global__ void make_keys(size_t n, uint64_t *keys, unsigned *narrow)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		keys[i] = (unsigned)mix(i + 12345);
		narrow[i] = (unsigned)keys[i];
	}
}

/* Reads 16 bytes a load and keeps nothing: the ceiling of this machine in this run. */
static __global__ void read_all(size_t n, const uint4 *x, unsigned *sink)
{
	unsigned sum = 0;
	size_t stride = (size_t)gridDim.x * blockDim.x;

#pragma unroll 4
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
		uint4 v = x[i];

		sum += v.x ^ v.y ^ v.z ^ v.w;
	}
	if (sum == 0x12345678u)
		*sink = sum;
}

static void dots(struct cua_context *ctx)
{
	static const struct {
		enum cua_finish_mode mode;
		const char *name;
	} ways[] = {{CUA_FINISH_LAST_BLOCK, "last block"},
		    {CUA_FINISH_ATOMIC, "atomic"},
		    {CUA_FINISH_LOCK, "lock"},
		    {CUA_FINISH_ORDERED_LOCK, "ordered lock"}};
	static const unsigned grids[] = {32, 132, 1056};
	float *x, *y, *result;
	struct textbook_lock *lock;
	unsigned *sink;
	double bytes = 2.0 * DOT_N * sizeof(float), ceiling;
	struct timing t;

	need(!cudaMalloc(&x, DOT_N * 4) && !cudaMalloc(&y, DOT_N * 4) && !cudaMalloc(&result, 4) &&
		     !cudaMalloc(&lock, sizeof(*lock)) && !cudaMalloc(&sink, 4),
	     "cudaMalloc");
	make_floats<<<1056, 256>>>(DOT_N, x, 1);
	make_floats<<<1056, 256>>>(DOT_N, y, 2);
	cudaMemset(lock, 0, sizeof(*lock));
	auto nothing = [] {};
	auto clear = [=] { cudaMemset(result, 0, 4); };

	t = measure(nothing, [=] {
		read_all<<<1056, 256>>>(DOT_N / 4, (const uint4 *)x, sink);
		read_all<<<1056, 256>>>(DOT_N / 4, (const uint4 *)y, sink);
	});
	ceiling = bytes / t.median / 1e3;
	printf("dot of %zu floats, %.0f MB\n%-28s %9s %9s %9s %8s %8s\n", DOT_N, bytes / 1e6, "", "us",
	       "least", "most", "GB/s", "of read");
#define ROW(name, t)                                                                               \
	printf("%-28s %9.1f %9.1f %9.1f %8.0f %7.2f\n", name, (t).median, (t).least, (t).most,     \
	       bytes / (t).median / 1e3, bytes / (t).median / 1e3 / ceiling)
	ROW("read only, two kernels", t);
	for (unsigned g : grids) {
		char name[64];

		snprintf(name, sizeof(name), "textbook, %u blocks", g);
		t = measure(clear, [=] { textbook_dot<<<g, 256>>>(DOT_N, x, y, result, lock); });
		ROW(name, t);
	}
	t = measure(nothing, [=] { need(cua_dot_f32(ctx, DOT_N, x, y, result) == CUA_OK, "cua_dot"); });
	ROW("cua_dot", t);
	for (auto &way : ways)
		for (unsigned g : grids) {
			struct cua_reduce_options options = {};
			char name[64];

			options.struct_size = sizeof(options);
			options.finish = way.mode;
			options.blocks = g;
			snprintf(name, sizeof(name), "cua_dot, %s, %u blocks", way.name, g);
			t = measure(nothing, [=] {
				need(cua_reduce(ctx, &options, CUA_REDUCE_DOT, CUA_F32, DOT_N, x, y,
						result) == CUA_OK,
				     "cua_reduce");
			});
			ROW(name, t);
		}
	cudaFree(x);
	cudaFree(y);
	cudaFree(result);
	cudaFree(lock);
	cudaFree(sink);
}

static void tables(struct cua_context *ctx)
{
	static const unsigned buckets[] = {1024, 1 << 20};
	uint64_t *keys;
	unsigned *narrow;
	struct textbook_entry **heads, *pool;
	struct textbook_lock *locks;

	need(!cudaMalloc(&keys, KEYS * 8) && !cudaMalloc(&narrow, KEYS * 4) &&
		     !cudaMalloc(&heads, sizeof(*heads) << 20) &&
		     !cudaMalloc(&locks, sizeof(*locks) << 20) &&
		     !cudaMalloc(&pool, KEYS * sizeof(*pool)),
	     "cudaMalloc");
	make_keys<<<1056, 256>>>(KEYS, keys, narrow);
	cudaMemset(locks, 0, sizeof(*locks) << 20);
	printf("\nhash table with a lock a bucket, %zu random keys\n%-28s %9s %9s %9s %8s\n", KEYS, "",
	       "ms", "least", "most", "Gkeys/s");
#define TABLE_ROW(name, t)                                                                         \
	printf("%-28s %9.2f %9.2f %9.2f %8.3f\n", name, (t).median / 1e3, (t).least / 1e3,         \
	       (t).most / 1e3, KEYS / (t).median / 1e3)
	for (unsigned b : buckets) {
		struct cua_chained *table;
		struct timing t;
		char name[64];

		snprintf(name, sizeof(name), "textbook, %u buckets", b);
		t = measure([=] { cudaMemset(heads, 0, sizeof(*heads) * b); },
			    [=] { textbook_insert<<<132, 256>>>(KEYS, narrow, heads, b, pool, locks); });
		TABLE_ROW(name, t);
		need(cua_chained_create(ctx, b, KEYS, &table) == CUA_OK, "cua_chained_create");
		snprintf(name, sizeof(name), "cua_chained, %u buckets", b);
		t = measure([=] { need(cua_chained_clear(table) == CUA_OK, "cua_chained_clear"); },
			    [=] {
				    need(cua_chained_insert_n(table, KEYS, keys, keys) == CUA_OK,
					 "cua_chained_insert_n");
			    });
		TABLE_ROW(name, t);
		need(cua_chained_verify(table, NULL) == CUA_OK, "cua_chained_verify");
		cua_chained_destroy(table);
	}
	cudaFree(keys);
	cudaFree(narrow);
	cudaFree(heads);
	cudaFree(locks);
	cudaFree(pool);
}

int main(void)
{
	struct cua_context *ctx;
	struct cua_device_info info = {};

	info.struct_size = sizeof(info);
	if (cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) != CUA_OK) {
		fprintf(stderr, "textbook: no CUDA device\n");
		return 77;
	}
	need(cua_device_query(CUA_BACKEND_CUDA, 0, &info) == CUA_OK, "cua_device_query");
	printf("%s, %u multiprocessors; medians of %d\n", info.name, info.processors, RUNS);
	dots(ctx);
	tables(ctx);
	cua_context_destroy(ctx);
	return 0;
}
