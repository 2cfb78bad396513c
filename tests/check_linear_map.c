/* SPDX-License-Identifier: MIT */
/*
 * Host threads on small hash maps, in many short rounds of calls on few keys: each round's history
 * must be linearizable. Threads sometimes stop between accesses; see noisy_port.h. In a second test
 * a thread stops between any two of its accesses and makes the calls of another thread.
 */
#include "common.h"

#include <pthread.h>
#include <sched.h>

#define LINEAR_TICK(clock)                                                                         \
	cua_port_fetch_add_u64(clock, 1, CUA_SEQ_CST, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL)
#include "linear_calls.h"

enum { LANES = 4, CALLS = 24, KEYS = 4, FILL = 32 };
enum { EVENTS = LANES * CALLS + KEYS };

/* ---- noise ---- */

/* One of `often` accesses is preceded by a delay; 0: no delays. */
static uint32_t often;
static _Thread_local uint64_t noise_random;

/* Calls of two other threads are made before accesses number at[0] and at[1] of a call. */
static struct {
	int armed;
	unsigned accesses, at[2];
} steps;
static void other_calls(int i);

void noise(void)
{
	uint64_t r;

	if (steps.armed) {
		unsigned access = steps.accesses++;

		steps.armed = 0;
		for (int i = 0; i < 2; i++)
			if (access == steps.at[i])
				other_calls(i);
		steps.armed = 1;
	}
	if (!often)
		return;
	r = noise_random = noise_random * 6364136223846793005u + 1442695040888963407u;
	r >>= 33;
	if (r % often)
		return;
	r /= often;
	if (r % 4 == 0)
		sched_yield();
	else
		for (volatile uint32_t spin = (uint32_t)(r % 400); spin; spin--)
			;
}

/* ---- rounds ---- */

static struct {
	struct cua_hashmap_view view;
	struct cua_hashmap *bulk; /* NULL: the first lane makes no bulk calls */
	enum linear_mix mix;
	int way;
	uint64_t seed;
	uint64_t keys[KEYS];
	unsigned n_keys, n_calls;
	uint64_t clock;
	struct linear_event events[EVENTS];
	pthread_barrier_t begin, end;
	uint32_t arrived;
	int bulk_failed, stop;
} now;

enum { BULK = 4 };

/*
 * Makes calls of the same operation by a bulk call. Its elements have no order, and each is in
 * progress until all are done.
 */
static int bulk_call(struct linear_event *e, size_t n)
{
	const size_t ks = now.view.key_size, vs = now.view.value_size;
	const enum linear_op op = (enum linear_op)e->op;
	char keys[BULK * 8], values[BULK * 8], got[BULK * 8];
	uint8_t results[BULK];
	enum cua_status status;

	for (size_t i = 0; i < n; i++) {
		memcpy(keys + i * ks, &e[i].key, ks);
		memcpy(values + i * vs, &e[i].given, vs);
		e[i].called = LINEAR_TICK(&now.clock);
	}
	switch (op) {
	case LINEAR_INSERT:
		status = cua_hashmap_insert_n(now.bulk, n, keys, values, results);
		break;
	case LINEAR_ASSIGN:
		status = cua_hashmap_assign_n(now.bulk, n, keys, values, results);
		break;
	case LINEAR_INSERT_OR_GET:
		status = cua_hashmap_insert_or_get_n(now.bulk, n, keys, values, got, results);
		break;
	case LINEAR_EXCHANGE:
		status = cua_hashmap_exchange_n(now.bulk, n, keys, values, got, results);
		break;
	case LINEAR_FIND: status = cua_hashmap_find_n(now.bulk, n, keys, got, results); break;
	case LINEAR_CONTAINS: status = cua_hashmap_contains_n(now.bulk, n, keys, results); break;
	case LINEAR_ERASE: status = cua_hashmap_erase_n(now.bulk, n, keys, results); break;
	default:
		status = cua_hashmap_update_n(now.bulk,
					      (enum cua_update)(CUA_UPDATE_ADD + (op - LINEAR_ADD)),
					      n, keys, values, results);
	}
	for (size_t i = 0; i < n; i++) {
		e[i].returned = LINEAR_TICK(&now.clock);
		e[i].result = results[i];
		e[i].got = 0;
		if (op == LINEAR_INSERT_OR_GET || op == LINEAR_EXCHANGE || op == LINEAR_FIND)
			memcpy(&e[i].got, got + i * vs, vs);
	}
	return status == CUA_OK;
}

