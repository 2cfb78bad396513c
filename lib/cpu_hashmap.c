/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hashmap.h"

/* Elements worth a thread of their own, and keys whose buckets are on their way at the same time. */
#define GRAIN 4096
#define AHEAD 16

struct job {
	const struct cua_hashmap_view *view;
	const struct cua__hashmap_call *call;
};

/* The next keys with their hashes, element i at i % AHEAD. */
struct ring {
	struct cua_u128 keys[AHEAD];
	uint64_t hashes[AHEAD];
};

/* Hashes the key of element i, if there is one, and asks for its home bucket. */
CUA_FORCE void ask(struct ring *ring, const struct job *job, uint32_t ks, uint32_t vs, size_t i, size_t end,
		   int writes)
{
	const struct cua_hashmap_view *view = job->view;
	const int words = CUA__HASHMAP_IS_WORDS(view, ks, vs);
	struct cua_u128 key;
	const char *bucket;
	uint64_t hash;

	if (i >= end)
		return;
	key = cua__hashmap_get(job->call->keys, ks, i);
	hash = cua__hashmap_hash(view, ks, key);
	ring->keys[i % AHEAD] = key;
	ring->hashes[i % AHEAD] = hash;
	bucket = (const char *)view->buckets +
		 cua_hash_range(hash, view->n_buckets) *
			 (words ? CUA__HASHMAP_WORD_BYTES : CUA__HASHMAP_STATE_BUCKET);
	if (writes)
		__builtin_prefetch(bucket, 1);
	else
		__builtin_prefetch(bucket);
	if (!words)
		__builtin_prefetch(bucket + 64, 1);
}

/* For element i of [begin, end), with its key and hash at hand and those AHEAD of it asked for. */
#define EACH(i, ring, begin, end, writes)                                                          \
	for (size_t i = (begin); i < (begin) + AHEAD; i++)                                         \
		ask(&(ring), job, ks, vs, i, end, writes);                                         \
	for (size_t i = (begin); i < (end); ask(&(ring), job, ks, vs, i + AHEAD, end, writes), i++)

CUA_FORCE void write_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin, size_t end)
{
	const struct cua__hashmap_call *call = job->call;
	struct ring ring;

	EACH(i, ring, begin, end, 1) {
		struct cua_u128 there = {0, 0};
		int result = cua__hashmap_write(job->view, ks, vs, call->op, ring.hashes[i % AHEAD],
						ring.keys[i % AHEAD],
						cua__hashmap_get(call->values, vs, i), &there);

		if (call->flags)
			call->flags[i] = (uint8_t)result;
		if (call->values_out &&
		    (result == CUA_HASHMAP_EXISTS ||
		     (result == CUA_HASHMAP_INSERTED && call->op == CUA__HASHMAP_INSERT)))
			cua__hashmap_set(call->values_out, vs, i, there);
	}
}

/* Inserts into a map of words; what one thread has put is counted at the end, or where the map may be full. */
CUA_FORCE void insert_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin, size_t end)
{
	const struct cua__hashmap_call *call = job->call;
	const struct cua_hashmap_view *view = job->view;
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	uint32_t added = 0;
	struct ring ring;

	EACH(i, ring, begin, end, 1) {
		uint64_t hash = ring.hashes[i % AHEAD];
		struct cua_u128 key = ring.keys[i % AHEAD], value = cua__hashmap_get(call->values, vs, i);
		int result = cua__hashmap_word_enter(view, ks, vs, hash, key, NULL, value, CUA_ACQUIRE,
						     &spot, &added);

		if (result == CUA_HASHMAP_FULL)
			cua__hashmap_reject(view, hash, key, value);
		if (call->flags)
			call->flags[i] = (uint8_t)result;
		/* far from wrapping */
		if (added >> 30)
			cua__hashmap_count_added(view, i, &added);
	}
	cua__hashmap_count_added(view, begin / GRAIN, &added);
}

CUA_FORCE void find_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin, size_t end)
{
	const struct cua__hashmap_call *call = job->call;
	struct ring ring;

	EACH(i, ring, begin, end, 0) {
		struct cua_u128 value = {0, 0};
		int found = cua__hashmap_find(job->view, ks, vs, ring.hashes[i % AHEAD],
					      ring.keys[i % AHEAD], NULL, &value);

		if (found && call->values_out)
			cua__hashmap_set(call->values_out, vs, i, value);
		if (call->flags)
			call->flags[i] = (uint8_t)found;
	}
}

