/* SPDX-License-Identifier: MIT */
#undef _FORTIFY_SOURCE /* coroutines longjmp between stacks */
#define _GNU_SOURCE
#include "simt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)64 << 10)
#define SHARED_BYTES ((size_t)16 << 10)
#define SHADOWS ((size_t)1 << 15)
#define DEFAULT_MAX_STEPS 1000000u
#define MAX_CHOICES 100000u
#define STORES 4u           /* the newest stores to a word that a load may return */
#define STALE_MAX_LANES 64u /* in runs with more lanes each load returns the newest store */

/* The numbers of enum cua_order and enum cua_scope. */
enum { RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };
enum { BLOCK, DEVICE, SYSTEM };

enum state { READY, PAUSED, AT_WARP, AT_BLOCK, DONE };

struct lane {
	enum state state;
	unsigned block, in_block;
	uint64_t waits_for; /* exploring: lanes to take a step before the pause ends */
	ucontext_t start;
	jmp_buf at;
	int started;
	/* the warp operation that the lane waits in */
	const char *what;
	uint32_t mask;
	uint64_t value;
	uint64_t got[SIMT_WARP_LANES];
	int orders_memory;
	const void *converges_at; /* the simt_active_mask call that the lane waits in, or NULL */
	/* vector clocks, with a number for each lane */
	uint32_t *now;
	uint32_t *released; /* clock at its last release fence */
	int released_scope; /* -1: none */
	uint32_t *pending
		[2]; /* read by relaxed loads of block, device scope; an acquire fence joins it */
	uint32_t *fenced; /* clocks of the fences of order SEQ_CST before its last such fence */
};

/* A store to four bytes of memory. */
struct stored {
	uint64_t number; /* counts all stores of the run; 0: the value before them */
	uint32_t value;  /* unless it is the newest store: then memory has the value */
	uint32_t *seen;  /* for each lane its clock when it made the store or first read it, or 0 */
	uint32_t *device, *in_block; /* as in struct shadow, after the store */
	int device_block, block;
};

/* The shadow state of four bytes of memory. */
struct shadow {
	uintptr_t address; /* of the bytes / 4; 0: unused */
	uint32_t *plain_read, *plain_write, *atomic_read, *atomic_write;
	unsigned char *atomic_scope;
	/*
	 * the clocks that an acquire joins: released at device scope, and at block scope by `block`
	 */
	uint32_t *device, *in_block;
	int device_block; /* the block of all releases in `device`, -1 none, -2 several */
	int block;        /* -1 none */
	struct stored stores[STORES]; /* the newest is the last */
	unsigned n_stores;
	int has_clocks; /* of stores */
	int by_parts;   /* an access of less than 16 bytes has stored to it */
};

static struct {
	const struct simt_case *c;
	unsigned n;
	struct lane lanes[SIMT_MAX_LANES];
	char *stacks;
	char *shared;
	jmp_buf scheduler;
	unsigned current;
	uint64_t steps, clock;
	struct simt_report report;
	struct shadow *shadows;
	size_t used[SHADOWS];
	size_t n_used;
	int stale;         /* whether a load may return an older store */
	uint64_t stores;   /* of this run */
	uint32_t *fences;  /* clocks of all fences of order SEQ_CST */
	uint32_t *moments; /* clocks of all moments */
	uint32_t *clocks;  /* arena of all vectors of a run */
	size_t clocks_used, clocks_room;
	/* random schedules */
	uint64_t random;
	enum simt_policy policy;
	unsigned victim;
	/* exhaustive exploration */
	int exploring;
	unsigned preemptions, bound;
	struct {
		unsigned char n, at, costs; /* costs: bit i set when option i is a preemption */
	} * choices;
	size_t n_choices, at_choice;
} s;

