/* SPDX-License-Identifier: MIT */
/*
 * The checker of linear.h: histories known to be right or wrong, and random histories against all
 * their orders.
 */
#include "common.h"
#include "linear.h"

#define KEY 7

/* A call on KEY. */
static struct linear_event call(uint64_t called, uint64_t returned, enum linear_op op,
				uint64_t given, unsigned result, uint64_t got)
{
	struct linear_event e = {.key = KEY,
				 .given = given,
				 .got = got,
				 .called = called,
				 .returned = returned,
				 .op = op,
				 .result = result};

	return e;
}

static void expect(const struct linear_event *events, size_t n, enum linear_verdict expected,
		   const char *what)
{
	struct linear_report r = linear_check(events, n, 8);

	if (r.verdict != expected)
		linear_print(stdout, events, n, KEY);
	ck_assert_msg(r.verdict == expected, "%s: verdict %d, expected %d: %s", what,
		      (int)r.verdict, (int)expected, r.message);
	ck_assert(expected != LINEAR_WRONG || r.key == KEY);
}

#define HISTORY(expected, what, ...)                                                               \
	do {                                                                                       \
		const struct linear_event events[] = {__VA_ARGS__};                                \
		expect(events, sizeof(events) / sizeof(events[0]), expected, what);                \
	} while (0)
#define RIGHT(what, ...) HISTORY(LINEAR_OK, what, __VA_ARGS__)
#define WRONG(what, ...) HISTORY(LINEAR_WRONG, what, __VA_ARGS__)

#define INSERT(a, b, v, result) call(a, b, LINEAR_INSERT, v, LINEAR_##result, 0)
#define ASSIGN(a, b, v, result) call(a, b, LINEAR_ASSIGN, v, LINEAR_##result, 0)
#define ADD(a, b, v, result) call(a, b, LINEAR_ADD, v, LINEAR_##result, 0)
#define FIND(a, b, v) call(a, b, LINEAR_FIND, 0, 1, v)
#define MISS(a, b) call(a, b, LINEAR_FIND, 0, 0, 0)
#define CONTAINS(a, b, result) call(a, b, LINEAR_CONTAINS, 0, result, 0)
#define ERASE(a, b, result) call(a, b, LINEAR_ERASE, 0, result, 0)

