/* SPDX-License-Identifier: MIT */
/*
 * The filter on a GPU, in one pass over the elements, as functions that every thread of a grid
 * calls: cuda/filter.cu makes kernels of them. A tile is what a block reads at once.
 *
 * Source: stream compaction by a scan of the block. Where there is no order, one fetch-and-add a
 * tile gives the kept ones their place (cua__filter_any_order). In order, tiles tell what they
 * keep, and one block does nothing but add that up and tell the places (cua__filter_in_order). Of a
 * short array each block has one tile, and in order it adds up itself what the lower ones have told
 * (cua__filter_short).
 *
 * Runs of equal elements are found by the latter two (CUA__FILTER_CHANGE): kept is what differs from the element
 * before, which is the lane's own, the last one of the lane below, or, for the first one of a warp, read again.
 *
 * Tiles begin at addresses of 16 bytes, wherever the array does. What is kept goes through shared
 * memory, from which a warp stores whole lines. The loads of a block's next tile are on their way
 * while it stores the one before:
 *
 *     any order: load tile k + 1 | learn the place of tile k | barrier | store tile k |
 *     compare tile k + 1, rank it | barrier | stage tile k + 1, ask for its place | ...
 *
 *     in order: compare tile k, rank it | barrier | tell its count, stage it | load tile k + 1 |
 *     learn the place of tile k - 1 or k - 2 | barrier | store that tile | ...
 *
 * So in order a count is told as soon as it is known, whatever places are not, and a place has the
 * time of one or two whole tiles to come.
 *
 * Scope: blocks of one device. A block has a multiple of 32 threads, at most 1024.
 * Memory order: a word of a tile says everything by itself, so the accesses to it are relaxed. In
 *   place the place of a tile also says that lower tiles were read, over whose elements it will
 *   store: telling a count releases, which the barrier before it makes cover the loads of the whole
 *   block; the scanning block acquires each count, passes a barrier, and releases each place; and
 *   whoever learns its place acquires, before the barrier that its block stores behind. A tile's
 *   own loads are before the barrier that it is staged behind. Of a short array whoever adds up
 *   acquires all lower counts itself. There the counts also tell that each block has read where a
 *   buffer ends, before the last one moves that end: so with a buffer they release and acquire too.
 * Progress: tiles are taken by tickets, in order, by blocks that run, and a block tells the count
 *   of a tile that it has taken before it waits for any place but those of its tiles before, whose
 *   counts it has told as well. A place comes when the counts of all lower tiles are told, so
 *   whoever has the lowest tile that is taken and not told waits for nobody but the scanning block,
 *   and only for places that this one can tell. The scanning block waits for counts of taken tiles
 *   only: where no other block runs and takes one, it takes one itself, and scans on while that one
 *   waits for its place. It is the block with the first ticket, so it runs. A tile of a short array
 *   waits for counts of lower tiles only, each told by a block that runs and has waited for none.
 */
#ifndef CUATOMIC_KERNELS_FILTER_KERNEL_H
#define CUATOMIC_KERNELS_FILTER_KERNEL_H

#include "backend/filter_backend.h"

#define CUA__FILTER_ALL 0xffffffffu
/* The number of an element in its tile. */
#ifndef CUA__FILTER_LOCAL
#define CUA__FILTER_LOCAL uint16_t
#endif

/* What a kernel is made for: constants, all of them. */
struct cua__filter_kind {
	enum cua__filter_key key;
	uint32_t size;   /* of an element */
	uint32_t loads;  /* of a thread and tile: 2, 4 or 8 */
	uint32_t warps;  /* of a block */
	int lean;        /* values alone, without partition */
	uint32_t stages; /* in order: tiles that there is room for, 2 or 3 */
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
	/* of the scan, in turn: what the told tiles at the beginning of a warp's keep, and how many these are */
	uint32_t scan_kept[2][32], scan_told[2][32];
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

/* The bits of element c, of 4 or 8 bytes. */
CUA_FORCE uint64_t cua__filter_element(const struct cua__filter_kind k,
				       const struct cua__filter_pack *v, uint32_t c)
{
	return k.size == 8 ? cua__filter_bits64(v, c) : cua__filter_bits32(4, v, c);
}

CUA_FORCE void cua__filter_load(const struct cua__filter_kind k, struct cua__filter_pack *v,
				const char *p)
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
CUA_FORCE void cua__filter_load_one(const struct cua__filter_kind k, struct cua__filter_pack *v,
				    uint32_t c, const char *p)
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
		v->word[c / 2] |= (uint32_t)CUA_READ(*(const cua__raw16 *)(const void *)p)
				  << c % 2 * 16;
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
			keep = cua__filter_key64(k.key, cua__filter_bits64(v, c)) - f->low <=
			       f->range;
		else
			keep = cua__filter_in32(
				k.size,
				cua__filter_key32(k.key, k.size, cua__filter_bits32(k.size, v, c)),
				(uint32_t)f->low, (uint32_t)f->range);
		bits |= (uint32_t)keep << c;
	}
	return bits;
}

