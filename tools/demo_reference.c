/* SPDX-License-Identifier: MIT */
/* The serial reference: plain loops, and a table of words that keeps the words themselves. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* Whether the word of this length at `start` is the one that stands at `other`. */
static int same_word(const struct reference_words *r, size_t start, size_t length, size_t other)
{
	const uint8_t *p = r->data + other;

	if (length > r->size - other || memcmp(p, r->data + start, length))
		return 0;
	return length == r->size - other || is_space(p[length]);
}

/* Slots are in the order of the hash, so that growing walks both tables from front to back. */
static uint64_t home(uint64_t hash, uint64_t room)
{
	return ((hash << 8 >> 32) * room) >> 32;
}

/* The table has room for one more word at least. */
static void put(struct reference_slot *slots, uint64_t room, const struct reference_slot *slot)
{
	uint64_t i = home(slot->hash, room);

	while (slots[i].start)
		i = i + 1 == room ? 0 : i + 1;
	slots[i] = *slot;
}

/* Zeros. Large tables take large pages where the system has them: they are read in random order. */
static struct reference_slot *new_slots(uint64_t room)
{
	const size_t large = (size_t)2 << 20, bytes = room * sizeof(struct reference_slot);
	void *p;

	if (bytes < large)
		return calloc(room, sizeof(struct reference_slot));
	if (posix_memalign(&p, large, bytes))
		return NULL;
#ifdef MADV_HUGEPAGE
	madvise(p, bytes, MADV_HUGEPAGE);
#endif
	return memset(p, 0, bytes);
}

static void set_room(struct reference_words *r, unsigned part, uint64_t room)
{
	struct reference_slot *old = r->part[part].slots, *slots;
	uint64_t old_room = r->part[part].room;
	const uint64_t step = (uint64_t)256 << 20;

	r->bytes += (room - old_room) * sizeof(*slots);
	if (r->bytes > r->claimed) {
		/* this part's copy is small: it is the sum of all parts that may be too much */
		tool_claim_memory(r->bytes - r->claimed + step);
		r->claimed = r->bytes + step;
	}
	slots = new_slots(room);
	if (!slots)
		tool_die("out of memory (the table of %llu distinct words)",
			 (unsigned long long)r->distinct);
	for (uint64_t i = 0; i < old_room; i++) {
		if (old[i].start)
			put(slots, room, &old[i]);
	}
	free(old);
	r->part[part].slots = slots;
	r->part[part].room = room;
}

void reference_words_reserve(struct reference_words *r, uint64_t each)
{
	uint64_t room = each + each / 4 + 16;

	for (unsigned part = 0; part < REFERENCE_PARTS; part++) {
		if (room > r->part[part].room)
			set_room(r, part, room);
	}
}

void reference_words_prefetch(const struct reference_words *r, uint64_t hash)
{
	uint64_t room = r->part[hash >> 56].room;

	if (room)
		__builtin_prefetch(&r->part[hash >> 56].slots[home(hash, room)], 1);
}

void reference_words_init(struct reference_words *r, const uint8_t *data, size_t size)
{
	memset(r, 0, sizeof(*r));
	r->data = data;
	r->size = size;
}

void reference_words_add(struct reference_words *r, size_t start, size_t length, uint64_t hash)
{
	unsigned part = hash >> 56;
	struct reference_slot *slots, *counted = NULL, slot;
	uint64_t room, i;
	int known = 0;

	r->words++;
	room = r->part[part].room;
	if (r->part[part].used + 1 > room - room / 6)
		set_room(r, part, room < 16 ? 16 : room + room / 4);
	slots = r->part[part].slots;
	room = r->part[part].room;
	for (i = home(hash, room); slots[i].start && !(known && counted);
	     i = i + 1 == room ? 0 : i + 1) {
		if (slots[i].hash != hash)
			continue;
		if (slots[i].count)
			counted = &slots[i];
		if (!known)
			known = same_word(r, start, length, slots[i].start - 1);
	}
	if (counted)
		counted->count++;
	if (known)
		return;
	slot.start = start + 1;
	slot.hash = hash;
	slot.count = counted ? 0 : 1;
	put(slots, room, &slot);
	r->part[part].used++;
	r->distinct++;
	r->hashes += !counted;
}

uint64_t reference_words_count(const struct reference_words *r, uint64_t hash)
{
	const struct reference_slot *slots = r->part[hash >> 56].slots;
	uint64_t room = r->part[hash >> 56].room;

	if (!room)
		return 0;
	for (uint64_t i = home(hash, room); slots[i].start; i = i + 1 == room ? 0 : i + 1) {
		if (slots[i].hash == hash && slots[i].count)
			return slots[i].count;
	}
	return 0;
}

void reference_words_free(struct reference_words *r)
{
	for (unsigned part = 0; part < REFERENCE_PARTS; part++)
		free(r->part[part].slots);
	memset(r->part, 0, sizeof(r->part));
}
