/* SPDX-License-Identifier: MIT */
/* Random scatters, and their comparison with the model. */
#ifndef CUATOMIC_TESTS_SCATTER_CALLS_H
#define CUATOMIC_TESTS_SCATTER_CALLS_H

#include "common.h"
#include "exact_elements.h"
#include "scatter_model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum cua_scatter_op ops[] = {CUA_SCATTER_ADD, CUA_SCATTER_MIN, CUA_SCATTER_MAX,
					  CUA_SCATTER_MEAN};
static const char *const op_names[] = {"", "ADD", "MIN", "MAX", "MEAN"};
static const enum cua_type index_types[] = {CUA_I32, CUA_U32, CUA_I64, CUA_U64};
static const enum cua_type element_types[] = {CUA_I8,  CUA_U8,   CUA_I16, CUA_U16,
					      CUA_I32, CUA_U32,  CUA_I64, CUA_U64,
					      CUA_F16, CUA_BF16, CUA_F32, CUA_F64};
static const enum cua_type floats[] = {CUA_F16, CUA_BF16, CUA_F32, CUA_F64};
static const enum cua_reduce_mode modes[] = {CUA_REDUCE_AUTO, CUA_REDUCE_EXACT, CUA_REDUCE_FIXED,
					     CUA_REDUCE_FAST};

/* The types of results as the header lists them. */
static int is_result(enum cua_scatter_op op, enum cua_type type, enum cua_type result)
{
	const int of_float = format_of(type) != NULL, to_float = format_of(result) != NULL;

	if (op == CUA_SCATTER_MEAN && !of_float)
		return to_float;
	if (of_float != to_float ||
	    (type != result && cua_type_size(result) <= cua_type_size(type)))
		return 0;
	return of_float || is_signed_integer(type) == is_signed_integer(result);
}

static struct cua_scatter_options options_of(const struct scatter_call *c)
{
	struct cua_scatter_options o = CUA_SCATTER_OPTIONS_INIT;

	o.mode = c->mode;
	o.result_type = c->result_type;
	o.overwrite = c->overwrite;
	o.width = c->width;
	return o;
}

/* ---- input ---- */

enum spread {
	UNIFORM,
	ONE,    /* a single target */
	SKEWED, /* target t with a probability of about 1 / t, and the targets shuffled */
	SORTED, /* ascending */
	RUNS,   /* neighbours with the same target */
	SPARSE, /* a few targets */
	BAD,    /* many indexes out of range */
	SPREADS
};
static const char *const spread_names[] = {"uniform", "one",    "skewed", "sorted",
					   "runs",    "sparse", "bad"};

/* An index out of range; truncated to a type of 32 bits. */
static uint64_t bad_index(const struct scatter_call *c, uint64_t r)
{
	const uint64_t targets = c->targets;
	const uint64_t bad[] = {(uint64_t)-1,
				targets,
				targets + 1,
				(uint64_t)INT32_MIN,
				INT32_MAX,
				UINT32_MAX,
				((uint64_t)1 << 32) + targets / 2,
				(uint64_t)INT64_MIN,
				INT64_MAX,
				((uint64_t)1 << 63) + targets / 2};

	return bad[r % COUNT(bad)];
}

static uint64_t next_index(const struct scatter_call *c, enum spread spread, size_t i,
			   uint64_t last, uint64_t *seed)
{
	const uint64_t r = test_random(seed), targets = c->targets;
	double rank;

	switch (spread) {
	case ONE: return targets / 2;
	case SKEWED:
		rank = pow((double)targets, (double)(r >> 11) * 0x1p-53);
		return (uint64_t)rank * 2654435761u % targets;
	case SORTED: return i * targets / c->n;
	case RUNS: return i && r % 16 ? last : (r >> 8) % targets;
	case SPARSE: return (r % 5) * (targets / 5);
	case BAD:
		if (r % 3 == 0)
			return bad_index(c, r >> 8);
		return (r >> 8) % targets;
	default: return r % targets;
	}
}

