/* SPDX-License-Identifier: MIT */
/*
 * Reductions of whole arrays, in GB/s of the bytes that a call has to read. The peers in the same
 * run are CUB's reductions, with temporary memory allocated beforehand. CUB has no call for
 * products and similar reductions, so these use a transform iterator. If the compiler's CCCL has
 * them, CUB's single-pass sum with atomics and its reproducible sum are peers, too.
 *
 * The ceiling is the faster of two kernels that only read the same bytes, 16 a load: persistent
 * blocks that loop over the arrays, and a block for each tile. Results are stored in device memory.
 * After each run the result is compared with a reference in double precision, or with a value
 * planted in the array.
 */
#include <iterator>
#include <math.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/version.cuh>
#include <cuda/std/functional>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

#include <cuatomic/reduce.h>
#include <cuatomic/segment.h>

#include "gpu_bench_calls.h"

#if defined(CCCL_VERSION)
#if CCCL_VERSION >= 3001000
#define HAVE_DETERMINISM 1
#endif
#endif

static struct cua_context *ctx;
static char *memory; /* the first array, and a second array from the middle on */
static size_t room;  /* size of memory */
static void *result; /* the result that a call stores */
static double *sums; /* two sums of a reference */
static unsigned *sink;

/* ---- checks ---- */

enum reading { OF_F32, OF_F64, OF_I32, OF_I64, OF_U64, OF_TWO_F32, OF_TWO_F64 };

/* One or two expected values, with their tolerances. */
struct expected {
	double v[2], within[2];
};

static struct expected one(double v, double within)
{
	struct expected e = {{v, 0}, {within, 0}};

	return e;
}

static struct expected two(double v, double w, double within)
{
	struct expected e = {{v, w}, {within, within}};

	return e;
}

/* Returns whether the result is right. A wrong result of the library ends the program. */
static bool verify(enum table_kind kind, const char *way, enum reading reading,
		   const struct expected &wanted)
{
	union {
		float f32[2];
		double f64[2];
		int32_t i32;
		int64_t i64;
		uint64_t u64;
	} got;
	double v[2] = {0, 0};

	need(!cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost), way);
	switch (reading) {
	case OF_F32: v[0] = (double)got.f32[0]; break;
	case OF_F64: v[0] = got.f64[0]; break;
	case OF_I32: v[0] = got.i32; break;
	case OF_I64: v[0] = (double)got.i64; break;
	case OF_U64: v[0] = (double)got.u64; break;
	case OF_TWO_F32: v[0] = (double)got.f32[0], v[1] = (double)got.f32[1]; break;
	case OF_TWO_F64: v[0] = got.f64[0], v[1] = got.f64[1]; break;
	}
	for (int i = 0; i < 2; i++)
		/* negated, so that a NaN fails */
		if (!(fabs(v[i] - wanted.v[i]) <= wanted.within[i])) {
			fflush(stdout);
			fprintf(stderr,
				"cuatomic bench: reduce: %s, %s: the result is %.17g, not %.17g within %.3g\n",
				table.name, way, v[i], wanted.v[i], wanted.within[i]);
			if (kind == TABLE_OURS)
				exit(1);
			return false;
		}
	return true;
}

/* ---- measurement ---- */

static void (*fold)(void); /* reduces many results to a single result, or NULL */
static double bytes;       /* bytes that a call has to read */

/* Measures a call, which stores its result in `result`, and adds its row. */
template <typename Call>
static struct figure row(enum table_kind kind, const char *way, enum reading reading,
			 const struct expected &wanted, Call call)
{
	auto poison = [] {
		need(!cudaMemset(result, 0xff, 16) && !cudaDeviceSynchronize(), "poison");
	};
	bool right = true;
	auto check = [&] {
		/* report only the first wrong result */
		if (kind == TABLE_CEILING || !right)
			return;
		if (fold)
			fold();
		right = verify(kind, way, reading, wanted);
	};
	struct figure f = measure_calls(way, bytes, 1, BENCH_RUNS, poison, call, check);

	add_row(kind, way, f, bytes, right);
	return f;
}

/* ---- the ceiling ---- */

