/* SPDX-License-Identifier: MIT */
/*
 * The calls that work on hash tables. The keys are hashes of the file's words. A first pass over
 * the file builds the serial reference. A second pass passes the words to the library in batches,
 * so the arrays, the multimap and the chained table need a bounded amount of memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "demo.h"

#define BATCH ((size_t)1 << 20)
#define BATCH_LEAST ((size_t)1 << 16) /* smaller batches are not tried if memory is exhausted */
#define SAMPLE 65536u
#define N_ABSENT 1024u

enum {
	MAP_UPDATE,
	MAP_FIND,
	MULTIMAP_INSERT,
	MULTIMAP_RETRIEVE,
	CHAIN_INSERT,
	CHAIN_COUNT,
	N_WORD_ROWS
};

static const char *const word_parts[N_WORD_ROWS] = {
	[MAP_UPDATE] = "map: count words",         [MAP_FIND] = "map: find words",
	[MULTIMAP_INSERT] = "multimap: add words", [MULTIMAP_RETRIEVE] = "multimap: find words",
	[CHAIN_INSERT] = "chains: insert words",   [CHAIN_COUNT] = "chains: count words",
};

/* The tables and arrays of a device. */
struct on_device {
	struct cua_hashmap *map;
	struct cua_multimap *multimap;
	struct cua_chained *chains;
	uint64_t *keys, *positions, *answers, *offsets;
	uint8_t *found;
	uint64_t inserted, counted, retrieved;
};

/* Words sampled from a batch, with their number of occurrences in it, in a small hash table. */
struct sample {
	size_t n;
	uint64_t keys[SAMPLE], counts[SAMPLE];
	uint32_t slots[2 * SAMPLE]; /* index into keys plus 1; 0: a free slot */
};

struct words {
	struct demo *d;
	struct reference_words reference;
	struct demo_row rows[N_WORD_ROWS];
	struct on_device on[DEMO_DEVICES];
	uint64_t seed; /* of the hash function of words */
	size_t batch;  /* room of the arrays, in words */
	/* the batch: hashes of words and their positions in the file */
	uint64_t *keys, *positions, *answers, *offsets;
	uint8_t *found;
	size_t n;
	struct sample *sample;
	struct cua_chained_entry *entries;
};

/* ---- the serial reference ---- */

static void make_reference(struct words *w)
{
	const struct demo *d = w->d;
	size_t at = 0, start, length;

	reference_words_init(&w->reference, d->data);
	while (reference_next_word(d->data, d->size, &at, &start, &length))
		reference_words_add(&w->reference, start, length,
				    cua_hash_bytes(d->data + start, length, w->seed));
}

static uint32_t *sample_slot(struct sample *s, uint64_t key)
{
	uint32_t i = (uint32_t)(key >> 20) & (2 * SAMPLE - 1);

	while (s->slots[i] && s->keys[s->slots[i] - 1] != key)
		i = (i + 1) & (2 * SAMPLE - 1);
	return &s->slots[i];
}

/* Samples words at equal distances, and counts their occurrences in the whole batch. */
static void make_sample(struct words *w)
{
	struct sample *s = w->sample;
	size_t stride = w->n / SAMPLE + 1;

	memset(s->slots, 0, sizeof(s->slots));
	s->n = 0;
	for (size_t i = 0; i < w->n; i += stride) {
		uint32_t *slot = sample_slot(s, w->keys[i]);

		if (*slot)
			continue;
		s->keys[s->n] = w->keys[i];
		s->counts[s->n] = 0;
		*slot = (uint32_t)++s->n;
	}
	for (size_t i = 0; i < w->n; i++) {
		uint32_t number = *sample_slot(s, w->keys[i]);

		if (number)
			s->counts[number - 1]++;
	}
}

/*
 * Maps a pair to a number. The sum of these numbers over a set of pairs is its checksum,
 * independent of order.
 */
