/* SPDX-License-Identifier: MIT */
/* What the files of kmer-count share. A k-mer is a number of 2 k bits, its first letter the highest. */
#ifndef KMER_COUNT_H
#define KMER_COUNT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <zlib.h>

#include <cuatomic.h>

#define K_MAX 31u

/* ---- kmer-count.c: messages, by the main thread only ---- */

/* One line on stderr, after "kmer-count: "; the process ends with status 1. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Memory from malloc; ends the process when there is none. */
void *must_alloc(uint64_t n, size_t size);

/* ---- input.c: the bytes of a file, unpacked where it is gzip ---- */

#define INPUT_BLOCK ((size_t)65536)

struct input {
	const char *name;
	int fd;
	int gzip;           /* the bytes go through z */
	int member_ended;   /* a gzip member is complete, and another may follow */
	int padded;         /* zeros were found behind it, and nothing else may follow */
	uint64_t file_read; /* bytes of the file, packed as they are */
	size_t at, n;       /* raw[at, n) is not used yet */
	z_stream z;
	uint8_t raw[INPUT_BLOCK];
	char error[512]; /* what went wrong, after a call that returned -1 */
};

/* Opens a file, "-" for standard input. Returns 0 or -1. */
int input_open(struct input *in, const char *path);
/* Up to max bytes to p. Returns how many, 0 at the end, or -1. */
long input_read(struct input *in, uint8_t *p, size_t max);
/* Keeps a message, behind the file's name. Returns -1. */
int input_fail(struct input *in, const char *format, ...) __attribute__((format(printf, 2, 3)));
void input_close(struct input *in);

/* ---- reads.c: the letters of FASTA and FASTQ ---- */

/* A, C, G, T are 0 to 3. Every k-mer ends at a LETTER_BREAK: another letter, or the end of a sequence. */
#define LETTER_BREAK 4

enum reads_state { READS_BETWEEN, READS_TITLE, READS_SEQUENCE, READS_PLUS, READS_QUALITY };

struct reads {
	struct input in;
	enum reads_state state;
	int mark;                 /* what records begin with: '>', '@', or 0 before the first */
	int line_start;           /* nothing of this line of the sequence is read yet */
	int carriage_return;      /* the byte before, and a newline must follow */
	uint64_t line;            /* from 1 on */
	uint64_t length, quality; /* letters of this record, and characters of its quality */
	uint64_t lines;           /* of this record that hold letters */
	size_t at, n;             /* text[at, n) is not used yet */
	uint8_t text[INPUT_BLOCK];
};

/* Returns 0, or -1 with a message in in.error. */
int reads_open(struct reads *r, const char *path);
/* The next letters, up to max. Returns how many, 0 at the end, or -1 with a message in in.error. */
long reads_next(struct reads *r, uint8_t *letters, size_t max);
void reads_close(struct reads *r);

/* ---- counter.c: how often each k-mer came ---- */

struct counter {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	size_t batch;
	uint64_t *keys;   /* batch of them, in the backend's memory */
	uint8_t *results; /* the same */
	uint8_t *host_results;
	unsigned growths;
};

/* A counter that begins with room for `capacity` k-mers and takes up to `batch` a call. threads = 0: all. */
void counter_open(struct counter *c, enum cua_backend backend, unsigned threads, uint64_t capacity,
		  size_t batch);
/* Counts n k-mers in memory of the host, which are overwritten. */
void counter_add(struct counter *c, uint64_t *keys, size_t n);
/* The number of different k-mers. */
uint64_t counter_size(struct counter *c);
/* All of them and their counts, sorted by k-mer, in memory from malloc. Returns how many. */
uint64_t counter_read(struct counter *c, uint64_t **keys, uint64_t **counts);
void counter_close(struct counter *c);

/* ---- output.c: files that are there as a whole or not at all ---- */

struct output {
	const char *path;
	FILE *f;
	int folder;               /* of the target and of the temporary file */
	char *target, *temporary; /* names there; NULL: written in place, as pipes are */
};

/* "-" is standard output. Ends the process when nothing can be written there; NULL as path opens nothing. */
void output_open(struct output *o, const char *path);
/* Whether two that are open are one file. */
int output_same(const struct output *a, const struct output *b);
/* All n outputs get their names, once all are written. */
void output_finish(struct output *outputs, size_t n);

/* Lines "count k-mers": how many different k-mers came so often; those above `high` as high + 1. */
void write_histogram(FILE *f, const uint64_t *counts, uint64_t n, uint64_t high);
/* Lines "k-mer count" in the order of the k-mers. Sorts keys and counts. */
void write_dump(FILE *f, unsigned k, const uint64_t *keys, const uint64_t *counts, uint64_t n);

#endif /* KMER_COUNT_H */
