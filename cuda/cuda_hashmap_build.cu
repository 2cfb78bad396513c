/* SPDX-License-Identifier: MIT */
/*
 * Bulk insert and build of a hash map of words: the kernels of lib/kernels/hashmap_regions.h and
 * their launches, also for sharded maps with ranks that read pairs from each other's memory.
 */
#include "config.h"

/* few lanes of a warp call operations by lanes here */
#define CUA__HASHMAP_WARP 0
#include "cuda_hashmap_regions.h"

#define BUILD_THREADS 256u
/*
 * These blocks with 48 registers a thread fit sm_90 and newer; older GPUs have room for fewer
 * threads or less shared memory.
 */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define BUILD_BLOCKS_PER_PROCESSOR 1
#else
#define BUILD_BLOCKS_PER_PROCESSOR 5
#endif
#define INSERT_THREADS 256u
#define INSERT_EACH 16u
#define INSERT_BLOCKS_PER_PROCESSOR 4
#define SPILL_THREADS 256u
#define SPILL_BLOCKS_PER_PROCESSOR 4u

#define ASIDE_THREADS (2 * CUA__SHARD_DIRECT_RANKS)

#define MOST_REGIONS (2 * SCATTER_THREADS)
/*
 * A scatter computes offsets beyond the room of a region in 32 bits, for as many words as are in
 * flight at once.
 */
#define MOST_ROOM (0xffffffffu - 8192u)
/*
 * A build of a sharded map: the slices of the regions of an owner. With more slices the last is shorter, but
 * the host launches more.
 */
#define SLICES 4u
/*
 * Large builds have two parts. The first part has a third of the pairs, so its copy takes at least as long as the
 * scatter of the second part. With two ranks the link is not the bound. With fewer bytes the host is the bound,
 * and a second part needs more launches.
 */
#define EARLY_SHARE 3u
#define LEAST_RANKS_OF_PARTS 3u
/* Tests on a model of GPUs have other limits. */
#ifndef LEAST_BYTES_OF_PARTS
#define LEAST_BYTES_OF_PARTS(ranks) ((uint64_t)(ranks) * (ranks) << 23)
/* Below these limits of pairs and build regions, a scatter and a build cost more than they save. */
#define LEAST_PAIRS ((uint64_t)1 << 18)
#define LEAST_BUILD_REGIONS 16u
/*
 * Insert: log2 of the buckets per region, and the bytes of the map that are written concurrently.
 */
#define INSERT_SHIFT 16u
#define INSERT_BYTES ((uint64_t)21 << 20)
#endif

/* Words per thread: as many as fit in the memory of a build region. */
static __host__ __device__ constexpr uint32_t build_each(uint32_t ks, uint32_t vs)
{
	return CUA__REGIONS_BUILD_BYTES / word_size(ks, vs) / BUILD_THREADS;
}

/* Words in 4 KiB. */
static __host__ __device__ constexpr uint32_t list_room(uint32_t ks, uint32_t vs)
{
	return 4096 / word_size(ks, vs);
}

namespace
{

enum scatters { SCATTER, RESCATTER, SEND };

template <uint32_t KS, uint32_t VS, uint32_t HASH, enum scatters WHICH>
__global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS_PER_PROCESSOR)
	scatter_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {
		KS,   VS, SCATTER_THREADS, scatter_each(KS, VS), WHICH == RESCATTER,
		HASH, 0,  WHICH == SEND};
	constexpr uint32_t TILE = SCATTER_THREADS * scatter_each(KS, VS);
	__shared__ struct cua__regions_shared shared;
	CUA__SHARED_ARRAY(uint4, scatter_stage);
	void *stage = known(scatter_stage);
	CUA__REGIONS_INDEX *region_of =
		(CUA__REGIONS_INDEX *)((char *)stage + TILE * word_size(KS, VS));
	uint32_t *number = (uint32_t *)(region_of + TILE);

	if (cua__hashmap_has_words(KS, VS))
		cua__regions_scatter(kind, &a, blockIdx.x, &shared, stage, region_of, number,
				     number + a.regions);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(BUILD_THREADS, BUILD_BLOCKS_PER_PROCESSOR)
	build_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS,  BUILD_THREADS, build_each(KS, VS),
						   0,  HASH};
	__shared__ struct cua__regions_shared shared;
	__shared__ uint32_t number[CUA__REGIONS_BUCKETS], overflow[CUA__REGIONS_BUCKETS];
	CUA__SHARED_ARRAY(uint4, build_table);
	void *table = known(build_table);
	const struct cua__regions_room room = {table, known(number), known(overflow),
					       (char *)table + CUA__REGIONS_BUILD_BYTES,
					       list_room(KS, VS)};

	if (cua__hashmap_has_words(KS, VS))
		cua__regions_build(kind, &a, a.first_region + blockIdx.x, &shared, room);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(SPILL_THREADS)
	spill_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, SPILL_THREADS, 1, 0, HASH};

	if (cua__hashmap_has_words(KS, VS))
		cua__regions_insert_spilled(kind, &a);
}

