/* SPDX-License-Identifier: MIT */
/*
 * Template: an operation of CUA__REDUCE_SINGLE over a worker's part of the merge path, for
 * cpu_segment.c.
 *
 * Parameter: CUA__OPERATION, the name of the operation, which the template undefines.
 *
 * Defines, with _<name> after each name:
 *   range: the accumulator of elements begin to end - 1
 *   part: a worker's part
 *   join: joins the segments that were cut
 */
#define K(name) CUA__NAME_OF(name, CUA__OPERATION)
#define T K(element_type)
#define A K(accumulator_type)
#define R K(result_type)

/*
 * Independent accumulators: 16 for long ranges, 4 for short ranges, because most segments are
 * short.
 */
static inline A K(range)(const T *x, uint64_t begin, uint64_t end)
{
	uint64_t i = begin;
	A t = 0;

	if (end - begin >= 64) {
		A chains[16] = {0};

		for (; end - i >= 16; i += 16) {
#pragma GCC unroll 16
			for (int c = 0; c < 16; c++) {
				T a = x[i + (uint64_t)c];

				chains[c] = K(combine)(chains[c], K(element)(a));
			}
		}
		for (int c = 0; c < 16; c++)
			t = K(combine)(t, chains[c]);
	} else if (end - begin >= 8) {
		A chains[4] = {0};

		for (; end - i >= 4; i += 4) {
#pragma GCC unroll 4
			for (int c = 0; c < 4; c++) {
				T a = x[i + (uint64_t)c];

				chains[c] = K(combine)(chains[c], K(element)(a));
			}
		}
		t = K(combine)(K(combine)(chains[0], chains[1]), K(combine)(chains[2], chains[3]));
	}
	for (; i < end; i++) {
		T a = x[i];

		t = K(combine)(t, K(element)(a));
	}
	return t;
}

static void K(part)(const struct job *job, unsigned worker, unsigned workers)
{
	const struct cua__path *p = &job->path;
	struct cua__path_part *part = &job->parts[worker];
	uint64_t i = part->first, i_end = part[1].first;
	uint64_t at = part_begin(p, worker, workers) - i + p->first;
	uint64_t at_end = part_begin(p, worker + 1, workers) - i_end + p->first;
	const T *x = job->s->x;
	R *results = job->s->results;
	A t = 0;

	part->ends = i_end - i;
	part->head = 0;
	if (i < i_end) {
		uint64_t next = cua__path_offset(p, i + 1);

		if (at < next) {
			t = K(range)(x, at, next);
			at = next;
		}
		put(&part->head, &t, sizeof(t));
		for (i++; i < i_end; i++) {
			next = cua__path_offset(p, i + 1);
			if (at < next) {
				t = K(range)(x, at, next);
				at = next;
				results[i] = K(value)(t);
			} else {
				results[i] = K(nothing)();
			}
		}
		t = 0;
	}
	if (at < at_end)
		t = K(range)(x, at, at_end);
	put(&part->tail, &t, sizeof(t));
}

static void K(join)(const struct job *job, unsigned workers)
{
	R *results = job->s->results;
	A carry = 0, t;

	for (unsigned w = 0; w < workers; w++) {
		const struct cua__path_part *part = &job->parts[w];
		uint64_t i = part->first;

		if (part->ends) {
			memcpy(&t, &part->head, sizeof(t));
			t = K(combine)(carry, t);
			results[i] = cua__path_offset(&job->path, i) <
						     cua__path_offset(&job->path, i + 1)
					     ? K(value)(t)
					     : K(nothing)();
			carry = 0;
		}
		memcpy(&t, &part->tail, sizeof(t));
		carry = K(combine)(carry, t);
	}
}

#undef K
#undef T
#undef A
#undef R
#undef CUA__OPERATION
