/* SPDX-License-Identifier: MIT */
/* The hash map on the CPU. */
#include "config.h"

#include "kernels/hashmap_bulk.h"

/* ThreadSanitizer would report the vector loads as races. */
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#define VECTORS 1
#include <emmintrin.h>
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef VECTORS
#endif
#endif
#endif

/* Elements that justify a thread, and prefetch distance in keys. */
#define GRAIN 4096
#define AHEAD 32
/* Deferred elements per thread: their bucket beyond the home is being prefetched. */
#define MOST_DEFERRED 32

struct job {
	const struct cua_hashmap_view *view;
	const struct cua__hashmap_call *call;
};

/* The next keys with their hashes; element i is at i % AHEAD. */
struct ring {
	struct cua_u128 keys[AHEAD];
	uint64_t hashes[AHEAD];
};

/* Hashes the key of element i, if i < end, and prefetches its home bucket. */
CUA_FORCE void prefetch_home(struct ring *ring, const struct job *job, uint32_t ks, uint32_t vs,
			     size_t i, size_t end, int writes)
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
		 cua_hash_to_index(hash, view->n_buckets) *
			 (words ? CUA__HASHMAP_WORD_BYTES : CUA__HASHMAP_STATE_BUCKET);
	if (writes)
		__builtin_prefetch(bucket, 1);
	else
		__builtin_prefetch(bucket);
	if (!words)
		__builtin_prefetch(bucket + 64, 1);
}

/*
 * Loops over the elements of [begin, end), with the key and hash of i in the ring and AHEAD homes
 * prefetched.
 */
#define EACH(i, ring, begin, end, writes)                                                          \
	for (size_t i = (begin); i < (begin) + AHEAD; i++)                                         \
		prefetch_home(&(ring), job, ks, vs, i, end, writes);                               \
	for (size_t i = (begin); i < (end);                                                        \
	     prefetch_home(&(ring), job, ks, vs, i + AHEAD, end, writes), i++)

CUA_FORCE void write_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
			   size_t end)
{
	const struct cua__hashmap_call *call = job->call;
	struct ring ring;

	EACH(i, ring, begin, end, 1)
	{
		struct cua_u128 value = call->value, there = {0, 0};
		int result;

		if (call->values)
			value = cua__hashmap_get(call->values, vs, i);
		result = cua__hashmap_write(job->view, CUA__HASHMAP_KIND(ks, vs), call->op,
					    ring.hashes[i % AHEAD], ring.keys[i % AHEAD], value,
					    &there);

		if (call->flags)
			call->flags[i] = (uint8_t)result;
		if (call->values_out &&
		    (result == CUA_HASHMAP_EXISTS ||
		     (result == CUA_HASHMAP_INSERTED && call->op == CUA__HASHMAP_INSERT)))
			cua__hashmap_set(call->values_out, vs, i, there);
	}
}

/*
 * An element of a map of words that needs a bucket beyond its home bucket. It is deferred during
 * the prefetch of that bucket, while other elements proceed. About a tenth of the keys is not at
 * home; without the deferral each would cost the full memory latency.
 */
struct deferred {
	size_t i;
	uint64_t hash, distance;
	struct cua_u128 key;
};

CUA_FORCE char *bucket_of(const struct cua_hashmap_view *view, const struct deferred *l)
{
	uint64_t home = cua_hash_to_index(l->hash, view->n_buckets);

	return cua__hashmap_word_bucket(view,
					cua__hashmap_word_probe(view, home, l->hash, l->distance));
}

#ifdef VECTORS
/* The mask of the 16 parts of 4 bytes, in `parts`, that are equal to `to`. */
CUA_FORCE uint32_t equal_parts(const __m128i parts[4], __m128i to)
{
	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(
		_mm_packs_epi32(_mm_cmpeq_epi32(parts[0], to), _mm_cmpeq_epi32(parts[1], to)),
		_mm_packs_epi32(_mm_cmpeq_epi32(parts[2], to), _mm_cmpeq_epi32(parts[3], to))));
}
#endif

/*
 * As cua__hashmap_word_search; *first is the first EMPTY slot if the result is -1. The CPU loads a
 * vector at once or in aligned halves of 64 bits. Each half is a slot, so no slot is torn, and
 * slots may be read in any order. A slot that matches is read again by an atomic load, and an EMPTY
 * slot is claimed by a CAS.
 */
