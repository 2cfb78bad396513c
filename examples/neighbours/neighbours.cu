/* SPDX-License-Identifier: MIT */
/*
 * The pairs of particles within a cutoff in a periodic box, by a grid of cells. Threads of the CPU
 * or of a kernel append the pairs to a buffer. If the buffer is too small, its demand is the size
 * that a second run needs.
 *
 * Coordinates are 32-bit fractions of the box. So the difference of two coordinates wraps around
 * like the box, and distances are exact integers: CPU and GPU find the same pairs.
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

#define THREADS_MOST 64
#define BLOCK 128
#define SIDE_MOST 256 /* cells on a side of the box */
#define UNITS 4294967296.0
#define BLANKS " \t\r\n"

static void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("neighbours: ", stderr);
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

/* ---- on threads and in the kernel ---- */

struct point {
	uint32_t x[3];
};

/* The particles sorted by cell. Cell c has the particles first[c] to first[c + 1] - 1. */
struct box {
	const struct point *point;
	const uint32_t *name; /* the number of each particle in the input */
	const uint32_t *first;
	uint32_t n, side;
	uint64_t cutoff2; /* square of the cutoff */
};

struct pair {
	uint32_t a, b; /* numbers in the input, a < b */
};

/* Blocks collect pairs in shared memory. */
CUA_DEFINE_APPEND_STAGE(pairs, struct pair, 2048)

CUA_FN uint64_t distance2(const struct point *a, const struct point *b)
{
	uint64_t sum = 0;

	for (int k = 0; k < 3; k++) {
		const int64_t d = (int32_t)(a->x[k] - b->x[k]);

		sum += (uint64_t)(d * d);
	}
	return sum;
}

CUA_FN uint32_t cell_on_axis(uint32_t x, uint32_t side)
{
	return (uint32_t)((uint64_t)x * side >> 32);
}

/* Appends the pairs of particle i with the particles of a cell. */
CUA_FN void pairs_with_cell(const struct box *box, uint32_t i, uint32_t cell,
			    const struct cua_append_view *out, struct cua_append_stage_pairs *stage)
{
	for (uint32_t j = box->first[cell]; j < box->first[cell + 1]; j++) {
		struct pair pair;

		pair.a = box->name[i];
		pair.b = box->name[j];
		/* the particle with the greater number finds the same pair */
		if (pair.a < pair.b && distance2(&box->point[i], &box->point[j]) <= box->cutoff2)
			cua_append_stage_push_pairs(out, stage, pair);
	}
}

/* A cell is at least as wide as the cutoff, so the partners are in the 27 cells around. */
CUA_FN void pairs_of(const struct box *box, uint32_t i, const struct cua_append_view *out,
		     struct cua_append_stage_pairs *stage)
{
	const uint32_t side = box->side, around = side < 3 ? 1 : 3;
	const struct point *p = &box->point[i];

	for (uint32_t k = 0; k < around * around * around; k++) {
		/* side - 1 is a step back */
		const uint32_t x = (cell_on_axis(p->x[0], side) + side - 1 + k % 3) % side;
		const uint32_t y = (cell_on_axis(p->x[1], side) + side - 1 + k / 3 % 3) % side;
		const uint32_t z = (cell_on_axis(p->x[2], side) + side - 1 + k / 9) % side;

		pairs_with_cell(box, i, (z * side + y) * side + x, out, stage);
	}
}

/*
 * Block number `block` of `blocks` appends the pairs of its particles. A host thread is a block of
 * a single thread.
 */
CUA_FN void pairs_of_block(const struct box *box, uint32_t block, uint32_t blocks, uint32_t threads,
			   uint32_t thread, const struct cua_append_view *out,
			   struct cua_append_stage_pairs *stage)
{
	cua_append_stage_init_pairs(stage);
	for (uint64_t begin = (uint64_t)block * threads; begin < box->n;
	     begin += (uint64_t)blocks * threads) {
		/* more pairs than this are correct, but slower */
		cua_append_stage_make_room_pairs(out, stage, 1024);
		if (begin + thread < box->n)
			pairs_of(box, (uint32_t)begin + thread, out, stage);
	}
	cua_append_stage_flush_pairs(out, stage);
}

struct worker {
	pthread_t thread;
	const struct box *box;
	const struct cua_append_view *out;
	uint32_t number, workers;
};

static void *work(void *arg)
{
	const struct worker *w = (const struct worker *)arg;
	struct cua_append_stage_pairs stage;

	pairs_of_block(w->box, w->number, w->workers, 1, 0, w->out, &stage);
	return NULL;
}

