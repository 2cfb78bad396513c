/* SPDX-License-Identifier: MIT */
/*
 * Locks: critical sections a second. A section adds 1 to a plain 64-bit counter, and all threads
 * use the same lock. The peers in the same run are the textbook lock and cuda::binary_semaphore of
 * libcu++.
 *
 * The ceiling is the hardware's cost of a section that never waits, on a single thread: a
 * compare-and-swap, a load, a store and a store with release. A combining lock exceeds it, because
 * it locks once for several sections. An uncontended lock may exceed it slightly, if its memory
 * orders cost less.
 *
 * A run takes about run_us: an uncounted run determines the number of sections per thread. A
 * candidate that needs more than long_us for a section per thread gets a single run, marked *. The
 * counter is checked after every run.
 *
 * The last column has the fewest and the most sections of a thread, while all threads together ran
 * FAIR_EACH sections per thread.
 *
 * The argument `candidates` adds alternative waiting strategies.
 */
#include <new>
#include <stddef.h>

#include <cuda/semaphore>

#include <cuatomic/combine.h>
#include <cuatomic/lock.h>

#include "gpu_bench.h"

#define MOST_EACH 20000
#define FAIR_EACH 4
#define BLOCK_THREADS 256

/* A lock of any kind and the counter in another cache line; and a queue node for each thread. */
struct shared {
	alignas(128) unsigned char lock[128];
	alignas(128) uint64_t counter;
	alignas(128) struct cua_mcslock_node *nodes;
};

/* The body of a section in most rows. */
struct increment {
	uint64_t *counter;

	__device__ void operator()() const
	{
		CUA_WRITE(*counter, CUA_READ(*counter) + 1);
	}
};

/*
 * Base of all kinds of locks. section(p, body) runs the body once for each lane, under the lock at
 * p. `lanes`: each lane locks on its own and runs any body itself.
 */
struct kind {
	static constexpr bool lanes = true;
	static __device__ void init(struct shared *)
	{
	}
};

/* ---- the peers ---- */

struct textbook : kind {
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		struct textbook_lock *l = (struct textbook_lock *)p->lock;

		textbook_acquire(l);
		body();
		textbook_release(l);
	}
};

/* The textbook lock, taken by the lanes of a warp in turn. */
struct textbook_in_turn : kind {
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		for (unsigned lane = 0; lane < 32; lane++)
			if (lane == threadIdx.x % 32)
				textbook::section(p, body);
	}
};

template <cuda::thread_scope SCOPE> struct semaphore : kind {
	using type = cuda::binary_semaphore<SCOPE>;

	static __device__ void init(struct shared *p)
	{
		static_assert(sizeof(type) <= sizeof(p->lock), "");
		new (p->lock) type(1);
	}
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		type *s = (type *)p->lock;

		s->acquire();
		body();
		s->release();
	}
};

/* ---- ours ---- */

/* Defines a lock by its lock and unlock calls. */
#define LOCK_AND_UNLOCK(name, LOCK, take, give)                                                    \
	template <enum cua_scope SCOPE> struct name : kind {                                       \
		template <typename Body>                                                           \
		static __device__ void section(struct shared *p, Body body)                        \
		{                                                                                  \
			struct LOCK *l = (struct LOCK *)p->lock;                                   \
                                                                                                   \
			take(l, SCOPE);                                                            \
			body();                                                                    \
			give(l, SCOPE);                                                            \
		}                                                                                  \
	};

/* Defines the same lock by its CUA_WITH macro. */
#define WITH_MACRO(name, base, LOCK, WITH)                                                         \
	template <enum cua_scope SCOPE> struct name : base<SCOPE> {                                \
		template <typename Body>                                                           \
		static __device__ void section(struct shared *p, Body body)                        \
		{                                                                                  \
			WITH((struct LOCK *)p->lock, SCOPE)                                        \
			body();                                                                    \
		}                                                                                  \
	};

