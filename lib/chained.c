/* SPDX-License-Identifier: MIT */
/* The chained hash table: argument checks and calls of the backend. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "backend/chained_backend.h"

struct cua_chained {
	struct cua_context *ctx;
	struct cua_chained_view view;
	/* a single allocation: cursor and locks, zeros at the start; heads, all bits 1; entries */
	char *base;
	size_t bytes, zeros, ones;
};

/* ---- life ---- */

/* Empties the table in stream order. Entries not in use are never read. */
static enum cua_status reset(struct cua_chained *table)
{
	const struct cua__runtime *runtime = table->ctx->runtime;
	enum cua_status status = runtime->set_bytes(table->ctx, table->base, 0, table->zeros);

	if (!status)
		status = runtime->set_bytes(table->ctx, table->base + table->zeros, 0xff,
					    table->ones);
	return status;
}

enum cua_status cua_chained_create(struct cua_context *ctx,
				   const struct cua_chained_options *options, uint64_t buckets,
				   uint64_t capacity, struct cua_chained **result)
{
	struct cua_chained_options chosen;
	size_t locks, heads, entries;
	const struct cua__runtime *runtime;
	struct cua_chained *table;
	struct cua__call call;
	enum cua_status status;
	void *base = NULL;

	if (!ctx || !result)
		return CUA_ERROR_NULL;
	if (!buckets || cua__options(options, &chosen, sizeof(chosen)))
		return CUA_ERROR_VALUE;
	/*
	 * the factor 4 bounds each size by a quarter of the range, so that the sums below cannot
	 * overflow
	 */
	if (cua__bytes(buckets, 4 * sizeof(uint64_t), &heads) ||
	    cua__bytes(capacity, 4 * sizeof(struct cua_chained_entry), &entries))
		return CUA_ERROR_SIZE;
	locks = cua__scratch_size(buckets * sizeof(struct cua_spinlock));
	heads = cua__scratch_size(buckets * sizeof(uint64_t));
	entries = cua__scratch_size(capacity * sizeof(struct cua_chained_entry));
	table = calloc(1, sizeof(*table));
	if (!table)
		return CUA_ERROR_NO_MEMORY;
	table->ctx = ctx;
	table->zeros = 256 + locks;
	table->ones = heads;
	table->bytes = 256 + locks + heads + entries;

	runtime = ctx->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->allocate(ctx, table->bytes, &base);
	if (!status) {
		table->base = base;
		status = reset(table);
		if (!status)
			status = runtime->synchronize(ctx);
		if (status)
			runtime->release(ctx, base);
	}
	status = cua__call_end(&call, status);
	if (status) {
		free(table);
		return status;
	}
	table->view.cursor = base;
	table->view.locks = (void *)(table->base + 256);
	table->view.heads = (void *)(table->base + table->zeros);
	table->view.entries = (void *)(table->base + table->zeros + table->ones);
	table->view.n_buckets = buckets;
	table->view.capacity = capacity;
	table->view.seed = chosen.seed ? chosen.seed : cua__random_seed().lo;
	table->view.layout = CUA_CHAINED_LAYOUT;
	*result = table;
	return CUA_OK;
}

enum cua_status cua_chained_destroy(struct cua_chained *table)
{
	const struct cua__runtime *runtime;
	struct cua__call call;
	enum cua_status status;

	if (!table)
		return CUA_OK;
	runtime = table->ctx->runtime;
	cua__call_begin(&call, table->ctx);
	status = runtime->may_wait(table->ctx);
	if (!status)
		status = runtime->synchronize(table->ctx);
	/* during a capture nothing is freed; after any other error the table is gone */
	if (status != CUA_ERROR_CAPTURE) {
		enum cua_status released = runtime->release(table->ctx, table->base);

		status = cua__call_end(&call, status ? status : released);
		free(table);
		return status;
	}
	return cua__call_end(&call, status);
}

enum cua_status cua_chained_get_view(const struct cua_chained *table, struct cua_chained_view *view)
{
	if (!table || !view)
		return CUA_ERROR_NULL;
	*view = table->view;
	return CUA_OK;
}