static uint64_t pair_number(uint64_t key, uint64_t value)
{
	uint64_t x = (key ^ 0x5851f42d4c957f2du) * 0x2545f4914f6cdd1du + value;

	x ^= x >> 33;
	x *= 0x9e3779b97f4a7c15u;
	return x ^ x >> 28;
}

/* ---- memory ---- */

static void device_close(const struct words *w, int i)
{
	struct cua_context *ctx = w->d->ctx[i];
	const struct on_device *o = &w->on[i];

	cua_chained_destroy(o->chains);
	cua_multimap_destroy(o->multimap);
	cua_free(ctx, o->offsets);
	cua_free(ctx, o->found);
	cua_free(ctx, o->answers);
	cua_free(ctx, o->positions);
	cua_free(ctx, o->keys);
}

static enum cua_status alloc_words(struct cua_context *ctx, size_t n, uint64_t **p)
{
	void *memory = NULL;
	enum cua_status status = cua_alloc(ctx, n, sizeof(**p), &memory);

	*p = memory;
	return status;
}

/*
 * Allocates the arrays, the multimap and the chained table of a device, for batches of w->batch
 * words.
 */
static enum cua_status device_open(struct words *w, int i)
{
	struct cua_context *ctx = w->d->ctx[i];
	struct on_device *o = &w->on[i];
	void *found = NULL;
	enum cua_status status;

	o->keys = o->positions = o->answers = o->offsets = NULL;
	o->found = NULL;
	o->multimap = NULL;
	o->chains = NULL;
	status = alloc_words(ctx, w->batch, &o->keys);
	if (!status)
		status = alloc_words(ctx, w->batch, &o->positions);
	if (!status)
		status = alloc_words(ctx, w->batch, &o->answers);
	if (!status)
		status = alloc_words(ctx, SAMPLE + 1, &o->offsets);
	if (!status)
		status = cua_alloc(ctx, w->batch, 1, &found);
	o->found = found;
	if (!status)
		status = cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, w->batch + w->batch / 4,
					     w->batch, &o->multimap);
	if (!status)
		status = cua_chained_create(ctx, NULL, w->batch / 2 + 1, w->batch, &o->chains);
	if (status)
		device_close(w, i);
	return status;
}

static enum cua_status devices_open(struct words *w)
{
	for (int i = 0; i < DEMO_DEVICES; i++) {
		enum cua_status status = w->d->ctx[i] ? device_open(w, i) : CUA_OK;

		if (!status)
			continue;
		if (status != CUA_ERROR_NO_MEMORY)
			demo_failed(w->d, i, "memory for the words", status);
		while (i-- > 0) {
			if (w->d->ctx[i])
				device_close(w, i);
		}
		return status;
	}
	return CUA_OK;
}

static void open_tables(struct words *w)
{
	const struct demo *d = w->d;
	/* a quarter more slots than keys: probes are short up to a load of 0.8 */
	uint64_t capacity = w->reference.hashes + w->reference.hashes / 4 + 16;

	for (int i = 0; i < DEMO_DEVICES; i++) {
		enum cua_status status;

		if (!d->ctx[i])
			continue;
		if (i == DEMO_CPU)
			tool_claim_memory(capacity / 5 * 128);
		status = cua_hashmap_create(d->ctx[i], NULL, CUA_U64, CUA_U64, capacity,
					    &w->on[i].map);
		if (status)
			demo_failed(d, i, word_parts[MAP_UPDATE], status);
	}
	w->batch = w->reference.words < BATCH ? (size_t)w->reference.words : BATCH;
	if (w->batch < N_ABSENT)
		w->batch = N_ABSENT;
	while (devices_open(w)) {
		if (w->batch / 2 < BATCH_LEAST)
			tool_die("out of memory (the tables of words)");
		w->batch /= 2;
	}
	w->keys = tool_alloc(w->batch * sizeof(*w->keys));
	w->positions = tool_alloc(w->batch * sizeof(*w->positions));
	w->answers = tool_alloc(w->batch * sizeof(*w->answers));
	w->offsets = tool_alloc((SAMPLE + 1) * sizeof(*w->offsets));
	w->found = tool_alloc(w->batch);
	w->entries = tool_alloc(w->batch * sizeof(*w->entries));
	w->sample = tool_alloc(sizeof(*w->sample));
}

