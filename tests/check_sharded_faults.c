/* SPDX-License-Identifier: MIT */
/*
 * A rank that fails inside a call of a sharded map. The ranks are threads with a transport. The calls
 * have two rounds, and several exchanges if the keys of a rank have few owners.
 *
 * - The k-th function of a rank's transport fails, for each k until the call succeeds.
 * - The k-th request of a rank to the system fails, for each k until no request fails: of a shard that
 *   grows in a round, of create, save and load. The linker wraps the functions below (--wrap).
 * - A shard is full.
 *
 * All ranks return, with the statuses that cuatomic/group.h and cuatomic/sharded_map.h promise. The
 * shards have the pairs that the calls allow. If the transport has not failed, the same call then
 * succeeds.
 *
 * Each key is a number of the array `universe`, and each call has each key at most once. So after a
 * call, whether it failed or not, each key is as before the call or as after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "thread_transport.h"

/* ---- the system as a rank sees it ---- */

/* A rank is a thread, so each thread has its own count. */
static _Thread_local struct {
	int watched;
	unsigned long at; /* the request that fails, from 1; 0: none */
	unsigned long n;  /* requests so far */
	unsigned failed;
} the;

static int fails(int error)
{
	if (!the.watched || ++the.n != the.at)
		return 0;
	the.failed++;
	errno = error;
	return 1;
}

#define REQUEST(type, name, parameters, arguments, failure, error)                                 \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		if (fails(error))                                                                  \
			return failure;                                                            \
		return __real_##name arguments;                                                    \
	}
REQUEST(void *, malloc, (size_t n), (n), NULL, ENOMEM)
REQUEST(void *, calloc, (size_t n, size_t size), (n, size), NULL, ENOMEM)
REQUEST(void *, realloc, (void *p, size_t n), (p, n), NULL, ENOMEM)
REQUEST(int, posix_memalign, (void **p, size_t align, size_t n), (p, align, n), ENOMEM, ENOMEM)
REQUEST(void *, aligned_alloc, (size_t align, size_t n), (align, n), NULL, ENOMEM)
REQUEST(char *, strdup, (const char *s), (s), NULL, ENOMEM)
REQUEST(void *, mmap, (void *p, size_t n, int protection, int flags, int fd, off_t at),
	(p, n, protection, flags, fd, at), MAP_FAILED, ENOMEM)
REQUEST(int, pthread_create,
	(pthread_t * thread, const pthread_attr_t *how, void *(*fn)(void *), void *arg),
	(thread, how, fn, arg), EAGAIN, EAGAIN)
REQUEST(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), -1, EIO)
REQUEST(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), -1, EIO)
REQUEST(int, fsync, (int fd), (fd), -1, EIO)
REQUEST(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1, EIO)
REQUEST(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EIO)
REQUEST(int, flock, (int fd, int what), (fd, what), -1, EIO)

static mode_t mode_of(int flags, va_list rest)
{
	return flags & O_CREAT ? va_arg(rest, mode_t) : 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list rest;
	mode_t mode;

	va_start(rest, flags);
	mode = mode_of(flags, rest);
	va_end(rest);
	return fails(EIO) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
	va_list rest;
	mode_t mode;

	va_start(rest, flags);
	mode = mode_of(flags, rest);
	va_end(rest);
	return fails(EIO) ? -1 : __real_openat(folder, path, flags, mode);
}

/* ---- the keys ---- */

/*
 * A piece has 65 536 keys, so the call of rank 0 has two rounds. Numbers k with k % 4 >= 2 are in the
 * map before a call, and numbers with k % 8 != 7 are in the call.
 */
enum { RANKS = 3, KEYS = 80000, LONG_PART = 66000, CROWDED = 1 };
enum call { BUILD, INSERT, ASSIGN, UPDATE, FIND, CONTAINS, ERASE, CREATE, SAVE, LOAD };
enum { BULK_CALLS = CREATE };

