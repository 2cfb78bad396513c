/* SPDX-License-Identifier: MIT */
/*
 * Prints the first of equal lines, in the order of the input, and counts the repeats.
 *
 * The input is read in pieces. A map has the 64-bit hash of each distinct line, and the line's
 * number. A bulk call looks up the lines of a piece and inserts new hashes; the map grows by itself.
 * Then the bytes are compared. If the hash of a line belongs to a different line, the line is looked
 * up again under the next seed, so the result is exact.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <cuatomic.h>

#define PIECE (4u << 20) /* bytes of a piece, by default */
#define LOAD_MOST 80     /* the map grows above this percentage of its slots */
/* The map's value of a line that has no number yet: NEW + its index in the piece. */
#define NEW ((uint64_t)1 << 63)
/* A test sets it to hash to 2 bits under the first seeds, so that lines share hashes. */
#ifndef WEAK_SEEDS
#define WEAK_SEEDS 0
#endif

static void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("log-dedup: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(code);
}

static void check(enum cua_status status, const char *what)
{
	if (status != CUA_OK)
		die(1, "%s: %s", what, cua_strerror(status));
}

static void *resized(void *old, size_t n, size_t size)
{
	void *p = n > SIZE_MAX / 2 / size ? NULL : realloc(old, n * size + 1);

	if (!p)
		die(1, "out of memory");
	return p;
}

/* ---- the distinct lines ---- */

/* A line without its newline. Lines are equal if the bytes of their keys are. */
struct line {
	const char *text, *key;
	size_t length, key_length;
};

struct distinct {
	struct line line; /* both from malloc; text only if it is printed at the end */
	uint64_t count;
};

struct log {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	uint64_t seed;
	struct distinct *distinct;
	uint64_t n, room; /* of distinct lines */
	uint64_t lines;   /* read */
	int counts;       /* -c: print all at the end, with counts */
	int numbers;      /* -n: all numbers are equal */
	unsigned fields;  /* -f: leading fields that are not compared */
};

static uint64_t hash_line(const struct log *log, const struct line *line, int level)
{
	const uint64_t seed = cua_hash_u64((uint64_t)level, log->seed);
	const uint64_t hash = cua_hash_bytes(line->key, line->key_length, seed);

	return level < WEAK_SEEDS ? hash & 3 : hash;
}

static int same_line(const struct line *a, const struct line *b)
{
	return a->key_length == b->key_length && !memcmp(a->key, b->key, a->key_length);
}

static const char *copied(const char *bytes, size_t n)
{
	char *copy = (char *)resized(NULL, n, 1);

	memcpy(copy, bytes, n);
	return copy;
}

static void print(const struct line *line)
{
	fwrite(line->text, 1, line->length, stdout);
	putchar('\n');
}

/* Keeps a new line, and returns its number. */
static uint64_t keep(struct log *log, const struct line *line)
{
	struct distinct *d;

	if (log->n == log->room) {
		log->room = 2 * log->room + 1024;
		log->distinct = (struct distinct *)resized(log->distinct, log->room,
							   sizeof(*log->distinct));
	}
	d = &log->distinct[log->n];
	d->line = *line;
	d->line.key = copied(line->key, line->key_length);
	d->line.text = log->counts ? copied(line->text, line->length) : NULL;
	d->count = 0;
	if (!log->counts)
		print(line);
	return log->n++;
}

/* ---- the lines of a piece ---- */

struct batch {
	struct line *line;
	size_t n, room;
	uint64_t *found;  /* for each line: the number of the distinct line, or NEW + an index */
	uint64_t *number; /* for each index in `found`: the number, once it is known */
	uint64_t *hash;   /* for each index in `found`: its key in the map */
	size_t *open;     /* the indexes of lines that are still to be found */
	uint64_t *keys, *values;           /* of a bulk call */
	void *device_keys, *device_values; /* the same in the backend's memory */
};

static void batch_resize(const struct log *log, struct batch *b, size_t room)
{
	check(cua_free(log->ctx, b->device_keys), "memory");
	check(cua_free(log->ctx, b->device_values), "memory");
	check(cua_alloc(log->ctx, room, sizeof(*b->keys), &b->device_keys), "memory");
	check(cua_alloc(log->ctx, room, sizeof(*b->values), &b->device_values), "memory");
	b->line = (struct line *)resized(b->line, room, sizeof(*b->line));
	b->found = (uint64_t *)resized(b->found, room, sizeof(*b->found));
	b->number = (uint64_t *)resized(b->number, room, sizeof(*b->number));
	b->hash = (uint64_t *)resized(b->hash, room, sizeof(*b->hash));
	b->open = (size_t *)resized(b->open, room, sizeof(*b->open));
	b->keys = (uint64_t *)resized(b->keys, room, sizeof(*b->keys));
	b->values = (uint64_t *)resized(b->values, room, sizeof(*b->values));
	b->room = room;
}

