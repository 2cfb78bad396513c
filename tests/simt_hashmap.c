/* SPDX-License-Identifier: MIT */
/* The hash map. */
#include <string.h>

#include <cuatomic/hashmap.h>

#include "simt_suites.h"

static uint64_t buckets[2 * CUA_HASHMAP_BUCKET_BYTES / 8];
static struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
static struct cua_hashmap_view map_view = {buckets, counts, 1, 0, 8, 8, CUA_HASHMAP_LAYOUT, 0};
static uint64_t won, lost;

static void map_setup(void)
{
	memset(buckets, 0, sizeof(buckets));
	memset(counts, 0, sizeof(counts));
	won = lost = 0;
}

/* Of the first bucket. */
static void map_set_reach(uint32_t reach)
{
	memcpy((char *)buckets + offsetof(struct cua_hashmap_head, reach), &reach, sizeof(reach));
}

/* Values say whose key they are: value = key * 1000 + anything below 1000. */
static void map_mixed(void)
{
	uint64_t key = simt_lane() % 2, value;

	cua_hashmap_insert(&map_view, key, key * 1000 + simt_lane());
	if (cua_hashmap_find(&map_view, key, &value) && value / 1000 != key)
		simt_fail("find gave another key's value");
	if (simt_lane() % 3 == 0)
		cua_hashmap_erase(&map_view, key);
	else
		cua_hashmap_assign(&map_view, key, key * 1000 + 500);
	if (cua_hashmap_find(&map_view, 1 - key, &value) && value / 1000 != 1 - key)
		simt_fail("find gave another key's value");
}

static uint64_t map_size(void)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < CUA_HASHMAP_STRIPES; i++)
		size += counts[i].inserted - counts[i].erased;
	return size;
}

/* Counts the slots in use from the documented layout; fails on a busy one or a key there twice. */
static const char *map_slots(uint64_t *used)
{
	uint64_t keys[10];
	unsigned n = 0;

	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < 5; i++) {
			const char *slot = (const char *)buckets + b * CUA_HASHMAP_BUCKET_BYTES + 8 + i * 24;
			uint32_t state;
			uint64_t key;

			memcpy(&state, slot, sizeof(state));
			memcpy(&key, slot + 8, sizeof(key));
			if ((state & 3) == 1)
				return "a slot is busy for ever";
			if ((state & 3) == 0)
				continue;
			for (unsigned k = 0; k < n; k++)
				if (keys[k] == key)
					return "a key is there twice";
			keys[n++] = key;
		}
	*used = n;
	return NULL;
}

static const char *map_check(void)
{
	uint64_t used = 0;
	const char *wrong = map_slots(&used);

	if (wrong)
		return wrong;
	return used == map_size() ? NULL : "the size is wrong";
}

/* Adds 1 to one key: the sum must be exact. */
static void map_add(void)
{
	cua_hashmap_update(&map_view, 7, 1, CUA_UPDATE_ADD);
}

static const char *map_add_check(void)
{
	const char *wrong = map_check();
	uint64_t sum = 0;

	if (wrong)
		return wrong;
	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < 5; i++) {
			const char *slot = (const char *)buckets + b * CUA_HASHMAP_BUCKET_BYTES + 8 + i * 24;
			uint32_t state;

			memcpy(&state, slot, sizeof(state));
			if ((state & 3) == 2)
				memcpy(&sum, slot + 16, sizeof(sum));
		}
	return sum == (uint64_t)simt_blocks() * simt_block_lanes() ? NULL : "an update was lost";
}

/* Five slots, of which four are taken: exactly one lane gets the last one. */
static void map_last_slot_setup(void)
{
	map_setup();
	for (unsigned i = 0; i < 4; i++) {
		char *slot = (char *)buckets + 8 + i * 24;
		uint32_t state = 4 | 2;
		uint64_t key = 100 + i;

		memcpy(slot, &state, sizeof(state));
		memcpy(slot + 8, &key, sizeof(key));
	}
	map_set_reach(~(uint32_t)0);
	counts[0].inserted = 4;
}

static void map_last_slot(void)
{
	int result = cua_hashmap_insert(&map_view, simt_lane(), 1);

	cua_port_add_u64(result == CUA_HASHMAP_INSERTED ? &won : &lost, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
			 CUA_SPACE_GLOBAL);
	if (result == CUA_HASHMAP_EXISTS)
		simt_fail("a key exists that nobody inserted");
}

static const char *map_last_slot_check(void)
{
	const char *wrong = map_check();

	if (wrong)
		return wrong;
	return won == 1 && won + lost == (uint64_t)simt_blocks() * simt_block_lanes()
		       ? NULL
		       : "not exactly one lane got the last slot";
}

/*
 * One key that comes and goes in one slot with another key in between, and lanes that watch it. The word
 * `phase` says what the writer has finished: 0 there, 1 erasing, 2 gone, 3 inserting, 4 there.
 */
static uint64_t hot, cold;
static uint32_t phase;

