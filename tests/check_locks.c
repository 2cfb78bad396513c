/* SPDX-License-Identifier: MIT */
/*
 * The locks between host threads: a single thread in every call, then several threads over plain
 * data. The pauses of sections.
 */
#include <pthread.h>
#include <sched.h>

#include <cuatomic/port.h>

/* The waits of sections: the pauses are counted, and a test chooses the lanes that are active. */
static _Thread_local unsigned pauses;
static _Thread_local uint32_t active = 1;

static inline void counted_pause(uint32_t ns)
{
	pauses++;
	cua_port_pause(ns);
}

static inline uint32_t chosen_active_mask(void)
{
	return active;
}
#define cua_port_pause counted_pause
#define cua_port_active_mask chosen_active_mask
#include <cuatomic/detail/section.h>
#undef cua_port_pause
#undef cua_port_active_mask

#include "common.h"
#include "section_exits.h"

static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE, CUA_SCOPE_SYSTEM};

/* ---- every lock behind the same calls ---- */

enum kind { SPIN, TICKET, MCS, WRITE, SEQ, SEMAPHORE, N_KINDS };

struct locks {
	struct cua_spinlock spin;
	struct cua_ticketlock ticket;
	struct cua_mcslock mcs;
	struct cua_rwlock rw;
	struct cua_seqlock seq;
	struct cua_semaphore semaphore;
};

static void init(struct locks *l)
{
	memset(l, 0xff, sizeof(*l));
	cua_spinlock_init(&l->spin);
	cua_ticketlock_init(&l->ticket);
	cua_mcslock_init(&l->mcs);
	cua_rwlock_init(&l->rw);
	cua_seqlock_init(&l->seq);
	cua_semaphore_init(&l->semaphore, 1);
}

static int trylock(struct locks *l, enum kind kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case SPIN: return cua_spinlock_trylock(&l->spin);
	case TICKET: return cua_ticketlock_trylock(&l->ticket);
	case MCS: return cua_mcslock_trylock(&l->mcs, node);
	case WRITE: return cua_rwlock_write_trylock(&l->rw);
	case SEQ: return cua_seqlock_trylock(&l->seq);
	default: return cua_semaphore_trylock(&l->semaphore);
	}
}

static void lock(struct locks *l, enum kind kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case SPIN: cua_spinlock_lock(&l->spin); break;
	case TICKET: cua_ticketlock_lock(&l->ticket); break;
	case MCS: cua_mcslock_lock(&l->mcs, node); break;
	case WRITE: cua_rwlock_write_lock(&l->rw); break;
	case SEQ: cua_seqlock_lock(&l->seq); break;
	default: cua_semaphore_lock(&l->semaphore);
	}
}

static int lock_for(struct locks *l, enum kind kind, struct cua_mcslock_node *node, uint64_t ns)
{
	switch (kind) {
	case SPIN: return cua_spinlock_lock_for(&l->spin, ns);
	case TICKET: return cua_ticketlock_lock_for(&l->ticket, ns);
	case MCS: return cua_mcslock_lock_for(&l->mcs, node, ns);
	case WRITE: return cua_rwlock_write_lock_for(&l->rw, ns);
	case SEQ: return cua_seqlock_lock_for(&l->seq, ns);
	default: return cua_semaphore_lock_for(&l->semaphore, ns);
	}
}

static void unlock(struct locks *l, enum kind kind, struct cua_mcslock_node *node)
{
	switch (kind) {
	case SPIN: cua_spinlock_unlock(&l->spin); break;
	case TICKET: cua_ticketlock_unlock(&l->ticket); break;
	case MCS: cua_mcslock_unlock(&l->mcs, node); break;
	case WRITE: cua_rwlock_write_unlock(&l->rw); break;
	case SEQ: cua_seqlock_unlock(&l->seq); break;
	default: cua_semaphore_unlock(&l->semaphore);
	}
}

