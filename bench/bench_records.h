/* SPDX-License-Identifier: MIT */
/*
 * The environment of a benchmark, and the records that it writes for `cuatomic bench`, in C and in
 * CUDA C.
 *
 * CUATOMIC_BENCH_RECORDS   number of the descriptor for the records; without it there are none
 * CUATOMIC_BENCH_FILTER    extended regular expression; only rows whose "bench/case/way" matches
 * CUATOMIC_BENCH_SUMMARY   another expression that the rows must match as well
 * CUATOMIC_BENCH_SECONDS   time limit of the whole benchmark
 * CUATOMIC_BENCH_SIZE      bytes of the arrays, or of the largest footprint, of the benchmarks of
 *                          memory; a suffix K, M or G is a power of 1024
 *
 * A record is a line of fields that are separated by tabs. In a field, "\\", "\t" and "\n" are
 * a backslash, a tab and a line break. The first field is the kind of the record:
 *
 * %head KEY VALUE          key: program, device, driver or versions
 * %plan ROWS               number of rows of the whole benchmark
 * %columns UNIT TITLE      the next rows have this unit, and notes with this title
 * %case CASE               the next rows belong to this case
 * %row CASE WAY KIND UNIT NOTE REASON SAMPLE...
 *                          kind: ceiling, peer or ours; reason: the end of the sampling;
 *                          no sample: the way is not available
 * %skip                    a row that the filter excludes
 * %state SM_MHZ MEMORY_MHZ [THROTTLE]
 *                          clocks of the GPU during the next %row, 0 if unknown; the reason why
 *                          they were reduced, empty if they were not, absent if unknown
 *
 * All other lines on the same descriptor are text for the reader of the table.
 */
#ifndef CUATOMIC_BENCH_RECORDS_H
#define CUATOMIC_BENCH_RECORDS_H

#include <errno.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_stats.h"

#define BENCH_ENV_RECORDS "CUATOMIC_BENCH_RECORDS"
#define BENCH_ENV_FILTER "CUATOMIC_BENCH_FILTER"
#define BENCH_ENV_SECONDS "CUATOMIC_BENCH_SECONDS"
#define BENCH_ENV_SUMMARY "CUATOMIC_BENCH_SUMMARY"
#define BENCH_ENV_SIZE "CUATOMIC_BENCH_SIZE"

/* The time limit of a row without CUATOMIC_BENCH_SECONDS. */
#define BENCH_ROW_SECONDS 1.0
/* The largest CUATOMIC_BENCH_SIZE. */
#define BENCH_MOST_BYTES ((uint64_t)1 << 46)
/* The rows that a benchmark without a plan is expected to have, and the least that remain. */
#define BENCH_ROWS_UNPLANNED 64
#define BENCH_ROWS_REMAIN 16

/* The clocks of the machine during a row. A zeroed struct is unknown. */
struct bench_machine_state {
	double sm_mhz, memory_mhz; /* 0: unknown */
	int knows_throttle;
	char throttle[48]; /* such as "power cap"; "": the clocks were not reduced */
};

struct bench_state {
	int ready;   /* the environment was read */
	int records; /* descriptor, or -1 */
	int filtered, summarized, quick;
	regex_t filter, summary;
	double seconds, start; /* seconds 0: no limit of the whole benchmark */
	double row_seconds;    /* time limit of a row then; 0: BENCH_ROW_SECONDS */
	uint64_t size;         /* bytes of the arrays; 0: not given */
	int planned, done;     /* rows; planned 0: unknown */
	char name[24];         /* of the benchmark */
	char unit[16];
	/* Describes the row that was just measured; set by programs of a GPU, otherwise NULL. */
	void (*clock)(struct bench_machine_state *state);
};

/* The files of a program share it, also in a program of several files. */
__attribute__((weak)) struct bench_state bench_state_shared;

static inline void bench_env_refuse(const char *name, const char *value)
{
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: %s: '%s' is not valid\n", name, value);
	exit(2);
}

static inline const char *bench_env_text(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* Parses a number of bytes with a suffix. Returns whether it is from 1 to BENCH_MOST_BYTES. */
static inline int bench_parse_size(const char *text, uint64_t *size)
{
	const char *suffix = text + strspn(text, "0123456789");
	const int shift = *suffix == 'K' ? 10 : *suffix == 'M' ? 20 : *suffix == 'G' ? 30 : 0;
	uint64_t bytes;

	if (suffix == text || suffix[shift ? 1 : 0])
		return 0;
	errno = 0;
	bytes = strtoull(text, NULL, 10);
	if (errno || !bytes || bytes > BENCH_MOST_BYTES >> shift)
		return 0;
	*size = bytes << shift;
	return 1;
}

/* Reads an expression. Returns whether there is one. */
static inline int bench_env_expression(const char *name, regex_t *expression)
{
	const char *text = bench_env_text(name);

	if (text && regcomp(expression, text, REG_EXTENDED | REG_NOSUB))
		bench_env_refuse(name, text);
	return text != NULL;
}

/* Returns the state, and reads the environment in the first call. */
static inline struct bench_state *bench_env(void)
{
	struct bench_state *s = &bench_state_shared;
	const char *text;
	char *end;

	if (s->ready)
		return s;
	s->ready = 1;
	s->start = stats_now();
	s->records = -1;
	text = bench_env_text(BENCH_ENV_RECORDS);
	if (text) {
		const long fd = strtol(text, &end, 10);

		if (*end || fd < 0 || fd > 1 << 20)
			bench_env_refuse(BENCH_ENV_RECORDS, text);
		s->records = (int)fd;
	}
	s->filtered = bench_env_expression(BENCH_ENV_FILTER, &s->filter);
	s->summarized = bench_env_expression(BENCH_ENV_SUMMARY, &s->summary);
	text = bench_env_text(BENCH_ENV_SIZE);
	if (text && !bench_parse_size(text, &s->size))
		bench_env_refuse(BENCH_ENV_SIZE, text);
	text = bench_env_text(BENCH_ENV_SECONDS);
	if (text) {
		s->seconds = strtod(text, &end);
		/* negated, so that a NaN fails */
		if (*end || !(s->seconds > 0))
			bench_env_refuse(BENCH_ENV_SECONDS, text);
	}
	return s;
}

/* CUATOMIC_BENCH_SIZE, or `normal` if it is not set. */
static inline uint64_t bench_size(uint64_t normal)
{
	return bench_env()->size ? bench_env()->size : normal;
}

/* Formats bytes in the largest unit that divides them. */
static inline const char *bench_bytes(char text[24], uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	const int one = bytes == 1;
	int unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, 24, "%llu %s", (unsigned long long)bytes, one ? "byte" : units[unit]);
	return text;
}

