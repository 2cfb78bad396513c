/* SPDX-License-Identifier: MIT */
/*
 * Template: segmented sums of a kind (tree.h) in the order of the tree. segment_tree.h has the
 * types, the limits and the description.
 *
 * Parameter: CUA__KIND, which the template undefines. tree_block.tmpl.h must precede it.
 *
 * Defines, with _<kind> after each name:
 *   cua__fixed_put, which stores the sum of a segment
 *   cua__fixed_load cua__fixed_cut cua__fixed_packs cua__fixed_strip: a strip, by a warp
 *   cua__fixed_tiny_sum cua__fixed_tiny: a segment of few packs, by a lane
 *   cua__fixed_group cua__fixed_groups: segments of few rows, by groups of lanes
 *   cua__fixed_chunk cua__fixed_warp: a chunk, and a segment of a single chunk, by a warp
 *   cua__fixed_longer: segments that are summed by a warp or listed
 *   cua__fixed_tiny_apart cua__fixed_longer_apart cua__fixed_rest_apart, which are not inlined
 *   cua__fixed_partial cua__fixed_of_entry: the partial result of a strip, and of a chunk
 *   cua__fixed_halves: several partial results combined
 *   cua__fixed_join_lane cua__fixed_accumulator: the chunks of a segment, by a lane and by more
 *   cua__segment_fixed_short, the first kernel
 *   cua__segment_fixed_pending, the first kernel for pending segments
 *   cua__segment_fixed_strips, the second kernel
 *   cua__segment_fixed_join, the third kernel
 */
#define K(name) CUA__NAME_OF(name, CUA__KIND)
#define T K(cua__tree_element)
#define C K(cua__tree_column)
#define A K(cua__tree_value)
#define PACK struct K(cua__tree_pack)

/* Stores the sum of segment i, of n elements. */
CUA_FORCE void K(cua__fixed_put)(const struct cua__segments *s, uint64_t i, uint64_t n, A sum)
{
	struct cua__reduce one = cua__segment_reduce(s);

	/* constants for the compiler */
	one.type = one.result_type = K(CUA__FIXED_TYPE);
	one.result = (char *)s->results + i * sizeof(T);
	K(cua__tree_store)(&one, n, sum);
}

/*
 * Loads the pack at x + at of a strip; elements outside the strip may be zeros. whole: the whole
 * pack may be read.
 */
CUA_FORCE PACK K(cua__fixed_load)(const T *x, int32_t at, int32_t length, int whole)
{
	enum { N = 16 / sizeof(T) };
	PACK v;
	struct cua__pack words = {{0, 0, 0, 0}};

	if (whole) {
		if (at < length)
			words = *(const struct cua__pack *)(const void *)(x + at);
		memcpy(&v, &words, sizeof(v));
	} else {
		memcpy(&v, &words, sizeof(v));
		CUA__UNROLL
		for (int j = 0; j < N; j++)
			if (at + j >= 0 && at + j < length)
				v.v[j] = x[at + j];
	}
	return v;
}

/* Replaces the elements before and after the strip by zeros. */
CUA_FORCE void K(cua__fixed_cut)(PACK *v, int32_t at, int32_t length)
{
	enum { N = 16 / sizeof(T) };
	T zero;

	memset(&zero, 0, sizeof(zero));
	CUA__UNROLL
	for (int j = 0; j < N; j++)
		v->v[j] = (uint32_t)(at + j) < (uint32_t)length ? v->v[j] : zero;
}

/*
 * Returns the value of this lane's pack in a strip at x, of `elements` elements and at most `rows`
 * rows. The whole warp calls. `whole` is a constant.
 */
