/* SPDX-License-Identifier: MIT */
/*
 * Bulk updates of a hash map of words that combine equal keys first: the kernels of
 * lib/kernels/hashmap_combine.h and their launches.
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
#define LEAST_REGIONS 512u
#define MOST_REGIONS (4 * SCATTER_THREADS)
/* with fewer pairs, the steps before the update cost more than they save */
#define LEAST_PAIRS ((uint64_t)1 << 20)

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

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(COUNT_THREADS, count_blocks())
	count_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, COUNT_THREADS, COUNT_EACH, 0, HASH, 1};
	__shared__ uint32_t number[MOST_REGIONS];

	cua__combine_count(kind, &a, number, ROOM);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(STARTS_THREADS)
	starts_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, STARTS_THREADS, 1, 0, HASH, 1};
	__shared__ struct cua__regions_shared shared;
	extern __shared__ uint4 starts_table[];
	const struct cua__sums keys = {starts_table, NULL, &shared.has_greatest, ROOM};

	cua__combine_starts(kind, &a, &shared, &keys, ROOM);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS_PER_PROCESSOR)
	scatter_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr uint32_t EACH = scatter_each(KS, VS), TILE = SCATTER_THREADS * EACH;
	constexpr struct cua__regions_kind kind = {KS, VS, SCATTER_THREADS, EACH, 0, HASH, 1};
	__shared__ struct cua__regions_shared shared;
	extern __shared__ uint4 scatter_stage[];
	void *stage = known(scatter_stage);
	CUA__REGIONS_INDEX *region_of =
		(CUA__REGIONS_INDEX *)((char *)stage + TILE * word_size(KS, VS));
	uint32_t *number = (uint32_t *)(region_of + TILE);

	if (cua__hashmap_has_words(KS, VS) && !*a.direct)
		cua__regions_scatter(kind, &a, blockIdx.x, &shared, stage, region_of, number,
				     number + a.regions, NULL);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(combine_threads(KS, VS), combine_blocks(KS, VS))
	combine_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, combine_threads(KS, VS), 1, 0, HASH, 1};
	__shared__ struct cua__regions_shared shared;
	extern __shared__ uint4 combine_table[];
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

} // namespace

struct kernels {
	uint32_t tile;                                       /* words per scattering block */
	uint32_t starts_bytes, scatter_bytes, combine_bytes; /* shared memory */
	uint32_t combine_threads;
	kernel guess, count, starts, scatter, combine, update;
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
	k->count = count_kernel<KS, VS, HASH>;
	k->starts = starts_kernel<KS, VS, HASH>;
	k->scatter = scatter_kernel<KS, VS, HASH>;
	k->combine = combine_kernel<KS, VS, HASH>;
	k->update = update_kernel<KS, VS, HASH>;
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
	uint32_t regions;
	size_t guess, counters, sample; /* bytes */
	size_t words; /* of the scattered words, and again of the combined words */
};

static bool make_plan(struct cua_context *ctx, const struct cua_hashmap_view *view, uint64_t n,
		      struct kernels *k, struct plan *plan)
{
	uint64_t regions;

	/* max_probes bounds the work for any keys, but some keys would fill no table of sums */
	if (n < LEAST_PAIRS || n > CUA__HASHMAP_MOST_COMBINED || view->max_probes ||
	    view->n_buckets >> 32 || view->n_buckets < LEAST_REGIONS || !find_kernels(view, k) ||
	    k->scatter_bytes + sizeof(struct cua__regions_shared) > ctx->shared_bytes ||
	    k->combine_bytes + sizeof(struct cua__regions_shared) > ctx->shared_bytes)
		return false;
	regions = view->n_buckets * cua__hashmap_word_slots(view->key_size, view->value_size) /
		  REGION_SLOTS;
	if (regions < LEAST_REGIONS)
		regions = LEAST_REGIONS;
	plan->regions = (uint32_t)(regions < MOST_REGIONS ? regions : MOST_REGIONS);
	plan->counters =
		cua__scratch_size(2 * plan->regions * sizeof(uint32_t) + sizeof(struct counters));
	plan->guess = cua__scratch_size(2 * CUA__COMBINE_GUESSED * view->key_size);
	plan->sample = cua__scratch_size(CUA__COMBINE_MOST_SAMPLED * view->key_size);
	plan->words = cua__scratch_size(n * word_size(view->key_size, view->value_size));
	return true;
}

