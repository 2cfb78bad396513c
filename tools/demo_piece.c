/* SPDX-License-Identifier: MIT */
/*
 * A piece of the file with its words, the expected results of plain loops, and the comparisons of
 * the demonstration.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "demo.h"

/* The test build defines it as 1 for the name of a check whose expected result shall be wrong. */
#ifndef CUATOMIC_DEMO_PLANT
#define CUATOMIC_DEMO_PLANT(what) 0
#endif

void demo_need(struct demo *d, enum cua_status status, int cuda_error)
{
	const char *part = d->part->name;

	if (status == CUA_ERROR_CUDA)
		tool_die("%s, %s: %s (CUDA error %d)", part, d->where, cua_strerror(status),
			 cuda_error);
	if (status == CUA_ERROR_SYSTEM)
		tool_die("%s, %s: %s (%s)", part, d->where, cua_strerror(status), strerror(errno));
	if (status != CUA_OK)
		tool_die("%s, %s: %s", part, d->where, cua_strerror(status));
	d->clock = tool_now();
}

void demo_verify(struct demo *d, const char *what, double got, double expected)
{
	expected += CUATOMIC_DEMO_PLANT(what);
	if (got != expected && !d->part->wrong)
		tool_error("%s, %s: %s is %.17g, the reference has %.17g", d->part->name, d->where,
			   what, got, expected);
	d->part->wrong |= got != expected;
}

void demo_verify_result(struct demo *d, const char *what, double got, double expected)
{
	double *result = &d->part->result[d->column];

	demo_verify(d, what, got, expected);
	*result = d->part->combine ? d->part->combine(*result, got) : *result + got;
}

/* ---- a piece ---- */

int demo_word_order(const void *a, const void *b)
{
	const struct demo_word *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* Writes the bytes in three types, and computes the expected results of the reductions. */
static void read_bytes(struct demo *d)
{
	uint32_t *u32 = d->host[U32];
	double *f64 = d->host[F64], *reduced = d->reduced;

	memcpy(d->host[U8], d->bytes, d->n);
	reduced[CUA_REDUCE_MIN] = INFINITY;
	reduced[CUA_REDUCE_MAX] = -INFINITY;
	for (size_t k = 0; k < d->n; k++) {
		const double byte = d->bytes[k];

		u32[k] = d->bytes[k];
		f64[k] = byte;
		d->count[d->bytes[k]]++;
		reduced[CUA_REDUCE_SUM] += byte;
		reduced[CUA_REDUCE_DOT] += k > 0 ? f64[k - 1] * byte : 0;
		reduced[CUA_REDUCE_MIN] = fmin(reduced[CUA_REDUCE_MIN], byte);
		reduced[CUA_REDUCE_MAX] = fmax(reduced[CUA_REDUCE_MAX], byte);
	}
	f64[d->n] = 0; /* the last byte has no successor */
}

/* Writes the words: runs of bytes that are not white space. */
static void read_words(struct demo *d)
{
	uint64_t *keys = d->host[KEYS], *positions = d->host[POSITIONS], seed;
	size_t n = 0;

	/* a random seed: a file with colliding words cannot be prepared */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = CUA_HASH_SEED_FIXED;
	for (size_t k = 0, end; k < d->n; k = end + 1) {
		for (end = k; end < d->n && !isspace(d->bytes[end]);)
			end++;
		if (end == k)
			continue;
		keys[n] = cua_hash_bytes(d->bytes + k, end - k, seed);
		positions[n] = k;
		d->words[n] = (struct demo_word){keys[n], positions[n]};
		n++;
	}
	positions[n] = d->n;
	d->n_words = n;
}

/* Sorts the words, and writes the queries: each key once, and absent keys. */
static void make_queries(struct demo *d)
{
	size_t k = 0, q = 0;

	qsort(d->words, d->n_words, sizeof(*d->words), demo_word_order);
	while (k < d->n_words) {
		const uint64_t key = d->words[k].key;

		d->queries[q] = key;
		d->first[q++] = k;
		d->n_keys++;
		while (k < d->n_words && d->words[k].key == key)
			k++;
		/* a key between two neighbours is absent */
		if (k < d->n_words && d->words[k].key - key > 1) {
			d->queries[q] = key + 1;
			d->first[q++] = k;
		}
	}
	d->first[q] = k;
	d->n_queries = q;
}

void demo_open(struct demo *d, const uint8_t *bytes, size_t n)
{
	/* an array has room for n + 1 queries, two a word, and another offset */
	*d = (struct demo){.bytes = bytes, .n = n, .array_bytes = (n + 2) * sizeof(uint64_t)};
	tool_claim_memory((2 * ARRAYS + 16) * d->array_bytes);
	for (int k = 0; k < ARRAYS; k++)
		d->host[k] = tool_alloc(d->array_bytes);
	d->words = tool_alloc(d->array_bytes);
	d->first = tool_alloc(d->array_bytes);
	d->queries = d->host[QUERIES];
	read_bytes(d);
	read_words(d);
	make_queries(d);
}

void demo_close(struct demo *d)
{
	for (int k = 0; k < ARRAYS; k++)
		free(d->host[k]);
	free(d->words);
	free(d->first);
}
