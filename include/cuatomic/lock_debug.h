/* SPDX-License-Identifier: MIT */
/*
 * Lock debugging: the holders of locks, mistakes in the use of locks, and waits that take too long.
 *
 * Compile with -DCUA_LOCK_DEBUG and attach a table to the translation unit:
 *
 *     struct cua_lock_debug_options options = CUA_LOCK_DEBUG_OPTIONS_INIT;
 *
 *     options.limit_ns = 1000000000;
 *     cua_lock_debug_create(ctx, &options, &table);
 *     cua_lock_debug_attach_device(table);   on the host: for the locks that kernels use
 *     cua_lock_debug_attach(table);          on the host: for the locks that host threads use;
 *                                            in a kernel: for the locks that kernels use
 *
 * A table serves either host threads or the kernels of one device.
 *
 * The locks of lock.h, combine.h and stripe.h in this unit then record each holder in the table.
 * They log each mistake that they detect, as a verdict. They report each wait beyond the table's
 * limit, limit_ns; without options there is no limit and no report. The host can read the verdicts
 * and the reports while a kernel hangs. A unit without a table works as usual. The macro changes no
 * struct and no call, and without it the locks contain no code for the table.
 *
 * The lane that makes a mistake logs the verdict before the mistake takes effect:
 *
 *   SELF_RELOCK      lock (also a CUA_WITH_ macro or a function of CUA_DEFINE_COMBINE) of a lock
 *                    that the lane already holds. For a rwlock, in any combination of reading and
 *                    writing. For a sequence lock, also a read, once the read would wait. trylock
 *                    and lock_for never log this: they terminate by themselves.
 *   STRANGER_UNLOCK  unlock by a lane that does not hold the lock, while another lane holds it. The
 *                    lock is then free, so the owner's record is removed.
 *   UNLOCK_FREE      unlock of a lock that no lane holds. For a rwlock: that no lane holds in this
 *                    way (reading or writing).
 *   REINIT           init of a lock that is held; for a rwlock, that a writer holds.
 *
 * The table records these holders:
 *
 *   spinlock (also a stripe), ticketlock, mcslock, seqlock   the lane that acquired the lock
 *   rwlock           the writer, or each reader; a reader must unlock its own acquisition
 *   semaphore        the lane that acquired a unit last, until that lane releases a unit. Any lane
 *                    may release a unit, so a semaphore has reports and no verdicts
 *
 * The forms _warp and _block of a lock, name_warp and name_block of CUA_DEFINE_COMBINE, and
 * CUA_WITH_LOCK_WARP record the leader: the lowest lane of the team, or thread 0. In the latter
 * three, another lane that already holds the lock logs SELF_RELOCK as well.
 *
 * grid (the launch), block and thread identify a lane. grid alone identifies a host thread; its
 * block and thread are 0. Times are those of cua_port_clock_ns: times of the host and of a device
 * are not comparable.
 *
 * Source: the error-checking mutex of POSIX, with the owner in a side table as in Linux's lock
 * debugging.
 *
 * Synchronization of two calls on the same table. X: the caller must order the calls. -: the calls
 * may run concurrently. "lock" is any call that uses a lock of the unit.
 *
 *               init/create  attach  lock  read  destroy
 *     attach         X          -      -     -      X
 *     lock           X          -      -     -      X
 *     read           X          -      -     -      X
 *
 *   Attach a table while no lane holds a lock of the unit: the table treats a lock that was
 *   acquired earlier as free. The same holds for a lock that a unit without the macro acquires. All
 *   units that unlock a lock must have the same table. Either host threads or kernels of a single
 *   device use a table.
 * Scope: system, for the table. The table identifies a lock in shared memory by its block as well.
 * Memory order: only the lock orders the accesses of its users; its record in the table adds no
 *   order.
 * Progress: no lane ever waits for the table. A search probes CUA_LOCK_DEBUG_PROBES records from
 *   its home on, the index that a hash of the lock selects. A holder for which no record there is
 *   free is counted as dropped. From then on, the absence of a record with the same home proves
 *   nothing and causes no verdict. Verdicts and reports beyond the capacity are counted, not stored.
 * Argument: a CAS of the state from free to busy gives a record to a single lane, until that lane's
 *   release store makes it held. A record is also freed by a CAS, so only a single lane frees it. A
 *   lane that reads a record reads its state before and after the fields. The owner stores the
 *   fields with release, after the state became busy, and the state counts the uses. So a reader
 *   that acquired a newer field finds a different state. A holder writes its record after it has
 *   acquired the lock, and frees the record before it releases the lock. No other lane frees it,
 *   except after a mistake. So a lane finds its own record exactly if it holds the lock. An entry
 *   of the log or a report belongs to the lane that got its number from the counter. That lane's
 *   release store of `ready` is the store that the host acquires.
 */
