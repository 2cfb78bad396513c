/* SPDX-License-Identifier: MIT */
/*
 * The filter on a GPU, in one pass over the elements, as a function that every thread of a grid calls:
 * cuda/filter.cu makes kernels of it.
 *
 * Source: stream compaction by a scan of the block. Without order, one fetch-and-add a tile gives the kept ones
 * their place; in order, the look-back of Merrill and Garland does.
 *
 * A block takes tiles by a ticket. The loads of its next tile are on their way while it stores the one before:
 *
 *     load tile k + 1 | learn the place of tile k | barrier | store tile k | compare tile k + 1, rank it |
 *     barrier | stage tile k + 1, ask for its place | ...
 *
 * so that neither the memory's latency nor that of the fetch-and-add or of the look-back is waited for alone.
 * Tiles begin at addresses of 16 bytes, wherever the array does. What is kept goes through shared memory, from
 * which a warp stores whole lines.
 *
 * Scope: blocks of one device. A block has a multiple of 32 threads, at most 1024.
 * Memory order: a word of a tile says everything by itself, so the accesses to it are relaxed. In place they also
 *   say that the tile was read: the store releases, which the barrier before it makes cover the loads of the whole
 *   block, and whoever reads the word acquires, before the barrier that its block stores behind. What a tile
 *   stores lies over its own elements and those of lower tiles, and the places are known from the words
 *   of all of these: of some directly, of the others through the one that knew its prefix, in turn.
 * Progress: a tile waits for the words of lower tiles only. Those are taken by blocks that run. A block has
 *   at most two tiles, and has told its word of the lower one before it waits for any, and waits before it tells that of
 *   the higher one; so of all tiles that have told nothing the lowest is in a block that waits for none of them.
 */
#ifndef CUATOMIC_LIB_FILTER_KERNEL_H
#define CUATOMIC_LIB_FILTER_KERNEL_H

#include "filter.h"

#define CUA__FILTER_ALL 0xffffffffu
/* The number of an element in its tile. */
#ifndef CUA__FILTER_LOCAL
#define CUA__FILTER_LOCAL uint16_t
#endif

/* What a kernel is made for: constants, all of them. */
struct cua__filter_kind {
	enum cua__filter_key key;
	uint32_t size;  /* of an element */
	uint32_t loads; /* of a thread and tile; 4 or 8 */
	uint32_t warps; /* of a block */
	int lean;       /* values alone, without partition */
	int ordered;    /* lean: in order; else the call says it */
};

/* 16 bytes of elements, or less. */
struct cua__filter_pack {
	uint32_t word[4];
} __attribute__((aligned(16), may_alias));

struct cua__filter_shared {
	uint64_t first; /* place of the tile's first kept element, and of the first other one */
	uint64_t rest;
	uint64_t next;
	uint32_t kept[32]; /* of each warp */
};

/* Elements of a load. */
CUA_FORCE uint32_t cua__filter_per(const struct cua__filter_kind k)
{
	return k.size <= 4 ? 4 : 16 / k.size;
}

CUA_FORCE uint32_t cua__filter_tile(const struct cua__filter_kind k)
{
	return k.warps * 32 * k.loads * cua__filter_per(k);
}

/* Elements before the first one in its 16 bytes (less for small ones), which count as a part of the first tile. */
CUA_FORCE uint32_t cua__filter_shift(const struct cua__filter_kind k, const void *x)
{
	return (uint32_t)((uintptr_t)x % (cua__filter_per(k) * k.size) / k.size);
}

CUA_FORCE uint64_t cua__filter_tiles(const struct cua__filter_kind k, const struct cua__filter *f)
{
	uint64_t n = f->n + cua__filter_shift(k, f->x), tile = cua__filter_tile(k);

	return n / tile + (n % tile != 0);
}

/* ---- elements ---- */

/* Bits of element c of a pack, of at most 4 bytes. */
CUA_FORCE uint32_t cua__filter_bits32(uint32_t size, const struct cua__filter_pack *v, uint32_t c)
{
	if (size == 4)
		return v->word[c];
	if (size == 2)
		return v->word[c / 2] >> c % 2 * 16 & 0xffff;
	return v->word[0] >> c * 8 & 0xff;
}

CUA_FORCE uint64_t cua__filter_bits64(const struct cua__filter_pack *v, uint32_t c)
{
	return v->word[c * 2 % 4] | (uint64_t)v->word[(c * 2 + 1) % 4] << 32;
}

