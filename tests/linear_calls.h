/* SPDX-License-Identifier: MIT */
/*
 * Makes calls on a hash map and records them for linear.h, in host threads, in kernels and under
 * the SIMT checker. Define LINEAR_TICK(clock), the next tick, before including this header.
 */
#ifndef CUATOMIC_TESTS_LINEAR_CALLS_H
#define CUATOMIC_TESTS_LINEAR_CALLS_H

#include <cuatomic/hashmap_quad.h>

#include "linear.h"

CUA_STATIC_ASSERT((int)LINEAR_INSERTED == (int)CUA_HASHMAP_INSERTED &&
			  (int)LINEAR_EXISTS == (int)CUA_HASHMAP_EXISTS &&
			  (int)LINEAR_FULL == (int)CUA_HASHMAP_FULL &&
			  (int)LINEAR_ABSENT == (int)CUA_HASHMAP_ABSENT &&
			  (int)LINEAR_DIFFERS == (int)CUA_HASHMAP_DIFFERS,
		  "results are the map's");
CUA_STATIC_ASSERT((int)LINEAR_XOR - (int)LINEAR_ADD == (int)CUA_UPDATE_XOR - (int)CUA_UPDATE_ADD,
		  "updates come in the same order");

/* The updates, through the function that takes an enum cua_update. */
CUA__RARE int linear_update(const struct cua_hashmap_view *view, const struct linear_event *e)
{
	return cua_hashmap_update(view, e->key, e->given,
				  (enum cua_update)(CUA_UPDATE_ADD + (e->op - LINEAR_ADD)));
}

/* The operations of the functions that take keys and values as 64 bits. */
CUA__RARE int linear_untyped(const struct cua_hashmap_view *view, struct linear_event *e)
{
	switch (e->op) {
	case LINEAR_INSERT: return cua_hashmap_insert(view, e->key, e->given);
	case LINEAR_ASSIGN: return cua_hashmap_assign(view, e->key, e->given);
	case LINEAR_FIND: return cua_hashmap_find(view, e->key, &e->got);
	case LINEAR_CONTAINS: return cua_hashmap_contains(view, e->key);
	case LINEAR_ERASE: return cua_hashmap_erase(view, e->key);
	default: return linear_update(view, e);
	}
}

/* Operations that the 64-bit functions do not have. */
CUA_FN int linear_needs_type(enum linear_op op)
{
	return op == LINEAR_INSERT_OR_GET || op == LINEAR_EXCHANGE || op == LINEAR_COMPARE_EXCHANGE;
}

/* Whether execute has the operation: a find, an insert or an erase. */
CUA_FN int linear_executes(enum linear_op op)
{
	return op == LINEAR_INSERT || op == LINEAR_INSERT_OR_GET || op == LINEAR_FIND ||
	       op == LINEAR_CONTAINS || op == LINEAR_ERASE;
}

CUA_FN enum cua_hashmap_operation linear_operation(const struct linear_event *e)
{
	return e->op == LINEAR_ERASE                              ? CUA_HASHMAP_ERASE
	       : e->op == LINEAR_FIND || e->op == LINEAR_CONTAINS ? CUA_HASHMAP_FIND
								  : CUA_HASHMAP_INSERT;
}

/* Records the result of execute. An insert has returned the key's value too. */
CUA_FN int linear_executed(struct linear_event *e, int result, uint64_t value)
{
	if (e->op == LINEAR_INSERT)
		e->op = LINEAR_INSERT_OR_GET;
	e->got = 0;
	if (e->op == LINEAR_INSERT_OR_GET && result != CUA_HASHMAP_FULL)
		e->got = value;
	if (e->op == LINEAR_FIND && result == CUA_HASHMAP_EXISTS)
		e->got = value;
	return e->op == LINEAR_INSERT_OR_GET ? result : result == CUA_HASHMAP_EXISTS;
}