/* The element before p, of 4 or 8 bytes. */
CUA_FORCE uint64_t cua__filter_load_before(const struct cua__filter_kind k, const char *p)
{
	if (k.size == 4)
		return CUA_READ(*(const cua__raw32 *)(const void *)(p - 4));
	return CUA_READ(*(const cua__raw64 *)(const void *)(p - 8));
}

/* A thread's elements of a tile. Those of load j, lane l are at (j * 32 + l) * per in its warp's part. */
struct cua__filter_items {
	struct cua__filter_pack v[8];
	uint32_t flags[8];
	uint32_t valid; /* a bit each, as of what is kept */
	/* of runs: the element before the warp's first one, by lane 0, and the bit of the array's first one */
	uint64_t before;
	uint32_t start;
};

CUA_FORCE void cua__filter_read_nothing(struct cua__filter_items *t)
{
	t->before = t->start = t->valid = 0;
}

CUA_FORCE void cua__filter_read(const struct cua__filter_kind k, const struct cua__filter *f,
				uint64_t tile, uint32_t shift, struct cua__filter_items *t)
{
	const uint32_t per = cua__filter_per(k), thread = cua_port_thread();
	/* the first element of this thread, counted from the beginning of tile 0 */
	const uint64_t at =
		tile * cua__filter_tile(k) + (thread / 32 * (32 * k.loads) + thread % 32) * per;
	const uint64_t end = tile * cua__filter_tile(k) + cua__filter_tile(k);
	const char *x = (const char *)f->x + (at - shift) * k.size;
	const uint8_t *flags = f->flags + (at - shift);
	const int has_values = k.lean || k.key != CUA__FILTER_FLAG || f->values;
	uint32_t j, c;

	t->before = t->start = 0;
	if (k.key == CUA__FILTER_CHANGE) {
		t->start = at == 0 && !shift;
		if (thread % 32 == 0 && at > shift && at - shift <= f->n)
			t->before = cua__filter_load_before(k, x);
	}
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
				t->flags[j] = CUA_READ(*(
					const cua__raw32 *)(const void *)(flags + j * (32 * per)));
			return;
		}
		CUA__UNROLL
		for (j = 0; j < k.loads; j++) {
			t->flags[j] = 0;
			CUA__UNROLL
			for (c = 0; c < per; c++)
				t->flags[j] |= (uint32_t)CUA_READ(flags[j * (32 * per) + c])
					       << c * 8;
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
			if (k.key == CUA__FILTER_CHANGE && at + step == shift)
				t->start = (uint32_t)1 << (j * per + c);
			if (has_values)
				cua__filter_load_one(k, &t->v[j], c, x + step * k.size);
			if (k.key == CUA__FILTER_FLAG)
				t->flags[j] |= (uint32_t)CUA_READ(flags[step]) << c * 8;
		}
	}
}

/* ---- places ---- */

/* A tile's word is 0, then has its count, then its place. */
#define CUA__FILTER_COUNT ((uint64_t)1 << 62)
#define CUA__FILTER_PLACE ((uint64_t)2 << 62)
#define CUA__FILTER_NUMBER (((uint64_t)1 << 62) - 1)
/* Words that a lane of the scanning block looks at in one step, and its fruitless steps before it takes a tile. */
#ifndef CUA__FILTER_LOOKS
#define CUA__FILTER_LOOKS 4u
#define CUA__FILTER_PATIENCE 100u
#endif