enum cua_status cua_chained_clear(struct cua_chained *table)
{
	struct cua__call call;

	if (!table)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, table->ctx);
	return cua__call_end(&call, reset(table));
}

/* ---- bulk calls ---- */

static int in_table(const struct cua_chained *table, const void *p, size_t bytes)
{
	return cua__overlap(p, bytes, table->base, table->bytes);
}

static enum cua_status insert(struct cua_chained *table, int build, size_t n, const uint64_t *keys,
			      const uint64_t *values)
{
	const void *k, *v;
	struct cua__call call;
	enum cua_status status;

	if (!table)
		return CUA_ERROR_NULL;
	status = cua__check_array(table->ctx, keys, n, sizeof(*keys), sizeof(*keys), &k);
	if (!status)
		status = cua__check_array(table->ctx, values, n, sizeof(*values), sizeof(*values),
					  &v);
	if (status)
		return status;
	if (in_table(table, keys, n * sizeof(*keys)) ||
	    in_table(table, values, n * sizeof(*values)))
		return CUA_ERROR_OVERLAP;
	if (!n)
		return CUA_OK;
	cua__call_begin(&call, table->ctx);
	status = CUA__OPS(table->ctx, chained)->insert(table->ctx, &table->view, build, n, k, v);
	return cua__call_end(&call, status);
}

enum cua_status cua_chained_insert_n(struct cua_chained *table, size_t n, const uint64_t *keys,
				     const uint64_t *values)
{
	return insert(table, 0, n, keys, values);
}

enum cua_status cua_chained_build_n(struct cua_chained *table, size_t n, const uint64_t *keys,
				    const uint64_t *values)
{
	return insert(table, 1, n, keys, values);
}

enum cua_status cua_chained_find_n(struct cua_chained *table, size_t n, const uint64_t *keys,
				   uint64_t *values_out, uint8_t *found)
{
	size_t bytes = n * sizeof(*keys), flags = found ? n : 0;
	const void *k, *v, *f;
	struct cua__call call;
	enum cua_status status;

	if (!table)
		return CUA_ERROR_NULL;
	status = cua__check_array(table->ctx, keys, n, sizeof(*keys), sizeof(*keys), &k);
	if (!status)
		status = cua__check_array(table->ctx, values_out, n, sizeof(*values_out),
					  sizeof(*values_out), &v);
	if (!status)
		status = cua__check_array(table->ctx, found, flags, 1, 1, &f);
	if (status)
		return status;
	if (cua__overlap(keys, bytes, values_out, bytes) ||
	    cua__overlap(keys, bytes, found, flags) ||
	    cua__overlap(values_out, bytes, found, flags) || in_table(table, values_out, bytes) ||
	    in_table(table, found, flags))
		return CUA_ERROR_OVERLAP;
	if (!n)
		return CUA_OK;
	cua__call_begin(&call, table->ctx);
	status = CUA__OPS(table->ctx, chained)
			 ->find(table->ctx, &table->view, n, k, (void *)v, (void *)f);
	return cua__call_end(&call, status);
}

enum cua_status cua_chained_count_n(struct cua_chained *table, size_t n, const uint64_t *keys,
				    uint64_t *counts_out)
{
	size_t bytes = n * sizeof(*keys);
	const void *k, *c;
	struct cua__call call;
	enum cua_status status;
	void *pending;

	if (!table)
		return CUA_ERROR_NULL;
	status = cua__check_array(table->ctx, keys, n, sizeof(*keys), sizeof(*keys), &k);
	if (!status)
		status = cua__check_array(table->ctx, counts_out, n, sizeof(*counts_out),
					  sizeof(*counts_out), &c);
	if (status)
		return status;
	if (cua__overlap(keys, bytes, counts_out, bytes) || in_table(table, counts_out, bytes))
		return CUA_ERROR_OVERLAP;
	if (!n)
		return CUA_OK;
	cua__call_begin(&call, table->ctx);
	status = cua__call_scratch(&call, sizeof(struct cua__chained_pending), &pending);
	if (!status)
		status = table->ctx->runtime->set_bytes(table->ctx, pending, 0,
							sizeof(struct cua__chained_pending));
	if (!status)
		status = CUA__OPS(table->ctx, chained)
				 ->count(table->ctx, &table->view, n, k, (void *)c, pending);
	return cua__call_end(&call, status);
}

