/* SPDX-License-Identifier: MIT */
/*
 * Failures of the system in the host calls. For each k, the k-th request to the system fails: an
 * allocation, a mapping, a thread or an operation on a file. Each call then returns an error
 * status, or does its work without the requested resource. Nothing leaks, no file stays open, and
 * the same calls succeed afterwards.
 *
 * The program links the library's objects, and the linker wraps each function below (--wrap). So
 * the library's own requests are counted, the C library's internal requests are not, and a
 * sanitizer sees all of them.
 *
 * In a run either a single request fails, or all requests from the k-th on. CUA_TEST_DEEP=1 (make
 * check-deep): both ways with many elements and with 1 to 5 threads.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the system as the library sees it ---- */

enum kind { MEMORY, THREAD, FILES };

static struct {
	int watched;      /* requests are counted, and their allocations are recorded */
	int sticky;       /* all requests from number `at` on fail, else only number `at` */
	unsigned long at; /* 0: none fails */
	unsigned long n;  /* requests so far */
	unsigned failed[3], asked[3];
	unsigned serious; /* failures that must fail the call: of writes to the file */
} the;

static pthread_mutex_t live_mutex = PTHREAD_MUTEX_INITIALIZER;
#define LIVE_MOST 4096
static void *live[LIVE_MOST]; /* allocated and not yet freed */
static unsigned n_live, lost_count;
static size_t mapped; /* bytes of mappings; a mapping may be unmapped in parts */

/* Whether this request fails. */
static int fails(enum kind kind, int error)
{
	unsigned long number;

	if (!the.watched)
		return 0;
	number = __atomic_add_fetch(&the.n, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&the.asked[kind], 1, __ATOMIC_RELAXED);
	if (!the.at || (the.sticky ? number < the.at : number != the.at))
		return 0;
	__atomic_add_fetch(&the.failed[kind], 1, __ATOMIC_RELAXED);
	errno = error;
	return 1;
}

static void *born(void *p)
{
	if (!p || !the.watched)
		return p;
	pthread_mutex_lock(&live_mutex);
	if (n_live < LIVE_MOST)
		live[n_live++] = p;
	else
		lost_count++;
	pthread_mutex_unlock(&live_mutex);
	return p;
}

static void dies(void *p)
{
	if (!p || !the.watched)
		return;
	pthread_mutex_lock(&live_mutex);
	for (unsigned i = n_live; i-- > 0;)
		if (live[i] == p) {
			live[i] = live[--n_live];
			break;
		}
	pthread_mutex_unlock(&live_mutex);
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
	return fails(MEMORY, ENOMEM) ? NULL : born(__real_malloc(bytes));
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return fails(MEMORY, ENOMEM) ? NULL : born(__real_calloc(n, size));
}

void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes)
{
	if (fails(MEMORY, ENOMEM))
		return NULL;
	dies(p);
	return born(__real_realloc(p, bytes));
}

int __real_posix_memalign(void **p, size_t align, size_t bytes);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes)
{
	int error = fails(MEMORY, ENOMEM) ? ENOMEM : __real_posix_memalign(p, align, bytes);

	if (!error)
		born(*p);
	return error;
}

void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return fails(MEMORY, ENOMEM) ? NULL : born(__real_aligned_alloc(align, bytes));
}

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
	return fails(MEMORY, ENOMEM) ? NULL : born(__real_strdup(s));
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
	dies(p);
	__real_free(p);
}

static size_t pages(size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *p = fails(MEMORY, ENOMEM) ? MAP_FAILED
					: __real_mmap(at, bytes, protection, flags, fd, offset);

	if (p != MAP_FAILED && the.watched)
		__atomic_add_fetch(&mapped, pages(bytes), __ATOMIC_RELAXED);
	return p;
}

int __real_munmap(void *p, size_t bytes);
int __wrap_munmap(void *p, size_t bytes);
int __wrap_munmap(void *p, size_t bytes)
{
	if (the.watched)
		__atomic_sub_fetch(&mapped, pages(bytes), __ATOMIC_RELAXED);
	return __real_munmap(p, bytes);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*fn)(void *),
			  void *arg)
{
	return fails(THREAD, EAGAIN) ? EAGAIN : __real_pthread_create(thread, how, fn, arg);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	int mode = 0;

	if (flags & O_CREAT) {
		va_list rest;

		va_start(rest, flags);
		mode = va_arg(rest, int);
		va_end(rest);
	}
	return fails(FILES, EIO) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
	int mode = 0;

	if (flags & O_CREAT) {
		va_list rest;

		va_start(rest, flags);
		mode = va_arg(rest, int);
		va_end(rest);
	}
	return fails(FILES, EIO) ? -1 : __real_openat(folder, path, flags, mode);
}

/*
 * The fsync of a folder may fail: if the file system cannot make a new name durable, the call still
 * succeeds.
 */
static int is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

#define FILE_CALL(type, name, parameters, arguments)                                               \
	SERIOUS_CALL(type, name, parameters, arguments, 0)
#define SERIOUS_CALL(type, name, parameters, arguments, is_serious)                                \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		if (!fails(FILES, EIO))                                                            \
			return __real_##name arguments;                                            \
		the.serious += (is_serious);                                                       \
		errno = EIO;                                                                       \
		return -1;                                                                         \
	}
