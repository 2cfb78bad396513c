/* SPDX-License-Identifier: MIT */
/*
 * Template: runs of equal keys, found and summed in a single pass, for a kind (tree.h).
 * segment_runs.h has the types and the description.
 *
 * Parameter: CUA__KIND, which the template undefines. segment_tree.tmpl.h must precede it.
 *
 * Defines, with _<kind> after each name:
 *   cua__runs_read_values: copies the values of a tile
 *   cua__runs_sum: the sums of a tile
 *   cua__runs_scan: the scanning block
 *   cua__segment_runs, the kernel
 */
#define K(name) CUA__NAME_OF(name, CUA__KIND)
#define T K(cua__tree_element)
#define PACK struct K(cua__tree_pack)

/* Copies the values of a tile. Element e of the tile becomes element e + value_shift. */
CUA_FORCE void K(cua__runs_read_values)(const struct cua__filter_kind k,
					const struct cua__segments *s,
					const struct cua__runs_block *b, uint64_t tile,
					uint32_t buffer)
{
	enum { N = 16 / sizeof(T) };
	const uint32_t thread = cua_port_thread(), threads = k.warps * 32, shift = b->value_shift,
		       packs = cua__filter_tile(k) / N;
	struct cua__pack *to =
		(struct cua__pack *)(void *)(b->values + buffer * cua__runs_buffer(k, sizeof(T)));
	/* the first element of the first pack, counted from the beginning of tile 0 */
	const uint64_t at = tile * cua__filter_tile(k) - shift;
	const T *x = (const T *)s->x + (at - b->shift);

	if ((tile || !(shift + b->shift)) && at - b->shift + (packs + 1) * N <= s->n) {
		CUA__UNROLL
		for (uint32_t j = 0; j * threads < packs; j++)
			if (packs % threads == 0 || thread < packs)
				cua__copy_pack(&to[j * threads + thread],
					       x + (j * threads + thread) * N);
		if (shift && thread == 0)
			cua__copy_pack(&to[packs], x + packs * N);
		return;
	}
	for (uint32_t i = thread; i <= packs; i += threads) {
		struct cua__pack words;
		PACK v;

		memset(&v, 0, sizeof(v));
		CUA__UNROLL
		for (uint32_t j = 0; j < N; j++) {
			const uint64_t element = at + i * N + j;

			/* also for at + i * N < 0: as unsigned number it exceeds every index */
			if (element - b->shift < s->n)
				v.v[j] = CUA_READ(x[i * N + j]);
		}
		memcpy(&words, &v, sizeof(v));
		CUA_WRITE(to[i], words);
	}
}

/*
 * Stores the keys of the tile's runs and the sums of its tiny runs, and makes all remaining runs
 * pending. `offset` is the number of starts in lower tiles.
 */