static uint64_t universe[KEYS];
/* numbers in the order of their keys */
static uint32_t by_key[KEYS];

/* What a map has of a key. */
struct state {
	int present;
	uint64_t value;
};

static int is_old(uint32_t k)
{
	return k % 4 >= 2;
}

static int is_called(uint32_t k)
{
	return k % 8 != 7;
}

static uint64_t old_value(uint32_t k)
{
	return cua_hash_u64(k, 1);
}

static uint64_t new_value(uint32_t k)
{
	return cua_hash_u64(k, 2);
}

static struct state before(uint32_t k)
{
	return (struct state){is_old(k), is_old(k) ? old_value(k) : 0};
}

static struct state after(enum call call, uint32_t k)
{
	struct state s = before(k);

	if (call == BUILD)
		s.present = 0;
	if (!is_called(k))
		return s;
	switch (call) {
	case BUILD:
	case ASSIGN: return (struct state){1, new_value(k)};
	case INSERT: return s.present ? s : (struct state){1, new_value(k)};
	case UPDATE:
		return (struct state){1,
				      s.present && s.value > new_value(k) ? s.value : new_value(k)};
	case ERASE: return (struct state){0, 0};
	default: return s;
	}
}

static int key_order(const void *a, const void *b)
{
	const uint64_t x = universe[*(const uint32_t *)a], y = universe[*(const uint32_t *)b];

	return x < y ? -1 : x > y;
}

static uint32_t number_of(uint64_t key)
{
	uint32_t low = 0, high = KEYS;

	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (universe[by_key[middle]] <= key)
			low = middle;
		else
			high = middle;
	}
	EXPECT(universe[by_key[low]] == key, "a key of no call");
	return by_key[low];
}

/* ---- ranks ---- */

/* The keys of each rank, the operands of the call, and its answers. */
static uint64_t keys_of[RANKS][KEYS], values_of[RANKS][KEYS], out_of[RANKS][KEYS];
static uint8_t results_of[RANKS][KEYS];

struct crowd {
	struct thread_hub *hub;
	struct cua_context *contexts[RANKS];
	struct cua_group *groups[RANKS];
	struct cua_hashmap_options options;
	uint64_t capacity;
	struct cua_sharded_map *maps[RANKS], *loaded[RANKS];
	size_t n[RANKS]; /* of keys */
	enum call call;
	/* this rank's request number `at` fails */
	uint32_t failing;
	unsigned long at;
	unsigned failed;
	enum cua_status status[RANKS];
	uint64_t size[RANKS];
};

static enum cua_status call_of(struct crowd *c, uint32_t r)
{
	struct cua_sharded_map *map = c->maps[r];
	const void *keys = keys_of[r], *values = values_of[r];
	void *out = out_of[r];
	uint8_t *results = results_of[r];
	const size_t *n = &c->n[r];

	switch (c->call) {
	case BUILD: return cua_sharded_map_build_n(map, n, &keys, &values, &results);
	case INSERT: return cua_sharded_map_insert_n(map, n, &keys, &values, &results);
	case ASSIGN: return cua_sharded_map_assign_n(map, n, &keys, &values, &results);
	case UPDATE:
		return cua_sharded_map_update_n(map, CUA_UPDATE_MAX, n, &keys, &values, &results);
	case FIND: return cua_sharded_map_find_n(map, n, &keys, &out, &results);
	case CONTAINS: return cua_sharded_map_contains_n(map, n, &keys, &results);
	case ERASE: return cua_sharded_map_erase_n(map, n, &keys, &results);
	case CREATE:
		return cua_sharded_map_create(c->groups[r], &c->options, CUA_U64, CUA_U64,
					      c->capacity, &c->loaded[r]);
	case SAVE: return cua_sharded_map_save(map, "map");
	default: return cua_sharded_map_load(c->groups[r], NULL, "map", &c->loaded[r]);
	}
}

