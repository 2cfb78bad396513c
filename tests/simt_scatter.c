/* SPDX-License-Identifier: MIT */
/* The kernels of scatters, in sequence: passes of records, cells of a single region, and planes. */
#define CUA__SCATTER_SORTS 4u
#define CUA__SCATTER_READS 2u
#define CUA__SCATTER_SLOTS 16u
#define CUA__SCATTER_PLAN_THREADS 64u
/* the checker needs words of 4 bytes */
#define CUA__SCATTER_ORDER uint32_t
#define CUA__SCATTER_CARRIES 2
#define CUA__SCATTER_ODD 6u

#include <stdio.h>
#include <string.h>

#include "lib/kernels/scatter_global.h"
#include "lib/kernels/scatter_kernel.h"

#include "exact_model.h"
#include "simt_suites.h"

enum {
	LANES = 64,
	MOST = 8800,      /* rows, of few elements */
	MOST_OUT = 1024,  /* elements of the result */
	MOST_ROOM = 1024, /* records of a pass */
	MOST_REGIONS = 48,
	MOST_PASSES = 16,
	MOST_SHARED = 1 << 20, /* words of 64 bits */
	MOST_PLANES = 3 * MOST_OUT
};

/*
 * WILD elements have tiny and huge numbers, infinities and NaN among them. CROWDED elements are such
 * that the window of a single target overflows, and FULL elements such that both of its halves do: in
 * the direction of most elements, upwards if the number of targets is odd.
 */
enum elements { TAME, WILD, CROWDED, FULL };
/* ONE_REGION: almost all targets are in region 1. FREQUENT: half of them are target 5. WITHIN: none is
 * out of range. */
enum targets { EVEN, ONE_REGION, FREQUENT, WITHIN };

/* 0 stands for the most frequent value. */
struct shape {
	enum cua_scatter_op op;
	enum cua_type type, result;
	enum elements elements;
	enum targets indexes;
	uint32_t index_size, width, n, targets;
	int overwrite;
	uint32_t cells, copies;
	uint32_t subs, fan, room; /* of passes; 0 if there is a single region */
	uint32_t part, most;      /* 0: no shared cells of a pass */
	uint32_t direct_parts;
	uint32_t planes;
	int wide_rows; /* 1: the numbers of rows have 64 bits */
	int in_digits; /* 1 or -1: digits of shared cells begin near this limit */
	unsigned blocks;
};

static struct cua__scatter_job job;
static struct cua__scatter_state state;
static struct cua__scatter_pass passes[MOST_PASSES];
static uint64_t region_count[MOST_REGIONS], before[MOST_REGIONS + 1], items[MOST_REGIONS + 1];
static uint32_t shares[MOST_REGIONS + 1], cursor[MOST_REGIONS];
static uint64_t shared_cells[MOST_SHARED], plane[MOST_PLANES];
static uint32_t keys[MOST_ROOM];
static uint64_t values[MOST_ROOM];
static uint64_t indexes[MOST], x[MOST], skipped, arrived;
static uint64_t out[MOST_OUT + 1], old[MOST_OUT], expected[MOST_OUT], expected_skipped;
/* 1: some element does not fit the planes */
static int expected_misfit;
static int in_digits;

static uint64_t rng;
static uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 20;
}

static const struct format *format_of(enum cua_type type)
{
	for (int i = 0; i < FORMATS; i++)
		if (formats[i].type == type)
			return &formats[i];
	return NULL;
}

/* ---- the call ---- */

static uint64_t index_of(uint64_t i)
{
	uint64_t at = 0;

	memcpy(&at, (const char *)indexes + i * job.index_size, job.index_size);
	return at;
}

static uint64_t load(const void *array, uint64_t i, uint32_t size)
{
	uint64_t bits = 0;

	memcpy(&bits, (const char *)array + i * size, size);
	return bits;
}

static void store(void *array, uint64_t i, uint64_t bits, uint32_t size)
{
	memcpy((char *)array + i * size, &bits, size);
}

