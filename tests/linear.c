/* SPDX-License-Identifier: MIT */
#include "linear.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 64
#define MOST_NODES ((uint64_t)1 << 21)

/* ---- a map of a single key ---- */

static uint64_t cut(uint64_t v, unsigned bytes)
{
	return bytes >= 8 ? v : v & (((uint64_t)1 << 8 * bytes) - 1);
}

/* The value after a write to a present key. */
static uint64_t combine(uint64_t old, uint64_t given, uint32_t op)
{
	switch (op) {
	case LINEAR_ASSIGN:
	case LINEAR_EXCHANGE: return given;
	case LINEAR_ADD: return old + given;
	case LINEAR_MIN: return given < old ? given : old;
	case LINEAR_MAX: return given > old ? given : old;
	case LINEAR_AND: return old & given;
	case LINEAR_OR: return old | given;
	case LINEAR_XOR: return old ^ given;
	default: return old;
	}
}

void linear_apply(struct linear_state *state, struct linear_event *event, unsigned value_bytes)
{
	uint64_t given = cut(event->given, value_bytes);

	event->got = 0;
	switch (event->op) {
	case LINEAR_FIND:
	case LINEAR_CONTAINS:
	case LINEAR_ERASE:
		event->result = (uint32_t)state->present;
		if (event->op == LINEAR_FIND && state->present)
			event->got = state->value;
		if (event->op == LINEAR_ERASE)
			state->present = 0;
		break;
	case LINEAR_COMPARE_EXCHANGE:
		event->result = LINEAR_ABSENT;
		if (!state->present)
			break;
		event->got = state->value;
		event->result = LINEAR_DIFFERS;
		if (state->value == cut(event->expected, value_bytes)) {
			state->value = given;
			event->result = LINEAR_EXISTS;
		}
		break;
	default:
		event->result = state->present ? LINEAR_EXISTS : LINEAR_INSERTED;
		if (event->op == LINEAR_EXCHANGE && state->present)
			event->got = state->value;
		state->value = state->present
				       ? cut(combine(state->value, given, event->op), value_bytes)
				       : given;
		state->present = 1;
		if (event->op == LINEAR_INSERT_OR_GET)
			event->got = state->value;
	}
	if (!state->present)
		state->value = 0;
}

static int may_insert(const struct linear_event *e)
{
	return e->op < LINEAR_COMPARE_EXCHANGE;
}

/* Whether `got` is part of the call's result. */
static int returns_value(const struct linear_event *e)
{
	switch (e->op) {
	case LINEAR_FIND: return e->result == 1;
	case LINEAR_EXCHANGE: return e->result == LINEAR_EXISTS;
	case LINEAR_COMPARE_EXCHANGE: return e->result == LINEAR_DIFFERS;
	case LINEAR_INSERT_OR_GET: return e->result != LINEAR_FULL;
	default: return 0;
	}
}

/* Whether the call can have its recorded result in *state. If so, updates *state. */
static int fits(struct linear_state *state, const struct linear_event *e, unsigned value_bytes)
{
	struct linear_state after = *state;
	struct linear_event right = *e;

	if (e->result == LINEAR_FULL && may_insert(e))
		return !state->present;
	linear_apply(&after, &right, value_bytes);
	if (right.result != e->result || (returns_value(e) && right.got != e->got))
		return 0;
	*state = after;
	return 1;
}

/* Whether a call with this result changes no state. */
static int is_read_only(const struct linear_event *e)
{
	switch (e->op) {
	case LINEAR_FIND:
	case LINEAR_CONTAINS: return 1;
	case LINEAR_ERASE: return !e->result;
	case LINEAR_COMPARE_EXCHANGE: return e->result != LINEAR_EXISTS;
	case LINEAR_INSERT:
	case LINEAR_INSERT_OR_GET: return e->result != LINEAR_INSERTED;
	default: return e->result == LINEAR_FULL;
	}
}

/* Whether two calls differ only in their moments. */
static int same_call(const struct linear_event *a, const struct linear_event *b)
{
	return a->op == b->op && a->result == b->result && a->given == b->given &&
	       (a->op != LINEAR_COMPARE_EXCHANGE || a->expected == b->expected) &&
	       (!returns_value(a) || a->got == b->got);
}

/* ---- the search ---- */

/*
 * A call, and its bit in masks of pending calls. Calls pending at the same time have different
 * bits.
 */
struct call {
	const struct linear_event *event;
	unsigned bit;
};

/*
 * A node of the search: the responses before number `next` have passed. `done` has the bits of the
 * pending calls that have had their moment.
 */
