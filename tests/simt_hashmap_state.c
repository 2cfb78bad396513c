/* SPDX-License-Identifier: MIT */
/* The hash map's slots with a state word. */
#include <stdio.h>
#include <string.h>

#include <cuatomic/hashmap.h>

#include "simt_suites.h"

#define BUCKET 128

/* Positions in a bucket, as the header documents them. */
static const struct layout {
	uint32_t ks, vs, bytes, slots, first, key, value;
} layouts[] = {
	{8, 8, 24, 5, 8, 8, 16},
	{16, 16, 40, 3, 8, 8, 24},
	{16, 0, 24, 5, 8, 8, 24},
	{8, 16, 32, 3, 32, 8, 16},
};
static const struct layout *layout = layouts;

static uint64_t buckets[2 * BUCKET / 8];
static struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
static struct cua_hashmap_view map_view = {buckets, counts, NULL, 1, 0, 8, 8, 0, 0, 0, 0, 0};
static uint64_t won, lost;
/* All keys have the same home, so the next key claims an erased key's slot. */
static int one_home;

static void map_setup(void)
{
	memset(buckets, 0, sizeof(buckets));
	memset(counts, 0, sizeof(counts));
	won = lost = 0;
	one_home = 0;
}

/* ---- keys and values, by numbers ---- */

static struct cua_u128 key_of(uint64_t n)
{
	struct cua_u128 key = {n, layout->ks == 16 ? ~n : 0};

	return key;
}

static uint64_t hash_of(uint64_t n)
{
	return one_home ? 0 : cua_hash_u64(n, 0);
}

/* A value names its key, and its halves show whether they belong together. */
static struct cua_u128 value_of(uint64_t key, uint64_t n)
{
	struct cua_u128 value = {layout->vs ? key * 1000 + n : 0, 0};

	if (layout->vs == 16)
		value.hi = ~value.lo;
	return value;
}

/* Returns the value's number, or fails. */
static uint64_t number_of(uint64_t key, struct cua_u128 value)
{
	if (layout->vs && value.lo / 1000 != key)
		simt_fail("another key's value");
	if (value.hi != (layout->vs == 16 ? ~value.lo : 0))
		simt_fail("a value of which the halves are of two values");
	return value.lo % 1000;
}

static int enter(uint64_t key, uint64_t n, struct cua__hashmap_spot *spot)
{
	return cua__hashmap_state_enter(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
					cua__hashmap_key_of(hash_of(key), key_of(key)), NULL,
					value_of(key, n), spot);
}

static int find(uint64_t key, uint64_t *n)
{
	struct cua_u128 value;

	if (!cua__hashmap_state_find(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
				     cua__hashmap_key_of(hash_of(key), key_of(key)), NULL, &value))
		return 0;
	*n = number_of(key, value);
	return 1;
}

static int contains(uint64_t key)
{
	return cua__hashmap_state_find(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
				       cua__hashmap_key_of(hash_of(key), key_of(key)), NULL, NULL);
}

static int erase(uint64_t key)
{
	struct cua_u128 old;

	if (!cua__hashmap_state_erase(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
				      cua__hashmap_key_of(hash_of(key), key_of(key)), NULL, &old))
		return 0;
	number_of(key, old);
	return 1;
}

static struct cua_u128 take_operand(struct cua_u128 old, struct cua_u128 operand,
				    enum cua_update op)
{
	(void)op;
	(void)old;
	return operand;
}

static int assign(uint64_t key, uint64_t n)
{
	struct cua_u128 old;
	int result =
		cua__hashmap_state_update(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
					  cua__hashmap_key_of(hash_of(key), key_of(key)), NULL,
					  value_of(key, n), take_operand, CUA__HASHMAP_NO_OP, &old);

	if (result == CUA_HASHMAP_EXISTS)
		number_of(key, old);
	return result;
}

