/* SPDX-License-Identifier: MIT */
/*
 * The interfaces between the files of group-by. A row is a key and a value of the CSV file. All
 * functions end the process after an error.
 */
#ifndef GROUP_BY_H
#define GROUP_BY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cuatomic.h>

/* ---- group-by.c ---- */

/*
 * Prints "group-by: " and the message as a single line on stderr, and ends the process with status
 * 1.
 */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Allocates n elements with malloc. */
void *must_alloc(uint64_t n, size_t size);
/* Makes room for at least n elements, at least doubling *room, with realloc. */
void *must_grow(void *p, uint64_t n, uint64_t *room, size_t size);

/* ---- csv.c: the fields of a CSV file, as in RFC 4180 ---- */

#define CSV_BLOCK ((size_t)65536)

/* Bytes that grow. */
struct bytes {
	char *p;
	uint64_t n, room;
};

struct csv {
	const char *name;
	int fd;
	uint64_t line; /* number of the current line, from 1 */
	int blank;     /* the last field has no byte, and no quotes */
	size_t at, n;  /* block[at, n) is unread */
	unsigned char block[CSV_BLOCK];
};

/* Opens a file and skips a byte order mark of UTF-8; NULL or "-" is standard input. */
void csv_open(struct csv *c, const char *path);
/* Returns whether no byte is left. */
int csv_ended(struct csv *c);
/*
 * Appends the next field to *to; a NULL discards it. Returns whether another field of the same
 * record follows.
 */
int csv_field(struct csv *c, struct bytes *to);
void csv_close(struct csv *c);
/* Ends the process with the file's name, the line and the message. */
void csv_die(const struct csv *c, uint64_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));

/* ---- rows.c: the key and the value of each row ---- */

struct rows {
	uint64_t n;
	int numbers;       /* keys are numbers, else text */
	char *name;        /* of the key's column */
	double *number;    /* the keys, if they are numbers */
	struct bytes text; /* the keys, if they are text, in the order of rows */
	uint64_t *ends;    /* the end of each key in `text` */
	double *value;     /* 0 if there is none */
	uint8_t *valid;    /* 0 if the value is empty */
	uint64_t room;
};

/* Reads the columns named key and value of a file, and sets all of *r. */
void rows_read(struct rows *r, const char *path, const char *key, const char *value, int numbers);
/* The text of a row's key. */
const char *rows_key(const struct rows *r, uint64_t row, uint64_t *length);
/*
 * The order of the keys of two rows, as strcmp: by number, NaN last, or by the bytes of the text.
 */
int rows_compare(const struct rows *r, uint64_t a, uint64_t b);
/* Sorts the numbers of rows by key, and equal keys by number. */
void rows_sort(const struct rows *r, uint64_t *row, uint64_t n);
void rows_free(struct rows *r);

/* ---- aggregate.c: the groups, by cua_unique and cua_group_by ---- */

struct group {
	uint64_t first; /* the first row */
	uint64_t count; /* rows with a value */
	double sum, mean, least, most, variance;
};

struct groups {
	uint64_t n;
	struct group *group;
};

/* Groups the rows, and sorts the groups by key. threads = 0: the default of the context. */
void aggregate(const struct rows *r, enum cua_backend backend, unsigned threads,
	       struct groups *groups);

/* ---- reference.c: the same on a single thread, without cua_group_by ---- */

/* Compares all bits of all groups; NaN may have any bits. Ends the process if they differ. */
void check_groups(const struct rows *r, const struct groups *groups);

#endif /* GROUP_BY_H */