/*
 * Like linear_run, but makes several calls at a time if the operation has a bulk call. Returns
 * whether all succeeded.
 */
static int run_bulk(struct linear_event *events, size_t n, uint64_t random)
{
	int well = 1;

	for (size_t i = 0, m; i < n; i += m) {
		const size_t most = 1 + test_random(&random) % BULK;

		m = 1;
		if (events[i].op == LINEAR_COMPARE_EXCHANGE) {
			linear_run(&now.view, &now.clock, LINEAR_TYPED, events + i, 1);
			continue;
		}
		while (m < most && i + m < n && events[i + m].op != LINEAR_COMPARE_EXCHANGE)
			events[i + m++].op = events[i].op;
		well &= bulk_call(events + i, m);
	}
	return well;
}

static void *lane_main(void *arg)
{
	uint32_t lane = (uint32_t)(uintptr_t)arg;

	for (;;) {
		pthread_barrier_wait(&now.begin);
		if (now.stop)
			return NULL;
		noise_random = now.seed + lane;
		__atomic_fetch_add(&now.arrived, 1, __ATOMIC_ACQ_REL);
		while (__atomic_load_n(&now.arrived, __ATOMIC_ACQUIRE) % LANES)
			sched_yield();
		if (lane || !now.bulk)
			linear_run(&now.view, &now.clock, now.way, now.events + lane * now.n_calls,
				   now.n_calls);
		else if (!run_bulk(now.events, now.n_calls, now.seed))
			now.bulk_failed = 1;
		pthread_barrier_wait(&now.end);
	}
}

/* A map, and keys that remain in it during a round. */
struct small_map {
	struct cua_hashmap *map;
	struct cua_hashmap_view view;
	uint64_t slots;
};

/*
 * The TYPES: two key sizes, two value sizes, portable or not; portable pairs of 12 and 16 bytes
 * have slot states.
 */
enum { TYPES = 8 };
static struct small_map new_map(struct cua_context *ctx, int type, uint64_t capacity)
{
	static const enum cua_type types[2] = {CUA_U32, CUA_U64};
	const struct cua_hashmap_options options = {.struct_size = sizeof(options),
						    .portable = (uint32_t)type >> 2};
	struct small_map m;

	ck_assert_cua(cua_hashmap_create(ctx, &options, types[type & 1], types[type >> 1 & 1],
					 capacity, &m.map));
	ck_assert_cua(cua_hashmap_get_view(m.map, &m.view));
	ck_assert_cua(cua_hashmap_capacity(m.map, &m.slots));
	return m;
}

static uint64_t size_of(const struct small_map *m)
{
	uint64_t size = 99;

	ck_assert_cua(cua_hashmap_size(m->map, &size));
	return size;
}

static void fail_round(const char *test, int round, uint64_t seed, uint64_t key, const char *why)
{
	linear_print(stdout, now.events, LANES * now.n_calls + now.n_keys, key);
	ck_abort_msg(
		"%s, round %d (seed %llu), keys of %u and values of %u bytes, %u keys, mix %d%s%s: %s",
		test, round, (unsigned long long)seed, now.view.key_size, now.view.value_size,
		now.n_keys, (int)now.mix, now.way & LINEAR_TYPED ? ", typed" : "",
		now.bulk ? ", bulk" : "", why);
}

/*
 * Runs a round on a map with `fill` permanent keys. Returns whether its history could be decided.
 */
