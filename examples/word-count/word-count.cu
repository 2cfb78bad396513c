/* SPDX-License-Identifier: MIT */
/*
 * Counts the words of files, on the threads of the CPU or in a kernel. A word is a longest run of
 * ASCII letters, ASCII digits and bytes from 0x80 on, so the words of UTF-8 text stay whole.
 *
 * The map's key is the offset at which a word begins in the text. The hash and the equality read
 * the word's bytes there, so the counts are exact even if different words share a hash. Input of
 * any size is counted in pieces, and the host merges the sorted words of each piece into the totals.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuatomic.h>

#define PIECE (8u << 20)      /* bytes of a piece, by default */
#define PIECE_MOST (1u << 30) /* of a piece that a long word has extended */
#define THREADS_MOST 64

static void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("word-count: ", stderr);
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

static void *room_for(void *old, size_t n, size_t size)
{
	void *p = size && n > SIZE_MAX / size ? NULL : realloc(old, n * size + 1);

	if (!p)
		die(1, "out of memory");
	return p;
}

/* ---- on threads and in the kernel ---- */

/* The piece. It begins and ends with a byte that is in no word. */
static const unsigned char *host_text;
#ifdef __CUDACC__
static __device__ const unsigned char *device_text;
#endif

CUA_FN const unsigned char *text_at(uint32_t offset)
{
#ifdef __CUDA_ARCH__
	return device_text + offset;
#else
	return host_text + offset;
#endif
}

CUA_FN int in_word(unsigned char c)
{
	return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c >= 0x80;
}

CUA_FN uint32_t word_length(const unsigned char *word)
{
	uint32_t n = 0;

	while (in_word(word[n]))
		n++;
	return n;
}

CUA_FN uint64_t word_hash(uint32_t offset, uint64_t seed)
{
	const unsigned char *word = text_at(offset);

	return cua_hash_bytes(word, word_length(word), seed);
}

CUA_FN int word_equal(uint32_t a, uint32_t b)
{
	const unsigned char *x = text_at(a), *y = text_at(b);

	while (*x == *y && in_word(*x)) {
		x++;
		y++;
	}
	return !in_word(*x) && !in_word(*y);
}

CUA_DEFINE_HASHMAP_WITH(words, uint32_t, uint32_t, word_hash, word_equal)
CUA_DEFINE_HASHMAP_UPDATE_OP(words_add, words, CUA_UPDATE_ADD)

/* Counts a word if it begins at this offset. */
CUA_FN void count_at(const struct cua_hashmap_view *map, uint32_t offset)
{
	const unsigned char *word = text_at(offset);

	if (in_word(word[0]) && !in_word(word[-1]))
		words_add(map, offset, 1);
}

struct share {
	pthread_t thread;
	const struct cua_hashmap_view *map;
	uint32_t begin, end;
};

static void *count_share(void *arg)
{
	const struct share *share = (const struct share *)arg;

	for (uint32_t i = share->begin; i < share->end; i++)
		count_at(share->map, i);
	return NULL;
}

/* Counts the words of offsets 1 to n. */
static void count_on_threads(const struct cua_hashmap_view *map, uint32_t n, unsigned threads)
{
	struct share share[THREADS_MOST];

	if (threads > THREADS_MOST)
		threads = THREADS_MOST;
	for (unsigned t = 0; t < threads; t++) {
		share[t].map = map;
		share[t].begin = 1 + (uint32_t)((uint64_t)n * t / threads);
		share[t].end = 1 + (uint32_t)((uint64_t)n * (t + 1) / threads);
		if (pthread_create(&share[t].thread, NULL, count_share, &share[t]))
			die(1, "a thread cannot be started");
	}
	for (unsigned t = 0; t < threads; t++)
		pthread_join(share[t].thread, NULL);
}

#ifdef __CUDACC__
static __global__ void count_kernel(struct cua_hashmap_view map, uint32_t n)
{
	for (uint32_t i = 1 + blockIdx.x * blockDim.x + threadIdx.x; i <= n;
	     i += gridDim.x * blockDim.x)
		count_at(&map, i);
}
#endif