CUA_FORCE A K(cua__fixed_packs)(const struct cua__reduce *one, const T *x, uint32_t shift,
				uint64_t elements, uint64_t rows, int whole)
{
	enum { N = 16 / sizeof(T), WIDTH = 32 * N, LOADS = CUA__TREE_LOADS };
	const uint32_t lane = cua_port_lane();
	const int32_t length = (int32_t)elements, full = (int32_t)rows * WIDTH,
		      of_lane = (int32_t)(lane * N);
	const int32_t end = length + (int32_t)shift < full ? length + (int32_t)shift : full;
	PACK v[LOADS], last;
	C c[N];
	A a[N];

	CUA__UNROLL
	for (unsigned j = 0; j < N; j++)
		c[j] = K(cua__tree_none)();
	/* the elements that the shift moves out of the last row */
	last = K(cua__fixed_load)(x, full - (int32_t)shift + of_lane, length, whole);
	for (int32_t row = -(int32_t)shift; row < end - (int32_t)shift; row += LOADS * WIDTH) {
		CUA__UNROLL
		for (int l = 0; l < LOADS; l++)
			v[l] = K(cua__fixed_load)(x, row + l * WIDTH + of_lane, length, whole);
		CUA__UNROLL
		for (int l = 0; l < LOADS; l++) {
			const int32_t at = row + l * WIDTH;

			/* uniform in the warp */
			if (at >= length)
				break;
			if (at < 0 || at + WIDTH > length)
				K(cua__fixed_cut)(&v[l], at + of_lane, length);
			CUA__UNROLL
			for (unsigned j = 0; j < N; j++)
				c[j] = K(cua__tree_fold)(one, c[j], v[l].v[j], v[l].v[j], 0);
		}
	}
	if (shift && full - (int32_t)shift < length) {
		K(cua__fixed_cut)(&last, full - (int32_t)shift + of_lane, length);
		CUA__UNROLL
		for (unsigned j = 0; j < N; j++)
			c[j] = K(cua__tree_fold)(one, c[j], last.v[j], last.v[j], 0);
	}
	CUA__UNROLL
	for (unsigned j = 0; j < N; j++)
		a[j] = K(cua__tree_widen)(one, c[j], 0, 0, 0);
	CUA__UNROLL
	for (unsigned step = 1; step < N; step *= 2) {
		A moved[N];

		if (!(shift & step))
			continue;
		CUA__UNROLL
		for (unsigned j = 0; j < N; j++)
			moved[j] = j + step < N
					   ? a[j + step]
					   : K(cua__tree_from)(a[j + step - N], (lane + 1) % 32);
		CUA__UNROLL
		for (unsigned j = 0; j < N; j++)
			a[j] = moved[j];
	}
	CUA__UNROLL
	for (unsigned w = N / 2; w; w /= 2) {
		CUA__UNROLL
		for (unsigned j = 0; j < w; j++)
			a[j] = K(cua__tree_combine)(a[2 * j], a[2 * j + 1]);
	}
	return a[0];
}

/*
 * The same for the strip at element `first` of the array; an empty value if length is 0.
 */
CUA_FORCE A K(cua__fixed_strip)(const struct cua__reduce *one, const struct cua__path *path,
				const void *array, uint64_t first, uint64_t length, uint64_t rows)
{
	const T *x = (const T *)array + first;
	const uint32_t shift = (uint32_t)((uintptr_t)x % 16 / sizeof(T));

	if (!length)
		return K(cua__tree_widen)(one, K(cua__tree_none)(), 0, 0, 0);
	if (cua__fixed_whole(path, first, length, shift, 16 / sizeof(T)))
		return K(cua__fixed_packs)(one, x, shift, length, rows, 1);
	return K(cua__fixed_packs)(one, x, shift, length, rows, 0);
}

/* Combines n values, a power of two, by halves: each with the value n / 2 behind it, and so on. */
CUA_FORCE A K(cua__fixed_halves)(A *v, unsigned n)
{
	CUA__UNROLL
	for (unsigned half = n / 2; half; half /= 2) {
		CUA__UNROLL
		for (unsigned i = 0; i < half; i++)
			v[i] = K(cua__tree_combine)(v[i], v[i + half]);
	}
	return v[0];
}

/*
 * A lane sums a tiny segment at x, of `length` elements. packed: x is aligned to a pack.
 */
