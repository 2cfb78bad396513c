/* SPDX-License-Identifier: MIT */
/*
 * Template: reductions of a kind (tree.h) on the CPU, for cpu_tree.c.
 *
 * Parameter: CUA__KIND, which the template undefines.
 *
 * Defines, with _<kind> after each name:
 *   values, strip: inlined into the functions for each vector width
 *   finish
 */
#define K(name) CUA__NAME_OF(name, CUA__KIND)
#define T K(cua__tree_element)
#define C K(cua__tree_column)
#define A K(cua__tree_value)

#define FOLD(l) v = K(cua__tree_fold)(&call, v, x[j + (l)*WIDTH], y[j + (l)*WIDTH], row + (l));

#define FOLD_8 FOLD(0) FOLD(1) FOLD(2) FOLD(3) FOLD(4) FOLD(5) FOLD(6) FOLD(7)

/*
 * If a pack has at least n columns: combines neighbours of `from` into `to`. The compiler
 * vectorizes a loop between two arrays.
 */
#define PAIR(from, to, n)                                                                          \
	if (N >= n) {                                                                              \
		for (size_t j = 0; j < WIDTH / n; j++)                                             \
			to[j] = K(cua__tree_combine)(from[2 * j], from[2 * j + 1]);                \
		packs = to;                                                                        \
	}

/* Combines values 0 to used - 1 of 2 * half values with stride `apart`. */
CUA_FORCE A K(values)(A *v, unsigned half, unsigned apart, unsigned used)
{
	for (unsigned d = half; d; d /= 2)
		for (unsigned i = 0; i < d && i + d < used; i++)
			v[i * apart] = K(cua__tree_combine)(v[i * apart], v[(i + d) * apart]);
	return v[0];
}

CUA_FORCE A K(strip)(const struct cua__reduce *r, uint64_t first, uint32_t rows, uint32_t left,
		     const unsigned n_packs)
{
	enum { N = 16 / sizeof(T) };
	const size_t WIDTH = n_packs * N;
	const T *x = elements_from(r->x, first, sizeof(T));
	const T *y = elements_from(second_array(r), first, sizeof(T));
	struct cua__reduce call = *r;
	uint32_t row = 0;
	unsigned used = n_packs;
	C c[32 * N];
	A v[32 * N], pairs[32 * N], *packs = v;

	if (rows >= 8) {
		for (size_t j = 0; j < WIDTH; j++) {
			C v = K(cua__tree_none)();

			FOLD_8
			c[j] = v;
		}
		for (row = 8; row + 8 <= rows; row += 8) {
			x += 8 * WIDTH;
			y += 8 * WIDTH;
			for (size_t j = 0; j < WIDTH; j++) {
				C v = c[j];

				FOLD_8
				c[j] = v;
			}
		}
		x += 8 * WIDTH;
		y += 8 * WIDTH;
	} else {
		for (size_t j = 0; j < WIDTH; j++)
			c[j] = K(cua__tree_none)();
	}
	for (; row < rows; row++, x += WIDTH, y += WIDTH) {
		for (size_t j = 0; j < WIDTH; j++) {
			C v = c[j];

			FOLD(0)
			c[j] = v;
		}
	}
	for (size_t j = 0; j < left; j++) {
		C v = c[j];

		FOLD(0)
		c[j] = v;
	}
	if (!rows)
		used = left ? (left + N - 1) / N : 1;
	for (size_t j = 0; j < WIDTH; j++)
		v[j] = K(cua__tree_widen)(&call, c[j], rows + (j < left), r->first + first + j,
					  WIDTH);
	PAIR(v, pairs, 2)
	PAIR(pairs, v, 4)
	PAIR(v, pairs, 8)
	return used == n_packs ? K(values)(packs, n_packs / 2, 1, n_packs)
			       : K(values)(packs, n_packs / 2, 1, used);
}

/*
 * Computes the result from the chunks' partial results, or from the elements if partials is NULL.
 */
static void K(finish)(const struct cua__reduce *r, const struct cua__tree_shape *shape,
		      const void *partials, chunk_fn *of_chunk)
{
	A v[CUA__TREE_THREADS], next;
	unsigned used = CUA__TREE_THREADS, warps, lanes;

	for (uint64_t chunk = 0; chunk < shape->chunks; chunk++) {
		A *accumulator = &v[chunk % CUA__TREE_THREADS];

		if (partials)
			memcpy(&next, (const char *)partials + chunk * sizeof(A), sizeof(A));
		else
			of_chunk(r, shape, chunk, &next);
		*accumulator =
			chunk < CUA__TREE_THREADS ? next : K(cua__tree_combine)(*accumulator, next);
	}
	if (shape->chunks < used)
		used = (unsigned)shape->chunks;
	warps = (used + 31) / 32;
	for (unsigned w = 0; w < warps; w++) {
		lanes = used - w * 32 < 32 ? used - w * 32 : 32;
		(void)K(values)(v + w * 32, 16, 1, lanes);
	}
	(void)K(values)(v, CUA__TREE_WARPS / 2, 32, warps);
	if (r->step == CUA__TREE_VALUE)
		memcpy(r->result, v, sizeof(A));
	else
		K(cua__tree_store)(r, shape->n, v[0]);
}

#undef FOLD
#undef FOLD_8
#undef PAIR
#undef K
#undef T
#undef C
#undef A
#undef CUA__KIND
