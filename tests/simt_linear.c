/* SPDX-License-Identifier: MIT */
/*
 * Histories of the hash map, checked by linear.h. The map is made by the library on the CPU
 * backend, and the cases do not know its layout. One lane runs at a time, so a plain counter gives
 * the moments.
 */
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

#define LINEAR_TICK(clock) (simt_moment(), (*(clock))++)
#include "linear_calls.h"
#include "simt_suites.h"

enum { LANES = 24, CALLS = 4, KEYS = 3, FILL = 32 };
enum { EVENTS = (LANES + 1) * CALLS + KEYS };

static struct cua_hashmap *map;
static struct cua_hashmap_view map_view;
static uint64_t slots, tick;
static unsigned fill, n_events;
static int way, by_quads;
static unsigned undecided;

/*
 * The planned calls of the setup and of the lanes. Then the calls made, and last the map's final
 * contents.
 */
static struct linear_event planned[LANES + 1][CALLS], events[EVENTS];
static unsigned n_planned[LANES + 1], first_event[LANES + 1];
#define BEFORE LANES

/*
 * In a map of two buckets at least two of these keys have different home buckets. 0 and ~0 are
 * likely special keys.
 */
static const uint64_t hot[KEYS] = {2, 0, ~(uint64_t)0};

/* ---- the map from outside ---- */

/*
 * Calls from outside the lanes go through the library: under the checker the inline functions are
 * for lanes.
 */
static void must(enum cua_status status)
{
	if (status != CUA_OK)
		abort();
}

/* Keys and values with the map's element type. */
union one {
	uint32_t narrow;
	uint64_t wide;
};

static union one one_of(uint64_t v, unsigned bytes)
{
	union one o;

	o.wide = v;
	if (bytes == 4)
		o.narrow = (uint32_t)v;
	return o;
}

static int outside_insert(uint64_t key, uint64_t value)
{
	union one k = one_of(key, map_view.key_size), v = one_of(value, map_view.value_size);
	uint8_t result = 0;

	must(cua_hashmap_insert_n(map, 1, &k, &v, &result));
	return result;
}

static int outside_find(uint64_t key, uint64_t *value)
{
	union one k = one_of(key, map_view.key_size), v = one_of(0, 8);
	uint8_t found = 0;

	must(cua_hashmap_find_n(map, 1, &k, &v, &found));
	*value = map_view.value_size == 4 ? v.narrow : v.wide;
	return found;
}

static int outside_erase(uint64_t key)
{
	union one k = one_of(key, map_view.key_size);
	uint8_t found = 0;

	must(cua_hashmap_erase_n(map, 1, &k, &found));
	return found;
}

static uint64_t outside_size(void)
{
	uint64_t size = 99;

	must(cua_hashmap_size(map, &size));
	return size;
}

static void history_setup(void)
{
	must(cua_hashmap_clear(map));
	for (unsigned i = 0; i < fill; i++)
		if (outside_insert(linear_fill_key(i), i) != CUA_HASHMAP_INSERTED)
			abort();
	tick = n_events = 0;
	for (unsigned lane = 0; lane <= LANES; lane++) {
		first_event[lane] = n_events;
		for (unsigned i = 0; i < n_planned[lane]; i++)
			events[n_events++] = planned[lane][i];
	}
	for (unsigned i = 0; map_view.no_erase && i < n_events; i++)
		if (events[i].op == LINEAR_ERASE)
			events[i].op = LINEAR_ADD;
	for (unsigned i = 0; i < n_planned[BEFORE]; i++) {
		struct linear_event *e = &events[first_event[BEFORE] + i];

		e->called = tick++;
		if (e->op == LINEAR_ADD)
			e->op = LINEAR_INSERT;
		e->result = e->op == LINEAR_ERASE ? (uint32_t)outside_erase(e->key)
						  : (uint32_t)outside_insert(e->key, e->given);
		e->returned = tick++;
	}
}

static void history_body(void)
{
	unsigned lane = simt_lane();

	if (by_quads) {
		linear_run_quad(&map_view, &tick, whole_warp(), events + first_event[lane],
				n_planned[lane], CALLS);
		return;
	}
	linear_run(&map_view, &tick, way, events + first_event[lane], n_planned[lane]);
}