static uint64_t make_float(const struct format *f, enum elements elements, uint64_t i)
{
	const uint64_t one = (((uint64_t)1 << (f->exponent - 1)) - 1) << f->fraction;
	const uint64_t sign = next_random() % 2 ? format_minus(f) : 0;
	const uint64_t fraction = next_random() & (((uint64_t)1 << f->fraction) - 1);
	const uint64_t power = next_random() % 6 << f->fraction;

	/* the threads sample the elements with a multiple of 68 as number in their half; the rest are 31 */
	if (elements == CROWDED && i % (MOST / 2) % 68 == 0)
		return one;
	if (elements == FULL)
		return ((i < job.s.n / 4 * 3) == (job.s.targets & 1) ? 0 : format_minus(f)) |
		       0x3ffffffa;
	if (elements == CROWDED)
		return (i < MOST / 2 ? 0 : format_minus(f)) |
		       (one + ((uint64_t)79 << (f->fraction - 4)));
	if (elements == WILD && next_random() % 12 == 0)
		switch (next_random() % 6) {
		case 0: return sign | (fraction & 0xff);
		case 1: return sign | (one + (one >> 1));
		case 2: return sign | (one >> 1 | fraction);
		case 3: return sign | format_infinity(f);
		case 4: return format_nan(f) | sign;
		default: return sign | (format_infinity(f) - 1);
		}
	return sign | (one + power - ((uint64_t)2 << f->fraction)) | fraction;
}

static uint64_t make_element(enum cua_type type, enum elements elements, uint64_t i)
{
	if (cua__is_float(type))
		return make_float(format_of(type), elements, i);
	/* carries into the upper word, in both directions */
	return next_random() << 24 ^ next_random();
}

static uint64_t make_index(const struct shape *p)
{
	const uint64_t size = (uint64_t)1 << (job.span + job.subs), random = next_random();

	if (p->elements == CROWDED || p->elements == FULL)
		return 0;
	if (p->indexes != WITHIN && random % 16 == 0)
		return random % 3 ? p->targets + random % 5 : ~(uint64_t)0;
	if (p->indexes == FREQUENT && random % 2)
		return 5 % p->targets;
	if (p->indexes == ONE_REGION && random % 8)
		return size + random / 8 % size;
	return random / 16 % p->targets;
}

/* ---- the model ---- */

static int less(enum cua_type type, uint64_t a, uint64_t b)
{
	const uint32_t unused = 64 - 8 * cua__element_size(type);
	float fa, fb;
	double da, db;

	switch (type) {
	case CUA_F32:
		memcpy(&fa, &a, 4);
		memcpy(&fb, &b, 4);
		return fa < fb;
	case CUA_F64:
		memcpy(&da, &a, 8);
		memcpy(&db, &b, 8);
		return da < db;
	default: break;
	}
	return cua__is_signed(type) ? (int64_t)(a << unused) < (int64_t)(b << unused) : a < b;
}

/* The sum or extreme of a target's elements. Zero sums leave an old value as it was. */
static uint64_t model_target(uint64_t row, uint32_t column)
{
	const struct cua__scatter *s = &job.s;
	const uint64_t target = row * s->width + column;
	uint64_t result = s->overwrite ? 0 : load(old, target, job.result_size);
	struct model sum, zero;
	int any = 0;

	model_init(&sum);
	model_init(&zero);
	for (uint64_t i = 0; i < s->n; i++) {
		const uint64_t bits = load(x, i * s->width + column, job.size);
		const uint32_t unused = 64 - 8 * job.size;

		if (index_of(i) != row)
			continue;
		if (s->op != CUA_SCATTER_ADD) {
			if ((s->overwrite && !any) ||
			    (s->op == CUA_SCATTER_MIN ? less(s->type, bits, result)
						      : less(s->type, result, bits)))
				result = bits;
		} else if (cua__is_float(s->type)) {
			model_add(&sum, format_of(s->type), bits);
		} else {
			result += cua__is_signed(s->type)
					  ? (uint64_t)((int64_t)(bits << unused) >> unused)
					  : bits;
		}
		any = 1;
	}
	if (s->op != CUA_SCATTER_ADD) {
		if (!any && s->overwrite)
			result = cua__scatter_extreme(s->op, s->result_type, 0, 1, 0);
	} else if (cua__is_float(s->type) && memcmp(&sum, &zero, sizeof(sum)) != 0) {
		if (!s->overwrite)
			model_add(&sum, format_of(s->result_type), result);
		result = model_round(&sum, format_of(s->result_type));
	}
	return result;
}

