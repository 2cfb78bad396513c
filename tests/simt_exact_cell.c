/* SPDX-License-Identifier: MIT */
/*
 * Exact cells: concurrent additions and merges, then the phases of a finish as kernels. After the
 * additions, the words of each cell and its spills must have the sum of struct cua_exact. After the
 * finish, so must the results, and the words must be as before.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/kernels/exact_cell_kernel.h"

#include "exact_elements.h"
#include "simt_suites.h"

enum {
	MOST = 1024, /* elements */
	MOST_CELLS = 24,
	MOST_ROOM = 1024, /* spills */
	MOST_WORDS = MOST_CELLS * CUA__EXACT_CELL_WORDS_f64,
	GLOBAL_ONLY = 1 /* the first cells of the array, without private cells */
};

/* BY_BLOCK: most cells have private cells in each block, which are merged. */
enum form { BY_LANE, BY_WARP, BY_BLOCK };
/*
 * INSIDE elements are in the range. MIXED elements have lower bits that are zeros, and zeros, too. WILD
 * elements are often outside the range. SPECIAL elements are WILD, or NaN and infinities. LOW elements
 * are added to word 0 alone. COUNTS are small multiples of the unit, or outside the range, so that
 * word 0 becomes a small number.
 */
enum elements { INSIDE, LOW, COUNTS, MIXED, WILD, SPECIAL };
/* TURNS: neighbours have different cells. PAIRS: two neighbours have the same. */
enum targets { ANY, ONE, TURNS, PAIRS };
/* NO_BUFFER: the view has no spills. NO_FIT: the items of the buffer have another size. */
enum { NO_BUFFER = -1, NO_FIT = -2 };

/* 0 stands for the most frequent value. */
struct shape {
	enum cua_type type, result;
	int unit;
	enum form form;
	enum elements elements;
	enum targets targets;
	unsigned cells, each; /* elements of a lane */
	int room;
	int near_ends; /* 1: words begin near the ends of the integers; 2: only the last word does not */
	int overwrite;
	unsigned round_slots; /* 0: as planned */
	unsigned blocks, lanes;
};

static struct shape shape;
static unsigned elements, words, span, top, bits_of_word;
static struct {
	uint64_t cell, bits; /* of the cells' type */
	int outside;
	int stored; /* 1: the addition returned 1 */
} element[MOST];

static uint64_t cell[MOST_WORDS] __attribute__((aligned(16)));
static uint64_t start[MOST_WORDS], own_start[MOST_WORDS], added[MOST_WORDS];
static struct cua_exact_spill spill[MOST_ROOM] __attribute__((aligned(256)));
static struct cua_append_cursor cursor;
static struct cua_append_view buffer;
static struct cua_exact_cells_f32 view_f32;
static struct cua_exact_cells_f64 view_f64;
static unsigned lost_merges[MOST_CELLS];

static struct cua__cells_job job;
static char scratch[1 << 16] __attribute__((aligned(256)));
static uint64_t out[MOST_CELLS + 1], old[MOST_CELLS], lost, arrived;

/* The sum of each cell if no element is lost. */
static struct cua_exact sum[MOST_CELLS];

static uint64_t rng;
static uint64_t next_random(void)
{
	return test_random(&rng);
}

static const struct format *format_of(enum cua_type type)
{
	for (int i = 0; i < FORMATS; i++)
		if (formats[i].type == type)
			return &formats[i];
	return NULL;
}

/* ---- the elements ---- */

/* m 2^power */
static uint64_t number_of(double m, int power)
{
	const double x = ldexp(m, power);
	const float narrow = (float)x;
	uint64_t bits = 0;

	if (shape.type == CUA_F32)
		memcpy(&bits, &narrow, sizeof(narrow));
	else
		memcpy(&bits, &x, sizeof(x));
	return bits;
}

