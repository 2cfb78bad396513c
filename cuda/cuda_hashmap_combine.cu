/* SPDX-License-Identifier: MIT */
/*
 * Bulk updates of a hash map of words that combine equal keys first: the kernels of
 * lib/kernels/hashmap_combine.h and their launches. Also the direct updates of sharded maps.
 */
#include "config.h"

/* few lanes of a warp call operations by lanes here */
#define CUA__HASHMAP_WARP 0
#include "cuda_hashmap_regions.h"
#include "kernels/hashmap_combine.h"

#define GUESS_THREADS 256u
#define COUNT_THREADS 512u
#define COUNT_EACH 8u
#define COUNT_BLOCKS_PER_PROCESSOR 3u
#define STARTS_THREADS 1024u
#define UPDATE_THREADS 256u
#define UPDATE_EACH 16u
#define UPDATE_BLOCKS_PER_PROCESSOR 4u
/* entries of a block's table */
#define ROOM 8192u
/* at load 0.9, a region of this many slots seldom has keys without an entry */
#define REGION_SLOTS 7000u
#define MOST_REGIONS (4 * SCATTER_THREADS)
/* Tests on a model of GPUs have other limits. */
#ifndef LEAST_REGIONS
#define LEAST_REGIONS 512u
/* with fewer pairs, the steps before the update cost more than they save */
#define LEAST_PAIRS ((uint64_t)1 << 20)
#endif

static __host__ __device__ constexpr uint32_t combine_threads(uint32_t ks, uint32_t vs)
{
	return ks + vs > 8 ? 1024 : 512;
}

/* The threads of a multiprocessor. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define MOST_THREADS 1024u
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ <= 800 ||                                           \
	(__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100)
#define MOST_THREADS 2048u
#else
#define MOST_THREADS 1536u
#endif

static __host__ __device__ constexpr uint32_t count_blocks(void)
{
	return MOST_THREADS / COUNT_THREADS < COUNT_BLOCKS_PER_PROCESSOR
		       ? MOST_THREADS / COUNT_THREADS
		       : COUNT_BLOCKS_PER_PROCESSOR;
}

/* As many blocks as the tables of sums leave room for, and the threads. */
static __host__ __device__ constexpr uint32_t combine_blocks(uint32_t ks, uint32_t vs)
{
	const uint32_t tables = ks + vs > 12 ? 1 : ks + vs > 8 ? 2 : 3;
	const uint32_t blocks = MOST_THREADS / combine_threads(ks, vs);

	return tables < blocks ? tables : blocks;
}

namespace
{

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(GUESS_THREADS)
	guess_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, GUESS_THREADS, 1, 0, HASH, 1};

	cua__combine_guess(kind, &a);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH, int SENDS>
__global__ void __launch_bounds__(COUNT_THREADS, count_blocks())
	count_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS,   VS, COUNT_THREADS, COUNT_EACH, 0,
						   HASH, 1,  SENDS};
	__shared__ uint32_t number[MOST_REGIONS];

	cua__combine_count(kind, &a, number, ROOM);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(STARTS_THREADS)
	starts_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, STARTS_THREADS, 1, 0, HASH, 1};
	__shared__ struct cua__regions_shared shared;
	CUA__SHARED_ARRAY(uint4, starts_table);
	const struct cua__sums keys = {starts_table, NULL, &shared.has_greatest, ROOM};

	cua__combine_starts(kind, &a, &shared, &keys, ROOM);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH, int SENDS>
__global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS_PER_PROCESSOR)
	scatter_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr uint32_t EACH = scatter_each(KS, VS), TILE = SCATTER_THREADS * EACH;
	constexpr struct cua__regions_kind kind = {KS, VS,   SCATTER_THREADS, EACH, 0, HASH,
						   1,  SENDS};
	__shared__ struct cua__regions_shared shared;
	CUA__SHARED_ARRAY(uint4, scatter_stage);
	void *stage = known(scatter_stage);
	CUA__REGIONS_INDEX *region_of =
		(CUA__REGIONS_INDEX *)((char *)stage + TILE * word_size(KS, VS));
	uint32_t *number = (uint32_t *)(region_of + TILE);

	if (cua__hashmap_has_words(KS, VS) && !*a.direct)
		cua__regions_scatter(kind, &a, blockIdx.x, &shared, stage, region_of, number,
				     number + a.regions);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH, int SENDS>
