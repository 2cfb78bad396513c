/* SPDX-License-Identifier: MIT */
/* The progress of `cuatomic bench`: a line on standard error, renewed in place. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"

static int shown;

static int is_terminal(void)
{
	static int known = -1;
	const char *type = getenv("TERM");

	if (known < 0)
		known = isatty(STDERR_FILENO) && type && *type && strcmp(type, "dumb") != 0;
	return known;
}

/* The width of the terminal. */
static int columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 1)
		return 80;
	return size.ws_col;
}

/* Estimates the remaining seconds; -1: unknown. */
static double remaining(const struct results *r, double elapsed)
{
	const double limit = r->seconds;
	const double rows = r->planned > r->done ? (double)(r->planned - r->done) : 0;
	double left = -1;

	if (r->planned && r->done)
		left = rows * (r->last - r->start) / (double)r->done - (stats_now() - r->last);
	if (r->planned && r->done && left < 0)
		left = 0;
	if (limit > 0 && (left < 0 || limit - elapsed < left))
		left = limit > elapsed ? limit - elapsed : 0;
	return left;
}

void progress_show(const struct results *r)
{
	const double elapsed = stats_now() - r->start;
	const double left = remaining(r, elapsed);
	char rows[64], time[64] = "", line[256];

	if (!is_terminal())
		return;
	if (r->planned)
		snprintf(rows, sizeof(rows), "%zu of %zu rows", r->done, r->planned);
	else
		snprintf(rows, sizeof(rows), "%zu row%s", r->done, r->done == 1 ? "" : "s");
	if (left >= 0)
		snprintf(time, sizeof(time), ", about %.0f s remain", left);
	fflush(stdout);
	snprintf(line, sizeof(line), "%s: %s, %.0f s%s", r->bench, rows, elapsed, time);
	/* a line that fills the last column would wrap */
	fprintf(stderr, "\r\033[K%.*s", columns() - 1, line);
	fflush(stderr);
	shown = 1;
}

void progress_clear(void)
{
	if (!shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	shown = 0;
}
