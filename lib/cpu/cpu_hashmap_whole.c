/* SPDX-License-Identifier: MIT */
/* Operations of the CPU backend on a whole hash map. */
#include "config.h"

#include <string.h>

#include "kernels/hashmap_bulk.h"
#include "kernels/hashmap_digits.h"

/* Pairs or slots that justify a thread, and slots per step of a retrieval. */
#define GRAIN 16384
#define PLACES 256

/* ---- sorting ---- */

struct sorting {
	const struct cua__hashmap_sort *sort;
	uint64_t n;
	const void *keys, *values; /* the input of this pass */
	void *keys_out, *values_out;
	struct cua_u128 differ; /* OR of all keys' XOR with the first key */
	uint64_t *places;       /* workers * DIGITS: counts, then the next offset of a digit */
	uint32_t pass;
};

static size_t cpu_sort_scratch(struct cua_context *ctx, uint32_t key_size, uint32_t value_size,
			       uint64_t max)
{
	return cua__scratch_size(max * key_size) + cua__scratch_size(max * value_size) +
	       cua__workers(ctx, max, GRAIN) * CUA__HASHMAP_DIGITS * sizeof(uint64_t);
}

static void differ_worker(void *arg, unsigned worker, unsigned workers)
{
	struct sorting *s = arg;
	const uint32_t ks = s->sort->key_size;
	struct cua_u128 first = cua__hashmap_get(s->keys, ks, 0), differ = {0, 0};
	size_t begin, end;

	cua__share(s->n, worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++) {
		struct cua_u128 key = cua__hashmap_get(s->keys, ks, i);

		differ.lo |= key.lo ^ first.lo;
		differ.hi |= key.hi ^ first.hi;
	}
	cua_port_fetch_or_b64(&s->differ.lo, differ.lo, CUA_RELAXED, CUA__HASHMAP_AT);
	cua_port_fetch_or_b64(&s->differ.hi, differ.hi, CUA_RELAXED, CUA__HASHMAP_AT);
}

static void count_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct sorting *s = arg;
	uint64_t *counts = s->places + worker * CUA__HASHMAP_DIGITS;
	size_t begin, end;

	cua__share(s->n, worker, workers, &begin, &end);
	memset(counts, 0, CUA__HASHMAP_DIGITS * sizeof(*counts));
	for (size_t i = begin; i < end; i++)
		counts[cua__hashmap_digit(cua__hashmap_get(s->keys, s->sort->key_size, i),
					  s->pass)]++;
}

static void scatter_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct sorting *s = arg;
	const uint32_t ks = s->sort->key_size, vs = s->sort->value_size;
	uint64_t *places = s->places + worker * CUA__HASHMAP_DIGITS;
	size_t begin, end;

	cua__share(s->n, worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++) {
		struct cua_u128 key = cua__hashmap_get(s->keys, ks, i);
		uint64_t at = places[cua__hashmap_digit(key, s->pass)]++;

		cua__hashmap_set(s->keys_out, ks, at, key);
		cua__hashmap_set(s->values_out, vs, at, cua__hashmap_get(s->values, vs, i));
	}
}

static enum cua_status cpu_sort(struct cua_context *ctx, const struct cua__hashmap_sort *sort)
{
	const uint32_t ks = sort->key_size, vs = sort->value_size;
	struct sorting s = {.sort = sort, .n = *sort->n < sort->max ? *sort->n : sort->max};
	unsigned workers = cua__workers(ctx, s.n, GRAIN);

	if (s.n < 2)
		return CUA_OK;
	s.keys = sort->keys;
	s.values = sort->values;
	s.keys_out = sort->scratch;
	s.values_out = (char *)sort->scratch + cua__scratch_size(sort->max * ks);
	s.places = (void *)((char *)s.values_out + cua__scratch_size(sort->max * vs));
	cua__parallel(ctx, workers, differ_worker, &s);
	for (s.pass = 0; s.pass < ks; s.pass++) {
		const void *keys = s.keys, *values = s.values;
		uint64_t at = 0;

		if (!cua__hashmap_digit(s.differ, s.pass))
			continue;
		cua__parallel(ctx, workers, count_worker, &s);
		for (uint32_t d = 0; d < CUA__HASHMAP_DIGITS; d++)
			for (unsigned w = 0; w < workers; w++) {
				uint64_t *place = s.places + w * CUA__HASHMAP_DIGITS + d,
					 count = *place;

				*place = at;
				at += count;
			}
		cua__parallel(ctx, workers, scatter_worker, &s);
		s.keys = s.keys_out;
		s.values = s.values_out;
		s.keys_out = (void *)keys;
		s.values_out = (void *)values;
	}
	if (s.keys != sort->keys) {
		memcpy(sort->keys, s.keys, s.n * ks);
		if (vs)
			memcpy(sort->values, s.values, s.n * vs);
	}
	return CUA_OK;
}

