/* SPDX-License-Identifier: MIT */
/*
 * Two textbook programs at their original sizes, in millions of elements a second: a dot product
 * that blocks finish under a lock on the GPU, and a hash table with a lock for each bucket. The
 * peers are written for this benchmark after the book (Sanders and Kandrot, CUDA by Example,
 * appendix A), with a compare-and-swap spin lock and __threadfence. The ceiling of the dot product
 * is a pair of kernels that only read the two arrays.
 */
#include <math.h>

#include <cuatomic/chained.h>
#include <cuatomic/reduce.h>

#include "gpu_bench.h"

static size_t dot_n = (size_t)33 << 20;
static size_t n_keys = 26214400;
static struct table table;

/* ---- the textbook programs ---- */

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

static __global__ void textbook_insert(size_t n, const unsigned *keys,
				       struct textbook_entry **heads, unsigned buckets,
				       struct textbook_entry *pool, struct textbook_lock *locks)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		unsigned bucket = keys[i] % buckets;

		/* a lane at a time, like the book, against deadlock in lockstep */
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

/* The read ceiling: loads 16 bytes at a time and discards them. */
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

/* ---- kernels that call the library ---- */

enum way { PUSH, PUSH_WARP, BUILD };

template <enum way WAY>
static __global__ void add_lanes(struct cua_chained_view view, size_t n, const uint64_t *keys)
{
	/* full warps: no lane leaves the loop early */
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i - threadIdx.x % 32 < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		uint64_t key = i < n ? keys[i] : 0;

		if (WAY == PUSH_WARP)
			cua_chained_push_warp(&view, 0xffffffffu, i < n, key, key);
		else if (i < n && WAY == PUSH)
			cua_chained_push(&view, key, key);
		else if (i < n)
			cua_chained_build(&view, key, key);
	}
}

/* Counts the entries of all chains. */
static __global__ void count_entries(unsigned buckets, struct textbook_entry *const *heads,
				     unsigned long long *count)
{
	unsigned long long n = 0;

	for (unsigned b = blockIdx.x * blockDim.x + threadIdx.x; b < buckets;
	     b += gridDim.x * blockDim.x)
		for (const struct textbook_entry *e = heads[b]; e; e = e->next)
			n++;
	atomicAdd(count, n);
}

static void check(bool right, const char *way)
{
	if (right)
		return;
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: textbook: %s, %s: wrong result\n", table.name, way);
	exit(1);
}

static double dot_on_host(size_t n, const float *x, const float *y)
{
	float *a = (float *)malloc(n * sizeof(*a)), *b = (float *)malloc(n * sizeof(*b));
	double sum = 0;

	need(a && b && !cudaMemcpy(a, x, n * sizeof(*a), cudaMemcpyDeviceToHost) &&
		     !cudaMemcpy(b, y, n * sizeof(*b), cudaMemcpyDeviceToHost),
	     "arrays on the host");
	for (size_t i = 0; i < n; i++)
		sum += (double)a[i] * (double)b[i];
	free(a);
	free(b);
	return sum;
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
	size_t n = dot_n;
	float *x = NULL, *y = NULL, *result = NULL;
	struct textbook_lock *lock = NULL;
	unsigned *sink = NULL;
	double wanted;
	char way[TABLE_NAME];

	need(!cudaMalloc(&x, n * 4) && !cudaMalloc(&y, n * 4) && !cudaMalloc(&result, 4) &&
		     !cudaMalloc(&lock, sizeof(*lock)) && !cudaMalloc(&sink, 4),
	     "memory");
	make_floats<<<1056, 256>>>(n, x, 1);
	make_floats<<<1056, 256>>>(n, y, 2);
	need(!cudaMemset(lock, 0, sizeof(*lock)), "cudaMemset");
	wanted = dot_on_host(n, x, y);
	auto nothing = [] {};
	auto clear = [=] { cudaMemset(result, 0, 4); };
	auto verify = [&] {
		float got;

		need(!cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost), way);
		/*
		 * a large tolerance: in blocks of few threads, a thread adds some thousand floats
		 * serially
		 */
		check(fabs((double)got - wanted) <= 1e-3 * wanted, way);
	};

	table_begin(&table, "dot product");
	table_add(&table, TABLE_CEILING, "ceiling: read only, two kernels",
		  measure((double)n, nothing,
			  [=] {
				  read_all<<<1056, 256>>>(n / 4, (const uint4 *)x, sink);
				  read_all<<<1056, 256>>>(n / 4, (const uint4 *)y, sink);
			  },
			  nothing));
	for (unsigned g : grids) {
		snprintf(way, sizeof(way), "textbook, %u blocks", g);
		table_add(&table, TABLE_PEER, way,
			  measure((double)n, clear,
				  [=] { textbook_dot<<<g, 256>>>(n, x, y, result, lock); },
				  verify));
	}
	snprintf(way, sizeof(way), "cua_dot");
	table_add(&table, TABLE_OURS, way,
		  measure((double)n, clear,
			  [=] { need(cua_dot_f32(ctx, n, x, y, result) == CUA_OK, "cua_dot"); },
			  verify));
	for (auto &finish : ways)
		for (unsigned g : grids) {
			struct cua_reduce_options options = CUA_REDUCE_OPTIONS_INIT;

			options.finish = finish.mode;
			options.blocks = g;
			snprintf(way, sizeof(way), "cua_dot, %s, %u blocks", finish.name, g);
			table_add(&table, TABLE_OURS, way,
				  measure((double)n, clear,
					  [=] {
						  need(cua_reduce(ctx, &options, CUA_REDUCE_DOT,
								  CUA_F32, n, x, y,
								  result) == CUA_OK,
						       "cua_reduce");
					  },
					  verify));
		}
	table_end(&table);
	cudaFree(x);
	cudaFree(y);
	cudaFree(result);
	cudaFree(lock);
	cudaFree(sink);
}

