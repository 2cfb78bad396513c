/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the FASTA and FASTQ parser of examples/kmer-count. A simple reference parser of whole
 * lines finds the letters, or refuses the text. The parser must agree with it for any length of its
 * reads and output, and on the text compressed by gzip. Input that is already gzip is parsed twice,
 * in different pieces, and the results are compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"

/* The parser's input instead of a file. Reads may be short, or interrupted by a signal. */
static struct {
	const uint8_t *p;
	size_t at, n;
	int broken; /* short reads */
	uint64_t state;
} file;

static ssize_t file_read(void *p, size_t n)
{
	uint64_t r = fuzz_random(&file.state);
	size_t some = file.n - file.at;

	if (file.broken && r % 8 == 0) {
		errno = EINTR;
		return -1;
	}
	if (some > n)
		some = n;
	if (file.broken && some > r / 8 % 16 + 1)
		some = r / 8 % 16 + 1;
	memcpy(p, file.p + file.at, some);
	file.at += some;
	return (ssize_t)some;
}

#define read(fd, p, n) file_read(p, n)
#define open(path, flags) 3
#define close(fd) ((void)(fd))
#include "../../examples/kmer-count/input.c"
#include "../../examples/kmer-count/reads.c"
#undef read
#undef open
#undef close

/*
 * The letters of a text, with adjacent breaks merged and no break at the end. n is -1 if the text
 * is refused.
 */
struct letters {
	uint8_t *p;
	long n;
	char error[512];
};

static void letters_add(struct letters *l, uint8_t letter)
{
	FUZZ_CHECK(letter <= LETTER_BREAK, "letter %d", letter);
	if (letter != LETTER_BREAK || !l->n || l->p[l->n - 1] != LETTER_BREAK)
		l->p[l->n++] = letter;
}

static void letters_end(struct letters *l)
{
	if (l->n > 0 && l->p[l->n - 1] == LETTER_BREAK)
		l->n--;
}

/* ---- the reference parser ---- */

static int code_of(int c)
{
	static const char all[] = "ACGT";
	int upper = c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;

	for (int i = 0; i < 4; i++)
		if (upper == all[i])
			return i;
	return (upper >= 'A' && upper <= 'Z') || c == '-' || c == '*' || c == '.' ? LETTER_BREAK
										  : -1;
}

/*
 * Removes the carriage return at the end of a line. Returns -1 if the line has a carriage return
 * elsewhere.
 */
static int line_end(const uint8_t *line, size_t *n)
{
	const uint8_t *at = *n ? memchr(line, '\r', *n) : NULL;

	if (at && at != line + *n - 1)
		return -1;
	*n -= at != NULL;
	return 0;
}

static int plain(const uint8_t *p, size_t size, struct letters *out)
{
	enum { BETWEEN, SEQUENCE, QUALITY } where = BETWEEN;
	uint64_t length = 0, signs = 0, lines = 0;
	int mark = 0, ended = 1;

	for (size_t at = 0, next, n; at < size; at = next) {
		const uint8_t *line = p + at, *end = memchr(line, '\n', size - at);
		size_t i = 0;

		n = end ? (size_t)(end - line) : size - at;
		next = at + n + (end != NULL);
		ended = end != NULL;
		/* any bytes may follow the mark that begins a record or the quality */
		if (where == SEQUENCE && mark == '>')
			while (i < n && (line[i] == ' ' || line[i] == '\t'))
				i++;
		if (i < n && ((where == BETWEEN &&
			       (mark ? line[i] == mark : line[i] == '>' || line[i] == '@')) ||
			      (where == SEQUENCE && mark == '>' && line[i] == '>') ||
			      (where == QUALITY && !length && line[i] == '@'))) {
			mark = line[i];
			letters_add(out, LETTER_BREAK);
			length = signs = lines = 0;
			where = SEQUENCE;
			/* an incomplete title makes the text invalid */
			if (!end && mark == '@')
				return -1;
			continue;
		}
		if (where == SEQUENCE && mark == '@' && n && line[0] == '+') {
			where = QUALITY;
			continue;
		}
		if (line_end(line, &n))
			return -1;
		if (where == BETWEEN && n)
			return -1;
		for (; where == SEQUENCE && i < n; i++) {
			int code = code_of(line[i]);

			if (code < 0 && (mark == '@' || (line[i] != ' ' && line[i] != '\t')))
				return -1;
			if (code >= 0) {
				letters_add(out, (uint8_t)code);
				length++;
			}
		}
		lines += where == SEQUENCE && n;
		if (where == QUALITY) {
			for (i = 0; i < n; i++)
				if (line[i] <= ' ' || line[i] >= 0x7f || signs++ == length)
					return -1;
			if (ended && signs < length && lines == 1)
				return -1;
			if (ended && signs == length)
				where = BETWEEN;
		}
	}
	return mark == '@' && (where == SEQUENCE || (where == QUALITY && signs != length)) ? -1 : 0;
}