/* ---- retrieval ---- */

static enum cua_status cpu_rejected(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	uint64_t kept = cua__hashmap_kept(view, n);

	(void)ctx;
	for (uint64_t i = 0; i < kept && i < max; i++) {
		cua__hashmap_set(keys_out, view->key_size, i, view->rejects->pairs[i].key);
		cua__hashmap_set(values_out, view->value_size, i, view->rejects->pairs[i].value);
	}
	return CUA_OK;
}

/* last: NULL, or only keys <= *last are retrieved. */
static void slice(const struct cua_hashmap_view *view, uint64_t first, uint64_t slots,
		  const struct cua_u128 *last, void *keys_out, void *values_out, uint64_t *n)
{
	const uint32_t ks = view->key_size, vs = view->value_size;
	struct cua_u128 key, value;

	for (uint64_t i = first; i < first + slots; i++) {
		if (!cua__hashmap_at(view, ks, vs, i, &key, &value) ||
		    (last && cua__hashmap_below(*last, key)))
			continue;
		cua__hashmap_set(keys_out, ks, *n, key);
		cua__hashmap_set(values_out, vs, *n, value);
		++*n;
	}
}

static enum cua_status cpu_slice(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint64_t first, uint64_t slots, void *keys_out, void *values_out,
				 uint64_t *n)
{
	(void)ctx;
	slice(view, first, slots, NULL, keys_out, values_out, n);
	return CUA_OK;
}

struct retrieving {
	const struct cua_hashmap_view *view;
	uint64_t max, *n;
	void *keys, *values;
	const struct cua_u128 *last; /* of slice */
};

/*
 * The pairs of a step are contiguous in the output. The workers claim the offsets of steps in any
 * order.
 */
static void retrieve_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct retrieving *r = arg;
	const uint32_t ks = r->view->key_size, vs = r->view->value_size;
	struct cua_u128 keys[PLACES], values[PLACES];
	size_t begin, end;

	cua__share(cua__hashmap_all_slots(r->view, ks, vs), worker, workers, &begin, &end);
	for (size_t first = begin; first < end; first += PLACES) {
		uint64_t n = 0, at;

		slice(r->view, first, end - first < PLACES ? end - first : PLACES, r->last, keys,
		      values, &n);
		at = cua_port_fetch_add_u64(r->n, n, CUA_RELAXED, CUA__HASHMAP_AT);
		if (at >= r->max)
			continue;
		n = n < r->max - at ? n : r->max - at;
		memcpy((char *)r->keys + at * ks, keys, n * ks);
		if (r->values)
			memcpy((char *)r->values + at * vs, values, n * vs);
	}
}

static enum cua_status cpu_retrieve(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	struct retrieving r = {view, max, n, keys_out, values_out, NULL};

	cua__parallel(ctx,
		      cua__workers(ctx,
				   cua__hashmap_all_slots(view, view->key_size, view->value_size),
				   GRAIN),
		      retrieve_worker, &r);
	return CUA_OK;
}

/* ---- the least keys ---- */

struct choosing {
	const struct cua_hashmap_view *view;
	struct cua__hashmap_least least;
	uint32_t pass;
};

static void least_count_worker(void *arg, unsigned worker, unsigned workers)
{
	struct choosing *c = arg;
	const uint32_t ks = c->view->key_size, vs = c->view->value_size;
	uint64_t counts[CUA__HASHMAP_DIGITS] = {0};
	struct cua_u128 key, value;
	size_t begin, end;

	cua__share(cua__hashmap_all_slots(c->view, ks, vs), worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++)
		if (cua__hashmap_at(c->view, ks, vs, i, &key, &value) &&
		    cua__hashmap_same_prefix(key, c->least.key, c->pass))
			counts[cua__hashmap_digit(key, c->pass)]++;
	for (uint32_t d = 0; d < CUA__HASHMAP_DIGITS; d++)
		cua_port_add_u64(&c->least.counts[d], counts[d], CUA_RELAXED, CUA__HASHMAP_AT);
}

static enum cua_status cpu_least(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 const struct cua__hashmap_sort *sort)
{
	struct choosing c = {.view = view};
	struct retrieving r = {view,       sort->max,    &c.least.given,
			       sort->keys, sort->values, &c.least.key};
	const unsigned workers = cua__workers(
		ctx, cua__hashmap_all_slots(view, view->key_size, view->value_size), GRAIN);

