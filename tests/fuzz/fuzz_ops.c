/* SPDX-License-Identifier: MIT */
/*
 * Decodes a sequence of operations from the input, and executes it on a container and on a simple
 * model of it: arrays with a linear search. The first byte selects the container, the next few
 * bytes its sizes. Then each operation has a byte, followed by bytes for its arguments. Bytes
 * beyond the end of the input read as 0, but no operation begins there.
 */
#include <cuatomic.h>

#include "scratch.h"

#define MOST_KEYS 1024
#define MOST_BATCH 40u

struct input {
	const uint8_t *p, *end;
};

static unsigned byte(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static struct cua_context *ctx;

/* Checks the status of a call that must not fail. */
static void ok(enum cua_status status, const char *call)
{
	FUZZ_CHECK(!status, "%s: %s", call, cua_status_name(status));
}
#define OK(call) ok(call, #call)

/* A key or a value of up to 16 bytes. The bytes beyond its size are 0. */
struct element {
	uint8_t bytes[16];
};

static struct element number(uint64_t lo, uint64_t hi, uint32_t size)
{
	struct element e;
	const uint32_t low = (uint32_t)lo;

	memset(&e, 0, sizeof(e));
	if (size == 4)
		memcpy(e.bytes, &low, 4);
	else if (size >= 8)
		memcpy(e.bytes, &lo, 8);
	if (size == 16)
		memcpy(e.bytes + 8, &hi, 8);
	return e;
}

static unsigned __int128 value_of(const struct element *e, uint32_t size)
{
	uint64_t lo = 0, hi = 0;
	uint32_t low;

	if (size == 4) {
		memcpy(&low, e->bytes, 4);
		return low;
	}
	memcpy(&lo, e->bytes, 8);
	if (size == 16)
		memcpy(&hi, e->bytes + 8, 8);
	return (unsigned __int128)hi << 64 | lo;
}

static int same(const struct element *a, const struct element *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/*
 * Key number i of 256 different keys. Some equal internal words of a layout, or are neighbours of
 * these words.
 */
static struct element key_number(unsigned i, uint32_t size)
{
	static const uint64_t special[] = {0, 1, ~(uint64_t)0, ~(uint64_t)0 - 1};

	if (i < 4)
		return number(special[i], i < 2 ? 0 : ~(uint64_t)0, size);
	if (i < 8)
		return number(special[i - 4] ^ 0x80000000u ^ 2, 5, size);
	return number(i & 1 ? i * 0x9e3779b97f4a7c15u : i, i & 2 ? i : 0, size);
}

static struct element any_value(struct input *in, uint32_t size)
{
	unsigned b = byte(in);

	return b & 1 ? number(b * 0xd6e8feb86659fd93u, b * 0xa0761d6478bd642fu, size)
		     : number(b >> 1, b & 2 ? b : 0, size);
}

/* ---- the map ---- */

struct model {
	struct element keys[MOST_KEYS], values[MOST_KEYS];
	size_t n;
};

static size_t model_at(const struct model *m, const struct element *key)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (same(&m->keys[i], key))
			break;
	return i;
}

static void model_set(struct model *m, const struct element *key, const struct element *value)
{
	size_t i = model_at(m, key);

	FUZZ_CHECK(i < MOST_KEYS, "the model is full");
	m->keys[i] = *key;
	m->values[i] = *value;
	m->n += i == m->n;
}

static void model_remove(struct model *m, size_t i)
{
	m->n--;
	m->keys[i] = m->keys[m->n];
	m->values[i] = m->values[m->n];
}

struct map {
	struct cua_hashmap *map;
	struct cua_hashmap_options options;
	uint32_t ks, vs;
	uint64_t rejected; /* since the last clear */
	struct model model;
};

/* The arrays of a bulk call, as elements and as packed bytes. */
struct batch {
	size_t n;
	struct element keys[MOST_BATCH], values[MOST_BATCH], out[MOST_BATCH];
	uint8_t results[MOST_BATCH];
	int has_results;
	_Alignas(16) uint8_t packed_keys[MOST_BATCH * 16], packed_values[MOST_BATCH * 16],
		packed_out[MOST_BATCH * 16];
};

static void pack(uint8_t *to, const struct element *e, size_t n, uint32_t size)
{
	for (size_t i = 0; i < n; i++)
		memcpy(to + i * size, e[i].bytes, size);
}

static void unpack(struct element *e, const uint8_t *from, size_t n, uint32_t size)
{
	memset(e, 0, n * sizeof(*e));
	for (size_t i = 0; i < n; i++)
		memcpy(e[i].bytes, from + i * size, size);
}

static uint64_t slots_of(const struct map *m)
{
	uint64_t slots = 0;

	OK(cua_hashmap_capacity(m->map, &slots));
	return slots;
}

static int find_one(struct map *m, const struct element *key, struct element *value)
{
	_Alignas(16) uint8_t k[16], v[16] = {0};
	uint8_t found = 7, contained = 7;

	pack(k, key, 1, m->ks);
	OK(cua_hashmap_contains_n(m->map, 1, k, &contained));
	found = contained;
	if (m->vs)
		OK(cua_hashmap_find_n(m->map, 1, k, v, &found));
	FUZZ_CHECK(found < 2 && contained == found, "find says %d, contains %d", found, contained);
	unpack(value, v, 1, m->vs);
	return found;
}

static void batch_fill(struct batch *b, struct input *in, const struct map *m, int unique)
{
	size_t want = byte(in) % (MOST_BATCH + 1);
	unsigned first = byte(in), step = byte(in) % 4;

	b->has_results = !(byte(in) & 1);
	b->n = 0;
	for (size_t i = 0; i < want; i++) {
		/*
		 * an arithmetic sequence of keys needs no input bytes, so that short inputs can
		 * fill a map
		 */
		unsigned k = step ? (first + (unsigned)i * step) & 255 : byte(in);
		struct element key = key_number(k, m->ks);
		size_t j = b->n;

		if (unique)
			for (j = 0; j < b->n && !same(&b->keys[j], &key); j++)
				;
		if (j < b->n)
			continue;
		b->keys[b->n] = key;
		b->values[b->n++] = step ? number(first + i * 77, i, m->vs) : any_value(in, m->vs);
	}
	memset(b->results, 0xa5, sizeof(b->results));
	memset(b->packed_out, 0xa5, sizeof(b->packed_out));
	pack(b->packed_keys, b->keys, b->n, m->ks);
	pack(b->packed_values, b->values, b->n, m->vs);
	unpack(b->out, b->packed_out, b->n, m->vs);
}

enum way { INSERT, ASSIGN, UPDATE, BUILD };

static struct element combine(enum cua_update op, const struct element *a, const struct element *b,
			      uint32_t size)
{
	unsigned __int128 x = value_of(a, size), y = value_of(b, size), z;

	switch (op) {
	case CUA_UPDATE_ADD: z = x + y; break;
	case CUA_UPDATE_MIN: z = x < y ? x : y; break;
	case CUA_UPDATE_MAX: z = x > y ? x : y; break;
	case CUA_UPDATE_AND: z = x & y; break;
	case CUA_UPDATE_OR: z = x | y; break;
	default: z = x ^ y; break;
	}
	return number((uint64_t)z, (uint64_t)(z >> 64), size);
}

/*
 * Checks the map after a call that wrote the pairs of the batch, and updates the model from the
 * map.
 */
static void settle(struct map *m, const struct batch *b, enum way way, enum cua_update op,
		   int may_grow)
{
	const uint64_t slots = slots_of(m);
	int full = 0;

	for (size_t i = 0; i < b->n; i++) {
		size_t at = model_at(&m->model, &b->keys[i]), many = 0, inserted = 0, refused = 0,
		       first;
		int before = at < m->model.n, there, fits = 0;
		struct element value, total = m->model.values[before ? at : 0];

		for (first = 0; !same(&b->keys[first], &b->keys[i]); first++)
			;
		if (first < i)
			continue; /* settled with the first element of this key */
		there = find_one(m, &b->keys[i], &value);
		for (size_t j = i; j < b->n; j++) {
			if (!same(&b->keys[j], &b->keys[i]))
				continue;
			total = before || many ? combine(op, &total, &b->values[j], m->vs)
					       : b->values[j];
			many++;
			if (!b->has_results) {
				fits |= same(&value, &b->values[j]);
				continue;
			}
			FUZZ_CHECK(b->results[j] >= CUA_HASHMAP_INSERTED &&
					   b->results[j] <= CUA_HASHMAP_FULL,
				   "result %d", b->results[j]);
			inserted += b->results[j] == CUA_HASHMAP_INSERTED;
			refused += b->results[j] == CUA_HASHMAP_FULL;
			/*
			 * for an insert or a build, only the inserting element can have set the
			 * value
			 */
			if (way == ASSIGN || b->results[j] == CUA_HASHMAP_INSERTED)
				fits |= same(&value, &b->values[j]);
		}
		if (b->has_results) {
			FUZZ_CHECK(inserted == (size_t)(there && !before),
				   "%zu elements inserted a key", inserted);
			FUZZ_CHECK(refused == (there ? 0 : many),
				   "%zu of %zu elements refused, and the key is%s there", refused,
				   many, there ? "" : " not");
		}
		FUZZ_CHECK(there || !before, "a key is gone");
		if (!there) {
			full = 1;
			m->rejected += many;
			continue;
		}
		if (before && way == INSERT)
			FUZZ_CHECK(same(&value, &m->model.values[at]), "an insert changed a value");
		else if (way == UPDATE)
			FUZZ_CHECK(same(&value, &total), "the value after updates");
		else
			FUZZ_CHECK(fits || !m->vs, "a value that no element has");
		model_set(&m->model, &b->keys[i], &value);
	}
	FUZZ_CHECK(!full || (!may_grow && m->model.n >= slots), "full with %zu keys in %llu slots",
		   m->model.n, (unsigned long long)slots);
	FUZZ_CHECK(m->model.n <= slots + 2, "%zu keys in %llu slots", m->model.n,
		   (unsigned long long)slots);
}

/* Checks that all calls that read the map agree with the model. */
struct visit {
	struct map *m;
	size_t n, stop;
};

static int visit(void *arg, const void *key, const void *value)
{
	struct visit *v = arg;
	struct element k, e;
	size_t at;

	unpack(&k, key, 1, v->m->ks);
	memset(&e, 0, sizeof(e));
	FUZZ_CHECK(!value == !v->m->vs, "the value of a set");
	if (value)
		unpack(&e, value, 1, v->m->vs);
	at = model_at(&v->m->model, &k);
	FUZZ_CHECK(at < v->m->model.n && same(&e, &v->m->model.values[at]),
		   "for_each: a pair that is not there");
	return ++v->n == v->stop;
}

static void check_pairs(struct map *m, const uint8_t *keys, const uint8_t *values, uint64_t n,
			int sorted)
{
	for (uint64_t i = 0; i < n; i++) {
		struct element k, v;
		size_t at;

		unpack(&k, keys + i * m->ks, 1, m->ks);
		unpack(&v, values + i * m->vs, 1, m->vs);
		at = model_at(&m->model, &k);
		FUZZ_CHECK(at < m->model.n && same(&v, &m->model.values[at]),
			   "pair %llu is not there", (unsigned long long)i);
		if (sorted) {
			size_t below = 0;

			for (size_t j = 0; j < m->model.n; j++)
				below += fuzz_order(m->model.keys[j].bytes, k.bytes, m->ks) < 0;
			FUZZ_CHECK(below == i, "sorted pair %llu has index %zu",
				   (unsigned long long)i, below);
		}
		for (uint64_t j = 0; !sorted && j < i; j++)
			FUZZ_CHECK(memcmp(keys + j * m->ks, k.bytes, m->ks), "a key twice");
	}
}

static void check_map(struct map *m, unsigned how, uint64_t max)
{
	static _Alignas(16) uint8_t keys[MOST_KEYS * 16], values[MOST_KEYS * 16];
	struct cua_hashmap_statistics s = {.struct_size = sizeof(s)};
	uint64_t n = 0, size = 0, fit;
	struct visit v = {m, 0, 0};
	enum cua_status status;

	OK(cua_hashmap_size(m->map, &size));
	FUZZ_CHECK(size == m->model.n, "size %llu of %zu", (unsigned long long)size, m->model.n);
	status = cua_hashmap_status(m->map);
	FUZZ_CHECK(status == (m->rejected ? CUA_ERROR_FULL : CUA_OK),
		   "status %s after %llu rejections", cua_status_name(status),
		   (unsigned long long)m->rejected);
	if (max > MOST_KEYS)
		max = MOST_KEYS;
	fit = max < size ? max : size;
	switch (how % 6) {
	case 0:
	case 1:
		OK(cua_hashmap_retrieve(m->map, how % 6 ? CUA_HASHMAP_SORTED : CUA_HASHMAP_ANY, max,
					keys, values, &n));
		FUZZ_CHECK(n == size, "retrieve: %llu pairs", (unsigned long long)n);
		check_pairs(m, keys, values, fit, how % 6 == 1);
		break;
	case 2:
		OK(cua_hashmap_copy_to_host(m->map, max, keys, values, &n));
		FUZZ_CHECK(n == size, "copy_to_host: %llu pairs", (unsigned long long)n);
		check_pairs(m, keys, values, fit, 0);
		break;
	case 3:
		v.stop = max;
		OK(cua_hashmap_for_each(m->map, visit, &v));
		FUZZ_CHECK(v.n == (max && max < size ? max : size), "for_each: %zu pairs", v.n);
		break;
	case 4:
		OK(cua_hashmap_get_statistics(m->map, &s));
		FUZZ_CHECK(s.keys == size && s.slots == slots_of(m), "statistics: %llu keys",
			   (unsigned long long)s.keys);
		FUZZ_CHECK(s.rejected == m->rejected, "statistics: %llu rejected",
			   (unsigned long long)s.rejected);
		FUZZ_CHECK(s.keys + s.free + s.erased >= s.slots &&
				   s.keys + s.free + s.erased <= s.slots + 2,
			   "statistics: slots");
		for (unsigned i = 0; i < CUA_HASHMAP_PROBES; i++)
			n += s.probes[i];
		FUZZ_CHECK(n == size, "statistics: %llu keys by probes", (unsigned long long)n);
		break;
	default:
		OK(cua_hashmap_rejected(m->map, max, keys, values, &n));
		FUZZ_CHECK(n == m->rejected, "rejected: %llu pairs of %llu", (unsigned long long)n,
			   (unsigned long long)m->rejected);
	}
}

static void map_open(struct map *m, uint64_t capacity)
{
	static const enum cua_type types[17] = {
		[0] = CUA_NONE, [4] = CUA_U32, [8] = CUA_U64, [16] = CUA_U128};

	m->options.struct_size = sizeof(m->options);
	OK(cua_hashmap_create(ctx, &m->options, types[m->ks], types[m->vs], capacity, &m->map));
	FUZZ_CHECK(slots_of(m) >= capacity, "fewer slots than the capacity");
	m->model.n = 0;
	m->rejected = 0;
}

static void map_reads(struct map *m, struct batch *b, struct input *in, unsigned which)
{
	batch_fill(b, in, m, which == 2);
	switch (which) {
	case 0:
		OK(cua_hashmap_find_n(m->map, b->n, b->packed_keys, b->packed_out,
				      b->has_results ? b->results : NULL));
		break;
	case 1: OK(cua_hashmap_contains_n(m->map, b->n, b->packed_keys, b->results)); break;
	default:
		/* every second key gets the correct expected value, if it is present */
		for (size_t i = 0; i < b->n; i += 2) {
			size_t at = model_at(&m->model, &b->keys[i]);

			if (at < m->model.n)
				b->values[i] = m->model.values[at];
		}
		pack(b->packed_out, b->values, b->n, m->vs);
		for (size_t i = 0; i < b->n; i++)
			b->out[i] = number(i * 3 + 1, i, m->vs);
		pack(b->packed_values, b->out, b->n, m->vs);
		OK(cua_hashmap_compare_exchange_n(m->map, b->n, b->packed_keys, b->packed_out,
						  b->packed_values,
						  b->has_results ? b->results : NULL));
	}
	for (size_t i = 0; i < b->n; i++) {
		size_t at = model_at(&m->model, &b->keys[i]);
		int there = at < m->model.n, result = b->results[i];
		struct element got;

		unpack(&got, b->packed_out + i * m->vs, 1, m->vs);
		if (which < 2) {
			FUZZ_CHECK(result == there || (!which && !b->has_results), "found %d",
				   result);
			FUZZ_CHECK(which || same(&got, there ? &m->model.values[at] : &b->out[i]),
				   "the value found");
			continue;
		}
		if (there && same(&m->model.values[at], &b->values[i])) {
			FUZZ_CHECK(result == CUA_HASHMAP_EXISTS || !b->has_results, "result %d",
				   result);
			FUZZ_CHECK(same(&got, &b->values[i]), "the expected value changed");
			m->model.values[at] = b->out[i];
		} else {
			FUZZ_CHECK(result == (there ? CUA_HASHMAP_DIFFERS : CUA_HASHMAP_ABSENT) ||
					   !b->has_results,
				   "result %d", result);
			FUZZ_CHECK(same(&got, there ? &m->model.values[at] : &b->values[i]),
				   "the value instead");
		}
	}
}

static void map_erases(struct map *m, struct batch *b, struct input *in)
{
	enum cua_status status;

	batch_fill(b, in, m, 0);
	status = cua_hashmap_erase_n(m->map, b->n, b->packed_keys,
				     b->has_results ? b->results : NULL);
	FUZZ_CHECK(status == (m->options.no_erase ? CUA_ERROR_UNSUPPORTED : CUA_OK), "erase_n: %s",
		   cua_status_name(status));
	if (status)
		return;
	for (size_t i = 0; i < b->n; i++) {
		size_t at = model_at(&m->model, &b->keys[i]), first = 0;
		unsigned removed = 0;

		while (!same(&b->keys[first], &b->keys[i]))
			first++;
		if (first < i)
			continue; /* counted with the first element of this key */
		for (size_t j = i; j < b->n; j++)
			if (same(&b->keys[j], &b->keys[i]))
				removed += b->results[j];
		FUZZ_CHECK(removed == (at < m->model.n) || !b->has_results,
			   "%u elements removed a key that is%s there", removed,
			   at < m->model.n ? "" : " not");
		if (at < m->model.n)
			model_remove(&m->model, at);
	}
}

/* insert_or_get and exchange: calls that write pairs and return values. */
static void map_returns(struct map *m, struct batch *b, struct input *in, int exchange)
{
	uint8_t *results, *out;
	struct model *before = malloc(sizeof(*before));

	FUZZ_CHECK(before, "out of memory");
	*before = m->model;
	batch_fill(b, in, m, exchange);
	results = b->has_results ? b->results : NULL;
	out = b->packed_out;
	if (byte(in) & 1) {
		/* the output replaces the values */
		out = b->packed_values;
		memcpy(b->out, b->values, sizeof(b->out));
	}
	if (exchange)
		OK(cua_hashmap_exchange_n(m->map, b->n, b->packed_keys, b->packed_values, out,
					  results));
	else
		OK(cua_hashmap_insert_or_get_n(m->map, b->n, b->packed_keys, b->packed_values, out,
					       results));
	settle(m, b, exchange ? ASSIGN : INSERT, CUA_UPDATE_ADD, m->options.grow_percent != 0);
	for (size_t i = 0; i < b->n; i++) {
		const struct model *now = exchange ? before : &m->model;
		size_t at = model_at(now, &b->keys[i]);
		struct element got;

		unpack(&got, out + i * m->vs, 1, m->vs);
		FUZZ_CHECK(same(&got, at < now->n ? &now->values[at] : &b->out[i]),
			   "the returned value");
	}
	free(before);
}

static void map_writes(struct map *m, struct batch *b, struct input *in, enum way way)
{
	enum cua_update op = way == UPDATE ? (enum cua_update)(1 + byte(in) % 6) : CUA_UPDATE_ADD;
	uint8_t *results;

	batch_fill(b, in, m, 0);
	results = b->has_results ? b->results : NULL;
	switch (way) {
	case INSERT:
		OK(cua_hashmap_insert_n(m->map, b->n, b->packed_keys, b->packed_values, results));
		break;
	case ASSIGN:
		OK(cua_hashmap_assign_n(m->map, b->n, b->packed_keys, b->packed_values, results));
		break;
	case UPDATE:
		OK(cua_hashmap_update_n(m->map, op, b->n, b->packed_keys, b->packed_values,
					results));
		break;
	case BUILD:
		OK(cua_hashmap_build_n(m->map, b->n, b->packed_keys, b->packed_values, results));
		m->model.n = 0;
		m->rejected = 0;
		break;
	}
	settle(m, b, way, op, m->options.grow_percent != 0);
}

/* A single call of an inline function of hashmap.h, as in a kernel. */
static void map_single(struct map *m, struct batch *b, struct input *in)
{
	unsigned which = byte(in) % 5;
	struct cua_hashmap_view view;
	uint64_t key = 0, value = 0;
	size_t at;
	int result;

	if (m->ks > 8 || m->vs > 8)
		return;
	b->n = 1;
	b->has_results = 1;
	b->keys[0] = key_number(byte(in), m->ks);
	b->values[0] = any_value(in, m->vs);
	memcpy(&key, b->keys[0].bytes, 8);
	memcpy(&value, b->values[0].bytes, 8);
	at = model_at(&m->model, &b->keys[0]);
	OK(cua_hashmap_get_view(m->map, &view));
	switch (m->vs || which == 0 || which > 2 ? which : 0) {
	case 0: b->results[0] = (uint8_t)cua_hashmap_insert(&view, key, value); break;
	case 1: b->results[0] = (uint8_t)cua_hashmap_assign(&view, key, value); break;
	case 2:
		b->results[0] = (uint8_t)cua_hashmap_update(&view, key, value, CUA_UPDATE_XOR);
		break;
	case 3:
		result = cua_hashmap_erase(&view, key);
		FUZZ_CHECK(result == (at < m->model.n && !m->options.no_erase), "erase: %d",
			   result);
		if (result)
			model_remove(&m->model, at);
		return;
	default:
		result = cua_hashmap_find(&view, key, &value);
		FUZZ_CHECK(result == (at < m->model.n) &&
				   cua_hashmap_contains(&view, key) == result,
			   "find: %d", result);
		FUZZ_CHECK(!result || !memcmp(&value, m->model.values[at].bytes, m->vs),
			   "the value found");
		return;
	}
	settle(m, b, !m->vs || !which ? INSERT : which == 1 ? ASSIGN : UPDATE, CUA_UPDATE_XOR, 0);
}

static void map_merge(struct map *m, struct map *from, struct input *in)
{
	static const enum cua_hashmap_merge_rule ways[] = {
		CUA_HASHMAP_KEEP, CUA_HASHMAP_ADD, CUA_HASHMAP_MIN, CUA_HASHMAP_MAX,
		CUA_HASHMAP_AND,  CUA_HASHMAP_OR,  CUA_HASHMAP_XOR, CUA_HASHMAP_REPLACE};
	enum cua_hashmap_merge_rule how = m->vs ? ways[byte(in) % 8] : CUA_HASHMAP_KEEP;
	uint64_t slots = slots_of(m);
	int full = 0;

	OK(cua_hashmap_merge(m->map, from->map, how));
	for (size_t i = 0; i < from->model.n; i++) {
		struct element value, want = from->model.values[i];
		size_t at = model_at(&m->model, &from->model.keys[i]);
		int there = find_one(m, &from->model.keys[i], &value);

		if (at < m->model.n) {
			if (how == CUA_HASHMAP_KEEP)
				want = m->model.values[at];
			else if (how != CUA_HASHMAP_REPLACE)
				want = combine((enum cua_update)how, &m->model.values[at], &want,
					       m->vs);
			FUZZ_CHECK(there, "a merge removed a key");
		}
		if (!there) {
			full = 1;
			m->rejected++;
			continue;
		}
		FUZZ_CHECK(same(&value, &want), "the value after a merge");
		model_set(&m->model, &from->model.keys[i], &value);
	}
	FUZZ_CHECK(!full || m->model.n >= slots, "full with %zu keys in %llu slots", m->model.n,
		   (unsigned long long)slots);
}

static void map_resize(struct map *m, uint64_t capacity)
{
	uint64_t before = slots_of(m), after;
	enum cua_status status = cua_hashmap_resize(m->map, capacity);

	after = slots_of(m);
	if (status) {
		FUZZ_CHECK(after == before, "a resize that failed changed the slots");
		FUZZ_CHECK(status == (capacity ? CUA_ERROR_SIZE : CUA_ERROR_VALUE) &&
				   capacity < m->model.n + !capacity,
			   "resize to %llu with %zu keys: %s", (unsigned long long)capacity,
			   m->model.n, cua_status_name(status));
	} else {
		FUZZ_CHECK(capacity && after >= capacity, "resize to %llu",
			   (unsigned long long)capacity);
	}
}

static void map_save_load(struct map *m)
{
	const char *path = scratch_path(0);
	struct cua_hashmap *loaded = NULL;
	uint64_t slots = slots_of(m);

	OK(cua_hashmap_save(m->map, path));
	OK(cua_hashmap_load(ctx, NULL, path, &loaded));
	OK(cua_hashmap_destroy(m->map));
	m->map = loaded;
	m->rejected = 0;
	FUZZ_CHECK(slots_of(m) >= slots, "fewer slots after a load");
}

static void fuzz_map(struct input *in)
{
	static const uint32_t key_sizes[] = {4, 8, 16}, value_sizes[] = {0, 4, 8, 16};
	static const uint8_t grows[] = {0, 0, 0, 50, 80, 95};
	static struct map maps[2];
	struct batch *b = malloc(sizeof(*b));
	struct map *m = &maps[0];
	unsigned c = byte(in);

	FUZZ_CHECK(b, "out of memory");
	memset(b, 0, sizeof(*b));
	for (int i = 0; i < 2; i++) {
		memset(&maps[i].options, 0, sizeof(maps[i].options));
		maps[i].ks = key_sizes[c % 3];
		maps[i].vs = value_sizes[c / 3 % 4];
		maps[i].options.portable = c / 12 % 2;
		maps[i].options.no_erase = c / 24 % 3 == 1;
		maps[i].options.rejects = byte(in) % 8;
		maps[i].options.grow_percent = grows[byte(in) % 6];
		maps[i].options.seed = byte(in) + 1;
		map_open(&maps[i], 1 + byte(in) % 100);
	}
	while (in->p < in->end) {
		unsigned op = byte(in);

		switch (op % 20) {
		case 0:
		case 1: map_writes(m, b, in, INSERT); break;
		case 2: map_writes(m, b, in, m->vs ? ASSIGN : INSERT); break;
		case 3: map_writes(m, b, in, m->vs ? UPDATE : INSERT); break;
		case 4:
			if (op >= 128)
				map_writes(m, b, in, BUILD);
			break;
		case 5:
			if (m->vs)
				map_returns(m, b, in, 0);
			break;
		case 6:
			if (m->vs)
				map_returns(m, b, in, 1);
			break;
		case 7:
			if (m->vs)
				map_reads(m, b, in, 2);
			break;
		case 8: map_reads(m, b, in, m->vs ? 0 : 1); break;
		case 9: map_reads(m, b, in, 1); break;
		case 10:
		case 11: map_erases(m, b, in); break;
		case 12:
		case 13: map_single(m, b, in); break;
		case 14: m = m == &maps[0] ? &maps[1] : &maps[0]; break;
		case 15: map_merge(m, m == &maps[0] ? &maps[1] : &maps[0], in); break;
		case 16: map_resize(m, byte(in)); break;
		case 17: map_save_load(m); break;
		case 18:
			if (op >= 200) {
				OK(cua_hashmap_clear(m->map));
				m->model.n = 0;
				m->rejected = 0;
			}
			break;
		default: check_map(m, byte(in), byte(in));
		}
	}
	for (int i = 0; i < 2; i++) {
		check_map(&maps[i], 1, MOST_KEYS);
		check_map(&maps[i], 5, 0);
		OK(cua_hashmap_destroy(maps[i].map));
	}
	free(b);
}

/*
 * ---- containers with many values per key: the model is a list of pairs with the number of the
 * adding call ----
 */

#define MOST_PAIRS 4096

struct pair {
	uint64_t key, value;
	unsigned call;
};

static struct pair pairs[MOST_PAIRS];
static size_t n_pairs;

static uint64_t count_of(uint64_t key)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_pairs; i++)
		n += pairs[i].key == key;
	return n;
}

