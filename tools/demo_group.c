/* SPDX-License-Identifier: MIT */
/*
 * The parts of `cuatomic demo --group`: the calls of groups on a piece of the file. Each part runs on
 * a group of a single rank and on a group of N ranks, with the same expected results.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

#define RANKS_MAX (DEMO_RANKS_MAX + 1)
static const uint64_t no_count = 0, one_count = 1;

struct demo_group {
	int gpus; /* of the machine; 0: the ranks are on the CPU */
	struct cua_context *contexts[RANKS_MAX];
	/* of the columns, and a group with another rank, which loads their maps */
	struct cua_group *groups[DEMO_COLUMNS], *loader;
	struct cua_group *now; /* the group that makes the calls */
	char names[DEMO_COLUMNS][16];
	double *tenths, exact; /* a tenth of each byte, and the exact sum of these, rounded once */
	struct cua_sharded_map *map; /* between the parts "map, ..." */
};

/* ---- calls ---- */

/* As `need` of demo_parts.c, for all ranks of a group. */
static void group_need(struct demo *d, enum cua_status status)
{
	struct demo_group *g = d->group;
	const int error = errno;
	int cuda_error = 0;

	for (uint32_t r = 0; r < cua_group_size(g->now); r++) {
		if (status == CUA_OK)
			status = cua_context_synchronize(g->contexts[r]);
		if (!cuda_error)
			cuda_error = cua_context_cuda_error(g->contexts[r]);
	}
	errno = error;
	demo_need(d, status, cuda_error);
}

static void group_timed(struct demo *d, enum cua_status status)
{
	const double start = d->clock;

	group_need(d, status);
	d->part->seconds[d->column] += d->clock - start;
}

/* ---- arrays that are divided among the ranks ---- */

struct divided {
	size_t size; /* of an element */
	size_t n[RANKS_MAX];
	void *at[RANKS_MAX]; /* in the memory of each rank */
};

#define IN(array) ((const void *const *)(array).at)
#define FLAGS(array) ((uint8_t *const *)(array).at)

/* Divides n elements evenly. */
static void divide(struct demo *d, struct divided *a, size_t n)
{
	const uint32_t ranks = cua_group_size(d->group->now);

	memset(a, 0, sizeof(*a));
	for (uint32_t r = 0; r < ranks; r++)
		a->n[r] = n * (r + 1) / ranks - n * r / ranks;
}

/* Allocates the parts, with undefined contents. A part without elements has no memory. */
static void divided_alloc(struct demo *d, struct divided *a, size_t size)
{
	a->size = size;
	for (uint32_t r = 0; r < cua_group_size(d->group->now); r++) {
		a->at[r] = NULL;
		if (a->n[r])
			group_need(d, cua_alloc(d->group->contexts[r], a->n[r], size, &a->at[r]));
	}
}

/* Allocates the parts, with the same `size` bytes in each element. */
static void divided_fill(struct demo *d, struct divided *a, size_t size, const void *element)
{
	divided_alloc(d, a, size);
	for (uint32_t r = 0; r < cua_group_size(d->group->now); r++) {
		if (a->n[r])
			group_need(d, cua_fill(d->group->contexts[r], a->at[r], a->n[r], size,
					       element));
	}
}

/* Allocates the parts, and copies an array from the host. */
static void divided_upload(struct demo *d, struct divided *a, size_t size, const void *host)
{
	const char *from = host;

	divided_alloc(d, a, size);
	for (uint32_t r = 0; r < cua_group_size(d->group->now); r++) {
		if (a->n[r])
			group_need(d,
				   cua_copy(d->group->contexts[r], a->at[r], from, a->n[r] * size));
		from += a->n[r] * size;
	}
}