static uint64_t next_random(void)
{
	uint64_t z = s.random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static struct lane *self(void)
{
	return &s.lanes[s.current];
}

static void verdict(enum simt_verdict v, const char *format, ...)
{
	va_list args;

	if (s.report.verdict != SIMT_OK)
		return;
	s.report.verdict = v;
	va_start(args, format);
	vsnprintf(s.report.message, sizeof(s.report.message), format, args);
	va_end(args);
}

/* ---- coroutines ---- */

/* Switches to the scheduler. Returns when the scheduler chooses this lane again. */
static void yield(void)
{
	if (!_setjmp(self()->at))
		_longjmp(s.scheduler, 1);
}

static void end_run(void)
{
	_longjmp(s.scheduler, 2);
}

static void lane_main(void)
{
	s.c->body();
	self()->state = DONE;
	_longjmp(s.scheduler, 1);
}

static void resume(unsigned lane)
{
	struct lane *l = &s.lanes[lane];

	s.current = lane;
	if (l->started)
		_longjmp(l->at, 1);
	l->started = 1;
	setcontext(&l->start);
}

/* ---- clocks ---- */

static uint32_t *new_clock(void)
{
	uint32_t *v;

	if (s.clocks_used + s.n > s.clocks_room) {
		verdict(SIMT_FAILED, "the checker is out of clocks; make the case smaller");
		end_run();
	}
	v = s.clocks + s.clocks_used;
	s.clocks_used += s.n;
	memset(v, 0, s.n * sizeof(*v));
	return v;
}

static void join(uint32_t *into, const uint32_t *from)
{
	for (unsigned i = 0; i < s.n; i++)
		if (from[i] > into[i])
			into[i] = from[i];
}

static struct shadow *shadow_at(uintptr_t address)
{
	size_t at = (address * 0x9e3779b97f4a7c15u) >> 49;

	while (s.shadows[at].address && s.shadows[at].address != address)
		at = (at + 1) % SHADOWS;
	if (!s.shadows[at].address) {
		struct shadow *c = &s.shadows[at];

		if (s.n_used > SHADOWS / 2) {
			verdict(SIMT_FAILED,
				"the checker is out of shadow memory; make the case smaller");
			end_run();
		}
		c->address = address;
		c->plain_read = new_clock();
		c->plain_write = new_clock();
		c->atomic_read = new_clock();
		c->atomic_write = new_clock();
		c->atomic_scope = (unsigned char *)new_clock();
		c->device = new_clock();
		c->in_block = new_clock();
		c->device_block = c->block = -1;
		c->n_stores = 0;
		c->has_clocks = 0;
		c->by_parts = 0;
		s.used[s.n_used++] = at;
	}
	return &s.shadows[at];
}

static void check_against(const struct lane *l, const uint32_t *others, const char *mine,
			  const char *theirs, const struct shadow *c)
{
	for (unsigned j = 0; j < s.n; j++)
		if (others[j] > l->now[j] && j != s.current)
			verdict(SIMT_RACE,
				"%s by lane %u of block %u at %p races with a %s by lane %u of block %u",
				mine, l->in_block, l->block, (void *)(c->address * 4), theirs,
				s.lanes[j].in_block, s.lanes[j].block);
}

/* Two unordered atomics race if the scope of either does not include the other's lane. */
static void check_scopes(const struct lane *l, const uint32_t *others, int scope,
			 const struct shadow *c)
{
	for (unsigned j = 0; j < s.n; j++) {
		if (j == s.current || others[j] <= l->now[j] || s.lanes[j].block == l->block)
			continue;
		if (scope == BLOCK || c->atomic_scope[j] == BLOCK)
			verdict(SIMT_RACE,
				"atomics at %p by lane %u of block %u and lane %u of block %u: "
				"block scope does not reach across blocks",
				(void *)(c->address * 4), l->in_block, l->block,
				s.lanes[j].in_block, s.lanes[j].block);
	}
}

/*
 * Joins the clocks that an acquire of this scope gets from a store, or from the newest if `from` is
 * NULL.
 */
static void acquire_from(const struct lane *l, uint32_t *into, const struct shadow *c,
			 const struct stored *from, int scope)
{
	if (scope > BLOCK || (from ? from->device_block : c->device_block) == (int)l->block)
		join(into, from ? from->device : c->device);
	if ((from ? from->block : c->block) == (int)l->block)
		join(into, from ? from->in_block : c->in_block);
}

/* Adds a released clock to the shadow. clear ends the release sequence so far. */
static void release_to(const struct lane *l, struct shadow *c, const uint32_t *clock, int scope,
		       int clear)
{
	if (clear) {
		memset(c->device, 0, s.n * sizeof(*c->device));
		memset(c->in_block, 0, s.n * sizeof(*c->in_block));
		c->device_block = c->block = -1;
	}
	if (!clock)
		return;
	if (scope > BLOCK) {
		join(c->device, clock);
		c->device_block = c->device_block == -1 || c->device_block == (int)l->block
					  ? (int)l->block
					  : -2;
	} else {
		if (c->block != (int)l->block)
			memset(c->in_block, 0, s.n * sizeof(*c->in_block));
		join(c->in_block, clock);
		c->block = (int)l->block;
	}
}

/* ---- older stores ---- */

/*
 * A load may return any store to its bytes that is not older than one that the lane knows. It knows
 * each store that happens before the load, and each store that was returned by a load that happens
 * before. A fence of order SEQ_CST makes known what all earlier such fences knew. Read-modify-writes
 * are done at once and get the newest store.
 */

static uint32_t memory_of(const struct shadow *c)
{
	uint32_t value;

	memcpy(&value, (const void *)(c->address * 4), sizeof(value));
	return value;
}

static void keep_clocks(struct stored *store, const struct shadow *c)
{
	memcpy(store->device, c->device, s.n * sizeof(*c->device));
	memcpy(store->in_block, c->in_block, s.n * sizeof(*c->in_block));
	store->device_block = c->device_block;
	store->block = c->block;
}

/* Makes a place for a store, and gives it no number yet. */
static struct stored *new_store(struct shadow *c)
{
	struct stored *store;

	if (!c->has_clocks)
		for (unsigned i = 0; i < STORES; i++) {
			c->stores[i].seen = new_clock();
			c->stores[i].device = new_clock();
			c->stores[i].in_block = new_clock();
		}
	c->has_clocks = 1;
	if (c->n_stores == STORES) {
		struct stored oldest = c->stores[0];

		memmove(c->stores, c->stores + 1, (STORES - 1) * sizeof(*c->stores));
		c->stores[--c->n_stores] = oldest;
	}
	store = &c->stores[c->n_stores++];
	memset(store->seen, 0, s.n * sizeof(*store->seen));
	return store;
}

/* Notes the value before all stores of the run. */
static void note_first(struct shadow *c)
{
	struct stored *store;

	if (c->n_stores)
		return;
	store = new_store(c);
	store->number = 0;
	keep_clocks(store, c);
}

/* Notes a store by this lane; memory has the value before it. */
static struct stored *note_store(struct shadow *c)
{
	struct stored *store;

	note_first(c);
	c->stores[c->n_stores - 1].value = memory_of(c);
	store = new_store(c);
	store->number = s.stores;
	store->seen[s.current] = self()->now[s.current];
	return store;
}

static int knows(const struct lane *l, const struct stored *store)
{
	for (unsigned j = 0; j < s.n; j++)
		if (store->seen[j] &&
		    (store->seen[j] <= l->now[j] || store->seen[j] <= l->fenced[j]))
			return 1;
	return 0;
}

/* The newest store to these four bytes that is not newer than `number`. */
static struct stored *stored_at(struct shadow *c, uint64_t number)
{
	unsigned i = c->n_stores - 1;

	while (i && c->stores[i].number > number)
		i--;
	return &c->stores[i];
}

static unsigned choose(unsigned n);

/* Chooses the store that a load of these words returns, as a number for stored_at. */
static uint64_t choose_store(struct shadow *const *words, size_t n)
{
	uint64_t oldest = 0, numbers[4 * STORES];
	unsigned left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct shadow *c = words[i];
		unsigned k = c->n_stores - 1;

		while (k && !knows(self(), &c->stores[k]))
			k--;
		if (c->stores[k].number > oldest)
			oldest = c->stores[k].number;
	}
	/* from the newest on, so that choice 0 is the newest */
	for (uint64_t below = UINT64_MAX;;) {
		uint64_t number = 0;
		int found = 0;

		for (size_t i = 0; i < n; i++)
			for (unsigned k = 0; k < words[i]->n_stores; k++) {
				const uint64_t at = words[i]->stores[k].number;

				if (at < below && at >= oldest && (!found || at > number)) {
					number = at;
					found = 1;
				}
			}
		if (!found)
			break;
		numbers[left++] = below = number;
	}
	return left ? numbers[choose(left)] : oldest;
}

