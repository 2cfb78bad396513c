/* SPDX-License-Identifier: MIT */
/*
 * Reductions by groups of 1 to 8 ranks: the bits of one context on the whole array, errors that all
 * ranks return, and transports that fail.
 */
#include "fixed_calls.h"

#include <math.h>

#include "group_ranks.h"

/* ---- ranks ---- */

struct ranks {
	uint32_t size;
	struct cua_context *contexts[MOST_RANKS];
	struct cua_group *group;
	size_t n[MOST_RANKS];
	void *x[MOST_RANKS], *y[MOST_RANKS];
	union model_result results[MOST_RANKS];
	void *result_at[MOST_RANKS];
};

static void ranks_open(struct ranks *g, uint32_t size)
{
	memset(g, 0, sizeof(*g));
	g->size = size;
	for (uint32_t r = 0; r < size; r++)
		g->contexts[r] = rank_context(r);
	ck_assert_cua(cua_group_create_devices(size, g->contexts, &g->group));
}

static void ranks_close(struct ranks *g)
{
	cua_group_destroy(g->group);
	for (uint32_t r = 0; r < g->size; r++)
		rank_context_destroy(g->contexts[r]);
}

/* Divides n elements at random, or for mode FIXED where the tree allows. */
static void divide(struct ranks *g, enum cua_type type, size_t n, enum cua_reduce_mode mode,
		   uint64_t *seed)
{
	uint64_t cuts[MOST_RANKS + 1];
	const int evenly = test_random(seed) % 2;

	for (uint32_t r = 0; r <= g->size; r++) {
		if (mode == CUA_REDUCE_FIXED && (evenly || r == 0 || r == g->size))
			ck_assert_cua(cua_fixed_cut(type, n, g->size, r, &cuts[r]));
		else if (mode == CUA_REDUCE_FIXED)
			/* a multiple of a chunk: a cut of many parts */
			ck_assert_cua(cua_fixed_cut(
				type, n, 1000, (uint32_t)(test_random(seed) % 1001), &cuts[r]));
		else
			cuts[r] = r == 0         ? 0
				  : r == g->size ? n
				  : evenly       ? n * r / g->size
						 : test_random(seed) % (n + 1);
	}
	/* ascending */
	for (uint32_t r = 1; r <= g->size; r++)
		for (uint32_t k = r; k > 1 && cuts[k] < cuts[k - 1]; k--) {
			const uint64_t other = cuts[k];

			cuts[k] = cuts[k - 1];
			cuts[k - 1] = other;
		}
	for (uint32_t r = 0; r < g->size; r++)
		g->n[r] = (size_t)(cuts[r + 1] - cuts[r]);
}

/* Uploads the parts of two host arrays, and prepares results in memory of the host or the device. */
static void ranks_fill(struct ranks *g, enum cua_type type, const void *x, const void *y,
		       uint64_t *seed)
{
	const size_t size = cua_type_size(type);
	size_t at = 0;

	for (uint32_t r = 0; r < g->size; r++) {
		g->x[r] = test_upload(g->contexts[r], (const char *)x + at, g->n[r] * size);
		g->y[r] = test_upload(g->contexts[r], (const char *)y + at, g->n[r] * size);
		memset(&g->results[r], 0xa5, sizeof(g->results[r]));
		g->result_at[r] = test_random(seed) % 2
					  ? (void *)&g->results[r]
					  : test_upload(g->contexts[r], &g->results[r],
							sizeof(g->results[r]));
		at += g->n[r] * size;
	}
}

static void ranks_results(struct ranks *g)
{
	for (uint32_t r = 0; r < g->size; r++) {
		if (g->result_at[r] != (void *)&g->results[r]) {
			test_download(g->contexts[r], &g->results[r], g->result_at[r],
				      sizeof(g->results[r]));
			test_free(g->contexts[r], g->result_at[r]);
		}
		test_free(g->contexts[r], g->x[r]);
		test_free(g->contexts[r], g->y[r]);
	}
}

/* ---- results ---- */

static double as_double(enum cua_type type, const void *v)
{
	float f;
	double d;

	switch (type) {
	case CUA_F16: return model_of_f16(*(const uint16_t *)v);
	case CUA_BF16: return (double)cua__from_bits_f32((uint32_t) * (const uint16_t *)v << 16);
	case CUA_F32: memcpy(&f, v, sizeof(f)); return (double)f;
	default: memcpy(&d, v, sizeof(d)); return d;
	}
}

/*
 * FAST: the bits if no order changes them, else about the result of mode FIXED. The elements are
 * positive and near 1.
 */
static int is_near(const struct model_call *c, enum cua_type result, const union model_result *got,
		   const union model_result *expected)
{
	const size_t size = cua_type_size(result);
	const enum cua_type part = result == CUA_COMPLEX_F32   ? CUA_F32
				   : result == CUA_COMPLEX_F64 ? CUA_F64
							       : result;
	/* FAST may sum narrow elements in float */
	const double bound = cua_type_size(part) == 2      ? 0x1p-6
			     : part == CUA_F32             ? 0x1p-16
			     : model_is_integer(c->type)   ? 0x1p-34
			     : cua_type_size(c->type) <= 4 ? 0x1p-16
							   : 0x1p-34;

	if (!memcmp(got, expected, size))
		return 1;
	if (model_is_integer(result) || c->op == CUA_REDUCE_MIN || c->op == CUA_REDUCE_MAX)
		return 0;
	for (size_t at = 0; at < size; at += cua_type_size(part)) {
		const double a = as_double(part, (const char *)got + at);
		const double b = as_double(part, (const char *)expected + at);
		const double whole = model_is_complex(result) ? (double)c->n : fabs(a) + fabs(b);

		if (isnan(a) != isnan(b))
			return 0;
		if (!isnan(a) && a != b && !(fabs(a - b) <= bound * whole))
			return 0;
	}
	return 1;
}

