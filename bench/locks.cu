/* SPDX-License-Identifier: MIT */
/*
 * Locks: critical sections a second, where a section adds 1 to a plain 64-bit counter and all threads want
 * one lock. Peers in the same run: the textbook's lock and cuda::binary_semaphore of libcu++.
 *
 * Every figure is the median of RUNS runs with the least and the most, after one that sets how many
 * sections a thread runs, so that a run takes about RUN_US. A lock that needs longer than LONG_US for one section a
 * thread has this run only. The counter is compared with what it must be after every run.
 *
 * "fair" is the least and the most sections that a thread got while all threads together ran FAIR_EACH for each.
 *
 * `locks candidates` adds the strategies of waiting among which the library's was chosen.
 */
#include <stdint.h>
#include <string.h>

#include <cuda/semaphore>
#include <new>

#include <cuatomic/combine.h>
#include <cuatomic/spinlock.h>

#include "bench.h"

#define RUN_US 30e3f
#define LONG_US 300e3f
#define MOST_EACH 20000
#define FAIR_EACH 4
#define BLOCK_THREADS 256

/* A lock of any kind and the counter, which share no cache line. */
struct place {
	alignas(128) unsigned char lock[128];
	alignas(128) uint64_t counter;
};

/* The plain section. */
struct increment {
	uint64_t *counter;

	__device__ void operator()() const
	{
		CUA_WRITE(*counter, CUA_READ(*counter) + 1);
	}
};

/*
 * A kind of lock. section runs the body once for the lane under the lock at p; `lanes` says that it may be
 * any body, in the lane itself, and each lane alone.
 */
struct kind {
	static constexpr bool lanes = true;
	static __device__ void init(struct place *)
	{
	}
};

/* ---- the peers ---- */

struct textbook : kind {
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		struct textbook_lock *l = (struct textbook_lock *)p->lock;

		textbook_acquire(l);
		body();
		textbook_release(l);
	}
};

/* The same, a lane of the warp at a time. */
struct textbook_in_turn : kind {
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		for (unsigned lane = 0; lane < 32; lane++)
			if (lane == threadIdx.x % 32)
				textbook::section(p, body);
	}
};

template <cuda::thread_scope SCOPE> struct semaphore : kind {
	using type = cuda::binary_semaphore<SCOPE>;

	static __device__ void init(struct place *p)
	{
		static_assert(sizeof(type) <= sizeof(p->lock), "");
		new (p->lock) type(1);
	}
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		type *s = (type *)p->lock;

		s->acquire();
		body();
		s->release();
	}
};

/* ---- ours ---- */

template <enum cua_scope SCOPE> struct spinlock : kind {
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		struct cua_spinlock *l = (struct cua_spinlock *)p->lock;

		cua_spinlock_lock_scope(l, SCOPE);
		body();
		cua_spinlock_unlock_scope(l, SCOPE);
	}
};

template <enum cua_scope SCOPE> struct with_lock : kind {
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		CUA_WITH_LOCK_SCOPE((struct cua_spinlock *)p->lock, SCOPE)
			body();
	}
};

static __device__ uint32_t warp_mask(void)
{
	uint32_t rest = blockDim.x - threadIdx.x / 32 * 32;

	return rest < 32 ? ((uint32_t)1 << rest) - 1 : 0xffffffffu;
}

template <enum cua_scope SCOPE> struct with_lock_warp : kind {
	static constexpr bool lanes = false; /* all lanes of the warp have to come */
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		uint32_t mask = warp_mask();

		CUA_WITH_LOCK_WARP_SCOPE((struct cua_spinlock *)p->lock, mask, SCOPE)
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
	static __device__ void section(struct place *p, struct increment)
	{
		add_warp_scope((struct cua_spinlock *)p->lock, &p->counter, 1, warp_mask(), SCOPE);
	}
};

template <enum cua_scope SCOPE> struct combine_block : kind {
	static constexpr bool lanes = false;
	static __device__ void section(struct place *p, struct increment)
	{
		__shared__ uint64_t scratch[BLOCK_THREADS];

		add_block_scope((struct cua_spinlock *)p->lock, &p->counter, 1, blockDim.x, scratch, SCOPE);
	}
};

