/* SPDX-License-Identifier: MIT */
/*
 * The contract of the hash map inside kernels. Histories of few lanes on few keys must be
 * linearizable. The effects of many lanes on many keys must add up for each key.
 */
#include "device.h"

#define LINEAR_TICK(clock)                                                                         \
	cua_port_fetch_add_u64(clock, 1, CUA_SEQ_CST, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL)
#include "linear_calls.h"

#define ADD(p, v) cua_port_add_u64(p, v, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL)

static const enum cua_type types[2] = {CUA_U32, CUA_U64};

struct some_map {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	struct cua_hashmap_view view;
	uint64_t slots;
};

/* The four pairs of word sizes; from 4 on, pairs of more than 8 bytes, whose slots have states. */
enum { WORDS = 4, TYPES = 8, NEVER_ERASES = 7 /* 4 + 4 bytes */ };

static struct some_map new_map(struct cua_context *ctx, unsigned type, uint64_t capacity)
{
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;
	struct some_map m;

	if (type == NEVER_ERASES) {
		options.no_erase = 1;
		type = 0;
	}
	if (type >= WORDS) {
		options.portable = 1;
		type -= WORDS - 1;
	}
	m.ctx = ctx;
	ck_assert_cua(cua_hashmap_create(ctx, &options, types[type & 1], types[type >> 1 & 1],
					 capacity, &m.map));
	ck_assert_cua(cua_hashmap_get_view(m.map, &m.view));
	ck_assert_cua(cua_hashmap_capacity(m.map, &m.slots));
	return m;
}

static uint64_t size_of(const struct some_map *m)
{
	uint64_t size = 99;

	ck_assert_cua(cua_hashmap_size(m->map, &size));
	return size;
}

/* A device array of n keys or values of the map, each of `bytes` bytes. */
static void *put(const struct some_map *m, size_t n, const uint64_t *v, unsigned bytes)
{
	char *host = (char *)test_malloc(n * bytes);
	void *p;

	/* both sides are little-endian */
	for (size_t i = 0; i < n; i++)
		memcpy(host + i * bytes, &v[i], bytes);
	p = test_upload(m->ctx, host, n * bytes);
	free(host);
	return p;
}

enum { INSERT, FIND, ERASE };

/* Makes a bulk call on n keys. `values` is input or output; flags[i] is the result of key i. */
static void bulk(const struct some_map *m, int what, size_t n, const uint64_t *keys,
		 uint64_t *values, uint8_t *flags)
{
	unsigned bytes = m->view.value_size;
	void *k = put(m, n, keys, m->view.key_size), *v = put(m, n, values, bytes);
	uint8_t *f = (uint8_t *)test_alloc(m->ctx, n);
	char *host = (char *)test_malloc(n * bytes);

	if (what == INSERT)
		ck_assert_cua(cua_hashmap_insert_n(m->map, n, k, v, f));
	else if (what == FIND)
		ck_assert_cua(cua_hashmap_find_n(m->map, n, k, v, f));
	else
		ck_assert_cua(cua_hashmap_erase_n(m->map, n, k, f));
	test_download(m->ctx, host, v, n * bytes);
	for (size_t i = 0; i < n; i++) {
		values[i] = 0;
		memcpy(&values[i], host + i * bytes, bytes);
	}
	test_download(m->ctx, flags, f, n);
	free(host);
	test_free(m->ctx, k);
	test_free(m->ctx, v);
	test_free(m->ctx, f);
}

/* ---- histories ---- */

enum { LANES = 16, CALLS = 48, KEYS = 4, EVENTS = LANES * CALLS + KEYS, MOST_SLOTS = 64 };

/*
 * There are as many lanes as all blocks have. All blocks are resident, because they wait for each
 * other.
 */
static __global__ void history_kernel(struct cua_hashmap_view view, int way, int by_quads,
				      struct linear_event *events, unsigned n_calls,
				      uint64_t *clock, uint32_t *arrived)
{
	if (threadIdx.x == 0) {
		(void)cua_port_fetch_add_u32(arrived, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
					     CUA_SPACE_GLOBAL);
		while (cua_port_load_b32(arrived, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL) <
		       gridDim.x)
			cua_port_pause(32);
	}
	cua_port_sync_block();
	if (by_quads)
		linear_run_quad(&view, clock, ~(uint32_t)0 >> (32 - blockDim.x),
				events + global_id() * n_calls, n_calls, n_calls);
	else
		linear_run(&view, clock, way, events + global_id() * n_calls, n_calls);
}

