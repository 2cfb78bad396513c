/* SPDX-License-Identifier: MIT */
/* The kernels of the filter: the functions of the GPU, with small blocks. */
#define CUA__FILTER_POLLS 2u
#define CUA__FILTER_PATIENCE 3u
#define CUA__FILTER_COUNT_LOADS 2u
/* the checker tracks words of 4 bytes */
#define CUA__FILTER_LOCAL uint32_t

#include <stdio.h>
#include <string.h>

#include "lib/kernels/filter_kernel.h"
#include "simt_suites.h"

enum { MOST = 5000, WORDS = 300, GUARD = 0x5a };
/* The number of earlier calls with short arrays; their words are left in control.short_tiles. */
enum { CALLS = 5 };
/* The kernel of the case. */
enum kernel { DIRECT, IN_ORDER, SHORT };

static struct cua__filter_kind kind;
static enum kernel kernel;
static struct cua__filter f;
static struct cua__filter_control control;
static uint64_t tiles[WORDS], demand, count;
/* The output of the counting pass of a partition in order. */
static uint64_t total_kept, range_kept[WORDS];
static uint32_t tile_kept[WORDS];

/* Elements of any size, and the index of the first element in each array. */
static unsigned char original[MOST * 16 + 64] __attribute__((aligned(128)));
static unsigned char x[MOST * 16 + 64] __attribute__((aligned(128)));
static unsigned char values[MOST * 16 + 192] __attribute__((aligned(128)));
static uint8_t flags[MOST + 8];
static uint32_t indexes[MOST + 40];
static unsigned x_at, flags_at, values_at;
static uint64_t demand_before;

/* The indexes of the selected elements in order, then of the rejected elements. */
static uint32_t expected[MOST], kept;

static uint64_t rng;
static uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 33;
}

static unsigned char *element(unsigned char *array, unsigned at, uint64_t i)
{
	return array + (at + i) * kind.size;
}

/*
 * Makes n elements; of_8 in 8 are selected. The key of an element is one of its bytes. All
 * elements differ if they are large enough.
 */
static void make(enum cua__filter_key key, uint32_t size, uint32_t warps, uint64_t n, unsigned of_8)
{
	uint32_t others = 0;

	memset(&f, 0, sizeof(f));
	memset(original, 0, sizeof(original));
	kind.key = f.key = key;
	kind.size = f.size = size;
	kind.loads = 4;
	kind.warps = warps;
	kind.lean = 0;
	kind.partitions = 0;
	/* blocks of two warps have no room for three stages */
	kind.stages = warps == 1 && n % 2 ? 3 : 2;
	f.n = n;
	x_at = (unsigned)(next_random() % (size == 16 ? 1 : 16 / size));
	flags_at = (unsigned)(next_random() % 5);
	values_at = (unsigned)(next_random() % (128 / size));
	/* selects integers below 200, or with inverted all others */
	f.low = 0;
	f.range = 199;
	f.inverted = key != CUA__FILTER_FLAG && next_random() % 2 != 0;
	kept = 0;
	for (uint64_t i = 0; i < n; i++) {
		int keep = next_random() % 8 < of_8;
		uint64_t v = keep != f.inverted ? next_random() % 200 : 200 + next_random() % 50;

		if (size > 2 && keep == f.inverted)
			v += (i + 1) << 8;
		memcpy(element(original, x_at, i), &v, size < 8 ? size : 8);
		if (size == 16)
			memcpy(element(original, x_at, i) + 8, &i, 8);
		flags[flags_at + i] = (uint8_t)(keep ? 1 + next_random() % 255 : 0);
		kept += (uint32_t)keep;
	}
	for (uint64_t i = 0, k = 0; i < n; i++)
		if (flags[flags_at + i])
			expected[k++] = (uint32_t)i;
		else
			expected[kept + others++] = (uint32_t)i;
	f.flags = flags + flags_at;
	f.x = x + x_at * size;
	f.capacity = n;
	f.values = values + values_at * size;
	f.count = &count;
	f.control = &control;
	f.tiles = tiles;
	f.total_kept = &total_kept;
	f.range_kept = range_kept;
	f.tile_kept = tile_kept;
	f.range_shift = (uint32_t)(n % 3);
	demand_before = 0;
}