START_TEST(known)
{
	ck_assert_int_eq(linear_check(NULL, 0, 8).verdict, LINEAR_OK);
	RIGHT("a call", MISS(0, 1));
	WRONG("a hit on nothing", FIND(0, 1, 0));
	WRONG("an erase of nothing", ERASE(0, 1, 1));
	RIGHT("one by one", INSERT(0, 1, 5, INSERTED), INSERT(2, 3, 6, EXISTS), FIND(4, 5, 5),
	      ASSIGN(6, 7, 9, EXISTS), ADD(8, 9, 3, EXISTS), FIND(10, 11, 12), ERASE(12, 13, 1),
	      ERASE(14, 15, 0), MISS(16, 17), ADD(18, 19, 4, INSERTED), FIND(20, 21, 4));
	WRONG("both inserted", INSERT(0, 2, 1, INSERTED), INSERT(1, 3, 2, INSERTED));
	RIGHT("both inserted, with an erase between", INSERT(0, 5, 1, INSERTED),
	      INSERT(1, 4, 2, INSERTED), ERASE(2, 3, 1));
	WRONG("both inserted, and an erase after them", INSERT(0, 2, 1, INSERTED),
	      INSERT(1, 3, 2, INSERTED), ERASE(4, 5, 1));
	WRONG("nobody inserted", INSERT(0, 2, 1, EXISTS), INSERT(1, 3, 2, EXISTS));
	WRONG("a lost update", ADD(0, 1, 1, INSERTED), ADD(2, 5, 1, EXISTS), ADD(3, 4, 1, EXISTS),
	      FIND(6, 7, 2));
	RIGHT("both updates", ADD(0, 1, 1, INSERTED), ADD(2, 5, 1, EXISTS), ADD(3, 4, 1, EXISTS),
	      FIND(6, 7, 3));
	RIGHT("between two updates", ADD(0, 1, 1, INSERTED), ADD(2, 7, 1, EXISTS),
	      ADD(3, 4, 1, EXISTS), FIND(5, 6, 2), FIND(8, 9, 3));
	WRONG("a stale read", INSERT(0, 1, 1, INSERTED), ASSIGN(2, 3, 2, EXISTS), FIND(4, 5, 1));
	RIGHT("a read beside a write", INSERT(0, 1, 1, INSERTED), ASSIGN(2, 5, 2, EXISTS),
	      FIND(3, 4, 1));
	RIGHT("a read of a write that goes on", INSERT(0, 1, 1, INSERTED), ASSIGN(2, 5, 2, EXISTS),
	      FIND(3, 4, 2));
	WRONG("reads that go back", INSERT(0, 1, 1, INSERTED), ASSIGN(2, 9, 2, EXISTS),
	      FIND(3, 4, 2), FIND(5, 6, 1));
	WRONG("reads of two writes in both orders", INSERT(0, 1, 0, INSERTED),
	      ASSIGN(2, 20, 1, EXISTS), ASSIGN(3, 21, 2, EXISTS), FIND(4, 5, 1), FIND(6, 7, 2),
	      FIND(8, 9, 1));
	WRONG("a value that nobody wrote", INSERT(0, 1, 1, INSERTED), FIND(2, 3, 4));
	WRONG("a key back from the dead", INSERT(0, 1, 1, INSERTED), ERASE(2, 3, 1), FIND(4, 5, 1));
	WRONG("the value of an earlier life", INSERT(0, 1, 1, INSERTED), ERASE(2, 3, 1),
	      INSERT(4, 5, 2, INSERTED), FIND(6, 7, 1));
	WRONG("a miss between two hits", INSERT(0, 1, 1, INSERTED), FIND(2, 3, 1), MISS(4, 5),
	      FIND(6, 7, 1));
	WRONG("a miss between two hits, in another key's erase", INSERT(0, 1, 1, INSERTED),
	      FIND(3, 4, 1), MISS(5, 6), FIND(7, 8, 1), ERASE(2, 9, 0));
	RIGHT("a miss between two lives", INSERT(0, 1, 1, INSERTED), ERASE(2, 9, 1),
	      INSERT(3, 10, 1, INSERTED), FIND(4, 5, 1), MISS(6, 7), FIND(8, 11, 1));
	WRONG("erased twice", INSERT(0, 1, 1, INSERTED), ERASE(2, 4, 1), ERASE(3, 5, 1));
	WRONG("erased by nobody", INSERT(0, 1, 1, INSERTED), ERASE(2, 4, 0), ERASE(3, 5, 0));
	WRONG("an erase that was not", INSERT(0, 1, 1, INSERTED), ERASE(2, 3, 1),
	      CONTAINS(4, 5, 1));
	RIGHT("full where the key was absent", INSERT(0, 3, 1, FULL), INSERT(1, 2, 2, INSERTED));
	WRONG("full where the key was there", INSERT(0, 1, 1, INSERTED), INSERT(2, 3, 2, FULL));
	WRONG("no result", INSERT(0, 1, 1, ABSENT));
	WRONG("a response before its call", INSERT(1, 0, 1, INSERTED));
	WRONG("no operation", call(0, 1, LINEAR_OPS, 0, 0, 0));
}
END_TEST

#define CALL(a, b, op, v, result, got) call(a, b, LINEAR_##op, v, LINEAR_##result, got)
static struct linear_event compare(uint64_t called, uint64_t returned, uint64_t expected,
				   uint64_t given, unsigned result, uint64_t got)
{
	struct linear_event e = call(called, returned, LINEAR_COMPARE_EXCHANGE, given, result, got);

	e.expected = expected;
	return e;
}

