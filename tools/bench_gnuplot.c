/* SPDX-License-Identifier: MIT */
/*
 * The program gnuplot. Its script is a file without a name, so gnuplot may end before it has read
 * the script, and its output is the plot.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_plot.h"
#include "json.h"

static int is_program(const char *path)
{
	struct stat s;

	return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

/* Returns the path of the first program with this name in the folders of PATH, or NULL. */
static char *search_path(const char *name)
{
	const char *folder = getenv("PATH");

	while (folder && *folder) {
		const size_t length = strcspn(folder, ":");
		const size_t room = length + strlen(name) + 3;
		char *path = tool_alloc(room);

		/* an empty folder is the current folder */
		snprintf(path, room, "%.*s%s/%s", (int)length, folder, length ? "" : ".", name);
		if (is_program(path))
			return path;
		free(path);
		folder += length + (folder[length] == ':');
	}
	return NULL;
}

char *gnuplot_find(void)
{
	const char *name = getenv("CUATOMIC_GNUPLOT");
	char *path;

	if (!name || !*name)
		name = "gnuplot";
	if (!strchr(name, '/'))
		path = search_path(name);
	else
		path = is_program(name) ? results_copy(name) : NULL;
	if (!path)
		tool_error("%s was not found; option '--plot' needs the program gnuplot", name);
	return path;
}

FILE *gnuplot_script(void)
{
	FILE *script = tmpfile();

	if (!script)
		tool_error("script of gnuplot: %s", strerror(errno));
	return script;
}

/* Copies the last line that is not empty. */
static void last_line(FILE *f, char *text, size_t room)
{
	char line[256];

	*text = '\0';
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		const char *start = line + strspn(line, " \t\r\n");

		line[strcspn(line, "\r\n")] = '\0';
		if (*start)
			snprintf(text, room, "%s", start);
	}
}

static int run_failed(const struct bench_file *f, int status, FILE *errors)
{
	char why[256];

	last_line(errors, why, sizeof(why));
	if (WIFSIGNALED(status))
		tool_error("%s: gnuplot was ended by signal %d (%s)", f->path, WTERMSIG(status),
			   strsignal(WTERMSIG(status)));
	else
		tool_error("%s: gnuplot failed with status %d%s%s", f->path, WEXITSTATUS(status),
			   *why ? ": " : "", why);
	return TOOL_FAILED;
}

/*
 * Whether a regular file has the end of a picture. gnuplot ignores errors of its output, such as
 * a full disk, and succeeds.
 */
static int is_whole(FILE *f)
{
	/* the last bytes, before a line break: of SVG, and of the last chunk of PNG */
	static const char *const ends[] = {"</svg>", "IEND\xae\x42\x60\x82"};
	char last[16];
	struct stat s;
	size_t n;

	if (fstat(fileno(f), &s) || !S_ISREG(s.st_mode))
		return 1;
	if (s.st_size < (off_t)sizeof(last) ||
	    pread(fileno(f), last, sizeof(last), s.st_size - (off_t)sizeof(last)) !=
		    (ssize_t)sizeof(last))
		return 0;
	for (n = sizeof(last); n && (last[n - 1] == '\n' || last[n - 1] == '\r');)
		n--;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const size_t length = strlen(ends[i]);

		if (n >= length && !memcmp(last + n - length, ends[i], length))
			return 1;
	}
	return 0;
}

int gnuplot_run(const char *program, FILE *script, const struct bench_file *f)
{
	/* without the user's settings */
	char *argv[] = {(char *)program, (char *)"-d", NULL};
	FILE *errors = gnuplot_script();
	struct stat s;
	int status = TOOL_FAILED, ended;

	if (!errors)
		return TOOL_FAILED;
	if (fflush(script) || ferror(script) || lseek(fileno(script), 0, SEEK_SET)) {
		tool_error("script of gnuplot: %s", strerror(errno));
	} else if (!bench_run_filter(argv, fileno(script), fileno(f->stream), fileno(errors),
				     &ended)) {
		if (ended)
			run_failed(f, ended, errors);
		else if (!fstat(fileno(f->stream), &s) && S_ISREG(s.st_mode) && !s.st_size)
			tool_error("%s: gnuplot wrote nothing", f->path);
		else if (!is_whole(f->stream))
			tool_error("%s: gnuplot could not write the whole picture", f->path);
		else
			status = TOOL_OK;
	}
	fclose(errors);
	return status;
}

/* ---- strings ---- */

/*
 * Whether SVG, which is XML, and a line of text may contain the character of this length. `before`
 * is the number of characters before it.
 */
static int is_printable(const unsigned char *c, int length, size_t before)
{
	/* gnuplot leaves '>' as it is, and XML has no "]]>" in a text */
	if (*c == '>' && before > 1 && c[-1] == ']' && c[-2] == ']')
		return 0;
	if (length == 1)
		return *c >= ' ' && *c != 0x7f;
	/* U+0080 to U+009F are controls; U+FFFE and U+FFFF are no characters */
	if (length == 2)
		return *c != 0xc2 || c[1] >= 0xa0;
	return length > 3 || *c != 0xef || c[1] != 0xbf || c[2] < 0xbe;
}

static int is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr(" .,:;+-/()_=", c));
}

/* The number of characters; a byte outside UTF-8 counts as a character. */
static size_t count_characters(const unsigned char *p)
{
	size_t n = 0;

	for (; *p; n++) {
		const int length = utf8_length(p);

		p += length ? length : 1;
	}
	return n;
}

void gnuplot_text(FILE *script, const char *text, size_t most)
{
	const unsigned char *p = (const unsigned char *)text;
	const size_t n = count_characters(p), shown = n > most ? most - 3 : n;

	putc('"', script);
	for (size_t i = 0; i < shown; i++) {
		const int length = utf8_length(p), step = length ? length : 1;

		if (!length || !is_printable(p, length, i))
			putc('?', script);
		else if (is_plain(*p))
			putc(*p, script);
		else
			for (int k = 0; k < length; k++)
				fprintf(script, "\\%03o", p[k]);
		p += step;
	}
	fputs(n > most ? "...\"" : "\"", script);
}