static int locked(const struct locks *l, enum kind kind)
{
	switch (kind) {
	case SPIN: return cua_spinlock_locked(&l->spin);
	case TICKET: return cua_ticketlock_locked(&l->ticket);
	case MCS: return cua_mcslock_locked(&l->mcs);
	case WRITE: return cua_rwlock_locked(&l->rw);
	case SEQ: return cua_seqlock_locked(&l->seq);
	default: return cua_semaphore_locked(&l->semaphore);
	}
}

/* Leaves the section by its end, by break or by continue. */
#define SECTION(with, call, how)                                                                   \
	with                                                                                       \
	{                                                                                          \
		call;                                                                              \
		if ((how) % 3 == 1)                                                                \
			break;                                                                     \
		if ((how) % 3 == 2)                                                                \
			continue;                                                                  \
	}

static void in_section(struct locks *l, enum kind kind, struct cua_mcslock_node *node, unsigned how,
		       void (*call)(void *), void *arg)
{
	switch (kind) {
	case SPIN: SECTION(CUA_WITH_LOCK (&l->spin), call(arg), how) break;
	case TICKET: SECTION(CUA_WITH_TICKETLOCK (&l->ticket), call(arg), how) break;
	case MCS: SECTION(CUA_WITH_MCSLOCK (&l->mcs, node), call(arg), how) break;
	case WRITE: SECTION(CUA_WITH_WRITE_LOCK (&l->rw), call(arg), how) break;
	case SEQ: SECTION(CUA_WITH_SEQLOCK (&l->seq), call(arg), how) break;
	default: SECTION(CUA_WITH_SEMAPHORE (&l->semaphore), call(arg), how)
	}
}

/* ---- a single thread ---- */

struct look {
	const struct locks *l;
	enum kind kind;
	unsigned held, runs;
};

static void look_inside(void *arg)
{
	struct look *look = arg;

	look->held += locked(look->l, look->kind) != 0;
	look->runs++;
}

START_TEST(one_thread)
{
	enum kind kind = (enum kind)_i;
	struct cua_mcslock_node node, other;
	struct locks l;
	struct look look = {&l, kind, 0, 0};
	uint64_t start;

	init(&l);
	ck_assert_int_eq(locked(&l, kind), 0);
	ck_assert_int_eq(trylock(&l, kind, &node), 1);
	ck_assert_int_eq(locked(&l, kind), 1);
	ck_assert_int_eq(trylock(&l, kind, &other), 0);
	ck_assert_int_eq(lock_for(&l, kind, &other, 0), 0);
	start = cua_port_clock_ns();
	ck_assert_int_eq(lock_for(&l, kind, &other, 2000000), 0);
	ck_assert_uint_ge(cua_port_clock_ns() - start, 2000000);
	unlock(&l, kind, &node);
	ck_assert_int_eq(locked(&l, kind), 0);
	ck_assert_int_eq(lock_for(&l, kind, &node, 0), 1);
	ck_assert_int_eq(trylock(&l, kind, &other), 0);
	unlock(&l, kind, &node);
	ck_assert_int_eq(lock_for(&l, kind, &node, UINT64_MAX), 1);
	unlock(&l, kind, &node);
	for (unsigned i = 0; i < 5; i++) {
		lock(&l, kind, &node);
		ck_assert_int_eq(trylock(&l, kind, &other), 0);
		unlock(&l, kind, &node);
		in_section(&l, kind, &node, i, look_inside, &look);
		ck_assert_uint_eq(look.runs, i + 1);
		ck_assert_uint_eq(look.held, i + 1);
		ck_assert_int_eq(locked(&l, kind), 0);
	}
}
END_TEST