static void ceilings(int arrays)
{
	size_t words = (size_t)bytes / 16 / (size_t)arrays;
	const uint4 *x = (const uint4 *)memory, *y = (const uint4 *)(memory + room / 2);
	struct expected nothing = {};

	both_grids(words, [=](unsigned blocks, bool persistent) {
		row(TABLE_CEILING,
		    persistent ? "ceiling: reads, persistent blocks"
			       : "ceiling: reads, a block per tile",
		    OF_F32, nothing, [=] {
			    if (arrays == 2)
				    read_all<2><<<blocks, THREADS>>>(words, x, y, sink);
			    else
				    read_all<1><<<blocks, THREADS>>>(words, x, y, sink);
		    });
	});
}

/* ---- elements ---- */

static __device__ inline double unit(size_t i, uint64_t seed)
{
	return (double)(mix(i + (seed << 40)) >> 11) * 0x1p-53;
}

template <typename T> static __device__ inline T element(size_t i, uint64_t seed)
{
	return (T)unit(i, seed);
}

template <> __device__ inline __half element<__half>(size_t i, uint64_t seed)
{
	return __float2half((float)unit(i, seed));
}

template <> __device__ inline __nv_bfloat16 element<__nv_bfloat16>(size_t i, uint64_t seed)
{
	return __float2bfloat16((float)unit(i, seed));
}

/* 21 bits, so that a sum of 2^28 elements is exact in a double. */
template <> __device__ inline int32_t element<int32_t>(size_t i, uint64_t seed)
{
	return (int32_t)(mix(i + (seed << 40)) >> 43) - (1 << 20);
}

template <typename T> static __global__ void make_elements(size_t n, T *x, uint64_t seed)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		x[i] = element<T>(i, seed);
}

template <typename T> static T *array(int second)
{
	return (T *)(memory + (second ? room / 2 : 0));
}

template <typename T> static T *make(size_t n, int second)
{
	make_elements<<<processors * 8, THREADS>>>(n, array<T>(second), 1 + second);
	need(!cudaDeviceSynchronize(), "elements");
	return array<T>(second);
}

/* The terms of a reduction, as functions of the element's index. */
template <typename T, typename A> struct value_of {
	const T *x;
	__host__ __device__ A operator()(size_t i) const
	{
		return (A)x[i];
	}
};

template <typename T> struct product_of {
	const T *x, *y;
	__host__ __device__ T operator()(size_t i) const
	{
		return x[i] * y[i];
	}
};

struct complex_product_of {
	const cua_complex_f32 *x, *y;
	__host__ __device__ cua_complex_f32 operator()(size_t i) const
	{
		cua_complex_f32 a = x[i], b = y[i], p;

		p.re = a.re * b.re - a.im * b.im;
		p.im = a.re * b.im + a.im * b.re;
		return p;
	}
};

struct two_sums {
	double sum, squares;
};

struct moments_of {
	const float *x;
	__host__ __device__ two_sums operator()(size_t i) const
	{
		two_sums s = {(double)x[i], (double)x[i] * (double)x[i]};

		return s;
	}
};

struct plus {
	__host__ __device__ float operator()(float a, float b) const
	{
		return a + b;
	}
	__host__ __device__ cua_complex_f32 operator()(cua_complex_f32 a, cua_complex_f32 b) const
	{
		a.re += b.re;
		a.im += b.im;
		return a;
	}
	__host__ __device__ two_sums operator()(two_sums a, two_sums b) const
	{
		a.sum += b.sum;
		a.squares += b.squares;
		return a;
	}
};

/* ---- references, in double precision ---- */

template <class F> struct single {
	F f;
	__device__ two_sums operator()(size_t i) const
	{
		two_sums s = {(double)f(i), 0};

		return s;
	}
};

template <typename T> struct wide_product_of {
	const T *x, *y;
	__device__ double operator()(size_t i) const
	{
		return (double)x[i] * (double)y[i];
	}
};

struct wide_complex_product_of {
	const cua_complex_f32 *x, *y;
	__device__ two_sums operator()(size_t i) const
	{
		double a = (double)x[i].re, b = (double)x[i].im, c = (double)y[i].re,
		       d = (double)y[i].im;
		two_sums s = {a * c - b * d, a * d + b * c};

		return s;
	}
};

template <class F> static __global__ void add_up(size_t n, F f, double *sums)
{
	two_sums mine = {0, 0};

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		two_sums v = f(i);

		mine.sum += v.sum;
		mine.squares += v.squares;
	}
	atomicAdd(&sums[0], mine.sum);
	atomicAdd(&sums[1], mine.squares);
}