/* Frees the parts, after copies to the host unless that is NULL. */
static void divided_download(struct demo *d, struct divided *a, void *host)
{
	char *to = host;

	for (uint32_t r = 0; r < cua_group_size(d->group->now); r++) {
		if (to && a->n[r]) {
			group_need(d, cua_copy(d->group->contexts[r], to, a->at[r],
					       a->n[r] * a->size));
			to += a->n[r] * a->size;
		}
		group_need(d, cua_free(d->group->contexts[r], a->at[r]));
	}
}

/* ---- sums and counts ---- */

/* Sums the tenths, and compares the result of each rank with `expected`. Returns the sum. */
static double sum(struct demo *d, struct divided *x, enum cua_reduce_mode mode, const char *what,
		  double expected)
{
	const struct cua_reduce_options options = {.struct_size = sizeof(options), .mode = mode};
	const uint32_t ranks = cua_group_size(d->group->now);
	double sums[RANKS_MAX] = {0};
	void *results[RANKS_MAX] = {NULL};

	for (uint32_t r = 0; r < ranks; r++) {
		sums[r] = NAN;
		results[r] = &sums[r];
	}
	divided_upload(d, x, sizeof(double), d->group->tenths);
	group_timed(d, cua_group_reduce(d->group->now, &options, CUA_REDUCE_SUM, CUA_F64, x->n,
					IN(*x), NULL, results));
	divided_download(d, x, NULL);
	for (uint32_t r = 0; r < ranks; r++)
		demo_verify(d, what, sums[r], expected);
	d->part->result[d->column] += sums[0];
	return sums[0];
}

static void run_exact_sum(struct demo *d)
{
	struct divided x;

	divide(d, &x, d->n);
	sum(d, &x, CUA_REDUCE_EXACT, "exact sum", d->group->exact);
}

/* The expected bits are those of a single context, without a group. */
static void run_fixed_sum(struct demo *d)
{
	const struct cua_reduce_options fixed = {.struct_size = sizeof(fixed),
						 .mode = CUA_REDUCE_FIXED};
	const uint32_t ranks = cua_group_size(d->group->now);
	struct cua_context *ctx = d->group->contexts[0];
	double expected = NAN, exact = d->group->exact, got;
	struct divided x = {.size = 0};
	void *whole = NULL;

	if (d->n) {
		group_need(d, cua_alloc(ctx, d->n, sizeof(double), &whole));
		group_need(d, cua_copy(ctx, whole, d->group->tenths, d->n * sizeof(double)));
	}
	group_need(d,
		   cua_reduce(ctx, &fixed, CUA_REDUCE_SUM, CUA_F64, d->n, whole, NULL, &expected));
	group_need(d, cua_free(ctx, whole));
	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t first, end;

		group_need(d, cua_fixed_cut(CUA_F64, d->n, ranks, r, &first));
		group_need(d, cua_fixed_cut(CUA_F64, d->n, ranks, r + 1, &end));
		x.n[r] = (size_t)(end - first);
	}
	got = sum(d, &x, CUA_REDUCE_FIXED, "fixed sum", expected);
	/* each of n additions of positive numbers has a relative error of at most DBL_EPSILON */
	demo_verify(d, "whether the fixed sum is near the exact sum",
		    fabs(got - exact) <= (double)d->n * DBL_EPSILON * exact, 1);
}

/* Each rank counts its bytes, and the group adds the counts. */
static void run_histogram(struct demo *d)
{
	const uint32_t ranks = cua_group_size(d->group->now);
	enum cua_status status = CUA_OK;
	struct divided x, counts = {.size = 0};
	uint64_t *host = tool_alloc(ranks * sizeof(d->count));

	divide(d, &x, d->n);
	divided_upload(d, &x, 1, d->bytes);
	for (uint32_t r = 0; r < ranks; r++)
		counts.n[r] = 256;
	divided_fill(d, &counts, sizeof(one_count), &one_count);
	for (uint32_t r = 0; r < ranks && !status; r++)
		status = cua_histogram_bytes(d->group->contexts[r], NULL, x.n[r], x.at[r],
					     counts.at[r]);
	if (!status)
		status = cua_group_sum(d->group->now, CUA_U64, 256, counts.at);
	group_timed(d, status);
	divided_download(d, &x, NULL);
	divided_download(d, &counts, host);
	for (uint32_t k = 0; k < 256 * ranks; k++)
		demo_verify(d, "count of a byte", (double)host[k], (double)d->count[k % 256]);
	d->part->result[d->column] += (double)d->n;
	free(host);
}