static void make_indexes(const struct scatter_call *c, enum spread spread, uint64_t *seed)
{
	uint64_t last = 0;

	for (size_t i = 0; i < c->n; i++) {
		last = c->targets ? next_index(c, spread, i, last, seed) : bad_index(c, i);
		store_bits(c->index_type, c->index, i, last);
	}
}

/* The kinds of exact_elements.h, and further kinds. */
#define KIND_BY_TARGET ((enum kind_of_element)KINDS)   /* a range of exponents for each target */
#define KIND_FULL ((enum kind_of_element)(KINDS + 1))  /* all bits set, and equal signs */
#define KIND_RANGE ((enum kind_of_element)(KINDS + 2)) /* a range of exponents for each call */
#define KIND_RARE ((enum kind_of_element)(KINDS + 3))  /* near 1, but a single element is not */
#define KINDS_HERE (KINDS + 4)

static const char *name_of_kind(enum kind_of_element kind)
{
	static const char *const names[] = {"by target", "full", "range", "rare"};

	return (int)kind < KINDS ? kind_names[kind] : names[kind - KINDS];
}

/* The choices for a call: the exponents of KIND_RANGE, and the element of KIND_RARE. */
static struct {
	int range;
	uint64_t rare;
} chosen;

static void choose(const struct scatter_call *c, uint64_t *seed)
{
	const uint64_t r = test_random(seed);

	chosen.range = 1 + (int)(r % (r / 256 % 2 ? 80 : 2100));
	chosen.rare = c->n ? (r >> 32) % c->n : 0;
}

static uint64_t float_element(const struct format *f, enum kind_of_element kind, size_t i,
			      uint64_t target, uint64_t *seed)
{
	const unsigned bias = (1u << (f->exponent - 1)) - 1;

	switch ((int)kind) {
	case KIND_BY_TARGET: return random_near(f, (int)(target * 37 % (2 * bias)), 8, seed);
	case KIND_FULL:
		return (target % 2 ? format_minus(f) : 0) |
		       ((((uint64_t)bias / 2 + 1 + target % 3) << f->fraction) - 1);
	case KIND_RANGE: return random_near(f, (int)bias, chosen.range, seed);
	case KIND_RARE:
		if (i == chosen.rare)
			return test_random(seed) & (2 * format_minus(f) - 1);
		return random_near(f, (int)bias, 8, seed);
	default: return random_element(f, kind, i, seed);
	}
}

static uint64_t integer_element(enum cua_type type, uint64_t *seed)
{
	const uint64_t r = test_random(seed);
	const uint64_t top = (uint64_t)1 << (8 * cua_type_size(type) - 1);

	switch (r % 16) {
	case 0: return 0;
	case 1: return top;
	case 2: return top - 1;
	case 3: return (uint64_t)-1;
	default: return r >> 4 ^ r << 60;
	}
}

static void make_elements(const struct scatter_call *c, enum kind_of_element kind, uint64_t *seed)
{
	const struct format *f = format_of(c->type);
	const size_t width = c->width;
	size_t target = 0;

	for (size_t i = 0; i < c->n; i++) {
		/* most pairs of rows cancel */
		const int cancels = f && kind == KIND_CANCEL && i % 2;

		if (cancels)
			store_bits(c->index_type, c->index, i,
				   load_bits(c->index_type, c->index, i - 1));
		(void)target_of(c, i, &target);
		for (size_t j = i * width; j < (i + 1) * width; j++) {
			uint64_t bits;

			if (!f)
				bits = integer_element(c->type, seed);
			else if (cancels)
				bits = load_bits(c->type, c->x, j - width) ^ format_minus(f) ^
				       (test_random(seed) % 32 == 0);
			else
				bits = float_element(f, kind, i, target * width + j % width, seed);
			store_bits(c->type, c->x, j, bits);
		}
	}
}