template <uint32_t KS, uint32_t VS, uint32_t HASH>
__global__ void __launch_bounds__(INSERT_THREADS, INSERT_BLOCKS_PER_PROCESSOR)
	insert_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, INSERT_THREADS, INSERT_EACH, 0, HASH};
	__shared__ __align__(16) char list[INSERT_THREADS * 2 * word_size(KS, VS)];

	if (cua__hashmap_has_words(KS, VS))
		cua__regions_insert_tile(kind, &a, blockIdx.x, list);
}

template <uint32_t KS, uint32_t VS>
__global__ void aside_kernel(const __grid_constant__ struct cua__regions_pass a)
{
	constexpr struct cua__regions_kind kind = {KS, VS, ASIDE_THREADS, 1, 0, 0};

	if (cua__hashmap_has_words(KS, VS))
		cua__regions_insert_aside(kind, &a);
}

} // namespace

struct kernels {
	uint32_t tile;          /* words per scattering block */
	uint32_t scatter_bytes; /* shared memory; region_bytes more for each region */
	uint32_t region_bytes;
	uint32_t build_bytes;
	kernel scatter, rescatter, send, build, spill, insert, aside;
};

template <uint32_t KS, uint32_t VS, uint32_t HASH> static void kernels_of_hash(struct kernels *k)
{
	const uint32_t size = word_size(KS, VS);

	k->tile = SCATTER_THREADS * scatter_each(KS, VS);
	k->scatter_bytes = k->tile * (size + (uint32_t)sizeof(CUA__REGIONS_INDEX));
	k->region_bytes = 2 * sizeof(uint32_t);
	k->build_bytes = CUA__REGIONS_BUILD_BYTES + list_room(KS, VS) * size;
	k->scatter = scatter_kernel<KS, VS, HASH, SCATTER>;
	k->rescatter = scatter_kernel<KS, VS, HASH, RESCATTER>;
	k->send = scatter_kernel<KS, VS, HASH, SEND>;
	k->build = build_kernel<KS, VS, HASH>;
	k->spill = spill_kernel<KS, VS, HASH>;
	k->insert = insert_kernel<KS, VS, HASH>;
	k->aside = aside_kernel<KS, VS>;
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
	case 4 * 32: kernels_of<4, 0>(view, k); return true;
	case 8 * 32: kernels_of<8, 0>(view, k); return true;
	case 8 * 32 + 8: kernels_of<8, 8>(view, k); return true;
	case 8 * 32 + 4: kernels_of<8, 4>(view, k); return true;
	case 4 * 32 + 8: kernels_of<4, 8>(view, k); return true;
	case 16 * 32: kernels_of<16, 0>(view, k); return true;
	default: return false;
	}
}

/* ---- launching ---- */

static enum cua_status scatter(struct cua_context *ctx, const struct kernels *k, kernel which,
			       uint64_t tiles, struct cua__regions_pass *a)
{
	a->repeat_limit = repeat_limit(k->tile, a->regions);
	return launch(ctx, which, tiles, SCATTER_THREADS,
		      k->scatter_bytes + a->regions * k->region_bytes,
		      k->scatter_bytes + MOST_REGIONS * k->region_bytes, a);
}

/*
 * The room for a mean number of words: 8 standard deviations and a share of equal keys above the
 * mean, in whole cache lines.
 */
static uint64_t room_above(uint64_t mean, uint64_t root)
{
	return (mean + mean / 32 + 8 * root + 63) / 16 * 16;
}

/* At least the square root, and a power of two. */
static uint64_t rough_root(uint64_t mean)
{
	uint64_t root = 1;

	while (root * root < mean)
		root *= 2;
	return root;
}

static uint64_t room_of(uint64_t mean)
{
	return room_above(mean, rough_root(mean));
}

/* The room for words that cross a link, where empty rooms cost time. */
static uint64_t tight_room_of(uint64_t mean)
{
	uint64_t root = rough_root(mean);

	/* Newton's method, from above */
	for (int i = 0; i < 4; i++)
		root = divide_up(root + divide_up(mean, root), 2);
	return room_above(mean, root);
}

/* The workspace of a build or an insert. */
struct plan {
	uint64_t build_regions, regions;
	uint64_t room;       /* words per region of the first scatter */
	uint64_t counters;   /* one per region and build region, and the spill counter */
	uint64_t spill_room; /* words */
	uint64_t words;
};

static size_t word_bytes(const struct cua_hashmap_view *view)
{
	return word_size(view->key_size, view->value_size);
}

static size_t plan_bytes(const struct cua_hashmap_view *view, const struct plan *plan)
{
	return cua__scratch_size(plan->counters * sizeof(uint64_t)) +
	       plan->words * word_bytes(view);
}

