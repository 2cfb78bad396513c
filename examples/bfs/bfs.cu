/* SPDX-License-Identifier: MIT */
/*
 * Breadth-first search in a graph of vertices with 64-bit names. Threads of the CPU or of a
 * kernel expand the vertices of a level: a set of visited vertices accepts each vertex from a
 * single thread, and this thread appends it to the next level.
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
#define BLOCK 256
#define FEW 1024 /* vertices of a level for a single thread */
#define BLANKS " \t\r\n"

static void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("bfs: ", stderr);
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

/* The edges sorted by their first vertex. A row is the edges that share it. */
struct graph {
	struct cua_hashmap_view rows; /* the row of each vertex with edges */
	const uint64_t *first;        /* row r is edges first[r] to first[r + 1] - 1 */
	const uint64_t *to;
};

CUA_DEFINE_HASHMAP(rows, uint64_t, uint64_t)
CUA_DEFINE_HASHSET(visited, uint64_t)

CUA_FN void expand(const struct graph *graph, const struct cua_hashmap_view *seen, uint64_t vertex,
		   const struct cua_append_view *next)
{
	uint64_t row;

	if (!rows_find(&graph->rows, vertex, &row))
		return;
	for (uint64_t e = graph->first[row]; e < graph->first[row + 1]; e++) {
		if (visited_insert(seen, graph->to[e]) == CUA_HASHMAP_INSERTED)
			cua_append_push_u64(next, graph->to[e]);
	}
}

struct worker {
	pthread_t thread;
	const struct graph *graph;
	const struct cua_hashmap_view *seen;
	const uint64_t *level;
	uint64_t begin, end;
	const struct cua_append_view *next;
};

static void *work(void *arg)
{
	const struct worker *w = (const struct worker *)arg;

	for (uint64_t i = w->begin; i < w->end; i++)
		expand(w->graph, w->seen, w->level[i], w->next);
	return NULL;
}

static void expand_on_threads(const struct graph *graph, const struct cua_hashmap_view *seen,
			      const uint64_t *level, uint64_t n, const struct cua_append_view *next,
			      unsigned threads)
{
	struct worker worker[THREADS_MOST];

	if (threads > THREADS_MOST)
		threads = THREADS_MOST;
	if (n < FEW)
		threads = 1;
	for (unsigned t = 0; t < threads; t++) {
		worker[t].graph = graph;
		worker[t].seen = seen;
		worker[t].level = level;
		worker[t].begin = n * t / threads;
		worker[t].end = n * (t + 1) / threads;
		worker[t].next = next;
		if (t && pthread_create(&worker[t].thread, NULL, work, &worker[t]))
			die(1, "a thread cannot be started");
	}
	work(&worker[0]);
	for (unsigned t = 1; t < threads; t++)
		pthread_join(worker[t].thread, NULL);
}

#ifdef __CUDACC__
static __global__ void expand_kernel(struct graph graph, struct cua_hashmap_view seen,
				     const uint64_t *level, uint64_t n, struct cua_append_view next)
{
	const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		expand(&graph, &seen, level[i], &next);
}
#endif

static void expand_level(struct cua_context *ctx, const struct graph *graph,
			 struct cua_hashmap *seen, const uint64_t *level, uint64_t n,
			 struct cua_append *next)
{
	struct cua_hashmap_view seen_view;
	struct cua_append_view next_view;

	check(cua_append_reset(next), "level");
	check(cua_hashmap_get_view(seen, &seen_view), "set");
	check(cua_append_get_view(next, &next_view), "level");
	if (cua_context_backend(ctx) == CUA_BACKEND_CPU) {
		expand_on_threads(graph, &seen_view, level, n, &next_view,
				  cua_context_threads(ctx));
		return;
	}
#ifdef __CUDACC__
	expand_kernel<<<(unsigned)((n + BLOCK - 1) / BLOCK), BLOCK, 0, cua_context_stream(ctx)>>>(
		*graph, seen_view, level, n, next_view);
	if (cudaGetLastError() != cudaSuccess)
		die(1, "the kernel cannot be launched");
#else
	die(1, "CUDA: this program was compiled without nvcc");
#endif
}