/* Reorders the rows. */
static void shuffle(const struct scatter_call *c, uint64_t *seed)
{
	const size_t bytes[] = {cua_type_size(c->index_type), c->width * cua_type_size(c->type)};
	char *const array[] = {c->index, c->x};
	char *kept = test_malloc(bytes[1] + 8);

	for (size_t i = c->n; i > 1; i--) {
		size_t j = (size_t)(test_random(seed) % i);

		if (j == i - 1)
			continue;
		for (int k = 0; k < 2; k++) {
			memcpy(kept, array[k] + (i - 1) * bytes[k], bytes[k]);
			memcpy(array[k] + (i - 1) * bytes[k], array[k] + j * bytes[k], bytes[k]);
			memcpy(array[k] + j * bytes[k], kept, bytes[k]);
		}
	}
	free(kept);
}

/* Old values: few of them are special, because most special values decide the result. */
static void *make_targets(const struct scatter_call *c, enum kind_of_element kind, uint64_t *seed)
{
	const struct format *f = format_of(c->result_type);
	const size_t all = c->targets * c->width;
	void *old = test_malloc(all * cua_type_size(c->result_type));

	for (size_t t = 0; t < all; t++) {
		uint64_t bits, r = test_random(seed);

		if (!f)
			bits = integer_element(c->result_type, seed);
		else if (r % 64 == 0)
			bits = format_infinity(f) + r / 64 % 3 + (r & format_minus(f));
		else if (r % 4 == 0)
			bits = r & format_minus(f);
		else
			bits = float_element(f, kind, t, t, seed);
		store_bits(c->result_type, old, t, bits);
	}
	return old;
}

/* Allocates the arrays of a call and fills them. */
static void make_call(struct scatter_call *c, enum spread spread, enum kind_of_element kind,
		      uint64_t *seed)
{
	c->index = test_malloc(c->n * cua_type_size(c->index_type));
	c->x = test_malloc(c->n * c->width * cua_type_size(c->type));
	choose(c, seed);
	make_indexes(c, spread, seed);
	make_elements(c, kind, seed);
	if (kind == KIND_CANCEL && c->n * c->width < 1000000)
		shuffle(c, seed);
}

static void free_call(struct scatter_call *c)
{
	free(c->index);
	free(c->x);
}

/* ---- calls ---- */

/* An array of the backend that begins `lead` elements after an aligned address. */
struct device_array {
	char *memory, *first;
};

static struct device_array upload(struct cua_context *ctx, const void *host, size_t n, size_t size,
				  size_t lead)
{
	struct device_array a;

	/* a poisoned rest of at least 64 bytes */
	a.memory = test_alloc(ctx, (n + lead) * size + 64);
	a.first = a.memory + lead * size;
	if (n)
		ck_assert_cua(cua_copy(ctx, a.first, host, n * size));
	return a;
}

/* The results in host memory, with `lead` poisoned results before the targets. */
struct outcome {
	char *memory, *first;
	uint64_t skipped; /* 77 if the call does not count them */
};

enum place { NOWHERE, ON_HOST, ON_BACKEND };

static struct outcome run_call(struct cua_context *ctx, const struct scatter_call *c,
			       const void *old, enum place place, size_t lead)
{
	const size_t size = cua_type_size(c->result_type), all = c->targets * c->width;
	struct cua_scatter_options o = options_of(c);
	struct device_array index = upload(ctx, c->index, c->n, cua_type_size(c->index_type), lead);
	struct device_array x =
		upload(ctx, c->x, c->n * c->width, cua_type_size(c->type), lead * 3 % 8);
	struct device_array out = upload(ctx, old, all, size, lead);
	uint64_t *count = test_alloc(ctx, sizeof(*count));
	struct outcome r = {.skipped = 77};

	o.skipped = place == NOWHERE ? NULL : place == ON_HOST ? &r.skipped : count;
	ck_assert_cua(cua_scatter(ctx, &o, c->op, c->index_type, c->type, c->n, index.first,
				  x.first, c->targets, out.first));
	r.memory = test_malloc((all + lead) * size + 64);
	r.first = r.memory + lead * size;
	test_download(ctx, r.memory, out.memory, (all + lead) * size + 64);
	if (place == ON_BACKEND)
		test_download(ctx, &r.skipped, count, sizeof(*count));
	test_free(ctx, index.memory);
	test_free(ctx, x.memory);
	test_free(ctx, out.memory);
	test_free(ctx, count);
	return r;
}

