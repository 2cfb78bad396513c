/* SPDX-License-Identifier: MIT */
/*
 * Threads that pass plain data to each other by a kind of lock or atomic; the first argument names
 * the kind. check_tsan.sh compiles this file with ThreadSanitizer, over the headers and over copies
 * with a weakened order.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <cuatomic/atomic.h>
#include <cuatomic/atomic_narrow.h>
#include <cuatomic/exact_cell.h>
#include <cuatomic/lock.h>

#define THREADS 3
#define ROUNDS 2000
#define TURNS_ALONE 40

static struct cua_spinlock spinlock;
static struct cua_ticketlock ticketlock;
static struct cua_mcslock mcslock;
static struct cua_rwlock rwlock;
static struct cua_seqlock seqlock;
static struct cua_semaphore semaphore = CUA_SEMAPHORE_INIT(1);
static pthread_barrier_t start;
static uint32_t turn; /* of the threads that acquire a free lock; relaxed */
static uint64_t data; /* plain, under any of them */

static int id_of(const void *arg)
{
	return (int)(uintptr_t)arg;
}

static void section(void)
{
	CUA_WRITE(data, CUA_READ(data) + 1);
	/* the other threads should arrive while the lock is held, and wait */
	sched_yield();
}

static void look(void)
{
	(void)*(volatile uint64_t *)&data;
	sched_yield();
}

/*
 * Waits until all threads before this one have had their turn. The counter is relaxed, so turns order
 * no data.
 */
static void await_turn(const void *arg)
{
	while ((int)(__atomic_load_n(&turn, __ATOMIC_RELAXED) % THREADS) != id_of(arg))
		sched_yield();
}

/* Acquires the lock by a way, runs the body, and releases the lock. */
#define BY_WAY(way, WITH, lock_call, try_call, for_call, unlock_call, body)                        \
	do {                                                                                       \
		if ((way) == 0) {                                                                  \
			WITH                                                                       \
			{                                                                          \
				body;                                                              \
			}                                                                          \
			break;                                                                     \
		}                                                                                  \
		if ((way) == 1)                                                                    \
			lock_call;                                                                 \
		while ((way) == 2 && !(try_call))                                                  \
			sched_yield();                                                             \
		while ((way) == 3 && !(for_call))                                                  \
			sched_yield();                                                             \
		body;                                                                              \
		unlock_call;                                                                       \
	} while (0)

/*
 * Every way to acquire the lock: first by a thread at a time, so that the lock is free and every
 * schedule shows a missing order of an uncontended acquire; then by all threads at once.
 */
#define EACH_WAY(WITH, lock_call, try_call, for_call, unlock_call, body)                           \
	pthread_barrier_wait(&start);                                                              \
	for (int i = 0; i < TURNS_ALONE; i++) {                                                    \
		await_turn(arg);                                                                   \
		BY_WAY(i % 4, WITH, lock_call, try_call, for_call, unlock_call, body);             \
		__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);                                    \
	}                                                                                          \
	for (int i = id_of(arg); i < ROUNDS; i++) {                                                \
		BY_WAY(i % 4, WITH, lock_call, try_call, for_call, unlock_call, body);             \
		sched_yield();                                                                     \
	}                                                                                          \
	return NULL

static void *spin(void *arg)
{
	EACH_WAY(CUA_WITH_LOCK (&spinlock), cua_spinlock_lock(&spinlock),
		 cua_spinlock_trylock(&spinlock), cua_spinlock_lock_for(&spinlock, 10000),
		 cua_spinlock_unlock(&spinlock), section());
}

static void *ticket(void *arg)
{
	EACH_WAY(CUA_WITH_TICKETLOCK (&ticketlock), cua_ticketlock_lock(&ticketlock),
		 cua_ticketlock_trylock(&ticketlock), cua_ticketlock_lock_for(&ticketlock, 10000),
		 cua_ticketlock_unlock(&ticketlock), section());
}

static void *mcs(void *arg)
{
	struct cua_mcslock_node node;

	EACH_WAY(CUA_WITH_MCSLOCK (&mcslock, &node), cua_mcslock_lock(&mcslock, &node),
		 cua_mcslock_trylock(&mcslock, &node), cua_mcslock_lock_for(&mcslock, &node, 10000),
		 cua_mcslock_unlock(&mcslock, &node), section());
}

static void *writes(void *arg)
{
	EACH_WAY(CUA_WITH_WRITE_LOCK (&rwlock), cua_rwlock_write_lock(&rwlock),
		 cua_rwlock_write_trylock(&rwlock), cua_rwlock_write_lock_for(&rwlock, 10000),
		 cua_rwlock_write_unlock(&rwlock), section());
}

/* A single thread writes, the other threads read. */
static void *reads(void *arg)
{
	if (id_of(arg) == 0)
		return writes(arg);
	EACH_WAY(CUA_WITH_READ_LOCK (&rwlock), cua_rwlock_read_lock(&rwlock),
		 cua_rwlock_read_trylock(&rwlock), cua_rwlock_read_lock_for(&rwlock, 10000),
		 cua_rwlock_read_unlock(&rwlock), look());
}

static void *sequence(void *arg)
{
	EACH_WAY(CUA_WITH_SEQLOCK (&seqlock), cua_seqlock_lock(&seqlock),
		 cua_seqlock_trylock(&seqlock), cua_seqlock_lock_for(&seqlock, 10000),
		 cua_seqlock_unlock(&seqlock), section());
}

static void *count(void *arg)
{
	EACH_WAY(CUA_WITH_SEMAPHORE (&semaphore), cua_semaphore_lock(&semaphore),
		 cua_semaphore_trylock(&semaphore), cua_semaphore_lock_for(&semaphore, 10000),
		 cua_semaphore_unlock(&semaphore), section());
}