CUA_FORCE int search(char *bucket, uint32_t ks, uint32_t vs, struct cua_u128 key,
		     struct cua__hashmap_spot *spot, uint32_t *first)
{
	struct cua__hashmap_room room = {{0, 0}, 0, 0};
	int there;

#ifdef VECTORS
	if (ks == 4 && vs == 4) {
		const volatile __m128i *from = (const volatile __m128i *)(void *)bucket;
		const __m128i parts[4] = {from[0], from[1], from[2], from[3]};
		/* the lower half of every slot: the key; the head has none */
		const uint32_t keys = 0x5554;
		uint32_t has = equal_parts(parts, _mm_set1_epi32((int)(uint32_t)key.lo)) & keys,
			 empty;

		if (has) {
			spot->at = bucket + (uint32_t)__builtin_ctz(has) * 4;
			spot->word = cua__hashmap_word_load(spot->at, 0, CUA_ACQUIRE);
			if (cua__hashmap_word_has(ks, vs, spot->word, key, NULL))
				return 1;
		} else {
			empty = equal_parts(parts, _mm_setzero_si128());
			empty &= empty >> 1 & keys;
			if (!(empty >> 14))
				return 0;
			*first = (uint32_t)__builtin_ctz(empty) / 2 - 1;
			return -1;
		}
	}
#endif
	there = cua__hashmap_word_search(bucket, CUA__HASHMAP_KIND(ks, vs), key, NULL, CUA_ACQUIRE,
					 0, spot, &room);
	*first = room.empty;
	return there;
}

/* As cua__hashmap_word_enter_home. */
CUA_FORCE int enter_home(const struct cua_hashmap_view *view, uint32_t ks, uint32_t vs,
			 uint64_t hash, struct cua_u128 key, struct cua_u128 value,
			 struct cua__hashmap_spot *spot)
{
	char *bucket = cua__hashmap_word_bucket(view, cua_hash_to_index(hash, view->n_buckets));
	uint32_t first;
	int there = search(bucket, ks, vs, key, spot, &first);

	if (there >= 0)
		return there > 0 ? CUA_HASHMAP_EXISTS : 0;
	return cua__hashmap_word_claim(bucket, CUA__HASHMAP_KIND(ks, vs), first, key, NULL,
				       cua__hashmap_word_of(ks, vs, key, value), CUA_ACQ_REL, spot);
}

/*
 * Inserts into a map of words. The thread counts its inserted keys at the end, and when the map may
 * be full.
 */
CUA_FORCE void insert_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
			    size_t end)
{
	const struct cua__hashmap_call *call = job->call;
	const struct cua_hashmap_view *view = job->view;
	struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
	struct deferred deferred[MOST_DEFERRED];
	unsigned n_deferred = 0, done = 0;
	uint32_t added = 0;
	struct ring ring;
	size_t next = begin;

	for (size_t i = begin; i < begin + AHEAD; i++)
		prefetch_home(&ring, job, ks, vs, i, end, 1);
	while (next < end || n_deferred) {
		struct cua_u128 key, value;
		uint64_t hash;
		int result;
		size_t i;

		if (n_deferred == MOST_DEFERRED || next == end) {
			i = deferred[done].i;
			hash = deferred[done].hash;
			key = deferred[done].key;
			value = cua__hashmap_get(call->values, vs, i);
			result = cua__hashmap_word_enter(view, CUA__HASHMAP_KIND(ks, vs),
							 cua__hashmap_key_of(hash, key), NULL,
							 value, CUA_ACQUIRE, &spot, &added);
			if (++done == n_deferred)
				n_deferred = done = 0;
		} else {
			char *slot;

			i = next++;
			hash = ring.hashes[i % AHEAD];
			key = ring.keys[i % AHEAD];
			value = cua__hashmap_get(call->values, vs, i);
			slot = cua__hashmap_reserved_slot(view, ks, vs, key, NULL);
			if (slot)
				result = cua__hashmap_reserved_enter(slot, ks, vs, value, &spot);
			else
				result = enter_home(view, ks, vs, hash, key, value, &spot);
			added += !slot && result == CUA_HASHMAP_INSERTED;
			prefetch_home(&ring, job, ks, vs, i + AHEAD, end, 1);
			if (!result) {
				struct deferred l = {i, hash, 1, key};

				__builtin_prefetch(bucket_of(view, &l), 1);
				deferred[n_deferred++] = l;
				continue;
			}
		}
		if (result == CUA_HASHMAP_FULL)
			cua__hashmap_reject(view, hash, key, value);
		if (call->flags)
			call->flags[i] = (uint8_t)result;
		/* far below the overflow of `added` */
		if (added >> 30)
			cua__hashmap_count_added(view, i, &added);
	}
	cua__hashmap_count_added(view, begin / GRAIN, &added);
}