static void fail_at(const struct scatter_call *c, const char *what, size_t wrong, size_t at,
		    uint64_t old, uint64_t got, uint64_t expected)
{
	ck_abort_msg("%s, mode %d: %s %s to %s by %s, overwrite %d, width %u, n %zu, targets %zu: "
		     "%zu wrong; target %zu, column %zu was %llx, is %llx, not %llx",
		     what, (int)c->mode, op_names[c->op], cua_type_name(c->type),
		     cua_type_name(c->result_type), cua_type_name(c->index_type), c->overwrite,
		     c->width, c->n, c->targets, wrong, at / c->width, at % c->width,
		     (unsigned long long)old, (unsigned long long)got,
		     (unsigned long long)expected);
}

static void compare(const struct scatter_call *c, const char *what, const void *old,
		    const void *got, const void *expected)
{
	const size_t all = c->targets * c->width;
	size_t wrong = 0, at = 0;

	if (!memcmp(got, expected, all * cua_type_size(c->result_type)))
		return;
	for (size_t t = all; t-- > 0;)
		if (load_bits(c->result_type, got, t) != load_bits(c->result_type, expected, t)) {
			wrong++;
			at = t;
		}
	fail_at(c, what, wrong, at, load_bits(c->result_type, old, at),
		load_bits(c->result_type, got, at), load_bits(c->result_type, expected, at));
}

/* Compares every target with the model, and checks that nothing around them was written. */
static void check(struct cua_context *ctx, const struct scatter_call *c, const char *what,
		  const void *old)
{
	static unsigned turn;
	const size_t size = cua_type_size(c->result_type), all = c->targets * c->width;
	const enum place place = (enum place)(turn % 3);
	const size_t lead = turn % 5;
	char *expected = test_malloc(all * size);
	uint64_t skipped = model_scatter(c, old, expected);
	struct outcome got;

	ck_assert_cua(cua_context_set_threads(ctx, 1 + turn * 5 % 7));
	turn++;
	got = run_call(ctx, c, old, place, lead);
	compare(c, what, old, got.first, expected);
	if (place == NOWHERE)
		skipped = 77;
	ck_assert_msg(got.skipped == skipped, "%s: %llu skipped, not %llu", what,
		      (unsigned long long)got.skipped, (unsigned long long)skipped);
	for (size_t i = 0; (all + lead) * size + 64 <= (size_t)64 << 20 && i < lead * size; i++)
		ck_assert_uint_eq((uint8_t)got.memory[i], 0xa5);
	for (size_t i = 0; (all + lead) * size + 64 <= (size_t)64 << 20 && i < 64; i++)
		ck_assert_uint_eq((uint8_t)got.first[all * size + i], 0xa5);
	free(expected);
	free(got.memory);
}

/* A call with these elements and old values of the same kind. */
static void check_random(struct cua_context *ctx, struct scatter_call *c, enum spread spread,
			 enum kind_of_element kind, uint64_t *seed)
{
	char what[80];
	void *old;

	snprintf(what, sizeof(what), "%s indexes, %s elements", spread_names[spread],
		 name_of_kind(kind));
	make_call(c, spread, kind, seed);
	old = make_targets(c, kind, seed);
	check(ctx, c, what, old);
	free(old);
	free_call(c);
}

/* Mode FAST of sums of floats has its own tests. */
static enum cua_reduce_mode any_mode(const struct scatter_call *c, uint64_t *seed)
{
	const int sums = c->op == CUA_SCATTER_ADD || c->op == CUA_SCATTER_MEAN;

	return modes[test_random(seed) % (sums && format_of(c->type) ? 3 : COUNT(modes))];
}

#endif /* CUATOMIC_TESTS_SCATTER_CALLS_H */