/* A section that is left in any way has run once, and its lock is free. */
START_TEST(exits)
{
	enum section_kind kind = (enum section_kind)_i;
	struct cua_mcslock_node node;
	struct section_locks l;
	uint64_t runs = 0;

	section_init(&l);
	for (int i = 0; i < 2 * SECTION_EXITS; i++) {
		enum section_exit how = (enum section_exit)(i % SECTION_EXITS);

		ck_assert(section_left(how, section_leave(&l, kind, &node, 1, how)));
		ck_assert_int_eq(section_locked(&l), 0);
		runs += kind != SECTION_READ;
		ck_assert_uint_eq(l.count[0], runs);
	}
	ck_assert_uint_eq(l.torn, 0);
}
END_TEST

/* Each _scope form at each scope. */
START_TEST(scope_forms)
{
	enum cua_scope scope = scopes[_i];
	struct cua_ticketlock t = CUA_TICKETLOCK_INIT;
	struct cua_mcslock m = CUA_MCSLOCK_INIT;
	struct cua_rwlock r = CUA_RWLOCK_INIT;
	struct cua_seqlock q = CUA_SEQLOCK_INIT;
	struct cua_semaphore s = CUA_SEMAPHORE_INIT(2);
	struct cua_spinlock p = CUA_SPINLOCK_INIT;
	struct cua_mcslock_node node;
	uint32_t data[3] = {1, 2, 3}, out[3] = {0, 0, 0};
	uint64_t wide = 0, begun;
	int runs = 0;

	ck_assert_int_eq(cua_spinlock_lock_for_scope(&p, 10, scope), 1);
	ck_assert_int_eq(cua_spinlock_lock_for_scope(&p, 10, scope), 0);
	cua_spinlock_unlock_scope(&p, scope);

	cua_ticketlock_lock_scope(&t, scope);
	ck_assert_int_eq(cua_ticketlock_trylock_scope(&t, scope), 0);
	ck_assert_int_eq(cua_ticketlock_lock_for_scope(&t, 10, scope), 0);
	ck_assert_int_eq(cua_ticketlock_locked_scope(&t, scope), 1);
	cua_ticketlock_unlock_scope(&t, scope);
	CUA_WITH_TICKETLOCK_SCOPE (&t, scope)
		runs++;

	cua_mcslock_lock_scope(&m, &node, scope);
	ck_assert_int_eq(cua_mcslock_locked_scope(&m, scope), 1);
	cua_mcslock_unlock_scope(&m, &node, scope);
	ck_assert_int_eq(cua_mcslock_trylock_scope(&m, &node, scope), 1);
	cua_mcslock_unlock_scope(&m, &node, scope);
	ck_assert_int_eq(cua_mcslock_lock_for_scope(&m, &node, 10, scope), 1);
	cua_mcslock_unlock_scope(&m, &node, scope);
	CUA_WITH_MCSLOCK_SCOPE (&m, &node, scope)
		runs++;

	cua_rwlock_read_lock_scope(&r, scope);
	ck_assert_int_eq(cua_rwlock_read_trylock_scope(&r, scope), 1);
	ck_assert_int_eq(cua_rwlock_read_lock_for_scope(&r, 10, scope), 1);
	ck_assert_int_eq(cua_rwlock_locked_scope(&r, scope), 1);
	ck_assert_int_eq(cua_rwlock_write_trylock_scope(&r, scope), 0);
	ck_assert_int_eq(cua_rwlock_write_lock_for_scope(&r, 10, scope), 0);
	for (int i = 0; i < 3; i++)
		cua_rwlock_read_unlock_scope(&r, scope);
	cua_rwlock_write_lock_scope(&r, scope);
	ck_assert_int_eq(cua_rwlock_read_trylock_scope(&r, scope), 0);
	ck_assert_int_eq(cua_rwlock_read_lock_for_scope(&r, 10, scope), 0);
	ck_assert_int_eq(cua_rwlock_write_trylock_scope(&r, scope), 0);
	cua_rwlock_write_unlock_scope(&r, scope);
	ck_assert_int_eq(cua_rwlock_locked_scope(&r, scope), 0);
	CUA_WITH_READ_LOCK_SCOPE (&r, scope) {
		/* readers do not exclude each other */
		CUA_WITH_READ_LOCK_SCOPE (&r, scope)
			runs++;
	}
	CUA_WITH_WRITE_LOCK_SCOPE (&r, scope)
		runs++;

	cua_seqlock_lock_scope(&q, scope);
	ck_assert_int_eq(cua_seqlock_trylock_scope(&q, scope), 0);
	ck_assert_int_eq(cua_seqlock_lock_for_scope(&q, 10, scope), 0);
	ck_assert_int_eq(cua_seqlock_locked_scope(&q, scope), 1);
	cua_seqlock_unlock_scope(&q, scope);
	begun = cua_seqlock_read_begin_scope(&q, scope);
	ck_assert_int_eq(cua_seqlock_read_retry_scope(&q, begun, scope), 0);
	CUA_WITH_SEQLOCK_SCOPE (&q, scope) {
		cua_seqlock_store_b32_scope(&data[1], 7, scope);
		cua_seqlock_store_b64_scope(&wide, UINT64_MAX - 1, scope);
		runs++;
	}
	ck_assert_int_eq(cua_seqlock_read_retry_scope(&q, begun, scope), 1);
	cua_seqlock_read_scope(&q, data, 3, scope, out);
	ck_assert_uint_eq(out[0], 1);
	ck_assert_uint_eq(out[1], 7);
	ck_assert_uint_eq(out[2], 3);
	ck_assert_uint_eq(cua_seqlock_load_b32_scope(&data[1], scope), 7);
	ck_assert_uint_eq(cua_seqlock_load_b64_scope(&wide, scope), UINT64_MAX - 1);

	ck_assert_int_eq(cua_semaphore_trylock_scope(&s, scope), 1);
	cua_semaphore_lock_scope(&s, scope);
	ck_assert_int_eq(cua_semaphore_trylock_scope(&s, scope), 0);
	ck_assert_int_eq(cua_semaphore_lock_for_scope(&s, 10, scope), 0);
	ck_assert_int_eq(cua_semaphore_locked_scope(&s, scope), 1);
	cua_semaphore_unlock_scope(&s, scope);
	ck_assert_int_eq(cua_semaphore_locked_scope(&s, scope), 0);
	CUA_WITH_SEMAPHORE_SCOPE (&s, scope)
		runs++;
	cua_semaphore_unlock_scope(&s, scope);
	cua_semaphore_unlock_scope(&s, scope);
	ck_assert_uint_eq(cua_semaphore_value_scope(&s, scope), 3);
	ck_assert_int_eq(runs, 6);
}
END_TEST