/* ---- the plan ---- */

static enum cua__scatter_cell cell_of(const struct shape *p)
{
	const int wide = cua__element_size(p->result) == 8;

	if (p->op != CUA_SCATTER_ADD)
		return wide ? CUA__CELL_MAX64 : CUA__CELL_MAX32;
	if (cua__is_float(p->type))
		return p->type == CUA_F64 ? CUA__CELL_WINDOWS : CUA__CELL_HALVES;
	return wide ? CUA__CELL_ADD64 : CUA__CELL_ADD32;
}

static uint32_t log2_of(uint64_t v)
{
	uint32_t log = 0;

	while (((uint64_t)1 << log) < v)
		log++;
	return log;
}

/* As in cuda_scatter.cu. */
static void plan(const struct shape *p)
{
	job = (struct cua__scatter_job){
		.s = {.op = p->op,
		      .index_type = p->index_size == 4 ? CUA_U32 : CUA_U64,
		      .type = p->type,
		      .result_type = p->result,
		      .overwrite = p->overwrite,
		      .width = p->width,
		      .n = p->n,
		      .targets = p->targets,
		      .index = indexes,
		      .x = x,
		      .out = out,
		      .skipped = &skipped},
		.cell = cell_of(p),
		.sum_type = p->result,
		.index_size = p->index_size,
		.size = cua__element_size(p->type),
		.result_size = cua__element_size(p->result),
		.limit = p->targets,
		.rows = p->width > 1,
		.cells = p->cells,
		.columns = 1u << log2_of(p->width),
		.subs = p->subs,
		.copies = p->copies,
		.fan = p->fan,
		.tile = LANES * CUA__SCATTER_SORTS,
		.room = p->room,
		.most = p->most ? p->most : UINT64_MAX,
		.part = p->part,
		.direct_parts = p->direct_parts,
		.planes = p->planes,
		.plane_bits = 50,
		.low_bits = p->planes == 3 ? 27 : 35,
		.plane = plane,
		.state = &state,
		.pass = passes,
		.count = region_count,
		.before = before,
		.items = items,
		.shares = shares,
		.cursor = cursor,
		.shared = shared_cells,
		.keys = keys,
		.values = values,
	};
	if (job.columns > CUA__SCATTER_COLUMNS)
		job.columns = CUA__SCATTER_COLUMNS;
	job.tiles = (p->width + job.columns - 1) / job.columns;
	job.value_size = (job.rows ? p->wide_rows : job.size == 8) ? 8 : 4;
	job.span = log2_of(job.cells / job.copies / job.columns);
	job.regions = ((p->targets - 1) >> (job.span + job.subs)) + 1;
	job.digits = cua__scatter_is_float(job.cell)
			     ? (uint32_t)cua__scatter_digits(job.sum_type) + 1
			     : 1;
	job.passes = job.regions / (p->fan ? p->fan : 1) + 1;
	if (job.room && p->n > job.room)
		job.passes += 2 * (uint32_t)(p->n / job.room);
}

static struct shape with_defaults(struct shape p)
{
	p.op = p.op ? p.op : CUA_SCATTER_ADD;
	p.result = p.result ? p.result : p.type;
	p.index_size = p.index_size ? p.index_size : 4;
	p.width = p.width ? p.width : 1;
	p.cells = p.cells ? p.cells : 64;
	p.copies = p.copies ? p.copies : 1;
	p.direct_parts = p.direct_parts ? p.direct_parts : 1;
	p.blocks = p.blocks ? p.blocks : 2;
	return p;
}