/* Adds n to the value's number by change. Returns the old number, or ~0 if the key was inserted. */
static uint64_t add_by_change(uint64_t key, uint64_t n)
{
	struct cua__hashmap_spot spot;
	uint64_t before;
	int changed;

	do {
		if (enter(key, n, &spot) != CUA_HASHMAP_EXISTS)
			return ~(uint64_t)0;
		do {
			before = number_of(key, spot.value);
			changed = cua__hashmap_state_change(
				&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
				cua__hashmap_key_of(hash_of(key), key_of(key)), NULL, &spot,
				value_of(key, before + n));
		} while (changed == 0);
	} while (changed < 0);
	return before;
}

static struct cua_u128 add_operand(struct cua_u128 old, struct cua_u128 operand, enum cua_update op)
{
	(void)op;
	/* operand is value_of(key, n) */
	old.lo += operand.lo % 1000;
	if (layout->vs == 16)
		old.hi = ~old.lo;
	return old;
}

/* ---- the memory of the map ---- */

static char *slot_at(unsigned bucket, unsigned slot)
{
	return (char *)buckets + bucket * BUCKET + layout->first + slot * layout->bytes;
}

static uint32_t slot_read(unsigned bucket, unsigned slot, struct cua_u128 *key,
			  struct cua_u128 *value)
{
	uint32_t state;

	memset(key, 0, sizeof(*key));
	memset(value, 0, sizeof(*value));
	memcpy(&state, slot_at(bucket, slot), sizeof(state));
	memcpy(key, slot_at(bucket, slot) + layout->key, layout->ks);
	memcpy(value, slot_at(bucket, slot) + layout->value, layout->vs);
	return state;
}

static void slot_fill(unsigned bucket, unsigned slot, struct cua_u128 key, struct cua_u128 value)
{
	uint32_t state = 4 | 2;

	memcpy(slot_at(bucket, slot), &state, sizeof(state));
	memcpy(slot_at(bucket, slot) + layout->key, &key, layout->ks);
	memcpy(slot_at(bucket, slot) + layout->value, &value, layout->vs);
	counts[0].inserted++;
}

static void set_reach(unsigned bucket, uint32_t reach)
{
	memcpy((char *)buckets + bucket * BUCKET + 4, &reach, sizeof(reach));
}

static uint64_t map_size(void)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < CUA_HASHMAP_STRIPES; i++)
		size += counts[i].inserted - counts[i].erased;
	return size;
}

/* No slot is BUSY or CHANGING, no key is present twice, and the counts are right. */
static const char *map_check(void)
{
	struct cua_u128 keys[10], value;
	unsigned n = 0;

	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < layout->slots; i++) {
			uint32_t state = slot_read(b, i, &keys[n], &value);

			if (state & 1)
				return "a slot is busy or changing for ever";
			if ((state & 3) == 0)
				continue;
			for (unsigned k = 0; k < n; k++)
				if (keys[k].lo == keys[n].lo && keys[k].hi == keys[n].hi)
					return "a key is there twice";
			if (layout->vs == 16 && value.hi != ~value.lo)
				return "a value is of two";
			n++;
		}
	return n == map_size() ? NULL : "the size is wrong";
}

/* ---- cases ---- */

static void map_mixed(void)
{
	uint64_t key = simt_lane() % 2, n;
	struct cua__hashmap_spot spot;

	if (enter(key, simt_lane(), &spot) == CUA_HASHMAP_EXISTS)
		number_of(key, spot.value);
	find(key, &n);
	if (simt_lane() % 3 == 0)
		erase(key);
	else
		assign(key, 500);
	find(1 - key, &n);
}

/* All lanes add 1 to the same key: the sum must be exact. */
static void map_add(void)
{
	if (simt_lane() % 3 == 2)
		cua__hashmap_state_update(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
					  cua__hashmap_key_of(hash_of(7), key_of(7)), NULL,
					  value_of(7, 1), add_operand, CUA__HASHMAP_NO_OP, NULL);
	else
		add_by_change(7, 1);
}

static const char *map_add_check(void)
{
	const char *wrong = map_check();
	struct cua_u128 key, value;

	if (wrong)
		return wrong;
	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < layout->slots; i++)
			if (slot_read(b, i, &key, &value))
				return value.lo == 7000 + simt_blocks() * simt_block_lanes()
					       ? NULL
					       : "an addition was lost";
	return "the key is not there";
}