/* An element with its lowest bit at this position of the cell, and `zeros` zeros as lowest bits. */
static uint64_t number_at(int position, int zeros)
{
	const int size = shape.type == CUA_F32 ? 24 : 53;
	const uint64_t leading = (uint64_t)1 << (size - 1);
	const uint64_t m = (next_random() & (leading - 1)) | leading | 1;
	const double x = (double)(m >> zeros << zeros);

	return number_of(next_random() % 2 ? x : -x, shape.unit + position);
}

static uint64_t make_element(void)
{
	const struct format *f = format_of(shape.type);
	const uint64_t random = next_random();
	/* near the end of a word half of the time */
	const unsigned near = random / 64 % 2 ? bits_of_word - 1 - (unsigned)(random / 128 % 4) : 0;
	const int position = (int)(near ? near + (random / 512 % 2 ? bits_of_word : 0)
					: random / 128 % (span + 1));

	if (shape.elements == LOW)
		return number_at((int)(random % (shape.type == CUA_F32 ? 32 : 4)), 0);
	if (shape.elements == COUNTS && random % 2)
		return number_of(random / 2 % 4 ? 1 + (double)(random / 8 % 3) : -1, shape.unit);
	if (shape.elements == COUNTS)
		return number_at((int)span + 1 + (int)(random / 2 % 30), 0);
	if (shape.elements >= MIXED && random % 8 == 0) {
		const int zeros = 1 + (int)(random / 8 % 20);

		return random % 16 ? number_at(-zeros, zeros) : random / 16 % 2 * format_minus(f);
	}
	if (shape.elements >= WILD && random % 8 == 1)
		return random % 16 == 1 ? number_at(-1 - (int)(random / 16 % 30), 0)
					: number_at((int)span + 1 + (int)(random / 16 % 30), 0);
	if (shape.elements == SPECIAL && random % 64 == 2)
		return random / 64 % 4 == 0
			       ? format_nan(f)
			       : format_infinity(f) | random / 256 % 2 * format_minus(f);
	return number_at(position < (int)span ? position : (int)span, 0);
}

static uint64_t make_cell(unsigned k)
{
	const uint64_t random = next_random();

	if (random % 16 == 0)
		return random % 32 ? shape.cells + random / 32 % 3 : ~(uint64_t)0;
	switch (shape.targets) {
	case ONE: return shape.cells / 2;
	case TURNS: return k % shape.cells;
	case PAIRS: return k / 2 % shape.cells;
	default: return random / 16 % shape.cells;
	}
}

static int is_outside(uint64_t bits)
{
	uint64_t mantissa;
	int negative, power, position;

	if (!model_split(format_of(shape.type), bits, &negative, &mantissa, &power) || !mantissa)
		return 0;
	position = power - shape.unit;
	return position > (int)span || position <= -53 ||
	       (position < 0 && mantissa % ((uint64_t)1 << -position) != 0);
}

static uint64_t start_word(unsigned w)
{
	const uint64_t flags = w % words == words - 1 ? CUA__EXACT_CELL_FLAGS : 0;
	const uint64_t random = next_random(), end = (uint64_t)1 << 63;
	uint64_t step = (random & 0xffffffff) << 24 ^ random >> 8;

	if (!shape.near_ends || (flags && shape.near_ends == 2) || random % 4 == 0)
		return 0;
	/* so near that a carry passes the end */
	if (random / 4 % 2)
		step = (step & 0xff) << (flags ? CUA__EXACT_CELL_FLAG_BITS : 0);
	return (random / 8 % 2 ? end + step : end - 1 - step) & ~flags;
}

/* Adds the words of a cell to a sum. */
static void add_words(struct cua_exact *e, const uint64_t *word)
{
	for (unsigned w = 0; w < words; w++) {
		const int64_t v =
			(int64_t)word[w] >> (w == words - 1 ? CUA__EXACT_CELL_FLAG_BITS : 0);
		const struct cua__exact_parts p = {
			.negative = v < 0,
			.mantissa = v < 0 ? 0 - (uint64_t)v : (uint64_t)v,
			.at = CUA__EXACT_POINT + shape.unit + (int)(w * bits_of_word)};

		cua__exact_add(e, p);
	}
}