enum cua_status cua_chained_values(struct cua_chained *table, uint64_t key, uint64_t max,
				   uint64_t *values_out, uint64_t *n)
{
	size_t bytes;
	const void *v;
	struct cua__call call;
	enum cua_status status;
	void *found, *result;

	if (!table || !n)
		return CUA_ERROR_NULL;
	status = cua__check_array(table->ctx, values_out, max, sizeof(*values_out),
				  sizeof(*values_out), &v);
	if (status)
		return status;
	bytes = max * sizeof(*values_out);
	if (cua__overlap(values_out, bytes, n, sizeof(*n)) || in_table(table, values_out, bytes) ||
	    in_table(table, n, sizeof(*n)))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, table->ctx);
	status = cua__call_result(&call, n, sizeof(*n), sizeof(*n), &result);
	if (!status)
		status = cua__call_scratch(&call, sizeof(struct cua__chained_found), &found);
	if (!status)
		status = table->ctx->runtime->set_bytes(table->ctx, found, 0,
							sizeof(struct cua__chained_found));
	if (!status)
		status = CUA__OPS(table->ctx, chained)
				 ->values(table->ctx, &table->view, key, max, (void *)v, found);
	if (!status)
		status = table->ctx->runtime->copy(
			table->ctx, result, &((struct cua__chained_found *)found)->n, sizeof(*n));
	return cua__call_end(&call, status);
}

/* ---- the whole table ---- */

enum cua_status cua_chained_demand(struct cua_chained *table, uint64_t *demand)
{
	struct cua__call call;
	enum cua_status status;
	void *result;

	if (!table || !demand)
		return CUA_ERROR_NULL;
	if (in_table(table, demand, sizeof(*demand)))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, table->ctx);
	status = cua__call_result(&call, demand, sizeof(*demand), sizeof(*demand), &result);
	if (!status)
		status = table->ctx->runtime->copy(table->ctx, result, &table->view.cursor->demand,
						   sizeof(*demand));
	return cua__call_end(&call, status);
}

enum cua_status cua_chained_size(struct cua_chained *table, uint64_t *size)
{
	struct cua__call call;
	enum cua_status status;
	void *result;

	if (!table || !size)
		return CUA_ERROR_NULL;
	if (in_table(table, size, sizeof(*size)))
		return CUA_ERROR_OVERLAP;
	cua__call_begin(&call, table->ctx);
	status = cua__call_result(&call, size, sizeof(*size), sizeof(*size), &result);
	if (!status)
		status = CUA__OPS(table->ctx, chained)->size(table->ctx, &table->view, result);
	return cua__call_end(&call, status);
}

/* Copies the demand to the host. To be called within a call. */
static enum cua_status read_demand(struct cua_chained *table, uint64_t *demand)
{
	const struct cua__runtime *runtime = table->ctx->runtime;
	enum cua_status status = runtime->may_wait(table->ctx);

	if (!status)
		status = runtime->copy(table->ctx, demand, &table->view.cursor->demand,
				       sizeof(*demand));
	return status ? status : runtime->synchronize(table->ctx);
}

enum cua_status cua_chained_status(struct cua_chained *table)
{
	struct cua__call call;
	enum cua_status status;
	uint64_t demand = 0;

	if (!table)
		return CUA_ERROR_NULL;
	cua__call_begin(&call, table->ctx);
	status = cua__call_end(&call, read_demand(table, &demand));
	if (status)
		return status;
	return demand > table->view.capacity ? CUA_ERROR_FULL : CUA_OK;
}

enum cua_status cua_chained_copy(struct cua_chained *table, struct cua_context *other,
				 struct cua_chained **result)
{
	const struct cua__runtime *runtime;
	struct cua_chained_options options = {.struct_size = sizeof(options)};
	struct cua_chained *copy = NULL;
	struct cua_context *ctx;
	struct cua__call call;
	enum cua_status status;
	uint64_t demand = 0, used;