static enum cua_status take(struct cua_context *ctx, const struct cua_hashmap_view *view,
			    const struct plan *plan, struct cua__regions_pass *a,
			    uint64_t **counters, void **words)
{
	const size_t size = word_bytes(view);
	const size_t counter_bytes = cua__scratch_size(plan->counters * sizeof(uint64_t));
	struct cua__call call = {};
	void *base;

	call.ctx = ctx;
	/*
	 * on any failure, such as a capture or lack of memory, the caller takes the ordinary path
	 */
	if (cua__call_scratch(&call, plan_bytes(view, plan), &base))
		return CUA_ERROR_UNSUPPORTED;
	/* a growing map inserts in several batches, one after the other in the stream */
	cua__call_give_back(&call, base);
	*counters = (uint64_t *)base;
	*words = (char *)base + counter_bytes;
	a->spilled = *counters + (plan->counters - 1);
	a->spill = (char *)*words + (plan->words - plan->spill_room) * size;
	a->spill_room = plan->spill_room;
	return ctx->runtime->set_bytes(ctx, base, 0, counter_bytes);
}

static bool fits(struct cua_context *ctx, const struct cua_hashmap_view *view,
		 const struct cua__hashmap_call *call, struct kernels *k)
{
	return !call->flags && !call->values_out && call->n >= LEAST_PAIRS &&
	       view->n_buckets >> 32 == 0 && call->n >> 42 == 0 && find_kernels(view, k) &&
	       k->scatter_bytes + MOST_REGIONS * k->region_bytes +
			       sizeof(struct cua__regions_shared) <=
		       ctx->shared_bytes;
}

/* ---- build ---- */

/* *log: log2 of the build regions per region of the first scatter, or 0. */
static bool plan_build(struct cua_context *ctx, const struct cua_hashmap_view *view,
		       const struct cua__hashmap_call *call, struct kernels *k, struct plan *plan,
		       uint32_t *log)
{
	const uint32_t slots = cua__hashmap_word_slots(view->key_size, view->value_size);

	if (!fits(ctx, view, call, k) || view->n_buckets % CUA__HASHMAP_REGION ||
	    view->n_buckets < LEAST_BUILD_REGIONS * CUA__HASHMAP_REGION ||
	    /* with more pairs than slots, build regions would spill for any keys */
	    call->n > view->n_buckets * slots)
		return false;
	plan->build_regions = view->n_buckets / CUA__HASHMAP_REGION;
	plan->regions = 0;
	plan->room = 0;
	*log = 0;
	/* with at most MOST_REGIONS build regions, a single scatter suffices */
	if (plan->build_regions > MOST_REGIONS) {
		*log = 5;
		while ((plan->build_regions >> *log) > ((uint64_t)4 << *log) ||
		       divide_up(plan->build_regions, (uint64_t)1 << *log) > MOST_REGIONS)
			++*log;
		plan->regions = divide_up(plan->build_regions, (uint64_t)1 << *log);
		plan->room = room_of((uint64_t)((double)call->n / (double)plan->build_regions *
						(double)(1u << *log)));
		if ((1u << *log) > MOST_REGIONS || plan->room > MOST_ROOM)
			return false;
	}
	plan->counters = plan->regions + plan->build_regions + 1;
	plan->spill_room = call->n / 8;
	plan->words = plan->regions * plan->room + plan->spill_room;
	return true;
}

/* Clears everything of a map except its buckets, which the build writes. */
static enum cua_status clear_counts(struct cua_context *ctx, const struct cua_hashmap_view *view)
{
	const struct cua__runtime *runtime = ctx->runtime;
	enum cua_status status = runtime->set_bytes(
		ctx, view->counts, 0, (size_t)((char *)view->buckets - (char *)view->counts));

	if (!status && view->rejects)
		status = runtime->set_bytes(ctx, &view->rejects->count, 0,
					    sizeof(view->rejects->count));
	return status;
}

static enum cua_status build_regions(struct cua_context *ctx, const struct kernels *k,
				     uint64_t regions, const struct cua__regions_pass *a)
{
	return launch(ctx, k->build, regions, BUILD_THREADS, k->build_bytes, k->build_bytes, a);
}

static enum cua_status insert_spilled(struct cua_context *ctx, const struct kernels *k,
				      const struct cua__regions_pass *a)
{
	return launch(ctx, k->spill, (uint64_t)ctx->processors * SPILL_BLOCKS_PER_PROCESSOR,
		      SPILL_THREADS, 0, 0, a);
}

/*
 * The last scatter, `which`, into the build regions, and the build. After an error the map is empty: neither
 * old pairs nor some of the new pairs remain. So the function also takes the status of the steps before.
 */