static void count_on_gpu(struct cua_context *ctx, const struct cua_hashmap_view *map, uint32_t n)
{
#ifdef __CUDACC__
	void *text, *symbol;

	check(cua_alloc(ctx, (size_t)n + 2, 1, &text), "memory");
	check(cua_copy(ctx, text, host_text, (size_t)n + 2), "copying the text");
	check(CUA_SYMBOL_ADDRESS(device_text, &symbol), "symbol");
	check(cua_symbol_write(ctx, symbol, 0, &text, sizeof(text)), "symbol");
	count_kernel<<<1024, 256, 0, cua_context_stream(ctx)>>>(*map, n);
	if (cudaGetLastError() != cudaSuccess)
		die(1, "the kernel cannot be launched");
	check(cua_context_synchronize(ctx), "kernel");
	check(cua_free(ctx, text), "memory");
#else
	(void)ctx, (void)map, (void)n;
	die(1, "CUDA: this program was compiled without nvcc");
#endif
}

/* ---- totals ---- */

struct total {
	size_t at; /* the word's offset in totals.bytes */
	size_t length;
	uint64_t count;
};

struct totals {
	struct total *word; /* sorted by bytes */
	size_t n;
	unsigned char *bytes;
	size_t used, room;
};

struct found {
	uint32_t offset, count;
};

static int compare(const unsigned char *a, size_t m, const unsigned char *b, size_t n)
{
	const int order = memcmp(a, b, m < n ? m : n);

	return order ? order : (m > n) - (m < n);
}

static int by_bytes(const void *a, const void *b)
{
	const unsigned char *x = text_at(((const struct found *)a)->offset);
	const unsigned char *y = text_at(((const struct found *)b)->offset);

	return compare(x, word_length(x), y, word_length(y));
}

static struct total keep(struct totals *t, const unsigned char *word, size_t length, uint64_t count)
{
	const struct total total = {t->used, length, count};

	if (length > t->room - t->used) {
		t->room = 2 * t->room + length;
		t->bytes = (unsigned char *)room_for(t->bytes, t->room, 1);
	}
	memcpy(t->bytes + t->used, word, length);
	t->used += length;
	return total;
}

/* Merges the n sorted words of a piece into the totals. */
static void merge(struct totals *t, const struct found *found, size_t n)
{
	struct total *merged = (struct total *)room_for(NULL, t->n + n, sizeof(*merged));
	size_t i = 0, j = 0, k = 0;

	while (i < t->n || j < n) {
		const unsigned char *word = j < n ? text_at(found[j].offset) : NULL;
		const size_t length = j < n ? word_length(word) : 0;
		int order = i == t->n ? 1 : -1;

		if (i < t->n && j < n)
			order = compare(t->bytes + t->word[i].at, t->word[i].length, word, length);
		if (order <= 0)
			merged[k] = t->word[i++];
		else
			merged[k] = keep(t, word, length, 0);
		if (order >= 0)
			merged[k].count += found[j++].count;
		k++;
	}
	free(t->word);
	t->word = merged;
	t->n = k;
}

/* Counts the words of host_text[1] to host_text[n] in a map of their own. */
static void count_piece(struct cua_context *ctx, uint32_t n, struct totals *totals)
{
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;
	uint32_t *offsets, *counts;
	struct cua_hashmap_view view;
	struct cua_hashmap *map;
	struct found *found;
	uint64_t words;

	options.own_hash = 1;
	options.no_erase = 1;
	/* n bytes have at most (n + 1) / 2 words, so the map cannot get full */
	check(cua_hashmap_create(ctx, &options, CUA_U32, CUA_U32, n / 2 + 1, &map), "map");
	check(cua_hashmap_get_view(map, &view), "map");
	if (cua_context_backend(ctx) == CUA_BACKEND_CUDA)
		count_on_gpu(ctx, &view, n);
	else
		count_on_threads(&view, n, cua_context_threads(ctx));
	check(cua_hashmap_size(map, &words), "map");
	offsets = (uint32_t *)room_for(NULL, words, sizeof(*offsets));
	counts = (uint32_t *)room_for(NULL, words, sizeof(*counts));
	check(cua_hashmap_copy_to_host(map, words, offsets, counts, &words), "map");
	check(cua_hashmap_destroy(map), "map");
	found = (struct found *)room_for(NULL, words, sizeof(*found));
	for (uint64_t i = 0; i < words; i++) {
		found[i].offset = offsets[i];
		found[i].count = counts[i];
	}
	free(offsets);
	free(counts);
	qsort(found, words, sizeof(*found), by_bytes);
	merge(totals, found, words);
	free(found);
}

/* ---- input ---- */

struct input {
	char **paths;
	FILE *file;
	int fold; /* capital ASCII letters become small */
};