/*
 * Removes a pair with this key, value and call (0: any call). Returns whether there was such a
 * pair.
 */
static int remove_pair(struct pair *from, size_t *n, uint64_t key, uint64_t value, unsigned call)
{
	for (size_t i = 0; i < *n; i++)
		if (from[i].key == key && from[i].value == value &&
		    (!call || from[i].call == call)) {
			from[i] = from[--*n];
			return 1;
		}
	return 0;
}

/*
 * Checks that these are the values of n different pairs of the key, newest call first if
 * newest_first.
 */
static void check_values(uint64_t key, const uint64_t *values, uint64_t n, int newest_first)
{
	static struct pair left[MOST_PAIRS];
	size_t n_left = n_pairs;

	memcpy(left, pairs, n_pairs * sizeof(*pairs));
	for (uint64_t i = 0; i < n; i++) {
		unsigned newest = 0;

		for (size_t j = 0; newest_first && j < n_left; j++)
			if (left[j].key == key && left[j].call > newest)
				newest = left[j].call;
		FUZZ_CHECK(remove_pair(left, &n_left, key, values[i], newest),
			   "value %llu of key %llx", (unsigned long long)i,
			   (unsigned long long)key);
	}
}

static uint64_t get(const void *from, size_t i, uint32_t size)
{
	uint32_t low;
	uint64_t v;

	if (size == 4) {
		memcpy(&low, (const char *)from + i * 4, 4);
		return low;
	}
	memcpy(&v, (const char *)from + i * 8, 8);
	return v;
}

