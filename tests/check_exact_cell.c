/* SPDX-License-Identifier: MIT */
/*
 * Exact cells: the inline functions on the host, and the host calls on either backend, compared
 * with a serial model, bit by bit. device_exact_cell.cu has the additions inside kernels.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <math.h>
#include <pthread.h>
#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

#include "exact_cell_calls.h"

static const enum cua_type floats[] = {CUA_F16, CUA_BF16, CUA_F32, CUA_F64};

static struct cua_exact_cells_options options_of(enum cua_type result, int overwrite)
{
	struct cua_exact_cells_options o = CUA_EXACT_CELLS_OPTIONS_INIT;

	o.result_type = result;
	o.overwrite = overwrite;
	return o;
}

/* A unit of a type: the least, the greatest, the default, or any. */
static int any_unit(const struct cell_type *t, uint64_t r)
{
	switch (r % 8) {
	case 0: return t->least;
	case 1: return t->most;
	case 2: return t->usual;
	case 3: return t->least + 1 + (int)(r / 8 % 60);
	case 4: return t->most - 1 - (int)(r / 8 % 60);
	default: return t->least + (int)(r / 8 % (uint64_t)(t->most - t->least + 1));
	}
}

/* Adds all elements, each with some form. No element may be lost. */
static void add_all(const struct cells *c, const struct additions *a, int form)
{
	for (size_t i = 0; i < a->n; i++)
		EXPECT(cells_add(c, (enum form)(form < FORMS ? form : (int)(i % FORMS)), a->cell[i],
				 element(a, i)) == 1,
		       "an addition returned 0");
}

/* Room for all spills: sums may spill, too. */
static uint64_t room_for(const struct additions *a)
{
	return a->outside + (a->may_overflow ? a->n : 0) + 1;
}

static void expect_demand(const struct additions *a, const struct host_cells *h)
{
	const uint64_t demand = h->cursor->demand;

	EXPECT(a->may_overflow ? demand >= a->outside : demand == a->outside,
	       "%s, unit %d, %s: demand %llu of %llu elements outside the range",
	       cua_type_name(a->type->type), a->unit, cell_kind_name(a->kind),
	       (unsigned long long)demand, (unsigned long long)a->outside);
}

/* ---- the inline functions alone ---- */

#if !TEST_CUDA
static void take_scaled(int64_t m, int power, int negate)
{
	const struct format *f = format_of(CUA_F64);

	sum_take(f, scaled(f, (m < 0) != negate, m < 0 ? (uint64_t)-m : (uint64_t)m, power));
}

/* Adds the words of a cell to the sum of the model. */
static void take_words(const struct cell_type *t, int unit, const void *cell, uint64_t i)
{
	for (int w = 0; w < t->words; w++) {
		const int64_t v = (int64_t)cell_word(t, cell, i, w) >> (w == t->words - 1 ? 5 : 0);
		const int power = unit + w * t->bits;

		/* each half is exact as f64 */
		take_scaled(v >> 32, power + 32, 0);
		take_scaled(v & 0xffffffff, power, 0);
	}
}

/* The flags that the elements of a cell require. */
static uint32_t flags_of(const struct additions *a, const struct chains *chains, uint32_t cell)
{
	const struct format *f = format_of(a->type->type);
	uint32_t flags = 0;

	for (size_t i = chains->first[cell]; i < a->n; i = chains->next[i]) {
		const uint64_t bits = element(a, i);

		if (model_is_nan(f, bits))
			flags |= CUA_EXACT_NAN;
		else if ((bits & (format_minus(f) - 1)) == format_infinity(f))
			flags |= bits & format_minus(f) ? CUA_EXACT_NEGATIVE_INFINITY
							: CUA_EXACT_INFINITY;
		else if (is_outside(a->type, a->unit, bits))
			flags |= CUA_EXACT_SPILLED;
	}
	return flags;
}

/* The words and spills of each cell have the sum of its elements, exactly. */
static void expect_words(const struct additions *a, const struct host_cells *h)
{
	const struct chains chains = chains_of(a);
	const struct format *f = format_of(a->type->type), *f64 = format_of(CUA_F64);
	const uint64_t spills = h->cursor->demand;

	for (uint32_t c = 0; c < a->cells; c++) {
		const uint32_t flags = cell_flags(a->type, h->cell, c);
		const uint32_t expected = flags_of(a, &chains, c);

		EXPECT(flags == expected ||
			       (a->may_overflow && flags == (expected | CUA_EXACT_SPILLED)),
		       "%s, unit %d, %s: flags %x, not %x", cua_type_name(a->type->type), a->unit,
		       cell_kind_name(a->kind), flags, expected);
		sum_begin();
		take_words(a->type, a->unit, h->cell, c);
		for (uint64_t s = 0; s < spills; s++)
			if (h->items[s].cell == c)
				sum_take(f64, h->items[s].bits);
		for (size_t i = chains.first[c]; i < a->n; i = chains.next[i]) {
			const uint64_t bits = element(a, i);

			if ((bits & (format_minus(f) - 1)) < format_infinity(f))
				sum_take(f, bits ^ format_minus(f));
		}
		EXPECT(sum_is_zero(), "%s, unit %d, %s, form: the sum of cell %u is wrong",
		       cua_type_name(a->type->type), a->unit, cell_kind_name(a->kind), c);
	}
	free_chains(&chains);
}

START_TEST(test_words)
{
	static const size_t sizes[] = {0, 1, 2, 3, 40, 1500, 5000};
	static const uint32_t counts[] = {1, 1, 2, 7};
	const int turns = test_scale(3, 20, 200);
	const struct cell_type *t = &cell_types[_i];
	uint64_t seed = test_seed("test_words");

	for (int turn = 0; turn < turns; turn++)
		for (int kind = 0; kind < CELL_KINDS; kind++) {
			const uint64_t r = test_random(&seed);
			const struct additions a = make_additions(
				t, any_unit(t, r >> 32), kind, sizes[r % COUNT(sizes)],
				counts[r / 64 % COUNT(counts)], &seed);
			const struct host_cells h =
				make_host_cells(t, a.cells, a.unit, room_for(&a));

			add_all(&h.view, &a, (int)(r / 1024 % (FORMS + 1)));
			expect_demand(&a, &h);
			expect_words(&a, &h);
			free_host_cells(&h);
			free_additions(&a);
		}
}
END_TEST

/* Private cells of several blocks, which are merged. */
static void add_private(const struct cells *c, const struct additions *a, size_t blocks)
{
	const struct cell_type *t = a->type;
	char *own = (char *)test_malloc(a->cells * t->size);

	for (size_t b = 0; b < blocks; b++) {
		/* a block has the cells from `first` on, and adds to the other cells directly */
		const uint32_t first = (uint32_t)(b % 2 * a->cells / 3);
		struct cells view = *c;

		memset(own, 0, a->cells * t->size);
		view.f32 = cua_exact_cells_private_f32(
			&c->f32, (struct cua_exact_cell_f32 *)(void *)own, first, a->cells - first);
		view.f64 = cua_exact_cells_private_f64(
			&c->f64, (struct cua_exact_cell_f64 *)(void *)own, first, a->cells - first);
		for (size_t i = b; i < a->n; i += blocks) {
			const uint32_t cell = a->cell[i];

			EXPECT(cell >= first ? cells_add(&view, BLOCK, cell - first, element(a, i))
					     : cells_add(c, LANE, cell, element(a, i)),
			       "an addition returned 0");
		}
		for (uint32_t i = first; i < a->cells; i++) {
			const void *part = own + (i - first) * t->size;

			EXPECT(t->type == CUA_F32
				       ? cua_exact_cell_merge_f32(
						 &c->f32, i,
						 (const struct cua_exact_cell_f32 *)part)
				       : cua_exact_cell_merge_f64(
						 &c->f64, i,
						 (const struct cua_exact_cell_f64 *)part),
			       "a merge returned 0");
		}
	}
	free(own);
}