struct node {
	uint64_t done;
	struct linear_state state;
	uint32_t next;
	uint32_t tried; /* number of pending calls tried as the next call */
};

struct search {
	unsigned value_bytes;
	struct call *calls; /* by response */
	size_t n;
	/*
	 * the calls pending at response i, by response: pending[first[i]] .. pending[first[i + 1] -
	 * 1]
	 */
	uint32_t *pending, *first;
	size_t room;
	/* visited nodes, a hash table */
	struct node *seen;
	size_t n_seen, seen_room;
	struct node *path;
	struct linear_report *report;
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static int by_call(const void *a, const void *b)
{
	const struct linear_event *x = *(const struct linear_event *const *)a;
	const struct linear_event *y = *(const struct linear_event *const *)b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->called < y->called ? -1 : x->called > y->called;
}

static int by_return(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return x->event->returned < y->event->returned ? -1
						       : x->event->returned > y->event->returned;
}

static void fail(struct linear_report *r, enum linear_verdict verdict, const struct linear_event *e,
		 const char *why)
{
	r->verdict = verdict;
	r->key = e->key;
	snprintf(r->message, sizeof(r->message),
		 "key %" PRIu64 ": the call of lane %u from %" PRIu64 " to %" PRIu64 ": %s", e->key,
		 (unsigned)e->lane, e->called, e->returned, why);
}

/*
 * Lists the calls pending at each response and assigns each call a bit. Returns 0 if there are too
 * few bits.
 */
static int list_pending(struct search *s, const struct linear_event **events)
{
	uint64_t taken = 0;
	size_t n_now = 0, called = 0, used = 0;

	for (size_t i = 0; i < s->n; i++) {
		s->calls[i].event = events[i];
		s->calls[i].bit = AT_ONCE;
	}
	qsort(s->calls, s->n, sizeof(*s->calls), by_return);
	for (size_t i = 0; i < s->n; i++) {
		uint64_t moment = s->calls[i].event->returned;

		for (; called < s->n && events[called]->called < moment; called++)
			n_now++;
		if (n_now > AT_ONCE) {
			fail(s->report, LINEAR_TOO_MUCH, s->calls[i].event, "too many at once");
			return 0;
		}
		if (used + n_now > s->room) {
			s->room = 2 * (used + n_now);
			s->pending = must(realloc(s->pending, s->room * sizeof(*s->pending)));
		}
		s->first[i] = (uint32_t)used;
		/*
		 * in the order of their responses, so the first is call i, and then the most urgent
		 */
		for (size_t j = i, left = n_now; left; j++)
			if (s->calls[j].event->called < moment) {
				if (s->calls[j].bit == AT_ONCE) {
					s->calls[j].bit = (unsigned)__builtin_ctzll(~taken);
					taken |= (uint64_t)1 << s->calls[j].bit;
				}
				s->pending[used++] = (uint32_t)j;
				left--;
			}
		taken &= ~((uint64_t)1 << s->calls[i].bit);
		n_now--;
	}
	s->first[s->n] = (uint32_t)used;
	return 1;
}

/*
 * Advances as long as there is no choice. It passes the responses of calls that have had their
 * moment. A read-only call that fits now has its moment now, because this excludes no other order.
 */
static void settle(const struct search *s, struct node *at)
{
	while (at->next < s->n) {
		for (uint32_t u = s->first[at->next]; u < s->first[at->next + 1]; u++) {
			const struct call *c = &s->calls[s->pending[u]];

			if (!(at->done >> c->bit & 1) && is_read_only(c->event) &&
			    fits(&at->state, c->event, s->value_bytes))
				at->done |= (uint64_t)1 << c->bit;
		}
		if (!(at->done >> s->calls[at->next].bit & 1))
			return;
		at->done &= ~((uint64_t)1 << s->calls[at->next].bit);
		at->next++;
	}
}

static struct node *visited_slot(const struct search *s, const struct node *at)
{
	uint64_t h = (at->done ^ at->state.value * 0x9e3779b97f4a7c15u ^
		      ((uint64_t)at->next << 1 | (uint64_t)at->state.present)) *
		     0xbf58476d1ce4e5b9u;
	size_t i = (h ^ h >> 29) & (s->seen_room - 1);