#ifndef CUATOMIC_LOCK_DEBUG_H
#define CUATOMIC_LOCK_DEBUG_H

#include <cuatomic/context.h>
#include <cuatomic/detail/section.h>
#include <cuatomic/hash.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>

#define CUA_LOCK_DEBUG_LAYOUT 1u
/* The number of records that a search for a lock probes. */
#define CUA_LOCK_DEBUG_PROBES 32u
/* A buffer of this many bytes holds the text of any verdict or report. */
#define CUA_LOCK_DEBUG_TEXT 384u

enum cua_lock_kind {
	CUA_LOCK_SPIN = 1,
	CUA_LOCK_TICKET = 2,
	CUA_LOCK_MCS = 3,
	CUA_LOCK_READ = 4,  /* a rwlock that a reader holds */
	CUA_LOCK_WRITE = 5, /* a rwlock that a writer holds */
	CUA_LOCK_SEQ = 6,
	CUA_LOCK_SEMAPHORE = 7
};

enum cua_lock_mistake {
	CUA_LOCK_SELF_RELOCK = 1,
	CUA_LOCK_STRANGER_UNLOCK = 2,
	CUA_LOCK_UNLOCK_FREE = 3,
	CUA_LOCK_REINIT = 4
};

/* A lane or host thread that holds a lock or requests it. */
struct cua_lock_agent {
	uint64_t grid; /* the launch; on the host, the thread */
	uint64_t block;
	uint64_t thread; /* in the block */
};

/* The record of a holder. Only the table accesses it; a new record is all zeros. */
struct cua_lock_record {
	uint64_t state; /* 4 times the number of uses, plus 0: free, 1: busy, 2: held */
	uint64_t key;   /* the address; for shared memory, a hash of address, block and grid */
	uint64_t address;
	struct cua_lock_agent owner;
	uint64_t clock; /* ns, the time of the acquisition */
	uint32_t kind;
	uint32_t dropped; /* not 0: a holder with this home found no free record */
};
CUA_STATIC_ASSERT(sizeof(struct cua_lock_record) == 64, "the record is ABI");

/* A verdict: an entry of the log for a mistake. */
struct cua_lock_verdict {
	uint64_t ready;       /* not 0 once the other fields have been written */
	uint32_t mistake;     /* enum cua_lock_mistake */
	uint32_t kind;        /* enum cua_lock_kind */
	uint64_t address;     /* the lock */
	uint64_t owner_clock; /* ns, the time of the owner's acquisition; 0: no owner */
	uint64_t clock;       /* ns, the time of the verdict */
	struct cua_lock_agent owner;
	struct cua_lock_agent offender;
};
CUA_STATIC_ASSERT(sizeof(struct cua_lock_verdict) == 88, "the verdict is ABI");

/* A report: an entry for a wait beyond the limit. */
struct cua_hang_report {
	uint64_t ready; /* not 0 once the other fields have been written */
	uint32_t kind;  /* enum cua_lock_kind: the waiter's request */
	uint32_t owner_kind;
	uint64_t address;     /* the lock */
	uint64_t owner_clock; /* ns, the time of the owner's acquisition; 0: no recorded owner */
	uint64_t clock;       /* ns, the time of the report */
	uint64_t waited_ns;   /* the wait until the report */
	struct cua_lock_agent owner;
	struct cua_lock_agent waiter;
};
CUA_STATIC_ASSERT(sizeof(struct cua_hang_report) == 96, "the report is ABI");