CUA_FORCE A K(cua__fixed_tiny_sum)(const struct cua__reduce *one, const T *x, uint32_t length,
				   int packed)
{
	enum { N = 16 / sizeof(T), PACKS = CUA__FIXED_TINY_PACKS };
	PACK v;
	A sum[PACKS], a[N];
	T zero;

	memset(&zero, 0, sizeof(zero));
	CUA__UNROLL
	for (uint32_t p = 0; p < PACKS; p++) {
		sum[p] = K(cua__tree_widen)(one, K(cua__tree_none)(), 0, 0, 0);
		if (p * N < length) {
			if (packed && p * N + N <= length) {
				struct cua__pack words =
					*(const struct cua__pack *)(const void *)(x + p * N);

				memcpy(&v, &words, sizeof(v));
			} else {
				CUA__UNROLL
				for (uint32_t j = 0; j < N; j++)
					v.v[j] = p * N + j < length ? CUA_READ(x[p * N + j]) : zero;
			}
			CUA__UNROLL
			for (uint32_t j = 0; j < N; j++)
				a[j] = K(cua__tree_widen)(one,
							  K(cua__tree_fold)(one,
									    K(cua__tree_none)(),
									    v.v[j], zero, 0),
							  0, 0, 0);
			CUA__UNROLL
			for (uint32_t w = N / 2; w; w /= 2) {
				CUA__UNROLL
				for (uint32_t j = 0; j < w; j++)
					a[j] = K(cua__tree_combine)(a[2 * j], a[2 * j + 1]);
			}
			sum[p] = a[0];
		}
	}
	return K(cua__fixed_halves)(sum, PACKS);
}

CUA_FORCE void K(cua__fixed_tiny)(const struct cua__segments *s, uint64_t i, uint64_t begin,
				  uint64_t n)
{
	const struct cua__reduce one = cua__segment_reduce(s);
	const T *x = (const T *)s->x + begin;

	K(cua__fixed_put)
	(s, i, n, K(cua__fixed_tiny_sum)(&one, x, (uint32_t)n, ((uintptr_t)x & 15) == 0));
}

/*
 * Groups of lanes sum segments of at most CUA__FIXED_GROUP_ROWS rows, a segment each. Every lane of
 * the warp calls. n is 0 for a group without a segment.
 */
