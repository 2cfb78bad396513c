/* SPDX-License-Identifier: MIT */
/*
 * The block function of the kernels that reduce in a fixed order, in several blocks, against the
 * model.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/kernels/tree_block.h"

#include "simt_suites.h"
#include "tree_model.h"

/* Kinds that differ in the type and the movement of their values: X(kind, op, type) */
#define TREE_CASES(X)                                                                              \
	X(sum_f32, SUM, F32)                                                                       \
	X(moments_f32, VARIANCE, F32)                                                              \
	X(dot_f64, DOT, F64)                                                                       \
	X(index_b32, ARGMIN, F32)                                                                  \
	X(norm_f64, NORM2, F64)                                                                    \
	X(sum_b64, MEAN, I64)                                                                      \
	X(sum_c64, SUM, COMPLEX_F64)                                                               \
	X(order_b16, MAX, F16)                                                                     \
	X(sum_f16, SUM, F16)

#define CUA__TREE_TEMPLATE "kernels/tree_block.tmpl.h"
#define CUA__TREE_WITH_ALL
#include "kernels/tree_kinds.tmpl.h"

static const struct tree_case {
	const char *name;
	enum cua_reduce_op op;
	enum cua_type type;
	size_t words; /* of a value */
	void (*block)(const struct cua__reduce *r, struct cua__tree_scratch *s);
} tree_cases[] = {
#define TREE_CASE(kind, op, type)                                                                  \
	{#kind, CUA_REDUCE_##op, CUA_##type, sizeof(cua__tree_value_##kind) / 8,                   \
	 cua__tree_block_##kind},
	TREE_CASES(TREE_CASE)};

enum { TREE_CHUNKS = 5, TREE_BYTES = TREE_CHUNKS * 64 * 512 + 64 };

static unsigned char tree_x[TREE_BYTES + 16] __attribute__((aligned(16)));
static unsigned char tree_y[TREE_BYTES + 16] __attribute__((aligned(16)));
static uint64_t tree_partials[(TREE_CHUNKS + 2) * CUA__TREE_WORDS];
static struct cua_finish tree_finish;
static union model_result tree_result, tree_expected;
static const struct tree_case *tree_case;
static struct cua__reduce tree_call;

static void tree_setup(void)
{
	/* the parts of an array leave their values there */
	if (tree_call.step == CUA__TREE_WHOLE)
		memset(tree_partials, 0xa5, sizeof(tree_partials));
	memset(&tree_result, 0xa5, sizeof(tree_result));
	cua_finish_init(&tree_finish);
}

static void tree_body(void)
{
	struct cua__tree_scratch *s = simt_shared(sizeof(*s));

	tree_case->block(&tree_call, s);
}

static const char *tree_check(void)
{
	static const struct cua_finish zero;
	union model_result untouched;

	memset(&untouched, 0xa5, sizeof(untouched));
	if (tree_call.step == CUA__TREE_CHUNKS || tree_call.step == CUA__TREE_VALUE) {
		if (memcmp(&tree_result, &untouched, sizeof(untouched)))
			return "a part has a result";
	} else if (memcmp(&tree_result, &tree_expected, cua_type_size(tree_call.result_type))) {
		return "the result is not the model's";
	}
	return memcmp(&tree_finish, &zero, sizeof(zero)) ? "the state is not zero again" : NULL;
}

/* Describes a call as lib/reduce.c does. */
static void tree_describe(uint64_t n, size_t shift)
{
	enum cua_type type = tree_case->type;
	size_t size = cua_type_size(type);
	struct cua__reduce *r = &tree_call;
	/* widens: the result keeps all digits */
	int widens = type == CUA_F32 && tree_case->op != CUA_REDUCE_ARGMIN;
	enum cua_type result = widens ? CUA_F64 : model_default_result(tree_case->op, type);
	struct model_call c = {tree_case->op,        type, result, n, tree_x + shift * size,
			       tree_y + shift * size};

	memset(r, 0, sizeof(*r));
	r->op = tree_case->op;
	r->type = type;
	r->result_type = c.result;
	r->n = n;
	r->x = c.x;
	r->y = r->op == CUA_REDUCE_DOT ? c.y : c.x;
	r->result = &tree_result;
	r->partials = tree_partials;
	r->finish = &tree_finish;
	r->conjugate = 1;
	r->keep = UINT64_MAX;
	if (type == CUA_I64)
		r->sign = (uint64_t)1 << 63;
	if (r->op == CUA_REDUCE_NORM2)
		r->keep = UINT64_MAX >> 1;
	if (r->op == CUA_REDUCE_ARGMIN || r->op == CUA_REDUCE_MAX) {
		r->top = r->sign = type == CUA_F16 ? 0x8000 : 0x80000000;
		r->keep = r->low = r->top - 1;
		r->finite = type == CUA_F16 ? 0x7c00 : 0x7f800000;
		r->quiet = type == CUA_F16 ? 0x7e00 : 0x7fc00000;
		r->flip = r->op == CUA_REDUCE_ARGMIN ? r->top | r->low : 0;
	}
	tree_expected = model_reduce(&c);
}

/* Floats of either sign within a few powers of two, or any bits. */
static void tree_fill(void *p, enum cua_type type, uint64_t random)
{
	for (size_t i = 0; i < TREE_BYTES / 8; i++) {
		uint64_t z = random += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		z ^= z >> 31;
		if (type == CUA_F16)
			z = (z & 0x8fff8fff8fff8fff) | 0x3000300030003000;
		else if (type == CUA_F32)
			z = (z & 0x9fffffff9fffffff) | 0x2000000020000000;
		else if (type != CUA_I64)
			z = (z & 0x803fffffffffffff) | 0x3fc0000000000000;
		((uint64_t *)p)[i] = z;
	}
}

/*
 * Zero elements, a single element, less than a row, and several chunks for each block, aligned and
 * not.
 */
static void try_tree(const struct tree_case *which)
{
	static const struct {
		unsigned blocks;
		unsigned chunks, strips, rows; /* full chunks, strips and rows, then `more`
					        * elements */
		unsigned more, shift;
	} shapes[] = {
		{1, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 1, 1}, {2, 0, 0, 0, 27, 1}, {1, 0, 0, 1, 3, 0},
		{1, 2, 1, 0, 3, 0}, {2, 4, 5, 9, 3, 1}, {3, 1, 3, 2, 3, 0},  {4, 4, 7, 7, 3, 0},
	};
	struct simt_case c = {.setup = tree_setup, .body = tree_body, .check = tree_check};
	size_t row = 32 * 16 / cua_type_size(which->type);
	char name[64];

	tree_case = which;
	tree_fill(tree_x, tree_case->type, 1);
	tree_fill(tree_y, tree_case->type, 2);
	c.name = name;
	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		uint64_t n = (shapes[k].chunks * 64 + shapes[k].strips * 8 + shapes[k].rows) * row +
			     shapes[k].more;

		snprintf(name, sizeof(name), "%s of %llu, shifted by %u", which->name,
			 (unsigned long long)n, shapes[k].shift);
		tree_describe(n, shapes[k].shift);
		try_shape(c, shapes[k].blocks, CUA__TREE_THREADS, 1);
	}
}