static void make(void)
{
	const struct format *f = format_of(shape.type);

	for (unsigned c = 0; c < shape.cells; c++)
		cua_exact_init(&sum[c]);
	for (unsigned k = 0; k < elements; k++) {
		element[k].cell = make_cell(k);
		element[k].bits = make_element();
		element[k].outside = is_outside(element[k].bits);
		if (element[k].cell < shape.cells)
			inline_add(&sum[element[k].cell], f, element[k].bits);
	}
	for (unsigned w = 0; w < shape.cells * words; w++) {
		start[w] = start_word(w);
		own_start[w] =
			shape.form == BY_BLOCK && w >= GLOBAL_ONLY * words ? start_word(w) : 0;
	}
	for (unsigned c = 0; c < shape.cells; c++) {
		add_words(&sum[c], start + c * words);
		for (unsigned b = 0; b < shape.blocks; b++)
			add_words(&sum[c], own_start + c * words);
	}
	for (unsigned c = 0; c < shape.cells; c++)
		format_store(format_of(shape.result), old, c,
			     random_element(format_of(shape.result),
					    c % 2 ? KIND_NEAR : KIND_SPECIAL, c, &rng));
}

/* ---- the kernels ---- */

static int add_element(unsigned k, uint32_t mask, const void *private_view)
{
	const int own = private_view && element[k].cell >= GLOBAL_ONLY;
	const uint64_t i = element[k].cell - (own ? GLOBAL_ONLY : 0);
	double d;
	float s;

	memcpy(&s, &element[k].bits, sizeof(s));
	memcpy(&d, &element[k].bits, sizeof(d));
	if (own)
		return shape.type == CUA_F32 ? cua_exact_cell_add_block_f32(private_view, i, s)
					     : cua_exact_cell_add_block_f64(private_view, i, d);
	if (shape.form == BY_WARP)
		return shape.type == CUA_F32 ? cua_exact_cell_add_warp_f32(mask, &view_f32, i, s)
					     : cua_exact_cell_add_warp_f64(mask, &view_f64, i, d);
	return shape.type == CUA_F32 ? cua_exact_cell_add_f32(&view_f32, i, s)
				     : cua_exact_cell_add_f64(&view_f64, i, d);
}

static int merge_cell(uint64_t c, const uint64_t *own)
{
	return shape.type == CUA_F32
		       ? cua_exact_cell_merge_f32(
				 &view_f32, c, (const struct cua_exact_cell_f32 *)(const void *)own)
		       : cua_exact_cell_merge_f64(
				 &view_f64, c,
				 (const struct cua_exact_cell_f64 *)(const void *)own);
}

static void add_elements(void)
{
	const unsigned lanes = simt_blocks() * simt_block_lanes(), lane = cua_port_lane();
	uint64_t *own = shape.form == BY_BLOCK ? simt_shared(sizeof(cell)) : NULL;
	const unsigned privates = (shape.cells - GLOBAL_ONLY) * words;
	const struct cua_exact_cells_f32 own_f32 = cua_exact_cells_private_f32(
		&view_f32, (void *)own, GLOBAL_ONLY, shape.cells - GLOBAL_ONLY);
	const struct cua_exact_cells_f64 own_f64 = cua_exact_cells_private_f64(
		&view_f64, (void *)own, GLOBAL_ONLY, shape.cells - GLOBAL_ONLY);
	const void *private_view = !own                    ? NULL
				   : shape.type == CUA_F32 ? (const void *)&own_f32
							   : (const void *)&own_f64;

	for (unsigned w = cua_port_thread(); own && w < privates; w += cua_port_block_size())
		CUA_WRITE(own[w], own_start[GLOBAL_ONLY * words + w]);
	cua_port_sync_block();
	for (unsigned turn = 0; turn < shape.each; turn++) {
		const unsigned k = turn * lanes + simt_lane();
		uint32_t mask = whole_warp();

		/* the lanes of a warp make two calls */
		if (turn % 2)
			mask &= lane % 3 == 1 ? 0x92492492u : ~0x92492492u;
		element[k].stored = add_element(k, mask, private_view);
	}
	cua_port_sync_block();
	for (unsigned c = GLOBAL_ONLY + cua_port_thread(); own && c < shape.cells;
	     c += cua_port_block_size())
		if (!merge_cell(c, own + (c - GLOBAL_ONLY) * words))
			lost_merges[c]++;
}