static const char *history_check(void)
{
	static struct linear_report r;
	struct linear_event *last = events + n_events;
	uint64_t left = 0, value;

	for (unsigned i = 0; i < KEYS; i++) {
		struct linear_event *e = &events[n_events++];

		*e = (struct linear_event){.key = hot[i], .op = LINEAR_FIND, .lane = BEFORE};
		e->called = tick++;
		e->result = (uint32_t)outside_find(hot[i], &e->got);
		e->returned = tick++;
		left += e->result;
	}
	r = linear_check(events, n_events, map_view.value_size);
	/* many concurrent calls, as of a warp's quads: so some histories have too many orders to try */
	if (r.verdict == LINEAR_TOO_MUCH) {
		undecided++;
		r.verdict = LINEAR_OK;
	}
	if (r.verdict == LINEAR_OK)
		r = linear_check_full(events, n_events, slots - fill);
	if (r.verdict != LINEAR_OK) {
		linear_print(stdout, events, n_events, r.key);
		return r.message;
	}
	for (unsigned i = 0; i < fill; i++)
		if (!outside_find(linear_fill_key(i), &value) || value != i)
			return "a key that stays is gone";
	if (outside_size() != fill + left)
		return "the size is wrong";
	if (map_view.no_erase)
		return NULL;
	for (unsigned i = 0; i < KEYS; i++)
		if (outside_erase(hot[i]) != (int)last[i].result || outside_find(hot[i], &value))
			return "a key was there twice";
	return outside_size() == fill ? NULL : "the size is wrong in the end";
}

/* ---- the planned calls ---- */

static void plan(unsigned lane, enum linear_op op, uint64_t key, uint64_t given)
{
	planned[lane][n_planned[lane]++] = (struct linear_event){
		.key = key, .given = given, .expected = LINEAR_LAST, .op = op, .lane = lane};
}

static void plan_nothing(void)
{
	memset(n_planned, 0, sizeof(n_planned));
}

/*
 * A script: lanes separated by '|', with the setup's calls before the first '|'. A call is a letter
 * and the number of its key: i(nsert), a(ssign), + (add), f(ind), c(ontains), e(rase), x:
 * compare-exchange of the first call's value, s: insert of the same value as the first call's.
 */
static void plan_script(const char *script)
{
	const uint64_t first = 10;
	unsigned lane = BEFORE;

	plan_nothing();
	for (uint64_t value = first; *script; script++, value++) {
		static const char letters[] = "ia+fcexs";
		static const enum linear_op ops[] = {LINEAR_INSERT,
						     LINEAR_ASSIGN,
						     LINEAR_ADD,
						     LINEAR_FIND,
						     LINEAR_CONTAINS,
						     LINEAR_ERASE,
						     LINEAR_COMPARE_EXCHANGE,
						     LINEAR_INSERT};

		if (*script == '|') {
			lane = lane == BEFORE ? 0 : lane + 1;
			continue;
		}
		plan(lane, ops[strchr(letters, *script) - letters], hot[script[1] - '0'],
		     *script == 's' ? first : value);
		planned[lane][n_planned[lane] - 1].expected = first;
		script++;
	}
}

static void plan_random(uint64_t seed, unsigned lanes, unsigned calls, unsigned keys)
{
	uint64_t r = cua_hash_u64(0, seed);
	enum linear_mix mix = (enum linear_mix)(r % LINEAR_MIXES);

	plan_nothing();
	for (unsigned i = 0; i < keys; i++)
		if (r >> (8 + i) & 1)
			plan(BEFORE, LINEAR_INSERT, hot[i], r >> 32);
	for (unsigned lane = 0; lane < lanes; lane++) {
		n_planned[lane] = 1 + (unsigned)(cua_hash_u64(lane + 1, seed) % calls);
		linear_plan(planned[lane], n_planned[lane], seed, mix, hot, keys, lane);
	}
}

/* ---- maps ---- */

static struct cua_context *ctx;
static uint64_t schedules;

