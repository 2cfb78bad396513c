/* SPDX-License-Identifier: MIT */
/* The kernels of direct finds in sharded maps: bins of keys, units of their owners, and answers. */
#define CUA__BINS_THREADS 64u
/* more bins than threads */
#define CUA__SHARD_BINS 96u
#define CUA__HASHMAP_UNIT 64u
/* several turns for each thread */
#define CUA__BINS_LOADS 1u
/* the checker needs words of 4 bytes */
#define CUA__SHARD_OFFSET uint32_t

#include <string.h>

#include "lib/kernels/shard_find.h"
#include "simt_suites.h"

enum {
	MOST = 300,
	THREADS = CUA__BINS_THREADS,
	BINS = CUA__SHARD_BINS,
	PLACES = MOST + 32 * BINS,
	BUCKETS = 64,
	MOST_TILES = MOST / THREADS + 1,
	SOURCES = 3,
	/* a tile of keys, its bins and a bit of each, or 32 */
	STAGE_BYTES = 2 * THREADS * (sizeof(struct cua__pack) + 2 * sizeof(uint32_t)) +
		      sizeof(struct cua__bins_shared)
};

static struct cua__shard_find find;
static struct cua__pack keys[MOST], in_bins[PLACES + 1], answers[PLACES], values_out[MOST + 1];
static uint32_t counts[BINS + 1], starts[BINS + 1], cursors[BINS + 1];
static uint32_t wanted[BINS], wanted_starts[BINS];
static uint32_t positions[MOST_TILES * (BINS + 1) + 1], bases[MOST_TILES * BINS + 1];
static uint32_t sorted[MOST + 1], found[PLACES / 32 + 1];
static uint8_t found_out[MOST + 1];

static uint32_t bin_of(uint32_t i)
{
	struct cua_u128 key = {0, 0};
	uint64_t hash;
	uint32_t owner, region;

	memcpy(&key, (const char *)keys + (size_t)i * find.key_size, find.key_size);
	hash = cua__hashmap_hash_of(&find.view, CUA_HASHMAP_HASH_SEEDED, find.key_size, key);
	owner = cua__owner(key, find.key_size, find.seed, find.ranks);
	region = find.regions == 1 ? 0 : cua__hashmap_word_home(&find.view, hash) >> find.shift;
	return owner * find.regions + region;
}

/* All words of key i are i * 3 + 1; few: 1 or 4. */
static void make(uint32_t ranks, uint32_t regions, uint32_t n, uint32_t key_size, int few)
{
	uint32_t at = 0, i, b;

	find = (struct cua__shard_find){
		.seed = 5,
		.ranks = ranks,
		.regions = regions,
		.key_size = key_size,
		.n = n,
		.tile = THREADS * 2,
		.keys = keys,
		.counts = counts,
		.starts = starts,
		.cursors = cursors,
		.positions = positions,
		.bases = bases,
		.sorted = sorted,
		.in_bins = in_bins,
		.values = answers,
		.found = found,
	};
	find.view.n_buckets = BUCKETS;
	find.view.seed = 9;
	find.view.hash = CUA_HASHMAP_HASH_SEEDED;
	find.view.layout = CUA_HASHMAP_WORDS;
	while ((BUCKETS - 1u) >> find.shift >= regions)
		find.shift++;
	memset(wanted, 0, sizeof(wanted));
	for (i = 0; i < n; i++) {
		for (uint32_t word = 0; word < key_size / 4; word++)
			((uint32_t *)keys)[i * key_size / 4 + word] = (few ? i % 2 : i) * 3 + 1;
		wanted[bin_of(i)]++;
	}
	for (b = 0; b < ranks * regions; b++) {
		wanted_starts[b] = at;
		at += (wanted[b] + 31) / 32 * 32;
	}
}

static void try_kernel(const char *name, void (*setup)(void), void (*body)(void),
		       const char *(*check)(void), unsigned blocks)
{
	const struct simt_case c = {.name = name, .setup = setup, .body = body, .check = check};

	try_shape(c, blocks, THREADS, 3);
}