static void call_alone(void *arg, uint32_t r)
{
	struct crowd *c = arg;

	memset(&the, 0, sizeof(the));
	the.at = r == c->failing ? c->at : 0;
	the.watched = 1;
	c->status[r] = call_of(c, r);
	the.watched = 0;
	if (r == c->failing)
		c->failed = the.failed;
}

/* Makes a call on all ranks. Request `at` of rank `failing` fails; 0: none. */
static void make_call(struct crowd *c, enum call call, uint32_t failing, unsigned long at)
{
	c->call = call;
	c->failing = failing;
	c->at = at;
	thread_ranks(RANKS, call_alone, c);
}

static void expect_all(const struct crowd *c, enum cua_status expected)
{
	for (uint32_t r = 0; r < RANKS; r++)
		ck_assert_status(c->status[r], expected);
}

static void size_alone(void *arg, uint32_t r)
{
	struct crowd *c = arg;

	c->status[r] = cua_sharded_map_size(c->maps[r], &c->size[r]);
}

static void status_alone(void *arg, uint32_t r)
{
	struct crowd *c = arg;

	c->status[r] = cua_sharded_map_status(c->maps[r]);
}

static void clear_alone(void *arg, uint32_t r)
{
	struct crowd *c = arg;

	c->status[r] = cua_sharded_map_clear(c->maps[r]);
}

static void add_key(struct crowd *c, uint32_t r, uint32_t k, uint64_t value)
{
	const size_t i = c->n[r]++;

	keys_of[r][i] = universe[k];
	values_of[r][i] = value;
}

/* Divides the old keys evenly. */
static void old_keys(struct crowd *c)
{
	memset(c->n, 0, sizeof(c->n));
	for (uint32_t k = 0; k < KEYS; k++)
		if (is_old(k))
			add_key(c, k % RANKS, k, old_value(k));
}

/* The first keys of the call go to rank 0. */
static void called_keys(struct crowd *c)
{
	memset(c->n, 0, sizeof(c->n));
	for (uint32_t k = 0; k < KEYS; k++)
		if (is_called(k))
			add_key(c, c->n[0] < LONG_PART ? 0 : 1 + k % (RANKS - 1), k, new_value(k));
}

/*
 * Draws the keys. If they are crowded, rank 0 passes keys of the owner CROWDED only: the owner is a
 * function of the seed in the options, so `map` stands for all maps of the test.
 */
static void draw_keys(const struct cua_sharded_map *map, int crowded, uint64_t *seed)
{
	uint32_t called = 0, owner;

	for (uint32_t k = 0; k < KEYS; k++) {
		const int chosen = crowded && is_called(k) && called < LONG_PART;

		do {
			universe[k] = test_random(seed);
			EXPECT(!cua_sharded_map_owner(map, &universe[k], &owner), "owner");
		} while (chosen && owner != CROWDED);
		called += is_called(k);
		by_key[k] = k;
	}
	qsort(by_key, KEYS, sizeof(*by_key), key_order);
}

/* Creates the ranks and a map with the old keys. */
static struct crowd *crowd_open(uint64_t capacity, uint32_t grow_percent, int crowded,
				uint64_t *seed)
{
	static uint64_t fixed;
	struct crowd *c = test_malloc(sizeof(*c));

	memset(c, 0, sizeof(*c));
	c->hub = thread_hub_create(RANKS);
	c->capacity = capacity;
	c->options = (struct cua_hashmap_options)CUA_HASHMAP_OPTIONS_INIT;
	c->options.grow_percent = grow_percent;
	if (!fixed)
		fixed = test_random(seed) | 1;
	c->options.seed = fixed;
	for (uint32_t r = 0; r < RANKS; r++) {
		const struct cua_transport t = thread_transport(c->hub, r);

		c->contexts[r] = test_context(CUA_BACKEND_CPU);
		ck_assert_cua(cua_context_set_threads(c->contexts[r], 1 + r % 2));
		ck_assert_cua(cua_group_create(c->contexts[r], &t, &c->groups[r]));
	}
	make_call(c, CREATE, 0, 0);
	expect_all(c, CUA_OK);
	memcpy(c->maps, c->loaded, sizeof(c->maps));
	memset(c->loaded, 0, sizeof(c->loaded));
	if (!by_key[0] && !by_key[1])
		draw_keys(c->maps[0], crowded, seed);
	old_keys(c);
	make_call(c, BUILD, 0, 0);
	expect_all(c, CUA_OK);
	called_keys(c);
	return c;
}