CUA_FORCE void cua__filter_load(const struct cua__filter_kind k, struct cua__filter_pack *v, const char *p)
{
	if (k.size == 1) {
		v->word[0] = CUA_READ(*(const cua__raw32 *)(const void *)p);
	} else if (k.size == 2) {
		uint64_t bits = CUA_READ(*(const cua__raw64 *)(const void *)p);

		v->word[0] = (uint32_t)bits;
		v->word[1] = (uint32_t)(bits >> 32);
	} else {
		*v = CUA_READ(*(const struct cua__filter_pack *)(const void *)p);
	}
}

/* One element, into place c of a pack of zeros. */
CUA_FORCE void cua__filter_load_one(const struct cua__filter_kind k, struct cua__filter_pack *v, uint32_t c,
				    const char *p)
{
	if (k.size == 16)
		*v = CUA_READ(*(const struct cua__filter_pack *)(const void *)p);
	else if (k.size == 8) {
		uint64_t bits = CUA_READ(*(const cua__raw64 *)(const void *)p);

		v->word[c * 2 % 4] = (uint32_t)bits;
		v->word[(c * 2 + 1) % 4] = (uint32_t)(bits >> 32);
	} else if (k.size == 4)
		v->word[c] = CUA_READ(*(const cua__raw32 *)(const void *)p);
	else if (k.size == 2)
		v->word[c / 2] |= (uint32_t)CUA_READ(*(const cua__raw16 *)(const void *)p) << c % 2 * 16;
	else
		v->word[0] |= (uint32_t)CUA_READ(*(const uint8_t *)p) << c * 8;
}

/* Stores element c of a pack at place i. */
CUA_FORCE void cua__filter_stage(const struct cua__filter_kind k, void *to, uint32_t i,
				 const struct cua__filter_pack *v, uint32_t c)
{
	if (k.size == 16)
		CUA_WRITE(((struct cua__filter_pack *)to)[i], *v);
	else if (k.size == 8)
		CUA_WRITE(((cua__raw64 *)to)[i], cua__filter_bits64(v, c));
	else if (k.size == 4)
		CUA_WRITE(((cua__raw32 *)to)[i], cua__filter_bits32(4, v, c));
	else if (k.size == 2)
		CUA_WRITE(((cua__raw16 *)to)[i], (uint16_t)cua__filter_bits32(2, v, c));
	else
		CUA_WRITE(((uint8_t *)to)[i], (uint8_t)cua__filter_bits32(1, v, c));
}

/* Which elements of a pack are kept, a bit each; flags has a byte each. */
CUA_FORCE uint32_t cua__filter_keeps(const struct cua__filter_kind k, const struct cua__filter *f,
				     const struct cua__filter_pack *v, uint32_t flags)
{
	uint32_t bits = 0, c;

	CUA__UNROLL
	for (c = 0; c < cua__filter_per(k); c++) {
		int keep;

		if (k.key == CUA__FILTER_FLAG)
			keep = (flags >> c * 8 & 0xff) != 0;
		else if (k.size == 8)
			keep = cua__filter_key64(k.key, cua__filter_bits64(v, c)) - f->low <= f->range;
		else
			keep = cua__filter_in32(
				k.size, cua__filter_key32(k.key, k.size, cua__filter_bits32(k.size, v, c)),
				(uint32_t)f->low, (uint32_t)f->range);
		bits |= (uint32_t)keep << c;
	}
	return bits;
}

/* A thread's elements of a tile. Those of load j, lane l are at (j * 32 + l) * per in its warp's part. */
struct cua__filter_items {
	struct cua__filter_pack v[8];
	uint32_t flags[8];
	uint32_t valid; /* a bit each, as of what is kept */
};