LOCK_AND_UNLOCK(spinlock, cua_spinlock, cua_spinlock_lock_scope, cua_spinlock_unlock_scope)
WITH_MACRO(with_lock, spinlock, cua_spinlock, CUA_WITH_LOCK_SCOPE)
LOCK_AND_UNLOCK(ticketlock, cua_ticketlock, cua_ticketlock_lock_scope, cua_ticketlock_unlock_scope)
WITH_MACRO(with_ticketlock, ticketlock, cua_ticketlock, CUA_WITH_TICKETLOCK_SCOPE)
LOCK_AND_UNLOCK(write_lock, cua_rwlock, cua_rwlock_write_lock_scope, cua_rwlock_write_unlock_scope)
WITH_MACRO(with_write_lock, write_lock, cua_rwlock, CUA_WITH_WRITE_LOCK_SCOPE)
LOCK_AND_UNLOCK(count, cua_semaphore, cua_semaphore_lock_scope, cua_semaphore_unlock_scope)

template <enum cua_scope SCOPE> struct count_of_one : count<SCOPE> {
	static __device__ void init(struct shared *p)
	{
		cua_semaphore_init((struct cua_semaphore *)p->lock, 1);
	}
};
WITH_MACRO(with_semaphore, count_of_one, cua_semaphore, CUA_WITH_SEMAPHORE_SCOPE)

/* The queue node of this thread. */
template <enum cua_scope SCOPE> static __device__ struct cua_mcslock_node *node_of(struct shared *p)
{
	if constexpr (SCOPE == CUA_SCOPE_BLOCK) {
		__shared__ struct cua_mcslock_node nodes[BLOCK_THREADS];

		return &nodes[threadIdx.x];
	} else {
		return &p->nodes[blockIdx.x * blockDim.x + threadIdx.x];
	}
}

template <enum cua_scope SCOPE> struct mcslock : kind {
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		struct cua_mcslock *l = (struct cua_mcslock *)p->lock;
		struct cua_mcslock_node *node = node_of<SCOPE>(p);

		cua_mcslock_lock_scope(l, node, SCOPE);
		body();
		cua_mcslock_unlock_scope(l, node, SCOPE);
	}
};

template <enum cua_scope SCOPE> struct with_mcslock : kind {
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		struct cua_mcslock_node *node = node_of<SCOPE>(p);

		CUA_WITH_MCSLOCK_SCOPE ((struct cua_mcslock *)p->lock, node, SCOPE)
			body();
	}
};

static __device__ uint32_t warp_mask(void)
{
	uint32_t rest = blockDim.x - threadIdx.x / 32 * 32;

	return rest < 32 ? ((uint32_t)1 << rest) - 1 : 0xffffffffu;
}

template <enum cua_scope SCOPE> struct with_lock_warp : kind {
	static constexpr bool lanes = false; /* all lanes of the warp must call section */
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		uint32_t mask = warp_mask();

		CUA_WITH_LOCK_WARP_SCOPE ((struct cua_spinlock *)p->lock, mask, SCOPE)
			body();
	}
};

CUA_DEFINE_COMBINE(add, uint64_t, uint64_t, *state += argument);
CUA_DEFINE_COMBINE_FETCH(fetch_add, uint64_t, uint64_t, {
	uint64_t old = *state;

	*state += argument;
	argument = old;
});

template <enum cua_scope SCOPE> struct combine_warp : kind {
	static constexpr bool lanes = false;
	static __device__ void section(struct shared *p, struct increment)
	{
		add_warp_scope((struct cua_spinlock *)p->lock, &p->counter, 1, warp_mask(), SCOPE);
	}
};

template <enum cua_scope SCOPE> struct combine_block : kind {
	static constexpr bool lanes = false;
	static __device__ void section(struct shared *p, struct increment)
	{
		__shared__ uint64_t scratch[BLOCK_THREADS];

		add_block_scope((struct cua_spinlock *)p->lock, &p->counter, 1, blockDim.x, scratch,
				SCOPE);
	}
};

