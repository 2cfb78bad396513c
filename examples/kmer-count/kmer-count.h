/* SPDX-License-Identifier: MIT */
/*
 * The interfaces between the files of kmer-count. A k-mer is a number of 2 k bits; its first letter
 * has the highest bits.
 */
#ifndef KMER_COUNT_H
#define KMER_COUNT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <zlib.h>

#include <cuatomic.h>

#define K_MAX 31u

/* ---- kmer-count.c: messages; called by the main thread only ---- */

/*
 * Prints "kmer-count: " and the message as a single line on stderr, and ends the process with
 * status 1.
 */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Allocates with malloc. Ends the process if memory is exhausted. */
void *must_alloc(uint64_t n, size_t size);

/* ---- input.c: the bytes of a file, decompressed if it is gzip ---- */

#define INPUT_BLOCK ((size_t)65536)

struct input {
	const char *name;
	int fd;
	int gzip;           /* decompress with z */
	int member_ended;   /* a gzip member has ended; another may follow */
	int padded;         /* zeros followed it; only zeros may follow */
	uint64_t file_read; /* bytes read from the file, before decompression */
	size_t at, n;       /* raw[at, n) is unread */
	z_stream z;
	uint8_t raw[INPUT_BLOCK];
	char error[512]; /* the message, after a call has returned -1 */
};

/* Opens a file; "-" is standard input. Returns 0, or -1 with a message in error. */
int input_open(struct input *in, const char *path);
/* Reads up to max bytes to p. Returns their number, 0 at the end, or -1 with a message in error. */
long input_read(struct input *in, uint8_t *p, size_t max);
/* Sets error to the file's name and the message. Returns -1. */
int input_fail(struct input *in, const char *format, ...) __attribute__((format(printf, 2, 3)));
void input_close(struct input *in);

/* ---- reads.c: the letters of FASTA and FASTQ ---- */

/*
 * Codes of letters: A, C, G, T are 0 to 3. LETTER_BREAK stands for other letters and for the start
 * of a sequence; no k-mer spans it.
 */
#define LETTER_BREAK 4

enum reads_state { READS_BETWEEN, READS_TITLE, READS_SEQUENCE, READS_PLUS, READS_QUALITY };

struct reads {
	struct input in;
	enum reads_state state;
	int mark;            /* first byte of a record, '>' or '@'; 0 before the first record */
	int line_start;      /* no byte of this line has been read */
	int carriage_return; /* the previous byte was one; a newline must follow */
	uint64_t line;       /* line number, from 1 */
	uint64_t length, quality; /* letters of this record, and characters of its quality */
	uint64_t lines;           /* lines of this record with letters */
	size_t at, n;             /* text[at, n) is unread */
	uint8_t text[INPUT_BLOCK];
};

/* Returns 0, or -1 with a message in in.error. */
int reads_open(struct reads *r, const char *path);
/*
 * Stores the codes of up to max letters. Returns their number, 0 at the end, or -1 with a message
 * in in.error.
 */
long reads_next(struct reads *r, uint8_t *letters, size_t max);
void reads_close(struct reads *r);

/* ---- sharded.c: the counts of k-mers by several ranks, in a map divided among them ---- */

#define RANKS_MAX 64u

struct sharded {
	uint32_t ranks; /* all are in this process */
	struct cua_context *contexts[RANKS_MAX];
	struct cua_group *group;
	struct cua_sharded_map *map;
	/* a part of a batch, and as many ones, in the memory of each rank */
	uint64_t *keys[RANKS_MAX], *ones[RANKS_MAX];
	uint64_t slots; /* of all shards */
	unsigned growths;
};

/* As the functions of counter.c, which also use these. s is all zero. */
void sharded_open(struct sharded *s, uint32_t ranks, enum cua_backend backend, unsigned threads,
		  uint64_t capacity, size_t batch);
void sharded_add(struct sharded *s, const uint64_t *keys, size_t n);
uint64_t sharded_read(struct sharded *s, uint64_t **keys, uint64_t **counts);
void sharded_close(struct sharded *s);

/* ---- counter.c: the counts of k-mers, in a map of a single context or by several ranks ---- */

struct counter {
	struct sharded sharded; /* used if it has ranks; the members below are then unused */
	struct cua_context *ctx;
	struct cua_hashmap *map;
	size_t batch;
	uint64_t *keys;   /* a batch, in the backend's memory */
	uint8_t *results; /* results of a batch, in the backend's memory */
	uint8_t *host_results;
	unsigned growths;
};

/*
 * Opens a counter with room for `capacity` k-mers and batches of up to `batch` k-mers. With a single
 * rank the counter has a context of its own and no group. threads = 0: the default of each context.
 * c is all zero.
 */
void counter_open(struct counter *c, uint32_t ranks, enum cua_backend backend, unsigned threads,
		  uint64_t capacity, size_t batch);
/* Counts n k-mers in host memory, and overwrites them. */
void counter_add(struct counter *c, uint64_t *keys, size_t n);
/*
 * Sets *keys and *counts to all k-mers and their counts, sorted by k-mer, in memory from malloc.
 * Returns their number.
 */
uint64_t counter_read(struct counter *c, uint64_t **keys, uint64_t **counts);
/* The backend that counts, and how often the table grew. */
enum cua_backend counter_backend(const struct counter *c);
unsigned counter_growths(const struct counter *c);
void counter_close(struct counter *c);

/* ---- output.c: output files that are written completely or not at all ---- */

struct output {
	const char *path;
	FILE *f;
	int folder; /* folder of the target and of the temporary file */
	char *target,
		*temporary; /* names in the folder; NULL: written in place, for example a pipe */
};

/* Opens an output; "-" is standard output, NULL opens nothing. Ends the process on failure. */
void output_open(struct output *o, const char *path);
/* Returns whether two open outputs are the same file. */
int output_same(const struct output *a, const struct output *b);
/* Renames all n temporary files to their targets, after all have been written. */
void output_finish(struct output *outputs, size_t n);

/*
 * Writes lines "count n": n distinct k-mers occurred `count` times. Counts above `high` are in line
 * high + 1.
 */
void write_histogram(FILE *f, const uint64_t *counts, uint64_t n, uint64_t high);
/* Writes lines "k-mer count" in the order of keys. */
void write_dump(FILE *f, unsigned k, const uint64_t *keys, const uint64_t *counts, uint64_t n);

#endif /* KMER_COUNT_H */