	if (!table || !other || !result)
		return CUA_ERROR_NULL;
	options.seed = table->view.seed;
	cua__call_begin(&call, table->ctx);
	status = cua__call_end(&call, read_demand(table, &demand));
	if (!status)
		status = cua_chained_create(other, &options, table->view.n_buckets,
					    table->view.capacity, &copy);
	if (status)
		return status;
	used = demand < table->view.capacity ? demand : table->view.capacity;
	/* the CUDA runtime can copy to and from both memories; the CPU runtime only its own */
	ctx = table->ctx->runtime->kind == CUA_BACKEND_CUDA ? table->ctx : other;
	runtime = ctx->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->copy(ctx, copy->view.cursor, table->view.cursor,
			       sizeof(*copy->view.cursor));
	if (!status)
		status = runtime->copy(ctx, copy->view.heads, table->view.heads,
				       table->view.n_buckets * sizeof(*copy->view.heads));
	if (!status)
		status = runtime->copy(ctx, copy->view.entries, table->view.entries,
				       used * sizeof(*copy->view.entries));
	if (!status)
		status = runtime->synchronize(ctx);
	status = cua__call_end(&call, status);
	if (status)
		cua_chained_destroy(copy);
	else
		*result = copy;
	return status;
}

/* Allocates the memory of the check and runs it. To be called within a call. */
static enum cua_status run_check(struct cua_chained *table, uint64_t used,
				 struct cua__chained_totals *totals)
{
	const struct cua__runtime *runtime = table->ctx->runtime;
	struct cua__chained_check check;
	size_t marks, zeros, segments;
	enum cua_status status;
	void *base;

	check.entries = used;
	check.groups = used / CUA__CHAINED_GROUP + (used % CUA__CHAINED_GROUP != 0);
	marks = cua__scratch_size((size_t)(used / 32 + 1) * sizeof(*check.seen));
	zeros = 256 + marks;
	if (cua__bytes(table->view.n_buckets + check.groups, sizeof(*check.segments), &segments))
		return CUA_ERROR_SIZE;
	status = runtime->allocate(table->ctx, zeros + segments, &base);
	if (status)
		return status;
	check.totals = base;
	check.seen = (void *)((char *)base + 256);
	check.segments = (void *)((char *)base + zeros);
	status = runtime->set_bytes(table->ctx, base, 0, zeros);
	if (!status)
		status = CUA__OPS(table->ctx, chained)->verify(table->ctx, &table->view, &check);
	if (!status)
		status = runtime->copy(table->ctx, totals, check.totals, sizeof(*totals));
	if (!status)
		status = runtime->synchronize(table->ctx);
	runtime->release(table->ctx, base);
	return status;
}

enum cua_status cua_chained_verify(struct cua_chained *table, struct cua_chained_report *report)
{
	struct cua_chained_report out = {.struct_size = sizeof(out)};
	struct cua__chained_totals totals;
	struct cua__call call;
	enum cua_status status;
	uint64_t demand = 0;

	if (!table)
		return CUA_ERROR_NULL;
	if (report && !cua__known_size(report->struct_size, sizeof(out)))
		return CUA_ERROR_VALUE;
	memset(&totals, 0, sizeof(totals));
	cua__call_begin(&call, table->ctx);
	status = read_demand(table, &demand);
	out.entries = demand < table->view.capacity ? demand : table->view.capacity;
	if (!status)
		status = run_check(table, out.entries, &totals);
	status = cua__call_end(&call, status);
	if (status)
		return status;
	out.reached = totals.reached;
	out.misplaced = totals.misplaced;
	out.twice = totals.twice;
	out.lost = out.entries - totals.reached;
	out.broken_links = totals.broken;
	if (report) {
		out.struct_size = report->struct_size;
		memcpy(report, &out, report->struct_size);
	}
	return out.misplaced || out.twice || out.lost || out.broken_links ? CUA_ERROR_CORRUPT
									  : CUA_OK;
}