__global__ void __launch_bounds__(combine_threads(KS, VS), combine_blocks(KS, VS))
	combine_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS,   combine_threads(KS, VS), 1, 0, HASH,
						   1,  SENDS};
	__shared__ struct cua__regions_shared shared;
	CUA__SHARED_ARRAY(uint4, combine_table);
	char *table = (char *)known(combine_table);
	const struct cua__sums sums = {table, table + ROOM * KS, &shared.has_greatest, ROOM};

	cua__combine_region(kind, &a, blockIdx.x, &shared, &sums);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(UPDATE_THREADS, UPDATE_BLOCKS_PER_PROCESSOR)
	update_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, UPDATE_THREADS, UPDATE_EACH, 0, HASH, 1};
	__shared__ __align__(16) char list[UPDATE_THREADS * 2 * word_size(KS, VS)];

	if (cua__hashmap_has_words(KS, VS))
		cua__combine_update(kind, &a, list);
}

/* The output of combined pairs. */
struct pairs {
	void *keys, *values;
	uint64_t *n;
};

template <uint32_t KS, uint32_t VS>
__global__ void __launch_bounds__(UPDATE_THREADS)
	split_kernel(const __grid_constant__ struct cua__regions_pass a,
		     const __grid_constant__ struct pairs out)
{
	constexpr struct cua__regions_kind kind = {KS, VS, UPDATE_THREADS, 1, 0, 0, 1};

	if (cua__hashmap_has_words(KS, VS))
		cua__combine_split(kind, &a, out.keys, out.values, out.n);
}

/* The counters of a rank's lists, at their owners. */
struct told {
	uint64_t *number_of[CUA__SHARD_DIRECT_RANKS];
};

__global__ void tell_kernel(const __grid_constant__ struct cua__regions_pass a,
			    const __grid_constant__ struct told told)
{
	cua__combine_tell(&a, told.number_of);
}

} // namespace

struct kernels {
	uint32_t tile;                                       /* words per scattering block */
	uint32_t starts_bytes, scatter_bytes, combine_bytes; /* shared memory */
	uint32_t combine_threads;
	/* [1]: of updates that are sent */
	kernel guess, count[2], starts, scatter[2], combine[2], update;
	void (*split)(struct cua__regions_pass, struct pairs);
};

template <uint32_t KS, uint32_t VS, uint32_t HASH> static void kernels_of_hash(struct kernels *k)
{
	k->tile = SCATTER_THREADS * scatter_each(KS, VS);
	k->scatter_bytes = k->tile * (word_size(KS, VS) + (uint32_t)sizeof(CUA__REGIONS_INDEX)) +
			   MOST_REGIONS * 2 * sizeof(uint32_t);
	k->starts_bytes = ROOM * KS;
	/* a sum more, for the greatest key */
	k->combine_bytes = ROOM * (KS + VS) + VS;
	k->combine_threads = combine_threads(KS, VS);
	k->guess = guess_kernel<KS, VS, HASH>;
	k->count[0] = count_kernel<KS, VS, HASH, 0>;
	k->count[1] = count_kernel<KS, VS, HASH, 1>;
	k->starts = starts_kernel<KS, VS, HASH>;
	k->scatter[0] = scatter_kernel<KS, VS, HASH, 0>;
	k->scatter[1] = scatter_kernel<KS, VS, HASH, 1>;
	k->combine[0] = combine_kernel<KS, VS, HASH, 0>;
	k->combine[1] = combine_kernel<KS, VS, HASH, 1>;
	k->update = update_kernel<KS, VS, HASH>;
	k->split = split_kernel<KS, VS>;
}

template <uint32_t KS, uint32_t VS>
static void kernels_of(const struct cua_hashmap_view *view, struct kernels *k)
{
	if (view->hash == CUA_HASHMAP_HASH_KEYED)
		kernels_of_hash<KS, VS, CUA_HASHMAP_HASH_KEYED>(k);
	else
		kernels_of_hash<KS, VS, CUA_HASHMAP_HASH_SEEDED>(k);
}