/*
 * The table. The lanes that use the locks write the table, and the arrays that it points to. The
 * host reads the table, the log and the reports while kernels run, so for kernels these must be in
 * mapped host memory. Records may be in device memory.
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
	uint64_t limit_ns;       /* a longer wait is reported; 0: no reports */
	uint64_t n_verdicts;     /* all verdicts, including verdicts beyond max_verdicts */
	uint64_t n_reports;      /* all reports, including reports beyond max_reports */
	uint64_t n_dropped;      /* holders that found no free record */
	struct cua_context *ctx; /* the context of cua_lock_debug_create */
};
CUA_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(struct cua_lock_debug) == 96, "the table is ABI");

/*
 * Initializes a table over the caller's zeroed memory. n_records must be a power of two, or 0 for
 * no records.
 */
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
 * Attaches a table to this translation unit; NULL detaches it. A call on the host attaches it for
 * the locks of host threads. A call in a kernel attaches it for the locks in kernels of its device:
 * a single lane suffices, before any lane uses a lock.
 */
CUA_FN void cua_lock_debug_attach(struct cua_lock_debug *table)
{
	cua_port_store_b64(CUA__UNIT_AT(cua__lock_debug_unit), (uint64_t)(uintptr_t)table,
			   CUA_RELEASE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
}

/*
 * Host: attaches a table for the locks in kernels: on the current device, for kernels of this unit
 * that are launched afterwards. The call may wait for the device. Returns CUA_OK or CUA_ERROR_CUDA.
 */
#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
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
/*
 * The scope of read-modify-writes of counters in host memory. Only the device, or only the host,
 * changes them, so device scope suffices; not every GPU has system-wide read-modify-writes on host
 * memory.
 */
#define CUA__DEBUG_COUNT CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC

/* A lock and the lane that uses it: the key of a search in the table. */
struct cua__lock_query {
	struct cua_lock_debug *table; /* NULL: no table is attached */
	uint64_t address, key, home;
	struct cua_lock_agent self;
	uint32_t kind;
};

/* A consistent snapshot of a record. */
struct cua__lock_found {
	uint64_t *state, seen, clock;
	struct cua_lock_agent owner;
};

/*
 * The home index of a record. A rwlock may have many readers, so the hash of a reader's record
 * includes the lane. The hash of all other records depends on the lock alone.
 */
CUA_FN uint64_t cua__lock_debug_home(const struct cua__lock_query *k, uint32_t kind)
{
	uint64_t hash = cua_hash_u64(k->key, kind);

	if (kind == CUA_LOCK_READ)
		hash ^= cua_hash_u64(k->self.thread, cua_hash_u64(k->self.block, k->self.grid));
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
	k.self.grid = cua_port_grid_id();
	k.self.block = cua_port_block();
	k.self.thread = cua_port_thread();
	k.address = k.key = (uint64_t)(uintptr_t)l;
	/* shared addresses repeat in each block: hash block and grid in; no address has bit 63 */
	if (cua_port_is_shared(l))
		k.key = cua_hash_u64(k.address, cua_hash_u64(k.self.block, k.self.grid)) |
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

/* Finds a holder of this kind in the n records from home on: `agent`, or any holder if NULL. */
CUA_FN int cua__lock_debug_find(const struct cua__lock_query *k, uint32_t kind, uint64_t home,
				uint64_t n, const struct cua_lock_agent *agent,
				struct cua__lock_found *found)
{
	uint64_t i, key;
	uint32_t found_kind;

	for (i = 0; i < n; i++) {
		struct cua_lock_record *r =
			&k->table->records[(home + i) & (k->table->n_records - 1)];

		found->state = &r->state;
		found->seen = cua_port_load_b64(&r->state, CUA_ACQUIRE, CUA__DEBUG_AT);
		if ((found->seen & 3) != 2)
			continue;
		key = cua_port_load_b64(&r->key, CUA_ACQUIRE, CUA__DEBUG_AT);
		found_kind = cua_port_load_b32(&r->kind, CUA_ACQUIRE, CUA__DEBUG_AT);
		if (key != k->key || found_kind != kind)
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

/* Finds this lane's own record as a holder of this kind. */
CUA_FN int cua__lock_debug_find_own(const struct cua__lock_query *k, uint32_t kind,
				    struct cua__lock_found *found)
{
	return k->table->n_records &&
	       cua__lock_debug_find(k, kind, cua__lock_debug_home(k, kind),
				    cua__lock_debug_probes(k->table), &k->self, found);
}

/*
 * Finds the record of any holder of this kind. A reader's record may be anywhere, so the search
 * for a reader probes the whole table; only mistakes and hang reports search for readers.
 */
CUA_FN int cua__lock_debug_find_any(const struct cua__lock_query *k, uint32_t kind,
				    struct cua__lock_found *found)
{
	return cua__lock_debug_find(k, kind, cua__lock_debug_home(k, kind),
				    kind == CUA_LOCK_READ ? k->table->n_records
							  : cua__lock_debug_probes(k->table),
				    NULL, found);
}

/* Frees the record. Returns 1 in the lane that freed it, 0 if the record has changed. */
CUA_FN int cua__lock_debug_free(const struct cua__lock_found *found)
{
	return cua_port_cas_b64(found->state, found->seen, found->seen & ~(uint64_t)3, CUA_ACQ_REL,
				CUA__DEBUG_AT) == found->seen;
}

/* Claims and writes a record if its state is still `seen`. Returns 1 if it did, else 0. */
CUA_FN int cua__lock_debug_write(const struct cua__lock_query *k, struct cua_lock_record *r,
				 uint64_t seen)
{
	uint64_t busy = (seen | 3) + 2; /* the next use, busy */

	if (cua_port_cas_b64(&r->state, seen, busy, CUA_ACQ_REL, CUA__DEBUG_AT) != seen)
		return 0;
	cua_port_store_b64(&r->key, k->key, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->address, k->address, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->owner.grid, k->self.grid, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->owner.block, k->self.block, CUA_RELEASE, CUA__DEBUG_AT);
	cua_port_store_b64(&r->owner.thread, k->self.thread, CUA_RELEASE, CUA__DEBUG_AT);
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

/* Returns 1 if the absence of this lane's record proves that it does not hold the lock, else 0. */
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
	cua__lock_debug_agent(&v->offender, &k->self);
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
	cua__lock_debug_agent(&r->waiter, &k->self);
	cua_port_store_b64(&r->ready, 1, CUA_RELEASE, CUA__DEBUG_AT);
}

/* ---- the hooks that the locks call; see section.h ---- */

/* REQUEST and DELEGATE: the lane is about to wait for a lock without a time limit. */
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

/* WAITING: a poll failed. Reports a wait beyond the limit, once a wait. Returns 1. */
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

/* ACQUIRED: an attempt ended. Records the lane as a holder if `taken` is not 0. Returns !!taken. */
CUA_FN int cua__lock_debug_acquired(enum cua_lock_kind kind, const void *l, int taken)
{
	struct cua__lock_query k;
	struct cua__lock_found found;

	if (!taken)
		return 0;
	k = cua__lock_debug_query(kind, l);
	if (!k.table || !k.table->n_records)
		return 1;
	/*
	 * A semaphore has a single record, of the lane that acquired a unit last. If the write
	 * fails, another lane that acquired a unit just as late has written the record.
	 */
	if (kind == CUA_LOCK_SEMAPHORE && cua__lock_debug_find_any(&k, k.kind, &found))
		(void)cua__lock_debug_write(
			&k,
			(struct cua_lock_record *)(void *)((char *)found.state -
							   CUA__OFFSETOF(struct cua_lock_record,
									 state)),
			found.seen);
	else
		cua__lock_debug_insert(&k);
	return 1;
}

/* UNLOCK: the lane is about to unlock. Frees its record, or logs a verdict. */
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

/* INIT: the lane is about to initialize the lock. Frees a holder's record and logs REINIT. */
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
#define CUA__LOCK_SECTION(kind, s)                                                                 \
	((void)((s)->wait = cua__lock_debug_request(CUA__LOCK_KIND_##kind, (s)->l)))
#define CUA__LOCK_DELEGATE(kind, l) ((void)cua__lock_debug_request(CUA__LOCK_KIND_##kind, (l)))
#define CUA__LOCK_WAITING(kind, l, wait)                                                           \
	((void)cua__lock_debug_waiting(CUA__LOCK_KIND_##kind, (l), &(wait)))
#define CUA__LOCK_ACQUIRED(kind, l, taken)                                                         \
	cua__lock_debug_acquired(CUA__LOCK_KIND_##kind, (l), (taken))
#define CUA__LOCK_UNLOCK(kind, l) cua__lock_debug_unlock(CUA__LOCK_KIND_##kind, (l))
#define CUA__LOCK_INIT(kind, l) cua__lock_debug_reinit(CUA__LOCK_KIND_##kind, (l))

#else /* without the macro, a unit has no table, and attaching has no effect */

CUA_FN void cua_lock_debug_attach(struct cua_lock_debug *table)
{
	(void)table;
}

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
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

/* The options of a table. 0 selects the default, except for limit_ns. */
struct cua_lock_debug_options {
	size_t struct_size; /* sizeof(struct cua_lock_debug_options), set by the caller */
	/* default 16384; at least 4 times the locks held at once, rounded up to a power of 2 */
	uint64_t max_records;
	uint64_t max_verdicts; /* default 1024 */
	uint64_t max_reports;  /* default 1024 */
	uint64_t limit_ns;     /* a longer wait is reported; 0: no reports */
};
#define CUA_LOCK_DEBUG_OPTIONS_INIT CUA__SIZED_INIT(struct cua_lock_debug_options)

/*
 * Host: create makes a table for host threads (CPU backend) or for kernels on the context's device
 * (CUDA). options may be NULL. destroy waits for the context's stream. Before destroy, detach the
 * units, and finish the work of other streams that use the table. Destroying NULL is allowed.
 * Errors: NULL, VALUE (struct_size; destroy: a table that create did not make), SIZE, NO_MEMORY,
 * CAPTURE, LAYOUT.
 */
CUA_API enum cua_status cua_lock_debug_create(struct cua_context *ctx,
					      const struct cua_lock_debug_options *options,
					      struct cua_lock_debug **table);
CUA_API enum cua_status cua_lock_debug_destroy(struct cua_lock_debug *table);

/*
 * Host: copies up to `most` verdicts or reports, from number `first` on. The call never waits. Any
 * thread may call it, also while kernels that use the table run or hang. *n is the number of copied
 * entries. *total is the number of entries so far, including entries beyond the capacity. An entry
 * that is still being written ends the copy.
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
/* Host: the number of holders that found no free record so far. Errors: NULL, LAYOUT. */
CUA_API enum cua_status cua_lock_debug_dropped(const struct cua_lock_debug *table,
					       uint64_t *dropped);

/*
 * Host: writes a line of text about a verdict or a report, without a newline, to a buffer of `size`
 * bytes. CUA_LOCK_DEBUG_TEXT bytes suffice. Errors: NULL, SIZE (the buffer is too small; it is not
 * changed).
 */
CUA_API enum cua_status cua_lock_verdict_text(const struct cua_lock_verdict *verdict, size_t size,
					      char *text);
CUA_API enum cua_status cua_hang_report_text(const struct cua_hang_report *report, size_t size,
					     char *text);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_LOCK_DEBUG_H */