/* ---- a sharded map from the hash of a word to its count ---- */

static void run_build(struct demo *d)
{
	struct demo_group *g = d->group;
	struct divided keys, zeros, results;
	uint8_t *answers = d->host[OUT_A];
	uint64_t size = 0, inserted = 0;

	divide(d, &keys, d->n_words);
	zeros = results = keys;
	divided_upload(d, &keys, sizeof(uint64_t), d->host[KEYS]);
	divided_fill(d, &zeros, sizeof(no_count), &no_count);
	divided_fill(d, &results, 1, &no_count);
	group_need(d, cua_sharded_map_create(g->now, NULL, CUA_U64, CUA_U64, d->n_keys * 5 / 4 + 1,
					     &g->map));
	group_timed(d,
		    cua_sharded_map_build_n(g->map, keys.n, IN(keys), IN(zeros), FLAGS(results)));
	group_need(d, cua_sharded_map_size(g->map, &size));
	divided_download(d, &keys, NULL);
	divided_download(d, &zeros, NULL);
	divided_download(d, &results, answers);
	for (size_t k = 0; k < d->n_words; k++)
		inserted += answers[k] == CUA_HASHMAP_INSERTED;
	demo_verify(d, "number of words inserted", (double)inserted, (double)d->n_keys);
	demo_verify_result(d, "number of keys", (double)size, (double)d->n_keys);
}

/* Adds 1 for each word. */
static void run_update(struct demo *d)
{
	struct demo_group *g = d->group;
	struct divided keys, ones, results;
	uint8_t *answers = d->host[OUT_A];
	uint64_t present = 0;

	divide(d, &keys, d->n_words);
	ones = results = keys;
	divided_upload(d, &keys, sizeof(uint64_t), d->host[KEYS]);
	divided_fill(d, &ones, sizeof(one_count), &one_count);
	divided_fill(d, &results, 1, &no_count);
	group_timed(d, cua_sharded_map_update_n(g->map, CUA_UPDATE_ADD, keys.n, IN(keys), IN(ones),
						FLAGS(results)));
	divided_download(d, &keys, NULL);
	divided_download(d, &ones, NULL);
	divided_download(d, &results, answers);
	for (size_t k = 0; k < d->n_words; k++)
		present += answers[k] == CUA_HASHMAP_EXISTS;
	demo_verify_result(d, "number of words counted", (double)present, (double)d->n_words);
}

/*
 * Looks up each query by the group `now`. `what` names the comparisons of flags and of counts. Returns
 * the number of words found.
 */
static size_t find(struct demo *d, const char *const what[2])
{
	struct divided queries, values, found;
	const uint64_t *counts = d->host[OUT_A];
	const uint8_t *flags = d->host[OUT_B];
	size_t n = 0;

	divide(d, &queries, d->n_queries);
	values = found = queries;
	divided_upload(d, &queries, sizeof(uint64_t), d->queries);
	divided_fill(d, &values, sizeof(no_count), &no_count);
	divided_fill(d, &found, 1, &no_count);
	group_timed(d, cua_sharded_map_find_n(d->group->map, queries.n, IN(queries), values.at,
					      FLAGS(found)));
	divided_download(d, &queries, NULL);
	divided_download(d, &values, d->host[OUT_A]);
	divided_download(d, &found, d->host[OUT_B]);
	for (size_t q = 0; q < d->n_queries; q++) {
		const size_t expected = d->first[q + 1] - d->first[q];

		demo_verify(d, what[0], flags[q], expected > 0);
		demo_verify(d, what[1], (double)counts[q], (double)expected);
		n += flags[q];
	}
	return n;
}