static bool find_kernels(const struct cua_hashmap_view *view, struct kernels *k)
{
	if (view->layout != CUA_HASHMAP_WORDS)
		return false;
	switch (view->key_size * 32 + view->value_size) {
	case 4 * 32 + 4: kernels_of<4, 4>(view, k); return true;
	case 4 * 32 + 8: kernels_of<4, 8>(view, k); return true;
	case 8 * 32 + 4: kernels_of<8, 4>(view, k); return true;
	case 8 * 32 + 8: kernels_of<8, 8>(view, k); return true;
	default: return false;
	}
}

/* The counters before those of the regions; 0 before the first kernel. */
struct counters {
	uint64_t combined;
	uint32_t guess_repeats, sampled, direct;
};

/* The parts of the workspace. */
struct plan {
	uint32_t regions, per_owner;    /* per_owner: 0 if the updates are not sent */
	size_t guess, counters, sample; /* bytes */
	size_t words;                   /* of the scattered words */
};

/* The keys are divided among `tables` tables like this one. */
static bool make_plan(struct cua_context *ctx, const struct cua_hashmap_view *view, uint64_t n,
		      uint32_t tables, int sends, struct kernels *k, struct plan *plan)
{
	uint64_t regions;

	/* max_probes bounds the work for any keys, but some keys would fill no table of sums */
	if (n < LEAST_PAIRS || n > CUA__HASHMAP_MOST_COMBINED || view->max_probes ||
	    view->n_buckets >> 32 || view->n_buckets < LEAST_REGIONS || !find_kernels(view, k) ||
	    k->scatter_bytes + sizeof(struct cua__regions_shared) > ctx->shared_bytes ||
	    k->combine_bytes + sizeof(struct cua__regions_shared) > ctx->shared_bytes)
		return false;
	regions = view->n_buckets * tables *
		  cua__hashmap_word_slots(view->key_size, view->value_size) / REGION_SLOTS;
	if (regions < LEAST_REGIONS)
		regions = LEAST_REGIONS;
	plan->regions = (uint32_t)(regions < MOST_REGIONS ? regions : MOST_REGIONS);
	plan->per_owner = sends ? plan->regions / tables : 0;
	if (sends)
		plan->regions = plan->per_owner * tables;
	plan->counters =
		cua__scratch_size(2 * plan->regions * sizeof(uint32_t) + sizeof(struct counters));
	plan->guess = cua__scratch_size(2 * CUA__COMBINE_GUESSED * view->key_size);
	plan->sample = cua__scratch_size(CUA__COMBINE_MOST_SAMPLED * view->key_size);
	plan->words = cua__scratch_size(n * word_size(view->key_size, view->value_size));
	return true;
}

/* The bytes of the workspace of the steps before the update, without the combined words. */
static size_t steps_bytes(const struct plan *plan)
{
	return plan->guess + plan->counters + plan->sample + plan->words;
}

/*
 * The steps before the update: all pairs of `a` in combined words, where `a` says. `base` is steps_bytes of
 * memory.
 */
static enum cua_status combine(struct cua_context *ctx, const struct kernels *k,
			       const struct plan *plan, char *base, struct cua__regions_pass *a)
{
	const int sends = plan->per_owner != 0;
	struct counters *counters = (struct counters *)(base + plan->guess);
	enum cua_status status;

	a->regions = plan->regions;
	a->per_owner = plan->per_owner;
	a->starts = (uint32_t *)(counters + 1);
	a->ends = a->starts + plan->regions;
	a->n_combined = &counters->combined;
	a->guess = base;
	a->guess_room = 2 * CUA__COMBINE_GUESSED;
	a->guessed = CUA__COMBINE_GUESSED;
	a->guess_repeats = &counters->guess_repeats;
	a->sampled = &counters->sampled;
	a->direct = &counters->direct;
	a->sample = (char *)counters + plan->counters;
	a->sample_limit = (uint32_t)(((uint64_t)CUA__COMBINE_SAMPLE << 32) / a->n);
	a->to = (char *)a->sample + plan->sample;
	a->repeat_limit = repeat_limit(k->tile, plan->regions);
	status = ctx->runtime->set_bytes(ctx, base, 0xff, plan->guess);
	if (!status)
		status = ctx->runtime->set_bytes(ctx, counters, 0, plan->counters);
	if (!status)
		status = launch(ctx, k->guess, CUA__COMBINE_GUESSED / GUESS_THREADS, GUESS_THREADS,
				0, 0, a);
	if (!status)
		status = launch(ctx, k->count[sends],
				cua__grid(ctx, a->n, COUNT_THREADS * COUNT_EACH,
					  COUNT_BLOCKS_PER_PROCESSOR),
				COUNT_THREADS, 0, 0, a);
	if (!status)
		status = launch(ctx, k->starts, 1, STARTS_THREADS, k->starts_bytes, k->starts_bytes,
				a);
	if (!status)
		status = launch(ctx, k->scatter[sends], divide_up(a->n, k->tile), SCATTER_THREADS,
				k->scatter_bytes, k->scatter_bytes, a);
	if (!status)
		status = launch(ctx, k->combine[sends], plan->regions, k->combine_threads,
				k->combine_bytes, k->combine_bytes, a);
	return status;
}