/* As in cuda_exact_cell.cu. */
static void finish(void)
{
	const uint64_t stride = (uint64_t)simt_blocks() * simt_block_lanes();

	for (uint64_t i = simt_lane(); i < job.c.cells; i += stride)
		cua__cells_store(&job, i, job.c.type);
	simt_next_kernel(&arrived);
	for (uint64_t begin = 0; begin < job.most; begin += job.round_slots) {
		const uint64_t spills = cua__cells_slots(&job, begin) ? cua__cells_spills(&job) : 0;
		const uint64_t slots = cua__cells_slots(&job, begin);

		for (uint64_t k = simt_lane(); k < spills; k += stride)
			cua__cells_add_spill(&job, k, begin);
		simt_next_kernel(&arrived);
		for (uint64_t s = simt_lane(); s < slots; s += stride)
			cua__cells_round(&job, s, begin);
		simt_next_kernel(&arrived);
	}
	if (simt_lane() == 0)
		lost = CUA_READ(job.state->lost);
}

/* ---- checks ---- */

static uint32_t flags_of(const uint64_t *array, uint64_t c)
{
	return (uint32_t)array[(c + 1) * words - 1] & CUA__EXACT_CELL_FLAGS;
}

/* Whether two sums differ only by a multiple of 2^power, or not at all if power is 0. */
static int sums_agree(struct cua_exact *a, struct cua_exact *b, int power)
{
	const int at = CUA__EXACT_POINT + power;

	for (int i = 0; power && i < CUA_EXACT_DIGITS; i++)
		a->digit[i] -= b->digit[i];
	a->pending += power ? b->pending + 1 : 0;
	cua_exact_normalize(a);
	cua_exact_normalize(b);
	if (a->flags != b->flags)
		return 0;
	if (!power)
		return memcmp(a->digit, b->digit, sizeof(a->digit)) == 0;
	for (int i = 0; i < at / 32; i++)
		if (a->digit[i])
			return 0;
	return (a->digit[at / 32] & (((int64_t)1 << at % 32) - 1)) == 0;
}