/* With a result a lane, which the machine must not skip. */
struct fetch_warp : kind {
	static constexpr bool lanes = false;
	static __device__ void section(struct place *p, struct increment)
	{
		if (fetch_add_warp((struct cua_spinlock *)p->lock, &p->counter, 1, warp_mask()) == ~0ull)
			__trap();
	}
};

struct fetch_block : kind {
	static constexpr bool lanes = false;
	static __device__ void section(struct place *p, struct increment)
	{
		__shared__ uint64_t scratch[BLOCK_THREADS];

		if (fetch_add_block((struct cua_spinlock *)p->lock, &p->counter, 1, scratch) == ~0ull)
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
	CAS_ONLY,   /* the CAS again and again */
	LOAD_FIRST, /* a CAS where a load has seen 0 */
	CAS_FIRST,  /* a CAS, then as LOAD_FIRST */
	CAS_FENCE,  /* CAS_FIRST with relaxed CAS and one fence */
	SWAP_BACK,  /* CAS_FIRST, given back by an exchange */
	RED_BACK    /* CAS_FIRST, given back by a reduction */
};

/* Pauses from FIRST to LAST ns. */
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
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		lock((uint32_t *)p->lock);
		body();
		unlock((uint32_t *)p->lock);
	}
};

/*
 * Of the lanes that happen to wait together only the lowest looks. The mask is a hint: any lane that comes here
 * alone is the lowest.
 */