/* All operations, through the functions that the macros of hashmap.h define. */
#define LINEAR__DEFINE(name, K, V)                                                                 \
	CUA_DEFINE_HASHMAP(name, K, V)                                                             \
	CUA_DEFINE_HASHMAP_UPDATE(name##_add, name, old + operand)                                 \
	CUA_DEFINE_HASHMAP_UPDATE(name##_and, name, old &operand)                                  \
	CUA__RARE int name##_run(const struct cua_hashmap_view *view, struct linear_event *e)      \
	{                                                                                          \
		K key = (K)e->key;                                                                 \
		V given = (V)e->given, got = 0;                                                    \
		int result = 0;                                                                    \
                                                                                                   \
		switch (e->op) {                                                                   \
		case LINEAR_INSERT: result = name##_insert(view, key, given); break;               \
		case LINEAR_ASSIGN: result = name##_assign(view, key, given); break;               \
		case LINEAR_ADD: result = name##_add(view, key, given); break;                     \
		case LINEAR_AND: result = name##_and(view, key, given); break;                     \
		case LINEAR_MIN:                                                                   \
		case LINEAR_MAX:                                                                   \
		case LINEAR_OR:                                                                    \
		case LINEAR_XOR: result = linear_update(view, e); break;                           \
		case LINEAR_INSERT_OR_GET:                                                         \
			result = name##_insert_or_get(view, key, given, &got);                     \
			break;                                                                     \
		case LINEAR_EXCHANGE: result = name##_exchange(view, key, given, &got); break;     \
		case LINEAR_COMPARE_EXCHANGE:                                                      \
			got = (V)e->expected;                                                      \
			result = name##_compare_exchange(view, key, &got, given);                  \
			break;                                                                     \
		case LINEAR_FIND: result = name##_find(view, key, &got); break;                    \
		case LINEAR_CONTAINS: result = name##_contains(view, key); break;                  \
		case LINEAR_ERASE: result = name##_erase(view, key); break;                        \
		}                                                                                  \
		e->got = got;                                                                      \
		return result;                                                                     \
	}                                                                                          \
	CUA__RARE int name##_run_execute(const struct cua_hashmap_view *view,                      \
					 struct linear_event *e)                                   \
	{                                                                                          \
		V value = (V)e->given;                                                             \
		const int result = name##_execute(view, linear_operation(e), (K)e->key, &value);   \
                                                                                                   \
		return linear_executed(e, result, value);                                          \
	}
LINEAR__DEFINE(linear_map_4_4, uint32_t, uint32_t)
LINEAR__DEFINE(linear_map_8_8, uint64_t, uint64_t)
#undef LINEAR__DEFINE

/* The two mixed sizes use the 64-bit functions if they exist, to save compile time. */
#define LINEAR__DEFINE(name, K, V)                                                                 \
	CUA_DEFINE_HASHMAP(name, K, V)                                                             \
	CUA__RARE int name##_run(const struct cua_hashmap_view *view, struct linear_event *e)      \
	{                                                                                          \
		K key = (K)e->key;                                                                 \
		V given = (V)e->given, got = 0;                                                    \
		int result = 0;                                                                    \
                                                                                                   \
		if (e->op == LINEAR_INSERT_OR_GET) {                                               \
			result = name##_insert_or_get(view, key, given, &got);                     \
		} else if (e->op == LINEAR_EXCHANGE) {                                             \
			result = name##_exchange(view, key, given, &got);                          \
		} else if (e->op == LINEAR_COMPARE_EXCHANGE) {                                     \
			got = (V)e->expected;                                                      \
			result = name##_compare_exchange(view, key, &got, given);                  \
		} else {                                                                           \
			return linear_untyped(view, e);                                            \
		}                                                                                  \
		e->got = got;                                                                      \
		return result;                                                                     \
	}
LINEAR__DEFINE(linear_map_4_8, uint32_t, uint64_t)
LINEAR__DEFINE(linear_map_8_4, uint64_t, uint32_t)
#undef LINEAR__DEFINE

/* The calls by quads: all lanes make all of them, each with what its event names. */
#define LINEAR__DEFINE_QUAD(name, K, V)                                                            \
	CUA_DEFINE_HASHMAP_QUAD(name, K, V)                                                        \
	CUA_DEFINE_HASHMAP_UPDATE_QUAD(name##_add, name)                                           \
	CUA__RARE int name##_run_quad(const struct cua_hashmap_view *view, uint32_t mask,          \
				      int active, struct linear_event *e)                          \
	{                                                                                          \
		const int op = active ? (int)e->op : -1;                                           \
		K key = (K)e->key;                                                                 \
		const int swaps = op == LINEAR_COMPARE_EXCHANGE;                                   \
		V given = (V)e->given, got = (V)(swaps ? e->expected : 0);                         \
		const int puts = op == LINEAR_INSERT || op == LINEAR_INSERT_OR_GET;                \
		const int sets = op == LINEAR_ASSIGN || op == LINEAR_EXCHANGE;                     \
		const int looks = op == LINEAR_FIND || op == LINEAR_CONTAINS;                      \
		int result = name##_insert_or_get_quad(view, mask, puts, key, given, &got);        \
                                                                                                   \
		result |= name##_exchange_quad(view, mask, sets, key, given, &got);                \
		result |= name##_compare_exchange_quad(view, mask, swaps, key, &got, given);       \
		result |= name##_add_quad(view, mask, op == LINEAR_ADD, key, given);               \
		result |= name##_find_quad(view, mask, looks, key, &got);                          \
		result |= name##_erase_quad(view, mask, op == LINEAR_ERASE, key);                  \
		e->got = got;                                                                      \
		if (active && !puts && !sets && !swaps && !looks && op != LINEAR_ADD &&            \
		    op != LINEAR_ERASE)                                                            \
			result = name##_run(view, e);                                              \
		return result;                                                                     \
	}
LINEAR__DEFINE_QUAD(linear_map_4_4, uint32_t, uint32_t)
LINEAR__DEFINE_QUAD(linear_map_8_8, uint64_t, uint64_t)
#undef LINEAR__DEFINE_QUAD

/* No recursion: otherwise a compiler could not compute the stack size of a kernel. */
CUA__RARE int linear_typed(const struct cua_hashmap_view *view, struct linear_event *e)
{
	if (view->key_size == 4)
		return view->value_size == 4 ? linear_map_4_4_run(view, e)
					     : linear_map_4_8_run(view, e);
	return view->value_size == 4 ? linear_map_8_4_run(view, e) : linear_map_8_8_run(view, e);
}

/* Finds, inserts and erases that the lanes of a warp execute together. */
CUA__RARE int linear_execute(const struct cua_hashmap_view *view, int typed, struct linear_event *e)
{
	uint64_t value = view->value_size == 4 ? (uint32_t)e->given : e->given;
	int result;

	if (typed && view->key_size == view->value_size)
		return view->key_size == 4 ? linear_map_4_4_run_execute(view, e)
					   : linear_map_8_8_run_execute(view, e);
	result = cua_hashmap_execute(view, linear_operation(e), e->key, &value);
	return linear_executed(e, result, value);
}

/* How lanes make calls: flags. */
enum { LINEAR_TYPED = 1, LINEAR_TOGETHER = 2 };

/* As `expected`, stands for the last value that the lane has seen. */
#define LINEAR_LAST (~(uint64_t)0 - 9)

/*
 * Makes the calls of the events in turn, and records their results and moments. `way` is a sum of
 * flags.
 */
CUA_FN void linear_run(const struct cua_hashmap_view *view, uint64_t *clock, int way,
		       struct linear_event *events, unsigned n)
{
	const int typed = way & LINEAR_TYPED;
	uint64_t last = 0;

	for (unsigned i = 0; i < n; i++) {
		struct linear_event e = events[i];
		int result;

		if (e.expected == LINEAR_LAST)
			e.expected = last;
		e.got = 0;
		e.called = LINEAR_TICK(clock);
		if (way & LINEAR_TOGETHER && linear_executes((enum linear_op)e.op))
			result = linear_execute(view, typed, &e);
		else if (typed || linear_needs_type((enum linear_op)e.op))
			result = linear_typed(view, &e);
		else
			result = linear_untyped(view, &e);
		e.returned = LINEAR_TICK(clock);
		e.result = (uint32_t)result;
		last = e.got ? e.got : last;
		events[i] = e;
	}
}

/*
 * The same by quads, for a map whose keys and values have equal sizes. The lanes of mask make their
 * i-th calls together; `most` is the largest n of these lanes.
 */
CUA_FN void linear_run_quad(const struct cua_hashmap_view *view, uint64_t *clock, uint32_t mask,
			    struct linear_event *events, unsigned n, unsigned most)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < most; i++) {
		const int active = i < n;
		struct linear_event e = events[active ? i : 0];
		int result;

		if (e.expected == LINEAR_LAST)
			e.expected = last;
		e.got = 0;
		if (active)
			e.called = LINEAR_TICK(clock);
		cua_port_sync_warp(mask);
		result = view->key_size == 4 ? linear_map_4_4_run_quad(view, mask, active, &e)
					     : linear_map_8_8_run_quad(view, mask, active, &e);
		if (!active)
			continue;
		e.returned = LINEAR_TICK(clock);
		e.result = (uint32_t)result;
		last = e.got ? e.got : last;
		events[i] = e;
	}
}