/* The cells after all additions. */
static const char *cells_check(void)
{
	const struct format *f64 = format_of(CUA_F64);
	const int carry = shape.unit + (int)top + 1;
	const double carry_of_sum = ldexp(1, carry);
	const uint64_t capacity = job.c.capacity;
	const uint64_t spills = cursor.demand < capacity ? cursor.demand : capacity;
	uint64_t outside = 0, carried = 0, lost_carries = 0;
	unsigned of_cell[MOST_CELLS] = {0}, stored[MOST_CELLS] = {0};
	uint64_t carry_bits;

	memcpy(&carry_bits, &carry_of_sum, sizeof(carry_bits));
	for (uint64_t s = 0; s < spills; s++) {
		const uint64_t bits = spill[s].bits & ~format_minus(f64);

		if (spill[s].cell >= shape.cells)
			return "a spill has no cell";
		of_cell[spill[s].cell]++;
		carried += bits == carry_bits;
	}
	for (uint64_t s = spills; s < MOST_ROOM; s++)
		if (spill[s].cell != ~(uint64_t)0 || spill[s].bits != ~(uint64_t)0)
			return "a spill is stored past the end";
	for (uint64_t c = 0; c < shape.cells; c++) {
		const uint32_t flags = flags_of(cell, c);
		struct cua_exact expected = sum[c], found;
		unsigned lost_here = 0, in_range = lost_merges[c];

		for (unsigned k = 0; k < elements; k++) {
			const int there = element[k].stored;

			if (element[k].cell != c)
				continue;
			outside += (uint64_t)element[k].outside;
			stored[c] += element[k].outside && there;
			lost_here += element[k].outside && !there;
			in_range += !element[k].outside && !there;
			if (element[k].outside && !there)
				inline_add(&expected, format_of(shape.type),
					   element[k].bits ^ format_minus(format_of(shape.type)));
		}
		lost_carries += in_range;
		cua_exact_init(&found);
		found.flags = flags & (CUA_EXACT_SPILLED - 1);
		add_words(&found, cell + c * words);
		for (uint64_t s = 0; s < spills; s++)
			if (spill[s].cell == c)
				inline_add(&found, f64, spill[s].bits);
		if (!sums_agree(&found, &expected, in_range ? carry : 0))
			return "a sum is wrong";
		if (of_cell[c] < stored[c] || !(flags & CUA_EXACT_SPILLED) != !of_cell[c])
			return "the flag of spills is wrong";
		if (!(flags & CUA_EXACT_LOST) != !(lost_here + in_range))
			return "the flag of lost elements is wrong";
	}
	for (unsigned k = 0; k < elements; k++)
		if (element[k].cell >= shape.cells && element[k].stored)
			return "an addition to no cell returned 1";
	if (shape.room < 0)
		return cursor.demand ? "a buffer of no use has a demand" : NULL;
	/* a merge or an addition of f64 may lose several carries */
	if (cursor.demand < outside + carried + lost_carries ||
	    cursor.demand > outside + carried + 3 * lost_carries)
		return "the demand is wrong";
	if (cursor.demand <= capacity && lost_carries)
		return "a carry is lost although there is room";
	return NULL;
}

static const char *results_check(void)
{
	static char message[120];
	const struct format *f = format_of(shape.result);
	uint64_t expected_lost = 0;

	for (unsigned c = 0; c < shape.cells; c++) {
		const uint64_t was = format_load(f, old, c), result = format_load(f, out, c);
		struct cua_exact e = sum[c], zero;
		uint64_t expected;

		cua_exact_init(&zero);
		cua_exact_normalize(&e);
		if (flags_of(added, c) & CUA_EXACT_LOST) {
			expected = format_nan(f);
			expected_lost++;
		} else if (!e.flags && !memcmp(e.digit, zero.digit, sizeof(e.digit))) {
			expected = shape.overwrite ? 0 : was;
		} else {
			if (!shape.overwrite)
				inline_add(&e, f, was);
			expected = inline_round(&e, f);
		}
		if (result != expected) {
			snprintf(message, sizeof(message), "result %u is %#llx and not %#llx", c,
				 (unsigned long long)result, (unsigned long long)expected);
			return message;
		}
	}
	if (format_load(f, out, shape.cells) !=
	    format_load(f, "\xee\xee\xee\xee\xee\xee\xee\xee", 0))
		return "a result is written past the end";
	if (memcmp(cell, added, sizeof(cell)) != 0)
		return "a finish changed the cells";
	if (lost != expected_lost)
		return "the number of lost cells is wrong";
	return NULL;
}

/* ---- runs ---- */

static void setup(void)
{
	memset(cell, 0xdb, sizeof(cell));
	memcpy(cell, start, shape.cells * words * sizeof(cell[0]));
	memset(spill, 0xff, sizeof(spill));
	memset(lost_merges, 0, sizeof(lost_merges));
	cursor.demand = 0;
	memset(scratch, 0xa5, sizeof(scratch));
	memset((void *)job.state, 0, sizeof(*job.state));
	memset(out, 0xee, sizeof(out));
	memcpy(out, old, shape.cells * (size_t)format_of(shape.result)->size);
	for (unsigned k = 0; k < elements; k++)
		element[k].stored = 2;
	lost = ~(uint64_t)0;
	arrived = 0;
}

static void body(void)
{
	add_elements();
	simt_next_kernel(&arrived);
	if (simt_lane() == 0) {
		if (cells_check())
			simt_fail(cells_check());
		memcpy(added, cell, sizeof(cell));
	}
	simt_next_kernel(&arrived);
	finish();
}

