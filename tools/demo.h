/* SPDX-License-Identifier: MIT */
/*
 * The demonstration: host calls of the library on the bytes and words of a file. Each result is
 * compared with a serial reference that shares no code with the library (demo_reference.c).
 */
#ifndef CUATOMIC_TOOLS_DEMO_H
#define CUATOMIC_TOOLS_DEMO_H

#include "tools.h"

enum { DEMO_CPU, DEMO_GPU, DEMO_DEVICES };

/* Width of the result column; a longer result shifts the columns after it. */
#define DEMO_RESULT_WIDTH 29

/* A line of the table. */
struct demo_row {
	const char *part;
	char result[64];
	double seconds[DEMO_DEVICES];
	int wrong;
};

struct demo {
	const uint8_t *data;
	size_t size;
	struct cua_context *ctx[DEMO_DEVICES]; /* NULL: device not used */
	int first;                             /* the first device in use */
	int n_rows, n_wrong;
};

/* The two phases. Each prints its rows. */
void demo_bytes(struct demo *d);
void demo_words(struct demo *d);

const char *demo_device_name(int device);
/* Reports the call that failed on a single line and ends the process. */
void demo_failed(const struct demo *d, int device, const char *part, enum cua_status status)
	__attribute__((noreturn));

/*
 * Compares a result with the reference. A difference makes the row wrong, and the first difference
 * of a row is reported on stderr. Returns 1 if they are equal.
 */
int demo_expect(struct demo_row *row, int device, const char *what, uint64_t got,
		uint64_t expected);
/* Compares like demo_expect; the float must hold the whole number exactly. */
int demo_expect_f64(struct demo_row *row, int device, const char *what, double got,
		    uint64_t expected);

void demo_print_row(struct demo *d, const struct demo_row *row);

/*
 * Calls the library on a device and adds the time until its work is done to the row. Inputs and
 * outputs are in the memory of the backend, so the time includes no copies.
 */
#define DEMO_RUN(d, device, row, call)                                                             \
	do {                                                                                       \
		double demo__start = tool_now();                                                   \
		enum cua_status demo__status = (call);                                             \
                                                                                                   \
		if (!demo__status)                                                                 \
			demo__status = cua_context_synchronize((d)->ctx[device]);                  \
		(row)->seconds[device] += tool_now() - demo__start;                                \
		if (demo__status)                                                                  \
			demo_failed(d, device, (row)->part, demo__status);                         \
	} while (0)

/* Calls the library without timing. */
#define DEMO_DO(d, device, what, call)                                                             \
	do {                                                                                       \
		enum cua_status demo__status = (call);                                             \
                                                                                                   \
		if (demo__status)                                                                  \
			demo_failed(d, device, what, demo__status);                                \
	} while (0)

/* ---- the serial reference (demo_reference.c) ---- */

/* A distinct word. */
struct reference_slot {
	uint64_t start, length; /* its first occurrence in the file, in bytes */
	uint64_t hash;
	uint64_t count; /* occurrences; 0: a free slot */
};

/* The distinct words of the file. */
struct reference_words {
	const uint8_t *data; /* the file */
	uint64_t words, distinct;
	uint64_t hashes; /* distinct hashes: fewer than words if hashes collide */
	struct reference_slot *slots;
	uint64_t room; /* slots, a power of two */
};

/* The sums, extremes and counts of a range of bytes. */
struct reference_bytes {
	uint64_t sum, smallest, largest;
	uint64_t count[256];
	uint64_t letters[7];
};

void reference_bytes(struct reference_bytes *r, const uint8_t *p, size_t n);
/* The sum of n products p[i] * p[i + 1]. */
uint64_t reference_dot(const uint8_t *p, size_t n);

/*
 * Finds the next word at or after *at: a run of bytes that are not ASCII white space. Sets its
 * start and length, and *at to its end. Returns 0 if there is no further word, else 1.
 */
int reference_next_word(const uint8_t *data, size_t size, size_t *at, size_t *start,
			size_t *length);

void reference_words_init(struct reference_words *r, const uint8_t *data);
void reference_words_add(struct reference_words *r, size_t start, size_t length, uint64_t hash);
/* Occurrences of all words with this hash; 0: no such word. */
uint64_t reference_words_count(const struct reference_words *r, uint64_t hash);
void reference_words_free(struct reference_words *r);

#endif /* CUATOMIC_TOOLS_DEMO_H */
