/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench reduce` on the CPU: reductions of arrays larger than every cache, in GB/s of the
 * bytes that a reduction has to read. The peers are plain serial loops.
 *
 * Each result is compared with that of a plain loop in a wider type.
 */
#include <math.h>
#include <string.h>

#include <cuatomic/reduce.h>

#include "cpu_bench.h"

#define ARRAY_BYTES ((size_t)64 << 20)
#define QUICK_BYTES ((size_t)256 << 10)

/* ---- the cases ---- */

union value {
	float f32;
	double f64;
	int64_t i64;
	uint64_t u64;
};

/* Defines a serial loop that reduces n elements at x and y to *result. */
#define LOOP(name, T, A, member, start, ...)                                                       \
	static void name(size_t n, const void *xs, const void *ys, union value *result)            \
	{                                                                                          \
		const T *x = xs, *y = ys;                                                          \
		A t = (start);                                                                     \
                                                                                                   \
		(void)y;                                                                           \
		for (size_t i = 0; i < n; i++) {                                                   \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		result->member = t;                                                                \
	}

LOOP(loop_sum_i32, int32_t, int64_t, i64, 0, t += x[i])
LOOP(loop_dot_i32, int32_t, int64_t, i64, 0, t += (int64_t)x[i] * y[i])
LOOP(loop_sum_i64, uint64_t, uint64_t, u64, 0, t += x[i])
LOOP(loop_dot_i64, uint64_t, uint64_t, u64, 0, t += x[i] * y[i])
LOOP(loop_sum_f32, float, double, f64, 0, t += (double)x[i])
LOOP(loop_dot_f32, float, double, f64, 0, t += (double)x[i] * (double)y[i])
LOOP(loop_sum_f64, double, double, f64, 0, t += x[i])
LOOP(loop_dot_f64, double, double, f64, 0, t += x[i] * y[i])
LOOP(loop_min_f32, float, float, f32, x[0], t = x[i] < t ? x[i] : t)
LOOP(loop_argmin_f32, float, uint64_t, u64, 0, t = x[i] < x[t] ? i : t)

static void loop_variance_f32(size_t n, const void *xs, const void *ys, union value *result)
{
	const float *x = xs;
	double sum = 0, squares = 0;

	(void)ys;
	for (size_t i = 0; i < n; i++) {
		sum += (double)x[i];
		squares += (double)x[i] * (double)x[i];
	}
	result->f64 = squares / (double)n - sum / (double)n * (sum / (double)n);
}

enum reading { OF_F32, OF_F64, OF_I64, OF_U64 };

/* Reductions of equal type are neighbours, so the arrays are filled once per type. */
static const struct reduction {
	const char *name;
	enum cua_reduce_op op;
	enum cua_type type, result_type;
	enum reading reading;
	int has_exact; /* the EXACT mode supports it */
	void (*loop)(size_t n, const void *x, const void *y, union value *result);
	enum reading loop_reading;
} reductions[] = {
	{"sum f32", CUA_REDUCE_SUM, CUA_F32, 0, OF_F32, 1, loop_sum_f32, OF_F64},
	{"dot f32", CUA_REDUCE_DOT, CUA_F32, 0, OF_F32, 1, loop_dot_f32, OF_F64},
	{"min f32", CUA_REDUCE_MIN, CUA_F32, 0, OF_F32, 0, loop_min_f32, OF_F32},
	{"argmin f32", CUA_REDUCE_ARGMIN, CUA_F32, 0, OF_U64, 0, loop_argmin_f32, OF_U64},
	{"variance f32", CUA_REDUCE_VARIANCE, CUA_F32, 0, OF_F32, 0, loop_variance_f32, OF_F64},
	{"sum f64", CUA_REDUCE_SUM, CUA_F64, 0, OF_F64, 1, loop_sum_f64, OF_F64},
	{"dot f64", CUA_REDUCE_DOT, CUA_F64, 0, OF_F64, 1, loop_dot_f64, OF_F64},
	{"sum i32 to i64", CUA_REDUCE_SUM, CUA_I32, 0, OF_I64, 0, loop_sum_i32, OF_I64},
	{"dot i32 to i64", CUA_REDUCE_DOT, CUA_I32, 0, OF_I64, 0, loop_dot_i32, OF_I64},
	{"sum i64", CUA_REDUCE_SUM, CUA_I64, 0, OF_I64, 0, loop_sum_i64, OF_I64},
	{"dot i64", CUA_REDUCE_DOT, CUA_I64, 0, OF_I64, 0, loop_dot_i64, OF_I64},
	{"sum f16 to f32", CUA_REDUCE_SUM, CUA_F16, CUA_F32, OF_F32, 1, NULL, OF_F32},
	{"dot f16 to f32", CUA_REDUCE_DOT, CUA_F16, CUA_F32, OF_F32, 1, NULL, OF_F32},
	{"sum bf16 to f32", CUA_REDUCE_SUM, CUA_BF16, CUA_F32, OF_F32, 1, NULL, OF_F32},
	{"dot bf16 to f32", CUA_REDUCE_DOT, CUA_BF16, CUA_F32, OF_F32, 1, NULL, OF_F32},
};

/* ---- elements ---- */

/*
 * Fills an array: f32 and f64 in [0, 1), 16-bit floats in [1, 2), i32 in [-2^20, 2^20) so that a
 * sum of products fits in 64 bits, i64 of all values.
 */
static void fill(enum cua_type type, size_t n, char *array, uint64_t seed)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t z = (i + (seed << 40)) * 0x9e3779b97f4a7c15u;
		uint16_t half;
		float f;
		double d;
		int32_t s;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		z ^= z >> 31;
		switch (type) {
		case CUA_F32: f = (float)(z >> 40) * 0x1p-24f, memcpy(array + 4 * i, &f, 4); break;
		case CUA_F64: d = (double)(z >> 11) * 0x1p-53, memcpy(array + 8 * i, &d, 8); break;
		case CUA_I32:
			s = (int32_t)(z >> 43) - (1 << 20), memcpy(array + 4 * i, &s, 4);
			break;
		case CUA_I64: memcpy(array + 8 * i, &z, 8); break;
		case CUA_F16:
			half = (uint16_t)(0x3c00 | z >> 54), memcpy(array + 2 * i, &half, 2);
			break;
		default:
			half = (uint16_t)(0x3f80 | z >> 57), memcpy(array + 2 * i, &half, 2);
			break;
		}
	}
}

static long double float_at(enum cua_type type, const char *array, size_t i)
{
	uint16_t half;
	float f;
	double d;

	switch (type) {
	case CUA_F32: memcpy(&f, array + 4 * i, 4); return (long double)f;
	case CUA_F64: memcpy(&d, array + 8 * i, 8); return (long double)d;
	case CUA_F16:
		memcpy(&half, array + 2 * i, 2);
		return 1 + (long double)(half & 0x3ff) / 0x400;
	default: memcpy(&half, array + 2 * i, 2); return 1 + (long double)(half & 0x7f) / 0x80;
	}
}

static int64_t integer_at(enum cua_type type, const char *array, size_t i)
{
	int32_t s;
	int64_t l;

	if (type == CUA_I32) {
		memcpy(&s, array + 4 * i, 4);
		return s;
	}
	memcpy(&l, array + 8 * i, 8);
	return l;
}

/* ---- expected results ---- */

struct expected {
	int is_integer;
	int64_t i;
	double f, within;
};

static struct expected expect(const struct reduction *r, size_t n, const char *x, const char *y)
{
	struct expected e = {.is_integer = r->reading == OF_I64 || r->reading == OF_U64};
	long double sum = 0, squares = 0, least = 2;
	uint64_t whole = 0, least_index = 0;

	for (size_t i = 0; i < n; i++) {
		long double f;

		if (r->reading == OF_I64) {
			whole +=
				(uint64_t)integer_at(r->type, x, i) *
				(uint64_t)(r->op == CUA_REDUCE_DOT ? integer_at(r->type, y, i) : 1);
			continue;
		}
		f = float_at(r->type, x, i);
		sum += r->op == CUA_REDUCE_DOT ? f * float_at(r->type, y, i) : f;
		squares += f * f;
		if (f < least) {
			least = f;
			least_index = i;
		}
	}
	switch (r->op) {
	case CUA_REDUCE_MIN: e.f = (double)least; return e;
	case CUA_REDUCE_ARGMIN: e.i = (int64_t)least_index; return e;
	case CUA_REDUCE_VARIANCE: sum = squares / n - sum / n * (sum / n); break;
	default: break;
	}
	e.i = (int64_t)whole;
	e.f = (double)sum;
	e.within = fabs(e.f) * (r->reading == OF_F64 ? 1e-9 : 1e-6);
	return e;
}

static void check(const struct table *t, const char *way, enum reading reading, union value got,
		  const struct expected *wanted)
{
	double f = reading == OF_F32 ? (double)got.f32 : got.f64;
	char row[sizeof(t->name) + TABLE_NAME + 4];
	uint64_t planted;

	snprintf(row, sizeof(row), "%s, %s", t->name, way);
	planted = bench_plant(row);
	if (wanted->is_integer) {
		got.u64 += planted;
		if (got.i64 != wanted->i)
			tool_die("bench reduce: %s, %s: the result is %lld, not %lld", t->name, way,
				 (long long)got.i64, (long long)wanted->i);
		return;
	}
	f += (double)planted * 2 * (wanted->within + 1e-9);
	/* negated, so that a NaN fails */
	if (!(fabs(f - wanted->f) <= wanted->within))
		tool_die("bench reduce: %s, %s: the result is %.17g, not %.17g", t->name, way, f,
			 wanted->f);
}

/* ---- measurement ---- */

struct call {
	const struct reduction *reduction;
	size_t n;
	const char *x, *y;
	struct cua_context *ctx;
	enum cua_reduce_mode mode; /* 0: the serial loop */
};

static enum cua_status make_call(const struct call *c, union value *result)
{
	struct cua_reduce_options options = CUA_REDUCE_OPTIONS_INIT;
	const struct reduction *r = c->reduction;

	if (!c->mode) {
		r->loop(c->n, c->x, c->y, result);
		return CUA_OK;
	}
	options.mode = c->mode;
	options.result_type = r->result_type;
	return cua_reduce(c->ctx, &options, r->op, r->type, c->n, c->x,
			  r->op == CUA_REDUCE_DOT ? c->y : NULL, result);
}

/* Measures a row, if it is wanted. A run repeats the call for about `seconds`. */
static void add_calls(struct table *t, const struct call *c, const char *way, double seconds,
		      double bytes, const struct expected *wanted)
{
	const struct reduction *r = c->reduction;
	const struct figure none = {.runs = 0};
	struct stats s;
	double taken;
	int calls;

	if (!table_wants(t->name, way))
		return;
	stats_begin(&s, bench_stats_plan());
	do {
		double start = tool_now();

		calls = 0;
		do {
			union value result;
			enum cua_status status;

			memset(&result, 0xff, sizeof(result));
			status = make_call(c, &result);
			if (status == CUA_ERROR_UNSUPPORTED) {
				table_add(t, TABLE_OURS, way, none);
				return;
			}
			if (status)
				tool_die("bench reduce: %s, %s: %s", t->name, way,
					 cua_strerror(status));
			check(t, way, c->mode ? r->reading : r->loop_reading, result, wanted);
			calls++;
			taken = tool_now() - start;
		} while (taken < seconds);
	} while (bench_more(&s, bytes * calls / taken * 1e-9));
	table_add(t, c->mode ? TABLE_OURS : TABLE_PEER, way, table_stats(&s));
}

static size_t count_reduce_rows(void)
{
	const size_t n = sizeof(reductions) / sizeof(reductions[0]);
	/* the ceiling, FAST and FIXED */
	size_t rows = 3 * n;

	for (size_t i = 0; i < n; i++)
		rows += (size_t)(reductions[i].loop != NULL) +
			(size_t)(reductions[i].has_exact != 0);
	return rows;
}

void bench_reduce(const struct bench_options *o)
{
	static const char *const names[] = {"a loop, one thread", "cua_reduce, FAST",
					    "cua_reduce, FIXED", "cua_reduce, EXACT"};
	size_t bytes = o->quick ? QUICK_BYTES : ARRAY_BYTES;
	double seconds = o->quick ? 1e-3 : 10e-3;
	enum cua_type filled = (enum cua_type)0;
	struct cua_context *ctx;
	enum cua_status status;
	void *arrays = NULL;
	char *x, *y;

	status = cua_context_create(CUA_BACKEND_CPU, 0, &ctx);
	if (!status)
		status = cua_context_set_threads(ctx, o->threads);
	if (!status)
		status = cua_alloc(ctx, 2, bytes, &arrays);
	if (status)
		tool_die("bench reduce: %s", cua_strerror(status));
	x = arrays;
	y = x + bytes;
	printf("arrays of %zu KiB; dot reads two of them\n", bytes >> 10);
	bench_plan(count_reduce_rows());
	table_columns("GB/s", "");
	for (size_t i = 0; i < sizeof(reductions) / sizeof(reductions[0]); i++) {
		const struct reduction *r = &reductions[i];
		struct call c = {.reduction = r,
				 .n = bytes / cua_type_size(r->type),
				 .x = x,
				 .y = y,
				 .ctx = ctx};
		size_t read = r->op == CUA_REDUCE_DOT ? 2 * bytes : bytes;
		struct table table = {.n = 0};
		struct expected wanted;

		if (r->type != filled) {
			fill(r->type, c.n, x, 1);
			fill(r->type, c.n, y, 2);
			filled = r->type;
		}
		wanted = expect(r, c.n, x, y);
		table_begin(&table, r->name);
		bench_read_ceiling(o, &table, "reduce", x, read);
		if (r->loop)
			add_calls(&table, &c, names[0], seconds, (double)read, &wanted);
		for (int m = CUA_REDUCE_FAST;
		     m <= (r->has_exact ? CUA_REDUCE_EXACT : CUA_REDUCE_FIXED); m++) {
			c.mode = (enum cua_reduce_mode)m;
			add_calls(&table, &c, names[m], seconds, (double)read, &wanted);
		}
		table_end(&table);
	}
	cua_free(ctx, arrays);
	cua_context_destroy(ctx);
}