static void make_positive(enum cua_type type, size_t n, void *p)
{
	const size_t part = cua_type_size(type) / (model_is_complex(type) ? 2 : 1);
	unsigned char *bytes = p;

	if (model_is_integer(type))
		return;
	for (size_t i = 0; i < n * cua_type_size(type); i += part)
		bytes[i + part - 1] &= 0x7f;
}

/* A call of the group, and the same call of a context on the CPU, on the whole array. */
static void expect_same(struct ranks *g, struct cua_context *cpu, struct cua_reduce_options *o,
			const struct model_call *c, uint64_t *seed)
{
	const enum cua_type result = c->result ? c->result : model_default_result(c->op, c->type);
	const enum cua_reduce_mode mode = o->mode;
	union model_result expected;
	char what[96];

	o->result_type = c->result;
	divide(g, c->type, (size_t)c->n, mode, seed);
	ranks_fill(g, c->type, c->x, c->y, seed);
	ck_assert_cua(cua_group_reduce(g->group, o, c->op, c->type, g->n, (const void *const *)g->x,
				       has_second(c->op) ? (const void *const *)g->y : NULL,
				       g->result_at));
	ranks_results(g);
	if (mode == CUA_REDUCE_AUTO || mode == CUA_REDUCE_FAST)
		o->mode = CUA_REDUCE_FIXED;
	ck_assert_cua(cua_reduce(cpu, o, c->op, c->type, (size_t)c->n, c->x,
				 has_second(c->op) ? c->y : NULL, &expected));
	o->mode = mode;
	for (uint32_t r = 0; r < g->size; r++) {
		snprintf(what, sizeof(what), "mode %d, rank %u of %u", (int)mode, (unsigned)r,
			 (unsigned)g->size);
		if ((mode == CUA_REDUCE_AUTO || mode == CUA_REDUCE_FAST) &&
		    is_near(c, result, &g->results[r], &expected))
			continue;
		expect_bits(&g->results[r], &expected, c, what);
	}
	/* all ranks have the same bits in every mode */
	for (uint32_t r = 1; r < g->size; r++)
		expect_bits(&g->results[r], &g->results[0], c, "ranks differ");
}

/* Every operation and mode, for a type and a number of ranks. */
static void results(int i)
{
	uint64_t seed = test_seed("results");
	const enum cua_type type = types[i / (int)COUNT(sizes)];
	const size_t size = cua_type_size(type), chunk = 64 * 32 * 16 / size;
	const size_t most = test_traced() ? 2 * chunk : 12 * chunk;
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	char *x = test_malloc(most * size), *y = test_malloc(most * size);
	struct ranks g;

	ranks_open(&g, sizes[i % (int)COUNT(sizes)]);
	for (int mode = CUA_REDUCE_AUTO; mode <= CUA_REDUCE_EXACT; mode++) {
		const int fast = mode == CUA_REDUCE_AUTO || mode == CUA_REDUCE_FAST;

		for (int op = FIRST_OP; op <= LAST_OP; op++) {
			const int exactly = op == CUA_REDUCE_SUM || op == CUA_REDUCE_DOT;

			if (!model_has((enum cua_reduce_op)op, type) ||
			    (mode == CUA_REDUCE_EXACT &&
			     (!exactly || model_is_integer(type) || model_is_complex(type))) ||
			    (test_traced() && (op + mode) % 4))
				continue;
			for (int round = 0; round < (test_traced() ? 1 : test_scale(2, 3, 8));
			     round++) {
				const enum pattern pattern =
					fast ? model_is_integer(type) ? TAME : NEAR_ONE
					     : (enum pattern)(test_random(&seed) % PATTERNS);
				struct model_call c = {
					(enum cua_reduce_op)op,
					type,
					some_result((enum cua_reduce_op)op, type, &seed),
					test_random(&seed) % 8 == 0 ? 0
					: test_random(&seed) % 4 == 0
						? test_random(&seed) % 40
						: test_random(&seed) % (most + 1),
					x,
					y};

				fill(type, pattern, (size_t)c.n, x, &seed);
				fill(type, pattern, (size_t)c.n, y, &seed);
				if (fast) {
					make_positive(type, (size_t)c.n, x);
					make_positive(type, (size_t)c.n, y);
				}
				o.mode = (enum cua_reduce_mode)mode;
				expect_same(&g, cpu, &o, &c, &seed);
			}
		}
	}
	ranks_close(&g);
	cua_context_destroy(cpu);
	free(x);
	free(y);
}

