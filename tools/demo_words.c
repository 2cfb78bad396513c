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

#define BATCH ((size_t)1 << 20) /* words */
#define SAMPLE ((size_t)65536)
#define ABSENT ((size_t)1024)

/* Hashes of words and their positions in the file, queries, results. */
enum { KEYS, POSITIONS, SAMPLED, ANSWERS, OFFSETS_OUT, FOUND };

enum { MAP_UPDATE, MAP_FIND, MULTIMAP_INSERT, MULTIMAP_RETRIEVE, CHAIN_INSERT, CHAIN_COUNT };

struct words {
	struct demo_row rows[CHAIN_COUNT + 1];
	struct cua_hashmap *map[DEMO_DEVICES];
	struct cua_multimap *multimap[DEMO_DEVICES];
	struct cua_chained *chains[DEMO_DEVICES];
	struct cua_chained_entry *entries; /* of a chained table, on the host */
	uint64_t seed;                     /* of the hash function of words */
	struct reference_word *all;        /* all words of the file, sorted */
	size_t n_all;
	/* the batch: its room, its sorted words, the checksum of its pairs of key and position */
	size_t room, n;
	struct reference_word *batch;
	uint64_t checksum;
	/* its sample of distinct keys, and their occurrences in the batch */
	size_t n_sampled;
	uint64_t *counts;
};

/* ---- the serial reference ---- */

/* Reads the next word, and moves *at to its end. Returns 0 if there is no word. */
static int read_word(const struct demo *d, uint64_t seed, size_t *at, struct reference_word *word)
{
	const size_t length = reference_next_word(d->data, d->size, at);

	word->text = d->data + *at;
	word->length = length;
	word->hash = cua_hash_bytes(word->text, length, seed);
	*at += length;
	return length != 0;
}

static void read_all(const struct demo *d, struct words *w)
{
	struct reference_word word;
	size_t at = 0;

	while (read_word(d, w->seed, &at, &word))
		w->n_all++;
	tool_claim_memory(w->n_all * sizeof(*w->all));
	w->all = tool_alloc(w->n_all * sizeof(*w->all));
	at = 0;
	for (size_t k = 0; k < w->n_all; k++)
		read_word(d, w->seed, &at, &w->all[k]);
	qsort(w->all, w->n_all, sizeof(*w->all), reference_order);
}

