/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel and the host calls. No call is a cancellation point. If a thread is cancelled
 * inside a call with helpers, the thread ends only after the helpers have finished.
 *
 * The linker wraps the library's calls of functions that may be cancellation points (--wrap). Each
 * wrapper tests for a cancellation request before it calls the function. So the first wrapper
 * called acts on a request, independent of the C library and of the speed of the helpers.
 */
#include "common.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define N 300000u /* elements: work for two threads in each call below */

/* ---- a call with one helper and a known order of events ---- */

enum {
	IDLE,
	BEGUN,  /* the job is published */
	TAKEN,  /* the helper has claimed its part; it does not begin */
	WAITED, /* the caller waits; the helper proceeds */
	GONE    /* the caller's thread has ended */
};
static struct {
	pthread_t caller, main; /* main: the test; it locks mutexes of the test library */
	int armed, how;         /* how: the cancellation type under test */
	int state;
	int finished; /* the helper has finished its part */
	int points;   /* cancellation points that the caller has passed */
} job;

static int is(int state)
{
	return __atomic_load_n(&job.state, __ATOMIC_ACQUIRE) >= state;
}

static void set(int state)
{
	__atomic_store_n(&job.state, state, __ATOMIC_RELEASE);
}

/* Whether the caller is known and its call is in progress. */
static int armed(void)
{
	return __atomic_load_n(&job.armed, __ATOMIC_ACQUIRE);
}

static void arm(int on)
{
	__atomic_store_n(&job.armed, on, __ATOMIC_RELEASE);
}

static int by_caller(void)
{
	return armed() && pthread_equal(pthread_self(), job.caller);
}

/* A cancellation point in a library function. */
static void point(void)
{
	if (by_caller())
		job.points++;
	pthread_testcancel();
}

int __real_pthread_cond_broadcast(pthread_cond_t *c);
int __wrap_pthread_cond_broadcast(pthread_cond_t *c);
int __wrap_pthread_cond_broadcast(pthread_cond_t *c)
{
	if (by_caller() && !is(BEGUN))
		set(BEGUN);
	return __real_pthread_cond_broadcast(c);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	int error = __real_pthread_mutex_unlock(m);

	if (!armed() || !is(BEGUN) || is(WAITED) || pthread_equal(pthread_self(), job.main))
		return error;
	if (by_caller()) {
		/* the caller has claimed a part: wait until the helper has one */
		while (!is(TAKEN))
			sched_yield();
	} else if (!is(TAKEN)) {
		if (job.how == PTHREAD_CANCEL_ASYNCHRONOUS)
			pthread_cancel(job.caller);
		set(TAKEN);
		while (!is(WAITED))
			sched_yield();
	}
	return error;
}

int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	point();
	if (by_caller() && !is(WAITED))
		set(WAITED);
	return __real_pthread_cond_wait(c, m);
}

int __real_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
	/* the pool signals that the last part is finished */
	if (armed())
		__atomic_store_n(&job.finished, 1, __ATOMIC_RELEASE);
	return __real_pthread_cond_signal(c);
}

/* ---- other cancellation points ---- */

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
	point();
	return __real_pthread_join(thread, result);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	point();
	return __real_fopen(path, mode);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	point();
	return __real_fsync(fd);
}

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	point();
	return __real_write(fd, p, n);
}

ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n)
{
	point();
	return __real_read(fd, p, n);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	point();
	return __real_close(fd);
}

/* ---- threads that are cancelled ---- */

struct thread {
	struct cua_context *ctx;
	void (*fn)(struct thread *t);
	uint64_t *x, sum;
	struct cua_hashmap *map;
	const char *name;
	int returned; /* from the call */
	int finished; /* whether the helper had finished when the thread ended */
};

static void ended(void *arg)
{
	struct thread *t = arg;

	t->finished = __atomic_load_n(&job.finished, __ATOMIC_ACQUIRE);
	set(GONE);
}

/* AddressSanitizer does not track a cancelled thread out of an instrumented frame. */
__attribute__((no_sanitize_address)) static void *body(void *arg)
{
	struct thread *t = arg;

	pthread_cleanup_push(ended, t);
	job.caller = pthread_self();
	arm(1);
	t->fn(t);
	t->returned = 1;
	/* the request is still pending */
	pthread_testcancel();
	pthread_cleanup_pop(1);
	return NULL;
}

static void run(struct thread *t)
{
	pthread_t thread;
	void *result;

	memset(&job, 0, sizeof(job));
	/* the helpers may run freely */
	job.state = WAITED;
	t->returned = t->finished = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, body, t), 0);
	ck_assert_int_eq(__real_pthread_join(thread, &result), 0);
	arm(0);
	EXPECT(result == PTHREAD_CANCELED, "%s: the thread was not cancelled", t->name);
}