static void make(const struct shape *p)
{
	uint64_t in_range = 0;

	plan(p);
	ck_assert(job.regions <= MOST_REGIONS && job.passes <= MOST_PASSES && p->n <= MOST);
	ck_assert(job.room <= MOST_ROOM && p->n * p->width * job.size <= sizeof(x));
	ck_assert(p->targets * p->width <= MOST_OUT);
	ck_assert(CUA__SCATTER_SHARED_MAX * job.cells * job.digits <= MOST_SHARED);
	for (uint64_t i = 0; i < p->n; i++) {
		store(indexes, i, make_index(p), p->index_size);
		in_range += index_of(i) < p->targets;
	}
	expected_skipped = p->n - in_range;
	for (uint64_t e = 0; e < p->n * p->width; e++)
		store(x, e, make_element(p->type, p->elements, e), job.size);
	for (uint64_t e = 0; e < p->targets * p->width; e++)
		store(old, e, make_element(p->result, p->elements == WILD ? WILD : TAME, 0),
		      job.result_size);
	for (uint64_t row = 0; row < p->targets; row++)
		for (uint32_t c = 0; c < p->width; c++)
			store(expected, row * p->width + c, model_target(row, c), job.result_size);
}

/* ---- a run ---- */

static void setup(void)
{
	memset(&state, 0, sizeof(state));
	memset(region_count, 0, sizeof(region_count));
	memset(plane, 0, sizeof(plane[0]) * job.planes * job.s.targets * job.s.width);
	/* passes clear their own */
	memset(shared_cells, job.regions == 1 ? 0 : 0xa5,
	       sizeof(shared_cells[0]) * CUA__SCATTER_SHARED_MAX * job.cells * job.digits);
	/* in pairs with the sum 0 */
	for (size_t cell = 0; in_digits && cell < job.cells; cell++)
		for (size_t d = 0; d + 2 < job.digits; d += 2) {
			shared_cells[cell * job.digits + d] =
				(uint64_t)in_digits * (((uint64_t)1 << 62) - ((uint64_t)1 << 32));
			shared_cells[cell * job.digits + d + 1] =
				0 - (uint64_t)in_digits * (((uint64_t)1 << 30) - 1);
		}
	memset(passes, 0xff, sizeof(passes));
	for (uint32_t p = 0; p < MOST_PASSES; p++)
		passes[p].next = 0;
	memset(keys, 0xff, sizeof(keys));
	memset(out, 0xee, sizeof(out));
	memcpy(out, old, job.s.targets * job.s.width * job.result_size);
	skipped = ~(uint64_t)0;
	arrived = 0;
}

/* Whether the pass has each of its records once, in the range of its region. */
static const char *pass_check(uint32_t number)
{
	static unsigned char seen[MOST];
	const struct cua__scatter_pass *p = &passes[number];
	const uint32_t shift = job.span + job.subs;
	uint64_t records = 0;

	if (number >= state.passes || p->direct)
		return NULL;
	memset(seen, 0, sizeof(seen));
	for (uint64_t i = 0; i < job.s.n; i++)
		records += index_of(i) < job.limit && index_of(i) >> shift >= p->first &&
			   index_of(i) >> shift < p->end;
	if (before[p->end] - before[p->first] != records || records > job.room)
		return "a pass has a wrong number of records";
	if (shares[p->end] - shares[p->first] > CUA__SCATTER_SHARED_MAX)
		return "a pass has too few shared cells";
	for (uint32_t r = p->first; r < p->end; r++) {
		if (before[r] - before[p->first] + region_count[r] != cursor[r])
			return "a cursor is not at the end of its region";
		for (uint64_t k = before[r]; k < before[r + 1]; k++) {
			const uint64_t at = k - before[p->first];
			const uint64_t row = ((uint64_t)r << shift) + keys[at];
			uint64_t i = 0, value = load(values, at, job.value_size);

			if (keys[at] >> shift)
				return "a key is outside its region";
			while (i < job.s.n && (seen[i] || index_of(i) != row ||
					       value != (job.rows ? i : load(x, i, job.size))))
				i++;
			if (i == job.s.n)
				return "a record is wrong, or there twice";
			seen[i] = 1;
		}
	}
	return NULL;
}

