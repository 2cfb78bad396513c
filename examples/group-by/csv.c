/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "group-by.h"

#define END (-1)

void csv_die(const struct csv *c, uint64_t line, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	die("%.380s: line %" PRIu64 ": %s", c->name, line, text);
}

/* Reads until the block has `wanted` bytes, or the file ends. */
static void fill(struct csv *c, size_t wanted)
{
	c->at = 0;
	c->n = 0;
	while (c->n < wanted) {
		ssize_t n = read(c->fd, c->block + c->n, sizeof(c->block) - c->n);

		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			die("%.380s: %s", c->name, strerror(errno));
		if (n > 0)
			c->n += (size_t)n;
	}
}

void csv_open(struct csv *c, const char *path)
{
	const int from_stdin = !path || !strcmp(path, "-");

	c->name = from_stdin ? "standard input" : path;
	c->fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	c->line = 1;
	if (c->fd < 0)
		die("%.380s: %s", c->name, strerror(errno));
	/* a pipe may deliver the mark in several reads */
	fill(c, 3);
	if (c->n >= 3 && !memcmp(c->block, "\xef\xbb\xbf", 3))
		c->at = 3;
}

void csv_close(struct csv *c)
{
	if (c->fd > STDIN_FILENO)
		close(c->fd);
	c->fd = -1;
}

int csv_ended(struct csv *c)
{
	if (c->at == c->n)
		fill(c, 1);
	return c->at == c->n;
}

static inline int next_byte(struct csv *c)
{
	return c->at == c->n && csv_ended(c) ? END : c->block[c->at++];
}

static inline void append(const struct csv *c, struct bytes *to, int byte)
{
	if (!byte)
		csv_die(c, c->line, "byte 0x00 in a field");
	if (!to)
		return;
	if (to->n == to->room)
		to->p = (char *)must_grow(to->p, to->n + 1, &to->room, 1);
	to->p[to->n++] = (char)byte;
}

/* Appends the rest of a quoted field. Returns the first byte behind it. */
static int quoted_field(struct csv *c, struct bytes *to)
{
	const uint64_t line = c->line;

	for (;;) {
		int byte = next_byte(c);

		if (byte == '"') {
			byte = next_byte(c);
			if (byte != '"')
				return byte;
		}
		if (byte == END)
			csv_die(c, line, "a quoted field does not end");
		append(c, to, byte);
		c->line += byte == '\n';
	}
}

/* Appends a field that begins with `byte`. Returns the first byte behind it. */
static int plain_field(struct csv *c, struct bytes *to, int byte)
{
	for (; byte != ',' && byte != '\n' && byte != '\r' && byte != END; byte = next_byte(c)) {
		if (byte == '"')
			csv_die(c, c->line, "'\"' inside a field without quotes");
		append(c, to, byte);
	}
	return byte;
}

int csv_field(struct csv *c, struct bytes *to)
{
	int byte = next_byte(c);

	c->blank = byte == ',' || byte == '\n' || byte == '\r' || byte == END;
	byte = byte == '"' ? quoted_field(c, to) : plain_field(c, to, byte);
	if (byte == ',')
		return 1;
	if (byte == '\r') {
		byte = next_byte(c);
		if (byte != '\n')
			csv_die(c, c->line, "a carriage return that no newline follows");
	}
	if (byte != '\n' && byte != END)
		csv_die(c, c->line, "byte 0x%02x behind a quoted field", (unsigned)byte);
	c->line++;
	return 0;
}