/* Every lane gets a result and uses it, so the compiler cannot drop the results. */
struct fetch_warp : kind {
	static constexpr bool lanes = false;
	static __device__ void section(struct shared *p, struct increment)
	{
		if (fetch_add_warp((struct cua_spinlock *)p->lock, &p->counter, 1, warp_mask()) ==
		    ~0ull)
			__trap();
	}
};

struct fetch_block : kind {
	static constexpr bool lanes = false;
	static __device__ void section(struct shared *p, struct increment)
	{
		__shared__ uint64_t scratch[BLOCK_THREADS];

		if (fetch_add_block((struct cua_spinlock *)p->lock, &p->counter, 1, scratch) ==
		    ~0ull)
			__trap();
	}
};

/* ---- candidates: one word ---- */

#define WORD CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC

static __device__ bool take_word(uint32_t *word)
{
	return cua_port_cas_b32(word, 0, 1, CUA_ACQUIRE, WORD) == 0;
}

static __device__ bool word_is_held(const uint32_t *word)
{
	return cua_port_load_b32(word, CUA_RELAXED, WORD) != 0;
}

enum wait {
	CAS_ONLY,   /* repeats the CAS */
	LOAD_FIRST, /* a CAS after a load has returned 0 */
	CAS_FIRST,  /* a CAS, then like LOAD_FIRST */
	CAS_FENCE,  /* like CAS_FIRST, with a relaxed CAS and a fence */
	SWAP_BACK,  /* like CAS_FIRST, released by an exchange */
	RED_BACK    /* like CAS_FIRST, released by a reduction */
};

/* The pauses grow from FIRST to LAST ns. */
template <enum wait WAIT, unsigned FIRST, unsigned LAST> struct word_lock : kind {
	static __device__ void lock(uint32_t *word)
	{
		struct cua_backoff backoff;

		if (WAIT == CAS_FENCE) {
			if (cua_port_cas_b32(word, 0, 1, CUA_RELAXED, WORD) == 0) {
				cua_port_fence(CUA_ACQUIRE, CUA_SCOPE_DEVICE);
				return;
			}
		} else if (WAIT != LOAD_FIRST && take_word(word)) {
			return;
		}
		cua_backoff_init(&backoff);
		backoff.ns = FIRST;
		for (;;) {
			if (WAIT == LOAD_FIRST && !word_is_held(word) && take_word(word))
				return;
			if (FIRST)
				cua__backoff_wait_upto(&backoff, LAST);
			if (WAIT == CAS_ONLY && take_word(word))
				return;
			if (WAIT == CAS_FENCE) {
				if (!word_is_held(word) &&
				    cua_port_cas_b32(word, 0, 1, CUA_RELAXED, WORD) == 0) {
					cua_port_fence(CUA_ACQUIRE, CUA_SCOPE_DEVICE);
					return;
				}
			} else if (WAIT != CAS_ONLY && WAIT != LOAD_FIRST && !word_is_held(word) &&
				   take_word(word)) {
				return;
			}
		}
	}
	static __device__ void unlock(uint32_t *word)
	{
		if (WAIT == SWAP_BACK)
			(void)cua_port_exchange_b32(word, 0, CUA_RELEASE, WORD);
		else if (WAIT == RED_BACK)
			cua_port_and_b32(word, 0, CUA_RELEASE, WORD);
		else
			cua_port_store_b32(word, 0, CUA_RELEASE, WORD);
	}
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		lock((uint32_t *)p->lock);
		body();
		unlock((uint32_t *)p->lock);
	}
};

/*
 * Only the lowest of the lanes that wait together polls the lock. The active mask is a hint: a lane
 * that has diverged from the others is the lowest of its own mask.
 */