static void plan(const struct shape *p)
{
	struct cua__cells c;
	int usable;

	shape = *p;
	if (!shape.result)
		shape.result = shape.type;
	if (!shape.unit)
		shape.unit =
			shape.type == CUA_F32 ? CUA_EXACT_CELL_UNIT_F32 : CUA_EXACT_CELL_UNIT_F64;
	if (!shape.room)
		shape.room = MOST_ROOM - 1;
	usable = shape.room > 0;
	elements = shape.blocks * shape.lanes * shape.each;
	words = shape.type == CUA_F32 ? CUA__EXACT_CELL_WORDS_f32 : CUA__EXACT_CELL_WORDS_f64;
	span = shape.type == CUA_F32 ? CUA__EXACT_CELL_SPAN_f32 : CUA__EXACT_CELL_SPAN_f64;
	top = shape.type == CUA_F32 ? CUA__EXACT_CELL_TOP_f32 : CUA__EXACT_CELL_TOP_f64;
	bits_of_word = shape.type == CUA_F32 ? CUA__EXACT_CELL_BITS_f32 : CUA__EXACT_CELL_BITS_f64;
	ck_assert(elements <= MOST && shape.cells <= MOST_CELLS && shape.room < MOST_ROOM);
	buffer = (struct cua_append_view){.items = spill,
					  .cursor = &cursor,
					  .capacity = usable ? (uint64_t)shape.room : MOST_ROOM / 2,
					  .item_size = sizeof(spill[0]) / (usable ? 1 : 2),
					  .layout = CUA_APPEND_LAYOUT};
	view_f32 = cua_exact_cells_view_f32((void *)cell, shape.cells, shape.unit,
					    shape.room == NO_BUFFER ? NULL : &buffer);
	view_f64 = cua_exact_cells_view_f64((void *)cell, shape.cells, shape.unit,
					    shape.room == NO_BUFFER ? NULL : &buffer);
	c = (struct cua__cells){.type = shape.type,
				.result_type = shape.result,
				.overwrite = shape.overwrite,
				.unit = shape.unit,
				.cells = shape.cells,
				.cell = cell,
				.out = out,
				.demand = usable ? &cursor.demand : NULL,
				.spill = spill,
				.capacity = usable ? (uint64_t)shape.room : 0};
	cua__cells_plan(&c, &job);
	if (shape.round_slots && shape.round_slots < job.round_slots)
		job.round_slots = shape.round_slots;
	ck_assert(cua__cells_lay(&job, scratch) <= sizeof(scratch));
}

static const struct simt_case exact_cell = {
	.name = "exact cells", .setup = setup, .body = body, .check = results_check};

static void try_shapes(const char *name, const struct shape *shapes, size_t n, unsigned runs)
{
	char full_name[60];

	for (size_t k = 0; k < n; k++) {
		struct simt_case c = exact_cell;

		snprintf(full_name, sizeof(full_name), "%s, shape %d", name, (int)k);
		c.name = full_name;
		rng = simt_seed() * 1000 + k;
		plan(&shapes[k]);
		make();
		try_shape(c, shape.blocks, shape.lanes, runs);
	}
}
#define TRY_SHAPES(name, shapes, runs)                                                             \
	try_shapes(name, shapes, sizeof(shapes) / sizeof((shapes)[0]), runs)

static const enum cua_type types[] = {CUA_F32, CUA_F64};