static enum cua_status finish_build(struct cua_context *ctx, const struct kernels *k,
				    enum cua_status status, kernel which, uint64_t tiles,
				    uint64_t regions, struct cua__regions_pass *last)
{
	const struct cua_hashmap_view *view = &last->view;

	if (!status)
		status = scatter(ctx, k, which, tiles, last);
	if (!status)
		status = build_regions(ctx, k, regions, last);
	if (!status)
		status = insert_spilled(ctx, k, last);
	if (status) {
		(void)clear_counts(ctx, view);
		(void)ctx->runtime->set_bytes(ctx, view->buckets, 0,
					      view->n_buckets * CUA__HASHMAP_WORD_BYTES);
	}
	return status;
}

enum cua_status cua__cuda_hashmap_build(struct cua_context *ctx,
					const struct cua_hashmap_view *view,
					const struct cua__hashmap_call *call)
{
	struct cua__regions_pass a = pass_of(view, call), first, second;
	uint64_t *counters, tiles;
	enum cua_status status;
	struct kernels k;
	struct plan plan;
	uint32_t log;
	void *words;

	if (!plan_build(ctx, view, call, &k, &plan, &log))
		return CUA_ERROR_UNSUPPORTED;
	status = take(ctx, view, &plan, &a, &counters, &words);
	if (status)
		return status;

	/*
	 * the last scatter: into the build regions, from the pairs or from the regions of the first
	 * scatter
	 */
	second = a;
	second.to = view->buckets;
	second.filled = counters + plan.regions;
	second.room = CUA__REGIONS_BUILD_BYTES / word_size(view->key_size, view->value_size);
	second.shift = CUA__HASHMAP_REGION_LOG;
	second.regions = (uint32_t)plan.build_regions;
	tiles = divide_up(call->n, k.tile);
	if (plan.regions) {
		first = a;
		first.to = words;
		first.filled = counters;
		first.room = plan.room;
		first.shift = CUA__HASHMAP_REGION_LOG + log;
		first.regions = (uint32_t)plan.regions;
		second.from_of[0] = words;
		second.from_filled = counters;
		second.from_room = plan.room;
		second.from_tiles = divide_up(plan.room, k.tile);
		second.from_ranks = 1;
		second.regions = 1u << log;
	}
	status = clear_counts(ctx, view);
	if (!status && plan.regions) {
		status = scatter(ctx, &k, k.scatter, tiles, &first);
		tiles = plan.regions * second.from_tiles;
	}
	return finish_build(ctx, &k, status, plan.regions ? k.rescatter : k.scatter, tiles,
			    plan.build_regions, &second);
}

/* ---- insert ---- */

/* *shift: log2 of the buckets per region. */
static bool plan_insert(struct cua_context *ctx, const struct cua_hashmap_view *view,
			const struct cua__hashmap_call *call, struct kernels *k, struct plan *plan,
			uint32_t *shift)
{
	if (!fits(ctx, view, call, k) || call->op != CUA__HASHMAP_INSERT ||
	    view->n_buckets * CUA__HASHMAP_WORD_BYTES < 4 * INSERT_BYTES ||
	    /* with fewer pairs than buckets, inserts seldom share a cache line */
	    call->n < view->n_buckets)
		return false;
	*shift = INSERT_SHIFT;
	while ((view->n_buckets - 1) >> *shift >= MOST_REGIONS)
		++*shift;
	plan->build_regions = 0;
	plan->regions = ((view->n_buckets - 1) >> *shift) + 1;
	plan->room = room_of((uint64_t)((double)call->n / (double)view->n_buckets *
					(double)((uint64_t)1 << *shift)));
	if (plan->room > MOST_ROOM)
		return false;
	plan->counters = plan->regions + 1;
	/*
	 * Room for all pairs: a pair is spilled at most once, and inserting all pairs again would
	 * re-insert a pair that a concurrent erase removed.
	 */
	plan->spill_room = call->n;
	plan->words = plan->regions * plan->room + plan->spill_room;
	return true;
}

/*
 * Inserts the words of all sources, and then the spilled words. A region of a source has room for a->room
 * words; a->regions is the number of the regions of all sources.
 */
static enum cua_status insert_scattered(struct cua_context *ctx, const struct kernels *k,
					const uint64_t *filled, uint32_t shift,
					struct cua__regions_pass *a)
{
	enum cua_status status;
	uint64_t groups;

	a->from_filled = filled;
	a->from_room = a->room;
	a->from_tiles = divide_up(a->room, INSERT_THREADS * INSERT_EACH);
	a->at_once = (uint32_t)(INSERT_BYTES >> shift) / CUA__HASHMAP_WORD_BYTES;
	a->at_once = (a->at_once ? a->at_once : 1) * a->from_ranks;
	groups = divide_up(a->regions, a->at_once);
	status = launch(ctx, k->insert, groups * a->at_once * a->from_tiles, INSERT_THREADS, 0, 0,
			a);
	return status ? status : insert_spilled(ctx, k, a);
}