START_TEST(test_merges)
{
	const int turns = test_scale(2, 10, 100);
	const struct cell_type *t = &cell_types[_i];
	uint64_t seed = test_seed("test_merges");

	for (int turn = 0; turn < turns; turn++)
		for (int kind = 0; kind < CELL_KINDS; kind++) {
			const uint64_t r = test_random(&seed);
			const struct additions a = make_additions(
				t, any_unit(t, r >> 32), kind, 4000, 1 + (uint32_t)(r % 9), &seed);
			const struct host_cells h =
				make_host_cells(t, a.cells, a.unit, 2 * room_for(&a));

			add_private(&h.view, &a, 1 + (size_t)(r / 16 % 7));
			expect_demand(&a, &h);
			expect_words(&a, &h);
			free_host_cells(&h);
			free_additions(&a);
		}
}
END_TEST

/* Chosen sums at the ends of the words. */
START_TEST(test_word_ends)
{
	const struct cell_type *t = &cell_types[_i];
	const struct format *f = format_of(t->type);
	const int units[] = {t->least, t->usual, t->most};

	for (size_t k = 0; k < COUNT(units) * 2; k++) {
		const int unit = units[k / 2];
		const uint64_t largest = neighbour(f, scaled(f, 0, 1, unit + t->range), 0);
		const uint64_t sign = k % 2 ? format_minus(f) : 0;
		/* the end of the last word is at 2^top, and 2^top elements pass it twice */
		const uint64_t steps = (uint64_t)1 << (t->top - t->range + 2);
		struct host_cells h = make_host_cells(t, 1, unit, 1000);
		uint64_t demand;

		for (uint64_t i = 0; i < steps / 4; i++)
			ck_assert(cells_add(&h.view, LANE, 0, largest | sign));
		/* rounded down, so that the sum is still below the end */
		ck_assert_uint_eq(h.cursor->demand, 0);
		for (uint64_t i = steps / 4; i < steps; i++)
			ck_assert(cells_add(&h.view, (enum form)(i % FORMS), 0, largest | sign));
		demand = h.cursor->demand;
		ck_assert_uint_ge(demand, 1);
		ck_assert_uint_le(demand, 3);
		for (uint64_t i = 0; i < demand; i++) {
			ck_assert_uint_eq(h.items[i].cell, 0);
			ck_assert_uint_eq(h.items[i].bits,
					  scaled(format_of(CUA_F64), sign, 1, unit + t->top + 1));
		}
		ck_assert_uint_eq(cell_flags(t, h.cell, 0), CUA_EXACT_SPILLED);
		/* and back to zero */
		for (uint64_t i = 0; i < steps; i++)
			ck_assert(cells_add(&h.view, (enum form)(i % FORMS), 0,
					    largest | (sign ^ format_minus(f))));
		sum_begin();
		take_words(t, unit, h.cell, 0);
		for (uint64_t i = 0; i < h.cursor->demand; i++)
			sum_take(format_of(CUA_F64), h.items[i].bits);
		ck_assert(sum_is_zero());
		/* over the end and back by the least element: a pair of spills for each turn */
		free_host_cells(&h);
		h = make_host_cells(t, 1, unit, 1000);
		for (uint64_t i = 0; i < steps / 4; i++)
			ck_assert(cells_add(&h.view, LANE, 0, largest | sign));
		/* now the sum is 2^top - steps / 4 * 2^(range - digits) */
		for (int i = 0; i < 50; i++) {
			const uint64_t step = scaled(f, sign, steps, unit + t->range - t->digits);

			ck_assert(cells_add(&h.view, LANE, 0, step));
			ck_assert(cells_add(&h.view, LANE, 0, step ^ format_minus(f)));
		}
		ck_assert_uint_eq(h.cursor->demand, 100);
		sum_begin();
		take_words(t, unit, h.cell, 0);
		for (uint64_t i = 0; i < 100; i++)
			sum_take(format_of(CUA_F64), h.items[i].bits);
		for (uint64_t i = 0; i < steps / 4; i++)
			sum_take(f, largest | (sign ^ format_minus(f)));
		ck_assert(sum_is_zero());
		free_host_cells(&h);
	}
}
END_TEST

/* ---- additions by several threads ---- */

#define THREADS 4

struct adder {
	const struct cells *view;
	const struct additions *a;
	size_t first;
	size_t lost;
};

static void *adder_thread(void *arg)
{
	struct adder *me = (struct adder *)arg;

	for (size_t i = me->first; i < me->a->n; i += THREADS)
		me->lost +=
			!cells_add(me->view, (enum form)(i % 2), me->a->cell[i], element(me->a, i));
	return NULL;
}

static size_t add_by_threads(const struct cells *c, const struct additions *a)
{
	struct adder adders[THREADS];
	pthread_t threads[THREADS];
	size_t lost = 0;

	for (size_t k = 0; k < THREADS; k++) {
		const struct adder adder = {c, a, k, 0};

		adders[k] = adder;
		ck_assert_int_eq(pthread_create(&threads[k], NULL, adder_thread, &adders[k]), 0);
	}
	for (size_t k = 0; k < THREADS; k++) {
		ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
		lost += adders[k].lost;
	}
	return lost;
}

START_TEST(test_threads)
{
	const size_t n = test_scale(4000, 20000, 200000);
	const struct cell_type *t = &cell_types[_i];
	uint64_t seed = test_seed("test_threads");

	for (int kind = 0; kind < CELL_KINDS; kind++) {
		const uint64_t r = test_random(&seed);
		const struct additions a = make_additions(t, any_unit(t, r >> 32), kind, n,
							  1 + (uint32_t)(r % 3), &seed);
		const uint64_t room = room_for(&a);
		struct host_cells h = make_host_cells(t, a.cells, a.unit, room);

		ck_assert_uint_eq(add_by_threads(&h.view, &a), 0);
		expect_demand(&a, &h);
		/* the search of spills is quadratic */
		if (h.cursor->demand < 50000)
			expect_words(&a, &h);
		free_host_cells(&h);
		/* half of the room: the threads lose all other spills */
		h = make_host_cells(t, a.cells, a.unit, a.outside / 2);
		ck_assert_uint_eq(
			add_by_threads(&h.view, &a),
			h.cursor->demand > a.outside / 2 ? h.cursor->demand - a.outside / 2 : 0);
		expect_demand(&a, &h);
		free_host_cells(&h);
		free_additions(&a);
	}
}
END_TEST

/* ---- lost elements, and refused additions ---- */

static void expect_lost(const struct cells *c, const void *cell, int form, double x)
{
	const struct cell_type *t = c->type;
	const uint64_t bits = bits_of(format_of(t->type), x);

	ck_assert_int_eq(cells_add(c, (enum form)form, 2, bits), 0);
	ck_assert_uint_eq(cell_flags(t, cell, 2), CUA_EXACT_LOST);
}

/* Append buffers without room: none, a full one, other items, an unknown layout. */
START_TEST(test_no_room)
{
	const struct cell_type *t = &cell_types[_i];

	for (int form = 0; form < FORMS; form++)
		for (int way = 0; way < 4; way++) {
			struct host_cells h = make_host_cells(t, 4, t->usual, way == 0 ? 0 : 8);
			struct cua_append_view spills = h.spills;
			struct cells c;

			spills.item_size = way == 1 ? 8 : 16;
			spills.layout = CUA_APPEND_LAYOUT + (way == 2);
			c = cells_view(t, h.cell, 4, t->usual, way == 3 ? NULL : &spills);
			/* elements of the range, special elements and zeros need no room */
			ck_assert_int_eq(
				cells_add(&c, (enum form)form, 1, bits_of(format_of(t->type), 1)),
				1);
			ck_assert_int_eq(cells_add(&c, (enum form)form, 1,
						   bits_of(format_of(t->type), HUGE_VAL)),
					 1);
			ck_assert_int_eq(cells_add(&c, (enum form)form, 1,
						   bits_of(format_of(t->type), -0.0)),
					 1);
			ck_assert_uint_eq(cell_flags(t, h.cell, 1), CUA_EXACT_INFINITY);
			expect_lost(&c, h.cell, form, 0x1p-100 * ldexp(1, t->usual + 60));
			expect_lost(&c, h.cell, form, ldexp(1, t->usual + t->range));
			ck_assert_uint_eq(h.cursor->demand, way == 0 ? 2 : 0);
			ck_assert_uint_eq(cell_flags(t, h.cell, 0), 0);
			free_host_cells(&h);
		}
}
END_TEST