static int run_round(const char *test, int round, const struct small_map *m, unsigned fill,
		     uint64_t seed)
{
	struct linear_event *last = now.events + LANES * now.n_calls;
	size_t n_events = LANES * now.n_calls + now.n_keys;
	struct linear_report r;
	uint64_t left = 0;
	int decided = 1;

	ck_assert_cua(cua_hashmap_clear(m->map));
	for (unsigned i = 0; i < fill; i++)
		EXPECT(cua_hashmap_insert(&m->view, linear_fill_key(i), i) == CUA_HASHMAP_INSERTED,
		       "there is no room for key %u", i);
	now.clock = 0;
	now.view = m->view;
	for (uint32_t lane = 0; lane < LANES; lane++)
		linear_plan(now.events + lane * now.n_calls, now.n_calls, now.seed, now.mix,
			    now.keys, now.n_keys, lane);
	pthread_barrier_wait(&now.begin);
	pthread_barrier_wait(&now.end);
	if (now.bulk_failed)
		fail_round(test, round, seed, now.keys[0], "a bulk call failed");
	for (unsigned i = 0; i < now.n_keys; i++)
		last[i] =
			(struct linear_event){.key = now.keys[i], .op = LINEAR_FIND, .lane = LANES};
	linear_run(&m->view, &now.clock, 0, last, now.n_keys);
	for (unsigned i = 0; i < now.n_keys; i++)
		left += last[i].result;
	r = linear_check(now.events, n_events, m->view.value_size);
	/*
	 * all elements of a bulk call are concurrent: so some histories have too many orders to try
	 */
	if (r.verdict == LINEAR_TOO_MUCH && now.bulk) {
		printf("%s, round %d (seed %llu): %s\n", test, round, (unsigned long long)seed,
		       r.message);
		decided = 0;
		r.verdict = LINEAR_OK;
	}
	if (r.verdict == LINEAR_OK)
		r = linear_check_full(now.events, n_events, m->slots - fill);
	if (r.verdict != LINEAR_OK)
		fail_round(test, round, seed, r.key, r.message);

	/* the permanent keys are unchanged, and no key was in the map twice */
	for (unsigned i = 0; i < fill; i++) {
		uint64_t value = 99;

		EXPECT(cua_hashmap_find(&m->view, linear_fill_key(i), &value) && value == i,
		       "%s, round %d (seed %llu): key %u, which stays, is gone", test, round,
		       (unsigned long long)seed, i);
	}
	if (size_of(m) != fill + left)
		fail_round(test, round, seed, now.keys[0], "the size is wrong");
	for (unsigned i = 0; i < now.n_keys; i++)
		if (cua_hashmap_erase(&m->view, now.keys[i]) != (int)last[i].result ||
		    cua_hashmap_contains(&m->view, now.keys[i]))
			fail_round(test, round, seed, now.keys[i], "the key was there twice");
	if (size_of(m) != fill)
		fail_round(test, round, seed, now.keys[0], "the size is wrong in the end");
	return decided;
}

/* The number of permanent keys: leaves slots for 0 to KEYS keys, or starts empty. */
static unsigned choose_fill(uint64_t *seed, const struct small_map *m)
{
	uint64_t r = test_random(seed), room = (r >> 8) % (KEYS + 1);

	if (r % 4 == 0 || m->slots > FILL)
		return 0;
	return m->slots > room ? (unsigned)(m->slots - room) : 0;
}