FILE_CALL(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
FILE_CALL(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
SERIOUS_CALL(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), 1)
SERIOUS_CALL(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), 1)
SERIOUS_CALL(int, fsync, (int fd), (fd), is_file(fd))
SERIOUS_CALL(int, fdatasync, (int fd), (fd), is_file(fd))
SERIOUS_CALL(int, rename, (const char *from, const char *to), (from, to), 1)
SERIOUS_CALL(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), 1)
FILE_CALL(off_t, lseek, (int fd, off_t at, int from), (fd, at, from))
FILE_CALL(int, ftruncate, (int fd, off_t size), (fd, size))
FILE_CALL(int, fchmod, (int fd, mode_t mode), (fd, mode))
FILE_CALL(int, flock, (int fd, int what), (fd, what))
FILE_CALL(ssize_t, getrandom, (void *p, size_t n, unsigned flags), (p, n, flags))
FILE_CALL(ssize_t, readlink, (const char *path, char *to, size_t n), (path, to, n))
FILE_CALL(ssize_t, readlinkat, (int folder, const char *path, char *to, size_t n),
	  (folder, path, to, n))

/* Closes the file, and then reports that its last bytes could not be written. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int done = __real_close(fd);

	return fails(FILES, EIO) ? -1 : done;
}

/* ---- the calls ---- */

#define N 40000u /* elements: enough for several threads in each module that uses threads */

static struct {
	uint64_t keys[2 * N], values[2 * N], out[2 * N], offsets[N + 1];
	double x[N], y[N], sums[N];
	uint8_t bytes[4 * N], flags[2 * N];
	char path[256], folder[200];
} d;

static size_t n_now; /* elements of a run */
static int old_keys; /* keys in the file's map before a run */

struct run {
	struct cua_context *ctx;
	enum cua_status status;
	const char *wrong; /* a wrong result of a successful call */
	int line, error;
};

/* A step of a scenario: the first failure ends the scenario, except for its cleanup. */
#define DO(call)                                                                                   \
	do {                                                                                       \
		r->status = (call);                                                                \
		r->error = errno;                                                                  \
		r->line = __LINE__;                                                                \
		if (r->status)                                                                     \
			goto out;                                                                  \
	} while (0)
#define TRUE(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			r->wrong = #condition;                                                     \
			r->line = __LINE__;                                                        \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

static void run_context(struct run *r)
{
	struct cua_device_info device = {.struct_size = sizeof(device)};
	struct cua_pointer_info info = {.struct_size = sizeof(info)};
	struct cua_peer_info peer = {.struct_size = sizeof(peer)};
	enum cua_atomic_path path;
	uint64_t free_bytes, total;
	void *p = NULL;
	int count;

	DO(cua_device_count(CUA_BACKEND_CPU, &count));
	DO(cua_device_query(CUA_BACKEND_CPU, 0, &device));
	TRUE(device.processors > 0);
	DO(cua_device_peer_query(CUA_BACKEND_CPU, 0, 0, &peer));
	DO(cua_context_reserve(r->ctx, (size_t)3 << 20));
	DO(cua_context_reserve(r->ctx, (size_t)5 << 20));
	DO(cua_context_set_threads(r->ctx, 3));
	DO(cua_memory_info(r->ctx, &free_bytes, &total));
	DO(cua_alloc_zero(r->ctx, 1, 1000, &p));
	DO(cua_pointer_query(r->ctx, p, &info));
	TRUE(info.base == p && info.size == 1000);
	DO(cua_atomic_path_query(r->ctx, CUA_F64, CUA_OP_ADD, &path));
	DO(cua_context_synchronize(r->ctx));
out:
	cua_free(r->ctx, p);
}

static void run_memory(struct run *r)
{
	struct cua_pitched a;
	static char packed[30 * 7];
	void *p = NULL, *system = NULL, *huge = NULL, *many[70] = {NULL};
	uint32_t pattern = 0x01020304;
	static uint32_t variable;

	memset(&a, 0, sizeof(a));
	DO(cua_alloc_zero(r->ctx, n_now, 8, &p));
	DO(cua_alloc_system(r->ctx, 3, 100, &system));
	DO(cua_alloc_zero(r->ctx, 1, (size_t)17 << 20, &huge));
	/* more allocations than the first table holds */
	for (int i = 0; i < 70; i++)
		DO(cua_alloc_zero(r->ctx, 1, 16, &many[i]));
	DO(cua_fill(r->ctx, p, n_now * 2, 4, &pattern));
	DO(cua_copy(r->ctx, d.out, p, n_now * 8));
	TRUE(d.out[n_now - 1] == 0x0102030401020304);
	DO(cua_alloc_2d(r->ctx, 30, 7, 1, &a));
	DO(cua_fill_pitched(r->ctx, &a, 1, &pattern));
	DO(cua_copy_from_pitched(r->ctx, packed, &a));
	TRUE(packed[30 * 7 - 1] == 4);
	DO(cua_copy_to_pitched(r->ctx, &a, packed));
	DO(cua_symbol_write(r->ctx, &variable, 0, &pattern, 4));
	DO(cua_symbol_read(r->ctx, d.out, &variable, 0, 4));
out:
	cua_free_pitched(r->ctx, &a);
	for (int i = 0; i < 70; i++)
		cua_free(r->ctx, many[i]);
	cua_free(r->ctx, huge);
	cua_free(r->ctx, system);
	cua_free(r->ctx, p);
}

