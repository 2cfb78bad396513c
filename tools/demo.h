/* SPDX-License-Identifier: MIT */
/*
 * The demonstration: pieces of a file and their expected results (demo_piece.c), the library's calls
 * on a piece (demo_parts.c), the calls of a group (demo_group.c), the command (demo.c).
 */
#ifndef CUATOMIC_TOOLS_DEMO_H
#define CUATOMIC_TOOLS_DEMO_H

#include "tools.h"

/*
 * The columns of the table of results: the devices, or with --group a group of a single rank and the
 * group.
 */
enum { DEMO_CPU, DEMO_GPU, DEMO_COLUMNS };

struct demo;
struct demo_group;

/* A row of the table of results. */
struct demo_part {
	const char *name;
	void (*run)(struct demo *d);
	const char *unit; /* of the result */
	/* of a reduction */
	enum cua_reduce_op op;
	enum cua_finish_mode finish;
	enum cua_reduce_mode mode;
	double (*combine)(double, double); /* the results of two pieces; NULL: they are added */
	int decimals;                      /* of the result */
	double result[DEMO_COLUMNS], seconds[DEMO_COLUMNS];
	int wrong;
};
extern struct demo_part demo_parts[], demo_group_parts[]; /* the last has no name */

/* Arrays in host memory and on the device: the bytes in three types, words, queries, results. */
enum demo_array { U8, U32, F64, KEYS, POSITIONS, QUERIES, OUT_A, OUT_B, ARRAYS };

/* The hash of a word, and the position of its first byte. */
struct demo_word {
	uint64_t key, position;
};

/* The piece, and the part that runs on a device. */
struct demo {
	const uint8_t *bytes;
	size_t n;
	uint64_t count[256];                /* of each byte */
	double reduced[CUA_REDUCE_DOT + 1]; /* the bytes, by an enum cua_reduce_op */
	/* the words, sorted; words[first[q]] to words[first[q + 1] - 1] have the key queries[q] */
	struct demo_word *words;
	uint64_t *first, *queries;
	size_t n_words, n_keys, n_queries;
	void *host[ARRAYS], *on[ARRAYS];
	size_t array_bytes; /* of each array */
	struct demo_part *part;
	int column;        /* of the table */
	const char *where; /* its name in messages */
	struct cua_context *ctx;
	struct demo_group *group; /* instead of ctx */
	double clock;
};

/* Writes the arrays in host memory and the expected results of a piece. */
void demo_open(struct demo *d, const uint8_t *bytes, size_t n);
void demo_close(struct demo *d);

/* An order for qsort: by key, then by position. */
int demo_word_order(const void *a, const void *b);

/*
 * Starts the clock after a call, once its work is done. An error ends the process; errno and the error of
 * CUDA are those of the call.
 */
void demo_need(struct demo *d, enum cua_status status, int cuda_error);

/*
 * Compares a result. A difference makes the row wrong, and the first difference is reported. An
 * expected result is a whole number below 2^53, so a double holds it exactly, or a double with defined
 * bits.
 */
void demo_verify(struct demo *d, const char *what, double got, double expected);
/* Compares a result, and adds it to that of the row. */
void demo_verify_result(struct demo *d, const char *what, double got, double expected);

/* Runs all parts on a piece of the file, on each device with a context that is not NULL. */
void demo_run(struct cua_context *const contexts[DEMO_COLUMNS], const uint8_t *bytes, size_t n);

/* Creates the ranks of the option --group. An error ends the process. */
struct demo_group *demo_group_open(const struct tool_options *o);
/* Prints the devices of the ranks. */
void demo_group_print(const struct demo_group *g, const struct tool_options *o);
const char *demo_group_name(const struct demo_group *g, int column);
/* Runs all parts of demo_group_parts on a piece of the file. */
void demo_group_run(struct demo_group *g, const uint8_t *bytes, size_t n);
void demo_group_close(struct demo_group *g);

#endif /* CUATOMIC_TOOLS_DEMO_H */