/* ---- choice of calls ---- */

enum linear_mix {
	LINEAR_MIX_ALL,   /* anything */
	LINEAR_MIX_CHURN, /* keys are erased and inserted during lookups */
	LINEAR_MIX_WATCH, /* even lanes erase and insert again, odd lanes look up */
	LINEAR_MIX_SUMS,  /* updates in place, rarely an erase */
	LINEAR_MIXES
};

CUA__HOST_FN uint64_t linear_take(uint64_t *random, uint64_t n)
{
	uint64_t taken = *random % n;

	*random /= n;
	return taken;
}

/*
 * Chooses n different keys of a size. About half of them are near 0 or the maximum, and may be
 * special to a layout.
 */
CUA__HOST_FN void linear_choose_keys(uint64_t seed, unsigned key_bytes, uint64_t *keys, unsigned n)
{
	uint64_t counter = 0;

	for (unsigned i = 0; i < n; i++) {
		int again;

		do {
			uint64_t r = cua_hash_u64(counter++, seed), small = (r >> 8) % 3;

			keys[i] = r % 2 ? r : r % 4 ? (uint64_t)0 - small : small;
			if (key_bytes == 4)
				keys[i] = (uint32_t)keys[i];
			again = 0;
			for (unsigned j = 0; j < i; j++)
				again |= keys[j] == keys[i];
		} while (again);
	}
}

