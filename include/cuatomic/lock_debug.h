/* SPDX-License-Identifier: MIT */
/*
 * Lock debugging: who holds which lock, what was done wrong with locks, and who has waited too long.
 *
 * Compile with -DCUA_LOCK_DEBUG and give the translation unit a table:
 *
 *     cua_lock_debug_create(ctx, NULL, &table);
 *     cua_lock_debug_attach(table);          locks of this side: the host, or in a kernel the device
 *     cua_lock_debug_attach_device(table);   locks in kernels, called by the host in CUDA code
 *
 * From then on the locks of lock.h, combine.h and stripe.h in this unit keep a record of each holder in the
 * table, log what they find wrong, and report waits beyond the table's limit. The log and the reports can be read
 * while a kernel hangs. A unit without a table, or without the macro, does as it always did: structs, calls
 * and the code without the macro are the same.
 *
 * What is found, by the lane that does it and before it does it:
 *
 *   SELF_RELOCK      lock (also a CUA_WITH_ section or a combined call) of a lock that the lane holds. The
 *                    rwlock in any combination of reading and writing; the sequence lock also for its
 *                    readers, once they would wait. trylock and lock_for end by themselves and are right.
 *   STRANGER_UNLOCK  unlock by a lane that does not hold the lock while another does. The lock is free
 *                    then, so the owner's record goes.
 *   UNLOCK_FREE      unlock of a lock that nobody holds; a rwlock, nobody in this way.
 *   REINIT           init of a lock that is held (by a writer for a rwlock).
 *
 * What a holder is:
 *
 *   spinlock (also a stripe), ticketlock, mcslock, seqlock   the lane that took it
 *   rwlock                the writer; each reader, who has to unlock it itself
 *   semaphore             the lane that took one last, until it gives one back. Another lane may give it,
 *                         so a semaphore has reports and no verdicts
 *   name_warp, name_block, CUA_WITH_LOCK_WARP   the lane that takes the lock for all, the lowest of the group or
 *                         thread 0. That another lane of the group holds the lock is SELF_RELOCK of that lane
 *
 * A lane is known by grid (the launch), block and thread; a host thread by grid alone, the others are 0.
 * Clocks are those of cua_port_clock_ns, so that of the host and that of a device do not compare.
 *
 * Source: the error-checking mutex of POSIX, with the owner in a side table as in Linux's lock debugging.
 *
 * Synchronization: X means that the caller must order the two calls, - that the table does it. "lock" is
 * whatever uses a lock of the unit.
 *
 *               init/create  attach  lock  read  destroy
 *     attach         X          -      -     -      X
 *     lock           X          -      -     -      X
 *     read           X          -      -     -      X
 *
 *   Attach a table while none of the unit's locks is held: a lock that was taken before is one that nobody
 *   holds. The same is true for a lock that a unit without the macro takes; all that unlock a lock must have
 *   the same table. A table is used by host threads or in kernels of one device.
 * Scope: system, for the table; a lock in shared memory is the block's own, also in the table.
 * Memory order: the table orders nothing between those that use a lock.
 * Progress: nobody ever waits for the table. A record that finds no room among CUA_LOCK_DEBUG_PROBES is
 *   counted as dropped; from then on the lack of a record at its place proves nothing and is no verdict.
 *   Verdicts and reports past the capacity are counted.
 * Argument: a record belongs to whom a CAS brought from free to busy, until its release store says held; it is
 *   freed by a CAS too, which only one can win. Whoever reads it reads its state before and after the
 *   fields: they are stored with release after the state became busy, so a reader that acquired a newer
 *   field finds a state that differs, for the state counts the uses. A holder writes its record after it took
 *   the lock, and frees it before it gives the lock back; nobody else frees it but after a mistake. So a
 *   lane finds its own record exactly if it holds the lock. Entries of the log and reports belong to whom the
 *   count gave them, and its release store of `ready` is what the host acquires.
 */
#ifndef CUATOMIC_LOCK_DEBUG_H
#define CUATOMIC_LOCK_DEBUG_H

#include <cuatomic/context.h>
#include <cuatomic/hash.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>

#define CUA_LOCK_DEBUG_LAYOUT 1u
/* Records that are looked at for one lock. */
#define CUA_LOCK_DEBUG_PROBES 32u
/* Bytes that always suffice for the text of a verdict or a report. */
#define CUA_LOCK_DEBUG_TEXT 384u

