/* SPDX-License-Identifier: MIT */
/*
 * The plain algorithm of reductions on the CPU, for the finishes by an atomic or under a lock. A
 * worker acts as a block of 1 thread: it reduces a contiguous range, then finishes as a block of a
 * kernel does. All other reductions use the tree (cpu_tree.c).
 */
#include "config.h"

#include "backend/reduce_backend.h"

/* A thread is started only for at least this many elements. */
#define GRAIN 32768

/*
 * Independent accumulators, enough to fill the vector units over the latency of an operation. The
 * loops over them are unrolled, so they stay in registers.
 */
#define CHAINS 16

typedef void part_fn(const struct cua__reduce *r, struct cua_block_scratch *s, uint64_t block,
		     size_t begin, size_t end);

#define DEFINE_PART(name, op_name, type_name, T, A, R, family, element, value, nothing)            \
	static void part_##name(const struct cua__reduce *r, struct cua_block_scratch *s,          \
				uint64_t block, size_t begin, size_t end)                          \
	{                                                                                          \
		const T *x = r->x;                                                                 \
		const T *y = r->y;                                                                 \
		size_t i = begin;                                                                  \
		A chains[CHAINS] = {0}, t = 0;                                                     \
                                                                                                   \
		for (; end - i >= CHAINS; i += CHAINS) {                                           \
			_Pragma("GCC unroll 16") for (int c = 0; c < CHAINS; c++)                  \
			{                                                                          \
				T a = x[i + c], b = y[i + c];                                      \
                                                                                                   \
				(void)b;                                                           \
				chains[c] = cua_combine_##family(chains[c], (element));            \
			}                                                                          \
		}                                                                                  \
		for (int c = 0; c < CHAINS; c++)                                                   \
			t = cua_combine_##family(t, chains[c]);                                    \
		for (; i < end; i++) {                                                             \
			T a = x[i], b = y[i];                                                      \
                                                                                                   \
			(void)b;                                                                   \
			t = cua_combine_##family(t, (element));                                    \
		}                                                                                  \
		if (cua_finish_##family(r->finish_mode, r->finish, s, r->partials, block,          \
					r->blocks, t, &t))                                         \
			*(R *)r->result = r->n ? (value) : (nothing);                              \
	}
CUA__REDUCE_LIST(DEFINE_PART)

static part_fn *part_of(const struct cua__reduce *r)
{
#define FIND_PART(name, op_name, type_name, T, A, R, family, element, value, nothing)              \
	if (r->op == CUA_REDUCE_##op_name && r->type == CUA_##type_name)                           \
		return part_##name;
	CUA__REDUCE_LIST(FIND_PART)
	return NULL;
}

struct job {
	const struct cua__reduce *reduce;
	part_fn *part;
};

static void work(void *arg, unsigned worker, unsigned workers)
{
	const struct job *job = arg;
	const struct cua__reduce *r = job->reduce;
	struct cua_block_scratch scratch;
	uint64_t block = worker;
	size_t begin, end;

	if (r->finish_mode == CUA_FINISH_ORDERED_LOCK)
		block = cua_finish_ticket_block(r->finish, &scratch);
	cua__share(r->n, (unsigned)block, workers, &begin, &end);
	job->part(r, &scratch, block, begin, end);
}

static void cpu_plan(struct cua_context *ctx, struct cua__reduce *r)
{
	if (r->finish_mode == CUA_FINISH_LAST_BLOCK)
		return;
	r->kind = CUA__TREE_NONE;
	if (!r->blocks)
		r->blocks = cua__workers(ctx, r->n, GRAIN);
	r->block_size = 1;
}

static enum cua_status cpu_run(struct cua_context *ctx, const struct cua__reduce *r)
{
	struct cua__reduce counted = *r;
	struct job job = {&counted, NULL};

	if (r->kind)
		return cua__cpu_tree(ctx, r);
	counted.n = cua__reduce_count(r);
	job.part = part_of(r);
	cua__parallel(ctx, r->blocks, work, &job);
	return CUA_OK;
}

const struct cua__reduce_ops cua__cpu_reduce = {.plan = cpu_plan, .run = cpu_run};