CUA_FORCE void cua__filter_read(const struct cua__filter_kind k, const struct cua__filter *f,
				uint64_t tile, uint32_t shift, struct cua__filter_items *t)
{
	const uint32_t per = cua__filter_per(k), thread = cua_port_thread();
	/* the first element of this thread, counted from the beginning of tile 0 */
	const uint64_t at = tile * cua__filter_tile(k) +
			    (thread / 32 * (32 * k.loads) + thread % 32) * per;
	const uint64_t end = tile * cua__filter_tile(k) + cua__filter_tile(k);
	const char *x = (const char *)f->x + (at - shift) * k.size;
	const uint8_t *flags = f->flags + (at - shift);
	const int has_values = k.lean || k.key != CUA__FILTER_FLAG || f->values;
	uint32_t j, c;

	if ((tile || !shift) && end <= f->n + shift) {
		t->valid = CUA__FILTER_ALL >> (32 - k.loads * per);
		if (has_values) {
			CUA__UNROLL
			for (j = 0; j < k.loads; j++)
				cua__filter_load(k, &t->v[j], x + j * (32 * per * k.size));
		}
		if (k.key != CUA__FILTER_FLAG)
			return;
		if (per == 4 && (uintptr_t)flags % 4 == 0) {
			CUA__UNROLL
			for (j = 0; j < k.loads; j++)
				t->flags[j] =
					CUA_READ(*(const cua__raw32 *)(const void *)(flags + j * (32 * per)));
			return;
		}
		CUA__UNROLL
		for (j = 0; j < k.loads; j++) {
			t->flags[j] = 0;
			CUA__UNROLL
			for (c = 0; c < per; c++)
				t->flags[j] |= (uint32_t)CUA_READ(flags[j * (32 * per) + c]) << c * 8;
		}
		return;
	}
	t->valid = 0;
	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		t->v[j].word[0] = t->v[j].word[1] = t->v[j].word[2] = t->v[j].word[3] = 0;
		t->flags[j] = 0;
		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint32_t step = j * (32 * per) + c;

			if (at + step < shift || at + step >= f->n + shift)
				continue;
			t->valid |= (uint32_t)1 << (j * per + c);
			if (has_values)
				cua__filter_load_one(k, &t->v[j], c, x + step * k.size);
			if (k.key == CUA__FILTER_FLAG)
				t->flags[j] |= (uint32_t)CUA_READ(flags[step]) << c * 8;
		}
	}
}

/* ---- places ---- */

/* A tile's word: 0, or what it keeps, or what it and all before it keep. */
#define CUA__FILTER_OWN ((uint64_t)1 << 62)
#define CUA__FILTER_PREFIX ((uint64_t)2 << 62)
#define CUA__FILTER_NUMBER (((uint64_t)1 << 62) - 1)
/* Words that a lane looks at in one step. */
#ifndef CUA__FILTER_LOOKS
#define CUA__FILTER_LOOKS 4u
#endif