CUA_FORCE uint64_t cua__filter_look(const struct cua__filter *f, int acquire, uint64_t tile)
{
	if (acquire)
		return cua_port_load_b64(&f->tiles[tile], CUA_ACQUIRE, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GLOBAL);
	return cua_port_load_b64(&f->tiles[tile], CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

CUA_FORCE void cua__filter_tell(const struct cua__filter *f, int release, uint64_t tile,
				uint64_t word)
{
	if (release)
		cua_port_store_b64(&f->tiles[tile], word, CUA_RELEASE, CUA_SCOPE_DEVICE,
				   CUA_SPACE_GLOBAL);
	else
		cua_port_store_b64(&f->tiles[tile], word, CUA_RELAXED, CUA_SCOPE_DEVICE,
				   CUA_SPACE_GLOBAL);
}

/* Where the places begin: before anything moves that end of the buffer. Past the capacity it does not matter. */
CUA_FORCE uint64_t cua__filter_base(const struct cua__filter *f)
{
	uint64_t demand;

	if (!f->demand)
		return 0;
	demand = cua_port_load_b64(f->demand, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	return demand < f->capacity ? demand : f->capacity;
}

/* In order: so many were kept in all. By one thread, which knows the last place. */
CUA_FORCE void cua__filter_tell_all(const struct cua__filter_kind k, const struct cua__filter *f,
				    uint64_t kept)
{
	if (k.key == CUA__FILTER_CHANGE) {
		CUA_WRITE(*f->count_too, kept);
		if (kept <= f->capacity)
			CUA_WRITE(((cua__raw64 *)f->indexes)[kept], f->n);
	}
	if (f->demand)
		cua_port_add_u64(f->demand, kept, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	else
		CUA_WRITE(*f->count, kept);
}

/* Inclusive, over a warp. */
CUA_FORCE uint32_t cua__filter_scan_warp(uint32_t lane, uint32_t v)
{
	uint32_t step;

	CUA__UNROLL
	for (step = 1; step < 32; step *= 2) {
		uint32_t below = cua_port_shuffle_u32(CUA__FILTER_ALL, v, lane - step);

		v += lane >= step ? below : 0;
	}
	return v;
}

/*
 * A step of the scan, by a whole block: places for the told tiles from `first` on, up to one that is not told, the
 * first at *place, which becomes the place after them. Returns how many there were. `turn` is 0 and 1 alternately.
 */
CUA_FORCE uint32_t cua__filter_scan_step(const struct cua__filter_kind k,
					 const struct cua__filter *f, struct cua__filter_shared *sh,
					 uint32_t turn, uint64_t tiles, uint64_t first,
					 uint64_t *place)
{
	const uint32_t lane = cua_port_lane(), warp = cua_port_thread() / 32,
		       full = CUA__FILTER_LOOKS * 32;
	const uint64_t tile = first + warp * full + lane;
	uint32_t before[CUA__FILTER_LOOKS], told = 0, kept = 0, all = 0, lower = 0, j, w;
	uint64_t word[CUA__FILTER_LOOKS];
	int reached = 1, goes_on = 1;

	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_LOOKS; j++)
		word[j] =
			tile + j * 32 < tiles ? cua__filter_look(f, f->in_place, tile + j * 32) : 0;
	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_LOOKS; j++) {
		uint32_t untold = ~cua_port_ballot(CUA__FILTER_ALL, word[j] != 0);
		uint32_t run = !goes_on ? 0 : untold ? cua_port_ffs_u32(untold) - 1 : 32;
		uint32_t own = lane < run ? (uint32_t)(word[j] & CUA__FILTER_NUMBER) : 0;
		uint32_t upto = cua__filter_scan_warp(lane, own);

		before[j] = kept + upto - own;
		kept += cua_port_shuffle_u32(CUA__FILTER_ALL, upto, 31);
		told += run;
		goes_on = run == 32;
	}
	if (lane == 0) {
		CUA_WRITE(sh->scan_kept[turn][warp], kept);
		CUA_WRITE(sh->scan_told[turn][warp], told);
	}
	cua_port_sync_block();
	/* warps above the first one that does not have all of its tiles told are not reached */
	goes_on = 1;
	kept = 0;
	CUA__UNROLL
	for (w = 0; w < k.warps; w++) {
		const uint32_t of_warp = CUA_READ(sh->scan_told[turn][w]);

		if (w == warp) {
			reached = goes_on;
			lower = kept;
		}
		if (goes_on) {
			kept += CUA_READ(sh->scan_kept[turn][w]);
			all += of_warp;
		}
		goes_on = goes_on && of_warp == full;
	}
	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_LOOKS; j++)
		if (reached && j * 32 + lane < told)
			cua__filter_tell(f, f->in_place, tile + j * 32,
					 CUA__FILTER_PLACE | (*place + lower + before[j]));
	*place += kept;
	return all;
}

/* ---- parts of the kernels ---- */

/*
 * Stores n elements of the stage at `to`. The threads start where a line of 128 bytes does, so that a warp stores whole
 * lines; and have four elements at a time, so that they wait for shared memory once.
 */
#define CUA__DEFINE_FILTER_STORE(name, T)                                                          \
	CUA_FORCE void cua__filter_store_##name(uint32_t threads, T *to, const T *stage,           \
						uint32_t n)                                        \
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
CUA_FORCE void cua__filter_store(const struct cua__filter_kind k, const struct cua__filter *f,
				 uint64_t first, uint32_t n, const void *stage, uint32_t from)
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
		cua__filter_store_8(threads, (uint8_t *)f->values + first,
				    (const uint8_t *)stage + from, n);
}

/*
 * Indexes instead: those of the elements that `locals` has the numbers of, from `begin` on. Of runs the values, too:
 * they are read again from the array, which is still in a cache, and take no room in the stage.
 */