/* Additions to no cell, and by a view of an unknown layout, change nothing. */
START_TEST(test_refused_additions)
{
	const struct cell_type *t = &cell_types[_i];
	const struct format *f = format_of(t->type);
	const double values[] = {1, HUGE_VAL, 0x1p-126, 0, -0.0, (double)NAN};
	const uint64_t bad[] = {3, 4, UINT64_MAX, (uint64_t)1 << 32, (uint64_t)1 << 60};
	const struct host_cells h = make_host_cells(t, 4, t->usual, 8);
	struct host_cells part = make_host_cells(t, 1, t->usual, 8);
	char zeros[4 * 24] = {0};

	ck_assert(cells_add(&part.view, LANE, 0, bits_of(f, 5)));
	for (size_t k = 0; k < COUNT(values) * FORMS; k++) {
		const enum form form = (enum form)(k % FORMS);
		const uint64_t bits = bits_of(f, values[k / FORMS]);
		struct cells c = cells_view(t, h.cell, 3, t->usual, &h.spills);

		for (size_t i = 0; i < COUNT(bad); i++) {
			ck_assert_int_eq(cells_add(&c, form, bad[i], bits), 0);
			ck_assert_int_eq(t->type == CUA_F32
						 ? cua_exact_cell_merge_f32(&c.f32, bad[i],
									    part.view.f32.cell)
						 : cua_exact_cell_merge_f64(&c.f64, bad[i],
									    part.view.f64.cell),
					 0);
		}
		for (uint32_t layout = 0; layout < 4; layout += 2) {
			c.f32.layout = c.f64.layout = layout;
			ck_assert_int_eq(cells_add(&c, form, 0, bits), 0);
			ck_assert_int_eq(
				t->type == CUA_F32
					? cua_exact_cell_merge_f32(&c.f32, 0, part.view.f32.cell)
					: cua_exact_cell_merge_f64(&c.f64, 0, part.view.f64.cell),
				0);
		}
	}
	ck_assert_mem_eq(h.cell, zeros, 4 * t->size);
	ck_assert_uint_eq(h.cursor->demand, 0);
	free_host_cells(&h);
	free_host_cells(&part);
}
END_TEST

/* cua_exact_cell_unit: the number fits at this unit, and at no lesser unit. */
START_TEST(test_units)
{
	uint64_t seed = test_seed("test_units");

	for (int k = 0; k < 2; k++) {
		const struct cell_type *t = &cell_types[k];
		const struct format *f = format_of(t->type);

		for (int i = 0; i < 200000; i++) {
			const uint64_t bits = i % 2 ? random_finite(f, &seed)
						    : random_element(f, KIND_SUBNORMAL, 0, &seed);
			uint64_t m;
			int negative, power, high, unit;
			float s;
			double d;

			if (!model_split(f, bits, &negative, &m, &power) || !m)
				continue;
			d = float_of(f, bits);
			s = (float)d;
			unit = t->type == CUA_F32 ? cua_exact_cell_unit_f32(s)
						  : cua_exact_cell_unit_f64(d);
			high = power;
			for (uint64_t rest = m; rest; rest /= 2)
				high++;
			/* of normal numbers */
			high = high - t->range < t->least  ? t->least
			       : high - t->range > t->most ? t->most
							   : high - t->range;
			EXPECT(unit == high, "%a has the unit %d, not %d", d, unit, high);
		}
	}
	ck_assert_int_eq(cua_exact_cell_unit_f32(0), CUA_EXACT_CELL_UNIT_MIN_F32);
	ck_assert_int_eq(cua_exact_cell_unit_f64(-0.0), CUA_EXACT_CELL_UNIT_MIN_F64);
	ck_assert_int_eq(cua_exact_cell_unit_f32(0x1p-149f), CUA_EXACT_CELL_UNIT_MIN_F32);
	ck_assert_int_eq(cua_exact_cell_unit_f64(1.7976931348623157e308),
			 CUA_EXACT_CELL_UNIT_MAX_F64);
	ck_assert_int_eq(cua_exact_cell_unit_f32(1), 1 - 87);
	ck_assert_int_eq(cua_exact_cell_unit_f64(1), 1 - 165);
	/* a NaN and an infinity have some valid unit */
	ck_assert_int_le(cua_exact_cell_unit_f32(HUGE_VALF), CUA_EXACT_CELL_UNIT_MAX_F32);
	ck_assert_int_le(cua_exact_cell_unit_f64((double)NAN), CUA_EXACT_CELL_UNIT_MAX_F64);
}
END_TEST
#endif

/* ---- finish ---- */

/* Every result type, accumulating and overwriting. */
static void expect_finish(struct cua_context *ctx, const struct cells *view,
			  const struct additions *a, const uint8_t *lost, const char *what,
			  uint64_t *seed)
{
	for (size_t k = 0; k < 2 * COUNT(floats); k++) {
		const enum cua_type result = floats[k / 2];
		const int overwrite = (int)(k % 2);
		struct cua_exact_cells_options o = options_of(result, overwrite);
		void *old = make_old(a, result, seed), *got;
		void *expected = test_malloc(a->cells * cua_type_size(result));
		const int standard = result == a->type->type;

		/* the defaults */
		if (standard)
			o.result_type = CUA_NONE;
		got = finish_cells(ctx, view, standard && !overwrite ? NULL : &o, result, old,
				   CUA_OK);
		expected_results(a, lost, result, overwrite, old, expected);
		expect_results(a, what, result, overwrite, old, got, expected);
		free(old);
		free(expected);
		free(got);
	}
}

/* The bytes of backend memory. */
static void expect_bytes(struct cua_context *ctx, const void *p, const void *expected, size_t bytes,
			 const char *what)
{
	char *got = (char *)test_malloc(bytes);

	test_download(ctx, got, p, bytes);
	EXPECT(memcmp(got, expected, bytes) == 0, "finish changed the %s", what);
	free(got);
}

static struct additions random_additions(const struct cell_type *t, int kind, uint64_t *seed)
{
	static const size_t sizes[] = {0, 1, 2, 3, 40, 700, 3000};
	static const uint32_t counts[] = {1, 2, 3, 33, 400};
	const uint64_t r = test_random(seed);

	return make_additions(t, any_unit(t, r >> 32), kind, sizes[r % COUNT(sizes)],
			      counts[r / 64 % COUNT(counts)], seed);
}

/*
 * All kinds of elements. finish leaves the cells as they were, so it may be repeated, and additions
 * may go on.
 */