static void run_rounds(const char *test, enum linear_mix mix)
{
	uint64_t seed = test_seed(test);
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	pthread_t threads[LANES];
	struct small_map maps[TYPES][3];
	const int rounds = test_scale(500, 2000, 6000);
	/* on a busy machine a thread may wait long for a processor */
	const uint64_t end = cua_port_clock_ns() + (uint64_t)test_scale(2, 4, 10) * 1000000000;
	int round, undecided = 0;

	ck_assert_cua(cua_context_set_threads(ctx, 1));
	for (int t = 0; t < TYPES; t++) {
		/* a bucket, and the next larger maps */
		maps[t][0] = new_map(ctx, t, 1);
		maps[t][1] = new_map(ctx, t, maps[t][0].slots + 1);
		maps[t][2] = new_map(ctx, t, maps[t][1].slots + 1);
	}
	ck_assert_int_eq(pthread_barrier_init(&now.begin, NULL, LANES + 1), 0);
	ck_assert_int_eq(pthread_barrier_init(&now.end, NULL, LANES + 1), 0);
	for (uintptr_t i = 0; i < LANES; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, lane_main, (void *)i), 0);
	for (round = 0; round < rounds && (round < 50 || cua_port_clock_ns() < end); round++) {
		uint64_t first = seed, r = test_random(&seed);
		const struct small_map *m = &maps[r % TYPES][(r >> 3) % 3];

		now.bulk = (r >> 40) % 3 ? NULL : m->map;
		now.mix = mix;
		now.way = (int)((r >> 8) % 4);
		now.n_keys = 1 + (unsigned)(r >> 16) % KEYS;
		now.n_calls = 4 + (unsigned)(r >> 24) % (CALLS - 3);
		now.seed = test_random(&seed);
		linear_choose_keys(test_random(&seed), m->view.key_size, now.keys, now.n_keys);
		/* no other thread is running */
		often = (uint32_t[]){0, 3, 20, 100}[(r >> 32) % 4];
		undecided += !run_round(test, round, m, choose_fill(&seed, m), first);
	}
	if (undecided)
		printf("%s: %d of %d histories had too many orders to try\n", test, undecided,
		       round);
	ck_assert_int_le(undecided, 1 + round / 1000);
	now.stop = 1;
	pthread_barrier_wait(&now.begin);
	for (int i = 0; i < LANES; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&now.begin);
	pthread_barrier_destroy(&now.end);
	for (int t = 0; t < TYPES; t++)
		for (int i = 0; i < 3; i++)
			ck_assert_cua(cua_hashmap_destroy(maps[t][i].map));
	cua_context_destroy(ctx);
}

START_TEST(any_mix)
{
	run_rounds("any_mix", LINEAR_MIX_ALL);
}
END_TEST

START_TEST(churn)
{
	run_rounds("churn", LINEAR_MIX_CHURN);
}
END_TEST

START_TEST(watched)
{
	run_rounds("watched", LINEAR_MIX_WATCH);
}
END_TEST

START_TEST(sums)
{
	run_rounds("sums", LINEAR_MIX_SUMS);
}
END_TEST

/* ---- keys that their owners repeatedly erase and insert ---- */

enum { OWN = 2, ALL = OWN * LANES / 2 };

static struct {
	struct cua_hashmap_view view;
	uint32_t stamps[ALL], owners_done;
	uint32_t generations;
	uint64_t wrong[LANES];
	pthread_barrier_t begin;
} storm;

/* Half of the lanes own keys, the other half searches. */
static void *storm_main(void *arg)
{
	uint32_t lane = (uint32_t)(uintptr_t)arg;
	uint64_t random = lane, wrong = 0;

	noise_random = lane;
	pthread_barrier_wait(&storm.begin);
	if (lane < LANES / 2) {
		for (uint32_t g = 1; g <= storm.generations; g++)
			for (uint32_t key = OWN * lane; key < OWN * (lane + 1); key++)
				wrong += linear_live(&storm.view, key, g, &storm.stamps[key]);
		__atomic_fetch_add(&storm.owners_done, 1, __ATOMIC_RELEASE);
	} else {
		do {
			uint32_t key = (uint32_t)(test_random(&random) % ALL), seen = 0;

			for (int i = 0; i < 8; i++)
				wrong += linear_look(&storm.view, key, &storm.stamps[key], &seen);
		} while (__atomic_load_n(&storm.owners_done, __ATOMIC_ACQUIRE) < LANES / 2);
	}
	storm.wrong[lane] = wrong;
	return NULL;
}