CUA_FORCE void K(cua__fixed_group)(const struct cua__segments *s, const struct cua__path *path,
				   uint64_t i, uint64_t begin, uint64_t n)
{
	enum {
		N = 16 / sizeof(T),
		WIDTH = 32 * N,
		LANES = CUA__FIXED_GROUP(T, C),
		PACKS = 32 / LANES, /* per lane and row */
		ROWS = CUA__FIXED_GROUP_ROWS
	};
	const struct cua__reduce one = cua__segment_reduce(s);
	const T *x = (const T *)s->x + begin;
	const uint32_t shift = (uint32_t)((uintptr_t)x % 16 / sizeof(T));
	const uint32_t lane = cua_port_lane(), of = lane % LANES;
	/* below every index, if the group has no segment */
	const int32_t length = n ? (int32_t)n : -N, first = (int32_t)(of * N) - (int32_t)shift;
	const int whole =
		!cua_port_ballot(CUA__ALL_LANES, n && !cua__fixed_whole(path, begin, n, shift, N));
	PACK v[ROWS][PACKS], last;
	C c[PACKS][N];
	A a[PACKS][N];

	if (whole) {
		CUA__UNROLL
		for (int q = 0; q < ROWS * PACKS; q++)
			v[q / PACKS][q % PACKS] =
				K(cua__fixed_load)(x, first + q * LANES * N, length, 1);
		last = K(cua__fixed_load)(x, first + ROWS * WIDTH, length, 1);
	} else {
		CUA__UNROLL
		for (int q = 0; q < ROWS * PACKS; q++)
			v[q / PACKS][q % PACKS] =
				K(cua__fixed_load)(x, first + q * LANES * N, length, 0);
		last = K(cua__fixed_load)(x, first + ROWS * WIDTH, length, 0);
	}
	CUA__UNROLL
	for (int p = 0; p < PACKS; p++) {
		CUA__UNROLL
		for (int j = 0; j < N; j++)
			c[p][j] = K(cua__tree_none)();
		CUA__UNROLL
		for (int row = 0; row < ROWS; row++) {
			K(cua__fixed_cut)(&v[row][p], first + row * WIDTH + p * LANES * N, length);
			CUA__UNROLL
			for (int j = 0; j < N; j++)
				c[p][j] = K(cua__tree_fold)(&one, c[p][j], v[row][p].v[j],
							    v[row][p].v[j], 0);
		}
	}
	K(cua__fixed_cut)(&last, first + ROWS * WIDTH, length);
	CUA__UNROLL
	for (int j = 0; j < N; j++)
		c[0][j] = K(cua__tree_fold)(&one, c[0][j], last.v[j], last.v[j], 0);
	CUA__UNROLL
	for (int p = 0; p < PACKS; p++) {
		CUA__UNROLL
		for (int j = 0; j < N; j++)
			a[p][j] = K(cua__tree_widen)(&one, c[p][j], 0, 0, 0);
	}
	CUA__UNROLL
	for (int step = 1; step < N; step *= 2) {
		A next[PACKS][N];

		/*
		 * columns of the next pack: the next lane has it, or lane 0 of the group in its
		 * next p
		 */
		CUA__UNROLL
		for (int p = 0; p < PACKS; p++) {
			CUA__UNROLL
			for (int j = 0; j < step; j++)
				next[p][j] = K(cua__tree_from)(of ? a[p][j] : a[(p + 1) % PACKS][j],
							       lane - of + (of + 1) % LANES);
		}
		CUA__UNROLL
		for (int p = 0; p < PACKS; p++) {
			CUA__UNROLL
			for (int j = 0; j < N; j++) {
				A moved = j + step < N ? a[p][j + step] : next[p][j + step - N];

				a[p][j] = shift & step ? moved : a[p][j];
			}
		}
	}
	CUA__UNROLL
	for (int p = 0; p < PACKS; p++) {
		CUA__UNROLL
		for (int w = N / 2; w; w /= 2) {
			CUA__UNROLL
			for (int j = 0; j < w; j++)
				a[p][j] = K(cua__tree_combine)(a[p][2 * j], a[p][2 * j + 1]);
		}
	}
	CUA__UNROLL
	for (int d = PACKS / 2; d; d /= 2) {
		CUA__UNROLL
		for (int p = 0; p < d; p++)
			a[p][0] = K(cua__tree_combine)(a[p][0], a[p + d][0]);
	}
	a[0][0] = K(cua__tree_lanes)(a[0][0], LANES / 2);
	if (of == 0 && n)
		K(cua__fixed_put)(s, i, n, a[0][0]);
}

/* A warp sums chunk c of a segment; the result is in lane 0. */
CUA_FORCE A K(cua__fixed_chunk)(const struct cua__reduce *one, const struct cua__segments *s,
				const struct cua__path *path, uint64_t begin, uint64_t n,
				uint64_t rows, uint64_t c)
{
	const uint64_t strip = rows * (32 * 16 / sizeof(T));
	A v = K(cua__tree_widen)(one, K(cua__tree_none)(), 0, 0, 0), sum;

	for (uint32_t w = 0; w < CUA__TREE_WARPS; w++) {
		uint64_t first = (c * CUA__TREE_WARPS + w) * strip, length;

		if (first >= n)
			break;
		length = n - first < strip ? n - first : strip;
		sum = K(cua__tree_lanes)(
			K(cua__fixed_strip)(one, path, s->x, begin + first, length, rows), 16);
		sum = K(cua__tree_from)(sum, 0);
		if (cua_port_lane() == w)
			v = sum;
	}
	return K(cua__tree_lanes)(v, CUA__TREE_WARPS / 2);
}