static void put(void *to, size_t i, uint32_t size, uint64_t v)
{
	const uint32_t low = (uint32_t)v;

	memcpy((char *)to + i * size, size == 4 ? (const void *)&low : (const void *)&v, size);
}

static size_t some_keys(struct input *in, void *keys, uint32_t size)
{
	size_t n = byte(in) % (MOST_BATCH + 1);
	unsigned step = byte(in) % 4, first = byte(in);

	for (size_t i = 0; i < n; i++) {
		struct element e =
			key_number(step ? (first + (unsigned)i / step) & 255 : byte(in), size);
		uint64_t k;

		memcpy(&k, e.bytes, 8);
		put(keys, i, size, k);
	}
	return n;
}

static void fuzz_multimap(struct input *in)
{
	const unsigned c = byte(in);
	const uint32_t ks = c & 1 ? 4 : 8, vs = c & 2 ? 4 : 8;
	struct cua_multimap_options options = {.struct_size = sizeof(options)};
	const uint64_t most_keys = 1 + byte(in) % 64, most_entries = 1 + byte(in) % 200;
	_Alignas(16) uint64_t keys[MOST_BATCH], values[MOST_BATCH], offsets[MOST_BATCH + 1];
	static _Alignas(16) uint64_t out[MOST_PAIRS], out_keys[MOST_PAIRS];
	uint64_t n = 0, erased = 0; /* erased: entries, not yet reclaimed */
	uint8_t results[MOST_BATCH];
	struct cua_multimap *mm;
	unsigned calls = 0;
	int full = 0;

	options.portable = c >> 2 & 1;
	options.link_size = c & 8 ? 8 : 0;
	options.seed = 1 + (c >> 4);
	n_pairs = 0;
	OK(cua_multimap_create(ctx, &options, ks == 4 ? CUA_U32 : CUA_U64,
			       vs == 4 ? CUA_U32 : CUA_U64, most_keys, most_entries, &mm));
	while (in->p < in->end) {
		unsigned op = byte(in);
		size_t many;

		switch (op % 8) {
		case 0:
		case 1:
		case 2:
			many = some_keys(in, keys, ks);
			calls++;
			for (size_t i = 0; i < many; i++)
				put(values, i, vs, calls * 1000 + i / 2);
			memset(results, 0xa5, sizeof(results));
			OK(cua_multimap_insert_n(mm, many, keys, values, results));
			for (size_t i = 0; i < many; i++) {
				FUZZ_CHECK(results[i] == CUA_MULTIMAP_INSERTED ||
						   results[i] == CUA_MULTIMAP_FULL,
					   "result %d", results[i]);
				if (results[i] == CUA_MULTIMAP_FULL) {
					full = 2;
					continue;
				}
				FUZZ_CHECK(n_pairs < MOST_PAIRS, "the model is full");
				pairs[n_pairs++] =
					(struct pair){get(keys, i, ks), get(values, i, vs), calls};
			}
			FUZZ_CHECK(n_pairs + erased <= most_entries, "%zu pairs, %llu erased",
				   n_pairs, (unsigned long long)erased);
			OK(cua_multimap_keys(mm, &n));
			FUZZ_CHECK(full < 2 || n_pairs + erased == most_entries || n >= most_keys,
				   "full with %zu pairs, %llu erased", n_pairs,
				   (unsigned long long)erased);
			full = full != 0;
			break;
		case 3:
			many = some_keys(in, keys, ks);
			OK(cua_multimap_count_n(mm, many, keys, offsets));
			for (size_t i = 0; i < many; i++)
				FUZZ_CHECK(offsets[i] == count_of(get(keys, i, ks)), "count_n");
			break;
		case 4: {
			uint64_t max = byte(in) * 4, sum = 0;

			many = some_keys(in, keys, ks);
			OK(cua_multimap_retrieve_n(mm, many, keys, max, offsets, out, &n));
			for (size_t i = 0; i < many; i++) {
				uint64_t key = get(keys, i, ks), at[256], here;

				FUZZ_CHECK(offsets[i] == (sum < max ? sum : max), "offset %zu", i);
				sum += count_of(key);
				here = (sum < max ? sum : max) - offsets[i];
				FUZZ_CHECK(here <= 256, "%llu values", (unsigned long long)here);
				for (uint64_t j = 0; j < here; j++)
					at[j] = get(out, offsets[i] + j, vs);
				check_values(key, at, here, 1);
			}
			FUZZ_CHECK(!many || offsets[many] == (sum < max ? sum : max),
				   "the last offset");
			FUZZ_CHECK(n == sum, "total %llu of %llu", (unsigned long long)n,
				   (unsigned long long)sum);
			break;
		}
		case 5:
			many = some_keys(in, keys, ks);
			OK(cua_multimap_erase_n(mm, many, keys, offsets));
			for (size_t i = 0; i < many; i++) {
				uint64_t key = get(keys, i, ks), had = count_of(key), sum = 0;

				for (size_t j = 0; had && j < many; j++)
					if (get(keys, j, ks) == key)
						sum += offsets[j];
				FUZZ_CHECK(sum == had, "erase_n: %llu of %llu values",
					   (unsigned long long)sum, (unsigned long long)had);
				for (size_t j = n_pairs; j-- > 0;)
					if (pairs[j].key == key)
						pairs[j] = pairs[--n_pairs];
				erased += had;
			}
			break;
		case 6:
			if (op < 128) {
				OK(cua_multimap_reclaim(mm));
				erased = 0;
			} else if (op >= 224) {
				OK(cua_multimap_clear(mm));
				erased = 0;
				n_pairs = 0;
				full = 0;
			}
			break;
		default: {
			static struct pair left[MOST_PAIRS];
			size_t n_left = n_pairs;
			uint64_t max = byte(in) * 2;

			memcpy(left, pairs, n_pairs * sizeof(*pairs));
			OK(cua_multimap_retrieve(mm, max, out_keys, out, &n));
			FUZZ_CHECK(n == n_pairs, "retrieve: %llu pairs", (unsigned long long)n);
			for (uint64_t i = 0; i < n && i < max; i++)
				FUZZ_CHECK(remove_pair(left, &n_left, get(out_keys, i, ks),
						       get(out, i, vs), 0),
					   "retrieve: pair %llu", (unsigned long long)i);
		}
		}
		OK(cua_multimap_size(mm, &n));
		FUZZ_CHECK(n == n_pairs, "size %llu of %zu", (unsigned long long)n, n_pairs);
		FUZZ_CHECK(cua_multimap_status(mm) == (full ? CUA_ERROR_FULL : CUA_OK), "status");
	}
	OK(cua_multimap_destroy(mm));
}