/* ---- the graph ---- */

struct edge {
	uint64_t from, to;
};

static int by_ends(const void *a, const void *b)
{
	const struct edge *x = (const struct edge *)a, *y = (const struct edge *)b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int by_name(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Reads digits after blanks. Returns the rest of the line, or NULL. strtoull would accept signs. */
static const char *read_name(const char *at, uint64_t *name)
{
	int digits = 0;

	at += strspn(at, " \t");
	for (*name = 0; *at >= '0' && *at <= '9'; at++, digits++) {
		if (*name > (UINT64_MAX - (uint64_t)(*at - '0')) / 10)
			return NULL;
		*name = 10 * *name + (uint64_t)(*at - '0');
	}
	return digits ? at : NULL;
}

/* Reads "A B" and nothing else from a line. */
static int read_edge(const char *line, size_t length, struct edge *e)
{
	const char *at = read_name(line, &e->from);

	if (!at || !strchr(" \t", *at) || !(at = read_name(at, &e->to)))
		return 0;
	return at + strspn(at, BLANKS) == line + length;
}

static struct edge *add_edge(struct edge *edge, uint64_t *n, uint64_t *room, struct edge e)
{
	if (*n == *room) {
		*room = 2 * *room + 1024;
		edge = (struct edge *)resized(edge, *room, sizeof(*edge));
	}
	edge[(*n)++] = e;
	return edge;
}

/*
 * Reads lines "A B". Returns the edges, sorted; with `both` directions of each. *first becomes the
 * first vertex.
 */
static struct edge *read_edges(const char *path, int both, uint64_t *n, uint64_t *first)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
	struct edge *edge = NULL, e;
	uint64_t room = 0, number = 1;
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	if (!f)
		die(1, "%s: %s", path, strerror(errno));
	for (*n = 0; (length = getline(&line, &size, f)) >= 0; number++) {
		if (strspn(line, BLANKS) == (size_t)length)
			continue;
		if (!read_edge(line, (size_t)length, &e))
			die(1, "%s: line %" PRIu64 ": not two numbers", path, number);
		if (!*n)
			*first = e.from;
		edge = add_edge(edge, n, &room, e);
		if (both) {
			const struct edge back = {e.to, e.from};

			edge = add_edge(edge, n, &room, back);
		}
	}
	if (!feof(f))
		die(1, "%s: %s", path, strerror(errno));
	free(line);
	if (f != stdin)
		fclose(f);
	if (!*n)
		die(1, "%s: no edges", path);
	qsort(edge, *n, sizeof(*edge), by_ends);
	return edge;
}

static uint64_t *in_backend(struct cua_context *ctx, const uint64_t *host, size_t n)
{
	void *p;

	check(cua_alloc(ctx, n, sizeof(*host), &p), "memory");
	check(cua_copy(ctx, p, host, n * sizeof(*host)), "copy");
	check(cua_context_synchronize(ctx), "copy");
	return (uint64_t *)p;
}

/* Makes the rows of sorted edges, in the backend's memory, and the map of rows. */
static struct cua_hashmap *make_graph(struct cua_context *ctx, const struct edge *edge, uint64_t n,
				      struct graph *graph)
{
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;
	uint64_t *name = (uint64_t *)resized(NULL, n, sizeof(*name)), rows = 0;
	uint64_t *row = (uint64_t *)resized(NULL, n, sizeof(*row));
	uint64_t *first = (uint64_t *)resized(NULL, n + 1, sizeof(*first));
	uint64_t *to = (uint64_t *)resized(NULL, n, sizeof(*to)), *keys, *values;
	struct cua_hashmap *map;

	for (uint64_t e = 0; e < n; e++) {
		to[e] = edge[e].to;
		if (!e || edge[e].from != edge[e - 1].from) {
			name[rows] = edge[e].from;
			row[rows] = rows;
			first[rows++] = e;
		}
	}
	first[rows] = n;
	options.portable = 1; /* the kernel may be compiled for any GPU */
	check(cua_hashmap_create(ctx, &options, CUA_U64, CUA_U64, rows + rows / 2 + 1, &map),
	      "map");
	keys = in_backend(ctx, name, rows);
	values = in_backend(ctx, row, rows);
	check(cua_hashmap_build_n(map, rows, keys, values, NULL), "map");
	check(cua_free(ctx, keys), "memory");
	check(cua_free(ctx, values), "memory");
	check(cua_hashmap_get_view(map, &graph->rows), "map");
	graph->first = in_backend(ctx, first, rows + 1);
	graph->to = in_backend(ctx, to, n);
	free(name);
	free(row);
	free(first);
	free(to);
	return map;
}

/* ---- the search ---- */

/* The vertices in the order of their levels, and by name within a level. */
struct result {
	uint64_t *name, n;
	uint64_t *level_end; /* level k ends before vertex level_end[k] */
	uint32_t levels;
};

static void add_level(struct result *r, struct cua_append *vertices, uint64_t n)
{
	r->name = (uint64_t *)resized(r->name, r->n + n, sizeof(*r->name));
	check(cua_append_read(vertices, r->name + r->n, n, &n), "level");
	qsort(r->name + r->n, n, sizeof(*r->name), by_name);
	r->n += n;
	r->level_end = (uint64_t *)resized(r->level_end, r->levels + 1, sizeof(*r->level_end));
	r->level_end[r->levels++] = r->n;
}

static struct result search(struct cua_context *ctx, const struct graph *graph, uint64_t edges,
			    uint64_t source)
{
	struct result r = {NULL, 0, NULL, 0};
	struct cua_append *level[2];
	struct cua_hashmap *seen;
	uint64_t *start = in_backend(ctx, &source, 1), n = 1;
	void *vertices = start;

	/* a vertex is in the set, and in a level, because an edge leads to it, or as the source */
	check(cua_hashmap_create(ctx, NULL, CUA_U64, CUA_NONE, edges + edges / 2 + 2, &seen),
	      "set");
	check(cua_hashmap_insert_n(seen, 1, start, NULL, NULL), "set");
	for (int i = 0; i < 2; i++)
		check(cua_append_create(ctx, sizeof(uint64_t), edges, &level[i]), "level");
	r.name = (uint64_t *)resized(NULL, 1, sizeof(*r.name));
	r.name[r.n++] = source;
	r.level_end = (uint64_t *)resized(NULL, 1, sizeof(*r.level_end));
	r.level_end[r.levels++] = 1;
	for (int next = 0; n; next = !next) {
		expand_level(ctx, graph, seen, (const uint64_t *)vertices, n, level[next]);
		check(cua_append_size(level[next], &n), "level");
		check(cua_append_items(level[next], &vertices), "level");
		if (n)
			add_level(&r, level[next], n);
	}
	check(cua_hashmap_destroy(seen), "set");
	check(cua_append_destroy(level[0]), "level");
	check(cua_append_destroy(level[1]), "level");
	check(cua_free(ctx, start), "memory");
	return r;
}

/* ---- a serial search by a queue ---- */

static uint64_t index_of(const uint64_t *name, uint64_t n, uint64_t vertex)
{
	return (uint64_t)((const uint64_t *)bsearch(&vertex, name, n, sizeof(*name), by_name) -
			  name);
}

/* The sorted names of all vertices. */
static uint64_t *all_names(const struct edge *edge, uint64_t edges, uint64_t source, uint64_t *n)
{
	uint64_t *name = (uint64_t *)resized(NULL, 2 * edges + 1, sizeof(*name)), all = 0;

	for (uint64_t e = 0; e < edges; e++) {
		name[all++] = edge[e].from;
		name[all++] = edge[e].to;
	}
	name[all++] = source;
	qsort(name, all, sizeof(*name), by_name);
	*n = 0;
	for (uint64_t i = 0; i < all; i++) {
		if (!i || name[i] != name[i - 1])
			name[(*n)++] = name[i];
	}
	return name;
}

/* Whether a serial search by a queue gives the same level to each vertex. */
static int is_right(const struct edge *edge, uint64_t edges, uint64_t source,
		    const struct result *r)
{
	uint64_t n, *name = all_names(edge, edges, source, &n), head = 0, tail = 0, v = 0;
	uint64_t *queue = (uint64_t *)resized(NULL, n, sizeof(*queue));
	uint64_t *first = (uint64_t *)resized(NULL, n + 1, sizeof(*first));
	uint32_t *level = (uint32_t *)resized(NULL, n, sizeof(*level)), k = 0;
	int right;

	for (uint64_t e = 0; v <= n; v++) {
		while (e < edges && v < n && edge[e].from < name[v])
			e++;
		first[v] = v < n ? e : edges;
	}
	memset(level, 0xff, n * sizeof(*level));
	queue[tail++] = index_of(name, n, source);
	level[queue[0]] = 0;
	while (head < tail) {
		const uint64_t from = queue[head++];

		for (uint64_t e = first[from]; e < edges && edge[e].from == name[from]; e++) {
			const uint64_t to = index_of(name, n, edge[e].to);

			if (level[to] == UINT32_MAX) {
				level[to] = level[from] + 1;
				queue[tail++] = to;
			}
		}
	}
	right = r->n == tail;
	for (uint64_t i = 0; right && i < r->n; i++) {
		k += i == r->level_end[k];
		right = level[index_of(name, n, r->name[i])] == k;
	}
	free(name);
	free(queue);
	free(first);
	free(level);
	return right;
}

/* ---- the program ---- */

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

static uint64_t vertex_of(const char *text)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		die(2, "'%s' is not the name of a vertex", text);
	return v;
}