static void run_append(struct run *r)
{
	struct cua_append *buffer = NULL;
	struct cua_append_view view;
	uint64_t n = 0, five = 5, demand;

	DO(cua_append_create(r->ctx, 8, n_now, &buffer));
	DO(cua_append_get_view(buffer, &view));
	DO(cua_filter(r->ctx, CUA_U64, n_now, d.values, CUA_GT, &five, buffer));
	DO(cua_append_demand(buffer, &demand));
	DO(cua_append_size(buffer, &n));
	TRUE(n == n_now - 6 && demand == n);
	DO(cua_append_read(buffer, d.out, n_now, &n));
	DO(cua_append_status(buffer));
	DO(cua_append_reset(buffer));
	DO(cua_append_size(buffer, &n));
	TRUE(n == 0);
out:
	cua_append_destroy(buffer);
}

static void run_filter(struct run *r)
{
	struct cua_filter_options o = CUA_FILTER_OPTIONS_INIT;
	uint64_t n = 0, half = n_now / 2;
	size_t bytes;

	DO(cua_filter_array(r->ctx, NULL, CUA_U64, n_now, d.values, CUA_LT, &half, n_now, d.out,
			    &n));
	TRUE(n == half);
	o.ordered = 1;
	DO(cua_filter_workspace(r->ctx, &o, CUA_U64, n_now, &bytes));
	DO(cua_filter_array(r->ctx, &o, CUA_U64, n_now, d.values, CUA_LT, &half, n_now, d.out, &n));
	TRUE(n == half && d.out[half - 1] == half - 1);
	o.partition = 1;
	DO(cua_filter_array(r->ctx, &o, CUA_U64, n_now, d.values, CUA_GE, &half, n_now, d.out, &n));
	TRUE(n == n_now - half && d.out[0] == half);
out:;
}

static void run_reduce(struct run *r)
{
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	uint64_t sum = 0;
	double first = 0, second = 0, dot = 0;
	size_t bytes;

	DO(cua_reduce(r->ctx, NULL, CUA_REDUCE_SUM, CUA_U64, n_now, d.values, NULL, &sum));
	TRUE(sum == (uint64_t)n_now * (n_now - 1) / 2);
	o.mode = CUA_REDUCE_FIXED;
	DO(cua_reduce_workspace(r->ctx, &o, CUA_REDUCE_SUM, CUA_F64, n_now, &bytes));
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_F64, n_now, d.x, NULL, &first));
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_F64, n_now, d.x, NULL, &second));
	TRUE(first == second);
	o.mode = CUA_REDUCE_EXACT;
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_F64, n_now, d.x, NULL, &first));
	DO(cua_dot_f64(r->ctx, n_now, d.x, d.y, &dot));
	DO(cua_reduce(r->ctx, NULL, CUA_REDUCE_MAX, CUA_F64, n_now, d.x, NULL, &first));
	/* arrays that may be NULL: in the loops of each width */
	o.mode = CUA_REDUCE_FAST;
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_U32, n_now, d.values, NULL, &sum));
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_F16, n_now, d.bytes, NULL, d.out));
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_U32, 0, NULL, NULL, &sum));
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_F16, 0, NULL, NULL, d.out));
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_DOT, CUA_U32, 0, NULL, NULL, &sum));
	DO(cua_reduce(r->ctx, &o, CUA_REDUCE_DOT, CUA_F16, 0, NULL, NULL, d.out));
	TRUE(sum == 0);
out:;
}

static void run_group(struct run *r)
{
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	struct cua_context *contexts[2] = {r->ctx, NULL};
	struct cua_group *group = NULL;
	const void *x[2] = {d.x, d.y};
	size_t n[2] = {n_now, n_now}, bytes;
	double sum[2] = {0, 0}, first;
	void *sums[2] = {&sum[0], &sum[1]};
	struct cua_sharded_map *map = NULL;
	const size_t one[2] = {1, 1};
	uint64_t numbers[2] = {3, 4};
	const void *numbers_at[2] = {&numbers[0], &numbers[1]};
	void *arrays[2] = {&numbers[0], &numbers[1]};
	uint64_t found[2] = {0, 0};
	void *found_at[2] = {&found[0], &found[1]};

	DO(cua_context_create(CUA_BACKEND_CPU, 0, &contexts[1]));
	DO(cua_group_create_devices(2, contexts, &group));
	DO(cua_group_reduce_workspace(group, NULL, CUA_REDUCE_SUM, CUA_F64, n_now, &bytes));
	DO(cua_group_reduce(group, NULL, CUA_REDUCE_SUM, CUA_F64, n, x, NULL, sums));
	TRUE(sum[0] == sum[1]);
	first = sum[0];
	o.mode = CUA_REDUCE_EXACT;
	DO(cua_group_reduce(group, &o, CUA_REDUCE_SUM, CUA_F64, n, x, NULL, sums));
	TRUE(sum[0] == sum[1] && sum[0] <= first + 1 && sum[0] >= first - 1);
	DO(cua_group_sum_workspace(group, CUA_U64, 1, &bytes));
	DO(cua_group_sum(group, CUA_U64, 1, arrays));
	TRUE(numbers[0] == 7 && numbers[1] == 7);
	DO(cua_sharded_map_create(group, NULL, CUA_U64, CUA_U64, 1000, &map));
	DO(cua_sharded_map_insert_n(map, one, numbers_at, numbers_at, NULL));
	DO(cua_sharded_map_size(map, &numbers[0]));
	TRUE(numbers[0] == 1);
	DO(cua_sharded_map_find_n(map, one, numbers_at, found_at, NULL));
	TRUE(found[0] == 0 && found[1] == 7);
out:
	cua_sharded_map_destroy(map);
	cua_group_destroy(group);
	cua_context_destroy(contexts[1]);
}