/* ---- accesses ---- */

static void fence_all(struct lane *l)
{
	join(l->fenced, s.fences);
	join(s.fences, l->now);
}

/* Stores into *value what a load returns; the other accesses have value NULL. */
static void atomic_effect(enum simt_access access, const void *p, size_t bytes, int order,
			  int scope, void *value)
{
	struct lane *l = self();
	struct shadow *words[4];
	int acquires = order == ACQUIRE || order >= ACQ_REL, releases = order >= RELEASE;
	uint64_t number = 0;

	if ((uintptr_t)p % bytes)
		verdict(SIMT_FAILED, "misaligned atomic at %p", p);
	if (order == SEQ_CST)
		fence_all(l);
	l->now[s.current]++;
	for (size_t i = 0; i < bytes; i += 4) {
		words[i / 4] = shadow_at((uintptr_t)p / 4 + i / 4);
		if (s.stale)
			note_first(words[i / 4]);
	}
	if (s.stale && access == SIMT_LOAD && value)
		number = choose_store(words, bytes / 4);
	else
		s.stores++;
	for (size_t i = 0; i < bytes; i += 4) {
		struct shadow *c = words[i / 4];
		struct stored *from = NULL;

		check_against(l, c->plain_write, "atomic", "plain write", c);
		check_scopes(l, c->atomic_write, scope, c);
		if (access != SIMT_LOAD) {
			check_against(l, c->plain_read, "atomic write", "plain read", c);
			check_scopes(l, c->atomic_read, scope, c);
			c->atomic_write[s.current] = l->now[s.current];
		}
		if (value) {
			const uint32_t newest = memory_of(c);

			if (s.stale)
				from = stored_at(c, number);
			memcpy((char *)value + i,
			       from && from != &c->stores[c->n_stores - 1] ? &from->value : &newest,
			       4);
		} else if (s.stale) {
			from = &c->stores[c->n_stores - 1];
		}
		if (access != SIMT_STORE) {
			if (from && !from->seen[s.current])
				from->seen[s.current] = l->now[s.current];
			c->atomic_read[s.current] = l->now[s.current];
			if (acquires)
				acquire_from(l, l->now, c, from, scope);
			for (int f = BLOCK; f <= DEVICE && f <= scope; f++)
				acquire_from(l, l->pending[f], c, from, f);
		}
		c->atomic_scope[s.current] = (unsigned char)scope;
		if (access != SIMT_LOAD) {
			struct stored *store = s.stale ? note_store(c) : NULL;

			c->by_parts |= bytes < 16;
			release_to(l, c, releases ? l->now : NULL, scope, access == SIMT_STORE);
			if (!releases && l->released_scope >= 0)
				release_to(l, c, l->released,
					   l->released_scope < scope ? l->released_scope : scope,
					   0);
			if (store)
				keep_clocks(store, c);
		}
	}
	if (s.report.verdict != SIMT_OK)
		end_run();
}