static void chained_add(struct cua_chained *table, uint64_t capacity, size_t n,
			const uint64_t *keys, const uint64_t *values, int build, uint64_t *demand,
			unsigned call)
{
	if (build)
		OK(cua_chained_build_n(table, n, keys, values));
	else
		OK(cua_chained_insert_n(table, n, keys, values));
	for (size_t i = 0; i < n; i++)
		if ((*demand)++ < capacity)
			pairs[n_pairs++] = (struct pair){keys[i], values[i], call};
}

static void check_chained(struct cua_chained *table, size_t n, const uint64_t *keys)
{
	uint64_t got[MOST_BATCH], counts[MOST_BATCH];
	uint8_t found[MOST_BATCH];

	memset(got, 0xa5, sizeof(got));
	memset(found, 0xa5, sizeof(found));
	OK(cua_chained_find_n(table, n, keys, got, found));
	OK(cua_chained_count_n(table, n, keys, counts));
	for (size_t i = 0; i < n; i++) {
		uint64_t many = count_of(keys[i]);

		FUZZ_CHECK(counts[i] == many && found[i] == (many > 0),
			   "count %llu of %llu, found %d", (unsigned long long)counts[i],
			   (unsigned long long)many, found[i]);
		if (many)
			check_values(keys[i], &got[i], 1, 1);
		else
			FUZZ_CHECK(got[i] == 0xa5a5a5a5a5a5a5a5u, "a value of an absent key");
	}
}