template <unsigned LAST, unsigned OTHERS> struct gated : kind {
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		uint32_t *word = (uint32_t *)p->lock;
		struct cua_backoff backoff;
		bool done = false;

		cua_backoff_init(&backoff);
		while (!done) {
			if (cua_port_lane() + 1 != cua_port_ffs_u32(cua_port_active_mask())) {
				cua_port_pause(OTHERS);
			} else if (!word_is_held(word) && take_word(word)) {
				body();
				cua_port_store_b32(word, 0, CUA_RELEASE, WORD);
				done = true;
			} else {
				cua__backoff_wait_upto(&backoff, LAST);
			}
		}
	}
};

/* ---- candidates: tickets ---- */

/*
 * Pauses a lane with `ahead` waiters before it, for ahead * EACH_NS ns, at most LAST. The hardware
 * may pause up to twice as long.
 */
template <unsigned EACH_NS, unsigned LAST> static __device__ void wait_behind(uint32_t ahead)
{
	uint32_t ns = ahead > LAST / (EACH_NS ? EACH_NS : 1) ? LAST : ahead * EACH_NS;

	if (EACH_NS && ahead)
		cua_port_pause(ns);
}

/*
 * ACQUIRE: every poll is an acquire load. Otherwise polls are relaxed, and an acquire load follows
 * them.
 */
template <bool ACQUIRE, unsigned EACH_NS, unsigned LAST> struct ticket_two_words : kind {
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		uint32_t *next = (uint32_t *)p->lock, *owner = next + 1, mine, now;

		mine = cua_port_fetch_add_u32(next, 1, CUA_RELAXED, WORD);
		for (;;) {
			now = cua_port_load_b32(owner, ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED, WORD);
			if (now == mine)
				break;
			wait_behind<EACH_NS, LAST>(mine - now - 1);
		}
		if (!ACQUIRE)
			(void)cua_port_load_b32(owner, CUA_ACQUIRE, WORD);
		body();
		cua_port_store_b32(owner, mine + 1, CUA_RELEASE, WORD);
	}
};

/*
 * `next` is the upper half of the word and `owner` the lower half. The addition that draws a ticket
 * also returns the owner. A carry out of owner would increment next, so the unlock that wraps owner
 * subtracts it.
 */
template <bool ACQUIRE, unsigned EACH_NS, unsigned LAST> struct ticket_one_word : kind {
	template <typename Body> static __device__ void section(struct shared *p, Body body)
	{
		uint64_t *word = (uint64_t *)p->lock, seen;
		uint32_t mine;

		seen = cua_port_fetch_add_u64(word, (uint64_t)1 << 32, CUA_ACQUIRE, WORD);
		mine = (uint32_t)(seen >> 32);
		if ((uint32_t)seen != mine) {
			for (;;) {
				wait_behind<EACH_NS, LAST>(mine - (uint32_t)seen - 1);
				seen = cua_port_load_b64(word, ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED,
							 WORD);
				if ((uint32_t)seen == mine)
					break;
			}
			if (!ACQUIRE)
				(void)cua_port_load_b64(word, CUA_ACQUIRE, WORD);
		}
		body();
		cua_port_add_u64(word, mine == 0xffffffffu ? 1 - ((uint64_t)1 << 32) : 1,
				 CUA_RELEASE, WORD);
	}
};

/* The least work of a section: relaxed accesses and a store with release. */
template <enum cua_scope SCOPE> struct budget : kind {
	static constexpr bool lanes = false;
	template <typename Body> static __device__ void section(struct shared *p, Body)
	{
		uint32_t *word = (uint32_t *)p->lock;
		uint64_t v;

		while (cua_port_cas_b32(word, 0, 1, CUA_RELAXED, SCOPE, CUA_SPACE_GENERIC) != 0)
			;
		v = cua_port_load_b64(&p->counter, CUA_RELAXED, SCOPE, CUA_SPACE_GENERIC);
		cua_port_store_b64(&p->counter, v + 1, CUA_RELAXED, SCOPE, CUA_SPACE_GENERIC);
		cua_port_store_b32(word, 0, CUA_RELEASE, SCOPE, CUA_SPACE_GENERIC);
	}
};

