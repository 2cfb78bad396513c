/* SPDX-License-Identifier: MIT */
/*
 * Template: segmented sums of a kind (tree.h) in mode FIXED, for cpu_segment.c.
 *
 * Parameter: CUA__KIND, which the template undefines.
 *
 * Defines, with _<kind> after each name:
 *   one_element, short: the value of an element, and of a short segment
 *   fixed: reduces or defers segments i to i_end - 1
 */
#define K(name) CUA__NAME_OF(name, CUA__KIND)
#define T K(cua__tree_element)
#define C K(cua__tree_column)
#define A K(cua__tree_value)

static inline A K(one_element)(const struct cua__reduce *r, T a)
{
	C c = K(cua__tree_fold)(r, K(cua__tree_none)(), a, a, 0);

	return K(cua__tree_widen)(r, c, 1, 0, 0);
}

/*
 * A sum of at most 32 packs, n > 0: each column has a single element and each pack a single row. A
 * missing element would add +0, so it is left out.
 */
static A K(short)(const struct cua__reduce *r, const T *x, unsigned n)
{
	enum { N = 16 / sizeof(T) };
	unsigned packs = 0, left = n;
	A v[32], c[N];

	if (n == 1)
		return K(one_element)(r, x[0]);
	for (; left; left -= left < N ? left : N, x += N) {
		for (unsigned j = 0; j < N; j++)
			c[j] = j < left ? K(one_element)(r, x[j])
					: K(cua__tree_widen)(r, K(cua__tree_none)(), 0, 0, 0);
		for (unsigned w = N / 2; w; w /= 2)
			for (unsigned j = 0; j < w; j++)
				c[j] = K(cua__tree_combine)(c[2 * j], c[2 * j + 1]);
		v[packs++] = c[0];
	}
	for (unsigned d = 16; d; d /= 2) {
		if (packs <= d)
			continue;
		for (unsigned i = 0; i + d < packs; i++)
			v[i] = K(cua__tree_combine)(v[i], v[i + d]);
		packs = d;
	}
	return v[0];
}

static void K(fixed)(struct fixed_job *f, uint64_t i, uint64_t i_end)
{
	const struct cua__path *p = &f->job.path;
	const T *x = f->job.s->x;
	uint64_t begin, end = cua__path_offset(p, i), n, index;
	struct cua__reduce r = cua__segment_reduce(f->job.s);

	for (; i < i_end; i++) {
		begin = end;
		end = cua__path_offset(p, i + 1);
		n = begin < end ? end - begin : 0;
		if (n <= 32 * 16 / sizeof(T)) {
			A v = K(cua__tree_widen)(&r, K(cua__tree_none)(), 0, 0, 0);

			if (n)
				v = K(short)(&r, x + begin, (unsigned)n);
			r.result = (T *)f->job.s->results + i;
			K(cua__tree_store)(&r, n, v);
			continue;
		}
		if (n >= LONG) {
			index = cua_port_fetch_add_u64(&f->n_long, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
						       CUA_SPACE_GENERIC);
			if (index < f->most_long) {
				f->long_segments[index] = i;
				continue;
			}
		}
		r = one_segment(f->job.s, i, begin, n);
		cua__cpu_tree_serial(&r);
	}
}

#undef K
#undef T
#undef C
#undef A
#undef CUA__KIND