void simt_atomic(enum simt_access access, const void *p, size_t bytes, int order, int scope)
{
	yield();
	atomic_effect(access, p, bytes, order, scope, NULL);
}

/*
 * A load of 16 bytes is one access only of words that are stored by accesses of 16 bytes. A word that
 * is stored by halves is loaded by halves: PTX orders accesses of different sizes less strictly.
 */
void simt_load(const void *p, void *value, size_t bytes, int order, int scope)
{
	if (bytes == 16 &&
	    (shadow_at((uintptr_t)p / 4)->by_parts || shadow_at((uintptr_t)p / 4 + 2)->by_parts)) {
		simt_load(p, value, 8, order, scope);
		simt_load((const char *)p + 8, (char *)value + 8, 8, order, scope);
		return;
	}
	yield();
	atomic_effect(SIMT_LOAD, p, bytes, order, scope, value);
}

void simt_cas(const void *p, size_t bytes, const void *expected, int order, int scope)
{
	yield();
	if (memcmp(p, expected, bytes) == 0)
		atomic_effect(SIMT_RMW, p, bytes, order, scope, NULL);
	else
		atomic_effect(SIMT_LOAD, p, bytes,
			      order == ACQ_REL   ? ACQUIRE
			      : order == RELEASE ? RELAXED
						 : order,
			      scope, NULL);
}