/* ---- several threads ---- */

#define THREADS 4

struct team {
	enum kind kind;
	int how; /* 0: lock, 1: section, 2: trylock, 3: lock_for, 4: all */
	unsigned n;
	pthread_barrier_t start;
	struct locks l;
	/* plain data under the lock */
	uint64_t count;
	int inside;
	unsigned wrong;
	/* under rw, seq and the semaphore of 2 */
	uint64_t twin[2];
	uint32_t holders;
	int over;
};

struct member {
	struct team *team;
	unsigned id;
	pthread_t thread;
	struct cua_mcslock_node node;
	uint64_t done, failed;
};

static void enter(void *arg)
{
	struct team *t = arg;

	CUA_WRITE(t->wrong, CUA_READ(t->wrong) + (CUA_READ(t->inside) != 0));
	CUA_WRITE(t->inside, 1);
	CUA_WRITE(t->count, CUA_READ(t->count) + 1);
	CUA_WRITE(t->inside, 0);
}

static void run_team(struct team *t, void *(*body)(void *), struct member *member)
{
	init(&t->l);
	memset(member, 0, THREADS * sizeof(*member));
	ck_assert_int_eq(pthread_barrier_init(&t->start, NULL, THREADS), 0);
	for (unsigned id = 0; id < THREADS; id++) {
		member[id].team = t;
		member[id].id = id;
		ck_assert_int_eq(pthread_create(&member[id].thread, NULL, body, &member[id]), 0);
	}
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_int_eq(pthread_join(member[id].thread, NULL), 0);
	pthread_barrier_destroy(&t->start);
}