static void close_tables(struct words *w)
{
	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!w->d->ctx[i])
			continue;
		device_close(w, i);
		cua_hashmap_destroy(w->on[i].map);
	}
	free(w->sample);
	free(w->entries);
	free(w->found);
	free(w->offsets);
	free(w->answers);
	free(w->positions);
	free(w->keys);
	reference_words_free(&w->reference);
}

static void upload(const struct words *w, int i, void *to, const uint64_t *from, size_t n)
{
	if (n)
		DEMO_DO(w->d, i, "copy of words", cua_copy(w->d->ctx[i], to, from, n * 8));
}

static void download(const struct words *w, int i, void *to, const void *from, size_t bytes)
{
	if (bytes)
		DEMO_DO(w->d, i, "copy of words", cua_copy(w->d->ctx[i], to, from, bytes));
}

/* ---- the chained table: one batch ---- */

static void check_chain_content(struct words *w, int i, uint64_t expected)
{
	struct demo_row *row = &w->rows[CHAIN_INSERT];
	struct cua_chained_report report = CUA_CHAINED_REPORT_INIT;
	struct cua_chained_view view;
	enum cua_status status;
	uint64_t size = 0, sum = 0;

	DEMO_DO(w->d, i, row->part, cua_chained_size(w->on[i].chains, &size));
	if (!demo_expect(row, i, "number of entries", size, w->n) && size > w->n)
		size = w->n;
	status = cua_chained_verify(w->on[i].chains, &report);
	if (status && status != CUA_ERROR_CORRUPT)
		demo_failed(w->d, i, row->part, status);
	demo_expect(row, i, "failed verifications", status != CUA_OK, 0);
	demo_expect(row, i, "number of entries reached", report.reached, w->n);
	DEMO_DO(w->d, i, row->part, cua_chained_get_view(w->on[i].chains, &view));
	download(w, i, w->entries, view.entries, size * sizeof(*w->entries));
	for (uint64_t k = 0; k < size; k++)
		sum += pair_number(w->entries[k].key, w->entries[k].value);
	demo_expect(row, i, "checksum of the pairs", sum, expected);
	w->on[i].inserted += size;
}

/* Returns 1 if a word with hash `key` starts at `position`. */
static int is_position(const struct words *w, uint64_t key, uint64_t position)
{
	size_t at = position, start, length;

	return position < w->d->size &&
	       reference_next_word(w->d->data, w->d->size, &at, &start, &length) &&
	       start == position && cua_hash_bytes(w->d->data + start, length, w->seed) == key;
}

static void check_chain_counts(struct words *w, int i)
{
	struct demo_row *row = &w->rows[CHAIN_COUNT];
	const struct sample *s = w->sample;
	struct on_device *o = &w->on[i];

	upload(w, i, o->keys, s->keys, s->n);
	DEMO_RUN(w->d, i, row, cua_chained_count_n(o->chains, s->n, o->keys, o->answers));
	download(w, i, w->answers, o->answers, s->n * sizeof(*w->answers));
	for (size_t k = 0; k < s->n; k++)
		demo_expect(row, i, "count of a word in a chain", w->answers[k], s->counts[k]);
	DEMO_RUN(w->d, i, row, cua_chained_find_n(o->chains, s->n, o->keys, o->answers, o->found));
	download(w, i, w->answers, o->answers, s->n * sizeof(*w->answers));
	download(w, i, w->found, o->found, s->n);
	for (size_t k = 0; k < s->n; k++)
		demo_expect(row, i, "position of a word",
			    w->found[k] == 1 && is_position(w, s->keys[k], w->answers[k]), 1);
	o->counted += s->n;
}

/* ---- the multimap: one batch ---- */