#define BY_KEY(call)                                                                               \
	switch (find.key_size) {                                                                   \
	case 4: call(4); break;                                                                    \
	case 8: call(8); break;                                                                    \
	default: call(16);                                                                         \
	}

/* ---- counts and starts ---- */

static void count_setup(void)
{
	memset(counts, 0, sizeof(counts));
	counts[BINS] = ~0u;
}

static void count_body(void)
{
	uint32_t *count = simt_shared(BINS * sizeof(uint32_t));

#define COUNT(ks) cua__bins_count(&find, count, ks)
	BY_KEY(COUNT)
#undef COUNT
}

static const char *count_check(void)
{
	for (uint32_t b = 0; b < find.ranks * find.regions; b++)
		if (counts[b] != wanted[b])
			return "a count is wrong";
	for (uint32_t i = 0; i < find.n; i++)
		if (sorted[i] != bin_of(i))
			return "a bin is wrong";
	return counts[BINS] == ~0u ? NULL : "a count is written past the end";
}

static void scan_setup(void)
{
	memcpy(counts, wanted, sizeof(wanted));
	memset(starts, 0xff, sizeof(starts));
	memset(cursors, 0xff, sizeof(cursors));
}

static void scan_body(void)
{
	cua__bins_scan(&find, simt_shared(THREADS / 32 * sizeof(uint32_t)));
}

static const char *scan_check(void)
{
	const uint32_t bins = find.ranks * find.regions;

	for (uint32_t b = 0; b < bins; b++)
		if (starts[b] != wanted_starts[b] || cursors[b] != wanted_starts[b])
			return "a start is wrong";
	return starts[bins] == ~0u && cursors[bins] == ~0u ? NULL
							   : "a start is written past the end";
}

/* ---- keys to bins ---- */

static void send_setup(void)
{
	memcpy(cursors, wanted_starts, sizeof(wanted_starts));
	memset(in_bins, 0xff, sizeof(in_bins));
	memset(positions, 0xff, sizeof(positions));
	memset(bases, 0xff, sizeof(bases));
	memset(sorted, 0xff, sizeof(sorted));
	for (uint32_t i = 0; i < find.n; i++)
		sorted[i] = bin_of(i);
}

static void send_body(void)
{
	char *stage = simt_shared(STAGE_BYTES);
	uint32_t *of_stage = (void *)(stage + 2 * THREADS * sizeof(struct cua__pack));
	struct cua__bins_shared *sh = (void *)(of_stage + 2 * THREADS);

#define SEND(ks) cua__bins_send(&find, cua_port_block(), sh, stage, of_stage, ks, 2)
	BY_KEY(SEND)
#undef SEND
}

/* The place in the bins of key i, or PLACES if its bin in its tile is another. */
static uint32_t place_of(uint32_t i)
{
	const uint32_t bins = find.ranks * find.regions, tile = i / find.tile, b = bin_of(i);
	const uint32_t at = sorted[i];

	if (at < positions[tile * (bins + 1) + b] || at >= positions[tile * (bins + 1) + b + 1])
		return PLACES;
	return bases[tile * bins + b] + at;
}

static const char *send_check(void)
{
	const uint32_t ks = find.key_size;
	unsigned char seen[PLACES] = {0};

	for (uint32_t i = 0; i < find.n; i++) {
		const uint32_t b = bin_of(i), at = place_of(i);

		if (at < wanted_starts[b] || at >= wanted_starts[b] + wanted[b])
			return "a key is in another bin";
		if (seen[at]++)
			return "a place has two keys";
		if (memcmp((char *)in_bins + (size_t)at * ks, (char *)keys + (size_t)i * ks, ks))
			return "a place has another key";
	}
	for (uint32_t at = 0; at <= PLACES; at++)
		if (!(at < PLACES && seen[at]) && ((uint32_t *)in_bins)[(size_t)at * ks / 4] != ~0u)
			return "a place without a key is written";
	return sorted[find.n] == ~0u ? NULL : "a position is written past the end";
}