static void planes_body(void)
{
	struct cua__scatter_cache *cache = simt_shared(sizeof(*cache));

	if (cua__scatter_is_float(job.cell) && cua_port_block() == 0)
		cua__scatter_find_top(&job, &cache->inside, job.s.type);
	simt_next_kernel(&arrived);
	cua__scatter_global(&job, cache, job.size, job.rows, job.s.type, job.cell);
	simt_next_kernel(&arrived);
	cua__scatter_store_global(&job, job.cell);
	simt_next_kernel(&arrived);
}

static void body(void)
{
	void *memory = simt_shared((size_t)16 << 10);
	const struct cua__scatter_stage stage = cua__scatter_stage_at(&job, memory);

	if (job.planes)
		planes_body();
	if (job.planes && !cua__scatter_is_float(job.cell))
		return;
	if (job.regions > 1) {
		cua__scatter_count(&job, memory);
		simt_next_kernel(&arrived);
		if (cua_port_block() == 0)
			cua__scatter_plan(&job, memory);
		simt_next_kernel(&arrived);
	}
	for (uint32_t p = 0; p < (job.regions > 1 ? job.passes : 1); p++) {
		if (job.regions > 1) {
			cua__scatter_partition(&job, p, &stage, job.index_size, job.size,
					       job.value_size, job.rows, LANES);
			simt_next_kernel(&arrived);
			if (simt_lane() == 0 && pass_check(p))
				simt_fail(pass_check(p));
		}
		cua__scatter_accumulate(&job, p, memory, job.size, job.value_size,
					cua__scatter_path_of(&job), job.s.type, job.cell);
		simt_next_kernel(&arrived);
	}
}

static const char *check(void)
{
	static char message[100];
	const uint64_t elements = job.s.targets * job.s.width;

	for (uint64_t e = 0; e < elements; e++)
		if (load(out, e, job.result_size) != load(expected, e, job.result_size)) {
			snprintf(message, sizeof(message), "target %d is %#llx and not %#llx",
				 (int)e, (unsigned long long)load(out, e, job.result_size),
				 (unsigned long long)load(expected, e, job.result_size));
			return message;
		}
	if (load(out, elements, job.result_size) !=
	    load("\xee\xee\xee\xee\xee\xee\xee\xee", 0, job.result_size))
		return "a result is written past the end";
	if (skipped != expected_skipped)
		return "the number of skipped indexes is wrong";
	if ((int)state.misfit != expected_misfit)
		return "the planes have a misfit, or none, against expectation";
	return NULL;
}

static void try_shapes(const char *name, const struct shape *shapes, size_t n, int misfit)
{
	for (size_t k = 0; k < n; k++) {
		struct simt_case c = {.name = name, .setup = setup, .body = body, .check = check};
		const struct shape p = with_defaults(shapes[k]);

		rng = k + 1;
		expected_misfit = misfit;
		in_digits = p.in_digits;
		make(&p);
		try_shape(c, p.blocks, LANES, 2);
	}
}