static void batch_free(const struct log *log, struct batch *b)
{
	check(cua_free(log->ctx, b->device_keys), "memory");
	check(cua_free(log->ctx, b->device_values), "memory");
	free(b->line);
	free(b->found);
	free(b->number);
	free(b->hash);
	free(b->open);
	free(b->keys);
	free(b->values);
}

static void to_backend(const struct log *log, const struct batch *b, size_t n)
{
	check(cua_copy(log->ctx, b->device_keys, b->keys, n * sizeof(*b->keys)), "copy");
	check(cua_copy(log->ctx, b->device_values, b->values, n * sizeof(*b->values)), "copy");
}

/*
 * Looks up the open lines by their hashes under the seed of this level, and inserts absent hashes. Lines
 * that share a hash with a different line remain open. Returns their number.
 */
static size_t look_up(const struct log *log, struct batch *b, size_t open, int level)
{
	size_t still_open = 0;

	for (size_t j = 0; j < open; j++) {
		b->keys[j] = hash_line(log, &b->line[b->open[j]], level);
		b->values[j] = NEW + b->open[j];
	}
	to_backend(log, b, open);
	check(cua_hashmap_insert_or_get_n(log->map, open, b->device_keys, b->device_values,
					  b->device_values, NULL),
	      "looking up lines");
	check(cua_copy(log->ctx, b->values, b->device_values, open * sizeof(*b->values)), "copy");
	check(cua_context_synchronize(log->ctx), "looking up lines");
	for (size_t j = 0; j < open; j++) {
		const uint64_t v = b->values[j];
		const size_t i = b->open[j];
		const struct line *owner = v & NEW ? &b->line[v - NEW] : &log->distinct[v].line;

		if (!same_line(owner, &b->line[i])) {
			b->open[still_open++] = i;
			continue;
		}
		b->found[i] = v;
		if (v & NEW)
			b->hash[v - NEW] = b->keys[j];
	}
	return still_open;
}

/* Numbers the new lines in the order of the input, and counts all lines. */
static void number_lines(struct log *log, struct batch *b)
{
	size_t fresh = 0;

	for (size_t i = 0; i < b->n; i++)
		b->number[i] = NEW;
	for (size_t i = 0; i < b->n; i++) {
		uint64_t number = b->found[i];

		if (number & NEW) {
			const size_t owner = (size_t)(number - NEW);

			if (b->number[owner] == NEW) {
				b->number[owner] = keep(log, &b->line[i]);
				b->keys[fresh] = b->hash[owner];
				b->values[fresh++] = b->number[owner];
			}
			number = b->number[owner];
		}
		log->distinct[number].count++;
	}
	to_backend(log, b, fresh);
	check(cua_hashmap_assign_n(log->map, fresh, b->device_keys, b->device_values, NULL),
	      "numbering lines");
	check(cua_context_synchronize(log->ctx), "numbering lines");
}

static void add_batch(struct log *log, struct batch *b)
{
	size_t open = b->n;

	for (size_t i = 0; i < b->n; i++)
		b->open[i] = i;
	for (int level = 0; open; level++)
		open = look_up(log, b, open, level);
	number_lines(log, b);
	log->lines += b->n;
}

/* ---- input ---- */

static size_t skip_fields(const char *text, size_t length, unsigned fields)
{
	size_t at = 0;

	for (; fields; fields--) {
		while (at < length && (text[at] == ' ' || text[at] == '\t'))
			at++;
		while (at < length && text[at] != ' ' && text[at] != '\t')
			at++;
	}
	return at;
}

/* Copies the text. A newline, which is in no line, replaces each run of digits. Returns the length. */
static size_t without_numbers(char *to, const char *text, size_t length)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		const int digit = text[i] >= '0' && text[i] <= '9';

		if (!digit || !i || text[i - 1] < '0' || text[i - 1] > '9')
			to[n++] = digit ? '\n' : text[i];
	}
	return n;
}