template <class F> static two_sums reference_two(size_t n, F f)
{
	two_sums s;

	need(!cudaMemset(sums, 0, sizeof(s)), "cudaMemset");
	add_up<<<processors * 4, THREADS>>>(n, f, sums);
	need(!cudaMemcpy(&s, sums, sizeof(s), cudaMemcpyDeviceToHost), "reference");
	return s;
}

template <class F> static double reference(size_t n, F f)
{
	single<F> s = {f};

	return reference_two(n, s).sum;
}

/*
 * Expects a sum of positive floats in their own precision. A block's share of the sum exceeds the
 * tolerance, so a block left out is detected.
 */
static struct expected about(double v)
{
	return one(v, 2e-5 * fabs(v));
}

/* ---- peers ---- */

/* Measures a call of CUB, f(temporary, bytes), and adds its row. */
template <typename Call>
static struct figure cub_row(const char *way, enum reading reading, const struct expected &wanted,
			     Call f)
{
	return row(TABLE_PEER, way, reading, wanted, cub_call(way, f));
}

/* A transform iterator over the integers from `at` on, because some releases of CUB lack it. */
template <class F, typename V> struct transform_iterator {
	typedef std::random_access_iterator_tag iterator_category;
	typedef V value_type;
	typedef ptrdiff_t difference_type;
	typedef V reference;
	typedef const V *pointer;

	F f;
	ptrdiff_t at;

	__host__ __device__ V operator*() const
	{
		return f((size_t)at);
	}
	template <typename I> __host__ __device__ V operator[](I i) const
	{
		return f((size_t)(at + (ptrdiff_t)i));
	}
	template <typename I> __host__ __device__ transform_iterator operator+(I i) const
	{
		transform_iterator sum = {f, at + (ptrdiff_t)i};

		return sum;
	}
	template <typename I> __host__ __device__ transform_iterator &operator+=(I i)
	{
		at += (ptrdiff_t)i;
		return *this;
	}
	__host__ __device__ transform_iterator &operator++()
	{
		at++;
		return *this;
	}
};

template <typename V, class F> static transform_iterator<F, V> over(F f)
{
	transform_iterator<F, V> first = {f, 0};

	return first;
}

template <typename T, typename R>
static void cub_sum(size_t n, const T *x, enum reading reading, const struct expected &wanted)
{
	cub_row("cub::DeviceReduce::Sum", reading, wanted, [=](void *t, size_t &has) {
		return cub::DeviceReduce::Sum(t, has, x, (R *)result, (int)n);
	});
}

#define WITH_ITERATOR "cub::DeviceReduce::Sum, transform iterator"
#define REDUCE_WITH_ITERATOR "cub::DeviceReduce::Reduce, transform it."

template <typename T> struct product_of_pair {
	__host__ __device__ T operator()(const thrust::tuple<T, T> &pair) const
	{
		return thrust::get<0>(pair) * thrust::get<1>(pair);
	}
};

template <typename T>
static void cub_dot(size_t n, const T *x, const T *y, enum reading reading,
		    const struct expected &wanted)
{
	product_of<T> products = {x, y};

	cub_row(WITH_ITERATOR, reading, wanted, [=](void *t, size_t &has) {
		return cub::DeviceReduce::Sum(t, has, over<T>(products), (T *)result, (int)n);
	});
	/* the form common in Thrust programs */
	cub_row("cub::DeviceReduce::Sum, Thrust's zip iterator", reading, wanted,
		[=](void *t, size_t &has) {
			auto pairs = thrust::make_zip_iterator(thrust::make_tuple(x, y));

			return cub::DeviceReduce::Sum(
				t, has,
				thrust::make_transform_iterator(pairs, product_of_pair<T>()),
				(T *)result, (int)n);
		});
}

#ifdef HAVE_DETERMINISM
/* These calls allocate their own temporary memory. */
template <typename Input, typename R, typename Determinism>
static struct figure cub_one_phase(enum table_kind kind, const char *way, size_t n, Input x, R *,
				   Determinism determinism, enum reading reading,
				   const struct expected &wanted)
{
	auto environment = cuda::execution::require(determinism);

	return row(kind, way, reading, wanted, [=] {
		need(!cub::DeviceReduce::Sum(x, (R *)result, (int)n, environment), way);
	});
}
#endif

/* ---- ours ---- */

struct ours {
	enum cua_reduce_op op;
	enum cua_type type, result_type;
	size_t n;
	const void *x, *y;
	bool has_exact; /* supports mode EXACT */
};