/* From type 4 on, pairs of more than 8 bytes have slot states. */
static void open_map(unsigned type, uint64_t capacity, uint64_t seed, int no_erase)
{
	static const enum cua_type types[2] = {CUA_U32, CUA_U64};
	struct cua_hashmap_options options = {.struct_size = sizeof(options),
					      .seed = seed,
					      .portable = type >> 2 & 1,
					      .no_erase = (uint32_t)no_erase};

	ck_assert_int_eq(cua_hashmap_create(ctx, &options, types[type & 1], types[type >> 1 & 1],
					    capacity, &map),
			 CUA_OK);
	ck_assert_int_eq(cua_hashmap_get_view(map, &map_view), CUA_OK);
	ck_assert_int_eq(cua_hashmap_capacity(map, &slots), CUA_OK);
}

static void close_map(void)
{
	ck_assert_int_eq(cua_hashmap_destroy(map), CUA_OK);
}

/* Every schedule of the planned calls, in a single block or in several. */
static void explore(const char *name, unsigned blocks, unsigned block_lanes, unsigned preemptions)
{
	struct simt_case c = {
		.name = name, .setup = history_setup, .body = history_body, .check = history_check};
	struct simt_report r;

	c.shape.blocks = blocks;
	c.shape.block_lanes = block_lanes;
	r = simt_explore(&c, preemptions, 400000);
	schedules += r.runs;
	ck_assert_msg(
		r.verdict == SIMT_OK,
		"%s, keys of %u and values of %u bytes, %u of %u slots taken, %u x %u lanes: %s: %s "
		"(run %llu)",
		name, map_view.key_size, map_view.value_size, fill, (unsigned)slots, blocks,
		block_lanes, simt_verdict_name(r.verdict), r.message, (unsigned long long)r.runs);
}

/*
 * Cases that are easily wrong:
 * - two inserts, two erases
 * - an erase and an insert during a find
 * - an update beside an erase
 * - a slot that another key claims, also with the same value
 * - an insert that finds a free slot before its key
 * - the last slot.
 */
static const char *const scripts[] = {
	"|i0|i0",         "i0|e0|e0",     "i0|e0i0|f0f0", "i0|e0a0|f0",     "i0|e0|+0f0",
	"i0|+0|+0",       "|+0|+0",       "i0|e0i1|f0f1", "i0|e0i1e1i0|f0", "i1i0|e1|i0f0",
	"i1i0|e1|+0",     "i1i0|e1i1|i0", "i1i0|e1|e0i0", "i0|e0|i0|f0",    "i0|e0i0|e0i0",
	"|i0|i1",         "i1|e1i0|i0",   "i1|e1|i0|i0",  "i0|a0|f0f0",     "i0|e0i1|i2f0",
	"i0i1|e0i0|e1i1", "i0i1|e0i0|i2", "|i0|i2",       "|i1|i2",         "i0|x0|x0",
	"i0|x0|e0i0",     "i0|e0s2|x0",   "i0|e0s0|x0f0",
};

START_TEST(linear_scripts)
{
	unsigned n = sizeof(scripts) / sizeof(scripts[0]);

	ctx = NULL;
	ck_assert_int_eq(cua_context_create(CUA_BACKEND_CPU, 0, &ctx), CUA_OK);
	ck_assert_int_eq(cua_context_set_threads(ctx, 1), CUA_OK);
	schedules = 0;
	for (unsigned type = 0; type < 8; type++) {
		open_map(type % 4, 1, 0, 0);
		if (type >= 4) {
			/* two buckets */
			uint64_t capacity = slots + 1;

			close_map();
			open_map(type % 4, capacity, 0, 0);
		}
		for (way = 0; way < 4; way++)
			for (unsigned room = type >= 4; room <= KEYS; room++) {
				fill = room ? (unsigned)slots - room : 0;
				/* a quick run takes a quarter of the scripts, the default a half */
				for (unsigned i = 0; i < n; i++) {
					unsigned lanes = 0, before = 0;

					plan_script(scripts[i]);
					while (n_planned[lanes])
						lanes++;
					before = n_planned[BEFORE];
					if (before > slots - fill ||
					    (i + type + room) % (unsigned)simt_scale(4, 2, 1))
						continue;
					explore(scripts[i], lanes, 1, lanes > 2 ? 1 : 2);
				}
			}
		close_map();
	}
	printf("simt: linear, scripts: %llu schedules\n", (unsigned long long)schedules);
	cua_context_destroy(ctx);
}
END_TEST

