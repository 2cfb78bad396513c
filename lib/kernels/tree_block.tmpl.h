/* SPDX-License-Identifier: MIT */
/*
 * Template: the functions of a block that reduces a kind (tree.h) in the order of the tree.
 * tree_block.h has the types and the argument.
 *
 * Parameters: CUA__KIND, which the template undefines, and CUA__TREE_INDEX, which is defined for the
 * kinds that find an index.
 *
 * Defines, with _<kind> after each name:
 *   struct cua__tree_pack
 *   cua__tree_load cua__tree_from cua__tree_lanes cua__tree_packs
 *   cua__tree_greatest cua__tree_improves cua__tree_improved, if CUA__TREE_INDEX is defined
 *   cua__tree_rows cua__tree_pack_of_chunk
 *   cua__tree_block, the block function
 */
#define K(name) CUA__NAME_OF(name, CUA__KIND)
#define T K(cua__tree_element)
#define C K(cua__tree_column)
#define A K(cua__tree_value)
#define PACK struct K(cua__tree_pack)

struct K(cua__tree_pack) {
	T v[16 / sizeof(T)];
} __attribute__((aligned(16)));

CUA_FORCE PACK K(cua__tree_load)(const T *p, int aligned, uint64_t policy)
{
	PACK v;

	if (aligned) {
		struct cua__pack words = cua__cached_load(p, policy);

		memcpy(&v, &words, sizeof(v));
	} else {
		CUA__UNROLL
		for (unsigned j = 0; j < 16 / sizeof(T); j++)
			v.v[j] = p[j];
	}
	return v;
}

CUA_FORCE A K(cua__tree_from)(A v, uint32_t lane)
{
	uint64_t words[sizeof(A) / 8];

	memcpy(words, &v, sizeof(v));
	CUA__UNROLL
	for (unsigned w = 0; w < sizeof(A) / 8; w++)
		words[w] = cua_port_shuffle_u64(CUA__ALL_LANES, words[w], lane);
	memcpy(&v, words, sizeof(v));
	return v;
}

/* Combines the values of lanes 0 to 2 * half - 1; the result is in lane 0. */
CUA_FN A K(cua__tree_lanes)(A v, uint32_t half)
{
	uint32_t lane = cua_port_lane();

	for (; half; half /= 2)
		v = K(cua__tree_combine)(v, K(cua__tree_from)(v, (lane + half) % 32));
	return v;
}

/* Combines the values of all packs; the result is in thread 0. */
CUA_FN A K(cua__tree_packs)(A v, uint64_t (*warps)[CUA__TREE_WORDS])
{
	uint32_t thread = cua_port_thread();
	uint64_t words[sizeof(A) / 8];

	v = K(cua__tree_lanes)(v, 16);
	if (thread % 32 == 0) {
		memcpy(words, &v, sizeof(v));
		CUA__UNROLL
		for (unsigned w = 0; w < sizeof(A) / 8; w++)
			CUA_WRITE(warps[thread / 32][w], words[w]);
	}
	cua_port_sync_block();
	if (thread < 32) {
		CUA__UNROLL
		for (unsigned w = 0; w < sizeof(A) / 8; w++)
			words[w] = CUA_READ(warps[thread % CUA__TREE_WARPS][w]);
		memcpy(&v, words, sizeof(v));
		v = K(cua__tree_lanes)(v, CUA__TREE_WARPS / 2);
	}
	return v;
}

#ifdef CUA__TREE_INDEX
/* The greatest key of n packs. */
CUA_FORCE T K(cua__tree_greatest)(const struct cua__reduce *r, const PACK *a, unsigned n)
{
	enum { N = 16 / sizeof(T) };
	T key = 0;

#if defined(__CUDA_ARCH__)
	/* The instructions order zeros as the keys do, and prefer a number to NaN. */
	if (sizeof(T) == 4 && r->low) {
		float v = __uint_as_float((uint32_t)a[0].v[0]);

		CUA__UNROLL
		for (unsigned i = 1; i < n * N; i++) {
			const float x = __uint_as_float((uint32_t)a[i / N].v[i % N]);

			v = r->flip ? fminf(v, x) : fmaxf(v, x);
		}
		return K(cua__tree_key)(r, (T)__float_as_uint(v));
	}
#endif
	CUA__UNROLL
	for (unsigned i = 0; i < n * N; i++) {
		const T x = K(cua__tree_key)(r, a[i / N].v[i % N]);

		key = x > key ? x : key;
	}
	return key;
}