enum cua_lock_kind {
	CUA_LOCK_SPIN = 1,
	CUA_LOCK_TICKET = 2,
	CUA_LOCK_MCS = 3,
	CUA_LOCK_READ = 4,  /* a rwlock, by a reader */
	CUA_LOCK_WRITE = 5, /* a rwlock, by a writer */
	CUA_LOCK_SEQ = 6,
	CUA_LOCK_SEMAPHORE = 7
};

enum cua_lock_mistake {
	CUA_LOCK_SELF_RELOCK = 1,
	CUA_LOCK_STRANGER_UNLOCK = 2,
	CUA_LOCK_UNLOCK_FREE = 3,
	CUA_LOCK_REINIT = 4
};

/* Who holds a lock, or wants it. */
struct cua_lock_agent {
	uint64_t grid; /* on the host, the thread */
	uint64_t block;
	uint64_t thread; /* of the block */
};

/* A holder. The table's own; all zeros when new. */
struct cua_lock_record {
	uint64_t state; /* 4 times the uses, and 0: free, 1: busy, 2: held */
	uint64_t key;   /* the address, or a hash of it and the block for shared memory */
	uint64_t address;
	struct cua_lock_agent owner;
	uint64_t clock; /* ns, when it took the lock */
	uint32_t kind;
	uint32_t dropped; /* not 0: a record that should begin here found no room */
};
CUA_STATIC_ASSERT(sizeof(struct cua_lock_record) == 64, "the record is ABI");

/* An entry of the log. */
struct cua_lock_verdict {
	uint64_t ready;       /* not 0 when the rest has been written */
	uint32_t mistake;     /* enum cua_lock_mistake */
	uint32_t kind;        /* enum cua_lock_kind */
	uint64_t address;     /* of the lock */
	uint64_t owner_clock; /* ns, when the owner took the lock; 0: nobody holds it */
	uint64_t clock;       /* ns, of the verdict */
	struct cua_lock_agent owner;
	struct cua_lock_agent offender;
};
CUA_STATIC_ASSERT(sizeof(struct cua_lock_verdict) == 88, "the verdict is ABI");

/* A wait beyond the limit. */
struct cua_hang_report {
	uint64_t ready; /* not 0 when the rest has been written */
	uint32_t kind;  /* enum cua_lock_kind: what the waiter wants */
	uint32_t owner_kind;
	uint64_t address;     /* of the lock */
	uint64_t owner_clock; /* ns, when the owner took the lock; 0: no owner is recorded */
	uint64_t clock;       /* ns, of the report */
	uint64_t waited_ns;   /* so far */
	struct cua_lock_agent owner;
	struct cua_lock_agent waiter;
};
CUA_STATIC_ASSERT(sizeof(struct cua_hang_report) == 96, "the report is ABI");

/*
 * The table. What it points to is memory of its users; the host reads the table, the log and the reports while
 * kernels run, so for kernels these are in mapped host memory. Records may be in device memory.
 */
struct cua_lock_debug {
	uint32_t layout; /* CUA_LOCK_DEBUG_LAYOUT */
	uint32_t reserved;
	uint64_t n_records; /* a power of two, or 0 */
	struct cua_lock_record *records;
	uint64_t max_verdicts;
	struct cua_lock_verdict *verdicts;
	uint64_t max_reports;
	struct cua_hang_report *reports;
	uint64_t limit_ns;   /* of a wait; 0: none */
	uint64_t n_verdicts; /* how many there were, also those that found no room */
	uint64_t n_reports;
	uint64_t n_dropped;      /* records */
	struct cua_context *ctx; /* of cua_lock_debug_create */
};
CUA_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(struct cua_lock_debug) == 96, "the table is ABI");

/* A table over the caller's memory of zeros; n_records is a power of two, or 0 for none. */
CUA_FN void cua_lock_debug_init(struct cua_lock_debug *table, uint64_t n_records,
				struct cua_lock_record *records, uint64_t max_verdicts,
				struct cua_lock_verdict *verdicts, uint64_t max_reports,
				struct cua_hang_report *reports, uint64_t limit_ns)
{
	memset(table, 0, sizeof(*table));
	table->layout = CUA_LOCK_DEBUG_LAYOUT;
	table->n_records = n_records;
	table->records = records;
	table->max_verdicts = max_verdicts;
	table->verdicts = verdicts;
	table->max_reports = max_reports;
	table->reports = reports;
	table->limit_ns = limit_ns;
}