static enum cua_status call(const struct ours &o, const struct cua_reduce_options &options)
{
	return cua_reduce(ctx, &options, o.op, o.type, o.n, o.x, o.y, result);
}

static void need_ok(enum cua_status status, const char *way)
{
	if (status == CUA_OK)
		return;
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: reduce: %s, %s: %s\n", table.name, way,
		cua_strerror(status));
	exit(1);
}

/* Adds the rows of all modes. figures[] receives their figures, from FAST on. */
static void our_rows(const struct ours &o, enum reading reading, const struct expected &wanted,
		     struct figure figures[3])
{
	static const char *const names[] = {"cua_reduce, FAST", "cua_reduce, FIXED",
					    "cua_reduce, EXACT"};
	static const struct figure none = {};

	for (int m = 0; m < (o.has_exact ? 3 : 2); m++) {
		struct cua_reduce_options options = CUA_REDUCE_OPTIONS_INIT;
		enum cua_status status;

		options.mode = (enum cua_reduce_mode)(CUA_REDUCE_FAST + m);
		options.result_type = o.result_type;
		status = call(o, options);
		figures[m] = none;
		if (status == CUA_ERROR_UNSUPPORTED) {
			add_row(TABLE_OURS, names[m], figures[m], bytes, true);
			continue;
		}
		need_ok(status, names[m]);
		figures[m] = row(TABLE_OURS, names[m], reading, wanted,
				 [&] { need_ok(call(o, options), names[m]); });
	}
}

/* ---- the cases ---- */

/* Begins a case with `arrays` arrays of n elements of `size` bytes. */
static void begin(const char *what, size_t n, size_t size, int arrays)
{
	char name[28], text[24];

	snprintf(name, sizeof(name), "%s, %s%s", what, size_text(text, n), timing_names[timing]);
	table_begin(&table, name);
	bytes = (double)n * (double)size * arrays;
	ceilings(arrays);
}

/* Halves n until the arrays fit into the memory. */
static size_t fitting(size_t n, size_t size, int arrays)
{
	if (small)
		n >>= 10;
	while (n * size * (size_t)arrays > room)
		n /= 2;
	return n;
}

#ifdef HAVE_DETERMINISM
/* Compares the reproducible ways once more, with CUB's reproducible sum as peer. */
template <typename Input, typename R>
static void reproducible(const char *what, size_t n, size_t size, int arrays, Input x, R *,
			 enum reading reading, const struct expected &wanted,
			 const struct figure figures[3])
{
	char name[28];

	snprintf(name, sizeof(name), "fixed %s", what);
	begin(name, n, size, arrays);
	cub_one_phase(TABLE_PEER, "cub::DeviceReduce::Sum, gpu_to_gpu", n, x, (R *)nullptr,
		      cuda::execution::determinism::gpu_to_gpu, reading, wanted);
	add_row(TABLE_OURS, "cua_reduce, FIXED", figures[1], bytes, true);
	add_row(TABLE_OURS, "cua_reduce, EXACT", figures[2], bytes, true);
	table_end(&table);
}
#endif

template <typename T, enum cua_type TYPE, enum reading READING> static void sum_case(size_t n)
{
	const T *x = make<T>(n, 0);
	value_of<T, double> values = {x};
	struct ours o = {CUA_REDUCE_SUM, TYPE, (enum cua_type)0, n, x, NULL, true};
	struct expected wanted = about(reference(n, values));
	struct figure figures[3];
	char what[28];

	snprintf(what, sizeof(what), "sum %s", cua_type_name(TYPE));
	begin(what, n, sizeof(T), 1);
	cub_sum<T, T>(n, x, READING, wanted);
#ifdef HAVE_DETERMINISM
	cub_one_phase(TABLE_PEER, "cub::DeviceReduce::Sum, not_guaranteed", n, x, (T *)nullptr,
		      cuda::execution::determinism::not_guaranteed, READING, wanted);
#endif
	our_rows(o, READING, wanted, figures);
	table_end(&table);
#ifdef HAVE_DETERMINISM
	reproducible(cua_type_name(TYPE), n, sizeof(T), 1, x, (T *)nullptr, READING, wanted,
		     figures);
#endif
}

