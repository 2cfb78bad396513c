/* SPDX-License-Identifier: MIT */
/* Distinct keys: the sequence of steps that numbers the groups of an array of keys. */
#include "config.h"

#include "backend/filter_backend.h"
#include "backend/group_by_backend.h"

/* With more slots, numbers have 64 bits. A build may define less, to test these with few rows. */
#ifndef CUA__DISTINCT_NARROW
#define CUA__DISTINCT_NARROW UINT32_MAX
#endif

int cua__distinct_has_type(enum cua_type key_type)
{
	return cua__is_word(key_type) || key_type == CUA_U128;
}

static void set_slots(struct cua__distinct *d, uint64_t slots)
{
	d->slots = slots;
	d->wide = slots > CUA__DISTINCT_NARROW;
}

enum cua_status cua__distinct_plan(struct cua__distinct *d, enum cua_type key_type, uint64_t n,
				   uint64_t capacity, enum cua_key_order order)
{
	size_t bytes;

	if (!cua__distinct_has_type(key_type))
		return CUA_ERROR_TYPE;
	/* more than the scratch memory of a row, of its group and of an aggregate */
	if (n >> 47 || cua__bytes((size_t)n, 128, &bytes))
		return CUA_ERROR_SIZE;
	memset(d, 0, sizeof(*d));
	d->key_type = key_type;
	d->key_size = (uint32_t)cua_type_size(key_type);
	d->n = n;
	d->room = capacity < n ? capacity : n;
	d->sorted = order == CUA_KEY_ORDER_SORTED;
	d->any = order == CUA_KEY_ORDER_ANY;
	/* at most 2 of 3 slots are used, so that probe sequences stay short */
	set_slots(d, n + n / 2 + 16);
	return CUA_OK;
}

void cua__distinct_plan_lookups(struct cua__distinct *d)
{
	set_slots(d, 2 * d->n + 16);
}

/* The filter that compacts the first rows. */
static struct cua__filter compaction(const struct cua__distinct *d)
{
	struct cua__filter f;

	memset(&f, 0, sizeof(f));
	f.key = CUA__FILTER_FLAG;
	f.size = 4;
	f.n = d->n;
	f.flags = d->flags;
	f.ordered = d->room != 0;
	f.capacity = d->room;
	f.indexes = d->room ? d->occurred : NULL;
	f.index_size = d->room ? (uint32_t)cua__number_size(d) : 0;
	f.count = d->count;
	return f;
}

void cua__distinct_place(struct cua__distinct *d, struct cua__arena *a)
{
	d->count = cua__arena_next(a, sizeof(*d->count));
	d->number = cua__arena_next(a, (size_t)d->n * cua__number_size(d));
	d->first = cua__arena_next(a, (size_t)d->room * cua__number_size(d));
}

void cua__distinct_place_scratch(struct cua_context *ctx, struct cua__distinct *d,
				 struct cua__arena *a)
{
	const size_t groups = (size_t)d->room * cua__number_size(d);
	struct cua__filter f;

	d->table = cua__arena_next(a, (size_t)d->slots * cua__number_size(d));
	d->flags = cua__arena_next(a, (size_t)d->n);
	d->occurred = d->first;
	if (d->sorted && d->room) {
		d->parts = CUA__OPS(ctx, group_by)->parts(ctx, d->room);
		d->occurred = cua__arena_next(a, groups);
		for (int i = 0; i < 2; i++) {
			d->order[i] = cua__arena_next(a, groups);
			d->ordered[i] = cua__arena_next(a, (size_t)d->room * d->key_size);
		}
		d->digits = cua__arena_next(a, (size_t)d->parts * CUA__GROUP_DIGITS *
						       sizeof(*d->digits));
		d->digit_totals = cua__arena_next(a, CUA__GROUP_DIGITS * sizeof(*d->digit_totals));
	}
	f = compaction(d);
	/* the size depends on whether there are indexes, not on their address */
	f.indexes = d->room ? &f : NULL;
	d->filter_scratch = cua__arena_next(a, CUA__OPS(ctx, filter)->scratch(ctx, &f));
}

static void swap(void *array[2])
{
	void *first = array[0];

	array[0] = array[1];
	array[1] = first;
}

enum cua_status cua__distinct_sort(struct cua_context *ctx, struct cua__group_job *j,
				   uint32_t digits)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	struct cua__distinct *d = &j->d;
	enum cua_status status = CUA_OK;

	for (d->digit = 0; d->digit < digits && !status; d->digit++) {
		status = ops->run(ctx, CUA__GROUP_SORT_COUNT, j, d->parts);
		if (!status)
			status = ops->run(ctx, CUA__GROUP_SORT_SUM, j, CUA__GROUP_DIGITS);
		if (!status)
			status = ops->run(ctx, CUA__GROUP_SORT_MOVE, j, d->parts);
		swap(d->order);
		swap(d->ordered);
	}
	return status;
}

enum cua_status cua__distinct_claim(struct cua_context *ctx, struct cua__group_job *j)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	struct cua__distinct *d = &j->d;
	enum cua_status status;

	d->seed = cua__random_seed().lo;
	status = ops->run(ctx, CUA__GROUP_CLEAR, j, d->slots);
	if (!status && d->n)
		status = ops->run(ctx, CUA__GROUP_CLAIM, j, d->n);
	return status;
}

enum cua_status cua__distinct_run(struct cua_context *ctx, const struct cua__distinct *d)
{
	const struct cua__group_by_ops *ops = CUA__OPS(ctx, group_by);
	const struct cua__filter f = compaction(d);
	struct cua__group_job j;
	enum cua_status status;

	memset(&j, 0, sizeof(j));
	j.d = *d;
	status = cua__distinct_claim(ctx, &j);
	if (!status)
		status = ops->run(ctx, CUA__GROUP_FLAG, &j, d->n);
	if (!status)
		status = CUA__OPS(ctx, filter)->filter(ctx, &f, d->filter_scratch);
	if (!d->room)
		return status;
	if (!status && d->sorted)
		status = ops->run(ctx, CUA__GROUP_ORDER, &j, d->room);
	if (!status && d->sorted)
		status = cua__distinct_sort(ctx, &j, d->key_size);
	if (!status)
		status = ops->run(ctx, CUA__GROUP_ASSIGN, &j, d->room);
	if (!status)
		status = ops->run(ctx, CUA__GROUP_NUMBER, &j, d->n);
	return status;
}
