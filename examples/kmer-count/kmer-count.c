/* SPDX-License-Identifier: MIT */
/*
 * Counts the k-mers of FASTA and FASTQ files in a cua_hashmap, on a GPU or the CPU, or in a
 * cua_sharded_map, on several GPUs.
 *
 *     cc *.c $(pkg-config --cflags --libs cuatomic) -lz -pthread -o kmer-count
 *     ./kmer-count --help
 *
 * A reader thread reads the files and fills batches of k-mers. The main thread counts the batches
 * and prints all messages.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kmer-count.h"

#define BATCH ((size_t)1 << 20)
#define USAGE_ERROR 2

static const char help_text[] =
	"usage: kmer-count [OPTION...] FILE...\n"
	"\n"
	"Counts the k-mers of FASTA and FASTQ files, gzip too; '-' is standard input.\n"
	"A k-mer and its reverse complement count as the smaller of the two.\n"
	"k-mers with letters other than A, C, G and T, of either case, do not count.\n"
	"\n"
	"  -k, --length=K               letters of a k-mer, 1 to 31 (21)\n"
	"      --no-canonical           count k-mers and their reverse complements apart\n"
	"  -o, --histogram=FILE         lines 'COUNT N': N k-mers occurred COUNT times;\n"
	"                               '-' is standard output, the default without -d\n"
	"      --high=N                 k-mers that occurred more often: line N + 1 (10000)\n"
	"  -d, --dump=FILE              lines 'K-MER COUNT', sorted\n"
	"  -b, --backend=auto|cpu|cuda  where to count; auto (the default): on the first GPU,\n"
	"                               or without a GPU on the CPU\n"
	"  -r, --ranks=N                1 to 64 (1): divide the table among N contexts; the counts\n"
	"                               are the same. Rank R has GPU R modulo the number of\n"
	"                               GPUs, or a context of the CPU\n"
	"  -t, --threads=N              threads of the CPU backend, 1 to 1024, for each rank\n"
	"      --capacity=N             initial capacity of the table, in distinct k-mers\n"
	"                               (1000000); the table grows when it is full\n"
	"  -v, --verbose                print totals on standard error at the end\n"
	"\n"
	"  -h, --help                   this text\n"
	"  -V, --version                version\n"
	"\n"
	"Exit status: 0 success, 1 something failed and no file was written, 2 wrong usage.\n";

struct options {
	unsigned k, threads;
	uint32_t ranks;
	int canonical, verbose;
	enum cua_backend backend;
	uint64_t high, capacity;
	const char *histogram, *dump;
	char **files;
	int n_files;
};

/* ---- messages ---- */

static int progress_shown;

static void clear_progress(void)
{
	if (progress_shown)
		fprintf(stderr, "\r%79s\r", "");
	progress_shown = 0;
}

static void print_line(const char *end, const char *format, va_list arguments)
{
	char line[1024];

	vsnprintf(line, sizeof(line), format, arguments);
	/* file names may contain newlines, but a message is a single line */
	for (char *c = line; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	clear_progress();
	fprintf(stderr, "kmer-count: %s%s\n", line, end);
}

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("", format, arguments);
	va_end(arguments);
	exit(1);
}

static void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void usage_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line("; see kmer-count --help", format, arguments);
	va_end(arguments);
	exit(USAGE_ERROR);
}