static void *exclusion_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	pthread_barrier_wait(&t->start);
	for (unsigned i = 0; i < t->n; i++) {
		int how = t->how < 4 ? t->how : (int)((i + m->id) % 4);

		if (how == 1) {
			in_section(&t->l, t->kind, &m->node, i, enter, t);
		} else {
			if (how == 0) {
				lock(&t->l, t->kind, &m->node);
			} else if (how == 2 ? !trylock(&t->l, t->kind, &m->node)
					    : !lock_for(&t->l, t->kind, &m->node, 20000)) {
				m->failed++;
				continue;
			}
			enter(t);
			unlock(&t->l, t->kind, &m->node);
		}
		m->done++;
		(void)locked(&t->l, t->kind);
	}
	return NULL;
}

/*
 * With every way to acquire a lock, a single thread at a time holds it and sees the earlier
 * sections.
 */
START_TEST(exclusion)
{
	struct member member[THREADS];

	for (int how = 0; how <= 4; how++) {
		struct team t;
		uint64_t done = 0, failed = 0;

		memset(&t, 0, sizeof(t));
		t.kind = (enum kind)_i;
		t.how = how;
		t.n = (unsigned)test_scale(500, 2000, 5000);
		run_team(&t, exclusion_main, member);
		for (unsigned id = 0; id < THREADS; id++) {
			done += member[id].done;
			failed += member[id].failed;
		}
		ck_assert_uint_eq(t.wrong, 0);
		ck_assert_uint_eq(t.count, done);
		ck_assert_uint_gt(done, 0);
		ck_assert_uint_eq(done + failed, (uint64_t)THREADS * t.n);
		if (how < 2)
			ck_assert_uint_eq(failed, 0);
		ck_assert_int_eq(locked(&t.l, t.kind), 0);
	}
}
END_TEST

/* Readers see both halves of a write or neither. One of four threads writes. */
static void *readers_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	pthread_barrier_wait(&t->start);
	for (unsigned i = 0; i < t->n; i++) {
		if (i % THREADS == m->id) {
			CUA_WITH_WRITE_LOCK (&t->l.rw) {
				CUA_WRITE(t->twin[0], CUA_READ(t->twin[0]) + 1);
				CUA_WRITE(t->twin[1], CUA_READ(t->twin[1]) + 1);
			}
			m->done++;
			continue;
		}
		if (i % 3 == 0) {
			CUA_WITH_READ_LOCK (&t->l.rw)
				m->failed += CUA_READ(t->twin[0]) != CUA_READ(t->twin[1]);
			continue;
		}
		if (i % 3 == 1)
			cua_rwlock_read_lock(&t->l.rw);
		else if (i % 2 ? !cua_rwlock_read_trylock(&t->l.rw)
			       : !cua_rwlock_read_lock_for(&t->l.rw, 10000))
			continue;
		m->failed += CUA_READ(t->twin[0]) != CUA_READ(t->twin[1]);
		cua_rwlock_read_unlock(&t->l.rw);
	}
	return NULL;
}

START_TEST(readers)
{
	struct member member[THREADS];
	struct team t;
	uint64_t done = 0;

	memset(&t, 0, sizeof(t));
	t.n = (unsigned)test_scale(2000, 8000, 20000);
	run_team(&t, readers_main, member);
	for (unsigned id = 0; id < THREADS; id++) {
		ck_assert_uint_eq(member[id].failed, 0);
		done += member[id].done;
	}
	ck_assert_uint_eq(t.twin[0], done);
	ck_assert_uint_eq(t.twin[1], done);
	ck_assert_int_eq(cua_rwlock_locked(&t.l.rw), 0);
}
END_TEST