CUA_FORCE void K(cua__runs_sum)(const struct cua__filter_kind k, const struct cua__filter *f,
				const struct cua__segments *s, uint32_t *pending,
				const struct cua__runs_block *b, struct cua__runs_tile tile,
				uint64_t offset, uint32_t stage, uint32_t buffer)
{
	enum { N = 16 / sizeof(T), TINY = CUA__FIXED_TINY_PACKS * N };
	const CUA__FILTER_LOCAL *locals =
		(const CUA__FILTER_LOCAL *)(const void *)(b->stages + stage * cua__runs_stage(k));
	const void *keys = locals + cua__runs_few(k);
	const T *values =
		(const T *)(const void *)(b->values + buffer * cua__runs_buffer(k, sizeof(T))) +
		b->value_shift;
	const uint64_t begin = tile.tile * cua__filter_tile(k) - b->shift;
	const int few = tile.starts <= cua__runs_few(k);
	const struct cua__reduce one = cua__segment_reduce(s);

	for (uint32_t i = cua_port_thread(); i < tile.starts; i += k.warps * 32) {
		const uint64_t run = offset + i;
		const uint32_t local = CUA_READ(locals[i]);
		const int is_last = i + 1 == tile.starts;
		const uint32_t n = is_last ? 0 : CUA_READ(locals[i + 1]) - local;
		const int is_pending = is_last || n > TINY;

		/* the first run ends the last run of an earlier tile */
		if (run <= f->capacity && (is_pending || i == 0 || run == f->capacity ||
					   local - CUA_READ(locals[i - 1]) > TINY))
			CUA_WRITE(((cua__raw64 *)f->indexes)[run], begin + local);
		if (run >= f->capacity)
			continue;
		if (k.size == 4)
			CUA_WRITE(((cua__raw32 *)f->values)[run],
				  few ? CUA_READ(((const cua__raw32 *)keys)[i])
				      : CUA_READ(((const cua__raw32 *)f->x)[begin + local]));
		else
			CUA_WRITE(((cua__raw64 *)f->values)[run],
				  few ? CUA_READ(((const cua__raw64 *)keys)[i])
				      : CUA_READ(((const cua__raw64 *)f->x)[begin + local]));
		if (is_pending)
			cua_port_or_b32(&pending[run / 32], (uint32_t)1 << run % 32, CUA_RELAXED,
					CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
		else
			K(cua__fixed_put)
		(s, run, n, K(cua__fixed_tiny_sum)(&one, values + local, n, 0));
	}
}

/*
 * The scanning block, as cua__filter_scan. If the next tile remains unclaimed, the scanning block
 * processes it.
 */
CUA_FORCE void K(cua__runs_scan)(const struct cua__filter_kind k, const struct cua__filter *f,
				 const struct cua__segments *s, uint32_t *pending,
				 const struct cua__runs_block *b)
{
	struct cua__filter_shared *sh = &b->sh->filter;
	struct cua__runs_tile own = {CUA__RUNS_NONE, 0};
	uint64_t first = 0, offset = 0;
	uint32_t turn = 0, idle = 0;

	while (first < b->tiles) {
		const uint32_t published =
			cua__filter_scan_step(k, f, sh, turn, b->tiles, first, &offset);

		first += published;
		turn ^= 1;
		idle = published ? 0 : idle + 1;
		if (own.tile < first) {
			cua_port_sync_block();
			if (cua_port_thread() == 0)
				CUA_WRITE(sh->first, cua__filter_await_offset(f, 0, own.tile, 0));
			cua_port_sync_block();
			K(cua__runs_sum)(k, f, s, pending, b, own, CUA_READ(sh->first), 0, 0);
			own.tile = CUA__RUNS_NONE;
		} else if (idle > CUA__FILTER_PATIENCE && own.tile == CUA__RUNS_NONE) {
			const uint64_t tile = cua__filter_claim(f, sh, first);

			idle = 0;
			if (tile < b->tiles) {
				struct cua__runs_ranks r;
				uint64_t before = cua__runs_read_keys(k, f, b, tile);

				K(cua__runs_read_values)(k, s, b, tile, 0);
				cua__copies_commit();
				cua__copies_wait(0);
				cua_port_sync_warp(CUA__ALL_LANES);
				r = cua__runs_count(k, f, b, tile, before, 0);
				cua_port_sync_block();
				own.tile = tile;
				own.starts = cua__runs_rank(k, f, b, tile, &r, 0, 0);
			}
		} else if (published == 0) {
			cua_port_pause(32);
		}
	}
	if (cua_port_thread() == 0)
		cua__filter_publish_total(k, f, offset);
}

/*
 * The kernel. f describes the runs, for a filter in order with kind k, and s their sums. Tile i has
 * ticket i + 1. `pending` has a bit for each run within the capacity, and is zero before. `room`
 * has cua__runs_room bytes. Sets *state to zeros, for the kernels that follow.
 */
CUA_FORCE void K(cua__segment_runs)(const struct cua__filter_kind k, const struct cua__filter *f,
				    const struct cua__segments *s, struct cua__fixed_state *state,
				    uint32_t *pending, struct cua__runs_shared *sh, void *room)
{
	const uint32_t thread = cua_port_thread();
	const struct cua__runs_block b = cua__runs_block(k, f, s, sizeof(T), sh, room);
	/* ranked tiles, newest first */
	struct cua__runs_tile ranked[CUA__RUNS_LAG] = {{CUA__RUNS_NONE, 0}, {CUA__RUNS_NONE, 0}};
	uint64_t ticket = cua__filter_first_ticket(f, &sh->filter), tile = ticket - 1, word = 0,
		 before = 0;
	uint32_t turn = 0, stage = 0;

	if (ticket == 0) {
		if (thread == 0) {
			CUA_WRITE(state->entries, (uint64_t)0);
			CUA_WRITE(state->cut, (uint64_t)0);
		}
		K(cua__runs_scan)(k, f, s, pending, &b);
		cua__filter_finish(f);
		return;
	}
	if (tile < b.tiles)
		before = cua__runs_read_keys(k, f, &b, tile);
	cua__copies_commit();
	/* an empty group, as for the values of no tile */
	cua__copies_commit();
	if (thread == 0)
		ticket = cua__filter_ticket(f->control, 1);
	do {
		const int more = tile < b.tiles;
		const struct cua__runs_tile due = ranked[1], next = ranked[0];
		struct cua__runs_tile now = {CUA__RUNS_NONE, 0};
		struct cua__runs_ranks r = {0, 0, 1};

		if (more) {
			/* the keys have arrived; the values of `due` may not */
			cua__copies_wait(1);
			cua_port_sync_warp(CUA__ALL_LANES);
			r = cua__runs_count(k, f, &b, tile, before, turn);
		}
		if (thread == 0) {
			CUA_WRITE(sh->next[turn], ticket - 1);
			if (due.tile != CUA__RUNS_NONE)
				CUA_WRITE(sh->first[turn],
					  cua__filter_await_offset(f, 0, due.tile, word));
		}
		cua__copies_wait(0);
		cua_port_sync_block();

		if (more) {
			now.tile = tile;
			now.starts = cua__runs_rank(k, f, &b, tile, &r, turn, stage);
			/* the ticket and the word arrive until the next barrier */
			if (thread == 0)
				ticket = cua__filter_ticket(f->control, r.one);
			tile = CUA_READ(sh->next[turn]);
			/* the warp has read its keys */
			cua_port_sync_warp(CUA__ALL_LANES);
			if (tile < b.tiles)
				before = cua__runs_read_keys(k, f, &b, tile);
		}
		cua__copies_commit();
		if (next.tile != CUA__RUNS_NONE) {
			/* the last run of a tile is pending, so a single run needs no values */
			if (next.starts > 1)
				K(cua__runs_read_values)(k, s, &b, next.tile, turn);
			if (thread == 0)
				word = cua__filter_load_word(f, 0, next.tile);
		}
		cua__copies_commit();
		if (due.tile != CUA__RUNS_NONE)
			K(cua__runs_sum)
		(k, f, s, pending, &b, due, CUA_READ(sh->first[turn]),
		 (stage + 1) % CUA__RUNS_STAGES, turn ^ 1);
		ranked[1] = next;
		ranked[0] = now;
		turn ^= 1;
		stage = (stage + 1) % CUA__RUNS_STAGES;
	} while (ranked[0].tile != CUA__RUNS_NONE || ranked[1].tile != CUA__RUNS_NONE);
	cua__filter_finish(f);
}

#undef K
#undef T
#undef PACK
#undef CUA__KIND