void *must_alloc(uint64_t n, size_t size)
{
	void *p = n > SIZE_MAX / size ? NULL : malloc(n ? (size_t)n * size : 1);

	if (!p)
		die("out of memory");
	return p;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- from letters to k-mers ---- */

struct kmers {
	unsigned k, have; /* letters since the last break, at most k */
	int canonical;
	uint64_t mask;
	uint64_t forward, reverse; /* the last k letters, and their reverse complement */
};

static void kmers_init(struct kmers *m, const struct options *o)
{
	memset(m, 0, sizeof(*m));
	m->k = o->k;
	m->canonical = o->canonical;
	m->mask = ((uint64_t)1 << 2 * o->k) - 1;
}

/* Appends a letter. Returns 1 and sets *kmer if a k-mer ends with this letter, else returns 0. */
static inline int kmers_next(struct kmers *m, unsigned letter, uint64_t *kmer)
{
	if (letter == LETTER_BREAK) {
		m->have = 0;
		return 0;
	}
	m->forward = (m->forward << 2 | letter) & m->mask;
	m->reverse = m->reverse >> 2 | (uint64_t)(3 - letter) << 2 * (m->k - 1);
	if (m->have < m->k && ++m->have < m->k)
		return 0;
	*kmer = m->canonical && m->reverse < m->forward ? m->reverse : m->forward;
	return 1;
}

/* ---- the reader thread ---- */

struct batch {
	uint64_t *kmers;
	size_t n;
	int ready; /* 1: owned by the main thread, to count; 0: owned by the reader, to fill */
};

struct reader {
	const struct options *options;
	struct reads reads;
	pthread_t thread;
	_Atomic uint64_t bytes; /* bytes read of all files, before decompression */
	int filling;            /* index of the batch that the reader thread fills */

	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	struct batch batches[2]; /* `ready` says which thread owns kmers and n */
	int ended, failed;
};

/* Publishes the filled batch and waits until the other batch is free. */
static void hand_over(struct reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->batches[r->filling].ready = 1;
	pthread_cond_broadcast(&r->changed);
	r->filling ^= 1;
	while (r->batches[r->filling].ready)
		pthread_cond_wait(&r->changed, &r->lock);
	pthread_mutex_unlock(&r->lock);
	r->batches[r->filling].n = 0;
}

static int read_one(struct reader *r, const char *path)
{
	uint8_t letters[4096];
	uint64_t before = atomic_load(&r->bytes);
	struct kmers kmers;
	long n;

	kmers_init(&kmers, r->options);
	if (reads_open(&r->reads, path))
		return -1;
	while ((n = reads_next(&r->reads, letters, sizeof(letters))) > 0) {
		struct batch *batch = &r->batches[r->filling];

		for (long i = 0; i < n; i++) {
			if (!kmers_next(&kmers, letters[i], &batch->kmers[batch->n]))
				continue;
			if (++batch->n == BATCH) {
				hand_over(r);
				batch = &r->batches[r->filling];
			}
		}
		atomic_store(&r->bytes, before + r->reads.in.file_read);
	}
	reads_close(&r->reads);
	return n ? -1 : 0;
}

static void *read_all(void *argument)
{
	struct reader *r = (struct reader *)argument;
	int failed = 0;

	for (int i = 0; i < r->options->n_files && !failed; i++)
		failed = read_one(r, r->options->files[i]);
	if (!failed)
		hand_over(r);
	pthread_mutex_lock(&r->lock);
	r->ended = 1;
	r->failed = failed;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void reader_start(struct reader *r, const struct options *o)
{
	pthread_condattr_t attributes;
	int error;

	r->options = o;
	for (int i = 0; i < 2; i++)
		r->batches[i].kmers = (uint64_t *)must_alloc(BATCH, sizeof(*r->batches[i].kmers));
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	error = pthread_create(&r->thread, NULL, read_all, r);
	if (error)
		die("thread: %s", strerror(error));
}

static void reader_end(struct reader *r)
{
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	for (int i = 0; i < 2; i++)
		free(r->batches[i].kmers);
}

/* ---- progress ---- */

static void refuse_as_output(const char *output, const struct stat *input)
{
	struct stat st;

	if (output && !stat(output, &st) && S_ISREG(st.st_mode) && st.st_dev == input->st_dev &&
	    st.st_ino == input->st_ino)
		usage_error("'%s' is also an input", output);
}

/* The size of all files, or 0, for no progress bar, if a file is not a regular file. */
static uint64_t bytes_of_files(const struct options *o)
{
	uint64_t sum = 0;
	int known = 1;

	for (int i = 0; i < o->n_files; i++) {
		struct stat st;
		int failed;

		if (!strcmp(o->files[i], "-")) {
			known = 0;
			continue;
		}
		failed = stat(o->files[i], &st) || access(o->files[i], R_OK);
		if (!failed && S_ISDIR(st.st_mode)) {
			failed = 1;
			errno = EISDIR;
		}
		if (failed)
			die("%s: %s", o->files[i], strerror(errno));
		refuse_as_output(o->histogram, &st);
		refuse_as_output(o->dump, &st);
		known = known && S_ISREG(st.st_mode);
		sum += (uint64_t)st.st_size;
	}
	return known ? sum : 0;
}

static void show_progress(uint64_t bytes, uint64_t total)
{
	enum { WIDTH = 40 };
	double share = bytes < total ? (double)bytes / (double)total : 1;
	char bar[WIDTH + 1];

	memset(bar, '.', WIDTH);
	memset(bar, '#', (size_t)(share * WIDTH));
	bar[WIDTH] = 0;
	fprintf(stderr, "\r[%s] %3d%% of %.1f MiB ", bar, (int)(share * 100),
		(double)total / 1048576.0);
	progress_shown = 1;
}

/* ---- counting ---- */

/* Counts all batches. Shows the progress unless total is 0. Returns the number of k-mers. */
static uint64_t count_all(struct reader *r, struct counter *c, uint64_t total)
{
	uint64_t n = 0;
	int counting = 0, more = 1;

	while (more) {
		struct batch *batch = &r->batches[counting];
		struct timespec until;
		int ready, failed;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += 100000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_mutex_lock(&r->lock);
		if (!batch->ready && !r->ended)
			pthread_cond_timedwait(&r->changed, &r->lock, &until);
		ready = batch->ready;
		more = ready || !r->ended;
		failed = r->failed;
		pthread_mutex_unlock(&r->lock);
		if (failed) {
			reader_end(r);
			die("%s", r->reads.in.error);
		}
		if (total)
			show_progress(atomic_load(&r->bytes), total);
		if (!ready)
			continue;
		n += batch->n;
		counter_add(c, batch->kmers, batch->n);
		pthread_mutex_lock(&r->lock);
		batch->ready = 0;
		pthread_cond_broadcast(&r->changed);
		pthread_mutex_unlock(&r->lock);
		counting ^= 1;
	}
	clear_progress();
	return n;
}

static void run(const struct options *o)
{
	/* static because they are large, and so that leak checkers find them after die() */
	static struct reader reader;
	static struct counter counter;
	static struct output outputs[2];
	uint64_t total = bytes_of_files(o), *kmers, *counts, n_kmers, n;
	double start = now();

	output_open(&outputs[0], o->histogram);
	output_open(&outputs[1], o->dump);
	if (output_same(&outputs[0], &outputs[1]))
		usage_error("histogram and dump cannot both go to '%s'", o->dump);
	counter_open(&counter, o->ranks, o->backend, o->threads, o->capacity, BATCH);
	reader_start(&reader, o);
	n_kmers = count_all(&reader, &counter, isatty(STDERR_FILENO) ? total : 0);
	reader_end(&reader);
	n = counter_read(&counter, &kmers, &counts);
	if (outputs[0].f)
		write_histogram(outputs[0].f, counts, n, o->high);
	if (outputs[1].f)
		write_dump(outputs[1].f, o->k, kmers, counts, n);
	output_finish(outputs, 2);
	if (o->verbose)
		fprintf(stderr,
			"kmer-count: %llu k-mers, %llu distinct, in %.3f s on the %s; the table grew %u times\n",
			(unsigned long long)n_kmers, (unsigned long long)n, now() - start,
			counter_backend(&counter) == CUA_BACKEND_CUDA ? "GPU" : "CPU",
			counter_growths(&counter));
	free(kmers);
	free(counts);
	counter_close(&counter);
}

/* ---- options ---- */

static uint64_t parse_number(const char *text, const char *what, uint64_t least, uint64_t most)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
		usage_error("'%s' is not a %s (%llu to %llu)", text, what,
			    (unsigned long long)least, (unsigned long long)most);
	return n;
}

static enum cua_backend parse_backend(const char *text)
{
	if (!strcmp(text, "auto"))
		return CUA_BACKEND_AUTO;
	if (!strcmp(text, "cpu"))
		return CUA_BACKEND_CPU;
	if (!strcmp(text, "cuda"))
		return CUA_BACKEND_CUDA;
	usage_error("unknown backend '%s' (auto, cpu or cuda)", text);
}

static void print_and_exit(const char *text)
{
	if (fputs(text, stdout) < 0 || fflush(stdout))
		die("standard output: %s", strerror(errno));
	exit(0);
}

/* Reports a long option that getopt_long refused. */
static void refuse_word(const char *word, const struct option *names)
{
	const size_t length = strcspn(word + 2, "=");
	int n = 0;

	for (; word[1] == '-' && names->name; names++)
		n += !strncmp(names->name, word + 2, length);
	if (n > 1)
		usage_error("option '%s' is ambiguous: %d options begin with it", word, n);
	if (n == 1)
		usage_error("option '%.*s' takes no value", (int)length + 2, word);
	usage_error("unknown option '%s'", word);
}

static void parse(int argc, char **argv, struct options *o)
{
	enum { NO_CANONICAL = 256, HIGH, CAPACITY };
	static const struct option names[] = {
		{"length", required_argument, NULL, 'k'},
		{"no-canonical", no_argument, NULL, NO_CANONICAL},
		{"histogram", required_argument, NULL, 'o'},
		{"high", required_argument, NULL, HIGH},
		{"dump", required_argument, NULL, 'd'},
		{"backend", required_argument, NULL, 'b'},
		{"ranks", required_argument, NULL, 'r'},
		{"threads", required_argument, NULL, 't'},
		{"capacity", required_argument, NULL, CAPACITY},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	char version[64];
	uint64_t k = 21;
	int c, n_stdin = 0;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":k:o:d:b:r:t:vhV", names, NULL)) != -1) {
		switch (c) {
		case 'k': k = parse_number(optarg, "length of k-mers", 1, K_MAX); break;
		case NO_CANONICAL: o->canonical = 0; break;
		case 'o': o->histogram = optarg; break;
		case HIGH: o->high = parse_number(optarg, "count", 1, 100000000); break;
		case 'd': o->dump = optarg; break;
		case 'b': o->backend = parse_backend(optarg); break;
		case 'r':
			o->ranks = (uint32_t)parse_number(optarg, "number of ranks", 1, RANKS_MAX);
			break;
		case 't':
			o->threads = (unsigned)parse_number(optarg, "number of threads", 1, 1024);
			break;
		case CAPACITY:
			o->capacity = parse_number(optarg, "number of k-mers", 1, UINT64_MAX);
			break;
		case 'v': o->verbose = 1; break;
		case 'h': print_and_exit(help_text); break;
		case 'V':
			snprintf(version, sizeof(version), "kmer-count (cuatomic) %s\n",
				 cua_version());
			print_and_exit(version);
			break;
		case ':': usage_error("option '%s' needs a value", argv[optind - 1]);
		default:
			/* an unknown letter may be inside a cluster such as -vx */
			if (optopt > ' ' && optopt < 256 && argv[optind - 1][1] != '-')
				usage_error("unknown option '-%c'", optopt);
			refuse_word(argv[optind - 1], names);
		}
	}
	o->files = argv + optind;
	o->n_files = argc - optind;
	if (!o->n_files)
		usage_error("no FILE given ('-' is standard input)");
	for (int i = 0; i < o->n_files; i++)
		n_stdin += !strcmp(o->files[i], "-");
	if (n_stdin > 1)
		usage_error("standard input can be read only once");
	if (!o->histogram && !o->dump)
		o->histogram = "-";
	if (o->histogram && o->dump && !strcmp(o->histogram, o->dump))
		usage_error("histogram and dump cannot both go to '%s'", o->dump);
	o->k = (unsigned)k;
}

int main(int argc, char **argv)
{
	struct options o = {.ranks = 1,
			    .canonical = 1,
			    .backend = CUA_BACKEND_AUTO,
			    .high = 10000,
			    .capacity = 1000000};

	parse(argc, argv, &o);
	run(&o);
	return 0;
}