/* Adds the lines of a piece, which ends with a newline. keys has room for as many bytes. */
static void add_piece(struct log *log, struct batch *b, const char *text, size_t n, char *keys)
{
	size_t at = 0;

	for (b->n = 0; at < n; b->n++) {
		struct line *line;
		size_t skip;

		if (b->n == b->room)
			batch_resize(log, b, 2 * b->room + 4096);
		line = &b->line[b->n];
		line->text = text + at;
		line->length = (size_t)((const char *)memchr(text + at, '\n', n - at) - line->text);
		skip = skip_fields(line->text, line->length, log->fields);
		line->key = line->text + skip;
		line->key_length = line->length - skip;
		if (log->numbers) {
			line->key_length = without_numbers(keys + at, line->key, line->key_length);
			line->key = keys + at;
		}
		at += line->length + 1;
	}
	add_batch(log, b);
	if (fflush(stdout))
		die(1, "standard output: %s", strerror(errno));
}

static void read_log(struct log *log, int fd, const char *path, size_t room)
{
	char *text = (char *)resized(NULL, room, 1), *keys = (char *)resized(NULL, room, 1);
	struct batch b;
	size_t used = 0;
	ssize_t got;

	memset(&b, 0, sizeof(b));
	do {
		size_t whole;

		if (used == room) { /* a line as long as the piece */
			room *= 2;
			text = (char *)resized(text, room, 1);
			keys = (char *)resized(keys, room, 1);
		}
		got = read(fd, text + used, room - used);
		if (got < 0 && errno != EINTR)
			die(1, "%s: %s", path, strerror(errno));
		if (!got && used) /* `resized` has room for this byte */
			text[used++] = '\n';
		whole = used += got > 0 ? (size_t)got : 0;
		while (whole && text[whole - 1] != '\n')
			whole--;
		if (whole)
			add_piece(log, &b, text, whole, keys);
		used -= whole;
		memmove(text, text + whole, used);
	} while (got);
	batch_free(log, &b);
	free(text);
	free(keys);
}

/* ---- the program ---- */

static void finish(struct log *log)
{
	for (uint64_t i = 0; i < log->n; i++) {
		struct distinct *d = &log->distinct[i];

		if (log->counts) {
			printf("%7" PRIu64 " ", d->count);
			print(&d->line);
		}
		free((void *)d->line.text);
		free((void *)d->line.key);
	}
	free(log->distinct);
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output: %s", strerror(errno));
}

static size_t number(const char *text, size_t least, size_t most)
{
	char *end;
	const unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v < least || v > most)
		die(2, "'%s' is not a number from %zu to %zu", text, least, most);
	return v;
}

static enum cua_backend backend_of(const char *name)
{
	if (!strcmp(name, "cpu"))
		return CUA_BACKEND_CPU;
	if (!strcmp(name, "cuda"))
		return CUA_BACKEND_CUDA;
	if (strcmp(name, "auto"))
		die(2, "-b %s: choose cpu, cuda or auto", name);
	return CUA_BACKEND_AUTO;
}

static void usage(void)
{
	die(2, "usage: log-dedup [-b cpu|cuda|auto] [-c] [-f FIELDS] [-n] [-s PIECE] [-v] "
	       "[FILE]");
}

int main(int argc, char **argv)
{
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;
	enum cua_backend backend = CUA_BACKEND_AUTO;
	const char *path = "-";
	size_t piece = PIECE;
	int verbose = 0, fd = STDIN_FILENO, c;
	struct log log;

	memset(&log, 0, sizeof(log));
	opterr = 0;
	while ((c = getopt(argc, argv, "b:cf:ns:v")) != -1) {
		switch (c) {
		case 'b': backend = backend_of(optarg); break;
		case 'c': log.counts = 1; break;
		case 'f': log.fields = (unsigned)number(optarg, 0, 1000); break;
		case 'n': log.numbers = 1; break;
		case 's': piece = number(optarg, 1, 1u << 30); break;
		case 'v': verbose = 1; break;
		default: usage();
		}
	}
	if (optind < argc)
		path = argv[optind++];
	if (optind != argc)
		usage();
	if (strcmp(path, "-") && (fd = open(path, O_RDONLY)) < 0)
		die(1, "%s: %s", path, strerror(errno));
	if (getrandom(&log.seed, sizeof(log.seed), 0) != (ssize_t)sizeof(log.seed))
		die(1, "random seed: %s", strerror(errno));
	check(cua_context_create(backend, 0, &log.ctx),
	      backend == CUA_BACKEND_CUDA ? "CUDA" : "starting");
	options.grow_percent = LOAD_MOST;
	check(cua_hashmap_create(log.ctx, &options, CUA_U64, CUA_U64, 1024, &log.map), "map");
	read_log(&log, fd, path, piece);
	if (verbose)
		fprintf(stderr, "%" PRIu64 " lines, %" PRIu64 " distinct\n", log.lines, log.n);
	finish(&log);
	check(cua_hashmap_destroy(log.map), "map");
	cua_context_destroy(log.ctx);
	return 0;
}