static void dot_case(size_t n)
{
	const float *x = make<float>(n, 0), *y = make<float>(n, 1);
	wide_product_of<float> products = {x, y};
	struct ours o = {CUA_REDUCE_DOT, CUA_F32, (enum cua_type)0, n, x, y, true};
	struct expected wanted = about(reference(n, products));
	struct figure figures[3];

	begin("dot f32", n, sizeof(float), 2);
	cub_dot(n, x, y, OF_F32, wanted);
	our_rows(o, OF_F32, wanted, figures);
	table_end(&table);
}

/* CUB would accumulate in 16 bits, which cannot represent this sum, so its accumulator is f32. */
template <typename T, enum cua_type TYPE> static void short_sum_case(size_t n)
{
	const T *x = make<T>(n, 0);
	value_of<T, float> values = {x};
	struct ours o = {CUA_REDUCE_SUM, TYPE, CUA_F32, n, x, NULL, true};
	struct expected wanted = about(reference(n, values));
	struct figure figures[3];
	char what[28];

	snprintf(what, sizeof(what), "sum %s to f32", cua_type_name(TYPE));
	begin(what, n, sizeof(T), 1);
	cub_row("cub::DeviceReduce::Reduce, in f32", OF_F32, wanted, [=](void *t, size_t &has) {
		return cub::DeviceReduce::Reduce(t, has, x, (float *)result, (int)n, plus(), 0.0f);
	});
	cub_row(WITH_ITERATOR, OF_F32, wanted, [=](void *t, size_t &has) {
		return cub::DeviceReduce::Sum(t, has, over<float>(values), (float *)result, (int)n);
	});
	our_rows(o, OF_F32, wanted, figures);
	table_end(&table);
}

static void i32_case(size_t n)
{
	const int32_t *x = make<int32_t>(n, 0);
	value_of<int32_t, double> values = {x};
	struct ours o = {CUA_REDUCE_SUM, CUA_I32, (enum cua_type)0, n, x, NULL, false};
	struct expected wanted = one(reference(n, values), 0);
	struct figure figures[3];

	begin("sum i32 to i64", n, sizeof(*x), 1);
	cub_sum<int32_t, int64_t>(n, x, OF_I64, wanted);
	our_rows(o, OF_I64, wanted, figures);
	table_end(&table);
}

/* A minimum is planted at a known index. */
static void min_cases(size_t n)
{
	const float least = -2;
	const size_t least_index = n / 3 * 2 + 1;
	float *x = make<float>(n, 0);
	struct ours min = {CUA_REDUCE_MIN, CUA_F32, (enum cua_type)0, n, x, NULL, false};
	struct ours argmin = {CUA_REDUCE_ARGMIN, CUA_F32, (enum cua_type)0, n, x, NULL, false};
	struct expected wanted = one((double)least, 0), where = one((double)least_index, 0);
	struct figure figures[3];

	need(!cudaMemcpy(x + least_index, &least, sizeof(least), cudaMemcpyHostToDevice),
	     "the least element");
	begin("min f32", n, sizeof(float), 1);
	cub_row("cub::DeviceReduce::Min", OF_F32, wanted, [=](void *t, size_t &has) {
		return cub::DeviceReduce::Min(t, has, x, (float *)result, (int)n);
	});
	our_rows(min, OF_F32, wanted, figures);
	table_end(&table);

	begin("argmin f32", n, sizeof(float), 1);
#if CUB_VERSION >= 300000
	cub_row("cub::DeviceReduce::ArgMin", OF_I64, where, [=](void *t, size_t &has) {
		return cub::DeviceReduce::ArgMin(t, has, x, (float *)sums, (int64_t *)result,
						 (int64_t)n);
	});
#else
	cub_row("cub::DeviceReduce::ArgMin", OF_I32, where, [=](void *t, size_t &has) {
		return cub::DeviceReduce::ArgMin(t, has, x, (cub::KeyValuePair<int, float> *)result,
						 (int)n);
	});
#endif
	our_rows(argmin, OF_U64, where, figures);
	table_end(&table);
}

/* The peer computes only the two sums that a variance needs. */
static void variance_case(size_t n)
{
	const float *x = make<float>(n, 0);
	struct moments_of moments = {x};
	struct ours o = {CUA_REDUCE_VARIANCE, CUA_F32, (enum cua_type)0, n, x, NULL, false};
	two_sums s = reference_two(n, moments), zero = {0, 0};
	double mean = s.sum / (double)n;
	struct figure figures[3];

	begin("variance f32", n, sizeof(float), 1);
	cub_row(REDUCE_WITH_ITERATOR, OF_TWO_F64, two(s.sum, s.squares, 1e-9 * s.sum),
		[=](void *t, size_t &has) {
			return cub::DeviceReduce::Reduce(t, has, over<two_sums>(moments),
							 (two_sums *)result, (int)n, plus(), zero);
		});
	our_rows(o, OF_F32, one(s.squares / (double)n - mean * mean, 1e-6), figures);
	table_end(&table);
}