CUA_FORCE void cua__filter_store_indexes(const struct cua__filter_kind k,
					 const struct cua__filter *f, uint64_t first,
					 uint32_t total, uint64_t begin,
					 const CUA__FILTER_LOCAL *locals, uint32_t from)
{
	/* of runs there is room for the beginning of one more */
	const uint64_t capacity = f->capacity + (k.key == CUA__FILTER_CHANGE);
	uint32_t i;

	for (i = cua_port_thread(); i < total && first + i < capacity; i += k.warps * 32) {
		uint64_t index = begin + CUA_READ(locals[from + i]);

		if (f->index_size == 4)
			CUA_WRITE(((cua__raw32 *)f->indexes)[first + i], (uint32_t)index);
		else
			CUA_WRITE(((cua__raw64 *)f->indexes)[first + i], index);
		if (k.key != CUA__FILTER_CHANGE || first + i >= f->capacity)
			continue;
		if (k.size == 4)
			CUA_WRITE(((cua__raw32 *)f->values)[first + i],
				  CUA_READ(((const cua__raw32 *)f->x)[index]));
		else
			CUA_WRITE(((cua__raw64 *)f->values)[first + i],
				  CUA_READ(((const cua__raw64 *)f->x)[index]));
	}
}

/* Whether values are staged. */
CUA_FORCE int cua__filter_stages(const struct cua__filter_kind k, const struct cua__filter *f)
{
	return k.key != CUA__FILTER_CHANGE && (k.lean || f->values);
}

/* A tile of which the kept ones are staged. */
struct cua__filter_staged {
	uint64_t tile;
	uint32_t kept, elements,
		first_local; /* the elements are numbers first_local to first_local + elements - 1 */
};

/* How a thread's elements are ranked among those of its warp. */
struct cua__filter_ranks {
	uint32_t kept;    /* a bit each */
	uint32_t rank[8]; /* of the first one kept of each load */
	uint32_t own;     /* kept by the warp */
	uint64_t one;     /* 1, and not known to the compiler */
};

/* The beginnings of runs among a thread's elements, a bit each as of what is kept. By a whole warp. */
CUA_FORCE uint32_t cua__filter_changes(const struct cua__filter_kind k,
				       const struct cua__filter_items *t)
{
	const uint32_t per = cua__filter_per(k), lane = cua_port_thread() % 32;
	uint64_t lowest = t->before;
	uint32_t bits = t->start, j, c;

	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		uint64_t last = cua__filter_element(k, &t->v[j], per - 1);
		/* of the lane below; lane 0 gets that of lane 31, which is before its next pack */
		uint64_t other =
			k.size == 4 ? cua_port_shuffle_u32(CUA__FILTER_ALL, (uint32_t)last,
							   (lane + 31) % 32)
				    : cua_port_shuffle_u64(CUA__FILTER_ALL, last, (lane + 31) % 32);
		uint64_t before = lane ? other : lowest;

		lowest = other;
		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint64_t element = cua__filter_element(k, &t->v[j], c);

			bits |= (uint32_t)(element != before) << (j * per + c);
			before = element;
		}
	}
	return bits;
}

CUA_FORCE void cua__filter_rank(const struct cua__filter_kind k, const struct cua__filter *f,
				const struct cua__filter_items *t, struct cua__filter_ranks *r)
{
	const uint32_t per = cua__filter_per(k), lane = cua_port_thread() % 32;
	const uint32_t of_pack = CUA__FILTER_ALL >> (32 - per);
	uint32_t kept = 0, mine[2] = {0, 0}, upto[2] = {0, 0}, whole[2] = {0, 0}, j, w;

	/* how many are kept of each load, 8 bits each: a warp has at most 128 */
	if (k.key == CUA__FILTER_CHANGE) {
		kept = cua__filter_changes(k, t) & t->valid;
	} else {
		CUA__UNROLL
		for (j = 0; j < k.loads; j++)
			kept |= cua__filter_keeps(k, f, &t->v[j], t->flags[j]) << j * per;
		kept = (f->inverted ? ~kept : kept) & t->valid;
	}
	CUA__UNROLL
	for (j = 0; j < k.loads; j++)
		mine[j / 4] |= cua_port_popc_u32(kept >> j * per & of_pack) << j % 4 * 8;
	CUA__UNROLL
	for (w = 0; w < (k.loads + 3) / 4; w++) {
		upto[w] = cua__filter_scan_warp(lane, mine[w]);
		whole[w] = cua_port_shuffle_u32(CUA__FILTER_ALL, upto[w], 31);
		upto[w] -= mine[w];
	}
	/* the 8 bits at the top are at most 124 */
	r->one = 1 + (upto[0] >> 31);
	r->kept = kept;
	r->own = 0;
	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		r->rank[j] = r->own + (upto[j / 4] >> j % 4 * 8 & 0xff);
		r->own += whole[j / 4] >> j % 4 * 8 & 0xff;
	}
}

/* After the barrier behind which sh->kept is known: what the tile has. Returns what lower warps keep. */
CUA_FORCE uint32_t cua__filter_add_warps(const struct cua__filter_kind k,
					 const struct cua__filter *f, uint64_t tiles,
					 uint32_t shift, struct cua__filter_shared *sh,
					 struct cua__filter_staged *s)
{
	const uint32_t warp = cua_port_thread() / 32;
	uint32_t before = 0, w;

