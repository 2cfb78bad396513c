/* SPDX-License-Identifier: MIT */
/*
 * The demonstration: the host calls of the library on the bytes and words of one file, each result
 * checked against a serial reference that shares no code with the library (demo_reference.c).
 */
#ifndef CUATOMIC_TOOLS_DEMO_H
#define CUATOMIC_TOOLS_DEMO_H

#include "tools.h"

enum { DEMO_CPU, DEMO_GPU, DEMO_DEVICES };

/* The table's column of results; a longer one moves the others. */
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
	struct cua_context *ctx[DEMO_DEVICES]; /* NULL: not run there */
	int first;                             /* the first device that runs */
	int n_rows, n_wrong;
};

/* The phases, each of which prints its rows. */
void demo_bytes(struct demo *d);
void demo_words(struct demo *d);

const char *demo_device_name(int device);
/* Ends the process with one line about the call that failed. */
void demo_failed(const struct demo *d, int device, const char *part, enum cua_status status)
	__attribute__((noreturn));

/*
 * Compares a result with the reference's. A difference makes the row wrong; the first one in a row
 * is told on stderr. Returns 1 when they are equal.
 */
int demo_expect(struct demo_row *row, int device, const char *what, uint64_t got,
		uint64_t expected);
/* The same for a float that must hold this whole number exactly. */
int demo_expect_f64(struct demo_row *row, int device, const char *what, double got,
		    uint64_t expected);

void demo_print_row(struct demo *d, const struct demo_row *row);

/*
 * Runs one call of the library on a device and adds the time until its work is done to the row.
 * Data and results are in the backend's memory before and after: copies are not counted.
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

/* A call that is not timed. */
#define DEMO_DO(d, device, what, call)                                                             \
	do {                                                                                       \
		enum cua_status demo__status = (call);                                             \
                                                                                                   \
		if (demo__status)                                                                  \
			demo_failed(d, device, what, demo__status);                                \
	} while (0)

/* ---- the serial reference of words ---- */

/* Of a table of REFERENCE_PARTS tables, chosen by the top bits of the hash. */
struct reference_slot {
	uint64_t start; /* where the word first stands, plus 1; 0: an empty slot */
	uint64_t hash;
	uint64_t count; /* of all words with this hash; 0: its hash is another word's too */
};

#define REFERENCE_PARTS 256

/* The distinct words of the file, as strings. */
struct reference_words {
	const uint8_t *data;
	size_t size;
	uint64_t words, distinct, hashes;
	uint64_t bytes, claimed;
	struct {
		struct reference_slot *slots;
		uint64_t room, used;
	} part[REFERENCE_PARTS];
};

/* What there is to know of a run of bytes. */
struct reference_bytes {
	uint64_t sum, smallest, largest;
	uint64_t count[256];
	uint64_t letters[7];
};

void reference_bytes(struct reference_bytes *r, const uint8_t *p, size_t n);
/* The sum of n products p[i] * p[i + 1]. */
uint64_t reference_dot(const uint8_t *p, size_t n);

/*
 * The next word at or after *at: a run of bytes that are not ASCII white space. Returns 0 at the
 * end, else 1, with its place and *at behind it.
 */
int reference_next_word(const uint8_t *data, size_t size, size_t *at, size_t *start,
			size_t *length);

void reference_words_init(struct reference_words *r, const uint8_t *data, size_t size);
/* Room for so many words in each part, which saves growing. */
void reference_words_reserve(struct reference_words *r, uint64_t each);
/* Asks for the memory that adding a word with this hash will need. */
void reference_words_prefetch(const struct reference_words *r, uint64_t hash);
void reference_words_add(struct reference_words *r, size_t start, size_t length, uint64_t hash);
/* How often words with this hash come; 0 for never. */
uint64_t reference_words_count(const struct reference_words *r, uint64_t hash);
void reference_words_free(struct reference_words *r);

#endif /* CUATOMIC_TOOLS_DEMO_H */