	/* the table stores next + 1, so that 0 marks an empty slot */
	for (; s->seen[i].next; i = (i + 1) & (s->seen_room - 1))
		if (s->seen[i].next == at->next + 1 && s->seen[i].done == at->done &&
		    s->seen[i].state.present == at->state.present &&
		    s->seen[i].state.value == at->state.value)
			break;
	return &s->seen[i];
}

/* Marks a node as visited. Returns whether it was visited already. */
static int visit(struct search *s, const struct node *at)
{
	struct node *slot = visited_slot(s, at);

	if (slot->next)
		return 1;
	*slot = *at;
	slot->next++;
	if (++s->n_seen > s->seen_room / 2) {
		struct node *old = s->seen;
		size_t old_room = s->seen_room;

		s->seen_room *= 4;
		s->seen = must(calloc(s->seen_room, sizeof(*s->seen)));
		for (size_t i = 0; i < old_room; i++)
			if (old[i].next) {
				struct node moved = old[i];

				moved.next--;
				*visited_slot(s, &moved) = old[i];
			}
		free(old);
	}
	return 0;
}

/* Sets *then to the node after the next call that fits. Returns 0 if all calls have been tried. */
static int follow(const struct search *s, struct node *at, struct node *then)
{
	const uint32_t *pending = s->pending + s->first[at->next];
	uint32_t n = s->first[at->next + 1] - s->first[at->next];

	while (at->tried < n) {
		const struct call *c = &s->calls[pending[at->tried++]];
		int twin = 0;

		if (at->done >> c->bit & 1 || is_read_only(c->event))
			continue;
		/* of equal calls, try only the most urgent */
		for (uint32_t u = 0; u + 1 < at->tried && !twin; u++) {
			const struct call *other = &s->calls[pending[u]];

			twin = !(at->done >> other->bit & 1) && same_call(other->event, c->event);
		}
		*then = *at;
		then->tried = 0;
		if (!twin && fits(&then->state, c->event, s->value_bytes)) {
			then->done |= (uint64_t)1 << c->bit;
			return 1;
		}
	}
	return 0;
}

static void search_key(struct search *s, const struct linear_event **events)
{
	size_t depth = 0;
	uint32_t furthest = 0;
	uint64_t nodes = 0;
	struct node *path = s->path;

	if (!list_pending(s, events))
		return;
	memset(s->seen, 0, s->seen_room * sizeof(*s->seen));
	s->n_seen = 0;
	memset(&path[0], 0, sizeof(path[0]));
	settle(s, &path[0]);
	for (;;) {
		if (path[depth].next == s->n)
			return;
		if (path[depth].next > furthest)
			furthest = path[depth].next;
		s->report->nodes++;
		if (++nodes > MOST_NODES) {
			fail(s->report, LINEAR_TOO_MUCH, s->calls[furthest].event,
			     "too many ways to try");
			return;
		}
		if (!follow(s, &path[depth], &path[depth + 1])) {
			if (!depth) {
				fail(s->report, LINEAR_WRONG, s->calls[furthest].event,
				     "no order of the calls gives it this result");
				return;
			}
			depth--;
			continue;
		}
		settle(s, &path[depth + 1]);
		if (!visit(s, &path[depth + 1]))
			depth++;
	}
}

struct linear_report linear_check(const struct linear_event *events, size_t n, unsigned value_bytes)
{
	struct linear_report report = {LINEAR_OK, "", 0, 0};
	const struct linear_event **sorted = must(malloc((n + 1) * sizeof(*sorted)));
	struct search s = {.value_bytes = value_bytes, .seen_room = 1024, .report = &report};