static void run_exact(struct run *r)
{
	struct cua_exact sum = CUA_EXACT_INIT, wild = CUA_EXACT_INIT;
	double result = 0;

	DO(cua_exact_sum(r->ctx, CUA_F64, n_now, d.x, &sum));
	DO(cua_exact_dot(r->ctx, CUA_F64, n_now, d.x, d.y, &sum));
	DO(cua_exact_finish(r->ctx, &sum, CUA_F64, &result));
	TRUE(result == cua_exact_round_f64(&sum));
	/* digits of no sum */
	for (int i = 0; i < CUA_EXACT_DIGITS; i++)
		wild.digit[i] = INT64_MAX;
	wild.pending = 1;
	cua_exact_merge(&sum, &wild);
	DO(cua_exact_sum(r->ctx, CUA_F64, n_now, d.x, &wild));
	DO(cua_exact_finish(r->ctx, &wild, CUA_F64, &result));
out:;
}

/* The status of a call that stores all results even if it returns FULL. */
static enum cua_status full_is_done(enum cua_status status)
{
	return status == CUA_ERROR_FULL ? CUA_OK : status;
}

static void run_exact_cell(struct run *r)
{
	struct cua_exact_cells_options o = CUA_EXACT_CELLS_OPTIONS_INIT;
	static const struct cua_exact_cell_f32 zeros;
	struct cua_exact_cells_f32 narrow;
	struct cua_exact_cells_f64 wide;
	struct cua_append *buffer = NULL;
	struct cua_append_view spills;
	struct cua_exact_fit fit;
	uint64_t lost = 77;
	void *cells = NULL;

	DO(cua_exact_range(r->ctx, CUA_F64, n_now, d.x, &fit));
	TRUE(fit.flags == 0 && fit.outside == 0);
	DO(cua_append_create(r->ctx, sizeof(struct cua_exact_spill), n_now - 1, &buffer));
	DO(cua_append_get_view(buffer, &spills));
	DO(cua_alloc_zero(r->ctx, n_now, sizeof(struct cua_exact_cell_f64), &cells));
	wide = cua_exact_cells_view_f64((struct cua_exact_cell_f64 *)cells, n_now, fit.unit,
					&spills);
	for (size_t i = 0; i < n_now; i++) {
		cua_exact_cell_add_f64(&wide, i, d.x[i]);
		/* the last cell has no room */
		cua_exact_cell_add_f64(&wide, i, 1e300);
	}
	o.overwrite = 1;
	o.lost = &lost;
	TRUE(cua_exact_cell_add_f64(&wide, n_now - 1, -1e300) == 0);
	DO(full_is_done(cua_exact_cells_finish_f64(r->ctx, &o, &wide, d.sums)));
	TRUE(lost == 1 && d.sums[0] == 1e300 && d.sums[n_now - 2] == 1e300 &&
	     d.sums[n_now - 1] != d.sums[n_now - 1]);
	narrow = cua_exact_cells_view_f32((struct cua_exact_cell_f32 *)cells, 1,
					  CUA_EXACT_CELL_UNIT_F32, NULL);
	DO(cua_fill(r->ctx, cells, 1, sizeof(zeros), &zeros));
	cua_exact_cell_add_f32(&narrow, 0, 3);
	DO(cua_exact_cells_finish_f32(r->ctx, &o, &narrow, d.out));
	TRUE(lost == 0);
out:
	cua_free(r->ctx, cells);
	cua_append_destroy(buffer);
}

static void run_histogram(struct run *r)
{
	struct cua_histogram_options o = CUA_HISTOGRAM_OPTIONS_INIT;
	uint64_t counts[256], outside[4];
	double sums[10], lower = 0, upper = 1, edges[11];
	size_t bytes;

	for (int i = 0; i <= 10; i++)
		edges[i] = i / 10.0;
	DO(cua_histogram_bytes(r->ctx, NULL, 4 * n_now, d.bytes, counts));
	TRUE(counts[0] + counts[1] > 0);
	DO(cua_histogram_workspace(r->ctx, &o, 10, &bytes));
	DO(cua_histogram_letters(r->ctx, NULL, n_now, d.bytes, counts));
	o.outside = outside;
	DO(cua_histogram_even(r->ctx, &o, CUA_F64, n_now, d.x, 10, &lower, &upper, counts));
	o.weights = d.y;
	o.weight_type = CUA_F64;
	DO(cua_histogram_edges(r->ctx, &o, CUA_F64, n_now, d.x, 10, edges, sums));
	TRUE(outside[0] + outside[1] == 0);
	/* without private bins */
	o.strategy = CUA_HISTOGRAM_INTERLEAVED;
	DO(cua_histogram_edges(r->ctx, &o, CUA_F64, n_now, d.x, 10, edges, sums));
out:;
}

