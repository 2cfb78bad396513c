/* SPDX-License-Identifier: MIT */
/* The serial reference: plain loops, and a sorted array of words. */
#include <stdlib.h>
#include <string.h>

#include "demo.h"

void reference_bytes(struct reference_bytes *r, const uint8_t *p, size_t n, int more)
{
	memset(r, 0, sizeof(*r));
	r->smallest = 255;
	for (size_t i = 0; i < n; i++) {
		unsigned byte = p[i];

		r->sum += byte;
		if (i + 1 < n || more)
			r->dot += (uint64_t)byte * p[i + 1];
		if (byte < r->smallest)
			r->smallest = byte;
		if (byte > r->largest)
			r->largest = byte;
		r->count[byte]++;
		r->even[byte / 16]++;
		if (byte >= 'a' && byte <= 'z')
			r->letters[(byte - 'a') / 4]++;
	}
}

static int is_space(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

size_t reference_next_word(const uint8_t *data, size_t size, size_t *start)
{
	size_t i = *start, end;

	while (i < size && is_space(data[i]))
		i++;
	for (end = i; end < size && !is_space(data[end]);)
		end++;
	*start = i;
	return end - i;
}

int reference_order(const void *a, const void *b)
{
	const struct reference_word *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	return memcmp(x->text, y->text, x->length);
}

/* The number of words whose hashes are below `hash`. */
static size_t rank(const struct reference_word *words, size_t n, uint64_t hash)
{
	size_t first = 0;

	while (n > 0) {
		if (words[first + n / 2].hash < hash) {
			first += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return first;
}

uint64_t reference_count(const struct reference_word *words, size_t n, uint64_t hash)
{
	size_t first = rank(words, n, hash), k = first;

	while (k < n && words[k].hash == hash)
		k++;
	return k - first;
}