CUA_FORCE void report(const struct cua__hashmap_call *call, uint32_t vs, size_t i, int found,
		      struct cua_u128 value)
{
	if (found && call->values_out)
		cua__hashmap_set(call->values_out, vs, i, value);
	if (call->flags)
		call->flags[i] = (uint8_t)found;
}

CUA_FORCE void find_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin, size_t end)
{
	struct ring ring;

	EACH(i, ring, begin, end, 0)
	{
		struct cua_u128 value = {0, 0};
		int found = cua__hashmap_find(
			job->view, CUA__HASHMAP_KIND(ks, vs),
			cua__hashmap_key_of(ring.hashes[i % AHEAD], ring.keys[i % AHEAD]), NULL,
			&value);

		report(job->call, vs, i, found, value);
	}
}

/* The same in a map of words: cua__hashmap_word_find, a bucket at a time. */
CUA_FORCE void find_words(const struct job *job, uint32_t ks, uint32_t vs, size_t begin, size_t end)
{
	const struct cua_hashmap_view *view = job->view;
	const int wide = cua__hashmap_is_wide(ks, vs);
	struct deferred deferred[MOST_DEFERRED], l;
	unsigned n_deferred = 0, done = 0, left = 0;
	struct ring ring;
	size_t next = begin;

	for (size_t i = begin; i < begin + AHEAD; i++)
		prefetch_home(&ring, job, ks, vs, i, end, 0);
	while (next < end || n_deferred) {
		struct cua__hashmap_spot spot = {NULL, {0, 0}, {0, 0}};
		struct cua__hashmap_head head;
		char *bucket, *slot;
		uint32_t first;
		int there;

		if (n_deferred == MOST_DEFERRED || next == end) {
			l = deferred[done++];
			there = search(bucket_of(view, &l), ks, vs, l.key, &spot, &first);
			l.distance--;
		} else {
			l.i = next++;
			l.hash = ring.hashes[l.i % AHEAD];
			l.key = ring.keys[l.i % AHEAD];
			prefetch_home(&ring, job, ks, vs, l.i + AHEAD, end, 0);
			slot = cua__hashmap_reserved_slot(view, ks, vs, l.key, NULL);
			l.distance = 0;
			if (slot) {
				spot.word = cua__hashmap_word_load(slot, wide, CUA_ACQUIRE);
				there = cua__hashmap_word_empty(spot.word) ? -1 : 1;
			} else {
				bucket = cua__hashmap_word_bucket(
					view, cua_hash_to_index(l.hash, view->n_buckets));
				head = cua__hashmap_word_head(bucket, wide);
				l.distance = cua__hashmap_word_reach(bucket, wide, head, l.hash);
				if (l.distance >= view->n_buckets)
					l.distance = view->n_buckets - 1;
				there = search(bucket, ks, vs, l.key, &spot, &first);
				/* an EMPTY slot at home: the key is absent */
				if (there < 0)
					l.distance = 0;
			}
		}
		if (there <= 0 && l.distance) {
			__builtin_prefetch(bucket_of(view, &l));
			/* elements deferred again go below the elements still to be searched */
			if (done)
				deferred[left++] = l;
			else
				deferred[n_deferred++] = l;
		} else {
			report(job->call, vs, l.i, there > 0,
			       cua__hashmap_word_value(ks, vs, spot.word));
		}
		if (done && done == n_deferred) {
			n_deferred = left;
			done = left = 0;
		}
	}
}

CUA_FORCE void erase_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
			   size_t end)
{
	struct ring ring;

	EACH(i, ring, begin, end, 1)
	{
		int found = cua__hashmap_erase(
			job->view, CUA__HASHMAP_KIND(ks, vs),
			cua__hashmap_key_of(ring.hashes[i % AHEAD], ring.keys[i % AHEAD]), NULL);

		if (job->call->flags)
			job->call->flags[i] = (uint8_t)found;
	}
}

