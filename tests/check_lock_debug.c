/* SPDX-License-Identifier: MIT */
/*
 * Lock debugging: the host calls on each backend. On the CPU also the locks of host threads: used
 * correctly, incorrectly and hanging.
 */
#define CUA_LOCK_DEBUG 1
#include <pthread.h>
#include <sched.h>

#include "common.h"
#include "section_exits.h"

#define LIMIT_NS 5000000u
#define PATIENCE_NS 20000000000u

static struct cua_context *ctx;
static struct cua_lock_debug *table;

static void make_table(const struct cua_lock_debug_options *options)
{
	ctx = test_context(TEST_BACKEND);
	ck_assert_cua(cua_lock_debug_create(ctx, options, &table));
}

static void drop_table(void)
{
	ck_assert_cua(cua_lock_debug_destroy(table));
	cua_context_destroy(ctx);
}

/* ---- the host calls ---- */

START_TEST(arguments)
{
	struct cua_lock_debug_options options = CUA_LOCK_DEBUG_OPTIONS_INIT;
	struct cua_lock_verdict verdict;
	struct cua_hang_report report;
	struct cua_lock_debug *other = NULL, own;
	uint64_t total = 77;
	size_t n = 77;

	make_table(NULL);
	ck_assert_uint_eq(table->n_records, 16384);
	ck_assert_uint_eq(table->max_verdicts, 1024);
	ck_assert_uint_eq(table->max_reports, 1024);
	ck_assert_uint_eq(table->limit_ns, 0);
	ck_assert_status(cua_lock_debug_create(NULL, NULL, &other), CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_create(ctx, NULL, NULL), CUA_ERROR_NULL);
	options.struct_size = sizeof(options) + 1;
	ck_assert_status(cua_lock_debug_create(ctx, &options, &other), CUA_ERROR_VALUE);
	options.struct_size = sizeof(size_t) - 1;
	ck_assert_status(cua_lock_debug_create(ctx, &options, &other), CUA_ERROR_VALUE);
	options.struct_size = sizeof(options);
	options.max_records = UINT64_MAX;
	ck_assert_status(cua_lock_debug_create(ctx, &options, &other), CUA_ERROR_SIZE);
	options.max_records = (uint64_t)1 << 60;
	ck_assert_status(cua_lock_debug_create(ctx, &options, &other), CUA_ERROR_SIZE);
	options.max_records = 5;
	options.max_verdicts = UINT64_MAX / 8;
	ck_assert_status(cua_lock_debug_create(ctx, &options, &other), CUA_ERROR_SIZE);
	options.max_verdicts = 3;
	options.max_reports = UINT64_MAX / 8;
	ck_assert_status(cua_lock_debug_create(ctx, &options, &other), CUA_ERROR_SIZE);
	ck_assert_ptr_null(other);
	options.max_reports = 2;
	options.limit_ns = 9;
	ck_assert_cua(cua_lock_debug_create(ctx, &options, &other));
	ck_assert_uint_eq(other->n_records, 8);
	ck_assert_uint_eq(other->max_verdicts, 3);
	ck_assert_uint_eq(other->max_reports, 2);
	ck_assert_uint_eq(other->limit_ns, 9);
	ck_assert_cua(cua_lock_debug_destroy(other));

	ck_assert_status(cua_lock_debug_read_verdicts(NULL, 0, 1, &verdict, &n, &total),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_read_verdicts(table, 0, 1, NULL, &n, &total),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_read_verdicts(table, 0, 1, &verdict, NULL, &total),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_read_verdicts(table, 0, 1, &verdict, &n, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_read_reports(NULL, 0, 1, &report, &n, &total),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_read_reports(table, 0, 1, NULL, &n, &total),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_read_reports(table, 0, 1, &report, NULL, &total),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_read_reports(table, 0, 1, &report, &n, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_dropped(NULL, &total), CUA_ERROR_NULL);
	ck_assert_status(cua_lock_debug_dropped(table, NULL), CUA_ERROR_NULL);
	ck_assert_uint_eq(n, 77);
	ck_assert_uint_eq(total, 77);
	ck_assert_cua(cua_lock_debug_read_verdicts(table, 0, 0, NULL, &n, &total));
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(total, 0);
	ck_assert_cua(cua_lock_debug_read_reports(table, UINT64_MAX, 1, &report, &n, &total));
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(total, 0);
	total = 77;
	ck_assert_cua(cua_lock_debug_dropped(table, &total));
	ck_assert_uint_eq(total, 0);

	ck_assert_cua(cua_lock_debug_destroy(NULL));
	cua_lock_debug_init(&own, 0, NULL, 0, NULL, 0, NULL, 0);
	ck_assert_status(cua_lock_debug_destroy(&own), CUA_ERROR_VALUE);
	own.layout++;
	ck_assert_status(cua_lock_debug_destroy(&own), CUA_ERROR_LAYOUT);
	ck_assert_status(cua_lock_debug_read_verdicts(&own, 0, 0, NULL, &n, &total),
			 CUA_ERROR_LAYOUT);
	ck_assert_status(cua_lock_debug_read_reports(&own, 0, 0, NULL, &n, &total),
			 CUA_ERROR_LAYOUT);
	ck_assert_status(cua_lock_debug_dropped(&own, &total), CUA_ERROR_LAYOUT);
	drop_table();
}
END_TEST

START_TEST(text)
{
	static const char expected_verdict[] =
		"ticket lock 0x1230 unlocked by a non-owner: by grid 0x5 block 6 thread 7 at 900 ns; held by "
		"grid 0x2 block 3 thread 4 since 800 ns";
	static const char expected_report[] =
		"rwlock (write) 0x1230: wait of 50 ns by grid 0x5 block 6 thread 7 at 900 ns; held to "
		"read by grid 0x2 block 3 thread 4 since 800 ns";
	struct cua_lock_verdict v = {
		1,        CUA_LOCK_STRANGER_UNLOCK, CUA_LOCK_TICKET, 0x1230, 800, 900, {2, 3, 4},
		{5, 6, 7}};
	struct cua_hang_report r = {1,  CUA_LOCK_WRITE, CUA_LOCK_READ, 0x1230, 800, 900,
				    50, {2, 3, 4},      {5, 6, 7}};
	char line[CUA_LOCK_DEBUG_TEXT];

	ck_assert_cua(cua_lock_verdict_text(&v, sizeof(line), line));
	ck_assert_str_eq(line, expected_verdict);
	ck_assert_cua(cua_hang_report_text(&r, sizeof(line), line));
	ck_assert_str_eq(line, expected_report);
	ck_assert_cua(cua_hang_report_text(&r, sizeof(expected_report), line));
	line[0] = '#';
	ck_assert_status(cua_hang_report_text(&r, sizeof(expected_report) - 1, line),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_lock_verdict_text(&v, 0, line), CUA_ERROR_SIZE);
	ck_assert_int_eq(line[0], '#');
	ck_assert_status(cua_lock_verdict_text(NULL, sizeof(line), line), CUA_ERROR_NULL);
	ck_assert_status(cua_lock_verdict_text(&v, sizeof(line), NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hang_report_text(NULL, sizeof(line), line), CUA_ERROR_NULL);
	ck_assert_status(cua_hang_report_text(&r, sizeof(line), NULL), CUA_ERROR_NULL);
	v.owner_clock = 0;
	ck_assert_cua(cua_lock_verdict_text(&v, sizeof(line), line));
	ck_assert_ptr_nonnull(strstr(line, "held by no recorded owner"));
	/* the longest struct */
	memset(&v, 0xff, sizeof(v));
	memset(&r, 0xff, sizeof(r));
	v.kind = r.kind = CUA_LOCK_WRITE;
	r.owner_kind = CUA_LOCK_READ;
	v.mistake = CUA_LOCK_SELF_RELOCK;
	ck_assert_cua(cua_lock_verdict_text(&v, sizeof(line), line));
	ck_assert_ptr_nonnull(strstr(line, "18446744073709551615 ns; held by"));
	ck_assert_str_eq(line + strlen(line) - 3, " ns");
	ck_assert_cua(cua_hang_report_text(&r, sizeof(line), line));
	ck_assert_str_eq(line + strlen(line) - 3, " ns");
}
END_TEST

#if !TEST_CUDA

/* ---- every lock behind the same calls ---- */

static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE, CUA_SCOPE_SYSTEM};

/* In the order of enum cua_lock_kind. */
enum { KINDS = CUA_LOCK_SEMAPHORE + 1 };

struct locks {
	struct cua_spinlock spin;
	struct cua_ticketlock ticket;
	struct cua_mcslock mcs;
	struct cua_rwlock rw;
	struct cua_seqlock seq;
	struct cua_semaphore semaphore;
};

static struct locks locks;

/* Resets all locks to free without the table's knowledge. */
static void fresh_locks(void)
{
	memset(&locks, 0, sizeof(locks));
	locks.semaphore.count = 1;
}

static uint64_t address_of(struct locks *l, int kind)
{
	void *const addresses[KINDS] = {NULL,   &l->spin, &l->ticket, &l->mcs,
					&l->rw, &l->rw,   &l->seq,    &l->semaphore};

	return (uint64_t)(uintptr_t)addresses[kind];
}

static void init(struct locks *l, int kind)
{
	switch (kind) {
	case CUA_LOCK_SPIN: cua_spinlock_init(&l->spin); break;
	case CUA_LOCK_TICKET: cua_ticketlock_init(&l->ticket); break;
	case CUA_LOCK_MCS: cua_mcslock_init(&l->mcs); break;
	case CUA_LOCK_READ:
	case CUA_LOCK_WRITE: cua_rwlock_init(&l->rw); break;
	case CUA_LOCK_SEQ: cua_seqlock_init(&l->seq); break;
	default: cua_semaphore_init(&l->semaphore, 1);
	}
}

static int trylock(struct locks *l, int kind, struct cua_mcslock_node *node, enum cua_scope scope)
{
	switch (kind) {
	case CUA_LOCK_SPIN: return cua_spinlock_trylock_scope(&l->spin, scope);
	case CUA_LOCK_TICKET: return cua_ticketlock_trylock_scope(&l->ticket, scope);
	case CUA_LOCK_MCS: return cua_mcslock_trylock_scope(&l->mcs, node, scope);
	case CUA_LOCK_READ: return cua_rwlock_read_trylock_scope(&l->rw, scope);
	case CUA_LOCK_WRITE: return cua_rwlock_write_trylock_scope(&l->rw, scope);
	case CUA_LOCK_SEQ: return cua_seqlock_trylock_scope(&l->seq, scope);
	default: return cua_semaphore_trylock_scope(&l->semaphore, scope);
	}
}

static void lock(struct locks *l, int kind, struct cua_mcslock_node *node, enum cua_scope scope)
{
	switch (kind) {
	case CUA_LOCK_SPIN: cua_spinlock_lock_scope(&l->spin, scope); break;
	case CUA_LOCK_TICKET: cua_ticketlock_lock_scope(&l->ticket, scope); break;
	case CUA_LOCK_MCS: cua_mcslock_lock_scope(&l->mcs, node, scope); break;
	case CUA_LOCK_READ: cua_rwlock_read_lock_scope(&l->rw, scope); break;
	case CUA_LOCK_WRITE: cua_rwlock_write_lock_scope(&l->rw, scope); break;
	case CUA_LOCK_SEQ: cua_seqlock_lock_scope(&l->seq, scope); break;
	default: cua_semaphore_lock_scope(&l->semaphore, scope);
	}
}

static int lock_for(struct locks *l, int kind, struct cua_mcslock_node *node, uint64_t ns,
		    enum cua_scope scope)
{
	switch (kind) {
	case CUA_LOCK_SPIN: return cua_spinlock_lock_for_scope(&l->spin, ns, scope);
	case CUA_LOCK_TICKET: return cua_ticketlock_lock_for_scope(&l->ticket, ns, scope);
	case CUA_LOCK_MCS: return cua_mcslock_lock_for_scope(&l->mcs, node, ns, scope);
	case CUA_LOCK_READ: return cua_rwlock_read_lock_for_scope(&l->rw, ns, scope);
	case CUA_LOCK_WRITE: return cua_rwlock_write_lock_for_scope(&l->rw, ns, scope);
	case CUA_LOCK_SEQ: return cua_seqlock_lock_for_scope(&l->seq, ns, scope);
	default: return cua_semaphore_lock_for_scope(&l->semaphore, ns, scope);
	}
}

static void unlock(struct locks *l, int kind, struct cua_mcslock_node *node, enum cua_scope scope)
{
	switch (kind) {
	case CUA_LOCK_SPIN: cua_spinlock_unlock_scope(&l->spin, scope); break;
	case CUA_LOCK_TICKET: cua_ticketlock_unlock_scope(&l->ticket, scope); break;
	case CUA_LOCK_MCS: cua_mcslock_unlock_scope(&l->mcs, node, scope); break;
	case CUA_LOCK_READ: cua_rwlock_read_unlock_scope(&l->rw, scope); break;
	case CUA_LOCK_WRITE: cua_rwlock_write_unlock_scope(&l->rw, scope); break;
	case CUA_LOCK_SEQ: cua_seqlock_unlock_scope(&l->seq, scope); break;
	default: cua_semaphore_unlock_scope(&l->semaphore, scope);
	}
}

/* Leaves the section by its end, by break or by continue. */
#define SECTION(with, how)                                                                         \
	with                                                                                       \
	{                                                                                          \
		++*sum;                                                                            \
		if ((how) % 3 == 1)                                                                \
			break;                                                                     \
		if ((how) % 3 == 2)                                                                \
			continue;                                                                  \
	}

static void in_section(struct locks *l, int kind, struct cua_mcslock_node *node, unsigned how,
		       enum cua_scope scope, uint64_t *sum)
{
	switch (kind) {
	case CUA_LOCK_SPIN:
		if (how & 8)
			SECTION(CUA_WITH_LOCK_WARP_SCOPE (&l->spin, 1, scope), how)
		else
			SECTION(CUA_WITH_LOCK_SCOPE (&l->spin, scope), how)
		break;
	case CUA_LOCK_TICKET: SECTION(CUA_WITH_TICKETLOCK_SCOPE (&l->ticket, scope), how) break;
	case CUA_LOCK_MCS: SECTION(CUA_WITH_MCSLOCK_SCOPE (&l->mcs, node, scope), how) break;
	case CUA_LOCK_READ: SECTION(CUA_WITH_READ_LOCK_SCOPE (&l->rw, scope), how) break;
	case CUA_LOCK_WRITE: SECTION(CUA_WITH_WRITE_LOCK_SCOPE (&l->rw, scope), how) break;
	case CUA_LOCK_SEQ: SECTION(CUA_WITH_SEQLOCK_SCOPE (&l->seq, scope), how) break;
	default: SECTION(CUA_WITH_SEMAPHORE_SCOPE (&l->semaphore, scope), how)
	}
}

/* ---- the verdicts of the table ---- */

static uint64_t verdicts(struct cua_lock_verdict *v, size_t most)
{
	uint64_t total;
	size_t n;

	ck_assert_cua(cua_lock_debug_read_verdicts(table, 0, most, v, &n, &total));
	ck_assert_uint_eq(n, total < most ? total : most);
	return total;
}

static void expect_verdict(const struct cua_lock_verdict *v, int mistake, int kind, uint64_t owner,
			   uint64_t offender)
{
	ck_assert_int_eq((int)v->mistake, mistake);
	ck_assert_int_eq((int)v->kind, kind);
	ck_assert_uint_eq(v->address, address_of(&locks, kind));
	ck_assert_uint_eq(v->owner.grid, owner);
	ck_assert_uint_eq(v->offender.grid, offender);
	ck_assert_int_eq(v->owner_clock != 0, owner != 0);
	ck_assert_uint_le(v->owner_clock, v->clock);
	ck_assert_uint_le(v->clock, cua_port_clock_ns());
}

/* No mistakes, no dropped records, no recorded holders. */
static void expect_clean(void)
{
	struct cua_lock_verdict v = {0};
	char line[CUA_LOCK_DEBUG_TEXT] = "";
	uint64_t dropped, n = verdicts(&v, 1);

	if (n)
		(void)cua_lock_verdict_text(&v, sizeof(line), line);
	ck_assert_msg(n == 0, "%llu verdicts: %s", (unsigned long long)n, line);
	ck_assert_cua(cua_lock_debug_dropped(table, &dropped));
	ck_assert_uint_eq(dropped, 0);
	for (uint64_t i = 0; i < table->n_records; i++)
		ck_assert_uint_eq(table->records[i].state & 3, 0);
}

static void attach_new(uint64_t max_records, uint64_t max_verdicts, uint64_t limit_ns)
{
	struct cua_lock_debug_options options = {sizeof(options), max_records, max_verdicts, 8,
						 limit_ns};

	fresh_locks();
	make_table(&options);
	cua_lock_debug_attach(table);
}

static void detach(void)
{
	cua_lock_debug_attach(NULL);
	drop_table();
}

/* ---- mistakes ---- */

START_TEST(unlock_free)
{
	struct cua_mcslock_node other = {0, 1, 0}, node = {(uint64_t)(uintptr_t)&other, 0, 0};
	struct cua_lock_verdict v;

	attach_new(64, 4, 0);
	/* a queue lock would wait for its successor, so the test provides it */
	unlock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	if (_i == CUA_LOCK_SEMAPHORE) {
		expect_clean();
	} else {
		ck_assert_uint_eq(verdicts(&v, 1), 1);
		expect_verdict(&v, CUA_LOCK_UNLOCK_FREE, _i, 0, cua_port_grid_id());
	}
	detach();
}
END_TEST

struct stranger {
	int kind, locks_first;
	struct cua_mcslock_node *node, *second;
	uint64_t id;
	uint32_t ready;
};

static void *stranger_unlocks(void *arg)
{
	struct stranger *s = arg;

	s->id = cua_port_grid_id();
	unlock(&locks, s->kind, s->node, CUA_SCOPE_DEVICE);
	return NULL;
}

START_TEST(stranger_unlock)
{
	struct cua_mcslock_node node;
	struct stranger s = {.kind = _i, .node = &node};
	struct cua_lock_verdict v[2];
	pthread_t thread;

	attach_new(64, 4, 0);
	lock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	ck_assert_int_eq(pthread_create(&thread, NULL, stranger_unlocks, &s), 0);
	pthread_join(thread, NULL);
	if (_i == CUA_LOCK_SEMAPHORE) {
		ck_assert_uint_eq(verdicts(v, 1), 0);
	} else {
		ck_assert_uint_eq(verdicts(v, 2), 1);
		expect_verdict(v, CUA_LOCK_STRANGER_UNLOCK, _i, cua_port_grid_id(), s.id);
	}
	/* the lock is free again, and may be acquired */
	lock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	unlock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	ck_assert_uint_eq(verdicts(v, 2), _i == CUA_LOCK_SEMAPHORE ? 0 : 1);
	detach();
}
END_TEST

static void *locks_twice(void *arg)
{
	struct stranger *s = arg;

	s->id = cua_port_grid_id();
	lock(&locks, s->locks_first, s->node, CUA_SCOPE_DEVICE);
	cua_port_store_b32(&s->ready, 1, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	if (s->kind == CUA_LOCK_SEQ + 100)
		(void)cua_seqlock_read_begin(&locks.seq);
	else
		lock(&locks, s->kind, s->second, CUA_SCOPE_DEVICE);
	return NULL;
}

static int patient(uint64_t start)
{
	sched_yield();
	return cua_port_clock_ns() - start < PATIENCE_NS;
}

/* The verdict appears while the thread still waits. Then another thread's unlock ends the wait. */
START_TEST(self_relock)
{
	static const struct {
		int first, then;
	} cases[] = {
		{CUA_LOCK_SPIN, CUA_LOCK_SPIN},     {CUA_LOCK_TICKET, CUA_LOCK_TICKET},
		{CUA_LOCK_MCS, CUA_LOCK_MCS},       {CUA_LOCK_READ, CUA_LOCK_READ},
		{CUA_LOCK_WRITE, CUA_LOCK_WRITE},   {CUA_LOCK_READ, CUA_LOCK_WRITE},
		{CUA_LOCK_WRITE, CUA_LOCK_READ},    {CUA_LOCK_SEQ, CUA_LOCK_SEQ},
		{CUA_LOCK_SEQ, CUA_LOCK_SEQ + 100},
	};
	int first = cases[_i].first, then = cases[_i].then;
	struct cua_mcslock_node node, second;
	struct stranger s = {.kind = then, .locks_first = first, .node = &node, .second = &second};
	struct cua_lock_verdict v[3];
	uint64_t start = cua_port_clock_ns();
	pthread_t thread;

	attach_new(64, 4, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, locks_twice, &s), 0);
	while (!verdicts(v, 0) && patient(start))
		;
	while (!cua_port_load_b64(&table->verdicts[0].ready, CUA_ACQUIRE, CUA_SCOPE_SYSTEM,
				  CUA_SPACE_GENERIC) &&
	       patient(start))
		;
	ck_assert_uint_eq(verdicts(v, 1), 1);
	expect_verdict(v, CUA_LOCK_SELF_RELOCK, then % 100, s.id, s.id);
	if (first != CUA_LOCK_READ || then != CUA_LOCK_READ)
		unlock(&locks, first, &node, CUA_SCOPE_DEVICE);
	pthread_join(thread, NULL);
	if (first != CUA_LOCK_READ || then != CUA_LOCK_READ) {
		ck_assert_uint_eq(verdicts(v, 3), 2);
		expect_verdict(&v[1], CUA_LOCK_STRANGER_UNLOCK, first, s.id, cua_port_grid_id());
	}
	detach();
}
END_TEST

START_TEST(reinit)
{
	struct cua_mcslock_node node;
	struct cua_lock_verdict v;

	attach_new(64, 4, 0);
	init(&locks, _i);
	lock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	unlock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	init(&locks, _i);
	expect_clean();
	lock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	init(&locks, _i);
	if (_i == CUA_LOCK_SEMAPHORE) {
		expect_clean();
	} else if (_i != CUA_LOCK_READ) {
		ck_assert_uint_eq(verdicts(&v, 1), 1);
		expect_verdict(&v, CUA_LOCK_REINIT, _i, cua_port_grid_id(), cua_port_grid_id());
	}
	detach();
}
END_TEST

/*
 * A stripe is a spinlock: it is recorded under its own address, and its section has the same
 * verdicts as a lock's.
 */
START_TEST(stripes)
{
	static struct cua_stripe stripe[1];
	uint64_t me = cua_port_grid_id(), address = (uint64_t)(uintptr_t)&stripe[0].lock;
	struct cua_lock_verdict v[3] = {0};
	struct cua_stripes view;
	int object[2] = {0, 0};

	attach_new(64, 8, 0);
	memset(stripe, 0, sizeof(stripe));
	ck_assert_cua(cua_stripes_init(stripe, 1, &view));
	for (int how = 0; how < 3; how++) {
		CUA_WITH_STRIPE (&view, &object[0]) {
			ck_assert_int_eq(cua_stripes_locked(&view, &object[0]), 1);
			object[0]++;
			if (how == 1)
				break;
			if (how == 2)
				continue;
		}
		ck_assert_int_eq(cua_stripes_locked(&view, &object[0]), 0);
	}
	ck_assert_int_eq(object[0], 3);
	cua_stripes_lock_two(&view, &object[0], &object[1]);
	cua_stripes_unlock_two(&view, &object[0], &object[1]);
	expect_clean();

	CUA_WITH_STRIPE (&view, &object[0]) {
		/* falsifies the lock word, so that the mistake does not hang */
		stripe[0].lock.word = 0;
		CUA_WITH_STRIPE (&view, &object[1])
			object[1]++;
		cua_stripe_init(&stripe[0]);
	}
	ck_assert_int_eq(object[1], 1);
	ck_assert_uint_eq(verdicts(v, 3), 3);
	ck_assert_uint_eq(v[0].mistake, CUA_LOCK_SELF_RELOCK);
	ck_assert_uint_eq(v[1].mistake, CUA_LOCK_REINIT);
	ck_assert_uint_eq(v[2].mistake, CUA_LOCK_UNLOCK_FREE);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(v[i].kind, CUA_LOCK_SPIN);
		ck_assert_uint_eq(v[i].address, address);
		ck_assert_uint_eq(v[i].offender.grid, me);
		ck_assert_uint_eq(v[i].owner.grid, i < 2 ? me : 0);
	}
	detach();
}
END_TEST

/* If a record finds no room, it is counted as dropped, and no verdict follows from it. */
START_TEST(full)
{
	struct cua_spinlock many[5] = {CUA_SPINLOCK_INIT};
	struct cua_lock_verdict v[4];
	uint64_t dropped, total;
	size_t n;

	attach_new(2, 3, 0);
	for (int i = 0; i < 5; i++)
		cua_spinlock_lock(&many[i]);
	ck_assert_cua(cua_lock_debug_dropped(table, &dropped));
	ck_assert_uint_eq(dropped, 3);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(cua_spinlock_locked(&many[i]), 1);
		cua_spinlock_unlock(&many[i]);
		ck_assert_int_eq(cua_spinlock_locked(&many[i]), 0);
	}
	ck_assert_uint_eq(verdicts(v, 1), 0);
	detach();

	attach_new(64, 3, 0);
	for (int i = 0; i < 5; i++)
		cua_spinlock_unlock(&many[i]);
	ck_assert_uint_eq(table->n_verdicts, 5);
	ck_assert_cua(cua_lock_debug_read_verdicts(table, 0, 4, v, &n, &total));
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(total, 5);
	ck_assert_uint_eq(v[2].address, (uint64_t)(uintptr_t)&many[2]);
	ck_assert_cua(cua_lock_debug_read_verdicts(table, 1, 1, v, &n, &total));
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(v[0].address, (uint64_t)(uintptr_t)&many[1]);
	ck_assert_cua(cua_lock_debug_read_verdicts(table, 3, 4, v, &n, &total));
	ck_assert_uint_eq(n, 0);
	detach();
}
END_TEST

