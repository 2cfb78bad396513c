/* SPDX-License-Identifier: MIT */
/*
 * bench-stream read|write|copy|fill: whole arrays, by the size of the operands, the threads of a
 * block and the operands that a thread has in flight.
 *
 * aligned          element i
 * offset           element i + 1 of an aligned array
 * strided          element 32 * i; the rates count the bytes of the elements only
 * ld.global.nc     element i through the read-only path
 * texture          element i of a texture object (tex1Dfetch)
 *
 * Source of the programs: The CUDA Handbook, global memory: bandwidth by operand size, unrolling
 * and threads of a block. The arrays are larger than the caches. The sums of all reads, and all
 * written elements, are checked.
 */
#include <cuatomic.h>

#include "gpu_bench_memory.h"

#define STRIDE 32
/* The array sizes are multiples of the largest tile: 1024 threads, 16 operands of 16 bytes. */
#define TILE_BYTES ((uint64_t)1024 * 16 * 16)
/* The strided elements of 16 bytes are a tile of 256 threads. */
#define LEAST_BYTES ((uint64_t)256 * 16 * 16 * STRIDE)
/* A linear texture has at most 2^27 elements. */
#define TEXTURE_ELEMENTS ((size_t)1 << 27)

static uint64_t bytes;       /* of an array */
static char *memory, *other; /* two arrays; other is NULL if the benchmark needs one */
static uint32_t *sums;
static uint32_t *totals; /* results of the checks */
static struct figure ceiling;

/* ---- accesses ---- */

struct strided_access : plain_access {
	static __device__ __forceinline__ size_t place(size_t i)
	{
		return i * STRIDE;
	}
};

struct constant_access : plain_access {
	template <typename T> static __device__ __forceinline__ T load(const T *x, size_t i)
	{
		return __ldg(x + i);
	}
};

/* The pointer of the kernel is the handle of the texture object. */
struct texture_access : plain_access {
	template <typename T> static __device__ __forceinline__ T load(const T *x, size_t i)
	{
		return tex1Dfetch<T>((cudaTextureObject_t)x, (int)i);
	}
};

/* ---- checks ---- */

template <typename T>
static __global__ void sum_elements(const T *x, size_t n, size_t stride, uint32_t *total)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;
	uint32_t sum = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		sum += fold(x[i * stride]);
	atomicAdd(total, sum);
}

/* Counts the elements that a write did not write. */
template <typename T>
static __global__ void count_unwritten(const T *x, size_t n, size_t stride, unsigned block,
				       uint32_t seed, uint32_t *total)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;
	uint32_t bad = 0;
	T v;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		spread(&v, seed + (uint32_t)(i % block));
		bad += !same(x[i * stride], v);
	}
	if (bad)
		atomicAdd(total, bad);
}

template <typename T>
static __global__ void count_unequal(const T *x, const T *y, size_t n, size_t stride,
				     uint32_t *total)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;
	uint32_t bad = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		bad += !same(x[i * stride], y[i * stride]);
	if (bad)
		atomicAdd(total, bad);
}

/* Runs a kernel that adds to a total, and returns the total. */
template <typename Launch> static uint32_t total_of(Launch launch)
{
	uint32_t total;

	need(!cudaMemset(totals, 0, sizeof(*totals)), "cudaMemset");
	launch();
	need(!cudaMemcpy(&total, totals, sizeof(total), cudaMemcpyDeviceToHost), "a check");
	return total;
}

/* ---- a case: an operand size and an access ---- */

struct stream_case {
	const char *access;
	size_t first; /* element */
	size_t stride;
	bool full; /* all sizes of blocks; otherwise blocks of 256 threads */
};

/* A multiple of the elements of a tile. An offset needs an element more, so it leaves a tile out. */
template <typename T> static size_t case_elements(const struct stream_case *c)
{
	const size_t tile = (c->full ? 1024 : 256) * 16;

	return (bytes - (c->first ? TILE_BYTES : 0)) / sizeof(T) / c->stride / tile * tile;
}

/* Calls row(unroll as a constant). */
template <typename Row> static void each_unroll(Row row)
{
	row(std::integral_constant<int, 1>());
	row(std::integral_constant<int, 2>());
	row(std::integral_constant<int, 4>());
	row(std::integral_constant<int, 8>());
	row(std::integral_constant<int, 16>());
}