struct history {
	struct linear_event events[EVENTS];
	struct linear_event *on_device;
	uint64_t *clock; /* and the number of arrived blocks after it */
};

/*
 * Runs a launch on a map with `fill` permanent keys. Returns 0 if there were too many orders to
 * try.
 */
static int run_round(struct history *h, const struct some_map *m, uint64_t seed)
{
	uint64_t random = seed, r = test_random(&random);
	const unsigned n_keys = 2 + (unsigned)((r >> 8) % (KEYS - 1)),
		       n_calls = 4 + (unsigned)((r >> 16) % (CALLS - 3));
	const unsigned threads = 1u << (r >> 24) % 5, n_events = LANES * n_calls + n_keys;
	const enum linear_mix mix = (enum linear_mix)((r >> 32) % LINEAR_MIXES);
	const int way = (int)((r >> 40) % 4);
	/* then blocks are whole quads of a single warp */
	const int by_quads =
		threads >= 4 && (r >> 42) % 2 && m->view.key_size == m->view.value_size;
	const uint64_t room = (r >> 48) % (KEYS + 2);
	uint64_t fill = room <= KEYS && room < m->slots && m->slots <= MOST_SLOTS ? m->slots - room
										  : 0,
		 left = 0;
	uint64_t keys[KEYS], filled[MOST_SLOTS], values[MOST_SLOTS];
	uint8_t flags[MOST_SLOTS];
	struct linear_event *last = h->events + LANES * n_calls;
	struct linear_report report;
	char where[160];

	linear_choose_keys(test_random(&random), m->view.key_size, keys, n_keys);
	memset(h->events, 0, sizeof(h->events));
	for (uint32_t lane = 0; lane < LANES; lane++)
		linear_plan(h->events + lane * n_calls, n_calls, r, mix, keys, n_keys, lane);
	for (unsigned i = 0; m->view.no_erase && i < LANES * n_calls; i++)
		if (h->events[i].op == LINEAR_ERASE)
			h->events[i].op = LINEAR_ADD;
	snprintf(where, sizeof(where),
		 "seed %llu, keys of %u and values of %u bytes, %u keys, mix %d, blocks of %u%s%s",
		 (unsigned long long)seed, m->view.key_size, m->view.value_size, n_keys, (int)mix,
		 threads, way & LINEAR_TYPED ? ", typed" : "",
		 way & LINEAR_TOGETHER ? ", together" : "");

	ck_assert_cua(cua_hashmap_clear(m->map));
	for (uint64_t i = 0; i < fill; i++) {
		filled[i] = linear_fill_key(i);
		values[i] = i;
	}
	if (fill)
		bulk(m, INSERT, fill, filled, values, flags);
	for (uint64_t i = 0; i < fill; i++)
		EXPECT(flags[i] == CUA_HASHMAP_INSERTED, "%s: there is no room for key %u", where,
		       (unsigned)i);

	ck_assert_cuda(
		cudaMemcpy(h->on_device, h->events, sizeof(h->events), cudaMemcpyHostToDevice));
	ck_assert_cuda(cudaMemset(h->clock, 0, 2 * sizeof(*h->clock)));
	ck_assert_cuda(cudaDeviceSynchronize());
	history_kernel<<<LANES / threads, threads>>>(m->view, way, by_quads, h->on_device, n_calls,
						     h->clock, (uint32_t *)(h->clock + 1));
	finish_kernel();
	ck_assert_cuda(
		cudaMemcpy(h->events, h->on_device, sizeof(h->events), cudaMemcpyDeviceToHost));

	memset(values, 0, sizeof(values));
	bulk(m, FIND, n_keys, keys, values, flags);
	for (unsigned i = 0; i < n_keys; i++) {
		memset(&last[i], 0, sizeof(last[i]));
		last[i].key = keys[i];
		last[i].op = LINEAR_FIND;
		last[i].result = flags[i];
		last[i].got = values[i];
		last[i].lane = LANES;
		last[i].called = ((uint64_t)1 << 40) + 2 * i;
		last[i].returned = last[i].called + 1;
		left += flags[i];
	}
	report = linear_check(h->events, n_events, m->view.value_size);
	if (report.verdict == LINEAR_TOO_MUCH)
		return 0;
	if (report.verdict == LINEAR_OK)
		report = linear_check_full(h->events, n_events, m->slots - fill);
	if (report.verdict != LINEAR_OK)
		linear_print(stdout, h->events, n_events, report.key);
	EXPECT(report.verdict == LINEAR_OK, "%s: %s", where, report.message);

	/* the permanent keys are unchanged, and no key was in the map twice */
	EXPECT(size_of(m) == fill + left, "%s: the size is wrong", where);
	if (m->view.no_erase)
		return 1;
	bulk(m, ERASE, n_keys, keys, values, flags);
	for (unsigned i = 0; i < n_keys; i++)
		EXPECT(flags[i] == last[i].result, "%s: an erase does not find what a find does",
		       where);
	bulk(m, FIND, n_keys, keys, values, flags);
	for (unsigned i = 0; i < n_keys; i++)
		EXPECT(!flags[i], "%s: a key was there twice", where);
	EXPECT(size_of(m) == fill, "%s: the size is wrong in the end", where);
	if (fill)
		bulk(m, FIND, fill, filled, values, flags);
	for (uint64_t i = 0; i < fill; i++)
		EXPECT(flags[i] && values[i] == i, "%s: key %u, which stays, is gone", where,
		       (unsigned)i);
	return 1;
}