/* A warp sums a segment of a single chunk. */
CUA_FORCE void K(cua__fixed_warp)(const struct cua__segments *s, const struct cua__path *path,
				  uint64_t i, uint64_t begin, uint64_t n)
{
	const struct cua__reduce one = cua__segment_reduce(s);
	A v = K(cua__fixed_chunk)(&one, s, path, begin, n, CUA__TREE_ROWS, 0);

	if (cua_port_lane() == 0)
		K(cua__fixed_put)(s, i, n, v);
}

/*
 * Sums the segments of few rows among segments first to first + 31. Each lane has a segment.
 */
CUA_FORCE void K(cua__fixed_groups)(const struct cua__segments *s, const struct cua__path *path,
				    uint64_t first, uint64_t begin, uint64_t n)
{
	enum { N = 16 / sizeof(T), LANES = CUA__FIXED_GROUP(T, C) };
	const uint32_t lane = cua_port_lane();
	uint32_t rest =
		cua_port_ballot(CUA__ALL_LANES, n > CUA__FIXED_TINY_PACKS * N &&
							n <= CUA__FIXED_GROUP_ROWS * 32 * N);

	while (rest) {
		uint32_t from = 32;
		uint64_t its_n, its_begin;

		for (uint32_t group = 0; group < 32 / LANES; group++) {
			if (lane / LANES == group && rest)
				from = cua_port_ffs_u32(rest) - 1;
			rest &= rest - 1;
		}
		its_n = cua_port_shuffle_u64(CUA__ALL_LANES, n, from % 32);
		its_begin = cua_port_shuffle_u64(CUA__ALL_LANES, begin, from % 32);
		K(cua__fixed_group)(s, path, first + from, its_begin, from < 32 ? its_n : 0);
	}
}

/*
 * The same for segments of more than `few` elements: the warp sums segments of at most `most`
 * elements, and lists longer segments.
 */
CUA_FORCE void K(cua__fixed_longer)(const struct cua__segments *s, const struct cua__fixed_lists *f,
				    const struct cua__path *path, uint64_t first, uint64_t begin,
				    uint64_t n, uint32_t few, uint32_t most)
{
	const int listed = n > most;
	uint32_t rest = few < most ? cua_port_ballot(CUA__ALL_LANES, n > few && !listed) : 0;

	for (; rest; rest &= rest - 1) {
		uint32_t from = cua_port_ffs_u32(rest) - 1;
		uint64_t its_n = cua_port_shuffle_u64(CUA__ALL_LANES, n, from);
		uint64_t its_begin = cua_port_shuffle_u64(CUA__ALL_LANES, begin, from);

		K(cua__fixed_warp)(s, path, first + from, its_begin, its_n);
	}
	if (cua_port_ballot(CUA__ALL_LANES, listed) &&
	    !cua__fixed_list(f, sizeof(T), first, begin, n, listed) && listed)
		K(cua__fixed_put)
	(s, first + cua_port_lane(), n, K(cua__tree_widen)(NULL, K(cua__tree_none)(), 0, 0, 0));
}

/*
 * The calls below are not inlined, because they would take registers from more frequent code.
 */
CUA__FIXED_APART void K(cua__fixed_tiny_apart)(const struct cua__segments *s, uint64_t i,
					       uint64_t begin, uint64_t n)
{
	K(cua__fixed_tiny)(s, i, begin, n);
}

CUA__FIXED_APART void K(cua__fixed_longer_apart)(const struct cua__segments *s,
						 const struct cua__fixed_lists *f,
						 struct cua__path path, uint64_t first,
						 uint64_t begin, uint64_t n)
{
	const uint32_t few = CUA__FIXED_GROUP_ROWS * (uint32_t)(32 * 16 / sizeof(T));

	K(cua__fixed_longer)
	(s, f, &path, first, begin, n, few, CUA__TREE_WARPS * cua__fixed_strip(sizeof(T)));
}