	if (*sort->n <= sort->max)
		return CUA_OK;
	for (c.pass = view->key_size; !c.least.done && c.pass-- > 0;) {
		uint64_t below = 0;
		uint32_t d = 0;

		memset(c.least.counts, 0, sizeof(c.least.counts));
		cua__parallel(ctx, workers, least_count_worker, &c);
		while (d < CUA__HASHMAP_DIGITS - 1 &&
		       c.least.below + below + c.least.counts[d] < sort->max)
			below += c.least.counts[d++];
		cua__hashmap_least_digit(&c.least, sort->max, c.pass, d, below, c.least.counts[d]);
	}
	cua__parallel(ctx, workers, retrieve_worker, &r);
	return CUA_OK;
}

struct moving {
	const struct cua_hashmap_view *from, *to;
	int op;
};

static void move_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct moving *m = arg;
	const uint32_t ks = m->from->key_size, vs = m->from->value_size;
	struct cua_u128 keys[PLACES], values[PLACES];
	size_t begin, end;

	cua__share(cua__hashmap_all_slots(m->from, ks, vs), worker, workers, &begin, &end);
	for (size_t first = begin; first < end; first += PLACES) {
		struct cua__hashmap_call call = {.op = m->op, .keys = keys, .values = values};
		uint64_t n = 0;

		slice(m->from, first, end - first < PLACES ? end - first : PLACES, NULL, keys,
		      values, &n);
		call.n = n;
		cua__cpu_hashmap_write_serial(m->to, &call);
	}
}

static enum cua_status cpu_move(struct cua_context *ctx, const struct cua_hashmap_view *from,
				const struct cua_hashmap_view *to, int op)
{
	struct moving m = {from, to, op};

	cua__parallel(ctx,
		      cua__workers(ctx,
				   cua__hashmap_all_slots(from, from->key_size, from->value_size),
				   GRAIN),
		      move_worker, &m);
	return CUA_OK;
}

/* ---- statistics ---- */

struct tallying {
	const struct cua_hashmap_view *view;
	uint32_t *homes;
	struct cua__hashmap_tally *tally;
};

static void tally_worker(void *arg, unsigned worker, unsigned workers)
{
	const struct tallying *t = arg;
	const uint32_t ks = t->view->key_size, vs = t->view->value_size;
	struct cua__hashmap_tally own = {{0}, 0, 0};
	struct cua_u128 key, value;
	size_t begin, end;

	cua__share(cua__hashmap_all_slots(t->view, ks, vs), worker, workers, &begin, &end);
	for (size_t i = begin; i < end; i++) {
		uint64_t home, there;

		if (!cua__hashmap_at(t->view, ks, vs, i, &key, &value)) {
			own.erased += (uint64_t)cua__hashmap_is_erased(t->view, ks, vs, i);
			continue;
		}
		own.probes[cua__hashmap_distance(t->view, ks, vs, i, key, &home)]++;
		there = cua_port_fetch_add_u32(&t->homes[home], 1, CUA_RELAXED, CUA__HASHMAP_AT) +
			(uint64_t)1;
		if (there > own.worst)
			own.worst = there;
	}
	for (uint32_t d = 0; d <= CUA__HASHMAP_FAR; d++)
		cua_port_add_u64(&t->tally->probes[d], own.probes[d], CUA_RELAXED, CUA__HASHMAP_AT);
	cua_port_add_u64(&t->tally->erased, own.erased, CUA_RELAXED, CUA__HASHMAP_AT);
	cua_port_max_u64(&t->tally->worst, own.worst, CUA_RELAXED, CUA__HASHMAP_AT);
}

static enum cua_status cpu_tally(struct cua_context *ctx, const struct cua_hashmap_view *view,
				 uint32_t *homes, struct cua__hashmap_tally *tally)
{
	struct tallying t = {view, homes, tally};

	cua__parallel(ctx,
		      cua__workers(ctx,
				   cua__hashmap_all_slots(view, view->key_size, view->value_size),
				   GRAIN),
		      tally_worker, &t);
	return CUA_OK;
}

const struct cua__hashmap_whole_ops cua__cpu_hashmap_whole = {
	.retrieve = cpu_retrieve,
	.sort_scratch = cpu_sort_scratch,
	.sort = cpu_sort,
	.least = cpu_least,
	.rejected = cpu_rejected,
	.move = cpu_move,
	.slice = cpu_slice,
	.tally = cpu_tally,
};