START_TEST(test_histories)
{
	uint64_t seed = test_seed("test_histories");
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const int rounds = test_traced() ? 4 : test_quick() ? 20 : 600;
	struct history *h = (struct history *)test_malloc(sizeof(*h));
	struct some_map maps[TYPES][3];
	int given_up[2] = {0, 0}, rounds_of[2] = {0, 0};

	ck_assert_cuda(cudaMalloc((void **)&h->on_device, sizeof(h->events)));
	ck_assert_cuda(cudaMalloc((void **)&h->clock, 2 * sizeof(*h->clock)));
	for (unsigned t = 0; t < TYPES; t++) {
		/* capacities: a bucket, and the next larger maps */
		maps[t][0] = new_map(ctx, t, 1);
		maps[t][1] = new_map(ctx, t, maps[t][0].slots + 1);
		maps[t][2] = new_map(ctx, t, maps[t][1].slots + 1);
	}
	for (int round = 0; round < rounds; round++) {
		const int t = round % TYPES, by_states = t >= WORDS && t != NEVER_ERASES;
		uint64_t of_round = seed;

		rounds_of[by_states]++;
		given_up[by_states] += !run_round(h, &maps[t][round / TYPES % 3], of_round);
		(void)test_random(&seed);
	}
	printf("test_histories: %d of %d, with states %d of %d, were too much to check\n",
	       given_up[0], rounds_of[0], given_up[1], rounds_of[1]);
	ck_assert_int_le(given_up[0], rounds_of[0] / 4);
	/* calls that wait for a lock overlap with more calls */
	ck_assert_int_le(given_up[1], rounds_of[1] * 3 / 4);
	for (int t = 0; t < TYPES; t++)
		for (int i = 0; i < 3; i++)
			ck_assert_cua(cua_hashmap_destroy(maps[t][i].map));
	ck_assert_cuda(cudaFree(h->on_device));
	ck_assert_cuda(cudaFree(h->clock));
	free(h);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- many keys: inserts and erases of each key, and sums ---- */

/* Of each key: its numbers of inserts and erases, or the sum of its additions. */
struct tally {
	uint64_t inserted, erased, added;
};

/*
 * Keys below n_moving are inserted and erased, later keys are only added to. wrong[0]: values of
 * another key; wrong[1]: impossible results.
 */
static __global__ void tally_kernel(struct cua_hashmap_view view, uint64_t n_moving,
				    uint64_t n_keys, uint64_t seed, unsigned rounds,
				    struct tally *tallies, uint64_t *wrong)
{
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t r = cua_hash_u64((uint64_t)global_id() * rounds + i, seed), value = 0;
		/* half of the calls are on a few keys */
		uint64_t key = r >> 20 & 1 ? (r >> 32) % n_moving : (r >> 32) % (n_moving / 16 + 1);
		int result = 0;

		/* in every second round, the lanes of a warp execute together */
		if (i % 2) {
			const enum cua_hashmap_operation operation =
				(enum cua_hashmap_operation)(CUA_HASHMAP_FIND + r % 3);

			value = key << 16 | (r >> 8 & 0xff);
			result = cua_hashmap_execute(&view, operation, key, &value);
			if (result == CUA_HASHMAP_EXISTS && value >> 16 != key)
				ADD(&wrong[0], 1);
			if (result == CUA_HASHMAP_INSERTED)
				ADD(&tallies[key].inserted, 1);
			if (result == CUA_HASHMAP_EXISTS && operation == CUA_HASHMAP_ERASE)
				ADD(&tallies[key].erased, 1);
			if (operation == CUA_HASHMAP_INSERT
				    ? result != CUA_HASHMAP_INSERTED && result != CUA_HASHMAP_EXISTS
				    : result != CUA_HASHMAP_ABSENT && result != CUA_HASHMAP_EXISTS)
				ADD(&wrong[1], 1);
			continue;
		}
		switch (r % 8) {
		case 0:
		case 1: result = cua_hashmap_insert(&view, key, key << 16 | (r >> 8 & 0xff)); break;
		case 2: result = cua_hashmap_assign(&view, key, key << 16 | (r >> 8 & 0xff)); break;
		case 3:
			result = cua_hashmap_update(&view, key, key << 16 | (r >> 8 & 0xff),
						    CUA_UPDATE_MAX);
			break;
		case 4:
		case 5:
			if (cua_hashmap_erase(&view, key))
				ADD(&tallies[key].erased, 1);
			break;
		case 6:
			if (cua_hashmap_find(&view, key, &value) && value >> 16 != key)
				ADD(&wrong[0], 1);
			break;
		default:
			key = n_moving + (r >> 32) % (n_keys - n_moving);
			result = cua_hashmap_update(&view, key, 1 + (r >> 8 & 7), CUA_UPDATE_ADD);
			ADD(&tallies[key].added, 1 + (r >> 8 & 7));
		}
		if (result == CUA_HASHMAP_INSERTED)
			ADD(&tallies[key].inserted, 1);
		if (result != 0 && result != CUA_HASHMAP_INSERTED && result != CUA_HASHMAP_EXISTS)
			ADD(&wrong[1], 1);
	}
}