CUA__FIXED_APART void K(cua__fixed_rest_apart)(const struct cua__segments *s,
					       const struct cua__fixed_lists *f,
					       struct cua__path path, uint64_t first,
					       uint64_t begin, uint64_t n)
{
	K(cua__fixed_groups)(s, &path, first, begin, n);
	K(cua__fixed_longer_apart)(s, f, path, first, begin, n);
}

/* The partial result of strip t of the list. */
CUA_FORCE A K(cua__fixed_partial)(const struct cua__fixed_lists *f, uint64_t t)
{
	enum { WORDS = sizeof(A) / 8 };
	uint64_t words[WORDS];
	A v;

	CUA__UNROLL
	for (unsigned w = 0; w < WORDS; w++)
		words[w] = CUA_READ(f->partial[t * WORDS + w]);
	memcpy(&v, words, sizeof(v));
	return v;
}

/* The partial result of the chunk of entry e. */
CUA_FORCE A K(cua__fixed_of_entry)(const struct cua__fixed_lists *f, uint64_t e)
{
	A v[CUA__TREE_WARPS];

	CUA__UNROLL
	for (unsigned w = 0; w < CUA__TREE_WARPS; w++)
		v[w] = K(cua__fixed_partial)(f, e * CUA__TREE_WARPS + w);
	return K(cua__fixed_halves)(v, CUA__TREE_WARPS);
}

/* A lane combines the n chunks of entries e to e + n - 1. */
CUA_FORCE A K(cua__fixed_join_lane)(const struct cua__fixed_lists *f, uint64_t e, uint32_t n)
{
	enum { MOST = CUA__FIXED_LANE_CHUNKS };
	A v[MOST];

	CUA__UNROLL
	for (uint32_t c = 0; c < MOST; c++)
		v[c] = c < n ? K(cua__fixed_of_entry)(f, e + c)
			     : K(cua__tree_widen)(NULL, K(cua__tree_none)(), 0, 0, 0);
	return K(cua__fixed_halves)(v, MOST);
}

/*
 * The value of accumulator `own` of the n chunks of entries e to e + n - 1.
 */
CUA_FORCE A K(cua__fixed_accumulator)(const struct cua__fixed_lists *f, uint64_t e, uint32_t n,
				      uint32_t own)
{
	A v = K(cua__tree_widen)(NULL, K(cua__tree_none)(), 0, 0, 0);

	for (uint32_t c = own; c < n; c += CUA__TREE_THREADS)
		v = K(cua__tree_combine)(v, K(cua__fixed_of_entry)(f, e + c));
	return v;
}

/*
 * The first kernel. Progress: no thread waits for another warp. `most` is a constant: the expected
 * length of most segments.
 */
CUA_FORCE void K(cua__segment_fixed_short)(const struct cua__segments *s,
					   const struct cua__fixed_lists *f,
					   enum cua__fixed_length most)
{
	enum { N = 16 / sizeof(T), TINY = CUA__FIXED_TINY_PACKS * N };
	const uint32_t lane = cua_port_lane();
	const uint64_t warps = cua_port_grid_size() * (cua_port_block_size() / 32);
	const uint64_t warp =
		cua_port_block() * (cua_port_block_size() / 32) + cua_port_thread() / 32;
	struct cua__path path;
	uint32_t at_once;