/* Records of several passes, and a block for each sub-range. */
START_TEST(records)
{
	static const struct shape shapes[] = {
		{.type = CUA_F32,
		 .n = 500,
		 .targets = 600,
		 .subs = 1,
		 .fan = 3,
		 .room = 400,
		 .blocks = 1},
		{.type = CUA_F32,
		 .elements = WILD,
		 .index_size = 8,
		 .n = 700,
		 .targets = 500,
		 .subs = 1,
		 .fan = 8,
		 .room = 500},
		{.type = CUA_F32,
		 .elements = WILD,
		 .indexes = ONE_REGION,
		 .n = 400,
		 .targets = 300,
		 .overwrite = 1,
		 .fan = 8,
		 .room = 200},
		{.type = CUA_BF16,
		 .result = CUA_F32,
		 .indexes = FREQUENT,
		 .n = 300,
		 .targets = 200,
		 .subs = 1,
		 .fan = 2,
		 .room = 300},
		{.type = CUA_F64, .n = 500, .targets = 300, .subs = 1, .fan = 4, .room = 300},
		{.type = CUA_F64,
		 .elements = WILD,
		 .n = 300,
		 .targets = 200,
		 .fan = 4,
		 .room = 300,
		 .blocks = 1},
	};

	try_shapes("records", shapes, sizeof(shapes) / sizeof(shapes[0]), 0);
}
END_TEST

/* Several blocks for sub-ranges of passes, of records and of the input. */
START_TEST(shared_records)
{
	static const struct shape shapes[] = {
		{.type = CUA_F32,
		 .elements = WILD,
		 .n = 400,
		 .targets = 300,
		 .subs = 1,
		 .fan = 2,
		 .room = 300,
		 .part = 20,
		 .most = 40,
		 .direct_parts = 2},
		{.type = CUA_F32,
		 .elements = WILD,
		 .indexes = ONE_REGION,
		 .n = 400,
		 .targets = 300,
		 .fan = 8,
		 .room = 200,
		 .part = 30,
		 .most = 60,
		 .direct_parts = 3},
		{.type = CUA_I64,
		 .indexes = FREQUENT,
		 .index_size = 8,
		 .n = 400,
		 .targets = 200,
		 .cells = 32,
		 .fan = 3,
		 .room = 400,
		 .part = 20,
		 .most = 50,
		 .direct_parts = 2},
		{.type = CUA_F64,
		 .elements = WILD,
		 .indexes = FREQUENT,
		 .n = 200,
		 .targets = 100,
		 .overwrite = 1,
		 .fan = 3,
		 .room = 150,
		 .part = 40,
		 .most = 80,
		 .direct_parts = 2},
		/* more sub-ranges than shared cells have more than `part` records */
		{.type = CUA_I32,
		 .n = 600,
		 .targets = 700,
		 .cells = 16,
		 .fan = 48,
		 .room = 600,
		 .part = 8,
		 .most = 20,
		 .direct_parts = 2},
	};

	try_shapes("shared records", shapes, sizeof(shapes) / sizeof(shapes[0]), 0);
}
END_TEST

/* A single region, by a single block and by several. */
START_TEST(single)
{
	static const struct shape shapes[] = {
		{.type = CUA_F32, .n = 603, .targets = 30, .copies = 2, .blocks = 1},
		{.type = CUA_F32, .n = 250, .targets = 100, .subs = 1, .direct_parts = 2},
		{.type = CUA_F32,
		 .elements = WILD,
		 .n = 207,
		 .targets = 32,
		 .copies = 2,
		 .blocks = 1},
		/* room for the digits of many shared cells in shared memory */
		{.type = CUA_F32,
		 .elements = WILD,
		 .n = 302,
		 .targets = 100,
		 .cells = 512,
		 .copies = 4,
		 .direct_parts = 3},
		/* few odd elements, in a list */
		{.type = CUA_F32,
		 .elements = WILD,
		 .n = 64,
		 .targets = 9,
		 .copies = 2,
		 .blocks = 1},
		{.type = CUA_F16,
		 .result = CUA_F32,
		 .elements = WILD,
		 .n = 60,
		 .targets = 2,
		 .overwrite = 1,
		 .blocks = 1},
		{.type = CUA_F32,
		 .elements = WILD,
		 .indexes = FREQUENT,
		 .n = 302,
		 .targets = 30,
		 .cells = 128,
		 .copies = 4,
		 .direct_parts = 3},
		{.type = CUA_F32,
		 .index_size = 8,
		 .n = 300,
		 .targets = 30,
		 .overwrite = 1,
		 .copies = 2,
		 .direct_parts = 2},
		{.type = CUA_F64,
		 .elements = WILD,
		 .n = 200,
		 .targets = 30,
		 .copies = 2,
		 .direct_parts = 2},
		{.type = CUA_F64, .indexes = FREQUENT, .n = 200, .targets = 60, .blocks = 1},
	};

	try_shapes("single", shapes, sizeof(shapes) / sizeof(shapes[0]), 0);
}
END_TEST