/* Calls row(block, unroll) for the rows of a case. */
template <typename T, typename Row> static void each_row(const struct stream_case *c, Row row)
{
	char name[28], way[TABLE_NAME];

	snprintf(name, sizeof(name), "%s, %zu byte%s", c->access, sizeof(T),
		 sizeof(T) == 1 ? "" : "s");
	table_begin(&table, name);
	table_add(&table, TABLE_CEILING, "ceiling: best of 16 bytes, aligned", ceiling);
	for (unsigned block = c->full ? 32 : 256; block <= (c->full ? 1024 : 256); block *= 2) {
		each_unroll([&](auto unroll) {
			snprintf(way, sizeof(way), "block %u, unroll %d", block, (int)unroll);
			if (table_wants(table.name, way))
				row(way, block, unroll);
		});
	}
	table_end(&table);
}

/* Calls f with a null pointer to each operand type. */
template <typename F> static void each_operand(F f)
{
	f((uint8_t *)NULL);
	f((uint16_t *)NULL);
	f((uint32_t *)NULL);
	f((uint2 *)NULL);
	f((uint4 *)NULL);
}

/* ---- read ---- */

template <class ACCESS, typename T>
static void read_case(const struct stream_case *c, const T *x, const T *argument, size_t n)
{
	uint32_t right =
		total_of([&] { sum_elements<<<processors * 8, 256>>>(x, n, c->stride, totals); });

	each_row<T>(c, [&](const char *way, unsigned block, auto unroll) {
		auto kernel = read_kernel<ACCESS, (int)unroll, T>;
		unsigned blocks = resident(kernel, block, n / ((size_t)block * (int)unroll));
		struct figure f =
			measure((double)n * sizeof(T) * 1e-3, [] {},
				[=] { kernel<<<blocks, block>>>(argument, n, sums); }, [] {});

		need(total_of([&] {
			     sum_elements<<<8, 256>>>(sums, (size_t)blocks * block, 1, totals);
		     }) == right,
		     way);
		table_add(&table, TABLE_OURS, way, f);
	});
}

template <typename T> static void read_texture_case(const struct stream_case *c)
{
	size_t n = case_elements<T>(c);
	cudaResourceDesc resource = {};
	cudaTextureDesc description = {};
	cudaTextureObject_t texture;

	n = n < TEXTURE_ELEMENTS ? n : TEXTURE_ELEMENTS;
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.desc = cudaCreateChannelDesc<T>();
	resource.res.linear.sizeInBytes = n * sizeof(T);
	description.readMode = cudaReadModeElementType;
	need(!cudaCreateTextureObject(&texture, &resource, &description, NULL), "a texture");
	read_case<texture_access, T>(c, (const T *)memory, (const T *)texture, n);
	cudaDestroyTextureObject(texture);
}

static void read_cases(const struct stream_case *c)
{
	each_operand([&](auto *null) {
		typedef typename std::remove_pointer<decltype(null)>::type T;
		const T *x = (const T *)memory + c->first;
		const size_t n = case_elements<T>(c);

		if (!strcmp(c->access, "texture"))
			read_texture_case<T>(c);
		else if (!strcmp(c->access, "ld.global.nc"))
			read_case<constant_access, T>(c, x, x, n);
		else if (c->stride > 1)
			read_case<strided_access, T>(c, x, x, n);
		else
			read_case<plain_access, T>(c, x, x, n);
	});
}

/* ---- write ---- */

template <class ACCESS, typename T> static void write_case(const struct stream_case *c)
{
	static uint32_t seed = 12345;
	T *x = (T *)memory + c->first;
	const size_t n = case_elements<T>(c);

	each_row<T>(c, [&](const char *way, unsigned block, auto unroll) {
		auto kernel = write_kernel<ACCESS, (int)unroll, T>;
		unsigned blocks = resident(kernel, block, n / ((size_t)block * (int)unroll));
		struct figure f;

		seed += 0x01010101; /* other bytes than the last row */
		f = measure((double)n * sizeof(T) * 1e-3, [] {},
			    [=] { kernel<<<blocks, block>>>(x, n, seed); }, [] {});
		need(!total_of([&] {
			count_unwritten<<<processors * 8, 256>>>(x, n, c->stride, block, seed,
								 totals);
		}),
		     way);
		table_add(&table, TABLE_OURS, way, f);
	});
}