static void check_multimap(struct words *w, int i)
{
	struct demo_row *row = &w->rows[MULTIMAP_RETRIEVE];
	const struct sample *s = w->sample;
	struct on_device *o = &w->on[i];
	uint64_t size = 0, total = 0, expected = 0;

	DEMO_DO(w->d, i, word_parts[MULTIMAP_INSERT], cua_multimap_size(o->multimap, &size));
	demo_expect(&w->rows[MULTIMAP_INSERT], i, "number of values", size, w->n);
	upload(w, i, o->keys, s->keys, s->n);
	DEMO_RUN(w->d, i, row,
		 cua_multimap_retrieve_n(o->multimap, s->n, o->keys, w->batch, o->offsets,
					 o->answers, &total));
	for (size_t k = 0; k < s->n; k++)
		expected += s->counts[k];
	if (!demo_expect(row, i, "number of positions", total, expected))
		return;
	download(w, i, w->offsets, o->offsets, (s->n + 1) * sizeof(*w->offsets));
	download(w, i, w->answers, o->answers, total * sizeof(*w->answers));
	for (size_t k = 0; k < s->n; k++) {
		const uint64_t n =
			w->offsets[k + 1] <= total ? w->offsets[k + 1] - w->offsets[k] : 0;
		uint64_t right = 0;

		if (!demo_expect(row, i, "number of positions of a word", n, s->counts[k]))
			continue;
		for (uint64_t j = w->offsets[k]; j < w->offsets[k + 1]; j++)
			right += (uint64_t)is_position(w, s->keys[k], w->answers[j]);
		demo_expect(row, i, "positions of a word", right, n);
	}
	o->retrieved += total;
}

static void run_batch(struct words *w)
{
	const uint64_t one = 1;
	uint64_t checksum = 0;

	make_sample(w);
	for (size_t k = 0; k < w->n; k++)
		checksum += pair_number(w->keys[k], w->positions[k]);
	for (int i = 0; i < DEMO_DEVICES; i++) {
		struct on_device *o = &w->on[i];

		if (!w->d->ctx[i])
			continue;
		upload(w, i, o->keys, w->keys, w->n);
		upload(w, i, o->positions, w->positions, w->n);
		DEMO_RUN(w->d, i, &w->rows[MAP_UPDATE],
			 cua_hashmap_update_value_n(o->map, CUA_UPDATE_ADD, w->n, o->keys, &one,
						    NULL));
		DEMO_DO(w->d, i, word_parts[MULTIMAP_INSERT], cua_multimap_clear(o->multimap));
		DEMO_DO(w->d, i, word_parts[CHAIN_INSERT], cua_chained_clear(o->chains));
		DEMO_DO(w->d, i, word_parts[CHAIN_INSERT], cua_context_synchronize(w->d->ctx[i]));
		DEMO_RUN(w->d, i, &w->rows[MULTIMAP_INSERT],
			 cua_multimap_insert_n(o->multimap, w->n, o->keys, o->positions, NULL));
		DEMO_RUN(w->d, i, &w->rows[CHAIN_INSERT],
			 cua_chained_insert_n(o->chains, w->n, o->keys, o->positions));
		check_chain_content(w, i, checksum);
		check_chain_counts(w, i);
		check_multimap(w, i);
	}
}

/* ---- the map: after all batches ---- */

/*
 * Looks up the w->n keys in w->keys. w->positions holds their expected counts, 0 for an absent key.
 */
static void check_map_find(struct words *w)
{
	struct demo_row *row = &w->rows[MAP_FIND];

	for (int i = 0; i < DEMO_DEVICES; i++) {
		struct on_device *o = &w->on[i];

		if (!w->d->ctx[i])
			continue;
		upload(w, i, o->keys, w->keys, w->n);
		DEMO_RUN(w->d, i, row,
			 cua_hashmap_find_n(o->map, w->n, o->keys, o->answers, o->found));
		download(w, i, w->answers, o->answers, w->n * sizeof(*w->answers));
		download(w, i, w->found, o->found, w->n);
		for (size_t k = 0; k < w->n; k++) {
			int there = w->positions[k] != 0;

			if (!demo_expect(row, i, there ? "word found" : "absent key found",
					 w->found[k] != 0, there))
				continue;
			if (there)
				demo_expect(row, i, "count of a word", w->answers[k],
					    w->positions[k]);
		}
	}
	w->n = 0;
}