static void find_on_threads(const struct box *box, const struct cua_append_view *out, unsigned n)
{
	struct worker worker[THREADS_MOST];

	if (n > THREADS_MOST)
		n = THREADS_MOST;
	for (unsigned i = 0; i < n; i++) {
		worker[i].box = box;
		worker[i].out = out;
		worker[i].number = i;
		worker[i].workers = n;
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			die(1, "a thread cannot be started");
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(worker[i].thread, NULL);
}

#ifdef __CUDACC__
static __global__ void find_kernel(struct box box, struct cua_append_view out)
{
	__shared__ struct cua_append_stage_pairs stage;

	pairs_of_block(&box, blockIdx.x, gridDim.x, blockDim.x, threadIdx.x, &out, &stage);
}
#endif

static void find_on_gpu(struct cua_context *ctx, const struct box *box,
			const struct cua_append_view *out)
{
#ifdef __CUDACC__
	if (!box->n) /* a grid cannot be empty */
		return;
	find_kernel<<<(box->n + BLOCK - 1) / BLOCK, BLOCK, 0, cua_context_stream(ctx)>>>(*box,
											 *out);
	if (cudaGetLastError() != cudaSuccess)
		die(1, "the kernel cannot be launched");
#else
	(void)ctx, (void)box, (void)out;
	die(1, "CUDA: this program was compiled without nvcc");
#endif
}

/* ---- the list of pairs ---- */

static void *in_backend(struct cua_context *ctx, const void *host, size_t n, size_t size)
{
	void *p;

	check(cua_alloc(ctx, n, size, &p), "memory");
	check(cua_copy(ctx, p, host, n * size), "copy");
	return p;
}

/* Sorts the particles by cell. Returns the grid in the backend's memory. */
static struct box make_box(struct cua_context *ctx, const struct point *point, uint32_t n,
			   double cutoff)
{
	const uint64_t units = (uint64_t)(cutoff * UNITS);
	struct box box;
	struct point *sorted = (struct point *)resized(NULL, n, sizeof(*sorted));
	uint32_t *name = (uint32_t *)resized(NULL, n, sizeof(*name)), *first, cells;
	uint32_t *cell = (uint32_t *)resized(NULL, n, sizeof(*cell));

	box.n = n;
	box.cutoff2 = units * units;
	/* about a particle a cell; below 3 cells on a side, cells would be their own neighbours twice */
	for (box.side = 1; box.side < SIDE_MOST && (box.side + 1) * cutoff <= 1 &&
			   (uint64_t)box.side * box.side * box.side < n;)
		box.side++;
	if (box.side < 3)
		box.side = 1;
	cells = box.side * box.side * box.side;
	first = (uint32_t *)resized(NULL, cells + 1, sizeof(*first));
	memset(first, 0, (cells + 1) * sizeof(*first));
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *x = point[i].x;

		cell[i] = (cell_on_axis(x[2], box.side) * box.side + cell_on_axis(x[1], box.side)) *
				  box.side +
			  cell_on_axis(x[0], box.side);
		first[cell[i]]++;
	}
	for (uint32_t c = 0, sum = 0; c <= cells; c++)
		first[c] = sum += c < cells ? first[c] : 0;
	for (uint32_t i = n; i-- > 0;) {
		const uint32_t at = --first[cell[i]];

		sorted[at] = point[i];
		name[at] = i;
	}
	box.point = (const struct point *)in_backend(ctx, sorted, n, sizeof(*sorted));
	box.name = (const uint32_t *)in_backend(ctx, name, n, sizeof(*name));
	box.first = (const uint32_t *)in_backend(ctx, first, cells + 1, sizeof(*first));
	check(cua_context_synchronize(ctx), "copy");
	free(sorted);
	free(name);
	free(cell);
	free(first);
	return box;
}

static int by_numbers(const void *a, const void *b)
{
	const struct pair *x = (const struct pair *)a, *y = (const struct pair *)b;

	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

/* Finds all pairs in a buffer with room for `room` pairs, and again if that is too small. */
static struct pair *find_pairs(struct cua_context *ctx, const struct box *box, uint64_t room,
			       uint64_t *n)
{
	struct cua_append_view view;
	struct cua_append *buffer;
	struct pair *pair;

	for (;;) {
		check(cua_append_create(ctx, sizeof(struct pair), room, &buffer), "buffer");
		check(cua_append_get_view(buffer, &view), "buffer");
		if (cua_context_backend(ctx) == CUA_BACKEND_CUDA)
			find_on_gpu(ctx, box, &view);
		else
			find_on_threads(box, &view, cua_context_threads(ctx));
		check(cua_append_demand(buffer, n), "pairs");
		if (*n <= room)
			break;
		fprintf(stderr, "room for %" PRIu64 " pairs, %" PRIu64 " needed: again\n", room,
			*n);
		check(cua_append_destroy(buffer), "buffer");
		room = *n;
	}
	pair = (struct pair *)resized(NULL, *n, sizeof(*pair));
	check(cua_append_read(buffer, pair, *n, n), "pairs");
	check(cua_append_destroy(buffer), "buffer");
	qsort(pair, *n, sizeof(*pair), by_numbers);
	return pair;
}

/* Whether the sorted pairs are the result of a plain loop over all pairs. */
static int is_right(const struct point *point, uint32_t n, uint64_t cutoff2,
		    const struct pair *pair, uint64_t pairs)
{
	uint64_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = i + 1; j < n; j++) {
			if (distance2(&point[i], &point[j]) > cutoff2)
				continue;
			if (k == pairs || pair[k].a != i || pair[k].b != j)
				return 0;
			k++;
		}
	}
	return k == pairs;
}