template <unsigned LAST, unsigned OTHERS> struct gated : kind {
	template <typename Body> static __device__ void section(struct place *p, Body body)
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

/* For a lane behind `ahead` others; a pause may last twice as long as it says. */
template <unsigned EACH_NS, unsigned LAST> static __device__ void wait_behind(uint32_t ahead)
{
	uint32_t ns = ahead > LAST / (EACH_NS ? EACH_NS : 1) ? LAST : ahead * EACH_NS;

	if (EACH_NS && ahead)
		cua_port_pause(ns);
}

/* ACQUIRE: each look acquires; else looks are relaxed and one acquire follows. */
template <bool ACQUIRE, unsigned EACH_NS, unsigned LAST> struct ticket_two_words : kind {
	template <typename Body> static __device__ void section(struct place *p, Body body)
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
 * next in the upper half, owner in the lower one: the add that takes a ticket sees whether it is its turn. A
 * carry out of owner would give a ticket away, so the unlock that wraps it takes it back.
 */
template <bool ACQUIRE, unsigned EACH_NS, unsigned LAST> struct ticket_one_word : kind {
	template <typename Body> static __device__ void section(struct place *p, Body body)
	{
		uint64_t *word = (uint64_t *)p->lock, seen;
		uint32_t mine;

		seen = cua_port_fetch_add_u64(word, (uint64_t)1 << 32, CUA_ACQUIRE, WORD);
		mine = (uint32_t)(seen >> 32);
		if ((uint32_t)seen != mine) {
			for (;;) {
				wait_behind<EACH_NS, LAST>(mine - (uint32_t)seen - 1);
				seen = cua_port_load_b64(word, ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED, WORD);
				if ((uint32_t)seen == mine)
					break;
			}
			if (!ACQUIRE)
				(void)cua_port_load_b64(word, CUA_ACQUIRE, WORD);
		}
		body();
		cua_port_add_u64(word, mine == 0xffffffffu ? 1 - ((uint64_t)1 << 32) : 1, CUA_RELEASE, WORD);
	}
};

/* What the machine needs at least, with no order for the section but that of the addresses. */
struct budget : kind {
	template <typename Body> static __device__ void section(struct place *p, Body)
	{
		uint32_t *word = (uint32_t *)p->lock;
		uint64_t v;

		while (cua_port_cas_b32(word, 0, 1, CUA_RELAXED, WORD) != 0)
			;
		v = cua_port_load_b64(&p->counter, CUA_RELAXED, WORD);
		cua_port_store_b64(&p->counter, v + 1, CUA_RELAXED, WORD);
		cua_port_store_b32(word, 0, CUA_RELEASE, WORD);
	}
};

/* ---- kernels ---- */

template <typename Kind> static __global__ void prepare(struct place *p)
{
	Kind::init(p);
}

template <typename Kind> static __global__ void run_global(struct place *p, unsigned each)
{
	for (unsigned i = 0; i < each; i++)
		Kind::section(p, increment{&p->counter});
}

/* Lock and counter in shared memory; the counter goes to p in the end. */
template <typename Kind> static __global__ void run_shared(struct place *p, unsigned each)
{
	__shared__ struct place here;

	if (threadIdx.x == 0) {
		memset((void *)&here, 0, sizeof(here));
		Kind::init(&here);
	}
	__syncthreads();
	for (unsigned i = 0; i < each; i++)
		Kind::section(&here, increment{&here.counter});
	__syncthreads();
	if (threadIdx.x == 0)
		p->counter += here.counter;
}

/* Runs sections until all threads together have run `total`; got[thread] is how many the thread had. */
template <typename Kind>
static __global__ void run_fair(struct place *p, uint64_t total, unsigned *got)
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
	struct place *place;
	unsigned *got, *host_got;
	unsigned blocks, threads; /* of the case */
	bool candidates;
	double best_peer; /* M/s */
};

static void check_counter(const struct bench *b, const char *name, uint64_t expected)
{
	uint64_t counter;

	need(!cudaMemcpy(&counter, &b->place->counter, sizeof(counter), cudaMemcpyDeviceToHost), name);
	if (counter != expected) {
		fprintf(stderr, "locks: %s: %llu sections, not %llu\n", name, (unsigned long long)counter,
			(unsigned long long)expected);
		exit(1);
	}
}

template <typename Kind> static void reset(const struct bench *b)
{
	cudaMemsetAsync(b->place, 0, sizeof(*b->place));
	prepare<Kind><<<1, 1>>>(b->place);
}

template <typename Kind>
static struct timing time_runs(const struct bench *b, const char *name, bool shared, unsigned each,
			       int ignored, int runs)
{
	return measure_runs(
		ignored, runs, [=] { reset<Kind>(b); },
		[=] {
			if (shared)
				run_shared<Kind><<<b->blocks, b->threads>>>(b->place, each);
			else
				run_global<Kind><<<b->blocks, b->threads>>>(b->place, each);
		},
		[=] { check_counter(b, name, (uint64_t)b->blocks * b->threads * each); });
}

template <typename Kind> static void fairness(const struct bench *b, const char *name)
{
	unsigned n = b->blocks * b->threads, least = ~0u, most = 0, none = 0;
	uint64_t total = (uint64_t)FAIR_EACH * n;

	reset<Kind>(b);
	run_fair<Kind><<<b->blocks, b->threads>>>(b->place, total, b->got);
	check_counter(b, name, total);
	need(!cudaMemcpy(b->host_got, b->got, n * sizeof(*b->got), cudaMemcpyDeviceToHost), name);
	for (unsigned i = 0; i < n; i++) {
		least = b->host_got[i] < least ? b->host_got[i] : least;
		most = b->host_got[i] > most ? b->host_got[i] : most;
		none += b->host_got[i] == 0;
	}
	printf("  %u to %u, %.0f %% none", least, most, 100.0 * none / n);
}

template <typename Kind> static void row(struct bench *b, const char *name, bool is_peer, bool shared = false)
{
	double threads = (double)b->blocks * b->threads, sections, rate;
	unsigned each = 1;
	struct timing t = time_runs<Kind>(b, name, shared, 1, 0, 1);

	if (t.median <= LONG_US) {
		if (t.median < RUN_US) {
			/* again, without the loading of the kernel */
			t = time_runs<Kind>(b, name, shared, 8, 0, 1);
			if (8 * RUN_US > t.median)
				each = (unsigned)(8 * RUN_US / t.median);
			each = each > MOST_EACH ? MOST_EACH : each;
		}
		t = time_runs<Kind>(b, name, shared, each, 1, RUNS);
	}
	sections = threads * each;
	rate = sections / t.median;
	if (is_peer && rate > b->best_peer)
		b->best_peer = rate;
	printf("%-40s %9.3f %9.3f %9.3f %7.2f %6u %4d", name, rate, sections / t.most, sections / t.least,
	       rate / b->best_peer, each, t.runs);
	if constexpr (Kind::lanes)
		if (b->threads > 1 && !shared && t.median / each <= LONG_US)
			fairness<Kind>(b, name);
	printf("\n");
	fflush(stdout);
}

static void heading(struct bench *b, const char *what, unsigned blocks, unsigned threads)
{
	b->blocks = blocks;
	b->threads = threads;
	b->best_peer = 0;
	printf("\n%s: %u x %u\n%-40s %9s %9s %9s %7s %6s %4s  %s\n", what, blocks, threads, "", "M/s",
	       "least", "most", "x peer", "each", "runs", threads > 1 ? "fair" : "");
}

static void peers(struct bench *b)
{
	row<textbook>(b, "textbook", true);
	row<semaphore<cuda::thread_scope_device>>(b, "cuda::binary_semaphore, device", true);
}

static void candidates(struct bench *b)
{
	if (!b->candidates)
		return;
	row<textbook_in_turn>(b, "- textbook, a lane at a time", false);
	row<budget>(b, "- budget: CAS, load, store, release", false);
	row<word_lock<CAS_ONLY, 0, 0>>(b, "- CAS only, no pause", false);
	row<word_lock<CAS_ONLY, 32, 256>>(b, "- CAS only, 32 to 256 ns", false);
	row<word_lock<CAS_ONLY, 32, 1024>>(b, "- CAS only, 32 to 1024 ns", false);
	row<word_lock<CAS_ONLY, 32, 4096>>(b, "- CAS only, 32 to 4096 ns", false);
	row<word_lock<LOAD_FIRST, 0, 0>>(b, "- load first, no pause", false);
	row<word_lock<LOAD_FIRST, 32, 256>>(b, "- load first, 32 to 256 ns", false);
	row<word_lock<LOAD_FIRST, 32, 1024>>(b, "- load first, 32 to 1024 ns", false);
	row<word_lock<LOAD_FIRST, 32, 4096>>(b, "- load first, 32 to 4096 ns", false);
	row<word_lock<LOAD_FIRST, 32, 65536>>(b, "- load first, 32 to 65536 ns", false);
	row<word_lock<CAS_FIRST, 0, 0>>(b, "- CAS first, no pause", false);
	row<word_lock<CAS_FIRST, 32, 32>>(b, "- CAS first, 32 ns", false);
	row<word_lock<CAS_FIRST, 32, 128>>(b, "- CAS first, 32 to 128 ns", false);
	row<word_lock<CAS_FIRST, 32, 256>>(b, "- CAS first, 32 to 256 ns", false);
	row<word_lock<CAS_FIRST, 32, 512>>(b, "- CAS first, 32 to 512 ns", false);
	row<word_lock<CAS_FIRST, 32, 1024>>(b, "- CAS first, 32 to 1024 ns", false);
	row<word_lock<CAS_FIRST, 32, 4096>>(b, "- CAS first, 32 to 4096 ns", false);
	row<word_lock<CAS_FIRST, 1024, 65536>>(b, "- CAS first, 1024 to 65536 ns", false);
	row<word_lock<CAS_FENCE, 32, 1024>>(b, "- CAS first, relaxed and fence", false);
	row<word_lock<SWAP_BACK, 32, 1024>>(b, "- CAS first, given back by exchange", false);
	row<word_lock<RED_BACK, 32, 1024>>(b, "- CAS first, given back by reduction", false);
	row<gated<512, 100>>(b, "- lowest waiting lane, to 512 ns", false);
	row<gated<1024, 500>>(b, "- lowest waiting lane, to 1024 ns", false);
	row<gated<4096, 2000>>(b, "- lowest waiting lane, to 4096 ns", false);
	row<ticket_two_words<true, 0, 0>>(b, "- ticket, two words, no pause", false);
	row<ticket_two_words<true, 50, 100000>>(b, "- ticket, two words, 50 ns a place", false);
	row<ticket_two_words<true, 300, 500000>>(b, "- ticket, two words, 300 ns a place", false);
	row<ticket_two_words<false, 300, 500000>>(b, "- ticket, two words, 300 ns, relaxed", false);
	row<ticket_one_word<true, 0, 0>>(b, "- ticket, one word, no pause", false);
	row<ticket_one_word<true, 50, 100000>>(b, "- ticket, one word, 50 ns a place", false);
	row<ticket_one_word<true, 300, 500000>>(b, "- ticket, one word, 300 ns a place", false);
	row<ticket_one_word<true, 600, 500000>>(b, "- ticket, one word, 600 ns a place", false);
	row<ticket_one_word<false, 0, 0>>(b, "- ticket, one word, no pause, relaxed", false);
	row<ticket_one_word<false, 300, 500000>>(b, "- ticket, one word, 300 ns, relaxed", false);
}

static void plain(struct bench *b)
{
	row<spinlock<CUA_SCOPE_DEVICE>>(b, "cua_spinlock_lock, unlock", false);
	row<with_lock<CUA_SCOPE_DEVICE>>(b, "CUA_WITH_LOCK", false);
}

static void combining(struct bench *b)
{
	row<with_lock_warp<CUA_SCOPE_DEVICE>>(b, "CUA_WITH_LOCK_WARP", false);
	row<combine_warp<CUA_SCOPE_DEVICE>>(b, "combine, warp", false);
	row<fetch_warp>(b, "combine, warp, with results", false);
	row<combine_block<CUA_SCOPE_DEVICE>>(b, "combine, block", false);
	row<fetch_block>(b, "combine, block, with results", false);
}

int main(int argc, char **argv)
{
	struct cudaDeviceProp device;
	struct bench b = {};
	unsigned processors;

	if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
		fprintf(stderr, "locks: no CUDA device\n");
		return 77;
	}
	processors = (unsigned)device.multiProcessorCount;
	b.candidates = argc > 1 && !strcmp(argv[1], "candidates");
	b.host_got = (unsigned *)malloc(processors * BLOCK_THREADS * sizeof(*b.host_got));
	need(b.host_got && !cudaMalloc(&b.place, sizeof(*b.place)) &&
		     !cudaMalloc(&b.got, processors * BLOCK_THREADS * sizeof(*b.got)),
	     "cudaMalloc");
	printf("%s, %u multiprocessors; medians of %d\n", device.name, processors, RUNS);
	printf("critical sections: increment of a plain 64-bit counter under one lock\n");

	heading(&b, "all threads", processors, BLOCK_THREADS);
	peers(&b);
	plain(&b);
	combining(&b);
	candidates(&b);

	heading(&b, "one thread a block", processors, 1);
	peers(&b);
	plain(&b);
	candidates(&b);

	heading(&b, "one thread", 1, 1);
	peers(&b);
	plain(&b);
	candidates(&b);

	heading(&b, "one block, lock of device scope in global memory", 1, BLOCK_THREADS);
	peers(&b);
	plain(&b);
	combining(&b);

	heading(&b, "one block, lock and counter in shared memory", 1, BLOCK_THREADS);
	row<textbook>(&b, "textbook", true, true);
	row<semaphore<cuda::thread_scope_block>>(&b, "cuda::binary_semaphore, block", true, true);
	row<spinlock<CUA_SCOPE_BLOCK>>(&b, "cua_spinlock, block scope", false, true);
	row<with_lock<CUA_SCOPE_BLOCK>>(&b, "CUA_WITH_LOCK_SCOPE, block", false, true);
	row<with_lock_warp<CUA_SCOPE_BLOCK>>(&b, "CUA_WITH_LOCK_WARP_SCOPE, block", false, true);
	row<combine_warp<CUA_SCOPE_BLOCK>>(&b, "combine, warp, block scope", false, true);
	row<combine_block<CUA_SCOPE_BLOCK>>(&b, "combine, block, block scope", false, true);

	cudaFree(b.place);
	cudaFree(b.got);
	free(b.host_got);
	return 0;
}