void simt_plain(int is_write, const void *p, size_t bytes)
{
	struct lane *l;
	uintptr_t first = (uintptr_t)p / 4, last = ((uintptr_t)p + bytes - 1) / 4;

	yield();
	l = self();
	l->now[s.current]++;
	for (uintptr_t a = first; a <= last; a++) {
		struct shadow *c = shadow_at(a);
		const char *mine = is_write ? "plain write" : "plain read";

		check_against(l, c->plain_write, mine, "plain write", c);
		check_against(l, c->atomic_write, mine, "atomic write", c);
		if (is_write) {
			check_against(l, c->plain_read, mine, "plain read", c);
			check_against(l, c->atomic_read, mine, "atomic read", c);
			c->plain_write[s.current] = l->now[s.current];
			c->n_stores = 0; /* all later accesses know it, or race */
		} else {
			c->plain_read[s.current] = l->now[s.current];
		}
	}
	if (s.report.verdict != SIMT_OK)
		end_run();
}

void simt_fence(int order, int scope)
{
	struct lane *l;

	yield();
	l = self();
	if (order == RELAXED)
		return;
	if (order == SEQ_CST)
		fence_all(l);
	l->now[s.current]++;
	if (order != RELEASE)
		for (int f = BLOCK; f <= DEVICE && f <= scope; f++)
			join(l->now, l->pending[f]);
	if (order != ACQUIRE) {
		memcpy(l->released, l->now, s.n * sizeof(*l->now));
		l->released_scope = scope;
	}
}

int simt_acquires_by_fence(void)
{
	return s.exploring || next_random() % 2;
}

void simt_pause(void)
{
	struct lane *l = self();

	s.clock += 100;
	l->state = PAUSED;
	l->waits_for = 0;
	if (s.exploring)
		for (unsigned i = 0; i < s.n; i++)
			if (s.lanes[i].state == READY)
				l->waits_for |= (uint64_t)1 << i;
	yield();
}

uint64_t simt_clock(void);
uint64_t simt_clock(void)
{
	return s.clock;
}

/* ---- warps and blocks ---- */

static unsigned warp_start(unsigned lane)
{
	const struct lane *l = &s.lanes[lane];

	return lane - l->in_block % SIMT_WARP_LANES;
}

static int in_warp(unsigned warp, unsigned i)
{
	return warp + i < s.n && s.lanes[warp + i].block == s.lanes[warp].block;
}

/* Completes a warp operation if all lanes of its mask have arrived. */
static void try_warp(unsigned lane)
{
	const struct lane *me = &s.lanes[lane];
	unsigned warp = warp_start(lane);
	uint32_t mask = me->mask;
	uint32_t *all;

	for (unsigned i = 0; i < SIMT_WARP_LANES; i++) {
		const struct lane *l = &s.lanes[warp + i];

		if (!(mask >> i & 1))
			continue;
		/* a lane that waits with a different mask may arrive later */
		if (!in_warp(warp, i) || l->state != AT_WARP || l->mask != mask)
			return;
		if (strcmp(l->what, me->what)) {
			verdict(SIMT_FAILED, "warp operation %s meets %s with the same mask %#x",
				me->what, l->what, mask);
			return;
		}
	}
	all = new_clock();
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (mask >> i & 1)
			join(all, s.lanes[warp + i].now);
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++) {
		struct lane *l = &s.lanes[warp + i];

		if (!(mask >> i & 1))
			continue;
		for (unsigned k = 0; k < SIMT_WARP_LANES; k++)
			if (mask >> k & 1)
				l->got[k] = s.lanes[warp + k].value;
		if (l->orders_memory)
			join(l->now, all);
		l->state = READY;
	}
	s.clocks_used -= s.n;
}

void simt_warp_converge(const char *what, uint32_t mask, uint64_t value,
			uint64_t values[SIMT_WARP_LANES], int orders_memory)
{
	struct lane *l;

	yield();
	l = self();
	if (!(mask >> (l->in_block % SIMT_WARP_LANES) & 1)) {
		verdict(SIMT_FAILED, "lane %u calls %s with mask %#x, which does not name it",
			l->in_block, what, mask);
		end_run();
	}
	l->now[s.current]++;
	l->what = what;
	l->mask = mask;
	l->value = value;
	l->orders_memory = orders_memory;
	l->state = AT_WARP;
	try_warp(s.current);
	if (s.report.verdict != SIMT_OK)
		end_run();
	if (l->state == AT_WARP)
		yield();
	memcpy(values, self()->got, sizeof(self()->got));
}