/* Snapshots are whole and never go backwards. */
static void *snapshots_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	uint64_t begun, first, second, last = 0;

	pthread_barrier_wait(&t->start);
	for (unsigned i = 0; i < t->n; i++) {
		if (m->id < 2) {
			CUA_WITH_SEQLOCK (&t->l.seq) {
				first = cua_seqlock_load_b64(&t->twin[0]) + 1;
				cua_seqlock_store_b64(&t->twin[0], first);
				cua_seqlock_store_b64(&t->twin[1], first);
				/* writers exclude each other: plain data is safe */
				CUA_WRITE(t->count, CUA_READ(t->count) + 1);
			}
			if (i % 8 == 0)
				sched_yield();
			continue;
		}
		do {
			begun = cua_seqlock_read_begin(&t->l.seq);
			first = cua_seqlock_load_b64(&t->twin[0]);
			second = cua_seqlock_load_b64(&t->twin[1]);
		} while (cua_seqlock_read_retry(&t->l.seq, begun));
		m->failed += first != second || first < last || begun != 2 * first;
		last = first;
	}
	return NULL;
}

START_TEST(snapshots)
{
	struct member member[THREADS];
	struct team t;

	memset(&t, 0, sizeof(t));
	t.n = (unsigned)test_scale(2000, 8000, 20000);
	run_team(&t, snapshots_main, member);
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_uint_eq(member[id].failed, 0);
	ck_assert_uint_eq(t.twin[0], 2 * (uint64_t)t.n);
	ck_assert_uint_eq(t.twin[1], 2 * (uint64_t)t.n);
	ck_assert_uint_eq(t.count, 2 * (uint64_t)t.n);
}
END_TEST

#define BOUND 2

static void *bound_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	pthread_barrier_wait(&t->start);
	for (unsigned i = 0; i < t->n; i++)
		CUA_WITH_SEMAPHORE (&t->l.semaphore) {
			m->failed += cua_port_fetch_add_u32(&t->holders, 1, CUA_RELAXED,
							    CUA_SCOPE_SYSTEM,
							    CUA_SPACE_GENERIC) >= BOUND;
			cua_port_add_u32(&t->holders, UINT32_MAX, CUA_RELAXED, CUA_SCOPE_SYSTEM,
					 CUA_SPACE_GENERIC);
		}
	return NULL;
}

/* The first thread raises the bound to two after its start. */
static void *bound_first_main(void *arg)
{
	struct member *m = arg;

	if (m->id == 0)
		cua_semaphore_unlock(&m->team->l.semaphore);
	return bound_main(arg);
}

START_TEST(bounds)
{
	struct member member[THREADS];
	struct team t;

	memset(&t, 0, sizeof(t));
	t.n = (unsigned)test_scale(2000, 8000, 20000);
	run_team(&t, bound_first_main, member);
	for (unsigned id = 0; id < THREADS; id++)
		ck_assert_uint_eq(member[id].failed, 0);
	ck_assert_uint_eq(cua_semaphore_value(&t.l.semaphore), BOUND);
}
END_TEST

/* Until the first thread has finished, a fair lock lets no thread get far ahead of the slowest. */
static void *fairness_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	int over = 0;

	pthread_barrier_wait(&t->start);
	while (!over) {
		lock(&t->l, t->kind, &m->node);
		m->done++;
		over = t->over = t->over || m->done == t->n;
		/* the other threads start to wait */
		sched_yield();
		unlock(&t->l, t->kind, &m->node);
	}
	return NULL;
}

START_TEST(fairness)
{
	static const enum kind fair[] = {TICKET, MCS, WRITE};
	struct member member[THREADS];
	struct team t;
	uint64_t least;

	memset(&t, 0, sizeof(t));
	t.kind = fair[_i];
	t.n = test_quick() ? 1000 : 5000;
	run_team(&t, fairness_main, member);
	least = member[0].done;
	for (unsigned id = 1; id < THREADS; id++)
		if (member[id].done < least)
			least = member[id].done;
	/* a thread, unlike a lane, may be preempted between two sections */
	ck_assert_msg(least >= t.n / 20, "a thread had %llu sections, another one %u",
		      (unsigned long long)least, t.n);
}
END_TEST