/* The update by at most n combined words. */
static enum cua_status update(struct cua_context *ctx, const struct kernels *k, uint64_t n,
			      const struct cua__regions_pass *a)
{
	return launch(ctx, k->update,
		      cua__grid(ctx, n, UPDATE_THREADS * UPDATE_EACH, UPDATE_BLOCKS_PER_PROCESSOR),
		      UPDATE_THREADS, 0, 0, a);
}

/* ---- updates of a map ---- */

size_t cua__cuda_hashmap_combine_scratch(struct cua_context *ctx,
					 const struct cua_hashmap_view *view, uint64_t n)
{
	struct kernels k;
	struct plan plan;

	if (n > CUA__HASHMAP_MOST_COMBINED)
		n = CUA__HASHMAP_MOST_COMBINED;
	return make_plan(ctx, view, n, 1, 0, &k, &plan) ? steps_bytes(&plan) + plan.words : 0;
}

enum cua_status cua__cuda_hashmap_combine(struct cua_context *ctx,
					  const struct cua_hashmap_view *view,
					  const struct cua__hashmap_call *call,
					  const uint32_t **direct)
{
	struct cua__regions_pass a = pass_of(view, call);
	struct cua__call scratch = {};
	struct kernels k;
	struct plan plan;
	enum cua_status status;
	void *base;

	if (call->flags || call->values_out || !make_plan(ctx, view, call->n, 1, 0, &k, &plan))
		return CUA_ERROR_UNSUPPORTED;
	scratch.ctx = ctx;
	/* on any failure, such as a capture or lack of memory, the caller takes the ordinary path */
	if (cua__call_scratch(&scratch, steps_bytes(&plan) + plan.words, &base))
		return CUA_ERROR_UNSUPPORTED;
	/* the next part uses the same memory later in the stream */
	cua__call_give_back(&scratch, base);
	a.value = call->value;
	a.op = call->op;
	a.combined = (char *)base + steps_bytes(&plan);
	status = combine(ctx, &k, &plan, (char *)base, &a);
	if (!status)
		status = update(ctx, &k, call->n, &a);
	if (!status)
		*direct = a.direct;
	return status;
}

/* ---- pairs of an update of a sharded map ---- */

size_t cua__cuda_combine_bytes(struct cua_context *ctx, const struct cua__shard_combine *c)
{
	struct kernels k;
	struct plan plan;

	return make_plan(ctx, c->view, c->most, c->ranks, 0, &k, &plan)
		       ? cua__scratch_size(sizeof(uint64_t)) + steps_bytes(&plan) + plan.words
		       : 0;
}

enum cua_status cua__cuda_combine(struct cua_context *ctx, struct cua__shard_combine *c)
{
	struct cua__regions_pass a = {};
	struct pairs out = {};
	struct kernels k;
	struct plan plan;
	enum cua_status status;
	char *base = c->memory + cua__scratch_size(sizeof(uint64_t));

	out.n = c->n_out = (uint64_t *)c->memory;
	if (c->n < CUA__COMBINE_GUESSED ||
	    !make_plan(ctx, c->view, c->most, c->ranks, 0, &k, &plan))
		return ctx->runtime->set_bytes(ctx, c->n_out, 0xff, sizeof(*c->n_out));
	a.view = *c->view;
	a.keys = c->keys;
	a.values = c->values;
	a.n = c->n;
	a.op = (int)c->op;
	a.combined = base + steps_bytes(&plan);
	status = combine(ctx, &k, &plan, base, &a);
	/* the scattered words are not needed any more */
	c->keys_out = (const char *)a.to;
	c->values_out = c->keys_out + (c->most * c->view->key_size + 7) / 8 * 8;
	out.keys = (void *)c->keys_out;
	out.values = (void *)c->values_out;
	return status ? status
		      : cua__launch(ctx, k.split, cua__grid(ctx, c->n, UPDATE_THREADS, 8),
				    UPDATE_THREADS, 0, a, out);
}