/* Returns 1 if a word with this hash starts at `position`. */
static int is_position(const struct demo *d, const struct words *w, uint64_t key, size_t position)
{
	struct reference_word word;
	size_t at = position;

	return position < d->size && read_word(d, w->seed, &at, &word) &&
	       word.text == d->data + position && word.hash == key;
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

/* Fills the batch with the words from *at on. Returns 0 if there is no word. */
static int read_batch(struct demo_phase *p, struct words *w, size_t *at)
{
	uint64_t *keys = p->host[KEYS], *positions = p->host[POSITIONS];
	struct reference_word *word = w->batch;

	w->n = 0;
	w->checksum = 0;
	while (w->n < w->room && read_word(p->d, w->seed, at, word)) {
		keys[w->n] = word->hash;
		positions[w->n] = (uint64_t)(word->text - p->d->data);
		w->checksum += pair_number(keys[w->n], positions[w->n]);
		w->n++;
		word++;
	}
	return w->n != 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Samples distinct keys of the batch at equal distances, and counts their occurrences. */
static void sample(struct demo_phase *p, struct words *w)
{
	const uint64_t *keys = p->host[KEYS];
	uint64_t *sampled = p->host[SAMPLED];
	size_t n = 0;

	for (size_t k = 0; k < w->n; k += w->n / SAMPLE + 1)
		sampled[n++] = keys[k];
	qsort(sampled, n, sizeof(*sampled), by_value);
	qsort(w->batch, w->n, sizeof(*w->batch), reference_order);
	w->n_sampled = 0;
	for (size_t k = 0; k < n; k++) {
		if (k > 0 && sampled[k] == sampled[k - 1])
			continue;
		w->counts[w->n_sampled] = reference_count(w->batch, w->n, sampled[k]);
		sampled[w->n_sampled++] = sampled[k];
	}
}

/* ---- the parts: each calls the library on a batch, and checks the result ---- */

static void map_update(struct demo_phase *p, struct words *w)
{
	const uint64_t one = 1;

	DEMO_RUN(p, cua_hashmap_update_value_n(w->map[p->device], CUA_UPDATE_ADD, w->n, p->on[KEYS],
					       &one, NULL));
	demo_add(p, (double)w->n);
}

static void multimap_insert(struct demo_phase *p, struct words *w)
{
	struct cua_multimap *map = w->multimap[p->device];
	uint64_t size = 0;

	demo_need(p, cua_multimap_clear(map));
	demo_need(p, cua_context_synchronize(p->ctx));
	DEMO_RUN(p, cua_multimap_insert_n(map, w->n, p->on[KEYS], p->on[POSITIONS], NULL));
	demo_need(p, cua_multimap_size(map, &size));
	demo_expect(p, "number of values", size, w->n);
	demo_add(p, (double)w->n);
}

static void multimap_retrieve(struct demo_phase *p, struct words *w)
{
	const uint64_t *sampled = p->host[SAMPLED];
	uint64_t *offsets, *positions, total = 0, expected = 0;

	DEMO_RUN(p, cua_multimap_retrieve_n(w->multimap[p->device], w->n_sampled, p->on[SAMPLED],
					    w->room, p->on[OFFSETS_OUT], p->on[ANSWERS], &total));
	for (size_t k = 0; k < w->n_sampled; k++)
		expected += w->counts[k];
	if (!demo_expect(p, "number of positions", total, expected))
		return;
	offsets = demo_download(p, OFFSETS_OUT, (w->n_sampled + 1) * sizeof(*offsets));
	positions = demo_download(p, ANSWERS, total * sizeof(*positions));
	for (size_t k = 0; k < w->n_sampled; k++) {
		const uint64_t n = offsets[k + 1] <= total ? offsets[k + 1] - offsets[k] : 0;
		uint64_t right = 0;

		if (!demo_expect(p, "number of positions of a word", n, w->counts[k]))
			continue;
		for (uint64_t j = offsets[k]; j < offsets[k + 1]; j++)
			right += (uint64_t)is_position(p->d, w, sampled[k], positions[j]);
		demo_expect(p, "positions of a word", right, n);
	}
	demo_add(p, (double)total);
}

/* Checks the structure of the table, and its pairs by their checksum. */
static void chain_insert(struct demo_phase *p, struct words *w)
{
	struct cua_chained_report report = CUA_CHAINED_REPORT_INIT;
	struct cua_chained *chains = w->chains[p->device];
	struct cua_chained_view view;
	enum cua_status status;
	uint64_t size = 0, checksum = 0;

	demo_need(p, cua_chained_clear(chains));
	demo_need(p, cua_context_synchronize(p->ctx));
	DEMO_RUN(p, cua_chained_insert_n(chains, w->n, p->on[KEYS], p->on[POSITIONS]));
	demo_need(p, cua_chained_size(chains, &size));
	if (!demo_expect(p, "number of entries", size, w->n) && size > w->n)
		size = w->n;
	status = cua_chained_verify(chains, &report);
	if (status != CUA_ERROR_CORRUPT)
		demo_need(p, status);
	demo_expect(p, "failed verifications", status != CUA_OK, 0);
	demo_expect(p, "number of entries reached", report.reached, w->n);
	demo_need(p, cua_chained_get_view(chains, &view));
	if (size)
		demo_need(p,
			  cua_copy(p->ctx, w->entries, view.entries, size * sizeof(*w->entries)));
	for (uint64_t k = 0; k < size; k++)
		checksum += pair_number(w->entries[k].key, w->entries[k].value);
	demo_expect(p, "checksum of the pairs", checksum, w->checksum);
	demo_add(p, (double)size);
}

static void chain_count(struct demo_phase *p, struct words *w)
{
	struct cua_chained *chains = w->chains[p->device];
	const size_t n = w->n_sampled;
	const uint64_t *sampled = p->host[SAMPLED], *answers;
	const uint8_t *found;

	DEMO_RUN(p, cua_chained_count_n(chains, n, p->on[SAMPLED], p->on[ANSWERS]));
	answers = demo_download(p, ANSWERS, n * sizeof(*answers));
	for (size_t k = 0; k < n; k++)
		demo_expect(p, "count of a word in a chain", answers[k], w->counts[k]);
	DEMO_RUN(p, cua_chained_find_n(chains, n, p->on[SAMPLED], p->on[ANSWERS], p->on[FOUND]));
	answers = demo_download(p, ANSWERS, n * sizeof(*answers));
	found = demo_download(p, FOUND, n);
	for (size_t k = 0; k < n; k++)
		demo_expect(p, "position of a word",
			    found[k] == 1 && is_position(p->d, w, sampled[k], answers[k]), 1);
	demo_add(p, (double)n);
}

static const struct {
	const char *part, *unit;
	void (*run)(struct demo_phase *p, struct words *w); /* NULL: runs after all batches */
} word_parts[] = {
	[MAP_UPDATE] = {"map: count words", " words", map_update},
	[MAP_FIND] = {"map: find words", "", NULL},
	[MULTIMAP_INSERT] = {"multimap: add words", " words", multimap_insert},
	[MULTIMAP_RETRIEVE] = {"multimap: find words", " positions", multimap_retrieve},
	[CHAIN_INSERT] = {"chains: insert words", " entries", chain_insert},
	[CHAIN_COUNT] = {"chains: count words", " words looked up", chain_count},
};
enum { WORD_PARTS = sizeof(word_parts) / sizeof(word_parts[0]) };

static void run_batch(struct demo_phase *p, struct words *w)
{
	sample(p, w);
	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!demo_select(p, i))
			continue;
		p->row = &p->setup;
		demo_upload(p, KEYS, w->n * sizeof(uint64_t));
		demo_upload(p, POSITIONS, w->n * sizeof(uint64_t));
		demo_upload(p, SAMPLED, w->n_sampled * sizeof(uint64_t));
		for (int k = 0; k < WORD_PARTS; k++) {
			p->row = &w->rows[k];
			if (word_parts[k].run)
				word_parts[k].run(p, w);
		}
	}
}