size_t cua__cuda_hashmap_build_scratch(struct cua_context *ctx, const struct cua_hashmap_view *view,
				       size_t n)
{
	struct cua__hashmap_call call = {};
	const size_t update = cua__cuda_hashmap_combine_scratch(ctx, view, n);
	size_t build = 0, insert = 0;
	struct kernels k;
	struct plan plan;
	uint32_t log;

	call.op = CUA__HASHMAP_INSERT;
	call.n = n;
	if (plan_build(ctx, view, &call, &k, &plan, &log))
		build = plan_bytes(view, &plan);
	if (plan_insert(ctx, view, &call, &k, &plan, &log))
		insert = plan_bytes(view, &plan);
	if (build < insert)
		build = insert;
	return build > update ? build : update;
}

enum cua_status cua__cuda_hashmap_insert_regions(struct cua_context *ctx,
						 const struct cua_hashmap_view *view,
						 const struct cua__hashmap_call *call)
{
	struct cua__regions_pass a = pass_of(view, call);
	uint64_t *counters;
	enum cua_status status;
	struct kernels k;
	struct plan plan;
	uint32_t shift;
	void *words;

	if (!plan_insert(ctx, view, call, &k, &plan, &shift))
		return CUA_ERROR_UNSUPPORTED;
	status = take(ctx, view, &plan, &a, &counters, &words);
	if (status)
		return status;
	a.to = words;
	a.filled = counters;
	a.room = plan.room;
	a.shift = shift;
	a.regions = (uint32_t)plan.regions;
	status = scatter(ctx, &k, k.scatter, divide_up(call->n, k.tile), &a);
	if (status)
		return status;
	a.from_of[0] = words;
	a.from_ranks = 1;
	return insert_scattered(ctx, &k, counters, shift, &a);
}

/* ---- direct inserts of sharded maps ---- */

/* A part of the pairs of all ranks. */
struct direct_part {
	uint64_t room;     /* words of a region */
	size_t room_bytes; /* of a region */
	uint64_t *sent, *received;
	size_t words;   /* offset of the regions */
	uint32_t slice; /* regions of a slice */
};

/*
 * The memory of a rank: a struct cua__shard_late, for each part counters of the words that the rank has for
 * each region of each owner, and of those that it reads from each source in each region of its own, counters
 * of the build regions, the regions of each part, the staging of a build, and the spill list.
 */
struct direct_plan {
	struct kernels k;
	uint32_t shift, log, per_owner, parts;
	struct direct_part part[2];
	uint64_t build_regions;
	uint64_t *filled;     /* in the memory of the rank, as sent and received */
	size_t counter_bytes; /* at its beginning, the late struct included */
	/* of the staging of a unit of the last part, and of unit 0 of two parts */
	size_t unit_bytes, early_bytes;
	char *staging, *spill;
	size_t bytes;
};

/* Sets the first scatter of a build. Returns false if the build would not pay. */
static bool plan_direct_build(const struct cua__shard_direct *d, struct direct_plan *p)
{
	const struct cua_hashmap_view *view = d->view;
	const uint32_t slots = cua__hashmap_word_slots(view->key_size, view->value_size);
	const uint64_t most_regions = MOST_REGIONS / d->ranks;

	p->build_regions = view->n_buckets / CUA__HASHMAP_REGION;
	if (view->n_buckets % CUA__HASHMAP_REGION || p->build_regions < LEAST_BUILD_REGIONS ||
	    d->most > view->n_buckets * slots)
		return false;
	/* as in a single map, as far as the first scatter has room for the regions of all owners */
	while ((2u << p->log) <= MOST_REGIONS &&
	       ((p->build_regions >> p->log) > ((uint64_t)4 << p->log) ||
		divide_up(p->build_regions, (uint64_t)1 << p->log) > most_regions))
		++p->log;
	p->shift = CUA__HASHMAP_REGION_LOG + p->log;
	return divide_up(p->build_regions, (uint64_t)1 << p->log) <= most_regions;
}

static bool plan_direct_insert(const struct cua__shard_direct *d, struct direct_plan *p)
{
	const struct cua_hashmap_view *view = d->view;

	if (view->n_buckets * CUA__HASHMAP_WORD_BYTES < 4 * INSERT_BYTES ||
	    d->most < view->n_buckets)
		return false;
	p->shift = INSERT_SHIFT;
	while ((view->n_buckets - 1) >> p->shift >= MOST_REGIONS / d->ranks)
		++p->shift;
	return true;
}

/* The pairs of the first of two parts of n. */
static uint64_t early_pairs(uint64_t n)
{
	return n / EARLY_SHARE / 32 * 32;
}