/* ---- kernels ---- */

template <typename Kind> static __global__ void prepare(struct shared *p)
{
	Kind::init(p);
}

template <typename Kind> static __global__ void run_global(struct shared *p, unsigned each)
{
	for (unsigned i = 0; i < each; i++)
		Kind::section(p, increment{&p->counter});
}

/*
 * Runs with lock and counter in shared memory, and adds the counter to p at the end. Their address
 * is loaded from memory, as is usual for a lock. The compiler would otherwise recompute the address
 * of a variable in each section.
 */
template <typename Kind> static __global__ void run_shared(struct shared *p, unsigned each)
{
	__shared__ struct shared here, *volatile where;
	struct shared *at;

	if (threadIdx.x == 0) {
		memset((void *)&here, 0, sizeof(here));
		Kind::init(&here);
		where = &here;
	}
	__syncthreads();
	at = where;
	for (unsigned i = 0; i < each; i++)
		Kind::section(at, increment{&at->counter});
	__syncthreads();
	if (threadIdx.x == 0)
		p->counter += here.counter;
}

/*
 * Runs sections until all threads together have run `total`. got[thread] is the number of sections
 * of the thread.
 */
template <typename Kind>
static __global__ void run_fair(struct shared *p, uint64_t total, unsigned *got)
{
	unsigned mine = 0;
	bool over = false;

	while (!over) {
		Kind::section(p, [&] {
			uint64_t n = CUA_READ(p->counter);

			if (n < total) {
				CUA_WRITE(p->counter, n + 1);
				mine++;
			} else {
				over = true;
			}
		});
	}
	got[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}

/* ---- a case and its rows ---- */

struct bench {
	struct table table;
	struct shared *shared;
	unsigned *got, *host_got;
	unsigned blocks, threads; /* of the current case */
	bool candidates, quick;
	double run_us, long_us;
};

static void check_counter(const struct bench *b, const char *name, uint64_t expected)
{
	uint64_t counter;

	need(!cudaMemcpy(&counter, &b->shared->counter, sizeof(counter), cudaMemcpyDeviceToHost),
	     name);
	if (counter != expected) {
		fflush(stdout);
		fprintf(stderr, "cuatomic bench: locks: %s, %s: %llu sections, not %llu\n",
			b->table.name, name, (unsigned long long)counter,
			(unsigned long long)expected);
		exit(1);
	}
}

template <typename Kind> static void reset(const struct bench *b)
{
	cudaMemsetAsync(b->shared, 0, offsetof(struct shared, nodes));
	prepare<Kind><<<1, 1>>>(b->shared);
}

/* SHARED: lock and counter in shared memory. */
template <typename Kind, bool SHARED>
static struct figure time_runs(const struct bench *b, const char *name, unsigned each, int ignored,
			       int runs)
{
	double sections = (double)b->blocks * b->threads * each;

	return measure_runs(
		sections, ignored, runs, [=] { reset<Kind>(b); },
		[=] {
			if constexpr (SHARED)
				run_shared<Kind><<<b->blocks, b->threads>>>(b->shared, each);
			else
				run_global<Kind><<<b->blocks, b->threads>>>(b->shared, each);
		},
		[=] { check_counter(b, name, (uint64_t)b->blocks * b->threads * each); });
}

template <typename Kind>
static void fairness(const struct bench *b, const char *name, char note[48])
{
	unsigned n = b->blocks * b->threads, least = ~0u, most = 0, none = 0;
	uint64_t total = (uint64_t)FAIR_EACH * n;

	reset<Kind>(b);
	run_fair<Kind><<<b->blocks, b->threads>>>(b->shared, total, b->got);
	check_counter(b, name, total);
	need(!cudaMemcpy(b->host_got, b->got, n * sizeof(*b->got), cudaMemcpyDeviceToHost), name);
	for (unsigned i = 0; i < n; i++) {
		least = b->host_got[i] < least ? b->host_got[i] : least;
		most = b->host_got[i] > most ? b->host_got[i] : most;
		none += b->host_got[i] == 0;
	}
	snprintf(note, 48, "%u to %u, %.0f %% none", least, most, 100.0 * none / n);
}

template <typename Kind, bool SHARED = false>
static void row(struct bench *b, enum table_kind kind, const char *name, bool is_candidate = false)
{
	double threads = (double)b->blocks * b->threads, us;
	struct figure f;
	char note[48] = "";
	unsigned each = 1;

	if (!table_wants(b->table.name, name))
		return;
	f = time_runs<Kind, SHARED>(b, name, 1, 0, 1);
	us = threads / f.median;
	if (us <= b->long_us || (!is_candidate && !b->quick)) {
		if (us < b->run_us) {
			/* measure again, because the first launch also loaded the kernel */
			f = time_runs<Kind, SHARED>(b, name, 8, 0, 1);
			us = threads / f.median;
			if (b->run_us > us)
				each = b->run_us > us * MOST_EACH ? MOST_EACH
								  : (unsigned)(b->run_us / us);
		}
		f = time_runs<Kind, SHARED>(b, name, each, 1, BENCH_RUNS);
	}
	if constexpr (Kind::lanes && !SHARED)
		if (b->blocks * b->threads > 1 && threads / f.median <= b->long_us)
			fairness<Kind>(b, name, note);
	table_add_note(&b->table, kind, name, f, note);
}

/* Block-scope locks are tested in shared memory. */
#define IN_SHARED (SCOPE == CUA_SCOPE_BLOCK)

template <enum cua_scope SCOPE>
static void begin(struct bench *b, const char *name, unsigned blocks, unsigned threads)
{
	table_begin(&b->table, name);
	b->blocks = 1;
	b->threads = 1;
	row<budget<SCOPE>, IN_SHARED>(b, TABLE_CEILING, "ceiling: one thread that never waits");
	b->blocks = blocks;
	b->threads = threads;
}

template <enum cua_scope SCOPE, cuda::thread_scope PEER>
static void plain(struct bench *b, const char *semaphore_name)
{
	row<textbook, IN_SHARED>(b, TABLE_PEER, "textbook");
	row<semaphore<PEER>, IN_SHARED>(b, TABLE_PEER, semaphore_name);
	row<spinlock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "cua_spinlock_lock, unlock");
	row<with_lock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "CUA_WITH_LOCK");
	row<ticketlock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "cua_ticketlock_lock, unlock");
	row<with_ticketlock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "CUA_WITH_TICKETLOCK");
	row<mcslock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "cua_mcslock_lock, unlock");
	row<with_mcslock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "CUA_WITH_MCSLOCK");
	row<write_lock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "cua_rwlock_write_lock, unlock");
	row<with_write_lock<SCOPE>, IN_SHARED>(b, TABLE_OURS, "CUA_WITH_WRITE_LOCK");
	row<count_of_one<SCOPE>, IN_SHARED>(b, TABLE_OURS, "cua_semaphore_lock, unlock, of 1");
	row<with_semaphore<SCOPE>, IN_SHARED>(b, TABLE_OURS, "CUA_WITH_SEMAPHORE, of 1");
}

