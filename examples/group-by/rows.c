/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "group-by.h"

/* Below it, different integers are different as f64. */
#define INTEGER_LIMIT 0x1p53

/* The columns of a file, from 0. */
struct columns {
	uint64_t n, key, value;
};

/* ---- numbers ---- */

/* Ends the string, without a change of n. */
static void terminate(struct bytes *b)
{
	if (b->n == b->room)
		b->p = (char *)must_grow(b->p, b->n + 1, &b->room, 1);
	b->p[b->n] = 0;
}

/* Whether the text is a decimal number, an infinity or NaN. strtod accepts more. */
static int is_number(const char *text)
{
	const char *word = text + (*text == '+' || *text == '-');

	return (*text && text[strspn(text, "+-.0123456789eE")] == 0) || !strcasecmp(word, "inf") ||
	       !strcasecmp(word, "infinity") || !strcasecmp(word, "nan");
}

/*
 * Converts a field, without blanks at both ends, to a number. Returns 0 if the field is empty. b
 * has the field from `start`.
 */
static int parse_number(const struct csv *c, uint64_t line, struct bytes *b, double *number)
{
	char *text, *end;

	while (b->n && (b->p[b->n - 1] == ' ' || b->p[b->n - 1] == '\t'))
		b->n--;
	terminate(b);
	text = b->p + strspn(b->p, " \t");
	*number = 0;
	if (!*text)
		return 0;
	errno = 0;
	*number = is_number(text) ? strtod(text, &end) : 0;
	if (!is_number(text) || *end)
		csv_die(c, line, "'%.100s' is not a number", text);
	if (errno == ERANGE && isinf(*number))
		csv_die(c, line, "'%.100s' is too large", text);
	return 1;
}

/* Refuses a key that is not a number, and an integer that may equal another key as f64. */
static double parse_key(const struct csv *c, uint64_t line, struct bytes *b)
{
	double number;

	if (!parse_number(c, line, b, &number))
		csv_die(c, line, "a key is empty; it has to be a number");
	if (isfinite(number) && fabs(number) >= INTEGER_LIMIT && !strpbrk(b->p, ".eE"))
		csv_die(c, line, "'%.100s' is not below 2^53; keys of text keep all digits", b->p);
	return number;
}

/* ---- reading ---- */

/* Finds the columns in the header line. */
static struct columns read_header(struct csv *c, const char *key, const char *value)
{
	struct columns columns = {0, UINT64_MAX, UINT64_MAX};
	struct bytes name = {NULL, 0, 0};
	int more = 1;

	if (csv_ended(c))
		die("%.380s: no header line", c->name);
	for (; more; columns.n++) {
		const uint64_t line = c->line;
		int is_key, is_value;

		name.n = 0;
		more = csv_field(c, &name);
		terminate(&name);
		is_key = !strcmp(name.p, key);
		is_value = !strcmp(name.p, value);
		if ((is_key && columns.key != UINT64_MAX) ||
		    (is_value && columns.value != UINT64_MAX))
			csv_die(c, line, "two columns have the name '%.100s'", name.p);
		if (is_key)
			columns.key = columns.n;
		if (is_value)
			columns.value = columns.n;
	}
	free(name.p);
	if (columns.key == UINT64_MAX || columns.value == UINT64_MAX)
		die("%.380s: no column has the name '%.100s'", c->name,
		    columns.key == UINT64_MAX ? key : value);
	return columns;
}

static void make_room(struct rows *r)
{
	const uint64_t n = r->n + 1;
	uint64_t room = r->room;

	if (r->n < r->room)
		return;
	/* each array grows from the same room to the same room */
	r->value = (double *)must_grow(r->value, n, &room, sizeof(*r->value));
	room = r->room;
	r->valid = (uint8_t *)must_grow(r->valid, n, &room, sizeof(*r->valid));
	room = r->room;
	if (r->numbers)
		r->number = (double *)must_grow(r->number, n, &room, sizeof(*r->number));
	else
		r->ends = (uint64_t *)must_grow(r->ends, n, &room, sizeof(*r->ends));
	r->room = room;
}

/* Reads a record into key and value. Returns 0 for an empty line, which is no row. */
static int read_record(struct csv *c, const struct columns *columns, struct bytes *key,
		       struct bytes *value)
{
	const uint64_t line = c->line, key_start = key->n;
	uint64_t n = 0;
	int more = 1;

	value->n = 0;
	for (; more; n++) {
		struct bytes *to = n == columns->key ? key : n == columns->value ? value : NULL;

		more = csv_field(c, to);
		/* in a file of a single column, an empty line is a field */
		if (!n && !more && c->blank && columns->n > 1)
			return 0;
	}
	if (n != columns->n)
		csv_die(c, line, "%" PRIu64 " fields, but the header has %" PRIu64, n, columns->n);
	/* both may be the same column */
	if (columns->key == columns->value) {
		for (uint64_t i = key_start; i < key->n; i++) {
			if (value->n == value->room)
				value->p =
					(char *)must_grow(value->p, value->n + 1, &value->room, 1);
			value->p[value->n++] = key->p[i];
		}
	}
	return 1;
}

void rows_read(struct rows *r, const char *path, const char *key, const char *value, int numbers)
{
	/* static because it is large */
	static struct csv c;
	struct bytes number = {NULL, 0, 0}, field = {NULL, 0, 0};
	struct bytes *keys = numbers ? &number : &r->text;
	struct columns columns;

	memset(r, 0, sizeof(*r));
	r->numbers = numbers;
	r->name = (char *)must_alloc(strlen(key) + 1, 1);
	strcpy(r->name, key);
	csv_open(&c, path);
	columns = read_header(&c, key, value);
	while (!csv_ended(&c)) {
		const uint64_t line = c.line;

		number.n = 0;
		if (!read_record(&c, &columns, keys, &field))
			continue;
		make_room(r);
		if (numbers)
			r->number[r->n] = parse_key(&c, line, &number);
		else
			r->ends[r->n] = r->text.n;
		r->valid[r->n] = (uint8_t)parse_number(&c, line, &field, &r->value[r->n]);
		r->n++;
	}
	csv_close(&c);
	free(number.p);
	free(field.p);
}

void rows_free(struct rows *r)
{
	free(r->name);
	free(r->number);
	free(r->text.p);
	free(r->ends);
	free(r->value);
	free(r->valid);
}

/* ---- the order of keys ---- */

const char *rows_key(const struct rows *r, uint64_t row, uint64_t *length)
{
	const uint64_t start = row ? r->ends[row - 1] : 0;

	*length = r->ends[row] - start;
	return r->text.p ? r->text.p + start : "";
}

int rows_compare(const struct rows *r, uint64_t a, uint64_t b)
{
	uint64_t m, n;
	const char *x, *y;
	int order;

	if (r->numbers) {
		const double p = r->number[a], q = r->number[b];

		if (isnan(p) || isnan(q))
			return !!isnan(p) - !!isnan(q);
		return (p > q) - (p < q);
	}
	x = rows_key(r, a, &m);
	y = rows_key(r, b, &n);
	order = memcmp(x, y, m < n ? m : n);
	return order ? order : (m > n) - (m < n);
}

/* qsort passes no other argument; a single thread sorts */
static const struct rows *sorted;

static int compare_rows(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	const int order = rows_compare(sorted, x, y);

	return order ? order : (x > y) - (x < y);
}

void rows_sort(const struct rows *r, uint64_t *row, uint64_t n)
{
	sorted = r;
	qsort(row, n, sizeof(*row), compare_rows);
}