static void crowd_close(struct crowd *c)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		cua_sharded_map_destroy(c->maps[r]);
		cua_group_destroy(c->groups[r]);
		cua_context_destroy(c->contexts[r]);
	}
	thread_hub_destroy(c->hub);
	free(c);
}

/* ---- contents ---- */

/* Reads all shards, and expects each key at its owner once. */
static void contents(struct cua_sharded_map *const *maps, struct state *states)
{
	static uint64_t keys[KEYS], values[KEYS];
	uint32_t owner;
	uint64_t n;

	memset(states, 0, KEYS * sizeof(*states));
	for (uint32_t r = 0; r < RANKS; r++) {
		ck_assert_cua(cua_hashmap_copy_to_host(cua_sharded_map_shard(maps[r], 0), KEYS,
						       keys, values, &n));
		ck_assert_uint_le(n, KEYS);
		for (uint64_t i = 0; i < n; i++) {
			const uint32_t k = number_of(keys[i]);

			EXPECT(!states[k].present, "key %u occurs twice", k);
			EXPECT(!cua_sharded_map_owner(maps[r], &keys[i], &owner) && owner == r,
			       "key %u is not at its owner", k);
			states[k] = (struct state){1, values[i]};
		}
	}
}

static int same(struct state a, struct state b)
{
	return a.present == b.present && (!a.present || a.value == b.value);
}

/* Each key is as before the call or as after it; with `done` as after it. */
static void expect_contents(struct cua_sharded_map *const *maps, enum call call, int done)
{
	static struct state states[KEYS];

	contents(maps, states);
	for (uint32_t k = 0; k < KEYS; k++) {
		/* a build clears the map first */
		const int right = same(states[k], after(call, k)) ||
				  (!done && (same(states[k], before(k)) ||
					     (call == BUILD && !states[k].present)));

		EXPECT(right, "call %d: key %u is %s, value %llx", call, k,
		       states[k].present ? "present" : "absent",
		       (unsigned long long)states[k].value);
	}
}

/* The map works: the call succeeds on all ranks, and then answers about all keys are right. */
static void expect_recovery(struct crowd *c, enum call call)
{
	uint64_t keys = 0;

	make_call(c, call, 0, 0);
	expect_all(c, CUA_OK);
	expect_contents(c->maps, call, 1);
	memset(c->n, 0, sizeof(c->n));
	for (uint32_t k = 0; k < KEYS; k++) {
		add_key(c, k % RANKS, k, 0);
		keys += (uint64_t)after(call, k).present;
	}
	make_call(c, FIND, 0, 0);
	expect_all(c, CUA_OK);
	for (uint32_t k = 0; k < KEYS; k++) {
		const struct state s = after(call, k);

		EXPECT(results_of[k % RANKS][k / RANKS] == s.present, "key %u is not found", k);
		if (s.present)
			EXPECT(out_of[k % RANKS][k / RANKS] == s.value, "value of key %u", k);
	}
	thread_ranks(RANKS, size_alone, c);
	expect_all(c, CUA_OK);
	for (uint32_t r = 0; r < RANKS; r++)
		ck_assert_uint_eq(c->size[r], keys);
	thread_ranks(RANKS, status_alone, c);
	expect_all(c, CUA_OK);
}

/* Half of the calls are enough for tools that slow the program down. */
static int is_skipped(int test)
{
	return (SANITIZED || test_quick()) && !test_deep() && test % 2 != test / 2 % 2;
}

/* ---- the transport ---- */