/* Sums that pass the ends of the integers, in both directions, by single lanes of several warps. */
START_TEST(lanes)
{
	for (int t = 0; t < 2; t++) {
		const struct shape shapes[] = {
			{.type = types[t],
			 .cells = 2,
			 .each = 6,
			 .near_ends = 1,
			 .blocks = 2,
			 .lanes = 40},
			{.type = types[t],
			 .elements = MIXED,
			 .targets = ONE,
			 .cells = 3,
			 .each = 8,
			 .near_ends = 2,
			 .overwrite = 1,
			 .blocks = 3,
			 .lanes = 34},
			{.type = types[t],
			 .elements = SPECIAL,
			 .cells = 5,
			 .each = 4,
			 .near_ends = 1,
			 .blocks = 1,
			 .lanes = 64},
			{.type = types[t],
			 .elements = LOW,
			 .cells = 8,
			 .each = 4,
			 .near_ends = 1,
			 .blocks = 2,
			 .lanes = 40},
			/* the least and the greatest unit */
			{.type = types[t],
			 .unit = t ? CUA_EXACT_CELL_UNIT_MIN_F64 : CUA_EXACT_CELL_UNIT_MIN_F32,
			 .elements = WILD,
			 .cells = 4,
			 .each = 4,
			 .near_ends = 1,
			 .blocks = 2,
			 .lanes = 33},
			{.type = types[t],
			 .unit = t ? CUA_EXACT_CELL_UNIT_MAX_F64 : CUA_EXACT_CELL_UNIT_MAX_F32,
			 .elements = WILD,
			 .cells = 4,
			 .each = 4,
			 .near_ends = 2,
			 .blocks = 2,
			 .lanes = 33},
		};

		TRY_SHAPES("lanes", shapes, 20);
	}
}
END_TEST

/* Few lanes, so that carries interleave in many ways. */
START_TEST(carries)
{
	for (unsigned t = 0; t < 12; t++) {
		const struct shape p = {.type = types[t % 2],
					.elements = t / 4 ? LOW : INSIDE,
					.targets = ONE,
					.cells = 1,
					.each = 3,
					.near_ends = 1,
					.blocks = t / 2 % 2 ? 1 : 3,
					.lanes = t / 2 % 2 ? 3 : 1};
		struct simt_case c = exact_cell;
		struct simt_report r;

		c.body = add_elements;
		c.check = cells_check;
		c.shape.blocks = p.blocks;
		c.shape.block_lanes = p.lanes;
		rng = simt_seed() * 1000 + t;
		plan(&p);
		make();
		r = simt_explore(&c, 2, (uint64_t)simt_scale(300, 1000, 10000));
		ck_assert_msg(r.verdict == SIMT_OK, "carries, explored, %u x %u lanes: %s: %s",
			      p.blocks, p.lanes, simt_verdict_name(r.verdict), r.message);
	}
}
END_TEST

/* Lanes of a warp with equal and different cells; some lanes have no cell or an odd element. */
START_TEST(warps)
{
	for (int t = 0; t < 2; t++) {
		const struct shape shapes[] = {
			{.type = types[t],
			 .form = BY_WARP,
			 .elements = MIXED,
			 .targets = ONE,
			 .cells = 3,
			 .each = 6,
			 .near_ends = 1,
			 .blocks = 2,
			 .lanes = 64},
			{.type = types[t],
			 .form = BY_WARP,
			 .elements = SPECIAL,
			 .targets = PAIRS,
			 .cells = 7,
			 .each = 5,
			 .near_ends = 1,
			 .overwrite = 1,
			 .blocks = 2,
			 .lanes = 45},
			{.type = types[t],
			 .form = BY_WARP,
			 .elements = WILD,
			 .targets = TURNS,
			 .cells = 20,
			 .each = 4,
			 .room = 10,
			 .near_ends = 2,
			 .blocks = 2,
			 .lanes = 40},
			{.type = types[t],
			 .form = BY_WARP,
			 .elements = MIXED,
			 .cells = 4,
			 .each = 6,
			 .near_ends = 1,
			 .blocks = 1,
			 .lanes = 70},
		};

		TRY_SHAPES("warps", shapes, 15);
	}
}
END_TEST

