/* SPDX-License-Identifier: MIT */
/* The multimap on the CPU. */
#include "config.h"

#include "kernels/hashmap_bulk.h"
#include "kernels/multimap_pool.h"

/*
 * Elements that justify a thread, and keys per batch; the buckets of a batch are prefetched
 * together.
 */
#define GRAIN 4096
#define BATCH 32

struct job {
	const struct cua_multimap_view *view;
	const struct cua__multimap_call *call;
	unsigned ranges;
};

/* The keys of a batch with their hashes; their home buckets are being prefetched. */
struct batch {
	struct cua_u128 keys[BATCH];
	uint64_t hashes[BATCH];
	size_t n;
};

CUA_FORCE void batch_load(const struct job *job, uint32_t ks, size_t first, size_t end,
			  struct batch *b)
{
	const struct cua_hashmap_view *map = &job->view->map;
	const size_t bytes = map->layout == CUA_HASHMAP_WORDS ? CUA__HASHMAP_WORD_BYTES
							      : CUA__HASHMAP_STATE_BUCKET;

	b->n = end - first < BATCH ? end - first : BATCH;
	for (size_t i = 0; i < b->n; i++) {
		b->keys[i] = cua__hashmap_get(job->call->keys, ks, first + i);
		b->hashes[i] = cua__hashmap_hash(map, ks, b->keys[i]);
		__builtin_prefetch((const char *)map->buckets +
				   cua_hash_to_index(b->hashes[i], map->n_buckets) * bytes);
	}
}

#define EACH_BATCH(job, ks, b, first, begin, end)                                                  \
	for (size_t first = (begin); first < (end) && (batch_load(job, ks, first, end, &(b)), 1);  \
	     first += (b).n)

/* Reads the heads of a batch and prefetches their entries. */
CUA_FORCE void batch_heads(const struct job *job, uint32_t ks, uint32_t vs, const struct batch *b,
			   uint64_t heads[BATCH])
{
	for (size_t i = 0; i < b->n; i++) {
		heads[i] = cua__multimap_head(job->view, ks, b->hashes[i], b->keys[i]);
		if (heads[i])
			__builtin_prefetch(cua__multimap_entry(job->view, vs, heads[i]));
	}
}

CUA_FORCE void insert_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
			    size_t end)
{
	const struct cua__multimap_call *call = job->call;
	struct batch b;

	EACH_BATCH(job, ks, b, first, begin, end)
	{
		uint64_t ticket = cua__multimap_claim_tickets(job->view, b.n);

		for (size_t i = 0; i < b.n; i++) {
			int result = cua__multimap_insert_at(
				job->view, ks, vs, b.hashes[i], b.keys[i],
				cua__hashmap_get(call->values, vs, first + i).lo, ticket + i);

			if (call->results)
				call->results[first + i] = (uint8_t)result;
		}
	}
}

/* Returns the sum of the counts. */
CUA_FORCE uint64_t count_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
			       size_t end)
{
	uint64_t heads[BATCH], sum = 0;
	struct batch b;

	EACH_BATCH(job, ks, b, first, begin, end)
	{
		batch_heads(job, ks, vs, &b, heads);
		for (size_t i = 0; i < b.n; i++) {
			uint64_t n = cua__multimap_length(job->view, vs, heads[i]);

			job->call->out[first + i] = n;
			sum += n;
		}
	}
	return sum;
}

/* Stores the values. If `out` has the counts, replaces them by the offsets from `offset` on. */
CUA_FORCE void values_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
			    size_t end, uint64_t offset)
{
	const struct cua__multimap_call *call = job->call;
	uint64_t heads[BATCH];
	struct batch b;

	EACH_BATCH(job, ks, b, first, begin, end)
	{
		batch_heads(job, ks, vs, &b, heads);
		for (size_t i = 0; i < b.n; i++) {
			uint64_t at = heads[i], to = offset + call->out[first + i];

			call->out[first + i] = offset < call->max ? offset : call->max;
			for (uint64_t o = offset; at && o < to && o < call->max;
			     o++, at = cua__multimap_next(job->view, vs, at)) {
				struct cua_u128 value = {cua__multimap_value(job->view, vs, at), 0};

				cua__hashmap_set(call->values_out, vs, o, value);
			}
			offset = to;
		}
	}
}

CUA_FORCE void erase_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
			   size_t end)
{
	struct batch b;

	EACH_BATCH(job, ks, b, first, begin, end)
	for (size_t i = 0; i < b.n; i++) {
		uint64_t n = cua__multimap_erase(job->view, ks, vs, b.hashes[i], b.keys[i]);

		if (job->call->out)
			job->call->out[first + i] = n;
	}
}

/* Calls f(job, ks, vs, ...) with constant sizes. */
#define BY_SIZE(f, job, ...)                                                                       \
	do {                                                                                       \
		if ((job)->view->map.key_size == 4 && (job)->view->value_size == 4)                \
			f(job, 4, 4, __VA_ARGS__);                                                 \
		else if ((job)->view->map.key_size == 4)                                           \
			f(job, 4, 8, __VA_ARGS__);                                                 \
		else if ((job)->view->value_size == 4)                                             \
			f(job, 8, 4, __VA_ARGS__);                                                 \
		else                                                                               \
			f(job, 8, 8, __VA_ARGS__);                                                 \
	} while (0)