/*
 * Windows that overflow in both directions, of a shared cell and of a cell that becomes dirty; and
 * digits that pass their limit.
 */
START_TEST(overflow)
{
	static const struct shape shapes[] = {
		{.type = CUA_BF16,
		 .result = CUA_F32,
		 .elements = CROWDED,
		 .n = MOST,
		 .targets = 30,
		 .direct_parts = 2,
		 .blocks = 1},
		{.type = CUA_BF16,
		 .result = CUA_F32,
		 .elements = CROWDED,
		 .n = MOST / 2,
		 .targets = 100,
		 .fan = 4,
		 .room = 1000,
		 .blocks = 1},
		{.type = CUA_F64, .elements = CROWDED, .n = MOST / 2, .targets = 30, .blocks = 1},
		{.type = CUA_F32,
		 .elements = FULL,
		 .n = MOST / 4 * 3,
		 .targets = 30,
		 .direct_parts = 2,
		 .blocks = 1},
		{.type = CUA_F32, .elements = FULL, .n = MOST / 2, .targets = 31, .blocks = 1},
		{.type = CUA_F32, .elements = FULL, .n = 1600, .targets = 31, .blocks = 1},
		{.type = CUA_F32,
		 .elements = WILD,
		 .n = 200,
		 .targets = 20,
		 .direct_parts = 3,
		 .in_digits = 1},
		{.type = CUA_F64, .n = 200, .targets = 20, .direct_parts = 3, .in_digits = -1},
	};

	try_shapes("overflow", shapes, sizeof(shapes) / sizeof(shapes[0]), 0);
}
END_TEST

/* Rows that are narrower and wider than a warp, and wider than a tile. */
START_TEST(rows)
{
	static const struct shape shapes[] = {
		{.type = CUA_F32,
		 .elements = WILD,
		 .width = 3,
		 .n = 120,
		 .targets = 30,
		 .fan = 2,
		 .room = 120},
		{.type = CUA_F32,
		 .width = 40,
		 .n = 40,
		 .targets = 6,
		 .cells = 128,
		 .fan = 8,
		 .room = 40},
		{.type = CUA_F32,
		 .elements = WILD,
		 .indexes = FREQUENT,
		 .width = 70,
		 .n = 26,
		 .targets = 6,
		 .cells = 64,
		 .fan = 8,
		 .room = 26,
		 .part = 7,
		 .most = 10},
		/* rows with all columns of a tile, from the input and from records */
		{.type = CUA_F32,
		 .indexes = WITHIN,
		 .width = 64,
		 .n = 135,
		 .targets = 8,
		 .cells = 512,
		 .blocks = 1},
		{.type = CUA_F32,
		 .elements = WILD,
		 .indexes = WITHIN,
		 .width = 64,
		 .n = 130,
		 .targets = 8,
		 .cells = 256,
		 .fan = 2,
		 .room = 130,
		 .wide_rows = 1},
		{.type = CUA_I32,
		 .index_size = 8,
		 .width = 3,
		 .n = 100,
		 .targets = 10,
		 .direct_parts = 2},
		{.type = CUA_F64,
		 .elements = WILD,
		 .width = 5,
		 .n = 60,
		 .targets = 10,
		 .cells = 128,
		 .blocks = 1},
	};

	try_shapes("rows", shapes, sizeof(shapes) / sizeof(shapes[0]), 0);
}
END_TEST

