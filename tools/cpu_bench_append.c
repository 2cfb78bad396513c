/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench append` on the CPU: filters of arrays larger than every cache, in GB/s of the
 * bytes that a filter has to move: elements and flags read, plus elements or indexes stored. The
 * ceiling is the faster of two copies by all threads: memcpy, and non-temporal vector stores. The
 * peers are plain serial loops.
 *
 * The elements are random. The limit is chosen so that `percent` of them are below it.
 */
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <emmintrin.h>
#endif

#include <cuatomic/filter.h>

#include "cpu_bench.h"

#define MOVED_BYTES ((size_t)64 << 20)
#define MOVED_QUICK_BYTES ((size_t)256 << 10)

enum result { VALUES, INDEXES, PARTITION };

/* ---- the cases ---- */

static const struct append_shape {
	const char *name;
	enum cua_type type;
	size_t size;
	int percent;
	int flagged;
	enum result result;
} append_shapes[] = {
	{"f32, 10 % kept", CUA_F32, 4, 10, 0, VALUES},
	{"f32, 50 % kept", CUA_F32, 4, 50, 0, VALUES},
	{"f32, 90 % kept", CUA_F32, 4, 90, 0, VALUES},
	{"f32, indexes of 50 %", CUA_F32, 4, 50, 0, INDEXES},
	{"f32, partition, 50 %", CUA_F32, 4, 50, 0, PARTITION},
	{"f32, 50 % by flags", CUA_F32, 4, 50, 1, VALUES},
	{"u8, 50 % kept", CUA_U8, 1, 50, 0, VALUES},
	{"u16, 50 % kept", CUA_U16, 2, 50, 0, VALUES},
	{"u64, 50 % kept", CUA_U64, 8, 50, 0, VALUES},
};

struct append_run {
	const struct append_shape *shape;
	struct cua_context *ctx;
	struct cua_append *buffer;
	size_t n, stored; /* elements read; elements or indexes stored */
	uint64_t kept;
	double bytes;
	double seconds;
	const void *x;
	const uint8_t *flags;
	char *out, *expected; /* room for n elements or indexes */
	char limit[8];
};

/* Bytes of an output item, an element or an index. */
static size_t stored_size(const struct append_shape *s)
{
	return s->result == INDEXES ? sizeof(uint32_t) : s->size;
}

/* Defines a serial filter that returns the number of selected elements. */
#define DEFINE_PLAIN(name, T)                                                                      \
	static uint64_t filter_##name##_plainly(const struct append_run *a, void *stored)          \
	{                                                                                          \
		const T *x = a->x, limit = *(const T *)(const void *)a->limit;                     \
		const uint8_t *flags = a->flags;                                                   \
		const size_t n = a->n;                                                             \
		uint32_t *indexes = stored;                                                        \
		T *out = stored;                                                                   \
		size_t count = 0, end = n;                                                         \
                                                                                                   \
		if (a->shape->flagged) {                                                           \
			for (size_t i = 0; i < n; i++)                                             \
				if (flags[i])                                                      \
					out[count++] = x[i];                                       \
		} else if (a->shape->result == INDEXES) {                                          \
			for (size_t i = 0; i < n; i++)                                             \
				if (x[i] < limit)                                                  \
					indexes[count++] = (uint32_t)i;                            \
		} else if (a->shape->result == PARTITION) {                                        \
			for (size_t i = 0; i < n; i++)                                             \
				if (x[i] < limit)                                                  \
					out[count++] = x[i];                                       \
				else                                                               \
					out[--end] = x[i];                                         \
		} else {                                                                           \
			for (size_t i = 0; i < n; i++)                                             \
				if (x[i] < limit)                                                  \
					out[count++] = x[i];                                       \
		}                                                                                  \
		return count;                                                                      \
	}
DEFINE_PLAIN(u8, uint8_t)
DEFINE_PLAIN(u16, uint16_t)
DEFINE_PLAIN(u64, uint64_t)
DEFINE_PLAIN(f32, float)

static uint64_t filter_plainly(const struct append_run *a, void *stored)
{
	switch (a->shape->type) {
	case CUA_U8: return filter_u8_plainly(a, stored);
	case CUA_U16: return filter_u16_plainly(a, stored);
	case CUA_U64: return filter_u64_plainly(a, stored);
	default: return filter_f32_plainly(a, stored);
	}
}

static uint64_t mixed_number(uint64_t z)
{
	z *= 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void make_filtered(struct append_run *a, void *x, uint8_t *flags)
{
	const struct append_shape *s = a->shape;
	const uint8_t limit8 = (uint8_t)(s->percent * 256 / 100);
	const uint16_t limit16 = (uint16_t)(s->percent * 65536 / 100);
	const uint64_t limit64 = UINT64_MAX / 100 * (uint64_t)s->percent;
	const float limit = (float)s->percent / 100;

	switch (s->type) {
	case CUA_U8: memcpy(a->limit, &limit8, sizeof(limit8)); break;
	case CUA_U16: memcpy(a->limit, &limit16, sizeof(limit16)); break;
	case CUA_U64: memcpy(a->limit, &limit64, sizeof(limit64)); break;
	default: memcpy(a->limit, &limit, sizeof(limit)); break;
	}
	for (size_t i = 0; i < a->n; i++) {
		uint64_t r = mixed_number(i + 1);

		switch (s->type) {
		case CUA_U8: ((uint8_t *)x)[i] = (uint8_t)(r >> 56); break;
		case CUA_U16: ((uint16_t *)x)[i] = (uint16_t)(r >> 48); break;
		case CUA_U64: ((uint64_t *)x)[i] = r; break;
		default: ((float *)x)[i] = (float)(r >> 40) * 0x1p-24f; break;
		}
		if (s->flagged)
			flags[i] = mixed_number(r) % 100 < (uint64_t)s->percent;
	}
}

/* ---- the ceilings ---- */

/*
 * Bytes that a worker copies between two checks of the stop flag. An operation is 1000 bytes read
 * or written.
 */
#define COPIED 64000

static const char *copy_from;
static char *copy_to;

static void copy_plain(void *to, const void *from)
{
	memcpy(to, from, COPIED);
}

#if defined(__x86_64__) && defined(__GNUC__)
static void copy_non_temporal(void *to, const void *from)
{
	__m128i *out = to;
	const __m128i *in = from;

	for (size_t i = 0; i < COPIED / sizeof(*in); i++)
		_mm_stream_si128(out + i, _mm_load_si128(in + i));
	_mm_sfence();
}
#endif

/* The pieces that a worker copies, at least 1 piece. */
static void copy_share_of(const struct bench_worker *w, size_t *first, size_t *end)
{
	size_t n = w->run->items;

	*first = n * w->index / w->run->threads;
	*end = n * (w->index + 1) / w->run->threads;
	if (*end == *first)
		*end = *first + 1;
}

/* Copies the worker's share over and over until the run stops. */
#define DEFINE_COPY_SHARE(name)                                                                    \
	static void name##_share(struct bench_worker *w)                                           \
	{                                                                                          \
		size_t first, end, i;                                                              \
		uint64_t done = 0;                                                                 \
                                                                                                   \
		copy_share_of(w, &first, &end);                                                    \
		i = first;                                                                         \
		do {                                                                               \
			name(copy_to + i * COPIED, copy_from + i * COPIED);                        \
			done += 2 * COPIED / 1000;                                                 \
			if (++i == end)                                                            \
				i = first;                                                         \
		} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));                       \
		w->done = done;                                                                    \
	}
DEFINE_COPY_SHARE(copy_plain)
#if defined(__x86_64__) && defined(__GNUC__)
DEFINE_COPY_SHARE(copy_non_temporal)
#endif

static void clear_copy(struct bench_run *r)
{
	memset(copy_to, 0, r->items * COPIED);
}

/*
 * Counts the copied pieces that differ from their source. Shares that overlap hold a single piece
 * each, and both workers write equal bytes to it.
 */
static uint64_t pieces_wrong(const struct bench_run *r)
{
	uint64_t wrong = 0;

	for (unsigned i = 0; i < r->threads; i++) {
		size_t pieces = (size_t)(r->workers[i].done / (2 * COPIED / 1000)), first, end;

		copy_share_of(&r->workers[i], &first, &end);
		for (size_t j = first; j < end && j - first < pieces; j++)
			wrong += memcmp(copy_to + j * COPIED, copy_from + j * COPIED, COPIED) != 0;
	}
	return wrong;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define CEILINGS 2
#else
#define CEILINGS 1
#endif

static void add_ceilings(const struct bench_options *o, struct table *t, const struct append_run *a,
			 size_t bytes)
{
	struct bench_run r = {
		.name = "append",
		.way = "ceiling: memcpy, all threads",
		.seconds = o->quick ? 1e-3 : 10e-3,
		.threads = o->threads,
		.items = bytes / COPIED,
		.before = clear_copy,
		.loop = copy_plain_share,
		.result = pieces_wrong,
		.expected = bench_zero,
	};

	copy_from = a->x;
	copy_to = a->out;
	bench_row(t, TABLE_CEILING, &r);
#if CEILINGS == 2
	r.way = "ceiling: non-temporal copy, all threads";
	r.loop = copy_non_temporal_share;
	bench_row(t, TABLE_CEILING, &r);
#endif
}

/* ---- measurement ---- */

enum append_way { LOOP, ANY_ORDER, ORDERED, BUFFER };

static enum cua_status call_filter(const struct append_run *a, enum append_way way, uint64_t *count)
{
	struct cua_filter_options options = CUA_FILTER_OPTIONS_INIT;
	const struct append_shape *s = a->shape;
	enum cua_status status;

	if (way == LOOP) {
		*count = filter_plainly(a, a->out);
		return CUA_OK;
	}
	options.ordered = way == ORDERED;
	options.partition = s->result == PARTITION;
	if (s->flagged)
		options.flags = a->flags;
	if (s->result == INDEXES)
		options.index_type = CUA_U32;
	if (way == BUFFER) {
		status = cua_append_reset(a->buffer);
		if (!status)
			status = cua_filter_append(a->ctx, &options, s->type, a->n, a->x, CUA_LT,
						   a->limit, a->buffer);
		return status ? status : cua_append_size(a->buffer, count);
	}
	if (s->result == INDEXES)
		options.indexes = a->out;
	return cua_filter_array(a->ctx, &options, s->type, a->n, a->x, CUA_LT, a->limit, a->n,
				s->result == INDEXES ? NULL : a->out, count);
}

/* A checksum of the items that does not depend on their order. */
static uint64_t sum_of(const char *items, size_t n, size_t size)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t v = 0;

		memcpy(&v, items + i * size, size);
		sum += mixed_number(v + 1);
	}
	return sum;
}

/*
 * Returns 0 if the output is right. An ordered output must equal the expected bytes. Otherwise the
 * checksums of the selected and of the rejected elements must be equal.
 */
static uint64_t errors_of(const struct append_run *a, enum append_way way, const char *got)
{
	const size_t size = stored_size(a->shape);
	const size_t kept = (size_t)a->kept;

	if (way == ORDERED)
		return memcmp(got, a->expected, a->stored * size) != 0;
	return (sum_of(got, kept, size) != sum_of(a->expected, kept, size)) +
	       (sum_of(got + kept * size, a->stored - kept, size) !=
		sum_of(a->expected + kept * size, a->stored - kept, size));
}

/* Measures a row, if it is wanted. A run repeats the call for about `seconds`. */
static void add_append(struct table *t, const struct append_run *a, enum append_way way,
		       const char *name)
{
	char row[sizeof(t->name) + TABLE_NAME + 4];
	struct stats s;
	double taken;
	void *got = a->out;
	int calls;

	if (!table_wants(t->name, name))
		return;
	snprintf(row, sizeof(row), "%s, %s", t->name, name);
	if (way == BUFFER)
		cua_append_items(a->buffer, &got);
	stats_begin(&s, bench_stats_plan());
	do {
		uint64_t count = 0;

		taken = 0;
		calls = 0;
		memset(got, 0, a->n * stored_size(a->shape));
		do {
			double start = tool_now();
			enum cua_status status = call_filter(a, way, &count);

			taken += tool_now() - start;
			if (status)
				tool_die("bench append: %s: %s", row, cua_strerror(status));
			count += bench_plant(row);
			if (count != a->kept)
				tool_die("bench append: %s: the result is %llu, not %llu", row,
					 (unsigned long long)count, (unsigned long long)a->kept);
			calls++;
		} while (taken < a->seconds);
		if (errors_of(a, way, got))
			tool_die("bench append: %s: the output differs from the serial filter",
				 row);
	} while (bench_more(&s, a->bytes * calls / taken * 1e-9));
	table_add(t, way == LOOP ? TABLE_PEER : TABLE_OURS, name, table_stats(&s));
}

static void set_threads(struct cua_context *ctx, unsigned threads)
{
	enum cua_status status = cua_context_set_threads(ctx, threads);

	if (status)
		tool_die("bench append: %s", cua_strerror(status));
}

/*
 * Fills `expected` with the selected elements and, for a partition, the rejected elements, both in
 * input order.
 */
static void fill_expected(struct append_run *a)
{
	const size_t size = stored_size(a->shape);
	size_t count = (size_t)filter_plainly(a, a->expected);

	a->kept = count;
	a->stored = a->shape->result == PARTITION ? a->n : count;
	/* the serial loop stores rejected elements from the end backwards, so reverse them */
	for (size_t i = count, j = a->stored; i < j; i++) {
		char item[8];

		if (i >= --j)
			break;
		memcpy(item, a->expected + i * size, size);
		memcpy(a->expected + i * size, a->expected + j * size, size);
		memcpy(a->expected + j * size, item, size);
	}
}

static size_t count_append_rows(void)
{
	const size_t shapes = sizeof(append_shapes) / sizeof(append_shapes[0]);
	size_t rows = (CEILINGS + 4) * shapes;

	for (size_t i = 0; i < shapes; i++)
		rows += append_shapes[i].result != PARTITION;
	return rows;
}

void bench_append(const struct bench_options *o)
{
	const size_t bytes = o->quick ? MOVED_QUICK_BYTES : MOVED_BYTES;
	char *expected = tool_alloc(bytes);
	struct cua_context *ctx;
	enum cua_status status;
	void *x = NULL, *out = NULL, *flags = NULL;

	status = cua_context_create(CUA_BACKEND_CPU, 0, &ctx);
	if (!status)
		status = cua_alloc(ctx, 1, bytes, &x);
	if (!status)
		status = cua_alloc(ctx, 1, bytes, &out);
	if (!status)
		status = cua_alloc(ctx, 1, bytes / 4, &flags);
	if (status)
		tool_die("bench append: %s", cua_strerror(status));
	printf("arrays of %zu KiB\n", bytes >> 10);
	bench_plan(count_append_rows());
	table_columns("GB/s", "");
	for (size_t i = 0; i < sizeof(append_shapes) / sizeof(append_shapes[0]); i++) {
		const struct append_shape *s = &append_shapes[i];
		struct append_run a = {
			.shape = s,
			.ctx = ctx,
			.n = bytes / s->size,
			.seconds = o->quick ? 1e-3 : 10e-3,
			.x = x,
			.flags = flags,
			.out = out,
			.expected = expected,
		};
		struct table table = {.n = 0};

		make_filtered(&a, x, flags);
		fill_expected(&a);
		a.bytes = (double)(a.n * s->size + (s->flagged ? a.n : 0) +
				   a.stored * stored_size(s));
		table_begin(&table, s->name);
		add_ceilings(o, &table, &a, bytes);
		add_append(&table, &a, LOOP, "a loop, one thread");
		set_threads(ctx, 1);
		add_append(&table, &a, ORDERED, "cua_filter_array in order, one thread");
		set_threads(ctx, o->threads);
		add_append(&table, &a, ORDERED, "cua_filter_array in order, all threads");
		add_append(&table, &a, ANY_ORDER, "cua_filter_array, all threads");
		if (s->result != PARTITION) {
			status = cua_append_create(ctx, stored_size(s), a.n, &a.buffer);
			if (status)
				tool_die("bench append: %s", cua_strerror(status));
			add_append(&table, &a, BUFFER, "cua_filter_append, all threads");
			cua_append_destroy(a.buffer);
		}
		table_end(&table);
	}
	free(expected);
	cua_free(ctx, flags);
	cua_free(ctx, out);
	cua_free(ctx, x);
	cua_context_destroy(ctx);
}
