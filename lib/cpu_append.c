/* SPDX-License-Identifier: MIT */
/*
 * The filter on the CPU: a worker collects what it keeps of a piece in a small buffer, reserves all
 * of it at once, and copies what has a place.
 */
#include "config.h"

#include "append.h"

/* Fewer elements than this are not worth a thread. */
#define GRAIN 32768
/* Elements between two reservations. */
#define PIECE 2048

struct job {
	const struct cua_append_view *view;
	size_t n;
	const void *x;
	enum cua_compare compare;
	const void *value;
};

static enum cua_status cpu_size(struct cua_context *ctx, const struct cua_append_view *view,
				uint64_t *size)
{
	uint64_t demand = cua_port_load_b64(&view->cursor->demand, CUA_RELAXED, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GLOBAL);

	(void)ctx;
	*size = demand < view->capacity ? demand : view->capacity;
	return CUA_OK;
}

static void store(const struct cua_append_view *view, const void *kept, size_t count)
{
	uint64_t first;

	if (!count)
		return;
	first = cua_append_reserve(view, count);
	if (first >= view->capacity)
		return;
	if (count > view->capacity - first)
		count = (size_t)(view->capacity - first);
	memcpy(cua_append_at(view, first), kept, count * (size_t)view->item_size);
}

/*
 * Each element is stored and then kept by moving on, which needs no branch. The comparison is a
 * constant in each of the six loops.
 */
#define FILTER_LOOP(name, COMPARE)                                                                 \
	for (size_t i = begin; i < end;) {                                                         \
		size_t stop = end - i > PIECE ? i + PIECE : end, count = 0;                        \
                                                                                                   \
		for (; i < stop; i++) {                                                            \
			kept[count] = x[i];                                                        \
			count += (size_t)cua_filter_keep_##name(x[i], COMPARE, value);             \
		}                                                                                  \
		store(job->view, kept, count);                                                     \
	}                                                                                          \
	break

#define DEFINE_WORK(name, T)                                                                       \
	static void work_##name(void *arg, unsigned worker, unsigned workers)                      \
	{                                                                                          \
		const struct job *job = arg;                                                       \
		const T *x = job->x;                                                               \
		T value, kept[PIECE];                                                              \
		size_t begin, end;                                                                 \
                                                                                                   \
		memcpy(&value, job->value, sizeof(value));                                         \
		cua__share(job->n, worker, workers, &begin, &end);                                 \
		switch (job->compare) {                                                            \
		case CUA_LT: FILTER_LOOP(name, CUA_LT);                                            \
		case CUA_LE: FILTER_LOOP(name, CUA_LE);                                            \
		case CUA_EQ: FILTER_LOOP(name, CUA_EQ);                                            \
		case CUA_NE: FILTER_LOOP(name, CUA_NE);                                            \
		case CUA_GE: FILTER_LOOP(name, CUA_GE);                                            \
		case CUA_GT: FILTER_LOOP(name, CUA_GT);                                            \
		}                                                                                  \
	}
DEFINE_WORK(u32, uint32_t)
DEFINE_WORK(i32, int32_t)
DEFINE_WORK(u64, uint64_t)
DEFINE_WORK(i64, int64_t)
DEFINE_WORK(f32, float)
DEFINE_WORK(f64, double)

static enum cua_status cpu_filter(struct cua_context *ctx, const struct cua_append_view *view,
				  enum cua_type type, size_t n, const void *x,
				  enum cua_compare compare, const void *value)
{
	struct job job = {view, n, x, compare, value};
	void (*work)(void *, unsigned, unsigned);

	switch (type) {
	case CUA_U32: work = work_u32; break;
	case CUA_I32: work = work_i32; break;
	case CUA_U64: work = work_u64; break;
	case CUA_I64: work = work_i64; break;
	case CUA_F32: work = work_f32; break;
	default: work = work_f64; break;
	}
	cua__parallel(ctx, cua__workers(ctx, n, GRAIN), work, &job);
	return CUA_OK;
}

const struct cua__append_ops cua__cpu_append = {
	.size = cpu_size,
	.filter = cpu_filter,
};