static void write_cases(const struct stream_case *c)
{
	each_operand([&](auto *null) {
		typedef typename std::remove_pointer<decltype(null)>::type T;

		if (c->stride > 1)
			write_case<strided_access, T>(c);
		else
			write_case<plain_access, T>(c);
	});
}

/* ---- copy ---- */

template <class ACCESS, typename T> static void copy_case(const struct stream_case *c)
{
	const T *x = (const T *)memory + c->first;
	T *y = (T *)other + c->first;
	const size_t n = case_elements<T>(c);

	each_row<T>(c, [&](const char *way, unsigned block, auto unroll) {
		auto kernel = copy_kernel<ACCESS, (int)unroll, T>;
		unsigned blocks = resident(kernel, block, n / ((size_t)block * (int)unroll));
		struct figure f;

		need(!cudaMemset(other, 0, bytes), "cudaMemset");
		f = measure((double)n * sizeof(T) * 2e-3, [] {},
			    [=] { kernel<<<blocks, block>>>(y, x, n); }, [] {});
		need(!total_of([&] {
			count_unequal<<<processors * 8, 256>>>(x, y, n, c->stride, totals);
		}),
		     way);
		table_add(&table, TABLE_OURS, way, f);
	});
}

static void copy_cases(const struct stream_case *c)
{
	each_operand([&](auto *null) {
		typedef typename std::remove_pointer<decltype(null)>::type T;

		if (c->stride > 1)
			copy_case<strided_access, T>(c);
		else
			copy_case<plain_access, T>(c);
	});
}

/* ---- the benchmarks ---- */

static const struct stream_case cases[] = {
	{"aligned", 0, 1, true},       {"offset", 1, 1, false},  {"strided", 0, STRIDE, false},
	{"ld.global.nc", 0, 1, false}, {"texture", 0, 1, false},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))
/* The first cases are also cases of write and copy. */
#define STORE_CASES 3
#define OPERANDS 5
#define FULL_ROWS 31 /* 6 sizes of blocks, 5 of unrolling, and the ceiling */
#define SHORT_ROWS 6

static void allocate(const struct options *o, bool two)
{
	bytes = bench_size(o->quick ? (uint64_t)16 << 20 : (uint64_t)4 << 30);
	bytes = fitting_size(bytes, two ? 2 : 1) / TILE_BYTES * TILE_BYTES;
	if (bytes < LEAST_BYTES)
		bytes = LEAST_BYTES;
	memory = (char *)random_memory(bytes, 1);
	other = two ? (char *)device_memory(bytes) : NULL;
	sums = (uint32_t *)device_memory((size_t)processors * 4096 * sizeof(*sums));
	totals = (uint32_t *)device_memory(sizeof(*totals));
}

static void release(void)
{
	cudaFree(memory);
	cudaFree(other);
	cudaFree(sums);
	cudaFree(totals);
}

static void begin(const struct options *o, size_t n_cases, bool two)
{
	char text[24];

	bench_plan(OPERANDS * (FULL_ROWS + (n_cases - 1) * SHORT_ROWS));
	allocate(o, two);
	printf("arrays of %s, resident blocks\n", bench_bytes(text, bytes));
	table_columns("GB/s", "");
}

static void bench_read(const struct options *o)
{
	begin(o, CASES, false);
	ceiling = best_read((const uint4 *)memory, bytes / 16, sums);
	for (size_t i = 0; i < CASES; i++)
		read_cases(&cases[i]);
	release();
}

static void bench_write(const struct options *o)
{
	begin(o, STORE_CASES, false);
	ceiling = best_write((uint4 *)memory, bytes / 16);
	for (size_t i = 0; i < STORE_CASES; i++)
		write_cases(&cases[i]);
	release();
}

static void bench_copy(const struct options *o)
{
	begin(o, STORE_CASES, true);
	ceiling = best_copy((uint4 *)other, (const uint4 *)memory, bytes / 16);
	for (size_t i = 0; i < STORE_CASES; i++)
		copy_cases(&cases[i]);
	release();
}

/* ---- fill ---- */

static struct cua_context *ctx;
static const uint8_t pattern[16] = {0x5a, 0x01, 0xc3, 0x7e, 0x11, 0x92, 0xf0, 0x3d,
				    0x84, 0x6b, 0x2f, 0xd8, 0x49, 0xe6, 0x07, 0xb5};