/* Private cells in shared memory, with halves of words, and merges beside additions. */
START_TEST(blocks)
{
	for (int t = 0; t < 2; t++) {
		const struct shape shapes[] = {
			{.type = types[t],
			 .form = BY_BLOCK,
			 .elements = MIXED,
			 .cells = 3,
			 .each = 6,
			 .near_ends = 1,
			 .blocks = 2,
			 .lanes = 40},
			{.type = types[t],
			 .form = BY_BLOCK,
			 .targets = ONE,
			 .cells = 3,
			 .each = 8,
			 .near_ends = 2,
			 .blocks = 3,
			 .lanes = 33},
			{.type = types[t],
			 .form = BY_BLOCK,
			 .elements = SPECIAL,
			 .cells = 6,
			 .each = 5,
			 .room = 30,
			 .near_ends = 1,
			 .blocks = 2,
			 .lanes = 64},
			{.type = types[t],
			 .form = BY_BLOCK,
			 .elements = WILD,
			 .cells = 5,
			 .each = 5,
			 .overwrite = 1,
			 .blocks = 2,
			 .lanes = 50},
		};

		TRY_SHAPES("blocks", shapes, 15);
	}
}
END_TEST

/* A buffer that becomes full, is absent, or is for other items. */
START_TEST(full)
{
	static const int rooms[] = {1, 6, 15, NO_BUFFER, NO_FIT};

	for (unsigned k = 0; k < 10; k++) {
		const struct shape shapes[] = {{.type = types[k % 2],
						.form = (enum form)(k / 2 % 3),
						.elements = WILD,
						.cells = 9,
						.each = 3,
						.room = rooms[k / 2],
						.round_slots = 2,
						.blocks = 2,
						.lanes = 36},
					       {.type = types[k % 2],
						.form = (enum form)((k / 2 + 1) % 3),
						.elements = SPECIAL,
						.cells = 12,
						.each = 2,
						.room = rooms[k / 2],
						.near_ends = 1,
						.overwrite = 1,
						.blocks = 3,
						.lanes = 33}};

		TRY_SHAPES("full", shapes, 10);
	}
}
END_TEST

/* Rounds of few slots by several blocks, and every type of result. */
START_TEST(rounds)
{
	for (unsigned k = 0; k < 2; k++) {
		const struct shape shapes[] = {
			{.type = types[k],
			 .result = CUA_F64,
			 .elements = WILD,
			 .cells = 24,
			 .each = 3,
			 .round_slots = 5,
			 .blocks = 3,
			 .lanes = 40},
			{.type = types[k],
			 .result = CUA_F32,
			 .elements = WILD,
			 .cells = 12,
			 .each = 4,
			 .round_slots = 1,
			 .near_ends = 1,
			 .overwrite = 1,
			 .blocks = 2,
			 .lanes = 33},
			/* words that could be numbers of slots */
			{.type = types[k],
			 .elements = COUNTS,
			 .cells = 24,
			 .each = 3,
			 .round_slots = 4,
			 .blocks = 2,
			 .lanes = 40},
			{.type = types[k],
			 .elements = SPECIAL,
			 .cells = 20,
			 .each = 3,
			 .room = 17,
			 .near_ends = 1,
			 .round_slots = 3,
			 .blocks = 2,
			 .lanes = 40},
			/* a lane alone, since neighbours in a word of 4 bytes would race */
			{.type = types[k],
			 .result = CUA_F16,
			 .elements = WILD,
			 .cells = 9,
			 .each = 60,
			 .round_slots = 2,
			 .blocks = 1,
			 .lanes = 1},
			{.type = types[k],
			 .result = CUA_BF16,
			 .elements = SPECIAL,
			 .cells = 9,
			 .each = 60,
			 .near_ends = 1,
			 .round_slots = 4,
			 .blocks = 1,
			 .lanes = 1},
		};

		TRY_SHAPES("rounds", shapes, 15);
	}
}
END_TEST

TCase *simt_exact_cell_cases(void)
{
	TCase *tc = simt_tcase("exact_cell");

	tcase_add_test(tc, lanes);
	tcase_add_test(tc, carries);
	tcase_add_test(tc, warps);
	tcase_add_test(tc, blocks);
	tcase_add_test(tc, full);
	tcase_add_test(tc, rounds);
	return tc;
}