START_TEST(test_tallies)
{
	uint64_t seed = test_seed("test_tallies");
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const uint64_t n_moving = test_quick() ? 60 : 6000, n_keys = n_moving + n_moving / 4;
	const unsigned blocks = test_quick() ? 4 : 4 * processors(), rounds = test_traced()  ? 8
									      : test_quick() ? 40
											     : 400;
	struct tally *tallies = (struct tally *)managed(n_keys * sizeof(*tallies));
	uint64_t *wrong = (uint64_t *)managed(2 * sizeof(*wrong));
	uint64_t *keys = (uint64_t *)test_malloc(n_keys * 8),
		 *values = (uint64_t *)test_malloc(n_keys * 8);
	uint8_t *flags = (uint8_t *)test_malloc(n_keys);

	for (unsigned t = 0; t < TYPES; t++) {
		struct some_map m = new_map(ctx, t, n_keys);
		uint64_t size = 0;

		memset(tallies, 0, n_keys * sizeof(*tallies));
		tally_kernel<<<blocks, 128>>>(m.view, n_moving, n_keys, seed + t, rounds, tallies,
					      wrong);
		finish_kernel();
		ck_assert_uint_eq(wrong[0], 0);
		ck_assert_uint_eq(wrong[1], 0);
		ck_assert_cua(cua_hashmap_status(m.map));
		for (uint64_t i = 0; i < n_keys; i++) {
			keys[i] = i;
			values[i] = 0;
		}
		bulk(&m, FIND, n_keys, keys, values, flags);
		for (uint64_t i = 0; i < n_keys; i++) {
			EXPECT(tallies[i].inserted - tallies[i].erased == flags[i],
			       "seed %llu: key %llu: inserted %llu times, erased %llu times, %sthere",
			       (unsigned long long)seed, (unsigned long long)i,
			       (unsigned long long)tallies[i].inserted,
			       (unsigned long long)tallies[i].erased, flags[i] ? "" : "not ");
			EXPECT(i < n_moving ? !flags[i] || values[i] >> 16 == i
					    : values[i] == tallies[i].added,
			       "seed %llu: key %llu: the value is wrong", (unsigned long long)seed,
			       (unsigned long long)i);
			size += flags[i];
		}
		ck_assert_uint_eq(size_of(&m), size);
		/* and no key was in the map twice */
		if (t != NEVER_ERASES) {
			bulk(&m, ERASE, n_keys, keys, values, flags);
			ck_assert_uint_eq(size_of(&m), 0);
			bulk(&m, FIND, n_keys, keys, values, flags);
			for (uint64_t i = 0; i < n_keys; i++)
				EXPECT(!flags[i], "seed %llu: key %llu was there twice",
				       (unsigned long long)seed, (unsigned long long)i);
		}
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	free(keys);
	free(values);
	free(flags);
	ck_assert_cuda(cudaFree(tallies));
	ck_assert_cuda(cudaFree(wrong));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- a storm: owners repeatedly erase and insert their keys, the other lanes search ---- */

/* The first n_keys lanes own a key each; they wait for no other lane. */
static __global__ void storm_kernel(struct cua_hashmap_view view, uint32_t n_keys,
				    uint32_t generations, uint32_t *stamps, uint64_t seed,
				    uint32_t *owners_done, uint64_t *wrong)
{
	uint32_t lane = global_id(), bad = 0;

	if (lane < n_keys) {
		for (uint32_t g = 1; g <= generations; g++)
			bad += linear_live(&view, lane, g, &stamps[lane]);
		(void)cua_port_fetch_add_u32(owners_done, 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
					     CUA_SPACE_GLOBAL);
		if (bad)
			ADD(&wrong[0], bad);
		return;
	}
	for (uint64_t i = 0; cua_port_load_b32(owners_done, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
					       CUA_SPACE_GLOBAL) < n_keys;
	     i++) {
		uint64_t r = cua_hash_u64((uint64_t)lane << 32 | i, seed);
		/* half of the searches are for a few keys */
		uint32_t key = (uint32_t)(r >> 32) % (r & 1 ? n_keys : n_keys / 16 + 1), seen = 0;

		for (int again = 0; again < 8; again++)
			bad += linear_look(&view, key, &stamps[key], &seen);
	}
	if (bad)
		ADD(&wrong[1], bad);
}

START_TEST(test_storm)
{
	uint64_t seed = test_seed("test_storm");
	struct cua_context *ctx = test_context(CUA_BACKEND_CUDA);
	const uint32_t generations = test_traced() ? 5 : test_quick() ? 20 : 2000;
	uint64_t *wrong = (uint64_t *)managed(2 * sizeof(*wrong));
	uint32_t *stamps, *owners_done = (uint32_t *)managed(sizeof(*owners_done));

	ck_assert_cuda(cudaMalloc((void **)&stamps, 1024 * sizeof(*stamps)));
	for (unsigned t = 0; t < 4; t++)
		/* one or two buckets: then many */
		for (uint32_t n_keys = 3; n_keys < 1024; n_keys *= 9) {
			struct some_map m = new_map(ctx, t, n_keys);

			ck_assert_cuda(cudaMemset(stamps, 0, 1024 * sizeof(*stamps)));
			ck_assert_cuda(cudaMemset(owners_done, 0, sizeof(*owners_done)));
			storm_kernel<<<test_quick() ? 4 : processors(), 64>>>(
				m.view, n_keys < 128 ? n_keys : 128, generations, stamps, seed,
				owners_done, wrong);
			finish_kernel();
			ck_assert_uint_eq(wrong[0], 0);
			ck_assert_uint_eq(wrong[1], 0);
			ck_assert_uint_eq(size_of(&m), 0);
			ck_assert_cua(cua_hashmap_status(m.map));
			ck_assert_cua(cua_hashmap_destroy(m.map));
		}
	ck_assert_cuda(cudaFree(stamps));
	ck_assert_cuda(cudaFree(owners_done));
	ck_assert_cuda(cudaFree(wrong));
	cua_context_destroy(ctx);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_linear");
	TCase *tc = tcase_create("device_linear");

	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, test_histories);
	tcase_add_test(tc, test_tallies);
	tcase_add_test(tc, test_storm);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CUDA);
}