	s->kept = 0;
	CUA__UNROLL
	for (w = 0; w < k.warps; w++) {
		const uint32_t of_warp = CUA_READ(sh->kept[w]);

		before += w < warp ? of_warp : 0;
		s->kept += of_warp;
	}
	s->first_local = s->tile ? 0 : shift;
	s->elements = cua__filter_tile(k) - s->first_local;
	if (s->tile == tiles - 1)
		s->elements =
			(uint32_t)(f->n + shift - s->tile * cua__filter_tile(k)) - s->first_local;
	return before;
}

CUA_FORCE void cua__filter_stage_tile(const struct cua__filter_kind k, const struct cua__filter *f,
				      const struct cua__filter_items *t,
				      const struct cua__filter_ranks *r,
				      const struct cua__filter_staged *s, uint32_t before,
				      void *stage, CUA__FILTER_LOCAL *locals)
{
	const uint32_t per = cua__filter_per(k), thread = cua_port_thread();
	const uint32_t lane = thread % 32, warp = thread / 32;
	const int has_values = cua__filter_stages(k, f), has_indexes = !k.lean && f->indexes;
	const int partition = !k.lean && f->partition;
	uint32_t j, c;

	CUA__UNROLL
	for (j = 0; j < k.loads; j++) {
		uint32_t to = before + r->rank[j];

		CUA__UNROLL
		for (c = 0; c < per; c++) {
			const uint32_t bit = (uint32_t)1 << (j * per + c);
			const uint32_t local = ((warp * k.loads + j) * 32 + lane) * per + c;
			uint32_t other;

			if (r->kept & bit) {
				if (has_values)
					cua__filter_stage(k, stage, to, &t->v[j], c);
				if (has_indexes)
					CUA_WRITE(locals[to], (CUA__FILTER_LOCAL)local);
				to++;
			} else if (partition && t->valid & bit) {
				other = s->kept + (local - s->first_local) - to;
				if (has_values)
					cua__filter_stage(k, stage, other, &t->v[j], c);
				if (has_indexes)
					CUA_WRITE(locals[other], (CUA__FILTER_LOCAL)local);
			}
		}
	}
}

/* The kept ones go to place `first`; of a partition without order, `rest` elements were put at the end before. */
CUA_FORCE void cua__filter_store_tile(const struct cua__filter_kind k, const struct cua__filter *f,
				      int ordered, uint32_t shift,
				      const struct cua__filter_staged *s, uint64_t first,
				      uint64_t rest, const void *stage,
				      const CUA__FILTER_LOCAL *locals)
{
	const int has_values = cua__filter_stages(k, f), has_indexes = !k.lean && f->indexes;
	const uint64_t begin = s->tile * cua__filter_tile(k) - shift;

	if (has_values)
		cua__filter_store(k, f, first, s->kept, stage, 0);
	if (has_indexes)
		cua__filter_store_indexes(k, f, first, s->kept, begin, locals, 0);
	if (!k.lean && f->partition) {
		/* in order they follow all that is kept, else they come from the end */
		const uint32_t others = s->elements - s->kept;
		const uint64_t to = ordered ? *f->all_kept + (s->tile ? begin : 0) - first
					    : f->n - rest - others;

		if (has_values)
			cua__filter_store(k, f, to, others, stage, s->kept);
		if (has_indexes)
			cua__filter_store_indexes(k, f, to, others, begin, locals, s->kept);
	}
}

/* The last block to come finds all tiles done, tells the count, and leaves zeros. Every thread of a block calls. */
CUA_FORCE void cua__filter_finish(const struct cua__filter *f, int ordered,
				  struct cua__filter_shared *sh)
{
	struct cua__filter_state *s = f->state;