static void run_segment(struct run *r)
{
	struct cua_segment_options o = CUA_SEGMENT_OPTIONS_INIT;
	const size_t segments = n_now / 4;
	uint64_t count = 0;
	size_t bytes;

	o.mode = CUA_REDUCE_FIXED;
	DO(cua_segmented_sum(r->ctx, CUA_U64, n_now, d.values, segments, d.offsets, d.out));
	TRUE(d.out[1] == 4 + 5 + 6 + 7);
	DO(cua_segmented_reduce_workspace(r->ctx, &o, CUA_REDUCE_SUM, CUA_F64, n_now, segments,
					  &bytes));
	DO(cua_segmented_reduce(r->ctx, &o, CUA_REDUCE_SUM, CUA_F64, n_now, d.x, segments,
				d.offsets, d.out));
	DO(cua_reduce_by_key(r->ctx, NULL, CUA_REDUCE_SUM, CUA_U64, CUA_U64, n_now, d.offsets,
			     d.values, N, d.out, d.out + N, &count));
	TRUE(count > n_now / 5);
out:;
}

static void run_scatter(struct run *r)
{
	struct cua_scatter_options o = CUA_SCATTER_OPTIONS_INIT;
	uint64_t skipped = 0;
	size_t bytes;

	o.overwrite = 1;
	o.skipped = &skipped;
	DO(cua_scatter_workspace(r->ctx, &o, CUA_SCATTER_ADD, CUA_U64, CUA_F64, n_now, N, &bytes));
	/* few targets, then many targets */
	DO(cua_scatter(r->ctx, &o, CUA_SCATTER_ADD, CUA_U64, CUA_F64, n_now, d.offsets, d.x, 10,
		       d.sums));
	TRUE(skipped == n_now - 3 && d.sums[4] == d.x[1] && d.sums[5] == 0);
	DO(cua_scatter(r->ctx, &o, CUA_SCATTER_ADD, CUA_U64, CUA_F64, n_now, d.offsets, d.x, N,
		       d.sums));
	TRUE(skipped == (n_now > N / 4 ? n_now - N / 4 : 0) && d.sums[400] == d.x[100]);
	DO(cua_scatter(r->ctx, &o, CUA_SCATTER_MEAN, CUA_U64, CUA_F64, n_now, d.offsets, d.y, N,
		       d.sums));
	TRUE(d.sums[400] == d.y[100]);
	/* rows of 4 elements, for several threads */
	o.width = 4;
	o.result_type = CUA_U64;
	DO(cua_scatter(r->ctx, &o, CUA_SCATTER_ADD, CUA_U64, CUA_U8, n_now, d.offsets, d.bytes, 100,
		       d.out));
	TRUE(skipped == n_now - 25 && d.out[4 * 4] == d.bytes[4] && d.out[4] == 0);
	DO(cua_scatter(r->ctx, &o, CUA_SCATTER_ADD, CUA_U64, CUA_U8, n_now, d.values, d.bytes,
		       N / 2, d.out));
	TRUE(d.out[7] == d.bytes[7]);
	o.width = 1;
	o.result_type = CUA_NONE;
	DO(cua_scatter(r->ctx, &o, CUA_SCATTER_MAX, CUA_U64, CUA_U64, n_now, d.values, d.values, N,
		       d.out));
	DO(cua_scatter_add(r->ctx, CUA_U64, CUA_U64, n_now, d.values, d.values, N, d.out));
	TRUE(skipped == 0 && d.out[n_now - 1] == 2 * (n_now - 1));
out:;
}

static void run_group_by(struct run *r)
{
	struct cua_group_by_options o = CUA_GROUP_BY_OPTIONS_INIT;
	struct cua_unique_options u = CUA_UNIQUE_OPTIONS_INIT;
	struct cua_aggregate a[2] = {{0}};
	uint64_t groups = 0;
	size_t bytes;

	o.order = CUA_KEY_ORDER_SORTED;
	a[0].op = CUA_AGGREGATE_COUNT;
	a[0].out = d.out;
	a[1].op = CUA_AGGREGATE_VARIANCE;
	a[1].type = CUA_F64;
	a[1].values = d.x;
	a[1].out = d.sums;
	DO(cua_group_by_workspace(r->ctx, &o, CUA_U64, n_now, a, 2, n_now, &bytes));
	DO(cua_group_by(r->ctx, &o, CUA_U64, n_now, d.offsets, a, 2, n_now, NULL, &groups));
	TRUE(groups == n_now && d.out[1] == 1 && d.sums[n_now - 1] == 0);
	u.counts = d.out;
	DO(cua_unique_workspace(r->ctx, &u, CUA_U64, n_now, 10, &bytes));
	DO(cua_unique(r->ctx, &u, CUA_U64, n_now, d.offsets, 10, NULL, &groups));
	TRUE(groups == n_now && d.out[9] == 1);
out:;
}

static void run_join(struct run *r)
{
	struct cua_join_options o = CUA_JOIN_OPTIONS_INIT;
	uint64_t pairs = 0;
	size_t bytes;

	o.kind = CUA_JOIN_LEFT;
	DO(cua_join_workspace(r->ctx, &o, CUA_U64, n_now, n_now, &bytes));
	DO(cua_join(r->ctx, &o, CUA_U64, n_now, d.offsets, n_now, d.offsets, n_now, d.out, NULL,
		    &pairs));
	TRUE(pairs == n_now && d.out[n_now - 1] == n_now - 1);
	DO(cua_is_in_workspace(r->ctx, NULL, CUA_U64, n_now, n_now, &bytes));
	DO(cua_is_in(r->ctx, NULL, CUA_U64, n_now, d.offsets, n_now - 1, d.offsets, d.flags));
	TRUE(d.flags[0] == 1 && d.flags[n_now - 1] == 0);
out:;
}