/* More than 2000 chunks in a context, so the strips of the whole have more rows than those of a part. */
static void long_arrays(int i)
{
	uint64_t seed = test_seed("long");
	const size_t n = 17000000;
	const uint32_t size = i ? 5 : 2;
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	static const enum cua_reduce_op ops[] = {CUA_REDUCE_SUM, CUA_REDUCE_VARIANCE,
						 CUA_REDUCE_ARGMAX, CUA_REDUCE_DOT};
	float *x = test_malloc(n * sizeof(*x));
	struct ranks g;

	fill(CUA_F32, TAME, n, x, &seed);
	ranks_open(&g, size);
	o.mode = CUA_REDUCE_FIXED;
	for (size_t k = 0; k < COUNT(ops); k++) {
		struct model_call c = {
			ops[k], CUA_F32, (enum cua_type)0, n - test_random(&seed) % 9999, x, x};

		expect_same(&g, cpu, &o, &c, &seed);
	}
	ranks_close(&g);
	cua_context_destroy(cpu);
	free(x);
}

/* More ranks than a kernel of the gather has sources, and contexts on their default streams. */
static void many_ranks(int i)
{
	uint64_t seed = test_seed("many_ranks");
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	double *x = test_malloc(200000 * sizeof(*x));
	struct ranks g;

	memset(&g, 0, sizeof(g));
	g.size = i ? 3 : MOST_RANKS;
	for (uint32_t r = 0; r < g.size; r++) {
		int devices = 1;

		ck_assert_cua(cua_device_count(TEST_BACKEND, &devices));
		ck_assert_cua(cua_context_create(TEST_BACKEND, (int)r % devices, &g.contexts[r]));
	}
	ck_assert_cua(cua_group_create_devices(g.size, g.contexts, &g.group));
	for (int mode = CUA_REDUCE_FIXED; mode <= CUA_REDUCE_EXACT; mode++) {
		struct model_call c = {CUA_REDUCE_SUM,
				       CUA_F64,
				       (enum cua_type)0,
				       test_random(&seed) % 200001,
				       x,
				       x};

		fill(CUA_F64, TAME, (size_t)c.n, x, &seed);
		o.mode = (enum cua_reduce_mode)mode;
		expect_same(&g, cpu, &o, &c, &seed);
	}
	cua_group_destroy(g.group);
	for (uint32_t r = 0; r < g.size; r++)
		cua_context_destroy(g.contexts[r]);
	cua_context_destroy(cpu);
	free(x);
}

/* Calls in a row on changing values, with results that are read at the end. */
static void calls_in_a_row(int i)
{
	enum { CALLS = 64, N = 3000 };
	uint64_t seed = test_seed("calls_in_a_row");
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	const uint32_t size = sizes[i];
	uint64_t *x = test_malloc(N * 8), expected[CALLS] = {0}, got[CALLS];
	uint64_t *results_of[MOST_RANKS], *from[MOST_RANKS];
	struct ranks g;

	for (size_t k = 0; k < N; k++)
		x[k] = test_random(&seed);
	ranks_open(&g, size);
	for (uint32_t r = 0; r < size; r++) {
		from[r] = test_upload(g.contexts[r], x, N * 8);
		results_of[r] = test_alloc(g.contexts[r], sizeof(got));
	}
	for (int k = 0; k < CALLS; k++) {
		const void *parts[MOST_RANKS];
		void *to[MOST_RANKS];

		for (uint32_t r = 0; r < size; r++) {
			const size_t first = test_random(&seed) % N;

			g.n[r] = test_random(&seed) % (N - first + 1);
			parts[r] = from[r] + first;
			to[r] = results_of[r] + k;
			for (size_t e = 0; e < g.n[r]; e++)
				expected[k] += x[first + e];
		}
		o.mode = CUA_REDUCE_FAST;
		ck_assert_cua(cua_group_reduce(g.group, &o, CUA_REDUCE_SUM, CUA_U64, g.n, parts,
					       NULL, to));
	}
	for (uint32_t r = 0; r < size; r++) {
		test_download(g.contexts[r], got, results_of[r], sizeof(got));
		ck_assert_mem_eq(got, expected, sizeof(got));
		test_free(g.contexts[r], from[r]);
		test_free(g.contexts[r], results_of[r]);
	}
	ranks_close(&g);
	free(x);
}

/* EXACT: the same bits for every division of a few elements that cancel, among 1 to 4 ranks. */
static void every_division(int i)
{
	static const double elements[] = {1e300, 1, -1e300, 1e-300, 0x1p-1074, -1, 3e-17, 1e16};
	enum { N = COUNT(elements) };
	const uint32_t size = (uint32_t)i + 1;
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	struct cua_exact sum = CUA_EXACT_INIT;
	unsigned divisions = 0;
	double expected;
	struct ranks g;
	size_t cut[3];

	for (size_t k = 0; k < N; k++)
		cua_exact_add_f64(&sum, elements[k]);
	expected = cua_exact_round_f64(&sum);
	o.mode = CUA_REDUCE_EXACT;
	ranks_open(&g, size);
	for (cut[0] = size > 1 ? 0 : N; cut[0] <= N; cut[0]++)
		for (cut[1] = size > 2 ? cut[0] : N; cut[1] <= N; cut[1]++)
			for (cut[2] = size > 3 ? cut[1] : N; cut[2] <= N; cut[2]++) {
				size_t from = 0;

				if (test_traced() && ++divisions % 16)
					continue;
				for (uint32_t r = 0; r < size; r++) {
					const size_t end = r + 1 < size ? cut[r] : N;

					g.n[r] = end - from;
					g.x[r] = test_upload(g.contexts[r], elements + from,
							     (end - from) * sizeof(double));
					g.result_at[r] = &g.results[r];
					from = end;
				}
				ck_assert_cua(cua_group_reduce(g.group, &o, CUA_REDUCE_SUM, CUA_F64,
							       g.n, (const void *const *)g.x, NULL,
							       g.result_at));
				for (uint32_t r = 0; r < size; r++) {
					ck_assert_mem_eq(&g.results[r], &expected,
							 sizeof(expected));
					test_free(g.contexts[r], g.x[r]);
				}
			}
	ranks_close(&g);
}