/* Returns 0 if the call makes no more than k functions of the rank's transport. */
static int transport_fails(enum call call, int crowded, uint32_t rank, unsigned k, uint64_t *seed)
{
	/* room for all keys at a single owner */
	struct crowd *c = crowd_open((uint64_t)RANKS * KEYS, 0, crowded, seed);
	const unsigned first = thread_transport_calls(c->hub, rank);
	int failed;

	thread_transport_fail(c->hub, rank, first + k);
	make_call(c, call, 0, 0);
	failed = thread_transport_calls(c->hub, rank) > first + k;
	if (failed) {
		unsigned aborts = 0;

		ck_assert_status(c->status[rank], CUA_ERROR_SYSTEM);
		for (uint32_t r = 0; r < RANKS; r++) {
			EXPECT(c->status[r] == CUA_ERROR_SYSTEM || c->status[r] == CUA_OK,
			       "rank %u: %s", r, cua_status_name(c->status[r]));
			aborts += thread_transport_aborts(c->hub, r);
		}
		ck_assert_uint_ge(aborts, 1);
		expect_contents(c->maps, call, 0);
		/* the group stays broken */
		make_call(c, FIND, 0, 0);
		expect_all(c, CUA_ERROR_SYSTEM);
		thread_ranks(RANKS, size_alone, c);
		expect_all(c, CUA_ERROR_SYSTEM);
	} else {
		expect_all(c, CUA_OK);
		expect_contents(c->maps, call, 1);
	}
	crowd_close(c);
	return failed;
}

START_TEST(transports)
{
	uint64_t seed = test_seed("transports");
	const enum call call = (enum call)(_i / 2);
	const int crowded = _i % 2, all = test_deep();
	unsigned functions = 0;

	if (is_skipped(_i))
		return;
	for (uint32_t rank = all ? 0 : (uint32_t)(_i % RANKS); rank < RANKS; rank++) {
		unsigned k = 0;

		while (transport_fails(call, crowded, rank, k, &seed))
			k++;
		functions = k;
		if (!all)
			break;
	}
	/* meet, two rounds with counts, and in each exchange keys and agreement; agreement */
	ck_assert_uint_ge(functions, crowded ? 12 : 8);
}
END_TEST

/* ---- the system ---- */

START_TEST(requests)
{
	uint64_t seed = test_seed("requests");
	const enum call call = (enum call)(_i / 2);
	const int crowded = _i % 2;
	/* many pairs go to a crowded shard */
	const uint32_t some = crowded ? CROWDED : (uint32_t)(_i % RANKS);
	unsigned errors = 0;

	if (is_skipped(_i))
		return;
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		unsigned failed = rank == some || test_deep();

		for (unsigned long at = 1; failed; at++) {
			struct crowd *c = crowd_open(1000, 80, crowded, &seed);

			make_call(c, call, rank, at);
			failed = c->failed;
			for (uint32_t r = 1; r < RANKS; r++)
				ck_assert_status(c->status[r], c->status[0]);
			if (c->status[0]) {
				ck_assert_status(c->status[0], CUA_ERROR_NO_MEMORY);
				ck_assert_uint_eq(failed, 1);
				errors++;
			}
			expect_contents(c->maps, call, !c->status[0]);
			expect_recovery(c, call);
			crowd_close(c);
		}
	}
	/* shards grow */
	if (call == BUILD || call == INSERT || call == ASSIGN || call == UPDATE)
		ck_assert_uint_ge(errors, 1);
}
END_TEST

/* A status that the failure of a request may cause. */
static void expect_failure(const struct crowd *c)
{
	for (uint32_t r = 1; r < RANKS; r++)
		ck_assert_status(c->status[r], c->status[0]);
	if (c->status[0]) {
		ck_assert_uint_eq(c->failed, 1);
		EXPECT(c->status[0] == CUA_ERROR_NO_MEMORY || c->status[0] == CUA_ERROR_SYSTEM,
		       "%s", cua_status_name(c->status[0]));
	}
}