/* Keys that stay in the map during the calls. */
CUA__HOST_FN uint64_t linear_fill_key(uint64_t i)
{
	return 0x5000000 + i;
}

/* Plans n random calls of a lane on the keys. */
CUA__HOST_FN void linear_plan(struct linear_event *events, unsigned n, uint64_t seed,
			      enum linear_mix mix, const uint64_t *keys, unsigned n_keys,
			      uint32_t lane)
{
	const unsigned writes = LINEAR_FIND;

	for (unsigned i = 0; i < n; i++) {
		struct linear_event *e = &events[i];
		uint64_t random = cua_hash_u64((uint64_t)lane << 32 | i, seed),
			 value = cua_hash_u64(random, 1);
		enum linear_op op, write;
		unsigned kind;
		int seldom;

		memset(e, 0, sizeof(*e));
		e->key = keys[linear_take(&random, n_keys)];
		e->lane = lane;
		kind = (unsigned)linear_take(&random, 8);
		write = (enum linear_op)linear_take(&random, writes);
		seldom = !linear_take(&random, 4);
		switch (mix) {
		case LINEAR_MIX_CHURN:
			op = kind < 3   ? LINEAR_ERASE
			     : kind < 5 ? LINEAR_INSERT
			     : kind < 6 ? write
					: LINEAR_FIND;
			break;
		case LINEAR_MIX_WATCH:
			if (lane % 2)
				op = kind < 6   ? LINEAR_FIND
				     : kind < 7 ? LINEAR_CONTAINS
						: LINEAR_INSERT;
			else
				op = kind < 4   ? LINEAR_ERASE
				     : kind < 7 ? LINEAR_INSERT
						: LINEAR_ASSIGN;
			break;
		case LINEAR_MIX_SUMS:
			op = kind < 6   ? LINEAR_ADD
			     : kind < 7 ? write
			     : seldom   ? LINEAR_ERASE
					: LINEAR_FIND;
			break;
		default:
			op = kind < 4   ? write
			     : kind < 6 ? LINEAR_ERASE
			     : seldom   ? LINEAR_CONTAINS
					: LINEAR_FIND;
		}
		e->op = op;
		/* usually a unique value, sometimes a value that may be special */
		switch (linear_take(&random, 16)) {
		case 0: value = 0; break;
		case 1: value = ~(uint64_t)0; break;
		case 2: value = ~(uint64_t)0 - value % 4; break;
		case 3: value %= 4; break;
		}
		e->given = value;
		e->expected = linear_take(&random, 8) ? LINEAR_LAST : value % 4;
	}
}