START_TEST(known_values)
{
	struct linear_event narrow[3];

	RIGHT("each operation", CALL(0, 1, MIN, 12, INSERTED, 0), CALL(2, 3, MIN, 15, EXISTS, 0),
	      FIND(4, 5, 12), CALL(6, 7, MAX, 10, EXISTS, 0), CALL(8, 9, MAX, 14, EXISTS, 0),
	      FIND(10, 11, 14), CALL(12, 13, AND, 11, EXISTS, 0), FIND(14, 15, 10),
	      CALL(16, 17, OR, 5, EXISTS, 0), FIND(18, 19, 15), CALL(20, 21, XOR, 6, EXISTS, 0),
	      FIND(22, 23, 9), CALL(24, 25, EXCHANGE, 2, EXISTS, 9),
	      CALL(26, 27, INSERT_OR_GET, 3, EXISTS, 2), compare(28, 29, 3, 4, LINEAR_DIFFERS, 2),
	      compare(30, 31, 2, 4, LINEAR_EXISTS, 0), FIND(32, 33, 4), ERASE(34, 35, 1),
	      compare(36, 37, 4, 5, LINEAR_ABSENT, 0), CALL(38, 39, EXCHANGE, 6, INSERTED, 0),
	      ERASE(40, 41, 1), CALL(42, 43, INSERT_OR_GET, 8, INSERTED, 8), FIND(44, 45, 8));
	WRONG("two exchanges got one value", INSERT(0, 1, 1, INSERTED),
	      CALL(2, 4, EXCHANGE, 2, EXISTS, 1), CALL(3, 5, EXCHANGE, 3, EXISTS, 1));
	WRONG("two won a comparison", INSERT(0, 1, 1, INSERTED),
	      compare(2, 4, 1, 2, LINEAR_EXISTS, 0), compare(3, 5, 1, 3, LINEAR_EXISTS, 0));
	RIGHT("one won, one lost", INSERT(0, 1, 1, INSERTED), compare(2, 4, 1, 2, LINEAR_EXISTS, 0),
	      compare(3, 5, 1, 3, LINEAR_DIFFERS, 2));
	WRONG("a comparison that lost for nothing", INSERT(0, 1, 1, INSERTED),
	      compare(2, 3, 1, 2, LINEAR_DIFFERS, 1));
	WRONG("not the value that is there", INSERT(0, 1, 1, INSERTED),
	      CALL(2, 3, INSERT_OR_GET, 2, EXISTS, 2));

	/* sums of 32 bits wrap */
	narrow[0] = ADD(0, 1, 0xffffffff, INSERTED);
	narrow[1] = ADD(2, 3, 2, EXISTS);
	narrow[2] = FIND(4, 5, 1);
	ck_assert_int_eq(linear_check(narrow, 3, 4).verdict, LINEAR_OK);
	ck_assert_int_eq(linear_check(narrow, 3, 8).verdict, LINEAR_WRONG);
	/* keys are checked independently */
	narrow[2].key = KEY + 1;
	ck_assert_int_eq(linear_check(narrow, 3, 4).verdict, LINEAR_WRONG);
	ck_assert_uint_eq(linear_check(narrow, 3, 4).key, KEY + 1);
	/* a set has no values */
	narrow[2] = FIND(4, 5, 0);
	ck_assert_int_eq(linear_check(narrow, 3, 0).verdict, LINEAR_OK);
}
END_TEST

START_TEST(known_full)
{
	struct linear_event e[6] = {INSERT(0, 1, 1, INSERTED), INSERT(2, 4, 1, INSERTED),
				    ERASE(8, 12, 1),           INSERT(3, 5, 1, FULL),
				    INSERT(10, 14, 1, FULL),   INSERT(13, 15, 1, FULL)};

	e[1].key = e[2].key = 1;
	e[3].key = e[4].key = e[5].key = 2;
	ck_assert_int_eq(linear_check(e, 6, 8).verdict, LINEAR_OK);
	ck_assert_int_eq(linear_check_full(e, 4, 2).verdict, LINEAR_OK);
	ck_assert_int_eq(linear_check_full(e, 4, 3).verdict, LINEAR_WRONG);
	/* the erase may take effect after the insert that it overlaps */
	ck_assert_int_eq(linear_check_full(e, 5, 2).verdict, LINEAR_OK);
	ck_assert_int_eq(linear_check_full(e, 6, 2).verdict, LINEAR_WRONG);
	ck_assert_int_eq(linear_check_full(e, 6, 1).verdict, LINEAR_OK);
}
END_TEST

/* ---- random histories ---- */

#define MOST 4096
#define LANES 64

/*
 * Right histories: lanes that invoke, have their moment and respond, in random order. Few values,
 * so that many orders are possible.
 */