/* Destroys the maps that a create or load made on all ranks, or expects none. */
static void destroy_loaded(struct crowd *c)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		EXPECT(!c->loaded[r] == !!c->status[0], "rank %u: a map and %s", r,
		       cua_status_name(c->status[0]));
		cua_sharded_map_destroy(c->loaded[r]);
		c->loaded[r] = NULL;
	}
}

START_TEST(creations)
{
	uint64_t seed = test_seed("creations");
	struct crowd *c = crowd_open(1000, 80, 0, &seed);

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		unsigned errors = 0;

		c->failed = 1;
		for (unsigned long at = 1; c->failed; at++) {
			make_call(c, CREATE, rank, at);
			expect_failure(c);
			errors += c->status[0] != CUA_OK;
			destroy_loaded(c);
		}
		ck_assert_uint_ge(errors, 5);
	}
	expect_recovery(c, INSERT);
	crowd_close(c);
}
END_TEST

/* Loads the file, and expects a map as before an assign (0) or as after it (1): returns which. */
static int map_in_file(struct crowd *c)
{
	static struct state states[KEYS];
	uint32_t old = 0, new = 0;

	make_call(c, LOAD, 0, 0);
	expect_all(c, CUA_OK);
	contents(c->loaded, states);
	for (uint32_t k = 0; k < KEYS; k++) {
		old += same(states[k], before(k));
		new += same(states[k], after(ASSIGN, k));
	}
	EXPECT(new == KEYS || old == KEYS, "the file has neither the old nor the new map");
	destroy_loaded(c);
	return new == KEYS;
}

/* Changes the map: to the old pairs, or to those after an assign. */
static void change_map(struct crowd *c, int assigned)
{
	old_keys(c);
	make_call(c, BUILD, 0, 0);
	expect_all(c, CUA_OK);
	called_keys(c);
	if (assigned)
		make_call(c, ASSIGN, 0, 0);
	expect_all(c, CUA_OK);
	expect_contents(c->maps, assigned ? ASSIGN : FIND, 1);
}

static void remove_files(void)
{
	ck_assert_int_eq(system("rm -f map map.*"), 0);
}

/*
 * After a save that fails, the file has the map of the earlier save or of this save. The shards of this
 * save are removed unless the file refers to them.
 */
START_TEST(saves)
{
	uint64_t seed = test_seed("saves");
	struct crowd *c = crowd_open(1000, 80, 0, &seed);
	char folder[TEST_PATH_BYTES];
	int saved = 0, files = 1 + RANKS;

	test_enter_folder(folder);
	make_call(c, SAVE, 0, 0);
	expect_all(c, CUA_OK);
	change_map(c, 1);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		unsigned errors = 0;

		c->failed = 1;
		for (unsigned long at = 1; c->failed; at++) {
			enum cua_status status;
			unsigned failed;
			int now;

			make_call(c, SAVE, rank, at);
			status = c->status[0];
			failed = c->failed;
			expect_failure(c);
			errors += status != CUA_OK;
			now = map_in_file(c);
			/*
			 * the shards of the earlier save may remain if they cannot be listed, and if a
			 * save fails after it has replaced the manifest
			 */
			if (status)
				files += now != saved ? RANKS : 0;
			if (status || !failed)
				ck_assert_int_eq(test_files_in("."), files);
			files = test_files_in(".");
			ck_assert_int_ge(files, 1 + RANKS);
			ck_assert(status || now != saved);
			if (now != saved)
				change_map(c, saved);
			saved = now;
			c->failed = failed;
		}
		ck_assert_uint_ge(errors, 5);
	}
	expect_recovery(c, ERASE);
	crowd_close(c);
	remove_files();
	test_leave_folder(folder);
}
END_TEST

