/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "kmer-count.h"

int input_fail(struct input *in, const char *format, ...)
{
	va_list arguments;
	char text[128];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* keep room for the error text if the name is long */
	snprintf(in->error, sizeof(in->error), "%.380s: %s", in->name, text);
	return -1;
}

/* Reads until raw has `wanted` bytes, or the file ends. Discards the content of raw. */
static int fill(struct input *in, size_t wanted)
{
	in->at = 0;
	in->n = 0;
	while (in->n < wanted) {
		ssize_t n = read(in->fd, in->raw + in->n, sizeof(in->raw) - in->n);

		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			return input_fail(in, "%s", strerror(errno));
		if (n > 0)
			in->n += (size_t)n;
	}
	in->file_read += in->n;
	return 0;
}

int input_open(struct input *in, const char *path)
{
	int from_stdin = !strcmp(path, "-");

	memset(in, 0, sizeof(*in));
	in->name = from_stdin ? "standard input" : path;
	in->fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return input_fail(in, "%s", strerror(errno));
	/* the first two bytes identify gzip; a pipe may deliver them in two reads */
	if (fill(in, 2)) {
		input_close(in);
		return -1;
	}
	if (in->n >= 2 && in->raw[0] == 0x1f && in->raw[1] == 0x8b) {
		if (inflateInit2(&in->z, 15 + 16) != Z_OK) {
			input_close(in);
			return input_fail(in, "zlib: out of memory");
		}
		in->gzip = 1;
	}
	return 0;
}

void input_close(struct input *in)
{
	if (in->gzip)
		inflateEnd(&in->z);
	in->gzip = 0;
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	in->fd = -1;
}

/* After a gzip member, accepts another member, padding zeros (as on tapes), or the end. */
static int next_member(struct input *in)
{
	while (in->at < in->n && !in->raw[in->at]) {
		in->padded = 1;
		in->at++;
	}
	if (in->at == in->n)
		return 0;
	if (in->padded || in->raw[in->at] != 0x1f)
		return input_fail(in, "broken gzip: other bytes follow its end");
	inflateReset(&in->z);
	in->member_ended = 0;
	return 0;
}

static long read_gzip(struct input *in, uint8_t *p, size_t max)
{
	in->z.next_out = p;
	in->z.avail_out = (uInt)max;
	while (in->z.avail_out == max) {
		int result;

		if (in->at == in->n && fill(in, 1))
			return -1;
		if (in->at == in->n)
			return in->member_ended ? 0 : input_fail(in, "broken gzip: it ends early");
		if (in->member_ended) {
			if (next_member(in))
				return -1;
			continue;
		}
		in->z.next_in = in->raw + in->at;
		in->z.avail_in = (uInt)(in->n - in->at);
		result = inflate(&in->z, Z_NO_FLUSH);
		in->at = in->n - in->z.avail_in;
		if (result == Z_STREAM_END)
			in->member_ended = 1;
		else if (result != Z_OK && result != Z_BUF_ERROR)
			return input_fail(in, "broken gzip: %s",
					  in->z.msg ? in->z.msg : zError(result));
	}
	return (long)(max - in->z.avail_out);
}

long input_read(struct input *in, uint8_t *p, size_t max)
{
	size_t n;

	if (in->gzip)
		return read_gzip(in, p, max);
	if (in->at == in->n && fill(in, 1))
		return -1;
	n = in->n - in->at < max ? in->n - in->at : max;
	memcpy(p, in->raw + in->at, n);
	in->at += n;
	return (long)n;
}
