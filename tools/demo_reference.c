/* SPDX-License-Identifier: MIT */
/*
 * The serial reference: plain loops, and a hash table with linear probing that compares the words
 * themselves, not only their hashes.
 */
#include <stdlib.h>
#include <string.h>

#include "demo.h"

void reference_bytes(struct reference_bytes *r, const uint8_t *p, size_t n)
{
	memset(r, 0, sizeof(*r));
	r->smallest = 255;
	for (size_t i = 0; i < n; i++) {
		unsigned byte = p[i];

		r->sum += byte;
		if (byte < r->smallest)
			r->smallest = byte;
		if (byte > r->largest)
			r->largest = byte;
		r->count[byte]++;
		if (byte >= 'a' && byte <= 'z')
			r->letters[(byte - 'a') / 4]++;
	}
}

uint64_t reference_dot(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (uint64_t)p[i] * p[i + 1];
	return sum;
}

/* ---- words ---- */

static int is_space(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

int reference_next_word(const uint8_t *data, size_t size, size_t *at, size_t *start, size_t *length)
{
	size_t i = *at, from;

	while (i < size && is_space(data[i]))
		i++;
	if (i == size)
		return 0;
	from = i;
	while (i < size && !is_space(data[i]))
		i++;
	*start = from;
	*length = i - from;
	*at = i;
	return 1;
}

/* Linear probing: a word's slot is the first free slot at or after its home. */
static uint64_t next_slot(const struct reference_words *r, uint64_t i)
{
	return (i + 1) & (r->room - 1);
}

static void grow(struct reference_words *r)
{
	struct reference_slot *old = r->slots;
	const uint64_t old_room = r->room;

	r->room = old_room ? 2 * old_room : 1024;
	if (r->room > 1 << 20)
		tool_claim_memory(r->room * sizeof(*r->slots));
	r->slots = calloc(r->room, sizeof(*r->slots));
	if (!r->slots)
		tool_die("out of memory (the table of %llu distinct words)",
			 (unsigned long long)r->distinct);
	for (uint64_t k = 0; k < old_room; k++) {
		uint64_t i = old[k].hash & (r->room - 1);

		if (!old[k].count)
			continue;
		while (r->slots[i].count)
			i = next_slot(r, i);
		r->slots[i] = old[k];
	}
	free(old);
}

void reference_words_init(struct reference_words *r, const uint8_t *data)
{
	memset(r, 0, sizeof(*r));
	r->data = data;
	grow(r);
}

void reference_words_add(struct reference_words *r, size_t start, size_t length, uint64_t hash)
{
	uint64_t i;
	int collides = 0;

	r->words++;
	for (i = hash & (r->room - 1); r->slots[i].count; i = next_slot(r, i)) {
		struct reference_slot *s = &r->slots[i];

		if (s->hash != hash)
			continue;
		if (s->length == length && !memcmp(r->data + s->start, r->data + start, length)) {
			s->count++;
			return;
		}
		collides = 1;
	}
	r->slots[i].start = start;
	r->slots[i].length = length;
	r->slots[i].hash = hash;
	r->slots[i].count = 1;
	r->distinct++;
	r->hashes += !collides;
	if (r->distinct > r->room / 4 * 3)
		grow(r);
}

uint64_t reference_words_count(const struct reference_words *r, uint64_t hash)
{
	uint64_t count = 0;

	for (uint64_t i = hash & (r->room - 1); r->slots[i].count; i = next_slot(r, i))
		if (r->slots[i].hash == hash)
			count += r->slots[i].count;
	return count;
}

void reference_words_free(struct reference_words *r)
{
	free(r->slots);
	memset(r, 0, sizeof(*r));
}