static void run_find(struct demo *d)
{
	static const char *const what[2] = {"word found", "count of a word"};

	demo_verify_result(d, "number of words found", (double)find(d, what), (double)d->n_keys);
}

static char folder[PATH_MAX - 64];

/* Removes the folder of the map's files; also at the exit after an error. */
static void remove_folder(void)
{
	DIR *files = *folder ? opendir(folder) : NULL;
	struct dirent *entry;

	if (!files)
		return;
	while ((entry = readdir(files)))
		unlinkat(dirfd(files), entry->d_name, 0);
	closedir(files);
	rmdir(folder);
	*folder = 0;
}

static void make_folder(void)
{
	static int registered;
	const char *tmp = getenv("TMPDIR");

	if (!registered)
		atexit(remove_folder);
	registered = 1;
	snprintf(folder, sizeof(folder), "%s/cuatomic-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		const int error = errno;

		*folder = 0;
		tool_die("a folder in %s: %s", tmp && *tmp ? tmp : "/tmp", strerror(error));
	}
}

/* The map is saved by the ranks of the column, and loaded by a group with another rank. */
static void run_files(struct demo *d)
{
	static const char *const what[2] = {"word found in the loaded map",
					    "count of a word in the loaded map"};
	struct demo_group *g = d->group;
	char path[PATH_MAX];
	uint64_t size = 0;

	make_folder();
	snprintf(path, sizeof(path), "%s/map", folder);
	group_need(d, CUA_OK);
	group_timed(d, cua_sharded_map_save(g->map, path));
	cua_sharded_map_destroy(g->map);
	g->now = g->loader;
	group_need(d, CUA_OK);
	group_timed(d, cua_sharded_map_load(g->now, NULL, path, &g->map));
	remove_folder();
	group_need(d, cua_sharded_map_size(g->map, &size));
	find(d, what);
	demo_verify_result(d, "number of keys loaded", (double)size, (double)d->n_keys);
	cua_sharded_map_destroy(g->map);
	g->now = g->groups[d->column];
}

struct demo_part demo_group_parts[] = {
	{"sum, exact", run_exact_sum, "", .decimals = 3},
	{"sum, fixed", run_fixed_sum, "", .decimals = 3},
	{"histogram", run_histogram, .unit = " bytes"},
	{"map, build", run_build, .unit = " different words"},
	{"map, update", run_update, .unit = " words"},
	{"map, find", run_find, .unit = " words found"},
	{"map, save and load", run_files, .unit = " different words"},
	{NULL},
};

/* ---- the ranks ---- */

static void open_context(struct demo_group *g, uint32_t rank, int gpus,
			 const struct tool_options *o)
{
	struct cua_device_info cpu = CUA_DEVICE_INFO_INIT;
	enum cua_status status;

	if (!gpus) {
		g->contexts[rank] = tool_cpu_context(o->threads, &cpu);
		return;
	}
	status = cua_context_create(CUA_BACKEND_CUDA, (int)rank % gpus, &g->contexts[rank]);
	if (status)
		tool_die("GPU %d: %s", (int)rank % gpus, cua_strerror(status));
}

void demo_group_print(const struct demo_group *g, const struct tool_options *o)
{
	const int gpus = g->gpus;
	struct cua_device_info info = CUA_DEVICE_INFO_INIT;
	const unsigned threads = cua_context_threads(g->contexts[0]);
	const int used = gpus < (int)o->group ? gpus : (int)o->group;

	if (gpus)
		printf("CPU:  not used\n");
	else if (!cua_device_query(CUA_BACKEND_CPU, 0, &info))
		printf("CPU:  %s, %u thread%s for each rank\n", info.name, threads,
		       threads == 1 ? "" : "s");
	if (!o->cuda)
		printf("GPU:  not used\n");
	else if (!gpus)
		printf("GPU:  none (%s)\n", cua_device_problem(CUA_BACKEND_CUDA, 0));
	for (int k = 0; k < used; k++) {
		if (!cua_device_query(CUA_BACKEND_CUDA, k, &info))
			printf("GPU %d: %s, compute capability %d.%d\n", k, info.name,
			       info.compute_major, info.compute_minor);
	}
	fflush(stdout);
}