/* The kind of the counting pass of a partition. */
static struct cua__filter_kind counting(void)
{
	struct cua__filter_kind k = kind;

	k.loads = CUA__FILTER_COUNT_LOADS;
	k.lean = k.partitions = 0;
	return k;
}

static uint64_t counted_tiles(void)
{
	return cua__filter_tiles(counting(), &f);
}

/* The number of kept elements in the tiles of the counting pass below a tile. */
static uint32_t kept_below(uint64_t tile)
{
	const uint64_t end =
		tile * cua__filter_tile(counting()) - cua__filter_shift(counting(), f.x);
	uint32_t below = 0;

	for (uint64_t i = 0; tile && i < f.n && i < end; i++)
		below += flags[flags_at + i] != 0;
	return below;
}

/* The output that the counting pass must have. */
static void expect_counts(uint64_t of_ranges[WORDS], uint32_t of_tiles[WORDS])
{
	for (uint64_t tile = 0; tile < counted_tiles(); tile++) {
		const uint64_t first = tile >> f.range_shift << f.range_shift;

		of_ranges[tile >> f.range_shift] = kept_below(first);
		of_tiles[tile] = kept_below(tile) - kept_below(first);
	}
}

static void setup(void)
{
	memcpy(x, original, sizeof(x));
	memset(values, GUARD, sizeof(values));
	memset(indexes, GUARD, sizeof(indexes));
	memset(&control, 0, sizeof(control));
	memset(tiles, 0, sizeof(tiles));
	control.short_ticket = CALLS << 16;
	for (unsigned i = 0; i < CUA__FILTER_SHORT; i++)
		control.short_tiles[i] = (i % (CALLS + 1)) << 16 | 77;
	demand = demand_before;
	total_kept = kept;
	count = 77;
	memset(range_kept, GUARD, sizeof(range_kept));
	memset(tile_kept, GUARD, sizeof(tile_kept));
	if (f.partition && f.ordered && kernel == DIRECT) {
		expect_counts(range_kept, tile_kept);
		count = kept;
	}
}

static void body(void)
{
	struct {
		struct cua__filter_shared shared;
		uint64_t stage[1024] __attribute__((aligned(16)));
		CUA__FILTER_LOCAL locals[1024];
	} *block = simt_shared(sizeof(*block));

	if (kernel == DIRECT)
		cua__filter_direct(kind, &f, &block->shared, block->stage, block->locals);
	else if (kernel == IN_ORDER)
		cua__filter_in_order(kind, &f, &block->shared, block->stage, block->locals);
	else
		cua__filter_short(kind, &f, &block->shared, block->stage, block->locals);
}

static char message[160];
static const char *wrong(const char *what, uint64_t i)
{
	snprintf(message, sizeof(message), "%s %d of %d, kept %d", what, (int)i, (int)f.n,
		 (int)kept);
	return message;
}

/*
 * Checks the output from offset `offset`: it must hold the elements or indexes expected[from..end -
 * 1].
 */
static const char *check_range(uint64_t from, uint64_t end, uint64_t offset, int ordered)
{
	static uint8_t seen[MOST];
	const unsigned char *out =
		f.in_place ? x + x_at * kind.size : values + values_at * kind.size;

	memset(seen, 0, sizeof(seen));
	for (uint64_t i = from; i < end; i++, offset++) {
		uint64_t e = expected[i];

		if (offset >= f.capacity)
			break;
		if (f.indexes && !ordered) {
			e = indexes[offset];
			if (e >= f.n || seen[e]++ ||
			    (flags[flags_at + e] != 0) != (from == 0 && i < kept))
				return wrong("index", i);
		} else if (f.indexes && indexes[offset] != e) {
			return wrong("index", i);
		}
		if (!f.values)
			continue;
		if (f.indexes || ordered) {
			if (memcmp(out + offset * kind.size, element(original, x_at, e), kind.size))
				return wrong("element", i);
			continue;
		}
		/* 16-byte elements by flags are all different */
		memcpy(&e, out + offset * kind.size + 8, 8);
		if (e >= f.n || seen[e]++ ||
		    (flags[flags_at + e] != 0) != (from == 0 && i < kept) ||
		    memcmp(out + offset * kind.size, element(original, x_at, e), kind.size))
			return wrong("element without order", i);
	}
	return NULL;
}