static void request(void)
{
	/* deferred: acts at the next cancellation point */
	pthread_cancel(pthread_self());
}

static void reduce(struct thread *t)
{
	if (job.how == PTHREAD_CANCEL_ASYNCHRONOUS)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &(int){0});
	else
		request();
	(void)cua_sum_u64(t->ctx, N, t->x, &t->sum);
}

/* The helpers read the caller's stack, so the thread lives until they have finished. */
static void helpers(int how)
{
	struct thread t = {.name = "a sum with a helper", .fn = reduce};
	uint64_t sum = 0;
	void *x;

	t.ctx = test_context(CUA_BACKEND_CPU);
	ck_assert_cua(cua_context_set_threads(t.ctx, 2));
	ck_assert_cua(cua_alloc_zero(t.ctx, N, 8, &x));
	t.x = x;
	for (uint32_t i = 0; i < N; i++)
		t.x[i] = i;
	for (int round = 0; round < 3; round++) {
		pthread_t thread;
		void *result;

		memset(&job, 0, sizeof(job));
		job.main = pthread_self();
		job.how = how;
		t.returned = t.finished = 0;
		ck_assert_int_eq(pthread_create(&thread, NULL, body, &t), 0);
		ck_assert_int_eq(__real_pthread_join(thread, &result), 0);
		arm(0);
		ck_assert_msg(t.finished, "the thread ended before its helper");
		if (how == PTHREAD_CANCEL_DEFERRED) {
			ck_assert_msg(t.returned, "the thread ended inside the call");
			ck_assert_ptr_eq(result, PTHREAD_CANCELED);
			ck_assert_uint_eq(t.sum, (uint64_t)N * (N - 1) / 2);
			ck_assert_int_gt(job.points, 0);
		}
		/*
		 * an asynchronous request acts as soon as the call permits; the C library chooses
		 * the result
		 */
		ck_assert_cua(cua_sum_u64(t.ctx, N, t.x, &sum));
		ck_assert_uint_eq(sum, (uint64_t)N * (N - 1) / 2);
	}
	ck_assert_cua(cua_free(t.ctx, x));
	cua_context_destroy(t.ctx);
}

START_TEST(deferred)
{
	helpers(PTHREAD_CANCEL_DEFERRED);
}
END_TEST

START_TEST(asynchronous)
{
	helpers(PTHREAD_CANCEL_ASYNCHRONOUS);
}
END_TEST

/* ---- calls with other cancellation points ---- */

static void describe(struct thread *t)
{
	struct cua_device_info info = {.struct_size = sizeof(info)};

	(void)t;
	request();
	(void)cua_device_query(CUA_BACKEND_CPU, 0, &info);
}

static void memory_info(struct thread *t)
{
	uint64_t available, total;

	request();
	(void)cua_memory_info(t->ctx, &available, &total);
}

static void set_threads(struct thread *t)
{
	request();
	(void)cua_context_set_threads(t->ctx, 3);
}

static void destroy(struct thread *t)
{
	request();
	cua_context_destroy(t->ctx);
}

/* The caller's own function has a cancellation point. */
static int visit(void *arg, const void *key, const void *value)
{
	struct thread *t = arg;

	(void)value;
	if (!t->sum)
		request();
	point();
	t->sum += *(const uint32_t *)key;
	return 0;
}

static void for_each(struct thread *t)
{
	t->sum = 0;
	(void)cua_hashmap_for_each(t->map, visit, t);
}

static char path[64];

static void save(struct thread *t)
{
	request();
	(void)!cua_hashmap_save(t->map, path);
}

static void load(struct thread *t)
{
	struct cua_hashmap *map = NULL;

	request();
	(void)!cua_hashmap_load(t->ctx, NULL, path, &map);
	cua_hashmap_destroy(map);
}