/* Lanes add to a key and erase it: the erased values and the present value have the sum. */
static uint64_t taken;

static void map_move_setup(void)
{
	map_setup();
	one_home = 1;
	taken = 0;
}

static void map_move(void)
{
	struct cua_u128 old;

	if (simt_lane() == 1) {
		if (!cua__hashmap_state_erase(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
					      cua__hashmap_key_of(0, key_of(7)), NULL, &old))
			return;
		taken += number_of(7, old);
		/* meanwhile the slot holds another key */
		enter(8, 0, NULL);
		erase(8);
	} else {
		add_by_change(7, 1);
		add_by_change(7, 1);
	}
}

static const char *map_move_check(void)
{
	uint64_t lanes = (uint64_t)simt_blocks() * simt_block_lanes(), sum = taken;
	const char *wrong = map_check();
	struct cua_u128 key, value;

	if (wrong)
		return wrong;
	for (unsigned i = 0; i < layout->slots; i++)
		if (slot_read(0, i, &key, &value) & 2)
			sum += value.lo % 1000;
	return sum == 2 * (lanes - 1) ? NULL : "an addition was lost, or went to another key";
}

/* A bucket with a single free slot: exactly one lane claims it. */
static void map_last_slot_setup(void)
{
	map_setup();
	for (unsigned i = 0; i + 1 < layout->slots; i++)
		slot_fill(0, i, key_of(100 + i), value_of(100 + i, 0));
	set_reach(0, ~(uint32_t)0);
}