CUA_FORCE void compare_exchange_range(const struct job *job, uint32_t ks, uint32_t vs, size_t begin,
				      size_t end)
{
	struct ring ring;

	EACH(i, ring, begin, end, 1)
	{
		struct cua_u128 expected = cua__hashmap_get(job->call->values_out, vs, i);
		int result = cua__hashmap_compare_exchange(
			job->view, CUA__HASHMAP_KIND(ks, vs),
			cua__hashmap_key_of(ring.hashes[i % AHEAD], ring.keys[i % AHEAD]), NULL,
			&expected, cua__hashmap_get(job->call->values, vs, i));

		if (result == CUA_HASHMAP_DIFFERS)
			cua__hashmap_set(job->call->values_out, vs, i, expected);
		if (job->call->flags)
			job->call->flags[i] = (uint8_t)result;
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
		if (CUA__HASHMAP_IS_WORDS(job->view, ks, vs))                                      \
			find_words(job, ks, vs, begin, end);                                       \
		else                                                                               \
			find_range(job, ks, vs, begin, end);                                       \
	}                                                                                          \
	static void erase_##ks##_##vs(const struct job *job, size_t begin, size_t end)             \
	{                                                                                          \
		erase_range(job, ks, vs, begin, end);                                              \
	}                                                                                          \
	static void compare_exchange_##ks##_##vs(const struct job *job, size_t begin, size_t end)  \
	{                                                                                          \
		compare_exchange_range(job, ks, vs, begin, end);                                   \
	}
CUA__HASHMAP_SIZES(DEFINE_SIZES)

static void work(const struct job *job,
		 void (*const ranges[3][4])(const struct job *, size_t, size_t), unsigned worker,
		 unsigned workers)
{
	/* key sizes 4, 8, 16 -> 0, 1, 2; value sizes 0, 4, 8, 16 -> 0, 1, 2, 3 */
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
		static void (*const ranges[3][4])(const struct job *, size_t, size_t) =            \
			RANGES(name);                                                              \
                                                                                                   \
		work(arg, ranges, worker, workers);                                                \
	}                                                                                          \
	static enum cua_status cpu_##name(struct cua_context *ctx,                                 \
					  const struct cua_hashmap_view *view,                     \
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
DEFINE_CALL(compare_exchange)

struct regions_job {
	const struct cua_hashmap_view *view;
	const struct cua__hashmap_sources *sources;
};

/* n keys of a source, at most 32, from key `at` on, a multiple of 32. */
static void find_word(const struct regions_job *job, uint32_t source, size_t at, uint32_t n)
{
	const struct cua__hashmap_sources *p = job->sources;
	char *values = p->values_out[source];
	uint32_t bits = 0;
	uint8_t found[32];
	const struct cua__hashmap_call call = {
		.n = n,
		.keys = (const char *)p->keys[source] + at * job->view->key_size,
		.values_out = values ? values + at * job->view->value_size : NULL,
		.flags = found,
	};
	struct job one = {job->view, &call};

	find_worker(&one, 0, 1);
	for (uint32_t i = 0; i < n; i++)
		bits |= (uint32_t)found[i] << i;
	p->found[source][at / 32] = bits;
}

static void find_regions_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct regions_job *job = arg;
	const struct cua__hashmap_sources *p = job->sources;

	for (uint32_t region = 0; region < p->regions; region++) {
		for (uint32_t k = 0; k < p->sources; k++) {
			const uint32_t source = (k + p->first) % p->sources;
			const uint32_t n = p->counts[source][region];
			size_t begin, end;

			cua__share((n + 31u) / 32, worker, workers, &begin, &end);
			for (size_t i = begin * 32; i < end * 32; i += 32)
				find_word(job, source, p->starts[source][region] + i,
					  n - i < 32 ? (uint32_t)(n - i) : 32);
		}
	}
}

static enum cua_status cpu_find_regions(struct cua_context *ctx,
					const struct cua_hashmap_view *view,
					const struct cua__hashmap_sources *sources)
{
	struct regions_job job = {view, sources};
	size_t n = 0;

	for (uint32_t s = 0; s < sources->sources; s++)
		for (uint32_t region = 0; region < sources->regions; region++)
			n += sources->counts[s][region];
	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), find_regions_worker, &job);
	return CUA_OK;
}

void cua__cpu_hashmap_write_serial(const struct cua_hashmap_view *view,
				   const struct cua__hashmap_call *call)
{
	struct job job = {view, call};

	write_worker(&job, 0, 1);
}

static size_t cpu_build_scratch(struct cua_context *ctx, const struct cua_hashmap_view *view,
				size_t n)
{
	(void)ctx;
	(void)view;
	(void)n;
	return 0;
}

static enum cua_status cpu_size(struct cua_context *ctx, const struct cua_hashmap_view *view,
				uint64_t *size)
{
	(void)ctx;
	*size = cua__hashmap_count(view);
	return CUA_OK;
}

const struct cua__hashmap_ops cua__cpu_hashmap = {
	.write = cpu_write,
	.build_scratch = cpu_build_scratch,
	.find = cpu_find,
	.find_regions = cpu_find_regions,
	.erase = cpu_erase,
	.compare_exchange = cpu_compare_exchange,
	.size = cpu_size,
};
