/* SPDX-License-Identifier: MIT */
/*
 * Template: runs of equal keys of BITS bits, for cpu_segment.c. A run begins where a key differs
 * from its predecessor.
 *
 * Parameter: BITS, 32 or 64, which the template undefines.
 *
 * Defines, with _<bits> after each name:
 *   differing: the number of starts among KEYS keys
 *   count, the first pass: the number of runs of a worker
 *   number, the second pass: stores the keys and offsets of the runs
 */
#define K(name) CUA__NAME_OF(name, BITS)
#define T K(key)

static inline uint64_t K(differing)(const T *keys)
{
	T count = 0;

	for (int i = 0; i < KEYS; i++)
		count += keys[i] != keys[i - 1];
	return count;
}

static void K(count)(void *arg, unsigned worker, unsigned workers)
{
	const struct runs_job *job = arg;
	const T *keys = job->r->keys;
	uint64_t count = worker == 0;
	size_t i, end;

	cua__share((size_t)job->r->n, worker, workers, &i, &end);
	i += i == 0;
	for (; end - i >= KEYS; i += KEYS)
		count += K(differing)(keys + i);
	for (; i < end; i++)
		count += keys[i] != keys[i - 1];
	job->counts[worker] = count;
}

static void K(number)(void *arg, unsigned worker, unsigned workers)
{
	const struct runs_job *job = arg;
	const struct cua__runs *r = job->r;
	const T *keys = r->keys;
	T *unique = r->unique_keys;
	uint64_t run = job->counts[worker];
	size_t i, end;

	cua__share((size_t)r->n, worker, workers, &i, &end);
	/* the key after the last stored run is the end of that run */
	while (i < end && run <= r->capacity) {
		if (i && end - i >= KEYS && !K(differing)(keys + i)) {
			i += KEYS;
			continue;
		}
		for (size_t stop = end - i > KEYS ? i + KEYS : end; i < stop && run <= r->capacity;
		     i++) {
			if (i && keys[i] == keys[i - 1])
				continue;
			if (run < r->capacity)
				unique[run] = keys[i];
			r->offsets[run++] = i;
		}
	}
}

#undef K
#undef T
#undef BITS