static void run_chained(struct run *r)
{
	struct cua_chained_report report = {.struct_size = sizeof(report)};
	struct cua_chained *table = NULL, *copy = NULL;
	struct cua_chained_view view;
	uint64_t n = 0;

	DO(cua_chained_create(r->ctx, NULL, n_now / 2, 2 * n_now, &table));
	DO(cua_chained_get_view(table, &view));
	DO(cua_chained_insert_n(table, n_now, d.keys, d.values));
	DO(cua_chained_build_n(table, n_now, d.keys, d.values));
	DO(cua_chained_find_n(table, n_now, d.keys, d.out, d.flags));
	TRUE(d.flags[n_now - 1] == 1);
	DO(cua_chained_count_n(table, n_now, d.keys, d.out));
	TRUE(d.out[0] == 2);
	DO(cua_chained_values(table, d.keys[0], 2, d.out, &n));
	TRUE(n == 2);
	DO(cua_chained_verify(table, &report));
	DO(cua_chained_copy(table, r->ctx, &copy));
	DO(cua_chained_verify(copy, &report));
	TRUE(report.entries == 2 * n_now);
	DO(cua_chained_size(copy, &n));
	DO(cua_chained_status(table));
	DO(cua_chained_clear(table));
out:
	cua_chained_destroy(copy);
	cua_chained_destroy(table);
}

static int count_pair(void *arg, const void *key, const void *value)
{
	(void)key;
	(void)value;
	++*(uint64_t *)arg;
	return 0;
}

static void run_map(struct run *r)
{
	struct cua_hashmap_options o;
	struct cua_hashmap_statistics statistics = {.struct_size = sizeof(statistics)};
	struct cua_hashmap *map = NULL, *other = NULL;
	uint64_t n = 0, size = 0, before = 0;
	size_t bytes;

	memset(&o, 0, sizeof(o));
	o.struct_size = sizeof(o);
	o.seed = 1;
	o.rejects = 10;
	o.grow_percent = 80;
	DO(cua_hashmap_create(r->ctx, &o, CUA_U64, CUA_U64, 100, &map));
	DO(cua_hashmap_insert_n(map, n_now, d.keys, d.values, d.flags));
	DO(cua_hashmap_insert_n(map, n_now, d.keys + n_now, d.values + n_now, NULL));
	DO(cua_hashmap_size(map, &size));
	TRUE(size == 2 * n_now);
	DO(cua_hashmap_erase_n(map, n_now, d.keys + n_now, NULL));
	DO(cua_hashmap_update_n(map, CUA_UPDATE_ADD, n_now, d.keys, d.values, NULL));
	DO(cua_hashmap_find_n(map, n_now, d.keys, d.out, d.flags));
	TRUE(d.out[n_now - 1] == 2 * d.values[n_now - 1] && d.flags[n_now - 1] == 1);
	DO(cua_hashmap_contains_n(map, n_now, d.keys, d.flags));
	DO(cua_hashmap_get_statistics(map, &statistics));
	TRUE(statistics.keys == n_now);
	before = n_now;
	/* a failed resize changes nothing */
	r->status = cua_hashmap_resize(map, 4 * n_now);
	r->line = __LINE__;
	TRUE(cua_hashmap_size(map, &size) != CUA_OK || size == before);
	DO(r->status);
	DO(cua_hashmap_create(r->ctx, NULL, CUA_U64, CUA_U64, n_now, &other));
	DO(cua_hashmap_build_workspace(other, n_now, &bytes));
	DO(cua_hashmap_build_n(other, n_now / 2, d.keys, d.values, NULL));
	DO(cua_hashmap_merge(other, map, CUA_HASHMAP_KEEP));
	DO(cua_hashmap_status(other));
	DO(cua_hashmap_rejected(map, 10, d.out, d.out + N, &n));
	DO(cua_hashmap_retrieve(other, CUA_HASHMAP_SORTED, N, d.out, d.out + N, &n));
	TRUE(n == n_now);
	DO(cua_hashmap_retrieve(other, CUA_HASHMAP_ANY, N, d.out, d.out + N, &n));
	DO(cua_hashmap_copy_to_host(other, N, d.out, d.out + N, &n));
	TRUE(n == n_now);
	n = 0;
	DO(cua_hashmap_for_each(other, count_pair, &n));
	TRUE(n == n_now);
	DO(cua_hashmap_clear(other));
out:
	cua_hashmap_destroy(other);
	cua_hashmap_destroy(map);
}

/* The file exists before, with old_keys keys. */
static void run_file(struct run *r)
{
	struct cua_hashmap *map = NULL, *read = NULL;
	uint64_t size = 0;

	DO(cua_hashmap_create(r->ctx, NULL, CUA_U64, CUA_U64, n_now, &map));
	DO(cua_hashmap_insert_n(map, n_now, d.keys, d.values, NULL));
	DO(cua_hashmap_save(map, d.path));
	DO(cua_hashmap_load(r->ctx, NULL, d.path, &read));
	DO(cua_hashmap_size(read, &size));
	TRUE(size == n_now);
	DO(cua_hashmap_find_n(read, n_now, d.keys, d.out, d.flags));
	TRUE(d.out[n_now - 1] == d.values[n_now - 1] && d.flags[n_now - 1] == 1);
out:
	cua_hashmap_destroy(read);
	cua_hashmap_destroy(map);
}