/* The peer computes only the sum of squares, without the root. */
static void norm_case(size_t n)
{
	const double *x = make<double>(n, 0);
	product_of<double> squares = {x, x};
	struct ours o = {CUA_REDUCE_NORM2, CUA_F64, (enum cua_type)0, n, x, NULL, false};
	double sum = reference(n, squares);
	struct figure figures[3];

	begin("norm2 f64", n, sizeof(double), 1);
	cub_row(WITH_ITERATOR, OF_F64, one(sum, 1e-9 * sum), [=](void *t, size_t &has) {
		return cub::DeviceReduce::Sum(t, has, over<double>(squares), (double *)result,
					      (int)n);
	});
	our_rows(o, OF_F64, one(sqrt(sum), 1e-9 * sqrt(sum)), figures);
	table_end(&table);
}

static void complex_case(size_t n)
{
	const cua_complex_f32 *x, *y;
	struct ours o = {CUA_REDUCE_DOT, CUA_COMPLEX_F32, (enum cua_type)0, n, NULL, NULL, false};
	const cua_complex_f32 zero = {0, 0};
	struct figure figures[3];
	two_sums s;

	x = (const cua_complex_f32 *)make<float>(n * 2, 0);
	y = (const cua_complex_f32 *)make<float>(n * 2, 1);
	o.x = x;
	o.y = y;
	struct complex_product_of products = {x, y};
	struct wide_complex_product_of wide = {x, y};

	s = reference_two(n, wide);
	/* the real parts cancel, so their tolerance is relative to the imaginary part */
	begin("dot complex f32", n, sizeof(*x), 2);
	cub_row(REDUCE_WITH_ITERATOR, OF_TWO_F32, two(s.sum, s.squares, 2e-5 * s.squares),
		[=](void *t, size_t &has) {
			return cub::DeviceReduce::Reduce(t, has, over<cua_complex_f32>(products),
							 (cua_complex_f32 *)result, (int)n, plus(),
							 zero);
		});
	our_rows(o, OF_TWO_F32, two(s.sum, s.squares, 2e-5 * s.squares), figures);
	table_end(&table);
}

/* ---- segments ---- */

/*
 * Segments of 1 to 2 * mean - 1 elements. Their keys, offsets and results are in the second half of
 * the memory.
 */
static size_t segments;
static uint64_t *offsets;
static uint32_t *keys, *runs;
static float *segment_sums;
static uint64_t *runs_found;

static __global__ void make_offsets(size_t segments, size_t mean, size_t n, uint64_t *offsets)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i <= segments;
	     i += (size_t)gridDim.x * blockDim.x)
		offsets[i] = i == 0 ? 0 : i == segments ? n : i * mean + mix(i) % mean;
}

/* A warp writes the keys of a segment. */
static __global__ void make_keys(size_t segments, const uint64_t *offsets, uint32_t *keys)
{
	for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < segments;
	     i += (size_t)gridDim.x * blockDim.x / 32)
		for (uint64_t j = offsets[i] + threadIdx.x % 32; j < offsets[i + 1]; j += 32)
			keys[j] = (uint32_t)i;
}

/*
 * Adds the weighted segment sums to *sums, each with its own weight. Without `results`, computes
 * the segment sums from x.
 */
static __global__ void weigh(size_t segments, const uint64_t *offsets, const float *x,
			     const float *results, double *sums)
{
	double mine = 0;

	for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < segments;
	     i += (size_t)gridDim.x * blockDim.x / 32) {
		double sum = results && threadIdx.x % 32 == 0 ? (double)results[i] : 0;

		if (!results)
			for (uint64_t j = offsets[i] + threadIdx.x % 32; j < offsets[i + 1];
			     j += 32)
				sum += (double)x[j];
		mine += sum * (1 + unit(i, 7));
	}
	atomicAdd(sums, mine);
}

static double weighed(const float *results)
{
	double v;

	need(!cudaMemset(sums, 0, sizeof(v)), "cudaMemset");
	weigh<<<processors * 8, THREADS>>>(segments, offsets, array<float>(0), results, sums);
	need(!cudaMemcpy(&v, sums, sizeof(v), cudaMemcpyDeviceToHost), "weights");
	return v;
}