static void fuzz_chained(struct input *in)
{
	const uint64_t buckets = 1 + byte(in) % 64, capacity = byte(in);
	uint64_t keys[MOST_BATCH], values[MOST_BATCH], out[256], demand = 0, n = 0;
	struct cua_chained_report report = {.struct_size = sizeof(report)};
	struct cua_chained *table, *copy;
	unsigned calls = 0;

	n_pairs = 0;
	OK(cua_chained_create(ctx, NULL, buckets, capacity, &table));
	while (in->p < in->end) {
		unsigned op = byte(in);
		size_t many = some_keys(in, keys, 8);
		uint64_t max;

		for (size_t i = 0; i < many; i++)
			values[i] = calls * 1000 + i / 2;
		switch (op % 6) {
		case 0:
		case 1:
			calls++;
			/*
			 * a call does not report which pairs did not fit, so near the end add pairs
			 * one by one
			 */
			if (demand + many <= capacity)
				chained_add(table, capacity, many, keys, values, op & 1, &demand,
					    calls);
			else
				for (size_t i = 0; i < many; i++)
					chained_add(table, capacity, 1, keys + i, values + i,
						    op & 1, &demand, calls++);
			break;
		case 2: check_chained(table, many, keys); break;
		case 3:
			max = byte(in);
			OK(cua_chained_values(table, keys[0] = many ? keys[0] : 5, max, out, &n));
			FUZZ_CHECK(n == count_of(keys[0]), "values: %llu", (unsigned long long)n);
			check_values(keys[0], out, n < max ? n : max, 0);
			break;
		case 4:
			OK(cua_chained_verify(table, &report));
			OK(cua_chained_copy(table, ctx, &copy));
			check_chained(copy, many, keys);
			OK(cua_chained_verify(copy, NULL));
			OK(cua_chained_destroy(copy));
			break;
		default:
			if (op >= 200) {
				OK(cua_chained_clear(table));
				demand = 0;
				n_pairs = 0;
			}
		}
		OK(cua_chained_demand(table, &n));
		FUZZ_CHECK(n == demand, "demand %llu of %llu", (unsigned long long)n,
			   (unsigned long long)demand);
		OK(cua_chained_size(table, &n));
		FUZZ_CHECK(n == n_pairs, "size %llu of %zu", (unsigned long long)n, n_pairs);
		FUZZ_CHECK(cua_chained_status(table) ==
				   (demand > capacity ? CUA_ERROR_FULL : CUA_OK),
			   "status");
	}
	OK(cua_chained_destroy(table));
}