/* ---- keys that their owners erase and insert again, each time as the next generation ---- */

/*
 * The stamp of a key shows its owner's step. 4 g - 3: it inserts generation g. 4 g - 2: generation
 * g is present. 4 g - 1: it erases generation g. 4 g: generation g is absent. The stamp is read and
 * incremented by read-modify-writes, so a lookup is ordered either before or after the owner's next
 * step.
 */
CUA_FN uint32_t linear_stamp(uint32_t *stamp, uint32_t add)
{
	return cua_port_fetch_add_u32(stamp, add, CUA_ACQ_REL, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* The value of a generation. Keys and generations are below 2^16. */
CUA_FN uint64_t linear_generation(uint64_t key, uint32_t generation)
{
	return key << 16 | generation;
}

/*
 * The owner inserts the next generation of a key, and erases it. Returns the number of wrong
 * results.
 */
CUA_FN unsigned linear_live(const struct cua_hashmap_view *view, uint64_t key, uint32_t generation,
			    uint32_t *stamp)
{
	struct linear_event e = {
		key, linear_generation(key, generation), 0, 0, 0, 0, LINEAR_INSERT, 0, 0, 0};
	unsigned wrong = 0;

	linear_stamp(stamp, 1);
	wrong += linear_untyped(view, &e) != CUA_HASHMAP_INSERTED;
	linear_stamp(stamp, 1);
	e.op = LINEAR_MAX;
	wrong += linear_untyped(view, &e) != CUA_HASHMAP_EXISTS;
	e.op = LINEAR_FIND;
	wrong += !linear_untyped(view, &e) || e.got != e.given;
	linear_stamp(stamp, 1);
	e.op = LINEAR_ERASE;
	wrong += !linear_untyped(view, &e);
	linear_stamp(stamp, 1);
	return wrong;
}

/*
 * Looks up another lane's key. *generation is the last generation of it that this lane has seen.
 * Returns whether the result is wrong.
 */
CUA_FN unsigned linear_look(const struct cua_hashmap_view *view, uint64_t key, uint32_t *stamp,
			    uint32_t *generation)
{
	struct linear_event e = {key, 0, 0, 0, 0, 0, LINEAR_FIND, 0, 0, 0};
	uint32_t before = linear_stamp(stamp, 0), after, seen;
	int there = linear_untyped(view, &e);

	after = linear_stamp(stamp, 0);
	if (!there)
		return before == after && before % 4 == 2;
	seen = (uint32_t)e.got & 0xffff;
	if (e.got >> 16 != key || seen < *generation || seen < (before + 4) / 4 ||
	    seen > (after + 3) / 4)
		return 1;
	*generation = seen;
	return before == after && before % 4 == 0;
}

#endif /* CUATOMIC_TESTS_LINEAR_CALLS_H */