static void tables(struct cua_context *ctx)
{
	static const unsigned all_buckets[] = {1024, 1 << 20};
	size_t n = n_keys;
	uint64_t *keys;
	unsigned *narrow;
	struct textbook_entry **heads, *pool;
	struct textbook_lock *locks = NULL;
	unsigned long long *count;

	need(!cudaMalloc(&keys, n * 8) && !cudaMalloc(&narrow, n * 4) &&
		     !cudaMalloc(&heads, sizeof(*heads) << 20) &&
		     !cudaMalloc(&locks, sizeof(*locks) << 20) &&
		     !cudaMalloc(&pool, n * sizeof(*pool)) && !cudaMalloc(&count, sizeof(*count)),
	     "memory");
	make_keys<<<1056, 256>>>(n, keys, narrow);
	need(!cudaMemset(locks, 0, sizeof(*locks) << 20), "cudaMemset");
	for (unsigned b : all_buckets) {
		struct cua_chained *chained;
		struct cua_chained_view view;
		char name[28];

		snprintf(name, sizeof(name), "hash table, %u buckets", b);
		table_begin(&table, name);
		table_add(&table, TABLE_PEER, "textbook",
			  measure((double)n, [=] { cudaMemset(heads, 0, sizeof(*heads) * b); },
				  [=] {
					  textbook_insert<<<132, 256>>>(n, narrow, heads, b, pool,
									locks);
				  },
				  [=] {
					  unsigned long long got;

					  cudaMemset(count, 0, sizeof(*count));
					  count_entries<<<132, 256>>>(b, heads, count);
					  need(!cudaMemcpy(&got, count, sizeof(got),
							   cudaMemcpyDeviceToHost),
					       "textbook");
					  check(got == n, "textbook");
				  }));
		need(cua_chained_create(ctx, NULL, b, n, &chained) == CUA_OK &&
			     cua_chained_get_view(chained, &view) == CUA_OK,
		     "cua_chained_create");
		auto clear = [=] {
			need(cua_chained_clear(chained) == CUA_OK, "cua_chained_clear");
		};
		auto add = [&](const char *way, auto call) {
			table_add(&table, TABLE_OURS, way, measure((double)n, clear, call, [=] {
				struct cua_chained_report report = CUA_CHAINED_REPORT_INIT;

				check(cua_chained_verify(chained, &report) == CUA_OK &&
					      report.reached == n,
				      way);
			}));
		};

		add("cua_chained_insert_n", [=] {
			need(cua_chained_insert_n(chained, n, keys, keys) == CUA_OK,
			     "cua_chained_insert_n");
		});
		add("cua_chained_build_n", [=] {
			need(cua_chained_build_n(chained, n, keys, keys) == CUA_OK,
			     "cua_chained_build_n");
		});
		add("cua_chained_build in a kernel",
		    [=] { add_lanes<BUILD><<<1056, 256>>>(view, n, keys); });
		add("cua_chained_push in a kernel",
		    [=] { add_lanes<PUSH><<<1056, 256>>>(view, n, keys); });
		add("cua_chained_push_warp in a kernel",
		    [=] { add_lanes<PUSH_WARP><<<1056, 256>>>(view, n, keys); });
		cua_chained_destroy(chained);
		table_end(&table);
	}
	cudaFree(keys);
	cudaFree(narrow);
	cudaFree(heads);
	cudaFree(locks);
	cudaFree(pool);
	cudaFree(count);
}

int main(int argc, char **argv)
{
	struct options o = parse_options(argc, argv, "textbook", false);
	struct cua_context *ctx;

	(void)print_head("textbook");
	need(cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK, "cua_context_create");
	if (o.quick) {
		dot_n = (size_t)1 << 20;
		n_keys = 1 << 18;
	}
	printf("dot product of %zu floats; %zu random keys into an empty table with a lock for each bucket\n",
	       dot_n, n_keys);
	table_columns("M/s", "");
	dots(ctx);
	tables(ctx);
	cua_context_destroy(ctx);
	return 0;
}