static void every_call(struct thread *t)
{
	struct cua_hashmap *map;
	struct cua_multimap *mm;
	struct cua_chained *table;
	struct cua_append *buffer;
	struct cua_context *ctx;
	struct cua_lock_debug *locks;
	uint64_t n;

	request();
	(void)!cua_context_create(CUA_BACKEND_CPU, 0, &ctx);
	(void)!cua_device_problem(CUA_BACKEND_CPU, 0);
	(void)!cua_context_reserve(ctx, (size_t)9 << 20);
	(void)!cua_context_synchronize(ctx);
	(void)!cua_hashmap_create(ctx, NULL, CUA_U64, CUA_U64, N, &map);
	(void)!cua_hashmap_insert_n(map, N, t->x, t->x, NULL);
	(void)!cua_hashmap_resize(map, 2 * N);
	(void)!cua_hashmap_copy_to_host(map, 0, NULL, NULL, &n);
	(void)!cua_hashmap_destroy(map);
	(void)!cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, N, N, &mm);
	(void)!cua_multimap_insert_n(mm, N, t->x, t->x, NULL);
	(void)!cua_multimap_clear(mm);
	(void)!cua_multimap_destroy(mm);
	(void)!cua_chained_create(ctx, NULL, N, N, &table);
	(void)!cua_chained_build_n(table, N, t->x, t->x);
	(void)!cua_chained_verify(table, NULL);
	(void)!cua_chained_destroy(table);
	(void)!cua_append_create(ctx, 8, N, &buffer);
	(void)!cua_filter(ctx, CUA_U64, N, t->x, CUA_GE, &n, buffer);
	(void)!cua_append_destroy(buffer);
	(void)!cua_histogram_bytes(ctx, NULL, N, t->x, t->x + N / 2);
	(void)!cua_lock_debug_create(ctx, NULL, &locks);
	(void)!cua_lock_debug_destroy(locks);
	/* refused: an error also restores the state */
	(void)!cua_hashmap_create(ctx, NULL, CUA_U64, CUA_U64, ~(uint64_t)0, &map);
	(void)!cua_reduce(ctx, NULL, CUA_REDUCE_SUM, CUA_U64, 5, (char *)t->x + 1, NULL, &n);
	cua_context_destroy(ctx);
}

START_TEST(points)
{
	static const struct {
		const char *name;
		void (*fn)(struct thread *t);
		int points; /* least number of cancellation points in the call */
	} calls[] = {
		{"cua_device_query", describe, 1},
		{"cua_memory_info", memory_info, 1},
		{"cua_context_set_threads", set_threads, 1},
		{"cua_hashmap_for_each", for_each, 100},
		{"cua_hashmap_save", save, 4},
		{"cua_hashmap_load", load, 2},
		{"calls of all kinds", every_call, 0},
		{"cua_context_destroy", destroy, 1},
	};
	struct thread t = {0};
	uint32_t keys[100];
	uint64_t sum = 0;
	void *x;
	struct cua_context *mine = test_context(CUA_BACKEND_CPU);

	t.ctx = test_context(CUA_BACKEND_CPU);
	ck_assert_cua(cua_alloc_zero(mine, N, 8, &x));
	t.x = x;
	snprintf(path, sizeof(path), "cancel.%ld.map", (long)getpid());
	for (uint32_t i = 0; i < 100; i++)
		keys[i] = i;
	ck_assert_cua(cua_hashmap_create(mine, NULL, CUA_U32, CUA_NONE, 100, &t.map));
	ck_assert_cua(cua_hashmap_insert_n(t.map, 100, keys, NULL, NULL));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		/* helpers to wait for, if the call ends them */
		ck_assert_cua(cua_context_set_threads(t.ctx, 2));
		ck_assert_cua(cua_sum_u64(t.ctx, N, t.x, &sum));
		t.name = calls[i].name;
		t.fn = calls[i].fn;
		run(&t);
		EXPECT(t.returned, "%s: the thread ended inside the call", t.name);
		EXPECT(job.points >= calls[i].points, "%s passes %d cancellation points", t.name,
		       job.points);
	}
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_cua(cua_hashmap_destroy(t.map));
	ck_assert_cua(cua_free(mine, x));
	cua_context_destroy(mine);
}
END_TEST

/* A thread with cancellation disabled keeps it disabled. */
START_TEST(disabled)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	uint64_t x[4] = {1, 2, 3, 4}, sum;
	int before, state;

	for (int chosen = 0; chosen < 2; chosen++) {
		const int wanted = chosen ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;

		pthread_setcancelstate(wanted, &before);
		ck_assert_cua(cua_sum_u64(ctx, 4, x, &sum));
		ck_assert_cua(cua_context_set_threads(ctx, 2 + (unsigned)chosen));
		ck_assert_cua(cua_context_synchronize(ctx));
		ck_assert_cua(cua_context_reserve(ctx, (size_t)4 << (20 + chosen)));
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
		ck_assert_int_eq(state, wanted);
	}
	cua_context_destroy(ctx);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cancel");
	TCase *tc = tcase_create("cancel");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, deferred);
	tcase_add_test(tc, asynchronous);
	tcase_add_test(tc, points);
	tcase_add_test(tc, disabled);
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CPU);
}