CUA_FORCE uint64_t cua__filter_look(const struct cua__filter *f, uint64_t tile)
{
	if (f->in_place)
		return cua_port_load_b64(&f->tiles[tile], CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	return cua_port_load_b64(&f->tiles[tile], CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

CUA_FORCE void cua__filter_tell(const struct cua__filter *f, uint64_t tile, uint64_t word)
{
	if (f->in_place)
		cua_port_store_b64(&f->tiles[tile], word, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		cua_port_store_b64(&f->tiles[tile], word, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Where the places begin. Past the capacity it does not matter. */
CUA_FORCE uint64_t cua__filter_base(const struct cua__filter *f)
{
	uint64_t demand;

	if (!f->demand)
		return 0;
	demand = cua_port_load_b64(f->demand, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	return demand < f->capacity ? demand : f->capacity;
}

/* The place of a tile's first kept element, in order. By a whole warp; every lane gets it. */
CUA_FORCE uint64_t cua__filter_before(const struct cua__filter *f, uint64_t tile, uint64_t own)
{
	const uint32_t lane = cua_port_lane();
	uint64_t before = 0, below = tile;
	uint32_t known = 0, look, step;

	if (tile == 0)
		before = cua__filter_base(f);
	while (below && !known) {
		uint64_t word[CUA__FILTER_LOOKS];

		/* lane 0 has the nearest of each 32; there are none before tile 0 */
		CUA__UNROLL
		for (look = 0; look < CUA__FILTER_LOOKS; look++) {
			word[look] = CUA__FILTER_PREFIX;
			if (look * 32 + lane < below)
				word[look] = cua__filter_look(f, below - 1 - look * 32 - lane);
		}
		CUA__UNROLL
		for (look = 0; look < CUA__FILTER_LOOKS; look++) {
			uint64_t number;

			if (known)
				break;
			while (cua_port_ballot(CUA__FILTER_ALL, word[look] >> 62 == 0)) {
				cua_port_pause(20);
				if (word[look] >> 62 == 0)
					word[look] = cua__filter_look(f, below - 1 - look * 32 - lane);
			}
			known = cua_port_ballot(CUA__FILTER_ALL, word[look] >> 62 == 2);
			number = known == 0 || lane < cua_port_ffs_u32(known) ? word[look] & CUA__FILTER_NUMBER
									       : 0;
			for (step = 16; step; step /= 2)
				number += cua_port_shuffle_u64(CUA__FILTER_ALL, number, lane ^ step);
			before += number;
		}
		below -= below < CUA__FILTER_LOOKS * 32 ? below : CUA__FILTER_LOOKS * 32;
	}
	/* tile 0 has told it already */
	if (lane == 0 && tile)
		cua__filter_tell(f, tile, CUA__FILTER_PREFIX | (before + own));
	return before;
}

/* ---- the kernel ---- */

/*
 * Stores n elements of the stage at `to`. The threads start where a line of 128 bytes does, so that a warp stores whole
 * lines; and have four elements at a time, so that they wait for shared memory once.
 */
#define CUA__DEFINE_FILTER_STORE(name, T)                                                          \
	CUA_FORCE void cua__filter_store_##name(uint32_t threads, T *to, const T *stage, uint32_t n) \
	{                                                                                          \
		uint32_t i = cua_port_thread() - (uint32_t)((uintptr_t)to % 128 / sizeof(T)), j;   \
                                                                                                   \
		/* before the first element */                                                     \
		while ((int32_t)i < 0)                                                             \
			i += threads;                                                              \
		for (; i + 3 * threads < n; i += 4 * threads) {                                    \
			T v[4];                                                                    \
                                                                                                   \
			CUA__UNROLL                                                                \
			for (j = 0; j < 4; j++)                                                    \
				v[j] = CUA_READ(stage[i + j * threads]);                           \
			CUA__UNROLL                                                                \
			for (j = 0; j < 4; j++)                                                    \
				CUA_WRITE(to[i + j * threads], v[j]);                              \
		}                                                                                  \
		for (; i < n; i += threads)                                                        \
			CUA_WRITE(to[i], CUA_READ(stage[i]));                                      \
	}
CUA__DEFINE_FILTER_STORE(8, uint8_t)
CUA__DEFINE_FILTER_STORE(16, cua__raw16)
CUA__DEFINE_FILTER_STORE(32, cua__raw32)
CUA__DEFINE_FILTER_STORE(64, cua__raw64)
CUA__DEFINE_FILTER_STORE(128, struct cua__filter_pack)

/* Stores n elements of the stage, from place `from` of it on, at place `first`. */
CUA_FORCE void cua__filter_store(const struct cua__filter_kind k, const struct cua__filter *f, uint64_t first,
				 uint32_t n, const void *stage, uint32_t from)
{
	const uint32_t threads = k.warps * 32;

	if (first >= f->capacity)
		return;
	if (f->capacity - first < n)
		n = (uint32_t)(f->capacity - first);
	if (k.size == 16)
		cua__filter_store_128(threads, (struct cua__filter_pack *)f->values + first,
				      (const struct cua__filter_pack *)stage + from, n);
	else if (k.size == 8)
		cua__filter_store_64(threads, (cua__raw64 *)f->values + first,
				     (const cua__raw64 *)stage + from, n);
	else if (k.size == 4)
		cua__filter_store_32(threads, (cua__raw32 *)f->values + first,
				     (const cua__raw32 *)stage + from, n);
	else if (k.size == 2)
		cua__filter_store_16(threads, (cua__raw16 *)f->values + first,
				     (const cua__raw16 *)stage + from, n);
	else
		cua__filter_store_8(threads, (uint8_t *)f->values + first, (const uint8_t *)stage + from, n);
}

/* Indexes instead: those of the elements that `locals` has the numbers of, from `begin` on. */
CUA_FORCE void cua__filter_store_indexes(const struct cua__filter_kind k, const struct cua__filter *f,
					 uint64_t first, uint32_t total, uint64_t begin,
					 const CUA__FILTER_LOCAL *locals, uint32_t from)
{
	uint32_t i;

	for (i = cua_port_thread(); i < total && first + i < f->capacity; i += k.warps * 32) {
		uint64_t index = begin + CUA_READ(locals[from + i]);

		if (f->index_size == 4)
			CUA_WRITE(((cua__raw32 *)f->indexes)[first + i], (uint32_t)index);
		else
			CUA_WRITE(((cua__raw64 *)f->indexes)[first + i], index);
	}
}

/* The last block to come finds all tiles done, tells the count, and leaves zeros. Every thread of a block calls. */
CUA_FORCE void cua__filter_finish(const struct cua__filter_kind k, const struct cua__filter *f, int ordered,
				  uint64_t tiles, struct cua__filter_shared *sh)
{
	const uint32_t thread = cua_port_thread();
	struct cua__filter_state *s = f->state;
	uint64_t i;

	/* the words that this block has looked at, and what it has taken from the sums */
	cua_port_sync_block();
	if (thread == 0)
		CUA_WRITE(sh->next, cua_port_fetch_add_u64(&s->arrived, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
							   CUA_SPACE_GLOBAL));
	cua_port_sync_block();
	if (CUA_READ(sh->next) != cua_port_grid_size() - 1)
		return;
	if (thread == 0) {
		if (!ordered && !f->demand)
			CUA_WRITE(*f->count, cua_port_load_b64(&s->kept, CUA_RELAXED, CUA_SCOPE_DEVICE,
							       CUA_SPACE_GLOBAL));
		cua_port_store_b64(&s->kept, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		cua_port_store_b64(&s->rest, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		cua_port_store_b64(&s->ticket, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		cua_port_store_b64(&s->arrived, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
	if (ordered && f->tiles_stay)
		for (i = thread; i < tiles; i += k.warps * 32)
			cua_port_store_b64(&f->tiles[i], 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
					   CUA_SPACE_GLOBAL);
}

/*
 * The number of a block's next tile. Where each block has one, no block takes a second. `one` is 1, and not known to the
 * compiler: with a constant it would make the operation one of the warp, and wait for it there.
 */
CUA_FORCE uint64_t cua__filter_ticket(struct cua__filter_state *s, uint64_t tiles, uint64_t one)
{
	if (tiles <= cua_port_grid_size())
		return tiles;
	return cua_port_fetch_add_u64(&s->ticket, one, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/*
 * stage has room for the elements of a tile; locals, which only kernels that are not lean use, for so many
 * numbers.
 */
CUA_FORCE void cua__filter_block(const struct cua__filter_kind k, const struct cua__filter *f,
				 struct cua__filter_shared *sh, void *stage, CUA__FILTER_LOCAL *locals)
{
	const uint32_t per = cua__filter_per(k), thread = cua_port_thread();
	const uint32_t lane = thread % 32, warp = thread / 32;
	const uint32_t shift = cua__filter_shift(k, f->x), of_pack = CUA__FILTER_ALL >> (32 - per);
	const uint64_t tiles = cua__filter_tiles(k, f);
	const int ordered = k.lean ? k.ordered : f->ordered;
	const int has_values = k.lean || f->values, has_indexes = !k.lean && f->indexes;
	const int partition = !k.lean && f->partition;
	struct cua__filter_state *state = f->state;
	/* of the tile that is staged */
	uint64_t staged = 0, place = 0, rest = 0;
	uint32_t total = 0, elements = 0;
	uint64_t tile, ticket = 0, one = 1;
	int is_staged = 0;

	if (thread == 0)
		CUA_WRITE(sh->next, cua_port_fetch_add_u64(&state->ticket, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
							   CUA_SPACE_GLOBAL));
	cua_port_sync_block();
	tile = CUA_READ(sh->next);
	cua_port_sync_block();
	if (thread == 0)
		ticket = cua__filter_ticket(state, tiles, one);
	for (;;) {
		struct cua__filter_items t;
		const int more = tile < tiles;
		uint32_t kept = 0, rank[8], mine[2] = {0, 0}, upto[2] = {0, 0}, whole[2];
		uint32_t own = 0, before = 0, j, c, w;
		/* of the tile: its elements are numbers first_local to first_local + elements - 1 */
		uint32_t first_local;

		t.valid = 0;
		if (more)
			cua__filter_read(k, f, tile, shift, &t);

		/* the place of what is staged */
		if (warp == 0 && is_staged && ordered) {
			place = cua__filter_before(f, staged, total);
			if (lane == 0 && staged == tiles - 1) {
				if (f->demand)
					cua_port_add_u64(f->demand, place + total - cua__filter_base(f),
							 CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
				else
					CUA_WRITE(*f->count, place + total);
			}
		}
		if (thread == 0) {
			CUA_WRITE(sh->first, place);
			if (partition)
				CUA_WRITE(sh->rest, rest);
			CUA_WRITE(sh->next, ticket);
		}
		cua_port_sync_block();

		if (is_staged) {
			const uint64_t first = CUA_READ(sh->first);
			const uint64_t begin = staged * cua__filter_tile(k) - shift;

			if (has_values)
				cua__filter_store(k, f, first, total, stage, 0);
			if (has_indexes)
				cua__filter_store_indexes(k, f, first, total, begin, locals, 0);
			if (partition) {
				/* in order they follow all that is kept, else they come from the end */
				uint64_t others = CUA_READ(sh->rest);

				if (ordered)
					others = *f->all_kept + (staged ? begin : 0) - first;
				else
					others = f->n - others - (elements - total);
				if (has_values)
					cua__filter_store(k, f, others, elements - total, stage, total);
				if (has_indexes)
					cua__filter_store_indexes(k, f, others, elements - total, begin,
								  locals, total);
			}
		}
		if (!more)
			break;
		staged = tile;
		is_staged = 1;
		tile = CUA_READ(sh->next);
		if (thread == 0)
			ticket = cua__filter_ticket(state, tiles, one);

		/* how many are kept of each load, 8 bits each: a warp has at most 128 */
		CUA__UNROLL
		for (j = 0; j < k.loads; j++)
			kept |= cua__filter_keeps(k, f, &t.v[j], t.flags[j]) << j * per;
		kept = (f->inverted ? ~kept : kept) & t.valid;
		CUA__UNROLL
		for (j = 0; j < k.loads; j++)
			mine[j / 4] |= cua_port_popc_u32(kept >> j * per & of_pack) << j % 4 * 8;
		CUA__UNROLL
		for (w = 0; w < k.loads / 4; w++) {
			uint32_t step;

			upto[w] = mine[w];
			CUA__UNROLL
			for (step = 1; step < 32; step *= 2) {
				uint32_t below = cua_port_shuffle_u32(CUA__FILTER_ALL, upto[w], lane - step);

				upto[w] += lane >= step ? below : 0;
			}
			whole[w] = cua_port_shuffle_u32(CUA__FILTER_ALL, upto[w], 31);
			upto[w] -= mine[w];
		}
		/* the 8 bits at the top are at most 124 */
		one = 1 + (upto[0] >> 31);
		CUA__UNROLL
		for (j = 0; j < k.loads; j++) {
			rank[j] = own + (upto[j / 4] >> j % 4 * 8 & 0xff);
			own += whole[j / 4] >> j % 4 * 8 & 0xff;
		}
		if (lane == 0)
			CUA_WRITE(sh->kept[warp], own);
		cua_port_sync_block();

		/* nobody reads the stage any more */
		total = 0;
		CUA__UNROLL
		for (w = 0; w < k.warps; w++) {
			const uint32_t of_warp = CUA_READ(sh->kept[w]);

			before += w < warp ? of_warp : 0;
			total += of_warp;
		}
		first_local = staged ? 0 : shift;
		elements = cua__filter_tile(k) - first_local;
		if (staged == tiles - 1)
			elements = (uint32_t)(f->n + shift - staged * cua__filter_tile(k)) - first_local;
		if (thread == 0 && ordered) {
			cua__filter_tell(f, staged, staged ? CUA__FILTER_OWN | total
							   : CUA__FILTER_PREFIX |
								     (cua__filter_base(f) + total));
		} else if (thread == 0) {
			place = rest = 0;
			if (total)
				place = cua_port_fetch_add_u64(f->demand ? f->demand : &state->kept, total,
							       CUA_RELAXED, CUA_SCOPE_DEVICE,
							       CUA_SPACE_GLOBAL);
			if (partition)
				rest = cua_port_fetch_add_u64(&state->rest, elements - total, CUA_RELAXED,
							      CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		}
		CUA__UNROLL
		for (j = 0; j < k.loads; j++) {
			uint32_t to = before + rank[j];

			CUA__UNROLL
			for (c = 0; c < per; c++) {
				const uint32_t bit = (uint32_t)1 << (j * per + c);
				const uint32_t local = ((warp * k.loads + j) * 32 + lane) * per + c;
				uint32_t other;

				if (kept & bit) {
					if (has_values)
						cua__filter_stage(k, stage, to, &t.v[j], c);
					if (has_indexes)
						CUA_WRITE(locals[to], (CUA__FILTER_LOCAL)local);
					to++;
				} else if (partition && t.valid & bit) {
					other = total + (local - first_local) - to;
					if (has_values)
						cua__filter_stage(k, stage, other, &t.v[j], c);
					if (has_indexes)
						CUA_WRITE(locals[other], (CUA__FILTER_LOCAL)local);
				}
			}
		}
	}
	cua__filter_finish(k, f, ordered, tiles, sh);
}

#endif /* CUATOMIC_LIB_FILTER_KERNEL_H */