/*
 * Whether a lane of the warp has a key above `known`, the greatest key that the warp has folded.
 * Otherwise these n packs cannot change the result: the warp reads in the order of the indexes, and
 * of equal keys the first counts. The whole warp calls.
 */
CUA_FORCE int K(cua__tree_improves)(const struct cua__reduce *r, const PACK *a, unsigned n,
				    uint64_t known)
{
	return cua_port_ballot(CUA__ALL_LANES, K(cua__tree_greatest)(r, a, n) > known) != 0;
}

/* `known` after the columns c have changed. */
CUA_FORCE uint64_t K(cua__tree_improved)(const C *c, uint64_t known)
{
	CUA__UNROLL
	for (unsigned j = 0; j < 16 / sizeof(T); j++)
		known = c[j].key > known ? c[j].key : known;
	for (uint32_t d = 16; d; d /= 2) {
		const uint64_t other =
			cua_port_shuffle_u64(CUA__ALL_LANES, known, cua_port_lane() ^ d);

		known = other > known ? other : known;
	}
	return known;
}
#endif

/*
 * Folds rows into the columns while at least at_once rows are left; at_once loads per array are in
 * flight. `from` has the next element of either array, and is advanced. Kinds that find an index
 * skip rows that cannot change the result: *known is the greatest key of the warp.
 */
CUA_FORCE uint32_t K(cua__tree_rows)(const struct cua__reduce *r, C *c, const T **from,
				     uint32_t row, uint32_t rows, unsigned at_once, int aligned,
				     const struct cua__cached *cached, uint64_t *known)
{
	enum { N = 16 / sizeof(T), WIDTH = 32 * N, MOST = CUA__TREE_LOADS };

	for (; row + at_once <= rows; row += at_once) {
		PACK a[MOST], b[MOST];
		uint64_t policy_x = cua__cached_policy(cached, from[0]);
		uint64_t policy_y = cua__cached_policy(cached, from[1]);

		CUA__UNROLL
		for (unsigned l = 0; l < at_once; l++) {
			a[l] = K(cua__tree_load)(from[0], aligned, policy_x);
			b[l] = K(cua__tree_two) ? K(cua__tree_load)(from[1], aligned, policy_y)
						: a[l];
			from[0] += WIDTH;
			from[1] += WIDTH;
		}
#ifdef CUA__TREE_INDEX
		if (at_once > 1 && !K(cua__tree_improves)(r, a, at_once, *known))
			continue;
#endif
		CUA__UNROLL
		for (unsigned l = 0; l < at_once; l++) {
			CUA__UNROLL
			for (unsigned j = 0; j < N; j++)
				c[j] = K(cua__tree_fold)(r, c[j], a[l].v[j], b[l].v[j], row + l);
		}
#ifdef CUA__TREE_INDEX
		if (at_once > 1)
			*known = K(cua__tree_improved)(c, *known);
#endif
	}
	(void)known;
	return row;
}