static void plain_device(struct bench *b)
{
	plain<CUA_SCOPE_DEVICE, cuda::thread_scope_device>(b, "cuda::binary_semaphore, device");
}

template <enum cua_scope SCOPE> static void combining(struct bench *b)
{
	row<with_lock_warp<SCOPE>, IN_SHARED>(b, TABLE_OURS, "CUA_WITH_LOCK_WARP");
	row<combine_warp<SCOPE>, IN_SHARED>(b, TABLE_OURS, "combine, warp");
	row<combine_block<SCOPE>, IN_SHARED>(b, TABLE_OURS, "combine, block");
}

static void fetching(struct bench *b)
{
	row<fetch_warp>(b, TABLE_OURS, "combine, warp, with results");
	row<fetch_block>(b, TABLE_OURS, "combine, block, with results");
}

static void candidates(struct bench *b)
{
	if (!b->candidates)
		return;
	row<textbook_in_turn>(b, TABLE_OURS, "- textbook, a lane at a time", true);
	row<budget<CUA_SCOPE_DEVICE>>(b, TABLE_OURS, "- budget: CAS, load, store, release", true);
	row<word_lock<CAS_ONLY, 0, 0>>(b, TABLE_OURS, "- CAS only, no pause", true);
	row<word_lock<CAS_ONLY, 32, 256>>(b, TABLE_OURS, "- CAS only, 32 to 256 ns", true);
	row<word_lock<CAS_ONLY, 32, 1024>>(b, TABLE_OURS, "- CAS only, 32 to 1024 ns", true);
	row<word_lock<CAS_ONLY, 32, 4096>>(b, TABLE_OURS, "- CAS only, 32 to 4096 ns", true);
	row<word_lock<LOAD_FIRST, 0, 0>>(b, TABLE_OURS, "- load first, no pause", true);
	row<word_lock<LOAD_FIRST, 32, 256>>(b, TABLE_OURS, "- load first, 32 to 256 ns", true);
	row<word_lock<LOAD_FIRST, 32, 1024>>(b, TABLE_OURS, "- load first, 32 to 1024 ns", true);
	row<word_lock<LOAD_FIRST, 32, 4096>>(b, TABLE_OURS, "- load first, 32 to 4096 ns", true);
	row<word_lock<LOAD_FIRST, 32, 65536>>(b, TABLE_OURS, "- load first, 32 to 65536 ns", true);
	row<word_lock<CAS_FIRST, 0, 0>>(b, TABLE_OURS, "- CAS first, no pause", true);
	row<word_lock<CAS_FIRST, 32, 32>>(b, TABLE_OURS, "- CAS first, 32 ns", true);
	row<word_lock<CAS_FIRST, 32, 128>>(b, TABLE_OURS, "- CAS first, 32 to 128 ns", true);
	row<word_lock<CAS_FIRST, 32, 256>>(b, TABLE_OURS, "- CAS first, 32 to 256 ns", true);
	row<word_lock<CAS_FIRST, 32, 512>>(b, TABLE_OURS, "- CAS first, 32 to 512 ns", true);
	row<word_lock<CAS_FIRST, 32, 1024>>(b, TABLE_OURS, "- CAS first, 32 to 1024 ns", true);
	row<word_lock<CAS_FIRST, 32, 4096>>(b, TABLE_OURS, "- CAS first, 32 to 4096 ns", true);
	row<word_lock<CAS_FIRST, 1024, 65536>>(b, TABLE_OURS, "- CAS first, 1024 to 65536 ns",
					       true);
	row<word_lock<CAS_FENCE, 32, 1024>>(b, TABLE_OURS, "- CAS first, relaxed and fence", true);
	row<word_lock<SWAP_BACK, 32, 1024>>(b, TABLE_OURS, "- CAS first, released by exchange",
					    true);
	row<word_lock<RED_BACK, 32, 1024>>(b, TABLE_OURS, "- CAS first, released by reduction",
					   true);
	row<gated<512, 100>>(b, TABLE_OURS, "- lowest waiting lane, to 512 ns", true);
	row<gated<1024, 500>>(b, TABLE_OURS, "- lowest waiting lane, to 1024 ns", true);
	row<gated<4096, 2000>>(b, TABLE_OURS, "- lowest waiting lane, to 4096 ns", true);
	row<ticket_two_words<true, 0, 0>>(b, TABLE_OURS, "- ticket, two words, no pause", true);
	row<ticket_two_words<true, 50, 100000>>(b, TABLE_OURS,
						"- ticket, two words, 50 ns a waiter", true);
	row<ticket_two_words<true, 300, 500000>>(b, TABLE_OURS,
						 "- ticket, two words, 300 ns a waiter", true);
	row<ticket_two_words<false, 300, 500000>>(b, TABLE_OURS,
						  "- ticket, two words, 300 ns, relaxed", true);
	row<ticket_one_word<true, 0, 0>>(b, TABLE_OURS, "- ticket, one word, no pause", true);
	row<ticket_one_word<true, 50, 100000>>(b, TABLE_OURS, "- ticket, one word, 50 ns a waiter",
					       true);
	row<ticket_one_word<true, 300, 500000>>(b, TABLE_OURS,
						"- ticket, one word, 300 ns a waiter", true);
	row<ticket_one_word<true, 600, 500000>>(b, TABLE_OURS,
						"- ticket, one word, 600 ns a waiter", true);
	row<ticket_one_word<false, 0, 0>>(b, TABLE_OURS, "- ticket, one word, no pause, relaxed",
					  true);
	row<ticket_one_word<false, 300, 500000>>(b, TABLE_OURS,
						 "- ticket, one word, 300 ns, relaxed", true);
}