START_TEST(integers)
{
	static const struct shape shapes[] = {
		{.type = CUA_I32, .n = 400, .targets = 300, .subs = 1, .fan = 8, .room = 300},
		{.type = CUA_U32,
		 .indexes = FREQUENT,
		 .n = 200,
		 .targets = 30,
		 .overwrite = 1,
		 .copies = 2,
		 .direct_parts = 2},
		{.type = CUA_I64,
		 .indexes = FREQUENT,
		 .index_size = 8,
		 .n = 400,
		 .targets = 300,
		 .subs = 1,
		 .fan = 8,
		 .room = 400},
		{.type = CUA_I32,
		 .result = CUA_I64,
		 .indexes = FREQUENT,
		 .n = 200,
		 .targets = 30,
		 .copies = 2,
		 .direct_parts = 2},
		{.op = CUA_SCATTER_MAX,
		 .type = CUA_I32,
		 .n = 400,
		 .targets = 300,
		 .subs = 1,
		 .fan = 8,
		 .room = 400},
		{.op = CUA_SCATTER_MIN,
		 .type = CUA_F32,
		 .indexes = FREQUENT,
		 .n = 200,
		 .targets = 60,
		 .overwrite = 1,
		 .cells = 128,
		 .copies = 2,
		 .direct_parts = 2},
		{.op = CUA_SCATTER_MIN,
		 .type = CUA_F64,
		 .n = 200,
		 .targets = 60,
		 .direct_parts = 2},
	};

	try_shapes("integers", shapes, sizeof(shapes) / sizeof(shapes[0]), 0);
}
END_TEST

/* Cells in global memory, more targets than the cache has slots, and a frequent target. */
START_TEST(planes)
{
	static const struct shape shapes[] = {
		{.type = CUA_F32,
		 .indexes = FREQUENT,
		 .n = 400,
		 .targets = 40,
		 .copies = 2,
		 .planes = 2},
		{.type = CUA_F32,
		 .width = 3,
		 .n = 100,
		 .targets = 20,
		 .overwrite = 1,
		 .cells = 128,
		 .planes = 2},
		{.type = CUA_F64,
		 .indexes = FREQUENT,
		 .index_size = 8,
		 .n = 300,
		 .targets = 60,
		 .planes = 3},
		{.type = CUA_I64, .indexes = FREQUENT, .n = 300, .targets = 60, .planes = 1},
		{.op = CUA_SCATTER_MAX,
		 .type = CUA_I32,
		 .indexes = FREQUENT,
		 .n = 300,
		 .targets = 60,
		 .planes = 1},
	};

	try_shapes("planes", shapes, sizeof(shapes) / sizeof(shapes[0]), 0);
}
END_TEST

/* Planes that some element does not fit: other kernels store all results. */
START_TEST(misfit)
{
	static const struct shape shapes[] = {
		{.type = CUA_F32,
		 .elements = WILD,
		 .indexes = FREQUENT,
		 .n = 200,
		 .targets = 100,
		 .fan = 4,
		 .room = 200,
		 .planes = 2},
		{.type = CUA_F64,
		 .elements = WILD,
		 .n = 200,
		 .targets = 60,
		 .overwrite = 1,
		 .planes = 3},
	};

	try_shapes("misfit", shapes, sizeof(shapes) / sizeof(shapes[0]), 1);
}
END_TEST

TCase *simt_scatter_cases(void)
{
	TCase *tc = simt_tcase("scatter");

	tcase_add_test(tc, records);
	tcase_add_test(tc, shared_records);
	tcase_add_test(tc, single);
	tcase_add_test(tc, overflow);
	tcase_add_test(tc, rows);
	tcase_add_test(tc, integers);
	tcase_add_test(tc, planes);
	tcase_add_test(tc, misfit);
	return tc;
}