/* The value of this thread's pack in a chunk. `aligned` is a constant. */
CUA_FORCE A K(cua__tree_pack_of_chunk)(const struct cua__reduce *r,
				       const struct cua__tree_shape *shape, uint64_t chunk,
				       int aligned, const struct cua__cached *cached,
				       uint64_t *known)
{
	enum {
		N = 16 / sizeof(T),
		WIDTH = 32 * N,
		LOADS = CUA__TREE_LOADS / (K(cua__tree_two) ? 2 : 1)
	};
	uint32_t pack = cua_port_thread() % 32 * N, left, row = 0, rows;
	uint64_t strip = chunk * CUA__TREE_WARPS + cua_port_thread() / 32;
	uint64_t first = strip * shape->rows * WIDTH;
	const T *from[2] = {(const T *)r->x + first + pack, (const T *)r->y + first + pack};
	C c[N];
	A v[N];

	rows = cua__tree_strip(shape, first, WIDTH, &left);
	CUA__UNROLL
	for (unsigned j = 0; j < N; j++)
		c[j] = K(cua__tree_none)();
	row = K(cua__tree_rows)(r, c, from, row, rows, LOADS, aligned, cached, known);
	row = K(cua__tree_rows)(r, c, from, row, rows, 1, aligned, cached, known);
	CUA__UNROLL
	for (unsigned j = 0; j < N; j++) {
		int more = pack + j < left;

		if (more)
			c[j] = K(cua__tree_fold)(r, c[j], from[0][j], from[1][j], rows);
		v[j] = K(cua__tree_widen)(r, c[j], rows + (uint64_t)more,
					  r->first + first + pack + j, WIDTH);
	}
	CUA__UNROLL
	for (unsigned w = N / 2; w; w /= 2) {
		CUA__UNROLL
		for (unsigned j = 0; j < w; j++)
			v[j] = K(cua__tree_combine)(v[2 * j], v[2 * j + 1]);
	}
	return v[0];
}

/* Every thread of every block calls once. */
CUA_FN void K(cua__tree_block)(const struct cua__reduce *r, struct cua__tree_scratch *s)
{
	struct cua__tree_shape shape = cua__tree_shape_of(r, cua__reduce_count(r), sizeof(T));
	int aligned = (((uintptr_t)r->x | (uintptr_t)r->y) & 15) == 0;
	enum { LOADS = 8 }; /* partial results in flight */
	uint32_t thread = cua_port_thread(), turn = 0;
	uint64_t blocks = cua_port_grid_size(), chunk, words[sizeof(A) / 8], known = 0;
	uint64_t *partials = (uint64_t *)r->partials;
	const struct cua__cached cached =
		cua__cached(shape.n * sizeof(T) * (K(cua__tree_two) ? 2 : 1), r->kept_bytes);
	A v;

	for (chunk = cua_port_block(); r->step != CUA__TREE_ROOT && chunk < shape.chunks;
	     chunk += blocks) {
		if (aligned)
			v = K(cua__tree_pack_of_chunk)(r, &shape, chunk, 1, &cached, &known);
		else
			v = K(cua__tree_pack_of_chunk)(r, &shape, chunk, 0, &cached, &known);
		v = K(cua__tree_packs)(v, s->warps[turn]);
		turn ^= 1;
		if (thread)
			continue;
		memcpy(words, &v, sizeof(v));
		CUA__UNROLL
		for (unsigned w = 0; w < sizeof(A) / 8; w++)
			CUA_WRITE(partials[chunk * (sizeof(A) / 8) + w], words[w]);
	}
	if (r->step == CUA__TREE_CHUNKS)
		return;
	if (thread == 0)
		CUA_WRITE(s->last, (uint64_t)cua__finish_arrive(r->finish, blocks));
	cua_port_sync_block();
	if (!CUA_READ(s->last))
		return;
	v = K(cua__tree_widen)(r, K(cua__tree_none)(), 0, 0, 0);
	for (chunk = thread; chunk < shape.chunks; chunk += LOADS * CUA__TREE_THREADS) {
		A next[LOADS];

		CUA__UNROLL
		for (unsigned l = 0; l < LOADS; l++) {
			uint64_t at = chunk + l * CUA__TREE_THREADS;

			at = at < shape.chunks ? at : chunk;
			CUA__UNROLL
			for (unsigned w = 0; w < sizeof(A) / 8; w++)
				words[w] = CUA_READ(partials[at * (sizeof(A) / 8) + w]);
			memcpy(&next[l], words, sizeof(next[l]));
		}
		CUA__UNROLL
		for (unsigned l = 0; l < LOADS; l++)
			if (chunk + l * CUA__TREE_THREADS < shape.chunks)
				v = K(cua__tree_combine)(v, next[l]);
	}
	v = K(cua__tree_packs)(v, s->warps[0]);
	if (thread == 0 && r->step == CUA__TREE_VALUE)
		*(A *)r->result = v;
	else if (thread == 0)
		K(cua__tree_store)(r, shape.n, v);
}

#undef K
#undef T
#undef C
#undef A
#undef PACK
#undef CUA__KIND