	cua__path_init(&path, s);
	at_once = cua__fixed_at_once(&path, warps, cua__fixed_strip(sizeof(T)), most);
	for (uint64_t first = warp * at_once; first < path.segments; first += warps * at_once) {
		uint64_t i = first + lane, begin = 0, n = 0;

		if (lane < at_once && i < path.segments) {
			uint64_t end = cua__path_offset(&path, i + 1);

			begin = cua__path_offset(&path, i);
			n = end > begin ? end - begin : 0;
			if (n <= TINY && most == CUA__FIXED_TINY)
				K(cua__fixed_tiny)(s, i, begin, n);
			else if (n <= TINY)
				K(cua__fixed_tiny_apart)(s, i, begin, n);
		}
		if (!cua_port_ballot(CUA__ALL_LANES, n > TINY))
			continue;
		if (most == CUA__FIXED_TINY) {
			K(cua__fixed_rest_apart)(s, f, path, first, begin, n);
		} else if (most == CUA__FIXED_FEW_ROWS) {
			K(cua__fixed_groups)(s, &path, first, begin, n);
			if (cua_port_ballot(CUA__ALL_LANES, n > CUA__FIXED_GROUP_ROWS * 32 * N))
				K(cua__fixed_longer_apart)(s, f, path, first, begin, n);
		} else if (most == CUA__FIXED_LONGER) {
			K(cua__fixed_longer)
			(s, f, &path, first, begin, n, TINY,
			 CUA__TREE_WARPS * cua__fixed_strip(sizeof(T)));
		} else {
			K(cua__fixed_longer)(s, f, &path, first, begin, n, TINY, TINY);
		}
	}
}

/*
 * The first kernel for the pending segments alone: those with a bit in s->pending. Most of them are
 * tiny. A warp reads 32 words of the bitmap at a time, and then processes a word's segments.
 * Progress: no thread waits for another warp.
 */
CUA_FORCE void K(cua__segment_fixed_pending)(const struct cua__segments *s,
					     const struct cua__fixed_lists *f)
{
	enum { TINY = CUA__FIXED_TINY_PACKS * (16 / sizeof(T)) };
	const uint32_t lane = cua_port_lane(), of_block = cua_port_block_size() / 32;
	const uint64_t warps = cua_port_grid_size() * of_block;
	struct cua__path path;
	uint64_t words;

	cua__path_init(&path, s);
	words = path.segments / 32 + (path.segments % 32 != 0);
	for (uint64_t base = (cua_port_block() * of_block + cua_port_thread() / 32) * 32;
	     base < words; base += warps * 32) {
		const uint32_t own = base + lane < words ? CUA_READ(s->pending[base + lane]) : 0;
		uint32_t some = cua_port_ballot(CUA__ALL_LANES, own != 0);

		for (; some; some &= some - 1) {
			const uint32_t from = cua_port_ffs_u32(some) - 1;
			const uint32_t bits = cua_port_shuffle_u32(CUA__ALL_LANES, own, from);
			const uint64_t first = (base + from) * 32, i = first + lane;
			uint64_t begin = 0, n = 0;

			if (bits >> lane & 1) {
				begin = cua__path_offset(&path, i);
				n = cua__path_offset(&path, i + 1) - begin;
				if (n <= TINY)
					K(cua__fixed_tiny)(s, i, begin, n);
			}
			if (cua_port_ballot(CUA__ALL_LANES, n > TINY))
				K(cua__fixed_rest_apart)(s, f, path, first, begin, n);
		}
	}
}

/*
 * The second kernel: the strips of the list. Progress: no thread waits for another warp. Step t of
 * the grid is a strip of entry t / CUA__TREE_WARPS. A chunk may have fewer strips; the values of
 * the others are empty.
 */
CUA_FORCE void K(cua__segment_fixed_strips)(const struct cua__segments *s,
					    const struct cua__fixed_lists *f)
{
	enum { WORDS = sizeof(A) / 8 };
	const uint64_t warps = cua_port_grid_size() * (cua_port_block_size() / 32);
	const uint64_t strips = cua__fixed_entries(f) * CUA__TREE_WARPS;
	const struct cua__reduce one = cua__segment_reduce(s);
	struct cua__fixed_entry next = {0, 0, 0, 0, 0};
	struct cua__path path;
	uint64_t t = cua_port_block() * (cua_port_block_size() / 32) + cua_port_thread() / 32;

	cua__path_init(&path, s);
	if (t < strips)
		next = CUA_READ(f->entry[t / CUA__TREE_WARPS]);
	for (; t < strips; t += warps) {
		const struct cua__fixed_entry e = next;
		const uint64_t strip = e.rows * (uint64_t)(32 * 16 / sizeof(T));
		const uint64_t at = cua__fixed_strip_at(t), before = at % CUA__TREE_WARPS * strip;
		uint64_t length = e.n > before ? e.n - before : 0, words[WORDS];
		A v;

		/* loaded ahead, so that the elements of the next strip can be loaded at once */
		if (t + warps < strips)
			next = CUA_READ(f->entry[(t + warps) / CUA__TREE_WARPS]);
		if (length > strip)
			length = strip;
		v = K(cua__tree_lanes)(
			K(cua__fixed_strip)(&one, &path, s->x, e.first + before, length, e.rows),
			16);
		memcpy(words, &v, sizeof(v));
		CUA__UNROLL
		for (unsigned w = 0; w < WORDS; w++)
			if (cua_port_lane() == 0)
				CUA_WRITE(f->partial[at * WORDS + w], words[w]);
	}
}