static bool has_parts(const struct cua__shard_direct *d)
{
	return d->call == CUA__SHARD_BUILD && d->ranks >= LEAST_RANKS_OF_PARTS &&
	       d->most * word_bytes(d->view) >= LEAST_BYTES_OF_PARTS(d->ranks);
}

/* Sets a part of `most` pairs of each rank, in the given number of slices. Returns false if it is too long. */
static bool plan_part(const struct cua__shard_direct *d, const struct direct_plan *p, uint64_t most,
		      uint32_t slices, struct direct_part *part)
{
	part->room = tight_room_of((uint64_t)((double)most / d->ranks / (double)d->view->n_buckets *
					      (double)((uint64_t)1 << p->shift)));
	part->room_bytes = part->room * word_bytes(d->view);
	part->slice = (uint32_t)divide_up(p->per_owner, slices);
	return part->room <= MOST_ROOM;
}

/* Sets the parts, and the units of d. */
static bool plan_parts(struct cua__shard_direct *d, struct direct_plan *p)
{
	const uint64_t early = has_parts(d) ? early_pairs(d->most) : 0;
	struct direct_part *last = &p->part[early != 0];

	d->early = early != 0;
	p->parts = 1 + d->early;
	if ((early && !plan_part(d, p, early, 1, p->part)) ||
	    !plan_part(d, p, d->most - early, SLICES, last))
		return false;
	d->units = d->early + (uint32_t)divide_up(p->per_owner, last->slice);
	return true;
}

/* The bytes of the staging. Sets the bytes of its parts. */
static size_t plan_staging(const struct cua__shard_direct *d, struct direct_plan *p)
{
	const struct direct_part *last = &p->part[d->early];
	const size_t early = (size_t)p->per_owner * (d->ranks - 1) * p->part[0].room_bytes;

	if (d->call != CUA__SHARD_BUILD)
		return 0;
	p->unit_bytes = (size_t)last->slice * (d->ranks - 1) * last->room_bytes;
	if (d->early)
		p->early_bytes = early > 2 * p->unit_bytes ? early : 2 * p->unit_bytes;
	return p->early_bytes + 2 * p->unit_bytes;
}

/* Sets the places in the memory of the rank. */
static void place_direct(struct cua__shard_direct *d, struct direct_plan *p)
{
	const uint64_t regions = (uint64_t)p->per_owner * d->ranks;
	char *base = d->memory[d->rank];
	uint64_t *counters = (uint64_t *)(base + cua__scratch_size(sizeof(struct cua__shard_late)));
	size_t used;

	for (uint32_t i = 0; i < p->parts; i++) {
		p->part[i].sent = counters;
		p->part[i].received = counters + regions;
		counters += 2 * regions;
	}
	p->filled = counters;
	p->counter_bytes = (size_t)((char *)(p->filled + p->build_regions) - base);
	used = cua__scratch_size(p->counter_bytes);
	for (uint32_t i = 0; i < p->parts; i++) {
		p->part[i].words = used;
		used += regions * p->part[i].room_bytes;
	}
	p->staging = base + used;
	used += plan_staging(d, p);
	d->spill_room = d->most / 8;
	p->spill = base + used;
	p->bytes = used + d->spill_room * word_bytes(d->view);
}

/* Returns false if the call would not pay. Sets d->spill_room, d->units and d->early. */
static bool plan_direct(struct cua_context *ctx, struct cua__shard_direct *d, struct direct_plan *p)
{
	struct cua__hashmap_call call = {};

	*p = {};
	call.op = CUA__HASHMAP_INSERT;
	call.n = d->most;
	if (!fits(ctx, d->view, &call, &p->k) ||
	    !(d->call == CUA__SHARD_BUILD ? plan_direct_build(d, p) : plan_direct_insert(d, p)))
		return false;
	p->per_owner = (uint32_t)((d->view->n_buckets - 1) >> p->shift) + 1;
	if (!plan_parts(d, p))
		return false;
	place_direct(d, p);
	return true;
}

size_t cua__cuda_direct_bytes(struct cua_context *ctx, struct cua__shard_direct *d)
{
	struct direct_plan p;

	return plan_direct(ctx, d, &p) ? p.bytes : 0;
}

/* The plan again, as direct_bytes made it. */
static struct direct_plan planned(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	struct cua__shard_direct copy = *d;
	struct direct_plan p;

	(void)plan_direct(ctx, &copy, &p);
	return p;
}

enum cua_status cua__cuda_direct_clear(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	const struct direct_plan p = planned(ctx, d);

	return ctx->runtime->set_bytes(ctx, d->memory[d->rank], 0, p.counter_bytes);
}