static void run_multimap(struct run *r)
{
	struct cua_multimap *mm = NULL;
	uint64_t n = 0, keys = 0;

	DO(cua_multimap_create(r->ctx, NULL, CUA_U64, CUA_U64, 2 * n_now, 2 * n_now, &mm));
	DO(cua_multimap_insert_n(mm, n_now, d.keys, d.values, d.flags));
	DO(cua_multimap_insert_n(mm, n_now, d.keys, d.values, NULL));
	DO(cua_multimap_size(mm, &n));
	DO(cua_multimap_keys(mm, &keys));
	TRUE(n == 2 * n_now && keys == n_now);
	DO(cua_multimap_count_n(mm, n_now, d.keys, d.out));
	TRUE(d.out[0] == 2);
	DO(cua_multimap_retrieve_n(mm, n_now / 4, d.keys, n_now, d.offsets + N / 2, d.out, &n));
	TRUE(n == 2 * (n_now / 4));
	DO(cua_multimap_retrieve(mm, N, d.out, d.out + N, &n));
	TRUE(n == 2 * n_now);
out:
	cua_multimap_destroy(mm);
}

static void run_locks(struct run *r)
{
	struct cua_spinlock *locks = NULL;
	struct cua_semaphore *semaphores = NULL;
	struct cua_lock_debug *table = NULL;
	struct cua_stripes stripes;
	struct cua_lock_verdict verdict;
	struct cua_hang_report report;
	uint64_t total;
	size_t n;

	memset(&stripes, 0, sizeof(stripes));
	DO(cua_stripes_create(r->ctx, 100, &stripes));
	DO(cua_spinlock_array_create(r->ctx, 100, &locks));
	DO(cua_semaphore_array_create(r->ctx, 100, 3, &semaphores));
	DO(cua_lock_debug_create(r->ctx, NULL, &table));
	DO(cua_lock_debug_read_verdicts(table, 0, 1, &verdict, &n, &total));
	DO(cua_lock_debug_read_reports(table, 0, 1, &report, &n, &total));
	DO(cua_lock_debug_dropped(table, &total));
	TRUE(total == 0);
out:
	cua_lock_debug_destroy(table);
	cua_semaphore_array_destroy(r->ctx, semaphores);
	cua_spinlock_array_destroy(r->ctx, locks);
	if (stripes.locks)
		cua_stripes_destroy(r->ctx, &stripes);
}

static const struct scenario {
	const char *name;
	void (*run)(struct run *r);
	unsigned least[3]; /* least requests with many elements, to notice an early end */
} scenarios[] = {
	{"context", run_context, {8, 0, 0}},
	{"memory", run_memory, {75, 0, 0}},
	{"append", run_append, {6, 0, 0}},
	{"filter", run_filter, {4, 0, 0}},
	{"reduce", run_reduce, {5, 1, 0}},
	{"exact", run_exact, {4, 0, 0}},
	{"exact cells", run_exact_cell, {6, 1, 0}},
	{"histogram", run_histogram, {5, 1, 0}},
	{"segment", run_segment, {5, 1, 0}},
	{"scatter", run_scatter, {4, 1, 0}},
	{"group by", run_group_by, {3, 1, 0}},
	{"join", run_join, {3, 1, 0}},
	{"chained", run_chained, {10, 1, 0}},
	{"map", run_map, {12, 1, 0}},
	{"file", run_file, {10, 1, 12}},
	{"multimap", run_multimap, {8, 1, 0}},
	{"locks", run_locks, {8, 0, 0}},
	{"group", run_group, {15, 1, 0}},
};

/* ---- runs ---- */

static int lowest_free_fd(void)
{
	int fd = __real_open("/dev/null", O_RDONLY);

	__real_close(fd);
	return fd;
}

/* The names in the folder of the file. */
static int names(void)
{
	DIR *folder = opendir(d.folder);
	int n = 0;

	ck_assert_ptr_nonnull(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n - 2;
}

static void write_old_file(void)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct cua_hashmap *map;

	old_keys = 77;
	ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U64, CUA_U64, 100, &map));
	ck_assert_cua(cua_hashmap_insert_n(map, (size_t)old_keys, d.keys, d.values, NULL));
	ck_assert_cua(cua_hashmap_save(map, d.path));
	cua_hashmap_destroy(map);
	cua_context_destroy(ctx);
}

static uint64_t keys_in_file(void)
{
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct cua_hashmap *map;
	uint64_t size;

	ck_assert_cua(cua_hashmap_load(ctx, NULL, d.path, &map));
	ck_assert_cua(cua_hashmap_size(map, &size));
	cua_hashmap_destroy(map);
	cua_context_destroy(ctx);
	return size;
}