static void print(const struct result *r, int list)
{
	uint64_t i = 0;

	for (uint32_t k = 0; k < r->levels; k++) {
		if (!list)
			printf("level %" PRIu32 ": %" PRIu64 "\n", k, r->level_end[k] - i);
		for (; i < r->level_end[k]; i++) {
			if (list)
				printf("%" PRIu64 " %" PRIu32 "\n", r->name[i], k);
		}
	}
}

static void usage(void)
{
	die(2, "usage: bfs [-b cpu|cuda|auto] [-c] [-l] [-s VERTEX] [-u] FILE");
}

int main(int argc, char **argv)
{
	enum cua_backend backend = backend_of("auto");
	int list = 0, checked = 0, both = 0, chosen = 0, right = 1, c;
	struct cua_context *ctx;
	struct cua_hashmap *map;
	struct result result;
	struct graph graph;
	struct edge *edge;
	uint64_t edges, source = 0, first = 0;

	opterr = 0;
	while ((c = getopt(argc, argv, "b:clus:")) != -1) {
		switch (c) {
		case 'b': backend = backend_of(optarg); break;
		case 'c': checked = 1; break;
		case 'l': list = 1; break;
		case 's':
			source = vertex_of(optarg);
			chosen = 1;
			break;
		case 'u': both = 1; break;
		default: usage();
		}
	}
	if (optind + 1 != argc)
		usage();
	edge = read_edges(argv[optind], both, &edges, &first);
	if (!chosen)
		source = first;
	check(cua_context_create(backend, 0, &ctx),
	      backend == CUA_BACKEND_CUDA ? "CUDA" : "starting");
	map = make_graph(ctx, edge, edges, &graph);
	result = search(ctx, &graph, edges, source);
	print(&result, list);
	if (checked) {
		right = is_right(edge, edges, source, &result);
		printf("%s\n", right ? "the same levels as by a serial search"
				     : "WRONG: a serial search finds other levels");
	}
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output: %s", strerror(errno));
	check(cua_hashmap_destroy(map), "map");
	check(cua_free(ctx, (void *)graph.first), "memory");
	check(cua_free(ctx, (void *)graph.to), "memory");
	cua_context_destroy(ctx);
	free(result.name);
	free(result.level_end);
	free(edge);
	return !right;
}
