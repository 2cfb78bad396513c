/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target without libFuzzer: fuzz_NAME [-runs=N] FILE|FOLDER...
 *
 * Runs each file, and the files of each folder, then N mutations of them. The mutations depend only
 * on the seed, which is CUA_TEST_SEED or 1. N is CUA_FUZZ_RUNS or 20000. If an input crashes the
 * program, it is kept in the file fuzz-failed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define MOST_BYTES ((size_t)4096)
#define MOST_SEEDS ((size_t)4096)
#define HANGS_AFTER 600 /* seconds: a thousand times the time of an input */

#pragma weak LLVMFuzzerCustomMutator
void __sanitizer_set_death_callback(void (*callback)(void));
#pragma weak __sanitizer_set_death_callback

struct seed {
	uint8_t *bytes;
	size_t size;
};

static struct seed seeds[MOST_SEEDS];
static size_t n_seeds;
static uint64_t state;

/* The current input, for the signal handler. */
static const uint8_t *running;
static size_t running_bytes;

static void keep(void)
{
	int fd;

	if (!running)
		return;
	fd = open("fuzz-failed", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (write(fd, running, running_bytes) == (ssize_t)running_bytes)
		(void)!write(STDERR_FILENO, "the input is in fuzz-failed\n", 28);
	close(fd);
	running = NULL;
}

static void failed(int number)
{
	keep();
	signal(number, SIG_DFL);
	raise(number);
}

static void run(const uint8_t *bytes, size_t size)
{
	/* of exactly this size, so that a sanitizer sees a read beyond its end */
	uint8_t *copy = malloc(size ? size : 1);

	FUZZ_CHECK(copy, "out of memory");
	memcpy(copy, bytes, size);
	running_bytes = size;
	running = copy;
	alarm(HANGS_AFTER);
	LLVMFuzzerTestOneInput(copy, size);
	alarm(0);
	running = NULL;
	free(copy);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add(const char *path)
{
	struct stat st;
	FILE *f;

	if (stat(path, &st)) {
		perror(path);
		return -1;
	}
	if (S_ISDIR(st.st_mode)) {
		struct dirent **names;
		int n = scandir(path, &names, NULL, by_name), error = n < 0;

		for (int i = 0; i < n; i++) {
			char inside[4096];

			snprintf(inside, sizeof(inside), "%s/%s", path, names[i]->d_name);
			if (names[i]->d_name[0] != '.' && add(inside))
				error = 1;
			free(names[i]);
		}
		if (n >= 0)
			free(names);
		return error ? -1 : 0;
	}
	f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return -1;
	}
	if (n_seeds < MOST_SEEDS) {
		struct seed *s = &seeds[n_seeds++];

		s->bytes = malloc((size_t)st.st_size + 1);
		s->size = s->bytes ? fread(s->bytes, 1, (size_t)st.st_size, f) : 0;
	}
	fclose(f);
	return 0;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	static const uint8_t edges[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, '\n', '\r', '>', '@', '+'};
	uint64_t r = fuzz_random(&state);
	size_t at = size ? (r >> 8) % size : 0, n = 1 + (r >> 32) % 16;

	switch (r % 8) {
	case 0: /* a bit */
		if (size)
			data[at] ^= (uint8_t)(1u << (r >> 60) % 8);
		break;
	case 1: /* a byte */
		if (size)
			data[at] = (r >> 60) & 1 ? (uint8_t)(r >> 48)
						 : edges[(r >> 48) % sizeof(edges)];
		break;
	case 2: /* a number of 8 bytes, a little more or less */
		if (size >= 8) {
			uint64_t v;

			at = (r >> 8) % (size - 7);
			memcpy(&v, data + at, 8);
			v += (uint64_t)((r >> 56) % 17) - 8;
			memcpy(data + at, &v, 8);
		}
		break;
	case 3: /* bytes more */
		if (n > max - size)
			n = max - size;
		memmove(data + at + n, data + at, size - at);
		for (size_t i = 0; i < n; i++)
			data[at + i] = (uint8_t)fuzz_random(&state);
		return size + n;
	case 4: /* bytes less */
		if (n > size - at)
			n = size - at;
		memmove(data + at, data + at + n, size - at - n);
		return size - n;
	case 5: /* bytes of this input elsewhere */
		if (size) {
			size_t from = (r >> 40) % size;

			n *= 4;
			if (n > size - from)
				n = size - from;
			if (n > size - at)
				n = size - at;
			memmove(data + at, data + from, n);
		}
		break;
	case 6: /* the end of another seed */
		if (n_seeds) {
			const struct seed *s = &seeds[(r >> 20) % n_seeds];
			size_t from = s->size ? (r >> 40) % s->size : 0;

			n = s->size - from < max - at ? s->size - from : max - at;
			memcpy(data + at, s->bytes + from, n);
			return at + n;
		}
		break;
	default: /* random bytes from here on */
		for (size_t i = at; i < size; i++)
			data[i] = (uint8_t)fuzz_random(&state);
	}
	return size;
}

int main(int argc, char **argv)
{
	const char *given = getenv("CUA_TEST_SEED"), *more = getenv("CUA_FUZZ_RUNS");
	unsigned long long runs = more && *more ? strtoull(more, NULL, 0) : 20000;
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM};
	static uint8_t bytes[MOST_BYTES];

	state = given && *given ? strtoull(given, NULL, 0) : 1;
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "-runs=", 6))
			runs = strtoull(argv[i] + 6, NULL, 0);
		else if (add(argv[i]))
			return EXIT_FAILURE;
	}
	printf("%s: CUA_TEST_SEED=%llu, %llu runs from %zu seeds\n", argv[0],
	       (unsigned long long)state, runs, n_seeds);
	fflush(stdout);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], failed);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(keep);
	for (size_t i = 0; i < n_seeds; i++)
		run(seeds[i].bytes, seeds[i].size);
	for (unsigned long long i = 0; i < runs; i++) {
		const struct seed *s = n_seeds ? &seeds[fuzz_random(&state) % n_seeds] : NULL;
		size_t size = s ? s->size : 0;
		unsigned steps = 1 + (unsigned)(fuzz_random(&state) % 4);

		if (size > MOST_BYTES)
			size = MOST_BYTES;
		if (size)
			memcpy(bytes, s->bytes, size);
		while (steps--)
			size = LLVMFuzzerCustomMutator
				       ? LLVMFuzzerCustomMutator(bytes, size, MOST_BYTES,
								 (unsigned)fuzz_random(&state))
				       : LLVMFuzzerMutate(bytes, size, MOST_BYTES);
		run(bytes, size);
	}
	for (size_t i = 0; i < n_seeds; i++)
		free(seeds[i].bytes);
	return EXIT_SUCCESS;
}