/*
 * An array in two parts, the second empty for cut == chunks: the values of their chunks, or a value of
 * each part, and then the result of these.
 */
static void try_parts(const struct tree_case *which, unsigned cut, int by_chunks)
{
	enum { CHUNKS = TREE_CHUNKS - 1 };
	struct simt_case c = {.setup = tree_setup, .body = tree_body, .check = tree_check};
	const size_t size = cua_type_size(which->type), chunk = 64 * 512 / size;
	const uint64_t n = CHUNKS * chunk - 7, first = cut * chunk < n ? cut * chunk : n;
	struct cua__reduce whole;
	char name[64];

	tree_case = which;
	tree_fill(tree_x, which->type, 3);
	tree_fill(tree_y, which->type, 4);
	c.name = name;
	snprintf(name, sizeof(name), "%s in parts, cut at %u, %d", which->name, cut, by_chunks);
	tree_describe(n, 0);
	whole = tree_call;
	memset(tree_partials, 0xa5, sizeof(tree_partials));
	for (unsigned part = 0; part < 2; part++) {
		const size_t at = part ? (size_t)first * size : 0;

		tree_call = whole;
		tree_call.n = part ? n - first : first;
		tree_call.first = part ? first : 0;
		tree_call.x = (const char *)whole.x + at;
		tree_call.y = (const char *)whole.y + at;
		if (by_chunks) {
			tree_call.step = CUA__TREE_CHUNKS;
			tree_call.whole = n;
			tree_call.partials = tree_partials + (part ? cut * which->words : 0);
		} else {
			tree_call.step = CUA__TREE_VALUE;
			tree_call.partials = tree_partials + 2 * which->words;
			tree_call.result = tree_partials + part * which->words;
		}
		try_shape(c, 1 + part, CUA__TREE_THREADS, 1);
	}
	tree_call = whole;
	tree_call.step = CUA__TREE_ROOT;
	tree_call.values = by_chunks ? CHUNKS : 2;
	try_shape(c, 1, CUA__TREE_THREADS, 1);
}

/* No order of the elements changes the result. */
static int has_no_order(const struct tree_case *c)
{
	return c->op == CUA_REDUCE_ARGMIN || c->op == CUA_REDUCE_MAX || c->type == CUA_I64;
}

START_TEST(tree_parts)
{
	for (size_t i = 0; i < sizeof(tree_cases) / sizeof(tree_cases[0]); i++)
		for (unsigned cut = 0; cut < TREE_CHUNKS; cut += 2) {
			try_parts(&tree_cases[i], cut, 1);
			if (has_no_order(&tree_cases[i]) && cut)
				try_parts(&tree_cases[i], cut, 0);
		}
}
END_TEST

START_TEST(tree_blocks)
{
	for (size_t i = 0; i < sizeof(tree_cases) / sizeof(tree_cases[0]); i++)
		try_tree(&tree_cases[i]);
}
END_TEST

TCase *simt_tree_cases(void)
{
	TCase *tc = simt_tcase("tree");

	tcase_add_test(tc, tree_blocks);
	tcase_add_test(tc, tree_parts);
	return tc;
}