/* ---- the program ---- */

/* Reads "X Y Z" and nothing else from a line. */
static int read_numbers(const char *line, size_t length, double *x)
{
	const char *at = line;
	char *end;

	for (int k = 0; k < 3; k++, at = end) {
		x[k] = strtod(at, &end);
		if (end == at || !strchr(BLANKS, *end))
			return 0;
	}
	return at + strspn(at, BLANKS) == line + length;
}

/* The point of fractions of the box. Returns 0 if a fraction is outside [0, 1). */
static int to_point(const double *x, struct point *point)
{
	for (int k = 0; k < 3; k++) {
		if (!(x[k] >= 0 && x[k] < 1))
			return 0;
		point->x[k] = (uint32_t)(x[k] * UNITS);
	}
	return 1;
}

/* Reads lines "X Y Z", fractions of the box in [0, 1). */
static struct point *read_points(const char *path, uint32_t *n)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
	struct point *point = NULL;
	uint64_t number = 1;
	uint32_t room = 0;
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	double x[3];

	if (!f)
		die(1, "%s: %s", path, strerror(errno));
	for (*n = 0; (length = getline(&line, &size, f)) >= 0; number++) {
		if (strspn(line, BLANKS) == (size_t)length)
			continue;
		if (*n == room) {
			if (room >= 1u << 30)
				die(1, "%s: more than %" PRIu32 " particles", path, room);
			room = 2 * room + 1024;
			point = (struct point *)resized(point, room, sizeof(*point));
		}
		if (!read_numbers(line, (size_t)length, x))
			die(1, "%s: line %" PRIu64 ": not three numbers", path, number);
		if (!to_point(x, &point[(*n)++]))
			die(1, "%s: line %" PRIu64 ": a coordinate is not in [0, 1)", path, number);
	}
	if (!feof(f))
		die(1, "%s: %s", path, strerror(errno));
	free(line);
	if (f != stdin)
		fclose(f);
	return point;
}

static double fraction(const char *text, double most)
{
	char *end;
	const double v = strtod(text, &end);

	if (end == text || *end || !(v > 0 && v <= most))
		die(2, "'%s' is not a number above 0, at most %g", text, most);
	return v;
}

static uint64_t whole_number(const char *text, uint64_t most)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v < 1 || v > most)
		die(2, "'%s' is not a number from 1 to %" PRIu64, text, most);
	return v;
}

static enum cua_backend backend_of(const char *name)
{
	if (!strcmp(name, "cuda"))
		return CUA_BACKEND_CUDA;
	if (strcmp(name, "cpu") && strcmp(name, "auto"))
		die(2, "-b %s: choose cpu, cuda or auto", name);
#ifdef __CUDACC__
	if (!strcmp(name, "auto"))
		return CUA_BACKEND_AUTO;
#endif
	return CUA_BACKEND_CPU;
}

static void usage(void)
{
	die(2, "usage: neighbours [-b cpu|cuda|auto] [-c] [-l] [-r CUTOFF] [-s PAIRS] FILE");
}

int main(int argc, char **argv)
{
	enum cua_backend backend = backend_of("auto");
	double cutoff = 0.05;
	int list = 0, checked = 0, right = 1, c;
	struct cua_context *ctx;
	struct point *point;
	struct pair *pair;
	struct box box;
	uint64_t pairs, room = 0;
	uint32_t n;

	opterr = 0;
	while ((c = getopt(argc, argv, "b:clr:s:")) != -1) {
		switch (c) {
		case 'b': backend = backend_of(optarg); break;
		case 'c': checked = 1; break;
		case 'l': list = 1; break;
		case 'r': cutoff = fraction(optarg, 0.5); break;
		case 's': room = whole_number(optarg, 1000000000000); break;
		default: usage();
		}
	}
	if (optind + 1 != argc)
		usage();
	point = read_points(argv[optind], &n);
	check(cua_context_create(backend, 0, &ctx),
	      backend == CUA_BACKEND_CUDA ? "CUDA" : "starting");
	box = make_box(ctx, point, n, cutoff);
	pair = find_pairs(ctx, &box, room ? room : 4 * (uint64_t)n, &pairs);
	for (uint64_t i = 0; list && i < pairs; i++)
		printf("%" PRIu32 " %" PRIu32 "\n", pair[i].a + 1, pair[i].b + 1);
	if (!list)
		printf("%" PRIu32 " particles, %" PRIu64 " pairs\n", n, pairs);
	if (checked) {
		right = is_right(point, n, box.cutoff2, pair, pairs);
		printf("%s\n", right ? "the same pairs as by a loop over all pairs"
				     : "WRONG: a loop over all pairs finds other pairs");
	}
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output: %s", strerror(errno));
	check(cua_free(ctx, (void *)box.point), "memory");
	check(cua_free(ctx, (void *)box.name), "memory");
	check(cua_free(ctx, (void *)box.first), "memory");
	cua_context_destroy(ctx);
	free(point);
	free(pair);
	return !right;
}
