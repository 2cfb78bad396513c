/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench read`, `write` and `copy` on the CPU: arrays larger than every cache, in GB/s of
 * the bytes that are read and written, by size of the operand, unroll and access:
 *
 *   aligned   every operand, from a 64-byte boundary
 *   offset    every operand, from one operand after a 64-byte boundary
 *   strided   every 32nd operand; only its bytes count
 *
 * Each run continues at the end of the previous run, so that no cache keeps the operands. The sums
 * of reads are compared with plain loops, and the written bytes with the expected bytes.
 */
#include <string.h>

#include "cpu_bench.h"

#define STREAM_BYTES ((uint64_t)256 << 20)
#define STREAM_QUICK_BYTES ((uint64_t)1 << 20)
#define STREAM_STRIDE 32
#define MAX_OPERAND 32
/* Bytes of the array between two checks of the stop flag. */
#define STREAM_PIECE ((size_t)65536)
#define STREAM_ROW_SECONDS 0.3

/* ---- moves of a piece ---- */

typedef uint8_t operand1;
typedef uint16_t __attribute__((may_alias)) operand2;
typedef uint32_t __attribute__((may_alias)) operand4;
typedef uint64_t __attribute__((may_alias)) operand8;
typedef uint64_t __attribute__((vector_size(16), may_alias)) operand16;
typedef uint64_t __attribute__((vector_size(32), may_alias)) operand32;

/* Hides the value: the compiler can neither combine nor remove accesses. */
#define KEEP_SCALAR(v) __asm__ volatile("" : "+r"(v) : : "memory")
#if defined(__x86_64__)
#define KEEP_VECTOR(v) __asm__ volatile("" : "+x"(v) : : "memory")
#elif defined(__aarch64__)
#define KEEP_VECTOR(v) __asm__ volatile("" : "+w"(v) : : "memory")
#else
#define KEEP_VECTOR(v) __asm__ volatile("" : "+m"(v) : : "memory")
#endif

/* Operands of 32 bytes need AVX2. On other machines the compiler uses two registers. */
#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif

#define SUM_SCALAR(v) (v)
#define SUM_16(v) ((v)[0] + (v)[1])
#define SUM_32(v) ((v)[0] + (v)[1] + (v)[2] + (v)[3])

/* Reads alternate between four sums, because an addition waits for the previous addition to its sum. */
#define REPEAT_1(step, keep) step(0, keep, sum0)
#define REPEAT_4(step, keep)                                                                       \
	step(0, keep, sum0) step(1, keep, sum1) step(2, keep, sum2) step(3, keep, sum3)
#define REPEAT_16(step, keep)                                                                      \
	REPEAT_4(step, keep)                                                                       \
	step(4, keep, sum0) step(5, keep, sum1) step(6, keep, sum2) step(7, keep, sum3)            \
		step(8, keep, sum0) step(9, keep, sum1) step(10, keep, sum2) step(11, keep, sum3)  \
			step(12, keep, sum0) step(13, keep, sum1) step(14, keep, sum2)             \
				step(15, keep, sum3)

#define READ_STEP(j, keep, sum)                                                                    \
	{                                                                                          \
		sums v = in[(j)*stride];                                                           \
		keep(v);                                                                           \
		sum += v;                                                                          \
	}
#define WRITE_STEP(j, keep, sum)                                                                   \
	{                                                                                          \
		out[(j)*stride] = v;                                                               \
		keep(v);                                                                           \
	}
#define COPY_STEP(j, keep, sum)                                                                    \
	{                                                                                          \
		operand v = in[(j)*stride];                                                        \
		keep(v);                                                                           \
		out[(j)*stride] = v;                                                               \
	}

/* Moves a piece. Returns the sum of the operands read. */
typedef uint64_t (*move_piece)(char *to, const char *from);

/* A is the type of the sums; written operands are copies of the first at `from`. */
#define DEFINE_MOVES(attribute, bytes, A, keep, total, unroll, name, by)                           \
	attribute static uint64_t read_##bytes##_##unroll##_##name(char *to, const char *from)     \
	{                                                                                          \
		typedef operand##bytes operand;                                                    \
		enum { stride = (by), count = STREAM_PIECE / bytes / (by) };                       \
		const operand *in = (const void *)from;                                            \
		typedef A sums;                                                                    \
		sums sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};                               \
                                                                                                   \
		(void)to;                                                                          \
		for (int i = 0; i < count; i += unroll, in += unroll * stride) {                   \
			REPEAT_##unroll(READ_STEP, keep)                                           \
		}                                                                                  \
		sum0 += sum1 + sum2 + sum3;                                                        \
		return total(sum0);                                                                \
	}                                                                                          \
	attribute static uint64_t write_##bytes##_##unroll##_##name(char *to, const char *from)    \
	{                                                                                          \
		typedef operand##bytes operand;                                                    \
		enum { stride = (by), count = STREAM_PIECE / bytes / (by) };                       \
		operand *out = (void *)to, v = *(const operand *)(const void *)from;               \
                                                                                                   \
		for (int i = 0; i < count; i += unroll, out += unroll * stride) {                  \
			REPEAT_##unroll(WRITE_STEP, keep)                                          \
		}                                                                                  \
		return 0;                                                                          \
	}                                                                                          \
	attribute static uint64_t copy_##bytes##_##unroll##_##name(char *to, const char *from)     \
	{                                                                                          \
		typedef operand##bytes operand;                                                    \
		enum { stride = (by), count = STREAM_PIECE / bytes / (by) };                       \
		const operand *in = (const void *)from;                                            \
		operand *out = (void *)to;                                                         \
                                                                                                   \
		for (int i = 0; i < count;                                                         \
		     i += unroll, in += unroll * stride, out += unroll * stride) {                 \
			REPEAT_##unroll(COPY_STEP, keep)                                           \
		}                                                                                  \
		return 0;                                                                          \
	}

#define DEFINE_UNROLLS(attribute, bytes, A, keep, total)                                           \
	DEFINE_MOVES(attribute, bytes, A, keep, total, 1, all, 1)                                  \
	DEFINE_MOVES(attribute, bytes, A, keep, total, 4, all, 1)                                  \
	DEFINE_MOVES(attribute, bytes, A, keep, total, 16, all, 1)                                 \
	DEFINE_MOVES(attribute, bytes, A, keep, total, 1, strided, STREAM_STRIDE)                  \
	DEFINE_MOVES(attribute, bytes, A, keep, total, 4, strided, STREAM_STRIDE)                  \
	DEFINE_MOVES(attribute, bytes, A, keep, total, 16, strided, STREAM_STRIDE)

DEFINE_UNROLLS(, 1, uint64_t, KEEP_SCALAR, SUM_SCALAR)
DEFINE_UNROLLS(, 2, uint64_t, KEEP_SCALAR, SUM_SCALAR)
DEFINE_UNROLLS(, 4, uint64_t, KEEP_SCALAR, SUM_SCALAR)
DEFINE_UNROLLS(, 8, uint64_t, KEEP_SCALAR, SUM_SCALAR)
DEFINE_UNROLLS(, 16, operand16, KEEP_VECTOR, SUM_16)
DEFINE_UNROLLS(WIDE, 32, operand32, KEEP_VECTOR, SUM_32)

enum stream_kind { READ, WRITE, COPY, KINDS };

#define UNROLLS 3
static const int unrolls[UNROLLS] = {1, 4, 16};

#define MOVES_OF(kind, bytes, name)                                                                \
	{                                                                                          \
		kind##_##bytes##_1_##name, kind##_##bytes##_4_##name, kind##_##bytes##_16_##name   \
	}
#define MOVES(bytes)                                                                               \
	{                                                                                          \
		bytes,                                                                             \
		{                                                                                  \
			{MOVES_OF(read, bytes, all), MOVES_OF(read, bytes, strided)},              \
				{MOVES_OF(write, bytes, all), MOVES_OF(write, bytes, strided)},    \
				{MOVES_OF(copy, bytes, all), MOVES_OF(copy, bytes, strided)},      \
		}                                                                                  \
	}

static const struct operands {
	size_t bytes;
	move_piece moves[KINDS][2][UNROLLS]; /* by kind, strided and unroll */
} operands[] = {MOVES(1), MOVES(2), MOVES(4), MOVES(8), MOVES(16), MOVES(32)};

static const struct access {
	const char *name;
	int offset; /* in operands */
	int strided;
} accesses[] = {{"aligned", 0, 0}, {"offset", 1, 0}, {"strided", 0, 1}};

#define OPERANDS (sizeof(operands) / sizeof(operands[0]))
#define ACCESSES (sizeof(accesses) / sizeof(accesses[0]))

/* ---- the state of a row ---- */

struct stream_place {
	size_t start, next; /* pieces: the first of the run, and the one after its last */
	uint64_t sum;
};

static struct {
	enum stream_kind kind;
	size_t operand;   /* bytes */
	size_t stride;    /* in operands */
	size_t counted;   /* bytes of a piece that count */
	char *to;         /* first operand written, or NULL; zeros between two runs */
	const char *from; /* first operand read, or of writes the operand to write */
	move_piece move;
	struct stream_place *places; /* of the workers */
	uint64_t *sums;              /* of each piece, of reads */
	int has_sums;
	char *expected; /* a piece */
} stream_job;

static void stream_share(struct bench_worker *w)
{
	struct stream_place *p = &stream_job.places[w->index];
	const size_t step = stream_job.kind == WRITE ? 0 : STREAM_PIECE;
	uint64_t sum = 0, done = 0;
	size_t first, end, i;

	bench_share(w, w->run->items, &first, &end);
	i = p->next < first || p->next >= end ? first : p->next;
	p->start = i;
	do {
		sum += stream_job.move(stream_job.to + (stream_job.to ? i * STREAM_PIECE : 0),
				       stream_job.from + i * step);
		done += stream_job.counted;
		if (++i == end)
			i = first;
	} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));
	p->next = i;
	p->sum = sum;
	w->done = done;
}

/* ---- checks ---- */

/* Adds up `bytes` bytes as a read of one operand does. */
static uint64_t sum_of_operand(const char *p, size_t bytes)
{
	uint64_t sum = 0, v8;
	uint32_t v4;
	uint16_t v2;

	switch (bytes) {
	case 1: return (unsigned char)*p;
	case 2: memcpy(&v2, p, sizeof(v2)); return v2;
	case 4: memcpy(&v4, p, sizeof(v4)); return v4;
	default: break;
	}
	for (size_t i = 0; i < bytes; i += sizeof(v8)) {
		memcpy(&v8, p + i, sizeof(v8));
		sum += v8;
	}
	return sum;
}

static uint64_t sum_of_piece(const char *p)
{
	uint64_t sum = 0;

	for (size_t at = 0; at < STREAM_PIECE; at += stream_job.operand * stream_job.stride)
		sum += sum_of_operand(p + at, stream_job.operand);
	return sum;
}

/* The sums are computed for the first row of a case that is wanted. */
static void prepare_sums(struct bench_run *r)
{
	for (size_t i = 0; stream_job.kind == READ && !stream_job.has_sums && i < r->items; i++)
		stream_job.sums[i] = sum_of_piece(stream_job.from + i * STREAM_PIECE);
	stream_job.has_sums = 1;
}

/* The sum or the number of wrong pieces, of everything that the workers did. */
static uint64_t sums_read(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->threads; i++)
		sum += stream_job.places[i].sum;
	return sum;
}

static uint64_t sums_expected(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->threads; i++) {
		const uint64_t pieces = r->workers[i].done / stream_job.counted;
		uint64_t whole = 0, rest = 0;
		size_t first, end, at = stream_job.places[i].start;

		bench_share(&r->workers[i], r->items, &first, &end);
		for (size_t j = 0; j < end - first; j++) {
			whole += stream_job.sums[at];
			rest += j < pieces % (end - first) ? stream_job.sums[at] : 0;
			at = at + 1 == end ? first : at + 1;
		}
		sum += pieces / (end - first) * whole + rest;
	}
	return sum;
}

/* Fills job.expected with the piece as it must be after the run. */
static void expect_piece(size_t i)
{
	const size_t step = stream_job.kind == WRITE ? 0 : stream_job.operand * stream_job.stride;
	const char *from = stream_job.from + (stream_job.kind == WRITE ? 0 : i * STREAM_PIECE);

	if (stream_job.stride > 1)
		memset(stream_job.expected, 0, STREAM_PIECE);
	for (size_t at = 0; at < STREAM_PIECE;
	     at += stream_job.operand * stream_job.stride, from += step)
		memcpy(stream_job.expected + at, from, stream_job.operand);
}

static uint64_t stream_pieces_wrong(const struct bench_run *r)
{
	uint64_t wrong = 0;
	size_t checked = 0; /* pieces; shares may overlap */

	if (stream_job.kind == WRITE)
		expect_piece(0);
	for (unsigned i = 0; i < r->threads; i++) {
		size_t pieces = (size_t)(r->workers[i].done / stream_job.counted);
		size_t first, end, at = stream_job.places[i].start;

		bench_share(&r->workers[i], r->items, &first, &end);
		pieces = pieces < end - first ? pieces : end - first;
		if (first < checked)
			pieces = 0;
		for (; pieces; pieces--) {
			char *to = stream_job.to + at * STREAM_PIECE;

			if (stream_job.kind == COPY && stream_job.stride > 1)
				expect_piece(at);
			wrong += memcmp(to,
					stream_job.kind == COPY && stream_job.stride == 1
						? stream_job.from + at * STREAM_PIECE
						: stream_job.expected,
					STREAM_PIECE) != 0;
			memset(to, 0, STREAM_PIECE);
			at = at + 1 == end ? first : at + 1;
		}
		checked = end;
	}
	return wrong;
}

/* ---- rows ---- */

static const char *const stream_names[KINDS] = {"read", "write", "copy"};

/* The processor has registers for the operand. */
static int has_operand(size_t bytes)
{
#if defined(__x86_64__) && defined(__GNUC__)
	return bytes < 32 || __builtin_cpu_supports("avx2");
#else
	(void)bytes;
	return 1;
#endif
}

static void add_stream_row(const struct bench_options *o, struct table *t, size_t pieces,
			   unsigned threads, int unroll)
{
	char way[TABLE_NAME];
	struct bench_run r = {
		.name = stream_names[stream_job.kind],
		.way = way,
		.seconds = o->quick ? 0.2e-3 : 10e-3,
		.threads = threads,
		.items = pieces,
		.figure = bench_gb,
		.before = prepare_sums,
		.loop = stream_share,
		.result = stream_job.kind == READ ? sums_read : stream_pieces_wrong,
		.expected = stream_job.kind == READ ? sums_expected : bench_zero,
	};

	snprintf(way, sizeof(way), "%u thread%s, unroll %d", threads, threads == 1 ? "" : "s",
		 unroll);
	if (has_operand(stream_job.operand))
		bench_row(t, TABLE_OURS, &r);
	else
		table_add(t, TABLE_OURS, way, (struct figure){.runs = 0});
}

/* The arrays of a benchmark, and their ceiling. */
struct stream_arrays {
	char *from, *to; /* NULL: of reads there is no `to` */
	size_t pieces;
	struct bench_ceiling ceiling;
};

static void add_stream_case(const struct bench_options *o, struct stream_arrays *a,
			    enum stream_kind kind, const struct access *access,
			    const struct operands *operand)
{
	const size_t offset = (size_t)access->offset * operand->bytes;
	struct table t = {.n = 0};
	char name[sizeof(t.name)];

	stream_job.kind = kind;
	stream_job.operand = operand->bytes;
	stream_job.stride = access->strided ? STREAM_STRIDE : 1;
	stream_job.counted = STREAM_PIECE / stream_job.stride * (kind == COPY ? 2 : 1);
	stream_job.to = a->to ? a->to + offset : NULL;
	stream_job.from = kind == WRITE ? a->from : a->from + offset;
	stream_job.has_sums = 0;
	snprintf(name, sizeof(name), "%s, %zu byte%s", access->name, stream_job.operand,
		 stream_job.operand == 1 ? "" : "s");
	table_begin(&t, name);
	bench_vector_ceiling(o, &t, stream_names[kind], &a->ceiling);
	for (unsigned threads = 1;; threads = o->threads) {
		for (int i = 0; i < UNROLLS; i++) {
			stream_job.move = operand->moves[kind][access->strided][i];
			add_stream_row(o, &t, a->pieces, threads, unrolls[i]);
		}
		if (threads == o->threads)
			break;
	}
	table_end(&t);
}

static char *random_array(size_t bytes)
{
	uint64_t *words = bench_array(bytes);

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		words[i] = bench_mixed(i + 1);
	return (char *)words;
}

static struct stream_arrays make_arrays(const struct bench_options *o, enum stream_kind kind)
{
	const uint64_t bytes = bench_size(o->quick ? STREAM_QUICK_BYTES : STREAM_BYTES);
	struct stream_arrays a = {.pieces = bytes < STREAM_PIECE ? 1
								 : (size_t)(bytes / STREAM_PIECE)};
	/* the offset needs another operand */
	const size_t whole = a.pieces * STREAM_PIECE + 2 * MAX_OPERAND;

	a.from = random_array(kind == WRITE ? STREAM_PIECE : whole);
	if (kind != READ) {
		a.to = bench_array(whole);
		memset(a.to, 0, whole);
	}
	a.ceiling.from = kind == WRITE ? NULL : a.from;
	a.ceiling.to = a.to;
	a.ceiling.bytes = a.pieces * STREAM_PIECE;
	return a;
}

static void run_stream(const struct bench_options *o, enum stream_kind kind)
{
	struct stream_arrays a = make_arrays(o, kind);
	const size_t ways = (size_t)UNROLLS * (o->threads == 1 ? 1 : 2);
	char size[TOOL_BYTES_TEXT];

	bench_env()->row_seconds = STREAM_ROW_SECONDS;
	stream_job.places = tool_alloc(o->threads * sizeof(*stream_job.places));
	memset(stream_job.places, 0, o->threads * sizeof(*stream_job.places));
	stream_job.sums = tool_alloc(a.pieces * sizeof(*stream_job.sums));
	stream_job.expected = tool_alloc(STREAM_PIECE);
	printf("%s of %s; strided accesses are %d operands apart\n",
	       kind == COPY ? "arrays" : "an array", tool_bytes_text(size, a.pieces * STREAM_PIECE),
	       STREAM_STRIDE);
	bench_plan(ACCESSES * OPERANDS * (ways + 1));
	table_columns("GB/s", "");
	for (size_t i = 0; i < ACCESSES; i++)
		for (size_t j = 0; j < OPERANDS; j++)
			add_stream_case(o, &a, kind, &accesses[i], &operands[j]);
	free(stream_job.expected);
	free(stream_job.sums);
	free(stream_job.places);
	free(a.to);
	free(a.from);
}

void bench_read(const struct bench_options *o)
{
	run_stream(o, READ);
}

void bench_write(const struct bench_options *o)
{
	run_stream(o, WRITE);
}

void bench_copy(const struct bench_options *o)
{
	run_stream(o, COPY);
}