static uint32_t phase_now(void)
{
	return cua_port_load_b32(&phase, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static void phase_set(uint32_t value)
{
	cua_port_store_b32(&phase, value, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static void map_history_setup(void)
{
	map_setup();
	phase = 0;
	hot = 1;
	for (cold = 2; cua__hashmap_home(&map_view, cold).slot != cua__hashmap_home(&map_view, hot).slot;
	     cold++)
		;
	memcpy(cua__hashmap_slot(&map_view, cua__hashmap_home(&map_view, hot)),
	       &(struct {
		       uint32_t state, pad;
		       uint64_t key, value;
	       }){4 | 2, 0, hot, hot * 1000},
	       24);
	map_set_reach(1);
	counts[0].inserted = 1;
}

static void map_history(void)
{
	uint32_t before, after;
	uint64_t value = 0;
	int there;

	if (simt_lane() == 0) {
		phase_set(1);
		if (!cua_hashmap_erase(&map_view, hot))
			simt_fail("erase did not find the key");
		phase_set(2);
		cua_hashmap_insert(&map_view, cold, cold * 1000);
		cua_hashmap_erase(&map_view, cold);
		phase_set(3);
		if (cua_hashmap_insert(&map_view, hot, hot * 1000 + 1) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		phase_set(4);
		return;
	}
	before = phase_now();
	there = cua_hashmap_find(&map_view, hot, &value);
	after = phase_now();
	if (there && value / 1000 != hot)
		simt_fail("find gave another key's value");
	if (there && before >= 2 && value % 1000 != 1)
		simt_fail("find gave a value from before the erase");
	if (before == 2 && after == 2 && there)
		simt_fail("find found an absent key");
	if (((before == 0 && after == 0) || before == 4) && !there)
		simt_fail("find did not find a present key");
}

/* Keys of which each has one writer, which knows what it must see. */
static void map_own(void)
{
	uint64_t key = 100 + simt_lane(), value = 0;

	for (int again = 0; again < 2; again++) {
		if (cua_hashmap_insert(&map_view, key, key * 1000) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		if (!cua_hashmap_find(&map_view, key, &value) || value != key * 1000)
			simt_fail("find did not find the lane's own key");
		if (cua_hashmap_update(&map_view, key, 5, CUA_UPDATE_ADD) != CUA_HASHMAP_EXISTS ||
		    !cua_hashmap_find(&map_view, key, &value) || value != key * 1000 + 5)
			simt_fail("the update of the lane's own key is not there");
		if (!cua_hashmap_erase(&map_view, key) || cua_hashmap_find(&map_view, key, &value))
			simt_fail("erase did not remove the lane's own key");
	}
}

/* A plain message, and a value or a key that says it is there. */
static uint64_t message[2];

static void map_message_setup(void)
{
	map_history_setup();
	message[0] = message[1] = 0;
}

static void map_message(void)
{
	uint64_t value;

	if (simt_lane() == 0) {
		CUA_WRITE(message[0], 1);
		cua_hashmap_assign(&map_view, hot, hot * 1000 + 1);
		CUA_WRITE(message[1], 1);
		cua_hashmap_insert(&map_view, cold, 1);
		return;
	}
	if (cua_hashmap_find(&map_view, hot, &value) && value % 1000 == 1 && CUA_READ(message[0]) != 1)
		simt_fail("the value came before the message");
	if (cua_hashmap_contains(&map_view, cold) && CUA_READ(message[1]) != 1)
		simt_fail("the key came before the message");
}

START_TEST(hashmap)
{
	struct simt_case history = {.name = "map, history", .setup = map_history_setup,
				    .body = map_history, .check = map_check};
	struct simt_case own = {.name = "map, own keys", .setup = map_setup, .body = map_own,
				.check = map_check};
	struct simt_case messages = {.name = "map, messages", .setup = map_message_setup,
				     .body = map_message, .check = map_check};

	struct simt_case mixed = {.name = "map, mixed", .setup = map_setup, .body = map_mixed,
				  .check = map_check};
	struct simt_case add = {.name = "map, add", .setup = map_setup, .body = map_add,
				.check = map_add_check};
	struct simt_case last = {.name = "map, last slot", .setup = map_last_slot_setup,
				 .body = map_last_slot, .check = map_last_slot_check};

	explore_shape(mixed, 2, 1, 2);
	explore_shape(add, 3, 1, 2);
	explore_shape(last, 2, 1, 3);
	explore_shape(history, 2, 1, 3);
	explore_shape(own, 2, 1, 1);
	explore_shape(messages, 2, 1, 2);
	try_shape(history, 1, 8, 50);
	try_shape(history, 3, 3, 50);
	try_shape(own, 1, 5, 20);
	try_shape(messages, 2, 20, 5);
	for (map_view.n_buckets = 1; map_view.n_buckets <= 2; map_view.n_buckets++) {
		try_shape(mixed, 1, 32, 10);
		try_shape(mixed, 3, 20, 10);
		try_shape(add, 2, 40, 5);
	}
	map_view.n_buckets = 1;
	try_shape(last, 2, 16, 10);
}
END_TEST

TCase *simt_hashmap_cases(void)
{
	TCase *tc = simt_tcase("hashmap");

	tcase_add_test(tc, hashmap);
	return tc;
}