/* ---- the append buffer, and filters into append buffers and arrays ---- */

static int keeps(uint32_t v, enum cua_compare compare, uint32_t limit)
{
	switch (compare) {
	case CUA_LT: return v < limit;
	case CUA_LE: return v <= limit;
	case CUA_EQ: return v == limit;
	case CUA_NE: return v != limit;
	case CUA_GE: return v >= limit;
	default: return v > limit;
	}
}

static void fuzz_append(struct input *in)
{
	const size_t item = 1 + byte(in) % 24, size = byte(in) & 1 ? 4 : item;
	const uint64_t capacity = byte(in) % 128;
	static uint8_t model[128 * 24], out[128 * 24];
	struct cua_filter_options options = CUA_FILTER_OPTIONS_INIT;
	struct cua_append_view view;
	struct cua_append *buffer;
	uint64_t demand = 0, n = 0;

	OK(cua_append_create(ctx, size, capacity, &buffer));
	OK(cua_append_get_view(buffer, &view));
	while (in->p < in->end) {
		unsigned op = byte(in), value = byte(in);
		uint64_t stored = demand < capacity ? demand : capacity, max;

		switch (op % 5) {
		case 0:
		case 1: {
			uint8_t one[24];
			int result;

			memset(one, (int)value, sizeof(one));
			one[size - 1] ^= (uint8_t)demand;
			result = cua_append_push(&view, one);
			FUZZ_CHECK(result == (demand < capacity), "push: %d", result);
			if (result)
				memcpy(model + demand * size, one, size);
			demand++;
			break;
		}
		case 2: {
			uint32_t x[64], kept[64], limit = byte(in);
			enum cua_compare compare = (enum cua_compare)(1 + byte(in) % 6);
			size_t many = value % 65, all = 0;

			for (size_t i = 0; i < many; i++) {
				x[i] = i % 3 ? (uint32_t)(i * value) % 256 : byte(in);
				if (keeps(x[i], compare, limit))
					kept[all++] = x[i];
			}
			options.ordered = 1;
			if (size == 4) {
				OK(cua_filter_append(ctx, &options, CUA_U32, many, x, compare,
						     &limit, buffer));
				for (size_t i = 0; i < all; i++, demand++)
					if (demand < capacity)
						memcpy(model + demand * size, &kept[i], size);
			} else {
				/* in place: the output overwrites the input */
				OK(cua_filter_array(ctx, &options, CUA_U32, many, x, compare,
						    &limit, many, x, &n));
				FUZZ_CHECK(n == all && !memcmp(x, kept, all * sizeof(*x)),
					   "filter: %llu of %zu", (unsigned long long)n, all);
			}
			break;
		}
		case 3:
			max = value % 129;
			memset(out, 0x5a, sizeof(out));
			OK(cua_append_read(buffer, out, max, &n));
			FUZZ_CHECK(n == (max < stored ? max : stored), "read: %llu items of %llu",
				   (unsigned long long)n, (unsigned long long)stored);
			max = max < stored ? max : stored;
			FUZZ_CHECK(!memcmp(out, model, max * size), "read: other items");
			for (size_t i = max * size; i < sizeof(out); i++)
				FUZZ_CHECK(out[i] == 0x5a, "read: bytes after the items");
			break;
		default:
			if (op >= 220) {
				OK(cua_append_reset(buffer));
				demand = 0;
			}
		}
		OK(cua_append_demand(buffer, &n));
		FUZZ_CHECK(n == demand, "demand %llu of %llu", (unsigned long long)n,
			   (unsigned long long)demand);
		OK(cua_append_size(buffer, &n));
		FUZZ_CHECK(n == (demand < capacity ? demand : capacity), "size %llu",
			   (unsigned long long)n);
		FUZZ_CHECK(cua_append_status(buffer) ==
				   (demand > capacity ? CUA_ERROR_FULL : CUA_OK),
			   "status");
	}
	OK(cua_append_destroy(buffer));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	unsigned kind;

	if (!ctx) {
		/* a fixed hash seed makes runs reproducible */
		setenv("CUATOMIC_HASH_SEED", "1", 1);
		OK(cua_context_create(CUA_BACKEND_CPU, 0, &ctx));
		OK(cua_context_set_threads(ctx, 1));
	}
	if (size > 1024)
		return 0;
	kind = byte(&in);
	switch (kind % 8) {
	case 5: fuzz_multimap(&in); break;
	case 6: fuzz_chained(&in); break;
	case 7: fuzz_append(&in); break;
	default: fuzz_map(&in);
	}
	return 0;
}