/* Makes a single run. Returns its number of requests, or 0 if no request failed. */
static unsigned long try(const struct scenario *s, unsigned long at, int sticky, unsigned threads)
{
	struct run r = {NULL, CUA_OK, NULL, 0, 0};
	int fd = lowest_free_fd(), state;
	unsigned failures;

	memset(&the, 0, sizeof(the));
	n_live = lost_count = 0;
	mapped = 0;
	the.at = at;
	the.sticky = sticky;
	the.watched = 1;
	r.status = cua_context_create(CUA_BACKEND_CPU, 0, &r.ctx);
	if (!r.status)
		r.status = cua_context_set_threads(r.ctx, threads);
	if (!r.status)
		s->run(&r);
	cua_context_destroy(r.ctx);
	the.watched = 0;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);

	failures = the.failed[MEMORY] + the.failed[THREAD] + the.failed[FILES];
#define SAY "%s, request %lu%s of %u threads, line %d: "
#define WHERE s->name, at, sticky ? " and all later" : "", threads, r.line
	EXPECT(!r.wrong, SAY "not %s", WHERE, r.wrong);
	EXPECT(state == PTHREAD_CANCEL_ENABLE, SAY "the thread cannot be cancelled any more",
	       WHERE);
	EXPECT(!lost_count, SAY "the record is full", WHERE);
	EXPECT(!n_live, SAY "%u allocations are lost; status %s", WHERE, n_live,
	       cua_status_name(r.status));
	EXPECT(!mapped, SAY "%zu bytes stay mapped; status %s", WHERE, mapped,
	       cua_status_name(r.status));
	EXPECT(lowest_free_fd() == fd, SAY "a file is left open", WHERE);
	/*
	 * calls succeed without a thread that cannot be created, and without the sync of a folder
	 */
	if (r.status && !the.failed[FILES])
		EXPECT(r.status == CUA_ERROR_NO_MEMORY && the.failed[MEMORY], SAY "%s", WHERE,
		       cua_status_name(r.status));
	else if (r.status)
		EXPECT((r.status == CUA_ERROR_SYSTEM && r.error == EIO) ||
			       (r.status == CUA_ERROR_NO_MEMORY && the.failed[MEMORY]),
		       SAY "%s, errno %d", WHERE, cua_status_name(r.status), r.error);
	EXPECT(r.status || !the.serious, SAY "what was not written is no error", WHERE);
	EXPECT(at || (!r.status && !failures), SAY "%s", WHERE, cua_status_name(r.status));
	if (s->least[FILES]) {
		uint64_t keys = keys_in_file();

		EXPECT(names() == 1, SAY "there are %d names beside the file", WHERE, names() - 1);
		EXPECT(keys == n_now || (r.status && keys == (uint64_t)old_keys),
		       SAY "the file has %llu keys", WHERE, (unsigned long long)keys);
	}
	return failures ? the.n : 0;
}

static void every(const struct scenario *s, int sticky, unsigned threads)
{
	unsigned long k = 0, all;

	if (s->least[FILES])
		write_old_file();
	try(s, 0, 0, threads);
	all = the.n;
	for (int kind = 0; kind < 3 && n_now == N && threads > 1; kind++)
		EXPECT(the.asked[kind] >= s->least[kind], "%s makes %u requests of kind %d",
		       s->name, the.asked[kind], kind);
	for (k = 1;; k++) {
		if (s->least[FILES])
			write_old_file();
		if (!try(s, k, sticky, threads))
			break;
		EXPECT(k < 100000, "%s does not end", s->name);
	}
	/*
	 * a failure may save later requests, but each request of the failure-free run was made to
	 * fail
	 */
	EXPECT(k > all, "%s: %lu requests, of which %lu failed", s->name, all, k - 1);
	try(s, 0, 0, threads);
}

START_TEST(test_failures)
{
	const struct scenario *s = &scenarios[_i];
	const int deep = test_deep();
	const char *tmp = getenv("TMPDIR");

	for (size_t i = 0; i < 2 * N; i++) {
		d.keys[i] = i * 0x9e3779b97f4a7c15u;
		d.values[i] = i;
	}
	for (size_t i = 0; i < N; i++) {
		d.offsets[i] = i * 4;
		d.x[i] = (double)(i % 1000) / 1000;
		d.y[i] = 1 / (double)(i + 1);
	}
	for (size_t i = 0; i < 4 * N; i++)
		d.bytes[i] = (uint8_t)(i * 7);
	if (s->least[FILES]) {
		snprintf(d.folder, sizeof(d.folder), "%s/cua-injection-XXXXXX",
			 tmp && strlen(tmp) < 150 ? tmp : "/tmp");
		ck_assert_ptr_nonnull(mkdtemp(d.folder));
		snprintf(d.path, sizeof(d.path), "%s/map", d.folder);
	}
	n_now = 2000;
	every(s, 0, 2);
	every(s, 1, 2);
	n_now = N;
	if (deep) {
		for (unsigned threads = 1; threads <= 5; threads++) {
			every(s, 0, threads);
			every(s, 1, threads);
		}
	} else {
		/* with helpers */
		every(s, 0, 3);
	}
	if (s->least[FILES]) {
		unlink(d.path);
		rmdir(d.folder);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("injection");
	TCase *tc = tcase_create("injection");

	tcase_set_timeout(tc, 1200);
	tcase_add_loop_test(tc, test_failures, 0, (int)(sizeof(scenarios) / sizeof(scenarios[0])));
	suite_add_tcase(suite, tc);
	return test_run(suite, CUA_BACKEND_CPU);
}