struct demo_group *demo_group_open(const struct tool_options *o)
{
	const uint32_t sizes[DEMO_COLUMNS] = {1, o->group};
	enum cua_status status = CUA_OK;
	struct demo_group *g;
	int gpus = 0;

	if (o->cuda)
		status = cua_device_count(CUA_BACKEND_CUDA, &gpus);
	if (status || (!gpus && !o->cpu))
		tool_die("CUDA backend: %s",
			 status ? cua_strerror(status) : cua_device_problem(CUA_BACKEND_CUDA, 0));
	g = tool_alloc(sizeof(*g));
	memset(g, 0, sizeof(*g));
	for (uint32_t r = 0; r <= o->group; r++)
		open_context(g, r, gpus, o);
	for (int k = 0; k < DEMO_COLUMNS && !status; k++) {
		snprintf(g->names[k], sizeof(g->names[k]), "%u rank%s", sizes[k],
			 sizes[k] == 1 ? "" : "s");
		status = cua_group_create_devices(sizes[k], g->contexts, &g->groups[k]);
	}
	if (!status)
		status = cua_group_create_devices(o->group + 1, g->contexts, &g->loader);
	if (status)
		tool_die("a group of %u ranks: %s", o->group, cua_strerror(status));
	g->gpus = gpus;
	return g;
}

const char *demo_group_name(const struct demo_group *g, int column)
{
	return g->names[column];
}

void demo_group_close(struct demo_group *g)
{
	cua_group_destroy(g->loader);
	for (int k = 0; k < DEMO_COLUMNS; k++)
		cua_group_destroy(g->groups[k]);
	for (uint32_t r = 0; r < RANKS_MAX; r++)
		cua_context_destroy(g->contexts[r]);
	free(g);
}

/* ---- a piece ---- */

/*
 * Writes the tenths, and their sum. A tenth is a whole number of 2^-56, below 2^61, so halves of 32
 * bits add up exactly. The last addition rounds.
 */
static void read_tenths(struct demo *d)
{
	struct demo_group *g = d->group;
	uint64_t low = 0, high = 0;

	for (size_t k = 0; k < d->n; k++)
		g->tenths[k] = d->bytes[k] / 10.0;
	for (int byte = 0; byte < 256; byte++) {
		const uint64_t units = (uint64_t)ldexp(byte / 10.0, 56);

		low += (units & UINT32_MAX) * d->count[byte];
		high += (units >> 32) * d->count[byte];
	}
	high += low >> 32;
	low &= UINT32_MAX;
	g->exact = ldexp(ldexp((double)high, 32) + (double)low, -56);
}

void demo_group_run(struct demo_group *g, const uint8_t *bytes, size_t n)
{
	struct demo d;

	demo_open(&d, bytes, n);
	d.group = g;
	g->tenths = tool_alloc(n * sizeof(*g->tenths));
	read_tenths(&d);
	for (d.column = 0; d.column < DEMO_COLUMNS; d.column++) {
		/* a group of a single rank has a single column */
		if (d.column > 0 && cua_group_size(g->groups[d.column]) == 1)
			continue;
		d.where = g->names[d.column];
		g->now = g->groups[d.column];
		for (d.part = demo_group_parts; d.part->name; d.part++) {
			group_need(&d, CUA_OK);
			d.part->run(&d);
		}
	}
	free(g->tenths);
	demo_close(&d);
}