/* ---- no mistakes ---- */

CUA_DEFINE_COMBINE(add_up, uint64_t, uint64_t, { *state += argument; });
CUA_DEFINE_COMBINE_FETCH(add_fetch, uint64_t, uint64_t, {
	uint64_t first = *state;
	*state += argument;
	argument = first;
});

struct crowd {
	int kind;
	unsigned rounds;
	uint64_t seed, sum, passes;
};

static struct crowd crowd;

static void *right_use(void *arg)
{
	uint64_t seed = *(uint64_t *)arg, passes = 0, scratch, local = 0;
	uint64_t *sum = crowd.kind == CUA_LOCK_READ ? &local : &crowd.sum;
	struct cua_mcslock_node node, other;
	struct cua_spinlock own = CUA_SPINLOCK_INIT;

	for (unsigned i = 0; i < crowd.rounds; i++) {
		uint64_t r = test_random(&seed);
		enum cua_scope scope = scopes[r % 3];
		int kind = crowd.kind;

		switch (r >> 8 & 7) {
		case 0:
			if (!trylock(&locks, kind, &node, scope))
				continue;
			break;
		case 1:
			if (!lock_for(&locks, kind, &node, r >> 16 & 0xfff, scope))
				continue;
			break;
		case 2:
		case 3:
			in_section(&locks, kind, &node, (unsigned)(r >> 16), scope, sum);
			passes++;
			continue;
		case 4:
			if (kind != CUA_LOCK_SPIN)
				goto plain;
			if (r >> 16 & 1)
				add_up_warp_scope(&locks.spin, sum, 1, 1, scope);
			else if (r >> 17 & 1)
				(void)add_fetch_warp_scope(&locks.spin, sum, 1, 1, scope);
			else
				(void)add_fetch_block_scope(&locks.spin, sum, 1, 1, &scratch,
							    scope);
			passes++;
			continue;
		default:
		plain:
			lock(&locks, kind, &node, scope);
		}
		++*sum;
		passes++;
		/* a section on a private lock inside, and trylocks of the held lock */
		CUA_WITH_LOCK (&own) {
			if (kind != CUA_LOCK_READ && trylock(&locks, kind, &other, scope))
				passes += 1000000000;
		}
		unlock(&locks, kind, &node, scope);
	}
	cua_port_add_u64(&crowd.passes, passes, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	if (crowd.kind == CUA_LOCK_READ)
		cua_port_add_u64(&crowd.sum, local, CUA_RELAXED, CUA_SCOPE_DEVICE,
				 CUA_SPACE_GENERIC);
	return NULL;
}

START_TEST(no_mistakes)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS], seed = test_seed("no_mistakes"), total;
	size_t n;

	/* a small table: records are claimed and freed all the time */
	attach_new(32, 8, 0);
	memset(&crowd, 0, sizeof(crowd));
	crowd.kind = _i;
	crowd.rounds = test_quick() ? 300 : 4000;
	for (int i = 0; i < THREADS; i++) {
		seeds[i] = test_random(&seed);
		ck_assert_int_eq(pthread_create(&threads[i], NULL, right_use, &seeds[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(crowd.sum, crowd.passes);
	ck_assert_uint_gt(crowd.sum, 0);
	expect_clean();
	ck_assert_cua(cua_lock_debug_read_reports(table, 0, 0, NULL, &n, &total));
	ck_assert_uint_eq(total, 0);
	detach();
}
END_TEST

/* Concurrent readers, a writer between them, and a semaphore that other threads post. */
static void *readers_and_signals(void *arg)
{
	int gives = *(int *)arg;
	uint64_t begun;

	for (int i = 0; i < 2000; i++) {
		if (gives)
			cua_semaphore_unlock(&locks.semaphore);
		else
			cua_semaphore_lock(&locks.semaphore);
		CUA_WITH_READ_LOCK (&locks.rw) {
			CUA_WITH_SEQLOCK (&locks.seq) {
			}
			do
				begun = cua_seqlock_read_begin(&locks.seq);
			while (cua_seqlock_read_retry(&locks.seq, begun));
		}
		if (i % 16 == gives)
			CUA_WITH_WRITE_LOCK (&locks.rw) {
			}
	}
	return NULL;
}

START_TEST(mixed)
{
	pthread_t threads[4];
	struct cua_lock_verdict v;
	int gives[2] = {0, 1};
	uint64_t dropped;

	attach_new(256, 8, 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, readers_and_signals, &gives[i % 2]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	/* the last owner is still recorded, all other owners are gone */
	cua_semaphore_init(&locks.semaphore, 1);
	ck_assert_uint_eq(verdicts(&v, 1), 0);
	ck_assert_cua(cua_lock_debug_dropped(table, &dropped));
	ck_assert_uint_eq(dropped, 0);
	detach();
}
END_TEST

/* Without a table nothing is recorded, and the locks work the same. */
/* A section that is left in any way leaves no record and causes no verdict. */
START_TEST(exits)
{
	enum section_kind kind = (enum section_kind)_i;
	struct cua_mcslock_node node;
	struct section_locks l;

	section_init(&l);
	attach_new(64, 8, 0);
	for (int i = 0; i < 2 * SECTION_EXITS; i++) {
		enum section_exit how = (enum section_exit)(i % SECTION_EXITS);

		ck_assert(section_left(how, section_leave(&l, kind, &node, 1, how)));
		expect_clean();
	}
	detach();
	ck_assert_int_eq(section_locked(&l), 0);
}
END_TEST

START_TEST(no_table)
{
	struct cua_mcslock_node node;
	uint64_t sum = 0;

	attach_new(64, 4, 1);
	cua_lock_debug_attach(NULL);
	lock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	unlock(&locks, _i, &node, CUA_SCOPE_DEVICE);
	in_section(&locks, _i, &node, 0, CUA_SCOPE_DEVICE, &sum);
	ck_assert_uint_eq(sum, 1);
	if (_i == CUA_LOCK_SPIN)
		cua_spinlock_unlock(&locks.spin);
	expect_clean();
	drop_table();
}
END_TEST

/* ---- hangs ---- */

enum how { BY_LOCK, BY_SECTION, BY_READ_BEGIN };

static const struct {
	int held, wanted;
	enum how how;
} hangs[] = {
	{CUA_LOCK_SPIN, CUA_LOCK_SPIN, BY_LOCK},
	{CUA_LOCK_SPIN, CUA_LOCK_SPIN, BY_SECTION},
	{CUA_LOCK_TICKET, CUA_LOCK_TICKET, BY_LOCK},
	{CUA_LOCK_TICKET, CUA_LOCK_TICKET, BY_SECTION},
	{CUA_LOCK_MCS, CUA_LOCK_MCS, BY_LOCK},
	{CUA_LOCK_MCS, CUA_LOCK_MCS, BY_SECTION},
	{CUA_LOCK_WRITE, CUA_LOCK_READ, BY_LOCK},
	{CUA_LOCK_WRITE, CUA_LOCK_READ, BY_SECTION},
	{CUA_LOCK_READ, CUA_LOCK_WRITE, BY_LOCK},
	{CUA_LOCK_READ, CUA_LOCK_WRITE, BY_SECTION},
	{CUA_LOCK_WRITE, CUA_LOCK_WRITE, BY_LOCK},
	{CUA_LOCK_WRITE, CUA_LOCK_WRITE, BY_SECTION},
	{CUA_LOCK_SEQ, CUA_LOCK_SEQ, BY_LOCK},
	{CUA_LOCK_SEQ, CUA_LOCK_SEQ, BY_SECTION},
	{CUA_LOCK_SEQ, CUA_LOCK_SEQ, BY_READ_BEGIN},
	{CUA_LOCK_SEMAPHORE, CUA_LOCK_SEMAPHORE, BY_LOCK},
	{CUA_LOCK_SEMAPHORE, CUA_LOCK_SEMAPHORE, BY_SECTION},
};
enum { N_HANGS = sizeof(hangs) / sizeof(hangs[0]) };

struct waiter {
	int i;
	uint64_t id, sum;
};

static void *waits(void *arg)
{
	struct waiter *w = arg;
	struct cua_mcslock_node node;

	w->id = cua_port_grid_id();
	if (hangs[w->i].how == BY_SECTION) {
		in_section(&locks, hangs[w->i].wanted, &node, 0, CUA_SCOPE_DEVICE, &w->sum);
	} else if (hangs[w->i].how == BY_LOCK) {
		lock(&locks, hangs[w->i].wanted, &node, CUA_SCOPE_DEVICE);
		w->sum++;
		unlock(&locks, hangs[w->i].wanted, &node, CUA_SCOPE_DEVICE);
	} else {
		w->sum += !(cua_seqlock_read_begin(&locks.seq) & 1);
	}
	return NULL;
}

START_TEST(hang)
{
	struct cua_mcslock_node node;
	struct waiter waiters[2] = {{_i, 0, 0}, {_i, 0, 0}};
	struct cua_hang_report reports[3];
	uint64_t start = cua_port_clock_ns(), total;
	pthread_t threads[2];
	size_t n;

	attach_new(64, 4, LIMIT_NS);
	lock(&locks, hangs[_i].held, &node, CUA_SCOPE_DEVICE);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, waits, &waiters[i]), 0);
	do
		ck_assert_cua(cua_lock_debug_read_reports(table, 0, 3, reports, &n, &total));
	while (n < 2 && patient(start));
	ck_assert_uint_eq(n, 2);
	/* each waiter reports once, although it waits longer */
	for (start = cua_port_clock_ns(); cua_port_clock_ns() - start < 4 * LIMIT_NS;)
		sched_yield();
	ck_assert_cua(cua_lock_debug_read_reports(table, 0, 3, reports, &n, &total));
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(total, 2);
	unlock(&locks, hangs[_i].held, &node, CUA_SCOPE_DEVICE);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_uint_eq(waiters[i].sum, 1);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq((int)reports[i].kind, hangs[_i].wanted);
		ck_assert_int_eq((int)reports[i].owner_kind, hangs[_i].held);
		ck_assert_uint_eq(reports[i].address, address_of(&locks, hangs[_i].wanted));
		ck_assert_uint_eq(reports[i].owner.grid, cua_port_grid_id());
		ck_assert_uint_ge(reports[i].waited_ns, LIMIT_NS);
		ck_assert_uint_ge(reports[i].clock, reports[i].owner_clock + LIMIT_NS);
		ck_assert_uint_ne(reports[i].owner_clock, 0);
	}
	ck_assert((reports[0].waiter.grid == waiters[0].id &&
		   reports[1].waiter.grid == waiters[1].id) ||
		  (reports[0].waiter.grid == waiters[1].id &&
		   reports[1].waiter.grid == waiters[0].id));
	expect_clean();
	detach();
}
END_TEST

#endif /* !TEST_CUDA */

static Suite *make_suite(void)
{
	Suite *suite = suite_create("lock debugging");
	TCase *tc = tcase_create("host calls");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, arguments);
	tcase_add_test(tc, text);
	suite_add_tcase(suite, tc);
#if !TEST_CUDA
	tc = tcase_create("mistakes");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, unlock_free, CUA_LOCK_SPIN, KINDS);
	tcase_add_loop_test(tc, stranger_unlock, CUA_LOCK_SPIN, KINDS);
	tcase_add_loop_test(tc, self_relock, 0, 9);
	tcase_add_loop_test(tc, reinit, CUA_LOCK_SPIN, KINDS);
	tcase_add_test(tc, stripes);
	tcase_add_test(tc, full);
	suite_add_tcase(suite, tc);
	tc = tcase_create("no mistakes");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, no_mistakes, CUA_LOCK_SPIN, KINDS);
	tcase_add_test(tc, mixed);
	tcase_add_loop_test(tc, exits, 0, SECTION_KINDS);
	tcase_add_loop_test(tc, no_table, CUA_LOCK_SPIN, KINDS);
	suite_add_tcase(suite, tc);
	tc = tcase_create("hangs");
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, hang, 0, N_HANGS);
	suite_add_tcase(suite, tc);
#endif
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