	s.calls = must(malloc((n + 1) * sizeof(*s.calls)));
	s.first = must(malloc((n + 1) * sizeof(*s.first)));
	s.path = must(malloc((n + 2) * sizeof(*s.path)));
	s.seen = must(calloc(s.seen_room, sizeof(*s.seen)));
	for (size_t i = 0; i < n; i++) {
		sorted[i] = &events[i];
		if (events[i].called >= events[i].returned || events[i].op >= LINEAR_OPS)
			fail(&report, LINEAR_WRONG, &events[i], "is no call");
	}
	qsort(sorted, n, sizeof(*sorted), by_call);
	for (size_t i = 0; i < n && report.verdict != LINEAR_WRONG; i += s.n) {
		const struct linear_report before = report;

		for (s.n = 1; i + s.n < n && sorted[i + s.n]->key == sorted[i]->key; s.n++)
			;
		report.verdict = LINEAR_OK;
		search_key(&s, sorted + i);
		/*
		 * keep an earlier key's LINEAR_TOO_MUCH, but go on: another key may be LINEAR_WRONG
		 */
		if (report.verdict == LINEAR_OK && before.verdict != LINEAR_OK) {
			const uint64_t nodes = report.nodes;

			report = before;
			report.nodes = nodes;
		}
	}
	free(s.seen);
	free(s.path);
	free(s.first);
	free(s.calls);
	free(s.pending);
	free(sorted);
	return report;
}

/* ---- full ---- */

/*
 * From this moment on, a key (by number) may be present (by = 1) or is no longer present (by = -1).
 */
struct change {
	uint64_t moment;
	size_t key;
	int by;
};

static int by_moment(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return x->moment < y->moment ? -1 : x->moment > y->moment;
}

/* The largest number of other keys that may have been present at a moment of the call. */
static uint64_t most_others(const struct linear_event *e, size_t key, const struct change *changes,
			    size_t n, int *there)
{
	uint64_t now = 0, most = 0;

	for (size_t c = 0; c < n && changes[c].moment < e->returned; c++) {
		int *of_key = &there[changes[c].key], before = *of_key > 0;

		if (changes[c].moment > e->called && now > most)
			most = now;
		*of_key += changes[c].by;
		if (changes[c].key != key)
			now = now + (uint64_t)(*of_key > 0) - (uint64_t)before;
	}
	return now > most ? now : most;
}

struct linear_report linear_check_full(const struct linear_event *events, size_t n, uint64_t slots)
{
	struct linear_report report = {LINEAR_OK, "", 0, 0};
	const struct linear_event **sorted = must(malloc((n + 1) * sizeof(*sorted)));
	struct change *changes = must(malloc((n + 1) * sizeof(*changes)));
	int *there = must(malloc((n + 1) * sizeof(*there)));
	size_t n_changes = 0, key = 0;

	for (size_t i = 0; i < n; i++)
		sorted[i] = &events[i];
	qsort(sorted, n, sizeof(*sorted), by_call);
	/* a key may be present from the invocation of its insert until the response of its erase */
	for (size_t i = 0; i < n; i++) {
		const struct linear_event *e = sorted[i];
		int inserted = may_insert(e) && e->result == LINEAR_INSERTED;

		key += i && e->key != sorted[i - 1]->key;
		if (inserted || (e->op == LINEAR_ERASE && e->result)) {
			changes[n_changes].moment = inserted ? e->called : e->returned;
			changes[n_changes].key = key;
			changes[n_changes++].by = inserted ? 1 : -1;
		}
	}
	qsort(changes, n_changes, sizeof(*changes), by_moment);
	key = 0;
	for (size_t i = 0; i < n && report.verdict == LINEAR_OK; i++) {
		key += i && sorted[i]->key != sorted[i - 1]->key;
		if (!may_insert(sorted[i]) || sorted[i]->result != LINEAR_FULL)
			continue;
		memset(there, 0, n * sizeof(*there));
		if (most_others(sorted[i], key, changes, n_changes, there) < slots)
			fail(&report, LINEAR_WRONG, sorted[i],
			     "found the map full, which it was not");
	}
	free(there);
	free(changes);
	free(sorted);
	return report;
}

/* ---- printing ---- */

void linear_print(FILE *file, const struct linear_event *events, size_t n, uint64_t key)
{
	static const char *const names[] = {"insert",
					    "assign",
					    "add",
					    "min",
					    "max",
					    "and",
					    "or",
					    "xor",
					    "insert_or_get",
					    "exchange",
					    "compare_exchange",
					    "find",
					    "contains",
					    "erase"};
	static const char *const results[] = {"ABSENT", "INSERTED", "EXISTS", "FULL", "DIFFERS"};
	const struct linear_event **sorted = must(malloc((n + 1) * sizeof(*sorted)));
	size_t m = 0;

	for (size_t i = 0; i < n; i++)
		if (events[i].key == key)
			sorted[m++] = &events[i];
	qsort(sorted, m, sizeof(*sorted), by_call);
	fprintf(file, "key %" PRIu64 ":\n", key);
	for (size_t i = 0; i < m; i++) {
		const struct linear_event *e = sorted[i];

		fprintf(file, "  %8" PRIu64 " .. %8" PRIu64 " lane %2u %s", e->called, e->returned,
			(unsigned)e->lane, e->op < LINEAR_OPS ? names[e->op] : "?");
		if (e->op < LINEAR_FIND)
			fprintf(file, " %" PRIu64, e->given);
		if (e->op == LINEAR_COMPARE_EXCHANGE)
			fprintf(file, " for %" PRIu64, e->expected);
		if (e->op >= LINEAR_FIND)
			fprintf(file, ": %u", (unsigned)e->result);
		else
			fprintf(file, ": %s",
				e->result <= LINEAR_DIFFERS ? results[e->result] : "?");
		if (returns_value(e))
			fprintf(file, ", %" PRIu64, e->got);
		fprintf(file, "\n");
	}
	free(sorted);
}