static size_t make_history(uint64_t *seed, unsigned lanes, unsigned keys, size_t n, unsigned values,
			   struct linear_event *events)
{
	struct linear_state states[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
	struct linear_event *now[LANES] = {NULL};
	int had_moment[LANES] = {0};
	uint64_t clock = 0;
	size_t begun = 0, ended = 0;

	while (ended < n) {
		unsigned lane = (unsigned)(test_random(seed) % lanes);

		if (!now[lane] && begun < n) {
			struct linear_event *e = now[lane] = &events[begun++];

			memset(e, 0, sizeof(*e));
			e->key = test_random(seed) % keys;
			/* read-only operations are rarer */
			e->op = (uint32_t)(test_random(seed) % (LINEAR_OPS + 4)) % LINEAR_OPS;
			e->given = test_random(seed) % values;
			e->expected = test_random(seed) % values;
			e->lane = lane;
			e->called = clock++;
			had_moment[lane] = 0;
		} else if (now[lane] && !had_moment[lane]) {
			linear_apply(&states[now[lane]->key], now[lane], 8);
			had_moment[lane] = 1;
		} else if (now[lane]) {
			now[lane]->returned = clock++;
			now[lane] = NULL;
			ended++;
		}
	}
	return n;
}

/*
 * Tries every order of all calls that respects time. Returns whether some order gives each call its
 * result.
 */
static int some_order(const struct linear_event *events, size_t n, unsigned done,
		      const struct linear_state *states)
{
	if (done == (1u << n) - 1)
		return 1;
	for (size_t i = 0; i < n; i++) {
		struct linear_event e = events[i];
		struct linear_state then[4];
		int may = !(done >> i & 1);

		for (size_t j = 0; j < n && may; j++)
			may = done >> j & 1 || events[j].returned > e.called;
		if (!may)
			continue;
		memcpy(then, states, sizeof(then));
		linear_apply(&then[e.key], &e, 8);
		if (e.result == events[i].result && e.got == events[i].got &&
		    some_order(events, n, done | 1u << i, then))
			return 1;
	}
	return 0;
}

static void mutate(uint64_t *seed, struct linear_event *events, size_t n)
{
	struct linear_event *e = &events[test_random(seed) % n],
			    *other = &events[test_random(seed) % n];
	uint64_t t;

	switch (test_random(seed) % 6) {
	case 0:
		/* the opposite result; no value if the result implies none */
		if (e->op >= LINEAR_FIND)
			e->result = !e->result;
		else if (e->op != LINEAR_COMPARE_EXCHANGE)
			e->result = LINEAR_INSERTED + LINEAR_EXISTS - e->result;
		e->got = e->op == LINEAR_FIND && !e->result ? 0 : e->got;
		if (e->op == LINEAR_EXCHANGE && e->result == LINEAR_INSERTED)
			e->got = 0;
		break;
	case 1: e->given ^= 1; break;
	case 2:
		if (e->op == LINEAR_FIND && e->result)
			e->got ^= 1;
		break;
	case 3:
		t = e->key;
		e->key = other->key;
		other->key = t;
		break;
	case 4:
		/* an earlier return of the first, or a later call of the last */
		t = e->returned;
		if (t < other->returned && t > other->called) {
			e->returned = other->returned;
			other->returned = t;
		}
		break;
	default:
		t = e->called;
		if (t < other->returned && other->called < e->returned) {
			e->called = other->called;
			other->called = t;
		}
	}
}

START_TEST(random_small)
{
	static const struct linear_state nothing[4];
	uint64_t seed = test_seed("random_small"), wrong = 0;
	const int histories = test_quick() ? 20000 : 400000;

	for (int i = 0; i < histories; i++) {
		struct linear_event events[6];
		size_t n = make_history(&seed, 2 + (unsigned)(test_random(&seed) % 4),
					1 + (unsigned)(test_random(&seed) % 2),
					1 + test_random(&seed) % 6,
					1 + (unsigned)(test_random(&seed) % 3), events);
		struct linear_report r = linear_check(events, n, 8);
		int expected;

		EXPECT(r.verdict == LINEAR_OK, "history %d is right: %s", i, r.message);
		for (uint64_t m = 1 + test_random(&seed) % 3; m; m--)
			mutate(&seed, events, n);
		/* plain search: such a compare-exchange returns no value */
		for (size_t j = 0; j < n; j++)
			if (events[j].op == LINEAR_COMPARE_EXCHANGE &&
			    events[j].result == LINEAR_EXISTS)
				events[j].got = events[j].expected;
		expected = some_order(events, n, 0, nothing);
		r = linear_check(events, n, 8);
		if ((r.verdict == LINEAR_OK) != expected)
			for (uint64_t key = 0; key < 2; key++)
				linear_print(stdout, events, n, key);
		EXPECT((r.verdict == LINEAR_OK) == expected,
		       "history %d, changed: verdict %d (%s), but %s order", i, (int)r.verdict,
		       r.message, expected ? "there is an" : "there is no");
		wrong += !expected;
	}
	/* coverage: right and wrong histories occurred */
	ck_assert_uint_gt(wrong, (uint64_t)histories / 8);
	ck_assert_uint_lt(wrong, (uint64_t)histories - (uint64_t)histories / 8);
}
END_TEST

/*
 * Long histories with many concurrent calls are checked quickly, and a single wrong value is found.
 */
START_TEST(random_large)
{
	uint64_t seed = test_seed("random_large"), most = 0;
	struct linear_event *events = test_malloc(MOST * sizeof(*events));

	for (int i = 0; i < (test_quick() ? 20 : 100); i++) {
		unsigned lanes = 2 + (unsigned)(test_random(&seed) % 8);
		uint64_t random = test_random(&seed);
		unsigned values = random % 3 ? 0x7fffffff : random % 2 ? 8 : 2;
		size_t n = make_history(&seed, lanes, 1 + (unsigned)(test_random(&seed) % 4),
					1 + test_random(&seed) % MOST, values, events);
		struct linear_report r = linear_check(events, n, 8);
		size_t at = test_random(&seed) % n;

		EXPECT(r.verdict == LINEAR_OK, "history %d of %u lanes is right: %s", i, lanes,
		       r.message);
		most = r.nodes > most ? r.nodes : most;
		for (; at < n && !(events[at].op == LINEAR_FIND && events[at].result); at++)
			;
		if (at == n)
			continue;
		events[at].got = (uint64_t)1 << 40;
		r = linear_check(events, n, 8);
		/* a refusal requires all orders, possibly too many */
		EXPECT(r.verdict == LINEAR_WRONG || (r.verdict == LINEAR_TOO_MUCH && lanes > 6),
		       "history %d of %u lanes, with a wrong value: verdict %d: %s", i, lanes,
		       (int)r.verdict, r.message);
		EXPECT(r.key == events[at].key, "history %d, with a wrong value: %s", i, r.message);
	}
	printf("random_large: at most %llu nodes\n", (unsigned long long)most);
	free(events);
}
END_TEST

/* As many equal calls as the checker can hold: their order does not matter. */
START_TEST(many_alike)
{
	struct linear_event events[66];

	for (unsigned i = 0; i < 65; i++)
		events[i] = ADD(i, 1000 + i, 1, EXISTS);
	events[0].result = LINEAR_INSERTED;
	events[64] = FIND(2000, 2001, 64);
	expect(events, 65, LINEAR_OK, "64 equal updates");
	events[64] = FIND(2000, 2001, 63);
	expect(events, 65, LINEAR_WRONG, "63 of 64 equal updates");
	events[64] = ADD(64, 1064, 1, EXISTS);
	expect(events, 65, LINEAR_TOO_MUCH, "65 at once");
	/* the other keys are checked nevertheless */
	for (int before = 0; before < 2; before++) {
		events[65] = FIND(2000, 2001, 1);
		events[65].key = before ? KEY - 1 : KEY + 1;
		ck_assert_int_eq(linear_check(events, 66, 8).verdict, LINEAR_WRONG);
		ck_assert_uint_eq(linear_check(events, 66, 8).key, events[65].key);
		events[65].result = 0;
		ck_assert_int_eq(linear_check(events, 66, 8).verdict, LINEAR_TOO_MUCH);
		ck_assert_uint_eq(linear_check(events, 66, 8).key, KEY);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("linear");
	TCase *tcase = tcase_create("linear");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, known);
	tcase_add_test(tcase, known_values);
	tcase_add_test(tcase, known_full);
	tcase_add_test(tcase, random_small);
	tcase_add_test(tcase, random_large);
	tcase_add_test(tcase, many_alike);
	suite_add_tcase(suite, tcase);
	return test_run(suite, CUA_BACKEND_CPU);
}