static void cuts(int i)
{
	uint64_t seed = test_seed("cuts");
	uint64_t first, last, before;

	(void)i;
	ck_assert_status(cua_fixed_cut(CUA_F32, 1, 1, 0, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_fixed_cut((enum cua_type)99, 1, 1, 0, &first), CUA_ERROR_TYPE);
	ck_assert_status(cua_fixed_cut(CUA_F32, 1, 0, 0, &first), CUA_ERROR_VALUE);
	ck_assert_status(cua_fixed_cut(CUA_F32, 1, 2, 3, &first), CUA_ERROR_VALUE);
	ck_assert_status(cua_fixed_cut(CUA_F32, (uint64_t)1 << 62, 2, 1, &first), CUA_ERROR_SIZE);
	ck_assert_cua(cua_fixed_cut(CUA_F32, ((uint64_t)1 << 61) - 1, UINT32_MAX, UINT32_MAX - 1,
				    &first));
	for (int round = 0; round < 1000; round++) {
		const enum cua_type type = types[test_random(&seed) % COUNT(types)];
		const uint64_t n = test_random(&seed) >> (20 + test_random(&seed) % 44);
		const uint32_t parts = 1 + (uint32_t)(test_random(&seed) % 20);

		ck_assert_cua(cua_fixed_cut(type, n, parts, 0, &first));
		ck_assert_uint_eq(first, 0);
		ck_assert_cua(cua_fixed_cut(type, n, parts, parts, &last));
		ck_assert_uint_eq(last, n);
		before = 0;
		for (uint32_t part = 1; part <= parts; part++) {
			ck_assert_cua(cua_fixed_cut(type, n, parts, part, &first));
			ck_assert_uint_ge(first, before);
			/* no part has more than its share and two chunks, of at least a 2000th */
			ck_assert_uint_le(first - before,
					  n / parts + n / 500 +
						  2 * 64 * 512 / cua_type_size(type) * 16);
			before = first;
		}
	}
}

/* ---- arguments ---- */

/* A refused call leaves all results as they were. */
static void expect_refused(struct ranks *g, enum cua_status expected, enum cua_status got)
{
	ck_assert_status(got, expected);
	for (uint32_t r = 0; r < g->size; r++)
		for (size_t k = 0; k < sizeof(g->results[r]); k++)
			ck_assert_uint_eq(((unsigned char *)&g->results[r])[k], 0xa5);
}

static void arguments(int i)
{
	struct cua_context *contexts[3], *null_in[2], *none[1] = {NULL};
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	uint64_t seed = test_seed("arguments"), count = 1;
	struct cua_group *group = NULL;
	double host[3 * 4096] = {0};
	struct cua_transport t = CUA_TRANSPORT_INIT;
	struct thread_hub *hub = thread_hub_create(2);
	struct ranks g;
	const void *bad[3];
	void *const *x;
	size_t bytes = 77;

	(void)i;
	ranks_open(&g, 3);
	memcpy(contexts, g.contexts, sizeof(contexts));
	ck_assert_status(cua_group_create_devices(1, NULL, &group), CUA_ERROR_NULL);
	ck_assert_status(cua_group_create_devices(1, contexts, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_group_create_devices(1, none, &group), CUA_ERROR_NULL);
	ck_assert_status(cua_group_create_devices(0, contexts, &group), CUA_ERROR_VALUE);
	ck_assert_status(cua_group_create_devices(CUA_GROUP_RANKS_MAX + 1, contexts, &group),
			 CUA_ERROR_VALUE);
	contexts[2] = contexts[0];
	ck_assert_status(cua_group_create_devices(3, contexts, &group), CUA_ERROR_VALUE);
	null_in[0] = contexts[0];
	null_in[1] = NULL;
	ck_assert_status(cua_group_create_devices(2, null_in, &group), CUA_ERROR_NULL);
#if TEST_CUDA
	contexts[2] = test_context(CUA_BACKEND_CPU);
	ck_assert_status(cua_group_create_devices(3, contexts, &group), CUA_ERROR_CONTEXT);
	cua_context_destroy(contexts[2]);
#endif
	ck_assert_status(cua_group_create(g.contexts[0], NULL, &group), CUA_ERROR_NULL);
	ck_assert_status(cua_group_create(g.contexts[0], &t, &group), CUA_ERROR_NULL);
	t = thread_transport(hub, 1);
	ck_assert_status(cua_group_create(NULL, &t, &group), CUA_ERROR_NULL);
	ck_assert_status(cua_group_create(g.contexts[0], &t, NULL), CUA_ERROR_NULL);
	t.rank = 2;
	ck_assert_status(cua_group_create(g.contexts[0], &t, &group), CUA_ERROR_VALUE);
	t.size = 0;
	ck_assert_status(cua_group_create(g.contexts[0], &t, &group), CUA_ERROR_VALUE);
	t = thread_transport(hub, 1);
	t.struct_size--;
	ck_assert_status(cua_group_create(g.contexts[0], &t, &group), CUA_ERROR_VALUE);
	t = thread_transport(hub, 1);
	t.agree = NULL;
	ck_assert_status(cua_group_create(g.contexts[0], &t, &group), CUA_ERROR_NULL);
	ck_assert_ptr_null(group);
	t = thread_transport(hub, 1);
	t.abort = NULL;
	ck_assert_cua(cua_group_create(g.contexts[0], &t, &group));
	ck_assert_uint_eq(cua_group_size(group), 2);
	ck_assert_uint_eq(cua_group_local(group), 1);
	ck_assert_uint_eq(cua_group_rank(group), 1);
	cua_group_destroy(group);
	cua_group_destroy(NULL);
	ck_assert_uint_eq(cua_group_size(NULL) + cua_group_local(NULL) + cua_group_rank(NULL), 0);
	ck_assert_uint_eq(cua_group_size(g.group), 3);
	ck_assert_uint_eq(cua_group_local(g.group), 3);
	ck_assert_uint_eq(cua_group_rank(g.group), 0);

	for (uint32_t r = 0; r < 3; r++)
		g.n[r] = 4096;
	ranks_fill(&g, CUA_F64, host, host, &seed);
	for (uint32_t r = 0; r < 3; r++)
		g.result_at[r] = &g.results[r];
	x = g.x;
#define X ((const void *const *)x)
#define CALL(...) cua_group_reduce(g.group, __VA_ARGS__)
#define SUM CUA_REDUCE_SUM, CUA_F64
	ck_assert_status(cua_group_reduce(NULL, NULL, SUM, g.n, X, NULL, g.result_at),
			 CUA_ERROR_NULL);
	expect_refused(&g, CUA_ERROR_NULL, CALL(NULL, SUM, NULL, X, NULL, g.result_at));
	expect_refused(&g, CUA_ERROR_NULL, CALL(NULL, SUM, g.n, NULL, NULL, g.result_at));
	expect_refused(&g, CUA_ERROR_NULL, CALL(NULL, SUM, g.n, X, NULL, NULL));
	expect_refused(&g, CUA_ERROR_NULL,
		       CALL(NULL, CUA_REDUCE_DOT, CUA_F64, g.n, X, NULL, g.result_at));
	expect_refused(&g, CUA_ERROR_VALUE, CALL(NULL, SUM, g.n, X, X, g.result_at));
	expect_refused(&g, CUA_ERROR_TYPE,
		       CALL(NULL, CUA_REDUCE_SUM, (enum cua_type)99, g.n, X, NULL, g.result_at));
	expect_refused(&g, CUA_ERROR_VALUE,
		       CALL(NULL, (enum cua_reduce_op)99, CUA_F64, g.n, X, NULL, g.result_at));
	/* one bad rank: all ranks are refused */
	for (uint32_t r = 0; r < 3; r++) {
		memcpy(bad, g.x, sizeof(bad));
		bad[r] = NULL;
		expect_refused(&g, CUA_ERROR_NULL, CALL(NULL, SUM, g.n, bad, NULL, g.result_at));
		bad[r] = (const char *)g.x[r] + 1;
		expect_refused(&g, CUA_ERROR_ALIGNMENT,
			       CALL(NULL, SUM, g.n, bad, NULL, g.result_at));
#if !TEST_CUDA
		bad[r] = &g.results[r];
		expect_refused(&g, CUA_ERROR_OVERLAP, CALL(NULL, SUM, g.n, bad, NULL, g.result_at));
#endif
		g.n[r] = SIZE_MAX / 8;
		expect_refused(&g, CUA_ERROR_SIZE, CALL(NULL, SUM, g.n, X, NULL, g.result_at));
		g.n[r] = 4096;
		g.result_at[r] = NULL;
		expect_refused(&g, CUA_ERROR_NULL, CALL(NULL, SUM, g.n, X, NULL, g.result_at));
		g.result_at[r] = &g.results[r];
	}
	o.count = &count;
	expect_refused(&g, CUA_ERROR_VALUE, CALL(&o, SUM, g.n, X, NULL, g.result_at));
	o.count = NULL;
	o.finish = CUA_FINISH_LOCK;
	expect_refused(&g, CUA_ERROR_VALUE, CALL(&o, SUM, g.n, X, NULL, g.result_at));
	o.finish = CUA_FINISH_LAST_BLOCK;
	o.mode = CUA_REDUCE_EXACT;
	expect_refused(&g, CUA_ERROR_UNSUPPORTED,
		       CALL(&o, CUA_REDUCE_MAX, CUA_F64, g.n, X, NULL, g.result_at));
	/* a chunk has 4096 elements of f64 */
	o.mode = CUA_REDUCE_FIXED;
	g.n[1] = 4095;
	expect_refused(&g, CUA_ERROR_VALUE, CALL(&o, SUM, g.n, X, NULL, g.result_at));
	g.n[2] = 0;
	ck_assert_cua(CALL(&o, SUM, g.n, X, NULL, g.result_at));
	o.struct_size++;
	memset(g.results, 0xa5, sizeof(g.results));
	expect_refused(&g, CUA_ERROR_VALUE, CALL(&o, SUM, g.n, X, NULL, g.result_at));
	o.struct_size--;
	ck_assert_status(cua_group_reduce_workspace(NULL, &o, SUM, 9, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_group_reduce_workspace(g.group, &o, SUM, 9, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_group_reduce_workspace(g.group, &o, CUA_REDUCE_SUM, (enum cua_type)99,
						    9, &bytes),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_group_reduce_workspace(g.group, &o, SUM, SIZE_MAX, &bytes),
			 CUA_ERROR_SIZE);
	ck_assert_uint_eq(bytes, 77);
	ck_assert_cua(cua_group_reduce_workspace(g.group, &o, SUM, 9, &bytes));
	ck_assert_uint_ge(bytes, 256);
	ranks_results(&g);
	ranks_close(&g);
	thread_hub_destroy(hub);
}

/* ---- a rank in each thread ---- */

struct crowd {
	struct thread_hub *hub;
	uint32_t size;
	uint64_t seed;
	int bad;                      /* the rank with the bad argument, or -1 */
	enum cua_status first_status; /* expected of all ranks */
	enum cua_status status[MOST_RANKS], again[MOST_RANKS];
	struct ranks of[MOST_RANKS]; /* each with a single rank */
	struct model_call call;
	enum cua_reduce_mode mode;
	enum cua_reduce_op op[MOST_RANKS];
	enum cua_type type[MOST_RANKS], result[MOST_RANKS];
	enum cua_reduce_mode mode_of[MOST_RANKS];
};

static void crowd_open(struct crowd *c, uint32_t size)
{
	memset(c, 0, sizeof(*c));
	c->hub = thread_hub_create(size);
	c->size = size;
	c->bad = -1;
	for (uint32_t r = 0; r < size; r++) {
		const struct cua_transport t = thread_transport(c->hub, r);

		c->of[r].size = 1;
		/* on a GPU, every third rank is on the CPU */
		c->of[r].contexts[0] = r % 3 == 2 ? test_context(CUA_BACKEND_CPU) : rank_context(r);
		ck_assert_cua(cua_group_create(c->of[r].contexts[0], &t, &c->of[r].group));
	}
}

static void crowd_close(struct crowd *c)
{
	for (uint32_t r = 0; r < c->size; r++)
		ranks_close(&c->of[r]);
	thread_hub_destroy(c->hub);
}

static void reduce_alone(void *arg, uint32_t rank)
{
	struct crowd *c = arg;
	struct ranks *g = &c->of[rank];
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	const void *x = (int)rank == c->bad ? NULL : g->x[0], *y = g->y[0];

	o.mode = c->mode_of[rank];
	o.result_type = c->result[rank];
	c->status[rank] = cua_group_reduce(g->group, &o, c->op[rank], c->type[rank], g->n, &x,
					   has_second(c->op[rank]) ? &y : NULL, g->result_at);
}

/* All ranks make the same call. */
static void crowd_same(struct crowd *c)
{
	for (uint32_t r = 0; r < c->size; r++) {
		c->op[r] = c->call.op;
		c->type[r] = c->call.type;
		c->result[r] = c->call.result;
		c->mode_of[r] = c->mode;
	}
}

/* Divides the call's arrays among the ranks, each with a thread, and makes the call. */
static void crowd_reduce(struct crowd *c, uint64_t *seed)
{
	struct ranks all = {.size = c->size};
	const size_t size = cua_type_size(c->call.type);
	size_t at = 0;

	divide(&all, c->call.type, (size_t)c->call.n, c->mode, seed);
	for (uint32_t r = 0; r < c->size; r++) {
		struct ranks *g = &c->of[r];

		g->n[0] = all.n[r];
		ranks_fill(g, c->call.type, (const char *)c->call.x + at,
			   (const char *)c->call.y + at, seed);
		at += g->n[0] * size;
	}
	crowd_same(c);
	thread_ranks(c->size, reduce_alone, c);
	for (uint32_t r = 0; r < c->size; r++)
		ranks_results(&c->of[r]);
}

static void threads(int i)
{
	uint64_t seed = test_seed("threads");
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	const int rounds = test_traced() ? 4 : SANITIZED ? 8 : test_scale(20, 50, 400);
	enum { MOST = 40000 };
	char *x = test_malloc(MOST * 16), *y = test_malloc(MOST * 16);
	struct crowd *c = test_malloc(sizeof(*c));

	crowd_open(c, sizes[i]);
	for (int round = 0; round < rounds; round++) {
		const enum cua_type type = types[test_random(&seed) % COUNT(types)];
		const int exactly = !model_is_integer(type) && !model_is_complex(type);
		struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
		union model_result expected;

		c->mode = exactly && test_random(&seed) % 2 ? CUA_REDUCE_EXACT : CUA_REDUCE_FIXED;
		do
			c->call.op = (enum cua_reduce_op)(
				FIRST_OP + (int)(test_random(&seed) % (LAST_OP - FIRST_OP + 1)));
		while (c->mode == CUA_REDUCE_EXACT
			       ? c->call.op != CUA_REDUCE_SUM && c->call.op != CUA_REDUCE_DOT
			       : !model_has(c->call.op, type));
		c->call.type = type;
		c->call.result = some_result(c->call.op, type, &seed);
		/* no order changes these */
		if ((c->call.op == CUA_REDUCE_ARGMIN || c->call.op == CUA_REDUCE_MAX ||
		     c->call.op == CUA_REDUCE_COUNT) &&
		    test_random(&seed) % 2)
			c->mode = CUA_REDUCE_FAST;
		c->call.n = test_random(&seed) % MOST;
		c->call.x = x;
		c->call.y = y;
		fill(type, (enum pattern)(test_random(&seed) % PATTERNS), (size_t)c->call.n, x,
		     &seed);
		fill(type, (enum pattern)(test_random(&seed) % PATTERNS), (size_t)c->call.n, y,
		     &seed);
		crowd_reduce(c, &seed);
		o.mode = c->mode;
		o.result_type = c->call.result;
		ck_assert_cua(cua_reduce(cpu, &o, c->call.op, type, (size_t)c->call.n, x,
					 has_second(c->call.op) ? y : NULL, &expected));
		for (uint32_t r = 0; r < c->size; r++) {
			ck_assert_cua(c->status[r]);
			expect_bits(&c->of[r].results[0], &expected, &c->call, "threads");
		}
	}
	crowd_close(c);
	cua_context_destroy(cpu);
	free(c);
	free(x);
	free(y);
}

/* All ranks return the error of a bad rank, with their results unchanged, and then still work. */
static void errors_of_threads(int i)
{
	uint64_t seed = test_seed("errors_of_threads");
	struct crowd *c = test_malloc(sizeof(*c));
	double x[64] = {1};

	(void)i;
	crowd_open(c, 4);
	c->call = (struct model_call){CUA_REDUCE_SUM, CUA_F64, (enum cua_type)0, 64, x, x};
	c->mode = CUA_REDUCE_FAST;
	for (uint32_t bad = 0; bad < 4; bad++) {
		for (uint32_t r = 0; r < 4; r++) {
			c->of[r].n[0] = 16;
			ranks_fill(&c->of[r], CUA_F64, x, x, &seed);
		}
		crowd_same(c);
		c->bad = (int)bad;
		thread_ranks(4, reduce_alone, c);
		for (uint32_t r = 0; r < 4; r++)
			ck_assert_status(c->status[r], CUA_ERROR_NULL);
		c->bad = -1;
		/* ranks that call another operation, type, mode, or type of result, or too much */
		for (int what = 0; what < 5; what++) {
			crowd_same(c);
			if (what == 0)
				c->op[bad] = CUA_REDUCE_MAX;
			if (what == 1)
				c->type[bad] = CUA_U64;
			if (what == 2)
				c->mode_of[bad] = CUA_REDUCE_EXACT;
			if (what == 3) {
				for (uint32_t r = 0; r < 4; r++)
					c->type[r] = CUA_F32;
				c->result[bad] = CUA_F64;
			}
			thread_ranks(4, reduce_alone, c);
			for (uint32_t r = 0; r < 4 && what < 4; r++)
				ck_assert_status(c->status[r], CUA_ERROR_VALUE);
		}
		for (uint32_t r = 0; r < 4; r++)
			ck_assert_cua(c->status[r]);
		for (uint32_t r = 0; r < 4; r++)
			memset(&c->of[r].results[0], 0xa5, sizeof(c->of[r].results[0]));
		c->bad = (int)bad;
		thread_ranks(4, reduce_alone, c);
		c->bad = -1;
		for (uint32_t r = 0; r < 4; r++)
			if (c->of[r].result_at[0] != (void *)&c->of[r].results[0]) {
				test_free(c->of[r].contexts[0], c->of[r].result_at[0]);
				c->of[r].result_at[0] = &c->of[r].results[0];
			}
		for (uint32_t r = 0; r < 4; r++) {
			ranks_results(&c->of[r]);
			expect_refused(&c->of[r], CUA_OK, CUA_OK);
		}
		crowd_reduce(c, &seed);
		for (uint32_t r = 0; r < 4; r++) {
			ck_assert_cua(c->status[r]);
			ck_assert_double_eq(c->of[r].results[0].f64, 1);
		}
	}
	crowd_close(c);
	free(c);
}

/* Each function of the transport fails once: no rank hangs, and the groups stay broken. */
static void failing_transports(int i)
{
	uint64_t seed = test_seed("failing_transports");
	struct crowd *c = test_malloc(sizeof(*c));
	double x[64] = {1};
	unsigned calls;

	(void)i;
	crowd_open(c, 3);
	c->call = (struct model_call){CUA_REDUCE_SUM, CUA_F64, (enum cua_type)0, 64, x, x};
	crowd_reduce(c, &seed);
	calls = thread_transport_calls(c->hub, 0);
	ck_assert_uint_ge(calls, 3);
	crowd_close(c);
	for (unsigned call = 0; call < calls; call++) {
		crowd_open(c, 3);
		c->call = (struct model_call){CUA_REDUCE_SUM, CUA_F64, (enum cua_type)0, 64, x, x};
		thread_transport_fail(c->hub, call % 3, call);
		crowd_reduce(c, &seed);
		for (uint32_t r = 0; r < 3; r++) {
			ck_assert_status(c->status[r], CUA_ERROR_SYSTEM);
			ck_assert_uint_eq(thread_transport_aborts(c->hub, r), 1);
		}
		crowd_reduce(c, &seed);
		for (uint32_t r = 0; r < 3; r++)
			ck_assert_status(c->status[r], CUA_ERROR_SYSTEM);
		ck_assert_uint_eq(thread_transport_calls(c->hub, call % 3), call + 1);
		crowd_close(c);
	}
	free(c);
}

#if TEST_CUDA
/* A capture that begins in the stream of rank 0 has the streams of all ranks. */
static void graphs(int i)
{
	enum { N = 100000 };
	uint64_t seed = test_seed("graphs");
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	struct model_call c = {CUA_REDUCE_SUM, CUA_F32, (enum cua_type)0, N, NULL, NULL};
	float *x = test_malloc(N * sizeof(*x));
	union model_result expected;
	size_t bytes, at = 0;
	void *mixed[MOST_RANKS];
	struct ranks g;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	c.x = c.y = x;
	fill(CUA_F32, TAME, N, x, &seed);
	ranks_open(&g, sizes[i]);
	stream = (cudaStream_t)cua_context_stream(g.contexts[0]);
	o.mode = CUA_REDUCE_EXACT;
	divide(&g, CUA_F32, N, o.mode, &seed);
	ranks_fill(&g, CUA_F32, x, x, &seed);
	for (uint32_t r = 0; r < g.size; r++) {
		if (g.result_at[r] == (void *)&g.results[r])
			g.result_at[r] =
				test_upload(g.contexts[r], &g.results[r], sizeof(g.results[r]));
		ck_assert_cua(cua_group_reduce_workspace(g.group, &o, CUA_REDUCE_SUM, CUA_F32, N,
							 &bytes));
		ck_assert_cua(cua_context_reserve(g.contexts[r], bytes));
		ck_assert_cua(cua_context_synchronize(g.contexts[r]));
	}
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cua(cua_group_reduce(g.group, &o, CUA_REDUCE_SUM, CUA_F32, g.n,
				       (const void *const *)g.x, NULL, g.result_at));
	/* refused for a result in ordinary memory of any rank, without harm to the capture */
	memcpy(mixed, g.result_at, sizeof(mixed));
	mixed[g.size - 1] = &g.results[0];
	ck_assert_status(cua_group_reduce(g.group, &o, CUA_REDUCE_SUM, CUA_F32, g.n,
					  (const void *const *)g.x, NULL, mixed),
			 CUA_ERROR_CAPTURE);
	ck_assert_cua(cua_group_reduce(g.group, &o, CUA_REDUCE_SUM, CUA_F32, g.n,
				       (const void *const *)g.x, NULL, g.result_at));
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 3; round++) {
		fill(CUA_F32, TAME, N, x, &seed);
		at = 0;
		for (uint32_t r = 0; r < g.size; r++) {
			ck_assert_cua(cua_copy(g.contexts[r], g.x[r], x + at, g.n[r] * sizeof(*x)));
			ck_assert_cua(cua_context_synchronize(g.contexts[r]));
			at += g.n[r];
		}
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		ck_assert_cuda(cudaStreamSynchronize(stream));
		ck_assert_cua(cua_reduce(cpu, &o, CUA_REDUCE_SUM, CUA_F32, N, x, NULL, &expected));
		for (uint32_t r = 0; r < g.size; r++) {
			test_download(g.contexts[r], &g.results[r], g.result_at[r],
				      sizeof(g.results[r]));
			expect_bits(&g.results[r], &expected, &c, "a graph");
		}
	}
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	/* a capture of another rank's stream only */
	if (g.size > 1) {
		stream = (cudaStream_t)cua_context_stream(g.contexts[1]);
		ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		ck_assert_status(cua_group_reduce(g.group, &o, CUA_REDUCE_SUM, CUA_F32, g.n,
						  (const void *const *)g.x, NULL, g.result_at),
				 CUA_ERROR_CAPTURE);
		ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
		ck_assert_cuda(cudaGraphDestroy(graph));
	}
	ranks_results(&g);
	ranks_close(&g);
	cua_context_destroy(cpu);
	free(x);
}
#endif

static const struct fixed_test tests[] = {
	{results, (int)(COUNT(types) * COUNT(sizes))},
	{long_arrays, 2},
	{many_ranks, 2},
	{calls_in_a_row, (int)COUNT(sizes)},
	{every_division, 4},
	{cuts, 1},
	{arguments, 1},
	{threads, (int)COUNT(sizes)},
	{errors_of_threads, 1},
	{failing_transports, 1},
#if TEST_CUDA
	{graphs, (int)COUNT(sizes)},
#endif
};

int main(void)
{
	return fixed_run("group", tests, COUNT(tests));
}