START_TEST(loads)
{
	uint64_t seed = test_seed("loads");
	struct crowd *c = crowd_open(1000, 80, 0, &seed);
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	make_call(c, SAVE, 0, 0);
	expect_all(c, CUA_OK);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		unsigned errors = 0;

		c->failed = 1;
		for (unsigned long at = 1; c->failed; at++) {
			make_call(c, LOAD, rank, at);
			expect_failure(c);
			errors += c->status[0] != CUA_OK;
			if (!c->status[0])
				expect_contents(c->loaded, FIND, 1);
			destroy_loaded(c);
		}
		ck_assert_uint_ge(errors, 5);
	}
	expect_contents(c->maps, FIND, 1);
	expect_recovery(c, ERASE);
	crowd_close(c);
	remove_files();
	test_leave_folder(folder);
}
END_TEST

/* ---- a full shard ---- */

/*
 * Keys of the owner CROWDED exceed its shard in both rounds. Calls succeed on all ranks, the rejected
 * keys are FULL, and all others are in the map.
 */
START_TEST(full_shard)
{
	uint64_t seed = test_seed("full_shard");
	/* a shard has room for the old keys of the owner, but not for all */
	struct crowd *c = crowd_open((uint64_t)KEYS * 27 / 20, 0, 1, &seed);
	static struct state states[KEYS];
	uint64_t rejected = 0, size = 0;
	size_t at[RANKS] = {0};
	uint32_t owner;

	make_call(c, _i ? UPDATE : INSERT, 0, 0);
	expect_all(c, CUA_OK);
	thread_ranks(RANKS, status_alone, c);
	expect_all(c, CUA_ERROR_FULL);
	contents(c->maps, states);
	for (uint32_t k = 0; k < KEYS; k++) {
		const struct state s = states[k], expected = after(c->call, k);
		uint32_t r = 0;
		uint8_t result;

		size += (uint64_t)s.present;
		if (!is_called(k)) {
			EXPECT(same(s, before(k)), "key %u has changed", k);
			continue;
		}
		while (at[r] == c->n[r] || keys_of[r][at[r]] != universe[k])
			r++;
		result = results_of[r][at[r]++];
		EXPECT(!cua_sharded_map_owner(c->maps[0], &universe[k], &owner), "owner");
		if (result == CUA_HASHMAP_FULL) {
			rejected++;
			EXPECT(owner == CROWDED, "key %u of owner %u is FULL", k, owner);
			EXPECT(!is_old(k) && !s.present, "key %u is FULL and present", k);
		} else {
			EXPECT(result == (is_old(k) ? CUA_HASHMAP_EXISTS : CUA_HASHMAP_INSERTED),
			       "key %u: result %u", k, result);
			EXPECT(same(s, expected), "key %u is not as after the call", k);
		}
	}
	ck_assert_uint_ge(rejected, 1);
	thread_ranks(RANKS, size_alone, c);
	expect_all(c, CUA_OK);
	for (uint32_t r = 0; r < RANKS; r++)
		ck_assert_uint_eq(c->size[r], size);
	/* the map works, with the keys that it has, and after a clear without the status */
	make_call(c, ERASE, 0, 0);
	expect_all(c, CUA_OK);
	expect_contents(c->maps, ERASE, 1);
	thread_ranks(RANKS, clear_alone, c);
	expect_all(c, CUA_OK);
	thread_ranks(RANKS, status_alone, c);
	expect_all(c, CUA_OK);
	thread_ranks(RANKS, size_alone, c);
	for (uint32_t r = 0; r < RANKS; r++)
		ck_assert_uint_eq(c->size[r], 0);
	crowd_close(c);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sharded_faults");
	TCase *tc = tcase_create("sharded_faults");

	/* a rank that waits for ever fails by this limit */
	tcase_set_timeout(tc, 600);
	tcase_add_loop_test(tc, transports, 0, 2 * BULK_CALLS);
	tcase_add_loop_test(tc, requests, 0, 2 * BULK_CALLS);
	tcase_add_test(tc, creations);
	tcase_add_test(tc, saves);
	tcase_add_test(tc, loads);
	tcase_add_loop_test(tc, full_shard, 0, 2);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CPU);
}