/* A turn that goes round: each thread waits for its own number, and passes on the next number. */
#define TURNS(name, T, wait_load, give_store)                                                      \
	static T turn_##name;                                                                      \
	static void *turns_##name(void *arg)                                                       \
	{                                                                                          \
		T mine = (T)id_of(arg), next = (T)((id_of(arg) + 1) % THREADS);                    \
                                                                                                   \
		(void)next;                                                                        \
		pthread_barrier_wait(&start);                                                      \
		for (int i = 0; i < ROUNDS; i++) {                                                 \
			while ((wait_load) != mine)                                                \
				sched_yield();                                                     \
			section();                                                                 \
			give_store;                                                                \
		}                                                                                  \
		return NULL;                                                                       \
	}
#define AT CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC
TURNS(store32, uint32_t, cua_atomic_load_explicit_u32(&turn_store32, CUA_ACQUIRE, AT),
      cua_atomic_store_explicit_u32(&turn_store32, next, CUA_RELEASE, AT))
TURNS(store64, uint64_t, cua_atomic_load_explicit_u64(&turn_store64, CUA_ACQUIRE, AT),
      cua_atomic_store_explicit_u64(&turn_store64, next, CUA_RELEASE, AT))
TURNS(store8, uint8_t, cua_atomic_load_explicit_u8(&turn_store8, CUA_ACQUIRE, AT),
      cua_atomic_store_explicit_u8(&turn_store8, next, CUA_RELEASE, AT))
TURNS(exchange, uint32_t,
      cua_atomic_compare_exchange_explicit_u32(&turn_exchange, mine, mine, CUA_ACQUIRE, AT),
      (void)cua_atomic_exchange_explicit_u32(&turn_exchange, next, CUA_RELEASE, AT))
TURNS(add, uint64_t, cua_atomic_fetch_add_explicit_u64(&turn_add, 0, CUA_ACQUIRE, AT) % THREADS,
      (void)cua_atomic_fetch_add_explicit_u64(&turn_add, 1, CUA_RELEASE, AT))
TURNS(loop, uint32_t, cua_atomic_fetch_max_explicit_u32(&turn_loop, 0, CUA_ACQUIRE, AT) % THREADS,
      (void)cua_atomic_fetch_inc_explicit_u32(&turn_loop, THREADS - 1, CUA_RELEASE, AT))
CUA_DEFINE_ATOMIC(step, u32, (old + operand) % THREADS)
TURNS(user, uint32_t, step_explicit(&turn_user, 0, CUA_ACQUIRE, AT),
      (void)step_explicit(&turn_user, 1, CUA_RELEASE, AT))

/* Exact cells: the additions of all threads, with spills, and merges of cells of a thread. */
#define SPILLS (4 * THREADS * ROUNDS)
static struct cua_exact_cell_f32 narrow_cell;
static struct cua_exact_cell_f64 wide_cell;
static struct cua_exact_spill spilled[SPILLS];
static struct cua_append_cursor spilled_cursor;

static void *cells(void *arg)
{
	const struct cua_append_view spills = {
		spilled, &spilled_cursor, SPILLS, sizeof(spilled[0]), CUA_APPEND_LAYOUT, 0};
	const struct cua_exact_cells_f32 narrow =
		cua_exact_cells_view_f32(&narrow_cell, 1, CUA_EXACT_CELL_UNIT_F32, &spills);
	const struct cua_exact_cells_f64 wide =
		cua_exact_cells_view_f64(&wide_cell, 1, CUA_EXACT_CELL_UNIT_F64, &spills);
	struct cua_exact_cell_f64 own = {{0, 0, 0}};
	const struct cua_exact_cells_f64 mine = cua_exact_cells_private_f64(&wide, &own, 0, 1);

	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		/* the words' ends are passed in both directions */
		const double big = i / 400 % 2 ? -0x1p54 : 0x1p54;

		cua_exact_cell_add_f32(&narrow, 0, (float)id_of(arg) + 0.5f);
		cua_exact_cell_add_f64(&wide, 0, big);
		cua_exact_cell_add_block_f64(&mine, 0, big);
		if (i % 4 == 0)
			cua_exact_cell_add_f32(&narrow, 0, 0x1p100f);
		if (i % 4 == 1)
			cua_exact_cell_add_warp_f64(1, &wide, 0, 0x1p-1000);
		if (i % 100 == 99) {
			cua_exact_cell_merge_f64(&wide, 0, &own);
			memset(&own, 0, sizeof(own));
		}
	}
	return NULL;
}

static const struct {
	const char *name;
	void *(*body)(void *);
} cases[] = {
	{"spinlock", spin},
	{"ticketlock", ticket},
	{"mcslock", mcs},
	{"write", writes},
	{"read", reads},
	{"seqlock", sequence},
	{"semaphore", count},
	{"store32", turns_store32},
	{"store64", turns_store64},
	{"store8", turns_store8},
	{"exchange", turns_exchange},
	{"add", turns_add},
	{"loop", turns_loop},
	{"user", turns_user},
	{"cells", cells},
};

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (pthread_barrier_init(&start, NULL, THREADS))
		return 2;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		if (argc == 2 && strcmp(cases[c].name, argv[1]))
			continue;
		for (uintptr_t t = 0; t < THREADS; t++)
			if (pthread_create(&threads[t], NULL, cases[c].body, (void *)t))
				return 2;
		for (int t = 0; t < THREADS; t++)
			pthread_join(threads[t], NULL);
		if (argc == 2)
			return 0;
	}
	return argc == 1 ? 0 : 2;
}
