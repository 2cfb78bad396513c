/* SPDX-License-Identifier: MIT */
/*
 * The demonstration: host calls of the library on the bytes and words of a file. Each result is
 * compared with a serial reference that shares no code with the library (demo_reference.c).
 *
 * demo.c is the command. It runs two phases, demo_bytes.c and demo_words.c. demo_phase.c has the
 * functions that both use.
 */
#ifndef CUATOMIC_TOOLS_DEMO_H
#define CUATOMIC_TOOLS_DEMO_H

#include "tools.h"

enum { DEMO_CPU, DEMO_GPU, DEMO_DEVICES };

struct demo {
	const uint8_t *data;
	size_t size;
	struct cua_context *ctx[DEMO_DEVICES]; /* NULL: device not used */
	int first;                             /* the first device in use */
	int n_rows, n_wrong;
};

void demo_bytes(struct demo *d);
void demo_words(struct demo *d);

/* ---- a phase (demo_phase.c) ---- */

#define DEMO_ARRAYS 6
/* Width of the result column; a longer result shifts the columns after it. */
#define DEMO_RESULT_WIDTH 29

struct demo_row {
	const char *part;
	const char *unit; /* of the total */
	double total;     /* of the results of the first device; a whole number */
	char text[64];    /* the result, if it is not `total` and `unit` */
	double seconds[DEMO_DEVICES];
	int wrong;
};

struct demo_phase {
	struct demo *d;
	struct demo_row setup; /* not printed: the part that allocates and copies */
	/* arrays on the host, and arrays of the same sizes on each device in use */
	void *host[DEMO_ARRAYS], *arrays[DEMO_DEVICES][DEMO_ARRAYS];
	/* the part that runs: its device, the arrays there, its row */
	int device;
	struct cua_context *ctx;
	void **on;
	struct demo_row *row;
};

/* Allocates arrays. `what` names them in an error message. */
void demo_open(struct demo_phase *p, const char *what, const size_t bytes[DEMO_ARRAYS]);
void demo_close(struct demo_phase *p);
/* Selects a device. Returns 0 if it is not used. */
int demo_select(struct demo_phase *p, int device);
/* Copy the first bytes of an array. demo_download returns the host's array. */
void demo_upload(struct demo_phase *p, int array, size_t bytes);
void *demo_download(struct demo_phase *p, int array, size_t bytes);

/* Ends the process, and reports the row on a single line, unless the status is CUA_OK. */
void demo_need(const struct demo_phase *p, enum cua_status status);
/*
 * Calls the library and adds the time until its work is done to the row. Inputs and outputs are in
 * the memory of the backend, so the time includes no copies.
 */
#define DEMO_RUN(p, call)                                                                          \
	do {                                                                                       \
		double demo__start = tool_now();                                                   \
                                                                                                   \
		demo_need(p, call);                                                                \
		demo_need(p, cua_context_synchronize((p)->ctx));                                   \
		(p)->row->seconds[(p)->device] += tool_now() - demo__start;                        \
	} while (0)

/*
 * Compares a result with the reference. A difference makes the row wrong, and the first difference
 * of a row is reported on stderr. Returns 1 if they are equal. A long double holds each uint64_t
 * and each double exactly.
 */
int demo_expect(struct demo_phase *p, const char *what, long double got, uint64_t expected);
/* Adds a result to the total of the row, if the device is the first. */
void demo_add(struct demo_phase *p, double result);

void demo_print_columns(const char *part, const char *result, const char *cpu, const char *gpu,
			const char *verified);
void demo_print_row(struct demo *d, const struct demo_row *row);

/* ---- the serial reference (demo_reference.c) ---- */

/* The sums, extremes and counts of a range of bytes. */
struct reference_bytes {
	uint64_t sum, dot, smallest, largest;
	uint64_t count[256], letters[7], even[16];
};

/* If `more` is 1, dot also multiplies the last byte by the byte after the range. */
void reference_bytes(struct reference_bytes *r, const uint8_t *p, size_t n, int more);

/*
 * Finds the first word at or after *start: a run of bytes that are not ASCII white space. Sets
 * *start to its first byte and returns its length; 0: there is no word.
 */
size_t reference_next_word(const uint8_t *data, size_t size, size_t *start);

struct reference_word {
	uint64_t hash;
	const uint8_t *text;
	size_t length;
};

/* Orders words by hash, and words with equal hashes by text, for qsort. 0: the same word. */
int reference_order(const void *a, const void *b);
/* The number of sorted words with this hash. */
uint64_t reference_count(const struct reference_word *words, size_t n, uint64_t hash);

#endif /* CUATOMIC_TOOLS_DEMO_H */