int main(int argc, char **argv)
{
	struct options o = parse_options(argc, argv, "locks", true);
	struct cudaDeviceProp device = print_head("locks");
	unsigned processors = (unsigned)device.multiProcessorCount, n = processors * BLOCK_THREADS;
	struct bench b = {};
	struct cua_mcslock_node *nodes = NULL;
	char name[28];

	b.quick = o.quick;
	b.candidates = o.candidates;
	b.run_us = o.quick ? 1e3 : 30e3;
	b.long_us = o.quick ? 20e3 : 300e3;
	b.host_got = (unsigned *)malloc(n * sizeof(*b.host_got));
	need(b.host_got && !cudaMalloc(&b.shared, sizeof(*b.shared)) &&
		     !cudaMalloc(&b.got, n * sizeof(*b.got)) &&
		     !cudaMalloc(&nodes, n * sizeof(*nodes)) &&
		     !cudaMemcpy(&b.shared->nodes, &nodes, sizeof(nodes), cudaMemcpyHostToDevice),
	     "memory");
	printf("critical sections: increment of a plain 64-bit counter under a single lock; * a single run\n");
	snprintf(name, sizeof(name), "sections a thread, of %d", FAIR_EACH);
	table_columns("M/s", name);

	snprintf(name, sizeof(name), "all threads, %u x %u", processors, BLOCK_THREADS);
	begin<CUA_SCOPE_DEVICE>(&b, name, processors, BLOCK_THREADS);
	plain_device(&b);
	combining<CUA_SCOPE_DEVICE>(&b);
	fetching(&b);
	candidates(&b);
	table_end(&b.table);

	snprintf(name, sizeof(name), "a thread a block, %u x 1", processors);
	begin<CUA_SCOPE_DEVICE>(&b, name, processors, 1);
	plain_device(&b);
	candidates(&b);
	table_end(&b.table);

	begin<CUA_SCOPE_DEVICE>(&b, "one thread", 1, 1);
	plain_device(&b);
	candidates(&b);
	table_end(&b.table);

	snprintf(name, sizeof(name), "one block, 1 x %u", BLOCK_THREADS);
	begin<CUA_SCOPE_DEVICE>(&b, name, 1, BLOCK_THREADS);
	plain_device(&b);
	combining<CUA_SCOPE_DEVICE>(&b);
	fetching(&b);
	table_end(&b.table);

	begin<CUA_SCOPE_BLOCK>(&b, "one block, shared memory", 1, BLOCK_THREADS);
	plain<CUA_SCOPE_BLOCK, cuda::thread_scope_block>(&b, "cuda::binary_semaphore, block");
	combining<CUA_SCOPE_BLOCK>(&b);
	table_end(&b.table);

	cudaFree(b.shared);
	cudaFree(b.got);
	cudaFree(nodes);
	free(b.host_got);
	return 0;
}