START_TEST(test_values)
{
	const int turns = test_traced() ? 1 : test_scale(1, 6, 60);
	const struct cell_type *t = &cell_types[_i];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_values");

	for (int k = 0; k < turns * CELL_KINDS; k++) {
		struct additions a = random_additions(t, k % CELL_KINDS, &seed);
		const struct host_cells h = make_host_cells(t, a.cells, a.unit, 2 * room_for(&a));
		struct additions half = a;
		struct backend_cells b;

		ck_assert_cua(cua_context_set_threads(ctx, 1 + (unsigned)k * 5 % 7));
		half.n = a.n / 2;
		add_all(&h.view, &half, FORMS);
		b = upload_cells(ctx, &h);
		expect_finish(ctx, &b.view, &half, NULL, "half of the elements", &seed);
		expect_bytes(ctx, b.cell, h.cell, a.cells * t->size, "cells");
		expect_bytes(ctx, b.items, h.items, h.cursor->demand * sizeof(*h.items), "spills");
		expect_bytes(ctx, b.cursor, h.cursor, sizeof(*h.cursor), "cursor");
		expect_finish(ctx, &b.view, &half, NULL, "again", &seed);
		free_backend_cells(ctx, &b);
		/* additions go on */
		for (size_t i = half.n; i < a.n; i++)
			ck_assert(cells_add(&h.view, LANE, a.cell[i], element(&a, i)));
		expect_demand(&a, &h);
		b = upload_cells(ctx, &h);
		expect_finish(ctx, &b.view, &a, NULL, "all elements", &seed);
		free_backend_cells(ctx, &b);
		free_host_cells(&h);
		free_additions(&a);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* The results of the additions to cells of another type, which hold the same elements. */
static void *results_of(struct cua_context *ctx, const struct cell_type *t, int unit,
			const struct additions *a, int form, enum cua_type result, const void *old)
{
	const struct cua_exact_cells_options o = options_of(result, 0);
	const struct host_cells h = make_host_cells(t, a->cells, unit, 2 * a->n + 1);
	const int widens = a->type != t;
	struct backend_cells b;
	void *got;

	for (size_t i = 0; i < a->n; i++) {
		uint64_t bits = element(a, i);

		if (widens)
			bits = bits_of(format_of(CUA_F64), float_of(format_of(CUA_F32), bits));
		ck_assert(cells_add(&h.view, (enum form)(form < FORMS ? form : (int)(i % FORMS)),
				    a->cell[i], bits));
	}
	b = upload_cells(ctx, &h);
	got = finish_cells(ctx, &b.view, &o, result, old, CUA_OK);
	free_backend_cells(ctx, &b);
	free_host_cells(&h);
	return got;
}

/* Orders, forms of addition, units, types of cells and backends lead to the same bits. */
START_TEST(test_same)
{
	const size_t n = test_traced() ? 300 : test_scale(1000, 4000, 50000);
	struct cua_context *ctx = test_context(TEST_BACKEND), *cpu = test_context(CUA_BACKEND_CPU);
	uint64_t seed = test_seed("test_same");

	for (int k = 0; k < 2 * CELL_KINDS; k++) {
		const struct cell_type *t = &cell_types[k % 2];
		const uint64_t r = test_random(&seed);
		const enum cua_type result = floats[r % COUNT(floats)];
		const struct additions a = make_additions(t, any_unit(t, r >> 32), k / 2, n,
							  1 + (uint32_t)(r / 8 % 50), &seed);
		void *old = make_old(&a, result, &seed);
		void *first = results_of(ctx, t, a.unit, &a, LANE, result, old), *got;

		for (int turn = 0; turn < 6; turn++) {
			const struct cell_type *other =
				turn == 5 && t->type == CUA_F32 ? &cell_types[1] : t;
			const int unit = turn < 2 ? a.unit : any_unit(other, test_random(&seed));

			if (turn)
				shuffle_additions(&a, &seed);
			got = results_of(turn % 2 ? cpu : ctx, other, unit, &a, turn % (FORMS + 1),
					 result, old);
			expect_results(&a, "another order, form and unit", result, 0, old, got,
				       first);
			free(got);
		}
		free(old);
		free(first);
		free_additions(&a);
	}
	cua_context_destroy(cpu);
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA
/* Cells in which threads add concurrently, and private cells that are merged, have the same bits. */
START_TEST(test_splits)
{
	const size_t n = test_scale(2000, 20000, 200000);
	const struct cell_type *t = &cell_types[_i];
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	uint64_t seed = test_seed("test_splits");

	for (int kind = 0; kind < CELL_KINDS; kind++) {
		const uint64_t r = test_random(&seed);
		const enum cua_type result = floats[r % COUNT(floats)];
		const struct cua_exact_cells_options o = options_of(result, 0);
		const struct additions a = make_additions(t, any_unit(t, r >> 32), kind, n,
							  1 + (uint32_t)(r / 8 % 6), &seed);
		void *old = make_old(&a, result, &seed);
		void *expected = test_malloc(a.cells * cua_type_size(result));

		expected_results(&a, NULL, result, 0, old, expected);
		for (int way = 0; way < 3; way++) {
			/* the host's cells are memory of the CPU backend */
			const struct host_cells h =
				make_host_cells(t, a.cells, a.unit, 2 * room_for(&a));
			void *got;

			if (way < 2)
				ck_assert_uint_eq(add_by_threads(&h.view, &a), 0);
			else
				add_private(&h.view, &a, 1 + (size_t)(r / 64 % 9));
			ck_assert_cua(cua_context_set_threads(ctx, 1 + (unsigned)(r / 512 % 4)));
			got = finish_cells(ctx, &h.view, &o, result, old, CUA_OK);
			expect_results(&a, way < 2 ? "by threads" : "merged", result, 0, old, got,
				       expected);
			free(got);
			free_host_cells(&h);
		}
		free(old);
		free(expected);
		free_additions(&a);
	}
	cua_context_destroy(ctx);
}
END_TEST
#endif

/* Each rule for sums. */
START_TEST(test_rules)
{
	const double inf = HUGE_VAL, nan = (double)NAN, huge = 1.7976931348623157e308;
	const struct {
		double x[4], old, added, alone;
	} rules[] = {
		{{0, 0, 0, 0}, -0.0, -0.0, 0},
		{{-0.0, -0.0, 0, 0}, 5, 5, 0},
		{{-0.0, 0, 0, 0}, -inf, -inf, 0},
		{{1, -1, 2, -2}, -0.0, -0.0, 0},
		{{1e300, -1e300, 0, 0}, -0.0, -0.0, 0},
		{{0x1p-1074, -0x1p-1074, 0, 0}, -5, -5, 0},
		{{1, 2, -3.5, -0.0}, 0.5, 0, -0.5},
		{{1e300, 0, 0, 0}, -1e300, 0, 1e300},
		{{1, 0, 0, 0}, inf, inf, 1},
		{{1, 0, 0, 0}, nan, nan, 1},
		{{inf, 1, 1, 1}, 1, inf, inf},
		{{inf, inf, 0x1p-1074, 1}, -inf, nan, inf},
		{{-inf, huge, huge, huge}, huge, -inf, -inf},
		{{inf, -inf, 1, 1}, 1, nan, nan},
		{{1, nan, -1, 0}, 1, nan, nan},
		{{-nan, 1e300, 0x1p-1074, 0}, 1, nan, nan},
		{{huge, huge, huge, -huge}, -huge, huge, inf},
		{{huge, huge, 0, 0}, -huge, huge, inf},
		{{0x1p970, 0, 0, 0}, huge, inf, 0x1p970},
		{{0x1p970, -0x1p-1074, 0, 0}, huge, huge, 0x1p970},
		{{0x1p-53, 0x1p-1074, 0, 0}, 1, 1 + 0x1p-52, 0x1p-53},
		{{0x1p-53, 0x1p-1074, -0x1p-1074, 0}, 1, 1, 0x1p-53},
		{{0x1p-53, -0x1p-1074, 0, 0}, 1 + 0x1p-52, 1 + 0x1p-52, 0x1p-53},
		{{1, 0x1p-53, 0, 0}, 0x1p-1074, 1 + 0x1p-52, 1},
		{{1, 0x1p-53, -0x1p-106, 0x1p-107}, 0, 1, 1},
		{{0x1p-1074, 0x1p-1074, 0x1p-1074, 0}, 0x1p-1074, 0x1p-1072, 0x3p-1074},
		{{0x1p1023, -0x1p1023, 0x1p-1074, 0}, 0x1p1023, 0x1p1023, 0x1p-1074},
	};
	static const int units[] = {CUA_EXACT_CELL_UNIT_F64, CUA_EXACT_CELL_UNIT_MIN_F64,
				    CUA_EXACT_CELL_UNIT_MAX_F64, -60, 800};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	double old[COUNT(rules)], *got;

	for (size_t k = 0; k < COUNT(units) * 2; k++) {
		const struct cua_exact_cells_options o = options_of(CUA_F64, (int)(k % 2));
		const struct host_cells h = make_host_cells(&cell_types[1], COUNT(rules),
							    units[k / 2], 4 * COUNT(rules));
		struct backend_cells b;

		for (size_t i = 0; i < 4 * COUNT(rules); i++) {
			const size_t rule = i * 7 % COUNT(rules);

			old[rule] = rules[rule].old;
			ck_assert(cua_exact_cell_add_f64(&h.view.f64, rule,
							 rules[rule].x[i / COUNT(rules)]));
		}
		b = upload_cells(ctx, &h);
		got = (double *)finish_cells(ctx, &b.view, &o, CUA_F64, old, CUA_OK);
		for (size_t i = 0; i < COUNT(rules); i++) {
			const double expected = o.overwrite ? rules[i].alone : rules[i].added;

			EXPECT(isnan(expected) ? isnan(got[i]) != 0
					       : got[i] == expected &&
							 !signbit(got[i]) == !signbit(expected),
			       "rule %zu, unit %d, overwrite %d: %a, not %a", i, units[k / 2],
			       o.overwrite, got[i], expected);
		}
		free(got);
		free_backend_cells(ctx, &b);
		free_host_cells(&h);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- lost elements ---- */

/* A finish with each place for the count. */
static void expect_lost_cells(struct cua_context *ctx, const struct cells *view,
			      const struct additions *a, const uint8_t *lost, uint64_t *seed)
{
	uint64_t expected = 0, count = 77;
	uint64_t *there = (uint64_t *)test_alloc(ctx, sizeof(*there));

	for (uint32_t c = 0; c < a->cells; c++)
		expected += lost[c];
	for (int place = 0; place < 3; place++) {
		const enum cua_type result = floats[test_random(seed) % COUNT(floats)];
		struct cua_exact_cells_options o = options_of(result, place % 2);
		void *old = make_old(a, result, seed), *got;
		void *results = test_malloc(a->cells * cua_type_size(result));
		const int known = place == 1 || (place == 2 && TEST_BACKEND == CUA_BACKEND_CPU);

		count = 77;
		o.lost = place == 0 ? NULL : place == 1 ? &count : there;
		got = finish_cells(ctx, view, &o, result, old,
				   known && expected ? CUA_ERROR_FULL : CUA_OK);
		if (place == 2)
			test_download(ctx, &count, there, sizeof(count));
		ck_assert_uint_eq(count, place ? expected : 77);
		expected_results(a, lost, result, o.overwrite, old, results);
		expect_results(a, "lost elements", result, o.overwrite, old, got, results);
		free(old);
		free(results);
		free(got);
	}
	test_free(ctx, there);
}

/* Too little room: the demand is as large as with enough room, and exactly the marked cells are NaN. */
START_TEST(test_lost)
{
	const struct cell_type *t = &cell_types[_i];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_lost");

	for (int k = 0; k < 4 * CELL_KINDS; k++) {
		struct additions a = random_additions(t, k % CELL_KINDS, &seed);
		const uint64_t room = room_for(&a);
		const struct host_cells all = make_host_cells(t, a.cells, a.unit, room);
		uint64_t refused = 0, some;
		uint8_t *lost = (uint8_t *)test_malloc(a.cells);
		struct host_cells h;
		struct backend_cells b;
		int with; /* an append buffer */

		memset(lost, 0, a.cells);
		add_all(&all.view, &a, LANE);
		some = all.cursor->demand;
		h = make_host_cells(t, a.cells, a.unit,
				    k < CELL_KINDS       ? some / 2
				    : k < 2 * CELL_KINDS ? 0
				    : k < 3 * CELL_KINDS ? some - (some > 0)
							 : some);
		if (k < 2 * CELL_KINDS && k % 2)
			/* no append buffer at all */
			h.view = cells_view(t, h.cell, a.cells, a.unit, NULL);
		for (size_t i = 0; i < a.n; i++)
			if (!cells_add(&h.view, (enum form)(i % FORMS), a.cell[i],
				       element(&a, i))) {
				lost[a.cell[i]] = 1;
				refused++;
			}
		with = t->type == CUA_F32 ? h.view.f32.spills.cursor != NULL
					  : h.view.f64.spills.cursor != NULL;
		if (with) {
			ck_assert_uint_eq(h.cursor->demand, some);
			/* a sum may spill in addition to an element that is stored */
			ck_assert_uint_eq(refused, some - h.spills.capacity);
		}
		b = upload_cells(ctx, &h);
		if (!with) {
			b.view.f32.spills = h.view.f32.spills;
			b.view.f64.spills = h.view.f64.spills;
		}
		expect_lost_cells(ctx, &b.view, &a, lost, &seed);
		expect_bytes(ctx, b.cell, h.cell, a.cells * t->size, "cells");
		free_backend_cells(ctx, &b);
		free_host_cells(&h);
		free_host_cells(&all);
		free(lost);
		free_additions(&a);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- many spills ---- */

/* Many cells with spills, more than a round of finish has; and a cell with most of the spills. */
START_TEST(test_many_spills)
{
	const uint32_t cells = (uint32_t)test_scale(70000, 150000, 1100000);
	const struct cell_type *t = &cell_types[_i];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_many_spills");

	for (int hot = 0; hot < 2; hot++) {
		const enum cua_type result = hot ? CUA_F64 : t->type;
		const struct cua_exact_cells_options o = options_of(result, hot);
		struct additions a =
			make_additions(t, t->usual, KIND_WIDE, 2 * (size_t)cells, cells, &seed);
		struct host_cells h;
		struct backend_cells b;
		void *old, *got, *expected;

		/* every cell, or a single cell; and sums that look like numbers of cells */
		for (size_t i = 0; i < a.n; i++) {
			a.cell[i] = (uint32_t)(hot && i % 64 ? cells / 2 : i % cells);
			if (i >= cells)
				store_bits(t->type, a.x, i,
					   scaled(format_of(t->type), 0,
						  test_random(&seed) % (2 * (uint64_t)cells),
						  a.unit));
		}
		set_unit(&a, a.unit);
		shuffle_additions(&a, &seed);
		/* the room decides on the size of a round */
		h = make_host_cells(t, cells, a.unit, hot ? room_for(&a) : 2 * a.n);
		add_all(&h.view, &a, FORMS);
		expect_demand(&a, &h);
		old = make_old(&a, result, &seed);
		expected = test_malloc(cells * cua_type_size(result));
		b = upload_cells(ctx, &h);
		ck_assert_cua(cua_context_set_threads(ctx, hot ? 4 : 2));
		got = finish_cells(ctx, &b.view, &o, result, old, CUA_OK);
		expected_results(&a, NULL, result, o.overwrite, old, expected);
		expect_results(&a, hot ? "a hot cell" : "many spilled cells", result, o.overwrite,
			       old, got, expected);
		expect_bytes(ctx, b.cell, h.cell, cells * t->size, "cells");
		free(old);
		free(got);
		free(expected);
		free_backend_cells(ctx, &b);
		free_host_cells(&h);
		free_additions(&a);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- ranges ---- */

/* The fit, from the units that hold each element. */
static struct cua_exact_fit expected_fit(const struct cell_type *t, size_t n, const void *x)
{
	const struct format *f = format_of(t->type);
	const int units = t->most - t->least + 1;
	int64_t *begin = (int64_t *)test_malloc((size_t)(units + 1) * sizeof(*begin)), best = 0;
	struct cua_exact_fit fit = {t->usual, 0, 0};
	uint64_t all = 0, now = 0;

	memset(begin, 0, (size_t)(units + 1) * sizeof(*begin));
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = load_bits(t->type, x, i), m;
		int negative, power, first, last;

		if (model_is_nan(f, bits))
			fit.flags |= CUA_EXACT_NAN;
		else if (!model_split(f, bits, &negative, &m, &power))
			fit.flags |= negative ? CUA_EXACT_NEGATIVE_INFINITY : CUA_EXACT_INFINITY;
		if (!model_split(f, bits, &negative, &m, &power) || !m)
			continue;
		all++;
		for (; m % 2 == 0; m /= 2)
			power++;
		last = power < t->most ? power : t->most;
		for (; m; m /= 2)
			power++;
		first = power - t->range > t->least ? power - t->range : t->least;
		if (first <= last) {
			begin[first - t->least]++;
			begin[last - t->least + 1]--;
		}
	}
	for (int u = 0; u < units && all; u++) {
		now += (uint64_t)begin[u];
		if ((int64_t)now >= best) {
			best = (int64_t)now;
			fit.unit = t->least + u;
		}
	}
	fit.outside = all - (uint64_t)best;
	free(begin);
	return fit;
}

static void expect_range(struct cua_context *ctx, const struct cell_type *t, size_t n,
			 const void *x, const char *what)
{
	const struct cua_exact_fit expected = expected_fit(t, n, x);
	struct cua_exact_fit got, *there = (struct cua_exact_fit *)test_alloc(ctx, sizeof(*there));
	void *array = test_upload(ctx, x, n * cua_type_size(t->type));

	for (int place = 0; place < 2; place++) {
		memset(&got, 0x5a, sizeof(got));
		ck_assert_cua(cua_exact_range(ctx, t->type, n, array, place ? there : &got));
		if (place)
			test_download(ctx, &got, there, sizeof(got));
		EXPECT(memcmp(&got, &expected, sizeof(got)) == 0,
		       "%zu %s, %s: unit %d, flags %u, outside %llu; not %d, %u, %llu", n,
		       cua_type_name(t->type), what, got.unit, got.flags,
		       (unsigned long long)got.outside, expected.unit, expected.flags,
		       (unsigned long long)expected.outside);
	}
	test_free(ctx, array);
	test_free(ctx, there);
}

/* Arrays of every kind; cells with the unit spill as many elements as the call found. */
START_TEST(test_range)
{
	static const size_t sizes[] = {0, 1, 2, 3, 100, 5000};
	const size_t large = test_traced() ? 5000 : (size_t)test_scale(100000, 3000001, 20000003);
	const struct cell_type *t = &cell_types[_i];
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_range");

	for (int kind = 0; kind < CELL_KINDS; kind++)
		for (size_t k = 0; k < COUNT(sizes); k++) {
			struct additions a = make_additions(t, any_unit(t, test_random(&seed)),
							    kind, sizes[k], 3, &seed);
			struct host_cells h;

			expect_range(ctx, t, a.n, a.x, cell_kind_name(kind));
			set_unit(&a, expected_fit(t, a.n, a.x).unit);
			ck_assert_uint_eq(a.outside, expected_fit(t, a.n, a.x).outside);
			h = make_host_cells(t, a.cells, a.unit, room_for(&a));
			add_all(&h.view, &a, FORMS);
			expect_demand(&a, &h);
			free_host_cells(&h);
			free_additions(&a);
		}
	ck_assert_cua(cua_context_set_threads(ctx, 3));
	for (int k = 0; k < 2; k++) {
		const struct additions a = make_additions(
			t, t->usual, k ? KIND_OUTLIER : CELL_NORMAL, large, 1, &seed);

		expect_range(ctx, t, large, a.x, cell_kind_name(a.kind));
		free_additions(&a);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Chosen arrays. */
START_TEST(test_chosen_ranges)
{
	static const struct {
		double x[5];
		int unit[2];
		uint32_t flags;
		uint64_t outside[2];
	} arrays[] = {
		{{0, -0.0, 0, 0, 0}, {CUA_EXACT_CELL_UNIT_F32, CUA_EXACT_CELL_UNIT_F64}, 0, {0, 0}},
		{{0, 1, 2, -3, 1000}, {0, 0}, 0, {0, 0}},
		{{0, 8, 24, -40, 1000}, {3, 3}, 0, {0, 0}},
		{{0.5, 8, 24, -40, 1000}, {-1, -1}, 0, {0, 0}},
		{{1, 1, 1, 1, 0x1p-120}, {0, -120}, 0, {1, 0}},
		{{1, 0x1p-86, 1, 1, 1}, {-86, -86}, 0, {0, 0}},
		{{1, 0x1p-87, 1, 1, 1}, {0, -87}, 0, {1, 0}},
		{{0x1p-149, 0x1p-149, 0, 0, 1}, {-149, -149}, 0, {1, 0}},
		{{0x1p127, 0x1p127, -0x1p127, 0x1p127, 0x1p127}, {41, 127}, 0, {0, 0}},
		{{1, HUGE_VAL, 2, 3, 4}, {0, 0}, CUA_EXACT_INFINITY, {0, 0}},
		{{1, HUGE_VAL, -HUGE_VAL, NAN, -NAN},
		 {0, 0},
		 CUA_EXACT_NAN | CUA_EXACT_INFINITY | CUA_EXACT_NEGATIVE_INFINITY,
		 {0, 0}},
		{{0, NAN, 0, 0, 0},
		 {CUA_EXACT_CELL_UNIT_F32, CUA_EXACT_CELL_UNIT_F64},
		 CUA_EXACT_NAN,
		 {0, 0}},
	};
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (size_t k = 0; k < 2 * COUNT(arrays); k++) {
		const struct cell_type *t = &cell_types[k % 2];
		struct cua_exact_fit fit;
		double x[5];
		void *array;

		for (size_t i = 0; i < 5; i++)
			store_bits(t->type, x, i, bits_of(format_of(t->type), arrays[k / 2].x[i]));
		array = test_upload(ctx, x, sizeof(x));
		ck_assert_cua(cua_exact_range(ctx, t->type, 5, array, &fit));
		EXPECT(fit.unit == arrays[k / 2].unit[k % 2] && fit.flags == arrays[k / 2].flags &&
			       fit.outside == arrays[k / 2].outside[k % 2],
		       "array %zu as %s: unit %d, flags %u, outside %llu", k / 2,
		       cua_type_name(t->type), fit.unit, fit.flags,
		       (unsigned long long)fit.outside);
		expect_range(ctx, t, 5, x, "chosen");
		test_free(ctx, array);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- calls without cells or elements ---- */

START_TEST(test_empty)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_exact_cells_options o = CUA_EXACT_CELLS_OPTIONS_INIT;
	struct cua_exact_fit fit = {77, 77, 77};
	uint64_t lost = 77;

	o.lost = &lost;
	for (int k = 0; k < 4; k++) {
		const struct cell_type *t = &cell_types[k % 2];
		const struct cells none = cells_view(t, NULL, 0, t->usual, NULL);
		const struct host_cells h = make_host_cells(t, 3, t->usual, (uint64_t)k / 2);
		const double poison[3] = {7, 7, 7};
		double *out = (double *)test_upload(ctx, poison, sizeof(poison)), got[3];
		struct backend_cells b = upload_cells(ctx, &h);
		struct cells empty = b.view;

		o.overwrite = k / 2;
		ck_assert_cua(cells_finish(ctx, NULL, &none, NULL));
		ck_assert_cua(cells_finish(ctx, &o, &none, NULL));
		ck_assert_uint_eq(lost, 0);
		/* arrays, but no cells */
		lost = 77;
		empty.f32.cells = empty.f64.cells = 0;
		ck_assert_cua(cells_finish(ctx, &o, &empty, out));
		ck_assert_uint_eq(lost, 0);
		test_download(ctx, got, out, sizeof(got));
		ck_assert_mem_eq(got, poison, sizeof(got));
		/* cells without additions */
		lost = 77;
		o.result_type = CUA_F64;
		ck_assert_cua(cells_finish(ctx, &o, &b.view, out));
		o.result_type = CUA_NONE;
		ck_assert_uint_eq(lost, 0);
		test_download(ctx, got, out, sizeof(got));
		for (int i = 0; i < 3; i++)
			ck_assert(got[i] == (o.overwrite ? 0 : 7));
		test_free(ctx, out);
		free_backend_cells(ctx, &b);
		free_host_cells(&h);
		ck_assert_cua(cua_exact_range(ctx, t->type, 0, NULL, &fit));
		ck_assert(fit.unit == t->usual && fit.flags == 0 && fit.outside == 0);
		lost = 77;
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- arguments ---- */

/* Good arguments. Each refused call differs from them in a single argument. */
struct arguments {
	struct cua_context *ctx;
	struct cells view;
	struct cua_exact_cells_options o;
	char *out;
};

static enum cua_status finish_with(const struct arguments *a)
{
	return cells_finish(a->ctx, &a->o, &a->view, a->out);
}

/* A field of the options or of the arguments, and a field of both views. */
#define REFUSED(expected, field, value)                                                            \
	do {                                                                                       \
		struct arguments one = *good;                                                      \
                                                                                                   \
		one.field = (value);                                                               \
		ck_assert_status(finish_with(&one), expected);                                     \
	} while (0)
#define REFUSED_VIEW(expected, field, value)                                                       \
	do {                                                                                       \
		struct arguments one = *good;                                                      \
                                                                                                   \
		one.view.f32.field = (value);                                                      \
		one.view.f64.field = (value);                                                      \
		ck_assert_status(finish_with(&one), expected);                                     \
	} while (0)

/* An address inside an array of the view. */
#define INTO(field, bytes) ((void *)((char *)(void *)good->view.f32.field + (bytes)))

static void refused_views(const struct arguments *good)
{
	const struct cell_type *t = good->view.type;

	REFUSED_VIEW(CUA_ERROR_LAYOUT, layout, 0);
	REFUSED_VIEW(CUA_ERROR_LAYOUT, layout, CUA_EXACT_CELLS_LAYOUT + 1);
	REFUSED_VIEW(CUA_ERROR_LAYOUT, spills.layout, 0);
	REFUSED_VIEW(CUA_ERROR_LAYOUT, spills.layout, CUA_APPEND_LAYOUT + 1);
	REFUSED_VIEW(CUA_ERROR_VALUE, unit, t->least - 1);
	REFUSED_VIEW(CUA_ERROR_VALUE, unit, t->most + 1);
	REFUSED_VIEW(CUA_ERROR_VALUE, unit, INT32_MIN);
	REFUSED_VIEW(CUA_ERROR_VALUE, unit, INT32_MAX);
	REFUSED_VIEW(CUA_ERROR_VALUE, spills.item_size, 0);
	REFUSED_VIEW(CUA_ERROR_VALUE, spills.item_size, 8);
	REFUSED_VIEW(CUA_ERROR_VALUE, spills.item_size, 32);
	REFUSED_VIEW(CUA_ERROR_SIZE, cells, UINT64_MAX);
	REFUSED_VIEW(CUA_ERROR_SIZE, cells, UINT64_MAX / 16);
	REFUSED_VIEW(CUA_ERROR_SIZE, spills.capacity, UINT64_MAX);
	REFUSED_VIEW(CUA_ERROR_SIZE, spills.capacity, UINT64_MAX / 8);
	REFUSED_VIEW(CUA_ERROR_NULL, cell, NULL);
	REFUSED_VIEW(CUA_ERROR_NULL, spills.items, NULL);
	REFUSED_VIEW(CUA_ERROR_ALIGNMENT, cell, INTO(cell, 4));
	REFUSED_VIEW(CUA_ERROR_ALIGNMENT, spills.items, INTO(spills.items, 4));
	REFUSED_VIEW(CUA_ERROR_ALIGNMENT, spills.cursor, INTO(spills.cursor, 4));
}

static void refused_arrays(const struct arguments *good)
{
	const size_t size = cua_type_size(good->view.type->type);

	REFUSED(CUA_ERROR_NULL, ctx, NULL);
	REFUSED(CUA_ERROR_NULL, out, NULL);
	REFUSED(CUA_ERROR_ALIGNMENT, out, good->out + size / 2);
	REFUSED(CUA_ERROR_ALIGNMENT, o.lost, (uint64_t *)(void *)(good->out + 100));
	REFUSED(CUA_ERROR_OVERLAP, out, INTO(cell, 0));
	REFUSED(CUA_ERROR_OVERLAP, out, INTO(cell, 4 * good->view.type->size - 8));
	REFUSED(CUA_ERROR_OVERLAP, out, INTO(spills.items, 16));
	REFUSED(CUA_ERROR_OVERLAP, out, INTO(spills.cursor, 0));
	REFUSED(CUA_ERROR_OVERLAP, o.lost, (uint64_t *)(void *)(good->out + 8));
	REFUSED(CUA_ERROR_OVERLAP, o.lost, INTO(cell, 16));
	REFUSED(CUA_ERROR_OVERLAP, o.lost, INTO(spills.items, 8));
	REFUSED(CUA_ERROR_OVERLAP, o.lost, INTO(spills.cursor, 0));
	ck_assert_status(cua_exact_cells_finish_f32(good->ctx, NULL, NULL, good->out),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_exact_cells_finish_f64(good->ctx, NULL, NULL, good->out),
			 CUA_ERROR_NULL);
}

static void refused_options(const struct arguments *good)
{
	static const size_t sizes[] = {0, sizeof(size_t),
				       sizeof(struct cua_exact_cells_options) - 8,
				       sizeof(struct cua_exact_cells_options) + 1, SIZE_MAX};
	static const int types[] = {-1, CUA_I8, CUA_I32, CUA_U64, CUA_U128, CUA_COMPLEX_F32, 9, 99};

	for (size_t i = 0; i < COUNT(sizes); i++)
		REFUSED(CUA_ERROR_VALUE, o.struct_size, sizes[i]);
	REFUSED(CUA_ERROR_VALUE, o.overwrite, 2);
	REFUSED(CUA_ERROR_VALUE, o.overwrite, -1);
	for (size_t i = 0; i < COUNT(types); i++)
		REFUSED(CUA_ERROR_TYPE, o.result_type, (enum cua_type)types[i]);
}

#define REFUSED_RANGE(expected, ...)                                                               \
	do {                                                                                       \
		ck_assert_status(cua_exact_range(__VA_ARGS__), expected);                          \
		ck_assert(fit.unit == 77 && fit.flags == 77 && fit.outside == 77);                 \
	} while (0)

static void refused_ranges(struct cua_context *ctx, double *x)
{
	static const int types[] = {-1, CUA_NONE, CUA_I32, CUA_F16, CUA_BF16, CUA_COMPLEX_F64, 99};
	struct cua_exact_fit fit = {77, 77, 77};

	REFUSED_RANGE(CUA_ERROR_NULL, NULL, CUA_F64, 4, x, &fit);
	REFUSED_RANGE(CUA_ERROR_NULL, ctx, CUA_F64, 4, NULL, &fit);
	REFUSED_RANGE(CUA_ERROR_NULL, ctx, CUA_F64, 4, x, NULL);
	REFUSED_RANGE(CUA_ERROR_NULL, ctx, CUA_F64, 0, NULL, NULL);
	for (size_t i = 0; i < COUNT(types); i++)
		REFUSED_RANGE(CUA_ERROR_TYPE, ctx, (enum cua_type)types[i], 4, x, &fit);
	REFUSED_RANGE(CUA_ERROR_SIZE, ctx, CUA_F64, SIZE_MAX / 8, x, &fit);
	REFUSED_RANGE(CUA_ERROR_SIZE, ctx, CUA_F32, SIZE_MAX, x, &fit);
	REFUSED_RANGE(CUA_ERROR_ALIGNMENT, ctx, CUA_F64, 3, (char *)x + 4, &fit);
	REFUSED_RANGE(CUA_ERROR_ALIGNMENT, ctx, CUA_F32, 3, (char *)x + 2, &fit);
	REFUSED_RANGE(CUA_ERROR_ALIGNMENT, ctx, CUA_F64, 1, x + 3,
		      (struct cua_exact_fit *)(void *)((char *)x + 4));
	REFUSED_RANGE(CUA_ERROR_OVERLAP, ctx, CUA_F64, 4, x,
		      (struct cua_exact_fit *)(void *)(x + 2));
}

#if TEST_CUDA
/* Memory that only the device can access, in calls of the CPU backend. */
static void refused_memory(const struct arguments *args, const struct host_cells *h, double *x)
{
	struct cua_context *cpu = test_context(CUA_BACKEND_CPU);
	struct cua_exact_fit fit = {77, 77, 77};
	struct arguments host = *args, *good = &host;
	double out[8];

	host.ctx = cpu;
	host.view = h->view;
	host.out = (char *)out;
	ck_assert_cua(finish_with(good));
	REFUSED(CUA_ERROR_MEMORY_KIND, out, (char *)x);
	REFUSED(CUA_ERROR_MEMORY_KIND, o.lost, (uint64_t *)(void *)x);
	REFUSED_VIEW(CUA_ERROR_MEMORY_KIND, cell, (void *)x);
	REFUSED_VIEW(CUA_ERROR_MEMORY_KIND, spills.items, x);
	REFUSED_VIEW(CUA_ERROR_MEMORY_KIND, spills.cursor, (void *)x);
	REFUSED_RANGE(CUA_ERROR_MEMORY_KIND, cpu, CUA_F64, 4, x, &fit);
	cua_context_destroy(cpu);
}
#endif

START_TEST(test_arguments)
{
	const struct cell_type *t = &cell_types[_i];
	const struct format *f = format_of(t->type);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const double host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct host_cells h = make_host_cells(t, 4, t->usual, 4);
	char poison[128], got[128];
	double *x = (double *)test_upload(ctx, host, sizeof(host));
	struct backend_cells b;
	struct arguments a;
	uint64_t lost = 77;

	ck_assert(cells_add(&h.view, LANE, 1, bits_of(f, 5)));
	ck_assert(cells_add(&h.view, LANE, 2, bits_of(f, 0x1p120)));
	b = upload_cells(ctx, &h);
	memset(poison, 0xa5, sizeof(poison));
	a.ctx = ctx;
	a.view = b.view;
	a.o = options_of(CUA_NONE, 0);
	a.out = (char *)test_alloc(ctx, sizeof(poison));
	refused_views(&a);
	refused_arrays(&a);
	refused_options(&a);
	refused_ranges(ctx, x);
#if TEST_CUDA
	refused_memory(&a, &h, x);
#endif
	test_download(ctx, got, a.out, sizeof(got));
	ck_assert_mem_eq(got, poison, sizeof(got));
	expect_bytes(ctx, b.cell, h.cell, 4 * t->size, "cells");
	/* the good arguments */
	a.o.overwrite = 1;
	a.o.lost = &lost;
	ck_assert_cua(finish_with(&a));
	ck_assert_uint_eq(lost, 0);
	test_download(ctx, got, a.out, sizeof(got));
	ck_assert(load_bits(t->type, got, 0) == 0);
	ck_assert(load_bits(t->type, got, 1) == bits_of(f, 5));
	ck_assert(load_bits(t->type, got, 2) == bits_of(f, 0x1p120));
	ck_assert_mem_eq(got + 4 * cua_type_size(t->type), poison, 64);
	test_free(ctx, a.out);
	test_free(ctx, x);
	free_backend_cells(ctx, &b);
	free_host_cells(&h);
	cua_context_destroy(ctx);
}
END_TEST

#if TEST_CUDA
/* ---- graphs ---- */

/* A captured range and a captured finish; the graph runs three times, with other input each time. */
START_TEST(test_captured)
{
	enum { N = 5000, CELLS = 100 };
	const struct cell_type *t = &cell_types[_i];
	const size_t size = cua_type_size(t->type);
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t seed = test_seed("test_captured"), host_lost = 77, count;
	struct cua_exact_cells_options o = options_of(CUA_NONE, 0);
	struct host_cells h = make_host_cells(t, CELLS, t->usual, N / 2);
	struct backend_cells b = upload_cells(ctx, &h);
	struct cua_exact_fit host_fit, *fit, got_fit;
	void *x = test_alloc(ctx, N * size), *out = test_alloc(ctx, CELLS * size);
	char got[CELLS * 8], expected[CELLS * 8];
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	fit = (struct cua_exact_fit *)test_alloc(ctx, sizeof(*fit));
	o.lost = (uint64_t *)test_alloc(ctx, sizeof(*o.lost));
	ck_assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)stream));
	/* a first call of each may enlarge the workspace */
	ck_assert_cua(cua_exact_range(ctx, t->type, N, x, fit));
	ck_assert_cua(cells_finish(ctx, &o, &b.view, out));
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	ck_assert_cua(cua_exact_range(ctx, t->type, N, x, fit));
	ck_assert_cua(cells_finish(ctx, &o, &b.view, out));
	/* results in ordinary memory would have to wait */
	ck_assert_status(cua_exact_range(ctx, t->type, N, x, &host_fit), CUA_ERROR_CAPTURE);
	{
		struct cua_exact_cells_options waits = o;

		waits.lost = &host_lost;
		ck_assert_status(cells_finish(ctx, &waits, &b.view, out), CUA_ERROR_CAPTURE);
	}
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int turn = 0; turn < 3; turn++) {
		const struct additions a = make_additions(
			t, t->usual, turn == 1 ? KIND_WIDE : KIND_OUTLIER, N, CELLS, &seed);
		void *old = make_old(&a, t->type, &seed);
		uint8_t lost[CELLS] = {0};
		uint64_t lost_cells = 0;
		struct cua_exact_fit expected_range;

		free_host_cells(&h);
		h = make_host_cells(t, CELLS, t->usual, N / 2);
		for (size_t i = 0; i < N; i++)
			if (!cells_add(&h.view, LANE, a.cell[i], element(&a, i)))
				lost[a.cell[i]] = 1;
		for (int i = 0; i < CELLS; i++)
			lost_cells += lost[i];
		ck_assert_cua(cua_copy(ctx, b.cell, h.cell, CELLS * t->size));
		ck_assert_cua(cua_copy(ctx, b.items, h.items, N / 2 * sizeof(*h.items)));
		ck_assert_cua(cua_copy(ctx, b.cursor, h.cursor, sizeof(*h.cursor)));
		ck_assert_cua(cua_copy(ctx, x, a.x, N * size));
		ck_assert_cua(cua_copy(ctx, out, old, CELLS * size));
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
		test_download(ctx, got, out, CELLS * size);
		test_download(ctx, &count, o.lost, sizeof(count));
		test_download(ctx, &got_fit, fit, sizeof(got_fit));
		expected_results(&a, lost, t->type, 0, old, expected);
		expect_results(&a, "a graph", t->type, 0, old, got, expected);
		ck_assert_uint_eq(count, lost_cells);
		expected_range = expected_fit(t, N, a.x);
		ck_assert_mem_eq(&got_fit, &expected_range, sizeof(got_fit));
		free(old);
		free_additions(&a);
	}
	ck_assert_uint_eq(host_lost, 77);
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
	test_free(ctx, x);
	test_free(ctx, out);
	test_free(ctx, fit);
	test_free(ctx, o.lost);
	free_backend_cells(ctx, &b);
	free_host_cells(&h);
	cua_context_destroy(ctx);
	ck_assert_cuda(cudaStreamDestroy(stream));
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("exact_cell");
	TCase *tc = tcase_create("exact_cell");

	tcase_set_timeout(tc, 240);
#if !TEST_CUDA
	tcase_add_loop_test(tc, test_words, 0, 2);
	tcase_add_loop_test(tc, test_merges, 0, 2);
	tcase_add_loop_test(tc, test_word_ends, 0, 2);
	tcase_add_loop_test(tc, test_threads, 0, 2);
	tcase_add_loop_test(tc, test_no_room, 0, 2);
	tcase_add_loop_test(tc, test_refused_additions, 0, 2);
	tcase_add_test(tc, test_units);
	tcase_add_loop_test(tc, test_splits, 0, 2);
#endif
#if TEST_CUDA
	tcase_add_loop_test(tc, test_captured, 0, 2);
#endif
	tcase_add_loop_test(tc, test_arguments, 0, 2);
	tcase_add_test(tc, test_empty);
	tcase_add_test(tc, test_rules);
	tcase_add_loop_test(tc, test_values, 0, 2);
	tcase_add_test(tc, test_same);
	tcase_add_loop_test(tc, test_lost, 0, 2);
	tcase_add_loop_test(tc, test_many_spills, 0, 2);
	tcase_add_loop_test(tc, test_range, 0, 2);
	tcase_add_test(tc, test_chosen_ranges);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