static void map_last_slot(void)
{
	int result = enter(simt_lane(), 1, NULL);

	cua_port_add_u64(result == CUA_HASHMAP_INSERTED ? &won : &lost, 1, CUA_RELAXED,
			 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
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
 * A writer erases and inserts a key, with another key in the slot in between, while lanes look it
 * up. The word `phase` is the writer's progress: 0 present, 1 erasing, 2 absent, 3 inserting,
 * 4 present.
 */
#define HOT 1
#define COLD 2
static uint32_t phase;

static uint32_t phase_now(void)
{
	/* a read-modify-write, because a load may return an older phase */
	return cua_port_fetch_or_b32(&phase, 0, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static void phase_set(uint32_t value)
{
	cua_port_store_b32(&phase, value, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static void map_history_setup(void)
{
	map_setup();
	one_home = 1;
	phase = 0;
	slot_fill(0, 0, key_of(HOT), value_of(HOT, 0));
	set_reach(0, 1);
}

static void map_history(void)
{
	uint32_t before, after;
	uint64_t n = 0;
	int there;

	if (simt_lane() == 0) {
		phase_set(1);
		if (!erase(HOT))
			simt_fail("erase did not find the key");
		phase_set(2);
		enter(COLD, 0, NULL);
		erase(COLD);
		phase_set(3);
		if (enter(HOT, 1, NULL) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		phase_set(4);
		return;
	}
	before = phase_now();
	there = find(HOT, &n);
	after = phase_now();
	if (there && before >= 2 && layout->vs && n != 1)
		simt_fail("find gave a value from before the erase");
	if (before == 2 && after == 2 && there)
		simt_fail("find found an absent key");
	if (((before == 0 && after == 0) || before == 4) && !there)
		simt_fail("find did not find a present key");
}

/* Each key has a single writer, so the writer knows the result of each of its lookups. */
static void map_own(void)
{
	uint64_t key = 100 + simt_lane(), n = 0;
	struct cua__hashmap_spot spot;

	for (uint64_t again = 0; again < 2; again++) {
		if (enter(key, again, &spot) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		if (enter(key, 9, &spot) != CUA_HASHMAP_EXISTS ||
		    (layout->vs && number_of(key, spot.value) != again))
			simt_fail("insert did not find the lane's own key");
		if (layout->vs && add_by_change(key, 5) != again)
			simt_fail("change did not find the lane's own value");
		if (!find(key, &n) || (layout->vs && n != again + 5))
			simt_fail("the change of the lane's own key is not there");
		if (!erase(key) || contains(key))
			simt_fail("erase did not remove the lane's own key");
	}
}

/* A key stays present while its value changes: each find succeeds, and the values ascend. */
static void map_values(void)
{
	uint64_t n = 0, later = 0;

	if (simt_lane() == 0) {
		assign(HOT, 1);
		add_by_change(HOT, 1);
		return;
	}
	if (!find(HOT, &n) || !contains(HOT) || enter(HOT, 7, NULL) != CUA_HASHMAP_EXISTS ||
	    !find(HOT, &later))
		simt_fail("a key that stays was not found");
	if (later < n || later > 2)
		simt_fail("values came out of order");
}

/*
 * The first half of a key and the second half of another make a third key. There are two buckets.
 * The first slot of the second bucket holds the two keys in turn, and a lookup whose home is the
 * first bucket probes that slot too.
 */
#define HOME_1 ((uint64_t)1 << 63)
static struct cua_u128 both[2] = {{1, 2}, {3, 4}}, half = {1, 4}, other_half = {3, 2};

/* Fails if the map compares a key that no pair has. */
static int half_equal(struct cua_u128 there, struct cua_u128 key)
{
	if ((there.lo == half.lo && there.hi == half.hi) ||
	    (there.lo == key.lo && there.hi == key.hi))
		simt_fail("equality is asked about a key that is nowhere");
	return 0;
}

static void map_halves_setup(void)
{
	map_setup();
	slot_fill(1, 0, both[0], value_of(1, 0));
	set_reach(0, ~(uint32_t)0);
	set_reach(1, 1);
	/* bucket 0 has no free slot */
	for (unsigned i = 0; i < layout->slots; i++)
		slot_fill(0, i, key_of(100 + i), value_of(100 + i, 0));
}

static void map_halves(void)
{
	struct cua__hashmap_spot spot;
	uint32_t ks = layout->ks, vs = layout->vs;
	struct cua_u128 old;

	if (simt_lane() == 0) {
		if (!cua__hashmap_state_erase(&map_view, CUA__HASHMAP_KIND(ks, vs),
					      cua__hashmap_key_of(HOME_1, both[0]), NULL, &old))
			simt_fail("erase did not find the key");
		if (cua__hashmap_state_enter(&map_view, CUA__HASHMAP_KIND(ks, vs),
					     cua__hashmap_key_of(HOME_1, both[1]), NULL,
					     value_of(1, 0), &spot) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		return;
	}
	if (cua__hashmap_state_find(&map_view, CUA__HASHMAP_KIND(ks, vs),
				    cua__hashmap_key_of(0, half), NULL, NULL) ||
	    cua__hashmap_state_find(&map_view, CUA__HASHMAP_KIND(ks, vs),
				    cua__hashmap_key_of(0, half), half_equal, &old))
		simt_fail("halves of two keys were found as a third");
	if (simt_lane() != 1)
		return;
	if (cua__hashmap_state_update(&map_view, CUA__HASHMAP_KIND(ks, vs),
				      cua__hashmap_key_of(0, other_half), half_equal,
				      value_of(1, 1), take_operand, CUA__HASHMAP_NO_OP,
				      NULL) != CUA_HASHMAP_INSERTED)
		simt_fail("halves of two keys were written to as a third");
}

/* The same with keys compared by their bits. */
static void map_halves_bits(void)
{
	if (simt_lane() == 0)
		map_halves();
	else if (simt_lane() == 1 &&
		 cua__hashmap_state_update(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
					   cua__hashmap_key_of(0, half), NULL, value_of(1, 1),
					   take_operand, CUA__HASHMAP_NO_OP,
					   NULL) != CUA_HASHMAP_INSERTED)
		simt_fail("halves of two keys were written to as a third");
}

/* The same with the third key present in a later slot: it must be found. */
static void map_behind_setup(void)
{
	map_halves_setup();
	slot_fill(1, 2, half, value_of(1, 1));
}

static void map_behind(void)
{
	struct cua_u128 old;

	if (simt_lane() == 0) {
		cua__hashmap_state_erase(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
					 cua__hashmap_key_of(HOME_1, both[0]), NULL, &old);
		cua__hashmap_state_enter(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
					 cua__hashmap_key_of(HOME_1, both[1]), NULL, value_of(1, 0),
					 NULL);
		return;
	}
	if (!cua__hashmap_state_find(&map_view, CUA__HASHMAP_KIND(layout->ks, layout->vs),
				     cua__hashmap_key_of(0, half), NULL, &old) ||
	    number_of(1, old) != (layout->vs ? 1 : 0))
		simt_fail("a key behind one that looked like it was not found");
}

/*
 * Reads all pairs while a key is erased and inserted, another's value changes, and a third key
 * stays.
 */
static void map_each_setup(void)
{
	map_history_setup();
	slot_fill(0, 1, key_of(3), value_of(3, 3));
	set_reach(0, 2);
}

static void map_each(void)
{
	unsigned three = 0;

	if (simt_lane() == 0) {
		assign(HOT, 1);
		erase(HOT);
		enter(COLD, 2, NULL);
		return;
	}
	for (uint64_t slot = 0; slot < layout->slots; slot++) {
		struct cua_u128 key, value;

		if (!cua__hashmap_state_at(&map_view, layout->ks, layout->vs, slot, &key, &value))
			continue;
		if (key.hi != key_of(key.lo).hi || key.lo < 1 || key.lo > 3)
			simt_fail("a key that nobody inserted");
		if (layout->vs && number_of(key.lo, value) > 3)
			simt_fail("a value that nobody stored");
		three += key.lo == 3;
	}
	if (three != 1)
		simt_fail("a key that stays was not seen once");
}

/* A plain message, published by a value or by a key. */
static uint64_t message[2];

static void map_message_setup(void)
{
	map_history_setup();
	message[0] = message[1] = 0;
}

static void map_message(void)
{
	uint64_t n;

	if (simt_lane() == 0) {
		CUA_WRITE(message[0], 1);
		if (layout->vs)
			assign(HOT, 1);
		CUA_WRITE(message[1], 1);
		enter(COLD, 1, NULL);
		return;
	}
	if (find(HOT, &n) && layout->vs && n == 1 && CUA_READ(message[0]) != 1)
		simt_fail("the value came before the message");
	if (contains(COLD) && CUA_READ(message[1]) != 1)
		simt_fail("the key came before the message");
}

/* A case of this layout. */
static void bounded_setup(void)
{
	map_setup();
	one_home = 1;
}

/* 8 keys of the same home slot, bounded to one bucket: as many are inserted as there are slots. */
static void map_bounded(void)
{
	for (unsigned i = simt_lane(); i < 8; i += simt_blocks() * simt_block_lanes()) {
		struct cua__hashmap_spot spot;
		const int result = i % 2 && layout->vs ? assign(i, 1) : enter(i, 1, &spot);

		cua_port_add_u64(result == CUA_HASHMAP_INSERTED ? &won : &lost, 1, CUA_RELAXED,
				 CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		if (result != CUA_HASHMAP_INSERTED && result != CUA_HASHMAP_FULL)
			simt_fail("a key exists that nobody inserted");
		if (contains(i) != (result == CUA_HASHMAP_INSERTED))
			simt_fail("contains does not say what the insert did");
	}
}

static const char *map_bounded_check(void)
{
	if (won != layout->slots)
		return "the keys got more slots than the bound allows, or fewer";
	return map_check();
}

/* A single lane: an erased slot is reused, although a key is in the last slot of the bound. */
static void map_bounded_reuse(void)
{
	struct cua__hashmap_spot spot;

	for (unsigned i = 0; i < layout->slots; i++)
		if (enter(i, 1, &spot) != CUA_HASHMAP_INSERTED)
			simt_fail("a key is rejected before the slots are taken");
	if (enter(7, 1, &spot) != CUA_HASHMAP_FULL)
		simt_fail("a key has a slot that the bound does not allow");
	if (!erase(1) || enter(7, 1, &spot) != CUA_HASHMAP_INSERTED)
		simt_fail("a free slot is not used again");
}

static struct simt_case case_of(const char *name, void (*setup)(void), void (*body)(void),
				const char *(*check)(void))
{
	static char names[16][48];
	static unsigned n;
	char *full = names[n++ % 16];
	struct simt_case c = {.setup = setup, .body = body, .check = check};

	snprintf(full, sizeof(names[0]), "slots %u+%u, %s", layout->ks, layout->vs, name);
	c.name = full;
	return c;
}

START_TEST(hashmap_state)
{
	struct simt_case mixed, add, move, last, history, own, values, halves, bits, behind, each,
		messages, bounded, reuse;

	layout = &layouts[_i];
	map_view.key_size = layout->ks;
	map_view.value_size = layout->vs;
	map_view.n_buckets = 1;
	mixed = case_of("mixed", map_setup, map_mixed, map_check);
	add = case_of("add", map_setup, map_add, map_add_check);
	move = case_of("add and erase", map_move_setup, map_move, map_move_check);
	last = case_of("last slot", map_last_slot_setup, map_last_slot, map_last_slot_check);
	history = case_of("history", map_history_setup, map_history, map_check);
	own = case_of("own keys", map_setup, map_own, map_check);
	values = case_of("values", map_history_setup, map_values, map_check);
	halves = case_of("halves", map_halves_setup, map_halves, map_check);
	bits = case_of("halves, bits", map_halves_setup, map_halves_bits, map_check);
	behind = case_of("behind halves", map_behind_setup, map_behind, map_check);
	each = case_of("for each", map_each_setup, map_each, map_check);
	bounded = case_of("bounded", bounded_setup, map_bounded, map_bounded_check);
	reuse = case_of("bounded, reuse", bounded_setup, map_bounded_reuse, map_check);
	messages = case_of("messages", map_message_setup, map_message, map_check);

	explore_shape(mixed, 2, 1, 2);
	explore_shape(last, 2, 1, 3);
	explore_shape(history, 2, 1, 3);
	explore_shape(own, 2, 1, 1);
	explore_shape(each, 2, 1, 2);
	explore_shape(messages, 2, 1, 2);
	try_shape(history, 1, 8, 50);
	try_shape(history, 3, 3, 50);
	try_shape(own, 1, layout->slots, 20);
	try_shape(each, 2, 10, 5);
	try_shape(messages, 2, 20, 5);
	try_shape(last, 2, 16, 10);
	if (layout->vs) {
		explore_shape(add, 3, 1, 2);
		explore_shape(move, 2, 1, 2);
		explore_shape(values, 2, 1, 2);
		try_shape(move, 2, 3, 20);
		try_shape(values, 2, 10, 10);
	}
	for (map_view.n_buckets = 1; map_view.n_buckets <= 2; map_view.n_buckets++) {
		try_shape(mixed, 1, 32, 10);
		try_shape(mixed, 3, 20, 10);
		if (layout->vs)
			try_shape(add, 2, 20, 5);
	}
	map_view.n_buckets = 2;
	map_view.max_probes = 1;
	explore_shape(bounded, 2, 1, 1);
	try_shape(bounded, 2, 4, 20);
	try_shape(reuse, 1, 1, 1);
	map_view.max_probes = 0;
	if (layout->ks == 16) {
		explore_shape(halves, 2, 1, 2);
		explore_shape(bits, 2, 1, 2);
		explore_shape(behind, 2, 1, 2);
		try_shape(halves, 2, 10, 10);
		try_shape(behind, 2, 10, 10);
	}
}
END_TEST

TCase *simt_hashmap_state_cases(void)
{
	TCase *tc = simt_tcase("hashmap_state");

	tcase_add_loop_test(tc, hashmap_state, 0, sizeof(layouts) / sizeof(layouts[0]));
	return tc;
}