/* ---- the map of all words ---- */

/* Looks up n keys. The host's array of positions has their counts, 0 for an absent key. */
static void find_in_map(struct demo_phase *p, struct words *w, size_t n)
{
	const uint64_t *counts = p->host[POSITIONS], *answers;
	const uint8_t *found;

	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!demo_select(p, i))
			continue;
		demo_upload(p, KEYS, n * sizeof(uint64_t));
		DEMO_RUN(p, cua_hashmap_find_n(w->map[i], n, p->on[KEYS], p->on[ANSWERS],
					       p->on[FOUND]));
		answers = demo_download(p, ANSWERS, n * sizeof(*answers));
		found = demo_download(p, FOUND, n);
		for (size_t k = 0; k < n; k++) {
			if (!counts[k])
				demo_expect(p, "absent key found", found[k], 0);
			else if (demo_expect(p, "word found", found[k], 1))
				demo_expect(p, "count of a word", answers[k], counts[k]);
		}
	}
}

/* Looks up each distinct hash and ABSENT other keys. */
static void check_map(struct demo_phase *p, struct words *w)
{
	uint64_t *keys = p->host[KEYS], *counts = p->host[POSITIONS];
	uint64_t hashes = 0, distinct = 0, size = 0;
	size_t n = 0;

	p->row = &w->rows[MAP_FIND];
	for (size_t k = 0, end; k < w->n_all; k = end) {
		distinct++;
		for (end = k + 1; end < w->n_all && w->all[end].hash == w->all[k].hash; end++)
			distinct += reference_order(&w->all[end - 1], &w->all[end]) != 0;
		keys[n] = w->all[k].hash;
		counts[n++] = end - k;
		hashes++;
		if (n == w->room) {
			find_in_map(p, w, n);
			n = 0;
		}
	}
	find_in_map(p, w, n);
	n = 0;
	for (uint64_t k = 0; k < ABSENT; k++) {
		counts[n] = 0;
		keys[n] = pair_number(k, k);
		n += !reference_count(w->all, w->n_all, keys[n]);
	}
	find_in_map(p, w, n);
	snprintf(p->row->text, sizeof(p->row->text), "%llu keys, %llu collision%s",
		 (unsigned long long)hashes, (unsigned long long)(distinct - hashes),
		 distinct - hashes == 1 ? "" : "s");
	p->row = &w->rows[MAP_UPDATE];
	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!demo_select(p, i))
			continue;
		demo_need(p, cua_hashmap_size(w->map[i], &size));
		demo_expect(p, "number of keys", size, hashes);
	}
}