static size_t whole(const struct plan *plan)
{
	return plan->guess + plan->counters + plan->sample + 2 * plan->words;
}

size_t cua__cuda_hashmap_combine_scratch(struct cua_context *ctx,
					 const struct cua_hashmap_view *view, uint64_t n)
{
	struct kernels k;
	struct plan plan;

	if (n > CUA__HASHMAP_MOST_COMBINED)
		n = CUA__HASHMAP_MOST_COMBINED;
	return make_plan(ctx, view, n, &k, &plan) ? whole(&plan) : 0;
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
	struct counters *counters;
	enum cua_status status;
	void *base;

	if (call->flags || call->values_out || !make_plan(ctx, view, call->n, &k, &plan))
		return CUA_ERROR_UNSUPPORTED;
	scratch.ctx = ctx;
	/* on any failure, such as a capture or lack of memory, the caller takes the ordinary path */
	if (cua__call_scratch(&scratch, whole(&plan), &base))
		return CUA_ERROR_UNSUPPORTED;
	/* the next part uses the same memory later in the stream */
	cua__call_give_back(&scratch, base);
	counters = (struct counters *)((char *)base + plan.guess);
	a.value = call->value;
	a.op = call->op;
	a.regions = plan.regions;
	a.starts = (uint32_t *)(counters + 1);
	a.ends = a.starts + plan.regions;
	a.n_combined = &counters->combined;
	a.guess = base;
	a.guess_room = 2 * CUA__COMBINE_GUESSED;
	a.guessed = CUA__COMBINE_GUESSED;
	a.guess_repeats = &counters->guess_repeats;
	a.sampled = &counters->sampled;
	a.direct = &counters->direct;
	a.sample = (char *)counters + plan.counters;
	a.sample_limit = (uint32_t)(((uint64_t)CUA__COMBINE_SAMPLE << 32) / call->n);
	a.to = (char *)a.sample + plan.sample;
	a.combined = (char *)a.to + plan.words;
	a.repeat_limit = repeat_limit(k.tile, plan.regions);
	status = ctx->runtime->set_bytes(ctx, base, 0xff, plan.guess);
	if (!status)
		status = ctx->runtime->set_bytes(ctx, counters, 0, plan.counters);
	if (!status)
		status = launch(ctx, k.guess, CUA__COMBINE_GUESSED / GUESS_THREADS, GUESS_THREADS,
				0, 0, &a);
	if (!status)
		status = launch(ctx, k.count,
				cua__grid(ctx, call->n, COUNT_THREADS * COUNT_EACH,
					  COUNT_BLOCKS_PER_PROCESSOR),
				COUNT_THREADS, 0, 0, &a);
	if (!status)
		status = launch(ctx, k.starts, 1, STARTS_THREADS, k.starts_bytes, k.starts_bytes,
				&a);
	if (!status)
		status = launch(ctx, k.scatter, divide_up(call->n, k.tile), SCATTER_THREADS,
				k.scatter_bytes, k.scatter_bytes, &a);
	if (!status)
		status = launch(ctx, k.combine, plan.regions, k.combine_threads, k.combine_bytes,
				k.combine_bytes, &a);
	if (!status)
		status = launch(ctx, k.update,
				cua__grid(ctx, call->n, UPDATE_THREADS * UPDATE_EACH,
					  UPDATE_BLOCKS_PER_PROCESSOR),
				UPDATE_THREADS, 0, 0, &a);
	if (!status)
		*direct = a.direct;
	return status;
}
