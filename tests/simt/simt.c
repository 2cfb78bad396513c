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
	uint32_t *clocks; /* arena of all vectors of a run */
	size_t clocks_used, clocks_room;
	/* random schedules */
	uint64_t random;
	enum simt_policy policy;
	unsigned victim;
	/* exhaustive exploration */
	int exploring;
	unsigned preemptions, bound;
	struct {
		unsigned short options[8];
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

/* Joins the clocks that an acquire of this scope gets from the shadow. */
static void acquire_from(const struct lane *l, uint32_t *into, const struct shadow *c, int scope)
{
	if (scope > BLOCK || c->device_block == (int)l->block)
		join(into, c->device);
	if (c->block == (int)l->block)
		join(into, c->in_block);
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

static void atomic_effect(enum simt_access access, const void *p, size_t bytes, int order,
			  int scope)
{
	struct lane *l = self();
	int acquires = order == ACQUIRE || order >= ACQ_REL, releases = order >= RELEASE;

	if ((uintptr_t)p % bytes)
		verdict(SIMT_FAILED, "misaligned atomic at %p", p);
	l->now[s.current]++;
	for (size_t i = 0; i < bytes; i += 4) {
		struct shadow *c = shadow_at((uintptr_t)p / 4 + i / 4);

		check_against(l, c->plain_write, "atomic", "plain write", c);
		check_scopes(l, c->atomic_write, scope, c);
		if (access != SIMT_LOAD) {
			check_against(l, c->plain_read, "atomic write", "plain read", c);
			check_scopes(l, c->atomic_read, scope, c);
			c->atomic_write[s.current] = l->now[s.current];
		}
		if (access != SIMT_STORE) {
			c->atomic_read[s.current] = l->now[s.current];
			if (acquires)
				acquire_from(l, l->now, c, scope);
			for (int f = BLOCK; f <= DEVICE && f <= scope; f++)
				acquire_from(l, l->pending[f], c, f);
		}
		c->atomic_scope[s.current] = (unsigned char)scope;
		if (access != SIMT_LOAD) {
			release_to(l, c, releases ? l->now : NULL, scope, access == SIMT_STORE);
			if (!releases && l->released_scope >= 0)
				release_to(l, c, l->released,
					   l->released_scope < scope ? l->released_scope : scope,
					   0);
		}
	}
	if (s.report.verdict != SIMT_OK)
		end_run();
}

void simt_atomic(enum simt_access access, const void *p, size_t bytes, int order, int scope)
{
	yield();
	atomic_effect(access, p, bytes, order, scope);
}

void simt_cas(const void *p, size_t bytes, const void *expected, int order, int scope)
{
	yield();
	if (memcmp(p, expected, bytes) == 0)
		atomic_effect(SIMT_RMW, p, bytes, order, scope);
	else
		atomic_effect(SIMT_LOAD, p, bytes,
			      order == ACQ_REL   ? ACQUIRE
			      : order == RELEASE ? RELAXED
						 : order,
			      scope);
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
	l->now[s.current]++;
	if (order != RELEASE)
		for (int f = BLOCK; f <= DEVICE && f <= scope; f++)
			join(l->now, l->pending[f]);
	if (order != ACQUIRE) {
		memcpy(l->released, l->now, s.n * sizeof(*l->now));
		l->released_scope = scope;
	}
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

static unsigned pick_explored(void)
{
	unsigned short options[8];
	unsigned char n = 0, costs = 0;
	int current_runs = runnable(s.current);
	size_t at = s.at_choice;

	/* the current lane first, so that the first schedule has no preemption */
	if (current_runs)
		options[n++] = (unsigned short)s.current;
	for (unsigned i = 0; i < s.n; i++) {
		if (i == s.current || !runnable(i))
			continue;
		if (current_runs && s.preemptions >= s.bound)
			break;
		if (current_runs)
			costs |= (unsigned char)(1u << n);
		options[n++] = (unsigned short)i;
	}
	if (n <= 1)
		return n ? options[0] : s.n;
	if (at == s.n_choices) {
		if (at == MAX_CHOICES)
			return options[0];
		memcpy(s.choices[at].options, options, sizeof(options));
		s.choices[at].n = n;
		s.choices[at].at = 0;
		s.choices[at].costs = costs;
		s.n_choices++;
	}
	s.at_choice++;
	if (s.choices[at].costs >> s.choices[at].at & 1)
		s.preemptions++;
	return s.choices[at].options[s.choices[at].at];
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