/* Divides a part, the n pairs of the rank from `first` on. */
static enum cua_status send_part(struct cua_context *ctx, const struct cua__shard_direct *d,
				 const struct direct_plan *p, const struct direct_part *part,
				 uint64_t first, uint64_t n)
{
	struct cua__regions_pass a = {};

	if (!n)
		return CUA_OK;
	a.view = *d->view;
	a.keys = (const char *)d->keys + first * d->view->key_size;
	a.values = (const char *)d->values + first * d->view->value_size;
	a.n = n;
	a.to = d->memory[d->rank] + part->words;
	a.filled = part->sent;
	a.room = part->room;
	a.shift = p->shift;
	a.regions = p->per_owner * d->ranks;
	a.owners = d->ranks;
	a.per_owner = p->per_owner;
	a.owner_seed = d->seed;
	a.late = (struct cua__shard_late *)d->memory[d->rank];
	a.spilled = &a.late->spilled;
	return scatter(ctx, &p->k, p->k.send, divide_up(n, p->k.tile), &a);
}

enum cua_status cua__cuda_direct_send(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	const struct direct_plan p = planned(ctx, d);

	return send_part(ctx, d, &p, &p.part[0], 0, p.parts > 1 ? early_pairs(d->n) : d->n);
}

enum cua_status cua__cuda_direct_send_rest(struct cua_context *ctx,
					   const struct cua__shard_direct *d)
{
	const struct direct_plan p = planned(ctx, d);
	const uint64_t early = early_pairs(d->n);

	return send_part(ctx, d, &p, &p.part[1], early, d->n - early);
}

/* ---- the words of other ranks ---- */

/* The rank of a source. Each rank begins with another one, so no memory is read by all ranks at once. */
static uint32_t source_rank(const struct cua__shard_direct *d, uint32_t source)
{
	return (d->rank + source) % d->ranks;
}

/* The regions of a part that a rank has for the rank of d. */
static const char *regions_at(const struct cua__shard_direct *d, const struct direct_plan *p,
			      const struct direct_part *part, uint32_t rank)
{
	return d->memory[rank] + part->words + (size_t)d->rank * p->per_owner * part->room_bytes;
}

/* The numbers of words in the regions that each source has for the rank. */
struct direct_counts {
	const uint64_t *sent[CUA__SHARD_DIRECT_RANKS];
	uint64_t *received;
	uint32_t sources, per_owner;
};

static __global__ void receive_counts_kernel(const __grid_constant__ struct direct_counts c)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < c.per_owner * c.sources;
	     i += gridDim.x * blockDim.x)
		c.received[i] = c.sent[i % c.sources][i / c.sources];
}

/* Reads the counts of a part, of the sources from `first` on. */
static enum cua_status receive_counts(struct cua_context *ctx, const struct cua__shard_direct *d,
				      const struct direct_plan *p, const struct direct_part *part,
				      uint32_t first)
{
	const size_t sent = (size_t)((char *)part->sent - d->memory[d->rank]);
	struct direct_counts c = {};

	for (uint32_t j = first; j < d->ranks; j++)
		c.sent[j - first] = (const uint64_t *)(d->memory[source_rank(d, j)] + sent) +
				    d->rank * p->per_owner;
	c.received = part->received;
	c.sources = d->ranks - first;
	c.per_owner = p->per_owner;
	return cua__launch(ctx, receive_counts_kernel, MOST_REGIONS / 128, 128, 0, c);
}

/* Inserts the pairs of all ranks that were set aside. */
static enum cua_status insert_aside(struct cua_context *ctx, const struct cua__shard_direct *d,
				    const struct direct_plan *p)
{
	struct cua__regions_pass a = {};

	a.view = *d->view;
	for (uint32_t r = 0; r < d->ranks; r++)
		a.from_of[r] = d->memory[r];
	a.owners = d->ranks;
	a.rank = d->rank;
	a.owner_seed = d->seed;
	return launch(ctx, p->k.aside, 1, ASIDE_THREADS, 0, 0, &a);
}

static struct cua__regions_pass received_pass(const struct cua__shard_direct *d,
					      const struct direct_plan *p)
{
	struct cua__regions_pass a = {};

	a.view = *d->view;
	a.spill = p->spill;
	a.spill_room = d->spill_room;
	a.spilled = &((struct cua__shard_late *)d->memory[d->rank])->listed;
	return a;
}

enum cua_status cua__cuda_direct_receive(struct cua_context *ctx, const struct cua__shard_direct *d)
{
	const struct direct_plan p = planned(ctx, d);
	struct cua__regions_pass a = received_pass(d, &p);
	enum cua_status status = receive_counts(ctx, d, &p, p.part, 0);

	for (uint32_t j = 0; j < d->ranks; j++)
		a.from_of[j] = regions_at(d, &p, p.part, source_rank(d, j));
	a.from_ranks = d->ranks;
	a.regions = p.per_owner * d->ranks;
	a.room = p.part[0].room;
	if (!status)
		status = insert_aside(ctx, d, &p);
	return status ? status : insert_scattered(ctx, &p.k, p.part[0].received, p.shift, &a);
}

/* ---- direct builds of sharded maps ---- */