	/* what this block has taken from the sums */
	cua_port_sync_block();
	if (cua_port_thread() != 0)
		return;
	CUA_WRITE(sh->next, cua_port_fetch_add_u64(&s->arrived, 1, CUA_ACQ_REL, CUA_SCOPE_DEVICE,
						   CUA_SPACE_GLOBAL));
	if (CUA_READ(sh->next) != cua_port_grid_size() - 1)
		return;
	if (!ordered && !f->demand)
		CUA_WRITE(*f->count, cua_port_load_b64(&s->kept, CUA_RELAXED, CUA_SCOPE_DEVICE,
						       CUA_SPACE_GLOBAL));
	cua_port_store_b64(&s->kept, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua_port_store_b64(&s->rest, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua_port_store_b64(&s->ticket, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	cua_port_store_b64(&s->arrived, 0, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/*
 * `one` is 1, and not known to the compiler: with a constant it would make the operation one of the warp, and wait
 * for it there.
 */
CUA_FORCE uint64_t cua__filter_ticket(struct cua__filter_state *s, uint64_t one)
{
	return cua_port_fetch_add_u64(&s->ticket, one, CUA_RELAXED, CUA_SCOPE_DEVICE,
				      CUA_SPACE_GLOBAL);
}

/* The first ticket of a block; every thread of it calls and gets it. */
CUA_FORCE uint64_t cua__filter_first_ticket(const struct cua__filter *f,
					    struct cua__filter_shared *sh)
{
	uint64_t ticket;

	if (cua_port_thread() == 0)
		CUA_WRITE(sh->next, cua__filter_ticket(f->state, 1));
	cua_port_sync_block();
	ticket = CUA_READ(sh->next);
	cua_port_sync_block();
	return ticket;
}

/* ---- in any order ---- */

/*
 * stage has room for the elements of a tile; locals, which only kernels that are not lean use, for so many
 * numbers.
 */
CUA_FORCE void cua__filter_any_order(const struct cua__filter_kind k, const struct cua__filter *f,
				     struct cua__filter_shared *sh, void *stage,
				     CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread(), shift = cua__filter_shift(k, f->x);
	const uint64_t tiles = cua__filter_tiles(k, f);
	const int partition = !k.lean && f->partition;
	/* where each block has a tile, no block takes a second */
	const int one_each = tiles <= cua_port_grid_size();
	struct cua__filter_state *state = f->state;
	struct cua__filter_staged s = {0, 0, 0, 0};
	uint64_t place = 0, rest = 0, tile, ticket = tiles, one = 1;
	int is_staged = 0;

	tile = cua__filter_first_ticket(f, sh);
	if (thread == 0 && !one_each)
		ticket = cua__filter_ticket(state, one);
	for (;;) {
		struct cua__filter_items t;
		struct cua__filter_ranks r;
		const int more = tile < tiles;
		uint32_t before;

		cua__filter_read_nothing(&t);
		if (more)
			cua__filter_read(k, f, tile, shift, &t);

		/* the place of what is staged */
		if (thread == 0) {
			CUA_WRITE(sh->first, place);
			if (partition)
				CUA_WRITE(sh->rest, rest);
			CUA_WRITE(sh->next, ticket);
		}
		cua_port_sync_block();

		if (is_staged)
			cua__filter_store_tile(k, f, 0, shift, &s, CUA_READ(sh->first),
					       partition ? CUA_READ(sh->rest) : 0, stage, locals);
		if (!more)
			break;
		s.tile = tile;
		is_staged = 1;
		tile = CUA_READ(sh->next);
		if (thread == 0 && !one_each)
			ticket = cua__filter_ticket(state, one);
		cua__filter_rank(k, f, &t, &r);
		one = r.one;
		if (thread % 32 == 0)
			CUA_WRITE(sh->kept[thread / 32], r.own);
		cua_port_sync_block();

		/* nobody reads the stage any more */
		before = cua__filter_add_warps(k, f, tiles, shift, sh, &s);
		if (thread == 0) {
			place = rest = 0;
			if (s.kept)
				place = cua_port_fetch_add_u64(f->demand ? f->demand : &state->kept,
							       s.kept, CUA_RELAXED,
							       CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			if (partition)
				rest = cua_port_fetch_add_u64(&state->rest, s.elements - s.kept,
							      CUA_RELAXED, CUA_SCOPE_DEVICE,
							      CUA_SPACE_GLOBAL);
		}
		cua__filter_stage_tile(k, f, &t, &r, &s, before, stage, locals);
	}
	cua__filter_finish(f, 0, sh);
}

/* ---- in order ---- */

/* Ranks a tile that was read, tells its count, and stages it, behind a barrier. Returns 1, for the ticket. */
CUA_FORCE uint64_t cua__filter_count_tile(const struct cua__filter_kind k,
					  const struct cua__filter *f, uint64_t tiles,
					  uint32_t shift, struct cua__filter_shared *sh,
					  const struct cua__filter_items *t, uint64_t tile,
					  uint64_t next, struct cua__filter_staged *s, void *stage,
					  CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread();
	struct cua__filter_ranks r;
	uint32_t before;

	s->tile = tile;
	cua__filter_rank(k, f, t, &r);
	if (thread % 32 == 0)
		CUA_WRITE(sh->kept[thread / 32], r.own);
	if (thread == 0)
		CUA_WRITE(sh->next, next);
	cua_port_sync_block();
	before = cua__filter_add_warps(k, f, tiles, shift, sh, s);
	if (thread == 0)
		cua__filter_tell(f, f->in_place, tile, CUA__FILTER_COUNT | s->kept);
	cua__filter_stage_tile(k, f, t, &r, s, before, stage, locals);
	return r.one;
}

/* The block that scans. */
CUA_FORCE void cua__filter_scan(const struct cua__filter_kind k, const struct cua__filter *f,
				uint64_t tiles, uint32_t shift, struct cua__filter_shared *sh,
				void *stage, CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread();
	const uint64_t base = cua__filter_base(f);
	uint64_t first = 0, place = base;
	uint32_t turn = 0, idle = 0;
	/* a tile that it has taken itself */
	struct cua__filter_staged s = {0, 0, 0, 0};
	int is_staged = 0;

	while (first < tiles) {
		const uint32_t told = cua__filter_scan_step(k, f, sh, turn, tiles, first, &place);

		first += told;
		turn ^= 1;
		idle = told ? 0 : idle + 1;
		if (is_staged && s.tile < first) {
			cua_port_sync_block();
			if (thread == 0)
				CUA_WRITE(sh->first, cua__filter_look(f, f->in_place, s.tile) &
							     CUA__FILTER_NUMBER);
			cua_port_sync_block();
			cua__filter_store_tile(k, f, 1, shift, &s, CUA_READ(sh->first), 0, stage,
					       locals);
			is_staged = 0;
		} else if (idle > CUA__FILTER_PATIENCE && !is_staged) {
			uint64_t ticket = 0;

			idle = 0;
			cua_port_sync_block();
			/* a tile that another block has taken will be told; ticket first + 1 is that of tile first */
			if (thread == 0) {
				ticket = cua_port_load_b64(&f->state->ticket, CUA_RELAXED,
							   CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
				if (ticket == first + 1)
					ticket = cua__filter_ticket(f->state, 1);
				else
					ticket = 0;
				CUA_WRITE(sh->next, ticket);
			}
			cua_port_sync_block();
			ticket = CUA_READ(sh->next);
			cua_port_sync_block();
			if (ticket != 0 && ticket - 1 < tiles) {
				struct cua__filter_items t;

				cua__filter_read(k, f, ticket - 1, shift, &t);
				cua__filter_count_tile(k, f, tiles, shift, sh, &t, ticket - 1, 0,
						       &s, stage, locals);
				is_staged = 1;
			}
		} else if (told == 0) {
			cua_port_pause(32);
		}
	}
	if (thread == 0)
		cua__filter_tell_all(k, f, place - base);
}

/*
 * stage has room for the elements of kind.stages tiles, but of runs, which need none; locals, which only kernels that
 * are not lean use, for so many numbers. Tile i has ticket i + 1.
 */
CUA_FORCE void cua__filter_in_order(const struct cua__filter_kind k, const struct cua__filter *f,
				    struct cua__filter_shared *sh, void *stage,
				    CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread(), shift = cua__filter_shift(k, f->x),
		       room = cua__filter_tile(k);
	const uint64_t tiles = cua__filter_tiles(k, f);
	/* staged and not stored yet, the newest first, at most stages - 1 between two turns */
	struct cua__filter_staged staged[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
	struct cua__filter_items t;
	uint64_t ticket = cua__filter_first_ticket(f, sh), tile, word, one = 1;
	uint32_t n_staged = 0, to = 0;
	int more;

	if (ticket == 0) {
		cua__filter_scan(k, f, tiles, shift, sh, stage, locals);
		cua__filter_finish(f, 1, sh);
		return;
	}
	tile = ticket - 1;
	cua__filter_read_nothing(&t);
	if (tile < tiles)
		cua__filter_read(k, f, tile, shift, &t);
	do {
		const struct cua__filter_staged oldest =
			k.stages > 2 && n_staged == 2 ? staged[1] : staged[0];
		const uint32_t from = to < n_staged ? to + k.stages - n_staged : to - n_staged;
		int due;

		more = tile < tiles;
		due = n_staged != 0 && (!more || n_staged == k.stages - 1);
		word = 0;
		/* both come while the loads do; in place the look has to acquire, and would wait for itself */
		if (thread == 0) {
			if (more)
				ticket = cua__filter_ticket(f->state, one);
			if (due && !f->in_place)
				word = cua__filter_look(f, 0, oldest.tile);
		}
		if (more) {
			staged[1] = staged[0];
			one = cua__filter_count_tile(k, f, tiles, shift, sh, &t, tile, ticket,
						     &staged[0], (char *)stage + to * room * k.size,
						     locals + to * room);
			to = to + 1 == k.stages ? 0 : to + 1;
			tile = CUA_READ(sh->next) - 1;
			cua__filter_read_nothing(&t);
			if (tile < tiles)
				cua__filter_read(k, f, tile, shift, &t);
		} else {
			/* all have seen the place before */
			cua_port_sync_block();
		}
		if (thread == 0 && due) {
			while (word < CUA__FILTER_PLACE) {
				word = cua__filter_look(f, f->in_place, oldest.tile);
				if (word < CUA__FILTER_PLACE)
					cua_port_pause(32);
			}
			CUA_WRITE(sh->first, word & CUA__FILTER_NUMBER);
		}
		cua_port_sync_block();
		if (due)
			cua__filter_store_tile(k, f, 1, shift, &oldest, CUA_READ(sh->first), 0,
					       (char *)stage + from * room * k.size,
					       locals + from * room);
		n_staged += (uint32_t)more - (uint32_t)due;
	} while (n_staged);
	cua__filter_finish(f, 1, sh);
}

/* ---- short arrays ---- */

/*
 * Tickets and words of a short array are never reset: they have a number of the call above their lowest 16 bits. So
 * no block waits for the others' end, and the words may begin as anything older.
 */
#define CUA__FILTER_LOW 0xffffu

/* What lower tiles keep, in order. By a whole warp; every lane gets it. */
CUA_FORCE uint32_t cua__filter_lower(const struct cua__filter *f, int acquire, uint32_t tile,
				     uint64_t call)
{
	const uint32_t lane = cua_port_lane();
	uint64_t word[CUA__FILTER_SHORT / 32];
	uint32_t kept = 0, j, step;

	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_SHORT / 32; j++)
		if (j * 32 + lane < tile)
			word[j] = cua__filter_look(f, acquire, j * 32 + lane);
	CUA__UNROLL
	for (j = 0; j < CUA__FILTER_SHORT / 32; j++) {
		if (j * 32 + lane >= tile)
			continue;
		while (word[j] >> 16 != call) {
			cua_port_pause(32);
			word[j] = cua__filter_look(f, acquire, j * 32 + lane);
		}
		kept += (uint32_t)(word[j] & CUA__FILTER_LOW);
	}
	cua_port_sync_warp(CUA__FILTER_ALL);
	CUA__UNROLL
	for (step = 16; step; step /= 2)
		kept += cua_port_shuffle_u32(CUA__FILTER_ALL, kept, lane ^ step);
	return kept;
}

/*
 * Each block has one tile, of at most CUA__FILTER_SHORT, and a tile has fewer than 2^16 elements; no partition, but in
 * order. stage and locals are as for any order.
 */
CUA_FORCE void cua__filter_short(const struct cua__filter_kind k, const struct cua__filter *f,
				 struct cua__filter_shared *sh, void *stage,
				 CUA__FILTER_LOCAL *locals)
{
	const uint32_t thread = cua_port_thread(), shift = cua__filter_shift(k, f->x);
	const uint64_t tiles = cua__filter_tiles(k, f);
	const int told_more = f->in_place || f->demand;
	struct cua__filter_state *state = f->state;
	struct cua__filter_staged s;
	struct cua__filter_items t;
	struct cua__filter_ranks r;
	uint64_t call = 0, base = 0, place = 0;
	uint32_t before;

	s.tile = cua_port_block();
	if (f->ordered) {
		if (thread == 0) {
			place = cua_port_fetch_add_u64(&state->short_ticket, 1, CUA_RELAXED,
						       CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			/* the last one has seen all others come */
			if ((place & CUA__FILTER_LOW) == tiles - 1)
				cua_port_store_b64(&state->short_ticket,
						   (place & ~(uint64_t)CUA__FILTER_LOW) +
							   CUA__FILTER_LOW + 1,
						   CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
			CUA_WRITE(sh->next, place);
		}
		cua_port_sync_block();
		call = (CUA_READ(sh->next) >> 16) + 1;
		s.tile = CUA_READ(sh->next) & CUA__FILTER_LOW;
		if (thread < 32)
			base = cua__filter_base(f);
	}
	cua__filter_read(k, f, s.tile, shift, &t);
	cua__filter_rank(k, f, &t, &r);
	if (thread % 32 == 0)
		CUA_WRITE(sh->kept[thread / 32], r.own);
	cua_port_sync_block();
	before = cua__filter_add_warps(k, f, tiles, shift, sh, &s);
	if (f->ordered) {
		if (thread == 0)
			cua__filter_tell(f, told_more, s.tile, call << 16 | s.kept);
	} else if (thread == 0 && f->demand) {
		if (s.kept)
			place = cua_port_fetch_add_u64(f->demand, s.kept, CUA_RELAXED,
						       CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	} else if (thread == 0) {
		/* how many blocks have come, and what they keep */
		place = cua_port_fetch_add_u64(&state->short_kept, (uint64_t)1 << 32 | s.kept,
					       CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
	cua__filter_stage_tile(k, f, &t, &r, &s, before, stage, locals);
	if (f->ordered && thread < 32) {
		const uint32_t lower = cua__filter_lower(f, told_more, (uint32_t)s.tile, call);

		place = base + lower;
		if (thread == 0 && s.tile == tiles - 1)
			cua__filter_tell_all(k, f, (uint64_t)lower + s.kept);
	} else if (thread == 0 && !f->ordered && !f->demand) {
		if (place >> 32 == tiles - 1) {
			CUA_WRITE(*f->count, (uint32_t)place + (uint64_t)s.kept);
			cua_port_store_b64(&state->short_kept, 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
					   CUA_SPACE_GLOBAL);
		}
		place = (uint32_t)place;
	}
	if (thread == 0)
		CUA_WRITE(sh->first, place);
	cua_port_sync_block();
	cua__filter_store_tile(k, f, f->ordered, shift, &s, CUA_READ(sh->first), 0, stage, locals);
}

#endif /* CUATOMIC_KERNELS_FILTER_KERNEL_H */