/* ---- records ---- */

struct record {
	size_t n;
	char text[8192];
};

static inline void record_begin(struct record *r, const char *kind)
{
	r->n = (size_t)snprintf(r->text, sizeof(r->text), "%%%s", kind);
}

/* Adds a field. A field that does not fit is cut. */
static inline void record_field(struct record *r, const char *text)
{
	/* the line break, and an escaped character */
	const size_t last = sizeof(r->text) - 3;

	if (r->n < last)
		r->text[r->n++] = '\t';
	for (; *text && r->n < last; text++) {
		const char *at = strchr("\\\t\n", *text);

		if (at) {
			r->text[r->n++] = '\\';
			r->text[r->n++] = "\\tn"[at - strchr("\\\t\n", '\\')];
		} else {
			r->text[r->n++] = *text;
		}
	}
}

/* Adds a number that keeps all its bits. */
static inline void record_number(struct record *r, double v)
{
	char text[32];

	snprintf(text, sizeof(text), "%.17g", v);
	record_field(r, text);
}

/* Writes the record, after everything that was printed before it. */
static inline void record_end(struct record *r)
{
	const int fd = bench_env()->records;
	size_t at = 0;

	r->text[r->n++] = '\n';
	fflush(stdout);
	while (fd >= 0 && at < r->n) {
		const ssize_t wrote = write(fd, r->text + at, r->n - at);

		if (wrote < 0 && errno != EINTR) {
			fprintf(stderr, "cuatomic bench: %s: %s\n", BENCH_ENV_RECORDS,
				strerror(errno));
			exit(1);
		}
		at += wrote > 0 ? (size_t)wrote : 0;
	}
}

/* Writes a record of one or two fields. second may be NULL. */
static inline void record_write(const char *kind, const char *first, const char *second)
{
	struct record r;

	if (bench_env()->records < 0)
		return;
	record_begin(&r, kind);
	record_field(&r, first);
	if (second)
		record_field(&r, second);
	record_end(&r);
}

/* ---- what a benchmark states about itself ---- */

/* Sets the name of the benchmark. */
static inline void bench_program(const char *name)
{
	struct bench_state *s = bench_env();

	snprintf(s->name, sizeof(s->name), "%s", name);
	record_write("head", "program", name);
}

static inline void bench_head(const char *key, const char *value)
{
	record_write("head", key, value);
}

/* Announces the number of rows. */
static inline void bench_plan(size_t rows)
{
	char text[24];

	bench_env()->planned = (int)rows;
	snprintf(text, sizeof(text), "%zu", rows);
	record_write("plan", text, NULL);
}

/* The number of rows that share the remaining time. */
static inline int bench_rows_left(const struct bench_state *s)
{
	const int rows = (s->planned ? s->planned : BENCH_ROWS_UNPLANNED) - s->done;
	const int least = s->planned ? 1 : BENCH_ROWS_REMAIN;

	return rows > least ? rows : least;
}

/* How long the next row may be sampled. */
static inline struct stats_plan bench_stats_plan(void)
{
	const struct bench_state *s = bench_env();
	struct stats_plan plan = {BENCH_RUNS, STATS_SAMPLES, 1,
				  s->row_seconds > 0 ? s->row_seconds : BENCH_ROW_SECONDS};

	if (s->quick) {
		plan.most = BENCH_RUNS;
		plan.converges = 0;
	}
	if (s->seconds > 0) {
		plan.least = s->summarized ? STATS_LEAST_KNOWN : STATS_LEAST;
		plan.seconds = (s->start + s->seconds - stats_now()) / bench_rows_left(s);
		if (plan.seconds < 0)
			plan.seconds = 0;
	}
	return plan;
}

/* The plan of a row of BENCH_RUNS or more runs; fewer runs are a fixed number. */
static inline struct stats_plan bench_runs_plan(int runs)
{
	struct stats_plan plan = bench_stats_plan();

	if (runs < BENCH_RUNS) {
		plan.least = plan.most = runs;
		plan.converges = 0;
	}
	return plan;
}

#endif /* CUATOMIC_BENCH_RECORDS_H */