/* ---- the phase ---- */

static void open_tables(struct demo_phase *p, struct words *w)
{
	uint64_t capacity = 16;

	for (size_t k = 0; k < w->n_all; k++)
		capacity += k == 0 || w->all[k].hash != w->all[k - 1].hash;
	/* a quarter more slots than keys: probes are short up to a load of 0.8 */
	capacity += capacity / 4;
	for (int i = 0; i < DEMO_DEVICES; i++) {
		if (!demo_select(p, i))
			continue;
		if (i == DEMO_CPU)
			tool_claim_memory(capacity / 5 * 128);
		p->row = &w->rows[MAP_UPDATE];
		demo_need(p,
			  cua_hashmap_create(p->ctx, NULL, CUA_U64, CUA_U64, capacity, &w->map[i]));
		p->row = &w->rows[MULTIMAP_INSERT];
		demo_need(p, cua_multimap_create(p->ctx, NULL, CUA_U64, CUA_U64,
						 w->room + w->room / 4, w->room, &w->multimap[i]));
		p->row = &w->rows[CHAIN_INSERT];
		demo_need(p, cua_chained_create(p->ctx, NULL, w->room / 2 + 1, w->room,
						&w->chains[i]));
	}
}

void demo_words(struct demo *d)
{
	struct words words = {.n = 0}, *w = &words;
	struct demo_phase phase = {.d = d}, *p = &phase;
	size_t at = 0;

	/* a random seed: a file with colliding words cannot be prepared */
	if (getrandom(&w->seed, sizeof(w->seed), GRND_NONBLOCK) != (ssize_t)sizeof(w->seed))
		w->seed = CUA_HASH_SEED_FIXED;
	for (int k = 0; k < WORD_PARTS; k++) {
		w->rows[k].part = word_parts[k].part;
		w->rows[k].unit = word_parts[k].unit;
	}
	read_all(d, w);
	w->room = w->n_all < ABSENT ? ABSENT : w->n_all < BATCH ? w->n_all : BATCH;
	w->batch = tool_alloc(w->room * sizeof(*w->batch));
	w->counts = tool_alloc(SAMPLE * sizeof(*w->counts));
	w->entries = tool_alloc(w->room * sizeof(*w->entries));
	demo_open(p, "memory for the words",
		  (size_t[DEMO_ARRAYS]){w->room * 8, w->room * 8, SAMPLE * 8, w->room * 8,
					(SAMPLE + 1) * 8, w->room});
	open_tables(p, w);
	/* a file without words is an empty batch */
	read_batch(p, w, &at);
	do
		run_batch(p, w);
	while (read_batch(p, w, &at));
	check_map(p, w);
	for (int i = 0; i < DEMO_DEVICES; i++) {
		cua_chained_destroy(w->chains[i]);
		cua_multimap_destroy(w->multimap[i]);
		cua_hashmap_destroy(w->map[i]);
	}
	demo_close(p);
	free(w->entries);
	free(w->counts);
	free(w->batch);
	free(w->all);
	for (int k = 0; k < WORD_PARTS; k++)
		demo_print_row(d, &w->rows[k]);
}