static const char *check(void)
{
	const char *problem = check_range(0, kept, demand_before, f.ordered);
	uint64_t stored = demand_before + (f.partition ? f.n : kept);

	if (stored > f.capacity)
		stored = f.capacity;
	if (!problem && f.partition)
		problem = check_range(kept, f.n, kept, f.ordered);
	if (problem)
		return problem;
	if (f.demand ? demand != demand_before + kept : count != kept)
		return wrong("the count is", f.demand ? demand - demand_before : count);
	if (!f.in_place)
		for (unsigned i = 0; i < kind.size; i++)
			if (values[(values_at + stored) * kind.size + i] != GUARD ||
			    (values_at && values[values_at * kind.size - 1] != GUARD))
				return "something was stored outside";
	if (f.indexes && indexes[stored] != GUARD * 0x01010101u)
		return "an index was stored outside";
	if (control.ticket || control.kept || control.rest || control.arrived || control.short_kept)
		return "the control block is not zero again";
	if (control.short_ticket != (uint64_t)(CALLS + (kernel == SHORT && f.ordered)) << 16)
		return "the calls are miscounted";
	return NULL;
}

/* ---- the counting pass of a partition in order ---- */

static void counting_setup(void)
{
	setup();
	memset(range_kept, GUARD, sizeof(range_kept));
	memset(tile_kept, GUARD, sizeof(tile_kept));
	total_kept = count = 77;
}

static void counting_body(void)
{
	struct {
		struct cua__filter_counts shared;
		CUA__FILTER_LOCAL counts[CUA__FILTER_RANGE * 64];
	} *block = simt_shared(sizeof(*block));

	cua__filter_count(counting(), &f, &block->shared, block->counts);
}

static const char *counting_check(void)
{
	static uint64_t of_ranges[WORDS];
	static uint32_t of_tiles[WORDS];

	memset(of_ranges, GUARD, sizeof(of_ranges));
	memset(of_tiles, GUARD, sizeof(of_tiles));
	expect_counts(of_ranges, of_tiles);
	if (memcmp(of_ranges, range_kept, sizeof(of_ranges)))
		return "the offset of a range is wrong";
	if (memcmp(of_tiles, tile_kept, sizeof(of_tiles)))
		return "the offset of a tile in its range is wrong";
	if (total_kept != kept || count != kept)
		return wrong("the count is", count);
	return control.arrived ? "the control block is not zero again" : NULL;
}

static void try_counting(unsigned runs)
{
	struct simt_case c = {.name = "counting pass",
			      .setup = counting_setup,
			      .body = counting_body,
			      .check = counting_check};

	try_shape(c, (unsigned)cua__filter_ranges(&f, counted_tiles()), kind.warps * 32, runs);
}

/* The last block alone, with several steps over the ranges. */
enum { RANGES = 300 };
static uint64_t total_of_ranges;

static void ranges_setup(void)
{
	for (uint64_t i = 0; i < RANGES; i++)
		range_kept[i] = i * i;
}

static void ranges_body(void)
{
	struct cua__filter_counts *sh = simt_shared(sizeof(*sh));
	const uint64_t total = cua__filter_add_ranges(kind, &f, RANGES, sh);

	if (cua_port_thread() == 0)
		CUA_WRITE(total_of_ranges, total);
}

static const char *ranges_check(void)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < RANGES; i++) {
		if (range_kept[i] != sum)
			return "the offset of a range is wrong";
		sum += i * i;
	}
	return total_of_ranges == sum ? NULL : "the total is wrong";
}