/* ---- answers ---- */

/* Key i is found if i % 3 is not 0, with the value i + 7. */
static void take_setup(void)
{
	const uint32_t bins = find.ranks * find.regions, vs = find.value_size / 4;
	uint32_t next[BINS];

	memcpy(next, wanted_starts, sizeof(next));
	memset(found, 0, sizeof(found));
	memset(values_out, 0xff, sizeof(values_out));
	memset(found_out, 0xee, sizeof(found_out));
	for (uint32_t first = 0; first < find.n; first += find.tile) {
		const uint32_t tile = first / find.tile;
		uint32_t position = 0;

		for (uint32_t b = 0; b < bins; b++) {
			positions[tile * (bins + 1) + b] = position;
			bases[tile * bins + b] = next[b] - position;
			for (uint32_t i = first; i < find.n && i < first + find.tile; i++) {
				if (bin_of(i) != b)
					continue;
				found[next[b] / 32] |= (uint32_t)(i % 3 != 0) << next[b] % 32;
				for (uint32_t word = 0; word < vs; word++)
					((uint32_t *)answers)[next[b] * vs + word] = i + 7;
				sorted[i] = position++;
				next[b]++;
			}
		}
		positions[tile * (bins + 1) + bins] = position;
	}
}

static void take_body(void)
{
	char *stage = simt_shared(STAGE_BYTES);
	uint32_t *of_stage = (void *)(stage + 2 * THREADS * sizeof(struct cua__pack));
	struct cua__bins_shared *sh = (void *)(of_stage + 2 * THREADS);
	uint32_t *bits = (void *)(sh + 1);

#define TAKE(vs) cua__bins_take(&find, cua_port_block(), sh, stage, of_stage, bits, vs, 1)
	switch (find.values_out ? find.value_size : 0) {
	case 4: TAKE(4); break;
	case 8: TAKE(8); break;
	case 16: TAKE(16); break;
	default: TAKE(0);
	}
#undef TAKE
}

static const char *take_check(void)
{
	const uint32_t vs = find.value_size / 4;

	for (uint32_t i = 0; i < find.n; i++) {
		const int there = i % 3 != 0;

		if (find.found_out && found_out[i] != there)
			return "a result is wrong";
		for (uint32_t word = 0; word < vs && find.values_out; word++)
			if (((uint32_t *)values_out)[i * vs + word] != (there ? i + 7 : ~0u))
				return "a value is wrong";
	}
	if (found_out[find.n] != 0xee || (vs && ((uint32_t *)values_out)[find.n * vs] != ~0u))
		return "an answer is written past the end";
	return NULL;
}

START_TEST(bins)
{
	static const struct {
		uint32_t ranks, regions, n, key, value;
		int few;
	} shapes[] = {
		{2, 1, 300, 4, 4, 0},    {3, 4, 200, 8, 8, 0}, {2, 8, 300, 16, 4, 0},
		{6, 4, 290, 4, 16, 0},   {2, 1, 256, 8, 0, 0}, {4, 2, 1, 4, 8, 0},
		{12, 2, 140, 16, 16, 0}, {2, 8, 200, 4, 4, 1}, {12, 8, 300, 4, 4, 0},
	};

	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		unsigned tiles;

		make(shapes[k].ranks, shapes[k].regions, shapes[k].n, shapes[k].key, shapes[k].few);
		find.value_size = shapes[k].value;
		find.found_out = k % 2 ? NULL : found_out;
		find.values_out = shapes[k].value ? values_out : NULL;
		tiles = (unsigned)cua__bins_tiles(&find);
		try_kernel("count bins", count_setup, count_body, count_check, 2);
		try_kernel("scan bins", scan_setup, scan_body, scan_check, 1);
		try_kernel("send to bins", send_setup, send_body, send_check, tiles);
		try_kernel("take answers", take_setup, take_body, take_check, tiles);
	}
}
END_TEST