/* ---- the parser under test ---- */

static void parse(const uint8_t *p, size_t n, int broken, size_t max, struct letters *out)
{
	static struct reads reads;
	uint8_t *letters = malloc(max);
	long got;

	FUZZ_CHECK(letters, "out of memory");
	file.p = p;
	file.n = n;
	file.at = 0;
	file.broken = broken;
	file.state = n;
	out->n = 0;
	out->error[0] = 0;
	if (reads_open(&reads, "name")) {
		out->n = -1;
	} else {
		while ((got = reads_next(&reads, letters, max)) > 0)
			for (long i = 0; i < got; i++)
				letters_add(out, letters[i]);
		if (got < 0)
			out->n = -1;
		reads_close(&reads);
	}
	letters_end(out);
	if (out->n < 0) {
		memcpy(out->error, reads.in.error, sizeof(out->error));
		FUZZ_CHECK(!strncmp(out->error, "name: ", 6) && strlen(out->error) > 6,
			   "message \"%s\"", out->error);
	}
	free(letters);
}

static void compare(const struct letters *a, const struct letters *b, const char *how)
{
	FUZZ_CHECK(a->n == b->n && (a->n < 0 || !memcmp(a->p, b->p, (size_t)a->n)),
		   "%s: %ld letters, %ld expected", how, b->n, a->n);
}

static uint8_t *packed(const uint8_t *p, size_t n, size_t *size)
{
	uint8_t *to = malloc(n + n / 8 + 256);
	z_stream z;

	FUZZ_CHECK(to, "out of memory");
	memset(&z, 0, sizeof(z));
	FUZZ_CHECK(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
		   "deflateInit2");
	z.next_in = (uint8_t *)p;
	z.avail_in = (uInt)n;
	z.next_out = to;
	z.avail_out = (uInt)(n + n / 8 + 256);
	FUZZ_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END, "deflate");
	*size = z.total_out;
	deflateEnd(&z);
	return to;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* gzip expands data by a factor of about 1000 at most */
	const int gzip = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
	struct letters letters[4];
	const size_t room = (gzip ? size * 1100 : size) + 16;
	uint8_t *bytes;
	size_t n;

	if (size > 65536)
		return 0;
	for (int i = 0; i < 4; i++) {
		letters[i].p = malloc(room);
		FUZZ_CHECK(letters[i].p, "out of memory");
	}
	parse(data, size, 0, 8192, &letters[1]);
	parse(data, size, 1, size % 7 + 1, &letters[2]);
	compare(&letters[1], &letters[2], "in pieces");
	/*
	 * if gzip data are damaged, either the text before the damage or the damage may be reported
	 */
	FUZZ_CHECK(gzip || !strcmp(letters[1].error, letters[2].error), "\"%s\" in pieces \"%s\"",
		   letters[1].error, letters[2].error);
	if (!gzip) {
		letters[0].n = 0;
		if (plain(data, size, &letters[0]))
			letters[0].n = -1;
		letters_end(&letters[0]);
		compare(&letters[0], &letters[1], "the text");
		bytes = packed(data, size, &n);
		parse(bytes, n, (int)size & 1, 4096, &letters[3]);
		compare(&letters[0], &letters[3], "packed");
		FUZZ_CHECK(!strcmp(letters[1].error, letters[3].error), "\"%s\" packed \"%s\"",
			   letters[1].error, letters[3].error);
		free(bytes);
	}
	for (int i = 0; i < 4; i++)
		free(letters[i].p);
	return 0;
}