/* Checks the segment sums by their weighted sum, and poisons them for the next call. */
static void weigh_sums(void)
{
	double v = weighed(segment_sums);

	need(!cudaMemcpy(result, &v, sizeof(v), cudaMemcpyHostToDevice) &&
		     !cudaMemset(segment_sums, 0xff, segments * sizeof(*segment_sums)),
	     "sums");
}

/* Measures ours(options) in modes FAST and FIXED. */
template <typename Call>
static void both_modes(const char *name, const struct expected &wanted, Call ours)
{
	for (int m = 0; m < 2; m++) {
		struct cua_segment_options options = CUA_SEGMENT_OPTIONS_INIT;
		char way[TABLE_NAME];

		options.mode = m ? CUA_REDUCE_FIXED : CUA_REDUCE_FAST;
		snprintf(way, sizeof(way), "%s, %s", name, m ? "FIXED" : "FAST");
		row(TABLE_OURS, way, OF_F64, wanted, [&] { need_ok(ours(&options), way); });
	}
}

static void segment_cases(size_t n, size_t mean)
{
	const float *x = make<float>(n, 0);
	char *second = memory + room / 2, name[28], text[24];
	struct expected wanted;

	segments = n / mean;
	keys = (uint32_t *)second;
	offsets = (uint64_t *)(second + n * 4);
	segment_sums = (float *)(offsets + segments + 2);
	runs = (uint32_t *)(segment_sums + segments);
	runs_found = (uint64_t *)(((uintptr_t)(runs + segments) + 7) & ~(uintptr_t)7);
	make_offsets<<<processors * 8, THREADS>>>(segments, mean, n, offsets);
	make_keys<<<processors * 8, THREADS>>>(segments, offsets, keys);
	need(!cudaDeviceSynchronize(), "segments");
	wanted = about(weighed(NULL));
	fold = weigh_sums;

	snprintf(name, sizeof(name), "segments of %zu, %s", mean, size_text(text, n));
	table_begin(&table, name);
	bytes = (double)n * 4 + (double)segments * 12;
	ceilings(1);
	cub_row("cub::DeviceSegmentedReduce::Sum", OF_F64, wanted, [=](void *t, size_t &has) {
		return cub::DeviceSegmentedReduce::Sum(t, has, x, segment_sums, (int)segments,
						       offsets, offsets + 1);
	});
	both_modes("cua_segmented_reduce", wanted, [=](const struct cua_segment_options *o) {
		return cua_segmented_reduce(ctx, o, CUA_REDUCE_SUM, CUA_F32, n, x, segments,
					    offsets, segment_sums);
	});
	table_end(&table);

	snprintf(name, sizeof(name), "runs of %zu, %s", mean, size_text(text, n));
	table_begin(&table, name);
	bytes = (double)n * 8 + (double)segments * 8;
	ceilings(2);
	/* CUB is slower with a user's functor, because it has tuned parameters for known operators */
	cub_row("cub::DeviceReduce::ReduceByKey", OF_F64, wanted, [=](void *t, size_t &has) {
		return cub::DeviceReduce::ReduceByKey(t, has, keys, runs, x, segment_sums,
						      runs_found, cuda::std::plus<>(), (int)n);
	});
	cub_row("the same with a functor of the user", OF_F64, wanted, [=](void *t, size_t &has) {
		return cub::DeviceReduce::ReduceByKey(t, has, keys, runs, x, segment_sums,
						      runs_found, plus(), (int)n);
	});
	both_modes("cua_reduce_by_key", wanted, [=](const struct cua_segment_options *o) {
		return cua_reduce_by_key(ctx, o, CUA_REDUCE_SUM, CUA_U32, CUA_F32, n, keys, x,
					 segments, runs, segment_sums, runs_found);
	});
	table_end(&table);
	fold = NULL;
}

/* ---- ways to combine the results of blocks ---- */