/* Counts the bytes of rows that differ from the pattern, and the bytes of the padding that changed. */
static __global__ void count_bad_bytes(const uint8_t *x, size_t pitch, size_t row_bytes,
				       size_t rows, uint4 bits, unsigned pattern_bytes,
				       uint32_t *total)
{
	const size_t n = pitch * rows, step = (size_t)gridDim.x * blockDim.x;
	const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
	uint32_t bad = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		const size_t column = i % pitch;
		const unsigned k = (unsigned)(column % pattern_bytes);
		const uint8_t wanted = (uint8_t)(words[k / 4] >> (k % 4 * 8));

		bad += x[i] != (column < row_bytes ? wanted : 0);
	}
	if (bad)
		atomicAdd(total, bad);
}

/* Rows of an array, `pitch` bytes apart. Rows without padding are one long row. */
struct rows {
	char *first;
	size_t pitch, row_bytes, n;
};

template <typename Fill>
static void fill_row(enum table_kind kind, const char *way, const struct rows *r,
		     unsigned pattern_bytes, Fill fill)
{
	struct figure f;
	uint4 bits;

	if (!table_wants(table.name, way))
		return;
	memcpy(&bits, pattern, sizeof(bits));
	need(!cudaMemset(r->first, 0, r->pitch * r->n), "cudaMemset");
	f = measure((double)r->row_bytes * (double)r->n * 1e-3, [] {}, [&] { need(fill(), way); },
		    [] {});
	need(!total_of([&] {
		count_bad_bytes<<<processors * 8, 256>>>((const uint8_t *)r->first, r->pitch,
							 r->row_bytes, r->n, bits, pattern_bytes,
							 totals);
	}),
	     way);
	table_add(&table, kind, way, f);
}

/* Functions of the driver that fill with words of 16 and 32 bits. */
typedef int (*driver_fill_16)(unsigned long long to, unsigned short v, size_t n, cudaStream_t s);
typedef int (*driver_fill_32)(unsigned long long to, unsigned v, size_t n, cudaStream_t s);

static void *driver_function(const char *name)
{
	void *f = NULL;
#if CUDART_VERSION >= 12050
	cudaDriverEntryPointQueryResult found;

	need(!cudaGetDriverEntryPointByVersion(name, &f, 11000, cudaEnableDefault, &found), name);
#elif CUDART_VERSION >= 12000
	cudaDriverEntryPointQueryResult found;

	need(!cudaGetDriverEntryPoint(name, &f, cudaEnableDefault, &found), name);
#else
	need(!cudaGetDriverEntryPoint(name, &f, cudaEnableDefault), name);
#endif
	need(f != NULL, name);
	return f;
}

template <typename T> static __global__ void plain_fill(T *x, size_t n, T v)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		x[i] = v;
}

static void fill_peer(const struct rows *r, unsigned pattern_bytes)
{
	const unsigned long long to = (unsigned long long)r->first;
	const size_t n = r->row_bytes / pattern_bytes;
	uint32_t word;

	memcpy(&word, pattern, sizeof(word));
	if (pattern_bytes == 1)
		fill_row(TABLE_PEER, "cudaMemset", r, 1,
			 [=] { return !cudaMemsetAsync((void *)to, pattern[0], n, 0); });
	if (pattern_bytes == 2)
		fill_row(TABLE_PEER, "cuMemsetD16", r, 2,
			 [=, f = (driver_fill_16)driver_function("cuMemsetD16Async")] {
				 return !f(to, (unsigned short)word, n, 0);
			 });
	if (pattern_bytes == 4)
		fill_row(TABLE_PEER, "cuMemsetD32", r, 4,
			 [=, f = (driver_fill_32)driver_function("cuMemsetD32Async")] {
				 return !f(to, word, n, 0);
			 });
}

template <typename T> static void fill_loop(const struct rows *r)
{
	T *x = (T *)r->first, v;
	const size_t n = r->row_bytes / sizeof(T);

	memcpy(&v, pattern, sizeof(v));
	fill_row(TABLE_PEER, "loop of stores", r, sizeof(T), [=] {
		plain_fill<<<processors * 8, 256>>>(x, n, v);
		return true;
	});
}