/* Opens the barrier if every lane of the block has arrived or returned. */
static void try_block(unsigned block)
{
	const char *what = NULL;
	uint64_t any = 0;
	uint32_t *all;

	for (unsigned i = 0; i < s.n; i++)
		if (s.lanes[i].block == block && s.lanes[i].state != AT_BLOCK &&
		    s.lanes[i].state != DONE)
			return;
	all = new_clock();
	for (unsigned i = 0; i < s.n; i++)
		if (s.lanes[i].block == block && s.lanes[i].state == AT_BLOCK) {
			if (what && strcmp(s.lanes[i].what, what)) {
				verdict(SIMT_FAILED, "barrier %s meets %s", s.lanes[i].what, what);
				return;
			}
			what = s.lanes[i].what;
			any |= s.lanes[i].value;
			join(all, s.lanes[i].now);
		}
	for (unsigned i = 0; i < s.n; i++)
		if (s.lanes[i].block == block && s.lanes[i].state == AT_BLOCK) {
			join(s.lanes[i].now, all);
			s.lanes[i].got[0] = any;
			s.lanes[i].state = READY;
		}
	s.clocks_used -= s.n;
}

int simt_block_converge(const char *what, int predicate)
{
	struct lane *l;

	yield();
	l = self();
	l->now[s.current]++;
	l->what = what;
	l->value = predicate != 0;
	l->state = AT_BLOCK;
	try_block(l->block);
	if (s.report.verdict != SIMT_OK)
		end_run();
	if (l->state == AT_BLOCK)
		yield();
	return self()->got[0] != 0;
}

unsigned simt_lane_in_block(void)
{
	return self()->in_block;
}

unsigned simt_lane(void)
{
	return s.current;
}

unsigned simt_block(void)
{
	return self()->block;
}

unsigned simt_blocks(void)
{
	return s.c->shape.blocks;
}

unsigned simt_block_lanes(void)
{
	return s.c->shape.block_lanes;
}

uint32_t simt_warp_mask(void)
{
	unsigned warp = warp_start(s.current);
	uint32_t mask = 0;

	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (in_warp(warp, i) && s.lanes[warp + i].state != DONE)
			mask |= (uint32_t)1 << i;
	return mask;
}

int simt_together;

uint32_t simt_whole_warp(void)
{
	const unsigned warp = warp_start(s.current);
	unsigned lanes = 0;

	if (!simt_together)
		return 0;
	while (lanes < SIMT_WARP_LANES && in_warp(warp, lanes))
		lanes++;
	return lanes % 4 || lanes == SIMT_WARP_LANES ? ~(uint32_t)0 : ((uint32_t)1 << lanes) - 1;
}

uint32_t simt_active_mask(void)
{
	const unsigned warp = warp_start(s.current);
	struct lane *l = self();

	l->converges_at = __builtin_return_address(0);
	l->mask = 0;
	/*
	 * exploring: other lanes arrive by a preemption; random: wait for them a random number of
	 * times
	 */
	do {
		yield();
	} while (!l->mask && !s.exploring && next_random() % 4);
	if (l->mask)
		return l->mask;
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (in_warp(warp, i) && s.lanes[warp + i].converges_at == l->converges_at)
			l->mask |= (uint32_t)1 << i;
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (l->mask >> i & 1) {
			s.lanes[warp + i].mask = l->mask;
			s.lanes[warp + i].converges_at = NULL;
		}
	return l->mask;
}

void simt_moment(void)
{
	if (!s.stale)
		return;
	join(self()->now, s.moments);
	join(s.moments, self()->now);
	self()->now[s.current]++;
}

void simt_fail(const char *message)
{
	verdict(SIMT_FAILED, "lane %u of block %u: %s", self()->in_block, self()->block, message);
	end_run();
}

void *simt_shared(size_t bytes)
{
	if (bytes > SHARED_BYTES)
		simt_fail("too much shared memory");
	return s.shared + self()->block * SHARED_BYTES;
}

/* ---- the scheduler ---- */

static int runnable(unsigned i)
{
	return s.lanes[i].state == READY;
}