static void try_ranges(void)
{
	struct simt_case c = {.name = "offsets of ranges",
			      .setup = ranges_setup,
			      .body = ranges_body,
			      .check = ranges_check};

	rng = 15;
	for (unsigned warps = 1; warps < 3; warps++) {
		make(CUA__FILTER_FLAG, 16, warps, 100, 4);
		try_shape(c, 1, warps * 32, 8);
	}
}

static struct simt_case filter_case(const char *name)
{
	struct simt_case c = {.name = name, .setup = setup, .body = body, .check = check};

	return c;
}

/* With this number of blocks; a short array has a block for each tile. */
static void try_kernel(const char *name, enum kernel how, unsigned blocks, unsigned runs)
{
	kernel = how;
	if (kernel == SHORT) {
		kind.loads = 2;
		kind.lean = 0;
		f.tiles = control.short_tiles;
		blocks = (unsigned)cua__filter_tiles(kind, &f);
	}
	try_shape(filter_case(name), blocks, kind.warps * 32, runs);
}

static const struct shape {
	unsigned blocks, warps;
	uint64_t n;
	unsigned of_8;
} shapes[] = {
	{1, 1, 1, 8},   {2, 1, 127, 4},  {2, 1, 128, 8},  {2, 1, 129, 1},
	{3, 1, 900, 4}, {2, 2, 1500, 7}, {3, 1, 2000, 0}, {4, 1, 1999, 8},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* By flags, elements of 16 bytes: the smallest tiles. */
static void try_flagged(void)
{
	for (rng = 1; rng < 4; rng++)
		for (size_t i = 0; i < SHAPES; i++)
			for (unsigned how = 0; how < 4; how++) {
				static const char *const names[] = {"any order", "in order",
								    "short, any order",
								    "short, in order"};
				const struct shape *s = &shapes[i];
				const uint64_t n = how & 2 ? (s->n + 2) / 3 : s->n;

				make(CUA__FILTER_FLAG, 16, s->warps, n, s->of_8);
				kind.lean = i % 2;
				f.ordered = how & 1;
				if (i % 3 == 1)
					f.capacity = n / 3;
				if (i % 4 == 3) {
					demand_before = i % 8 == 3 ? 5 : n * 2;
					f.demand = &demand;
				}
				try_kernel(names[how],
					   how & 2     ? SHORT
					   : f.ordered ? IN_ORDER
						       : DIRECT,
					   s->blocks, 1);
			}
}

/* By comparison, in order; sometimes in place. Smaller elements would be reported as races. */
static void try_compared(void)
{
	static const uint32_t sizes[] = {4, 8};

	rng = 3;
	for (size_t i = 0; i < SHAPES; i++)
		for (size_t j = 0; j < 2; j++)
			for (int how = 0; how < 4; how++) {
				const int in_place = how & 1;
				const struct shape *s = &shapes[i];
				uint64_t n = s->n;

				make(CUA__FILTER_INTEGER, sizes[j], s->warps, n, s->of_8);
				kind.lean = f.ordered = 1;
				if (in_place) {
					f.values = (void *)(uintptr_t)f.x;
					f.in_place = 1;
				} else if (i % 3 == 2) {
					f.capacity = n / 4;
				}
				try_kernel(in_place ? "in place" : "compared",
					   how & 2 ? SHORT : IN_ORDER, s->blocks, 1);
			}
}

/* Indexes, with and without values, and partitions. */
static void try_indexes_and_partitions(void)
{
	for (rng = 5; rng < 7; rng++)
		for (size_t i = 0; i < SHAPES; i++)
			for (unsigned how = 0; how < 8; how++) {
				const struct shape *s = &shapes[i];

				make(how & 4 ? CUA__FILTER_FLAG : CUA__FILTER_INTEGER, 8, s->warps,
				     s->n, s->of_8);
				f.indexes = indexes;
				f.index_size = 4;
				f.ordered = how & 1;
				f.partition = kind.partitions = how >> 1 & 1;
				if (i % 2) {
					f.values = NULL;
					if (how & 4)
						f.x = NULL;
				}
				if (i % 4 == 3 && !f.partition) {
					demand_before = i % 8 == 3 ? 5 : s->n / 2;
					f.demand = &demand;
				}
				/* the checker has no room for 500 lanes and this many words */
				if ((f.ordered || !f.partition) && s->n <= 1500)
					try_kernel("indexes, short", SHORT, 0, 1);
				kind.loads = 4;
				f.tiles = tiles;
				if (f.ordered && f.partition)
					try_counting(1);
				try_kernel("indexes", f.ordered && !f.partition ? IN_ORDER : DIRECT,
					   s->blocks, 1);
			}
}

/*
 * Partitions of values alone, in order and without: all elements differ. Without order the check
 * needs elements of 16 bytes.
 */
static void try_lean_partitions(void)
{
	for (rng = 17; rng < 19; rng++)
		for (size_t i = 0; i < SHAPES; i++)
			for (unsigned how = 0; how < 4; how++) {
				const struct shape *s = &shapes[i];

				make(how == 1 ? CUA__FILTER_INTEGER : CUA__FILTER_FLAG,
				     how & 1 ? 4u << i % 2 : 16, s->warps,
				     how & 1 ? s->n : (s->n + 2) / 3, s->of_8);
				kind.lean = kind.partitions = f.partition = 1;
				f.ordered = how & 1;
				if (f.ordered)
					try_counting(1);
				try_kernel("partition", DIRECT, s->blocks, 1);
			}
}

/*
 * The scan alone. Block 0 is the scanning block. A warp of another block has 32 tiles. Each of its
 * lanes stores a plain word before it publishes the count of its tile. A lane that has loaded the
 * offset of its tile reads words of lower tiles.
 */
enum { SCANNED = 100 };
static uint64_t offset_of[SCANNED];
static uint32_t words[SCANNED];

static void scan_setup(void)
{
	setup();
	memset(offset_of, 0xff, sizeof(offset_of));
	memset(words, 0, sizeof(words));
}

static void scan_body(void)
{
	const uint32_t thread = cua_port_thread(), size = cua_port_block_size();

	if (cua_port_block() == 0) {
		struct cua__filter_shared *sh = simt_shared(sizeof(*sh));
		uint64_t first = 0, offset = 1000;
		uint32_t turn = 0;

		while (first < SCANNED) {
			uint32_t published =
				cua__filter_scan_step(kind, &f, sh, turn, SCANNED, first, &offset);

			first += published;
			turn ^= 1;
			if (!published)
				cua_port_pause(20);
		}
		return;
	}
	for (uint32_t tile = ((uint32_t)cua_port_block() - 1) * size + thread; tile < SCANNED;
	     tile += size * (simt_blocks() - 1)) {
		uint64_t word = 0;

		CUA_WRITE(words[tile], tile + 1);
		cua__filter_publish(&f, f.in_place, tile, CUA__FILTER_COUNT | (tile % 7));
		while (word < CUA__FILTER_OFFSET) {
			word = cua__filter_load_word(&f, f.in_place, tile);
			cua_port_pause(20);
		}
		CUA_WRITE(offset_of[tile], word & CUA__FILTER_NUMBER);
		for (uint32_t i = 0; f.in_place && i < tile; i += 1 + tile / 8)
			if (CUA_READ(words[i]) != i + 1)
				simt_fail("an offset was known before a lower tile was read");
	}
}

static const char *scan_check(void)
{
	uint64_t sum = 1000;

	for (unsigned i = 0; i < SCANNED; i++) {
		if (offset_of[i] != sum)
			return "an offset is wrong";
		sum += i % 7;
	}
	return NULL;
}

static void try_scan(void)
{
	struct simt_case c = {
		.name = "scan", .setup = scan_setup, .body = scan_body, .check = scan_check};

	rng = 9;
	for (unsigned warps = 1; warps < 3; warps++)
		for (int in_place = 0; in_place < 2; in_place++) {
			make(CUA__FILTER_FLAG, 16, warps, 100, 4);
			f.in_place = in_place;
			/* all tiles wait at once: there are as many lanes as tiles */
			try_shape(c, 1 + (SCANNED + warps * 32 - 1) / (warps * 32), warps * 32, 8);
		}
}

/*
 * Appends in order after existing items. The elements are so few that the last block finishes
 * early; the cursor must still advance only once.
 */
static void try_end_of_buffer(void)
{
	rng = 11;
	for (int how = 0; how < 2; how++) {
		make(CUA__FILTER_FLAG, 16, 1, 129, 8);
		f.ordered = 1;
		demand_before = 5;
		f.demand = &demand;
		try_kernel("end of a buffer", how ? SHORT : IN_ORDER, 3, 25);
	}
}

/* ---- runs of equal elements ---- */

static uint64_t starts[MOST + 2], expected_starts[MOST + 1], count_copy;

static void runs_setup(void)
{
	setup();
	memset(starts, GUARD, sizeof(starts));
	count_copy = 77;
}

static const char *runs_check(void)
{
	const uint64_t stored = kept < f.capacity ? kept : f.capacity;
	uint64_t guard;

	memset(&guard, GUARD, sizeof(guard));
	if (count != kept || count_copy != kept)
		return wrong("the count is", count);
	for (uint64_t i = 0; i < stored; i++)
		if (memcmp(values + (values_at + i) * kind.size,
			   element(original, x_at, expected_starts[i]), kind.size))
			return wrong("element", i);
	if (values[(values_at + stored) * kind.size] != GUARD || starts[stored + 1] != guard)
		return "something was stored outside";
	for (uint64_t i = 0; i <= stored; i++)
		if (starts[i] != expected_starts[i])
			return wrong("start", i);
	return control.ticket || control.arrived ? "the control block is not zero again" : NULL;
}

/*
 * Runs of up to most_length elements. The first key is 0. It is also the value before the array, so
 * only its index starts the first run.
 */
static void make_runs(uint32_t size, uint32_t warps, uint64_t n, uint64_t most_length)
{
	uint64_t key = 0;

	make(CUA__FILTER_CHANGE, size, warps, n, 8);
	/* as on a GPU: more loads have no room for their numbers */
	kind.loads = 2;
	f.ordered = 1;
	f.flags = NULL;
	f.indexes = starts;
	f.index_size = 8;
	f.count_copy = &count_copy;
	kept = 0;
	for (uint64_t i = 0; i < n; key ^= (uint64_t)1 << next_random() % (size * 8)) {
		uint64_t length = 1 + next_random() % most_length;

		expected_starts[kept++] = i;
		for (; length && i < n; length--)
			memcpy(element(original, x_at, i++), &key, size);
	}
	expected_starts[kept] = n;
	if (x_at)
		memcpy(original + (x_at - 1) * size, element(original, x_at, 0), size);
}

static void try_runs(void)
{
	static const uint64_t lengths[] = {1, 3, 40, MOST};
	struct simt_case c = {
		.name = "runs", .setup = runs_setup, .body = body, .check = runs_check};

	rng = 13;
	for (size_t i = 0; i < SHAPES; i++)
		for (int how = 0; how < 4; how++) {
			const struct shape *s = &shapes[i];

			make_runs(how & 1 ? 8 : 4, s->warps, s->n,
				  lengths[(i + (size_t)how / 2) % 4]);
			/* a capacity above the count, equal to it, one below it, and zero */
			f.capacity = i % 4 == 0   ? s->n
				     : i % 4 == 1 ? kept
				     : i % 4 == 2 ? kept - 1
						  : 0;
			if (!f.capacity)
				f.values = NULL;
			kernel = how & 2 ? SHORT : IN_ORDER;
			f.tiles = how & 2 ? control.short_tiles : tiles;
			try_shape(c, how & 2 ? (unsigned)cua__filter_tiles(kind, &f) : s->blocks,
				  s->warps * 32, 2);
		}
}

START_TEST(filter)
{
	try_flagged();
	try_compared();
	try_indexes_and_partitions();
	try_lean_partitions();
	try_ranges();
	try_scan();
	try_end_of_buffer();
}
END_TEST

START_TEST(runs)
{
	try_runs();
}
END_TEST

TCase *simt_filter_cases(void)
{
	TCase *tc = simt_tcase("filter");

	tcase_add_test(tc, filter);
	tcase_add_test(tc, runs);
	return tc;
}