/* Warps whose lanes call together. */
static void try_warps(struct simt_case c, uint64_t r)
{
	plan_random(r + 3, 8, 2, KEYS);
	try_shape(c, 2, 4, 5);
	try_shape(c, 1, 8, 5);
	plan_random(r + 4, LANES, 2, KEYS);
	try_shape(c, 2, LANES / 2, 1);
	/* some lanes change the value of a key that other lanes erase */
	plan_nothing();
	plan(BEFORE, LINEAR_INSERT, hot[0], 1);
	for (unsigned lane = 0; lane < 8; lane++) {
		plan(lane,
		     lane >= 4  ? LINEAR_ERASE
		     : lane % 2 ? LINEAR_ADD
				: LINEAR_EXCHANGE,
		     hot[0], lane + 10);
		plan(lane, lane >= 4 ? LINEAR_INSERT : LINEAR_FIND, hot[0], lane + 20);
	}
	try_shape(c, 2, 4, 10);
	/* some lanes find a key that another lane has just inserted */
	plan_nothing();
	for (unsigned lane = 0; lane < 8; lane++) {
		plan(lane, LINEAR_INSERT, hot[lane % 2 * 2], lane + 10);
		plan(lane, LINEAR_FIND, hot[lane % 2 * 2], 0);
	}
	try_shape(c, 2, 4, 10);
}

START_TEST(linear_random)
{
	uint64_t seed = simt_seed();
	struct simt_case c = {.name = "linear",
			      .setup = history_setup,
			      .body = history_body,
			      .check = history_check};

	schedules = 0;
	ctx = NULL;
	ck_assert_int_eq(cua_context_create(CUA_BACKEND_CPU, 0, &ctx), CUA_OK);
	ck_assert_int_eq(cua_context_set_threads(ctx, 1), CUA_OK);
	for (int i = 0; i < simt_scale(40, 150, 400); i++) {
		uint64_t r = cua_hash_u64((uint64_t)i, seed), room = (r >> 16) % (KEYS + 2);
		unsigned lanes = 2 + (r >> 24) % 2, keys = 1 + (unsigned)((r >> 32) % KEYS);
		const int no_erase = (r >> 10 & 3) == 0;

		open_map(r % 8, 1, r, no_erase);
		if (r >> 8 & 1) {
			uint64_t one = slots;

			close_map();
			open_map(r % 4, one + 1, r, no_erase);
		}
		way = (int)(r >> 40 & 3);
		fill = room <= KEYS && room < slots ? (unsigned)(slots - room) : 0;
		/* few lanes in many orders: then many lanes in random orders */
		plan_random(r, lanes, 3, keys);
		explore("random calls", (r >> 9 & 1) ? lanes : 1, (r >> 9 & 1) ? 1 : lanes, 1);
		plan_random(r + 1, 6, 4, keys);
		try_shape(c, (r >> 9 & 1) ? 6 : 2, (r >> 9 & 1) ? 1 : 3, 5);
		plan_random(r + 2, LANES, 2, KEYS);
		try_shape(c, 2, LANES / 2, 1);
		by_quads = map_view.key_size == map_view.value_size;
		if (by_quads)
			try_warps(c, r);
		by_quads = 0;
		simt_together = 1;
		try_warps(c, r);
		way |= LINEAR_TOGETHER;
		try_warps(c, r);
		simt_together = 0;
		close_map();
	}
	printf("simt: linear, random calls: %llu schedules; %u histories undecided\n",
	       (unsigned long long)schedules, undecided);
	ck_assert_uint_lt(undecided, simt_quick() ? 4 : 40);
	cua_context_destroy(ctx);
}
END_TEST

TCase *simt_linear_cases(void)
{
	TCase *tc = simt_tcase("linear");

	tcase_add_test(tc, linear_scripts);
	tcase_add_test(tc, linear_random);
	return tc;
}