static unsigned pick_random(void)
{
	unsigned start, first = s.n;
	int sparing = s.policy == SIMT_STARVE_LANE || s.policy == SIMT_STARVE_WARP;

	if (s.policy == SIMT_LOCKSTEP) {
		for (unsigned i = 1; i <= s.n; i++)
			if (runnable((s.current + i) % s.n))
				return (s.current + i) % s.n;
		return s.n;
	}
	start = (unsigned)(next_random() % s.n);
	for (unsigned i = 0; i < s.n; i++) {
		unsigned lane = (start + i) % s.n;
		int starved = s.policy == SIMT_STARVE_LANE ? lane == s.victim
							   : warp_start(lane) == s.victim;

		if (!runnable(lane))
			continue;
		if (!sparing || !starved || next_random() % 1024 == 0)
			return lane;
		if (first == s.n)
			first = lane;
	}
	return first;
}

/* Takes one of n options; bit i of `costs` is set if option i is a preemption. */
static unsigned explored(unsigned n, unsigned costs)
{
	const size_t at = s.at_choice;

	if (at == s.n_choices) {
		if (at == MAX_CHOICES)
			return 0;
		s.choices[at].n = (unsigned char)n;
		s.choices[at].at = 0;
		s.choices[at].costs = (unsigned char)costs;
		s.n_choices++;
	}
	s.at_choice++;
	if (s.choices[at].costs >> s.choices[at].at & 1)
		s.preemptions++;
	return s.choices[at].at;
}

static unsigned pick_explored(void)
{
	unsigned options[8], n = 0, costs = 0;
	int current_runs = runnable(s.current);

	/* the current lane first, so that the first schedule has no preemption */
	if (current_runs)
		options[n++] = s.current;
	for (unsigned i = 0; i < s.n; i++) {
		if (i == s.current || !runnable(i))
			continue;
		if (current_runs && s.preemptions >= s.bound)
			break;
		if (current_runs)
			costs |= 1u << n;
		options[n++] = i;
	}
	if (n <= 1)
		return n ? options[0] : s.n;
	return options[explored(n, costs)];
}

/* Chooses one of n stores, of which the first is the newest; an older one counts as a preemption. */
static unsigned choose(unsigned n)
{
	if (n == 1)
		return 0;
	if (!s.exploring)
		return next_random() % 2 ? 0 : (unsigned)(next_random() % n);
	return s.preemptions < s.bound ? explored(n < 8 ? n : 8, 0xfe) : 0;
}

/*
 * Ends the pauses that the last step ends. When exploring, a pause lasts until every lane that
 * could run has taken a step. Without this fairness, two waiters could starve the holder for ever
 * without a preemption. Random schedules are fair without it.
 */
static void wake_paused(int all)
{
	const struct lane *last = self();

	for (unsigned i = 0; i < s.n; i++) {
		struct lane *l = &s.lanes[i];

		if (l->state != PAUSED)
			continue;
		if (s.exploring && !all) {
			l->waits_for &= ~((uint64_t)1 << s.current);
			if (l->waits_for)
				continue;
		} else if (!all && (l == last || last->state == PAUSED)) {
			continue;
		}
		l->state = READY;
	}
}

static void free_run(void)
{
	for (size_t i = 0; i < s.n_used; i++)
		s.shadows[s.used[i]].address = 0;
	s.n_used = 0;
	s.clocks_used = 0;
}

static void allocate(void)
{
	if (!s.shadows)
		s.shadows = calloc(SHADOWS, sizeof(*s.shadows));
	if (!s.choices)
		s.choices = calloc(MAX_CHOICES, sizeof(*s.choices));
	if (!s.stacks)
		s.stacks = malloc(SIMT_MAX_LANES * STACK_BYTES);
	if (!s.shared)
		s.shared = malloc(SIMT_MAX_LANES * SHARED_BYTES);
	if (!s.clocks) {
		s.clocks_room = (size_t)48 << 20;
		s.clocks = malloc(s.clocks_room * sizeof(*s.clocks));
	}
	if (!s.shadows || !s.choices || !s.stacks || !s.shared || !s.clocks) {
		fprintf(stderr, "simt: out of memory\n");
		exit(99);
	}
}

static void start_lanes(void)
{
	const struct simt_shape *shape = &s.c->shape;

	for (unsigned i = 0; i < s.n; i++) {
		struct lane *l = &s.lanes[i];

		l->state = READY;
		l->block = i / shape->block_lanes;
		l->in_block = i % shape->block_lanes;
		l->started = 0;
		l->converges_at = NULL;
		l->now = new_clock();
		l->now[i] = 1;
		l->released = new_clock();
		l->released_scope = -1;
		l->pending[0] = new_clock();
		l->pending[1] = new_clock();
		l->fenced = new_clock();
		getcontext(&l->start);
		l->start.uc_stack.ss_sp = s.stacks + i * STACK_BYTES;
		l->start.uc_stack.ss_size = STACK_BYTES;
		l->start.uc_link = NULL;
		makecontext(&l->start, lane_main, 0);
	}
}