static void finish_table(size_t n)
{
	static const struct {
		enum cua_finish_mode mode;
		const char *name;
	} ways[] = {{CUA_FINISH_LAST_BLOCK, "last block"},
		    {CUA_FINISH_ATOMIC, "atomic"},
		    {CUA_FINISH_LOCK, "lock"},
		    {CUA_FINISH_ORDERED_LOCK, "ordered lock"}};
	const float *x = make<float>(n, 0);
	value_of<float, double> values = {x};
	struct ours o = {CUA_REDUCE_SUM, CUA_F32, (enum cua_type)0, n, x, NULL, false};
	struct expected wanted = about(reference(n, values));
	char text[24];

	bytes = (double)n * sizeof(float);
	for (unsigned blocks = 1; blocks <= processors * 16;
	     blocks = blocks < processors && blocks * 2 > processors / 2 ? processors
									 : blocks * 2) {
		char name[sizeof(table.name)];

		snprintf(name, sizeof(name), "finish, %s, %u blocks", size_text(text, n), blocks);
		table_begin(&table, name);
		for (auto &way : ways) {
			struct cua_reduce_options options = CUA_REDUCE_OPTIONS_INIT;

			options.finish = way.mode;
			options.blocks = blocks;
			options.block_size = THREADS;
			row(TABLE_OURS, way.name, OF_F32, wanted,
			    [&] { need_ok(call(o, options), way.name); });
		}
		table_end(&table);
	}
}

/* The cases that the summary lacks. */
static void other_cases(void)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20, Gi = 1 << 30;

	sum_case<double, CUA_F64, OF_F64>(fitting(Gi, 8, 1));
	dot_case(fitting(512 * Mi, 4, 2));
	sum_case<float, CUA_F32, OF_F32>(fitting(33 * Mi, 4, 1));
	dot_case(fitting(33 * Mi, 4, 2));
	for (int wait = 0; wait < 2; wait++) {
		set_timing(wait ? CALL_WAIT : IN_STREAM, wait ? 100 : 200);
		sum_case<float, CUA_F32, OF_F32>(64 * Ki);
		dot_case(64 * Ki);
	}
	set_timing(ONE_CALL, 1);
	short_sum_case<__half, CUA_F16>(fitting(Gi, 2, 1));
	short_sum_case<__nv_bfloat16, CUA_BF16>(fitting(Gi, 2, 1));
	i32_case(fitting(256 * Mi, 4, 1));
	min_cases(fitting(256 * Mi, 4, 1));
	variance_case(fitting(256 * Mi, 4, 1));
	norm_case(fitting(256 * Mi, 8, 1));
	complex_case(fitting(256 * Mi, 8, 2));
	for (size_t mean = 10; mean <= 100000; mean *= 10)
		segment_cases(fitting(256 * Mi, 16, 1), mean);

	finish_table(fitting(33 * Mi, 4, 1));
	set_timing(IN_STREAM, 50);
	finish_table(64 * Ki);
}

int main(int argc, char **argv)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20, Gi = 1 << 30;
	struct options o = parse_options(argc, argv, "reduce", false);
	cudaDeviceProp device = print_head("reduce");
	char text[24];

	small = o.quick;
	processors = (unsigned)device.multiProcessorCount;
	printf("CUB %d.%d.%d%s; array and result are in device memory; the L2 has %d MiB\n",
	       CUB_VERSION / 100000, CUB_VERSION / 100 % 1000, CUB_VERSION % 100,
#ifdef HAVE_DETERMINISM
	       "",
#else
	       " (too old for a sum that is the same on every GPU)",
#endif
	       device.l2CacheSize >> 20);
	for (room = small ? 64 * Mi : 8 * Gi; cudaMalloc(&memory, room) != cudaSuccess; room /= 2)
		need(room > 64 * Mi, "memory");
	/* clear the error of a failed allocation */
	(void)cudaGetLastError();
	need(!cudaMalloc(&result, 16) && !cudaMalloc(&sums, 2 * sizeof(*sums)) &&
		     !cudaMalloc(&sink, sizeof(*sink)) &&
		     cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK,
	     "context and memory");
	if (!small && room < 8 * Gi)
		printf("arrays are smaller than usual: there is room for %s bytes\n",
		       size_text(text, room));
	printf("wait: host time of a call and its synchronization, mean of 100; stream: mean of 200 calls in a "
	       "row; others: a single call\n");

	table_columns("GB/s", "a call");
	set_timing(ONE_CALL, 1);
	sum_case<float, CUA_F32, OF_F32>(fitting(Gi, 4, 1));
	if (!bench_env()->summarized)
		other_cases();

	cua_context_destroy(ctx);
	cudaFree(memory);
	cudaFree(result);
	cudaFree(sums);
	cudaFree(sink);
	cudaFree(temporary);
	return 0;
}