/* ---- units of an owner ---- */

static struct cua__hashmap_sources owner;
static uint32_t source_counts[SOURCES][BINS], source_starts[SOURCES][BINS];
static uint32_t units[BINS + 2], extents[2 * SOURCES * BINS + 1], visits[SOURCES][PLACES];

static void plan_setup(void)
{
	memset(units, 0xff, sizeof(units));
	memset(extents, 0xff, sizeof(extents));
}

static void plan_body(void)
{
	cua__bins_plan(&owner, simt_shared(THREADS / 32 * sizeof(uint32_t)));
}

static const char *plan_check(void)
{
	uint32_t before = 0;

	for (uint32_t r = 0; r < owner.regions; r++) {
		uint32_t most = 0;

		if (units[r] != before)
			return "the units before a region are wrong";
		for (uint32_t s = 0; s < owner.sources; s++) {
			const uint32_t *extent = extents + 2 * (r * owner.sources + s);

			if (extent[0] != source_counts[s][r] || extent[1] != source_starts[s][r])
				return "an extent is wrong";
			most = extent[0] > most ? extent[0] : most;
		}
		before += (most + THREADS - 1) / THREADS * owner.sources;
	}
	if (units[owner.regions] != before)
		return "the number of units is wrong";
	if (units[owner.regions + 1] != ~0u || extents[2 * owner.regions * owner.sources] != ~0u)
		return "the plan is written past the end";
	return NULL;
}

static void visit_setup(void)
{
	memset(visits, 0, sizeof(visits));
}

static void visit_body(void)
{
	for (uint32_t unit = cua_port_block(); unit < units[owner.regions];
	     unit += (uint32_t)cua_port_grid_size()) {
		const struct cua__bins_unit u = cua__bins_unit(&owner, unit);

		if (cua_port_thread() < u.n)
			visits[u.source][u.at + cua_port_thread()]++;
	}
}

static const char *visit_check(void)
{
	for (uint32_t s = 0; s < owner.sources; s++) {
		uint32_t all = 0, there = 0;

		for (uint32_t r = 0; r < owner.regions; r++) {
			all += source_counts[s][r];
			for (uint32_t i = 0; i < source_counts[s][r]; i++)
				if (visits[s][source_starts[s][r] + i] != 1)
					return "a key is not found once";
		}
		for (uint32_t at = 0; at < PLACES; at++)
			there += visits[s][at];
		if (there != all)
			return "a place without a key is visited";
	}
	return NULL;
}

START_TEST(owner_units)
{
	/* of each source and region; 0 and more than a unit are among them */
	static const uint32_t n[][6] = {
		{64, 1, 0, 65, 130, 3},
		{0, 0, 0, 0, 0, 0},
		{7, 200, 64, 0, 0, 1},
		{1, 0, 0, 0, 0, 0},
	};

	for (size_t k = 0; k < sizeof(n) / sizeof(n[0]); k++) {
		owner = (struct cua__hashmap_sources){.sources = k % 2 ? SOURCES : 2,
						      .regions = k % 2 ? 2 : 3,
						      .first = 1,
						      .units = units,
						      .extents = extents};
		for (uint32_t s = 0; s < owner.sources; s++) {
			uint32_t at = 0;

			owner.counts[s] = source_counts[s];
			owner.starts[s] = source_starts[s];
			for (uint32_t r = 0; r < owner.regions; r++) {
				source_counts[s][r] = n[k][s * owner.regions + r];
				source_starts[s][r] = at;
				at += (source_counts[s][r] + 31) / 32 * 32;
			}
		}
		try_kernel("plan units", plan_setup, plan_body, plan_check, 1);
		try_kernel("visit units", visit_setup, visit_body, visit_check, 2);
	}
}
END_TEST

TCase *simt_shard_find_cases(void)
{
	TCase *tc = simt_tcase("shard_find");

	tcase_add_test(tc, bins);
	tcase_add_test(tc, owner_units);
	return tc;
}