CUA_FORCE void erase_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin, size_t end)
{
	struct ring ring;

	EACH(i, ring, begin, end, 1) {
		int found = cua__hashmap_erase(job->view, ks, vs, ring.hashes[i % AHEAD],
					       ring.keys[i % AHEAD], NULL);

		if (job->call->flags)
			job->call->flags[i] = (uint8_t)found;
	}
}

#define DEFINE_SIZES(ks, vs)                                                                       \
	static void write_##ks##_##vs(const struct job *job, size_t begin, size_t end)             \
	{                                                                                          \
		if (job->call->op == CUA__HASHMAP_INSERT && !job->call->values_out &&              \
		    CUA__HASHMAP_IS_WORDS(job->view, ks, vs))                                      \
			insert_range(job, ks, vs, begin, end);                                     \
		else                                                                               \
			write_range(job, ks, vs, begin, end);                                      \
	}                                                                                          \
	static void find_##ks##_##vs(const struct job *job, size_t begin, size_t end)              \
	{                                                                                          \
		find_range(job, ks, vs, begin, end);                                               \
	}                                                                                          \
	static void erase_##ks##_##vs(const struct job *job, size_t begin, size_t end)             \
	{                                                                                          \
		erase_range(job, ks, vs, begin, end);                                              \
	}
CUA__HASHMAP_SIZES(DEFINE_SIZES)

static void work(const struct job *job, void (*const ranges[3][4])(const struct job *, size_t, size_t),
		 unsigned worker, unsigned workers)
{
	/* 4, 8, 16 -> 0, 1, 2; 0, 4, 8, 16 -> 0, 1, 2, 3 */
	uint32_t k = job->view->key_size / 8, v = job->view->value_size;
	size_t begin, end;

	cua__share(job->call->n, worker, workers, &begin, &end);
	ranges[k][v == 16 ? 3 : v / 4](job, begin, end);
}

#define RANGES(name)                                                                               \
	{                                                                                          \
		{name##_4_0, name##_4_4, name##_4_8, name##_4_16},                                 \
			{name##_8_0, name##_8_4, name##_8_8, name##_8_16},                         \
			{name##_16_0, name##_16_4, name##_16_8, name##_16_16},                     \
	}

#define DEFINE_CALL(name)                                                                          \
	static void name##_worker(void *arg, unsigned worker, unsigned workers)                    \
	{                                                                                          \
		static void (*const ranges[3][4])(const struct job *, size_t, size_t) = RANGES(name); \
                                                                                                   \
		work(arg, ranges, worker, workers);                                                \
	}                                                                                          \
	static enum cua_status cpu_##name(struct cua_context *ctx, const struct cua_hashmap_view *view, \
					  const struct cua__hashmap_call *call)                    \
	{                                                                                          \
		struct job job = {view, call};                                                     \
                                                                                                   \
		cua__parallel(ctx, cua__workers(ctx, call->n, GRAIN), name##_worker, &job);        \
		return CUA_OK;                                                                     \
	}
DEFINE_CALL(write)
DEFINE_CALL(find)
DEFINE_CALL(erase)

void cua__cpu_hashmap_write_serial(const struct cua_hashmap_view *view, const struct cua__hashmap_call *call)
{
	struct job job = {view, call};

	write_worker(&job, 0, 1);
}

static enum cua_status cpu_size(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t *size)
{
	(void)ctx;
	*size = cua__hashmap_count(view);
	return CUA_OK;
}

static enum cua_status cpu_retrieve(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	const uint32_t ks = view->key_size, vs = view->value_size;
	uint64_t places = cua__hashmap_places(view, ks, vs);
	struct cua_u128 key, value;

	(void)ctx;
	for (uint64_t i = 0; i < places; i++) {
		if (!cua__hashmap_at(view, ks, vs, i, &key, &value))
			continue;
		if (*n < max) {
			cua__hashmap_set(keys_out, ks, *n, key);
			if (values_out)
				cua__hashmap_set(values_out, vs, *n, value);
		}
		++*n;
	}
	return CUA_OK;
}

const struct cua__hashmap_ops cua__cpu_hashmap = {
	.write = cpu_write,
	.build = cpu_write,
	.find = cpu_find,
	.erase = cpu_erase,
	.size = cpu_size,
	.retrieve = cpu_retrieve,
	.whole = &cua__cpu_hashmap_whole,
};
