/* SPDX-License-Identifier: MIT */
/*
 * FASTA: a line with '>' and a title, then lines of letters up to the next line that begins with
 * '>'. FASTQ: a line with '@' and a title, lines of letters, a line with '+', and as many quality
 * characters as letters. If the letters are on a single line, the quality is, too.
 *
 * Letters may be of either case. Letters other than A, C, G and T, and '-', '*' and '.', are part
 * of no k-mer. A line ends with a newline, or a carriage return and a newline. Sequences and files
 * may be empty.
 */
#include <string.h>

#include "kmer-count.h"

/*
 * A byte that is not a letter of a sequence. It extends the letter codes 0 to 3 and LETTER_BREAK.
 */
#define LETTER_OTHER 5

static const uint8_t *letter_codes(void)
{
	static uint8_t codes[256];

	if (!codes['.']) {
		memset(codes, LETTER_OTHER, sizeof(codes));
		for (int c = 'A'; c <= 'Z'; c++)
			codes[c] = codes[c + 'a' - 'A'] = LETTER_BREAK;
		for (int i = 0; i < 4; i++)
			codes[(int)"ACGT"[i]] = codes[(int)"acgt"[i]] = (uint8_t)i;
		codes['-'] = codes['*'] = codes['.'] = LETTER_BREAK;
	}
	return codes;
}

int reads_open(struct reads *r, const char *path)
{
	r->state = READS_BETWEEN;
	r->mark = 0;
	r->carriage_return = 0;
	r->line = 1;
	r->at = r->n = 0;
	return input_open(&r->in, path);
}

void reads_close(struct reads *r)
{
	input_close(&r->in);
}

static int fail_byte(struct reads *r, int byte, const char *where)
{
	if (byte > ' ' && byte < 0x7f)
		return input_fail(&r->in, "line %llu: '%c' in %s", (unsigned long long)r->line,
				  byte, where);
	return input_fail(&r->in, "line %llu: byte 0x%02x in %s", (unsigned long long)r->line,
			  (unsigned)byte, where);
}

static int fail_quality(struct reads *r, const char *more)
{
	return input_fail(&r->in,
			  "line %llu: a sequence of %llu letters has %s%llu characters of quality",
			  (unsigned long long)r->line, (unsigned long long)r->length, more,
			  (unsigned long long)r->quality);
}

static void begin_record(struct reads *r)
{
	r->state = READS_TITLE;
	r->length = 0;
	r->quality = 0;
	r->lines = 0;
	r->line_start = 1;
}

/* Reads a byte between records: a newline, or the begin of a record. */
static int between(struct reads *r)
{
	int c = r->text[r->at];

	if (c == '\n') {
		r->line++;
	} else if (r->mark ? c == r->mark : c == '>' || c == '@') {
		r->mark = c;
		begin_record(r);
	} else if (r->mark) {
		return input_fail(&r->in, "line %llu: a record has to begin with '%c'",
				  (unsigned long long)r->line, r->mark);
	} else {
		return input_fail(&r->in, "neither FASTA nor FASTQ");
	}
	r->at++;
	return 0;
}

/* Skips the rest of a title or of a '+' line, which may contain any bytes. */
static void skip_line(struct reads *r)
{
	const uint8_t *end = (const uint8_t *)memchr(r->text + r->at, '\n', r->n - r->at);

	if (!end) {
		r->at = r->n;
		return;
	}
	r->at = (size_t)(end - r->text) + 1;
	r->line++;
	r->state = r->state == READS_TITLE ? READS_SEQUENCE : READS_QUALITY;
}

/* Reads a byte of a sequence that is not a letter. */
static int sequence_other(struct reads *r)
{
	int c = r->text[r->at];

	if (c == '\n') {
		r->line++;
		r->lines += !r->line_start;
		r->line_start = 1;
	} else if (r->line_start && r->mark == '>' && c == '>') {
		begin_record(r);
	} else if (r->line_start && r->mark == '@' && c == '+') {
		r->state = READS_PLUS;
	} else if (r->mark == '@' || (c != ' ' && c != '\t')) {
		return fail_byte(r, c, "a sequence");
	}
	r->at++;
	return 0;
}

static int quality(struct reads *r)
{
	int c = r->text[r->at];

	if (c == '@' && !r->length) {
		/* some files omit the empty quality line of an empty sequence */
		r->state = READS_BETWEEN;
		return 0;
	}
	r->at++;
	if (c == '\n') {
		if (r->quality == r->length)
			r->state = READS_BETWEEN;
		else if (r->lines == 1)
			return fail_quality(r, "");
		r->line++;
	} else if (c <= ' ' || c >= 0x7f) {
		return fail_byte(r, c, "a quality");
	} else if (r->quality == r->length) {
		return fail_quality(r, "more than ");
	} else {
		r->quality++;
	}
	return 0;
}

static int at_end(struct reads *r)
{
	if (r->mark != '@' || r->state == READS_BETWEEN)
		return 0;
	if (r->state >= READS_PLUS && r->quality == r->length)
		return 0;
	return input_fail(&r->in, "truncated FASTQ: its last record is not complete");
}

long reads_next(struct reads *r, uint8_t *letters, size_t max)
{
	const uint8_t *codes = letter_codes();
	size_t used = 0;

	while (used < max) {
		int error = 0;

		if (r->at == r->n) {
			long n = input_read(&r->in, r->text, sizeof(r->text));

			if (n < 0 || (n == 0 && at_end(r)))
				return -1;
			if (n == 0)
				break;
			r->at = 0;
			r->n = (size_t)n;
		}
		if (r->state == READS_TITLE || r->state == READS_PLUS) {
			if (r->state == READS_TITLE)
				letters[used++] = LETTER_BREAK;
			skip_line(r);
			continue;
		}
		if (r->carriage_return && r->text[r->at] != '\n')
			return fail_byte(r, '\r', "a line");
		r->carriage_return = r->text[r->at] == '\r';
		if (r->carriage_return) {
			r->at++;
			continue;
		}
		switch (r->state) {
		case READS_SEQUENCE: {
			size_t room = r->n - r->at < max - used ? r->n - r->at : max - used, i;

			for (i = 0; i < room; i++) {
				letters[used + i] = codes[r->text[r->at + i]];
				if (letters[used + i] == LETTER_OTHER)
					break;
			}
			used += i;
			r->at += i;
			r->length += i;
			if (i)
				r->line_start = 0;
			else
				error = sequence_other(r);
			break;
		}
		case READS_QUALITY: error = quality(r); break;
		default: error = between(r); break;
		}
		if (error)
			return -1;
	}
	return (long)used;
}