static void ask_map(struct words *w, uint64_t key, uint64_t count)
{
	w->keys[w->n] = key;
	w->positions[w->n++] = count;
	if (w->n == w->batch)
		check_map_find(w);
}

static void check_map(struct words *w)
{
	const struct reference_words *r = &w->reference;

	w->n = 0;
	for (uint64_t k = 0; k < r->room; k++) {
		const struct reference_slot *slot = &r->slots[k];

		if (slot->count)
			ask_map(w, slot->hash, reference_words_count(r, slot->hash));
	}
	for (uint64_t k = 0; k < N_ABSENT; k++) {
		uint64_t key = pair_number(k, k);

		if (!reference_words_count(r, key))
			ask_map(w, key, 0);
	}
	check_map_find(w);
	for (int i = 0; i < DEMO_DEVICES; i++) {
		uint64_t size = 0;

		if (!w->d->ctx[i])
			continue;
		DEMO_DO(w->d, i, word_parts[MAP_UPDATE], cua_hashmap_size(w->on[i].map, &size));
		demo_expect(&w->rows[MAP_UPDATE], i, "number of keys", size, r->hashes);
	}
}

/* ---- the phase ---- */

static void write_word_results(struct words *w)
{
	const struct reference_words *r = &w->reference;
	const struct on_device *o = &w->on[w->d->first];
	uint64_t collisions = r->distinct - r->hashes;

#define RESULT(row, ...) snprintf(w->rows[row].result, sizeof(w->rows[row].result), __VA_ARGS__)
	RESULT(MAP_UPDATE, "%llu words", (unsigned long long)r->words);
	RESULT(MAP_FIND, "%llu keys, %llu collision%s", (unsigned long long)r->hashes,
	       (unsigned long long)collisions, collisions == 1 ? "" : "s");
	RESULT(MULTIMAP_INSERT, "%llu words", (unsigned long long)r->words);
	RESULT(MULTIMAP_RETRIEVE, "%llu positions", (unsigned long long)o->retrieved);
	RESULT(CHAIN_INSERT, "%llu entries", (unsigned long long)o->inserted);
	RESULT(CHAIN_COUNT, "%llu words looked up", (unsigned long long)o->counted);
#undef RESULT
}

void demo_words(struct demo *d)
{
	struct words *w = tool_alloc(sizeof(*w));
	size_t at = 0, start, length;
	int first_batch = 1, more = 1;

	memset(w, 0, sizeof(*w));
	w->d = d;
	/* a random seed: a file with colliding words cannot be prepared */
	if (getrandom(&w->seed, sizeof(w->seed), GRND_NONBLOCK) != (ssize_t)sizeof(w->seed))
		w->seed = CUA_HASH_SEED_FIXED;
	for (int row = 0; row < N_WORD_ROWS; row++)
		w->rows[row].part = word_parts[row];
	make_reference(w);
	open_tables(w);
	while (more) {
		w->n = 0;
		while (w->n < w->batch) {
			more = reference_next_word(d->data, d->size, &at, &start, &length);
			if (!more)
				break;
			w->keys[w->n] = cua_hash_bytes(d->data + start, length, w->seed);
			w->positions[w->n++] = start;
		}
		/* a file without words is processed as an empty batch */
		if (w->n || first_batch)
			run_batch(w);
		first_batch = 0;
	}
	check_map(w);
	write_word_results(w);
	close_tables(w);
	for (int row = 0; row < N_WORD_ROWS; row++)
		demo_print_row(d, &w->rows[row]);
	free(w);
}