#ifdef CUA_LOCK_DEBUG

CUA__UNIT_WORD(cua__lock_debug_unit);

/*
 * Makes a table the one of this translation unit, NULL none: called on the host for locks of host threads, in a
 * kernel (by one lane is enough, before others come to a lock) for locks in kernels of its device.
 */
CUA_FN void cua_lock_debug_attach(struct cua_lock_debug *table)
{
	cua_port_store_b64(CUA__UNIT_AT(cua__lock_debug_unit), (uint64_t)(uintptr_t)table,
			   CUA_RELEASE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
}

/*
 * The same for kernels, called on the host: for the current device and this unit's kernels launched after
 * it. May wait for the device. CUA_OK or CUA_ERROR_CUDA.
 */
#ifdef __CUDACC__
static __inline__ __attribute__((unused)) enum cua_status
cua_lock_debug_attach_device(struct cua_lock_debug *table)
{
	uint64_t word = (uint64_t)(uintptr_t)table;

	if (cudaMemcpyToSymbol(cua__lock_debug_unit_device, &word, sizeof(word)) == cudaSuccess)
		return CUA_OK;
	(void)cudaGetLastError();
	return CUA_ERROR_CUDA;
}
#endif

#define CUA__DEBUG_AT CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC
/* Counters in host memory are changed by one side only, and not every GPU can do that for the whole system. */
#define CUA__DEBUG_COUNT CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC

/* A lock as one lane sees it. */
struct cua__lock_query {
	struct cua_lock_debug *table; /* NULL: none is attached */
	uint64_t address, key, home;
	struct cua_lock_agent me;
	uint32_t kind;
};

/* A record as it was at one moment. */
struct cua__lock_found {
	uint64_t *state, seen, clock;
	struct cua_lock_agent owner;
};

/* The state of one wait. */
struct cua__lock_wait {
	uint64_t start, limit;
};

/* Readers are many on one lock, so their records are spread; all others are found by the lock alone. */
CUA_FN uint64_t cua__lock_debug_home(const struct cua__lock_query *k, uint32_t kind)
{
	uint64_t hash = cua_hash_u64(k->key, kind);

	if (kind == CUA_LOCK_READ)
		hash ^= cua_hash_u64(k->me.thread, cua_hash_u64(k->me.block, k->me.grid));
	return hash & (k->table->n_records - 1);
}

CUA_FN struct cua__lock_query cua__lock_debug_query(enum cua_lock_kind kind, const void *l)
{
	struct cua__lock_query k;

	memset(&k, 0, sizeof(k));
	k.table = (struct cua_lock_debug *)(uintptr_t)cua_port_load_b64(
		CUA__UNIT_AT(cua__lock_debug_unit), CUA_ACQUIRE, CUA__DEBUG_AT);
	if (!k.table)
		return k;
	k.kind = (uint32_t)kind;
	k.me.grid = cua_port_grid_id();
	k.me.block = cua_port_block();
	k.me.thread = cua_port_thread();
	k.address = k.key = (uint64_t)(uintptr_t)l;
	/* blocks have their shared memory at the same addresses; no address has the highest bit */
	if (cua_port_is_shared(l))
		k.key = cua_hash_u64(k.address, cua_hash_u64(k.me.block, k.me.grid)) |
			(uint64_t)1 << 63;
	if (k.table->n_records)
		k.home = cua__lock_debug_home(&k, k.kind);
	return k;
}

/* ---- records ---- */

CUA_FN uint64_t cua__lock_debug_probes(const struct cua_lock_debug *t)
{
	return t->n_records < CUA_LOCK_DEBUG_PROBES ? t->n_records : CUA_LOCK_DEBUG_PROBES;
}

/* Finds a holder of this kind among the n records from home on: the lane `who`, or anyone for NULL. */
CUA_FN int cua__lock_debug_find(const struct cua__lock_query *k, uint32_t kind, uint64_t home,
				uint64_t n, const struct cua_lock_agent *agent,
				struct cua__lock_found *found)
{
	uint64_t i, key;
	uint32_t is;

	for (i = 0; i < n; i++) {
		struct cua_lock_record *r =
			&k->table->records[(home + i) & (k->table->n_records - 1)];

		found->state = &r->state;
		found->seen = cua_port_load_b64(&r->state, CUA_ACQUIRE, CUA__DEBUG_AT);
		if ((found->seen & 3) != 2)
			continue;
		key = cua_port_load_b64(&r->key, CUA_ACQUIRE, CUA__DEBUG_AT);
		is = cua_port_load_b32(&r->kind, CUA_ACQUIRE, CUA__DEBUG_AT);
		if (key != k->key || is != kind)
			continue;
		found->owner.grid = cua_port_load_b64(&r->owner.grid, CUA_ACQUIRE, CUA__DEBUG_AT);
		found->owner.block = cua_port_load_b64(&r->owner.block, CUA_ACQUIRE, CUA__DEBUG_AT);
		found->owner.thread =
			cua_port_load_b64(&r->owner.thread, CUA_ACQUIRE, CUA__DEBUG_AT);
		found->clock = cua_port_load_b64(&r->clock, CUA_ACQUIRE, CUA__DEBUG_AT);
		if (cua_port_load_b64(&r->state, CUA_RELAXED, CUA__DEBUG_AT) != found->seen)
			continue;
		if (!agent ||
		    (found->owner.grid == agent->grid && found->owner.block == agent->block &&
		     found->owner.thread == agent->thread))
			return 1;
	}
	memset(found, 0, sizeof(*found));
	return 0;
}

/* This lane's record as a holder of this kind. */
CUA_FN int cua__lock_debug_find_own(const struct cua__lock_query *k, uint32_t kind,
				    struct cua__lock_found *found)
{
	return k->table->n_records &&
	       cua__lock_debug_find(k, kind, cua__lock_debug_home(k, kind),
				    cua__lock_debug_probes(k->table), &k->me, found);
}

/* Anyone's. A reader's may be anywhere; only mistakes and hangs look for it. */
CUA_FN int cua__lock_debug_find_any(const struct cua__lock_query *k, uint32_t kind,
				    struct cua__lock_found *found)
{
	return cua__lock_debug_find(k, kind, cua__lock_debug_home(k, kind),
				    kind == CUA_LOCK_READ ? k->table->n_records
							  : cua__lock_debug_probes(k->table),
				    NULL, found);
}

/* 1 for the one who frees the record. */
CUA_FN int cua__lock_debug_free(const struct cua__lock_found *found)
{
	return cua_port_cas_b64(found->state, found->seen, found->seen & ~(uint64_t)3, CUA_ACQ_REL,
				CUA__DEBUG_AT) == found->seen;
}

/* Writes a record if its state is still the one that was seen. */
CUA_FN int cua__lock_debug_write(const struct cua__lock_query *k, struct cua_lock_record *r,
				 uint64_t seen)
{
	uint64_t busy = (seen | 3) + 2; /* the next use, busy */

	if (cua_port_cas_b64(&r->state, seen, busy, CUA_ACQ_REL, CUA__DEBUG_AT) != seen)
		return 0;
	cua_port_store_b64(&r->key, k->key, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->address, k->address, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->owner.grid, k->me.grid, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->owner.block, k->me.block, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->owner.thread, k->me.thread, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->clock, cua_port_clock_ns(), CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b32(&r->kind, k->kind, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->state, busy + 1, CUA_RELEASE, CUA__DEBUG_AT);
	return 1;
}

CUA_FN void cua__lock_debug_insert(const struct cua__lock_query *k)
{
	struct cua_lock_debug *t = k->table;
	uint64_t i, n = cua__lock_debug_probes(t), seen;

	for (i = 0; i < n; i++) {
		struct cua_lock_record *r = &t->records[(k->home + i) & (t->n_records - 1)];

		seen = cua_port_load_b64(&r->state, CUA_RELAXED, CUA__DEBUG_AT);
		if (!(seen & 3) && cua__lock_debug_write(k, r, seen))
			return;
	}
	if (n)
		cua_port_store_b32(&t->records[k->home].dropped, 1, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_add_u64(&t->n_dropped, 1, CUA_RELAXED, CUA__DEBUG_COUNT);
}

/* Whether the lack of a record of this lane says that it does not hold the lock. */
CUA_FN int cua__lock_debug_complete(const struct cua__lock_query *k)
{
	return k->table->n_records &&
	       !cua_port_load_b32(&k->table->records[k->home].dropped, CUA_RELAXED, CUA__DEBUG_AT);
}

/* ---- the log and the reports ---- */

CUA_FN void cua__lock_debug_agent(struct cua_lock_agent *to, const struct cua_lock_agent *from)
{
	cua_port_store_b64(&to->grid, from->grid, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&to->block, from->block, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&to->thread, from->thread, CUA_RELAXED, CUA__DEBUG_AT);
}

CUA_FN void cua__lock_debug_verdict(const struct cua__lock_query *k, enum cua_lock_mistake mistake,
				    const struct cua__lock_found *owner)
{
	struct cua_lock_debug *t = k->table;
	uint64_t n = cua_port_fetch_add_u64(&t->n_verdicts, 1, CUA_RELAXED, CUA__DEBUG_COUNT);
	struct cua_lock_verdict *v;

	if (n >= t->max_verdicts)
		return;
	v = &t->verdicts[n];
	cua_port_store_b32(&v->mistake, (uint32_t)mistake, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b32(&v->kind, k->kind, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&v->address, k->address, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&v->owner_clock, owner->clock, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&v->clock, cua_port_clock_ns(), CUA_RELAXED, CUA__DEBUG_AT);
	cua__lock_debug_agent(&v->owner, &owner->owner);
	cua__lock_debug_agent(&v->offender, &k->me);
	cua_port_store_b64(&v->ready, 1, CUA_RELEASE, CUA__DEBUG_AT);
}

CUA_FN void cua__lock_debug_report(const struct cua__lock_query *k, uint64_t now, uint64_t waited)
{
	struct cua_lock_debug *t = k->table;
	uint64_t n = cua_port_fetch_add_u64(&t->n_reports, 1, CUA_RELAXED, CUA__DEBUG_COUNT);
	struct cua__lock_found owner;
	struct cua_hang_report *r;
	uint32_t kind = k->kind == CUA_LOCK_READ ? (uint32_t)CUA_LOCK_WRITE : k->kind;

	if (n >= t->max_reports)
		return;
	memset(&owner, 0, sizeof(owner));
	if (t->n_records && !cua__lock_debug_find_any(k, kind, &owner) &&
	    k->kind == CUA_LOCK_WRITE) {
		kind = CUA_LOCK_READ;
		(void)cua__lock_debug_find_any(k, kind, &owner);
	}
	r = &t->reports[n];
	cua_port_store_b32(&r->kind, k->kind, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b32(&r->owner_kind, owner.clock ? kind : 0, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&r->address, k->address, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&r->owner_clock, owner.clock, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&r->clock, now, CUA_RELAXED, CUA__DEBUG_AT);
	cua_port_store_b64(&r->waited_ns, waited, CUA_RELAXED, CUA__DEBUG_AT);
	cua__lock_debug_agent(&r->owner, &owner.owner);
	cua__lock_debug_agent(&r->waiter, &k->me);
	cua_port_store_b64(&r->ready, 1, CUA_RELEASE, CUA__DEBUG_AT);
}

/* ---- what the locks tell; see section.h ---- */

/* A lane is about to wait for a lock until it gets it. */
CUA_FN struct cua__lock_wait cua__lock_debug_request(enum cua_lock_kind kind, const void *l)
{
	struct cua__lock_query k = cua__lock_debug_query(kind, l);
	struct cua__lock_wait w = {0, 0};
	struct cua__lock_found found;

	if (!k.table)
		return w;
	w.limit = k.table->limit_ns;
	if (w.limit)
		w.start = cua_port_clock_ns();
	if (kind == CUA_LOCK_SEMAPHORE)
		return w;
	if (cua__lock_debug_find_own(&k, k.kind, &found) ||
	    (kind == CUA_LOCK_READ && cua__lock_debug_find_own(&k, CUA_LOCK_WRITE, &found)) ||
	    (kind == CUA_LOCK_WRITE && cua__lock_debug_find_own(&k, CUA_LOCK_READ, &found)))
		cua__lock_debug_verdict(&k, CUA_LOCK_SELF_RELOCK, &found);
	return w;
}

/* It looked in vain. Returns 1. */
CUA_FN int cua__lock_debug_waiting(enum cua_lock_kind kind, const void *l, struct cua__lock_wait *w)
{
	struct cua__lock_query k;
	uint64_t now;

	if (!w->limit)
		return 1;
	now = cua_port_clock_ns();
	if (now - w->start < w->limit)
		return 1;
	w->limit = 0;
	k = cua__lock_debug_query(kind, l);
	if (k.table)
		cua__lock_debug_report(&k, now, now - w->start);
	return 1;
}

/* It tried. Returns whether it has the lock. */
CUA_FN int cua__lock_debug_acquired(enum cua_lock_kind kind, const void *l, int taken)
{
	struct cua__lock_query k;
	struct cua__lock_found found;

	if (!taken)
		return 0;
	k = cua__lock_debug_query(kind, l);
	if (!k.table || !k.table->n_records)
		return 1;
	/* a semaphore has one record, of whom took it last; if others write it, they are as late */
	if (kind == CUA_LOCK_SEMAPHORE && cua__lock_debug_find_any(&k, k.kind, &found))
		(void)cua__lock_debug_write(
			&k,
			(struct cua_lock_record *)(void *)((char *)found.state -
							   offsetof(struct cua_lock_record, state)),
			found.seen);
	else
		cua__lock_debug_insert(&k);
	return 1;
}

/* It is about to unlock. */
CUA_FN void cua__lock_debug_unlock(enum cua_lock_kind kind, const void *l)
{
	struct cua__lock_query k = cua__lock_debug_query(kind, l);
	struct cua__lock_found found;

	if (!k.table ||
	    (cua__lock_debug_find_own(&k, k.kind, &found) && cua__lock_debug_free(&found)) ||
	    kind == CUA_LOCK_SEMAPHORE || !cua__lock_debug_complete(&k))
		return;
	if (cua__lock_debug_find_any(&k, k.kind, &found) && cua__lock_debug_free(&found))
		cua__lock_debug_verdict(&k, CUA_LOCK_STRANGER_UNLOCK, &found);
	else {
		memset(&found, 0, sizeof(found));
		cua__lock_debug_verdict(&k, CUA_LOCK_UNLOCK_FREE, &found);
	}
}

/* The lock is about to become a new one. */
CUA_FN void cua__lock_debug_reinit(enum cua_lock_kind kind, const void *l)
{
	struct cua__lock_query k = cua__lock_debug_query(kind, l);
	struct cua__lock_found found;

	if (!k.table || !k.table->n_records || !cua__lock_debug_find_any(&k, k.kind, &found) ||
	    !cua__lock_debug_free(&found) || kind == CUA_LOCK_SEMAPHORE)
		return;
	cua__lock_debug_verdict(&k, CUA_LOCK_REINIT, &found);
}

#define CUA__LOCK_KIND_spinlock CUA_LOCK_SPIN
#define CUA__LOCK_KIND_ticketlock CUA_LOCK_TICKET
#define CUA__LOCK_KIND_mcslock CUA_LOCK_MCS
#define CUA__LOCK_KIND_rwlock_read CUA_LOCK_READ
#define CUA__LOCK_KIND_rwlock_write CUA_LOCK_WRITE
#define CUA__LOCK_KIND_seqlock CUA_LOCK_SEQ
#define CUA__LOCK_KIND_semaphore CUA_LOCK_SEMAPHORE

#define CUA__LOCK_REQUEST(kind, l, wait)                                                           \
	struct cua__lock_wait wait = cua__lock_debug_request(CUA__LOCK_KIND_##kind, (l))
#define CUA__LOCK_DELEGATE(kind, l) ((void)cua__lock_debug_request(CUA__LOCK_KIND_##kind, (l)))
#define CUA__LOCK_WAITING(kind, l, wait)                                                           \
	((void)cua__lock_debug_waiting(CUA__LOCK_KIND_##kind, (l), &(wait)))
#define CUA__LOCK_ACQUIRED(kind, l, taken)                                                         \
	cua__lock_debug_acquired(CUA__LOCK_KIND_##kind, (l), (taken))
#define CUA__LOCK_UNLOCK(kind, l) cua__lock_debug_unlock(CUA__LOCK_KIND_##kind, (l))
#define CUA__LOCK_INIT(kind, l) cua__lock_debug_reinit(CUA__LOCK_KIND_##kind, (l))

/* A section's wait is beside its state, which is the same with and without CUA_LOCK_DEBUG. */
#define CUA__LOCK_FIRST(l, ...) (l)
struct cua__lock_section {
	struct cua__lock_wait wait;
	int entered;
};

CUA_FN struct cua__lock_section cua__lock_debug_section(enum cua_lock_kind kind, const void *l)
{
	struct cua__lock_section s;

	s.wait = cua__lock_debug_request(kind, l);
	s.entered = 0;
	return s;
}

#define CUA__LOCK_SECTION(kind, s, ...)                                                            \
	for (struct cua__lock_section s = cua__lock_debug_section(                                 \
		     CUA__LOCK_KIND_##kind, CUA__LOCK_FIRST(__VA_ARGS__, 0));                      \
	     !s.entered; s.entered = 1)
#define CUA__LOCK_SECTION_WAITING(kind, s, ...)                                                    \
	&&cua__lock_debug_waiting(CUA__LOCK_KIND_##kind, CUA__LOCK_FIRST(__VA_ARGS__, 0), &s.wait)

#else /* without the macro there is nothing to attach to */

CUA_FN void cua_lock_debug_attach(struct cua_lock_debug *table)
{
	(void)table;
}

#ifdef __CUDACC__
static __inline__ __attribute__((unused)) enum cua_status
cua_lock_debug_attach_device(struct cua_lock_debug *table)
{
	(void)table;
	return CUA_OK;
}
#endif

#endif /* CUA_LOCK_DEBUG */

#ifdef __cplusplus
extern "C" {
#endif

/* What a table shall be like; 0 takes the default, but for limit_ns. */
struct cua_lock_debug_options {
	size_t struct_size; /* sizeof(struct cua_lock_debug_options), set by the caller */
	uint64_t
		max_records; /* 16384; at least 4 times the locks held at once, rounded up to a power of 2 */
	uint64_t max_verdicts; /* 1024 */
	uint64_t max_reports;  /* 1024 */
	uint64_t limit_ns;     /* of a wait until it is reported; 0: no reports */
};
#define CUA_LOCK_DEBUG_OPTIONS_INIT CUA__SIZED_INIT(struct cua_lock_debug_options)

/*
 * Host: a table for host threads (CPU backend) or kernels on the context's device (CUDA). options may be
 * NULL. destroy waits for the context's stream; detach the units before, and let no other stream use the
 * table any more. Destroying NULL is allowed.
 * Errors: NULL, VALUE (struct_size; destroy: a table that create did not make), SIZE, NO_MEMORY, CAPTURE,
 * LAYOUT.
 */
CUA_API enum cua_status cua_lock_debug_create(struct cua_context *ctx,
					      const struct cua_lock_debug_options *options,
					      struct cua_lock_debug **table);
CUA_API enum cua_status cua_lock_debug_destroy(struct cua_lock_debug *table);

/*
 * Host: copies up to `most` verdicts or reports, from number `first` on, without waiting for anything: also
 * while kernels that use the table run or hang, from any thread. *n is how many were copied, *total how many
 * there were so far, also those past the capacity. An entry that is being written ends the copy.
 * Errors: NULL, LAYOUT.
 */
CUA_API enum cua_status cua_lock_debug_read_verdicts(const struct cua_lock_debug *table,
						     uint64_t first, size_t most,
						     struct cua_lock_verdict *verdicts, size_t *n,
						     uint64_t *total);
CUA_API enum cua_status cua_lock_debug_read_reports(const struct cua_lock_debug *table,
						    uint64_t first, size_t most,
						    struct cua_hang_report *reports, size_t *n,
						    uint64_t *total);
/* Host: how many records found no room so far. Errors: NULL, LAYOUT. */
CUA_API enum cua_status cua_lock_debug_dropped(const struct cua_lock_debug *table,
					       uint64_t *dropped);

/*
 * Host: one line about a verdict or a report, without a newline, in a buffer of `size` bytes;
 * CUA_LOCK_DEBUG_TEXT bytes suffice. Errors: NULL, SIZE (the buffer is too small; it is not changed).
 */
CUA_API enum cua_status cua_lock_verdict_text(const struct cua_lock_verdict *verdict, size_t size,
					      char *text);
CUA_API enum cua_status cua_hang_report_text(const struct cua_hang_report *report, size_t size,
					     char *text);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_LOCK_DEBUG_H */