/* ---- direct updates of sharded maps ---- */

/*
 * The memory of a rank: a struct cua__shard_late, the numbers of combined words that it gets from each rank
 * and has for each owner, a list from each rank, and the memory of the steps.
 */
struct sent_plan {
	struct kernels k;
	struct plan plan;
	uint64_t room; /* words of a list */
	size_t received, filled, lists, list_bytes, bytes;
};

static bool plan_sent(struct cua_context *ctx, const struct cua__shard_direct *d,
		      struct sent_plan *p)
{
	const struct cua_hashmap_view *view = d->view;
	const uint64_t mean = d->most / d->ranks;

	if (!make_plan(ctx, view, d->most, d->ranks, 1, &p->k, &p->plan))
		return false;
	/* combined words are mostly distinct keys, and random owners have nearly equal numbers of these */
	p->room = mean + mean / 32 + ((uint64_t)1 << 14);
	p->received = cua__scratch_size(sizeof(struct cua__shard_late));
	p->filled = p->received + d->ranks * sizeof(uint64_t);
	p->lists = cua__scratch_size(p->filled + d->ranks * sizeof(uint64_t));
	p->list_bytes = cua__scratch_size(p->room * word_size(view->key_size, view->value_size));
	p->bytes = p->lists + d->ranks * p->list_bytes + steps_bytes(&p->plan);
	return true;
}

size_t cua__cuda_sent_bytes(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	struct sent_plan p;

	return plan_sent(ctx, d, &p) ? p.bytes : 0;
}

enum cua_status cua__cuda_sent_clear(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	struct sent_plan p;

	(void)plan_sent(ctx, d, &p);
	return ctx->runtime->set_bytes(ctx, d->memory[d->rank], 0, p.lists);
}

/* Updates the table of a rank by the list that it has from rank `from`. */
static enum cua_status update_by_list(struct cua_context *ctx, const struct cua__shard_direct *d,
				      const struct sent_plan *p, uint32_t from)
{
	char *const own = d->memory[d->rank];
	struct cua__regions_pass a = {};

	a.view = *d->view;
	a.op = (int)d->op;
	a.combined = own + p->lists + from * p->list_bytes;
	a.n_combined = (uint64_t *)(own + p->received) + from;
	return update(ctx, &p->k, p->room, &a);
}

enum cua_status cua__cuda_sent_send(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	char *const own = d->memory[d->rank];
	struct cua__regions_pass a = {};
	struct told told = {};
	struct sent_plan p;
	enum cua_status status;

	(void)plan_sent(ctx, d, &p);
	a.late = (struct cua__shard_late *)own;
	/* the guess needs as many pairs; the owners keep a number of 0 */
	if (d->n < CUA__COMBINE_GUESSED)
		return ctx->runtime->set_bytes(ctx, &a.late->spilled, 1, sizeof(a.late->spilled));
	a.view = *d->view;
	a.keys = d->keys;
	a.values = d->values;
	a.n = d->n;
	a.op = (int)d->op;
	a.room = p.room;
	a.owners = d->ranks;
	a.owner_seed = d->seed;
	a.filled = (uint64_t *)(own + p.filled);
	for (uint32_t r = 0; r < d->ranks; r++) {
		a.to_of[r] = d->memory[r] + p.lists + d->rank * p.list_bytes;
		told.number_of[r] = (uint64_t *)(d->memory[r] + p.received) + d->rank;
	}
	status = combine(ctx, &p.k, &p.plan, own + p.lists + d->ranks * p.list_bytes, &a);
	if (!status)
		status = cua__launch(ctx, tell_kernel, 1, 32, 0, a, told);
	/* the rank's own list is complete before the barrier */
	return status ? status : update_by_list(ctx, d, &p, d->rank);
}

enum cua_status cua__cuda_sent_receive(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	enum cua_status status = CUA_OK;
	struct sent_plan p;

	(void)plan_sent(ctx, d, &p);
	for (uint32_t i = 1; i < d->ranks && !status; i++)
		status = update_by_list(ctx, d, &p, (d->rank + i) % d->ranks);
	return status;
}