static void one_run(const struct simt_case *c)
{
	/* volatile, because they are also read after _setjmp returns again */
	const volatile uint64_t max_steps = c->max_steps ? c->max_steps : DEFAULT_MAX_STEPS;
	volatile int over = 0;

	s.c = c;
	s.n = c->shape.blocks * c->shape.block_lanes;
	s.steps = s.clock = 0;
	s.current = 0;
	s.preemptions = 0;
	s.at_choice = 0;
	allocate();
	memset(s.shared, 0, c->shape.blocks * SHARED_BYTES);
	s.stores = 0;
	s.fences = new_clock();
	s.moments = new_clock();
	if (c->setup)
		c->setup();
	start_lanes();
	switch (_setjmp(s.scheduler)) {
	case 2: over = 1; break;
	case 1: {
		struct lane *last = self();

		wake_paused(0);
		if (last->state == DONE)
			try_block(last->block);
		break;
	}
	}
	if (!over) {
		unsigned next, left = 0;

		if (s.report.verdict == SIMT_OK && s.steps++ > max_steps) {
			verdict(SIMT_LIVELOCK, "no end after %llu steps",
				(unsigned long long)max_steps);
		} else {
			next = s.exploring ? pick_explored() : pick_random();
			if (next == s.n) {
				/* all remaining lanes pause */
				wake_paused(1);
				next = s.exploring ? pick_explored() : pick_random();
			}
			if (next < s.n)
				resume(next);
			for (unsigned i = 0; i < s.n; i++)
				left += s.lanes[i].state != DONE;
			if (left)
				verdict(SIMT_DEADLOCK, "%u lanes wait for each other", left);
		}
	}
	if (s.report.verdict == SIMT_OK && c->check) {
		const char *wrong = c->check();

		if (wrong)
			verdict(SIMT_FAILED, "%s", wrong);
	}
	s.report.steps = s.steps;
	free_run();
}

struct simt_report simt_random(const struct simt_case *c, enum simt_policy policy, uint64_t seed,
			       uint64_t runs)
{
	memset(&s.report, 0, sizeof(s.report));
	s.exploring = 0;
	for (uint64_t i = 0; i < runs && s.report.verdict == SIMT_OK; i++) {
		unsigned lanes = c->shape.blocks * c->shape.block_lanes;

		s.random = s.report.seed = seed + i;
		/* so that every second of the policies, and every second run, has older stores */
		s.stale = (seed + i + (uint64_t)policy / 2) % 2 && lanes <= STALE_MAX_LANES;
		s.policy = policy;
		s.victim = (unsigned)(next_random() % lanes);
		if (policy == SIMT_STARVE_WARP)
			s.victim -= s.victim % c->shape.block_lanes % SIMT_WARP_LANES;
		one_run(c);
		s.report.runs++;
	}
	return s.report;
}

/*
 * Advances to the next schedule: the last choice with a remaining option within the bound takes it.
 */
static int next_schedule(void)
{
	while (s.n_choices) {
		size_t last = s.n_choices - 1;

		if (++s.choices[last].at < s.choices[last].n)
			return 1;
		s.n_choices--;
	}
	return 0;
}

struct simt_report simt_explore(const struct simt_case *c, unsigned preemptions, uint64_t max_runs)
{
	memset(&s.report, 0, sizeof(s.report));
	s.exploring = 1;
	s.bound = preemptions;
	s.stale = c->shape.blocks * c->shape.block_lanes <= STALE_MAX_LANES;
	s.n_choices = 0;
	do {
		one_run(c);
		s.report.runs++;
		if (s.report.verdict != SIMT_OK)
			return s.report;
		if (!next_schedule()) {
			s.report.exhausted = 1;
			break;
		}
	} while (s.report.runs < max_runs);
	return s.report;
}

const char *simt_verdict_name(enum simt_verdict v)
{
	static const char *const names[] = {"ok", "race", "deadlock", "livelock", "failed"};

	return names[v];
}