START_TEST(generations)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	pthread_t threads[LANES];

	for (int type = 0; type < TYPES; type++)
		for (uint32_t noisy = 0; noisy < 2; noisy++) {
			struct small_map m = new_map(ctx, type, ALL);

			memset(&storm, 0, sizeof(storm));
			storm.view = m.view;
			storm.generations = noisy ? 300 : 10000;
			if (test_quick())
				storm.generations /= 20;
			often = noisy * 10;
			ck_assert_int_eq(pthread_barrier_init(&storm.begin, NULL, LANES), 0);
			for (unsigned i = 0; i < m.slots - ALL; i++)
				ck_assert_int_eq(cua_hashmap_insert(&m.view, linear_fill_key(i), i),
						 CUA_HASHMAP_INSERTED);
			for (uintptr_t i = 0; i < LANES; i++)
				ck_assert_int_eq(
					pthread_create(&threads[i], NULL, storm_main, (void *)i),
					0);
			for (int i = 0; i < LANES; i++)
				ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
			for (int i = 0; i < LANES; i++)
				ck_assert_uint_eq(storm.wrong[i], 0);
			pthread_barrier_destroy(&storm.begin);
			ck_assert_uint_eq(size_of(&m), m.slots - ALL);
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- calls of another thread between any two accesses of a call ---- */

enum { STEP_KEYS = 4, STEP_EVENTS = 24 };
CUA_DEFINE_HASHSET(long_keys, struct cua_u128)

static struct {
	struct cua_hashmap_view view;
	struct linear_event events[STEP_EVENTS];
	size_t n_events;
	uint64_t clock;
	int other[2];
} step;

/* Makes and records a call; keys by number. The 16-byte keys share halves. */
static uint32_t step_call(enum linear_op op, unsigned key, uint32_t lane)
{
	static const uint64_t keys[STEP_KEYS] = {0, 5, ~(uint64_t)0, 1};
	static const struct cua_u128 longs[STEP_KEYS] = {{5, 6}, {5, 7}, {9, 6}, {77, 1}};
	size_t i = step.n_events++;
	struct linear_event e = {.key = keys[key], .op = op, .lane = lane, .given = 100 + i};
	int result;

	if (step.view.key_size == 4)
		e.key = (uint32_t)e.key;
	e.called = step.clock++;
	if (step.view.key_size != 16)
		result = linear_untyped(&step.view, &e);
	else if (op == LINEAR_INSERT)
		result = long_keys_insert(&step.view, longs[key]);
	else if (op == LINEAR_ERASE)
		result = long_keys_erase(&step.view, longs[key]);
	else
		result = long_keys_contains(&step.view, longs[key]);
	e.result = (uint32_t)result;
	e.returned = step.clock++;
	step.events[i] = e;
	return e.result;
}

/* The calls of the other thread: each erases, inserts, or erases and then inserts. */
static const struct {
	int erase, insert; /* -1: none */
} others[] = {{-1, -1}, {-1, 0}, {0, -1}, {-1, 1}, {1, -1}, {0, 1}, {1, 0}, {1, 2}, {2, 1}};
enum { OTHERS = sizeof(others) / sizeof(others[0]) };

static void other_calls(int i)
{
	int other = step.other[i];

	if (others[other].erase >= 0)
		step_call(LINEAR_ERASE, (unsigned)others[other].erase, 1);
	if (others[other].insert >= 0)
		step_call(LINEAR_INSERT, (unsigned)others[other].insert, 1);
}

/* Returns whether both interruptions happened. */
static int step_round(const struct small_map *m, const char *before, enum linear_op op,
		      unsigned first, unsigned second)
{
	struct linear_report r;
	uint32_t there[STEP_KEYS];

	ck_assert_cua(cua_hashmap_clear(m->map));
	step.view = m->view;
	step.n_events = 0;
	step.clock = 0;
	for (; *before; before++)
		step_call(LINEAR_INSERT, (unsigned)(*before - '0'), 0);
	steps.at[0] = first;
	steps.at[1] = second;
	steps.accesses = 0;
	steps.armed = 1;
	step_call(op, 0, 0);
	steps.armed = 0;
	if (steps.accesses <= second)
		return 0;
	for (unsigned key = 0; key < STEP_KEYS; key++)
		there[key] = step_call(LINEAR_CONTAINS, key, 0);
	for (unsigned key = 0; key < STEP_KEYS; key++)
		r.verdict = step_call(LINEAR_ERASE, key, 0) == there[key] &&
					    !step_call(LINEAR_CONTAINS, key, 0) &&
					    (key == 0 || r.verdict == LINEAR_OK)
				    ? LINEAR_OK
				    : LINEAR_WRONG;
	snprintf(r.message, sizeof(r.message), "a key was there twice");
	if (r.verdict == LINEAR_OK)
		r = linear_check(step.events, step.n_events, m->view.value_size);
	if (r.verdict == LINEAR_OK)
		r = linear_check_full(step.events, step.n_events, m->slots);
	if (r.verdict != LINEAR_OK) {
		for (unsigned i = 0; i < step.n_events; i++)
			linear_print(stdout, step.events + i, 1, step.events[i].key);
		ck_abort_msg(
			"keys of %u and values of %u bytes, call %d, others %d and %d before accesses %u and %u: %s",
			m->view.key_size, m->view.value_size, (int)op, step.other[0], step.other[1],
			first, second, r.message);
	}
	return 1;
}

START_TEST(between_accesses)
{
	static const char *const before[] = {"", "0", "1", "01", "10", "031", "012"};
	static const enum linear_op ops[] = {LINEAR_INSERT, LINEAR_ASSIGN, LINEAR_ADD,
					     LINEAR_FIND,   LINEAR_ERASE,  LINEAR_CONTAINS};
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	uint64_t rounds = 0;

	often = 0;
	ck_assert_cua(cua_context_set_threads(ctx, 1));
	for (int type = 0; type < 5; type++) {
		struct small_map m;

		if (type < 4) {
			m = new_map(ctx, type, 1);
		} else {
			ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U128, CUA_NONE, 1, &m.map));
			ck_assert_cua(cua_hashmap_get_view(m.map, &m.view));
			ck_assert_cua(cua_hashmap_capacity(m.map, &m.slots));
		}
		for (unsigned i = 0; i < 7 * 6 * OTHERS * OTHERS; i++) {
			const char *keys = before[i % 7];
			enum linear_op op = ops[i / 7 % 6];
			size_t inserts = strlen(keys) + (op < LINEAR_FIND);
			unsigned first, second;

			step.other[0] = (int)(i / 42 % OTHERS);
			step.other[1] = (int)(i / 42 / OTHERS);
			for (int j = 0; j < 2; j++)
				inserts += others[step.other[j]].insert >= 0;
			/*
			 * in a full map the other call would wait for the unlock, count or free of
			 * the interrupted call
			 */
			if ((op != LINEAR_FIND && op != LINEAR_CONTAINS && inserts > m.slots) ||
			    (type == 4 &&
			     (op == LINEAR_ASSIGN || op == LINEAR_ADD || op == LINEAR_FIND)))
				continue;
			for (first = 0; step_round(&m, keys, op, first, first); first++)
				for (second = first + 1; step_round(&m, keys, op, first, second);
				     second++)
					rounds++;
		}
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	printf("between_accesses: %llu histories\n", (unsigned long long)rounds);
	cua_context_destroy(ctx);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("linear_map");
	TCase *tcase = tcase_create("linear_map");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, any_mix);
	tcase_add_test(tcase, churn);
	tcase_add_test(tcase, watched);
	tcase_add_test(tcase, sums);
	tcase_add_test(tcase, generations);
	tcase_add_test(tcase, between_accesses);
	suite_add_tcase(suite, tcase);
	return test_run(suite, CUA_BACKEND_CPU);
}