/* first: the byte of the array where the fill begins. */
template <typename T> static void fill_1d(const char *name, size_t first)
{
	/* nothing is padding, so a row of the check is a pattern */
	const size_t n = bytes - TILE_BYTES;
	const struct rows whole = {memory + first, n, n, 1};

	table_begin(&table, name);
	table_add(&table, TABLE_CEILING, "ceiling: best of 16 bytes, aligned", ceiling);
	fill_peer(&whole, sizeof(T));
	fill_loop<T>(&whole);
	fill_row(TABLE_OURS, "cua_fill", &whole, sizeof(T),
		 [=] { return !cua_fill(ctx, whole.first, n / sizeof(T), sizeof(T), pattern); });
	table_end(&table);
}

/* An array of `depth` slices. solid: of three dimensions, otherwise of two. */
static void fill_pitched(bool solid, size_t row_bytes, size_t height, size_t depth)
{
	struct cua_pitched a;
	struct rows r;
	char name[28], way[TABLE_NAME];

	snprintf(name, sizeof(name), "%s, rows of %zu bytes", solid ? "3-D" : "2-D", row_bytes);
	need(!cua_alloc_3d(ctx, row_bytes / 4, height, depth, 4, &a), "cua_alloc_3d");
	r = (struct rows){(char *)a.base, a.pitch, row_bytes, height * depth};
	table_begin(&table, name);
	table_add(&table, TABLE_CEILING, "ceiling: best of 16 bytes, aligned", ceiling);
	if (solid)
		fill_row(TABLE_PEER, "cudaMemset3D", &r, 1, [=] {
			cudaPitchedPtr p = make_cudaPitchedPtr(a.base, a.pitch, row_bytes, height);

			return !cudaMemset3DAsync(p, pattern[0],
						  make_cudaExtent(row_bytes, height, depth), 0);
		});
	else
		fill_row(TABLE_PEER, "cudaMemset2D", &r, 1, [=] {
			return !cudaMemset2DAsync(a.base, a.pitch, pattern[0], row_bytes, height,
						  0);
		});
	for (unsigned k = 1; k <= 4; k *= 2) {
		snprintf(way, sizeof(way), "cua_fill_pitched, %u byte%s", k, k == 1 ? "" : "s");
		fill_row(TABLE_OURS, way, &r, k,
			 [=] { return !cua_fill_pitched(ctx, &a, k, pattern); });
	}
	need(!cua_free_pitched(ctx, &a), "cua_free_pitched");
	table_end(&table);
}

static void bench_fill(const struct options *o)
{
	static const size_t row_bytes[] = {100, 256, 1000, 4000, 100000};
	const size_t n_rows = sizeof(row_bytes) / sizeof(row_bytes[0]);

	bench_plan(6 * 3 + 4 + 2 * n_rows * 5);
	allocate(o, false);
	need(!cua_context_create(CUA_BACKEND_CUDA, 0, &ctx), "cua_context_create");
	table_columns("GB/s", "");
	ceiling = best_write((uint4 *)memory, bytes / 16);
	fill_1d<uint8_t>("1-D, 1 byte", 0);
	fill_1d<uint8_t>("1-D, 1 byte, from byte 1", 1);
	fill_1d<uint16_t>("1-D, 2 bytes", 0);
	fill_1d<uint32_t>("1-D, 4 bytes", 0);
	fill_1d<uint2>("1-D, 8 bytes", 0);
	fill_1d<uint4>("1-D, 16 bytes", 0);
	release();
	for (size_t i = 0; i < n_rows; i++) {
		const size_t pitch = (row_bytes[i] + 255) / 256 * 256, rows = bytes / pitch;
		const size_t height = rows < 200 ? (rows + 1) / 2 : 100;

		totals = (uint32_t *)device_memory(sizeof(*totals));
		fill_pitched(false, row_bytes[i], rows, 1);
		fill_pitched(true, row_bytes[i], height, rows / height > 1 ? rows / height : 2);
		cudaFree(totals);
	}
	cua_context_destroy(ctx);
}

int main(int argc, char **argv)
{
	static const struct memory_bench benches[] = {
		{"read", bench_read},
		{"write", bench_write},
		{"copy", bench_copy},
		{"fill", bench_fill},
	};

	return run_memory_bench(argc, argv, benches, sizeof(benches) / sizeof(benches[0]));
}