/*
 * The third kernel, of blocks of CUA__TREE_THREADS threads: combines the partial results of each
 * listed segment and stores its sum. A thread has an entry. The thread of a segment's first entry
 * combines up to CUA__FIXED_LANE_CHUNKS chunks itself. Its warp combines up to
 * CUA__FIXED_WARP_CHUNKS chunks, and the block more.
 *
 * Progress: a block waits only at its own barriers.
 */
CUA_FORCE void K(cua__segment_fixed_join)(const struct cua__segments *s,
					  const struct cua__fixed_lists *f,
					  struct cua__fixed_scratch *sh)
{
	const uint64_t entries = cua__fixed_entries(f);
	const uint32_t thread = cua_port_thread(), lane = cua_port_lane();

	for (uint64_t base = cua_port_block() * CUA__TREE_THREADS; base < entries;
	     base += cua_port_grid_size() * CUA__TREE_THREADS) {
		const uint64_t e = base + thread;
		uint32_t chunks = e < entries ? CUA_READ(f->entry[e].chunks) : 0, of_warp;
		uint64_t i = chunks ? CUA_READ(f->entry[e].segment) : 0;

		if (chunks && chunks <= CUA__FIXED_LANE_CHUNKS)
			K(cua__fixed_put)(s, i, 0, K(cua__fixed_join_lane)(f, e, chunks));
		of_warp = cua_port_ballot(CUA__ALL_LANES, chunks > CUA__FIXED_LANE_CHUNKS &&
								  chunks <= CUA__FIXED_WARP_CHUNKS);
		for (; of_warp; of_warp &= of_warp - 1) {
			const uint32_t from = cua_port_ffs_u32(of_warp) - 1;
			const uint32_t n = cua_port_shuffle_u32(CUA__ALL_LANES, chunks, from);
			const A v = K(cua__fixed_accumulator)(f, e - lane + from, n, lane);
			const A sum = K(cua__tree_from)(K(cua__tree_lanes)(v, 16), 0);

			if (lane == from)
				K(cua__fixed_put)(s, i, 0, sum);
		}
		of_warp = cua_port_ballot(CUA__ALL_LANES, chunks > CUA__FIXED_WARP_CHUNKS);
		if (lane == 0)
			CUA_WRITE(sh->of_block[thread / 32], of_warp);
		cua_port_sync_block();
		for (uint32_t w = 0; w < CUA__TREE_WARPS; w++)
			for (uint32_t some = CUA_READ(sh->of_block[w]); some; some &= some - 1) {
				const uint64_t at = base + w * 32 + cua_port_ffs_u32(some) - 1;
				A v = K(cua__fixed_accumulator)(
					f, at, CUA_READ(f->entry[at].chunks), thread);

				v = K(cua__tree_packs)(v, sh->warps);
				if (thread == 0)
					K(cua__fixed_put)
				(s, CUA_READ(f->entry[at].segment), 0, v);
				/* the warps' values are read before the next ones are written */
				cua_port_sync_block();
			}
		/* of_block is read before the next ballots are written */
		cua_port_sync_block();
	}
}

#undef K
#undef T
#undef C
#undef A
#undef PACK
#undef CUA__KIND