/* A time limit that the other thread's unlock precedes. */
static void *in_time_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	if (m->id == 0) {
		lock(&t->l, t->kind, &m->node);
		pthread_barrier_wait(&t->start);
		for (int i = 0; i < 50; i++)
			sched_yield();
		enter(t);
		unlock(&t->l, t->kind, &m->node);
		return NULL;
	}
	pthread_barrier_wait(&t->start);
	if (lock_for(&t->l, t->kind, &m->node, 60000000000u)) {
		enter(t);
		unlock(&t->l, t->kind, &m->node);
		m->done++;
	}
	return NULL;
}

START_TEST(in_time)
{
	struct member member[THREADS];
	struct team t;

	memset(&t, 0, sizeof(t));
	t.kind = (enum kind)_i;
	run_team(&t, in_time_main, member);
	for (unsigned id = 1; id < THREADS; id++)
		ck_assert_uint_eq(member[id].done, 1);
	ck_assert_uint_eq(t.count, THREADS);
	ck_assert_uint_eq(t.wrong, 0);
}
END_TEST

/* ---- the pauses of sections ---- */

static unsigned pauses_of(struct cua__section_turn *t, unsigned polls, uint32_t alone)
{
	pauses = 0;
	for (unsigned i = 0; i < polls; i++)
		cua__section_turn_wait(t, alone);
	return pauses;
}

/* A group does not pause while its lanes run the block, and pauses at every 4th poll otherwise. */
START_TEST(group_pauses)
{
	struct cua__section_turn t = cua__section_turn_begin();

	for (unsigned left = 32; left > 1; left--) {
		active = 0xffffffffu >> (32 - left);
		ck_assert_uint_eq(pauses_of(&t, 4, 16), left == 32);
	}
	active = 3;
	t = cua__section_turn_begin();
	ck_assert_uint_eq(pauses_of(&t, 4, 16), 0);
	ck_assert_uint_eq(pauses_of(&t, 400, 16), 100);
	active = 1;
	ck_assert_uint_eq(pauses_of(&t, 4, 16), 0);
	ck_assert_uint_eq(pauses_of(&t, 400, 16), 25);
	t = cua__section_turn_begin();
	ck_assert_uint_eq(pauses_of(&t, 404, 4), 100);
}
END_TEST

/* Lanes that leave a group and return cannot keep a lane from its pauses. */
START_TEST(pauses_last)
{
	struct cua__section_turn t = cua__section_turn_begin();
	unsigned all = 0;

	for (unsigned i = 0; i < 1000; i++) {
		active = i % 2 ? 7 : 0xfffffffbu >> i % 29 | 3;
		all += pauses_of(&t, 4, 16);
	}
	active = 1;
	ck_assert_uint_ge(all, 1000 - 32);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("locks");
	TCase *calls = tcase_create("calls");

	tcase_set_timeout(calls, 120);
	tcase_add_loop_test(calls, one_thread, 0, N_KINDS);
	tcase_add_loop_test(calls, exits, 0, SECTION_KINDS);
	tcase_add_loop_test(calls, scope_forms, 0, 3);
	tcase_add_loop_test(calls, exclusion, 0, N_KINDS);
	tcase_add_test(calls, readers);
	tcase_add_test(calls, snapshots);
	tcase_add_test(calls, bounds);
	tcase_add_loop_test(calls, fairness, 0, 3);
	tcase_add_loop_test(calls, in_time, 0, N_KINDS);
	tcase_add_test(calls, group_pauses);
	tcase_add_test(calls, pauses_last);
	suite_add_tcase(suite, calls);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), CUA_BACKEND_CPU);
}