/* Reads up to `most` bytes. A newline follows each file. Returns 0 after the last file. */
static size_t read_some(struct input *in, unsigned char *to, size_t most)
{
	size_t n;

	if (!in->file) {
		if (!*in->paths)
			return 0;
		in->file = strcmp(*in->paths, "-") ? fopen(*in->paths, "rb") : stdin;
		if (!in->file)
			die(1, "%s: %s", *in->paths, strerror(errno));
	}
	n = fread(to, 1, most, in->file);
	if (ferror(in->file))
		die(1, "%s: %s", *in->paths, strerror(errno));
	for (size_t i = 0; in->fold && i < n; i++)
		to[i] |= to[i] >= 'A' && to[i] <= 'Z' ? 32 : 0;
	if (n)
		return n;
	if (in->file != stdin)
		fclose(in->file);
	in->file = NULL;
	in->paths++;
	*to = '\n';
	return 1;
}

static void count_input(struct cua_context *ctx, struct input *in, size_t room,
			struct totals *totals)
{
	unsigned char *text = (unsigned char *)room_for(NULL, room + 2, 1);
	size_t used = 0, got = 1;

	while (got) {
		size_t cut;

		while (used < room && (got = read_some(in, text + 1 + used, room - used)))
			used += got;
		for (cut = used; cut && in_word(text[cut]);)
			cut--;
		if (!cut && used) { /* a word as long as the piece */
			if (room >= PIECE_MOST)
				die(1, "a word of more than %zu bytes", room);
			room *= 2;
			text = (unsigned char *)room_for(text, room + 2, 1);
			continue;
		}
		text[0] = '\n';
		host_text = text;
		if (cut)
			count_piece(ctx, (uint32_t)cut, totals);
		used -= cut;
		memmove(text + 1, text + 1 + cut, used);
	}
	free(text);
}

/* ---- output ---- */

static const unsigned char *sorted_bytes;

static int by_count(const void *a, const void *b)
{
	const struct total *x = (const struct total *)a, *y = (const struct total *)b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return compare(sorted_bytes + x->at, x->length, sorted_bytes + y->at, y->length);
}

static void print(struct totals *t, size_t most)
{
	sorted_bytes = t->bytes;
	qsort(t->word, t->n, sizeof(*t->word), by_count);
	for (size_t i = 0; i < t->n && (i < most || !most); i++) {
		printf("%7" PRIu64 " ", t->word[i].count);
		fwrite(t->bytes + t->word[i].at, 1, t->word[i].length, stdout);
		putchar('\n');
	}
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output: %s", strerror(errno));
}

static size_t number(const char *text, size_t most)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v > most)
		die(2, "'%s' is not a number from 0 to %zu", text, most);
	return v;
}

int main(int argc, char **argv)
{
	static char from_stdin[] = "-";
	static char *no_paths[] = {from_stdin, NULL};
	enum cua_backend backend = CUA_BACKEND_AUTO;
	struct input in = {no_paths, NULL, 0};
	struct totals totals;
	struct cua_context *ctx;
	size_t most = 10, piece = PIECE;
	int c;

	opterr = 0;
	while ((c = getopt(argc, argv, "b:in:s:")) != -1) {
		switch (c) {
		case 'b':
			if (!strcmp(optarg, "cuda"))
				backend = CUA_BACKEND_CUDA;
			else if (!strcmp(optarg, "cpu"))
				backend = CUA_BACKEND_CPU;
			else if (strcmp(optarg, "auto"))
				die(2, "-b %s: choose cpu, cuda or auto", optarg);
			break;
		case 'i': in.fold = 1; break;
		case 'n': most = number(optarg, SIZE_MAX); break;
		case 's': piece = number(optarg, PIECE_MOST); break;
		default:
			die(2,
			    "usage: word-count [-b cpu|cuda|auto] [-i] [-n WORDS] [-s PIECE] [FILE...]");
		}
	}
	if (optind < argc)
		in.paths = argv + optind;
	memset(&totals, 0, sizeof(totals));
#ifndef __CUDACC__
	if (backend == CUA_BACKEND_AUTO)
		backend = CUA_BACKEND_CPU;
#endif
	check(cua_context_create(backend, 0, &ctx),
	      backend == CUA_BACKEND_CUDA ? "CUDA" : "starting");
	count_input(ctx, &in, piece ? piece : 1, &totals);
	print(&totals, most);
	cua_context_destroy(ctx);
	free(totals.word);
	free(totals.bytes);
	return 0;
}