/* A unit: the regions from `first` to before `end` of a part. */
struct unit {
	const struct direct_part *part;
	uint32_t index, first, end;
};

static struct unit unit_of(const struct cua__shard_direct *d, const struct direct_plan *p,
			   uint32_t index)
{
	const bool late = d->early && index;
	const struct direct_part *part = &p->part[late];
	const uint32_t first = (late ? index - 1 : index) * part->slice, end = first + part->slice;

	return {part, index, first, end < p->per_owner ? end : p->per_owner};
}

/*
 * The regions of source j, at least 1, in the staging of a unit. The staging has room for two units. With two
 * parts it has room for unit 0 and two later units. Units 3 and 4 then overwrite unit 0.
 */
static char *staged(const struct cua__shard_direct *d, const struct direct_plan *p,
		    const struct unit *u, uint32_t j)
{
	const uint32_t turn = d->early ? (u->index + 1) % 4 : u->index % 2;
	char *at = p->staging + (size_t)(j - 1) * u->part->slice * u->part->room_bytes;

	if (d->early && !u->index)
		return at;
	return at + (turn < 2 ? turn * p->unit_bytes : p->early_bytes + (turn - 2) * p->unit_bytes);
}

/* The second scatter of a build, of regions of a part, or the build. */
static struct cua__regions_pass build_pass(const struct cua__shard_direct *d,
					   const struct direct_plan *p,
					   const struct direct_part *part, uint32_t first_region)
{
	struct cua__regions_pass a = received_pass(d, p);

	a.to = d->view->buckets;
	a.filled = p->filled;
	a.room = CUA__REGIONS_BUILD_BYTES / word_bytes(d->view);
	a.shift = CUA__HASHMAP_REGION_LOG;
	a.from_room = part->room;
	a.from_tiles = divide_up(part->room, p->k.tile);
	a.regions = 1u << p->log;
	a.first_region = (uint64_t)first_region << p->log;
	return a;
}

enum cua_status cua__cuda_direct_pull(struct cua_context *ctx, const struct cua__shard_direct *d,
				      uint32_t unit)
{
	const struct direct_plan p = planned(ctx, d);
	const struct unit u = unit_of(d, &p, unit);
	const size_t room_bytes = u.part->room_bytes;
	enum cua_status status = CUA_OK;

	for (uint32_t j = 1; j < d->ranks && !status; j++)
		status = ctx->runtime->copy(ctx, staged(d, &p, &u, j),
					    regions_at(d, &p, u.part, source_rank(d, j)) +
						    u.first * room_bytes,
					    (u.end - u.first) * room_bytes);
	return status || u.first ? status : receive_counts(ctx, d, &p, u.part, 1);
}

enum cua_status cua__cuda_direct_scatter_own(struct cua_context *ctx,
					     const struct cua__shard_direct *d)
{
	const struct direct_plan p = planned(ctx, d);
	enum cua_status status = clear_counts(ctx, d->view);

	for (uint32_t i = 0; i < p.parts && !status; i++) {
		const struct direct_part *part = &p.part[i];
		struct cua__regions_pass a = build_pass(d, &p, part, 0);

		a.from_of[0] = regions_at(d, &p, part, d->rank);
		a.from_ranks = 1;
		a.from_filled = part->sent + d->rank * p.per_owner;
		status = scatter(ctx, &p.k, p.k.rescatter, p.per_owner * a.from_tiles, &a);
	}
	return status;
}

enum cua_status cua__cuda_direct_scatter(struct cua_context *ctx, const struct cua__shard_direct *d,
					 uint32_t unit)
{
	const struct direct_plan p = planned(ctx, d);
	const struct unit u = unit_of(d, &p, unit);
	struct cua__regions_pass a = build_pass(d, &p, u.part, u.first);

	for (uint32_t j = 1; j < d->ranks; j++)
		a.from_of[j - 1] = staged(d, &p, &u, j);
	a.from_ranks = d->ranks - 1;
	a.from_filled = u.part->received + u.first * a.from_ranks;
	return scatter(ctx, &p.k, p.k.rescatter, (u.end - u.first) * a.from_ranks * a.from_tiles,
		       &a);
}

enum cua_status cua__cuda_direct_build(struct cua_context *ctx, const struct cua__shard_direct *d,
				       uint32_t unit)
{
	const struct direct_plan p = planned(ctx, d);
	const struct unit u = unit_of(d, &p, unit);
	const struct cua__regions_pass a = build_pass(d, &p, u.part, u.first);
	const uint64_t end = (uint64_t)u.end << p.log;
	enum cua_status status = build_regions(
		ctx, &p.k, (end < p.build_regions ? end : p.build_regions) - a.first_region, &a);

	if (status || unit + 1 < d->units)
		return status;
	status = insert_aside(ctx, d, &p);
	return status ? status : insert_spilled(ctx, &p.k, &a);
}
