/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench group` on GPUs: reductions of arrays and maps that are divided among all GPUs,
 * or among two contexts if there is a single GPU. The peer is one context on the elements of a
 * single rank, in the same run. So "x peer" is the number of GPUs that the group is worth. In the
 * sections of strong scaling, the peer has the elements of all ranks. Each result is checked.
 *
 * The peer of a sum of arrays is a copy of each array to the next rank: two ranks have to send as
 * many bytes.
 *
 * A run is a series of calls by the host's clock, from idle GPUs to idle GPUs.
 *
 * usage: bench-group [--quick] [ranks=N] [nccl] [SECTION...]
 *
 *     ranks=N   ranks 0 to N - 1, on as many GPUs, which they use in turn if there are fewer
 *     nccl      groups by NCCL, a thread for each rank, instead of peer copies
 *     sums, counts, maps, updates   the sections of a run without a section
 *     large     maps with 400 M pairs a rank
 *     strong    sums of 1 Gi elements and maps of 400 M pairs in all
 */
#include <math.h>

#include "gpu_bench_group.h"
#include "gpu_bench_group_maps.h"

/* ---- sums of elements ---- */

static __global__ void fill_kernel(float *x, size_t n, uint32_t rank)
{
	EACH(i, n)
	x[i] = (float)(mix(i ^ (uint64_t)rank << 40) >> 40) * 0x1p-24f;
}

/*
 * Divides `total` elements among the ranks; in mode FIXED the parts are cut at the nearest chunk.
 * The peer has `peer` elements on rank 0. Returns false if a GPU has too little memory.
 */
static bool divide(size_t peer, size_t total, enum cua_reduce_mode mode)
{
	size_t bytes[MOST_RANKS];

	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t first = total / ranks * r,
			 end = r + 1 < ranks ? total / ranks * (r + 1) : total;

		if (mode == CUA_REDUCE_FIXED) {
			check(cua_fixed_cut(CUA_F32, total, ranks, r, &first), "cua_fixed_cut");
			check(cua_fixed_cut(CUA_F32, total, ranks, r + 1, &end), "cua_fixed_cut");
		}
		lengths[r] = (size_t)(end - first);
		bytes[r] = (r || lengths[r] > peer ? lengths[r] : peer) * sizeof(float);
	}
	if (!allocate(bytes))
		return false;
	on_each_gpu([&](uint32_t r) {
		fill_kernel<<<BLOCKS, THREADS>>>((float *)arrays[r], bytes[r] / sizeof(float), r);
	});
	return true;
}

/* The sum of all ranks in double, by a context for each. */
static double reference(void)
{
	double sum = 0;

	for (uint32_t r = 0; r < ranks; r++) {
		struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
		double part;

		o.result_type = CUA_F64;
		check(cua_reduce(contexts[r], &o, CUA_REDUCE_SUM, CUA_F32, lengths[r], arrays[r],
				 NULL, &part),
		      "reference");
		sum += part;
	}
	return sum;
}

static void check_results(double wanted, const char *way)
{
	float first = 0, sum;

	for (uint32_t r = 0; r < ranks; r++) {
		check(cua_copy(contexts[r], &sum, results[r], sizeof(sum)), way);
		need(fabs((double)sum - wanted) <= fabs(wanted) * 0x1p-22 + 0x1p-100, way);
		need(!r || !memcmp(&sum, &first, sizeof(sum)), way);
		first = sum;
	}
}

/* Ranks that are threads must not allocate in a call. */
static void reserve_sums(const struct cua_reduce_options *o)
{
	for (uint32_t r = 0; r < ranks; r++) {
		size_t bytes;

		check(cua_group_reduce_workspace(groups[by_nccl ? r : 0], o, CUA_REDUCE_SUM,
						 CUA_F32, lengths[r], &bytes),
		      "cua_group_reduce_workspace");
		check(cua_context_reserve(contexts[r], bytes), "cua_context_reserve");
	}
}

static void sums(size_t peer, size_t total, enum cua_reduce_mode mode)
{
	struct cua_reduce_options o = CUA_REDUCE_OPTIONS_INIT;
	const char *name = mode == CUA_REDUCE_FAST    ? "FAST"
			   : mode == CUA_REDUCE_FIXED ? "FIXED"
						      : "EXACT";
	char title[sizeof(table.name)], text[24];
	double wanted;

	o.mode = mode;
	snprintf(title, sizeof(title), "%s sum, %.9s %s", name, size_text(text, peer),
		 peer == total ? "in all" : "a rank");
	table_begin(&table, title);
	if (!divide(peer, total, mode)) {
		print_skipped(title);
		return;
	}
	reserve_sums(&o);
	wanted = reference();
	peer_row("cua_reduce, one context", 1, (double)peer * sizeof(float), [&] {
		return cua_reduce(contexts[0], &o, CUA_REDUCE_SUM, CUA_F32, peer, arrays[0], NULL,
				  results[0]);
	});
	group_row("cua_group_reduce", (double)total * sizeof(float), [&](uint32_t first) {
		return cua_group_reduce(groups[first], &o, CUA_REDUCE_SUM, CUA_F32, lengths + first,
					(const void *const *)arrays + first, NULL,
					(void *const *)results + first);
	});
	check_results(wanted, name);
	table_end(&table);
}

static const enum cua_reduce_mode modes[] = {CUA_REDUCE_FAST, CUA_REDUCE_FIXED, CUA_REDUCE_EXACT};

static void sum_section(size_t n)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		set_timing(IN_STREAM, 8);
		sums(n, ranks * n, modes[i]);
		set_timing(CALL_WAIT, 1);
		sums((size_t)1 << 18, (size_t)ranks << 18, modes[i]);
		sums((size_t)1 << 13, (size_t)ranks << 13, modes[i]);
	}
}

/* ---- sums of arrays ---- */

static __global__ void set_kernel(uint64_t *x, size_t n, uint64_t value)
{
	EACH(i, n)
	x[i] = value;
}

static enum cua_status sum_arrays(size_t length, uint32_t first)
{
	return cua_group_sum(groups[first], CUA_U64, length, (void *const *)arrays + first);
}

/* Rank r has r + 1 in each place. */
static void check_counts(size_t length)
{
	on_each_gpu([&](uint32_t r) {
		set_kernel<<<BLOCKS, THREADS>>>((uint64_t *)arrays[r], length, r + 1);
	});
	collective("cua_group_sum", 1, [&](uint32_t first) { return sum_arrays(length, first); });
	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t least, most;

		check(cua_reduce(contexts[r], NULL, CUA_REDUCE_MIN, CUA_U64, length, arrays[r],
				 NULL, &least),
		      "least");
		check(cua_reduce(contexts[r], NULL, CUA_REDUCE_MAX, CUA_U64, length, arrays[r],
				 NULL, &most),
		      "most");
		need(least == ranks * (ranks + 1) / 2 && most == least, "cua_group_sum");
	}
}

static enum cua_status copy_to_next(size_t bytes)
{
	for (uint32_t r = 0; r < ranks; r++)
		if (cudaMemcpyAsync(arrays[(r + 1) % ranks] + bytes, arrays[r], bytes,
				    cudaMemcpyDefault,
				    (cudaStream_t)cua_context_stream(contexts[r])))
			return CUA_ERROR_CUDA;
	return CUA_OK;
}

/* length: counts of a rank. */
static void counts(size_t length)
{
	const double amount = (double)length * sizeof(uint64_t);
	char title[sizeof(table.name)], text[24];
	size_t bytes[MOST_RANKS], workspace;

	if (length < 1024)
		snprintf(text, sizeof(text), "%zu", length);
	else
		size_text(text, length);
	snprintf(title, sizeof(title), "%.9s counts a rank", text);
	table_begin(&table, title);
	for (uint32_t r = 0; r < ranks; r++)
		bytes[r] = 2 * length * sizeof(uint64_t);
	if (!allocate(bytes)) {
		print_skipped(title);
		return;
	}
	check(cua_group_sum_workspace(groups[0], CUA_U64, length, &workspace),
	      "cua_group_sum_workspace");
	for (uint32_t r = 0; r < ranks; r++)
		check(cua_context_reserve(contexts[r], workspace), "cua_context_reserve");
	/* without access between the GPUs, copies would go through host memory */
	if (!by_nccl)
		peer_row("a copy to the next rank", ranks, amount,
			 [&] { return copy_to_next(length * sizeof(uint64_t)); });
	group_row("cua_group_sum", amount,
		  [&](uint32_t first) { return sum_arrays(length, first); });
	check_counts(length);
	table_end(&table);
}

/* ---- the command ---- */

enum section { SUMS = 1, COUNTS = 2, MAPS = 4, UPDATES = 8, LARGE = 16, STRONG = 32 };

struct choice {
	bool quick, nccl;
	uint32_t ranks; /* 0: not chosen */
	unsigned sections;
};

static bool parse_word(const char *word, struct choice *c)
{
	static const char *const names[] = {"sums", "counts", "maps", "updates", "large", "strong"};
	char *end;
	long n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(word, names[i])) {
			c->sections |= 1u << i;
			return true;
		}
	if (!strcmp(word, "--quick"))
		return c->quick = true;
	if (!strcmp(word, "nccl"))
		return c->nccl = true;
	if (strncmp(word, "ranks=", 6))
		return false;
	n = strtol(word + 6, &end, 10);
	c->ranks = n < 1 || n > MOST_RANKS ? 0 : (uint32_t)n;
	return c->ranks && !*end;
}

static struct choice parse_choice(int argc, char **argv)
{
	struct choice c = {};

	for (int i = 1; i < argc; i++)
		if (!parse_word(argv[i], &c)) {
			fprintf(stderr, "cuatomic bench: group takes no argument '%s'\n", argv[i]);
			exit(2);
		}
	if (!c.sections)
		c.sections = SUMS | COUNTS | MAPS | UPDATES;
	return c;
}

static void run_sums(unsigned sections)
{
	const size_t n = (size_t)1 << (small ? 20 : 30);

	if (sections & (SUMS | COUNTS | STRONG))
		table_columns("GB/s", "a call");
	if (sections & SUMS)
		sum_section(n);
	set_timing(IN_STREAM, 8);
	for (size_t i = 0; sections & STRONG && i < sizeof(modes) / sizeof(modes[0]); i++)
		sums(n, n, modes[i]);
	set_timing(CALL_WAIT, 1);
	if (sections & COUNTS) {
		counts(256);
		counts((size_t)1 << (small ? 12 : 20));
		counts((size_t)1 << (small ? 14 : 27));
	}
}

static void run_maps(unsigned sections)
{
	const size_t million = small ? 1000 : 1000000;

	if (sections & (MAPS | UPDATES | LARGE | STRONG))
		table_columns("G/s", "a call");
	set_timing(CALL_WAIT, 1);
	if (sections & MAPS) {
		maps<uint32_t>(100 * million, 100 * million, "a rank");
		maps<uint64_t>(100 * million, 100 * million, "a rank");
	}
	if (sections & UPDATES) {
		updates<uint32_t>(100 * million, 10 * million);
		updates<uint64_t>(100 * million, 10 * million);
	}
	if (sections & LARGE) {
		maps<uint32_t>(400 * million, 400 * million, "a rank");
		maps<uint64_t>(400 * million, 400 * million, "a rank");
	}
	if (sections & STRONG) {
		maps<uint32_t>(400 * million, 400 * million / ranks, "in all");
		maps<uint64_t>(400 * million, 400 * million / ranks, "in all");
	}
}

int main(int argc, char **argv)
{
	const struct choice c = parse_choice(argc, argv);

	(void)print_head("group");
	small = c.quick;
	open_contexts(c.ranks);
	if (!c.nccl)
		open_group();
	if (!c.nccl || open_nccl_groups()) {
		run_sums(c.sections);
		run_maps(c.sections);
	}
	close_ranks();
	return 0;
}