static void insert_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	size_t begin, end;

	cua__share(job->call->n, worker, workers, &begin, &end);
	BY_SIZE(insert_range, job, begin, end);
}

static void erase_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	size_t begin, end;

	cua__share(job->call->n, worker, workers, &begin, &end);
	BY_SIZE(erase_range, job, begin, end);
}

static void count_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	size_t begin, end;
	uint64_t sum = 0;

	cua__share(job->call->n, worker, workers, &begin, &end);
	BY_SIZE(sum = count_range, job, begin, end);
	if (job->call->sums)
		job->call->sums[worker] = sum;
}

static void values_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	size_t begin, end;

	cua__share(job->call->n, worker, workers, &begin, &end);
	BY_SIZE(values_range, job, begin, end, job->call->sums[worker]);
}

static unsigned ranges_of(const struct cua_context *ctx, size_t n)
{
	unsigned workers = cua__workers(ctx, n, GRAIN);

	return workers < CUA__MULTIMAP_RANGES ? workers : CUA__MULTIMAP_RANGES;
}

static enum cua_status work(struct cua_context *ctx, const struct cua_multimap_view *view,
			    const struct cua__multimap_call *call,
			    void (*worker)(void *arg, unsigned worker, unsigned workers))
{
	struct job job = {view, call, ranges_of(ctx, call->n)};

	cua__parallel(ctx, job.ranges, worker, &job);
	return CUA_OK;
}

static enum cua_status cpu_insert(struct cua_context *ctx, const struct cua_multimap_view *view,
				  const struct cua__multimap_call *call)
{
	return work(ctx, view, call, insert_worker);
}

static enum cua_status cpu_count(struct cua_context *ctx, const struct cua_multimap_view *view,
				 const struct cua__multimap_call *call)
{
	return work(ctx, view, call, count_worker);
}

static enum cua_status cpu_erase(struct cua_context *ctx, const struct cua_multimap_view *view,
				 const struct cua__multimap_call *call)
{
	return work(ctx, view, call, erase_worker);
}

static enum cua_status cpu_retrieve(struct cua_context *ctx, const struct cua_multimap_view *view,
				    const struct cua__multimap_call *call)
{
	uint64_t sum = 0;

	if (call->n) {
		work(ctx, view, call, count_worker);
		for (unsigned i = 0; i < ranges_of(ctx, call->n); i++) {
			uint64_t part = call->sums[i];

			call->sums[i] = sum;
			sum += part;
		}
		work(ctx, view, call, values_worker);
	}
	call->out[call->n] = sum < call->max ? sum : call->max;
	*call->total = sum;
	return CUA_OK;
}

static enum cua_status cpu_retrieve_all(struct cua_context *ctx,
					const struct cua_multimap_view *view,
					const struct cua__multimap_call *call)
{
	const uint32_t ks = view->map.key_size, vs = view->value_size;
	uint64_t slots = cua__multimap_map_slots(view, ks), n = 0;
	struct cua_u128 key = {0, 0}, value = {0, 0};

	(void)ctx;
	for (uint64_t i = 0; i < slots; i++)
		for (uint64_t at = cua__multimap_at(view, ks, i, &key); at;
		     at = cua__multimap_next(view, vs, at), n++) {
			if (n >= call->max)
				continue;
			value.lo = cua__multimap_value(view, vs, at);
			cua__hashmap_set(call->keys_out, ks, n, key);
			cua__hashmap_set(call->values_out, vs, n, value);
		}
	*call->total = n;
	return CUA_OK;
}

/* ---- reclaim and size ---- */

static void reclaim_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct cua_multimap_view *view = ((const struct job *)arg)->view;
	uint64_t n = 0, offset;
	size_t begin, end;

	cua__share(cua__multimap_used(view), worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++)
		n += (uint64_t)cua__multimap_is_free(view, i + 1);
	offset = cua_port_fetch_add_u64(&view->pool->gathered, n, CUA__MULTIMAP_AT);
	for (size_t i = begin; i < end && n; i++)
		if (cua__multimap_is_free(view, i + 1))
			cua__multimap_set_reusable(view, offset++, i + 1);
}

static enum cua_status cpu_reclaim(struct cua_context *ctx, const struct cua_multimap_view *view)
{
	struct job job = {view, NULL, cua__workers(ctx, cua__multimap_used(view), GRAIN)};

	cua__parallel(ctx, job.ranges, reclaim_worker, &job);
	cua__multimap_reclaimed(view);
	return CUA_OK;
}

static enum cua_status cpu_size(struct cua_context *ctx, const struct cua_multimap_view *view,
				uint64_t *size)
{
	(void)ctx;
	*size = cua__multimap_count(view);
	return CUA_OK;
}

const struct cua__multimap_ops cua__cpu_multimap = {
	.insert = cpu_insert,
	.count = cpu_count,
	.erase = cpu_erase,
	.retrieve = cpu_retrieve,
	.retrieve_all = cpu_retrieve_all,
	.reclaim = cpu_reclaim,
	.size = cpu_size,
};
